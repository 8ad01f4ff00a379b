/* 19_saturation: does batch norm keep tanh out of saturation, units from dying, and sigmoid in its
   linear part?

   Three kinds of network, all on batches that the arms of a seed share:

       tanh      784-200-10 and 784-200x6-10, W ~ N(0, 1/in) times a gain of 1, 5/3, 5 or 20, the
                 output layer N(0, 1/in) times 0.1; SGD, learning rate 0.1, batch 128, 600 steps
       ReLU      784-200x6-10, W ~ N(0, 2/in), learning rate 1, 200 steps; 0.1 and 0.3 beside it
       sigmoid   784-100x3-10, W ~ U(±sqrt(6/(in+out))), learning rate 0.5, 1200 steps; beside it
                 one whose γ and β are held at 1 and 0, and a softmax regression
       toy       5-100-5 tanh as one tutorial prints it, with its own layer (standard deviation with
                 divisor n-1, no ε, running average of the standard deviation with 0.999), with the
                 usual batch norm, and without; 2000 points of five classes, batch 32, learning
                 rate 0.1, 5000 steps

   MNIST pixels have mean 0 and variance 1. Probes look at the first 1000 training images, with
   batch statistics of these, and leave the training as it was. A tanh is saturated for an image
   if |h| > 0.97; a unit is dead if it is so for all 1000 (ReLU: if it gives 0 for all 1000).

   The claims; what counts as reproduced was written down before the run:

       19a  the inputs of tanh are standardized: the saturated fraction with batch norm at the
            start is 0.0364 ± 0.015 for all gains and both depths, in every seed
       19b  without batch norm large weights saturate: the fraction at the start, over six layers,
            is larger without than with, at gains 5/3, 5 and 20
       19c  batch norm prevents dead units: at gain 20, six layers, after training, more are dead
            without than with, and with batch norm none
       19d  ... and so trains better: at gains 5 and 20, six layers, higher test accuracy with
       19e  batch norm does not help a well-initialized net of one hidden layer: at gain 1 and 5/3
            the test accuracy is higher without
       19f  the start matters less: the test accuracy of the six-layer net varies less over the
            four gains with batch norm than without
       19g  ReLU units die after large steps, and batch norm prevents it: at learning rate 1 the
            fraction of dead units is larger without, when its loss was last finite, than at any
            look with batch norm, and below 0.01 with
       19h  the inputs of sigmoid fall into its linear part: at the start 0.683 ± 0.05 of them are
            in ±1, and a straight line explains at least 97.5 % of the output's variance
       19i  ... which makes the network equivalent to one of a single layer: with γ = 1 and β = 0
            held, the test accuracy is not above that of softmax regression
       19j  γ and β let it out again: what the line leaves unexplained is larger after training
            than at the start

   Paired over seeds: the sign in 4 of 5, the mean beyond 2 standard errors. 19a and 19h are
   exact up to the shape of a sum of many inputs; 19e is a claim of ours after a lecture's log.
   Changed after the run: 19g had compared the dead units at the last step of each net, which are
   steps 3 or 4 without and 200 with batch norm. */
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"
#include "lab/training.h"

#include "lab/lab.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SATURATED 0.97
#define BATCH 128
#define PROBES 1000   /* images that the probes look at              */
#define DEPTH_MAX 6   /* hidden layers                               */
#define MAP_UNITS 100 /* of a map: the first units, the first images */
#define MAP_IMAGES 100
#define MAP_BITS 23 /* in a recorded number, which has seven digits */

/* ---- the arms -------------------------------------------------------------------------------- */

enum { GAINS = 4, RATES = 3, RULES = 2 }; /* tanh nets: 2 depths x 4 gains x (none, batch) */
enum {
    TANH = 0,
    RELU_NONE = 2 * GAINS * RULES, /* 3 learning rates x (none, batch) */
    RELU_BATCH,
    SIGMOID_NONE = RELU_NONE + RATES * RULES,
    SIGMOID_BATCH,
    SIGMOID_HELD,
    SOFTMAX,
    TOY_NONE,
    TOY_BATCH,
    TOY_PRINTED,
    MAP_NONE,
    MAP_BATCH,
    MAP_TOY_NONE,
    MAP_TOY_PRINTED,
    ARMS
};

static const double gains[GAINS] = {1, 5.0 / 3, 5, 20}, rates[RATES] = {1, 0.3, 0.1};

static size_t tanh_arm(size_t depth, size_t gain, size_t norm)
{
    return TANH + ((depth > 1 ? (size_t)GAINS : 0) + gain) * RULES + norm;
}

static const lab_arm arms[ARMS] = {{"tanh1_g1_none", "1 layer, gain 1, no norm", 1.2, 0},
                                   {"tanh1_g1_batch", "1 layer, gain 1, batch norm", 1.2, 0},
                                   {"tanh1_g1.67_none", "1 layer, gain 5/3, no norm", 1.2, 0},
                                   {"tanh1_g1.67_batch", "1 layer, gain 5/3, batch norm", 1.2, 0},
                                   {"tanh1_g5_none", "1 layer, gain 5, no norm", 1.2, 0},
                                   {"tanh1_g5_batch", "1 layer, gain 5, batch norm", 1.2, 0},
                                   {"tanh1_g20_none", "1 layer, gain 20, no norm", 1.2, 0},
                                   {"tanh1_g20_batch", "1 layer, gain 20, batch norm", 1.2, 0},
                                   {"tanh6_g1_none", "6 layers, gain 1, no norm", 3.6, 0},
                                   {"tanh6_g1_batch", "6 layers, gain 1, batch norm", 3.6, 0},
                                   {"tanh6_g1.67_none", "6 layers, gain 5/3, no norm", 3.6, 0},
                                   {"tanh6_g1.67_batch", "6 layers, gain 5/3, batch norm", 3.6, 0},
                                   {"tanh6_g5_none", "6 layers, gain 5, no norm", 3.6, 0},
                                   {"tanh6_g5_batch", "6 layers, gain 5, batch norm", 3.6, 0},
                                   {"tanh6_g20_none", "6 layers, gain 20, no norm", 3.6, 0},
                                   {"tanh6_g20_batch", "6 layers, gain 20, batch norm", 3.6, 0},
                                   {"relu_none", "ReLU, no norm", 1.5, 0},
                                   {"relu_batch", "ReLU, batch norm", 1.5, 0},
                                   {"relu_0.3_none", "ReLU, no norm, lr 0.3", 1.5, 0},
                                   {"relu_0.3_batch", "ReLU, batch norm, lr 0.3", 1.5, 0},
                                   {"relu_0.1_none", "ReLU, no norm, lr 0.1", 1.5, 0},
                                   {"relu_0.1_batch", "ReLU, batch norm, lr 0.1", 1.5, 0},
                                   {"sigmoid_none", "sigmoid, no norm", 1.5, 0},
                                   {"sigmoid_batch", "sigmoid, batch norm", 1.5, 0},
                                   {"sigmoid_held", "sigmoid, batch norm, γ = 1, β = 0", 1.5, 0},
                                   {"softmax", "softmax regression", 1, 0},
                                   {"toy_none", "no norm", 0.4, 0},
                                   {"toy_batch", "batch norm as usual", 0.4, 0},
                                   {"toy_printed", "batch norm as printed", 0.4, 0},
                                   {"map_none", "map, no norm", 4, 1},
                                   {"map_batch", "map, batch norm", 4, 1},
                                   {"map_toy_none", "map of the toy, no norm", 1, 1},
                                   {"map_toy_printed", "map of the toy, batch norm", 1, 1}};

typedef struct setting { /* of a network on MNIST */
    size_t depth, width; /* hidden layers */
    int activation, norm, init;
    int held; /* 1: γ and β stay at 1 and 0 */
    int map;  /* 1: records its maps        */
    double gain, lr;
    size_t steps, every; /* a look at every so many steps */
    size_t probes;       /* images that the looks see     */
} setting;

static setting setting_of(size_t arm, int quick)
{
    setting k;
    memset(&k, 0, sizeof k);
    k.map = arm == MAP_NONE || arm == MAP_BATCH;
    if (k.map) arm = tanh_arm(6, GAINS - 1, arm - MAP_NONE);
    k.depth = arm < tanh_arm(6, 0, 0) ? 1 : 6;
    k.width = 200;
    k.probes = quick ? 200 : PROBES;
    k.lr = 0.1;
    k.steps = 600;
    k.every = 100;
    k.activation = NRM_TANH;
    k.init = NRM_INIT_GAUSSIAN;
    k.norm = arm % 2 ? NRM_BATCH_NORM : NRM_NO_NORM;
    if (arm < RELU_NONE) {
        k.gain = gains[arm / RULES % GAINS];
    } else if (arm < SIGMOID_NONE) {
        k.activation = NRM_RELU;
        k.init = NRM_INIT_HE;
        k.lr = rates[(arm - RELU_NONE) / RULES];
        k.steps = 200;
        k.every = 20;
    } else {
        k.depth = arm == SOFTMAX ? 0 : 3;
        k.width = 100;
        k.activation = NRM_SIGMOID;
        k.init = NRM_INIT_XAVIER;
        k.norm = arm == SIGMOID_NONE ? NRM_NO_NORM : NRM_BATCH_NORM;
        k.held = arm == SIGMOID_HELD;
        k.lr = arm == SOFTMAX ? 0.1 : 0.5;
        k.steps = k.every = 1200;
    }
    if (quick) k.steps = k.every = 5;
    return k;
}

static training_set train, test; /* made before the first run, shared by all */

