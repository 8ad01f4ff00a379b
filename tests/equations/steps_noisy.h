/* steps_noisy.h - the steps of docs/04_noisy_batch_norm.md, executed.

   Expectations are integrals: uniform and normal densities are integrated by quadrature rules that
   are exact for the polynomials in question, so that both sides agree to the last places. What is
   said of the generator is checked on its own draws as well. */
#ifndef STEPS_NOISY_H
#define STEPS_NOISY_H

#include "derive_tools.h"

typedef struct nb_draws { /* the constants of section 8, as random as their meaning allows */
    wide n_mu, n_sigma, r_mu, r_sigma;
} nb_draws;

typedef wide nb_function(const wide *at, const void *context);

/* ---- integrals ------------------------------------------------------------------------------- */

/* E[f] for `dims` independent variables, of which those below `uniform` are U(−1, 1) and the others
   N(0, 1): three points each, Gauss's, exact up to the fifth power of each. */
static wide nb_expect(nb_function *f, const void *context, size_t dims, size_t uniform)
{
    static const int points = 3;
    wide sum = 0;
    size_t total = 1, which, d;
    for (d = 0; d < dims; d++) total *= 3;
    for (which = 0; which < total; which++) {
        wide at[4] = {0, 0, 0, 0}, weight = 1;
        size_t code = which;
        for (d = 0; d < dims; d++) {
            const int p = (int)(code % 3) - 1; /* −1, 0, 1 */
            const wide edge = d < uniform ? sqrtl(0.6L) : sqrtl((wide)points);
            const wide outer = d < uniform ? 5.0L / 18 : 1.0L / 6;
            at[d] = (wide)p * edge;
            weight *= p == 0 ? 1 - 2 * outer : outer;
            code /= 3;
        }
        sum += weight * f(at, context);
    }
    return sum;
}

/* The draws out of U(−1, 1), U(−1, 1) and N(0, 1): NB.1 to NB.4. */
static wide nb_mu(const wide *at, const nb_draws *k)
{
    return k->n_mu * at[0];
}

static wide nb_offset(const wide *at, const void *context)
{
    const nb_draws *k = (const nb_draws *)context;
    return nb_mu(at, k) + k->r_mu * at[1];
}

static wide nb_sigma(const wide *at, const nb_draws *k)
{
    return 1 + (k->n_sigma - 1) * (at[0] + 1) / 2;
}

static wide nb_factor(const wide *at, const void *context) /* one uniform, then one normal */
{
    const nb_draws *k = (const nb_draws *)context;
    return nb_sigma(at, k) + k->r_sigma * at[1];
}

static wide nb_only_mu(const wide *at, const void *context)
{
    return nb_mu(at, (const nb_draws *)context);
}

static wide nb_mu_squared(const wide *at, const void *context)
{
    return nb_only_mu(at, context) * nb_only_mu(at, context);
}

static wide nb_only_sigma(const wide *at, const void *context)
{
    return nb_sigma(at, (const nb_draws *)context);
}

static wide nb_sigma_squared(const wide *at, const void *context)
{
    return nb_only_sigma(at, context) * nb_only_sigma(at, context);
}

static wide nb_offset_squared(const wide *at, const void *context)
{
    return nb_offset(at, context) * nb_offset(at, context);
}

static wide nb_factor_squared(const wide *at, const void *context)
{
    return nb_factor(at, context) * nb_factor(at, context);
}

/* E|a − b| of two independent draws a, b of U(−1, 1) that go through f, which grows: twice the
   integral of f(a) − f(b) over b < a. */
static wide nb_two_steps(nb_function *f, const nb_draws *k)
{
    static const int points = 3;
    wide sum = 0;
    int p, q;
    for (p = 0; p < points; p++)
        for (q = 0; q < points; q++) {
            const wide node[3] = {-sqrtl(0.6L), 0, sqrtl(0.6L)};
            const wide weight[3] = {5.0L / 9, 8.0L / 9, 5.0L / 9};
            const wide a = node[p], b = -1 + (node[q] + 1) * (a + 1) / 2; /* b in −1..a */
            const wide at_a[2] = {a, 0}, at_b[2] = {b, 0};
            sum += weight[p] * weight[q] * (a + 1) / 2 * (f(at_a, k) - f(at_b, k));
        }
    return 2 * sum / 4; /* the density of the pair is 1/4 */
}

