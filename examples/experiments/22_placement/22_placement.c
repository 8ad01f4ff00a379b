/* 22_placement: batch norm before or after the activation? (README.md)

   What counts is the test accuracy after 1 and after 5 epochs, with running statistics. Choices of
   ours: batch size and initialisation, which the benchmark does not share; the linear layer has a
   bias where no norm follows it at once. */
#include "lab/experiment.h"

enum { HIDDEN = 6, WIDTH = 100, BATCH = 128, EPOCHS = 5, PROBED = 1000 };
enum { ACTS = 3, PLACES = 3, RATES = 2, ARMS = ACTS * PLACES * RATES, CELLS = 2 * RATES };
enum { RELU, SIGMOID, TANH };
enum { NONE, BEFORE, AFTER };
enum { BINS = 50 };
#define BIN_LO (-3.0)
#define BIN_HI 4.5
#define HISTOGRAM_LAYER 2 /* the inputs of the fourth linear layer are drawn */

static const int activation[ACTS] = {NRM_RELU, NRM_SIGMOID, NRM_TANH};
static const char *const place_name[PLACES] = {"no norm", "norm before", "norm after"};
static const double rate[RATES] = {0.1, 0.5};

/* clang-format off */
#define OF_PLACES(act, name, lr, n)                                                                \
    {act "_none_" lr, name ", no norm, rate " lr, 5, n},                                           \
    {act "_before_" lr, name ", norm before, rate " lr, 5, n},                                     \
    {act "_after_" lr, name ", norm after, rate " lr, 5, n}
static const lab_arm arms[ARMS] = {
    OF_PLACES("relu", "ReLU", "0.1", 60), OF_PLACES("relu", "ReLU", "0.5", 0),
    OF_PLACES("sigmoid", "sigmoid", "0.1", 0), OF_PLACES("sigmoid", "sigmoid", "0.5", 0),
    OF_PLACES("tanh", "tanh", "0.1", 0), OF_PLACES("tanh", "tanh", "0.5", 0)};
/* clang-format on */

#define ARM(act, place, r) (((act)*RATES + (r)) * PLACES + (place))

static int place_of(size_t arm)
{
    return (int)(arm % PLACES);
}

static double rate_of(size_t arm)
{
    return rate[arm / PLACES % RATES];
}

/* Of f(z), z ~ N(0, 1). Those of ReLU are 1/sqrt(2 pi) and 1/2 - 1/(2 pi); the variances of the
   others by quadrature. */
static const struct moments {
    double mean, variance;
} expected[ACTS] = {{0.398942280401, 0.340845056908}, {0.5, 0.0433790358581}, {0, 0.394294490398}};

/* ---- a run ----------------------------------------------------------------------------------- */

LAB_SETS(train_set, test_set, quick ? 512 : 0, quick ? 250 : 0, DATASET_STD);

static nrm_mlp_spec network(trainer *t)
{
    const size_t arm = t->run->arm;
    const int place = place_of(arm);
    nrm_mlp_spec spec = training_plain(t->layer, HIDDEN, WIDTH, activation[arm / (PLACES * RATES)],
                                       place == NONE ? NRM_NO_NORM : NRM_BATCH_NORM);
    size_t l;
    for (l = 0; l < HIDDEN; l++) {
        t->layer[l].norm_after = place == AFTER;
        t->layer[l].bias = place != BEFORE;
    }
    spec.max_batch = PROBED;
    spec.lr = (nrm_real)rate_of(arm);
    return spec;
}

typedef struct look { /* what the probe is for: it records what it sees */
    lab_run *run;
    int end;
} look;

/* What a layer shows of one matrix [rows][cols]: means over its units. OFF: of |mean|. */
enum { OFF, MEAN, VARIANCE, SKEW, KURTOSIS, SHAPES };

