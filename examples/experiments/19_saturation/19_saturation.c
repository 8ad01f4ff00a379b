/* 19_saturation: does batch norm keep tanh out of saturation, units from dying, and sigmoid in its
   linear part? (README.md)

   Beside the networks on MNIST there is a toy, 5-100-5 with tanh, as a tutorial prints it: with its
   own layer (standard deviation with divisor n-1, no ε, running average of the standard deviation
   with 0.999), with the usual batch norm, and without.

   A tanh is saturated for an image if |h| > 0.97; a unit is dead if it is so for all images of the
   look (ReLU: if it gives 0 for all). */
#include "lab/experiment.h"
#include "lab/draw.h"

#define SATURATED 0.97
#define TANH_STEPS 600
#define BATCH 128
#define PROBES 1000   /* images that the looks see                   */
#define DEPTH_MAX 6   /* hidden layers                               */
#define MAP_UNITS 100 /* of a map: the first units, the first images */
#define MAP_IMAGES 100
#define MAP_POINTS 32 /* of a map of the toy                         */
#define MAP_BITS 23   /* in a recorded number, which has seven digits */

/* ---- the arms -------------------------------------------------------------------------------- */

enum { GAINS = 4, GAIN_5 = 2, GAIN_20 = 3, RATES = 3, RULES = 2 };
/* tanh: 2 depths x 4 gains x (none, batch); ReLU: 3 learning rates x (none, batch) */
#define TANH(depth, gain, norm) ((((depth) > 1 ? GAINS : 0) + (gain)) * RULES + (norm))
enum { RELU_NONE = 2 * GAINS * RULES, RELU_BATCH, SIGMOID_NONE = RELU_NONE + RATES * RULES };
enum { SIGMOID_BATCH = SIGMOID_NONE + 1, SIGMOID_HELD, SOFTMAX };
enum { TOY_NONE = SOFTMAX + 1, TOY_BATCH, TOY_PRINTED, ARMS };

static const double gains[GAINS] = {1, 5.0 / 3, 5, 20}, rates[RATES] = {1, 0.3, 0.1};
static const char *const gain_names[GAINS] = {"1", "5/3", "5", "20"};

/* clang-format off */
#define PAIR(id, before, after, s)                                                                 \
    {id "_none", before ", no norm" after, s}, {id "_batch", before ", batch norm" after, s}
#define DEPTH(id, name, s)                                                                         \
    PAIR(id "_g1", name ", gain 1", "", s), PAIR(id "_g1.67", name ", gain 5/3", "", s),           \
        PAIR(id "_g5", name ", gain 5", "", s), PAIR(id "_g20", name ", gain 20", "", s)
static const lab_arm arms[ARMS] = {
    DEPTH("tanh1", "1 layer", 1.2), DEPTH("tanh6", "6 layers", 3.6),
    PAIR("relu", "ReLU", "", 1.5), PAIR("relu_0.3", "ReLU", ", lr 0.3", 1.5),
    PAIR("relu_0.1", "ReLU", ", lr 0.1", 1.5), PAIR("sigmoid", "sigmoid", "", 1.5),
    {"sigmoid_held", "sigmoid, batch norm, γ = 1, β = 0", 1.5},
    {"softmax", "softmax regression", 1},
    {"toy_none", "no norm", 0.4}, {"toy_batch", "batch norm as usual", 0.4},
    {"toy_printed", "batch norm as printed", 0.4}};
/* clang-format on */

typedef struct setting {               /* of a network on MNIST */
    size_t depth, width, steps, every; /* hidden layers; a look at every so many steps */
    int activation, init;
    double lr;
} setting;

static setting setting_of(const lab_run *run)
{
    static const setting tanhs = {6, 200, TANH_STEPS, 100, NRM_TANH, NRM_INIT_GAUSSIAN, 0.1};
    static const setting relus = {6, 200, 200, 20, NRM_RELU, NRM_INIT_HE, 1};
    static const setting sigmoids = {3, 100, 1200, 1200, NRM_SIGMOID, NRM_INIT_XAVIER, 0.5};
    const size_t arm = run->arm;
    setting k = arm < RELU_NONE ? tanhs : arm < SIGMOID_NONE ? relus : sigmoids;
    if (arm < TANH(6, 0, 0)) k.depth = 1;
    if (k.activation == NRM_RELU) k.lr = rates[(arm - RELU_NONE) / RULES];
    if (arm == SOFTMAX) k.depth = 0, k.lr = 0.1;
    if (run->quick) k.steps = k.every = 5;
    return k;
}

LAB_SETS(train, test, 0, 0, DATASET_STD);

/* ---- looks ----------------------------------------------------------------------------------- */

/* What part of a layer's outputs h [n][width] is saturated; units for which all are: `dead`. */
static double saturated_part(const nrm_real *h, size_t n, size_t width, int activation,
                             double *dead)
{
    size_t off = 0, gone = 0, i, j;
    for (j = 0; j < width; j++) {
        size_t here = 0;
        for (i = 0; i < n; i++) { /* also nan */
            const double y = (double)h[i * width + j];
            here += activation == NRM_RELU ? !(y > 0) : !(fabs(y) <= SATURATED);
        }
        off += here;
        gone += here == n ? 1u : 0u;
    }
    *dead = (double)gone / (double)width;
    return (double)off / (double)(n * width);
}

typedef struct line { /* the best straight line through a unit's outputs against its inputs */
    double slope, base, left; /* left: the part of the outputs' variance that it does not explain */
    double near;              /* how many inputs are in ±1 */
} line;

static line fit_line(const nrm_mlp_state *s, size_t n, size_t j)
{
    const size_t width = s->shape.width;
    double z = 0, h = 0, zz = 0, zh = 0, hh = 0;
    line fit = {0, 0, 0, 0};
    size_t i;
    for (i = 0; i < n; i++) z += (double)s->norm_out[i * width + j] / (double)n;
    for (i = 0; i < n; i++) h += (double)s->act_out[i * width + j] / (double)n;
    for (i = 0; i < n; i++) {
        const double input = (double)s->norm_out[i * width + j];
        const double a = input - z, b = (double)s->act_out[i * width + j] - h;
        fit.near += fabs(input) < 1 ? 1 : 0;
        zz += a * a;
        zh += a * b;
        hh += b * b;
    }
    fit.left = zz > 0 && hh > 0 ? 1 - zh * zh / (zz * hh) : 0;
    fit.slope = zz > 0 ? zh / zz : 0;
    fit.base = h - fit.slope * z;
    return fit;
}

