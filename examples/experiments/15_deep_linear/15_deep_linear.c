/* 15_deep_linear: does batch norm help a network of 25 linear layers, and is it internal covariate
   shift that it takes away? (README.md)

   Every 100 steps, and at each of the first 20, a probe: the shift at layers 9 and 17, that is, the
   gradient G of a layer's weights and G' after all layers before it have made their step; and the
   landscape along the gradient of all parameters, at several learning rates. Everything is in
   double. */
#define NRM_DOUBLE
#include "lab/experiment.h"
#include "lab/draw.h"
#include "lab/landscape.h"
#include "lab/matrix.h"

/* ---- the arms -------------------------------------------------------------------------------- */

enum { NONE = 0, BATCH, L1, L2, LINF, NORMS };
enum { FAST = 0, SLOW = NORMS, ALL25 = 2 * NORMS, ARMS };

static const lab_arm arms[ARMS] = {{"none", "no norm", 11, 20},
                                   {"batch", "batch norm", 16, 20},
                                   {"l1", "L1 norm", 20, 20},
                                   {"l2", "L2 norm", 16, 20},
                                   {"linf", "L∞ norm", 25, 20},
                                   {"none_slow", "no norm", 11, 0},
                                   {"batch_slow", "batch norm", 16, 0},
                                   {"l1_slow", "L1 norm", 5, 3},
                                   {"l2_slow", "L2 norm", 5, 3},
                                   {"linf_slow", "L∞ norm", 5, 3},
                                   {"batch_all", "batch norm after all 25", 16, 3}};

static int norm_of(size_t arm)
{
    return arm == ALL25 ? BATCH : (int)(arm % NORMS);
}

/* ---- the network ----------------------------------------------------------------------------- */

enum { DIM = 10, LAYERS = 25, SAMPLES = 1000 };
enum { WEIGHTS = DIM * DIM, OF_LAYER = WEIGHTS + 2 * DIM, PARAMS = LAYERS * OF_LAYER };
#define EPSILON 1e-5

/* Parameters are layer by layer W[10][10], γ[10], β[10]; unused ones never move. Values are
   [10][n], one unit after the other, so that all loops run along the examples. */
typedef double values[DIM * SAMPLES];
typedef struct net {
    landscape_model m; /* first: net_gradient finds the rest by it */
    double now[PARAMS], grad[PARAMS], lr;
    int norm;
    size_t n, normed; /* examples; layers 0..normed-1 have a norm */
    values x, target, linear[LAYERS], out[LAYERS], back[2];
    double mean[LAYERS][DIM], scale[LAYERS][DIM];
} net;

/* y = Wᵀ·x for W [10][10], x [10][n]: of a layer whose input is W, the gradient of its weights. */
static void product(double *y, const double *W, const double *x, size_t n)
{
    memset(y, 0, DIM * n * sizeof *y);
    (void)nrm_linear_backward(NULL, y, NULL, x, W, NULL, DIM, DIM, n);
}

/* dW[i][k..k+4] = sums of x[i]·dy[k] over the examples, LANES partial sums each. */
static void weight_gradient(double *dW, const double *restrict x, const double *restrict dy,
                            size_t n)
{
    enum { PART = 5, LANES = 8 };
    size_t i, at, j, k;
    for (i = 0; i < DIM * DIM; i += PART) {
        const double *xi = x + i / DIM * n, *from = dy + i % DIM * n;
        double sum[PART][LANES] = {{0}};
        for (at = 0; at < n; at += LANES)
            for (k = 0; k < PART; k++)
                for (j = 0; j < LANES; j++) sum[k][j] += xi[at + j] * from[k * n + at + j];
        for (k = 0; k < PART; k++)
            for (dW[i + k] = 0, j = 0; j < LANES; j++) dW[i + k] += sum[k][j];
    }
}

static const int lp_of[NORMS] = {0, 0, NRM_L1, NRM_L2, NRM_LINF};

/* One channel is one unit, and its examples are the positions of one image: [1][10][n]. */
static int norm_forward(net *t, const double *W, size_t l)
{
    const double *gamma = W + WEIGHTS, *beta = gamma + DIM;
    if (t->norm == BATCH)
        return nrm_batchnorm_forward(t->out[l], t->mean[l], t->scale[l], NULL, t->linear[l], gamma,
                                     beta, NRM_TRAIN, EPSILON, 1, DIM, t->n);
    return nrm_lp_batchnorm_forward(t->out[l], t->mean[l], t->scale[l], NULL, t->linear[l], gamma,
                                    beta, lp_of[t->norm], NRM_TRAIN, EPSILON, 1, DIM, t->n);
}

static int norm_backward(net *t, double *dx, double *dW, const double *dy, const double *W,
                         size_t l)
{
    const double *gamma = W + WEIGHTS;
    double *dgamma = dW + WEIGHTS, *dbeta = dgamma + DIM;
    if (t->norm == BATCH)
        return nrm_batchnorm_backward(dx, dgamma, dbeta, dy, t->linear[l], t->mean[l], t->scale[l],
                                      gamma, NRM_TRAIN, 1, DIM, t->n);
    return nrm_lp_batchnorm_backward(dx, dgamma, dbeta, dy, t->linear[l], t->mean[l], t->scale[l],
                                     gamma, lp_of[t->norm], NRM_TRAIN, EPSILON, 1, DIM, t->n);
}

