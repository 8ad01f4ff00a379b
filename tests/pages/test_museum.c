/* test_museum.c - the bug museum: how wrong each exhibit is, and which check sees it.

   The numbers of docs/11_bug_museum.md, to the letter. The backward passes are those of museum.h;
   what went wrong in forward passes, in checks, in statistics and in what was carried over is
   written out here, each in a few lines of its own.

   In double. What happened in float is computed in float, whatever nrm_real is. */
#include "page.h"
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"
#include "lab/draw.h"

#include "museum.h"
#include "layers/variants.h"

#define R(a) ((nrm_real)(a))
#define D(a) ((double)(a))

enum { GROUPS = 4, MOST = MUSEUM_GROUP_MAX * GROUPS, DRAWS = 21 };

typedef struct piece { /* an exhibit with data and gradients; count values per group */
    int exhibit;
    size_t count, groups, N, C;
    nrm_real eps;
    nrm_real x[MOST], y[MOST], w[MOST], gamma[MUSEUM_GROUP_MAX], beta[MUSEUM_GROUP_MAX];
    nrm_real dx[MOST], dgamma[MUSEUM_GROUP_MAX], dbeta[MUSEUM_GROUP_MAX];
} piece;

static void fill(nrm_real *a, size_t n, double centre, double spread, nrm_rng *rng)
{
    size_t i;
    for (i = 0; i < n; i++) a[i] = R(centre + spread * D(draw_normal(rng)));
}

static void show(piece *p, int exhibit, size_t count, size_t groups, double scale, nrm_rng *rng)
{
    memset(p, 0, sizeof *p);
    p->exhibit = exhibit;
    p->count = count;
    p->groups = groups;
    p->N = museum_by_row(exhibit) ? groups : count;
    p->C = museum_by_row(exhibit) ? count : groups;
    p->eps = R(1e-5);
    fill(p->x, p->N * p->C, scale / 3, scale, rng);
    fill(p->gamma, p->C, 1.5, 0.5, rng);
    fill(p->beta, p->C, 0.5, 1, rng);
    fill(p->w, p->N * p->C, 0, 1, rng);
}

/* As many tests have it. */
static void reset_affine(piece *p)
{
    size_t c;
    for (c = 0; c < p->C; c++) {
        p->gamma[c] = 1;
        p->beta[c] = 0;
    }
}

static void backward(piece *p)
{
    memset(p->dgamma, 0, sizeof p->dgamma);
    memset(p->dbeta, 0, sizeof p->dbeta);
    museum_backward(p->exhibit, p->dx, p->dgamma, p->dbeta, p->w, p->x, p->gamma, D(p->eps), p->N,
                    p->C);
}

static nrm_acc loss_of(void *context)
{
    piece *p = (piece *)context;
    long double loss = 0;
    size_t i;
    museum_forward(p->exhibit, p->y, p->x, p->gamma, p->beta, D(p->eps), p->N, p->C);
    for (i = 0; i < p->N * p->C; i++) loss += (long double)p->w[i] * (long double)p->y[i];
    return (nrm_acc)loss;
}

/* The derivative of the exhibit's own forward scale s by the variance. */
static double scale_slope(const piece *p, const museum_group *m)
{
    const double s = museum_forward_scale(p->exhibit, m, D(p->eps)), n = D(m->count);
    const double unbiased = n / (n - 1);
    if (p->exhibit == MUSEUM_SAMPLE_VARIANCE) return -0.5 * s * s * s * unbiased;
    if (p->exhibit == MUSEUM_TWO_EPSILONS) return -0.5 * s * s * unbiased / sqrt(m->var * unbiased);
    return -0.5 * s * s * s;
}

/* dL/dx of the exhibit's forward pass, as it should be. */
static void true_gradient(nrm_real *dx, const piece *p)
{
    size_t group, k;
    for (group = 0; group < p->groups; group++) {
        const museum_group m = museum_measure(p->exhibit, group, p->x, p->N, p->C);
        const double s = museum_forward_scale(p->exhibit, &m, D(p->eps));
        const double n = D(m.count), slope = scale_slope(p, &m);
        double g = 0, gd = 0;
        for (k = 0; k < m.count; k++) {
            const size_t at = m.first + k * m.stride;
            g += D(p->w[at]) * D(p->gamma[at % p->C]);
            gd += D(p->w[at]) * D(p->gamma[at % p->C]) * (D(p->x[at]) - m.mean);
        }
        for (k = 0; k < m.count; k++) {
            const size_t at = m.first + k * m.stride;
            dx[at] = R(s * (D(p->w[at]) * D(p->gamma[at % p->C]) - g / n) +
                       slope * 2 / n * (D(p->x[at]) - m.mean) * gd);
        }
    }
}

