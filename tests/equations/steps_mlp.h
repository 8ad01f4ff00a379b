/* steps_mlp.h - the steps of docs/06_network.md, executed.

   A two_layers is the network of section 3 of that page, as the formulas have it: each stage can be
   nudged, and the loss computed from there on. Expectations are means over all sign patterns of the
   weights, or of the gradients, so that they hold to rounding. */
#ifndef STEPS_MLP_H
#define STEPS_MLP_H

#include "derive_tools.h"

enum { MLP_ROWS = 8, MLP_IN = 3, MLP_HIDDEN = 4, MLP_CLASSES = 3, MLP_MOST = 64 };

/* ---- small things ---------------------------------------------------------------------------- */

static wide mlp_relu(wide a)
{
    return a > 0 ? a : 0;
}

/* Is `value` what the page prints, rounded to that many digits after the point? */
static wide mlp_prints(wide value, double printed, int digits)
{
    return unless(fabsl(value - (wide)printed) <= 0.501L * powl(10, -(wide)digits));
}

/* ---- one hidden layer with batch norm -------------------------------------------------------- */

enum mlp_stage { MLP_FROM_X, MLP_FROM_Z, MLP_FROM_Y, MLP_FROM_H, MLP_FROM_O };

typedef struct two_layers {
    size_t N;
    int label[MLP_ROWS], from;
    double x[MLP_ROWS][MLP_IN], W[MLP_IN][MLP_HIDDEN], gamma[MLP_HIDDEN], beta[MLP_HIDDEN];
    double V[MLP_HIDDEN][MLP_CLASSES], b[MLP_CLASSES];
    double z[MLP_ROWS][MLP_HIDDEN], y[MLP_ROWS][MLP_HIDDEN], h[MLP_ROWS][MLP_HIDDEN];
    double o[MLP_ROWS][MLP_CLASSES];
    wide eps, p[MLP_ROWS][MLP_CLASSES], zhat[MLP_ROWS][MLP_HIDDEN], r[MLP_HIDDEN];
} two_layers;

typedef struct mlp_values { /* of a forward pass, from some stage on */
    wide z[MLP_ROWS][MLP_HIDDEN], y[MLP_ROWS][MLP_HIDDEN], h[MLP_ROWS][MLP_HIDDEN];
    wide o[MLP_ROWS][MLP_CLASSES];
} mlp_values;

static void mlp_norm_column(two_layers *k, mlp_values *v, size_t j)
{
    wide column[MLP_ROWS], mean, sum = 0;
    size_t n;
    for (n = 0; n < k->N; n++) column[n] = v->z[n][j];
    mean = mean_of(column, k->N);
    for (n = 0; n < k->N; n++) sum += (column[n] - mean) * (column[n] - mean);
    k->r[j] = 1 / sqrtl(sum / (wide)k->N + k->eps);
    for (n = 0; n < k->N; n++) {
        k->zhat[n][j] = (column[n] - mean) * k->r[j];
        v->y[n][j] = (wide)k->gamma[j] * k->zhat[n][j] + (wide)k->beta[j];
    }
}

static wide mlp_evaluate(two_layers *k, mlp_values *v)
{
    wide loss = 0;
    size_t n, i, j, c;
    for (n = 0; n < k->N; n++)
        for (j = 0; j < MLP_HIDDEN; j++) {
            v->z[n][j] = k->from >= MLP_FROM_Z ? (wide)k->z[n][j] : 0;
            for (i = 0; i < MLP_IN && k->from < MLP_FROM_Z; i++)
                v->z[n][j] += (wide)k->x[n][i] * (wide)k->W[i][j];
        }
    for (j = 0; j < MLP_HIDDEN; j++) mlp_norm_column(k, v, j);
    for (n = 0; n < k->N; n++) {
        wide Z = 0;
        for (j = 0; j < MLP_HIDDEN; j++) {
            if (k->from >= MLP_FROM_Y) v->y[n][j] = (wide)k->y[n][j];
            v->h[n][j] = k->from >= MLP_FROM_H ? (wide)k->h[n][j] : mlp_relu(v->y[n][j]);
        }
        for (c = 0; c < MLP_CLASSES; c++) {
            v->o[n][c] = k->from >= MLP_FROM_O ? (wide)k->o[n][c] : (wide)k->b[c];
            for (j = 0; j < MLP_HIDDEN && k->from < MLP_FROM_O; j++)
                v->o[n][c] += v->h[n][j] * (wide)k->V[j][c];
            Z += expl(v->o[n][c]);
        }
        for (c = 0; c < MLP_CLASSES; c++) k->p[n][c] = expl(v->o[n][c]) / Z;
        loss -= logl(k->p[n][k->label[n]]) / (wide)k->N;
    }
    return loss;
}

static wide mlp_loss_of(void *context)
{
    mlp_values v;
    return mlp_evaluate((two_layers *)context, &v);
}

/* What the header's network shows on its way back. */
typedef struct mlp_seen {
    wide dh[MLP_ROWS][MLP_HIDDEN], dy[MLP_ROWS][MLP_HIDDEN], dz[MLP_ROWS][MLP_HIDDEN];
    wide d_out[MLP_ROWS][MLP_CLASSES];
} mlp_seen;

static void mlp_look(void *context, const nrm_mlp_event *event)
{
    mlp_seen *seen = (mlp_seen *)context;
    size_t n, j;
    if (!event->gradient) return;
    for (n = 0; n < event->rows; n++)
        for (j = 0; j < event->cols; j++) {
            const wide d = (wide)event->data[n * event->cols + j];
            if (event->layer == 1)
                seen->d_out[n][j] = d;
            else if (event->place == NRM_AT_ACTIVATION)
                seen->dh[n][j] = d;
            else if (event->place == NRM_AT_NORM)
                seen->dy[n][j] = d;
            else
                seen->dz[n][j] = d;
        }
}