/* The sum of ||z - A x||² and its gradient. Not finite: a run that has left the numbers. */
static int net_gradient(landscape_model *m, double *loss)
{
    net *t = (net *)m;
    const double *in[LAYERS + 1] = {t->x}, *z;
    double *dy = t->back[0], *dx = t->back[1], *swap;
    size_t i, l;
    memset(t->grad, 0, sizeof t->grad);
    *loss = 0;
    for (l = 0; l < LAYERS; l++) {
        const double *W = t->now + l * OF_LAYER;
        product(t->linear[l], W, in[l], t->n);
        if (l < t->normed) (void)norm_forward(t, W, l);
        in[l + 1] = l < t->normed ? t->out[l] : t->linear[l];
    }
    for (i = 0, z = in[LAYERS]; i < DIM * t->n; i++) {
        const double d = z[i] - t->target[i];
        *loss += d * d;
        dy[i] = 2 * d;
    }
    for (l = LAYERS; l-- > 0; swap = dx, dx = dy, dy = swap) {
        const double *W = t->now + l * OF_LAYER;
        double *dW = t->grad + l * OF_LAYER;
        if (l < t->normed) (void)norm_backward(t, dy, dW, dy, W, l);
        weight_gradient(dW, in[l], dy, t->n);
        if (l > 0) (void)nrm_linear_forward(dx, W, dy, NULL, DIM, DIM, t->n);
    }
    return NRM_OK;
}

/* ---- data and start -------------------------------------------------------------------------- */

enum { STREAM_A = 1, STREAM_X = 2, STREAM_W = 100 };

/* x and target are gathered unit by unit; the numbers are drawn example by example. */
static void net_data(net *t, uint64_t seed)
{
    double A[WEIGHTS];
    nrm_rng rng;
    size_t i, n;
    draw_normals(A, WEIGHTS, 1, seed, STREAM_A);
    nrm_rng_seed(&rng, seed, STREAM_X);
    for (n = 0; n < t->n; n++)
        for (i = 0; i < DIM; i++) t->x[i * t->n + n] = draw_normal(&rng);
    (void)nrm_linear_forward(t->target, A, t->x, NULL, DIM, DIM, t->n);
}

/* All arms of a seed have the same data, and the same weights at the start. */
static void net_start(net *t, uint64_t seed)
{
    const double most = sqrt(6.0 / (DIM + DIM));
    nrm_rng rng;
    size_t i, l;
    memset(t->now, 0, sizeof t->now);
    for (l = 0; l < LAYERS; l++) {
        double *W = t->now + l * OF_LAYER;
        nrm_rng_seed(&rng, seed, STREAM_W + l);
        for (i = 0; i < WEIGHTS; i++) W[i] = most * (2 * draw_uniform(&rng) - 1);
        for (i = 0; i < DIM; i++) W[WEIGHTS + i] = 1;
    }
}

static void net_make(net *t, const lab_run *r)
{
    memset(t, 0, sizeof *t);
    t->m = (landscape_model){
        .n = PARAMS, .params = t->now, .grads = t->grad, .evaluate = net_gradient};
    t->lr = r->arm >= SLOW && r->arm < ALL25 ? 1e-7 : 1e-6;
    t->norm = norm_of(r->arm);
    t->n = r->quick ? 200 : SAMPLES;
    t->normed = t->norm == NONE ? 0 : r->arm == ALL25 ? LAYERS : LAYERS - 1;
    net_data(t, r->seed);
    net_start(t, r->seed);
}

static double cosine(const double *a, const double *b, size_t n)
{
    return training_dot(a, b, n) / sqrt(training_dot(a, a, n) * training_dot(b, b, n));
}

/* ---- probes ---------------------------------------------------------------------------------- */

enum { STEPS = 10000, GRID = 100, PROBES = STEPS / GRID + 1, EARLY = 20, PLACES = 2, SCALES = 8 };

static const size_t place[PLACES] = {9, 17}; /* counted from 1, as in the paper */
static const double scales[SCALES] = {0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30};

/* Along the gradient: the lowest and highest loss, the least and most change of the gradient, the
   most change over distance. Of a layer: the length of G - G', the cosine of both, and the length
   over that of G. The cosine of the gradient with that of the next step. */
enum { LOW, HIGH, DLOW, DHIGH, BETA, ICS, COS, CURVES = BETA + 1 + 2 * PLACES };
enum { REL = CURVES, TURN = REL + PLACES, LOSS, QUANTITIES };
static const char *const curve_name[CURVES] = {"low",  "high", "dlow",  "dhigh", "beta",
                                               "ics9", "cos9", "ics17", "cos17"};

typedef struct probe {
    double of[QUANTITIES];
} probe;

/* All quantities at the present place. Leaves the parameters as they are there. The layers before
   each place make their step with all they have, W, γ and β. */
