/* 31_bias_before_norm: what becomes of a bias that batch norm takes away again?

   Ioffe and Szegedy (2015) leave the bias of a linear layer out where batch norm follows, since
   "its effect will be canceled by the subsequent mean subtraction"; β does its work. A
   lecture-style post has its network without one as well. Many programs have one all the same. Its
   gradient is 0 but for rounding, and the question is what optimizers make of rounding.

   784-100-100-10, ReLU, batch norm (ε = 1e-5) before both, a bias before each batch norm; pixels
   standardized, Glorot's uniform initialisation, b = 0 at the start, 500 steps with batches of 128,
   in float. Arms:

       sgd         plain SGD, rate 0.1
       adam        Adam, rate 1e-3, β 0.9 and 0.999, ε = 1e-8, the usual values
       adam_1e-6   the same with ε = 1e-6; adam_1e-10: with 1e-10. Adam moves by m/(√v + ε), so it
                   is its ε that decides whether a gradient counts as rounding or as a direction
       none_adam   no batch norm, Adam: what a bias with a gradient does

   Every 10 steps: the largest |dL/db| and |b| of both layers, and |dL/dβ| to compare. Every 50: how
   much the logits of 128 fixed images change if b is set to 0, in train mode, and in inference with
   running statistics.

   The claims, and what counts as reproduced, were written down before the run. Trial runs of
   another program (1 seed): |dL/db| up to 1.5e-8, |b| 2.5e-3 to 5e-3 after 500 steps of Adam.
   a to c are exact but for rounding: what is seen is its size. c to e are claims of our own.

       a  |dL/db| stays below 1e-6 at all steps looked at, arms sgd and adam, every seed (in
          double: 1e-12, see 21_invariance)
       b  the logits in train mode do not depend on b: largest change over largest logit below
          1e-6 after 500 steps, arms sgd and adam, every seed
       c  under SGD b stays at 0: largest |b| after 500 steps below 1e-6, every seed
       d  under Adam it does not: larger than under SGD by the rule for pairs, and (else partly)
          above 1e-3 in the mean
       e  it is Adam's ε that makes it: |b| with 1e-6 < with 1e-8 < with 1e-10 by the rule for
          pairs, and (else partly) with 1e-6 less than a tenth of that with 1e-8 */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"
#include "lab/training.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/lab.h"
#include "plot/plot.h"
#include "lab/stats.h"

enum { WIDTH = 100, CLASSES = 10, BATCH = 128, STEPS = 500 };
enum { SGD, ADAM, ADAM_LARGE, ADAM_SMALL, NO_NORM, ARMS };

static const lab_arm arms[ARMS] = {{"sgd", "SGD", 1, 0},
                                   {"adam", "Adam, ε = 10^{-8}", 1, 0},
                                   {"adam_1e-6", "Adam, ε = 10^{-6}", 1, 0},
                                   {"adam_1e-10", "Adam, ε = 10^{-10}", 1, 0},
                                   {"none_adam", "Adam, no norm", 1, 0}};

/* ---- a run ----------------------------------------------------------------------------------- */

static training_set train_set;

static int prepare(const dataset *data, int quick)
{
    return training_load(&train_set, NULL, data, quick ? 512 : STEPS * BATCH, 0, DATASET_STD);
}

static nrm_mlp *make_net(const lab_run *r, void **block)
{
    static const double adam_eps[ARMS] = {1e-8, 1e-8, 1e-6, 1e-10, 1e-8};
    nrm_mlp_layer layer[3];
    nrm_mlp_spec spec =
        training_plain(layer, 2, WIDTH, NRM_RELU, r->arm == NO_NORM ? NRM_NO_NORM : NRM_BATCH_NORM);
    size_t l;
    for (l = 0; l < 2; l++) layer[l].bias = 1; /* what this is about */
    spec.max_batch = BATCH;
    spec.seed = r->seed;
    spec.optimizer = r->arm == SGD ? NRM_SGD : NRM_ADAM;
    spec.lr = (nrm_real)(r->arm == SGD ? 0.1 : 1e-3);
    spec.adam_eps = (nrm_real)adam_eps[r->arm];
    return training_net(&spec, block);
}

/* The largest of an array of both hidden layers. */
static double largest(const nrm_real *first, const nrm_real *second, size_t n)
{
    return stats_larger(training_farthest(first, NULL, n), training_farthest(second, NULL, n));
}

static int logits_now(nrm_mlp *net, int mode, nrm_real *out)
{
    const int rc = mode == NRM_INFER
                       ? nrm_mlp_forward(net, train_set.x, BATCH, mode)
                       : nrm_mlp_gradient(net, NULL, train_set.x, train_set.labels, BATCH, mode);
    memcpy(out, net->logits, BATCH * CLASSES * sizeof *out);
    return rc;
}

