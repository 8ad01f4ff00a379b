/* 11_ioffe_figure1: what a sigmoid deep in a network is given, with and without batch norm.

   Figure 1 of Ioffe and Szegedy (2015). What the paper leaves open, the learning rate and the
   deviation of the first weights, has a second value each, so there are four settings; three of
   them run with two seeds. Stability of a unit, at every thousandth step, mean of the hundred
   units:

       D = (highest - lowest median from step 1000 on) / (mean distance of 15th and 85th percentile)
*/
#include "lab/experiment.h"
#include "lab/draw.h"

enum { INPUTS = 784, WIDTH = 100, HIDDEN = 3, CLASSES = 10, BATCH = 60, PART = 1000 };
enum { STEPS = 50000, EVERY = 500, EVERY_UNITS = 1000, SETTINGS = 4, CHECK_STEPS = 40 };
enum { LEVELS = 3 };

static const double level[LEVELS] = {0.15, 0.5, 0.85};
static const char *const level_name[LEVELS] = {"p15", "p50", "p85"};
#define GAUSSIAN_85 1.0364 /* 85 % of a standard Gaussian lie below */

/* Arm 2k is setting k without a norm, 2k + 1 the same with batch norm. */
/* clang-format off */
#define BOTH(id, name, more, seeds)                                                                \
    {"none" id, "no norm" name, 36 + 9 * more, seeds},                                             \
        {"batch" id, "batch norm" name, 40 + 10 * more, seeds}
static const lab_arm arms[2 * SETTINGS] = {
    BOTH("", "", 1, 0), BOTH("_lr0.5", ", lr 0.5", 0, 2), BOTH("_w0.01", ", sd 0.01", 0, 2),
    BOTH("_w0.01_lr0.5", ", sd 0.01, lr 0.5", 0, 2)};
/* clang-format on */
static const double weight_sd[SETTINGS] = {0.1, 0.1, 0.01, 0.01};
static const double rate[SETTINGS] = {0.1, 0.5, 0.1, 0.5};

LAB_SETS(train, test, 0, quick ? PART : 0, DATASET_BIN);

/* ---- one run --------------------------------------------------------------------------------- */

typedef struct trial { /* a network in training, and what the probe sees of it */
    nrm_mlp *net;
    void *block;
    nrm_rng order;
    nrm_real x[BATCH * INPUTS];
    int labels[BATCH];
    double *input; /* [WIDTH][test.n] of the last hidden layer's sigmoids */
    size_t at;     /* test images seen before the present part            */
} trial;

static int trial_start(trial *t, size_t arm, uint64_t seed)
{
    nrm_mlp_layer layer[HIDDEN + 1];
    nrm_mlp_spec spec =
        training_plain(layer, HIDDEN, WIDTH, NRM_SIGMOID, arm % 2 ? NRM_BATCH_NORM : NRM_NO_NORM);
    spec.max_batch = PART;
    spec.seed = seed;
    spec.init = NRM_INIT_GAUSSIAN;
    spec.init_std = (nrm_real)weight_sd[arm / 2];
    spec.lr = (nrm_real)rate[arm / 2];
    memset(t, 0, sizeof *t);
    nrm_rng_seed(&t->order, seed, TRAINING_STREAM_ORDER);
    t->input = (double *)malloc(WIDTH * test.n * sizeof *t->input);
    t->net = training_net(&spec, &t->block);
    return t->input && t->net ? 0 : -1;
}

static void trial_end(trial *t)
{
    free(t->input);
    free(t->block);
}

static int trial_step(trial *t)
{
    size_t i;
    for (i = 0; i < BATCH; i++) {
        const size_t from = nrm_rng_below(&t->order, (uint32_t)train.n);
        memcpy(t->x + i * INPUTS, train.x + from * INPUTS, INPUTS * sizeof *t->x);
        t->labels[i] = train.labels[from];
    }
    return nrm_mlp_train_step(t->net, NULL, t->x, t->labels, BATCH);
}

/* Keeps what the last hidden layer's sigmoids are given, unit by unit. */
static void watch(void *context, const nrm_mlp_event *event)
{
    trial *t = (trial *)context;
    const int norm = t->net->state[HIDDEN - 1].shape.norm;
    const int place = norm == NRM_NO_NORM ? NRM_AT_LINEAR : NRM_AT_NORM;
    size_t i, u;
    if (event->layer != HIDDEN - 1 || event->place != place || event->gradient) return;
    for (i = 0; i < event->rows; i++)
        for (u = 0; u < WIDTH; u++)
            t->input[u * test.n + t->at + i] = (double)event->data[i * WIDTH + u];
}