enum { SATURATED_PART, DEAD, GRADIENT, UPDATE, NEAR, BENT, KINDS };
static const char *const kind_name[KINDS] = {"saturated", "dead", "gradient",
                                             "update",    "near", "bent"};

static size_t probes(const lab_run *run) /* images that it sees */
{
    return run->quick ? 200 : PROBES;
}

static void see_gradient(void *context, const nrm_mlp_event *e)
{
    double *rms = (double *)context;
    if (e->gradient && e->place == NRM_AT_ACTIVATION)
        rms[e->layer] =
            training_rms(e->data, e->rows * e->cols) * (double)e->rows; /* of one loss */
}

/* Of each hidden layer on the probe images; a sigmoid's bend, of others what is saturated. */
static void see(trainer *t, double of[KINDS][DEPTH_MAX])
{
    const setting k = setting_of(t->run);
    const size_t n = probes(t->run);
    size_t l, j;
    t->net->probe = see_gradient;
    t->net->probe_context = of[GRADIENT];
    (void)nrm_mlp_gradient(t->net, NULL, train.x, train.labels, n, NRM_TRAIN);
    t->net->probe = NULL;
    for (l = 0; l < k.depth; l++) {
        const nrm_mlp_state *s = &t->net->state[l];
        const size_t weights = s->in * k.width;
        of[SATURATED_PART][l] = saturated_part(s->act_out, n, k.width, k.activation, &of[DEAD][l]);
        of[UPDATE][l] = k.lr * training_rms(s->dW, weights) / training_rms(s->W, weights);
        for (j = 0; j < k.width && k.activation == NRM_SIGMOID; j++) {
            const line fit = fit_line(s, n, j);
            of[NEAR][l] += fit.near;
            of[BENT][l] += fit.left;
        }
        of[NEAR][l] /= (double)(n * k.width);
        of[BENT][l] /= (double)k.width;
    }
}

enum { MAPS = 3 };
static const size_t map_layer[MAPS] = {1, 3, 6}; /* of the six */

/* 23 cells of a map go into one number, image by image, unit by unit; 1: saturated. */
static void record_map(lab_run *run, const char *when, size_t layer, const nrm_real *h,
                       size_t width, size_t images)
{
    const size_t cells = images * MAP_UNITS;
    size_t at, i;
    for (at = 0; at < cells; at += MAP_BITS) {
        unsigned long bits = 0;
        for (i = at; i < at + MAP_BITS && i < cells; i++) {
            const nrm_real y = h[i / MAP_UNITS * width + i % MAP_UNITS];
            if (!(fabs((double)y) <= SATURATED)) bits |= 1ul << (i - at);
        }
        lab_record_as(run, (double)(at / MAP_BITS), (double)bits, "%s%zu", when, layer);
    }
}

/* Layer by layer at start and end (`when`); means over the hidden layers against the step. */
static void record_sight(trainer *t, const char *when)
{
    const setting k = setting_of(t->run);
    const int sigmoid = k.activation == NRM_SIGMOID;
    const int map = t->run->first && t->run->arm / RULES == TANH(6, GAIN_20, 0) / RULES;
    double seen[KINDS][DEPTH_MAX] = {{0}};
    size_t l;
    int kind;
    see(t, seen);
    for (kind = sigmoid ? NEAR : 0; kind < (sigmoid ? KINDS : NEAR); kind++) {
        double mean = 0;
        for (l = 0; l < k.depth; l++) {
            mean += seen[kind][l] / (double)k.depth;
            if (when)
                lab_record_as(t->run, (double)(l + 1), seen[kind][l], "%s/%s", when,
                              kind_name[kind]);
        }
        if (kind <= DEAD) lab_record(t->run, kind_name[kind], (double)t->step, mean);
    }
    for (l = 0; l < MAPS && when && map; l++)
        record_map(t->run, when, map_layer[l], t->net->state[map_layer[l] - 1].act_out, k.width,
                   MAP_IMAGES);
}

/* ---- networks on MNIST ----------------------------------------------------------------------- */

static nrm_mlp_spec network(trainer *t)
{
    const setting k = setting_of(t->run);
    const int batch = t->run->arm % RULES == 1 || t->run->arm == SIGMOID_HELD;
    nrm_mlp_spec spec = training_plain(t->layer, k.depth, k.width, k.activation,
                                       batch ? NRM_BATCH_NORM : NRM_NO_NORM);
    spec.max_batch = PROBES;
    spec.init = k.init;
    spec.init_std = 1; /* scaled below */
    spec.lr = (nrm_real)k.lr;
    return spec;
}

static int scale_weights(trainer *t)
{
    size_t l, i;
    for (l = 0; l < t->net->spec.layers && t->run->arm < RELU_NONE; l++) {
        nrm_mlp_state *s = &t->net->state[l];
        const double gain = l + 1 == t->net->spec.layers ? 0.1 : gains[t->run->arm / RULES % GAINS];
        const nrm_real sd = (nrm_real)(gain / sqrt((double)s->in));
        for (i = 0; i < s->in * s->shape.width; i++) s->W[i] *= sd;
    }
    return 0;
}

static int hold(trainer *t) /* γ at 1 and β at 0 */
{
    size_t l, j;
    for (l = 0; l + 1 < t->net->spec.layers && t->run->arm == SIGMOID_HELD; l++)
        for (j = 0; j < t->net->state[l].shape.width; j++) {
            t->net->state[l].gamma[j] = 1;
            t->net->state[l].beta[j] = 0;
        }
    return 0;
}

static int look(trainer *t)
{
    if (t->step < t->plan->steps) record_sight(t, t->step == 0 ? "start" : NULL);
    return 0; /* the end is looked at in any case */
}

/* In place of the sigmoids lines, by least squares on the images of the last look: slope and base
   go into γ and β, or into weights and bias. */
