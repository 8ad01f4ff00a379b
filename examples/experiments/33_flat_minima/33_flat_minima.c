/* 33_flat_minima: do small batches and large learning rates end in flatter minima, and do these
   generalize better? (README.md)

   Flatness is measured (lab/flatness.h) on the first 2000 training images as one batch, at the end
   and where their loss first falls below 0.05, looked at every quarter of an epoch near there. Test
   error and loss are of the 10,000 test images; running statistics for that are taken anew. */
#include "lab/experiment.h"
#include "lab/flatness.h"

#define NOISE 0.5       /* size of the noise: the share of a unit's length, or of a weight */
#define EQUAL_LOSS 0.05 /* on the probe images, where all arms are looked at on the way    */
#define CONVERGED 0.001 /* training error up to which a network counts as such             */
#define SETTLED 0.05    /* error of an eigenvalue, as a part of it                         */

enum { HIDDEN = 2, WIDTH = 100, EPOCHS = 50, IMAGES = 5120, PROBE = 2000, DIRECTIONS = 10 };
enum { ON_THE_WAY = 1, AT_END = 2 }; /* x of the records */
enum { STEPS = 12 };                 /* of Lanczos */

/* ---- arms ------------------------------------------------------------------------------------ */

enum { NONE, BATCH, NORMS, SETTINGS = 6, MIDDLE = 2, LOW = 4, HIGH = 5, ARMS = NORMS * SETTINGS };

static const struct {
    size_t batch;
    double rate;
} settings[SETTINGS] = {{8, 0.1}, {32, 0.1}, {128, 0.1}, {256, 0.1}, {128, 0.05}, {128, 0.5}};

/* clang-format off */
#define OF_NORM(id, name, few)                                                                     \
    {id "_8", name ", batch 8", 5}, {id "_32", name ", batch 32", 5},                              \
    {id "_128", name ", batch 128", 5}, {id "_256", name ", batch 256", 5},                        \
    {id "_slow", name ", rate 0.05", 5, few}, {id "_fast", name ", rate 0.5", 5, few}
static const lab_arm arms[ARMS] = {OF_NORM("none", "no norm", 15),
                                   OF_NORM("batch", "batch norm", 0)};
/* clang-format on */

static size_t arm_of(size_t norm, size_t setting)
{
    return norm * SETTINGS + setting;
}

/* ---- a run ----------------------------------------------------------------------------------- */

LAB_SETS(train, test, quick ? 512 : IMAGES, quick ? 200 : 0, DATASET_STD);

static size_t probe_images(void)
{
    return train.n < PROBE ? 128 : PROBE;
}

static nrm_mlp_spec network(trainer *t)
{
    nrm_mlp_spec spec = training_plain(t->layer, HIDDEN, WIDTH, NRM_RELU,
                                       t->run->arm < SETTINGS ? NRM_NO_NORM : NRM_BATCH_NORM);
    spec.max_batch = probe_images();
    spec.lr = (nrm_real)settings[t->run->arm % SETTINGS].rate;
    return spec;
}

/* Is the residual of Lanczos' vector small? If not, at the end of a run, more steps are taken. */
static int settled(flatness_eigenvalue top)
{
    return top.error < SETTLED * top.value;
}

static int measure(lab_run *r, flatness_view *v, double when)
{
    static const char *const name[FLATNESS_KINDS] = {"filter", "relative"};
    flatness_eigenvalue top = {(double)NAN, (double)NAN};
    flatness_harm h = {(double)NAN, (double)NAN};
    double loss = (double)NAN;
    int kind, rc = flatness_at(v, NULL, 0, &loss);
    lab_record(r, "loss", when, loss);
    if (rc >= 0) rc = flatness_lanczos(v, r->seed, r->quick ? 3 : STEPS, &top);
    if (rc >= 0 && !r->quick && when == AT_END && !settled(top))
        rc = flatness_lanczos(v, r->seed, FLATNESS_KRYLOV, &top);
    lab_record(r, "eigenvalue", when, top.value);
    lab_record(r, "eigenvalue_error", when, top.error);
    for (kind = 0; kind < FLATNESS_KINDS && rc >= 0; kind++) {
        rc = flatness_shake(v, kind, r->seed, NOISE, r->quick ? 2 : DIRECTIONS, &h);
        lab_record_as(r, when, h.rise, "%s_rise", name[kind]);
        lab_record_as(r, when, h.changed, "%s_changed", name[kind]);
    }
    return rc < 0 ? -1 : 0;
}

