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
#include "lab/experiment.h"
#include "lab/files.h"

enum { WIDTH1 = 64, BATCH = 512, EPOCHS = 20, QUICK_EPOCHS = 3 };
enum { PROBED = 1000, BINS = 60, SHOWN = 7, WINDOW = 20 };
#define HIST_LO (-4.0)
#define HIST_HI 6.5

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

LAB_SETS(train, test, 0, 0, DATASET_RAW01);

static nrm_mlp_spec network(trainer *t)
{
    nrm_mlp_spec spec = training_notebook(t->layer, norm[t->run->arm]);
    t->layer[0].bias = t->layer[1].bias = t->run->arm != BATCH_NO_BIAS;
    spec.max_batch = PROBED;
    spec.gamma_init = gamma_init[t->run->arm];
    spec.lr = (nrm_real)0.01;
    return spec;
}

/* ---- the losses of a training ---------------------------------------------------------------- */

typedef struct losses {
    size_t epoch;                 /* steps of one                                              */
    double first;                 /* of the training                                           */
    double mean;                  /* of the present epoch                                      */
    double window, logged;        /* sum, number: its batches 41 to 80, as the notebook logged */
    double last[WINDOW], reached; /* the first step with a mean of the last ones below 0.5     */
} losses;

static losses *losses_of(const trainer *t)
{
    return (losses *)t->plan->context;
}

static int after(trainer *t)
{
    losses *of = losses_of(t);
    const size_t step = (t->step - 1) % of->epoch;
    if (t->step == 1) of->first = t->loss;
    if (step == 0) of->mean = of->window = of->logged = 0;
    of->mean += t->loss / (double)of->epoch;
    if (step > 40 && step <= 80) {
        of->window += t->loss;
        of->logged++;
    }
    of->last[t->step % WINDOW] = t->loss;
    if (!(of->reached > 0) && t->step >= WINDOW && stats_mean(of->last, WINDOW) < 0.5)
        of->reached = (double)t->step;
    if (step + 1 < of->epoch) return 0;
    lab_record(t->run, "epoch_loss", (double)(t->step / of->epoch), of->mean);
    lab_record(t->run, "window_loss", (double)(t->step / of->epoch),
               of->logged > 0 ? of->window / of->logged : of->mean);
    return 0;
}

static int end(trainer *t)
{
    const losses *of = losses_of(t);
    lab_record(t->run, "loss", 1, of->first);
    lab_record(t->run, "steps_to_half", 0, of->reached > 0 ? of->reached : (double)t->step);
    lab_record(t->run, "steps", 0, (double)t->step);
    return 0;
}

/* ---- the first hidden layer ------------------------------------------------------------------ */

/* The inputs of its ReLU, from the last pass over the images that are looked at. */
typedef struct inputs {
    double value[PROBED * WIDTH1];
    size_t n; /* images */
    int place;
} inputs;

static void take(void *context, const nrm_mlp_event *event)
{
    inputs *in = (inputs *)context;
    size_t i;
    if (event->layer != 0 || event->gradient || event->place != in->place) return;
    for (i = 0; i < event->rows * event->cols; i++) in->value[i] = (double)event->data[i];
}

/* Of all units together, and the sizes of skewness and kurtosis of the single ones, averaged. */
static void record_moments(lab_run *r, const char *place, double epoch, const inputs *in)
{
    const stats_summary all = stats_describe(in->value, in->n * WIDTH1);
    double unit[PROBED], skew = 0, kurtosis = 0;
    size_t u, i;
    for (u = 0; u < WIDTH1; u++) {
        stats_summary one;
        for (i = 0; i < in->n; i++) unit[i] = in->value[i * WIDTH1 + u];
        one = stats_describe(unit, in->n);
        skew += fabs(one.skew) / WIDTH1;
        kurtosis += fabs(one.kurtosis) / WIDTH1;
    }
    lab_record_as(r, epoch, all.mean, "%s/mean", place);
    lab_record_as(r, epoch, all.kurtosis, "%s/kurtosis", place);
    lab_record_as(r, epoch, skew, "%s/unit_skew", place);
    lab_record_as(r, epoch, kurtosis, "%s/unit_kurtosis", place);
}

