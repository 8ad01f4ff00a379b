/* variants.h - equations of the text that no function of the header computes: layer norm with
   s + ε (LN.17, LN.18), the way back from folded weights (FOLD.5, FOLD.6), and the running
   statistics of other libraries (CONV.1 to CONV.7, and the table of docs/importing.md).

   Plain code, and no argument is checked. Include it after normlayers.h. */
#ifndef VARIANTS_H
#define VARIANTS_H

#include <float.h>
#include <math.h>

/* The mean of a row, and its standard deviation as a sample. */
static inline long double row_of(const nrm_real *x, size_t D, long double *s)
{
    long double mean = 0, squares = 0;
    size_t i;
    for (i = 0; i < D; i++) mean += (long double)x[i] - (long double)x[0];
    mean = (long double)x[0] + mean / (long double)D;
    for (i = 0; i < D; i++) squares += ((long double)x[i] - mean) * ((long double)x[i] - mean);
    *s = sqrtl(squares / (long double)(D - 1));
    return mean;
}

/* As nrm_layernorm_forward, but r = 1/(s + ε) and D > 1. */
static inline void layernorm_std_forward(nrm_real *y, nrm_acc *mean, nrm_acc *rstd,
                                         const nrm_real *x, const nrm_real *gamma,
                                         const nrm_real *beta, nrm_real eps, size_t N, size_t D)
{
    size_t n, i;
    for (n = 0; n < N; n++, x += D, y += D) {
        long double s;
        const long double mu = row_of(x, D, &s), r = 1 / (s + (long double)eps);
        for (i = 0; i < D; i++) {
            const long double xhat = ((long double)x[i] - mu) * r; /* LN.17 */
            const long double shift = beta != NULL ? (long double)beta[i] : 0;
            y[i] = (nrm_real)((gamma != NULL ? (long double)gamma[i] : 1) * xhat + shift);
        }
        mean[n] = (nrm_acc)mu;
        rstd[n] = (nrm_acc)r;
    }
}

/* As nrm_layernorm_backward, but from x alone; dgamma and dbeta may be NULL. */
static inline void layernorm_std_backward(nrm_real *dx, nrm_real *dgamma, nrm_real *dbeta,
                                          const nrm_real *dy, const nrm_real *x,
                                          const nrm_real *gamma, nrm_real eps, size_t N, size_t D)
{
    size_t n, i;
    for (n = 0; n < N; n++, x += D, dy += D, dx += D) {
        long double s, g_mean = 0, gx_mean = 0;
        const long double mu = row_of(x, D, &s), r = 1 / (s + (long double)eps);
        const long double kappa = s > 0 ? (long double)D / ((long double)(D - 1) * r * s) : 0;
        for (i = 0; i < D; i++) {
            const long double g = (gamma != NULL ? (long double)gamma[i] : 1) * (long double)dy[i];
            const long double xhat = ((long double)x[i] - mu) * r;
            g_mean += g / (long double)D;
            gx_mean += g * xhat / (long double)D;
            if (dgamma != NULL) dgamma[i] += (nrm_real)((long double)dy[i] * xhat);
            if (dbeta != NULL) dbeta[i] += dy[i];
        }
        for (i = 0; i < D; i++) {
            const long double g = (gamma != NULL ? (long double)gamma[i] : 1) * (long double)dy[i];
            const long double xhat = ((long double)x[i] - mu) * r;
            dx[i] = (nrm_real)(r * (g - g_mean - kappa * xhat * gx_mean)); /* LN.18 */
        }
    }
}

/* W and b of what nrm_batchnorm_fold made of them; in place, too. */
static inline void batchnorm_unfold(nrm_real *W, nrm_real *b, const nrm_real *W_folded,
                                    const nrm_real *b_folded, const nrm_running *running,
                                    const nrm_real *gamma, const nrm_real *beta, nrm_real eps,
                                    size_t outer, size_t C, size_t inner)
{
    size_t c, i;
    for (c = 0; c < C; c++) {
        const nrm_acc root = (nrm_acc)sqrt((double)((nrm_acc)running->var[c] + (nrm_acc)eps));
        const nrm_acc a = (gamma != NULL ? (nrm_acc)gamma[c] : 1) / root;
        const nrm_acc shift = beta != NULL ? (nrm_acc)beta[c] : 0, m = (nrm_acc)running->mean[c];
        for (i = 0; i < outer * inner; i++) {
            const size_t at = (i / inner * C + c) * inner + i % inner;
            W[at] = (nrm_real)((nrm_acc)W_folded[at] / a); /* FOLD.5 */
        }
        b[c] = (nrm_real)(((nrm_acc)b_folded[c] - shift) / a + m); /* FOLD.6 */
    }
}

