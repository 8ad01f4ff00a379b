/* test_training.c - what trainings of the experiments share: the order of the mini-batches, the
   residual and the convolutional network with their gradients, the look around a point of the
   landscape, and how flat it is there. */
#define NORMLAYERS_IMPLEMENTATION
#include "lab/files.c"

#include "lab/csv.c"
#include "lab/synthetic_digits.c"

#include "lab/dataset.c"
#include "normlayers.h"
#include "lab/draw.h"

#include "lab/matrix.c"
#include "lab/stats.c"
#include "lab/trainer.c"
#include "lab/training.c"

#include "lab/convolution.c"
#include "lab/flatness.c"
#include "lab/landscape.c"
#include "lab/residual.c"
#include "test.h"

enum { N = 10, BATCH = 4, FEATURES = 3 };

/* Example i has the label i and the pixels 3i, 3i + 1, 3i + 2. */
static training_set make_set(void)
{
    unsigned char pixels[N * FEATURES], labels[N];
    training_set set;
    size_t i;
    for (i = 0; i < N * FEATURES; i++) pixels[i] = (unsigned char)i;
    for (i = 0; i < N; i++) labels[i] = (unsigned char)i;
    CHECK_INT(training_set_make(&set, pixels, labels, N, FEATURES, DATASET_RAW01), 0);
    return set;
}

static void test_order_deals_each_example_once(void)
{
    static const size_t sizes[] = {4, 4, 2, 0};
    training_set set = make_set();
    training_order a, b;
    int first[N], epoch, same = 0;
    CHECK_INT(training_order_start(&a, N, BATCH, FEATURES, 11), 0);
    CHECK_INT(training_order_start(&b, N, BATCH, FEATURES, 11), 0);
    CHECK_INT(training_steps(N, BATCH), 3);
    for (epoch = 0; epoch < 3; epoch++) {
        int seen[N] = {0}, at = 0;
        size_t k, i;
        for (k = 0; k < 4; k++) {
            CHECK_INT(training_next(&a, &set), sizes[k]);
            CHECK_INT(training_next(&b, &set), sizes[k]);
            for (i = 0; i < a.count; i++, at++) {
                const int label = a.labels[i];
                seen[label]++;
                same += epoch == 1 && first[at] == label;
                if (epoch == 0) first[at] = label;
                CHECK_INT(b.labels[i], label);
                CHECK_NEAR(a.x[i * FEATURES + 2], (3 * label + 2) / 255.0, 1e-7);
            }
        }
        for (i = 0; i < N; i++) CHECK_INT(seen[i], 1);
    }
    CHECK(same < N); /* each epoch has an order of its own */
    training_order_free(&a);
    training_order_free(&b);
    training_set_free(&set);
}

static void test_going_on_passes_over_short_batches(void)
{
    training_set set = make_set();
    training_order order;
    int step, short_ones = 0;
    CHECK_INT(training_order_start(&order, N, BATCH, FEATURES, 11), 0);
    for (step = 0; step < 10; step++) {
        training_go_on(&order, &set, BATCH);
        CHECK_INT(order.count, BATCH);
    }
    for (step = 0; step < 9; step++) {
        training_go_on(&order, &set, 1);
        CHECK(order.count > 0);
        short_ones += order.count < BATCH;
    }
    CHECK_INT(short_ones, 3);
    training_order_free(&order);
    training_set_free(&set);
}

static void test_draws_with_replacement(void)
{
    training_set set = make_set();
    training_order order;
    nrm_rng rng;
    size_t i;
    CHECK_INT(training_order_start(&order, N, BATCH, FEATURES, 11), 0);
    nrm_rng_seed(&rng, 11, TRAINING_STREAM_ORDER);
    training_draw(&order, &set);
    CHECK_INT(order.count, BATCH);
    for (i = 0; i < BATCH; i++) {
        CHECK_INT(order.labels[i], nrm_rng_below(&rng, N));
        CHECK_NEAR(order.x[i * FEATURES + 2], (3 * order.labels[i] + 2) / 255.0, 1e-7);
    }
    training_order_free(&order);
    training_set_free(&set);
}

