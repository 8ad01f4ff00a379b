/* 16_landscape: is the loss smoother along the gradient where there is a norm? (README.md)

   L1, L2 and L∞ in the place of the standard deviation are those of x, not of x - μ, as the paper
   has it. Weight norm takes its gradient by v, g and b, and its steps along that. None has biases,
   RMS norm too, having no β; the output layer is linear in all of them. Probes see the norms in
   train mode, and nothing of them enters the training. */
#include "lab/experiment.h"
#include "lab/draw.h"
#include "lab/landscape.h"

/* ---- the arms -------------------------------------------------------------------------------- */

enum { NONE, BATCH, L1, L2, LINF, LAYER, RMS, WEIGHT, KINDS };

/* Places in the table of arms: with 13 hidden layers, with 6, and two with 13 and rate 0.05. */
enum { M13 = 0, M6 = KINDS, SLOW = 2 * KINDS, ARMS = SLOW + 2 };

/* clang-format off */
static const struct {
    const char *id;
    int norm, p; /* weight norm is no layer, but another set of parameters */
} kinds[KINDS] = {
    {"none", NRM_NO_NORM}, {"batch", NRM_BATCH_NORM}, {"l1", NRM_LP_BATCH_NORM, NRM_L1},
    {"l2", NRM_LP_BATCH_NORM, NRM_L2}, {"linf", NRM_LP_BATCH_NORM, NRM_LINF},
    {"layer", NRM_LAYER_NORM}, {"rms", NRM_RMS_NORM}, {"weight", NRM_NO_NORM}};

#define EACH_NORM(m, s)                                                                            \
    {m "_none", "none", s - 1}, {m "_batch", "batch norm", s}, {m "_l1", "L1", s},                 \
    {m "_l2", "L2", s}, {m "_linf", "L∞", s}, {m "_layer", "layer norm", s + 2},                   \
    {m "_rms", "RMS norm", s + 1, 3}, {m "_weight", "weight norm", s + 1, 3}
static const lab_arm arms[ARMS] = {
    EACH_NORM("m13", 15), EACH_NORM("m6", 8),
    {"m13_none_005", "none, rate 0.05", 12}, {"m13_batch_005", "batch norm, rate 0.05", 13}};
/* clang-format on */

static size_t kind_of(size_t arm)
{
    return arm % KINDS;
}

static double rate_of(size_t arm)
{
    return arm < SLOW ? 0.1 : 0.05;
}

/* Of these arms the first seed also records single probes, and histograms of a unit's inputs. */
static int is_traced(const lab_run *r)
{
    return r->first && r->arm <= M13 + LINF;
}

/* ---- sizes ----------------------------------------------------------------------------------- */

enum { STEPS = 3000, GRID = 4, DENSE = 8, PLACES = 3, BINS = 32, WIDEST = 100, FIXED = 1000 };

/* Of the learning rate: the paper's grid, and single steps from far below it. */
static const double grid[GRID] = {0.5, 1, 2, 4};
static const double dense[DENSE] = {0.01, 0.03, 0.1, 0.25, 0.5, 1, 2, 4};
static const double below = 0.1; /* what the finer grid has beside the paper's */

/* Where windows of steps end; they begin where the one before ends. What is found in one is noted
   at `place` of it: its end, or the middle for curves. */
typedef struct windows {
    double place;
    size_t n, end[27];
} windows;
static const windows of_claims = {1, 5, {20, 200, 500, 1000, STEPS}};
static const windows of_curves = {
    0.5, 13, {20, 50, 100, 200, 300, 400, 500, 750, 1000, 1500, 2000, 2500, STEPS}};
static const windows of_accuracies = {
    1, 27, {25,  50,  75,  100, 125,  150,  175,  200,  225,  250,  275,  300,  400,  500,
            600, 700, 800, 900, 1000, 1250, 1500, 1750, 2000, 2250, 2500, 2750, STEPS}};
static const windows of_beginning = {1, 1, {500}};

/* ---- a training ------------------------------------------------------------------------------ */

enum { RANGE, CHANGE, BETA, LENGTH, SLOPE, BETA_FINE, RANDOM_RANGE, RANDOM_CHANGE, RANDOM_BETA };
enum { ACCURACY = RANDOM_BETA + 1, BETA_AT, DRIFT_MEAN = BETA_AT + DENSE };
enum { DRIFT_VAR = DRIFT_MEAN + PLACES, QUANTITIES = DRIFT_VAR + PLACES };

#define UNSEEN -1

typedef struct training { /* what a run measures, and with what */
    lab_run *run;
    landscape_model m;
    landscape_place p;
    double seen[QUANTITIES][STEPS + 1]; /* at each step: 0 or more, or UNSEEN */
    /* of the inputs of ReLU before the first step, in the first, the middle and the last layer */
    double mean[PLACES][WIDEST], var[PLACES][WIDEST];
} training;

LAB_SETS(train_set, test_set, 0, 0, DATASET_STD);

static size_t test_images(const lab_run *r)
{
    return r->quick ? 64 : FIXED;
}

static nrm_mlp_spec network(trainer *t)
{
    const size_t arm = t->run->arm, hidden = arm >= M6 && arm < SLOW ? 6 : 13;
    const int norm = kinds[kind_of(arm)].norm;
    nrm_mlp_spec spec = training_plain(t->layer, hidden, t->run->quick ? 16 : 100, NRM_RELU, norm);
    size_t l;
    for (l = 0; l < hidden; l++) {
        t->layer[l].p = kinds[kind_of(arm)].p;
        t->layer[l].bias = norm == NRM_NO_NORM || norm == NRM_RMS_NORM;
    }
    spec.max_batch = test_images(t->run);
    spec.lr = (nrm_real)rate_of(arm);
    return spec;
}

