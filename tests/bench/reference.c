/* reference.c - the right results of a case in long double, straight from the definitions. What a
   contestant leaves in its buffers is compared with this before it is timed. The draws of noisy
   batch norm come from normlayers.h (they are tested elsewhere); all else is computed here. */
#define NRM_STATIC
#include "normlayers.h"

#include "bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef long double real; /* of this file */

static real root(real a)
{
    real r = (real)sqrt((double)a);
    r = (r + a / r) / 2; /* Newton: from 53 bits to all of them */
    return r;
}

/* exp(x): halved until small, a series, squared back; good to some 17 digits */
static real exponential(real x)
{
    real term = 1, sum = 1;
    int halvings = 0, k;
    while (x > 0.5L || x < -0.5L) {
        x /= 2;
        halvings++;
    }
    for (k = 1; k < 22; k++) sum += (term *= x / k);
    while (halvings-- > 0) sum *= sum;
    return sum;
}

/* ln(a), a > 0: Newton on exp(y) = a from the double's logarithm */
static real logarithm(real a)
{
    const real y = (real)log((double)a);
    return y + a * exponential(-y) - 1;
}

static double *doubles(size_t n)
{
    return (double *)calloc(n ? n : 1, sizeof(double));
}

/* The channel of element i of [N][C][S]; or, of G groups of channels, that of its example. */
typedef struct groups {
    size_t G, C, S, members;
} groups;

static groups groups_of(const bench_work *w)
{
    groups g;
    g.G = w->G;
    g.C = w->C;
    g.S = w->S;
    g.members = g.G > 0 ? w->C / w->G * w->S : w->N * w->S;
    return g;
}

static size_t group_of(const groups *g, size_t i)
{
    return g->G > 0 ? i / (g->S * (g->C / g->G)) : i / g->S % g->C;
}

static int is_lp(int layer)
{
    return layer == BENCH_L1_NORM || layer == BENCH_LINF_NORM;
}

static int is_norm(int layer)
{
    return layer == BENCH_BATCH_NORM || layer == BENCH_FROZEN_NORM || layer == BENCH_NOISY_NORM ||
           layer == BENCH_LAYER_NORM || layer == BENCH_GROUP_NORM || layer == BENCH_INSTANCE_NORM ||
           layer == BENCH_RMS_NORM || layer == BENCH_SYNC_NORM || is_lp(layer);
}

/* A running statistic after one more batch. */
static double moved(const bench_work *w, float from, real to)
{
    return (double)((real)from + (real)w->new_weight * (to - (real)from));
}

/* What is known of a spread, and one more value: squares of deviations, or in Lp norms |x|. */
static real spread(int layer, real so_far, real x, real mean)
{
    const real size = x < 0 ? -x : x;
    if (layer == BENCH_L1_NORM) return so_far + size;
    if (layer == BENCH_LINF_NORM) return size > so_far ? size : so_far;
    return so_far + (x - mean) * (x - mean);
}

/* t of an Lp batch norm, from what all values came to; it is saved as it is. */
static void lp_statistics(bench_reference *r, const bench_work *w, real *spread_to_rstd, size_t i)
{
    const real members = w->layer == BENCH_L1_NORM ? (real)(w->N * w->S) : 1;
    const real t = *spread_to_rstd / members;
    r->rstd[i] = (double)t;
    r->running_var[i] = moved(w, w->running_var[i], t);
    *spread_to_rstd = 1 / (t + (real)w->eps);
}

