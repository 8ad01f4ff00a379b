/* test_layers.c - every layer of normlayers.h against a second opinion.

   The second opinion is written in long double, as directly as the definition allows: that of the
   norms in reference.h, the others here. Buffers have exactly the size that a function may touch,
   so that a sanitizer sees every step outside. Outputs that a function must overwrite start as NaN,
   and those that it must add to start as random numbers. */
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"
#include "lab/draw.h"
#include "call.h"
#include "reference.h"
#include "test.h"
#include <float.h>
#include <stdlib.h>

typedef ref_wide wide;
#define WIDE(a) ((wide)(a))
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const int in_float = sizeof(nrm_real) == sizeof(float);
static const int acc_in_float = sizeof(nrm_acc) == sizeof(float);
#ifdef NRM_PLAIN
static const int in_chains = 1;
#else
static const int in_chains = 0;
#endif

/* The precision of the data. */
static double unit(void)
{
    return in_float ? (double)FLT_EPSILON : DBL_EPSILON;
}

/* What a result of type nrm_acc may be off by: some of its places. */
static double acc_places(double places)
{
    return places * (acc_in_float ? (double)FLT_EPSILON : DBL_EPSILON);
}

static nrm_real not_a_number(void)
{
    return (nrm_real)NAN;
}

/* ---- buffers --------------------------------------------------------------------------------- */

/* Everything that a check has asked for is released together, when it is done. */
static void *held[2048];
static size_t holding;

static void *bytes_of(size_t n)
{
    void *p = malloc(n > 0 ? n : 1);
    if (p == NULL || holding == COUNT(held)) exit(2);
    held[holding++] = p;
    return p;
}

static void release(void)
{
    while (holding > 0) free(held[--holding]);
}

static nrm_real *reals_of(size_t n, nrm_real value)
{
    nrm_real *a = (nrm_real *)bytes_of(n * sizeof *a);
    size_t i;
    for (i = 0; i < n; i++) a[i] = value;
    return a;
}

static nrm_real *random_reals(nrm_rng *rng, size_t n, double centre, double sd)
{
    nrm_real *a = reals_of(n, 0);
    size_t i;
    for (i = 0; i < n; i++) a[i] = (nrm_real)(centre + sd * (double)draw_normal(rng));
    return a;
}

static nrm_real *copy_of(const nrm_real *a, size_t n)
{
    nrm_real *b = reals_of(n, 0);
    memcpy(b, a, n * sizeof *a);
    return b;
}

static nrm_acc *accs_of(size_t n)
{
    nrm_acc *a = (nrm_acc *)bytes_of(n * sizeof *a);
    size_t i;
    for (i = 0; i < n; i++) a[i] = (nrm_acc)NAN;
    return a;
}

static wide *wides_of(size_t n)
{
    wide *a = (wide *)bytes_of(n * sizeof *a);
    size_t i;
    for (i = 0; i < n; i++) a[i] = 0;
    return a;
}

static int same_bits(const nrm_real *a, const nrm_real *b, size_t n)
{
    return memcmp(a, b, n * sizeof *a) == 0;
}

static int all_nan(const nrm_real *a, size_t n)
{
    size_t i;
    for (i = 0; i < n; i++)
        if (a[i] == a[i]) return 0;
    return 1;
}

/* The largest difference, relative to the largest expected value or to `size`, if that is larger;
   infinite if there is a NaN. */
static double gap_of_size(const nrm_real *a, const wide *expected, size_t n, wide size)
{
    wide most = 0;
    size_t i;
    for (i = 0; i < n; i++) {
        const wide d = fabsl(WIDE(a[i]) - expected[i]);
        if (!(d < WIDE(INFINITY))) return HUGE_VAL;
        if (d > most) most = d;
        if (fabsl(expected[i]) > size) size = fabsl(expected[i]);
    }
    return (double)(size > 0 ? most / size : most);
}

/* Terms of size 1 make a sum of this size, by chance less: then its error weighs more. */
static wide sum_size(size_t terms)
{
    return in_float ? sqrtl((wide)terms) : 0;
}

static double gap(const nrm_real *a, const wide *expected, size_t n)
{
    return gap_of_size(a, expected, n, 0);
}

/* What an error of a mean is measured by. Deviations from the pivot are summed in nrm_real, so they
   count with its digits; the pivot itself counts with those of nrm_acc. */
static wide mean_scale(wide mean, wide var)
{
    return fabsl(mean) + (in_float && !acc_in_float ? 5e7L : 1) * sqrtl(var);
}

static double mean_bound(void)
{
    return acc_in_float ? acc_places(4.5) : 1e-14;
}

/* And in a chain of float sums: half a place more for each term, and two (docs/accuracy.md). */
static double chain(size_t terms)
{
    return in_chains && acc_in_float ? acc_places(0.5) * (double)(terms + 2) : 0;
}

static double acc_gap(nrm_acc a, wide expected, wide size)
{
    const wide d = fabsl(WIDE(a) - expected);
    return d < WIDE(INFINITY) ? (double)(d / size) : HUGE_VAL;
}

/* ---- linear layer ---------------------------------------------------------------------------- */

/* |got - (start + sum of a*b)| in units of the rounding that such a sum may suffer. */
static double dot_error(nrm_real got, nrm_real start, const nrm_real *a, size_t a_step,
                        const nrm_real *b, size_t b_step, size_t n)
{
    wide sum = WIDE(start), size = fabsl(WIDE(start));
    size_t k;
    for (k = 0; k < n; k++) {
        const wide p = WIDE(a[k * a_step]) * WIDE(b[k * b_step]);
        sum += p;
        size += fabsl(p);
    }
    if (size <= 0) return got == 0 ? 0 : HUGE_VAL;
    return (double)(fabsl(WIDE(got) - sum) / (size * WIDE(unit()) * WIDE(n + 2)));
}

static double larger(double a, double b)
{
    return a > b || a != a ? a : b;
}

static double linear_forward_error(const nrm_real *y, const nrm_real *x, const nrm_real *W,
                                   const nrm_real *b, size_t N, size_t in, size_t out)
{
    double worst = 0;
    size_t n, j;
    for (n = 0; n < N; n++)
        for (j = 0; j < out; j++)
            worst = larger(worst, dot_error(y[n * out + j], b != NULL ? b[j] : 0, x + n * in, 1,
                                            W + j, out, in));
    return worst;
}