static void test_sums(void)
{
    nrm_real a[3] = {3, -4, 0}, b[3] = {3, -4, (nrm_real)NAN};
    const nrm_real tiny[2] = {(nrm_real)3e-30, (nrm_real)-4e-30};
    CHECK_NEAR(training_squares(a, 3), 25, 0);
    CHECK_NEAR(training_rms(a, 2), sqrt(12.5), 1e-15);
    CHECK_NEAR(training_farthest(a, NULL, 3), 4, 0);
    CHECK_NEAR(training_farthest(a, b, 2), 0, 0);
    CHECK_NEAR(training_distance(a, a + 1, 2), sqrt(65), 1e-15);
    CHECK(isnan(training_farthest(a, b, 3)) && isnan(training_squares(b, 3)));
    CHECK_NEAR(training_log_length(tiny, 2), log10(5e-30), 1e-6); /* its square is none in float */
    CHECK(isinf(training_log_length(a + 2, 1)) && isnan(training_log_length(b, 3)));
}

/* ---- two networks ---------------------------------------------------------------------------- */

enum { IN = 6, WIDTH = 4, CLASSES = 3, ROWS = 8 };

static void draw(nrm_real *x, int *labels)
{
    nrm_rng rng;
    size_t i;
    nrm_rng_seed(&rng, 11, TRAINING_STREAM_DATA);
    for (i = 0; i < ROWS * IN; i++) x[i] = draw_normal(&rng);
    for (i = 0; i < ROWS; i++) labels[i] = (int)(i % CLASSES);
}

static nrm_mlp *make_net(void **block)
{
    nrm_mlp_layer layer[2];
    nrm_mlp_spec spec = training_plain(layer, 1, WIDTH, NRM_RELU, NRM_BATCH_NORM);
    CHECK(!layer[0].bias && layer[1].bias && layer[1].width == DATASET_CLASSES);
    spec.inputs = IN;
    spec.max_batch = ROWS;
    spec.seed = 11;
    spec.lr = (nrm_real)0.1;
    return training_net(&spec, block);
}

static void test_same_bits(void)
{
    void *block[2];
    nrm_mlp *a = make_net(&block[0]), *b = make_net(&block[1]);
    nrm_real x[ROWS * IN], kept;
    int labels[ROWS];
    draw(x, labels);
    if (!CHECK(a && b)) return;
    CHECK(training_same_bits(a, b));
    OK(nrm_mlp_train_step(a, NULL, x, labels, ROWS));
    CHECK(!training_same_bits(a, b));
    OK(nrm_mlp_train_step(b, NULL, x, labels, ROWS));
    OK(nrm_mlp_gradient(b, NULL, x, labels, ROWS / 2, NRM_TRAIN)); /* a look */
    CHECK(training_same_bits(a, b));
    kept = b->params[0];
    b->params[0] += 1;
    CHECK(!training_same_bits(a, b));
    b->params[0] = kept;
    b->state[0].running.var[WIDTH - 1] += 1;
    CHECK(!training_same_bits(a, b));
    b->state[0].running.var[WIDTH - 1] = a->state[0].running.var[WIDTH - 1];
    b->state[0].running.mean[0] += 1;
    CHECK(!training_same_bits(a, b));
    free(block[0]);
    free(block[1]);
}

/* The statistics of all rows at once, but for those of the first, which the "others" bring. */
static int merge_others(void *context, nrm_stats *stats, size_t n)
{
    return nrm_stats_merge(stats, (const nrm_stats *)context, n);
}

