/* 16_landscape: is the loss smoother along the gradient where there is a norm? (README.md)

   L1, L2 and L∞ in the place of the standard deviation are those of x, not of x - μ, as the paper
   has it. Weight norm takes its gradient by v, g and b, and its steps along that. None has biases,
   RMS norm too, having no β; the output layer is linear in all of them. Probes see the norms in
   train mode, and nothing of them enters the training. */
#include "lab/experiment.h"
#include "lab/draw.h"
#include "lab/landscape.h"

/* ---- the arms -------------------------------------------------------------------------------- */

enum { WEIGHT_NORM = 100 }; /* beside enum nrm_norm: it is no layer but another set of parameters */
enum { NONE, BATCH, L1, L2, LINF, LAYER, RMS, WEIGHT, KINDS };

/* Places in the table of arms: those that decide claims, with 13 and with 6 hidden layers; with
   rate 0.05; one run each with everything on the way recorded, and without a look. */
enum { M13 = 0, M6 = KINDS, SLOW = 2 * KINDS, TRACE = SLOW + 2, BARE = TRACE + LINF + 1, ARMS };

/* clang-format off */
static const struct {
    const char *id;
    int norm, p;
} kinds[KINDS] = {
    {"none", NRM_NO_NORM}, {"batch", NRM_BATCH_NORM}, {"l1", NRM_LP_BATCH_NORM, NRM_L1},
    {"l2", NRM_LP_BATCH_NORM, NRM_L2}, {"linf", NRM_LP_BATCH_NORM, NRM_LINF},
    {"layer", NRM_LAYER_NORM}, {"rms", NRM_RMS_NORM}, {"weight", WEIGHT_NORM}};

#define EACH_NORM(m, s)                                                                            \
    {m "_none", "none", s - 1}, {m "_batch", "batch norm", s}, {m "_l1", "L1", s},                 \
    {m "_l2", "L2", s}, {m "_linf", "L∞", s}, {m "_layer", "layer norm", s + 2},                   \
    {m "_rms", "RMS norm", s + 1, 3}, {m "_weight", "weight norm", s + 1, 3}
static const lab_arm arms[ARMS] = {
    EACH_NORM("m13", 15), EACH_NORM("m6", 8),
    {"m13_none_005", "none, rate 0.05", 12}, {"m13_batch_005", "batch norm, rate 0.05", 13},
    {"m13_none_trace", "none", 14, 1}, {"m13_batch_trace", "batch norm", 15, 1},
    {"m13_l1_trace", "L1", 15, 1}, {"m13_l2_trace", "L2", 15, 1},
    {"m13_linf_trace", "L∞", 15, 1}, {"m13_batch_bare", "batch norm, no probes", 9, 1}};
/* clang-format on */

static size_t kind_of(size_t arm)
{
    return arm < SLOW ? arm % KINDS : arm < TRACE ? arm - SLOW : arm < BARE ? arm - TRACE : BATCH;
}

/* ---- sizes ----------------------------------------------------------------------------------- */

enum { STEPS = 3000, PROBES = STEPS / 10, GRID = 4, DENSE = 8, WINDOWS = 5, FINE_WINDOWS = 13 };
enum { ACCURACIES = 27, PLACES = 3, BINS = 32, UNIT = 0, WIDEST = 100, FIXED = 1000 };

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

/* ---- a training ------------------------------------------------------------------------------ */

typedef struct moments { /* of the inputs of ReLU, in the first, the middle and the last layer */
    double mean[PLACES][WIDEST], var[PLACES][WIDEST];
} moments;

/* clang-format off */
enum { RANGE, CHANGE, BETA, LENGTH, SLOPE, LOSS, BETA_FINE, RANDOM_RANGE, RANDOM_CHANGE,
       RANDOM_BETA, QUANTITIES };
/* clang-format on */
static const char *const quantity_name[QUANTITIES] = {
    "range", "change",    "beta",         "length",        "slope",
    "loss",  "beta_fine", "random_range", "random_change", "random_beta"};

typedef struct training {
    lab_run *run;
    size_t kind, hidden, steps, scale, width, fixed; /* each step stands for `scale` of the 3000 */
    double lr;
    landscape_model m;
    landscape_place p;
    training_order order;
    double when[PROBES], value[QUANTITIES][PROBES], beta_at[DENSE][PROBES / 10], accuracy[STEPS];
    size_t probes, looks, drifts; /* of all; of single steps in 500-3000; on the fixed images */
    moments first, now;
    double drift[2][PLACES];    /* sums of the distances of mean and variance from the start */
    double unit[PLACES][FIXED]; /* all values of one unit */
} training;

