/* 28_batch_mates: what do the other examples of a batch do to an example? (README.md) */
#define NRM_DOUBLE
#include "lab/experiment.h"
#include "lab/convolution.h"
#include "lab/draw.h"

enum { INPUTS = 784, CLASSES = 10, HIDDEN = 6, WIDTH = 100 };
enum { SIZES = 7, LEAST = 4, MOST = 256, DRAWS = 200, IMAGES = 5, POINTS = 121 };
enum { SUBSET = 2000, GAP_BATCH = 32, GAP_EPOCHS = 20 };
enum { CNN_BATCH = 32, CNN_IMAGES = 12000, WINDOW = 25 };

/* ---- the arms -------------------------------------------------------------------------------- */

/* clang-format off */
enum { MATES, GAP_NONE, GAP_BATCH_NORM, GAP_NONE_FAST, GAP_BATCH_FAST, CNN_NONE, CNN_BEFORE,
       CNN_AFTER, CNN_GROUP, CNN_LAYER, CNN_INSTANCE, CNN_NONE_FAST, CNN_BEFORE_FAST,
       CNN_AFTER_FAST, ARMS };
/* clang-format on */

static const lab_arm arms[ARMS] = {{"mates", "batch norm", 12, 12},
                                   {"gap_none", "no norm, learning rate 0.1", 3, 60},
                                   {"gap_batch", "batch norm, learning rate 0.1", 3, 60},
                                   {"gap_none_fast", "no norm, learning rate 0.5", 3, 20},
                                   {"gap_batch_fast", "batch norm, learning rate 0.5", 3, 60},
                                   {"cnn_none", "none", 4, 60},
                                   {"cnn_before", "batch, before ReLU", 4, 60},
                                   {"cnn_after", "batch, after ReLU", 4, 20},
                                   {"cnn_group", "group", 4, 0},
                                   {"cnn_layer", "layer", 4, 0},
                                   {"cnn_instance", "instance", 4, 0},
                                   {"cnn_none_fast", "none, 0.5", 4, 0},
                                   {"cnn_before_fast", "batch, before ReLU, 0.5", 4, 0},
                                   {"cnn_after_fast", "batch, after ReLU, 0.5", 4, 0}};

enum { NO_NORM = NRM_NO_NORM, BATCH = NRM_BATCH_NORM, GROUP = NRM_GROUP_NORM };
enum { LAYER = NRM_LAYER_NORM, INSTANCE = CONVOLUTION_INSTANCE };

static const struct setup {
    int norm, after; /* ReLU */
    double lr;
} setups[ARMS] = {{BATCH, 0, 0.1}, {NO_NORM, 0, 0.1}, {BATCH, 0, 0.1},    {NO_NORM, 0, 0.5},
                  {BATCH, 0, 0.5}, {NO_NORM, 0, 0.1}, {BATCH, 0, 0.1},    {BATCH, 1, 0.1},
                  {GROUP, 0, 0.1}, {LAYER, 0, 0.1},   {INSTANCE, 0, 0.1}, {NO_NORM, 0, 0.5},
                  {BATCH, 0, 0.5}, {BATCH, 1, 0.5}};

LAB_SETS(train, test, quick ? 400 : 0, quick ? 200 : 0, DATASET_STD);

static nrm_mlp_spec network(trainer *t)
{
    const struct setup *s = &setups[t->run->arm];
    nrm_mlp_spec spec = training_plain(t->layer, HIDDEN, WIDTH, NRM_RELU, s->norm);
    spec.max_batch = MOST;
    spec.lr = s->lr;
    return spec;
}

/* ---- batch mates ----------------------------------------------------------------------------- */

#define REACH 6.0 /* of the densities, on either side */

typedef struct mates {
    trainer train;
    nrm_rng rng;
    nrm_real x[MOST * INPUTS];
    int labels[MOST];
    double logit[CLASSES][DRAWS], inferred[CLASSES];
    size_t draws;
} mates;