/* With looks on the way, or without if v is null: the weights at the end are the same. */
static int train_net(trainer *t, flatness_view *v)
{
    lab_run *r = t->run;
    const size_t all = (r->quick ? 2u : EPOCHS) * train.n;
    const double equal = r->quick ? 0.7 : EQUAL_LOSS;
    size_t images = 0, next_look = v ? train.n : all + 1;
    double loss = 0;
    while (images < all) {
        if (trainer_step(t)) return -1;
        images += t->order.count;
        if (t->status == NRM_NONFINITE) {
            lab_record(r, "diverged", (double)images, 1);
            return 0;
        }
        lab_progress(r, 0.8 * (double)images / (double)all);
        if (images < next_look) continue;
        flatness_here(v);
        if (flatness_at(v, NULL, 0, &loss) < 0) return -1;
        next_look = images + (loss > 2 * equal ? train.n : train.n / 4);
        if (!(loss <= equal)) continue;
        lab_record(r, "images", ON_THE_WAY, (double)images);
        if (measure(r, v, ON_THE_WAY)) return -1;
        next_look = all + 1;
    }
    return 0;
}

static int measure_end(trainer *t, flatness_view *v)
{
    lab_run *r = t->run;
    double loss = 0, accuracy;
    flatness_here(v);
    if (measure(r, v, AT_END)) return -1;
    if (r->arm >= SETTINGS && training_reestimate(t->net, train.x, train.n) < 0) return -1;
    accuracy = trainer_accuracy(t, &train, &loss);
    lab_record(r, "train_loss", AT_END, loss);
    lab_record(r, "train_error", AT_END, 1 - accuracy);
    accuracy = trainer_accuracy(t, &test, &loss);
    lab_record(r, "test_loss", AT_END, loss);
    lab_record(r, "test_error", AT_END, 1 - accuracy);
    return isnan(accuracy) ? -1 : 0;
}

static int run(lab_run *r)
{
    const trainer_plan plan = {
        .network = network, .set = &train, .batch = settings[r->arm % SETTINGS].batch};
    trainer t, again;
    flatness_view v = {0};
    int failed = trainer_open(&t, r, &plan) ||
                 flatness_open(&v, t.net, train.x, train.labels, probe_images()) ||
                 train_net(&t, &v);
    if (!failed && r->quick) { /* once more without looking */
        failed = trainer_open(&again, r, &plan) || train_net(&again, NULL);
        if (!failed) lab_record(r, "same_bits", 0, training_same_bits(t.net, again.net));
        trainer_close(&again);
    }
    if (!failed && t.status == NRM_OK) failed = measure_end(&t, &v); /* else verdicts see nan */
    flatness_close(&v);
    trainer_close(&t);
    return failed ? -1 : 0;
}

/* ---- verdicts -------------------------------------------------------------------------------- */

enum { BY_BATCH, BY_RATE, ORDERS, MEASURES = 2 };

typedef struct order { /* settings, from the one that is said to end flattest */
    size_t n, at[4];
    double x[4];
    const char *values;
} order;

static const order orders[ORDERS] = {
    {4, {0, 1, 2, 3}, {8, 32, 128, 256}, "batch 8, 32, 128, 256"},
    {3, {HIGH, MIDDLE, LOW, 0}, {0.5, 0.1, 0.05, 0}, "rate 0.5, 0.1, 0.05"}};

static const char *const measure_id[MEASURES] = {"eigenvalue", "filter_rise"};

/* Is the series lower in the first setting than in the last, seed by seed? Its size is met if the
   means rise from the first to the last. */
static stats_finding rises(const lab_report *r, size_t norm, const order *o, const char *series,
                           double when)
{
    const size_t first = arm_of(norm, o->at[0]), last = arm_of(norm, o->at[o->n - 1]);
    double before = -(double)INFINITY;
    int met = 1;
    size_t i;
    for (i = 0; i < o->n; i++) {
        const double mean = lab_mean(r, arm_of(norm, o->at[i]), series, when);
        if (!(before < mean)) met = 0;
        before = mean;
    }
    return lab_less(lab_all(r, first, series, when), lab_all(r, last, series, when), met);
}

