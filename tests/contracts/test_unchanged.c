/* test_unchanged.c - nothing else changes: a network is one block of memory, which is copied before
   a call and compared after it.

   A call that is refused leaves the block as it was, byte for byte. One that only looks (inference,
   the frozen mode, the gradient, the evaluation) leaves everything but its activations, saved
   statistics and gradients: the network itself with its settings and generator, all layers with
   their running statistics, parameters and the optimizer's averages. So does one that met a NaN.
   Several workers are played by a script: what the others add, and which call fails. */
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"
#include "lab/draw.h"
#include "test.h"
#include "block.h"

enum { INPUTS = 3, UNITS = 4, CLASSES = 3, LAYERS = 3, BATCH = 6, EXAMPLES = 14 };

static nrm_real x[EXAMPLES * INPUTS];
static int labels[EXAMPLES];

typedef struct script { /* the other workers */
    int calls, fail_at, code; /* call `fail_at` (1, 2, ...) returns `code`   */
    size_t n[16];             /* what was to be added or merged at each call */
    nrm_acc status;           /* what the others add to the status           */
    nrm_acc examples;         /* and to the number of examples               */
    nrm_acc sent;             /* the last number that was to be added        */
    nrm_stats stats;          /* what the others merge                       */
} script;
static script others;

static int add(void *context, nrm_acc *sums, size_t n)
{
    script *o = (script *)context;
    if (o->calls < 16) o->n[o->calls] = n;
    o->calls++;
    o->sent = sums[n - 1];
    if (n == 2) sums[1] += o->examples;
    if (n > 2 * UNITS) sums[n - 1] += o->status;
    return o->calls == o->fail_at ? o->code : 0;
}
static int merge(void *context, nrm_stats *stats, size_t n)
{
    script *o = (script *)context;
    size_t i;
    if (o->calls < 16) o->n[o->calls] = n;
    o->calls++;
    for (i = 0; i < n; i++)
        if (nrm_stats_merge(&stats[i], &o->stats, 1) != NRM_OK) return -1;
    return o->calls == o->fail_at ? o->code : 0;
}

/* A network with the norm in its two hidden layers, or in the second of them only, after two steps
   of training, so that nothing has its first value. */
static nrm_mlp *network(int norm, int first_layer_too, int optimizer, int workers)
{
    nrm_mlp_spec spec = nrm_mlp_defaults();
    nrm_mlp_layer shape[LAYERS];
    nrm_mlp *net = NULL;
    nrm_rng rng;
    size_t i;
    memset(shape, 0, sizeof shape);
    for (i = 0; i < LAYERS; i++) {
        shape[i].width = i < 2 ? UNITS : CLASSES;
        shape[i].norm = i == 1 || (i == 0 && first_layer_too) ? norm : NRM_NO_NORM;
        shape[i].activation = i < 2 ? NRM_TANH : NRM_IDENTITY;
        shape[i].bias = i == 2;
        shape[i].groups = 2;
        shape[i].p = NRM_L1 + NRM_CENTRED;
    }
    spec.inputs = INPUTS, spec.layers = LAYERS, spec.layer = shape, spec.max_batch = BATCH;
    spec.optimizer = optimizer;
    spec.heavy_ball = (nrm_real)0.5;
    spec.r_max = 2;
    spec.d_max = 1;
    memset(&others, 0, sizeof others);
    others.stats.count = 4, others.stats.mean = 1, others.stats.m2 = 6;
    if (workers > 0) spec.sync.add = add;
    if (workers > 1) spec.sync.merge = merge;
    spec.sync.context = &others;
    nrm_rng_seed(&rng, 5, 99);
    for (i = 0; i < EXAMPLES * INPUTS; i++) x[i] = draw_normal(&rng);
    for (i = 0; i < EXAMPLES; i++) labels[i] = (int)(i * 5 % CLASSES);
    memset(&block, 0xA5, sizeof block);
    OK(nrm_mlp_init(&net, block.at, sizeof block, &spec));
    for (i = 0; i < 2 && net != NULL; i++) OK(nrm_mlp_train_step(net, NULL, x, labels, BATCH));
    others.calls = 0;
    before = block;
    return net;
}