/* ∫ f over low..high, by Gauss's three points. */
static wide nb_integral(nb_function *f, const nb_draws *k, wide low, wide high)
{
    const wide middle = (low + high) / 2, half = (high - low) / 2, edge = sqrtl(0.6L) * half;
    const wide left = middle - edge, right = middle + edge;
    return half * (5 * f(&left, k) + 8 * f(&middle, k) + 5 * f(&right, k)) / 9;
}

/* What the chapter integrates over t: the integrands of NB.1a to NB.2c, each as it stands there. */
static wide nb_in_1a(const wide *t, const void *context)
{
    return *t / (2 * ((const nb_draws *)context)->n_mu);
}

static wide nb_in_1b(const wide *t, const void *context)
{
    return *t * *t / (2 * ((const nb_draws *)context)->n_mu);
}

static wide nb_in_1c(const wide *t, const void *context)
{
    const wide length = 2 * ((const nb_draws *)context)->n_mu;
    return *t * 2 * (length - *t) / (length * length);
}

static wide nb_in_2a(const wide *t, const void *context)
{
    return *t / (((const nb_draws *)context)->n_sigma - 1);
}

static wide nb_in_2c(const wide *q, const void *context) /* after the integration over t */
{
    (void)context;
    return 2 * *q * *q * *q / 3 - *q * *q + 1.0L / 3;
}

static void steps_nb_integrals(const nb_draws *k)
{
    const wide n = k->n_sigma, width = n - 1, half = k->n_mu;
    const wide twice = 6 * nb_integral(nb_in_2c, k, 1, n);
    ALSO_OF("NB.1a", apart(nb_integral(nb_in_1a, k, -half, half), 0, half), algebra());
    ALSO_OF("NB.1b", relative(nb_integral(nb_in_1b, k, -half, half), half * half / 3), algebra());
    ALSO_OF("NB.1c", relative(nb_integral(nb_in_1c, k, 0, 2 * half), 2 * half / 3), algebra());
    ALSO_OF("NB.2a", relative(nb_integral(nb_in_2a, k, 1, n), (1 + n) / 2), algebra());
    ALSO_OF("NB.2c", relative(twice, width * width * width * (n + 1)), algebra());
    ALSO_OF("NB.2c", relative(twice / 3 / (width * width), (n * n - 1) / 3), algebra());
}

/* ---- moments of the generator ---------------------------------------------------------------- */

static void steps_nb_moments(const nb_draws *k)
{
    const wide width = k->n_sigma - 1, n = k->n_sigma;
    const wide mean_s = nb_expect(nb_factor, k, 2, 1), s2 = nb_expect(nb_factor_squared, k, 2, 1);
    const wide m2 = nb_expect(nb_offset_squared, k, 2, 2), mean_m = nb_expect(nb_offset, k, 2, 2);
    const wide mean_sigma = nb_expect(nb_only_sigma, k, 1, 1);
    const wide var_sigma = nb_expect(nb_sigma_squared, k, 1, 1) - mean_sigma * mean_sigma;
    nb_draws fixed = *k;
    DERIVE("NB.1a", apart(nb_expect(nb_only_mu, k, 1, 1), 0, k->n_mu), algebra());
    DERIVE("NB.1b", relative(nb_expect(nb_mu_squared, k, 1, 1), k->n_mu * k->n_mu / 3), algebra());
    DERIVE("NB.1c", relative(nb_two_steps(nb_only_mu, k), 2 * k->n_mu / 3), algebra());
    DERIVE("NB.2a", relative(mean_sigma, (n * n - 1) / (2 * width)), algebra());
    ALSO_OF("NB.2a", relative(mean_sigma, (1 + n) / 2), algebra());
    DERIVE("NB.2b", relative(var_sigma, width * width / 12), algebra());
    DERIVE("NB.2c", relative(nb_two_steps(nb_sigma_squared, k), (n * n - 1) / 3), algebra());
    fixed.n_mu = 0; /* offsets around a centre of 0 */
    DERIVE("NB.3a", relative(nb_expect(nb_offset_squared, &fixed, 2, 2), k->r_mu * k->r_mu / 3),
           algebra());
    DERIVE("NB.6a", worse(relative(mean_s, mean_sigma), apart(mean_m, 0, k->n_mu)), algebra());
    DERIVE("NB.6e", relative(s2 - mean_s * mean_s, width * width / 12 + k->r_sigma * k->r_sigma),
           algebra());
    DERIVE("NB.6f", relative(m2, (k->n_mu * k->n_mu + k->r_mu * k->r_mu) / 3), algebra());
    DERIVE("NB.6g",
           relative(s2, (1 + n) * (1 + n) / 4 + width * width / 12 + k->r_sigma * k->r_sigma),
           algebra());
}