static probe probe_all(net *t, landscape_place *here)
{
    landscape_view v;
    double loss;
    probe p;
    size_t i;
    for (i = 0; i < PLACES; i++) {
        const size_t before = (place[i] - 1) * OF_LAYER;
        const double *G = here->grads + before, *H = t->grad + before;
        double *shift = &p.of[ICS + 2 * i];
        landscape_move(here, t->lr, before);
        (void)net_gradient(&t->m, &loss);
        *shift = training_distance(G, H, WEIGHTS);
        p.of[COS + 2 * i] = cosine(G, H, WEIGHTS);
        p.of[REL + i] = *shift / sqrt(training_dot(G, G, WEIGHTS));
    }
    landscape_view_start(&v);
    for (i = 0; i < SCALES; i++) (void)landscape_view_add(&v, here, scales[i] * t->lr);
    p.of[LOW] = v.lowest;
    p.of[HIGH] = v.highest;
    p.of[DLOW] = v.least;
    p.of[DHIGH] = v.most;
    p.of[BETA] = v.beta;
    p.of[TURN] = (double)NAN; /* until the next step */
    p.of[LOSS] = here->loss;
    return p;
}

/* ---- the loss of the best linear maps -------------------------------------------------------- */

/* level[r]: the loss of the best linear map of rank r, by Eckart and Young. With targets T = A x
   it is the sum of the DIM - r smallest eigenvalues of the sum of T T', for the best map of any
   rank, A itself, has loss 0. */
static void levels(const net *t, double level[DIM + 1])
{
    double S[DIM * DIM], value[DIM];
    size_t i, n = t->n;
    for (i = 0; i < DIM * DIM; i++)
        S[i] = training_dot(t->target + i / DIM * n, t->target + i % DIM * n, n);
    (void)matrix_eigen(S, NULL, DIM);
    for (i = 0; i < DIM; i++) value[i] = S[i * (DIM + 1)];
    stats_sort(value, DIM);
    for (level[DIM] = 0, i = 0; i < DIM; i++) level[DIM - 1 - i] = level[DIM - i] + value[i];
}

/* ---- one run --------------------------------------------------------------------------------- */

/* Curves of shift and landscape are kept at fewer steps than probed; the medians know all. */
static int drawn(size_t step)
{
    if (step <= 1 || step == 5 || step == EARLY || step == 100 || step == 300 || step == 700)
        return 1;
    return step % 400 == 200 || step == STEPS;
}

static void record_curves(lab_run *r, const probe *p, size_t step)
{
    const int curves = norm_of(r->arm) <= BATCH ? CURVES : ICS;
    int i;
    if (!drawn(step) || r->arm == ALL25) return;
    for (i = 0; i < curves; i++) lab_record(r, curve_name[i], (double)step, p->of[i]);
}

/* The distribution of one unit before its norm: Gaussian, as its inputs are. */
static void record_unit(lab_run *r, const net *t, size_t step)
{
    size_t i;
    if (step % 1000 || norm_of(r->arm) > BATCH || r->arm >= SLOW) return;
    for (i = 0; i < PLACES; i++) {
        const stats_summary s = stats_describe(t->linear[place[i] - 1], t->n);
        lab_record_as(r, (double)step, s.mean, "mean%u", (unsigned)place[i]);
        lab_record_as(r, (double)step, s.sd, "sd%u", (unsigned)place[i]);
    }
}

/* Medians over all probes of the even grid. */
static void record_medians(lab_run *r, const probe *p, size_t n, double rate)
{
    static const struct {
        const char *name;
        int of, early; /* of steps 0 to 1000, log10 */
    } medians[] = {{"rel9_m", REL},       {"cos9_m", COS},        {"rel17_m", REL + 1},
                   {"cos17_m", COS + 2},  {"turn_m", TURN},       {"high_m", HIGH, 1},
                   {"dhigh_m", DHIGH, 1}, {"beta_early", BETA, 1}};
    double v[PROBES];
    size_t i, k;
    for (k = 0; k < LAB_COUNT(medians); k++) {
        const int early = medians[k].early;
        const size_t count = early && n > 11 ? 11 : n;
        for (i = 0; i < count; i++) {
            const double seen = p[i].of[medians[k].of];
            v[i] = early ? log10(seen) : seen;
        }
        lab_record(r, medians[k].name, 0, stats_median(v, count));
    }
    for (k = 0, i = 5; i < n && i <= 20; i++) /* steps 500..2000, while the loss still moves */
        if (fabs(p[i - 5].of[LOSS] - p[i].of[LOSS]) >= 1e-3 * p[i - 5].of[LOSS])
            v[k++] = p[i].of[BETA] * rate;
    lab_record(r, "beta_m", 0, stats_median(v, k)); /* in units of 1 / learning rate: 2 expected */
}

