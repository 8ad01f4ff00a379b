/* 16_landscape: is the loss smoother along the gradient where there is a norm?

   At each tenth step of a training the gradient g of the mini-batch is taken, and loss and gradient
   are evaluated at θ - s·g for a few step sizes s, on the same batch, norms in train mode. Nothing
   of that enters the training. What is measured, over the steps s of the grid:

       loss range         max L(θ - s·g) - min L(θ - s·g)
       gradient change    max |∇L(θ - s·g) - g|, "gradient predictiveness"
       effective β        max |∇L(θ - s·g) - g| / (s·|g|)
       slope              max |L(θ - s·g) - L(θ)| / (s·|g|)

   as in Figure 4 of Santurkar, Tsipras, Ilyas and Madry (2018), who did it with VGG on CIFAR-10.
   Here: 784-100x13-10 ("13 layers", their VGG's stand-in) and 784-100x6-10 ("6 layers"), ReLU,
   MNIST with mean 0 and variance 1, Glorot, SGD with rate 0.1, batches of 128, 3000 steps, s from
   {1/2, 1, 2, 4} times the rate. All parameters move, γ, β and biases included.

   Arms: none; batch norm; L1, L2 and L∞ in the place of the standard deviation (of x, not of x - μ,
   as the paper has it); layer norm; RMS norm; weight norm with the first batch's initialisation.
   Weight norm takes its gradient by v, g and b, and its steps along that. None has biases, RMS norm
   too, having no β; the output layer is linear in all of them. RMS and weight norm decide no claim
   and have three seeds only. None and batch norm with 13 layers once more with rate 0.05.

   Sensitivity: the same with s from 0.1 of the rate on; in random directions of the length s·|g|;
   and with the rate 0.05. In steps 500-3000 β is also taken for single s, from 0.01 to 4 times the
   rate.

   Windows are the steps 0-20, 20-200, 200-500, 500-1000 and 1000-3000; a number of a window is the
   median over its probes (or the 90th percentile), of one seed. Claims on ratios: the logarithm of
   batch norm / none is judged in each of the last three windows, over seeds 11 to 15, by the rule
   of stats.h, with the geometric mean as the magnitude; a claim of several parts (windows, depths,
   norms) is judged by stats_together. Written down before the run, with one difference: there each
   seed's worst window was judged. That asks as much of a claim that holds, but where nothing
   differs, one of three windows lies above 1 in up to seven seeds of eight, and "not reproduced"
   would be the rule; so now the windows are judged one by one:

       a, e    loss range: ratio < 1/3 (13 layers, 6 layers)
       b, f    gradient change: ratio < 1/2
       c, g    90th percentile of β: ratio < 1
       d       almost two orders of magnitude between the gradient changes: 50 in some window
       h, i    90th percentile of β: ratio < 1 also with s from 0.1 of the rate; with rate 0.05
       j, k    random directions: ratio of loss range < 1/3, of gradient change < 1/2
       l       the loss range is smaller from the beginning: in the first 20 steps
       m, n    gradients are shorter, |g|; the slope is smaller: ratio < 1
       o, p, q accuracy on the batches of steps 1 to 500 with L1, L2, L∞: at least that of batch
               norm less 0.02, with both depths
       r, s, t mean |μ(t) - μ(0)| of the inputs of ReLU with L1, L2, L∞: more than with none
       u       L1, L2 and L∞ fulfil a and b as well

   h, i and l are ours: the paper has one grid and one rate, and what it says of "the initial
   phases" need not mean the first 20 steps. Trial runs (1 seed) preceded: their numbers are with
   the claims. They let expect that d, h, k, l and m fail.

   Four pages come out: Figure 4; sensitivity and Figure 11; the family; histograms. */
#include "lab/experiment.h"
#include "lab/draw.h"
#include "lab/landscape.h"

/* ---- the arms -------------------------------------------------------------------------------- */

enum { WEIGHT_NORM = 100 }; /* beside enum nrm_norm: it is no layer but another set of parameters */

enum { FULL, ONLY_LANDSCAPE, TRACED, BARE }; /* what an arm records */

typedef struct setting {
    const char *id, *name;
    double seconds, lr;
    int layers, norm, p, role; /* layers: hidden ones */
} setting;

static const setting settings[] = {
    {"m13_none", "none", 14, 0.1, 13, NRM_NO_NORM, 0, FULL},
    {"m13_batch", "batch norm", 15, 0.1, 13, NRM_BATCH_NORM, 0, FULL},
    {"m13_l1", "L1", 15, 0.1, 13, NRM_LP_BATCH_NORM, NRM_L1, FULL},
    {"m13_l2", "L2", 15, 0.1, 13, NRM_LP_BATCH_NORM, NRM_L2, FULL},
    {"m13_linf", "L∞", 15, 0.1, 13, NRM_LP_BATCH_NORM, NRM_LINF, FULL},
    {"m13_layer", "layer norm", 17, 0.1, 13, NRM_LAYER_NORM, 0, FULL},
    {"m13_rms", "RMS norm", 16, 0.1, 13, NRM_RMS_NORM, 0, FULL},
    {"m13_weight", "weight norm", 16, 0.1, 13, WEIGHT_NORM, 0, FULL},
    {"m6_none", "none", 7, 0.1, 6, NRM_NO_NORM, 0, FULL},
    {"m6_batch", "batch norm", 8, 0.1, 6, NRM_BATCH_NORM, 0, FULL},
    {"m6_l1", "L1", 8, 0.1, 6, NRM_LP_BATCH_NORM, NRM_L1, FULL},
    {"m6_l2", "L2", 8, 0.1, 6, NRM_LP_BATCH_NORM, NRM_L2, FULL},
    {"m6_linf", "L∞", 8, 0.1, 6, NRM_LP_BATCH_NORM, NRM_LINF, FULL},
    {"m6_layer", "layer norm", 9, 0.1, 6, NRM_LAYER_NORM, 0, FULL},
    {"m6_rms", "RMS norm", 9, 0.1, 6, NRM_RMS_NORM, 0, FULL},
    {"m6_weight", "weight norm", 9, 0.1, 6, WEIGHT_NORM, 0, FULL},
    {"m13_none_005", "none, rate 0.05", 12, 0.05, 13, NRM_NO_NORM, 0, ONLY_LANDSCAPE},
    {"m13_batch_005", "batch norm, rate 0.05", 13, 0.05, 13, NRM_BATCH_NORM, 0, ONLY_LANDSCAPE},
    {"m13_none_trace", "none", 14, 0.1, 13, NRM_NO_NORM, 0, TRACED},
    {"m13_batch_trace", "batch norm", 15, 0.1, 13, NRM_BATCH_NORM, 0, TRACED},
    {"m13_l1_trace", "L1", 15, 0.1, 13, NRM_LP_BATCH_NORM, NRM_L1, TRACED},
    {"m13_l2_trace", "L2", 15, 0.1, 13, NRM_LP_BATCH_NORM, NRM_L2, TRACED},
    {"m13_linf_trace", "L∞", 15, 0.1, 13, NRM_LP_BATCH_NORM, NRM_LINF, TRACED},
    {"m13_batch_bare", "batch norm, no probes", 9, 0.1, 13, NRM_BATCH_NORM, 0, BARE},
};
enum { ARMS = sizeof settings / sizeof settings[0] };
/* Places in the table. */
enum { NONE = 0, BATCH, L1, L2, LINF, LAYER, RMS, WEIGHT, KINDS };
enum { M13 = 0, M6 = KINDS, SLOW = 2 * KINDS, TRACE = SLOW + 2, TRACES = 5 };
enum { BARE_BATCH = TRACE + TRACES };

/* ---- sizes ----------------------------------------------------------------------------------- */

enum { STEPS = 3000, PROBES = STEPS / 10, GRID = 4, DENSE = 8, WINDOWS = 5, FINE_WINDOWS = 13 };
enum { ACCURACIES = 27, PLACES = 3, BINS = 32, UNIT = 0 };

/* Of the learning rate: the paper's grid, and single steps from far below it. */
static const double grid[GRID] = {0.5, 1, 2, 4};
static const double dense[DENSE] = {0.01, 0.03, 0.1, 0.25, 0.5, 1, 2, 4};
static const double below = 0.1; /* what the finer grid has beside the paper's */

/* Where windows end; they begin where the one before ends. */
static const double window_end[WINDOWS] = {20, 200, 500, 1000, 3000};
static const double fine_end[FINE_WINDOWS] = {20,  50,   100,  200,  300,  400, 500,
                                              750, 1000, 1500, 2000, 2500, 3000};
