/* 11_ioffe_figure1: what a sigmoid deep in a network is given, with and without batch norm.

   Figure 1 of Ioffe and Szegedy (2015). What the paper leaves open, the learning rate and the
   deviation of the first weights, has a second value each, so there are four settings; three of
   them run with two seeds. Stability of a unit, at every thousandth step, mean of the hundred
   units:

       D = (highest - lowest median from step 1000 on) / (mean distance of 15th and 85th percentile)
*/
#include "lab/experiment.h"
#include "lab/draw.h"

enum { INPUTS = 784, WIDTH = 100, HIDDEN = 3, BATCH = 60, PART = 1000 };
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

static double *input; /* [WIDTH][test.n] of the last hidden layer's sigmoids */

static nrm_mlp_spec network(trainer *t)
{
    const size_t setting = t->run->arm / 2;
    nrm_mlp_spec spec = training_plain(t->layer, HIDDEN, WIDTH, NRM_SIGMOID,
                                       t->run->arm % 2 ? NRM_BATCH_NORM : NRM_NO_NORM);
    spec.max_batch = PART;
    spec.init = NRM_INIT_GAUSSIAN;
    spec.init_std = (nrm_real)weight_sd[setting];
    spec.lr = (nrm_real)rate[setting];
    return spec;
}

/* What the sigmoids are given for all test images, batch norm with the statistics of each part. The
   tool for it is the gradient in train mode: it leaves the running statistics alone. */
static int look_inside(trainer *t)
{
    const nrm_real *z = t->net->state[HIDDEN - 1].norm_out; /* without a norm, its linear part */
    size_t at, n, i, u;
    for (at = 0; at < test.n; at += n) {
        const nrm_real *x = test.x + at * INPUTS;
        n = test.n - at < PART ? test.n - at : PART;
        if (nrm_mlp_gradient(t->net, NULL, x, test.labels + at, n, NRM_TRAIN) < 0) return -1;
        for (i = 0; i < n; i++)
            for (u = 0; u < WIDTH; u++) input[u * test.n + at + i] = (double)z[i * WIDTH + u];
    }
    return 0;
}

static void percentiles(size_t unit, double q[LEVELS])
{
    double *v = input + unit * test.n;
    size_t i;
    stats_sort(v, test.n);
    for (i = 0; i < LEVELS; i++) q[i] = stats_quantile(v, test.n, level[i]);
}

static struct { /* how far the medians of all units wander over the training */
    double lowest[WIDTH], highest[WIDTH], width[WIDTH];
    size_t looks;
} wander;

/* All units: the median over units of each percentile, and what D is made of. */
static void record_units(trainer *t)
{
    double q[WIDTH][LEVELS], one[WIDTH], mean;
    size_t u, i;
    for (u = 0; u < WIDTH; u++) percentiles(u, q[u]);
    for (i = 0; i < LEVELS; i++) {
        for (u = 0, mean = 0; u < WIDTH; u++) {
            one[u] = q[u][i];
            mean += one[u] / WIDTH;
        }
        lab_record_as(t->run, (double)t->step, stats_median(one, WIDTH), "units_%s", level_name[i]);
        if (t->step == 0) lab_record(t->run, "begin_units", level[i], mean);
    }
    for (u = 0; u < WIDTH && t->step > 0; u++) {
        if (wander.looks == 0 || q[u][1] < wander.lowest[u]) wander.lowest[u] = q[u][1];
        if (wander.looks == 0 || q[u][1] > wander.highest[u]) wander.highest[u] = q[u][1];
        wander.width[u] += q[u][2] - q[u][0];
    }
    wander.looks += t->step > 0;
}

static int record_stability(trainer *t)
{
    double mean = 0;
    size_t u;
    for (u = 0; u < WIDTH && wander.looks > 0; u++) {
        const double width = wander.width[u] / (double)wander.looks;
        const double d = (wander.highest[u] - wander.lowest[u]) / width;
        lab_record(t->run, "unit_D", (double)u, d);
        mean += d / WIDTH;
    }
    if (t->run->arm < 2) lab_record(t->run, "D", 0, mean);
    return 0;
}

static size_t every_units(const lab_run *r)
{
    return r->quick ? 20 : EVERY_UNITS;
}

