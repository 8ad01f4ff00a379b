/* 30_recurrent_mnist: a recurrent network that reads MNIST row by row, with and without layer norm
   (README.md)

       a[t] = x[t]·Wx + h[t-1]·Wh,   h[t] = f(a[t] + b)  or  h[t] = f(γ·(a[t] - μ)/σ + b)

   Only Wh is scaled by ρ, so that the balance between state and input changes with it, also for
   layer norm. A run whose loss or gradient is not finite, or whose loss is above 1000 times the
   first, has diverged: it stops there, and is tested with the weights that it had. */
#include "lab/experiment.h"
#include "lab/draw.h"

enum { ROWS = 28, INPUTS = 28, UNITS = 100, CLASSES = 10, BATCH = 128, EPOCHS = 2 };
enum { LONG_STEPS = 500, LONG_BATCH = 16 };
enum { PLAIN, LAYER, NETS, BATCH_NET = NETS };
enum { TANH_SLOW, TANH_FAST, RELU, GROUPS }; /* activation and learning rate */
enum { SCALES = 5, BATCH_CELL = GROUPS * NETS * SCALES, ARMS };
enum { COUNTED = 100 };         /* batches that running statistics are made of */
enum { BEFORE = 0, AFTER = 1 }; /* the training: x of what is looked at then   */
#define EPS 1e-5

static const double scale[SCALES] = {0.5, 1, 1.5, 2.5, 4};

/* clang-format off */
#define ARM(id, s, rate) {id s rate, "ρ = " s, 7, 3}
#define ARM_SCALES(id, rate)                                                                       \
    ARM(id, "0.5", rate), ARM(id, "1", rate), ARM(id, "1.5", rate), ARM(id, "2.5", rate),          \
        ARM(id, "4", rate)
static const lab_arm arms[ARMS] = {
    ARM_SCALES("tanh_plain_", "_rate0.1"), ARM_SCALES("tanh_layer_", "_rate0.1"),
    ARM_SCALES("tanh_plain_", "_rate0.5"), ARM_SCALES("tanh_layer_", "_rate0.5"),
    ARM_SCALES("relu_plain_", "_rate0.1"), ARM_SCALES("relu_layer_", "_rate0.1"),
    {"tanh_batch_1_rate0.1", "batch norm, ρ = 1", 10, 3}};

/* The first of five, one for each scale. */
#define FIRST(group, net) ((size_t)(((group) * NETS + (net)) * SCALES))
/* clang-format on */

typedef struct cell {
    int group, net;
    double scale;
} cell;

static cell cell_of(size_t arm)
{
    if (arm == BATCH_CELL) return (cell){TANH_SLOW, BATCH_NET, 1};
    return (cell){(int)(arm / (NETS * SCALES)), (int)(arm / SCALES % NETS), scale[arm % SCALES]};
}

/* ---- the network ----------------------------------------------------------------------------- */

enum { STATE = BATCH * UNITS };

typedef struct weights { /* and their gradients: one array of numbers, part behind part */
    nrm_real Wx[INPUTS * UNITS], Wh[UNITS * UNITS], gamma[UNITS], beta[UNITS];
    nrm_real readout[UNITS * CLASSES], offset[CLASSES];
} weights;

enum { PARAMS = sizeof(weights) / sizeof(nrm_real) };

typedef struct network { /* weights, gradients, and all that a batch needs */
    cell is;
    nrm_rnn rnn;
    int mode;
    weights params, grads;
    nrm_real x[ROWS * BATCH * INPUTS];
    nrm_real h[(ROWS + 1) * STATE], dh[(ROWS + 1) * STATE];
    nrm_real a[ROWS * STATE], da[ROWS * STATE];
    nrm_acc mean[ROWS * BATCH], rstd[ROWS * BATCH];
    nrm_real logits[BATCH * CLASSES];
    nrm_acc loss;
} network;

