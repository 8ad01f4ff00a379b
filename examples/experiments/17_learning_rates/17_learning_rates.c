/* 17_learning_rates: does batch norm allow larger learning rates, and is that what it is good for?
   (README.md)

   Sweep: a run diverges if its loss is not finite or above 1000 times its first one; it then counts
   as accuracy 0.1. Schedule: momentum 0.9 and weight decay 5e-4 on all parameters, γ and β too.
   Step: at mini-batches 1, 4 and 7 the loss of the same batch after a step along its gradient, over
   the loss before, batch norm in train mode; what is not finite is taken for infinite. */
#include "lab/experiment.h"
#include "lab/residual.h"

enum { BATCH = DEEP_BATCH, RATES = 10, SIZES = 41, MARKS = 20, MINIBATCHES = 7 };
#define ENOUGH 0.9    /* a test accuracy that counts as trained                  */
#define TOO_LARGE 1e3 /* times the first loss, or the loss before a step         */
#define CAPPED 1e30   /* stands for any larger ratio, and for what is not finite */
#define KEEP 0.9F
#define DECAY 5e-4F

static const double rate_of[RATES] = {1e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1, 3, 10};

/* ---- the arms -------------------------------------------------------------------------------- */

enum { SWEEP, SCHEDULE, STEP };

typedef struct plan {
    int what;
    deep_spec net;
    double rate; /* not of sweeps */
} plan;

/* clang-format off */
#define M13(norm, keep) {DEEP_PLAIN, norm, 0, 13, keep, 0}
#define P20(norm, keep) {DEEP_PLAIN, norm, 1, 20, keep, 0}
#define R27(norm, keep, decay) {DEEP_RESIDUAL, norm, 0, 27, keep, decay}

/* sweeps: norm by norm, of each the networks M13, P20, R27 */
enum { RS_BATCH, RS_NONE, PS_BATCH, PS_NONE, MS_BATCH, MS_NONE, B_HIGH, B_MIDDLE, B_LOW, N_LOW,
       N_MIDDLE, N_HIGH, SWEEPS, ARMS = SWEEPS + 9 };
enum { M13_NET, P20_NET, R27_NET };

#define STEPS(batch, net) {STEP, batch, 0.1}, {STEP, net, 0.0001}
#define R27_TRAINED(norm, rate) {SCHEDULE, R27(norm, KEEP, DECAY), rate}
#define SWEPT(norm) {SWEEP, M13(norm, 0)}, {SWEEP, P20(norm, 0)}, {SWEEP, R27(norm, 0, 0)}
static const plan plans[ARMS] = {
    STEPS(R27(NRM_BATCH_NORM, KEEP, DECAY), R27(NRM_NO_NORM, KEEP, DECAY)),
    STEPS(P20(NRM_BATCH_NORM, KEEP), P20(NRM_NO_NORM, KEEP)),
    STEPS(M13(NRM_BATCH_NORM, KEEP), M13(NRM_NO_NORM, KEEP)), R27_TRAINED(NRM_BATCH_NORM, 0.1),
    R27_TRAINED(NRM_BATCH_NORM, 0.003), R27_TRAINED(NRM_BATCH_NORM, 0.0001),
    R27_TRAINED(NRM_NO_NORM, 0.0001), R27_TRAINED(NRM_NO_NORM, 0.003),
    R27_TRAINED(NRM_NO_NORM, 0.1), SWEPT(NRM_NO_NORM), SWEPT(NRM_BATCH_NORM),
    SWEPT(NRM_LAYER_NORM)};

#define STEP_ARMS(net, a, b)                                                                       \
    {"step_" net "_batch", net ", batch norm", a}, {"step_" net "_none", net ", no norm", b}
#define SWEEP_ARMS(id, name, a, b, c)                                                              \
    {"sweep_M13_" id, "M13, " name, a, 3}, {"sweep_P20_" id, "P20, " name, b, 3},                  \
        {"sweep_R27_" id, "R27, " name, c, 3}
