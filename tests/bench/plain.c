/* plain.c - two contestants as one would write them in an afternoon, all in float:

       one-pass     the variance as E[x*x] - mean*mean, so that forward reads x once for it
       three-pass   mean, then variance, then output, each a simple loop over the row (or the
                    channel), and two loops for backward: the shape of many small C programs

   Both are weak where the mean is large beside the standard deviation; the benchmark's data are
   well-behaved, and the tolerance is twenty times ours. */
#include "bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

extern const bench_contestant bench_one_pass, bench_three_pass;

typedef struct scratch { /* [C] each */
    float *a, *b;
} scratch;

static int open_scratch(bench_work *w, void **state)
{
    scratch *s = (scratch *)malloc(sizeof *s);
    if (!s) return -1;
    s->a = (float *)calloc(w->C, sizeof(float));
    s->b = (float *)calloc(w->C, sizeof(float));
    *state = s;
    return s->a && s->b ? 0 : -1;
}

static void close_scratch(void *state)
{
    scratch *s = (scratch *)state;
    if (!s) return;
    free(s->a);
    free(s->b);
    free(s);
}

static void track(bench_work *w, size_t c, float mean, float var)
{
    const float m = (float)(w->N * w->S), weight = w->new_weight;
    w->running_mean[c] += weight * (mean - w->running_mean[c]);
    w->running_var[c] += weight * (var * m / (m - 1) - w->running_var[c]);
}

/* ---- batch norm: dense arrays row by row, images plane by plane ---- */

/* y = x*a[c] + b[c] */
static void apply(const bench_work *w, const float *a, const float *b)
{
    const size_t C = w->C, S = w->S;
    size_t n, c, s;
    for (n = 0; n < w->N; n++) {
        const float *x = w->x + n * C * S;
        float *y = w->out + n * C * S;
        if (S == 1) {
            for (c = 0; c < C; c++) y[c] = x[c] * a[c] + b[c];
            continue;
        }
        for (c = 0; c < C; c++)
            for (s = 0; s < S; s++) y[c * S + s] = x[c * S + s] * a[c] + b[c];
    }
}

/* a[c] += the sum of x, b[c] += the sum of its squares */
static void sums(const bench_work *w, float *a, float *b)
{
    const size_t C = w->C, S = w->S;
    size_t n, c, s;
    for (n = 0; n < w->N; n++) {
        const float *x = w->x + n * C * S;
        if (S == 1) {
            for (c = 0; c < C; c++) {
                a[c] += x[c];
                b[c] += x[c] * x[c];
            }
            continue;
        }
        for (c = 0; c < C; c++) {
            float first = 0, second = 0;
            for (s = 0; s < S; s++) {
                first += x[c * S + s];
                second += x[c * S + s] * x[c * S + s];
            }
            a[c] += first;
            b[c] += second;
        }
    }
}

/* a[c] += the sum of x; then, with the means in a, b[c] += the sum of (x - mean)^2 */
static void sum_only(const bench_work *w, float *a)
{
    const size_t C = w->C, S = w->S;
    size_t n, c, s;
    for (n = 0; n < w->N; n++) {
        const float *x = w->x + n * C * S;
        if (S == 1) {
            for (c = 0; c < C; c++) a[c] += x[c];
            continue;
        }
        for (c = 0; c < C; c++) {
            float sum = 0;
            for (s = 0; s < S; s++) sum += x[c * S + s];
            a[c] += sum;
        }
    }
}

static void squares(const bench_work *w, const float *mean, float *b)
{
    const size_t C = w->C, S = w->S;
    size_t n, c, s;
    for (n = 0; n < w->N; n++) {
        const float *x = w->x + n * C * S;
        if (S == 1) {
            for (c = 0; c < C; c++) b[c] += (x[c] - mean[c]) * (x[c] - mean[c]);
            continue;
        }
        for (c = 0; c < C; c++) {
            float sum = 0;
            for (s = 0; s < S; s++) sum += (x[c * S + s] - mean[c]) * (x[c * S + s] - mean[c]);
            b[c] += sum;
        }
    }
}