enum { MLP_BLOCK = 1 << 15 };

static nrm_mlp *mlp_header_net(unsigned char *block, const two_layers *k, nrm_real *x)
{
    nrm_mlp_layer layer[2];
    nrm_mlp_spec spec = nrm_mlp_defaults();
    nrm_mlp *net = NULL;
    size_t n, i, j, c;
    memset(layer, 0, sizeof layer);
    layer[0].width = MLP_HIDDEN;
    layer[0].norm = NRM_BATCH_NORM;
    layer[0].activation = NRM_RELU;
    layer[1].width = MLP_CLASSES;
    layer[1].bias = 1;
    spec.inputs = MLP_IN;
    spec.layers = 2;
    spec.layer = layer;
    spec.max_batch = MLP_ROWS;
    spec.eps = (nrm_real)k->eps;
    if (nrm_mlp_init(&net, block, MLP_BLOCK, &spec) != NRM_OK) return NULL;
    for (i = 0; i < MLP_IN; i++)
        for (j = 0; j < MLP_HIDDEN; j++) net->state[0].W[i * MLP_HIDDEN + j] = (nrm_real)k->W[i][j];
    for (j = 0; j < MLP_HIDDEN; j++) {
        net->state[0].gamma[j] = (nrm_real)k->gamma[j];
        net->state[0].beta[j] = (nrm_real)k->beta[j];
        for (c = 0; c < MLP_CLASSES; c++)
            net->state[1].W[j * MLP_CLASSES + c] = (nrm_real)k->V[j][c];
    }
    for (c = 0; c < MLP_CLASSES; c++) net->state[1].b[c] = (nrm_real)k->b[c];
    for (n = 0; n < k->N; n++)
        for (i = 0; i < MLP_IN; i++) x[n * MLP_IN + i] = (nrm_real)k->x[n][i];
    return net;
}

/* The loss by *at, which is an array of the given stage; k is left as it was. */
static wide mlp_slope(two_layers *k, int from, double *at)
{
    const two_layers kept = *k;
    wide found;
    k->from = from;
    found = slope(mlp_loss_of, k, at, 1.0 / 1024);
    *k = kept;
    return found;
}

/* Formula against difference, and what the header has against the formula. */
static wide mlp_off(wide formula, wide found)
{
    return apart(formula, found, 1 + fabsl(formula));
}

static void mlp_output_steps(two_layers *k, const nrm_mlp *net, const mlp_values *v,
                             wide d[MLP_ROWS][MLP_CLASSES], const mlp_seen *seen)
{
    size_t n, j, c;
    for (n = 0; n < k->N; n++)
        for (c = 0; c < MLP_CLASSES; c++) {
            d[n][c] = (k->p[n][c] - ((size_t)k->label[n] == c)) / (wide)k->N;
            DERIVE("MLP.2a", mlp_off(d[n][c], mlp_slope(k, MLP_FROM_O, &k->o[n][c])),
                   acc_difference());
            ALSO(mlp_off(d[n][c], seen->d_out[n][c]), identity());
        }
    for (c = 0; c < MLP_CLASSES; c++) {
        wide db = 0;
        for (n = 0; n < k->N; n++) db += d[n][c];
        DERIVE("MLP.2b", mlp_off(db, mlp_slope(k, MLP_FROM_X, &k->b[c])), acc_difference());
        ALSO(mlp_off(db, (wide)net->state[1].db[c]), identity());
        for (j = 0; j < MLP_HIDDEN; j++) {
            wide dV = 0;
            for (n = 0; n < k->N; n++) dV += v->h[n][j] * d[n][c];
            DERIVE("MLP.2c", mlp_off(dV, mlp_slope(k, MLP_FROM_X, &k->V[j][c])), acc_difference());
            ALSO(mlp_off(dV, (wide)net->state[1].dW[j * MLP_CLASSES + c]), identity());
        }
    }
}

static void mlp_hidden_steps(two_layers *k, const nrm_mlp *net, const mlp_values *v,
                             wide d[MLP_ROWS][MLP_CLASSES], const mlp_seen *seen)
{
    wide dy[MLP_ROWS], dz[MLP_ROWS][MLP_HIDDEN], product[MLP_ROWS];
    size_t n, i, j, c;
    for (j = 0; j < MLP_HIDDEN; j++) {
        wide dbeta = 0, dgamma = 0;
        for (n = 0; n < k->N; n++) {
            wide dh = 0;
            for (c = 0; c < MLP_CLASSES; c++) dh += d[n][c] * (wide)k->V[j][c];
            dy[n] = v->y[n][j] > 0 ? dh : 0;
            DERIVE("MLP.2d", mlp_off(dh, mlp_slope(k, MLP_FROM_H, &k->h[n][j])), acc_difference());
            ALSO(mlp_off(dh, seen->dh[n][j]), identity());
            DERIVE("MLP.2e", mlp_off(dy[n], mlp_slope(k, MLP_FROM_Y, &k->y[n][j])),
                   acc_difference());
            ALSO(mlp_off(dy[n], seen->dy[n][j]), identity());
            dbeta += dy[n];
            product[n] = dy[n] * k->zhat[n][j];
            dgamma += product[n];
        }
        DERIVE("MLP.2f", mlp_off(dbeta, mlp_slope(k, MLP_FROM_X, &k->beta[j])), acc_difference());
        ALSO(mlp_off(dbeta, (wide)net->state[0].dbeta[j]), identity());
        DERIVE("MLP.2g", mlp_off(dgamma, mlp_slope(k, MLP_FROM_X, &k->gamma[j])), acc_difference());
        ALSO(mlp_off(dgamma, (wide)net->state[0].dgamma[j]), identity());
        for (n = 0; n < k->N; n++)
            dz[n][j] = (wide)k->gamma[j] * k->r[j] *
                       (dy[n] - mean_of(dy, k->N) - k->zhat[n][j] * mean_of(product, k->N));
    }
    for (n = 0; n < k->N; n++)
        for (j = 0; j < MLP_HIDDEN; j++) {
            DERIVE("MLP.2h", mlp_off(dz[n][j], mlp_slope(k, MLP_FROM_Z, &k->z[n][j])),
                   acc_difference());
            ALSO(mlp_off(dz[n][j], seen->dz[n][j]), identity());
        }
    for (i = 0; i < MLP_IN; i++) {
        for (j = 0; j < MLP_HIDDEN; j++) {
            wide dW = 0;
            for (n = 0; n < k->N; n++) dW += (wide)k->x[n][i] * dz[n][j];
            DERIVE("MLP.2i", mlp_off(dW, mlp_slope(k, MLP_FROM_X, &k->W[i][j])), acc_difference());
            ALSO(mlp_off(dW, (wide)net->state[0].dW[i * MLP_HIDDEN + j]), identity());
        }
        for (n = 0; n < k->N; n++) {
            wide dx = 0;
            for (j = 0; j < MLP_HIDDEN; j++) dx += dz[n][j] * (wide)k->W[i][j];
            DERIVE("MLP.2j", mlp_off(dx, mlp_slope(k, MLP_FROM_X, &k->x[n][i])), acc_difference());
        }
    }
}

