/* derive_recurrent.h - RNN: the recurrent layer, step by step and through time.

   The code runs on an rnn_case, the papers' formulas on the plain_rnn that is made of it
   (recurrent.h). Within a step each equation is checked with the code's own numbers on its right
   side; the sums over time, and dh as a whole, against differences of the plain forward pass. */
#ifndef DERIVE_RECURRENT_H
#define DERIVE_RECURRENT_H

#include "derive_tools.h"
#include "layers/recurrent.h"

typedef struct rnn_pair {
    rnn_case code;
    nrm_real dWx_before[RNN_SQUARE], dWh_before[RNN_SQUARE];
    plain_rnn plain;
} rnn_pair;

static void rnn_setup(rnn_pair *p, int norm, int mode, int activation, double scale, nrm_rng *rng)
{
    rnn_case *k = &p->code;
    rnn_prepare(k, norm, mode, activation, 4, 3, 2, 5, scale, 0.01 * scale * scale, rng);
    fill_real(k->dWx, RNN_SQUARE, 0, 1, rng);
    fill_real(k->dWh, RNN_SQUARE, 0, 1, rng);
    memcpy(p->dWx_before, k->dWx, sizeof k->dWx);
    memcpy(p->dWh_before, k->dWh, sizeof k->dWh);
    plain_rnn_of(&p->plain, k);
    plain_forward(&p->plain);
    plain_backward(&p->plain);
    if (rnn_forward(k) != NRM_OK || rnn_backward(k) != NRM_OK)
        k->h[k->states - 1] = k->a[0] = k->da[0] = k->dh[0] = (nrm_real)HUGE_VAL;
}

/* ---- within a step --------------------------------------------------------------------------- */

/* a of the code against the two products, of the code's h. */
static wide rnn_sums_residual(const rnn_case *k)
{
    const size_t in = k->rnn.in, H = k->rnn.H, rows = k->rnn.T * k->rnn.N;
    wide worst = 0;
    size_t row, i, j;
    for (row = 0; row < rows; row++)
        for (i = 0; i < H; i++) {
            wide sum = 0, size = 0;
            for (j = 0; j < in; j++) {
                const wide term = (wide)k->x[row * in + j] * (wide)k->Wx[j * H + i];
                sum += term;
                size += fabsl(term);
            }
            for (j = 0; j < H; j++) {
                const wide term = (wide)k->h[row * H + j] * (wide)k->Wh[j * H + i];
                sum += term;
                size += fabsl(term);
            }
            worst = worse(worst, apart((wide)k->a[row * H + i], sum, size));
        }
    return worst;
}

/* Fills p with what follows from the code's own a: statistics, x̂, z. */
static void follow_sums(plain_rnn *p, const rnn_case *k)
{
    size_t t, i;
    for (i = 0; i < k->sums; i++) p->a[i] = (wide)k->a[i];
    for (t = 0; t < p->T; t++) plain_normalize(p, t);
    for (i = 0; i < k->sums; i++) {
        const wide beta = p->beta[i % p->H];
        p->z[i] = p->norm == NRM_NO_NORM ? p->a[i] + beta : p->gamma[i % p->H] * p->xhat[i] + beta;
    }
}

/* h of the code against f(z). */
static wide states_residual(const rnn_case *k, const plain_rnn *p)
{
    const size_t step = p->N * p->H;
    wide worst = 0;
    size_t i;
    for (i = 0; i < k->sums; i++)
        worst = worse(worst, apart((wide)k->h[step + i], plain_f(p->activation, p->z[i]),
                                   1 + fabsl(p->z[i])));
    return worst;
}

/* da of the code against one step of the plain layer from the code's dh; without a norm, dz. */
static wide sums_gradient_residual(const rnn_case *k, plain_rnn *p)
{
    const size_t step = p->N * p->H;
    wide worst = 0, size = 0;
    size_t t, i;
    for (t = 0; t < p->T; t++) {
        for (i = 0; i < step; i++) p->dh[(t + 1) * step + i] = (wide)k->dh[(t + 1) * step + i];
        plain_step_backward(p, t);
    }
    for (i = 0; i < k->sums; i++) size = worse(size, fabsl(p->da[i]));
    for (i = 0; i < k->sums; i++) worst = worse(worst, apart((wide)k->da[i], p->da[i], size));
    return worst;
}

