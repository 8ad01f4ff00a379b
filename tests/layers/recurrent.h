/* recurrent.h - a recurrent layer to be tested, and what it ought to compute, in long double.

   Include it after normlayers.h. An rnn_case is one call, with everything random: weights, γ away
   from 1, β away from 0, inputs, the state to start from, and the weights e of the loss L = ∑ e·h,
   which looks at the states of all steps. A plain_rnn is the same in long double, written straight
   from the papers: one number at a time, and backward by the chain rule along the forward graph,
   instead of the closed forms that normlayers.h derives. */
#ifndef RECURRENT_H
#define RECURRENT_H

#include <math.h>
#include <stddef.h>
#include <string.h>
#include "lab/draw.h"

enum { RNN_STEPS = 50, RNN_UNITS = 7, RNN_BATCH = 4, RNN_INPUTS = 3 };
enum {
    RNN_STATES = (RNN_STEPS + 1) * RNN_BATCH * RNN_UNITS,
    RNN_SAVED = RNN_STEPS * RNN_UNITS, /* units are more than sequences */
    RNN_SQUARE = RNN_UNITS * RNN_UNITS
};

typedef struct rnn_case {
    nrm_rnn rnn;
    int mode;
    size_t states, sums, inputs, saved; /* numbers in h, a, x, mean */
    nrm_running running[RNN_STEPS];
    nrm_real run_mean[RNN_SAVED], run_var[RNN_SAVED];
    nrm_real Wx[RNN_SQUARE], Wh[RNN_SQUARE], gamma[RNN_UNITS], beta[RNN_UNITS];
    nrm_real x[RNN_STATES], e[RNN_STATES], h[RNN_STATES], a[RNN_STATES];
    nrm_real dh[RNN_STATES], dx[RNN_STATES], da[RNN_STATES];
    nrm_real dWx[RNN_SQUARE], dWh[RNN_SQUARE], dgamma[RNN_UNITS], dbeta[RNN_UNITS];
    nrm_acc mean[RNN_SAVED], rstd[RNN_SAVED];
} rnn_case;

#ifdef RNN_COMPLEX /* the forward pass at complex points, for its derivatives */
#include <complex.h>
typedef double complex rnn_wide;
#define RNN_OF(f) c##f
#define RNN_REAL(z) creal(z)
#else
typedef long double rnn_wide;
#define RNN_OF(f) f##l
#define RNN_REAL(z) (z)
#endif

typedef struct plain_rnn {
    int norm, mode, activation;
    size_t T, N, in, H;
    rnn_wide eps;
    rnn_wide m[RNN_SAVED], u[RNN_SAVED]; /* running statistics                          */
    rnn_wide Wx[RNN_SQUARE], Wh[RNN_SQUARE], gamma[RNN_UNITS], beta[RNN_UNITS];
    rnn_wide x[RNN_STATES], e[RNN_STATES];
    rnn_wide push[RNN_STATES]; /* is added to h: the loss's slope by it is dh */
    rnn_wide h[RNN_STATES], a[RNN_STATES], xhat[RNN_STATES], z[RNN_STATES];
    rnn_wide mean[RNN_SAVED], r[RNN_SAVED];
    rnn_wide dh[RNN_STATES], da[RNN_STATES], dx[RNN_STATES];
    rnn_wide dWx[RNN_SQUARE], dWh[RNN_SQUARE], dgamma[RNN_UNITS], dbeta[RNN_UNITS];
} plain_rnn;

/* ---- the case -------------------------------------------------------------------------------- */

static inline void rnn_fill(nrm_real *a, size_t n, double centre, double sd, nrm_rng *rng)
{
    size_t i;
    for (i = 0; i < n; i++) a[i] = (nrm_real)(centre + sd * (double)draw_normal(rng));
}