/* The inputs of all sigmoids for all test images, batch norm with the statistics of each part. The
   tool for it is the gradient in train mode: it leaves the running statistics alone. */
static int look(trial *t)
{
    int status = NRM_OK;
    t->net->probe = watch;
    t->net->probe_context = t;
    for (t->at = 0; t->at < test.n && status >= 0; t->at += PART) {
        const size_t left = test.n - t->at;
        status = nrm_mlp_gradient(t->net, NULL, test.x + t->at * INPUTS, test.labels + t->at,
                                  left < PART ? left : PART, NRM_TRAIN);
    }
    t->net->probe = NULL;
    return status;
}

static void percentiles(const trial *t, size_t unit, double q[LEVELS])
{
    double *v = t->input + unit * test.n;
    size_t i;
    stats_sort(v, test.n);
    for (i = 0; i < LEVELS; i++) q[i] = stats_quantile(v, test.n, level[i]);
}

typedef struct wander { /* of the medians of all units, over the training */
    double lowest[WIDTH], highest[WIDTH], width[WIDTH];
    size_t looks;
} wander;

/* All units: the median over units of each percentile, and what D is made of. */
static void record_units(lab_run *r, const trial *t, wander *w, size_t step, size_t from)
{
    double q[WIDTH][LEVELS], one[WIDTH], mean;
    size_t u, i;
    for (u = 0; u < WIDTH; u++) percentiles(t, u, q[u]);
    for (i = 0; i < LEVELS; i++) {
        for (u = 0, mean = 0; u < WIDTH; u++) {
            one[u] = q[u][i];
            mean += one[u] / WIDTH;
        }
        lab_record_as(r, (double)step, stats_median(one, WIDTH), "units_%s", level_name[i]);
        if (step == 0) lab_record(r, "begin_units", level[i], mean);
    }
    if (step < from) return;
    for (u = 0; u < WIDTH; u++) {
        if (w->looks == 0 || q[u][1] < w->lowest[u]) w->lowest[u] = q[u][1];
        if (w->looks == 0 || q[u][1] > w->highest[u]) w->highest[u] = q[u][1];
        w->width[u] += q[u][2] - q[u][0];
    }
    w->looks++;
}

static void record_stability(lab_run *r, const wander *w)
{
    double mean = 0;
    size_t u;
    for (u = 0; u < WIDTH && w->looks > 0; u++) {
        const double d = (w->highest[u] - w->lowest[u]) / (w->width[u] / (double)w->looks);
        lab_record(r, "unit_D", (double)u, d);
        mean += d / WIDTH;
    }
    lab_record(r, "D", 0, mean);
}

/* Accuracy; in the main setting also what the sigmoids are given. */
static int evaluate(lab_run *r, trial *t, wander *w, size_t step, size_t every_units)
{
    nrm_acc accuracy = 0;
    double q[LEVELS];
    size_t i;
    int status = nrm_mlp_eval(t->net, NULL, &accuracy, test.x, test.labels, test.n);
    lab_record(r, "accuracy", (double)step, (double)accuracy);
    if (status < 0 || r->arm >= 2) return status;
    status = look(t);
    if (status < 0) return status;
    percentiles(t, 0, q);
    for (i = 0; i < LEVELS; i++) {
        char series[16] = "unit0_";
        lab_record(r, strcat(series, level_name[i]), (double)step, q[i]);
    }
    if (step % every_units == 0) record_units(r, t, w, step, every_units);
    return status;
}

/* Does a network that is looked at end with the same bits as one that is not? */
static int record_untouched(lab_run *r)
{
    trial *pair = (trial *)malloc(2 * sizeof *pair);
    int status = pair ? 0 : -1, i, step;
    for (i = 0; i < 2 && pair; i++)
        if (trial_start(&pair[i], r->arm, r->seed)) status = -1;
    for (step = 0; step < CHECK_STEPS && status >= 0; step++)
        for (i = 0; i < 2 && status >= 0; i++) {
            if (i == 1 && step % 10 == 0) status = look(&pair[1]);
            if (status >= 0) status = trial_step(&pair[i]);
        }
    if (status >= 0) lab_record(r, "untouched", 0, training_same_bits(pair[0].net, pair[1].net));
    for (i = 0; i < 2 && pair; i++) trial_end(&pair[i]);
    free(pair);
    return status;
}