/* dh of the code against e + da·Whᵀ, or dx against da·Wxᵀ, of the code's da. */
static wide back_residual(const rnn_case *k, int of_input)
{
    const size_t H = k->rnn.H, rows = k->rnn.T * k->rnn.N, cols = of_input ? k->rnn.in : H;
    const nrm_real *W = of_input ? k->Wx : k->Wh, *got = of_input ? k->dx : k->dh;
    wide worst = 0;
    size_t row, i, j;
    for (row = 0; row < rows; row++)
        for (j = 0; j < cols; j++) {
            wide sum = of_input ? 0 : (wide)k->e[row * H + j], size = fabsl(sum);
            for (i = 0; i < H; i++) {
                const wide term = (wide)k->da[row * H + i] * (wide)W[j * H + i];
                sum += term;
                size += fabsl(term);
            }
            worst = worse(worst, apart((wide)got[row * cols + j], sum, size));
        }
    return worst;
}

static wide last_state_residual(const rnn_case *k)
{
    const size_t step = k->rnn.N * k->rnn.H;
    return unless(memcmp(k->dh + k->sums, k->e + k->sums, step * sizeof *k->e) == 0);
}

static void derive_steps(rnn_pair *p)
{
    static plain_rnn follow;
    const rnn_case *k = &p->code;
    plain_rnn_of(&follow, k);
    DERIVE("RNN.1", rnn_sums_residual(k), identity());
    follow_sums(&follow, k);
    if (follow.activation == NRM_IDENTITY) /* then h is z */
        DERIVE("RNN.2", states_residual(k, &follow), identity());
    DERIVE("RNN.3", states_residual(k, &follow), identity());
    if (follow.norm == NRM_NO_NORM) DERIVE("RNN.4", sums_gradient_residual(k, &follow), identity());
    DERIVE("RNN.5", sums_gradient_residual(k, &follow), identity());
    DERIVE("RNN.6", worse(back_residual(k, 0), last_state_residual(k)), identity());
    DERIVE("RNN.9", back_residual(k, 1), identity());
}

/* ---- through time ---------------------------------------------------------------------------- */

/* The five-point derivative of the plain loss by *at. */
static wide plain_slope(plain_rnn *p, wide *at)
{
    const wide kept = *at, h = 1.0L / 4096;
    wide sum = 0;
    int i;
    for (i = -2; i <= 2; i++) {
        static const wide weight[5] = {1, -8, 0, 8, -1};
        if (i == 0) continue;
        *at = kept + i * h;
        plain_forward(p);
        sum += weight[i + 2] * plain_loss(p);
    }
    *at = kept;
    plain_forward(p);
    return sum / (12 * h);
}

/* Gradients of the code, less what was there before, against the slopes. Errors are relative to the
   largest of the array. */
static wide slopes_residual(plain_rnn *p, wide *theta, const nrm_real *grad, const nrm_real *before,
                            size_t n)
{
    wide gap[RNN_STATES], worst = 0, size = 0;
    size_t i;
    for (i = 0; i < n; i++) {
        const wide should = plain_slope(p, theta + i);
        const wide old = before != NULL ? (wide)before[i] : 0;
        gap[i] = (wide)grad[i] - old - should;
        size = worse(size, fabsl(should) + fabsl(old));
    }
    for (i = 0; i < n; i++) worst = worse(worst, apart(gap[i], 0, size));
    return worst;
}

static void derive_sums_over_time(rnn_pair *p)
{
    const rnn_case *k = &p->code;
    plain_rnn *plain = &p->plain;
    DERIVE("RNN.7", slopes_residual(plain, plain->Wh, k->dWh, p->dWh_before, 25), difference());
    DERIVE("RNN.8", slopes_residual(plain, plain->Wx, k->dWx, p->dWx_before, 10), difference());
    ALSO_OF("RNN.9", slopes_residual(plain, plain->x, k->dx, NULL, k->inputs), difference());
    ALSO_OF("RNN.6", slopes_residual(plain, plain->push, k->dh, NULL, k->states), difference());
}

/* ---- Jacobians ------------------------------------------------------------------------------- */

enum { JAC = 5 }; /* units */

/* The right side of the Jacobian of step t, [from][to], for a single sequence. */
static void jacobian(wide J[JAC][JAC], const plain_rnn *p, size_t t)
{
    const wide *xhat = p->xhat + t * JAC, *z = p->z + t * JAC;
    size_t k, j, i;
    for (k = 0; k < JAC; k++)
        for (i = 0; i < JAC; i++) {
            wide sum = 0;
            for (j = 0; j < JAC; j++)
                sum += p->Wh[k * JAC + j] * p->r[t] *
                       ((i == j ? 1 : 0) - 1 / (wide)JAC - xhat[j] * xhat[i] / (wide)JAC);
            J[k][i] = sum * p->gamma[i] * plain_f_slope(p->activation, z[i]);
        }
}