/* The law of total variance, on a table: b takes one of four values with given chances, and for
   each of them a one of three. */
static void steps_nb_total_variance(nrm_rng *rng)
{
    wide chance[4][3], a[4][3], part[4], centre[4], spread, all = 0, mean = 0, square = 0,
                                                            within = 0, between = 0, inner = 0;
    size_t b, i;
    for (b = 0; b < 4; b++)
        for (i = 0; i < 3; i++) {
            chance[b][i] = (wide)uniform_between(rng, 0.1, 1);
            a[b][i] = 2 + (wide)nrm_rng_normal(rng);
            all += chance[b][i];
        }
    for (b = 0; b < 4; b++) {
        wide of_b = 0, mean_b = 0, var_b = 0;
        for (i = 0; i < 3; i++) of_b += chance[b][i] / all;
        for (i = 0; i < 3; i++) mean_b += chance[b][i] / all / of_b * a[b][i];
        for (i = 0; i < 3; i++)
            var_b += chance[b][i] / all / of_b * (a[b][i] - mean_b) * (a[b][i] - mean_b);
        for (i = 0; i < 3; i++) {
            mean += chance[b][i] / all * a[b][i];
            square += chance[b][i] / all * a[b][i] * a[b][i];
        }
        within += of_b * var_b;
        between += of_b * mean_b * mean_b;
        inner += of_b * mean_b;
        part[b] = of_b;
        centre[b] = mean_b;
    }
    all = square - mean * mean;
    for (b = 0, spread = 0; b < 4; b++) spread += part[b] * (centre[b] - mean) * (centre[b] - mean);
    DERIVE("NB.6b", relative(square, within + between), algebra());
    DERIVE("NB.6c", relative(all, within + between - inner * inner), algebra());
    DERIVE("NB.6d", relative(all, within + spread), algebra());
}

/* ---- z --------------------------------------------------------------------------------------- */

typedef struct nb_value { /* what becomes of a y: centres given, or drawn */
    const nb_draws *k;
    wide y, mu, sigma;
    int power;
} nb_value;

/* z for two uniforms (of μ, m) and (σ), and a normal: at[0], at[1], at[2] and at[3]. */
static wide nb_z_power(const wide *at, const void *context)
{
    const nb_value *v = (const nb_value *)context;
    const wide of_s[2] = {at[2], at[3]};
    const wide z = nb_factor(of_s, v->k) * v->y + nb_offset(at, v->k);
    return v->power == 2 ? z * z : z;
}

/* The same for the centres of one step: at[0] makes m, at[1] makes s. */
static wide nb_z_of_step(const wide *at, const void *context)
{
    const nb_value *v = (const nb_value *)context;
    const wide z = (v->sigma + v->k->r_sigma * at[1]) * v->y + v->mu + v->k->r_mu * at[0];
    return v->power == 2 ? z * z : z;
}

static void steps_nb_output(const nb_draws *k, nrm_rng *rng)
{
    enum { VALUES = 7 };
    const wide n = k->n_sigma, mean_s = (1 + n) / 2;
    const wide var_s = (n - 1) * (n - 1) / 12 + k->r_sigma * k->r_sigma;
    const wide var_m = (k->n_mu * k->n_mu + k->r_mu * k->r_mu) / 3;
    wide y[VALUES], mean_y = 0, square_y = 0, mean = 0, square = 0, b, g2;
    nb_value v;
    size_t i;
    v.k = k;
    v.mu = k->n_mu * (wide)uniform_between(rng, -1, 1);
    v.sigma = 1 + (n - 1) * (wide)uniform_between(rng, 0, 1);
    for (i = 0; i < VALUES; i++) {
        y[i] = 0.4L + 1.3L * (wide)nrm_rng_normal(rng);
        mean_y += y[i] / VALUES;
        square_y += y[i] * y[i] / VALUES;
    }
    for (i = 0; i < VALUES; i++) {
        wide first, second;
        v.y = y[i];
        v.power = 1;
        first = nb_expect(nb_z_power, &v, 4, 3);
        mean += nb_expect(nb_z_of_step, &v, 2, 1) / VALUES;
        v.power = 2;
        second = nb_expect(nb_z_power, &v, 4, 3);
        square += nb_expect(nb_z_of_step, &v, 2, 1) / VALUES;
        DERIVE("NB.5a", apart(first, mean_s * y[i], 1 + fabsl(y[i])), algebra());
        DERIVE("NB.5b", apart(second - first * first, var_s * y[i] * y[i] + var_m, 1 + second),
               algebra());
        DERIVE("NB.6h", apart(second, (var_s + mean_s * mean_s) * y[i] * y[i] + var_m, 1 + second),
               algebra());
    }
    DERIVE("NB.5c", apart(mean, v.sigma * mean_y + v.mu, 1), algebra());
    b = mean_y;
    g2 = square_y - mean_y * mean_y; /* γ² where y is γ·x̂ + β, and ε nothing */
    DERIVE("NB.5d",
           apart(square - mean * mean,
                 v.sigma * v.sigma * g2 + k->r_sigma * k->r_sigma * (g2 + b * b) +
                     k->r_mu * k->r_mu / 3,
                 1 + square),
           algebra());
}

