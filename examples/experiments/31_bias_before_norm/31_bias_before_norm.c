/* 31_bias_before_norm: what becomes of a bias that batch norm takes away again? (README.md)

   Every 10 steps: the largest |dL/db| and |b| of both layers, and |dL/dβ| to compare. Every 50: how
   much the logits of a fixed batch change if b is set to 0, in train mode and in inference. */
#include "lab/experiment.h"

#define WIDTH 100
#define BATCH 128
#define STEPS 500
enum { LOGITS = BATCH * DATASET_CLASSES };
enum { SGD, ADAM, ADAM_LARGE, ADAM_SMALL, NO_NORM, ARMS };

static const lab_arm arms[ARMS] = {{"sgd", "SGD", 1},
                                   {"adam", "Adam, ε = 10^{-8}", 1},
                                   {"adam_1e-6", "Adam, ε = 10^{-6}", 1},
                                   {"adam_1e-10", "Adam, ε = 10^{-10}", 1},
                                   {"none_adam", "Adam, no norm", 1}};
static const double adam_eps[ARMS] = {1e-8, 1e-8, 1e-6, 1e-10, 1e-8};

/* ---- a run ----------------------------------------------------------------------------------- */

LAB_SET(train, quick ? 512 : STEPS *BATCH, DATASET_STD);

static nrm_mlp_spec network(trainer *t)
{
    const size_t arm = t->run->arm;
    nrm_mlp_spec spec =
        training_plain(t->layer, 2, WIDTH, NRM_RELU, arm == NO_NORM ? NRM_NO_NORM : NRM_BATCH_NORM);
    t->layer[0].bias = t->layer[1].bias = 1; /* what this is about */
    spec.optimizer = arm == SGD ? NRM_SGD : NRM_ADAM;
    spec.lr = (nrm_real)(arm == SGD ? 0.1 : 1e-3);
    spec.adam_eps = (nrm_real)adam_eps[arm];
    return spec;
}

/* The largest of an array of both hidden layers. */
static double largest(const nrm_real *first, const nrm_real *second)
{
    return stats_larger(training_farthest(first, NULL, WIDTH),
                        training_farthest(second, NULL, WIDTH));
}

static int logits_now(nrm_mlp *net, int mode, nrm_real *out)
{
    const int rc = mode == NRM_INFER
                       ? nrm_mlp_forward(net, train.x, BATCH, mode)
                       : nrm_mlp_gradient(net, NULL, train.x, train.labels, BATCH, mode);
    memcpy(out, net->logits, LOGITS * sizeof *out);
    return rc;
}

/* How much the logits of the first images change without b, which is put back. */
static int without(trainer *t, int mode, const char *series)
{
    nrm_mlp_state *layer = t->net->state;
    nrm_real with[LOGITS], less[LOGITS], kept[2][WIDTH];
    int l, rc = logits_now(t->net, mode, with);
    for (l = 0; l < 2; l++) {
        memcpy(kept[l], layer[l].b, sizeof kept[l]);
        memset(layer[l].b, 0, sizeof kept[l]);
    }
    if (rc >= 0) rc = logits_now(t->net, mode, less);
    for (l = 0; l < 2; l++) memcpy(layer[l].b, kept[l], sizeof kept[l]);
    lab_record(t->run, series, (double)t->step,
               training_farthest(less, with, LOGITS) / training_farthest(with, NULL, LOGITS));
    return rc < 0 ? -1 : 0;
}

static int look(trainer *t)
{
    const nrm_mlp_state *a = &t->net->state[0], *b = &t->net->state[1];
    const double step = (double)t->step;
    lab_record(t->run, "gradient", step, largest(a->db, b->db));
    lab_record(t->run, "bias", step, largest(a->b, b->b));
    if (a->dbeta) lab_record(t->run, "gradient_beta", step, largest(a->dbeta, b->dbeta));
    if (t->step % (t->run->quick ? 10 : 50) != 0) return 0;
    return without(t, NRM_TRAIN, "change_train") || without(t, NRM_INFER, "change_inference") ? -1
                                                                                              : 0;
}