/* "0.004, 0.02, 0.3": the means from the first setting to the last. */
static const char *means(lab_report *r, size_t norm, const order *o, const char *series,
                         double when)
{
    const char *text = "";
    size_t i;
    for (i = 0; i < o->n; i++)
        text = lab_format(r, "%s%s%.2g", text, i ? ", " : "",
                          lab_mean(r, arm_of(norm, o->at[i]), series, when));
    return text;
}

/* Which runs have not converged: their ends are no minima and compare with nothing. */
static const char *unfinished(lab_report *r, size_t norm, const order *o, const char *before)
{
    size_t i, s;
    for (i = 0; i < o->n; i++) {
        const size_t arm = arm_of(norm, o->at[i]), runs = lab_seeds(r, arm);
        size_t n = 0;
        for (s = 0; s < runs; s++) n += !(lab_at(r, arm, s, "train_error", AT_END) <= CONVERGED);
        if (n > 0)
            before = lab_format(r, "%s%snot converged: %zu of %zu runs of %s", before,
                                *before ? "; " : "", n, runs, arms[arm].name);
    }
    return before;
}

/* Of a claim, a is the network, or NORMS for both, and b the order of the settings; one without a
   series is about both measures. */
static void judge_rises(lab_report *r, const lab_claim *c)
{
    const order *by = &orders[c->b];
    const size_t first = c->a == NORMS ? NONE : c->a, last = c->a == NORMS ? BATCH : c->a;
    const char *text[NORMS * MEASURES] = {"", "", "", ""}, *remark = c->remark ? c->remark : "";
    stats_finding part[NORMS * MEASURES];
    size_t m, norm, parts = 0;
    for (m = 0; m < (c->series ? 1 : MEASURES); m++)
        for (norm = first; norm <= last; norm++) {
            const char *series = c->series ? c->series : measure_id[m];
            text[parts] = means(r, norm, by, series, c->at);
            part[parts++] = rises(r, norm, by, series, c->at);
        }
    if (*remark) remark = lab_format(r, "%s %s", remark, means(r, c->a, by, "train_loss", AT_END));
    for (norm = first; norm <= last && c->at >= AT_END; norm++)
        remark = unfinished(r, norm, by, remark);
    lab_verdict(r, c, stats_together(part, parts), remark, "%s: %s", by->values,
                lab_format(r, c->say, text[0], text[1], text[2], text[3]));
}

static void judge_error(lab_report *r, const lab_claim *c)
{
    const order *by = &orders[c->b];
    const lab_numbers first = lab_all(r, arm_of(c->a, by->at[0]), "test_error", AT_END);
    const lab_numbers last = lab_all(r, arm_of(c->a, by->at[by->n - 1]), "test_error", AT_END);
    const char *loss = means(r, c->a, by, "test_loss", AT_END);
    lab_verdict(r, c, lab_less(first, last, 1),
                unfinished(r, c->a, by, lab_format(r, "test loss %s", loss)), "%s against %s",
                lab_pm(r, first, 4), lab_pm(r, last, 4));
}

/* The rank of x[i] less the mean rank; equal values share the mean of theirs. */
static double rank(const double *x, size_t i, size_t n)
{
    double below = 0, above = 0;
    size_t j;
    for (j = 0; j < n; j++) {
        below += x[j] < x[i];
        above += x[j] > x[i];
    }
    return (below - above) / 2;
}

/* Spearman's correlation: Pearson's, of the ranks. */
static double spearman(const double *x, const double *y, size_t n)
{
    double ab = 0, aa = 0, bb = 0;
    size_t i;
    for (i = 0; i < n; i++) {
        const double a = rank(x, i, n), b = rank(y, i, n);
        ab += a * b;
        aa += a * a;
        bb += b * b;
    }
    return ab / sqrt(aa * bb);
}