/* Offset and factor that are the same for a whole channel are gone after a batch norm. */
static void steps_nb_before(nrm_rng *rng)
{
    enum { EXAMPLES = 7 };
    nrm_real x[EXAMPLES], moved[EXAMPLES], y[EXAMPLES], z[EXAMPLES];
    nrm_acc mean[1], rstd[1];
    const nrm_real sigma = (nrm_real)1.25, mu = (nrm_real)-0.375, eps = (nrm_real)0.0625;
    size_t i;
    int rc;
    fill_real(x, EXAMPLES, 0.5, 1, rng);
    for (i = 0; i < EXAMPLES; i++) moved[i] = sigma * x[i] + mu;
    rc = nrm_batchnorm_forward(y, mean, rstd, NULL, x, NULL, NULL, NRM_TRAIN, eps, EXAMPLES, 1, 1);
    rc |= nrm_batchnorm_forward(z, mean, rstd, NULL, moved, NULL, NULL, NRM_TRAIN,
                                sigma * sigma * eps, EXAMPLES, 1, 1);
    for (i = 0; i < EXAMPLES; i++)
        DERIVE("NB.5e", worse(unless(rc == NRM_OK), apart((wide)z[i], (wide)y[i], 1)), identity());
}

/* ---- backward -------------------------------------------------------------------------------- */

enum { NB_MOST = 32 };

typedef struct nb_net { /* one channel: batch norm, the draws of one step, L = ∑ w·z + ½·q·z² */
    size_t M;
    double x[NB_MOST], s[NB_MOST], m[NB_MOST], w[NB_MOST], q[NB_MOST], y_push[NB_MOST];
    double gamma, beta, eps;
    wide xhat[NB_MOST], y[NB_MOST], z[NB_MOST], dz[NB_MOST], r;
    size_t at; /* M: the loss; else z of at */
} nb_net;

static wide nb_net_value(void *context)
{
    nb_net *k = (nb_net *)context;
    wide mu = 0, v = 0, loss = 0;
    size_t i;
    for (i = 0; i < k->M; i++) mu += (wide)k->x[i] / (wide)k->M;
    for (i = 0; i < k->M; i++) v += ((wide)k->x[i] - mu) * ((wide)k->x[i] - mu) / (wide)k->M;
    k->r = 1 / sqrtl(v + (wide)k->eps);
    for (i = 0; i < k->M; i++) {
        k->xhat[i] = ((wide)k->x[i] - mu) * k->r;
        k->y[i] = (wide)k->gamma * k->xhat[i] + (wide)k->beta + (wide)k->y_push[i];
        k->z[i] = (wide)k->s[i] * k->y[i] + (wide)k->m[i];
        k->dz[i] = (wide)k->w[i] + (wide)k->q[i] * k->z[i];
        loss += (wide)k->w[i] * k->z[i] + (wide)k->q[i] * k->z[i] * k->z[i] / 2;
    }
    return k->at < k->M ? k->z[k->at] : loss;
}

static wide nb_slope(nb_net *k, size_t at, double *by)
{
    wide rise;
    k->at = at;
    rise = slope(nb_net_value, k, by, 1.0 / 4096);
    (void)nb_net_value(k);
    return rise;
}

