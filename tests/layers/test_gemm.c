/* test_gemm.c - the linear layer with a CBLAS in the place of the header's own product.

   The CBLAS is a plain one, written here: three loops in long double, which also check that the
   strides they are told fit the sizes. What the layer computes with it must agree with sums taken
   straight from the formulas, and every product of the layer must have been left to it. */
#include <stddef.h>

#ifdef NRM_DOUBLE
typedef double blas_real;
#else
typedef float blas_real;
#endif

enum order { CblasRowMajor = 101 };
enum turn { CblasNoTrans = 111, CblasTrans = 112 };

static int calls, misfits;

static void plain_gemm(enum order order, enum turn ta, enum turn tb, int m, int n, int k,
                       blas_real alpha, const blas_real *a, int lda, const blas_real *b, int ldb,
                       blas_real beta, blas_real *c, int ldc)
{
    int i, j, l;
    calls++;
    misfits += order != CblasRowMajor || lda < (ta == CblasTrans ? m : k) ||
               ldb < (tb == CblasTrans ? k : n) || ldc < n;
    for (i = 0; i < m; i++)
        for (j = 0; j < n; j++) {
            long double sum = 0;
            for (l = 0; l < k; l++)
                sum += (long double)(ta == CblasTrans ? a[l * lda + i] : a[i * lda + l]) *
                       (long double)(tb == CblasTrans ? b[j * ldb + l] : b[l * ldb + j]);
            sum *= (long double)alpha;
            if (beta < 0 || beta > 0) sum += (long double)beta * (long double)c[i * ldc + j];
            c[i * ldc + j] = (blas_real)sum;
        }
}

#define NRM_GEMM plain_gemm
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"
#include "lab/draw.h"
#include "test.h"

#include <float.h>
#include <limits.h>
#include <math.h>

enum { N_MOST = 9, IN_MOST = 33, OUT_MOST = 20 };
static nrm_real x[N_MOST * IN_MOST], W[IN_MOST * OUT_MOST], b[OUT_MOST], y[N_MOST * OUT_MOST];
static nrm_real dx[N_MOST * IN_MOST], dW[IN_MOST * OUT_MOST], db[OUT_MOST], dy[N_MOST * OUT_MOST];

static void draw(nrm_rng *rng, nrm_real *a, size_t n)
{
    size_t i;
    for (i = 0; i < n; i++) a[i] = draw_normal(rng);
}

/* Is `got` the sum of n products of `first` and `second`, strides apart, and `start`? */
static int is_sum(nrm_real got, nrm_real start, const nrm_real *first, size_t stride1,
                  const nrm_real *second, size_t stride2, size_t n)
{
    const long double unit =
        sizeof(nrm_real) == 4 ? (long double)FLT_EPSILON : (long double)DBL_EPSILON;
    long double sum = (long double)start, size = fabsl((long double)start);
    size_t i;
    for (i = 0; i < n; i++) {
        const long double term = (long double)first[i * stride1] * (long double)second[i * stride2];
        sum += term;
        size += fabsl(term);
    }
    return fabsl((long double)got - sum) <= 2 * unit * size;
}

static void check_linear(nrm_rng *rng, size_t N, size_t in, size_t out, int bias)
{
    size_t n, i, j;
    int good = 1;
    draw(rng, x, N * in);
    draw(rng, W, in * out);
    draw(rng, b, out);
    draw(rng, dy, N * out);
    for (i = 0; i < in * out; i++) dW[i] = 0;
    calls = 0;
    OK(nrm_linear_forward(y, x, W, bias ? b : NULL, N, in, out));
    CHECK_INT(calls, 1);
    OK(nrm_linear_backward(dx, dW, db, dy, x, W, N, in, out));
    CHECK_INT(calls, 3);
    for (n = 0; n < N; n++)
        for (j = 0; j < out; j++)
            good &= is_sum(y[n * out + j], bias ? b[j] : 0, x + n * in, 1, W + j, out, in);
    CHECK(good);
    for (n = 0; n < N; n++)
        for (i = 0; i < in; i++)
            good &= is_sum(dx[n * in + i], 0, dy + n * out, 1, W + i * out, 1, out);
    CHECK(good);
    for (i = 0; i < in; i++)
        for (j = 0; j < out; j++)
            good &= is_sum(dW[i * out + j], 0, x + i, in, dy + j, out, N);
    CHECK(good);
}

static void test_linear(void)
{
    static const size_t Ns[] = {1, 2, 9}, ins[] = {1, 7, 33}, outs[] = {1, 16, 20};
    nrm_rng rng;
    size_t n, i, o;
    nrm_rng_seed(&rng, 3, 1);
    for (n = 0; n < 3; n++)
        for (i = 0; i < 3; i++)
            for (o = 0; o < 3; o++) check_linear(&rng, Ns[n], ins[i], outs[o], (n + i + o) % 2);
    CHECK_INT(misfits, 0);
}

/* Products of nothing; sizes beyond an int, which the library is not asked for. */
static void test_edges(void)
{
    const nrmi_matrix none = nrmi_strided(NULL, 1, 1);
    const size_t large = (size_t)INT_MAX + 1;
    nrm_real c[4] = {1, 2, 3, 4};
    int i;
    nrmi_product(c, none, none, 2, 2, 0, 0);
    for (i = 0; i < 4; i++) CHECK(c[i] == (nrm_real)(i + 1));
    nrmi_product(c, none, none, 0, 2, 2, 1);
    nrmi_product(c, none, none, 2, 0, 2, 1);
    for (i = 0; i < 4; i++) CHECK(c[i] == (nrm_real)(i + 1));
    nrmi_product(c, none, none, 2, 2, 0, 1);
    for (i = 0; i < 4; i++) CHECK(c[i] == 0);
    calls = 0;
    CHECK_INT(nrmi_blas(c, none, none, large, 1, 1, 0), 0);
    CHECK_INT(nrmi_blas(c, none, none, 1, large, 1, 0), 0);
    CHECK_INT(nrmi_blas(c, none, none, 1, 1, large, 0), 0);
    CHECK_INT(calls, 0);
}

int main(void)
{
    RUN(test_linear);
    RUN(test_edges);
    return test_report(sizeof(nrm_real) == 4 ? "gemm (float)" : "gemm (double)");
}
