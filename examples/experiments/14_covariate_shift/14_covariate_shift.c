/* 14_covariate_shift: does batch norm reduce internal covariate shift? (README.md)

   G is the gradient of a layer's weights as it is used, G' as it would be if the layers before it
   had already made their step: "moved" are all their parameters, γ and β too. The first layer has
   nothing before it: its shift must be exactly 0. Choices that were left open: the last hidden
   layer, not the output layer, is "last"; medians over a window, since single steps scatter by
   decades; a cosine with a gradient of length 0 is left out. */
#include "lab/experiment.h"
#include "lab/landscape.h"

enum { CLASSES = 10, WIDTH = 100, BATCH = 128, MOST_STEPS = 1500 };
enum { SHOWN = 3, WINDOWS = 4, BIN = 75 };

/* ---- the arms -------------------------------------------------------------------------------- */

enum { RELU13, TANH6, NETS };
enum { FAST, SLOW, RATES };
enum { NONE, NORMED, KINDS };
enum { ARMS = NETS * RATES * KINDS };

static const struct shape {
    const char *name;
    size_t hidden;
    int activation;
    size_t shown[SHOWN]; /* layers looked at, counted from 0 */
} networks[NETS] = {{"13 x 100 ReLU", 13, NRM_RELU, {3, 8, 12}},
                    {"6 x 100 tanh", 6, NRM_TANH, {1, 3, 5}}};
static const double rates[RATES] = {0.1, 0.01};

/* Steps of a window: from one to before the next. */
static const size_t window_from[WINDOWS + 1] = {0, 20, 200, 500, MOST_STEPS};

static const lab_arm arms[ARMS] = {
    {"relu13_fast_none", "no norm", 9, 12}, {"relu13_fast_batch", "batch norm", 10, 12},
    {"relu13_slow_none", "no norm", 9, 12}, {"relu13_slow_batch", "batch norm", 10, 12},
    {"tanh6_fast_none", "no norm", 6, 12},  {"tanh6_fast_batch", "batch norm", 7, 12},
    {"tanh6_slow_none", "no norm", 6, 12},  {"tanh6_slow_batch", "batch norm", 7, 12}};

/* The one without a norm; the one with batch norm follows it. */
#define ARM(net, rate) ((size_t)(((net)*RATES + (rate)) * KINDS))

LAB_SET(train_set, quick ? 4000 : 0, DATASET_STD);

static const struct shape *shape_of(size_t arm)
{
    return &networks[arm / (KINDS * RATES)];
}

static nrm_mlp_spec network(trainer *t)
{
    const struct shape *shape = shape_of(t->run->arm);
    const int norm = t->run->arm % KINDS == NORMED ? NRM_BATCH_NORM : NRM_NO_NORM;
    nrm_mlp_spec spec = training_plain(t->layer, shape->hidden, WIDTH, shape->activation, norm);
    spec.lr = (nrm_real)rates[t->run->arm / KINDS % RATES];
    return spec;
}

/* ---- looks ----------------------------------------------------------------------------------- */

enum { DISTANCE, RELATIVE, COSINE, FIGURES }; /* what is told of two gradients */
static const char *const figure_name[FIGURES] = {"shift", "relative", "cosine"};

/* What there is of a step: if it is looked at, of each layer shown the figures of G and G', cosines
   of its gradient and the next step's, and on its own batch before and after it, and 1 if the loss
   is lower after it. Of all steps loss and accuracy of the batch. */
enum { NEXT = SHOWN * FIGURES, SAME, DOWN, LOSS, ACCURACY, SEEN };
static const char *const other_name[] = {"next", "same", "down", "loss", "accuracy"};

typedef struct course { /* of a training */
    landscape_model m;
    landscape_place here;
    nrm_real *last;                /* [n_params] gradient of the last step that was looked at */
    double *pending;               /* where its cosine with the next step's is missing */
    double seen[MOST_STEPS][SEEN]; /* nan: not seen */
} course;

static void compare(double *of, const nrm_real *g, const nrm_real *g2, size_t n)
{
    const double a = sqrt(training_squares(g, n)), b = sqrt(training_squares(g2, n));
    of[DISTANCE] = training_distance(g, g2, n);
    of[RELATIVE] = a > 0 ? of[DISTANCE] / a : (double)NAN;
    of[COSINE] = a > 0 && b > 0 ? training_dot(g, g2, n) / a / b : (double)NAN;
}