/* The logits of one test image with m-1 training images drawn at random, many times. */
static int draw_mates(mates *g, size_t image, size_t m)
{
    size_t d, i, c;
    memcpy(g->x, test.x + image * INPUTS, INPUTS * sizeof *g->x);
    g->labels[0] = test.labels[image];
    for (d = 0; d < g->draws; d++) {
        int status;
        for (i = 1; i < m; i++) {
            const size_t from = nrm_rng_below(&g->rng, (uint32_t)train.n);
            memcpy(g->x + i * INPUTS, train.x + from * INPUTS, INPUTS * sizeof *g->x);
            g->labels[i] = train.labels[from];
        }
        status = nrm_mlp_gradient(g->train.net, NULL, g->x, g->labels, m, NRM_TRAIN);
        if (status < 0) return status;
        for (c = 0; c < CLASSES; c++) g->logit[c][d] = g->train.net->logits[c];
    }
    return NRM_OK;
}

static size_t largest(const double *value, size_t stride)
{
    size_t c, best = 0;
    for (c = 1; c < CLASSES; c++)
        if (value[c * stride] > value[best * stride]) best = c;
    return best;
}

/* How far the logits of the draws spread, and how often the decision is not that of inference. */
static void describe_mates(const mates *g, double *sd, double *flips)
{
    const size_t decided = largest(g->inferred, 1);
    double sum = 0, other = 0;
    size_t c, d;
    for (c = 0; c < CLASSES; c++) sum += pow(stats_describe(g->logit[c], g->draws).sd, 2);
    for (d = 0; d < g->draws; d++) other += largest(&g->logit[0][d], DRAWS) != decided;
    *sd = sqrt(sum / CLASSES);
    *flips = other / (double)g->draws;
}

/* The logit of the image's class, less that of inference: its density, of the sizes 4^k. */
static void record_density(lab_run *r, const mates *g, size_t m)
{
    const size_t label = (size_t)g->labels[0];
    double off[DRAWS], grid[POINTS], density[POINTS];
    size_t i;
    if (m != 4 && m != 16 && m != 64 && m != 256) return;
    for (i = 0; i < g->draws; i++) off[i] = g->logit[label][i] - g->inferred[label];
    for (i = 0; i < POINTS; i++) grid[i] = REACH * (2 * (double)i / (POINTS - 1) - 1);
    stats_sort(off, g->draws);
    if (stats_kde(off, g->draws, stats_bandwidth(off, g->draws), grid, POINTS, density)) return;
    for (i = 0; i < POINTS; i++)
        lab_record_as(r, grid[i], density[i], "density_%lu", (unsigned long)m);
}

static int mates_of_image(lab_run *r, mates *g, size_t image, double *sd, double *flips)
{
    size_t m, k, c;
    int status = nrm_mlp_forward(g->train.net, test.x + image * INPUTS, 1, NRM_INFER);
    for (c = 0; c < CLASSES; c++) g->inferred[c] = g->train.net->logits[c];
    for (m = LEAST, k = 0; m <= MOST && status >= 0; m *= 2, k++) {
        double this_sd, this_flips;
        status = draw_mates(g, image, m);
        if (status < 0) break;
        describe_mates(g, &this_sd, &this_flips);
        sd[k] += this_sd / IMAGES;
        flips[k] += this_flips / IMAGES;
        if (image == 0) lab_record(r, "sd", (double)m, this_sd);
        if (image == 0 && r->first) record_density(r, g, m);
    }
    return status;
}

