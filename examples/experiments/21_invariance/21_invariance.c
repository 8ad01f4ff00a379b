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
    nrm_real W[N_W], x[N_X], dW[N_W], scaled[N_W];  /* as they were; the gradients then, of aW */
    nrm_real v[N_W], x_now[N_X], c[DATASET_PIXELS]; /* as they are now; a random vector */
    nrm_real length[WIDTH];                         /* of the columns, for weight norm */
    nrm_acc norm[WIDTH];
    nrm_real logits[LOOKED_AT * CLASSES];
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

/* What the units of the first layer have for weights, made from v. */
static int apply(subject *s)
{
    if (s->run->arm != WEIGHT) {
        memcpy(s->first->W, s->v, sizeof s->v);
        return 0;
    }
    return nrm_weightnorm_forward(s->first->W, s->norm, s->v, s->length, DATASET_PIXELS, WIDTH);
}

static int logits_now(subject *s, int mode, nrm_real *out)
{
    int rc = apply(s);
    if (rc < 0) return rc;
    rc = mode == NRM_INFER
             ? nrm_mlp_forward(s->net, s->x_now, LOOKED_AT, mode)
             : nrm_mlp_gradient(s->net, NULL, s->x_now, train_set.labels, LOOKED_AT, mode);
    memcpy(out, s->net->logits, LOOKED_AT * CLASSES * sizeof *out);
    return rc;
}

/* The gradient by what is learned: by v for weight norm. */
static int gradient_now(subject *s, nrm_real *out)
{
    int rc = apply(s);
    if (rc < 0) return rc;
    rc = nrm_mlp_gradient(s->net, NULL, s->x_now, train_set.labels, LOOKED_AT, NRM_TRAIN);
    memcpy(out, s->first->dW, N_W * sizeof *out);
    if (s->run->arm != WEIGHT || rc < 0) return rc;
    memset(out, 0, N_W * sizeof *out);
    return nrm_weightnorm_backward(out, NULL, s->first->dW, s->v, s->norm, s->length,
                                   DATASET_PIXELS, WIDTH);
}

static void restore(subject *s)
{
    memcpy(s->v, s->W, sizeof s->v);
    memcpy(s->x_now, s->x, sizeof s->x);
}

static void change(subject *s, int which)
{
    const double by = which == W_SHIFTED ? training_rms(s->W, N_W) : training_rms(s->x, N_X);
    nrm_rng rng;
    size_t i;
    nrm_rng_seed(&rng, s->run->seed, 30);
    for (i = 0; i < DATASET_PIXELS; i++) s->c[i] = by * draw_normal(&rng);
    for (i = 0; i < N_W; i++) {
        if (which == W_SCALED || (which == UNIT_SCALED && i % WIDTH == s->unit)) s->v[i] *= DELTA;
        if (which == W_SHIFTED) s->v[i] += s->c[i / WIDTH];
    }
    for (i = 0; i < N_X; i++) {
        if (which == DATA_SCALED || (which == ONE_SCALED && i < DATASET_PIXELS))
            s->x_now[i] *= DELTA;
        if (which == DATA_SHIFTED) s->x_now[i] += s->c[i % DATASET_PIXELS];
    }
}

static int measure_outputs(subject *s, int mode, const char *series)
{
    nrm_real before[LOOKED_AT * CLASSES];
    size_t i;
    int which, rc;
    restore(s);
    rc = logits_now(s, mode, before);
    for (which = 0; which < CHANGES && rc >= 0; which++) {
        restore(s);
        change(s, which);
        rc = logits_now(s, mode, s->logits);
        for (i = 0; i < LOOKED_AT * CLASSES; i++) s->logits[i] -= before[i];
        lab_record(s->run, series, which,
                   training_farthest(s->logits, NULL, LOOKED_AT * CLASSES) /
                       training_farthest(before, NULL, LOOKED_AT * CLASSES));
    }
    return rc;
}

