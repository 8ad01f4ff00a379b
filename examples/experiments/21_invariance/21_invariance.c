/* 21_invariance: which changes of weights and data does a trained network not see? (README.md)

   The first layer of a trained network and its data are changed in six ways, with an ε that is as
   good as none and with that of the training; a cell is the largest change of a logit over the
   largest logit. Then the gradients, which have their own equation for each invariance. The one
   unit that is changed is the most active one, since a silent one would not be seen without a norm
   either; weight norm is the network without norm whose W is made from v = W and the lengths of
   its columns. */
#define NRM_DOUBLE
#include "lab/experiment.h"
#include "lab/draw.h"

enum { WIDTH = 100, CLASSES = 10, BATCH = 128, STEPS = 200, LOOKED_AT = 64, GROUPS = 10 };
enum { BATCH_NORM, WEIGHT, LAYER, GROUP, RMS, NONE, ARMS, INFERENCE = ARMS, LINES };
enum { W_SCALED, W_SHIFTED, UNIT_SCALED, DATA_SCALED, DATA_SHIFTED, ONE_SCALED, CHANGES };
enum { UNCHANGED = CHANGES };
enum { SCALE_LAW, ALL_ORTHOGONAL, SHIFT_LAW, UNIT_ORTHOGONAL, LAWS };
#define DELTA 3.7
#define EXACT 1e-30 /* as good as no ε */
#define REAL_EPS 1e-5

static const lab_arm arms[ARMS] = {{"batch", "batch norm", 2, 0}, {"weight", "weight norm", 1, 0},
                                   {"layer", "layer norm", 2, 0}, {"group", "group norm", 2, 0},
                                   {"rms", "RMSNorm", 2, 0},      {"none", "none", 1, 0}};
static const int norm_of[ARMS] = {NRM_BATCH_NORM, NRM_NO_NORM,  NRM_LAYER_NORM,
                                  NRM_GROUP_NORM, NRM_RMS_NORM, NRM_NO_NORM};

LAB_SET(train_set, quick ? 512 : STEPS *BATCH, DATASET_STD);

/* ---- a run ----------------------------------------------------------------------------------- */

enum { N_W = DATASET_PIXELS * WIDTH, N_X = DATASET_PIXELS * LOOKED_AT };

typedef struct subject { /* a trained network, and what is done to it */
    lab_run *run;
    nrm_mlp *net;
    nrm_mlp_state *first; /* its first layer */
    size_t unit;
    nrm_real W[N_W], x[N_X];                   /* as they were                              */
    nrm_real v[N_W], x_now[N_X];               /* as they are now                           */
    nrm_real gradient[N_W];                    /* then, by what is learned: of weight norm v */
    nrm_real c[DATASET_PIXELS], length[WIDTH]; /* a random vector; of W's columns           */
    nrm_acc norm[WIDTH];                       /* of v's columns, for weight norm           */
} subject;

/* The plan's context: of a network with a bias before a norm, where the largest |dL/db| goes. */
static nrm_mlp_spec network(trainer *t)
{
    nrm_mlp_spec spec = training_plain(t->layer, 2, WIDTH, NRM_RELU, norm_of[t->run->arm]);
    size_t l;
    for (l = 0; l < 2; l++) {
        t->layer[l].groups = GROUPS;
        t->layer[l].bias = t->plan->context != NULL;
    }
    spec.eps = REAL_EPS;
    spec.lr = 0.1;
    return spec;
}

static int note_bias(trainer *t)
{
    double *most = (double *)t->plan->context;
    size_t l;
    for (l = 0; l < 2; l++)
        *most = fmax(*most, training_farthest(t->net->state[l].db, NULL, WIDTH));
    return 0;
}

/* Weights and data with one change. */
static void change(subject *s, int which)
{
    const double by = which == W_SHIFTED ? training_rms(s->W, N_W) : training_rms(s->x, N_X);
    size_t i;
    draw_normals(s->c, DATASET_PIXELS, by, s->run->seed, 30);
    for (i = 0; i < N_W; i++) {
        const int scaled = which == W_SCALED || (which == UNIT_SCALED && i % WIDTH == s->unit);
        s->v[i] = (scaled ? DELTA : 1) * s->W[i] + (which == W_SHIFTED ? s->c[i / WIDTH] : 0);
    }
    for (i = 0; i < N_X; i++) {
        const int scaled = which == DATA_SCALED || (which == ONE_SCALED && i < DATASET_PIXELS);
        const double shift = which == DATA_SHIFTED ? s->c[i % DATASET_PIXELS] : 0;
        s->x_now[i] = (scaled ? DELTA : 1) * s->x[i] + shift;
    }
}

