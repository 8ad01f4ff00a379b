/* test_numerics.c - how close normlayers.h comes to the exact value: its exponential, logarithm,
   tanh and sigmoid against the long double functions of the C library, and the norm layers against
   a plain reference in long double on inputs chosen to hurt: huge means, tiny spreads, outliers,
   very large and very small units.

   Errors of the functions are in ulp, units in the last place of the result's own type. With
   extended long double the reference is good to a thousandth of an ulp of double; where long double
   is no wider than double, the bounds in double allow for the reference's own error. */
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"
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

static void test_exp(void)
{
    worst exp_error = {0, 0}, expm1_error = {0, 0};
    nrm_rng rng;
    int k;
    nrm_rng_seed(&rng, 1, 1);
    for (k = 0; k < TRIES; k++) {
        const nrm_acc x = (nrm_acc)argument(&rng, k, sizeof(nrm_acc) == 8 ? 707.9 : 86.9);
        note(&exp_error, ulps((double)nrmi_exp(x), expl((long double)x), digits()), (double)x);
        note(&expm1_error, ulps((double)nrmi_expm1(x), expm1l((long double)x), digits()),
             (double)x);
    }
    CHECK_WORST(exp_error, 1.2 + reference_slack());
    CHECK_WORST(expm1_error, 1.5 + reference_slack());
}

static void test_exp_special(void)
{
    const nrm_acc inf = (nrm_acc)INFINITY, nan = (nrm_acc)NAN;
    const nrm_acc tiny = sizeof(nrm_acc) == 8 ? (nrm_acc)-4.9e-324 : (nrm_acc)-1.4e-45;
    CHECK(nrmi_exp(0) == 1 && nrmi_exp(-(nrm_acc)0) == 1);
    CHECK(nrmi_expm1(0) == 0 && nrmi_expm1(-(nrm_acc)0) == 0);
    CHECK(nrmi_exp(-inf) == 0 && nrmi_expm1(-inf) == -1);
    CHECK(nrmi_exp(nan) != nrmi_exp(nan) && nrmi_expm1(nan) != nrmi_expm1(nan));
    CHECK(tiny != 0 && nrmi_exp(tiny) == 1 && nrmi_expm1(tiny) == tiny);
    CHECK(nrmi_exp(-1000) == 0 && nrmi_expm1(-1000) == -1);
    CHECK(nrmi_expm1((nrm_acc)-1e-30) == (nrm_acc)-1e-30);
    CHECK(nrmi_exp(nrmi_exp_lowest()) > 0); /* the last one that is not flushed is normal */
    CHECK(nrmi_exp(nrmi_exp_lowest()) >= (sizeof(nrm_acc) == 8 ? (nrm_acc)DBL_MIN
                                                               : (nrm_acc)FLT_MIN));
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
        note(&log_error, ulps((double)nrmi_log(wide), logl((long double)wide), digits()),
             (double)wide);
        note(&near_one, ulps((double)nrmi_log(close), logl((long double)close), digits()),
             (double)close);
    }
    CHECK_WORST(log_error, (sizeof(nrm_acc) == 8 ? 1.8 : 3) + reference_slack());
    CHECK_WORST(near_one, 3 + reference_slack());
    CHECK(nrmi_log(1) == 0);
    CHECK_NEAR(nrmi_log(2), 0.69314718055994531, sizeof(nrm_acc) == 8 ? 1.2e-16 : 6e-8);
    CHECK_NEAR(nrmi_log((nrm_acc)FLT_MIN), log((double)FLT_MIN), 1e-5);
}

/* In float builds the work is done in double, so that hardly any result is not the float nearest to
   the exact value, and none is further away than the next one. */