/* All arms of a seed have the same draws, scaled. */
static void network_make(network *k, size_t arm, uint64_t seed)
{
    static const int norm_of[NETS + 1] = {NRM_NO_NORM, NRM_LAYER_NORM, NRM_BATCH_NORM};
    weights *w = &k->params;
    size_t i;
    memset(k, 0, sizeof *k);
    k->is = cell_of(arm);
    k->rnn = (nrm_rnn){.T = ROWS,
                       .in = INPUTS,
                       .H = UNITS,
                       .norm = norm_of[k->is.net],
                       .activation = k->is.group == RELU ? NRM_RELU : NRM_TANH,
                       .eps = (nrm_real)EPS,
                       .Wx = w->Wx,
                       .Wh = w->Wh,
                       .gamma = w->gamma,
                       .beta = w->beta};
    k->mode = NRM_TRAIN;
    draw_normals(w->Wx, INPUTS * UNITS, 1 / sqrt((double)INPUTS), seed, 20);
    draw_normals(w->Wh, UNITS * UNITS, k->is.scale / sqrt((double)UNITS), seed, 21);
    draw_normals(w->readout, UNITS * CLASSES, 1 / sqrt((double)UNITS), seed, 22);
    for (i = 0; i < UNITS; i++) w->gamma[i] = 1;
}

/* Images [n][28*28] as a sequence of rows [28][n][28]. */
static void to_rows(nrm_real *out, const nrm_real *image, size_t n)
{
    size_t t, i;
    for (t = 0; t < ROWS; t++)
        for (i = 0; i < n; i++)
            memcpy(out + (t * n + i) * INPUTS, image + i * DATASET_PIXELS + t * INPUTS,
                   INPUTS * sizeof *out);
}

static int forward(network *k, const nrm_real *image, size_t n)
{
    int rc;
    k->rnn.N = n;
    to_rows(k->x, image, n);
    memset(k->h, 0, n * UNITS * sizeof *k->h);
    rc = nrm_rnn_forward(k->h, k->a, k->mean, k->rstd, k->x, &k->rnn, k->mode);
    if (rc < 0) return rc;
    return nrm_linear_forward(k->logits, k->h + ROWS * n * UNITS, k->params.readout,
                              k->params.offset, n, UNITS, CLASSES);
}

/* Loss and gradients of a batch. Returns a status; what is not finite is seen in the numbers. */
static int gradient(network *k, const nrm_real *image, const int *labels, size_t n)
{
    weights *g = &k->grads;
    const nrm_rnn_grads to = {g->Wx, g->Wh, g->gamma, g->beta};
    const size_t last = ROWS * n * UNITS; /* state */
    int rc = forward(k, image, n);
    if (rc < 0) return rc;
    rc = nrm_cross_entropy_forward(&k->loss, k->logits, k->logits, labels, n, CLASSES);
    if (rc < 0) return rc;
    memset(g, 0, sizeof *g);
    memset(k->dh, 0, (ROWS + 1) * n * UNITS * sizeof *k->dh);
    (void)nrm_cross_entropy_backward(k->logits, k->logits, labels, n, CLASSES);
    (void)nrm_linear_backward(k->dh + last, g->readout, g->offset, k->logits, k->h + last,
                              k->params.readout, n, UNITS, CLASSES);
    rc = nrm_rnn_backward(k->dh, NULL, &to, k->da, k->h, k->a, k->mean, k->rstd, k->x, &k->rnn,
                          NRM_TRAIN);
    return rc == NRM_NONFINITE ? NRM_OK : rc;
}

/* ---- data, made once and seen by all runs ---------------------------------------------------- */

LAB_SETS(train_set, test_set, quick ? 256 : 0, quick ? 128 : 0, DATASET_STD);

/* nan after an error */
static double test_accuracy(network *k)
{
    double right = 0;
    size_t at;
    for (at = 0; at < test_set.n; at += BATCH) {
        const size_t n = test_set.n - at < BATCH ? test_set.n - at : BATCH;
        nrm_acc share = (nrm_acc)NAN;
        if (forward(k, test_set.x + at * DATASET_PIXELS, n) >= 0)
            (void)nrm_accuracy(&share, k->logits, test_set.labels + at, n, CLASSES);
        right += (double)share * (double)n;
    }
    return right / (double)test_set.n;
}

/* ---- looking at it --------------------------------------------------------------------------- */

/* How many states are beyond ±0.97. */
static double saturated(const network *k, size_t n)
{
    size_t i, count = 0;
    for (i = n * UNITS; i < (ROWS + 1) * n * UNITS; i++)
        count += k->h[i] > (nrm_real)0.97 || k->h[i] < (nrm_real)-0.97;
    return (double)count / (double)(ROWS * n * UNITS);
}