/* With this change the logits and, but in inference, the gradient by what is learned. */
static int pass(subject *s, int which, int mode)
{
    const size_t in = DATASET_PIXELS;
    int rc = NRM_OK;
    change(s, which);
    memcpy(s->first->W, s->v, sizeof s->v);
    if (s->run->arm == WEIGHT)
        rc = nrm_weightnorm_forward(s->first->W, s->norm, s->v, s->length, in, WIDTH);
    if (rc < 0) return rc;
    if (mode == NRM_INFER) return nrm_mlp_forward(s->net, s->x_now, LOOKED_AT, mode);
    rc = nrm_mlp_gradient(s->net, NULL, s->x_now, train_set.labels, LOOKED_AT, mode);
    memcpy(s->gradient, s->first->dW, sizeof s->gradient);
    if (s->run->arm != WEIGHT || rc < 0) return rc;
    memset(s->gradient, 0, sizeof s->gradient);
    return nrm_weightnorm_backward(s->gradient, NULL, s->first->dW, s->v, s->norm, s->length, in,
                                   WIDTH);
}

static int measure_outputs(subject *s, int mode, const char *series)
{
    enum { LOGITS = LOOKED_AT * CLASSES };
    nrm_real before[LOGITS];
    int which, rc = pass(s, UNCHANGED, mode);
    memcpy(before, s->net->logits, sizeof before);
    for (which = 0; which < CHANGES && rc >= 0; which++) {
        rc = pass(s, which, mode);
        lab_record(s->run, series, which,
                   training_farthest(s->net->logits, before, LOGITS) /
                       training_farthest(before, NULL, LOGITS));
    }
    return rc;
}

static int measure_gradients(subject *s)
{
    static nrm_real dW[N_W];
    double worst = 0, sums = 0, terms = 0;
    size_t i, j;
    int rc = pass(s, UNCHANGED, NRM_TRAIN);
    memcpy(dW, s->gradient, sizeof dW);
    if (rc >= 0) rc = pass(s, W_SCALED, NRM_TRAIN);
    for (i = 0; i < N_W; i++) worst = fmax(worst, fabs((double)(DELTA * s->gradient[i] - dW[i])));
    lab_record(s->run, "law", SCALE_LAW, worst / training_farthest(dW, NULL, N_W));
    lab_record(s->run, "law", ALL_ORTHOGONAL, training_cosine(s->W, dW, N_W, 1));
    for (i = 0; i < DATASET_PIXELS; i++) {
        double sum = 0;
        for (j = 0; j < WIDTH; j++) {
            sum += (double)dW[i * WIDTH + j];
            terms += fabs((double)dW[i * WIDTH + j]);
        }
        sums += fabs(sum);
    }
    lab_record(s->run, "law", SHIFT_LAW, sums / terms);
    lab_record(s->run, "law", UNIT_ORTHOGONAL, training_cosine(s->W, dW, DATASET_PIXELS, WIDTH));
    return rc;
}

/* With the ε of the training: by how much do a unit's outputs grow if all weights are scaled?
   Against the variance of its summed inputs. */
static int measure_growth(subject *s)
{
    nrm_acc rstd[WIDTH];
    size_t j;
    int rc = pass(s, UNCHANGED, NRM_TRAIN);
    memcpy(rstd, s->first->rstd, sizeof rstd);
    if (rc >= 0) rc = pass(s, W_SCALED, NRM_TRAIN);
    for (j = 0; j < WIDTH && rc >= 0; j++)
        lab_record(s->run, "growth", 1 / (double)(rstd[j] * rstd[j]) - REAL_EPS,
                   (double)(DELTA * s->first->rstd[j] / rstd[j]) - 1);
    return rc;
}

