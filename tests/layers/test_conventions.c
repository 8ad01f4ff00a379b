/* test_conventions.c - batch norm folded into the layer before it, and running statistics as other
   libraries keep them.

   What should come out is evaluated in long double, by each library's own formulas, written out one
   by one. Where a bound is a count of places, a place is the spacing of the numbers around the
   largest output. -v prints what was measured. */
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"
#include "lab/draw.h"
#include "test.h"
#include "variants.h"
#include <float.h>
#include <stdlib.h>

typedef long double wide;
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { MOST_IN = 784, MOST_OUT = 16, ROWS = 32, MOST_C = 1500 };

static int verbose;
static nrm_rng rng;

static int in_float(void)
{
    return sizeof(nrm_real) == sizeof(float);
}

static int acc_no_wider(void)
{
    return sizeof(nrm_acc) == sizeof(nrm_real);
}

/* The distance of |v| to the next nrm_real above it. */
static double place(wide v)
{
    const double size = fabs((double)v);
    return ldexp(1, ilogb(size > 0 ? size : 1) - (in_float() ? FLT_MANT_DIG : DBL_MANT_DIG) + 1);
}

static double uniform_between(double low, double high)
{
    return low + (high - low) * ((double)nrm_rng_u32(&rng) + 0.5) / 4294967296.0;
}

static void fill(nrm_real *a, size_t n, double center, double spread)
{
    size_t i;
    for (i = 0; i < n; i++) a[i] = (nrm_real)(center + spread * (double)draw_normal(&rng));
}

/* ---- folding: what should come out ----------------------------------------------------------- */

/* A layer followed by batch norm: y = sum over k of x[k]·W + b, as [outer][C][inner] weights. */
typedef struct folded {
    size_t outer, C, inner;
    nrm_real W[MOST_IN * MOST_OUT], b[MOST_OUT], W_out[MOST_IN * MOST_OUT], b_out[MOST_OUT];
    nrm_real gamma[MOST_OUT], beta[MOST_OUT], mean[MOST_OUT], var[MOST_OUT], eps;
    nrm_running running;
} folded;

static void setup(folded *f, size_t outer, size_t C, size_t inner, double bias)
{
    size_t c;
    memset(f, 0, sizeof *f);
    f->outer = outer;
    f->C = C;
    f->inner = inner;
    f->eps = NRM_EPS;
    fill(f->W, outer * C * inner, 0, 1 / sqrt((double)(outer * inner)));
    fill(f->b, C, 0, bias);
    fill(f->beta, C, 0.5, 1);
    for (c = 0; c < C; c++) {
        f->gamma[c] = (nrm_real)(uniform_between(0.25, 2) * (c % 2 ? -1 : 1));
        f->var[c] = 1;
    }
    f->running.mean = f->mean;
    f->running.var = f->var;
    f->running.new_weight = (nrm_real)0.1;
}

static int fold(folded *f)
{
    return nrm_batchnorm_fold(f->W_out, f->b_out, f->W, f->b, &f->running, f->gamma, f->beta,
                              f->eps, f->outer, f->C, f->inner);
}

/* FOLD.1 without rounding. */
static wide factor(const folded *f, size_t c)
{
    return (wide)f->gamma[c] / sqrtl((wide)f->var[c] + (wide)f->eps);
}

static size_t weight_at(const folded *f, size_t c, size_t k)
{
    return (k / f->inner * f->C + c) * f->inner + k % f->inner;
}

/* One output of the layer by given weights, its sum without rounding; or the sum of the sizes. */
static wide output(const folded *f, const nrm_real *W, const nrm_real *b, const nrm_real *x,
                   size_t c, int sizes)
{
    wide sum = sizes ? fabsl((wide)b[c]) : (wide)b[c];
    size_t k;
    for (k = 0; k < f->outer * f->inner; k++) {
        const wide term = (wide)x[k] * (wide)W[weight_at(f, c, k)];
        sum += sizes ? fabsl(term) : term;
    }
    return sum;
}

/* The layer and BN.11 after it, without rounding. */
static wide normalized(const folded *f, const nrm_real *x, size_t c)
{
    const wide z = output(f, f->W, f->b, x, c, 0);
    return factor(f, c) * (z - (wide)f->mean[c]) + (wide)f->beta[c];
}

/* ---- folding: the bits ----------------------------------------------------------------------- */