static int prepare(const dataset *data, int quick)
{
    (void)quick;
    return training_load(&train, &test, data, 0, 0, DATASET_STD);
}

/* ---- networks on MNIST ----------------------------------------------------------------------- */

static void scale_weights(nrm_mlp *net, const setting *k)
{
    size_t l, i;
    for (l = 0; l <= k->depth; l++) {
        nrm_mlp_state *s = &net->state[l];
        const double gain = l == k->depth ? 0.1 : k->gain;
        const nrm_real sd = (nrm_real)(gain / sqrt((double)s->in));
        for (i = 0; i < s->in * s->shape.width; i++) s->W[i] *= sd;
    }
}

static nrm_mlp *make_net(const setting *k, uint64_t seed, void **block)
{
    nrm_mlp_layer layer[DEPTH_MAX + 1];
    nrm_mlp_spec spec = training_plain(layer, k->depth, k->width, k->activation, k->norm);
    nrm_mlp *net;
    spec.max_batch = PROBES;
    spec.seed = seed;
    spec.init = k->init;
    spec.init_std = 1; /* scaled below */
    spec.lr = (nrm_real)k->lr;
    net = training_net(&spec, block);
    if (net && k->init == NRM_INIT_GAUSSIAN) scale_weights(net, k);
    return net;
}

/* What a probe sees of one hidden layer. */
typedef struct layer_look {
    double saturated, dead; /* fractions: of all unit-image pairs, of the units                   */
    double gradient;   /* rms, over units and images, of an image's loss by the layer's output */
    double update;     /* learning rate times rms gradient by W, over rms W                   */
    double near, bent; /* inputs in ±1; output variance that a straight line does not explain */
} layer_look;

typedef struct look {
    layer_look layer[DEPTH_MAX];
} look;

static int is_off(double h, int activation)
{
    if (activation == NRM_RELU) return !(h > 0); /* also nan */
    return !(fabs(h) <= SATURATED);
}

static void count_off(layer_look *out, const nrm_mlp_state *s, size_t n)
{
    const size_t width = s->shape.width;
    size_t off = 0, dead = 0, i, j;
    for (j = 0; j < width; j++) {
        size_t here = 0;
        for (i = 0; i < n; i++)
            here += is_off((double)s->act_out[i * width + j], s->shape.activation) ? 1u : 0u;
        off += here;
        dead += here == n ? 1u : 0u;
    }
    out->saturated = (double)off / (double)(n * width);
    out->dead = (double)dead / (double)width;
}

/* How straight the activation is where its inputs are: the mean over units of the part of the
   output's variance that the best straight line leaves. */
static void measure_bend(layer_look *out, const nrm_mlp_state *s, size_t n)
{
    const size_t width = s->shape.width;
    size_t near = 0, i, j;
    double left = 0;
    for (j = 0; j < width; j++) {
        double z = 0, h = 0, zz = 0, zh = 0, hh = 0;
        for (i = 0; i < n; i++) z += (double)s->norm_out[i * width + j] / (double)n;
        for (i = 0; i < n; i++) h += (double)s->act_out[i * width + j] / (double)n;
        for (i = 0; i < n; i++) {
            const double input = (double)s->norm_out[i * width + j];
            const double a = input - z, b = (double)s->act_out[i * width + j] - h;
            near += fabs(input) < 1 ? 1u : 0u;
            zz += a * a;
            zh += a * b;
            hh += b * b;
        }
        left += zz > 0 && hh > 0 ? 1 - zh * zh / (zz * hh) : 0;
    }
    out->near = (double)near / (double)(n * width);
    out->bent = left / (double)width;
}

static void see_gradient(void *context, const nrm_mlp_event *e)
{
    look *out = (look *)context;
    if (!e->gradient || e->place != NRM_AT_ACTIVATION || e->layer >= DEPTH_MAX) return;
    out->layer[e->layer].gradient =
        training_rms(e->data, e->rows * e->cols) * (double)e->rows; /* of one image's loss */
}

/* Looks at the network on the probe images, without changing it. */
static int take_look(nrm_mlp *net, const setting *k, look *out)
{
    size_t l;
    int rc;
    memset(out, 0, sizeof *out);
    net->probe = see_gradient;
    net->probe_context = out;
    rc = nrm_mlp_gradient(net, NULL, train.x, train.labels, k->probes, NRM_TRAIN);
    net->probe = NULL;
    for (l = 0; l < k->depth && rc >= 0; l++) {
        const nrm_mlp_state *s = &net->state[l];
        const size_t weights = s->in * s->shape.width;
        count_off(&out->layer[l], s, k->probes);
        if (k->activation == NRM_SIGMOID) measure_bend(&out->layer[l], s, k->probes);
        out->layer[l].update = k->lr * training_rms(s->dW, weights) / training_rms(s->W, weights);
    }
    if (rc < 0) fprintf(stderr, "probe: %s\n", nrm_strerror(rc));
    return rc < 0 ? -1 : 0;
}

/* Records it by layer as "start/..." or "end/...". */
static void record_look(lab_run *run, const setting *k, const look *seen, const char *when)
{
    static const char *const names[6] = {"saturated", "dead", "gradient", "update", "near", "bent"};
    size_t l, i;
    for (i = 0; i < 6; i++) {
        if (k->activation == NRM_SIGMOID ? i < 4 : i >= 4) continue;
        for (l = 0; l < k->depth; l++) {
            const layer_look *y = &seen->layer[l];
            const double value[6] = {y->saturated, y->dead, y->gradient,
                                     y->update,    y->near, y->bent};
            lab_record_as(run, (double)(l + 1), value[i], "%s/%s", when, names[i]);
        }
    }
}

/* Means over the hidden layers, against the step. */
static void record_step(lab_run *run, const setting *k, const look *seen, size_t step)
{
    double saturated = 0, dead = 0;
    size_t l;
    if (k->activation == NRM_SIGMOID) return;
    for (l = 0; l < k->depth; l++) {
        saturated += seen->layer[l].saturated / (double)k->depth;
        dead += seen->layer[l].dead / (double)k->depth;
    }
    lab_record(run, "saturated", (double)step, saturated);
    lab_record(run, "dead", (double)step, dead);
}

/* ---- maps ------------------------------------------------------------------------------------ */

/* 23 cells go into one number, image by image, unit by unit; 1: saturated. */
static void record_map(lab_run *run, const char *series, const nrm_real *h, size_t width,
                       size_t images)
{
    const size_t cells = images * MAP_UNITS;
    size_t at, i;
    for (at = 0; at < cells; at += MAP_BITS) {
        unsigned long bits = 0;
        for (i = 0; i < MAP_BITS && at + i < cells; i++) {
            const size_t image = (at + i) / MAP_UNITS, unit = (at + i) % MAP_UNITS;
            if (is_off((double)h[image * width + unit], NRM_TANH)) bits |= 1ul << i;
        }
        lab_record(run, series, (double)(at / MAP_BITS), (double)bits);
    }
}

static void record_maps(lab_run *run, const nrm_mlp *net, const setting *k, const char *when)
{
    char series[32];
    size_t l;
    for (l = 0; l < k->depth && k->map; l++) {
        (void)snprintf(series, sizeof series, "%s%lu", when, (unsigned long)l + 1);
        record_map(run, series, net->state[l].act_out, k->width, MAP_IMAGES);
    }
}

/* ---- training -------------------------------------------------------------------------------- */

static void hold(nrm_mlp *net, const setting *k)
{
    size_t l, j;
    for (l = 0; l < k->depth && k->held; l++)
        for (j = 0; j < k->width; j++) {
            net->state[l].gamma[j] = 1;
            net->state[l].beta[j] = 0;
        }
}

/* Trains; if `run` is there, looks and records. Stops where something is not finite. */
static int train_net(nrm_mlp *net, const setting *k, uint64_t seed, lab_run *run)
{
    training_order order;
    nrm_acc loss;
    look seen;
    size_t step = 0;
    int rc = NRM_OK, failed = 0;
    if (training_order_start(&order, train.n, BATCH, DATASET_PIXELS, seed)) return -1;
    while (step < k->steps && rc == NRM_OK && !failed) {
        if (run && step % k->every == 0) {
            failed = take_look(net, k, &seen);
            record_step(run, k, &seen, step);
            if (step == 0) record_look(run, k, &seen, "start");
            if (step == 0) record_maps(run, net, k, "start");
        }
        training_go_on(&order, &train, 1);
        rc = nrm_mlp_train_step(net, &loss, order.x, order.labels, order.count);
        hold(net, k);
        if (rc == NRM_OK) step++;
        if (run) lab_progress(run, (double)step / (double)k->steps);
    }
    training_order_free(&order);
    if (!run || failed) return failed;
    failed = take_look(net, k, &seen);
    record_step(run, k, &seen, step);
    record_look(run, k, &seen, "end");
    record_maps(run, net, k, "end");
    lab_record(run, "steps", 0, (double)step); /* fewer than asked for: it was not finite then */
    return failed;
}

typedef struct straight { /* the line that a hidden layer's activations are replaced by */
    double slope[200], base[200];
} straight;

/* By least squares on the probe images, which the network has just seen. */
static void fit_lines(straight *line, const nrm_mlp_state *s, size_t n)
{
    const size_t width = s->shape.width;
    size_t i, j;
    for (j = 0; j < width; j++) {
        double z = 0, h = 0, zz = 0, zh = 0;
        for (i = 0; i < n; i++) {
            z += (double)s->norm_out[i * width + j] / (double)n;
            h += (double)s->act_out[i * width + j] / (double)n;
        }
        for (i = 0; i < n; i++) {
            const double a = (double)s->norm_out[i * width + j] - z;
            zz += a * a;
            zh += a * ((double)s->act_out[i * width + j] - h);
        }
        line->slope[j] = zz > 0 ? zh / zz : 0;
        line->base[j] = h - line->slope[j] * z;
    }
}