LAB_SETS(train_set, test_set, 0, 0, DATASET_STD);

static int start(training *t, lab_run *run)
{
    const size_t arm = run->arm, batch = run->quick ? 32 : 128;
    const int norm = kinds[kind_of(arm)].norm, none = norm == NRM_NO_NORM || norm == WEIGHT_NORM;
    nrm_mlp_layer layer[16];
    nrm_mlp_spec spec;
    size_t l;
    t->run = run;
    t->kind = kind_of(arm);
    t->hidden = arm >= M6 && arm < SLOW ? 6 : 13;
    t->lr = arm >= SLOW && arm < TRACE ? 0.05 : 0.1;
    t->steps = run->quick ? 60 : STEPS;
    t->scale = STEPS / t->steps;
    t->width = run->quick ? 16 : 100;
    t->fixed = run->quick ? 64 : FIXED;
    spec = training_plain(layer, t->hidden, t->width, NRM_RELU, none ? NRM_NO_NORM : norm);
    for (l = 0; l < t->hidden; l++) {
        layer[l].p = kinds[t->kind].p;
        layer[l].bias = none || norm == NRM_RMS_NORM;
    }
    spec.max_batch = t->fixed;
    spec.seed = run->seed;
    spec.lr = (nrm_real)t->lr;
    return landscape_model_make(&t->m, &spec, norm == WEIGHT_NORM) ||
           landscape_place_make(&t->p, &t->m, run->seed) ||
           training_order_start(&t->order, train_set.n, batch, DATASET_PIXELS, run->seed);
}

static void note(lab_run *run, const char *series, double x, double y)
{
    lab_record(run, series, x, lab_round(y, 5));
}

/* ---- probes ---------------------------------------------------------------------------------- */

static int at_multiple(double when, double of)
{
    return fmod(when, of) < 0.5;
}

static int view_grid(landscape_view *v, landscape_place *p)
{
    const double lr = (double)p->m->net->spec.lr;
    size_t i;
    int rc = NRM_OK;
    landscape_view_start(v);
    for (i = 0; i < GRID && rc >= 0; i++) rc = landscape_view_add(v, p, grid[i] * lr);
    return rc;
}

/* Figure 11, and β for each step alone. */
static int probe_dense(training *t, double when)
{
    size_t i;
    int rc = NRM_OK;
    for (i = 0; i < DENSE && rc >= 0; i++) {
        const double s = dense[i] * t->lr;
        double loss, change;
        rc = landscape_look(&t->p, s, &loss, &change);
        if (when >= 500)
            t->beta_at[i][t->looks] = landscape_or_infinite(change / (s * t->p.length));
        if (t->run->arm >= TRACE)
            lab_record_as(t->run, s, lab_round(change, 5), "change_at/%.0f", when);
    }
    if (when >= 500) t->looks++;
    return rc;
}

static int probe_random(training *t, size_t at)
{
    landscape_view v;
    int rc;
    landscape_turn(&t->p);
    rc = view_grid(&v, &t->p);
    t->value[RANDOM_RANGE][at] = landscape_range(&v);
    t->value[RANDOM_CHANGE][at] = v.most;
    t->value[RANDOM_BETA][at] = v.beta;
    return rc;
}

static int probe(training *t, double when)
{
    const int traced = t->run->arm >= TRACE;
    const size_t at = t->probes++;
    landscape_view v;
    int q, rc = landscape_arrive(&t->p);
    t->when[at] = when;
    for (q = 0; q < QUANTITIES; q++) t->value[q][at] = (double)NAN;
    if (rc >= 0) rc = view_grid(&v, &t->p);
    if (rc < 0) return rc;
    t->value[RANGE][at] = landscape_range(&v);
    t->value[CHANGE][at] = v.most;
    t->value[BETA][at] = v.beta;
    t->value[SLOPE][at] = v.slope;
    t->value[LENGTH][at] = t->p.length;
    t->value[LOSS][at] = (double)t->p.loss;
    if (traced) {
        note(t->run, "lowest", when, v.lowest);
        note(t->run, "highest", when, v.highest);
        note(t->run, "least", when, v.least);
        note(t->run, "most", when, v.most);
        note(t->run, "beta_trace", when, v.beta);
    }
    if (t->kind > BATCH) return rc; /* the rest is of the two arms that the paper compares */
    rc = landscape_view_add(&v, &t->p, below * t->lr);
    t->value[BETA_FINE][at] = v.beta;
    if (rc >= 0 && at_multiple(when, 100) && (when >= 500 || traced)) rc = probe_dense(t, when);
    if (rc >= 0 && at_multiple(when, 50) && t->run->arm < SLOW) rc = probe_random(t, at);
    return rc;
}

