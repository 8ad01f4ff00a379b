/* test_mlp.c - the tiny perceptron: does it learn, is it exact, and does it keep its promises?

   Every network lives in a block of exactly the size that nrm_mlp_bytes asks for, so a sanitizer
   sees the first byte too many. "Untouched" and "the same" mean bytewise. */
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"
#include "lab/draw.h"
#include "test.h"
#include <float.h>
#include <stdlib.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { INPUTS = 6, HIDDEN = 8, CLASSES = 4, BATCH = 32, LAST_NORM = NRM_LP_BATCH_NORM };

static const int in_float = sizeof(nrm_real) == sizeof(float);

/* ---- networks and data ----------------------------------------------------------------------- */

enum { BEHIND = 128 };  /* bytes behind a block, which must stay as they are */
typedef struct holder { /* a network, the block it lives in, and that as it was */
    nrm_mlp *net;
    unsigned char *block, *before;
    size_t bytes;
    int filled;
} holder;

/* `shift` moves the block off its alignment; what was there before does not matter. */
static holder build_at(const nrm_mlp_spec *spec, size_t shift)
{
    holder h;
    h.net = NULL;
    h.bytes = nrm_mlp_bytes(spec) + shift;
    h.filled = (int)(0x5a + shift);
    h.block = (unsigned char *)malloc(h.bytes + BEHIND);
    h.before = (unsigned char *)malloc(h.bytes);
    if (h.block == NULL || h.before == NULL) exit(2);
    memset(h.block, h.filled, h.bytes + BEHIND);
    if (!OK(nrm_mlp_init(&h.net, h.block + shift, h.bytes - shift, spec))) exit(2);
    return h;
}

static holder build(const nrm_mlp_spec *spec)
{
    return build_at(spec, 0);
}

static void drop(holder h)
{
    size_t i, kept = 0;
    for (i = 0; i < BEHIND; i++) kept += h.block[h.bytes + i] == h.filled;
    CHECK(kept == BEHIND);
    free(h.block);
    free(h.before);
}

/* Inputs, two layers: one hidden, one for the classes. `shape` is the caller's [2]. */
static nrm_mlp_spec two_layers(nrm_mlp_layer *shape, size_t hidden, int activation, int norm,
                               int norm_after)
{
    nrm_mlp_spec spec = nrm_mlp_defaults();
    memset(shape, 0, 2 * sizeof *shape);
    shape[0].width = hidden;
    shape[0].activation = activation;
    shape[0].norm = norm;
    shape[0].norm_after = norm_after;
    shape[0].groups = norm == NRM_GROUP_NORM ? 2 : 0;
    shape[0].p = norm == NRM_LP_BATCH_NORM ? NRM_L2 + NRM_CENTRED : 0;
    shape[0].bias = norm == NRM_NO_NORM || norm_after;
    shape[1].width = CLASSES;
    shape[1].bias = 1;
    spec.inputs = INPUTS;
    spec.layers = 2;
    spec.layer = shape;
    spec.max_batch = BATCH;
    spec.seed = 7;
    return spec;
}

static int keeps_statistics(int norm)
{
    return norm == NRM_BATCH_NORM || norm == NRM_NOISY_BATCH_NORM || norm == NRM_BATCH_RENORM ||
           norm == NRM_LP_BATCH_NORM;
}

typedef struct batch {
    nrm_real x[BATCH * INPUTS];
    int labels[BATCH];
} batch;

static batch random_batch(uint64_t seed)
{
    batch b;
    nrm_rng rng;
    size_t i;
    nrm_rng_seed(&rng, seed, 100);
    for (i = 0; i < COUNT(b.x); i++) b.x[i] = draw_normal(&rng);
    for (i = 0; i < BATCH; i++) b.labels[i] = (int)nrm_rng_below(&rng, CLASSES);
    return b;
}

static int same_params(const nrm_mlp *a, const nrm_mlp *b)
{
    return a->n_params == b->n_params &&
           memcmp(a->params, b->params, a->n_params * sizeof *a->params) == 0;
}

static void remember(const holder *h)
{
    memcpy(h->before, h->block, h->bytes);
}

