/* layers.c - an interleaved micro-benchmark of all layers: ours in several builds, plain loops,
   other libraries, and the least that anybody could do.

   A machine that does other things too makes absolute times worth little: here a run of one
   contestant may meet a busy minute and the next one a quiet one. So one process holds all
   contestants, and a round times each of them once, A B C ..., A B C ...; what counts is the
   median over the rounds of the ratio of two times of the same round. Before that, everybody's
   results are compared with those of the header in double, and who is wrong is not timed.

   The table of results goes to the terminal while it grows, and to OUT/layers.csv and
   OUT/layers.md. picture.c draws it. */
#define _POSIX_C_SOURCE 200809L
#include "lab/files.c"
#include "lab/csv.c"
#include "lab/cli.c"
#include "lab/stats.c"

#include "bench.h"
#include "normlayers.h"

#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- contestants ---- */

extern const bench_contestant bench_limit, bench_ours_native, bench_ours_O2, bench_ours_O3,
    bench_one_pass, bench_three_pass, bench_ggml_way;
#ifdef BENCH_TORCH
extern const bench_contestant bench_torch;
#endif
#ifdef BENCH_ONEDNN
extern const bench_contestant bench_onednn;
#endif

static const bench_contestant *const contestants[] = {
    &bench_limit,    &bench_ours_native, &bench_ours_O3,  &bench_ours_O2,
    &bench_one_pass, &bench_three_pass,  &bench_ggml_way,
#ifdef BENCH_TORCH
    &bench_torch,
#endif
#ifdef BENCH_ONEDNN
    &bench_onednn,
#endif
};

enum { LIMIT = 0, OURS = 1, CONTESTANTS = sizeof contestants / sizeof *contestants };

/* ---- cases ---- */

typedef struct bench_shape {
    int layer;
    size_t N, C, H, W; /* H, W: of an image, else 1; the linear layer's outputs are W */
    int inference;     /* does it have such a pass? */
    size_t G;          /* groups of an example that have statistics of their own; 0: channels */
} bench_shape;