/* G' of layer l against its G. The parameters that come before W of layer l make their step. */
static int shift_of(course *c, size_t l, double *of)
{
    const nrm_mlp *net = c->m.net;
    const nrm_mlp_state *s = &net->state[l];
    const size_t before = (size_t)(s->W - net->params);
    nrm_acc loss;
    int rc;
    landscape_move(&c->here, (double)net->spec.lr, before);
    rc = c->m.evaluate(&c->m, &loss);
    compare(of, c->here.grads + before, s->dW, s->in * s->shape.width);
    return rc;
}

/* Before a step: the gradient, the shifts of the layers, the gradient after the whole step; then
   all is as it was. */
static int look(trainer *t, course *c, double *seen)
{
    const size_t n = t->net->n_params;
    nrm_acc after = 0;
    double of[FIGURES];
    size_t k;
    int rc = landscape_arrive(&c->here);
    for (k = 0; k < SHOWN && rc >= 0; k++)
        rc = shift_of(c, shape_of(t->run->arm)->shown[k], seen + k * FIGURES);
    if (t->step == 0 && rc >= 0) {
        rc = shift_of(c, 0, of);
        lab_record(t->run, "first_layer_shift", 0, of[DISTANCE]);
        lab_record(t->run, "first_layer_cosine", 0, of[COSINE]);
    }
    landscape_move(&c->here, (double)t->net->spec.lr, n);
    if (rc >= 0) rc = c->m.evaluate(&c->m, &after);
    compare(of, c->here.grads, t->net->grads, n);
    landscape_move(&c->here, 0, 0);
    seen[SAME] = of[COSINE];
    seen[DOWN] = after < c->here.loss;
    return rc;
}

/* ---- records --------------------------------------------------------------------------------- */

/* Of bins there is what the figures draw: of the middle layer the shift, and of all cosines. */
static int is_kept(size_t i, int bin)
{
    if (!bin) return i != ACCURACY;
    if (i < NEXT) return i == FIGURES + DISTANCE || i % FIGURES == COSINE;
    return i != NEXT && i != DOWN;
}

/* Medians of what was seen at the steps from `from` to before `to`, or means, at x. */
static void put_span(trainer *t, int bin, size_t from, size_t to, double x)
{
    const course *c = (const course *)t->plan->context;
    size_t i, step;
    for (i = 0; i < SEEN; i++) {
        const char *name = i < NEXT ? figure_name[i % FIGURES] : other_name[i - NEXT];
        double v[MOST_STEPS], found;
        char layer[32] = "";
        size_t n = 0;
        if (!is_kept(i, bin)) continue;
        for (step = from; step < to && step < t->step; step++)
            if (!isnan(c->seen[step][i])) v[n++] = c->seen[step][i];
        if (n == 0) continue;
        found = i < DOWN ? stats_median(v, n) : stats_mean(v, n);
        if (i < NEXT)
            (void)snprintf(layer, sizeof layer, "_%zu",
                           shape_of(t->run->arm)->shown[i / FIGURES] + 1);
        lab_record_as(t->run, x, lab_round(found, 4), "%s_%s%s", bin ? "bin" : "window", name,
                      layer);
    }
}

/* ---- a run ----------------------------------------------------------------------------------- */

static int begin(trainer *t)
{
    course *c = (course *)t->plan->context;
    size_t step, i;
    memset(c, 0, sizeof *c);
    for (step = 0; step < MOST_STEPS; step++)
        for (i = 0; i < SEEN; i++) c->seen[step][i] = (double)NAN;
    if (!t->looked_at) return 0;
    c->last = (nrm_real *)malloc(t->net->n_params * sizeof *c->last);
    if (!c->last || landscape_model_make(&c->m, t->net, 0)) return -1;
    return landscape_place_make(&c->here, &c->m, t->run->seed);
}

/* One step of SGD, after a look or not. */
static int learn(trainer *t, nrm_acc *loss)
{
    course *c = (course *)t->plan->context;
    const training_order *o = &t->order;
    const size_t at = t->step, n = t->net->n_params;
    const int now = t->run->quick ? at < 4 || at % 5 == 0 : at < 20 || at % 10 == 0;
    const int looks = t->looked_at && now;
    double of[FIGURES], *seen = c->seen[at];
    nrm_acc hits = 0;
    int rc;
    landscape_batch(&c->m, o);
    rc = looks ? look(t, c, seen) : NRM_OK;
    if (rc >= 0) rc = nrm_mlp_train_step(t->net, loss, o->x, o->labels, o->count);
    (void)nrm_accuracy(&hits, t->net->logits, o->labels, o->count, CLASSES);
    seen[LOSS] = (double)*loss;
    seen[ACCURACY] = (double)hits;
    if (c->pending) {
        compare(of, c->last, t->net->grads, n);
        *c->pending = of[COSINE];
    }
    c->pending = looks ? &seen[NEXT] : NULL;
    if (looks) memcpy(c->last, t->net->grads, n * sizeof *c->last);
    return rc;
}