/* Are n bytes of the network as they were, or absent? */
static int same(const holder *h, const void *at, size_t n)
{
    const size_t from = (size_t)((const unsigned char *)at - h->block);
    return at == NULL || memcmp(at, h->before + from, n) == 0;
}

static int learned_same(const holder *h)
{
    const nrm_mlp *net = h->net;
    const size_t bytes = net->n_params * sizeof(nrm_real);
    return same(h, net->params, bytes) && same(h, net->moment1, bytes) &&
           same(h, net->moment2, bytes) && same(h, &net->steps, sizeof net->steps) &&
           same(h, &net->beta1_power, sizeof(nrm_acc)) &&
           same(h, &net->beta2_power, sizeof(nrm_acc));
}

static int equal(const nrm_real *a, const nrm_real *b, size_t n)
{
    return memcmp(a, b, n * sizeof *a) == 0;
}

/* ---- it learns ------------------------------------------------------------------------------- */

/* Random labels of 32 examples can only be learnt by heart, so every part must work. */
static void check_overfits(int norm, int activation, int norm_after)
{
    const batch b = random_batch(1);
    nrm_mlp_layer shape[2];
    nrm_mlp_spec spec = two_layers(shape, 32, activation, norm, norm_after);
    nrm_acc loss = 0, first = 0, accuracy = 0;
    holder h;
    int step;
    spec.optimizer = NRM_ADAM;
    spec.lr = (nrm_real)0.03;
    spec.noise.mean_jitter = spec.noise.scale_jitter = (nrm_real)0.02;
    h = build(&spec);
    OK(nrm_mlp_gradient(h.net, &first, b.x, b.labels, BATCH, NRM_TRAIN));
    for (step = 0; step < 150; step++) OK(nrm_mlp_train_step(h.net, &loss, b.x, b.labels, BATCH));
    OK(nrm_mlp_eval(h.net, NULL, &accuracy, b.x, b.labels, BATCH));
    if (!CHECK(first > 1 && (double)loss < 0.05 && accuracy >= 1))
        printf("  norm %d, activation %d, after %d: loss %g -> %g, accuracy %g\n", norm, activation,
               norm_after, (double)first, (double)loss, (double)accuracy);
    drop(h);
}

/* The defaults are what the header says, and what the papers and PyTorch have. */
static void test_defaults(void)
{
    const nrm_mlp_spec spec = nrm_mlp_defaults();
    CHECK_INT(spec.init, NRM_INIT_HE);
    CHECK_INT(spec.gamma_init, NRM_GAMMA_ONE);
    CHECK(spec.eps == NRM_EPS && spec.new_weight == (nrm_real)0.1);
    CHECK_INT(spec.cumulative, 0);
    CHECK_INT(spec.biased, 0);
    CHECK_INT(spec.optimizer, NRM_SGD);
    CHECK(spec.lr == (nrm_real)0.1 && spec.heavy_ball == 0);
    CHECK(spec.beta1 == (nrm_real)0.9 && spec.beta2 == (nrm_real)0.999);
    CHECK(spec.adam_eps == (nrm_real)1e-8 && spec.init_std == (nrm_real)0.01);
    CHECK(spec.r_max == 1 && spec.d_max == 0); /* batch renorm begins as batch norm */
}

static void test_overfits(void)
{
    int norm, activation, after;
    for (norm = NRM_NO_NORM; norm <= LAST_NORM; norm++)
        for (activation = NRM_RELU; activation <= NRM_SIGMOID; activation++)
            for (after = 0; after <= (norm != NRM_NO_NORM); after++)
                check_overfits(norm, activation, after);
}

/* ---- it is exact ----------------------------------------------------------------------------- */

/* Twenty steps with a seed; leaves the losses in `losses`. */
static holder train_twenty(nrm_acc *losses, int norm, uint64_t seed, size_t shift)
{
    const batch b = random_batch(2);
    nrm_mlp_layer shape[2];
    nrm_mlp_spec spec = two_layers(shape, HIDDEN, NRM_RELU, norm, 0);
    holder h;
    int step;
    spec.seed = seed;
    spec.heavy_ball = (nrm_real)0.5;
    h = build_at(&spec, shift);
    for (step = 0; step < 20; step++)
        OK(nrm_mlp_train_step(h.net, &losses[step], b.x, b.labels, BATCH));
    return h;
}

