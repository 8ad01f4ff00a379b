/* steps_layer_norm.h - the steps of docs/02_layer_norm.md, executed.

   The first part works on an ln_net: a few rows that a linear layer makes, layer norm, and a loss
   that is no straight line. Derivatives are differences of that net's forward pass; sums are added
   up term by term. Where a sum is zero for the true mean, the two sides are compared for another
   number in the mean's place as well, lest a wrong factor before it go unseen. The second part
   unrolls the recurrent cell with a copy of the weights for each step. */
#ifndef STEPS_LAYER_NORM_H
#define STEPS_LAYER_NORM_H

#include "derive_tools.h"
#include "layers/recurrent.h"

enum { LN_ROWS = 3, LN_MOST = 32, LN_INPUTS = 3 };

enum { LN_PLAIN, LN_SAMPLE }; /* x̂ of LN.3, of LN.17 */

/* What the differences are taken of. */
enum ln_what { LN_MEAN, LN_CENTRED, LN_VAR, LN_SD, LN_RSTD, LN_XHAT, LN_Y, LN_LOSS };

typedef struct ln_net {
    size_t N, D;
    int kind; /* LN_PLAIN, or LN_SAMPLE for section 7.6 */
    double scale, eps;
    double input[LN_ROWS * LN_INPUTS], W[LN_INPUTS * LN_MOST], gamma[LN_MOST], beta[LN_MOST];
    double x[LN_ROWS * LN_MOST], push[LN_ROWS * LN_MOST]; /* push is added to x̂ */
    double w[LN_ROWS * LN_MOST], q[LN_ROWS * LN_MOST];    /* L = ∑ w·y + ½·q·y² */
    wide mu[LN_ROWS], v[LN_ROWS], s[LN_ROWS], r[LN_ROWS];
    wide xhat[LN_ROWS * LN_MOST], y[LN_ROWS * LN_MOST], dy[LN_ROWS * LN_MOST];
    enum ln_what what;
    size_t row, at; /* of what */
    int linear;     /* x is input·W */
} ln_net;

/* ---- the net --------------------------------------------------------------------------------- */

static void ln_row_forward(ln_net *k, size_t n, const double *x)
{
    const size_t D = k->D;
    wide mu = 0, v = 0;
    size_t i;
    for (i = 0; i < D; i++) mu += (wide)x[i];
    mu /= (wide)D;
    for (i = 0; i < D; i++) v += ((wide)x[i] - mu) * ((wide)x[i] - mu);
    k->mu[n] = mu;
    k->v[n] = v / (wide)D;
    k->s[n] = D > 1 ? sqrtl(v / (wide)(D - 1)) : 0;
    k->r[n] =
        k->kind == LN_SAMPLE ? 1 / (k->s[n] + (wide)k->eps) : 1 / sqrtl(k->v[n] + (wide)k->eps);
    for (i = 0; i < D; i++) {
        const size_t at = n * D + i;
        k->xhat[at] = ((wide)x[i] - mu) * k->r[n] + (wide)k->push[at];
        k->y[at] = (wide)k->gamma[i] * k->xhat[at] + (wide)k->beta[i];
        k->dy[at] = (wide)k->w[at] + (wide)k->q[at] * k->y[at];
    }
}

static wide ln_forward(ln_net *k)
{
    wide loss = 0;
    size_t n, i, j;
    for (n = 0; n < k->N; n++) {
        double *x = k->x + n * k->D;
        for (i = 0; k->linear && i < k->D; i++) {
            wide sum = 0;
            for (j = 0; j < LN_INPUTS; j++)
                sum += (wide)k->input[n * LN_INPUTS + j] * (wide)k->W[j * k->D + i];
            x[i] = (double)sum;
        }
        ln_row_forward(k, n, x);
    }
    for (i = 0; i < k->N * k->D; i++)
        loss += (wide)k->w[i] * k->y[i] + (wide)k->q[i] * k->y[i] * k->y[i] / 2;
    return loss;
}

static wide ln_value(void *context)
{
    ln_net *k = (ln_net *)context;
    const wide loss = ln_forward(k);
    const size_t at = k->row * k->D + k->at;
    switch (k->what) {
    case LN_MEAN:
        return k->mu[k->row];
    case LN_CENTRED:
        return (wide)k->x[at] - k->mu[k->row];
    case LN_VAR:
        return k->v[k->row];
    case LN_SD:
        return k->s[k->row];
    case LN_RSTD:
        return k->r[k->row];
    case LN_XHAT:
        return k->xhat[at];
    case LN_Y:
        return k->y[at];
    default:
        return loss;
    }
}

/* ∂(what, of row and at)/∂(*by), where *by is about as large as `size`. */
static wide ln_slope(ln_net *k, enum ln_what what, size_t row, size_t at, double *by, double size)
{
    wide rise;
    k->what = what;
    k->row = row;
    k->at = at;
    rise = slope(ln_value, k, by, binary(size / 2048));
    (void)ln_forward(k);
    return rise;
}

static void ln_setup(ln_net *k, int kind, size_t N, size_t D, double scale, nrm_rng *rng)
{
    memset(k, 0, sizeof *k);
    k->kind = kind;
    k->N = N;
    k->D = D;
    k->scale = scale;
    k->eps = kind == LN_SAMPLE ? 0.2 * scale : 0.1 * scale * scale;
    fill(k->input, N * LN_INPUTS, 0.3, 1, rng);
    fill(k->W, LN_INPUTS * D, 0.1 * scale, scale, rng);
    fill(k->x, N * D, 0.7 * scale, 1.5 * scale, rng);
    fill(k->gamma, D, 1.2, 0.5, rng);
    fill(k->beta, D, 0.3, 0.5, rng);
    fill(k->w, N * D, 0.4, 1, rng);
    fill(k->q, N * D, 0, 0.3, rng);
    (void)ln_forward(k);
}

/* ---- small tools ----------------------------------------------------------------------------- */

static wide ln_delta(size_t i, size_t j)
{
    return i == j ? 1 : 0;
}

/* A number of the text, printed with some places behind the point. */
static wide as_printed(wide value, wide printed, int places)
{
    return unless(fabsl(value - printed) <= 0.5000001L * powl(10, (wide)-places));
}

/* g of row n, by LN.10. */
static void ln_gradient_by_xhat(wide *g, const ln_net *k, size_t n)
{
    size_t i;
    for (i = 0; i < k->D; i++) g[i] = (wide)k->gamma[i] * k->dy[n * k->D + i];
}

/* ---- forward --------------------------------------------------------------------------------- */