/* Over the six settings, for each seed: of a measure of sharpness and the test error. */
static lab_numbers correlations(const lab_report *r, size_t norm, const char *series)
{
    lab_numbers rho;
    double sharp[SETTINGS], error[SETTINGS];
    size_t s, i;
    rho.n = lab_seeds(r, arm_of(norm, 0));
    for (s = 0; s < rho.n; s++) {
        for (i = 0; i < SETTINGS; i++) {
            sharp[i] = lab_at(r, arm_of(norm, i), s, series, AT_END);
            error[i] = lab_at(r, arm_of(norm, i), s, "test_error", AT_END);
        }
        rho.of[s] = spearman(sharp, error, SETTINGS);
    }
    return rho;
}

static void judge_relation(lab_report *r, const lab_claim *c)
{
    stats_finding part[MEASURES];
    const char *text[MEASURES];
    size_t m;
    for (m = 0; m < MEASURES; m++) {
        const lab_numbers rho = correlations(r, c->a, measure_id[m]);
        part[m] = lab_above(rho, 0);
        part[m].size_met = lab_describe(rho).mean >= 0.5;
        text[m] = lab_pm(r, rho, 2);
    }
    lab_verdict(r, c, stats_together(part, MEASURES),
                lab_format(r, "with the share of changed decisions: %.2f",
                           lab_describe(correlations(r, c->a, "filter_changed")).mean),
                "correlation %s with the eigenvalue, %s with the rise", text[0], text[1]);
}

static void judge_norm(lab_report *r, const lab_claim *c)
{
    stats_finding part[SETTINGS];
    size_t i, lower = 0;
    const char *text = "";
    for (i = 0; i < SETTINGS; i++) {
        const size_t none = arm_of(NONE, i), batch = arm_of(BATCH, i);
        part[i] =
            lab_less(lab_all(r, batch, c->series, AT_END), lab_all(r, none, c->series, AT_END), 1);
        lower += lab_mean(r, batch, "eigenvalue", AT_END) < lab_mean(r, none, "eigenvalue", AT_END);
        text =
            lab_format(r, "%s%s%.2g / %.2g", text, i ? ", " : "",
                       lab_mean(r, batch, c->series, AT_END), lab_mean(r, none, c->series, AT_END));
    }
    lab_verdict(r, c, stats_together(part, SETTINGS),
                lab_format(r,
                           "its mean eigenvalue is lower at %lu of 6 settings, but that sees the "
                           "lengths of weights that batch norm makes irrelevant",
                           (unsigned long)lower),
                "batch 8, 32, 128, 256, rate 0.05, 0.5: %s", text);
}

static const char keskar[] = "Keskar et al. 2017, via Bjorck et al. 2018 and Chinese notes on "
                             "batch norm";
static const char bjorck[] = "Bjorck et al. 2018, via Chinese notes on batch norm";
static const char no_numbers[] = "no numbers in the notes";
static const char trials[] =
    "trial runs (1 seed, 40 epochs) without a norm, batch 8, 32, 128, 512: eigenvalue 0.004, 0.27, "
    "2.3, 14; rise 0.025, 0.12, 0.24, 0.31; at loss 0.05 1.3, 4.1, 8.3, never; test error 0.059, "
    "0.056, 0.062, 0.070. 512 had not converged; 256, 50 epochs: 5.2; 0.29; 11; 0.067";
static const char fast_trials[] =
    "trial runs (1 seed) of rate 0.5, without a norm and with batch norm: eigenvalue 0.14 and "
    "0.029; rise 0.061 and 0.029; at loss 0.05 5.0 and 1.1; test error 0.068 and 0.054";
static const char norm_trials[] =
    "trial run (1 seed) of batch 256 with batch norm: eigenvalue 0.88, rise 0.14, changed 0.040 "
    "(0.099 without a norm), test error 0.066; at loss 0.05 1.9";

/* clang-format off */
#define ENDS(norm, by)                                                                             \
    .judge = judge_rises, .a = norm, .b = by, .at = AT_END, .say = "eigenvalue %s; rise %s",       \
    .remark = "final training loss"
#define SAME_LOSS(by)                                                                              \
    .judge = judge_rises, .a = NORMS, .b = by, .at = ON_THE_WAY,                                   \
    .say = "eigenvalue %s without a norm, %s with; rise %s and %s"