/* Of a step that was none, the running statistics and the noise have moved. */
static void not_a_step(nrm_mlp *net, int norm)
{
    const nrm_rng kept = net->rng;
    const size_t bytes = net->n_params * sizeof(nrm_real);
    CHECK_INT(nrm_mlp_train_step(net, NULL, x, labels, BATCH), NRM_NONFINITE);
    CHECK(same(&net->steps, sizeof net->steps) && same(net->params, bytes));
    CHECK(same(net->moment1, bytes) && same(net->moment2, bytes));
    CHECK(same(&net->beta1_power, sizeof(nrm_acc)) && same(&net->beta2_power, sizeof(nrm_acc)));
    CHECK(norm == NRM_NOISY_BATCH_NORM || memcmp(&kept, &net->rng, sizeof kept) == 0);
}

static void test_looking(void)
{
    int norm, first, workers, bad;
    for (norm = NRM_NO_NORM; norm <= NRM_LP_BATCH_NORM; norm++)
        for (workers = 0; workers < (norm == NRM_BATCH_NORM ? 3 : 2); workers++)
            for (first = 0; first < 2; first++)
                for (bad = 0; bad < 3; bad++) {
                    nrm_acc loss = 0, again = 0, hits = 0;
                    nrm_mlp *net = network(norm, first, first, workers);
                    int rc[6], k;
                    if (net == NULL) return;
                    if (bad) x[4] = bad == 1 ? (nrm_real)NAN : (nrm_real)INFINITY;
                    rc[0] = nrm_mlp_forward(net, x, BATCH, NRM_INFER);
                    CHECK(only_looked(net));
                    rc[1] = nrm_mlp_forward(net, x, BATCH, NRM_FROZEN);
                    CHECK(only_looked(net));
                    rc[2] = nrm_mlp_gradient(net, &loss, x, labels, BATCH, NRM_FROZEN);
                    CHECK(only_looked(net));
                    rc[3] = nrm_mlp_gradient(net, &again, x, labels, BATCH, NRM_TRAIN);
                    rc[3] |= nrm_mlp_gradient(net, &loss, x, labels, BATCH, NRM_TRAIN);
                    CHECK(only_looked(net) && (bad || loss == again)); /* the same noise, too */
                    rc[4] = nrm_mlp_gradient(net, NULL, x, labels, 0, NRM_TRAIN);
                    if (workers == 0) { /* else the others' examples count */
                        rc[4] |= nrm_mlp_forward(net, NULL, 0, NRM_TRAIN);
                        rc[4] |= nrm_mlp_train_step(net, &loss, NULL, NULL, 0);
                        CHECK(loss == 0);
                    }
                    CHECK(only_looked(net));
                    rc[5] = nrm_mlp_eval(net, &loss, &hits, x, labels, EXAMPLES);
                    CHECK(only_looked(net));
                    for (k = 0; k < 6; k++)
                        CHECK(rc[k] == NRM_OK || (bad && rc[k] == NRM_NONFINITE));
                    CHECK(!bad || rc[3] == NRM_NONFINITE);
                    if (bad) not_a_step(net, norm);
                }
}