/* Layer norm of X against batch norm of its transpose, both by the code. */
static wide ln_transpose_residual(const ln_net *k)
{
    const size_t N = k->N, D = k->D;
    nrm_real x[LN_ROWS * LN_MOST], turned[LN_ROWS * LN_MOST], y[LN_ROWS * LN_MOST],
        z[LN_ROWS * LN_MOST];
    nrm_acc mean[LN_MOST], rstd[LN_MOST];
    wide worst = 0;
    size_t n, i;
    int rc;
    to_real(x, k->x, N * D);
    for (n = 0; n < N; n++)
        for (i = 0; i < D; i++) turned[i * N + n] = x[n * D + i];
    rc = nrm_layernorm_forward(y, NULL, NULL, x, NULL, NULL, (nrm_real)k->eps, N, D);
    rc |= nrm_batchnorm_forward(z, mean, rstd, NULL, turned, NULL, NULL, NRM_TRAIN,
                                (nrm_real)k->eps, D, N, 1);
    for (n = 0; n < N; n++)
        for (i = 0; i < D; i++)
            worst = worse(worst, apart((wide)y[n * D + i], (wide)z[i * N + n],
                                       1 + fabsl((wide)y[n * D + i])));
    return worse(worst, unless(rc == NRM_OK));
}

/* Another first row changes no bit of the others. */
static wide ln_rows_apart(const ln_net *k, nrm_rng *rng)
{
    nrm_real x[LN_ROWS * LN_MOST], y[LN_ROWS * LN_MOST], z[LN_ROWS * LN_MOST];
    int rc;
    to_real(x, k->x, k->N * k->D);
    rc = nrm_layernorm_forward(y, NULL, NULL, x, NULL, NULL, (nrm_real)k->eps, k->N, k->D);
    fill_real(x, k->D, 100 * k->scale, 30 * k->scale, rng);
    rc |= nrm_layernorm_forward(z, NULL, NULL, x, NULL, NULL, (nrm_real)k->eps, k->N, k->D);
    return unless(rc == NRM_OK && memcmp(y, z, k->D * sizeof *y) != 0 &&
                  memcmp(y + k->D, z + k->D, (k->N - 1) * k->D * sizeof *y) == 0);
}

/* A row of one value, and of equal values: y is β, to the bit. */
static wide ln_constant_row(const ln_net *k)
{
    nrm_real x[LN_MOST], gamma[LN_MOST] = {0}, beta[LN_MOST], y[LN_MOST];
    size_t i;
    int rc;
    to_real(gamma, k->gamma, k->D);
    to_real(beta, k->beta, k->D);
    for (i = 0; i < k->D; i++) x[i] = (nrm_real)k->x[0];
    rc = nrm_layernorm_forward(y, NULL, NULL, x, gamma, beta, (nrm_real)k->eps, 1, k->D);
    return unless(rc == NRM_OK && memcmp(y, beta, k->D * sizeof *y) == 0);
}

static void steps_ln_forward(ln_net *k, nrm_rng *rng)
{
    const size_t D = k->D;
    const wide centre = k->mu[0] + 0.3L * (wide)k->scale; /* some number in place of the mean */
    wide sum = 0, sum_x = 0, size = 0, square = 0, xhat2 = 0, largest = 0, one_hot;
    size_t i;
    DERIVE("LN.4a", ln_transpose_residual(k), identity());
    DERIVE("LN.5a", ln_rows_apart(k, rng), replay());
    for (i = 0; i < D; i++) {
        sum += ((wide)k->x[i] - centre) * k->r[0];
        sum_x += (wide)k->x[i];
        size += fabsl((wide)k->x[i]) * k->r[0];
        square += ((wide)k->x[i] - k->mu[0]) * ((wide)k->x[i] - k->mu[0]) / (wide)D;
        xhat2 += k->xhat[i] * k->xhat[i] / (wide)D;
        largest = worse(largest, k->xhat[i] * k->xhat[i]);
    }
    DERIVE("LN.6a", apart(sum, k->r[0] * (sum_x - (wide)D * centre), size), algebra());
    DERIVE("LN.7a", relative(xhat2, k->r[0] * k->r[0] * square), algebra());
    DERIVE("LN.7b", relative(square, 1 / (k->r[0] * k->r[0]) - (wide)k->eps), algebra());
    /* the bound holds, and a row with a single value that differs attains it */
    one_hot = (1 - 1 / (wide)D) * (1 - 1 / (wide)D);  /* squared deviation of the 1 among zeros, */
    one_hot /= 1 / (wide)D - 1 / ((wide)D * (wide)D); /* by the variance of the row              */
    DERIVE("LN.7c",
           worse(unless(largest <= ((wide)D - 1) * xhat2 * (1 + 1e-15L)),
                 relative(one_hot, (wide)D - 1)),
           algebra());
    DERIVE("LN.5b", ln_constant_row(k), replay());
}

/* ---- backward: the parameters ---------------------------------------------------------------- */

static void steps_ln_parameters(ln_net *k)
{
    const size_t N = k->N, D = k->D;
    size_t i, j, n;
    for (i = 0; i < D; i++) {
        wide by_beta = 0, by_gamma = 0, size = 0;
        for (n = 0; n < N; n++)
            for (j = 0; j < D; j++) {
                const wide of_beta = ln_slope(k, LN_Y, n, j, k->beta + i, 1);
                const wide of_gamma = ln_slope(k, LN_Y, n, j, k->gamma + i, 1);
                const wide dy = k->dy[n * D + j];
                by_beta += dy * of_beta;
                by_gamma += dy * of_gamma;
                size += fabsl(dy);
                DERIVE("LN.8b", apart(of_beta, ln_delta(i, j), 1), acc_difference());
                DERIVE("LN.9b", apart(of_gamma, ln_delta(i, j) * k->xhat[n * D + j], 1),
                       acc_difference());
            }
        DERIVE("LN.8a", apart(ln_slope(k, LN_LOSS, 0, 0, k->beta + i, 1), by_beta, size),
               acc_difference());
        DERIVE("LN.9a", apart(ln_slope(k, LN_LOSS, 0, 0, k->gamma + i, 1), by_gamma, size),
               acc_difference());
    }
    for (i = 0; i < D; i++)
        for (j = 0; j < D; j++)
            DERIVE("LN.10a",
                   apart(ln_slope(k, LN_Y, 0, j, k->push + i, 1),
                         ln_delta(i, j) * (wide)k->gamma[j], 1),
                   acc_difference());
}

/* ---- backward: the three roads --------------------------------------------------------------- */