static const double accuracy_end[ACCURACIES] = {
    25,  50,  75,  100, 125,  150,  175,  200,  225,  250,  275,  300,  400, 500,
    600, 700, 800, 900, 1000, 1250, 1500, 1750, 2000, 2250, 2500, 2750, 3000};

typedef struct extent { /* a run has `steps` steps, each standing for `scale` of the 3000 */
    size_t steps, scale, width, batch, fixed;
} extent;

static extent extent_of(int quick)
{
    const extent all = {STEPS, 1, 100, 128, 1000}, small = {60, 50, 16, 32, 64};
    return quick ? small : all;
}

/* ---- a network ------------------------------------------------------------------------------- */

static int model_make(landscape_model *m, const setting *k, const extent *e, uint64_t seed)
{
    nrm_mlp_layer layer[16];
    const int none = k->norm == NRM_NO_NORM || k->norm == WEIGHT_NORM;
    nrm_mlp_spec spec =
        training_plain(layer, (size_t)k->layers, e->width, NRM_RELU, none ? NRM_NO_NORM : k->norm);
    int l;
    for (l = 0; l < k->layers; l++) {
        layer[l].p = k->p;
        layer[l].bias = none || k->norm == NRM_RMS_NORM;
    }
    spec.max_batch = e->fixed > e->batch ? e->fixed : e->batch;
    spec.seed = seed;
    spec.lr = (nrm_real)k->lr;
    return landscape_model_make(m, &spec, k->norm == WEIGHT_NORM);
}

/* ---- statistics of units --------------------------------------------------------------------- */

enum { WIDEST = 100 };

typedef struct moments { /* of the inputs of ReLU, in the first, the middle and the last layer */
    size_t layers, rows;
    int place; /* NRM_AT_NORM, or NRM_AT_LINEAR where there is no norm */
    double mean[PLACES][WIDEST], var[PLACES][WIDEST];
    double *unit; /* [PLACES][rows] all values of one unit, or null */
} moments;

static size_t place_of(size_t layers, size_t which)
{
    return which == 0 ? 0 : which == 1 ? layers / 2 : layers - 1;
}

static void take_moments(void *context, const nrm_mlp_event *event)
{
    moments *m = (moments *)context;
    size_t k, i;
    if (event->gradient || event->place != m->place) return;
    for (k = 0; k < PLACES; k++) {
        if (event->layer != place_of(m->layers, k)) continue;
        landscape_columns(event, WIDEST, m->mean[k], m->var[k]);
        for (i = 0; m->unit && i < event->rows; i++)
            m->unit[k * m->rows + i] = (double)event->data[i * event->cols + UNIT];
    }
}

/* ---- the landscape --------------------------------------------------------------------------- */

static int view_grid(landscape_view *v, landscape_place *p)
{
    const double lr = (double)p->m->net->spec.lr;
    size_t i;
    int rc = NRM_OK;
    landscape_view_start(v);
    for (i = 0; i < GRID && rc >= 0; i++) rc = landscape_view_add(v, p, grid[i] * lr);
    return rc;
}

/* ---- what a run remembers -------------------------------------------------------------------- */

enum {
    RANGE,
    CHANGE,
    BETA,
    LENGTH,
    SLOPE,
    LOSS,
    BETA_FINE,
    RANDOM_RANGE,
    RANDOM_CHANGE,
    RANDOM_BETA,
    QUANTITIES
};
static const char *const quantity_name[QUANTITIES] = {
    "range", "change",    "beta",         "length",        "slope",
    "loss",  "beta_fine", "random_range", "random_change", "random_beta"};

typedef struct memory {
    double when[PROBES], value[QUANTITIES][PROBES], beta_at[DENSE][PROBES / 10];
    size_t probes, looks; /* of all; of single steps in 500-3000 */
    double correct[ACCURACIES], early;
    size_t batches[ACCURACIES], early_batches;
    moments first, now, traced;
    double drift[2][PLACES]; /* sums of the distances of mean and variance from the start */
    size_t drifts;
} memory;

typedef struct training {
    lab_run *run;
    const setting *kind;
    extent size;
    landscape_model m;
    landscape_place p;
    training_order order;
    memory *mem;
} training;

static training_set train_set, test_set; /* made once; the runs are forked with them */

static int prepare(const dataset *data, int quick)
{
    (void)quick;
    return training_load(&train_set, &test_set, data, 0, 0, DATASET_STD);
}

static double quantile_of(double *value, size_t n, double p)
{
    stats_sort(value, n);
    return stats_quantile(value, n, p);
}

/* A quantile of the probes from `from` to `to`. Not all quantities are taken at each probe. */
static double in_window(const memory *mem, int quantity, double from, double to, double p)
{
    double value[PROBES];
    size_t i, n = 0;
    for (i = 0; i < mem->probes; i++)
        if (mem->when[i] >= from && mem->when[i] < to && !isnan(mem->value[quantity][i]))
            value[n++] = mem->value[quantity][i];
    return quantile_of(value, n, p);
}

/* ---- probes ---------------------------------------------------------------------------------- */

static int at_multiple(double when, double of)
{
    return fmod(when, of) < 0.5;
}

/* Figure 11, and β for each step alone. */
static int probe_dense(training *t, double when)
{
    const double lr = t->kind->lr;
    const size_t trace = t->kind->role == TRACED;
    size_t i;
    int rc = NRM_OK;
    for (i = 0; i < DENSE && rc >= 0; i++) {
        double loss, change;
        rc = landscape_look(&t->p, dense[i] * lr, &loss, &change);
        if (when >= 500)
            t->mem->beta_at[i][t->mem->looks] =
                landscape_or_infinite(change / (dense[i] * lr * t->p.length));
        if (trace)
            lab_record_as(t->run, dense[i] * lr, lab_round(change, 5), "change_at/%.0f", when);
    }
    if (when >= 500) t->mem->looks++;
    return rc;
}

static int probe_random(training *t, size_t at)
{
    landscape_view v;
    int rc;
    landscape_turn(&t->p);
    rc = view_grid(&v, &t->p);
    t->mem->value[RANDOM_RANGE][at] = landscape_range(&v);
    t->mem->value[RANDOM_CHANGE][at] = v.most;
    t->mem->value[RANDOM_BETA][at] = v.beta;
    return rc;
}

static void trace(training *t, double when, const landscape_view *v)
{
    lab_record(t->run, "lowest", when, lab_round(v->lowest, 5));
    lab_record(t->run, "highest", when, lab_round(v->highest, 5));
    lab_record(t->run, "least", when, lab_round(v->least, 5));
    lab_record(t->run, "most", when, lab_round(v->most, 5));
    lab_record(t->run, "beta_trace", when, lab_round(v->beta, 5));
}

static int is_pair(const setting *k)
{
    return k->norm == NRM_NO_NORM || k->norm == NRM_BATCH_NORM;
}

/* What only the two arms have that the paper compares. */
static int probe_pair(training *t, double when, landscape_view *v, size_t at)
{
    int rc = landscape_view_add(v, &t->p, below * t->kind->lr);
    t->mem->value[BETA_FINE][at] = v->beta;
    if (rc >= 0 && at_multiple(when, 100) && (when >= 500 || t->kind->role == TRACED))
        rc = probe_dense(t, when);
    if (rc >= 0 && at_multiple(when, 50) && t->kind->role == FULL) rc = probe_random(t, at);
    return rc;
}

static int probe(training *t, double when)
{
    memory *mem = t->mem;
    const size_t at = mem->probes++;
    landscape_view v;
    int q, rc = landscape_arrive(&t->p);
    mem->when[at] = when;
    for (q = 0; q < QUANTITIES; q++) mem->value[q][at] = (double)NAN;
    if (rc >= 0) rc = view_grid(&v, &t->p);
    if (rc < 0) return rc;
    mem->value[RANGE][at] = landscape_range(&v);
    mem->value[CHANGE][at] = v.most;
    mem->value[BETA][at] = v.beta;
    mem->value[SLOPE][at] = v.slope;
    mem->value[LENGTH][at] = t->p.length;
    mem->value[LOSS][at] = (double)t->p.loss;
    if (t->kind->role == TRACED) trace(t, when, &v);
    return is_pair(t->kind) ? probe_pair(t, when, &v, at) : rc;
}