static int measure_gradients(subject *s)
{
    double worst = 0, sums = 0, terms = 0;
    size_t i, j;
    int rc;
    restore(s);
    rc = gradient_now(s, s->dW);
    change(s, W_SCALED);
    if (rc >= 0) rc = gradient_now(s, s->scaled);
    for (i = 0; i < N_W; i++) worst = fmax(worst, fabs((double)(DELTA * s->scaled[i] - s->dW[i])));
    lab_record(s->run, "law", SCALE_LAW, worst / training_farthest(s->dW, NULL, N_W));
    lab_record(s->run, "law", ALL_ORTHOGONAL, training_cosine(s->W, s->dW, N_W, 1));
    for (i = 0; i < DATASET_PIXELS; i++) {
        double sum = 0;
        for (j = 0; j < WIDTH; j++) {
            sum += (double)s->dW[i * WIDTH + j];
            terms += fabs((double)s->dW[i * WIDTH + j]);
        }
        sums += fabs(sum);
    }
    lab_record(s->run, "law", SHIFT_LAW, sums / terms);
    lab_record(s->run, "law", UNIT_ORTHOGONAL, training_cosine(s->W, s->dW, DATASET_PIXELS, WIDTH));
    return rc;
}

/* With the ε of the training: by how much do a unit's outputs grow if all weights are scaled?
   Against the variance of its summed inputs. */