/* Row 0. */
static void steps_ln_roads(ln_net *k)
{
    const size_t D = k->D;
    const double s = k->scale;
    const wide d = (wide)D, r = k->r[0], mu = k->mu[0], centre = mu + 0.4L * (wide)s;
    double moved = (double)k->v[0];
    size_t i, j;
    for (i = 0; i < D; i++) {
        const wide dv = ln_slope(k, LN_VAR, 0, 0, k->x + i, s);
        const wide dr = ln_slope(k, LN_RSTD, 0, 0, k->x + i, s);
        const wide dev = (wide)k->x[i] - mu, size = (wide)s;
        wide sum = 0, other = 0, left_over = 0;
        DERIVE("LN.11a", apart(ln_slope(k, LN_MEAN, 0, 0, k->x + i, s), 1 / d, 1 / d),
               acc_difference());
        for (j = 0; j < D; j++) {
            const wide dc = ln_slope(k, LN_CENTRED, 0, j, k->x + i, s);
            const wide dxhat = ln_slope(k, LN_XHAT, 0, j, k->x + i, s);
            const wide dev_j = (wide)k->x[j] - mu;
            DERIVE("LN.11b", apart(dc, ln_delta(i, j) - 1 / d, 1), acc_difference());
            sum += 2 / d * dev_j * (ln_delta(i, j) - 1 / d);
            other += 2 / d * ((wide)k->x[j] - centre) * (ln_delta(i, j) - 1 / d);
            left_over += (wide)k->x[j] - centre;
            DERIVE("LN.13a", apart(dxhat, r * dc + dev_j * dr, r), acc_difference());
            DERIVE("LN.13b",
                   apart(dxhat, r * (ln_delta(i, j) - 1 / d) - dev_j * r * r * k->xhat[i] / d, r),
                   acc_difference());
        }
        DERIVE("LN.11c", apart(dv, sum, size), acc_difference());
        DERIVE("LN.11d",
               apart(other, 2 / d * ((wide)k->x[i] - centre) - 2 / (d * d) * left_over, size),
               algebra());
        DERIVE("LN.12b", apart(dr, -r * r * r / 2 * (2 / d) * dev, r / size), acc_difference());
    }
    { /* r as a function of v */
        const double h = binary(moved / 2048);
        wide rise = 0;
        static const wide weight[5] = {1, -8, 0, 8, -1};
        int step;
        for (step = -2; step <= 2; step++)
            rise +=
                weight[step + 2] / sqrtl((wide)(moved + step * h) + (wide)k->eps) / (12 * (wide)h);
        DERIVE("LN.12a",
               worse(relative(rise, -0.5L * powl((wide)moved + (wide)k->eps, -1.5L)),
                     relative(-0.5L * powl(k->v[0] + (wide)k->eps, -1.5L), -r * r * r / 2)),
               acc_difference());
    }
}

/* ---- backward: dx ---------------------------------------------------------------------------- */

/* ∂x̂ⱼ/∂xᵢ by LN.13. */
static wide ln_jacobian(const ln_net *k, size_t j, size_t i)
{
    const wide d = (wide)k->D;
    return k->r[0] * (ln_delta(i, j) - 1 / d - k->xhat[i] * k->xhat[j] / d);
}

static void steps_ln_input(ln_net *k)
{
    const size_t D = k->D;
    const wide d = (wide)D, r = k->r[0];
    wide g[LN_MOST], gamma[LN_MOST] = {0}, dx[LN_MOST], largest = 0;
    wide cov = 0, gamma_mean, dy_mean, gx, dyx, xhat_sum = 0, size = 0;
    size_t i, j;
    ln_gradient_by_xhat(g, k, 0);
    for (i = 0; i < D; i++) gamma[i] = (wide)k->gamma[i];
    gamma_mean = mean_of(gamma, D);
    dy_mean = mean_of(k->dy, D);
    gx = mean_of_product(g, k->xhat, D);
    dyx = mean_of_product(k->dy, k->xhat, D);
    for (i = 0; i < D; i++) {
        wide chain = 0, first = 0, second = 0, third = 0;
        dx[i] = ln_slope(k, LN_LOSS, 0, 0, k->x + i, k->scale);
        for (j = 0; j < D; j++) {
            chain += g[j] * ln_slope(k, LN_XHAT, 0, j, k->x + i, k->scale);
            first += g[j] * ln_delta(i, j);
            second += g[j] / d;
            third += g[j] * k->xhat[j] / d;
        }
        largest = worse(largest, r * (fabsl(g[i]) + fabsl(second)));
        DERIVE("LN.14a", apart(dx[i], chain, r * d), acc_difference());
        chain = 0;
        for (j = 0; j < D; j++) chain += g[j] * ln_jacobian(k, j, i);
        DERIVE("LN.14b", apart(chain, r * (first - second - k->xhat[i] * third), r * d), algebra());
        cov += (gamma[i] - gamma_mean) * (k->dy[i] - dy_mean) / d;
    }
    DERIVE("LN.14c", apart(mean_of(g, D), gamma_mean * dy_mean + cov, d), algebra());
    for (i = 0; i < D; i++) {
        const wide pulled = r * gamma[i] * (k->dy[i] - dy_mean - k->xhat[i] * dyx);
        const wide error =
            r * (mean_of(g, D) - gamma[i] * dy_mean + k->xhat[i] * (gx - gamma[i] * dyx));
        DERIVE("LN.14d", apart(pulled - dx[i], error, largest), acc_difference());
        xhat_sum += ((wide)k->x[i] - k->mu[0] - 0.2L * (wide)k->scale) * r;
        size += fabsl(g[i]);
    }
    { /* ∑ dx, ∑ dx·x̂ of the closed form, around another centre */
        wide sum = 0, along = 0, g_sum = 0, g_along = 0, squares = 0, other_gx = 0;
        wide right, true_along = 0;
        for (i = 0; i < D; i++) {
            const wide xh = ((wide)k->x[i] - k->mu[0] - 0.2L * (wide)k->scale) * r;
            other_gx += g[i] * xh / d;
        }
        for (i = 0; i < D; i++) {
            const wide xh = ((wide)k->x[i] - k->mu[0] - 0.2L * (wide)k->scale) * r;
            const wide term = r * (g[i] - mean_of(g, D) - xh * other_gx);
            sum += term;
            along += term * xh;
            g_sum += g[i];
            g_along += g[i] * xh;
            squares += xh * xh;
            true_along += dx[i] * k->xhat[i];
        }
        right = r * (g_sum - d * mean_of(g, D) - other_gx * xhat_sum);
        DERIVE("LN.15a", apart(sum, right, r * size), algebra());
        right = r * (g_along - mean_of(g, D) * xhat_sum - other_gx * squares);
        DERIVE("LN.16a", apart(along, right, r * size), algebra());
        right = r * d * gx * (1 - mean_of_product(k->xhat, k->xhat, D));
        DERIVE("LN.16b", apart(true_along, right, r * size), acc_difference());
        /* without ⟨g⟩ the sum along x̂ stays, and the sum of dx does not (the first question) */
        for (i = 0, sum = 0, along = 0; i < D; i++) {
            const wide without = r * (g[i] - k->xhat[i] * gx);
            sum += without;
            along += without * k->xhat[i];
        }
        ALSO(apart(along, right, r * size), acc_difference());
        ALSO(apart(sum, r * d * mean_of(g, D), r * size), algebra());
        right = (wide)k->eps / (k->v[0] + (wide)k->eps) * (r * d * gx);
        DERIVE("LN.16c", apart(true_along, right, r * size), acc_difference());
    }
}

/* ---- projections ----------------------------------------------------------------------------- */

