/* 20_recurrent_norm: how far back does the gradient of a recurrent layer reach? (README.md)

   A cell of H = 768 tanh units runs for T = 500 steps over N = 8 sequences; the loss is a random
   linear function of the last state, L = sum of w*h[T]. What is looked at is |dL/dh[t]|, the norm
   over all units and sequences, against t, divided by that at t = 500: how much the gradient has
   grown or shrunk on its way back to step t. No training: the weights are random.

       Wh ~ N(0, ρ²/H),  Wx ~ N(0, ρ²·s²/in),  x ~ N(0, 1),  in = 16,  w ~ N(0, 1),  no biases

   with weight scales ρ = 0.5, 1 and 2, once plain and once with layer norm (γ = 1, ε = 1e-8).
   Everything is in double. States are counted from h[0] = 0, which is given, so t runs from 1.

   Which s? Mean field theory (README.md) says that at each step back the norm of the gradient is
   multiplied by

       plain        ρ·√E[f′(z)²],                   z ~ N(0, ρ²·(q + s²)),  q = E[f(z)²] a step ago
       layer norm   γ·√(E[f′(z)²]/(E[f(z)²] + s²)), z ~ N(0, γ²)

   The second line knows no ρ, since Wh and Wx are scaled together. With tanh and γ = 1 it is 1 if
   s² = 0.4644 - 0.3943, so s = 0.2648: a weak input at every step. That is the setting. (Without
   any input no odd f but a straight line gives 1, tanh gives 1.085; and in the cells that are
   neutral without input the state freezes, so that all Jacobians become one matrix, whose powers
   care about eigenvalues that the theory does not know of. They are among the further settings.)
   Further settings, shown because there it is not so: only Wh is scaled and not Wx; a loud input (s
   = 1), which takes most of the variance that layer norm divides by; the same with the γ that makes
   it neutral again, 3.377; no input after the first step (s = 1 there), with tanh and γ = 1, which
   explodes; and beyond the formula, without input, tanh with γ = 0.1 and ReLU with γ = 1, both
   neutral only if H is large beside T², and the plain tanh cell at its critical scale ρ = 1. */
#define NRM_DOUBLE
#include "lab/experiment.h"
#include "lab/draw.h"

#define NEUTRAL_INPUT 0.2648 /* s for tanh with γ = 1 */
#define NEUTRAL_GAIN 3.377   /* γ for tanh with s = 1 */
#define EPS 1e-8

/* ---- the settings ---------------------------------------------------------------------------- */

enum { ALWAYS, AT_FIRST };            /* when there is input           */
enum { BOTH, RECURRENT };             /* which weights are scaled by ρ */
enum { CLAIMED, BEYOND, AFTERWARDS }; /* what is claimed of the formula */

typedef struct setting {
    int norm, activation;
    double gain, rho, input;
    int when, scaled, claimed;
    size_t inputs;
} setting;

enum { N = 8, FEW = 16, MANY = 768 };

#define PLAIN_TANH NRM_NO_NORM, NRM_TANH
#define PLAIN_RELU NRM_NO_NORM, NRM_RELU
#define LAYER_TANH NRM_LAYER_NORM, NRM_TANH
#define LAYER_RELU NRM_LAYER_NORM, NRM_RELU