/* How far W' and b' are from exact, in their own last places (b': in those of its largest term). */
static void rounding_of(const folded *f, const nrm_real *b, const nrm_real *gamma,
                        const nrm_real *beta, double *weights, double *biases)
{
    size_t c, k;
    for (c = 0; c < f->C; c++) {
        const wide g = gamma != NULL ? (wide)gamma[c] : 1;
        const wide a = g / sqrtl((wide)f->var[c] + (wide)f->eps);
        const wide shift = a * ((b != NULL ? (wide)b[c] : 0) - (wide)f->mean[c]);
        const wide start = beta != NULL ? (wide)beta[c] : 0;
        const double gap = (double)fabsl((wide)f->b_out[c] - (shift + start));
        const double unit =
            acc_no_wider() ? place(fabsl(shift) + fabsl(start)) : place(shift + start);
        *biases = fmax(*biases, gap / unit);
        for (k = 0; k < f->outer * f->inner; k++) {
            const size_t at = weight_at(f, c, k);
            const wide exact = a * (wide)f->W[at];
            *weights = fmax(*weights, (double)fabsl((wide)f->W_out[at] - exact) / place(exact));
        }
    }
}

/* In float with nrm_acc double: half a place. Else the factor is rounded too. gamma, beta and b may
   be NULL, each by itself. */
static void test_fold_rounds_once(void)
{
    static const size_t shape[][3] = {{1, 1, 1},    {5, 3, 1},  {1, 3, 5}, {784, 16, 1},
                                      {1, 16, 784}, {3, 7, 25}, {2, 1, 9}};
    static folded f;
    double weights = 0, biases = 0;
    size_t i, c;
    int absent;
    for (i = 0; i < COUNT(shape); i++)
        for (absent = 0; absent < 8; absent++) {
            const nrm_real *b = absent & 1 ? NULL : f.b, *gamma = absent & 2 ? NULL : f.gamma;
            const nrm_real *beta = absent & 4 ? NULL : f.beta;
            setup(&f, shape[i][0], shape[i][1], shape[i][2], 1);
            for (c = 0; c < f.C; c++) {
                f.mean[c] = (nrm_real)draw_normal(&rng);
                f.var[c] = (nrm_real)exp(uniform_between(-12, 12));
            }
            OK(nrm_batchnorm_fold(f.W_out, f.b_out, f.W, b, &f.running, gamma, beta, f.eps, f.outer,
                                  f.C, f.inner));
            rounding_of(&f, b, gamma, beta, &weights, &biases);
        }
    if (verbose) printf("folded weights: %.4f places, biases: %.4f\n", weights, biases);
    CHECK(weights <= (acc_no_wider() ? 3 : 0.500001));
    CHECK(biases <= (acc_no_wider() ? 3 : 0.500001));
}

/* More channels than are worked on together, and every layout of the same weights. */
static void test_fold_layouts(void)
{
    static nrm_real W[2][MOST_C * 4], out[3][MOST_C * 4], b[MOST_C], b_out[3][MOST_C];
    static nrm_real mean[MOST_C], var[MOST_C];
    nrm_running running;
    size_t c, k;
    memset(&running, 0, sizeof running);
    running.mean = mean;
    running.var = var;
    fill(W[0], MOST_C * 4, 0, 1);
    fill(b, MOST_C, 0, 1);
    fill(mean, MOST_C, 0, 1);
    for (c = 0; c < MOST_C; c++) {
        var[c] = (nrm_real)uniform_between(0.1, 4);
        for (k = 0; k < 4; k++) W[1][c * 4 + k] = W[0][k * MOST_C + c];
    }
    OK(nrm_batchnorm_fold(out[0], b_out[0], W[0], b, &running, NULL, NULL, NRM_EPS, 4, MOST_C, 1));
    OK(nrm_batchnorm_fold(out[1], b_out[1], W[1], b, &running, NULL, NULL, NRM_EPS, 1, MOST_C, 4));
    for (c = 0; c < MOST_C; c++)
        for (k = 0; k < 4; k++) CHECK(out[0][k * MOST_C + c] == out[1][c * 4 + k]);
    CHECK(memcmp(b_out[0], b_out[1], sizeof b) == 0);
    memcpy(out[2], W[0], sizeof out[2]); /* in place */
    memcpy(b_out[2], b, sizeof b);
    OK(nrm_batchnorm_fold(out[2], b_out[2], out[2], b_out[2], &running, NULL, NULL, NRM_EPS, 4,
                          MOST_C, 1));
    CHECK(memcmp(out[0], out[2], sizeof out[0]) == 0 && memcmp(b_out[0], b_out[2], sizeof b) == 0);
}

/* ---- folding: outputs ------------------------------------------------------------------------ */

enum { UNBIASED, BIASED, CUMULATIVE, STATISTICS };
enum { NORMAL_INPUT, UNIFORM_INPUT, FAR_INPUT, INPUTS };