static void test_same_seed_same_bits(void)
{
    nrm_acc one[20], two[20];
    int norm;
    size_t shift;
    for (norm = NRM_NO_NORM; norm <= LAST_NORM; norm++) {
        const holder first = train_twenty(one, norm, 5, 0), other = train_twenty(two, norm, 6, 0);
        CHECK(!same_params(first.net, other.net));
        CHECK(memcmp(one, two, sizeof one) != 0);
        drop(other);
        for (shift = 0; shift < 8; shift += shift < 2 ? 1 : 5) { /* 0, 1, 2, 7 */
            const holder again = train_twenty(two, norm, 5, shift);
            CHECK(same_params(first.net, again.net));
            CHECK(memcmp(one, two, sizeof one) == 0);
            CHECK((uintptr_t)again.net->params % 64 == 0);
            drop(again);
        }
        drop(first);
    }
}

/* Wherever in a cache line a block begins, its last array, which three layers fill, is inside. */
static void test_block_ends(void)
{
    const batch b = random_batch(2);
    nrm_mlp_layer shape[3];
    nrm_mlp_spec spec = two_layers(shape, HIDDEN, NRM_RELU, NRM_BATCH_NORM, 0);
    size_t shift;
    shape[2] = shape[1];
    shape[1] = shape[0];
    spec.layers = 3;
    for (shift = 0; shift < 64; shift++) {
        const holder h = build_at(&spec, shift);
        nrm_acc loss;
        OK(nrm_mlp_gradient(h.net, &loss, b.x, b.labels, BATCH, NRM_TRAIN));
        drop(h);
    }
}

/* Networks that differ in norms, placement, biases and optimizer start from the same weights. */
static void test_norms_share_weights(void)
{
    int init, norm;
    for (init = NRM_INIT_HE; init <= NRM_INIT_FAN_IN; init++) {
        nrm_mlp_layer shape[2];
        nrm_mlp_spec spec = two_layers(shape, HIDDEN, NRM_RELU, NRM_NO_NORM, 0);
        holder plain, other;
        spec.init = init;
        plain = build(&spec);
        for (norm = NRM_BATCH_NORM; norm <= LAST_NORM; norm++) {
            spec = two_layers(shape, HIDDEN, NRM_TANH, norm, norm == NRM_LAYER_NORM);
            spec.init = init;
            spec.optimizer = NRM_ADAM;
            spec.gamma_init = NRM_GAMMA_UNIFORM;
            shape[1].bias = 0;
            other = build(&spec);
            CHECK(equal(plain.net->state[0].W, other.net->state[0].W, INPUTS * HIDDEN));
            CHECK(equal(plain.net->state[1].W, other.net->state[1].W, HIDDEN * CLASSES));
            CHECK(plain.net->params != other.net->params && other.net->state[1].b == NULL);
            drop(other);
        }
        spec.seed++;
        other = build(&spec);
        CHECK(!equal(plain.net->state[0].W, other.net->state[0].W, INPUTS * HIDDEN));
        drop(other);
        drop(plain);
    }
}

/* ---- gradients ------------------------------------------------------------------------------- */

typedef struct whole_net {
    nrm_mlp *net;
    nrm_real *x;
    const int *labels;
    size_t N;
    int mode;
} whole_net;

static nrm_acc whole_loss(void *context)
{
    whole_net *w = (whole_net *)context;
    const nrm_rng kept = w->net->rng; /* the same noise each time */
    nrm_acc loss = 0;
    CHECK(nrm_mlp_forward(w->net, w->x, w->N, w->mode) == NRM_OK);
    CHECK(nrm_cross_entropy_forward(&loss, NULL, w->net->logits, w->labels, w->N, CLASSES) ==
          NRM_OK);
    w->net->rng = kept;
    return loss;
}