static void subject_make(subject *s, lab_run *r, nrm_mlp *net)
{
    size_t i, j;
    double most = -1;
    s->run = r;
    s->net = net;
    s->first = &net->state[0];
    memcpy(s->W, s->first->W, sizeof s->W);
    memcpy(s->x, train_set.x, sizeof s->x);
    for (j = 0; j < WIDTH; j++) {
        double sum = 0, active = 0;
        for (i = 0; i < DATASET_PIXELS; i++) sum += s->W[i * WIDTH + j] * s->W[i * WIDTH + j];
        s->length[j] = sqrt(sum);
        for (i = 0; i < LOOKED_AT; i++) active += (double)s->first->act_out[i * WIDTH + j];
        if (active > most) s->unit = j;
        most = fmax(most, active);
    }
}

static int measure(trainer *t)
{
    lab_run *r = t->run;
    nrm_mlp *net = t->net;
    static subject s;
    int rc = nrm_mlp_gradient(net, NULL, train_set.x, train_set.labels, LOOKED_AT, NRM_TRAIN);
    subject_make(&s, r, net);
    if (rc >= 0) rc = measure_outputs(&s, NRM_TRAIN, "change_real_eps");
    if (rc >= 0 && r->arm == BATCH_NORM) rc = measure_growth(&s);
    if (rc >= 0 && r->arm == BATCH_NORM)
        rc = measure_outputs(&s, NRM_INFER, "change_inference_real_eps");
    net->spec.eps = EXACT;
    if (rc >= 0) rc = measure_outputs(&s, NRM_TRAIN, "change");
    if (rc >= 0 && r->arm == BATCH_NORM) rc = measure_outputs(&s, NRM_INFER, "change_inference");
    if (rc >= 0) rc = measure_gradients(&s);
    return rc < 0 ? -1 : 0;
}

static int run(lab_run *r)
{
    double most = 0;
    const size_t steps = r->quick ? 4 : STEPS;
    const trainer_plan plan = {network, .end = measure, .set = &train_set, .batch = BATCH,
                               .steps = steps};
    const trainer_plan with_bias = {network,        .after = note_bias, .set = &train_set,
                                    .batch = BATCH, .steps = steps,     .context = &most};
    if (trainer_run(r, &plan)) return -1;
    if (r->arm != BATCH_NORM) return 0;
    if (trainer_run(r, &with_bias)) return -1;
    lab_record(r, "bias_gradient", 0, most);
    return 0;
}

/* ---- what the records say -------------------------------------------------------------------- */

static const char *const line_name[LINES] = {"batch norm",           "weight norm", "layer norm",
                                             "group norm",           "RMSNorm",     "none",
                                             "batch norm, inference"};

/* Lines of the table: the arms, and the batch arm in inference. */
static size_t arm_of(int line)
{
    return line == INFERENCE ? BATCH_NORM : (size_t)line;
}

static const char *series_of(int line, int real_eps)
{
    if (line == INFERENCE) return real_eps ? "change_inference_real_eps" : "change_inference";
    return real_eps ? "change_real_eps" : "change";
}

/* In every seed. */
static int unseen(const lab_report *r, int line, int which)
{
    return lab_summary(r, arm_of(line), series_of(line, 0), which).max < 1e-12;
}

static int seen(const lab_report *r, int line, int which)
{
    return lab_summary(r, arm_of(line), series_of(line, 0), which).min > 1e-2;
}

/* How many of batch, weight and layer norm do not see it? */
static int blind(const lab_report *r, int which)
{
    return unseen(r, BATCH_NORM, which) + unseen(r, WEIGHT, which) + unseen(r, LAYER, which);
}

/* The largest over the seeds, of a change without ε or of an equation's error. */
static double most(const lab_report *r, size_t arm, const char *series, int x)
{
    return lab_summary(r, arm, series, x).max;
}

/* The papers' tables: 1 where nothing changes. Group norm is not in them. */
static const int table[LINES][CHANGES] = {
    {1, 0, 1, 1, 1, 0}, {1, 0, 1, 0, 0, 0}, {1, 1, 0, 1, 0, 1}, {1, 1, 0, 1, 0, 1},
    {1, 0, 0, 1, 0, 1}, {0, 0, 0, 0, 0, 0}, {0, 0, 0, 0, 0, 0}};

static int as_in_table(const lab_report *r, int line)
{
    int which, right = 0;
    for (which = 0; which < CHANGES; which++)
        right += table[line][which] ? unseen(r, line, which) : seen(r, line, which);
    return right;
}

/* ---- verdicts -------------------------------------------------------------------------------- */

/* How many cells of the lines c->a to c->b are as in the paper's table: all of them, or at least
   c->limit for "partly". */