/* Is every input of a ReLU further from 0 than a nudge can move it? */
static int mlp_smooth(const mlp_values *v, size_t N)
{
    size_t n, j;
    for (n = 0; n < N; n++)
        for (j = 0; j < MLP_HIDDEN; j++)
            if (fabsl(v->y[n][j]) < 0.03L) return 0;
    return 1;
}

static void mlp_network_case(size_t N, nrm_rng *rng)
{
    static unsigned char block[MLP_BLOCK];
    nrm_real x[MLP_ROWS * MLP_IN];
    wide d[MLP_ROWS][MLP_CLASSES];
    nrm_mlp *net;
    nrm_acc loss = 0;
    mlp_values v;
    mlp_seen seen;
    two_layers k;
    wide total;
    size_t n, j, c;
    memset(&k, 0, sizeof k);
    memset(&seen, 0, sizeof seen);
    k.N = N;
    k.eps = (wide)(nrm_real)0.1;
    do {
        fill(k.x[0], MLP_ROWS * MLP_IN, 0.7, 1, rng);
        fill(k.W[0], MLP_IN * MLP_HIDDEN, 0.1, 1, rng);
        fill(k.V[0], MLP_HIDDEN * MLP_CLASSES, -0.1, 1, rng);
        fill(k.gamma, MLP_HIDDEN, 1.5, 0.5, rng);
        fill(k.beta, MLP_HIDDEN, 0.3, 0.5, rng);
        fill(k.b, MLP_CLASSES, 0.2, 1, rng);
        for (n = 0; n < N; n++) k.label[n] = (int)nrm_rng_below(rng, MLP_CLASSES);
        total = mlp_evaluate(&k, &v);
    } while (!mlp_smooth(&v, N));
    for (n = 0; n < N; n++) {
        for (j = 0; j < MLP_HIDDEN; j++) {
            k.z[n][j] = (double)v.z[n][j];
            k.y[n][j] = (double)v.y[n][j];
            k.h[n][j] = (double)v.h[n][j];
        }
        for (c = 0; c < MLP_CLASSES; c++) k.o[n][c] = (double)v.o[n][c];
    }
    net = mlp_header_net(block, &k, x);
    if (net != NULL) {
        net->probe = mlp_look;
        net->probe_context = &seen;
    }
    if (net == NULL || nrm_mlp_gradient(net, &loss, x, k.label, N, NRM_TRAIN) != NRM_OK) {
        ALSO_OF("MLP.2a", (wide)HUGE_VAL, identity());
        return;
    }
    ALSO_OF("MLP.2a", apart((wide)loss, total, 1 + total), identity());
    mlp_output_steps(&k, net, &v, d, &seen);
    mlp_hidden_steps(&k, net, &v, d, &seen);
}

/* o = w_c·w_b·x: gradients with the old weights, and the mixture. */
static void mlp_stale_numbers(void)
{
    const wide w_b = 2, w_c = 1, eta = 0.1L, off = w_c * w_b - 1;
    const wide moved = w_c - eta * off * w_b;
    ALSO_OF("MLP.2c", unless(off * w_b == 2 && off * w_c == 1), identity());
    ALSO_OF("MLP.2c", mlp_prints(moved, 0.8, 6), identity());
    ALSO_OF("MLP.2c", mlp_prints(off * moved, 0.8, 6), identity());
}

/* ---- biases ---------------------------------------------------------------------------------- */