static void steps_nb_backward(size_t M, nrm_rng *rng)
{
    nb_net k;
    wide dy[NB_MOST], mean = 0, along = 0, sum = 0, size = 0, dgamma = 0, dbeta = 0;
    size_t i, j;
    memset(&k, 0, sizeof k);
    k.M = M;
    k.gamma = 1.4;
    k.beta = -0.3;
    k.eps = 0.05;
    fill(k.x, M, 0.5, 1.2, rng);
    fill(k.s, M, 1.1, 0.2, rng);
    fill(k.m, M, 0.2, 0.1, rng);
    fill(k.w, M, 0.3, 1, rng);
    fill(k.q, M, 0, 0.3, rng);
    (void)nb_net_value(&k);
    for (i = 0; i < M; i++) {
        for (j = 0; j < M; j++)
            DERIVE("NB.7a", apart(nb_slope(&k, j, k.y_push + i), i == j ? (wide)k.s[i] : 0, 1),
                   acc_difference());
        dy[i] = (wide)k.s[i] * k.dz[i];
        mean += dy[i] / (wide)M;
        along += dy[i] * k.xhat[i] / (wide)M;
        dbeta += (wide)k.s[i] * k.dz[i];
        dgamma += (wide)k.s[i] * k.dz[i] * k.xhat[i];
        size += fabsl(dy[i]);
    }
    DERIVE("NB.7b", apart(nb_slope(&k, M, &k.beta), dbeta, size), acc_difference());
    DERIVE("NB.7c", apart(nb_slope(&k, M, &k.gamma), dgamma, size), acc_difference());
    for (i = 0; i < M; i++) {
        const wide dx = nb_slope(&k, M, k.x + i);
        const wide right = (wide)k.gamma * k.r * (dy[i] - mean - k.xhat[i] * along);
        DERIVE("NB.7d", apart(dx, right, k.r * size), acc_difference());
        sum += dx;
    }
    DERIVE("NB.7e", apart(sum, 0, k.r * size), acc_difference());
}

typedef struct nb_pair {
    const nb_draws *k;
    int differ;
} nb_pair;

/* (s′ − s)² or s² of two draws that share nothing: two uniforms, two normals. */
static wide nb_redrawn(const wide *at, const void *context)
{
    const nb_pair *p = (const nb_pair *)context;
    const wide one[2] = {at[0], at[2]}, two[2] = {at[1], at[3]};
    const wide s = nb_factor(one, p->k), other = p->differ ? nb_factor(two, p->k) : 0;
    return (other - s) * (other - s);
}

static void steps_nb_redrawn(const nb_draws *k)
{
    const wide n = k->n_sigma;
    const wide var_s = (n - 1) * (n - 1) / 12 + k->r_sigma * k->r_sigma;
    const wide s2 = var_s + (1 + n) * (1 + n) / 4;
    nb_pair p;
    wide error;
    p.k = k;
    p.differ = 1;
    error = nb_expect(nb_redrawn, &p, 4, 2);
    p.differ = 0;
    error /= nb_expect(nb_redrawn, &p, 4, 2);
    DERIVE("NB.7f", relative(error, 2 * var_s / s2), algebra());
}

/* ---- the generator itself -------------------------------------------------------------------- */

/* Draws of two steps: means over many units, in standard errors of theirs. */
static void steps_nb_sampled(nrm_rng *rng)
{
    enum { UNITS = 4000, EACH = 2 };
    static nrm_real x[UNITS * EACH], ones[UNITS]; /* the norm's output is β = 1 */
    static nrm_real z[2][UNITS * EACH], scale[2][UNITS * EACH];
    static nrm_acc mean[UNITS], rstd[UNITS];
    const nrm_noise noise = nrm_noise_paper();
    nrm_noise centres = noise;
    wide s2 = 0, s4 = 0, m2 = 0, m4 = 0, dmu = 0, dmu2 = 0, ds = 0, ds2 = 0;
    const wide n = UNITS;
    size_t i, step;
    centres.mean_jitter = centres.scale_jitter = 0;
    for (i = 0; i < UNITS; i++) ones[i] = 1;
    for (step = 0; step < 2; step++)
        (void)nrm_noisy_batchnorm_forward(z[step], scale[step], mean, rstd, NULL, x, NULL, ones,
                                          &centres, rng, NRM_TRAIN, NRM_EPS, EACH, UNITS, 1);
    for (i = 0; i < UNITS; i++) {
        const wide one = (wide)scale[0][i], two = (wide)scale[1][i];
        const wide change = fabsl((wide)z[0][i] - one - ((wide)z[1][i] - two));
        const wide stretch = fabsl(one * one - two * two);
        dmu += change / n;
        dmu2 += change * change / n;
        ds += stretch / n;
        ds2 += stretch * stretch / n;
    }
    ALSO_OF("NB.1c", fabsl(dmu - 1.0L / 3) / sqrtl((dmu2 - dmu * dmu) / n), statistics());
    ALSO_OF("NB.2c", fabsl(ds - 0.1875L) / sqrtl((ds2 - ds * ds) / n), statistics());
    (void)nrm_noisy_batchnorm_forward(z[0], scale[0], mean, rstd, NULL, x, NULL, ones, &noise, rng,
                                      NRM_TRAIN, NRM_EPS, EACH, UNITS, 1);
    for (i = 0; i < UNITS; i++) {
        const wide s = (wide)scale[0][i], m = (wide)z[0][i] - s;
        s2 += s * s / n;
        s4 += s * s * s * s / n;
        m2 += m * m / n;
        m4 += m * m * m * m / n;
    }
    ALSO_OF("NB.6g", fabsl(s2 - 1.2808333L) / sqrtl((s4 - s2 * s2) / n), statistics());
    ALSO_OF("NB.6f", fabsl(m2 - 0.0866667L) / sqrtl((m4 - m2 * m2) / n), statistics());
}

