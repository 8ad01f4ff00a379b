/* normlayers.h - v0.2.0 - normalization layers, derived - public domain or MIT-0, see the end */
/*
# normlayers.h

Batch norm, layer norm and their family, forward and backward, in one C file, with a gradient
checker, a recurrent layer and a multilayer perceptron. Each formula is derived above the line that
computes it, and has a tag such as BN.19 and a test of that name.

## Do this

In exactly one C or C++ file of your project define `NORMLAYERS_IMPLEMENTATION` before
`#include "normlayers.h"`. Compile as C99 or C++11 or later: `cc app.c -lm`. A complete program:

```c
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"
#include <stdio.h>

int main(void)
{
    const nrm_real x[8] = {1, 2, 3, 4, 10, 20, 30, 40}; // [N][D]: two rows of four features
    nrm_real y[8];
    nrm_acc mean[2], rstd[2]; // the backward pass needs them
    int rc = nrm_layernorm_forward(y, mean, rstd, x, NULL, NULL, NRM_EPS, 2, 4);
    if (rc != NRM_OK) fprintf(stderr, "%s\n", nrm_strerror(rc));
    for (int i = 0; rc == NRM_OK && i < 8; i++)
        printf(i % 4 < 3 ? "%7.4f " : "%7.4f\n", (double)y[i]);
    return rc; // both rows print -1.3416 -0.4472 0.4472 1.3416
}
```

## Contents

    Part I    1 batch norm, 2 layer norm, 3 noisy batch norm, 4 merged statistics, 5 batch renorm,
              6 group, instance, RMS norm, 7 weight norm, folding, 8 Lp batch norm, 9 activations,
              cross-entropy, 10 linear, 11 recurrent, 12 perceptron, 13 gradient checking
    Part II   14 arguments, threads, 15 plain primitives, 16 sums, 17 sums down columns, 18 affine
              maps, 19 products, 20 exponential, 21 random numbers; 22 history, references, licences

This header does *not* allocate memory, print, touch files (`examples/npz.h` does), start threads
(unless `NRM_OPENMP` asks for them), keep global state, call `rand()`, or use the locale. It refuses
a wrong argument with a named code.

## Options

Define them before the `#include`: the first two for all files alike, best on the compiler's command
line; `NRM_STATIC`, `NRM_DEF` in any file; the others where the functions are compiled.

    NRM_DOUBLE           nrm_real is double instead of float
    NRM_ACC=float        type of statistics, sums and losses: float or double (default)
    NRM_STATIC           a private `static inline` copy of all functions
    NRM_DEF              what stands before each function: dllexport, visibility, ...
    NORMLAYERS_IMPLEMENTATION    compile the functions here
    NRM_SQRT             instead of sqrt (of an nrm_acc); so NRM_MEMCPY, NRM_MEMSET
    NRM_NO_LIBC          include neither math.h nor string.h: define these three
    NRM_PLAIN            plain primitives, ## 15: small, no SIMD
    NRM_NO_VECTORS       no vector extensions
    NRM_NO_DISPATCH      no choice of AVX2 or AVX-512 at run time, ## 16
    NRM_WIDTH=1024       columns worked on together: 64 if NRM_NO_LIBC, 1 if NRM_PLAIN
    NRM_OPENMP           share work between threads, by OpenMP 3.0 or later
    NRM_GEMM             products by cblas_sgemm or cblas_dgemm, see ## 19
    NRM_ANY_FLOAT_EVAL   allow floats that are computed in a wider type (x87)

A freestanding compiler itself wants memcpy, memmove and memset. MSVC needs `/utf-8`. Files that
disagree on `NRM_DOUBLE` or `NRM_ACC` do not link; a program may use both in different files.

## Contracts

- All arrays are the caller's, dense and row-major, of the declared shapes. A product of sizes that
  overflows is refused. Parameters come in one order: outputs (those saved for the backward pass
  last), inputs, saved values, parameters, scalars, sizes.
- Gradients of *inputs* are overwritten (`=`). Those of *parameters* are added to (`+=`): zero them
  first. A network does that itself.
- A status is `NRM_OK` (0); negative, if the function refused and wrote nothing; or the positive
  `NRM_NONFINITE`, if it did its work but met a statistic, a loss or a gradient of the network that
  is not finite, or a NaN in a row to be ranked. Other functions pass NaN on. Three negative codes
  come after work: a gradient check that fails or does not settle has written its reports, and
  `NRM_ESYNC` leaves a network in the middle of a step.
- Outputs may not overlap inputs, except where "may be" allows the same pointer.
- `N = 0` returns `NRM_OK` and writes nothing, with three exceptions: cross entropy and accuracy (so
  `nrm_mlp_eval` too) write 0; a worker without examples gets the mean, rstd, running statistics and
  sums of ## 4; and in a network with `sync` it shares each step.
- In layer, RMS and group norm, batch norm in infer and frozen mode, the linear layer, and a network
  in infer mode, a row has the same bits alone, in any batch and on any number of threads, unless
  `NRM_GEMM` makes the products (docs/determinism.md).
- In a forward pass a NaN or infinity spoils its channel (batch norm) or its row (layer norm) and
  nothing else, no running statistic. It spoils the gradients of parameters that are sums over it.
- In float a norm's error is at most 2·10⁻⁶ of the largest term before cancellation, for means of x
  up to 10⁶ times its spread and values up to about 10³⁷ (docs/accuracy.md). The relative error is
  larger for dx with two values per group, which nearly cancels (5·10⁻³), and for a γ gradient:
  3·10⁻⁶·|mean(dy)|/std(dy) if that ratio > 1.
- Calls on different buffers may run at the same time; an `nrm_mlp`, `nrm_rng` or `nrm_running`
  belongs to one thread at a time. Rounding to nearest is assumed, without floating-point traps. The
  stack takes up to 100 KB (155 KB with `NRM_DOUBLE`), and 185 KB (285 KB) in layer norm's backward
  pass of rows wider than 1024; a smaller `NRM_WIDTH` takes less and changes no result.
- ε ≥ 0 stands inside the square root (Lp batch norm, which has no root, adds it); with ε = 0 a
  variance of 0 gives `NRM_NONFINITE`. Running statistics do not contain ε: use the same ε in
  training and inference. `new_weight` is the weight of the *new* value: PyTorch's momentum,
  1 − momentum of Keras, Flax and ONNX (docs/10_conventions.md).

## Notation

    N, C, S, D   examples in a batch, channels, positions per channel (1 if dense), features
    xᵢ, yᵢ, x̂ᵢ   input and output; the normalized value
    μ, v, r      mean, variance (divided by the count), r = 1/√(v + ε) (in code: mean, -, rstd)
    γ, β, ε      scale, shift, the small constant inside the root (gamma, beta, eps)
    ⟨a⟩          mean of a over whatever is being normalized together
    M            values that share one statistic in batch norm, N·S
    ~, E[a]      "is drawn from"; expectation
    U(a, b)      uniform between a and b; N(m, v): normal with mean m and VARIANCE v
    L, dx        the scalar loss; dx is short for ∂L/∂x, and so for every other letter
    g            ∂L/∂x̂, the gradient by the normalized value: γ·dy
    h            μ rounded to nrm_real: the point from which the code measures x
    δᵢⱼ, ∑ᵢ      1 if i = j, else 0; sum over i

Other letters are defined where they occur. An equation tagged `[BN.19]` is computed by the line
that cites it; one tagged `(BN.17)` is a step of a derivation, or a property.
*/
#ifndef NORMLAYERS_H
#define NORMLAYERS_H

#include <stddef.h>
#include <stdint.h>
#define NRM_VERSION_MAJOR 0
#define NRM_VERSION_MINOR 2
#define NRM_VERSION_PATCH 0
#define NRM_VERSION "0.2.0"
#ifdef NRM_DOUBLE
typedef double nrm_real; /* the type of all data and parameters */
#define NRM_EPS 1e-5 /* the usual epsilon */
#else
typedef float nrm_real;
#define NRM_EPS 1e-5f
#endif
#ifdef NRM_ACC
typedef NRM_ACC nrm_acc; /* the type of statistics, sums and losses */
#else
typedef double nrm_acc;
#endif
typedef char nrm_acc_is_float_or_double
    [sizeof(nrm_acc) == sizeof(float) || sizeof(nrm_acc) == sizeof(double) ? 1 : -1];
typedef char nrm_acc_holds_an_nrm_real[sizeof(nrm_acc) >= sizeof(nrm_real) ? 1 : -1];
#if !defined(NRM_DEF) && defined(NRM_STATIC)
#define NRM_DEF static inline
#elif !defined(NRM_DEF) && defined(__cplusplus)
#define NRM_DEF extern "C"
#elif !defined(NRM_DEF)
#define NRM_DEF extern
#endif

/* Link names carry the types, unless these are the default ones: nrm_accuracy becomes
   nrm_accuracy_f64 with NRM_DOUBLE and nrm_accuracy_f32_float with NRM_ACC=float. */
#if defined(NRM_DOUBLE) || defined(NRM_ACC)
#define NRM_LINK3(name, tag) name##tag
#define NRM_LINK2(name, tag) NRM_LINK3(name, tag)
#ifndef NRM_ACC
#define NRM_TAG _f64
#elif defined(NRM_DOUBLE)
#define NRM_TAG NRM_LINK2(_f64_, NRM_ACC)
#else
#define NRM_TAG NRM_LINK2(_f32_, NRM_ACC)
#endif
#define NRM_LINK(name) NRM_LINK2(name, NRM_TAG)
#define nrm_strerror NRM_LINK(nrm_strerror)
#define nrm_linear_forward NRM_LINK(nrm_linear_forward)
#define nrm_linear_backward NRM_LINK(nrm_linear_backward)
#define nrm_rng_seed NRM_LINK(nrm_rng_seed)
#define nrm_rng_u32 NRM_LINK(nrm_rng_u32)
#define nrm_rng_below NRM_LINK(nrm_rng_below)
#define nrm_rng_uniform NRM_LINK(nrm_rng_uniform)
#define nrm_rng_normal NRM_LINK(nrm_rng_normal)
#define nrm_rng_shuffle NRM_LINK(nrm_rng_shuffle)
#define nrm_batchnorm_forward NRM_LINK(nrm_batchnorm_forward)
#define nrm_batchnorm_backward NRM_LINK(nrm_batchnorm_backward)
#define nrm_layernorm_forward NRM_LINK(nrm_layernorm_forward)
#define nrm_layernorm_backward NRM_LINK(nrm_layernorm_backward)
#define nrm_noise_paper NRM_LINK(nrm_noise_paper)
#define nrm_noisy_batchnorm_forward NRM_LINK(nrm_noisy_batchnorm_forward)
#define nrm_noisy_batchnorm_backward NRM_LINK(nrm_noisy_batchnorm_backward)
#define nrm_activation_forward NRM_LINK(nrm_activation_forward)
#define nrm_activation_backward NRM_LINK(nrm_activation_backward)
#define nrm_cross_entropy_forward NRM_LINK(nrm_cross_entropy_forward)
#define nrm_cross_entropy_backward NRM_LINK(nrm_cross_entropy_backward)
#define nrm_accuracy NRM_LINK(nrm_accuracy)
#define nrm_mlp_defaults NRM_LINK(nrm_mlp_defaults)
#define nrm_mlp_bytes NRM_LINK(nrm_mlp_bytes)
#define nrm_mlp_init NRM_LINK(nrm_mlp_init)
#define nrm_mlp_forward NRM_LINK(nrm_mlp_forward)
#define nrm_mlp_gradient NRM_LINK(nrm_mlp_gradient)
#define nrm_mlp_step NRM_LINK(nrm_mlp_step)
#define nrm_mlp_train_step NRM_LINK(nrm_mlp_train_step)
#define nrm_mlp_eval NRM_LINK(nrm_mlp_eval)
#define nrm_stats_update NRM_LINK(nrm_stats_update)
#define nrm_stats_merge NRM_LINK(nrm_stats_merge)
#define nrm_sync_batchnorm_forward NRM_LINK(nrm_sync_batchnorm_forward)
#define nrm_sync_batchnorm_sums NRM_LINK(nrm_sync_batchnorm_sums)
#define nrm_sync_batchnorm_backward NRM_LINK(nrm_sync_batchnorm_backward)
#define nrm_batchrenorm_forward NRM_LINK(nrm_batchrenorm_forward)
#define nrm_batchrenorm_backward NRM_LINK(nrm_batchrenorm_backward)
#define nrm_groupnorm_forward NRM_LINK(nrm_groupnorm_forward)
#define nrm_groupnorm_backward NRM_LINK(nrm_groupnorm_backward)
#define nrm_rmsnorm_forward NRM_LINK(nrm_rmsnorm_forward)
#define nrm_rmsnorm_backward NRM_LINK(nrm_rmsnorm_backward)
#define nrm_rows_forward NRM_LINK(nrm_rows_forward)
#define nrm_rows_backward NRM_LINK(nrm_rows_backward)
#define nrm_lp_batchnorm_forward NRM_LINK(nrm_lp_batchnorm_forward)
#define nrm_lp_batchnorm_backward NRM_LINK(nrm_lp_batchnorm_backward)
#define nrm_weightnorm_forward NRM_LINK(nrm_weightnorm_forward)
#define nrm_weightnorm_backward NRM_LINK(nrm_weightnorm_backward)
#define nrm_batchnorm_fold NRM_LINK(nrm_batchnorm_fold)
#define nrm_rnn_forward NRM_LINK(nrm_rnn_forward)
#define nrm_rnn_backward NRM_LINK(nrm_rnn_backward)
#define nrm_gradcheck NRM_LINK(nrm_gradcheck)
#endif
#if defined(__cplusplus) && defined(NRM_TAG) /* in C++ a struct's name is one type in all files */
#define NRM_OWN(name) NRM_LINK(name)
#else
#define NRM_OWN(name) name
#endif
/* ---- status codes ---- */
#define NRM_STATUS_LIST(X) \
    X(NRM_NONFINITE, 1, "done, but met a NaN or an infinity; no running statistic took it in") \
    X(NRM_OK, 0, "success") \
    X(NRM_ENULL, -1, "a required pointer is NULL") \
    X(NRM_ESIZE, -2, "a size is zero, or an index or count is out of range") \
    X(NRM_EOVERFLOW, -3, "the product of the sizes does not fit into size_t") \
    X(NRM_EALIAS, -4, "an output overlaps another buffer") \
    X(NRM_EEPS, -5, "eps must be finite and not negative") \
    X(NRM_EMODE, -6, "unknown mode, or a backward pass in infer mode") \
    X(NRM_EBATCH, -7, "one value per statistic: its variance is no estimate") \
    X(NRM_EWEIGHT, -8, "new_weight must lie in 0..1; 0 without cumulative would never learn: " \
      "pass NULL for running instead") \
    X(NRM_ESTATS, -9, "running statistics hold a negative variance, a NaN or an infinity") \
    X(NRM_ENOISE, -10, "noise parameters must be finite and not negative") \
    X(NRM_EKIND, -11, "unknown activation, norm, initialisation or optimizer") \
    X(NRM_ELABEL, -12, "a label lies outside 0..C-1") \
    X(NRM_ERATE, -13, "a learning rate, tolerance or another setting is out of range") \
    X(NRM_EBLOCK, -14, "the memory block is smaller than nrm_mlp_bytes asks") \
    X(NRM_EGRADIENT, -15, "a gradient is wrong: the report names the worst entry of its group") \
    X(NRM_EUNSETTLED, -16, "a gradient could not be judged: the differences do not settle") \
    X(NRM_ESYNC, -21, "a function of nrm_sync has failed, or has merged less than two values")
#define NRM_STATUS_ENUM(name, value, message) name = value,
enum nrm_status { NRM_STATUS_LIST(NRM_STATUS_ENUM) };
NRM_DEF const char *nrm_strerror(int status); /* never NULL, even for unknown codes */

/* Below, = means overwritten and += added to; "saved" is what the backward pass needs. Where no
   shape is given, it is as in the pass before, or as in batch norm. In norms gamma and beta may be
   NULL, for 1 and 0, and dx, dgamma, dbeta if not wanted; dx may be dy. Without a backward pass
   (for batch norms: in infer mode) all saved outputs may be NULL, and then y may be x. */
/* ---- batch normalization ---- */
enum nrm_mode {
    NRM_TRAIN = 0, /* statistics of this batch; running statistics are updated */
    NRM_INFER = 1, /* running statistics; no backward pass */
    NRM_FROZEN = 2 /* running statistics, taken as constants; gradients flow through */
};
/* Running statistics of one batch norm layer. Before the first batch fill mean with 0, var with 1
   and batches with 0; or take those of a whole data set from nrm_stats, by ST.7. */
typedef struct NRM_OWN(nrm_running) {
    nrm_real *mean, *var; /* [C] each */
    nrm_real new_weight; /* weight of the new batch, above 0, at most 1; 0.1 is usual */
    int cumulative, biased; /* 1: plain average, not new_weight; 0: store v·M/(M-1), 1: v */
    size_t batches; /* how many batches have entered so far */
} nrm_running;
/* [N][C][S]: S = 1 for a dense layer, H*W for NCHW images; NHWC ones are the dense case with N*H*W
   rows. In train mode N*S is 2 or more, else NRM_EBATCH. */
NRM_DEF int nrm_batchnorm_forward(
    nrm_real *y, nrm_acc *mean, nrm_acc *rstd, /* [N][C][S] out, =; [C], [C] out, saved */
    nrm_running *running, /* in/out in train mode (NULL: not tracked), in otherwise */
    const nrm_real *x, const nrm_real *gamma, const nrm_real *beta, /* [N][C][S]; [C], [C] */
    int mode, nrm_real eps, size_t N, size_t C, size_t S);
NRM_DEF int nrm_batchnorm_backward(
    nrm_real *dx, nrm_real *dgamma, nrm_real *dbeta, /* [N][C][S] out, =; [C], [C] in/out, += */
    const nrm_real *dy, const nrm_real *x, const nrm_acc *mean, const nrm_acc *rstd, /* as saved */
    const nrm_real *gamma, int mode, size_t N, size_t C, size_t S); /* mode: the forward pass's */
/* ---- layer normalization ---- */
NRM_DEF int nrm_layernorm_forward(
    nrm_real *y, nrm_acc *mean, nrm_acc *rstd, /* [N][D] out, =; [N], [N] out, saved */
    const nrm_real *x, const nrm_real *gamma, const nrm_real *beta, /* [N][D]; [D], [D] */
    nrm_real eps, size_t N, size_t D);
NRM_DEF int nrm_layernorm_backward(
    nrm_real *dx, nrm_real *dgamma, nrm_real *dbeta, /* [N][D] out, =; [D], [D] in/out, += */
    const nrm_real *dy, const nrm_real *x, const nrm_acc *mean, const nrm_acc *rstd, /* as saved */
    const nrm_real *gamma, size_t N, size_t D);
/* ---- random numbers: PCG32 ---- */
typedef struct NRM_OWN(nrm_rng) { /* copy it to fork or rewind a stream */
    uint64_t state, increment;
    nrm_acc spare; /* normals come in pairs: the second one, if there is one */
    int has_spare;
} nrm_rng;
/* Seeds below 2^46, any stream; a network draws from streams 0 to 4·layers - 1 of its seed. */
NRM_DEF void nrm_rng_seed(nrm_rng *rng, uint64_t seed, uint64_t stream);
NRM_DEF uint32_t nrm_rng_u32(nrm_rng *rng); /* all 2^32 values alike */
NRM_DEF uint32_t nrm_rng_below(nrm_rng *rng, uint32_t n); /* 0..n-1, unbiased; 0 if n is 0 */
/* The next numbers, the same ones in whatever portions. */
NRM_DEF void nrm_rng_uniform(nrm_rng *rng, nrm_real *v, size_t n); /* [n] out, =; 0 <= v < 1 */
NRM_DEF void nrm_rng_normal(nrm_rng *rng, nrm_real *v, size_t n); /* [n] out, =; N(0, 1) */
NRM_DEF int nrm_rng_shuffle(nrm_rng *rng, size_t *index, size_t n); /* [n] in/out, n < 2^32 */
/* ---- noisy batch normalization ---- */
typedef struct NRM_OWN(nrm_noise) { /* how the noise is drawn: equations NB.1 to NB.4 */
    nrm_real mean_range, scale_max; /* n_μ, n_σ: offsets centre in ±n_μ, scales in 1..n_σ: NB.2 */
    nrm_real mean_jitter, scale_jitter; /* r_μ, r_σ: their half width and standard deviation */
} nrm_noise;
NRM_DEF nrm_noise nrm_noise_paper(void); /* 0.5, 1.25, 0.1, 0.1: Santurkar et al., app. A.2 */
/* Batch norm, then noise in train mode. The other modes do not use scale, noise and rng. */
NRM_DEF int nrm_noisy_batchnorm_forward(
    nrm_real *y, nrm_real *scale, /* [N][C][S] out, =; scale: the factors, saved in train mode */
    nrm_acc *mean, nrm_acc *rstd, nrm_running *running, const nrm_real *x, const nrm_real *gamma,
    const nrm_real *beta, const nrm_noise *noise, nrm_rng *rng, int mode, nrm_real eps, size_t N,
    size_t C, size_t S);
NRM_DEF int nrm_noisy_batchnorm_backward(nrm_real *dx, nrm_real *dgamma, nrm_real *dbeta,
    const nrm_real *dy, const nrm_real *scale, const nrm_real *x, const nrm_acc *mean,
    const nrm_acc *rstd, const nrm_real *gamma, int mode, size_t N, size_t C, size_t S);
/* ---- statistics that merge; synchronised and masked batch norm ---- */
typedef struct NRM_OWN(nrm_stats) { /* of one channel; all zero means: of no values yet */
    nrm_acc count, mean, m2; /* how many, their mean, the sum of squared deviations from it */
} nrm_stats;
typedef struct NRM_OWN(nrm_sums) { /* of one channel: what a backward pass needs from all workers */
    nrm_acc dy, dy_xhat; /* sum of dy, sum of dy times normalized x: add these up */
} nrm_sums;
/* Adds the values of a batch to stats. In the functions that take one, mask [N][S] says which
   positions count: where it is 0, x and dy are not read, and y and dx become 0. NULL: all count. */
NRM_DEF int nrm_stats_update(nrm_stats *stats, const nrm_real *x, /* [C] in/out; [N][C][S] */
                             const unsigned char *mask, size_t N, size_t C, size_t S);
/* Merges `from` into `into`, [C] each. A different order of merging may change the last bits. */
NRM_DEF int nrm_stats_merge(nrm_stats *into, const nrm_stats *from, size_t C);
/* Batch norm in train mode with the merged statistics [C] of all workers or micro-batches. All get
   the same mean, rstd and running, also with N = 0. */
NRM_DEF int nrm_sync_batchnorm_forward(nrm_real *y, nrm_acc *mean, nrm_acc *rstd,
    nrm_running *running, const nrm_real *x, const unsigned char *mask, const nrm_stats *stats,
    const nrm_real *gamma, const nrm_real *beta, nrm_real eps, size_t N, size_t C, size_t S);
/* First half of the backward pass: this batch's part of the sums, and of the gradients. */
NRM_DEF int nrm_sync_batchnorm_sums(
    nrm_sums *sums, nrm_real *dgamma, nrm_real *dbeta, /* [C] out, =, zeros if N = 0; [C] += */
    const nrm_real *dy, const nrm_real *x, const unsigned char *mask, const nrm_acc *mean,
    const nrm_acc *rstd, size_t N, size_t C, size_t S);
/* Second half: the gradient of the input, which is required here. stats [C]: as in the forward
   pass; sums [C]: added up over all workers or micro-batches. */
NRM_DEF int nrm_sync_batchnorm_backward(nrm_real *dx, const nrm_real *dy, const nrm_real *x,
    const unsigned char *mask, const nrm_acc *mean, const nrm_acc *rstd, const nrm_real *gamma,
    const nrm_stats *stats, const nrm_sums *sums, size_t N, size_t C, size_t S);
/* ---- batch renormalization ---- */
/* Batch norm whose output in train mode uses the running statistics, within limits: ρ (BR.1)
   stays within 1/r_max..r_max, d (BR.2) within ±d_max. 1 and 0 give plain batch norm. */
NRM_DEF int nrm_batchrenorm_forward(
    nrm_real *y, nrm_acc *ratio, nrm_acc *offset, /* [N][C][S] out, =; train mode: [C] saved ρ, d */
    nrm_acc *mean, nrm_acc *rstd, nrm_running *running, /* running is required */
    const nrm_real *x, const nrm_real *gamma, const nrm_real *beta, nrm_real r_max, nrm_real d_max,
    int mode, nrm_real eps, size_t N, size_t C, size_t S);
NRM_DEF int nrm_batchrenorm_backward(nrm_real *dx, nrm_real *dgamma, nrm_real *dbeta,
    const nrm_real *dy, const nrm_real *x, const nrm_acc *ratio, const nrm_acc *offset,
    const nrm_acc *mean, const nrm_acc *rstd, const nrm_real *gamma, int mode, size_t N, size_t C,
    size_t S);
/* ---- group, instance and RMS normalization ---- */
/* G groups of C/G channels, each with its own statistics in every example. G = 1 is layer norm over
   channels and positions, G = C instance norm. One value per group (C = G, S = 1): NRM_EBATCH. */
NRM_DEF int nrm_groupnorm_forward(
    nrm_real *y, nrm_acc *mean, nrm_acc *rstd, /* [N][C][S] out, =; [N][G], [N][G] out, saved */
    const nrm_real *x, const nrm_real *gamma, const nrm_real *beta, /* [N][C][S]; [C], [C] */
    nrm_real eps, size_t N, size_t C, size_t S, size_t G);
NRM_DEF int nrm_groupnorm_backward(nrm_real *dx, nrm_real *dgamma, nrm_real *dbeta,
    const nrm_real *dy, const nrm_real *x, const nrm_acc *mean, const nrm_acc *rstd,
    const nrm_real *gamma, size_t N, size_t C, size_t S, size_t G);
/* Layer norm without the mean; arrays as there. */
NRM_DEF int nrm_rmsnorm_forward(nrm_real *y, nrm_acc *rstd, const nrm_real *x,
    const nrm_real *gamma, nrm_real eps, size_t N, size_t D);
NRM_DEF int nrm_rmsnorm_backward(nrm_real *dx, nrm_real *dgamma, const nrm_real *dy,
    const nrm_real *x, const nrm_acc *rstd, const nrm_real *gamma, size_t N, size_t D);
/* ---- rows of a larger array, with a residual ---- */
typedef struct NRM_OWN(nrm_rows) { /* [N][R][D]: N times R rows of D numbers, such as heads */
    size_t N, R, D, pitch; /* rows 0 of neighbouring examples are pitch >= R·D numbers apart */
    int rms; /* 1: RMS norm, which does not use mean; 0: layer norm */
} nrm_rows;
/* y = norm(x + residual). y, sum, x, residual and their gradients have the shape of rows. */
NRM_DEF int nrm_rows_forward(
    nrm_real *y, nrm_real *sum, nrm_acc *mean, nrm_acc *rstd, /* out, =; sum: saved; [N][R] saved */
    const nrm_real *x, const nrm_real *residual, /* sum may be either; NULL: no residual, no sum */
    const nrm_real *gamma, const nrm_real *beta, nrm_real eps, const nrm_rows *rows); /* [D], [D] */
NRM_DEF int nrm_rows_backward(
    nrm_real *dx, nrm_real *dgamma, nrm_real *dbeta, /* dx: the residual's gradient, too */
    const nrm_real *dy, const nrm_real *dsum, /* the gradient of sum beside the norm, or NULL */
    const nrm_real *x, const nrm_acc *mean, const nrm_acc *rstd, /* x: sum, if there is one */
    const nrm_real *gamma, const nrm_rows *rows);
/* ---- weight normalization, folding ---- */
NRM_DEF int nrm_weightnorm_forward( /* W = g·v/|v|, column by column: use W in the linear layer */
    nrm_real *W, nrm_acc *norm, /* [in][out] out, =; |v|: [out] out, saved, or NULL */
    const nrm_real *v, const nrm_real *g, size_t in, size_t out); /* [in][out]; [out], NULL: 1 */
NRM_DEF int nrm_weightnorm_backward( /* dv, dg: in/out, +=, or NULL if not wanted */
    nrm_real *dv, nrm_real *dg, const nrm_real *dW, const nrm_real *v, const nrm_acc *norm,
    const nrm_real *g, size_t in, size_t out);
/* Batch norm with running statistics, folded into the weights before it: W' and b' of FOLD.1 and
   FOLD.2. The weights are [outer][C][inner], with C the outputs: [in][out] as here is outer = in,
   inner = 1; [out][in], and convolutions [out][in][h][w], are outer = 1, inner = all the rest. */
NRM_DEF int nrm_batchnorm_fold(
    nrm_real *W_out, nrm_real *b_out, /* [outer][C][inner], [C] out, =; may be W and b */
    const nrm_real *W, const nrm_real *b, /* b: [C], or NULL for 0 */
    const nrm_running *running, const nrm_real *gamma, const nrm_real *beta, nrm_real eps,
    size_t outer, size_t C, size_t inner);
/* ---- Lp batch normalization ---- */
enum nrm_lp { /* what batch norm divides by, with ε added to it: */
    NRM_L1 = 1, NRM_L2 = 2, NRM_LINF = 3, /* mean of |x|; root of the mean of x²; largest |x| */
    NRM_CENTRED = 4 /* add it, and |x − μ| takes the place of |x| */
};
NRM_DEF int nrm_lp_batchnorm_forward(
    nrm_real *y, nrm_acc *mean, nrm_acc *scale, /* [N][C][S] out, =; [C] saved: μ, t of LP.2 */
    nrm_running *running, /* var holds the running t itself */
    const nrm_real *x, const nrm_real *gamma, const nrm_real *beta, int p, /* p: enum nrm_lp */
    int mode, nrm_real eps, size_t N, size_t C, size_t S);
NRM_DEF int nrm_lp_batchnorm_backward(nrm_real *dx, nrm_real *dgamma, nrm_real *dbeta,
    const nrm_real *dy, const nrm_real *x, const nrm_acc *mean, const nrm_acc *scale,
    const nrm_real *gamma, int p, int mode, nrm_real eps, size_t N, size_t C, size_t S);
/* ---- activations ---- */
enum nrm_activation { NRM_IDENTITY = 0, NRM_RELU = 1, NRM_TANH = 2, NRM_SIGMOID = 3 };
/* All arrays are [count]; y = may be x; dx = may be dy; backward takes the output y of forward. */
NRM_DEF int nrm_activation_forward(nrm_real *y, const nrm_real *x, int activation, size_t count);
NRM_DEF int nrm_activation_backward(nrm_real *dx, const nrm_real *dy, const nrm_real *y,
    int activation, size_t count);
/* ---- softmax cross-entropy with logits, mean over the batch ---- */
NRM_DEF int nrm_cross_entropy_forward(
    nrm_acc *loss, nrm_real *prob, /* mean loss in nats; [N][C] softmax(z), may be logits or NULL */
    const nrm_real *logits, const int *labels, size_t N, size_t C); /* [N][C]; [N] in 0..C-1 */
NRM_DEF int nrm_cross_entropy_backward( /* dlogits: [N][C] out, =; may be prob */
    nrm_real *dlogits, const nrm_real *prob, const int *labels, size_t N, size_t C);
/* The fraction of rows whose (first) largest entry is the label's; with a NaN a row is wrong. */
NRM_DEF int nrm_accuracy(nrm_acc *accuracy, const nrm_real *logits, const int *labels, size_t N,
    size_t C);
/* ---- linear layer: y = xW + b ---- */
NRM_DEF int nrm_linear_forward(
    nrm_real *y, const nrm_real *x, const nrm_real *W, /* [N][out] out, =; [N][in], [in][out] */
    const nrm_real *b, size_t N, size_t in, size_t out); /* [out], or NULL for none */
NRM_DEF int nrm_linear_backward( /* all outputs may be NULL; x if dW is, W if dx is */
    nrm_real *dx, nrm_real *dW, nrm_real *db, /* [N][in] out, =; [in][out], [out] in/out, += */
    const nrm_real *dy, const nrm_real *x, const nrm_real *W, size_t N, size_t in, size_t out);
/* ---- a recurrent layer ---- */
/* h[t+1] = f(norm(x[t]·Wx + h[t]·Wh)·gamma + beta). A step whose running statistics have seen no
   batch, while those of the first have, is refused: NRM_ESIZE. */
typedef struct NRM_OWN(nrm_rnn) {
    size_t T, N, in, H; /* steps, sequences side by side, inputs, units; T = 0: like N = 0 */
    int norm, activation; /* NRM_NO_NORM, NRM_LAYER_NORM or NRM_BATCH_NORM; f */
    nrm_real eps; /* not used without a norm */
    const nrm_real *Wx, *Wh; /* [in][H], [H][H] */
    const nrm_real *gamma, *beta; /* [H]; without a norm gamma is not used, beta is the bias */
    nrm_running *running; /* [T] of batch norm, one for each step; may be NULL in train mode */
} nrm_rnn;
/* Gradients of the same shapes, +=; each may be NULL. */
typedef struct NRM_OWN(nrm_rnn_grads) { nrm_real *dWx, *dWh, *dgamma, *dbeta; } nrm_rnn_grads;
NRM_DEF int nrm_rnn_forward(
    nrm_real *h, nrm_real *a, /* [T+1][N][H], h[0] in, rest out; [T][N][H] out: summed inputs */
    nrm_acc *mean, nrm_acc *rstd, /* [T][N] or [T][H] out: layer or batch norm (none: unused) */
    const nrm_real *x, const nrm_rnn *rnn, int mode); /* x: [T][N][in] */
NRM_DEF int nrm_rnn_backward(
    nrm_real *dh, /* [T+1][N][H] in: by each h alone; out: with what comes through the later ones */
    nrm_real *dx, const nrm_rnn_grads *grads, /* [T][N][in] out, =; NULL: not wanted, both */
    nrm_real *da, /* [T][N][H] out, =: the gradient by the summed inputs */
    const nrm_real *h, const nrm_real *a, /* as saved; a, mean, rstd: only with a norm */
    const nrm_acc *mean, const nrm_acc *rstd, const nrm_real *x, /* x may be NULL if dWx is */
    const nrm_rnn *rnn, int mode); /* the forward pass's mode: train or frozen */
/* ---- the tiny multilayer perceptron ---- */
enum nrm_norm {
    NRM_NO_NORM = 0, NRM_BATCH_NORM = 1, NRM_LAYER_NORM = 2, NRM_NOISY_BATCH_NORM = 3,
    NRM_GROUP_NORM = 4, NRM_RMS_NORM = 5, NRM_BATCH_RENORM = 6, NRM_LP_BATCH_NORM = 7
};
enum nrm_init { /* W ~ N(0, 2/in); U(±√(6/(in+out))); N(0, init_std²); W and b ~ U(±1/√in) */
    NRM_INIT_HE = 0, NRM_INIT_XAVIER = 1, NRM_INIT_GAUSSIAN = 2, NRM_INIT_FAN_IN = 3
};
enum nrm_gamma { NRM_GAMMA_ONE = 0, NRM_GAMMA_UNIFORM = 1 /* γ ~ U(0,1) */ };
enum nrm_optimizer { NRM_SGD = 0, NRM_ADAM = 1 };
enum nrm_place { NRM_AT_LINEAR = 0, NRM_AT_NORM = 1, NRM_AT_ACTIVATION = 2 };
typedef struct NRM_OWN(nrm_mlp_layer) { /* all zero but width: linear, no norm, no bias */
    size_t width; /* outputs of this layer */
    int activation, norm; /* enum nrm_activation, enum nrm_norm */
    int norm_after, bias; /* 1: the norm follows the activation; 1: with a bias (MLP.3) */
    size_t groups; /* of NRM_GROUP_NORM: a divisor of width, less than width */
    int p; /* of NRM_LP_BATCH_NORM: enum nrm_lp */
} nrm_mlp_layer;
typedef struct NRM_OWN(nrm_mlp_event) { /* what a probe is shown */
    size_t layer; /* 0 is the first hidden layer */
    int place, gradient; /* the output of: enum nrm_place; 0: the value, 1: its gradient */
    const nrm_real *data; /* [rows][cols], valid during the call only */
    size_t rows, cols;
} nrm_mlp_event;
typedef void nrm_mlp_probe(void *context, const nrm_mlp_event *event);

/* Several workers: each has a copy of the network and calls the same functions in the same order,
   with its part of the batch, which may be empty. Your functions replace n items by those of all
   workers, combined in their order, and return 0, or not if they failed. add NULL: no others. merge
   NULL: batch norm uses each worker's own statistics, not ## 4. */