/* Of one unit, in three layers. */
static void note_histograms(training *t, double when)
{
    double edges[BINS + 1], density[BINS];
    size_t k, i;
    for (k = 0; k < PLACES; k++) {
        const double *unit = t->mem->now.unit + k * t->size.fixed;
        const stats_summary s = stats_describe(unit, t->size.fixed);
        for (i = 0; i <= BINS; i++)
            edges[i] = s.mean + (8.0 * (double)i / BINS - 4) * fmax(s.sd, 1e-3);
        (void)stats_histogram(unit, t->size.fixed, edges, BINS, density);
        for (i = 0; i < BINS; i++)
            lab_record_as(t->run, (edges[i] + edges[i + 1]) / 2, lab_round(density[i], 5),
                          "unit%lu/%.0f", (unsigned long)k + 1, when);
    }
}

/* Mean and variance of the inputs of ReLU on images that are not trained on. */
static int probe_drift(training *t, double when)
{
    memory *mem = t->mem;
    const moments *a = &mem->first, *b = &mem->now;
    size_t k, j;
    int rc;
    t->m.net->probe = take_moments;
    t->m.net->probe_context = &mem->now;
    rc = nrm_mlp_gradient(t->m.net, NULL, test_set.x, test_set.labels, t->size.fixed, NRM_TRAIN);
    t->m.net->probe = NULL;
    if (when < 1) mem->first = mem->now;
    for (k = 0; k < PLACES && when > 1; k++)
        for (j = 0; j < t->size.width; j++) {
            mem->drift[0][k] += fabs(b->mean[k][j] - a->mean[k][j]) / (double)t->size.width;
            mem->drift[1][k] += fabs(b->var[k][j] - a->var[k][j]) / (double)t->size.width;
        }
    if (when > 1) mem->drifts++;
    if (mem->now.unit && (when < 1 || fabs(when - 300) < 1 || when > STEPS - 1))
        note_histograms(t, when);
    return rc;
}

static void count_accuracy(training *t, double when)
{
    nrm_acc accuracy = 0;
    size_t i;
    (void)nrm_accuracy(&accuracy, t->m.net->logits, t->m.labels, t->m.rows, 10);
    for (i = 0; i + 1 < ACCURACIES && when >= accuracy_end[i]; i++) {
    }
    t->mem->correct[i] += (double)accuracy;
    t->mem->batches[i]++;
    if (when >= 500) return;
    t->mem->early += (double)accuracy;
    t->mem->early_batches++;
}

/* ---- a run ----------------------------------------------------------------------------------- */

static void next_batch(training *t)
{
    training_go_on(&t->order, &train_set, 1);
    t->m.x = t->order.x;
    t->m.labels = t->order.labels;
    t->m.rows = t->order.count;
}

static int train(training *t)
{
    const int role = t->kind->role, probed = role != BARE && (role != TRACED || is_pair(t->kind));
    const int drifts = role == FULL || role == TRACED;
    nrm_acc loss = 0;
    size_t step;
    int rc = NRM_OK;
    for (step = 0; step < t->size.steps && rc >= 0; step++) {
        const double when = (double)(step * t->size.scale);
        next_batch(t);
        if (step == 0 && t->m.weight_norm) rc = landscape_first_batch(&t->m);
        if (rc >= 0 && drifts && at_multiple(when, 100)) rc = probe_drift(t, when);
        if (rc >= 0 && probed && at_multiple(when, 10)) rc = probe(t, when);
        if (rc >= 0) rc = landscape_step(&t->m, &loss);
        count_accuracy(t, when);
        lab_progress(t->run, (double)step / (double)t->size.steps);
    }
    if (rc >= 0 && drifts) rc = probe_drift(t, STEPS);
    return rc;
}

static void note_windows(lab_run *run, const memory *mem)
{
    double from = 0;
    int q;
    size_t w;
    for (q = 0; q < QUANTITIES; q++)
        for (w = 0, from = 0; w < WINDOWS; from = window_end[w++]) {
            const double v = in_window(mem, q, from, window_end[w], 0.5);
            if (!isnan(v)) lab_record(run, quantity_name[q], window_end[w], lab_round(v, 5));
        }
    for (w = 0, from = 0; w < WINDOWS; from = window_end[w++]) {
        const double fine = in_window(mem, BETA_FINE, from, window_end[w], 0.9);
        lab_record(run, "beta_p90", window_end[w],
                   lab_round(in_window(mem, BETA, from, window_end[w], 0.9), 5));
        if (!isnan(fine)) lab_record(run, "beta_fine_p90", window_end[w], lab_round(fine, 5));
    }
}

static void note_curves(lab_run *run, const memory *mem)
{
    static const char *const name[3] = {"range_curve", "change_curve", "beta_curve"};
    double from;
    int q;
    size_t w;
    for (q = 0; q < 3; q++)
        for (w = 0, from = 0; w < FINE_WINDOWS; from = fine_end[w++])
            lab_record(run, name[q], fine_end[w],
                       lab_round(in_window(mem, q, from, fine_end[w], 0.5), 5));
}

static void note_rest(lab_run *run, memory *mem)
{
    size_t i;
    for (i = 0; i < ACCURACIES; i++)
        if (mem->batches[i] > 0)
            lab_record(run, "accuracy", accuracy_end[i],
                       lab_round(mem->correct[i] / (double)mem->batches[i], 5));
    lab_record(run, "accuracy_500", 500, lab_round(mem->early / (double)mem->early_batches, 5));
    for (i = 0; i < PLACES && mem->drifts > 0; i++) {
        lab_record(run, "drift_mean", (double)i + 1,
                   lab_round(mem->drift[0][i] / (double)mem->drifts, 5));
        lab_record(run, "drift_var", (double)i + 1,
                   lab_round(mem->drift[1][i] / (double)mem->drifts, 5));
    }
    for (i = 0; i < DENSE && mem->looks > 0; i++)
        lab_record(run, "beta_of", dense[i],
                   lab_round(quantile_of(mem->beta_at[i], mem->looks, 0.5), 5));
}

/* Of parameters and running statistics, in pieces that a record keeps all digits of. */
static void note_bits(lab_run *run, const nrm_mlp *net)
{
    uint64_t hash = files_hash(FILES_HASH_INIT, net->params, net->n_params * sizeof *net->params);
    size_t l;
    int i;
    for (l = 0; l + 1 < net->spec.layers; l++) {
        const nrm_running *s = &net->state[l].running;
        const size_t bytes = net->state[l].shape.width * sizeof *s->mean;
        if (s->mean) hash = files_hash(files_hash(hash, s->mean, bytes), s->var, bytes);
    }
    for (i = 0; i < 4; i++) lab_record(run, "bits", i, (double)(hash >> (16 * i) & 0xffff));
}

/* ---- checks that need no data ---------------------------------------------------------------- */

#define CURVATURE 3.0

/* L = CURVATURE·|θ|²/2: g = CURVATURE·θ, and β must be CURVATURE. */
static int evaluate_bowl(landscape_model *m, nrm_acc *loss)
{
    size_t i;
    *loss = 0;
    for (i = 0; i < m->n; i++) {
        m->grads[i] = (nrm_real)CURVATURE * m->params[i];
        *loss += (nrm_acc)CURVATURE / 2 * (nrm_acc)m->params[i] * (nrm_acc)m->params[i];
    }
    return NRM_OK;
}

static int note_bowl(lab_run *run, const landscape_model *like)
{
    landscape_model m = *like;
    nrm_real params[4] = {3, -1, 0.5f, 2}, grads[4];
    landscape_place p;
    landscape_view v;
    int rc;
    m.n = 4;
    m.params = params;
    m.grads = grads;
    m.evaluate = evaluate_bowl;
    if (landscape_place_make(&p, &m, run->seed)) return -1;
    rc = landscape_arrive(&p);
    if (rc >= 0) rc = view_grid(&v, &p);
    lab_record(run, "bowl_beta", 0, lab_round(v.beta, 5));
    lab_record(run, "bowl_range", 0, lab_round(landscape_range(&v) / (p.length * p.length), 5));
    lab_record(run, "bowl_change", 0, lab_round(v.most / p.length, 5));
    landscape_turn(&p);
    lab_record(run, "bowl_random", 0, lab_round(landscape_length(p.direction, m.n) / p.length, 5));
    landscape_place_free(&p);
    return rc;
}

/* Root mean square of what L∞ makes of Gaussian numbers: 0.37, as the largest of 128 is 2.7. */
static int note_linf(lab_run *run)
{
    enum { ROWS = 128, UNITS = 400 };
    nrm_real *x = (nrm_real *)malloc(2 * ROWS * UNITS * sizeof *x);
    nrm_acc mean[UNITS], scale[UNITS];
    nrm_rng rng;
    size_t i;
    int rc;
    if (!x) return -1;
    nrm_rng_seed(&rng, run->seed, TRAINING_STREAM_DATA + 17);
    for (i = 0; i < ROWS * UNITS; i++) x[i] = draw_normal(&rng);
    rc = nrm_lp_batchnorm_forward(x + ROWS * UNITS, mean, scale, NULL, x, NULL, NULL, NRM_LINF,
                                  NRM_TRAIN, (nrm_real)1e-5, ROWS, UNITS, 1);
    lab_record(run, "linf_rms", 0,
               lab_round(landscape_length(x + ROWS * UNITS, ROWS * UNITS) / sqrt(ROWS * UNITS), 5));
    free(x);
    return rc;
}