static void test_reestimate(void)
{
    enum { ALL = 3 * ROWS + 1, OTHERS = 3 };
    void *block[2];
    nrm_mlp *alone = make_net(&block[0]), *worker = make_net(&block[1]);
    const nrm_mlp_state *s = &alone->state[0];
    nrm_running *a = &alone->state[0].running, *w = &worker->state[0].running;
    nrm_real x[ALL * IN], z[ALL * WIDTH];
    nrm_stats whole[WIDTH], others[WIDTH];
    nrm_rng rng;
    size_t i;
    nrm_rng_seed(&rng, 4, 0);
    for (i = 0; i < ALL * IN; i++) x[i] = draw_normal(&rng);
    OK(nrm_linear_forward(z, x, s->W, s->b, ALL, IN, WIDTH));
    memset(whole, 0, sizeof whole);
    memset(others, 0, sizeof others);
    OK(nrm_stats_update(whole, z, NULL, ALL, WIDTH, 1));
    OK(nrm_stats_update(others, z, NULL, OTHERS, WIDTH, 1));
    rng = alone->rng;
    OK(training_reestimate(alone, x, ALL)); /* in parts, of which none has one row */
    CHECK(memcmp(&rng, &alone->rng, sizeof rng) == 0);
    worker->spec.sync.merge = merge_others;
    worker->spec.sync.context = others;
    OK(training_reestimate(worker, x + OTHERS * IN, ALL - OTHERS));
    CHECK(worker->spec.sync.merge == merge_others);
    for (i = 0; i < WIDTH; i++) {
        const double var = (double)(whole[i].m2 / (whole[i].count - 1));
        CHECK_NEAR(a->mean[i], whole[i].mean, 1e-5);
        CHECK_NEAR(a->var[i], var, 1e-5 * var);
        CHECK_NEAR(w->mean[i], whole[i].mean, 1e-5);
        CHECK_NEAR(w->var[i], var, 1e-5 * var);
    }
    OK(training_reestimate(worker, NULL, 0));
    CHECK_NEAR(w->mean[0], others[0].mean, 1e-5);
    CHECK_INT(training_reestimate(alone, x, 1), NRM_EBATCH);
    x[1] = (nrm_real)NAN;
    CHECK_INT(training_reestimate(alone, x, ROWS), NRM_ESTATS);
    free(block[0]);
    free(block[1]);
}

/* ---- the residual network -------------------------------------------------------------------- */

static const deep_spec residual = {
    DEEP_RESIDUAL, NRM_BATCH_NORM, 0, 2, (nrm_real)0.9, (nrm_real)5e-4, IN, WIDTH, CLASSES, ROWS};

static void test_residual_probe_leaves_no_trace(void)
{
    deep_net net;
    nrm_real x[ROWS * IN], mean, weight;
    nrm_acc loss, again;
    int labels[ROWS];
    draw(x, labels);
    if (!CHECK(deep_make(&net, &residual, 11) == 0)) return;
    CHECK_INT(net.layers, 6);
    weight = net.params[0];
    OK(deep_gradient(&net, &loss, x, labels, ROWS));
    OK(deep_gradient(&net, &again, x, labels, ROWS));
    CHECK_NEAR(loss, again, 0);
    mean = net.mlp->state[0].running.mean[0];
    CHECK(!(mean < 0) && !(mean > 0) && !(net.params[0] < weight) && !(net.params[0] > weight));
    OK(deep_train_step(&net, (nrm_real)0.1, &loss, x, labels, ROWS));
    CHECK(net.mlp->state[0].running.mean[0] != mean);
    CHECK_INT(deep_gradient(&net, &loss, x, labels, ROWS + 1), NRM_ESIZE);
    deep_free(&net);
}

#ifdef NRM_DOUBLE
static void test_residual_gradient(void)
{
    static const int norms[] = {NRM_NO_NORM, NRM_BATCH_NORM, NRM_LAYER_NORM};
    nrm_real x[ROWS * IN];
    int labels[ROWS];
    size_t k, i;
    draw(x, labels);
    for (k = 0; k < 3; k++) {
        deep_spec spec = residual;
        deep_net net;
        spec.norm = norms[k];
        if (!CHECK(deep_make(&net, &spec, 11) == 0)) return;
        for (i = 0; i < net.n_params; i++) {
            const double h = 1e-6, kept = net.params[i];
            nrm_acc up, down;
            net.params[i] = kept + h;
            OK(deep_gradient(&net, &up, x, labels, ROWS));
            net.params[i] = kept - h;
            OK(deep_gradient(&net, &down, x, labels, ROWS));
            net.params[i] = kept;
            OK(deep_gradient(&net, NULL, x, labels, ROWS));
            CHECK_NEAR(net.grads[i], (up - down) / (2 * h), 1e-7);
        }
        deep_free(&net);
    }
}
#endif