/* The statistics of the batch (or of each row), or the running ones. */
static void statistics(bench_reference *r, const bench_work *w, real *mean, real *rstd)
{
    const groups g = groups_of(w);
    const size_t n = w->stats_count;
    const int given = w->layer == BENCH_FROZEN_NORM ||
                      (w->layer == BENCH_BATCH_NORM && w->pass == BENCH_INFERENCE);
    size_t i;
    for (i = 0; i < n; i++) mean[i] = rstd[i] = 0;
    for (i = 0; i < w->x_count && !given; i++) mean[group_of(&g, i)] += (real)w->x[i];
    for (i = 0; i < n; i++) mean[i] = w->layer == BENCH_RMS_NORM ? 0 : mean[i] / (real)g.members;
    for (i = 0; i < w->x_count && !given; i++) {
        const size_t k = group_of(&g, i);
        rstd[k] = spread(w->layer, rstd[k], (real)w->x[i], mean[k]);
    }
    for (i = 0; i < n; i++) {
        real var = rstd[i] / (real)g.members;
        const real sample = given ? 0 : rstd[i] / (real)(g.members - 1);
        if (given) {
            mean[i] = (real)w->running_mean[i];
            var = (real)w->running_var[i];
        }
        r->mean[i] = (double)mean[i];
        if (g.G == 0) {
            r->running_mean[i] = moved(w, w->running_mean[i], mean[i]);
            r->running_var[i] = moved(w, w->running_var[i], sample);
        }
        if (is_lp(w->layer)) {
            lp_statistics(r, w, &rstd[i], i);
            continue;
        }
        rstd[i] = 1 / root(var + (real)w->eps);
        r->rstd[i] = (double)rstd[i];
    }
}

static void norm_forward(bench_reference *r, const bench_work *w, const real *mean,
                         const real *rstd)
{
    const groups g = groups_of(w);
    size_t i;
    for (i = 0; i < w->x_count; i++) {
        const size_t k = group_of(&g, i), c = i / w->S % w->C;
        const real beta = w->layer == BENCH_RMS_NORM ? 0 : (real)w->beta[c];
        r->out[i] = (float)(((real)w->x[i] - mean[k]) * rstd[k] * (real)w->gamma[c] + beta);
    }
    if (w->layer == BENCH_NOISY_NORM) {
        const nrm_noise noise = nrm_noise_paper();
        nrm_rng rng;
        nrm_rng_seed(&rng, BENCH_NOISE_SEED, 0);
        nrmi_noise(r->out, r->scale, &noise, &rng, w->N, w->C, w->S);
    }
}

/* dy of the norm itself: behind noise, times the factor that was drawn. */
static real inner_dy(const bench_work *w, size_t i)
{
    return w->layer == BENCH_NOISY_NORM ? (real)w->dy[i] * (real)w->scale[i] : (real)w->dy[i];
}

/* Where the largest |x| of each channel is, counted from 1: of equals the first. */
static void find_largest(size_t *place, const bench_work *w)
{
    const groups g = groups_of(w);
    size_t i;
    for (i = 0; i < w->x_count; i++) {
        size_t *best = &place[group_of(&g, i)];
        if (*best == 0 || fabs((double)w->x[i]) > fabs((double)w->x[*best - 1])) *best = i + 1;
    }
}

/* How the size that x is divided by depends on x[i], times what makes it xhat/m in batch norm. */
static real along(const bench_work *w, const size_t *place, size_t k, size_t i, real xhat, real m)
{
    const real sign = (real)((w->x[i] > 0) - (w->x[i] < 0));
    if (w->layer == BENCH_L1_NORM) return sign / m;
    if (w->layer == BENCH_LINF_NORM) return place[k] == i + 1 ? sign : 0;
    return xhat / m;
}

