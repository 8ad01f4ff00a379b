/* test_workers.c - data-parallel training: several workers with uneven parts of a batch do what one
   does with the whole.

   The workers are threads with a network each, and meet at a table where everyone lays down what he
   has: whatever the order in which they come, it is taken up by number. Here no result may depend
   on anything but the numbers: all copies of the network have the same bits after every step. */
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"
#include "lab/draw.h"
#include "test.h"
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

enum { WORKERS = 8, INPUTS = 6, HIDDEN = 8, CLASSES = 4, BATCH = 32, STEPS = 5, MOST = 4096 };

static const int in_float = sizeof(nrm_real) == sizeof(float);
static const int acc_in_float = sizeof(nrm_acc) == sizeof(float);

/* ---- the table at which the workers meet ----------------------------------------------------- */

typedef struct table {
    pthread_mutex_t lock;
    pthread_cond_t all_here;
    int workers, here;
    unsigned round;
    unsigned char *place[WORKERS]; /* [bytes] what each has laid down */
    size_t bytes[WORKERS];
} table;

/* Waits until everyone is here. */
static void meet(table *t)
{
    pthread_mutex_lock(&t->lock);
    if (++t->here == t->workers) {
        t->here = 0;
        t->round++;
        pthread_cond_broadcast(&t->all_here);
    } else {
        const unsigned round = t->round;
        while (round == t->round) pthread_cond_wait(&t->all_here, &t->lock);
    }
    pthread_mutex_unlock(&t->lock);
}

typedef struct seat { /* one worker's view of it */
    table *at;
    int number;
} seat;

/* Lays down my bytes and waits until all have; then nobody may change his before lift. */
static void lay_down(seat *me, const void *mine, size_t bytes)
{
    me->at->place[me->number] = (unsigned char *)malloc(bytes);
    if (me->at->place[me->number] == NULL) exit(2);
    memcpy(me->at->place[me->number], mine, bytes);
    me->at->bytes[me->number] = bytes;
    meet(me->at);
}

static void lift(seat *me)
{
    meet(me->at);
    free(me->at->place[me->number]);
}

static int add(void *context, nrm_acc *sums, size_t n)
{
    seat *me = (seat *)context;
    int w, rc = 0;
    size_t i;
    lay_down(me, sums, n * sizeof *sums);
    for (w = 0; w < me->at->workers; w++) {
        const nrm_acc *theirs = (const nrm_acc *)(void *)me->at->place[w];
        if (me->at->bytes[w] != n * sizeof *sums) rc = -1;
        for (i = 0; i < n && rc == 0; i++) sums[i] = w == 0 ? theirs[i] : sums[i] + theirs[i];
    }
    lift(me);
    return rc;
}

static int merge(void *context, nrm_stats *stats, size_t n)
{
    seat *me = (seat *)context;
    int w, rc = 0;
    lay_down(me, stats, n * sizeof *stats);
    memset(stats, 0, n * sizeof *stats);
    for (w = 0; w < me->at->workers; w++) {
        if (me->at->bytes[w] != n * sizeof *stats) rc = -1;
        if (rc == 0)
            rc = nrm_stats_merge(stats, (const nrm_stats *)(void *)me->at->place[w], n);
    }
    lift(me);
    return rc;
}

/* ---- networks and data ----------------------------------------------------------------------- */

typedef struct task { /* what one worker has and does */
    seat mine;
    int norm, synced, merged, mode;
    const nrm_real *x;
    const int *labels;
    size_t from[STEPS], count[STEPS]; /* its part of each batch */
    nrm_acc loss[STEPS];
    nrm_real grads[STEPS][MOST], params[MOST], mean[HIDDEN], var[HIDDEN];
    size_t n_params, batches;
    int bad;
} task;

static nrm_mlp *make_net(task *t, void **block)
{
    nrm_mlp_spec spec = nrm_mlp_defaults();
    nrm_mlp_layer layer[3];
    nrm_mlp *net = NULL;
    size_t bytes;
    memset(layer, 0, sizeof layer);
    layer[0].width = layer[1].width = HIDDEN;
    layer[0].norm = layer[1].norm = t->norm;
    layer[0].activation = NRM_TANH;
    layer[1].activation = NRM_RELU;
    layer[2].width = CLASSES;
    layer[2].bias = 1;
    spec.inputs = INPUTS;
    spec.layers = 3;
    spec.layer = layer;
    spec.max_batch = BATCH;
    spec.gamma_init = NRM_GAMMA_UNIFORM;
    if (t->synced) spec.sync.add = add;
    if (t->merged) spec.sync.merge = merge;
    spec.sync.context = &t->mine;
    bytes = nrm_mlp_bytes(&spec);
    *block = malloc(bytes > 0 ? bytes : 1);
    if (*block == NULL || nrm_mlp_init(&net, *block, bytes, &spec) != NRM_OK) exit(2);
    return net;
}