/* Two steps with momentum and decay, by hand. */
static void test_residual_step(void)
{
    deep_net net;
    nrm_real x[ROWS * IN];
    int labels[ROWS], step;
    double w, v = 0;
    draw(x, labels);
    if (!CHECK(deep_make(&net, &residual, 11) == 0)) return;
    w = (double)net.params[0];
    for (step = 0; step < 2; step++) {
        OK(deep_gradient(&net, NULL, x, labels, ROWS));
        v = 0.9 * v + ((double)net.grads[0] + 5e-4 * w);
        OK(deep_train_step(&net, (nrm_real)0.1, NULL, x, labels, ROWS));
        w -= 0.1 * v;
    }
    CHECK_NEAR(net.params[0], w, 1e-6);
    deep_free(&net);
}

static void test_residual_evaluation_in_parts(void)
{
    deep_net net, wide;
    deep_spec spec = residual;
    nrm_real x[ROWS * IN];
    nrm_acc loss, accuracy, loss2, accuracy2;
    int labels[ROWS];
    draw(x, labels);
    spec.max_batch = 3; /* 3 + 3 + 2 */
    if (!CHECK(deep_make(&net, &spec, 11) == 0 && deep_make(&wide, &residual, 11) == 0)) return;
    OK(deep_eval(&net, &loss, &accuracy, x, labels, ROWS));
    OK(deep_eval(&wide, &loss2, &accuracy2, x, labels, ROWS));
    CHECK_NEAR(loss, loss2, 1e-6);
    CHECK_NEAR(accuracy, accuracy2, 1e-6);
    deep_free(&net);
    deep_free(&wide);
}

/* ---- the convolutional network --------------------------------------------------------------- */

#ifdef NRM_DOUBLE
enum { IMAGES = 3, SIDE = 8 };

typedef struct images {
    convolution_net *net;
    nrm_real x[IMAGES * SIDE * SIDE];
    int labels[IMAGES];
} images;

static nrm_acc loss_of_images(void *context)
{
    const images *k = (const images *)context;
    nrm_acc loss = (nrm_acc)NAN;
    (void)convolution_forward(k->net, k->x, IMAGES, NRM_TRAIN, 0);
    (void)nrm_cross_entropy_forward(&loss, NULL, k->net->logits, k->labels, IMAGES,
                                    CONVOLUTION_CLASSES);
    return loss;
}

static void check_convolution(int norm, int after)
{
    const nrm_gradcheck_options options = {.at_most = 150};
    images k = {convolution_make(norm, after, SIDE, 3), {0}, {3, 1, 4}};
    nrm_gradcheck_group group = {.name = "all"};
    nrm_gradcheck_report report;
    nrm_acc loss;
    nrm_rng rng;
    size_t i;
    if (!CHECK(k.net)) return;
    nrm_rng_seed(&rng, 2, 9);
    for (i = 0; i < IMAGES * SIDE * SIDE; i++) k.x[i] = draw_normal(&rng);
    CHECK_INT(convolution_gradient(k.net, &loss, k.x, k.labels, IMAGES, 0), 0);
    group.theta = k.net->theta;
    group.grad = k.net->grad;
    group.n = k.net->params;
    OK(nrm_gradcheck(&report, &group, 1, loss_of_images, &k, &options));
    CHECK(report.checked - report.kinks - report.unsettled >= 140);
    free(k.net);
}