static void mlp_bias_case(size_t n, double scale, nrm_rng *rng)
{
    nrm_real x[MLP_MOST] = {0}, dy[MLP_MOST] = {0}, dx[MLP_MOST] = {0}, y[MLP_MOST] = {0},
             gamma[MLP_MOST] = {0};
    nrm_real db[MLP_MOST] = {0};
    nrm_acc mean[2], rstd[2];
    wide xs[MLP_MOST] = {0}, b[MLP_MOST] = {0}, both[MLP_MOST] = {0}, size = 0, mu, sum = 0;
    const nrm_real eps = (nrm_real)(scale * scale / 16);
    size_t i;
    int rc;
    fill_real(x, n, 0.7 * scale, scale, rng);
    fill_real(dy, n, 0.3, 1, rng);
    fill_real(gamma, n, 1.5, 0.5, rng);
    for (i = 0; i < n; i++) xs[i] = (wide)x[i];
    mu = mean_of(xs, n);
    for (i = 0; i < n; i++) both[i] = xs[i] + (wide)scale / 3;
    size = (wide)scale * 6;
    DERIVE("MLP.3a", apart(mean_of(both, n), mu + (wide)scale / 3, size), algebra());
    for (i = 0; i < n; i++)
        DERIVE("MLP.3b", apart(both[i] - (mu + (wide)scale / 3), xs[i] - mu, size), algebra());
    for (i = 0; i < n; i++) {
        b[i] = (wide)uniform_between(rng, -scale, 2 * scale);
        both[i] = xs[i] + b[i];
    }
    DERIVE("MLP.4a", apart(mean_of(both, n), mu + mean_of(b, n), size), algebra());
    for (i = 0; i < n; i++)
        DERIVE("MLP.4b",
               apart(both[i] - mean_of(both, n), (xs[i] - mu) + (b[i] - mean_of(b, n)), size),
               algebra());
    rc = nrm_batchnorm_forward(y, mean, rstd, NULL, x, gamma, NULL, NRM_TRAIN, eps, n, 1, 1);
    rc |= nrm_batchnorm_backward(dx, NULL, NULL, dy, x, mean, rstd, gamma, NRM_TRAIN, n, 1, 1);
    /* x as the output of a linear layer: its bias */
    db[0] = 0;
    {
        const nrm_real weight = 1;
        nrm_real dW = 0;
        rc |= nrm_linear_backward(NULL, &dW, db, dx, x, &weight, n, 1, 1);
    }
    size = (wide)n * 16 * fabsl((wide)gamma[0]) * (wide)rstd[0];
    DERIVE("MLP.3c", apart(rc == NRM_OK ? (wide)db[0] : 1, 0, size), identity());
    for (i = 0; i < n; i++) sum += (wide)dx[i];
    ALSO(apart((wide)db[0], sum, size), identity());
    rc = nrm_layernorm_forward(y, mean, rstd, x, gamma, NULL, eps, 1, n);
    rc |= nrm_layernorm_backward(dx, NULL, NULL, dy, x, mean, rstd, gamma, 1, n);
    memset(db, 0, sizeof db);
    for (i = 0; i < n; i++) db[i] += dx[i]; /* a single row: the bias has its gradient */
    sum = 0;
    for (i = 0; i < n; i++) sum += (wide)db[i];
    size = (wide)n * 60 * (wide)rstd[0];
    DERIVE("MLP.4c", apart(rc == NRM_OK ? sum : size, 0, size), identity());
}

/* ---- the first weights ----------------------------------------------------------------------- */

/* Weight k of sign pattern number `pattern`. */
static wide mlp_weight(size_t pattern, size_t k, wide s)
{
    return pattern >> k & 1 ? s : -s;
}

static void mlp_weights_case(size_t in, double scale, nrm_rng *rng)
{
    enum { ROWS = 5 };
    const size_t patterns = (size_t)1 << in;
    const wide s = (wide)scale * 0.3L, share = 1 / (wide)patterns;
    double h[ROWS][8];
    wide mean[8][8], all = 0, left = 0, right = 0, squares = 0, row_squares, third = 0, zs[ROWS];
    size_t n, k, l, w;
    memset(mean, 0, sizeof mean);
    for (n = 0; n < ROWS; n++) fill(h[n], in, 0.7, 1, rng);
    for (n = 0; n < ROWS; n++) {
        wide first = 0, second = 0;
        row_squares = 0;
        for (k = 0; k < in; k++) row_squares += (wide)h[n][k] * (wide)h[n][k];
        for (w = 0; w < patterns; w++) {
            wide z = 0, twice = 0;
            for (k = 0; k < in; k++) z += mlp_weight(w, k, s) * (wide)h[n][k];
            for (k = 0; k < in; k++)
                for (l = 0; l < in; l++)
                    twice +=
                        mlp_weight(w, k, s) * mlp_weight(w, l, s) * (wide)h[n][k] * (wide)h[n][l];
            DERIVE("MLP.5b", apart(z * z, twice, s * s * row_squares * (wide)in), algebra());
            DERIVE("MLP.5f", apart(powl(mlp_relu(z), 2) + powl(mlp_relu(-z), 2), z * z, z * z),
                   algebra());
            first += z * share;
            second += z * z * share;
            right += powl(mlp_relu(z), 2) * share;
            left += powl(mlp_relu(-z), 2) * share;
            third += powl(mlp_relu(z / (s * sqrtl(3 * (wide)in))), 2) * share; /* MLP.8's s */
        }
        DERIVE("MLP.5a", apart(first, 0, s * sqrtl(row_squares)), algebra());
        DERIVE("MLP.5d", relative(second, s * s * row_squares), algebra());
        squares += row_squares;
        all += second;
        zs[n] = second;
    }
    DERIVE("MLP.5e", relative(mean_of(zs, ROWS), (wide)in * s * s * (squares / (wide)(in * ROWS))),
           algebra());
    DERIVE("MLP.5g", relative(left, right), algebra());
    DERIVE("MLP.5h", relative(right, all / 2), algebra());
    DERIVE("MLP.5i", relative(right / ROWS, (wide)in / 2 * s * s * (squares / (wide)(in * ROWS))),
           algebra());
    DERIVE("MLP.8b", relative(third / ROWS / (squares / (wide)(in * ROWS)), 1 / (wide)6),
           algebra());
    for (w = 0; w < patterns; w++)
        for (k = 0; k < in; k++)
            for (l = 0; l < in; l++)
                mean[k][l] += mlp_weight(w, k, s) * mlp_weight(w, l, s) * share;
    for (k = 0; k < in; k++)
        for (l = 0; l < in; l++)
            DERIVE("MLP.5c", apart(mean[k][l], k == l ? s * s : 0, s * s), algebra());
}