/* Forward and all three gradients of one shape; the largest error in units of what is allowed. */
static double linear_error(nrm_rng *rng, size_t N, size_t in, size_t out)
{
    const nrm_real one = 1;
    nrm_real *x = random_reals(rng, N * in, 0, 1), *W = random_reals(rng, in * out, 0, 1);
    nrm_real *b = random_reals(rng, out, 0, 1), *dy = random_reals(rng, N * out, 0, 1);
    nrm_real *dW = random_reals(rng, in * out, 0, 1), *db = random_reals(rng, out, 0, 1);
    nrm_real *dW0 = copy_of(dW, in * out), *db0 = copy_of(db, out);
    nrm_real *y = reals_of(N * out, not_a_number()), *dx = reals_of(N * in, not_a_number());
    double worst;
    size_t n, i, j;
    OK(nrm_linear_forward(y, x, W, b, N, in, out));
    worst = linear_forward_error(y, x, W, b, N, in, out);
    OK(nrm_linear_forward(y, x, W, NULL, N, in, out));
    worst = larger(worst, linear_forward_error(y, x, W, NULL, N, in, out));
    OK(nrm_linear_backward(dx, dW, db, dy, x, W, N, in, out));
    for (n = 0; n < N; n++)
        for (i = 0; i < in; i++)
            worst =
                larger(worst, dot_error(dx[n * in + i], 0, dy + n * out, 1, W + i * out, 1, out));
    for (i = 0; i < in; i++)
        for (j = 0; j < out; j++)
            worst = larger(worst,
                           dot_error(dW[i * out + j], dW0[i * out + j], x + i, in, dy + j, out, N));
    for (j = 0; j < out; j++)
        worst = larger(worst, dot_error(db[j], db0[j], dy + j, out, &one, 0, N));
    release();
    return worst;
}

static const size_t edges[16] = {1, 2, 3, 5, 6, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65, 129};

static void test_linear_shapes(void)
{
    nrm_rng rng;
    size_t place, e, k;
    nrm_rng_seed(&rng, 1, 1);
    for (place = 0; place < 3; place++) /* each edge in each of the three places */
        for (e = 0; e < 16; e++)
            for (k = 0; k < 2; k++) {
                size_t size[3], p;
                for (p = 0; p < 3; p++) size[p] = edges[nrm_rng_below(&rng, 13)];
                size[place] = edges[e];
                if (!CHECK(linear_error(&rng, size[0], size[1], size[2]) <= 1))
                    printf("  at N=%u in=%u out=%u\n", (unsigned)size[0], (unsigned)size[1],
                           (unsigned)size[2]);
            }
    CHECK(linear_error(&rng, 2, 300, 5) <= 1); /* more than two packs deep */
    CHECK(linear_error(&rng, 3, 129, 65) <= 1);
    CHECK(linear_error(&rng, 65, 3, 129) <= 1);
    CHECK(linear_error(&rng, 150, 130, 120) <= 1); /* large enough for several threads */
    CHECK(linear_error(&rng, 120, 130, 150) <= 1);
}

/* LIN.5 fixes every bit: a running sum over ascending k, with or without fused multiply-adds. */
static void test_linear_order(void)
{
    const size_t N = 7, in = 139, out = 37;
    nrm_rng rng;
    nrm_real *x, *W, *b, *y, *plain, *fused;
    size_t n, j, k;
    nrm_rng_seed(&rng, 2, 1);
    x = random_reals(&rng, N * in, 0, 1);
    W = random_reals(&rng, in * out, 0, 1);
    b = random_reals(&rng, out, 0, 1);
    y = reals_of(N * out, 0);
    plain = reals_of(N * out, 0);
    fused = reals_of(N * out, 0);
    OK(nrm_linear_forward(y, x, W, b, N, in, out));
    for (n = 0; n < N; n++)
        for (j = 0; j < out; j++) {
            nrm_real sum = b[j], sum_fused = b[j];
            for (k = 0; k < in; k++) {
                const nrm_real p = x[n * in + k], q = W[k * out + j];
                volatile nrm_real product = p * q;
                sum += product;
                sum_fused = in_float ? (nrm_real)fmaf((float)p, (float)q, (float)sum_fused)
                                     : (nrm_real)fma((double)p, (double)q, (double)sum_fused);
            }
            plain[n * out + j] = sum;
            fused[n * out + j] = sum_fused;
        }
    CHECK(!same_bits(plain, fused, N * out)); /* else this test shows nothing */
    CHECK(same_bits(y, plain, N * out) || same_bits(y, fused, N * out));
    release();
}

/* Each gradient alone is the same as all three together, and N = 0 touches nothing. */
static void test_linear_optional(void)
{
    const size_t N = 5, in = 9, out = 17;
    nrm_rng rng;
    nrm_real *x, *W, *dy, *dx[2], *dW[2], *db[2];
    int k;
    nrm_rng_seed(&rng, 3, 1);
    x = random_reals(&rng, N * in, 0, 1);
    W = random_reals(&rng, in * out, 0, 1);
    dy = random_reals(&rng, N * out, 0, 1);
    for (k = 0; k < 2; k++) {
        dx[k] = reals_of(N * in, not_a_number());
        dW[k] = reals_of(in * out, 1);
        db[k] = reals_of(out, 2);
    }
    OK(nrm_linear_backward(dx[0], dW[0], db[0], dy, x, W, N, in, out));
    OK(nrm_linear_backward(dx[1], NULL, NULL, dy, NULL, W, N, in, out));
    OK(nrm_linear_backward(NULL, dW[1], NULL, dy, x, NULL, N, in, out));
    OK(nrm_linear_backward(NULL, NULL, db[1], dy, NULL, NULL, N, in, out));
    CHECK(same_bits(dx[0], dx[1], N * in));
    CHECK(same_bits(dW[0], dW[1], in * out));
    CHECK(same_bits(db[0], db[1], out));
    OK(nrm_linear_backward(dx[0], dW[0], db[0], dy, x, W, 0, in, out));
    OK(nrm_linear_forward(dx[0], x, W, NULL, 0, in, out));
    CHECK(same_bits(dx[0], dx[1], N * in) && same_bits(dW[0], dW[1], in * out));
    CHECK(same_bits(db[0], db[1], out));
    release();
}

/* ---- batch, layer, group and RMS norm -------------------------------------------------------- */

enum norm_kind { BATCH, LP, LAYER, GROUP, RMS };

typedef struct norm_case { /* rows have S = 1, and G = 1 unless they are groups */
    enum norm_kind kind;
    size_t N, C, S, G;
    double centre, sd;   /* of the data */
    int mode, p, params; /* params: 1 for gamma, 2 for beta */
    nrm_real eps;
    const nrm_real *x, *gamma, *beta;
    nrm_running running;
} norm_case;