/* From mean and variance to the factors of y = x*a + b, which take their place. */
static void finish(bench_work *w, float *mean, float *var)
{
    size_t c;
    for (c = 0; c < w->C; c++) {
        const float rstd = 1 / sqrtf(var[c] + w->eps);
        w->mean32[c] = mean[c];
        w->rstd32[c] = rstd;
        track(w, c, mean[c], var[c]);
        var[c] = w->beta[c] - mean[c] * rstd * w->gamma[c];
        mean[c] = rstd * w->gamma[c];
    }
}

static int one_pass_batch_forward(bench_work *w, void *state)
{
    const scratch *s = (const scratch *)state;
    const float m = (float)(w->N * w->S);
    size_t c;
    memset(s->a, 0, w->C * sizeof(float));
    memset(s->b, 0, w->C * sizeof(float));
    sums(w, s->a, s->b);
    for (c = 0; c < w->C; c++) {
        s->a[c] /= m;
        s->b[c] = s->b[c] / m - s->a[c] * s->a[c];
    }
    finish(w, s->a, s->b);
    apply(w, s->a, s->b);
    return 0;
}

static int three_pass_batch_forward(bench_work *w, void *state)
{
    const scratch *s = (const scratch *)state;
    const float m = (float)(w->N * w->S);
    size_t c;
    memset(s->a, 0, w->C * sizeof(float));
    memset(s->b, 0, w->C * sizeof(float));
    sum_only(w, s->a);
    for (c = 0; c < w->C; c++) s->a[c] /= m;
    squares(w, s->a, s->b);
    for (c = 0; c < w->C; c++) s->b[c] /= m;
    finish(w, s->a, s->b);
    apply(w, s->a, s->b);
    return 0;
}

static int batch_inference(bench_work *w, void *state)
{
    const scratch *s = (const scratch *)state;
    size_t c;
    for (c = 0; c < w->C; c++) {
        s->a[c] = w->gamma[c] / sqrtf(w->running_var[c] + w->eps);
        s->b[c] = w->beta[c] - w->running_mean[c] * s->a[c];
    }
    apply(w, s->a, s->b);
    return 0;
}

/* a[c] += the sum of dy, b[c] += that of dy*xhat */
static void gradient_sums(const bench_work *w, float *a, float *b)
{
    const size_t C = w->C, S = w->S;
    size_t n, c, s;
    for (n = 0; n < w->N; n++) {
        const float *x = w->x + n * C * S, *dy = w->dy + n * C * S;
        if (S == 1) {
            for (c = 0; c < C; c++) {
                a[c] += dy[c];
                b[c] += dy[c] * (x[c] - w->mean32[c]) * w->rstd32[c];
            }
            continue;
        }
        for (c = 0; c < C; c++) {
            float first = 0, second = 0;
            for (s = 0; s < S; s++) {
                first += dy[c * S + s];
                second += dy[c * S + s] * (x[c * S + s] - w->mean32[c]);
            }
            a[c] += first;
            b[c] += second * w->rstd32[c];
        }
    }
}

static int batch_backward(bench_work *w, void *state)
{
    const scratch *k = (const scratch *)state;
    const size_t C = w->C, S = w->S;
    const float m = (float)(w->N * S);
    size_t n, c, s;
    memset(k->a, 0, C * sizeof(float));
    memset(k->b, 0, C * sizeof(float));
    gradient_sums(w, k->a, k->b);
    for (c = 0; c < C; c++) {
        w->dbeta[c] += k->a[c];
        w->dgamma[c] += k->b[c];
        k->a[c] /= m;
        k->b[c] *= w->rstd32[c] / m;
    }
    for (n = 0; n < w->N; n++) {
        const float *x = w->x + n * C * S, *dy = w->dy + n * C * S;
        float *dx = w->out + n * C * S;
        if (S == 1) {
            for (c = 0; c < C; c++)
                dx[c] = w->gamma[c] * w->rstd32[c] *
                        (dy[c] - k->a[c] - (x[c] - w->mean32[c]) * k->b[c]);
            continue;
        }
        for (c = 0; c < C; c++)
            for (s = c * S; s < c * S + S; s++)
                dx[s] = w->gamma[c] * w->rstd32[c] *
                        (dy[s] - k->a[c] - (x[s] - w->mean32[c]) * k->b[c]);
    }
    return 0;
}

/* ---- group, instance and layer norm: G groups of K = C/G channels to an example ---- */

