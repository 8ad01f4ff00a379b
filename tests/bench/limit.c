/* limit.c - the yardstick: the least that any implementation must do with the same buffers, as one
   loop that the compiler turns into vector instructions by itself.

       forward, inference   y = a*x + b      one read, one write
       backward             dx = a*x + dy    two reads, one write
       noisy norm           the same, with the factors written or read as well
       weight norm          backward, the same, added to what is there: it has parameters alone
       linear               as many multiply-adds as the product has, in registers

   "Percent of limit" is the time of this loop divided by the time of a contestant. */
#include "bench.h"

extern const bench_contestant bench_limit;

static void scale_shift(float *restrict y, const float *restrict x, float a, float b, size_t n)
{
    size_t i;
    for (i = 0; i < n; i++) y[i] = a * x[i] + b;
}

static void scale_add(float *restrict dx, const float *restrict x, const float *restrict dy,
                      float a, size_t n)
{
    size_t i;
    for (i = 0; i < n; i++) dx[i] = a * x[i] + dy[i];
}

static void scale_shift_twice(float *restrict y, float *restrict s, const float *restrict x,
                              float a, float b, size_t n)
{
    size_t i;
    for (i = 0; i < n; i++) {
        y[i] = a * x[i] + b;
        s[i] = b * x[i] + a;
    }
}

static void scale_add_twice(float *restrict dx, const float *restrict x, const float *restrict dy,
                            const float *restrict s, float a, size_t n)
{
    size_t i;
    for (i = 0; i < n; i++) dx[i] = a * x[i] + dy[i] * s[i];
}

static void scale_add_to(float *restrict dx, const float *restrict x, const float *restrict dy,
                         float a, size_t n)
{
    size_t i;
    for (i = 0; i < n; i++) dx[i] += a * x[i] + dy[i];
}

static int forward(bench_work *w, void *state)
{
    (void)state;
    scale_shift(w->out, w->x, 1.5f, 0.5f, w->x_count);
    return 0;
}

static int backward(bench_work *w, void *state)
{
    (void)state;
    scale_add(w->out, w->x, w->dy, 1.5f, w->x_count);
    return 0;
}

static int noisy_forward(bench_work *w, void *state)
{
    (void)state;
    scale_shift_twice(w->out, w->scale, w->x, 1.5f, 0.5f, w->x_count);
    return 0;
}

static int noisy_backward(bench_work *w, void *state)
{
    (void)state;
    scale_add_twice(w->out, w->x, w->dy, w->scale, 1.5f, w->x_count);
    return 0;
}

static int added_backward(bench_work *w, void *state)
{
    (void)state;
    scale_add_to(w->out, w->x, w->dy, 1.5f, w->x_count);
    return 0;
}

/* Twelve independent chains of multiply-adds, each as wide as the vectors are: enough to keep the
   units of common processors busy (two units, four or five cycles to a result). */
#if defined(__AVX512F__)
#define LANES 16
#elif defined(__AVX__)
#define LANES 8
#else
#define LANES 4
#endif
#define CHAINS 12

static float multiply_adds(double count, float a, float b)
{
    float sum[CHAINS][LANES], total = 0;
    double steps = count / (CHAINS * LANES);
    long n = (long)steps;
    int i, j;
    for (i = 0; i < CHAINS; i++)
        for (j = 0; j < LANES; j++) sum[i][j] = (float)(i + j);
    while (n-- > 0)
        for (i = 0; i < CHAINS; i++)
            for (j = 0; j < LANES; j++) sum[i][j] = sum[i][j] * a + b;
    for (i = 0; i < CHAINS; i++)
        for (j = 0; j < LANES; j++) total += sum[i][j];
    return total;
}

static int products(bench_work *w, double how_many)
{
    w->out[0] = multiply_adds(how_many * (double)w->N * (double)w->C * (double)w->S, 0.5f, 0.25f);
    return 0;
}

static int linear_forward(bench_work *w, void *state)
{
    (void)state;
    return products(w, 1);
}

static int linear_backward(bench_work *w, void *state)
{
    (void)state;
    return products(w, 2);
}

const bench_contestant bench_limit = {
    "limit",
    "one pass over the same buffers, -O3 -march=native",
    BENCH_NO_STATS,
    0, /* it computes nothing that could be checked */
    NULL,
    NULL,
    NULL,
    {
        {forward, backward, forward},            /* batch norm    */
        {forward, backward, NULL},               /* frozen        */
        {noisy_forward, noisy_backward, NULL},   /* noisy         */
        {forward, backward, forward},            /* layer norm    */
        {forward, backward, NULL},               /* ReLU          */
        {forward, backward, NULL},               /* tanh          */
        {forward, backward, NULL},               /* sigmoid       */
        {forward, forward, NULL},                /* cross-entropy */
        {linear_forward, linear_backward, NULL}, /* linear        */
        {forward, backward, NULL},               /* group norm    */
        {forward, backward, NULL},               /* instance norm */
        {forward, backward, NULL},               /* RMS norm      */
        {forward, backward, NULL},               /* L1 batch norm */
        {forward, backward, NULL},               /* L∞ batch norm */
        {forward, backward, NULL},               /* synchronised  */
        {forward, added_backward, NULL},         /* weight norm   */
    },
};