static const char *const input_name[INPUTS] = {"normal", "uniform in 0..1", "about 100"};

static void draw_inputs(nrm_real *x, size_t n, int kind)
{
    size_t i;
    if (kind != UNIFORM_INPUT) fill(x, n, kind == FAR_INPUT ? 100 : 0, 1);
    for (i = 0; i < n && kind == UNIFORM_INPUT; i++) x[i] = (nrm_real)uniform_between(0, 1);
}

/* Running statistics as training leaves them: some batches through a dense layer. */
static void train_dense(folded *f, int statistics, int kind)
{
    static nrm_real x[ROWS * MOST_IN], z[ROWS * MOST_OUT], y[ROWS * MOST_OUT];
    nrm_acc mean[MOST_OUT], rstd[MOST_OUT];
    int batch;
    f->running.biased = statistics == BIASED;
    f->running.cumulative = statistics == CUMULATIVE;
    f->running.new_weight = (nrm_real)0.3;
    for (batch = 0; batch < 12; batch++) {
        draw_inputs(x, ROWS * f->outer, kind);
        OK(nrm_linear_forward(z, x, f->W, f->b, ROWS, f->outer, f->C));
        OK(nrm_batchnorm_forward(y, mean, rstd, &f->running, z, f->gamma, f->beta, NRM_TRAIN,
                                 f->eps, ROWS, f->C, 1));
    }
}

/* Errors in places of the largest output: of the folded layer if its sum is not rounded, of the
   folded layer as it is computed, of the layer and batch norm, and between these two. */
typedef struct errors {
    double weights, folded, apart, between;
} errors;

static void dense_errors(folded *f, int kind, errors *e)
{
    static nrm_real x[ROWS * MOST_IN], z[ROWS * MOST_OUT], y[ROWS * MOST_OUT],
        y_out[ROWS * MOST_OUT];
    const wide half = ldexpl(1, in_float() ? -24 : -53) * (acc_no_wider() ? 5 : 1 + 1e-6L);
    wide largest = 0, weights = 0, one = 0, two = 0, between = 0;
    size_t n, c;
    draw_inputs(x, ROWS * f->outer, kind);
    OK(nrm_linear_forward(z, x, f->W, f->b, ROWS, f->outer, f->C));
    OK(nrm_batchnorm_forward(y, NULL, NULL, &f->running, z, f->gamma, f->beta, NRM_INFER, f->eps,
                             ROWS, f->C, 1));
    OK(nrm_linear_forward(y_out, x, f->W_out, f->b_out, ROWS, f->outer, f->C));
    for (n = 0; n < ROWS; n++)
        for (c = 0; c < f->C; c++) {
            const nrm_real *row = x + n * f->outer;
            const wide exact = normalized(f, row, c);
            const wide gap = fabsl(output(f, f->W_out, f->b_out, row, c, 0) - exact);
            wide terms = output(f, f->W_out, f->b_out, row, c, 1);
            if (acc_no_wider())
                terms += fabsl((wide)f->beta[c]) +
                         fabsl(factor(f, c) * ((wide)f->b[c] - (wide)f->mean[c]));
            CHECK(gap <= half * terms); /* FOLD.4 */
            largest = fmaxl(largest, fabsl(exact));
            weights = fmaxl(weights, gap);
            one = fmaxl(one, fabsl((wide)y_out[n * f->C + c] - exact));
            two = fmaxl(two, fabsl((wide)y[n * f->C + c] - exact));
            between = fmaxl(between, fabsl((wide)y_out[n * f->C + c] - (wide)y[n * f->C + c]));
        }
    e->weights = (double)weights / place(largest);
    e->folded = (double)one / place(largest);
    e->apart = (double)two / place(largest);
    e->between = (double)between / place(largest);
}

static void keep_worst(errors *worst, const errors *e)
{
    worst->weights = fmax(worst->weights, e->weights);
    worst->folded = fmax(worst->folded, e->folded);
    worst->apart = fmax(worst->apart, e->apart);
    worst->between = fmax(worst->between, e->between);
}

static void print_errors(const char *what, size_t in, const char *input, const errors *e)
{
    if (verbose)
        printf("%-6s in %4lu, inputs %-15s: weights %7.2f, folded %7.2f, apart %7.2f, "
               "between %7.2f places\n",
               what, (unsigned long)in, input, e->weights, e->folded, e->apart, e->between);
}

/* Inputs of size 1: the rounding of the weights costs at most 4 places of the largest output,
   however long the sum. The sums, in nrm_real, have roundings of their own, folded or not; these
   grow like the root of the length. Inputs about 100 make outputs that cancel: FOLD.4 holds, and
   folding costs no more than not folding. */
