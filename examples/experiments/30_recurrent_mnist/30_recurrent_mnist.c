/* 30_recurrent_mnist: a recurrent network that reads MNIST row by row, with and without layer norm

   Ba, Kiros and Hinton (2016) say of a recurrent network with layer norm that it is "invariant to
   re-scaling all of the summed inputs to a layer, which results in much more stable
   hidden-to-hidden dynamics"; a tutorial on batch and layer norm adds that this "helps preventing
   exploding or vanishing gradients". Neither has a figure of it. Here is one.

   The 28 rows of an image (standardized pixels) come in one after the other:

       a[t] = x[t]·Wx + h[t-1]·Wh,   h[t] = f(a[t] + b)  or  h[t] = f(γ·(a[t] - μ)/σ + b)

   h[0] = 0, 100 units, softmax on h[28]. Wx ~ N(0, 1/28), Wh ~ ρ·N(0, 1/100), readout ~ N(0,
   1/100), γ = 1, b = 0, ε = 1e-5. Batches of 128, 938 steps (two epochs) of plain SGD with rate 0.1
   or 0.5, no clipping, seeds 11-13 where not told otherwise. ρ = 0.5, 1, 1.5, 2.5, 4. Once more
   with ReLU in place of tanh at rate 0.1, for one epoch. Only Wh is scaled by ρ, so that the
   balance between state and input changes with it, also for layer norm.

   A run whose loss or gradient is not finite, or whose loss is above 1000 times the first, has
   diverged: it stops there, and is tested with the weights that it had.
   Added later, with runs of its own and a criterion written before them: the same cell with batch
   norm in place of layer norm, tanh, ρ = 1, rate 0.1, trained with the statistics of the batch at
   each step, then tested with those of 100 batches of training images: of each step its own; one
   set for all steps, pooled (the mean of all, the variance about it); one running average with
   weight 0.1 that goes from step to step, as a single layer called 28 times would keep it. */
#include "lab/experiment.h"
#include "lab/draw.h"

enum { ROWS = 28, INPUTS = 28, UNITS = 100, CLASSES = 10, BATCH = 128, EPOCHS = 2 };
enum { LONG_STEPS = 500, LONG_BATCH = 16, WINDOWS = 20 };
enum { PLAIN, LAYER, NETS, BATCH_NET = NETS };
enum { TANH_SLOW, TANH_FAST, RELU, GROUPS }; /* activation and learning rate */
enum { SCALES = 5, BATCH_CELL = GROUPS * NETS * SCALES, ARMS };
enum { COUNTED = 100 }; /* batches that running statistics are made of */
#define EPS 1e-5

static const double scale[SCALES] = {0.5, 1, 1.5, 2.5, 4};

#define ARM(id, name, s, rate)                                                                     \
    {                                                                                              \
        id s rate, name ", ρ = " s, 7, 3                                                           \
    }
#define ARM_SCALES(id, name, rate)                                                                 \
    ARM(id, name, "0.5", rate), ARM(id, name, "1", rate), ARM(id, name, "1.5", rate),              \
        ARM(id, name, "2.5", rate), ARM(id, name, "4", rate)

static const lab_arm arms[ARMS] = {ARM_SCALES("tanh_plain_", "plain", "_rate0.1"),
                                   ARM_SCALES("tanh_layer_", "layer norm", "_rate0.1"),
                                   ARM_SCALES("tanh_plain_", "plain", "_rate0.5"),
                                   ARM_SCALES("tanh_layer_", "layer norm", "_rate0.5"),
                                   ARM_SCALES("relu_plain_", "plain, ReLU", "_rate0.1"),
                                   ARM_SCALES("relu_layer_", "layer norm, ReLU", "_rate0.1"),
                                   {"tanh_batch_1_rate0.1", "batch norm, ρ = 1", 10, 3}};

static size_t arm_of(int group, int net, int s)
{
    return (size_t)((group * NETS + net) * SCALES + s);
}

static int group_of(size_t arm)
{
    return arm == BATCH_CELL ? TANH_SLOW : (int)(arm / (NETS * SCALES));
}

static int net_of(size_t arm)
{
    return arm == BATCH_CELL ? BATCH_NET : (int)(arm / SCALES % NETS);
}

static double scale_of(size_t arm)
{
    return arm == BATCH_CELL ? 1 : scale[arm % SCALES];
}

/* ---- the network ----------------------------------------------------------------------------- */

enum { WX, WH, GAMMA, BETA, READOUT, OFFSET, PARTS };
static const size_t part_size[PARTS] = {INPUTS * UNITS, UNITS *UNITS,   UNITS,
                                        UNITS,          UNITS *CLASSES, CLASSES};
enum {
    PARAMS = INPUTS * UNITS + UNITS * UNITS + 2 * UNITS + UNITS * CLASSES + CLASSES,
    STATE = BATCH * UNITS
};

typedef struct network { /* weights, gradients, and all that a batch needs */
    nrm_rnn rnn;
    int mode;
    nrm_real params[PARAMS], grads[PARAMS];
    nrm_real x[ROWS * BATCH * INPUTS];
    nrm_real h[(ROWS + 1) * STATE], dh[(ROWS + 1) * STATE];
    nrm_real a[ROWS * STATE], da[ROWS * STATE];
    nrm_acc mean[ROWS * BATCH], rstd[ROWS * BATCH];
    nrm_real logits[BATCH * CLASSES];
    nrm_acc loss;
    double slope[ROWS + 1]; /* log10 |dL/dh[t]| of the last batch, if asked for */
} network;

static nrm_real *part(nrm_real *all, int which)
{
    int i;
    for (i = 0; i < which; i++) all += part_size[i];
    return all;
}