#define ERRORS(norm, by) .judge = judge_error, .a = norm, .b = by
#define DECISIONS(by)                                                                              \
    .judge = judge_rises, .a = NORMS, .b = by, .series = "filter_changed", .at = AT_END,           \
    .say = "%s without a norm, %s with"
static const lab_claim claims[] = {
    {"33a", "A smaller batch ends in a flatter minimum, without a norm", keskar, no_numbers,
     "after 50 epochs the largest eigenvalue of the Hessian, and the rise of the loss under "
     "filter-normalized noise: batch 8 below 256, paired, and all four means in order; both "
     "measures (else partly)", trials, ENDS(NONE, BY_BATCH)},
    {"33b", "... and with batch norm", keskar, no_numbers, "the same with batch norm", norm_trials,
     ENDS(BATCH, BY_BATCH)},
    {"33c", "A larger learning rate ends in a flatter minimum, without a norm", bjorck,
     "a suggestion, without numbers", "the same two measures at batch 128: rate 0.5 below 0.05, "
     "paired, 0.1 between them in the means; both (else partly)", fast_trials, ENDS(NONE, BY_RATE)},
    {"33d", "... and with batch norm", bjorck, "a suggestion, without numbers",
     "the same with batch norm", fast_trials, ENDS(BATCH, BY_RATE)},
    {"33e", "Flatter minima generalize better, without a norm", keskar,
     "\"sharp minima, which often generalize poorly\"; no numbers", "Spearman's correlation of the "
     "measure at the end with the test error over the six settings, seed by seed: above 0, and at "
     "least 0.5 in the mean; for the eigenvalue and for the rise (else partly)", trials,
     .judge = judge_relation, .a = NONE},
    {"33f", "... and with batch norm", keskar,
     "\"sharp minima, which often generalize poorly\"; no numbers", "the same with batch norm",
     norm_trials, .judge = judge_relation, .a = BATCH},
    {"33g", "A smaller batch generalizes better, without a norm", keskar, no_numbers,
     "test error after 50 epochs: batch 8 below 256, paired", trials, ERRORS(NONE, BY_BATCH)},
    {"33h", "... and with batch norm", keskar, no_numbers, "the same with batch norm", norm_trials,
     ERRORS(BATCH, BY_BATCH)},
    {"33i", "A larger learning rate generalizes better, without a norm", bjorck,
     "a suggestion, without numbers",
     "test error after 50 epochs, batch 128: rate 0.5 below 0.05, paired", fast_trials,
     ERRORS(NONE, BY_RATE)},
    {"33j", "... and with batch norm", bjorck, "CIFAR-10: the largest learning rate ends best",
     "the same with batch norm", fast_trials, ERRORS(BATCH, BY_RATE)},
    {"33k", "With batch norm the minimum is flatter than without, at the same settings",
     "Chinese notes on batch norm; a lecture-style post (of the landscape: \"smoother\", fewer "
     "\"sharp minima\")", "no numbers", "at the end, rise under filter-normalized noise: batch "
     "norm below no norm, paired, at each of the six settings (else partly)", fast_trials,
     .judge = judge_norm, .series = "filter_rise"},
    {"33l", "A smaller batch is flatter also where the training loss is the same", "ours",
     "not stated", "the measures of 33a where the loss on the probe images first falls below 0.05; "
     "both measures and both networks (else partly)", trials, SAME_LOSS(BY_BATCH)},
    {"33m", "A larger learning rate is flatter also where the training loss is the same", "ours",
     "not stated", "those of 33c, likewise", fast_trials, SAME_LOSS(BY_RATE)},
    {"33n", "After a smaller batch noise changes fewer decisions", "ours",
     "not stated; decisions do not see how large the logits have become",
     "share of the probe images decided otherwise under filter-normalized noise, at the end: batch "
     "8 below 256, paired, means in order, both networks (else partly)", norm_trials,
     DECISIONS(BY_BATCH)},
    {"33o", "After a larger learning rate noise changes fewer decisions", "ours",
     "not stated; decisions do not see how large the logits have become",
     "the same: rate 0.5 below 0.05", fast_trials, DECISIONS(BY_RATE)}};
/* clang-format on */

/* ---- checks ---------------------------------------------------------------------------------- */