static void steps_ln_projection(ln_net *k)
{
    const size_t D = k->D;
    const wide d = (wide)D, r = k->r[0], er2 = (wide)k->eps * r * r;
    const wide length = sqrtl(d * (1 - er2));
    wide unit[LN_MOST], trace = 0, ones, along;
    size_t i, j, m;
    for (i = 0; i < D; i++) unit[i] = k->xhat[i] / length;
    for (i = 0; i < D; i++) {
        ones = along = 0;
        for (j = 0; j < D; j++) {
            const wide jac = ln_slope(k, LN_XHAT, 0, j, k->x + i, k->scale);
            wide twice = 0;
            for (m = 0; m < D; m++) twice += (ln_delta(i, m) - 1 / d) * (ln_delta(m, j) - 1 / d);
            DERIVE("LN.13c", apart(twice, ln_delta(i, j) - 1 / d, 1), algebra());
            DERIVE("LN.13d",
                   apart(jac, r * (ln_delta(i, j) - 1 / d - (1 - er2) * unit[i] * unit[j]), r),
                   acc_difference());
            ones += jac;
            along += jac * k->xhat[j];
            if (i == j) trace += jac;
        }
        DERIVE("LN.13e", apart(ones, 0, r), acc_difference());
        DERIVE("LN.13f", apart(along, er2 * r * k->xhat[i], r * d), acc_difference());
    }
    DERIVE("LN.13g", apart(trace, r * (d - 2 + er2), r * d), acc_difference());
}

/* Rows of two, where x̂ is one number and its opposite, and rows of equal values. */
static void steps_ln_small(nrm_rng *rng)
{
    ln_net k;
    size_t i, j, D;
    for (D = 2; D <= 7; D += 5) {
        ln_setup(&k, LN_PLAIN, 1, D, 1, rng);
        for (i = 0; i < D; i++)
            for (j = 0; D == 2 && j < D; j++)
                DERIVE("LN.13h",
                       apart(ln_slope(&k, LN_XHAT, 0, j, k.x + i, 1),
                             (i == j ? 1 : -1) * (wide)k.eps * powl(k.r[0], 3) / 2, k.r[0]),
                       acc_difference());
        for (i = 0; i < D; i++) k.x[i] = 2.5;
        for (i = 0; i < D; i++)
            for (j = 0; j < D; j++)
                DERIVE("LN.13i",
                       apart(ln_slope(&k, LN_XHAT, 0, j, k.x + i, 0.01),
                             (ln_delta(i, j) - 1 / (wide)D) / sqrtl((wide)k.eps),
                             1 / sqrtl((wide)k.eps)),
                       acc_difference());
    }
}

/* ---- what it does not see -------------------------------------------------------------------- */

static void steps_ln_invariance(ln_net *k, nrm_rng *rng)
{
    const size_t D = k->D;
    const wide c = (wide)uniform_between(rng, 0.1, 10), shift = (wide)k->scale * 3;
    wide a[LN_MOST], mu = 0, v = 0, r, r_eps, add[LN_INPUTS], all = 0;
    size_t i, j;
    for (i = 0; i < D; i++) {
        a[i] = c * (wide)k->x[i] + shift;
        mu += a[i] / (wide)D;
    }
    for (i = 0; i < D; i++) v += (a[i] - mu) * (a[i] - mu) / (wide)D;
    r = 1 / sqrtl(v + (wide)k->eps);
    r_eps = 1 / sqrtl(v + c * c * (wide)k->eps);
    for (i = 0; i < D; i++) {
        const wide dev = (wide)k->x[i] - k->mu[0];
        DERIVE("LN.4b", apart((a[i] - mu) * r, c * dev / sqrtl(c * c * k->v[0] + (wide)k->eps), 3),
               algebra());
        DERIVE("LN.4c", apart((a[i] - mu) * r_eps, k->xhat[i], 3), algebra());
    }
    k->linear = 1;
    (void)ln_forward(k);
    for (j = 0; j < LN_INPUTS; j++) {
        add[j] = (wide)uniform_between(rng, -3, 3);
        all += (wide)k->input[j] * add[j];
    }
    for (i = 0; i < D; i++) {
        wide sum = 0;
        for (j = 0; j < LN_INPUTS; j++) sum += (wide)k->input[j] * ((wide)k->W[j * D + i] + add[j]);
        DERIVE("LN.4d", apart(sum, (wide)k->x[i] + all, 30), acc_identity());
    }
    k->linear = 0;
}

/* The weights before a layer norm, for a net of one row. */
static void steps_ln_weights(size_t D, double scale, nrm_rng *rng)
{
    ln_net k;
    wide dx[LN_MOST], g[LN_MOST], all = 0, size = 0, right;
    size_t i, j;
    ln_setup(&k, LN_PLAIN, 1, D, scale, rng);
    k.linear = 1;
    (void)ln_forward(&k);
    ln_gradient_by_xhat(g, &k, 0);
    right = (wide)D * (wide)k.eps * k.r[0] * k.r[0] * mean_of_product(g, k.xhat, D);
    k.linear = 0;
    for (i = 0; i < D; i++) dx[i] = ln_slope(&k, LN_LOSS, 0, 0, k.x + i, scale);
    k.linear = 1;
    for (j = 0; j < LN_INPUTS; j++) {
        wide sum = 0;
        for (i = 0; i < D; i++) {
            const double kept = k.W[j * D + i];
            const wide dW = ln_slope(&k, LN_LOSS, 0, 0, k.W + j * D + i, scale);
            k.W[j * D + i] = kept;
            DERIVE("LN.15b", apart(dW, (wide)k.input[j] * dx[i], k.r[0] * (wide)D),
                   acc_difference());
            sum += dW;
            all += (wide)kept * dW;
            size += fabsl((wide)kept * dW);
        }
        DERIVE("LN.15c", apart(sum, 0, k.r[0] * (wide)D), acc_difference());
    }
    DERIVE("LN.16d", apart(all, right, size + (wide)D), acc_difference());
}

/* ---- the variant with D − 1 and ε outside ---------------------------------------------------- */