static const lab_arm arms[ARMS] = {
    STEP_ARMS("R27", 0.6, 0.5), STEP_ARMS("P20", 1, 1), STEP_ARMS("M13", 0.6, 0.6),
    {"R27_batch_0.1", "batch norm, 0.1", 28, 20}, {"R27_batch_0.003", "batch norm, 0.003", 28, 20},
    {"R27_batch_0.0001", "batch norm, 0.0001", 28, 20},
    {"R27_none_0.0001", "no norm, 0.0001", 26, 20}, {"R27_none_0.003", "no norm, 0.003", 0.1},
    {"R27_none_0.1", "no norm, 0.1", 0.1},
    SWEEP_ARMS("none", "no norm", 20, 28, 25), SWEEP_ARMS("batch", "batch norm", 25, 36, 34),
    SWEEP_ARMS("layer", "layer norm", 25, 36, 34)};
/* clang-format on */

LAB_SETS(train, test, 0, quick ? 100 : 0, DATASET_STD);

typedef struct training {
    training_order order;
    deep_net net;
    size_t step;  /* steps made */
    double first; /* loss       */
    nrm_acc loss;
    int rc;
} training;

static int start(training *t, const lab_run *run)
{
    memset(t, 0, sizeof *t);
    if (training_order_start(&t->order, train.n, BATCH, DATASET_PIXELS, run->seed)) return -1;
    return deep_make(&t->net, &plans[run->arm].net, run->seed);
}

/* Returns 1 after an error. */
static int finish(training *t)
{
    deep_free(&t->net);
    training_order_free(&t->order);
    if (t->rc < 0) fprintf(stderr, "17_learning_rates: %s\n", nrm_strerror(t->rc));
    return t->rc < 0;
}

static void learn(training *t, double rate)
{
    t->rc = deep_train_step(&t->net, (nrm_real)rate, &t->loss, t->order.x, t->order.labels,
                            t->order.count);
}

/* One step. Returns 0 where the run diverges or fails. */
static int step(training *t, double rate)
{
    training_go_on(&t->order, &train, 1);
    learn(t, rate);
    if (t->step == 0) t->first = (double)t->loss;
    if (t->rc != NRM_OK || !((double)t->loss <= TOO_LARGE * t->first)) return 0;
    t->step++;
    return 1;
}

/* ---- the sweep ------------------------------------------------------------------------------- */

static int sweep_rate(lab_run *run, double rate)
{
    const size_t steps = run->quick ? 2 : 600, window = run->quick ? 1 : 50;
    double tail = 0;
    nrm_acc accuracy = 0.1; /* chance */
    training t;
    int whole;
    if (start(&t, run)) return -1;
    while (t.step < steps && step(&t, rate))
        if (t.step + window > steps) tail += (double)t.loss / (double)window;
    whole = t.step == steps;
    if (whole) t.rc = deep_eval(&t.net, NULL, &accuracy, test.x, test.labels, test.n);
    lab_record(run, "accuracy", rate, (double)accuracy);
    lab_record(run, "loss", rate, whole ? tail : (double)NAN);
    lab_record(run, "diverged", rate, whole ? (double)NAN : (double)t.step);
    return finish(&t);
}

static int run_sweep(lab_run *run)
{
    size_t i;
    int failed = 0;
    for (i = 0; i < RATES && !failed; i += run->quick ? 3 : 1) {
        failed = sweep_rate(run, rate_of[i]);
        lab_progress(run, (double)(i + 1) / RATES);
    }
    return failed;
}

/* ---- the schedule ---------------------------------------------------------------------------- */

static double scheduled(double rate, size_t step, size_t steps)
{
    if (4 * step >= 3 * steps) return rate / 100;
    return 2 * step >= steps ? rate / 10 : rate;
}

static double batch_accuracy(const training *t)
{
    nrm_acc value = 0;
    (void)nrm_accuracy(&value, deep_prob(&t->net), t->order.labels, t->order.count, DEEP_CLASSES);
    return (double)value;
}

