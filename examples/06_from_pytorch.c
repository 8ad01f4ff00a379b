/* 06_from_pytorch: inference of a network that was trained in PyTorch (06_from_pytorch.py), with
   its batch norms as they are, and folded into the weights before them. */
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"
#define NPZ_IMPLEMENTATION
#include "npz.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { N = 100, IN = 2, WIDTH = 32, OUT = 3, REAL = sizeof(nrm_real) == 4 ? NPZ_F32 : NPZ_F64 };

static nrm_real W0[WIDTH][IN], W3[WIDTH][WIDTH], W6[OUT][WIDTH]; /* PyTorch's: [out][in] */
static nrm_real b0[WIDTH], b3[WIDTH], b6[OUT], gamma1[WIDTH], beta1[WIDTH], gamma4[WIDTH],
    beta4[WIDTH], mean1[WIDTH], var1[WIDTH], mean4[WIDTH], var4[WIDTH];
static nrm_real x[N][IN], expected[N][OUT], plain[N][OUT], folded[N][OUT];

static int load(const char *path)
{
    npz_context context = {NULL, NULL, NULL, 0, 0, ""};
    npz_array array[16];
    int n = 0, rc;
    array[n++] = npz_make("x", REAL, x, 2, N, IN);
    array[n++] = npz_make("logits", REAL, expected, 2, N, OUT);
    array[n++] = npz_make("0.weight", REAL, W0, 2, WIDTH, IN);
    array[n++] = npz_make("0.bias", REAL, b0, 1, WIDTH, 0);
    array[n++] = npz_make("1.weight", REAL, gamma1, 1, WIDTH, 0);
    array[n++] = npz_make("1.bias", REAL, beta1, 1, WIDTH, 0);
    array[n++] = npz_make("1.running_mean", REAL, mean1, 1, WIDTH, 0);
    array[n++] = npz_make("1.running_var", REAL, var1, 1, WIDTH, 0);
    array[n++] = npz_make("3.weight", REAL, W3, 2, WIDTH, WIDTH);
    array[n++] = npz_make("3.bias", REAL, b3, 1, WIDTH, 0);
    array[n++] = npz_make("4.weight", REAL, gamma4, 1, WIDTH, 0);
    array[n++] = npz_make("4.bias", REAL, beta4, 1, WIDTH, 0);
    array[n++] = npz_make("4.running_mean", REAL, mean4, 1, WIDTH, 0);
    array[n++] = npz_make("4.running_var", REAL, var4, 1, WIDTH, 0);
    array[n++] = npz_make("6.weight", REAL, W6, 2, OUT, WIDTH);
    array[n++] = npz_make("6.bias", REAL, b6, 1, OUT, 0);
    rc = npz_load(path, array, (size_t)n, &context);
    if (rc != NPZ_OK)
        fprintf(stderr, "%s: %s%s%s\n", path, context.name, *context.name ? ": " : "",
                rc == NPZ_EFILE ? strerror(errno) : npz_strerror(rc));
    return rc != NPZ_OK;
}

/* y = x·Wᵀ + b. Here W is [in][out], so it is transposed. */
static int linear(nrm_real *y, const nrm_real *in, const nrm_real *W, const nrm_real *b,
                  size_t inputs, size_t outputs)
{
    nrm_real turned[WIDTH * WIDTH];
    size_t i, o;
    for (i = 0; i < inputs; i++)
        for (o = 0; o < outputs; o++) turned[i * outputs + o] = W[o * inputs + i];
    return nrm_linear_forward(y, in, turned, b, N, inputs, outputs);
}

/* A layer of WIDTH: linear, batch norm if it is not folded, ReLU. */
static int layer(nrm_real *y, const nrm_real *in, const nrm_real *W, const nrm_real *b,
                 size_t inputs, nrm_running *running, const nrm_real *gamma, const nrm_real *beta)
{
    nrm_real a[N * WIDTH];
    int rc = linear(a, in, W, b, inputs, WIDTH);
    if (rc == NRM_OK && running != NULL)
        rc = nrm_batchnorm_forward(a, NULL, NULL, running, a, gamma, beta, NRM_INFER, NRM_EPS, N,
                                   WIDTH, 1);
    return rc != NRM_OK ? rc : nrm_activation_forward(y, a, NRM_RELU, N * WIDTH);
}

static int network(nrm_real *logits, nrm_running *first, nrm_running *second)
{
    nrm_real h[N * WIDTH], g[N * WIDTH];
    int rc = layer(h, x[0], W0[0], b0, IN, first, gamma1, beta1);
    if (rc == NRM_OK) rc = layer(g, h, W3[0], b3, WIDTH, second, gamma4, beta4);
    return rc != NRM_OK ? rc : linear(logits, g, W6[0], b6, WIDTH, OUT);
}

static double largest(const nrm_real *a, const nrm_real *b)
{
    double most = 0;
    size_t i;
    for (i = 0; i < N * OUT; i++) {
        const double gap = fabs((double)a[i] - (double)b[i]);
        if (!(gap <= most)) most = gap; /* a NaN stays */
    }
    return most;
}

int main(int argc, char **argv)
{
    const double bound = 1e-4; /* the logits reach 15 */
    nrm_running first = {mean1, var1, (nrm_real)0.1, 0, 0, 0};
    nrm_running second = {mean4, var4, (nrm_real)0.1, 0, 0, 0};
    double torch, fold;
    int rc;
    if (load(argc > 1 ? argv[1] : "examples/06_from_pytorch.npz")) return 1;
    rc = network(plain[0], &first, &second);
    if (rc == NRM_OK)
        rc = nrm_batchnorm_fold(W0[0], b0, W0[0], b0, &first, gamma1, beta1, NRM_EPS, 1, WIDTH, IN);
    if (rc == NRM_OK)
        rc = nrm_batchnorm_fold(W3[0], b3, W3[0], b3, &second, gamma4, beta4, NRM_EPS, 1, WIDTH,
                                WIDTH);
    if (rc == NRM_OK) rc = network(folded[0], NULL, NULL);
    if (rc != NRM_OK) return fprintf(stderr, "%s\n", nrm_strerror(rc)), 1;
    torch = largest(plain[0], expected[0]);
    fold = largest(plain[0], folded[0]);
    printf("from PyTorch %.1e, from folding %.1e, allowed %.0e\n", torch, fold, bound);
    return !(torch <= bound && fold <= bound);
}