static void draw(nrm_real *w, size_t n, double sd, uint64_t seed, uint64_t stream)
{
    nrm_rng rng;
    size_t i;
    nrm_rng_seed(&rng, seed, stream);
    for (i = 0; i < n; i++) w[i] = (nrm_real)(sd * (double)draw_normal(&rng));
}

/* All arms of a seed have the same draws, scaled. */
static network *network_new(size_t arm, uint64_t seed)
{
    network *k = (network *)calloc(1, sizeof *k);
    size_t i;
    if (!k) return NULL;
    k->rnn.T = ROWS;
    k->rnn.N = BATCH;
    k->rnn.in = INPUTS;
    k->rnn.H = UNITS;
    k->mode = NRM_TRAIN;
    k->rnn.norm = net_of(arm) == LAYER       ? NRM_LAYER_NORM
                  : net_of(arm) == BATCH_NET ? NRM_BATCH_NORM
                                             : NRM_NO_NORM;
    k->rnn.activation = group_of(arm) == RELU ? NRM_RELU : NRM_TANH;
    k->rnn.eps = (nrm_real)EPS;
    k->rnn.Wx = part(k->params, WX);
    k->rnn.Wh = part(k->params, WH);
    k->rnn.gamma = part(k->params, GAMMA);
    k->rnn.beta = part(k->params, BETA);
    draw(part(k->params, WX), part_size[WX], 1 / sqrt((double)INPUTS), seed, 20);
    draw(part(k->params, WH), part_size[WH], scale_of(arm) / sqrt((double)UNITS), seed, 21);
    draw(part(k->params, READOUT), part_size[READOUT], 1 / sqrt((double)UNITS), seed, 22);
    for (i = 0; i < UNITS; i++) part(k->params, GAMMA)[i] = 1;
    return k;
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
    if (rc < 0 && rc != NRM_NONFINITE) return rc;
    return nrm_linear_forward(k->logits, k->h + ROWS * n * UNITS, part(k->params, READOUT),
                              part(k->params, OFFSET), n, UNITS, CLASSES);
}

/* Loss and gradients of a batch. Returns a status; what is not finite is seen in the numbers. */
static int gradient(network *k, const nrm_real *image, const int *labels, size_t n)
{
    nrm_rnn_grads to;
    int rc = forward(k, image, n);
    if (rc < 0 && rc != NRM_NONFINITE) return rc;
    rc = nrm_cross_entropy_forward(&k->loss, k->logits, k->logits, labels, n, CLASSES);
    if (rc < 0 && rc != NRM_NONFINITE) return rc;
    memset(k->grads, 0, sizeof k->grads);
    memset(k->dh, 0, (ROWS + 1) * n * UNITS * sizeof *k->dh);
    (void)nrm_cross_entropy_backward(k->logits, k->logits, labels, n, CLASSES);
    (void)nrm_linear_backward(k->dh + ROWS * n * UNITS, part(k->grads, READOUT),
                              part(k->grads, OFFSET), k->logits, k->h + ROWS * n * UNITS,
                              part(k->params, READOUT), n, UNITS, CLASSES);
    to.dWx = part(k->grads, WX);
    to.dWh = part(k->grads, WH);
    to.dgamma = part(k->grads, GAMMA);
    to.dbeta = part(k->grads, BETA);
    rc = nrm_rnn_backward(k->dh, NULL, &to, k->da, k->h, k->a, k->mean, k->rstd, k->x, &k->rnn,
                          NRM_TRAIN);
    return rc == NRM_NONFINITE ? NRM_OK : rc;
}

static int finite_all(const nrm_real *v, size_t n)
{
    size_t i;
    for (i = 0; i < n; i++)
        if (!isfinite(v[i])) return 0;
    return 1;
}

static int predict_right(network *k, const nrm_real *image, const int *labels, size_t n,
                         double *right)
{
    nrm_acc accuracy = 0;
    if (forward(k, image, n) < 0) return -1;
    if (nrm_accuracy(&accuracy, k->logits, labels, n, CLASSES) < 0) return -1;
    *right += (double)accuracy * (double)n;
    return 0;
}

/* ---- data, made once and seen by all runs ---------------------------------------------------- */

static training_set train_set, test_set;

static int prepare(const dataset *data, int quick)
{
    return training_load(&train_set, &test_set, data, quick ? 256 : 0, quick ? 128 : 0,
                         DATASET_STD);
}

static int test_accuracy(network *k, double *accuracy)
{
    double right = 0;
    size_t at;
    for (at = 0; at < test_set.n; at += BATCH) {
        const size_t n = test_set.n - at < BATCH ? test_set.n - at : BATCH;
        if (predict_right(k, test_set.x + at * DATASET_PIXELS, test_set.labels + at, n, &right))
            return -1;
    }
    *accuracy = right / (double)test_set.n;
    return 0;
}

/* ---- looking at it --------------------------------------------------------------------------- */

/* log10 of the length of a vector, also where its square is too small or too large. */
static double log_length(const nrm_real *v, size_t n)
{
    double most = 0, sum = 0;
    size_t i;
    for (i = 0; i < n; i++) {
        if (isnan(v[i])) return (double)NAN;
        most = fmax(most, fabs((double)v[i]));
    }
    if (most <= 0) return -HUGE_VAL;
    if (isinf(most)) return HUGE_VAL;
    for (i = 0; i < n; i++) sum += ((double)v[i] / most) * ((double)v[i] / most);
    return log10(most) + 0.5 * log10(sum);
}

static double rms(const nrm_real *v, size_t n)
{
    return pow(10, log_length(v, n)) / sqrt((double)n);
}