static norm_case norm_of(enum norm_kind kind, size_t N, size_t C, size_t S, size_t G)
{
    norm_case k;
    memset(&k, 0, sizeof k);
    k.kind = kind, k.N = N, k.C = C, k.S = S, k.G = G;
    k.sd = 1;
    return k;
}

static const int norm_function[] = {CALL_BATCHNORM, CALL_LP, CALL_LAYERNORM, CALL_GROUPNORM,
                                    CALL_RMSNORM};

static layer_call norm_call(norm_case *k, nrm_acc *mean, nrm_acc *rstd)
{
    layer_call c;
    memset(&c, 0, sizeof c);
    c.x = k->x, c.gamma = k->gamma, c.beta = k->beta, c.mean = mean, c.rstd = rstd;
    c.N = k->N, c.C = k->C, c.S = k->S, c.G = k->G;
    c.mode = k->mode, c.p = k->p, c.eps = k->eps;
    if (k->mode != NRM_TRAIN) c.running = &k->running;
    return c;
}

static int norm_forward(norm_case *k, nrm_real *y, nrm_acc *mean, nrm_acc *rstd)
{
    layer_call c = norm_call(k, mean, rstd);
    c.y = y;
    return call_layer(norm_function[k->kind], &c);
}

static int norm_backward(norm_case *k, nrm_real *dx, nrm_real *dgamma, nrm_real *dbeta,
                         const nrm_real *dy, nrm_acc *mean, nrm_acc *rstd)
{
    layer_call c = norm_call(k, mean, rstd);
    c.dx = dx, c.dgamma = dgamma, c.dbeta = dbeta, c.dy = dy;
    return call_layer(norm_function[k->kind] + 1, &c);
}

/* How far rounding may take a result: of the data, and of the mean when it dwarfs the spread. */
static double allowed(double centre, double sd)
{
    return 8 * unit() + 32 * DBL_EPSILON * (fabs(centre) / sd + 1);
}

/* The backward pass has nothing but the saved mean. Where that is a float it is off by up to half a
   place, and x̂ by r times as much. Gradients contain x̂ twice: in a mean, and as a factor of one. */
static double mean_blur(double centre, wide steepest)
{
    return acc_in_float ? 2 * (double)FLT_EPSILON * fabs(centre) * (double)steepest : 0;
}

/* The same for r. A first pivot may cost four bits of the variance (SUM.6), so each rounding of the
   merging, which is done in nrm_acc, counts up to sixteen times, and half that in the root. */
static double allowed_rstd(double centre, double sd)
{
    return allowed(centre, sd) + acc_places(8);
}

/* What is measured: x, or its deviation. */
static wide lp_measured(const norm_case *k, const ref_stats *s, nrm_real x)
{
    return (k->p & NRM_CENTRED) ? ref_deviation(s, x) : WIDE(x);
}

static wide lp_reference_size(const norm_case *k, const ref_group *g, const ref_stats *s,
                              const nrm_real *x)
{
    ref_sum sum = {0, 0};
    wide most = 0;
    REF_EACH(g, {
        const wide u = ref_abs(lp_measured(k, s, x[at]));
        ref_add(&sum, (k->p & 3) == NRM_L2 ? u * u : u);
        if (u > most) most = u;
    });
    if ((k->p & 3) == NRM_LINF) return most;
    sum.sum = ref_total(&sum) / (WIDE(k->N) * WIDE(k->S));
    return (k->p & 3) == NRM_L2 ? ref_sqrt(sum.sum) : sum.sum;
}

/* The chain rule along the graph x -> mean -> u -> t -> y. */
static void lp_reference_input(wide *dx, const norm_case *k, const ref_group *g, const ref_stats *s,
                               const nrm_real *x, const nrm_real *dy, wide t, wide eps, wide gamma)
{
    const wide r = 1 / (t + eps), M = WIDE(k->N) * WIDE(k->S);
    ref_sum through_t = {0, 0}, through_mean = {0, 0};
    wide dt, dmean;
    int found = 0;
    REF_EACH(g, {
        dx[at] = gamma * WIDE(dy[at]) * r;
        ref_add(&through_t, -dx[at] * r * ref_deviation(s, x[at]));
        if (k->mode == NRM_TRAIN) ref_add(&through_mean, -dx[at]);
    });
    if (k->mode != NRM_TRAIN) return;
    dt = ref_total(&through_t);
    REF_EACH(g, {
        const wide u = lp_measured(k, s, x[at]);
        wide du = (k->p & 3) == NRM_L2 ? u / (M * t) : (WIDE(u > 0) - WIDE(u < 0)) / M;
        if ((k->p & 3) == NRM_LINF) du = !found && ref_abs(u) == t ? du * M : 0;
        if (du != 0) found = 1;
        dx[at] += dt * du;
        if ((k->p & NRM_CENTRED)) ref_add(&through_mean, -dt * du);
    });
    dmean = ref_total(&through_mean) / M;
    REF_EACH(g, dx[at] += dmean);
}

/* Group i: its statistics, and its part of all results. Returns what is saved beside the mean. */
static wide norm_reference(const norm_case *k, size_t i, const nrm_real *dy, ref_stats *s,
                           wide *rstd, wide *y, wide *dx, wide *dgamma, wide *dbeta)
{
    const int channels = k->kind <= LP, given = channels && k->mode != NRM_TRAIN;
    const ref_group g = channels ? ref_channel(i, k->N, k->C, k->S)
                                 : ref_channels(i / k->G, i % k->G, k->C, k->S, k->G);
    wide r, t = 0;
    *s = given            ? ref_given(WIDE(k->running.mean[i]), WIDE(k->running.var[i]))
         : k->kind == RMS ? ref_mean_square(&g, k->x)
                          : ref_moments(&g, k->x);
    r = 1 / ref_sqrt(s->var + WIDE(k->eps));
    if (k->kind == LP) t = given ? s->var : lp_reference_size(k, &g, s, k->x);
    if (k->kind == LP) r = 1 / (t + WIDE(k->eps));
    ref_forward_by(y, &g, k->x, s, r, k->gamma, k->kind == RMS ? NULL : k->beta);
    if (k->kind == RMS)
        ref_backward_rms(dx, &g, k->x, dy, s, WIDE(k->eps), k->gamma);
    else if (k->kind == LP)
        lp_reference_input(dx, k, &g, s, k->x, dy, t, WIDE(k->eps), WIDE(k->gamma[i]));
    else
        ref_backward_input(dx, &g, k->x, dy, s, WIDE(k->eps), k->gamma, given);
    ref_backward_parameters_by(dgamma, dbeta, &g, k->x, dy, s, r);
    *rstd = r;
    if (k->kind == LP && given) s->var = 0; /* it is no variance */
    return k->kind == LP ? t : r;
}