static void steps_ln_std(size_t D, double scale, nrm_rng *rng)
{
    ln_net k;
    wide g[LN_MOST], squares = 0, gx, kappa, d = (wide)D, r, s, along = 0;
    size_t i, j;
    ln_setup(&k, LN_SAMPLE, 1, D, scale, rng);
    r = k.r[0];
    s = k.s[0];
    ln_gradient_by_xhat(g, &k, 0);
    gx = mean_of_product(g, k.xhat, D);
    kappa = d / ((d - 1) * r * s);
    for (i = 0; i < D; i++) squares += ((wide)k.x[i] - k.mu[0]) * ((wide)k.x[i] - k.mu[0]);
    DERIVE("LN.17a", relative(squares / (d - 1), d / (d - 1) * k.v[0]), algebra());
    for (i = 0; i < D; i++) { /* x̂ of the one by x̂ of the other */
        const wide dev = (wide)k.x[i] - k.mu[0], plain = dev / sqrtl(k.v[0] + (wide)k.eps);
        DERIVE("LN.17b",
               relative(k.xhat[i] / plain,
                        sqrtl(k.v[0] + (wide)k.eps) / (sqrtl(d / (d - 1) * k.v[0]) + (wide)k.eps)),
               algebra());
    }
    for (i = 0; i < D; i++) {
        const wide dev = (wide)k.x[i] - k.mu[0];
        const wide dv = ln_slope(&k, LN_VAR, 0, 0, k.x + i, scale);
        const wide dr = ln_slope(&k, LN_RSTD, 0, 0, k.x + i, scale);
        const wide ds = ln_slope(&k, LN_SD, 0, 0, k.x + i, scale);
        const wide dx = ln_slope(&k, LN_LOSS, 0, 0, k.x + i, scale);
        wide sum = 0;
        DERIVE("LN.18a", apart(d / (d - 1) * dv, 2 * dev / (d - 1), (wide)scale), acc_difference());
        DERIVE("LN.18b", apart(ds, dev / ((d - 1) * s), 1), acc_difference());
        DERIVE("LN.18d", apart(dr, -r * k.xhat[i] / ((d - 1) * s), r / (wide)scale),
               acc_difference());
        for (j = 0; j < D; j++) {
            const wide jac =
                r * (ln_delta(i, j) - 1 / d - k.xhat[i] * k.xhat[j] / ((d - 1) * r * s));
            DERIVE("LN.18e", apart(ln_slope(&k, LN_XHAT, 0, j, k.x + i, scale), jac, r),
                   acc_difference());
            sum += g[j] * k.xhat[j] / ((d - 1) * r * s);
        }
        DERIVE("LN.18f", apart(sum, kappa * gx, d), algebra());
        along += dx * k.xhat[i];
    }
    { /* r as a function of s */
        const double at = (double)s, h = binary(at / 2048);
        static const wide weight[5] = {1, -8, 0, 8, -1};
        wide rise = 0;
        int step;
        for (step = -2; step <= 2; step++)
            rise += weight[step + 2] / ((wide)(at + step * h) + (wide)k.eps) / (12 * (wide)h);
        DERIVE("LN.18c", relative(rise, -r * r), acc_difference());
    }
    DERIVE("LN.18g", relative(kappa, d / (d - 1) * (1 + (wide)k.eps / s)), algebra());
    DERIVE("LN.18h", relative(kappa * mean_of_product(k.xhat, k.xhat, D), r * s), algebra());
    DERIVE("LN.18i", apart(along, d * (wide)k.eps * r * r * gx, r * d), acc_difference());
    ALSO(apart(along, r * d * gx * (1 - r * s), r * d), acc_difference());
}

/* ---- the recurrent cell, unrolled ------------------------------------------------------------ */

enum { CELL_STEPS = 4, CELL_BATCH = 2, CELL_INPUTS = 2, CELL_UNITS = 4 };
enum { CELL_STATE = CELL_BATCH * CELL_UNITS, CELL_STATES = (CELL_STEPS + 1) * CELL_STATE };
enum cell_what { CELL_H, CELL_A, CELL_Z, CELL_LOSS };

typedef struct ln_cell { /* tanh and layer norm; every step has weights of its own */
    double Wx[CELL_STEPS][CELL_INPUTS][CELL_UNITS], Wh[CELL_STEPS][CELL_UNITS][CELL_UNITS];
    double gamma[CELL_UNITS], beta[CELL_UNITS], eps;
    double x[CELL_STEPS][CELL_BATCH][CELL_INPUTS];
    double h_push[CELL_STEPS + 1][CELL_BATCH][CELL_UNITS]; /* of which h_push[0] is the start */
    double a_push[CELL_STEPS][CELL_BATCH][CELL_UNITS],
        xhat_push[CELL_STEPS][CELL_BATCH][CELL_UNITS], z_push[CELL_STEPS][CELL_BATCH][CELL_UNITS];
    double w[CELL_STEPS + 1][CELL_BATCH][CELL_UNITS], q; /* L = ∑ w·h + ½·q·h² */
    wide h[CELL_STEPS + 1][CELL_BATCH][CELL_UNITS];
    wide a[CELL_STEPS][CELL_BATCH][CELL_UNITS], xhat[CELL_STEPS][CELL_BATCH][CELL_UNITS],
        z[CELL_STEPS][CELL_BATCH][CELL_UNITS];
    wide r[CELL_STEPS][CELL_BATCH];
    enum cell_what what;
    size_t t, n, i;        /* of what */
    double all_Wh, all_Wx; /* are added to Wh[.][k][j], Wx[.][k][j] of all steps */
    size_t all_k, all_j;
} ln_cell;

static wide cell_sum(const ln_cell *p, size_t t, size_t n, size_t i)
{
    wide sum = (wide)p->a_push[t][n][i];
    size_t k;
    for (k = 0; k < CELL_INPUTS; k++) {
        wide W = (wide)p->Wx[t][k][i];
        if (k == p->all_k && i == p->all_j) W += (wide)p->all_Wx;
        sum += (wide)p->x[t][n][k] * W;
    }
    for (k = 0; k < CELL_UNITS; k++) {
        wide W = (wide)p->Wh[t][k][i];
        if (k == p->all_k && i == p->all_j) W += (wide)p->all_Wh;
        sum += p->h[t][n][k] * W;
    }
    return sum;
}

static wide cell_forward(ln_cell *p)
{
    wide loss = 0;
    size_t t, n, i;
    for (t = 0; t <= CELL_STEPS; t++)
        for (n = 0; n < CELL_BATCH; n++) {
            wide mu = 0, v = 0;
            for (i = 0; i < CELL_UNITS; i++) {
                p->h[t][n][i] = (t > 0 ? tanhl(p->z[t - 1][n][i]) : 0) + (wide)p->h_push[t][n][i];
                loss += (wide)p->w[t][n][i] * p->h[t][n][i];
                loss += (wide)p->q * p->h[t][n][i] * p->h[t][n][i] / 2;
            }
            if (t == CELL_STEPS) continue;
            for (i = 0; i < CELL_UNITS; i++) mu += p->a[t][n][i] = cell_sum(p, t, n, i);
            mu /= CELL_UNITS;
            for (i = 0; i < CELL_UNITS; i++) v += (p->a[t][n][i] - mu) * (p->a[t][n][i] - mu);
            p->r[t][n] = 1 / sqrtl(v / CELL_UNITS + (wide)p->eps);
            for (i = 0; i < CELL_UNITS; i++) {
                p->xhat[t][n][i] = (p->a[t][n][i] - mu) * p->r[t][n] + (wide)p->xhat_push[t][n][i];
                p->z[t][n][i] = (wide)p->gamma[i] * p->xhat[t][n][i] + (wide)p->beta[i] +
                                (wide)p->z_push[t][n][i];
            }
        }
    return loss;
}

static wide cell_value(void *context)
{
    ln_cell *p = (ln_cell *)context;
    const wide loss = cell_forward(p);
    switch (p->what) {
    case CELL_H:
        return p->h[p->t][p->n][p->i];
    case CELL_A:
        return p->a[p->t][p->n][p->i];
    case CELL_Z:
        return p->z[p->t][p->n][p->i];
    default:
        return loss;
    }
}

static wide cell_slope(ln_cell *p, enum cell_what what, size_t t, size_t n, size_t i, double *by)
{
    wide rise;
    p->what = what;
    p->t = t;
    p->n = n;
    p->i = i;
    rise = slope(cell_value, p, by, 1.0 / 4096);
    (void)cell_forward(p);
    return rise;
}