static int measure_growth(subject *s)
{
    nrm_acc rstd[WIDTH];
    size_t j;
    int rc;
    restore(s);
    rc = logits_now(s, NRM_TRAIN, s->logits);
    memcpy(rstd, s->first->rstd, sizeof rstd);
    change(s, W_SCALED);
    if (rc >= 0) rc = logits_now(s, NRM_TRAIN, s->logits);
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

/* Over the seeds: the largest, or the smallest. */
static double extreme(const lab_report *r, size_t arm, const char *series, int x, int largest_one)
{
    const stats_summary s = lab_summary(r, arm, series, x);
    return largest_one ? s.max : s.min;
}

static int unseen(const lab_report *r, int line, int which)
{
    return extreme(r, arm_of(line), series_of(line, 0), which, 1) < 1e-12;
}

static int seen(const lab_report *r, int line, int which)
{
    return extreme(r, arm_of(line), series_of(line, 0), which, 0) > 1e-2;
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

static const char one_layer[] = "trial run (1 seed, one layer, random numbers): as in the table";
static const char ba[] = "Ba, Kiros & Hinton 2016, Table 1";

/* clang-format off */
static const lab_claim claims[] = {
    {"21a", "Ba et al.'s table of invariances, for the logits of a trained network", ba,
     "18 cells: batch norm not invariant to re-centred W and one re-scaled case; weight norm only "
     "to re-scaled W and weight vectors; layer norm to all but re-scaled weight vectors and "
     "re-centred data",
     "exact: change below 1e-12 where invariant, else above 1e-2, every seed: 18 of 18; partly: 16",
     one_layer, LAB_IDENTITY, LAB_SETTING},
    {"21d", "RMSNorm does not see scaled W, scaled data, one scaled example; it sees the rest",
     "Zhang & Sennrich 2019, Table 1",
     "re-scaling of W, data and single case: yes; re-centring and single weight vectors: no",
     "exact: as above, 6 of 6 cells; partly: 5", one_layer, LAB_IDENTITY, LAB_SETTING},
    {"21b", "All the normalization methods are invariant to re-scaling the data set",
     "Ba, Kiros & Hinton 2016, section 5.1", "the text says so; Table 1 says no for weight norm",
     "change below 1e-12 for batch, weight and layer norm, every seed",
     "trial run (1 seed, one layer): not weight norm. Expected to fail", LAB_IDENTITY, LAB_ALGEBRA},
    {"21c", "The norms are invariant to scaling and shifting of the weights",
     "a tutorial on batch and layer norm", "no numbers",
     "W scaled, W re-centred: below 1e-12 for batch, weight and layer norm, every seed",
     "trial run (1 seed, one layer): shifts only layer norm. Expected to fail", LAB_IDENTITY,
     LAB_ALGEBRA},
    {"21i", "The norms are invariant to shifting of the data", "a tutorial on batch and layer norm",
     "no numbers", "data re-centred: below 1e-12 for batch, weight and layer norm, every seed. "
     "Added after the run", "trial run (1 seed, one layer): batch norm only. Expected to fail",
     LAB_IDENTITY, LAB_ALGEBRA},
    {"21e", "Weights larger by a have a gradient smaller by a", "Ioffe & Szegedy 2015, section 3.3",
     "∂BN((aW)u)/∂(aW) = (1/a)·∂BN(Wu)/∂W",
     "exact: relative error below 1e-10, batch and weight norm, every seed",
     "trial run (1 seed, one layer): 1e-10 met", LAB_IDENTITY, LAB_SETTING},
    {"21f", "The gradient of a unit's weights is orthogonal to them",
     "Kohler et al. 2018; Ba et al. 2016, section 5", "follows from invariance",
     "exact: |cosine| below 1e-10 for every unit, batch and weight norm, every seed",
     "trial run (1 seed, one layer): 1e-10 met", LAB_IDENTITY, LAB_SETTING},
    {"21h", "ε is what is left to be seen: a growth of ε(1 - 1/δ²)/(2σ²)", "ours", "no paper",
     "exact to 1 %, in every unit with σ² > 0.01", "trial run (1 seed, one layer): met",
     LAB_IDENTITY, LAB_SETTING}};
/* clang-format on */

static void judge_tables(lab_report *r)
{
    const int right = as_in_table(r, BATCH_NORM) + as_in_table(r, WEIGHT) + as_in_table(r, LAYER);
    const int right_rms = as_in_table(r, RMS);
    lab_verdict(r, lab_find(r, "21a"), stats_holds_partly(right == 18, right > 15), "",
                "%d of 18 cells", right);
    lab_verdict(r, lab_find(r, "21d"), stats_holds_partly(right_rms == 6, right_rms == 5), "",
                "%d of 6 cells", right_rms);
}

static void judge_texts(lab_report *r)
{
    int line, scaled_data = 0, moved_data = 0, scaled = 0, shifted = 0;
    for (line = BATCH_NORM; line <= LAYER; line++) {
        scaled_data += unseen(r, line, DATA_SCALED);
        moved_data += unseen(r, line, DATA_SHIFTED);
        scaled += unseen(r, line, W_SCALED);
        shifted += unseen(r, line, W_SHIFTED);
    }
    lab_verdict(
        r, lab_find(r, "21b"), stats_holds_partly(scaled_data == 3, scaled_data > 0), "",
        "%d of 3 norms; change: weight norm %.2f in the mean, batch norm %.0e and layer norm "
        "%.0e at most",
        scaled_data, lab_mean(r, WEIGHT, "change", DATA_SCALED),
        extreme(r, BATCH_NORM, "change", DATA_SCALED, 1),
        extreme(r, LAYER, "change", DATA_SCALED, 1));
    lab_verdict(r, lab_find(r, "21c"),
                stats_holds_partly(scaled == 3 && shifted == 3, scaled + shifted > 0),
                lab_format(r, "W re-centred: batch norm %.2f, weight norm %.2f, layer norm %.0e",
                           lab_mean(r, BATCH_NORM, "change", W_SHIFTED),
                           lab_mean(r, WEIGHT, "change", W_SHIFTED),
                           lab_mean(r, LAYER, "change", W_SHIFTED)),
                "scaling: %d of 3 norms; shifting: %d of 3", scaled, shifted);
    lab_verdict(
        r, lab_find(r, "21i"), stats_holds_partly(moved_data == 3, moved_data > 0), "",
        "%d of 3 norms; change: batch norm %.0e at most, weight norm %.2f and layer norm %.2f "
        "in the mean",
        moved_data, extreme(r, BATCH_NORM, "change", DATA_SHIFTED, 1),
        lab_mean(r, WEIGHT, "change", DATA_SHIFTED), lab_mean(r, LAYER, "change", DATA_SHIFTED));
}

static void judge_gradients(lab_report *r)
{
    const double scale = stats_larger(extreme(r, BATCH_NORM, "law", SCALE_LAW, 1),
                                      extreme(r, WEIGHT, "law", SCALE_LAW, 1));
    const double angle = stats_larger(extreme(r, BATCH_NORM, "law", UNIT_ORTHOGONAL, 1),
                                      extreme(r, WEIGHT, "law", UNIT_ORTHOGONAL, 1));
    lab_verdict(r, lab_find(r, "21e"), stats_holds(scale < 1e-10), "",
                "relative error %.0e at most", scale);
    lab_verdict(r, lab_find(r, "21f"), stats_holds(angle < 1e-10), "",
                "|cosine| %.0e at most; layer norm %.2f, none %.2f", angle,
                lab_mean(r, LAYER, "law", UNIT_ORTHOGONAL),
                lab_mean(r, NONE, "law", UNIT_ORTHOGONAL));
}

/* The growth by the approximation, and how far the exact growth is from it at most. */
static double growth_by(double variance)
{
    return REAL_EPS * (1 - 1 / (DELTA * DELTA)) / (2 * variance);
}

static void judge_rest(lab_report *r)
{
    const double most = extreme(r, BATCH_NORM, "bias_gradient", 0, 1);
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
    lab_check(r, most < 1e-12, "a bias before batch norm has no gradient, in double",
              "%.0e at most of all steps", most);
    lab_verdict(r, lab_find(r, "21h"), stats_holds(units > 0 && worst < 0.01),
                lab_format(r, "smallest variance of a unit: %.3g", smallest),
                "at most %.2g %% off in %zu units", 100 * worst, units);
}

/* ---- figures --------------------------------------------------------------------------------- */

/* A cell for each line and column: log10 of the mean, its colour; ✓ if it is below `ok`. */
static void draw_cells(plot_panel *p, const double *value, const double *most, int rows, int cols,
                       double ok)
{
    double heat[LINES * CHANGES];
    char text[24];
    int i, j;
    for (i = 0; i < rows * cols; i++) heat[i] = fmax(-16, log10(fmax(most[i], 1e-17)));
    plot_heat(p, heat, (size_t)rows, (size_t)cols, 0, cols, 0, rows, PLOT_SEQUENTIAL, -16, 3);
    for (i = 0; i < rows; i++)
        for (j = 0; j < cols; j++) {
            const double v = value[i * cols + j];
            if (most[i * cols + j] < ok)
                (void)snprintf(text, sizeof text, "✓");
            else if (v < 1e-2)
                (void)snprintf(text, sizeof text, "%.0e", v);
            else
                (void)snprintf(text, sizeof text, "%.2f", v);
            plot_text(p, j + 0.5, i + 0.5, text, PLOT_CENTER,
                      most[i * cols + j] < 1e-8 ? PLOT_WHITE : PLOT_INK); /* on dark, on light */
        }
}

/* Of the logits, panel->other 1: with the ε of the training; or of the gradients, whose equations
   the network in inference has none of. */
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
    const char *label[LINES];
    double value[LINES * CHANGES], most[LINES * CHANGES];
    int i, j, rows = 0;
    for (i = 0; i < LINES; i++) {
        if (laws && order[i] == INFERENCE) continue;
        label[rows] = line_name[order[i]];
        for (j = 0; j < cols; j++) {
            const char *series = laws ? panel->series : series_of(order[i], panel->other == 1);
            const stats_summary s = lab_summary(r, arm_of(order[i]), series, j);
            value[rows * cols + j] = s.mean;
            most[rows * cols + j] = s.max;
        }
        rows++;
    }
    draw_cells(p, value, most, rows, cols, laws ? 1e-10 : 1e-12);
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
static int report(lab_report *r)
{
    static const lab_page pages[2] = {
        {"Each norm is blind to its own row of changes, and to no other", NULL, 1160},
        {"Weights that do not matter have gradients at right angles to them", "gradients", 840,
         .widths = {1.35, 1}}};
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
    judge_tables(r);
    judge_texts(r);
    judge_gradients(r);
    judge_rest(r);
    lab_check(r, fabs(growth_by(1) - 4.635e-6) < 1e-8, "a growth of 4.6e-6 at variance 1, ε = 1e-5",
              "%.3e", growth_by(1));
    return lab_draw(r, &pages[0], outputs, LAB_COUNT(outputs)) ||
           lab_draw(r, &pages[1], gradients, LAB_COUNT(gradients));
}
/* clang-format on */

LAB_PROGRAM("21_invariance", "Which changes of weights and data does a trained network not see?",
            "784-100-100-10, ReLU, standardized pixels, 200 steps of SGD with rate 0.1 and "
            "batches of 128, in double; then 64 images in train mode, scaled by 3.7 or "
            "re-centred",
            .revision = 1, .uses = LAB_USES_DATA, .prepare = prepare)