/* Forward and backward of one case, against the reference; then in place, with nothing saved, and
   without the parameters' gradients: the same bits. */
static void check_norm(nrm_rng *rng, norm_case k)
{
    const size_t n = k.N * k.C * k.S, C = k.C, groups = k.kind <= LP ? C : k.N * k.G;
    const double tol = allowed(k.centre, k.sd), slack = k.kind <= LP ? 8 : 64;
    const double chained = k.kind == GROUP || k.kind == RMS ? chain(C / k.G * k.S)
                           : k.kind == LP                   ? chain(k.N * k.S)
                                                            : 0;
    nrm_real *x = random_reals(rng, n, k.centre, k.sd), *dy = random_reals(rng, n, 0, 1);
    nrm_real *gamma = random_reals(rng, C, 1, 0.5), *beta = random_reals(rng, C, 0, 1);
    nrm_real *known = k.kind <= LP ? random_reals(rng, C, k.centre, k.sd) : NULL;
    nrm_real *dgamma = random_reals(rng, C, 0, 1), *dbeta = random_reals(rng, C, 0, 1);
    nrm_real *y = reals_of(n, not_a_number()), *dx = reals_of(n, not_a_number());
    nrm_acc *mean = accs_of(groups), *rstd = accs_of(groups);
    wide *ye = wides_of(n), *dxe = wides_of(n), *dge = wides_of(C), *dbe = wides_of(C);
    wide steepest = 0;
    double blur;
    size_t i;
    k.running.mean = known;
    k.running.var = reals_of(C, 0);
    for (i = 0; i < C; i++) {
        const double size = k.kind == LP ? k.sd : k.sd * k.sd;
        if (k.kind <= LP) k.running.var[i] = (nrm_real)(size * (0.5 + (double)draw_uniform(rng)));
        dge[i] = WIDE(dgamma[i]);
        dbe[i] = WIDE(dbeta[i]);
    }
    k.eps = (nrm_real)1e-3;
    k.x = x;
    k.gamma = k.params & 1 ? gamma : NULL;
    k.beta = k.params & 2 ? beta : NULL;
    OK(norm_forward(&k, y, mean, rstd));
    for (i = 0; i < groups; i++) {
        ref_stats s;
        wide r;
        const wide saved = norm_reference(&k, i, dy, &s, &r, ye, dxe, dge, dbe), m = ref_mean(&s);
        if (k.kind != RMS)
            CHECK(acc_gap(mean[i], m, mean_scale(m, s.var)) <= mean_bound() + chained);
        CHECK(acc_gap(rstd[i], saved, saved) <= allowed_rstd(k.centre, k.sd));
        if (r > steepest) steepest = r;
    }
    CHECK(gap(y, ye, n) <= tol + chained);
    if (k.kind > LP || k.mode != NRM_INFER) {
        OK(norm_backward(&k, dx, dgamma, dbeta, dy, mean, rstd));
        blur = k.kind == RMS ? 0 : mean_blur(k.centre, steepest);
        /* where one or two directions are all there are, it is g's rounding that is left of g */
        if (k.kind <= LP && !acc_in_float && (k.kind == BATCH || k.N * k.S != 2)) steepest = 0;
        if (k.kind == LAYER && !in_float) steepest = 0;
        if (k.kind == LAYER && C == 1) /* nothing at all */
            for (i = 0; i < n; i++) CHECK(dx[i] == 0);
        else
            CHECK(gap_of_size(dx, dxe, n, steepest) <= slack * tol + blur);
        CHECK(gap_of_size(dgamma, dge, C, sum_size(k.N * k.S)) <= 8 * tol + blur);
        if (k.kind != RMS) CHECK(gap_of_size(dbeta, dbe, C, sum_size(k.N * k.S)) <= 8 * tol);
        OK(norm_backward(&k, dy, NULL, NULL, dy, mean, rstd));
        CHECK(same_bits(dy, dx, n));
    }
    if (k.kind > LP || k.mode == NRM_INFER) {
        OK(norm_forward(&k, x, NULL, NULL));
        CHECK(same_bits(x, y, n));
    }
    if (test_bad > 0)
        printf("  kind %d, %ux%ux%u, G=%u, %g +- %g\n", (int)k.kind, (unsigned)k.N, (unsigned)C,
               (unsigned)k.S, (unsigned)k.G, k.centre, k.sd);
    release();
}

static void test_batchnorm_values(void)
{
    static const size_t Ns[5] = {2, 3, 4, 7, 32}, Ss[6] = {1, 2, 5, 8, 9, 17};
    static const size_t Cs[7] = {1, 2, 7, 63, 64, 65, 130};
    static const double centres[3] = {0, -5, 1000}, sds[3] = {1, 0.01, 0.1};
    norm_case k;
    nrm_rng rng;
    size_t i, s, d;
    int turn = 0;
    nrm_rng_seed(&rng, 4, 1);
    for (i = 0; i < COUNT(Cs); i++)
        for (s = 0; s < COUNT(Ss); s++)
            for (d = 0; d < COUNT(centres); d++) {
                const size_t N = Ns[nrm_rng_below(&rng, Cs[i] > 8 && Ss[s] > 2 ? 3 : 5)];
                k = norm_of(BATCH, N, Cs[i], Ss[s], 1);
                k.centre = centres[d];
                k.sd = sds[d];
                k.mode = turn % 3;
                k.params = (nrm_rng_below(&rng, 4) != 0) + 2 * (nrm_rng_below(&rng, 4) != 0);
                turn += nrm_rng_below(&rng, 2) ? 1 : 2;
                check_norm(&rng, k);
            }
    k = norm_of(BATCH, 1, 3, 5, 1); /* one example is a batch if it has positions */
    k.centre = 2;
    for (k.params = 0; k.params < 4; k.params++) check_norm(&rng, k);
}