static void test_convolution_gradient(void)
{
    static const int norms[] = {NRM_NO_NORM, NRM_BATCH_NORM, NRM_GROUP_NORM, NRM_LAYER_NORM,
                                CONVOLUTION_INSTANCE};
    size_t i;
    for (i = 0; i < sizeof norms / sizeof *norms; i++) {
        check_convolution(norms[i], 0);
        check_convolution(norms[i], 1);
    }
}
#endif

/* ---- the landscape --------------------------------------------------------------------------- */

enum { BOWL = 3 };

/* L = BOWL·|θ|²/2: the gradient is BOWL·θ, and so is its change per distance BOWL. */
static int evaluate_bowl(landscape_model *m, nrm_acc *loss)
{
    size_t i;
    *loss = 0;
    for (i = 0; i < m->n; i++) {
        m->grads[i] = BOWL * m->params[i];
        *loss += (nrm_acc)BOWL / 2 * (nrm_acc)m->params[i] * (nrm_acc)m->params[i];
    }
    return *loss > 1000 ? NRM_NONFINITE : NRM_OK;
}

static void test_look_at_a_bowl(void)
{
    nrm_real params[4] = {3, -1, (nrm_real)0.5, 2}, grads[4], kept[4];
    landscape_model m;
    landscape_place p;
    landscape_view v;
    double loss, change, s;
    memset(&m, 0, sizeof m);
    m.n = 4;
    m.params = params;
    m.grads = grads;
    m.evaluate = evaluate_bowl;
    memcpy(kept, params, sizeof kept);
    if (!CHECK(landscape_place_make(&p, &m, 11) == 0)) return;
    OK(landscape_arrive(&p));
    CHECK_NEAR(p.length, BOWL * sqrt(14.25), 1e-5);
    OK(landscape_look(&p, 1.0 / BOWL, &loss, &change)); /* the lowest point */
    CHECK_NEAR(loss, 0, 1e-10);
    CHECK_NEAR(change, p.length, 1e-5);
    CHECK(memcmp(params, kept, sizeof kept) == 0);
    landscape_view_start(&v);
    for (s = 0.05; s < 0.3; s *= 2) OK(landscape_view_add(&v, &p, s));
    CHECK_NEAR(v.beta, BOWL, 1e-5);
    CHECK_NEAR(v.highest, BOWL / 2.0 * 14.25 * 0.85 * 0.85, 1e-4);
    CHECK_NEAR(v.lowest, BOWL / 2.0 * 14.25 * 0.4 * 0.4, 1e-4);
    CHECK_NEAR(landscape_range(&v), v.highest - v.lowest, 0);
    landscape_turn(&p);
    CHECK_NEAR(training_squares(p.direction, 4), p.length * p.length, 1e-4);
    OK(landscape_look(&p, 100, &loss, &change)); /* what is not finite is no error */
    CHECK(memcmp(params, kept, sizeof kept) == 0);
    landscape_place_free(&p);
}

/* ---- something between linear part and activation -------------------------------------------- */

static int double_forward(void *context, nrm_mlp *net, size_t l, size_t rows)
{
    nrm_real *z = net->state[l].norm_out;
    size_t i;
    (void)context;
    for (i = 0; i < rows * WIDTH; i++) z[i] *= 2;
    return NRM_OK;
}

static int double_backward(void *context, nrm_mlp *net, size_t l, nrm_real *d, size_t rows)
{
    size_t i;
    (void)context;
    (void)net;
    (void)l;
    for (i = 0; i < rows * WIDTH; i++) d[i] *= 2;
    return NRM_OK;
}

/* It is a network with W and b twice as large, whose gradients by them are half as large: exactly,
   as 2 is a power of two. */