/* By windows and by bins. */
static int end(trainer *t)
{
    course *c = (course *)t->plan->context;
    size_t w, from, to;
    for (w = 0; w < WINDOWS; w++) put_span(t, 0, window_from[w], window_from[w + 1], (double)w);
    for (from = 0; from < t->step; from = to) {
        to = from + BIN < t->step ? from + BIN : t->step;
        put_span(t, 1, from, to, (double)(from + to) / 2);
    }
    landscape_place_free(&c->here);
    free(c->last);
    return 0;
}

static int run(lab_run *r)
{
    static course c;
    const trainer_plan plan = trainer_plan_of(.network = network, .begin = begin, .learn = learn,
                                              .end = end, .set = &train_set, .batch = BATCH,
                                              .steps = r->quick ? 26 : MOST_STEPS, .context = &c);
    return trainer_run(r, &plan);
}

/* ---- verdicts -------------------------------------------------------------------------------- */

/* In a cell (layer, window, learning rate): is the value with batch norm larger than without (+1),
   smaller (-1), or within a factor of 2 of it (0)? */
static int as_said(double batch, double none, int sign)
{
    if (sign) return sign > 0 ? batch >= none : batch <= none;
    return batch <= 2 * none && none <= 2 * batch;
}

/* Has the network begun to learn? One that stands still, with a loss as by guessing, has gradients
   next to 0 and disturbs nothing. */
static int learns(const lab_report *r, size_t arm, size_t seed, int window)
{
    return lab_at(r, arm, seed, "window_loss", window) < 2.2;
}

/* The share of cells that are as the claim says, of those in which both networks learn, seed by
   seed; of the arm at the large rate and, but for sign 0, at the small one. */
static lab_numbers shares(lab_report *r, size_t fast, size_t what, int sign)
{
    lab_numbers share;
    size_t s;
    share.n = lab_seeds(r, fast);
    for (s = 0; s < share.n; s++) {
        size_t arm, k;
        int w, all = 0, met = 0;
        for (arm = fast; arm <= fast + (sign ? KINDS : 0); arm += KINDS)
            for (k = 0; k < SHOWN; k++) {
                const char *name =
                    lab_format(r, "window_%s_%zu", figure_name[what], shape_of(arm)->shown[k] + 1);
                for (w = 0; w < WINDOWS; w++) {
                    if (!learns(r, arm + NONE, s, w) || !learns(r, arm + NORMED, s, w)) continue;
                    all++;
                    met += as_said(lab_at(r, arm + NORMED, s, name, w),
                                   lab_at(r, arm + NONE, s, name, w), sign);
                }
            }
        share.of[s] = all ? (double)met / all : (double)NAN;
    }
    return share;
}

/* More than half of the cells, and 60 % of them in the mean. c->b is the figure; without a test it
   is to stay as it is, at the large rate alone. */
static void judge_share(lab_report *r, const lab_claim *c)
{
    const int sign = c->test == LAB_MORE ? 1 : c->test == LAB_LESS ? -1 : 0;
    const lab_numbers share = shares(r, c->a, c->b, sign);
    stats_finding found = lab_above(share, 0.5);
    found.size_met = lab_average(share) >= 0.6;
    lab_verdict(r, c, found, "", "%s of the cells", lab_pm(r, share, 2));
}

/* Means over the two late windows, weighted by their steps. */
static double late(const lab_report *r, size_t arm, size_t seed, const char *series)
{
    return (3 * lab_at(r, arm, seed, series, 2) + 10 * lab_at(r, arm, seed, series, 3)) / 13;
}

static double late_same(const lab_report *r, size_t arm, size_t seed)
{
    return late(r, arm, seed, "window_same");
}

static double late_down(const lab_report *r, size_t arm, size_t seed)
{
    return late(r, arm, seed, "window_down");
}