static double edge(double i) /* of the histograms' bins */
{
    return HIST_LO + (HIST_HI - HIST_LO) / BINS * i;
}

static void record_density(lab_run *r, unsigned epoch, const inputs *in)
{
    double edges[BINS + 1], density[BINS];
    size_t i;
    for (i = 0; i <= BINS; i++) edges[i] = edge((double)i);
    (void)stats_histogram(in->value, in->n * WIDTH1, edges, BINS, density);
    for (i = 0; i < BINS; i++)
        lab_record_as(r, edge((double)i + 0.5), density[i], "density_%u", epoch);
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

/* With running statistics and, with batch norm, those of these images, as in training. Training
   goes on as if nothing had happened. */
static int look_inside(trainer *t, size_t epoch)
{
    const int none = t->run->arm == NONE;
    const uint64_t before = fingerprint(t->net);
    inputs *in = (inputs *)malloc(sizeof *in);
    int status;
    if (!in) return -1;
    in->n = test.n < PROBED ? test.n : PROBED;
    in->place = none ? NRM_AT_LINEAR : NRM_AT_NORM;
    t->net->probe = take;
    t->net->probe_context = in;
    status = nrm_mlp_forward(t->net, test.x, in->n, NRM_INFER);
    record_moments(t->run, none ? "linear" : "norm_infer", (double)epoch, in);
    if (status >= 0 && !none) {
        status = nrm_mlp_gradient(t->net, NULL, test.x, test.labels, in->n, NRM_TRAIN);
        record_moments(t->run, "norm_train", (double)epoch, in);
    }
    if (t->run->first) record_density(t->run, (unsigned)epoch, in);
    t->net->probe = NULL;
    free(in);
    if (before != fingerprint(t->net)) lab_record(t->run, "touched", (double)epoch, 1);
    return status < 0 ? -1 : 0;
}

/* ---- a run ----------------------------------------------------------------------------------- */

/* After each epoch, and before the first. */
static int look(trainer *t)
{
    const size_t epoch = t->step / losses_of(t)->epoch;
    double loss;
    const double accuracy = trainer_accuracy(t, &test, &loss);
    int is_shown = t->step == t->plan->steps;
    size_t i;
    lab_record(t->run, "test_loss", (double)epoch, loss);
    lab_record(t->run, "accuracy", (double)epoch, 100 * accuracy);
    for (i = 0; i < SHOWN; i++) is_shown |= shown[i] == epoch;
    if (isnan(accuracy)) return -1;
    return t->run->arm <= BATCH_UNIFORM && is_shown ? look_inside(t, epoch) : 0;
}

static int run(lab_run *r)
{
    losses of = {training_steps(train.n, BATCH)};
    /* without another training: each look is checked */
    const trainer_plan plan =
        trainer_plan_of(.network = network, .after = after, .look = look, .end = end, .set = &train,
                        .batch = BATCH, .steps = of.epoch * (r->quick ? QUICK_EPOCHS : EPOCHS),
                        .every = of.epoch, .look_first = 1, .no_repeat = 1, .context = &of);
    return trainer_run(r, &plan);
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

static void check_looks(lab_report *r)
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
    const char *name = lab_format(r, "density_%d", lab_quick(r) ? QUICK_EPOCHS : EPOCHS);
    double edges[BINS + 1];
    size_t i;
    (void)panel;
    for (i = 0; i <= BINS; i++) edges[i] = edge((double)i);
    for (i = NONE; i <= BATCH_UNIFORM; i++) {
        const lab_series s = lab_get(r, i, 0, name);
        plot_hist(p, arms[i].name, edges, s.y, s.n, style_of(i));
    }
}

/* The same over the epochs. */
static void draw_ridges(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    const plot_style style = plot_solid(style_of(panel->arm).color);
    size_t i;
    for (i = 0; i < SHOWN; i++) {
        const unsigned epoch = (unsigned)shown[i];
        const lab_series s = lab_get(r, panel->arm, 0, lab_format(r, "density_%u", epoch));
        if (s.n > 0)
            plot_ridge(p, lab_format(r, i ? "%u" : "epoch %u", epoch), s.x, s.y, s.n, style);
    }
}

/* clang-format off */
static const double tick[5] = {0.1, 0.2, 0.5, 1, 2};
static const char *const tick_name[5] = {"0.1", "0.2", "0.5", "1", "2"};
#define LOSS .y_scale = PLOT_LOG10, .y_range = {0.1, 2.5}, .y_ticks = tick, .y_names = tick_name, \
    .y_count = 5, .x_range = {0, EPOCHS}, .legend = PLOT_LEGEND_DIRECT
#define ACCURACY .row = 1, .heading = "", .x = "epoch", .x_range = {0, EPOCHS}, \
    .y_range = {80, 98}, .legend = PLOT_LEGEND_DIRECT
#define GAMMA_ONE(series) {{NONE, series}, {4, series, "batch norm"}, {5, series, "layer norm"}, \
    {6, series, "noisy batch norm"}}
