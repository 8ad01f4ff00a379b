/* 10_mnist_norms: the MNIST comparison. What do normalization layers change in a small network?

   A 784-64-128-10 network with ReLU is trained as in the notebook behind one of the tutorials that
   this project grew from (batch 512, plain SGD with learning rate 0.01, 20 epochs, pixels in 0..1,
   weights and biases uniform in ±1/sqrt(inputs)), with each norm between linear part and ReLU:

       none, batch norm                 the tutorial's two networks, γ drawn from U(0,1) as there
       layer norm, noisy batch norm     two that it does not have, the same otherwise
       batch, layer, noisy with γ = 1   and batch norm without bias: what these choices matter

   All arms of a seed start from the same weights and see the same mini-batches. The claims were
   written down before the run. Since then their limits are judged seed by seed, which asks for
   more than the mean of the seeds, as they were judged at first; all four verdicts stayed what
   they were.

   Two pages come out: loss and accuracy, and the distribution in the first hidden layer over the
   first 1000 test images. With a rate of its own for each network: experiments/34_tuned_mnist. */
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"
#include "lab/files.h"
#include "lab/page.h"
#include "lab/training.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INPUTS = 784, WIDTH1 = 64, BATCH = 512, EPOCHS = 20 };
enum { PROBED = 1000, BINS = 60, SHOWN = 7 };
#define HIST_LO (-4.0)
#define HIST_HI 6.5

#define SETTINGS "784-64-128-10, ReLU, SGD with learning rate 0.01, batches of 512, 20 epochs"

static const size_t shown[SHOWN] = {0, 1, 2, 5, 10, 15, 20}; /* epochs with a histogram */

/* ---- the arms -------------------------------------------------------------------------------- */

enum { NONE = 0, BATCH_UNIFORM, MAIN_ARMS = 4, BATCH_NO_BIAS = 7, ARMS = 8 };

static const lab_arm arms[ARMS] = {{"none", "no norm", 4, 0},
                                   {"batch", "batch norm", 5, 0},
                                   {"layer", "layer norm", 4, 0},
                                   {"noisy", "noisy batch norm", 11, 0},
                                   {"batch_one", "batch norm, γ = 1", 4, 0},
                                   {"layer_one", "layer norm, γ = 1", 4, 0},
                                   {"noisy_one", "noisy batch norm, γ = 1", 11, 0},
                                   {"batch_no_bias", "batch norm, no bias", 4, 0}};
static const int norm[ARMS] = {NRM_NO_NORM,          NRM_BATCH_NORM, NRM_LAYER_NORM,
                               NRM_NOISY_BATCH_NORM, NRM_BATCH_NORM, NRM_LAYER_NORM,
                               NRM_NOISY_BATCH_NORM, NRM_BATCH_NORM};

static const int gamma_init[ARMS] = {NRM_GAMMA_ONE,     NRM_GAMMA_UNIFORM, NRM_GAMMA_UNIFORM,
                                     NRM_GAMMA_UNIFORM, NRM_GAMMA_ONE,     NRM_GAMMA_ONE,
                                     NRM_GAMMA_ONE,     NRM_GAMMA_UNIFORM};

static training_set train, test;

static int prepare(const dataset *d, int quick)
{
    (void)quick;
    return training_load(&train, &test, d, 0, 0, DATASET_RAW01);
}

/* ---- one run --------------------------------------------------------------------------------- */

enum { BEFORE = 0, INFER, TRAIN, PLACES }; /* output of: linear part, norm (two modes) */
static const char *const place_name[PLACES] = {"linear", "norm_infer", "norm_train"};

typedef struct trial {
    lab_run *run;
    nrm_mlp *net;
    training_order order;
    double *linear, *norm; /* [PROBED][WIDTH1] of the first hidden layer, from the probe */
    double *loss;          /* [steps] of the whole training                              */
    size_t steps, epochs;  /* steps of one epoch                                         */
} trial;