/* Where the run has come to, beside the losses of the best linear maps. */
static void record_end(lab_run *r, const net *t, const probe *p, size_t n)
{
    const double end = p[n - 1].of[LOSS], then = p[n > 10 ? n - 11 : 0].of[LOSS];
    double level[DIM + 1], gap = (double)INFINITY;
    size_t i, rank = 0;
    levels(t, level);
    for (i = 0; i <= DIM; i++) {
        if (norm_of(r->arm) == NONE) lab_record(r, "level", (double)i, level[i]);
        if (level[i] > 0 && fabs(log(end / level[i])) < gap) {
            gap = fabs(log(end / level[i]));
            rank = i;
        }
    }
    lab_record(r, "end", 0, end);
    lab_record(r, "rank", 0, (double)rank);
    lab_record(r, "off", 0, end / level[rank] - 1);
    lab_record(r, "rest", 0, then - end < 1e-3 * then);
}

/* No claim is about Lp norms at the lower rate: fewer steps, and no probe but the loss. */
static int is_short(size_t arm)
{
    return arm >= SLOW && norm_of(arm) > BATCH;
}

static int run(lab_run *r)
{
    static net t;
    static probe kept[PROBES];
    static double before[PARAMS]; /* the gradient of the last step */
    const size_t grid = r->quick ? 20 : GRID;
    const size_t steps = r->quick ? 120 : is_short(r->arm) ? 3000 : STEPS;
    landscape_place here;
    size_t step, n = 0;
    net_make(&t, r);
    if (landscape_place_make(&here, &t.m, r->seed)) return -1;
    for (step = 0; step <= steps; step++) {
        const int on_grid = step % grid == 0;
        (void)landscape_arrive(&here);
        if (n > 0 && step % grid == 1) kept[n - 1].of[TURN] = cosine(before, here.grads, PARAMS);
        if (on_grid) record_unit(r, &t, step);
        if (on_grid) lab_record(r, "loss", (double)step, here.loss);
        if ((on_grid || step < EARLY) && !is_short(r->arm)) {
            const probe p = probe_all(&t, &here);
            record_curves(r, &p, step);
            if (on_grid) kept[n++] = p;
        }
        memcpy(before, here.grads, sizeof before);
        landscape_move(&here, t.lr, PARAMS);
        if (on_grid) lab_progress(r, (double)step / (double)steps);
    }
    if (n > 0) record_medians(r, kept, n, t.lr);
    if (n > 0) record_end(r, &t, kept, n);
    landscape_place_free(&here);
    return 0;
}

/* ---- claims ---------------------------------------------------------------------------------- */

/* Without a nonlinearity, no shift: two layers, two networks, two learning rates. */
static void judge_no_shift(lab_report *r, const lab_claim *c)
{
    enum { NETS = 4, ALL = NETS * PLACES };
    static const size_t of[NETS] = {NONE, BATCH, SLOW, SLOW + BATCH};
    static const char *const series[PLACES] = {"rel9_m", "rel17_m"};
    double mean[ALL];
    stats_finding part[ALL];
    stats_summary range;
    size_t i;
    for (i = 0; i < ALL; i++) {
        mean[i] = lab_mean(r, of[i / PLACES], series[i % PLACES], 0);
        part[i] = lab_below(lab_all(r, of[i / PLACES], series[i % PLACES], 0), 0.01);
    }
    range = stats_describe(mean, ALL);
    lab_verdict(r, c, stats_together(part, ALL), "", "|G - G'| / |G| between %.3g and %.3g",
                range.min, range.max);
}

static void judge_ranks(lab_report *r, const lab_claim *c)
{
    size_t arm, s, all = 0, rest = 0, near = 0;
    double off = 0;
    for (arm = 0; arm < ALL25; arm++)
        for (s = 0; s < lab_seeds(r, arm); s++) {
            all += !is_short(arm);
            if (!(lab_at(r, arm, s, "rest", 0) > 0.5)) continue;
            rest++;
            near += fabs(lab_at(r, arm, s, "off", 0)) <= 0.005;
            off = stats_larger(off, fabs(lab_at(r, arm, s, "off", 0)));
        }
    lab_verdict(
        r, c,
        rest == 0 ? stats_unknown() : stats_holds_partly(near == rest, stats_most(near, rest)),
        lab_format(r, "largest distance %.2g %%", 100 * off), "%u of %u runs at rest, of %u in all",
        (unsigned)near, (unsigned)rest, (unsigned)all);
}

/* In logarithms, so many decades lower. */
#define LOWER(of, decades)                                                                         \
    .test = LAB_LESS, .a = BATCH, .b = NONE, .series = of, .limit = decades,                       \
    .say = "#1[10^%.2g] with, #2[10^%.2g] without: a factor of #2-1[10^%.3g]",                     \
    .remark = "geometric means over seeds"
#define ENDS_BELOW(arm_a, arm_b) .test = LAB_LESS, .a = arm_a, .b = arm_b, .series = "end"
#define SANTURKAR "Santurkar et al. 2018, "

/* clang-format off */
#define GRADIENT_KEPT(of) /* without a norm, at the lower rate; 0.9 and 0.99 do not count */       \
    {LAB_LESS, SLOW + BATCH, SLOW, of, .a_mean = {-HUGE_VAL, 0.9 - 1e-9},                          \
     .b_mean = {0.99 + 1e-9, HUGE_VAL}, .most = 1}