static void release(training *k)
{
    landscape_place_free(&k->p);
    landscape_model_free(&k->m);
}

static int begin(trainer *t)
{
    training *k = (training *)t->plan->context;
    int q, i;
    release(k); /* of the training before */
    k->run = t->run;
    for (q = 0; q < QUANTITIES; q++)
        for (i = 0; i <= STEPS; i++) k->seen[q][i] = UNSEEN;
    if (landscape_model_make(&k->m, t->net, kind_of(t->run->arm) == WEIGHT)) return -1;
    return landscape_place_make(&k->p, &k->m, t->run->seed);
}

static void note(lab_run *run, const char *series, double x, double y)
{
    lab_record(run, series, x, lab_round(y, 5));
}

/* ---- probes ---------------------------------------------------------------------------------- */

static int view_grid(landscape_view *v, landscape_place *p)
{
    const double lr = (double)p->m->net->spec.lr;
    size_t i;
    int rc = NRM_OK;
    landscape_view_start(v);
    for (i = 0; i < GRID && rc >= 0; i++) rc = landscape_view_add(v, p, grid[i] * lr);
    return rc;
}

/* Three quantities: `first` is RANGE or RANDOM_RANGE, change and β come after it. */
static void see_view(training *t, int first, size_t when, const landscape_view *v)
{
    t->seen[first][when] = landscape_range(v);
    t->seen[first + 1][when] = v->most;
    t->seen[first + 2][when] = v->beta;
}

/* β for each step alone and, for Figure 11, the change at the paper's steps, the last ones. */
static int probe_dense(training *t, size_t when)
{
    int i, rc = NRM_OK;
    for (i = 0; i < DENSE && rc >= 0; i++) {
        const double s = dense[i] * rate_of(t->run->arm);
        double loss, change;
        rc = landscape_look(&t->p, s, &loss, &change);
        t->seen[BETA_AT + i][when] = landscape_or_infinite(change / (s * t->p.length));
        if (i >= DENSE - GRID && is_traced(t->run))
            lab_record_as(t->run, s, lab_round(change, 5), "change_at/%zu", when);
    }
    return rc;
}

static int probe(training *t, size_t when)
{
    const size_t arm = t->run->arm;
    const int traced = is_traced(t->run) && kind_of(arm) <= BATCH;
    landscape_view v;
    int rc = landscape_arrive(&t->p);
    if (rc >= 0) rc = view_grid(&v, &t->p);
    if (rc < 0) return rc;
    see_view(t, RANGE, when, &v);
    t->seen[SLOPE][when] = v.slope;
    t->seen[LENGTH][when] = t->p.length;
    if (traced) {
        note(t->run, "lowest", (double)when, v.lowest);
        note(t->run, "highest", (double)when, v.highest);
        note(t->run, "least", (double)when, v.least);
        note(t->run, "most", (double)when, v.most);
        note(t->run, "beta_trace", (double)when, v.beta);
    }
    if (kind_of(arm) > BATCH) return rc; /* the rest is of the two that the paper compares */
    rc = landscape_view_add(&v, &t->p, below * rate_of(arm));
    t->seen[BETA_FINE][when] = v.beta;
    if (rc >= 0 && when % 100 == 0 && (when >= 500 || traced)) rc = probe_dense(t, when);
    if (rc < 0 || when % 50 != 0 || arm >= SLOW) return rc;
    landscape_turn(&t->p);
    rc = view_grid(&v, &t->p);
    see_view(t, RANDOM_RANGE, when, &v);
    return rc;
}

/* The histogram of the inputs of ReLU in the first unit of a layer. */
static void note_histogram(training *t, const nrm_mlp_state *s, size_t when)
{
    double unit[FIXED], edges[BINS + 1], density[BINS];
    const size_t n = test_images(t->run);
    stats_summary of;
    size_t i;
    for (i = 0; i < n; i++) unit[i] = (double)s->norm_out[i * s->shape.width];
    of = stats_describe(unit, n);
    for (i = 0; i <= BINS; i++)
        edges[i] = of.mean + (8.0 * (double)i / BINS - 4) * fmax(of.sd, 1e-3);
    (void)stats_histogram(unit, n, edges, BINS, density);
    for (i = 0; i < BINS; i++)
        lab_record_as(t->run, (edges[i] + edges[i + 1]) / 2, lab_round(density[i], 5), "unit2/%zu",
                      when);
}

/* How far mean and variance of the inputs of ReLU, on images that are not trained on, are from what
   they were before the first step. */
static int probe_drift(training *t, size_t when)
{
    nrm_mlp *net = t->m.net;
    const size_t hidden = net->spec.layers - 1, width = net->state[0].shape.width;
    const size_t place[PLACES] = {0, hidden / 2, hidden - 1}, n = test_images(t->run);
    const int rc = nrm_mlp_gradient(net, NULL, test_set.x, test_set.labels, n, NRM_TRAIN);
    size_t k, j;
    for (k = 0; k < PLACES; k++) {
        double mean[WIDEST], var[WIDEST], of_mean = 0, of_var = 0;
        const nrm_real *inputs = net->state[place[k]].norm_out;
        if (when == 0) {
            landscape_columns(inputs, n, width, t->mean[k], t->var[k]);
            continue;
        }
        landscape_columns(inputs, n, width, mean, var);
        for (j = 0; j < width; j++) {
            of_mean += fabs(mean[j] - t->mean[k][j]) / (double)width;
            of_var += fabs(var[j] - t->var[k][j]) / (double)width;
        }
        t->seen[DRIFT_MEAN + k][when] = of_mean;
        t->seen[DRIFT_VAR + k][when] = of_var;
    }
    if (is_traced(t->run) && (when == 0 || when == 300 || when == STEPS))
        note_histogram(t, &net->state[place[1]], when);
    return rc;
}