static void straighten(trainer *t)
{
    size_t l, j, i;
    for (l = 0; l + 1 < t->net->spec.layers; l++) {
        nrm_mlp_state *s = &t->net->state[l];
        const size_t width = s->shape.width, rows = s->gamma ? 1 : s->in;
        nrm_real *factor = s->gamma ? s->gamma : s->W, *offset = s->gamma ? s->beta : s->b;
        for (j = 0; j < width; j++) {
            const line fit = fit_line(s, probes(t->run), j);
            for (i = j; i < rows * width; i += width)
                factor[i] = (nrm_real)(fit.slope * (double)factor[i]);
            offset[j] = (nrm_real)(fit.base + fit.slope * (double)offset[j]);
        }
        s->shape.activation = NRM_IDENTITY;
    }
}

static int end(trainer *t)
{
    lab_record(t->run, "steps", 0, (double)t->step); /* fewer than asked for: then not finite */
    lab_record(t->run, "accuracy", 0, trainer_accuracy(t, &test, NULL));
    record_sight(t, "end");
    if (t->run->arm < SIGMOID_NONE || t->run->arm == SOFTMAX) return 0;
    straighten(t);
    lab_record(t->run, "lines", 0, trainer_accuracy(t, &test, NULL));
    return 0;
}

static int run_mnist(lab_run *run)
{
    const setting k = setting_of(run);
    const trainer_plan plan =
        trainer_plan_of(.network = network, .begin = scale_weights, .after = hold, .look = look,
                        .end = end, .set = &train, .batch = BATCH, .steps = k.steps,
                        .every = k.every, .look_first = 1);
    return trainer_run(run, &plan);
}

/* ---- the toy network ------------------------------------------------------------------------- */

enum { IN = 5, HIDDEN = 100, TOY_TRAIN = 2000, TOY_TEST = 1000, TOY_BATCH_SIZE = 32 };

static nrm_real toy_x[(TOY_TRAIN + TOY_TEST) * IN];
static int toy_labels[TOY_TRAIN + TOY_TEST];
static const training_set points = {toy_x, toy_labels, TOY_TRAIN, IN};
static const training_set unseen = {toy_x + TOY_TRAIN * IN, toy_labels + TOY_TRAIN, TOY_TEST, IN};

/* Points of five classes, y = argmax Mx; M is the same for all seeds. */
static void toy_data(uint64_t seed)
{
    nrm_real M[IN * IN], score[IN];
    size_t i;
    int k;
    draw_normals(M, IN * IN, 1, 1, TRAINING_STREAM_DATA + 1);
    draw_normals(toy_x, LAB_COUNT(toy_x), 1, seed, TRAINING_STREAM_DATA);
    for (i = 0; i < TOY_TRAIN + TOY_TEST; i++) {
        (void)nrm_linear_forward(score, toy_x + i * IN, M, NULL, 1, IN, IN);
        toy_labels[i] = 0;
        for (k = 1; k < IN; k++)
            if (score[k] > score[toy_labels[i]]) toy_labels[i] = k;
    }
}

/* Batch norm as the tutorial has it: s = sqrt(sum (x-mean)^2 / (n-1)), y = gamma (x-mean)/s + beta,
   no epsilon. A constant column has no s: it is not guarded there, nor here. */
static struct {
    double mean[HIDDEN], spread[HIDDEN]; /* of the batch, or in their place the running ones */
    double slow_mean[HIDDEN], slow_spread[HIDDEN];
    int infer;
} printed;

static int printed_forward(void *context, nrm_mlp *net, size_t l, size_t n)
{
    const nrm_mlp_state *s = &net->state[l];
    double column[TOY_TRAIN];
    size_t i, j;
    (void)context;
    for (j = 0; j < HIDDEN; j++) {
        stats_summary of;
        for (i = 0; i < n; i++) column[i] = (double)s->linear_out[i * HIDDEN + j];
        of = stats_describe(column, n);
        printed.mean[j] = printed.infer ? printed.slow_mean[j] : of.mean;
        printed.spread[j] = printed.infer ? printed.slow_spread[j] : of.sd;
        for (i = 0; i < n; i++)
            s->norm_out[i * HIDDEN + j] =
                (nrm_real)((double)s->gamma[j] * (column[i] - printed.mean[j]) / printed.spread[j] +
                           (double)s->beta[j]);
    }
    return NRM_OK;
}

/* In place, with g = gamma dy: dx = (g - mean of g)/s - (x-mean) sum(g (x-mean)) / ((n-1) s^3). */
static int printed_backward(void *context, nrm_mlp *net, size_t l, nrm_real *d, size_t n)
{
    const nrm_mlp_state *state = &net->state[l];
    size_t i, j;
    (void)context;
    for (j = 0; j < HIDDEN; j++) {
        const double s = printed.spread[j], g = (double)state->gamma[j];
        double sum = 0, with_c = 0;
        for (i = j; i < n * HIDDEN; i += HIDDEN) {
            sum += (double)d[i];
            with_c += (double)d[i] * ((double)state->linear_out[i] - printed.mean[j]);
        }
        state->dbeta[j] = (nrm_real)sum;
        state->dgamma[j] = (nrm_real)(with_c / s);
        for (i = j; i < n * HIDDEN; i += HIDDEN) {
            const double c = (double)state->linear_out[i] - printed.mean[j];
            const double centred = (double)d[i] - sum / (double)n;
            d[i] = (nrm_real)(g * (centred / s - c * with_c / ((double)(n - 1) * s * s * s)));
        }
    }
    return NRM_OK;
}

static const training_between printed_layer = {NULL, printed_forward, printed_backward};

/* Loss and gradient in train mode; running statistics stay. */
static int toy_gradient(trainer *t, nrm_acc *loss, const nrm_real *x, const int *labels, size_t n)
{
    if (t->run->arm != TOY_PRINTED) return nrm_mlp_gradient(t->net, loss, x, labels, n, NRM_TRAIN);
    return training_gradient(t->net, loss, x, labels, n, &printed_layer);
}