static void record(lab_run *r, const char *series, double x, double y)
{
    if (isfinite(y)) lab_record(r, series, x, y);
}

/* With tanh at the smaller rate: the first training images as a batch, at the start state by state.
   Of the network only the gradients change, which every batch writes anew. */
static int take_look(lab_run *r, network *k, int when)
{
    const size_t n = train_set.n < BATCH ? train_set.n : BATCH, state = n * UNITS;
    double first, last;
    size_t t;
    if (k->is.group != TANH_SLOW) return 0;
    if (gradient(k, train_set.x, train_set.labels, n)) return -1;
    first = training_log_length(k->dh + state, state);
    last = training_log_length(k->dh + ROWS * state, state);
    record(r, "probe_ratio", when, first - last);
    record(r, "probe_saturated", when, saturated(k, n));
    for (t = 1; t <= ROWS && when == BEFORE; t++) {
        record(r, "start_slope", (double)t, training_log_length(k->dh + t * state, state));
        if (t % 3 == 1) record(r, "start_rms", (double)t, training_rms(k->h + t * state, state));
    }
    return 0;
}

/* 500 steps of the cell from the states that the first images end in, without input or, with ReLU,
   with a row through the middle of the image: what does |h| do? It may leave the range of numbers,
   and then that is the end of it. */
static int long_run(lab_run *r, network *k)
{
    static const size_t noted[11] = {0, 1, 2, 5, 10, 20, 50, 100, 200, 300, LONG_STEPS};
    const size_t n = LONG_BATCH, state = n * UNITS, steps = r->quick ? 100 : LONG_STEPS;
    const size_t batch = train_set.n < BATCH ? train_set.n : BATCH;
    const int relu = k->is.group == RELU;
    nrm_real h[2 * LONG_BATCH * UNITS], a[LONG_BATCH * UNITS], x[LONG_BATCH * INPUTS];
    nrm_acc mean[LONG_BATCH], rstd[LONG_BATCH];
    nrm_rnn rnn = k->rnn;
    size_t t, i, next = 0;
    if (k->is.group == TANH_FAST || k->is.net == BATCH_NET) return 0;
    if (forward(k, train_set.x, batch) < 0) return -1;
    rnn.T = 1;
    rnn.N = n;
    memset(x, 0, sizeof x);
    for (i = 0; i < n && relu; i++)
        memcpy(x + i * INPUTS, train_set.x + i * DATASET_PIXELS + 14 * INPUTS, INPUTS * sizeof *x);
    memcpy(h, k->h + ROWS * batch * UNITS, state * sizeof *h);
    for (t = 0; t <= steps; t++) {
        const double size = training_log_length(h, state) - 0.5 * log10((double)state);
        if (t == noted[next]) {
            record(r, relu ? "start_constant" : "start_silent", (double)t, size);
            next++;
        }
        if (!(size < 36) || t == steps) break;
        if (nrm_rnn_forward(h, a, mean, rstd, x, &rnn, NRM_TRAIN) < 0) return -1;
        memcpy(h, h + state, state * sizeof *h);
    }
    return 0;
}

/* ---- a run ----------------------------------------------------------------------------------- */

/* Would a step not be finite, or has the loss grown far above the first? */
static int diverges(const network *k, double first)
{
    return !isfinite(k->loss) || (double)k->loss > 1e3 * first ||
           !isfinite(training_farthest((const nrm_real *)&k->grads, NULL, PARAMS));
}

/* With looks or without: the weights at the end are the same. */
static int train(lab_run *r, network *k, int looks)
{
    const double rate = k->is.group == TANH_FAST ? 0.5 : 0.1;
    const size_t epochs = k->is.group == RELU ? 1 : EPOCHS;
    const size_t steps = epochs * training_steps(train_set.n, BATCH);
    nrm_real *params = (nrm_real *)&k->params, *grads = (nrm_real *)&k->grads;
    training_order order;
    double first = 0;
    size_t step, i;
    int rc = looks ? take_look(r, k, BEFORE) : 0;
    if (training_order_start(&order, train_set.n, BATCH, DATASET_PIXELS, r->seed)) return -1;
    for (step = 0; step < steps && !rc; step++) {
        training_go_on(&order, &train_set, 1);
        rc = gradient(k, order.x, order.labels, order.count);
        if (step == 0) first = (double)k->loss;
        if (diverges(k, first)) {
            lab_record(r, "diverged", 0, (double)step);
            break;
        }
        for (i = 0; i < PARAMS; i++) params[i] -= (nrm_real)rate * grads[i];
        lab_progress(r, (double)step / (double)steps);
    }
    if (looks && !rc) lab_record(r, "test_accuracy", AFTER, test_accuracy(k));
    if (looks && !rc) rc = take_look(r, k, AFTER);
    training_order_free(&order);
    return rc;
}