static int run_schedule(lab_run *run)
{
    const size_t epochs = 10, steps = run->quick ? MARKS : epochs * training_steps(train.n, BATCH);
    const double rate = plans[run->arm].rate;
    double right = 0;
    size_t since = 0, mark = 0;
    nrm_acc tested = 0;
    training t;
    if (start(&t, run)) return -1;
    while (t.rc >= 0 && t.step < steps && step(&t, scheduled(rate, t.step, steps))) {
        const double percent = 100.0 * (double)(mark + 1) / MARKS;
        right += batch_accuracy(&t);
        since++;
        if (t.step * MARKS / steps == mark) continue;
        mark++;
        t.rc = deep_eval(&t.net, NULL, &tested, test.x, test.labels, test.n);
        lab_record(run, "train", percent, right / (double)since);
        lab_record(run, "test", percent, (double)tested);
        right = 0;
        since = 0;
        lab_progress(run, (double)t.step / (double)steps);
    }
    lab_record(run, "diverged", rate, t.step < steps ? (double)t.step : (double)NAN);
    return finish(&t);
}

/* ---- a step along the gradient --------------------------------------------------------------- */

static double size_of(size_t i)
{
    return pow(10, -6 + 7 * (double)i / (SIZES - 1));
}

/* The relative loss at 41 step sizes; parameters are put back. */
static int probe_step(lab_run *run, training *t, int minibatch)
{
    deep_net *net = &t->net;
    const training_order *order = &t->order;
    const size_t n = net->n_params;
    nrm_real *kept = (nrm_real *)malloc(2 * n * sizeof *kept), *g;
    nrm_acc before = 0, after = 0;
    size_t i, k;
    int rc;
    if (!kept) return NRM_ENULL;
    g = kept + n;
    rc = deep_gradient(net, &before, order->x, order->labels, order->count);
    memcpy(kept, net->params, n * sizeof *kept);
    memcpy(g, net->grads, n * sizeof *g);
    for (i = 0; i < SIZES && rc >= 0; i += run->quick ? 4 : 1) {
        const nrm_real size = (nrm_real)size_of(i);
        double ratio;
        for (k = 0; k < n; k++) net->params[k] = kept[k] - size * g[k];
        rc = deep_gradient(net, &after, order->x, order->labels, order->count);
        ratio = (double)after / (double)before;
        if (!(ratio < CAPPED) || rc > 0) ratio = CAPPED;
        lab_record_as(run, size_of(i), ratio, "ratio%d", minibatch);
    }
    memcpy(net->params, kept, n * sizeof *kept);
    free(kept);
    return rc < 0 ? rc : NRM_OK;
}

/* Seven steps of training, with or without a look along the gradient. */
static int train_and_probe(lab_run *run, training *t, int probed)
{
    int minibatch;
    if (start(t, run)) return -1;
    for (minibatch = 1; minibatch <= MINIBATCHES && t->rc == NRM_OK; minibatch++) {
        training_go_on(&t->order, &train, 1);
        if (probed && minibatch % 3 == 1) t->rc = probe_step(run, t, minibatch);
        if (t->rc == NRM_OK) learn(t, plans[run->arm].rate);
    }
    return 0;
}

/* Weights, and with what batch norm runs along the loss. */
static int same_bits(training *a, training *b)
{
    const training_order *order = &a->order;
    nrm_acc loss[2] = {0, 1};
    (void)deep_eval(&a->net, &loss[0], NULL, order->x, order->labels, order->count);
    (void)deep_eval(&b->net, &loss[1], NULL, order->x, order->labels, order->count);
    return memcmp(a->net.params, b->net.params, a->net.n_params * sizeof *a->net.params) == 0 &&
           memcmp(&loss[0], &loss[1], sizeof *loss) == 0;
}

static int run_step(lab_run *run)
{
    training t, again;
    if (train_and_probe(run, &t, 1)) return -1;
    if (run->quick) {
        if (train_and_probe(run, &again, 0)) return -1;
        lab_record(run, "same_bits", 0, same_bits(&t, &again));
        if (finish(&again)) return -1;
    }
    return finish(&t);
}