static void check_runs(lab_report *r)
{
    double error = 0, least = (double)INFINITY, most = 0;
    size_t a, s;
    for (a = 0; a < ARMS; a++)
        for (s = 0; s < lab_seeds(r, a); s++) {
            const double at_end = lab_at(r, a, s, "eigenvalue_error", AT_END);
            const double loss = lab_at(r, a, s, "loss", ON_THE_WAY);
            if (lab_get(r, a, s, "diverged").n > 0) continue;
            error = stats_larger(error, at_end / lab_at(r, a, s, "eigenvalue", AT_END));
            least = stats_smaller(least, loss);
            most = stats_larger(most, loss);
        }
    if (lab_quick(r)) return;
    lab_check(r, error < SETTLED, "eigenvalues have settled", "error at most %.1e of the value",
              error);
    lab_check(r, most <= EQUAL_LOSS, "where the loss is said to be below 0.05, it is",
              "%.4f to %.4f", least, most);
}

/* ---- figures --------------------------------------------------------------------------------- */

static plot_style style_of(size_t norm, double when)
{
    static const int marker[NORMS][2] = {{PLOT_RING, PLOT_CIRCLE}, {PLOT_CROSS, PLOT_SQUARE}};
    plot_style s =
        plot_with_marker(lab_style(norm ? "batch" : "none"), marker[norm][when >= AT_END]);
    if (when < AT_END) s.width = 0.5;
    return s;
}

/* panel->series in the settings of an order; both where the loss is equal and at the end, but for
   the test error. */
static void draw_order(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    static const double limit[ORDERS][2] = {{20, 20}, {2 / 0.7, 2 / 0.035}};
    static const double ends[ORDERS][2] = {{6, 340}, {0.7, 0.035}};
    const order *o = &orders[panel->arm];
    size_t norm, i;
    double when;
    if (!strcmp(panel->series, "eigenvalue")) {
        plot_line(p, NULL, ends[panel->arm], limit[panel->arm], 2, plot_thin(PLOT_INK));
        plot_text(p, o->x[1], 21, "2/rate",
                  panel->arm ? PLOT_LEFT + PLOT_ABOVE : PLOT_CENTER + PLOT_BELOW, PLOT_INK);
    }
    for (norm = 0; norm < NORMS; norm++)
        for (when = strcmp(panel->series, "test_error") ? ON_THE_WAY : AT_END; when <= AT_END;
             when++) {
            const plot_style style = style_of(norm, when);
            double mean[4], lo[4], hi[4];
            for (i = 0; i < o->n; i++) {
                const stats_summary s = lab_summary(r, arm_of(norm, o->at[i]), panel->series, when);
                mean[i] = s.mean;
                lo[i] = s.min;
                hi[i] = s.max;
            }
            if (when >= AT_END) plot_band(p, NULL, o->x, lo, hi, o->n, style);
            plot_line(
                p,
                lab_format(r, "%s, %s", norm ? "batch norm" : "no norm",
                           when < AT_END ? "where the loss falls below 0.05" : "after 50 epochs"),
                o->x, mean, o->n, style);
        }
}

/* All runs at the end, panel->series against that of the heading. Beside the rightmost of a setting
   without a norm, and the leftmost with one, stands its name, where there is room; those of rate
   0.05 lie among those of batch 256. */
static void draw_runs(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    static const char *const name[SETTINGS] = {"8", "32", "128", "256", NULL, "0.5"};
    const char *of = panel->axes.row ? "test_error" : "eigenvalue";
    size_t arm, s;
    for (arm = 0; arm < ARMS; arm++) {
        const lab_numbers x = lab_all(r, arm, panel->series, AT_END),
                          y = lab_all(r, arm, of, AT_END);
        plot_style style = style_of(arm / SETTINGS, AT_END);
        const int left = arm >= SETTINGS;
        size_t last = 0;
        style.alpha = 0.6;
        plot_scatter(p, NULL, x.of, y.of, x.n, style);
        for (s = 1; s < x.n; s++)
            if (left ? x.of[s] < x.of[last] : x.of[s] > x.of[last]) last = s;
        if (name[arm % SETTINGS] && (arm == arm_of(NONE, HIGH) || !panel->axes.row))
            plot_text(p, x.of[last], y.of[last],
                      lab_format(r, left ? "%s  " : "  %s", name[arm % SETTINGS]),
                      left ? PLOT_RIGHT : PLOT_LEFT, PLOT_INK);
    }
}