/* Accuracy; in the main setting also what the sigmoids are given. */
static int look(trainer *t)
{
    double q[LEVELS];
    size_t i;
    lab_record(t->run, "accuracy", (double)t->step, trainer_accuracy(t, &test, NULL));
    if (t->run->arm >= 2) return 0;
    if (look_inside(t)) return -1;
    percentiles(0, q);
    for (i = 0; i < LEVELS; i++)
        lab_record_as(t->run, (double)t->step, q[i], "unit0_%s", level_name[i]);
    if (t->step % every_units(t->run) == 0) record_units(t);
    return 0;
}

/* First a short training twice: does a network that is looked at end with the same bits? */
static int run(lab_run *r)
{
    trainer_plan plan = {.network = network, .set = &train, .batch = BATCH, .replace = 1};
    trainer_plan twice;
    int failed;
    plan.look_first = plan.no_repeat = 1;
    twice = plan;
    twice.look = look_inside;
    twice.steps = CHECK_STEPS;
    twice.every = 10;
    plan.look = look;
    plan.end = record_stability;
    plan.steps = r->quick ? 60 : STEPS;
    plan.every = r->arm < 2 && !r->quick ? EVERY : every_units(r);
    input = (double *)malloc(WIDTH * test.n * sizeof *input);
    failed = !input || trainer_twice(r, &twice, "untouched") || trainer_run(r, &plan);
    free(input);
    return failed ? -1 : 0;
}

/* ---- claims ---------------------------------------------------------------------------------- */

/* clang-format off */
/* Batch norm above none, at the three steps. */
#define AHEAD_AT(step, setting)                                                                    \
    {LAB_MORE, 2 * (setting) + 1, 2 * (setting), "accuracy", step}
#define AHEAD(setting) AHEAD_AT(5000, setting), AHEAD_AT(10000, setting), AHEAD_AT(STEPS, setting)
#define END_OF(arm) {.a = arm, .series = "accuracy", .at = LAB_LAST}
static const lab_claim claims[] = {
    {"11a", "With batch norm test accuracy is higher, throughout the training",
     "Ioffe & Szegedy 2015, Fig. 1a", "about 0.955 against 0.71 at 4,000 steps, 0.967 against 0.90 "
     "at 8,000, 0.983 against 0.974 at the end (read off the figure)",
     "above no norm at 5,000, 10,000 and 50,000 steps, each, seed by seed",
     "trial run (1 seed): 0.943 against 0.909 at 5,000, 0.974 against 0.969 at 50,000",
     LAB_TRAINING, LAB_SETTING, LAB_PARTS(AHEAD(0)), .decimals = 3,
     .say = "5,000: $1 against $2; 10,000: $3 against $4; 50,000: $5 against $6"},
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
     LAB_TRAINING, LAB_SETTING, LAB_PARTS(AHEAD(1), AHEAD(2), AHEAD(3)),
     .say = "points above at the three steps: #1-2[100 %+.1f], #3-4[100 %+.1f], #5-6[100 %+.1f] "
     "with lr 0.5; #7-8[100 %+.1f], #9-10[100 %+.1f], #11-12[100 %+.1f] with sd 0.01; "
     "#13-14[100 %+.1f], #15-16[100 %+.1f], #17-18[100 %+.1f] with both",
     .remark = "two seeds each"}};
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

static const double step_at[6] = {0, 10000, 20000, 30000, 40000, 50000};
static const char *const step_name[6] = {"0", "10k", "20k", "30k", "40k", "50k"};

/* For what is read off the paper's figure. */
static plot_style ring(plot_color color)
{
    return plot_marked(color, PLOT_RING);
}

/* The test accuracies that can be read off the paper's figure. */
static void draw_paper(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    static const double x0[5] = {4000, 8000, 13000, 20000, 45000};
    static const double y0[5] = {0.71, 0.90, 0.945, 0.965, 0.974};
    static const double x1[4] = {4000, 8000, 17000, 50000};
    static const double y1[4] = {0.955, 0.967, 0.975, 0.983};
    (void)r;
    (void)panel;
    plot_scatter(p, "the paper's, without", x0, y0, 5, ring(lab_style("none").color));
    plot_scatter(p, "the paper's, with", x1, y1, 4, ring(lab_style("batch").color));
}

/* The first seed's percentiles as a fan, those of the others as thin lines; and, of one unit, where
   the paper's three lines begin and end, as read off its figure. */