static void take_moments(void *context, const nrm_mlp_event *event)
{
    training *t = (training *)context;
    const size_t place[PLACES] = {0, t->hidden / 2, t->hidden - 1};
    const int normed = t->m.net->state[0].shape.norm != NRM_NO_NORM;
    size_t k, i;
    if (event->gradient || event->place != (normed ? NRM_AT_NORM : NRM_AT_LINEAR)) return;
    for (k = 0; k < PLACES; k++) {
        if (event->layer != place[k]) continue;
        landscape_columns(event, WIDEST, t->now.mean[k], t->now.var[k]);
        for (i = 0; i < event->rows; i++)
            t->unit[k][i] = (double)event->data[i * event->cols + UNIT];
    }
}

/* Of one unit, in three layers. */
static void note_histograms(training *t, double when)
{
    double edges[BINS + 1], density[BINS];
    size_t k, i;
    for (k = 0; k < PLACES; k++) {
        const stats_summary s = stats_describe(t->unit[k], t->fixed);
        for (i = 0; i <= BINS; i++)
            edges[i] = s.mean + (8.0 * (double)i / BINS - 4) * fmax(s.sd, 1e-3);
        (void)stats_histogram(t->unit[k], t->fixed, edges, BINS, density);
        for (i = 0; i < BINS; i++)
            lab_record_as(t->run, (edges[i] + edges[i + 1]) / 2, lab_round(density[i], 5),
                          "unit%lu/%.0f", (unsigned long)k + 1, when);
    }
}

/* Mean and variance of the inputs of ReLU on images that are not trained on. */
static int probe_drift(training *t, double when)
{
    const moments *a = &t->first, *b = &t->now;
    size_t k, j;
    int rc;
    t->m.net->probe = take_moments;
    t->m.net->probe_context = t;
    rc = nrm_mlp_gradient(t->m.net, NULL, test_set.x, test_set.labels, t->fixed, NRM_TRAIN);
    t->m.net->probe = NULL;
    if (when < 1) t->first = t->now;
    for (k = 0; k < PLACES && when > 1; k++)
        for (j = 0; j < t->width; j++) {
            t->drift[0][k] += fabs(b->mean[k][j] - a->mean[k][j]) / (double)t->width;
            t->drift[1][k] += fabs(b->var[k][j] - a->var[k][j]) / (double)t->width;
        }
    if (when > 1) t->drifts++;
    if (t->run->arm >= TRACE && (when < 1 || fabs(when - 300) < 1 || when > STEPS - 1))
        note_histograms(t, when);
    return rc;
}

static int train(training *t)
{
    const size_t arm = t->run->arm;
    const int probed = arm < TRACE || (arm < BARE && t->kind <= BATCH);
    const int drifts = arm < SLOW || (arm >= TRACE && arm < BARE);
    nrm_acc loss = 0, accuracy;
    size_t step;
    int rc = NRM_OK;
    for (step = 0; step < t->steps && rc >= 0; step++) {
        const double when = (double)(step * t->scale);
        training_go_on(&t->order, &train_set, 1);
        t->m.x = t->order.x;
        t->m.labels = t->order.labels;
        t->m.rows = t->order.count;
        if (step == 0 && t->m.weight_norm) rc = landscape_first_batch(&t->m);
        if (rc >= 0 && drifts && at_multiple(when, 100)) rc = probe_drift(t, when);
        if (rc >= 0 && probed && at_multiple(when, 10)) rc = probe(t, when);
        if (rc >= 0) rc = landscape_step(&t->m, &loss);
        accuracy = 0;
        (void)nrm_accuracy(&accuracy, t->m.net->logits, t->m.labels, t->m.rows, DATASET_CLASSES);
        t->accuracy[step] = (double)accuracy;
        lab_progress(t->run, (double)step / (double)t->steps);
    }
    return rc >= 0 && drifts ? probe_drift(t, STEPS) : rc;
}

/* ---- what it leaves behind ------------------------------------------------------------------- */

static double quantile_of(double *value, size_t n, double p)
{
    stats_sort(value, n);
    return stats_quantile(value, n, p);
}

/* In each window a quantile of the probes that have this quantity; nan of none, if `gaps`. */
static void note_windows(const training *t, const char *series, int quantity, double p,
                         const double *end, size_t windows, int gaps)
{
    double value[PROBES], from = 0, found;
    size_t w, i, n;
    for (w = 0; w < windows; from = end[w++]) {
        for (n = i = 0; i < t->probes; i++)
            if (t->when[i] >= from && t->when[i] < end[w] && !isnan(t->value[quantity][i]))
                value[n++] = t->value[quantity][i];
        found = quantile_of(value, n, p);
        if (gaps || !isnan(found)) note(t->run, series, end[w], found);
    }
}