/* Forward in infer mode, with lines for activations. */
static int forward_lines(nrm_mlp *net, const straight *line, const nrm_real *x, size_t n)
{
    const size_t hidden = net->spec.layers - 1;
    size_t l, i;
    for (l = 0; l <= hidden; l++) {
        nrm_mlp_state *s = &net->state[l];
        const size_t width = s->shape.width;
        int rc = nrm_linear_forward(s->linear_out, x, s->W, s->b, n, s->in, width);
        if (rc >= 0 && s->shape.norm)
            rc = nrm_batchnorm_forward(s->norm_out, NULL, NULL, &s->running, s->linear_out,
                                       s->gamma, s->beta, NRM_INFER, net->spec.eps, n, width, 1);
        if (rc < 0) return rc;
        for (i = 0; i < n * width && l < hidden; i++)
            s->act_out[i] = (nrm_real)(line[l].base[i % width] +
                                       line[l].slope[i % width] * (double)s->norm_out[i]);
        x = s->out;
    }
    return NRM_OK;
}

/* The test accuracy with each sigmoid replaced by its best line. After a look. */
static int lines_instead(nrm_mlp *net, const setting *k, nrm_acc *accuracy)
{
    straight line[DEPTH_MAX];
    nrm_acc part;
    size_t l, at;
    for (l = 0; l < k->depth; l++) fit_lines(&line[l], &net->state[l], k->probes);
    *accuracy = 0;
    for (at = 0; at < test.n; at += PROBES) {
        if (forward_lines(net, line, test.x + at * DATASET_PIXELS, PROBES) < 0 ||
            nrm_accuracy(&part, net->logits, test.labels + at, PROBES, DATASET_CLASSES) < 0)
            return -1;
        *accuracy += part * PROBES / (nrm_acc)test.n;
    }
    return 0;
}

/* 1 if a training without probes ends with the same parameters and statistics. */
static int same_without_probes(const nrm_mlp *net, const setting *k, uint64_t seed)
{
    void *block;
    nrm_mlp *other = make_net(k, seed, &block);
    const int same = other && !train_net(other, k, seed, NULL) && training_same_bits(other, net);
    free(block);
    return same;
}

static int run_mnist(lab_run *run)
{
    const setting k = setting_of(run->arm, run->quick);
    void *block;
    nrm_mlp *net = make_net(&k, run->seed, &block);
    nrm_acc accuracy = 0, lines = 0;
    int failed = !net || train_net(net, &k, run->seed, run);
    if (!failed && k.activation == NRM_SIGMOID && k.depth > 0) {
        failed = lines_instead(net, &k, &lines);
        lab_record(run, "lines", 0, (double)lines);
    }
    if (!failed) failed = nrm_mlp_eval(net, NULL, &accuracy, test.x, test.labels, test.n) < 0;
    if (!failed) lab_record(run, "accuracy", 0, (double)accuracy);
    if (!failed && run->quick)
        lab_record(run, "same_bits", 0, same_without_probes(net, &k, run->seed));
    free(block);
    return failed;
}

/* ---- the printed layer ----------------------------------------------------------------------- */

/* Batch norm as the tutorial has it: s = sqrt(sum (x-mean)^2 / (n-1)), y = gamma (x-mean)/s + beta,
   no epsilon. A constant column has no s: it is not guarded there, nor here. */
static void printed_forward(nrm_real *y, double *mean, double *spread, const nrm_real *x,
                            const nrm_real *gamma, const nrm_real *beta, size_t n, size_t width)
{
    size_t i, j;
    for (j = 0; j < width; j++) {
        double sum = 0, squares = 0;
        for (i = 0; i < n; i++) sum += (double)x[i * width + j];
        mean[j] = sum / (double)n;
        for (i = 0; i < n; i++) {
            const double c = (double)x[i * width + j] - mean[j];
            squares += c * c;
        }
        spread[j] = sqrt(squares / (double)(n - 1));
        for (i = 0; i < n; i++) {
            const double c = (double)x[i * width + j] - mean[j];
            y[i * width + j] = (nrm_real)((double)gamma[j] * c / spread[j] + (double)beta[j]);
        }
    }
}

/* With g = gamma dy: dx = (g - mean of g)/s - (x-mean) sum(g (x-mean)) / ((n-1) s^3). */
static void printed_backward(nrm_real *dx, nrm_real *dgamma, nrm_real *dbeta, const nrm_real *dy,
                             const nrm_real *x, const double *mean, const double *spread,
                             const nrm_real *gamma, size_t n, size_t width)
{
    size_t i, j;
    for (j = 0; j < width; j++) {
        const double s = spread[j], g = (double)gamma[j];
        double sum = 0, with_c = 0;
        for (i = 0; i < n; i++) {
            sum += (double)dy[i * width + j];
            with_c += (double)dy[i * width + j] * ((double)x[i * width + j] - mean[j]);
        }
        dbeta[j] = (nrm_real)sum;
        dgamma[j] = (nrm_real)(with_c / s);
        for (i = 0; i < n; i++) {
            const double c = (double)x[i * width + j] - mean[j];
            const double centred = (double)dy[i * width + j] - sum / (double)n;
            dx[i * width + j] =
                (nrm_real)(g * (centred / s - c * with_c / ((double)(n - 1) * s * s * s)));
        }
    }
}

/* The largest difference from the library's layer, relative to the largest value: it divides by n
   where the printed one divides by n-1, which is a gamma of sqrt((n-1)/n). Forward and backward. */
static double printed_against_library(void)
{
    enum { N = 32, C = 5 };
    nrm_real x[N * C], dy[N * C], y[2][N * C], dx[2][N * C], dgamma[2][C], dbeta[2][C], gamma[2][C],
        beta[C];
    double mean[C], spread[C], worst = 0;
    nrm_acc m[C], rstd[C];
    nrm_rng rng;
    size_t i;
    nrm_rng_seed(&rng, 1, TRAINING_STREAM_DATA);
    for (i = 0; i < N * C; i++) x[i] = 3 + 2 * nrm_rng_normal(&rng);
    for (i = 0; i < N * C; i++) dy[i] = nrm_rng_normal(&rng);
    for (i = 0; i < C; i++) gamma[0][i] = (nrm_real)(1 + 0.25 * (double)i);
    for (i = 0; i < C; i++) gamma[1][i] = gamma[0][i] * (nrm_real)sqrt((N - 1.0) / N);
    for (i = 0; i < C; i++) beta[i] = nrm_rng_normal(&rng);
    memset(dgamma, 0, sizeof dgamma);
    memset(dbeta, 0, sizeof dbeta);
    printed_forward(y[0], mean, spread, x, gamma[0], beta, N, C);
    printed_backward(dx[0], dgamma[0], dbeta[0], dy, x, mean, spread, gamma[0], N, C);
    if (nrm_batchnorm_forward(y[1], m, rstd, NULL, x, gamma[1], beta, NRM_TRAIN, (nrm_real)1e-12, N,
                              C, 1) < 0 ||
        nrm_batchnorm_backward(dx[1], dgamma[1], dbeta[1], dy, x, m, rstd, gamma[1], NRM_TRAIN, N,
                               C, 1) < 0)
        return (double)INFINITY;
    for (i = 0; i < N * C; i++) {
        const double a = fabs((double)y[0][i] - (double)y[1][i]) / 3;
        const double b = fabs((double)dx[0][i] - (double)dx[1][i]);
        if (!(a <= worst)) worst = a;
        if (!(b <= worst)) worst = b;
    }
    for (i = 0; i < C; i++) {
        const double a = (double)dgamma[0][i] - (double)dgamma[1][i] * sqrt((N - 1.0) / N);
        if (!(fabs(a) / 10 <= worst)) worst = fabs(a) / 10;
    }
    return worst;
}

/* ---- the toy network ------------------------------------------------------------------------- */

enum { IN = 5, HIDDEN = 100, TOY_TRAIN = 2000, TOY_TEST = 1000, TOY_BATCH_SIZE = 32 };

typedef struct toy_params {
    nrm_real W1[IN * HIDDEN], gamma[HIDDEN], beta[HIDDEN], W2[HIDDEN * IN], b2[IN];
} toy_params;

typedef struct toy {
    toy_params p, d;
    size_t variant;                                     /* TOY_NONE, TOY_BATCH, TOY_PRINTED */
    nrm_real running_mean[HIDDEN], running_var[HIDDEN]; /* of the usual layer  */
    double slow_mean[HIDDEN], slow_spread[HIDDEN];      /* of the printed one  */
    nrm_running running;
    double mean[HIDDEN], spread[HIDDEN];
    nrm_acc m[HIDDEN], rstd[HIDDEN];
    nrm_real z[TOY_TRAIN * HIDDEN], y[TOY_TRAIN * HIDDEN], h[TOY_TRAIN * HIDDEN];
    nrm_real logits[TOY_TRAIN * IN], prob[TOY_TRAIN * IN], d_hidden[TOY_BATCH_SIZE * HIDDEN];
    nrm_real x[(TOY_TRAIN + TOY_TEST) * IN];
    int labels[TOY_TRAIN + TOY_TEST];
} toy;