typedef struct NRM_OWN(nrm_sync) {
    int (*add)(void *context, nrm_acc *sums, size_t n); /* by addition */
    int (*merge)(void *context, nrm_stats *stats, size_t n); /* by nrm_stats_merge */
    void *context;
} nrm_sync;
typedef struct NRM_OWN(nrm_mlp_spec) { /* start from nrm_mlp_defaults(); set the first four */
    size_t inputs, layers; /* features of one example; layers, with the output layer */
    const nrm_mlp_layer *layer; /* [layers]; read by init only */
    size_t max_batch; /* the largest N that one call will see */
    uint64_t seed; /* of weights and noise */
    int init, gamma_init; /* how W and γ start: enum nrm_init, nrm_gamma; β starts at 0 */
    nrm_real init_std, eps, new_weight; /* NRM_INIT_GAUSSIAN's; all norms'; running statistics', */
    int cumulative, biased; /* as these are */
    nrm_noise noise; /* of noisy batch norm */
    nrm_real r_max, d_max; /* of batch renorm; to be raised while training, in net->spec */
    nrm_sync sync; /* of training on several workers */
    int optimizer; /* enum nrm_optimizer */
    nrm_real lr, heavy_ball; /* 0.1 suits SGD, 1e-3 Adam; SGD: kept of the last step, 0 to < 1 */
    nrm_real beta1, beta2, adam_eps; /* Adam: kept of averages, 0 to < 1; added to the root */
} nrm_mlp_spec;
typedef struct NRM_OWN(nrm_mlp_state) { /* one layer's arrays; they point into the block */
    nrm_mlp_layer shape;
    size_t in; /* inputs of this layer */
    nrm_real *W, *b, *gamma, *beta; /* [in][width], then [width]; NULL if absent */
    nrm_real *dW, *db, *dgamma, *dbeta;
    nrm_real *linear_out, *norm_out, *act_out, *out; /* [max_batch][width]; absent stages share; */
    nrm_acc *mean, *rstd, *ratio, *offset; /* out: the last. Saved statistics; of batch renorm */
    nrm_real *scale; /* [max_batch][width] noise factors, or NULL */
    nrm_running running; /* of batch norm */
    nrm_stats *stats; /* [width] of batch norm: merged statistics */
    nrm_sums *sums; /* [width] with sync: sums of all workers */
} nrm_mlp_state;
typedef struct NRM_OWN(nrm_mlp) { /* change spec.lr, params, probe, grads before a step; read all */
    nrm_mlp_spec spec; /* spec.layer is NULL here: see state */
    nrm_mlp_state *state; /* [layers] */
    size_t n_params, steps; /* number of all parameters; optimizer steps so far */
    nrm_real *params, *grads; /* [n_params] each, layer by layer: W, b, gamma, beta */
    nrm_real *moment1, *moment2; /* [n_params] the optimizer's, NULL if it has none */
    nrm_real *logits, *prob, *work[2]; /* [max_batch][classes]; [max_batch][widest] gradients */
    nrm_acc *total; /* [n_params + 1] with sync: what is added up */
    nrm_acc beta1_power, beta2_power; /* beta1^steps, beta2^steps */
    nrm_rng rng; /* the noise */
    nrm_mlp_probe *probe; /* called at every place of a layer, if not NULL, with the context */
    void *probe_context;
} nrm_mlp;
NRM_DEF nrm_mlp_spec nrm_mlp_defaults(void); /* He, eps 1e-5, new_weight 0.1, SGD with lr 0.1 */
NRM_DEF size_t nrm_mlp_bytes(const nrm_mlp_spec *spec); /* of the block; 0 if init refuses spec */
/* The block has nrm_mlp_bytes(spec) or more and any alignment. *net lies in it: do not move it. */
NRM_DEF int nrm_mlp_init(nrm_mlp **net, void *block, size_t bytes, const nrm_mlp_spec *spec);
/* From x [N][inputs] to net->logits [N][classes]; train mode updates running statistics. Here, in
   gradient and train_step N is at most max_batch, else NRM_ESIZE. */
NRM_DEF int nrm_mlp_forward(nrm_mlp *net, const nrm_real *x, size_t N, int mode);
/* Loss and net->grads (overwritten) in train or frozen mode. Parameters, running statistics and the
   noise stream stay as they are. loss may be NULL, here and below. */
NRM_DEF int nrm_mlp_gradient(nrm_mlp *net, nrm_acc *loss, const nrm_real *x, const int *labels,
    size_t N, int mode);
NRM_DEF int nrm_mlp_step(nrm_mlp *net); /* the optimizer's step down net->grads */
/* Gradient in train mode, running statistics, step. On NRM_NONFINITE there was no step. */
NRM_DEF int nrm_mlp_train_step(nrm_mlp *net, nrm_acc *loss, const nrm_real *x, const int *labels,
    size_t N);
/* Mean loss and accuracy of any number of examples in infer mode; either result may be NULL. */
NRM_DEF int nrm_mlp_eval(nrm_mlp *net, nrm_acc *loss, nrm_acc *accuracy, const nrm_real *x,
    const int *labels, size_t N);
/* ---- gradient checking ---- */
typedef nrm_acc nrm_loss_fn(void *context); /* the loss at the present parameters */
typedef uint64_t nrm_branches_fn(void *context); /* a fingerprint of the branches it took last */
typedef struct NRM_OWN(nrm_gradcheck_group) { /* an array of parameters (or inputs), its gradient */
    const char *name; /* for your own print-out */
    nrm_real *theta; /* [n] nudged and put back, bit for bit */
    const nrm_real *grad; /* [n] yours; the loss must not change it: copy net->grads if it would */
    size_t n;
} nrm_gradcheck_group;
typedef struct NRM_OWN(nrm_gradcheck_options) { /* all zero is a good choice */
    nrm_acc tolerance, step; /* relative; step: to theta; 0: 1e-7, 7e-4; in float 1e-2, 4e-2 */
    size_t at_most; /* entries per group, drawn by seed; 0: all */
    uint64_t seed;
    nrm_branches_fn *branches; /* NULL: kinks are found from the differences alone */
} nrm_gradcheck_options;
typedef struct NRM_OWN(nrm_gradcheck_report) { /* one per group */
    int status; /* NRM_OK, NRM_EGRADIENT or NRM_EUNSETTLED */
    size_t checked, wrong; /* entries; of these off by more than tolerance and uncertainty, */
    size_t unsettled, kinks; /* too uncertain to judge, skipped: the loss has a kink (ReLU at 0), */
    size_t vanishing, worst; /* zero within rounding; index of the largest error, its figures: */
    nrm_acc analytic, numeric, error, uncertainty;
} nrm_gradcheck_report;
/* Compares the gradients of each group with differences of the loss; options may be NULL. */
NRM_DEF int nrm_gradcheck(nrm_gradcheck_report *report, const nrm_gradcheck_group *group,
    size_t groups, nrm_loss_fn *loss, void *context, const nrm_gradcheck_options *options);
#endif /* NORMLAYERS_H */
#if (defined(NORMLAYERS_IMPLEMENTATION) || defined(NRM_STATIC)) && !defined(NRM_IMPLEMENTED)
#define NRM_IMPLEMENTED
#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__ > 0) || \
    defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__) || defined(_M_FP_FAST)
#error "normlayers.h: compile without -ffast-math or -Ofast: they break NaN tests and results"
#endif
#if defined(__FLT_EVAL_METHOD__) && __FLT_EVAL_METHOD__ != 0 && __FLT_EVAL_METHOD__ != 16 && \
    !defined(NRM_ANY_FLOAT_EVAL)
#error "normlayers.h: floats are computed in another type here (x87?): -msse2 -mfpmath=sse, or \
-std=gnu99 on s390x; NRM_ANY_FLOAT_EVAL gives up the promise of equal bits"
#endif
#if defined(NRM_NO_LIBC) && !(defined(NRM_SQRT) && defined(NRM_MEMCPY) && defined(NRM_MEMSET))
#error "normlayers.h: NRM_NO_LIBC wants NRM_SQRT, NRM_MEMCPY and NRM_MEMSET"
#endif
#if defined(NRM_OPENMP) && !defined(_OPENMP)
#error "normlayers.h: NRM_OPENMP wants the compiler's OpenMP switched on (-fopenmp)"
#endif
#if !defined(NRM_MEMCPY) || !defined(NRM_MEMSET)
#include <string.h>
#endif
#ifndef NRM_MEMCPY
#define NRM_MEMCPY(to, from, bytes) memcpy((to), (from), (bytes))
#endif
#ifndef NRM_MEMSET
#define NRM_MEMSET(to, byte, bytes) memset((to), (byte), (bytes))
#endif
#ifndef NRM_SQRT /* (math.h would declare names such as gamma, which a program may use itself) */
#if defined(__GNUC__) || defined(__clang__)
#define NRM_SQRT(a) \
    (sizeof(nrm_acc) == sizeof(float) ? (nrm_acc)__builtin_sqrtf((float)(a)) \
                                      : (nrm_acc)__builtin_sqrt((double)(a)))
#else
#include <math.h>
#define NRM_SQRT(a) \
    (sizeof(nrm_acc) == sizeof(float) ? (nrm_acc)sqrtf((float)(a)) : (nrm_acc)sqrt((double)(a)))
#endif
#endif
#ifdef NRM_OPENMP
#include <omp.h>
#endif
/* No fused a·b + c, except in the matrix product (chapter 19). So all else has the same bits on
   every IEEE 754 machine; products have them too if compiled with -ffp-contract=off. */
#if defined(__clang__)
#if __clang_major__ >= 12 && (defined(__x86_64__) || defined(__i386__) || defined(__aarch64__))
#define NRM_PRECISE /* partial fast-math flags, which no macro tells, do not reach in here */
#pragma float_control(precise, on, push)
#endif
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC diagnostic push /* (gcc cannot see that a strip is never empty, that a loop ends) */
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Waggressive-loop-optimizations"
#pragma GCC push_options
#pragma GCC optimize("fp-contract=off", "no-math-errno")
#if defined(__x86_64__) && !defined(__AVX__) && !defined(__OPTIMIZE_SIZE__)
/* Off: they take time to compile and make nothing faster, as vectors are written out here. */
#pragma GCC optimize("no-inline-small-functions", "no-schedule-insns2", "no-gcse", "no-tree-vrp")
#pragma GCC optimize("no-tree-bit-ccp", "no-tree-slsr")
#pragma GCC optimize("tree-vectorize", "vect-cost-model=dynamic") /* until ## 19, also at -O2 */
#endif
#elif defined(_MSC_VER)
#pragma fp_contract(off)
#endif
/*
# Part I: the layers

## What the layers stand on

Vectors, caches and the order of sums belong to Part II, the machine room. This is what it offers.

**Argument tables.** A function lists its arrays, with their lengths and roles. `NRM_CHECK` finds a
missing array and an output that overlaps something else.
*/
/* Read, may be NULL; written, overlaps no other; not NULL; may be the same as another such. */
enum { NRMI_IN = 0, NRMI_OUT = 1, NRMI_NEEDED = 2, NRMI_IN_PLACE = 4 };
typedef struct nrmi_arg {
    const void *at;
    size_t bytes;
    int role;
} nrmi_arg;
#define NRM_ARG(array, count, role) {(array), (count) * sizeof *(array), (role)}
#define NRM_CHECK(table) nrmi_check_args((table), sizeof(table) / sizeof *(table))

/* The arguments that norms share, under the names of the function's parameters, and lengths. */
#define NRM_FORWARD_ARGS(numbers, groups, params, y_role, x_role, saved) \
    NRM_ARG(y, numbers, NRMI_OUT | (y_role)), NRM_ARG(x, numbers, x_role), \
        NRM_ARG(mean, groups, NRMI_OUT | (saved)), NRM_ARG(rstd, groups, NRMI_OUT | (saved)), \
        NRM_ARG(gamma, params, NRMI_IN), NRM_ARG(beta, params, NRMI_IN)
#define NRM_BACKWARD_ARGS(numbers, groups, params, mean_role) \
    NRM_ARG(dx, numbers, NRMI_OUT | NRMI_IN_PLACE), NRM_ARG(dgamma, params, NRMI_OUT), \
        NRM_ARG(dbeta, params, NRMI_OUT), NRM_ARG(dy, numbers, NRMI_NEEDED | NRMI_IN_PLACE), \
        NRM_ARG(x, numbers, NRMI_NEEDED), NRM_ARG(mean, groups, mean_role), \
        NRM_ARG(rstd, groups, NRMI_NEEDED), NRM_ARG(gamma, params, NRMI_IN)
#define NRM_RUNNING_ARGS(C, role) \
    NRM_ARG(running != NULL ? running->mean : NULL, C, role), \
        NRM_ARG(running != NULL ? running->var : NULL, C, role)
static int nrmi_check_args(const nrmi_arg *arg, size_t count); /* NRM_OK, NRM_ENULL, NRM_EALIAS */
static int nrmi_check_sizes(size_t a, size_t b, size_t c); /* b, c > 0; a·b·c is addressable */
static int nrmi_check_eps(nrm_real eps); /* finite and not negative */
static int nrmi_finite(nrm_acc v); /* neither NaN nor infinity */
#define NRM_ALIGN 64 /* a cache line; also enough for any vector load */
typedef struct nrmi_arena { /* hands out pieces of a block; only counts when base is NULL */
    unsigned char *base;
    size_t used; /* SIZE_MAX: more than there can be */
} nrmi_arena;
static void *nrmi_take(nrmi_arena *arena, size_t count, size_t size); /* aligned to NRM_ALIGN */

static inline size_t nrmi_least(size_t a, size_t b)
{
    return a < b ? a : b;
}

#define NRM_PLUS(p, i) ((p) != NULL ? (p) + (i) : NULL)
/* a[i], or what stands for it where there is no array. */
static inline nrm_acc nrmi_or(const nrm_real *a, size_t i, nrm_acc otherwise)
{
    return a != NULL ? (nrm_acc)a[i] : otherwise;
}

/*
**Views.** A layer normalizes *groups* of values that share one mean and one variance. A view says
where they lie: channels of `[N][C][S]` for batch norm, rows of `[N][D]` for layer norm. Primitives
work on the w groups from group g on, a strip of `nrmi_strip(&v)` or a band of rows. x, y, dx and dy
point to the start of the view, arrays of a number for each group (mean, rstd, scale) to group g.
*/
#if defined(__GNUC__) || defined(__clang__) /* never inlined; always; where a cache line begins */
#define NRM_APART __attribute__((noinline))
#define NRM_INLINE static inline __attribute__((always_inline))
#define NRM_ON_LINE __attribute__((aligned(NRM_SLOTS > 1 ? 64 : 4)))
#else
#define NRM_APART
#define NRM_INLINE static inline
#define NRM_ON_LINE
#endif
#ifdef NRM_PLAIN
#undef NRM_WIDTH
#define NRM_WIDTH 1
#define NRM_SLOTS 1
#define NRM_SOME (64 / sizeof(nrm_acc))
#else
#define NRM_SOME 64
#if !defined(NRM_WIDTH) && defined(NRM_NO_LIBC)
#define NRM_WIDTH 64
#elif !defined(NRM_WIDTH)
#define NRM_WIDTH 1024
#elif NRM_WIDTH < 1
#error "normlayers.h: NRM_WIDTH must be at least 1"
#endif
#define NRM_SLOTS (NRM_WIDTH < 64 ? 64 : NRM_WIDTH) /* groups that the structs below hold */
#endif
enum { NRMI_COLUMNS, NRMI_RUNS, NRMI_ROWS };
typedef struct nrmi_view { /* a group is `runs` runs of `length` neighbours, */
    size_t groups, runs, length;
    size_t pitch, apart; /* its runs `pitch` apart; the next group begins `apart` further on */
    size_t sets, ahead; /* of γ and β, which rows take in turn; how far on to fetch, or 0 */
    int kind; /* NRMI_COLUMNS: neighbours belong to different groups */
} nrmi_view;