static void test_tanh_and_sigmoid(void)
{
    const int bits = sizeof(nrm_real) == sizeof(float) ? FLT_MANT_DIG : DBL_MANT_DIG;
    const double bound = sizeof(nrm_real) < sizeof(nrm_acc) ? 0.501 : 3 + reference_slack();
    worst tanh_error = {0, 0}, sigmoid_error = {0, 0};
    nrm_rng rng;
    int k;
    nrm_rng_seed(&rng, 3, 1);
    for (k = 0; k < TRIES; k++) {
        const nrm_real x = (nrm_real)argument(&rng, k, 80);
        const long double e = expl((long double)x);
        note(&tanh_error, ulps((double)nrmi_tanh(x), tanhl((long double)x), bits), (double)x);
        note(&sigmoid_error, ulps((double)nrmi_sigmoid(x), e / (1 + e), bits), (double)x);
        note(&sigmoid_error, ulps((double)nrmi_sigmoid(-x), 1 / (1 + e), bits), (double)-x);
        if (!CHECK(nrmi_tanh(-x) == -nrmi_tanh(x))) break;
    }
    CHECK_WORST(tanh_error, bound);
    CHECK_WORST(sigmoid_error, bound);
}

static void test_activation_special(void)
{
    const nrm_real inf = (nrm_real)INFINITY, nan = (nrm_real)NAN;
    const nrm_real tiny = sizeof(nrm_real) == 8 ? (nrm_real)4.9e-324 : (nrm_real)1.4e-45;
    nrm_real x[8], y[8];
    int i;
    x[0] = inf, x[1] = -inf, x[2] = nan, x[3] = 0, x[4] = -(nrm_real)0, x[5] = tiny, x[6] = -tiny;
    x[7] = (nrm_real)1e-30;
    CHECK(tiny > 0);
    CHECK_INT(nrm_activation_forward(y, x, NRM_TANH, 8), NRM_OK);
    CHECK(y[0] == 1 && y[1] == -1 && y[2] != y[2] && y[3] == 0 && y[4] == 0);
    CHECK(!signbit((double)y[3])); /* tanh(+0) is +0 */
    CHECK(y[5] == tiny && y[6] == -tiny && y[7] == x[7]);
    CHECK_INT(nrm_activation_forward(y, x, NRM_SIGMOID, 8), NRM_OK);
    CHECK(y[0] == 1 && y[1] == 0 && y[2] != y[2]);
    for (i = 3; i < 8; i++) CHECK(y[i] == (nrm_real)0.5);
    CHECK_INT(nrm_activation_forward(y, x, NRM_RELU, 8), NRM_OK);
    CHECK(y[0] == inf && y[1] == 0 && y[2] != y[2] && y[3] == 0 && y[4] == 0 && y[5] == tiny);
    CHECK(y[6] == 0 && y[7] == x[7]);
    CHECK_INT(nrm_activation_forward(y, x, NRM_IDENTITY, 8), NRM_OK);
    CHECK(y[0] == inf && y[1] == -inf && y[2] != y[2] && y[6] == -tiny);
}

/* Logits of any size, and a loss that does not need the probability to be anything but 0. */
static void test_cross_entropy_extremes(void)
{
    const nrm_real huge = sizeof(nrm_real) == 8 ? (nrm_real)1e300 : (nrm_real)1e38;
    const int label[1] = {1};
    nrm_real z[3], p[3];
    nrm_acc loss;
    z[0] = huge, z[1] = -huge / 4, z[2] = 0;
    CHECK_INT(nrm_cross_entropy_forward(&loss, p, z, label, 1, 3), NRM_OK);
    CHECK(loss == (nrm_acc)huge - (nrm_acc)z[1]);
    CHECK(p[0] == 1 && p[1] == 0 && p[2] == 0);
    z[0] = z[1] = z[2] = (nrm_real)1e4;
    CHECK_INT(nrm_cross_entropy_forward(&loss, p, z, label, 1, 3), NRM_OK);
    CHECK_NEAR(loss, log(3), sizeof(nrm_acc) == 8 ? 3e-16 : 2e-7);
    z[1] = (nrm_real)INFINITY;
    CHECK_INT(nrm_cross_entropy_forward(&loss, p, z, label, 1, 3), NRM_NONFINITE);
    z[1] = -(nrm_real)INFINITY; /* another class may be impossible */
    z[0] = 2, z[2] = 3;
    {
        const int other[1] = {2};
        CHECK_INT(nrm_cross_entropy_forward(&loss, p, z, other, 1, 3), NRM_OK);
        CHECK_NEAR(loss, log1p(exp(-1.0)), sizeof(nrm_acc) == 8 ? 3e-16 : 2e-7);
        CHECK(p[1] == 0);
    }
}

