/* threads.c - several threads call normlayers.h at the same time, as its contracts allow: each with
   buffers of its own, and all reading the same inputs and parameters.

   Every thread goes through all layers and functions and makes a hash of the results, which has to
   be that of a run alone. tests/bits/threads.sh builds this with -fsanitize=thread, which would
   report a variable that two calls share. The outputs are neighbouring ranges of the same arrays,
   so that a write beyond the end is one too. */
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"
#include "../layers/call.h"
#include "lab/draw.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, ROUNDS = 20, N = 33, C = 6, S = 7, COUNT = N * C * S, WIDTH = C * S };
enum { BYTES = 1 << 16 };

static nrm_real x[COUNT], dy[COUNT], gamma_[WIDTH], beta_[WIDTH], W[WIDTH * WIDTH]; /* read only */
static int labels[N];
static unsigned char mask[N * S];

typedef struct outputs { /* of one thread */
    nrm_real y[COUNT], dx[COUNT], scale[COUNT], dgamma[WIDTH], dbeta[WIDTH], dW[WIDTH * WIDTH];
    nrm_real run_mean[WIDTH], run_var[WIDTH];
    nrm_acc mean[N * C], rstd[N * C], ratio[WIDTH], offset[WIDTH];
    nrm_stats stats[WIDTH];
    nrm_sums sums[WIDTH];
    unsigned char block[BYTES];
} outputs;
static outputs output[THREADS];

typedef struct work {
    outputs *out;
    uint64_t hash;
    int refused;
} work;

static void add(work *w, const void *data, size_t bytes)
{
    const unsigned char *p = (const unsigned char *)data;
    size_t i;
    for (i = 0; i < bytes; i++) w->hash = (w->hash ^ p[i]) * 1099511628211u;
}

static void take(work *w, int rc)
{
    if (rc != NRM_OK) w->refused = rc;
    add(w, &rc, sizeof rc);
    add(w, w->out->y, sizeof w->out->y);
    add(w, w->out->dx, sizeof w->out->dx);
}

/* Every layer, forwards and backwards. */
static void layers(work *w, nrm_rng *rng)
{
    static const struct {
        int function, mode;
        size_t C, S, G;
    } layer[] = {
        {CALL_BATCHNORM, NRM_TRAIN, WIDTH, 1, 0},
        {CALL_NOISY, NRM_TRAIN, C, S, 0},
        {CALL_LAYERNORM, 0, WIDTH, 1, 0},
        {CALL_LINEAR, 0, WIDTH, WIDTH, 0},
        {CALL_ACTIVATION, NRM_IDENTITY, WIDTH, 1, 0},
        {CALL_ACTIVATION, NRM_RELU, WIDTH, 1, 0},
        {CALL_ACTIVATION, NRM_TANH, WIDTH, 1, 0},
        {CALL_ACTIVATION, NRM_SIGMOID, WIDTH, 1, 0},
        {CALL_CROSS_ENTROPY, 0, WIDTH, 1, 0},
        {CALL_GROUPNORM, 0, C, S, 2},
        {CALL_GROUPNORM, 0, C, S, C},
        {CALL_RMSNORM, 0, WIDTH, 1, 0},
        {CALL_RENORM, NRM_TRAIN, C, S, 0},
        {CALL_SYNC, 0, C, S, 0},
    };
    outputs *o = w->out;
    const nrm_noise noise = nrm_noise_paper();
    nrm_running running;
    nrm_acc loss = 0;
    layer_call c;
    size_t i;
    memset(&running, 0, sizeof running);
    memset(&c, 0, sizeof c);
    memset(o->stats, 0, sizeof o->stats);
    running.mean = o->run_mean;
    running.var = o->run_var;
    running.new_weight = (nrm_real)0.1;
    c.x = x, c.dy = dy, c.beta = beta_, c.y = o->y, c.dx = o->dx, c.dbeta = o->dbeta;
    c.mean = o->mean, c.rstd = o->rstd, c.ratio = o->ratio, c.offset = o->offset;
    c.scale = o->scale, c.stats = o->stats, c.sums = o->sums, c.loss = &loss, c.labels = labels;
    c.running = &running, c.noise = &noise, c.rng = rng, c.mask = mask;
    c.eps = NRM_EPS, c.r_max = 2, c.d_max = 1;
    for (i = 0; i < sizeof layer / sizeof *layer; i++) {
        const int function = layer[i].function, linear = function == CALL_LINEAR;
        c.gamma = linear ? W : gamma_, c.dgamma = linear ? o->dW : o->dgamma;
        c.N = function == CALL_ACTIVATION ? COUNT : N;
        c.C = layer[i].C, c.S = layer[i].S, c.G = layer[i].G, c.mode = layer[i].mode;
        if (function == CALL_SYNC) take(w, call_layer(CALL_STATS_UPDATE, &c));
        take(w, call_layer(function, &c));
        if (function == CALL_SYNC) take(w, call_layer(CALL_SYNC_SUMS, &c));
        take(w, call_layer(function + 1, &c));
        add(w, o->dgamma, sizeof o->dgamma);
        add(w, o->run_var, sizeof o->run_var);
    }
    add(w, &loss, sizeof loss);
}

