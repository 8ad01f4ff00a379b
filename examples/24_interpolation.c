/* 24_interpolation: what lies between the solutions that different optimizers find?

   A 784-64-64-10 network with ReLU is trained for three epochs (batch 128, pixels with mean 0 and
   variance 1, W ~ U(±sqrt(6/(in+out)))) by four optimizers, from the same start and on the same
   batches:

       SGD        learning rate 0.1
       momentum   0.9, learning rate 0.01
       RMSprop    learning rate 0.001, v kept by 0.9, 1e-8 added to its root
       Adam       learning rate 0.001, 0.9, 0.999, 1e-8

   Between each two solutions A and B the loss and the error on the first 5000 training images are
   taken at (1-a) A + a B, all parameters alike, at 29 points from a = -0.2 to 1.2; and between each
   three of them on a triangle of 21 points a side. Batch norm uses the statistics of these 5000
   images at every point. Two pairs more tell how much of it is due to the optimizer: SGD twice, the
   second time with other batches, or from another start.

   The barrier of a pair is the largest loss at 0 <= a <= 1, less that of the worse end. The claims;
   what counts as reproduced was written down before the run:

       24a  a barrier separates the solutions of different optimizers: without norm it is above 0
            in at least 4 of 5 seeds, mean beyond 2 standard errors, for each of the six pairs
            (partly: for some)
       24b  the same with batch norm
       24c  with batch norm the curves are more alike from start to start: their standard deviation
            over seeds, divided by their mean, averaged over 0 <= a <= 1, is smaller than without in
            at least 5 of the 6 pairs, mean difference beyond 2 standard errors
       24d  from one start the optimizers end in different places: |A-B| is more than half of the
            mean distance from the start, for each of the six pairs (as in 24a), both networks
       24e  the barrier is that of the optimizers: the mean barrier of the six pairs is above that of
            SGD twice with other batches, without norm
       24f  the same with batch norm

   Named before the run, to explain 24b: the curve between A and B after every hidden unit's weights
   in B were scaled to the length that they have in A, which does not change what B computes.
   Four pages of curves and triangles; the distance of points says nothing about what was between. */
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"
#define TRAINING_IMPLEMENTATION
#include "training.h"

#include "lab.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HIDDEN = 2, WIDTH = 64, BATCH = 128, EPOCHS = 3, IMAGES = 5000 };
enum { POINTS = 29, SIDE = 21 };
enum { OTHER_SEED = 1000 }; /* of the controls: added to the seed */

/* ---- arms, optimizers, pairs ----------------------------------------------------------------- */

enum { NONE, BATCH_NORM, TRIANGLE_NONE, TRIANGLE_BATCH, ARMS };

static const lab_arm arms[ARMS] = {{"none", "no norm", 9, 0},
                                   {"batch", "batch norm", 12, 0},
                                   {"triangle_none", "triangles, no norm", 15, 1},
                                   {"triangle_batch", "triangles, batch norm", 20, 1}};

enum { SGD, MOMENTUM, RMSPROP, ADAM, OTHER_BATCHES, OTHER_START, SOLUTIONS, OPTIMIZERS = 4 };

static const char *const solution_name[SOLUTIONS] = {
    "SGD", "momentum", "RMSprop", "Adam", "SGD, other batches", "SGD, other start"};

typedef struct pair {
    const char *id;
    size_t a, b;
} pair;

enum { PAIRS = 8, OF_OPTIMIZERS = 6 }; /* the last two are the controls */

static const pair pairs[PAIRS] = {{"sgd-momentum", SGD, MOMENTUM},
                                  {"sgd-rmsprop", SGD, RMSPROP},
                                  {"sgd-adam", SGD, ADAM},
                                  {"momentum-rmsprop", MOMENTUM, RMSPROP},
                                  {"momentum-adam", MOMENTUM, ADAM},
                                  {"rmsprop-adam", RMSPROP, ADAM},
                                  {"sgd-batches", SGD, OTHER_BATCHES},
                                  {"sgd-start", SGD, OTHER_START}};