static int run_mates(lab_run *r)
{
    const trainer_plan plan = {.network = network, .set = &train, .batch = 128};
    double sd[SIZES] = {0}, flips[SIZES] = {0};
    const size_t images = r->quick ? 1 : IMAGES;
    mates *g = (mates *)malloc(sizeof *g);
    size_t image, k;
    int failed;
    if (!g) return 1;
    g->draws = r->quick ? 10 : DRAWS;
    nrm_rng_seed(&g->rng, r->seed, TRAINING_STREAM_DATA + 1);
    failed = trainer_open(&g->train, r, &plan) || trainer_steps(&g->train, r->quick ? 20 : 500);
    for (image = 0; image < images && !failed; image++) {
        failed = mates_of_image(r, g, image, sd, flips) < 0;
        lab_progress(r, (double)(image + 1) / IMAGES);
    }
    for (k = 0; k < SIZES; k++) {
        lab_record(r, "sd_of_five", (double)(LEAST << k), sd[k]);
        lab_record(r, "flips", (double)(LEAST << k), flips[k]);
    }
    trainer_close(&g->train);
    free(g);
    return failed;
}

/* ---- generalization gap ---------------------------------------------------------------------- */

static int run_gap(lab_run *r)
{
    const size_t epochs = r->quick ? 4 : GAP_EPOCHS;
    training_set subset = train;
    const trainer_plan plan = {.network = network, .set = &subset, .batch = GAP_BATCH};
    trainer t;
    double loss = 0;
    size_t epoch;
    int failed;
    if (subset.n > SUBSET) subset.n = SUBSET;
    failed = trainer_open(&t, r, &plan);
    for (epoch = 1; epoch <= epochs && !failed; epoch++) {
        double seen, unseen;
        failed = trainer_steps(&t, training_steps(subset.n, GAP_BATCH));
        seen = trainer_accuracy(&t, &subset, &loss);
        unseen = trainer_accuracy(&t, &test, NULL);
        lab_record(r, "train_accuracy", (double)epoch, seen);
        lab_record(r, "test_accuracy", (double)epoch, unseen);
        lab_record(r, "gap", (double)epoch, seen - unseen);
        lab_progress(r, (double)epoch / (double)epochs);
    }
    lab_record(r, "diverged", (double)epochs, !isfinite(loss));
    trainer_close(&t);
    return failed;
}

/* ---- a convolutional network ----------------------------------------------------------------- */

static int cnn_train(lab_run *r, convolution_net *c, double lr)
{
    const size_t n = train.n < CNN_IMAGES ? train.n : CNN_IMAGES, every = r->quick ? 4 : WINDOW;
    const size_t steps = training_steps(n, CNN_BATCH);
    training_order order;
    double sum = 0;
    size_t step, i;
    int failed = training_order_start(&order, n, CNN_BATCH, INPUTS, r->seed);
    for (step = 1; !failed && training_next(&order, &train); step++) {
        nrm_acc loss = 0;
        failed = convolution_gradient(c, &loss, order.x, order.labels, order.count, 1);
        for (i = 0; i < c->params && !failed; i++) c->theta[i] -= lr * c->grad[i];
        sum += loss / (double)every;
        if (step % every == 0) lab_record(r, "loss", (double)step, sum);
        if (step % every == 0) sum = 0;
        lab_progress(r, (double)step / (double)steps * 0.8);
    }
    training_order_free(&order);
    return failed;
}

static int run_cnn(lab_run *r)
{
    const struct setup *s = &setups[r->arm];
    double right = 0;
    size_t i, n;
    convolution_net *c = convolution_make(s->norm, s->after, DATASET_SIDE, r->seed);
    int failed = !c || cnn_train(r, c, s->lr);
    for (i = 0; i < test.n && !failed; i += n) {
        nrm_acc share = 0;
        n = test.n - i < CONVOLUTION_BATCH ? test.n - i : (size_t)CONVOLUTION_BATCH;
        failed = convolution_forward(c, test.x + i * INPUTS, n, NRM_INFER, 1) ||
                 nrm_accuracy(&share, c->logits, test.labels + i, n, CLASSES) < 0;
        right += share * (double)n;
    }
    lab_record(r, "test_accuracy", s->lr, right / (double)test.n);
    free(c);
    return failed;
}