static int run(lab_run *r)
{
    const size_t steps = r->quick ? 60 : STEPS, every_units = r->quick ? 20 : EVERY_UNITS;
    const size_t every = r->arm < 2 && !r->quick ? EVERY : every_units;
    trial *t = (trial *)malloc(sizeof *t);
    wander w;
    size_t step;
    int status = t ? trial_start(t, r->arm, r->seed) : -1;
    memset(&w, 0, sizeof w);
    if (status >= 0) status = record_untouched(r);
    if (status >= 0) status = evaluate(r, t, &w, 0, every_units);
    for (step = 1; step <= steps && status >= 0; step++) {
        status = trial_step(t);
        if (status >= 0 && step % every == 0) {
            status = evaluate(r, t, &w, step, every_units);
            lab_progress(r, (double)step / (double)steps);
        }
    }
    if (status >= 0 && r->arm < 2) record_stability(r, &w);
    if (t) trial_end(t);
    free(t);
    return status < 0 ? -1 : 0;
}

/* ---- claims ---------------------------------------------------------------------------------- */

/* Steps at which the accuracies are compared; a quick run has none of them. */
static double judged_at(const lab_report *r, int i)
{
    static const double step[3] = {5000, 10000, 50000};
    return lab_quick(r) ? LAB_LAST : step[i];
}

/* Is batch norm above none at all three points, in this setting? */
static stats_finding above(const lab_report *r, size_t setting)
{
    stats_finding part[3];
    int i;
    for (i = 0; i < 3; i++)
        part[i] = lab_more(lab_all(r, 2 * setting + 1, "accuracy", judged_at(r, i)),
                           lab_all(r, 2 * setting, "accuracy", judged_at(r, i)), 1);
    return stats_together(part, 3);
}

/* "0.943 ± 0.002 against 0.909 ± 0.003 at 5,000; ..." */
static const char *accuracies(lab_report *r, size_t setting)
{
    const char *text[3];
    int i;
    for (i = 0; i < 3; i++)
        text[i] = lab_format(r, "%s against %s",
                             lab_text(r, 2 * setting + 1, "accuracy", judged_at(r, i), 3),
                             lab_text(r, 2 * setting, "accuracy", judged_at(r, i), 3));
    return lab_format(r, "5,000: %s; 10,000: %s; 50,000: %s", text[0], text[1], text[2]);
}

/* "+3.21, +1.50, +0.40": by how many points batch norm is above, at the three steps. */
static const char *gains(lab_report *r, size_t setting)
{
    double gain[3];
    int i;
    for (i = 0; i < 3; i++)
        gain[i] = 100 * (lab_mean(r, 2 * setting + 1, "accuracy", judged_at(r, i)) -
                         lab_mean(r, 2 * setting, "accuracy", judged_at(r, i)));
    return lab_format(r, "%+.1f, %+.1f, %+.1f", gain[0], gain[1], gain[2]);
}

static void judge_accuracy(lab_report *r, const lab_claim *c)
{
    lab_verdict(r, c, above(r, 0), "", "%s", accuracies(r, 0));
}

static void judge_elsewhere(lab_report *r, const lab_claim *c)
{
    stats_finding others[SETTINGS - 1];
    size_t k;
    for (k = 1; k < SETTINGS; k++) others[k - 1] = above(r, k);
    lab_verdict(r, c, stats_together(others, SETTINGS - 1), "two seeds each",
                "points above at the three steps: %s with lr 0.5; %s with sd 0.01; %s with both",
                gains(r, 1), gains(r, 2), gains(r, 3));
}

