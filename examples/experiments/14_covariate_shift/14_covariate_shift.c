/* 14_covariate_shift: does batch norm reduce internal covariate shift? (README.md)

   G is the gradient of a layer's weights as it is used, G' as it would be if the layers before it
   had already made their step: "moved" are all their parameters, γ and β too. The first layer has
   nothing before it: its shift must be exactly 0. Choices that were left open: the last hidden
   layer, not the output layer, is "last"; medians over a window, since single steps scatter by
   decades; a cosine with a gradient of length 0 is left out. */
#include "lab/experiment.h"

enum { INPUTS = 784, CLASSES = 10, WIDTH = 100, DEEPEST = 13, BATCH = 128, CHECKED = 41 };
enum { SHOWN = 3, WINDOWS = 4, BIN = 75, LOOKS = 200 };

/* ---- the arms -------------------------------------------------------------------------------- */

enum { RELU13, TANH6, NETS };
enum { FAST, SLOW, RATES };
enum { NONE, NORMED, KINDS };
enum { ARMS = NETS * RATES * KINDS };

typedef struct network {
    const char *name;
    size_t hidden;
    int activation;
    size_t shown[SHOWN]; /* layers looked at, counted from 0 */
} network;

static const network networks[NETS] = {{"13 x 100 ReLU", 13, NRM_RELU, {3, 8, 12}},
                                       {"6 x 100 tanh", 6, NRM_TANH, {1, 3, 5}}};
static const double rates[RATES] = {0.1, 0.01};

/* Steps of a window: from one to before the next. */
static const size_t window_from[WINDOWS + 1] = {0, 20, 200, 500, 1500};

static const lab_arm arms[ARMS] = {
    {"relu13_fast_none", "no norm", 9, 12}, {"relu13_fast_batch", "batch norm", 10, 12},
    {"relu13_slow_none", "no norm", 9, 12}, {"relu13_slow_batch", "batch norm", 10, 12},
    {"tanh6_fast_none", "no norm", 6, 12},  {"tanh6_fast_batch", "batch norm", 7, 12},
    {"tanh6_slow_none", "no norm", 6, 12},  {"tanh6_slow_batch", "batch norm", 7, 12}};

static size_t arm_of(int net, int rate, int kind)
{
    return (size_t)((net * RATES + rate) * KINDS + kind);
}

LAB_SET(train_set, quick ? 4000 : 0, DATASET_STD);

/* ---- a network in training ------------------------------------------------------------------- */

typedef struct trial {
    lab_run *r;
    const network *shape;
    nrm_mlp *mlp;
    void *block;
    training_order order;
    size_t steps;
    nrm_real *kept, *g; /* [n_params] parameters and gradient while a look disturbs them */
    double *pending;    /* where the cosine of g and the next step's gradient is missing */
} trial;

static void trial_free(trial *t)
{
    training_order_free(&t->order);
    free(t->block);
    free(t->kept);
    free(t->g);
}

static int trial_make(trial *t, lab_run *r)
{
    const network *shape = &networks[r->arm / (KINDS * RATES)];
    const int norm = r->arm % KINDS == NORMED ? NRM_BATCH_NORM : NRM_NO_NORM;
    nrm_mlp_layer layer[DEEPEST + 1];
    nrm_mlp_spec spec = training_plain(layer, shape->hidden, WIDTH, shape->activation, norm);
    memset(t, 0, sizeof *t);
    t->r = r;
    t->shape = shape;
    t->steps = r->quick ? 26 : 1500;
    spec.max_batch = BATCH;
    spec.seed = r->seed;
    spec.lr = (nrm_real)rates[r->arm / KINDS % RATES];
    t->mlp = training_net(&spec, &t->block);
    if (!t->mlp || training_order_start(&t->order, train_set.n, BATCH, INPUTS, r->seed)) return -1;
    t->kept = (nrm_real *)malloc(t->mlp->n_params * sizeof *t->kept);
    t->g = (nrm_real *)malloc(t->mlp->n_params * sizeof *t->g);
    return t->kept && t->g ? 0 : -1;
}

/* ---- two gradients beside each other --------------------------------------------------------- */

enum { DISTANCE, RELATIVE, COSINE, FIGURES }; /* what is told of two gradients */
static const char *const figure_name[FIGURES] = {"shift", "relative", "cosine"};

typedef struct pair {
    double of[FIGURES];
} pair;

