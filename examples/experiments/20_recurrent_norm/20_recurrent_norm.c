/* 20_recurrent_norm: how far back does the gradient of a recurrent layer reach? (README.md)

   What is looked at is |dL/dh[t]|, the norm over all units and sequences, against t, divided by
   that at the last state, for a random linear function L of that state. States are counted from
   h[0] = 0, which is given, so t runs from 1. The factor of one step back, by mean field theory:

       plain        ρ·√E[f′(z)²],                   z ~ N(0, ρ²·(q + s²)),  q = E[f(z)²] a step ago
       layer norm   γ·√(E[f′(z)²]/(E[f(z)²] + s²)), z ~ N(0, γ²) */
#define NRM_DOUBLE
#include "lab/experiment.h"
#include "lab/draw.h"

#define WEAK 0.2648, ALWAYS /* s for tanh with γ = 1 */
#define LOUD_INPUT 1, ALWAYS
#define NO_MORE 1, AT_FIRST
#define NEUTRAL 3.377 /* γ for tanh with s = 1 */
#define EPS 1e-8

/* ---- the settings ---------------------------------------------------------------------------- */

enum { ALWAYS, AT_FIRST };            /* when there is input           */
enum { BOTH, RECURRENT };             /* which weights are scaled by ρ */
enum { CLAIMED, BEYOND, AFTERWARDS }; /* what is claimed of the formula */

typedef struct setting {
    int norm, activation;
    double gain, rho, input;
    int when, scaled, claimed;
} setting;

enum { N = 8 };

#define PLAIN_TANH NRM_NO_NORM, NRM_TANH
#define PLAIN_RELU NRM_NO_NORM, NRM_RELU
#define LAYER_TANH NRM_LAYER_NORM, NRM_TANH
#define LAYER_RELU NRM_LAYER_NORM, NRM_RELU
/* clang-format off */
#define ALL_SETTINGS(ROW)                                                                          \
    ROW("plain_05", "plain, ρ = 0.5", PLAIN_TANH, 1, 0.5, WEAK)                                    \
    ROW("plain_1", "plain, ρ = 1", PLAIN_TANH, 1, 1, WEAK)                                         \
    ROW("plain_2", "plain, ρ = 2", PLAIN_TANH, 1, 2, WEAK)                                         \
    ROW("layer_05", "layer norm, ρ = 0.5", LAYER_TANH, 1, 0.5, WEAK)                               \
    ROW("layer_1", "layer norm, ρ = 1", LAYER_TANH, 1, 1, WEAK)                                    \
    ROW("layer_2", "layer norm, ρ = 2", LAYER_TANH, 1, 2, WEAK)                                    \
    ROW("only_wh_05", "layer norm, only Wh scaled, ρ = 0.5", LAYER_TANH, 1, 0.5, WEAK, RECURRENT)  \
    ROW("only_wh_2", "layer norm, only Wh scaled, ρ = 2", LAYER_TANH, 1, 2, WEAK, RECURRENT)       \
    ROW("loud", "layer norm, loud input", LAYER_TANH, 1, 1, LOUD_INPUT)                            \
    ROW("loud_gain", "layer norm, loud input, gain 3.377", LAYER_TANH, NEUTRAL, 1, LOUD_INPUT)     \
    ROW("silent", "layer norm, no input", LAYER_TANH, 1, 1, NO_MORE)                               \
    ROW("silent_gain", "layer norm, no input, gain 0.1",                                           \
        LAYER_TANH, 0.1, 1, NO_MORE, BOTH, BEYOND)                                                 \
    ROW("silent_relu", "layer norm, no input, ReLU", LAYER_RELU, 1, 1, NO_MORE, BOTH, BEYOND)      \
    ROW("plain_silent_05", "plain, no input, ρ = 0.5", PLAIN_TANH, 1, 0.5, NO_MORE)                \
    ROW("plain_silent_1", "plain, no input, ρ = 1", PLAIN_TANH, 1, 1, NO_MORE, BOTH, BEYOND)       \
    ROW("plain_silent_2", "plain, no input, ρ = 2", PLAIN_TANH, 1, 2, NO_MORE)                     \
    ROW("plain_relu_05", "plain, no input, ReLU, ρ = 0.5", PLAIN_RELU, 1, 0.5, NO_MORE)            \
    ROW("plain_relu_1", "plain, no input, ReLU, ρ = 1", PLAIN_RELU, 1, 1, NO_MORE)                 \
    ROW("plain_relu_2", "plain, no input, ReLU, ρ = 2", PLAIN_RELU, 1, 2, NO_MORE)                 \
    ROW("layer_1_in768", "layer norm, ρ = 1, 768 inputs",                                          \
        LAYER_TANH, 1, 1, WEAK, BOTH, AFTERWARDS)                                                  \
    ROW("only_wh_05_in768", "layer norm, only Wh scaled, ρ = 0.5, 768 inputs",                     \
        LAYER_TANH, 1, 0.5, WEAK, RECURRENT, AFTERWARDS)                                           \
    ROW("loud_in768", "layer norm, loud input, 768 inputs",                                        \
        LAYER_TANH, 1, 1, LOUD_INPUT, BOTH, AFTERWARDS)                                            \
    ROW("loud_gain_in768", "layer norm, loud input, gain 3.377, 768 inputs",                       \
        LAYER_TANH, NEUTRAL, 1, LOUD_INPUT, BOTH, AFTERWARDS)