/* y of group k of example n */
static void normalize_group(const bench_work *w, size_t n, size_t k, float mean, float rstd)
{
    const size_t K = w->C / w->G, S = w->S;
    const float *gamma = w->gamma + k * K, *beta = w->beta + k * K;
    const float *x = w->x + (n * w->G + k) * K * S;
    float *y = w->out + (n * w->G + k) * K * S;
    size_t c, s;
    if (S == 1) {
        for (c = 0; c < K; c++) y[c] = (x[c] - mean) * rstd * gamma[c] + beta[c];
    } else {
        for (c = 0; c < K; c++)
            for (s = 0; s < S; s++)
                y[c * S + s] = (x[c * S + s] - mean) * rstd * gamma[c] + beta[c];
    }
    w->mean32[n * w->G + k] = mean;
    w->rstd32[n * w->G + k] = rstd;
}

static int one_pass_group_forward(bench_work *w, void *state)
{
    const size_t D = w->C / w->G * w->S;
    size_t row, i;
    (void)state;
    for (row = 0; row < w->N * w->G; row++) {
        const float *x = w->x + row * D;
        float sum = 0, square = 0, mean;
        for (i = 0; i < D; i++) {
            sum += x[i];
            square += x[i] * x[i];
        }
        mean = sum / (float)D;
        normalize_group(w, row / w->G, row % w->G, mean,
                        1 / sqrtf(square / (float)D - mean * mean + w->eps));
    }
    return 0;
}

static int three_pass_group_forward(bench_work *w, void *state)
{
    const size_t D = w->C / w->G * w->S;
    size_t row, i;
    (void)state;
    for (row = 0; row < w->N * w->G; row++) {
        const float *x = w->x + row * D;
        float mean = 0, var = 0;
        for (i = 0; i < D; i++) mean += x[i];
        mean /= (float)D;
        for (i = 0; i < D; i++) var += (x[i] - mean) * (x[i] - mean);
        normalize_group(w, row / w->G, row % w->G, mean, 1 / sqrtf(var / (float)D + w->eps));
    }
    return 0;
}

/* That of layer norm, row by row. */
static int layer_backward(bench_work *w, void *state)
{
    const size_t D = w->C;
    size_t n, i;
    (void)state;
    for (n = 0; n < w->N; n++) {
        const float *x = w->x + n * D, *dy = w->dy + n * D;
        const float mean = w->mean32[n], rstd = w->rstd32[n];
        float *dx = w->out + n * D, g_mean = 0, gx_mean = 0;
        for (i = 0; i < D; i++) {
            const float g = dy[i] * w->gamma[i];
            g_mean += g;
            gx_mean += g * ((x[i] - mean) * rstd);
        }
        g_mean /= (float)D;
        gx_mean /= (float)D;
        for (i = 0; i < D; i++) {
            const float xhat = (x[i] - mean) * rstd;
            w->dbeta[i] += dy[i];
            w->dgamma[i] += dy[i] * xhat;
            dx[i] = rstd * (dy[i] * w->gamma[i] - g_mean - xhat * gx_mean);
        }
    }
    return 0;
}

static int group_backward(bench_work *w, void *state)
{
    const size_t K = w->C / w->G, S = w->S, m = K * S;
    size_t row, c, s;
    (void)state;
    for (row = 0; row < w->N * w->G; row++) {
        const float *gamma = w->gamma + row % w->G * K;
        const float mean = w->mean32[row], rstd = w->rstd32[row];
        float *dgamma = w->dgamma + row % w->G * K, *dbeta = w->dbeta + row % w->G * K;
        float g_mean = 0, gx_mean = 0;
        for (c = 0; c < K; c++) {
            const float *x = w->x + row * m + c * S, *dy = w->dy + row * m + c * S;
            float sum = 0, sum_x = 0;
            for (s = 0; s < S; s++) {
                sum += dy[s];
                sum_x += dy[s] * ((x[s] - mean) * rstd);
            }
            dbeta[c] += sum;
            dgamma[c] += sum_x;
            g_mean += gamma[c] * sum;
            gx_mean += gamma[c] * sum_x;
        }
        g_mean /= (float)m;
        gx_mean /= (float)m;
        for (c = 0; c < K; c++) {
            const float *x = w->x + row * m + c * S, *dy = w->dy + row * m + c * S;
            float *dx = w->out + row * m + c * S;
            for (s = 0; s < S; s++)
                dx[s] = rstd * (dy[s] * gamma[c] - g_mean - (x[s] - mean) * rstd * gx_mean);
        }
    }
    return 0;
}