static int run(lab_run *r)
{
    if (r->arm == MATES) return run_mates(r);
    return r->arm < CNN_NONE ? run_gap(r) : run_cnn(r);
}

/* ---- batch norm of images, and of rows ------------------------------------------------------- */

enum { N_IMAGES = 3, C_IMAGES = 4, S_IMAGES = 6, CELLS = N_IMAGES * C_IMAGES * S_IMAGES };

typedef struct sample {
    nrm_real x[CELLS], dy[CELLS], gamma[C_IMAGES], beta[C_IMAGES];
} sample;

typedef struct result { /* forward and backward pass, running statistics */
    nrm_real y[CELLS], dx[CELLS], dgamma[C_IMAGES], dbeta[C_IMAGES], mean[C_IMAGES], var[C_IMAGES];
} result;

static sample draw(void)
{
    sample a;
    nrm_rng rng;
    size_t i;
    nrm_rng_seed(&rng, 1, 7);
    for (i = 0; i < CELLS; i++) a.x[i] = 2 * draw_normal(&rng) + (double)(i % 5);
    for (i = 0; i < CELLS; i++) a.dy[i] = draw_normal(&rng);
    for (i = 0; i < C_IMAGES; i++) a.gamma[i] = 1 + draw_uniform(&rng);
    for (i = 0; i < C_IMAGES; i++) a.beta[i] = draw_normal(&rng);
    return a;
}

/* Of N images of S cells; S = 1: of rows. */
static result batch_norm(const sample *a, size_t N, size_t S)
{
    nrm_acc mean[C_IMAGES], rstd[C_IMAGES];
    result out = {0};
    nrm_running running = {out.mean, out.var, 1, 0, 0, 0};
    (void)nrm_batchnorm_forward(out.y, mean, rstd, &running, a->x, a->gamma, a->beta, NRM_TRAIN,
                                NRM_EPS, N, C_IMAGES, S);
    (void)nrm_batchnorm_backward(out.dx, out.dgamma, out.dbeta, a->dy, a->x, mean, rstd, a->gamma,
                                 NRM_TRAIN, N, C_IMAGES, S);
    return out;
}

/* [N][C][S] to [N*S][C] */
static void turn(nrm_real *rows, const nrm_real *images)
{
    size_t n, c, i;
    for (n = 0; n < N_IMAGES; n++)
        for (c = 0; c < C_IMAGES; c++)
            for (i = 0; i < S_IMAGES; i++)
                rows[(n * S_IMAGES + i) * C_IMAGES + c] = images[(n * C_IMAGES + c) * S_IMAGES + i];
}

/* ---- claims ---------------------------------------------------------------------------------- */

/* log(sd) against log(m) from m = `from` on. */
static lab_numbers slope(const lab_report *r, const char *series, double from)
{
    lab_numbers a = {lab_seeds(r, MATES)};
    size_t s;
    for (s = 0; s < a.n; s++) a.of[s] = lab_slope(r, MATES, s, series, from, MOST, 1);
    return a;
}

static void judge_slope(lab_report *r, const lab_claim *c)
{
    const lab_numbers a = slope(r, "sd", 16);
    size_t s, inside = 0;
    for (s = 0; s < a.n; s++) inside += fabs(a.of[s] + 0.5) <= 0.1;
    lab_verdict(r, c, lab_within(a, -0.5, 0.1), "",
                "slope %s, inside in %lu of %lu; from m = 4: %.3f; mean sd of five "
                "images: %.3f; sd %.2f at m = 4, %.3f at 256",
                lab_pm(r, a, 3), (unsigned long)inside, (unsigned long)a.n,
                lab_average(slope(r, "sd", LEAST)), lab_average(slope(r, "sd_of_five", 16)),
                lab_mean(r, MATES, "sd", 4), lab_mean(r, MATES, "sd", 256));
}