static int toy_learn(trainer *t, nrm_acc *loss)
{
    const training_order *o = &t->order;
    size_t j;
    int rc;
    if (t->run->arm != TOY_PRINTED)
        return nrm_mlp_train_step(t->net, loss, o->x, o->labels, o->count);
    rc = toy_gradient(t, loss, o->x, o->labels, o->count);
    for (j = 0; j < HIDDEN; j++) {
        printed.slow_mean[j] = 0.999 * printed.slow_mean[j] + 0.001 * printed.mean[j];
        printed.slow_spread[j] = 0.999 * printed.slow_spread[j] + 0.001 * printed.spread[j];
    }
    return rc == NRM_OK ? nrm_mlp_step(t->net) : rc;
}

static nrm_mlp_spec toy_network(trainer *t)
{
    const int norm = t->run->arm == TOY_NONE ? NRM_NO_NORM : NRM_BATCH_NORM;
    nrm_mlp_spec spec = training_plain(t->layer, 1, HIDDEN, NRM_TANH, norm);
    t->layer[0].bias = 0;
    t->layer[1].width = spec.inputs = IN;
    spec.max_batch = TOY_TRAIN;
    return spec;
}

/* Points, and a network with weights ~ N(0, 1), for the caller to train and close. */
static int toy_open(trainer *t, lab_run *run)
{
    static const trainer_plan plan = {toy_network, .learn = toy_learn, .set = &points,
                                      .batch = TOY_BATCH_SIZE, .replace = 1};
    nrm_real w[2 * IN * HIDDEN + IN]; /* of both layers, and the second one's bias */
    size_t j;
    toy_data(run->seed);
    draw_normals(w, LAB_COUNT(w), 1, run->seed, 1);
    for (j = 0; j < HIDDEN; j++) printed.slow_spread[j] = 1;
    if (trainer_open(t, run, &plan)) return -1;
    memcpy(t->net->state[0].W, w, IN * HIDDEN * sizeof *w);
    memcpy(t->net->state[1].W, w + IN * HIDDEN, IN * HIDDEN * sizeof *w);
    memcpy(t->net->state[1].b, w + 2 * IN * HIDDEN, IN * sizeof *w);
    return 0;
}

/* The largest difference of the printed layer's outputs and gradients from the library's: that
   divides by n where the printed one divides by n-1, which is a gamma of sqrt((n-1)/n). */
static double printed_against_library(void)
{
    const nrm_real factor = (nrm_real)sqrt(1 - 1.0 / TOY_BATCH_SIZE);
    lab_run run[2] = {{.arm = TOY_PRINTED, .seed = 1}, {.arm = TOY_BATCH, .seed = 1}};
    const nrm_mlp_state *layer[2];
    trainer t[2];
    nrm_acc loss;
    double of_outputs, of_gradients;
    size_t k, j;
    for (k = 0; k < 2; k++) {
        if (toy_open(&t[k], &run[k])) return (double)NAN;
        layer[k] = t[k].net->state;
        t[k].net->spec.eps = (nrm_real)1e-12;
        for (j = 0; j < HIDDEN; j++) layer[k]->gamma[j] = k ? factor : 1;
        (void)toy_gradient(&t[k], &loss, toy_x, toy_labels, TOY_BATCH_SIZE);
    }
    for (j = 0; j < HIDDEN; j++) layer[1]->dgamma[j] *= factor;
    of_outputs = training_farthest(layer[0]->norm_out, layer[1]->norm_out, TOY_BATCH_SIZE * HIDDEN);
    of_gradients = training_farthest(t[0].net->grads, t[1].net->grads, t[0].net->n_params);
    trainer_close(&t[0]);
    trainer_close(&t[1]);
    return stats_larger(of_outputs, of_gradients);
}

/* Saturated units and the logits' rms on all training points at the start. */
static void toy_look(trainer *t)
{
    const nrm_real *h = t->net->state[0].act_out;
    nrm_acc loss;
    double dead;
    (void)toy_gradient(t, &loss, toy_x, toy_labels, TOY_TRAIN);
    lab_record(t->run, "start/saturated", 1, saturated_part(h, TOY_TRAIN, HIDDEN, NRM_TANH, &dead));
    lab_record(t->run, "start/logits", 0, training_rms(t->net->logits, (size_t)TOY_TRAIN * IN));
    if (t->run->first && t->run->arm != TOY_BATCH)
        record_map(t->run, "start", 1, h, HIDDEN, MAP_POINTS);
}

static double toy_accuracy(trainer *t)
{
    nrm_acc accuracy = 0;
    if (t->run->arm != TOY_PRINTED) return trainer_accuracy(t, &unseen, NULL);
    printed.infer = 1;
    (void)training_forward(t->net, unseen.x, TOY_TEST, &printed_layer);
    (void)nrm_accuracy(&accuracy, t->net->logits, unseen.labels, TOY_TEST, IN);
    return (double)accuracy;
}

static int run_toy(lab_run *run)
{
    const size_t steps = run->quick ? 100 : 5000, window = steps / 50;
    double sum = 0;
    size_t step;
    trainer t;
    int failed = toy_open(&t, run);
    if (!failed) toy_look(&t);
    for (step = 1; step <= steps && !failed; step++) {
        failed = trainer_step(&t);
        if (step == 1) lab_record(run, "first_loss", 0, t.loss);
        sum += t.loss / (double)window;
        if (step % window) continue;
        lab_record(run, "loss", (double)step - 0.5 * (double)window, sum);
        sum = 0;
    }
    if (!failed) lab_record(run, "accuracy", 0, toy_accuracy(&t));
    trainer_close(&t);
    return failed;
}

static int run(lab_run *r)
{
    return r->arm < TOY_NONE ? run_mnist(r) : run_toy(r);
}

/* ---- what came out --------------------------------------------------------------------------- */

/* Mean over the layers, seed by seed; for a series that has one value, that. */
static lab_numbers layers(const lab_report *r, size_t arm, const char *series)
{
    return lab_mean_over(r, arm, series, 0, DEPTH_MAX);
}

/* The largest less the smallest test accuracy over the gains, six layers. */
static double accuracy_range(const lab_report *r, size_t norm, size_t s)
{
    double low = 1, high = 0;
    size_t i;
    for (i = 0; i < GAINS; i++) {
        const double y = lab_at(r, TANH(6, i, norm), s, "accuracy", 0);
        low = stats_smaller(low, y);
        high = stats_larger(high, y);
    }
    return high - low;
}