/* ---- the norm layers ------------------------------------------------------------------------- */

enum { COUNT = 257 };
static nrm_real x[COUNT], y[COUNT], dy[COUNT], dx[COUNT], gamma_[COUNT], beta_[COUNT];

enum nasty { PLAIN, MEAN_1E3, MEAN_1E6, TINY_SPREAD, OUTLIER_FIRST, OUTLIER_LAST, HUGE_UNIT,
             SMALL_UNIT, TWO_CLUSTERS, RAMP, NASTY };

static void make_nasty(int kind)
{
    nrm_rng rng;
    int i;
    nrm_rng_seed(&rng, 9, (uint64_t)kind);
    for (i = 0; i < COUNT; i++) {
        double v = (double)nrm_rng_normal(&rng);
        if (kind == MEAN_1E3) v = 1e3 + v;
        if (kind == MEAN_1E6) v = 1e6 + v;
        if (kind == TINY_SPREAD) v = 1 + v * 1e-4;
        if (kind == OUTLIER_FIRST && i == 0) v = 1e6;
        if (kind == OUTLIER_LAST && i == COUNT - 1) v = -1e6;
        if (kind == HUGE_UNIT) v *= 1e18;
        if (kind == SMALL_UNIT) v *= 1e-18;
        if (kind == TWO_CLUSTERS) v = (i % 2 ? 1e4 : -1e4) + v;
        if (kind == RAMP) v = i;
        x[i] = (nrm_real)v;
        dy[i] = nrm_rng_normal(&rng);
        gamma_[i] = (nrm_real)(1 + 0.5 * (double)nrm_rng_normal(&rng));
        beta_[i] = nrm_rng_normal(&rng);
    }
}

typedef struct reference { /* of one row, in long double: mean, rstd, output and gradient */
    long double mean, rstd, y[COUNT], dx[COUNT], dgamma[COUNT];
} reference;

/* gamma and beta one per value (layer norm) or the first for all (batch norm). */
static void make_reference(reference *r, int per_value)
{
    const long double count = COUNT;
    long double v = 0, g_mean = 0, gx_mean = 0;
    int i;
    r->mean = 0;
    for (i = 0; i < COUNT; i++) r->mean += (long double)x[i] / count;
    for (i = 0; i < COUNT; i++)
        v += ((long double)x[i] - r->mean) * ((long double)x[i] - r->mean) / count;
    r->rstd = 1 / sqrtl(v + (long double)NRM_EPS);
    for (i = 0; i < COUNT; i++) {
        const int p = per_value ? i : 0;
        const long double xhat = ((long double)x[i] - r->mean) * r->rstd;
        r->y[i] = (long double)gamma_[p] * xhat + (long double)beta_[p];
        r->dgamma[i] = (long double)dy[i] * xhat;
        g_mean += (long double)dy[i] * (long double)gamma_[p] / count;
        gx_mean += (long double)dy[i] * (long double)gamma_[p] * xhat / count;
    }
    for (i = 0; i < COUNT; i++) {
        const int p = per_value ? i : 0;
        const long double xhat = ((long double)x[i] - r->mean) * r->rstd;
        r->dx[i] = r->rstd * ((long double)dy[i] * (long double)gamma_[p] - g_mean -
                              xhat * gx_mean);
    }
}