static pair compare(const nrm_real *g, const nrm_real *g2, size_t n)
{
    double gg = 0, hh = 0, gh = 0, dd = 0;
    pair p;
    size_t i;
    for (i = 0; i < n; i++) {
        const double a = (double)g[i], b = (double)g2[i];
        gg += a * a;
        hh += b * b;
        gh += a * b;
        dd += (a - b) * (a - b);
    }
    p.of[DISTANCE] = sqrt(dd);
    p.of[RELATIVE] = gg > 0 ? sqrt(dd / gg) : (double)NAN;
    p.of[COSINE] = gg > 0 && hh > 0 ? gh / sqrt(gg) / sqrt(hh) : (double)NAN;
    return p;
}

/* What a look at one step finds. */
typedef struct sight {
    double step;
    pair shift[SHOWN]; /* of the layers shown: G and G'                          */
    double next;       /* cosine of the gradients of this step and the next one  */
    double same;       /* the same on this step's batch, before and after it     */
    double loss, down; /* before the step; 1 if it is lower after it             */
} sight;

/* G' of layer l against its G. The parameters that come before W of layer l make their step. */
static int shift_of(trial *t, size_t l, pair *found)
{
    nrm_mlp *net = t->mlp;
    const nrm_mlp_state *s = &net->state[l];
    const size_t before = (size_t)(s->W - net->params);
    size_t i;
    int rc;
    memcpy(net->params, t->kept, net->n_params * sizeof *t->kept);
    for (i = 0; i < before; i++) net->params[i] -= net->spec.lr * t->g[i];
    rc = nrm_mlp_gradient(net, NULL, t->order.x, t->order.labels, t->order.count, NRM_TRAIN);
    *found = compare(t->g + before, s->dW, s->in * s->shape.width);
    return rc;
}

/* The cosine of the last look's gradient and the present one, if that is still missing. */
static void meet_next(trial *t)
{
    if (t->pending) *t->pending = compare(t->g, t->mlp->grads, t->mlp->n_params).of[COSINE];
    t->pending = NULL;
}

/* Before a step: the gradient, the shifts of the layers, the gradient after the whole step; then
   all is as it was, and t->g is the gradient. */
static int look(trial *t, sight *s, size_t step)
{
    nrm_mlp *net = t->mlp;
    nrm_acc loss = 0, after = 0;
    pair first = {{0, 0, 1}}, same;
    size_t i;
    int k,
        rc = nrm_mlp_gradient(net, &loss, t->order.x, t->order.labels, t->order.count, NRM_TRAIN);
    meet_next(t);
    memcpy(t->kept, net->params, net->n_params * sizeof *t->kept);
    memcpy(t->g, net->grads, net->n_params * sizeof *t->g);
    s->step = (double)step;
    for (k = 0; k < SHOWN && rc >= 0; k++) rc = shift_of(t, t->shape->shown[k], &s->shift[k]);
    if (step == 0 && rc >= 0) {
        rc = shift_of(t, 0, &first);
        lab_record(t->r, "first_layer_shift", 0, first.of[DISTANCE]);
        lab_record(t->r, "first_layer_cosine", 0, first.of[COSINE]);
    }
    for (i = 0; i < net->n_params; i++) net->params[i] = t->kept[i] - net->spec.lr * t->g[i];
    if (rc >= 0)
        rc = nrm_mlp_gradient(net, &after, t->order.x, t->order.labels, t->order.count, NRM_TRAIN);
    same = compare(t->g, net->grads, net->n_params);
    memcpy(net->params, t->kept, net->n_params * sizeof *t->kept);
    s->same = same.of[COSINE];
    s->next = (double)NAN;
    s->loss = (double)loss;
    s->down = after < loss;
    return rc;
}

/* ---- records --------------------------------------------------------------------------------- */

static void put(trial *t, const char *group, const char *what, size_t layer, double x, double y)
{
    if (isnan(y)) return;
    if (layer > 0)
        lab_record_as(t->r, x, lab_round(y, 4), "%s_%s_%zu", group, what, layer);
    else
        lab_record_as(t->r, x, lab_round(y, 4), "%s_%s", group, what);
}

