/* 17_learning_rates: does batch norm allow larger learning rates, and is that what it is good for?

   Bjorck, Gomes, Selman and Weinberger ("Understanding Batch Normalization", 2018) say: at the
   same small learning rate a residual network of 110 layers does as well without batch norm as
   with it; but with batch norm it can be trained with learning rates 1000 times larger, and
   those end up more accurate (Fig. 1). Without batch norm a step along the gradient makes the
   loss explode at step sizes where with batch norm nothing happens (Fig. 3). Three experiments,
   in float:

   Sweep. Networks M13 (784-100×13-10, ReLU, uniform Glorot), P20 (784-100×20-10, ReLU, He) and
   R27 (784-64, 27 residual blocks of two layers of 64, 10; normal Glorot; residual.h), each
   without norm, with batch norm and with layer norm; learning rates 1e-4 ... 10; 600 steps of
   plain SGD, batch 128, standardized pixels, 3 seeds. A run diverges if its loss is not finite
   or above 1000 times its first one; it then counts as accuracy 0.1. Width: the decades of
   learning rates with a test accuracy above 0.9, with accuracy interpolated linearly in the
   logarithm of the rate.

   Schedule. R27 with batch norm at 0.1, 0.003 and 0.0001, and without norm at 0.0001; 10 epochs,
   SGD with momentum 0.9 and weight decay 5e-4 (on all parameters, γ and β too), batch 128, rate
   divided by 10 at 50 % and again at 75 %; 5 seeds. And R27 without norm at 0.1 and 0.003.

   Step. R27, P20 and M13, trained as above at 0.1 with batch norm and 0.0001 without (momentum
   0.9; weight decay for R27). At mini-batches 1, 4 and 7: the loss of the same batch after a
   step of size α along its gradient, over the loss before; 41 sizes from 1e-6 to 10; batch norm
   in train mode; 5 seeds. What is not finite is taken for infinite; figures end at 1e6.

   What counts as reproduced was written down before the run (claims below). */
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

#define M13(norm, keep)                                                                            \
    {                                                                                              \
        DEEP_PLAIN, norm, 0, 13, keep, 0                                                           \
    }
#define P20(norm, keep)                                                                            \
    {                                                                                              \
        DEEP_PLAIN, norm, 1, 20, keep, 0                                                           \
    }
#define R27(norm, keep, decay)                                                                     \
    {                                                                                              \
        DEEP_RESIDUAL, norm, 0, 27, keep, decay                                                    \
    }

enum { /* sweeps: norm by norm, of each the networks M13, P20, R27 */
       RS_BATCH,
       RS_NONE,
       PS_BATCH,
       PS_NONE,
       MS_BATCH,
       MS_NONE,
       B_HIGH,
       B_MIDDLE,
       B_LOW,
       N_LOW,
       N_MIDDLE,
       N_HIGH,
       SWEEPS,
       ARMS = SWEEPS + 9
};

static const plan plans[ARMS] = {{STEP, R27(NRM_BATCH_NORM, KEEP, DECAY), 0.1},
                                 {STEP, R27(NRM_NO_NORM, KEEP, DECAY), 0.0001},
                                 {STEP, P20(NRM_BATCH_NORM, KEEP), 0.1},
                                 {STEP, P20(NRM_NO_NORM, KEEP), 0.0001},
                                 {STEP, M13(NRM_BATCH_NORM, KEEP), 0.1},
                                 {STEP, M13(NRM_NO_NORM, KEEP), 0.0001},
                                 {SCHEDULE, R27(NRM_BATCH_NORM, KEEP, DECAY), 0.1},
                                 {SCHEDULE, R27(NRM_BATCH_NORM, KEEP, DECAY), 0.003},
                                 {SCHEDULE, R27(NRM_BATCH_NORM, KEEP, DECAY), 0.0001},
                                 {SCHEDULE, R27(NRM_NO_NORM, KEEP, DECAY), 0.0001},
                                 {SCHEDULE, R27(NRM_NO_NORM, KEEP, DECAY), 0.003},
                                 {SCHEDULE, R27(NRM_NO_NORM, KEEP, DECAY), 0.1},
                                 {SWEEP, M13(NRM_NO_NORM, 0), 0},
                                 {SWEEP, P20(NRM_NO_NORM, 0), 0},
                                 {SWEEP, R27(NRM_NO_NORM, 0, 0), 0},
                                 {SWEEP, M13(NRM_BATCH_NORM, 0), 0},
                                 {SWEEP, P20(NRM_BATCH_NORM, 0), 0},
                                 {SWEEP, R27(NRM_BATCH_NORM, 0, 0), 0},
                                 {SWEEP, M13(NRM_LAYER_NORM, 0), 0},
                                 {SWEEP, P20(NRM_LAYER_NORM, 0), 0},
                                 {SWEEP, R27(NRM_LAYER_NORM, 0, 0), 0}};

