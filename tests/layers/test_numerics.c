/* test_numerics.c - how close normlayers.h comes to the exact value: its exponential, logarithm,
   tanh and sigmoid against the long double functions of the C library, and the norm layers against
   the plain reference of reference.h on inputs chosen to hurt: huge means, tiny spreads, outliers,
   very large and very small units, sums of a hundred thousand terms. (make accuracy does this at
   length, and with other algorithms beside ours.)

   Errors of the functions are in ulp, units in the last place of the result's own type. With
   extended long double the reference is good to a thousandth of an ulp of double; where long double
   is no wider than double, the bounds in double allow for the reference's own error. */
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"
#include "lab/draw.h"
#include "call.h"
#include "reference.h"
#include "test.h"
#include <float.h>
#include <stdlib.h>

/* Our functions round to nrm_acc: the binary digits of its significand. */
static int digits(void)
{
    return sizeof(nrm_acc) == sizeof(double) ? DBL_MANT_DIG : FLT_MANT_DIG;
}

static double reference_slack(void)
{
    return LDBL_MANT_DIG > DBL_MANT_DIG || sizeof(nrm_acc) == sizeof(float) ? 0 : 1;
}

/* |got - exact| in units of the last place of `bits` binary digits. */
static double ulps(double got, long double exact, int bits)
{
    int e;
    if (exact == 0) return got == 0 ? 0 : HUGE_VAL;
    (void)frexpl(exact, &e);
    return (double)fabsl(((long double)got - exact) / ldexpl(1, e - bits));
}

typedef struct worst { /* the largest error so far, and where */
    double error, at;
} worst;

static void note(worst *w, double error, double at)
{
    if (error <= w->error) return;
    w->error = error;
    w->at = at;
}