/* Probes see the batch of the step that they stand before. Each step of a quick run stands for
   several. */
static int learn(trainer *t, nrm_acc *loss)
{
    training *k = (training *)t->plan->context;
    const size_t when = t->step * (STEPS / t->plan->steps);
    nrm_acc accuracy = 0;
    int rc = NRM_OK;
    landscape_batch(&k->m, &t->order);
    if (t->step == 0 && k->m.weight_norm) rc = landscape_first_batch(&k->m);
    if (rc >= 0 && t->looked_at && t->run->arm < SLOW && when % 100 == 0) rc = probe_drift(k, when);
    if (rc >= 0 && t->looked_at && when % 10 == 0) rc = probe(k, when);
    if (rc >= 0) rc = landscape_step(&k->m, loss);
    (void)nrm_accuracy(&accuracy, t->net->logits, k->m.labels, k->m.rows, DATASET_CLASSES);
    if (t->looked_at) k->seen[ACCURACY][when] = (double)accuracy;
    return rc;
}

/* ---- what it leaves behind ------------------------------------------------------------------- */

enum { OF_ALL = -1 };

/* Of what was seen of a quantity from one step to before another: the p-quantile of those that are
   numbers, or (OF_ALL) the mean. */
static double sum_up(const training *t, int quantity, size_t from, size_t to, double p)
{
    double value[STEPS + 1], sum = 0;
    size_t i, n = 0;
    for (i = from; i < to; i++) {
        const double seen = t->seen[quantity][i];
        if (seen < 0 || (p >= 0 && isnan(seen))) continue;
        value[n++] = seen;
        sum += seen;
    }
    if (p < 0) return sum / (double)n;
    stats_sort(value, n);
    return stats_quantile(value, n, p);
}

/* clang-format off */
static const struct {
    const char *series;
    int quantity;
    double p;
    const windows *in;
} kept[] = {
    {"range", RANGE, 0.5, &of_claims}, {"change", CHANGE, 0.5, &of_claims},
    {"beta", BETA, 0.5, &of_claims}, {"length", LENGTH, 0.5, &of_claims},
    {"slope", SLOPE, 0.5, &of_claims}, {"beta_fine", BETA_FINE, 0.5, &of_claims},
    {"random_range", RANDOM_RANGE, 0.5, &of_claims},
    {"random_change", RANDOM_CHANGE, 0.5, &of_claims},
    {"random_beta", RANDOM_BETA, 0.5, &of_claims},
    {"beta_p90", BETA, 0.9, &of_claims}, {"beta_fine_p90", BETA_FINE, 0.9, &of_claims},
    {"range_curve", RANGE, 0.5, &of_curves}, {"change_curve", CHANGE, 0.5, &of_curves},
    {"beta_curve", BETA, 0.5, &of_curves}, {"accuracy", ACCURACY, OF_ALL, &of_accuracies},
    {"accuracy_500", ACCURACY, OF_ALL, &of_beginning}};
/* clang-format on */

static void note_kept(const training *t)
{
    const size_t arm = t->run->arm, kind = kind_of(arm);
    const int drawn = kind == NONE || kind == BATCH || kind == LAYER;
    size_t i, w;
    for (i = 0; i < LAB_COUNT(kept); i++) {
        const windows *in = kept[i].in;
        if ((arm >= SLOW && in != &of_claims) || (!drawn && in == &of_curves)) continue;
        for (w = 0; w < in->n; w++) {
            const size_t from = w ? in->end[w - 1] : 0, to = in->end[w];
            const double found = sum_up(t, kept[i].quantity, from, to, kept[i].p);
            const double at = (double)from + in->place * (double)(to - from);
            if (!isnan(found)) note(t->run, kept[i].series, at, found);
        }
    }
}

static int end(trainer *of)
{
    training *t = (training *)of->plan->context;
    int i;
    if (t->run->arm < SLOW && probe_drift(t, STEPS) < 0) return -1;
    note_kept(t);
    if (t->run->arm >= SLOW) return 0;
    for (i = 0; i < PLACES; i++) {
        note(t->run, "drift_mean", i + 1, sum_up(t, DRIFT_MEAN + i, 0, STEPS + 1, OF_ALL));
        note(t->run, "drift_var", i + 1, sum_up(t, DRIFT_VAR + i, 0, STEPS + 1, OF_ALL));
    }
    for (i = 0; i < DENSE && kind_of(t->run->arm) <= BATCH; i++)
        note(t->run, "beta_of", dense[i], sum_up(t, BETA_AT + i, 500, STEPS, 0.5));
    note(t->run, "test", STEPS, trainer_accuracy(of, &test_set, NULL));
    return 0;
}

static int run(lab_run *r)
{
    static training k;
    const trainer_plan plan =
        trainer_plan_of(.network = network, .begin = begin, .learn = learn, .end = end,
                        .set = &train_set, .batch = r->quick ? 32 : 128,
                        .steps = r->quick ? 60 : STEPS, .context = &k);
    const int failed = trainer_run(r, &plan);
    release(&k);
    return failed;
}

/* ---- verdicts -------------------------------------------------------------------------------- */

enum { LATE = 3 }; /* the windows from step 200 on: the last three */