typedef struct triple {
    const char *id;
    size_t corner[3];
} triple;

enum { TRIPLES = 4 };

static const triple triples[TRIPLES] = {{"sgd-momentum-rmsprop", {SGD, MOMENTUM, RMSPROP}},
                                        {"sgd-momentum-adam", {SGD, MOMENTUM, ADAM}},
                                        {"sgd-rmsprop-adam", {SGD, RMSPROP, ADAM}},
                                        {"momentum-rmsprop-adam", {MOMENTUM, RMSPROP, ADAM}}};

static training_set train, test; /* made before the first run, shared by all */

static int prepare(const dataset *data, int quick)
{
    (void)quick;
    if (training_set_make(&train, data->train_images, data->train_labels, data->train_n,
                          DATASET_PIXELS, DATASET_STD) ||
        training_set_make(&test, data->test_images, data->test_labels, data->test_n, DATASET_PIXELS,
                          DATASET_STD)) {
        fprintf(stderr, "out of memory\n");
        return -1;
    }
    return 0;
}

/* ---- training -------------------------------------------------------------------------------- */

static nrm_mlp *make_net(int norm, size_t solution, uint64_t seed, size_t max_batch, void **block)
{
    nrm_mlp_layer layer[HIDDEN + 1];
    nrm_mlp_spec spec = nrm_mlp_defaults();
    size_t l;
    memset(layer, 0, sizeof layer);
    for (l = 0; l < HIDDEN; l++) {
        layer[l].width = WIDTH;
        layer[l].activation = NRM_RELU;
        layer[l].norm = norm;
        layer[l].bias = norm == NRM_NO_NORM;
    }
    layer[l].width = DATASET_CLASSES;
    layer[l].bias = 1;
    spec.inputs = DATASET_PIXELS;
    spec.layers = HIDDEN + 1;
    spec.layer = layer;
    spec.max_batch = max_batch;
    spec.seed = seed;
    spec.init = NRM_INIT_XAVIER;
    spec.optimizer = solution == ADAM ? NRM_ADAM : NRM_SGD;
    spec.heavy_ball = (nrm_real)(solution == MOMENTUM ? 0.9 : 0);
    spec.lr = (nrm_real)(solution == MOMENTUM                      ? 0.01
                         : solution == RMSPROP || solution == ADAM ? 0.001
                                                                   : 0.1);
    return training_net(&spec, block);
}

/* RMSprop: a step against the gradient, divided by the root of its running mean square. */
static void rmsprop_step(nrm_mlp *net, nrm_real *v)
{
    const double keep = 0.9, eps = 1e-8, lr = (double)net->spec.lr;
    size_t i;
    for (i = 0; i < net->n_params; i++) {
        const double g = (double)net->grads[i];
        v[i] = (nrm_real)(keep * (double)v[i] + (1 - keep) * g * g);
        net->params[i] -= (nrm_real)(lr * g / (sqrt((double)v[i]) + eps));
    }
}

static int train_steps(nrm_mlp *net, size_t solution, uint64_t order_seed, size_t steps)
{
    nrm_real *v = (nrm_real *)calloc(net->n_params, sizeof *v);
    training_order order;
    size_t step = 0;
    int rc = NRM_OK;
    if (!v || training_order_start(&order, train.n, BATCH, DATASET_PIXELS, order_seed)) {
        free(v);
        return -1;
    }
    while (step < steps && rc == NRM_OK) {
        if (training_next(&order, &train) == 0) continue; /* the end of an epoch */
        step++;
        if (solution != RMSPROP) {
            rc = nrm_mlp_train_step(net, NULL, order.x, order.labels, order.count);
            continue;
        }
        rc = nrm_mlp_gradient(net, NULL, order.x, order.labels, order.count, NRM_TRAIN);
        if (rc == NRM_OK) rmsprop_step(net, v);
    }
    if (rc != NRM_OK) fprintf(stderr, "training: %s\n", nrm_strerror(rc));
    training_order_free(&order);
    free(v);
    return rc == NRM_OK ? 0 : -1;
}