static int run(lab_run *r)
{
    const trainer_plan plan =
        trainer_plan_of(.network = network, .look = look, .every = 10, .set = &train,
                        .batch = BATCH, .steps = r->quick ? 20 : STEPS);
    return trainer_run(r, &plan);
}

/* ---- claims ---------------------------------------------------------------------------------- */

static double at_end(const lab_report *r, size_t arm, const char *series)
{
    return lab_summary(r, arm, series, LAB_LAST).max;
}

static void judge_gradient(lab_report *r, const lab_claim *c)
{
    const double most =
        stats_larger(lab_largest(r, SGD, "gradient"), lab_largest(r, ADAM, "gradient"));
    lab_verdict(r, c, stats_holds(most < 1e-6), "", "%.1e at most; |dL/dβ| up to %.1e", most,
                lab_largest(r, SGD, "gradient_beta"));
}

static void judge_output(lab_report *r, const lab_claim *c)
{
    const double most =
        stats_larger(at_end(r, SGD, "change_train"), at_end(r, ADAM, "change_train"));
    lab_verdict(r, c, stats_holds(most < 1e-6),
                lab_format(r, "in inference: %.1e with SGD, %.1e with Adam",
                           at_end(r, SGD, "change_inference"), at_end(r, ADAM, "change_inference")),
                "%.1e at most", most);
}

static void judge_stays(lab_report *r, const lab_claim *c)
{
    const double most = at_end(r, SGD, "bias");
    lab_verdict(r, c, stats_holds(most < 1e-6), "", "|b| %.1e at most", most);
}

#define IOFFE "Ioffe & Szegedy 2015, section 3.2"
#define CANCELLED                                                                                  \
    "\"the bias b can be ignored since its effect will be canceled by the subsequent mean "        \
    "subtraction\""

static const lab_claim claims[] = {
    {"31a", "A bias before batch norm has no gradient", IOFFE, CANCELLED,
     "exact; in float the largest |dL/db| at all steps below 1e-6, SGD and Adam, every seed",
     "trial run (1 seed): at most 1.5e-8", LAB_IDENTITY, LAB_SETTING, judge_gradient},
    {"31b", "The outputs do not depend on it", IOFFE, CANCELLED,
     "exact; in float, train mode, b set to 0 after 500 steps: largest change / largest logit "
     "below 1e-6, SGD and Adam, every seed",
     "none", LAB_IDENTITY, LAB_SETTING, judge_output},
    {"31c", "Under SGD it stays where it was", "ours; a lecture-style post leaves it out",
     "no numbers", "exact; in float the largest |b| after 500 steps below 1e-6, every seed", "none",
     LAB_IDENTITY, LAB_SETTING, judge_stays},
    {"31d", "Under Adam it drifts", "ours, from trial runs", "no paper",
     "largest |b| after 500 steps: Adam > SGD, paired; mean above 1e-3, else partly",
     "trial run (1 seed): 2.5e-3 to 5e-3", LAB_TRAINING, LAB_SETTING,
     LAB_PARTS({LAB_MORE, ADAM, SGD, "bias", LAB_LAST, .a_mean = {1e-3, HUGE_VAL}},
               {.a = NO_NORM, .series = "bias", .at = LAB_LAST}),
     .say = "|b| #1[%.1e] with Adam, #2[%.1e] with SGD; without a norm #3[%.1e]"},
    {"31e", "What drifts is rounding, divided by Adam's ε", "ours", "no paper",
     "largest |b|: ε 1e-6 < 1e-8 < 1e-10, paired; 1e-6 below a tenth of 1e-8, else partly", "none",
     LAB_TRAINING, LAB_SETTING,
     LAB_PARTS({LAB_MORE, ADAM, ADAM_LARGE, "bias", LAB_LAST, .times = 10},
               {LAB_MORE, ADAM_SMALL, ADAM, "bias", LAB_LAST}),
     .say = "#2[%.1e], #1[%.1e], #3[%.1e]"}};