static void judge_relu(lab_report *r, const lab_claim *c)
{
    const stats_summary steps = lab_summary(r, RELU_NONE, "steps", 0);
    const double all = lab_summary(r, RELU_BATCH, "steps", 0).min;
    const lab_numbers none = layers(r, RELU_NONE, "end/dead");
    const lab_numbers batch = lab_most_over(r, RELU_BATCH, "dead", 0, HUGE_VAL);
    const double most = lab_describe(batch).max;
    lab_verdict(r, c, lab_more(none, batch, most < 0.01),
                steps.max < all ? "without a norm the loss is not finite after the steps given"
                                : "",
                "%s without, after %.0f to %.0f steps; at most %.4f with, in %.0f steps",
                lab_pm(r, none, 3), steps.min, steps.max, most, all);
}

/* How far from the 0.683 of a normal distribution, in the worst layer. */
static double off_normal(const lab_report *r, size_t arm, size_t s)
{
    double most = 0, l;
    for (l = 1; l <= 3; l++)
        most = stats_larger(most, fabs(lab_at(r, arm, s, "start/near", l) - 0.683));
    return most;
}

static double most_bent(const lab_report *r, size_t arm, size_t s)
{
    return lab_most_over(r, arm, "start/bent", 1, 3).of[s];
}

/* clang-format off */
#define SIX(gain) TANH(6, gain, 0) /* layers, no norm; behind it with batch norm */
#define THREE_LAYERS(of, what)                                                                     \
    {.a = of, .series = what, .at = 1}, {.a = of, .series = what, .at = 2},                        \
        {.a = of, .series = what, .at = 3}
#define STANDARD(depth, gain)                                                                      \
    {LAB_WITHIN, TANH(depth, gain, 1), .series = "start/saturated", .to = DEPTH_MAX,               \
     .limit = 0.0364, .tolerance = 0.015}
#define LESS_SATURATED(gain)                                                                       \
    {LAB_MORE, SIX(gain), SIX(gain) + 1, "start/saturated", .to = DEPTH_MAX}
#define BOTH_GAINS(test, none)                                                                     \
    LAB_PARTS({test, none + 1, none, "accuracy"}, {test, none + 3, none + 2, "accuracy"}),         \
    .decimals = 3
static const lab_claim claims[] = {
    {"19a", "Batch norm hands tanh standardized inputs: at the start 3.6 % are saturated, whatever "
     "the gain", "a tutorial on batch norm in a tanh network; Karpathy's makemore, part 3",
     "\"zero mean and unit variance\"; for a normal distribution 0.0364 beyond 0.97",
     "up to the shape of a sum of many inputs: 0.0364 ± 0.015 at the start, mean over layers, each "
     "gain, both depths", "trial runs (1 seed): 0.04 at all gains",
     LAB_PARTS(STANDARD(1, 0), STANDARD(1, 1), STANDARD(1, GAIN_5), STANDARD(1, GAIN_20),
               STANDARD(6, 0), STANDARD(6, 1), STANDARD(6, GAIN_5), STANDARD(6, GAIN_20)),
     .say = "#1..8[min %.4f] to #1..8[max %.4f] in all runs"},
    {"19b", "Without a norm, tanh saturates if the weights are large",
     "a tutorial on batch norm in a tanh network; Karpathy's makemore, part 3", "no numbers",
     "six layers, at the start: a larger fraction saturated without batch norm, at gains 5/3, 5 "
     "and 20",
     "trial runs (1 seed): 0.04, 0.20, 0.66, 0.91 at gains 1, 5/3, 5, 20 without, 0.04 with",
     LAB_PARTS(LESS_SATURATED(1), LESS_SATURATED(GAIN_5), LESS_SATURATED(GAIN_20),
               {.a = SIX(0), .series = "start/saturated", .to = DEPTH_MAX},
               {.a = SIX(0) + 1, .series = "start/saturated", .to = DEPTH_MAX}),
     .say = "without #7[%.3f], #1[%.3f], #3[%.3f], #5[%.3f] at gains 1, 5/3, 5, 20; with #6[%.3f] "
     "at 20", .remark = "with, at gain 1: #8[%.3f]"},
    {"19c", "Batch norm prevents dead units",
     "a tutorial on batch norm in a tanh network (\"prevents ... dead neurons\")", "no numbers",
     "gain 20, six layers, after 600 steps: more units saturated on all 1000 images without, none "
     "with", "trial runs (1 seed): 13 % dead in layer 1 without",
     LAB_PARTS({LAB_MORE, SIX(GAIN_20), SIX(GAIN_20) + 1, "end/dead", .to = DEPTH_MAX,
                .b_mean = {-1, 0}},
               {.a = SIX(GAIN_20), .series = "end/dead", .at = 1},
               {.a = SIX(GAIN_20), .series = "end/dead", .at = 6}), .decimals = 3,
     .say = "layer 1: $3 without; mean of six layers: $1 without, $2 with",
     .remark = "layer 6: $4 without"},
    {"19d", "... and so a network with large weights trains",
     "a tutorial on batch norm in a tanh network", "no numbers",
     "six layers, gains 5 and 20: higher test accuracy with batch norm",
     "trial runs (1 seed): 0.34 without, 0.85 with, at gain 20",
     BOTH_GAINS(LAB_MORE, SIX(GAIN_5)),
     .say = "gain 5: $2 without, $1 with; gain 20: $4, $3"},
    {"19e", "Batch norm does not help a well-initialized network of one hidden layer",
     "ours, after the log of Karpathy's makemore, part 3",
     "training loss 2.0377 without, 2.0668 with",
     "one layer, gains 1 and 5/3: lower test accuracy with batch norm", "trial runs (1 seed): not "
     "better with one hidden layer; six layers, gain 1: 0.959 without, 0.957 with",
     BOTH_GAINS(LAB_LESS, 0), .say = "gain 1: $2 without, $1 with; gain 5/3: $4, $3",
     .remark = "test accuracy here, training loss there"},
    {"19f", "With batch norm the initialization matters less",
     "a tutorial on batch and layer norm (\"proper weight init not as important\")", "no numbers",
     "six layers: the test accuracy's range over the four gains is smaller with batch norm",
     "trial runs (1 seed): with gains 1 and 20 0.957 and 0.85 with, 0.959 and 0.34 without",
     .test = LAB_LESS, .a = 1, .b = 0, .each = accuracy_range, .decimals = 3,
     .say = "range $2 without, $1 with"},
    {"19g", "ReLU units die in a few large steps, and batch norm prevents it",
     "a tutorial on batch norm in a tanh network (dead neurons), for ReLU", "no numbers",
     "learning rate 1: a larger fraction of units gives 0 for all 1000 images without batch norm, "
     "when its loss was last finite, than at any look with, and below 0.01 with", "none",
     .judge = judge_relu},
    {"19h", "Normalizing the inputs of a sigmoid puts them into its linear part",
     "Ioffe & Szegedy 2015, section 3; a tutorial with a custom batch norm",
     "no numbers; a normal distribution has 0.683 in ±1 and leaves 1.6 % to a straight line",
     "as 19a: at the start, in each layer 0.683 ± 0.05 in ±1, at most 2.5 % of the output's "
     "variance not explained by a straight line", "none",
     LAB_PARTS({LAB_BELOW, SIGMOID_BATCH, .each = off_normal, .limit = 0.05},
               {LAB_BELOW, SIGMOID_BATCH, .each = most_bent, .limit = 0.025},
               THREE_LAYERS(SIGMOID_BATCH, "start/near"), THREE_LAYERS(SIGMOID_NONE, "start/bent")),
     .say = "#3..5[min %.3f] to #3..5[max %.3f] in ±1; at most #2[max 100 %.1f] % left by a line",
     .remark = "without a norm a line leaves #6[100 %.1f] %, #7[100 %.2f] %, #8[100 %.3f] % in "
     "layers 1, 2, 3"},
    {"19i", "... which makes the network equivalent to one of a single layer",
     "a tutorial with a custom batch norm", "no numbers",
     "γ = 1 and β = 0 held: test accuracy not above that of softmax regression", "none",
     LAB_TRAINING, LAB_NEWS,
     LAB_PARTS({LAB_LESS, SIGMOID_HELD, SOFTMAX, "accuracy"},
               {.a = SIGMOID_HELD, .series = "lines"}), .decimals = 3,
     .say = "γ, β held: $1; softmax regression: $2; lines instead of sigmoids: $3"},
    {"19j", "γ and β let the inputs out of the linear part again",
     "Ioffe & Szegedy 2015, section 3; a tutorial with a custom batch norm",
     "Fig. 1c: inputs' 15th and 85th percentiles widen from ±1.1 to ±2.0",
     "what a straight line leaves unexplained, mean over layers: larger after training than at the "
     "start", "none", 
     LAB_PARTS({LAB_MORE, SIGMOID_BATCH, SIGMOID_BATCH, "end/bent", .other = "start/bent",
                .to = DEPTH_MAX}, {.a = SIGMOID_HELD, .series = "end/bent", .to = DEPTH_MAX}),
     .say = "#2[100 %.2f] % at the start, #1[100 %.2f] % after; with γ, β held #3[100 %.2f] % "
     "after"}};