static void test_folded_dense_layer(void)
{
    static const size_t in[] = {1, 2, 16, 100, 784};
    static folded f;
    size_t i;
    int kind, statistics, round;
    for (kind = 0; kind < INPUTS; kind++)
        for (i = 0; i < COUNT(in); i++) {
            errors worst = {0, 0, 0, 0}, e;
            for (round = 0; round < 3; round++)
                for (statistics = 0; statistics < STATISTICS; statistics++) {
                    setup(&f, in[i], 10, 1, 1);
                    train_dense(&f, statistics, kind);
                    OK(fold(&f));
                    dense_errors(&f, kind, &e);
                    keep_worst(&worst, &e);
                }
            print_errors("dense", in[i], input_name[kind], &worst);
            CHECK(worst.folded <= 3 * worst.apart);
            if (kind == FAR_INPUT) continue;
            CHECK(worst.weights <= 4);
            CHECK(worst.between <= 4 * (1 + sqrt((double)in[i])));
            CHECK(worst.folded <= 2 * (1 + sqrt((double)in[i])));
        }
}

/* ---- folding: what went wrong elsewhere ------------------------------------------------------ */

enum {
    FOLD_RIGHT,
    FOLD_BIAS_NOT_SCALED, /* Tencent/ncnn#1339, ultralytics/yolov3#807 */
    FOLD_WRONG_AXIS,      /* chr5tphr/zennit#71 */
    FOLD_NO_MEAN,
    FOLD_NO_BETA,
    FOLD_NO_GAMMA,
    FOLD_NO_ROOT,
    FOLD_NO_EPS,
    FOLD_EPS_OUTSIDE,
    FOLD_BESSEL_AGAIN,
    FOLDS
};

/* A square matrix [in][out], folded with one mistake, in double. */
static void fold_wrongly(folded *f, int mistake)
{
    const size_t C = f->C;
    size_t i, c;
    for (c = 0; c < C; c++) {
        const double v = (double)f->var[c] * (mistake == FOLD_BESSEL_AGAIN ? 32.0 / 31 : 1);
        const double eps = mistake == FOLD_NO_EPS ? 0 : (double)f->eps;
        const double gamma = mistake == FOLD_NO_GAMMA ? 1 : (double)f->gamma[c];
        const double mean = mistake == FOLD_NO_MEAN ? 0 : (double)f->mean[c];
        const double beta = mistake == FOLD_NO_BETA ? 0 : (double)f->beta[c];
        double a = gamma / sqrt(v + eps);
        if (mistake == FOLD_NO_ROOT) a = gamma / (v + eps);
        if (mistake == FOLD_EPS_OUTSIDE) a = gamma / (sqrt(v) + eps);
        for (i = 0; i < C; i++) {
            const size_t at = mistake == FOLD_WRONG_AXIS ? c * C + i : i * C + c;
            f->W_out[at] = (nrm_real)((double)f->W[at] * a);
        }
        f->b_out[c] =
            (nrm_real)(mistake == FOLD_BIAS_NOT_SCALED ? (double)f->b[c] - mean * a + beta
                                                       : ((double)f->b[c] - mean) * a + beta);
    }
}

/* The error of a folded layer whose sums are not rounded, in places of the largest output. */
static double places_off(const folded *f)
{
    static nrm_real x[ROWS * MOST_OUT];
    wide largest = 0, gap = 0;
    size_t n, c;
    draw_inputs(x, ROWS * f->outer, NORMAL_INPUT);
    for (n = 0; n < ROWS; n++)
        for (c = 0; c < f->C; c++) {
            const nrm_real *row = x + n * f->outer;
            const wide exact = normalized(f, row, c);
            largest = fmaxl(largest, fabsl(exact));
            gap = fmaxl(gap, fabsl(output(f, f->W_out, f->b_out, row, c, 0) - exact));
        }
    return (double)gap / place(largest);
}

/* The check that passes the right one finds every other; and without a bias, or with a mean of 0,
   it would not: that is how these bugs were shipped. */
static void test_folding_mistakes_are_found(void)
{
    static folded f;
    int mistake;
    setup(&f, 10, 10, 1, 1);
    train_dense(&f, UNBIASED, NORMAL_INPUT);
    f.eps = (nrm_real)1e-3;
    OK(fold(&f));
    CHECK(places_off(&f) <= 4);
    for (mistake = 0; mistake < FOLDS; mistake++) {
        double off;
        fold_wrongly(&f, mistake);
        off = places_off(&f);
        if (verbose) printf("folding mistake %d: %.3g places\n", mistake, off);
        CHECK(mistake == FOLD_RIGHT ? off <= 4 : off > 100);
    }
    memset(f.b, 0, sizeof f.b);
    fold_wrongly(&f, FOLD_BIAS_NOT_SCALED);
    CHECK(places_off(&f) <= 4);
    memset(f.mean, 0, sizeof f.mean);
    fold_wrongly(&f, FOLD_NO_MEAN);
    CHECK(places_off(&f) <= 4);
}