/* ---- between solutions ----------------------------------------------------------------------- */

typedef struct solutions {
    size_t n;                        /* parameters          */
    nrm_real *start, *at[SOLUTIONS]; /* [n] each            */
    nrm_mlp *net;                    /* to evaluate with    */
    void *block;
    size_t images;
} solutions;

static void free_solutions(solutions *s)
{
    free(s->start);
    free(s->block);
}

/* Loss and error at the parameters of s->net, batch norm with the statistics of these images. */
static int evaluate(solutions *s, double *loss, double *error)
{
    nrm_acc value, accuracy;
    int rc = nrm_mlp_forward(s->net, train.x, s->images, NRM_TRAIN);
    if (rc >= 0)
        rc = nrm_cross_entropy_forward(&value, NULL, s->net->logits, train.labels, s->images,
                                       DATASET_CLASSES);
    if (rc >= 0)
        rc = nrm_accuracy(&accuracy, s->net->logits, train.labels, s->images, DATASET_CLASSES);
    if (rc < 0) return -1;
    *loss = (double)value;
    *error = 1 - (double)accuracy;
    return 0;
}

static int make_solutions(solutions *s, lab_run *run, int norm)
{
    const size_t steps = run->quick ? 8 : EPOCHS * training_steps(train.n, BATCH);
    size_t k;
    void *block;
    memset(s, 0, sizeof *s);
    s->images = run->quick ? 200 : IMAGES;
    s->net = make_net(norm, SGD, run->seed, s->images, &s->block);
    if (!s->net) return -1;
    s->n = s->net->n_params;
    s->start = (nrm_real *)malloc((SOLUTIONS + 1) * s->n * sizeof *s->start);
    if (!s->start) return -1;
    memcpy(s->start, s->net->params, s->n * sizeof *s->start);
    for (k = 0; k < SOLUTIONS; k++) {
        const uint64_t start = run->seed + (k == OTHER_START ? OTHER_SEED : 0);
        nrm_mlp *net = make_net(norm, k, start, run->quick ? 500 : 1000, &block);
        nrm_acc accuracy = 0;
        int failed =
            !net || train_steps(net, k, run->seed + (k == OTHER_BATCHES ? OTHER_SEED : 0), steps);
        s->at[k] = s->start + (k + 1) * s->n;
        if (!failed) memcpy(s->at[k], net->params, s->n * sizeof *s->start);
        if (!failed && norm) failed = nrm_mlp_reestimate(net, train.x, s->images) < 0;
        if (!failed) failed = nrm_mlp_eval(net, NULL, &accuracy, test.x, test.labels, test.n) < 0;
        lab_record(run, "test_error", (double)k, 1 - (double)accuracy);
        lab_progress(run, 0.5 * (double)(k + 1) / SOLUTIONS);
        free(block);
        if (failed) return -1;
    }
    return 0;
}

static double distance(const nrm_real *a, const nrm_real *b, size_t n)
{
    double sum = 0;
    size_t i;
    for (i = 0; i < n; i++) sum += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
    return sqrt(sum);
}

/* Along the line through a and b. */
static int walk(solutions *s, lab_run *run, const char *what, const char *id, const nrm_real *a,
                const nrm_real *b)
{
    char series[2][64];
    double loss, error;
    size_t k, i;
    (void)snprintf(series[0], sizeof series[0], "%sloss/%s", what, id);
    (void)snprintf(series[1], sizeof series[1], "%serror/%s", what, id);
    for (k = 0; k < POINTS; k++) {
        const double at = ((double)k - 4) / 20;
        for (i = 0; i < s->n; i++)
            s->net->params[i] = (nrm_real)((1 - at) * (double)a[i] + at * (double)b[i]);
        if (evaluate(s, &loss, &error)) return -1;
        lab_record(run, series[0], at, loss);
        if (!*what) lab_record(run, series[1], at, error);
    }
    return 0;
}