static const setting settings[] = {
    {PLAIN_TANH, 1, 0.5, NEUTRAL_INPUT, ALWAYS, BOTH, CLAIMED, FEW},
    {PLAIN_TANH, 1, 1, NEUTRAL_INPUT, ALWAYS, BOTH, CLAIMED, FEW},
    {PLAIN_TANH, 1, 2, NEUTRAL_INPUT, ALWAYS, BOTH, CLAIMED, FEW},
    {LAYER_TANH, 1, 0.5, NEUTRAL_INPUT, ALWAYS, BOTH, CLAIMED, FEW},
    {LAYER_TANH, 1, 1, NEUTRAL_INPUT, ALWAYS, BOTH, CLAIMED, FEW},
    {LAYER_TANH, 1, 2, NEUTRAL_INPUT, ALWAYS, BOTH, CLAIMED, FEW},
    {LAYER_TANH, 1, 0.5, NEUTRAL_INPUT, ALWAYS, RECURRENT, CLAIMED, FEW},
    {LAYER_TANH, 1, 2, NEUTRAL_INPUT, ALWAYS, RECURRENT, CLAIMED, FEW},
    {LAYER_TANH, 1, 1, 1, ALWAYS, BOTH, CLAIMED, FEW},
    {LAYER_TANH, NEUTRAL_GAIN, 1, 1, ALWAYS, BOTH, CLAIMED, FEW},
    {LAYER_TANH, 1, 1, 1, AT_FIRST, BOTH, CLAIMED, FEW},
    {LAYER_TANH, 0.1, 1, 1, AT_FIRST, BOTH, BEYOND, FEW},
    {LAYER_RELU, 1, 1, 1, AT_FIRST, BOTH, BEYOND, FEW},
    {PLAIN_TANH, 1, 0.5, 1, AT_FIRST, BOTH, CLAIMED, FEW},
    {PLAIN_TANH, 1, 1, 1, AT_FIRST, BOTH, BEYOND, FEW},
    {PLAIN_TANH, 1, 2, 1, AT_FIRST, BOTH, CLAIMED, FEW},
    {PLAIN_RELU, 1, 0.5, 1, AT_FIRST, BOTH, CLAIMED, FEW},
    {PLAIN_RELU, 1, 1, 1, AT_FIRST, BOTH, CLAIMED, FEW},
    {PLAIN_RELU, 1, 2, 1, AT_FIRST, BOTH, CLAIMED, FEW},
    {LAYER_TANH, 1, 1, NEUTRAL_INPUT, ALWAYS, BOTH, AFTERWARDS, MANY},
    {LAYER_TANH, 1, 0.5, NEUTRAL_INPUT, ALWAYS, RECURRENT, AFTERWARDS, MANY},
    {LAYER_TANH, 1, 1, 1, ALWAYS, BOTH, AFTERWARDS, MANY},
    {LAYER_TANH, NEUTRAL_GAIN, 1, 1, ALWAYS, BOTH, AFTERWARDS, MANY}};

static const lab_arm arms[] = {
    {"plain_05", "plain, ρ = 0.5", 1, 0},
    {"plain_1", "plain, ρ = 1", 1, 0},
    {"plain_2", "plain, ρ = 2", 1, 0},
    {"layer_05", "layer norm, ρ = 0.5", 1, 0},
    {"layer_1", "layer norm, ρ = 1", 1, 0},
    {"layer_2", "layer norm, ρ = 2", 1, 0},
    {"only_wh_05", "layer norm, only Wh scaled, ρ = 0.5", 1, 0},
    {"only_wh_2", "layer norm, only Wh scaled, ρ = 2", 1, 0},
    {"loud", "layer norm, loud input", 1, 0},
    {"loud_gain", "layer norm, loud input, gain 3.377", 1, 0},
    {"silent", "layer norm, no input", 1, 0},
    {"silent_gain", "layer norm, no input, gain 0.1", 1, 0},
    {"silent_relu", "layer norm, no input, ReLU", 1, 0},
    {"plain_silent_05", "plain, no input, ρ = 0.5", 1, 0},
    {"plain_silent_1", "plain, no input, ρ = 1", 1, 0},
    {"plain_silent_2", "plain, no input, ρ = 2", 1, 0},
    {"plain_relu_05", "plain, no input, ReLU, ρ = 0.5", 1, 0},
    {"plain_relu_1", "plain, no input, ReLU, ρ = 1", 1, 0},
    {"plain_relu_2", "plain, no input, ReLU, ρ = 2", 1, 0},
    {"layer_1_in768", "layer norm, ρ = 1, 768 inputs", 1, 0},
    {"only_wh_05_in768", "layer norm, only Wh scaled, ρ = 0.5, 768 inputs", 1, 0},
    {"loud_in768", "layer norm, loud input, 768 inputs", 1, 0},
    {"loud_gain_in768", "layer norm, loud input, gain 3.377, 768 inputs", 1, 0}};

enum { ARMS = sizeof arms / sizeof arms[0], SCALES = 3, STEPS_MAX = 500 };
/* Places in the table; the first two begin three scales. */
enum {
    PLAIN = 0,
    LAYER = 3,
    ONLY_WH_05 = 6,
    ONLY_WH_2,
    LOUD,
    LOUD_GAIN,
    SILENT,
    SILENT_GAIN,
    SILENT_RELU,
    FIRST_AFTERWARDS = 19
};