/* The logarithms of b/a in a window, seed by seed: the claim is that a is smaller. */
static stats_finding log_ratio(const lab_report *r, size_t a, size_t b, const char *series,
                               size_t window)
{
    const double end = (double)of_claims.end[window];
    return lab_less(lab_map(lab_all(r, a, series, end), log),
                    lab_map(lab_all(r, b, series, end), log), 1);
}

/* The same in the late windows, where the geometric mean of a/b is to be below `bound`. Returns the
   largest of them. */
static double late_ratios(const lab_report *r, size_t a, size_t b, const char *series, double bound,
                          stats_finding part[LATE])
{
    double most = 0;
    size_t w;
    for (w = 0; w < LATE; w++) {
        part[w] = log_ratio(r, a, b, series, w + of_claims.n - LATE);
        part[w].size_met = exp(-part[w].mean) < bound;
        most = stats_larger(most, exp(-part[w].mean));
    }
    return most;
}

static const char *late_means(lab_report *r, size_t arm, const char *series)
{
    return lab_format(r, "%.3g, %.3g, %.3g", lab_mean(r, arm, series, 500),
                      lab_mean(r, arm, series, 1000), lab_mean(r, arm, series, 3000));
}

/* What no criterion asks for: with s from 0.1 of the rate on, and at rate 0.05. */
static const char *beside(lab_report *r, const lab_claim *c)
{
    if (strcmp(c->series, "beta_fine_p90") == 0)
        return lab_format(r, "medians of 500-1000: %.3g against %.3g",
                          lab_mean(r, BATCH, "beta_fine", 1000),
                          lab_mean(r, NONE, "beta_fine", 1000));
    if (c->a == SLOW)
        return lab_format(r, "loss range %s against %s, gradient change %s against %s",
                          late_means(r, SLOW + 1, "range"), late_means(r, SLOW, "range"),
                          late_means(r, SLOW + 1, "change"), late_means(r, SLOW, "change"));
    return c->remark;
}

/* The arm after c->a is the same with batch norm. */
static void judge_ratio(lab_report *r, const lab_claim *c)
{
    const char *remark = beside(r, c), *word[LATE];
    stats_finding part[LATE];
    size_t w;
    (void)late_ratios(r, c->a + 1, c->a, c->series, c->limit, part);
    for (w = 0; w < LATE; w++) word[w] = stats_verdict_name(stats_word(&part[w], STATS_LEVEL));
    if (!remark && (word[0] != word[1] || word[1] != word[2]))
        remark = lab_format(r, "window by window: %s, %s, %s", word[0], word[1], word[2]);
    lab_verdict(r, c, stats_together(part, LATE), remark ? remark : "",
                "%s against %s in steps 200-500, 500-1000, 1000-3000; ratios %.2f, %.2f, %.2f",
                late_means(r, c->a + 1, c->series), late_means(r, c->a, c->series),
                exp(-part[0].mean), exp(-part[1].mean), exp(-part[2].mean));
}

static void judge_magnitude(lab_report *r, const lab_claim *c)
{
    stats_finding best = log_ratio(r, BATCH, NONE, c->series, 0);
    size_t w, at = 0;
    for (w = 1; w < of_claims.n; w++) {
        const stats_finding pairs = log_ratio(r, BATCH, NONE, c->series, w);
        if (!(pairs.mean > best.mean)) continue;
        best = pairs;
        at = w;
    }
    best.size_met = exp(best.mean) > c->limit;
    lab_verdict(r, c, best, "", "at most %.1f times, in the window that ends at step %zu",
                exp(best.mean), of_claims.end[at]);
}

static void judge_family(lab_report *r, const lab_claim *c)
{
    stats_finding part[6 * LATE];
    double range = 0, change = 0;
    size_t i;
    for (i = 0; i < 3; i++) {
        stats_finding *of = &part[2 * LATE * i];
        range = stats_larger(range, late_ratios(r, L1 + i, NONE, "range", 1.0 / 3, of));
        change = stats_larger(change, late_ratios(r, L1 + i, NONE, "change", 0.5, of + LATE));
    }
    lab_verdict(r, c, stats_together(part, 6 * LATE), "",
                "largest ratios of the three: loss range %.2g, change %.2g", range, change);
}

#define SANTURKAR "Santurkar et al. 2018, "
#define LATE_TEXT "in each of 200-500, 500-1000, 1000-3000 (geometric mean of seeds)"
#define RATIO(none, of, bound) .judge = judge_ratio, .a = none, .series = of, .limit = bound

/* clang-format off */
#define LP_ACCURACY(id, name, kind)                                                                \
    {id, name " in the place of the standard deviation trains as fast",                            \
     SANTURKAR "Fig. 5 and 12; Chinese notes on batch norm",                                       \
     "VGG: training accuracy of all three like batch norm's, or above",                            \
     "accuracy on the batches of steps 1 to 500: at least that of batch norm less 0.02, with "     \
     "both depths", "none",                                                                        \
     LAB_PARTS({LAB_MORE, kind, BATCH, "accuracy_500", 500, .tolerance = 0.02},                    \
               {LAB_MORE, M6 + kind, M6 + BATCH, "accuracy_500", 500, .tolerance = 0.02}),         \
     .decimals = 3, .say = "13 layers: $1 against $2; 6 layers: $3 against $4"}