/* |v·dv|/(|v||dv|), the worst of the columns: the gradient must be orthogonal to v. */
static void note_radial(lab_run *run, landscape_model *m)
{
    double worst = 0;
    size_t l, at = 0, i, j;
    nrm_acc loss;
    (void)m->evaluate(m, &loss); /* v has moved since the last gradient */
    for (l = 0; l + 1 < m->net->spec.layers; l++) {
        landscape_weight part;
        size_t width;
        at = landscape_weight_of(m, l, at, &part);
        width = part.state->shape.width;
        for (j = 0; j < width; j++) {
            double dot = 0, vv = 0, dd = 0;
            for (i = 0; i < part.state->in; i++) {
                const double v = (double)part.v[i * width + j], d = (double)part.dv[i * width + j];
                dot += v * d;
                vv += v * v;
                dd += d * d;
            }
            if (dd > 0) worst = fmax(worst, fabs(dot) / sqrt(vv * dd));
        }
    }
    lab_record(run, "weight_radial", 0, lab_round(worst, 5));
}

/* ---- one run --------------------------------------------------------------------------------- */

static void note_all(training *t)
{
    const int role = t->kind->role;
    nrm_acc accuracy = 0;
    note_bits(t->run, t->m.net);
    if (role == FULL || role == ONLY_LANDSCAPE) note_windows(t->run, t->mem);
    if (role == FULL && (t->kind->norm <= NRM_LAYER_NORM)) note_curves(t->run, t->mem);
    if (role != FULL) return;
    note_rest(t->run, t->mem);
    if (nrm_mlp_eval(t->m.net, NULL, &accuracy, test_set.x, test_set.labels, test_set.n) >= 0)
        lab_record(t->run, "test", STEPS, lab_round((double)accuracy, 5));
    if (t->m.weight_norm) note_radial(t->run, &t->m);
}

static int start(training *t, lab_run *run)
{
    memset(t, 0, sizeof *t);
    t->run = run;
    t->kind = &settings[run->arm];
    t->size = extent_of(run->quick);
    t->mem = (memory *)calloc(1, sizeof *t->mem);
    if (!t->mem || model_make(&t->m, t->kind, &t->size, run->seed) ||
        landscape_place_make(&t->p, &t->m, run->seed) ||
        training_order_start(&t->order, train_set.n, t->size.batch, DATASET_PIXELS, run->seed))
        return -1;
    t->mem->now.layers = (size_t)t->kind->layers;
    t->mem->now.rows = t->size.fixed;
    t->mem->now.place = t->m.net->state[0].shape.norm == NRM_NO_NORM ? NRM_AT_LINEAR : NRM_AT_NORM;
    if (t->kind->role == TRACED)
        t->mem->now.unit = (double *)calloc(PLACES * t->size.fixed, sizeof(double));
    return t->kind->role == TRACED && !t->mem->now.unit ? -1 : 0;
}

static int run(lab_run *r)
{
    training t;
    int rc = start(&t, r) ? NRM_ENULL : NRM_OK;
    if (rc >= 0) rc = train(&t);
    if (rc >= 0) note_all(&t);
    if (rc >= 0 && t.kind->role == BARE) rc = note_bowl(r, &t.m);
    if (rc >= 0 && t.kind->role == BARE) rc = note_linf(r);
    if (rc < 0) fprintf(stderr, "16_landscape: %s\n", nrm_strerror(rc));
    if (t.mem) free(t.mem->now.unit);
    free(t.mem);
    landscape_place_free(&t.p);
    if (t.m.net) landscape_model_free(&t.m);
    training_order_free(&t.order);
    return rc < 0;
}

/* ---- verdicts -------------------------------------------------------------------------------- */

enum { LATE = 3 }; /* the windows from step 200 on: the last three */

typedef struct ratio { /* of two arms, in the late windows */
    stats_finding found, part[LATE];
    double mean[LATE]; /* geometric, over seeds */
    double most;       /* of them */
} ratio;

/* The logarithms of b/a in one window, seed by seed: the claim is that a is smaller. */
static stats_finding log_ratios(const lab_report *r, size_t a, size_t b, const char *series,
                                size_t window)
{
    double x[LAB_SEEDS_MAX], y[LAB_SEEDS_MAX];
    const size_t n = lab_values(r, a, series, window_end[window], x);
    size_t s;
    (void)lab_values(r, b, series, window_end[window], y);
    for (s = 0; s < n; s++) x[s] = log(x[s]);
    for (s = 0; s < n; s++) y[s] = log(y[s]);
    return stats_judge_pairs(x, y, n, -1, 1);
}

/* a/b of a series, judged window by window. `bound`: what the ratio is to be below. */
static ratio late_ratio(const lab_report *r, size_t a, size_t b, const char *series, double bound)
{
    ratio found;
    size_t w;
    found.most = 0;
    for (w = 0; w < LATE; w++) {
        found.part[w] = log_ratios(r, a, b, series, w + WINDOWS - LATE);
        found.mean[w] = exp(-found.part[w].mean);
        found.part[w].size_met = found.mean[w] < bound;
        found.most = stats_larger(found.most, found.mean[w]);
    }
    found.found = stats_together(found.part, LATE);
    return found;
}

static const char *windows_text(lab_report *r, size_t a, size_t b, const char *series)
{
    return lab_format(r, "%.3g, %.3g, %.3g against %.3g, %.3g, %.3g", lab_mean(r, a, series, 500),
                      lab_mean(r, a, series, 1000), lab_mean(r, a, series, 3000),
                      lab_mean(r, b, series, 500), lab_mean(r, b, series, 1000),
                      lab_mean(r, b, series, 3000));
}

static void judge_ratio(lab_report *r, const lab_claim *claim, size_t a, size_t b,
                        const char *series, double bound, const char *remark)
{
    const ratio q = late_ratio(r, a, b, series, bound);
    const char *word[LATE];
    size_t w;
    for (w = 0; w < LATE; w++) word[w] = stats_verdict_name(stats_word(&q.part[w], STATS_LEVEL));
    if (!*remark && (word[0] != word[1] || word[1] != word[2]))
        remark = lab_format(r, "window by window: %s, %s, %s", word[0], word[1], word[2]);
    lab_verdict(r, claim, q.found, remark,
                "%s in steps 200-500, 500-1000, 1000-3000; ratios %.2f, %.2f, %.2f",
                windows_text(r, a, b, series), q.mean[0], q.mean[1], q.mean[2]);
}

#define SANTURKAR "Santurkar et al. 2018, "
#define LATE_TEXT "in each of 200-500, 500-1000, 1000-3000 (geometric mean of seeds)"

/* clang-format off */
#define LP_ACCURACY(id, name)                                                                      \
    {id, name " in the place of the standard deviation trains as fast",                            \
     SANTURKAR "Fig. 5 and 12; Chinese notes on batch norm",                                       \
     "VGG: training accuracy of all three like batch norm's, or above",                            \
     "accuracy on the batches of steps 1 to 500: at least that of batch norm less 0.02, with "     \
     "both depths", "none", LAB_TRAINING, LAB_SETTING}
#define LP_DRIFT(id, name)                                                                         \
    {id, "With " name " the inputs of ReLU drift further than without a norm",                     \
     SANTURKAR "Fig. 6 and 14", "their distributions shift more than without a norm",              \
     "mean |μ(t) - μ(0)| over time, units and three layers: more, with both depths", "none",       \
     LAB_TRAINING, LAB_SETTING}