/* The mean accuracy on the batches of the steps from `from` to before `to`, if there are any. */
static void note_accuracy(const training *t, const char *series, double from, double to)
{
    double sum = 0, n = 0;
    size_t step;
    for (step = 0; step < t->steps; step++) {
        const double when = (double)(step * t->scale);
        if (when < from || when >= to) continue;
        sum += t->accuracy[step];
        n++;
    }
    if (n > 0) note(t->run, series, to, sum / n);
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

/* The gradient must be orthogonal to v. */
static void note_radial(lab_run *run, landscape_model *m)
{
    double worst = 0;
    size_t l, at = 0;
    nrm_acc loss;
    (void)m->evaluate(m, &loss); /* v has moved since the last gradient */
    for (l = 0; l + 1 < m->net->spec.layers; l++) {
        landscape_weight part;
        at = landscape_weight_of(m, l, at, &part);
        worst =
            fmax(worst, training_cosine(part.v, part.dv, part.state->in, part.state->shape.width));
    }
    note(run, "weight_radial", 0, worst);
}

static void note_rest(training *t)
{
    static const char *const name[2] = {"drift_mean", "drift_var"};
    nrm_acc accuracy = 0;
    size_t i, k;
    for (i = 0; i < ACCURACIES; i++)
        note_accuracy(t, "accuracy", i ? accuracy_end[i - 1] : 0, accuracy_end[i]);
    note_accuracy(t, "accuracy_500", 0, 500);
    for (k = 0; k < 2; k++)
        for (i = 0; i < PLACES && t->drifts > 0; i++)
            note(t->run, name[k], (double)i + 1, t->drift[k][i] / (double)t->drifts);
    for (i = 0; i < DENSE && t->looks > 0; i++)
        note(t->run, "beta_of", dense[i], quantile_of(t->beta_at[i], t->looks, 0.5));
    if (nrm_mlp_eval(t->m.net, NULL, &accuracy, test_set.x, test_set.labels, test_set.n) >= 0)
        note(t->run, "test", STEPS, (double)accuracy);
    if (t->m.weight_norm) note_radial(t->run, &t->m);
}

static void note_all(training *t)
{
    static const char *const curve[3] = {"range_curve", "change_curve", "beta_curve"};
    int q;
    note_bits(t->run, t->m.net);
    if (t->run->arm >= TRACE) return;
    for (q = 0; q < QUANTITIES; q++)
        note_windows(t, quantity_name[q], q, 0.5, window_end, WINDOWS, 0);
    note_windows(t, "beta_p90", BETA, 0.9, window_end, WINDOWS, 1);
    note_windows(t, "beta_fine_p90", BETA_FINE, 0.9, window_end, WINDOWS, 0);
    if (t->run->arm >= SLOW) return;
    for (q = 0; q < 3 && kinds[t->kind].norm <= NRM_LAYER_NORM; q++)
        note_windows(t, curve[q], q, 0.5, fine_end, FINE_WINDOWS, 1);
    note_rest(t);
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
    note(run, "bowl_beta", 0, v.beta);
    note(run, "bowl_range", 0, landscape_range(&v) / (p.length * p.length));
    note(run, "bowl_change", 0, v.most / p.length);
    landscape_turn(&p);
    note(run, "bowl_random", 0, landscape_length(p.direction, m.n) / p.length);
    landscape_place_free(&p);
    return rc;
}

/* Root mean square of what L∞ makes of Gaussian numbers: 0.37, as the largest of 128 is 2.7. */
static int note_linf(lab_run *run)
{
    enum { ROWS = 128, UNITS = 400, N = ROWS * UNITS };
    nrm_real *x = (nrm_real *)malloc(2 * N * sizeof *x);
    nrm_acc mean[UNITS], scale[UNITS];
    nrm_rng rng;
    size_t i;
    int rc;
    if (!x) return -1;
    nrm_rng_seed(&rng, run->seed, TRAINING_STREAM_DATA + 17);
    for (i = 0; i < N; i++) x[i] = draw_normal(&rng);
    rc = nrm_lp_batchnorm_forward(x + N, mean, scale, NULL, x, NULL, NULL, NRM_LINF, NRM_TRAIN,
                                  (nrm_real)1e-5, ROWS, UNITS, 1);
    note(run, "linf_rms", 0, landscape_length(x + N, N) / sqrt(N));
    free(x);
    return rc;
}

static int run(lab_run *r)
{
    training *t = (training *)calloc(1, sizeof *t);
    int rc = !t || start(t, r) ? NRM_ENULL : NRM_OK;
    if (rc >= 0) rc = train(t);
    if (rc >= 0) note_all(t);
    if (rc >= 0 && r->arm == BARE) rc = note_bowl(r, &t->m);
    if (rc >= 0 && r->arm == BARE) rc = note_linf(r);
    if (rc < 0) fprintf(stderr, "16_landscape: %s\n", nrm_strerror(rc));
    if (t) {
        landscape_place_free(&t->p);
        if (t->m.net) landscape_model_free(&t->m);
        training_order_free(&t->order);
    }
    free(t);
    return rc < 0;
}

/* ---- verdicts -------------------------------------------------------------------------------- */

enum { LATE = 3 }; /* the windows from step 200 on: the last three */

typedef struct ratio { /* of two arms, in the late windows */
    stats_finding found, part[LATE];
    double mean[LATE], most; /* geometric, over seeds; the largest of them */
} ratio;

/* The logarithms of b/a in one window, seed by seed: the claim is that a is smaller. */
static stats_finding log_ratio(const lab_report *r, size_t a, size_t b, const char *series,
                               double end)
{
    return lab_less(lab_map(lab_all(r, a, series, end), log),
                    lab_map(lab_all(r, b, series, end), log), 1);
}

/* a/b of a series, judged window by window. `bound`: what the ratio is to be below. */
static ratio late_ratio(const lab_report *r, size_t a, size_t b, const char *series, double bound)
{
    ratio found;
    size_t w;
    found.most = 0;
    for (w = 0; w < LATE; w++) {
        found.part[w] = log_ratio(r, a, b, series, window_end[w + WINDOWS - LATE]);
        found.mean[w] = exp(-found.part[w].mean);
        found.part[w].size_met = found.mean[w] < bound;
        found.most = stats_larger(found.most, found.mean[w]);
    }
    found.found = stats_together(found.part, LATE);
    return found;
}

/* Of arm b, which has the norm, and of arm a. */
static const char *windows_text(lab_report *r, size_t b, size_t a, const char *series)
{
    return lab_format(r, "%.3g, %.3g, %.3g against %.3g, %.3g, %.3g", lab_mean(r, b, series, 500),
                      lab_mean(r, b, series, 1000), lab_mean(r, b, series, 3000),
                      lab_mean(r, a, series, 500), lab_mean(r, a, series, 1000),
                      lab_mean(r, a, series, 3000));
}

/* The arm after c->a is the same with batch norm. */
static void judge_ratio(lab_report *r, const lab_claim *c)
{
    const ratio q = late_ratio(r, c->a + 1, c->a, c->series, c->limit);
    const char *word[LATE], *remark = c->remark ? c->remark : "";
    size_t w;
    for (w = 0; w < LATE; w++) word[w] = stats_verdict_name(stats_word(&q.part[w], STATS_LEVEL));
    if (!*remark && (word[0] != word[1] || word[1] != word[2]))
        remark = lab_format(r, "window by window: %s, %s, %s", word[0], word[1], word[2]);
    lab_verdict(r, c, q.found, remark,
                "%s in steps 200-500, 500-1000, 1000-3000; ratios %.2f, %.2f, %.2f",
                windows_text(r, c->a + 1, c->a, c->series), q.mean[0], q.mean[1], q.mean[2]);
}

static void judge_fine(lab_report *r, const lab_claim *c)
{
    lab_claim with = *c;
    with.remark =
        lab_format(r, "medians of 500-1000: %.3g against %.3g",
                   lab_mean(r, BATCH, "beta_fine", 1000), lab_mean(r, NONE, "beta_fine", 1000));
    judge_ratio(r, &with);
}

static void judge_slow(lab_report *r, const lab_claim *c)
{
    lab_claim with = *c;
    with.remark =
        lab_format(r, "loss range %s, gradient change %s", windows_text(r, SLOW + 1, SLOW, "range"),
                   windows_text(r, SLOW + 1, SLOW, "change"));
    judge_ratio(r, &with);
}

static void judge_magnitude(lab_report *r, const lab_claim *c)
{
    stats_finding best = log_ratio(r, BATCH, NONE, c->series, window_end[0]);
    size_t w, at = 0;
    for (w = 1; w < WINDOWS; w++) {
        const stats_finding pairs = log_ratio(r, BATCH, NONE, c->series, window_end[w]);
        if (!(pairs.mean > best.mean)) continue;
        best = pairs;
        at = w;
    }
    best.size_met = exp(best.mean) > c->limit;
    lab_verdict(r, c, best, "", "at most %.1f times, in the window that ends at step %g",
                exp(best.mean), window_end[at]);
}

static void judge_accuracy(lab_report *r, const lab_claim *c)
{
    stats_finding part[2];
    const char *text[2];
    size_t i;
    for (i = 0; i < 2; i++) {
        const lab_numbers a = lab_all(r, i * M6 + c->a, c->series, 500);
        const lab_numbers b = lab_all(r, i * M6 + BATCH, c->series, 500);
        part[i] = lab_more(a, lab_plus(b, -0.02), 1);
        text[i] = lab_format(r, "%s against %s", lab_pm(r, a, 3), lab_pm(r, b, 3));
    }
    lab_verdict(r, c, stats_together(part, 2), "", "13 layers: %s; 6 layers: %s", text[0], text[1]);
}

static lab_numbers drift_of(const lab_report *r, size_t arm, const char *series)
{
    return lab_mean_over(r, arm, series, 1, PLACES);
}

static void judge_drift(lab_report *r, const lab_claim *c)
{
    stats_finding part[2];
    const char *mean[2], *variance[2];
    size_t i;
    for (i = 0; i < 2; i++) {
        const size_t a = i * M6 + c->a, b = i * M6 + NONE;
        const lab_numbers of_a = drift_of(r, a, "drift_mean"), of_b = drift_of(r, b, "drift_mean");
        part[i] = lab_more(of_a, of_b, 1);
        mean[i] =
            lab_format(r, "%.2f against %.2f", lab_describe(of_a).mean, lab_describe(of_b).mean);
        variance[i] =
            lab_format(r, "%.2f against %.2f", lab_describe(drift_of(r, a, "drift_var")).mean,
                       lab_describe(drift_of(r, b, "drift_var")).mean);
    }
    lab_verdict(r, c, stats_together(part, 2),
                lab_format(r, "variances, in no criterion: %s, %s", variance[0], variance[1]),
                "13 layers: %s; 6 layers: %s", mean[0], mean[1]);
}

static void judge_family(lab_report *r, const lab_claim *c)
{
    stats_finding part[6];
    double range = 0, change = 0;
    size_t i;
    for (i = 0; i < 3; i++) {
        const ratio a = late_ratio(r, L1 + i, NONE, "range", 1.0 / 3);
        const ratio b = late_ratio(r, L1 + i, NONE, "change", 0.5);
        part[2 * i] = a.found;
        part[2 * i + 1] = b.found;
        range = stats_larger(range, a.most);
        change = stats_larger(change, b.most);
    }
    lab_verdict(r, c, stats_together(part, 6), "",
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
     "both depths", "none", .judge = judge_accuracy, .a = kind, .series = "accuracy_500"}
#define LP_DRIFT(id, name, kind)                                                                   \
    {id, "With " name " the inputs of ReLU drift further than without a norm",                     \
     SANTURKAR "Fig. 6 and 14", "their distributions shift more than without a norm",              \
     "mean |μ(t) - μ(0)| over time, units and three layers: more, with both depths", "none",       \
     .judge = judge_drift, .a = kind}
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
     LAB_TRAINING, LAB_NEWS,
     .judge = judge_fine,
     .a = M13, .series = "beta_fine_p90", .limit = 1},
    {"16i", "The effective β is better with batch norm also at rate 0.05",
     "ours, on " SANTURKAR "Fig. 4c", "rate 0.1 only", "as 16c, with rate 0.05",
     "trial runs (1 seed): batch norm about 35, where 1/s is 40",
     .judge = judge_slow,
     .a = SLOW, .series = "beta_p90", .limit = 1},
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
     "trial runs (1 seed): 0.33 against 0.007, so no", LAB_TRAINING, LAB_NEWS,
     .test = LAB_LESS,
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

/* L(θ - s·g) = C/2·|θ|²·(1 - C·s)², and |θ| = |g|/C */
static double bowl_range(void)
{
    return (pow(1 - CURVATURE / 20, 2) - pow(1 - CURVATURE * 0.4, 2)) / (2 * CURVATURE);
}

static int near_to(double a, double b, double tolerance)
{
    return fabs(a - b) <= tolerance * fabs(b);
}

static void check_all(lab_report *r)
{
    const double beta = lab_at(r, BARE, 0, "bowl_beta", 0), rms = lab_at(r, BARE, 0, "linf_rms", 0);
    const double turned = lab_at(r, BARE, 0, "bowl_random", 0);
    const double found = lab_at(r, BARE, 0, "bowl_range", 0), range = bowl_range();
    const double radial = stats_larger(lab_largest(r, M13 + WEIGHT, "weight_radial"),
                                       lab_largest(r, M6 + WEIGHT, "weight_radial"));
    size_t s, i, same = 0, kind, runs = 0, diverged = 0;
    for (i = 0; i < 4; i++) {
        const double bare = lab_at(r, BARE, 0, "bits", (double)i);
        same += near_to(bare, lab_at(r, M13 + BATCH, 0, "bits", (double)i), 0) &&
                near_to(bare, lab_at(r, TRACE + BATCH, 0, "bits", (double)i), 0);
    }
    for (kind = M13; kind <= M6; kind += M6)
        for (s = 0; s < lab_seeds(r, kind + WEIGHT); s++, runs++) /* 0: no unit has a gradient */
            diverged += lab_at(r, kind + WEIGHT, s, "weight_radial", 0) <= 0;
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
        const lab_series a = lab_get(r, TRACE + kind, 0, panel->series);
        const lab_series b = lab_get(r, TRACE + kind, 0, high);
        plot_style s = look_of(kind);
        s.alpha = kind == NONE ? 0.45 : 0.75;
        plot_band(p, arms[kind].name, a.x, a.y, b.y, a.n < b.n ? a.n : b.n, s);
    }
}