/* clang-format on */

/* ---- pages ----------------------------------------------------------------------------------- */

static plot_style look_of(size_t arm)
{
    return arm == TOY_PRINTED ? plot_dotted(PLOT_INK) : lab_style(arm % RULES ? "batch" : "none");
}

/* Maps side by side, white where saturated, and what they show of all units and images: of three
   layers of panel->arm, or of the toy without and with the printed layer. */
static void draw_maps(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    static unsigned char grey[MAPS * MAP_UNITS * MAP_IMAGES];
    const int toy = panel->arm == TOY_NONE, images = toy ? MAP_POINTS : MAP_IMAGES;
    const size_t maps = toy ? 2 : MAPS, cells = (size_t)(MAP_UNITS * images);
    const char *captions[MAPS], *when = panel->series;
    size_t k, i;
    for (k = 0; k < maps; k++) {
        const size_t arm = toy && k > 0 ? TOY_PRINTED : panel->arm, layer = toy ? 1 : map_layer[k];
        const lab_series rows = lab_get(r, arm, 0, lab_format(r, "%s%zu", when, layer));
        const double part = lab_at(r, arm, 0, lab_format(r, "%s/saturated", when), (double)layer);
        const double dead = lab_at(r, arm, 0, lab_format(r, "%s/dead", when), (double)layer);
        for (i = 0; i < cells && i / MAP_BITS < rows.n; i++)
            grey[k * cells + i] = (unsigned long)rows.y[i / MAP_BITS] >> i % MAP_BITS & 1 ? 255 : 0;
        captions[k] =
            toy ? lab_format(r, "%s: %.1f %% saturated", arms[arm].name, 100 * part)
                : lab_format(r, "layer %zu: %.0f %%, %.0f %% dead", layer, 100 * part, 100 * dead);
    }
    plot_images(p, grey, maps, MAP_UNITS, images, toy ? 1 : MAPS, captions, 0);
}

/* Value against gain: mean over layers of panel->series. */
static void draw_gains(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    static const char *const names[4] = {"no norm, 6 layers", "no norm, 1 layer",
                                         "batch norm, 6 layers", "batch norm, 1 layer"};
    size_t k, i;
    for (k = 0; k < 4; k++) {
        lab_numbers y[GAINS];
        for (i = 0; i < GAINS; i++) y[i] = layers(r, TANH(k % 2 ? 1 : 6, i, k / 2), panel->series);
        lab_draw_numbers(p, names[k], gains, y, GAINS,
                         plot_with_marker(look_of(k / 2), k % 2 ? PLOT_RING : PLOT_CIRCLE));
    }
}

#define END_OF_LINES 612 /* just behind the last step */
static void draw_names(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    size_t i;
    for (i = 0; i < GAINS; i++) {
        const double y = lab_mean(r, TANH(6, i, 0), panel->series, LAB_LAST) - (i ? 0 : 0.045);
        plot_text(p, END_OF_LINES, y, lab_format(r, "gain %s", gain_names[i]), PLOT_LEFT,
                  PLOT_VERMILLION);
    }
}