static const bench_shape shapes[] = {
    {BENCH_BATCH_NORM, 64, 64, 1, 1, 1, 0},
    {BENCH_BATCH_NORM, 64, 128, 1, 1, 1, 0},
    {BENCH_BATCH_NORM, 128, 1000, 1, 1, 1, 0},
    {BENCH_BATCH_NORM, 4096, 1024, 1, 1, 1, 0},
    {BENCH_BATCH_NORM, 32, 64, 56, 56, 1, 0},
    {BENCH_BATCH_NORM, 32, 128, 14, 14, 1, 0},
    {BENCH_LAYER_NORM, 64, 128, 1, 1, 1, 1},
    {BENCH_LAYER_NORM, 128, 1000, 1, 1, 1, 1},
    {BENCH_LAYER_NORM, 8192, 768, 1, 1, 1, 1},
    {BENCH_LAYER_NORM, 4096, 4096, 1, 1, 1, 1},
    {BENCH_FROZEN_NORM, 64, 128, 1, 1, 0, 0},
    {BENCH_FROZEN_NORM, 4096, 1024, 1, 1, 0, 0},
    {BENCH_NOISY_NORM, 64, 128, 1, 1, 0, 0},
    {BENCH_NOISY_NORM, 4096, 1024, 1, 1, 0, 0},
    {BENCH_RELU, 64, 128, 1, 1, 0, 0},
    {BENCH_RELU, 4096, 1024, 1, 1, 0, 0},
    {BENCH_TANH, 64, 128, 1, 1, 0, 0},
    {BENCH_TANH, 4096, 1024, 1, 1, 0, 0},
    {BENCH_SIGMOID, 64, 128, 1, 1, 0, 0},
    {BENCH_SIGMOID, 4096, 1024, 1, 1, 0, 0},
    {BENCH_CROSS_ENTROPY, 128, 10, 1, 1, 0, 0},
    {BENCH_CROSS_ENTROPY, 4096, 1000, 1, 1, 0, 0},
    {BENCH_LINEAR, 64, 784, 1, 64, 0, 0},
    {BENCH_LINEAR, 64, 64, 1, 128, 0, 0},
    {BENCH_LINEAR, 128, 1000, 1, 1000, 0, 0},
    {BENCH_GROUP_NORM, 64, 128, 1, 1, 0, 8},
    {BENCH_GROUP_NORM, 8192, 768, 1, 1, 0, 32},
    {BENCH_GROUP_NORM, 32, 64, 56, 56, 0, 8},
    {BENCH_GROUP_NORM, 32, 128, 14, 14, 0, 32},
    {BENCH_INSTANCE_NORM, 32, 64, 56, 56, 0, 64},
    {BENCH_INSTANCE_NORM, 32, 128, 14, 14, 0, 128},
    {BENCH_RMS_NORM, 64, 128, 1, 1, 0, 1},
    {BENCH_RMS_NORM, 8192, 768, 1, 1, 0, 1},
    {BENCH_RMS_NORM, 4096, 4096, 1, 1, 0, 1},
    {BENCH_L1_NORM, 64, 128, 1, 1, 0, 0},
    {BENCH_L1_NORM, 4096, 1024, 1, 1, 0, 0},
    {BENCH_L1_NORM, 32, 64, 56, 56, 0, 0},
    {BENCH_LINF_NORM, 64, 128, 1, 1, 0, 0},
    {BENCH_LINF_NORM, 4096, 1024, 1, 1, 0, 0},
    {BENCH_LINF_NORM, 32, 64, 56, 56, 0, 0},
    {BENCH_SYNC_NORM, 64, 128, 1, 1, 0, 0},
    {BENCH_SYNC_NORM, 4096, 1024, 1, 1, 0, 0},
    {BENCH_SYNC_NORM, 32, 64, 56, 56, 0, 0},
    {BENCH_WEIGHT_NORM, 784, 64, 1, 1, 0, 0},
    {BENCH_WEIGHT_NORM, 1000, 1000, 1, 1, 0, 0},
};

static const char *const layer_names[BENCH_LAYERS] = {
    "batchnorm", "frozen",   "noisy",  "layernorm", "relu",         "tanh",
    "sigmoid",   "entropy",  "linear", "groupnorm", "instancenorm", "rmsnorm",
    "l1norm",    "linfnorm", "sync",   "weightnorm"};
static const char *const pass_names[BENCH_PASSES] = {"fwd", "bwd", "inf"};

enum { NAME_MAX_LENGTH = 64 };

#define NONE ((double)NAN) /* not measured */

typedef struct bench_case {
    bench_shape shape;
    int pass;
    char size[NAME_MAX_LENGTH], name[2 * NAME_MAX_LENGTH]; /* "64x128", "batchnorm/64x128/fwd";
                                                              "64x128g8": in 8 groups */
} bench_case;

/* What one contestant did in one case. */
typedef struct bench_score {
    int has;             /* it has this layer and pass, and could be made ready             */
    int right;           /* its results are within its tolerance                            */
    double error;        /* the largest, relative to the largest element of the same array  */
    double seconds;      /* median of a call                                                */
    double percent;      /* median of 100 * limit / time                                    */
    double against_ours; /* median of time / ours                                          */
} bench_score;

typedef struct bench_settings {
    const char *only, *contestants, *out;
    size_t rounds;
    double ms; /* of one measurement, at least */
    int quick;
} bench_settings;