/* Medians of windows, drawn at their middles. */
static void draw_windows(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    static const size_t shown[3] = {NONE, LAYER, BATCH};
    size_t w, k;
    for (k = 0; k < 3; k++) {
        lab_numbers y[FINE_WINDOWS];
        double x[FINE_WINDOWS], from = 0;
        for (w = 0; w < FINE_WINDOWS; from = fine_end[w++]) {
            x[w] = (from + fine_end[w]) / 2;
            y[w] = lab_all(r, panel->arm + shown[k], panel->series, fine_end[w]);
        }
        lab_draw_geometric(p, arms[shown[k]].name, x, y, FINE_WINDOWS, look_of(shown[k]));
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
     .line = {{TRACE + NONE, "beta_trace", NULL, {PLOT_VERMILLION, THIN}, LAB_ONE_SEED},
              {TRACE + BATCH, "beta_trace", NULL, {PLOT_BLUE, THIN}, LAB_ONE_SEED}},
     .mark = {{LAB_HLINE, .y = 45, .text = "VGG, none: 5 to 45"}}}};
/* clang-format on */

/* ---- sensitivity ----------------------------------------------------------------------------- */

/* Figure 11: a line for each hundredth step, its colour the step. */
static void draw_figure_11(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    int when;
    for (when = 100; when < STEPS; when += 100) {
        const lab_series c = lab_get(r, panel->arm, 0, lab_format(r, "change_at/%d", when));
        const size_t from = c.n > GRID ? c.n - GRID : 0; /* the paper's steps */
        const plot_style s = {plot_map(PLOT_SEQUENTIAL, when / (double)STEPS), .width = 0.8};
        const int named = when == 100 || when % 700 == 0;
        plot_line(p, named ? lab_format(r, "step %d", when) : NULL, c.x + from, c.y + from,
                  c.n - from, s);
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

enum { VARIANTS = 4 };
static const double variant_at[VARIANTS] = {4, 3, 2, 1};
static const char *const variant_name[VARIANTS] = {"paper's grid", "s from 0.1 rate", "rate 0.05",
                                                   "random direction"};

/* Ratios batch norm / none of all variants, with the range of the seeds. */
static void draw_ratios(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    static const char *const name[3] = {"loss range", "gradient change", "effective β"};
    static const char *const series[3][VARIANTS] = {{"range", NULL, "range", "random_range"},
                                                    {"change", NULL, "change", "random_change"},
                                                    {"beta", "beta_fine", "beta", "random_beta"}};
    size_t v, q;
    for (q = 0; q < 3; q++) {
        const plot_color color = plot_look((int)q).color;
        double x[VARIANTS], y[VARIANTS];
        size_t n = 0;
        for (v = 0; v < VARIANTS; v++) {
            const size_t none = v == 2 ? SLOW : M13;
            const double level = variant_at[v] + 0.2 * (1 - (double)q);
            double line[2], at[2] = {level, level};
            stats_summary d;
            if (!series[q][v]) continue;
            d = lab_describe(lab_map(lab_calc(lab_all(r, none + 1, series[q][v], panel->value), '/',
                                              lab_all(r, none, series[q][v], panel->value)),
                                     log));
            line[0] = exp(d.min);
            line[1] = exp(d.max);
            plot_line(p, NULL, line, at, 2, plot_solid(color));
            x[n] = exp(d.mean);
            y[n++] = level;
        }
        plot_scatter(p, name[q], x, y, n, plot_marked(color, (int)q + PLOT_CIRCLE));
    }
}

/* clang-format off */
#define ALONG(place, kind, title, where)                                                           \
    .axes = {.col = place, .heading = title, .x = "step size s", .x_range = {0, 0.42},             \
             .y = "|∇L(θ - s·g) - g|", .y_scale = PLOT_LOG10, .legend = where},                    \
    .draw = draw_figure_11, .arm = TRACE + kind, .share_y = place

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
            lab_numbers v = panel->value > 0 ? lab_all(r, net + kind, panel->series, panel->value)
                                             : drift_of(r, net + kind, panel->series);
            const stats_summary s = lab_describe(v);
            const double y = dot_at[kind] + (net == M13 ? 0.14 : -0.14);
            const double line[2] = {s.min, s.max}, level[2] = {y, y};
            const plot_color color = net == M13 ? PLOT_INK : PLOT_GREY;
            stats_sort(v.of, v.n);
            if (!isfinite(v.of[v.n / 2]))
                plot_text_in(p, net == M13 ? 0.04 : 0.52, (dot_at[kind] - 0.4) / 8.2, "diverged",
                             PLOT_LEFT, color);
            plot_line(p, NULL, line, level, 2, plot_solid(color));
            plot_scatter(p, net == M13 ? "13 layers" : "6 layers", &v.of[v.n / 2], &y, 1,
                         plot_marked(color, net == M13 ? PLOT_CIRCLE : PLOT_RING));
        }
}