static void test_layernorm_values(void)
{
    static const size_t Ds[] = {1, 2, 3, 7, 8, 9, 15, 16, 17, 63, 64, 65, 130};
    static const size_t Ns[] = {1, 2, 5, 33};
    nrm_rng rng;
    size_t d, n;
    nrm_rng_seed(&rng, 8, 1);
    for (d = 0; d < COUNT(Ds); d++)
        for (n = 0; n < COUNT(Ns); n++) {
            norm_case k = norm_of(LAYER, Ns[n], Ds[d], 1, 1);
            k.params = (int)(d + n) % 4;
            check_norm(&rng, k);
            k.params = (k.params + 1) % 4;
            k.centre = 100;
            k.sd = 0.5;
            check_norm(&rng, k);
        }
}

/* ---- activations ----------------------------------------------------------------------------- */

static wide activation_of(wide x, int kind)
{
    switch (kind) {
    case NRM_RELU: return x > 0 ? x : 0;
    case NRM_TANH: return tanhl(x);
    case NRM_SIGMOID: return 1 / (1 + expl(-x));
    default: return x;
    }
}

static wide slope_of(wide x, int kind)
{
    const wide y = activation_of(x, kind);
    switch (kind) {
    case NRM_RELU: return x > 0 ? 1 : 0;
    case NRM_TANH: return 1 - y * y;
    case NRM_SIGMOID: return y * (1 - y);
    default: return 1;
    }
}

static void check_activation(int kind, const nrm_real *x, size_t n)
{
    const wide tiny = in_float ? WIDE(FLT_MIN) : 2 * WIDE(DBL_MIN);
    nrm_real *y = reals_of(n, not_a_number()), *dx = reals_of(n, not_a_number());
    nrm_real *dy = reals_of(n, (nrm_real)1.5), *in_place = copy_of(x, n);
    size_t i;
    OK(nrm_activation_forward(y, x, kind, n));
    OK(nrm_activation_backward(dx, dy, y, kind, n));
    for (i = 0; i < n; i++) {
        const wide e = activation_of(WIDE(x[i]), kind);
        const wide d = WIDE(1.5) * slope_of(WIDE(x[i]), kind);
        if (!CHECK(fabsl(WIDE(y[i]) - e) <= 3 * WIDE(unit()) * fabsl(e) + tiny))
            printf("  kind %d at x = %.17g\n", kind, (double)x[i]);
        /* the output is all that the derivative sees, so 1 - y loses what y lost */
        CHECK(fabsl(WIDE(dx[i]) - d) <= 8 * WIDE(unit()) + tiny);
    }
    OK(nrm_activation_forward(in_place, in_place, kind, n));
    CHECK(same_bits(in_place, y, n));
    OK(nrm_activation_backward(dy, dy, y, kind, n));
    CHECK(same_bits(dy, dx, n));
    release();
}

static void test_activations(void)
{
    enum { GRID = 1200 };
    nrm_real x[GRID];
    nrm_rng rng;
    int kind;
    size_t i;
    nrm_rng_seed(&rng, 13, 1);
    for (i = 0; i < GRID; i++) {
        const double size = pow(10, -8 + (double)(i / 2) * 10.5 / (GRID / 2)); /* 1e-8 .. 300 */
        x[i] = (nrm_real)((i % 2 ? size : -size) * (1 + (double)draw_uniform(&rng)));
    }
    for (kind = NRM_IDENTITY; kind <= NRM_SIGMOID; kind++) check_activation(kind, x, GRID);
}

/* ---- softmax cross-entropy ------------------------------------------------------------------- */

static wide cross_entropy_of(wide *prob, const nrm_real *z, int label, size_t C)
{
    wide h = WIDE(z[0]), sum = 0;
    size_t c;
    for (c = 0; c < C; c++)
        if (WIDE(z[c]) > h) h = WIDE(z[c]);
    for (c = 0; c < C; c++) sum += expl(WIDE(z[c]) - h);
    for (c = 0; c < C; c++) prob[c] = expl(WIDE(z[c]) - h) / sum;
    return logl(sum) + h - WIDE(z[label]);
}

static void check_cross_entropy(nrm_rng *rng, size_t N, size_t C, double centre, double sd)
{
    nrm_real *z = random_reals(rng, N * C, centre, sd), *p = reals_of(N * C, not_a_number());
    nrm_real *dz = reals_of(N * C, not_a_number());
    int *labels = (int *)bytes_of(N * sizeof *labels);
    wide *pe = wides_of(N * C), expected = 0;
    nrm_acc loss = 0, alone = 0;
    size_t n, c;
    for (n = 0; n < N; n++) {
        labels[n] = (int)nrm_rng_below(rng, (uint32_t)C);
        expected += cross_entropy_of(pe + n * C, z + n * C, labels[n], C) / WIDE(N);
    }
    OK(nrm_cross_entropy_forward(&loss, p, z, labels, N, C));
    OK(nrm_cross_entropy_forward(&alone, NULL, z, labels, N, C));
    CHECK(loss == alone);
    CHECK(fabsl(WIDE(loss) - expected) <= WIDE(acc_places(4.5)) * (fabsl(expected) * 8 + 4));
    CHECK(gap(p, pe, N * C) <= 4 * unit());
    OK(nrm_cross_entropy_backward(dz, p, labels, N, C));
    for (n = 0; n < N; n++)
        for (c = 0; c < C; c++) {
            const wide e = (pe[n * C + c] - ((size_t)labels[n] == c ? 1 : 0)) / WIDE(N);
            CHECK(fabsl(WIDE(dz[n * C + c]) - e) <= 4 * WIDE(unit()) / WIDE(N));
        }
    OK(nrm_cross_entropy_forward(&loss, z, z, labels, N, C)); /* in place */
    CHECK(loss == alone && same_bits(z, p, N * C));
    OK(nrm_cross_entropy_backward(p, p, labels, N, C));
    CHECK(same_bits(p, dz, N * C));
    release();
}

static void test_cross_entropy(void)
{
    nrm_rng rng;
    nrm_rng_seed(&rng, 14, 1);
    check_cross_entropy(&rng, 1, 1, 0, 1);
    check_cross_entropy(&rng, 5, 2, 0, 1);
    check_cross_entropy(&rng, 33, 10, 0, 3);
    check_cross_entropy(&rng, 7, 65, 1000, 100); /* exp of these is out of range */
    check_cross_entropy(&rng, 7, 10, -1000, 100);
    check_cross_entropy(&rng, 7, 10, 0, 1e30);
    check_cross_entropy(&rng, 7, 10, 0, 1e-6);
}