/* The Jacobian of step t against differences of the plain forward pass: the loss looks at unit i of
   h[t+1] only, and h[t] is pushed. */
static wide jacobian_residual(plain_rnn *p, size_t t)
{
    wide J[JAC][JAC], worst = 0, size = 0;
    size_t k, i;
    jacobian(J, p, t);
    for (k = 0; k < JAC; k++)
        for (i = 0; i < JAC; i++) size = worse(size, fabsl(J[k][i]));
    for (i = 0; i < JAC; i++) {
        memset(p->e, 0, sizeof p->e);
        p->e[(t + 1) * JAC + i] = 1;
        for (k = 0; k < JAC; k++)
            worst = worse(worst, apart(plain_slope(p, p->push + t * JAC + k), J[k][i], size));
    }
    return worst;
}

/* The product of all Jacobians from t on, times e[T], against dh[t] of the code. */
static wide product_residual(const rnn_case *k, const plain_rnn *p)
{
    wide v[JAC], next[JAC], J[JAC][JAC], worst = 0, size;
    size_t t = p->T, i, j;
    for (i = 0; i < JAC; i++) v[i] = (wide)k->e[t * JAC + i];
    while (t-- > 0) {
        jacobian(J, p, t);
        size = 0;
        for (i = 0; i < JAC; i++) {
            next[i] = 0;
            for (j = 0; j < JAC; j++) next[i] += J[i][j] * v[j];
            size = worse(size, fabsl(next[i]));
        }
        for (i = 0; i < JAC; i++) {
            v[i] = next[i];
            worst = worse(worst, apart((wide)k->dh[t * JAC + i], v[i], size));
        }
    }
    return worst;
}

static void derive_jacobians(int activation, nrm_rng *rng)
{
    static rnn_pair p;
    rnn_case *k = &p.code;
    size_t t;
    rnn_prepare(k, NRM_LAYER_NORM, NRM_TRAIN, activation, 6, 1, 2, JAC, 1, 0.01, rng);
    memset(k->e, 0, 6 * JAC * sizeof *k->e); /* the loss looks at the last state only */
    plain_rnn_of(&p.plain, k);
    plain_forward(&p.plain);
    if (rnn_forward(k) != NRM_OK || rnn_backward(k) != NRM_OK) k->dh[0] = (nrm_real)HUGE_VAL;
    DERIVE("RNN.11", product_residual(k, &p.plain), identity());
    for (t = 0; t < 6; t++) DERIVE("RNN.10", jacobian_residual(&p.plain, t), acc_difference());
}

/* ---- random weights -------------------------------------------------------------------------- */

/* |da·Whᵀ|² for many random Wh: it is s²·|da|²/H times a chi-square of H degrees of freedom, whose
   mean is H, whose variance 2H, and whose kurtosis 3 + 12/H. */
static wide stretch_surprise(double s, nrm_rng *rng)
{
    enum { UNITS = 12, DRAWS = 4000 };
    moments m = no_moments();
    nrm_real da[UNITS], dh[UNITS];
    wide length = 0, variance;
    size_t draw, i, j;
    for (i = 0; i < UNITS; i++) {
        da[i] = (nrm_real)(0.1 * (double)i - 0.3);
        length += (wide)da[i] * (wide)da[i];
    }
    for (draw = 0; draw < DRAWS; draw++) {
        wide square = 0;
        for (i = 0; i < UNITS; i++) {
            dh[i] = 0;
            for (j = 0; j < UNITS; j++)
                dh[i] += da[j] * (nrm_real)(s * (double)nrm_rng_normal(rng) / sqrt((double)UNITS));
            square += (wide)dh[i] * (wide)dh[i];
        }
        take(&m, square, (wide)s * (wide)s * length);
    }
    variance = 2.0L / UNITS * (wide)s * (wide)s * length * (wide)s * (wide)s * length;
    return surprise(&m, variance, 3 + 12.0L / UNITS);
}

/* ---- the scale of the weights ---------------------------------------------------------------- */