typedef struct mlp_unit { /* dz·(h·W), for MLP.6a */
    size_t in, out;
    double h[8];
    wide W[8][8], dz[8];
} mlp_unit;

static wide mlp_unit_loss(void *context)
{
    const mlp_unit *u = (const mlp_unit *)context;
    wide loss = 0;
    size_t k, j;
    for (k = 0; k < u->in; k++)
        for (j = 0; j < u->out; j++) loss += u->dz[j] * (wide)u->h[k] * u->W[k][j];
    return loss;
}

/* Backward: a row of weights, all signs of it. */
static void mlp_back_case(size_t out, nrm_rng *rng)
{
    const size_t patterns = (size_t)1 << out;
    const wide s = 0.3L;
    nrm_real dz[8], W[64], dh[8], dW[64], h[8];
    wide squares = 0, mean = 0;
    mlp_unit u;
    size_t w, k, j;
    memset(&u, 0, sizeof u);
    u.in = 3;
    u.out = out;
    fill_real(dz, out, 0.3, 1, rng);
    fill_real(W, 3 * out, 0.1, 1, rng);
    fill_real(h, 3, 0.7, 1, rng);
    for (j = 0; j < out; j++) {
        u.dz[j] = (wide)dz[j];
        squares += u.dz[j] * u.dz[j];
        for (k = 0; k < 3; k++) u.W[k][j] = (wide)W[k * out + j];
    }
    for (k = 0; k < 3; k++) u.h[k] = (double)h[k];
    memset(dW, 0, sizeof dW);
    if (nrm_linear_backward(dh, dW, NULL, dz, h, W, 1, 3, out) != NRM_OK)
        dh[0] = (nrm_real)HUGE_VAL;
    for (k = 0; k < 3; k++) {
        wide sum = 0, size = 0;
        for (j = 0; j < out; j++) {
            sum += u.dz[j] * u.W[k][j];
            size += fabsl(u.dz[j] * u.W[k][j]);
        }
        DERIVE("MLP.6a", apart(sum, slope(mlp_unit_loss, &u, &u.h[k], 0.25), size),
               acc_difference());
        ALSO(apart(sum, (wide)dh[k], size), identity());
    }
    for (w = 0; w < patterns; w++) {
        wide sum = 0;
        for (j = 0; j < out; j++) sum += u.dz[j] * mlp_weight(w, j, s);
        mean += sum * sum / (wide)patterns;
    }
    DERIVE("MLP.6b", relative(mean, (wide)out * s * s * (squares / (wide)out)), algebra());
}

/* ∫ w² dw/(2a) from −a to a by Simpson's rule, which is exact for squares. */
static wide mlp_uniform_variance(wide a)
{
    wide sum = 0;
    int i;
    for (i = 0; i <= 8; i++) {
        const wide w = a * (wide)(i - 4) / 4;
        sum += (i == 0 || i == 8 ? 1 : i % 2 ? 4 : 2) * w * w;
    }
    return sum * (a / 4) / 3 / (2 * a);
}

static void mlp_uniform_steps(void)
{
    static const size_t width[][2] = {{784, 100}, {100, 10}, {3, 7}, {1, 1}};
    size_t i;
    for (i = 0; i < LENGTH(width); i++) {
        const wide in = (wide)width[i][0], out = (wide)width[i][1];
        const wide a = sqrtl(6 / (in + out));
        DERIVE("MLP.6c", relative(2 / (in + out), 1 / ((1 / (1 / in) + 1 / (1 / out)) / 2)),
               algebra());
        DERIVE("MLP.6d", relative(mlp_uniform_variance(a), a * a / 3), algebra());
        ALSO(relative(mlp_uniform_variance(a), 2 / (in + out)), algebra());
        DERIVE("MLP.8a", relative(mlp_uniform_variance(1 / sqrtl(in)), 1 / (3 * in)), algebra());
    }
    ALSO_OF("MLP.6d", mlp_prints(sqrtl((wide)6 / 884), 0.0824, 4), algebra());
    ALSO_OF("MLP.6d", mlp_prints(sqrtl((wide)2 / 784), 0.0505, 4), algebra());
    ALSO_OF("MLP.5i", mlp_prints(0.5L * 784 * 1e-4L, 0.0392, 6), algebra());
    ALSO_OF("MLP.5i", mlp_prints(1e7L * (0.0392L * 0.005L * 0.005L), 9.8, 3), algebra());
    ALSO_OF("MLP.5h", mlp_prints(0.5L - 1 / (2 * acosl(-1)), 0.3408, 4), algebra());
}

/* ---- what a norm changes --------------------------------------------------------------------- */

/* dW of ∑ dy·BN(x·W) and y, at c·W with ε. */
static int mlp_scaled(nrm_real *dW, nrm_real *y, const nrm_real *x, const nrm_real *W,
                      const nrm_real *dy, double c, double eps, size_t N, size_t in)
{
    nrm_real w[8], z[MLP_MOST] = {0}, dz[MLP_MOST] = {0}, gamma = (nrm_real)1.5,
                   beta = (nrm_real)-0.25;
    nrm_acc mean[1], rstd[1];
    size_t k;
    int rc;
    for (k = 0; k < in; k++) {
        w[k] = (nrm_real)((double)W[k] * c);
        dW[k] = 0;
    }
    rc = nrm_linear_forward(z, x, w, NULL, N, in, 1);
    rc |= nrm_batchnorm_forward(y, mean, rstd, NULL, z, &gamma, &beta, NRM_TRAIN, (nrm_real)eps, N,
                                1, 1);
    rc |= nrm_batchnorm_backward(dz, NULL, NULL, dy, z, mean, rstd, &gamma, NRM_TRAIN, N, 1, 1);
    rc |= nrm_linear_backward(NULL, dW, NULL, dz, x, w, N, in, 1);
    return rc;
}