/* c->a: the network without a norm */
static void judge_spiral(lab_report *r, const lab_claim *c)
{
    const lab_numbers same = lab_each(r, c->a + NORMED, late_same);
    const lab_numbers plain = lab_each(r, c->a, late_same);
    const double down = lab_average(lab_each(r, c->a + NORMED, late_down));
    const double plain_down = lab_average(lab_each(r, c->a, late_down));
    lab_verdict(r, c, lab_less(same, plain, down - plain_down >= 0), "",
                "cosine %s against %s; down %.0f %% against %.0f %%", lab_pm(r, same, 2),
                lab_pm(r, plain, 2), 100 * down, 100 * plain_down);
}

/* Nothing comes before the first layer. */
static void check_first_layer(lab_report *r)
{
    const double shift = lab_worst(r, "first_layer_shift");
    const double most = lab_worst(r, "first_layer_cosine");
    const double least = lab_least(r, 0, ARMS - 1, "first_layer_cosine", 0);
    const double cosine = stats_larger(fabs(most - 1), fabs(least - 1));
    lab_check(r, shift <= 0 && cosine < 1e-6, "first layer",
              "shift %g, expected 0; cosine off 1 by %.1e", shift, cosine);
}

/* ---- claims ---------------------------------------------------------------------------------- */

#define OF_CELLS(what)                                                                             \
    what " in more than half of the cells (layer, window, learning rate) in which both networks "  \
         "learn, seed by seed, and in 60 % of them in the mean"
#define LARGER OF_CELLS("larger with batch norm")
#define SPIRAL                                                                                     \
    "steps 200 to 1500 at 0.1: lower cosine before and after a step on one batch, paired, and in " \
    "the mean at least as many steps go down"

#define MORE_IN_BOTH(of)                                                                           \
    LAB_PARTS({LAB_MORE, ARM(RELU13, FAST) + NORMED, ARM(RELU13, FAST), .each = of},               \
              {LAB_MORE, ARM(TANH6, FAST) + NORMED, ARM(TANH6, FAST), .each = of}),                \
        .remark = "post hoc", .decimals = 2
#define POST_HOC "the run itself: written when the numbers of 14h and 14i were known"

#define SANTURKAR "Santurkar et al. 2018, "
#define NOTES "Chinese notes on batch norm"
/* clang-format off */
#define OF_BOTH(one, two, text, source, paper, criterion, relu, tanh, why_not, ...)                \
    {"14" one, text ": 13 x 100 ReLU", source, paper, criterion, relu, LAB_TRAINING, why_not,      \
     .judge = __VA_ARGS__, .a = ARM(RELU13, FAST)},                                                \
    {"14" two, text ": 6 x 100 tanh", source, paper, criterion, tanh, LAB_TRAINING, why_not,       \
     .judge = __VA_ARGS__, .a = ARM(TANH6, FAST)}
static const lab_claim claims[] = {
    OF_BOTH("a", "b", "Batch norm does not reduce the shift |G - G'|", SANTURKAR "Fig. 3",
            "VGG, learning rate 0.1: about the same; linear network: batch norm larger", LARGER,
            "trial runs (1 seed): relative shift 1.29 against 0.18 in steps 0 to 20", "none",
            LAB_SETTING, judge_share, LAB_MORE, .b = DISTANCE),
    OF_BOTH("c", "d", "Batch norm does not reduce the relative shift |G - G'|/|G|", "ours",
            "not shown", LARGER, "trial runs (1 seed): 1.29 against 0.18 in steps 0 to 20", "none",
            LAB_SETTING, judge_share, LAB_MORE, .b = RELATIVE),
    OF_BOTH("e", "f", "With batch norm G and G' do not point more alike", SANTURKAR "Fig. 3",
            "cosines about the same (VGG) or lower (linear network)",
            OF_CELLS("cosine of G and G' lower with batch norm"), "trial runs (1 seed): 0.36, "
            "0.40, 0.68 against 0.25, 0.11, 0.09 in steps 500 to 1500 at 0.1: expected to fail",
            "trial runs (1 seed): higher with batch norm in most windows: expected to fail",
            LAB_SETTING, judge_share, LAB_LESS, .b = COSINE),
    {"14g", "At learning rate 0.1 batch norm hardly changes the shift: 13 x 100 ReLU", NOTES,
     "no obvious change for VGG (read off Fig. 3)", "within a factor of 2 in more than half of 12 "
     "cells in which both learn, seed by seed, and in 60 % of them in the mean", "none",
     LAB_TRAINING, LAB_SETTING, judge_share, .a = ARM(RELU13, FAST),
     .b = DISTANCE},
    OF_BOTH("h", "i", "With batch norm the descent is a spiral, turning but always down", NOTES,
            "a guess", SPIRAL, "none", "none", LAB_NEWS, judge_spiral),
    {"14j", "Post hoc: with batch norm the gradient points more as before after a step along it",
     SANTURKAR "section 3; a tutorial on batch and layer norm; a lecture-style post on how batch "
     "norm helps",
     "\"a fairly accurate estimate of the actual gradient direction after taking that step\"",
     "steps 200 to 1500 at 0.1: higher cosine before and after a step on one batch, paired, in "
     "both networks", POST_HOC, LAB_TRAINING, LAB_SETTING, MORE_IN_BOTH(late_same),
     .say = "13 x 100 ReLU: cosine $1 against $2; 6 x 100 tanh: cosine $3 against $4"},
    {"14k", "Post hoc: with batch norm a step along the gradient is likelier to lead down",
     "a derivation of batch norm's backward pass", "\"more likely to lead us to a minima\"",
     "steps 200 to 1500 at 0.1: loss of its own batch lower after more of the steps, paired, in "
     "both networks", POST_HOC, LAB_TRAINING, LAB_SETTING, MORE_IN_BOTH(late_down),
     .say = "13 x 100 ReLU: down #1[100 %.0f] % against #2[100 %.0f] %; 6 x 100 tanh: down "
     "#3[100 %.0f] % against #4[100 %.0f] %"}};