/* ---- folding: results that overflow ---------------------------------------------------------- */

/* Results that are not finite are written, and named. */
static void test_fold_overflow(void)
{
    static folded f;
    setup(&f, 4, 3, 2, 1);
    f.W[5] = (nrm_real)(in_float() ? 1e38 : 1e308);
    f.gamma[2] = 100;
    CHECK_INT(fold(&f), NRM_NONFINITE);
    CHECK(f.W_out[5] - f.W_out[5] != 0 && f.W_out[6] - f.W_out[6] == 0);
    setup(&f, 4, 3, 2, 1);
    f.beta[0] = (nrm_real)NAN;
    CHECK_INT(fold(&f), NRM_NONFINITE);
    CHECK(f.b_out[0] != f.b_out[0] && f.b_out[1] == f.b_out[1] && f.W_out[0] == f.W_out[0]);
    setup(&f, 4, 3, 2, 1);
    f.gamma[1] = 0; /* such a channel is beta, whatever the input */
    OK(fold(&f));
    CHECK(f.W_out[2] == 0 && f.W_out[3] == 0 && f.b_out[1] == f.beta[1]);
}

/* ---- the statistics of other libraries: their own formulas ----------------------------------- */

/* What a library keeps of one channel; factor is Caffe's third blob. */
typedef struct kept {
    wide mean, spread, factor;
} kept;

typedef struct moments { /* of the M values of a batch */
    wide mean, biased, unbiased;
} moments;

static moments moments_of(const nrm_real *x, size_t M, size_t stride)
{
    moments m = {0, 0, 0};
    size_t i;
    for (i = 0; i < M; i++) m.mean += (wide)x[i * stride];
    m.mean /= (wide)M;
    for (i = 0; i < M; i++) {
        const wide d = (wide)x[i * stride] - m.mean;
        m.biased += d * d;
    }
    m.unbiased = m.biased / (wide)(M - 1);
    m.biased /= (wide)M;
    return m;
}

/* Inference, as each of them writes it. cuDNN is called here with a factor of 0.05 and an epsilon
   of 1e-4; its fourth version kept an average of 1/sqrt(epsilon + variance). */

static wide plain_inference(int library, wide x, const kept *k, wide gamma, wide beta)
{
    switch (library) {
    case PYTORCH: return (x - k->mean) / sqrtl(k->spread + 1e-5L) * gamma + beta;
    case KERAS: return gamma * (x - k->mean) / sqrtl(k->spread + 1e-3L) + beta;
    case FLAX: return (x - k->mean) * (1 / sqrtl(k->spread + 1e-5L) * gamma) + beta;
    case ONNX: return (x - k->mean) / sqrtl(k->spread + 1e-5L) * gamma + beta;
    case CAFFE: { /* the BatchNorm layer, and the Scale layer after it */
        const wide scale = k->factor == 0 ? 0 : 1 / k->factor;
        return gamma * ((x - scale * k->mean) / sqrtl(scale * k->spread + 1e-5L)) + beta;
    }
    case DARKNET_CPU: return (x - k->mean) / (sqrtl(k->spread) + .000001L) * gamma + beta;
    case DARKNET_GPU: return (x - k->mean) / sqrtl(k->spread + .00001L) * gamma + beta;
    case CUDNN: return gamma * (x - k->mean) / sqrtl(1e-4L + k->spread) + beta;
    case TINY_DNN: return (x - k->mean) / sqrtl(k->spread + 1e-5L) * gamma + beta;
    case RUNNING_STD: return gamma * (x - k->mean) / k->spread + beta;
    default: return gamma * (x - k->mean) * k->spread + beta;
    }
}