/* clang-format off */
static const double batch_at[4] = {8, 32, 128, 256}, rate_at[3] = {0.05, 0.1, 0.5};
static const char *const batch_name[4] = {"8", "32", "128", "256"};
static const char *const rate_name[3] = {"0.05", "0.1", "0.5"};
#define AXES_BY_BATCH .x = "batch size (rate 0.1)", .x_scale = PLOT_LOG2, .x_range = {6, 340},     \
    .x_ticks = batch_at, .x_names = batch_name, .x_count = 4, .grid = PLOT_GRID_Y
#define AXES_BY_RATE .x = "learning rate (batch 128)", .x_scale = PLOT_LOG2,                       \
    .x_range = {0.035, 0.7}, .x_ticks = rate_at, .x_names = rate_name, .x_count = 3,               \
    .grid = PLOT_GRID_Y
#define ORDERED(by, of, title, label, ...)                                                         \
    {.axes = {.heading = title, .y = label, AXES_##by, __VA_ARGS__},                               \
     .draw = draw_order, .arm = by, .series = of}

/* Flatness under noise and test error: what a user would feel. */
#define OF_NOISE(by)                                                                               \
    ORDERED(by, "filter_rise", "rise of the loss", "under noise", .row = by,                       \
            .y_scale = PLOT_LOG10),                                                                \
    ORDERED(by, "filter_changed", "changed decisions", "under noise", .row = by, .col = 1,         \
            .y_scale = PLOT_LOG10),                                                                \
    ORDERED(by, "test_error", "test error", "share of 10 000 images", .row = by, .col = 2)
static const lab_panel noise[] = {OF_NOISE(BY_BATCH), OF_NOISE(BY_RATE)};

/* The eigenvalue, and each run by itself. */
#define EIGENVALUE(by)                                                                             \
    ORDERED(by, "eigenvalue", "largest eigenvalue", "of the Hessian", .col = by,                   \
            .y_scale = PLOT_LOG10)
#define RUNS(of, title, label, lo, hi, ...)                                                        \
    {.axes = {.heading = title, .x = label, .x_scale = PLOT_LOG10, .x_range = {lo, hi},            \
              .grid = PLOT_GRID_BOTH, __VA_ARGS__}, .draw = draw_runs, .series = of}
#define ERRORS_OVER(of, place, title, label, lo, hi)                                               \
    RUNS(of, title, title " " label, lo, hi, .row = 1, .col = place, .y = "test error")
static const lab_panel runs[] = {
    EIGENVALUE(BY_BATCH), EIGENVALUE(BY_RATE),
    RUNS("train_loss", "eigenvalue and loss", "training loss", 1e-5, 0.1, .col = 2,
         .y = "largest eigenvalue", .y_scale = PLOT_LOG10),
    ERRORS_OVER("eigenvalue", 0, "largest eigenvalue", "of the Hessian", 2e-3, 40),
    ERRORS_OVER("filter_rise", 1, "rise of the loss", "under noise", 0.01, 100),
    ERRORS_OVER("filter_changed", 2, "changed decisions", "under noise", 4e-3, 2)};

static const lab_page pages[2] = {
    {"Small batches and, with batch norm, large rates end in flatter and better minima", NULL, 1180,
     .shared_legend = 1, LAB_PANELS(noise)},
    {"The flatter a run ends, the lower its test error; and the lower its loss", "runs", 1180,
     .shared_legend = 1, LAB_PANELS(runs)}};
/* clang-format on */

LAB_PROGRAM(
    "33_flat_minima",
    "Do small batches and large learning rates end in flatter minima that generalize better?",
    "784-100-100-10, ReLU, standardized pixels, SGD with rate 0.1 and batch 128 where not told "
    "otherwise, 50 epochs of 5120 images; flatness on 2000 of them",
    .revision = 1, .uses = LAB_USES_DATA + LAB_TWICE, .prepare = prepare, .after = check_runs)