static wide nb_as_printed(wide value, wide printed, int places)
{
    return unless(fabsl(value - printed) <= 0.5000001L * powl(10, (wide)-places));
}

/* The numbers of the text, from the paper's constants. */
static void steps_nb_numbers(void)
{
    const wide var_s = 0.0625L / 12 + 0.01L, s2 = var_s + 1.265625L, var_m = 0.26L / 3;
    ALSO_OF("NB.1c", nb_as_printed(1.0L / 3, 0.333L, 3), algebra());
    ALSO_OF("NB.2b", nb_as_printed(0.0625L / 12, 0.0052L, 4), algebra());
    ALSO_OF("NB.2c", nb_as_printed((1.5625L - 1) / 3, 0.1875L, 4), algebra());
    ALSO_OF("NB.3a", nb_as_printed(0.01L / 3, 0.0033L, 4), algebra());
    ALSO_OF("NB.6e", nb_as_printed(var_s, 0.0152L, 4), algebra());
    ALSO_OF("NB.6e", nb_as_printed(sqrtl(var_s), 0.123L, 3), algebra());
    ALSO_OF("NB.6f", nb_as_printed(var_m, 0.0867L, 4), algebra());
    ALSO_OF("NB.6f", nb_as_printed(sqrtl(var_m), 0.294L, 3), algebra());
    ALSO_OF("NB.6g", nb_as_printed(s2, 1.2808L, 4), algebra());
    ALSO_OF("NB.6g", nb_as_printed(1.265625L + 0.0625L / 12 + 0.1L, 1.371L, 3), algebra());
    ALSO_OF("NB.6g", nb_as_printed(erfcl(sqrtl(5)) / 2, 0.0008L, 4), algebra());
    ALSO_OF("NB.6h", nb_as_printed(s2 + var_m, 1.3675L, 4), algebra());
    ALSO_OF("NB.6h", nb_as_printed(sqrtl(s2 + var_m), 1.169L, 3), algebra());
    ALSO_OF("NB.5d", nb_as_printed(1.01L + 0.01L / 3, 1.0133L, 4), algebra());
    ALSO_OF("NB.5d", nb_as_printed(1.5625L + 0.01L + 0.01L / 3, 1.5758L, 4), algebra());
    ALSO_OF("NB.7f", nb_as_printed(sqrtl(2 * var_s / s2), 0.154L, 3), algebra());
}

static void steps_noisy(void)
{
    static const size_t size[] = {2, 3, 4, 7, 32};
    nrm_rng rng = stream(303);
    nb_draws k;
    size_t i;
    for (i = 0; i < LENGTH(size); i++) {
        k.n_mu = (wide)uniform_between(&rng, 0.1, 2);
        k.n_sigma = (wide)uniform_between(&rng, 1.1, 3);
        k.r_mu = (wide)uniform_between(&rng, 0.05, 1);
        k.r_sigma = (wide)uniform_between(&rng, 0.05, 1);
        steps_nb_moments(&k);
        steps_nb_integrals(&k);
        steps_nb_total_variance(&rng);
        steps_nb_output(&k, &rng);
        steps_nb_backward(size[i], &rng);
        steps_nb_redrawn(&k);
    }
    steps_nb_before(&rng);
    steps_nb_sampled(&rng);
    steps_nb_numbers();
}
#endif