static const lab_claim claims[] = {
    {"16a", "Along the gradient the loss varies less with batch norm (13 layers)",
     SANTURKAR "Fig. 4a; three of the tutorials",
     "VGG: the loss reaches 10 without, and stays within the curve's width with batch norm",
     "median loss range below 1/3 of that without, " LATE_TEXT,
     "trial runs (1 seed), 200-500: 0.054 against 3.24", LAB_TRAINING, LAB_SETTING},
    {"16b", "The gradient changes less along itself with batch norm (13 layers)",
     SANTURKAR "Fig. 4b; three of the tutorials", "VGG: up to 250 without, at most 40 with",
     "median of the largest change below 1/2 of that without, " LATE_TEXT,
     "trial runs (1 seed), 200-500: 2.5 against 15.5", LAB_TRAINING, LAB_SETTING},
    {"16c", "The effective β is better with batch norm (13 layers)",
     SANTURKAR "Fig. 4c; three of the tutorials", "VGG: 5 to 45 without, 17 to 20 with",
     "90th percentile of β below that without, " LATE_TEXT,
     "trial runs (1 seed), 200-500: 20 against 39; medians 17.4 against 24.4", LAB_TRAINING,
     LAB_SETTING},
    {"16e", "Along the gradient the loss varies less with batch norm (6 layers)",
     SANTURKAR "Fig. 4a", "as 16a", "as 16a", "trial runs (1 seed): none with batch norm",
     LAB_TRAINING, LAB_SETTING},
    {"16f", "The gradient changes less along itself with batch norm (6 layers)",
     SANTURKAR "Fig. 4b", "as 16b", "as 16b", "none", LAB_TRAINING, LAB_SETTING},
    {"16g", "The effective β is better with batch norm (6 layers)", SANTURKAR "Fig. 4c", "as 16c",
     "as 16c", "none", LAB_TRAINING, LAB_SETTING},
    {"16d", "The gradient changes are almost two orders of magnitude apart (13 layers)",
     SANTURKAR "Fig. 4b",
     "VGG: up to 250 against at most 40 in the figure; the text speaks of two orders",
     "none / batch norm above 50 in one of the five windows (geometric mean of seeds)",
     "trial runs (1 seed), 200-500: a factor of 6", LAB_TRAINING, LAB_SETTING},
    {"16h", "The order of the effective β does not hang on the smallest step that is looked at",
     "ours, on " SANTURKAR "Fig. 4c", "not looked at: s from half the rate on",
     "as 16c, with s from 0.1 of the rate on", "trial runs (1 seed): 50 against 28 to 37, so no",
     LAB_TRAINING, LAB_NEWS},
    {"16i", "The effective β is better with batch norm also at rate 0.05",
     "ours, on " SANTURKAR "Fig. 4c", "rate 0.1 only", "as 16c, with rate 0.05",
     "trial runs (1 seed): batch norm about 35, where 1/s is 40", LAB_TRAINING, LAB_SETTING},
    {"16j", "In random directions too the loss varies less with batch norm", SANTURKAR "Section 3",
     "similar in other directions, random ones included", "as 16a, in random directions",
     "trial runs (1 seed): 0.0026, 0.0012, 0.0009 against 0.0039, 0.0012, 0.0007", LAB_TRAINING,
     LAB_SETTING},
    {"16k", "In random directions too the gradient changes less with batch norm",
     SANTURKAR "Section 3", "similar in other directions, random ones included",
     "as 16b, in random directions",
     "trial runs (1 seed): 0.89, 0.55, 0.35 against 0.28, 0.32, 0.19, so no", LAB_TRAINING,
     LAB_SETTING},
    {"16l", "The difference in loss range is there from the beginning of the training",
     "ours, on " SANTURKAR "Section 3.2", "\"especially in the initial phases of training\"",
     "median loss range in steps 0-20 smaller with batch norm",
     "trial runs (1 seed): 0.33 against 0.007, so no", LAB_TRAINING, LAB_NEWS},
    {"16m", "Gradients are shorter with batch norm", SANTURKAR "Section 3; two of the tutorials",
     "\"the magnitudes of the gradients are smaller too\"",
     "median |g| below that without, " LATE_TEXT,
     "trial runs (1 seed): 2.02, 1.70, 1.47 against 1.97, 1.71, 1.35, so no", LAB_TRAINING,
     LAB_SETTING},
    {"16n", "The loss changes at a smaller rate with batch norm",
     SANTURKAR "Section 3; two of the tutorials", "\"the loss changes at a smaller rate\"",
     "median of max |change of loss|/distance below that without, " LATE_TEXT,
     "trial runs (1 seed): 1.08, 0.93, 0.67 against 1.73, 1.15, 0.80", LAB_TRAINING, LAB_SETTING},
    LP_ACCURACY("16o", "L1"), LP_ACCURACY("16p", "L2"), LP_ACCURACY("16q", "L∞"),
    LP_DRIFT("16r", "L1"), LP_DRIFT("16s", "L2"), LP_DRIFT("16t", "L∞"),
    {"16u", "L1, L2 and L∞ smooth the landscape as batch norm does (13 layers)",
     SANTURKAR "Section 3.3; Chinese notes on batch norm",
     "the same benefits as batch norm; figures of it for the linear network only",
     "each of them fulfils the criteria of 16a and 16b",
     "trial runs (1 seed), 200-500: range 0.055, 0.044, 0.041, change 3.0, 2.5, 2.5", LAB_TRAINING,
     LAB_SETTING}};
/* clang-format on */

static void judge_main(lab_report *r)
{
    judge_ratio(r, lab_find(r, "16a"), M13 + BATCH, M13 + NONE, "range", 1.0 / 3, "");
    judge_ratio(r, lab_find(r, "16b"), M13 + BATCH, M13 + NONE, "change", 0.5, "");
    judge_ratio(r, lab_find(r, "16c"), M13 + BATCH, M13 + NONE, "beta_p90", 1,
                "on this grid 1/s of the smallest step is 20, and so is 2/rate: see 16h");
    judge_ratio(r, lab_find(r, "16e"), M6 + BATCH, M6 + NONE, "range", 1.0 / 3, "");
    judge_ratio(r, lab_find(r, "16f"), M6 + BATCH, M6 + NONE, "change", 0.5, "");
    judge_ratio(r, lab_find(r, "16g"), M6 + BATCH, M6 + NONE, "beta_p90", 1, "");
}

static void judge_magnitude(lab_report *r)
{
    stats_finding best = log_ratios(r, M13 + BATCH, M13 + NONE, "change", 0);
    size_t w, at = 0;
    for (w = 1; w < WINDOWS; w++) {
        const stats_finding pairs = log_ratios(r, M13 + BATCH, M13 + NONE, "change", w);
        if (!(pairs.mean > best.mean)) continue;
        best = pairs;
        at = w;
    }
    best.size_met = exp(best.mean) > 50;
    lab_verdict(r, lab_find(r, "16d"), best, "",
                "at most %.1f times, in the window that ends at step %g", exp(best.mean),
                window_end[at]);
}

static void judge_sensitivity(lab_report *r)
{
    judge_ratio(r, lab_find(r, "16h"), M13 + BATCH, M13 + NONE, "beta_fine_p90", 1,
                lab_format(r, "medians of 500-1000: %.3g against %.3g",
                           lab_mean(r, M13 + BATCH, "beta_fine", 1000),
                           lab_mean(r, M13 + NONE, "beta_fine", 1000)));
    judge_ratio(r, lab_find(r, "16i"), SLOW + 1, SLOW, "beta_p90", 1,
                lab_format(r, "loss range %s, gradient change %s",
                           windows_text(r, SLOW + 1, SLOW, "range"),
                           windows_text(r, SLOW + 1, SLOW, "change")));
    judge_ratio(r, lab_find(r, "16j"), M13 + BATCH, M13 + NONE, "random_range", 1.0 / 3, "");
    judge_ratio(r, lab_find(r, "16k"), M13 + BATCH, M13 + NONE, "random_change", 0.5, "");
    lab_verdict(r, lab_find(r, "16l"), lab_compare(r, M13 + BATCH, M13 + NONE, "range", 20, -1, 1),
                "", "%s against %s", lab_text(r, M13 + BATCH, "range", 20, 3),
                lab_text(r, M13 + NONE, "range", 20, 3));
}

static void judge_lengths(lab_report *r)
{
    judge_ratio(r, lab_find(r, "16m"), M13 + BATCH, M13 + NONE, "length", 1, "");
    judge_ratio(r, lab_find(r, "16n"), M13 + BATCH, M13 + NONE, "slope", 1, "");
}

static void judge_accuracy(lab_report *r, const lab_claim *claim, size_t kind)
{
    stats_finding part[2];
    size_t net, s;
    for (net = 0; net < 2; net++) {
        double a[LAB_SEEDS_MAX], b[LAB_SEEDS_MAX];
        const size_t n = lab_values(r, net * M6 + kind, "accuracy_500", 500, a);
        (void)lab_values(r, net * M6 + BATCH, "accuracy_500", 500, b);
        for (s = 0; s < n; s++) b[s] -= 0.02;
        part[net] = stats_judge_pairs(a, b, n, 1, 1);
    }
    lab_verdict(r, claim, stats_together(part, 2), "",
                "13 layers: %s against %s; 6 layers: %s against %s",
                lab_text(r, M13 + kind, "accuracy_500", 500, 3),
                lab_text(r, M13 + BATCH, "accuracy_500", 500, 3),
                lab_text(r, M6 + kind, "accuracy_500", 500, 3),
                lab_text(r, M6 + BATCH, "accuracy_500", 500, 3));
}