static void record_shapes(const look *k, const nrm_mlp_event *e, const char *of, int from, int to)
{
    static const char *const name[SHAPES] = {"off", "mean", "variance", "skew", "kurtosis"};
    static double column[PROBED];
    double s[SHAPES] = {0}, alive = 0;
    size_t i, j;
    for (j = 0; j < e->cols; j++) {
        stats_summary unit;
        for (i = 0; i < e->rows; i++) column[i] = (double)e->data[i * e->cols + j];
        unit = stats_describe(column, e->rows);
        s[OFF] += fabs(unit.mean) / (double)e->cols;
        s[MEAN] += unit.mean / (double)e->cols;
        s[VARIANCE] += unit.sd * unit.sd / (double)e->cols;
        if (!(unit.sd > 1e-6)) continue; /* a dead unit has no shape */
        alive++;
        s[SKEW] += fabs(unit.skew);
        s[KURTOSIS] += fabs(unit.kurtosis);
    }
    s[SKEW] /= alive;
    s[KURTOSIS] /= alive;
    for (; from < to; from++)
        lab_record_as(k->run, (double)(e->layer + 2), s[from], "%s_%s%s", k->end ? "end" : "start",
                      name[from], of);
}

static double bin_at(double i)
{
    return BIN_LO + (BIN_HI - BIN_LO) * i / BINS;
}

static void record_density(lab_run *r, const nrm_mlp_event *e)
{
    static double value[PROBED * WIDTH];
    const size_t n = e->rows * e->cols;
    double edges[BINS + 1], density[BINS];
    size_t i, outside;
    for (i = 0; i <= BINS; i++) edges[i] = bin_at((double)i);
    for (i = 0; i < n; i++) value[i] = (double)e->data[i];
    outside = stats_histogram(value, n, edges, BINS, density);
    for (i = 0; i < BINS; i++)
        lab_record(r, "end_density", bin_at((double)i + 0.5),
                   density[i] * (1 - (double)outside / (double)n));
}

/* What the linear part of a layer gives, and what the next layer is fed. */
static void probe(void *context, const nrm_mlp_event *e)
{
    const look *k = (const look *)context;
    const int place = place_of(k->run->arm), all = k->end && place == BEFORE;
    if (e->gradient || e->layer >= HIDDEN) return;
    if (e->place == NRM_AT_LINEAR && all) record_shapes(k, e, "_linear", SKEW, SHAPES);
    if (e->place != (place == AFTER ? NRM_AT_NORM : NRM_AT_ACTIVATION)) return;
    record_shapes(k, e, "", k->end ? MEAN : OFF, all ? SHAPES : SKEW);
    if (e->layer == HISTOGRAM_LAYER && k->end && rate_of(k->run->arm) < 0.2)
        record_density(k->run, e);
}

/* The first training images as one batch, in train mode; nothing of the network changes. */
static int take_look(trainer *t, int end)
{
    const size_t n = train_set.n < PROBED ? train_set.n : PROBED;
    look k = {t->run, end};
    int rc;
    t->net->probe = probe;
    t->net->probe_context = &k;
    rc = nrm_mlp_gradient(t->net, NULL, train_set.x, train_set.labels, n, NRM_TRAIN);
    t->net->probe = NULL;
    return rc < 0 && rc != NRM_NONFINITE ? -1 : 0;
}

typedef struct course { /* of a training */
    double first, sum;  /* the first loss, and all of the present epoch */
    size_t epoch;       /* how many are over                            */
} course;

static int begin(trainer *t)
{
    memset(t->plan->context, 0, sizeof(course));
    return t->looked_at ? take_look(t, 0) : 0;
}

/* A network that diverges stays where it was, and is tested there. */
static int after(trainer *t)
{
    course *c = (course *)t->plan->context;
    if (c->first <= 0) c->first = t->loss;
    c->sum += t->loss;
    return t->loss > 1e3 * c->first;
}

static int test_epoch(trainer *t)
{
    course *c = (course *)t->plan->context;
    const double accuracy = trainer_accuracy(t, &test_set, NULL), epoch = (double)++c->epoch;
    lab_record(t->run, "train_loss", epoch, c->sum / (double)t->plan->every);
    lab_record(t->run, "test_accuracy", epoch, accuracy);
    c->sum = 0;
    return isnan(accuracy) ? -1 : 0;
}

static int end(trainer *t)
{
    course *c = (course *)t->plan->context;
    int failed = 0;
    if (c->epoch < EPOCHS) lab_record(t->run, "diverged", 0, (double)c->epoch + 1);
    for (c->sum = (double)NAN; c->epoch < EPOCHS && !failed;) failed = test_epoch(t);
    return failed ? -1 : take_look(t, 1);
}