static nrm_mlp *make_net(const lab_run *r, void **block)
{
    nrm_mlp_layer layer[3];
    nrm_mlp_spec spec = training_notebook(layer, norm[r->arm]);
    layer[0].bias = layer[1].bias = r->arm != BATCH_NO_BIAS;
    spec.max_batch = PROBED;
    spec.seed = r->seed;
    spec.gamma_init = gamma_init[r->arm];
    spec.lr = (nrm_real)0.01;
    return training_net(&spec, block);
}

static void take(void *context, const nrm_mlp_event *event)
{
    trial *t = (trial *)context;
    double *to = event->place == NRM_AT_LINEAR ? t->linear : t->norm;
    size_t i;
    if (event->layer != 0 || event->gradient || event->place == NRM_AT_ACTIVATION) return;
    for (i = 0; i < event->rows * event->cols; i++) to[i] = (double)event->data[i];
}

/* "norm_train/mean", "linear/density_5": moments and histograms by place. */
static void record_at(lab_run *r, int place, const char *what, double x, double y)
{
    lab_record_as(r, x, y, "%s/%s", place_name[place], what);
}

/* Of all units together, and the sizes of skewness and kurtosis of the single ones, averaged. */
static void record_moments(lab_run *r, int place, size_t epoch, const double *v, size_t n)
{
    const stats_summary all = stats_describe(v, n * WIDTH1);
    double unit[PROBED], skew = 0, kurtosis = 0;
    size_t u, i;
    for (u = 0; u < WIDTH1; u++) {
        stats_summary one;
        for (i = 0; i < n; i++) unit[i] = v[i * WIDTH1 + u];
        one = stats_describe(unit, n);
        skew += fabs(one.skew) / WIDTH1;
        kurtosis += fabs(one.kurtosis) / WIDTH1;
    }
    record_at(r, place, "mean", (double)epoch, all.mean);
    record_at(r, place, "sd", (double)epoch, all.sd);
    record_at(r, place, "skew", (double)epoch, all.skew);
    record_at(r, place, "kurtosis", (double)epoch, all.kurtosis);
    record_at(r, place, "unit_skew", (double)epoch, skew);
    record_at(r, place, "unit_kurtosis", (double)epoch, kurtosis);
}

static void record_density(lab_run *r, int place, size_t epoch, const double *v, size_t n)
{
    const double bin = (HIST_HI - HIST_LO) / BINS;
    double edges[BINS + 1], density[BINS];
    char what[32];
    size_t i;
    for (i = 0; i <= BINS; i++) edges[i] = HIST_LO + bin * (double)i;
    (void)stats_histogram(v, n * WIDTH1, edges, BINS, density);
    (void)snprintf(what, sizeof what, "density_%u", (unsigned)epoch);
    for (i = 0; i < BINS; i++)
        record_at(r, place, what, HIST_LO + bin * ((double)i + 0.5), density[i]);
}

static int is_shown(const trial *t, size_t epoch)
{
    size_t i;
    for (i = 0; i < SHOWN; i++)
        if (shown[i] == epoch) return 1;
    return epoch == t->epochs;
}

/* Of all that a look must leave alone. */
static uint64_t fingerprint(const nrm_mlp *net)
{
    const nrm_running *running = &net->state[0].running;
    uint64_t hash = files_hash(FILES_HASH_INIT, net->params, net->n_params * sizeof *net->params);
    hash = files_hash(hash, &net->rng.state, sizeof net->rng.state);
    hash = files_hash(hash, &net->steps, sizeof net->steps);
    if (!running->mean) return hash;
    hash = files_hash(hash, running->mean, WIDTH1 * sizeof *running->mean);
    return files_hash(hash, running->var, WIDTH1 * sizeof *running->var);
}

static void describe(trial *t, int place, size_t epoch, const double *v, size_t n)
{
    record_moments(t->run, place, epoch, v, n);
    if (place == (t->run->arm == NONE ? BEFORE : TRAIN)) /* what the ReLU is given in training */
        record_density(t->run, place, epoch, v, n);
}

/* The first hidden layer: linear part, norm with running statistics, norm with those of these
   images. Training goes on as if nothing had happened. */