/* Points of five classes, y = argmax Mx; M is the same for all seeds. */
static void toy_data(toy *t, uint64_t seed)
{
    nrm_real M[IN * IN], score[IN];
    nrm_rng rng;
    size_t i, k;
    int best;
    nrm_rng_seed(&rng, 1, TRAINING_STREAM_DATA + 1);
    for (i = 0; i < IN * IN; i++) M[i] = nrm_rng_normal(&rng);
    nrm_rng_seed(&rng, seed, TRAINING_STREAM_DATA);
    for (i = 0; i < TOY_TRAIN + TOY_TEST; i++) {
        nrm_real *x = t->x + i * IN;
        for (k = 0; k < IN; k++) x[k] = nrm_rng_normal(&rng);
        (void)nrm_linear_forward(score, x, M, NULL, 1, IN, IN);
        for (best = 0, k = 1; k < IN; k++)
            if (score[k] > score[best]) best = (int)k;
        t->labels[i] = best;
    }
}

static toy *toy_make(size_t variant, uint64_t seed)
{
    toy *t = (toy *)calloc(1, sizeof *t);
    nrm_rng rng;
    size_t i;
    if (!t) return NULL;
    toy_data(t, seed);
    t->variant = variant;
    t->running.mean = t->running_mean;
    t->running.var = t->running_var;
    t->running.new_weight = (nrm_real)0.1;
    nrm_rng_seed(&rng, seed, 1);
    for (i = 0; i < IN * HIDDEN; i++) t->p.W1[i] = nrm_rng_normal(&rng);
    for (i = 0; i < HIDDEN * IN; i++) t->p.W2[i] = nrm_rng_normal(&rng);
    for (i = 0; i < IN; i++) t->p.b2[i] = nrm_rng_normal(&rng);
    for (i = 0; i < HIDDEN; i++) t->p.gamma[i] = t->running_var[i] = 1;
    for (i = 0; i < HIDDEN; i++) t->slow_spread[i] = 1;
    return t;
}

/* The norm of the variant; in train mode with the statistics of the batch, which enter the running
   ones if `track`. */
static int toy_norm(toy *t, size_t n, int mode, int track)
{
    size_t i, j;
    if (t->variant == TOY_BATCH)
        return nrm_batchnorm_forward(t->y, t->m, t->rstd,
                                     track || mode == NRM_INFER ? &t->running : NULL, t->z,
                                     t->p.gamma, t->p.beta, mode, (nrm_real)1e-5, n, HIDDEN, 1);
    if (t->variant == TOY_NONE) {
        memcpy(t->y, t->z, n * HIDDEN * sizeof *t->y);
        return NRM_OK;
    }
    if (mode == NRM_TRAIN)
        printed_forward(t->y, t->mean, t->spread, t->z, t->p.gamma, t->p.beta, n, HIDDEN);
    for (j = 0; j < HIDDEN && track; j++) {
        t->slow_mean[j] = 0.999 * t->slow_mean[j] + 0.001 * t->mean[j];
        t->slow_spread[j] = 0.999 * t->slow_spread[j] + 0.001 * t->spread[j];
    }
    for (i = 0; i < n * HIDDEN && mode == NRM_INFER; i++) {
        j = i % HIDDEN;
        t->y[i] = (nrm_real)((double)t->p.gamma[j] * ((double)t->z[i] - t->slow_mean[j]) /
                                 t->slow_spread[j] +
                             (double)t->p.beta[j]);
    }
    return NRM_OK;
}

static int toy_forward(toy *t, const nrm_real *x, size_t n, int mode, int track)
{
    int rc = nrm_linear_forward(t->z, x, t->p.W1, NULL, n, IN, HIDDEN);
    if (rc >= 0) rc = toy_norm(t, n, mode, track);
    if (rc >= 0) rc = nrm_activation_forward(t->h, t->y, NRM_TANH, n * HIDDEN);
    if (rc >= 0) rc = nrm_linear_forward(t->logits, t->h, t->p.W2, t->p.b2, n, HIDDEN, IN);
    return rc;
}

/* One step of gradient descent on a batch of TOY_BATCH_SIZE. */
static int toy_step(toy *t, const nrm_real *x, const int *labels, nrm_acc *loss)
{
    const size_t n = TOY_BATCH_SIZE, count = sizeof t->p / sizeof(nrm_real);
    nrm_real *dh = t->d_hidden, *p = (nrm_real *)(void *)&t->p; /* all parameters as one array, */
    const nrm_real *d = (const nrm_real *)(const void *)&t->d;  /* and their gradients */
    size_t i;
    int rc = toy_forward(t, x, n, NRM_TRAIN, 1);
    memset(&t->d, 0, sizeof t->d);
    if (rc >= 0) rc = nrm_cross_entropy_forward(loss, t->prob, t->logits, labels, n, IN);
    if (rc >= 0) rc = nrm_cross_entropy_backward(t->prob, t->prob, labels, n, IN);
    if (rc >= 0)
        rc = nrm_linear_backward(dh, t->d.W2, t->d.b2, t->prob, t->h, t->p.W2, n, HIDDEN, IN);
    if (rc >= 0) rc = nrm_activation_backward(dh, dh, t->h, NRM_TANH, n * HIDDEN);
    if (rc >= 0 && t->variant == TOY_BATCH)
        rc = nrm_batchnorm_backward(dh, t->d.gamma, t->d.beta, dh, t->z, t->m, t->rstd, t->p.gamma,
                                    NRM_TRAIN, n, HIDDEN, 1);
    if (rc >= 0 && t->variant == TOY_PRINTED)
        printed_backward(dh, t->d.gamma, t->d.beta, dh, t->z, t->mean, t->spread, t->p.gamma, n,
                         HIDDEN);
    if (rc >= 0) rc = nrm_linear_backward(NULL, t->d.W1, NULL, dh, x, t->p.W1, n, IN, HIDDEN);
    for (i = 0; i < count && rc >= 0; i++) p[i] -= (nrm_real)0.1 * d[i];
    return rc;
}

/* Saturated and dead units and the logits' rms on all training points, batch statistics. */
static int toy_look(toy *t, lab_run *run, const char *when)
{
    const char *label;
    size_t off = 0, dead = 0, i, j;
    int rc = toy_forward(t, t->x, TOY_TRAIN, NRM_TRAIN, 0);
    for (j = 0; j < HIDDEN; j++) {
        size_t here = 0;
        for (i = 0; i < TOY_TRAIN; i++)
            here += is_off((double)t->h[i * HIDDEN + j], NRM_TANH) ? 1u : 0u;
        off += here;
        dead += here == TOY_TRAIN ? 1u : 0u;
    }
    for (i = 0; i < 3; i++) {
        const double value[3] = {(double)off / (TOY_TRAIN * HIDDEN), (double)dead / HIDDEN,
                                 training_rms(t->logits, (size_t)TOY_TRAIN * IN)};
        label = i == 0 ? "saturated" : i == 1 ? "dead" : "logits";
        lab_record_as(run, 0, value[i], "%s/%s", when, label);
    }
    return rc < 0 ? -1 : 0;
}

static int toy_test(toy *t, lab_run *run)
{
    const int *labels = t->labels + TOY_TRAIN;
    nrm_acc accuracy = 0;
    int rc = toy_forward(t, t->x + TOY_TRAIN * IN, TOY_TEST, NRM_INFER, 0);
    if (rc >= 0) rc = nrm_accuracy(&accuracy, t->logits, labels, TOY_TEST, IN);
    lab_record(run, "accuracy", 0, (double)accuracy);
    return rc < 0 ? -1 : 0;
}

static int run_toy(lab_run *run)
{
    const size_t steps = run->quick ? 100 : 5000, window = steps / 50;
    const size_t variant = run->arm == MAP_TOY_NONE      ? (size_t)TOY_NONE
                           : run->arm == MAP_TOY_PRINTED ? (size_t)TOY_PRINTED
                                                         : run->arm;
    const int map = run->arm >= MAP_TOY_NONE;
    toy *t = toy_make(variant, run->seed);
    nrm_real x[TOY_BATCH_SIZE * IN];
    int labels[TOY_BATCH_SIZE], rc = t ? toy_look(t, run, "start") : -1;
    nrm_acc loss = 0;
    double sum = 0;
    nrm_rng rng;
    size_t step, i;
    if (map && rc >= 0) record_map(run, "start1", t->h, HIDDEN, 32);
    nrm_rng_seed(&rng, run->seed, TRAINING_STREAM_ORDER);
    for (step = 1; step <= steps && rc >= 0; step++) {
        for (i = 0; i < TOY_BATCH_SIZE; i++) {
            const size_t from = nrm_rng_below(&rng, TOY_TRAIN);
            memcpy(x + i * IN, t->x + from * IN, IN * sizeof *x);
            labels[i] = t->labels[from];
        }
        rc = toy_step(t, x, labels, &loss);
        if (step == 1) lab_record(run, "first_loss", 0, (double)loss);
        sum += (double)loss / (double)window;
        if (step % window == 0) {
            lab_record(run, "loss", (double)step - 0.5 * (double)window, sum);
            sum = 0;
        }
    }
    if (rc >= 0) rc = toy_look(t, run, "end");
    if (map && rc >= 0) record_map(run, "end1", t->h, HIDDEN, 32);
    if (rc >= 0) rc = toy_test(t, run);
    free(t);
    return rc < 0;
}

static int run(lab_run *r)
{
    return r->arm >= TOY_NONE && r->arm != MAP_NONE && r->arm != MAP_BATCH ? run_toy(r)
                                                                           : run_mnist(r);
}