#define LP_DRIFT(id, name, kind)                                                                   \
    {id, "With " name " the inputs of ReLU drift further than without a norm",                     \
     SANTURKAR "Fig. 6 and 14", "their distributions shift more than without a norm",              \
     "mean |μ(t) - μ(0)| over time, units and three layers: more, with both depths", "none",       \
     LAB_PARTS({LAB_MORE, kind, NONE, "drift_mean", 1, .to = PLACES},                              \
               {LAB_MORE, M6 + kind, M6, "drift_mean", 1, .to = PLACES},                           \
               {.a = kind, .series = "drift_var", .at = 1, .to = PLACES},                          \
               {.a = NONE, .series = "drift_var", .at = 1, .to = PLACES},                          \
               {.a = M6 + kind, .series = "drift_var", .at = 1, .to = PLACES},                     \
               {.a = M6, .series = "drift_var", .at = 1, .to = PLACES}), .decimals = 2,            \
     .say = "13 layers: #1 against #2; 6 layers: #3 against #4",                                   \
     .remark = "variances, in no criterion: #5 against #6, #7 against #8"}
static const lab_claim claims[] = {
    {"16a", "Along the gradient the loss varies less with batch norm (13 layers)",
     SANTURKAR "Fig. 4a; three of the tutorials",
     "VGG: the loss reaches 10 without, and stays within the curve's width with batch norm",
     "median loss range below 1/3 of that without, " LATE_TEXT,
     "trial runs (1 seed), 200-500: 0.054 against 3.24", RATIO(M13, "range", 1.0 / 3)},
    {"16b", "The gradient changes less along itself with batch norm (13 layers)",
     SANTURKAR "Fig. 4b; three of the tutorials", "VGG: up to 250 without, at most 40 with",
     "median of the largest change below 1/2 of that without, " LATE_TEXT,
     "trial runs (1 seed), 200-500: 2.5 against 15.5", RATIO(M13, "change", 0.5)},
    {"16c", "The effective β is better with batch norm (13 layers)",
     SANTURKAR "Fig. 4c; three of the tutorials", "VGG: 5 to 45 without, 17 to 20 with",
     "90th percentile of β below that without, " LATE_TEXT,
     "trial runs (1 seed), 200-500: 20 against 39; medians 17.4 against 24.4",
     RATIO(M13, "beta_p90", 1),
     .remark = "on this grid 1/s of the smallest step is 20, and so is 2/rate: see 16h"},
    {"16e", "Along the gradient the loss varies less with batch norm (6 layers)",
     SANTURKAR "Fig. 4a", "as 16a", "as 16a", "trial runs (1 seed): none with batch norm",
     RATIO(M6, "range", 1.0 / 3)},
    {"16f", "The gradient changes less along itself with batch norm (6 layers)",
     SANTURKAR "Fig. 4b", "as 16b", "as 16b", "none", RATIO(M6, "change", 0.5)},
    {"16g", "The effective β is better with batch norm (6 layers)", SANTURKAR "Fig. 4c", "as 16c",
     "as 16c", "none", RATIO(M6, "beta_p90", 1)},
    {"16d", "The gradient changes are almost two orders of magnitude apart (13 layers)",
     SANTURKAR "Fig. 4b",
     "VGG: up to 250 against at most 40 in the figure; the text speaks of two orders",
     "none / batch norm above 50 in one of the five windows (geometric mean of seeds)",
     "trial runs (1 seed), 200-500: a factor of 6",
     .judge = judge_magnitude, .series = "change", .limit = 50},
    {"16h", "The order of the effective β does not hang on the smallest step that is looked at",
     "ours, on " SANTURKAR "Fig. 4c", "not looked at: s from half the rate on",
     "as 16c, with s from 0.1 of the rate on", "trial runs (1 seed): 50 against 28 to 37, so no",
     LAB_TRAINING, LAB_NEWS, RATIO(M13, "beta_fine_p90", 1)},
    {"16i", "The effective β is better with batch norm also at rate 0.05",
     "ours, on " SANTURKAR "Fig. 4c", "rate 0.1 only", "as 16c, with rate 0.05",
     "trial runs (1 seed): batch norm about 35, where 1/s is 40", RATIO(SLOW, "beta_p90", 1)},
    {"16j", "In random directions too the loss varies less with batch norm", SANTURKAR "Section 3",
     "similar in other directions, random ones included", "as 16a, in random directions",
     "trial runs (1 seed): 0.0026, 0.0012, 0.0009 against 0.0039, 0.0012, 0.0007",
     RATIO(M13, "random_range", 1.0 / 3)},
    {"16k", "In random directions too the gradient changes less with batch norm",
     SANTURKAR "Section 3", "similar in other directions, random ones included",
     "as 16b, in random directions",
     "trial runs (1 seed): 0.89, 0.55, 0.35 against 0.28, 0.32, 0.19, so no",
     RATIO(M13, "random_change", 0.5)},
    {"16l", "The difference in loss range is there from the beginning of the training",
     "ours, on " SANTURKAR "Section 3.2", "\"especially in the initial phases of training\"",
     "median loss range in steps 0-20 smaller with batch norm",
     "trial runs (1 seed): 0.33 against 0.007, so no", LAB_TRAINING, LAB_NEWS, .test = LAB_LESS,
     .a = M13 + BATCH, .b = M13 + NONE, .series = "range", .at = 20, .decimals = 3},
    {"16m", "Gradients are shorter with batch norm", SANTURKAR "Section 3; two of the tutorials",
     "\"the magnitudes of the gradients are smaller too\"",
     "median |g| below that without, " LATE_TEXT,
     "trial runs (1 seed): 2.02, 1.70, 1.47 against 1.97, 1.71, 1.35, so no",
     RATIO(M13, "length", 1)},
    {"16n", "The loss changes at a smaller rate with batch norm",
     SANTURKAR "Section 3; two of the tutorials", "\"the loss changes at a smaller rate\"",
     "median of max |change of loss|/distance below that without, " LATE_TEXT,
     "trial runs (1 seed): 1.08, 0.93, 0.67 against 1.73, 1.15, 0.80", RATIO(M13, "slope", 1)},
    LP_ACCURACY("16o", "L1", L1), LP_ACCURACY("16p", "L2", L2), LP_ACCURACY("16q", "L∞", LINF),
    LP_DRIFT("16r", "L1", L1), LP_DRIFT("16s", "L2", L2), LP_DRIFT("16t", "L∞", LINF),
    {"16u", "L1, L2 and L∞ smooth the landscape as batch norm does (13 layers)",
     SANTURKAR "Section 3.3; Chinese notes on batch norm",
     "the same benefits as batch norm; figures of it for the linear network only",
     "each of them fulfils the criteria of 16a and 16b",
     "trial runs (1 seed), 200-500: range 0.055, 0.044, 0.041, change 3.0, 2.5, 2.5",
     .judge = judge_family}};