static int run(lab_run *run)
{
    static int (*const part[])(lab_run *) = {run_sweep, run_schedule, run_step};
    return part[plans[run->arm].what](run);
}

/* ---- claims ---------------------------------------------------------------------------------- */

#define SWEPT_ARM(net, norm) (SWEEPS + 3 * (norm) + (net))

/* Decades on which the accuracy is above 0.9. */
static double width_of(const lab_report *r, size_t arm, size_t seed)
{
    return lab_decades_above(r, arm, seed, "accuracy", ENOUGH, 0, HUGE_VAL);
}

/* log10 of the largest rate that reaches 0.9, or of the smallest of all. */
static double log_largest(const lab_report *r, size_t arm, size_t seed)
{
    const lab_series accuracy = lab_get(r, arm, seed, "accuracy");
    double found = accuracy.n > 0 ? accuracy.x[0] : (double)NAN;
    size_t i;
    for (i = 0; i < accuracy.n; i++) {
        if (accuracy.y[i] > ENOUGH) found = accuracy.x[i];
        if (isnan(accuracy.y[i])) return (double)NAN;
    }
    return log10(found);
}

static void judge_largest(lab_report *r, const lab_claim *c)
{
    lab_numbers a[3];
    double mean[3], times, width;
    size_t norm;
    for (norm = 0; norm < 3; norm++) {
        a[norm] = lab_each(r, SWEPT_ARM(c->a, norm), log_largest);
        mean[norm] = lab_describe(a[norm]).mean;
    }
    times = pow(10, mean[1] - mean[0]);
    width = lab_average(lab_each(r, SWEPT_ARM(c->a, 0), width_of));
    lab_verdict(r, c, lab_more(a[1], a[0], times >= 2.99), "",
                "%.3g with batch norm, %.3g without%s: %.0f times (layer norm %.3g)",
                pow(10, mean[1]), pow(10, mean[0]),
                width > 0 ? "" : " (which stands for none at all)", times, pow(10, mean[2]));
}

static void judge_equal(lab_report *r, const lab_claim *c)
{
    const lab_numbers with = lab_all(r, B_LOW, "test", 100), none = lab_all(r, N_LOW, "test", 100);
    const lab_numbers off = lab_calc(with, '-', none);
    lab_verdict(r, c, lab_within(off, 0, 0.02), "", "%s with, %s without batch norm: %+.2f points",
                lab_pm(r, with, 4), lab_pm(r, none, 4), 100 * lab_describe(off).mean);
}

static unsigned long diverged_seeds(const lab_report *r, size_t arm, double rate)
{
    unsigned long n = 0;
    size_t s;
    for (s = 0; s < lab_seeds(r, arm); s++) n += lab_at(r, arm, s, "diverged", rate) >= 0;
    return n;
}

static void judge_divergence(lab_report *r, const lab_claim *c)
{
    const unsigned long n = (unsigned long)lab_seeds(r, N_HIGH);
    const unsigned long high = diverged_seeds(r, N_HIGH, 0.1);
    const unsigned long middle = diverged_seeds(r, N_MIDDLE, 0.003);
    const stats_finding part[2] = {stats_holds(stats_most(high, n)),
                                   stats_holds(stats_most(middle, n))};
    lab_verdict(r, c, stats_together(part, 2), "",
                "%lu and %lu of %lu seeds at 0.1 and 0.003; with batch norm %lu at 0.1", high,
                middle, n, diverged_seeds(r, B_HIGH, 0.1));
}

static const char *const ratio_name[3] = {"ratio1", "ratio4", "ratio7"}; /* of mini-batches */

/* The smallest step whose relative loss is above `level`; 10 if there is none. */
static double first_above(const lab_report *r, size_t arm, size_t seed, size_t m, double level)
{
    const lab_series ratio = lab_get(r, arm, seed, ratio_name[m]);
    size_t i;
    for (i = 0; i < ratio.n; i++)
        if (!(ratio.y[i] <= level)) return ratio.x[i]; /* nan is above */
    return ratio.n > 0 ? 10 : (double)NAN;
}