/* ---- what came out --------------------------------------------------------------------------- */

enum { GAIN_5 = 2, GAIN_20 = 3 };

/* P(|tanh z| > 0.97) for a standard normal z. */
static double normal_saturated(void)
{
    return erfc(atanh(SATURATED) / sqrt(2));
}

/* E[s]/sigma of the standard deviation s with divisor n-1 of n normal values:
   sqrt(2/(n-1)) G(n/2) / G((n-1)/2), the ratio of the gamma functions from n = 2 upwards. */
static double c4(size_t n)
{
    double ratio = 1 / sqrt(acos(-1.0));
    size_t k;
    for (k = 2; k < n; k++) ratio = ((double)k - 1) / 2 / ratio;
    return sqrt(2 / ((double)n - 1)) * ratio;
}

/* Mean over the layers of a run. */
static double over_layers(const lab_report *r, size_t arm, size_t s, const char *series)
{
    const lab_series y = lab_get(r, arm, s, series);
    double sum = 0;
    size_t i;
    for (i = 0; i < y.n; i++) sum += y.y[i] / (double)y.n;
    return y.n ? sum : (double)NAN;
}

static stats_summary layers_summary(const lab_report *r, size_t arm, const char *series)
{
    double value[LAB_SEEDS_MAX];
    size_t s;
    for (s = 0; s < lab_seeds(r, arm); s++) value[s] = over_layers(r, arm, s, series);
    return stats_describe(value, lab_seeds(r, arm));
}

/* stats_judge on differences a - b of means over the layers. */
static stats_finding compare_layers(const lab_report *r, size_t a, size_t b, const char *series,
                                    int sign, int magnitude_met)
{
    double x[LAB_SEEDS_MAX], y[LAB_SEEDS_MAX];
    size_t s;
    for (s = 0; s < lab_seeds(r, a); s++) {
        x[s] = over_layers(r, a, s, series);
        y[s] = over_layers(r, b, s, series);
    }
    return stats_judge_pairs(x, y, lab_seeds(r, a), sign, magnitude_met);
}

/* ---- checks and claims ----------------------------------------------------------------------- */

static void check_all(lab_report *r)
{
    const double printed = printed_against_library(), normal = normal_saturated();
    double rest = 1, away = 0, apart = 0, seen = 0;
    size_t i, s;
    for (i = 0; i < 1000; i++) rest *= 0.999;
    lab_check(r, printed < 1e-6, "the printed layer is the library's with γ·√((n−1)/n)",
              "forward and backward, largest difference %.1e, at most 1e-6", printed);
    lab_check(r, fabs(normal - 0.0364) < 5e-5, "P(|tanh z| > 0.97), z standard normal",
              "%.4f, expected 0.0364", normal);
    lab_check(r, fabs(c4(32) - 0.99197) < 5e-6, "mean of the standard deviation of 32 values",
              "%.5f σ, expected 0.99197 σ", c4(32));
    lab_check(r, fabs(rest - 0.3677) < 5e-5, "what 0.999 keeps of the start after 1000 steps",
              "%.4f, expected 0.3677", rest);
    for (s = 0; s < lab_seeds(r, TOY_NONE); s++) {
        const double printed_start = lab_at(r, TOY_PRINTED, s, "start/saturated", 0);
        const double usual = lab_at(r, TOY_BATCH, s, "start/saturated", 0);
        away = stats_larger(away, fabs(printed_start - normal));
        apart = stats_larger(apart, fabs(printed_start - usual));
    }
    lab_check(r, apart < 0.002 && away < 0.004,
              "both batch norms of the toy start as a normal distribution does",
              "saturated off by at most %.4f from %.4f, at most 0.004; the layers by %.4f", away,
              normal, apart);
    for (i = 1; i < GAINS; i++)
        for (s = 0; s < lab_seeds(r, tanh_arm(1, i, 1)); s++) {
            const double one = lab_at(r, tanh_arm(1, 0, 1), s, "start/saturated", 1);
            const double many = lab_at(r, tanh_arm(1, i, 1), s, "start/saturated", 1);
            seen = stats_larger(seen, fabs(many - one));
        }
    lab_check(r, seen < 2e-4, "batch norm does not see the gain",
              "saturated fraction, largest difference to gain 1: %.1e, at most 2e-4", seen);
}

/* Quick runs are done twice, with probes and without. */
static void check_probes(lab_report *r)
{
    unsigned long runs = 0, differ = 0;
    size_t arm, s;
    if (!lab_quick(r)) return;
    for (arm = 0; arm < TOY_NONE; arm++)
        for (s = 0; s < lab_seeds(r, arm); s++, runs++)
            differ += lab_at(r, arm, s, "same_bits", 0) > 0.5 ? 0u : 1u;
    lab_check(r, differ == 0, "probes leave the training as it was, in --quick runs",
              "%lu of %lu runs differ", differ, runs);
}

static void judge_start(lab_report *r)
{
    static const lab_claim standard = {
        "19a",
        "Batch norm hands tanh standardized inputs: at the start 3.6 % are saturated, whatever the "
        "gain",
        "a tutorial on batch norm in a tanh network; Karpathy's makemore, part 3",
        "\"zero mean and unit variance\"; for a normal distribution 0.0364 beyond 0.97",
        "up to the shape of a sum of many inputs: 0.0364 ± 0.015 at the start, mean over layers, "
        "each gain, both depths",
        "trial runs (1 seed): 0.04 at all gains",
        LAB_TRAINING,
        LAB_SETTING};
    static const lab_claim large = {
        "19b",
        "Without a norm, tanh saturates if the weights are large",
        "a tutorial on batch norm in a tanh network; Karpathy's makemore, part 3",
        "no numbers",
        "six layers, at the start: a larger fraction saturated without batch norm, at gains 5/3, 5 "
        "and 20",
        "trial runs (1 seed): 0.04, 0.20, 0.66, 0.91 at gains 1, 5/3, 5, 20 without, 0.04 with",
        LAB_TRAINING,
        LAB_SETTING};
    stats_finding v[3], part[2 * GAINS];
    double low = 1, high = 0;
    size_t i, s, d, parts = 0;
    for (d = 1; d <= 6; d += 5)
        for (i = 0; i < GAINS; i++) {
            const size_t arm = tanh_arm(d, i, 1), n = lab_seeds(r, arm);
            double off[LAB_SEEDS_MAX];
            for (s = 0; s < n; s++) {
                const double y = over_layers(r, arm, s, "start/saturated");
                low = stats_smaller(low, y);
                high = stats_larger(high, y);
                off[s] = fabs(y - 0.0364);
            }
            part[parts++] = stats_judge_limit(off, n, 0.015, -1);
        }
    lab_verdict(r, &standard, stats_together(part, parts), "", "%.4f to %.4f in all runs", low,
                high);
    for (i = 1; i < GAINS; i++)
        v[i - 1] = compare_layers(r, tanh_arm(6, i, 0), tanh_arm(6, i, 1), "start/saturated", 1, 1);
    lab_verdict(r, &large, stats_together(v, 3),
                lab_format(r, "with, at gain 1: %.3f",
                           layers_summary(r, tanh_arm(6, 0, 1), "start/saturated").mean),
                "without %.3f, %.3f, %.3f, %.3f at gains 1, 5/3, 5, 20; with %.3f at 20",
                layers_summary(r, tanh_arm(6, 0, 0), "start/saturated").mean,
                layers_summary(r, tanh_arm(6, 1, 0), "start/saturated").mean,
                layers_summary(r, tanh_arm(6, 2, 0), "start/saturated").mean,
                layers_summary(r, tanh_arm(6, 3, 0), "start/saturated").mean,
                layers_summary(r, tanh_arm(6, 3, 1), "start/saturated").mean);
}

static void judge_training(lab_report *r)
{
    static const lab_claim dead = {
        "19c",
        "Batch norm prevents dead units",
        "a tutorial on batch norm in a tanh network (\"prevents ... dead neurons\")",
        "no numbers",
        "gain 20, six layers, after 600 steps: more units saturated on all 1000 images without, "
        "none with",
        "trial runs (1 seed): 13 % dead in layer 1 without",
        LAB_TRAINING,
        LAB_SETTING};
    static const lab_claim better = {
        "19d",
        "... and so a network with large weights trains",
        "a tutorial on batch norm in a tanh network",
        "no numbers",
        "six layers, gains 5 and 20: higher test accuracy with batch norm",
        "trial runs (1 seed): 0.34 without, 0.85 with, at gain 20",
        LAB_TRAINING,
        LAB_SETTING};
    static const lab_claim shallow = {
        "19e",
        "Batch norm does not help a well-initialized network of one hidden layer",
        "ours, after the log of Karpathy's makemore, part 3",
        "training loss 2.0377 without, 2.0668 with",
        "one layer, gains 1 and 5/3: lower test accuracy with batch norm",
        "trial runs (1 seed): not better with one hidden layer; six layers, gain 1: 0.959 without, "
        "0.957 with",
        LAB_TRAINING,
        LAB_SETTING};
    const size_t none = tanh_arm(6, GAIN_20, 0), batch = tanh_arm(6, GAIN_20, 1);
    const double with = layers_summary(r, batch, "end/dead").max;
    stats_finding v[2];
    size_t i;
    lab_verdict(r, &dead, compare_layers(r, none, batch, "end/dead", 1, with <= 0),
                lab_format(r, "layer 6: %s without", lab_text(r, none, "end/dead", 6, 3)),
                "layer 1: %s without; mean of six layers: %s without, %s with",
                lab_text(r, none, "end/dead", 1, 3),
                lab_mean_sd(r, layers_summary(r, none, "end/dead"), 3),
                lab_mean_sd(r, layers_summary(r, batch, "end/dead"), 3));
    for (i = 0; i < 2; i++)
        v[i] = lab_compare(r, tanh_arm(6, GAIN_5 + i, 1), tanh_arm(6, GAIN_5 + i, 0), "accuracy", 0,
                           1, 1);
    lab_verdict(r, &better, stats_together(v, 2), "",
                "gain 5: %s without, %s with; gain 20: %s, %s",
                lab_text(r, tanh_arm(6, GAIN_5, 0), "accuracy", 0, 3),
                lab_text(r, tanh_arm(6, GAIN_5, 1), "accuracy", 0, 3),
                lab_text(r, none, "accuracy", 0, 3), lab_text(r, batch, "accuracy", 0, 3));
    for (i = 0; i < 2; i++)
        v[i] = lab_compare(r, tanh_arm(1, i, 1), tanh_arm(1, i, 0), "accuracy", 0, -1, 1);
    lab_verdict(r, &shallow, stats_together(v, 2), "test accuracy here, training loss there",
                "gain 1: %s without, %s with; gain 5/3: %s, %s",
                lab_text(r, tanh_arm(1, 0, 0), "accuracy", 0, 3),
                lab_text(r, tanh_arm(1, 0, 1), "accuracy", 0, 3),
                lab_text(r, tanh_arm(1, 1, 0), "accuracy", 0, 3),
                lab_text(r, tanh_arm(1, 1, 1), "accuracy", 0, 3));
}