/* ---- figure ---------------------------------------------------------------------------------- */

static plot_style look_of(size_t arm)
{
    static const plot_style look[ARMS] = {{PLOT_INK},
                                          {PLOT_BLUE},
                                          {PLOT_SKY, .dash = PLOT_DASHDOT},
                                          {PLOT_PURPLE, .dash = PLOT_DOTTED},
                                          {PLOT_VERMILLION, .dash = PLOT_DASHED}};
    return look[arm];
}

/* Means, and bands from the lowest seed to the highest, on axes of the same twelve decades. */
#define AXES                                                                                       \
    .x = "step", .x_range = {0, STEPS}, .y_scale = PLOT_LOG10, .y_range = {1e-11, 10},             \
    .legend = PLOT_LEGEND_NONE
#define RANGE(arm, series) arm, series, ""
#define BESIDE(y, text, where) LAB_NOTE, 490, y, text, PLOT_RIGHT + (where)

static const lab_panel panels[] = {
    {.axes = {.heading = "gradient", .y = "largest |∂L/∂b|, |∂L/∂β|", AXES},
     .line = {{RANGE(NO_NORM, "gradient")},
              {RANGE(SGD, "gradient_beta"), .style = {PLOT_GREEN, .dash = PLOT_DASHDOT}},
              {RANGE(SGD, "gradient")},
              {RANGE(ADAM, "gradient")}},
     .mark = {{BESIDE(0.5, "β (dash-dot);", PLOT_ABOVE)},
              {BESIDE(0.05, "b, no norm (dashed)", PLOT_ABOVE)},
              {BESIDE(2e-8, "b before batch norm", PLOT_ABOVE)}}},
    {.axes = {.col = 1, .heading = "bias", .y = "largest |b|", AXES},
     .line = {{RANGE(SGD, "bias")},
              {RANGE(ADAM, "bias")},
              {RANGE(ADAM_LARGE, "bias")},
              {RANGE(ADAM_SMALL, "bias")},
              {RANGE(NO_NORM, "bias")}},
     .mark = {{BESIDE(1.2e-8, "SGD", PLOT_ABOVE)},
              {BESIDE(3e-3, "Adam, ε = 10^{-8}", PLOT_BELOW)},
              {BESIDE(4e-5, "Adam, ε = 10^{-6}", PLOT_BELOW)},
              {BESIDE(9e-2, "Adam, ε = 10^{-10} (dotted)", PLOT_ABOVE)},
              {BESIDE(0.9, "no norm (dashed);", PLOT_ABOVE)}}},
    {.axes = {.col = 2, .heading = "b set to 0", .y = "largest change / largest logit", AXES},
     .line = {{RANGE(ADAM, "change_inference")},
              {RANGE(ADAM, "change_train"), .style = {PLOT_SKY, .dash = PLOT_DASHED}},
              {RANGE(SGD, "change_train"), .style = {PLOT_INK, .dash = PLOT_DOTTED}}},
     .mark = {{BESIDE(3e-3, "inference, Adam", PLOT_ABOVE)},
              {BESIDE(4e-7, "train mode, Adam", PLOT_ABOVE)},
              {BESIDE(1e-8, "train mode, SGD (dotted)", PLOT_BELOW)}}}};

static const lab_page pages[] = {{"A bias before batch norm: no gradient, and what becomes of it",
                                  .height = 720, LAB_PANELS(panels)}};

LAB_PROGRAM("31_bias_before_norm", "What becomes of a bias that batch norm takes away again?",
            "784-" LAB_TEXT(WIDTH) "-" LAB_TEXT(
                WIDTH) "-10, ReLU, batch norm after each linear "
                       "layer with bias, standardized pixels, batches of " LAB_TEXT(
                           BATCH) ", SGD with rate 0.1 "
                                  "or Adam with 0.001, " LAB_TEXT(STEPS) " steps, in float",
            .revision = 1, .uses = LAB_USES_DATA + LAB_TWICE, .prepare = prepare, .look = look_of)