static void judge_table(lab_report *r, const lab_claim *c)
{
    const int cells = CHANGES * (int)(c->b - c->a + 1);
    int line, right = 0;
    for (line = (int)c->a; line <= (int)c->b; line++) right += as_in_table(r, line);
    lab_verdict(r, c, stats_holds_partly(right == cells, right >= c->limit), "", "%d of %d cells",
                right, cells);
}

static void judge_scaled_data(lab_report *r, const lab_claim *c)
{
    const int n = blind(r, DATA_SCALED);
    lab_verdict(r, c, stats_holds_partly(n == 3, n > 0), "",
                "%d of 3 norms; change: weight norm %.2f in the mean, batch norm %.0e and layer "
                "norm %.0e at most",
                n, lab_mean(r, WEIGHT, "change", DATA_SCALED),
                most(r, BATCH_NORM, "change", DATA_SCALED), most(r, LAYER, "change", DATA_SCALED));
}

static void judge_weights(lab_report *r, const lab_claim *c)
{
    const int scaled = blind(r, W_SCALED), shifted = blind(r, W_SHIFTED);
    lab_verdict(r, c, stats_holds_partly(scaled == 3 && shifted == 3, scaled + shifted > 0),
                lab_format(r, "W re-centred: batch norm %.2f, weight norm %.2f, layer norm %.0e",
                           lab_mean(r, BATCH_NORM, "change", W_SHIFTED),
                           lab_mean(r, WEIGHT, "change", W_SHIFTED),
                           lab_mean(r, LAYER, "change", W_SHIFTED)),
                "scaling: %d of 3 norms; shifting: %d of 3", scaled, shifted);
}

static void judge_shifted_data(lab_report *r, const lab_claim *c)
{
    const int n = blind(r, DATA_SHIFTED);
    lab_verdict(r, c, stats_holds_partly(n == 3, n > 0), "",
                "%d of 3 norms; change: batch norm %.0e at most, weight norm %.2f and layer norm "
                "%.2f in the mean",
                n, most(r, BATCH_NORM, "change", DATA_SHIFTED),
                lab_mean(r, WEIGHT, "change", DATA_SHIFTED),
                lab_mean(r, LAYER, "change", DATA_SHIFTED));
}

/* The growth by the approximation, and how far the exact growth is from it at most. */
static double growth_by(double variance)
{
    return REAL_EPS * (1 - 1 / (DELTA * DELTA)) / (2 * variance);
}

static void check_growth(lab_report *r)
{
    lab_check(r, fabs(growth_by(1) - 4.635e-6) < 1e-8, "a growth of 4.6e-6 at variance 1, ε = 1e-5",
              "%.3e", growth_by(1));
}

static void judge_growth(lab_report *r, const lab_claim *c)
{
    const double bias = most(r, BATCH_NORM, "bias_gradient", 0);
    double worst = 0, smallest = HUGE_VAL;
    size_t s, i, units = 0;
    for (s = 0; s < lab_seeds(r, BATCH_NORM); s++) {
        const lab_series g = lab_get(r, BATCH_NORM, s, "growth");
        for (i = 0; i < g.n; i++) {
            smallest = stats_smaller(smallest, g.x[i]);
            if (g.x[i] <= 0.01) continue;
            units++;
            worst = stats_larger(worst, fabs(g.y[i] / growth_by(g.x[i]) - 1));
        }
    }
    lab_check(r, bias < 1e-12, "a bias before batch norm has no gradient, in double",
              "%.0e at most of all steps", bias);
    lab_verdict(r, c, stats_holds(units > 0 && worst < 0.01),
                lab_format(r, "smallest variance of a unit: %.3g", smallest),
                "at most %.2g %% off in %zu units", 100 * worst, units);
}

static const char one_layer[] = "trial run (1 seed, one layer, random numbers): as in the table";
static const char ba[] = "Ba, Kiros & Hinton 2016, Table 1";

/* clang-format off */
#define LAW(norm, law) /* this one alone */                                                        \
    {LAB_EXACT, norm, .series = "law", .at = law, .to = law + 0.5, .limit = 1e-10}