/* Root of the mean variance of a row [n][UNITS]. */
static double spread(const nrm_real *a, size_t n)
{
    double sum = 0;
    size_t i, j;
    for (i = 0; i < n; i++) {
        double mean = 0;
        for (j = 0; j < UNITS; j++) mean += (double)a[i * UNITS + j] / UNITS;
        for (j = 0; j < UNITS; j++) {
            const double d = (double)a[i * UNITS + j] - mean;
            sum += d * d;
        }
    }
    return sqrt(sum / (double)(n * UNITS));
}

/* tanh: how many states are beyond 0.97; ReLU: how many are 0. */
static double saturated(const network *k, size_t n)
{
    size_t i, count = 0;
    for (i = n * UNITS; i < (ROWS + 1) * n * UNITS; i++)
        count += k->rnn.activation == NRM_TANH
                     ? (k->h[i] > (nrm_real)0.97 || k->h[i] < (nrm_real)-0.97)
                     : !(k->h[i] > 0);
    return (double)count / (double)(ROWS * n * UNITS);
}

static void record(lab_run *r, const char *when, const char *what, double x, double y)
{
    if (isfinite(y)) lab_record_as(r, x, y, "%s_%s", when, what);
}

/* The first training images as a batch; of the network only the gradients change, which every
   batch writes anew. `all`: state by state, else only sums. */
static int take_look(lab_run *r, network *k, size_t step, const char *all)
{
    const size_t n = train_set.n < BATCH ? train_set.n : BATCH, state = n * UNITS;
    double first, last;
    size_t t;
    if (gradient(k, train_set.x, train_set.labels, n)) return -1;
    first = log_length(k->dh + state, state);
    last = log_length(k->dh + ROWS * state, state);
    record(r, "probe", "ratio", (double)step, first - last);
    record(r, "probe", "norm", (double)step, log_length(k->grads, PARAMS));
    record(r, "probe", "saturated", (double)step, saturated(k, n));
    for (t = 1; t <= ROWS && all; t++) {
        record(r, all, "slope", (double)t, log_length(k->dh + t * state, state));
        if (t % 3 != 1) continue;
        record(r, all, "rms", (double)t, rms(k->h + t * state, state));
        record(r, all, "spread", (double)t, spread(k->a + (t - 1) * state, n));
    }
    return 0;
}

static int worth_noting(size_t t)
{
    static const size_t at[11] = {0, 1, 2, 5, 10, 20, 50, 100, 200, 300, 500};
    size_t i;
    for (i = 0; i < 11; i++)
        if (t == at[i]) return 1;
    return 0;
}

/* 500 steps of the cell from the states that the first images end in: what does |h| do? It may
   leave the range of numbers, and then that is the end of it. */
static int iterate(lab_run *r, const network *k, const char *when, const char *what, int constant)
{
    const size_t n = LONG_BATCH, state = n * UNITS, steps = r->quick ? 100 : LONG_STEPS;
    nrm_real h[2 * LONG_BATCH * UNITS], a[LONG_BATCH * UNITS], x[LONG_BATCH * INPUTS];
    nrm_acc mean[LONG_BATCH], rstd[LONG_BATCH];
    nrm_rnn rnn = k->rnn;
    size_t t, i;
    rnn.T = 1;
    rnn.N = n;
    memset(x, 0, sizeof x);
    for (i = 0; i < n && constant; i++) /* a row through the middle of the image */
        memcpy(x + i * INPUTS, train_set.x + i * DATASET_PIXELS + 14 * INPUTS, INPUTS * sizeof *x);
    memcpy(h, k->h + ROWS * k->rnn.N * UNITS, state * sizeof *h);
    for (t = 0; t <= steps; t++) {
        const double size = log_length(h, state) - 0.5 * log10((double)state);
        if (worth_noting(t)) record(r, when, what, (double)t, size);
        if (!(size < 36) || t == steps) break;
        if (nrm_rnn_forward(h, a, mean, rstd, x, &rnn, NRM_TRAIN) < 0) return -1;
        memcpy(h, h + state, state * sizeof *h);
    }
    return 0;
}

static int long_run(lab_run *r, network *k, const char *when)
{
    const size_t n = train_set.n < BATCH ? train_set.n : BATCH;
    if (group_of(r->arm) == TANH_FAST) return 0;
    if (forward(k, train_set.x, n) < 0) return -1;
    return iterate(r, k, when, "silent", 0) || iterate(r, k, when, "constant", 1);
}

/* ---- a run ----------------------------------------------------------------------------------- */

typedef struct progress {
    double first, sum;
    size_t step, steps, window, in_window;
    int diverged;
} progress;

/* One step, unless it would not be finite. */
static int step_once(lab_run *r, network *k, const training_order *order, progress *p)
{
    const double rate = group_of(r->arm) == TANH_FAST ? 0.5 : 0.1;
    size_t i;
    if (gradient(k, order->x, order->labels, order->count)) return -1;
    if (p->step == 0) p->first = (double)k->loss;
    if (!isfinite(k->loss) || (double)k->loss > 1e3 * p->first || !finite_all(k->grads, PARAMS)) {
        p->diverged = 1;
        lab_record(r, "diverged", 0, (double)p->step);
        return 0;
    }
    for (i = 0; i < PARAMS; i++) k->params[i] -= (nrm_real)rate * k->grads[i];
    p->step++;
    p->sum += (double)k->loss;
    if (++p->in_window == p->window) {
        lab_record(r, "loss", (double)p->step, p->sum / (double)p->window);
        p->sum = 0;
        p->in_window = 0;
        lab_progress(r, (double)p->step / (double)p->steps);
    }
    return 0;
}