static int norm_backward(bench_reference *r, const bench_work *w, const real *mean,
                         const real *rstd)
{
    const groups g = groups_of(w);
    const real m = (real)g.members;
    const size_t n = w->stats_count;
    real *sum = (real *)calloc(2 * (n + w->C), sizeof *sum);
    real *g_sum = sum, *gx_sum = sum + n, *dgamma = sum + 2 * n, *dbeta = sum + 2 * n + w->C;
    size_t *place = (size_t *)calloc(n, sizeof *place);
    size_t i;
    if (!sum || !place) {
        free(sum);
        free(place);
        return -1;
    }
    if (w->layer == BENCH_LINF_NORM) find_largest(place, w);
    for (i = 0; i < w->x_count; i++) {
        const size_t k = group_of(&g, i), c = i / w->S % w->C;
        const real dy = inner_dy(w, i), xhat = ((real)w->x[i] - mean[k]) * rstd[k];
        dgamma[c] += dy * xhat;
        dbeta[c] += dy;
        g_sum[k] += dy * (real)w->gamma[c];
        gx_sum[k] += dy * (real)w->gamma[c] * xhat;
    }
    for (i = 0; i < w->x_count; i++) {
        const size_t k = group_of(&g, i), c = i / w->S % w->C;
        const real xhat = ((real)w->x[i] - mean[k]) * rstd[k];
        real dx = inner_dy(w, i) * (real)w->gamma[c];
        if (w->layer != BENCH_FROZEN_NORM) dx -= along(w, place, k, i, xhat, m) * gx_sum[k];
        if (w->layer != BENCH_FROZEN_NORM && w->layer != BENCH_RMS_NORM) dx -= g_sum[k] / m;
        r->out[i] = (float)(rstd[k] * dx);
    }
    for (i = 0; i < w->C; i++) {
        r->dgamma[i] = (double)dgamma[i];
        r->dbeta[i] = w->layer == BENCH_RMS_NORM ? 0 : (double)dbeta[i];
    }
    free(sum);
    free(place);
    return 0;
}

static int norm(bench_reference *r, const bench_work *w)
{
    real *mean = (real *)calloc(2 * w->stats_count, sizeof *mean);
    real *rstd = mean + w->stats_count;
    int failed = 0;
    if (!mean) return -1;
    statistics(r, w, mean, rstd);
    if (w->pass == BENCH_BACKWARD)
        failed = norm_backward(r, w, mean, rstd);
    else
        norm_forward(r, w, mean, rstd);
    free(mean);
    return failed;
}

/* W = g*v/|v| column by column; backward dg, and dv = (g/|v|)*(dW - dg*v/|v|). */
static void weight_norm(bench_reference *r, const bench_work *w)
{
    const size_t in = w->N, out = w->C;
    size_t i, j;
    for (j = 0; j < out; j++) {
        real squares = 0, dot = 0, length;
        for (i = j; i < in * out; i += out) squares += (real)w->x[i] * (real)w->x[i];
        length = root(squares);
        r->mean[j] = (double)length;
        if (w->pass == BENCH_FORWARD) {
            for (i = j; i < in * out; i += out)
                r->out[i] = (float)((real)w->gamma[j] * (real)w->x[i] / length);
            continue;
        }
        for (i = j; i < in * out; i += out) dot += (real)w->dy[i] * (real)w->x[i] / length;
        r->dgamma[j] = (double)dot;
        for (i = j; i < in * out; i += out)
            r->out[i] = (float)((real)w->gamma[j] / length *
                                ((real)w->dy[i] - dot * (real)w->x[i] / length));
    }
}

static void activation(bench_reference *r, const bench_work *w)
{
    size_t i;
    for (i = 0; i < w->x_count; i++) {
        const real x = (real)w->x[i];
        real v, slope;
        if (w->layer == BENCH_RELU) {
            v = x > 0 ? x : 0;
            slope = x > 0;
        } else if (w->layer == BENCH_TANH) {
            const real e = w->pass == BENCH_FORWARD ? exponential(2 * x) : 1;
            v = (e - 1) / (e + 1);
            slope = 1 - x * x; /* backward passes are given the output */
        } else {
            v = w->pass == BENCH_FORWARD ? 1 / (1 + exponential(-x)) : 0;
            slope = x * (1 - x);
        }
        r->out[i] = (float)(w->pass == BENCH_FORWARD ? v : (real)w->dy[i] * slope);
    }
}