/* All parameters of a three-layer network at once; returns the largest error. */
static double check_whole_net(int norm, int activation, int after, int bias, int mode)
{
    enum { N = 5 };
    batch b = random_batch(4);
    nrm_mlp_layer shape[3];
    nrm_mlp_spec spec = two_layers(shape, HIDDEN, activation, norm, after);
    nrm_gradcheck_group group;
    nrm_gradcheck_report report;
    nrm_gradcheck_options o;
    nrm_acc loss = 0;
    whole_net w;
    holder h;
    size_t i;
    int rc;
    shape[2] = shape[1];
    shape[1] = shape[0];
    shape[1].width = HIDDEN + 1;
    shape[1].groups = norm == NRM_GROUP_NORM ? 3 : 0;
    shape[0].bias = shape[1].bias = shape[2].bias = bias;
    shape[2].norm = norm == NRM_LAYER_NORM ? NRM_LAYER_NORM : NRM_NO_NORM; /* logits, normalized */
    spec.layers = 3;
    spec.init = NRM_INIT_FAN_IN;
    spec.gamma_init = NRM_GAMMA_UNIFORM;
    spec.eps = (nrm_real)1e-2;
    h = build(&spec);
    for (i = 0; i < 3; i++) OK(nrm_mlp_train_step(h.net, NULL, b.x, b.labels, N));
    w.net = h.net;
    w.x = b.x;
    w.labels = b.labels;
    w.N = N;
    w.mode = mode;
    OK(nrm_mlp_gradient(h.net, &loss, b.x, b.labels, N, mode));
    CHECK(loss == whole_loss(&w));
    group.name = "params";
    group.theta = h.net->params;
    group.grad = h.net->grads;
    group.n = h.net->n_params;
    memset(&o, 0, sizeof o);
    o.at_most = 100;
    rc = nrm_gradcheck(&report, &group, 1, whole_loss, &w, &o);
    if (!CHECK(rc == NRM_OK || (in_float && rc == NRM_EUNSETTLED)))
        printf("  norm %d, activation %d, after %d, bias %d, mode %d: %s; entry %u: %g, %g +- %g\n",
               norm, activation, after, bias, mode, nrm_strerror(rc), (unsigned)report.worst,
               (double)report.analytic, (double)report.numeric, (double)report.uncertainty);
    CHECK_INT(report.checked, o.at_most);
    CHECK_INT(report.wrong, 0);
    CHECK(report.vanishing + report.kinks < report.checked / (in_float ? 1 : 4));
    drop(h);
    return (double)report.error;
}

static void test_whole_net_gradients(void)
{
    double worst = 0;
    int norm, after, bias, nets = 0;
    for (norm = NRM_NO_NORM; norm <= LAST_NORM; norm++)
        for (after = 0; after <= (norm != NRM_NO_NORM); after++)
            for (bias = 0; bias < 2; bias++) {
                const int activation = bias ? NRM_TANH : NRM_SIGMOID;
                const double train = check_whole_net(norm, activation, after, bias, NRM_TRAIN);
                const double frozen = check_whole_net(norm, activation, after, bias, NRM_FROZEN);
                worst = fmax(worst, fmax(train, frozen));
                nets += 2;
            }
    worst = fmax(worst, check_whole_net(NRM_BATCH_NORM, NRM_RELU, 0, 1, NRM_TRAIN));
    worst = fmax(worst, check_whole_net(NRM_LAYER_NORM, NRM_IDENTITY, 1, 1, NRM_TRAIN));
    printf("whole networks: worst gradient error %.1e over %d networks\n", worst, nets + 2);
    CHECK(worst <= (in_float ? 1e-2 : 1e-7));
}

/* ---- optimizers ------------------------------------------------------------------------------ */

/* The optimizer's averages are kept where it needs them. */
static void test_averages(void)
{
    nrm_mlp_layer shape[2];
    nrm_mlp_spec spec = two_layers(shape, HIDDEN, NRM_TANH, NRM_LAYER_NORM, 0);
    int k;
    for (k = 0; k < 3; k++) {
        holder h;
        spec.optimizer = k == 2 ? NRM_ADAM : NRM_SGD;
        spec.heavy_ball = (nrm_real)(k == 1 ? 0.5 : 0);
        h = build(&spec);
        CHECK((h.net->moment1 != NULL) == (k > 0) && (h.net->moment2 != NULL) == (k == 2));
        drop(h);
    }
}