static void test_between(void)
{
    const training_between with = {NULL, double_forward, double_backward};
    nrm_mlp_layer layer[3];
    nrm_mlp_spec spec = training_plain(layer, 2, WIDTH, NRM_TANH, NRM_NO_NORM);
    nrm_real x[ROWS * IN], *expected;
    nrm_acc loss, wanted;
    size_t i, hidden;
    int labels[ROWS];
    void *block;
    nrm_mlp *net;
    spec.inputs = IN;
    spec.max_batch = ROWS;
    spec.seed = 11;
    net = training_net(&spec, &block);
    hidden = net->n_params - (WIDTH + 1) * DATASET_CLASSES;
    expected = (nrm_real *)malloc(net->n_params * sizeof *expected);
    draw(x, labels);
    for (i = 0; i < hidden; i++) net->params[i] *= 2;
    OK(nrm_mlp_gradient(net, &wanted, x, labels, ROWS, NRM_TRAIN));
    for (i = 0; i < net->n_params; i++) expected[i] = (i < hidden ? 2 : 1) * net->grads[i];
    for (i = 0; i < hidden; i++) net->params[i] /= 2;
    OK(training_gradient(net, &loss, x, labels, ROWS, &with));
    CHECK(loss == wanted);
    CHECK(memcmp(expected, net->grads, net->n_params * sizeof *expected) == 0);
    free(expected);
    free(block);
}

static landscape_model make_weight_norm(const nrm_real *x, const int *labels, void **block)
{
    nrm_mlp_layer layer[3];
    nrm_mlp_spec spec = training_plain(layer, 2, WIDTH, NRM_TANH, NRM_NO_NORM);
    landscape_model m;
    spec.inputs = IN;
    spec.max_batch = ROWS;
    spec.seed = 11;
    CHECK_INT(landscape_model_make(&m, training_net(&spec, block), 1), 0);
    m.x = x;
    m.labels = labels;
    m.rows = ROWS;
    return m;
}

static void keep_first_layer(void *context, const nrm_mlp_event *event)
{
    double *found = (double *)context;
    if (!event->gradient && event->place == NRM_AT_LINEAR && event->layer == 0)
        landscape_columns(event->data, ROWS, WIDTH, found, found + WIDTH);
}

static void test_weight_norm_first_batch(void)
{
    nrm_real x[ROWS * IN];
    double found[2 * WIDTH];
    landscape_model m;
    void *block;
    nrm_acc loss;
    int labels[ROWS];
    size_t j;
    draw(x, labels);
    m = make_weight_norm(x, labels, &block);
    OK(landscape_first_batch(&m));
    m.net->probe = keep_first_layer;
    m.net->probe_context = found;
    OK(m.evaluate(&m, &loss));
    for (j = 0; j < WIDTH; j++) {
        CHECK_NEAR(found[j], 0, 1e-5);
        CHECK_NEAR(found[WIDTH + j], 1, 1e-5);
    }
    landscape_model_free(&m);
    free(block);
}

#ifdef NRM_DOUBLE
static void test_weight_norm_gradient(void)
{
    nrm_real x[ROWS * IN], *expected;
    landscape_model m;
    void *block;
    nrm_acc up, down;
    int labels[ROWS];
    size_t i;
    draw(x, labels);
    m = make_weight_norm(x, labels, &block);
    expected = (nrm_real *)malloc(m.n * sizeof *expected);
    if (!CHECK(expected && m.evaluate(&m, &up) == NRM_OK)) return;
    memcpy(expected, m.grads, m.n * sizeof *expected);
    for (i = 0; i < m.n; i++) {
        const double h = 1e-6, kept = m.params[i];
        m.params[i] = kept + h;
        OK(m.evaluate(&m, &up));
        m.params[i] = kept - h;
        OK(m.evaluate(&m, &down));
        m.params[i] = kept;
        CHECK_NEAR(expected[i], (up - down) / (2 * h), 1e-7);
    }
    free(expected);
    landscape_model_free(&m);
    free(block);
}
#endif

/* ---- flatness -------------------------------------------------------------------------------- */

static nrm_mlp *plain_net(size_t hidden, void **block)
{
    nrm_mlp_layer layer[3];
    nrm_mlp_spec spec = training_plain(layer, hidden, WIDTH, NRM_RELU, NRM_NO_NORM);
    spec.inputs = IN;
    spec.max_batch = ROWS;
    spec.seed = 1;
    return training_net(&spec, block);
}