/* ---- batch norm: statistics for inference ---------------------------------------------------- */

typedef struct statistics { /* of a step each; `shared`: the steps' are in one place */
    nrm_running step[ROWS];
    nrm_real mean[ROWS * UNITS], var[ROWS * UNITS];
} statistics;

/* Statistics of training images that are taken forward as in training; the weights stay. */
static int statistics_take(statistics *s, network *k, int shared)
{
    size_t t, i, b;
    int rc = NRM_OK;
    memset(s, 0, sizeof *s);
    for (i = 0; i < ROWS * UNITS; i++) s->var[i] = 1;
    for (t = 0; t < ROWS; t++) {
        const size_t at = shared ? 0 : t * UNITS;
        s->step[t] = (nrm_running){s->mean + at, s->var + at, .new_weight = (nrm_real)0.1,
                                   .cumulative = !shared};
    }
    k->rnn.running = s->step;
    for (b = 0; b < COUNTED && (b + 1) * BATCH <= train_set.n && rc >= 0; b++)
        rc = forward(k, train_set.x + b * BATCH * DATASET_PIXELS, BATCH);
    return rc < 0 ? -1 : 0;
}

/* Of all steps' numbers together, at every step: the mean, and the variance about it. */
static void statistics_pool(statistics *s)
{
    size_t t, i;
    for (i = 0; i < UNITS; i++) {
        double mean = 0, square = 0;
        for (t = 0; t < ROWS; t++) {
            const double m = (double)s->mean[t * UNITS + i];
            mean += m / ROWS;
            square += ((double)s->var[t * UNITS + i] + m * m) / ROWS;
        }
        for (t = 0; t < ROWS; t++) {
            s->mean[t * UNITS + i] = (nrm_real)mean;
            s->var[t * UNITS + i] = (nrm_real)(square - mean * mean);
        }
    }
}

/* With the statistics that are there now. */
static void statistics_test(lab_run *r, network *k, const char *series)
{
    k->mode = NRM_INFER;
    lab_record(r, series, 0, test_accuracy(k));
    k->mode = NRM_TRAIN;
}

static int test_statistics(lab_run *r, network *k)
{
    statistics s;
    size_t t, i;
    int failed;
    if (k->is.net != BATCH_NET) return 0;
    failed = statistics_take(&s, k, 0);
    statistics_test(r, k, "test_steps");
    for (t = 0; t < ROWS; t++) {
        double mean2 = 0, var = 0;
        for (i = 0; i < UNITS; i++) {
            mean2 += pow((double)s.mean[t * UNITS + i], 2) / UNITS;
            var += (double)s.var[t * UNITS + i] / UNITS;
        }
        lab_record(r, "step_mean2", (double)t + 1, mean2);
        lab_record(r, "step_variance", (double)t + 1, var);
    }
    statistics_pool(&s);
    statistics_test(r, k, "test_pooled");
    failed = statistics_take(&s, k, 1) || failed;
    statistics_test(r, k, "test_average");
    k->rnn.running = NULL;
    return failed;
}

static int run(lab_run *r)
{
    static network k, again;
    int failed;
    network_make(&k, r->arm, r->seed);
    failed = long_run(r, &k) || train(r, &k, 1) || test_statistics(r, &k);
    if (!failed && r->quick && k.is.group == TANH_SLOW) { /* once more without looking */
        network_make(&again, r->arm, r->seed);
        failed = train(r, &again, 0);
        lab_record(r, "same_bits", 0, memcmp(&k.params, &again.params, sizeof k.params) == 0);
    }
    return failed ? -1 : 0;
}