/* A train step is the gradient, the running statistics and the step, and nothing else. */
static void test_train_step_is_its_parts(void)
{
    const batch b = random_batch(7);
    int norm;
    for (norm = NRM_NO_NORM; norm <= LAST_NORM; norm++) {
        nrm_mlp_layer shape[2];
        nrm_mlp_spec spec = two_layers(shape, HIDDEN, NRM_RELU, norm, 0);
        nrm_acc loss = 0, parts = 0;
        const nrm_mlp *w, *a;
        holder whole, apart;
        int step;
        spec.optimizer = NRM_ADAM;
        spec.cumulative = 1;
        whole = build(&spec);
        apart = build(&spec);
        w = whole.net, a = apart.net;
        CHECK(norm % 2 == 0 || w->state[0].running.cumulative == 1);
        for (step = 0; step < 4; step++) {
            OK(nrm_mlp_train_step(whole.net, &loss, b.x, b.labels, BATCH));
            OK(nrm_mlp_gradient(apart.net, &parts, b.x, b.labels, BATCH, NRM_TRAIN));
            OK(nrm_mlp_forward(apart.net, b.x, BATCH, NRM_TRAIN)); /* statistics */
            OK(nrm_mlp_step(apart.net));
            CHECK(loss == parts);
        }
        CHECK(same_params(w, a) && equal(w->moment1, a->moment1, w->n_params) &&
              equal(w->moment2, a->moment2, w->n_params));
        CHECK(w->steps == a->steps && w->beta1_power == a->beta1_power &&
              w->beta2_power == a->beta2_power && w->rng.state == a->rng.state);
        if (w->state[0].running.mean != NULL)
            CHECK(equal(w->state[0].running.mean, a->state[0].running.mean, HIDDEN) &&
                  equal(w->state[0].running.var, a->state[0].running.var, HIDDEN) &&
                  w->state[0].running.batches == a->state[0].running.batches);
        drop(whole);
        drop(apart);
    }
}

/* ---- initialisation -------------------------------------------------------------------------- */

static void moments(const nrm_real *a, size_t n, double *mean, double *var, double *most)
{
    size_t i;
    *mean = *var = *most = 0;
    for (i = 0; i < n; i++) *mean += (double)a[i] / (double)n;
    for (i = 0; i < n; i++) {
        *var += pow((double)a[i] - *mean, 2) / (double)n;
        *most = fmax(*most, fabs((double)a[i]));
    }
}

/* How weights and biases are drawn is MLP.5 to MLP.8. */
static void test_initialisation(void)
{
    enum { IN = 100, OUT = 200 };
    int kind;
    for (kind = NRM_INIT_HE; kind <= NRM_INIT_FAN_IN; kind++) {
        nrm_mlp_layer shape[2];
        nrm_mlp_spec spec = two_layers(shape, OUT, NRM_RELU, NRM_BATCH_NORM, 0);
        double mean, var, most;
        nrm_mlp_state *s;
        holder h;
        size_t i;
        spec.inputs = IN;
        spec.init = kind;
        spec.init_std = (nrm_real)0.05;
        spec.gamma_init = kind % 2 ? NRM_GAMMA_UNIFORM : NRM_GAMMA_ONE;
        spec.new_weight = (nrm_real)0.25;
        spec.biased = 1;
        shape[0].bias = 1;
        h = build(&spec);
        s = &h.net->state[0];
        moments(s->gamma, OUT, &mean, &var, &most);
        if (kind % 2)
            CHECK(fabs(mean - 0.5) < 0.09 && fabs(var * 12 - 1) < 0.3 && most < 1);
        else
            CHECK(fabs(mean - 1) < 1e-12 && most == 1);
        for (i = 0; i < OUT; i++)
            CHECK(s->beta[i] == 0 && s->running.mean[i] == 0 && s->running.var[i] == 1);
        CHECK(s->running.new_weight == (nrm_real)0.25 && s->running.biased == 1);
        CHECK_INT(h.net->n_params, IN * OUT + 3 * OUT + OUT * CLASSES + CLASSES);
        CHECK(s->W == h.net->params && h.net->state[1].W == h.net->params + IN * OUT + 3 * OUT);
        CHECK(s->dbeta + OUT == h.net->state[1].dW && h.net->spec.layer == NULL);
        drop(h);
    }
}

/* ---- modes, evaluation, prediction ----------------------------------------------------------- */