/* Of each seed the median over mini-batches, in log10; returns the median over all. */
static double medians(const lab_report *r, size_t arm, double level, lab_numbers *of_seed)
{
    double all[3 * LAB_SEEDS_MAX], one[3];
    size_t s, m, n = lab_seeds(r, arm);
    for (s = 0; s < n; s++) {
        for (m = 0; m < 3; m++) one[m] = all[3 * s + m] = log10(first_above(r, arm, s, m, level));
        of_seed->of[s] = stats_median(one, 3);
    }
    of_seed->n = n;
    return pow(10, stats_median(all, 3 * n));
}

static void judge_rise(lab_report *r, const lab_claim *c)
{
    lab_numbers a, b;
    const double with = medians(r, c->a, 1.05, &a), without = medians(r, c->b, 1.05, &b);
    lab_verdict(r, c, lab_more(a, b, with >= 9.99 * without), "",
                "%.2g with, %.2g without batch norm: %.3g times", with, without, with / without);
}

/* log10 of the largest relative loss at step sizes up to 1; nan if one is missing or nan. */
static double log_largest_ratio(const lab_report *r, size_t arm, size_t seed)
{
    double most = 0;
    size_t i, m;
    for (m = 0; m < 3; m++) {
        const lab_series ratio = lab_get(r, arm, seed, ratio_name[m]);
        if (ratio.n == 0) return (double)NAN;
        for (i = 0; i < ratio.n && ratio.x[i] <= 1.0001; i++) most = stats_larger(most, ratio.y[i]);
    }
    return log10(most);
}

static void judge_explosion(lab_report *r, const lab_claim *c)
{
    lab_numbers of_seed;
    double first[LAB_SEEDS_MAX];
    const double at = medians(r, RS_NONE, TOO_LARGE, &of_seed);
    size_t s;
    for (s = 0; s < of_seed.n; s++) first[s] = first_above(r, RS_NONE, s, 0, TOO_LARGE);
    lab_verdict(r, c, lab_below(of_seed, -2), "",
                "above 1000 from a step size of %.2g on (mini-batch 1: %.2g)", at,
                stats_median(first, of_seed.n));
}

#define BJORCK "Bjorck et al. 2018, "
#define NOTES "Chinese notes on batch norm, among the listed results"
#define WIDER "a wider range of learning rates, without numbers"
#define WIDTH                                                                                      \
    "decades of rates with test accuracy above 0.9 (interpolated in log rate): at least 0.5 more "
#define LARGEST                                                                                    \
    "largest rate of the grid with test accuracy above 0.9, geometric mean over seeds: at least "  \
    "3 times that without norm (0.0001 stands for none)"

#define WIDER_BY(net)                                                                              \
    LAB_PARTS({LAB_MORE, SWEPT_ARM(net, 1), SWEPT_ARM(net, 0), .each = width_of, .limit = 0.5},    \
              {.a = SWEPT_ARM(net, 2), .each = width_of}),                                         \
        .decimals = 2, .say = "$1 decades with batch norm, $2 without (layer norm #3)"
#define ORDER(more, less, percent)                                                                 \
    .test = LAB_MORE, .a = more, .b = less, .series = "test", .at = percent, .decimals = 4