/* The largest error of `got`, as a fraction of the largest exact value. */
static double relative(const nrm_real *got, const long double *exact)
{
    long double error = 0, largest = 0;
    int i;
    for (i = 0; i < COUNT; i++) {
        if (!(fabsl((long double)got[i] - exact[i]) <= error))
            error = fabsl((long double)got[i] - exact[i]);
        if (fabsl(exact[i]) > largest) largest = fabsl(exact[i]);
    }
    return (double)(error / largest);
}

/* In float the bound is 2e-7 whatever the data, since sums and differences of floats lose nothing
   that matters in double. With as many digits in the sums as in the data, the mean is known only
   to its own last place, which is a larger part of the spread the larger |mean|/spread is. */
static double norm_bound(const reference *r)
{
    const double u = sizeof(nrm_acc) == 8 ? 1.2e-16 : 6e-8;
    if (sizeof(nrm_real) < sizeof(nrm_acc)) return 2e-7;
    return u * (8 + 16 * (double)(fabsl(r->mean) * r->rstd));
}

#define CHECK_NASTY(error, bound, kind)                                                            \
    do {                                                                                           \
        const double got_ = (error);                                                               \
        if (!CHECK(got_ <= (bound)))                                                               \
            printf("    input %d: %.3g, bound %.3g\n", (kind), got_, (double)(bound));             \
        if (getenv("VERBOSE") != NULL)                                                             \
            printf("input %d: %s %.3g, bound %.3g\n", (kind), #error, got_, (double)(bound));      \
    } while (0)

static void test_layernorm_accuracy(void)
{
    static reference r;
    nrm_real dgamma[COUNT];
    nrm_acc mean, rstd;
    int kind;
    for (kind = 0; kind < NASTY; kind++) {
        make_nasty(kind);
        make_reference(&r, 1);
        memset(dgamma, 0, sizeof dgamma);
        CHECK_INT(nrm_layernorm_forward(y, &mean, &rstd, x, gamma_, beta_, NRM_EPS, 1, COUNT),
                  NRM_OK);
        CHECK_INT(nrm_layernorm_backward(dx, dgamma, NULL, dy, x, &mean, &rstd, gamma_, 1, COUNT),
                  NRM_OK);
        CHECK_NASTY(relative(y, r.y), norm_bound(&r), kind);
        CHECK_NASTY(relative(dx, r.dx), norm_bound(&r), kind);
        CHECK_NASTY(relative(dgamma, r.dgamma), norm_bound(&r), kind);
    }
}

/* One channel, dense and as one run of positions: two paths of the code, one reference. */
static void test_batchnorm_accuracy(void)
{
    static reference r;
    nrm_acc mean, rstd;
    int kind, dense;
    for (kind = 0; kind < NASTY; kind++)
        for (dense = 0; dense < 2; dense++) {
            const size_t N = dense ? COUNT : 1, S = dense ? 1 : COUNT;
            make_nasty(kind);
            make_reference(&r, 0);
            CHECK_INT(nrm_batchnorm_forward(y, &mean, &rstd, NULL, x, gamma_, beta_, NRM_TRAIN,
                                            NRM_EPS, N, 1, S),
                      NRM_OK);
            CHECK_INT(nrm_batchnorm_backward(dx, NULL, NULL, dy, x, &mean, &rstd, gamma_,
                                             NRM_TRAIN, N, 1, S),
                      NRM_OK);
            CHECK_NASTY(relative(y, r.y), norm_bound(&r), kind);
            CHECK_NASTY(relative(dx, r.dx), norm_bound(&r), kind);
        }
}

int main(void)
{
    RUN(test_exp);
    RUN(test_exp_special);
    RUN(test_log);
    RUN(test_tanh_and_sigmoid);
    RUN(test_activation_special);
    RUN(test_cross_entropy_extremes);
    RUN(test_layernorm_accuracy);
    RUN(test_batchnorm_accuracy);
    return test_report("numerics");
}
