/* ours.c - normlayers.h as a contestant. Compiled once per set of compiler flags, under a name
   given by -DBENCH_OURS=..., with private copies of all functions, so that several builds of the
   header sit in one process. */
#define NRM_STATIC
#include "normlayers.h"

#include "bench.h"

#include <stdlib.h>
#include <string.h>

#ifndef BENCH_OURS
#define BENCH_OURS bench_ours
#define BENCH_OURS_NAME "ours"
#define BENCH_OURS_FLAGS "default flags"
#endif

extern const bench_contestant BENCH_OURS;

/* One pass of one layer: the call, which sees the work as w. */
#define PASS(name, call)                                                                           \
    static int name(bench_work *w, void *state)                                                    \
    {                                                                                              \
        (void)state;                                                                               \
        return call;                                                                               \
    }

static nrm_running tracked(bench_work *w)
{
    nrm_running r;
    r.mean = w->running_mean;
    r.var = w->running_var;
    r.new_weight = w->new_weight;
    r.cumulative = r.biased = 0;
    r.batches = 0;
    return r;
}

static int norm_forward(bench_work *w, int mode)
{
    nrm_running running = tracked(w);
    return nrm_batchnorm_forward(w->out, w->mean, w->rstd, &running, w->x, w->gamma, w->beta, mode,
                                 w->eps, w->N, w->C, w->S);
}

static int norm_backward(bench_work *w, int mode)
{
    return nrm_batchnorm_backward(w->out, w->dgamma, w->dbeta, w->dy, w->x, w->mean, w->rstd,
                                  w->gamma, mode, w->N, w->C, w->S);
}

PASS(batch_forward, norm_forward(w, NRM_TRAIN))
PASS(batch_backward, norm_backward(w, NRM_TRAIN))

static int batch_inference(bench_work *w, void *state)
{
    nrm_running running = tracked(w);
    (void)state;
    return nrm_batchnorm_forward(w->out, NULL, NULL, &running, w->x, w->gamma, w->beta, NRM_INFER,
                                 w->eps, w->N, w->C, w->S);
}

PASS(frozen_forward, norm_forward(w, NRM_FROZEN))
PASS(frozen_backward, norm_backward(w, NRM_FROZEN))

static int noisy_forward(bench_work *w, void *state)
{
    nrm_running running = tracked(w);
    const nrm_noise noise = nrm_noise_paper();
    nrm_rng rng;
    (void)state;
    nrm_rng_seed(&rng, BENCH_NOISE_SEED, 0);
    return nrm_noisy_batchnorm_forward(w->out, w->scale, w->mean, w->rstd, &running, w->x, w->gamma,
                                       w->beta, &noise, &rng, NRM_TRAIN, w->eps, w->N, w->C, w->S);
}

PASS(noisy_backward,
     nrm_noisy_batchnorm_backward(w->out, w->dgamma, w->dbeta, w->dy, w->scale, w->x, w->mean,
                                  w->rstd, w->gamma, NRM_TRAIN, w->N, w->C, w->S))
PASS(layer_forward,
     nrm_layernorm_forward(w->out, w->mean, w->rstd, w->x, w->gamma, w->beta, w->eps, w->N, w->C))
PASS(layer_backward,
     nrm_layernorm_backward(w->out, w->dgamma, w->dbeta, w->dy, w->x, w->mean, w->rstd, w->gamma,
                            w->N, w->C))
PASS(layer_inference,
     nrm_layernorm_forward(w->out, NULL, NULL, w->x, w->gamma, w->beta, w->eps, w->N, w->C))

static int kind_of(int layer)
{
    return layer == BENCH_RELU ? NRM_RELU : layer == BENCH_TANH ? NRM_TANH : NRM_SIGMOID;
}

PASS(activation_forward, nrm_activation_forward(w->out, w->x, kind_of(w->layer), w->x_count))
PASS(activation_backward,
     nrm_activation_backward(w->out, w->dy, w->x, kind_of(w->layer), w->x_count))

static int entropy_forward(bench_work *w, void *state)
{
    nrm_acc loss = 0;
    const int status = nrm_cross_entropy_forward(&loss, w->out, w->x, w->labels, w->N, w->C);
    (void)state;
    w->loss = (double)loss;
    return status;
}

PASS(entropy_backward, nrm_cross_entropy_backward(w->out, w->x, w->labels, w->N, w->C))
PASS(linear_forward, nrm_linear_forward(w->out, w->x, w->gamma, w->beta, w->N, w->C, w->S))
PASS(linear_backward,
     nrm_linear_backward(w->out, w->dgamma, w->dbeta, w->dy, w->x, w->gamma, w->N, w->C, w->S))
PASS(group_forward,
     nrm_groupnorm_forward(w->out, w->mean, w->rstd, w->x, w->gamma, w->beta, w->eps, w->N, w->C,
                           w->S, w->G))
PASS(group_backward,
     nrm_groupnorm_backward(w->out, w->dgamma, w->dbeta, w->dy, w->x, w->mean, w->rstd, w->gamma,
                            w->N, w->C, w->S, w->G))
PASS(instance_forward,
     nrm_groupnorm_forward(w->out, w->mean, w->rstd, w->x, w->gamma, w->beta, w->eps, w->N, w->C,
                           w->S, w->C))