/* Medians over some looks, at x of the series whose names begin with the group's. */
static void put_medians(trial *t, const char *group, const sight *s, size_t n, double x)
{
    double v[LOOKS], down = 0;
    size_t i;
    int k, what;
    if (n == 0) return;
    for (k = 0; k < SHOWN; k++)
        for (what = 0; what < FIGURES; what++) {
            for (i = 0; i < n; i++) v[i] = s[i].shift[k].of[what];
            put(t, group, figure_name[what], t->shape->shown[k] + 1, x, stats_median(v, n));
        }
    for (i = 0; i < n; i++) v[i] = s[i].next;
    put(t, group, "next", 0, x, stats_median(v, n));
    for (i = 0; i < n; i++) v[i] = s[i].same;
    put(t, group, "same", 0, x, stats_median(v, n));
    for (i = 0; i < n; i++) down += s[i].down / (double)n;
    put(t, group, "down", 0, x, down);
}

static double mean_of(const double *v, size_t from, size_t to)
{
    double sum = 0;
    size_t i;
    for (i = from; i < to; i++) sum += v[i];
    return sum / (double)(to - from);
}

/* Looks and the losses of all steps, by windows and by bins. */
static void record(trial *t, const sight *s, size_t n, const double *loss, const double *accuracy)
{
    size_t from, i = 0, j;
    int w;
    for (w = 0; w < WINDOWS; w++) {
        const size_t to = window_from[w + 1] < t->steps ? window_from[w + 1] : t->steps;
        for (j = i; j < n && s[j].step < (double)to; j++) continue;
        put_medians(t, "window", s + i, j - i, w);
        if (to > window_from[w]) put(t, "window", "loss", 0, w, mean_of(loss, window_from[w], to));
        i = j;
    }
    for (from = 0, i = 0; from < t->steps; from += BIN, i = j) {
        const size_t to = from + BIN < t->steps ? from + BIN : t->steps;
        const double x = (double)(from + to) / 2;
        for (j = i; j < n && s[j].step < (double)to; j++) continue;
        put_medians(t, "bin", s + i, j - i, x);
        put(t, "bin", "loss", 0, x, mean_of(loss, from, to));
        put(t, "bin", "accuracy", 0, x, mean_of(accuracy, from, to));
    }
}

/* ---- a run ----------------------------------------------------------------------------------- */

static int look_now(const trial *t, size_t step)
{
    return t->r->quick ? step < 4 || step % 5 == 0 : step < 20 || step % 10 == 0;
}

/* One step of SGD, after a look or not. A step that is not finite is not taken. */
static int step(trial *t, sight *s, size_t at, double *loss, double *accuracy)
{
    nrm_mlp *net = t->mlp;
    nrm_acc value = 0, hits = 0;
    int rc = s ? look(t, s, at) : NRM_OK;
    if (rc >= 0) rc = nrm_mlp_train_step(net, &value, t->order.x, t->order.labels, t->order.count);
    if (rc >= 0) rc = nrm_accuracy(&hits, net->logits, t->order.labels, t->order.count, CLASSES);
    if (!s) meet_next(t);
    if (s) t->pending = &s->next;
    *loss = (double)value;
    *accuracy = (double)hits;
    return rc;
}

/* Beside it, for the first steps, one that nobody looks at: the parameters stay the same. */
static int train(trial *t, trial *alone, sight *s, double *loss, double *accuracy)
{
    const size_t bytes = t->mlp->n_params * sizeof *t->kept;
    const size_t checked = t->steps < CHECKED ? t->steps : (size_t)CHECKED;
    size_t i, n = 0;
    int rc = 0;
    for (i = 0; i < t->steps && rc >= 0; i++) {
        const int looking = look_now(t, i) && n < LOOKS;
        if (i < checked) {
            training_go_on(&alone->order, &train_set, 1);
            rc = step(alone, NULL, i, &loss[i], &accuracy[i]);
        }
        training_go_on(&t->order, &train_set, 1);
        if (rc >= 0) rc = step(t, looking ? &s[n++] : NULL, i, &loss[i], &accuracy[i]);
        if (i + 1 == checked)
            lab_record(t->r, "same_bits", 0, !memcmp(t->mlp->params, alone->mlp->params, bytes));
        if (i % 50 == 0) lab_progress(t->r, (double)i / (double)t->steps);
    }
    if (rc >= 0) record(t, s, n, loss, accuracy);
    return rc;
}