#define AS_SETTING(id, name, ...) {__VA_ARGS__},
#define AS_ARM(id, name, ...) {id, name, 1, 0},
static const setting settings[] = {ALL_SETTINGS(AS_SETTING)};
static const lab_arm arms[] = {ALL_SETTINGS(AS_ARM)};

enum { ARMS = sizeof arms / sizeof arms[0], SCALES = 3, STEPS_MAX = 500 };

/* Places in the table; the first two begin three scales. */
enum { PLAIN = 0, LAYER = 3, ONLY_WH_05 = 6, ONLY_WH_2, LOUD, LOUD_GAIN, SILENT, SILENT_GAIN,
       SILENT_RELU };
/* clang-format on */

static size_t steps_of(int quick)
{
    return quick ? 60 : STEPS_MAX;
}

/* ---- mean field ------------------------------------------------------------------------------ */

typedef struct means { /* E[f(z)²] and E[f′(z)²] for z ~ N(0, v) */
    double square, slope;
} means;

static means mean_field(int activation, double v)
{
    const double step = 0.05;
    means m = {0, 0};
    double weight = 0, z;
    if (activation == NRM_RELU) {
        m.square = v / 2;
        m.slope = 0.5;
        return m;
    }
    for (z = step / 2; z < 9; z += step) { /* tanh² and tanh′² are even */
        const double density = exp(-z * z / 2), t = tanh(z * sqrt(v));
        weight += density;
        m.square += density * t * t;
        m.slope += density * (1 - t * t) * (1 - t * t);
    }
    m.square /= weight;
    m.slope /= weight;
    return m;
}

/* The formula: log10 of what the gradient is at each state, relative to the last. */
static void predict(double *out, const setting *k, size_t T)
{
    const double scale = k->scaled == BOTH ? k->rho : 1;
    double q = 0;
    size_t t;
    for (t = 0; t < T; t++) {
        const double s = k->when == ALWAYS || t == 0 ? scale * k->input : 0;
        const double v = k->rho * k->rho * q + s * s + (k->norm == NRM_LAYER_NORM ? EPS : 0);
        const double stretch = k->norm == NRM_LAYER_NORM ? k->gain * k->gain / v : 1;
        const means m =
            mean_field(k->activation, k->norm == NRM_LAYER_NORM ? k->gain * k->gain : v);
        out[t] = 0.5 * log10(k->rho * k->rho * stretch * m.slope);
        q = m.square;
    }
    out[T] = 0;
    while (t-- > 0) out[t] += out[t + 1];
}

/* ---- a run ----------------------------------------------------------------------------------- */