static void test_modes(void)
{
    const batch b = random_batch(8);
    int norm;
    for (norm = NRM_NO_NORM; norm <= LAST_NORM; norm++) {
        nrm_mlp_layer shape[2];
        nrm_mlp_spec spec = two_layers(shape, HIDDEN, NRM_RELU, norm, 0);
        nrm_real train[BATCH * CLASSES], infer[BATCH * CLASSES];
        const holder h = build(&spec);
        OK(nrm_mlp_train_step(h.net, NULL, b.x, b.labels, BATCH));
        OK(nrm_mlp_forward(h.net, b.x, BATCH, NRM_TRAIN));
        memcpy(train, h.net->logits, sizeof train);
        remember(&h);
        OK(nrm_mlp_forward(h.net, b.x, BATCH, NRM_INFER));
        memcpy(infer, h.net->logits, sizeof infer);
        CHECK(equal(train, infer, COUNT(train)) == !keeps_statistics(norm));
        OK(nrm_mlp_forward(h.net, b.x, BATCH, NRM_FROZEN));
        CHECK(equal(infer, h.net->logits, COUNT(infer)));
        /* in infer mode an example does not depend on its companions */
        OK(nrm_mlp_forward(h.net, b.x + 3 * INPUTS, 1, NRM_INFER));
        CHECK(equal(infer + 3 * CLASSES, h.net->logits, CLASSES));
        drop(h);
    }
}

static void test_eval(void)
{
    const batch b = random_batch(9);
    static const size_t chunks[3] = {1, 5, 31}; /* 32 = 32*1 = 6*5 + 2 = 31 + 1 */
    nrm_mlp_layer shape[2];
    nrm_mlp_spec spec = two_layers(shape, HIDDEN, NRM_RELU, NRM_BATCH_NORM, 0);
    nrm_acc loss = 0, accuracy = 0, part_loss = 0, part_accuracy = 0, direct = 0;
    const double loss_places = sizeof(nrm_acc) == sizeof(float) ? 4 * (double)FLT_EPSILON : 1e-14;
    size_t k, i, hits = 0;
    holder one = build(&spec), other;
    OK(nrm_mlp_train_step(one.net, NULL, b.x, b.labels, BATCH));
    OK(nrm_mlp_eval(one.net, &loss, &accuracy, b.x, b.labels, BATCH));
    OK(nrm_mlp_forward(one.net, b.x, BATCH, NRM_INFER));
    OK(nrm_cross_entropy_forward(&direct, NULL, one.net->logits, b.labels, BATCH, CLASSES));
    CHECK_NEAR(loss, direct, loss_places);
    for (i = 0; i < BATCH; i++) {
        const nrm_real *z = one.net->logits + i * CLASSES;
        size_t best = 0;
        for (k = 1; k < CLASSES; k++)
            if (z[k] > z[best]) best = k;
        hits += (int)best == b.labels[i];
    }
    CHECK_NEAR(accuracy, (double)hits / BATCH, 1e-15);
    CHECK(hits > 0 && hits < BATCH);
    for (k = 0; k < 3; k++) {
        spec.max_batch = chunks[k];
        other = build(&spec);
        memcpy(other.net->params, one.net->params, one.net->n_params * sizeof(nrm_real));
        memcpy(other.net->state[0].running.mean, one.net->state[0].running.mean,
               HIDDEN * sizeof(nrm_real));
        memcpy(other.net->state[0].running.var, one.net->state[0].running.var,
               HIDDEN * sizeof(nrm_real));
        OK(nrm_mlp_eval(other.net, &part_loss, &part_accuracy, b.x, b.labels, BATCH));
        CHECK_NEAR(part_loss, loss, loss_places);
        CHECK_NEAR(part_accuracy, accuracy, 1e-15);
        OK(nrm_mlp_eval(other.net, NULL, NULL, b.x, b.labels, BATCH));
        drop(other);
    }
    OK(nrm_mlp_eval(one.net, &loss, &accuracy, NULL, NULL, 0));
    CHECK(loss == 0 && accuracy == 0);
    drop(one);
}

/* ---- the probe ------------------------------------------------------------------------------- */

enum { MOST_EVENTS = 16 };
typedef struct record { /* what the probe was shown, in order */
    nrm_mlp_event event[MOST_EVENTS];
    nrm_real *data[MOST_EVENTS];
    size_t count;
} record;