#define CHECK_WORST(w, bound)                                                                      \
    do {                                                                                           \
        if (!CHECK((w).error <= (bound)))                                                          \
            printf("    %.3f ulp at %.17g\n", (w).error, (w).at);                                  \
        if (getenv("VERBOSE") != NULL) printf("%s: %.3f ulp at %.17g\n", #w, (w).error, (w).at);   \
    } while (0)

/* Arguments from -most to 0: evenly spread, and as many spread evenly over all magnitudes. */
static double argument(nrm_rng *rng, int k, double most)
{
    const double u = (double)nrm_rng_u32(rng) / 4294967296.0;
    return k % 2 ? -most * u : -most * exp(-40 * u);
}

enum { TRIES = 40000 };

/* The header works on vectors: here among others, each time in another place. */
static nrm_acc one_of_some(int curve, nrm_acc x)
{
    static int place;
    const int bytes = 16; /* of a vector, where that is chosen at run time */
    nrm_acc some[NRM_SOME] = {0, -1, -2, -30, 0, -5, 0, -700, -0.5, -9, -10, -11, -12, -13, -14};
    (void)bytes;
    place = (place + 1) % NRM_SOME;
    some[place] = x;
    nrmi_curve_of(NRM_PASS_ON some, curve, NRM_SOME);
    return some[place];
}

static nrm_acc exp_of(nrm_acc x)
{
    return one_of_some(NRMI_EXP, x);
}

static nrm_acc log_of(nrm_acc x)
{
    nrm_acc some[NRM_SOME] = {1, 2, 3};
    some[3] = x;
    nrmi_log(some, 4);
    return some[3];
}

static nrm_real tanh_of(nrm_real x)
{
    nrm_real y = 0;
    (void)nrm_activation_forward(&y, &x, NRM_TANH, 1);
    return y;
}

static nrm_real sigmoid_of(nrm_real x)
{
    nrm_real y = 0;
    (void)nrm_activation_forward(&y, &x, NRM_SIGMOID, 1);
    return y;
}

static void test_exp(void)
{
    worst below = {0, 0}, above = {0, 0};
    nrm_rng rng;
    int k;
    nrm_rng_seed(&rng, 1, 1);
    for (k = 0; k < TRIES; k++) {
        const nrm_acc x = (nrm_acc)argument(&rng, k, sizeof(nrm_acc) == 8 ? 707.9 : 86.9);
        note(&below, ulps((double)exp_of(x), expl((long double)x), digits()), (double)x);
        note(&above, ulps((double)exp_of(-x), expl(-(long double)x), digits()), -(double)x);
    }
    CHECK_WORST(below, 1.5 + reference_slack());
    CHECK_WORST(above, 1.5 + reference_slack());
}

static void test_exp_special(void)
{
    const nrm_acc inf = (nrm_acc)INFINITY, nan = (nrm_acc)NAN;
    const nrm_acc tiny = sizeof(nrm_acc) == 8 ? (nrm_acc)-4.9e-324 : (nrm_acc)-1.4e-45;
    CHECK(exp_of(0) == 1 && exp_of(-(nrm_acc)0) == 1 && exp_of(tiny) == 1);
    CHECK(exp_of(-inf) == 0 && exp_of(inf) == inf && exp_of(-1000) == 0 && exp_of(1000) == inf);
    CHECK(exp_of(nan) != exp_of(nan));
    CHECK(exp_of(sizeof(nrm_acc) == 8 ? -708 : -87) > 0); /* the rest is flushed to 0 */
}

static void test_log(void)
{
    worst log_error = {0, 0}, near_one = {0, 0};
    nrm_rng rng;
    int k;
    nrm_rng_seed(&rng, 2, 1);
    for (k = 0; k < TRIES; k++) {
        const double u = (double)nrm_rng_u32(&rng) / 4294967296.0;
        const nrm_acc wide = (nrm_acc)exp((u - 0.5) * (sizeof(nrm_acc) == 8 ? 1400 : 170));
        const nrm_acc close = (nrm_acc)(1 + (k % 2 ? 0.4 * (u - 0.3) : (u - 0.5) * 1e-5));
        note(&log_error, ulps((double)log_of(wide), logl((long double)wide), digits()),
             (double)wide);
        note(&near_one, ulps((double)log_of(close), logl((long double)close), digits()),
             (double)close);
    }
    CHECK_WORST(log_error, (sizeof(nrm_acc) == 8 ? 1.8 : 3) + reference_slack());
    CHECK_WORST(near_one, 3 + reference_slack());
    CHECK(log_of(1) == 0);
    CHECK_NEAR(log_of(2), 0.69314718055994531, sizeof(nrm_acc) == 8 ? 1.2e-16 : 6e-8);
    CHECK_NEAR(log_of((nrm_acc)FLT_MIN), log((double)FLT_MIN), 1e-5);
}

/* The only floats whose logarithm, in double, is the middle of two floats: LOG.3 has lost what
   decides. The nearest float was found with 60 digits. */
static void test_log_of_close_calls(void)
{
    static const float calls[][2] = {
        {3.079322e-20f, -44.9269943f}, {0.0117943827f, -4.44013166f}, {9.47263622f, 2.24840713f},
        {58037908.0f, 17.8766079f}, {235203552.0f, 19.2759628f}, {1.27837837e+23f, 53.2050514f},
        {3.98526918e+23f, 54.3420639f}, {5.49830608e+28f, 66.1768265f}};
    size_t i;
    if (sizeof(nrm_real) == sizeof(nrm_acc)) return; /* results are not rounded again */
    for (i = 0; i < sizeof calls / sizeof *calls; i++)
        CHECK((float)log_of((nrm_acc)calls[i][0]) == calls[i][1]);
}

/* In float builds every result is the float nearest to the exact value (make exhaustive). */
static void test_tanh_and_sigmoid(void)
{
    const int bits = sizeof(nrm_real) == sizeof(float) ? FLT_MANT_DIG : DBL_MANT_DIG;
    const double bound = sizeof(nrm_real) < sizeof(nrm_acc) ? 0.5 : 2.5 + reference_slack();
    worst tanh_error = {0, 0}, sigmoid_error = {0, 0};
    nrm_rng rng;
    int k;
    nrm_rng_seed(&rng, 3, 1);
    for (k = 0; k < TRIES; k++) {
        const nrm_real x = (nrm_real)argument(&rng, k, 80);
        const long double e = expl((long double)x);
        note(&tanh_error, ulps((double)tanh_of(x), tanhl((long double)x), bits), (double)x);
        note(&sigmoid_error, ulps((double)sigmoid_of(x), e / (1 + e), bits), (double)x);
        note(&sigmoid_error, ulps((double)sigmoid_of(-x), 1 / (1 + e), bits), (double)-x);
        if (!CHECK(tanh_of(-x) == -tanh_of(x))) break;
    }
    CHECK_WORST(tanh_error, bound);
    CHECK_WORST(sigmoid_error, bound);
}

static void test_activation_special(void)
{
    const nrm_real inf = (nrm_real)INFINITY, nan = (nrm_real)NAN;
    const nrm_real tiny = sizeof(nrm_real) == 8 ? (nrm_real)4.9e-324 : (nrm_real)1.4e-45;
    const nrm_real most = sizeof(nrm_real) == 8 ? (nrm_real)DBL_MAX : (nrm_real)FLT_MAX;
    const nrm_real far[4] = {most, -most, 800, -800};
    nrm_real x[8], y[8];
    int i;
    OK(nrm_activation_forward(y, far, NRM_TANH, 4));
    CHECK(y[0] == 1 && y[1] == -1 && y[2] == 1 && y[3] == -1);
    OK(nrm_activation_forward(y, far, NRM_SIGMOID, 4));
    CHECK(y[0] == 1 && y[1] == 0 && y[2] == 1 && y[3] == 0);
    x[0] = inf, x[1] = -inf, x[2] = nan, x[3] = 0, x[4] = -(nrm_real)0, x[5] = tiny, x[6] = -tiny;
    x[7] = (nrm_real)1e-30;
    CHECK(tiny > 0);
    OK(nrm_activation_forward(y, x, NRM_TANH, 8));
    CHECK(y[0] == 1 && y[1] == -1 && y[2] != y[2] && y[3] == 0 && y[4] == 0);
    CHECK(!signbit((double)y[3]) && signbit((double)y[4])); /* tanh(-0) is -0 */
    CHECK(y[5] == tiny && y[6] == -tiny && y[7] == x[7]);
    OK(nrm_activation_forward(y, x, NRM_SIGMOID, 8));
    CHECK(y[0] == 1 && y[1] == 0 && y[2] != y[2]);
    for (i = 3; i < 8; i++) CHECK(y[i] == (nrm_real)0.5);
    OK(nrm_activation_forward(y, x, NRM_RELU, 8));
    CHECK(y[0] == inf && y[1] == 0 && y[2] != y[2] && y[3] == 0 && y[4] == 0 && y[5] == tiny);
    CHECK(y[6] == 0 && y[7] == x[7]);
    OK(nrm_activation_forward(y, x, NRM_IDENTITY, 8));
    CHECK(y[0] == inf && y[1] == -inf && y[2] != y[2] && y[6] == -tiny);
}

/* A logit beyond all others is found wherever it is: nothing overflows. */
static void test_cross_entropy_largest(void)
{
    enum { MOST_CLASSES = 130 };
    nrm_real z[MOST_CLASSES] = {0}, p[MOST_CLASSES];
    int place;
    size_t C;
    for (C = 63; C <= MOST_CLASSES; C += 67)
        for (place = 0; place < (int)C; place++) {
            nrm_acc loss = 1;
            z[place] = 2000;
            OK(nrm_cross_entropy_forward(&loss, p, z, &place, 1, C));
            CHECK(loss == 0 && p[place] == 1 && p[(size_t)(place + 1) % C] == 0);
            z[place] = 0;
        }
}

/* A row that the network is sure of: ln(1 + R) keeps the digits of a tiny R. */
static void test_cross_entropy_of_a_sure_row(void)
{
    static const double gaps[] = {1, 9, 18, 30, 40, 80};
    const int label[1] = {1};
    size_t i;
    for (i = 0; i < sizeof gaps / sizeof *gaps; i++) {
        nrm_real z[40], p[40];
        nrm_acc loss;
        int c;
        for (c = 0; c < 40; c++) z[c] = (nrm_real)(3 - gaps[i]);
        z[1] = 3;
        OK(nrm_cross_entropy_forward(&loss, p, z, label, 1, 40));
        CHECK_NEAR(loss / (nrm_acc)log1p(39 * exp(-gaps[i])), 1,
                   sizeof(nrm_acc) == 8 ? 2e-15 : 1e-6);
        z[5] = 3; /* two largest */
        OK(nrm_cross_entropy_forward(&loss, p, z, label, 1, 40));
        CHECK_NEAR(loss / (nrm_acc)log(2 + 38 * exp(-gaps[i])), 1,
                   sizeof(nrm_acc) == 8 ? 2e-15 : 1e-6);
    }
}

/* ---- the norm layers ------------------------------------------------------------------------- */

enum { COUNT = 257 };
static nrm_real x[COUNT], y[COUNT], dy[COUNT], dx[COUNT], gamma_[COUNT], beta_[COUNT];

enum nasty { PLAIN, MEAN_1E3, MEAN_1E6, TINY_SPREAD, OUTLIER_FIRST, OUTLIER_LAST, HUGE_UNIT,
             SMALL_UNIT, TWO_CLUSTERS, RAMP, BIG_AND_SMALL, NASTY };

static void make_nasty(int kind)
{
    nrm_rng rng;
    int i;
    nrm_rng_seed(&rng, 9, (uint64_t)kind);
    for (i = 0; i < COUNT; i++) {
        double v = (double)draw_normal(&rng);
        if (kind == MEAN_1E3) v = 1e3 + v;
        if (kind == MEAN_1E6) v = 1e6 + v;
        if (kind == TINY_SPREAD) v = 1 + v * 1e-4;
        if (kind == OUTLIER_FIRST && i == 0) v = 1e6;
        if (kind == OUTLIER_LAST && i == COUNT - 1) v = -1e6;
        if (kind == HUGE_UNIT) v *= 1e18;
        if (kind == SMALL_UNIT) v *= 1e-18;
        if (kind == TWO_CLUSTERS) v = (i % 2 ? 1e4 : -1e4) + v;
        if (kind == RAMP) v = i;
        if (kind == BIG_AND_SMALL) v *= i % 2 ? 1e4 : 1e-4;
        x[i] = (nrm_real)v;
        dy[i] = draw_normal(&rng);
        gamma_[i] = (nrm_real)(1 + 0.5 * (double)draw_normal(&rng));
        beta_[i] = draw_normal(&rng);
    }
}

/* The largest error of `got`, as a fraction of the largest exact value; infinite with a NaN. */
static double relative(const nrm_real *got, const ref_wide *exact, size_t n)
{
    ref_wide error = 0, largest = 0;
    size_t i;
    for (i = 0; i < n; i++) {
        const ref_wide gap = ref_abs(REF(got[i]) - exact[i]);
        if (!(gap < REF(HUGE_VAL))) return HUGE_VAL;
        if (gap > error) error = gap;
        if (ref_abs(exact[i]) > largest) largest = ref_abs(exact[i]);
    }
    return (double)(error / largest);
}

/* A norm of one row or channel of nasty data, or of groups: [N][C][S]. */
typedef struct norm_shape {
    int function;
    size_t N, C, S, G;
} norm_shape;

static ref_group group_of(const norm_shape *k, size_t i)
{
    return k->function == CALL_BATCHNORM ? ref_channel(i, k->N, k->C, k->S)
                                         : ref_channels(i / k->G, i % k->G, k->C, k->S, k->G);
}

/* The arrays of a case: what is given, what is computed, and what should be. */
typedef struct norm_arrays {
    nrm_real *x, *dy, *gamma, *beta, *y, *dx, *dgamma, *dbeta;
    nrm_acc *mean, *rstd;
    ref_wide *ye, *dxe, *dge, *dbe;
} norm_arrays;

/* Both passes, and both references. Returns the largest |mean|/std of a group. */
static double both_passes(const norm_shape *k, const norm_arrays *a)
{
    const size_t groups = k->function == CALL_BATCHNORM ? k->C : k->N * k->G;
    const int rms = k->function == CALL_RMSNORM;
    double far = 0;
    layer_call c;
    size_t i;
    for (i = 0; i < k->C; i++) a->dge[i] = a->dbe[i] = 0, a->dgamma[i] = a->dbeta[i] = 0;
    for (i = 0; i < groups; i++) {
        const ref_group g = group_of(k, i);
        const ref_stats s = rms ? ref_mean_square(&g, a->x) : ref_moments(&g, a->x);
        if (!rms)
            far = fmax(far, (double)(ref_abs(ref_mean(&s)) / ref_sqrt(s.var + REF(NRM_EPS))));
        ref_forward(a->ye, &g, a->x, &s, REF(NRM_EPS), a->gamma, rms ? NULL : a->beta);
        if (rms)
            ref_backward_rms(a->dxe, &g, a->x, a->dy, &s, REF(NRM_EPS), a->gamma);
        else
            ref_backward_input(a->dxe, &g, a->x, a->dy, &s, REF(NRM_EPS), a->gamma, 0);
        ref_backward_parameters(a->dge, a->dbe, &g, a->x, a->dy, &s, REF(NRM_EPS));
    }
    memset(&c, 0, sizeof c);
    c.x = a->x, c.dy = a->dy, c.gamma = a->gamma, c.beta = a->beta, c.y = a->y, c.dx = a->dx;
    c.dgamma = a->dgamma, c.dbeta = a->dbeta, c.mean = a->mean, c.rstd = a->rstd;
    c.N = k->N, c.C = k->C, c.S = k->S, c.G = k->G, c.mode = NRM_TRAIN, c.eps = NRM_EPS;
    OK(call_layer(k->function, &c));
    OK(call_layer(k->function + 1, &c));
    return far;
}

#define CHECK_NASTY(error, bound, kind)                                                            \
    do {                                                                                           \
        const double got_ = (error);                                                               \
        if (!CHECK(got_ <= (bound)))                                                               \
            printf("    input %d: %.3g, bound %.3g\n", (kind), got_, (double)(bound));             \
        if (getenv("VERBOSE") != NULL)                                                             \
            printf("input %d: %s %.3g, bound %.3g\n", (kind), #error, got_, (double)(bound));      \
    } while (0)

/* In float the bound is 5e-7 whatever the data (of groups twice that): inside a block floats are
   added to floats, at most 64 to a lane, and everything else is done in double. With as many digits
   in the sums as in the data, the mean is known only to its own last place, which is a larger part
   of the spread the larger |mean|/spread is, and a pivot far from the mean may cost a few bits of
   the variance. One sum over all values has terms that may cancel to a small part of themselves. */
static void check_nasty(const norm_shape *k, int kind, double dy_mean)
{
    static nrm_real dgamma[COUNT], dbeta[COUNT];
    static nrm_acc mean[COUNT], rstd[COUNT];
    static ref_wide ye[COUNT], dxe[COUNT], dge[COUNT], dbe[COUNT];
    const size_t n = k->N * k->C * k->S, params = k->C;
    const int wider = sizeof(nrm_real) < sizeof(nrm_acc), batch = k->function == CALL_BATCHNORM;
    norm_arrays a = {NULL, dy, gamma_, beta_, y, dx, dgamma, dbeta, mean, rstd, ye, dxe, dge, dbe};
    double bound, sums, far;
    size_t j;
    make_nasty(kind);
    /* of COUNT values so many that they divide, the outlier among them */
    a.x = kind == OUTLIER_LAST ? x + (COUNT - n) : x;
    for (j = 0; j < n; j++) dy[j] = (nrm_real)((double)dy[j] + dy_mean);
    far = both_passes(k, &a);
    bound = batch || k->function == CALL_LAYERNORM ? 5e-7 : 1e-6;
    if (!wider) bound = (sizeof(nrm_acc) == 8 ? 1.2e-16 : 6e-8) * (32 + 16 * far) * (1 + dy_mean);
    sums = bound * (batch ? (wider ? 10 : 32) : k->S > 1 ? 16 : 1);
    CHECK_NASTY(relative(y, ye, n), bound, kind);
    CHECK_NASTY(relative(dx, dxe, n), bound, kind);
    CHECK_NASTY(relative(dgamma, dge, params), sums, kind);
    if (k->function != CALL_RMSNORM) CHECK_NASTY(relative(dbeta, dbe, params), sums, kind);
}

static void test_accuracy(void)
{
    static const norm_shape shape[] = {
        {CALL_LAYERNORM, 1, COUNT, 1, 1}, {CALL_BATCHNORM, COUNT, 1, 1, 1},
        {CALL_BATCHNORM, 1, 1, COUNT, 1}, {CALL_GROUPNORM, 1, 257, 1, 1},
        {CALL_GROUPNORM, 1, 256, 1, 8},   {CALL_GROUPNORM, 1, 1, 257, 1},
        {CALL_GROUPNORM, 1, 8, 32, 1},    {CALL_GROUPNORM, 1, 8, 32, 2},
        {CALL_GROUPNORM, 1, 4, 64, 4},    {CALL_GROUPNORM, 1, 64, 4, 8},
        {CALL_RMSNORM, 1, 257, 1, 1},
    };
    size_t i;
    int kind;
    for (i = 0; i < sizeof shape / sizeof shape[0]; i++)
        for (kind = 0; kind < NASTY; kind++) {
            check_nasty(&shape[i], kind, 0);
            /* where gamma differs within a group, the mean of dy is no small part of what dx is */
            if (i > 2 && shape[i].C / shape[i].G > 1 && (kind == PLAIN || kind == MEAN_1E3))
                check_nasty(&shape[i], kind, 100);
        }
}

/* ---- long sums ------------------------------------------------------------------------------- */

static void *long_array(size_t n, size_t size)
{
    void *a = calloc(n, size);
    if (a == NULL) exit(2);
    return a;
}

/* What normlayers.h promises of sums of up to a hundred thousand terms. */
static const double long_bound = 5e-6;

/* The backward pass has nothing but the saved mean, and a float near a million is off by up to half
   a place, 1/32 of the standard deviation. All x̂ of the group are: that is what dγ, the sum of
   dy·x̂, may be off by. In dx it goes with the means of dy and of dy·x̂, which are about 1/√terms. */
static double sum_blur(void)
{
    return sizeof(nrm_acc) == sizeof(float) ? 1.0 / 32 : long_bound;
}

static double slope_blur(size_t terms)
{
    return sizeof(nrm_acc) == sizeof(float) ? 3.0 / 32 / sqrt((double)terms) : long_bound;
}

/* Values of standard deviation 1 about a million. */
static void check_long(int function, size_t N, size_t C, size_t S)
{
    const norm_shape k = {function, N, C, S, 1};
    const size_t n = N * C * S, terms = function == CALL_BATCHNORM ? N * S : C;
    nrm_real *real = (nrm_real *)long_array(4 * n + 2 * C, sizeof *real);
    nrm_acc *acc = (nrm_acc *)long_array(2 * (N + C), sizeof *acc);
    ref_wide *wide = (ref_wide *)long_array(2 * n + 2 * C, sizeof *wide);
    norm_arrays a = {real, real + n, NULL, NULL, real + 2 * n, real + 3 * n, real + 4 * n,
                     real + 4 * n + C, acc, acc + N + C, wide, wide + n, wide + 2 * n,
                     wide + 2 * n + C};
    nrm_rng rng;
    size_t i;
    nrm_rng_seed(&rng, 10, N);
    for (i = 0; i < n; i++) a.x[i] = (nrm_real)(1e6 + (double)draw_normal(&rng));
    for (i = 0; i < n; i++) a.dy[i] = draw_normal(&rng);
    (void)both_passes(&k, &a);
    CHECK_NASTY(relative(a.y, a.ye, n), long_bound, (int)S);
    CHECK_NASTY(relative(a.dx, a.dxe, n), slope_blur(terms), (int)S);
    CHECK_NASTY(relative(a.dgamma, a.dge, C), sum_blur(), (int)S);
    CHECK_NASTY(relative(a.dbeta, a.dbe, C), long_bound, (int)S);
    free(real);
    free(acc);
    free(wide);
}

static void test_long_sums(void)
{
    check_long(CALL_BATCHNORM, 100352, 3, 1);
    check_long(CALL_BATCHNORM, 32, 3, 3136);
    check_long(CALL_LAYERNORM, 2, 100000, 1);
}

/* ---- what went wrong once -------------------------------------------------------------------- */

/* The largest error of y over a channel [N][1][S] whose first value is 0 and the rest b·a ± a. */
static double error_with_first_off(size_t N, size_t S, double a, double b)
{
    enum { MOST = 4096 };
    static nrm_real xs[MOST], ys[MOST];
    const size_t count = N * S;
    long double mean = 0, var = 0, worst_gap = 0, largest = 0;
    nrm_acc mu, r;
    size_t i;
    for (i = 0; i < count; i++) {
        xs[i] = i == 0 ? 0 : (nrm_real)(b * a + (i % 2 ? a : -a));
        mean += (long double)xs[i] / (long double)count;
    }
    for (i = 0; i < count; i++)
        var += ((long double)xs[i] - mean) * ((long double)xs[i] - mean) / (long double)count;
    OK(nrm_batchnorm_forward(ys, &mu, &r, NULL, xs, NULL, NULL, NRM_TRAIN, NRM_EPS, N, 1, S));
    for (i = 0; i < count; i++) {
        const long double exact = ((long double)xs[i] - mean) / sqrtl(var + (long double)NRM_EPS);
        const long double gap = fabsl((long double)ys[i] - exact);
        if (gap > worst_gap) worst_gap = gap;
        if (fabsl(exact) > largest) largest = fabsl(exact);
    }
    return (double)(worst_gap / largest);
}

/* A first value 1.5 to 12 spreads away, in dense rows, in short runs, in one block and in several:
   in short runs few lanes are in use, and their chains must not grow long. */
static void test_first_value_off(void)
{
    static const size_t shape[][2] = {{32, 1}, {64, 1}, {512, 2}, {341, 3}, {1, 1024}, {1, 4096}};
    size_t i, b;
    for (i = 0; i < sizeof shape / sizeof shape[0]; i++)
        for (b = 0; b < 32; b++) {
            const double off = 1.5 + 0.33 * (double)b, a = 1 + 0.037 * (double)b;
            CHECK(error_with_first_off(shape[i][0], shape[i][1], a, off) <= 5e-6);
        }
}

/* 10^5 rows of the same gradient: the error of each addition would have the same sign. */
static void test_long_columns(void)
{
    enum { N = 100000, D = 4 };
    nrm_real *xs = (nrm_real *)long_array((size_t)N * D, sizeof *xs);
    nrm_real *ds = (nrm_real *)long_array((size_t)N * D, sizeof *ds);
    nrm_acc *mu = (nrm_acc *)long_array(N, sizeof *mu), *r = (nrm_acc *)long_array(N, sizeof *r);
    const nrm_real each = (nrm_real)1.25433338;
    const double exact = (double)each * N;
    nrm_real *ys = (nrm_real *)long_array((size_t)N * D, sizeof *ys), dbeta[D] = {0};
    nrm_rng rng;
    size_t i;
    nrm_rng_seed(&rng, 4, 1);
    for (i = 0; i < (size_t)N * D; i++) {
        xs[i] = draw_normal(&rng);
        ds[i] = each;
    }
    OK(nrm_layernorm_forward(ys, mu, r, xs, NULL, NULL, NRM_EPS, N, D));
    OK(nrm_layernorm_backward(ys, NULL, dbeta, ds, xs, mu, r, NULL, N, D));
    for (i = 0; i < D; i++)
        CHECK(fabs((double)dbeta[i] - exact) <= (sizeof(nrm_acc) == 8 ? 2e-6 : 1e-3) * exact);
    free(xs);
    free(ds);
    free(ys);
    free(mu);
    free(r);
}

/* In mode frozen the gradient of a value is its own affair: BN.20. */
static void test_frozen_alone(void)
{
    const nrm_acc mean = 0, rstd = 1;
    nrm_real xs[4] = {1, 2, 3, 4}, ds[4] = {1, 1, 1, 1}, out[4];
    int i;
    ds[2] = (nrm_real)NAN;
    OK(nrm_batchnorm_backward(out, NULL, NULL, ds, xs, &mean, &rstd, NULL, NRM_FROZEN, 4, 1, 1));
    for (i = 0; i < 4; i++) CHECK(i == 2 ? out[i] != out[i] : out[i] == 1);
}

/* Spreads up to the end of float's range: no coefficient may leave it before the results do. */
static void test_far_scales(void)
{
    static const double scales[] = {1e20, 1e25, 1e30, 1e35};
    size_t k;
    for (k = 0; k < 4 && sizeof(nrm_acc) == 8; k++) {
        nrm_real xs[8], ds[8], ys[8], out[8];
        long double sum = 0, sum_x = 0;
        nrm_acc mu, r;
        int i;
        for (i = 0; i < 8; i++) {
            xs[i] = (nrm_real)(scales[k] * (i * 0.37 - (i % 3)));
            ds[i] = (nrm_real)(1 + 0.5 * (i % 4) - 0.3 * i);
        }
        OK(nrm_batchnorm_forward(ys, &mu, &r, NULL, xs, NULL, NULL, NRM_TRAIN, NRM_EPS, 8, 1, 1));
        OK(nrm_batchnorm_backward(out, NULL, NULL, ds, xs, &mu, &r, NULL, NRM_TRAIN, 8, 1, 1));
        for (i = 0; i < 8; i++) {
            sum += (long double)ds[i] / 8;
            sum_x += (long double)ds[i] * ((long double)xs[i] - (long double)mu) *
                     (long double)r / 8;
        }
        for (i = 0; i < 8; i++) {
            const long double xhat = ((long double)xs[i] - (long double)mu) * (long double)r;
            const long double exact = (long double)r * ((long double)ds[i] - sum - xhat * sum_x);
            CHECK(fabsl((long double)out[i] - exact) <= 2e-6L * (long double)r);
        }
    }
}

int main(void)
{
    RUN(test_exp);
    RUN(test_exp_special);
    RUN(test_log);
    RUN(test_log_of_close_calls);
    RUN(test_tanh_and_sigmoid);
    RUN(test_activation_special);
    RUN(test_cross_entropy_largest);
    RUN(test_cross_entropy_of_a_sure_row);
    RUN(test_accuracy);
    RUN(test_long_sums);
    RUN(test_first_value_off);
    RUN(test_long_columns);
    RUN(test_frozen_alone);
    RUN(test_far_scales);
    return test_report("numerics");
}