static int run(lab_run *r)
{
    const size_t epoch = training_steps(train_set.n, BATCH);
    course c;
    const trainer_plan plan =
        trainer_plan_of(.network = network, .begin = begin, .after = after, .look = test_epoch,
                        .end = end, .set = &train_set, .batch = BATCH, .every = epoch,
                        .steps = EPOCHS * epoch, .no_repeat = rate_of(r->arm) > 0.2, .context = &c);
    return trainer_run(r, &plan);
}

/* ---- what the records say -------------------------------------------------------------------- */

typedef struct cell { /* one of four: a learning rate and a number of epochs */
    size_t r;
    double epoch;
} cell;

static const cell cells[CELLS] = {{0, 1}, {0, EPOCHS}, {1, 1}, {1, EPOCHS}};
static const char *const cell_name[CELLS] = {"0.1, 1", "0.1, 5", "0.5, 1", "0.5, 5"};

/* The accuracy after minus that before, in points. */
static lab_numbers gain_of(const lab_report *r, size_t act, cell c)
{
    return lab_times(lab_calc(lab_all(r, ARM(act, AFTER, c.r), "test_accuracy", c.epoch), '-',
                              lab_all(r, ARM(act, BEFORE, c.r), "test_accuracy", c.epoch)),
                     100);
}

static double mean_gain(const lab_report *r, size_t act, size_t which)
{
    return lab_average(gain_of(r, act, cells[which]));
}

/* Mean over the layers 2 to 7, which are fed by others. */
static lab_numbers fed(const lab_report *r, size_t arm, const char *series)
{
    return lab_mean_over(r, arm, series, 2, HIDDEN + 1);
}

/* ---- verdicts -------------------------------------------------------------------------------- */

static const char caffenet[] =
    "ImageNet, CaffeNet, ReLU, single runs: accuracy 0.474 before, 0.499 "
    "after; with scale and shift 0.478 and 0.493";
static const char after_rule[] =
    "test accuracy after > before at rate 0.1 after 1 epoch, paired over seeds; partly if not in "
    "the mean of the three other cells too";
static const char notes[] = "caffenet-benchmark, quoted in Chinese notes on batch norm";
static const char ours[] = "ours: the benchmark has ReLU only";

static void judge_after(lab_report *r, const lab_claim *c)
{
    const size_t act = c->a;
    const lab_numbers gain = gain_of(r, act, cells[0]);
    const double more[CELLS] = {mean_gain(r, act, 0), mean_gain(r, act, 1), mean_gain(r, act, 2),
                                mean_gain(r, act, 3)};
    lab_verdict(r, c, lab_more(gain, lab_times(gain, 0), more[1] > 0 && more[2] > 0 && more[3] > 0),
                lab_format(r,
                           "after - before in points at (rate, epochs) 0.1, 1: %+.2f; 0.1, 5: "
                           "%+.2f; 0.5, 1: %+.2f; 0.5, 5: %+.2f",
                           more[0], more[1], more[2], more[3]),
                "%s after, %s before", lab_text(r, ARM(act, AFTER, 0), "test_accuracy", 1, 4),
                lab_text(r, ARM(act, BEFORE, 0), "test_accuracy", 1, 4));
}

static void judge_small(lab_report *r, const lab_claim *c)
{
    double most[ACTS] = {0, 0, 0};
    stats_finding part[2 * ACTS * CELLS];
    size_t act, i, parts = 0;
    for (act = 0; act < ACTS; act++)
        for (i = 0; i < CELLS; i++) {
            part[parts++] = lab_below(gain_of(r, act, cells[i]), 1.5);
            part[parts++] = lab_above(gain_of(r, act, cells[i]), -1.5);
            most[act] = stats_larger(most[act], fabs(mean_gain(r, act, i)));
        }
    lab_verdict(r, c, stats_together(part, parts), "",
                "at most %.2f points with ReLU, %.2f with sigmoid, %.2f with tanh", most[RELU],
                most[SIGMOID], most[TANH]);
}

/* |a series of the arm before - target| / unit */
static lab_numbers distance(const lab_report *r, size_t act, const char *series, double target,
                            double unit)
{
    const lab_numbers off = lab_plus(fed(r, ARM(act, BEFORE, 0), series), -target);
    return lab_times(lab_map(off, fabs), 1 / unit);
}