/* clang-format off */
#define END_OF(arm) {.a = arm, .series = "accuracy", .at = LAB_LAST}
static const lab_claim claims[] = {
    {"11a", "With batch norm test accuracy is higher, throughout the training",
     "Ioffe & Szegedy 2015, Fig. 1a", "about 0.955 against 0.71 at 4,000 steps, 0.967 against 0.90 "
     "at 8,000, 0.983 against 0.974 at the end (read off the figure)",
     "above no norm at 5,000, 10,000 and 50,000 steps, each, seed by seed",
     "trial run (1 seed): 0.943 against 0.909 at 5,000, 0.974 against 0.969 at 50,000",
     LAB_TRAINING, LAB_SETTING, judge_accuracy},
    {"11b", "With batch norm it ends at 0.97 or better",
     "ours: a bound below Ioffe & Szegedy 2015, Fig. 1a",
     "about 0.983 at 50,000 steps (read off the figure)",
     "at least 0.97 at 50,000 steps, seed by seed", "trial run (1 seed): 0.974", LAB_TRAINING,
     LAB_SETTING, .test = LAB_ABOVE, .a = 1, .series = "accuracy", .at = LAB_LAST, .limit = 0.97,
     .decimals = 4},
    {"11f", "With batch norm it ends at 0.983", "Ioffe & Szegedy 2015, Fig. 1a",
     "about 0.983 at 50,000 steps (read off the figure)",
     "within 0.005 of it at 50,000 steps, seed by seed",
     "added after the run, when 0.973 was known", LAB_TRAINING, LAB_SETTING,
     LAB_PARTS({LAB_WITHIN, 1, .series = "accuracy", .at = LAB_LAST, .limit = 0.983,
                .tolerance = 0.005}, END_OF(3), END_OF(5), END_OF(7)), .decimals = 3,
     .say = "$1[4]", .remark = "with lr 0.5: $2; with sd 0.01: $3; with both: $4"},
    {"11c", "With batch norm the distribution of a sigmoid's input is more stable",
     "Ioffe & Szegedy 2015, Fig. 1b, c", "no number; without: percentiles begin together near 0.8, "
     "swing, end near -1.8, 0, 1.7; with: from about -1.1, 0, 1.1 smoothly to -2.0, 0, 2.0",
     "D, averaged over the units, smaller with batch norm, seed by seed", "trial run (1 seed), 15 "
     "/ 50 / 85 %: none 0.37, 0.43, 0.47 to -1.25, 0.60, 1.48; batch norm -1.03, 0.14, 1.12 to "
     "-2.05, -0.08, 1.69", LAB_TRAINING, LAB_SETTING, .test = LAB_LESS, .a = 1, .b = 0,
     .series = "D", .decimals = 2, .say = "D = $1 against $2"},
    {"11d", "With batch norm it begins as wide as a standard Gaussian",
     "Ioffe & Szegedy 2015, Fig. 1c", "about -1.1 and 1.1 (read off the figure)",
     "15th and 85th percentile of unit 0 at step 0 within 0.1 of -1.036, 1.036, seed by seed",
     "trial run (1 seed): -1.03 and 1.12", LAB_TRAINING, LAB_SETTING,
     LAB_PARTS({LAB_WITHIN, 1, .series = "unit0_p15", .limit = -GAUSSIAN_85, .tolerance = 0.1},
               {LAB_WITHIN, 1, .series = "unit0_p85", .limit = GAUSSIAN_85, .tolerance = 0.1},
               {.a = 1, .series = "begin_units", .at = 0.15},
               {.a = 1, .series = "begin_units", .at = 0.85}), .decimals = 2,
     .say = "unit 0: $1 and $2; mean of all units: $3[3] and $4[3]"},
    {"11e", "The same holds at other learning rates and weights", "ours: the paper gives neither",
     "not stated", "11a at the three other settings (2 seeds each), all of them",
     "trial run (1 seed), sd 0.01: 0.954 against 0.10 at 5,000, 0.977 against 0.952 at 50,000",
     LAB_TRAINING, LAB_SETTING, judge_elsewhere}};
/* clang-format on */

/* What must hold whatever the data are: the Gaussian's percentile, as the error function has it and
   as batch norm makes it of Gaussian numbers of any mean and width; and that looking changes
   nothing. */