/* clang-format off */
static const lab_claim claims[] = {
    {"17a", "M13: batch norm widens the range of learning rates that work", NOTES, WIDER,
     WIDTH "than without norm",
     "trial runs (1 seed): above 0.9 only at 0.1 without; from 0.01 to 3 with batch norm",
     WIDER_BY(M13_NET)},
    {"17b", "P20: batch norm widens the range of learning rates that work", NOTES, WIDER,
     WIDTH "than without norm", "trial runs (1 seed): 0.85 to 0.93 from 0.003 to 0.1 without; 0.91 "
     "to 0.94 from 0.03 to 1 with batch norm", WIDER_BY(P20_NET)},
    {"17c", "R27: batch norm widens the range of learning rates that work", NOTES, WIDER,
     WIDTH "than without norm", "none", WIDER_BY(R27_NET)},
    {"17d", "M13: with batch norm larger learning rates work", NOTES, WIDER, LARGEST,
     "trial runs (1 seed): 0.1 without, 3 with batch norm", .judge = judge_largest, .a = M13_NET},
    {"17e", "P20: with batch norm larger learning rates work", NOTES, WIDER, LARGEST,
     "trial runs (1 seed): 0.1 without, 1 with batch norm", .judge = judge_largest, .a = P20_NET},
    {"17f", "R27: with batch norm larger learning rates work", BJORCK "Fig. 1",
     "0.1 with, 0.0001 without batch norm", LARGEST, "none", .judge = judge_largest, .a = R27_NET},
    {"17g", "R27: with batch norm the rate 0.1 ends more accurate than 0.003", BJORCK "Fig. 1",
     "93 % against 90.5 % (CIFAR-10)", "higher test accuracy at the end", "none",
     ORDER(B_HIGH, B_MIDDLE, 100)},
    {"17h", "R27: with batch norm the rate 0.003 ends more accurate than 0.0001", BJORCK "Fig. 1",
     "90.5 % against 81 % (CIFAR-10)", "higher test accuracy at the end", "none",
     ORDER(B_MIDDLE, B_LOW, 100)},
    {"17i", "R27: at the rate 0.0001 both networks are comparable", BJORCK "Fig. 1",
     "81 % with, 82 % without batch norm (CIFAR-10)",
     "test accuracies at the end differ by less than 2 points", "none", .judge = judge_equal},
    {"17j", "R27: without batch norm the rates 0.1 and 0.003 diverge",
     BJORCK "Fig. 1, text of the caption", "diverge (not shown there)",
     "at least 80 % of the seeds diverge, at each rate", "none", .judge = judge_divergence},
    {"17k", "R27: the large rate that batch norm allows learns faster", BJORCK "Fig. 1; " NOTES,
     "0.1 with batch norm is ahead from the start",
     "test accuracy at 10 % of the training: higher with batch norm at 0.1 than without at 0.0001",
     "none", ORDER(B_HIGH, N_LOW, 10)},
    {"17l", "R27: along the gradient far larger steps do no harm with batch norm", BJORCK "Fig. 3",
     "minimum at 0.02 to 0.1 with, rise within 0.001 without batch norm", "smallest step that "
     "makes the loss 1.05 times larger, median over seeds and mini-batches 1, 4, 7 (10, the "
     "largest one, stands for none): at least 10 times larger with batch norm",
     "trial runs (1 seed, mini-batch 1): 0.1 with, 0.001 without batch norm", .judge = judge_rise,
     .a = RS_BATCH, .b = RS_NONE},
    {"17m", "R27: with batch norm no step up to 1 makes the loss explode", BJORCK "Fig. 3",
     "stays near 1", "no relative loss above 1000 at step sizes up to 1, in any seed or mini-batch",
     "trial runs (1 seed): never above 1000", .test = LAB_BELOW, .a = RS_BATCH,
     .each = log_largest_ratio, .limit = 3,
     .say = "largest relative loss with batch norm, step sizes up to 1: #1[max 10^%.3g]"},
    {"17n", "R27: without batch norm steps of 0.01 make the loss explode", BJORCK "Fig. 3",
     "1e6 at step sizes of 0.003 to 0.008", "smallest step with a relative loss above 1000: at "
     "most 0.01 in the median over seeds and mini-batches, judged seed by seed",
     "trial runs (1 seed, mini-batch 1): 0.0056", .judge = judge_explosion},
    {"17o", "The same as 17l for a plain network, P20",
     "ours; carried over to plain networks from " BJORCK "Fig. 3", "not in the paper", "as 17l",
     "trial runs (1 seed): 0.03 with, 0.32 without batch norm; expected to fail",
     .judge = judge_rise, .a = PS_BATCH, .b = PS_NONE},
    {"17p", "The same as 17l for a plain network, M13",
     "ours; carried over to plain networks from " BJORCK "Fig. 3", "not in the paper", "as 17l",
     "none; expected to fail", .judge = judge_rise, .a = MS_BATCH, .b = MS_NONE}};