/* Everything that is refused, by every norm, in the last layer that has one too. */
static void test_refusals(void)
{
    const nrm_real nan = (nrm_real)NAN, large = (nrm_real)1.5;
    int norm, first, k;
    for (norm = NRM_NO_NORM; norm <= NRM_LP_BATCH_NORM; norm++)
        for (first = 0; first < 2; first++)
            for (k = 0; k < 32; k++) {
                const int batch = norm == NRM_BATCH_NORM || norm == NRM_NOISY_BATCH_NORM ||
                                  norm == NRM_BATCH_RENORM || norm == NRM_LP_BATCH_NORM;
                nrm_mlp *net = network(norm, first, 1 - first, 0);
                nrm_running *r;
                nrm_acc loss = 7, hits = 7;
                int expected = NRM_OK, got = NRM_OK, wrong[BATCH] = {0};
                if (net == NULL) return;
                r = &net->state[1].running;
                wrong[k % BATCH] = k % 2 ? -1 : CLASSES;
                if (k == 2) net->spec.lr = nan;
                if (k == 3) net->spec.lr = -1;
                if (k == 4) net->spec.r_max = (nrm_real)0.5;
                if (k == 5) net->spec.eps = nan;
                if (k == 6) net->spec.noise.mean_jitter = nan;
                if (k == 7 && batch) r->new_weight = large;
                if (k >= 8 && k < 10 && batch) r->var[UNITS - 1] = -1;
                if (k >= 10 && k < 12 && batch) r->mean[UNITS - 1] = nan;
                if (k == 24) net->state[1].shape.groups = 3;
                if (k == 25) net->state[1].shape.p = 4;
                if (k == 26 && batch) r->var[UNITS - 1] = -1;
                before = block;
                if (k < 2) {
                    got = k ? nrm_mlp_train_step(net, &loss, x, wrong, BATCH)
                            : nrm_mlp_gradient(net, &loss, x, wrong, BATCH, NRM_TRAIN);
                    expected = NRM_ELABEL;
                } else if (k < 4) {
                    got = nrm_mlp_step(net);
                    CHECK_INT(got, NRM_ERATE);
                    CHECK(memcmp(&block, &before, sizeof block) == 0);
                    got = nrm_mlp_train_step(net, &loss, x, labels, BATCH);
                    expected = NRM_ERATE;
                } else if (k < 8) {
                    if (k == 7 && !batch) continue;
                    got = nrm_mlp_train_step(net, &loss, x, labels, BATCH);
                    expected = k == 4 ? NRM_ERATE : k == 5 ? NRM_EEPS : NRM_ENOISE;
                    if (k == 7) expected = NRM_EWEIGHT;
                } else if (k < 12) {
                    if (!batch) continue;
                    got = k % 2 ? nrm_mlp_eval(net, &loss, &hits, x, labels, EXAMPLES)
                                : nrm_mlp_forward(net, x, BATCH, NRM_FROZEN);
                    expected = NRM_ESTATS;
                } else if (k == 12) {
                    if (!batch) continue;
                    got = nrm_mlp_forward(net, x, 1, NRM_TRAIN);
                    expected = NRM_EBATCH;
                } else if (k == 13) {
                    got = nrm_mlp_forward(net, x, BATCH + 1, NRM_TRAIN);
                    expected = NRM_ESIZE;
                } else if (k == 14) {
                    got = nrm_mlp_gradient(net, &loss, x, labels, BATCH + 1, NRM_TRAIN);
                    expected = NRM_ESIZE;
                } else if (k == 15) {
                    got = nrm_mlp_forward(net, x, BATCH, 3);
                    expected = NRM_EMODE;
                } else if (k == 16) {
                    got = nrm_mlp_gradient(net, &loss, x, labels, BATCH, NRM_INFER);
                    expected = NRM_EMODE;
                } else if (k == 17) {
                    got = nrm_mlp_eval(net, &loss, &loss, x, labels, EXAMPLES);
                    expected = NRM_EALIAS;
                } else if (k == 18) {
                    got = nrm_mlp_eval(net, &loss, &hits, NULL, labels, EXAMPLES);
                    expected = NRM_ENULL;
                } else if (k == 19) {
                    got = nrm_mlp_train_step(net, &loss, x, NULL, BATCH);
                    expected = NRM_ENULL;
                } else if (k == 20) {
                    got = nrm_mlp_train_step(net, &loss, NULL, labels, BATCH);
                    expected = NRM_ENULL;
                } else if (k == 21) {
                    nrm_mlp_spec spec = nrm_mlp_defaults();
                    nrm_mlp *other = NULL;
                    got = nrm_mlp_init(&other, block.at, sizeof block, &spec);
                    CHECK(other == NULL);
                    expected = NRM_ENULL;
                } else if (k == 22) {
                    got = nrm_mlp_eval(net, &loss, &hits, x, NULL, EXAMPLES);
                    expected = NRM_ENULL;
                } else if (k == 24 || k == 25) {
                    if (norm != (k == 24 ? NRM_GROUP_NORM : NRM_LP_BATCH_NORM)) continue;
                    got = nrm_mlp_train_step(net, &loss, x, labels, BATCH);
                    CHECK_INT(nrm_mlp_forward(net, x, BATCH, NRM_INFER), got);
                    expected = k == 24 ? NRM_ESIZE : NRM_EKIND;
                } else if (k == 26) { /* running statistics, which renorm reads in training too */
                    if (norm != NRM_BATCH_RENORM) continue;
                    got = nrm_mlp_train_step(net, &loss, x, labels, BATCH);
                    expected = NRM_ESTATS;
                } else if (k == 27) {
                    got = nrm_mlp_train_step(net, &loss, x, labels, BATCH + 1);
                    expected = NRM_ESIZE;
                } else if (k == 28) {
                    got = nrm_mlp_forward(net, x, BATCH, -1);
                    expected = NRM_EMODE;
                } else if (k == 29) {
                    got = nrm_mlp_forward(net, NULL, 2, NRM_TRAIN);
                    expected = NRM_ENULL;
                } else if (k == 30) {
                    got = nrm_mlp_gradient(net, &loss, x, NULL, BATCH, NRM_TRAIN);
                    expected = NRM_ENULL;
                } else if (k == 31) {
                    got = nrm_mlp_forward(NULL, x, 2, NRM_TRAIN);
                    CHECK_INT(nrm_mlp_gradient(NULL, &loss, x, labels, 2, NRM_TRAIN), got);
                    CHECK_INT(nrm_mlp_train_step(NULL, &loss, x, labels, 2), got);
                    CHECK_INT(nrm_mlp_eval(NULL, &loss, NULL, x, labels, 2), got);
                    CHECK_INT(nrm_mlp_step(NULL), got);
                    expected = NRM_ENULL;
                } else {
                    int far[EXAMPLES] = {0};
                    far[EXAMPLES - 1] = CLASSES; /* in the last part */
                    got = nrm_mlp_eval(net, &loss, &hits, x, far, EXAMPLES);
                    expected = NRM_ELABEL;
                }
                if (!CHECK(got == expected)) printf("    norm %d, case %d: %d\n", norm, k, got);
                CHECK(memcmp(&block, &before, sizeof block) == 0);
                CHECK(loss == 7 && hits == 7);
            }
}