typedef struct cell { /* the layer, and all that it needs */
    nrm_rnn rnn;
    nrm_real *block, *Wx, *Wh, *gamma, *x, *h, *dh, *a, *da;
    nrm_acc *mean, *rstd; /* doubles too */
} cell;

static int cell_make(cell *c, const setting *k, size_t T, size_t H)
{
    const size_t in = k->claimed == AFTERWARDS ? 768 : 16, rows = T * N, states = (rows + N) * H;
    const struct {
        double **of;
        size_t count;
    } part[] = {{&c->Wx, in * H}, {&c->Wh, H * H},  {&c->gamma, H},    {&c->x, rows * in},
                {&c->h, states},  {&c->dh, states}, {&c->a, rows * H}, {&c->da, rows * H},
                {&c->mean, rows}, {&c->rstd, rows}};
    size_t i, count = 0;
    for (i = 0; i < LAB_COUNT(part); i++) count += part[i].count;
    c->block = (nrm_real *)calloc(count, sizeof *c->block);
    if (!c->block) return -1;
    for (i = 0, count = 0; i < LAB_COUNT(part); i++) {
        *part[i].of = c->block + count;
        count += part[i].count;
    }
    c->rnn =
        (nrm_rnn){T, N, in, H, k->norm, k->activation, EPS, c->Wx, c->Wh, c->gamma, NULL, NULL};
    return 0;
}

/* All arms of a seed have the same draws, scaled. */
static void cell_fill(cell *c, const setting *k, uint64_t seed)
{
    const double scale = k->scaled == BOTH ? k->rho : 1;
    const size_t T = c->rnn.T, H = c->rnn.H, in = c->rnn.in;
    size_t i;
    draw_normals(c->Wh, H * H, k->rho / sqrt((double)H), seed, 20);
    draw_normals(c->Wx, in * H, scale * k->input / sqrt((double)in), seed, 21);
    draw_normals(c->x, (k->when == ALWAYS ? T : 1) * N * in, 1, seed, 22);
    draw_normals(c->dh + T * N * H, N * H, 1, seed, 23); /* w, what the loss says of h[T] */
    for (i = 0; i < H; i++) c->gamma[i] = k->gain;
}

/* To a thousandth of a decade, so that the last bits of the C library's logarithm do not matter. */
static double thousandth(double v)
{
    return isfinite(v) ? floor(v * 1000 + 0.5) / 1000 : v;
}

/* Decades relative to the last state against the steps back from it: every tenth and the first
   state; all for the arms that a claim holds to a limit at each. */
static void note(lab_run *r, const double *decades, size_t T)
{
    const int all = r->arm >= LAYER && r->arm < LAYER + SCALES;
    double farthest = 0;
    size_t back;
    for (back = 0; back < T; back++) {
        const double d = decades[T - back];
        farthest = stats_larger(farthest, fabs(d));
        if (all || back % 10 == 0 || back == T - 1) lab_record(r, "decades", (double)back, d);
    }
    lab_record(r, "farthest", 0, farthest);
}

static int run(lab_run *r)
{
    const setting *k = &settings[r->arm];
    const size_t T = steps_of(r->quick), H = r->quick ? 64 : 768, state = N * H;
    double decades[STEPS_MAX + 1];
    size_t t;
    cell c;
    int rc;
    if (cell_make(&c, k, T, H)) return -1;
    cell_fill(&c, k, r->seed);
    rc = nrm_rnn_forward(c.h, c.a, c.mean, c.rstd, c.x, &c.rnn, NRM_TRAIN);
    lab_progress(r, 0.4);
    if (rc >= 0)
        rc = nrm_rnn_backward(c.dh, NULL, NULL, c.da, c.h, c.a, c.mean, c.rstd, NULL, &c.rnn,
                              NRM_TRAIN);
    for (t = 0; t <= T; t++) decades[t] = training_log_length(c.dh + t * state, state);
    for (t = 0; t <= T; t++) decades[t] = thousandth(decades[t] - decades[T]);
    note(r, decades, T);
    predict(decades, k, T);
    lab_record(r, "formula", 0, thousandth(decades[1]));
    free(c.block);
    if (rc < 0) fprintf(stderr, "20_recurrent_norm: %s\n", nrm_strerror(rc));
    return rc < 0 ? -1 : 0;
}