/* With looks or without: the weights at the end are the same. */
static int train(lab_run *r, network *k, int looks)
{
    training_order order;
    progress p;
    const size_t epochs = group_of(r->arm) == RELU ? 1 : EPOCHS;
    size_t every, epoch;
    int rc = 0;
    memset(&p, 0, sizeof p);
    p.steps = epochs * training_steps(train_set.n, BATCH);
    p.window = p.steps > WINDOWS ? p.steps / WINDOWS : 1;
    every = r->quick ? 2 : 100;
    if (training_order_start(&order, train_set.n, BATCH, DATASET_PIXELS, r->seed)) return -1;
    for (epoch = 1; epoch <= epochs && !rc; epoch++) {
        double accuracy = 0;
        while (!p.diverged && !rc && training_next(&order, &train_set)) {
            if (looks && p.step % every == 0)
                rc = take_look(r, k, p.step,
                               p.step == 0 && group_of(r->arm) != TANH_FAST ? "start" : NULL);
            if (!rc) rc = step_once(r, k, &order, &p);
        }
        if (!rc && looks) rc = test_accuracy(k, &accuracy);
        if (looks) lab_record(r, "test_accuracy", (double)epoch, accuracy);
    }
    if (looks && !rc) rc = take_look(r, k, p.step, "end");
    training_order_free(&order);
    return rc;
}

/* ---- batch norm: statistics for inference ---------------------------------------------------- */

typedef struct statistics { /* of a step each; `shared`: the steps' are in one place */
    nrm_running step[ROWS];
    nrm_real mean[ROWS * UNITS], var[ROWS * UNITS];
} statistics;

static void statistics_start(statistics *s, int shared)
{
    size_t t, i;
    memset(s, 0, sizeof *s);
    for (i = 0; i < ROWS * UNITS; i++) s->var[i] = 1;
    for (t = 0; t < ROWS; t++) {
        s->step[t].mean = s->mean + (shared ? 0 : t * UNITS);
        s->step[t].var = s->var + (shared ? 0 : t * UNITS);
        s->step[t].new_weight = (nrm_real)0.1;
        s->step[t].cumulative = !shared;
    }
}