/* What the calls of one step are, with examples and without; and which failure ends it where. */
static void test_a_failing_worker(void)
{
    int k, code, N;
    for (N = 0; N <= BATCH; N += BATCH)
        for (k = 0; k <= 6; k++)
            for (code = -1; code <= 1; code += 2) {
                nrm_mlp *net = network(NRM_BATCH_NORM, 1, NRM_SGD, 2);
                nrm_acc loss = 0;
                int rc;
                if (net == NULL) return;
                others.fail_at = k;
                others.code = code;
                others.examples = 4;
                rc = nrm_mlp_train_step(net, &loss, x, labels, (size_t)N);
                CHECK_INT(rc, k == 0 ? NRM_OK : NRM_ESYNC);
                CHECK_INT(others.calls, k == 0 ? 6 : k); /* nobody is asked after a failure */
                CHECK_INT(net->steps, k == 0 ? 3 : 2);
                CHECK((k == 0) == !same(net->params, net->n_params * sizeof(nrm_real)));
                if (k > 0) continue;
                CHECK(others.n[0] == UNITS && others.n[1] == UNITS); /* statistics */
                CHECK(others.n[2] == 2);                             /* loss, examples */
                CHECK(others.n[3] == 2 * UNITS && others.n[4] == 2 * UNITS); /* sums */
                CHECK(others.n[5] == net->n_params + 1); /* gradients, status */
            }
}