static void check(lab_report *r)
{
    enum { N = 20000 };
    static nrm_real x[N], y[N];
    static double sorted[N];
    const nrm_real one = 1;
    const double phi = 0.5 * erfc(-GAUSSIAN_85 / sqrt(2.0));
    const int same = lab_least(r, 0, 2 * SETTINGS - 1, "untouched", 0) > 0;
    double q[2];
    nrm_acc mean, rstd;
    nrm_rng rng;
    size_t i;
    lab_check(r, fabs(phi - 0.85) < 1e-4, "85 % of a standard Gaussian lie below 1.0364",
              "%.5f, expected 0.85", phi);
    nrm_rng_seed(&rng, 1, TRAINING_STREAM_DATA);
    for (i = 0; i < N; i++) x[i] = (nrm_real)7 + (nrm_real)3 * draw_normal(&rng);
    (void)nrm_batchnorm_forward(y, &mean, &rstd, NULL, x, &one, NULL, NRM_TRAIN, (nrm_real)1e-5, N,
                                1, 1);
    for (i = 0; i < N; i++) sorted[i] = (double)y[i];
    stats_sort(sorted, N);
    for (i = 0; i < 2; i++) q[i] = stats_quantile(sorted, N, level[2 * i]);
    lab_check(r, fabs(q[0] + GAUSSIAN_85) < 0.04 && fabs(q[1] - GAUSSIAN_85) < 0.04,
              "batch norm of N(7, 9) has its 15th and 85th percentile there",
              "%.3f and %.3f, expected -1.036 and 1.036", q[0], q[1]);
    lab_check(r, same, "a network that is looked at trains to the same bits", "%s",
              same ? "all runs" : "not all runs");
}

/* ---- figures --------------------------------------------------------------------------------- */

static void step_axis(plot_panel *p, const lab_report *r)
{
    static const double at[6] = {0, 10000, 20000, 30000, 40000, 50000};
    static const char *const name[6] = {"0", "10k", "20k", "30k", "40k", "50k"};
    if (lab_quick(r)) return;
    plot_range_x(p, 0, STEPS);
    plot_ticks_x(p, at, name, 6);
}

/* For what is read off the paper's figure. */
static plot_style ring(plot_color color)
{
    return plot_marked(color, PLOT_RING);
}

/* Test accuracy of one setting, with the values that can be read off the paper's figure. */
static void draw_accuracy(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    const size_t setting = panel->arm;
    static const double x0[5] = {4000, 8000, 13000, 20000, 45000};
    static const double y0[5] = {0.71, 0.90, 0.945, 0.965, 0.974};
    static const double x1[4] = {4000, 8000, 17000, 50000};
    static const double y1[4] = {0.955, 0.967, 0.975, 0.983};
    size_t i;
    step_axis(p, r);
    if (!lab_quick(r)) plot_range_y(p, setting < 2 ? 0.7 : 0, 1);
    for (i = 0; i < 2; i++) {
        const char *label = i ? "with batch norm" : "without";
        const plot_style style = lab_style(i ? "batch" : "none");
        if (setting == 0)
            lab_plot(r, p, i, "accuracy", label, style);
        else
            lab_plot_seeds(r, p, 2 * setting + i, "accuracy", label, style);
    }
    if (lab_quick(r)) return;
    plot_scatter(p, "the paper's, without", x0, y0, 5, ring(lab_style("none").color));
    plot_scatter(p, "the paper's, with", x1, y1, 4, ring(lab_style("batch").color));
}

/* Percentiles of a run as three rows of n values, to be freed. */
static double *pack(lab_report *r, size_t arm, size_t seed, const char *what, lab_series *first)
{
    double *q;
    size_t i;
    *first = lab_get(r, arm, seed, lab_format(r, "%s_p15", what));
    q = (double *)calloc(LEVELS * first->n + 1, sizeof *q);
    for (i = 0; i < LEVELS && q; i++) {
        const lab_series s = lab_get(r, arm, seed, lab_format(r, "%s_%s", what, level_name[i]));
        if (s.n == first->n) memcpy(q + i * s.n, s.y, s.n * sizeof *q);
    }
    return q;
}

/* The first seed's percentiles as a fan, those of the others as thin lines; and, of one unit, where
   the paper's three lines begin and end, as read off its figure. */
static void draw_fan(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    static const char *const percent[LEVELS] = {"15 %", "50 %", "85 %"};
    static const double x[6] = {0, 0, 0, STEPS, STEPS, STEPS};
    static const double y[2][6] = {{0.8, 0.8, 0.8, -1.8, 0, 1.7}, {-1.1, 0, 1.1, -2, 0, 2}};
    const size_t arm = panel->arm;
    const plot_style style = lab_style(arm % 2 ? "batch" : "none");
    lab_series first;
    double *q;
    size_t s, i;
    step_axis(p, r);
    for (s = lab_seeds(r, arm); s-- > 0;) {
        q = pack(r, arm, s, panel->series, &first);
        if (!q) return;
        if (s == 0)
            plot_band(p, NULL, first.x, q, q + 2 * first.n, first.n,
                      plot_styled(style.color, .alpha = 0.17));
        for (i = 0; i < LEVELS; i++)
            plot_line(p, s ? NULL : percent[i], first.x, q + i * first.n, first.n,
                      s        ? plot_thin(style.color)
                      : i == 1 ? style
                               : plot_styled(style.color, .width = 0.4));
        free(q);
    }
    if (panel->other && !lab_quick(r)) plot_scatter(p, NULL, x, y[arm], 6, ring(PLOT_INK));
}