static void judge_rows(lab_report *r, const lab_claim *c)
{
    const sample images = draw();
    const result of_images = batch_norm(&images, N_IMAGES, S_IMAGES);
    sample rows = images;
    result of_rows, turned = of_images;
    double off;
    turn(rows.x, images.x);
    turn(rows.dy, images.dy);
    of_rows = batch_norm(&rows, N_IMAGES * S_IMAGES, 1);
    turn(turned.y, of_images.y);
    turn(turned.dx, of_images.dx);
    off = training_farthest((const nrm_real *)&turned, (const nrm_real *)&of_rows,
                            sizeof turned / sizeof(nrm_real));
    lab_verdict(r, c, stats_holds(off < 1e-12), "", "differ by %.0e", off);
}

#define NOTES "Chinese notes on batch norm"

/* The last values of two arms: that of a is larger, or smaller. */
#define LAST(which, arm_a, arm_b, name)                                                            \
    .test = LAB_##which, .a = arm_a, .b = arm_b, .series = name, .at = LAB_LAST, .decimals = 4

/* clang-format off */
static const lab_claim claims[] = {
    {"28a", "What a network makes of one image varies with its batch mates, like 1/sqrt(m)",
     "ours, of a remark in Ioffe and Szegedy 2015, sec. 3.4, which has no law", "no numbers",
     "slope of log(sd of the logits) against log m, fitted from m = 16 to 256: -0.5 ± 0.1 in the "
     "mean, seed by seed",
     "trial run (1 network): sd 1.58, 0.977, 0.40, 0.283 at m = 4, 16, 128, 256; slope -0.46",
     .judge = judge_slope},
    {"28b", "Batch norm makes the generalization gap smaller", NOTES, "no numbers", "accuracy on "
     "the 2000 training images minus test accuracy after 20 epochs: smaller than without norm, "
     "learning rate 0.1 (sign only)", "none", LAST(LESS, GAP_BATCH_NORM, GAP_NONE, "gap")},
    {"28c", "A large learning rate makes the gap of batch norm smaller still",
     "Bjorck et al. 2018, via " NOTES, "no numbers for this setting", "gap after 20 epochs with "
     "learning rate 0.5 smaller than with 0.1, both with batch norm (sign only)", "none",
     LAST(LESS, GAP_BATCH_FAST, GAP_BATCH_NORM, "gap")},
    {"28d", "Batch norm generalizes better", NOTES "; Ioffe and Szegedy 2015, sec. 3.4",
     "no numbers for this setting", "test accuracy after 20 epochs on 2000 images above that "
     "without norm, learning rate 0.1 (sign only)", "none",
     LAST(MORE, GAP_BATCH_NORM, GAP_NONE, "test_accuracy")},
    {"28e", "With batch norm a large learning rate generalizes better",
     "Bjorck et al. 2018, Fig. 1", "CIFAR-10: the largest learning rate ends best", "test accuracy "
     "after 20 epochs with learning rate 0.5 above that with 0.1, both with batch norm (sign only)",
     "none", LAST(MORE, GAP_BATCH_FAST, GAP_BATCH_NORM, "test_accuracy")},
    {"28f", "In a convolutional network batch norm gives a better accuracy",
     NOTES "; caffenet-benchmark (ImageNet, single runs)",
     "accuracy 0.478 with batch norm before ReLU, 0.471 without", "test accuracy after one epoch "
     "on 12,000 images above that without norm, before ReLU, learning rate 0.1 (sign only)", "none",
     LAST(MORE, CNN_BEFORE, CNN_NONE, "test_accuracy")},
    {"28g", "In a convolutional network too, after ReLU is the better place for batch norm",
     NOTES "; caffenet-benchmark (ImageNet, single runs)",
     "with scale and bias, as here: accuracy 0.493 after, 0.478 before; without: 0.499, 0.474",
     "test accuracy of the convolutional network higher with the norm after ReLU, learning rate "
     "0.1 (sign only)",
     "none for convolutions; a dense network (3 seeds): 0.959 before, 0.958 after",
     LAST(MORE, CNN_AFTER, CNN_BEFORE, "test_accuracy")},
    {"28h", "Batch norm of images is batch norm of rows, a row for each position of each image",
     "a tutorial with a custom batch norm; " NOTES, "the formula and the code",
     "exact: outputs, gradients and running statistics to 1e-12; a check until after the run",
     "none", LAB_IDENTITY, LAB_SETTING, judge_rows}};