typedef struct NRM_OWN(nrmi_centre) { /* means of some groups, split: SUM.10 */
    nrm_real high[NRM_SLOTS] NRM_ON_LINE, low[NRM_SLOTS];
} nrmi_centre;
typedef struct NRM_OWN(nrmi_moments) { /* mean and variance of some groups */
    nrm_acc mean[NRM_SLOTS], var[NRM_SLOTS];
    nrmi_centre at; /* the mean, split */
} nrmi_moments;
typedef struct NRM_OWN(nrmi_sums) { /* of dy and dy·x̂ over some groups */
    nrm_acc dy[NRM_SLOTS], dy_xhat[NRM_SLOTS];
} nrmi_sums;
#define NRM_WIDE (NRM_SLOTS > 1 ? 4 * NRM_WIDTH : 1)
typedef struct NRM_OWN(nrmi_columns) { /* sums down columns */
    nrm_real *dy, *dy_xhat; /* over the rows since the last fold */
    nrm_acc *dbeta, *dgamma; /* over all rows */
} nrmi_columns;
#define NRM_COLUMNS(name, width) /* a variable with room for so many columns */ \
    nrm_real name##_dy[width], name##_dy_xhat[width]; \
    nrm_acc name##_dbeta[width], name##_dgamma[width]; \
    nrmi_columns name = {name##_dy, name##_dy_xhat, name##_dbeta, name##_dgamma}

static nrmi_view nrmi_channels(size_t N, size_t C, size_t S); /* of [N][C][S]: C groups */
static nrmi_view nrmi_rows(size_t N, size_t D); /* of [N][D]: N groups */
static size_t nrmi_strip(const nrmi_view *v, int once); /* groups at a time; x read once? */
/* Means and variances; of `squares`, 0 and the mean squares. `put` takes known ones, with the mean
   in two parts. `lost`: is one not finite, or the variance too large to be `stored`? */
static void nrmi_moments_of(
    nrmi_moments *t, const nrm_real *x, const nrmi_view *v, size_t g, size_t w);
static void nrmi_squares_of(
    nrmi_moments *t, const nrm_real *x, const nrmi_view *v, size_t g, size_t w);
static void nrmi_put(nrmi_moments *t, size_t k, nrm_acc x1, nrm_acc offset, nrm_acc var);
#define NRM_RECALL(t, k, mean, var) nrmi_put(t, k, mean, (nrm_acc)-0.0, var) /* a + −0 is a */
static int nrmi_lost(const nrmi_moments *t, size_t w, int stored);
/* Saved means for a backward pass; NULL: 0. If an nrm_acc has no more digits than an nrm_real, the
   lost ones are taken from x, unless it is NULL. */
static void nrmi_saved(nrmi_centre *mu, const nrm_acc *mean, const nrm_real *x, const nrmi_view *v,
    size_t g, size_t w);
/* ∑u and ∑u·x̂ for u = dy, or dy·γ along a row, and x̂ = (x − mean)·rstd. gamma, rstd: NULL for 1;
   dy NULL: u is x less the high part of the mean. */
static void nrmi_sums_of(nrmi_sums *s, const nrm_real *dy, const nrm_real *gamma, const nrm_real *x,
    const nrmi_centre *mu, const nrm_acc *rstd, const nrmi_view *v, size_t g, size_t w);
/* y = (x − mean)·scale + shift for each group; shift may be NULL for 0. */
static void nrmi_affine(nrm_real *y, const nrm_real *x, const nrmi_centre *mu, const nrm_acc *scale,
    const nrm_acc *shift, const nrmi_view *v, size_t g, size_t w);
/* y = (x − mean)·rstd·γ + β with γ and β along each row; both may be NULL. */
static void nrmi_affine_rows(nrm_real *y, const nrm_real *x, const nrmi_centre *mu,
    const nrm_acc *rstd, const nrm_real *gamma, const nrm_real *beta, const nrmi_view *v, size_t g,
    size_t w);
/* dx = scale·(γ·dy − share·s.dy − x̂·share·s.dy_xhat); a γ other than 1 only with w = 1. */
static void nrmi_project(nrm_real *dx, const nrm_real *dy, nrm_acc gamma, const nrm_real *x,
    const nrmi_centre *mu, const nrm_acc *rstd, const nrm_acc *scale, const nrmi_sums *s,
    nrm_acc share, const nrmi_view *v, size_t g, size_t w);
/* dx = rstd·(dy·γ − share·s.dy − x̂·share·s.dy_xhat), γ along each row; adds ∑dy and ∑dy·x̂ of each
   column to `columns`. dx, columns, gamma and s may be NULL. */
static void nrmi_project_rows(nrm_real *dx, nrmi_columns *columns, const nrm_real *dy,
    const nrm_real *gamma, const nrm_real *x, const nrmi_centre *mu, const nrm_acc *rstd,
    const nrmi_sums *s, nrm_acc share, const nrmi_view *v, size_t g, size_t w);
/* Columns are summed band by band: `clear` starts their sums, `fold` ends a band. A band has `band`
   rows from g on, or `examples` rows of one set. `one_sweep`: all columns at once, one thread? */
static void nrmi_clear(nrmi_columns *columns, size_t width);
static void nrmi_fold(nrmi_columns *columns, size_t from, size_t to);
static size_t nrmi_band(const nrmi_view *v, size_t g);
static size_t nrmi_examples(const nrmi_view *v);
static int nrmi_one_sweep(const nrmi_view *v);
/* The next stretch of a view that a mask [runs·length] lets through, *at numbers from its start;
   *from is 0 at first. Returns 0 at the end. */
static int nrmi_next_stretch(
    nrmi_view *part, size_t *at, size_t *from, const nrmi_view *v, const unsigned char *mask);

/*
**Products, functions, random numbers.** `nrmi_product` makes c `[rows][cols]` += a·b, or = a·b if
`fresh`; element (i, k) of an operand stands at `at[i*row + k*col]`.
*/
typedef struct NRM_OWN(nrmi_matrix) {
    const nrm_real *at;
    size_t row, col;
} nrmi_matrix;
static nrmi_matrix nrmi_strided(const nrm_real *at, size_t row, size_t col);
static void nrmi_product(
    nrm_real *c, nrmi_matrix a, nrmi_matrix b, size_t rows, size_t cols, size_t depth, int fresh);
enum { NRMI_EXP = 0 }; /* a curve is this, NRM_TANH or NRM_SIGMOID */
static void nrmi_curve(nrm_real *y, const nrm_real *x, int curve, size_t n);
/* Of each row: its largest z, h; the sum of all other e^(z − h); its softmax p, or NULL. */
static void nrmi_softmax(
    nrm_real *p, nrm_acc *h, nrm_acc *rest, const nrm_real *z, size_t rows, size_t n);
static void nrmi_log(nrm_acc *v, size_t n); /* in place: normal, > 0; v [NRM_SOME] */
static inline nrm_acc nrmi_symmetric(nrm_rng *rng); /* uniform in ±1 */
/*
**Threads.** With `NRM_OPENMP` threads share the rounds of a loop that begins with `NRM_SHARE`, and
what any of them has `lost`. Nothing is summed across threads: their number changes no bit.
*/
#ifdef NRM_OPENMP
#define NRM_PRAGMA(text) _Pragma(#text)
#define NRM_SHARE(numbers) \
    NRM_PRAGMA(omp parallel for schedule(static) if (nrmi_threads(numbers) > 1))
#define NRM_SHARE_LOST(numbers) \
    NRM_PRAGMA(omp parallel for schedule(static) reduction(| : lost) if (nrmi_threads(numbers) > 1))
#else
#define NRM_SHARE(numbers)
#define NRM_SHARE_LOST(numbers)
#endif
static size_t nrmi_threads(size_t numbers); /* that would share work on so many numbers */
/*
## 1  Batch normalization

*The question it answers: is this value large for its feature, judged by the rest of the batch?*

Ioffe and Szegedy (2015) standardize every feature over the mini-batch, differentiate through that,
and give each feature a scale γ and a shift β of its own.

### 1.1  Shapes

Each channel of `[N][C][S]` has statistics of its own, over M = N·S values; i below runs over these.

### 1.2  Running statistics

Inference has no batch. So training keeps a running mean m and variance u. Each batch moves
them by a weight w (`new_weight`) towards its μ and v; with `cumulative` all t batches count alike.

    m ← (1 − w)·m + w·μ            [BN.8]
    u ← (1 − w)·u + w·v·M/(M − 1)  [BN.9]
    w = 1/t                        [BN.10]

M/(M − 1) makes u unbiased for independent values; `biased` omits it. Only finite m, u are stored.
*/
static int nrmi_track(
    const nrm_running *to, const nrm_acc *mean, const nrm_acc *var, size_t c, size_t w, nrm_acc M)
{
    const nrm_acc unbiased = to->biased ? 1 : M / (M - 1), t = (nrm_acc)(to->batches + 1);
    const nrm_acc new_weight = to->cumulative ? 1 / t : (nrm_acc)to->new_weight; /* BN.10 */
    const nrm_acc kept = 1 - new_weight;
    int lost = 0;
    size_t k;
    for (k = 0; k < w; k++) {
        nrm_real *m = to->mean + c + k, *u = to->var + c + k;
        const nrm_acc next_m = kept * (nrm_acc)*m + new_weight * mean[k]; /* BN.8 */
        const nrm_acc next_u = kept * (nrm_acc)*u + new_weight * (var[k] * unbiased); /* BN.9 */
        const nrm_real to_m = (nrm_real)next_m, to_u = (nrm_real)next_u;
        const int fits = nrmi_finite((nrm_acc)to_m) && nrmi_finite((nrm_acc)to_u);
        if (fits) *m = to_m, *u = to_u;
        lost |= !fits;
    }
    return lost;
}

static int nrmi_check_running(const nrm_running *r, int mode, size_t C)
{
    size_t c;
    if (r == NULL) return mode == NRM_TRAIN ? NRM_OK : NRM_ENULL;
    if (r->mean == NULL || r->var == NULL) return NRM_ENULL;
    if (mode == NRM_TRAIN)
        return r->cumulative || (r->new_weight > 0 && r->new_weight <= 1) ? NRM_OK : NRM_EWEIGHT;
    for (c = 0; c < C; c++)
        if (!(r->var[c] >= 0) || !nrmi_finite((nrm_acc)r->var[c]) ||
            !nrmi_finite((nrm_acc)r->mean[c]))
            return NRM_ESTATS;
    return NRM_OK;
}

static int nrmi_check_batchnorm(int mode, nrm_real eps, size_t N, size_t C, size_t S)
{
    const int rc = nrmi_check_sizes(N, C, S);
    if (mode != NRM_TRAIN && mode != NRM_INFER && mode != NRM_FROZEN) return NRM_EMODE;
    if (rc == NRM_OK && mode == NRM_TRAIN && N == 1 && S == 1) return NRM_EBATCH;
    return rc == NRM_OK ? nrmi_check_eps(eps) : rc;
}

/* Adds sums over w channels to the gradient of a parameter, if it is wanted. */
static void nrmi_give(nrm_real *to, size_t c, const nrm_acc *sum, size_t w)
{
    size_t k;
    for (k = 0; k < w && to != NULL; k++) to[c + k] += (nrm_real)sum[k];
}
#define NRM_GIVE(c, dy_xhat, dy, w) nrmi_give(dgamma, c, dy_xhat, w), nrmi_give(dbeta, c, dy, w)

/*
### 1.3  Forward

    μ = (1/M)·∑ᵢ xᵢ         [BN.1]
    v = (1/M)·∑ᵢ (xᵢ − μ)²  [BN.2]
    r = 1/√(v + ε)          [BN.3]
    x̂ᵢ = (xᵢ − μ)·r         [BN.4]
    yᵢ = γ·x̂ᵢ + β           [BN.5]

In the modes *infer* and *frozen* m and u take the place of μ and v:

    yᵢ = γ·(xᵢ − m)/√(u + ε) + β  [BN.11]
*/
NRM_DEF int nrm_batchnorm_forward(nrm_real *y, nrm_acc *mean, nrm_acc *rstd, nrm_running *running,
    const nrm_real *x, const nrm_real *gamma, const nrm_real *beta, int mode, nrm_real eps,
    size_t N, size_t C, size_t S)
{
    const int train = mode == NRM_TRAIN, stored = running != NULL;
    const int needed = NRMI_NEEDED | (mode == NRM_INFER ? NRMI_IN_PLACE : 0);
    const int saved = mode == NRM_INFER ? 0 : NRMI_NEEDED;
    const nrmi_arg args[] = {NRM_FORWARD_ARGS(N * C * S, C, C, needed, needed, saved),
        NRM_RUNNING_ARGS(C, train ? NRMI_OUT : NRMI_IN)};
    const nrmi_view v = nrmi_channels(N, C, S);
    size_t c, step;
    int lost = 0, rc = nrmi_check_batchnorm(mode, eps, N, C, S);
    if (rc != NRM_OK || N == 0 || (rc = NRM_CHECK(args)) != NRM_OK) return rc;
    if ((rc = nrmi_check_running(running, mode, C)) != NRM_OK) return rc;
    step = nrmi_strip(&v, !train);
    NRM_SHARE_LOST(N * C * S)
    for (c = 0; c < C; c += step) {
        const size_t w = nrmi_least(C - c, step);
        nrm_acc r[NRM_SLOTS], scale[NRM_SLOTS], shift[NRM_SLOTS];
        nrmi_moments t;
        size_t k;
        if (train) nrmi_moments_of(&t, x, &v, c, w); /* BN.1, BN.2 */
        for (k = train ? w : 0; k < w; k++) /* BN.11 */
            NRM_RECALL(&t, k, (nrm_acc)running->mean[c + k], (nrm_acc)running->var[c + k]);
        lost |= nrmi_lost(&t, w, stored);
        for (k = 0; k < w; k++) {
            r[k] = 1 / NRM_SQRT(t.var[k] + (nrm_acc)eps); /* BN.3 */
            scale[k] = nrmi_or(gamma, c + k, 1) * r[k];
            shift[k] = nrmi_or(beta, c + k, 0);
            lost |= !nrmi_finite(r[k]);
        }
        nrmi_affine(y, x, &t.at, scale, shift, &v, c, w); /* BN.4, BN.5: (x − μ)·γr + β. */
        if (train && stored)
            lost |= nrmi_track(running, t.mean, t.var, c, w, (nrm_acc)N * (nrm_acc)S);
        for (k = 0; k < w && mean != NULL; k++) mean[c + k] = t.mean[k];
        for (k = 0; k < w && rstd != NULL; k++) rstd[c + k] = r[k];
    }
    if (train && stored) running->batches++;
    return lost ? NRM_NONFINITE : NRM_OK;
}

/*
BN.19 needs v divided by M, not by M − 1. M = 1, where y is always β, is refused. By BN.1 to BN.4

    ∑ᵢ x̂ᵢ = 0               (BN.6)
    ⟨x̂²⟩ = v·r² = 1 − ε·r²  (BN.7)

### 1.4  Backward

β is added to all values of the channel and γ multiplies them, so their gradients are sums:

    dβ = ∑ᵢ dyᵢ          [BN.12]
    dγ = ∑ᵢ dyᵢ·x̂ᵢ       [BN.13]
    gᵢ = ∂L/∂x̂ᵢ = γ·dyᵢ  (BN.14)

xᵢ reaches x̂ⱼ directly if i = j, through μ, and through v and r; in ∂v the path through μ adds 0:

    ∂μ/∂xᵢ = 1/M                                                        (BN.15)
    ∂v/∂xᵢ = (2/M)·(xᵢ − μ) − (2/M)·(1/M)·∑ⱼ (xⱼ − μ) = (2/M)·(xᵢ − μ)  (BN.16)
    ∂r/∂xᵢ = −½·r³·∂v/∂xᵢ = −(1/M)·r²·x̂ᵢ                                (BN.17)

By the product rule on BN.4 these paths add up to r·δᵢⱼ − r/M + (xⱼ − μ)·∂r/∂xᵢ:

    ∂x̂ⱼ/∂xᵢ = r·(δᵢⱼ − 1/M − x̂ᵢ·x̂ⱼ/M)  (BN.18)

Multiply by gⱼ and sum over j: this takes two means. In mode frozen only the direct path is left:

    dxᵢ = ∑ⱼ gⱼ·∂x̂ⱼ/∂xᵢ = γ·r·(dyᵢ − ⟨dy⟩ − x̂ᵢ·⟨dy·x̂⟩)  [BN.19]
    dxᵢ = γ·r·dyᵢ (frozen)                              [BN.20]
*/
NRM_DEF int nrm_batchnorm_backward(nrm_real *dx, nrm_real *dgamma, nrm_real *dbeta,
    const nrm_real *dy, const nrm_real *x, const nrm_acc *mean, const nrm_acc *rstd,
    const nrm_real *gamma, int mode, size_t N, size_t C, size_t S)
{
    const nrmi_arg args[] = {NRM_BACKWARD_ARGS(N * C * S, C, C, NRMI_NEEDED)};
    const nrmi_view v = nrmi_channels(N, C, S);
    const size_t step = nrmi_strip(&v, 0);
    const nrm_acc M = (nrm_acc)N * (nrm_acc)S;
    size_t c;
    int rc = nrmi_check_batchnorm(mode, NRM_EPS, N, C, S);
    if (mode == NRM_INFER) return NRM_EMODE;
    if (rc != NRM_OK || N == 0 || (rc = NRM_CHECK(args)) != NRM_OK) return rc;
    NRM_SHARE(N * C * S)
    for (c = 0; c < C; c += step) {
        const size_t w = nrmi_least(C - c, step);
        const nrm_acc *r = rstd + c;
        nrm_acc scale[NRM_SLOTS];
        nrmi_centre mu;
        nrmi_sums s;
        size_t k;
        nrmi_saved(&mu, mean + c, mode == NRM_TRAIN ? x : NULL, &v, c, w);
        nrmi_sums_of(&s, dy, NULL, x, &mu, r, &v, c, w); /* BN.12, BN.13: ∑dy, ∑dy·x̂. */
        NRM_GIVE(c, s.dy_xhat, s.dy, w);
        for (k = 0; k < w; k++) scale[k] = nrmi_or(gamma, c + k, 1) * r[k];
        if (dx != NULL && mode == NRM_TRAIN)
            nrmi_project(dx, dy, 1, x, &mu, r, scale, &s, 1 / M, &v, c, w); /* BN.19 */
        if (dx == NULL || mode == NRM_TRAIN) continue;
        nrmi_saved(&mu, NULL, NULL, &v, c, w);
        nrmi_affine(dx, dy, &mu, scale, NULL, &v, c, w); /* BN.20: (dy − 0)·γr */
    }
    return NRM_OK;
}

/*
### 1.5  What it means

Except for ε and the factor γ·r, BN.19 is a projection. It removes from dy its mean and its part
along x̂, since shifting all x leaves y alone, as does stretching them, up to ε. By BN.6 and BN.7

    ∑ᵢ dxᵢ = 0                     (BN.21)
    ∑ᵢ dxᵢ·x̂ᵢ = γ·r·M·ε·r²·⟨dy·x̂⟩  (BN.22)

With M = 2 nothing else is left: if the values differ by much more than √ε, x̂ is ±1, and

    dx₁ = −dx₂ = ½·γ·ε·r³·(dy₁ − dy₂) for M = 2  (BN.23)

is the fraction ε·r² of γ·r·dyᵢ less its mean. So the layers before such a norm hardly learn.
*/
/*
## 2  Layer normalization

*The question it answers: is this value large for its example, judged by the other features?*

Ba, Kiros and Hinton (2016) average over features instead of examples. Rows are independent, so
training and inference compute the same, even with a batch of one or in a recurrent network. Below,
i and j run over the D features of one row, and n (LN.8) over the rows.

### 2.1  Forward

    μ = (1/D)·∑ⱼ xⱼ         [LN.1]
    v = (1/D)·∑ⱼ (xⱼ − μ)²  [LN.2]
    r = 1/√(v + ε)          [LN.3]
    x̂ᵢ = (xᵢ − μ)·r         [LN.4]
    yᵢ = γᵢ·x̂ᵢ + βᵢ         [LN.5]

The function also serves RMS norm (`rms`: no mean) and group norm: rows take G sets of γ, β in turn.
*/
static int nrmi_rows_forward(int rms, nrm_real *y, nrm_acc *mean, nrm_acc *rstd, const nrm_real *x,
    const nrm_real *gamma, const nrm_real *beta, nrm_real eps, size_t rows, size_t D, size_t G)
{
    const int needed = NRMI_NEEDED | (mean == NULL && rstd == NULL ? NRMI_IN_PLACE : 0);
    const nrmi_arg args[] = {NRM_FORWARD_ARGS(rows * D, rows, G * D, needed, needed, 0)};
    nrmi_view v = nrmi_rows(rows, D);
    size_t n, step;
    int lost = 0, rc = nrmi_check_sizes(rows, D, 1);
    if (rc == NRM_OK) rc = nrmi_check_eps(eps);
    if (rc != NRM_OK || rows == 0 || (rc = NRM_CHECK(args)) != NRM_OK) return rc;
    if (!rms && (mean == NULL) != (rstd == NULL)) return NRM_ENULL;
    v.sets = G;
    step = nrmi_strip(&v, 0);
    NRM_SHARE_LOST(rows * D)
    for (n = 0; n < rows; n += step) {
        const size_t w = nrmi_least(rows - n, step);
        nrmi_moments t;
        nrm_acc r[NRM_SLOTS];
        size_t k;
        if (rms) nrmi_squares_of(&t, x, &v, n, w); /* RMS.1 */
        if (!rms) nrmi_moments_of(&t, x, &v, n, w); /* LN.1, LN.2 */
        lost |= nrmi_lost(&t, w, 0);
        for (k = 0; k < w; k++) r[k] = 1 / NRM_SQRT(t.var[k] + (nrm_acc)eps); /* LN.3 */
        for (k = 0; k < w; k++) lost |= !nrmi_finite(r[k]);
        nrmi_affine_rows(y, x, &t.at, r, gamma, beta, &v, n, w); /* LN.4, LN.5 */
        for (k = 0; k < w && mean != NULL; k++) mean[n + k] = t.mean[k];
        for (k = 0; k < w && rstd != NULL; k++) rstd[n + k] = r[k];
    }
    return lost ? NRM_NONFINITE : NRM_OK;
}

NRM_DEF int nrm_layernorm_forward(nrm_real *y, nrm_acc *mean, nrm_acc *rstd, const nrm_real *x,
    const nrm_real *gamma, const nrm_real *beta, nrm_real eps, size_t N, size_t D)
{
    return nrmi_rows_forward(0, y, mean, rstd, x, gamma, beta, eps, N, D, 1);
}

/*
Equal features, or D = 1, are no error: v = 0, x̂ = 0, y = β. As in BN.6 and BN.7,

    ∑ᵢ x̂ᵢ = 0               (LN.6)
    ⟨x̂²⟩ = v·r² = 1 − ε·r²  (LN.7)

### 2.2  Backward

All rows share γ and β, so each row n adds its part to their gradients:

    dβᵢ = ∑ₙ dyₙᵢ         [LN.8]
    dγᵢ = ∑ₙ dyₙᵢ·x̂ₙᵢ     [LN.9]
    gᵢ = ∂L/∂x̂ᵢ = dyᵢ·γᵢ  [LN.10]

x reaches x̂ by the same three paths as in batch norm, with D in place of M:

    ∂v/∂xᵢ = (2/D)·(xᵢ − μ)               (LN.11)
    ∂r/∂xᵢ = −½·r³·∂v/∂xᵢ = −(1/D)·r²·x̂ᵢ  (LN.12)
    ∂x̂ⱼ/∂xᵢ = r·(δᵢⱼ − 1/D − x̂ᵢ·x̂ⱼ/D)     (LN.13)

The Jacobian is symmetric, and multiplying it by g takes two means of the row:

    dxᵢ = ∑ⱼ gⱼ·∂x̂ⱼ/∂xᵢ = r·(gᵢ − ⟨g⟩ − x̂ᵢ·⟨g·x̂⟩)  [LN.14]

Here γ is inside the means, since it changes along the axis that is averaged: ⟨g⟩ is not γ·⟨dy⟩.
The gradients of γ and β are sums down columns, dx needs sums along rows: one sweep does both.
*/
typedef struct NRM_OWN(nrmi_backward) { /* arrays of a backward pass; RMS norm has no mean */
    nrm_real *dx, *dgamma, *dbeta;
    const nrm_real *dy, *x, *gamma;
    const nrm_acc *mean, *rstd;
} nrmi_backward;

static void nrmi_rows_sweep(
    const nrmi_backward *p, nrmi_columns *columns, const nrmi_view *v, size_t n, size_t w)
{
    const nrm_acc *mean = p->mean != NULL ? p->mean + n : NULL, *r = p->rstd + n;
    const nrm_acc share = 1 / (nrm_acc)v->length;
    nrmi_centre mu;
    nrmi_sums s;
    size_t k;
    nrmi_saved(&mu, mean, p->x, v, n, w);
    nrmi_sums_of(&s, p->dy, p->gamma, p->x, &mu, r, v, n, w); /* LN.10: ∑g and ∑g·x̂ by row */
    for (k = 0; k < w && mean == NULL; k++) s.dy[k] = 0; /* RMS.4 has no mean of g */
    nrmi_project_rows(
        p->dx, columns, p->dy, p->gamma, p->x, &mu, r, &s, share, v, n, w); /* LN.8, LN.9, LN.14 */
}

/* Adds the gradients of gamma and beta alone, of `width` columns from c on, which share one set. */
static void nrmi_rows_columns(
    nrmi_columns *columns, const nrmi_backward *p, const nrmi_view *rows, size_t c, size_t width)
{
    const size_t G = rows->sets, D = rows->length, examples = rows->groups / G, set = c / D;
    nrm_acc means[NRM_SLOTS], r[NRM_SLOTS];
    nrmi_view row = nrmi_rows(examples, D), part = row; /* row n of this set begins at n·G·D */
    nrmi_centre mu;
    size_t n, k, w;
    row.apart = part.apart = G * D;
    part.length = width;
    for (n = 0; n < examples; n += w) {
        w = nrmi_least(examples - n, nrmi_examples(rows)); /* as in one sweep: same bits */
        for (k = 0; k < w; k++) r[k] = p->rstd[(n + k) * G + set];
        for (k = 0; k < w && p->mean != NULL; k++) means[k] = p->mean[(n + k) * G + set];
        nrmi_saved(&mu, p->mean != NULL ? means : NULL, p->x + set * D, &row, n, w);
        nrmi_project_rows(NULL, columns, p->dy + c, NULL, p->x + c, &mu, r, NULL, 0, &part, n, w);
        nrmi_fold(columns, 0, width);
    }
}

static void nrmi_rows_together(
    const nrmi_backward *p, nrmi_columns *columns, const nrmi_view *v)
{
    const size_t D = v->length, all = v->sets * D;
    size_t n, w;
    nrmi_clear(columns, all);
    for (n = 0; n < v->groups; n += w) {
        const size_t first = n % v->sets * D;
        w = nrmi_band(v, n);
        nrmi_rows_sweep(p, columns, v, n, w);
        nrmi_fold(columns, first, nrmi_least(all, first + w * D));
    }
    nrmi_give(p->dbeta, 0, columns->dbeta, all);
    nrmi_give(p->dgamma, 0, columns->dgamma, all);
}

/* Apart, so that rows of usual width do not pay for the stack of wide ones. */
static NRM_APART void nrmi_rows_wide(const nrmi_backward *p, const nrmi_view *v)
{
    NRM_COLUMNS(columns, NRM_WIDE);
    nrmi_rows_together(p, &columns, v);
}

static int nrmi_rows_backward(int rms, nrm_real *dx, nrm_real *dgamma, nrm_real *dbeta,
    const nrm_real *dy, const nrm_real *x, const nrm_acc *mean, const nrm_acc *rstd,
    const nrm_real *gamma, size_t rows, size_t D, size_t G)
{
    const nrmi_arg args[] = {NRM_BACKWARD_ARGS(rows * D, rows, G * D, rms ? NRMI_IN : NRMI_NEEDED)};
    const nrmi_backward p = {dx, dgamma, dbeta, dy, x, gamma, mean, rstd};
    const int wanted = dgamma != NULL || dbeta != NULL;
    nrmi_view v = nrmi_rows(rows, D);
    int rc = nrmi_check_sizes(rows, D, 1);
    if (rc != NRM_OK || rows == 0 || (rc = NRM_CHECK(args)) != NRM_OK) return rc;
    v.sets = G;
    if (wanted && dx != NULL && nrmi_one_sweep(&v)) {
        NRM_COLUMNS(columns, NRM_SLOTS);
        if (G * D > NRM_SLOTS)
            nrmi_rows_wide(&p, &v);
        else
            nrmi_rows_together(&p, &columns, &v);
        return NRM_OK;
    }
    if (wanted) { /* the columns first: dx may be dy */
        const nrmi_view column = nrmi_channels(rows / G, D, 1);
        const size_t width = nrmi_strip(&column, 0), strips = (D + width - 1) / width;
        size_t i;
        NRM_SHARE(rows * D)
        for (i = 0; i < G * strips; i++) {
            const size_t from = i % strips * width, c = i / strips * D + from;
            const size_t w = nrmi_least(D - from, width);
            NRM_COLUMNS(columns, NRM_SLOTS);
            nrmi_clear(&columns, w);
            nrmi_rows_columns(&columns, &p, &v, c, w);
            NRM_GIVE(c, columns.dgamma, columns.dbeta, w);
        }
    }
    if (dx != NULL) {
        const size_t step = nrmi_band(&v, 0);
        size_t n;
        NRM_SHARE(rows * D)
        for (n = 0; n < rows; n += step)
            nrmi_rows_sweep(&p, NULL, &v, n, nrmi_least(rows - n, step));
    }
    return NRM_OK;
}

NRM_DEF int nrm_layernorm_backward(nrm_real *dx, nrm_real *dgamma, nrm_real *dbeta,
    const nrm_real *dy, const nrm_real *x, const nrm_acc *mean, const nrm_acc *rstd,
    const nrm_real *gamma, size_t N, size_t D)
{
    return nrmi_rows_backward(0, dx, dgamma, dbeta, dy, x, mean, rstd, gamma, N, D, 1);
}

/*
### 2.3  What it means

Except for ε and the factor r, LN.13 is a projection, so dx is almost orthogonal to x̂:

    ∑ᵢ dxᵢ = 0                (LN.15)
    ∑ᵢ dxᵢ·x̂ᵢ = D·ε·r³·⟨g·x̂⟩  (LN.16)

**A variant.** The Annotated Transformer divides by D − 1 and adds ε to the standard deviation s.
With r = 1/(s + ε), LN.14 gains a factor κ; where s = 0, κ·x̂ᵢ is 0.

    x̂ᵢ = (xᵢ − μ)/(s + ε), s = √(∑ⱼ (xⱼ − μ)²/(D − 1))    (LN.17)
    dxᵢ = r·(gᵢ − ⟨g⟩ − κ·x̂ᵢ·⟨g·x̂⟩), κ = D/((D − 1)·r·s)  (LN.18)
*/
/*
## 3  Noisy batch normalization

*The question it answers: does batch norm help because it keeps a network's distributions steady?*

Santurkar et al. (2018) made them unsteady: behind each batch norm they add noise whose mean and
scale change at every step. If steadiness helped, the help should be gone.
*/
NRM_DEF nrm_noise nrm_noise_paper(void)
{
    const nrm_noise noise = {(nrm_real)0.5, (nrm_real)1.25, (nrm_real)0.1, (nrm_real)0.1};
    return noise;
}

static int nrmi_check_noise(const nrm_noise *q)
{
    const nrm_real v[4] = {q->mean_range, q->scale_max, q->mean_jitter, q->scale_jitter};
    size_t i;
    for (i = 0; i < 4; i++)
        if (!(v[i] >= 0 && nrmi_finite((nrm_acc)v[i]))) return NRM_ENOISE;
    return NRM_OK;
}

/*
### 3.1  Forward

y is the output of batch norm, with γ and β. At every step each unit c in turn draws the centre of
its noise, and then, 64 samples at a time, factors s and offsets m around that centre:

    μ_c ~ U(−n_μ, n_μ)              [NB.1]
    σ_c ~ U(1, n_σ)                 [NB.2]
    m_ic ~ U(μ_c − r_μ, μ_c + r_μ)  [NB.3]
    s_ic ~ N(σ_c, r_σ²)             [NB.4]
    zᵢ = sᵢ·yᵢ + mᵢ                 [NB.5]

The mean factor is not 1, although in inference there is no noise:

    E[s] = (1 + n_σ)/2, E[m] = 0  (NB.6)
*/
static void nrmi_noise(nrm_real *y, nrm_real *scale, const nrm_noise *noise, nrm_rng *rng, size_t N,
    size_t C, size_t S)
{
    const nrm_acc n_mu = (nrm_acc)noise->mean_range, n_sigma = (nrm_acc)noise->scale_max;
    const nrm_acc r_mu = (nrm_acc)noise->mean_jitter, r_sigma = (nrm_acc)noise->scale_jitter;
    nrm_real z[64];
    size_t n, c;
    for (c = 0; c < C; c++) {
        const nrm_acc mu = n_mu * nrmi_symmetric(rng); /* NB.1 */
        const nrm_acc sigma = 1 + (n_sigma - 1) * (nrmi_symmetric(rng) + 1) / 2; /* NB.2 */
        for (n = 0; n < N * S; n++) {
            const size_t i = (n / S * C + c) * S + n % S, k = n % 64;
            if (k == 0) nrm_rng_normal(rng, z, nrmi_least(N * S - n, 64));
            const nrm_acc m = mu + r_mu * nrmi_symmetric(rng); /* NB.3 */
            scale[i] = (nrm_real)(sigma + r_sigma * (nrm_acc)z[k]); /* NB.4 */
            y[i] = (nrm_real)((nrm_acc)scale[i] * (nrm_acc)y[i] + m); /* NB.5 */
        }
    }
}

NRM_DEF int nrm_noisy_batchnorm_forward(nrm_real *y, nrm_real *scale, nrm_acc *mean, nrm_acc *rstd,
    nrm_running *running, const nrm_real *x, const nrm_real *gamma, const nrm_real *beta,
    const nrm_noise *noise, nrm_rng *rng, int mode, nrm_real eps, size_t N, size_t C, size_t S)
{
    const int need = NRMI_NEEDED, noisy = mode == NRM_TRAIN && N > 0;
    const nrmi_arg args[] = {NRM_FORWARD_ARGS(N * C * S, C, C, need, need, 0),
        NRM_RUNNING_ARGS(C, NRMI_OUT), NRM_ARG(noise, 1, need),
        NRM_ARG(scale, N * C * S, NRMI_OUT | need), NRM_ARG(rng, 1, need)};
    int rc = nrmi_check_batchnorm(mode, eps, N, C, S);
    if (rc == NRM_OK && noisy && (rc = NRM_CHECK(args)) == NRM_OK) rc = nrmi_check_noise(noise);
    if (rc != NRM_OK) return rc;
    rc = nrm_batchnorm_forward(y, mean, rstd, running, x, gamma, beta, mode, eps, N, C, S);
    if (rc >= 0 && noisy) nrmi_noise(y, scale, noise, rng, N, C, S);
    return rc;
}

/*
### 3.2  Backward

In the gradient s and m are constants. So dy is multiplied by the saved s and passed to batch norm:

    dyᵢ = sᵢ·dzᵢ  [NB.7]

dx holds this product. Without dx the sums of BN.12 and BN.13 are taken here.
*/
NRM_DEF int nrm_noisy_batchnorm_backward(nrm_real *dx, nrm_real *dgamma, nrm_real *dbeta,
    const nrm_real *dy, const nrm_real *scale, const nrm_real *x, const nrm_acc *mean,
    const nrm_acc *rstd, const nrm_real *gamma, int mode, size_t N, size_t C, size_t S)
{
    const int train = mode == NRM_TRAIN;
    const nrmi_arg args[] = {NRM_BACKWARD_ARGS(N * C * S, C, C, NRMI_NEEDED),
        NRM_ARG(scale, N * C * S, train ? NRMI_NEEDED : NRMI_IN)};
    size_t i, c, n;
    int rc = mode == NRM_INFER ? NRM_EMODE : nrmi_check_batchnorm(mode, NRM_EPS, N, C, S);
    if (rc != NRM_OK || N == 0 || (rc = NRM_CHECK(args)) != NRM_OK) return rc;
    for (i = 0; i < N * C * S && train && dx != NULL; i++) dx[i] = scale[i] * dy[i]; /* NB.7 */
    if (!train || dx != NULL)
        return nrm_batchnorm_backward(
            dx, dgamma, dbeta, train ? dx : dy, x, mean, rstd, gamma, mode, N, C, S);
    for (c = 0; c < C; c++) {
        nrm_acc sum = 0, sum_xhat = 0;
        for (n = 0; n < N * S; n++) {
            const size_t at = (n / S * C + c) * S + n % S;
            const nrm_acc g = (nrm_acc)(scale[at] * dy[at]); /* NB.7 */
            sum += g;
            sum_xhat += g * (((nrm_acc)x[at] - mean[c]) * rstd[c]);
        }
        NRM_GIVE(c, &sum_xhat, &sum, 1);
    }
    return NRM_OK;
}

/*
## 4  Statistics that merge: synchronised, masked and virtual batches

*The question it answers: what if the values to normalize together are not in one place?*

A batch may be spread over machines, come in small portions, hold sequences of different lengths, or
be a whole data set. Counts, means and sums of squared deviations of its portions merge exactly,
except for rounding (Chan, Golub and LeVeque 1979).

### 4.1  Merging

Portions a and b with counts n, means μ and sums of squared deviations Q have together

    n = n_a + n_b                     [ST.1]
    μ = μ_a + δ·n_b/n, δ = μ_b − μ_a  [ST.2]
    Q = Q_a + Q_b + δ²·n_a·n_b/n      [ST.3]

From μ instead of μ_a, the squared deviations of a sum to Q_a + n_a·(μ_a − μ)². With those
of b, and ST.2, this is ST.3. Averaging the variances of workers loses its last term.
*/
static nrm_stats nrmi_stats_merge(nrm_stats a, nrm_stats b)
{
    const nrm_acc n = a.count + b.count, delta = b.mean - a.mean; /* ST.1 */
    if (b.count == 0) return a;
    if (a.count == 0) return b;
    a.mean += delta * (b.count / n); /* ST.2 */
    a.m2 += b.m2 + delta * delta * (a.count * (b.count / n)); /* ST.3 */
    a.count = n;
    return a;
}

NRM_DEF int nrm_stats_merge(nrm_stats *into, const nrm_stats *from, size_t C)
{
    const nrmi_arg args[] = {
        NRM_ARG(into, C, NRMI_OUT | NRMI_NEEDED), NRM_ARG(from, C, NRMI_NEEDED)};
    int rc = nrmi_check_sizes(1, C, 1);
    size_t c;
    if (rc == NRM_OK) rc = NRM_CHECK(args);
    for (c = 0; c < C && rc == NRM_OK; c++) into[c] = nrmi_stats_merge(into[c], from[c]);
    return rc;
}

/* Sequences of unequal length are padded: each stretch that the mask lets through is a portion. */
NRM_DEF int nrm_stats_update(
    nrm_stats *stats, const nrm_real *x, const unsigned char *mask, size_t N, size_t C, size_t S)
{
    const nrmi_arg args[] = {NRM_ARG(stats, C, NRMI_OUT | NRMI_NEEDED),
        NRM_ARG(x, N * C * S, NRMI_NEEDED), NRM_ARG(mask, N * S, NRMI_IN)};
    const nrmi_view v = nrmi_channels(N, C, S);
    size_t c, step = nrmi_strip(&v, 0);
    int lost = 0, rc = nrmi_check_sizes(N, C, S);
    if (rc != NRM_OK || N == 0 || (rc = NRM_CHECK(args)) != NRM_OK) return rc;
    NRM_SHARE_LOST(N * C * S)
    for (c = 0; c < C; c += step) {
        const size_t w = nrmi_least(C - c, step);
        size_t k, at, from = 0;
        nrmi_view part;
        nrmi_moments t;
        while (nrmi_next_stretch(&part, &at, &from, &v, mask)) {
            const nrm_acc count = (nrm_acc)part.runs * (nrm_acc)part.length;
            nrmi_moments_of(&t, x + at, &part, c, w);
            lost |= nrmi_lost(&t, w, 0);
            for (k = 0; k < w; k++) {
                const nrm_stats portion = {count, t.mean[k], t.var[k] * count};
                stats[c + k] = nrmi_stats_merge(stats[c + k], portion);
            }
        }
    }
    return lost ? NRM_NONFINITE : NRM_OK;
}

/* Can these be the statistics of a batch, of which this is a part? (If one is NaN, so was x.) */
static int nrmi_check_counts(
    const nrm_stats *stats, size_t C, const unsigned char *mask, size_t positions)
{
    size_t c, i = 0;
    while (mask != NULL && i < positions && !mask[i]) i++;
    for (c = 0; c < C; c++) {
        const nrm_acc count = stats[c].count;
        if (!(count >= 0) || !nrmi_finite(count) || stats[c].m2 < 0) return NRM_ESTATS;
        if (i < positions && count == 0) return NRM_ESTATS;
        if (count > 0 && count < 2) return NRM_EBATCH;
    }
    return NRM_OK;
}

/* Writes 0 where the mask is 0. */
static void nrmi_blank(nrm_real *a, const unsigned char *mask, size_t N, size_t C, size_t S)
{
    size_t i, c;
    for (i = 0; i < N * S && mask != NULL; i++)
        for (c = 0; c < C && !mask[i]; c++) a[(i / S * C + c) * S + i % S] = 0;
}

/*
### 4.2  Synchronised batch norm: forward

Every worker takes the statistics of its portion (`nrm_stats_update`), and you merge them, in
memory or by MPI (`examples/mpi_batchnorm.c`). In a *virtual batch*, micro-batches take the places
of workers, and all take a step before any takes the next. BN.3 to BN.5 follow, with merged μ and

    v = Q/n  [ST.4]
*/
NRM_DEF int nrm_sync_batchnorm_forward(nrm_real *y, nrm_acc *mean, nrm_acc *rstd,
    nrm_running *running, const nrm_real *x, const unsigned char *mask, const nrm_stats *stats,
    const nrm_real *gamma, const nrm_real *beta, nrm_real eps, size_t N, size_t C, size_t S)
{
    const int needed = N > 0 ? NRMI_NEEDED : NRMI_IN;
    const nrmi_arg args[] = {NRM_FORWARD_ARGS(N * C * S, C, C, needed, needed, NRMI_NEEDED),
        NRM_RUNNING_ARGS(C, NRMI_OUT), NRM_ARG(mask, N * S, NRMI_IN),
        NRM_ARG(stats, C, NRMI_NEEDED)};
    const nrmi_view v = nrmi_channels(N, C, S);
    size_t c, step = nrmi_strip(&v, 1);
    int lost = 0, rc = nrmi_check_sizes(N, C, S);
    if (rc == NRM_OK) rc = nrmi_check_eps(eps);
    if (rc == NRM_OK) rc = NRM_CHECK(args);
    if (rc == NRM_OK) rc = nrmi_check_running(running, NRM_TRAIN, C);
    if (rc == NRM_OK) rc = nrmi_check_counts(stats, C, mask, N * S);
    if (rc != NRM_OK) return rc;
    NRM_SHARE_LOST(N * C * S)
    for (c = 0; c < C; c += step) {
        const size_t w = nrmi_least(C - c, step);
        nrm_acc scale[NRM_SLOTS], shift[NRM_SLOTS];
        nrmi_moments t;
        nrmi_view part;
        size_t k, at, from = 0;
        for (k = 0; k < w; k++) {
            const nrm_acc n = stats[c + k].count;
            NRM_RECALL(&t, k, stats[c + k].mean, n > 0 ? stats[c + k].m2 / n : 0); /* ST.4 */
            mean[c + k] = t.mean[k];
            rstd[c + k] = 1 / NRM_SQRT(t.var[k] + (nrm_acc)eps); /* BN.3 */
            scale[k] = nrmi_or(gamma, c + k, 1) * rstd[c + k];
            shift[k] = nrmi_or(beta, c + k, 0);
            if (running != NULL && n > 0)
                lost |= nrmi_track(running, t.mean + k, t.var + k, c + k, 1, n);
            lost |= n > 0 && !nrmi_finite(rstd[c + k]);
        }
        lost |= nrmi_lost(&t, w, running != NULL);
        while (nrmi_next_stretch(&part, &at, &from, &v, mask))
            nrmi_affine(y + at, x + at, &t.at, scale, shift, &part, c, w); /* BN.4, BN.5 */
    }
    if (running != NULL && stats[0].count > 0) running->batches++;
    nrmi_blank(y, mask, N, C, S);
    return lost ? NRM_NONFINITE : NRM_OK;
}

/*
### 4.3  Synchronised batch norm: backward

In BN.18, an xᵢ of one worker reaches an x̂ⱼ of another through μ, which needs the sum of its dyⱼ,
and through r, which needs the sum of dyⱼ·x̂ⱼ. So each worker takes its sums, and you add them up:

    A = ∑ᵢ dyᵢ, B = ∑ᵢ dyᵢ·x̂ᵢ over the values of all workers  [ST.5]

dy belongs to one common loss: weight a mean over a portion by its share.
*/
NRM_DEF int nrm_sync_batchnorm_sums(nrm_sums *sums, nrm_real *dgamma, nrm_real *dbeta,
    const nrm_real *dy, const nrm_real *x, const unsigned char *mask, const nrm_acc *mean,
    const nrm_acc *rstd, size_t N, size_t C, size_t S)
{
    const int in = NRMI_NEEDED, some = N > 0 ? in : NRMI_IN;
    const nrmi_arg args[] = {NRM_ARG(sums, C, NRMI_OUT | in), NRM_ARG(dgamma, C, NRMI_OUT),
        NRM_ARG(dbeta, C, NRMI_OUT), NRM_ARG(dy, N * C * S, some), NRM_ARG(x, N * C * S, some),
        NRM_ARG(mask, N * S, NRMI_IN), NRM_ARG(mean, C, in), NRM_ARG(rstd, C, in)};
    const nrmi_view v = nrmi_channels(N, C, S);
    size_t c, step = nrmi_strip(&v, 0);
    int rc = nrmi_check_sizes(N, C, S);
    if (rc != NRM_OK || (rc = NRM_CHECK(args)) != NRM_OK) return rc;
    NRM_MEMSET(sums, 0, C * sizeof *sums);
    NRM_SHARE(N * C * S)
    for (c = 0; c < C; c += step) {
        const size_t w = nrmi_least(C - c, step);
        size_t k, at, from = 0;
        nrmi_view part;
        nrmi_centre mu;
        nrmi_sums s;
        nrmi_saved(&mu, mean + c, NULL, &v, c, w);
        while (nrmi_next_stretch(&part, &at, &from, &v, mask)) {
            nrmi_sums_of(&s, dy + at, NULL, x + at, &mu, rstd + c, &part, c, w);
            for (k = 0; k < w; k++) sums[c + k].dy += s.dy[k]; /* ST.5 */
            for (k = 0; k < w; k++) sums[c + k].dy_xhat += s.dy_xhat[k]; /* ST.5 */
        }
        for (k = c; k < c + w; k++) NRM_GIVE(k, &sums[k].dy_xhat, &sums[k].dy, 1);
    }
    return NRM_OK;
}

/*
With n, the count of all, in place of M, BN.19 reads

    dxᵢ = γ·r·(dyᵢ − A/n − x̂ᵢ·B/n)  [ST.6]
*/
NRM_DEF int nrm_sync_batchnorm_backward(nrm_real *dx, const nrm_real *dy, const nrm_real *x,
    const unsigned char *mask, const nrm_acc *mean, const nrm_acc *rstd, const nrm_real *gamma,
    const nrm_stats *stats, const nrm_sums *sums, size_t N, size_t C, size_t S)
{
    const nrm_real *dgamma = NULL, *dbeta = NULL; /* which `sums` has taken */
    const nrmi_arg args[] = {NRM_BACKWARD_ARGS(N * C * S, C, C, NRMI_NEEDED),
        NRM_ARG(mask, N * S, NRMI_IN), NRM_ARG(stats, C, NRMI_NEEDED),
        NRM_ARG(sums, C, NRMI_NEEDED)};
    nrmi_view v = nrmi_channels(N, C, S);
    size_t c, step = nrmi_strip(&v, 0);
    int rc = nrmi_check_sizes(N, C, S);
    v.ahead = 0; /* one pass */
    if (rc == NRM_OK && N > 0) rc = dx != NULL ? NRM_CHECK(args) : NRM_ENULL;
    if (rc == NRM_OK && N > 0) rc = nrmi_check_counts(stats, C, mask, N * S);
    if (rc != NRM_OK || N == 0) return rc;
    NRM_SHARE(N * C * S)
    for (c = 0; c < C; c += step) {
        const size_t w = nrmi_least(C - c, step);
        size_t k, at, from = 0;
        nrm_acc scale[NRM_SLOTS];
        nrmi_view part;
        nrmi_centre mu;
        nrmi_sums m;
        nrmi_saved(&mu, mean + c, NULL, &v, c, w);
        for (k = 0; k < w; k++) {
            const nrm_acc share = 1 / stats[c + k].count;
            m.dy[k] = sums[c + k].dy * share; /* A/n */
            m.dy_xhat[k] = sums[c + k].dy_xhat * share; /* B/n */
            scale[k] = nrmi_or(gamma, c + k, 1) * rstd[c + k];
        }
        while (nrmi_next_stretch(&part, &at, &from, &v, mask)) /* ST.6 */
            nrmi_project(dx + at, dy + at, 1, x + at, &mu, rstd + c, scale, &m, 1, &part, c, w);
    }
    nrmi_blank(dx, mask, N, C, S);
    return NRM_OK;
}

/*
### 4.4  Statistics of a whole data set

Running statistics lag behind a network that learns. After training they can be computed
anew, as `training_reestimate` in `examples/lab/training.h` does: by `nrm_stats_update` for each
batch, and at the end, with m and u of BN.11,

    m = μ, u = Q/(n − 1), or Q/n if `biased`  (ST.7)
*/
/*
## 5  Batch renormalization

*The question it answers: can a network be trained on the output that it will have in inference?*

In training a value is judged by its batch, in inference by the running statistics. With small
batches, or batches of similar examples, the two disagree. Ioffe (2017) maps the output of the batch
to what the running statistics would have made of it. The paper calls the map's factor r, here ρ.
*/
static nrm_acc nrmi_clamp(nrm_acc v, nrm_acc low, nrm_acc high)
{
    return v < low ? low : v > high ? high : v;
}

/*
### 5.1  Forward

With the running mean m and variance u, as they are before this batch, a channel has

    ρ = √(v + ε)/√(u + ε), kept within 1/ρ_max and ρ_max  [BR.1]
    d = (μ − m)/√(u + ε), kept within ±d_max              [BR.2]
    yᵢ = γ·(ρ·x̂ᵢ + d) + β                                 [BR.3]
*/
NRM_DEF int nrm_batchrenorm_forward(nrm_real *y, nrm_acc *ratio, nrm_acc *offset, nrm_acc *mean,
    nrm_acc *rstd, nrm_running *running, const nrm_real *x, const nrm_real *gamma,
    const nrm_real *beta, nrm_real r_max, nrm_real d_max, int mode, nrm_real eps, size_t N,
    size_t C, size_t S)
{
    const int need = NRMI_NEEDED, out = NRMI_OUT | NRMI_NEEDED;
    const nrmi_arg args[] = {NRM_FORWARD_ARGS(N * C * S, C, C, need, need, need),
        NRM_RUNNING_ARGS(C, out), NRM_ARG(ratio, C, out), NRM_ARG(offset, C, out)};
    const nrmi_view v = nrmi_channels(N, C, S);
    const nrm_acc rho_max = (nrm_acc)r_max, d_lim = (nrm_acc)d_max;
    const size_t step = nrmi_strip(&v, 0);
    size_t c;
    int lost = 0, rc = nrmi_check_batchnorm(mode, eps, N, C, S);
    if (rc == NRM_OK && (!(r_max >= 1) || !(d_max >= 0))) rc = NRM_ERATE;
    if (rc == NRM_OK && mode != NRM_TRAIN)
        return nrm_batchnorm_forward(y, mean, rstd, running, x, gamma, beta, mode, eps, N, C, S);
    if (rc == NRM_OK && N > 0) rc = NRM_CHECK(args);
    if (rc == NRM_OK && N > 0) rc = nrmi_check_running(running, NRM_TRAIN, C); /* its weight */
    if (rc == NRM_OK && N > 0) rc = nrmi_check_running(running, NRM_INFER, C); /* its values */
    if (rc != NRM_OK || N == 0) return rc;
    NRM_SHARE_LOST(N * C * S)
    for (c = 0; c < C; c += step) {
        const size_t w = nrmi_least(C - c, step);
        nrm_acc scale[NRM_SLOTS], shift[NRM_SLOTS];
        nrmi_moments t;
        size_t k;
        nrmi_moments_of(&t, x, &v, c, w);
        lost |= nrmi_lost(&t, w, 1);
        for (k = 0; k < w; k++) {
            const size_t i = c + k;
            const nrm_acc g = nrmi_or(gamma, i, 1), std = NRM_SQRT(t.var[k] + (nrm_acc)eps);
            const nrm_acc m = (nrm_acc)running->mean[i], u = (nrm_acc)running->var[i];
            const nrm_acc r_u = 1 / NRM_SQRT(u + (nrm_acc)eps);
            ratio[i] = nrmi_clamp(std * r_u, 1 / rho_max, rho_max); /* BR.1 */
            offset[i] = nrmi_clamp((t.mean[k] - m) * r_u, -d_lim, d_lim); /* BR.2 */
            mean[i] = t.mean[k];
            rstd[i] = 1 / std; /* BN.3 */
            scale[k] = g * rstd[i] * ratio[i]; /* BR.3 */
            shift[k] = nrmi_or(beta, i, 0) + g * offset[i]; /* BR.3 */
            lost |= !nrmi_finite(r_u) || !nrmi_finite(rstd[i]);
        }
        nrmi_affine(y, x, &t.at, scale, shift, &v, c, w); /* BR.3 */
        lost |= nrmi_track(running, t.mean, t.var, c, w, (nrm_acc)N * (nrm_acc)S);
    }
    running->batches++;
    return lost ? NRM_NONFINITE : NRM_OK;
}

/*
If neither limit applies, y is that of infer mode, BN.11. One begins with plain batch norm, since at
first the running statistics cannot be trusted, and raises the limits to about 3 and 5.

### 5.2  Backward

ρ and d are taken as constants, so BR.3 is batch norm with γ·ρ for γ and β + γ·d for β:

    dγ = ∑ᵢ dyᵢ·(ρ·x̂ᵢ + d) = ρ·∑ᵢ dyᵢ·x̂ᵢ + d·∑ᵢ dyᵢ  [BR.4]
    dxᵢ = (γ·ρ)·r·(dyᵢ − ⟨dy⟩ − x̂ᵢ·⟨dy·x̂⟩)           [BR.5]

and dβ is BN.12. So the output can be that of inference, but the gradient is projected as in BN.19,
with all that follows for small batches (BN.23). Without the limits its scale r·ρ is 1/√(u + ε).
*/
NRM_DEF int nrm_batchrenorm_backward(nrm_real *dx, nrm_real *dgamma, nrm_real *dbeta,
    const nrm_real *dy, const nrm_real *x, const nrm_acc *ratio, const nrm_acc *offset,
    const nrm_acc *mean, const nrm_acc *rstd, const nrm_real *gamma, int mode, size_t N, size_t C,
    size_t S)
{
    const nrmi_arg args[] = {NRM_BACKWARD_ARGS(N * C * S, C, C, NRMI_NEEDED),
        NRM_ARG(ratio, C, NRMI_NEEDED), NRM_ARG(offset, C, NRMI_NEEDED)};
    const nrmi_view v = nrmi_channels(N, C, S);
    const size_t step = nrmi_strip(&v, 0);
    const nrm_acc M = (nrm_acc)N * (nrm_acc)S;
    size_t c;
    int rc = nrmi_check_batchnorm(mode, NRM_EPS, N, C, S);
    if (mode != NRM_TRAIN)
        return nrm_batchnorm_backward(dx, dgamma, dbeta, dy, x, mean, rstd, gamma, mode, N, C, S);
    if (rc != NRM_OK || N == 0 || (rc = NRM_CHECK(args)) != NRM_OK) return rc;
    NRM_SHARE(N * C * S)
    for (c = 0; c < C; c += step) {
        const size_t w = nrmi_least(C - c, step);
        const nrm_acc *r = rstd + c, *rho = ratio + c, *d = offset + c;
        nrm_acc scale[NRM_SLOTS], sum[NRM_SLOTS];
        nrmi_centre mu;
        nrmi_sums s;
        size_t k;
        nrmi_saved(&mu, mean + c, x, &v, c, w);
        nrmi_sums_of(&s, dy, NULL, x, &mu, r, &v, c, w); /* BN.12 */
        for (k = 0; k < w; k++) sum[k] = rho[k] * s.dy_xhat[k] + d[k] * s.dy[k]; /* BR.4 */
        for (k = 0; k < w; k++) scale[k] = nrmi_or(gamma, c + k, 1) * r[k] * rho[k];
        NRM_GIVE(c, sum, s.dy, w);
        if (dx != NULL)
            nrmi_project(dx, dy, 1, x, &mu, r, scale, &s, 1 / M, &v, c, w); /* BR.5 */
    }
    return NRM_OK;
}

/*
## 6  Group and RMS normalization

*The question they answer: what else can be averaged, if not the batch?*

Layer norm averages all channels of an image. Group norm (Wu and He 2018) averages each of G groups
of channels; with G = C it is instance norm (Ulyanov et al. 2016). RMS norm (Zhang and Sennrich
2019) leaves the mean out. None of them depends on a batch or keeps statistics.

### 6.1  Group norm: shapes

The K = C/G channels of a group lie side by side, M = K·S values in all. So for the statistics a
group is a *row* of layer norm, but γ and β are the channel's. Below, c and s run over the channels
and positions of one group. One value per group is refused, as in batch norm.
*/
static int nrmi_check_groups(size_t N, size_t C, size_t S, size_t G)
{
    const int rc = nrmi_check_sizes(N, C, S);
    if (rc == NRM_OK && (G == 0 || C % G != 0)) return NRM_ESIZE;
    return rc == NRM_OK && C == G && S == 1 ? NRM_EBATCH : rc;
}

/*
### 6.2  Group norm: forward

    μ = (1/M)·∑_c ∑ₛ x_cs                  [GN.1]
    r = 1/√((1/M)·∑_c ∑ₛ (x_cs − μ)² + ε)  [GN.2]
    y_cs = γ_c·(x_cs − μ)·r + β_c          [GN.3]
*/
NRM_DEF int nrm_groupnorm_forward(nrm_real *y, nrm_acc *mean, nrm_acc *rstd, const nrm_real *x,
    const nrm_real *gamma, const nrm_real *beta, nrm_real eps, size_t N, size_t C, size_t S,
    size_t G)
{
    const int needed = NRMI_NEEDED | (mean == NULL && rstd == NULL ? NRMI_IN_PLACE : 0);
    const nrmi_arg args[] = {NRM_FORWARD_ARGS(N * C * S, N * G, C, needed, needed, 0)};
    const size_t K = G > 0 ? C / G : 0;
    const nrmi_view groups = nrmi_rows(N * G, K * S);
    nrmi_view channels = nrmi_rows(N * C, S);
    size_t n, step;
    int lost = 0, rc = nrmi_check_groups(N, C, S, G);
    channels.ahead = groups.ahead;
    if (rc == NRM_OK) rc = nrmi_check_eps(eps);
    if (rc != NRM_OK || N == 0) return rc;
    if (S == 1) return nrmi_rows_forward(0, y, mean, rstd, x, gamma, beta, eps, N * G, K, G);
    if ((mean == NULL) != (rstd == NULL)) return NRM_ENULL;
    if ((rc = NRM_CHECK(args)) != NRM_OK) return rc;
    step = nrmi_strip(&groups, 0);
    NRM_SHARE_LOST(N * C * S)
    for (n = 0; n < N * G; n += step) {
        const size_t w = nrmi_least(N * G - n, step);
        nrm_acc r[NRM_SLOTS];
        nrmi_moments t;
        size_t i, k;
        nrmi_moments_of(&t, x, &groups, n, w); /* GN.1 */
        lost |= nrmi_lost(&t, w, 0);
        for (i = 0; i < w; i++) r[i] = 1 / NRM_SQRT(t.var[i] + (nrm_acc)eps); /* GN.2 */
        for (i = 0; i < w; i++) lost |= !nrmi_finite(r[i]);
        for (i = 0; i < w; i++) {
            const nrm_acc low = (nrm_acc)(nrm_real)(-(nrm_acc)t.at.low[i] * r[i]); /* as for rows */
            t.at.high[0] = t.at.high[i];
            t.at.low[0] = 0;
            for (k = 0; k < K; k++) {
                const size_t c = (n + i) % G * K + k;
                const nrm_acc g = nrmi_or(gamma, c, 1), b = nrmi_or(beta, c, 0);
                const nrm_acc scale = g * (nrm_acc)(nrm_real)r[i], shift = b + g * low;
                nrmi_affine(
                    y, x, &t.at, &scale, &shift, &channels, (n + i) * K + k, 1); /* GN.3 */
            }
            if (mean != NULL) mean[n + i] = t.mean[i];
            if (rstd != NULL) rstd[n + i] = r[i];
        }
    }
    return lost ? NRM_NONFINITE : NRM_OK;
}

/*
### 6.3  Group norm: backward

Layer norm's formulas hold, with g = γ_c·dy. A channel's sums over its positions serve twice: for
the gradients of γ and β and, times γ_c, for the means of the group.

    dβ_c = ∑ₙ ∑ₛ dy_ncs                                                [GN.4]
    dγ_c = ∑ₙ ∑ₛ dy_ncs·x̂_ncs                                          [GN.5]
    ⟨g⟩ = (1/M)·∑_c γ_c·∑ₛ dy_cs, ⟨g·x̂⟩ = (1/M)·∑_c γ_c·∑ₛ dy_cs·x̂_cs  [GN.6]
    dx_cs = r·(γ_c·dy_cs − ⟨g⟩ − x̂_cs·⟨g·x̂⟩)                           [GN.7]
*/
/* dx of group n, whose K channels begin with first; their sums are added to total, if wanted. */
static void nrmi_group_backward(const nrmi_backward *p, nrmi_sums *total, const nrmi_view *groups,
    const nrmi_view *channels, size_t n, size_t first)
{
    const size_t K = groups->length / channels->length;
    const nrm_acc share = 1 / (nrm_acc)groups->length, *r = p->rstd + n;
    nrmi_centre mu;
    nrmi_sums s, m;
    size_t k;
    nrmi_saved(&mu, p->mean + n, p->x, groups, n, 1);
    m.dy[0] = m.dy_xhat[0] = 0;
    for (k = 0; k < K; k++) {
        const nrm_acc g = nrmi_or(p->gamma, first + k, 1);
        nrmi_sums_of(&s, p->dy, NULL, p->x, &mu, r, channels, n * K + k, 1);
        m.dy[0] += g * s.dy[0]; /* GN.6 */
        m.dy_xhat[0] += g * s.dy_xhat[0]; /* GN.6 */
        if (total == NULL) continue;
        total->dy[first + k] += s.dy[0]; /* GN.4 */
        total->dy_xhat[first + k] += s.dy_xhat[0]; /* GN.5 */
    }
    for (k = 0; k < K; k++) {
        const nrm_acc g = nrmi_or(p->gamma, first + k, 1);
        nrmi_project(
            p->dx, p->dy, g, p->x, &mu, r, r, &m, share, channels, n * K + k, 1); /* GN.7 */
    }
}

NRM_DEF int nrm_groupnorm_backward(nrm_real *dx, nrm_real *dgamma, nrm_real *dbeta,
    const nrm_real *dy, const nrm_real *x, const nrm_acc *mean, const nrm_acc *rstd,
    const nrm_real *gamma, size_t N, size_t C, size_t S, size_t G)
{
    const nrmi_arg args[] = {NRM_BACKWARD_ARGS(N * C * S, N * G, C, NRMI_NEEDED)};
    const nrmi_backward p = {dx, dgamma, dbeta, dy, x, gamma, mean, rstd};
    const size_t K = G > 0 ? C / G : 0;
    const nrmi_view groups = nrmi_rows(N * G, K * S), channels = nrmi_rows(N * C, S);
    const int wanted = dgamma != NULL || dbeta != NULL;
    const int together = wanted && dx != NULL && C <= NRM_SLOTS && nrmi_threads(N * C * S) == 1;
    nrmi_sums total;
    size_t n, c;
    int rc = nrmi_check_groups(N, C, S, G);
    if (rc != NRM_OK || N == 0) return rc;
    if (S == 1)
        return nrmi_rows_backward(0, dx, dgamma, dbeta, dy, x, mean, rstd, gamma, N * G, K, G);
    if ((rc = NRM_CHECK(args)) != NRM_OK) return rc;
    for (c = 0; c < C && together; c++) total.dy[c] = total.dy_xhat[c] = 0;
    if (wanted && !together) { /* first, since dx may be dy */
        NRM_SHARE(N * C * S)
        for (c = 0; c < C; c++) {
            nrm_acc sum = 0, sum_xhat = 0;
            nrmi_centre mu;
            nrmi_sums s;
            size_t i;
            for (i = c; i < N * C; i += C) { /* i / K is the group */
                nrmi_saved(&mu, mean + i / K, x, &groups, i / K, 1);
                nrmi_sums_of(&s, dy, NULL, x, &mu, rstd + i / K, &channels, i, 1);
                sum += s.dy[0]; /* GN.4 */
                sum_xhat += s.dy_xhat[0]; /* GN.5 */
            }
            NRM_GIVE(c, &sum_xhat, &sum, 1);
        }
    }
    if (dx != NULL) {
        NRM_SHARE(N * C * S)
        for (n = 0; n < N * G; n++)
            nrmi_group_backward(&p, together ? &total : NULL, &groups, &channels, n, n % G * K);
    }
    if (together) NRM_GIVE(0, total.dy_xhat, total.dy, C);
    return NRM_OK;
}

/*
### 6.4  RMS norm

This is layer norm with 0 in place of μ, and without β:

    q = (1/D)·∑ⱼ xⱼ², r = 1/√(q + ε)  [RMS.1]
    yᵢ = γᵢ·xᵢ·r                      [RMS.2]
*/
NRM_DEF int nrm_rmsnorm_forward(nrm_real *y, nrm_acc *rstd, const nrm_real *x,
    const nrm_real *gamma, nrm_real eps, size_t N, size_t D)
{
    return nrmi_rows_forward(1, y, NULL, rstd, x, gamma, NULL, eps, N, D, 1); /* RMS.1, RMS.2 */
}

/*
The path through the mean is gone, and with it ⟨g⟩ in LN.14:

    dγᵢ = ∑ₙ dyₙᵢ·x̂ₙᵢ        [RMS.3]
    dxᵢ = r·(gᵢ − x̂ᵢ·⟨g·x̂⟩)  [RMS.4]

One direction is removed instead of two; adding a constant to x does change y.

    ∑ᵢ dxᵢ·x̂ᵢ = D·ε·r³·⟨g·x̂⟩  (RMS.5)
*/
NRM_DEF int nrm_rmsnorm_backward(nrm_real *dx, nrm_real *dgamma, const nrm_real *dy,
    const nrm_real *x, const nrm_acc *rstd, const nrm_real *gamma, size_t N, size_t D)
{
    return nrmi_rows_backward(
        1, dx, dgamma, NULL, dy, x, NULL, rstd, gamma, N, D, 1); /* RMS.3, RMS.4 */
}

/*
### 6.5  Rows of a larger array, and a residual

A transformer normalizes a sum u that also goes on beside the norm, or the heads of queries that
lie in one array with keys and values. So rows may lie apart, and the sum is made on the way:

    uᵢ = xᵢ + eᵢ, y = norm(u)  [RES.1]
    dxᵢ = deᵢ = aᵢ + bᵢ        [RES.2]

e is the residual, a is LN.14 or RMS.4 at u, and b (`dsum`) the gradient of u beside the norm.
*/
static void nrmi_add(nrm_real *sum, const nrm_real *a, const nrm_real *b, size_t n)
{
    size_t i;
    for (i = 0; i < n; i++) sum[i] = a[i] + b[i]; /* RES.1, RES.2 */
}

static int nrmi_check_rows(const nrm_rows *rows, nrmi_view *v)
{
    int rc = rows == NULL ? NRM_ENULL : nrmi_check_sizes(rows->N, rows->pitch, 1);
    if (rc == NRM_OK) rc = nrmi_check_sizes(1, rows->R, rows->D);
    if (rc == NRM_OK) *v = nrmi_rows(rows->R, rows->D);
    return rc == NRM_OK && rows->R * rows->D > rows->pitch ? NRM_ESIZE : rc;
}
#define NRM_SPAN(rows) (((rows)->N - 1) * (rows)->pitch + (rows)->R * (rows)->D) /* for N > 0 */

NRM_DEF int nrm_rows_forward(nrm_real *y, nrm_real *sum, nrm_acc *mean, nrm_acc *rstd,
    const nrm_real *x, const nrm_real *residual, const nrm_real *gamma, const nrm_real *beta,
    nrm_real eps, const nrm_rows *rows)
{
    const int add = residual != NULL, alone = !add && mean == NULL && rstd == NULL;
    const int y_role = NRMI_NEEDED | (alone ? NRMI_IN_PLACE : 0), to = add ? NRMI_IN_PLACE : 0;
    nrmi_view v;
    size_t step, bands, i;
    int lost = 0, rc = nrmi_check_rows(rows, &v);
    if (rc == NRM_OK) rc = nrmi_check_eps(eps);
    if (rc == NRM_OK && rows->N > 0) {
        const size_t all = NRM_SPAN(rows), groups = rows->N * rows->R, D = rows->D;
        const nrmi_arg args[] = {NRM_FORWARD_ARGS(all, groups, D, y_role, y_role | to, 0),
            NRM_ARG(residual, all, to), NRM_ARG(add ? sum : NULL, all, NRMI_OUT | to)};
        rc = add && sum == NULL ? NRM_ENULL : NRM_CHECK(args);
        if (!rows->rms && (mean == NULL) != (rstd == NULL)) rc = NRM_ENULL;
    }
    if (rc != NRM_OK || rows->N == 0) return rc;
    step = nrmi_band(&v, 0);
    bands = (rows->R + step - 1) / step;
    NRM_SHARE_LOST(rows->N * rows->R * rows->D)
    for (i = 0; i < rows->N * bands; i++) {
        const size_t n = i % bands * step, w = nrmi_least(rows->R - n, step);
        const size_t at = i / bands * rows->pitch + n * rows->D, row = i / bands * rows->R + n;
        if (add) nrmi_add(sum + at, x + at, residual + at, w * rows->D);
        lost |= nrmi_rows_forward(rows->rms, y + at, NRM_PLUS(mean, row), NRM_PLUS(rstd, row),
            (add ? sum : x) + at, gamma, beta, eps, w, rows->D, 1);
    }
    return lost;
}

#define NRM_EXAMPLE(dx, e, at) /* arrays of example e, which begins at `at` */ \
    {dx, NULL, NULL, dy + (at), x + (at), gamma, \
        rows->rms ? NULL : mean + (e) * rows->R, rstd + (e) * rows->R}
NRM_DEF int nrm_rows_backward(nrm_real *dx, nrm_real *dgamma, nrm_real *dbeta, const nrm_real *dy,
    const nrm_real *dsum, const nrm_real *x, const nrm_acc *mean, const nrm_acc *rstd,
    const nrm_real *gamma, const nrm_rows *rows)
{
    const int wanted = dgamma != NULL || dbeta != NULL;
    nrmi_view v;
    size_t e, n, c, w, count = 0;
    int together, rc = nrmi_check_rows(rows, &v);
    NRM_COLUMNS(columns, NRM_SLOTS);
    if (rc == NRM_OK && rows->N > 0) {
        const size_t all = NRM_SPAN(rows), groups = rows->N * rows->R, D = rows->D;
        const nrmi_arg args[] = {NRM_ARG(dsum, all, NRMI_IN),
            NRM_BACKWARD_ARGS(all, groups, D, rows->rms ? NRMI_IN : NRMI_NEEDED)};
        rc = NRM_CHECK(args);
    }
    if (rc != NRM_OK || rows->N == 0) return rc;
    together = wanted && dx != NULL && v.length <= NRM_SLOTS;
    for (c = 0; c < v.length && wanted && !together; c += w) { /* first: dx may be dy */
        w = nrmi_least(v.length - c, NRM_SLOTS);
        nrmi_clear(&columns, w);
        for (e = 0; e < rows->N; e++) {
            const nrmi_backward p = NRM_EXAMPLE(NULL, e, e * rows->pitch);
            nrmi_rows_columns(&columns, &p, &v, c, w);
        }
        NRM_GIVE(c, columns.dgamma, columns.dbeta, w);
    }
    if (together) nrmi_clear(&columns, v.length);
    for (e = 0; e < rows->N && dx != NULL; e++) {
        const nrmi_backward p = NRM_EXAMPLE(dx + e * rows->pitch, e, e * rows->pitch);
        for (n = 0; n < rows->R; n += w) {
            const size_t at = e * rows->pitch + n * rows->D;
            w = nrmi_band(&v, n);
            nrmi_rows_sweep(&p, together ? &columns : NULL, &v, n, w);
            count += w;
            if (together && count >= nrmi_examples(&v)) nrmi_fold(&columns, count = 0, v.length);
            if (dsum != NULL) nrmi_add(dx + at, dx + at, dsum + at, w * rows->D);
        }
    }
    if (together) {
        nrmi_fold(&columns, 0, v.length);
        NRM_GIVE(0, columns.dgamma, columns.dbeta, v.length);
    }
    return NRM_OK;
}

/*
## 7  Weight normalization, and folding

*The question it answers: can we have the scale invariance of batch norm without a batch?*

Salimans and Kingma (2016) write the weights of each unit as a length g times a direction v/|v|, and
learn both. The gradient changes as in RMS norm (RMS.4), with a column of weights for a row of data.

### 7.1  Shapes

i and j run over the weights of one unit, a column of `[in][out]`. As in the paper, v is a vector
here and not a variance, g a length and not a gradient. Run the layer before the linear layer in the
forward pass and after it in the backward pass, on the `dW` of that pass alone.
*/
static inline nrm_acc nrmi_abs(nrm_acc a)
{
    return -a > a ? -a : a;
}

/* Of a length n: are squares in range? And g/n: 0 for n = 0, NaN if n is not finite. */
#define NRM_ORDINARY(n) ((n) > (nrm_acc)1e-12 && (n) < (nrm_acc)1e12)
#define NRM_GAIN(g, n) ((n) == 0 ? 0 : (g) / (n) * ((n) / (n)))

/* ∑ aᵢ·(bᵢ/scale) down one column. */
static nrm_acc nrmi_scaled_dot(
    const nrm_real *a, const nrm_real *b, nrm_acc scale, size_t in, size_t out)
{
    nrm_acc sum = 0;
    size_t i;
    for (i = 0; i < in; i++) sum += (nrm_acc)a[i * out] * ((nrm_acc)b[i * out] / scale);
    return sum;
}

/*
### 7.2  Forward

    n = |v| = √(∑ᵢ vᵢ²)                    [WN.1]
    Wᵢ = g·vᵢ/n                            [WN.2]
    n = √t·√(∑ᵢ vᵢ·(vᵢ/t)), t = maxᵢ |vᵢ|  [WN.3]

No ε is needed: W has length |g| to rounding if g/n is in the normal range of `nrm_real`. Squares
leave the range long before values do, so outside 10⁻¹² to 10¹² n is computed by WN.3. A column of
zeros has no direction: its W is 0, the status is `NRM_NONFINITE`, and its dv and dg get nothing. A
column with a NaN or an infinity is all NaN. Neither affects other columns.
*/
static nrm_acc nrmi_scaled_norm(const nrm_real *v, size_t in, size_t out)
{
    nrm_acc t = 0;
    size_t i;
    for (i = 0; i < in; i++) {
        const nrm_acc size = nrmi_abs((nrm_acc)v[i * out]);
        if (size > t || size != size) t = size; /* a NaN stays */
    }
    return t == 0 ? 0 : NRM_SQRT(t) * NRM_SQRT(nrmi_scaled_dot(v, v, t, in, out)); /* WN.3 */
}

NRM_DEF int nrm_weightnorm_forward(
    nrm_real *W, nrm_acc *norm, const nrm_real *v, const nrm_real *g, size_t in, size_t out)
{
    const nrmi_arg args[] = {NRM_ARG(W, in * out, NRMI_OUT | NRMI_NEEDED),
        NRM_ARG(norm, out, NRMI_OUT), NRM_ARG(v, in * out, NRMI_NEEDED), NRM_ARG(g, out, NRMI_IN)};
    const nrmi_view view = nrmi_channels(in, out, 1);
    size_t c, step = nrmi_strip(&view, 0);
    int lost = 0, rc = nrmi_check_sizes(1, in, out);
    if (rc != NRM_OK || (rc = NRM_CHECK(args)) != NRM_OK) return rc;
    NRM_SHARE_LOST(in * out)
    for (c = 0; c < out; c += step) {
        const size_t w = nrmi_least(out - c, step);
        nrm_acc gain[NRM_SLOTS];
        nrmi_centre origin;
        nrmi_sums s;
        size_t k;
        nrmi_saved(&origin, NULL, NULL, &view, c, w);
        nrmi_sums_of(&s, v, NULL, v, &origin, NULL, &view, c, w); /* the sum of v·v */
        for (k = 0; k < w; k++) {
            nrm_acc n = NRM_SQRT(s.dy_xhat[k]); /* WN.1 */
            if (!NRM_ORDINARY(n)) n = nrmi_scaled_norm(v + c + k, in, out);
            gain[k] = NRM_GAIN(nrmi_or(g, c + k, 1), n);
            if (norm != NULL) norm[c + k] = n;
            lost |= !(n > 0) || !nrmi_finite((nrm_acc)(nrm_real)gain[k]);
        }
        nrmi_affine(W, v, &origin, gain, NULL, &view, c, w); /* WN.2: (v − 0)·g/n */
    }
    return lost ? NRM_NONFINITE : NRM_OK;
}

/*
The paper also starts g, and a bias b, from a batch. If the unit's outputs for g = 1 and b = 0 have
mean μ and standard deviation σ (with ε; batch norm saves μ and 1/σ), they become standardized by

    g = 1/σ, b = −μ/σ  (WN.4)

### 7.3  Backward

W depends on v directly and through n. The dg in WN.8 is what this call adds.

    ∂n/∂vᵢ = vᵢ/n                                 (WN.5)
    dg = ∑ᵢ dWᵢ·vᵢ/n                              [WN.6]
    ∂Wⱼ/∂vᵢ = (g/n)·(δᵢⱼ − vᵢ·vⱼ/n²)              (WN.7)
    dvᵢ = ∑ⱼ dWⱼ·∂Wⱼ/∂vᵢ = (g/n)·(dWᵢ − dg·vᵢ/n)  [WN.8]
*/
NRM_DEF int nrm_weightnorm_backward(nrm_real *dv, nrm_real *dg, const nrm_real *dW,
    const nrm_real *v, const nrm_acc *norm, const nrm_real *g, size_t in, size_t out)
{
    const nrmi_arg args[] = {NRM_ARG(dv, in * out, NRMI_OUT), NRM_ARG(dg, out, NRMI_OUT),
        NRM_ARG(dW, in * out, NRMI_NEEDED), NRM_ARG(v, in * out, NRMI_NEEDED),
        NRM_ARG(norm, out, NRMI_NEEDED), NRM_ARG(g, out, NRMI_IN)};
    const nrmi_view view = nrmi_channels(in, out, 1);
    size_t c, step = nrmi_strip(&view, 0);
    int rc = nrmi_check_sizes(1, in, out);
    if (rc != NRM_OK || (rc = NRM_CHECK(args)) != NRM_OK) return rc;
    NRM_SHARE(in * out)
    for (c = 0; c < out; c += step) {
        const size_t w = nrmi_least(out - c, step);
        nrm_real gain[NRM_SLOTS], along[NRM_SLOTS]; /* g/n, dg/n */
        nrmi_centre origin;
        nrmi_sums s;
        size_t i, k;
        nrmi_saved(&origin, NULL, NULL, &view, c, w);
        nrmi_sums_of(&s, dW, NULL, v, &origin, NULL, &view, c, w); /* the sum of dW·v */
        for (k = 0; k < w; k++) {
            const nrm_acc n = norm[c + k];
            nrm_acc sum = s.dy_xhat[k] / n; /* WN.6 */
            if (!NRM_ORDINARY(n)) sum = nrmi_scaled_dot(dW + c + k, v + c + k, n, in, out);
            if (n == 0) sum = 0;
            along[k] = (nrm_real)(n == 0 ? 0 : sum / n);
            gain[k] = (nrm_real)NRM_GAIN(nrmi_or(g, c + k, 1), n);
            nrmi_give(dg, c + k, &sum, 1);
        }
        for (i = c; i < in * out && dv != NULL; i += out)
            for (k = 0; k < w; k++)
                dv[i + k] += gain[k] * (dW[i + k] - along[k] * v[i + k]); /* WN.8 */
    }
    return NRM_OK;
}

/*
### 7.4  What it means

WN.8 is a projection, without an ε: what dW has along v goes to g, and v gets the rest. By
Pythagoras, a step of gradient descent with learning rate η can then only make v longer:

    ∑ᵢ dvᵢ·vᵢ = 0                  (WN.9)
    |v − η·dv|² = |v|² + η²·|dv|²  (WN.10)

dv is proportional to g/n. So too large a learning rate makes the vectors longer, their gradients
smaller and their turns slower, and no later step undoes it. The steps of momentum and Adam
are not along dv: for them WN.10 does not hold.

**Batch norm is weight norm in another metric.** Let z = x·w be a unit before batch norm, x the row
of its inputs, m the row of their means over the batch and S their covariance. Then z has mean m·w
and variance σ², and batch norm is a linear layer with normalized weights and a bias that subtracts
the mean (Kohler and others 2018, for m = 0):

    S = ⟨(x − m)ᵀ·(x − m)⟩, σ² = wᵀ·S·w                                 (WN.11)
    BN(x·w) = x·ŵ + (β − m·ŵ), ŵ = γ·w/√(wᵀ·S·w + ε)                    (WN.12)
    dw = γ·r·(a − r²·(a·w)·S·w), a = ∑ⱼ dyⱼ·(xⱼ − m)ᵀ, r = 1/√(σ² + ε)  (WN.13)
    ∑ᵢ dwᵢ·wᵢ = γ·r·ε·r²·(a·w)                                          (WN.14)

This is WN.2 with γ for g and √(wᵀ·S·w) for the length √(wᵀ·w): the same if m is 0 and S the unit
matrix. WN.13 follows with ∂σ²/∂w = 2·S·w; j runs over the rows. By WN.14 only ε leaves a gradient
along w, so up to ε WN.10 holds for weights before batch norm too.

### 7.5  Folding

In inference batch norm is a fixed affine map of each channel. A linear layer or a convolution right
before it can take the map into its weights: of z = ∑ₖ xₖ·Wₖ + b, where k runs over the weights of
a channel, BN.11 makes a·(z − m) + β. FOLD.3 is exact, but W′ and b′ are rounded, once each: were
the sum over k computed without error, FOLD.4 would hold in float with η = 2⁻²⁴.

    W′ₖ = a·Wₖ, a = γ/√(u + ε)                          [FOLD.1]
    b′ = a·(b − m) + β                                  [FOLD.2]
    ∑ₖ xₖ·W′ₖ + b′ = γ·(∑ₖ xₖ·Wₖ + b − m)/√(u + ε) + β  (FOLD.3)
    |error of y| ≤ η·(∑ₖ |xₖ·W′ₖ| + |b′|)               (FOLD.4)

Where `nrm_acc` is no wider than the data, as with `NRM_DOUBLE` (then η = 2⁻⁵³), take 6η for η
and |a·(b − m)| + |β| for |b′|.
*/
NRM_DEF int nrm_batchnorm_fold(nrm_real *W_out, nrm_real *b_out, const nrm_real *W,
    const nrm_real *b, const nrm_running *running, const nrm_real *gamma, const nrm_real *beta,
    nrm_real eps, size_t outer, size_t C, size_t inner)
{
    const int in = NRMI_NEEDED, out = NRMI_OUT | NRMI_NEEDED, same = NRMI_IN_PLACE;
    const size_t n = outer * C * inner;
    const nrmi_arg weights[] = {NRM_ARG(W_out, n, out | same), NRM_ARG(W, n, in | same),
        NRM_ARG(b_out, C, out), NRM_RUNNING_ARGS(C, in), NRM_ARG(gamma, C, NRMI_IN),
        NRM_ARG(beta, C, NRMI_IN)};
    const nrmi_arg biases[] = {
        NRM_ARG(b_out, C, out | same), NRM_ARG(b, C, same), NRM_ARG(W_out, n, out)};
    size_t c, o, i;
    int lost = 0, rc = outer > 0 ? nrmi_check_sizes(outer, C, inner) : NRM_ESIZE;
    if (rc == NRM_OK) rc = nrmi_check_eps(eps);
    if (rc == NRM_OK) rc = NRM_CHECK(weights);
    if (rc == NRM_OK) rc = NRM_CHECK(biases);
    if (rc == NRM_OK) rc = nrmi_check_running(running, NRM_INFER, C);
    for (c = 0; c < C && rc == NRM_OK; c++) {
        const nrm_acc root = NRM_SQRT((nrm_acc)running->var[c] + (nrm_acc)eps);
        const nrm_acc a = nrmi_or(gamma, c, 1) / root, m = (nrm_acc)running->mean[c];
        for (o = 0; o < outer; o++)
            for (i = (o * C + c) * inner; i < (o * C + c + 1) * inner; i++) {
                W_out[i] = (nrm_real)(a * (nrm_acc)W[i]); /* FOLD.1 */
                lost |= !nrmi_finite((nrm_acc)W_out[i]);
            }
        b_out[c] = (nrm_real)(a * (nrmi_or(b, c, 0) - m) + nrmi_or(beta, c, 0)); /* FOLD.2 */
        lost |= !nrmi_finite((nrm_acc)b_out[c]);
    }
    return rc == NRM_OK && lost ? NRM_NONFINITE : rc;
}

/*
## 8  Lp batch normalization

*The question it answers: does it matter that batch norm divides by the standard deviation?*

Santurkar, Tsipras, Ilyas and Mądry (2018) divide by other sizes, which give no channel a fixed
variance, and their networks trained about as fast. So what helps is not the variance, but perhaps
division by a size through which gradients flow.

### 8.1  Forward

Shapes are those of chapter 1.

    cᵢ = xᵢ − μ                                                         [LP.1]
    t = ⟨|u|⟩ (L1), √⟨u²⟩ (L2), maxᵢ |uᵢ| (L∞); u = x, or c if centred  [LP.2]

The paper measures u = x, *before* the mean is subtracted. Then t is at least |μ|, and a channel
whose mean is ten times its spread comes out ten times too small. It does not with `NRM_CENTRED`.
*/
#define NRM_LP_SIGN(u) ((nrm_real)(((u) > 0) - ((u) < 0)))

static inline nrm_acc nrmi_lp_u(nrm_real x, const nrmi_centre *mu, size_t k, int p)
{
    if (p < NRM_CENTRED) return (nrm_acc)x;
    return ((nrm_acc)x - (nrm_acc)mu->high[k]) - (nrm_acc)mu->low[k]; /* LP.1 */
}

/* L1 and L∞: puts t in place of the variances of w channels from g on. */
static void nrmi_lp_sizes(
    nrmi_moments *t, const nrm_real *x, int p, const nrmi_view *v, size_t g, size_t w)
{
    const int l1 = p % NRM_CENTRED == NRM_L1, columns = v->kind == NRMI_COLUMNS;
    const size_t across = columns ? w : NRM_SLOTS > 1 ? 64 / sizeof(nrm_real) : 1; /* L of SUM.8 */
    const nrm_acc share = l1 ? 1 / ((nrm_acc)v->runs * (nrm_acc)v->length) : 1;
    nrm_acc size[NRM_SLOTS] = {0};
    size_t n, j, k;
    for (n = 0; n < v->runs; n++)
        for (j = 0; j < w * v->length; j += across)
            for (k = 0; k < nrmi_least(across, w * v->length - j); k++) {
                const nrm_real at = x[n * v->pitch + g * v->apart + j + k];
                const nrm_acc u = nrmi_abs(nrmi_lp_u(at, &t->at, columns ? k : 0, p));
                size[k] = l1 ? size[k] + u : u > size[k] ? u : size[k]; /* LP.2 */
            }
    for (n = across / 2; n > 0 && !columns; n /= 2) /* (SUM.9) */
        for (k = 0; k < n; k++)
            size[k] = l1 ? size[k] + size[k + n] : size[k] > size[k + n] ? size[k] : size[k + n];
    for (k = 0; k < w; k++) t->var[k] = size[k] * share;
}

static int nrmi_check_lp(int p, int mode, nrm_real eps, size_t N, size_t C, size_t S)
{
    const int rc = nrmi_check_batchnorm(mode, eps, N, C, S);
    const int unknown = p < NRM_L1 || p == NRM_CENTRED || p > NRM_LINF + NRM_CENTRED;
    return rc == NRM_OK && unknown ? NRM_EKIND : rc;
}

/*
    r = 1/(t + ε)                                [LP.3]
    yᵢ = γ·cᵢ·r + β                              [LP.4]
    √⟨x²⟩ = √(v + μ²), √⟨c²⟩ = √v                [LP.5]
    m ← (1 − w)·m + w·μ, a ← (1 − w)·a + w·t     [LP.6]
    yᵢ = γ·(xᵢ − m)/(a + ε) + β (infer, frozen)  [LP.7]

Compare ε with t, not with t². By LP.5, L2 centred is batch norm except for the place of ε. a has no
M/(M − 1), which belongs to squares. In L∞ it grows with M, as a maximum does.
*/
NRM_DEF int nrm_lp_batchnorm_forward(nrm_real *y, nrm_acc *mean, nrm_acc *scale,
    nrm_running *running, const nrm_real *x, const nrm_real *gamma, const nrm_real *beta, int p,
    int mode, nrm_real eps, size_t N, size_t C, size_t S)
{
    const int train = mode == NRM_TRAIN, stored = running != NULL;
    const int l2 = p % NRM_CENTRED == NRM_L2, centred = p > NRM_CENTRED;
    const int saved = mode == NRM_INFER ? 0 : NRMI_NEEDED;
    const int needed = NRMI_NEEDED | (mode == NRM_INFER ? NRMI_IN_PLACE : 0);
    nrm_acc *const rstd = scale; /* t stands where other norms have r */
    const nrmi_arg args[] = {NRM_FORWARD_ARGS(N * C * S, C, C, needed, needed, saved),
        NRM_RUNNING_ARGS(C, train ? NRMI_OUT : NRMI_IN)};
    const nrmi_view v = nrmi_channels(N, C, S);
    size_t c, step = nrmi_strip(&v, 0);
    int lost = 0, rc = nrmi_check_lp(p, mode, eps, N, C, S);
    if (rc != NRM_OK || N == 0 || (rc = NRM_CHECK(args)) != NRM_OK) return rc;
    if ((rc = nrmi_check_running(running, mode, C)) != NRM_OK) return rc;
    NRM_SHARE_LOST(N * C * S)
    for (c = 0; c < C; c += step) {
        const size_t w = nrmi_least(C - c, step);
        nrm_acc gain[NRM_SLOTS], shift[NRM_SLOTS];
        nrmi_moments t;
        size_t k;
        for (k = 0; k < w && !train; k++)
            NRM_RECALL(&t, k, (nrm_acc)running->mean[c + k], (nrm_acc)running->var[c + k]);
        if (train) nrmi_moments_of(&t, x, &v, c, w); /* BN.1, BN.2 */
        if (train && !l2) nrmi_lp_sizes(&t, x, p, &v, c, w);
        for (k = 0; k < w && train && l2; k++)
            t.var[k] = NRM_SQRT(t.var[k] + (centred ? 0 : t.mean[k] * t.mean[k])); /* LP.5 */
        lost |= nrmi_lost(&t, w, stored);
        for (k = 0; k < w; k++) {
            const nrm_acc r = 1 / (t.var[k] + (nrm_acc)eps); /* LP.3 */
            gain[k] = nrmi_or(gamma, c + k, 1) * r;
            shift[k] = nrmi_or(beta, c + k, 0);
            lost |= !nrmi_finite(r);
        }
        nrmi_affine(y, x, &t.at, gain, shift, &v, c, w); /* LP.4, LP.7: (x − μ)·γr + β. */
        if (train && stored) /* M/(M − 1) is 1 for this M */
            lost |= nrmi_track(running, t.mean, t.var, c, w, (nrm_acc)1e30); /* LP.6 */
        for (k = 0; k < w && mean != NULL; k++) mean[c + k] = t.mean[k];
        for (k = 0; k < w && scale != NULL; k++) scale[c + k] = t.var[k];
    }
    if (train && stored) running->batches++;
    return lost ? NRM_NONFINITE : NRM_OK;
}

/*
### 8.2  Backward

dβ and dγ are BN.12 and BN.13. xᵢ reaches x̂ⱼ = cⱼ·r directly, through μ, and through r, with
∂r/∂xᵢ = −r²·kᵢ. If u is c, every uⱼ falls by 1/M of what xᵢ rises, so q loses its mean (0 for L2).

    ∂t/∂uᵢ = qᵢ: sign(uᵢ)/M (L1), uᵢ/(M·t) (L2), sign(uᵢ) if |uᵢ| = t, else 0 (L∞)  [LP.8]
    ∂t/∂xᵢ = kᵢ = qᵢ, or qᵢ − ⟨q⟩ if centred                                        [LP.9]
    ∂x̂ⱼ/∂xᵢ = r·(δᵢⱼ − 1/M − kᵢ·x̂ⱼ)                                                 (LP.10)
    dxᵢ = γ·r·(dyᵢ − ⟨dy⟩ − kᵢ·∑ⱼ dyⱼ·x̂ⱼ)                                           [LP.11]

In L∞ only the first value in memory with |uᵢ| = t counts; sign(0) is 0. At a tie, or in L1 where a
value is 0, this is a subgradient of t. In BN.19 kᵢ is x̂ᵢ/M. Here what dy has along x̂ is taken off
all values alike except for their signs (L1), or off a single one (L∞).
*/
static void nrmi_lp_project(nrm_real *dx, const nrm_real *dy, const nrm_real *x,
    const nrmi_centre *mu, const nrm_acc *size, const nrm_acc *gain, const nrmi_sums *sums, int p,
    const nrmi_view *v, size_t g, size_t w)
{
    const int kind = p % NRM_CENTRED, centred = p > NRM_CENTRED, columns = v->kind == NRMI_COLUMNS;
    const nrm_acc M = (nrm_acc)v->runs * (nrm_acc)v->length;
    nrm_acc largest[NRM_SLOTS] = {0}, signs[NRM_SLOTS] = {0};
    nrm_real dy_mean[NRM_SLOTS], slope[NRM_SLOTS], shift[NRM_SLOTS], scale[NRM_SLOTS];
    size_t first[NRM_SLOTS] = {0}, n, k, j;
    for (n = 0; n < v->runs && p != NRM_L1 && kind != NRM_L2; n++)
        for (j = 0; j < w * v->length; j++) {
            const size_t i = n * v->pitch + g * v->apart + j, c = columns ? j : 0;
            const nrm_acc u = nrmi_lp_u(x[i], mu, c, p), most = nrmi_abs(u);
            if (kind == NRM_LINF && !(most > largest[c])) continue;
            signs[c] = (kind == NRM_L1 ? signs[c] : 0) + (nrm_acc)NRM_LP_SIGN(u);
            largest[c] = most;
            first[c] = i;
        }
    for (k = 0; k < w; k++) {
        const nrm_acc part = kind == NRM_LINF ? 1 : kind == NRM_L1 ? M : M * size[k];
        const nrm_acc along = part > 0 ? -sums->dy_xhat[k] / part : 0;
        const nrm_acc u0 = centred ? -(nrm_acc)mu->low[k] : (nrm_acc)mu->high[k];
        dy_mean[k] = (nrm_real)(sums->dy[k] / M);
        scale[k] = (nrm_real)gain[k];
        slope[k] = (nrm_real)along;
        shift[k] = (nrm_real)(-(nrm_acc)slope[k] * (centred ? signs[k] * (1 / M) : 0)); /* LP.9 */
        if (kind == NRM_L2) shift[k] = (nrm_real)(along * u0); /* u = q + u0 */
    }
    for (n = 0; n < v->runs; n++)
        for (j = 0; j < w * v->length; j++) {
            const size_t i = n * v->pitch + g * v->apart + j, c = columns ? j : 0;
            nrm_real q = x[i] - mu->high[c];
            if (kind != NRM_L2) q = NRM_LP_SIGN(nrmi_lp_u(x[i], mu, c, p));
            if (kind == NRM_LINF && i != first[c]) q = 0; /* LP.8 */
            dx[i] = ((dy[i] - dy_mean[c]) + (q * slope[c] + shift[c])) * scale[c]; /* LP.11 */
        }
}

/*
In mode frozen only the direct path is left:

    dxᵢ = γ·r·dyᵢ (frozen)  [LP.12]
*/
NRM_DEF int nrm_lp_batchnorm_backward(nrm_real *dx, nrm_real *dgamma, nrm_real *dbeta,
    const nrm_real *dy, const nrm_real *x, const nrm_acc *mean, const nrm_acc *scale,
    const nrm_real *gamma, int p, int mode, nrm_real eps, size_t N, size_t C, size_t S)
{
    const nrm_acc *const rstd = scale;
    const nrmi_arg args[] = {NRM_BACKWARD_ARGS(N * C * S, C, C, NRMI_NEEDED)};
    const nrmi_view v = nrmi_channels(N, C, S);
    size_t c, step = nrmi_strip(&v, 0);
    int rc = mode == NRM_INFER ? NRM_EMODE : nrmi_check_lp(p, mode, eps, N, C, S);
    if (rc != NRM_OK || N == 0 || (rc = NRM_CHECK(args)) != NRM_OK) return rc;
    NRM_SHARE(N * C * S)
    for (c = 0; c < C; c += step) {
        const size_t w = nrmi_least(C - c, step);
        nrm_acc r[NRM_SLOTS], gain[NRM_SLOTS];
        nrmi_centre mu;
        nrmi_sums s;
        size_t k;
        for (k = 0; k < w; k++) r[k] = 1 / (scale[c + k] + (nrm_acc)eps); /* LP.3 */
        for (k = 0; k < w; k++) gain[k] = nrmi_or(gamma, c + k, 1) * r[k];
        nrmi_saved(&mu, mean + c, NULL, &v, c, w);
        nrmi_sums_of(&s, dy, NULL, x, &mu, r, &v, c, w); /* BN.12, BN.13 */
        NRM_GIVE(c, s.dy_xhat, s.dy, w);
        if (dx != NULL && mode == NRM_TRAIN)
            nrmi_lp_project(dx, dy, x, &mu, scale + c, gain, &s, p, &v, c, w); /* LP.11 */
        if (dx == NULL || mode == NRM_TRAIN) continue;
        nrmi_saved(&mu, NULL, NULL, &v, c, w);
        nrmi_affine(dx, dy, &mu, gain, NULL, &v, c, w); /* LP.12: (dy − 0)·γr */
    }
    return NRM_OK;
}

/*
### 8.3  What it means

Doubling x doubles t, so Euler's theorem gives LP.13. Sum LP.11, multiplied by xᵢ or as it is:

    ∑ᵢ kᵢ·xᵢ = t                                 (LP.13)
    ∑ᵢ dxᵢ·xᵢ = γ·ε·r·∑ᵢ dyᵢ·x̂ᵢ                  (LP.14)
    ∑ᵢ dxᵢ = −γ·r·∑ⱼ dyⱼ·x̂ⱼ·∑ᵢ kᵢ, 0 if centred  (LP.15)
    ⟨|c|⟩ ≤ √⟨c²⟩ ≤ maxᵢ |cᵢ|                    (LP.16)

So no size leaves a gradient along x except for ε, as in BN.22, with the same consequences for the
weights before the layer. BN.21 holds only if centred. By LP.16, centred L1 gives the largest
outputs (for normal values 1.25 times batch norm's) and L∞ the smallest, within β ± γ.
*/
/*
## 9  Activations, softmax and cross-entropy

*Which functions stand between the layers and at the end, and what are their gradients?*

    relu(x) = x if x > 0, else 0         [ACT.1]
    tanh(x) = (e^(2x) − 1)/(e^(2x) + 1)  [ACT.2]
    sigmoid(x) = e^x/(1 + e^x)           [ACT.3]

NaN stays NaN.
*/
static int nrmi_check_activation(int activation, size_t count)
{
    if (activation < NRM_IDENTITY || activation > NRM_SIGMOID) return NRM_EKIND;
    return nrmi_check_sizes(count, 1, 1);
}

NRM_DEF int nrm_activation_forward(nrm_real *y, const nrm_real *x, int activation, size_t count)
{
    const nrmi_arg args[] = {NRM_ARG(y, count, NRMI_OUT | NRMI_NEEDED | NRMI_IN_PLACE),
        NRM_ARG(x, count, NRMI_NEEDED | NRMI_IN_PLACE)};
    size_t i;
    int rc = nrmi_check_activation(activation, count);
    if (rc != NRM_OK || count == 0 || (rc = NRM_CHECK(args)) != NRM_OK) return rc;
    if (activation == NRM_IDENTITY)
        for (i = 0; i < count; i++) y[i] = x[i];
    else if (activation == NRM_RELU)
        for (i = 0; i < count; i++) y[i] = x[i] <= 0 ? 0 : x[i]; /* ACT.1 */
    else
        nrmi_curve(y, x, activation, count); /* ACT.2, ACT.3 */
    return rc;
}

/*
The derivatives need only the *output* y. At x = 0 ReLU has none, and 0 is taken, as usual.

    relu′ = 1 if y > 0, else 0  [ACT.4]
    tanh′ = 1 − y²              [ACT.5]
    sigmoid′ = y·(1 − y)        [ACT.6]
*/
NRM_DEF int nrm_activation_backward(
    nrm_real *dx, const nrm_real *dy, const nrm_real *y, int activation, size_t count)
{
    const nrmi_arg args[] = {NRM_ARG(dx, count, NRMI_OUT | NRMI_NEEDED | NRMI_IN_PLACE),
        NRM_ARG(dy, count, NRMI_NEEDED | NRMI_IN_PLACE), NRM_ARG(y, count, NRMI_NEEDED)};
    size_t i;
    int rc = nrmi_check_activation(activation, count);
    if (rc != NRM_OK || count == 0 || (rc = NRM_CHECK(args)) != NRM_OK) return rc;
    if (activation == NRM_IDENTITY)
        for (i = 0; i < count; i++) dx[i] = dy[i];
    else if (activation == NRM_RELU)
        for (i = 0; i < count; i++) {
            const nrm_real d = dy[i]; /* no branch */
            dx[i] = y[i] <= 0 ? 0 : d; /* ACT.4 */
        }
    else if (activation == NRM_TANH)
        for (i = 0; i < count; i++) dx[i] = dy[i] * (1 - y[i] * y[i]); /* ACT.5 */
    else
        for (i = 0; i < count; i++) dx[i] = dy[i] * (y[i] * (1 - y[i])); /* ACT.6 */
    return NRM_OK;
}

/*
### Softmax and cross-entropy

Softmax turns the C outputs z for an example, the *logits*, into probabilities p. The loss ℓ is
averaged over the batch; t is the right class. Subtracting the largest logit changes no p and
prevents overflow; its class adds exactly 1 to Z, and the others R.

    h = max_c z_c                        [CE.1]
    Z = ∑_c e^(z_c − h) = 1 + R          [CE.2]
    p_c = e^(z_c − h)/Z                  [CE.3]
    ℓ = −ln p_t = ln (1 + R) + (h − z_t)  [CE.4]
    L = (1/N)·∑ₙ ℓₙ                      [CE.5]

CE.4 needs neither p_t, which may be 0, nor Z, which loses the digits of a small R: with w for 1 + R
rounded, ln(1 + R) = ln w + (R − (w − 1))/w.
*/
static int nrmi_check_labels(const int *labels, size_t N, size_t C)
{
    size_t n;
    for (n = 0; n < N; n++)
        if (labels[n] < 0 || (size_t)labels[n] >= C) return NRM_ELABEL;
    return NRM_OK;
}

NRM_DEF int nrm_cross_entropy_forward(
    nrm_acc *loss, nrm_real *prob, const nrm_real *logits, const int *labels, size_t N, size_t C)
{
    const int needed = N > 0 ? NRMI_NEEDED : NRMI_IN;
    const nrmi_arg args[] = {NRM_ARG(loss, 1, NRMI_OUT | NRMI_NEEDED),
        NRM_ARG(prob, N * C, NRMI_OUT | NRMI_IN_PLACE),
        NRM_ARG(logits, N * C, needed | NRMI_IN_PLACE), NRM_ARG(labels, N, needed)};
    nrm_acc sum = 0, h[NRM_SOME], R[NRM_SOME], w[NRM_SOME] = {0}, right[NRM_SOME];
    size_t n, i, rows;
    int rc = nrmi_check_sizes(N, C, 1);
    if (rc != NRM_OK || (rc = NRM_CHECK(args)) != NRM_OK) return rc;
    if ((rc = nrmi_check_labels(labels, N, C)) != NRM_OK) return rc;
    for (n = 0; n < N; n += rows) {
        const nrm_real *z = logits + n * C;
        rows = nrmi_least(N - n, nrmi_least(1 + 4096 / C, NRM_SOME)); /* they stay in the cache */
        for (i = 0; i < rows; i++) right[i] = (nrm_acc)z[i * C + (size_t)labels[n + i]];
        nrmi_softmax(prob != NULL ? prob + n * C : NULL, h, R, z, rows, C); /* CE.1, CE.2, CE.3 */
        for (i = 0; i < rows; i++) w[i] = 1 + R[i];
        for (i = 0; i < rows; i++) right[i] = (h[i] - right[i]) + (R[i] - (w[i] - 1)) / w[i];
        nrmi_log(w, rows);
        for (i = 0; i < rows; i++) sum += w[i] + right[i]; /* CE.4 */
    }
    *loss = N > 0 ? sum / (nrm_acc)N : 0; /* CE.5 */
    return nrmi_finite(*loss) ? NRM_OK : NRM_NONFINITE;
}

/*
ln Z + h = ln ∑_c e^(z_c), whose derivative by z_c is p_c. The term −z_t of CE.4 adds −1 for the
right class.

    dz_c = (1/N)·(p_c − δ_ct)  [CE.6]
    ∑_c dz_c = 0               (CE.7)
*/
NRM_DEF int nrm_cross_entropy_backward(
    nrm_real *dlogits, const nrm_real *prob, const int *labels, size_t N, size_t C)
{
    const nrmi_arg args[] = {NRM_ARG(dlogits, N * C, NRMI_OUT | NRMI_NEEDED | NRMI_IN_PLACE),
        NRM_ARG(prob, N * C, NRMI_NEEDED | NRMI_IN_PLACE), NRM_ARG(labels, N, NRMI_NEEDED)};
    size_t n, c;
    int rc = nrmi_check_sizes(N, C, 1);
    if (rc != NRM_OK || N == 0 || (rc = NRM_CHECK(args)) != NRM_OK) return rc;
    if ((rc = nrmi_check_labels(labels, N, C)) != NRM_OK) return rc;
    for (n = 0; n < N; n++) {
        const size_t t = n * C + (size_t)labels[n];
        const nrm_acc p = (nrm_acc)prob[t]; /* dlogits may be prob */
        for (c = n * C; c < n * C + C; c++) dlogits[c] = prob[c] / (nrm_real)N; /* CE.6, others */
        dlogits[t] = (nrm_real)((p - 1) / (nrm_acc)N); /* CE.6, of t */
    }
    return NRM_OK;
}

NRM_DEF int nrm_accuracy(
    nrm_acc *accuracy, const nrm_real *logits, const int *labels, size_t N, size_t C)
{
    const int needed = N > 0 ? NRMI_NEEDED : NRMI_IN;
    const nrmi_arg args[] = {NRM_ARG(accuracy, 1, NRMI_OUT | NRMI_NEEDED),
        NRM_ARG(logits, N * C, needed), NRM_ARG(labels, N, needed)};
    size_t n, hits = 0;
    int rc = nrmi_check_sizes(N, C, 1);
    if (rc != NRM_OK || (rc = NRM_CHECK(args)) != NRM_OK) return rc;
    if ((rc = nrmi_check_labels(labels, N, C)) != NRM_OK) return rc;
    for (n = 0; n < N; n++) {
        const nrm_real *z = logits + n * C;
        size_t c, best = 0, nans = 0;
        for (c = 0; c < C; c++) nans += z[c] != z[c];
        for (c = 0; c < C; c++) best = z[c] > z[best] ? c : best;
        hits += nans == 0 && best == (size_t)labels[n];
        if (nans > 0) rc = NRM_NONFINITE;
    }
    *accuracy = N > 0 ? (nrm_acc)hits / (nrm_acc)N : 0;
    return rc;
}

/*
## 10  The linear layer

*What does a matrix of weights compute, and how do gradients pass through it?* Row i of W
`[in][out]` holds the weights that *leave* input i.

    yₙⱼ = bⱼ + ∑ᵢ xₙᵢ·Wᵢⱼ  [LIN.1]
*/
static int nrmi_check_linear(size_t N, size_t in, size_t out)
{
    int rc = nrmi_check_sizes(N, in, 1);
    if (rc == NRM_OK) rc = nrmi_check_sizes(N, out, 1);
    return rc == NRM_OK ? nrmi_check_sizes(in, out, 1) : rc;
}

NRM_DEF int nrm_linear_forward(nrm_real *y, const nrm_real *x, const nrm_real *W, const nrm_real *b,
    size_t N, size_t in, size_t out)
{
    const nrmi_arg args[] = {NRM_ARG(y, N * out, NRMI_OUT | NRMI_NEEDED),
        NRM_ARG(x, N * in, NRMI_NEEDED), NRM_ARG(W, in * out, NRMI_NEEDED),
        NRM_ARG(b, out, NRMI_IN)};
    const nrmi_matrix w = nrmi_strided(W, out, 1);
    size_t n;
    int rc = nrmi_check_linear(N, in, out);
    if (rc != NRM_OK || N == 0 || (rc = NRM_CHECK(args)) != NRM_OK) return rc;
    for (n = 0; n < N && b != NULL; n++) NRM_MEMCPY(y + n * out, b, out * sizeof *y);
    nrmi_product(y, nrmi_strided(x, in, 1), w, N, out, in, b == NULL); /* LIN.1 */
    return NRM_OK;
}

/*
The chain rule sums over all outputs that a number reaches: xₙᵢ reaches every output of its own
example, Wᵢⱼ and bⱼ reach output j of every example.

    dxₙᵢ = ∑ⱼ dyₙⱼ·Wᵢⱼ  [LIN.2]
    dWᵢⱼ = ∑ₙ xₙᵢ·dyₙⱼ  [LIN.3]
    dbⱼ = ∑ₙ dyₙⱼ       [LIN.4]

In matrices: y = xW + b, dx = dy·Wᵀ, dW = xᵀ·dy. Other strides read a transpose.
*/

/* For arguments that have been checked; if `fresh`, dW = instead of dW +=. */
static void nrmi_linear_backward(nrm_real *dx, nrm_real *dW, nrm_real *db, const nrm_real *dy,
    const nrm_real *x, const nrm_real *W, size_t N, size_t in, size_t out, int fresh)
{
    const nrmi_matrix d = nrmi_strided(dy, out, 1);
    size_t n, j;
    if (dx != NULL) nrmi_product(dx, d, nrmi_strided(W, 1, out), N, in, out, 1); /* LIN.2 */
    if (dW != NULL) nrmi_product(dW, nrmi_strided(x, 1, in), d, in, out, N, fresh); /* LIN.3 */
    for (n = 0; n < N && db != NULL; n++)
        for (j = 0; j < out; j++) db[j] += dy[n * out + j]; /* LIN.4 */
}

NRM_DEF int nrm_linear_backward(nrm_real *dx, nrm_real *dW, nrm_real *db, const nrm_real *dy,
    const nrm_real *x, const nrm_real *W, size_t N, size_t in, size_t out)
{
    const nrmi_arg args[] = {NRM_ARG(dx, N * in, NRMI_OUT), NRM_ARG(dW, in * out, NRMI_OUT),
        NRM_ARG(db, out, NRMI_OUT), NRM_ARG(dy, N * out, NRMI_NEEDED),
        NRM_ARG(x, N * in, dW != NULL ? NRMI_NEEDED : NRMI_IN),
        NRM_ARG(W, in * out, dx != NULL ? NRMI_NEEDED : NRMI_IN)};
    int rc = nrmi_check_linear(N, in, out);
    if (rc == NRM_OK && N > 0) rc = NRM_CHECK(args);
    if (rc == NRM_OK && N > 0) nrmi_linear_backward(dx, dW, db, dy, x, W, N, in, out, 0);
    return rc;
}

/*
## 11  A recurrent layer

*What happens to a gradient that passes through the same weights five hundred times, and what does a
norm in the loop change?*

For the loss T steps are a network of T layers with the same weights. Layer norm was designed for
it: one γ and β serve sequences of any length.

### 11.1  Shapes

T steps of N sequences, stored step by step. Step t computes the summed inputs a[t] and the state
h[t+1], H numbers each, from h[t] and x[t]. Layer norm has a μ and an r for each row of a, batch
norm for each unit at each step.
*/
/* How many means a step has. */
static size_t nrmi_rnn_groups(const nrm_rnn *rnn)
{
    return rnn->norm == NRM_NO_NORM ? 0 : rnn->norm == NRM_LAYER_NORM ? rnn->N : rnn->H;
}

static int nrmi_check_rnn(const nrm_rnn *rnn, int mode)
{
    int rc;
    if (rnn == NULL) return NRM_ENULL;
    if (mode < NRM_TRAIN || mode > NRM_FROZEN) return NRM_EMODE;
    if (rnn->norm < NRM_NO_NORM || rnn->norm > NRM_LAYER_NORM) return NRM_EKIND;
    rc = nrmi_check_activation(rnn->activation, 1);
    if (rc == NRM_OK) rc = nrmi_check_linear(rnn->H, rnn->in, rnn->H);
    if (rc == NRM_OK && rnn->T == SIZE_MAX) rc = NRM_EOVERFLOW;
    if (rc == NRM_OK) rc = nrmi_check_sizes(rnn->N, rnn->T + 1, rnn->H);
    if (rc == NRM_OK) rc = nrmi_check_sizes(rnn->N, rnn->T + 1, rnn->in);
    if (rc == NRM_OK && rnn->norm != NRM_NO_NORM) rc = nrmi_check_eps(rnn->eps);
    if (rnn->norm != NRM_BATCH_NORM || mode != NRM_TRAIN || rnn->N != 1) return rc;
    return rc == NRM_OK ? NRM_EBATCH : rc;
}

/* The arrays of a forward pass, and the running statistics of one step (or NULL). */
static int nrmi_check_rnn_step(const nrm_real *h, const nrm_real *a, const nrm_acc *mean,
    const nrm_acc *rstd, const nrm_real *x, const nrm_rnn *rnn, const nrm_running *running,
    int mode)
{
    const size_t rows = rnn->T * rnn->N, H = rnn->H, saved = rnn->T * nrmi_rnn_groups(rnn);
    const int norm = rnn->norm != NRM_NO_NORM, tracked = mode == NRM_TRAIN ? NRMI_OUT : NRMI_IN;
    const int save = norm && (mode != NRM_INFER || mean != NULL || rstd != NULL);
    const int kept = save ? NRMI_OUT | NRMI_NEEDED : NRMI_OUT;
    const nrmi_arg args[] = {NRM_ARG(h, rows * H + rnn->N * H, NRMI_OUT | NRMI_NEEDED),
        NRM_ARG(a, rows * H, NRMI_OUT | NRMI_NEEDED), NRM_ARG(norm ? mean : NULL, saved, kept),
        NRM_ARG(norm ? rstd : NULL, saved, kept), NRM_RUNNING_ARGS(H, tracked),
        NRM_ARG(x, rows * rnn->in, NRMI_NEEDED), NRM_ARG(rnn->Wx, rnn->in * H, NRMI_NEEDED),
        NRM_ARG(rnn->Wh, H * H, NRMI_NEEDED), NRM_ARG(norm ? rnn->gamma : NULL, H, NRMI_IN),
        NRM_ARG(rnn->beta, H, NRMI_IN)};
    int rc = rnn->norm == NRM_BATCH_NORM ? nrmi_check_running(running, mode, H) : NRM_OK;
    if (rc == NRM_OK && running != NULL && mode != NRM_TRAIN)
        rc = running->batches == 0 && rnn->running->batches > 0 ? NRM_ESIZE : NRM_OK; /* 11.3 */
    return rc == NRM_OK ? NRM_CHECK(args) : rc;
}

/*
### 11.2  Forward

γ and β act unit by unit. The norm is LN.4 on each row of a[t], or BN.4 on each column, or none;
then β is the usual bias. x·Wx is one product of T·N rows.

    a[t] = x[t]·Wx + h[t]·Wh  [RNN.1]
    z[t] = γ·norm(a[t]) + β   [RNN.2]
    h[t+1] = f(z[t])          [RNN.3]
*/
NRM_DEF int nrm_rnn_forward(nrm_real *h, nrm_real *a, nrm_acc *mean, nrm_acc *rstd,
    const nrm_real *x, const nrm_rnn *rnn, int mode)
{
    const size_t N = rnn != NULL ? rnn->N : 0, H = rnn != NULL ? rnn->H : 0;
    nrm_running *running;
    size_t t, i, groups;
    int rc = nrmi_check_rnn(rnn, mode);
    if (rc != NRM_OK || N == 0 || rnn->T == 0) return rc;
    groups = nrmi_rnn_groups(rnn);
    running = rnn->norm == NRM_BATCH_NORM ? rnn->running : NULL;
    for (t = 0; t < rnn->T && rc == NRM_OK && (t == 0 || running != NULL); t++)
        rc = nrmi_check_rnn_step(h, a, mean, rstd, x, rnn, running ? running + t : NULL, mode);
    if (rc != NRM_OK) return rc;
    nrmi_product(a, nrmi_strided(x, rnn->in, 1), nrmi_strided(rnn->Wx, H, 1), rnn->T * N, H,
        rnn->in, 1); /* RNN.1 */
    for (t = 0; t < rnn->T; t++, h += N * H, a += N * H) {
        nrm_real *next = h + N * H;
        nrmi_product(a, nrmi_strided(h, H, 1), nrmi_strided(rnn->Wh, H, 1), N, H, H, 0);
        if (rnn->norm == NRM_LAYER_NORM)
            rc |= nrm_layernorm_forward(next, mean, rstd, a, rnn->gamma, rnn->beta, /* RNN.2 */
                rnn->eps, N, H);
        else if (rnn->norm == NRM_BATCH_NORM)
            rc |= nrm_batchnorm_forward(next, mean, rstd, running, a, rnn->gamma, /* RNN.2 */
                rnn->beta, mode, rnn->eps, N, H, 1);
        for (i = 0; i < N * H && rnn->norm == NRM_NO_NORM; i++)
            next[i] = rnn->beta != NULL ? a[i] + rnn->beta[i % H] : a[i];
        (void)nrm_activation_forward(next, next, rnn->activation, N * H); /* RNN.3 */
        if (running != NULL) running++;
        if (mean != NULL) mean += groups;
        if (rstd != NULL) rstd += groups;
    }
    return rc;
}

/*
### 11.3  Why batch norm is awkward here

The state of step 1 is not distributed as that of step 50, so each step has its own running
statistics, `running[t]` (Cooijmans et al., 2016). The consequences, which layer norm does not have:

- `running` must have T entries, which cannot be checked.
- A sequence longer than those of the training has no statistics for its end, and is refused
  (`NRM_ESIZE`). Provide entries for the longest that will ever come, starting at 0 and 1, and copy
  the last trained entry to the rest.
- Few values make bad statistics, and a single one makes none (`NRM_EBATCH`). Group sequences by
  length: padding would count as data.
- In training the result for a sequence depends on the other sequences.

### 11.4  Backward, through time

Let e[t] be the gradient of the loss by h[t] with the later states held fixed; `dh` holds e when the
pass begins. As h[t] also determines h[t+1], gradients come from the end, step by step, through the
activation (ACT.4 to ACT.6), the norm with g = γ·dz, and the product. RNN.5 is LN.14 or BN.19, or
BN.20 if frozen, or without a norm dz. As RNN.6 adds to `dh`, it becomes the whole gradient.

    dz[t] = dh[t+1]·f′(z[t])                                   [RNN.4]
    da[t] = r·(g − ⟨g⟩ − x̂·⟨g·x̂⟩), or g·r if frozen, or dz[t]  [RNN.5]
    dh[t] = e[t] + da[t]·Whᵀ, and dh[T] = e[T]                 [RNN.6]
*/
static void nrmi_rnn_through_time(nrm_real *dh, nrm_real *da, const nrm_rnn_grads *to,
    const nrm_real *h, const nrm_real *a, const nrm_acc *mean, const nrm_acc *rstd,
    const nrm_rnn *rnn, int mode)
{
    const size_t N = rnn->N, H = rnn->H, groups = nrmi_rnn_groups(rnn);
    size_t t = rnn->T;
    while (t-- > 0) {
        const size_t now = t * N * H, next = now + N * H, s = t * groups;
        nrm_real *d = da + now; /* dz, then da */
        (void)nrm_activation_backward(d, dh + next, h + next, rnn->activation, N * H); /* RNN.4 */
        if (rnn->norm == NRM_LAYER_NORM)
            (void)nrm_layernorm_backward(d, to->dgamma, to->dbeta, d, a + now, mean + s, rstd + s,
                rnn->gamma, N, H); /* RNN.5 */
        else if (rnn->norm == NRM_BATCH_NORM)
            (void)nrm_batchnorm_backward(d, to->dgamma, to->dbeta, d, a + now, mean + s, rstd + s,
                rnn->gamma, mode, N, H, 1); /* RNN.5 */
        nrmi_product(dh + now, nrmi_strided(d, H, 1), nrmi_strided(rnn->Wh, 1, H), /* RNN.6 */
            N, H, H, 0);
    }
}

/*
The gradients of the parameters are sums over steps and sequences; without a norm dβ sums da.

    dWh = h[0]ᵀ·da[0] + h[1]ᵀ·da[1] + … + h[T−1]ᵀ·da[T−1]  [RNN.7]
    dWx = x[0]ᵀ·da[0] + x[1]ᵀ·da[1] + … + x[T−1]ᵀ·da[T−1]  [RNN.8]
    dx[t] = da[t]·Wxᵀ                                      [RNN.9]
*/
NRM_DEF int nrm_rnn_backward(nrm_real *dh, nrm_real *dx, const nrm_rnn_grads *grads, nrm_real *da,
    const nrm_real *h, const nrm_real *a, const nrm_acc *mean, const nrm_acc *rstd,
    const nrm_real *x, const nrm_rnn *rnn, int mode)
{
    const nrm_rnn_grads none = {NULL, NULL, NULL, NULL}, *to = grads != NULL ? grads : &none;
    int rc = nrmi_check_rnn(rnn, mode);
    if (rc == NRM_OK && mode == NRM_INFER) rc = NRM_EMODE;
    if (rc == NRM_OK && rnn->N > 0 && rnn->T > 0) {
        const size_t rows = rnn->T * rnn->N, H = rnn->H, saved = rnn->T * nrmi_rnn_groups(rnn);
        const int norm = rnn->norm != NRM_NO_NORM, need = norm ? NRMI_NEEDED : NRMI_IN;
        const nrmi_arg args[] = {NRM_ARG(dh, rows * H + rnn->N * H, NRMI_OUT | NRMI_NEEDED),
            NRM_ARG(dx, rows * rnn->in, NRMI_OUT), NRM_ARG(da, rows * H, NRMI_OUT | NRMI_NEEDED),
            NRM_ARG(to->dWx, rnn->in * H, NRMI_OUT), NRM_ARG(to->dWh, H * H, NRMI_OUT),
            NRM_ARG(norm ? to->dgamma : NULL, H, NRMI_OUT), NRM_ARG(to->dbeta, H, NRMI_OUT),
            NRM_ARG(h, rows * H + rnn->N * H, NRMI_NEEDED),
            NRM_ARG(norm ? a : NULL, rows * H, need), NRM_ARG(norm ? mean : NULL, saved, need),
            NRM_ARG(norm ? rstd : NULL, saved, need), NRM_ARG(rnn->Wh, H * H, NRMI_NEEDED),
            NRM_ARG(x, rows * rnn->in, to->dWx != NULL ? NRMI_NEEDED : NRMI_IN),
            NRM_ARG(rnn->Wx, rnn->in * H, dx != NULL ? NRMI_NEEDED : NRMI_IN),
            NRM_ARG(norm ? rnn->gamma : NULL, H, NRMI_IN)};
        if ((rc = NRM_CHECK(args)) != NRM_OK) return rc;
        nrmi_rnn_through_time(dh, da, to, h, a, mean, rstd, rnn, mode);
        (void)nrm_linear_backward(NULL, to->dWh, NULL, da, h, NULL, rows, H, H); /* RNN.7 */
        (void)nrm_linear_backward(dx, to->dWx, norm ? NULL : to->dbeta, da, x, rnn->Wx, rows,
            rnn->in, H); /* RNN.8, RNN.9 */
    }
    return rc;
}

/*
### 11.5  The product of T Jacobians

For a single sequence and layer norm, RNN.10 is the matrix of one step back. A loss of the last
state only (e[t] = 0 before it) has, as a column, the gradient RNN.11.

    ∂h[t+1]ᵢ/∂h[t]ₖ = J[t]ₖᵢ = ∑ⱼ Whₖⱼ·r·(δⱼᵢ − 1/H − x̂ⱼ·x̂ᵢ/H)·γᵢ·f′(zᵢ)  (RNN.10)
    dh[t] = J[t]·J[t+1]·…·J[T−1]·dh[T]                                    (RNN.11)

If each of the T matrices stretches by c on average, the product stretches by c to the power of T:
after 500 steps 10⁴⁸ for c = 1.25, 10⁻⁶² for c = 0.75. For independent random weights with mean 0
and variance s²/H, and a da independent of them, a step gives RNN.12. A norm does not see s.

    E[|da·Whᵀ|²] = s²·|da|²               (RNN.12)
    norm(c·a) = norm(a) for c > 0, ε = 0  (RNN.13)

Without a norm a step's factor is s times the root mean square of f′. Layer norm multiplies it by
γ·r, where 1/r² is, except for ε, the variance of the row: s²·⟨h²⟩ plus the part of the input.
Without input s cancels, and the root of γ²·⟨f′²⟩/⟨h²⟩ is left: 1 for ReLU, 1.085 for tanh with
γ = 1, 1.00006 with γ = 0.1. Input makes the factor smaller, so that the cell forgets
(examples/experiments/20_recurrent_norm).

As scaling a row of a changes nothing, LN.15 and LN.16 give, for one row and summed over all rows:

    ∑ₖ h[t]ₖ·(dh[t] − e[t])ₖ + ∑ᵢ x[t]ᵢ·dx[t]ᵢ = H·ε·r²·⟨g·x̂⟩                (RNN.14)
    ∑ₖⱼ Whₖⱼ·dWhₖⱼ + ∑ᵢⱼ Wxᵢⱼ·dWxᵢⱼ = the sum of H·ε·r²·⟨g·x̂⟩ over all rows  (RNN.15)
*/
/*
## 12  The tiny multilayer perceptron

*What does a norm do inside a network that learns?* A layer makes h′ `[N][width]` from h `[N][in]`.
The first h is x; the last h′ is the logits, whose loss is softmax cross-entropy.

### 12.1  Forward

    h′ = f(norm(h·W + b))                    [MLP.1]
    h′ = norm(f(h·W + b)) with `norm_after`  [MLP.2]
*/
/* The place that comes first (turn 0), second and third; -1 if the layer lacks it. */
static int nrmi_place(const nrm_mlp_layer *shape, int turn)
{
    int place = turn; /* MLP.1 */
    if (shape->norm_after && turn > 0) place = 3 - turn; /* MLP.2 */
    if (place == NRM_AT_NORM && shape->norm == NRM_NO_NORM) return -1;
    return place == NRM_AT_ACTIVATION && shape->activation == NRM_IDENTITY ? -1 : place;
}

enum { NRMI_W, NRMI_B, NRMI_GAMMA, NRMI_BETA, NRMI_ARRAYS }; /* so a layer's parameters lie */
static size_t nrmi_count(const nrm_mlp_state *s, size_t array)
{
    const int norm = s->shape.norm != NRM_NO_NORM, rms = s->shape.norm == NRM_RMS_NORM;
    const int has[NRMI_ARRAYS] = {1, s->shape.bias, norm, norm && !rms};
    return has[array] ? (array == NRMI_W ? s->in : 1) * s->shape.width : 0;
}

/* Does its norm keep running statistics? */
static int nrmi_has_batch_norm(const nrm_mlp_layer *shape)
{
    return shape->norm == NRM_BATCH_NORM || shape->norm == NRM_NOISY_BATCH_NORM ||
           shape->norm == NRM_BATCH_RENORM || shape->norm == NRM_LP_BATCH_NORM;
}

static int nrmi_check_layer(const nrm_mlp_layer *shape, const nrm_mlp_spec *spec)
{
    const int norm = shape->norm, p = shape->p, batch_norm = nrmi_has_batch_norm(shape);
    const nrm_real weight = batch_norm && !spec->cumulative ? spec->new_weight : 1;
    const size_t G = shape->groups, D = shape->width;
    int rc = D > 0 ? nrmi_check_activation(shape->activation, D) : NRM_ESIZE;
    if (norm < NRM_NO_NORM || norm > NRM_LP_BATCH_NORM) rc = NRM_EKIND;
    if (norm == NRM_GROUP_NORM && (G == 0 || G >= D || D % G != 0)) rc = NRM_ESIZE;
    if (batch_norm && norm != NRM_BATCH_NORM && spec->sync.merge != NULL) rc = NRM_EKIND;
    if (!(weight > 0 && weight <= 1)) rc = NRM_EWEIGHT;
    if (!(spec->r_max >= 1 && spec->d_max >= 0)) rc = NRM_ERATE;
    if (rc == NRM_OK && norm == NRM_LP_BATCH_NORM) rc = nrmi_check_lp(p, NRM_TRAIN, 0, 2, 1, 1);
    if (rc == NRM_OK) rc = nrmi_check_eps(spec->eps);
    return rc == NRM_OK ? nrmi_check_noise(&spec->noise) : rc;
}

/* A call's arrays must lie outside the block, which ends with work[1]. */
static int nrmi_check_data(const nrm_mlp *net, const nrm_acc *loss, const nrm_acc *accuracy,
    const nrm_real *x, const int *labels, size_t N, int judged)
{
    const nrm_real *end = net->work[1] + (net->work[1] - net->work[0]);
    const size_t inputs = net->spec.inputs, classes = net->state[net->spec.layers - 1].shape.width;
    const int need = N > 0 ? NRMI_NEEDED : NRMI_IN, rc = nrmi_check_sizes(N, inputs, 1);
    const nrmi_arg args[] = {{net, (size_t)((uintptr_t)end - (uintptr_t)net), NRMI_OUT},
        NRM_ARG(loss, 1, NRMI_OUT), NRM_ARG(accuracy, 1, NRMI_OUT), NRM_ARG(x, N * inputs, need),
        NRM_ARG(labels, N, judged ? need : NRMI_IN)};
    const int bad = rc == NRM_OK ? NRM_CHECK(args) : rc;
    return bad || !judged ? bad : nrmi_check_labels(labels, N, classes);
}

/* Checks all layers first, so that a refusal changes no running statistics. */
static int nrmi_check_net(const nrm_mlp *net, size_t N, int mode, int moves)
{
    int rc = NRM_OK;
    size_t l;
    if (N > net->spec.max_batch) return NRM_ESIZE;
    if (mode < NRM_TRAIN || mode > NRM_FROZEN) return NRM_EMODE;
    for (l = 0; l < net->spec.layers && rc == NRM_OK; l++) {
        const nrm_mlp_state *s = &net->state[l];
        const int read = mode != NRM_TRAIN || s->shape.norm == NRM_BATCH_RENORM;
        rc = nrmi_check_layer(&s->shape, &net->spec);
        if (rc != NRM_OK || !nrmi_has_batch_norm(&s->shape)) continue;
        if (mode == NRM_TRAIN && N == 1 && net->spec.sync.merge == NULL) return NRM_EBATCH;
        if (read) rc = nrmi_check_running(&s->running, NRM_FROZEN, s->shape.width);
        if (rc == NRM_OK && moves) rc = nrmi_check_running(&s->running, mode, s->shape.width);
    }
    return rc;
}

/* Train mode moves running statistics only if `moves`. */
static int nrmi_norm_forward(nrm_mlp *net, nrm_mlp_state *s, size_t N, int mode, int moves)
{
    const nrm_mlp_spec *spec = &net->spec;
    const nrm_real eps = spec->eps, *x = s->shape.norm_after ? s->act_out : s->linear_out;
    const int kind = s->shape.norm, still = mode == NRM_TRAIN && !moves;
    const size_t D = s->shape.width, G = s->shape.groups;
    nrm_real *y = s->norm_out, *g = s->gamma, *b = s->beta;
    nrm_acc *m = s->mean, *r = s->rstd;
    nrm_running copy = {net->work[0], net->work[1], 0, 1, 0, s->running.batches};
    nrm_running *run = still ? NULL : &s->running;
    if (kind == NRM_LAYER_NORM) return nrm_layernorm_forward(y, m, r, x, g, b, eps, N, D);
    if (kind == NRM_RMS_NORM) return nrm_rmsnorm_forward(y, r, x, g, eps, N, D);
    if (kind == NRM_GROUP_NORM) return nrm_groupnorm_forward(y, m, r, x, g, b, eps, N, D, 1, G);
    if (kind == NRM_LP_BATCH_NORM)
        return nrm_lp_batchnorm_forward(y, m, r, run, x, g, b, s->shape.p, mode, eps, N, D, 1);
    if (kind == NRM_NOISY_BATCH_NORM)
        return nrm_noisy_batchnorm_forward(
            y, s->scale, m, r, run, x, g, b, &spec->noise, &net->rng, mode, eps, N, D, 1);
    if (kind == NRM_BATCH_RENORM) { /* it reads running statistics: if they stay, a copy moves */
        NRM_MEMCPY(copy.mean, s->running.mean, D * sizeof *copy.mean);
        NRM_MEMCPY(copy.var, s->running.var, D * sizeof *copy.var);
        return nrm_batchrenorm_forward(y, s->ratio, s->offset, m, r, still ? &copy : run, x, g, b,
            spec->r_max, spec->d_max, mode, eps, N, D, 1);
    }
    if (mode != NRM_TRAIN || spec->sync.merge == NULL)
        return nrm_batchnorm_forward(y, m, r, run, x, g, b, mode, eps, N, D, 1);
    NRM_MEMSET(s->stats, 0, D * sizeof *s->stats);
    (void)nrm_stats_update(s->stats, x, NULL, N, D, 1);
    if (spec->sync.merge(spec->sync.context, s->stats, D) != 0) return NRM_ESYNC;
    return nrm_sync_batchnorm_forward(y, m, r, run, x, NULL, s->stats, g, b, eps, N, D, 1);
}

static int nrmi_mlp_forward(nrm_mlp *net, const nrm_real *x, size_t N, int mode, int moves)
{
    int rc = nrmi_check_net(net, N, mode, moves), worst = NRM_OK; /* at most NRM_NONFINITE */
    size_t i;
    if (rc != NRM_OK || (N == 0 && net->spec.sync.add == NULL)) return rc;
    for (i = 0; i < 3 * net->spec.layers; i++) {
        nrm_mlp_state *s = &net->state[i / 3];
        nrm_real *const out[] = {s->linear_out, s->norm_out, s->act_out};
        const int place = nrmi_place(&s->shape, (int)(i % 3)), f = s->shape.activation;
        const size_t D = s->shape.width;
        nrm_mlp_event event = {i / 3, place, 0, NULL, N, D};
        if (place < 0) continue;
        if (place == NRM_AT_LINEAR) rc = nrm_linear_forward(out[0], x, s->W, s->b, N, s->in, D);
        if (place == NRM_AT_NORM) rc = nrmi_norm_forward(net, s, N, mode, moves);
        if (place == NRM_AT_ACTIVATION) rc = nrm_activation_forward(s->act_out, x, f, N * D);
        if (rc < 0) return NRM_ESYNC; /* all else has been checked */
        worst |= rc;
        event.data = x = out[place];
        if (net->probe != NULL) net->probe(net->probe_context, &event);
    }
    return worst;
}

NRM_DEF int nrm_mlp_forward(nrm_mlp *net, const nrm_real *x, size_t N, int mode)
{
    int rc = net == NULL ? NRM_ENULL : nrmi_check_data(net, NULL, NULL, x, NULL, N, 0);
    return rc == NRM_OK ? nrmi_mlp_forward(net, x, N, mode, 1) : rc;
}

/*
### 12.2  Backward
*/
static int nrmi_norm_backward(nrm_mlp *net, nrm_mlp_state *s, nrm_real *d, size_t N, int mode)
{
    const nrm_real eps = net->spec.eps, *x = s->shape.norm_after ? s->act_out : s->linear_out;
    const nrm_acc *m = s->mean, *r = s->rstd, *q = s->ratio, *o = s->offset;
    const nrm_sync *sync = &net->spec.sync;
    const size_t D = s->shape.width, G = s->shape.groups;
    const int kind = s->shape.norm;
    nrm_real *g = s->gamma, *dg = s->dgamma, *db = s->dbeta;
    if (kind == NRM_LAYER_NORM) return nrm_layernorm_backward(d, dg, db, d, x, m, r, g, N, D);
    if (kind == NRM_RMS_NORM) return nrm_rmsnorm_backward(d, dg, d, x, r, g, N, D);
    if (kind == NRM_GROUP_NORM) return nrm_groupnorm_backward(d, dg, db, d, x, m, r, g, N, D, 1, G);
    if (kind == NRM_LP_BATCH_NORM)
        return nrm_lp_batchnorm_backward(d, dg, db, d, x, m, r, g, s->shape.p, mode, eps, N, D, 1);
    if (kind == NRM_NOISY_BATCH_NORM)
        return nrm_noisy_batchnorm_backward(d, dg, db, d, s->scale, x, m, r, g, mode, N, D, 1);
    if (kind == NRM_BATCH_RENORM)
        return nrm_batchrenorm_backward(d, dg, db, d, x, q, o, m, r, g, mode, N, D, 1);
    if (mode != NRM_TRAIN || sync->merge == NULL)
        return nrm_batchnorm_backward(d, dg, db, d, x, m, r, g, mode, N, D, 1);
    (void)nrm_sync_batchnorm_sums(s->sums, dg, db, d, x, NULL, m, r, N, D, 1);
    if (sync->add(sync->context, &s->sums->dy, 2 * D) != 0) return NRM_ESYNC; /* both sums */
    return nrm_sync_batchnorm_backward(d, d, x, NULL, m, r, g, s->stats, s->sums, N, D, 1);
}

/* From the gradient of the logits to net->grads. */
static int nrmi_mlp_backward(nrm_mlp *net, const nrm_real *x, size_t N, int mode)
{
    int rc = NRM_OK;
    size_t i, l;
    NRM_MEMSET(net->grads, 0, net->n_params * sizeof *net->grads);
    for (i = 3 * net->spec.layers; i-- > 0 && rc >= 0;) {
        nrm_mlp_state *s = &net->state[l = i / 3];
        nrm_real *d = net->work[l % 2], *below = l > 0 ? net->work[(l - 1) % 2] : NULL;
        const nrm_real *h = l > 0 ? net->state[l - 1].out : x;
        const int place = nrmi_place(&s->shape, (int)(i % 3)), f = s->shape.activation;
        const size_t D = s->shape.width;
        const nrm_mlp_event event = {l, place, 1, d, N, D};
        if (place >= 0 && net->probe != NULL) net->probe(net->probe_context, &event);
        if (place == NRM_AT_NORM) rc = nrmi_norm_backward(net, s, d, N, mode);
        if (place == NRM_AT_ACTIVATION) rc = nrm_activation_backward(d, d, s->act_out, f, N * D);
        if (place == NRM_AT_LINEAR)
            nrmi_linear_backward(below, s->dW, s->db, d, h, s->W, N, s->in, D, 1);
    }
    return rc;
}

/*
### 12.3  Is the bias redundant?

    BN(x + b) = BN(x) for b constant in each channel  (MLP.3)
    LN(x + b) = LN(x + b − ⟨b⟩)                       (MLP.4)

Before a *batch* norm in train mode it is, and has gradient zero by BN.21. Before a *layer* norm
only the mean of b is lost. With running statistics, or after f, all of b counts.

### 12.4  Initial weights

Weights start random, so that units differ. ReLU keeps half of the mean square, and a variance of
2/in makes up for that. Each array has its own stream, numbered by layer and purpose: with the same
seed, networks with different norms start from the same weights.

    W ~ N(0, 2/in) (He)                                             [MLP.5]
    W ~ U(−a, a), a = √(6/(in + out)) (Xavier, also called Glorot)  [MLP.6]
    W ~ N(0, s²), s = init_std (plain Gaussian)                     [MLP.7]
    W, b ~ U(−a, a), a = 1/√in (fan-in: PyTorch's default)          [MLP.8]
*/
/* Where the arrays of layer l stand, from `at` on, and their first values. Returns their end. */
static size_t nrmi_init_layer(nrm_mlp *net, size_t l, size_t at)
{
    const nrm_mlp_spec *spec = &net->spec;
    nrm_mlp_state *s = &net->state[l];
    nrm_real **const value[] = {&s->W, &s->b, &s->gamma, &s->beta};
    nrm_real **const grad[] = {&s->dW, &s->db, &s->dgamma, &s->dbeta};
    const nrm_acc in = (nrm_acc)s->in, out = (nrm_acc)s->shape.width;
    const int normal = spec->init == NRM_INIT_HE || spec->init == NRM_INIT_GAUSSIAN;
    nrm_acc scale = 1 / NRM_SQRT(in); /* MLP.8 */
    size_t a, i, n;
    if (spec->init == NRM_INIT_HE) scale = NRM_SQRT(2 / in); /* MLP.5 */
    if (spec->init == NRM_INIT_XAVIER) scale = NRM_SQRT(6 / (in + out)); /* MLP.6 */
    if (spec->init == NRM_INIT_GAUSSIAN) scale = (nrm_acc)spec->init_std; /* MLP.7 */
    for (a = 0; a < NRMI_ARRAYS; a++, at += n) {
        const int drawn = a == NRMI_W || (a == NRMI_B && spec->init == NRM_INIT_FAN_IN);
        nrm_real *p = net->params + at;
        nrm_rng r;
        n = nrmi_count(s, a);
        *value[a] = n > 0 ? p : NULL;
        *grad[a] = n > 0 ? net->grads + at : NULL;
        nrm_rng_seed(&r, spec->seed, NRMI_ARRAYS * (uint64_t)l + a);
        if (drawn && normal) nrm_rng_normal(&r, p, n);
        for (i = 0; i < n && drawn; i++)
            p[i] = (nrm_real)(scale * (normal ? (nrm_acc)p[i] : nrmi_symmetric(&r)));
        for (i = 0; i < n && a == NRMI_GAMMA; i++) p[i] = 1;
        if (a == NRMI_GAMMA && spec->gamma_init == NRM_GAMMA_UNIFORM) nrm_rng_uniform(&r, p, n);
    }
    for (i = 0; s->running.var != NULL && i < s->shape.width; i++) s->running.var[i] = 1;
    return at;
}

/*
### 12.5  Several workers

Worker w has the network and N_w of the N examples, with mean loss L_w. For the whole batch it is

    L = ∑_w (N_w/N)·L_w  [MLP.9]

So each worker weights its gradient by N_w/N, and the gradients are added up. Up to rounding this is
the gradient of the undivided batch, if batch norm is merged.
*/
static int nrmi_mlp_gradient(nrm_mlp *net, nrm_acc *loss, const nrm_real *x, const int *labels,
    size_t N, int mode, int moves)
{
    const size_t n = net->n_params, layers = net->spec.layers;
    const size_t classes = net->state[layers - 1].shape.width;
    const nrm_sync *sync = &net->spec.sync;
    const nrm_rng kept = net->rng;
    nrm_real share = 1, *d = net->work[(layers - 1) % 2];
    nrm_acc value = 0, sums[2] = {0, (nrm_acc)N};
    size_t i;
    int rc = mode == NRM_INFER ? NRM_EMODE : N > net->spec.max_batch ? NRM_ESIZE : NRM_OK;
    if (rc == NRM_OK) rc = nrmi_check_data(net, loss, NULL, x, labels, N, 1);
    if (rc == NRM_OK) rc = nrmi_mlp_forward(net, x, N, mode, moves);
    if (!moves) net->rng = kept;
    if (rc >= 0 && loss != NULL) *loss = 0;
    if (rc < 0 || (N == 0 && sync->add == NULL)) return rc;
    rc |= nrm_cross_entropy_forward(&value, net->prob, net->logits, labels, N, classes);
    sums[0] = value * (nrm_acc)N;
    if (sync->add != NULL && sync->add(sync->context, sums, 2) != 0) return NRM_ESYNC;
    if (sync->add != NULL && sums[1] > 0) {
        value = sums[0] / sums[1]; /* MLP.9: L, */
        share = (nrm_real)((nrm_acc)N / sums[1]); /* N_w/N */
    }
    (void)nrm_cross_entropy_backward(d, net->prob, labels, N, classes);
    for (i = 0; i < N * classes; i++) d[i] *= share; /* MLP.9 */
    if (nrmi_mlp_backward(net, x, N, mode) < 0) return NRM_ESYNC;
    if (sync->add != NULL) { /* if one worker has met something not finite, all know */
        for (i = 0; i < n; i++) net->total[i] = (nrm_acc)net->grads[i];
        net->total[n] = (nrm_acc)rc;
        if (sync->add(sync->context, net->total, n + 1) != 0) return NRM_ESYNC;
        for (i = 0; i < n; i++) net->grads[i] = (nrm_real)net->total[i];
        if (net->total[n] != 0) rc = NRM_NONFINITE;
    }
    for (i = 0; i < n; i++) /* (0·∞, under a finite loss) */
        rc |= net->grads[i] - net->grads[i] == 0 ? NRM_OK : NRM_NONFINITE;
    if (loss != NULL) *loss = value;
    return rc;
}

NRM_DEF int nrm_mlp_gradient(
    nrm_mlp *net, nrm_acc *loss, const nrm_real *x, const int *labels, size_t N, int mode)
{
    return net == NULL ? NRM_ENULL : nrmi_mlp_gradient(net, loss, x, labels, N, mode, 0);
}

/*
### 12.6  Optimizers

Gradient descent with Polyak's heavy ball κ, in PyTorch's form, and Adam, with learning rate η and ε
= `adam_eps`. a and b start at 0. In step t, dividing by 1 − βᵗ removes the effect of that start.

    a ← κ·a + g                                   [OPT.1]
    θ ← θ − η·a                                   [OPT.2]
    a ← β₁·a + (1 − β₁)·g                         [OPT.3]
    b ← β₂·b + (1 − β₂)·g²                        [OPT.4]
    θ ← θ − η·(a/(1 − β₁ᵗ))/(√(b/(1 − β₂ᵗ)) + ε)  [OPT.5]
*/
NRM_DEF int nrm_mlp_step(nrm_mlp *net)
{
    size_t i;
    if (net == NULL || nrmi_check_eps(net->spec.lr)) return net == NULL ? NRM_ENULL : NRM_ERATE;
    net->steps++;
    if (net->spec.optimizer == NRM_SGD) {
        const nrm_real lr = net->spec.lr, keep = net->spec.heavy_ball;
        for (i = 0; i < net->n_params; i++) {
            nrm_real a = net->grads[i];
            if (net->moment1 != NULL) a = net->moment1[i] = keep * net->moment1[i] + a; /* OPT.1 */
            net->params[i] -= lr * a; /* OPT.2 */
        }
    } else {
        const nrm_real b1 = net->spec.beta1, b2 = net->spec.beta2;
        const nrm_acc lr = (nrm_acc)net->spec.lr, eps = (nrm_acc)net->spec.adam_eps;
        const nrm_acc lift1 = 1 / (1 - (net->beta1_power *= (nrm_acc)b1));
        const nrm_acc lift2 = 1 / (1 - (net->beta2_power *= (nrm_acc)b2));
        nrm_real *m = net->moment1, *v = net->moment2;
        for (i = 0; i < net->n_params; i++) {
            const nrm_real g = net->grads[i];
            const nrm_real a = m[i] = b1 * m[i] + (1 - b1) * g; /* OPT.3 */
            const nrm_real b = v[i] = b2 * v[i] + (1 - b2) * g * g; /* OPT.4 */
            net->params[i] -= (nrm_real)(lr * ((nrm_acc)a * lift1) /
                                         (NRM_SQRT((nrm_acc)b * lift2) + eps)); /* OPT.5 */
        }
    }
    return NRM_OK;
}

NRM_DEF int nrm_mlp_train_step(
    nrm_mlp *net, nrm_acc *loss, const nrm_real *x, const int *labels, size_t N)
{
    int rc = net == NULL ? NRM_ENULL : nrmi_check_eps(net->spec.lr) ? NRM_ERATE : NRM_OK;
    if (rc == NRM_OK) rc = nrmi_mlp_gradient(net, loss, x, labels, N, NRM_TRAIN, 1);
    return rc != NRM_OK || (N == 0 && net->spec.sync.add == NULL) ? rc : nrm_mlp_step(net);
}

NRM_DEF int nrm_mlp_eval(
    nrm_mlp *net, nrm_acc *loss, nrm_acc *accuracy, const nrm_real *x, const int *labels, size_t N)
{
    nrm_acc mean = 0, hit = 0, losses = 0, hits = 0;
    size_t at, n, classes;
    int rc = net == NULL ? NRM_ENULL : nrmi_check_data(net, loss, accuracy, x, labels, N, 1);
    if (rc != NRM_OK || (N > 0 && (rc = nrmi_check_net(net, 1, NRM_INFER, 1)) != 0)) return rc;
    classes = net->state[net->spec.layers - 1].shape.width;
    for (at = 0; at < N; at += n) {
        n = nrmi_least(N - at, net->spec.max_batch);
        rc |= nrmi_mlp_forward(net, x + at * net->spec.inputs, n, NRM_INFER, 1);
        rc |= nrm_accuracy(&hit, net->logits, labels + at, n, classes);
        rc |= nrm_cross_entropy_forward(&mean, NULL, net->logits, labels + at, n, classes);
        losses += mean * (nrm_acc)n;
        hits += hit * (nrm_acc)n;
    }
    if (loss != NULL) *loss = N > 0 ? losses / (nrm_acc)N : 0;
    if (accuracy != NULL) *accuracy = N > 0 ? hits / (nrm_acc)N : 0;
    return rc;
}

NRM_DEF nrm_mlp_spec nrm_mlp_defaults(void)
{
    nrm_mlp_spec spec;
    NRM_MEMSET(&spec, 0, sizeof spec);
    spec.init_std = (nrm_real)0.01;
    spec.eps = NRM_EPS;
    spec.new_weight = spec.lr = (nrm_real)0.1;
    spec.noise = nrm_noise_paper();
    spec.r_max = 1;
    spec.beta1 = (nrm_real)0.9;
    spec.beta2 = (nrm_real)0.999;
    spec.adam_eps = (nrm_real)1e-8;
    return spec;
}

static int nrmi_check_spec(const nrm_mlp_spec *spec)
{
    size_t l;
    int rc = NRM_OK;
    if (spec == NULL || spec->layer == NULL) return NRM_ENULL;
    if (spec->inputs == 0 || spec->layers == 0 || spec->max_batch == 0) return NRM_ESIZE;
    if (spec->sync.merge != NULL && spec->sync.add == NULL) return NRM_ENULL;
    if (spec->init < NRM_INIT_HE || spec->init > NRM_INIT_FAN_IN ||
        spec->gamma_init < NRM_GAMMA_ONE || spec->gamma_init > NRM_GAMMA_UNIFORM ||
        (spec->optimizer != NRM_SGD && spec->optimizer != NRM_ADAM))
        return NRM_EKIND;
    if (!(spec->heavy_ball >= 0 && spec->heavy_ball < 1 && spec->beta1 >= 0 && spec->beta1 < 1 &&
            spec->beta2 >= 0 && spec->beta2 < 1 && spec->adam_eps > 0)) /* 0: Adam divides 0 by 0 */
        return NRM_ERATE;
    if (nrmi_check_eps(spec->lr) || nrmi_check_eps(spec->adam_eps)) return NRM_ERATE;
    if (nrmi_check_eps(spec->init_std)) return NRM_EKIND;
    for (l = 0; l < spec->layers && rc == NRM_OK; l++) rc = nrmi_check_layer(spec->layer + l, spec);
    return rc;
}
#define NRM_TAKE(type, count) ((type *)nrmi_take(arena, (count), sizeof(type)))

/* The activations of a layer. A place that it lacks shares the linear part's buffer. */
static void nrmi_layout_layer(nrmi_arena *arena, nrm_mlp_state *s, const nrm_mlp_spec *spec)
{
    const int norm = s->shape.norm, batch_norm = nrmi_has_batch_norm(&s->shape);
    const size_t N = spec->max_batch, width = s->shape.width;
    const size_t saved = batch_norm ? width : norm == NRM_GROUP_NORM ? N * s->shape.groups : N;
    const int f = s->shape.activation, after = s->shape.norm_after;
    const nrm_running fresh = {NULL, NULL, spec->new_weight, spec->cumulative, spec->biased, 0};
    s->linear_out = s->norm_out = s->act_out = NRM_TAKE(nrm_real, N * width);
    if (norm != NRM_NO_NORM) s->norm_out = NRM_TAKE(nrm_real, N * width);
    if (f != NRM_IDENTITY) s->act_out = NRM_TAKE(nrm_real, N * width);
    s->out = (after ? norm != NRM_NO_NORM : f == NRM_IDENTITY) ? s->norm_out : s->act_out;
    if (norm != NRM_NO_NORM && norm != NRM_RMS_NORM) s->mean = NRM_TAKE(nrm_acc, saved);
    if (norm != NRM_NO_NORM) s->rstd = NRM_TAKE(nrm_acc, saved);
    if (norm == NRM_NOISY_BATCH_NORM) s->scale = NRM_TAKE(nrm_real, N * width);
    if (norm == NRM_BATCH_RENORM) s->ratio = NRM_TAKE(nrm_acc, width);
    if (norm == NRM_BATCH_RENORM) s->offset = NRM_TAKE(nrm_acc, width);
    s->running = fresh;
    if (!batch_norm) return;
    s->running.mean = NRM_TAKE(nrm_real, width);
    s->running.var = NRM_TAKE(nrm_real, width);
    if (norm != NRM_LP_BATCH_NORM) s->stats = NRM_TAKE(nrm_stats, width); /* t is no variance */
    if (spec->sync.merge != NULL) s->sums = NRM_TAKE(nrm_sums, width);
}

/* Measures the block, or lays it out. */
static void nrmi_layout(nrm_mlp *net, nrmi_arena *arena, const nrm_mlp_spec *spec)
{
    size_t l, a, n = 0, N = spec->max_batch, in = spec->inputs, widest = 0;
    (void)NRM_TAKE(nrm_mlp, 1); /* net itself */
    net->state = NRM_TAKE(nrm_mlp_state, spec->layers);
    for (l = 0; l < spec->layers; l++) {
        nrm_mlp_state measured, *s = net->state != NULL ? &net->state[l] : &measured;
        const size_t D = spec->layer[l].width;
        if (nrmi_check_sizes(4, in, D) || nrmi_check_linear(N, in, D) || n > SIZE_MAX / 2)
            arena->used = SIZE_MAX;
        s->shape = spec->layer[l];
        s->in = in;
        nrmi_layout_layer(arena, s, spec);
        for (a = 0; a < NRMI_ARRAYS; a++) n += nrmi_count(s, a);
        if (D > widest) widest = D;
        in = D;
    }
    net->n_params = n;
    net->params = NRM_TAKE(nrm_real, n);
    net->grads = NRM_TAKE(nrm_real, n);
    if (spec->optimizer == NRM_ADAM || spec->heavy_ball > 0) net->moment1 = NRM_TAKE(nrm_real, n);
    if (spec->optimizer == NRM_ADAM) net->moment2 = NRM_TAKE(nrm_real, n);
    if (spec->sync.add != NULL) net->total = NRM_TAKE(nrm_acc, n + 1);
    net->prob = NRM_TAKE(nrm_real, N * in);
    for (l = 0; l < 2; l++) net->work[l] = NRM_TAKE(nrm_real, N * widest);
}

NRM_DEF size_t nrm_mlp_bytes(const nrm_mlp_spec *spec)
{
    nrmi_arena arena = {NULL, 0};
    nrm_mlp net;
    if (nrmi_check_spec(spec) != NRM_OK) return 0;
    nrmi_layout(&net, &arena, spec);
    return arena.used > SIZE_MAX / 4 ? 0 : arena.used + NRM_ALIGN;
}

NRM_DEF int nrm_mlp_init(nrm_mlp **net, void *block, size_t bytes, const nrm_mlp_spec *spec)
{
    nrmi_arena arena = {(unsigned char *)block, 0};
    const size_t need = nrm_mlp_bytes(spec);
    const nrm_mlp_spec given = spec != NULL ? *spec : nrm_mlp_defaults();
    const nrmi_arg args[] = {NRM_ARG(net, 1, NRMI_OUT | NRMI_NEEDED), NRM_ARG(spec, 1, NRMI_IN),
        NRM_ARG(given.layer, given.layers, NRMI_IN), {block, need, NRMI_OUT | NRMI_NEEDED}};
    nrm_mlp *made;
    size_t l, at = 0;
    int rc = nrmi_check_spec(spec);
    if (rc != NRM_OK || (rc = NRM_CHECK(args)) != NRM_OK) return rc;
    if (bytes < need || need == 0) return need == 0 ? NRM_EOVERFLOW : NRM_EBLOCK;
    NRM_MEMSET(block, 0, need);
    arena.base += (NRM_ALIGN - (uintptr_t)block % NRM_ALIGN) % NRM_ALIGN;
    *net = made = (nrm_mlp *)(void *)arena.base;
    nrmi_layout(made, &arena, spec);
    made->spec = *spec;
    made->spec.layer = NULL;
    made->logits = made->state[spec->layers - 1].out;
    made->beta1_power = made->beta2_power = 1;
    for (l = 0; l < spec->layers; l++) at = nrmi_init_layer(made, l, at);
    nrm_rng_seed(&made->rng, spec->seed, NRMI_BETA); /* whose stream beta does not need */
    return NRM_OK;
}

/*
## 13  Gradient checking

A network with a wrong backward pass often still trains, only worse. To find the mistake, change one
parameter a little, see how the loss moves, and compare with the gradient.

### 13.1  How to use it

Write a function that evaluates the loss, and list the arrays and their gradients. Compile with
`NRM_DOUBLE`: in float the differences of a loss have few digits. Use L = ∑ yᵢ·wᵢ with fixed random
wᵢ, γ ≠ 1, β ≠ 0, N = 2, 3, 4, and inputs of 10⁻³ to 10³ (docs/05_gradient_checking.md).
*/
typedef struct NRM_OWN(nrmi_check) { /* a loss that is being checked */
    nrm_loss_fn *loss;
    void *context;
    nrm_branches_fn *branches;
    uint64_t base_print; /* the branches at the given parameters */
    nrm_acc base, largest; /* the loss there; |L| seen so far */
    int crossed; /* some branch was different */
} nrmi_check;

static nrm_acc nrmi_larger(nrm_acc a, nrm_acc b)
{
    return a > b ? a : b;
}
/* Depends on nrm_real, the coarser of the two types. */
static nrm_acc nrmi_by_type(nrm_acc in_double, nrm_acc in_float)
{
    return sizeof(nrm_real) == sizeof(float) ? in_float : in_double;
}

static nrm_acc nrmi_loss_at(nrmi_check *check, nrm_real *theta, nrm_real value)
{
    nrm_acc loss;
    *theta = value;
    loss = check->loss(check->context);
    if (check->branches != NULL && check->branches(check->context) != check->base_print)
        check->crossed = 1;
    check->largest = nrmi_larger(check->largest, nrmi_abs(loss));
    return loss;
}

/*
### 13.2  The difference and its error

The error of the central difference has no term in h.

    D(h) = (L(θ + h) − L(θ − h))/(2·h)  [GC.1]
    D(h) = L′ + (h²/6)·L‴ + O(h⁴)       (GC.2)
*/
/* D, and the slopes of both sides. (Rounding changes the step a little: to up - at.) */
static nrm_acc nrmi_both_sides(
    nrm_acc *left, nrm_acc *right, nrmi_check *check, nrm_real *theta, nrm_acc h)
{
    const nrm_real at = *theta;
    const nrm_real up = (nrm_real)((nrm_acc)at + h), down = (nrm_real)((nrm_acc)at - h);
    const nrm_acc above = nrmi_loss_at(check, theta, up);
    const nrm_acc below = nrmi_loss_at(check, theta, down);
    *theta = at;
    *right = (above - check->base) / ((nrm_acc)up - (nrm_acc)at);
    *left = (check->base - below) / ((nrm_acc)at - (nrm_acc)down);
    return (above - below) / ((nrm_acc)up - (nrm_acc)down); /* GC.1 */
}

typedef struct NRM_OWN(nrmi_slope) { /* what the differences say of one entry */
    nrm_acc value, uncertainty, noise, jump; /* R(h/2), U, its rounding at the first h, |J(h/4)| */
    int kink;
} nrmi_slope;

/*
Half the step has a quarter of the error, so a suitable mixture R has none of it (Richardson). If R
and the gradient disagree, the uncertainty U of R tells which is wrong. It has three parts: the
change of R when the step is halved; how far the difference J of the slopes on both sides is from
shrinking like h, which shows rounding; and the least that rounding does, u being the precision.

At a *kink*, such as ReLU's at 0, J keeps its sign and, as the step shrinks, its size or a little
less. A J that shrinks like h is curvature; one that grows or changes sign is rounding. If your loss
gives `branches` (say a hash of the signs of all pre-activations), a kink is where they change.

    R(h) = (4·D(h/2) − D(h))/3 = L′ + O(h⁴)                                             [GC.3]
    J(h) = (L(θ + h) − L(θ))/h − (L(θ) − L(θ − h))/h = h·L″ + O(h³)                     [GC.7]
    U = |R(h/2) − R(h)| + max(|J(h/2) − J(h)/2|, |J(h/4) − J(h)/4|) + 8·u·max|L|/(h/4)  [GC.5]
*/
static nrmi_slope nrmi_attempt(nrmi_check *check, nrm_real *theta, nrm_acc h)
{
    nrm_acc D[3], J[3], R[2], ratio, left, right;
    nrmi_slope slope;
    int k;
    check->crossed = 0;
    for (k = 0; k < 3; k++) {
        D[k] = nrmi_both_sides(&left, &right, check, theta, h / (nrm_acc)(1 << k));
        J[k] = right - left; /* GC.7 */
    }
    for (k = 0; k < 2; k++) R[k] = (4 * D[k + 1] - D[k]) / 3; /* GC.3 */
    slope.value = R[1];
    slope.noise = 8 * nrmi_by_type((nrm_acc)2.220446049250313e-16, (nrm_acc)1.1920928955078125e-7) *
                  check->largest / (h / 4);
    slope.uncertainty = nrmi_abs(R[1] - R[0]) + /* GC.5 */
                        nrmi_larger(nrmi_abs(J[1] - J[0] / 2), nrmi_abs(J[2] - J[0] / 4)) +
                        slope.noise;
    slope.jump = nrmi_abs(J[2]);
    ratio = J[0] < 0 || J[0] > 0 ? J[2] / J[0] : 0;
    slope.kink = check->crossed ||
                 (ratio > (nrm_acc)0.5 && ratio < (nrm_acc)1.1 && slope.jump > 8 * slope.noise);
    return slope;
}

/*
### 13.3  Signs and small entries

The error is relative to the larger of the two. Entries much smaller than the rest of their array
are compared with a thousandth of its largest, or, where rounding hides even that, with the largest:

    e = |a − R|/max(|a|, |R|, 10⁻³·max|grad|)  [GC.6]

A gradient a is *wrong* only if it differs from R(h/2) by more than the tolerance plus four times U,
and *unsettled* if U is too large to judge even an entry as big as the largest of its array. Kinks
are counted: a check that skipped everything has not passed. So are *vanishing* entries, whose
gradients are both zero within rounding.
*/
/* Enters the verdict on the gradient a of one entry into the report. */
static void nrmi_judge(nrm_gradcheck_report *report, size_t index, nrm_acc a,
    const nrmi_slope *slope, nrm_acc tolerance, nrm_acc largest)
{
    const nrm_acc R = slope->value, U = slope->uncertainty, gap = nrmi_abs(a - R);
    const nrm_acc size = nrmi_larger(nrmi_abs(a), nrmi_abs(R));
    const nrm_acc scale = nrmi_larger(size, largest / 1000);
    const nrm_acc ruler = U > tolerance * scale ? nrmi_larger(scale, largest) : scale;
    const nrm_acc error = ruler > 0 ? gap / ruler : 0; /* GC.6 */
    size_t judged = 0; /* neither wrong nor left out */
    size_t *const count = !nrmi_finite(a)                      ? &report->wrong
                          : !nrmi_finite(R) || !nrmi_finite(U) ? &report->unsettled
                          : size <= 4 * slope->noise           ? &report->vanishing
                          : slope->kink                        ? &report->kinks
                          : gap > tolerance * scale + 4 * U    ? &report->wrong
                          : U > tolerance * ruler              ? &report->unsettled
                                                               : &judged;
    report->checked++;
    ++*count;
    if ((count == &judged || count == &report->wrong) &&
        (error >= report->error || !nrmi_finite(error))) {
        report->worst = index;
        report->analytic = a;
        report->numeric = R;
        report->error = error;
        report->uncertainty = U;
    }
}

/*
Rounding adds to R an error of the order u/h, and truncation one of the order h⁴; their sum is
smallest where h⁵ is of the order of u. So the step is u to the power 1/5, 7·10⁻⁴ in double and
4·10⁻² in float, relative to the size of the parameter, or to the typical size in its array if
larger. If U is then too large, or at a kink, an eighth of the step is tried, up to five times.

    h = step·max(|θᵢ|, √⟨θ²⟩)  [GC.4]
*/
/* The slope at theta by the step h, or a smaller one. */
static nrmi_slope nrmi_settle(
    nrmi_check *check, nrm_real *theta, nrm_acc h, nrm_acc tolerance, nrm_acc largest)
{
    nrmi_slope best = nrmi_attempt(check, theta, h);
    const nrm_acc noise = best.noise;
    int tries;
    for (tries = 0; tries < 5; tries++) {
        const nrm_acc enough = tolerance * nrmi_larger(nrmi_abs(best.value), largest / 1000) / 10;
        nrmi_slope next;
        if (!best.kink && best.uncertainty <= enough) break;
        next = nrmi_attempt(check, theta, h /= 8);
        if ((best.kink && !next.kink && 8 * next.noise < best.jump) ||
            (best.kink == next.kink && next.uncertainty < best.uncertainty))
            best = next;
    }
    best.noise = noise;
    return best;
}

static void nrmi_check_group(nrm_gradcheck_report *report, const nrm_gradcheck_group *group,
    nrmi_check *check, const nrm_gradcheck_options *o, nrm_rng *rng)
{
    const size_t n = group->n, count = o->at_most > 0 && o->at_most < n ? o->at_most : n;
    nrm_acc squares = 0, typical, largest = 0; /* for GC.4 and GC.6 */
    size_t k;
    NRM_MEMSET(report, 0, sizeof *report);
    for (k = 0; k < n; k++) {
        squares += (nrm_acc)group->theta[k] * (nrm_acc)group->theta[k];
        if (nrmi_finite((nrm_acc)group->grad[k]))
            largest = nrmi_larger(largest, nrmi_abs((nrm_acc)group->grad[k]));
    }
    typical = n > 0 ? NRM_SQRT(squares / (nrm_acc)n) : 0;
    for (k = 0; k < count; k++) { /* one entry from each of `count` equal stretches of the array */
        const size_t each = n / count, rest = n % count;
        const size_t from = k * each + nrmi_least(k, rest), span = each + (k < rest ? 1 : 0);
        const size_t i = from + nrm_rng_below(rng, (uint32_t)nrmi_least(span, 0x7fffffffu));
        nrm_real *theta = group->theta + i;
        const nrm_acc scale = nrmi_larger(nrmi_abs((nrm_acc)*theta), typical);
        const nrm_acc h = o->step * (scale > 0 ? scale : 1); /* GC.4 */
        const nrmi_slope slope = nrmi_settle(check, theta, h, o->tolerance, largest);
        nrmi_judge(report, i, (nrm_acc)group->grad[i], &slope, o->tolerance, largest);
    }
    if (report->unsettled > 0 ||
        (report->kinks > 0 && report->kinks + report->vanishing == report->checked))
        report->status = NRM_EUNSETTLED;
    if (report->wrong > 0) report->status = NRM_EGRADIENT;
}

NRM_DEF int nrm_gradcheck(nrm_gradcheck_report *report, const nrm_gradcheck_group *group,
    size_t groups, nrm_loss_fn *loss, void *context, const nrm_gradcheck_options *options)
{
    const nrm_gradcheck_options defaults = {0, 0, 0, 0, NULL};
    nrm_gradcheck_options o = options != NULL ? *options : defaults;
    nrmi_check check = {loss, context, o.branches, 0, 0, 0, 0};
    nrm_rng rng;
    size_t g;
    int rc = NRM_OK;
    if (groups == 0) return NRM_ESIZE;
    if (report == NULL || group == NULL || loss == NULL) return NRM_ENULL;
    for (g = 0; g < groups; g++)
        if (group[g].n > 0 && (group[g].theta == NULL || group[g].grad == NULL)) return NRM_ENULL;
    if (!(o.tolerance >= 0) || !nrmi_finite(o.tolerance) || !(o.step >= 0) || !nrmi_finite(o.step))
        return NRM_ERATE;
    if (!(o.tolerance > 0)) o.tolerance = nrmi_by_type((nrm_acc)1e-7, (nrm_acc)1e-2);
    if (!(o.step > 0)) o.step = nrmi_by_type((nrm_acc)7e-4, (nrm_acc)4e-2);
    nrm_rng_seed(&rng, o.seed, 0);
    check.base = loss(context);
    check.largest = nrmi_abs(check.base);
    if (o.branches != NULL) check.base_print = o.branches(context);
    for (g = 0; g < groups; g++) {
        nrmi_check_group(&report[g], &group[g], &check, &o, &rng);
        if (report[g].status == NRM_EGRADIENT || rc == NRM_OK) rc = report[g].status;
    }
    return rc;
}

/*
# Part II: the machine room

## 14  Arguments and threads

Every public function checks before it writes: a few comparisons a call. NaN and infinity are
detected from their bits, so that no compiler option can remove the test.
*/
NRM_DEF const char *nrm_strerror(int status)
{
#define NRM_STATUS_CASE(name, value, message) \
    case value: \
        return message;
    switch (status) {
        NRM_STATUS_LIST(NRM_STATUS_CASE)
    default:
        return "unknown status code";
    }
}

static int nrmi_check_args(const nrmi_arg *arg, size_t count)
{
    size_t i, j;
    for (i = 0; i < count; i++)
        if ((arg[i].role & NRMI_NEEDED) && arg[i].at == NULL) return NRM_ENULL;
    for (i = 0; i < count; i++)
        for (j = 0; j < count && (arg[i].role & NRMI_OUT); j++) {
            const uintptr_t p = (uintptr_t)arg[i].at, q = (uintptr_t)arg[j].at;
            const int same = p == q && (arg[i].role & arg[j].role & NRMI_IN_PLACE);
            if (i == j || same || p == 0 || q == 0) continue;
            if (p < q + arg[j].bytes && q < p + arg[i].bytes) return NRM_EALIAS;
        }
    return NRM_OK;
}

/* a·b·c elements of up to 16 bytes must be addressable. */
static int nrmi_check_sizes(size_t a, size_t b, size_t c)
{
    const size_t most = SIZE_MAX / sizeof(double) / 2;
    if (b == 0 || c == 0) return NRM_ESIZE;
    return b > most / c || (a > 0 && b * c > most / a) ? NRM_EOVERFLOW : NRM_OK;
}

static void *nrmi_take(nrmi_arena *arena, size_t count, size_t size)
{
    const size_t at = arena->used, most = SIZE_MAX / 4;
    const int fits = at <= most && count <= most / size;
    arena->used = fits ? (at + count * size + NRM_ALIGN - 1) / NRM_ALIGN * NRM_ALIGN : SIZE_MAX;
    return fits && arena->base != NULL ? arena->base + at : NULL;
}

typedef union NRM_OWN(nrmi_bits) { /* a number and its bits */
    nrm_acc value;
    uint64_t u64;
    uint32_t u32;
} nrmi_bits;

static inline int nrmi_finite(nrm_acc v)
{
    const nrmi_bits b = {v};
    return sizeof v == 4 ? (b.u32 >> 23 & 0xff) != 0xff : (b.u64 >> 52 & 0x7ff) != 0x7ff;
}

static int nrmi_check_eps(nrm_real eps)
{
    return eps >= 0 && nrmi_finite((nrm_acc)eps) ? NRM_OK : NRM_EEPS;
}

/*
With `NRM_OPENMP` the layers share their work: batch norm by channels, layer norm by rows,
products by rows or columns of the result. Below 32768 numbers one thread works alone:
waking another takes microseconds.
*/
enum { NRMI_SHARED_FROM = 32768 };

static size_t nrmi_threads(size_t numbers)
{
#ifdef NRM_OPENMP
    if (numbers >= NRMI_SHARED_FROM && !omp_in_parallel()) return (size_t)omp_get_max_threads();
#endif
    (void)numbers;
    return 1;
}

/*
## 15  Views, and the primitives in plain C

Value i of a run of group g is at g·apart + run·pitch + i. Channels of `[N][C][S]` with S = 1
are *columns*: neighbours belong to different channels, and many channels are summed side by
side. With S > 1 a channel is N *runs* of S values. The rows of `[N][D]` are one run each.
*/
enum {
    NRMI_FETCH_FROM = 2097152, /* numbers of x, where x and y leave the cache */
    NRMI_AT_ONCE = 4096, /* numbers of a strip of rows: the first-level cache */
    NRMI_BAND_NUMBERS = 16384, /* numbers of a band: the second-level cache */
    NRMI_ONE_SWEEP = 4096, /* columns that are summed while dx is computed, at most */
#ifdef NRM_PLAIN
    NRMI_GROUP = 1,
    NRMI_BAND = 1
#else
    NRMI_GROUP = 16, /* rows of a strip, at most */
    NRMI_BAND = 64 /* rows of a band, at most */
#endif
};
#define NRM_LANES (64 / sizeof(nrm_real)) /* L of SUM.8 */

static nrmi_view nrmi_channels(size_t N, size_t C, size_t S)
{
    const nrmi_view v = {C, N, S, C * S, S, 1, N * C * S < NRMI_FETCH_FROM / 2 ? 0 : S,
        S == 1 ? NRMI_COLUMNS : NRMI_RUNS};
    return v;
}

static nrmi_view nrmi_rows(size_t N, size_t D)
{
    const size_t ahead = D > 2 * NRMI_AT_ONCE ? D : 2 * NRMI_AT_ONCE; /* not within the row */
    const nrmi_view v = {N, 1, D, D, D, 1, N * D < NRMI_FETCH_FROM ? 0 : ahead, NRMI_ROWS};
    return v;
}

/*
A strip is as many columns, or channels read once, as fit the stack, or one channel of runs, still
in the cache for the pass that writes, or a few rows, whose square roots overlap. The
gradients of layer norm's γ and β go down the columns: they are summed in `nrm_real` over a band
of rows that fits the second-level cache, and band after band in `nrm_acc`. With several sets of
γ and β a band is whole examples or part of one.
*/
static size_t nrmi_strip(const nrmi_view *v, int once)
{
    const size_t threads = nrmi_threads(v->groups * v->runs * v->length);
    const size_t share = (v->groups + threads - 1) / threads;
    const size_t lines = (share + NRM_LANES - 1) / NRM_LANES;
    if (NRM_WIDTH == 1 || (v->kind == NRMI_RUNS && !once)) return 1;
    if (v->kind == NRMI_COLUMNS) return nrmi_least(lines * NRM_LANES, NRM_WIDTH);
    if (once) return nrmi_least(share, NRM_WIDTH);
    return v->length > NRMI_AT_ONCE ? 1 : nrmi_least(NRMI_AT_ONCE / v->length, NRMI_GROUP);
}

#define NRM_BAND(D) \
    nrmi_least((D) > NRMI_BAND_NUMBERS / 4 ? 4 : NRMI_BAND_NUMBERS / (D), NRMI_BAND)
static size_t nrmi_examples(const nrmi_view *v)
{
    const size_t band = NRM_BAND(v->length), G = v->sets;
    if (G == 1 || G * v->length > NRMI_ONE_SWEEP) return band;
    return band > G ? band / G : 1;
}

static size_t nrmi_band(const nrmi_view *v, size_t g)
{
    const size_t band = NRM_BAND(v->length), G = v->sets;
    const size_t whole = band > G ? band - band % G : nrmi_least(band, G - g % G);
    return nrmi_least(v->groups - g, G == 1 ? band : whole);
}

static int nrmi_one_sweep(const nrmi_view *v)
{
    const size_t columns = v->sets * v->length;
    return columns <= nrmi_least(NRMI_ONE_SWEEP, NRM_WIDE) &&
           nrmi_threads(v->groups * v->length) == 1;
}

static void nrmi_clear(nrmi_columns *columns, size_t width)
{
    size_t i;
    for (i = 0; i < width; i++) {
        columns->dy[i] = columns->dy_xhat[i] = 0;
        columns->dbeta[i] = columns->dgamma[i] = 0;
    }
}

static void nrmi_fold(nrmi_columns *columns, size_t from, size_t to)
{
    size_t i;
    for (i = from; i < to; i++) {
        columns->dbeta[i] += (nrm_acc)columns->dy[i];
        columns->dgamma[i] += (nrm_acc)columns->dy_xhat[i];
        columns->dy[i] = columns->dy_xhat[i] = 0;
    }
}

/* The mean is x1 + offset: SUM.10. */
static inline void nrmi_put(nrmi_moments *t, size_t k, nrm_acc x1, nrm_acc offset, nrm_acc var)
{
    t->mean[k] = x1 + offset;
    t->var[k] = var;
    t->at.high[k] = (nrm_real)t->mean[k];
    t->at.low[k] = (nrm_real)((x1 - (nrm_acc)t->at.high[k]) + offset); /* SUM.10 */
}

static int nrmi_lost(const nrmi_moments *t, size_t w, int stored)
{
    int lost = 0;
    size_t k;
    for (k = 0; k < w; k++) {
        const nrm_acc var = stored ? (nrm_acc)(nrm_real)t->var[k] : t->var[k];
        lost |= !nrmi_finite((nrm_acc)t->at.high[k]) || !nrmi_finite(var);
    }
    return lost;
}

static void nrmi_saved(
    nrmi_centre *mu, const nrm_acc *mean, const nrm_real *x, const nrmi_view *v, size_t g, size_t w)
{
    const nrm_acc M = (nrm_acc)v->runs * (nrm_acc)v->length;
    nrmi_sums s;
    size_t k;
    for (k = 0; k < w; k++) {
        mu->high[k] = mean != NULL ? (nrm_real)mean[k] : 0;
        mu->low[k] = mean != NULL ? (nrm_real)(mean[k] - (nrm_acc)mu->high[k]) : 0; /* SUM.10 */
    }
    if (sizeof(nrm_acc) > sizeof(nrm_real) || mean == NULL || x == NULL) return;
    nrmi_sums_of(&s, NULL, NULL, x, mu, NULL, v, g, w); /* without dy, u is x − high */
    for (k = 0; k < w; k++) mu->low[k] = (nrm_real)(s.dy[k] / M);
}

/*
Two passes in `nrm_acc`, from the first value x₁, are the definition of mean and variance:

    μ = x₁ + (1/M)·∑ᵢ (xᵢ − x₁), v = (1/M)·∑ᵢ (xᵢ − μ)²  [SUM.7]

If all values are equal, every difference is exactly 0.
*/
/* Where value i of group g stands, and how many there are. */
static size_t nrmi_at(const nrmi_view *v, size_t g, size_t i)
{
    return g * v->apart + i / v->length * v->pitch + i % v->length;
}
#define NRM_COUNT(v) ((v)->runs * (v)->length)

static void nrmi_two_passes(nrmi_moments *t, size_t k, const nrm_real *x, const nrmi_view *v)
{
    const nrm_acc x1 = (nrm_acc)x[0], M = (nrm_acc)NRM_COUNT(v);
    nrm_acc offset = 0, squares = 0;
    size_t i;
    for (i = 0; i < NRM_COUNT(v); i++) offset += (nrm_acc)x[nrmi_at(v, 0, i)] - x1;
    offset /= M;
    for (i = 0; i < NRM_COUNT(v); i++) {
        const nrm_acc d = ((nrm_acc)x[nrmi_at(v, 0, i)] - x1) - offset;
        squares += d * d;
    }
    nrmi_put(t, k, x1, offset, squares / M); /* SUM.7 */
}

/*
The primitives that follow define what the fast ones of chapters 16 to 18 compute. With
`NRM_PLAIN` they are all there is. A strip is a single group then: w is 1.
*/
#ifdef NRM_PLAIN
#define NRM_FROM(mu, x) (((nrm_acc)(x) - (nrm_acc)(mu)->high[0]) - (nrm_acc)(mu)->low[0])

static void nrmi_moments_of(
    nrmi_moments *t, const nrm_real *x, const nrmi_view *v, size_t g, size_t w)
{
    nrmi_two_passes(t, w - 1, x + g * v->apart, v); /* SUM.7 */
}

static void nrmi_squares_of(
    nrmi_moments *t, const nrm_real *x, const nrmi_view *v, size_t g, size_t w)
{
    nrm_acc squares = 0;
    size_t i;
    for (i = 0; i < v->length; i++)
        squares += (nrm_acc)x[nrmi_at(v, g, i)] * (nrm_acc)x[nrmi_at(v, g, i)];
    nrmi_put(t, w - 1, 0, 0, squares / (nrm_acc)v->length); /* RMS.1 */
}

static void nrmi_sums_of(nrmi_sums *s, const nrm_real *dy, const nrm_real *gamma, const nrm_real *x,
    const nrmi_centre *mu, const nrm_acc *rstd, const nrmi_view *v, size_t g, size_t w)
{
    const nrm_acc r = rstd != NULL ? *rstd : 1;
    size_t j;
    s->dy[0] = s->dy_xhat[0] = 0;
    for (j = 0; j < w * NRM_COUNT(v); j++) {
        const size_t i = nrmi_at(v, g, j);
        const nrm_acc d = NRM_FROM(mu, x[i]), c = nrmi_or(gamma, g % v->sets * v->length + j, 1);
        const nrm_acc u = dy != NULL ? (nrm_acc)dy[i] * c : d;
        s->dy[0] += u;
        s->dy_xhat[0] += u * (d * r); /* SUM.12 */
    }
}

static void nrmi_affine(nrm_real *y, const nrm_real *x, const nrmi_centre *mu, const nrm_acc *scale,
    const nrm_acc *shift, const nrmi_view *v, size_t g, size_t w)
{
    const nrm_acc b = shift != NULL ? *shift : 0;
    size_t j;
    for (j = 0; j < w * NRM_COUNT(v); j++) {
        const size_t i = nrmi_at(v, g, j);
        y[i] = (nrm_real)(NRM_FROM(mu, x[i]) * *scale + b); /* BN.5 */
    }
}

static void nrmi_affine_rows(nrm_real *y, const nrm_real *x, const nrmi_centre *mu,
    const nrm_acc *rstd, const nrm_real *gamma, const nrm_real *beta, const nrmi_view *v, size_t g,
    size_t w)
{
    const size_t set = g % v->sets * v->length;
    size_t j;
    for (j = 0; j < w * v->length; j++) {
        const size_t i = nrmi_at(v, g, j);
        const nrm_acc xhat = NRM_FROM(mu, x[i]) * *rstd; /* LN.4 */
        y[i] = (nrm_real)(xhat * nrmi_or(gamma, set + j, 1) + nrmi_or(beta, set + j, 0)); /* LN.5 */
    }
}

static void nrmi_project(nrm_real *dx, const nrm_real *dy, nrm_acc gamma, const nrm_real *x,
    const nrmi_centre *mu, const nrm_acc *rstd, const nrm_acc *scale, const nrmi_sums *s,
    nrm_acc share, const nrmi_view *v, size_t g, size_t w)
{
    const nrm_acc m1 = s->dy[0] * share, m2 = s->dy_xhat[0] * share;
    size_t j;
    for (j = 0; j < w * NRM_COUNT(v); j++) {
        const size_t i = nrmi_at(v, g, j);
        const nrm_acc xhat = NRM_FROM(mu, x[i]) * *rstd;
        dx[i] = (nrm_real)((gamma * (nrm_acc)dy[i] - m1 - xhat * m2) * *scale); /* BN.19 */
    }
}

static void nrmi_project_rows(nrm_real *dx, nrmi_columns *columns, const nrm_real *dy,
    const nrm_real *gamma, const nrm_real *x, const nrmi_centre *mu, const nrm_acc *rstd,
    const nrmi_sums *s, nrm_acc share, const nrmi_view *v, size_t g, size_t w)
{
    const size_t set = g % v->sets * v->length;
    const nrm_acc m1 = s != NULL ? s->dy[0] * share : 0;
    const nrm_acc m2 = s != NULL ? s->dy_xhat[0] * share : 0;
    size_t j;
    for (j = 0; j < w * v->length; j++) {
        const size_t i = nrmi_at(v, g, j);
        const nrm_acc xhat = NRM_FROM(mu, x[i]) * *rstd, u = (nrm_acc)dy[i];
        const nrm_acc gi = u * nrmi_or(gamma, set + j, 1);
        if (columns != NULL) columns->dbeta[set + j] += u; /* LN.8 */
        if (columns != NULL) columns->dgamma[set + j] += u * xhat; /* LN.9 */
        if (dx != NULL) dx[i] = (nrm_real)((gi - m1 - xhat * m2) * *rstd); /* LN.14 */
    }
}
#endif
/*
## 16  Sums and means, fast

The mean and the variance decide both accuracy and speed. One trick serves both: subtract a
nearby reference value first.

The variance is often computed in one pass from the identity

    ⟨(x − μ)²⟩ = ⟨x²⟩ − μ²  (SUM.1)

which is true in algebra and ruinous in arithmetic: for values near 1000 with a spread of 0.1
both terms are about a million and agree in their first eight digits, and a float has seven.
But the identity holds for deviations from any number p, a *pivot*, and with a pivot near the
mean little cancels:

    d = x − p: μ = p + ⟨d⟩, v = ⟨d²⟩ − ⟨d⟩²  [SUM.2]

The first pivot is the first value x₁; for columns it is the mean of the first eight rows,
since among many columns some would always start far from their mean. The difference of two
floats of one sign within a factor of two is exact (Sterbenz); any other is rounded by at most
2⁻²⁴ of itself. The values come in blocks of B. Of a block two sums are needed,

    S₁ = ∑ᵢ (xᵢ − p), S₂ = ∑ᵢ (xᵢ − p)²  [SUM.3]

They are merged with the n values before: with their mean m, and with Q, the sum of their
squared deviations from m (Chan, Golub and LeVeque 1979).

    δ = p + S₁/B − m, m ← m + δ·B/(n + B)  [SUM.4]
    Q ← Q + (S₂ − S₁²/B) + δ²·n·B/(n + B)  [SUM.5]
*/
#if (defined(__GNUC__) || defined(__clang__)) && !defined(NRM_NO_VECTORS) && \
    !defined(NRM_ANY_FLOAT_EVAL) && !defined(NRM_PLAIN)
#if defined(__AVX512F__)
#define NRM_VEC_BYTES 64
#elif defined(__AVX__)
#define NRM_VEC_BYTES 32
#else
#define NRM_VEC_BYTES 16
#if defined(__x86_64__) && !defined(NRM_NO_DISPATCH) && !defined(NRM_NO_LIBC) && \
    !defined(_MSC_VER) && !defined(__OPTIMIZE_SIZE__)
#define NRM_DISPATCH
#ifndef NRM_DISPATCH_LIMIT
#define NRM_DISPATCH_LIMIT 64
#endif
#endif
#endif
#define NRM_VECTOR(name, bytes) \
    typedef nrm_real name \
        __attribute__((vector_size(bytes), aligned(__alignof__(nrm_real)), may_alias))
NRM_VECTOR(nrmi_vec, NRM_VEC_BYTES);
NRM_VECTOR(nrmi_quarter, 16); /* of 64 bytes */
#else /* a vector of one number: the same sums in the same order */
typedef nrm_real nrmi_vec;
typedef nrm_real nrmi_quarter;
#endif
#if defined(__GNUC__) && !defined(__clang__) && !defined(__OPTIMIZE_SIZE__)
#define NRM_UNROLL _Pragma("GCC unroll 8")
#elif defined(NRM_PRECISE) && !defined(__OPTIMIZE_SIZE__) /* elsewhere clang may fail, and warn */
#define NRM_UNROLL _Pragma("unroll")
#else
#define NRM_UNROLL
#endif

/*
**Instruction sets.** A *kernel* is a function that works on vectors. Where the compiler may only
assume the vectors of 16 bytes that every x86-64 has, each kernel is compiled three times, for
16, 32 (AVX2) and 64 bytes (AVX-512), and at each call the processor decides. No copy fuses
multiplication and addition, so the choice changes no bit. `NRM_DISPATCH_LIMIT`, the most bytes,
is for tests.
*/
static inline int nrmi_bytes(void)
{
#ifdef NRM_DISPATCH
    if (NRM_DISPATCH_LIMIT >= 64 && __builtin_cpu_supports("avx512f")) return 64;
    if (NRM_DISPATCH_LIMIT >= 32 && __builtin_cpu_supports("avx2")) return 32;
#endif
    return sizeof(nrmi_vec);
}
#ifdef NRM_DISPATCH
NRM_VECTOR(nrmi_vec32, 32);
NRM_VECTOR(nrmi_vec64, 64);
#define NRM_BYTES const int bytes,
#define NRM_PASS_ON bytes,
#define NRM_ONE_BY_ONE __asm__ volatile("") /* no vectors */
#define NRM_COPY(name, isa, size, arguments, ...) \
    static __attribute__((target(isa))) NRM_APART void name##_##size(__VA_ARGS__) \
    { \
        name##_any(size, NRM_BARE arguments); \
    }
#define NRM_BARE(...) __VA_ARGS__
#define NRM_KERNEL(name, arguments, ...) \
    NRM_INLINE void name##_any(const int bytes, __VA_ARGS__); \
    NRM_COPY(name, "avx512f", 64, arguments, __VA_ARGS__) \
    NRM_COPY(name, "avx2", 32, arguments, __VA_ARGS__) \
    static void name(__VA_ARGS__) \
    { \
        const int bytes = nrmi_bytes(); \
        if (bytes == 64) \
            name##_64 arguments; \
        else if (bytes == 32) \
            name##_32 arguments; \
        else \
            name##_any(16, NRM_BARE arguments); \
    } \
    NRM_INLINE void name##_any(const int bytes __attribute__((unused)), __VA_ARGS__)
#define NRM_WIDTHS(...) \
    if (bytes == 64) { \
        typedef nrmi_vec64 nrmi_some; \
        __VA_ARGS__ \
    } else if (bytes == 32) { \
        typedef nrmi_vec32 nrmi_some; \
        __VA_ARGS__ \
    } else { \
        typedef nrmi_vec nrmi_some; \
        __VA_ARGS__ \
    }
#else
#define NRM_BYTES
#define NRM_PASS_ON
#define NRM_ONE_BY_ONE ((void)0)
#define NRM_KERNEL(name, arguments, ...) static void name(__VA_ARGS__)
#define NRM_WIDTHS(...) \
    { \
        typedef nrmi_vec nrmi_some; \
        __VA_ARGS__ \
    }
#endif

/* Statements for each i < n: for vectors as long as there are whole ones, then for single numbers.
   nrmi_some is the type of what they work on, and NRM_MANY how many numbers that are. */
#define NRM_MANY (sizeof(nrmi_some) / sizeof(nrm_real))
#define NRM_LOOP(i, n, ...) \
    for (; i + NRM_MANY <= (n); i += NRM_MANY) { \
        __VA_ARGS__; \
    }
#define NRM_EACH(i, n, ...) \
    NRM_WIDTHS(NRM_LOOP(i, n, __VA_ARGS__)) \
    for (; i < (n); i++) { \
        typedef nrm_real nrmi_some; \
        __VA_ARGS__; \
        NRM_ONE_BY_ONE; \
    }
#define NRM_LOAD(at) (*(const nrmi_some *)(at))
#define NRM_STORE(at, some) (*(nrmi_some *)(at) = (some))

#ifndef NRM_PLAIN
/* m is an offset from x1, the first pivot; p, the pivot of these sums, becomes the next one. What a
   block of B values weighs beside the n before it: 1/B, B/(n + B), n·B/(n + B). */
static inline void nrmi_merge(nrm_acc *m, nrm_acc *Q, nrm_real *p, nrm_real x1, nrm_acc s1,
    nrm_acc s2, nrm_acc inverse, nrm_acc share, nrm_acc between)
{
    const nrm_acc mean = s1 * inverse;
    const nrm_acc delta = ((nrm_acc)*p - (nrm_acc)x1) + mean - *m;
    *m += delta * share; /* SUM.4 */
    *Q += (s2 - s1 * mean) + delta * delta * between; /* SUM.5 */
    *p = (nrm_real)((nrm_acc)x1 + *m);
}

/*
Then p becomes m rounded to `nrm_real`. Measured from m itself, the squares of a block sum to
(S₂ − S₁²/B) + B·δ². No block is longer than the first, so n/(n + B) ≥ ½, and Q gains at least
half of that:

    S₂ − S₁²/B + δ²·n·B/(n + B) ≥ ½·∑ᵢ (xᵢ − m)² ≥ S₂/8  [SUM.6]

The last step is the price of rounding: p is the float nearest to m and xᵢ is a float, so
|xᵢ − p| ≤ 2·|xᵢ − m|. Only the first block depends on how good x₁ is as a pivot. If Q turns
out to be less than a quarter of all S₂ together, two bits were lost, and the sums are taken
once more with the mean just found as the first pivot. If that does not settle it, a square
has overflowed or there is a NaN, and the two passes of SUM.7 decide.

The inner loops SUM.3 therefore work in `nrm_real`, over stretches so short that rounding
errors stay small, and merging is done in `nrm_acc`, once for each block.
*/
#define NRM_SETTLED(Q, gross) ((4 * (Q) >= (gross)) & nrmi_finite(gross)) /* SUM.6 */
/*
**The order of a sum** is part of the specification. For neighbours: as many lanes as fit into
64 bytes (L = 16 floats or 8 doubles); lane j takes the terms whose index in the run is j
modulo L, and at the end of a block the lanes are folded in half until one is left.

    lⱼ = aⱼ + aⱼ₊L + aⱼ₊₂L + …, added from left to right  [SUM.8]
    lⱼ ← lⱼ + lⱼ₊ₖ for j < k, k = L/2, L/4, …, 1          [SUM.9]

A block has at most 1024/L lines of L values and goes on from run to run. Columns are summed
straight down, in blocks of 32 rows. Vectors of any width give the same bits.
*/
enum {
    NRMI_BLOCK = 1024, /* values in a block of runs */
    NRMI_LINES = 32, /* rows in a block of columns */
    NRMI_STREAMS = 8 /* rows read at once */
};

/* Two sums under way, of u and of u·d with d = x − p; u is d if dy is NULL (SUM.3), else dy, or
   dy·gamma. */
typedef struct NRM_OWN(nrmi_lanes) {
    nrm_real u[NRM_LANES] NRM_ON_LINE, ud[NRM_LANES];
} nrmi_lanes;
#define NRM_ADD(u_sum, ud_sum, u, d) ((u_sum) += (u), (ud_sum) += (u) * (d))
#define NRM_ALL_LANES(j) NRM_UNROLL for (j = 0; j < NRM_LANES / NRM_MANY; j++)

/* Over runs of n neighbours; the last ones of a run, too few for all lanes, go one by one. */
NRM_INLINE void nrmi_add_runs(NRM_BYTES nrmi_lanes *lanes, const nrm_real *x, nrm_real p,
    const nrm_real *dy, const nrm_real *gamma, size_t n, size_t runs, size_t pitch)
{
    size_t run, i, j;
    for (run = 0; run < runs; run++, x += pitch, dy = NRM_PLUS(dy, pitch)) {
        i = 0;
        NRM_WIDTHS({
            nrmi_some u_sum[NRM_LANES / NRM_MANY], ud_sum[NRM_LANES / NRM_MANY], zero = {0};
            NRM_ALL_LANES(j) u_sum[j] = run == 0 ? zero : NRM_LOAD(lanes->u + j * NRM_MANY);
            NRM_ALL_LANES(j) ud_sum[j] = run == 0 ? zero : NRM_LOAD(lanes->ud + j * NRM_MANY);
            for (; i + NRM_LANES <= n; i += NRM_LANES) {
                NRM_ALL_LANES(j)
                {
                    const size_t at = i + j * NRM_MANY;
                    const nrmi_some d = NRM_LOAD(x + at) - p;
                    nrmi_some u = dy != NULL ? NRM_LOAD(dy + at) : d;
                    if (gamma != NULL) u *= NRM_LOAD(gamma + at);
                    NRM_ADD(u_sum[j], ud_sum[j], u, d); /* SUM.8 */
                }
            }
            NRM_ALL_LANES(j) NRM_STORE(lanes->u + j * NRM_MANY, u_sum[j]);
            NRM_ALL_LANES(j) NRM_STORE(lanes->ud + j * NRM_MANY, ud_sum[j]);
        })
        for (j = 0; i < n; i++, j++) {
            const nrm_real d = x[i] - p;
            const nrm_real u = dy == NULL ? d : gamma == NULL ? dy[i] : dy[i] * gamma[i];
            NRM_ADD(lanes->u[j], lanes->ud[j], u, d); /* SUM.8 */
            NRM_ONE_BY_ONE;
        }
    }
}

/* In quarters of Q lanes: 4, or 2 of doubles. */
static inline nrm_real nrmi_fold_lanes(const nrm_real *l)
{
    typedef nrmi_quarter nrmi_some;
    enum { Q = NRM_LANES / 4 };
    nrm_real q[4];
    size_t j;
    for (j = 0; j < Q; j += NRM_MANY)
        NRM_STORE(q + j, (NRM_LOAD(l + j) + NRM_LOAD(l + j + 2 * Q)) +
                             (NRM_LOAD(l + j + Q) + NRM_LOAD(l + j + 3 * Q))); /* SUM.9 */
    return Q == 4 ? (q[0] + q[2]) + (q[1] + q[3]) : q[0] + q[1];
}
#endif

/*
## 17  Sums down columns, fast

The pass reads w columns of eight rows at a time, or of four rows of x and four of dy: the
sums of a few columns stay in registers for eight values. More would be worse, since rows a
multiple of 4 KB apart share eight places in the first-level cache.
*/
#ifndef NRM_PLAIN
NRM_KERNEL(nrmi_add_rows, (su, sud, x, p, dy, rows, pitch, w), nrm_real *su, nrm_real *sud,
    const nrm_real *x, const nrm_real *p, const nrm_real *dy, size_t rows, size_t pitch, size_t w)
{
    const size_t streams = NRMI_STREAMS / (dy != NULL ? 2u : 1u);
    size_t n, i;
    for (n = 0; n < rows; n += streams) {
        const size_t some = rows - n < streams ? rows - n : streams;
        const nrm_real *at = x + n * pitch, *u_at = NRM_PLUS(dy, n * pitch);
        size_t c = 0;
        NRM_EACH(c, w, {
            const nrmi_some pivot = NRM_LOAD(p + c), zero = {0};
            nrmi_some u_sum = n > 0 ? NRM_LOAD(su + c) : zero;
            nrmi_some ud_sum = n > 0 ? NRM_LOAD(sud + c) : zero;
            for (i = 0; i < some; i++) {
                const nrmi_some d = NRM_LOAD(at + i * pitch + c) - pivot;
                const nrmi_some u = dy != NULL ? NRM_LOAD(u_at + i * pitch + c) : d;
                NRM_ADD(u_sum, ud_sum, u, d); /* SUM.3, SUM.12 */
            }
            NRM_STORE(su + c, u_sum);
            NRM_STORE(sud + c, ud_sum);
        })
    }
}

/* How far w groups from group g on have been read. */
typedef struct nrmi_walk {
    const nrmi_view *v;
    size_t g, w, run, i, count;
} nrmi_walk;

/* The two sums of each group over its next block, of `count` values, 0 at the end; p: a pivot for
   each group. */
NRM_KERNEL(nrmi_next_block, (su, sud, at, x, p, dy, gamma), nrm_real *su, nrm_real *sud,
    nrmi_walk *at, const nrm_real *x, const nrm_real *p, const nrm_real *dy, const nrm_real *gamma)
{
    const nrmi_view *v = at->v;
    const int columns = v->kind == NRMI_COLUMNS;
    const size_t D = v->length, piece = nrmi_least(D - at->i, NRMI_BLOCK);
    const size_t lines = (piece + NRM_LANES - 1) / NRM_LANES; /* a lane takes one value of each */
    const size_t fit = v->runs == 1 || D > NRMI_BLOCK ? 1 : NRMI_BLOCK / NRM_LANES / lines;
    const size_t runs = nrmi_least(v->runs - at->run, columns ? (size_t)NRMI_LINES : fit);
    const size_t start = at->run * v->pitch + at->i;
    size_t k;
    if (columns) nrmi_add_rows(su, sud, x + start, p, NRM_PLUS(dy, start), runs, v->pitch, at->w);
    for (k = 0; k < at->w && !columns && runs > 0; k++) {
        const size_t from = start + k * v->apart;
        nrmi_lanes lanes;
        if (dy == NULL)
            nrmi_add_runs(NRM_PASS_ON & lanes, x + from, p[k], NULL, NULL, piece, runs, v->pitch);
        else
            nrmi_add_runs(NRM_PASS_ON & lanes, x + from, p[k], dy + from,
                NRM_PLUS(gamma, (at->g + k) % v->sets * D + at->i), piece, runs, v->pitch);
        su[k] = nrmi_fold_lanes(lanes.u);
        sud[k] = nrmi_fold_lanes(lanes.ud);
    }
    at->count = runs * piece;
    at->i = at->i + piece < D ? at->i + piece : 0;
    at->run += at->i == 0 ? runs : 0;
}

/* One turn for w groups that begin at x, with their first pivots. Returns how many are not settled:
   they get a variance of −1 and a better pivot. */
static size_t nrmi_turn(
    nrmi_moments *t, nrm_real *first, const nrm_real *x, const nrmi_view *v, size_t w)
{
    const int one_block = v->kind == NRMI_ROWS && v->length <= NRMI_BLOCK; /* nothing to merge */
    const nrm_acc M = (nrm_acc)v->runs * (nrm_acc)v->length, per = 1 / M;
    nrm_real pivot[NRM_SLOTS] NRM_ON_LINE, gross[NRM_SLOTS];
    nrm_real s1[NRM_SLOTS] NRM_ON_LINE, s2[NRM_SLOTS] NRM_ON_LINE;
    nrm_acc *offset = t->mean, *Q = t->var; /* which they become in the end */
    size_t c, n, unsettled = 0;
    nrmi_walk at = {v, 0, w, 0, 0, 0};
    for (c = 0; c < w; c++) pivot[c] = first[c], gross[c] = 0, offset[c] = Q[c] = 0;
    for (n = 0; nrmi_next_block(s1, s2, &at, x, pivot, NULL, NULL), at.count > 0; n += at.count) {
        const nrm_acc B = (nrm_acc)at.count, inverse = 1 / B, share = B / ((nrm_acc)n + B);
        for (c = 0; c < w; c++) /* (SUM.3) */
            nrmi_merge(&offset[c], &Q[c], &pivot[c], first[c], (nrm_acc)s1[c], (nrm_acc)s2[c],
                inverse, share, (nrm_acc)n * share);
        for (c = 0; c < w; c++) gross[c] += s2[c];
    }
    for (c = 0; c < w; c++) { /* no branch, so that it works on vectors */
        const nrm_acc all = (nrm_acc)gross[c];
        const nrm_acc q = one_block ? all - offset[c] * offset[c] * M : Q[c]; /* SUM.2 */
        const nrm_acc var = one_block ? q * per : q / M;
        const int settled = NRM_SETTLED(q, all);
        nrmi_put(t, c, (nrm_acc)first[c], offset[c], settled ? var : -1);
        first[c] = settled ? first[c] : t->at.high[c];
        unsettled += !settled;
    }
    return unsettled;
}

/* In a second turn a settled group gets the same result. */
static void nrmi_moments_of(
    nrmi_moments *t, const nrm_real *x, const nrmi_view *v, size_t g, size_t w)
{
    const size_t some = v->kind == NRMI_COLUMNS ? nrmi_least(v->runs, NRMI_STREAMS) : 0;
    nrm_real first[NRM_SLOTS], sums[NRM_SLOTS];
    size_t n, k;
    x += g * v->apart;
    for (k = 0; k < w; k++) first[k] = x[k * v->apart], sums[k] = 0;
    for (n = 0; n < some; n++)
        for (k = 0; k < w; k++) sums[k] += x[n * v->pitch + k] - first[k];
    for (k = 0; k < w && some > 0; k++)
        first[k] = (nrm_real)((nrm_acc)first[k] + (nrm_acc)sums[k] / (nrm_acc)some);
    if (nrmi_turn(t, first, x, v, w) == 0 || nrmi_turn(t, first, x, v, w) == 0) return;
    for (k = 0; k < w; k++)
        if (t->var[k] < 0) nrmi_two_passes(t, k, x + k * v->apart, v);
}

/*
Sums of u·x̂ are sums like SUM.3, with u in place of one factor. The mean is split into a
high part h, μ rounded to `nrm_real`, and a low part t, so that x − h keeps its digits where
the mean is large:

    μ = h + t, h = μ rounded to nrm_real     [SUM.10]
    ∑ᵢ uᵢ·x̂ᵢ = r·(∑ᵢ uᵢ·(xᵢ − h) − t·∑ᵢ uᵢ)  [SUM.12]
*/
static void nrmi_sums_of(nrmi_sums *s, const nrm_real *dy, const nrm_real *gamma, const nrm_real *x,
    const nrmi_centre *mu, const nrm_acc *rstd, const nrmi_view *v, size_t g, size_t w)
{
    nrm_real su[NRM_SLOTS] NRM_ON_LINE, sud[NRM_SLOTS] NRM_ON_LINE;
    nrmi_walk at = {v, g, w, 0, 0, 0};
    const size_t start = g * v->apart;
    size_t k;
    for (k = 0; k < w; k++) s->dy[k] = s->dy_xhat[k] = 0;
    while (nrmi_next_block(su, sud, &at, x + start, mu->high, NRM_PLUS(dy, start), gamma),
        at.count > 0) {
        for (k = 0; k < w; k++) s->dy[k] += (nrm_acc)su[k];
        for (k = 0; k < w; k++) s->dy_xhat[k] += (nrm_acc)sud[k];
    }
    for (k = 0; k < w; k++) {
        const nrm_acc r = rstd != NULL ? rstd[k] : 1;
        s->dy_xhat[k] = r * (s->dy_xhat[k] - (nrm_acc)mu->low[k] * s->dy[k]); /* SUM.12 */
    }
}

/* A square of a float overflows above 10¹⁹ and loses digits below 10⁻¹⁹: then nrm_acc is used. */
static void nrmi_squares_of(
    nrmi_moments *t, const nrm_real *x, const nrmi_view *v, size_t g, size_t w)
{
    const int wide = sizeof(nrm_real) > sizeof(float) && sizeof(nrm_acc) > sizeof(float);
    const nrm_acc least = wide ? (nrm_acc)1e-290 : (nrm_acc)1e-30;
    nrmi_centre zero;
    nrmi_sums s;
    size_t k, i;
    nrmi_saved(&zero, NULL, NULL, v, g, w);
    nrmi_sums_of(&s, x, NULL, x, &zero, NULL, v, g, w);
    for (k = 0; k < w; k++) {
        const nrm_real *row = x + (g + k) * v->apart;
        nrm_acc squares = s.dy_xhat[k];
        if (!nrmi_finite(squares) || squares < least)
            for (squares = 0, i = 0; i < v->length; i++)
                squares += (nrm_acc)row[i] * (nrm_acc)row[i];
        nrmi_put(t, k, 0, 0, squares / (nrm_acc)v->length); /* RMS.1 */
    }
}
#endif

/*
## 18  Affine maps and projections, fast

With the high part h and the low part t of SUM.10, x̂ is an affine map of x − h. So is y, if γ
and β are the same for all values, and so is what BN.19 subtracts; u is dy or dy·γ and a is
γ·r:

    x̂ = r·(x − h) − r·t, γ·x̂ + β = s·(x − h) + b, s = γ·r, b = β − s·t               [SUM.11]
    a·(u − ⟨u⟩ − x̂·⟨u·x̂⟩) = a·((u − ⟨u⟩) + (s·(x − h) + b)), s = −r·⟨u·x̂⟩, b = −s·t  [SUM.13]

Scales and shifts are computed in `nrm_acc`, once for each group, and rounded. One r stays
outside in SUM.13, since r² leaves the range of a float where x is beyond 10¹⁹.
*/
#ifndef NRM_PLAIN
/* SUM.11 and SUM.13, of numbers or of vectors. */
#define NRM_AFFINE(x, high, slope, shift) (((x) - (high)) * (slope) + (shift))
#define NRM_PROJECT(u, u_mean, affine, scale) ((((u) - (u_mean)) + (affine)) * (scale))

/*
The processor fetches ahead along a stream that is being read, but not while a pass writes. So
the writing pass asks for what the next reading pass will want, unless the arrays fit the cache.
The address may lie beyond the array, where no pointer may. Empty instructions pause: x86 drops
some of too many requests. Short rows need none.
*/
#if defined(__GNUC__) || defined(__clang__)
#ifdef __x86_64__
#define NRM_PAUSE __asm__ volatile(".rept %c0; nop; .endr" : : "i"(sizeof(nrmi_some) / 3))
#else
#define NRM_PAUSE
#endif
#define NRM_PREFETCH(at, ahead) \
    if ((ahead) > 0) { \
        __builtin_prefetch((const void *)((uintptr_t)(at) + (ahead) * sizeof *(at))); \
        NRM_PAUSE; \
    }
#else
#define NRM_PREFETCH(at, ahead)
#endif

NRM_KERNEL(nrmi_affine, (y, x, mu, scale, shift, v, g, w), nrm_real *y, const nrm_real *x,
    const nrmi_centre *mu, const nrm_acc *scale, const nrm_acc *shift, const nrmi_view *v, size_t g,
    size_t w)
{
    const int columns = v->kind == NRMI_COLUMNS;
    const size_t runs = v->runs, pitch = v->pitch, start = g * v->apart;
    const nrm_acc *b = shift != NULL ? shift : scale; /* a masked load from NULL is slow */
    nrm_real slope[NRM_SLOTS], offset[NRM_SLOTS];
    size_t n, i = 0, k, ahead = v->groups * runs * v->length < NRMI_FETCH_FROM ? 0 : v->ahead;
    for (k = 0; k < w; k++) {
        slope[k] = (nrm_real)scale[k];
        offset[k] = (nrm_real)((shift != NULL ? b[k] : 0) - scale[k] * (nrm_acc)mu->low[k]);
    }
    for (n = 0; n < runs && columns; n++, i = 0) {
        const size_t at = start + n * pitch;
        NRM_EACH(i, w, {
            const nrmi_some h = NRM_LOAD(mu->high + i), s = NRM_LOAD(slope + i); /* SUM.11 */
            NRM_STORE(y + at + i, NRM_AFFINE(NRM_LOAD(x + at + i), h, s, NRM_LOAD(offset + i)));
        })
    }
    for (n = 0; n < runs && !columns; n++)
        for (k = 0; k < w; k++, i = 0) { /* as in memory */
            const size_t at = start + n * pitch + k * v->apart;
            const nrm_real high = mu->high[k], s = slope[k], add = offset[k];
            NRM_EACH(i, v->length, {
                NRM_PREFETCH(x + at + i, ahead);
                NRM_STORE(y + at + i, NRM_AFFINE(NRM_LOAD(x + at + i), high, s, add)); /* SUM.11 */
            })
        }
}

/* x̂ first, then γ and β along the row. */
NRM_KERNEL(nrmi_affine_rows, (y, x, mu, rstd, gamma, beta, v, g, w), nrm_real *y, const nrm_real *x,
    const nrmi_centre *mu, const nrm_acc *rstd, const nrm_real *gamma, const nrm_real *beta,
    const nrmi_view *v, size_t g, size_t w)
{
    const size_t D = v->length, sets = v->sets, ahead = D > 128 ? v->ahead : 0;
    size_t set = g % sets * D, k;
    for (k = 0; k < w; k++, set = set + D < sets * D ? set + D : 0) {
        const size_t at = (g + k) * v->apart;
        const nrm_real high = mu->high[k], r = (nrm_real)rstd[k];
        const nrm_real shift = (nrm_real)(-(nrm_acc)mu->low[k] * rstd[k]);
        size_t i = 0;
        NRM_EACH(i, D, {
            nrmi_some some = NRM_AFFINE(NRM_LOAD(x + at + i), high, r, shift); /* LN.4 */
            NRM_PREFETCH(x + at + i, ahead);
            if (gamma != NULL) some *= NRM_LOAD(gamma + set + i);
            if (beta != NULL) some += NRM_LOAD(beta + set + i);
            NRM_STORE(y + at + i, some); /* LN.5 */
        })
    }
}

/*
In group norm γ differs from group to group of a view, and ⟨g⟩ goes into the shift:

    dx_cs = r·(γ_c·dy_cs + (t·(x_cs − h) + b)), t = −r·⟨g·x̂⟩, b = −⟨g⟩ − t·(μ − h)  [GN.8]
*/
NRM_KERNEL(nrmi_project, (dx, dy, gamma, x, mu, rstd, scale, s, share, v, g, w), nrm_real *dx,
    const nrm_real *dy, nrm_acc gamma, const nrm_real *x, const nrmi_centre *mu,
    const nrm_acc *rstd, const nrm_acc *scale, const nrmi_sums *s, nrm_acc share,
    const nrmi_view *v, size_t g, size_t w)
{
    const int columns = v->kind == NRMI_COLUMNS, rows = v->kind == NRMI_ROWS;
    const size_t runs = v->runs, pitch = v->pitch, start = g * v->apart;
    const size_t ahead = v->kind == NRMI_RUNS ? v->ahead : 0; /* (too far) */
    nrm_real slope[NRM_SLOTS] NRM_ON_LINE, shift[NRM_SLOTS] NRM_ON_LINE;
    nrm_real m1[NRM_SLOTS] NRM_ON_LINE, r[NRM_SLOTS] NRM_ON_LINE;
    const nrm_real gain = (nrm_real)gamma;
    size_t n, i, k;
    for (k = 0; k < w; k++) {
        const nrm_acc dy_mean = s->dy[k] * share, a = -rstd[k] * (s->dy_xhat[k] * share);
        const nrm_acc b = -a * (nrm_acc)mu->low[k];
        slope[k] = (nrm_real)a;
        shift[k] = (nrm_real)(rows ? -dy_mean + b : b); /* GN.8 */
        m1[k] = (nrm_real)(rows ? 0 : dy_mean);
        r[k] = (nrm_real)scale[k];
    }
    for (n = 0; n < runs && columns; n++) {
        const size_t at = start + n * pitch;
        i = 0;
        NRM_EACH(i, w, {
            const nrmi_some affine = NRM_AFFINE(NRM_LOAD(x + at + i), NRM_LOAD(mu->high + i),
                NRM_LOAD(slope + i), NRM_LOAD(shift + i));
            NRM_STORE(dx + at + i, /* BN.19 as SUM.13 */
                NRM_PROJECT(NRM_LOAD(dy + at + i), NRM_LOAD(m1 + i), affine, NRM_LOAD(r + i)));
        })
    }
    for (n = 0; n < runs && !columns; n++) { /* of a single group */
        const size_t at = start + n * pitch;
        const nrm_real high = mu->high[0], a = slope[0], b = shift[0], dy_mean = m1[0];
        const nrm_real factor = r[0];
        i = 0;
        NRM_EACH(i, v->length, {
            const nrmi_some affine = NRM_AFFINE(NRM_LOAD(x + at + i), high, a, b);
            NRM_PREFETCH(x + at + i, ahead);
            NRM_PREFETCH(dy + at + i, ahead);
            NRM_STORE(dx + at + i, /* BN.19 as SUM.13 */
                NRM_PROJECT(NRM_LOAD(dy + at + i) * gain, dy_mean, affine, factor));
        })
    }
}

/* Columns and rows in one sweep: both need x and dy. */
NRM_KERNEL(nrmi_project_rows, (dx, columns, dy, gamma, x, mu, rstd, s, share, v, g, w),
    nrm_real *dx, nrmi_columns *columns, const nrm_real *dy, const nrm_real *gamma,
    const nrm_real *x, const nrmi_centre *mu, const nrm_acc *rstd, const nrmi_sums *s,
    nrm_acc share, const nrmi_view *v, size_t g, size_t w)
{
    const size_t D = v->length, sets = v->sets, ahead = 2 * v->ahead;
    size_t set = g % sets * D, k;
    for (k = 0; k < w; k++, set = set + D < sets * D ? set + D : 0) {
        const size_t at = (g + k) * v->apart;
        const nrm_real high = mu->high[k], r = (nrm_real)rstd[k];
        const nrm_real shift = (nrm_real)(-(nrm_acc)mu->low[k] * rstd[k]);
        const nrm_real m1 = (nrm_real)(s != NULL ? s->dy[k] * share : 0);
        const nrm_real m2 = (nrm_real)(s != NULL ? s->dy_xhat[k] * share : 0);
        nrm_real *sum = columns != NULL ? columns->dy + set : NULL;
        nrm_real *sum_x = columns != NULL ? columns->dy_xhat + set : NULL;
        size_t i = 0;
        NRM_EACH(i, D, {
            const nrmi_some xhat = NRM_AFFINE(NRM_LOAD(x + at + i), high, r, shift);
            nrmi_some u = NRM_LOAD(dy + at + i);
            NRM_PREFETCH(x + at + i, ahead);
            NRM_PREFETCH(dy + at + i, ahead);
            if (sum != NULL) {
                NRM_STORE(sum + i, NRM_LOAD(sum + i) + u); /* LN.8 */
                NRM_STORE(sum_x + i, NRM_LOAD(sum_x + i) + u * xhat); /* LN.9 */
            }
            if (gamma != NULL) u *= NRM_LOAD(gamma + set + i);
            if (dx != NULL) NRM_STORE(dx + at + i, ((u - m1) - xhat * m2) * r); /* LN.14 */
        })
    }
}
#endif

/*
**Masks.** The rows that a mask lets through, or the positions of one run, are views again.
*/
static int nrmi_next_stretch(
    nrmi_view *part, size_t *at, size_t *from, const nrmi_view *v, const unsigned char *mask)
{
    const size_t all = v->runs * v->length, line = v->kind == NRMI_COLUMNS ? all : v->length;
    size_t first = *from, end, to;
    *part = *v;
    *at = 0;
    if (mask == NULL) return all > 0 && (*from)++ == 0;
    while (first < all && !mask[first]) first++;
    if (first == all) return 0;
    end = (first / line + 1) * line; /* a stretch ends where its run does */
    for (to = first; to < end && mask[to];) to++;
    part->runs = v->kind == NRMI_COLUMNS ? to - first : 1;
    part->length = v->kind == NRMI_COLUMNS ? 1 : to - first;
    part->ahead = 0;
    *at = first / v->length * v->pitch + first % v->length;
    *from = to;
    return 1;
}

/*
## 19  Products

All products of the layers have the form cᵢⱼ ← cᵢⱼ + ∑ₖ aᵢₖ·bₖⱼ, where c starts at the bias,
at zero (`fresh`), or at the gradient gathered so far. Only the strides of a and b differ.
Each cᵢⱼ is a running sum over ascending k:

    cᵢⱼ ← (((cᵢⱼ + aᵢ₁·b₁ⱼ) + aᵢ₂·b₂ⱼ) + …)  [LIN.5]

This order is the specification, and the plain version is the whole of it. The order of i
and j is free.
*/
static nrmi_matrix nrmi_strided(const nrm_real *at, size_t row, size_t col)
{
    const nrmi_matrix m = {at, row, col};
    return m;
}
#ifdef NRM_PLAIN
static void nrmi_product(
    nrm_real *c, nrmi_matrix a, nrmi_matrix b, size_t rows, size_t cols, size_t depth, int fresh)
{
    size_t i, j, k;
    for (i = 0; i < rows; i++)
        for (j = 0; j < cols; j++, c++) {
            if (fresh) *c = 0;
            for (k = 0; k < depth; k++)
                *c += a.at[i * a.row + k * a.col] * b.at[k * b.row + j * b.col]; /* LIN.5 */
        }
}
#else

/*
The fast version holds a small *tile* of c in registers and walks once along k. For each k
it multiplies one broadcast element of a by a short run of b. A tile is 6 rows by two or
four vectors. With its operands it takes 15 of the 16 registers of AVX, or 29 of the 32 of
AVX-512. Registers have no addresses, so all loops over a tile have literal bounds and are
unrolled, and `nrmi_tile` is expanded once for each number of rows.

Results depend only on whether the compiler fuses multiplication and addition into one
rounding. gcc does so by default in its GNU dialects, newer clangs do too;
`-ffp-contract=off` forbids it.
*/
enum { NRMI_TILE_ROWS = 6, NRMI_MOST_COLS = 256 / sizeof(nrm_real) };

/* Vectors in a row of a tile, and columns. */
#define NRM_TILE_VECS(bytes) ((bytes) >= 64 || (bytes) == sizeof(nrm_real) ? 4 : 2)
static size_t nrmi_cols(void)
{
    const size_t bytes = (size_t)nrmi_bytes();
    return NRM_TILE_VECS(bytes) * bytes / sizeof(nrm_real);
}
#ifndef NRM_DISPATCH
#if defined(__clang__) /* here, and only here, multiplication and addition may be fused */
#pragma STDC FP_CONTRACT DEFAULT
#elif defined(__GNUC__)
#pragma GCC pop_options
#elif defined(_MSC_VER)
#pragma fp_contract(on)
#endif
#endif
/* LIN.5 for a tile. Rows of c are ldc apart; those of b are contiguous. */
NRM_INLINE void nrmi_tile(NRM_BYTES nrm_real *c, size_t ldc, nrmi_matrix a, nrmi_matrix b,
    size_t depth, int fresh, int rows)
{
    NRM_WIDTHS({
        enum { V = NRM_TILE_VECS(sizeof(nrmi_some)) };
        nrmi_some sum[NRMI_TILE_ROWS][V], bk[V], zero = {0};
        size_t k, v;
        int i;
        NRM_UNROLL for (i = 0; i < rows; i++)
        {
            NRM_UNROLL for (v = 0; v < V; v++)
                sum[i][v] = fresh ? zero : NRM_LOAD(c + (size_t)i * ldc + v * NRM_MANY);
        }
        for (k = 0; k < depth; k++, a.at += a.col, b.at += b.row) {
            NRM_UNROLL for (v = 0; v < V; v++) bk[v] = NRM_LOAD(b.at + v * NRM_MANY);
            NRM_UNROLL for (i = 0; i < rows; i++)
            {
                const nrm_real aik = a.at[(size_t)i * a.row];
                NRM_UNROLL for (v = 0; v < V; v++) sum[i][v] += aik * bk[v]; /* LIN.5 */
            }
        }
        NRM_UNROLL for (i = 0; i < rows; i++)
        {
            NRM_UNROLL for (v = 0; v < V; v++)
                NRM_STORE(c + (size_t)i * ldc + v * NRM_MANY, sum[i][v]);
        }
    })
}
#define NRM_TILE(name, rows) /* a function of its own has all registers to itself */ \
    NRM_KERNEL(name, (c, ldc, a, b, depth, fresh), nrm_real *c, size_t ldc, nrmi_matrix a, \
        nrmi_matrix b, size_t depth, int fresh) \
    { \
        nrmi_tile(NRM_PASS_ON c, ldc, a, b, depth, fresh, rows); \
    }
NRM_TILE(nrmi_tile6, 6) NRM_TILE(nrmi_tile4, 4) NRM_TILE(nrmi_tile2, 2) NRM_TILE(nrmi_tile1, 1)

    /* All rows of the columns of a tile, the largest tiles first. */
    static void nrmi_block(
        nrm_real *c, size_t ldc, nrmi_matrix a, nrmi_matrix b, size_t rows, size_t depth, int fresh)
{
    while (rows > 0) {
        const size_t step = rows >= 6 ? 6 : rows >= 4 ? 4 : rows >= 2 ? 2 : 1;
        if (step == 6) nrmi_tile6(c, ldc, a, b, depth, fresh);
        if (step == 4) nrmi_tile4(c, ldc, a, b, depth, fresh);
        if (step == 2) nrmi_tile2(c, ldc, a, b, depth, fresh);
        if (step == 1) nrmi_tile1(c, ldc, a, b, depth, fresh);
        c += step * ldc;
        a.at += step * a.row;
        rows -= step;
    }
}
#ifndef NRM_DISPATCH
#if defined(__clang__) /* from here on no more */
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC push_options
#pragma GCC optimize("fp-contract=off")
#elif defined(_MSC_VER)
#pragma fp_contract(off)
#endif
#endif

/* The last columns, too few for a whole tile: c makes a detour through a padded copy. */
static void nrmi_narrow_block(nrm_real *c, size_t ldc, nrmi_matrix a, nrmi_matrix b, size_t rows,
    size_t cols, size_t depth, int fresh)
{
    const size_t tile = nrmi_cols();
    nrm_real padded[NRMI_TILE_ROWS * NRMI_MOST_COLS];
    size_t i, j;
    NRM_MEMSET(padded, 0, sizeof padded);
    while (rows > 0) {
        const size_t step = nrmi_least(rows, NRMI_TILE_ROWS);
        for (i = 0; i < step && !fresh; i++)
            for (j = 0; j < cols; j++) padded[i * tile + j] = c[i * ldc + j];
        nrmi_block(padded, tile, a, b, step, depth, fresh);
        for (i = 0; i < step; i++)
            for (j = 0; j < cols; j++) c[i * ldc + j] = padded[i * tile + j];
        c += step * ldc;
        a.at += step * a.row;
        rows -= step;
    }
}

/*
A strip of b, as wide as a tile, is first *packed*: copied into rows of exactly its width that
cross as few cache lines as possible. Speed then does not depend on where the matrix begins. For
few rows the copy does not pay; a transposed b needs it in any case. At most 320 steps of k are
packed at a time, fewer where `NRM_WIDTH` asks for a small stack. Between two such stretches c is
stored and loaded, which changes no bit.
*/
enum { NRMI_PACK_FROM = 12, NRMI_PACKED = 10240 }; /* rows; numbers in a packed strip */
#define NRM_PACKED (NRM_WIDTH < 1024 ? 512 + (NRMI_PACKED - 512) * (NRM_WIDTH) / 1024 : NRMI_PACKED)

/* Copies depth x cols elements of b into rows of `tile`. */
static void nrmi_pack(nrm_real *to, nrmi_matrix b, size_t depth, size_t cols, size_t tile)
{
    size_t k, j;
    for (k = 0; k < depth; k++, to += tile, b.at += b.row) {
        for (j = 0; j < cols && b.col != 1; j++) to[j] = b.at[j * b.col];
        if (b.col == 1) NRM_MEMCPY(to, b.at, cols * sizeof *to);
        for (j = cols; j < tile; j++) to[j] = 0;
    }
}

/* A product by one thread. The depth is cut into equal stretches, so that none is too short to
   pay, and a stretch of a stays in the cache for all columns. */
static void nrmi_multiply(nrm_real *c, size_t ldc, nrmi_matrix a, nrmi_matrix b, size_t rows,
    size_t cols, size_t depth, int fresh)
{
    nrm_real packed[NRM_PACKED] NRM_ON_LINE;
    const size_t tile = nrmi_cols(), most = nrmi_least(NRM_PACKED / tile, 320);
    const size_t stretches = (depth + most - 1) / most;
    const size_t deep = (depth + stretches - 1) / stretches;
    size_t j, k;
    for (k = 0; k < depth; k += deep)
        for (j = 0; j < cols; j += tile) {
            const size_t wide = nrmi_least(cols - j, tile), steps = nrmi_least(depth - k, deep);
            const nrmi_matrix part = nrmi_strided(a.at + k * a.col, a.row, a.col);
            nrmi_matrix strip = nrmi_strided(b.at + k * b.row + j * b.col, b.row, b.col);
            if (b.col != 1 || wide < tile || rows >= NRMI_PACK_FROM) {
                nrmi_pack(packed, strip, steps, wide, tile);
                strip = nrmi_strided(packed, tile, 1);
            }
            if (wide == tile)
                nrmi_block(c + j, ldc, part, strip, rows, steps, fresh && k == 0);
            else
                nrmi_narrow_block(c + j, ldc, part, strip, rows, wide, steps, fresh && k == 0);
        }
}

/*
Threads share the rows or the columns of c, whichever are more, and begin at whole tiles.

A BLAS can do the products instead: include `cblas.h` first, and define `NRM_GEMM` as
`cblas_sgemm`, or as `cblas_dgemm` with `NRM_DOUBLE`. The order of the sums is then up to
that library. Its sizes are ints; larger products are done here.
*/
#ifdef NRM_GEMM
static int nrmi_blas(
    nrm_real *c, nrmi_matrix a, nrmi_matrix b, size_t rows, size_t cols, size_t depth, int fresh)
{
    const size_t most = 0x7fffffff;
    const int turned_a = a.col != 1, turned_b = b.col != 1;
    const size_t lda = turned_a ? a.col : a.row, ldb = turned_b ? b.col : b.row;
    const size_t least_a = turned_a ? rows : depth, least_b = turned_b ? depth : cols;
    if (rows > most || cols > most || depth > most) return 0;
    NRM_GEMM(CblasRowMajor, turned_a ? CblasTrans : CblasNoTrans,
        turned_b ? CblasTrans : CblasNoTrans, (int)rows, (int)cols, (int)depth, 1, a.at,
        (int)(lda < least_a ? least_a : lda), b.at, (int)(ldb < least_b ? least_b : ldb),
        (nrm_real)(fresh ? 0 : 1), c, (int)cols); /* a single row may have any stride */
    return 1;
}
#endif

static void nrmi_product(
    nrm_real *c, nrmi_matrix a, nrmi_matrix b, size_t rows, size_t cols, size_t depth, int fresh)
{
    const int by_rows = rows > cols;
    const size_t grain = by_rows ? (size_t)NRMI_TILE_ROWS : nrmi_cols();
    const size_t count = by_rows ? rows : cols;
    size_t numbers, threads, share; /* the work; rows or columns for each thread */
    int i, parts;
    if (rows == 0 || cols == 0 || depth == 0) {
        if (fresh) NRM_MEMSET(c, 0, rows * cols * sizeof *c);
        return;
    }
#ifdef NRM_GEMM
    if (nrmi_blas(c, a, b, rows, cols, depth, fresh)) return;
#endif
    numbers = depth <= SIZE_MAX / (rows * cols) ? rows * cols * depth / 64 : SIZE_MAX;
    threads = nrmi_threads(numbers);
    share = ((count + grain - 1) / grain + threads - 1) / threads * grain;
    parts = (int)((count + share - 1) / share);
    NRM_SHARE(numbers)
    for (i = 0; i < parts; i++) {
        const size_t from = (size_t)i * share, size = nrmi_least(count - from, share);
        if (by_rows)
            nrmi_multiply(c + from * cols, cols, nrmi_strided(a.at + from * a.row, a.row, a.col), b,
                size, cols, depth, fresh);
        else
            nrmi_multiply(c + from, cols, a, nrmi_strided(b.at + from * b.col, b.row, b.col), rows,
                size, depth, fresh);
    }
}
#endif /* NRM_PLAIN */
/*
## 20  Exponential and logarithm

These functions have the same bits everywhere: of floats the *correctly rounded* ones (`make
exhaustive`), in double at most 2.5 units in the last place off.
*/
#define NRM_BY_TYPE(as_double, as_float) (sizeof(nrm_acc) == 8 ? (as_double) : (as_float))
#define NRM_DIGITS NRM_BY_TYPE(52, 23)
#define NRM_BIAS NRM_BY_TYPE(1023, 127)
#define NRM_WHOLE ((nrm_acc)NRM_BY_TYPE(4503599627370496, 8388608))
#define NRM_LN2_HEAD ((nrm_acc)0.69314575195312500) /* 16 bits */
#define NRM_LN2_TAIL ((nrm_acc)1.4286068203094172e-6)
#define NRM_OVER(n) ((nrm_acc)(1.0 / (n)))
#define NRM_LINE (64 / sizeof(nrm_acc))

#define NRM_UP_TO(n, j, ...) \
    if ((n) == NRM_SOME) \
        for (j = 0; j < NRM_SOME; j++) __VA_ARGS__; \
    else \
        for (j = 0; j < (n); j++) __VA_ARGS__

/* Bits of numbers, and back; a if a test holds, or 0. */
#ifdef NRM_VEC_BYTES
#define NRM_NUMBERS(j, n, ...) \
    NRM_WIDTHS( \
        typedef nrm_acc nrmi_num __attribute__( \
            (vector_size(sizeof(nrmi_some)), aligned(__alignof__(nrm_acc)), may_alias)); \
        typedef __typeof__(*(nrmi_num *)0 < *(nrmi_num *)0) nrmi_int; \
        for (j = 0; j < (n); j += sizeof(nrmi_num) / sizeof(nrm_acc)) __VA_ARGS__)
#define NRM_BITS(a) ((nrmi_int)(a))
#define NRM_VALUE(i) ((nrmi_num)(i))
#define NRM_WHERE(test, a) NRM_VALUE((test) & NRM_BITS(a))
#else
#define NRM_NUMBERS(j, n, ...) for (j = 0; j < (n); j++) __VA_ARGS__
#define NRM_BITS(a) nrmi_to_bits(a)
#define NRM_VALUE(i) nrmi_from_bits(i)
#define NRM_WHERE(test, a) ((test) ? (a) : 0)
typedef nrm_acc nrmi_num;
typedef uint64_t nrmi_int;
static uint64_t nrmi_to_bits(nrm_acc a)
{
    nrmi_bits b;
    b.value = a;
    return sizeof a == 8 ? b.u64 : b.u32;
}
static NRM_APART nrm_acc nrmi_from_bits(uint64_t i)
{
    nrmi_bits b;
    if (sizeof b.value == 8) b.u64 = i;
    else b.u32 = (uint32_t)i;
    return b.value;
}
#endif

/*
Split off a power of two:

    k = ⌈x/ln2 − ½⌉             [EXP.1]
    t = x − k·ln2, |t| ≤ ½·ln2  [EXP.2]

EXP.1 adds so large a number that the sum is rounded to an integer with the bits of k. The high part
of ln2 times k is exact. The rest is Lambert's continued fraction of tanh z, cut after six levels;
s and c are polynomials of u = t², and e^t is off by less than 2⁻⁶²:

    s/c = z/(1 + z²/(3 + z²/(5 + z²/(7 + z²/(9 + z²/11))))), z = t/2  [EXP.3]
    e^x = p·(1 + 2·s/(c − s)), p = 2^k                                [EXP.4]
    tanh(x/2) = q/(q + 2·(c − s)), q = (p + 1)·s + (p − 1)·c          [EXP.5]
    sigmoid(x) = p·(c + s)/((c − s) + p·(c + s))                      [EXP.6]

The sigmoid of a tiny x may be so near the middle of two floats that only a smaller s shows
the side.
*/
NRM_INLINE void nrmi_curve_of(NRM_BYTES nrm_acc *v, int curve, size_t n)
{
    const nrm_acc magic = NRM_WHOLE + NRM_WHOLE / 2 + NRM_BIAS, by = curve == NRM_TANH ? -2 : 1;
    const nrm_acc least = curve == NRM_TANH ? -20 : NRM_BY_TYPE(-709, -88);
    const nrm_acc most = curve == NRMI_EXP ? NRM_BY_TYPE(710, 89) : 40;
    const nrm_acc pull = sizeof(nrm_real) < sizeof(nrm_acc) ? NRM_OVER(268435456.0) : 0;
    size_t j;
    for (j = 0; j < NRM_SOME; j++) v[j] = v[j] < least ? least : v[j];
    for (j = 0; j < NRM_SOME; j++) v[j] = v[j] > most ? most : v[j];
    NRM_NUMBERS(j, n, {
        const nrmi_num zero = {0}, g = *(nrmi_num *)(v + j) * by;
        const nrmi_int sign = NRM_BITS(g) & NRM_BITS(zero * by);
        const nrmi_num x = NRM_VALUE(NRM_BITS(g) ^ sign);
        const nrmi_int sum = NRM_BITS(x * (nrm_acc)1.4426950408889634 + magic); /* EXP.1 */
        const nrmi_num k = NRM_VALUE(sum) - magic, p = NRM_VALUE(sum << NRM_DIGITS);
        const nrmi_num t = (x - k * NRM_LN2_HEAD) - k * NRM_LN2_TAIL, u = t * t; /* EXP.2 */
        const nrmi_num c = 1 + u * (5 * NRM_OVER(44) + u * (NRM_OVER(792) + u * NRM_OVER(665280)));
        const nrmi_num h = t / 2;
        nrmi_num s = h + h * (u * (NRM_OVER(33) + u * NRM_OVER(7920))), y; /* EXP.3 */
        if (curve == NRMI_EXP)
            y = p * (1 + 2 * s / (c - s)); /* EXP.4 */
        else if (curve == NRM_TANH) {
            y = (p + 1) * s + (p - 1) * c;
            y = NRM_VALUE(NRM_BITS(-y / (y + 2 * (c - s))) ^ sign); /* EXP.5 */
        } else {
            s -= NRM_WHERE(x * x < NRM_OVER(4294967296.0), s * pull);
            y = p * (c + s);
            y = y / ((c - s) + y); /* EXP.6 */
        }
        *(nrmi_num *)(v + j) = y;
    })
}

NRM_KERNEL(nrmi_curve, (y, x, curve, n), nrm_real *y, const nrm_real *x, int curve, size_t n)
{
    nrm_acc v[NRM_SOME] = {0};
    size_t i, j, some;
    for (i = 0; i < n; i += some) {
        some = nrmi_least(n - i, NRM_SOME);
        NRM_UP_TO(some, j, v[j] = (nrm_acc)x[i + j]);
        nrmi_curve_of(NRM_PASS_ON v, curve, some);
        NRM_UP_TO(some, j, y[i + j] = (nrm_real)v[j]);
    }
}

NRM_INLINE nrm_acc nrmi_largest(const nrm_real *z, size_t n)
{
    nrm_real top[NRM_SOME];
    size_t i, j;
    for (j = 0; j < NRM_SOME; j++) top[j] = z[0];
    for (i = 0; i < n; i += NRM_SOME)
        NRM_UP_TO(nrmi_least(n - i, NRM_SOME), j, top[j] = z[i + j] > top[j] ? z[i + j] : top[j]);
    for (j = 0, i = NRM_SOME / 2; j < i; j++) top[j] = top[j + i] > top[j] ? top[j + i] : top[j];
    for (j = 0, i = i / 2; j < i; j++) top[j] = top[j + i] > top[j] ? top[j + i] : top[j];
    for (j = 1; j < i; j++) top[0] = top[j] > top[0] ? top[j] : top[0];
    return (nrm_acc)top[0];
}

NRM_KERNEL(nrmi_softmax, (p, h, rest, z, rows, n), nrm_real *p, nrm_acc *h, nrm_acc *rest,
    const nrm_real *z, size_t rows, size_t n)
{
    nrm_acc v[NRM_SOME] = {0};
    size_t row, i, j, k, some, end;
    for (row = 0; row < rows; row++) h[row] = nrmi_largest(z + row * n, n);
    for (row = 0; row < rows; row++) {
        nrm_acc sum[NRM_LINE] = {0}, ones[NRM_LINE] = {0};
        for (i = row * n, end = i + n; i < end; i += some) {
            some = nrmi_least(end - i, NRM_SOME);
            NRM_UP_TO(some, j, v[j] = (nrm_acc)z[i + j]);
            for (j = 0; j < NRM_SOME; j++) v[j] -= h[row];
            for (j = some; j % NRM_LINE > 0; j++) v[j] = -1000; /* e^v is 0 */
            nrmi_curve_of(NRM_PASS_ON v, NRMI_EXP, j);
            for (k = 0; k < some; k += NRM_LINE)
                NRM_NUMBERS(j, NRM_LINE, {
                    const nrmi_num e = *(nrmi_num *)(v + k + j), one = NRM_WHERE(e == 1, e);
                    *(nrmi_num *)(sum + j) += e - one;
                    *(nrmi_num *)(ones + j) += one;
                })
            if (p != NULL) {
                NRM_UP_TO(some, j, p[i + j] = (nrm_real)v[j]);
            }
        }
        for (j = 1; j < NRM_LINE; j++) sum[0] += sum[j], ones[0] += ones[j];
        rest[row] = sum[0] + (ones[0] - 1);
        sum[0] = 1 / (1 + rest[row]);
        for (i = end - n; i < end && p != NULL; i += some) {
            some = nrmi_least(end - i, NRM_SOME);
            NRM_UP_TO(some, j, p[i + j] = (nrm_real)((nrm_acc)p[i + j] * sum[0]));
        }
    }
}

/*
For the logarithm x = 2^e·m with m between √½ and √2, and |s| < 0.172:

    s = (m − 1)/(m + 1)                      [LOG.1]
    ln m = 2·s·(1 + s²/3 + s⁴/5 + s⁶/7 + …)  [LOG.2]
    ln x = e·ln2 + ln m                      [LOG.3]

If LOG.3 of a float is the middle of two floats, what it has lost decides.
*/
NRM_KERNEL(nrmi_log, (v, n), nrm_acc *v, size_t n)
{
    size_t j;
    NRM_NUMBERS(j, n, {
        const nrmi_num x = *(nrmi_num *)(v + j), zero = {0};
        const nrmi_int to_one = NRM_BITS(zero + 1) - NRM_BITS(zero + (nrm_acc)0.70710678118654752);
        /* e + NRM_BIAS, by halves, which do not overflow */
        const nrmi_int power = ((NRM_BITS(x) >> 1) + (to_one >> 1)) >> (NRM_DIGITS - 1);
        const nrmi_num e = NRM_VALUE(power + NRM_BITS(zero + NRM_WHOLE)) - (NRM_WHOLE + NRM_BIAS);
        const nrmi_num m = NRM_VALUE(NRM_BITS(x) - ((power - NRM_BIAS) << NRM_DIGITS));
        const nrmi_num s = (m - 1) / (m + 1), w = s * s; /* LOG.1 */
        nrmi_num y = NRM_OVER(17) + w * (NRM_OVER(19) + w * NRM_OVER(21)), low;
        y = NRM_OVER(11) + w * (NRM_OVER(13) + w * (NRM_OVER(15) + w * y));
        y = NRM_OVER(5) + w * (NRM_OVER(7) + w * (NRM_OVER(9) + w * y));
        low = e * NRM_LN2_TAIL + 2 * (s + s * (w * (NRM_OVER(3) + w * y))); /* LOG.2 */
        y = e * NRM_LN2_HEAD + low; /* LOG.3 */
        low = 64 * ((e * NRM_LN2_HEAD - y) + low);
        if (sizeof(nrm_real) < sizeof(nrm_acc))
            y += NRM_WHERE((((NRM_BITS(y) - 0x10000000) | NRM_BITS(x)) & 0x1fffffff) == 0, low);
        *(nrmi_num *)(v + j) = y;
    })
}

/*
## 21  Random numbers

PCG32 (O'Neill 2014). Each odd increment c is a sequence of its own, a *stream*: with one each for
weights, noise and order of the data, drawing from one does not shift another.

    s′ = a·s + c mod 2⁶⁴, a = 6364136223846793005     [RNG.1]
    u = rotate(⌊(s ⊕ ⌊s/2¹⁸⌋)/2²⁷⌋ mod 2³², ⌊s/2⁵⁹⌋)  [RNG.2]

RNG.2 takes the old s.
*/
static inline uint32_t nrmi_next(nrm_rng *rng)
{
    const uint64_t s = rng->state;
    const uint32_t x = (uint32_t)(((s >> 18) ^ s) >> 27), turn = (uint32_t)(s >> 59);
    rng->state = s * 6364136223846793005u + rng->increment; /* RNG.1 */
    return (x >> turn) | (x << ((32 - turn) & 31)); /* RNG.2 */
}

NRM_DEF uint32_t nrm_rng_u32(nrm_rng *rng)
{
    return nrmi_next(rng);
}

NRM_DEF void nrm_rng_seed(nrm_rng *rng, uint64_t seed, uint64_t stream)
{
    const nrm_rng fresh = {seed + stream * 2 + 1, stream * 2 + 1, 0, 0};
    *rng = fresh;
    (void)nrmi_next(rng);
}

/*
A uniform number is u, in a float its higher 24 bits. For an integer below n, u mod n alone would
favour small values where n does not divide 2³². So the lowest 2³² mod n values of u are left out.

    U = u/2³² (double), ⌊u/2⁸⌋/2²⁴ (float)    [RNG.3]
    u mod n, drawn again while u < 2³² mod n  [RNG.4]
*/
NRM_DEF void nrm_rng_uniform(nrm_rng *rng, nrm_real *v, size_t n)
{
    const int lost = sizeof(nrm_real) == sizeof(float) ? 8 : 0;
    size_t i;
    for (i = 0; i < n; i++)
        v[i] = (nrm_real)(nrmi_next(rng) >> lost) / (nrm_real)(4294967296u >> lost); /* RNG.3 */
}

NRM_DEF uint32_t nrm_rng_below(nrm_rng *rng, uint32_t n)
{
    uint32_t u, least;
    if (n == 0) return 0;
    least = (0u - n) % n; /* 2^32 mod n */
    do u = nrmi_next(rng);
    while (u < least);
    return u % n; /* RNG.4 */
}

/*
Normal numbers come in pairs by Marsaglia's polar method: a point of the unit disc moves outwards.

    w = a² + b² < 1, a and b uniform in ±1        [RNG.5]
    z₁ = a·√(−2·(ln w)/w), z₂ = b·√(−2·(ln w)/w)  [RNG.6]
*/
static inline nrm_acc nrmi_symmetric(nrm_rng *rng)
{
    return (nrm_acc)nrmi_next(rng) / (nrm_acc)2147483648u - 1;
}

NRM_DEF void nrm_rng_normal(nrm_rng *rng, nrm_real *v, size_t n)
{
    nrm_acc a[NRM_SOME] = {0}, b[NRM_SOME] = {0}, w[NRM_SOME] = {0}, ln[NRM_SOME] = {0};
    size_t i = 0, j, k;
    if (rng->has_spare && n > 0) v[i++] = (nrm_real)rng->spare, rng->has_spare = 0;
    while (i < n) {
        const size_t pairs = nrmi_least((n - i) / 2 + (n - i) % 2, NRM_SOME);
        for (k = 0; k < pairs; k += (w[k] < 1) & (w[k] > 0)) {
            a[k] = nrmi_symmetric(rng), b[k] = nrmi_symmetric(rng);
            w[k] = a[k] * a[k] + b[k] * b[k]; /* RNG.5 */
        }
        for (k = 0; k < NRM_SOME; k++) ln[k] = w[k]; /* no logarithm of a logarithm */
        nrmi_log(ln, pairs);
        for (j = 0; j < pairs; j++) {
            const nrm_acc stretch = NRM_SQRT(-2 * ln[j] / w[j]);
            v[i++] = (nrm_real)(a[j] * stretch); /* RNG.6 */
            rng->spare = b[j] * stretch;
            rng->has_spare = i == n;
            if (i < n) v[i++] = (nrm_real)rng->spare;
        }
    }
}

/* Fisher and Yates: from the end, swap each place with one not yet settled. */
NRM_DEF int nrm_rng_shuffle(nrm_rng *rng, size_t *index, size_t n)
{
    size_t i;
    if (n == 0) return NRM_OK;
    if (rng == NULL || index == NULL) return NRM_ENULL;
    if (n - 1 > 0xfffffffeu) return NRM_ESIZE;
    for (i = n - 1; i > 0; i--) {
        const size_t j = nrm_rng_below(rng, (uint32_t)i + 1), kept = index[i];
        index[i] = index[j];
        index[j] = kept;
    }
    return NRM_OK;
}
#if defined(__clang__)
#pragma STDC FP_CONTRACT DEFAULT
#ifdef NRM_PRECISE
#pragma float_control(pop)
#endif
#elif defined(__GNUC__)
#pragma GCC pop_options
#pragma GCC diagnostic pop
#elif defined(_MSC_VER)
#pragma fp_contract(on)
#endif
#endif /* NORMLAYERS_IMPLEMENTATION */
/*
## 22  History, references, licences

### History

- 0.2.0, new: two parts, `NRM_PLAIN`; `nrm_rows_*`, rows that lie apart and a residual;
  `nrm_rng_uniform`, `nrm_rng_normal`.
- 0.2.0, what left (formulas: docs/10_conventions.md): `unfold`, `convention_of`, `running_import`,
  `running_set` (ST.7), `layernorm_std` (LN.17, LN.18), `instancenorm` (group norm with G = C),
  `noise_forward`, `noise_backward`, `argmax`, `mlp_predict`, `mlp_reestimate`
  (`examples/lab/training.h`), `version` (`NRM_VERSION`), four checks, files (`examples/npz.h`).
- 0.2.0, refused now: `new_weight` 0 without `cumulative` in train mode; one value per group in
  group norm; `NRM_DOUBLE` with `NRM_ACC=float`; x87 floats, unless `NRM_ANY_FLOAT_EVAL`. A network
  checks all its layers before any of them works.
- 0.2.0, accepted now: ε = 0; dx NULL beside other outputs; y = x where nothing is saved; a
  predefined `NRM_DEF`; a global named `gamma` (gcc and clang need no math.h).
- 0.2.0, results: a cumulative average passes over a channel that is not finite. Backward passes
  keep the low part of a large mean with `NRM_ACC=float` or `NRM_DOUBLE`. In float exp, log, tanh
  and sigmoid are correctly rounded; other functions and random numbers have other last bits, and
  noise other draws. The loss of a row that the network is sure of keeps its digits.
- 0.1.0: the first.

### References, by equation

- BN.1 to BN.5, BN.9 (the factor), BN.12 to BN.19: Ioffe, Szegedy, "Batch Normalization", 2015.
  BR.1 to BR.3: Ioffe, "Batch Renormalization", 2017. NB.1 to NB.5, LP.2: Santurkar et al., "How
  Does Batch Normalization Help Optimization?", 2018, app. A.2, 3.3. ST.1 to ST.3: Chan, Golub,
  LeVeque, "Updating Formulae", 1979.
- LN.1 to LN.5, RNN.1 to RNN.3: Ba, Kiros, Hinton, "Layer Normalization", 2016. Statistics of each
  step: Cooijmans et al., "Recurrent Batch Normalization", 2016. RNN.6, RNN.11: Bengio, Simard,
  Frasconi, "Learning long-term dependencies", 1994.
- GN.1 to GN.3: Wu, He, "Group Normalization", 2018; G = C: Ulyanov et al., "Instance
  Normalization", 2016. RMS.1, RMS.2: Zhang, Sennrich, "Root Mean Square Layer Normalization", 2019.
  WN.2, WN.4, WN.6, WN.8: Salimans, Kingma, "Weight Normalization", 2016. WN.12: Kohler et al.,
  "Exponential convergence rates for Batch Normalization", 2018.
- MLP.5: He et al., "Delving Deep into Rectifiers", 2015. MLP.6: Glorot, Bengio, "Understanding the
  difficulty of training", 2010. OPT.1: Polyak, "Some methods of speeding up the convergence", 1964.
  OPT.3 to OPT.5: Kingma, Ba, "Adam", 2015.
- RNG.1, RNG.2: O'Neill, "PCG", 2014. RNG.5, RNG.6: Marsaglia, Bray, "A convenient method for
  generating normal variables", 1964. GC.3: Richardson, "Approximate Arithmetical Solution", 1911.

### Licences: take either

- Public domain (The Unlicense). This is free and unencumbered software released into the public
  domain. Anyone is free to copy, modify, publish, use, compile, sell, or distribute this software,
  either in source code form or as a compiled binary, for any purpose, commercial or non-commercial,
  and by any means. In jurisdictions that recognize copyright laws, the author or authors of this
  software dedicate any and all copyright interest in the software to the public domain. We make
  this dedication for the benefit of the public at large and to the detriment of our heirs and
  successors. We intend this dedication to be an overt act of relinquishment in perpetuity of all
  present and future rights to this software under copyright law.
- MIT No Attribution (MIT-0). Copyright 2026 the normlayers.h authors. Permission is hereby granted,
  free of charge, to any person obtaining a copy of this software and associated documentation files
  (the "Software"), to deal in the Software without restriction, including without limitation the
  rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the
  Software, and to permit persons to whom the Software is furnished to do so.

In either case THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED,
INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND
NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES
OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN
CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
*/