/* Points the layer at the arrays of its case, which may have been copied. */
static inline void rnn_point(rnn_case *k)
{
    size_t t;
    k->rnn.Wx = k->Wx;
    k->rnn.Wh = k->Wh;
    k->rnn.gamma = k->gamma;
    k->rnn.beta = k->beta;
    k->rnn.running = k->mode == NRM_TRAIN ? NULL : k->running;
    for (t = 0; t < k->rnn.T; t++) {
        k->running[t].mean = k->run_mean + t * k->rnn.H;
        k->running[t].var = k->run_var + t * k->rnn.H;
    }
}

/* A layer of some norm, activation and shape; its inputs and all weights are about `scale`. */
static inline void rnn_prepare(rnn_case *k, int norm, int mode, int activation, size_t T, size_t N,
                               size_t in, size_t H, double scale, double eps, nrm_rng *rng)
{
    size_t i;
    memset(k, 0, sizeof *k);
    k->rnn.T = T;
    k->rnn.N = N;
    k->rnn.in = in;
    k->rnn.H = H;
    k->rnn.norm = norm;
    k->rnn.activation = activation;
    k->rnn.eps = (nrm_real)eps;
    k->mode = mode;
    k->states = (T + 1) * N * H;
    k->sums = T * N * H;
    k->inputs = T * N * in;
    k->saved = norm == NRM_NO_NORM ? 0 : T * (norm == NRM_LAYER_NORM ? N : H);
    rnn_fill(k->Wx, in * H, 0, scale / sqrt((double)in), rng);
    rnn_fill(k->Wh, H * H, 0, scale / sqrt((double)H), rng);
    rnn_fill(k->gamma, H, 1, 0.3, rng);
    rnn_fill(k->beta, H, 0.2, 0.5, rng);
    rnn_fill(k->x, k->inputs, 0.3, 1, rng);
    rnn_fill(k->h, N * H, 0, 0.5, rng);
    rnn_fill(k->e, k->states, 0, 1, rng);
    rnn_fill(k->run_mean, T * H, 0, 0.3 * scale, rng);
    for (i = 0; i < T * H; i++)
        k->run_var[i] = (nrm_real)(scale * scale * (1 + 2 * (double)draw_uniform(rng)));
    rnn_point(k);
}

static inline int rnn_forward(rnn_case *k)
{
    const int norm = k->rnn.norm != NRM_NO_NORM;
    return nrm_rnn_forward(k->h, k->a, norm ? k->mean : NULL, norm ? k->rstd : NULL, k->x, &k->rnn,
                           k->mode);
}

/* The parameters' gradients are added to what stands there. */
static inline int rnn_backward(rnn_case *k)
{
    const int norm = k->rnn.norm != NRM_NO_NORM;
    nrm_rnn_grads grads;
    grads.dWx = k->dWx;
    grads.dWh = k->dWh;
    grads.dgamma = k->dgamma;
    grads.dbeta = k->dbeta;
    memcpy(k->dh, k->e, sizeof k->dh);
    return nrm_rnn_backward(k->dh, k->dx, &grads, k->da, k->h, norm ? k->a : NULL,
                            norm ? k->mean : NULL, norm ? k->rstd : NULL, k->x, &k->rnn, k->mode);
}

/* ---- the papers ------------------------------------------------------------------------------ */

static inline void rnn_widen(rnn_wide *to, const nrm_real *from, size_t n)
{
    size_t i;
    for (i = 0; i < n; i++) to[i] = (rnn_wide)from[i];
}

static inline void plain_rnn_of(plain_rnn *p, const rnn_case *k)
{
    memset(p, 0, sizeof *p);
    p->norm = k->rnn.norm;
    p->mode = k->mode;
    p->activation = k->rnn.activation;
    p->T = k->rnn.T;
    p->N = k->rnn.N;
    p->in = k->rnn.in;
    p->H = k->rnn.H;
    p->eps = (rnn_wide)k->rnn.eps;
    rnn_widen(p->m, k->run_mean, p->T * p->H);
    rnn_widen(p->u, k->run_var, p->T * p->H);
    rnn_widen(p->Wx, k->Wx, p->in * p->H);
    rnn_widen(p->Wh, k->Wh, p->H * p->H);
    rnn_widen(p->gamma, k->gamma, p->H);
    rnn_widen(p->beta, k->beta, p->H);
    rnn_widen(p->x, k->x, k->inputs);
    rnn_widen(p->e, k->e, k->states);
    rnn_widen(p->h, k->h, p->N * p->H); /* the first state only */
}