static void judge_moments(lab_report *r, const lab_claim *c)
{
    static const char *const format[ACTS] = {"%sReLU %.2f, %.2f; ", "%ssigmoid %.2f, %.3f; ",
                                             "%stanh %.2f, %.2f"};
    const char *text = "mean, variance at the end: ";
    stats_finding part[3 * ACTS];
    double most_miss = 0, most_off = 0, least = HUGE_VAL;
    size_t act;
    for (act = 0; act < ACTS; act++) {
        const struct moments *m = &expected[act];
        const lab_numbers miss = distance(r, act, "start_mean", m->mean, sqrt(m->variance));
        const lab_numbers off = distance(r, act, "start_variance", m->variance, m->variance);
        const lab_numbers end = distance(r, act, "end_variance", 1, 1);
        most_miss = stats_larger(most_miss, lab_describe(miss).max);
        most_off = stats_larger(most_off, lab_describe(off).max);
        least = stats_smaller(least, lab_describe(end).min);
        part[3 * act] = lab_below(miss, 0.1);
        part[3 * act + 1] = lab_below(off, 0.1);
        part[3 * act + 2] = lab_above(end, 0.1);
        text =
            lab_format(r, format[act], text, lab_average(fed(r, ARM(act, BEFORE, 0), "end_mean")),
                       lab_average(fed(r, ARM(act, BEFORE, 0), "end_variance")));
    }
    lab_verdict(
        r, c, stats_together(part, 3 * ACTS), text,
        "start: mean %.3f standard deviations, variance %.1f %% off those of f(z) at most; end: "
        "variance at least %.2f off 1",
        most_miss, 100 * most_off, least);
}

/* clang-format off */
#define LESS_LINEAR(act, shape)                                                                    \
    {LAB_LESS, ARM(act, BEFORE, 0), ARM(act, BEFORE, 0), shape "_linear", 2, .other = shape,       \
     .to = HIDDEN} /* layers 2 to 6, which have both */
#define MORE_GAUSSIAN(act) LESS_LINEAR(act, "end_skew"), LESS_LINEAR(act, "end_kurtosis")

static const lab_claim claims[] = {
    {"22a", "With ReLU, the norm is better after the activation", notes, caffenet, after_rule,
     "trial runs (3 seeds): 0.958 after, 0.959 before: no difference expected",
     .judge = judge_after, .a = RELU},
    {"22b", "With sigmoid, the norm is better after the activation", ours, "not tried there",
     after_rule, "trial runs (3 seeds): 0.953 after, 0.926 before", .judge = judge_after,
     .a = SIGMOID},
    {"22c", "With tanh, the norm is better after the activation", ours, "not tried there",
     after_rule, "trial runs (3 seeds): 0.955 after, 0.946 before", .judge = judge_after,
     .a = TANH},
    {"22d", "Before or after makes little difference", notes, caffenet,
     "the paired difference is below 1.5 points and above -1.5 in each of twelve cells",
     "trial runs (3 seeds): 0.1 (ReLU), 2.7 (sigmoid), 0.9 points (tanh) at rate 0.1, 1 epoch",
     .judge = judge_small},
    {"22e", "A norm before the activation does not give inputs of mean 0 and variance 1",
     "a lecture-style post on how batch norm helps", "no numbers; for z ~ N(0, 1): ReLU mean "
     "0.399, variance 0.341; sigmoid 0.5, 0.0434; tanh 0, 0.394", "start: mean within a tenth of a "
     "standard deviation, variance within 10 % of these; end: |variance - 1| > 0.1; for each "
     "activation", "none", .judge = judge_moments},
    {"22f", "What a linear layer gives is more Gaussian than what it is given",
     "Ioffe & Szegedy 2015, section 3.2", "no numbers: Wu + b is \"more likely to have a "
     "symmetric, non-sparse distribution, that is 'more Gaussian'\"", "|skewness| and |excess "
     "kurtosis|, mean over units of layers 2 to 6, arm before, rate 0.1, end: smaller for Wu + b "
     "than for activations, paired, all three; partly: some", "none",
     LAB_PARTS(MORE_GAUSSIAN(RELU), MORE_GAUSSIAN(SIGMOID), MORE_GAUSSIAN(TANH)),
     .say = "|skewness|, |kurtosis|: ReLU #1[%.2f], #3[%.2f] against #2[%.2f], #4[%.2f]; sigmoid "
            "#5[%.2f], #7[%.2f] against #6[%.2f], #8[%.2f]; tanh #9[%.2f], #11[%.2f] against "
            "#10[%.2f], #12[%.2f]"}};