/* The largest eigenvalue of the mean of (x, 1)(x, 1)ᵀ. */
static double second_moment(const nrm_real *x)
{
    enum { D = IN + 1 };
    double a[D * D] = {0}, largest = 0;
    size_t n, i, j;
    for (n = 0; n < ROWS; n++)
        for (i = 0; i < D; i++)
            for (j = 0; j < D; j++)
                a[i * D + j] += (i < IN ? (double)x[n * IN + i] : 1) *
                                (j < IN ? (double)x[n * IN + j] : 1) / ROWS;
    (void)matrix_eigen(a, NULL, D);
    for (i = 0; i < D; i++) largest = fmax(largest, a[i * D + i]);
    return largest;
}

/* Softmax regression with weights 0 has the Hessian of its logits, (I - 11ᵀ/10)/10, in Kronecker's
   product with the mean of (x, 1)(x, 1)ᵀ: eigenvalues are products of both's. */
static void test_flatness_eigenvalue(void)
{
    nrm_real x[ROWS * IN];
    int labels[ROWS];
    void *block;
    nrm_mlp *net = plain_net(0, &block);
    flatness_eigenvalue top;
    flatness_view v;
    double expected;
    draw(x, labels);
    expected = second_moment(x) / DATASET_CLASSES;
    memset(net->params, 0, net->n_params * sizeof *net->params);
    if (!CHECK(flatness_open(&v, net, x, labels, ROWS) == 0)) return;
    OK(flatness_lanczos(&v, 1, 12, &top));
    CHECK_NEAR(top.value, expected, 1e-3 * expected);
    CHECK(top.error < 0.05 * top.value);
    flatness_close(&v);
    free(block);
}

/* Twice the weights and the bias into some units of the first layer, half of those out of them:
   the same function. */
static void rescale(nrm_mlp *net, size_t units)
{
    nrm_mlp_state *in = &net->state[0], *out = &net->state[1];
    size_t i, j;
    for (j = 0; j < units; j++) {
        for (i = 0; i < in->in; i++) in->W[i * in->shape.width + j] *= 2;
        in->b[j] *= 2;
        for (i = 0; i < out->shape.width; i++) out->W[j * out->shape.width + i] /= 2;
    }
}

/* Noise along filters does not see the scale of a layer, relative noise not that of a unit, to the
   last bit; the eigenvalue sees it. */
static void test_flatness_and_scale(void)
{
    static const size_t units[FLATNESS_KINDS] = {WIDTH, 3};
    nrm_real x[ROWS * IN];
    int labels[ROWS], kind;
    draw(x, labels);
    for (kind = 0; kind < FLATNESS_KINDS; kind++) {
        void *block;
        nrm_mlp *net = plain_net(2, &block);
        flatness_harm before, after;
        flatness_eigenvalue top[2];
        flatness_view v;
        if (!CHECK(flatness_open(&v, net, x, labels, ROWS) == 0)) return;
        OK(flatness_shake(&v, kind, 1, 0.5, 10, &before));
        OK(flatness_lanczos(&v, 1, 12, &top[0]));
        rescale(net, units[kind]);
        flatness_here(&v);
        OK(flatness_shake(&v, kind, 1, 0.5, 10, &after));
        OK(flatness_lanczos(&v, 1, 12, &top[1]));
        CHECK(before.rise != 0 && memcmp(&before, &after, sizeof before) == 0);
        CHECK(fabs(top[1].value - top[0].value) > 0.01 * top[0].value);
        flatness_close(&v);
        free(block);
    }
}

/* ---- a training with looks; what it would record is counted here ---- */

static int same_bits = -1;
static size_t looks, seen_at[8];

void lab_record(lab_run *run, const char *series, double x, double y)
{
    (void)run;
    if (strcmp(series, "same_bits") == 0 && x <= 0) same_bits = (int)y;
}

void lab_progress(lab_run *run, double fraction)
{
    CHECK(run->quick >= 0 && fraction > 0 && fraction <= 1);
}