static int look(trial *t, size_t epoch)
{
    const size_t n = test.n < PROBED ? test.n : PROBED;
    const uint64_t before = fingerprint(t->net);
    int status;
    t->net->probe = take;
    t->net->probe_context = t;
    status = nrm_mlp_forward(t->net, test.x, n, NRM_INFER);
    if (status >= 0) describe(t, BEFORE, epoch, t->linear, n);
    if (status >= 0 && t->run->arm != NONE) {
        describe(t, INFER, epoch, t->norm, n);
        status = nrm_mlp_gradient(t->net, NULL, test.x, test.labels, n, NRM_TRAIN);
        describe(t, TRAIN, epoch, t->norm, n);
    }
    t->net->probe = NULL;
    if (before != fingerprint(t->net)) lab_record(t->run, "touched", (double)epoch, 1);
    return status;
}

static int evaluate(trial *t, size_t epoch)
{
    nrm_acc loss = 0, accuracy = 0;
    const int status = nrm_mlp_eval(t->net, &loss, &accuracy, test.x, test.labels, test.n);
    lab_record(t->run, "test_loss", (double)epoch, (double)loss);
    lab_record(t->run, "accuracy", (double)epoch, 100 * (double)accuracy);
    lab_progress(t->run, (double)epoch / (double)t->epochs);
    if (status < 0 || t->run->arm > BATCH_UNIFORM || !is_shown(t, epoch)) return status;
    return look(t, epoch);
}

/* One pass over the training data: every step's loss, their mean, and the mean of batches 41 to 80,
   which is what the notebook logged. */
static int train_epoch(trial *t, size_t epoch)
{
    double *loss = t->loss + (epoch - 1) * t->steps, mean = 0, window = 0;
    size_t step, in_window = 0;
    int status = NRM_OK;
    for (step = 0; status >= 0 && training_next(&t->order, &train); step++) {
        nrm_acc value = 0;
        status = nrm_mlp_train_step(t->net, &value, t->order.x, t->order.labels, t->order.count);
        loss[step] = (double)value;
        mean += loss[step] / (double)t->steps;
        if (step > 40 && step <= 80) {
            window += loss[step];
            in_window++;
        }
    }
    lab_record(t->run, "epoch_loss", (double)epoch, mean);
    lab_record(t->run, "window_loss", (double)epoch,
               in_window > 0 ? window / (double)in_window : mean);
    return status;
}

/* The first loss, and the first step (from 1 on) at which the mean loss of the last 20 steps is
   below 0.5: the number of all steps if none is. */
static int record_losses(const trial *t)
{
    const size_t n = t->epochs * t->steps;
    double *mean = (double *)malloc(n * sizeof *mean), half = (double)n;
    size_t i;
    if (!mean) return -1;
    lab_record(t->run, "loss", 1, t->loss[0]);
    stats_running_mean(t->loss, n, 20, mean);
    for (i = 0; i < n && half >= (double)n; i++)
        if (mean[i] < 0.5) half = (double)i + 1;
    lab_record(t->run, "steps_to_half", 0, half);
    lab_record(t->run, "steps", 0, (double)n);
    free(mean);
    return 0;
}

static int run(lab_run *r)
{
    trial t;
    void *block = NULL;
    size_t epoch;
    int status = -1;
    memset(&t, 0, sizeof t);
    t.run = r;
    t.epochs = r->quick ? 3 : EPOCHS;
    t.steps = training_steps(train.n, BATCH);
    t.net = make_net(r, &block);
    t.linear = (double *)malloc(PROBED * WIDTH1 * sizeof *t.linear);
    t.norm = (double *)malloc(PROBED * WIDTH1 * sizeof *t.norm);
    t.loss = (double *)malloc(t.epochs * t.steps * sizeof *t.loss);
    if (t.net && t.linear && t.norm && t.loss &&
        !training_order_start(&t.order, train.n, BATCH, INPUTS, r->seed))
        status = evaluate(&t, 0);
    for (epoch = 1; epoch <= t.epochs && status >= 0; epoch++) {
        status = train_epoch(&t, epoch);
        if (status >= 0) status = evaluate(&t, epoch);
    }
    if (status >= 0) status = record_losses(&t);
    training_order_free(&t.order);
    free(t.linear);
    free(t.norm);
    free(t.loss);
    free(block);
    return status < 0 ? -1 : 0;
}