/* out = b with the weights into each hidden unit scaled to the length that they have in a. */
static void same_lengths(const solutions *s, nrm_real *out, const nrm_real *a, const nrm_real *b)
{
    size_t l, i, j;
    memcpy(out, b, s->n * sizeof *out);
    for (l = 0; l < HIDDEN; l++) {
        const nrm_mlp_state *state = &s->net->state[l];
        const size_t first = (size_t)(state->W - s->net->params);
        for (j = 0; j < WIDTH; j++) {
            double aa = 0, bb = 0;
            for (i = 0; i < state->in; i++) {
                const size_t at = first + i * WIDTH + j;
                aa += (double)a[at] * (double)a[at];
                bb += (double)b[at] * (double)b[at];
            }
            for (i = 0; i < state->in && bb > 0; i++)
                out[first + i * WIDTH + j] *= (nrm_real)sqrt(aa / bb);
        }
    }
}

static int run_pairs(solutions *s, lab_run *run, int norm)
{
    nrm_real *scaled = (nrm_real *)malloc(s->n * sizeof *scaled);
    size_t k;
    int failed = !scaled;
    for (k = 0; k < SOLUTIONS; k++)
        lab_record(run, "from_start", (double)k, distance(s->start, s->at[k], s->n));
    for (k = 0; k < PAIRS && !failed; k++) {
        const nrm_real *a = s->at[pairs[k].a], *b = s->at[pairs[k].b];
        lab_record(run, "apart", (double)k, distance(a, b, s->n));
        failed = walk(s, run, "", pairs[k].id, a, b);
        if (failed || !norm) continue;
        same_lengths(s, scaled, a, b);
        failed = walk(s, run, "scaled_", pairs[k].id, a, scaled);
        lab_progress(run, 0.5 + 0.5 * (double)(k + 1) / PAIRS);
    }
    free(scaled);
    return failed;
}

/* Row by row: i/20 of the second corner, j/20 of the third. x counts the points. */
static int run_triangles(solutions *s, lab_run *run)
{
    char series[64];
    double loss, error;
    size_t k, i, j, p, count;
    for (k = 0; k < TRIPLES; k++) {
        const nrm_real *a = s->at[triples[k].corner[0]], *b = s->at[triples[k].corner[1]];
        const nrm_real *c = s->at[triples[k].corner[2]];
        (void)snprintf(series, sizeof series, "loss/%s", triples[k].id);
        for (i = 0, count = 0; i < SIDE; i++)
            for (j = 0; i + j < SIDE; j++, count++) {
                const double u = (double)i / (SIDE - 1), v = (double)j / (SIDE - 1);
                for (p = 0; p < s->n; p++)
                    s->net->params[p] = (nrm_real)((1 - u - v) * (double)a[p] + u * (double)b[p] +
                                                   v * (double)c[p]);
                if (evaluate(s, &loss, &error)) return -1;
                lab_record(run, series, (double)count, loss);
            }
        lab_progress(run, 0.5 + 0.5 * (double)(k + 1) / TRIPLES);
    }
    return 0;
}

static int run(lab_run *r)
{
    const int norm =
        r->arm == BATCH_NORM || r->arm == TRIANGLE_BATCH ? NRM_BATCH_NORM : NRM_NO_NORM;
    solutions s;
    int failed = make_solutions(&s, r, norm);
    if (!failed) failed = r->arm >= TRIANGLE_NONE ? run_triangles(&s, r) : run_pairs(&s, r, norm);
    free_solutions(&s);
    return failed;
}

/* ---- what came out --------------------------------------------------------------------------- */

static int report(lab_report *r)
{
    (void)r;
    return 0;
}

int main(int argc, char **argv)
{
    static const lab_program program = {
        "24_interpolation",
        NRM_VERSION,
        "What lies between the solutions that different optimizers find?",
        "784-64-64-10 ReLU, three epochs of batch 128, from one start on the same batches; loss on "
        "5000 training images",
        1,
        LAB_USES_DATA,
        arms,
        ARMS,
        prepare,
        run,
        report};
    return lab_main(&program, argc, argv);
}