/* clang-format on */

/* ---- pages ----------------------------------------------------------------------------------- */

/* clang-format off */
#define SQUARE {PLOT_GREY, .dash = PLOT_DASHDOT, .marker = PLOT_SQUARE, .marker_every = 1}
/* clang-format on */

static void draw_slope(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    const double top = lab_mean(r, MATES, "sd", 64) * sqrt(64.0);
    const double x[2] = {LEAST, MOST}, y[2] = {top / sqrt(x[0]), top / sqrt(x[1])};
    (void)panel;
    plot_line(p, "slope -1/2 through m = 64", x, y, 2, plot_dashed(PLOT_INK));
    lab_plot(r, p, MATES, "sd", "first test image",
             plot_with_marker(plot_solid(PLOT_BLUE), PLOT_CIRCLE));
    lab_plot(r, p, MATES, "sd_of_five", "mean of five images", (plot_style)SQUARE);
}

static plot_style look_of(size_t arm)
{
    const int none = setups[arm].norm == NRM_NO_NORM;
    plot_style s = lab_style(none ? "none" : "batch");
    if (setups[arm].lr > 0.2) {
        s.color = none ? PLOT_VERMILLION : PLOT_BLUE;
        s.dash = none ? PLOT_DOTTED : PLOT_DASHDOT;
    }
    return s;
}

/* An arm with diverged networks has a line for each seed, and none for the gap: where a network
   decides nothing, both of its terms are 0. */
static void draw_gap(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    size_t arm;
    for (arm = GAP_NONE; arm <= GAP_BATCH_FAST; arm++) {
        const double seeds = (double)lab_seeds(r, arm);
        const double diverged = lab_mean(r, arm, "diverged", LAB_LAST) * seeds;
        plot_style style = look_of(arm);
        if (!(diverged > 0)) lab_plot(r, p, arm, panel->series, NULL, style);
        style.width = 0.8;
        if (diverged > 0 && strcmp(panel->series, "gap") != 0)
            lab_plot_seeds(
                r, p, arm, panel->series,
                lab_format(r, "%s: %.0f of %.0f diverged", arms[arm].name, diverged, seeds), style);
    }
}