static const lab_arm arms[ARMS] = {{"step_R27_batch", "R27, batch norm", 0.6, 0},
                                   {"step_R27_none", "R27, no norm", 0.5, 0},
                                   {"step_P20_batch", "P20, batch norm", 1, 0},
                                   {"step_P20_none", "P20, no norm", 1, 0},
                                   {"step_M13_batch", "M13, batch norm", 0.6, 0},
                                   {"step_M13_none", "M13, no norm", 0.6, 0},
                                   {"R27_batch_0.1", "batch norm, 0.1", 28, 0},
                                   {"R27_batch_0.003", "batch norm, 0.003", 28, 0},
                                   {"R27_batch_0.0001", "batch norm, 0.0001", 28, 0},
                                   {"R27_none_0.0001", "no norm, 0.0001", 26, 0},
                                   {"R27_none_0.003", "no norm, 0.003", 0.1, 0},
                                   {"R27_none_0.1", "no norm, 0.1", 0.1, 0},
                                   {"sweep_M13_none", "M13, no norm", 20, 3},
                                   {"sweep_P20_none", "P20, no norm", 28, 3},
                                   {"sweep_R27_none", "R27, no norm", 25, 3},
                                   {"sweep_M13_batch", "M13, batch norm", 25, 3},
                                   {"sweep_P20_batch", "P20, batch norm", 36, 3},
                                   {"sweep_R27_batch", "R27, batch norm", 34, 3},
                                   {"sweep_M13_layer", "M13, layer norm", 25, 3},
                                   {"sweep_P20_layer", "P20, layer norm", 36, 3},
                                   {"sweep_R27_layer", "R27, layer norm", 34, 3}};

static training_set train, test;

static int prepare(const dataset *data, int quick)
{
    return training_load(&train, &test, data, 0, quick ? 100 : 0, DATASET_STD);
}

static int start(const lab_run *run, deep_net *net, training_order *order)
{
    if (training_order_start(order, train.n, BATCH, DATASET_PIXELS, run->seed)) return -1;
    if (deep_make(net, &plans[run->arm].net, run->seed)) {
        training_order_free(order);
        return -1;
    }
    return 0;
}

static int is_diverged(int rc, double loss, double first)
{
    return rc == NRM_NONFINITE || !(loss <= TOO_LARGE * first);
}

static int complain(int rc)
{
    if (rc < 0) fprintf(stderr, "17_learning_rates: %s\n", nrm_strerror(rc));
    return rc < 0;
}

/* ---- the sweep ------------------------------------------------------------------------------- */

static int sweep_rate(lab_run *run, size_t which)
{
    const size_t steps = run->quick ? 2 : 600, window = run->quick ? 1 : 50;
    const double rate = rate_of[which];
    double first = 0, tail = 0, diverged = (double)NAN;
    training_order order;
    deep_net net;
    nrm_acc value = 0;
    size_t step;
    int rc = NRM_OK;
    if (start(run, &net, &order)) return -1;
    for (step = 0; step < steps && rc >= 0; step++) {
        training_go_on(&order, &train, 1);
        rc = deep_train_step(&net, (nrm_real)rate, &value, order.x, order.labels, order.count);
        if (step == 0) first = (double)value;
        if (is_diverged(rc, (double)value, first)) break;
        if (step + window >= steps) tail += (double)value / (double)window;
    }
    if (step < steps) diverged = (double)step;
    value = 0.1; /* chance */
    if (rc >= 0 && step == steps) rc = deep_eval(&net, NULL, &value, test.x, test.labels, test.n);
    lab_record(run, "accuracy", rate, (double)value);
    lab_record(run, "loss", rate, step == steps ? tail : (double)NAN);
    lab_record(run, "diverged", rate, diverged);
    deep_free(&net);
    training_order_free(&order);
    return complain(rc);
}