static inline rnn_wide plain_f(int activation, rnn_wide z)
{
    switch (activation) {
    case NRM_RELU: return RNN_REAL(z) > 0 ? z : 0;
    case NRM_TANH: return RNN_OF(tanh)(z);
    case NRM_SIGMOID: return 1 / (1 + RNN_OF(exp)(-z));
    default: return z;
    }
}

static inline rnn_wide plain_f_slope(int activation, rnn_wide z)
{
    const rnn_wide y = plain_f(activation, z);
    switch (activation) {
    case NRM_RELU: return RNN_REAL(z) > 0 ? 1 : 0;
    case NRM_TANH: return 1 - y * y;
    case NRM_SIGMOID: return y * (1 - y);
    default: return 1;
    }
}

/* What is normalized together at a step: member i of group g stands at place[i] of the step. */
static inline size_t plain_group(const plain_rnn *p, size_t *place, size_t g)
{
    const int rows = p->norm == NRM_LAYER_NORM;
    const size_t members = rows ? p->H : p->N;
    size_t i;
    for (i = 0; i < members; i++) place[i] = rows ? g * p->H + i : i * p->H + g;
    return members;
}

static inline size_t plain_groups(const plain_rnn *p)
{
    if (p->norm == NRM_NO_NORM) return 0;
    return p->norm == NRM_LAYER_NORM ? p->N : p->H;
}

static inline int plain_constants(const plain_rnn *p)
{
    return p->norm == NRM_BATCH_NORM && p->mode != NRM_TRAIN;
}

static inline void plain_normalize(plain_rnn *p, size_t t)
{
    const rnn_wide *a = p->a + t * p->N * p->H;
    const size_t groups = plain_groups(p);
    rnn_wide *xhat = p->xhat + t * p->N * p->H;
    size_t place[RNN_UNITS], g, i;
    for (g = 0; g < groups; g++) {
        const size_t n = plain_group(p, place, g);
        rnn_wide mean = 0, var = 0;
        for (i = 0; i < n; i++) mean += a[place[i]] / (rnn_wide)n;
        for (i = 0; i < n; i++) var += (a[place[i]] - mean) * (a[place[i]] - mean) / (rnn_wide)n;
        if (plain_constants(p)) {
            mean = p->m[t * groups + g];
            var = p->u[t * groups + g];
        }
        p->mean[t * groups + g] = mean;
        p->r[t * groups + g] = 1 / RNN_OF(sqrt)(var + p->eps);
        for (i = 0; i < n; i++) xhat[place[i]] = (a[place[i]] - mean) * p->r[t * groups + g];
    }
}

/* From h[0], to all the rest. */
static inline void plain_forward(plain_rnn *p)
{
    const size_t N = p->N, H = p->H;
    size_t t, n, i, k;
    for (i = 0; i < N * H; i++) p->h[i] += p->push[i];
    for (t = 0; t < p->T; t++) {
        const rnn_wide *x = p->x + t * N * p->in, *h = p->h + t * N * H;
        rnn_wide *a = p->a + t * N * H, *z = p->z + t * N * H, *next = p->h + (t + 1) * N * H;
        for (n = 0; n < N; n++)
            for (i = 0; i < H; i++) {
                a[n * H + i] = 0;
                for (k = 0; k < p->in; k++) a[n * H + i] += x[n * p->in + k] * p->Wx[k * H + i];
                for (k = 0; k < H; k++) a[n * H + i] += h[n * H + k] * p->Wh[k * H + i];
            }
        plain_normalize(p, t);
        for (i = 0; i < N * H; i++) {
            z[i] = p->norm == NRM_NO_NORM
                       ? a[i] + p->beta[i % H]
                       : p->gamma[i % H] * p->xhat[t * N * H + i] + p->beta[i % H];
            next[i] = plain_f(p->activation, z[i]) + p->push[(t + 1) * N * H + i];
        }
    }
    for (i = 0; i < N * H; i++) p->h[i] -= p->push[i]; /* so that it can be run again */
}