static void draw_most(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    double most = 0;
    size_t i;
    for (i = 0; i < RATES; i++) /* their lines lie on the axis */
        most = stats_larger(most, lab_largest(r, RELU_BATCH + RULES * i, panel->series));
    plot_text_in(p, 0.98, 0.4, lab_format(r, "with batch norm: %.3f at most", most), PLOT_RIGHT,
                 PLOT_BLUE);
}

/* The function, the inputs, the line: the drawing of the claim, to scale. */
static void draw_regime(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    enum { POINTS = 121 };
    double z[POINTS], sigmoid[POINTS], straight[POINTS], density[POINTS], zero[POINTS] = {0};
    const plot_style shade = {PLOT_BLUE, .alpha = 0.18};
    size_t i;
    (void)r;
    (void)panel;
    for (i = 0; i < POINTS; i++) {
        z[i] = -3 + 0.05 * (double)i;
        sigmoid[i] = 1 / (1 + exp(-z[i]));
        straight[i] = 0.5 + 0.20662 * z[i];
        density[i] = exp(-0.5 * z[i] * z[i]) / sqrt(2 * acos(-1.0));
    }
    plot_band(p, "density of z ~ N(0, 1)", z, zero, density, POINTS, shade);
    plot_line(p, "sigmoid", z, sigmoid, POINTS, plot_solid(PLOT_INK));
    plot_line(p, "best line for these z", z, straight, POINTS, plot_dashed(PLOT_GREY));
}

/* clang-format off */
#define RING .dash = PLOT_DOTTED, .marker = PLOT_RING
#define DISC .marker = PLOT_CIRCLE
#define MAP(at, beside, what, norm, when)                                                          \
    {.axes = {at, beside, .heading = what}, .draw = draw_maps, .arm = TANH(6, GAIN_20, norm),      \
     .series = when}
static const lab_panel maps[] = {
    MAP(0, 0, "no norm, at the start", 0, "start"), MAP(0, 1, "no norm, after 600 steps", 0, "end"),
    MAP(1, 0, "batch norm, at the start", 1, "start"),
    MAP(1, 1, "batch norm, after 600 steps", 1, "end")};

#define GAIN_AXIS                                                                                  \
    .x = "gain: weights are N(0, gain^2/in)", .x_scale = PLOT_LOG10, .x_ticks = gains,             \
    .x_names = gain_names, .x_count = GAINS, .x_range = {0.85, 24}, .grid = PLOT_GRID_Y
static const double steps[4] = {0, 200, 400, 600};
static const char *const step_names[4] = {"0", "200", "400", "600"};
#define LAYER_AXIS .row = 1, .x = "hidden layer", .x_range = {0.7, 6.3}, .grid = PLOT_GRID_Y
#define BATCH_NORM(i, of, gain, ...)                                                               \
    {TANH(6, i, 1), of, "batch norm, gain " gain, {PLOT_BLUE, .marker_every = 1, __VA_ARGS__}}
#define NO_NORM(i, of, gain, ...)                                                                  \
    {TANH(6, i, 0), of, "no norm, gain " gain, {PLOT_VERMILLION, .marker_every = 1, __VA_ARGS__}}
#define DIAMOND .dash = PLOT_DASHDOT, .marker = PLOT_DIAMOND
#define TRIANGLE .dash = PLOT_DASHED, .marker = PLOT_TRIANGLE
#define LARGE_GAINS(of) NO_NORM(GAIN_5, of, "5", TRIANGLE), NO_NORM(GAIN_20, of, "20", DISC)
#define ALL_GAINS(of) NO_NORM(0, of, "1", RING), NO_NORM(1, of, "5/3", DIAMOND), LARGE_GAINS(of)
static const lab_panel numbers[] = {
    {.axes = {.heading = "Saturated at the start", .y = "fraction saturated",
              .y_range = {-0.02, 1.02}, GAIN_AXIS},
     .draw = draw_gains, .series = "start/saturated",
     .mark = {{LAB_HLINE, .y = 0.036412070343893849, .text = ""}, /* P(|tanh z| > 0.97) */
              {LAB_NOTE, 9, 0.085, "N(0, 1): 0.0364", PLOT_CENTER}}},
    {.axes = {.col = 1, .heading = "Saturated during training, 6 layers", .x = "step",
              .x_range = {0, 810}, .x_ticks = steps, .x_names = step_names, .x_count = 4,
              .y = "fraction saturated", .y_range = {-0.06, 1.02}, .grid = PLOT_GRID_Y,
              .legend = PLOT_LEGEND_NONE},
     .line = {{SIX(0), "saturated"}, {SIX(1), "saturated"}, {SIX(GAIN_5), "saturated"},
              {SIX(GAIN_20), "saturated", .to = SIX(GAIN_20) + 1}},
     .draw = draw_names, .series = "saturated",
     .mark = {{LAB_NOTE, END_OF_LINES, 0.06, "batch norm, 20", PLOT_LEFT, PLOT_BLUE}}},
    {.axes = {.col = 2, .heading = "Test accuracy after 600 steps", .y = "accuracy",
              .y_range = {0.2, 1.02}, GAIN_AXIS},
     .draw = draw_gains, .series = "accuracy"},
    {.axes = {.heading = "Dead units after 600 steps", .y = "fraction of units",
              .y_range = {-0.005, 0.3}, LAYER_AXIS},
     .line = {LARGE_GAINS("end/dead"), BATCH_NORM(GAIN_5, "end/dead", "5", TRIANGLE),
              BATCH_NORM(GAIN_20, "end/dead", "20", DISC)}},
    {.axes = {.col = 1, .heading = "Gradient at the start", .y = "rms ∂L_i/∂h",
              .y_scale = PLOT_LOG10, .y_range = {1e-3, 100}, LAYER_AXIS},
     .line = {ALL_GAINS("start/gradient"), BATCH_NORM(0, "start/gradient", "1 to 20", RING)}},
    {.axes = {.col = 2, .heading = "First step of the weights, relative",
              .y = "lr · rms ∂L/∂W / rms W", .y_scale = PLOT_LOG10, .y_range = {1e-6, 0.1},
              LAYER_AXIS},
     .line = {ALL_GAINS("start/update"), BATCH_NORM(0, "start/update", "1", RING),
              BATCH_NORM(GAIN_20, "start/update", "20", DISC)}}};