/* ---- claims ---------------------------------------------------------------------------------- */

/* How far a series at x is spread over the five scales, of which `arm` is the first; nan where one
   has no value. */
static double range(const lab_report *r, size_t arm, size_t seed, const char *series, double x)
{
    double low = HUGE_VAL, high = -HUGE_VAL;
    size_t i;
    for (i = arm; i < arm + SCALES; i++) {
        low = stats_smaller(low, lab_at(r, i, seed, series, x));
        high = stats_larger(high, lab_at(r, i, seed, series, x));
    }
    return high - low;
}

static double ratio_range(const lab_report *r, size_t arm, size_t seed)
{
    return range(r, arm, seed, "probe_ratio", BEFORE);
}

static double accuracy_range(const lab_report *r, size_t arm, size_t seed)
{
    return range(r, arm, seed, "test_accuracy", AFTER);
}

static double silent_range(const lab_report *r, size_t arm, size_t seed)
{
    return range(r, arm, seed, "start_silent", LAB_LAST);
}

static size_t diverged(const lab_report *r, size_t arm)
{
    size_t s, count = 0;
    for (s = 0; s < lab_seeds(r, arm); s++) count += lab_get(r, arm, s, "diverged").n > 0;
    return count;
}

static void judge_divergence(lab_report *r, const lab_claim *c)
{
    size_t of[NETS] = {0, 0}, runs = 0, arm;
    for (arm = 0; arm < BATCH_CELL; arm++) {
        const int net = cell_of(arm).net;
        of[net] += diverged(r, arm);
        runs += net == LAYER ? lab_seeds(r, arm) : 0;
    }
    lab_verdict(r, c, stats_holds(of[LAYER] == 0), "",
                "%zu of %zu runs with layer norm, %zu plain ones", of[LAYER], runs, of[PLAIN]);
}

/* The better of the two sets that serve all steps, seed by seed. */
static void judge_statistics(lab_report *r, const lab_claim *c)
{
    const lab_numbers own = lab_all(r, BATCH_CELL, "test_steps", 0);
    const lab_numbers average = lab_all(r, BATCH_CELL, "test_average", 0);
    const lab_numbers pooled = lab_all(r, BATCH_CELL, "test_pooled", 0);
    lab_numbers one = pooled;
    size_t s;
    for (s = 0; s < one.n; s++) one.of[s] = stats_larger(one.of[s], average.of[s]);
    lab_verdict(r, c, lab_less(one, own, lab_average(own) - lab_average(one) > 0.01),
                lab_format(r, "with those of the test batch %s",
                           lab_text(r, BATCH_CELL, "test_accuracy", AFTER, 3)),
                "%s with one for each; pooled %s, one running average %s", lab_pm(r, own, 3),
                lab_pm(r, pooled, 3), lab_pm(r, average, 3));
}

static const char ba[] = "Ba, Kiros & Hinton 2016, section 3.1";
static const char stable[] = "no numbers: \"much more stable hidden-to-hidden dynamics\"";
static const char tutorial[] = "a tutorial on batch and layer norm";
static const char helps[] = "no numbers: \"helps preventing exploding or vanishing gradients\"";
static const char ratio_pilot[] =
    "trial runs (1 seed): ratio from 9e-13 to 9e4 plain, 6e-10 to 1.9 with layer norm";
static const char accuracy_pilot[] =
    "trial runs (1 seed), rate 0.1/0.5, ρ = 1.5, 2.5, 4: plain 0.890/0.231, 0.794/0.096, "
    "0.248/0.144; layer norm 0.923/0.923, 0.921/0.928, 0.918/0.940";

#define RANGES(which)                                                                              \
    .test = LAB_LESS, .a = FIRST(TANH_SLOW, LAYER), .b = FIRST(TANH_SLOW, PLAIN),                  \
    .each = which##_range, .decimals = 1, .say = "range over ρ: #1 decades, plain #2"
#define END(which, s, ...) /* of log10(|dL/dh[1]|/|dL/dh[28]|) */                                  \
    .test = LAB_##which, .a = FIRST(TANH_SLOW, LAYER) + (s), .b = FIRST(TANH_SLOW, PLAIN) + (s),   \
    .series = "probe_ratio", .a_mean = {__VA_ARGS__}