#define NO_HIGHER(id, name, arm, paper, pilot)                                                     \
    {id, name " norm ends no higher than no norm", SANTURKAR "Fig. 13", paper,                     \
     "final loss below none, learning rate 1e-6", "trial runs (5 seeds): " pilot,                  \
     ENDS_BELOW(arm, NONE)}
static const lab_claim claims[] = {
    {"15a", "A 25-layer linear network ends with a lower loss with batch norm than without",
     SANTURKAR "Fig. 3 and 13", "about 500 against 1.7e3 after 10,000 steps",
     "final loss of batch norm below none, learning rate 1e-6",
     "trial runs (5 seeds): lower in 5 of 5, 2120 to 8300 against 10100 to 22200",
     ENDS_BELOW(BATCH, NONE)},
    {"15b", "At learning rate 1e-7 gradients survive the step of the earlier layers without a "
     "norm, and do not with batch norm", SANTURKAR "Fig. 3",
     "cosine 1.00 without; anywhere in -1..1 with batch norm", "median cosine of G and G' lower "
     "with batch norm at layers 9 and 17, none > 0.99, batch norm < 0.9 (the mean over seeds, and "
     "4 of 5 seeds)", "trial run (1 seed): none 1.00 everywhere, batch norm in -0.9..1",
     LAB_PARTS(GRADIENT_KEPT("cos9_m"), GRADIENT_KEPT("cos17_m")),
     .say = "layer 9: $2[3] without, $1[2] with; layer 17: $4[3], $3[2]",
     .remark = "medians over all probes"},
    {"15c", "At learning rate 1e-6 the gradient is kept at layer 9 and reversed at layer 17",
     SANTURKAR "Fig. 3", "cosine about 1 at layer 9, about -1 at 17, both networks",
     "median cosine > 0.9 at layer 9 and < -0.5 at 17, with and without",
     "trial run (1 seed): layer 17 about -0.9 for both",
     LAB_PARTS({LAB_ABOVE, NONE, 0, "cos9_m", 0, 0.9}, {LAB_BELOW, NONE, 0, "cos17_m", 0, -0.5},
               {LAB_ABOVE, BATCH, 0, "cos9_m", 0, 0.9}, {LAB_BELOW, BATCH, 0, "cos17_m", 0, -0.5}),
     .decimals = 2, .say = "layer 9: $1 without, $3 with; layer 17: $2, $4"},
    {"15d", "Batch norm does not reduce internal covariate shift",
     SANTURKAR "Fig. 3; a tutorial on batch and layer norm",
     "more shift with batch norm in the linear network",
     "median of |G - G'| / |G| larger with batch norm at layers 9 and 17, learning rate 1e-7",
     "none: only cosines had been looked at",
     LAB_PARTS({LAB_MORE, SLOW + BATCH, SLOW, "rel9_m"},
               {LAB_MORE, SLOW + BATCH, SLOW, "rel17_m"}), .decimals = 3,
     .say = "layer 9: $1 with, $2 without; layer 17: $3, $4",
     .remark = "relative to the gradient's length"},
    {"15e", "Without a nonlinearity there is no internal covariate shift",
     "Chinese notes on batch norm", "said, not measured",
     "median of |G - G'| / |G| below 0.01 at both layers, both networks, both learning rates",
     "none: only cosines had been looked at", .why_not = LAB_ALGEBRA, .judge = judge_no_shift},
    {"15f", "The loss along the gradient varies ten times less with batch norm",
     SANTURKAR "Fig. 10a", "orders of magnitude", "highest loss along the gradient, median over "
     "steps 0 to 1000, at least 10 times lower with batch norm, learning rate 1e-6",
     "trial run (1 seed): 8.5e8 against 1.6e5 at step 100", LOWER("high_m", 1)},
    {"15g", "The gradient along the gradient varies ten times less with batch norm",
     SANTURKAR "Fig. 10b", "orders of magnitude", "largest change of the gradient, median over "
     "steps 0 to 1000, at least 10 times smaller with batch norm, learning rate 1e-6", "none",
     LOWER("dhigh_m", 1)},
    {"15h", "Effective beta is smaller with batch norm", SANTURKAR "Fig. 10c",
     "batch norm near 2e6, standard far above at first",
     "effective beta, median over steps 0 to 1000, smaller with batch norm, learning rate 1e-6",
     "trial run (1 seed): standard up to 4e9 early, later 2e6 or below; batch norm 2.0e6",
     LOWER("beta_early", 0)},
    NO_HIGHER("15i", "L1", L1, "about 100 against 1.7e3", "5 of 5"),
    NO_HIGHER("15j", "L2", L2, "lower than 1.7e3", "5 of 5"),
    NO_HIGHER("15k", "L∞", LINF, "about 1e3 against 1.7e3", "4 of 5 below, 1 equal"),
    {"15l", "L1 norm does better than batch norm", SANTURKAR "Fig. 13", "about 100 against 500",
     "final loss of L1 below batch norm, learning rate 1e-6",
     "trial runs (5 seeds): 4 ties and 1 lower; inconclusive expected", ENDS_BELOW(L1, BATCH)},
    {"15m", "The level of effective beta is 2 / learning rate, where descent stops being stable",
     "ours; the papers' plots show 2e6 at 1e-6", "2e6 at learning rate 1e-6, not commented on",
     "batch norm: median effective beta of steps 500 to 2000, while the loss moves (0.1 % in 500 "
     "steps), within 25 % of 2 / learning rate, at both learning rates",
     "trial run (1 seed): 2.0e6 and 2.0e7",
     LAB_PARTS({LAB_WITHIN, BATCH, .series = "beta_m", .limit = 2, .tolerance = 0.5},
               {LAB_WITHIN, SLOW + BATCH, .series = "beta_m", .limit = 2, .tolerance = 0.5},
               {.a = NONE, .series = "beta_m"}, {.a = SLOW, .series = "beta_m"}), .decimals = 2,
     .say = "$1 / lr at 1e-6, $2 / lr at 1e-7", .remark = "without norm between #3[min %.2g] and "
     "#3[max %.2g], and #4[min %.1g] and #4[max %.1g]"},
    {"15n", "Runs come to rest at the loss of the best linear map of some rank", "ours",
     "sudden drops of the loss, not commented on", "of all runs of 10,000 steps with up to 24 "
     "norms whose loss fell by less than 0.1 % in the last 1000 steps, all are within 0.5 % of the "
     "loss of the best map of some rank; 80 %: partly",
     "trial runs (5 seeds): most of the plateaus within 0.5 %", .judge = judge_ranks}};