#define BEND(arm, series, label, color, ...)                                                       \
    {arm, series, label, {color, .marker_every = 1, __VA_ARGS__}}
#define FALLEN(arm, label, ...) /* some runs end early: a line for each seed */                    \
    {arm, "dead", label, {PLOT_VERMILLION, .marker_every = 1, __VA_ARGS__}, LAB_EACH_SEED}
static const char *const names[3] = {"layer 1", "layer 2", "layer 3"};
static const char *const nets[4] = {"no norm", "batch norm", "γ, β held", "softmax"};
static const double at[3] = {1, 2, 3};
static const lab_panel others[] = {
    {.axes = {.heading = "784-200x6-10 ReLU: dead units", .x = "step",
              .y = "fraction of units, mean of layers", .grid = PLOT_GRID_Y},
     .line = {FALLEN(RELU_NONE, "no norm, lr 1, each seed", .marker = PLOT_CROSS),
              FALLEN(RELU_NONE + RULES, "no norm, lr 0.3, each seed", .dash = PLOT_DASHED,
                     .marker = PLOT_RING),
              {RELU_NONE + 2 * RULES, "dead", "no norm, lr 0.1",
               {PLOT_VERMILLION, .dash = PLOT_DOTTED}},
              {RELU_BATCH, "dead", "batch norm, lr 1", {PLOT_BLUE}},
              {RELU_BATCH + RULES, "dead", "batch norm, lr 0.3",
               {PLOT_BLUE, .dash = PLOT_DASHED}},
              {RELU_BATCH + 2 * RULES, "dead", "batch norm, lr 0.1",
               {PLOT_BLUE, .dash = PLOT_DOTTED}}},
     .draw = draw_most, .series = "dead"},
    {.axes = {.col = 1, .heading = "A normal input, and sigmoid", .x = "input z",
              .y = "output, density", .y_range = {-0.2, 1.55},
              .legend = PLOT_LEGEND_TOP_LEFT},
     .draw = draw_regime,
     .mark = {{LAB_VLINE, -1, .text = ""},
              {LAB_VLINE, 1, .text = ""},
              {LAB_NOTE_IN, 0.98, 0.05, "68.3 % in ±1; the line explains 98.4 %", PLOT_RIGHT}}},
    {.axes = {.col = 2, .heading = "784-100x3-10 sigmoid: output no line explains",
              .y = "part of its variance", .y_scale = PLOT_LOG10, .y_range = {1e-5, 10},
              .x_ticks = at, .x_names = names, .x_count = 3, .x_range = {0.8, 3.2},
              .grid = PLOT_GRID_Y},
     .line = {BEND(SIGMOID_NONE, "start/bent", "no norm, start", PLOT_VERMILLION, RING),
              BEND(SIGMOID_NONE, "end/bent", "no norm, trained", PLOT_VERMILLION, DISC),
              BEND(SIGMOID_BATCH, "start/bent", "batch norm, start", PLOT_BLUE, RING),
              BEND(SIGMOID_BATCH, "end/bent", "batch norm, trained", PLOT_BLUE, DISC),
              BEND(SIGMOID_HELD, "end/bent", "γ = 1, β = 0 held, trained", PLOT_SKY, DISC)},
     .mark = {{LAB_HLINE, .y = 0.0158, .text = ""}}}, /* of a normal input */
    {.axes = {1, .heading = "784-100x3-10 sigmoid: is it a linear network?",
              .y = "test error, %", .x_names = nets, .x_count = 4, .grid = PLOT_GRID_Y,
              .legend = PLOT_LEGEND_ABOVE},
     .line = {{SIGMOID_NONE, "accuracy", "as trained", {PLOT_GREY}, LAB_ERRORS, SOFTMAX},
              {SIGMOID_NONE, "lines", "with best lines for sigmoids", {PLOT_LIGHT}, LAB_ERRORS,
               SOFTMAX}},
     .value = 1},
    {.axes = {1, 1, .heading = "5-100-5 tanh network as printed", .x = "step",
              .y = "training loss, mean of 100 steps", .y_scale = PLOT_LOG10,
              .y_range = {0.01, 10}, .grid = PLOT_GRID_Y},
     .line = {{TOY_NONE, "loss", .to = TOY_PRINTED}},
     .mark = {{LAB_HLINE, .y = 1.6094379124341003, .text = "log 5"}}},
    {.axes = {1, 2, .heading = "5-100-5 at the start: units across, points down"},
     .draw = draw_maps, .arm = TOY_NONE, .series = "start"}};

static const lab_page pages[] = {
    {"With weights 20 times too large tanh saturates; with batch norm it does not", .height = 880,
     .settings = "784-200x6-10 tanh, W ~ N(0, 20²/in), SGD with learning rate 0.1, batch 128, "
     "600 steps; 100 units across, 100 images down; white: |h| > 0.97; below: how "
     "much of the layer is white, and dead units", .seeds = 1, LAB_PANELS(maps)},
    {"Batch norm makes tanh networks train at any gain", "numbers", 1310, 0.7, LAB_PANELS(numbers)},
    {"Large steps kill ReLU units without batch norm, and none with it", "others", 1320, 0.7,
     .settings = "SGD. ReLU: W ~ N(0, 2/in); sigmoid: Glorot's uniform W, learning rate 0.5, "
     "1200 steps; 5-100-5: W ~ N(0, 1), points of our own", LAB_PANELS(others)}};
/* clang-format on */

static int check_printed(lab_report *r)
{
    const double most = printed_against_library();
    lab_check(r, most < 1e-6, "the printed layer is the library's with γ·√((n−1)/n)",
              "forward and backward, largest difference %.1e, at most 1e-6", most);
    return 0;
}

LAB_PROGRAM("19_saturation", "Does batch norm keep tanh out of saturation, and units from dying?",
            "784-200x6-10 and 784-200-10 tanh, W ~ N(0, gain²/in), SGD with learning rate 0.1, "
            "batch " LAB_TEXT(BATCH) ", " LAB_TEXT(TANH_STEPS) " steps",
            .revision = 2, .uses = LAB_USES_DATA + LAB_TWICE, .prepare = prepare, .look = look_of,
            .before = check_printed)