/* ---- RMS norm ---- */

static int rms_forward(bench_work *w, void *state)
{
    const size_t D = w->C;
    size_t n, i;
    (void)state;
    for (n = 0; n < w->N; n++) {
        const float *x = w->x + n * D;
        float *y = w->out + n * D, square = 0, rstd;
        for (i = 0; i < D; i++) square += x[i] * x[i];
        rstd = 1 / sqrtf(square / (float)D + w->eps);
        for (i = 0; i < D; i++) y[i] = x[i] * rstd * w->gamma[i];
        w->rstd32[n] = rstd;
    }
    return 0;
}

static int rms_backward(bench_work *w, void *state)
{
    const size_t D = w->C;
    size_t n, i;
    (void)state;
    for (n = 0; n < w->N; n++) {
        const float *x = w->x + n * D, *dy = w->dy + n * D;
        const float rstd = w->rstd32[n];
        float *dx = w->out + n * D, gx_mean = 0;
        for (i = 0; i < D; i++) gx_mean += dy[i] * w->gamma[i] * (x[i] * rstd);
        gx_mean /= (float)D;
        for (i = 0; i < D; i++) {
            w->dgamma[i] += dy[i] * (x[i] * rstd);
            dx[i] = rstd * (dy[i] * w->gamma[i] - x[i] * rstd * gx_mean);
        }
    }
    return 0;
}

/* ---- Lp batch norm ---- */

static float joined(int layer, float size, float x)
{
    const float a = fabsf(x);
    return layer == BENCH_L1_NORM ? size + a : a > size ? a : size;
}

/* size[c]: the sum of |x|, or the largest */
static void sizes(const bench_work *w, float *size)
{
    const size_t C = w->C, S = w->S;
    size_t n, c, s;
    for (n = 0; n < w->N; n++) {
        const float *x = w->x + n * C * S;
        if (S == 1) {
            for (c = 0; c < C; c++) size[c] = joined(w->layer, size[c], x[c]);
            continue;
        }
        for (c = 0; c < C; c++) {
            float of_run = 0;
            for (s = 0; s < S; s++) of_run = joined(w->layer, of_run, x[c * S + s]);
            size[c] = w->layer == BENCH_L1_NORM ? size[c] + of_run : fmaxf(size[c], of_run);
        }
    }
}

static int lp_forward(bench_work *w, void *state)
{
    const scratch *s = (const scratch *)state;
    const float m = (float)(w->N * w->S);
    size_t c;
    memset(s->a, 0, w->C * sizeof(float));
    memset(s->b, 0, w->C * sizeof(float));
    sum_only(w, s->a);
    sizes(w, s->b);
    for (c = 0; c < w->C; c++) {
        const float mean = s->a[c] / m, t = w->layer == BENCH_L1_NORM ? s->b[c] / m : s->b[c];
        w->mean32[c] = mean;
        w->rstd32[c] = t;
        w->running_mean[c] += w->new_weight * (mean - w->running_mean[c]);
        w->running_var[c] += w->new_weight * (t - w->running_var[c]);
        s->a[c] = w->gamma[c] / (t + w->eps);
        s->b[c] = w->beta[c] - mean * s->a[c];
    }
    apply(w, s->a, s->b);
    return 0;
}

/* The slope of |x|; for the largest only where |x| is t, which is then spent. */
static float slope_of(int layer, float x, float *t)
{
    const float sign = (float)((x > 0) - (x < 0));
    if (layer == BENCH_L1_NORM) return sign;
    if (fabsf(x) != *t) return 0;
    *t = -1;
    return sign;
}