/* ---- the statistics of other libraries ------------------------------------------------------- */

enum { KEEPS_VAR, KEEPS_STD, KEEPS_RSTD }; /* a variance, a standard deviation, one over it */

typedef struct convention {
    const char *library; /* as the table of the chapter has it */
    int keeps, eps_outside, weight_is_old, biased;
    nrm_acc momentum, eps; /* the defaults; -1 if there are none */
} convention;

enum library {
    PYTORCH, KERAS, FLAX, ONNX, CAFFE, DARKNET_CPU, DARKNET_GPU, CUDNN, CUDNN_4, TINY_DNN,
    RUNNING_STD, LIBRARIES
};

static const convention conventions[LIBRARIES] = {
    {"PyTorch", KEEPS_VAR, 0, 0, 0, (nrm_acc)0.1, (nrm_acc)1e-5},
    {"Keras 3", KEEPS_VAR, 0, 1, 1, (nrm_acc)0.99, (nrm_acc)1e-3},
    {"Flax", KEEPS_VAR, 0, 1, 1, (nrm_acc)0.99, (nrm_acc)1e-5},
    {"ONNX", KEEPS_VAR, 0, 1, 1, (nrm_acc)0.9, (nrm_acc)1e-5},
    {"Caffe", KEEPS_VAR, 0, 1, 0, (nrm_acc)0.999, (nrm_acc)1e-5}, /* sums, divided by a weight */
    {"darknet, on the CPU", KEEPS_VAR, 1, 1, 0, (nrm_acc)0.99, (nrm_acc)1e-6},
    {"darknet, on the GPU", KEEPS_VAR, 0, 1, 0, (nrm_acc)0.99, (nrm_acc)1e-5},
    {"cuDNN", KEEPS_VAR, 0, 0, 0, -1, -1},
    {"cuDNN 4", KEEPS_RSTD, 0, 0, 1, -1, -1},
    {"tiny-dnn", KEEPS_VAR, 0, 1, 0, (nrm_acc)0.999, (nrm_acc)1e-5},
    {"a running standard deviation", KEEPS_STD, 0, 0, 0, (nrm_acc)0.001, 0},
};

static inline int least_is_float(void) /* is one of the two types a float? */
{
    return sizeof(nrm_real) == sizeof(float) || sizeof(nrm_acc) == sizeof(float);
}

/* Our ε, chosen so that u is not negative. Where the library has none, it is the smallest normal
   number, which makes β, and not 0/0, of a channel that never varied. */
static inline nrm_real convention_eps(const convention *from)
{
    const double eps = (double)(from->eps_outside ? from->eps * from->eps : from->eps);
    return (nrm_real)fmax(eps, least_is_float() ? (double)FLT_MIN : DBL_MIN);
}

/* Our running variance. Where 1/s was rounded, a little less than 0 is 0. */
static inline nrm_acc convention_var(const convention *from, nrm_acc kept, nrm_acc eps)
{
    const nrm_acc t = from->keeps == KEEPS_VAR ? (nrm_acc)sqrt((double)kept) : kept;
    nrm_acc u = from->keeps == KEEPS_VAR ? kept : t * t;  /* CONV.2 */
    if (from->eps_outside) u = t * t + 2 * from->eps * t; /* CONV.3 */
    if (from->keeps != KEEPS_RSTD) return u;
    u = 1 / (kept * kept) - eps;                          /* CONV.4 */
    return u < 0 && u >= -(nrm_acc)(least_is_float() ? 1e-6 : 2e-15) * eps ? 0 : u;
}

/* Sets mean, var, new_weight and biased, and returns the ε to use with them. `weight` is the third
   blob of Caffe, by which its sums are to be divided (CONV.5), and 1 for all others. */
static inline nrm_real convention_import(nrm_running *running, const convention *from,
                                         const nrm_real *mean, const nrm_real *spread,
                                         nrm_acc weight, size_t C)
{
    const nrm_real eps = convention_eps(from);
    const nrm_acc by = weight > 0 ? weight : (nrm_acc)HUGE_VAL; /* 0 of no batches */
    const nrm_acc f = from->momentum;
    size_t c;
    for (c = 0; c < C; c++) {
        running->mean[c] = (nrm_real)((nrm_acc)mean[c] / by); /* CONV.1, CONV.5 */
        running->var[c] = (nrm_real)convention_var(from, (nrm_acc)spread[c] / by, (nrm_acc)eps);
    }
    running->new_weight = (nrm_real)(from->weight_is_old ? 1 - f : f); /* CONV.7 */
    running->biased = from->biased;
    return eps;
}

#endif