/* clang-format off */
#define OF_BATCHES(place, net, depth)                                                              \
    .axes = {.col = place, .cols = 6, .heading = "training accuracy, " depth " layers",            \
             .x = "step", .x_scale = PLOT_LOG10, .x_range = {25, STEPS},                           \
             .y = "accuracy on mini-batches", .y_range = {0, 1},                                   \
             .legend = PLOT_LEGEND_BOTTOM_RIGHT},                                                  \
    .line = {{net + NONE, "accuracy"}, {net + BATCH, "accuracy"}, {net + L1, "accuracy"},          \
             {net + L2, "accuracy"}, {net + LINF, "accuracy"}}
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
     .draw = draw_unit, .arm = TRACE + kind, .series = "unit2"}
static const lab_panel units[] = {
    OF_UNIT(NONE, "none", "density, highest point 1"), OF_UNIT(BATCH, "batch norm", ""),
    OF_UNIT(L1, "L1", ""), OF_UNIT(L2, "L2", ""), OF_UNIT(LINF, "L∞", "")};

#define RUN "784-100x13-10, ReLU, Glorot, SGD with rate 0.1, batch 128, 3000 steps"
static int report(lab_report *r)
{
    static const lab_page pages[5] = {
        {"Along the gradient loss and gradient vary less with batch norm", NULL, 1600, 1120,
         .shared_legend = 1},
        {"Along the gradient of one run the loss reaches 10 only without a norm, as in VGG", "run",
         1600, 760, .shared_legend = 1, .settings = RUN "; s = 1/2, 1, 2, 4 times the rate",
         .seeds = 1},
        {"Small steps, random directions: there batch norm is not the smoother one", "sensitivity",
         1600, 1320},
        {"L1, L2 and L∞ smooth the landscape as batch norm does, and keep means still", "family",
         1600, 1320},
        {"Without a norm a unit's inputs spread; with batch norm, L1, L2 and L∞ hardly",
         "histograms", 1600, 700, .shared_legend = 1, .settings = RUN ", layer 7", .seeds = 1}};
    check_all(r);
    lab_judge(r);
    return lab_draw(r, &pages[0], medians, LAB_COUNT(medians)) ||
           lab_draw(r, &pages[1], figure_4, LAB_COUNT(figure_4)) ||
           lab_draw(r, &pages[2], sensitivity, LAB_COUNT(sensitivity)) ||
           lab_draw(r, &pages[3], family, LAB_COUNT(family)) ||
           lab_draw(r, &pages[4], units, LAB_COUNT(units));
}

static const lab_program program = {
    "16_landscape", NRM_VERSION, "Is the loss smoother along the gradient with a norm?",
    "784-100x13-10 and 784-100x6-10, ReLU, Glorot, SGD with rate 0.1, batch 128, 3000 steps; "
    "s = 1/2, 1, 2, 4 times the rate",
    .revision = 1, .uses = LAB_USES_DATA, .arm = arms, .arms = ARMS, .prepare = prepare, .run = run,
    .report = report, .claim = claims, .claims = LAB_COUNT(claims), .look = look_of};
/* clang-format on */
LAB_MAIN(program)