/* clang-format off */
#define CELL(group, s) /* the test accuracy at the end */                                          \
    {LAB_MORE, FIRST(group, LAYER) + (s), FIRST(group, PLAIN) + (s), "test_accuracy", AFTER}
static const lab_claim claims[] = {
    {"30a", "With layer norm the scale of Wh matters less for gradients through time", ba, stable,
     "log10(|dL/dh[1]|/|dL/dh[28]|) at the start: range over ρ smaller, paired, and in the mean "
     "below the plain one / 1.5, else partly", ratio_pilot, RANGES(ratio), .times = 1.5},
    {"30b", "For large ρ the network with layer norm is the better one", tutorial,
     "no numbers: \"proper weight initialization is not as important\"",
     "test accuracy, tanh, ρ >= 1.5, both rates: higher in each of six cells, paired",
     accuracy_pilot, .say = "higher in #! of 6 cells",
     LAB_PARTS(CELL(TANH_SLOW, 2), CELL(TANH_SLOW, 3), CELL(TANH_SLOW, 4), CELL(TANH_FAST, 2),
               CELL(TANH_FAST, 3), CELL(TANH_FAST, 4)),
     .remark = "layer norm, plain at rate 0.1, then 0.5: #1[%.3f], #2[%.3f]; #3[%.3f], #4[%.3f]; "
     "#5[%.3f], #6[%.3f]; #7[%.3f], #8[%.3f]; #9[%.3f], #10[%.3f]; #11[%.3f], #12[%.3f]"},
    {"30c", "With layer norm no run diverges", ba, stable, "none of the runs, tanh and ReLU",
     "trial runs (1 seed): none; plain ReLU does for ρ >= 1.5", .judge = judge_divergence},
    {"30d", "Layer norm prevents vanishing gradients", tutorial, helps, "ρ = 0.5, start: "
     "|dL/dh[1]|/|dL/dh[28]| larger than plain, paired, and in the mean above 1e-3, else partly",
     "trial runs (1 seed): 6e-10 against 9e-13. Expected to fail",
     END(MORE, 0, -3, HUGE_VAL), .say = "#1[10^%.0e], plain #2[10^%.0e]"},
    {"30e", "Layer norm prevents exploding gradients", tutorial, helps, "ρ = 4, start: "
     "|dL/dh[1]|/|dL/dh[28]| smaller than plain, paired, and in the mean below 10, else partly",
     "trial runs (1 seed): 1.9 against 9e4",
     END(LESS, SCALES - 1, -HUGE_VAL, 1), .say = "#1[10^%.1f], plain #2[10^%.0e]"},
    {"30f", "With layer norm the initialisation of Wh matters less", tutorial,
     "no numbers: \"proper weight initialization is not as important\"",
     "range of the test accuracy over ρ, tanh: smaller at rate 0.1 and at 0.5, paired",
     accuracy_pilot, .decimals = 3, .say = "range #1, plain #2; at rate 0.5: #3, plain #4",
     LAB_PARTS({LAB_LESS, FIRST(TANH_SLOW, LAYER), FIRST(TANH_SLOW, PLAIN), .each = accuracy_range},
               {LAB_LESS, FIRST(TANH_FAST, LAYER), FIRST(TANH_FAST, PLAIN),
                .each = accuracy_range})},
    {"30g", "Layer norm makes the dynamics stable", ba, stable, "log10 of the rms of h after 500 "
     "steps without input, start, tanh: range over ρ smaller, paired", "none", RANGES(silent),
     .remark = "plain at ρ = 0.5 dies out below the range of float: its range is a lower bound"},
    {"30h", "Batch norm in a recurrent layer needs statistics of each step",
     "Ba, Kiros & Hinton 2016, section 3.1; a tutorial on batch and layer norm",
     "no numbers: \"requires computing and storing batch statistics for each time step\"",
     "test accuracy, tanh, ρ = 1, with one set for all steps (the better of two) lower than with "
     "one for each, paired, and by more than a point in the mean, else partly; added later, before "
     "these runs", "none", .judge = judge_statistics}};
/* clang-format on */

/* ---- figures --------------------------------------------------------------------------------- */

static const char *const net_name[NETS] = {"plain", "layer norm"};