/* And what a batch in training makes of the running statistics. */
static void plain_update(int library, kept *k, const moments *m)
{
    switch (library) {
    case PYTORCH:
        k->mean = (1 - 0.1L) * k->mean + 0.1L * m->mean;
        k->spread = (1 - 0.1L) * k->spread + 0.1L * m->unbiased;
        break;
    case KERAS:
    case FLAX:
        k->mean = k->mean * 0.99L + m->mean * (1 - 0.99L);
        k->spread = k->spread * 0.99L + m->biased * (1 - 0.99L);
        break;
    case ONNX:
        k->mean = k->mean * 0.9L + m->mean * (1 - 0.9L);
        k->spread = k->spread * 0.9L + m->biased * (1 - 0.9L);
        break;
    case CAFFE:
        k->factor = k->factor * 0.999L + 1;
        k->mean = m->mean + 0.999L * k->mean;
        k->spread = m->unbiased + 0.999L * k->spread;
        break;
    case DARKNET_CPU:
    case DARKNET_GPU:
        k->mean = k->mean * .99L + .01L * m->mean;
        k->spread = k->spread * .99L + .01L * m->unbiased;
        break;
    case CUDNN:
        k->mean = m->mean * 0.05L + k->mean * (1 - 0.05L);
        k->spread = m->unbiased * 0.05L + k->spread * (1 - 0.05L);
        break;
    case TINY_DNN:
        k->mean = 0.999L * k->mean + (1 - 0.999L) * m->mean;
        k->spread = 0.999L * k->spread + (1 - 0.999L) * m->unbiased;
        break;
    case RUNNING_STD:
        k->mean = 0.999L * k->mean + 0.001L * m->mean;
        k->spread = 0.999L * k->spread + 0.001L * sqrtl(m->unbiased);
        break;
    default:
        k->mean = m->mean * 0.05L + k->mean * (1 - 0.05L);
        k->spread = 0.05L / sqrtl(m->biased + 1e-4L) + k->spread * (1 - 0.05L);
    }
}

static kept fresh(int library)
{
    kept k = {0, 1, 1};
    if (library == CAFFE) k.spread = k.factor = 0;
    return k;
}

/* The values as a file of the library holds them. */
static void store(kept *k)
{
    k->mean = (wide)(nrm_real)k->mean;
    k->spread = (wide)(nrm_real)k->spread;
    k->factor = (wide)(nrm_acc)k->factor;
}

static convention convention_of(int library)
{
    convention from = conventions[library];
    if (library == CUDNN || library == CUDNN_4) {
        from.momentum = (nrm_acc)0.05;
        from.eps = (nrm_acc)1e-4;
    }
    return from;
}

/* ---- the import against them ----------------------------------------------------------------- */

enum { C = 5, N = 8, S = 3, M = N * S };

typedef struct imported { /* a layer of ours, and the other library's channels that it came from */
    int library;
    kept theirs[C];
    nrm_real mean[C], var[C], eps, x[N * C * S], y[N * C * S], gamma[C], beta[C];
    nrm_running running;
} imported;

static void import(imported *l)
{
    const convention from = convention_of(l->library);
    nrm_real mean[C], spread[C];
    size_t c;
    for (c = 0; c < C; c++) {
        store(&l->theirs[c]);
        mean[c] = (nrm_real)l->theirs[c].mean;
        spread[c] = (nrm_real)l->theirs[c].spread;
    }
    l->running.mean = l->mean;
    l->running.var = l->var;
    l->eps = convention_import(&l->running, &from, mean, spread, (nrm_acc)l->theirs[0].factor, C);
}

static void draw_batch(imported *l, double scale)
{
    size_t n, c, s;
    for (n = 0; n < N; n++)
        for (c = 0; c < C; c++)
            for (s = 0; s < S; s++)
                l->x[(n * C + c) * S + s] =
                    (nrm_real)(scale *
                               ((double)c - 1 + (0.5 + (double)c) * (double)draw_normal(&rng)));
}

static moments channel_moments(const imported *l, size_t c)
{
    nrm_real values[M];
    size_t n, s;
    for (n = 0; n < N; n++)
        for (s = 0; s < S; s++) values[n * S + s] = l->x[(n * C + c) * S + s];
    return moments_of(values, M, 1);
}

/* The other library trains for some batches, and we import what it has then. */
static void train_theirs(imported *l, int library, double scale, int batches)
{
    size_t c;
    memset(l, 0, sizeof *l);
    l->library = library;
    fill(l->gamma, C, 1, 0.5);
    fill(l->beta, C, 0, 1);
    for (c = 0; c < C; c++) l->theirs[c] = fresh(library);
    while (batches-- > 0) {
        draw_batch(l, scale);
        for (c = 0; c < C; c++) {
            const moments m = channel_moments(l, c);
            plain_update(library, &l->theirs[c], &m);
        }
    }
    import(l);
}