/* clang-format off */
#define DENSITY(m, level, dashes)                                                                  \
    {MATES, "density_" #m, "m = " #m, {.dash = dashes}, LAB_ONE_SEED, 0, {level, 4}}
static const lab_panel of_mates[] = {
    {.axes = {.heading = "one logit, one network", .x = "logit: train mode - inference",
              .x_range = {-6, 4}, .y = "density"},
     .line = {DENSITY(4, 3, PLOT_DOTTED), DENSITY(16, 2, PLOT_DASHDOT),
              DENSITY(64, 1, PLOT_DASHED), DENSITY(256, 0, PLOT_SOLID)}},
    {.axes = {0, 1, .heading = "spread of the logits", .x = "batch size m", .x_scale = PLOT_LOG2,
              .y = "standard deviation", .y_scale = PLOT_LOG10},
     .draw = draw_slope},
    {.axes = {0, 2, .heading = "other decision than inference", .x = "batch size m",
              .x_scale = PLOT_LOG2, .y = "share of draws, five images", .legend = PLOT_LEGEND_NONE},
     .line = {{MATES, "flips", "mean of five images", SQUARE}}}};

#define GAP(column, title, what, low, high, name)                                                  \
    {.axes = {0, column, .heading = title, .x = "epoch", .y = what,                                \
              .y_range = {low, high}, .grid = PLOT_GRID_Y},                                        \
     .full = 1, .draw = draw_gap, .series = name}
static const lab_panel of_gaps[] = {
    GAP(0, "2000 training images", "accuracy", 0.7, 1.01, "train_accuracy"),
    GAP(1, "test images", "accuracy", 0.7, 1.01, "test_accuracy"),
    GAP(2, "gap: the one minus the other", "difference of accuracies", 0, 0.15, "gap")};

static const char *const shown[6] = {"none", "before", "after", "group", "layer", "instance"};
static const lab_panel of_convolutions[] = {
    {.axes = {.heading = "learning rate 0.1", .x = "step", .y = "training loss, mean of 25 steps",
              .y_scale = PLOT_LOG10, .grid = PLOT_GRID_Y},
     .line = {{CNN_NONE, "loss", NULL, {PLOT_VERMILLION, .dash = PLOT_DASHED}, LAB_MEAN},
              {CNN_BEFORE, "loss", NULL, {PLOT_BLUE}, LAB_MEAN},
              {CNN_AFTER, "loss", NULL, {PLOT_RGB(120, 170, 215), .dash = PLOT_DOTTED}, LAB_MEAN},
              {CNN_GROUP, "loss", NULL, {PLOT_ORANGE, .dash = PLOT_DASHDOT}, LAB_MEAN},
              {CNN_LAYER, "loss", NULL, {PLOT_GREEN, .dash = PLOT_DASHED}, LAB_MEAN},
              {CNN_INSTANCE, "loss", NULL, {PLOT_INK, .dash = PLOT_DOTTED}, LAB_MEAN}}},
    {.axes = {0, 1, .heading = "learning rate 0.1", .y = "test error (%)", .x_names = shown,
              .x_count = 6},
     .line = {{CNN_NONE, "test_accuracy", NULL, {PLOT_GREY}, LAB_ERRORS, CNN_INSTANCE}},
     .value = 1},
    {.axes = {0, 2, .heading = "learning rate 0.5", .y = "test error (%)", .x_names = shown,
              .x_count = 3},
     .line = {{CNN_NONE_FAST, "test_accuracy", NULL, {PLOT_GREY}, LAB_ERRORS, CNN_AFTER_FAST}},
     .value = 1}};

static const lab_page pages[] = {
    {"What a network makes of an image varies with its batch mates, like 1/√m", NULL, 760,
     .settings = "784-100x6-10, ReLU, trained; one test image in batches with other images, drawn "
                 "again and again", .seeds = 12, LAB_PANELS(of_mates)},
    {"Trained on 2000 images, batch norm and none end within a point", "gap", 800,
     .settings = "784-100x6-10, ReLU, 20 epochs of SGD on 2000 images, batches of 32", .seeds = 60,
     .shared_legend = 1, LAB_PANELS(of_gaps)},
    {"In a small convolutional network no norm is far ahead at rate 0.1", "conv", 760,
     .settings = "8 and 16 channels 3x3, ReLU, one epoch of 12,000 images, batches of 32; bars: "
                 "means and standard deviations; after ReLU: 20 seeds, group, layer, instance, "
                 "c: 5", .seeds = 60, .widths = {1, 1.1, 0.7}, LAB_PANELS(of_convolutions)}};
/* clang-format on */

LAB_PROGRAM(
    "28_batch_mates",
    "How much do its batch mates change what a network makes of an image, and is it any good?",
    "dense: 784-100x6-10, ReLU, SGD 0.1 and 0.5; convolutions: 8 and 16 channels 3x3, batch 32, "
    "12,000 images",
    .revision = 1, .uses = LAB_USES_DATA, .prepare = prepare)