static plot_style look_of(size_t arm)
{
    const size_t s = arm % SCALES;
    const int dashed = arm >= FIRST(RELU, PLAIN) && arm < FIRST(RELU, LAYER);
    return (plot_style){lab_level(s, SCALES), .dash = dashed ? PLOT_DASHED : PLOT_SOLID};
}

/* Names of lines of logarithms, where no other line is. */
static void draw_names(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    static const double at[SCALES] = {7, 2, 2, 2, 4};
    size_t s;
    for (s = 0; s < SCALES; s++) {
        const size_t arm = panel->line[0].arm + s;
        const int last = s == SCALES - 1;
        const double y = lab_mean(r, arm, panel->line[0].series, at[s]) + (last ? 0.2 : -0.2);
        plot_text(p, at[s], pow(10, y), arms[arm].name,
                  PLOT_LEFT + (last ? PLOT_ABOVE : PLOT_BELOW), PLOT_INK);
    }
}

/* Mean, lowest and highest seed at each scale of the group panel->arm, at x = panel->value. Of
   logarithms (panel->other) also thin lines, after the training. A gradient that has left the range
   of float at the first state has no logarithm: it is drawn at the end of that range. */
static void draw_against(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    size_t s, k;
    int net;
    for (net = 0; net < NETS; net++) {
        plot_style style = plot_with_marker(lab_style(net == LAYER ? "layer" : "none"),
                                            net == LAYER ? PLOT_CIRCLE : PLOT_TRIANGLE);
        double at[SCALES], mid[SCALES], lo[SCALES], hi[SCALES], thin[SCALES];
        for (s = 0; s < SCALES; s++) {
            const size_t arm = FIRST((int)panel->arm, net) + s;
            const stats_summary v = lab_summary(r, arm, panel->series, panel->value);
            lab_numbers after = lab_all(r, arm, panel->series, AFTER);
            for (k = 0; k < after.n; k++)
                if (!isfinite(after.of[k])) after.of[k] = -45;
            at[s] = (double)s + (net == LAYER ? 0.05 : -0.05);
            mid[s] = panel->other ? pow(10, v.mean) : v.mean;
            lo[s] = panel->other ? pow(10, v.min) : v.min;
            hi[s] = panel->other ? pow(10, v.max) : v.max;
            thin[s] = pow(10, lab_average(after));
        }
        plot_errorbars(p, NULL, at, mid, lo, hi, SCALES, style);
        plot_line(p, net_name[net], at, mid, SCALES, style);
        style = plot_with_marker(style, net == LAYER ? PLOT_RING : PLOT_WEDGE);
        style.width = 0.6;
        style.size = 0.7;
        if (panel->other) plot_line(p, NULL, panel->axes.x_ticks, thin, SCALES, style);
    }
}

/* And crosses where runs have diverged. */
static void draw_accuracy(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    size_t i;
    draw_against(r, p, panel);
    for (i = 0; i < NETS * SCALES; i++) {
        const size_t arm = FIRST(panel->arm, PLAIN) + i;
        const double x = (double)(i % SCALES), y = lab_mean(r, arm, panel->series, AFTER) + 0.06;
        if (diverged(r, arm) > 0)
            plot_scatter(p, NULL, &x, &y, 1, plot_marked(PLOT_INK, PLOT_CROSS));
    }
}

static const double scale_at[SCALES] = {0, 1, 2, 3, 4}; /* at equal distances */
static const char *const scale_name[SCALES] = {"0.5", "1", "1.5", "2.5", "4"};

/* clang-format off */
#define NO_LEGEND .legend = PLOT_LEGEND_NONE
#define AGAINST .x = "scale ρ of W_{h}", .x_range = {-0.3, 4.3}, .x_ticks = scale_at,              \
    .x_names = scale_name, .x_count = SCALES
#define SCALED(net, of, what)                                                                      \
    .line = {{FIRST(TANH_SLOW, net), of, .how = what, .to = FIRST(TANH_SLOW, net) + SCALES - 1}}
#define FAN(net, title, names)                                                                     \
    {.axes = {0, net, .heading = title, .x = "step t", .x_range = {1, ROWS},                       \
              .y = "|∂L/∂h_{t}|", .y_scale = PLOT_LOG10, .y_range = {1e-14, 1e7}, NO_LEGEND},      \
     SCALED(net, "start_slope", LAB_POWERS), .draw = names}