/* The D of every unit of every seed, sorted: how many units lie below. */
static void draw_distribution(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    double d[LAB_SEEDS_MAX * WIDTH], below[LAB_SEEDS_MAX * WIDTH];
    size_t a, s, i, n;
    for (a = 0; a < 2; a++) {
        for (s = n = 0; s < lab_seeds(r, a); s++) {
            const lab_series one = lab_get(r, a, s, panel->series);
            for (i = 0; i < one.n; i++) d[n++] = one.y[i];
        }
        stats_sort(d, n);
        for (i = 0; i < n; i++) below[i] = 100 * (double)(i + 1) / (double)n;
        plot_line(p, a ? "with batch norm" : "without", d, below, n,
                  lab_style(a ? "batch" : "none"));
    }
}

/* clang-format off */
#define ACCURACY(setting, ...)                                                                     \
    .axes = {.x = "training step", .y = "test accuracy", __VA_ARGS__}, .draw = draw_accuracy,      \
    .arm = setting
#define FAN(column, what)                                                                          \
    .axes = {.col = column, .heading = what, .x = "training step", .y = "input of the sigmoid",    \
             .y_range = {-3, 3}, .legend = PLOT_LEGEND_DIRECT}, .draw = draw_fan

static int report(lab_report *r)
{
    static const lab_page pages[3] = {
        {"With batch norm test accuracy rises sooner, and a sigmoid's inputs keep still",
         .height = 710, .scale = 0.86, .widths = {1.15, 1, 1}},
        {"Batch norm is ahead at other learning rates and first weights too", "settings", 1250,
         .shared_legend = 1},
        {"Without batch norm each unit of the last hidden layer wanders further", "units", 710,
         0.86}};
    static const lab_panel main_page[] = {
        {ACCURACY(0, .heading = "test accuracy", .legend = PLOT_LEGEND_BOTTOM_RIGHT)},
        {FAN(1, "input of one sigmoid, without"), .series = "unit0", .other = 1},
        {FAN(2, "with batch norm"), .arm = 1, .series = "unit0", .other = 1}};
    static const lab_panel settings_page[] = {
        {ACCURACY(0, .heading = "weights of sd 0.1, learning rate 0.1: panel a of the first page")},
        {ACCURACY(1, .col = 1, .heading = "weights of sd 0.1, learning rate 0.5")},
        {ACCURACY(2, .row = 1, .heading = "weights of sd 0.01, learning rate 0.1")},
        {ACCURACY(3, .row = 1, .col = 1, .heading = "weights of sd 0.01, learning rate 0.5")}};
    static const lab_panel units_page[] = {
        {FAN(0, "median of the 100 units, without"), .series = "units"},
        {FAN(1, "the same with batch norm"), .arm = 1, .series = "units"},
        {.axes = {.col = 2, .heading = "how far each unit wanders", .y = "units below (%)",
                  .x = "D: wandering of the median / width", .x_scale = PLOT_LOG10,
                  .y_range = {0, 100}, .legend = PLOT_LEGEND_ABOVE},
         .draw = draw_distribution, .series = "unit_D"}};
    check(r);
    lab_judge(r);
    return lab_draw(r, &pages[0], main_page, LAB_COUNT(main_page)) ||
           lab_draw(r, &pages[1], settings_page, LAB_COUNT(settings_page)) ||
           lab_draw(r, &pages[2], units_page, LAB_COUNT(units_page));
}
/* clang-format on */

LAB_PROGRAM("11_ioffe_figure1",
            "Does the input of a sigmoid stay where it is with batch norm? (Ioffe & Szegedy, "
            "Fig. 1)",
            "784-100-100-100-10, sigmoid, binary pixels, batches of 60, 50,000 steps of SGD; "
            "weights N(0, 0.1²) and learning rate 0.1 where not said otherwise",
            .revision = 1, .uses = LAB_USES_DATA, .prepare = prepare)