/* Inference by BN.11 with what was imported: their y, to rounding. */
static double inference_error(imported *l)
{
    wide gap = 0, largest = 0;
    size_t c, i;
    OK(nrm_batchnorm_forward(l->y, NULL, NULL, &l->running, l->x, l->gamma, l->beta, NRM_INFER,
                             l->eps, N, C, S));
    for (i = 0; i < N * C * S; i++) {
        c = i / S % C;
        {
            const wide y = plain_inference(l->library, (wide)l->x[i], &l->theirs[c],
                                           (wide)l->gamma[c], (wide)l->beta[c]);
            gap = fmaxl(gap, fabsl((wide)l->y[i] - y));
            largest = fmaxl(largest, fabsl(y));
        }
    }
    return (double)gap / place(largest);
}

static void test_inference_of_every_library(void)
{
    static const double scale[] = {1e-3, 1, 1e3};
    static imported l;
    int library, i, batches;
    for (library = 0; library < LIBRARIES; library++) {
        double worst = 0;
        for (i = 0; i < 3; i++)
            for (batches = 0; batches < 40; batches += 13) {
                train_theirs(&l, library, scale[i], batches);
                draw_batch(&l, scale[i]);
                worst = fmax(worst, inference_error(&l));
            }
        if (verbose) printf("inference, %-28s %.2f places\n", conventions[library].library, worst);
        CHECK(worst <= 4);
    }
}

/* One batch in train mode, theirs and ours, from the same start; then their new values are imported
   and compared. The largest difference relative to each value (of means: to the spread). */
static double update_error(imported *l, double new_weight)
{
    nrm_acc mean[C], rstd[C];
    imported next = *l;
    double worst = 0;
    size_t c;
    draw_batch(l, 1);
    if (new_weight > 0) l->running.new_weight = (nrm_real)new_weight;
    OK(nrm_batchnorm_forward(l->y, mean, rstd, &l->running, l->x, l->gamma, l->beta, NRM_TRAIN,
                             l->eps, N, C, S));
    CHECK_INT(l->running.batches, 1);
    for (c = 0; c < C; c++) {
        const moments m = channel_moments(l, c);
        plain_update(l->library, &next.theirs[c], &m);
    }
    import(&next);
    for (c = 0; c < C; c++) {
        const double s = sqrt((double)next.var[c]);
        worst = fmax(worst, fabs((double)l->mean[c] - (double)next.mean[c]) / s);
        worst = fmax(worst, fabs((double)l->var[c] - (double)next.var[c]) / (s * s));
    }
    return worst;
}

/* Exact but for rounding where the library keeps a variance with epsilon inside, to a millionth
   with darknet's epsilon outside. A running standard deviation cannot be expressed: by Jensen, the
   square of an average is below the average of squares. */
static void test_update_of_every_library(void)
{
    const double rounding = in_float() ? 4e-7 : 4e-15;
    static imported l;
    int library;
    for (library = 0; library < LIBRARIES; library++) {
        double off;
        train_theirs(&l, library, 1, library == CAFFE ? 40000 : 30);
        off = update_error(&l, 0);
        if (verbose) printf("update, %-28s %.2g\n", conventions[library].library, off);
        if (library == RUNNING_STD || library == CUDNN_4) {
            size_t c;
            CHECK(off > 1e-5);
            for (c = 0; c < C && library == RUNNING_STD; c++) {
                const moments m = channel_moments(&l, c);
                const wide t = 0.999L * l.theirs[c].spread + 0.001L * sqrtl(m.unbiased);
                CHECK((wide)l.var[c] > t * t);
            }
        } else if (library == DARKNET_CPU) {
            CHECK(off <= 1e-6 + rounding);
        } else {
            CHECK(off <= rounding);
        }
    }
}

/* ---- variants of the texts ------------------------------------------------------------------- */

/* What the table of the page should say at the end of a library's row. */
static void row_of_the_page(char *text, size_t size, const convention *k)
{
    const double f = (double)k->momentum, w = k->weight_is_old ? 1 - f : f;
    const double e = (double)(k->eps_outside ? k->eps * k->eps : k->eps);
    const char *u = k->keeps == KEEPS_RSTD  ? "1/r² − ε"
                    : k->keeps == KEEPS_STD ? "t²"
                    : k->eps_outside        ? "v + 2·e·√v"
                    : k == &conventions[CAFFE] ? "v/c, m/c for m"
                                               : "v";
    char eps[32], weight[32];
    snprintf(eps, sizeof eps, "1e%.0f", e > 0 ? log10(e) : 0);
    snprintf(weight, sizeof weight, "%.3g", w);
    snprintf(text, size, "| %s | %s | %d | %s |\n", w < 0 ? "as called" : weight,
             e > 0   ? eps
             : e < 0 ? "as called"
                     : "see below",
             k->biased, u);
}