/* If one has met something not finite, all know, and none takes a step. */
static void test_all_are_told(void)
{
    int status, workers;
    for (workers = 1; workers < 3; workers++)
        for (status = 0; status < 4; status++) {
            nrm_mlp *net = network(NRM_BATCH_NORM, 1, NRM_ADAM, workers);
            if (net == NULL) return;
            others.status = (nrm_acc)status;
            others.examples = 4;
            CHECK_INT(nrm_mlp_gradient(net, NULL, x, labels, BATCH, NRM_TRAIN), status > 0);
            CHECK(others.sent == 0 && only_looked(net));
            CHECK_INT(nrm_mlp_train_step(net, NULL, x, labels, BATCH), status > 0);
            CHECK_INT(net->steps, status > 0 ? 2 : 3);
            CHECK((status > 0) == same(net->params, net->n_params * sizeof(nrm_real)));
            x[5] = (nrm_real)NAN;
            CHECK_INT(nrm_mlp_gradient(net, NULL, x, labels, BATCH, NRM_TRAIN), NRM_NONFINITE);
            CHECK(others.sent == 1);
        }
}

/* A single value in all, of whichever worker, is no batch. That is known after merging only, when
   layers have worked: so the status is that of a step that was broken off. */
static void test_one_value_in_all(void)
{
    const nrm_stats counts[3] = {{1, 0, 0}, {4, 0, -1}, {-2, 0, 0}};
    int k, N;
    for (k = 0; k < 3; k++)
        for (N = 0; N < 2; N++) {
            nrm_mlp *net = network(NRM_BATCH_NORM, 0, NRM_SGD, 2);
            if (net == NULL) return;
            others.stats = counts[k];
            others.stats.count -= (nrm_acc)(k == 0 ? N : 0);
            CHECK_INT(nrm_mlp_forward(net, x, (size_t)N, NRM_TRAIN), NRM_ESYNC);
            CHECK_INT(nrm_mlp_train_step(net, NULL, x, labels, (size_t)N), NRM_ESYNC);
            CHECK(only_looked(net));
        }
}

/* An argument that lies in the network's own block is refused before anything works. */
static void test_arguments_in_the_block(void)
{
    int k, norm;
    for (norm = NRM_NO_NORM; norm <= NRM_LAYER_NORM; norm++)
        for (k = 0; k < 8; k++) {
            nrm_mlp *net = network(norm, 1, NRM_ADAM, 0);
            nrm_acc loss = 7, hits = 7;
            nrm_real *at;
            const int *in;
            nrm_acc *out;
            if (net == NULL) return;
            at = k == 0   ? net->state[0].linear_out
                 : k == 1 ? net->state[1].norm_out
                 : k == 2 ? net->state[1].act_out
                 : k == 3 ? net->params
                 : k == 4 ? net->grads
                 : k == 5 ? net->prob
                 : k == 6 ? net->work[0]
                          : net->work[1] + BATCH * UNITS - 1; /* the last number of the block */
            memset(at, 0, sizeof *at);
            before = block;
            in = (const int *)(const void *)at;
            out = k == 7 ? (nrm_acc *)(void *)net->work[1] : (nrm_acc *)(void *)at;
            CHECK_INT(nrm_mlp_forward(net, at, BATCH, NRM_TRAIN), NRM_EALIAS);
            CHECK_INT(nrm_mlp_gradient(net, &loss, at, labels, 1, NRM_FROZEN), NRM_EALIAS);
            CHECK_INT(nrm_mlp_gradient(net, &loss, x, in, 1, NRM_FROZEN), NRM_EALIAS);
            CHECK_INT(nrm_mlp_train_step(net, out, x, labels, BATCH), NRM_EALIAS);
            CHECK_INT(nrm_mlp_eval(net, &loss, &hits, at, labels, EXAMPLES), NRM_EALIAS);
            CHECK_INT(nrm_mlp_eval(net, &loss, &hits, x, in, EXAMPLES), NRM_EALIAS);
            CHECK_INT(nrm_mlp_eval(net, &loss, out, x, labels, EXAMPLES), NRM_EALIAS);
            CHECK(memcmp(&block, &before, sizeof block) == 0 && loss == 7 && hits == 7);
        }
}