/* ---- what came out --------------------------------------------------------------------------- */

static stats_summary gained(const lab_report *r, size_t a) /* from the last state to the first */
{
    return lab_summary(r, a, "decades", LAB_LAST);
}

static double formula(const lab_report *r, size_t a)
{
    return lab_mean(r, a, "formula", 0);
}

/* The factor of one step that makes so many decades from the last state to the first. */
static double per_step(const lab_report *r, double decades)
{
    return pow(10, decades / (double)(steps_of(lab_quick(r)) - 1));
}

/* ---- verdicts -------------------------------------------------------------------------------- */

static const char ba[] = "Ba, Kiros & Hinton 2016, section 3.1";
static const char ours[] = "ours, from mean field theory";
static const char stable[] = "no numbers: \"much more stable hidden-to-hidden dynamics\"";
static const char grow[] =
    "no numbers: summed inputs \"grow or shrink at every time-step, leading to exploding or "
    "vanishing gradients\"";
static const char pilots[] =
    "trial runs (seeds 0-2, 100-119; settings without input only): states freeze there";

static void judge_plain(lab_report *r, const lab_claim *c)
{
    stats_finding far[SCALES];
    double least = HUGE_VAL;
    size_t i;
    for (i = 0; i < SCALES; i++) {
        const double way = gained(r, PLAIN + i).mean > 0 ? 1 : -1; /* of all seeds alike */
        const lab_numbers gain = lab_times(lab_all(r, PLAIN + i, "decades", LAB_LAST), way);
        far[i] = lab_above(gain, 10);
        least = stats_smaller(least, lab_describe(gain).min);
    }
    lab_verdict(r, c, stats_together(far, SCALES), "", "at least %.1f decades", least);
}

static void judge_layer(lab_report *r, const lab_claim *c)
{
    stats_finding near[SCALES];
    double most = 0, most_mean = 0;
    size_t a, i;
    for (a = 0; a < SCALES; a++) {
        const lab_curve mean = lab_over_seeds(r, LAYER + a, "decades");
        near[a] = lab_below(lab_all(r, LAYER + a, "farthest", 0), 1);
        most = stats_larger(most, lab_largest(r, LAYER + a, "farthest"));
        for (i = 0; i < mean.n; i++) most_mean = stats_larger(most_mean, fabs(mean.mean[i]));
    }
    lab_verdict(r, c, stats_together(near, SCALES), "",
                "at most a factor of %.1f (mean of the seeds: %.1f)", pow(10, most),
                pow(10, most_mean));
}

static void judge_formula(lab_report *r, const lab_claim *c)
{
    stats_finding part[ARMS];
    size_t a, right = 0, claimed = 0;
    for (a = 0; a < ARMS; a++) {
        const double tolerance = 1 + 0.05 * fabs(formula(r, a));
        if (settings[a].claimed != CLAIMED) continue;
        part[claimed++] = lab_within(lab_all(r, a, "decades", LAB_LAST), formula(r, a), tolerance);
        right += fabs(gained(r, a).mean - formula(r, a)) <= tolerance;
    }
    lab_verdict(r, c, stats_together(part, claimed),
                lab_format(r,
                           "loud input with gain 3.377: %.1f decades, formula %.1f; with 768 "
                           "inputs, afterwards, %.1f",
                           gained(r, LOUD_GAIN).mean, fabs(formula(r, LOUD_GAIN)),
                           gained(r, ARMS - 1).mean),
                "in %zu of %zu settings", right, claimed);
}