/* clang-format on */

/* ---- figures --------------------------------------------------------------------------------- */

static plot_style look_of(size_t arm)
{
    return lab_style(arm % KINDS == NONE ? "none" : "batch");
}

#define STAGE_LO 0.15 /* losses that all networks pass */
#define STAGE_HI 0.5

/* Mean of a series over all seeds and the bins where the loss lies between those. */
static double at_stage(const lab_report *r, size_t arm, const char *series)
{
    double sum = 0, n = 0;
    size_t s, i;
    for (s = 0; s < lab_seeds(r, arm); s++) {
        const lab_series loss = lab_get(r, arm, s, "bin_loss"), y = lab_get(r, arm, s, series);
        for (i = 0; i < y.n && loss.n == y.n; i++)
            if (loss.y[i] >= STAGE_LO && loss.y[i] <= STAGE_HI) {
                sum += y.y[i];
                n++;
            }
    }
    return n > 0 ? sum / n : (double)NAN;
}

/* How alike G and G' are against the loss at that time, all seeds: nets at the same stage. */
static void draw_stage(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    size_t arm, s;
    plot_heading(p, lab_format(r, "mean: none %.2f, batch norm %.2f",
                               at_stage(r, panel->arm + NONE, panel->series),
                               at_stage(r, panel->arm + NORMED, panel->series)));
    for (arm = panel->arm; arm <= panel->arm + NORMED; arm++) {
        const plot_style style = {look_of(arm).color, .alpha = 0.6, .size = 0.7,
                                  .marker = arm % KINDS == NONE ? PLOT_RING : PLOT_CIRCLE};
        for (s = 0; s < lab_seeds(r, arm); s++) {
            const lab_series loss = lab_get(r, arm, s, "bin_loss");
            const lab_series y = lab_get(r, arm, s, panel->series);
            if (loss.n == y.n) plot_scatter(p, arms[arm].name, loss.y, y.y, y.n, style);
        }
    }
}

/* clang-format off */
/* Means of both kinds with bands; on logarithmic axes with the seeds, for a band may reach below
   0. */
#define BOTH(arm, series) .line = {{arm, series, .to = (arm) + NORMED}}
#define SEEDS(arm, of, hue)                                                                        \
    {arm, of, "", {hue, .width = 0.45, .alpha = 0.45}, LAB_EACH_SEED}, {arm, of, .how = LAB_MEAN}
#define BOTH_SEEDS(arm, of)                                                                        \
    .line = {SEEDS(arm, of, PLOT_VERMILLION), SEEDS((arm) + NORMED, of, PLOT_BLUE)}