/* The largest less the smallest test accuracy over the gains, six layers. */
static size_t accuracy_spread(const lab_report *r, size_t norm, double *spread)
{
    size_t s, i;
    for (s = 0; s < lab_seeds(r, tanh_arm(6, 0, norm)); s++) {
        double low = 1, high = 0;
        for (i = 0; i < GAINS; i++) {
            const double y = lab_at(r, tanh_arm(6, i, norm), s, "accuracy", 0);
            low = stats_smaller(low, y);
            high = stats_larger(high, y);
        }
        spread[s] = high - low;
    }
    return s;
}

static void judge_initialization(lab_report *r)
{
    static const lab_claim start = {
        "19f",
        "With batch norm the initialization matters less",
        "a tutorial on batch and layer norm (\"proper weight init not as important\")",
        "no numbers",
        "six layers: the test accuracy's range over the four gains is smaller with batch norm",
        "trial runs (1 seed): with gains 1 and 20 0.957 and 0.85 with, 0.959 and 0.34 without",
        LAB_TRAINING,
        LAB_SETTING};
    double none[LAB_SEEDS_MAX], batch[LAB_SEEDS_MAX];
    const size_t n = accuracy_spread(r, 0, none), m = accuracy_spread(r, 1, batch);
    lab_verdict(r, &start, stats_judge_pairs(batch, none, n < m ? n : m, -1, 1), "",
                "range %s without, %s with", lab_mean_sd(r, stats_describe(none, n), 3),
                lab_mean_sd(r, stats_describe(batch, m), 3));
}

/* The largest fraction of dead units, mean of the layers, at any look of the run. */
static double most_dead(const lab_report *r, size_t arm, size_t s)
{
    const lab_series dead = lab_get(r, arm, s, "dead");
    double most = dead.n ? 0 : (double)NAN;
    size_t i;
    for (i = 0; i < dead.n; i++) most = stats_larger(most, dead.y[i]);
    return most;
}

static void judge_relu(lab_report *r)
{
    static const lab_claim claim = {
        "19g",
        "ReLU units die in a few large steps, and batch norm prevents it",
        "a tutorial on batch norm in a tanh network (dead neurons), for ReLU",
        "no numbers",
        "learning rate 1: a larger fraction of units gives 0 for all 1000 images without batch "
        "norm, when its loss was last finite, than at any look with, and below 0.01 with",
        "none",
        LAB_TRAINING,
        LAB_SETTING};
    const stats_summary steps = lab_summary(r, RELU_NONE, "steps", 0);
    const double all = lab_summary(r, RELU_BATCH, "steps", 0).min;
    double none[LAB_SEEDS_MAX], batch[LAB_SEEDS_MAX];
    const size_t n = lab_seeds(r, RELU_BATCH);
    double most;
    size_t s;
    for (s = 0; s < n; s++) {
        none[s] = over_layers(r, RELU_NONE, s, "end/dead");
        batch[s] = most_dead(r, RELU_BATCH, s);
    }
    most = stats_describe(batch, n).max;
    lab_verdict(r, &claim, stats_judge_pairs(none, batch, n, 1, most < 0.01),
                steps.max < all ? "without a norm the loss is not finite after the steps given"
                                : "",
                "%s without, after %.0f to %.0f steps; at most %.4f with, in %.0f steps",
                lab_mean_sd(r, stats_describe(none, n), 3), steps.min, steps.max, most, all);
}

static void judge_sigmoid(lab_report *r)
{
    static const lab_claim linear = {
        "19h",
        "Normalizing the inputs of a sigmoid puts them into its linear part",
        "Ioffe & Szegedy 2015, section 3; a tutorial with a custom batch norm",
        "no numbers; a normal distribution has 0.683 in ±1 and leaves 1.6 % to a straight line",
        "as 19a: at the start, in each layer 0.683 ± 0.05 in ±1, at most 2.5 % of the "
        "output's "
        "variance not explained by a straight line",
        "none",
        LAB_TRAINING,
        LAB_SETTING};
    static const lab_claim single = {
        "19i",
        "... which makes the network equivalent to one of a single layer",
        "a tutorial with a custom batch norm",
        "no numbers",
        "γ = 1 and β = 0 held: test accuracy not above that of softmax regression",
        "none",
        LAB_TRAINING,
        LAB_NEWS};
    static const lab_claim out = {
        "19j",
        "γ and β let the inputs out of the linear part again",
        "Ioffe & Szegedy 2015, section 3; a tutorial with a custom batch norm",
        "Fig. 1c: inputs' 15th and 85th percentiles widen from ±1.1 to ±2.0",
        "what a straight line leaves unexplained, mean over layers: larger after training than at "
        "the start",
        "none",
        LAB_TRAINING,
        LAB_SETTING};
    double low = 1, high = 0, bent = 0, before[LAB_SEEDS_MAX], after[LAB_SEEDS_MAX];
    double off[LAB_SEEDS_MAX], most[LAB_SEEDS_MAX];
    stats_finding part[2];
    const size_t n = lab_seeds(r, SIGMOID_BATCH);
    size_t s, l;
    for (s = 0; s < n; s++) {
        off[s] = most[s] = 0;
        for (l = 1; l <= 3; l++) {
            const double near = lab_at(r, SIGMOID_BATCH, s, "start/near", (double)l);
            const double left = lab_at(r, SIGMOID_BATCH, s, "start/bent", (double)l);
            low = stats_smaller(low, near);
            high = stats_larger(high, near);
            bent = stats_larger(bent, left);
            off[s] = stats_larger(off[s], fabs(near - 0.683));
            most[s] = stats_larger(most[s], left);
        }
        before[s] = over_layers(r, SIGMOID_BATCH, s, "start/bent");
        after[s] = over_layers(r, SIGMOID_BATCH, s, "end/bent");
    }
    part[0] = stats_judge_limit(off, n, 0.05, -1);
    part[1] = stats_judge_limit(most, n, 0.025, -1);
    lab_verdict(
        r, &linear, stats_together(part, 2),
        lab_format(r, "without a norm a line leaves %.1f %%, %.2f %%, %.3f %% in layers 1, 2, 3",
                   100 * lab_mean(r, SIGMOID_NONE, "start/bent", 1),
                   100 * lab_mean(r, SIGMOID_NONE, "start/bent", 2),
                   100 * lab_mean(r, SIGMOID_NONE, "start/bent", 3)),
        "%.3f to %.3f in ±1; at most %.1f %% left by a line", low, high, 100 * bent);
    lab_verdict(r, &single, lab_compare(r, SIGMOID_HELD, SOFTMAX, "accuracy", 0, -1, 1), "",
                "γ, β held: %s; softmax regression: %s; lines instead of sigmoids: %s",
                lab_text(r, SIGMOID_HELD, "accuracy", 0, 3), lab_text(r, SOFTMAX, "accuracy", 0, 3),
                lab_text(r, SIGMOID_HELD, "lines", 0, 3));
    lab_verdict(r, &out, stats_judge_pairs(after, before, n, 1, 1), "",
                "%.2f %% at the start, %.2f %% after; with γ, β held %.2f %% after",
                100 * stats_mean(before, n), 100 * stats_mean(after, n),
                100 * layers_summary(r, SIGMOID_HELD, "end/bent").mean);
}

/* ---- pages ----------------------------------------------------------------------------------- */

/* The recorded cells of a map: white where saturated. */
static void unpack_map(const lab_report *r, size_t arm, const char *series, unsigned char *grey,
                       size_t cells)
{
    const lab_series rows = lab_get(r, arm, 0, series);
    size_t i;
    for (i = 0; i < cells; i++) {
        const size_t row = i / MAP_BITS;
        const unsigned long bits = row < rows.n ? (unsigned long)rows.y[row] : 0;
        grey[i] = bits >> i % MAP_BITS & 1 ? 255 : 0;
    }
}