/* Training images forward as in training; the weights stay. */
static int statistics_take(statistics *s, network *k)
{
    size_t b;
    int rc = NRM_OK;
    k->rnn.running = s->step;
    for (b = 0; b < COUNTED && (b + 1) * BATCH <= train_set.n && rc >= 0; b++)
        rc = forward(k, train_set.x + b * BATCH * DATASET_PIXELS, BATCH);
    k->rnn.running = NULL;
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

static int statistics_test(lab_run *r, network *k, statistics *s, const char *series)
{
    double accuracy = 0;
    int rc;
    k->mode = NRM_INFER;
    k->rnn.running = s->step;
    rc = test_accuracy(k, &accuracy);
    k->mode = NRM_TRAIN;
    k->rnn.running = NULL;
    lab_record(r, series, 0, accuracy);
    return rc;
}

static int test_statistics(lab_run *r, network *k)
{
    statistics *s = (statistics *)malloc(sizeof *s);
    size_t t, i;
    int failed = !s;
    if (!failed) {
        statistics_start(s, 0);
        failed = statistics_take(s, k) || statistics_test(r, k, s, "test_steps");
    }
    for (t = 0; t < ROWS && !failed; t++) {
        double mean2 = 0, var = 0;
        for (i = 0; i < UNITS; i++) {
            mean2 += pow((double)s->mean[t * UNITS + i], 2) / UNITS;
            var += (double)s->var[t * UNITS + i] / UNITS;
        }
        lab_record(r, "step_mean2", (double)t + 1, mean2);
        lab_record(r, "step_variance", (double)t + 1, var);
    }
    if (!failed) {
        statistics_pool(s);
        failed = statistics_test(r, k, s, "test_pooled");
    }
    if (!failed) {
        statistics_start(s, 1);
        failed = statistics_take(s, k) || statistics_test(r, k, s, "test_average");
    }
    free(s);
    return failed;
}

static int run_batch_cell(lab_run *r, network *k)
{
    return train(r, k, 1) || test_statistics(r, k);
}

static int run(lab_run *r)
{
    network *k = network_new(r->arm, r->seed), *again = NULL;
    int failed = !k;
    if (!failed)
        failed = r->arm == BATCH_CELL
                     ? run_batch_cell(r, k)
                     : long_run(r, k, "start") || train(r, k, 1) || long_run(r, k, "end");
    if (!failed && r->quick && group_of(r->arm) == TANH_SLOW) { /* once more without looking */
        again = network_new(r->arm, r->seed);
        failed = !again || train(r, again, 0);
        if (!failed)
            lab_record(r, "same_bits", 0, memcmp(k->params, again->params, sizeof k->params) == 0);
    }
    free(k);
    free(again);
    return failed ? -1 : 0;
}

/* ---- what the records say -------------------------------------------------------------------- */

static const char *const group_name[GROUPS] = {"tanh, rate 0.1", "tanh, rate 0.5",
                                               "ReLU, one epoch"};
static const char *const net_name[NETS] = {"plain", "layer norm"};

/* How far a series at x is spread over the five scales. */
static lab_numbers spread_over_scales(const lab_report *r, int group, int net, const char *series,
                                      double x)
{
    lab_numbers spread = lab_all(r, arm_of(group, net, 0), series, x);
    size_t s;
    int i;
    for (s = 0; s < spread.n; s++) {
        double low = HUGE_VAL, high = -HUGE_VAL; /* nan where a scale has no value */
        for (i = 0; i < SCALES; i++) {
            const double v = lab_at(r, arm_of(group, net, i), s, series, x);
            low = stats_smaller(low, v);
            high = stats_larger(high, v);
        }
        spread.of[s] = high - low;
    }
    return spread;
}

typedef struct pair {         /* plain and layer norm */
    stats_finding more, less; /* is it more with layer norm, or less? */
    double plain, layer;      /* means */
} pair;

static pair pair_of(lab_numbers layer, lab_numbers plain)
{
    const pair p = {lab_more(layer, plain, 1), lab_less(layer, plain, 1), lab_describe(plain).mean,
                    lab_describe(layer).mean};
    return p;
}

static pair spreads(const lab_report *r, int group, const char *series, double x)
{
    return pair_of(spread_over_scales(r, group, LAYER, series, x),
                   spread_over_scales(r, group, PLAIN, series, x));
}

static pair values(const lab_report *r, int group, int s, const char *series, double x)
{
    return pair_of(lab_all(r, arm_of(group, LAYER, s), series, x),
                   lab_all(r, arm_of(group, PLAIN, s), series, x));
}

static size_t diverged(const lab_report *r, size_t arm)
{
    size_t s, count = 0;
    for (s = 0; s < lab_seeds(r, arm); s++) count += lab_get(r, arm, s, "diverged").n > 0;
    return count;
}

/* ---- verdicts -------------------------------------------------------------------------------- */

static const char ba[] = "Ba, Kiros & Hinton 2016, section 3.1";
static const char stable[] = "no numbers: \"much more stable hidden-to-hidden dynamics\"";
static const char tutorial[] = "a tutorial on batch and layer norm";
static const char helps[] = "no numbers: \"helps preventing exploding or vanishing gradients\"";
static const char ratio_pilot[] =
    "trial runs (1 seed): ratio from 9e-13 to 9e4 plain, 6e-10 to 1.9 with layer norm";
static const char accuracy_pilot[] =
    "trial runs (1 seed), rate 0.1/0.5, ρ = 1.5, 2.5, 4: plain 0.890/0.231, 0.794/0.096, "
    "0.248/0.144; layer norm 0.923/0.923, 0.921/0.928, 0.918/0.940";

/* clang-format off */
static const lab_claim claims[] = {
    {"30a", "With layer norm the scale of Wh matters less for gradients through time", ba, stable,
     "log10(|dL/dh[1]|/|dL/dh[28]|) at the start: range over ρ smaller, paired, and in the mean "
     "below the plain one / 1.5, else partly", ratio_pilot, LAB_TRAINING, LAB_SETTING},
    {"30b", "For large ρ the network with layer norm is the better one", tutorial,
     "no numbers: \"proper weight initialization is not as important\"",
     "test accuracy, tanh, ρ >= 1.5, both rates: higher in each of six cells, paired",
     accuracy_pilot, LAB_TRAINING, LAB_SETTING},
    {"30c", "With layer norm no run diverges", ba, stable, "none of the runs, tanh and ReLU",
     "trial runs (1 seed): none; plain ReLU does for ρ >= 1.5", LAB_TRAINING, LAB_SETTING},
    {"30d", "Layer norm prevents vanishing gradients", tutorial, helps, "ρ = 0.5, start: "
     "|dL/dh[1]|/|dL/dh[28]| larger than plain, paired, and in the mean above 1e-3, else partly",
     "trial runs (1 seed): 6e-10 against 9e-13. Expected to fail", LAB_TRAINING, LAB_SETTING},
    {"30e", "Layer norm prevents exploding gradients", tutorial, helps, "ρ = 4, start: "
     "|dL/dh[1]|/|dL/dh[28]| smaller than plain, paired, and in the mean below 10, else partly",
     "trial runs (1 seed): 1.9 against 9e4", LAB_TRAINING, LAB_SETTING},
    {"30f", "With layer norm the initialisation of Wh matters less", tutorial,
     "no numbers: \"proper weight initialization is not as important\"",
     "range of the test accuracy over ρ, tanh: smaller at rate 0.1 and at 0.5, paired",
     accuracy_pilot, LAB_TRAINING, LAB_SETTING},
    {"30g", "Layer norm makes the dynamics stable", ba, stable, "log10 of the rms of h after 500 "
     "steps without input, start, tanh: range over ρ smaller, paired", "none", LAB_TRAINING,
     LAB_SETTING},
    {"30h", "Batch norm in a recurrent layer needs statistics of each step",
     "Ba, Kiros & Hinton 2016, section 3.1; a tutorial on batch and layer norm",
     "no numbers: \"requires computing and storing batch statistics for each time step\"",
     "test accuracy, tanh, ρ = 1, with one set for all steps (the better of two) lower than with "
     "one for each, paired, and by more than a point in the mean, else partly; added later, before "
     "these runs", "none", LAB_TRAINING, LAB_SETTING}};
/* clang-format on */

static void judge_spread(lab_report *r)
{
    pair p = spreads(r, TANH_SLOW, "probe_ratio", 0);
    p.less.size_met = p.layer < p.plain / 1.5;
    lab_verdict(r, lab_find(r, "30a"), p.less, "", "range over ρ: %.1f decades, plain %.1f",
                p.layer, p.plain);
}

static void judge_accuracy(lab_report *r)
{
    stats_finding part[2 * SCALES];
    int group, s, higher = 0;
    size_t n = 0;
    const char *cells = "";
    for (group = TANH_SLOW; group <= TANH_FAST; group++)
        for (s = 2; s < SCALES; s++) {
            const pair p = values(r, group, s, "test_accuracy", LAB_LAST);
            part[n++] = p.more;
            higher += p.layer > p.plain;
            cells = lab_format(r, "%s%s%.3f, %.3f", cells, *cells ? "; " : "", p.layer, p.plain);
        }
    lab_verdict(r, lab_find(r, "30b"), stats_together(part, n),
                lab_format(r, "layer norm, plain at rate 0.1, then 0.5: %s", cells),
                "higher in %d of 6 cells", higher);
}

static void judge_divergence(lab_report *r)
{
    size_t of[NETS] = {0, 0}, runs = 0;
    int group, s, net;
    for (net = 0; net < NETS; net++)
        for (group = 0; group < GROUPS; group++)
            for (s = 0; s < SCALES; s++) {
                of[net] += diverged(r, arm_of(group, net, s));
                runs += net == LAYER ? lab_seeds(r, arm_of(group, net, s)) : 0;
            }
    lab_verdict(r, lab_find(r, "30c"), stats_holds(of[LAYER] == 0), "",
                "%zu of %zu runs with layer norm, %zu plain ones", of[LAYER], runs, of[PLAIN]);
}

static void judge_ends(lab_report *r)
{
    pair low = values(r, TANH_SLOW, 0, "probe_ratio", 0);
    pair high = values(r, TANH_SLOW, SCALES - 1, "probe_ratio", 0);
    low.more.size_met = low.layer > -3;
    high.less.size_met = high.layer < 1;
    lab_verdict(r, lab_find(r, "30d"), low.more, "", "%.0e, plain %.0e", pow(10, low.layer),
                pow(10, low.plain));
    lab_verdict(r, lab_find(r, "30e"), high.less, "", "%.1f, plain %.0e", pow(10, high.layer),
                pow(10, high.plain));
}

static void judge_ranges(lab_report *r)
{
    const pair slow = spreads(r, TANH_SLOW, "test_accuracy", LAB_LAST);
    const pair fast = spreads(r, TANH_FAST, "test_accuracy", LAB_LAST);
    const pair silent = spreads(r, TANH_SLOW, "start_silent", LAB_LAST);
    const stats_finding part[2] = {slow.less, fast.less};
    lab_verdict(r, lab_find(r, "30f"), stats_together(part, 2), "",
                "range %.3f, plain %.3f; at rate 0.5: %.3f, plain %.3f", slow.layer, slow.plain,
                fast.layer, fast.plain);
    lab_verdict(r, lab_find(r, "30g"), silent.less,
                "plain at ρ = 0.5 dies out below the range of float: its range is a lower bound",
                "range over ρ: %.1f decades, plain %.1f", silent.layer, silent.plain);
}

/* The better of the two sets that serve all steps, seed by seed. */
static void judge_statistics(lab_report *r)
{
    const lab_numbers own = lab_all(r, BATCH_CELL, "test_steps", 0);
    const lab_numbers average = lab_all(r, BATCH_CELL, "test_average", 0);
    lab_numbers one = lab_all(r, BATCH_CELL, "test_pooled", 0);
    size_t s;
    for (s = 0; s < one.n; s++) one.of[s] = stats_larger(one.of[s], average.of[s]);
    lab_verdict(r, lab_find(r, "30h"),
                lab_less(one, own, lab_describe(own).mean - lab_describe(one).mean > 0.01),
                lab_format(r, "with those of the test batch %s",
                           lab_text(r, BATCH_CELL, "test_accuracy", LAB_LAST, 3)),
                "%s with one for each; pooled %s, one running average %s",
                lab_text(r, BATCH_CELL, "test_steps", 0, 3),
                lab_text(r, BATCH_CELL, "test_pooled", 0, 3),
                lab_text(r, BATCH_CELL, "test_average", 0, 3));
}

/* ε = 0, weights times 4: a cell with layer norm gives the same bits. */
static int same_when_scaled(void)
{
    network *k = network_new(arm_of(TANH_SLOW, LAYER, 1), 1),
            *b = network_new(arm_of(TANH_SLOW, LAYER, 1), 1);
    nrm_real image[4 * DATASET_PIXELS];
    size_t i;
    int same = 0;
    if (k && b) {
        draw(image, 4 * DATASET_PIXELS, 1, 1, 23);
        k->rnn.eps = b->rnn.eps = (nrm_real)1e-30;
        for (i = 0; i < part_size[WX] + part_size[WH]; i++) b->params[i] *= 4;
        same = forward(k, image, 4) == NRM_OK && forward(b, image, 4) == NRM_OK &&
               memcmp(k->h, b->h, (ROWS + 1) * 4 * UNITS * sizeof *k->h) == 0;
    }
    free(k);
    free(b);
    return same;
}

static void check(lab_report *r)
{
    size_t s;
    double most = 0;
    int i;
    lab_check(r, same_when_scaled(), "layer norm, ε = 0: all weights times 4 change no bit of h",
              "28 steps");
    for (s = 0; s < lab_seeds(r, arm_of(TANH_SLOW, LAYER, 0)); s++)
        for (i = 1; i < SCALES; i++)
            most = stats_larger(
                most, fabs(lab_at(r, arm_of(TANH_SLOW, LAYER, i), s, "start_silent", 10) -
                           lab_at(r, arm_of(TANH_SLOW, LAYER, 1), s, "start_silent", 10)));
    lab_check(r, most < 1, "layer norm without input: ρ hardly matters for the size of h",
              "after 10 steps all ρ within %.2f decades", most);
    lab_check_same_bits(r);
}

/* ---- figures --------------------------------------------------------------------------------- */

static plot_style scale_style(int s)
{
    return plot_solid(lab_level((size_t)s, SCALES));
}

/* A series of logarithms on a logarithmic axis: mean of the logarithm, lowest and highest. */
static void draw_log(lab_report *r, plot_panel *p, size_t arm, const char *series, const char *name,
                     plot_style style)
{
    const lab_curve c = lab_over_seeds(r, arm, series);
    double mean[64], lo[64], hi[64];
    size_t i;
    for (i = 0; i < c.n && i < 64; i++) {
        mean[i] = pow(10, c.mean[i]);
        lo[i] = pow(10, c.low[i]);
        hi[i] = pow(10, c.high[i]);
    }
    plot_band(p, NULL, c.x, lo, hi, c.n, style);
    plot_line(p, name, c.x, mean, c.n, style);
}

/* One line for each scale. */
static plot_panel *scales_panel(lab_report *r, plot_figure *f, int row, int col, int group, int net,
                                const char *series, int logarithms)
{
    plot_panel *p = plot_add(f, row, col, 1, 1);
    int s;
    for (s = 0; s < SCALES; s++) {
        const char *name = lab_format(r, "ρ = %g", scale[s]);
        if (logarithms)
            draw_log(r, p, arm_of(group, net, s), series, name, scale_style(s));
        else
            lab_plot(r, p, arm_of(group, net, s), series, name, scale_style(s));
    }
    plot_axis_x(p, "step t", PLOT_LINEAR);
    plot_legend(p, PLOT_LEGEND_NONE);
    return p;
}

static void draw_fans(lab_report *r, plot_figure *f)
{
    static const double at[SCALES] = {7, 2, 2, 2, 4}; /* names, where no other line is */
    plot_panel *p[NETS];
    int net, s;
    for (net = 0; net < NETS; net++) {
        p[net] = scales_panel(r, f, 0, net, TANH_SLOW, net, "start_slope", 1);
        plot_heading(p[net], lab_format(r, "%s, at the start", net_name[net]));
        plot_axis_y(p[net], "|∂L/∂h_{t}|", PLOT_LOG10);
        plot_range_x(p[net], 1, ROWS);
        plot_range_y(p[net], 1e-14, 1e7);
    }
    plot_share_y(p[1], p[0]);
    for (s = 0; s < SCALES; s++)
        plot_text(p[0], at[s],
                  pow(10, lab_mean(r, arm_of(TANH_SLOW, PLAIN, s), "start_slope", at[s]) +
                              (s == SCALES - 1 ? 0.2 : -0.2)),
                  lab_format(r, "ρ = %g", scale[s]),
                  PLOT_LEFT + (s == SCALES - 1 ? PLOT_ABOVE : PLOT_BELOW), PLOT_INK);
}

/* Against ρ, at equal distances. */
static plot_panel *against_scale(plot_figure *f, int row, int col, const char *heading,
                                 const char *y, int axis)
{
    static const double at[SCALES] = {0, 1, 2, 3, 4};
    static const char *const label[SCALES] = {"0.5", "1", "1.5", "2.5", "4"};
    plot_panel *p = plot_add(f, row, col, 1, 1);
    plot_heading(p, heading);
    plot_axis_x(p, "scale ρ of W_{h}", PLOT_LINEAR);
    plot_axis_y(p, y, axis);
    plot_range_x(p, -0.3, 4.3);
    plot_ticks_x(p, at, label, SCALES);
    return p;
}

/* Mean, lowest and highest seed at each scale; `power`: of logarithms. */
static void draw_against(lab_report *r, plot_panel *p, int group, int net, const char *series,
                         double x, int power, const char *name, plot_style style)
{
    double at[SCALES], mean[SCALES], lo[SCALES], hi[SCALES];
    int s;
    for (s = 0; s < SCALES; s++) {
        const stats_summary v = lab_summary(r, arm_of(group, net, s), series, x);
        at[s] = s + (net == LAYER ? 0.05 : -0.05);
        mean[s] = power ? pow(10, v.mean) : v.mean;
        lo[s] = power ? pow(10, v.min) : v.min;
        hi[s] = power ? pow(10, v.max) : v.max;
    }
    plot_errorbars(p, NULL, at, mean, lo, hi, SCALES, style);
    plot_line(p, name, at, mean, SCALES, style);
}

static plot_style net_style(int net)
{
    return plot_with_marker(lab_style(net == LAYER ? "layer" : "none"),
                            net == LAYER ? PLOT_CIRCLE : PLOT_TRIANGLE);
}

/* At the last step that was looked at. A gradient that has left the range of float at the first
   state has no logarithm: it is drawn at the end of that range. */
static void draw_trained(lab_report *r, plot_panel *p, int net)
{
    double at[SCALES], mean[SCALES];
    plot_style style = net_style(net);
    size_t k;
    int s;
    for (s = 0; s < SCALES; s++) {
        const size_t arm = arm_of(TANH_SLOW, net, s), n = lab_seeds(r, arm);
        double sum = 0;
        for (k = 0; k < n; k++) {
            const lab_series steps = lab_get(r, arm, k, "probe_saturated");
            const double v = steps.n ? lab_at(r, arm, k, "probe_ratio", steps.x[steps.n - 1]) : 0;
            sum += isfinite(v) ? v : -45;
        }
        at[s] = s;
        mean[s] = pow(10, sum / (double)n);
    }
    style.width = 0.6;
    style.size = 0.7;
    style.marker = net == LAYER ? PLOT_RING : PLOT_WEDGE;
    plot_line(p, NULL, at, mean, SCALES, style);
}

static void draw_ratio(lab_report *r, plot_figure *f)
{
    plot_panel *p = against_scale(f, 0, 2, "gradient at t = 1 over t = 28",
                                  "|∂L/∂h_{1}| / |∂L/∂h_{28}|", PLOT_LOG10);
    int net;
    plot_hline(p, 1, NULL, plot_dotted(PLOT_GREY));
    for (net = 0; net < NETS; net++) {
        draw_against(r, p, TANH_SLOW, net, "probe_ratio", 0, 1, net_name[net], net_style(net));
        draw_trained(r, p, net);
    }
    plot_text_in(p, 0.04, 0.04, "thin: after training", PLOT_LEFT + PLOT_ABOVE, PLOT_INK);
    plot_legend(p, PLOT_LEGEND_NONE); /* the colours of the panels below */
}

static void draw_accuracy(lab_report *r, plot_figure *f, int group)
{
    plot_panel *p = against_scale(f, 1, group, lab_format(r, "accuracy, %s", group_name[group]),
                                  "test accuracy", PLOT_LINEAR);
    int net, s, any = 0;
    for (net = 0; net < NETS; net++) {
        draw_against(r, p, group, net, "test_accuracy", LAB_LAST, 0, net_name[net], net_style(net));
        for (s = 0; s < SCALES; s++) {
            const size_t arm = arm_of(group, net, s);
            const double x = s, y = lab_mean(r, arm, "test_accuracy", LAB_LAST) + 0.06;
            plot_style cross = plot_marked(PLOT_INK, PLOT_CROSS);
            if (diverged(r, arm) == 0) continue;
            plot_scatter(p, NULL, &x, &y, 1, cross);
            any = 1;
        }
    }
    plot_range_y(p, 0, 1);
    if (any) plot_text_in(p, 0.04, 0.1, "×: diverged", PLOT_LEFT, PLOT_INK);
    plot_legend(p, group == TANH_SLOW ? PLOT_LEGEND_BOTTOM_LEFT : PLOT_LEGEND_NONE);
}

static int draw_training(lab_report *r)
{
    plot_figure *f =
        lab_figure(r, "Layer norm stops exploding gradients and trains from any start", 2000, 1250);
    draw_fans(r, f);
    draw_ratio(r, f);
    draw_accuracy(r, f, TANH_SLOW);
    draw_accuracy(r, f, TANH_FAST);
    draw_accuracy(r, f, RELU);
    return lab_save(r, f, NULL);
}

/* States: their size while reading. */
static void draw_reading(lab_report *r, plot_figure *f)
{
    int net;
    for (net = 0; net < NETS; net++) {
        plot_panel *p = scales_panel(r, f, 0, net, TANH_SLOW, net, "start_rms", 0);
        plot_heading(p, lab_format(r, "%s: |h| while reading", net_name[net]));
        plot_axis_y(p, "rms of h_{t}", PLOT_LINEAR);
        plot_range_x(p, 1, ROWS);
        plot_range_y(p, 0, 1);
    }
}

/* And in the steps after that, without input. */
static void draw_silent(lab_report *r, plot_figure *f)
{
    int net;
    for (net = 0; net < NETS; net++) {
        plot_panel *p = scales_panel(r, f, 1, net, TANH_SLOW, net, "start_silent", 1);
        plot_heading(p, lab_format(r, "%s: then without input", net_name[net]));
        plot_axis_y(p, "rms of h", PLOT_LOG10);
        plot_axis_x(p, "steps without input", PLOT_LINEAR);
        plot_range_y(p, 1e-8, 10);
        plot_legend(p, net == LAYER ? PLOT_LEGEND_BOTTOM_RIGHT : PLOT_LEGEND_NONE);
    }
}

static void draw_saturation(lab_report *r, plot_figure *f)
{
    plot_panel *p = against_scale(f, 0, 2, "states beyond ±0.97", "share of states", PLOT_LINEAR);
    int net;
    for (net = 0; net < NETS; net++)
        draw_against(r, p, TANH_SLOW, net, "probe_saturated", 0, 0, net_name[net], net_style(net));
    plot_range_y(p, 0, 1);
}

static void draw_relu(lab_report *r, plot_figure *f)
{
    static const int which[2] = {0, SCALES - 1};
    plot_panel *p = plot_add(f, 1, 2, 1, 1);
    int net, i;
    plot_heading(p, "ReLU: then a constant row");
    plot_axis_x(p, "steps with the same input", PLOT_LINEAR);
    plot_axis_y(p, "rms of h", PLOT_LOG10);
    plot_range_x(p, 0, LONG_STEPS);
    for (net = 0; net < NETS; net++)
        for (i = 0; i < 2; i++) {
            plot_style style = scale_style(which[i]);
            style.dash = net == LAYER ? PLOT_SOLID : PLOT_DASHED;
            draw_log(r, p, arm_of(RELU, net, which[i]), "start_constant",
                     lab_format(r, "%s, ρ = %g", net_name[net], scale[which[i]]), style);
        }
}

static int draw_dynamics(lab_report *r)
{
    plot_figure *f =
        lab_figure(r, "With layer norm the states neither die nor explode", 2000, 1250);
    draw_reading(r, f);
    draw_saturation(r, f);
    draw_silent(r, f);
    draw_relu(r, f);
    return lab_save(r, f, "dynamics");
}

static int report(lab_report *r)
{
    judge_spread(r);
    judge_accuracy(r);
    judge_divergence(r);
    judge_ends(r);
    judge_ranges(r);
    judge_statistics(r);
    check(r);
    return draw_training(r) || draw_dynamics(r) ? -1 : 0;
}

/* clang-format off */
static const lab_program program = {
    "30_recurrent_mnist", NRM_VERSION,
    "Does layer norm steady a recurrent network that reads MNIST row by row?", "28 steps of 28 "
    "standardized pixels, 100 units, W_{h} ~ ρ·N(0, 1/100), softmax on the last state, batch 128, "
    "938 steps of SGD with rate 0.1 unless told otherwise", 1, LAB_USES_DATA, arms, ARMS, prepare,
    run, report, claims, LAB_COUNT(claims)};
/* clang-format on */
LAB_MAIN(program)