/* clang-format off */
static const lab_claim claims[] = {
    {"20a", "The plain cell explodes or vanishes at all three scales", ba, grow,
     "more than ten decades from t = 500 to t = 1 in every seed", pilots, LAB_TRAINING,
     LAB_SETTING, .judge = judge_plain},
    {"20b", "With layer norm and s = 0.2648 the gradient stays within a factor of 10", ours, stable,
     "at all three scales and every t, in every seed; partly: in the mean over the seeds", pilots,
     LAB_TRAINING, LAB_SETTING, .judge = judge_layer},
    {"20d", "With layer norm and an input of unit variance it stays within a factor of 10",
     "ours, the limit of 20b for the usual input", stable,
     "s = 1, γ = 1, every t, every seed. Added after the run", "the run itself", LAB_TRAINING,
     LAB_NEWS, LAB_PARTS({LAB_BELOW, LOUD, .series = "farthest", .limit = 1},
                         {.a = LOUD, .series = "decades", .at = LAB_LAST}),
     .say = "up to #1[max %.1f] decades; at t = 1 #2[%.1f]"},
    {"20c", "The formula gives it to 1 decade + 5 %", ours, "no paper",
     "mean over the seeds at t = 1, all settings but those marked as beyond it", pilots,
     LAB_TRAINING, LAB_NEWS, .judge = judge_formula}};
/* clang-format on */

/* The page's table: formula, mean, least and most; factors of a step. What is exact: powers of two
   on all weights change no bit, but for ε; known values of E. */
static void after(lab_report *r)
{
    const means tanh_1 = mean_field(NRM_TANH, 1);
    double most = 0;
    size_t s, i, a;
    for (a = 0; a < ARMS; a++) {
        const stats_summary g = gained(r, a);
        printf("| %s | %.1f | %.1f | %.1f … %.1f | %.3f | %.3f |\n", arms[a].name, formula(r, a),
               g.mean, g.min, g.max, per_step(r, formula(r, a)), per_step(r, g.mean));
    }
    for (s = 0; s < lab_seeds(r, LAYER); s++)
        for (i = 0; i < SCALES; i++)
            most = stats_larger(most, fabs(lab_at(r, LAYER + i, s, "decades", LAB_LAST) -
                                           lab_at(r, LAYER + 1, s, "decades", LAB_LAST)));
    lab_check(r, most < 0.0025, "layer norm does not see the scale of all weights, but for ε",
              "three scales agree to %.3f decades", most);
    lab_check(r, fabs(tanh_1.square - 0.3943) < 1e-4 && fabs(tanh_1.slope - 0.4644) < 1e-4,
              "tanh of N(0, 1): mean square 0.3943, of the slope 0.4644", "%.4f, %.4f",
              tanh_1.square, tanh_1.slope);
}

/* ---- figure ---------------------------------------------------------------------------------- */

/* Factors of a step: the formula's and the measured ones. */
static void draw_formula(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    static const char *const name[4] = {"plain", "layer norm", "beyond the formula", "768 inputs"};
    static const plot_color color[4] = {PLOT_VERMILLION, PLOT_GREEN, PLOT_INK, PLOT_GREY};
    static const int marker[4] = {PLOT_TRIANGLE, PLOT_CIRCLE, PLOT_RING, PLOT_PLUS};
    double x[ARMS], y[ARMS];
    size_t a, n;
    int group;
    plot_line(p, NULL, panel->axes.x_range, panel->axes.x_range, 2, plot_dotted(PLOT_GREY));
    for (group = 0; group < 4; group++) {
        for (a = 0, n = 0; a < ARMS; a++) {
            const setting *k = &settings[a];
            if (group != (k->claimed ? 1 + k->claimed : k->norm == NRM_LAYER_NORM)) continue;
            x[n] = per_step(r, formula(r, a));
            y[n++] = per_step(r, gained(r, a).mean);
        }
        plot_scatter(p, name[group], x, y, n, plot_marked(color[group], marker[group]));
    }
}

/* clang-format off */
#define BACK(right, down, title, ...)                                                              \
    .axes = {.row = down, .col = right, .heading = title, .x = "steps back from the last state",   \
             .y = "log_{10} |∂L/∂h_{t}|, last state: 0", __VA_ARGS__}