/* The mean of the three layers, of each seed. */
static size_t drift_of(const lab_report *r, size_t arm, const char *series, double *value)
{
    size_t s, k, n = lab_seeds(r, arm);
    for (s = 0; s < n; s++)
        for (k = 0, value[s] = 0; k < PLACES; k++)
            value[s] += lab_at(r, arm, s, series, (double)k + 1) / PLACES;
    return n;
}

static void judge_drift(lab_report *r, const lab_claim *claim, size_t kind)
{
    double mean[2][2], variance[2][2];
    stats_finding part[2];
    size_t net;
    for (net = 0; net < 2; net++) {
        double a[LAB_SEEDS_MAX], b[LAB_SEEDS_MAX];
        size_t n = drift_of(r, net * M6 + kind, "drift_var", a);
        (void)drift_of(r, net * M6 + NONE, "drift_var", b);
        variance[net][0] = stats_mean(a, n);
        variance[net][1] = stats_mean(b, n);
        n = drift_of(r, net * M6 + kind, "drift_mean", a);
        (void)drift_of(r, net * M6 + NONE, "drift_mean", b);
        mean[net][0] = stats_mean(a, n);
        mean[net][1] = stats_mean(b, n);
        part[net] = stats_judge_pairs(a, b, n, 1, 1);
    }
    lab_verdict(r, claim, stats_together(part, 2),
                lab_format(r, "variances, in no criterion: %.2f against %.2f, %.2f against %.2f",
                           variance[0][0], variance[0][1], variance[1][0], variance[1][1]),
                "13 layers: %.2f against %.2f; 6 layers: %.2f against %.2f", mean[0][0], mean[0][1],
                mean[1][0], mean[1][1]);
}

static void judge_smooth_family(lab_report *r)
{
    stats_finding part[6];
    double range = 0, change = 0;
    size_t i;
    for (i = 0; i < 3; i++) {
        const ratio a = late_ratio(r, M13 + L1 + i, M13 + NONE, "range", 1.0 / 3);
        const ratio b = late_ratio(r, M13 + L1 + i, M13 + NONE, "change", 0.5);
        part[2 * i] = a.found;
        part[2 * i + 1] = b.found;
        range = stats_larger(range, a.most);
        change = stats_larger(change, b.most);
    }
    lab_verdict(r, lab_find(r, "16u"), stats_together(part, 6), "",
                "largest ratios of the three: loss range %.2g, change %.2g", range, change);
}

static void judge_family(lab_report *r)
{
    size_t i;
    for (i = 0; i < 3; i++) judge_accuracy(r, lab_find(r, "16o") + i, L1 + i);
    for (i = 0; i < 3; i++) judge_drift(r, lab_find(r, "16r") + i, L1 + i);
    judge_smooth_family(r);
}

static int near_to(double a, double b, double tolerance)
{
    return fabs(a - b) <= tolerance * fabs(b);
}

static void check_all(lab_report *r)
{
    const double beta = lab_at(r, BARE_BATCH, 0, "bowl_beta", 0);
    const double rms = lab_at(r, BARE_BATCH, 0, "linf_rms", 0);
    const double turned = lab_at(r, BARE_BATCH, 0, "bowl_random", 0);
    /* L(θ - s·g) = C/2·|θ|²·(1 - C·s)², and |θ| = |g|/C */
    const double range =
        (pow(1 - CURVATURE / 20, 2) - pow(1 - CURVATURE * 0.4, 2)) / (2 * CURVATURE);
    const double found = lab_at(r, BARE_BATCH, 0, "bowl_range", 0);
    double radial = 0;
    size_t s, i, same = 0, kind, runs = 0, diverged = 0;
    for (i = 0; i < 4; i++) {
        const double bare = lab_at(r, BARE_BATCH, 0, "bits", (double)i);
        same += near_to(bare, lab_at(r, M13 + BATCH, 0, "bits", (double)i), 0) &&
                near_to(bare, lab_at(r, TRACE + 1, 0, "bits", (double)i), 0);
    }
    for (kind = M13; kind <= M6; kind += M6)
        for (s = 0; s < lab_seeds(r, kind + WEIGHT); s++, runs++) {
            const double v = lab_at(r, kind + WEIGHT, s, "weight_radial", 0);
            if (v <= 0) diverged++; /* no unit whose gradient is a number */
            radial = stats_larger(radial, v);
        }
    lab_check(r, same == 4, "probes leave no trace in parameters and running statistics",
              "%lu of 4 parts of the hash equal, with few, many and no probes",
              (unsigned long)same);
    lab_check(r, near_to(beta, CURVATURE, 1e-4), "β of a quadratic bowl is its curvature",
              "%.5f, expected %.5f", beta, CURVATURE);
    lab_check(r, near_to(found, range, 1e-3), "loss range of the bowl", "%.5f, expected %.5f",
              found, range);
    lab_check(r, near_to(turned, 1, 1e-4), "random directions are as long as g", "%.6f", turned);
    lab_check(r, fabs(rms - 0.37) < 0.01, "L∞ of 128 Gaussian numbers has the rms 0.37", "%.4f",
              rms);
    lab_check(r, radial < 1e-3 && diverged < runs, "weight norm: the gradient is orthogonal to v",
              "cosine %.1e in %lu runs; %lu more have diverged", radial,
              (unsigned long)(runs - diverged), (unsigned long)diverged);
}

/* ---- pages ----------------------------------------------------------------------------------- */

static plot_style style_of(size_t kind)
{
    static const char *const id[KINDS] = {"none", "batch", "l1",  "l2",
                                          "linf", "layer", "rms", "weight"};
    return lab_style(id[kind]);
}

/* What lies between the smallest and the largest value over the steps s: of one run. */
static void draw_trace(lab_report *r, plot_panel *p, const char *low, const char *high, size_t kind)
{
    const lab_series a = lab_get(r, TRACE + kind, 0, low), b = lab_get(r, TRACE + kind, 0, high);
    plot_style s = style_of(kind);
    s.alpha = kind == NONE ? 0.45 : 0.75;
    plot_band(p, settings[kind].name, a.x, a.y, b.y, a.n < b.n ? a.n : b.n, s);
}

static plot_panel *step_panel(plot_figure *f, int row, int col, const char *heading,
                              const char *axis, int scale)
{
    plot_panel *p = plot_add(f, row, col, 1, 1);
    plot_heading(p, heading);
    plot_axis_x(p, "step", PLOT_LINEAR);
    plot_axis_y(p, axis, scale);
    return p;
}

static void draw_paper_row(lab_report *r, plot_figure *f)
{
    plot_panel *a = step_panel(f, 0, 0, "loss range, one run", "loss at θ - s·g", PLOT_LOG10);
    plot_panel *b =
        step_panel(f, 0, 1, "gradient change, one run", "|∇L(θ - s·g) - g|", PLOT_LOG10);
    plot_panel *c =
        step_panel(f, 0, 2, "effective β, one run", "max |∇L(θ - s·g) - g| / (s·|g|)", PLOT_LINEAR);
    size_t kind;
    for (kind = NONE; kind <= BATCH; kind++) {
        const lab_series beta = lab_get(r, TRACE + kind, 0, "beta_trace");
        plot_style s = style_of(kind);
        draw_trace(r, a, "lowest", "highest", kind);
        draw_trace(r, b, "least", "most", kind);
        s.dash = PLOT_SOLID;
        s.width = 0.5;
        plot_line(c, settings[kind].name, beta.x, beta.y, beta.n, s);
    }
    plot_hline(a, 10, "VGG, none: to 10", plot_thin(PLOT_INK));
    plot_hline(b, 250, "VGG, none: to 250", plot_thin(PLOT_INK));
    plot_hline(b, 40, "VGG, batch norm: to 40", plot_thin(PLOT_INK));
    plot_hline(c, 45, "VGG, none: 5 to 45", plot_thin(PLOT_INK));
    plot_range_y(a, 0.002, 50);
    plot_range_y(b, 0.02, 1000);
    plot_range_y(c, 0, 60);
    plot_range_x(a, 0, STEPS);
    plot_range_x(b, 0, STEPS);
    plot_range_x(c, 0, STEPS);
}

/* Medians of windows, drawn at their middles: geometric mean of the seeds, and a band of the
   standard deviation of the logarithm, as befits logarithmic axes. */