/* ---- claims ---------------------------------------------------------------------------------- */

/* "504 ± 13", or "> 2360" if some seed never got there. */
static const char *steps_text(lab_report *r, size_t arm)
{
    const double all = lab_mean(r, arm, "steps", 0);
    if (lab_summary(r, arm, "steps_to_half", 0).max >= all) return lab_format(r, "> %.0f", all);
    return lab_text(r, arm, "steps_to_half", 0, 0);
}

static void judge_loss(lab_report *r, const lab_claim *c)
{
    const lab_curve epochs = lab_over_seeds(r, NONE, "epoch_loss");
    const lab_numbers half = lab_times(lab_all(r, NONE, "steps_to_half", 0), 0.5);
    const lab_numbers fast = lab_all(r, BATCH_UNIFORM, "steps_to_half", 0);
    size_t i, s, below = 0, all = epochs.n * half.n;
    for (i = 0; i < epochs.n; i++)
        for (s = 0; s < half.n; s++)
            below += lab_at(r, BATCH_UNIFORM, s, "epoch_loss", epochs.x[i]) <
                     lab_at(r, NONE, s, "epoch_loss", epochs.x[i]);
    lab_verdict(r, c,
                lab_less(lab_all(r, BATCH_UNIFORM, "epoch_loss", LAB_LAST),
                         lab_all(r, NONE, "epoch_loss", LAB_LAST),
                         below == all && stats_reproduced(lab_less(fast, half, 1))),
                "", "below in %lu of %lu; steps to loss 0.5: %s and %s", (unsigned long)below,
                (unsigned long)all, steps_text(r, BATCH_UNIFORM), steps_text(r, NONE));
}

/* How far the mean input of ReLU, as seen in training, is from where it began, in each seed. */
static lab_numbers drift(const lab_report *r, size_t arm)
{
    const char *name = arm == NONE ? "linear/mean" : "norm_train/mean";
    return lab_map(lab_calc(lab_all(r, arm, name, LAB_LAST), '-', lab_all(r, arm, name, 0)), fabs);
}

static void judge_centred(lab_report *r, const lab_claim *c)
{
    const lab_numbers with = drift(r, BATCH_UNIFORM), without = drift(r, NONE);
    stats_finding part[2];
    part[0] = lab_within(lab_all(r, BATCH_UNIFORM, "norm_infer/mean", LAB_LAST), 0, 0.3);
    part[1] = lab_less(with, without, 1);
    lab_verdict(r, c, stats_together(part, 2), "", "|mean| %.2f; drift %.2f with, %.2f without",
                fabs(lab_mean(r, BATCH_UNIFORM, "norm_infer/mean", LAB_LAST)), lab_average(with),
                lab_average(without));
}

/* clang-format off */
#define NOTEBOOK "a tutorial with a custom batch norm (the notebook behind it)"
static const lab_claim claims[] = {
    {"10a", "Batch norm reaches any given loss earlier", NOTEBOOK "; Ioffe & Szegedy 2015",
     "its curve lies below the other throughout; no number",
     "below no norm at every epoch of every seed, and a loss of 0.5 in at most half the steps, "
     "seed by seed",
     "trial runs (2 seeds): 1.48 against 2.28 in epoch 1, 0.435 against 1.54 in epoch 5, 0.166 "
     "against 0.38 in epoch 20", .judge = judge_loss},
    {"10b", "The notebook's logged losses", NOTEBOOK, "epoch 20: 0.395 and 0.162",
     "mean of batches 41 to 80 of epoch 20 within 0.03 of each, first loss 2.30 ± 0.03; seed by "
     "seed", "trial runs (2 seeds): 0.38 and 0.166",
     LAB_PARTS({LAB_WITHIN, NONE, 0, "window_loss", LAB_LAST, 0.395, 0.03},
               {LAB_WITHIN, BATCH_UNIFORM, 0, "window_loss", LAB_LAST, 0.162, 0.03},
               {LAB_WITHIN, NONE, 0, "loss", 1, 2.30, 0.03}),
     .decimals = 3, .say = "$1 and $2; first #3[%.3f]"},
    {"10c", "With batch norm, inputs to ReLU stay centred", NOTEBOOK,
     "a histogram around 0 with batch norm, around 0.5 and with a tail to 6 without",
     "exact but for what β learns (in training the pooled mean is that of β): |pooled mean| < "
     "0.3 after training; without a norm it drifts further, seed by seed",
     "trial runs (3 epochs on 10,000 images, seeds 11 and 12): see the page",
     .judge = judge_centred},
    {"10d", "With batch norm, they are still Gaussian", NOTEBOOK,
     "said of a histogram of all units together",
     "units: mean |skewness| < 0.5 and mean |excess kurtosis| < 1, seed by seed",
     "none before the criterion; the trial run of 10c, later, noted both down",
     LAB_PARTS({LAB_BELOW, BATCH_UNIFORM, 0, "norm_infer/unit_skew", LAB_LAST, 0.5},
               {LAB_BELOW, BATCH_UNIFORM, 0, "norm_infer/unit_kurtosis", LAB_LAST, 1},
               {.a = BATCH_UNIFORM, .series = "norm_infer/kurtosis", .at = LAB_LAST},
               {.a = NONE, .series = "linear/unit_skew", .at = LAB_LAST},
               {.a = NONE, .series = "linear/unit_kurtosis", .at = LAB_LAST}),
     .say = "units: #1[%.2f] and #2[%.2f]; all units pooled: excess kurtosis #3[%.1f]",
     .remark = "without a norm: #4[%.2f] and #5[%.2f]"}};