static void note(void *context, const nrm_mlp_event *event)
{
    record *r = (record *)context;
    if (!CHECK(r->count < MOST_EVENTS)) return;
    r->event[r->count] = *event;
    r->data[r->count] = (nrm_real *)malloc(event->rows * event->cols * sizeof(nrm_real));
    if (r->data[r->count] == NULL) exit(2);
    memcpy(r->data[r->count++], event->data, event->rows * event->cols * sizeof(nrm_real));
}

static const nrm_real *seen(const record *r, size_t at, size_t layer, int place, int gradient,
                            size_t rows, size_t cols)
{
    static const nrm_real nothing[BATCH * HIDDEN] = {0};
    if (!CHECK(at < r->count)) return nothing;
    CHECK_INT(r->event[at].layer, layer);
    CHECK_INT(r->event[at].place, place);
    CHECK_INT(r->event[at].gradient, gradient);
    CHECK_INT(r->event[at].rows, rows);
    CHECK_INT(r->event[at].cols, cols);
    return r->data[at];
}

/* Follows a batch up and down with the tier-1 functions and compares every array on the way. */
static void check_probe(int after)
{
    enum { N = 5 };
    const int first = after ? NRM_AT_ACTIVATION : NRM_AT_NORM;
    const int second = after ? NRM_AT_NORM : NRM_AT_ACTIVATION;
    const batch b = random_batch(10);
    nrm_mlp_layer shape[2];
    nrm_mlp_spec spec = two_layers(shape, HIDDEN, NRM_TANH, NRM_BATCH_NORM, after);
    nrm_real lin[N * HIDDEN], norm[N * HIDDEN], act[N * HIDDEN], z[N * CLASSES], p[N * CLASSES];
    nrm_real dz[N * CLASSES], d[N * HIDDEN], dg[HIDDEN], db[HIDDEN];
    nrm_real *out = after ? norm : act;
    nrm_acc mean[HIDDEN], rstd[HIDDEN], loss = 0;
    const nrm_mlp_state *s;
    record r;
    holder h;
    size_t i;
    memset(&r, 0, sizeof r);
    memset(dg, 0, sizeof dg);
    memset(db, 0, sizeof db);
    spec.gamma_init = NRM_GAMMA_UNIFORM;
    shape[0].bias = 1;
    h = build(&spec);
    h.net->probe = note;
    h.net->probe_context = &r;
    s = h.net->state;
    OK(nrm_mlp_gradient(h.net, NULL, b.x, b.labels, N, NRM_TRAIN));
    CHECK_INT(r.count, 8);

    (void)nrm_linear_forward(lin, b.x, s[0].W, s[0].b, N, INPUTS, HIDDEN);
    CHECK(equal(seen(&r, 0, 0, NRM_AT_LINEAR, 0, N, HIDDEN), lin, N * HIDDEN));
    if (after) (void)nrm_activation_forward(act, lin, NRM_TANH, N * HIDDEN);
    (void)nrm_batchnorm_forward(norm, mean, rstd, NULL, after ? act : lin, s[0].gamma, s[0].beta,
                                NRM_TRAIN, spec.eps, N, HIDDEN, 1);
    if (!after) (void)nrm_activation_forward(act, norm, NRM_TANH, N * HIDDEN);
    CHECK(equal(seen(&r, 1, 0, first, 0, N, HIDDEN), after ? act : norm, N * HIDDEN));
    CHECK(equal(seen(&r, 2, 0, second, 0, N, HIDDEN), out, N * HIDDEN));
    (void)nrm_linear_forward(z, out, s[1].W, s[1].b, N, HIDDEN, CLASSES);
    CHECK(equal(seen(&r, 3, 1, NRM_AT_LINEAR, 0, N, CLASSES), z, N * CLASSES));

    (void)nrm_cross_entropy_forward(&loss, p, z, b.labels, N, CLASSES);
    (void)nrm_cross_entropy_backward(dz, p, b.labels, N, CLASSES);
    CHECK(equal(seen(&r, 4, 1, NRM_AT_LINEAR, 1, N, CLASSES), dz, N * CLASSES));
    (void)nrm_linear_backward(d, NULL, NULL, dz, NULL, s[1].W, N, HIDDEN, CLASSES);
    CHECK(equal(seen(&r, 5, 0, second, 1, N, HIDDEN), d, N * HIDDEN));
    for (i = 0; i < 2; i++) {
        if (i == (after ? 0u : 1u))
            (void)nrm_batchnorm_backward(d, dg, db, d, after ? act : lin, mean, rstd, s[0].gamma,
                                         NRM_TRAIN, N, HIDDEN, 1);
        else
            (void)nrm_activation_backward(d, d, act, NRM_TANH, N * HIDDEN);
        CHECK(equal(i == 0 ? seen(&r, 6, 0, first, 1, N, HIDDEN)
                           : seen(&r, 7, 0, NRM_AT_LINEAR, 1, N, HIDDEN),
                    d, N * HIDDEN));
    }
    CHECK(equal(dg, s[0].dgamma, HIDDEN) && equal(db, s[0].dbeta, HIDDEN));
    for (i = 0; i < r.count; i++) free(r.data[i]);
    drop(h);
}