static wide cell_loss_slope(ln_cell *p, double *by)
{
    return cell_slope(p, CELL_LOSS, 0, 0, 0, by);
}

static void cell_setup(ln_cell *p, int last_only, nrm_rng *rng)
{
    size_t t;
    memset(p, 0, sizeof *p);
    fill(&p->Wx[0][0][0], CELL_INPUTS * CELL_UNITS, 0, 0.7, rng);
    fill(&p->Wh[0][0][0], CELL_UNITS * CELL_UNITS, 0, 0.6, rng);
    for (t = 1; t < CELL_STEPS; t++) {
        memcpy(p->Wx[t], p->Wx[0], sizeof p->Wx[0]);
        memcpy(p->Wh[t], p->Wh[0], sizeof p->Wh[0]);
    }
    fill(p->gamma, CELL_UNITS, 1, 0.3, rng);
    fill(p->beta, CELL_UNITS, 0.2, 0.4, rng);
    fill(&p->x[0][0][0], CELL_STEPS * CELL_BATCH * CELL_INPUTS, 0.3, 1, rng);
    fill(&p->h_push[0][0][0], CELL_STATE, 0, 0.5, rng);
    fill(&p->w[0][0][0], CELL_STATES, 0, 1, rng);
    if (last_only) memset(p->w, 0, CELL_STEPS * CELL_STATE * sizeof p->w[0][0][0]);
    p->q = last_only ? 0 : 0.4;
    p->eps = 0.05;
    (void)cell_forward(p);
}

/* One step, for a loss that looks at all states. */
static void steps_cell_step(ln_cell *p, size_t t, size_t n)
{
    wide da[CELL_UNITS], dz[CELL_UNITS], sum = 0, along = 0, right = 0, size = 0, both = 0;
    wide mean = 0, centred = 0, along_xhat = 0;
    size_t i, j, k;
    for (i = 0; i < CELL_UNITS; i++) {
        da[i] = cell_loss_slope(p, &p->a_push[t][n][i]);
        dz[i] = cell_loss_slope(p, &p->z_push[t][n][i]);
        mean += p->a[t][n][i] / CELL_UNITS;
    }
    for (i = 0; i < CELL_UNITS; i++) {
        const wide g = cell_loss_slope(p, &p->xhat_push[t][n][i]);
        DERIVE("RNN.5a", apart(g, (wide)p->gamma[i] * dz[i], 1), acc_difference());
        right += (wide)p->eps * p->r[t][n] * p->r[t][n] * g * p->xhat[t][n][i];
        along += p->a[t][n][i] * da[i];
        along_xhat += p->xhat[t][n][i] / p->r[t][n] * da[i];
        centred += p->xhat[t][n][i] / p->r[t][n] * da[i] + mean * da[i];
        size += fabsl(p->a[t][n][i] * da[i]);
        for (j = 0; j < CELL_UNITS; j++) {
            const wide slope_of_f = 1 - tanhl(p->z[t][n][i]) * tanhl(p->z[t][n][i]);
            DERIVE("RNN.4a",
                   apart(cell_slope(p, CELL_H, t + 1, n, i, &p->z_push[t][n][j]),
                         ln_delta(i, j) * slope_of_f, 1),
                   acc_difference());
        }
    }
    for (k = 0; k < CELL_UNITS; k++) {
        const wide e = (wide)p->w[t][n][k] + (wide)p->q * p->h[t][n][k];
        const wide dh = cell_loss_slope(p, &p->h_push[t][n][k]);
        wide chain = e;
        for (j = 0; j < CELL_UNITS; j++) {
            const wide da_dh = cell_slope(p, CELL_A, t, n, j, &p->h_push[t][n][k]);
            DERIVE("RNN.6b", apart(da_dh, (wide)p->Wh[t][k][j], 1), acc_difference());
            chain += da[j] * da_dh;
            both += p->h[t][n][k] * (wide)p->Wh[t][k][j] * da[j];
        }
        DERIVE("RNN.6a", apart(dh, chain, 1 + fabsl(e)), acc_difference());
        sum += p->h[t][n][k] * (dh - e);
    }
    for (k = 0; k < CELL_INPUTS; k++) {
        sum += (wide)p->x[t][n][k] * cell_loss_slope(p, &p->x[t][n][k]);
        for (j = 0; j < CELL_UNITS; j++) {
            DERIVE("RNN.9a",
                   apart(cell_slope(p, CELL_A, t, n, j, &p->x[t][n][k]), (wide)p->Wx[t][k][j], 1),
                   acc_difference());
            both += (wide)p->x[t][n][k] * (wide)p->Wx[t][k][j] * da[j];
        }
    }
    DERIVE("RNN.14a", apart(sum, both, size + 1), acc_difference());
    DERIVE("RNN.14b", apart(both, along, size), algebra());
    DERIVE("RNN.14c", apart(along, centred, size), algebra());
    DERIVE("RNN.14d", apart(along_xhat, right, size + 1), acc_difference());
}

/* The weights: a slope by all copies together, by each copy, and the sum over the sequences. */
static void steps_cell_weights(ln_cell *p)
{
    size_t t, n, k, j;
    wide all = 0, states = 0, size = 0;
    for (k = 0; k < CELL_UNITS; k++)
        for (j = 0; j < CELL_UNITS; j++) {
            wide together, sum = 0;
            p->all_k = k;
            p->all_j = j;
            together = cell_loss_slope(p, &p->all_Wh);
            all += (wide)p->Wh[0][k][j] * together;
            for (t = 0; t < CELL_STEPS; t++) {
                const wide own = cell_loss_slope(p, &p->Wh[t][k][j]);
                wide rows = 0;
                for (n = 0; n < CELL_BATCH; n++)
                    rows += p->h[t][n][k] * cell_loss_slope(p, &p->a_push[t][n][j]);
                DERIVE("RNN.7b", apart(own, rows, 1), acc_difference());
                sum += own;
            }
            DERIVE("RNN.7a", apart(together, sum, CELL_STEPS), acc_difference());
        }
    for (k = 0; k < CELL_INPUTS; k++)
        for (j = 0; j < CELL_UNITS; j++) {
            wide together, sum = 0;
            p->all_k = k;
            p->all_j = j;
            together = cell_loss_slope(p, &p->all_Wx);
            for (t = 0; t < CELL_STEPS; t++)
                for (n = 0; n < CELL_BATCH; n++)
                    sum += (wide)p->x[t][n][k] * cell_loss_slope(p, &p->a_push[t][n][j]);
            DERIVE("RNN.8a", apart(together, sum, CELL_STEPS), acc_difference());
        }
    for (t = 0; t < CELL_STEPS; t++)
        for (n = 0; n < CELL_BATCH; n++)
            for (k = 0; k < CELL_UNITS; k++) {
                const wide e = (wide)p->w[t][n][k] + (wide)p->q * p->h[t][n][k];
                const wide dh = cell_loss_slope(p, &p->h_push[t][n][k]);
                states += p->h[t][n][k] * (dh - e);
                size += fabsl(p->h[t][n][k] * dh);
            }
    DERIVE("RNN.15a", apart(all, states, size), acc_difference());
}

