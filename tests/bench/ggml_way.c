/* ggml_way.c - layer and RMS norm the way ggml computes them on the CPU, written anew in plain C:

     the sums in double, by a simple loop over the row;
     y written once without gamma, then y*gamma, then y + beta, each a pass of its own over the
     tensor (they are nodes of their own in ggml's graph, and its graph is run node by node);
     a dense row goes to a copy, which is then scaled in place (RMS norm).

   Only the forward pass without saved statistics: that is what it is used for. */
#include "bench.h"

#include <math.h>
#include <string.h>

extern const bench_contestant bench_ggml_way;

static void scale_row(float *y, float by, size_t D)
{
    size_t i;
    for (i = 0; i < D; i++) y[i] *= by;
}

static void times_gamma(bench_work *w)
{
    size_t n, i;
    for (n = 0; n < w->N; n++)
        for (i = 0; i < w->C; i++) w->out[n * w->C + i] *= w->gamma[i];
}

static int layer_norm(bench_work *w, void *state)
{
    const size_t D = w->C;
    size_t n, i;
    (void)state;
    for (n = 0; n < w->N; n++) {
        const float *x = w->x + n * D;
        float *y = w->out + n * D, mean;
        double sum = 0, squares = 0;
        for (i = 0; i < D; i++) sum += (double)x[i];
        mean = (float)(sum / (double)D);
        for (i = 0; i < D; i++) {
            const float d = x[i] - mean;
            y[i] = d;
            squares += (double)(d * d);
        }
        scale_row(y, 1 / sqrtf((float)(squares / (double)D) + w->eps), D);
    }
    times_gamma(w);
    for (n = 0; n < w->N; n++)
        for (i = 0; i < D; i++) w->out[n * D + i] += w->beta[i];
    return 0;
}

static int rms_norm(bench_work *w, void *state)
{
    const size_t D = w->C;
    size_t n, i;
    (void)state;
    for (n = 0; n < w->N; n++) {
        const float *x = w->x + n * D;
        float *y = w->out + n * D;
        double squares = 0;
        for (i = 0; i < D; i++) squares += (double)(x[i] * x[i]);
        memcpy(y, x, D * sizeof *y);
        scale_row(y, 1 / sqrtf((float)(squares / (double)D) + w->eps), D);
    }
    times_gamma(w);
    return 0;
}

#define NONE                                                                                       \
    {                                                                                              \
        NULL, NULL, NULL                                                                           \
    }

const bench_contestant bench_ggml_way = {
    "ggml-way",
    "the loops of ggml's CPU norms, written anew, -O3 -march=native",
    BENCH_NO_STATS,
    1e-4,
    NULL,
    NULL,
    NULL,
    {
        NONE,
        NONE,
        NONE,
        {layer_norm, NULL, layer_norm},
        NONE,
        NONE,
        NONE,
        NONE,
        NONE,
        NONE,
        NONE,
        {rms_norm, NULL, NULL},
    },
};