static void mlp_scale_case(size_t N, double c, nrm_rng *rng)
{
    const double eps = 0.25;
    nrm_real x[MLP_MOST] = {0}, W[8], dy[MLP_MOST] = {0}, y[MLP_MOST] = {0}, dW[8],
             y_one[MLP_MOST] = {0}, dW_one[8];
    const size_t in = 2;
    wide size = 0;
    size_t i;
    fill_real(x, N * in, 0.7, 1, rng);
    fill_real(W, in, 0.2, 1, rng);
    fill_real(dy, N, 0.3, 1, rng);
    if (mlp_scaled(dW, y, x, W, dy, c, eps, N, in) != NRM_OK ||
        mlp_scaled(dW_one, y_one, x, W, dy, 1, eps / (c * c), N, in) != NRM_OK)
        y[0] = dW[0] = (nrm_real)HUGE_VAL;
    for (i = 0; i < N; i++) {
        DERIVE("MLP.8c", apart((wide)y[i], (wide)y_one[i], 4), identity());
        size += 8 * fabsl((wide)dy[i]) / sqrtl((wide)eps);
    }
    for (i = 0; i < in; i++)
        DERIVE("MLP.8d", apart((wide)dW[i], (wide)dW_one[i] / (wide)c, size), identity());
}

/* ---- the first loss -------------------------------------------------------------------------- */

static void mlp_first_loss(size_t C, nrm_rng *rng)
{
    nrm_real o[MLP_MOST] = {0}, zero[MLP_MOST] = {0};
    wide sum = 0, exps = 0, mean = 0;
    nrm_acc loss;
    size_t c;
    int label;
    memset(zero, 0, sizeof zero);
    fill_real(o, C, 0.7, 2, rng);
    for (c = 0; c < C; c++) {
        label = (int)c;
        loss = -1;
        (void)nrm_cross_entropy_forward(&loss, NULL, zero, &label, 1, C);
        DERIVE("MLP.8e", apart((wide)loss, logl((wide)C), 1), acc_identity());
        loss = (nrm_acc)HUGE_VAL;
        (void)nrm_cross_entropy_forward(&loss, NULL, o, &label, 1, C);
        sum += (wide)loss / (wide)C;
        exps += expl((wide)o[c]);
        mean += (wide)o[c] / (wide)C;
    }
    ALSO_OF("MLP.8e", mlp_prints(logl(10), 2.3026, 4), acc_identity());
    DERIVE("MLP.8f", apart(sum, logl(exps) - mean, 1 + sum), acc_identity());
}

/* The number of parameters, and the first losses, of 784-100-100-100-10. */
static void mlp_first_numbers(void)
{
    enum { N = 20, IN = 784 };
    static const double printed[2] = {2.75, 2.31};
    nrm_mlp_layer layer[4];
    nrm_mlp_spec spec = nrm_mlp_defaults();
    nrm_real *x = (nrm_real *)malloc(N * IN * sizeof *x);
    int labels[N], turn;
    size_t l, n;
    void *block;
    memset(layer, 0, sizeof layer);
    for (l = 0; l < 4; l++) {
        layer[l].width = l < 3 ? 100 : 10;
        layer[l].norm = l < 3 ? NRM_BATCH_NORM : NRM_NO_NORM;
        layer[l].activation = l < 3 ? NRM_RELU : NRM_IDENTITY;
        layer[l].bias = 1;
    }
    spec.inputs = IN;
    spec.layers = 4;
    spec.layer = layer;
    spec.max_batch = N;
    block = malloc(nrm_mlp_bytes(&spec));
    for (turn = 0; turn < 2; turn++) {
        nrm_mlp *net = NULL;
        nrm_acc loss = -1;
        nrm_rng rng = stream(208);
        spec.init = turn == 0 ? NRM_INIT_HE : NRM_INIT_GAUSSIAN;
        for (n = 0; x != NULL && n < N * IN; n++) x[n] = nrm_rng_uniform(&rng);
        for (n = 0; n < N; n++) labels[n] = (int)(n % 10);
        if (x != NULL && block != NULL &&
            nrm_mlp_init(&net, block, nrm_mlp_bytes(&spec), &spec) == NRM_OK &&
            nrm_mlp_forward(net, x, N, NRM_TRAIN) == NRM_OK)
            (void)nrm_cross_entropy_forward(&loss, NULL, net->logits, labels, N, 10);
        ALSO_OF("MLP.8f", mlp_prints((wide)loss, printed[turn], 2), acc_identity());
        ALSO_OF("MLP.1a", unless(net != NULL && net->n_params == 100310), identity());
    }
    free(block);
    free(x);
}

static void mlp_linear_case(size_t in, size_t out, nrm_rng *rng)
{
    nrm_real h[MLP_MOST] = {0}, W[MLP_MOST] = {0}, b[MLP_MOST] = {0}, z[MLP_MOST] = {0};
    size_t n, k, j;
    fill_real(h, 2 * in, 0.7, 1, rng);
    fill_real(W, in * out, 0.1, 1, rng);
    fill_real(b, out, -0.2, 1, rng);
    if (nrm_linear_forward(z, h, W, b, 2, in, out) != NRM_OK) z[0] = (nrm_real)HUGE_VAL;
    for (n = 0; n < 2; n++)
        for (j = 0; j < out; j++) {
            wide sum = (wide)b[j], size = fabsl(sum);
            for (k = 0; k < in; k++) {
                sum += (wide)h[n * in + k] * (wide)W[k * out + j];
                size += fabsl((wide)h[n * in + k] * (wide)W[k * out + j]);
            }
            DERIVE("MLP.1a", apart((wide)z[n * out + j], sum, size), identity());
        }
}