#define STEPS .x = "steps", .x_range = {0, 1500}
#define ONE .under = {{LAB_HLINE, .y = 1, .text = "", .color = PLOT_GREY, .dash = PLOT_DASHED}}
#define COSINE(net, rate, right, name, layer)                                                      \
    {.axes = {net, right, .heading = name "layer " #layer, STEPS, .y = "cosine of G and G′",       \
              .y_range = {-0.5, 1.08}}, ONE, BOTH(ARM(net, rate), "bin_cosine_" #layer)}
#define NETWORK(net, rate, name, layer)                                                            \
    {.axes = {net, .heading = name, STEPS, .y = "training accuracy", .y_range = {0, 1}},           \
     BOTH(ARM(net, rate), "bin_accuracy")},                                                        \
    {.axes = {net, 1, .heading = "layer " #layer, STEPS, .y = "|G − G′|", .y_scale = PLOT_LOG10,   \
              .y_range = {5e-4, 5}}, BOTH_SEEDS(ARM(net, rate), "bin_shift_" #layer)},             \
    COSINE(net, rate, 2, "", layer)
#define NETWORKS(rate) {NETWORK(RELU13, rate, "13 x 100 ReLU", 9),                                 \
                        NETWORK(TANH6, rate, "6 x 100 tanh", 4)}
static const lab_panel fast_panels[] = NETWORKS(FAST);
static const lab_panel slow_panels[] = NETWORKS(SLOW);
static const lab_panel layer_panels[] = {COSINE(RELU13, FAST, 0, "13 x 100 ReLU, ", 4),
                                         COSINE(RELU13, FAST, 1, "13 x 100 ReLU, ", 13),
                                         COSINE(TANH6, FAST, 0, "6 x 100 tanh, ", 2),
                                         COSINE(TANH6, FAST, 1, "6 x 100 tanh, ", 6)};

/* A network at the learning rate 0.1: its loss, how its gradient turns, and that at equal loss. */
#define STAGES(net, name, layer)                                                                   \
    {.axes = {net, .heading = name, STEPS, .y = "training loss", .y_scale = PLOT_LOG10,            \
              .y_range = {0.03, 3}, .legend = PLOT_LEGEND_NONE},                                   \
     BOTH_SEEDS(ARM(net, FAST), "bin_loss")},                                                      \
    {.axes = {net, 1, .heading = "before and after a step", STEPS, .y = "cosine, same batch",      \
              .y_range = {-0.9, 1.08}, .legend = PLOT_LEGEND_NONE},                                \
     BOTH(ARM(net, FAST), "bin_same")},                                                            \
    {.axes = {net, 2, .x = "training loss", .x_scale = PLOT_LOG10, .x_range = {0.03, 3},           \
              .y = "cosine of G and G′, layer " #layer, .y_range = {-0.5, 1.08},                   \
              .legend = PLOT_LEGEND_NONE},                                                         \
     .draw = draw_stage, .arm = ARM(net, FAST), .series = "bin_cosine_" #layer,                    \
     .mark = {{LAB_HLINE, .y = 1, .text = "", .color = PLOT_GREY, .dash = PLOT_DASHED},            \
              {LAB_VLINE, .x = STAGE_LO, .text = "", .color = PLOT_GREY},                          \
              {LAB_VLINE, .x = STAGE_HI, .text = "", .color = PLOT_GREY}}}
static const lab_panel stages[] = {STAGES(RELU13, "13 x 100 ReLU", 9),
                                   STAGES(TANH6, "6 x 100 tanh", 4)};

#define AT(rate) "Hidden layers of 100, Glorot weights, SGD, learning rate " rate ", batches of 128"
static const lab_page pages[] = {
    {"The shift is no smaller with batch norm, but the gradient keeps its direction better",
     NULL, 1120, .shared_legend = 1, .settings = AT("0.1") "; medians of 75 steps",
     LAB_PANELS(fast_panels)},
    {"Networks that stand still or take tiny steps have hardly any shift", "slow", 1120,
     .shared_legend = 1, .settings = AT("0.01") "; medians of 75 steps", LAB_PANELS(slow_panels)},
    {"In other layers too the gradient keeps its direction better with batch norm", "layers",
     1120, .shared_legend = 1, .settings = AT("0.1") "; medians of 75 steps",
     LAB_PANELS(layer_panels)},
    {"At the same loss batch norm's gradient turns less under a step", "stage", 1120,
     .shared_legend = 1, .settings = AT("0.1") "; c, f: a mark for 75 steps of a seed, means "
     "between the thin lines", LAB_PANELS(stages)}};
/* clang-format on */

LAB_PROGRAM("14_covariate_shift", "Does batch norm reduce internal covariate shift?",
            "Hidden layers of 100 units, Glorot weights, pixels standardized, SGD, batches of "
            "128, 1500 steps; looked at in the first 20 steps and in every 10th; medians",
            .revision = 2, .uses = LAB_USES_DATA + LAB_TWICE, .prepare = prepare, .look = look_of,
            .after = check_first_layer)