static void shape_size(const bench_shape *s, char *text)
{
    if (s->layer == BENCH_LINEAR)
        snprintf(text, NAME_MAX_LENGTH, "%zux%zux%zu", s->N, s->C, s->W);
    else if (s->W > 1)
        snprintf(text, NAME_MAX_LENGTH, "%zux%zux%zux%zu", s->N, s->C, s->H, s->W);
    else
        snprintf(text, NAME_MAX_LENGTH, "%zux%zu", s->N, s->C);
    if (s->layer == BENCH_GROUP_NORM) {
        const size_t used = strlen(text);
        snprintf(text + used, NAME_MAX_LENGTH - used, "g%zu", s->G);
    }
}

/* For --quick: fewer examples, so that every loop still has its tail and its many columns. */
static void shrink(bench_shape *s)
{
    const size_t most = s->layer == BENCH_LINEAR ? (size_t)1 << 23 : (size_t)1 << 17;
    while (s->N > 4 && s->N * s->C * s->H * s->W > most) s->N /= 2;
}

static bench_case make_case(const bench_shape *s, int pass, int quick)
{
    bench_case c;
    c.shape = *s;
    c.pass = pass;
    if (quick) shrink(&c.shape);
    shape_size(&c.shape, c.size);
    snprintf(c.name, sizeof c.name, "%s/%s/%s", layer_names[s->layer], c.size, pass_names[pass]);
    return c;
}

/* Is `name` among `patterns`: words or globs, each may match anywhere, separated by commas? */
static int wanted(const char *name, const char *patterns)
{
    while (patterns && *patterns) {
        char glob[256];
        const int length = (int)strcspn(patterns, ",");
        snprintf(glob, sizeof glob, "*%.*s*", length, patterns);
        if (fnmatch(glob, name, 0) == 0) return 1;
        patterns += length;
        patterns += *patterns == ',';
    }
    return patterns == NULL;
}

/* ---- the work of a case ---- */

/* Large blocks begin at the same place within a page, as those of malloc do. (Stores and loads
   whose addresses differ by whole pages may get in each other's way: let it be as in real life.) */
static void *aligned(size_t count, size_t size)
{
    const size_t bytes = (count ? count : 1) * size;
    void *p = NULL;
    if (posix_memalign(&p, bytes < 128 * 1024 ? 64 : 4096, bytes)) return NULL;
    memset(p, 0, bytes);
    return p;
}

static float *floats(size_t count)
{
    return (float *)aligned(count, sizeof(float));
}

static uint64_t next_random(uint64_t *state) /* splitmix64 */
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* A bell of mean m and standard deviation s: the sum of four uniform numbers of 16 bits. */
static void fill(float *a, size_t n, double m, double s, uint64_t seed)
{
    size_t i;
    for (i = 0; i < n; i++) {
        const uint64_t z = next_random(&seed);
        const double sum =
            (double)((z & 0xffff) + (z >> 16 & 0xffff) + (z >> 32 & 0xffff) + (z >> 48));
        a[i] = (float)(m + s * (sum / 65536.0 - 2) * 1.7320508);
    }
}

typedef struct bench_buffers { /* what a bench_work points at, writable */
    float *x, *dy, *gamma, *beta, *scale;
    int *labels;
} bench_buffers;

static void sizes(bench_work *w)
{
    const int linear = w->layer == BENCH_LINEAR;
    w->x_count = linear ? w->N * w->C : w->N * w->C * w->S;
    w->dy_count = linear ? w->N * w->S : w->x_count;
    w->out_count = w->pass == BENCH_BACKWARD ? w->x_count : w->dy_count;
    w->gamma_count = linear ? w->C * w->S : w->C;
    w->beta_count = linear ? w->S : w->C;
    w->stats_count = w->G > 0 ? w->N * w->G : w->C;
}

/* The running statistics and gradients from which every contestant starts. */
static void reset(bench_work *w)
{
    size_t c;
    for (c = 0; c < w->C; c++) {
        w->running_mean[c] = (float)(0.5 + 0.01 * (double)(c % 7));
        w->running_var[c] = (float)(1 + 0.05 * (double)(c % 5));
    }
    memset(w->dgamma, 0, w->gamma_count * sizeof(float));
    memset(w->dbeta, 0, w->beta_count * sizeof(float));
}