/* How much the logits of the first images change without b, which is put back. */
static int without(lab_run *r, nrm_mlp *net, int mode, double step, const char *series)
{
    nrm_real with[BATCH * CLASSES], less[BATCH * CLASSES], kept[2][WIDTH];
    double most;
    size_t i;
    int l, rc = logits_now(net, mode, with);
    for (l = 0; l < 2; l++) {
        memcpy(kept[l], net->state[l].b, sizeof kept[l]);
        memset(net->state[l].b, 0, sizeof kept[l]);
    }
    if (rc >= 0) rc = logits_now(net, mode, less);
    for (l = 0; l < 2; l++) memcpy(net->state[l].b, kept[l], sizeof kept[l]);
    if (rc < 0) return rc;
    most = training_farthest(with, NULL, BATCH * CLASSES);
    for (i = 0; i < BATCH * CLASSES; i++) less[i] -= with[i];
    lab_record(r, series, step, training_farthest(less, NULL, BATCH * CLASSES) / most);
    return 0;
}

static int take_look(lab_run *r, nrm_mlp *net, double step, int often)
{
    const nrm_mlp_state *a = &net->state[0], *b = &net->state[1];
    lab_record(r, "gradient", step, largest(a->db, b->db, WIDTH));
    lab_record(r, "bias", step, largest(a->b, b->b, WIDTH));
    if (a->dbeta) lab_record(r, "gradient_beta", step, largest(a->dbeta, b->dbeta, WIDTH));
    if (!often) return 0;
    lab_progress(r, step / STEPS);
    return without(r, net, NRM_TRAIN, step, "change_train") ||
           without(r, net, NRM_INFER, step, "change_inference");
}

/* With looks or without: the weights at the end are the same. */
static int train(lab_run *r, nrm_mlp *net, int looks)
{
    const size_t steps = r->quick ? 20 : STEPS;
    training_order order;
    size_t step;
    int rc = 0;
    if (training_order_start(&order, train_set.n, BATCH, DATASET_PIXELS, r->seed)) return -1;
    for (step = 1; step <= steps && rc == 0; step++) {
        training_go_on(&order, &train_set, 1);
        rc = nrm_mlp_train_step(net, NULL, order.x, order.labels, order.count);
        if (rc == 0 && looks && step % 10 == 0)
            rc = take_look(r, net, (double)step, step % (r->quick ? 10 : 50) == 0);
    }
    training_order_free(&order);
    return rc;
}

static int run(lab_run *r)
{
    void *block = NULL, *block2 = NULL;
    nrm_mlp *net = make_net(r, &block), *again;
    int failed = !net || train(r, net, 1);
    if (!failed && r->quick) { /* once more without looking */
        again = make_net(r, &block2);
        failed = !again || train(r, again, 0);
        if (!failed) lab_record(r, "same_bits", 0, training_same_bits(net, again));
    }
    free(block);
    free(block2);
    return failed ? -1 : 0;
}

/* ---- verdicts -------------------------------------------------------------------------------- */

/* Over all seeds and steps. */
static double most_of(const lab_report *r, size_t arm, const char *series)
{
    double most = 0;
    size_t s, i;
    for (s = 0; s < lab_seeds(r, arm); s++) {
        const lab_series one = lab_get(r, arm, s, series);
        for (i = 0; i < one.n; i++) most = stats_larger(most, one.y[i]);
        if (one.n == 0) return (double)NAN;
    }
    return most;
}

/* The largest over the seeds at the end. */
static double most_at_end(const lab_report *r, size_t arm, const char *series)
{
    return lab_summary(r, arm, series, LAB_LAST).max;
}

static double end_mean(const lab_report *r, size_t arm, const char *series)
{
    return lab_mean(r, arm, series, LAB_LAST);
}

static const char ioffe[] = "Ioffe & Szegedy 2015, section 3.2";
static const char cancelled[] =
    "\"the bias b can be ignored since its effect will be canceled by the subsequent mean "
    "subtraction\"";