static int run_sweep(lab_run *run)
{
    size_t i;
    int failed = 0;
    for (i = 0; i < RATES && !failed; i += run->quick ? 3 : 1) {
        failed = sweep_rate(run, i);
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

static double batch_accuracy(const deep_net *net, const training_order *order)
{
    nrm_acc value = 0;
    (void)nrm_accuracy(&value, deep_prob(net), order->labels, order->count, DEEP_CLASSES);
    return (double)value;
}

static int run_schedule(lab_run *run)
{
    const size_t epochs = 10, steps = run->quick ? MARKS : epochs * training_steps(train.n, BATCH);
    const double rate = plans[run->arm].rate;
    double first = 0, right = 0, losses = 0, diverged = (double)NAN;
    training_order order;
    deep_net net;
    nrm_acc value = 0;
    size_t step, since = 0, mark = 0;
    int rc = NRM_OK;
    if (start(run, &net, &order)) return -1;
    for (step = 0; step < steps && rc >= 0; step++) {
        training_go_on(&order, &train, 1);
        rc = deep_train_step(&net, (nrm_real)scheduled(rate, step, steps), &value, order.x,
                             order.labels, order.count);
        if (step == 0) first = (double)value;
        if (is_diverged(rc, (double)value, first)) break;
        right += batch_accuracy(&net, &order);
        losses += (double)value;
        since++;
        if ((step + 1) * MARKS / steps == mark) continue;
        mark = (step + 1) * MARKS / steps;
        rc = deep_eval(&net, NULL, &value, test.x, test.labels, test.n);
        lab_record(run, "train", 100.0 * (double)mark / MARKS, right / (double)since);
        lab_record(run, "train_loss", 100.0 * (double)mark / MARKS, losses / (double)since);
        lab_record(run, "test", 100.0 * (double)mark / MARKS, (double)value);
        right = losses = 0;
        since = 0;
        lab_progress(run, (double)step / (double)steps);
    }
    if (step < steps) diverged = (double)step;
    lab_record(run, "diverged", rate, diverged);
    deep_free(&net);
    training_order_free(&order);
    return complain(rc);
}

/* ---- a step along the gradient --------------------------------------------------------------- */

static double size_of(size_t i)
{
    return pow(10, -6 + 7 * (double)i / (SIZES - 1));
}

/* The relative loss at 41 step sizes; parameters are put back. */
static int probe_step(lab_run *run, deep_net *net, const training_order *order, int minibatch,
                      nrm_real *kept)
{
    nrm_real *g = kept + net->n_params;
    const size_t bytes = net->n_params * sizeof *kept;
    nrm_acc before = 0, after = 0;
    size_t i, k;
    int rc = deep_gradient(net, &before, order->x, order->labels, order->count);
    memcpy(kept, net->params, bytes);
    memcpy(g, net->grads, bytes);
    for (i = 0; i < SIZES && rc >= 0; i += run->quick ? 4 : 1) {
        const nrm_real size = (nrm_real)size_of(i);
        double ratio;
        for (k = 0; k < net->n_params; k++) net->params[k] = kept[k] - size * g[k];
        rc = deep_gradient(net, &after, order->x, order->labels, order->count);
        ratio = (double)after / (double)before;
        if (!(ratio < CAPPED) || rc > 0) ratio = CAPPED;
        lab_record_as(run, size_of(i), ratio, "ratio%d", minibatch);
    }
    memcpy(net->params, kept, bytes);
    return rc < 0 ? rc : NRM_OK;
}

/* Seven steps of training, with or without a look along the gradient. */
static int train_and_probe(lab_run *run, deep_net *net, training_order *order, nrm_real *kept)
{
    int minibatch, rc = NRM_OK;
    for (minibatch = 1; minibatch <= MINIBATCHES && rc == NRM_OK; minibatch++) {
        training_go_on(order, &train, 1);
        if (kept && minibatch % 3 == 1) rc = probe_step(run, net, order, minibatch, kept);
        if (rc == NRM_OK)
            rc = deep_train_step(net, (nrm_real)plans[run->arm].rate, NULL, order->x, order->labels,
                                 order->count);
    }
    return rc;
}

/* Weights and what batch norm runs along. */
static int same_bits(const deep_net *a, const deep_net *b)
{
    const size_t size = DEEP_RESIDUAL_WIDTH * sizeof(nrm_real);
    size_t l;
    int same;
    if (a->spec.kind == DEEP_PLAIN) return training_same_bits(a->plain, b->plain);
    same = memcmp(a->params, b->params, a->n_params * sizeof *a->params) == 0;
    for (l = 0; l + 1 < a->layers && a->spec.norm == NRM_BATCH_NORM; l++) {
        const nrm_running *ra = &a->residual.layer[l].running, *rb = &b->residual.layer[l].running;
        same = same && memcmp(ra->mean, rb->mean, size) == 0;
        same = same && memcmp(ra->var, rb->var, size) == 0;
    }
    return same;
}

static int run_step(lab_run *run)
{
    training_order order, again;
    deep_net net, other;
    nrm_real *kept;
    int rc;
    if (start(run, &net, &order)) return -1;
    if (start(run, &other, &again)) return -1;
    kept = (nrm_real *)malloc(2 * net.n_params * sizeof *kept);
    rc = kept ? train_and_probe(run, &net, &order, kept) : -1;
    if (rc >= 0) rc = train_and_probe(run, &other, &again, NULL);
    lab_record(run, "same_bits", 0, same_bits(&net, &other));
    free(kept);
    deep_free(&net);
    deep_free(&other);
    training_order_free(&order);
    training_order_free(&again);
    return complain(rc);
}

static int run_arm(lab_run *run)
{
    switch (plans[run->arm].what) {
    case SWEEP:
        return run_sweep(run);
    case SCHEDULE:
        return run_schedule(run);
    default:
        return run_step(run);
    }
}

/* ---- figures: the sweep ---------------------------------------------------------------------- */

static const char *const norm_id[3] = {"none", "batch", "layer"};
static const char *const norm_name[3] = {"no norm", "batch norm", "layer norm"};
static const char *const net_name[3] = {"M13: plain, 13 layers, Glorot",
                                        "P20: plain, 20 layers, He", "R27: residual, 27 blocks"};

static size_t sweep_arm(int net, size_t norm)
{
    return SWEEPS + 3 * norm + (size_t)net;
}

static plot_style marked(size_t norm)
{
    static const int marker[3] = {PLOT_SQUARE, PLOT_CIRCLE, PLOT_TRIANGLE};
    plot_style look = plot_with_marker(lab_style(norm_id[norm]), marker[norm]);
    look.size = 0.8;
    return look;
}

/* Crosses where a run has diverged: one for each rate at which any seed did, at the height y. */
static void draw_diverged(lab_report *r, plot_panel *p, size_t arm, double y, plot_style look)
{
    double x[RATES], at[RATES];
    size_t n = 0, i, s;
    for (i = 0; i < RATES; i++) {
        int any = 0;
        for (s = 0; s < lab_seeds(r, arm); s++)
            any = any || lab_at(r, arm, s, "diverged", rate_of[i]) >= 0;
        if (!any) continue;
        x[n] = rate_of[i];
        at[n++] = y;
    }
    look.marker = PLOT_CROSS;
    plot_scatter(p, NULL, x, at, n, look);
}

static plot_panel *rate_panel(plot_figure *f, int row, int col, const char *y, int scale)
{
    plot_panel *p = plot_add(f, row, col, 1, 1);
    plot_axis_x(p, "learning rate", PLOT_LOG10);
    plot_axis_y(p, y, scale);
    plot_range_x(p, 6e-5, 16);
    plot_legend(p, PLOT_LEGEND_NONE);
    return p;
}

static void draw_rates(lab_report *r, plot_figure *f, int row, int net)
{
    plot_panel *p = row == 0 ? rate_panel(f, 0, net, "test accuracy", PLOT_LINEAR)
                             : rate_panel(f, 1, net, "training loss, last 50 steps", PLOT_LOG10);
    size_t norm;
    if (row == 0) {
        plot_heading(p, net_name[net]);
        plot_range_y(p, -0.07, 1.02);
        plot_hline(p, ENOUGH, NULL, plot_dotted(PLOT_INK));
        if (net == 0) plot_text(p, 8e-5, ENOUGH, "0.9", PLOT_LEFT + PLOT_ABOVE, PLOT_INK);
    }
    if (row == 1) plot_range_y(p, 0.05, 5);
    if (row == 1 && net == 0) plot_legend(p, PLOT_LEGEND_BOTTOM_LEFT);
    for (norm = 0; norm < 3; norm++) {
        const size_t arm = sweep_arm(net, norm);
        const plot_style look = marked(norm);
        lab_plot(r, p, arm, row == 0 ? "accuracy" : "loss", norm_name[norm], look);
        if (row == 0) draw_diverged(r, p, arm, 0.04 - 0.04 * (double)norm, look);
    }
}

static int draw_sweep(lab_report *r)
{
    plot_figure *f = lab_figure(
        r, "With batch norm larger learning rates work (600 steps of SGD; crosses: diverged)", 1800,
        1350);
    int row, net;
    lab_subtitle(r, f,
                 "600 steps of plain SGD, batch 128, standardized pixels; 0.9: what counts as "
                 "working; crosses: diverged",
                 lab_seeds(r, sweep_arm(0, 0)));
    plot_scale(f, 0.85);
    for (row = 0; row < 2; row++)
        for (net = 0; net < 3; net++) draw_rates(r, f, row, net);
    return lab_save(r, f, NULL);
}

/* ---- figures: the schedule ------------------------------------------------------------------- */

static const size_t scheduled_arm[4] = {B_HIGH, B_MIDDLE, B_LOW, N_LOW};

static plot_style schedule_look(size_t i)
{
    static const plot_color color[4] = {PLOT_BLUE, PLOT_SKY, PLOT_INK, PLOT_VERMILLION};
    static const int dash[4] = {PLOT_SOLID, PLOT_DASHDOT, PLOT_DOTTED, PLOT_DASHED};
    plot_style look = plot_solid(color[i]);
    look.dash = dash[i];
    return look;
}

/* What the table says of runs that have diverged, or the test accuracy. */
static const char *end_of(lab_report *r, size_t arm)
{
    double first = 1e9, last = 0, other = 0;
    const size_t n = lab_seeds(r, arm);
    size_t s, gone = 0;
    for (s = 0; s < n; s++) {
        const double step = lab_at(r, arm, s, "diverged", plans[arm].rate) + 1;
        if (!(step > 0)) other = fmax(other, lab_at(r, arm, s, "test", 100));
        if (!(step > 0)) continue;
        gone++;
        first = fmin(first, step);
        last = fmax(last, step);
    }
    if (gone == 0) return lab_text(r, arm, "test", 100, 4);
    return lab_format(r, "%lu of %lu diverge, at step %.0f%s%s", (unsigned long)gone,
                      (unsigned long)n, first, last > first ? lab_format(r, " to %.0f", last) : "",
                      gone < n ? lab_format(r, "; best of the others %.2f", other) : "");
}

static void draw_ends(lab_report *r, plot_figure *f)
{
    static const char *const paper[4] = {"93 %", "90.5 %", "81 %", "82 %"};
    const char *cell[7 * 4] = {"R27", "test, here", "training, here", "paper: test, CIFAR-10"};
    plot_panel *p = plot_add(f, 1, 0, 1, 2);
    size_t i;
    for (i = 0; i < 6; i++) {
        const size_t arm = i < 4 ? scheduled_arm[i] : i == 4 ? N_MIDDLE : N_HIGH;
        cell[4 * (i + 1)] = arms[arm].name;
        cell[4 * (i + 1) + 1] = end_of(r, arm);
        cell[4 * (i + 1) + 2] = i < 4 ? lab_text(r, arm, "train", 100, 4) : "";
        cell[4 * (i + 1) + 3] = i < 4 ? paper[i] : "diverges";
    }
    plot_heading(p, "Accuracy at the end");
    plot_table(p, cell, 7, 4, "llll");
}

static int draw_schedule(lab_report *r)
{
    static const double heights[2] = {2.2, 1};
    plot_figure *f =
        lab_figure(r, "R27: only with batch norm does a large learning rate work", 1800, 1350);
    int side;
    size_t i;
    lab_subtitle(r, f,
                 "R27: 784-64, 27 residual blocks of 2 layers, 10; SGD with momentum 0.9, the rate "
                 "divided by 10 at 50 and 75 % of the steps",
                 lab_seeds(r, B_LOW));
    plot_heights(f, heights, 2);
    for (side = 0; side < 2; side++) {
        plot_panel *p = plot_add(f, 0, side, 1, 1);
        plot_heading(p, side ? "Test accuracy" : "Training accuracy");
        plot_axis_x(p, "% of training", PLOT_LINEAR);
        plot_axis_y(p, "accuracy", PLOT_LINEAR);
        plot_range_x(p, 0, 100);
        plot_range_y(p, 0.5, 1.005);
        plot_legend(p, side ? PLOT_LEGEND_BOTTOM_RIGHT : PLOT_LEGEND_NONE);
        plot_vline(p, 50, NULL, plot_thin(PLOT_GREY));
        plot_vline(p, 75, NULL, plot_thin(PLOT_GREY));
        for (i = 0; i < 4; i++)
            lab_plot(r, p, scheduled_arm[i], side ? "test" : "train", NULL, schedule_look(i));
    }
    draw_ends(r, f);
    return lab_save(r, f, "schedule");
}

/* ---- figures: a step along the gradient ------------------------------------------------------ */

static const char *const ratio_name[3] = {"ratio1", "ratio4", "ratio7"};

static plot_panel *step_panel(plot_figure *f, int row, int col)
{
    plot_panel *p = plot_add(f, row, col, 1, 1);
    plot_axis_x(p, "step size", PLOT_LOG10);
    plot_axis_y(p, "relative loss", PLOT_LOG10);
    plot_range_x(p, 1e-6, 10);
    plot_range_y(p, 1e-2, 1e6);
    plot_hline(p, 1, NULL, plot_thin(PLOT_GREY));
    plot_legend(p, PLOT_LEGEND_NONE);
    return p;
}

static void draw_relative(lab_report *r, plot_panel *p, size_t arm, int m, const char *label)
{
    const int none = plans[arm].net.norm == NRM_NO_NORM;
    plot_style look = lab_style(none ? "none" : "batch");
    look.width = 0.7;
    look.alpha = 0.8;
    lab_plot_seeds(r, p, arm, ratio_name[m], label, look);
}

/* The top two rows are the paper's figure; below are the two plain networks. Shaded: what can be
   read off the paper: where the minimum is with batch norm, where 1e6 is reached without. */
static void draw_step_row(lab_report *r, plot_figure *f, int row)
{
    static const char *const name[4] = {"R27, batch norm", "R27, no norm", "P20, plain",
                                        "M13, plain"};
    static const size_t first[4] = {RS_BATCH, RS_NONE, PS_NONE, MS_NONE};
    static const int mark[3] = {1, 4, 7};
    plot_style shade = plot_solid(PLOT_GREY);
    int m;
    shade.alpha = 0.18;
    for (m = 0; m < 3; m++) {
        plot_panel *p = step_panel(f, row, m);
        plot_heading(p, lab_format(r, "%s, mini-batch %d", name[row], mark[m]));
        if (row == 0) plot_span_x(p, 0.02, 0.1, shade);
        if (row == 1) plot_span_x(p, 3e-3, 8e-3, shade);
        draw_relative(r, p, first[row], m, row == 0 ? "batch norm" : "no norm");
        if (row > 1) draw_relative(r, p, row == 2 ? PS_BATCH : MS_BATCH, m, "batch norm");
        if (row == 2 && m == 0) plot_legend(p, PLOT_LEGEND_TOP_LEFT);
    }
}

static int draw_steps(lab_report *r)
{
    plot_figure *f = lab_figure(
        r, "R27, P20: without batch norm a smaller step raises the loss; M13: it does not", 1800,
        2000);
    int row;
    lab_subtitle(
        r, f, "loss of a mini-batch after a step of this size along its gradient, over that before",
        lab_seeds(r, RS_BATCH));
    plot_scale(f, 0.85);
    for (row = 0; row < 4; row++) draw_step_row(r, f, row);
    return lab_save(r, f, "step");
}

/* ---- claims ---------------------------------------------------------------------------------- */

#define BJORCK "Bjorck et al. 2018, "
#define NOTES "Chinese notes on batch norm, among the listed results"
#define WIDER "a wider range of learning rates, without numbers"
#define WIDTH                                                                                      \
    "decades of rates with test accuracy above 0.9 (interpolated in log rate): at least 0.5 more "
#define LARGEST                                                                                    \
    "largest rate of the grid with test accuracy above 0.9, geometric mean over seeds: at least "  \
    "3 "                                                                                           \
    "times that without norm (0.0001 stands for none)"

/* clang-format off */
static const lab_claim claims[] = {
    {"17a", "M13: batch norm widens the range of learning rates that work", NOTES, WIDER,
     WIDTH "than without norm",
     "trial runs (1 seed): above 0.9 only at 0.1 without; from 0.01 to 3 with batch norm",
     LAB_TRAINING, LAB_SETTING},
    {"17b", "P20: batch norm widens the range of learning rates that work", NOTES, WIDER,
     WIDTH "than without norm", "trial runs (1 seed): 0.85 to 0.93 from 0.003 to 0.1 without; 0.91 "
     "to 0.94 from 0.03 to 1 with batch norm", LAB_TRAINING, LAB_SETTING},
    {"17c", "R27: batch norm widens the range of learning rates that work", NOTES, WIDER,
     WIDTH "than without norm", "none", LAB_TRAINING, LAB_SETTING},
    {"17d", "M13: with batch norm larger learning rates work", NOTES, WIDER, LARGEST,
     "trial runs (1 seed): 0.1 without, 3 with batch norm", LAB_TRAINING, LAB_SETTING},
    {"17e", "P20: with batch norm larger learning rates work", NOTES, WIDER, LARGEST,
     "trial runs (1 seed): 0.1 without, 1 with batch norm", LAB_TRAINING, LAB_SETTING},
    {"17f", "R27: with batch norm larger learning rates work", BJORCK "Fig. 1",
     "0.1 with, 0.0001 without batch norm", LARGEST, "none", LAB_TRAINING, LAB_SETTING},
    {"17g", "R27: with batch norm the rate 0.1 ends more accurate than 0.003", BJORCK "Fig. 1",
     "93 % against 90.5 % (CIFAR-10)", "higher test accuracy at the end", "none", LAB_TRAINING,
     LAB_SETTING},
    {"17h", "R27: with batch norm the rate 0.003 ends more accurate than 0.0001", BJORCK "Fig. 1",
     "90.5 % against 81 % (CIFAR-10)", "higher test accuracy at the end", "none", LAB_TRAINING,
     LAB_SETTING},
    {"17i", "R27: at the rate 0.0001 both networks are comparable", BJORCK "Fig. 1",
     "81 % with, 82 % without batch norm (CIFAR-10)",
     "test accuracies at the end differ by less than 2 points", "none", LAB_TRAINING, LAB_SETTING},
    {"17j", "R27: without batch norm the rates 0.1 and 0.003 diverge",
     BJORCK "Fig. 1, text of the caption", "diverge (not shown there)",
     "at least 80 % of the seeds diverge, at each rate", "none", LAB_TRAINING, LAB_SETTING},
    {"17k", "R27: the large rate that batch norm allows learns faster", BJORCK "Fig. 1; " NOTES,
     "0.1 with batch norm is ahead from the start",
     "test accuracy at 10 % of the training: higher with batch norm at 0.1 than without at 0.0001",
     "none", LAB_TRAINING, LAB_SETTING},
    {"17l", "R27: along the gradient far larger steps do no harm with batch norm", BJORCK "Fig. 3",
     "minimum at 0.02 to 0.1 with, rise within 0.001 without batch norm", "smallest step that "
     "makes the loss 1.05 times larger, median over seeds and mini-batches 1, 4, 7 (10, the "
     "largest one, stands for none): at least 10 times larger with batch norm",
     "trial runs (1 seed, mini-batch 1): 0.1 with, 0.001 without batch norm", LAB_TRAINING,
     LAB_SETTING},
    {"17m", "R27: with batch norm no step up to 1 makes the loss explode", BJORCK "Fig. 3",
     "stays near 1", "no relative loss above 1000 at step sizes up to 1, in any seed or mini-batch",
     "trial runs (1 seed): never above 1000", LAB_TRAINING, LAB_SETTING},
    {"17n", "R27: without batch norm steps of 0.01 make the loss explode", BJORCK "Fig. 3",
     "1e6 at step sizes of 0.003 to 0.008", "smallest step with a relative loss above 1000: at "
     "most 0.01 in the median over seeds and mini-batches, judged seed by seed",
     "trial runs (1 seed, mini-batch 1): 0.0056", LAB_TRAINING, LAB_SETTING},
    {"17o", "The same as 17l for a plain network, P20",
     "ours; carried over to plain networks from " BJORCK "Fig. 3", "not in the paper", "as 17l",
     "trial runs (1 seed): 0.03 with, 0.32 without batch norm; expected to fail", LAB_TRAINING,
     LAB_SETTING},
    {"17p", "The same as 17l for a plain network, M13",
     "ours; carried over to plain networks from " BJORCK "Fig. 3", "not in the paper", "as 17l",
     "none; expected to fail", LAB_TRAINING, LAB_SETTING}};
/* clang-format on */

/* ---- judging --------------------------------------------------------------------------------- */

/* Decades on which the accuracy, straight lines against log10 of the rate, is above 0.9; nan if a
   run has left no number. */
static double width_of(const lab_report *r, size_t arm, size_t seed)
{
    const lab_series accuracy = lab_get(r, arm, seed, "accuracy");
    double sum = accuracy.n > 0 ? 0 : (double)NAN;
    size_t i;
    for (i = 0; i + 1 < accuracy.n; i++) {
        const double a = accuracy.y[i] - ENOUGH, b = accuracy.y[i + 1] - ENOUGH;
        const double decades = log10(accuracy.x[i + 1] / accuracy.x[i]);
        if (a > 0 && b > 0) sum += decades;
        if (a > 0 && b <= 0) sum += decades * a / (a - b);
        if (a <= 0 && b > 0) sum += decades * b / (b - a);
        if (isnan(a) || isnan(b)) sum = (double)NAN;
    }
    return sum;
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

/* In how many seeds some rate reaches 0.9. */
static size_t seeds_that_work(const lab_report *r, size_t arm)
{
    size_t s, n = 0;
    for (s = 0; s < lab_seeds(r, arm); s++) n += width_of(r, arm, s) > 0 ? 1 : 0;
    return n;
}

static void judge_widths(lab_report *r, int net)
{
    const size_t n = lab_seeds(r, sweep_arm(net, 0));
    double a[3][LAB_SEEDS_MAX];
    size_t norm, s;
    for (norm = 0; norm < 3; norm++)
        for (s = 0; s < n; s++) a[norm][s] = width_of(r, sweep_arm(net, norm), s);
    lab_verdict(
        r, lab_find(r, "17a") + net,
        stats_judge_pairs(a[1], a[0], n, 1, stats_mean(a[1], n) - stats_mean(a[0], n) >= 0.5), "",
        "%s decades with batch norm, %s without (layer norm %.2f)",
        lab_mean_sd(r, stats_describe(a[1], n), 2), lab_mean_sd(r, stats_describe(a[0], n), 2),
        stats_mean(a[2], n));
}

static void judge_largest(lab_report *r, int net)
{
    const size_t n = lab_seeds(r, sweep_arm(net, 0));
    double a[3][LAB_SEEDS_MAX], times;
    size_t norm, s;
    for (norm = 0; norm < 3; norm++)
        for (s = 0; s < n; s++) a[norm][s] = log_largest(r, sweep_arm(net, norm), s);
    times = pow(10, stats_mean(a[1], n) - stats_mean(a[0], n));
    lab_verdict(r, lab_find(r, "17d") + net, stats_judge_pairs(a[1], a[0], n, 1, times >= 2.99), "",
                "%.3g with batch norm, %.3g without%s: %.0f times (layer norm %.3g)",
                pow(10, stats_mean(a[1], n)), pow(10, stats_mean(a[0], n)),
                seeds_that_work(r, sweep_arm(net, 0)) == 0 ? " (which stands for none at all)" : "",
                times, pow(10, stats_mean(a[2], n)));
}

static void judge_order(lab_report *r, const lab_claim *claim, size_t a, size_t b, double percent)
{
    lab_verdict(r, claim, lab_compare(r, a, b, "test", percent, 1, 1), "", "%s against %s",
                lab_text(r, a, "test", percent, 4), lab_text(r, b, "test", percent, 4));
}

static void judge_equal(lab_report *r)
{
    double off[LAB_SEEDS_MAX], mean;
    const size_t n = lab_seeds(r, B_LOW);
    size_t s;
    for (s = 0; s < n; s++)
        off[s] = lab_at(r, B_LOW, s, "test", 100) - lab_at(r, N_LOW, s, "test", 100);
    mean = stats_mean(off, n);
    for (s = 0; s < n; s++) off[s] = fabs(off[s]);
    lab_verdict(r, lab_find(r, "17i"), stats_judge_limit(off, n, 0.02, -1), "",
                "%s with, %s without batch norm: %+.2f points", lab_text(r, B_LOW, "test", 100, 4),
                lab_text(r, N_LOW, "test", 100, 4), 100 * mean);
}

static size_t diverged_seeds(const lab_report *r, size_t arm)
{
    size_t s, n = 0;
    for (s = 0; s < lab_seeds(r, arm); s++)
        n += lab_at(r, arm, s, "diverged", plans[arm].rate) >= 0 ? 1 : 0;
    return n;
}

static void judge_divergence(lab_report *r)
{
    const size_t n = lab_seeds(r, N_HIGH), high = diverged_seeds(r, N_HIGH);
    const size_t middle = diverged_seeds(r, N_MIDDLE), with = diverged_seeds(r, B_HIGH);
    const stats_finding part[2] = {stats_holds(stats_most(high, n)),
                                   stats_holds(stats_most(middle, n))};
    lab_verdict(r, lab_find(r, "17j"), stats_together(part, 2), "",
                "%lu and %lu of %lu seeds at 0.1 and 0.003; with batch norm %lu at 0.1",
                (unsigned long)high, (unsigned long)middle, (unsigned long)n, (unsigned long)with);
}

/* The smallest step whose relative loss is above `level`; 10 if there is none. */
static double first_above(const lab_report *r, size_t arm, size_t seed, int m, double level)
{
    const lab_series ratio = lab_get(r, arm, seed, ratio_name[m]);
    size_t i;
    for (i = 0; i < ratio.n; i++)
        if (!(ratio.y[i] <= level)) return ratio.x[i]; /* nan is above */
    return ratio.n > 0 ? 10 : (double)NAN;
}

/* Of each seed the median over mini-batches, in log10; returns the median over all. */
static double medians(const lab_report *r, size_t arm, double level, double *of_seed)
{
    double all[3 * LAB_SEEDS_MAX], one[3];
    size_t s, n = lab_seeds(r, arm);
    int m;
    for (s = 0; s < n; s++) {
        for (m = 0; m < 3; m++)
            one[m] = all[3 * s + (size_t)m] = log10(first_above(r, arm, s, m, level));
        stats_sort(one, 3);
        of_seed[s] = one[1];
    }
    stats_sort(all, 3 * n);
    return pow(10, stats_quantile(all, 3 * n, 0.5));
}

static void judge_rise(lab_report *r, const lab_claim *claim, size_t batch, size_t none)
{
    double a[LAB_SEEDS_MAX], b[LAB_SEEDS_MAX];
    const double with = medians(r, batch, 1.05, a), without = medians(r, none, 1.05, b);
    lab_verdict(r, claim, stats_judge_pairs(a, b, lab_seeds(r, batch), 1, with >= 9.99 * without),
                "", "%.2g with, %.2g without batch norm: %.3g times", with, without,
                with / without);
}

static double median_at_first(const lab_report *r)
{
    double value[LAB_SEEDS_MAX];
    size_t s, n = lab_seeds(r, RS_NONE);
    for (s = 0; s < n; s++) value[s] = first_above(r, RS_NONE, s, 0, TOO_LARGE);
    stats_sort(value, n);
    return stats_quantile(value, n, 0.5);
}

/* The largest relative loss at step sizes up to 1 with batch norm; nan if one is missing or nan. */
static double largest_ratio(const lab_report *r, size_t seed)
{
    double most = 0;
    size_t i;
    int m;
    for (m = 0; m < 3; m++) {
        const lab_series ratio = lab_get(r, RS_BATCH, seed, ratio_name[m]);
        if (ratio.n == 0) return (double)NAN;
        for (i = 0; i < ratio.n && ratio.x[i] <= 1.0001; i++) {
            if (isnan(ratio.y[i])) return (double)NAN;
            if (ratio.y[i] > most) most = ratio.y[i];
        }
    }
    return most;
}

static void judge_explosions(lab_report *r)
{
    double most[LAB_SEEDS_MAX], of_seed[LAB_SEEDS_MAX], at;
    size_t s, n = lab_seeds(r, RS_BATCH);
    for (s = 0; s < n; s++) most[s] = log10(largest_ratio(r, s));
    lab_verdict(r, lab_find(r, "17m"), stats_judge_limit(most, n, log10(TOO_LARGE), -1), "",
                "largest relative loss with batch norm, step sizes up to 1: %.3g",
                pow(10, stats_describe(most, n).max));
    at = medians(r, RS_NONE, TOO_LARGE, of_seed);
    lab_verdict(r, lab_find(r, "17n"), stats_judge_limit(of_seed, n, -2, -1), "",
                "above 1000 from a step size of %.2g on (mini-batch 1: %.2g)", at,
                median_at_first(r));
}

/* ---- checks ---------------------------------------------------------------------------------- */

static void check_bits(lab_report *r)
{
    static const size_t arm[6] = {RS_BATCH, RS_NONE, PS_BATCH, PS_NONE, MS_BATCH, MS_NONE};
    size_t i, s, same = 0, all = 0;
    for (i = 0; i < 6; i++)
        for (s = 0; s < lab_seeds(r, arm[i]); s++, all++)
            same += lab_at(r, arm[i], s, "same_bits", 0) > 0 ? 1 : 0;
    lab_check(r, same == all,
              "a training that is looked into ends with the same bits as one that "
              "is not",
              "%lu of %lu", (unsigned long)same, (unsigned long)all);
}

static void check_schedule(lab_report *r)
{
    const int right = fabs(scheduled(0.1, 2344, 4690) - 0.1) < 1e-12 &&
                      fabs(scheduled(0.1, 2345, 4690) - 0.01) < 1e-12 &&
                      fabs(scheduled(0.1, 3517, 4690) - 0.01) < 1e-12 &&
                      fabs(scheduled(0.1, 3518, 4690) - 0.001) < 1e-12;
    lab_check(r, right, "the rate drops at 50 and 75 % of 4690 steps", "%s",
              right ? "at steps 2345 and 3518" : "elsewhere");
}

/* Two steps with momentum and decay on one weight, by hand. */
static void check_optimizer(lab_report *r)
{
    residual_spec spec = {2, 1, 0, 1, 1, NRM_NO_NORM, RESIDUAL_GLOROT, 1};
    residual_net net;
    double w = 0, v = 0, off = (double)NAN;
    const int made = residual_make(&net, &spec) == 0;
    int step;
    if (made) w = (double)net.params[0];
    for (step = 0; made && step < 2; step++) {
        net.grads[0] = (nrm_real)(0.5 + step);
        residual_step(&net, 0.1F, KEEP, DECAY);
        v = 0.9 * v + (0.5 + step + 5e-4 * w);
        w -= 0.1 * v;
    }
    if (made) off = fabs(w - (double)net.params[0]);
    if (made) residual_free(&net);
    lab_check(r, off < 1e-6, "SGD with momentum and weight decay, two steps by hand",
              "difference %.1e", off);
}

static int report(lab_report *r)
{
    int net;
    for (net = 0; net < 3; net++) judge_widths(r, net);
    for (net = 0; net < 3; net++) judge_largest(r, net);
    judge_order(r, lab_find(r, "17g"), B_HIGH, B_MIDDLE, 100);
    judge_order(r, lab_find(r, "17h"), B_MIDDLE, B_LOW, 100);
    judge_equal(r);
    judge_divergence(r);
    judge_order(r, lab_find(r, "17k"), B_HIGH, N_LOW, 10);
    judge_rise(r, lab_find(r, "17l"), RS_BATCH, RS_NONE);
    judge_explosions(r);
    judge_rise(r, lab_find(r, "17o") + 0, PS_BATCH, PS_NONE);
    judge_rise(r, lab_find(r, "17o") + 1, MS_BATCH, MS_NONE);
    check_bits(r);
    check_schedule(r);
    check_optimizer(r);
    return draw_sweep(r) || draw_schedule(r) || draw_steps(r);
}

/* clang-format off */
static const lab_program program = {
    "17_learning_rates", NRM_VERSION,
    "Does batch norm allow larger learning rates, and is that what it is good for?",
    "Batch 128, standardized pixels, float. Sweep: plain SGD, 600 steps, 3 seeds. Schedule and "
    "step: momentum 0.9, 5 seeds. R27: 784-64, 27 residual blocks of 2 layers, 10", 1,
    LAB_USES_DATA, arms, ARMS, prepare, run_arm, report, claims,
    LAB_COUNT(claims)};
/* clang-format on */
LAB_MAIN(program)