/* Backward passes of activations and cross-entropy start from the forward pass's output. */
static int forward_first(bench_work *w, float *x)
{
    const int after = w->layer >= BENCH_RELU && w->layer <= BENCH_CROSS_ENTROPY;
    bench_work forward = *w;
    bench_reference *r;
    if (w->pass != BENCH_BACKWARD || !after) return 0;
    forward.pass = BENCH_FORWARD;
    r = bench_reference_new(&forward);
    if (!r) return -1;
    memcpy(x, r->out, w->x_count * sizeof(float));
    bench_reference_free(r);
    return 0;
}

static void work_free(bench_work *w, bench_buffers *b)
{
    free(b->x);
    free(b->dy);
    free(b->gamma);
    free(b->beta);
    free(b->scale);
    free(b->labels);
    free(w->out);
    free(w->dgamma);
    free(w->dbeta);
    free(w->mean);
    free(w->rstd);
    free(w->mean32);
    free(w->rstd32);
    free(w->running_mean);
    free(w->running_var);
}

static int allocate(bench_work *w, bench_buffers *b)
{
    w->x = b->x = floats(w->x_count);
    w->dy = b->dy = floats(w->pass == BENCH_BACKWARD ? w->dy_count : 0);
    w->gamma = b->gamma = floats(w->gamma_count);
    w->beta = b->beta = floats(w->beta_count);
    w->scale = b->scale = floats(w->layer == BENCH_NOISY_NORM ? w->x_count : 0);
    w->labels = b->labels = (int *)aligned(w->N, sizeof(int));
    w->out = floats(w->out_count);
    w->dgamma = floats(w->gamma_count);
    w->dbeta = floats(w->beta_count);
    w->mean = (double *)aligned(w->stats_count, sizeof(double));
    w->rstd = (double *)aligned(w->stats_count, sizeof(double));
    w->mean32 = floats(w->stats_count);
    w->rstd32 = floats(w->stats_count);
    w->running_mean = floats(w->C);
    w->running_var = floats(w->C);
    return b->x && b->dy && b->gamma && b->beta && b->scale && b->labels && w->out && w->dgamma &&
                   w->dbeta && w->mean && w->rstd && w->mean32 && w->rstd32 && w->running_mean &&
                   w->running_var
               ? 0
               : -1;
}

/* Mean 0.5 and standard deviation 1, which nobody should find hard. */
static int work_new(bench_work *w, bench_buffers *b, const bench_case *c)
{
    uint64_t seed = 1;
    size_t n;
    memset(w, 0, sizeof *w);
    memset(b, 0, sizeof *b);
    w->layer = c->shape.layer;
    w->pass = c->pass;
    w->N = c->shape.N;
    w->C = c->shape.C;
    w->S = c->shape.H * c->shape.W;
    w->G = c->shape.G;
    w->eps = 1e-5f;
    w->new_weight = 0.1f;
    sizes(w);
    if (allocate(w, b)) return -1;
    fill(b->x, w->x_count, 0.5, 1, 10);
    if (w->pass == BENCH_BACKWARD) fill(b->dy, w->dy_count, 0.1, 1, 11);
    if (w->layer == BENCH_NOISY_NORM) fill(b->scale, w->x_count, 1.1, 0.1, 12);
    fill(b->gamma, w->gamma_count, w->layer == BENCH_LINEAR ? 0 : 1, 0.2, 13);
    fill(b->beta, w->beta_count, 0, 0.2, 14);
    for (n = 0; n < w->N; n++) b->labels[n] = (int)(next_random(&seed) % w->C);
    reset(w);
    return forward_first(w, b->x);
}

/* ---- is it right? ---- */