static size_t steps_of(int quick)
{
    return quick ? 60 : STEPS_MAX;
}

static size_t units_of(int quick)
{
    return quick ? 64 : 768;
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
    nrm_real *block, *Wx, *Wh, *gamma, *x, *h, *a, *dh, *da;
    nrm_acc *mean, *rstd;
} cell;

static int cell_make(cell *c, const setting *k, size_t T, size_t H)
{
    const size_t rows = T * N, state = N * H;
    const size_t count = k->inputs * H + H * H + H + rows * k->inputs + 2 * (rows * H + state) +
                         2 * rows * H + 2 * rows;
    memset(c, 0, sizeof *c);
    c->block = (nrm_real *)calloc(count, sizeof *c->block);
    if (!c->block) return -1;
    c->Wx = c->block;
    c->Wh = c->Wx + k->inputs * H;
    c->gamma = c->Wh + H * H;
    c->x = c->gamma + H;
    c->h = c->x + rows * k->inputs;
    c->dh = c->h + rows * H + state;
    c->a = c->dh + rows * H + state;
    c->da = c->a + rows * H;
    c->mean = c->da + rows * H; /* nrm_acc is double too */
    c->rstd = c->mean + rows;
    c->rnn.T = T;
    c->rnn.N = N;
    c->rnn.in = k->inputs;
    c->rnn.H = H;
    c->rnn.norm = k->norm;
    c->rnn.activation = k->activation;
    c->rnn.eps = EPS;
    c->rnn.Wx = c->Wx;
    c->rnn.Wh = c->Wh;
    c->rnn.gamma = c->gamma;
    return 0;
}

static void draw(nrm_real *a, size_t n, double sd, uint64_t seed, uint64_t stream)
{
    nrm_rng rng;
    size_t i;
    nrm_rng_seed(&rng, seed, stream);
    for (i = 0; i < n; i++) a[i] = sd * draw_normal(&rng);
}

/* All arms of a seed have the same draws, scaled. */
static void cell_fill(cell *c, const setting *k, uint64_t seed)
{
    const double scale = k->scaled == BOTH ? k->rho : 1;
    const size_t T = c->rnn.T, H = c->rnn.H;
    size_t i;
    draw(c->Wh, H * H, k->rho / sqrt((double)H), seed, 20);
    draw(c->Wx, k->inputs * H, scale * k->input / sqrt((double)k->inputs), seed, 21);
    draw(c->x, (k->when == ALWAYS ? T : 1) * N * k->inputs, 1, seed, 22);
    draw(c->dh + T * N * H, N * H, 1, seed, 23); /* w, what the loss says of h[T] */
    for (i = 0; i < H; i++) c->gamma[i] = k->gain;
}

/* log10 of the length of a vector, also where its square is too small or too large for a double. */
static double log_length(const nrm_real *v, size_t n)
{
    double most = 0, sum = 0;
    size_t i;
    for (i = 0; i < n; i++) {
        if (!(fabs(v[i]) <= most)) most = fabs(v[i]);
        if (isnan(v[i])) return (double)NAN;
    }
    if (most == 0) return -HUGE_VAL;
    if (isinf(most)) return HUGE_VAL;
    for (i = 0; i < n; i++) sum += (v[i] / most) * (v[i] / most);
    return log10(most) + 0.5 * log10(sum);
}

/* To a thousandth of a decade, so that the last bits of the C library's logarithm do not matter. */
static double thousandth(double v)
{
    return isfinite(v) ? floor(v * 1000 + 0.5) / 1000 : v;
}

/* Decades relative to the last state: at every tenth step back from it, and at the first state; at
   every state for the arms that a claim holds to a limit at each. */
static void note(lab_run *r, const double *decades, size_t T)
{
    const int all = r->arm >= LAYER && r->arm < LAYER + SCALES;
    double farthest = 0;
    size_t t;
    for (t = 1; t <= T; t++) {
        if (!(fabs(decades[t]) <= farthest)) farthest = fabs(decades[t]);
        if (all || t == 1 || (T - t) % 10 == 0) lab_record(r, "decades", (double)t, decades[t]);
    }
    lab_record(r, "farthest", 0, farthest);
}

