/* bench.h - what the parts of the micro-benchmark share: a piece of work, and a contestant.

   A contestant is an object file that exports a `bench_contestant`: a table of functions, one for
   each layer and pass that it has. All contestants of a case get the same bench_work, so they read
   and write the same buffers. layers.c holds them all in one process, checks what they compute and
   times them in turn. */
#ifndef BENCH_H
#define BENCH_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum bench_layer {
    BENCH_BATCH_NORM,  /* train: forward and backward; infer: inference */
    BENCH_FROZEN_NORM, /* batch norm with running statistics as constants */
    BENCH_NOISY_NORM,  /* batch norm and noise, train mode */
    BENCH_LAYER_NORM,
    BENCH_RELU,
    BENCH_TANH,
    BENCH_SIGMOID,
    BENCH_CROSS_ENTROPY,
    BENCH_LINEAR,
    BENCH_GROUP_NORM, /* the rest of the family, none with an inference pass of its own */
    BENCH_INSTANCE_NORM,
    BENCH_RMS_NORM,
    BENCH_L1_NORM, /* Lp batch norm of x, not of its deviations */
    BENCH_LINF_NORM,
    BENCH_SYNC_NORM, /* synchronised batch norm, of one worker */
    BENCH_WEIGHT_NORM,
    BENCH_LAYERS
};

enum bench_pass { BENCH_FORWARD, BENCH_BACKWARD, BENCH_INFERENCE, BENCH_PASSES };

/* One case: its sizes, and the buffers that all contestants share. */
typedef struct bench_work {
    int layer, pass;
    size_t N, C, S;         /* norms [N][C][S]; layer norm [N][C]; linear: C inputs, S outputs;
                               weight norm: N inputs, C outputs                                */
    size_t G;               /* groups of an example with statistics of their own; 0: channels  */
    const float *x;         /* [x_count] input; backward passes of activations: saved output   */
    const float *dy;        /* [dy_count] backward passes only                                 */
    float *out;             /* [out_count] y, prob or dx; weight norm adds to it, backward     */
    const float *gamma;     /* [gamma_count] C; the linear layer's W, C*S                      */
    const float *beta;      /* [beta_count] C; the linear layer's b, S                         */
    float *dgamma, *dbeta;  /* as many; contestants may add to them or overwrite them          */
    float *scale;           /* [x_count] noisy norm: factors drawn, out forward, in backward   */
    const int *labels;      /* [N] cross-entropy                                               */
    double loss;            /* cross-entropy, out                                              */
    double *mean, *rstd;    /* [stats_count] saved statistics, out forward, in backward; Lp
                               batch norm has its t in rstd, weight norm its lengths in mean,
                               and RMS norm no mean                                            */
    float *mean32, *rstd32; /* the same for who keeps them in float                            */
    float *running_mean, *running_var; /* [C] batch norm                                       */
    float eps, new_weight;
    size_t x_count, dy_count, out_count, gamma_count, beta_count, stats_count;
} bench_work;

/* Does the work once, a call as a user would make it. 0, or anything else if it failed. */
typedef int bench_run(bench_work *work, void *state);

enum {
    BENCH_WIDE_STATS = 1, /* saves mean and rstd in double, not in mean32 and rstd32          */
    BENCH_NO_STATS = 2,   /* its forward pass saves none                                      */
    BENCH_NO_RUNNING = 4  /* its batch norm does not track running statistics                 */
};

typedef struct bench_contestant {
    const char *name;  /* one word, as in the table of results                                */
    const char *about; /* half a line                                                         */
    int traits;        /* BENCH_WIDE_STATS ...                                                */
    double tolerance;  /* how far results may be off, relative to the largest of its array    */
    /* What must be made ready before a case is timed. 0, or anything else if it cannot do it. */
    int (*open)(bench_work *work, void **state);
    void (*fetch)(bench_work *work, void *state); /* copies results into the buffers, untimed  */
    void (*close)(void *state);
    bench_run *run[BENCH_LAYERS][BENCH_PASSES]; /* NULL: does not have it */
} bench_contestant;

/* reference.c: the right results, computed by the header in double. */
typedef struct bench_reference {
    float *out, *scale;
    double *dgamma, *dbeta, *mean, *rstd, *running_mean, *running_var;
    double loss;
    int has_stats, has_gradients, has_running, has_scale, has_loss;
} bench_reference;

/* Fills `r` (NULL: no memory) from w's inputs, before any contestant has run. */
bench_reference *bench_reference_new(const bench_work *w);
void bench_reference_free(bench_reference *r);
/* The seed of the noise: whoever draws noise starts each call from it. */
#define BENCH_NOISE_SEED 7u

/* machine.c */
double bench_now(void);       /* seconds                                                    */
int bench_pin(int cpu);       /* this process to one processor (-1: the last). Its number,
                                  or -1 if that is not possible                              */
int bench_hurry(void);        /* the least niceness that is allowed; returns it             */
void bench_keep_memory(void); /* freed memory stays with malloc: favours who allocates      */
void bench_processor(char *name, size_t size); /* its model */

#ifdef __cplusplus
}
#endif
#endif