static void map_row(lab_report *r, plot_figure *f, int row, size_t norm, const char *when)
{
    const size_t cells = MAP_UNITS * MAP_IMAGES, arm = tanh_arm(6, GAIN_20, norm);
    const char *captions[DEPTH_MAX];
    plot_panel *p = plot_add(f, row, 0, 1, 1);
    unsigned char *grey = (unsigned char *)malloc(DEPTH_MAX * cells);
    size_t l;
    if (!grey) return;
    plot_heading(p, lab_format(r, "%s, %s%s", norm ? "batch norm" : "no norm",
                               *when == 's' ? "at the start" : "after 600 steps",
                               row ? ""
                                   : " (units across, images down; white: |h| > 0.97; below: "
                                     "how much of the layer is white, dead units)"));
    for (l = 0; l < DEPTH_MAX; l++) {
        const double x = (double)(l + 1);
        const double saturated = lab_at(r, arm, 0, lab_format(r, "%s/saturated", when), x);
        const double dead = lab_at(r, arm, 0, lab_format(r, "%s/dead", when), x);
        const char *series = lab_format(r, "%s%lu", when, (unsigned long)l + 1);
        unpack_map(r, MAP_NONE + norm, series, grey + l * cells, cells);
        captions[l] = lab_format(r, "layer %lu: %.1f %%, %.1f %% dead", (unsigned long)l + 1,
                                 100 * saturated, 100 * dead);
    }
    plot_images(p, grey, DEPTH_MAX, MAP_UNITS, MAP_IMAGES, DEPTH_MAX, captions, 0);
    free(grey);
}

static int page_maps(lab_report *r)
{
    plot_figure *f =
        lab_figure(r, "Where tanh saturates: six layers, weights 20 times too large", 2000, 1860);
    lab_subtitle(r, f,
                 "784-200x6-10 tanh, W ~ N(0, 20²/in), SGD with learning rate 0.1, batch 128, 600 "
                 "steps; first 100 units and images",
                 1);
    plot_scale(f, 0.72);
    map_row(r, f, 0, 0, "start");
    map_row(r, f, 1, 0, "end");
    map_row(r, f, 2, 1, "start");
    map_row(r, f, 3, 1, "end");
    return lab_save(r, f, NULL);
}

static const char *const gain_names[GAINS] = {"1", "5/3", "5", "20"};

/* Value against gain: of `series` (mean over layers, or at x = 0). */
static void against_gain(lab_report *r, plot_panel *p, size_t depth, size_t norm,
                         const char *series, const char *label, plot_style style)
{
    double mean[GAINS], sd[GAINS];
    size_t i;
    for (i = 0; i < GAINS; i++) {
        const stats_summary s = layers_summary(r, tanh_arm(depth, i, norm), series);
        mean[i] = s.mean;
        sd[i] = s.n > 1 ? s.sd : 0;
    }
    plot_mean_band(p, label, gains, mean, sd, GAINS, style);
}

static void gain_panel(lab_report *r, plot_figure *f, int col, const char *series,
                       const char *heading, const char *axis)
{
    plot_panel *p = plot_add(f, 0, col, 1, 1);
    plot_heading(p, heading);
    plot_axis_x(p, "gain: weights are N(0, gain^2/in)", PLOT_LOG10);
    plot_axis_y(p, axis, PLOT_LINEAR);
    plot_ticks_x(p, gains, gain_names, GAINS);
    plot_grid(p, PLOT_GRID_Y);
    plot_range_x(p, 0.85, 24);
    plot_range_y(p, strcmp(series, "accuracy") == 0 ? 0.2 : -0.02, 1.02);
    against_gain(r, p, 6, 0, series, "no norm, 6 layers",
                 plot_with_marker(lab_style("none"), PLOT_CIRCLE));
    against_gain(r, p, 1, 0, series, "no norm, 1 layer",
                 plot_with_marker(lab_style("none"), PLOT_RING));
    against_gain(r, p, 6, 1, series, "batch norm, 6 layers",
                 plot_with_marker(lab_style("batch"), PLOT_CIRCLE));
    against_gain(r, p, 1, 1, series, "batch norm, 1 layer",
                 plot_with_marker(lab_style("batch"), PLOT_RING));
    if (strcmp(series, "accuracy") == 0) return;
    plot_hline(p, normal_saturated(), NULL, plot_thin(PLOT_INK));
    plot_text(p, 9, 0.085, "N(0, 1): 0.0364", PLOT_CENTER, PLOT_INK);
}

static void steps_panel(lab_report *r, plot_figure *f)
{
    static const double ticks[4] = {0, 200, 400, 600};
    static const char *const names[4] = {"0", "200", "400", "600"};
    plot_panel *p = plot_add(f, 0, 1, 1, 1);
    size_t i;
    plot_heading(p, "Saturated during training, 6 layers");
    plot_axis_x(p, "step", PLOT_LINEAR);
    plot_axis_y(p, "fraction saturated", PLOT_LINEAR);
    plot_grid(p, PLOT_GRID_Y);
    plot_range_x(p, 0, lab_quick(r) ? 6 : 810);
    plot_range_y(p, -0.06, 1.02);
    if (!lab_quick(r)) plot_ticks_x(p, ticks, names, 4);
    plot_legend(p, PLOT_LEGEND_NONE);
    for (i = 0; i < GAINS; i++) {
        const size_t arm = tanh_arm(6, i, 0);
        lab_plot(r, p, arm, "saturated", "", lab_style("none"));
        plot_text(p, lab_quick(r) ? 5 : 612,
                  lab_mean(r, arm, "saturated", LAB_LAST) - (i ? 0 : 0.045),
                  lab_format(r, "gain %s", gain_names[i]), PLOT_LEFT, PLOT_VERMILLION);
    }
    lab_plot(r, p, tanh_arm(6, GAIN_20, 1), "saturated", "", lab_style("batch"));
    plot_text(p, lab_quick(r) ? 5 : 612, 0.06, "batch norm, 20", PLOT_LEFT, PLOT_BLUE);
}

static void layers_panel(lab_report *r, plot_figure *f, int col, const char *series,
                         const char *heading, const char *axis, int scale)
{
    static const int dashes[GAINS] = {PLOT_DOTTED, PLOT_DASHDOT, PLOT_DASHED, PLOT_SOLID};
    static const int marks[GAINS] = {PLOT_RING, PLOT_DIAMOND, PLOT_TRIANGLE, PLOT_CIRCLE};
    plot_panel *p = plot_add(f, 1, col, 1, 1);
    size_t i, norm;
    plot_heading(p, heading);
    plot_axis_x(p, "hidden layer", PLOT_LINEAR);
    plot_axis_y(p, axis, scale);
    plot_grid(p, PLOT_GRID_Y);
    plot_range_x(p, 0.7, 6.3);
    if (strcmp(series, "start/update") == 0) plot_range_y(p, 1e-6, 0.1);
    if (strcmp(series, "start/gradient") == 0) plot_range_y(p, 1e-3, 100);
    if (scale == PLOT_LINEAR && !lab_quick(r)) plot_range_y(p, -0.005, 0.3);
    for (norm = 0; norm < 2; norm++)
        for (i = 0; i < GAINS; i++) {
            plot_style style =
                plot_with_marker(plot_solid(norm ? PLOT_BLUE : PLOT_VERMILLION), marks[i]);
            const int skip = scale == PLOT_LINEAR ? i < GAIN_5 : norm && i % 3;
            if (skip || (norm && strcmp(series, "start/gradient") == 0 && i)) continue;
            style.dash = dashes[i];
            lab_plot(r, p, tanh_arm(6, i, norm), series,
                     lab_format(r, "%s, gain %s", norm ? "batch norm" : "no norm",
                                norm && strcmp(series, "start/gradient") == 0 ? "1 to 20"
                                                                              : gain_names[i]),
                     style);
        }
}

static int page_numbers(lab_report *r)
{
    plot_figure *f = lab_figure(
        r, "Saturation, dead units, gradients and accuracy of tanh networks", 1900, 1560);
    plot_scale(f, 0.7);
    plot_letters(f);
    gain_panel(r, f, 0, "start/saturated", "Saturated at the start", "fraction saturated");
    steps_panel(r, f);
    gain_panel(r, f, 2, "accuracy", "Test accuracy after 600 steps", "accuracy");
    layers_panel(r, f, 0, "end/dead", "Dead units after 600 steps", "fraction of units",
                 PLOT_LINEAR);
    layers_panel(r, f, 1, "start/gradient", "Gradient at the start", "rms ∂L_i/∂h", PLOT_LOG10);
    layers_panel(r, f, 2, "start/update", "First step of the weights, relative",
                 "lr · rms ∂L/∂W / rms W", PLOT_LOG10);
    return lab_save(r, f, "numbers");
}

static void relu_panel(lab_report *r, plot_figure *f)
{
    static const int dashes[RATES] = {PLOT_SOLID, PLOT_DASHED, PLOT_DOTTED};
    static const char *const names[RATES] = {"1", "0.3", "0.1"};
    plot_panel *p = plot_add(f, 0, 0, 1, 1);
    size_t i, norm, s;
    double most = 0;
    plot_heading(p, "784-200x6-10 ReLU: dead units");
    plot_axis_x(p, "step", PLOT_LINEAR);
    plot_axis_y(p, "fraction of units, mean of layers", PLOT_LINEAR);
    plot_grid(p, PLOT_GRID_Y);
    for (norm = 0; norm < 2; norm++)
        for (i = 0; i < RATES; i++) {
            plot_style style = plot_solid(norm ? PLOT_BLUE : PLOT_VERMILLION);
            const size_t arm = RELU_NONE + RULES * i + norm;
            style.dash = dashes[i];
            if (norm || i == 2)
                lab_plot(r, p, arm, "dead",
                         lab_format(r, "%s, lr %s", norm ? "batch norm" : "no norm", names[i]),
                         style);
            else /* some end early */
                lab_plot_seeds(r, p, arm, "dead",
                               lab_format(r, "no norm, lr %s, each seed", names[i]),
                               plot_with_marker(style, i ? PLOT_RING : PLOT_CROSS));
        }
    for (i = 0; i < RATES; i++) /* their lines lie on the axis */
        for (s = 0; s < lab_seeds(r, RELU_BATCH + RULES * i); s++)
            most = stats_larger(most, most_dead(r, RELU_BATCH + RULES * i, s));
    plot_text_in(p, 0.98, 0.4, lab_format(r, "with batch norm: %.3f at most", most), PLOT_RIGHT,
                 PLOT_BLUE);
}