/* clang-format on */

/* ---- Figure 4 -------------------------------------------------------------------------------- */

static plot_style look_of(size_t arm)
{
    return lab_style(kinds[kind_of(arm)].id);
}

/* What lies between the smallest and the largest value over the steps s: of one run. */
static void draw_trace(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    const char *high = strcmp(panel->series, "least") ? "highest" : "most";
    size_t kind;
    for (kind = NONE; kind <= BATCH; kind++) {
        const lab_series a = lab_get(r, kind, 0, panel->series);
        const lab_series b = lab_get(r, kind, 0, high);
        plot_style s = look_of(kind);
        s.alpha = kind == NONE ? 0.45 : 0.75;
        plot_band(p, arms[kind].name, a.x, a.y, b.y, a.n < b.n ? a.n : b.n, s);
    }
}

/* Medians of windows, at their middles. */
static void draw_windows(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    static const size_t shown[3] = {NONE, LAYER, BATCH};
    size_t k;
    for (k = 0; k < 3; k++) {
        const lab_curve c = lab_geometric(r, panel->arm + shown[k], panel->series, 0);
        plot_band(p, arms[shown[k]].name, c.x, c.low, c.high, c.n, look_of(shown[k]));
        plot_line(p, arms[shown[k]].name, c.x, c.mean, c.n, look_of(shown[k]));
    }
}

/* clang-format off */
#define ONE_RUN(place, title, label, scale, low, high)                                             \
    .axes = {.col = place, .heading = title, .x = "step", .y = label, .y_scale = scale,            \
             .x_range = {0, STEPS}, .y_range = {low, high}}
#define MEDIANS(place, title, label, low, high, of, net, depth)                                    \
    .axes = {.row = net / M6, .col = place, .heading = title ", " depth " layers", .x = "step",    \
             .y = label, .x_scale = PLOT_LOG10, .y_scale = PLOT_LOG10, .x_range = {10, STEPS},     \
             .y_range = {low, high}},                                                              \
    .draw = draw_windows, .arm = net, .series = of
#define BOTH_MEDIANS(net, depth)                                                                   \
    {MEDIANS(0, "loss range", "max - min over s", 0.004, 8, "range_curve", net, depth)},           \
    {MEDIANS(1, "gradient change", "max over s", 0.08, 40, "change_curve", net, depth)},           \
    {MEDIANS(2, "effective β", "max over s", 3, 40, "beta_curve", net, depth),                     \
     .mark = {{LAB_HLINE, .y = 20, .text = ""},                                                    \
              {LAB_NOTE_IN, 0.97, 0.05, "line: 2/rate = 1/least s", PLOT_RIGHT | PLOT_ABOVE}}}
#define THIN .width = 0.5

static const lab_panel medians[] = {BOTH_MEDIANS(M13, "13"), BOTH_MEDIANS(M6, "6")};
static const lab_panel figure_4[] = {
    {ONE_RUN(0, "loss range", "loss at θ - s·g", PLOT_LOG10, 0.002, 50), .draw = draw_trace,
     .series = "lowest", .mark = {{LAB_HLINE, .y = 10, .text = "VGG, none: to 10"}}},
    {ONE_RUN(1, "gradient change", "|∇L(θ - s·g) - g|", PLOT_LOG10, 0.02, 1000),
     .draw = draw_trace, .series = "least",
     .mark = {{LAB_HLINE, .y = 250, .text = "VGG, none: to 250"},
              {LAB_HLINE, .y = 40, .text = "VGG, batch norm: to 40"}}},
    {ONE_RUN(2, "effective β", "max |∇L(θ - s·g) - g| / (s·|g|)", PLOT_LINEAR, 0, 60),
     .line = {{NONE, "beta_trace", NULL, {PLOT_VERMILLION, THIN}, LAB_ONE_SEED},
              {BATCH, "beta_trace", NULL, {PLOT_BLUE, THIN}, LAB_ONE_SEED}},
     .mark = {{LAB_HLINE, .y = 45, .text = "VGG, none: 5 to 45"}}}};
/* clang-format on */

/* ---- sensitivity ----------------------------------------------------------------------------- */

/* Figure 11: a line for each hundredth step, its colour the step. */
static void draw_figure_11(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    int when;
    for (when = 100; when < STEPS; when += 100) {
        const lab_series c = lab_get(r, panel->arm, 0, lab_format(r, "change_at/%d", when));
        const plot_style s = {plot_map(PLOT_SEQUENTIAL, when / (double)STEPS), .width = 0.8};
        const int named = when == 100 || when % 700 == 0;
        plot_line(p, named ? lab_format(r, "step %d", when) : NULL, c.x, c.y, c.n, s);
    }
}