/* norm(c·a) and norm(a) of random rows, without ε. */
static wide scale_residual(nrm_rng *rng)
{
    wide a[7], b[7], worst = 0, c;
    wide mean[2] = {0, 0}, var[2] = {0, 0};
    size_t i;
    c = (wide)uniform_between(rng, 0.001, 1000);
    for (i = 0; i < 7; i++) {
        a[i] = (wide)nrm_rng_normal(rng);
        b[i] = c * a[i];
        mean[0] += a[i] / 7;
        mean[1] += b[i] / 7;
    }
    for (i = 0; i < 7; i++) {
        var[0] += (a[i] - mean[0]) * (a[i] - mean[0]) / 7;
        var[1] += (b[i] - mean[1]) * (b[i] - mean[1]) / 7;
    }
    for (i = 0; i < 7; i++)
        worst = worse(worst,
                      apart((b[i] - mean[1]) / sqrtl(var[1]), (a[i] - mean[0]) / sqrtl(var[0]), 3));
    return worst;
}

/* H·ε·r²·⟨g·x̂⟩ of a row; its size if there were no ε; and ∑ h·(dh − e) + ∑ x·dx of the code. */
static wide row_identity(const rnn_case *k, const plain_rnn *p, size_t row, wide *size, wide *left)
{
    const size_t H = p->H, in = p->in;
    const wide r = p->r[row];
    wide sum = 0;
    size_t i;
    *left = *size = 0;
    for (i = 0; i < H; i++) {
        const size_t at = row * H + i;
        const wide slope_of_f = plain_f_slope(p->activation, p->z[at]);
        const wide g = p->gamma[i] * p->dh[p->N * H + at] * slope_of_f;
        sum += g * p->xhat[at];
        *left += (wide)k->h[at] * ((wide)k->dh[at] - (wide)k->e[at]);
        *size += fabsl((wide)k->h[at]) * (fabsl((wide)k->dh[at]) + fabsl((wide)k->e[at]));
    }
    for (i = 0; i < in; i++) {
        *left += (wide)k->x[row * in + i] * (wide)k->dx[row * in + i];
        *size += fabsl((wide)k->x[row * in + i] * (wide)k->dx[row * in + i]);
    }
    return p->eps * r * r * sum;
}

/* After plain_backward: each row, and the sum of all. */
static void derive_scale(const rnn_pair *p)
{
    const rnn_case *k = &p->code;
    const size_t rows = k->rnn.T * k->rnn.N, H = k->rnn.H;
    wide all = 0, weights = 0, size = 0;
    size_t i;
    for (i = 0; i < rows; i++) {
        wide row_size, left;
        const wide right = row_identity(k, &p->plain, i, &row_size, &left);
        DERIVE("RNN.14", apart(left, right, row_size), identity());
        all += right;
        size += row_size;
    }
    for (i = 0; i < H * H; i++)
        weights += (wide)k->Wh[i] * ((wide)k->dWh[i] - (wide)p->dWh_before[i]);
    for (i = 0; i < k->rnn.in * H; i++)
        weights += (wide)k->Wx[i] * ((wide)k->dWx[i] - (wide)p->dWx_before[i]);
    DERIVE("RNN.15", apart(weights, all, size), identity());
}

static void derive_recurrent(void)
{
    static const int norms[4] = {NRM_NO_NORM, NRM_LAYER_NORM, NRM_BATCH_NORM, NRM_BATCH_NORM};
    static const int modes[4] = {NRM_TRAIN, NRM_TRAIN, NRM_TRAIN, NRM_FROZEN};
    static const int activations[3] = {NRM_IDENTITY, NRM_TANH, NRM_SIGMOID};
    static rnn_pair p;
    nrm_rng rng = stream(170);
    size_t i, j;
    int repeat;
    for (i = 0; i < 4; i++)
        for (j = 0; j < 3; j++) {
            rnn_setup(&p, norms[i], modes[i], activations[j], 1, &rng);
            derive_steps(&p);
            derive_sums_over_time(&p);
            if (norms[i] == NRM_LAYER_NORM) derive_scale(&p);
        }
    rnn_setup(&p, NRM_LAYER_NORM, NRM_TRAIN, NRM_RELU, 1, &rng);
    derive_steps(&p);
    for (j = 0; j < 3; j++) derive_jacobians(activations[j], &rng);
    DERIVE("RNN.12", stretch_surprise(0.5, &rng), statistics());
    for (repeat = 0; repeat < 20; repeat++) DERIVE("RNN.13", scale_residual(&rng), algebra());
}

#endif