/* clang-format on */

/* The slope of the loss in a random direction, against the difference of two losses. The step is
   short, as L1 and L∞ have kinks. */
static double check_gradient(landscape_place *here)
{
    const double h = 1e-9;
    double plus, minus, slope, change;
    (void)landscape_arrive(here);
    draw_normals(here->direction, PARAMS, 1, 1, 3);
    slope = training_dot(here->grads, here->direction, PARAMS);
    (void)landscape_look(here, -h, &plus, &change);
    (void)landscape_look(here, h, &minus, &change);
    return fabs((plus - minus) / (2 * h) - slope) / fabs(slope);
}

/* Do 12 steps with probes end with the same bits as 12 without? */
static int check_bits(net *t, landscape_place *here)
{
    double end[2][PARAMS];
    int probed, step;
    for (probed = 0; probed < 2; probed++) {
        net_start(t, 1);
        for (step = 0; step < 12; step++) {
            (void)landscape_arrive(here);
            if (probed && step % 4 == 0) (void)probe_all(t, here);
            landscape_move(here, t->lr, PARAMS);
        }
        memcpy(end[probed], t->now, sizeof t->now);
    }
    return memcmp(end[0], end[1], sizeof end[0]) == 0;
}

/* Of a small network of each arm. */
static void check_all(lab_report *r)
{
    static net t;
    landscape_place here;
    lab_run run = {.seed = 1, .quick = 1};
    double slope = 0;
    size_t same = 0;
    for (; run.arm < ARMS; run.arm++) {
        net_make(&t, &run);
        if (landscape_place_make(&here, &t.m, 1)) break;
        slope = stats_larger(slope, check_gradient(&here));
        same += (size_t)check_bits(&t, &here);
        landscape_place_free(&here);
    }
    lab_check(r, same == ARMS, "Steps with probes end with the bits of steps without",
              "in %u of %u arms", (unsigned)same, (unsigned)ARMS);
    lab_check(r, run.arm == ARMS && slope < 1e-5,
              "The slope of the loss in a random direction is that of central differences",
              "relative error at most %.1e", slope);
}

/* ---- figures --------------------------------------------------------------------------------- */

#define SETTINGS                                                                                   \
    "25 linear layers of 10 x 10, Glorot uniform, norm after layers 1 to 24; targets A x, A and "  \
    "1000 x Gaussian; gradient descent on the sum of squared errors, 10,000 steps"

static plot_style look_of(size_t arm)
{
    static const char *const id[NORMS] = {"none", "batch", "l1", "l2", "linf"};
    plot_style s = lab_style(id[norm_of(arm)]);
    if (norm_of(arm) == LINF) s.marker = PLOT_TRIANGLE;
    return s;
}

/* From the lowest to the highest along the gradient, geometric means over seeds. */
static void draw_range(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    size_t k;
    for (k = 0; k < 2; k++) {
        const size_t arm = panel->arm + k;
        const lab_curve a = lab_geometric(r, arm, lab_format(r, "%slow", panel->series), 0);
        const lab_curve b = lab_geometric(r, arm, lab_format(r, "%shigh", panel->series), 0);
        plot_style fill = look_of(arm), line = fill;
        fill.alpha = 0.25;
        line.width = 0.6;
        plot_band(p, NULL, a.x, a.mean, b.mean, a.n < b.n ? a.n : b.n, fill);
        plot_line(p, arms[arm].name, b.x, b.mean, b.n, look_of(arm));
        plot_line(p, NULL, a.x, a.mean, a.n, line);
    }
}