/* clang-format on */

static void check_start(lab_report *r)
{
    double worst = 0;
    size_t a;
    for (a = AFTER; a < ARMS; a += PLACES)
        worst = stats_larger(worst, lab_describe(fed(r, a, "start_off")).max);
    lab_check(r, worst < 1e-5, "norm after: the next layer gets mean 0 at the start",
              "at most %.1e off, mean over units and layers", worst);
}

/* ---- figures --------------------------------------------------------------------------------- */

#define LIGHT_BLUE PLOT_RGB(120, 170, 215)

/* Of an activation, panel->arm; bars that the panel cuts off have a number. */
static void draw_bars(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    const plot_style style[PLACES] = {lab_style("none"), lab_style("batch"),
                                      plot_dashdot(LIGHT_BLUE)};
    size_t place, i;
    plot_categories(p, cell_name, CELLS);
    for (place = 0; place < PLACES; place++) {
        lab_numbers error[CELLS];
        for (i = 0; i < CELLS; i++) {
            const size_t arm = ARM(panel->arm, place, cells[i].r);
            double mean;
            error[i] = lab_errors(lab_all(r, arm, "test_accuracy", cells[i].epoch));
            mean = lab_average(error[i]);
            if (mean > panel->axes.y_range[1])
                plot_text(p, (double)i + 0.27 * ((double)place - 1), 11.6,
                          lab_format(r, "%.0f", mean), PLOT_CENTER + PLOT_BELOW, PLOT_INK);
        }
        lab_draw_bars(p, place_name[place], error, CELLS, style[place]);
    }
}

/* Every seed's difference as a point, and their mean and deviation; the benchmark's as rings. */
static void draw_gains(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    static const double paper_x[2] = {15, 16}, paper[2] = {2.5, 1.5};
    static const int marker[CELLS] = {PLOT_CIRCLE, PLOT_SQUARE, PLOT_TRIANGLE, PLOT_DIAMOND};
    size_t act, i, k;
    (void)panel;
    for (act = 0; act < ACTS; act++)
        for (i = 0; i < CELLS; i++) {
            const double middle = (double)(5 * act + i);
            const lab_numbers gain = gain_of(r, act, cells[i]);
            const stats_summary s = lab_describe(gain);
            const double lo = s.mean - s.sd, hi = s.mean + s.sd;
            double x[LAB_SEEDS_MAX];
            for (k = 0; k < gain.n; k++)
                x[k] = middle + 0.65 * (((double)k + 0.5) / (double)gain.n - 0.5);
            plot_scatter(p, act == 0 ? lab_format(r, "rate, epochs: %s", cell_name[i]) : NULL, x,
                         gain.of, gain.n, plot_marked(lab_level(i, CELLS), marker[i]));
            plot_errorbars(p, NULL, &middle, &s.mean, &lo, &hi, 1, plot_solid(PLOT_INK));
        }
    plot_scatter(p, "reported, single runs", paper_x, paper, 2, plot_marked(PLOT_INK, PLOT_RING));
}

/* What the layers 2 to 7 get at the end: means, and one standard deviation to both sides. */
static void draw_fed(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    size_t place, i;
    for (place = BEFORE; place <= AFTER; place++) {
        const size_t arm = ARM(panel->arm, place, 0);
        const plot_style style =
            plot_with_marker(plot_solid(place == BEFORE ? PLOT_BLUE : LIGHT_BLUE),
                             place == BEFORE ? PLOT_CIRCLE : PLOT_SQUARE);
        const lab_curve variance = lab_over_seeds(r, arm, "end_variance");
        lab_curve c = lab_over_seeds(r, arm, "end_mean");
        for (i = 0; i < c.n; i++) {
            c.x[i] += place == BEFORE ? -0.08 : 0.08;
            c.low[i] = c.mean[i] - sqrt(variance.mean[i]);
            c.high[i] = c.mean[i] + sqrt(variance.mean[i]);
        }
        plot_errorbars(p, NULL, c.x, c.mean, c.low, c.high, c.n, style);
        plot_line(p, place_name[place], c.x, c.mean, c.n, style);
    }
}