static void *work(void *context)
{
    task *t = (task *)context;
    void *block;
    nrm_mlp *net = make_net(t, &block);
    const nrm_mlp_state *first = &net->state[0];
    size_t k;
    t->n_params = net->n_params;
    for (k = 0; k < STEPS; k++) {
        const nrm_real *x = t->x + t->from[k] * INPUTS;
        t->bad |= nrm_mlp_train_step(net, &t->loss[k], x, t->labels + t->from[k], t->count[k]);
        memcpy(t->grads[k], net->grads, net->n_params * sizeof *net->grads);
    }
    memcpy(t->params, net->params, net->n_params * sizeof *net->params);
    if (first->running.mean != NULL) {
        memcpy(t->mean, first->running.mean, sizeof t->mean);
        memcpy(t->var, first->running.var, sizeof t->var);
        t->batches = first->running.batches;
    }
    free(block);
    return NULL;
}

static task workers[WORKERS], alone;
static nrm_real examples[STEPS * BATCH * INPUTS];
static int labels[STEPS * BATCH];

static void make_data(uint64_t seed)
{
    nrm_rng rng;
    size_t i;
    nrm_rng_seed(&rng, seed, 1000);
    for (i = 0; i < sizeof examples / sizeof *examples; i++)
        examples[i] = (nrm_real)(1 + (double)i / 400) * draw_normal(&rng) + 2;
    for (i = 0; i < sizeof labels / sizeof *labels; i++)
        labels[i] = (int)nrm_rng_below(&rng, CLASSES);
}

static void prepare(task *t, int norm, int synced, int merged)
{
    size_t k;
    memset(t, 0, sizeof *t);
    t->norm = norm;
    t->synced = synced;
    t->merged = merged;
    t->x = examples;
    t->labels = labels;
    for (k = 0; k < STEPS; k++) {
        t->from[k] = k * BATCH;
        t->count[k] = BATCH;
    }
}

/* Cuts every batch into parts of random size, some of them perhaps empty. */
static void cut(int count, int empty_ones, nrm_rng *rng)
{
    size_t k;
    int w;
    for (k = 0; k < STEPS; k++) {
        size_t left = BATCH, from = k * BATCH;
        for (w = 0; w < count; w++) {
            const size_t rest = (size_t)(count - 1 - w) * (empty_ones ? 0 : 2);
            size_t n = empty_ones ? nrm_rng_below(rng, (uint32_t)left + 1)
                                  : 2 + nrm_rng_below(rng, (uint32_t)(left - rest - 1));
            if (w == count - 1) n = left;
            workers[w].from[k] = from;
            workers[w].count[k] = n;
            from += n;
            left -= n;
        }
    }
}

static void run_workers(int norm, int merged, int count, int empty_ones, nrm_rng *rng)
{
    table t;
    pthread_t thread[WORKERS];
    int w;
    memset(&t, 0, sizeof t);
    pthread_mutex_init(&t.lock, NULL);
    pthread_cond_init(&t.all_here, NULL);
    t.workers = count;
    for (w = 0; w < count; w++) {
        prepare(&workers[w], norm, 1, merged);
        workers[w].mine.at = &t;
        workers[w].mine.number = w;
    }
    cut(count, empty_ones, rng);
    for (w = 0; w < count; w++)
        if (pthread_create(&thread[w], NULL, work, &workers[w]) != 0) exit(2);
    for (w = 0; w < count; w++) pthread_join(thread[w], NULL);
    pthread_cond_destroy(&t.all_here);
    pthread_mutex_destroy(&t.lock);
}