/* ---- optimizers ------------------------------------------------------------------------------ */

/* A network with one parameter, whose gradient is set by hand. */
static nrm_mlp *mlp_one_weight(unsigned char *block, int optimizer)
{
    nrm_mlp_layer layer;
    nrm_mlp_spec spec = nrm_mlp_defaults();
    nrm_mlp *net = NULL;
    memset(&layer, 0, sizeof layer);
    layer.width = 1;
    spec.inputs = spec.layers = spec.max_batch = 1;
    spec.layer = &layer;
    spec.optimizer = optimizer;
    spec.lr = (nrm_real)0.0625;
    spec.heavy_ball = (nrm_real)0.9;
    if (nrm_mlp_init(&net, block, MLP_BLOCK, &spec) != NRM_OK) exit(1);
    net->params[0] = 0;
    return net;
}

static wide mlp_power(wide a, size_t n)
{
    wide p = 1;
    while (n-- > 0) p *= a;
    return p;
}

static void mlp_heavy_ball(int constant, nrm_rng *rng)
{
    static unsigned char block[MLP_BLOCK];
    enum { STEPS = 24 };
    nrm_mlp *net = mlp_one_weight(block, NRM_SGD);
    const wide kappa = (wide)net->spec.heavy_ball, eta = (wide)net->spec.lr;
    wide g[STEPS + 1], theta = 0, before = 0;
    nrm_real draw;
    size_t t, s;
    for (t = 1; t <= STEPS; t++) {
        wide unrolled = 0, steady, step;
        fill_real(&draw, 1, 0.5, 1, rng);
        g[t] = constant ? 1.25L : (wide)draw;
        net->grads[0] = (nrm_real)g[t];
        if (nrm_mlp_step(net) != NRM_OK) net->params[0] = (nrm_real)HUGE_VAL;
        for (s = 1; s <= t; s++) unrolled += mlp_power(kappa, t - s) * g[s];
        DERIVE("OPT.1a", apart((wide)net->moment1[0], unrolled, 20), identity());
        step = -eta * g[t] + kappa * (theta - before);
        DERIVE("OPT.2a", apart((wide)net->params[0] - theta, step, 20), identity());
        before = theta;
        theta = (wide)net->params[0];
        if (!constant) continue;
        steady = g[1] / (1 - kappa);
        DERIVE("OPT.1b",
               apart((wide)net->moment1[0], g[1] * (1 - mlp_power(kappa, t)) / (1 - kappa), 20),
               identity());
        DERIVE("OPT.1c", apart(steady - (wide)net->moment1[0], mlp_power(kappa, t) * steady, 20),
               identity());
    }
}

/* Gradients of t steps that are g1 or g2 with equal chance, all 2^t histories. */
static void mlp_adam_expectations(size_t steps, double g1, double g2)
{
    static unsigned char block[MLP_BLOCK];
    const size_t histories = (size_t)1 << steps;
    wide a = 0, b = 0, corrected = 0, beta1 = 0, beta2 = 0, powers = 0;
    const wide mean = ((wide)g1 + (wide)g2) / 2;
    const wide square = ((wide)g1 * (wide)g1 + (wide)g2 * (wide)g2) / 2;
    size_t w, t, s;
    for (w = 0; w < histories; w++) {
        nrm_mlp *net = mlp_one_weight(block, NRM_ADAM);
        wide unrolled = 0;
        beta1 = (wide)net->spec.beta1;
        beta2 = (wide)net->spec.beta2;
        for (t = 1; t <= steps; t++) {
            const double g = w >> (t - 1) & 1 ? g1 : g2;
            net->grads[0] = (nrm_real)g;
            if (nrm_mlp_step(net) != NRM_OK) net->params[0] = (nrm_real)HUGE_VAL;
            unrolled += (1 - beta1) * mlp_power(beta1, steps - t) * (wide)g;
        }
        DERIVE("OPT.3a", apart((wide)net->moment1[0], unrolled, fabsl(mean) + sqrtl(square)),
               identity());
        a += (wide)net->moment1[0] / (wide)histories;
        b += (wide)net->moment2[0] / (wide)histories;
        corrected += (wide)net->moment1[0] / (1 - (wide)net->beta1_power) / (wide)histories;
    }
    for (s = 1; s <= steps; s++) powers += mlp_power(beta1, steps - s);
    DERIVE("OPT.3b", apart(a, (1 - beta1) * mean * powers, sqrtl(square)), identity());
    DERIVE("OPT.3c", relative(powers, (1 - mlp_power(beta1, steps)) / (1 - beta1)), algebra());
    DERIVE("OPT.3d", apart(a, (1 - mlp_power(beta1, steps)) * mean, sqrtl(square)), identity());
    DERIVE("OPT.4a", apart(b, (1 - mlp_power(beta2, steps)) * square, square), identity());
    DERIVE("OPT.5a", apart(corrected, mean, 4 * sqrtl(square)), identity());
}