/* So is one that begins before the block, and only the second example of which lies in it. */
static void test_arguments_into_the_block(void)
{
    enum { BEFORE = 512 };
    nrm_mlp_spec spec = nrm_mlp_defaults();
    nrm_mlp_layer shape;
    nrm_mlp *net = NULL;
    nrm_acc loss = 7;
    memset(&shape, 0, sizeof shape);
    shape.width = CLASSES;
    spec.inputs = INPUTS, spec.layers = 1, spec.layer = &shape, spec.max_batch = 2;
    memset(&block, 0, sizeof block);
    OK(nrm_mlp_init(&net, block.at + BEFORE, sizeof block - BEFORE, &spec));
    if (net == NULL) return;
    before = block;
    OK(nrm_mlp_forward(net, (nrm_real *)(void *)net - INPUTS, 1, NRM_INFER));
    block = before;
    CHECK_INT(nrm_mlp_forward(net, (nrm_real *)(void *)net - INPUTS, 2, NRM_INFER), NRM_EALIAS);
    CHECK_INT(nrm_mlp_gradient(net, &loss, x, (int *)(void *)net - 1, 2, NRM_TRAIN), NRM_EALIAS);
    CHECK(memcmp(&block, &before, sizeof block) == 0 && loss == 7);
}

/* The block that init takes may not hold what it reads, nor the pointer that it sets. */
static void test_specification_in_the_block(void)
{
    nrm_mlp_spec spec = nrm_mlp_defaults();
    static nrm_mlp_layer shape = {2, 0, 0, 0, 0, 0, 0};
    nrm_mlp *net = NULL;
    size_t bytes;
    spec.inputs = spec.layers = spec.max_batch = 1;
    spec.layer = &shape;
    bytes = nrm_mlp_bytes(&spec);
    memset(&block, 0xA5, sizeof block);
    memcpy(block.at + 64, &spec, sizeof spec);
    before = block;
    CHECK_INT(nrm_mlp_init(&net, block.at, bytes, (nrm_mlp_spec *)(void *)(block.at + 64)),
              NRM_EALIAS);
    spec.layer = (nrm_mlp_layer *)(void *)(block.at + (bytes - 64) / 8 * 8);
    memcpy(block.at + (bytes - 64) / 8 * 8, &shape, sizeof shape);
    before = block;
    CHECK_INT(nrm_mlp_init(&net, block.at, bytes, &spec), NRM_EALIAS);
    spec.layer = &shape;
    CHECK_INT(nrm_mlp_init((nrm_mlp **)(void *)block.at, block.at, bytes, &spec), NRM_EALIAS);
    CHECK(net == NULL && memcmp(block.at, before.at, 64) == 0); /* spec has gaps */
    CHECK(memcmp(block.at + 64 + sizeof spec, before.at + 64 + sizeof spec,
                 sizeof block - 64 - sizeof spec) == 0);
    /* weights that fit, and a batch of inputs that does not */
    spec.inputs = SIZE_MAX / 256;
    spec.max_batch = 64;
    CHECK_INT(nrm_mlp_bytes(&spec), 0);
}

/* Sizes of a batch that overflow are refused before a label is read. */
static void test_too_many_examples(void)
{
    nrm_mlp *net = network(NRM_LAYER_NORM, 1, NRM_SGD, 0);
    nrm_acc loss = 7;
    if (net == NULL) return;
    CHECK_INT(nrm_mlp_eval(net, &loss, NULL, x, labels, SIZE_MAX / 2), NRM_EOVERFLOW);
    CHECK(loss == 7 && memcmp(&block, &before, sizeof block) == 0);
}

/* Nobody has an example: a loss of 0, and no NaN. */
static void test_nobody_has_examples(void)
{
    nrm_mlp *net = network(NRM_LAYER_NORM, 1, NRM_SGD, 1);
    nrm_acc loss = 7;
    size_t i;
    if (net == NULL) return;
    OK(nrm_mlp_gradient(net, &loss, NULL, NULL, 0, NRM_TRAIN));
    CHECK(loss == 0 && others.calls == 2 && only_looked(net));
    for (i = 0; i < net->n_params; i++) CHECK(net->grads[i] == 0);
}

int main(void)
{
    RUN(test_looking);
    RUN(test_refusals);
    RUN(test_a_failing_worker);
    RUN(test_all_are_told);
    RUN(test_nobody_has_examples);
    RUN(test_one_value_in_all);
    RUN(test_arguments_in_the_block);
    RUN(test_arguments_into_the_block);
    RUN(test_specification_in_the_block);
    RUN(test_too_many_examples);
    return test_report("unchanged");
}