static void draw_beta_of(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    const double s[2] = {0.001, 0.4}, inverse[2] = {1000, 2.5};
    size_t net, kind, i;
    for (net = M13; net <= M6; net += M6)
        for (kind = NONE; kind <= BATCH; kind++) {
            lab_curve c = lab_over_seeds(r, net + kind, panel->series);
            const plot_style style =
                plot_with_marker(look_of(kind), net == M13 ? PLOT_CIRCLE : PLOT_RING);
            for (i = 0; i < c.n; i++) c.x[i] *= 0.1;
            plot_band(p, NULL, c.x, c.low, c.high, c.n, style);
            plot_line(p, lab_format(r, "%s, %s layers", arms[kind].name, net == M13 ? "13" : "6"),
                      c.x, c.mean, c.n, style);
        }
    plot_line(p, NULL, s, inverse, 2, plot_thin(PLOT_INK));
}

/* A dot, and a line from the lowest to the highest of the seeds. */
static void draw_dot(plot_panel *p, const char *name, double dot, double low, double high, double y,
                     plot_style style)
{
    const double line[2] = {low, high}, level[2] = {y, y};
    plot_line(p, NULL, line, level, 2, plot_solid(style.color));
    plot_scatter(p, name, &dot, &y, 1, style);
}

enum { VARIANTS = 4 };
static const double variant_at[VARIANTS] = {4, 3, 2, 1};
static const char *const variant_name[VARIANTS] = {"paper's grid", "s from 0.1 rate", "rate 0.05",
                                                   "random direction"};

/* Ratios batch norm / none of all variants, with the range of the seeds. */
static void draw_ratios(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    static const char *const name[3] = {"loss range", "gradient change", "effective β"};
    static const plot_style look[3] = {{PLOT_BLUE, .marker = PLOT_CIRCLE},
                                       {PLOT_VERMILLION, .marker = PLOT_SQUARE},
                                       {PLOT_GREEN, .marker = PLOT_TRIANGLE}};
    static const char *const series[3][VARIANTS] = {{"range", NULL, "range", "random_range"},
                                                    {"change", NULL, "change", "random_change"},
                                                    {"beta", "beta_fine", "beta", "random_beta"}};
    size_t v, q;
    for (q = 0; q < 3; q++)
        for (v = 0; v < VARIANTS; v++) {
            const size_t none = v == 2 ? SLOW : M13;
            stats_summary d;
            if (!series[q][v]) continue;
            d = lab_describe(lab_map(lab_calc(lab_all(r, none + 1, series[q][v], panel->value), '/',
                                              lab_all(r, none, series[q][v], panel->value)),
                                     log));
            draw_dot(p, name[q], exp(d.mean), exp(d.min), exp(d.max),
                     variant_at[v] + 0.2 * (1 - (double)q), look[q]);
        }
}

/* clang-format off */
#define ALONG(place, kind, title, where)                                                           \
    .axes = {.col = place, .heading = title, .x = "step size s", .x_range = {0, 0.42},             \
             .y = "|∇L(θ - s·g) - g|", .y_scale = PLOT_LOG10, .legend = where, .share_y = place},  \
    .draw = draw_figure_11, .arm = kind

static const lab_panel sensitivity[] = {
    {ALONG(0, NONE, "no norm, 13 layers, one run", PLOT_LEGEND_NONE)},
    {ALONG(1, BATCH, "batch norm, the same", PLOT_LEGEND_RIGHT)},
    {.axes = {.row = 1, .heading = "β of one step size alone, steps 500-3000", .x = "step size s",
              .x_scale = PLOT_LOG10, .y = "|∇L(θ - s·g) - g| / (s·|g|)", .y_scale = PLOT_LOG10,
              .y_range = {0.4, 200}, .legend = PLOT_LEGEND_BOTTOM_LEFT},
     .draw = draw_beta_of, .series = "beta_of",
     .mark = {{LAB_NOTE, 0.0075, 150, "1/s"}, {LAB_VLINE, .x = 0.05, .text = ""},
              {LAB_NOTE, 0.054, 150, "paper's s"}}},
    {.axes = {.row = 1, .col = 1, .heading = "batch norm / none, steps 500-1000, 13 layers",
              .x = "ratio of the medians", .x_scale = PLOT_LOG10, .y = "", .y_range = {0.4, 4.6},
              .y_ticks = variant_at, .y_names = variant_name, .y_count = VARIANTS},
     .draw = draw_ratios, .value = 1000, .mark = {{LAB_VLINE, .x = 1, .text = ""}}}};
/* clang-format on */

/* ---- the family ------------------------------------------------------------------------------ */

static const double dot_at[KINDS] = {8, 7, 6, 5, 4, 3, 2, 1};
static const char *const dot_name[KINDS] = {"none", "batch norm", "L1",       "L2",
                                            "L∞",   "layer norm", "RMS norm", "weight norm"};
static const char *const no_name[KINDS] = {"", "", "", "", "", "", "", ""};

/* An arm is a row, with a dot for each depth: panel->series at the step panel->value, or 0: the
   mean of the layers. */
static void draw_dots(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    size_t kind, net;
    for (kind = 0; kind < KINDS; kind++)
        for (net = M13; net <= M6; net += M6) {
            lab_numbers v = panel->value > 0
                                ? lab_all(r, net + kind, panel->series, panel->value)
                                : lab_mean_over(r, net + kind, panel->series, 1, PLACES);
            const stats_summary s = lab_describe(v);
            const double y = dot_at[kind] + (net == M13 ? 0.14 : -0.14);
            const plot_color color = net == M13 ? PLOT_INK : PLOT_GREY;
            stats_sort(v.of, v.n);
            if (!isfinite(v.of[v.n / 2]))
                plot_text_in(p, net == M13 ? 0.04 : 0.52, (dot_at[kind] - 0.4) / 8.2, "diverged",
                             PLOT_LEFT, color);
            draw_dot(p, net == M13 ? "13 layers" : "6 layers", v.of[v.n / 2], s.min, s.max, y,
                     plot_marked(color, net == M13 ? PLOT_CIRCLE : PLOT_RING));
        }
}