static void test_cross_entropy_extremes(void)
{
    const nrm_real inf = (nrm_real)INFINITY;
    const nrm_real huge = (nrm_real)(in_float ? 1e38 : 1e300);
    nrm_real z[3], p[3];
    nrm_acc loss = 0;
    int label = 1;
    z[0] = huge; /* the loss does not need the probability to be anything but 0 */
    z[1] = -huge / 4;
    z[2] = 0;
    OK(nrm_cross_entropy_forward(&loss, p, z, &label, 1, 3));
    CHECK(loss == (nrm_acc)huge - (nrm_acc)z[1]);
    CHECK(p[0] == 1 && p[1] == 0 && p[2] == 0);
    z[0] = z[1] = z[2] = (nrm_real)1e4;
    OK(nrm_cross_entropy_forward(&loss, p, z, &label, 1, 3));
    CHECK_NEAR(loss, log(3), acc_places(4.5));
    label = 0;
    z[0] = 1;
    z[1] = -inf; /* a class that is ruled out */
    z[2] = 1;
    OK(nrm_cross_entropy_forward(&loss, p, z, &label, 1, 3));
    CHECK_NEAR(loss, log(2), acc_places(4.5));
    CHECK(p[1] == 0 && p[0] == (nrm_real)0.5);
    label = 1; /* and is the right one after all */
    CHECK_INT(nrm_cross_entropy_forward(&loss, p, z, &label, 1, 3), NRM_NONFINITE);
    CHECK(loss == (nrm_acc)INFINITY);
    z[1] = (nrm_real)NAN;
    label = 0;
    CHECK_INT(nrm_cross_entropy_forward(&loss, p, z, &label, 1, 3), NRM_NONFINITE);
    CHECK(loss != loss && all_nan(p, 3));
    z[1] = inf;
    CHECK_INT(nrm_cross_entropy_forward(&loss, p, z, &label, 1, 3), NRM_NONFINITE);
    label = 3;
    loss = 7;
    CHECK_INT(nrm_cross_entropy_forward(&loss, p, z, &label, 1, 3), NRM_ELABEL);
    CHECK(loss == 7);
    label = -1;
    CHECK_INT(nrm_cross_entropy_backward(p, p, &label, 1, 3), NRM_ELABEL);
    OK(nrm_cross_entropy_forward(&loss, NULL, NULL, NULL, 0, 3));
    CHECK(loss == 0);
}

static void test_accuracy(void)
{
    const nrm_real nan = (nrm_real)NAN, inf = (nrm_real)INFINITY;
    const nrm_real z[6 * 3] = {1,    3,    2,    /* plain */
                               5,    5,    5,    /* all equal */
                               0,    2,    2,    /* tie */
                               -inf, -inf, -inf, /* all equal, too */
                               nan,  9,    1,    /* NaN first */
                               9,    1,    nan}; /* NaN last */
    const int right[6] = {1, 0, 1, 0, 1, 0}, zeros[6] = {0, 0, 0, 0, 0, 0};
    const int bad = 3;
    nrm_acc accuracy = -1;
    OK(nrm_accuracy(&accuracy, z, right, 4, 3));
    CHECK(accuracy == 1);
    OK(nrm_accuracy(&accuracy, z, zeros, 4, 3));
    CHECK(accuracy == (nrm_acc)0.5);
    CHECK_INT(nrm_accuracy(&accuracy, z, right, 6, 3), NRM_NONFINITE);
    /* rows with a NaN are wrong, whatever the label */
    CHECK_NEAR(accuracy, 4.0 / 6, acc_places(1));
    CHECK_INT(nrm_accuracy(&accuracy, z, &bad, 1, 3), NRM_ELABEL);
    OK(nrm_accuracy(&accuracy, z, right, 0, 3));
    CHECK(accuracy == 0);
}

/* ---- random numbers -------------------------------------------------------------------------- */

/* A copy rewinds, the spare normal included; a new seed forgets the spare. */
static void test_rng_stream(void)
{
    nrm_rng a, b;
    int i;
    nrm_rng_seed(&a, 1, 0);
    (void)draw_normal(&a);
    b = a;
    for (i = 0; i < 5; i++) CHECK(draw_normal(&a) == draw_normal(&b));
    nrm_rng_seed(&a, 2, 0);
    nrm_rng_seed(&b, 2, 0);
    (void)draw_normal(&a);
    nrm_rng_seed(&a, 2, 0);
    CHECK(draw_normal(&a) == draw_normal(&b));
}

/* A stream cut into portions of 0, 1, 2, ... numbers is the stream, the state behind it too. */
static void test_rng_portions(void)
{
    enum { MOST = 140, ALL = MOST * (MOST + 1) / 2 };
    static nrm_real whole[ALL], cut[ALL];
    int normal, first;
    for (normal = 0; normal < 2; normal++)
        for (first = 0; first < 2; first++) {
            void (*const draw)(nrm_rng *, nrm_real *, size_t) =
                normal ? nrm_rng_normal : nrm_rng_uniform;
            nrm_rng a, b;
            size_t i, n;
            nrm_rng_seed(&a, 19, 1);
            if (first) (void)draw_normal(&a); /* its twin is spare */
            b = a;
            draw(&a, whole, ALL);
            for (i = n = 0; i < ALL; i += n++) draw(&b, cut + i, n);
            draw(&b, cut, 0);
            CHECK(memcmp(whole, cut, sizeof whole) == 0);
            CHECK(a.state == b.state && a.has_spare == b.has_spare);
            CHECK(!a.has_spare || a.spare == b.spare);
        }
}

/* Pearson's statistic of counts that should be alike. */
static double chi_square(const unsigned *count, size_t bins, double draws)
{
    const double expected = draws / (double)bins;
    double sum = 0;
    size_t i;
    for (i = 0; i < bins; i++) sum += pow((double)count[i] - expected, 2) / expected;
    return sum;
}

/* Beyond mean + 4 standard deviations of chi-square something is wrong; far below, too. */
static void check_alike(const unsigned *count, size_t bins, double draws)
{
    const double f = (double)bins - 1, x = chi_square(count, bins, draws);
    CHECK(x <= f + 4 * sqrt(2 * f) && (bins < 8 || x >= f - 3 * sqrt(2 * f)));
}