/* Final losses that can be read off Fig. 13 of Santurkar et al. 2018: one run of another A. */
static void draw_paper(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    static const struct {
        size_t norm;
        double loss;
        const char *name;
    } paper[4] = {
        {NONE, 1.7e3, "none"}, {BATCH, 500, "batch norm"}, {L1, 100, "L1"}, {LINF, 1e3, "L∞"}};
    const double x = STEPS;
    size_t i;
    (void)panel;
    for (i = 0; i < LAB_COUNT(paper); i++) {
        const plot_color color = look_of(paper[i].norm).color;
        plot_scatter(p, NULL, &x, &paper[i].loss, 1, plot_marked(color, PLOT_RING));
        plot_text(p, 0.975 * x, paper[i].loss, lab_format(r, "%s in the paper", paper[i].name),
                  PLOT_RIGHT, color);
    }
}

/* clang-format off */
#define LOSS_AXES .x = "step", .y = "sum of squared errors", .y_scale = PLOT_LOG10
#define BOTH(arms_from, what) {arms_from, what, .to = (arms_from) + BATCH, .how = LAB_GEOMETRIC}
#define LOSS(at_row, rate, arms_from)                                                              \
    {.axes = {.row = at_row, .heading = "Learning rate " rate ": loss", LOSS_AXES,                 \
              .y_range = {1500, 2e5}}, .line = {BOTH(arms_from, "loss")}}