static void draw_windows(lab_report *r, plot_panel *p, size_t net, const char *series)
{
    static const size_t kinds[3] = {NONE, LAYER, BATCH};
    size_t w, k, s;
    for (k = 0; k < 3; k++) {
        double x[FINE_WINDOWS], mean[FINE_WINDOWS], low[FINE_WINDOWS], high[FINE_WINDOWS];
        const plot_style style = style_of(kinds[k]);
        double from = 0;
        for (w = 0; w < FINE_WINDOWS; from = fine_end[w++]) {
            double v[LAB_SEEDS_MAX];
            const size_t n = lab_values(r, net + kinds[k], series, fine_end[w], v);
            stats_summary d;
            for (s = 0; s < n; s++) v[s] = log(v[s]);
            d = stats_describe(v, n);
            x[w] = (from + fine_end[w]) / 2;
            mean[w] = exp(d.mean);
            low[w] = exp(d.min);
            high[w] = exp(d.max);
        }
        plot_band(p, settings[kinds[k]].name, x, low, high, FINE_WINDOWS, style);
        plot_line(p, settings[kinds[k]].name, x, mean, FINE_WINDOWS, style);
    }
}

static plot_panel *window_panel(lab_report *r, plot_figure *f, int row, int col,
                                const char *heading, const char *axis, const char *series)
{
    plot_panel *p = step_panel(f, row, col, heading, axis, PLOT_LOG10);
    plot_axis_x(p, "step", PLOT_LOG10);
    draw_windows(r, p, row == 1 ? M13 : M6, series);
    plot_range_x(p, 10, STEPS);
    return p;
}

static int draw_figure_4(lab_report *r)
{
    plot_figure *f =
        lab_figure(r, "Along the gradient loss and gradient vary less with batch norm", 1600, 1520);
    static const char *const depth[2] = {"13 layers", "6 layers"};
    const double heights[3] = {1.15, 1, 1};
    int row;
    draw_paper_row(r, f);
    for (row = 1; row < 3; row++) {
        plot_panel *p;
        (void)window_panel(r, f, row, 0, lab_format(r, "loss range, %s", depth[row - 1]),
                           "max - min over s", "range_curve");
        (void)window_panel(r, f, row, 1, lab_format(r, "gradient change, %s", depth[row - 1]),
                           "max over s", "change_curve");
        p = window_panel(r, f, row, 2, lab_format(r, "effective β, %s", depth[row - 1]),
                         "max over s", "beta_curve");
        plot_hline(p, 20, "", plot_thin(PLOT_INK));
        plot_text_in(p, 0.97, 0.05, "line: 2/rate = 1/least s", PLOT_RIGHT | PLOT_ABOVE, PLOT_INK);
    }
    plot_heights(f, heights, 3);
    plot_shared_legend(f);
    return lab_save(r, f, NULL);
}

/* Figure 11: a line for each hundredth step, its colour the step. */
static plot_panel *draw_figure_11(lab_report *r, plot_figure *f, size_t kind, int col)
{
    plot_panel *p = plot_add(f, 0, col, 1, 1);
    int when;
    plot_heading(p, kind == NONE ? "no norm, 13 layers, one run" : "batch norm, the same");
    plot_axis_x(p, "step size s", PLOT_LINEAR);
    plot_range_x(p, 0, 0.42);
    plot_axis_y(p, "|∇L(θ - s·g) - g|", PLOT_LOG10);
    for (when = 100; when < STEPS; when += 100) {
        const char *name = lab_format(r, "change_at/%d", when);
        const lab_series c = lab_get(r, TRACE + kind, 0, name);
        const size_t from = c.n > GRID ? c.n - GRID : 0; /* the paper's steps */
        plot_style s = plot_solid(plot_map(PLOT_SEQUENTIAL, when / (double)STEPS));
        const int named = when == 100 || when % 700 == 0;
        s.width = 0.8;
        plot_line(p, named ? lab_format(r, "step %d", when) : NULL, c.x + from, c.y + from,
                  c.n - from, s);
    }
    plot_legend(p, kind == NONE ? PLOT_LEGEND_NONE : PLOT_LEGEND_RIGHT);
    return p;
}

static void draw_beta_of(lab_report *r, plot_figure *f)
{
    plot_panel *p = plot_add(f, 1, 0, 1, 1);
    const double s[2] = {0.001, 0.4}, inverse[2] = {1000, 2.5};
    size_t net, kind, i;
    plot_heading(p, "β of one step size alone, steps 500-3000");
    plot_axis_x(p, "step size s", PLOT_LOG10);
    plot_axis_y(p, "|∇L(θ - s·g) - g| / (s·|g|)", PLOT_LOG10);
    for (net = M13; net <= M6; net += M6)
        for (kind = NONE; kind <= BATCH; kind++) {
            lab_curve c = lab_over_seeds(r, net + kind, "beta_of");
            plot_style style = style_of(kind);
            for (i = 0; i < c.n; i++) c.x[i] *= 0.1;
            style = plot_with_marker(style, net == M13 ? PLOT_CIRCLE : PLOT_RING);
            plot_band(p, NULL, c.x, c.low, c.high, c.n, style);
            plot_line(p,
                      lab_format(r, "%s, %s layers", settings[kind].name, net == M13 ? "13" : "6"),
                      c.x, c.mean, c.n, style);
        }
    plot_line(p, NULL, s, inverse, 2, plot_thin(PLOT_INK));
    plot_text(p, 0.0075, 150, "1/s", PLOT_LEFT, PLOT_INK);
    plot_range_y(p, 0.4, 200);
    plot_vline(p, 0.05, "", plot_thin(PLOT_INK));
    plot_text(p, 0.054, 150, "paper's s", PLOT_LEFT, PLOT_INK);
    plot_legend(p, PLOT_LEGEND_BOTTOM_LEFT);
}

/* Ratios batch norm / none of all variants, with the band of the seeds. */
typedef struct variant {
    const char *name, *range, *change, *beta;
    size_t batch, none;
} variant;

static void draw_ratios(lab_report *r, plot_figure *f)
{
    static const variant variants[4] = {
        {"paper's grid", "range", "change", "beta", M13 + BATCH, M13 + NONE},
        {"s from 0.1 rate", NULL, NULL, "beta_fine", M13 + BATCH, M13 + NONE},
        {"rate 0.05", "range", "change", "beta", SLOW + 1, SLOW},
        {"random direction", "random_range", "random_change", "random_beta", M13 + BATCH,
         M13 + NONE}};
    static const double at[4] = {1, 2, 3, 4};
    static const char *const name[4] = {"random direction", "rate 0.05", "s from 0.1 rate",
                                        "paper's grid"};
    static const char *const quantity[3] = {"loss range", "gradient change", "effective β"};
    plot_panel *p = plot_add(f, 1, 1, 1, 1);
    size_t v, q;
    plot_heading(p, "batch norm / none, steps 500-1000, 13 layers");
    plot_axis_x(p, "ratio of the medians", PLOT_LOG10);
    plot_axis_y(p, "", PLOT_LINEAR);
    plot_ticks_y(p, at, name, 4);
    plot_range_y(p, 0.4, 4.6);
    plot_vline(p, 1, "", plot_thin(PLOT_INK));
    for (q = 0; q < 3; q++) {
        double x[4], y[4], lo[4], hi[4];
        plot_style s = plot_look((int)q);
        size_t n = 0;
        for (v = 0; v < 4; v++) {
            const variant *k = &variants[v];
            const char *series = q == 0 ? k->range : q == 1 ? k->change : k->beta;
            double a[LAB_SEEDS_MAX], b[LAB_SEEDS_MAX];
            stats_summary d;
            size_t i, seeds;
            if (!series) continue;
            seeds = lab_values(r, k->batch, series, 1000, a);
            (void)lab_values(r, k->none, series, 1000, b);
            for (i = 0; i < seeds; i++) a[i] = log(a[i] / b[i]);
            d = stats_describe(a, seeds);
            x[n] = exp(d.mean);
            lo[n] = exp(d.min);
            hi[n] = exp(d.max);
            y[n++] = 4 - (double)v + 0.2 * (1 - (double)q);
        }
        for (v = 0; v < n; v++) {
            const double line[2] = {lo[v], hi[v]}, level[2] = {y[v], y[v]};
            plot_line(p, NULL, line, level, 2, plot_solid(s.color));
        }
        plot_scatter(p, quantity[q], x, y, n, plot_marked(s.color, (int)q + PLOT_CIRCLE));
    }
}