/* clang-format on */

/* ---- figures --------------------------------------------------------------------------------- */

static plot_style look_of(size_t arm)
{
    static const plot_style trained[ARMS] = {[B_HIGH] = {PLOT_BLUE},
                                             [B_MIDDLE] = {PLOT_SKY, .dash = PLOT_DASHDOT},
                                             [B_LOW] = {PLOT_INK, .dash = PLOT_DOTTED},
                                             [N_LOW] = {PLOT_VERMILLION, .dash = PLOT_DASHED}};
    static const char *const norm[3] = {"none", "batch", "layer"};
    static const int marker[3] = {PLOT_SQUARE, PLOT_CIRCLE, PLOT_TRIANGLE};
    plot_style swept;
    if (arm < SWEEPS) return trained[arm];
    swept = plot_with_marker(lab_style(norm[(arm - SWEEPS) / 3]), marker[(arm - SWEEPS) / 3]);
    swept.size = 0.8;
    return swept;
}

/* Of the network panel->arm, crosses where a run has diverged: for each norm one at each rate at
   which any seed did. */
static void draw_diverged(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    size_t norm, i;
    for (norm = 0; norm < 3; norm++) {
        const size_t arm = SWEPT_ARM(panel->arm, norm);
        plot_style look = look_of(arm);
        double at[RATES];
        for (i = 0; i < RATES; i++)
            at[i] =
                diverged_seeds(r, arm, rate_of[i]) > 0 ? 0.04 - 0.04 * (double)norm : (double)NAN;
        look.marker = PLOT_CROSS;
        plot_scatter(p, NULL, rate_of, at, RATES, look);
    }
}

/* Of each seed, without a norm, panel->arm, and with batch norm. Shaded: what can be read off the
   paper: where 1e6 is reached without, where the minimum is with batch norm. */
static void draw_relative(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    const size_t arm[2] = {panel->arm, panel->other};
    int batch;
    plot_hline(p, 1, NULL, plot_thin(PLOT_GREY));
    for (batch = 0; batch < 2; batch++) {
        plot_style look = lab_style(batch ? "batch" : "none");
        if (panel->arm == RS_NONE)
            plot_span_x(p, batch ? 0.02 : 3e-3, batch ? 0.1 : 8e-3,
                        (plot_style){look.color, .alpha = 0.18});
        look.width = 0.7;
        look.alpha = 0.8;
        lab_plot_seeds(r, p, arm[batch], panel->series, batch ? "batch norm" : "no norm", look);
    }
}

/* clang-format off */
#define RATE .x = "learning rate", .x_scale = PLOT_LOG10, .x_range = {6e-5, 16}
#define OF_NORMS(net, of)                                                                          \
    .line = {{SWEPT_ARM(net, 0), of, "no norm"}, {SWEPT_ARM(net, 1), of, "batch norm"},            \
             {SWEPT_ARM(net, 2), of, "layer norm"}}
#define ACCURACY(net, title, note)                                                                 \
    {.axes = {.col = net, .heading = title, RATE, .y = "test accuracy", .y_range = {-0.07, 1.02},  \
              .legend = PLOT_LEGEND_NONE}, OF_NORMS(net, "accuracy"),                              \
     .under = {{LAB_HLINE, .y = ENOUGH, .text = "", .dash = PLOT_DOTTED},                          \
               {LAB_NOTE, 8e-5, ENOUGH, note, PLOT_LEFT + PLOT_ABOVE}},                            \
     .draw = draw_diverged, .arm = net}
#define LOSS(net, where)                                                                           \
    {.axes = {.row = 1, .col = net, RATE, .y = "training loss, last 50 steps",                     \
              .y_scale = PLOT_LOG10, .y_range = {0.05, 5}, .legend = where}, OF_NORMS(net, "loss")}
static const lab_panel sweep_panels[] = {
    ACCURACY(M13_NET, "M13: plain, 13 layers, Glorot", "0.9"),
    ACCURACY(P20_NET, "P20: plain, 20 layers, He", NULL),
    ACCURACY(R27_NET, "R27: residual, 27 blocks", NULL),
    LOSS(M13_NET, PLOT_LEGEND_BOTTOM_LEFT),
    LOSS(P20_NET, PLOT_LEGEND_NONE),
    LOSS(R27_NET, PLOT_LEGEND_NONE)};