PASS(instance_backward,
     nrm_groupnorm_backward(w->out, w->dgamma, w->dbeta, w->dy, w->x, w->mean, w->rstd, w->gamma,
                            w->N, w->C, w->S, w->C))
PASS(rms_forward, nrm_rmsnorm_forward(w->out, w->rstd, w->x, w->gamma, w->eps, w->N, w->C))
PASS(rms_backward,
     nrm_rmsnorm_backward(w->out, w->dgamma, w->dy, w->x, w->rstd, w->gamma, w->N, w->C))

static int lp_of(int layer)
{
    return layer == BENCH_L1_NORM ? NRM_L1 : NRM_LINF;
}

static int lp_forward(bench_work *w, void *state)
{
    nrm_running running = tracked(w);
    (void)state;
    return nrm_lp_batchnorm_forward(w->out, w->mean, w->rstd, &running, w->x, w->gamma, w->beta,
                                    lp_of(w->layer), NRM_TRAIN, w->eps, w->N, w->C, w->S);
}

PASS(lp_backward,
     nrm_lp_batchnorm_backward(w->out, w->dgamma, w->dbeta, w->dy, w->x, w->mean, w->rstd,
                               w->gamma, lp_of(w->layer), NRM_TRAIN, w->eps, w->N, w->C, w->S))

typedef struct worker { /* [C] each: what synchronised batch norm would exchange */
    nrm_stats *stats;
    nrm_sums *sums;
} worker;

static int open_worker(bench_work *w, void **state)
{
    worker *own;
    size_t c;
    if (w->layer != BENCH_SYNC_NORM) return 0;
    *state = own = (worker *)calloc(1, sizeof *own);
    if (!own) return -1;
    own->stats = (nrm_stats *)calloc(w->C, sizeof *own->stats);
    own->sums = (nrm_sums *)calloc(w->C, sizeof *own->sums);
    if (!own->stats || !own->sums) return -1;
    for (c = 0; c < w->C; c++) own->stats[c].count = (nrm_acc)(w->N * w->S);
    return 0;
}

static void close_worker(void *state)
{
    worker *own = (worker *)state;
    free(own->stats);
    free(own->sums);
    free(own);
}

static int sync_forward(bench_work *w, void *state)
{
    const worker *own = (const worker *)state;
    nrm_running running = tracked(w);
    int status;
    memset(own->stats, 0, w->C * sizeof *own->stats);
    status = nrm_stats_update(own->stats, w->x, NULL, w->N, w->C, w->S);
    if (status != NRM_OK) return status;
    return nrm_sync_batchnorm_forward(w->out, w->mean, w->rstd, &running, w->x, NULL, own->stats,
                                      w->gamma, w->beta, w->eps, w->N, w->C, w->S);
}

static int sync_backward(bench_work *w, void *state)
{
    const worker *own = (const worker *)state;
    const int status = nrm_sync_batchnorm_sums(own->sums, w->dgamma, w->dbeta, w->dy, w->x, NULL,
                                               w->mean, w->rstd, w->N, w->C, w->S);
    if (status != NRM_OK) return status;
    return nrm_sync_batchnorm_backward(w->out, w->dy, w->x, NULL, w->mean, w->rstd, w->gamma,
                                       own->stats, own->sums, w->N, w->C, w->S);
}

PASS(weight_forward, nrm_weightnorm_forward(w->out, w->mean, w->x, w->gamma, w->N, w->C))
PASS(weight_backward,
     nrm_weightnorm_backward(w->out, w->dgamma, w->dy, w->x, w->mean, w->gamma, w->N, w->C))

const bench_contestant BENCH_OURS = {
    BENCH_OURS_NAME,
    "normlayers.h, " BENCH_OURS_FLAGS,
    BENCH_WIDE_STATS,
    5e-6,
    open_worker,
    NULL,
    close_worker,
    {
        [BENCH_BATCH_NORM] = {batch_forward, batch_backward, batch_inference},
        [BENCH_FROZEN_NORM] = {frozen_forward, frozen_backward},
        [BENCH_NOISY_NORM] = {noisy_forward, noisy_backward},
        [BENCH_LAYER_NORM] = {layer_forward, layer_backward, layer_inference},
        [BENCH_RELU] = {activation_forward, activation_backward},
        [BENCH_TANH] = {activation_forward, activation_backward},
        [BENCH_SIGMOID] = {activation_forward, activation_backward},
        [BENCH_CROSS_ENTROPY] = {entropy_forward, entropy_backward},
        [BENCH_LINEAR] = {linear_forward, linear_backward},
        [BENCH_GROUP_NORM] = {group_forward, group_backward},
        [BENCH_INSTANCE_NORM] = {instance_forward, instance_backward},
        [BENCH_RMS_NORM] = {rms_forward, rms_backward},
        [BENCH_L1_NORM] = {lp_forward, lp_backward},
        [BENCH_LINF_NORM] = {lp_forward, lp_backward},
        [BENCH_SYNC_NORM] = {sync_forward, sync_backward},
        [BENCH_WEIGHT_NORM] = {weight_forward, weight_backward},
    },
};