/* What the fourth layer gets at the end: all units pooled. */
static void draw_density(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    double x[BINS], y[BINS];
    size_t i, place;
    for (i = 0; i < BINS; i++) {
        x[i] = bin_at((double)i + 0.5);
        y[i] = exp(-x[i] * x[i] / 2) / sqrt(2 * 3.14159265358979323846);
    }
    plot_line(p, "N(0, 1)", x, y, BINS, plot_dotted(PLOT_INK));
    for (place = BEFORE; place <= AFTER; place++)
        lab_plot(r, p, ARM(panel->arm, place, 0), "end_density", place_name[place],
                 plot_solid(place == BEFORE ? PLOT_BLUE : LIGHT_BLUE));
}

/* clang-format off */
#define BARS(act, name, where)                                                                     \
    {.axes = {.col = 2 * (act), .cols = 2, .heading = name ": test error",                         \
              .x = "learning rate, epochs", .y = "test error (%)", .y_range = {0, 12},             \
              .legend = where}, .draw = draw_bars, .arm = act}
#define FED(act, name)                                                                             \
    {.axes = {.col = act, .heading = name ": mean ± 1 sd", .x = "layer that is fed",               \
              .x_range = {1.7, 7.3}, .y = "input of the layer", .y_range = {-1.3, 1.3}},           \
     .draw = draw_fed, .arm = act}
#define DENSITY(act, name)                                                                         \
    {.axes = {1, act, .heading = name ": what layer 4 gets", .x = "input of layer 4",              \
              .x_range = {BIN_LO, BIN_HI}, .y = "density", .y_scale = PLOT_LOG10,                  \
              .y_range = {0.003, 10}},                                                             \
     .draw = draw_density, .arm = act}

static const double at[ACTS + 1] = {1.5, 6.5, 11.5, 15.5};
static const char *const label[ACTS + 1] = {"ReLU", "sigmoid", "tanh", "ReLU, ImageNet"};
static const lab_panel accuracy[] = {
    BARS(RELU, "ReLU", PLOT_LEGEND_TOP_RIGHT), BARS(SIGMOID, "sigmoid", PLOT_LEGEND_NONE),
    BARS(TANH, "tanh", PLOT_LEGEND_NONE),
    {.axes = {.row = 1, .cols = 6,
              .heading = "accuracy after minus before, paired: seeds, mean ± 1 sd",
              .y = "points", .x_range = {-1, 17}, .x_ticks = at, .x_names = label,
              .x_count = ACTS + 1, .legend = PLOT_LEGEND_ABOVE},
     .under = {{LAB_HLINE, .text = "", .color = PLOT_GREY, .dash = PLOT_DOTTED}},
     .draw = draw_gains}};
static const lab_panel moments[] = {
    FED(RELU, "ReLU"), FED(SIGMOID, "sigmoid"), FED(TANH, "tanh"), DENSITY(RELU, "ReLU"),
    DENSITY(SIGMOID, "sigmoid"), DENSITY(TANH, "tanh")};
static const lab_page pages[] = {
    {"Before or after the activation matters little for ReLU, more for tanh and sigmoid", NULL,
     1120, .seeds = 60, LAB_PANELS(accuracy),
     .settings = "784-100x6-10, standardized pixels, Glorot initialisation, batch 128, SGD, up to "
                 "5 epochs; five seeds, but 60 for ReLU at rate 0.1"},
    {"Only after the activation does the next layer get mean 0 and variance 1", "moments", 1120,
     .seeds = 60, .shared_legend = 1, LAB_PANELS(moments),
     .settings = "784-100x6-10, standardized pixels, Glorot initialisation, SGD with learning "
                 "rate 0.1, batch 128, after 5 epochs; 1000 images in train mode"}};
/* clang-format on */

LAB_PROGRAM("22_placement", "Batch norm before or after the activation?",
            "784-100x6-10, standardized pixels, Glorot initialisation, batch 128, SGD with "
            "learning rate 0.1 or 0.5, up to 5 epochs, test accuracy with running statistics",
            .revision = 2, .uses = LAB_USES_DATA + LAB_TWICE, .prepare = prepare,
            .after = check_start)