static double worst_float(const float *got, const float *want, size_t n)
{
    double worst = 0, largest = 0;
    size_t i;
    for (i = 0; i < n; i++) {
        const double e = fabs((double)got[i] - (double)want[i]), a = fabs((double)want[i]);
        if (!(e <= worst)) worst = e; /* a NaN stays */
        if (a > largest) largest = a;
    }
    return worst / (largest > 0 ? largest : 1);
}

/* The same where the reference is double, and `got` is float or (wide) double. */
static double worst_double(const float *got, const double *wide, const double *want, size_t n)
{
    double worst = 0, largest = 0;
    size_t i;
    for (i = 0; i < n; i++) {
        const double e = fabs((wide ? wide[i] : (double)got[i]) - want[i]), a = fabs(want[i]);
        if (!(e <= worst)) worst = e;
        if (a > largest) largest = a;
    }
    return worst / (largest > 0 ? largest : 1);
}

static double larger(double a, double b)
{
    return a >= b || a != a ? a : b;
}

static double error_of(const bench_contestant *k, const bench_work *w, const bench_reference *r)
{
    const int wide = k->traits & BENCH_WIDE_STATS;
    /* those of a frozen norm are the running ones: others need not save them again */
    const int saves = !(k->traits & BENCH_NO_STATS) && (wide || w->layer != BENCH_FROZEN_NORM);
    double e = worst_float(w->out, r->out, w->out_count);
    if (r->has_scale) e = larger(e, worst_float(w->scale, r->scale, w->x_count));
    if (r->has_gradients) {
        e = larger(e, worst_double(w->dgamma, NULL, r->dgamma, w->gamma_count));
        e = larger(e, worst_double(w->dbeta, NULL, r->dbeta, w->beta_count));
    }
    if (r->has_stats && saves) {
        e = larger(e, worst_double(w->mean32, wide ? w->mean : NULL, r->mean, w->stats_count));
        e = larger(e, worst_double(w->rstd32, wide ? w->rstd : NULL, r->rstd, w->stats_count));
    }
    if (r->has_running && !(k->traits & BENCH_NO_RUNNING)) {
        e = larger(e, worst_double(w->running_mean, NULL, r->running_mean, w->C));
        e = larger(e, worst_double(w->running_var, NULL, r->running_var, w->C));
    }
    if (r->has_loss) e = larger(e, fabs(w->loss - r->loss) / r->loss);
    return e;
}

/* Backward passes get the right statistics; the others must find them, and start from nothing. */
static void lay_out(bench_work *w, const bench_reference *r)
{
    const int saved = w->pass == BENCH_BACKWARD;
    size_t i;
    for (i = 0; i < w->stats_count; i++) {
        w->mean[i] = saved ? r->mean[i] : 0;
        w->rstd[i] = saved ? r->rstd[i] : 0;
        w->mean32[i] = (float)w->mean[i];
        w->rstd32[i] = (float)w->rstd[i];
    }
    memset(w->out, 0, w->out_count * sizeof(float));
    w->loss = 0;
    reset(w);
}

static void check(const bench_contestant *k, bench_work *w, void *state, const bench_reference *r,
                  bench_score *score)
{
    if (k == &bench_limit) {
        score->right = 1;
        return;
    }
    lay_out(w, r);
    if (k->run[w->layer][w->pass](w, state)) {
        score->error = NONE;
        return;
    }
    if (k->fetch) k->fetch(w, state);
    score->error = error_of(k, w, r);
    score->right = score->error <= k->tolerance;
}

/* ---- time ---- */

static double measure(const bench_contestant *k, bench_work *w, void *state, size_t calls)
{
    bench_run *const run = k->run[w->layer][w->pass];
    double start;
    size_t i;
    reset(w);
    run(w, state); /* caches and branches settle */
    start = bench_now();
    for (i = 0; i < calls; i++) run(w, state);
    return (bench_now() - start) / (double)calls;
}