static void judge_zero(lab_report *r)
{
    static const lab_claim gradient = {
        "31a",
        "A bias before batch norm has no gradient",
        ioffe,
        cancelled,
        "exact; in float the largest |dL/db| at all steps below 1e-6, SGD and Adam, every seed",
        "trial run (1 seed): at most 1.5e-8",
        LAB_IDENTITY,
        LAB_SETTING};
    static const lab_claim output = {
        "31b",
        "The outputs do not depend on it",
        ioffe,
        cancelled,
        "exact; in float, train mode, b set to 0 after 500 steps: largest change / "
        "largest logit below 1e-6, SGD and "
        "Adam, every seed",
        "none",
        LAB_IDENTITY,
        LAB_SETTING};
    static const lab_claim stays = {
        "31c",
        "Under SGD it stays where it was",
        "ours; a lecture-style post leaves it out",
        "no numbers",
        "exact; in float the largest |b| after 500 steps below 1e-6, every seed",
        "none",
        LAB_IDENTITY,
        LAB_SETTING};
    const double g = stats_larger(most_of(r, SGD, "gradient"), most_of(r, ADAM, "gradient"));
    const double out =
        stats_larger(most_at_end(r, SGD, "change_train"), most_at_end(r, ADAM, "change_train"));
    const double b = most_at_end(r, SGD, "bias");
    lab_verdict(r, &gradient, stats_holds(g < 1e-6), "", "%.1e at most; |dL/dβ| up to %.1e", g,
                most_of(r, SGD, "gradient_beta"));
    lab_verdict(r, &output, stats_holds(out < 1e-6),
                lab_format(r, "in inference: %.1e with SGD, %.1e with Adam",
                           most_at_end(r, SGD, "change_inference"),
                           most_at_end(r, ADAM, "change_inference")),
                "%.1e at most", out);
    lab_verdict(r, &stays, stats_holds(b < 1e-6), "", "|b| %.1e at most", b);
}

static void judge_drift(lab_report *r)
{
    static const lab_claim drifts = {
        "31d",
        "Under Adam it drifts",
        "ours, from trial runs",
        "no paper",
        "largest |b| after 500 steps: Adam > SGD, paired; mean above 1e-3, else partly",
        "trial run (1 seed): 2.5e-3 to 5e-3",
        LAB_TRAINING,
        LAB_SETTING};
    static const lab_claim eps = {
        "31e",
        "What drifts is rounding, divided by Adam's ε",
        "ours",
        "no paper",
        "largest |b|: ε 1e-6 < 1e-8 < 1e-10, paired; 1e-6 below a tenth of 1e-8, else partly",
        "none",
        LAB_TRAINING,
        LAB_SETTING};
    stats_finding part[2];
    part[0] = lab_compare(r, ADAM, ADAM_LARGE, "bias", LAB_LAST, +1,
                          end_mean(r, ADAM_LARGE, "bias") < 0.1 * end_mean(r, ADAM, "bias"));
    part[1] = lab_compare(r, ADAM_SMALL, ADAM, "bias", LAB_LAST, +1, 1);
    lab_verdict(r, &drifts,
                lab_compare(r, ADAM, SGD, "bias", LAB_LAST, +1, end_mean(r, ADAM, "bias") > 1e-3),
                "", "|b| %.1e with Adam, %.1e with SGD; without a norm %.1e",
                end_mean(r, ADAM, "bias"), end_mean(r, SGD, "bias"), end_mean(r, NO_NORM, "bias"));
    lab_verdict(r, &eps, stats_together(part, 2), "", "%.1e, %.1e, %.1e",
                end_mean(r, ADAM_LARGE, "bias"), end_mean(r, ADAM, "bias"),
                end_mean(r, ADAM_SMALL, "bias"));
}

static void check(lab_report *r)
{
    size_t a, s, looked = 0;
    int same = 1;
    for (a = 0; a < ARMS; a++)
        for (s = 0; s < lab_seeds(r, a) && lab_quick(r); s++, looked++)
            if (lab_at(r, a, s, "same_bits", 0) != 1) same = 0;
    if (lab_quick(r))
        lab_check(r, same,
                  "quick runs: one that is looked at ends with the bits of one that is not",
                  "%zu runs", looked);
}

/* ---- figure ---------------------------------------------------------------------------------- */

static plot_style style_of(size_t arm)
{
    static const plot_color color[ARMS] = {PLOT_INK, PLOT_BLUE, PLOT_SKY, PLOT_PURPLE,
                                           PLOT_VERMILLION};
    static const int dash[ARMS] = {PLOT_SOLID, PLOT_SOLID, PLOT_DASHDOT, PLOT_DOTTED, PLOT_DASHED};
    plot_style s = plot_solid(color[arm]);
    s.dash = dash[arm];
    return s;
}

/* On a logarithmic axis: the mean over the seeds, and the band from the lowest to the highest. */
static void draw_range(lab_report *r, plot_panel *p, size_t arm, const char *series,
                       const char *name, plot_style style)
{
    double x[STEPS], mean[STEPS], lo[STEPS], hi[STEPS];
    const lab_series first = lab_get(r, arm, 0, series);
    size_t i;
    for (i = 0; i < first.n && i < STEPS; i++) {
        const stats_summary s = lab_summary(r, arm, series, first.x[i]);
        x[i] = first.x[i];
        mean[i] = s.mean;
        lo[i] = s.min;
        hi[i] = s.max;
    }
    plot_band(p, NULL, x, lo, hi, first.n, style);
    plot_line(p, name, x, mean, first.n, style);
}