static const lab_claim claims[] = {
    {"21a", "Ba et al.'s table of invariances, for the logits of a trained network", ba,
     "18 cells: batch norm not invariant to re-centred W and one re-scaled case; weight norm only "
     "to re-scaled W and weight vectors; layer norm to all but re-scaled weight vectors and "
     "re-centred data",
     "exact: change below 1e-12 where invariant, else above 1e-2, every seed: 18 of 18; partly: 16",
     one_layer, LAB_IDENTITY, LAB_SETTING, judge_table, .a = BATCH_NORM, .b = LAYER, .limit = 16},
    {"21d", "RMSNorm does not see scaled W, scaled data, one scaled example; it sees the rest",
     "Zhang & Sennrich 2019, Table 1",
     "re-scaling of W, data and single case: yes; re-centring and single weight vectors: no",
     "exact: as above, 6 of 6 cells; partly: 5", one_layer, LAB_IDENTITY, LAB_SETTING,
     judge_table, .a = RMS, .b = RMS, .limit = 5},
    {"21b", "All the normalization methods are invariant to re-scaling the data set",
     "Ba, Kiros & Hinton 2016, section 5.1", "the text says so; Table 1 says no for weight norm",
     "change below 1e-12 for batch, weight and layer norm, every seed",
     "trial run (1 seed, one layer): not weight norm. Expected to fail", LAB_IDENTITY, LAB_ALGEBRA,
     judge_scaled_data},
    {"21c", "The norms are invariant to scaling and shifting of the weights",
     "a tutorial on batch and layer norm", "no numbers",
     "W scaled, W re-centred: below 1e-12 for batch, weight and layer norm, every seed",
     "trial run (1 seed, one layer): shifts only layer norm. Expected to fail", LAB_IDENTITY,
     LAB_ALGEBRA, judge_weights},
    {"21i", "The norms are invariant to shifting of the data", "a tutorial on batch and layer norm",
     "no numbers", "data re-centred: below 1e-12 for batch, weight and layer norm, every seed. "
     "Added after the run", "trial run (1 seed, one layer): batch norm only. Expected to fail",
     LAB_IDENTITY, LAB_ALGEBRA, judge_shifted_data},
    {"21e", "Weights larger by a have a gradient smaller by a", "Ioffe & Szegedy 2015, section 3.3",
     "∂BN((aW)u)/∂(aW) = (1/a)·∂BN(Wu)/∂W",
     "exact: relative error below 1e-10, batch and weight norm, every seed",
     "trial run (1 seed, one layer): 1e-10 met", LAB_IDENTITY, LAB_SETTING,
     LAB_PARTS(LAW(BATCH_NORM, SCALE_LAW), LAW(WEIGHT, SCALE_LAW)),
     .say = "relative error #1..2[max %.0e] at most"},
    {"21f", "The gradient of a unit's weights is orthogonal to them",
     "Kohler et al. 2018; Ba et al. 2016, section 5", "follows from invariance",
     "exact: |cosine| below 1e-10 for every unit, batch and weight norm, every seed",
     "trial run (1 seed, one layer): 1e-10 met", LAB_IDENTITY, LAB_SETTING,
     LAB_PARTS(LAW(BATCH_NORM, UNIT_ORTHOGONAL), LAW(WEIGHT, UNIT_ORTHOGONAL),
               {.a = LAYER, .series = "law", .at = UNIT_ORTHOGONAL},
               {.a = NONE, .series = "law", .at = UNIT_ORTHOGONAL}),
     .say = "|cosine| #1..2[max %.0e] at most; layer norm #3[%.2f], none #4[%.2f]"},
    {"21h", "ε is what is left to be seen: a growth of ε(1 - 1/δ²)/(2σ²)", "ours", "no paper",
     "exact to 1 %, in every unit with σ² > 0.01", "trial run (1 seed, one layer): met",
     LAB_IDENTITY, LAB_SETTING, judge_growth}};
/* clang-format on */

/* ---- figures --------------------------------------------------------------------------------- */

/* A cell for each line and column: the mean, or ✓ if it is small in all seeds, whose largest gives
   the colour. Of the logits, panel->other 1: with the ε of the training; or of the gradients, whose
   equations the network in inference has none of. */