static void draw_fan(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    static const char *const percent[LEVELS] = {"15 %", "50 %", "85 %"};
    static const double x[6] = {0, 0, 0, STEPS, STEPS, STEPS};
    static const double y[2][6] = {{0.8, 0.8, 0.8, -1.8, 0, 1.7}, {-1.1, 0, 1.1, -2, 0, 2}};
    const plot_style style = lab_style(panel->arm ? "batch" : "none");
    size_t s, i;
    for (s = lab_seeds(r, panel->arm); s-- > 0;) {
        lab_series q[LEVELS];
        for (i = 0; i < LEVELS; i++)
            q[i] = lab_get(r, panel->arm, s, lab_format(r, "%s_%s", panel->series, level_name[i]));
        if (s == 0)
            plot_band(p, NULL, q[0].x, q[0].y, q[2].y, q[0].n,
                      plot_styled(style.color, .alpha = 0.17));
        for (i = 0; i < LEVELS; i++)
            plot_line(p, s ? NULL : percent[i], q[i].x, q[i].y, q[i].n,
                      s        ? plot_thin(style.color)
                      : i == 1 ? style
                               : plot_styled(style.color, .width = 0.4));
    }
    if (panel->other) plot_scatter(p, NULL, x, y[panel->arm], 6, ring(PLOT_INK));
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
#define STEP_AXIS                                                                                  \
    .x = "training step", .x_range = {0, STEPS}, .x_ticks = step_at, .x_names = step_name,         \
    .x_count = 6
#define ACCURACY(setting, seeds, least, ...)                                                       \
    .axes = {STEP_AXIS, .y = "test accuracy", .y_range = {least, 1}, __VA_ARGS__},                 \
    .line = {{2 * (setting), "accuracy", "without", .how = seeds},                                 \
             {2 * (setting) + 1, "accuracy", "with batch norm", .how = seeds}},                    \
    .draw = draw_paper
#define FAN(column, what)                                                                          \
    .axes = {.col = column, .heading = what, STEP_AXIS, .y = "input of the sigmoid",               \
             .y_range = {-3, 3}, .legend = PLOT_LEGEND_DIRECT}, .draw = draw_fan

static plot_style look_of(size_t arm)
{
    return lab_style(arm % 2 ? "batch" : "none");
}

static const lab_panel main_page[] = {
    {ACCURACY(0, LAB_RANGE, 0.7, .heading = "test accuracy",
              .legend = PLOT_LEGEND_BOTTOM_RIGHT)},
    {FAN(1, "input of one sigmoid, without"), .series = "unit0", .other = 1},
    {FAN(2, "with batch norm"), .arm = 1, .series = "unit0", .other = 1}};
static const lab_panel settings_page[] = {
    {ACCURACY(0, LAB_RANGE, 0.7,
              .heading = "weights of sd 0.1, learning rate 0.1: panel a of the first page")},
    {ACCURACY(1, LAB_EACH_SEED, 0.7, .col = 1,
              .heading = "weights of sd 0.1, learning rate 0.5")},
    {ACCURACY(2, LAB_EACH_SEED, 0, .row = 1,
              .heading = "weights of sd 0.01, learning rate 0.1")},
    {ACCURACY(3, LAB_EACH_SEED, 0, .row = 1, .col = 1,
              .heading = "weights of sd 0.01, learning rate 0.5")}};
static const lab_panel units_page[] = {
    {FAN(0, "median of the 100 units, without"), .series = "units"},
    {FAN(1, "the same with batch norm"), .arm = 1, .series = "units"},
    {.axes = {.col = 2, .heading = "how far each unit wanders", .y = "units below (%)",
              .x = "D: wandering of the median / width", .x_scale = PLOT_LOG10,
              .y_range = {0, 100}, .legend = PLOT_LEGEND_ABOVE},
     .draw = draw_distribution, .series = "unit_D"}};
static const lab_page pages[] = {
    {"With batch norm test accuracy rises sooner, and a sigmoid's inputs keep still",
     .height = 710, .scale = 0.86, .widths = {1.15, 1, 1}, LAB_PANELS(main_page)},
    {"Batch norm is ahead at other learning rates and first weights too", "settings", 1250,
     .shared_legend = 1, LAB_PANELS(settings_page)},
    {"Without batch norm each unit of the last hidden layer wanders further", "units", 710,
     0.86, LAB_PANELS(units_page)}};
/* clang-format on */

LAB_PROGRAM("11_ioffe_figure1",
            "Does the input of a sigmoid stay where it is with batch norm? (Ioffe & Szegedy, "
            "Fig. 1)",
            "784-100-100-100-10, sigmoid, binary pixels, batches of 60, 50,000 steps of SGD; "
            "weights N(0, 0.1²) and learning rate 0.1 where not said otherwise",
            .revision = 1, .uses = LAB_USES_DATA, .prepare = prepare, .look = look_of,
            .after = check)