/* Jacobians of a step, for a loss that looks at the last state only. */
static void steps_cell_jacobian(ln_cell *p, size_t t, size_t n)
{
    size_t i, j, k;
    for (k = 0; k < CELL_UNITS; k++) {
        wide product = 0;
        for (i = 0; i < CELL_UNITS; i++) {
            const wide J = cell_slope(p, CELL_H, t + 1, n, i, &p->h_push[t][n][k]);
            const wide of_f = cell_slope(p, CELL_H, t + 1, n, i, &p->z_push[t][n][i]);
            wide chain = 0;
            for (j = 0; j < CELL_UNITS; j++) {
                const wide da_dh = cell_slope(p, CELL_A, t, n, j, &p->h_push[t][n][k]);
                const wide dz_da = cell_slope(p, CELL_Z, t, n, i, &p->a_push[t][n][j]);
                const wide of_norm = (wide)p->gamma[i] * p->r[t][n] *
                                     (ln_delta(i, j) - 1 / (wide)CELL_UNITS -
                                      p->xhat[t][n][j] * p->xhat[t][n][i] / (wide)CELL_UNITS);
                DERIVE("RNN.10b", apart(dz_da, of_norm, p->r[t][n]), acc_difference());
                chain += da_dh * dz_da * of_f;
            }
            DERIVE("RNN.10a", apart(J, chain, p->r[t][n]), acc_difference());
            product += J * cell_loss_slope(p, &p->h_push[t + 1][n][i]);
        }
        DERIVE("RNN.11a", apart(cell_loss_slope(p, &p->h_push[t][n][k]), product, p->r[t][n]),
               acc_difference());
    }
}

/* T matrices that turn and stretch by c. */
static void steps_stretching(wide c, size_t T, nrm_rng *rng)
{
    wide v[CELL_UNITS], before = 0, after = 0;
    size_t t, i;
    for (i = 0; i < CELL_UNITS; i++) {
        v[i] = (wide)nrm_rng_normal(rng);
        before += v[i] * v[i];
    }
    for (t = 0; t < T; t++) { /* c times the mirror at a random plane */
        wide u[CELL_UNITS], uu = 0, uv = 0;
        for (i = 0; i < CELL_UNITS; i++) {
            u[i] = (wide)nrm_rng_normal(rng);
            uu += u[i] * u[i];
            uv += u[i] * v[i];
        }
        for (i = 0; i < CELL_UNITS; i++) v[i] = c * (v[i] - 2 * uv / uu * u[i]);
    }
    for (i = 0; i < CELL_UNITS; i++) after += v[i] * v[i];
    DERIVE("RNN.11b", relative(sqrtl(after), powl(c, (wide)T) * sqrtl(before)), algebra());
}

/* Expectations over a row of Wh that is ±s/√H with equal chances: all 2^H of them. */
static wide signs_expectation(const wide *a, const wide *b, size_t one, size_t two, wide s)
{
    wide sum = 0;
    size_t pattern, i;
    for (pattern = 0; pattern < (size_t)1 << CELL_UNITS; pattern++) {
        wide left = 0, right = 0;
        for (i = 0; i < CELL_UNITS; i++) {
            const wide W = (pattern >> i & 1 ? s : -s) / sqrtl(CELL_UNITS);
            left += i == one || one == CELL_UNITS ? W * a[i] : 0;
            right += i == two || two == CELL_UNITS ? W * b[i] : 0;
        }
        sum += left * right;
    }
    return sum / (wide)((size_t)1 << CELL_UNITS);
}

static void steps_random_weights(wide s, nrm_rng *rng)
{
    wide da[CELL_UNITS], h[CELL_UNITS], slopes[CELL_UNITS], terms = 0, squares = 0, size = 0;
    wide all, row_variance, r, g = (wide)uniform_between(rng, 0.1, 2);
    size_t j, l;
    for (j = 0; j < CELL_UNITS; j++) {
        da[j] = (wide)nrm_rng_normal(rng);
        h[j] = tanhl((wide)nrm_rng_normal(rng));
        slopes[j] = 1 - h[j] * h[j];
        squares += da[j] * da[j];
    }
    all = signs_expectation(da, da, CELL_UNITS, CELL_UNITS, s);
    for (j = 0; j < CELL_UNITS; j++)
        for (l = 0; l < CELL_UNITS; l++) {
            const wide term = signs_expectation(da, da, j, l, s);
            terms += term;
            size += fabsl(term);
        }
    DERIVE("RNN.12a", apart(all, terms, size), algebra());
    DERIVE("RNN.12b", relative(all, s * s / CELL_UNITS * squares), algebra());
    row_variance = signs_expectation(h, h, CELL_UNITS, CELL_UNITS, s);
    DERIVE("RNN.13b", relative(row_variance, s * s * mean_of_product(h, h, CELL_UNITS)), algebra());
    r = 1 / sqrtl(row_variance);
    DERIVE("RNN.13c",
           relative(s * (g * r) * sqrtl(mean_of_product(slopes, slopes, CELL_UNITS)),
                    g * sqrtl(mean_of_product(slopes, slopes, CELL_UNITS) /
                              mean_of_product(h, h, CELL_UNITS))),
           algebra());
}

/* The factor that is left for z ~ N(0, γ²): γ·√(E[f′²]/E[f²]), by the midpoint rule. */
static wide neutral_factor(int activation, wide g)
{
    wide slopes = 0, squares = 0;
    int i;
    for (i = -1200; i < 1200; i++) {
        const wide z = ((wide)i + 0.5L) / 100, density = expl(-z * z / 2);
        slopes += density * plain_f_slope(activation, g * z) * plain_f_slope(activation, g * z);
        squares += density * plain_f(activation, g * z) * plain_f(activation, g * z);
    }
    return g * sqrtl(slopes / squares);
}

static void steps_cell_numbers(void)
{
    ALSO_OF("RNN.11b", as_printed(500 * log10l(1.25L), 48.5L, 1), algebra());
    ALSO_OF("RNN.11b", as_printed(500 * log10l(0.75L), -62.5L, 1), algebra());
    ALSO_OF("RNN.13c", as_printed(neutral_factor(NRM_RELU, 1), 1, 10), algebra());
    ALSO_OF("RNN.13c", as_printed(neutral_factor(NRM_TANH, 1), 1.0853L, 4), algebra());
    ALSO_OF("RNN.13c", as_printed(neutral_factor(NRM_TANH, 0.1L), 1.00006L, 5), algebra());
}

/* norm(c·a), mean and variance of c·a taken anew; and what the gradient by the weights does when
   these are scaled, ε along with them: by the code. */