/* The function, the inputs, the line: the drawing of the claim, to scale. */
static void regime_panel(plot_figure *f)
{
    enum { POINTS = 121 };
    double z[POINTS], sigmoid[POINTS], line[POINTS], density[POINTS], zero[POINTS];
    plot_panel *p = plot_add(f, 0, 1, 1, 1);
    plot_style shade = plot_solid(PLOT_BLUE);
    size_t i;
    shade.alpha = 0.18;
    for (i = 0; i < POINTS; i++) {
        z[i] = -3 + 0.05 * (double)i;
        sigmoid[i] = 1 / (1 + exp(-z[i]));
        line[i] = 0.5 + 0.20662 * z[i];
        density[i] = exp(-0.5 * z[i] * z[i]) / sqrt(2 * acos(-1.0));
        zero[i] = 0;
    }
    plot_heading(p, "A normal input, and sigmoid");
    plot_axis_x(p, "input z", PLOT_LINEAR);
    plot_axis_y(p, "output, density", PLOT_LINEAR);
    plot_range_y(p, -0.2, 1.55);
    plot_band(p, "density of z ~ N(0, 1)", z, zero, density, POINTS, shade);
    plot_line(p, "sigmoid", z, sigmoid, POINTS, plot_solid(PLOT_INK));
    plot_line(p, "best line for these z", z, line, POINTS, plot_dashed(PLOT_VERMILLION));
    plot_vline(p, -1, NULL, plot_thin(PLOT_INK));
    plot_vline(p, 1, NULL, plot_thin(PLOT_INK));
    plot_legend(p, PLOT_LEGEND_TOP_LEFT);
    plot_text_in(p, 0.98, 0.05, "68.3 % in ±1; the line explains 98.4 %", PLOT_RIGHT, PLOT_INK);
}

static void bend_panel(lab_report *r, plot_figure *f)
{
    static const char *const names[3] = {"layer 1", "layer 2", "layer 3"};
    static const size_t which[3] = {SIGMOID_NONE, SIGMOID_BATCH, SIGMOID_HELD};
    static const char *const labels[3] = {"no norm", "batch norm", "γ = 1, β = 0 held"};
    static const plot_color colors[3] = {PLOT_VERMILLION, PLOT_BLUE, PLOT_SKY};
    double at[3] = {1, 2, 3};
    plot_panel *p = plot_add(f, 0, 2, 1, 1);
    size_t i, when;
    plot_heading(p, "784-100x3-10 sigmoid: output no line explains");
    plot_axis_x(p, "hidden layer", PLOT_LINEAR);
    plot_axis_y(p, "part of its variance", PLOT_LOG10);
    plot_range_y(p, 1e-5, 10);
    plot_ticks_x(p, at, names, 3);
    plot_axis_x(p, "", PLOT_LINEAR);
    plot_range_x(p, 0.8, 3.2);
    plot_grid(p, PLOT_GRID_Y);
    for (i = 0; i < 3; i++)
        for (when = 0; when < 2; when++) {
            plot_style style =
                plot_with_marker(plot_solid(colors[i]), when ? PLOT_CIRCLE : PLOT_RING);
            style.dash = when ? PLOT_SOLID : PLOT_DOTTED;
            if (!when && which[i] == SIGMOID_HELD) continue; /* as with batch norm */
            lab_plot(r, p, which[i], when ? "end/bent" : "start/bent",
                     lab_format(r, "%s, %s", labels[i], when ? "trained" : "start"), style);
        }
    plot_hline(p, 0.0158, NULL, plot_thin(PLOT_INK)); /* of a normal input */
}

static void lines_panel(lab_report *r, plot_figure *f)
{
    static const char *const names[4] = {"no norm", "batch norm", "γ, β held", "softmax"};
    double y[2][4], sd[2][4];
    plot_panel *p = plot_add(f, 1, 0, 1, 1);
    size_t i;
    for (i = 0; i < 4; i++) {
        stats_summary s = lab_summary(r, SIGMOID_NONE + i, "accuracy", 0);
        y[0][i] = 100 * (1 - s.mean);
        sd[0][i] = s.n > 1 ? 100 * s.sd : 0;
        s = lab_summary(r, SIGMOID_NONE + i, "lines", 0);
        y[1][i] = 100 * (1 - s.mean);
        sd[1][i] = s.n > 1 ? 100 * s.sd : 0;
    }
    plot_heading(p, "784-100x3-10 sigmoid: is it a linear network?");
    plot_axis_y(p, "test error, %", PLOT_LINEAR);
    plot_grid(p, PLOT_GRID_Y);
    plot_categories(p, names, 4);
    plot_bar_values(p, 1);
    plot_bars(p, "as trained", y[0], sd[0], 4, plot_solid(PLOT_BLUE));
    plot_bars(p, "with best lines for sigmoids", y[1], sd[1], 4, plot_solid(PLOT_ORANGE));
    plot_legend(p, PLOT_LEGEND_ABOVE);
}

static void toy_loss_panel(lab_report *r, plot_figure *f)
{
    plot_style printed = plot_dotted(PLOT_INK);
    plot_panel *p = plot_add(f, 1, 1, 1, 1);
    plot_heading(p, "5-100-5 tanh network as printed");
    plot_axis_x(p, "step", PLOT_LINEAR);
    plot_axis_y(p, "training loss, mean of 100 steps", PLOT_LOG10);
    plot_range_y(p, 0.01, 10);
    plot_grid(p, PLOT_GRID_Y);
    lab_plot(r, p, TOY_NONE, "loss", NULL, lab_style("none"));
    lab_plot(r, p, TOY_BATCH, "loss", NULL, lab_style("batch"));
    lab_plot(r, p, TOY_PRINTED, "loss", NULL, printed);
    plot_hline(p, log(5), "log 5", plot_thin(PLOT_INK));
}

static void toy_map_panel(lab_report *r, plot_figure *f)
{
    const size_t cells = MAP_UNITS * 32;
    unsigned char *grey = (unsigned char *)malloc(2 * cells);
    const char *captions[2];
    plot_panel *p = plot_add(f, 1, 2, 1, 1);
    size_t i;
    if (!grey) return;
    plot_heading(p, "5-100-5 at the start: units across, points down");
    for (i = 0; i < 2; i++) {
        const size_t arm = MAP_TOY_NONE + i;
        unpack_map(r, arm, "start1", grey + i * cells, cells);
        captions[i] =
            lab_format(r, "%s: %.1f %% saturated", i ? "batch norm as printed" : "no norm",
                       100 * lab_at(r, arm, 0, "start/saturated", 0));
    }
    plot_images(p, grey, 2, MAP_UNITS, 32, 1, captions, 0);
    free(grey);
}

static int page_others(lab_report *r)
{
    plot_figure *f = lab_figure(
        r, "Dead ReLU units, sigmoid's linear part, and a network as printed", 1900, 1560);
    lab_subtitle(r, f,
                 "SGD. ReLU: W ~ N(0, 2/in); sigmoid: Glorot's uniform W, learning rate 0.5, 1200 "
                 "steps; 5-100-5: W ~ N(0, 1), points of our own",
                 lab_seeds(r, 0));
    plot_scale(f, 0.7);
    plot_letters(f);
    relu_panel(r, f);
    regime_panel(f);
    bend_panel(r, f);
    lines_panel(r, f);
    toy_loss_panel(r, f);
    toy_map_panel(r, f);
    return lab_save(r, f, "others");
}

static void print_toy(lab_report *r)
{
    size_t arm;
    for (arm = TOY_NONE; arm <= TOY_PRINTED; arm++)
        printf("5-100-5, %s: first loss %s, logits' rms %s, test accuracy %s\n", arms[arm].name,
               lab_text(r, arm, "first_loss", 0, 2), lab_text(r, arm, "start/logits", 0, 2),
               lab_text(r, arm, "accuracy", 0, 3));
}

static int report(lab_report *r)
{
    check_all(r);
    check_probes(r);
    judge_start(r);
    judge_training(r);
    judge_initialization(r);
    judge_relu(r);
    judge_sigmoid(r);
    print_toy(r);
    return page_maps(r) || page_numbers(r) || page_others(r) ? -1 : 0;
}

int main(int argc, char **argv)
{
    static const lab_program program = {
        "19_saturation",
        NRM_VERSION,
        "Does batch norm keep tanh out of saturation, and units from dying?",
        "784-200x6-10 and 784-200-10 tanh, W ~ N(0, gain²/in), SGD with learning rate 0.1, batch "
        "128, 600 steps",
        1,
        LAB_USES_DATA,
        arms,
        ARMS,
        prepare,
        run,
        report};
    return lab_main(&program, argc, argv);
}