#define MEAN(arm, name, level, levels, how)                                                        \
    {arm, "decades", name, {.dash = how}, LAB_MEAN, 0, {level, levels}}
#define SEEDS(arm, color, level, levels)                                                           \
    {arm, "decades", "", {color, .width = 0.45, .alpha = 0.45}, LAB_EACH_SEED, 0, {level, levels}}
#define FACTOR_10 .under = {{LAB_HLINE, .y = 1, .text = "a factor of 10"},                         \
                            {LAB_HLINE, .y = -1, .text = ""}}

static const lab_panel panels[] = {
    {BACK(0, 0, "plain, and with layer norm", .legend = PLOT_LEGEND_BOTTOM_LEFT),
     .line = {MEAN(PLAIN, "plain, ρ = 0.5", 0, 3, PLOT_DASHED),
              MEAN(PLAIN + 1, "plain, ρ = 1", 1, 3, PLOT_SOLID),
              MEAN(PLAIN + 2, "plain, ρ = 2", 2, 3, PLOT_DASHDOT),
              {LAYER, "decades", "layer norm, all ρ", {PLOT_INK}, LAB_MEAN, LAYER + 2}}},
    {BACK(1, 0, "layer norm alone: seeds (thin), means", .y_range = {-2.5, 1.5},
          .legend = PLOT_LEGEND_BOTTOM_LEFT), FACTOR_10,
     .line = {SEEDS(LAYER, PLOT_GREY, 0, 0),
              MEAN(LAYER, "mean, ρ = 0.5", 0, 3, PLOT_DASHED),
              MEAN(LAYER + 1, "mean, ρ = 1", 1, 3, PLOT_SOLID),
              MEAN(LAYER + 2, "mean, ρ = 2", 2, 3, PLOT_DASHDOT)}},
    {BACK(0, 1, "layer norm, where it is not neutral", .y_range = {-200, 30},
          .legend = PLOT_LEGEND_BOTTOM_LEFT),
     .line = {MEAN(SILENT, "no input", 0, 4, PLOT_SOLID),
              MEAN(ONLY_WH_2, "only W_{h} scaled, ρ = 2", 1, 4, PLOT_DASHDOT),
              MEAN(ONLY_WH_05, "only W_{h} scaled, ρ = 0.5", 2, 4, PLOT_DASHED),
              MEAN(LOUD, "loud input", 3, 4, PLOT_SOLID)}},
    {BACK(1, 1, "neutral by the formula: seeds (thin), means", .legend = PLOT_LEGEND_TOP_LEFT),
     FACTOR_10,
     .line = {SEEDS(LOUD_GAIN, 0, 0, 3), SEEDS(SILENT_RELU, 0, 1, 3), SEEDS(SILENT_GAIN, 0, 2, 3),
              MEAN(LOUD_GAIN, "loud input, γ = 3.377", 0, 3, PLOT_DASHED),
              MEAN(SILENT_RELU, "no input, ReLU", 1, 3, PLOT_SOLID),
              MEAN(SILENT_GAIN, "no input, γ = 0.1", 2, 3, PLOT_DASHDOT)}},
    {.axes = {.row = 2, .cols = 2, .heading = "the factor of one step, all settings",
              .x = "by the formula", .x_range = {0.3, 1.5}, .y = "measured", .y_range = {0.3, 1.5},
              .legend = PLOT_LEGEND_BOTTOM_RIGHT},
     .draw = draw_formula}};
static const lab_page pages[] = {
    {"Layer norm carries a gradient over 500 steps where the input is weak", .height = 1560,
     .heights = {1, 1, 0.8}, LAB_PANELS(panels)}};
/* clang-format on */

LAB_PROGRAM("20_recurrent_norm", "How far back does the gradient of a recurrent layer reach?",
            "768 tanh units, 500 steps, 8 sequences, loss on the last state, random weights: "
            "W_{h} ~ N(0, ρ²/H), W_{x} ~ N(0, ρ²s²/16). In a and b: weak input at "
            "every step, s = 0.2648, and γ = 1. Geometric means",
            .after = after, .revision = 2)