/* clang-format off */
#define OF_BATCHES(place, net, depth)                                                              \
    .axes = {.col = place, .cols = 6, .heading = "training accuracy, " depth " layers",            \
             .x = "step", .x_scale = PLOT_LOG10, .x_range = {25, STEPS},                           \
             .y = "accuracy on mini-batches", .y_range = {0, 1},                                   \
             .legend = PLOT_LEGEND_BOTTOM_RIGHT},                                                  \
    .line = {{(net) + NONE, "accuracy", .to = (net) + LINF}}
#define DOTS(place, title, label, scale, names, where, of, at)                                     \
    .axes = {.row = 1, .col = place, .cols = 3, .heading = title, .x = label, .x_scale = scale,    \
             .y = "", .y_range = {0.4, 8.6}, .y_ticks = dot_at, .y_names = names,                  \
             .y_count = KINDS, .grid = PLOT_GRID_BOTH, .legend = where},                           \
    .draw = draw_dots, .series = of, .value = at
#define LATER "steps 500-1000"

static const lab_panel family[] = {
    {OF_BATCHES(0, M13, "13")},
    {OF_BATCHES(6, M6, "6")},
    {DOTS(0, "loss range", LATER, PLOT_LOG10, dot_name, PLOT_LEGEND_ABOVE, "range", 1000)},
    {DOTS(3, "gradient change", LATER, PLOT_LOG10, no_name, PLOT_LEGEND_NONE, "change", 1000)},
    {DOTS(6, "90 % of β", LATER, PLOT_LINEAR, no_name, PLOT_LEGEND_NONE, "beta_p90", 1000)},
    {DOTS(9, "drift of means", "|μ(t) - μ(0)|", PLOT_LINEAR, no_name, PLOT_LEGEND_NONE,
          "drift_mean", 0)}};
/* clang-format on */

/* ---- histograms ------------------------------------------------------------------------------ */

/* Inputs of ReLU, of one unit, three moments of the training over each other: densities whose
   highest points are 1, as they differ a hundredfold. */
static void draw_unit(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    static const int when[3] = {0, 300, STEPS}, dash[3] = {PLOT_DOTTED, PLOT_DASHED, PLOT_SOLID};
    double y[BINS];
    size_t i, j;
    for (i = 0; i < 3; i++) {
        const lab_series c =
            lab_get(r, panel->arm, 0, lab_format(r, "%s/%d", panel->series, when[i]));
        const size_t n = c.n < BINS ? c.n : BINS;
        const plot_style s = {plot_map(PLOT_SEQUENTIAL, 0.4 * (double)i), .dash = dash[i]};
        double top = 0;
        for (j = 0; j < n; j++) top = fmax(top, c.y[j]);
        for (j = 0; j < n; j++) y[j] = c.y[j] / top;
        plot_line(p, lab_format(r, "step %d", when[i]), c.x, y, n, s);
    }
}

/* clang-format off */
static const double input_at[3] = {-3, 0, 3};
static const char *const input_name[3] = {"−3", "0", "3"};
#define OF_UNIT(kind, name, label)                                                                 \
    {.axes = {.col = kind, .heading = name, .x = "input of ReLU", .x_range = {-4.2, 4.2},          \
              .x_ticks = input_at, .x_names = input_name, .x_count = 3, .y = label},               \
     .draw = draw_unit, .arm = kind, .series = "unit2"}
static const lab_panel units[] = {
    OF_UNIT(NONE, "none", "density, highest point 1"), OF_UNIT(BATCH, "batch norm", ""),
    OF_UNIT(L1, "L1", ""), OF_UNIT(L2, "L2", ""), OF_UNIT(LINF, "L∞", "")};

#define RUN "784-100x13-10, ReLU, Glorot, SGD with rate 0.1, batch 128, 3000 steps"
static const lab_page pages[] = {
    {"Along the gradient loss and gradient vary less with batch norm", NULL, 1120,
     .shared_legend = 1, LAB_PANELS(medians)},
    {"Along the gradient of one run the loss reaches 10 only without a norm, as in VGG", "run",
     760, .shared_legend = 1, .settings = RUN "; s = 1/2, 1, 2, 4 times the rate",
     .seeds = 1, LAB_PANELS(figure_4)},
    {"Small steps, random directions: there batch norm is not the smoother one", "sensitivity",
     1320, LAB_PANELS(sensitivity)},
    {"L1, L2 and L∞ smooth the landscape as batch norm does, and keep means still", "family",
     1320, LAB_PANELS(family)},
    {"Without a norm a unit's inputs spread; with batch norm, L1, L2 and L∞ hardly",
     "histograms", 700, .shared_legend = 1, .settings = RUN ", layer 7", .seeds = 1,
     LAB_PANELS(units)}};

LAB_PROGRAM("16_landscape", "Is the loss smoother along the gradient with a norm?",
            "784-100x13-10 and 784-100x6-10, ReLU, Glorot, SGD with rate 0.1, batch 128, 3000 "
            "steps; s = 1/2, 1, 2, 4 times the rate",
            .revision = 4, .uses = LAB_USES_DATA + LAB_TWICE, .prepare = prepare, .look = look_of)