static void draw_changes(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    static const char *const change_name[CHANGES] = {
        "W × 3.7",    "W re-centred",    "one unit's W × 3.7",
        "data × 3.7", "data re-centred", "one image × 3.7"};
    static const char *const law_name[LAWS] = {"a·∇L(aW) = ∇L(W)", "⟨W, ∇W⟩ = 0",
                                               "∑_{j} ∇w_{j} = 0", "⟨w_{j}, ∇w_{j}⟩ = 0"};
    static const int order[LINES] = {NONE, RMS, GROUP, LAYER, WEIGHT, INFERENCE, BATCH_NORM};
    static const double at[LINES] = {0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5};
    const int laws = panel->series != NULL, cols = laws ? (int)LAWS : (int)CHANGES;
    const double ok = laws ? 1e-10 : 1e-12;
    const char *label[LINES];
    stats_summary cell[LINES * CHANGES];
    double heat[LINES * CHANGES];
    int i, j, rows = 0;
    for (i = 0; i < LINES; i++) {
        const char *series = laws ? panel->series : series_of(order[i], panel->other == 1);
        if (laws && order[i] == INFERENCE) continue;
        label[rows] = line_name[order[i]];
        for (j = 0; j < cols; j++)
            cell[rows * cols + j] = lab_summary(r, arm_of(order[i]), series, j);
        rows++;
    }
    for (i = 0; i < rows * cols; i++) heat[i] = fmax(-16, log10(fmax(cell[i].max, 1e-17)));
    plot_heat(p, heat, (size_t)rows, (size_t)cols, 0, cols, 0, rows, PLOT_SEQUENTIAL, -16, 3);
    for (i = 0; i < rows * cols; i++)
        plot_text(p, i % cols + 0.5, i / cols + 0.5,
                  cell[i].max < ok      ? "✓"
                  : cell[i].mean < 1e-2 ? lab_format(r, "%.0e", cell[i].mean)
                                        : lab_format(r, "%.2f", cell[i].mean),
                  PLOT_CENTER, cell[i].max < 1e-8 ? PLOT_WHITE : PLOT_INK); /* on dark, on light */
    plot_ticks_x(p, at, laws ? law_name : change_name, cols);
    plot_ticks_y(p, at, label, rows);
}

static void draw_growth(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    const lab_series g = lab_get(r, BATCH_NORM, 0, panel->series);
    double x[2] = {HUGE_VAL, 0}, y[2];
    size_t i;
    for (i = 0; i < g.n; i++) {
        x[0] = fmin(x[0], g.x[i]);
        x[1] = fmax(x[1], g.x[i]);
    }
    for (i = 0; i < 2; i++) y[i] = growth_by(x[i]);
    plot_line(p, "ε(1 − 1/3.7^{2})/(2σ^{2})", x, y, 2, plot_solid(PLOT_INK));
    plot_scatter(p, "units, first seed", g.x, g.y, g.n, plot_marked(PLOT_BLUE, PLOT_RING));
}

/* clang-format off */
static const lab_panel outputs[] = {
    {.axes = {.heading =
                  "largest change of a logit / largest logit, ε → 0 (✓: < 10^{-12})",
              .frame = PLOT_BARE},
     .draw = draw_changes},
    {.axes = {.row = 1, .heading = "the same with ε = 10^{-5}", .frame = PLOT_BARE},
     .draw = draw_changes, .other = 1}};
static const lab_panel gradients[] = {
    {.axes = {.heading = "error of the gradient's equations, mean of seeds (✓: < 10^{-10})",
              .frame = PLOT_BARE},
     .draw = draw_changes, .series = "law"},
    {.axes = {.col = 1, .heading = "W × 3.7 with ε = 10^{-5}: batch norm's units",
              .x = "variance σ^{2} of a unit's summed input", .x_scale = PLOT_LOG10,
              .y = "growth of its output (factor − 1)", .y_scale = PLOT_LOG10,
              .legend = PLOT_LEGEND_TOP_RIGHT}, .draw = draw_growth, .series = "growth"}};
static const lab_page pages[] = {
    {"Each norm is blind to its own row of changes, and to no other", NULL, 1160,
     LAB_PANELS(outputs)},
    {"Weights that do not matter have gradients at right angles to them", "gradients", 840,
     .widths = {1.35, 1}, LAB_PANELS(gradients)}};
/* clang-format on */

LAB_PROGRAM("21_invariance", "Which changes of weights and data does a trained network not see?",
            "784-100-100-10, ReLU, standardized pixels, 200 steps of SGD with rate 0.1 and "
            "batches of 128, in double; then 64 images in train mode, scaled by 3.7 or "
            "re-centred",
            .revision = 1, .uses = LAB_USES_DATA, .prepare = prepare, .after = check_growth)