static plot_panel *steps_panel(plot_figure *f, int col, const char *heading, const char *y)
{
    plot_panel *p = plot_add(f, 0, col, 1, 1);
    plot_heading(p, heading);
    plot_axis_x(p, "step", PLOT_LINEAR);
    plot_axis_y(p, y, PLOT_LOG10);
    plot_range_x(p, 0, STEPS);
    plot_legend(p, PLOT_LEGEND_NONE); /* names stand beside the lines */
    return p;
}

static void draw_gradient(lab_report *r, plot_figure *f)
{
    plot_panel *p = steps_panel(f, 0, "gradient", "largest |∂L/∂b|, |∂L/∂β|");
    draw_range(r, p, NO_NORM, "gradient", NULL, style_of(NO_NORM));
    draw_range(r, p, SGD, "gradient_beta", NULL, plot_dashdot(PLOT_GREEN));
    draw_range(r, p, SGD, "gradient", NULL, style_of(SGD));
    draw_range(r, p, ADAM, "gradient", NULL, style_of(ADAM));
    plot_range_y(p, 1e-11, 10);
    plot_text(p, 490, 0.5, "β (dash-dot);", PLOT_RIGHT + PLOT_ABOVE, PLOT_INK);
    plot_text(p, 490, 0.05, "b, no norm (dashed)", PLOT_RIGHT + PLOT_ABOVE, PLOT_INK);
    plot_text(p, 490, 2e-8, "b before batch norm", PLOT_RIGHT + PLOT_ABOVE, PLOT_INK);
}

static void draw_bias(lab_report *r, plot_figure *f)
{
    static const double at[ARMS] = {1.2e-8, 3e-3, 4e-5, 9e-2, 0.9};
    static const char *const name[ARMS] = {"SGD", "Adam, ε = 10^{-8}", "Adam, ε = 10^{-6}",
                                           "Adam, ε = 10^{-10} (dotted)", "no norm (dashed);"};
    plot_panel *p = steps_panel(f, 1, "bias", "largest |b|");
    size_t a;
    for (a = 0; a < ARMS; a++) {
        const int where = a == ADAM || a == ADAM_LARGE ? PLOT_BELOW : PLOT_ABOVE;
        draw_range(r, p, a, "bias", NULL, style_of(a));
        plot_text(p, 490, at[a], name[a], PLOT_RIGHT + where, PLOT_INK);
    }
    plot_range_y(p, 1e-11, 10);
}

static void draw_change(lab_report *r, plot_figure *f)
{
    plot_panel *p = steps_panel(f, 2, "b set to 0", "largest change / largest logit");
    draw_range(r, p, ADAM, "change_inference", NULL, style_of(ADAM));
    draw_range(r, p, ADAM, "change_train", NULL, plot_dashed(PLOT_SKY));
    draw_range(r, p, SGD, "change_train", NULL, plot_dotted(PLOT_INK));
    plot_range_y(p, 1e-11, 10);
    plot_text(p, 490, 3e-3, "inference, Adam", PLOT_RIGHT + PLOT_ABOVE, PLOT_INK);
    plot_text(p, 490, 4e-7, "train mode, Adam", PLOT_RIGHT + PLOT_ABOVE, PLOT_INK);
    plot_text(p, 490, 1e-8, "train mode, SGD (dotted)", PLOT_RIGHT + PLOT_BELOW, PLOT_INK);
}

static int report(lab_report *r)
{
    plot_figure *f =
        lab_figure(r, "A bias before batch norm: no gradient, and what becomes of it", 2000, 900);
    judge_zero(r);
    judge_drift(r);
    check(r);
    plot_letters(f);
    draw_gradient(r, f);
    draw_bias(r, f);
    draw_change(r, f);
    return lab_save(r, f, NULL);
}

int main(int argc, char **argv)
{
    static const lab_program program = {
        "31_bias_before_norm",
        NRM_VERSION,
        "What becomes of a bias that batch norm takes away again?",
        "784-100-100-10, ReLU, batch norm after each linear layer with bias, standardized pixels, "
        "batches of 128, SGD with rate 0.1 or Adam with 0.001, 500 steps, in float",
        1,
        LAB_USES_DATA,
        arms,
        ARMS,
        prepare,
        run,
        report};
    return lab_main(&program, argc, argv);
}