/* How many calls make a measurement long enough. */
static size_t calibrate(const bench_contestant *k, bench_work *w, void *state, double ms)
{
    size_t calls = 1;
    for (;;) {
        const double spent = measure(k, w, state, calls) * (double)calls;
        if (spent >= 1e-3 * ms) return calls;
        if (spent > 1e-4 * ms) return (size_t)((double)calls * 1.1e-3 * ms / spent) + 1;
        calls *= 4;
    }
}

static double median(double *x, size_t n)
{
    stats_sort(x, n);
    return stats_quantile(x, n, 0.5);
}

/* times[contestant][round] become scores. */
static int summarise(bench_score *score, const double *times, size_t rounds)
{
    double *a = (double *)malloc(rounds * sizeof *a);
    size_t k, i;
    if (!a) return -1;
    for (k = 0; k < CONTESTANTS; k++) {
        const double *t = times + k * rounds, *limit = times, *ours = times + OURS * rounds;
        if (!score[k].has || !score[k].right) continue;
        for (i = 0; i < rounds; i++) a[i] = t[i];
        score[k].seconds = median(a, rounds);
        for (i = 0; i < rounds; i++) a[i] = 100 * limit[i] / t[i];
        score[k].percent = score[LIMIT].has ? median(a, rounds) : NONE;
        for (i = 0; i < rounds; i++) a[i] = t[i] / ours[i];
        score[k].against_ours = score[OURS].has && score[OURS].right ? median(a, rounds) : NONE;
    }
    free(a);
    return 0;
}

static int race(bench_score *score, bench_work *w, void **state, const bench_settings *s)
{
    double *times = (double *)calloc(CONTESTANTS * s->rounds, sizeof *times);
    size_t calls[CONTESTANTS], k, round;
    int failed;
    if (!times) return -1;
    for (k = 0; k < CONTESTANTS; k++)
        if (score[k].has && score[k].right)
            calls[k] = calibrate(contestants[k], w, state[k], s->ms);
    for (round = 0; round < s->rounds; round++)
        for (k = 0; k < CONTESTANTS; k++)
            if (score[k].has && score[k].right)
                times[k * s->rounds + round] = measure(contestants[k], w, state[k], calls[k]);
    failed = summarise(score, times, s->rounds);
    free(times);
    return failed;
}

/* One case from its data to its scores. */
static int run_case(const bench_case *c, bench_score *score, const bench_settings *s)
{
    bench_work w;
    bench_buffers b;
    bench_reference *r = NULL;
    void *state[CONTESTANTS];
    size_t k;
    int failed = work_new(&w, &b, c);
    if (!failed) failed = (r = bench_reference_new(&w)) == NULL;
    for (k = 0; k < CONTESTANTS; k++) {
        const bench_contestant *one = contestants[k];
        state[k] = NULL;
        memset(&score[k], 0, sizeof score[k]);
        if (failed || !one->run[w.layer][w.pass]) continue;
        if (k > OURS && !wanted(one->name, s->contestants)) continue;
        lay_out(&w, r); /* before open, which may copy statistics */
        score[k].has = !one->open || one->open(&w, &state[k]) == 0;
        if (score[k].has) check(one, &w, state[k], r, &score[k]);
    }
    if (!failed) {
        lay_out(&w, r);
        failed = race(score, &w, state, s);
    }
    for (k = 0; k < CONTESTANTS; k++)
        if (contestants[k]->close && state[k]) contestants[k]->close(state[k]);
    bench_reference_free(r);
    work_free(&w, &b);
    return failed;
}

/* ---- results ---- */

/* Three digits and a unit: "1.23 μs". */
static const char *pretty(char *text, size_t size, double seconds)
{
    const double us = 1e6 * seconds;
    const char *unit = us < 1000 ? "μs" : "ms";
    const double v = us < 1000 ? us : us / 1000;
    snprintf(text, size, "%.*f %s", v < 10 ? 2 : v < 100 ? 1 : 0, v, unit);
    return text;
}