static int run(lab_run *r)
{
    const setting *k = &settings[r->arm];
    const size_t T = steps_of(r->quick), H = units_of(r->quick), state = N * H;
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
    for (t = 0; t <= T; t++) decades[t] = log_length(c.dh + t * state, state);
    for (t = 0; t <= T; t++) decades[t] = thousandth(decades[t] - decades[T]);
    note(r, decades, T);
    predict(decades, k, T);
    lab_record(r, "formula", 1, thousandth(decades[1]));
    free(c.block);
    if (rc < 0) fprintf(stderr, "20_recurrent_norm: %s\n", nrm_strerror(rc));
    return rc < 0 ? -1 : 0;
}

/* ---- what came out --------------------------------------------------------------------------- */

static stats_summary gained(const lab_report *r, size_t a) /* from the last state to the first */
{
    return lab_summary(r, a, "decades", 1);
}

static double formula(const lab_report *r, size_t a)
{
    return lab_mean(r, a, "formula", 1);
}

/* The largest distance from 0 at any state, of any seed. */
static double farthest(const lab_report *r, size_t a)
{
    return lab_summary(r, a, "farthest", 0).max;
}

/* The same of the mean over the seeds: for arms with records of every state. */
static double farthest_mean(lab_report *r, size_t a)
{
    const lab_curve c = lab_over_seeds(r, a, "decades");
    double most = 0;
    size_t i;
    for (i = 0; i < c.n; i++)
        if (!(fabs(c.mean[i]) <= most)) most = fabs(c.mean[i]);
    return most;
}

/* The factor of one step that makes so many decades from the last state to the first. */
static double per_step(const lab_report *r, double decades)
{
    return pow(10, decades / (double)(steps_of(lab_quick(r)) - 1));
}

static double tolerance(const lab_report *r, size_t a)
{
    return 1 + 0.05 * fabs(formula(r, a));
}