static int draw_sensitivity(lab_report *r)
{
    plot_figure *f = lab_figure(
        r, "Small steps, random directions: there batch norm is not the smoother one", 1600, 1320);
    plot_panel *a = draw_figure_11(r, f, NONE, 0), *b = draw_figure_11(r, f, BATCH, 1);
    plot_share_y(a, b);
    draw_beta_of(r, f);
    draw_ratios(r, f);
    return lab_save(r, f, "sensitivity");
}

static void draw_accuracy(lab_report *r, plot_figure *f, size_t net, int col)
{
    plot_panel *p = plot_add(f, 0, col, 1, 6);
    size_t kind;
    plot_heading(p, net == M13 ? "training accuracy, 13 layers" : "training accuracy, 6 layers");
    plot_axis_x(p, "step", PLOT_LOG10);
    plot_axis_y(p, "accuracy on mini-batches", PLOT_LINEAR);
    for (kind = NONE; kind <= LINF; kind++)
        lab_plot(r, p, net + kind, "accuracy", settings[kind].name, style_of(kind));
    plot_range_y(p, 0, 1);
    plot_range_x(p, 25, STEPS);
    plot_legend(p, PLOT_LEGEND_BOTTOM_RIGHT);
}

enum { DOT_RANGE, DOT_CHANGE, DOT_BETA, DOT_DRIFT, DOTS };

static size_t dot_values(const lab_report *r, size_t arm, int what, double *value)
{
    static const char *const series[DOT_DRIFT] = {"range", "change", "beta_p90"};
    if (what == DOT_DRIFT) return drift_of(r, arm, "drift_mean", value);
    return lab_values(r, arm, series[what], 1000, value);
}

/* An arm is a row, with a dot for each depth. */
static void draw_dots(lab_report *r, plot_figure *f, int what)
{
    static const char *const heading[DOTS] = {"loss range", "gradient change", "90 % of β",
                                              "drift of means"};
    static const double at[KINDS] = {8, 7, 6, 5, 4, 3, 2, 1};
    const char *names[KINDS];
    plot_panel *p = plot_add(f, 1, 3 * what, 1, 3);
    size_t kind, net;
    for (kind = 0; kind < KINDS; kind++) names[kind] = what == 0 ? settings[kind].name : "";
    plot_heading(p, heading[what]);
    plot_axis_x(p, what == DOT_DRIFT ? "|μ(t) - μ(0)|" : "steps 500-1000",
                what == DOT_BETA || what == DOT_DRIFT ? PLOT_LINEAR : PLOT_LOG10);
    plot_axis_y(p, "", PLOT_LINEAR);
    plot_ticks_y(p, at, names, KINDS);
    plot_range_y(p, 0.4, 8.6);
    for (kind = 0; kind < KINDS; kind++)
        for (net = M13; net <= M6; net += M6) {
            double value[LAB_SEEDS_MAX];
            const size_t n = dot_values(r, net + kind, what, value);
            const stats_summary s = stats_describe(value, n);
            const double y = at[kind] + (net == M13 ? 0.14 : -0.14);
            const double line[2] = {s.min, s.max}, level[2] = {y, y};
            const plot_color color = net == M13 ? PLOT_INK : PLOT_GREY;
            stats_sort(value, n);
            if (!isfinite(value[n / 2]))
                plot_text_in(p, net == M13 ? 0.04 : 0.52, (at[kind] - 0.4) / 8.2, "diverged",
                             PLOT_LEFT, color);
            plot_line(p, NULL, line, level, 2, plot_solid(color));
            plot_scatter(p, net == M13 ? "13 layers" : "6 layers", &value[n / 2], &y, 1,
                         plot_marked(color, net == M13 ? PLOT_CIRCLE : PLOT_RING));
        }
    plot_grid(p, PLOT_GRID_BOTH);
    plot_legend(p, what == 0 ? PLOT_LEGEND_ABOVE : PLOT_LEGEND_NONE);
}

static int draw_family(lab_report *r)
{
    plot_figure *f =
        lab_figure(r, "L1, L2 and L∞ smooth the landscape as batch norm does, and keep means still",
                   1600, 1320);
    int what;
    draw_accuracy(r, f, M13, 0);
    draw_accuracy(r, f, M6, 6);
    for (what = 0; what < DOTS; what++) draw_dots(r, f, what);
    return lab_save(r, f, "family");
}

/* A density whose highest point is 1: they differ a hundredfold. */
static void draw_relative(plot_panel *p, const char *label, lab_series c, plot_style style)
{
    double y[BINS], top = 0;
    size_t i;
    for (i = 0; i < c.n && i < BINS; i++) top = fmax(top, c.y[i]);
    for (i = 0; i < c.n && i < BINS; i++) y[i] = c.y[i] / top;
    plot_line(p, label, c.x, y, c.n < BINS ? c.n : BINS, style);
}

/* Five ticks for these inputs, the outer ones at 1, 2 or 5 times a power of ten. */
static void symmetric_ticks(lab_report *r, plot_panel *p, double reach)
{
    static const double nice[3] = {5, 2, 1};
    const double unit = pow(10, floor(log10(reach)));
    double at[5], step = unit / 2;
    const char *label[5];
    int i;
    for (i = 2; i >= 0; i--)
        if (nice[i] * unit <= reach) step = nice[i] * unit / 2;
    for (i = 0; i < 5; i++) {
        at[i] = (i - 2) * step;
        label[i] = i % 2 == 0 ? lab_format(r, "%s%g", at[i] < 0 ? "−" : "", fabs(at[i])) : "";
    }
    plot_ticks_x(p, at, label, 5);
}

/* Inputs of ReLU, of one unit, in three layers; three moments of the training over each other. */
static int draw_histograms(lab_report *r)
{
    static const char *const depth[PLACES] = {"first layer", "layer 7", "last layer"};
    static const int when[3] = {0, 300, STEPS};
    const plot_style style[3] = {plot_dotted(PLOT_INK), plot_dashed(PLOT_ORANGE),
                                 plot_solid(PLOT_BLUE)};
    plot_figure *f = lab_figure(
        r, "The input of one unit's ReLU: densities, highest point 1 (one run)", 1760, 1080);
    size_t kind, k, i;
    lab_subtitle(r, f, "784-100x13-10, ReLU, Glorot, SGD with rate 0.1, batch 128, 3000 steps", 1);
    for (k = 0; k < PLACES; k++)
        for (kind = NONE; kind <= LINF; kind++) {
            plot_panel *p = plot_add(f, (int)k, (int)kind, 1, 1);
            double reach = 0;
            plot_heading(p, k == 0 ? settings[kind].name : "");
            plot_axis_x(p, k + 1 == PLACES ? "input" : "", PLOT_LINEAR);
            plot_axis_y(p, kind == NONE ? lab_format(r, "%s", depth[k]) : "", PLOT_LINEAR);
            for (i = 0; i < 3; i++) {
                const char *name = lab_format(r, "unit%zu/%d", k + 1, when[i]);
                const lab_series c = lab_get(r, TRACE + kind, 0, name);
                draw_relative(p, lab_format(r, "step %d", when[i]), c, style[i]);
                if (c.n > 0) reach = fmax(reach, fmin(-c.x[0], c.x[c.n - 1]));
            }
            if (reach > 0) symmetric_ticks(r, p, reach);
        }
    plot_shared_legend(f);
    return lab_save(r, f, "histograms");
}

static int report(lab_report *r)
{
    check_all(r);
    judge_main(r);
    judge_magnitude(r);
    judge_sensitivity(r);
    judge_lengths(r);
    judge_family(r);
    return draw_figure_4(r) || draw_sensitivity(r) || draw_family(r) || draw_histograms(r);
}

int main(int argc, char **argv)
{
    static lab_arm arms[ARMS];
    /* clang-format off */
    static const lab_program program = {
        "16_landscape", NRM_VERSION, "Is the loss smoother along the gradient with a norm?",
        "784-100x13-10 and 784-100x6-10, ReLU, Glorot, SGD with rate 0.1, batch 128, 3000 steps; "
        "s = 1/2, 1, 2, 4 times the rate",
        1, LAB_USES_DATA, arms, ARMS, prepare, run, report, claims, LAB_COUNT(claims)};
    /* clang-format on */
    size_t i;
    for (i = 0; i < ARMS; i++) {
        arms[i].id = settings[i].id;
        arms[i].name = settings[i].name;
        arms[i].seconds = settings[i].seconds;
        if (settings[i].norm == NRM_RMS_NORM || settings[i].norm == WEIGHT_NORM) arms[i].seeds = 3;
        if (settings[i].role == TRACED || settings[i].role == BARE) arms[i].seeds = 1;
    }
    return lab_main(&program, argc, argv);
}