static void test_rng_shuffle(void)
{
    enum { ROUNDS = 24000 };
    unsigned count[24] = {0}, seen[1000] = {0};
    size_t big[1000], small[4], i;
    nrm_rng rng;
    int round, moved = 0;
    nrm_rng_seed(&rng, 18, 1);
    for (i = 0; i < 1000; i++) big[i] = i;
    OK(nrm_rng_shuffle(&rng, big, 1000));
    for (i = 0; i < 1000; i++) {
        seen[big[i]]++;
        moved += big[i] != i;
    }
    for (i = 0; i < 1000; i++) CHECK(seen[i] == 1);
    CHECK(moved > 990);
    for (round = 0; round < ROUNDS; round++) {
        size_t code = 0, k;
        for (i = 0; i < 4; i++) small[i] = i;
        OK(nrm_rng_shuffle(&rng, small, 4));
        for (i = 0; i < 4; i++) { /* the number of the order: Lehmer's code */
            size_t smaller = 0;
            for (k = i + 1; k < 4; k++) smaller += small[k] < small[i];
            code = code * (4 - i) + smaller;
        }
        count[code]++;
    }
    check_alike(count, 24, ROUNDS);
    OK(nrm_rng_shuffle(&rng, NULL, 0));
    CHECK_INT(nrm_rng_shuffle(&rng, NULL, 2), NRM_ENULL);
}

#include "layers_norms.h" /* the newer norms */
/* ---- Lp batch normalization ------------------------------------------------------------------ */

static void test_lp_values(void)
{
    static const size_t shape[][3] = {{2, 3, 1}, {7, 1, 1}, {3, 65, 1}, {33, 130, 1}, {4, 1030, 1},
                                      {1, 2, 3}, {3, 7, 5}, {2, 5, 17}, {4, 3, 33},   {2, 2, 1500}};
    static const double centres[4] = {0, -5, 1000, 1e6}, sds[4] = {1, 0.1, 0.1, 1};
    nrm_rng rng;
    size_t i, d;
    int turn, mode;
    nrm_rng_seed(&rng, 60, 1);
    for (turn = 0; turn < 6; turn++)
        for (mode = NRM_TRAIN; mode <= NRM_FROZEN; mode++)
            for (i = 0; i < COUNT(shape); i++)
                for (d = 0; d < COUNT(centres); d++) {
                    norm_case k = norm_of(LP, shape[i][0], shape[i][1], shape[i][2], 1);
                    /* a mean in float that is far off does not know t, nor even before that which
                       values lie above it, or which farthest */
                    if (acc_in_float && (d == 3 || (d == 2 && turn / 2 + 1 != NRM_L2))) continue;
                    k.p = turn / 2 + NRM_L1 + turn % 2 * NRM_CENTRED;
                    k.mode = mode;
                    k.params = 3;
                    k.centre = centres[d];
                    k.sd = sds[d];
                    check_norm(&rng, k);
                }
}

/* With an eps too small to count, L2 centred is batch norm: y to the bit, gradients to rounding. */
static void test_lp_is_batchnorm(void)
{
    const size_t N = 9, C = 5;
    const nrm_real eps = (nrm_real)1e-30;
    nrm_rng rng;
    size_t S;
    nrm_rng_seed(&rng, 61, 1);
    for (S = 1; S < 20; S += 9) {
        const size_t n = N * C * S;
        nrm_real *x = random_reals(&rng, n, 3, 1), *dy = random_reals(&rng, n, 0, 1);
        nrm_real *gamma = random_reals(&rng, C, 1, 0.5), *beta = random_reals(&rng, C, 0, 1);
        nrm_real *y = reals_of(n, 0), *y2 = reals_of(n, 1), *dx = reals_of(n, 0);
        nrm_real *dx2 = reals_of(n, 1), *dg = reals_of(C, 0), *dg2 = reals_of(C, 0);
        nrm_acc *mean = accs_of(C), *rstd = accs_of(C), *scale = accs_of(C);
        wide *expected = wides_of(n);
        size_t i;
        OK(nrm_batchnorm_forward(y, mean, rstd, NULL, x, gamma, beta, NRM_TRAIN, eps, N, C, S));
        OK(nrm_batchnorm_backward(dx, dg, NULL, dy, x, mean, rstd, gamma, NRM_TRAIN, N, C, S));
        OK(nrm_lp_batchnorm_forward(y2, mean, scale, NULL, x, gamma, beta, NRM_L2 + NRM_CENTRED,
                                    NRM_TRAIN, eps, N, C, S));
        OK(nrm_lp_batchnorm_backward(dx2, dg2, NULL, dy, x, mean, scale, gamma,
                                     NRM_L2 + NRM_CENTRED, NRM_TRAIN, eps, N, C, S));
        CHECK(same_bits(y, y2, n));
        for (i = 0; i < n; i++) expected[i] = WIDE(dx[i]);
        CHECK(gap(dx2, expected, n) <= 4 * unit());
        for (i = 0; i < C; i++) expected[i] = WIDE(dg[i]);
        CHECK(gap(dg2, expected, C) <= 16 * unit());
        release();
    }
}

/* Of several largest values the first has the gradient; of L1, a value of 0 has none. */
static void test_lp_kinks(void)
{
    const nrm_real x[6] = {1, 3, -3, 3, 0, -3}, dy[6] = {1, 2, 0, -1, 0.5, 3};
    nrm_real y[6], dx[6], other[6], dg[1];
    nrm_acc mean[1], t[1];
    size_t i, S;
    for (S = 1; S <= 6; S += 5) { /* a dense channel, and a run */
        const nrm_real eps = NRM_EPS;
        nrm_real a, common;
        dg[0] = 0;
        OK(nrm_lp_batchnorm_forward(y, mean, t, NULL, x, NULL, NULL, NRM_LINF, NRM_TRAIN, eps,
                                    6 / S, 1, S));
        CHECK(t[0] == 3);
        OK(nrm_lp_batchnorm_backward(dx, dg, NULL, dy, x, mean, t, NULL, NRM_LINF, NRM_TRAIN, eps,
                                     6 / S, 1, S));
        a = (nrm_real)(1 / (3 + (double)eps));
        common = (nrm_real)(5.5 / 6);
        for (i = 0; i < 6; i++)
            CHECK_NEAR(dx[i], a * (dy[i] - common - (i == 1 ? dg[0] : 0)), 4 * unit());
        dg[0] = 0;
        OK(nrm_lp_batchnorm_forward(y, mean, t, NULL, x, NULL, NULL, NRM_L1, NRM_TRAIN, eps, 6 / S,
                                    1, S));
        CHECK_NEAR(t[0], 13.0 / 6, acc_places(2));
        OK(nrm_lp_batchnorm_backward(other, dg, NULL, dy, x, mean, t, NULL, NRM_L1, NRM_TRAIN, eps,
                                     6 / S, 1, S));
        a = (nrm_real)(1 / (13.0 / 6 + (double)eps));
        for (i = 0; i < 6; i++)
            CHECK_NEAR(other[i],
                       a * (dy[i] - common - (nrm_real)((x[i] > 0) - (x[i] < 0)) * dg[0] / 6),
                       4 * unit());
    }
}