static void test_probe(void)
{
    check_probe(0);
    check_probe(1);
}

/* ---- a batch of one -------------------------------------------------------------------------- */

/* A batch of one is fine where no batch is looked at. */
static void test_batch_of_one(void)
{
    const batch b = random_batch(12);
    nrm_mlp_layer shape[2];
    nrm_mlp_spec spec = two_layers(shape, HIDDEN, NRM_RELU, NRM_LAYER_NORM, 0);
    nrm_acc first = 0, loss = 0;
    holder h;
    int step;
    spec.max_batch = 1;
    h = build(&spec);
    OK(nrm_mlp_gradient(h.net, &first, b.x, b.labels, 1, NRM_TRAIN));
    for (step = 0; step < 30; step++) OK(nrm_mlp_train_step(h.net, &loss, b.x, b.labels, 1));
    CHECK(loss < first / 4);
    drop(h);
}

/* ---- what is not finite ---------------------------------------------------------------------- */

static void check_nonfinite(int norm, int activation, nrm_real poison)
{
    batch b = random_batch(13);
    nrm_mlp_layer shape[2];
    nrm_mlp_spec spec = two_layers(shape, HIDDEN, activation, norm, 0);
    nrm_acc loss = 0;
    holder h;
    size_t i;
    int rc;
    spec.optimizer = NRM_ADAM;
    h = build(&spec);
    OK(nrm_mlp_train_step(h.net, &loss, b.x, b.labels, BATCH));
    remember(&h);
    b.x[5 * INPUTS + 2] = poison;
    rc = nrm_mlp_train_step(h.net, &loss, b.x, b.labels, BATCH);
    if (!CHECK(rc == NRM_NONFINITE && learned_same(&h)))
        printf("  norm %d, activation %d, input %g: status %d, loss %g\n", norm, activation,
               (double)poison, rc, (double)loss);
    for (i = 0; h.net->state[0].running.mean != NULL && i < HIDDEN; i++)
        CHECK(h.net->state[0].running.mean[i] - h.net->state[0].running.mean[i] == 0 &&
              h.net->state[0].running.var[i] - h.net->state[0].running.var[i] == 0);
    drop(h);
}

/* No step from a loss or a gradient that is not finite. The infinity before tanh is the sly one:
   the activation is a plain 1 again and the loss finite, but the gradient is 0 times infinity. */
static void test_nonfinite(void)
{
    int norm, activation;
    for (norm = NRM_NO_NORM; norm <= LAST_NORM; norm++)
        for (activation = NRM_RELU; activation <= NRM_SIGMOID; activation++) {
            check_nonfinite(norm, activation, (nrm_real)NAN);
            check_nonfinite(norm, activation, (nrm_real)INFINITY);
            check_nonfinite(norm, activation, -(nrm_real)INFINITY);
        }
}

int main(void)
{
    RUN(test_defaults);
    RUN(test_overfits);
    RUN(test_same_seed_same_bits);
    RUN(test_block_ends);
    RUN(test_norms_share_weights);
    RUN(test_whole_net_gradients);
    RUN(test_averages);
    RUN(test_train_step_is_its_parts);
    RUN(test_initialisation);
    RUN(test_modes);
    RUN(test_eval);
    RUN(test_probe);
    RUN(test_batch_of_one);
    RUN(test_nonfinite);
    return test_report(in_float ? "mlp (float)" : "mlp (double)");
}