static int checker_finds(piece *p, const nrm_real *dx)
{
    nrm_gradcheck_group group;
    nrm_gradcheck_report report;
    group.name = "x";
    group.theta = p->x;
    group.grad = dx;
    group.n = p->N * p->C;
    return nrm_gradcheck(&report, &group, 1, loss_of, p, NULL) == NRM_EGRADIENT;
}

/* What the museum calls true is what differences say. */
static void test_true_gradients(void)
{
    static nrm_real dx[MOST];
    static piece p;
    nrm_rng rng;
    int exhibit, count;
    nrm_rng_seed(&rng, 40, 1);
    for (exhibit = 0; exhibit < MUSEUM_EXHIBITS; exhibit++)
        for (count = 2; count <= 8; count++) {
            show(&p, exhibit, (size_t)count, 2, count % 2 ? 1 : 1e-3, &rng);
            true_gradient(dx, &p);
            CHECK(!checker_finds(&p, dx));
        }
}

/* ---- how wrong ------------------------------------------------------------------------------- */

/* |dx - true|/|true|, lengths of vectors. */
static double error_of(const piece *p)
{
    static nrm_real dx[MOST];
    double gap = 0, size = 0;
    size_t i;
    true_gradient(dx, p);
    for (i = 0; i < p->N * p->C; i++) {
        gap += pow(D(p->dx[i]) - D(dx[i]), 2);
        size += pow(D(dx[i]), 2);
    }
    return sqrt(gap / size);
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_error(int exhibit, size_t count, double scale, nrm_rng *rng)
{
    static piece p;
    double error[DRAWS];
    int i;
    for (i = 0; i < DRAWS; i++) {
        show(&p, exhibit, count, 1, scale, rng);
        backward(&p);
        error[i] = error_of(&p);
    }
    qsort(error, DRAWS, sizeof *error, by_size);
    return error[DRAWS / 2];
}

/* An error that is rounding is none. */
static const char *error_text(double error)
{
    return error < 1e-9 ? "0" : page_small(error, 2);
}

static void test_errors(void)
{
    static const size_t counts[5] = {2, 4, 8, 32, 128};
    static const double scales[2] = {1, 1e-3};
    nrm_rng rng;
    int exhibit;
    size_t s, n;
    nrm_rng_seed(&rng, 41, 1);
    page_table("dx", "| | 4 values | 32 | 128 | 4 values of 10⁻³ | 128 |");
    for (exhibit = 0; exhibit < MUSEUM_EXHIBITS; exhibit++) {
        double largest = 0;
        page_print("| %s: %s |", museum_describe(exhibit).owner, museum_describe(exhibit).mistake);
        for (s = 0; s < 2; s++)
            for (n = 0; n < 5; n++) {
                const double error = median_error(exhibit, counts[n], scales[s], &rng);
                const int shows = !museum_is_right(exhibit) && /* of two, layer norm leaves 0 */
                                  counts[n] > museum_hidden_up_to(exhibit);
                if (counts[n] == 4 || counts[n] == 128 || (counts[n] == 32 && s == 0))
                    page_print(" %s |", error_text(error));
                CHECK(shows ? error > 1e-5 : error < 1e-6);
                largest = fmax(largest, error);
            }
        page_print("\n");
        CHECK(museum_is_right(exhibit) ? largest < 1e-6 : largest > 0.03);
    }
}

/* ---- which check sees it --------------------------------------------------------------------- */

/* One large batch, gamma = 1, and an error up to a thousandth is forgiven. */
static int found_by_large_batch(int exhibit)
{
    static piece p;
    nrm_rng rng;
    nrm_rng_seed(&rng, 42, 1);
    show(&p, exhibit, 128, GROUPS, 1, &rng);
    reset_affine(&p);
    backward(&p);
    return error_of(&p) > 1e-3;
}

/* The same data; each entry may be off by half. */
static int found_by_wide_tolerance(int exhibit)
{
    static nrm_real dx[MOST];
    static piece p;
    double worst = 0;
    nrm_rng rng;
    size_t i;
    nrm_rng_seed(&rng, 42, 1);
    show(&p, exhibit, 128, GROUPS, 1, &rng);
    reset_affine(&p);
    backward(&p);
    true_gradient(dx, &p);
    for (i = 0; i < p.N * p.C; i++) worst = fmax(worst, fabs(D(p.dx[i]) - D(dx[i])));
    return worst > 0.5;
}

/* All x are nudged at once, each by a random part of h; then absolute values are compared. */
static int found_without_sign(int exhibit, uint64_t draw)
{
    static piece p;
    const double h = 1e-5;
    double nudge[MOST], promised = 0, seen;
    nrm_rng rng;
    size_t i;
    nrm_rng_seed(&rng, 43, draw);
    show(&p, exhibit, 8, GROUPS, 1, &rng);
    backward(&p);
    for (i = 0; i < p.N * p.C; i++) {
        nudge[i] = h * D(draw_uniform(&rng));
        promised += D(p.dx[i]) * nudge[i];
        p.x[i] += R(nudge[i]);
    }
    seen = D(loss_of(&p));
    for (i = 0; i < p.N * p.C; i++) p.x[i] -= R(2 * nudge[i]);
    seen = (seen - D(loss_of(&p))) / 2;
    return fabs(fabs(promised) - fabs(seen)) / (fabs(promised) + fabs(seen)) >= 1e-2;
}

/* BN.21, BN.22 and LN.15, LN.16 at 8 values: no differences, no reference. */
static int found_by_identities(int exhibit, int *sum_only)
{
    static piece p;
    nrm_rng rng;
    size_t group, k;
    int found = 0;
    *sum_only = 0;
    nrm_rng_seed(&rng, 44, 1);
    show(&p, exhibit, museum_hidden_up_to(exhibit) > 2 ? 40 : 8, GROUPS, 1, &rng);
    backward(&p);
    for (group = 0; group < p.groups; group++) {
        const museum_group m = museum_measure(exhibit, group, p.x, p.N, p.C);
        const double r = 1 / sqrt(m.var + D(p.eps));
        double sum = 0, along = 0, gx = 0, size = 0;
        for (k = 0; k < m.count; k++) {
            const size_t at = m.first + k * m.stride;
            const double xhat = (D(p.x[at]) - m.mean) * r;
            sum += D(p.dx[at]);
            along += D(p.dx[at]) * xhat;
            gx += D(p.w[at]) * D(p.gamma[at % p.C]) * xhat;
            size += fabs(D(p.dx[at]));
        }
        *sum_only |= fabs(sum) > 1e-10 * size;
        found |= fabs(along - r * r * r * D(p.eps) * gx) > 1e-10 * size;
    }
    return found;
}

/* Section 20: 2, 3 and 4 values, seven scales, random weights in the loss. */
static int found_by_checker(int exhibit)
{
    static piece p;
    nrm_rng rng;
    int found = 0, more, power;
    nrm_rng_seed(&rng, 45, 1);
    for (more = 2; more <= 4; more++)
        for (power = -3; power <= 3; power++) {
            size_t count = (size_t)more;
            if (museum_hidden_up_to(exhibit) > 2) count += museum_hidden_up_to(exhibit);
            show(&p, exhibit, count, 2, pow(10, power), &rng);
            backward(&p);
            found += checker_finds(&p, p.dx);
        }
    return found;
}

static void test_checks(void)
{
    static const char *const number[MUSEUM_EXHIBITS] = {
        "control:", "6.1", "1.2", "1.1", "1.3", "1.4", "1.5", "1.6", "1.7", "1.8", "1.11", "1.12"};
    int exhibit, missed[6] = {0};
    uint64_t draw;
    page_table("checks",
               "| | 128 values, γ = 1, 10⁻³ | 128 values, ±0.5 | absolute values | ∑ dxᵢ = 0 | ∑ "
               "dxᵢ·x̂ᵢ | `nrm_gradcheck` |");
    for (exhibit = 0; exhibit < MUSEUM_EXHIBITS; exhibit++) {
        const int right = museum_is_right(exhibit);
        int seen[6], i;
        seen[0] = found_by_large_batch(exhibit);
        seen[1] = found_by_wide_tolerance(exhibit);
        for (seen[2] = 0, draw = 0; draw < 21; draw++) seen[2] += found_without_sign(exhibit, draw);
        seen[4] = found_by_identities(exhibit, &seen[3]);
        seen[5] = found_by_checker(exhibit);
        page_print("| %s %s |", number[exhibit], museum_describe(exhibit).owner);
        for (i = 0; i < 6; i++)
            if (seen[i] > 0 && (i == 2 || i == 5))
                page_print(" %d/21 |", seen[i]);
            else
                page_print(" %s |", seen[i] ? "found" : "–");
        page_print("\n");
        CHECK(right ? seen[5] == 0 : seen[5] > 7);
        for (i = 0; i < 6; i++) {
            CHECK(!right || !seen[i]);
            missed[i] += !right && !seen[i];
        }
        CHECK(right || seen[3] || seen[4]); /* an identity each, but none has them all */
    }
    CHECK(missed[0] == 5 && missed[1] == 9 && missed[3] > 0 && missed[4] > 0 && missed[5] == 0);
}

/* ---- checks that cannot fail ----------------------------------------------------------------- */

/* |dx| of layer norm for three losses. */
static void test_losses(void)
{
    enum { WIDE = 512 };
    static const char *const loss[] = {"∑ yᵢ", "∑ yᵢ²", "∑ yᵢ·wᵢ, w random"};
    static nrm_real x[WIDE], y[WIDE], dy[WIDE], dx[WIDE];
    nrm_acc mean, rstd;
    nrm_rng rng;
    int kind;
    size_t i;
    nrm_rng_seed(&rng, 46, 1);
    for (i = 0; i < WIDE; i++) x[i] = draw_uniform(&rng);
    page_table("losses", "| loss | largest dxᵢ | a backward pass that returns 0 |");
    for (kind = 0; kind < 3; kind++) {
        double largest = 0;
        OK(nrm_layernorm_forward(y, &mean, &rstd, x, NULL, NULL, NRM_EPS, 1, WIDE));
        for (i = 0; i < WIDE; i++)
            dy[i] = kind == 0 ? 1 : kind == 1 ? 2 * y[i] : draw_normal(&rng);
        OK(nrm_layernorm_backward(dx, NULL, NULL, dy, x, &mean, &rstd, NULL, 1, WIDE));
        for (i = 0; i < WIDE; i++) largest = fmax(largest, fabs(D(dx[i])));
        page_print("| %s | %s | %s |\n", loss[kind], error_text(largest),
                   largest < 1e-2 ? "passes at 10⁻²" : "found");
        CHECK(kind == 2 ? largest > 1 : largest < 1e-2);
    }
}

/* A checker that prints its findings and returns nothing. */
static int careless(const double *a, const double *b, size_t n, int *off)
{
    size_t i;
    *off = 0;
    for (i = 0; i < n; i++) *off += fabs(a[i] - b[i]) > 1e-5;
    return 0; /* the exit code, whatever was seen */
}

static void test_exit_codes(void)
{
    static const struct {
        const char *what;
        double factor;
    } row[] = {{"right", 1}, {"twice as large", 2}, {"its sign", -1}, {"0", 0}};
    double good[24], bad[24];
    nrm_rng rng;
    size_t i, k;
    int off;
    nrm_rng_seed(&rng, 47, 1);
    page_table("exits", "| dx is | entries off | exit code without a verdict | with |");
    for (k = 0; k < sizeof row / sizeof *row; k++) {
        int code;
        for (i = 0; i < 24; i++) {
            good[i] = D(draw_normal(&rng));
            bad[i] = good[i] * row[k].factor;
        }
        code = careless(good, bad, 24, &off);
        page_print("| %s | %d of 24 | %d | %d |\n", row[k].what, off, code, off > 0);
        CHECK(off == (k == 0 ? 0 : 24) && code == 0);
    }
}

/* ---- variances ------------------------------------------------------------------------------- */

enum { CHANNELS = 8, BATCH = 64 };

enum variance { ONE_PASS, CUT_OFF, TWO_PASSES, IN_DOUBLE, VARIANCES };

/* Mean and variance of n floats, as four algorithms have them. `volatile` keeps wider registers
   out. */
static void measure_floats(double *mean, double *var, const float *x, int n)
{
    volatile float sum = 0, squares = 0, product, m;
    double from_first = 0, v = 0;
    int i;
    for (i = 0; i < n; i++) {
        sum = sum + x[i];
        product = x[i] * x[i];
        squares = squares + product;
        from_first += (double)x[i] - (double)x[0];
    }
    m = sum / (float)n;
    mean[ONE_PASS] = mean[CUT_OFF] = mean[TWO_PASSES] = (double)m;
    mean[IN_DOUBLE] = (double)x[0] + from_first / n;
    product = m * m;
    squares = squares / (float)n;
    squares = squares - product;
    var[ONE_PASS] = (double)squares;
    var[CUT_OFF] = fmax(var[ONE_PASS], 0);
    for (sum = 0, i = 0; i < n; i++) {
        product = x[i] - m;
        product = product * product;
        sum = sum + product;
        v += pow((double)x[i] - mean[IN_DOUBLE], 2);
    }
    sum = sum / (float)n;
    var[TWO_PASSES] = (double)sum;
    var[IN_DOUBLE] = v / n;
}

/* The worst error of x̂ in 8 channels of floats; returns how many are NaN. */
static int worst_of_channels(double *worst, double centre, double spread, nrm_rng *rng)
{
    int c, i, kind, lost = 0;
    for (kind = 0; kind < VARIANCES; kind++) worst[kind] = 0;
    for (c = 0; c < CHANNELS; c++) {
        double mean[VARIANCES], var[VARIANCES];
        float x[BATCH];
        for (i = 0; i < BATCH; i++) x[i] = (float)(centre + spread * D(draw_normal(rng)));
        measure_floats(mean, var, x, BATCH);
        lost += var[ONE_PASS] + 1e-5 < 0;
        for (i = 0; i < BATCH; i++)
            for (kind = CUT_OFF; kind < VARIANCES; kind++) {
                const double exact = ((double)x[i] - mean[IN_DOUBLE]) / sqrt(var[IN_DOUBLE] + 1e-5);
                const float its = (float)(((double)x[i] - mean[kind]) / sqrt(var[kind] + 1e-5));
                worst[kind] = fmax(worst[kind], fabs((double)its - exact));
            }
    }
    return lost;
}

static void test_one_pass(void)
{
    static const struct {
        const char *what;
        double centre, spread;
    } row[] = {{"0 ± 1", 0, 1},     {"100 ± 1", 100, 1},        {"1000 ± 0.1", 1000, 0.1},
               {"10⁴ ± 1", 1e4, 1}, {"0.1, all alike", 0.1, 0}, {"10⁶/3, all alike", 1e6 / 3, 0}};
    nrm_rng rng;
    size_t k;
    nrm_rng_seed(&rng, 48, 1);
    page_table("one-pass",
               "| channel | NaN, of 8 | cut off at 0: x̂ off by | two passes | sums in double |");
    for (k = 0; k < sizeof row / sizeof *row; k++) {
        double worst[VARIANCES];
        const int lost = worst_of_channels(worst, row[k].centre, row[k].spread, &rng);
        int kind;
        page_print("| %s | %d |", row[k].what, lost);
        for (kind = CUT_OFF; kind < VARIANCES; kind++) page_print(" %s |", error_text(worst[kind]));
        page_print("\n");
        CHECK(k == 1 || k == 2 || k == 3 ? worst[CUT_OFF] > 1e-3 : lost == 0);
        CHECK(worst[IN_DOUBLE] < 1e-6);
    }
}

/* An example for the pencil. */
static void test_four_values(void)
{
    static const float x[4] = {40000, 40001, 40002, 40003};
    double mean[VARIANCES], var[VARIANCES];
    measure_floats(mean, var, x, 4);
    page_table("four", "| | in float | exact |");
    page_print("| mean of the squares | %s | 1600120003.5 |\n",
               page_number(var[ONE_PASS] + (double)(float)(mean[ONE_PASS] * mean[ONE_PASS]), 0));
    page_print("| square of the mean | %s | 1600120002.25 |\n",
               page_number((double)(float)(mean[ONE_PASS] * mean[ONE_PASS]), 0));
    page_print("| variance in one pass | %s | 1.25 |\n", page_number(var[ONE_PASS], 0));
    page_print("| variance in two | %s | 1.25 |\n", page_number(var[TWO_PASSES], 2));
    CHECK(var[ONE_PASS] <= 0 && var[TWO_PASSES] == 1.25);
}

/* ---- running statistics ---------------------------------------------------------------------- */

/* How often y of inference is too large if a channel's statistic is stored as `stored` and read as
   a variance. */
static const char *inference_factor(double stored, double variance, double eps)
{
    const nrm_real x = R(1);
    nrm_real y, mean = 0, var = R(stored);
    nrm_running running;
    memset(&running, 0, sizeof running);
    running.mean = &mean;
    running.var = &var;
    OK(nrm_batchnorm_forward(&y, NULL, NULL, &running, &x, NULL, NULL, NRM_INFER, R(eps), 1, 1, 1));
    return page_number(D(y) * sqrt(variance + eps), 3);
}

static void test_stored(void)
{
    static const double v[3] = {1e-3, 1, 1e3};
    size_t i, k;
    page_table("stored", "| stored | v = 10⁻³ | 1 | 10³ |");
    for (k = 0; k < 6; k++) {
        static const char *const what[] = {
            "v, as it should be",          "of 4 values, divided by 4 (ARENA)",
            "of 32 values, divided by 32", "v + ε, with ε = 10⁻³ (nntrainer)",
            "1/√(v + ε) (cuDNN 4)",        "√v"};
        page_print("| %s |", what[k]);
        for (i = 0; i < 3; i++) {
            const double eps = k == 3 ? 1e-3 : 1e-5;
            const double stored = k == 1   ? v[i] * 3 / 4
                                  : k == 2 ? v[i] * 31 / 32
                                  : k == 3 ? v[i] + eps
                                  : k == 4 ? 1 / sqrt(v[i] + eps)
                                  : k == 5 ? sqrt(v[i])
                                           : v[i];
            page_print(" %s |", inference_factor(stored, v[i], eps));
        }
        page_print("\n");
    }
}

/* What γ becomes if it is stored less 1 and read as it is, or the other way round, by y. */
static void test_less_one(void)
{
    static const double gamma[4] = {0.5, 1, 1.5, 4};
    size_t i, k;
    page_table("less-one", "| stored, read as | γ = 0.5 | 1 | 1.5 | 4 |");
    for (k = 0; k < 3; k++) {
        static const char *const what[] = {"γ, γ", "γ − 1, γ", "γ, γ − 1"};
        page_print("| %s |", what[k]);
        for (i = 0; i < 4; i++) {
            const nrm_real x[2] = {R(3), R(4)};
            const double read = gamma[i] - (k == 1) + (k == 2);
            nrm_real g[2], y[2], right[2];
            g[0] = g[1] = R(gamma[i]);
            OK(nrm_rmsnorm_forward(right, NULL, x, g, R(1e-6), 1, 2));
            g[0] = g[1] = R(read);
            OK(nrm_rmsnorm_forward(y, NULL, x, g, R(1e-6), 1, 2));
            CHECK((k == 0) == (y[1] == right[1]));
            page_print(" %s |", page_number(D(y[1]) / D(right[1]), 3));
        }
        page_print("\n");
    }
}

/* A running mean over batches of mean 0 and deviation 1, started far off: what is left of the start
   after so many batches, and how far it scatters in the long run. */
static void test_momentum(void)
{
    static const double weight[4] = {0.1, 0.9, 0.01, 0.99};
    static const char *const meant[4] = {
        "0.1 of the new value (PyTorch's 0.1)", "the same number, taken for the old value's",
        "0.99 of the old value (Keras's 0.99)", "the same number, taken for the new value's"};
    nrm_rng rng;
    int k, i;
    nrm_rng_seed(&rng, 49, 1);
    page_table("momentum",
               "| meant | w, BN.8 | of the start is left after 10 batches | after 100 | scatter "
               "of the running mean, in those of a batch mean |");
    for (k = 0; k < 4; k++) {
        const double w = weight[k];
        double m = 0, squares = 0;
        for (i = 0; i < 100000; i++) {
            m = (1 - w) * m + w * D(draw_normal(&rng));
            if (i >= 1000) squares += m * m;
        }
        squares = sqrt(squares / 99000);
        CHECK_NEAR(squares / sqrt(w / (2 - w)), 1, 0.05);
        page_print("| %s | %s | %s | %s | %s |\n", meant[k], page_number(w, 2),
                   error_text(pow(1 - w, 10)), error_text(pow(1 - w, 100)),
                   page_number(sqrt(w / (2 - w)), 2));
    }
}

/* One value in a batch of one, among 20 batches of four. */
static void test_one_value(void)
{
    nrm_real mean = 0, var = 1, y[4], x[4], theirs = 1;
    nrm_acc saved[2];
    nrm_running running;
    nrm_rng rng;
    int batch, code = NRM_OK;
    memset(&running, 0, sizeof running);
    running.mean = &mean;
    running.var = &var;
    running.new_weight = R(0.1);
    nrm_rng_seed(&rng, 50, 1);
    page_table("one-value",
               "| after batch | of | running variance with M/(M − 1) for every M | here | code |");
    for (batch = 1; batch <= 20; batch++) {
        const size_t M = batch == 10 ? 1 : batch == 15 ? 0 : 4;
        const double n = D(M);
        museum_group m;
        fill(x, 4, 3, 1, &rng);
        m = museum_measure(MUSEUM_NONE, 0, x, M, 1);
        theirs = R(0.9 * D(theirs) + 0.1 * m.var * n / (n - 1));
        code = nrm_batchnorm_forward(y, saved, saved + 1, &running, x, NULL, NULL, NRM_TRAIN,
                                     NRM_EPS, M, 1, 1);
        CHECK_INT(code, M == 1 ? NRM_EBATCH : NRM_OK);
        if (batch == 9 || batch == 10 || batch == 15 || batch == 20)
            page_print("| %d | %u | %s | %s | %s |\n", batch, (unsigned)M,
                       isnan(theirs) ? "NaN" : page_number(D(theirs), 3), page_number(D(var), 3),
                       code == NRM_EBATCH ? "`NRM_EBATCH`" : "`NRM_OK`");
    }
    CHECK(isnan(theirs) && isfinite(var));
}

/* ---- several workers ------------------------------------------------------------------------- */

/* The variance of all, from those of two workers, in four ways. */
static void test_workers(void)
{
    static const size_t share[3][2] = {{8, 8}, {12, 4}, {14, 2}};
    nrm_rng rng;
    size_t k, i;
    nrm_rng_seed(&rng, 51, 1);
    page_table("workers",
               "| values | v of all | merged, ST.3 | mean of the two v | weighted mean | merged "
               "as if even |");
    for (k = 0; k < 3; k++) {
        const size_t n = 16, first = share[k][0];
        nrm_real x[16];
        nrm_stats part[2];
        museum_group all, a, b;
        double delta, even;
        for (i = 0; i < n; i++) x[i] = R(D(draw_normal(&rng)) + (i < first ? 0 : 2));
        all = museum_measure(MUSEUM_NONE, 0, x, n, 1);
        a = museum_measure(MUSEUM_NONE, 0, x, first, 1);
        b = museum_measure(MUSEUM_NONE, 0, x + first, n - first, 1);
        memset(part, 0, sizeof part);
        OK(nrm_stats_update(&part[0], x, NULL, first, 1, 1));
        OK(nrm_stats_update(&part[1], x + first, NULL, n - first, 1, 1));
        OK(nrm_stats_merge(&part[0], &part[1], 1));
        delta = b.mean - a.mean;
        even = (a.var + b.var) / 2 + delta * delta / 4;
        CHECK_NEAR(part[0].m2 / part[0].count, all.var, 1e-12);
        CHECK((k == 0) == (fabs(even - all.var) < 1e-12));
        page_print("| %u + %u | %s | %s | %s | %s | %s |\n", (unsigned)first, (unsigned)(n - first),
                   page_number(all.var, 3), page_number(D(part[0].m2) / D(part[0].count), 3),
                   page_number((a.var + b.var) / 2, 3),
                   page_number((a.var * D(first) + b.var * D(n - first)) / D(n), 3),
                   page_number(even, 3));
    }
}

/* ---- group norm ------------------------------------------------------------------------------ */

/* The gradient of γ if channel c takes the statistics of group c % G, not c/(C/G); of 8 channels
   two groups, the second about `centre`. */
static double wrong_group_error(double centre, nrm_rng *rng)
{
    enum { G = 2, C = 8, S = 16 };
    nrm_real x[C * S], y[C * S], dy[C * S], dx[C * S], dgamma[C] = {0}, gamma[C], beta[C];
    nrm_acc mean[G], rstd[G];
    double gap = 0, size = 0;
    size_t c, s;
    fill(x, C * S / 2, 0, 1, rng);
    fill(x + C * S / 2, C * S / 2, centre, 1, rng);
    fill(dy, C * S, 0, 1, rng);
    fill(gamma, C, 1.5, 0.5, rng);
    fill(beta, C, 0, 1, rng);
    OK(nrm_groupnorm_forward(y, mean, rstd, x, gamma, beta, NRM_EPS, 1, C, S, G));
    OK(nrm_groupnorm_backward(dx, dgamma, NULL, dy, x, mean, rstd, gamma, 1, C, S, G));
    for (c = 0; c < C; c++) {
        double wrong = 0;
        for (s = 0; s < S; s++)
            wrong += D(dy[c * S + s]) * (D(x[c * S + s]) - D(mean[c % G])) * D(rstd[c % G]);
        gap += pow(wrong - D(dgamma[c]), 2);
        size += pow(D(dgamma[c]), 2);
    }
    return sqrt(gap / size);
}

static void test_groups(void)
{
    static const double centre[3] = {0, 1, 10};
    nrm_rng rng;
    size_t k;
    nrm_rng_seed(&rng, 54, 1);
    page_table("groups", "| second group about | error of γ's gradient |");
    for (k = 0; k < 3; k++) {
        double error[DRAWS];
        int i;
        for (i = 0; i < DRAWS; i++) error[i] = wrong_group_error(centre[k], &rng);
        qsort(error, DRAWS, sizeof *error, by_size);
        page_print("| %s | %s |\n", page_number(centre[k], 0), error_text(error[DRAWS / 2]));
        CHECK(error[DRAWS / 2] > 1e-3);
    }
}

/* ---- micro-batches --------------------------------------------------------------------------- */

/* The gradient of γ from several calls, if each call overwrites what the last one left. */
static void test_overwriting(void)
{
    enum { ROWS = 4, WIDE = 512 };
    nrm_rng rng;
    int calls, k;
    nrm_rng_seed(&rng, 55, 1);
    page_table("micro", "| calls | error of γ's gradient |");
    for (calls = 1; calls <= 4; calls *= 2) {
        nrm_real sum[WIDE] = {0}, last[WIDE];
        double gap = 0, size = 0;
        size_t i;
        for (k = 0; k < calls; k++) {
            nrm_real x[ROWS * WIDE], y[ROWS * WIDE], dy[ROWS * WIDE], dx[ROWS * WIDE];
            nrm_acc mean[ROWS], rstd[ROWS];
            fill(x, ROWS * WIDE, 0, 1, &rng);
            fill(dy, ROWS * WIDE, 0, 1, &rng);
            memset(last, 0, sizeof last);
            OK(nrm_layernorm_forward(y, mean, rstd, x, NULL, NULL, NRM_EPS, ROWS, WIDE));
            OK(nrm_layernorm_backward(dx, sum, NULL, dy, x, mean, rstd, NULL, ROWS, WIDE));
            OK(nrm_layernorm_backward(dx, last, NULL, dy, x, mean, rstd, NULL, ROWS, WIDE));
        }
        for (i = 0; i < WIDE; i++) {
            gap += pow(D(last[i]) - D(sum[i]), 2);
            size += pow(D(sum[i]), 2);
        }
        page_print("| %d | %s |\n", calls, error_text(sqrt(gap / size)));
        CHECK((calls == 1) == (gap < 1e-20));
    }
}

/* ---- what is carried over -------------------------------------------------------------------- */

enum { SIDE = 6 };

/* How far y of a folded layer is off. The mistakes: 0 none, 1 the bias not scaled, 2 the scale put
   on the inputs' axis of W, 3 a norm whose channels are not the layer's outputs. x is
   [SIDE][SIDE], rows times inputs. */
static double fold_error(int mistake, double bias, nrm_rng *rng)
{
    nrm_real W[SIDE * SIDE], b[SIDE], x[SIDE * SIDE], z[SIDE * SIDE], y[SIDE * SIDE];
    nrm_real mean[SIDE], var[SIDE], gamma[SIDE], beta[SIDE];
    nrm_real Wf[SIDE * SIDE], bf[SIDE], yf[SIDE * SIDE];
    const size_t N = mistake == 3 ? 1 : SIDE,
                 S = mistake == 3 ? SIDE : 1; /* 3: channels are rows */
    double gap = 0, size = 0;
    nrm_running running;
    size_t i, k;
    memset(&running, 0, sizeof running);
    running.mean = mean;
    running.var = var;
    fill(W, SIDE * SIDE, 0, 1, rng);
    fill(x, SIDE * SIDE, 0, 1, rng);
    fill(b, SIDE, 0, bias, rng);
    fill(beta, SIDE, 0, 1, rng);
    fill(mean, SIDE, 0, 1, rng);
    for (i = 0; i < SIDE; i++) {
        gamma[i] = R(0.5) + draw_uniform(rng);
        var[i] = R(0.25) + 4 * draw_uniform(rng);
    }
    OK(nrm_linear_forward(z, x, W, b, SIDE, SIDE, SIDE));
    OK(nrm_batchnorm_forward(y, NULL, NULL, &running, z, gamma, beta, NRM_INFER, NRM_EPS, N, SIDE,
                             S));
    OK(nrm_batchnorm_fold(Wf, bf, W, b, &running, gamma, beta, NRM_EPS, SIDE, SIDE, 1));
    for (i = 0; i < SIDE; i++) {
        const double a = D(gamma[i]) / sqrt(D(var[i]) + 1e-5);
        if (mistake == 1) bf[i] = R(D(b[i]) - a * D(mean[i]) + D(beta[i]));
        for (k = 0; mistake == 2 && k < SIDE; k++) Wf[i * SIDE + k] = R(a * D(W[i * SIDE + k]));
    }
    OK(nrm_linear_forward(yf, x, Wf, bf, SIDE, SIDE, SIDE));
    for (i = 0; i < SIDE * SIDE; i++) {
        gap = fmax(gap, fabs(D(yf[i]) - D(y[i])));
        size = fmax(size, fabs(D(y[i])));
    }
    return gap / size;
}

static void test_folds(void)
{
    static const char *const name[4] = {"right", "bias not scaled (ncnn, yolov3)",
                                        "wrong axis of a square W (zennit)",
                                        "a norm of another axis, as long (ao)"};
    nrm_rng rng;
    int mistake;
    nrm_rng_seed(&rng, 52, 1);
    page_table("folds", "| folded | bias 0 | bias of size 1 |");
    for (mistake = 0; mistake < 4; mistake++) {
        double without = 0, with = 0;
        int i;
        for (i = 0; i < 100; i++) {
            without += fold_error(mistake, 0, &rng) / 100;
            with += fold_error(mistake, 1, &rng) / 100;
        }
        page_print("| %s | %s | %s |\n", name[mistake], error_text(without), error_text(with));
        CHECK((mistake >= 2) == (without > 1e-6));
        CHECK((mistake == 0) == (with < 1e-6));
    }
}

/* Layer norm with D - 1 and eps outside, beside layer norm. */
static void test_std(void)
{
    static const size_t widths[4] = {2, 8, 64, 512};
    nrm_real x[512], y[512], other[512];
    nrm_acc mean, rstd;
    nrm_rng rng;
    size_t k;
    nrm_rng_seed(&rng, 53, 1);
    page_table("std", "| D | its y/y of layer norm | √(1 − 1/D) |");
    for (k = 0; k < 4; k++) {
        const size_t wide = widths[k];
        fill(x, wide, 0, 1, &rng);
        OK(nrm_layernorm_forward(y, &mean, &rstd, x, NULL, NULL, R(1e-12), 1, wide));
        layernorm_std_forward(other, &mean, &rstd, x, NULL, NULL, R(1e-12), 1, wide);
        page_print("| %u | %s | %s |\n", (unsigned)wide, page_number(D(other[0]) / D(y[0]), 4),
                   page_number(sqrt(1 - 1 / D(wide)), 4));
        CHECK_NEAR(D(other[0]) / D(y[0]), sqrt(1 - 1 / D(wide)), 1e-6);
    }
}

int main(int argc, char **argv)
{
    RUN(test_true_gradients);
    RUN(test_errors);
    RUN(test_checks);
    RUN(test_losses);
    RUN(test_exit_codes);
    RUN(test_one_pass);
    RUN(test_four_values);
    RUN(test_stored);
    RUN(test_less_one);
    RUN(test_momentum);
    RUN(test_one_value);
    RUN(test_workers);
    RUN(test_groups);
    RUN(test_overwriting);
    RUN(test_folds);
    RUN(test_std);
    return page_main(argc, argv, "docs/11_bug_museum.md", 1, "museum");
}