static void cross_entropy(bench_reference *r, const bench_work *w)
{
    const size_t C = w->C;
    real loss = 0;
    size_t n, c;
    for (n = 0; n < w->N; n++) {
        const float *x = w->x + n * C;
        float *out = r->out + n * C;
        const size_t label = (size_t)w->labels[n];
        real largest = (real)x[0], sum = 0;
        if (w->pass == BENCH_BACKWARD) {
            for (c = 0; c < C; c++) out[c] = (float)(((real)x[c] - (c == label)) / (real)w->N);
            continue;
        }
        for (c = 1; c < C; c++)
            if ((real)x[c] > largest) largest = (real)x[c];
        for (c = 0; c < C; c++) sum += exponential((real)x[c] - largest);
        for (c = 0; c < C; c++) out[c] = (float)(exponential((real)x[c] - largest) / sum);
        loss += logarithm(sum) + largest - (real)x[label];
    }
    r->loss = (double)(loss / (real)w->N);
}

static void linear_forward(bench_reference *r, const bench_work *w)
{
    size_t n, i, j;
    for (n = 0; n < w->N; n++)
        for (j = 0; j < w->S; j++) {
            real sum = (real)w->beta[j];
            for (i = 0; i < w->C; i++)
                sum += (real)w->x[n * w->C + i] * (real)w->gamma[i * w->S + j];
            r->out[n * w->S + j] = (float)sum;
        }
}

static void linear_backward(bench_reference *r, const bench_work *w)
{
    size_t n, i, j;
    for (n = 0; n < w->N; n++)
        for (i = 0; i < w->C; i++) {
            const real x = (real)w->x[n * w->C + i];
            real sum = 0;
            for (j = 0; j < w->S; j++) {
                const real dy = (real)w->dy[n * w->S + j];
                sum += dy * (real)w->gamma[i * w->S + j];
                r->dgamma[i * w->S + j] += (double)(x * dy);
            }
            r->out[n * w->C + i] = (float)sum;
        }
    for (n = 0; n < w->N; n++)
        for (j = 0; j < w->S; j++) r->dbeta[j] += (double)w->dy[n * w->S + j];
}

static int compute(bench_reference *r, const bench_work *w)
{
    const int backward = w->pass == BENCH_BACKWARD, norms = is_norm(w->layer);
    const int weights = w->layer == BENCH_WEIGHT_NORM;
    int failed = 0;
    r->has_gradients = backward && (norms || weights || w->layer == BENCH_LINEAR);
    r->has_stats = w->pass == BENCH_FORWARD && (norms || weights);
    r->has_running =
        w->pass == BENCH_FORWARD && norms && w->G == 0 && w->layer != BENCH_FROZEN_NORM;
    r->has_scale = w->pass == BENCH_FORWARD && w->layer == BENCH_NOISY_NORM;
    r->has_loss = w->pass == BENCH_FORWARD && w->layer == BENCH_CROSS_ENTROPY;
    if (norms)
        failed = norm(r, w);
    else if (weights)
        weight_norm(r, w);
    else if (w->layer == BENCH_CROSS_ENTROPY)
        cross_entropy(r, w);
    else if (w->layer != BENCH_LINEAR)
        activation(r, w);
    else if (backward)
        linear_backward(r, w);
    else
        linear_forward(r, w);
    return failed;
}

bench_reference *bench_reference_new(const bench_work *w)
{
    bench_reference *r = (bench_reference *)calloc(1, sizeof *r);
    if (!r) return NULL;
    r->out = (float *)calloc(w->out_count, sizeof(float));
    r->scale = (float *)calloc(w->x_count, sizeof(float));
    r->dgamma = doubles(w->gamma_count);
    r->dbeta = doubles(w->beta_count);
    r->mean = doubles(w->stats_count);
    r->rstd = doubles(w->stats_count);
    r->running_mean = doubles(w->C);
    r->running_var = doubles(w->C);
    if (!r->out || !r->scale || !r->dgamma || !r->dbeta || !r->mean || !r->rstd ||
        !r->running_mean || !r->running_var || compute(r, w)) {
        bench_reference_free(r);
        return NULL;
    }
    return r;
}

void bench_reference_free(bench_reference *r)
{
    if (!r) return;
    free(r->out);
    free(r->scale);
    free(r->dgamma);
    free(r->dbeta);
    free(r->mean);
    free(r->rstd);
    free(r->running_mean);
    free(r->running_var);
    free(r);
}