static int lp_backward(bench_work *w, void *state)
{
    const scratch *k = (const scratch *)state;
    const size_t C = w->C, S = w->S;
    const float m = (float)(w->N * S);
    size_t n, c, s;
    memset(k->a, 0, C * sizeof(float));
    memset(k->b, 0, C * sizeof(float));
    for (n = 0; n < w->N; n++)
        for (c = 0; c < C; c++) {
            const float *x = w->x + (n * C + c) * S, *dy = w->dy + (n * C + c) * S;
            float first = 0, second = 0;
            for (s = 0; s < S; s++) {
                first += dy[s];
                second += dy[s] * (x[s] - w->mean32[c]);
            }
            k->a[c] += first;
            k->b[c] += second;
        }
    for (c = 0; c < C; c++) {
        const float sum_x = k->b[c] / (w->rstd32[c] + w->eps);
        w->dbeta[c] += k->a[c];
        w->dgamma[c] += sum_x;
        k->a[c] /= m;
        k->b[c] = w->layer == BENCH_L1_NORM ? sum_x / m : sum_x;
    }
    for (c = 0; c < C; c++) {
        const float factor = w->gamma[c] / (w->rstd32[c] + w->eps);
        float t = w->rstd32[c];
        for (n = 0; n < w->N; n++) {
            const float *x = w->x + (n * C + c) * S, *dy = w->dy + (n * C + c) * S;
            float *dx = w->out + (n * C + c) * S;
            for (s = 0; s < S; s++)
                dx[s] = factor * (dy[s] - k->a[c] - slope_of(w->layer, x[s], &t) * k->b[c]);
        }
    }
    return 0;
}

/* ---- weight norm: columns of [N][C], row by row ---- */

static int weight_forward(bench_work *w, void *state)
{
    const scratch *k = (const scratch *)state;
    const size_t C = w->C;
    size_t i, c;
    memset(k->a, 0, C * sizeof(float));
    for (i = 0; i < w->N; i++)
        for (c = 0; c < C; c++) k->a[c] += w->x[i * C + c] * w->x[i * C + c];
    for (c = 0; c < C; c++) {
        w->mean32[c] = sqrtf(k->a[c]);
        k->a[c] = w->gamma[c] / w->mean32[c];
    }
    for (i = 0; i < w->N; i++)
        for (c = 0; c < C; c++) w->out[i * C + c] = w->x[i * C + c] * k->a[c];
    return 0;
}

static int weight_backward(bench_work *w, void *state)
{
    const scratch *k = (const scratch *)state;
    const size_t C = w->C;
    size_t i, c;
    memset(k->b, 0, C * sizeof(float));
    for (i = 0; i < w->N; i++)
        for (c = 0; c < C; c++) k->b[c] += w->dy[i * C + c] * w->x[i * C + c];
    for (c = 0; c < C; c++) {
        w->dgamma[c] += k->b[c] / w->mean32[c];
        k->b[c] /= w->mean32[c] * w->mean32[c];
        k->a[c] = w->gamma[c] / w->mean32[c];
    }
    for (i = 0; i < w->N; i++)
        for (c = 0; c < C; c++)
            w->out[i * C + c] += k->a[c] * (w->dy[i * C + c] - k->b[c] * w->x[i * C + c]);
    return 0;
}

const bench_contestant bench_one_pass = {
    "one-pass",
    "plain C, E[x*x] - mean*mean, -O3 -march=native",
    0,
    1e-4,
    open_scratch,
    NULL,
    close_scratch,
    {
        [BENCH_BATCH_NORM] = {one_pass_batch_forward, NULL, batch_inference},
        [BENCH_LAYER_NORM] = {one_pass_group_forward, NULL, one_pass_group_forward},
        [BENCH_GROUP_NORM] = {one_pass_group_forward},
        [BENCH_INSTANCE_NORM] = {one_pass_group_forward},
        [BENCH_SYNC_NORM] = {one_pass_batch_forward},
    },
};

const bench_contestant bench_three_pass = {
    "three-pass",
    "plain C, a loop for each sum, -O3 -march=native",
    0,
    1e-4,
    open_scratch,
    NULL,
    close_scratch,
    {
        [BENCH_BATCH_NORM] = {three_pass_batch_forward, batch_backward},
        [BENCH_LAYER_NORM] = {three_pass_group_forward, layer_backward, three_pass_group_forward},
        [BENCH_GROUP_NORM] = {three_pass_group_forward, group_backward},
        [BENCH_INSTANCE_NORM] = {three_pass_group_forward, group_backward},
        [BENCH_RMS_NORM] = {rms_forward, rms_backward},
        [BENCH_L1_NORM] = {lp_forward, lp_backward},
        [BENCH_LINF_NORM] = {lp_forward, lp_backward},
        [BENCH_SYNC_NORM] = {three_pass_batch_forward, batch_backward},
        [BENCH_WEIGHT_NORM] = {weight_forward, weight_backward},
    },
};