/* clang-format on */

static void check(lab_report *r)
{
    size_t a, s, touched = 0;
    for (a = NONE; a <= BATCH_UNIFORM; a++)
        for (s = 0; s < lab_seeds(r, a); s++) touched += lab_get(r, a, s, "touched").n;
    lab_check(r, touched == 0,
              "looking at a network leaves weights, statistics and noise as they are",
              "%lu looks changed something", (unsigned long)touched);
}

/* ---- figures --------------------------------------------------------------------------------- */

/* Each norm's, whatever its first γ. */
static plot_style style_of(size_t arm)
{
    return lab_style(arms[arm < MAIN_ARMS ? arm : arm - MAIN_ARMS + 1].id);
}

/* The notebook's logged losses, beside our curves of the same quantity. */
static void draw_logged(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    const double epoch[4] = {1, 5, 10, 20};
    const double none[4] = {2.292, 1.836, 0.679, 0.395}, batch[4] = {1.734, 0.477, 0.271, 0.162};
    (void)panel;
    if (lab_quick(r)) return;
    plot_scatter(p, NULL, epoch, none, 4, plot_marked(PLOT_INK, PLOT_RING));
    plot_scatter(p, NULL, epoch, batch, 4, plot_marked(PLOT_INK, PLOT_RING));
    plot_note(p, 10, 0.679, 0.62, 0.9, "rings: the source's log", PLOT_INK);
}

/* The source's figure: histograms of the first seed's units after training. Batch norm with the
   statistics of the batch, as in training: at the start the running ones say nothing. */
static void draw_overlay(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    double edges[BINS + 1];
    size_t i;
    (void)panel;
    for (i = 0; i <= BINS; i++) edges[i] = HIST_LO + (HIST_HI - HIST_LO) * (double)i / BINS;
    for (i = NONE; i <= BATCH_UNIFORM; i++) {
        const lab_series s = lab_get(r, i, 0,
                                     lab_format(r, "%s/density_%d", place_name[i ? TRAIN : BEFORE],
                                                lab_quick(r) ? 3 : EPOCHS));
        plot_hist(p, arms[i].name, edges, s.y, s.n, style_of(i));
    }
}

/* The same over the epochs. */
static void draw_ridges(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    const size_t arm = panel->arm;
    size_t i;
    for (i = 0; i < SHOWN; i++) {
        const lab_series s = lab_get(
            r, arm, 0,
            lab_format(r, "%s/density_%u", place_name[arm ? TRAIN : BEFORE], (unsigned)shown[i]));
        if (s.n > 0)
            plot_ridge(p, lab_format(r, i ? "%u" : "epoch %u", (unsigned)shown[i]), s.x, s.y, s.n,
                       plot_solid(style_of(arm).color));
    }
}