static void mlp_adam_first(nrm_rng *rng)
{
    static unsigned char block[MLP_BLOCK];
    static const double scale[] = {1e-9, 1e-8, 1e-7, 1e-3, 1, 1e3};
    wide beta1 = 0, beta2 = 0;
    size_t i;
    for (i = 0; i < LENGTH(scale); i++) {
        nrm_mlp *net = mlp_one_weight(block, NRM_ADAM);
        const wide eta = (wide)net->spec.lr, eps = (wide)net->spec.adam_eps, c = 2.5L;
        nrm_real draw;
        wide g, step;
        fill_real(&draw, 1, 0.5 * scale[i], scale[i], rng);
        g = (wide)draw;
        net->grads[0] = draw;
        if (nrm_mlp_step(net) != NRM_OK) net->params[0] = (nrm_real)HUGE_VAL;
        step = -eta * g / (fabsl(g) + eps);
        DERIVE("OPT.5b", apart((wide)net->params[0], step, eta), identity());
        DERIVE("OPT.5c", apart(c * g / (fabsl(c * g) + c * eps), g / (fabsl(g) + eps), 1),
               algebra());
        beta1 = (wide)net->spec.beta1;
        beta2 = (wide)net->spec.beta2;
    }
    ALSO_OF("OPT.5b", mlp_prints((1 - beta1) / sqrtl(1 - beta2), 3.16, 2), identity());
    ALSO_OF("OPT.5b", mlp_prints(1e-7L / (1e-7L + 1e-8L), 0.909, 3), identity());
}

/* ---- several workers ------------------------------------------------------------------------- */

static void mlp_workers_case(size_t first, size_t second, nrm_rng *rng)
{
    static unsigned char block[MLP_BLOCK];
    enum { IN = 3, CLASSES = 4 };
    const size_t N = first + second, part[2] = {first, second};
    nrm_mlp_layer layer[2];
    nrm_mlp_spec spec = nrm_mlp_defaults();
    nrm_real x[MLP_MOST] = {0}, whole[64];
    wide each[MLP_MOST] = {0}, sum = 0, parts = 0, inner, mixed[64];
    int labels[MLP_MOST];
    nrm_acc loss = -1, own = 0;
    nrm_mlp *net = NULL;
    size_t n, w, at, i;
    memset(layer, 0, sizeof layer);
    memset(mixed, 0, sizeof mixed);
    layer[0].width = 5;
    layer[0].activation = NRM_TANH;
    layer[0].norm = NRM_LAYER_NORM;
    layer[1].width = CLASSES;
    layer[1].bias = 1;
    spec.inputs = IN;
    spec.layers = 2;
    spec.layer = layer;
    spec.max_batch = 16;
    if (nrm_mlp_init(&net, block, MLP_BLOCK, &spec) != NRM_OK) exit(1);
    fill_real(x, N * IN, 0.7, 1, rng);
    for (n = 0; n < N; n++) labels[n] = (int)nrm_rng_below(rng, CLASSES);
    for (n = 0; n < N; n++) {
        own = (nrm_acc)HUGE_VAL;
        (void)nrm_mlp_gradient(net, &own, x + n * IN, labels + n, 1, NRM_TRAIN);
        each[n] = (wide)own;
        sum += each[n];
    }
    (void)nrm_mlp_gradient(net, &loss, x, labels, N, NRM_TRAIN);
    for (i = 0; i < net->n_params; i++) whole[i] = net->grads[i];
    DERIVE("MLP.9a", apart((wide)loss, sum / (wide)N, 1 + sum), identity());
    for (w = at = 0; w < 2; at += part[w++]) {
        inner = 0;
        for (n = at; n < at + part[w]; n++) inner += each[n];
        (void)nrm_mlp_gradient(net, &own, x + at * IN, labels + at, part[w], NRM_TRAIN);
        DERIVE("MLP.9c", apart(inner, (wide)part[w] * (wide)own, 1 + sum), identity());
        parts += inner;
        for (i = 0; i < net->n_params; i++)
            mixed[i] += (wide)part[w] / (wide)N * (wide)net->grads[i];
    }
    DERIVE("MLP.9b", apart((wide)loss, parts / (wide)N, 1 + sum), identity());
    for (i = 0; i < net->n_params; i++)
        DERIVE("MLP.9d", apart((wide)whole[i], mixed[i], 4), identity());
}

/* Parts of 2 and 6 examples, with mean losses 1 and 3. */
static void mlp_parts_numbers(void)
{
    ALSO_OF("MLP.9a", unless((wide)2 / 8 * 1 + (wide)6 / 8 * 3 == 2.5L), identity());
}

static void steps_mlp(void)
{
    static const size_t sizes[] = {2, 3, 4, 7, 32};
    static const double scales[] = {1e-2, 1, 30};
    nrm_rng rng = stream(208);
    size_t i, j;
    for (i = 0; i < 4; i++) {
        mlp_network_case(3 + i, &rng);
        mlp_linear_case(sizes[i], 7 - i, &rng);
        mlp_back_case(sizes[i], &rng);
        mlp_workers_case(1 + i, 2 * i + 1, &rng);
        mlp_workers_case(2, 6, &rng);
        mlp_first_loss(sizes[i], &rng);
        for (j = 0; j < LENGTH(scales); j++) mlp_weights_case(sizes[i], scales[j], &rng);
        mlp_scale_case(sizes[i] + 1, 4, &rng);
        mlp_scale_case(sizes[i] + 1, 0.25, &rng);
        mlp_scale_case(sizes[i] + 1, 3, &rng);
    }
    for (i = 0; i < LENGTH(sizes); i++)
        for (j = 0; j < LENGTH(scales); j++) mlp_bias_case(sizes[i], scales[j], &rng);
    mlp_stale_numbers();
    mlp_parts_numbers();
    mlp_uniform_steps();
    mlp_first_loss(10, &rng);
    mlp_first_numbers();
    mlp_heavy_ball(0, &rng);
    mlp_heavy_ball(1, &rng);
    for (i = 1; i < 7; i++) {
        mlp_adam_expectations(i, 0.75, -0.25);
        mlp_adam_expectations(i, 3, 1);
    }
    mlp_adam_first(&rng);
}
#endif