static int as_predicted(const lab_report *r, size_t a)
{
    return fabs(gained(r, a).mean - formula(r, a)) <= tolerance(r, a);
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

/* clang-format off */
static const lab_claim claims[] = {
    {"20a", "The plain cell explodes or vanishes at all three scales", ba, grow,
     "more than ten decades from t = 500 to t = 1 in every seed", pilots, LAB_TRAINING,
     LAB_SETTING},
    {"20b", "With layer norm and s = 0.2648 the gradient stays within a factor of 10", ours, stable,
     "at all three scales and every t, in every seed; partly: in the mean over the seeds", pilots,
     LAB_TRAINING, LAB_SETTING},
    {"20d", "With layer norm and an input of unit variance it stays within a factor of 10",
     "ours, the limit of 20b for the usual input", stable,
     "s = 1, γ = 1, every t, every seed. Added after the run", "the run itself", LAB_TRAINING,
     LAB_NEWS},
    {"20c", "The formula gives it to 1 decade + 5 %", ours, "no paper",
     "mean over the seeds at t = 1, all settings but those marked as beyond it", pilots,
     LAB_TRAINING, LAB_NEWS}};
/* clang-format on */

static void judge_cells(lab_report *r)
{
    double least = HUGE_VAL, most = 0, most_mean = 0;
    stats_finding far[SCALES], near[SCALES];
    size_t i;
    for (i = 0; i < SCALES; i++) {
        const stats_summary s = gained(r, PLAIN + i);
        const int sign = s.mean > 0 ? 1 : -1;
        least = stats_smaller(least, sign > 0 ? s.min : -s.max);
        far[i] = lab_limit(r, PLAIN + i, "decades", 1, 10 * sign, sign);
        most = stats_larger(most, farthest(r, LAYER + i));
        near[i] = lab_limit(r, LAYER + i, "farthest", 0, 1, -1);
        most_mean = stats_larger(most_mean, farthest_mean(r, LAYER + i));
    }
    lab_verdict(r, lab_find(r, "20a"), stats_together(far, SCALES), "", "at least %.1f decades",
                least);
    lab_verdict(r, lab_find(r, "20b"), stats_together(near, SCALES), "",
                "at most a factor of %.1f (mean of the seeds: %.1f)", pow(10, most),
                pow(10, most_mean));
    lab_verdict(r, lab_find(r, "20d"), lab_limit(r, LOUD, "farthest", 0, 1, -1), "",
                "up to %.1f decades; at t = 1 %.1f", farthest(r, LOUD), gained(r, LOUD).mean);
}

static void judge_formula(lab_report *r)
{
    stats_finding part[ARMS];
    size_t a, right = 0, claimed = 0;
    for (a = 0; a < ARMS; a++) {
        if (settings[a].claimed != CLAIMED) continue;
        part[claimed++] = lab_near(r, a, "decades", 1, formula(r, a), tolerance(r, a));
        right += (size_t)as_predicted(r, a);
    }
    lab_verdict(r, lab_find(r, "20c"), stats_together(part, claimed),
                lab_format(r,
                           "loud input with gain 3.377: %.1f decades, formula %.1f; with 768 "
                           "inputs, afterwards, %.1f",
                           gained(r, LOUD_GAIN).mean, fabs(formula(r, LOUD_GAIN)),
                           gained(r, ARMS - 1).mean),
                "in %zu of %zu settings", right, claimed);
}

/* What is exact: powers of two on all weights change no bit, but for ε; known values of E. */
static void check(lab_report *r)
{
    const means tanh_1 = mean_field(NRM_TANH, 1);
    double most = 0;
    size_t s, i;
    for (s = 0; s < lab_seeds(r, LAYER); s++)
        for (i = 0; i < SCALES; i++)
            most = stats_larger(most, fabs(lab_at(r, LAYER + i, s, "decades", 1) -
                                           lab_at(r, LAYER + 1, s, "decades", 1)));
    lab_check(r, most < 0.0025, "layer norm does not see the scale of all weights, but for ε",
              "three scales agree to %.3f decades", most);
    lab_check(r, fabs(tanh_1.square - 0.3943) < 1e-4 && fabs(tanh_1.slope - 0.4644) < 1e-4,
              "tanh of N(0, 1): mean square 0.3943, of the slope 0.4644", "%.4f, %.4f",
              tanh_1.square, tanh_1.slope);
}

static void print_results(const lab_report *r)
{
    size_t a;
    printf("decades that the gradient gains from the last state to the first\n");
    printf("%-50s %9s %9s %9s %9s  %s\n", "setting", "formula", "mean", "min", "max",
           "factor of a step: formula, mean");
    printf("(off: missed, counted in 20c; beyond the formula, afterwards: not counted there)\n");
    for (a = 0; a < ARMS; a++) {
        const stats_summary s = gained(r, a);
        printf("%-50s %9.2f %9.2f %9.2f %9.2f  %.4f %.4f%s\n", arms[a].name, formula(r, a), s.mean,
               s.min, s.max, per_step(r, formula(r, a)), per_step(r, s.mean),
               settings[a].claimed == BEYOND       ? "  (beyond the formula)"
               : settings[a].claimed == AFTERWARDS ? "  (afterwards)"
               : as_predicted(r, a)                ? ""
                                                   : "  (off)");
    }
}

/* ---- figure ---------------------------------------------------------------------------------- */

static const int scale_dash[SCALES] = {PLOT_DASHED, PLOT_SOLID, PLOT_DASHDOT};

/* A curve of decades as factors, against the steps back from the last state. */
static void add_factors(plot_panel *p, const char *name, const double *t, const double *decades,
                        size_t n, size_t T, plot_style style)
{
    double back[STEPS_MAX], factor[STEPS_MAX];
    size_t i;
    for (i = 0; i < n && i < STEPS_MAX; i++) {
        back[i] = (double)T - t[i];
        factor[i] = pow(10, decades[i]);
    }
    plot_line(p, name, back, factor, n, style);
}

static void add_curve(plot_panel *p, lab_report *r, size_t a, const char *name, plot_color color,
                      int dash)
{
    const lab_curve c = lab_over_seeds(r, a, "decades");
    plot_style style = plot_solid(color);
    style.dash = dash;
    add_factors(p, name, c.x, c.mean, c.n, steps_of(lab_quick(r)), style);
}

static void add_seeds(plot_panel *p, const lab_report *r, size_t a, plot_color color)
{
    size_t s;
    for (s = 0; s < lab_seeds(r, a); s++) {
        const lab_series one = lab_get(r, a, s, "decades");
        add_factors(p, NULL, one.x, one.y, one.n, steps_of(lab_quick(r)), plot_thin(color));
    }
}

/* Both kinds of panel: with decades up to a hundred and more, or about a factor of 10. */
static plot_panel *gradient_panel(plot_figure *f, const lab_report *r, int row, int col, int wide,
                                  const char *heading)
{
    static const double at[6] = {1e-150, 1e-100, 1e-50, 1, 1e25, 1e50};
    static const char *const label[6] = {"10^{-150}", "10^{-100}", "10^{-50}",
                                         "1",         "10^{25}",   "10^{50}"};
    plot_panel *p = plot_add(f, row, col, 1, 1);
    plot_heading(p, heading);
    plot_axis_x(p, "steps back from the last state", PLOT_LINEAR);
    plot_axis_y(p, "|∂L/∂h_{t}|, last state: 1", PLOT_LOG10);
    plot_range_x(p, 0, (double)steps_of(lab_quick(r)));
    if (wide) {
        if (!lab_quick(r)) plot_ticks_y(p, at, label, 6);
    } else {
        plot_style shade = plot_solid(PLOT_LIGHT);
        shade.alpha = 0.35;
        plot_span_y(p, 0.1, 10, shade);
    }
    return p;
}

static void draw_both(plot_figure *f, lab_report *r)
{
    plot_panel *p = gradient_panel(f, r, 0, 0, 1, "plain, and with layer norm");
    size_t i;
    for (i = 0; i < SCALES; i++) {
        add_curve(p, r, PLAIN + i, arms[PLAIN + i].name, lab_level((size_t)(i), SCALES),
                  scale_dash[i]);
    }
    for (i = 0; i < SCALES; i++)
        add_curve(p, r, LAYER + i, "layer norm, all ρ", PLOT_INK, PLOT_SOLID);
    plot_legend(p, PLOT_LEGEND_BOTTOM_LEFT);
}

static void draw_normalized(plot_figure *f, lab_report *r)
{
    plot_panel *p = gradient_panel(f, r, 0, 1, 0, "layer norm alone: seeds (thin), means");
    size_t i;
    add_seeds(p, r, LAYER, PLOT_GREY);
    for (i = 0; i < SCALES; i++) {
        const char *name = lab_format(r, "mean, ρ = %g", settings[LAYER + i].rho);
        add_curve(p, r, LAYER + i, name, lab_level((size_t)(i), SCALES), scale_dash[i]);
    }
    plot_range_y(p, 0.003, 30); /* room for the legend below the band */
    plot_text_in(p, 0.03, 0.8, "a factor of 10", PLOT_LEFT, PLOT_GREY);
    plot_legend(p, PLOT_LEGEND_BOTTOM_LEFT);
}

static void draw_further(plot_figure *f, lab_report *r)
{
    static const size_t which[4] = {SILENT, ONLY_WH_2, ONLY_WH_05, LOUD};
    static const char *const name[4] = {"no input", "only W_{h} scaled, ρ = 2",
                                        "only W_{h} scaled, ρ = 0.5", "loud input"};
    const plot_color color[4] = {lab_level(0, 4), lab_level(1, 4), lab_level(2, 4),
                                 lab_level(3, 4)};
    static const int dash[4] = {PLOT_SOLID, PLOT_DASHDOT, PLOT_DASHED, PLOT_SOLID};
    plot_panel *p = gradient_panel(f, r, 1, 0, 1, "layer norm, where it is not neutral");
    size_t i;
    for (i = 0; i < 4; i++) add_curve(p, r, which[i], name[i], color[i], dash[i]);
    if (!lab_quick(r)) plot_range_y(p, 1e-175, 1e30); /* room for the legend below the curves */
    plot_legend(p, lab_quick(r) ? PLOT_LEGEND_AUTO : PLOT_LEGEND_BOTTOM_LEFT);
}

static void draw_nearly(plot_figure *f, lab_report *r)
{
    static const size_t which[3] = {LOUD_GAIN, SILENT_RELU, SILENT_GAIN};
    static const char *const name[3] = {"loud input, γ = 3.377", "no input, ReLU",
                                        "no input, γ = 0.1"};
    const plot_color color[3] = {lab_level(0, 3), lab_level(1, 3), lab_level(2, 3)};
    static const int dash[3] = {PLOT_DASHED, PLOT_SOLID, PLOT_DASHDOT};
    plot_panel *p = gradient_panel(f, r, 1, 1, 0, "neutral by the formula: seeds (thin), means");
    size_t i;
    for (i = 0; i < 3; i++) {
        add_seeds(p, r, which[i], color[i]);
        add_curve(p, r, which[i], name[i], color[i], dash[i]);
    }
    plot_legend(p, PLOT_LEGEND_TOP_LEFT);
}

/* Factors of a step: the formula's and the measured ones. */
static void draw_formula(plot_figure *f, lab_report *r)
{
    static const char *const name[4] = {"plain", "layer norm", "beyond the formula", "768 inputs"};
    static const plot_color color[4] = {PLOT_VERMILLION, PLOT_GREEN, PLOT_INK, PLOT_GREY};
    static const int marker[4] = {PLOT_TRIANGLE, PLOT_CIRCLE, PLOT_RING, PLOT_PLUS};
    const double line[2] = {0.3, 1.5};
    plot_panel *p = plot_add(f, 2, 0, 1, 1);
    double x[ARMS], y[ARMS];
    size_t a, n;
    int group;
    plot_heading(p, "the factor of one step, all settings");
    plot_axis_x(p, "by the formula", PLOT_LINEAR);
    plot_axis_y(p, "measured", PLOT_LINEAR);
    plot_range_x(p, line[0], line[1]);
    plot_range_y(p, line[0], line[1]);
    plot_line(p, NULL, line, line, 2, plot_dotted(PLOT_GREY));
    for (group = 0; group < 4; group++) {
        for (a = 0, n = 0; a < ARMS; a++) {
            const int own = settings[a].claimed == CLAIMED  ? settings[a].norm == NRM_LAYER_NORM
                            : settings[a].claimed == BEYOND ? 2
                                                            : 3;
            if (group != own) continue;
            x[n] = per_step(r, formula(r, a));
            y[n++] = per_step(r, gained(r, a).mean);
        }
        plot_scatter(p, name[group], x, y, n, plot_marked(color[group], marker[group]));
    }
    plot_legend(p, PLOT_LEGEND_BOTTOM_RIGHT);
}

/* Rounded, and not to -0. */
static double tenth(double v)
{
    return fabs(v) < 0.05 ? 0 : v;
}

static void draw_table(plot_figure *f, lab_report *r)
{
    enum { ROWS = 2 * SCALES + 1, COLUMNS = 4 };
    const char *cells[ROWS * COLUMNS] = {"cell", "formula", "mean", "min to max"};
    plot_panel *p = plot_add(f, 2, 1, 1, 1);
    size_t i;
    for (i = 1; i < ROWS; i++) {
        const size_t a = PLAIN + i - 1;
        const stats_summary s = gained(r, a);
        cells[i * COLUMNS] = arms[a].name;
        cells[i * COLUMNS + 1] = lab_format(r, "%.1f", tenth(formula(r, a)));
        cells[i * COLUMNS + 2] = lab_format(r, "%.1f", tenth(s.mean));
        cells[i * COLUMNS + 3] = lab_format(r, "%.1f to %.1f", s.min, s.max);
    }
    plot_heading(p, "decades gained on the way back to t = 1");
    plot_table(p, cells, ROWS, COLUMNS, "lrrr");
}

static int report(lab_report *r)
{
    plot_figure *f = lab_figure(
        r, "Layer norm carries a gradient over 500 steps where the input is weak", 1800, 2000);
    judge_cells(r);
    judge_formula(r);
    check(r);
    print_results(r);
    draw_both(f, r);
    draw_normalized(f, r);
    draw_further(f, r);
    draw_nearly(f, r);
    draw_formula(f, r);
    draw_table(f, r);
    return lab_save(r, f, NULL);
}

/* clang-format off */
static const lab_program program = {
    "20_recurrent_norm", NRM_VERSION, "How far back does the gradient of a recurrent layer reach?",
    "768 tanh units, 500 steps, 8 sequences, loss on the last state, random weights: W_{h} ~ N(0, "
    "ρ²/H), W_{x} ~ N(0, ρ²s²/16). In a, b and the table: weak input at every step, s = 0.2648, "
    "and γ = 1. Geometric means", 1, 0, arms, ARMS, NULL, run, report, claims, LAB_COUNT(claims)};
/* clang-format on */
LAB_MAIN(program)