#define COSINE(at_row, at_col, place, arms_from)                                                   \
    {.axes = {at_row, at_col, .heading = "Layer " #place, .x = "step", .y = "cosine of G, G'",     \
              .y_range = {-1.1, 1.1}, .y_ticks = ends, .y_names = names, .y_count = 3},            \
     .line = {{arms_from, "cos" #place, "", .to = (arms_from) + BATCH}},                           \
     .mark = {{LAB_HLINE, .y = 1, .text = ""}}}
#define SHIFT(at_row, rate, arms_from, at_col, place)                                              \
    {.axes = {at_row, at_col, .heading = "Learning rate " rate ": layer " #place, .x = "step",     \
              .y = "|G − G'|", .y_scale = PLOT_LOG10, .y_range = {3e-3, 3e5}},                     \
     .line = {BOTH(arms_from, "ics" #place)}}

static const char *const names[3] = {"−1", "0", "1"};
static const double ends[3] = {-1, 0, 1};
static const lab_panel turns[] = {
    LOSS(0, "10^{-6}", FAST), COSINE(0, 1, 9, FAST), COSINE(0, 2, 17, FAST),
    LOSS(1, "10^{-7}", SLOW), COSINE(1, 1, 9, SLOW), COSINE(1, 2, 17, SLOW)};
static const lab_panel shifts[] = {
    SHIFT(0, "10^{-6}", FAST, 0, 9), SHIFT(0, "10^{-6}", FAST, 1, 17),
    SHIFT(1, "10^{-7}", SLOW, 0, 9), SHIFT(1, "10^{-7}", SLOW, 1, 17)};

#define LANDSCAPE(at_row, rate, arms_from, limit)                                                  \
    {.axes = {at_row, 0, .heading = rate ": loss", .x = "step", .y = "loss along the gradient",    \
              .y_scale = PLOT_LOG10},                                                              \
     .draw = draw_range, .arm = arms_from, .series = ""},                                          \
    {.axes = {at_row, 1, .heading = rate ": gradient", .x = "step",                                \
              .y = "change of the gradient", .y_scale = PLOT_LOG10},                               \
     .draw = draw_range, .arm = arms_from, .series = "d"},                                         \
    {.axes = {at_row, 2, .heading = rate ": effective β", .x = "step",                             \
              .y = "largest change / distance", .y_scale = PLOT_LOG10},                            \
     .line = {BOTH(arms_from, "beta")},                                                            \
     .mark = {{LAB_HLINE, .y = limit, .text = "2 / learning rate"}}}

static const lab_panel landscapes[] = {LANDSCAPE(0, "10^{-6}", FAST, 2 / 1e-6),
                                       LANDSCAPE(1, "10^{-7}", SLOW, 2 / 1e-7)};

/* The means of all norms alone, for five bands would cover each other. */
#define OF_NORMS(at_row, at_col, name, y_text, which)                                              \
    .axes = {at_row, at_col, .heading = name, .x = "step", .y = y_text, .y_scale = PLOT_LOG10,     \
             .legend = PLOT_LEGEND_DIRECT},                                                        \
    .line = {{NONE, which, .to = LINF, .how = LAB_GEOMETRIC_MEAN}}

static const lab_panel of_norms[] = {
    {OF_NORMS(0, 0, "Training loss", "sum of squared errors", "loss"), .draw = draw_paper},
    {OF_NORMS(0, 1, "Loss along the gradient", "highest", "high")},
    {OF_NORMS(1, 0, "Change of the gradient", "largest", "dhigh")},
    {OF_NORMS(1, 1, "Effective β", "largest change / distance", "beta")}};
/* clang-format on */

/* ---- ranks and distributions ----------------------------------------------------------------- */

/* The losses of one seed, panel->other, between those of the best maps of each rank. */
static void draw_ranks(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    const lab_series level = lab_get(r, NONE, panel->other, "level");
    size_t i;
    for (i = 1; i < level.n; i++)
        if (level.y[i] > 1000) {
            plot_hline(p, level.y[i], NULL, plot_thin(PLOT_GREY));
            plot_text(p, 1.03 * STEPS, level.y[i], lab_format(r, "%u", (unsigned)i),
                      PLOT_LEFT + PLOT_ABOVE, PLOT_INK);
        }
    for (i = NONE; i < NORMS; i++) {
        const lab_series v = lab_get(r, i, panel->other, "loss");
        plot_style line = look_of(i);
        line.marker_every = 25;
        line.size = 0.7;
        plot_line(p, arms[i].name, v.x, v.y, v.n, line);
    }
}

/* What a unit of a linear network gives for Gaussian inputs is Gaussian, so that its histogram is
   known from mean and standard deviation: one curve for each 1000 steps, the first on top. */
static void draw_ridges(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    enum { POINTS = 81 };
    const lab_series m = lab_get(r, panel->arm, 0, lab_format(r, "mean%s", panel->series));
    const lab_series s = lab_get(r, panel->arm, 0, lab_format(r, "sd%s", panel->series));
    double x[POINTS], y[POINTS], at[2], reach = 0;
    const char *text[2];
    size_t i, k;
    for (i = 0; i < m.n; i++) reach = fmax(reach, fabs(m.y[i]) + 3 * s.y[i]);
    for (i = 0; i < m.n && i < s.n; i++) {
        for (k = 0; k < POINTS; k++) {
            x[k] = reach * (2 * (double)k / (POINTS - 1) - 1);
            y[k] = exp(-0.5 * pow((x[k] - m.y[i]) / s.y[i], 2)) / s.y[i];
        }
        plot_ridge(p, lab_format(r, "%.0f", m.x[i]), x, y, POINTS, look_of(panel->arm));
    }
    at[1] = reach > 4 ? 4 : reach > 2 ? 2 : 1;
    at[0] = -at[1];
    text[0] = lab_format(r, "−%.0f", at[1]);
    text[1] = lab_format(r, "%.0f", at[1]);
    plot_ticks_x(p, at, text, 2);
}

/* clang-format off */
static const double rank_at[3] = {0, 5000, 10000};
static const char *const rank_name[3] = {"0", "5000", "10^{4}"};
#define RANKS(run, name, label)                                                                    \
    {.axes = {.col = run, .heading = name, .x = "step", .x_range = {0, 1.14 * STEPS},              \
              .x_ticks = rank_at, .x_names = rank_name, .x_count = 3, .y = label,                  \
              .y_scale = PLOT_LOG10, .y_range = {1000, 2e5}, .grid = -1},                          \
     .draw = draw_ranks, .other = run}
static const lab_panel ranks[] = {RANKS(0, "Run 1", "sum of squared errors"), RANKS(1, "Run 2", ""),
                                  RANKS(2, "Run 3", ""), RANKS(3, "Run 4", ""),
                                  RANKS(4, "Run 5", "")};

#define RIDGES(at_col, name, from, place)                                                          \
    {.axes = {.col = at_col, .heading = name, .x = "value", .y = at_col ? "" : "step"},            \
     .draw = draw_ridges, .arm = from, .series = place}
static const lab_panel ridges[] = {
    RIDGES(0, "Layer 9, no norm", NONE, "9"), RIDGES(1, "Layer 9, batch norm", BATCH, "9"),
    RIDGES(2, "Layer 17, no norm", NONE, "17"), RIDGES(3, "Layer 17, batch norm", BATCH, "17")};

static const lab_page pages[] = {
    {"Batch norm ends lower, though at the lower rate its gradients turn more", NULL, 1160,
     .shared_legend = 1, .settings = SETTINGS "; at 10^{-7} five seeds", LAB_PANELS(turns)},
    {"The shift is larger with batch norm at the lower rate, and alike at the higher", "shift",
     1160, .shared_legend = 1, .settings = SETTINGS "; at 10^{-7} five seeds", LAB_PANELS(shifts)},
    {"Only early on does the loss along the gradient vary less with batch norm", "landscape",
     1080, .shared_legend = 1, .settings = SETTINGS "; at 10^{-7} five seeds",
     LAB_PANELS(landscapes)},
    {"L1, L2 and L∞ end below no norm as well; none is below batch norm", "lp", 1240,
     .settings = "25 linear layers of 10 x 10, norm after layers 1 to 24, learning rate "
     "10^{-6}; geometric means of seeds, each with an A of its own; rings: the paper's last "
     "loss", .seeds = 20, LAB_PANELS(of_norms)},
    {"Runs come to rest at the loss of the best map of some rank", "runs", 800,
     .shared_legend = 1, .settings = SETTINGS "; thin lines: the best maps of each rank",
     .seeds = 5, LAB_PANELS(ranks)},
    {"A unit's values widen or shrink in the first thousand steps, and then stay", "units", 800,
     .settings = SETTINGS, .seeds = 1, LAB_PANELS(ridges)}};

LAB_PROGRAM("15_deep_linear",
            "Does batch norm help 25 linear layers, and is it covariate shift that it takes away?",
            SETTINGS, .revision = 2, .look = look_of, .after = check_all)
/* clang-format on */