#define TRAINED(column, title, of, where)                                                          \
    {.axes = {.col = column, .heading = title, .x = "% of training", .x_range = {0, 100},          \
              .y = "accuracy", .y_range = {0.5, 1.005}, .legend = where},                          \
     .line = {{B_HIGH, of, .to = N_LOW}},                                                          \
     .under = {{LAB_VLINE, 50, .text = "", .color = PLOT_GREY},                                    \
               {LAB_VLINE, 75, .text = "", .color = PLOT_GREY}}}
static const lab_panel schedule_panels[] = {
    TRAINED(0, "Training accuracy", "train", PLOT_LEGEND_NONE),
    TRAINED(1, "Test accuracy", "test", PLOT_LEGEND_BOTTOM_RIGHT)};

#define ALONG(down, right, batch, title, first, second)                                            \
    {.axes = {.row = down, .col = right, .heading = title ", mini-batch " #batch,                  \
              .x = "step size", .x_scale = PLOT_LOG10, .x_range = {1e-6, 10},                      \
              .y = "relative loss", .y_scale = PLOT_LOG10, .y_range = {1e-2, 1e6}},                \
     .draw = draw_relative, .series = "ratio" #batch, .arm = first, .other = second}
#define ALONG_ROW(down, batch)                                                                     \
    ALONG(down, 0, batch, "R27", RS_NONE, RS_BATCH), /* the paper's figure */                      \
    ALONG(down, 1, batch, "P20, plain", PS_NONE, PS_BATCH),                                        \
    ALONG(down, 2, batch, "M13, plain", MS_NONE, MS_BATCH)
static const lab_panel step_panels[] = {ALONG_ROW(0, 1), ALONG_ROW(1, 7)};

static const lab_page pages[] = {
    {"With batch norm larger learning rates work (600 steps of SGD; crosses: diverged)",
     .height = 1200, .scale = 0.85, .seeds = 3, LAB_PANELS(sweep_panels),
     .settings = "600 steps of plain SGD, batch 128, standardized pixels; 0.9: what counts as "
                 "working; crosses: diverged"},
    {"R27: only with batch norm does a large learning rate work", "schedule", 840, .seeds = 20,
     LAB_PANELS(schedule_panels),
     .settings = "R27: 784-64, 27 residual blocks of 2 layers, 10; SGD with momentum 0.9, the "
                 "rate divided by 10 at 50 and 75 % of the steps"},
    {"R27, P20: without batch norm a smaller step raises the loss; M13: it does not", "step", 1200,
     .scale = 0.85, .seeds = 5, .shared_legend = 1, LAB_PANELS(step_panels),
     .settings = "Loss of a mini-batch after a step of this size along its gradient, over that "
                 "before; shaded: read off the paper"}};
/* clang-format on */

/* ---- checks ---------------------------------------------------------------------------------- */

static void check_schedule(lab_report *r)
{
    const int right = scheduled(1, 2344, 4690) > 0.99 && scheduled(1, 2345, 4690) < 0.11 &&
                      scheduled(1, 3517, 4690) > 0.09 && scheduled(1, 3518, 4690) < 0.011;
    lab_check(r, right, "the rate drops at 50 and 75 % of 4690 steps", "%s",
              right ? "at steps 2345 and 3518" : "elsewhere");
}

LAB_PROGRAM("17_learning_rates",
            "Does batch norm allow larger learning rates, and is that what it is good for?",
            "Batch 128, standardized pixels, float. Sweep: plain SGD, 600 steps, 3 seeds. Schedule "
            "and step: momentum 0.9, 5 seeds. R27: 784-64, 27 residual blocks of 2 layers, 10",
            .revision = 1, .uses = LAB_USES_DATA + LAB_TWICE, .prepare = prepare, .look = look_of,
            .after = check_schedule)