static nrm_mlp_spec small_network(trainer *t)
{
    nrm_mlp_spec spec = training_plain(t->layer, 1, 4, NRM_RELU, NRM_BATCH_NORM);
    spec.inputs = FEATURES;
    return spec;
}

static int count_look(trainer *t)
{
    if (looks < 8) seen_at[looks] = t->step;
    looks++;
    if (t->run->arm == 1) t->net->params[0] += 1; /* a look that leaves a trace */
    return 0;
}

static int use_up(trainer *t) /* after the comparison a network may be changed */
{
    t->net->params[0] += 1;
    return 0;
}

static int learn_twice(trainer *t, nrm_acc *loss)
{
    OK(nrm_mlp_train_step(t->net, loss, t->order.x, t->order.labels, t->order.count));
    return nrm_mlp_train_step(t->net, loss, t->order.x, t->order.labels, t->order.count);
}

static int stop_after_four(trainer *t)
{
    return t->step == 4;
}

static void test_trainer(void)
{
    training_set set = make_set();
    lab_run run;
    trainer_plan plan = {.network = small_network,
                         .look = count_look,
                         .set = &set,
                         .batch = BATCH,
                         .steps = 6,
                         .every = 3,
                         .look_first = 1};
    trainer t;
    double first;
    memset(&run, 0, sizeof run);
    run.seed = 11;
    CHECK_INT(trainer_run(&run, &plan), 0);
    CHECK(looks == 3 && seen_at[0] == 0 && seen_at[1] == 3 && seen_at[2] == 6);
    CHECK_INT(same_bits, -1);
    run.quick = 1;
    plan.end = use_up;
    CHECK_INT(trainer_run(&run, &plan), 0);
    CHECK_INT(same_bits, 1);
    CHECK_INT(looks, 6); /* the other training is not looked at */
    run.arm = 1;
    CHECK_INT(trainer_run(&run, &plan), 0);
    CHECK_INT(same_bits, 0);
    plan.after = stop_after_four;
    looks = 0;
    CHECK_INT(trainer_run(&run, &plan), 0);
    CHECK_INT(looks, 2);
    CHECK_INT(trainer_open(&t, &run, &plan), 0);
    CHECK_INT(trainer_steps(&t, 3), 0);
    CHECK(t.step == 3 && t.status == NRM_OK && t.loss > 0);
    CHECK(trainer_accuracy(&t, &set, &t.loss) <= 1 && isfinite(t.loss));
    t.net->params[0] = (nrm_real)NAN;
    CHECK_INT(trainer_steps(&t, 3), 0);
    CHECK(t.step == 3 && t.status == NRM_NONFINITE);
    trainer_close(&t);
    plan.learn = learn_twice;
    CHECK(trainer_open(&t, &run, &plan) == 0 && trainer_steps(&t, 1) == 0);
    first = t.loss;
    trainer_close(&t);
    plan.learn = NULL;
    CHECK(trainer_open(&t, &run, &plan) == 0 && trainer_steps(&t, 1) == 0);
    CHECK(first < t.loss); /* that of the second step on the same batch */
    trainer_close(&t);
    training_set_free(&set);
}

int main(void)
{
    RUN(test_trainer);
    RUN(test_order_deals_each_example_once);
    RUN(test_going_on_passes_over_short_batches);
    RUN(test_draws_with_replacement);
    RUN(test_sums);
    RUN(test_same_bits);
    RUN(test_reestimate);
    RUN(test_residual_probe_leaves_no_trace);
#ifdef NRM_DOUBLE
    RUN(test_residual_gradient);
#endif
    RUN(test_residual_step);
    RUN(test_residual_evaluation_in_parts);
#ifdef NRM_DOUBLE
    RUN(test_convolution_gradient);
#endif
    RUN(test_between);
    RUN(test_look_at_a_bowl);
    RUN(test_flatness_eigenvalue);
    RUN(test_flatness_and_scale);
    RUN(test_weight_norm_first_batch);
#ifdef NRM_DOUBLE
    RUN(test_weight_norm_gradient);
#endif
    return test_report("training");
}