#define ACCURACY(group, name, where, note)                                                         \
    {.axes = {1, group, .heading = "accuracy, " name, AGAINST, .y = "test accuracy",               \
              .y_range = {0, 1}, .legend = PLOT_LEGEND_##where},                                   \
     .draw = draw_accuracy, .arm = group, .series = "test_accuracy", .value = AFTER,               \
     .mark = {{LAB_NOTE_IN, 0.04, 0.1, note, PLOT_LEFT}}}
static const lab_panel training[] = {
    FAN(PLAIN, "plain, at the start", draw_names),
    FAN(LAYER, "layer norm, at the start", NULL),
    {.axes = {0, 2, .heading = "gradient at t = 1 over t = 28", AGAINST,
              .y = "|∂L/∂h_{1}| / |∂L/∂h_{28}|", .y_scale = PLOT_LOG10, NO_LEGEND},
     .under = {{LAB_HLINE, .y = 1, .text = "", .color = PLOT_GREY, .dash = PLOT_DOTTED}},
     .draw = draw_against, .arm = TANH_SLOW, .other = 1, .series = "probe_ratio",
     .mark = {{LAB_NOTE_IN, 0.04, 0.04, "thin: after training", PLOT_LEFT + PLOT_ABOVE}}},
    ACCURACY(TANH_SLOW, "tanh, rate 0.1", BOTTOM_LEFT, NULL),
    ACCURACY(TANH_FAST, "tanh, rate 0.5", NONE, NULL),
    ACCURACY(RELU, "ReLU, one epoch", NONE, "×: diverged")};

#define READING(net, title)                                                                        \
    {.axes = {0, net, .heading = title ": |h| while reading", .x = "step t", .x_range = {1, ROWS}, \
              .y = "rms of h_{t}", .y_range = {0, 1}, NO_LEGEND},                                  \
     SCALED(net, "start_rms", LAB_RANGE)}
#define SILENT(net, title, where)                                                                  \
    {.axes = {1, net, .heading = title ": then without input", .x = "steps without input",         \
              .y = "rms of h", .y_scale = PLOT_LOG10, .y_range = {1e-8, 10},                       \
              .legend = PLOT_LEGEND_##where},                                                      \
     SCALED(net, "start_silent", LAB_POWERS)}
#define CONSTANT(net, s, name)                                                                     \
    {FIRST(RELU, net) + (s), "start_constant", name, .how = LAB_POWERS}
static const lab_panel dynamics[] = {
    READING(PLAIN, "plain"), READING(LAYER, "layer norm"),
    {.axes = {0, 2, .heading = "states beyond ±0.97", AGAINST, .y = "share of states",
              .y_range = {0, 1}},
     .draw = draw_against, .arm = TANH_SLOW, .series = "probe_saturated"},
    SILENT(PLAIN, "plain", NONE), SILENT(LAYER, "layer norm", BOTTOM_RIGHT),
    {.axes = {1, 2, .heading = "ReLU: then a constant row", .x = "steps with the same input",
              .x_range = {0, LONG_STEPS}, .y = "rms of h", .y_scale = PLOT_LOG10},
     .line = {CONSTANT(PLAIN, 0, "plain, ρ = 0.5"), CONSTANT(PLAIN, SCALES - 1, "plain, ρ = 4"),
              CONSTANT(LAYER, 0, "layer norm, ρ = 0.5"),
              CONSTANT(LAYER, SCALES - 1, "layer norm, ρ = 4")}}};

static const lab_page pages[2] = {
    {"Layer norm stops exploding gradients and trains from any start", NULL, 1000,
     LAB_PANELS(training)},
    {"With layer norm the states neither die nor explode", "dynamics", 1000,
     LAB_PANELS(dynamics)}};
/* clang-format on */

LAB_PROGRAM(
    "30_recurrent_mnist", "Does layer norm steady a recurrent network that reads MNIST row by row?",
    "28 steps of 28 standardized pixels, 100 units, W_{h} ~ ρ·N(0, 1/100), softmax on the last "
    "state, batch 128, 938 steps of SGD with rate 0.1 unless told otherwise",
    .revision = 3, .uses = LAB_USES_DATA + LAB_TWICE, .prepare = prepare, .look = look_of)
