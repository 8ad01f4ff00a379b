/* reference.c - the right results of a case: what normlayers.h computes in double. The tests of
   layers compare that with long double. What a contestant leaves in its buffers is compared with
   it before it is timed. */
#define NRM_STATIC
#define NRM_DOUBLE
#include "normlayers.h"

#include "../layers/call.h"
#include "bench.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    int function, mode, p;
} layers[BENCH_LAYERS] = {
    [BENCH_BATCH_NORM] = {CALL_BATCHNORM, NRM_TRAIN, 0},
    [BENCH_FROZEN_NORM] = {CALL_BATCHNORM, NRM_FROZEN, 0},
    [BENCH_NOISY_NORM] = {CALL_NOISY, NRM_TRAIN, 0},
    [BENCH_LAYER_NORM] = {CALL_LAYERNORM, 0, 0},
    [BENCH_RELU] = {CALL_ACTIVATION, NRM_RELU, 0},
    [BENCH_TANH] = {CALL_ACTIVATION, NRM_TANH, 0},
    [BENCH_SIGMOID] = {CALL_ACTIVATION, NRM_SIGMOID, 0},
    [BENCH_CROSS_ENTROPY] = {CALL_CROSS_ENTROPY, 0, 0},
    [BENCH_LINEAR] = {CALL_LINEAR, 0, 0},
    [BENCH_GROUP_NORM] = {CALL_GROUPNORM, 0, 0},
    [BENCH_INSTANCE_NORM] = {CALL_GROUPNORM, 0, 0},
    [BENCH_RMS_NORM] = {CALL_RMSNORM, 0, 0},
    [BENCH_L1_NORM] = {CALL_LP, NRM_TRAIN, NRM_L1},
    [BENCH_LINF_NORM] = {CALL_LP, NRM_TRAIN, NRM_LINF},
    [BENCH_SYNC_NORM] = {CALL_SYNC, 0, 0},
    [BENCH_WEIGHT_NORM] = {CALL_WEIGHTNORM, 0, 0},
};

/* A copy in double, or zeros. */
static double *doubles(const float *from, size_t n)
{
    double *to = (double *)calloc(n ? n : 1, sizeof *to);
    size_t i;
    for (i = 0; to && from && i < n; i++) to[i] = (double)from[i];
    return to;
}

/* The forward pass for what it computes or saves, and the backward pass if that is the case. */
static int passes(const bench_work *w, layer_call *c, double *x)
{
    const int function = layers[w->layer].function, backward = w->pass == BENCH_BACKWARD;
    const int saved = function == CALL_ACTIVATION || function == CALL_CROSS_ENTROPY;
    int status = NRM_OK;
    if (function == CALL_SYNC) status = call_layer(CALL_STATS_UPDATE, c);
    if (status == NRM_OK && !(backward && saved)) /* of noisy batch norm the noise is given */
        status = call_layer(backward && function == CALL_NOISY ? CALL_BATCHNORM : function, c);
    if (status != NRM_OK || !backward) return status;
    if (saved) c->y = x; /* which holds what the forward pass gave */
    if (function == CALL_SYNC) status = call_layer(CALL_SYNC_SUMS, c);
    return status == NRM_OK ? call_layer(function + 1, c) : status;
}

static int compute(bench_reference *r, const bench_work *w)
{
    const int function = layers[w->layer].function, backward = w->pass == BENCH_BACKWARD;
    const int weights = function == CALL_WEIGHTNORM;
    const int norm = function >= CALL_BATCHNORM && function <= CALL_SYNC && !weights;
    const nrm_noise noise = nrm_noise_paper();
    nrm_running running;
    nrm_rng rng;
    layer_call c;
    double *array[7], loss = 0;
    size_t i;
    int failed = 0;
    r->has_gradients = backward && (norm || weights || function == CALL_LINEAR);
    r->has_stats = w->pass == BENCH_FORWARD && (norm || weights);
    r->has_running =
        w->pass == BENCH_FORWARD && norm && w->G == 0 && w->layer != BENCH_FROZEN_NORM;
    r->has_scale = w->pass == BENCH_FORWARD && function == CALL_NOISY;
    r->has_loss = w->pass == BENCH_FORWARD && function == CALL_CROSS_ENTROPY;
    memset(&c, 0, sizeof c);
    memset(&running, 0, sizeof running);
    c.x = array[0] = doubles(w->x, w->x_count);
    c.dy = array[1] = doubles(backward ? w->dy : NULL, w->dy_count);
    c.gamma = array[2] = doubles(w->gamma, w->gamma_count);
    c.beta = array[3] = doubles(w->beta, w->beta_count);
    c.scale = array[4] = doubles(function == CALL_NOISY ? w->scale : NULL, w->x_count);
    c.y = array[5] = doubles(NULL, w->x_count > w->dy_count ? w->x_count : w->dy_count);
    c.dx = array[6] = doubles(NULL, w->x_count);
    c.stats = (nrm_stats *)calloc(w->C, sizeof *c.stats);
    c.sums = (nrm_sums *)calloc(w->C, sizeof *c.sums);
    c.dgamma = r->dgamma, c.dbeta = r->dbeta, c.mean = r->mean, c.rstd = r->rstd;
    c.labels = w->labels, c.loss = &loss;
    c.N = function == CALL_ACTIVATION ? w->x_count : w->N;
    c.C = w->C, c.S = w->S, c.G = w->layer == BENCH_INSTANCE_NORM ? w->C : w->G;
    c.mode = w->pass == BENCH_INFERENCE ? NRM_INFER : layers[w->layer].mode;
    c.p = layers[w->layer].p, c.eps = (double)w->eps;
    c.running = &running, c.noise = &noise, c.rng = &rng;
    running.mean = r->running_mean, running.var = r->running_var;
    running.new_weight = (double)w->new_weight;
    for (i = 0; i < w->C; i++) running.mean[i] = (double)w->running_mean[i];
    for (i = 0; i < w->C; i++) running.var[i] = (double)w->running_var[i];
    nrm_rng_seed(&rng, BENCH_NOISE_SEED, 0);
    for (i = 0; i < 7; i++) failed |= array[i] == NULL;
    failed = failed || !c.stats || !c.sums || passes(w, &c, array[0]) != NRM_OK;
    for (i = 0; i < w->out_count && !failed; i++)
        r->out[i] = (float)(backward ? c.dx : array[5])[i];
    for (i = 0; i < w->x_count && !failed; i++) r->scale[i] = (float)c.scale[i];
    r->loss = loss;
    for (i = 0; i < 7; i++) free(array[i]);
    free(c.stats);
    free(c.sums);
    return failed;
}

bench_reference *bench_reference_new(const bench_work *w)
{
    bench_reference *r = (bench_reference *)calloc(1, sizeof *r);
    if (!r) return NULL;
    r->out = (float *)calloc(w->out_count, sizeof(float));
    r->scale = (float *)calloc(w->x_count, sizeof(float));
    r->dgamma = doubles(NULL, w->gamma_count);
    r->dbeta = doubles(NULL, w->beta_count);
    r->mean = doubles(NULL, w->stats_count);
    r->rstd = doubles(NULL, w->stats_count);
    r->running_mean = doubles(NULL, w->C);
    r->running_var = doubles(NULL, w->C);
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