static double bytes_of(const bench_case *c)
{
    const double n = (double)c->shape.N * (double)c->shape.C * (double)(c->shape.H * c->shape.W);
    const int layer = c->shape.layer, backward = c->pass == BENCH_BACKWARD;
    if (layer == BENCH_LINEAR) return NONE;
    if (layer == BENCH_NOISY_NORM) return (backward ? 16 : 12) * n;
    if (layer == BENCH_WEIGHT_NORM && backward) return 16 * n;
    return (backward && layer != BENCH_CROSS_ENTROPY ? 12 : 8) * n;
}

static double flops_of(const bench_case *c)
{
    const bench_shape *s = &c->shape;
    if (s->layer != BENCH_LINEAR) return NONE;
    return (c->pass == BENCH_BACKWARD ? 4 : 2) * (double)s->N * (double)s->C * (double)s->W;
}

static void print_heading(void)
{
    size_t k;
    printf("%-28s", "time of a call, % of limit");
    for (k = 0; k < CONTESTANTS; k++) printf(" %15s", contestants[k]->name);
    printf("\n");
}

static void print_case(const bench_case *c, const bench_score *score)
{
    char text[40], cell[64];
    size_t k;
    printf("%-28s", c->name);
    for (k = 0; k < CONTESTANTS; k++) {
        if (!score[k].has)
            printf(" %15s", "-");
        else if (!score[k].right)
            printf(" %15s", "WRONG");
        else {
            snprintf(cell, sizeof cell, "%s %3.0f%%", pretty(text, sizeof text, score[k].seconds),
                     score[k].percent);
            /* a micro sign takes two bytes and one column */
            printf(" %*s", 15 + (strstr(cell, "μ") != NULL), cell);
        }
    }
    printf("\n");
    for (k = 0; k < CONTESTANTS; k++)
        if (score[k].has && !score[k].right && isnan(score[k].error))
            printf("  %s fails or gives no numbers, and is not timed\n", contestants[k]->name);
        else if (score[k].has && !score[k].right)
            printf("  %s is wrong by %.2g (allowed %.2g), and not timed\n", contestants[k]->name,
                   score[k].error, contestants[k]->tolerance);
    fflush(stdout);
}

static void table_begin(csv_table *t, const bench_settings *s)
{
    static const char *const columns[] = {"case",
                                          "layer",
                                          "size",
                                          "pass",
                                          "contestant",
                                          "seconds",
                                          "percent_of_limit",
                                          "gbytes_per_s",
                                          "gflop_per_s",
                                          "times_ours",
                                          "error",
                                          "status"};
    csv_origin origin;
    char cpu[128], key[64];
    size_t k;
    memset(&origin, 0, sizeof origin);
    origin.program = "bench/layers";
    origin.version = NRM_VERSION;
    bench_processor(cpu, sizeof cpu);
    csv_begin(t);
    csv_note_origin(t, &origin);
    csv_note(t, "processor", cpu);
    csv_note_real(t, "rounds", (double)s->rounds);
    csv_note_real(t, "milliseconds of a measurement", s->ms);
    for (k = 0; k < CONTESTANTS; k++) {
        snprintf(key, sizeof key, "contestant %s", contestants[k]->name);
        csv_note(t, key, contestants[k]->about);
    }
    csv_columns(t, columns, sizeof columns / sizeof *columns);
}

static void table_case(csv_table *t, const bench_case *c, const bench_score *score)
{
    size_t k;
    for (k = 0; k < CONTESTANTS; k++) {
        const bench_score *v = &score[k];
        const int timed = v->has && v->right;
        if (!v->has) continue;
        csv_text(t, c->name);
        csv_text(t, layer_names[c->shape.layer]);
        csv_text(t, c->size);
        csv_text(t, pass_names[c->pass]);
        csv_text(t, contestants[k]->name);
        csv_real(t, timed ? v->seconds : NONE);
        csv_real(t, timed ? v->percent : NONE);
        csv_real(t, timed ? 1e-9 * bytes_of(c) / v->seconds : NONE);
        csv_real(t, timed ? 1e-9 * flops_of(c) / v->seconds : NONE);
        csv_real(t, timed ? v->against_ours : NONE);
        csv_real(t, k == LIMIT ? NONE : v->error);
        csv_text(t, timed ? "ok" : "wrong");
        csv_end_row(t);
    }
}