static void steps_cell_scale(wide c, nrm_rng *rng)
{
    static rnn_case one, other;
    const wide stretch = 1.1L * c;
    wide a[CELL_UNITS], mu = 0, v = 0, mean = 0, var = 0, worst = 0, largest = 0;
    size_t i;
    int rc;
    for (i = 0; i < CELL_UNITS; i++) {
        a[i] = (wide)nrm_rng_normal(rng) + 2;
        mu += a[i] / CELL_UNITS;
        mean += stretch * a[i] / CELL_UNITS;
    }
    for (i = 0; i < CELL_UNITS; i++) {
        v += (a[i] - mu) * (a[i] - mu) / CELL_UNITS;
        var += (stretch * a[i] - mean) * (stretch * a[i] - mean) / CELL_UNITS;
    }
    for (i = 0; i < CELL_UNITS; i++)
        DERIVE("RNN.13a",
               apart((stretch * a[i] - mean) / sqrtl(var),
                     stretch * (a[i] - mu) / sqrtl(stretch * stretch * v), 3),
               algebra());
    rnn_prepare(&one, NRM_LAYER_NORM, NRM_TRAIN, NRM_TANH, 5, 2, 2, 4, 1, 0.0625, rng);
    other = one;
    rnn_point(&other);
    for (i = 0; i < 16; i++) other.Wh[i] *= (nrm_real)c;
    for (i = 0; i < 8; i++) other.Wx[i] *= (nrm_real)c;
    other.rnn.eps *= (nrm_real)(c * c);
    rc = rnn_forward(&one);
    rc |= rnn_backward(&one);
    rc |= rnn_forward(&other);
    rc |= rnn_backward(&other);
    for (i = 0; i < 16; i++) {
        largest = worse(largest, fabsl((wide)one.dWh[i]));
        worst = worse(worst, fabsl((wide)other.dWh[i] - (wide)one.dWh[i] / c));
    }
    DERIVE("RNN.15b", worse(unless(rc == NRM_OK), apart(worst * c, 0, largest)), identity());
}

static void steps_recurrent(void)
{
    ln_cell p;
    nrm_rng rng = stream(302);
    size_t t;
    cell_setup(&p, 0, &rng);
    for (t = 0; t < CELL_STEPS; t++) steps_cell_step(&p, t, t % CELL_BATCH);
    steps_cell_weights(&p);
    cell_setup(&p, 1, &rng);
    for (t = 0; t < CELL_STEPS; t++) steps_cell_jacobian(&p, t, t % CELL_BATCH);
    steps_stretching(1.25L, 500, &rng);
    steps_stretching(0.75L, 7, &rng);
    for (t = 1; t < 5; t++) steps_random_weights((wide)t / 2, &rng);
    for (t = 0; t < 4; t++) /* powers of two: no rounding of the weights */
        steps_cell_scale(ldexpl(1, 2 * (int)t - 3), &rng);
    steps_cell_numbers();
}

/* The row that the chapter follows, by the code, and the other numbers of its text. */
static void steps_ln_numbers(void)
{
    static const double xhat[4] = {-1.3416, -0.4472, 0.4472, 1.3416};
    static const double dx[4] = {1.4311, -2.0572, -0.1789, 0.8050};
    static const double pulled[4] = {1.0733, -2.8622, -0.1789, 0.7155};
    const nrm_real x[4] = {1, 2, 3, 4}, gamma[4] = {1, 2, (nrm_real)0.5, 1};
    const nrm_real dy[4] = {2, -1, 0, 1};
    const wide eps = 1e-5L, r = 1 / sqrtl(1.25L + eps), dyx = -r / 4, dy_mean = 0.5L;
    nrm_real y[4], z[4];
    nrm_acc mean, rstd;
    wide sum = 0, off = 0, length = 0;
    size_t i;
    int rc = nrm_layernorm_forward(y, &mean, &rstd, x, NULL, NULL, NRM_EPS, 1, 4);
    rc |= nrm_layernorm_backward(z, NULL, NULL, dy, x, &mean, &rstd, gamma, 1, 4);
    ALSO_OF("LN.14d", unless(rc == NRM_OK), algebra());
    for (i = 0; i < 4; i++) {
        const wide wrong = r * (wide)gamma[i] * ((wide)dy[i] - dy_mean - (wide)y[i] * dyx);
        ALSO_OF("LN.7a", as_printed((wide)y[i], (wide)xhat[i], 4), algebra());
        ALSO_OF("LN.14d", as_printed((wide)z[i], (wide)dx[i], 4), algebra());
        ALSO_OF("LN.14d", as_printed(wrong, (wide)pulled[i], 4), algebra());
        sum += wrong;
        off += (wrong - (wide)z[i]) * (wrong - (wide)z[i]);
        length += (wide)z[i] * (wide)z[i];
    }
    ALSO_OF("LN.7a", as_printed(r, 0.8944L, 4), algebra());
    ALSO_OF("LN.7a", as_printed(1.25L * r * r, 0.999992L, 6), algebra());
    ALSO_OF("LN.14d", as_printed(sum, -1.2522L, 4), algebra());
    ALSO_OF("LN.14d", as_printed(sqrtl(off / length), 0.34L, 2), algebra());
    ALSO_OF("LN.7c", as_printed(sqrtl(3), 1.73L, 2), algebra());
    ALSO_OF("LN.7c", as_printed(sqrtl(767), 27.69L, 2), algebra());
    ALSO_OF("LN.16c", as_printed(eps / (1 + eps), 0.00001L, 5), algebra());
    ALSO_OF("LN.16c", as_printed(eps / (1e-2L + eps), 0.001L, 3), algebra());
    ALSO_OF("LN.16c", as_printed(eps / (1e-4L + eps), 0.091L, 3), algebra());
    ALSO_OF("LN.16c", as_printed(eps / (1e-6L + eps), 0.91L, 2), algebra());
    ALSO_OF("LN.13i", as_printed(1 / sqrtl(eps), 316, 0), algebra());
    ALSO_OF("LN.17b", as_printed(sqrtl(511.0L / 512), 0.999L, 3), algebra());
    ALSO_OF("LN.17b", as_printed(sqrtl(3.0L / 4), 0.866L, 3), algebra());
}

static void steps_layer_norm(void)
{
    static const size_t width[] = {2, 3, 4, 7, 32};
    static const double scale[] = {1e-3, 1, 1e3};
    nrm_rng rng = stream(301);
    ln_net k;
    size_t i, j;
    for (i = 0; i < LENGTH(width); i++)
        for (j = 0; j < LENGTH(scale); j++) {
            const size_t D = width[i];
            if (D == 32 && j != 1) continue;
            ln_setup(&k, LN_PLAIN, 3, D, scale[j], &rng);
            steps_ln_forward(&k, &rng);
            steps_ln_invariance(&k, &rng);
            if (D < 32 && j == 1) steps_ln_parameters(&k);
            ln_setup(&k, LN_PLAIN, 1, D, scale[j], &rng);
            steps_ln_roads(&k);
            steps_ln_input(&k);
            if (D < 32) steps_ln_projection(&k);
            steps_ln_weights(D, scale[j], &rng);
            if (D < 32 || j == 1) steps_ln_std(D, scale[j], &rng);
        }
    steps_ln_small(&rng);
    steps_ln_numbers();
    steps_recurrent();
}
#endif