static int run(lab_run *r)
{
    trial t, alone;
    int rc = trial_make(&t, r), other = trial_make(&alone, r);
    sight *s = (sight *)malloc(LOOKS * sizeof *s);
    double *loss = (double *)malloc(2 * t.steps * sizeof *loss);
    rc = rc >= 0 && other >= 0 && s && loss ? train(&t, &alone, s, loss, loss + t.steps) : -1;
    if (rc < 0) fprintf(stderr, "a run failed: %s\n", nrm_strerror(rc));
    trial_free(&t);
    trial_free(&alone);
    free(s);
    free(loss);
    return rc < 0;
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
   seed; learning rates from the first to before `last`. */
static lab_numbers shares(lab_report *r, int net, int what, int sign, int last)
{
    lab_numbers share;
    size_t s;
    share.n = lab_seeds(r, arm_of(net, FAST, NONE));
    for (s = 0; s < share.n; s++) {
        int rate, k, w, all = 0, met = 0;
        for (rate = FAST; rate < last; rate++)
            for (k = 0; k < SHOWN; k++) {
                const size_t arm = arm_of(net, rate, NONE);
                const char *name =
                    lab_format(r, "window_%s_%zu", figure_name[what], networks[net].shown[k] + 1);
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

/* More than half of the cells, and 60 % of them in the mean. c->a is the network, c->b the figure,
   without a test it is to stay as it is, at the large rate alone. */
static void judge_share(lab_report *r, const lab_claim *c)
{
    const int sign = c->test == LAB_MORE ? 1 : c->test == LAB_LESS ? -1 : 0;
    const lab_numbers share = shares(r, (int)c->a, (int)c->b, sign, sign ? RATES : SLOW);
    stats_finding found = lab_above(share, 0.5);
    found.size_met = lab_average(share) >= 0.6;
    lab_verdict(r, c, found, "", "%s of the cells", lab_pm(r, share, 2));
}

/* Means over the two late windows, weighted by their steps, of a network at 0.1. */
static lab_numbers late(const lab_report *r, size_t net, int kind, const char *series)
{
    const size_t arm = arm_of((int)net, FAST, kind);
    const lab_numbers a = lab_all(r, arm, series, 2), b = lab_all(r, arm, series, 3);
    lab_numbers mean = a;
    size_t s;
    for (s = 0; s < a.n; s++) mean.of[s] = (3 * a.of[s] + 10 * b.of[s]) / 13;
    return mean;
}

static const char *told(lab_report *r, size_t net, const char *series)
{
    const lab_numbers batch = late(r, net, NORMED, series), none = late(r, net, NONE, series);
    if (strcmp(series, "window_down") == 0)
        return lab_format(r, "down %.0f %% against %.0f %%", 100 * lab_average(batch),
                          100 * lab_average(none));
    return lab_format(r, "cosine %s against %s", lab_pm(r, batch, 2), lab_pm(r, none, 2));
}

static void judge_spiral(lab_report *r, const lab_claim *c)
{
    const char *same = "window_same", *down = "window_down";
    const int go =
        lab_average(late(r, c->a, NORMED, down)) - lab_average(late(r, c->a, NONE, down)) >= 0;
    lab_verdict(r, c, lab_less(late(r, c->a, NORMED, same), late(r, c->a, NONE, same), go), "",
                "%s; %s", told(r, c->a, same), told(r, c->a, down));
}

static void judge_post_hoc(lab_report *r, const lab_claim *c)
{
    stats_finding more[NETS];
    size_t net;
    for (net = 0; net < NETS; net++)
        more[net] = lab_more(late(r, net, NORMED, c->series), late(r, net, NONE, c->series), 1);
    lab_verdict(r, c, stats_together(more, NETS), "post hoc", "%s: %s; %s: %s", networks[0].name,
                told(r, 0, c->series), networks[1].name, told(r, 1, c->series));
}

/* Nothing comes before the first layer; and a look changes nothing. */
static void check_runs(lab_report *r)
{
    const int same = lab_least(r, 0, ARMS - 1, "same_bits", 0) > 0;
    const double shift = lab_worst(r, "first_layer_shift");
    double cosine = 0;
    size_t a, s;
    for (a = 0; a < ARMS; a++)
        for (s = 0; s < lab_seeds(r, a); s++)
            cosine = stats_larger(cosine, fabs(lab_at(r, a, s, "first_layer_cosine", 0) - 1));
    lab_check(r, shift <= 0 && cosine < 1e-6, "first layer",
              "shift %g, expected 0; cosine off 1 by %.1e", shift, cosine);
    lab_check(r, same, "a look changes nothing", same ? "the same bits" : "other parameters");
}

/* ---- claims ---------------------------------------------------------------------------------- */

#define OF_CELLS(what)                                                                             \
    what " in more than half of the cells (layer, window, learning rate) in which both networks "  \
         "learn, seed by seed, and in 60 % of them in the mean"
#define LARGER OF_CELLS("larger with batch norm")
#define SPIRAL                                                                                     \
    "steps 200 to 1500 at 0.1: lower cosine before and after a step on one batch, paired, and in " \
    "the mean at least as many steps go down"

#define POST_HOC "the run itself: written when the numbers of 14h and 14i were known"

#define SANTURKAR "Santurkar et al. 2018, "
#define NOTES "Chinese notes on batch norm"
/* clang-format off */
#define OF_BOTH(one, two, text, source, paper, criterion, relu, tanh, why_not, ...)                \
    {"14" one, text ": 13 x 100 ReLU", source, paper, criterion, relu, LAB_TRAINING, why_not,      \
     .judge = __VA_ARGS__, .a = RELU13},                                                           \
    {"14" two, text ": 6 x 100 tanh", source, paper, criterion, tanh, LAB_TRAINING, why_not,       \
     .judge = __VA_ARGS__, .a = TANH6}
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
     LAB_TRAINING, LAB_SETTING, judge_share, .a = RELU13, .b = DISTANCE},
    OF_BOTH("h", "i", "With batch norm the descent is a spiral, turning but always down", NOTES,
            "a guess", SPIRAL, "none", "none", LAB_NEWS, judge_spiral),
    {"14j", "Post hoc: with batch norm the gradient points more as before after a step along it",
     SANTURKAR "section 3; a tutorial on batch and layer norm; a lecture-style post on how batch "
     "norm helps",
     "\"a fairly accurate estimate of the actual gradient direction after taking that step\"",
     "steps 200 to 1500 at 0.1: higher cosine before and after a step on one batch, paired, in "
     "both networks", POST_HOC, LAB_TRAINING, LAB_SETTING, judge_post_hoc,
     .series = "window_same"},
    {"14k", "Post hoc: with batch norm a step along the gradient is likelier to lead down",
     "a derivation of batch norm's backward pass", "\"more likely to lead us to a minima\"",
     "steps 200 to 1500 at 0.1: loss of its own batch lower after more of the steps, paired, in "
     "both networks", POST_HOC, LAB_TRAINING, LAB_SETTING, judge_post_hoc,
     .series = "window_down"}};
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
    int kind;
    plot_heading(p, lab_format(r, "mean: none %.2f, batch norm %.2f",
                               at_stage(r, panel->arm + NONE, panel->series),
                               at_stage(r, panel->arm + NORMED, panel->series)));
    for (kind = 0; kind < KINDS; kind++) {
        const size_t arm = panel->arm + (size_t)kind;
        const plot_style style = {look_of(arm).color, .alpha = 0.6, .size = 0.7,
                                  .marker = kind == NONE ? PLOT_RING : PLOT_CIRCLE};
        size_t s;
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
#define ARM(net, rate) (((net) * RATES + (rate)) * KINDS)
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
static int report(lab_report *r)
{
    static const lab_page pages[4] = {
        {"The shift is no smaller with batch norm, but the gradient keeps its direction better",
         NULL, 1120, .shared_legend = 1, .settings = AT("0.1") "; medians of 75 steps"},
        {"Networks that stand still or take tiny steps have hardly any shift", "slow", 1120,
         .shared_legend = 1, .settings = AT("0.01") "; medians of 75 steps"},
        {"In other layers too the gradient keeps its direction better with batch norm", "layers",
         1120, .shared_legend = 1, .settings = AT("0.1") "; medians of 75 steps"},
        {"At the same loss batch norm's gradient turns less under a step", "stage", 1120,
         .shared_legend = 1, .settings = AT("0.1") "; c, f: a mark for 75 steps of a seed, means "
         "between the thin lines"}};
    lab_judge(r);
    check_runs(r);
    return lab_draw(r, &pages[0], fast_panels, LAB_COUNT(fast_panels)) ||
           lab_draw(r, &pages[1], slow_panels, LAB_COUNT(slow_panels)) ||
           lab_draw(r, &pages[2], layer_panels, LAB_COUNT(layer_panels)) ||
           lab_draw(r, &pages[3], stages, LAB_COUNT(stages));
}

static const lab_program program = {
    "14_covariate_shift", NRM_VERSION, "Does batch norm reduce internal covariate shift?",
    "Hidden layers of 100 units, Glorot weights, pixels standardized, SGD, batches of 128, 1500 "
    "steps; looked at in the first 20 steps and in every 10th; medians", 1, LAB_USES_DATA, arms,
    ARMS, prepare, run, report, claims, LAB_COUNT(claims), look_of};
/* clang-format on */
LAB_MAIN(program)