/* The largest |a − b|, relative to the largest |b|. */
static double distance(const nrm_real *a, const nrm_real *b, size_t n)
{
    double most = 0, size = 0;
    size_t i;
    for (i = 0; i < n; i++) {
        most = fmax(most, fabs((double)a[i] - (double)b[i]));
        size = fmax(size, fabs((double)b[i]));
    }
    return most / size;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static double bound(void)
{
    return in_float || acc_in_float ? 2e-4 : 1e-12; /* after five steps of training */
}

static void compare_with_alone(int norm, int count, int empty_ones, nrm_rng *rng)
{
    size_t k;
    int w;
    prepare(&alone, norm, 0, 0);
    work(&alone);
    run_workers(norm, norm == NRM_BATCH_NORM, count, empty_ones, rng);
    CHECK(alone.bad == 0);
    for (w = 0; w < count; w++) {
        const task *t = &workers[w];
        CHECK(t->bad == 0);
        CHECK(memcmp(t->params, workers[0].params, t->n_params * sizeof *t->params) == 0);
        CHECK(memcmp(t->mean, workers[0].mean, sizeof t->mean) == 0);
        CHECK(memcmp(t->var, workers[0].var, sizeof t->var) == 0);
        for (k = 0; k < STEPS; k++) CHECK(t->loss[k] == workers[0].loss[k]);
    }
    for (k = 0; k < STEPS; k++) {
        CHECK_NEAR(workers[0].loss[k], alone.loss[k], bound());
        CHECK_NEAR(distance(workers[0].grads[k], alone.grads[k], alone.n_params), 0, bound());
    }
    CHECK_NEAR(distance(workers[0].params, alone.params, alone.n_params), 0, bound());
    if (norm != NRM_BATCH_NORM) return;
    CHECK_NEAR(distance(workers[0].mean, alone.mean, HIDDEN), 0, bound());
    CHECK_NEAR(distance(workers[0].var, alone.var, HIDDEN), 0, bound());
    CHECK_INT(workers[0].batches, STEPS);
}

static void test_many_do_what_one_does(void)
{
    static const int norms[] = {NRM_NO_NORM, NRM_BATCH_NORM, NRM_LAYER_NORM, NRM_RMS_NORM};
    nrm_rng rng;
    int count, k;
    nrm_rng_seed(&rng, 3, 1);
    make_data(5);
    for (k = 0; k < 4; k++)
        for (count = 1; count <= WORKERS; count += k == 1 ? 1 : 3)
            compare_with_alone(norms[k], count, 0, &rng);
}

static void test_some_have_nothing(void)
{
    nrm_rng rng;
    int round;
    nrm_rng_seed(&rng, 4, 1);
    make_data(6);
    for (round = 0; round < 4; round++) compare_with_alone(NRM_BATCH_NORM, 4, 1, &rng);
}

/* Without merge each worker normalizes by itself: the copies stay equal, but it is another network
   that they train. If this test fails, the ones above prove nothing. */
static void test_without_merging_it_is_another(void)
{
    nrm_rng rng;
    int w;
    nrm_rng_seed(&rng, 5, 1);
    make_data(7);
    prepare(&alone, NRM_BATCH_NORM, 0, 0);
    work(&alone);
    run_workers(NRM_BATCH_NORM, 0, 3, 0, &rng);
    for (w = 0; w < 3; w++) {
        CHECK(workers[w].bad == 0);
        CHECK(memcmp(workers[w].params, workers[0].params,
                     alone.n_params * sizeof *alone.params) == 0);
    }
    CHECK(distance(workers[0].grads[0], alone.grads[0], alone.n_params) > 0.01);
    CHECK(memcmp(workers[1].mean, workers[0].mean, sizeof workers[0].mean) != 0);
}

static int fails(void *context, nrm_acc *sums, size_t n)
{
    (void)context;
    (void)sums;
    (void)n;
    return -1;
}

static int merge_fails(void *context, nrm_stats *stats, size_t n)
{
    (void)context;
    (void)stats;
    (void)n;
    return 7;
}

static void check_spec(const nrm_mlp_spec *spec, int status)
{
    nrm_mlp *net = NULL;
    nrm_acc block[8];
    CHECK_INT(nrm_mlp_bytes(spec), 0);
    CHECK_INT(nrm_mlp_init(&net, block, sizeof block, spec), status);
    CHECK(net == NULL);
}

static void test_refusals(void)
{
    nrm_mlp_spec spec = nrm_mlp_defaults();
    nrm_mlp_layer layer;
    void *block;
    nrm_mlp *net;
    size_t bytes;
    make_data(8);
    memset(&layer, 0, sizeof layer);
    layer.width = CLASSES;
    layer.norm = NRM_BATCH_NORM;
    spec.inputs = INPUTS;
    spec.layers = 1;
    spec.layer = &layer;
    spec.max_batch = BATCH;
    spec.sync.merge = merge_fails;
    check_spec(&spec, NRM_ENULL); /* merge wants add too */
    spec.sync.add = fails;
    layer.norm = NRM_NOISY_BATCH_NORM;
    check_spec(&spec, NRM_EKIND);
    layer.norm = NRM_BATCH_RENORM;
    check_spec(&spec, NRM_EKIND);
    layer.norm = NRM_BATCH_NORM;
    bytes = nrm_mlp_bytes(&spec);
    block = malloc(bytes);
    if (block == NULL || nrm_mlp_init(&net, block, bytes, &spec) != NRM_OK) exit(2);
    CHECK_INT(nrm_mlp_train_step(net, NULL, examples, labels, 4), NRM_ESYNC);
    net->spec.sync.merge = NULL; /* then it is add that fails */
    CHECK_INT(nrm_mlp_train_step(net, NULL, examples, labels, 4), NRM_ESYNC);
    CHECK_INT(nrm_mlp_train_step(net, NULL, examples, labels, 1), NRM_EBATCH);
    CHECK(net->steps == 0);
    free(block);
}

int main(void)
{
    RUN(test_many_do_what_one_does);
    RUN(test_some_have_nothing);
    RUN(test_without_merging_it_is_another);
    RUN(test_refusals);
    return test_report("workers");
}