/* ---- weight normalization -------------------------------------------------------------------- */

static void check_weightnorm(nrm_rng *rng, size_t in, size_t out, double sd, int has_g)
{
    const size_t n = in * out;
    nrm_real *v = random_reals(rng, n, 0.3 * sd, sd), *dW = random_reals(rng, n, 0, 1);
    nrm_real *g = random_reals(rng, out, 1, 0.5), *W = reals_of(n, not_a_number());
    nrm_real *dv = reals_of(n, 0), *dg = reals_of(out, 2), *dg2 = reals_of(out, 2);
    nrm_acc *norm = accs_of(out);
    wide *We = wides_of(n), *dve = wides_of(n), *dge = wides_of(out);
    size_t i, j;
    OK(nrm_weightnorm_forward(W, norm, v, has_g ? g : NULL, in, out));
    OK(nrm_weightnorm_backward(dv, dg, dW, v, norm, has_g ? g : NULL, in, out));
    OK(nrm_weightnorm_backward(NULL, dg2, dW, v, norm, has_g ? g : NULL, in, out));
    CHECK(same_bits(dg, dg2, out));
    for (j = 0; j < out; j++) {
        const wide length = has_g ? WIDE(g[j]) : 1, unit_of = WIDE(sd);
        ref_sum squares = {0, 0}, along = {0, 0};
        wide size;
        for (i = 0; i < in; i++) {
            const wide a = WIDE(v[i * out + j]) / unit_of;
            ref_add(&squares, a * a);
        }
        size = ref_sqrt(ref_total(&squares)) * unit_of;
        CHECK(acc_gap(norm[j], size, size) <= 8 * unit() + acc_places(8));
        for (i = 0; i < in; i++)
            ref_add(&along, WIDE(dW[i * out + j]) * (WIDE(v[i * out + j]) / size));
        dge[j] = 2 + ref_total(&along);
        for (i = 0; i < in; i++) {
            const wide share = WIDE(v[i * out + j]) / size;
            We[i * out + j] = length * share;
            dve[i * out + j] = length / size * (WIDE(dW[i * out + j]) - ref_total(&along) * share);
        }
    }
    CHECK(gap(W, We, n) <= 8 * unit());
    CHECK(in == 1 || gap(dv, dve, n) <= 8 * unit());
    CHECK(gap_of_size(dg, dge, out, sum_size(in)) <= 8 * unit());
    release();
}

static void test_weightnorm_values(void)
{
    static const size_t ins[6] = {1, 2, 7, 31, 33, 130}, outs[7] = {1, 3, 7, 64, 65, 130, 1030};
    static const double sds[6] = {1, 0.05, 1e-25, 1e25, 1e-12, 1e12};
    nrm_rng rng;
    size_t i, o, d;
    nrm_rng_seed(&rng, 62, 1);
    for (i = 0; i < COUNT(ins); i++)
        for (o = 0; o < COUNT(outs); o++)
            for (d = 0; d < (outs[o] < 64 ? COUNT(sds) : 1); d++)
                check_weightnorm(&rng, ins[i], outs[o], sds[d], (i + o) % 4 != 0);
}

/* So many numbers that memory is fetched ahead, in runs that no vector divides: the last values of
   each run, which are done one by one, are those of the definition. */
static void test_long_runs(void)
{
    enum { N = 2, C = 3, S = 349527 }; /* more than 2^21 numbers */
    nrm_real *at = (nrm_real *)malloc(4 * N * C * S * sizeof *at);
    nrm_real *in = at, *out = at + N * C * S, *d = at + 2 * N * C * S, *din = at + 3 * N * C * S;
    nrm_acc mu[C], r[C], sum[C] = {0}, sum_xhat[C] = {0};
    const double tolerance = in_float || acc_in_float ? 2e-4 : 1e-9;
    size_t i, n, c;
    if (!CHECK(at != NULL)) return;
    for (i = 0; i < N * C * S; i++) {
        in[i] = (nrm_real)((double)(i * 7919 % 1009) / 512 - 1);
        d[i] = (nrm_real)((double)(i * 104729 % 997) / 512 - 1);
    }
    OK(nrm_batchnorm_forward(out, mu, r, NULL, in, NULL, NULL, NRM_TRAIN, NRM_EPS, N, C, S));
    OK(nrm_batchnorm_backward(din, NULL, NULL, d, in, mu, r, NULL, NRM_TRAIN, N, C, S));
    for (i = 0; i < N * C * S; i++) {
        c = i / S % C;
        sum[c] += (nrm_acc)d[i];
        sum_xhat[c] += (nrm_acc)d[i] * (((nrm_acc)in[i] - mu[c]) * r[c]);
    }
    for (n = 0; n < N; n++)
        for (c = 0; c < C; c++)
            for (i = (n * C + c + 1) * S - 40; i < (n * C + c + 1) * S; i++) {
                const double xhat = ((double)in[i] - (double)mu[c]) * (double)r[c], M = N * S;
                const double wanted = (double)r[c] * ((double)d[i] - (double)sum[c] / M -
                                                      xhat * (double)sum_xhat[c] / M);
                CHECK_NEAR(out[i], xhat, tolerance);
                CHECK_NEAR(din[i], wanted, tolerance * 10);
            }
    free(at);
}

int main(void)
{
    RUN(test_linear_shapes);
    RUN(test_linear_order);
    RUN(test_linear_optional);
    RUN(test_batchnorm_values);
    RUN(test_layernorm_values);
    RUN(test_activations);
    RUN(test_cross_entropy);
    RUN(test_cross_entropy_extremes);
    RUN(test_accuracy);
    RUN(test_rng_stream);
    RUN(test_rng_portions);
    RUN(test_rng_shuffle);
    RUN(test_groupnorm_values);
    RUN(test_rmsnorm_values);
    RUN(test_rmsnorm_scales);
    RUN(test_groupnorm_is_layernorm);
    RUN(test_groupnorm_scales);
    RUN(test_renorm_values);
    RUN(test_masks);
    RUN(test_lp_values);
    RUN(test_lp_is_batchnorm);
    RUN(test_lp_kinks);
    RUN(test_weightnorm_values);
    RUN(test_long_runs);
    return test_report(acc_in_float ? "layers (float sums)"
                       : in_float   ? "layers (float)"
                                    : "layers (double)");
}