#define UNITS .x = "input of ReLU", .x_range = {HIST_LO, HIST_HI}
static const lab_panel curves[] = {
    {.axes = {.heading = "γ from U(0,1), as in the source", .y = "training loss (nats)", LOSS},
     .line = {{NONE, "window_loss", .to = MAIN_ARMS - 1}}, .draw = draw_logged},
    {.axes = {.col = 1, .heading = "γ = 1 at the start", LOSS}, .line = GAMMA_ONE("window_loss")},
    {.axes = {.y = "test accuracy (%)", ACCURACY}, .full = 1,
     .line = {{NONE, "accuracy", .to = MAIN_ARMS - 1}}},
    {.axes = {.col = 1, ACCURACY}, .full = 1, .line = GAMMA_ONE("accuracy")}};

static const lab_panel activations[] = {
    {.axes = {.heading = "all 64 units after training", .y = "density",
              .legend = PLOT_LEGEND_NONE, UNITS},
     .draw = draw_overlay,
     .mark = {{LAB_NOTE, 0.8, 0.8, "batch norm", PLOT_LEFT, PLOT_BLUE},
              {LAB_NOTE, 2, 0.35, "no norm", PLOT_LEFT, PLOT_VERMILLION}}},
    {.axes = {.col = 1, .heading = "no norm, over the epochs", UNITS}, .draw = draw_ridges},
    {.axes = {.col = 2, .heading = "batch norm, over the epochs", UNITS}, .draw = draw_ridges,
     .arm = BATCH_UNIFORM}};

static const lab_page pages[] = {
    {"At a rate of 0.01 every norm helps, and the first γ matters more than which norm",
     .height = 1280, LAB_PANELS(curves)},
    {"Batch norm keeps the inputs of a ReLU around 0", "activations", 800,
     .settings = "The first hidden layer on 1000 test images, γ from U(0,1)", .seeds = 1,
     LAB_PANELS(activations)}};
/* clang-format on */

/* The checks; prints the rows of the page's table. */
static void after_claims(lab_report *r)
{
    size_t a;
    check_looks(r);
    for (a = 0; a < ARMS; a++)
        printf("| %s | %s | %s | %s | %s |\n", arms[a].name,
               lab_text(r, a, "epoch_loss", LAB_LAST, 3), lab_text(r, a, "test_loss", LAB_LAST, 3),
               lab_text(r, a, "accuracy", LAB_LAST, 2), steps_text(r, a));
}

LAB_PROGRAM("10_mnist_norms", "Batch, layer and noisy batch norm against none, on MNIST",
            "784-64-128-10, ReLU, SGD with learning rate 0.01, batches of 512, 20 epochs",
            .revision = 2, .uses = LAB_USES_DATA, .prepare = prepare, .look = style_of,
            .after = after_claims)