/* clang-format off */
static int draw(lab_report *r)
{
#define LOSS .y_scale = PLOT_LOG10, .y_range = {0.1, 2.5}, .y_ticks = tick, .y_names = tick_name, \
    .y_count = 5, .x_range = {0, epochs}, .legend = PLOT_LEGEND_DIRECT
#define ACCURACY .row = 1, .heading = "", .x = "epoch", .x_range = {0, epochs}, \
    .y_range = {lowest, highest}, .legend = PLOT_LEGEND_DIRECT
#define GAMMA_ONE(series) {{NONE, series}, {4, series, "batch norm"}, {5, series, "layer norm"}, \
    {6, series, "noisy batch norm"}}
#define UNITS .x = "input of ReLU", .x_range = {HIST_LO, HIST_HI}
    static const double tick[5] = {0.1, 0.2, 0.5, 1, 2};
    static const char *const tick_name[5] = {"0.1", "0.2", "0.5", "1", "2"};
    static const lab_page pages[2] = {
        {"At a rate of 0.01 every norm helps, and the first γ matters more than which norm", NULL,
         1280},
        {"Batch norm keeps the inputs of a ReLU around 0", "activations", 800,
         .settings = "The first hidden layer on 1000 test images, γ from U(0,1)", .seeds = 1}};
    const double epochs = lab_quick(r) ? 3 : EPOCHS, lowest = lab_quick(r) ? 0 : 80;
    const double highest = lab_quick(r) ? 0 : 98;
    const lab_panel curves[] = {
        {.axes = {.heading = "γ from U(0,1), as in the source", .y = "training loss (nats)", LOSS},
         .line = {{NONE, "window_loss", .to = MAIN_ARMS - 1}}, .draw = draw_logged},
        {.axes = {.col = 1, .heading = "γ = 1 at the start", LOSS},
         .line = GAMMA_ONE("window_loss")},
        {.axes = {.y = "test accuracy (%)", ACCURACY},
         .line = {{NONE, "accuracy", .to = MAIN_ARMS - 1}}},
        {.axes = {.col = 1, ACCURACY}, .line = GAMMA_ONE("accuracy")}};
    static const lab_panel activations[] = {
        {.axes = {.heading = "all 64 units after training", .y = "density",
                  .legend = PLOT_LEGEND_NONE, UNITS},
         .draw = draw_overlay,
         .mark = {{LAB_NOTE, 0.8, 0.8, "batch norm", PLOT_LEFT, PLOT_BLUE},
                  {LAB_NOTE, 2, 0.35, "no norm", PLOT_LEFT, PLOT_VERMILLION}}},
        {.axes = {.col = 1, .heading = "no norm, over the epochs", UNITS}, .draw = draw_ridges},
        {.axes = {.col = 2, .heading = "batch norm, over the epochs", UNITS}, .draw = draw_ridges,
         .arm = BATCH_UNIFORM}};
    return lab_draw(r, &pages[0], curves, LAB_COUNT(curves)) ||
           lab_draw(r, &pages[1], activations, LAB_COUNT(activations));
}
/* clang-format on */

/* The rows of the page's table. */
static void print_results(lab_report *r)
{
    size_t a;
    for (a = 0; a < ARMS; a++)
        printf("| %s | %s | %s | %s | %s |\n", arms[a].name,
               lab_text(r, a, "epoch_loss", LAB_LAST, 3), lab_text(r, a, "test_loss", LAB_LAST, 3),
               lab_text(r, a, "accuracy", LAB_LAST, 2), steps_text(r, a));
}

static int report(lab_report *r)
{
    check(r);
    lab_judge(r);
    print_results(r);
    return draw(r);
}

/* clang-format off */
static const lab_program program = {
    "10_mnist_norms", NRM_VERSION, "Batch, layer and noisy batch norm against none, on MNIST",
    SETTINGS, .revision = 2, .uses = LAB_USES_DATA, .arm = arms, .arms = ARMS, .prepare = prepare,
    .run = run, .report = report, .claim = claims, .claims = LAB_COUNT(claims), .look = style_of};
/* clang-format on */
LAB_MAIN(program)