static int is_ours(size_t k)
{
    return strncmp(contestants[k]->name, "ours", 4) == 0;
}

/* Counts the cases, all wrong results, and ours among them. */
static int run_all(const bench_settings *s, csv_table *t, size_t *ran, size_t *wrong,
                   size_t *our_fault)
{
    size_t i, k;
    int pass;
    for (i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (pass = 0; pass < BENCH_PASSES; pass++) {
            bench_score score[CONTESTANTS];
            const bench_case c = make_case(&shapes[i], pass, s->quick);
            if (pass == BENCH_INFERENCE && !shapes[i].inference) continue;
            if (!wanted(c.name, s->only)) continue;
            if (run_case(&c, score, s)) {
                fprintf(stderr, "layers: %s: no memory\n", c.name);
                return -1;
            }
            print_case(&c, score);
            table_case(t, &c, score);
            for (k = 0; k < CONTESTANTS; k++) {
                const int bad = score[k].has && !score[k].right;
                *wrong += (size_t)bad;
                *our_fault += (size_t)(bad && is_ours(k));
            }
            ++*ran;
        }
    return 0;
}

static int bench(const bench_settings *s)
{
    csv_table t;
    char path[512], err[CSV_ERR_MAX];
    size_t ran = 0, wrong = 0, our_fault = 0;
    int failed;
    table_begin(&t, s);
    print_heading();
    failed = run_all(s, &t, &ran, &wrong, &our_fault);
    if (!failed && ran == 0) {
        fprintf(stderr, "layers: no case matches '%s'\n", s->only);
        failed = 1;
    }
    snprintf(path, sizeof path, "%s/layers.csv", s->out);
    if (!failed && csv_save(&t, path, err)) {
        fprintf(stderr, "layers: %s\n", err);
        failed = 1;
    }
    csv_end(&t);
    if (failed) return 1;
    printf("%zu cases, %zu wrong results; the table is in %s\n", ran, wrong, path);
    return our_fault > 0;
}

int main(int argc, char **argv)
{
    bench_settings s = {NULL, NULL, NULL, 15, 3, 0};
    double cpu = -1;
    int status;
    cli_option option[7] = {
        {"rounds", "N", "rounds, each of all contestants", CLI_WHOLE, &s.rounds, 1, 1e6, 0},
        {"ms", "X", "milliseconds of a measurement, at least", CLI_REAL, &s.ms, 1e-3, 1e4, 0},
        {"only", "PATTERN", "cases whose name matches: layernorm, '64x128/?wd', a,b", CLI_TEXT,
         &s.only, 0, 0, 0},
        {"contestants", "PATTERN", "those beside limit and ours", CLI_TEXT, &s.contestants, 0, 0,
         0},
        {"cpu", "N", "the processor to stay on (-1: the last)", CLI_REAL, &cpu, -1, 1e4, 0},
        CLI_OUT(&s.out),
        CLI_QUICK(&s.quick)};
    s.out = "build/bench";
    status = cli_parse("layers", "Times every layer and pass beside others, in turn", option, 7,
                       argc, argv);
    if (status != CLI_RUN) return status;
    if (s.quick && !option[0].given) s.rounds = 1;
    if (s.quick && !option[1].given) s.ms = 0.05;
    bench_keep_memory();
    cpu = bench_pin((int)cpu);
    printf("processor %.0f, niceness %d, %zu rounds of at least %g ms\n", cpu, bench_hurry(),
           s.rounds, s.ms);
    return bench(&s);
}