static void network(work *w)
{
    nrm_mlp_spec spec = nrm_mlp_defaults();
    nrm_mlp_layer layer[2];
    nrm_mlp *net;
    nrm_acc loss = 0;
    int rc, step;
    memset(layer, 0, sizeof layer);
    layer[0].width = 11;
    layer[0].activation = NRM_TANH;
    layer[0].norm = NRM_NOISY_BATCH_NORM;
    layer[1].width = C;
    spec.inputs = WIDTH;
    spec.layers = 2;
    spec.layer = layer;
    spec.max_batch = N;
    rc = nrm_mlp_init(&net, w->out->block, BYTES, &spec);
    for (step = 0; step < 3 && rc == NRM_OK; step++)
        rc = nrm_mlp_train_step(net, &loss, x, labels, N);
    take(w, rc);
    add(w, &loss, sizeof loss);
}

static void *all_calls(void *context)
{
    work *w = (work *)context;
    nrm_rng rng;
    int round;
    memset(w->out, 0, sizeof *w->out);
    w->hash = 14695981039346656037u;
    w->refused = NRM_OK;
    nrm_rng_seed(&rng, 1, 2);
    for (round = 0; round < ROUNDS; round++) {
        layers(w, &rng);
        network(w);
    }
    return NULL;
}

static void draw(nrm_real *a, size_t n, nrm_rng *rng)
{
    size_t i;
    for (i = 0; i < n; i++) a[i] = draw_normal(rng);
}

int main(void)
{
    pthread_t thread[THREADS];
    work alone, w[THREADS];
    nrm_rng rng;
    int i, bad = 0;
    nrm_rng_seed(&rng, 3, 4);
    draw(x, COUNT, &rng);
    draw(dy, COUNT, &rng);
    draw(gamma_, WIDTH, &rng);
    draw(beta_, WIDTH, &rng);
    draw(W, (size_t)WIDTH * WIDTH, &rng);
    for (i = 0; i < N; i++) labels[i] = i % C;
    for (i = 0; i < N * S; i++) mask[i] = i % 5 != 2;
    alone.out = &output[0];
    all_calls(&alone);
    for (i = 0; i < THREADS; i++) {
        w[i].out = &output[i];
        if (pthread_create(&thread[i], NULL, all_calls, &w[i]) != 0) {
            fprintf(stderr, "threads: no thread\n");
            return 1;
        }
    }
    for (i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        bad += w[i].hash != alone.hash || w[i].refused != NRM_OK;
    }
    if (alone.refused != NRM_OK) printf("threads: %s\n", nrm_strerror(alone.refused));
    if (bad > 0) printf("threads: %d of %d have other results than one alone\n", bad, (int)THREADS);
    return bad > 0 || alone.refused != NRM_OK;
}