static void test_table_of_the_page(void)
{
    FILE *f = fopen("docs/importing.md", "rb");
    char line[1024], start[64], end[128];
    int found = 0, library;
    if (!CHECK(f != NULL)) return;
    while (fgets(line, (int)sizeof line, f) != NULL)
        for (library = 0; library < LIBRARIES; library++) {
            snprintf(start, sizeof start, "| %s |", conventions[library].library);
            if (strncmp(line, start, strlen(start)) != 0) continue;
            if (strstr(line, "| here |") != NULL) continue; /* of the table of files */
            row_of_the_page(end, sizeof end, &conventions[library]);
            if (!CHECK(strstr(line, end) != NULL)) printf("    %s    %s", line, end);
            found++;
        }
    fclose(f);
    CHECK_INT(found, LIBRARIES);
}

/* ---- the import: corners --------------------------------------------------------------------- */

/* 1/r² − ε of a channel that never varied is 0, however r was rounded; with another ε than that of
   the library it is negative, which the layer refuses, or another variance. */
static void test_rounded_rstd(void)
{
    nrm_real r, mean = 0, m, u, eps, x = 1, y;
    nrm_running running;
    convention from = convention_of(CUDNN_4);
    int i, j;
    memset(&running, 0, sizeof running);
    running.mean = &m;
    running.var = &u;
    for (i = 0; i < 40; i++)
        for (j = 0; j < 3; j++) { /* also when the library's own root is a place off */
            from.eps = (nrm_acc)exp(uniform_between(-14, -2));
            r = (nrm_real)(1 / sqrtl((wide)(nrm_real)from.eps));
            if (j == 1) r += (nrm_real)place((wide)r);
            if (j == 2) r -= (nrm_real)place((wide)r);
            eps = convention_import(&running, &from, &mean, &r, 1, 1);
            CHECK(u >= 0 && (double)u <= 8 * place((wide)eps));
            from.eps *= (nrm_acc)1.001;
            eps = convention_import(&running, &from, &mean, &r, 1, 1);
            CHECK_INT(nrm_batchnorm_forward(&y, NULL, NULL, &running, &x, NULL, NULL, NRM_INFER,
                                            eps, 1, 1, 1),
                      NRM_ESTATS);
            from.eps *= (nrm_acc)0.99;
            (void)convention_import(&running, &from, &mean, &r, 1, 1);
            CHECK_NEAR(u, 0.00909 * (double)from.eps, 1e-4 * (double)from.eps);
        }
}

/* An epsilon below the smallest normal number counts as none, outside and inside. A constant
   channel then gives beta, where 0/0 was computed. */
static void test_no_epsilon(void)
{
    nrm_real mean[2] = {3, 0}, spread[2] = {0, 2}, m[2], u[2], eps = 0, x[2] = {3, 1}, y[2];
    const nrm_real beta[2] = {7, 0};
    nrm_running running;
    convention from = conventions[RUNNING_STD];
    int outside;
    memset(&running, 0, sizeof running);
    running.mean = m;
    running.var = u;
    for (outside = 0; outside < 2; outside++) {
        const double tiny[] = {0, in_float() ? 1e-30 : 1e-200, 1e-12};
        int i;
        for (i = 0; i < 3; i++) {
            const int normal = outside ? i == 2 : i > 0;
            from.eps_outside = outside;
            from.eps = (nrm_acc)tiny[i];
            eps = convention_import(&running, &from, mean, spread, 1, 2);
            if (!normal && sizeof(nrm_acc) == sizeof(nrm_real))
                CHECK(eps == (nrm_real)(in_float() ? (double)FLT_MIN : DBL_MIN));
            if (normal) CHECK_NEAR(eps, outside ? tiny[i] * tiny[i] : tiny[i], 1e-6 * tiny[i]);
            OK(nrm_batchnorm_forward(y, NULL, NULL, &running, x, NULL, beta, NRM_INFER, eps, 1, 2,
                                     1));
            CHECK(y[0] == 7);
            CHECK_NEAR(y[1], 0.5, 1e-6);
        }
    }
}

int main(int argc, char **argv)
{
    verbose = argc > 1 && strcmp(argv[1], "-v") == 0;
    nrm_rng_seed(&rng, 2015, 140);
    RUN(test_fold_rounds_once);
    RUN(test_fold_layouts);
    RUN(test_folded_dense_layer);
    RUN(test_folding_mistakes_are_found);
    RUN(test_fold_overflow);
    RUN(test_table_of_the_page);
    RUN(test_inference_of_every_library);
    RUN(test_update_of_every_library);
    RUN(test_rounded_rstd);
    RUN(test_no_epsilon);
    return test_report("conventions");
}