static inline rnn_wide plain_loss(const plain_rnn *p)
{
    const size_t first = p->N * p->H, count = (p->T + 1) * first;
    rnn_wide loss = 0;
    size_t i;
    for (i = 0; i < count; i++) loss += p->e[i] * (p->h[i] + (i < first ? p->push[i] : 0));
    return loss;
}

/* The gradient by a group's values from that by its x̂: first by r, by v, by μ, then by each. */
static inline void plain_norm_backward(plain_rnn *p, size_t t, rnn_wide *da)
{
    const rnn_wide *a = p->a + t * p->N * p->H;
    const size_t groups = plain_groups(p);
    size_t place[RNN_UNITS], g, i;
    for (g = 0; g < groups; g++) {
        const size_t n = plain_group(p, place, g);
        const rnn_wide r = p->r[t * groups + g], mean = p->mean[t * groups + g];
        rnn_wide dr = 0, dv, dmu = 0;
        for (i = 0; i < n; i++) {
            dr += da[place[i]] * (a[place[i]] - mean);
            dmu -= da[place[i]] * r;
        }
        dv = -r * r * r / 2 * dr;
        for (i = 0; i < n; i++) dmu -= dv * 2 * (a[place[i]] - mean) / (rnn_wide)n;
        if (plain_constants(p)) dv = dmu = 0;
        for (i = 0; i < n; i++)
            da[place[i]] =
                da[place[i]] * r + dv * 2 * (a[place[i]] - mean) / (rnn_wide)n + dmu / (rnn_wide)n;
    }
}

/* Step t, from the gradient by h[t+1] on. */
static inline void plain_step_backward(plain_rnn *p, size_t t)
{
    const size_t N = p->N, H = p->H, at = t * N * H;
    size_t n, i, k;
    for (i = 0; i < N * H; i++) {
        const rnn_wide dz = p->dh[at + N * H + i] * plain_f_slope(p->activation, p->z[at + i]);
        p->dbeta[i % H] += dz;
        p->dgamma[i % H] += dz * p->xhat[at + i];
        p->da[at + i] = p->norm == NRM_NO_NORM ? dz : dz * p->gamma[i % H];
    }
    plain_norm_backward(p, t, p->da + at);
    for (n = 0; n < N; n++)
        for (i = 0; i < H; i++) {
            const rnn_wide da = p->da[at + n * H + i];
            for (k = 0; k < H; k++) {
                p->dWh[k * H + i] += p->h[at + n * H + k] * da;
                p->dh[at + n * H + k] += p->Wh[k * H + i] * da;
            }
            for (k = 0; k < p->in; k++) {
                p->dWx[k * H + i] += p->x[(t * N + n) * p->in + k] * da;
                p->dx[(t * N + n) * p->in + k] += p->Wx[k * H + i] * da;
            }
        }
}

/* After plain_forward; all gradients start at 0, dh at e. */
static inline void plain_backward(plain_rnn *p)
{
    size_t t = p->T;
    memset(p->dx, 0, sizeof p->dx);
    memset(p->dWx, 0, sizeof p->dWx);
    memset(p->dWh, 0, sizeof p->dWh);
    memset(p->dgamma, 0, sizeof p->dgamma);
    memset(p->dbeta, 0, sizeof p->dbeta);
    memcpy(p->dh, p->e, sizeof p->dh);
    while (t-- > 0) plain_step_backward(p, t);
}

#endif
