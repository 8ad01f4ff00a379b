/* normlayers.h - v0.2.0 - normalization layers, derived - public domain or MIT-0, see the end */
/*
# normlayers.h

Batch norm, layer norm and their family, forward and backward, in one C file. Read it from top
to bottom: each formula is derived in the comment above the line that computes it, has a
tag such as BN.19, and is checked by a test of that name. A gradient checker for your own
layers, a recurrent layer and a small multilayer perceptron come along.

## Do this

Copy this file into your project. In exactly one of your C or C++ files define
`NORMLAYERS_IMPLEMENTATION` before `#include "normlayers.h"`; in all others just include it.
Then compile as always, C99 or C++11 or later: `cc app.c -lm`. A complete program:

```c
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"
#include <stdio.h>

int main(void)
{
    const nrm_real x[2][4] = {{1, 2, 3, 4}, {10, 20, 30, 40}};
    nrm_real y[2][4];
    nrm_acc mean[2], rstd[2]; // the backward pass needs them
    int rc = nrm_layernorm_forward(y[0], mean, rstd, x[0], NULL, NULL, NRM_EPS, 2, 4);
    if (rc != NRM_OK) {
        fprintf(stderr, "%s\n", nrm_strerror(rc));
        return 1;
    }
    for (int n = 0; n < 2; n++)
        printf("%7.4f %7.4f %7.4f %7.4f\n", (double)y[n][0], (double)y[n][1], (double)y[n][2],
               (double)y[n][3]);
    return 0; // both rows print -1.3416 -0.4472 0.4472 1.3416
}
```

## Contents

    declarations     settings, status codes, one block of prototypes per layer
    Part I           the layers; first, what they stand on
    ## 1  ## 2       Batch normalization; layer normalization
    ## 3  ## 4       Noisy batch norm; statistics that merge: synchronised, masked, virtual
    ## 5  ## 6       Batch renormalization; group, instance and RMS normalization
    ## 7  ## 8       Weight normalization and folding; Lp batch normalization
    ## 9  ## 10      Activations, softmax, cross-entropy, accuracy; the linear layer
    ## 11 to ## 13   A recurrent layer; the tiny multilayer perceptron; gradient checking
    Part II          the machine room, not needed to understand Part I
    ## 14 ## 15      Arguments and threads; the plain version of every primitive
    ## 16 to ## 18   Sums and means; sums down columns; affine maps, projections, masks
    ## 19 to ## 21   Products; exponential and logarithm; random numbers
    ## 22            History, references by equation, licences

This header does *not* allocate memory, print, touch files (`examples/npz.h` does), start
threads (unless `NRM_OPENMP` asks for them), keep global state, call `rand()`, or use the
locale. It has no automatic differentiation and no convolution (though batch norm takes the
layout of one). It does not guess: a wrong argument is refused with a named code.

## Options

Define them before the `#include`. *Everywhere* means: with the same value in every file
that includes the header, best on the compiler's command line.

    macro                       default     effect                                  where
    NORMLAYERS_IMPLEMENTATION   -           compile the functions here              one file only
    NRM_STATIC                  -           private `static inline` copy of all     any file
    NRM_DEF                     extern      what stands before each function:       any file
                                            dllexport, visibility, extern "C"
    NRM_DOUBLE                  -           nrm_real is double, names get _f64      everywhere
    NRM_ACC                     double      type of statistics: float or double     everywhere
    NRM_SQRT(a)                 sqrt        square root of an nrm_acc               one file only
    NRM_NO_LIBC                 -           include neither math.h nor string.h     one file only
    NRM_MEMCPY(to, from, n)     memcpy      copies n bytes                          one file only
    NRM_MEMSET(to, byte, n)     memset      fills n bytes                           one file only
    NRM_PLAIN                   -           plain primitives, ## 15: small, no SIMD one file only
    NRM_NO_VECTORS              -           no vector extensions                    one file only
    NRM_NO_DISPATCH             -           no choice of AVX2 or AVX-512, ## 16     one file only
    NRM_WIDTH                   1024        columns worked on together; 64 with     one file only
                                            NRM_NO_LIBC, 1 with NRM_PLAIN
    NRM_OPENMP                  -           share work, by OpenMP 3.0 or later      one file only
    NRM_GEMM                    -           cblas_sgemm or cblas_dgemm, see ## 19   one file only
    NRM_ANY_FLOAT_EVAL          -           allow x87 and others that compute in    one file only
                                            a wider type; bits then differ

With `NRM_NO_LIBC` you supply `NRM_SQRT`, `NRM_MEMCPY` and `NRM_MEMSET`; a freestanding
compiler itself wants memcpy, memmove and memset. MSVC needs `/utf-8` for the comments.
Files that disagree on `NRM_DOUBLE` or `NRM_ACC` fail to link, since the link names differ;
one program may use both precisions, in different files.

## Contracts

- All arrays are the caller's, dense and row-major. A shape such as `[N][C][S]` is written
  at each parameter. Sizes are `size_t`; a product that overflows is refused.
- Parameters come in one order: outputs (those saved for the backward pass last), inputs,
  saved values, parameters of the layer, scalars, sizes.
- Gradients of *inputs* are overwritten (`=`); dx may be NULL where the pass has another
  output. Gradients of *parameters* are accumulated (`+=`): set them to zero first. A
  network does that itself.
- A status is `NRM_OK` (0); negative, when the function refused and wrote nothing; or the
  positive `NRM_NONFINITE`, when it did its work but met a statistic, a loss or a gradient
  of the network that is not finite, or a NaN in a row to be ranked. Other functions pass
  NaN on. Three negative codes come after work: a gradient check that fails or does not
  settle has written its reports, and `NRM_ESYNC` leaves a network in the middle of a step.
- Outputs may not overlap inputs, except where a declaration says "may be": in place, the
  same pointer.
- `N = 0` returns `NRM_OK` and writes nothing, with three exceptions: cross entropy and
  accuracy (so `nrm_mlp_eval` too) write 0; a worker without examples gets the mean, rstd,
  running statistics and sums of ## 4; and in a network with `sync` it shares each step.
- In a forward pass a NaN or infinity spoils its channel (batch norm) or its row (layer
  norm), and nothing else; it never enters running statistics. Gradients of parameters are
  sums over rows, so there it reaches all of them.
- In float the error of a norm's result is bounded by 2·10⁻⁶ of the largest term before
  cancellation, for means of x up to 10⁶ times its spread and values up to about 10³⁷
  (docs/accuracy.md). The relative error is larger for dx with two values per group, which
  nearly cancels (5·10⁻³), and for a γ gradient: 3·10⁻⁶·|mean(dy)|/std(dy) if that ratio > 1.
- Rounding to nearest and no trapping exceptions are assumed, as C starts.
- Calls on different buffers may run at the same time; an `nrm_mlp`, `nrm_rng` or
  `nrm_running` belongs to one thread at a time. The deepest stack is 85 KB (110 KB with
  `NRM_DOUBLE`), and 125 KB (165 KB) in layer norm's backward pass of rows wider than 1024;
  it shrinks with `NRM_WIDTH`, which changes no result.
- ε ≥ 0 stands inside the square root (Lp batch norm, which has no root, adds it); with ε =
  0 a variance of 0 gives `NRM_NONFINITE`. A variance divides by the number of values, except
  for the stored one of batch norm (`biased`). Running statistics do not contain ε: use the
  same ε in training and inference.
- No parameter is called momentum: `new_weight` is the weight of the *new* value (PyTorch's
  momentum; 1 − momentum of Keras, Flax and ONNX, see docs/10_conventions.md).

## Notation

    N, C, S, D      examples in a batch, channels, positions per channel (1 if dense), features
    xᵢ, yᵢ          input and output; a hat, x̂ᵢ, is the normalized value
    μ, v, r         mean, variance (divided by the count), r = 1/√(v + ε)       mean, -, rstd
    γ, β, ε         scale, shift, the small constant inside the root            gamma, beta, eps
    ⟨a⟩             mean of a over whatever is being normalized together
    M               values that share one statistic in batch norm, N·S
    ~, E[a]         "is drawn from"; expectation
    U(a, b)         uniform between a and b; N(m, v): normal with mean m and VARIANCE v
    L, dx           the scalar loss; dx is short for ∂L/∂x, and so for every other letter
    g               ∂L/∂x̂, the gradient by the normalized value: γ·dy
    m, u            running mean and running variance of batch norm
    h               μ rounded to nrm_real: the point from which the code measures x
    δᵢⱼ, ∑ᵢ         1 if i = j, else 0; sum over i

Other letters are defined where they occur and hold for that section. An equation that ends
in `[BN.19]` is computed by the line of code that cites it; one in `(BN.17)` is a step of a
derivation, or a property.
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
#define NRM_EPS 1e-5     /* the usual epsilon */
#else
typedef float nrm_real; /* the type of all data and parameters */
#define NRM_EPS 1e-5f   /* the usual epsilon */
#endif
#ifdef NRM_ACC
typedef NRM_ACC nrm_acc; /* the type of statistics, sums and losses */
#else
typedef double nrm_acc; /* the type of statistics, sums and losses */
#endif

/* Compile-time checks: nrm_acc is float or double, and has at least the digits of nrm_real. */
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

/* Link names. A program that declares these functions for double and links a copy compiled for
   float would misread its arrays without a warning. So the names that the linker sees carry the
   types, unless these are the default ones: nrm_accuracy becomes nrm_accuracy_f64 with NRM_DOUBLE,
   and nrm_accuracy_f32_float with NRM_ACC=float. So do the structs: in C++ a name is one type. */
#if defined(NRM_DOUBLE) || defined(NRM_ACC)
#define NRM_LINK3(name, tag) name##tag
#define NRM_LINK2(name, tag) NRM_LINK3(name, tag)
#if defined(NRM_DOUBLE) && defined(NRM_ACC)
#define NRM_TAG NRM_LINK2(_f64_, NRM_ACC)
#elif defined(NRM_DOUBLE)
#define NRM_TAG _f64
#else
#define NRM_TAG NRM_LINK2(_f32_, NRM_ACC)
#endif
#define NRM_LINK(name) NRM_LINK2(name, NRM_TAG)
#define nrm_rng NRM_LINK(nrm_rng)
#define nrm_running NRM_LINK(nrm_running)
#define nrm_noise NRM_LINK(nrm_noise)
#define nrm_sync NRM_LINK(nrm_sync)
#define nrm_mlp_layer NRM_LINK(nrm_mlp_layer)
#define nrm_mlp_event NRM_LINK(nrm_mlp_event)
#define nrm_mlp_spec NRM_LINK(nrm_mlp_spec)
#define nrm_mlp_state NRM_LINK(nrm_mlp_state)
#define nrm_mlp NRM_LINK(nrm_mlp)
#define nrm_gradcheck_group NRM_LINK(nrm_gradcheck_group)
#define nrm_gradcheck_options NRM_LINK(nrm_gradcheck_options)
#define nrm_gradcheck_report NRM_LINK(nrm_gradcheck_report)
#define nrm_stats NRM_LINK(nrm_stats)
#define nrm_sums NRM_LINK(nrm_sums)
#define nrm_rnn NRM_LINK(nrm_rnn)
#define nrm_rnn_grads NRM_LINK(nrm_rnn_grads)
#define nrm_version NRM_LINK(nrm_version)
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
#define nrm_noise_forward NRM_LINK(nrm_noise_forward)
#define nrm_noise_backward NRM_LINK(nrm_noise_backward)
#define nrm_noisy_batchnorm_forward NRM_LINK(nrm_noisy_batchnorm_forward)
#define nrm_noisy_batchnorm_backward NRM_LINK(nrm_noisy_batchnorm_backward)
#define nrm_activation_forward NRM_LINK(nrm_activation_forward)
#define nrm_activation_backward NRM_LINK(nrm_activation_backward)
#define nrm_cross_entropy_forward NRM_LINK(nrm_cross_entropy_forward)
#define nrm_cross_entropy_backward NRM_LINK(nrm_cross_entropy_backward)
#define nrm_argmax NRM_LINK(nrm_argmax)
#define nrm_accuracy NRM_LINK(nrm_accuracy)
#define nrm_mlp_defaults NRM_LINK(nrm_mlp_defaults)
#define nrm_mlp_bytes NRM_LINK(nrm_mlp_bytes)
#define nrm_mlp_init NRM_LINK(nrm_mlp_init)
#define nrm_mlp_forward NRM_LINK(nrm_mlp_forward)
#define nrm_mlp_gradient NRM_LINK(nrm_mlp_gradient)
#define nrm_mlp_step NRM_LINK(nrm_mlp_step)
#define nrm_mlp_train_step NRM_LINK(nrm_mlp_train_step)
#define nrm_mlp_eval NRM_LINK(nrm_mlp_eval)
#define nrm_mlp_predict NRM_LINK(nrm_mlp_predict)
#define nrm_stats_update NRM_LINK(nrm_stats_update)
#define nrm_stats_merge NRM_LINK(nrm_stats_merge)
#define nrm_running_set NRM_LINK(nrm_running_set)
#define nrm_sync_batchnorm_forward NRM_LINK(nrm_sync_batchnorm_forward)
#define nrm_sync_batchnorm_sums NRM_LINK(nrm_sync_batchnorm_sums)
#define nrm_sync_batchnorm_backward NRM_LINK(nrm_sync_batchnorm_backward)
#define nrm_batchrenorm_forward NRM_LINK(nrm_batchrenorm_forward)
#define nrm_batchrenorm_backward NRM_LINK(nrm_batchrenorm_backward)
#define nrm_groupnorm_forward NRM_LINK(nrm_groupnorm_forward)
#define nrm_groupnorm_backward NRM_LINK(nrm_groupnorm_backward)
#define nrm_rmsnorm_forward NRM_LINK(nrm_rmsnorm_forward)
#define nrm_rmsnorm_backward NRM_LINK(nrm_rmsnorm_backward)
#define nrm_lp_batchnorm_forward NRM_LINK(nrm_lp_batchnorm_forward)
#define nrm_lp_batchnorm_backward NRM_LINK(nrm_lp_batchnorm_backward)
#define nrm_weightnorm_forward NRM_LINK(nrm_weightnorm_forward)
#define nrm_weightnorm_backward NRM_LINK(nrm_weightnorm_backward)
#define nrm_batchnorm_fold NRM_LINK(nrm_batchnorm_fold)
#define nrm_rnn_forward NRM_LINK(nrm_rnn_forward)
#define nrm_rnn_backward NRM_LINK(nrm_rnn_backward)
#define nrm_mlp_reestimate NRM_LINK(nrm_mlp_reestimate)
#define nrm_gradcheck NRM_LINK(nrm_gradcheck)
#endif

/* ---- status codes ---------------------------------------------------------------------------- */
/* One list: name, value, message. The enum and nrm_strerror are both made from it. */
#define NRM_STATUS_LIST(X)                                                                         \
    X(NRM_NONFINITE, 1, "done, but met a NaN or an infinity; no running statistic took it in")     \
    X(NRM_OK, 0, "success")                                                                        \
    X(NRM_ENULL, -1, "a required pointer is NULL")                                                 \
    X(NRM_ESIZE, -2, "a size is zero, or an index or count is out of range")                       \
    X(NRM_EOVERFLOW, -3, "the product of the sizes does not fit into size_t")                      \
    X(NRM_EALIAS, -4, "an output overlaps another buffer")                                         \
    X(NRM_EEPS, -5, "eps must be finite and not negative")                                         \
    X(NRM_EMODE, -6, "unknown mode, or a backward pass in infer mode")                             \
    X(NRM_EBATCH, -7, "one value per statistic: its variance is no estimate")                      \
    X(NRM_EWEIGHT, -8, "new_weight must lie in 0..1; 0 without cumulative would never learn: "     \
                       "pass NULL for running instead")                                            \
    X(NRM_ESTATS, -9, "running statistics hold a negative variance, a NaN or an infinity")         \
    X(NRM_ENOISE, -10, "noise parameters must be finite and not negative")                         \
    X(NRM_EKIND, -11, "unknown activation, norm, initialisation or optimizer")                     \
    X(NRM_ELABEL, -12, "a label lies outside 0..C-1")                                              \
    X(NRM_ERATE, -13, "a learning rate, tolerance or another setting is out of range")             \
    X(NRM_EBLOCK, -14, "the memory block is smaller than nrm_mlp_bytes asks")                      \
    X(NRM_EGRADIENT, -15, "a gradient is wrong: the report names the worst entry of its group")    \
    X(NRM_EUNSETTLED, -16, "a gradient could not be judged: the differences do not settle")        \
    X(NRM_ESYNC, -21, "the merge or add function of nrm_sync has failed")
#define NRM_STATUS_ENUM(name, value, message) name = value,
enum nrm_status { NRM_STATUS_LIST(NRM_STATUS_ENUM) };
NRM_DEF const char *nrm_version(void);        /* the version of the compiled code, "0.2.0" */
NRM_DEF const char *nrm_strerror(int status); /* the message; never NULL, even for unknown codes */

/* In the comments below, = means overwritten and += added to; "saved" is what the backward pass
   needs. gamma and beta may always be NULL, for 1 and 0; dgamma and dbeta too, if not wanted. An
   array without a shape has that of the pass before it, or of batch norm. */

/* ---- batch normalization --------------------------------------------------------------------- */
enum nrm_mode {
    NRM_TRAIN = 0,          /* statistics of this batch; running statistics are updated           */
    NRM_INFER = 1,          /* running statistics; no backward pass                               */
    NRM_FROZEN = 2          /* running statistics, taken as constants; gradients flow through     */
};
typedef struct nrm_running { /* running statistics of one batch norm layer */
    nrm_real *mean, *var;   /* [C] start at 0; [C] start at 1                                     */
    nrm_real new_weight;    /* weight of the new batch, above 0, at most 1; 0.1 is usual          */
    int cumulative;         /* non-zero: the plain average of all batches; new_weight is not used */
    int biased;             /* non-zero: store v as is; zero: store v·M/(M-1), as PyTorch does    */
    size_t batches;         /* how many batches have entered so far                               */
} nrm_running;

/* The tensor is [N][C][S]: S = 1 for a dense layer, S = H*W for images in NCHW order; in NHWC order
   they are the dense case with N*H*W rows. In train mode N*S is 2 or more, else NRM_EBATCH. */
NRM_DEF int nrm_batchnorm_forward(
    nrm_real *y,            /* [N][C][S] out, =; may be x in infer mode                           */
    nrm_acc *mean, nrm_acc *rstd,                  /* [C] out, saved; may be NULL in infer mode   */
    nrm_running *running,   /* in/out in train mode (NULL: not tracked), in otherwise             */
    const nrm_real *x, const nrm_real *gamma, const nrm_real *beta, /* [N][C][S]; [C], [C]        */
    int mode, nrm_real eps, size_t N, size_t C, size_t S);
NRM_DEF int nrm_batchnorm_backward(
    nrm_real *dx,           /* [N][C][S] out, =, or NULL if not wanted; may be dy                 */
    nrm_real *dgamma, nrm_real *dbeta,             /* [C] in/out, +=                              */
    const nrm_real *dy, const nrm_real *x,         /* [N][C][S] x: the forward pass's input       */
    const nrm_acc *mean, const nrm_acc *rstd,      /* [C] as saved                                */
    const nrm_real *gamma, int mode, size_t N, size_t C, size_t S); /* mode: the forward pass's   */

/* ---- layer normalization --------------------------------------------------------------------- */
NRM_DEF int nrm_layernorm_forward(
    nrm_real *y,            /* [N][D] out, =; may be x if mean and rstd are NULL                  */
    nrm_acc *mean, nrm_acc *rstd, /* [N] out, saved; both NULL if without a backward pass         */
    const nrm_real *x, const nrm_real *gamma, const nrm_real *beta, /* [N][D]; [D], [D]           */
    nrm_real eps, size_t N, size_t D);
NRM_DEF int nrm_layernorm_backward(
    nrm_real *dx,           /* [N][D] out, =, or NULL if not wanted; may be dy                    */
    nrm_real *dgamma, nrm_real *dbeta,             /* [D] in/out, +=                              */
    const nrm_real *dy, const nrm_real *x,         /* [N][D] x: the forward pass's input          */
    const nrm_acc *mean, const nrm_acc *rstd,      /* [N] as saved                                */
    const nrm_real *gamma, size_t N, size_t D);    /* [D]                                         */

/* ---- random numbers: PCG32 ------------------------------------------------------------------- */
typedef struct nrm_rng { /* copy it to fork or rewind a stream */
    uint64_t state, increment;
    nrm_acc spare;          /* normals come in pairs: the second one,                             */
    int has_spare;          /* if there is one                                                    */
} nrm_rng;
/* Any seed, any stream. A network draws from streams 0 to 4·layers - 1 of its seed: take others. */
NRM_DEF void nrm_rng_seed(nrm_rng *rng, uint64_t seed, uint64_t stream);
NRM_DEF uint32_t nrm_rng_u32(nrm_rng *rng);               /* all 2^32 values alike */
NRM_DEF uint32_t nrm_rng_below(nrm_rng *rng, uint32_t n); /* 0..n-1, unbiased; 0 if n is 0 */
NRM_DEF nrm_real nrm_rng_uniform(nrm_rng *rng);           /* in [0, 1) */
NRM_DEF nrm_real nrm_rng_normal(nrm_rng *rng);            /* mean 0, standard deviation 1 */
NRM_DEF int nrm_rng_shuffle(nrm_rng *rng, size_t *index, size_t n); /* [n] in/out, n < 2^32 */

/* ---- noisy batch normalization --------------------------------------------------------------- */
typedef struct nrm_noise { /* how the noise is drawn: equations NB.1 to NB.4 */
    nrm_real mean_range;    /* n_μ: a unit's offset is centred somewhere in ±n_μ                  */
    nrm_real scale_max;     /* n_σ: a unit's scale is centred somewhere between 1 and n_σ         */
    nrm_real mean_jitter;   /* r_μ: half the width of the offsets' spread over the samples        */
    nrm_real scale_jitter;  /* r_σ: standard deviation of the scales over the samples             */
} nrm_noise;
NRM_DEF nrm_noise nrm_noise_paper(void); /* 0.5, 1.25, 0.1, 0.1: Santurkar et al., app. A.2 */
NRM_DEF int nrm_noise_forward(
    nrm_real *y, nrm_real *scale, /* [N][C][S] out, =; y may be x; scale: the factors, saved      */
    const nrm_real *x, const nrm_noise *noise, nrm_rng *rng, size_t N, size_t C, size_t S);
NRM_DEF int nrm_noise_backward( /* count: N*C*S; dx, dy, scale: [count] */
    nrm_real *dx, const nrm_real *dy, const nrm_real *scale, size_t count); /* =; may be dy       */

/* Batch norm, then noise in train mode; in the other modes batch norm alone, y may be x in infer
   mode, and scale, noise and rng are not used. */
NRM_DEF int nrm_noisy_batchnorm_forward(
    nrm_real *y, nrm_real *scale, /* [N][C][S] out, =; scale: saved in train mode                 */
    nrm_acc *mean, nrm_acc *rstd, nrm_running *running, /* as in batch norm                       */
    const nrm_real *x, const nrm_real *gamma, const nrm_real *beta,
    const nrm_noise *noise, nrm_rng *rng, int mode, nrm_real eps, size_t N, size_t C, size_t S);
NRM_DEF int nrm_noisy_batchnorm_backward(
    nrm_real *dx, nrm_real *dgamma, nrm_real *dbeta, const nrm_real *dy, /* as in batch norm      */
    const nrm_real *scale, const nrm_real *x, const nrm_acc *mean, /* scale: as saved             */
    const nrm_acc *rstd, const nrm_real *gamma, int mode, size_t N, size_t C, size_t S);

/* ---- statistics that merge; synchronised and masked batch norm ------------------------------- */
typedef struct nrm_stats { /* of one channel; all zero means: of no values yet */
    nrm_acc count, mean, m2; /* how many, their mean, the sum of squared deviations from it       */
} nrm_stats;
typedef struct nrm_sums { /* of one channel: what a backward pass needs from all workers */
    nrm_acc dy, dy_xhat;    /* sum of dy, sum of dy times normalized x: add these up              */
} nrm_sums;

/* Adds the values of a batch to stats [C]. In the functions that take one, mask [N][S] says which
   positions count: where it is 0, x and dy are not read, and y and dx become 0. NULL: all count. */
NRM_DEF int nrm_stats_update(nrm_stats *stats /* [C] in/out */, const nrm_real *x /* [N][C][S] */,
                             const unsigned char *mask, size_t N, size_t C, size_t S);
/* Merges `from` into `into`. A different order of merging may change the last bits. */
NRM_DEF int nrm_stats_merge(nrm_stats *into /* [C] in/out */, const nrm_stats *from, size_t C);
/* Running statistics become those of all values that stats has seen, and count as one batch. */
NRM_DEF int nrm_running_set(nrm_running *running, const nrm_stats *stats /* [C] */, size_t C);

/* Batch norm in train mode, with statistics that may include more than this batch: those of all
   workers or micro-batches, merged. With N = 0 there is no y; mean, rstd and running become what
   they become on the other workers. */
NRM_DEF int nrm_sync_batchnorm_forward(
    nrm_real *y,            /* [N][C][S] out, =                                                   */
    nrm_acc *mean, nrm_acc *rstd, nrm_running *running, /* [C] out, saved; in/out, may be NULL    */
    const nrm_real *x, const unsigned char *mask, const nrm_stats *stats, /* stats: [C]           */
    const nrm_real *gamma, const nrm_real *beta, nrm_real eps, size_t N, size_t C, size_t S);
/* First half of the backward pass: this batch's part of the sums, and of the gradients. */
NRM_DEF int nrm_sync_batchnorm_sums(
    nrm_sums *sums,         /* [C] out, =; zeros if N = 0                                         */
    nrm_real *dgamma, nrm_real *dbeta,             /* [C] in/out, +=                              */
    const nrm_real *dy, const nrm_real *x, const unsigned char *mask,
    const nrm_acc *mean, const nrm_acc *rstd, size_t N, size_t C, size_t S);
/* Second half: the gradient of the input, from the counts in stats, as in the forward pass, and the
   sums, added up over all workers or micro-batches. */
NRM_DEF int nrm_sync_batchnorm_backward(
    nrm_real *dx,           /* [N][C][S] out, =; may be dy                                        */
    const nrm_real *dy, const nrm_real *x, const unsigned char *mask,
    const nrm_acc *mean, const nrm_acc *rstd, const nrm_real *gamma,
    const nrm_stats *stats, const nrm_sums *sums, size_t N, size_t C, size_t S); /* [C] both      */

/* ---- batch renormalization ------------------------------------------------------------------- */
/* Batch norm whose output in train mode is that of the running statistics, within limits. */
NRM_DEF int nrm_batchrenorm_forward(
    nrm_real *y,            /* [N][C][S] out, =; may be x in infer mode                           */
    nrm_acc *ratio, nrm_acc *offset, /* [C] out in train mode, saved: ρ of BR.1, d of BR.2        */
    nrm_acc *mean, nrm_acc *rstd, nrm_running *running, /* as in batch norm; running is required  */
    const nrm_real *x, const nrm_real *gamma, const nrm_real *beta,
    nrm_real r_max,         /* ρ stays within 1/r_max..r_max; 1: plain batch norm                 */
    nrm_real d_max,         /* d stays within ±d_max; 0: plain batch norm                         */
    int mode, nrm_real eps, size_t N, size_t C, size_t S);
NRM_DEF int nrm_batchrenorm_backward(
    nrm_real *dx, nrm_real *dgamma, nrm_real *dbeta, const nrm_real *dy, /* as in batch norm      */
    const nrm_real *x, const nrm_acc *ratio, const nrm_acc *offset, const nrm_acc *mean,
    const nrm_acc *rstd, const nrm_real *gamma, int mode, size_t N, size_t C, size_t S);

/* ---- group, instance and RMS normalization --------------------------------------------------- */
/* G groups of C/G channels, each with its own statistics in every example. G = 1 is layer norm over
   channels and positions, G = C instance norm. One value per group (C = G, S = 1): NRM_EBATCH. */
NRM_DEF int nrm_groupnorm_forward(
    nrm_real *y,            /* [N][C][S] out, =; may be x if mean and rstd are NULL               */
    nrm_acc *mean, nrm_acc *rstd, /* [N][G] out, saved; both NULL if without a backward pass      */
    const nrm_real *x, const nrm_real *gamma, const nrm_real *beta, /* [N][C][S]; [C], [C]        */
    nrm_real eps, size_t N, size_t C, size_t S, size_t G);
NRM_DEF int nrm_groupnorm_backward(
    nrm_real *dx, nrm_real *dgamma, nrm_real *dbeta, /* as in batch norm                          */
    const nrm_real *dy, const nrm_real *x, const nrm_acc *mean, const nrm_acc *rstd,
    const nrm_real *gamma, size_t N, size_t C, size_t S, size_t G);

NRM_DEF int nrm_rmsnorm_forward( /* layer norm without the mean */
    nrm_real *y,            /* [N][D] out, =; may be x if rstd is NULL                            */
    nrm_acc *rstd,          /* [N] out, saved; NULL if there will be no backward pass             */
    const nrm_real *x, const nrm_real *gamma, nrm_real eps, size_t N, size_t D); /* [N][D], [D]   */
NRM_DEF int nrm_rmsnorm_backward(
    nrm_real *dx, nrm_real *dgamma, const nrm_real *dy, /* as in layer norm                       */
    const nrm_real *x, const nrm_acc *rstd, const nrm_real *gamma, size_t N, size_t D);

/* ---- weight normalization, folding ----------------------------------------------------------- */
NRM_DEF int nrm_weightnorm_forward( /* W = g·v/|v|, column by column: use W in the linear layer */
    nrm_real *W,            /* [in][out] out, =                                                   */
    nrm_acc *norm,          /* [out] out, saved: |v|; NULL if there will be no backward pass      */
    const nrm_real *v, const nrm_real *g, size_t in, size_t out); /* [in][out]; [out], NULL: 1    */
NRM_DEF int nrm_weightnorm_backward(
    nrm_real *dv, nrm_real *dg, /* [in][out], [out] in/out, +=, or NULL if not wanted             */
    const nrm_real *dW,     /* [in][out] from the linear layer                                    */
    const nrm_real *v, const nrm_acc *norm, const nrm_real *g, size_t in, size_t out);

/* Batch norm with running statistics, folded into the weights before it: W' and b' of FOLD.1 and
   FOLD.2. The weights are [outer][C][inner], with C the outputs: [in][out] as here is outer = in,
   inner = 1; [out][in], and convolutions [out][in][h][w], are outer = 1, inner = all the rest. */
NRM_DEF int nrm_batchnorm_fold(
    nrm_real *W_out, nrm_real *b_out, /* [outer][C][inner], [C] out, =; may be W and b            */
    const nrm_real *W, const nrm_real *b,          /* [outer][C][inner]; [C], or NULL for 0       */
    const nrm_running *running, const nrm_real *gamma, const nrm_real *beta,
    nrm_real eps, size_t outer, size_t C, size_t inner);

/* ---- Lp batch normalization ------------------------------------------------------------------ */
enum nrm_lp { /* what batch norm divides by, with ε added to it: */
    NRM_L1 = 1, NRM_L2 = 2, NRM_LINF = 3, /* mean of |x|; root of the mean of x²; largest |x|     */
    NRM_CENTRED = 4         /* add it, and |x − μ| takes the place of |x|                         */
};
NRM_DEF int nrm_lp_batchnorm_forward(
    nrm_real *y,            /* [N][C][S] out, =; may be x in infer mode                           */
    nrm_acc *mean, nrm_acc *scale, /* [C] out, saved: μ, t of LP.2; may be NULL in infer mode     */
    nrm_running *running,   /* as in batch norm, but var holds the running t itself               */
    const nrm_real *x, const nrm_real *gamma, const nrm_real *beta,
    int p,                  /* NRM_L1, NRM_L2, NRM_LINF, or one of these + NRM_CENTRED            */
    int mode, nrm_real eps, size_t N, size_t C, size_t S);
NRM_DEF int nrm_lp_batchnorm_backward(
    nrm_real *dx, nrm_real *dgamma, nrm_real *dbeta, /* as in batch norm                          */
    const nrm_real *dy, const nrm_real *x, const nrm_acc *mean, const nrm_acc *scale,
    const nrm_real *gamma, int p, int mode, nrm_real eps, size_t N, size_t C, size_t S);

/* ---- activations ----------------------------------------------------------------------------- */
enum nrm_activation { NRM_IDENTITY = 0, NRM_RELU = 1, NRM_TANH = 2, NRM_SIGMOID = 3 };
NRM_DEF int nrm_activation_forward(
    nrm_real *y, const nrm_real *x, int activation, size_t count); /* [count]; y =; may be x      */
NRM_DEF int nrm_activation_backward( /* dx =; may be dy; y: the forward pass's output */
    nrm_real *dx, const nrm_real *dy, const nrm_real *y, int activation, size_t count);

/* ---- softmax cross-entropy with logits, mean over the batch ---------------------------------- */
NRM_DEF int nrm_cross_entropy_forward(
    nrm_acc *loss,          /* out: the mean loss in nats; 0 if N = 0                             */
    nrm_real *prob,         /* [N][C] out, saved: softmax(z); may be logits; or NULL              */
    const nrm_real *logits, const int *labels, size_t N, size_t C); /* [N][C]; [N] in 0..C-1      */
NRM_DEF int nrm_cross_entropy_backward(
    nrm_real *dlogits,      /* [N][C] out, =; may be prob                                         */
    const nrm_real *prob, const int *labels, size_t N, size_t C); /* prob as saved                */
/* The largest entry of each row, the first one of equals; 0 for a row that holds a NaN. */
NRM_DEF int nrm_argmax(int *labels /* [N] out */, const nrm_real *logits, size_t N, size_t C);
NRM_DEF int nrm_accuracy( /* the fraction of rows whose largest entry is the label's */
    nrm_acc *accuracy,      /* out: in 0..1; 0 if N = 0; a row that holds a NaN is wrong          */
    const nrm_real *logits, const int *labels, size_t N, size_t C); /* [N][C]; [N] in 0..C-1      */

/* ---- linear layer: y = xW + b ---------------------------------------------------------------- */
NRM_DEF int nrm_linear_forward(
    nrm_real *y, const nrm_real *x, const nrm_real *W, /* [N][out] out, =; [N][in], [in][out]     */
    const nrm_real *b, size_t N, size_t in, size_t out); /* [out], or NULL for none               */
NRM_DEF int nrm_linear_backward(
    nrm_real *dx,           /* [N][in] out, =, or NULL if not wanted                              */
    nrm_real *dW, nrm_real *db, /* [in][out], [out] in/out, +=, or NULL if not wanted             */
    const nrm_real *dy, const nrm_real *x, const nrm_real *W, /* dy: [N][out]                     */
    size_t N, size_t in, size_t out);              /* x may be NULL if dW is, W if dx is          */

/* ---- a recurrent layer ----------------------------------------------------------------------- */
typedef struct nrm_rnn { /* h[t+1] = f(norm(x[t]·Wx + h[t]·Wh)·gamma + beta), and its sizes */
    size_t T, N, in, H;     /* steps, sequences side by side, inputs, units; T = 0: like N = 0    */
    int norm, activation;   /* NRM_NO_NORM, NRM_LAYER_NORM or NRM_BATCH_NORM; f                   */
    nrm_real eps;           /* not used without a norm                                            */
    const nrm_real *Wx, *Wh;                       /* [in][H], [H][H]                             */
    const nrm_real *gamma, *beta; /* [H]; without a norm gamma is not used, beta is the bias      */
    nrm_running *running;   /* [T] batch norm only: one for each step; may be NULL in train mode.
                               Else NRM_ESIZE: no batch at this step, but some at the first       */
} nrm_rnn;
typedef struct nrm_rnn_grads { /* what backward adds to, of the same shapes; each may be NULL */
    nrm_real *dWx, *dWh, *dgamma, *dbeta;          /* dgamma is not used without a norm           */
} nrm_rnn_grads;

NRM_DEF int nrm_rnn_forward(
    nrm_real *h,            /* [T+1][N][H] h[0]: in, the state to start from; the rest: out       */
    nrm_real *a,            /* [T][N][H] out, saved: the summed inputs                            */
    nrm_acc *mean, nrm_acc *rstd, /* [T][N] (layer norm) or [T][H] (batch norm) out, saved; both
                               may be NULL without a norm and in infer mode                       */
    const nrm_real *x, const nrm_rnn *rnn, int mode); /* x: [T][N][in]                            */
NRM_DEF int nrm_rnn_backward(
    nrm_real *dh,           /* [T+1][N][H] in/out: in, the gradient by each h alone; out, with what
                               comes through the later ones; dh[0]: by the state to start from    */
    nrm_real *dx,           /* [T][N][in] out, =, or NULL if not wanted                           */
    const nrm_rnn_grads *grads,                    /* in/out, +=, or NULL if not wanted           */
    nrm_real *da,           /* [T][N][H] out, =: the gradient by the summed inputs                */
    const nrm_real *h, const nrm_real *a,          /* as saved; a, mean, rstd: only with a norm   */
    const nrm_acc *mean, const nrm_acc *rstd, const nrm_real *x, /* x may be NULL if dWx is       */
    const nrm_rnn *rnn, int mode);                 /* the forward pass's mode: train or frozen    */

/* ---- the tiny multilayer perceptron ---------------------------------------------------------- */
enum nrm_norm {
    NRM_NO_NORM = 0, NRM_BATCH_NORM = 1, NRM_LAYER_NORM = 2, NRM_NOISY_BATCH_NORM = 3,
    NRM_GROUP_NORM = 4, NRM_RMS_NORM = 5, NRM_BATCH_RENORM = 6, NRM_LP_BATCH_NORM = 7
};
enum nrm_init {
    NRM_INIT_HE = 0, NRM_INIT_XAVIER = 1, /* W ~ N(0, 2/in); W ~ U(±√(6/(in+out))); b = 0         */
    NRM_INIT_GAUSSIAN = 2,  /* W ~ N(0, init_std²), b = 0                                         */
    NRM_INIT_FAN_IN = 3     /* W, b ~ U(±1/√in): what PyTorch's Linear does by default            */
};
enum nrm_gamma { NRM_GAMMA_ONE = 0, NRM_GAMMA_UNIFORM = 1 /* γ ~ U(0,1) */ };
enum nrm_optimizer { NRM_SGD = 0, NRM_ADAM = 1 };
enum nrm_place { NRM_AT_LINEAR = 0, NRM_AT_NORM = 1, NRM_AT_ACTIVATION = 2 };

typedef struct nrm_mlp_layer { /* one layer; all zero but width: linear, no norm, no bias */
    size_t width;           /* outputs of this layer                                              */
    int activation, norm;   /* NRM_RELU, ...: enum nrm_activation; NRM_BATCH_NORM, ...: nrm_norm  */
    int norm_after;         /* 0: linear, norm, activation; 1: linear, activation, norm           */
    int bias;               /* 1: the linear part has a bias; see MLP.3 for when it is redundant  */
    size_t groups;          /* of NRM_GROUP_NORM: a divisor of width, less than width             */
    int p;                  /* of NRM_LP_BATCH_NORM: NRM_L1, ..., enum nrm_lp                     */
} nrm_mlp_layer;
typedef struct nrm_mlp_event { /* what a probe is shown */
    size_t layer;           /* 0 is the first hidden layer                                        */
    int place;              /* NRM_AT_LINEAR, NRM_AT_NORM, NRM_AT_ACTIVATION: the output of that  */
    int gradient;           /* 0: the value itself, in the forward pass; 1: its gradient          */
    const nrm_real *data;   /* [rows][cols], valid during the call only                           */
    size_t rows, cols;
} nrm_mlp_event;
typedef void nrm_mlp_probe(void *context, const nrm_mlp_event *event);

/* Training on several workers: each has its own copy of the network and calls the same functions in
   the same order, with its part of the batch. These two functions are yours; they return 0, or not
   if they have failed. add NULL: no other workers. merge NULL: batch norm uses each worker's own
   statistics; else those of ## 4. A worker may have no examples; if none has, the gradient is 0. */
typedef struct nrm_sync { /* both replace mine, [n] in/out, by everyone's, in order of workers: */
    int (*add)(void *context, nrm_acc *sums, size_t n); /* added                                  */
    int (*merge)(void *context, nrm_stats *stats, size_t n); /* merged by nrm_stats_merge         */
    void *context;          /* handed to both                                                     */
} nrm_sync;

typedef struct nrm_mlp_spec { /* start from nrm_mlp_defaults(); set the first four */
    size_t inputs, layers;  /* features of one example; layers, the output layer included         */
    const nrm_mlp_layer *layer;                    /* [layers]; read by init only                 */
    size_t max_batch;       /* the largest N that one call will see                               */
    uint64_t seed;          /* of weights and noise                                               */
    int init;               /* how W starts: enum nrm_init                                        */
    nrm_real init_std;      /* of NRM_INIT_GAUSSIAN                                               */
    int gamma_init;         /* how γ starts: enum nrm_gamma; β starts at 0                        */
    nrm_real eps, new_weight;                      /* of all norms; of all running statistics,    */
    int cumulative, biased; /* as these are                                                       */
    nrm_noise noise;        /* of noisy batch norm                                                */
    nrm_real r_max, d_max;  /* of batch renorm; to be raised while training: net->spec.r_max      */
    nrm_sync sync;          /* of training on several workers                                     */
    int optimizer;          /* NRM_SGD or NRM_ADAM                                                */
    nrm_real lr;            /* learning rate: 0.1 suits SGD, 1e-3 Adam                            */
    nrm_real heavy_ball, beta1, beta2; /* kept of the last step; Adam: of averages; 0 <= . < 1    */
    nrm_real adam_eps;      /* Adam: added to the root                                            */
} nrm_mlp_spec;
typedef struct nrm_mlp_state { /* one layer's arrays; they point into the block */
    nrm_mlp_layer shape;
    size_t in;              /* inputs of this layer                                               */
    nrm_real *W, *b, *gamma, *beta;                /* [in][width], then [width]; NULL if absent   */
    nrm_real *dW, *db, *dgamma, *dbeta;            /* their gradients                             */
    nrm_real *linear_out, *norm_out, *act_out;     /* [max_batch][width]; absent stages share;    */
    nrm_real *out;          /* the last of the three                                              */
    nrm_acc *mean, *rstd;   /* saved statistics                                                   */
    nrm_real *scale;        /* [max_batch][width] noise factors, or NULL                          */
    nrm_acc *ratio, *offset;                       /* [width] of batch renorm, or NULL            */
    nrm_running running;    /* of batch norm                                                      */
    nrm_stats *stats;       /* [width] of batch norm: merged statistics                           */
    nrm_sums *sums;         /* [width] with sync: sums of all workers                             */
} nrm_mlp_state;

typedef struct nrm_mlp { /* change spec.lr, params, probe, and grads before a step; read all */
    nrm_mlp_spec spec;      /* spec.layer is NULL here: see state                                 */
    nrm_mlp_state *state;   /* [layers]                                                           */
    size_t n_params;        /* all parameters lie in one array,                                   */
    nrm_real *params, *grads; /* [n_params] each, layer by layer: W, b, gamma, beta               */
    nrm_real *moment1, *moment2; /* [n_params] the optimizer's, NULL if it has none               */
    nrm_real *logits, *prob;                       /* [max_batch][classes]                        */
    nrm_real *work[2];      /* [max_batch][widest] gradients on their way back                    */
    nrm_acc *total;         /* [n_params + 1] with sync: what is added up                         */
    nrm_rng rng;            /* the noise                                                          */
    size_t steps;           /* optimizer steps so far                                             */
    nrm_acc beta1_power, beta2_power;              /* beta1^steps, beta2^steps                    */
    nrm_mlp_probe *probe;   /* called at every place that a layer has, if not NULL                */
    void *probe_context;
} nrm_mlp;

NRM_DEF nrm_mlp_spec nrm_mlp_defaults(void);  /* He, eps 1e-5, new_weight 0.1, SGD with lr 0.1 */
NRM_DEF size_t nrm_mlp_bytes(const nrm_mlp_spec *spec); /* size of the block; 0 if spec is bad, and
                                                           nrm_mlp_init then says what is wrong   */
/* The block: at least nrm_mlp_bytes(spec), any alignment; yours to free, not to move, as it points
   into itself. *net is the network, inside the block. */
NRM_DEF int nrm_mlp_init(nrm_mlp **net, void *block, size_t bytes, const nrm_mlp_spec *spec);

/* Forward pass of x [N][inputs] to net->logits [N][classes]; train mode updates running statistics.
   N is at most max_batch (else NRM_ESIZE), here, in gradient and train_step; others take any N. */
NRM_DEF int nrm_mlp_forward(nrm_mlp *net, const nrm_real *x, size_t N, int mode);
/* Loss and net->grads (overwritten) at the present parameters, in train or frozen mode. Parameters,
   running statistics and the noise stream stay as they are. loss may be NULL, here and below. */
NRM_DEF int nrm_mlp_gradient(nrm_mlp *net, nrm_acc *loss, const nrm_real *x, const int *labels,
                             size_t N, int mode);
NRM_DEF int nrm_mlp_step(nrm_mlp *net); /* the optimizer's step down net->grads */
/* Gradient in train mode, running statistics, step. On NRM_NONFINITE there was no step. */
NRM_DEF int nrm_mlp_train_step(nrm_mlp *net, nrm_acc *loss, const nrm_real *x, const int *labels,
                               size_t N);
/* Mean loss and accuracy of any number of examples in infer mode; either result may be NULL. */
NRM_DEF int nrm_mlp_eval(nrm_mlp *net, nrm_acc *loss, nrm_acc *accuracy, const nrm_real *x,
                         const int *labels, size_t N);
NRM_DEF int nrm_mlp_predict(nrm_mlp *net, int *labels /* [N] out */, const nrm_real *x, size_t N);
/* Computes all running statistics anew (ST.7) from N >= 2 examples, taken forward in train mode,
   max_batch at a time (3 or more if N is odd). With sync each worker brings its own, or none; if
   those of one cannot be used, no worker's statistics change. Lp batch norm: NRM_EKIND. */
NRM_DEF int nrm_mlp_reestimate(nrm_mlp *net, const nrm_real *x, size_t N);

/* ---- gradient checking ----------------------------------------------------------------------- */
typedef nrm_acc nrm_loss_fn(void *context);       /* the loss at the present parameters */
typedef uint64_t nrm_branches_fn(void *context);  /* a fingerprint of the branches it took last */
typedef struct nrm_gradcheck_group { /* one array of parameters (or inputs) and its gradient */
    const char *name;       /* for your own print-out                                             */
    nrm_real *theta;        /* [n] nudged and put back, bit for bit                               */
    const nrm_real *grad;   /* [n] what your backward pass says; must stay as it is while the loss
                               is evaluated: copy net->grads if that calls nrm_mlp_gradient       */
    size_t n;
} nrm_gradcheck_group;
typedef struct nrm_gradcheck_options { /* all zero is a good choice */
    nrm_acc tolerance;      /* relative; 0: 1e-7 in double, 1e-2 in float                         */
    nrm_acc step;           /* relative to the size of theta; 0: the power 1/5 of its precision   */
    size_t at_most;         /* entries per group, drawn by seed; 0: all                           */
    uint64_t seed;
    nrm_branches_fn *branches; /* NULL: kinks are found from the differences alone                */
} nrm_gradcheck_options;
typedef struct nrm_gradcheck_report { /* one per group */
    int status;             /* NRM_OK, NRM_EGRADIENT or NRM_EUNSETTLED                            */
    size_t checked;         /* entries looked at; of these,                                       */
    size_t wrong;           /*   the difference exceeds tolerance and uncertainty                 */
    size_t unsettled;       /*   the uncertainty exceeds the tolerance: no judgement              */
    size_t kinks;           /*   the loss has a kink there (ReLU at 0): skipped                   */
    size_t vanishing;       /*   both gradients are zero within rounding                          */
    size_t worst;           /* index of the largest error among those judged, and its             */
    nrm_acc analytic, numeric, error, uncertainty; /* figures                                     */
} nrm_gradcheck_report;

/* Compares the gradients of all groups with differences of the loss. NRM_OK if all pass. */
NRM_DEF int nrm_gradcheck(
    nrm_gradcheck_report *report, const nrm_gradcheck_group *group, /* [groups] out, in           */
    size_t groups, nrm_loss_fn *loss, void *context,
    const nrm_gradcheck_options *options);         /* NULL: defaults                              */

#endif /* NORMLAYERS_H */

/* ============================================================================================== */
#if (defined(NORMLAYERS_IMPLEMENTATION) || defined(NRM_STATIC)) && !defined(NRM_IMPLEMENTED)
#define NRM_IMPLEMENTED

#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__ > 0) ||       \
    defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__) || defined(_M_FP_FAST)
#error "normlayers.h: compile without -ffast-math or -Ofast: they break NaN tests and results"
#endif
#if defined(__FLT_EVAL_METHOD__) && __FLT_EVAL_METHOD__ != 0 && __FLT_EVAL_METHOD__ != 16 &&       \
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
#define NRM_SQRT(a)                                                                                \
    (sizeof(nrm_acc) == sizeof(float) ? (nrm_acc)__builtin_sqrtf((float)(a))                       \
                                      : (nrm_acc)__builtin_sqrt((double)(a)))
#else
#include <math.h>
#define NRM_SQRT(a)                                                                                \
    (sizeof(nrm_acc) == sizeof(float) ? (nrm_acc)sqrtf((float)(a)) : (nrm_acc)sqrt((double)(a)))
#endif
#endif
#ifdef NRM_OPENMP
#include <omp.h>
#endif

#ifdef NRM_TAG /* structs of one name and other contents would break a rule of C++ */
#define NRM_OWN(name) NRM_LINK(name)
#else
#define NRM_OWN(name) name
#endif

/* No fused operations: a·b + c in one rounding is forbidden, except in the matrix product
   (chapter 19). So everything else has the same bits on every machine that rounds as IEEE 754
   says; products have them too if the program is compiled with -ffp-contract=off. */
#if defined(__clang__)
#if __clang_major__ >= 12 && (defined(__x86_64__) || defined(__i386__) || defined(__aarch64__))
#define NRM_PRECISE /* partial fast-math flags, which no macro tells, do not reach in here */
#pragma float_control(precise, on, push)
#endif
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC diagnostic push /* (that a strip is never empty gcc cannot see) */
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC push_options
#pragma GCC optimize("fp-contract=off")
#elif defined(_MSC_VER)
#pragma fp_contract(off)
#endif

/*
# Part I: the layers

## What the layers stand on

Part I is the text: each layer in the order *question, shapes, forward, code, backward, code,
what it means*. Its code uses means, scales and gradients. Vectors, caches and the order of sums
belong to Part II, the machine room. This section lists what Part II offers.

**Argument tables.** A function lists its arrays, with their lengths and roles, and
`NRM_CHECK` finds a NULL where an array is needed and an output that overlaps something else.
*/
enum {
    NRMI_IN = 0,       /* read; NULL means absent                                                 */
    NRMI_OUT = 1,      /* written; must not overlap another array                                 */
    NRMI_NEEDED = 2,   /* NULL is an error                                                        */
    NRMI_IN_PLACE = 4  /* two arrays with this role may be the same pointer                       */
};
typedef struct nrmi_arg {
    const void *at;
    size_t bytes;
    int role;
} nrmi_arg;
#define NRM_ARG(array, count, role) {(array), (count) * sizeof *(array), (role)}
#define NRM_CHECK(table) nrmi_check_args((table), sizeof(table) / sizeof *(table))

/* The arguments that norms share, under the names of the function's parameters, and their lengths.
   gamma, beta, running: may be absent. */
#define NRM_FORWARD_ARGS(numbers, groups, params, y_role, x_role, saved)                           \
    NRM_ARG(y, numbers, NRMI_OUT | (y_role)), NRM_ARG(x, numbers, x_role),                         \
        NRM_ARG(mean, groups, NRMI_OUT | (saved)), NRM_ARG(rstd, groups, NRMI_OUT | (saved)),      \
        NRM_ARG(gamma, params, NRMI_IN), NRM_ARG(beta, params, NRMI_IN)
#define NRM_BACKWARD_ARGS(numbers, groups, params, mean_role)                                      \
    NRM_ARG(dx, numbers, NRMI_OUT | NRMI_IN_PLACE), NRM_ARG(dgamma, params, NRMI_OUT),             \
        NRM_ARG(dbeta, params, NRMI_OUT), NRM_ARG(dy, numbers, NRMI_NEEDED | NRMI_IN_PLACE),       \
        NRM_ARG(x, numbers, NRMI_NEEDED), NRM_ARG(mean, groups, mean_role),                        \
        NRM_ARG(rstd, groups, NRMI_NEEDED), NRM_ARG(gamma, params, NRMI_IN)
#define NRM_RUNNING_ARGS(C, role) /* which may be absent */                                        \
    NRM_ARG(running != NULL ? running->mean : NULL, C, role),                                      \
        NRM_ARG(running != NULL ? running->var : NULL, C, role)

static int nrmi_check_args(const nrmi_arg *arg, size_t count); /* NRM_OK, NRM_ENULL, NRM_EALIAS */
static int nrmi_check_sizes(size_t a, size_t b, size_t c);     /* b, c > 0; a·b·c is addressable */
static int nrmi_check_eps(nrm_real eps);                       /* finite and not negative        */
static int nrmi_finite(nrm_acc v);                             /* neither NaN nor infinity       */
static int nrmi_fits(nrm_acc v);                               /* finite also as an nrm_real     */

static size_t nrmi_least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* a[i], or what stands for it where there is no array. */
static nrm_acc nrmi_or(const nrm_real *a, size_t i, nrm_acc otherwise)
{
    return a != NULL ? (nrm_acc)a[i] : otherwise;
}

/*
**Views.** A layer normalizes *groups* of values that share one mean and one variance, and a
view says where they lie: the channels of `[N][C][S]` for batch norm, the rows of `[N][D]` for
layer norm. The primitives below work on w groups of a view from group g on, a strip of
`nrmi_strip(&v)` or a band of rows. x, y, dx and dy point to the start of the view; arrays of one
number for each group (mean, rstd, scale...) begin with that of group g.
*/
#if defined(__GNUC__) || defined(__clang__) /* never inlined */
#define NRM_APART __attribute__((noinline))
#else
#define NRM_APART
#endif
#ifdef NRM_PLAIN
#undef NRM_WIDTH
#define NRM_WIDTH 1
#define NRM_SLOTS 1
#else
#ifndef NRM_WIDTH
#ifdef NRM_NO_LIBC
#define NRM_WIDTH 64
#else
#define NRM_WIDTH 1024 /* columns worked on together */
#endif
#elif NRM_WIDTH < 1
#error "normlayers.h: NRM_WIDTH must be at least 1"
#endif
#define NRM_SLOTS (NRM_WIDTH < 64 ? 64 : NRM_WIDTH) /* groups that the structs below hold */
#endif

enum { NRMI_COLUMNS, NRMI_RUNS, NRMI_ROWS };

typedef struct nrmi_view { /* a group is `runs` runs of `length` neighbours, */
    size_t groups, runs, length;
    size_t pitch, apart; /* its runs `pitch` apart; the next group begins `apart` further on      */
    size_t sets;         /* of rows: so many sets of γ and β, which the rows take in turn         */
    size_t ahead;        /* how far on memory is to be fetched, or 0                              */
    int kind;            /* NRMI_COLUMNS: neighbours belong to different groups                   */
} nrmi_view;

typedef struct NRM_OWN(nrmi_centre) { /* means of some groups, split: SUM.10 */
    nrm_real high[NRM_SLOTS], low[NRM_SLOTS];
} nrmi_centre;

typedef struct NRM_OWN(nrmi_moments) { /* mean and variance of some groups */
    nrm_acc mean[NRM_SLOTS], var[NRM_SLOTS];
    nrmi_centre at; /* the mean once more */
} nrmi_moments;

typedef struct NRM_OWN(nrmi_sums) { /* of dy and dy·x̂ over some groups */
    nrm_acc dy[NRM_SLOTS], dy_xhat[NRM_SLOTS];
} nrmi_sums;

#define NRM_WIDE (NRM_SLOTS > 1 ? 4 * NRM_WIDTH : 1)
typedef struct NRM_OWN(nrmi_columns) { /* sums down columns */
    nrm_real *dy, *dy_xhat;  /* over the rows since the last fold */
    nrm_acc *dbeta, *dgamma; /* over all rows                     */
} nrmi_columns;
#define NRM_COLUMNS(name, width) /* a variable with room for so many columns */                    \
    nrm_real name##_dy[width], name##_dy_xhat[width];                                              \
    nrm_acc name##_dbeta[width], name##_dgamma[width];                                             \
    nrmi_columns name = {name##_dy, name##_dy_xhat, name##_dbeta, name##_dgamma}

static nrmi_view nrmi_channels(size_t N, size_t C, size_t S); /* of [N][C][S]: C groups */
static nrmi_view nrmi_rows(size_t N, size_t D);               /* of [N][D]: N groups    */
static size_t nrmi_strip(const nrmi_view *v); /* how many groups to take at a time */

/* Means and variances; of `squares`, 0 and the mean squares. `recall` takes known ones, and `lost`
   says whether one of them is not finite, or, if they are to be stored, does not fit. */
static void nrmi_moments_of(nrmi_moments *t, const nrm_real *x, const nrmi_view *v, size_t g,
                            size_t w);
static void nrmi_squares_of(nrmi_moments *t, const nrm_real *x, const nrmi_view *v, size_t g,
                            size_t w);
static void nrmi_recall(nrmi_moments *t, size_t k, nrm_acc mean, nrm_acc var);
static int nrmi_lost(const nrmi_moments *t, size_t w, int stored);

/* For a backward pass, the means as saved; NULL: 0. An nrm_acc with no more digits than an nrm_real
   has lost some of them: these are taken from x, unless it is NULL. */
static void nrmi_saved(nrmi_centre *mu, const nrm_acc *mean, const nrm_real *x, const nrmi_view *v,
                       size_t g, size_t w);

/* ∑u and ∑u·x̂, where u is dy, or dy·γ along a row, and x̂ is (x − mean)·rstd; gamma and rstd may be
   NULL for 1; without dy, u is x less the high part of the mean. */
static void nrmi_sums_of(nrmi_sums *s, const nrm_real *dy, const nrm_real *gamma, const nrm_real *x,
                         const nrmi_centre *mu, const nrm_acc *rstd, const nrmi_view *v, size_t g,
                         size_t w);

/* y = (x − mean)·scale + shift, one scale and shift for each group; shift may be NULL for 0. */
static void nrmi_affine(nrm_real *y, const nrm_real *x, const nrmi_centre *mu, const nrm_acc *scale,
                        const nrm_acc *shift, const nrmi_view *v, size_t g, size_t w);

/* y = (x − mean)·rstd·γ + β with γ and β along each row; both may be NULL. */
static void nrmi_affine_rows(nrm_real *y, const nrm_real *x, const nrmi_centre *mu,
                             const nrm_acc *rstd, const nrm_real *gamma, const nrm_real *beta,
                             const nrmi_view *v, size_t g, size_t w);

/* dx = scale·(γ·dy − share·s.dy − x̂·share·s.dy_xhat), one γ for each group; gamma and s may be
   NULL. */
static void nrmi_project(nrm_real *dx, const nrm_real *dy, const nrm_acc *gamma, const nrm_real *x,
                         const nrmi_centre *mu, const nrm_acc *rstd, const nrm_acc *scale,
                         const nrmi_sums *s, nrm_acc share, const nrmi_view *v, size_t g, size_t w);

/* dx = rstd·(dy·γ − share·s.dy − x̂·share·s.dy_xhat) with γ along each row; and ∑dy, ∑dy·x̂ of each
   column are added to `columns`. dx, columns, gamma and s may be NULL. */
static void nrmi_project_rows(nrm_real *dx, nrmi_columns *columns, const nrm_real *dy,
                              const nrm_real *gamma, const nrm_real *x, const nrmi_centre *mu,
                              const nrm_acc *rstd, const nrmi_sums *s, nrm_acc share,
                              const nrmi_view *v, size_t g, size_t w);

/* Columns are summed band by band: `clear` starts their sums, `fold` ends a band. A band has `band`
   rows from g on, or `examples` rows of one set. `one_sweep`: is there room for all columns at
   once, and only one thread? */
static void nrmi_clear(nrmi_columns *columns, size_t width);
static void nrmi_fold(nrmi_columns *columns, size_t from, size_t to);
static size_t nrmi_band(const nrmi_view *v, size_t g);
static size_t nrmi_examples(const nrmi_view *v);
static int nrmi_one_sweep(const nrmi_view *v);

/* The next stretch of a view that a mask [runs·length] lets through, *at numbers from its start;
   *from is 0 at first. Returns 0 at the end. */
static int nrmi_next_stretch(nrmi_view *part, size_t *at, size_t *from, const nrmi_view *v,
                             const unsigned char *mask);

/*
**Products, functions, random numbers.** `nrmi_product` makes c `[rows][cols]` += a·b, or = a·b
if `fresh`; element (i, k) of an operand stands at `at[i*row + k*col]`, so a transpose is a
matter of strides. `nrmi_exp` and `nrmi_expm1` replace NRM_SOME values ≤ 0 by e^x and e^x − 1.
*/
typedef struct NRM_OWN(nrmi_matrix) {
    const nrm_real *at;
    size_t row, col;
} nrmi_matrix;
static nrmi_matrix nrmi_strided(const nrm_real *at, size_t row, size_t col);
static void nrmi_product(nrm_real *c, nrmi_matrix a, nrmi_matrix b, size_t rows, size_t cols,
                         size_t depth, int fresh);

#define NRM_SOME 16
static void nrmi_exp(nrm_acc *x);
static void nrmi_expm1(nrm_acc *x);
static nrm_acc nrmi_log(nrm_acc x);              /* of a normal x > 0 */
static nrm_acc nrmi_symmetric(nrm_rng *rng);     /* uniform in ±1     */

/*
**Threads.** There are none, unless `NRM_OPENMP` is defined. A loop that begins with `NRM_SHARE`
may have its rounds done by several; `bad` collects what went wrong. Nothing is summed across
threads, so their number changes no bit.
*/
#ifdef NRM_OPENMP
#define NRM_PRAGMA(text) _Pragma(#text)
#define NRM_SHARE(numbers, bad)                                                                    \
    NRM_PRAGMA(omp parallel for schedule(static) reduction(| : bad) if (nrmi_threads(numbers) > 1))
#else
#define NRM_SHARE(numbers, bad) (void)(bad);
#endif
static size_t nrmi_threads(size_t numbers); /* that would share work on so many numbers */

/*
## 1  Batch normalization

*The question it answers: is this value large for its feature, judged by the other examples
of the batch?*

Ioffe and Szegedy (2015) proposed to standardize every feature over the mini-batch, inside the
network and as part of what is differentiated, and to give each feature a scale γ and a shift β
of its own.

### 1.1  Shapes

The tensor is `[N][C][S]`: N examples, C channels, S positions. A dense layer of 64 units and a
batch of 512 has N = 512, C = 64, S = 1; an image tensor in NCHW order has S = H·W. One channel
is normalized with one mean and one variance over all its M = N·S values. Below, a single
channel is meant, and i runs over its M values. `mean` and `rstd`, `[C]` each, are saved for
the backward pass.

### 1.2  Running statistics and the three modes

When a single example is to be classified there is no batch to compare it with. So training
keeps a running mean m and a running variance u, which move towards the μ and v of each batch
by a weight w. With `cumulative` every batch counts alike: w = 1/t at the t-th batch.

    m ← (1 − w)·m + w·μ                                               [BN.8]
    u ← (1 − w)·u + w·v·M/(M − 1)                                     [BN.9]
    w = 1/t                                                           [BN.10]

The factor M/(M − 1) makes the stored variance an unbiased estimate of the population's, if
the M values are independent. The paper and PyTorch have it; Keras 3, Flax and ONNX do not
(`biased`). w is 0.1 in PyTorch, called momentum there, and 0.01 in Keras, whose momentum of
0.99 is the weight of the old value. A channel whose result would not be finite is left
alone, and the status says so.
*/
static int nrmi_track(const nrm_running *to, const nrm_acc *mean, const nrm_acc *var, size_t c,
                      size_t w, nrm_acc M)
{
    const nrm_acc new_weight = to->cumulative ? 1 / (nrm_acc)(to->batches + 1) /* BN.10 */
                                              : (nrm_acc)to->new_weight;
    const nrm_acc unbiased = to->biased ? 1 : M / (M - 1);
    int lost = 0;
    size_t k;
    for (k = 0; k < w; k++) {
        nrm_real *m = to->mean + c + k, *u = to->var + c + k;
        const nrm_acc next_m = (1 - new_weight) * (nrm_acc)*m + new_weight * mean[k]; /* BN.8 */
        const nrm_acc next_u =
            (1 - new_weight) * (nrm_acc)*u + new_weight * (var[k] * unbiased); /* BN.9 */
        const int fits = nrmi_fits(next_m) && nrmi_fits(next_u);
        if (fits) *m = (nrm_real)next_m;
        if (fits) *u = (nrm_real)next_u;
        lost |= !fits;
    }
    return lost;
}

static int nrmi_check_running(const nrm_running *r, int mode, size_t C)
{
    size_t c;
    if (r == NULL) return mode == NRM_TRAIN ? NRM_OK : NRM_ENULL;
    if (r->mean == NULL || r->var == NULL) return NRM_ENULL;
    if (mode == NRM_TRAIN) /* (a weight of 0 would never learn) */
        return r->cumulative || (r->new_weight > 0 && r->new_weight <= 1) ? NRM_OK : NRM_EWEIGHT;
    for (c = 0; c < C; c++)
        if (!(r->var[c] >= 0) || !nrmi_finite((nrm_acc)r->var[c]) ||
            !nrmi_finite((nrm_acc)r->mean[c]))
            return NRM_ESTATS;
    return NRM_OK;
}

/*
In the modes *infer* and *frozen* the layer is a fixed affine map of each value, with m and u in
the place of μ and v. They differ in what they are for: in mode frozen gradients flow through
the map, with m and u as constants, to fine-tune a network while its statistics stay put.

    yᵢ = γ·(xᵢ − m)/√(u + ε) + β                                      [BN.11]

*/
static void nrmi_recall_running(nrmi_moments *t, const nrm_running *from, size_t c, size_t w)
{
    size_t k;
    for (k = 0; k < w; k++) {
        t->mean[k] = (nrm_acc)from->mean[c + k]; /* BN.11 */
        t->var[k] = (nrm_acc)from->var[c + k];
        t->at.high[k] = from->mean[c + k];
        t->at.low[k] = 0;
    }
}

static int nrmi_check_batchnorm(int mode, nrm_real eps, size_t N, size_t C, size_t S)
{
    const int rc = nrmi_check_sizes(N, C, S);
    if (mode != NRM_TRAIN && mode != NRM_INFER && mode != NRM_FROZEN) return NRM_EMODE;
    if (rc == NRM_OK && mode == NRM_TRAIN && N == 1 && S == 1) return NRM_EBATCH;
    return rc == NRM_OK ? nrmi_check_eps(eps) : rc;
}

/*
### 1.3  Forward

    μ = (1/M)·∑ᵢ xᵢ                                                   [BN.1]
    v = (1/M)·∑ᵢ (xᵢ − μ)²                                            [BN.2]
    r = 1/√(v + ε)                                                    [BN.3]
    x̂ᵢ = (xᵢ − μ)·r                                                   [BN.4]
    yᵢ = γ·x̂ᵢ + β                                                     [BN.5]
*/
NRM_DEF int nrm_batchnorm_forward(nrm_real *y, nrm_acc *mean, nrm_acc *rstd, nrm_running *running,
                                  const nrm_real *x, const nrm_real *gamma, const nrm_real *beta,
                                  int mode, nrm_real eps, size_t N, size_t C, size_t S)
{
    const int train = mode == NRM_TRAIN, stored = running != NULL;
    const int saved = mode == NRM_INFER ? 0 : NRMI_NEEDED;
    const int needed = NRMI_NEEDED | (mode == NRM_INFER ? NRMI_IN_PLACE : 0);
    const nrmi_arg args[] = {NRM_FORWARD_ARGS(N * C * S, C, C, needed, needed, saved),
                             NRM_RUNNING_ARGS(C, train ? NRMI_OUT : NRMI_IN)};
    const nrmi_view v = nrmi_channels(N, C, S);
    size_t c, step;
    int lost = 0, rc = nrmi_check_batchnorm(mode, eps, N, C, S);
    if (rc != NRM_OK || N == 0) return rc;
    rc = NRM_CHECK(args);
    if (rc == NRM_OK) rc = nrmi_check_running(running, mode, C);
    if (rc != NRM_OK) return rc;
    step = nrmi_strip(&v);
    NRM_SHARE(N * C * S, lost) /* threads may share the strips */
    for (c = 0; c < C; c += step) {
        const size_t w = nrmi_least(C - c, step);
        nrmi_moments t;
        nrm_acc r[NRM_SLOTS], scale[NRM_SLOTS], shift[NRM_SLOTS];
        size_t k;
        if (train)
            nrmi_moments_of(&t, x, &v, c, w); /* BN.1, BN.2 */
        else
            nrmi_recall_running(&t, running, c, w);
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
Three choices in BN.2, BN.3 and M were bugs in other libraries. The variance is divided by M, not
by M − 1, since BN.19 differentiates this formula and no other; a library that used M − 1 in one
direction only had gradients some 15 to 20 % off for batches of four. ε is inside the root, in
both directions. And one value per channel has variance 0 whatever it is, so y would be β and
no gradient would pass; that is refused (`NRM_EBATCH`).

Written for x̂, BN.1 and BN.2 say that its mean is 0 and its mean square nearly 1:

    ∑ᵢ x̂ᵢ = 0                                                         (BN.6)
    ⟨x̂²⟩ = v·r² = 1 − ε·r²                                            (BN.7)

### 1.4  Backward

We are given dyᵢ = ∂L/∂yᵢ for every value of the channel. β is added to all values and γ multiplies
all of them, so their gradients are sums:

    dβ = ∑ᵢ dyᵢ                                                       [BN.12]
    dγ = ∑ᵢ dyᵢ·x̂ᵢ                                                    [BN.13]
    gᵢ = ∂L/∂x̂ᵢ = γ·dyᵢ                                               (BN.14)

A change of xᵢ reaches x̂ⱼ by three paths: directly if i = j, through μ, and through r, which
depends on v, which depends on xᵢ and μ. The mean is simple. For the variance, differentiate
BN.2: besides the direct term there is one through μ, with the factor ∑ⱼ (xⱼ − μ), which is
zero. Several bug reports ask where this term has gone in other people's code. It vanishes.

    ∂μ/∂xᵢ = 1/M                                                      (BN.15)
    ∂v/∂xᵢ = (2/M)·(xᵢ − μ) − (2/M)·(1/M)·∑ⱼ (xⱼ − μ) = (2/M)·(xᵢ − μ)  (BN.16)
    ∂r/∂xᵢ = −½·r³·∂v/∂xᵢ = −(1/M)·r²·x̂ᵢ                              (BN.17)

The product rule on BN.4 adds the paths up. They give r·δᵢⱼ, −r/M, and (xⱼ − μ)·∂r/∂xᵢ; in the
last one (xⱼ − μ)·r² is r·x̂ⱼ:

    ∂x̂ⱼ/∂xᵢ = r·(δᵢⱼ − 1/M − x̂ᵢ·x̂ⱼ/M)                                 (BN.18)

Multiply by gⱼ and sum over j. That takes no M×M matrix but two means, and γ, the same for the
whole channel, comes out. In mode frozen μ and r do not depend on x, and only the direct path
is left:

    dxᵢ = ∑ⱼ gⱼ·∂x̂ⱼ/∂xᵢ = γ·r·(dyᵢ − ⟨dy⟩ − x̂ᵢ·⟨dy·x̂⟩)                [BN.19]
    dxᵢ = γ·r·dyᵢ (frozen)                                            [BN.20]

*/
static void nrmi_give(nrm_real *to, size_t c, const nrm_acc *sum, size_t w)
{
    size_t k;
    for (k = 0; k < w && to != NULL; k++) to[c + k] += (nrm_real)sum[k];
}

NRM_DEF int nrm_batchnorm_backward(nrm_real *dx, nrm_real *dgamma, nrm_real *dbeta,
                                   const nrm_real *dy, const nrm_real *x, const nrm_acc *mean,
                                   const nrm_acc *rstd, const nrm_real *gamma, int mode, size_t N,
                                   size_t C, size_t S)
{
    const nrmi_arg args[] = {NRM_BACKWARD_ARGS(N * C * S, C, C, NRMI_NEEDED)};
    const nrmi_view v = nrmi_channels(N, C, S);
    const nrm_acc M = (nrm_acc)N * (nrm_acc)S;
    size_t c, step;
    int lost = 0, rc = nrmi_check_batchnorm(mode, NRM_EPS, N, C, S);
    if (mode == NRM_INFER) return NRM_EMODE;
    if (rc != NRM_OK || N == 0) return rc;
    rc = NRM_CHECK(args);
    if (rc != NRM_OK) return rc;
    step = nrmi_strip(&v);
    NRM_SHARE(N * C * S, lost)
    for (c = 0; c < C; c += step) {
        const size_t w = nrmi_least(C - c, step);
        const nrm_acc *r = rstd + c;
        nrm_acc scale[NRM_SLOTS];
        nrmi_centre mu;
        nrmi_sums s;
        size_t k;
        nrmi_saved(&mu, mean + c, mode == NRM_TRAIN ? x : NULL, &v, c, w); /* (frozen: not of x) */
        nrmi_sums_of(&s, dy, NULL, x, &mu, r, &v, c, w); /* BN.12, BN.13: ∑dy, ∑dy·x̂. */
        nrmi_give(dbeta, c, s.dy, w);
        nrmi_give(dgamma, c, s.dy_xhat, w);
        for (k = 0; k < w; k++) scale[k] = nrmi_or(gamma, c + k, 1) * r[k];
        if (dx != NULL && mode == NRM_TRAIN) /* γr·(dy − ⟨dy⟩ − x̂·⟨dy·x̂⟩) */
            nrmi_project(dx, dy, NULL, x, &mu, r, scale, &s, 1 / M, &v, c, w); /* BN.19 */
        else if (dx != NULL)
            nrmi_project(dx, dy, NULL, x, &mu, r, scale, NULL, 0, &v, c, w); /* BN.20 */
    }
    return NRM_OK;
}

/*
### 1.5  What it means

Except for ε and the factor γ·r, BN.19 is a projection: it takes out of dy its mean and its
component along x̂. Adding a constant to all x of a channel leaves y alone, and stretching
them does too, up to ε; so the gradient has no component along the first direction and next
to none along the second. That gives two checks that need no reference (for the second,
multiply BN.19 by x̂ᵢ, sum, and use BN.6 and BN.7):

    ∑ᵢ dxᵢ = 0                                                        (BN.21)
    ∑ᵢ dxᵢ·x̂ᵢ = γ·r·M·ε·r²·⟨dy·x̂⟩                                     (BN.22)

Two directions are removed from the M that a channel has. With M = 2 nothing remains: as long
as the two values differ by much more than √ε, x̂ is +1 and −1 whatever they are, and

    dx₁ = −dx₂ = ½·γ·ε·r³·(dy₁ − dy₂) for M = 2                       (BN.23)

which is small: subtract its mean from what mode frozen passes, γ·r·dyᵢ, and the fraction ε·r² of
the rest is left. Batch norm with two values per channel passes practically no gradient down,
and the layers before it hardly learn.

The backward pass keeps μ and r, two numbers a channel, and computes x̂ again: one subtraction
and one multiplication save a buffer as large as the activations.
*/

/*
## 2  Layer normalization

*The question it answers: is this value large for its example, judged by the other features?*

Ba, Kiros and Hinton (2016) average over features instead of examples. Each row is on its own,
so training and inference compute the same, also for a batch of one and inside a recurrent
network whose sequences differ in length.

### 2.1  Shapes

`x`, `y`, `dx`, `dy` are `[N][D]`; γ and β are `[D]`; μ and r are `[N]`. Below, a single row is
meant, and i, j run over its D features; the row's index n returns with LN.8.

### 2.2  Forward

    μ = (1/D)·∑ⱼ xⱼ                                                   [LN.1]
    v = (1/D)·∑ⱼ (xⱼ − μ)²                                            [LN.2]
    r = 1/√(v + ε)                                                    [LN.3]
    x̂ᵢ = (xᵢ − μ)·r                                                   [LN.4]
    yᵢ = γᵢ·x̂ᵢ + βᵢ                                                   [LN.5]

The function below serves RMS norm too (`rms`: no mean), and G sets of γ and β that rows take in
turn, as group norm wants; layer norm has G = 1.
*/
static int nrmi_rows_forward(int rms, nrm_real *y, nrm_acc *mean, nrm_acc *rstd, const nrm_real *x,
                             const nrm_real *gamma, const nrm_real *beta, nrm_real eps, size_t rows,
                             size_t D, size_t G)
{
    const int needed = NRMI_NEEDED | (mean == NULL && rstd == NULL ? NRMI_IN_PLACE : 0);
    const nrmi_arg args[] = {NRM_FORWARD_ARGS(rows * D, rows, G * D, needed, needed, 0)};
    nrmi_view v = nrmi_rows(rows, D);
    size_t n, step;
    int lost = 0, rc = nrmi_check_sizes(rows, D, 1);
    if (rc == NRM_OK) rc = nrmi_check_eps(eps);
    if (rc != NRM_OK || rows == 0) return rc;
    if (!rms && (mean == NULL) != (rstd == NULL)) return NRM_ENULL;
    rc = NRM_CHECK(args);
    if (rc != NRM_OK) return rc;
    v.sets = G;
    step = nrmi_strip(&v);
    NRM_SHARE(rows * D, lost)
    for (n = 0; n < rows; n += step) {
        const size_t w = nrmi_least(rows - n, step);
        nrmi_moments t;
        nrm_acc r[NRM_SLOTS];
        size_t k;
        if (rms)
            nrmi_squares_of(&t, x, &v, n, w); /* RMS.1 */
        else
            nrmi_moments_of(&t, x, &v, n, w); /* LN.1, LN.2 */
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
                                  const nrm_real *gamma, const nrm_real *beta, nrm_real eps,
                                  size_t N, size_t D)
{
    return nrmi_rows_forward(0, y, mean, rstd, x, gamma, beta, eps, N, D, 1);
}

/*
What differs from batch norm is LN.5: γ changes along the very axis that is averaged. That
matters in LN.14. A row of equal features is no error, since it says nothing wrong about other
rows: v = 0, x̂ = 0, y = β. The same holds for D = 1. As in BN.6 and BN.7,

    ∑ᵢ x̂ᵢ = 0                                                         (LN.6)
    ⟨x̂²⟩ = v·r² = 1 − ε·r²                                            (LN.7)

### 2.3  Backward

All rows share γ and β, so each row n adds its part to their gradients:

    dβᵢ = ∑ₙ dyₙᵢ                                                     [LN.8]
    dγᵢ = ∑ₙ dyₙᵢ·x̂ₙᵢ                                                 [LN.9]
    gᵢ = ∂L/∂x̂ᵢ = dyᵢ·γᵢ                                              [LN.10]

x reaches x̂ by the same three paths as in batch norm, with D in the place of M; again the term
of ∂v that goes through μ carries the factor ∑ⱼ (xⱼ − μ) = 0.

    ∂v/∂xᵢ = (2/D)·(xᵢ − μ)                                           (LN.11)
    ∂r/∂xᵢ = −½·r³·∂v/∂xᵢ = −(1/D)·r²·x̂ᵢ                              (LN.12)
    ∂x̂ⱼ/∂xᵢ = r·(δᵢⱼ − 1/D − x̂ᵢ·x̂ⱼ/D)                                 (LN.13)

The Jacobian is symmetric, and multiplying it by g takes two means of the row:

    dxᵢ = ∑ⱼ gⱼ·∂x̂ⱼ/∂xᵢ = r·(gᵢ − ⟨g⟩ − x̂ᵢ·⟨g·x̂⟩)                     [LN.14]

Here γ is inside the means, since it differs from feature to feature: ⟨g⟩ is not γ·⟨dy⟩. A test
with γ = 1 cannot see the difference. The gradients of γ and β go down the columns, dx goes
along the rows; one sweep does both, band by band.
*/
static void nrmi_rows_sweep(int rms, nrm_real *dx, nrmi_columns *columns, const nrm_real *dy,
                            const nrm_real *x, const nrm_acc *mean, const nrm_acc *rstd,
                            const nrm_real *gamma, const nrmi_view *v, size_t n, size_t w)
{
    nrmi_centre mu;
    nrmi_sums s;
    size_t k;
    nrmi_saved(&mu, mean != NULL ? mean + n : NULL, x, v, n, w);
    nrmi_sums_of(&s, dy, gamma, x, &mu, rstd + n, v, n, w); /* LN.10: sums of g and g·x̂, by row */
    for (k = 0; k < w && rms; k++) s.dy[k] = 0; /* RMS.4 has no mean of g */
    nrmi_project_rows(dx, columns, dy, gamma, x, &mu, rstd + n, &s, 1 / (nrm_acc)v->length, v, n,
                      w); /* LN.8, LN.9, LN.14 */
}

/* The gradients of gamma and beta alone, of `width` columns from c on, which share one set. */
static void nrmi_rows_columns(nrmi_columns *columns, const nrm_real *dy, const nrm_real *x,
                              const nrm_acc *mean, const nrm_acc *rstd, const nrmi_view *rows,
                              size_t c, size_t width)
{
    const size_t G = rows->sets, D = rows->length, examples = rows->groups / G, set = c / D;
    const size_t band = nrmi_examples(rows); /* the same sums by either way */
    nrm_acc means[NRM_SLOTS], r[NRM_SLOTS];
    nrmi_view row = nrmi_rows(examples, D), part = row; /* row n of this set begins at n·G·D */
    nrmi_centre mu;
    size_t n, k, w;
    row.apart = part.apart = G * D;
    part.length = width;
    nrmi_clear(columns, width);
    for (n = 0; n < examples; n += w) {
        w = nrmi_least(examples - n, band);
        for (k = 0; k < w; k++) {
            if (mean != NULL) means[k] = mean[(n + k) * G + set];
            r[k] = rstd[(n + k) * G + set];
        }
        nrmi_saved(&mu, mean != NULL ? means : NULL, x + set * D, &row, n, w);
        nrmi_project_rows(NULL, columns, dy + c, NULL, x + c, &mu, r, NULL, 0, &part, n,
                          w); /* LN.8, LN.9 */
        nrmi_fold(columns, 0, width);
    }
}

static void nrmi_rows_together(int rms, nrm_real *dx, nrm_real *dgamma, nrm_real *dbeta,
                               nrmi_columns *columns, const nrm_real *dy, const nrm_real *x,
                               const nrm_acc *mean, const nrm_acc *rstd, const nrm_real *gamma,
                               const nrmi_view *v)
{
    const size_t D = v->length, all = v->sets * D;
    size_t n, w;
    nrmi_clear(columns, all);
    for (n = 0; n < v->groups; n += w) {
        const size_t first = n % v->sets * D;
        w = nrmi_band(v, n);
        nrmi_rows_sweep(rms, dx, columns, dy, x, mean, rstd, gamma, v, n, w);
        nrmi_fold(columns, first, nrmi_least(all, first + w * D));
    }
    nrmi_give(dbeta, 0, columns->dbeta, all);
    nrmi_give(dgamma, 0, columns->dgamma, all);
}

/* Apart, so that rows of usual width do not pay for the stack of wide ones. */
static NRM_APART void nrmi_rows_wide(int rms, nrm_real *dx, nrm_real *dgamma, nrm_real *dbeta,
                                     const nrm_real *dy, const nrm_real *x, const nrm_acc *mean,
                                     const nrm_acc *rstd, const nrm_real *gamma, const nrmi_view *v)
{
    NRM_COLUMNS(columns, NRM_WIDE);
    nrmi_rows_together(rms, dx, dgamma, dbeta, &columns, dy, x, mean, rstd, gamma, v);
}

static int nrmi_rows_backward(int rms, nrm_real *dx, nrm_real *dgamma, nrm_real *dbeta,
                              const nrm_real *dy, const nrm_real *x, const nrm_acc *mean,
                              const nrm_acc *rstd, const nrm_real *gamma, size_t rows, size_t D,
                              size_t G)
{
    const nrmi_arg args[] = {NRM_BACKWARD_ARGS(rows * D, rows, G * D, rms ? NRMI_IN : NRMI_NEEDED)};
    const int wanted = dgamma != NULL || dbeta != NULL;
    nrmi_view v = nrmi_rows(rows, D);
    int lost = 0, rc = nrmi_check_sizes(rows, D, 1);
    if (rc != NRM_OK || rows == 0) return rc;
    rc = NRM_CHECK(args);
    if (rc != NRM_OK) return rc;
    v.sets = G;
    if (wanted && dx != NULL && nrmi_one_sweep(&v)) {
        if (G * D > NRM_SLOTS) {
            nrmi_rows_wide(rms, dx, dgamma, dbeta, dy, x, mean, rstd, gamma, &v);
        } else {
            NRM_COLUMNS(columns, NRM_SLOTS);
            nrmi_rows_together(rms, dx, dgamma, dbeta, &columns, dy, x, mean, rstd, gamma, &v);
        }
        return NRM_OK;
    }
    if (wanted) { /* the columns first: dx may be dy */
        const nrmi_view column = nrmi_channels(rows / G, D, 1);
        const size_t width = nrmi_strip(&column), strips = (D + width - 1) / width;
        size_t i;
        NRM_SHARE(rows * D, lost)
        for (i = 0; i < G * strips; i++) {
            const size_t from = i % strips * width, c = i / strips * D + from;
            const size_t w = nrmi_least(D - from, width);
            NRM_COLUMNS(columns, NRM_SLOTS);
            nrmi_rows_columns(&columns, dy, x, mean, rstd, &v, c, w);
            nrmi_give(dbeta, c, columns.dbeta, w);
            nrmi_give(dgamma, c, columns.dgamma, w);
        }
    }
    if (dx != NULL) {
        const size_t step = nrmi_band(&v, 0);
        size_t n;
        NRM_SHARE(rows * D, lost)
        for (n = 0; n < rows; n += step)
            nrmi_rows_sweep(rms, dx, NULL, dy, x, mean, rstd, gamma, &v, n,
                            nrmi_least(rows - n, step));
    }
    return lost ? NRM_NONFINITE : NRM_OK;
}

NRM_DEF int nrm_layernorm_backward(nrm_real *dx, nrm_real *dgamma, nrm_real *dbeta,
                                   const nrm_real *dy, const nrm_real *x, const nrm_acc *mean,
                                   const nrm_acc *rstd, const nrm_real *gamma, size_t N, size_t D)
{
    return nrmi_rows_backward(0, dx, dgamma, dbeta, dy, x, mean, rstd, gamma, N, D, 1);
}

/*
### 2.4  What it means

LN.13 is r times something close to a projection: it removes the mean of g and its component
along x̂, the second except for ε. So dx is not quite orthogonal to x̂, as one often reads:

    ∑ᵢ dxᵢ = 0                                                        (LN.15)
    ∑ᵢ dxᵢ·x̂ᵢ = D·ε·r³·⟨g·x̂⟩                                          (LN.16)

**A variant.** The Annotated Transformer divides by D − 1 and adds ε to the standard deviation
s, outside the root. No γ makes up for that, since the ratio of the two depends on s. With r =
1/(s + ε), LN.14 gains a factor κ, which is D/(D − 1) for ε = 0; where s = 0, κ·x̂ᵢ is 0.

    x̂ᵢ = (xᵢ − μ)/(s + ε), s = √(∑ⱼ (xⱼ − μ)²/(D − 1))                (LN.17)
    dxᵢ = r·(gᵢ − ⟨g⟩ − κ·x̂ᵢ·⟨g·x̂⟩), κ = D/((D − 1)·r·s)             (LN.18)
*/

/*
## 3  Noisy batch normalization

*The question it answers: does batch norm help because it keeps the distributions inside the
network steady?*

Santurkar, Tsipras, Ilyas and Mądry (2018) tested this by making them unsteady on purpose.
After each batch norm they add noise whose mean and scale are drawn anew at every step, so
the next layer never sees the same distribution twice. If steadiness were what helps, the
help should be gone.
*/
static int nrmi_check_noise(const nrm_noise *noise)
{
    const nrm_real number[] = {noise->mean_range, noise->scale_max, noise->mean_jitter,
                               noise->scale_jitter};
    size_t i;
    for (i = 0; i < sizeof number / sizeof *number; i++)
        if (!(number[i] >= 0 && nrmi_finite((nrm_acc)number[i]))) return NRM_ENOISE;
    return NRM_OK;
}

/*
### 3.1  Forward

Shapes are those of chapter 1, and y is the output of batch norm, γ and β included. At every
step each unit c draws the centre of its noise, and then every sample i of the unit draws an
offset m and a factor s around that centre. Unit follows unit, and sample follows sample:

    μ_c ~ U(−n_μ, n_μ)                                                [NB.1]
    σ_c ~ U(1, n_σ)                                                   [NB.2]
    m_ic ~ U(μ_c − r_μ, μ_c + r_μ)                                    [NB.3]
    s_ic ~ N(σ_c, r_σ²)                                               [NB.4]
    zᵢ = sᵢ·yᵢ + mᵢ                                                   [NB.5]
*/
NRM_DEF int nrm_noise_forward(nrm_real *y, nrm_real *scale, const nrm_real *x,
                              const nrm_noise *noise, nrm_rng *rng, size_t N, size_t C, size_t S)
{
    const nrmi_arg args[] = {NRM_ARG(y, N * C * S, NRMI_OUT | NRMI_NEEDED | NRMI_IN_PLACE),
                             NRM_ARG(scale, N * C * S, NRMI_OUT | NRMI_NEEDED),
                             NRM_ARG(x, N * C * S, NRMI_NEEDED | NRMI_IN_PLACE),
                             NRM_ARG(noise, 1, NRMI_NEEDED), NRM_ARG(rng, 1, NRMI_NEEDED)};
    size_t n, c, s;
    int rc = nrmi_check_sizes(N, C, S);
    if (rc != NRM_OK || N == 0) return rc;
    rc = NRM_CHECK(args);
    if (rc == NRM_OK) rc = nrmi_check_noise(noise);
    for (c = 0; c < C && rc == NRM_OK; c++) {
        const nrm_acc n_mu = (nrm_acc)noise->mean_range, n_sigma = (nrm_acc)noise->scale_max;
        const nrm_acc r_mu = (nrm_acc)noise->mean_jitter, r_sigma = (nrm_acc)noise->scale_jitter;
        const nrm_acc mu = n_mu * nrmi_symmetric(rng);                           /* NB.1 */
        const nrm_acc sigma = 1 + (n_sigma - 1) * (nrm_acc)nrm_rng_uniform(rng); /* NB.2 */
        for (n = 0; n < N; n++)
            for (s = 0; s < S; s++) {
                const size_t i = (n * C + c) * S + s;
                const nrm_acc m = mu + r_mu * nrmi_symmetric(rng);                     /* NB.3 */
                scale[i] = (nrm_real)(sigma + r_sigma * (nrm_acc)nrm_rng_normal(rng)); /* NB.4 */
                y[i] = (nrm_real)((nrm_acc)scale[i] * (nrm_acc)x[i] + m);              /* NB.5 */
            }
    }
    return rc;
}

/*
The paper has n_μ = 0.5, n_σ = 1.25 and r_μ = r_σ = 0.1. The mean factor is not 1, which
matters to a network that is tested without noise:

    E[s] = (1 + n_σ)/2, E[m] = 0                                      (NB.6)
*/
NRM_DEF nrm_noise nrm_noise_paper(void)
{
    const nrm_noise noise = {(nrm_real)0.5, (nrm_real)1.25, (nrm_real)0.1, (nrm_real)0.1};
    return noise;
}

/* Batch norm checks its own arguments; here only what it does not know of. */
NRM_DEF int nrm_noisy_batchnorm_forward(nrm_real *y, nrm_real *scale, nrm_acc *mean, nrm_acc *rstd,
                                        nrm_running *running, const nrm_real *x,
                                        const nrm_real *gamma, const nrm_real *beta,
                                        const nrm_noise *noise, nrm_rng *rng, int mode,
                                        nrm_real eps, size_t N, size_t C, size_t S)
{
    const nrmi_arg args[] = {NRM_FORWARD_ARGS(N * C * S, C, C, NRMI_NEEDED, NRMI_NEEDED, 0),
                             NRM_RUNNING_ARGS(C, NRMI_OUT), NRM_ARG(noise, 1, NRMI_NEEDED),
                             NRM_ARG(scale, N * C * S, NRMI_OUT | NRMI_NEEDED),
                             NRM_ARG(rng, 1, NRMI_NEEDED)};
    int rc = nrmi_check_batchnorm(mode, eps, N, C, S);
    if (rc == NRM_OK && mode == NRM_TRAIN && N > 0) {
        rc = NRM_CHECK(args);
        if (rc == NRM_OK) rc = nrmi_check_noise(noise);
    }
    if (rc != NRM_OK) return rc;
    rc = nrm_batchnorm_forward(y, mean, rstd, running, x, gamma, beta, mode, eps, N, C, S);
    if (rc >= 0 && mode == NRM_TRAIN) (void)nrm_noise_forward(y, scale, y, noise, rng, N, C, S);
    return rc;
}

/*
### 3.2  Backward

To the step that drew them, s and m are constants. The gradient is multiplied by the same
factors as in the forward pass, which is why they are saved, and goes on to batch norm:

    dyᵢ = sᵢ·dzᵢ                                                      [NB.7]
*/
NRM_DEF int nrm_noise_backward(nrm_real *dx, const nrm_real *dy, const nrm_real *scale,
                               size_t count)
{
    const nrmi_arg args[] = {NRM_ARG(dx, count, NRMI_OUT | NRMI_NEEDED | NRMI_IN_PLACE),
                             NRM_ARG(dy, count, NRMI_NEEDED | NRMI_IN_PLACE),
                             NRM_ARG(scale, count, NRMI_NEEDED)};
    size_t i;
    int rc = nrmi_check_sizes(count, 1, 1);
    if (rc == NRM_OK && count > 0) rc = NRM_CHECK(args);
    for (i = 0; i < count && rc == NRM_OK; i++) dx[i] = scale[i] * dy[i]; /* NB.7 */
    return rc;
}

/* dx holds dy of NB.7 on the way. Without it the sums of BN.12 and BN.13 are taken here. */
NRM_DEF int nrm_noisy_batchnorm_backward(nrm_real *dx, nrm_real *dgamma, nrm_real *dbeta,
                                         const nrm_real *dy, const nrm_real *scale,
                                         const nrm_real *x, const nrm_acc *mean,
                                         const nrm_acc *rstd, const nrm_real *gamma, int mode,
                                         size_t N, size_t C, size_t S)
{
    const int train = mode == NRM_TRAIN;
    const nrmi_arg args[] = {NRM_BACKWARD_ARGS(N * C * S, C, C, NRMI_NEEDED),
                             NRM_ARG(scale, N * C * S, train ? NRMI_NEEDED : NRMI_IN)};
    size_t n, c, s;
    int rc = mode == NRM_INFER ? NRM_EMODE : nrmi_check_batchnorm(mode, NRM_EPS, N, C, S);
    if (rc == NRM_OK && N > 0) rc = NRM_CHECK(args);
    if (rc != NRM_OK || N == 0) return rc;
    if (train && dx != NULL) (void)nrm_noise_backward(dx, dy, scale, N * C * S);
    if (!train || dx != NULL)
        return nrm_batchnorm_backward(dx, dgamma, dbeta, train ? dx : dy, x, mean, rstd, gamma,
                                      mode, N, C, S);
    for (c = 0; c < C; c++) {
        nrm_acc sum = 0, sum_xhat = 0;
        for (n = 0; n < N; n++)
            for (s = 0; s < S; s++) {
                const size_t i = (n * C + c) * S + s;
                const nrm_acc g = (nrm_acc)(scale[i] * dy[i]);
                sum += g;
                sum_xhat += g * (((nrm_acc)x[i] - mean[c]) * rstd[c]);
            }
        nrmi_give(dbeta, c, &sum, 1);
        nrmi_give(dgamma, c, &sum_xhat, 1);
    }
    return NRM_OK;
}

/*
### 3.3  What it means

In the paper a network with this noise trains about as well as with batch norm alone, though
its distributions move more than those of a network without any norm; the same noise without
batch norm can keep a network from training. NB.7 shows what the noise leaves intact: the
gradient still goes through BN.19, and so is still projected and scaled by r. Our own run is
in `docs/experiments/10_mnist_norms.md`.
*/

/*
## 4  Statistics that merge: synchronised, masked and virtual batches

*The question it answers: what if the values to be normalized together are not in one
place?*

A batch may be spread over several machines, come in small portions because memory is short,
hold sequences of different lengths, or be a whole data set. Each portion is summed up by
three numbers: how many values, their mean, and the sum of their squared deviations from it.
Such triples can be merged, exactly except for rounding, whatever their sizes (Chan, Golub
and LeVeque 1979).

### 4.1  Merging

A tensor is `[N][C][S]`, as in chapter 1; `nrm_stats` are `[C]`, a triple for each channel.
Two portions a and b have counts n_a and n_b, means μ_a and μ_b, and sums of squared
deviations Q_a and Q_b. Both together have

    n = n_a + n_b                                                     [ST.1]
    μ = μ_a + δ·n_b/n, δ = μ_b − μ_a                                  [ST.2]
    Q = Q_a + Q_b + δ²·n_a·n_b/n                                      [ST.3]

For the deviations of a are measured from μ_a; measured from μ, their squares sum to Q_a +
n_a·(μ_a − μ)². The same holds for b, and with ST.2 the two additions make the last term of
ST.3. Averaging the variances of workers loses just that term, the spread of the workers'
means; averaging without weights is wrong as soon as the portions are uneven.
*/
static nrm_stats nrmi_stats_merge(nrm_stats a, nrm_stats b)
{
    const nrm_acc n = a.count + b.count, delta = b.mean - a.mean; /* ST.1 */
    if (b.count == 0) return a;
    if (a.count == 0) return b;
    a.mean += delta * (b.count / n);                          /* ST.2 */
    a.m2 += b.m2 + delta * delta * (a.count * (b.count / n)); /* ST.3 */
    a.count = n;
    return a;
}

/*
Merging in the same order gives the same bits; so merge by the number of the worker, not by
who comes first.

A mask is `[N][S]`, one byte for each position, the same for all channels. Where it is 0
nothing is read, and y and dx are 0. So sequences of unequal length lie side by side, padded
with anything, and the result does not depend on the padding. A mask leaves *stretches* of
neighbouring positions, and each stretch is a portion.
*/
NRM_DEF int nrm_stats_merge(nrm_stats *into, const nrm_stats *from, size_t C)
{
    const nrmi_arg args[] = {NRM_ARG(into, C, NRMI_OUT | NRMI_NEEDED),
                             NRM_ARG(from, C, NRMI_NEEDED)};
    int rc = nrmi_check_sizes(1, C, 1);
    size_t c;
    if (rc == NRM_OK) rc = NRM_CHECK(args);
    for (c = 0; c < C && rc == NRM_OK; c++) into[c] = nrmi_stats_merge(into[c], from[c]);
    return rc;
}

NRM_DEF int nrm_stats_update(nrm_stats *stats, const nrm_real *x, const unsigned char *mask,
                             size_t N, size_t C, size_t S)
{
    const nrmi_arg args[] = {NRM_ARG(stats, C, NRMI_OUT | NRMI_NEEDED),
                             NRM_ARG(x, N * C * S, NRMI_NEEDED), NRM_ARG(mask, N * S, NRMI_IN)};
    const nrmi_view v = nrmi_channels(N, C, S);
    const size_t step = nrmi_strip(&v);
    size_t c;
    int lost = 0, rc = nrmi_check_sizes(N, C, S);
    if (rc == NRM_OK && N > 0) rc = NRM_CHECK(args);
    if (rc != NRM_OK || N == 0) return rc;
    NRM_SHARE(N * C * S, lost)
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

/* Can these be the statistics of a batch, of which some is here or not? A mean or a sum may be
   NaN: then x was. */
static int nrmi_check_counts(const nrm_stats *stats, size_t C, const unsigned char *mask,
                             size_t positions)
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

/* Zeros where the mask is 0. */
static void nrmi_blank(nrm_real *a, const unsigned char *mask, size_t N, size_t C, size_t S)
{
    size_t n, c, s;
    for (n = 0; n < N && mask != NULL; n++)
        for (s = 0; s < S; s++)
            for (c = 0; c < C && !mask[n * S + s]; c++) a[(n * C + c) * S + s] = 0;
}

/*
### 4.2  Synchronised batch norm: forward

Every worker takes the statistics of its portion (`nrm_stats_update`). All are merged, in
memory, by a socket or by MPI (`examples/mpi_batchnorm.c`), which is not for this header to
know. Every worker then normalizes its portion (`nrm_sync_batchnorm_forward`) as in BN.3 to
BN.5, with the merged mean and

    v = Q/n                                                           [ST.4]
*/
NRM_DEF int nrm_sync_batchnorm_forward(nrm_real *y, nrm_acc *mean, nrm_acc *rstd,
                                       nrm_running *running, const nrm_real *x,
                                       const unsigned char *mask, const nrm_stats *stats,
                                       const nrm_real *gamma, const nrm_real *beta, nrm_real eps,
                                       size_t N, size_t C, size_t S)
{
    const int needed = N > 0 ? NRMI_NEEDED : NRMI_IN;
    const nrmi_arg args[] = {NRM_FORWARD_ARGS(N * C * S, C, C, needed, needed, NRMI_NEEDED),
                             NRM_RUNNING_ARGS(C, NRMI_OUT), NRM_ARG(mask, N * S, NRMI_IN),
                             NRM_ARG(stats, C, NRMI_NEEDED)};
    const nrmi_view v = nrmi_channels(N, C, S);
    const size_t step = nrmi_strip(&v);
    nrmi_moments t;
    size_t c;
    int lost = 0, known = 0, rc = nrmi_check_sizes(N, C, S);
    if (rc == NRM_OK) rc = nrmi_check_eps(eps);
    if (rc == NRM_OK) rc = NRM_CHECK(args);
    if (rc == NRM_OK) rc = nrmi_check_running(running, NRM_TRAIN, C);
    if (rc == NRM_OK) rc = nrmi_check_counts(stats, C, mask, N * S);
    if (rc != NRM_OK) return rc;
    for (c = 0; c < C; c++) {
        const nrm_acc n = stats[c].count;
        nrmi_recall(&t, 0, stats[c].mean, n > 0 ? stats[c].m2 / n : 0); /* ST.4 */
        mean[c] = t.mean[0];
        rstd[c] = 1 / NRM_SQRT(t.var[0] + (nrm_acc)eps); /* BN.3 */
        if (running != NULL && n > 0) lost |= nrmi_track(running, t.mean, t.var, c, 1, n);
        lost |= nrmi_lost(&t, 1, running != NULL) || (n > 0 && !nrmi_finite(rstd[c]));
        known |= n > 0;
    }
    if (running != NULL && known) running->batches++;
    NRM_SHARE(N * C * S, lost)
    for (c = 0; c < C; c += step) {
        const size_t w = nrmi_least(C - c, step);
        nrm_acc scale[NRM_SLOTS], shift[NRM_SLOTS];
        nrmi_centre mu;
        nrmi_view part;
        size_t k, at, from = 0;
        nrmi_saved(&mu, mean + c, NULL, &v, c, w);
        for (k = 0; k < w; k++) {
            scale[k] = nrmi_or(gamma, c + k, 1) * rstd[c + k];
            shift[k] = nrmi_or(beta, c + k, 0);
        }
        while (N > 0 && nrmi_next_stretch(&part, &at, &from, &v, mask))
            nrmi_affine(y + at, x + at, &mu, scale, shift, &part, c, w); /* BN.4, BN.5 */
    }
    nrmi_blank(y, mask, N, C, S);
    return lost ? NRM_NONFINITE : NRM_OK;
}

/*
A *virtual batch* is the same: micro-batches that follow each other take the places of
workers. All go forward through the layers below, their statistics are merged, and all go
on; in the backward pass all reach this layer, their sums are added, and all go on. Masks
need only one worker.

### 4.3  Synchronised batch norm: backward

The means of BN.19 are over all values, and some of these are elsewhere. But their sums can
be added: `nrm_sync_batchnorm_sums`, an addition by the caller, and
`nrm_sync_batchnorm_backward`.

    A = ∑ᵢ dyᵢ, B = ∑ᵢ dyᵢ·x̂ᵢ over the values of all workers          [ST.5]

The gradients of γ and β are each worker's own part of the sums, as with all parameters of a
network that is trained in parallel. dy belongs to one common loss: a mean over a worker's
portion must be weighted by its share.
*/
NRM_DEF int nrm_sync_batchnorm_sums(nrm_sums *sums, nrm_real *dgamma, nrm_real *dbeta,
                                    const nrm_real *dy, const nrm_real *x,
                                    const unsigned char *mask, const nrm_acc *mean,
                                    const nrm_acc *rstd, size_t N, size_t C, size_t S)
{
    const int needed = N > 0 ? NRMI_NEEDED : NRMI_IN;
    const nrmi_arg args[] = {
        NRM_ARG(sums, C, NRMI_OUT | NRMI_NEEDED), NRM_ARG(dgamma, C, NRMI_OUT),
        NRM_ARG(dbeta, C, NRMI_OUT), NRM_ARG(dy, N * C * S, needed), NRM_ARG(x, N * C * S, needed),
        NRM_ARG(mask, N * S, NRMI_IN), NRM_ARG(mean, C, NRMI_NEEDED),
        NRM_ARG(rstd, C, NRMI_NEEDED)};
    const nrmi_view v = nrmi_channels(N, C, S);
    const size_t step = nrmi_strip(&v);
    size_t c;
    int lost = 0, rc = nrmi_check_sizes(N, C, S);
    if (rc == NRM_OK) rc = NRM_CHECK(args);
    if (rc != NRM_OK) return rc;
    NRM_MEMSET(sums, 0, C * sizeof *sums);
    NRM_SHARE(N * C * S, lost)
    for (c = 0; c < C; c += step) {
        const size_t w = nrmi_least(C - c, step);
        size_t k, at, from = 0;
        nrmi_view part;
        nrmi_centre mu;
        nrmi_sums s;
        nrmi_saved(&mu, mean + c, NULL, &v, c, w);
        while (N > 0 && nrmi_next_stretch(&part, &at, &from, &v, mask)) {
            nrmi_sums_of(&s, dy + at, NULL, x + at, &mu, rstd + c, &part, c, w);
            for (k = 0; k < w; k++) sums[c + k].dy += s.dy[k];           /* ST.5 */
            for (k = 0; k < w; k++) sums[c + k].dy_xhat += s.dy_xhat[k]; /* ST.5 */
        }
    }
    for (c = 0; c < C; c++) {
        nrmi_give(dbeta, c, &sums[c].dy, 1);
        nrmi_give(dgamma, c, &sums[c].dy_xhat, 1);
    }
    return lost;
}

/*
With n, the count of all, for the M of chapter 1 and r by ST.4, BN.19 reads

    dxᵢ = γ·r·(dyᵢ − A/n − x̂ᵢ·B/n)                                    [ST.6]
*/
NRM_DEF int nrm_sync_batchnorm_backward(nrm_real *dx, const nrm_real *dy, const nrm_real *x,
                                        const unsigned char *mask, const nrm_acc *mean,
                                        const nrm_acc *rstd, const nrm_real *gamma,
                                        const nrm_stats *stats, const nrm_sums *sums, size_t N,
                                        size_t C, size_t S)
{
    const nrm_real *dgamma = NULL, *dbeta = NULL; /* which `sums` has taken */
    const nrmi_arg args[] = {NRM_BACKWARD_ARGS(N * C * S, C, C, NRMI_NEEDED),
                             NRM_ARG(mask, N * S, NRMI_IN), NRM_ARG(stats, C, NRMI_NEEDED),
                             NRM_ARG(sums, C, NRMI_NEEDED)};
    const nrmi_view v = nrmi_channels(N, C, S);
    const size_t step = nrmi_strip(&v);
    size_t c;
    int lost = 0, rc = nrmi_check_sizes(N, C, S);
    if (rc == NRM_OK && N > 0) rc = dx != NULL ? NRM_CHECK(args) : NRM_ENULL;
    if (rc == NRM_OK && N > 0) rc = nrmi_check_counts(stats, C, mask, N * S);
    if (rc != NRM_OK || N == 0) return rc;
    NRM_SHARE(N * C * S, lost)
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
            m.dy[k] = sums[c + k].dy * share;           /* A/n */
            m.dy_xhat[k] = sums[c + k].dy_xhat * share; /* B/n */
            scale[k] = nrmi_or(gamma, c + k, 1) * rstd[c + k];
        }
        while (nrmi_next_stretch(&part, &at, &from, &v, mask)) /* ST.6 */
            nrmi_project(dx + at, dy + at, NULL, x + at, &mu, rstd + c, scale, &m, 1, &part, c, w);
    }
    nrmi_blank(dx, mask, N, C, S);
    return lost;
}

/*
Why just two numbers a channel? In BN.18, an xᵢ of one worker reaches an x̂ⱼ of another through
μ, which needs the sum of its dyⱼ, and through r, which needs the sum of its dyⱼ·x̂ⱼ. A worker
that takes A and B over its own values alone leaves out what its x do to the outputs of others,
and its dx is not the gradient of the loss.

### 4.4  Statistics of a whole data set

Running statistics forget, and while a network is still learning they lag behind it. After
training they can be computed anew from as much data as one likes ("precise" batch norm: the
averages of the paper's algorithm 2, but including the spread of the batch means):
`nrm_stats_update` batch by batch, then `nrm_running_set`, which makes

    m = μ, u = Q/(n − 1), or Q/n if `biased`                          [ST.7]

with m and u of BN.11; `nrm_mlp_reestimate` does it for a whole network. To use the last k
batches instead of all, keep k triples and merge them.
*/

/* u of ST.7 */
static nrm_acc nrmi_stats_var(const nrm_running *running, nrm_stats s)
{
    return s.m2 / (s.count - (running->biased ? 0 : 1));
}

/* Can they become running statistics? */
static int nrmi_check_stats_fit(const nrm_running *running, const nrm_stats *stats, size_t C)
{
    size_t c;
    for (c = 0; c < C; c++) {
        const nrm_stats s = stats[c];
        if (!(s.count >= 0 && nrmi_finite(s.count))) return NRM_ESTATS;
        if (!(s.m2 >= 0 && nrmi_finite(s.m2) && nrmi_fits(s.mean))) return NRM_ESTATS;
        if (s.count < (running->biased ? 1 : 2)) return NRM_EBATCH;
        if (!nrmi_fits(nrmi_stats_var(running, s))) return NRM_ESTATS;
    }
    return NRM_OK;
}

NRM_DEF int nrm_running_set(nrm_running *running, const nrm_stats *stats, size_t C)
{
    const nrmi_arg args[] = {
        NRM_ARG(running, 1, NRMI_NEEDED), NRM_ARG(stats, C, NRMI_NEEDED),
        NRM_ARG(running != NULL ? running->mean : NULL, C, NRMI_OUT | NRMI_NEEDED),
        NRM_ARG(running != NULL ? running->var : NULL, C, NRMI_OUT | NRMI_NEEDED)};
    size_t c;
    int rc = nrmi_check_sizes(1, C, 1);
    if (rc == NRM_OK) rc = NRM_CHECK(args);
    if (rc == NRM_OK) rc = nrmi_check_stats_fit(running, stats, C);
    if (rc != NRM_OK) return rc;
    for (c = 0; c < C; c++) {
        running->mean[c] = (nrm_real)stats[c].mean;                    /* ST.7 */
        running->var[c] = (nrm_real)nrmi_stats_var(running, stats[c]); /* ST.7 */
    }
    running->batches = 1;
    return NRM_OK;
}

/*
## 5  Batch renormalization

*The question it answers: can a network be trained on the output that it will have in
inference?*

In training a value is judged by its batch, in inference by the running statistics. With
large batches the two agree. With batches of four, or of examples that resemble each other,
they do not, and the network is trained with the first and tested with the second. Ioffe
(2017) corrects the output of the batch by an affine map that makes it what the running
statistics would have made of it.

### 5.1  Forward

Shapes are those of chapter 1. With the running mean m and variance u, as they are before
this batch, a channel has

    ρ = √(v + ε)/√(u + ε), kept within 1/ρ_max and ρ_max              [BR.1]
    d = (μ − m)/√(u + ε), kept within ±d_max                          [BR.2]
    yᵢ = γ·(ρ·x̂ᵢ + d) + β                                             [BR.3]

with the limits ρ_max (`r_max`, at least 1) and d_max. The paper calls ρ r, which is taken
here, and keeps a running standard deviation where we keep u, as batch norm does.
*/
static nrm_acc nrmi_clamp(nrm_acc v, nrm_acc low, nrm_acc high)
{
    return v < low ? low : v > high ? high : v;
}

/* Train mode; the arguments have been checked. */
static int nrmi_renorm(nrm_real *y, nrm_acc *ratio, nrm_acc *offset, nrm_acc *mean, nrm_acc *rstd,
                       nrm_running *running, const nrm_real *x, const nrm_real *gamma,
                       const nrm_real *beta, nrm_acc r_max, nrm_acc d_max, nrm_acc eps,
                       const nrmi_view *v)
{
    const size_t C = v->groups, step = nrmi_strip(v);
    const nrm_acc M = (nrm_acc)v->runs * (nrm_acc)v->length;
    size_t c;
    int lost = 0;
    NRM_SHARE(C * v->runs * v->length, lost)
    for (c = 0; c < C; c += step) {
        const size_t w = nrmi_least(C - c, step);
        nrm_acc scale[NRM_SLOTS], shift[NRM_SLOTS];
        nrmi_moments t;
        size_t k;
        nrmi_moments_of(&t, x, v, c, w);
        lost |= nrmi_lost(&t, w, 1);
        for (k = 0; k < w; k++) {
            const size_t i = c + k;
            const nrm_acc m = (nrm_acc)running->mean[i], g = nrmi_or(gamma, i, 1);
            const nrm_acc r = 1 / NRM_SQRT((nrm_acc)running->var[i] + eps);
            ratio[i] = nrmi_clamp(NRM_SQRT(t.var[k] + eps) * r, 1 / r_max, r_max); /* BR.1 */
            offset[i] = nrmi_clamp((t.mean[k] - m) * r, -d_max, d_max);            /* BR.2 */
            mean[i] = t.mean[k];
            rstd[i] = 1 / NRM_SQRT(t.var[k] + eps);         /* BN.3 */
            scale[k] = g * rstd[i] * ratio[i];              /* BR.3 */
            shift[k] = nrmi_or(beta, i, 0) + g * offset[i]; /* BR.3 */
            lost |= !nrmi_finite(r) || !nrmi_finite(rstd[i]);
        }
        nrmi_affine(y, x, &t.at, scale, shift, v, c, w); /* BR.3 */
        lost |= nrmi_track(running, t.mean, t.var, c, w, M);
    }
    running->batches++;
    return lost ? NRM_NONFINITE : NRM_OK;
}

NRM_DEF int nrm_batchrenorm_forward(nrm_real *y, nrm_acc *ratio, nrm_acc *offset, nrm_acc *mean,
                                    nrm_acc *rstd, nrm_running *running, const nrm_real *x,
                                    const nrm_real *gamma, const nrm_real *beta, nrm_real r_max,
                                    nrm_real d_max, int mode, nrm_real eps, size_t N, size_t C,
                                    size_t S)
{
    const int need = NRMI_NEEDED;
    const nrmi_arg args[] = {NRM_FORWARD_ARGS(N * C * S, C, C, need, need, need),
                             NRM_RUNNING_ARGS(C, NRMI_OUT | need),
                             NRM_ARG(ratio, C, NRMI_OUT | need),
                             NRM_ARG(offset, C, NRMI_OUT | need)};
    const nrmi_view v = nrmi_channels(N, C, S);
    int rc = nrmi_check_batchnorm(mode, eps, N, C, S);
    if (rc == NRM_OK && !(r_max >= 1 && d_max >= 0)) rc = NRM_ERATE;
    if (rc != NRM_OK || N == 0) return rc;
    if (mode != NRM_TRAIN)
        return nrm_batchnorm_forward(y, mean, rstd, running, x, gamma, beta, mode, eps, N, C, S);
    rc = NRM_CHECK(args);
    if (rc == NRM_OK) rc = nrmi_check_running(running, NRM_TRAIN, C); /* its weight, */
    if (rc == NRM_OK) rc = nrmi_check_running(running, NRM_INFER, C); /* and its values */
    if (rc != NRM_OK) return rc;
    return nrmi_renorm(y, ratio, offset, mean, rstd, running, x, gamma, beta, (nrm_acc)r_max,
                       (nrm_acc)d_max, (nrm_acc)eps, &v);
}

/*
If neither limit applies, ρ·x̂ + d is (x − m)/√(u + ε), and y that of infer mode, BN.11. If
the limits are 1 and 0, y is that of plain batch norm. One begins with these, since at first
the running statistics cannot be trusted, and lets the limits rise to about 3 and 5 in the
course of the training. The modes infer and frozen are those of batch norm.

### 5.2  Backward

ρ and d are taken as constants of the step: they only choose an affine map. Infer mode
differs in the same point: no gradient flows through its statistics. So BR.3 is batch norm
with γ·ρ for γ and β + γ·d for β:

    dγ = ∑ᵢ dyᵢ·(ρ·x̂ᵢ + d) = ρ·∑ᵢ dyᵢ·x̂ᵢ + d·∑ᵢ dyᵢ                    [BR.4]
    dxᵢ = (γ·ρ)·r·(dyᵢ − ⟨dy⟩ − x̂ᵢ·⟨dy·x̂⟩)                            [BR.5]

and dβ is BN.12. So the output can be that of inference, but the gradient is not. The
projection of BN.19 is still there, and with it what is odd about small batches (BN.23);
only its scale r·ρ is that of the running statistics, 1/√(u + ε), where the limits do not
apply.
*/
NRM_DEF int nrm_batchrenorm_backward(nrm_real *dx, nrm_real *dgamma, nrm_real *dbeta,
                                     const nrm_real *dy, const nrm_real *x, const nrm_acc *ratio,
                                     const nrm_acc *offset, const nrm_acc *mean,
                                     const nrm_acc *rstd, const nrm_real *gamma, int mode, size_t N,
                                     size_t C, size_t S)
{
    const nrmi_arg args[] = {NRM_BACKWARD_ARGS(N * C * S, C, C, NRMI_NEEDED),
                             NRM_ARG(ratio, C, NRMI_NEEDED), NRM_ARG(offset, C, NRMI_NEEDED)};
    const nrmi_view v = nrmi_channels(N, C, S);
    const size_t step = nrmi_strip(&v);
    const nrm_acc M = (nrm_acc)N * (nrm_acc)S;
    size_t c;
    int lost = 0, rc = nrmi_check_batchnorm(mode, NRM_EPS, N, C, S);
    if (mode != NRM_TRAIN)
        return nrm_batchnorm_backward(dx, dgamma, dbeta, dy, x, mean, rstd, gamma, mode, N, C, S);
    if (rc == NRM_OK && N > 0) rc = NRM_CHECK(args);
    if (rc != NRM_OK || N == 0) return rc;
    NRM_SHARE(N * C * S, lost)
    for (c = 0; c < C; c += step) {
        const size_t w = nrmi_least(C - c, step);
        nrm_acc scale[NRM_SLOTS], sum[NRM_SLOTS];
        nrmi_centre mu;
        nrmi_sums s;
        size_t k;
        nrmi_saved(&mu, mean + c, x, &v, c, w);
        nrmi_sums_of(&s, dy, NULL, x, &mu, rstd + c, &v, c, w); /* BN.12 */
        for (k = 0; k < w; k++)
            sum[k] = ratio[c + k] * s.dy_xhat[k] + offset[c + k] * s.dy[k]; /* BR.4 */
        nrmi_give(dbeta, c, s.dy, w);
        nrmi_give(dgamma, c, sum, w);
        for (k = 0; k < w; k++) scale[k] = nrmi_or(gamma, c + k, 1) * rstd[c + k] * ratio[c + k];
        if (dx != NULL)
            nrmi_project(dx, dy, NULL, x, &mu, rstd + c, scale, &s, 1 / M, &v, c, w); /* BR.5 */
    }
    return lost;
}

/*
## 6  Group and RMS normalization

*The question they answer: what else can be averaged, if not the batch?*

Layer norm averages all channels of an image alike. Group norm (Wu and He 2018) averages G
groups of channels apart from each other; with G = C it is instance norm (Ulyanov et al.
2016), every channel by itself. RMS norm (Zhang and Sennrich 2019) leaves the mean out, and
finds that it is not missed. None of them knows a batch or has anything to remember. ε is an
argument like any other, and a model brings its own: 10⁻⁵ and 10⁻⁶ are both usual.

### 6.1  Group norm: shapes

The tensor is `[N][C][S]`, as for batch norm; γ and β are `[C]`, one for each channel; μ and
r are `[N][G]`. The K = C/G channels of a group lie side by side, M = K·S values in all. So
for the statistics a group is a *row* of layer norm, and an example is G rows. What differs
is the γ that a value meets: that of its channel, the same for S neighbours, and another one
in the next group. Below, a single group is meant, c its channels, s their positions. One
value per group is refused, as in batch norm: y would be β_c whatever x is.
*/
static int nrmi_check_groups(size_t N, size_t C, size_t S, size_t G)
{
    const int rc = nrmi_check_sizes(N, C, S);
    if (rc == NRM_OK && (G == 0 || C % G != 0)) return NRM_ESIZE;
    return rc == NRM_OK && C == G && S == 1 ? NRM_EBATCH : rc;
}

/*
### 6.2  Group norm: forward

    μ = (1/M)·∑_c ∑ₛ x_cs                                             [GN.1]
    r = 1/√((1/M)·∑_c ∑ₛ (x_cs − μ)² + ε)                             [GN.2]
    y_cs = γ_c·(x_cs − μ)·r + β_c                                     [GN.3]
*/
NRM_DEF int nrm_groupnorm_forward(nrm_real *y, nrm_acc *mean, nrm_acc *rstd, const nrm_real *x,
                                  const nrm_real *gamma, const nrm_real *beta, nrm_real eps,
                                  size_t N, size_t C, size_t S, size_t G)
{
    const int needed = NRMI_NEEDED | (mean == NULL && rstd == NULL ? NRMI_IN_PLACE : 0);
    const nrmi_arg args[] = {NRM_FORWARD_ARGS(N * C * S, N * G, C, needed, needed, 0)};
    const size_t K = G > 0 ? C / G : 0;
    const nrmi_view groups = nrmi_rows(N * G, K * S), channels = nrmi_rows(N * C, S);
    size_t n;
    int lost = 0, rc = nrmi_check_groups(N, C, S, G);
    if (rc == NRM_OK) rc = nrmi_check_eps(eps);
    if (rc != NRM_OK || N == 0) return rc;
    if (S == 1) return nrmi_rows_forward(0, y, mean, rstd, x, gamma, beta, eps, N * G, K, G);
    if ((mean == NULL) != (rstd == NULL)) return NRM_ENULL;
    rc = NRM_CHECK(args);
    if (rc != NRM_OK) return rc;
    NRM_SHARE(N * C * S, lost)
    for (n = 0; n < N * G; n++) {
        nrmi_moments t;
        nrm_acc r, low;
        size_t k;
        nrmi_moments_of(&t, x, &groups, n, 1);     /* GN.1 */
        r = 1 / NRM_SQRT(t.var[0] + (nrm_acc)eps); /* GN.2 */
        lost |= nrmi_lost(&t, 1, 0) || !nrmi_finite(r);
        low = (nrm_acc)(nrm_real)(-(nrm_acc)t.at.low[0] * r); /* rounded as along a row */
        t.at.low[0] = 0;
        for (k = 0; k < K; k++) {
            const nrm_acc g = nrmi_or(gamma, n % G * K + k, 1), b = nrmi_or(beta, n % G * K + k, 0);
            const nrm_acc scale = g * (nrm_acc)(nrm_real)r, shift = b + g * low;
            nrmi_affine(y, x, &t.at, &scale, &shift, &channels, n * K + k, 1); /* GN.3 */
        }
        if (mean != NULL) mean[n] = t.mean[0];
        if (rstd != NULL) rstd[n] = r;
    }
    return lost ? NRM_NONFINITE : NRM_OK;
}

/*
G = 1 is layer norm over channels and positions; with S = 1 that is chapter 2 to the last
bit. What PyTorch writes as `GroupNorm(8, 64)` is, for 32 images of 28 x 28, with `mean` and
`rstd` of 32 x 8 numbers each,

```c sketch
rc = nrm_groupnorm_forward(y, mean, rstd, x, gamma, beta, NRM_EPS, 32, 64, 28 * 28, 8);
```

### 6.3  Group norm: backward

Layer norm's formulas hold, with g = γ_c·dy. But a sum over the positions of a channel has γ
as a common factor, and is needed three times: for β's gradient, for γ's, and, times γ, for
the means of the group. It is made once.

    dβ_c = ∑ₙ ∑ₛ dy_ncs                                               [GN.4]
    dγ_c = ∑ₙ ∑ₛ dy_ncs·x̂_ncs                                         [GN.5]
    ⟨g⟩ = (1/M)·∑_c γ_c·∑ₛ dy_cs, ⟨g·x̂⟩ = (1/M)·∑_c γ_c·∑ₛ dy_cs·x̂_cs  [GN.6]
    dx_cs = r·(γ_c·dy_cs − ⟨g⟩ − x̂_cs·⟨g·x̂⟩)                          [GN.7]
*/

/* dx of group n, whose K channels begin with first; their sums are added to total, if wanted. */
static void nrmi_group_backward(nrm_real *dx, nrmi_sums *total, const nrm_real *dy,
                                const nrm_real *x, const nrm_acc *mean, const nrm_acc *rstd,
                                const nrm_real *gamma, const nrmi_view *groups,
                                const nrmi_view *channels, size_t n, size_t first)
{
    const nrm_acc share = 1 / (nrm_acc)groups->length;
    const size_t K = groups->length / channels->length;
    nrmi_centre mu;
    nrmi_sums s, m;
    size_t k;
    nrmi_saved(&mu, mean + n, x, groups, n, 1);
    m.dy[0] = m.dy_xhat[0] = 0;
    for (k = 0; k < K; k++) {
        const nrm_acc g = nrmi_or(gamma, first + k, 1);
        nrmi_sums_of(&s, dy, NULL, x, &mu, rstd + n, channels, n * K + k, 1);
        m.dy[0] += g * s.dy[0];           /* GN.6 */
        m.dy_xhat[0] += g * s.dy_xhat[0]; /* GN.6 */
        if (total == NULL) continue;
        total->dy[first + k] += s.dy[0];           /* GN.4 */
        total->dy_xhat[first + k] += s.dy_xhat[0]; /* GN.5 */
    }
    for (k = 0; k < K && dx != NULL; k++) {
        const nrm_acc g = nrmi_or(gamma, first + k, 1);
        nrmi_project(dx, dy, &g, x, &mu, rstd + n, rstd + n, &m, share, channels, n * K + k,
                     1); /* GN.7 */
    }
}

/* The gradients of gamma and beta of channel c alone. */
static void nrmi_channel_backward(nrm_real *dgamma, nrm_real *dbeta, const nrm_real *dy,
                                  const nrm_real *x, const nrm_acc *mean, const nrm_acc *rstd,
                                  const nrmi_view *groups, const nrmi_view *channels, size_t c,
                                  size_t C)
{
    const size_t K = groups->length / channels->length;
    nrm_acc sum = 0, sum_xhat = 0;
    nrmi_centre mu;
    nrmi_sums s;
    size_t i;
    for (i = c; i < channels->groups; i += C) { /* i / K is the group */
        nrmi_saved(&mu, mean + i / K, x, groups, i / K, 1);
        nrmi_sums_of(&s, dy, NULL, x, &mu, rstd + i / K, channels, i, 1);
        sum += s.dy[0];           /* GN.4 */
        sum_xhat += s.dy_xhat[0]; /* GN.5 */
    }
    nrmi_give(dbeta, c, &sum, 1);
    nrmi_give(dgamma, c, &sum_xhat, 1);
}

NRM_DEF int nrm_groupnorm_backward(nrm_real *dx, nrm_real *dgamma, nrm_real *dbeta,
                                   const nrm_real *dy, const nrm_real *x, const nrm_acc *mean,
                                   const nrm_acc *rstd, const nrm_real *gamma, size_t N, size_t C,
                                   size_t S, size_t G)
{
    const nrmi_arg args[] = {NRM_BACKWARD_ARGS(N * C * S, N * G, C, NRMI_NEEDED)};
    const size_t K = G > 0 ? C / G : 0;
    const nrmi_view groups = nrmi_rows(N * G, K * S), channels = nrmi_rows(N * C, S);
    const int wanted = dgamma != NULL || dbeta != NULL;
    const int together = wanted && dx != NULL && C <= NRM_SLOTS && nrmi_threads(N * C * S) == 1;
    nrmi_sums total;
    size_t n, c;
    int lost = 0, rc = nrmi_check_groups(N, C, S, G);
    if (rc != NRM_OK || N == 0) return rc;
    if (S == 1)
        return nrmi_rows_backward(0, dx, dgamma, dbeta, dy, x, mean, rstd, gamma, N * G, K, G);
    rc = NRM_CHECK(args);
    if (rc != NRM_OK) return rc;
    for (c = 0; c < C && together; c++) total.dy[c] = total.dy_xhat[c] = 0;
    if (wanted && !together) { /* first, since dx may be dy */
        NRM_SHARE(N * C * S, lost)
        for (c = 0; c < C; c++)
            nrmi_channel_backward(dgamma, dbeta, dy, x, mean, rstd, &groups, &channels, c, C);
    }
    if (dx != NULL) {
        NRM_SHARE(N * C * S, lost)
        for (n = 0; n < N * G; n++)
            nrmi_group_backward(dx, together ? &total : NULL, dy, x, mean, rstd, gamma, &groups,
                                &channels, n, n % G * K);
    }
    nrmi_give(together ? dbeta : NULL, 0, total.dy, C);
    nrmi_give(together ? dgamma : NULL, 0, total.dy_xhat, C);
    return lost;
}

/*
### 6.4  RMS norm

Rows are `[N][D]` as in layer norm, with 0 in the place of μ, and usually without β:

    q = (1/D)·∑ⱼ xⱼ², r = 1/√(q + ε)                                  [RMS.1]
    yᵢ = γᵢ·xᵢ·r                                                      [RMS.2]
*/
NRM_DEF int nrm_rmsnorm_forward(nrm_real *y, nrm_acc *rstd, const nrm_real *x,
                                const nrm_real *gamma, nrm_real eps, size_t N, size_t D)
{
    return nrmi_rows_forward(1, y, NULL, rstd, x, gamma, NULL, eps, N, D, 1); /* RMS.1, RMS.2 */
}

/*
Of the three paths by which x reaches x̂ = x·r the one through the mean is gone, and with it
⟨g⟩ in LN.14, for g = dy·γ:

    dγᵢ = ∑ₙ dyₙᵢ·x̂ₙᵢ                                                 [RMS.3]
    dxᵢ = r·(gᵢ − x̂ᵢ·⟨g·x̂⟩)                                           [RMS.4]

So one direction is removed instead of two: stretching x leaves y alone, up to ε, but adding
a constant does not.

    ∑ᵢ dxᵢ·x̂ᵢ = D·ε·r³·⟨g·x̂⟩                                          (RMS.5)
*/
NRM_DEF int nrm_rmsnorm_backward(nrm_real *dx, nrm_real *dgamma, const nrm_real *dy,
                                 const nrm_real *x, const nrm_acc *rstd, const nrm_real *gamma,
                                 size_t N, size_t D)
{
    return nrmi_rows_backward(1, dx, dgamma, NULL, dy, x, NULL, rstd, gamma, N, D,
                              1); /* RMS.3, RMS.4 */
}

/*
## 7  Weight normalization, and folding

*The question it answers: can we have the scale invariance of batch norm without a batch?*

Salimans and Kingma (2016) write the weight vector of each unit as a length g times a
direction v/|v|, and learn both. The gradient changes as in RMS norm, with a column of
weights in the place of a row of data (compare WN.8 with RMS.4), and no example depends on
another.

### 7.1  Shapes

`v`, `W`, `dv` and `dW` are `[in][out]`, as in the linear layer, so the weights of a unit
are a column; `g`, `dg` and the saved `norm` are `[out]`. Below, a single column is meant,
and i, j run over its `in` weights. The letters are those of the paper: v is a vector here
and not a variance, g a length and not a gradient. Run the layer before the linear layer in
the forward pass and after it in the backward pass, on the `dW` of that pass alone.
*/
static inline nrm_acc nrmi_magnitude(nrm_acc a)
{
    return a > -a ? a : -a;
}

/* ∑ aᵢ·(bᵢ/scale) down one column. */
static nrm_acc nrmi_scaled_dot(const nrm_real *a, const nrm_real *b, nrm_acc scale, size_t in,
                               size_t out)
{
    nrm_acc sum = 0;
    size_t i;
    for (i = 0; i < in; i++) sum += (nrm_acc)a[i * out] * ((nrm_acc)b[i * out] / scale);
    return sum;
}

/* Are sums of squares and products in range at this length? Not if it is a NaN. */
static int nrmi_ordinary(nrm_acc norm)
{
    return norm > (nrm_acc)1e-12 && norm < (nrm_acc)1e12;
}

/* g/n: 0 for a column of zeros, NaN for a length that is not finite. */
static nrm_acc nrmi_gain(nrm_acc g, nrm_acc norm)
{
    if (!nrmi_finite(norm)) return norm - norm;
    return norm > 0 ? g / norm : 0;
}

/*
### 7.2  Forward

    n = |v| = √(∑ᵢ vᵢ²)                                               [WN.1]
    Wᵢ = g·vᵢ/n                                                       [WN.2]

No ε is needed: W has length |g| to rounding, for long and short v, as long as g/n is in the
normal range of `nrm_real`. Squares of floats, however, leave the range of float long before
the values do. If n is not between 10⁻¹² and 10¹², it is computed again from products that
stay in range:

    n = √t·√(∑ᵢ vᵢ·(vᵢ/t)), t = maxᵢ |vᵢ|                             [WN.3]

A column of zeros has no direction. Its W is 0, the status is `NRM_NONFINITE`, and its dv
and dg get nothing, so it stays as it is. A column with a NaN or an infinity is all NaN.
Neither affects other columns.
*/
static nrm_acc nrmi_scaled_norm(const nrm_real *v, size_t in, size_t out)
{
    nrm_acc t = 0;
    size_t i;
    for (i = 0; i < in; i++) {
        const nrm_acc size = nrmi_magnitude((nrm_acc)v[i * out]);
        if (size > t || size != size) t = size; /* a NaN stays */
    }
    return t == 0 ? 0 : NRM_SQRT(t) * NRM_SQRT(nrmi_scaled_dot(v, v, t, in, out)); /* WN.3 */
}

NRM_DEF int nrm_weightnorm_forward(nrm_real *W, nrm_acc *norm, const nrm_real *v, const nrm_real *g,
                                   size_t in, size_t out)
{
    const nrmi_arg args[] = {NRM_ARG(W, in * out, NRMI_OUT | NRMI_NEEDED),
                             NRM_ARG(norm, out, NRMI_OUT), NRM_ARG(v, in * out, NRMI_NEEDED),
                             NRM_ARG(g, out, NRMI_IN)};
    const nrmi_view view = nrmi_channels(in, out, 1);
    const size_t step = nrmi_strip(&view);
    size_t c;
    int lost = 0, rc = nrmi_check_sizes(1, in, out);
    if (rc == NRM_OK) rc = NRM_CHECK(args);
    if (rc != NRM_OK) return rc;
    NRM_SHARE(in * out, lost)
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
            if (!nrmi_ordinary(n)) n = nrmi_scaled_norm(v + c + k, in, out);
            gain[k] = nrmi_gain(nrmi_or(g, c + k, 1), n);
            if (norm != NULL) norm[c + k] = n;
            lost |= !(n > 0) || !nrmi_fits(gain[k]);
        }
        nrmi_affine(W, v, &origin, gain, NULL, &view, c, w); /* WN.2: (v − 0)·g/n */
    }
    return lost ? NRM_NONFINITE : NRM_OK;
}

/*
Salimans and Kingma also start g, and the bias b, from the data. With g = 1 and no bias, one
batch has mean μ and standard deviation σ at a unit, which batch norm saves (with ε in σ),
and

    g = 1/σ, b = −μ/σ                                                 (WN.4)

standardizes these outputs, as batch norm would, but at this one moment only:

```c sketch
nrm_weightnorm_forward(W, NULL, v, NULL, in, out);       // g = 1
nrm_linear_forward(z, x, W, NULL, N, in, out);
nrm_batchnorm_forward(y, mean, rstd, NULL, z, NULL, NULL, NRM_TRAIN, eps, N, out, 1);
for (j = 0; j < out; j++) g[j] = (nrm_real)rstd[j], b[j] = (nrm_real)(-mean[j] * rstd[j]);
```

### 7.3  Backward

W depends on v directly and through n:

    ∂n/∂vᵢ = vᵢ/n                                                     (WN.5)
    dg = ∑ᵢ dWᵢ·vᵢ/n                                                  [WN.6]
    ∂Wⱼ/∂vᵢ = (g/n)·(δᵢⱼ − vᵢ·vⱼ/n²)                                  (WN.7)

Sum over j with dWⱼ. The sum along v is dg, as this call adds it to the gradient of g:

    dvᵢ = ∑ⱼ dWⱼ·∂Wⱼ/∂vᵢ = (g/n)·(dWᵢ − dg·vᵢ/n)                      [WN.8]
*/
NRM_DEF int nrm_weightnorm_backward(nrm_real *dv, nrm_real *dg, const nrm_real *dW,
                                    const nrm_real *v, const nrm_acc *norm, const nrm_real *g,
                                    size_t in, size_t out)
{
    const nrmi_arg args[] = {NRM_ARG(dv, in * out, NRMI_OUT),    NRM_ARG(dg, out, NRMI_OUT),
                             NRM_ARG(dW, in * out, NRMI_NEEDED), NRM_ARG(v, in * out, NRMI_NEEDED),
                             NRM_ARG(norm, out, NRMI_NEEDED),    NRM_ARG(g, out, NRMI_IN)};
    const nrmi_view view = nrmi_channels(in, out, 1);
    const size_t step = nrmi_strip(&view);
    size_t c;
    int lost = 0, rc = nrmi_check_sizes(1, in, out);
    if (rc == NRM_OK) rc = NRM_CHECK(args);
    if (rc != NRM_OK) return rc;
    NRM_SHARE(in * out, lost)
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
            if (!nrmi_ordinary(n)) sum = nrmi_scaled_dot(dW + c + k, v + c + k, n, in, out);
            if (n == 0) sum = 0;
            along[k] = (nrm_real)(n == 0 ? 0 : sum / n);
            gain[k] = (nrm_real)nrmi_gain(nrmi_or(g, c + k, 1), n);
            nrmi_give(dg, c + k, &sum, 1);
        }
        for (i = c; i < in * out && dv != NULL; i += out)
            for (k = 0; k < w; k++)
                dv[i + k] += gain[k] * (dW[i + k] - along[k] * v[i + k]); /* WN.8 */
    }
    return lost;
}

/*
### 7.4  What it means

WN.8 is a projection, without an ε: what dW has along v goes to g, and v gets the rest.

    ∑ᵢ dvᵢ·vᵢ = 0                                                     (WN.9)

By Pythagoras, a step of gradient descent with learning rate η can then only make v longer,

    |v − η·dv|² = |v|² + η²·|dv|²                                     (WN.10)

and dv is proportional to g/n. So too large a learning rate makes the vectors longer, their
gradients smaller and their turns slower: a brake that adjusts itself, but does not let go
again. Under momentum or Adam, whose steps are not along dv, WN.10 does not hold.

**Batch norm is weight norm in another metric.** Let z = x·w be one unit before batch norm,
with x the row of its inputs, and average over the N rows of the batch. z has mean m·w,
where m is the row of the inputs' means, and its variance depends on w through their
covariance S:

    S = ⟨(x − m)ᵀ·(x − m)⟩, σ² = wᵀ·S·w                               (WN.11)

So batch norm, ε included, is a linear layer with normalized weights and a bias that
subtracts the mean (Kohler and others, 2018, for m = 0):

    BN(x·w) = x·ŵ + (β − m·ŵ), ŵ = γ·w/√(wᵀ·S·w + ε)                  (WN.12)

This is WN.2 with γ for g, and the length √(wᵀ·S·w) for √(wᵀ·w): weight norm is what batch
norm would be if inputs had mean 0 and the unit matrix for S. In a layer of several units
each column of W has its own length, a root of the diagonal of WᵀSW; the root of that matrix
would mix the units. S has to be the covariance. ⟨xᵀ·x⟩, which one also reads, is the same
only if all means are 0: for one input with the values 1 and 3, w = γ = 1 and β = ε = 0,
batch norm gives −1 and 1, as does S = 1, but ⟨x²⟩ = 5 gives −1/√5 and 1/√5.

The gradient is the same either way: xᵀ·dz with dz of BN.19, or from WN.12 with ∂σ²/∂w =
2·S·w, where j runs over the rows. Multiplied by w, as in BN.22, only ε leaves anything. So
WN.10 holds for weights before batch norm too, up to ε.

    dw = γ·r·(a − r²·(a·w)·S·w), a = ∑ⱼ dyⱼ·(xⱼ − m)ᵀ, r = 1/√(σ² + ε)  (WN.13)
    ∑ᵢ dwᵢ·wᵢ = γ·r·ε·r²·(a·w)                                        (WN.14)

### 7.5  Folding

In inference batch norm is a fixed affine map of each channel. If the layer before it is
linear or a convolution, the map can go into that layer's weights, and batch norm costs
nothing. With an activation in between, it has to be folded into the layer that comes next,
or stay.

The weights are `[outer][C][inner]`, with C the outputs: `[in][out]`, as in the linear layer
here, is outer = in, inner = 1; `[out][in]` and convolutions `[out][in][h][w]` are outer =
1, inner = all that follows. One channel is meant, and k runs over its weights. The layer
gives z = ∑ₖ xₖ·Wₖ + b, and BN.11 makes a·(z − m) + β of it:

    W′ₖ = a·Wₖ, a = γ/√(u + ε)                                        [FOLD.1]
    b′ = a·(b − m) + β                                                [FOLD.2]
    ∑ₖ xₖ·W′ₖ + b′ = γ·(∑ₖ xₖ·Wₖ + b − m)/√(u + ε) + β                (FOLD.3)

Known bugs: two libraries forgot to scale b along with m, which nobody sees as long as b is
0, and a layer before batch norm rarely has a bias. Another multiplied along the wrong axis,
which goes unnoticed if the matrix is square; here, too, a matrix `[out][in]` passed as
`[in][out]` is in bounds. Converted files have held a variance just below zero: that is
refused (`NRM_ESTATS`) before anything is written.
*/
NRM_DEF int nrm_batchnorm_fold(nrm_real *W_out, nrm_real *b_out, const nrm_real *W,
                               const nrm_real *b, const nrm_running *running, const nrm_real *gamma,
                               const nrm_real *beta, nrm_real eps, size_t outer, size_t C,
                               size_t inner)
{
    const int out = NRMI_OUT | NRMI_NEEDED;
    const nrmi_arg weights[] = {NRM_ARG(W_out, outer * C * inner, out | NRMI_IN_PLACE),
                                NRM_ARG(b_out, C, out),
                                NRM_ARG(W, outer * C * inner, NRMI_NEEDED | NRMI_IN_PLACE),
                                NRM_ARG(gamma, C, NRMI_IN),
                                NRM_ARG(running != NULL ? running->mean : NULL, C, NRMI_NEEDED),
                                NRM_ARG(running != NULL ? running->var : NULL, C, NRMI_NEEDED),
                                NRM_ARG(beta, C, NRMI_IN)};
    const nrmi_arg biases[] = {NRM_ARG(b_out, C, NRMI_OUT | NRMI_IN_PLACE),
                               NRM_ARG(b, C, NRMI_IN_PLACE),
                               NRM_ARG(W_out, outer * C * inner, NRMI_OUT)};
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
FOLD.3 is exact, but W′ and b′ are rounded, once each. If the sum over k were computed
without error, a folded layer in float would be off by no more than

    |error of y| ≤ η·(∑ₖ |xₖ·W′ₖ| + |b′|)                             (FOLD.4)

with η = 2⁻²⁴. Where `nrm_acc` is no wider than the data, as with `NRM_DOUBLE` (then η =
2⁻⁵³), 6η takes its place, and |a·(b − m)| + |β| that of |b′|. Where m is a thousand times
√u, so are the terms beside y and their roundings; but without folding z is rounded as
coarsely before m is subtracted. `docs/10_conventions.md` has measurements, the way back
from W′ and b′, and the arithmetic that turns the statistics of other libraries into ours.
*/

/*
## 8  Lp batch normalization

*The question it answers: does it matter that batch norm divides by the standard deviation?*

Santurkar, Tsipras, Ilyas and Mądry (2018) divide by other sizes instead: the mean of |x|,
the root of the mean of x², the largest |x|. None of these gives a channel a fixed variance,
and the paper's networks trained about as fast. So the variance is not what helps; division
by some size, through which gradients flow, may be.

### 8.1  Forward

Shapes are those of chapter 1, and one channel is meant. `mean` and `scale`, which is t, are
saved, `[C]` each. With μ of BN.1,

    cᵢ = xᵢ − μ                                                       [LP.1]
    t = ⟨|u|⟩ (L1), √⟨u²⟩ (L2), maxᵢ |uᵢ| (L∞); u = x, or c if centred  [LP.2]

The paper measures u = x, *before* the mean is subtracted. Then t is at least |μ|, and a
channel whose mean is ten times its spread comes out ten times too small. With `NRM_CENTRED`
added, t depends on the deviations alone.
*/
#define NRM_LP_SIGN(u) ((nrm_real)(((u) > 0) - ((u) < 0)))
#define NRM_LP_SUMS (NRM_SLOTS > 1 ? 64 / sizeof(nrm_real) : 1) /* L of SUM.8 */

static inline nrm_acc nrmi_lp_u(nrm_real x, const nrmi_centre *mu, size_t k, int p)
{
    if (p < NRM_CENTRED) return (nrm_acc)x;
    return ((nrm_acc)x - (nrm_acc)mu->high[k]) - (nrm_acc)mu->low[k]; /* LP.1 */
}

/* L1 and L∞: puts t in the place of the variances of w channels from g on. */
static void nrmi_lp_sizes(nrmi_moments *t, const nrm_real *x, int p, const nrmi_view *v, size_t g,
                          size_t w)
{
    const int l1 = p % NRM_CENTRED == NRM_L1;
    const int columns = v->kind == NRMI_COLUMNS;
    const size_t across = columns ? w : NRM_LP_SUMS; /* sums side by side */
    const nrm_acc share = 1 / ((nrm_acc)v->runs * (nrm_acc)v->length);
    nrm_acc size[NRM_SLOTS] = {0};
    size_t n, k, i;
    for (n = 0; n < v->runs; n++)
        for (i = 0; i < w * v->length; i += across)
            for (k = 0; k < nrmi_least(across, w * v->length - i); k++) {
                const nrm_real at = x[n * v->pitch + g * v->apart + i + k];
                const nrm_acc u = nrmi_magnitude(nrmi_lp_u(at, &t->at, columns ? k : 0, p));
                size[k] = l1 ? size[k] + u : u > size[k] ? u : size[k]; /* LP.2 */
            }
    for (n = across / 2; n > 0 && !columns; n /= 2) /* (SUM.9) */
        for (k = 0; k < n; k++)
            size[k] = l1 ? size[k] + size[k + n] : size[k] > size[k + n] ? size[k] : size[k + n];
    for (k = 0; k < w; k++) t->var[k] = l1 ? size[k] * share : size[k];
}

static int nrmi_check_lp(int p)
{
    return p < NRM_L1 || p == NRM_CENTRED || p > NRM_LINF + NRM_CENTRED ? NRM_EKIND : NRM_OK;
}

/*
    r = 1/(t + ε)                                                     [LP.3]
    yᵢ = γ·cᵢ·r + β                                                   [LP.4]
    √⟨x²⟩ = √(v + μ²), √⟨c²⟩ = √v                                     [LP.5]

ε is added to t, so compare it with t and not with t². By LP.5, L2 centred is batch norm
except for the place of ε. Running statistics hold t in the place of v. M/(M − 1) belongs to
squares and is left out. (A maximum grows with M: L∞ learns a size that depends on the batch
size.)

    m ← (1 − w)·m + w·μ, a ← (1 − w)·a + w·t                          [LP.6]
    yᵢ = γ·(xᵢ − m)/(a + ε) + β (infer, frozen)                       [LP.7]
*/
NRM_DEF int nrm_lp_batchnorm_forward(nrm_real *y, nrm_acc *mean, nrm_acc *scale,
                                     nrm_running *running, const nrm_real *x, const nrm_real *gamma,
                                     const nrm_real *beta, int p, int mode, nrm_real eps, size_t N,
                                     size_t C, size_t S)
{
    const int train = mode == NRM_TRAIN, stored = running != NULL, track = train && stored;
    const int l2 = p % NRM_CENTRED == NRM_L2, centred = p > NRM_CENTRED;
    const int saved = mode == NRM_INFER ? 0 : NRMI_NEEDED;
    const int needed = NRMI_NEEDED | (mode == NRM_INFER ? NRMI_IN_PLACE : 0);
    nrm_acc *const rstd = scale; /* t stands where other norms have r */
    const nrmi_arg args[] = {NRM_FORWARD_ARGS(N * C * S, C, C, needed, needed, saved),
                             NRM_RUNNING_ARGS(C, train ? NRMI_OUT : NRMI_IN)};
    const nrmi_view v = nrmi_channels(N, C, S);
    const size_t step = nrmi_strip(&v);
    size_t c;
    int lost = 0, rc = nrmi_check_batchnorm(mode, eps, N, C, S);
    if (rc == NRM_OK) rc = nrmi_check_lp(p);
    if (rc == NRM_OK && N > 0) rc = NRM_CHECK(args);
    if (rc == NRM_OK && N > 0) rc = nrmi_check_running(running, mode, C);
    if (rc != NRM_OK || N == 0) return rc;
    NRM_SHARE(N * C * S, lost)
    for (c = 0; c < C; c += step) {
        const size_t w = nrmi_least(C - c, step);
        nrm_acc gain[NRM_SLOTS], shift[NRM_SLOTS];
        nrmi_moments t;
        size_t k;
        if (!train) nrmi_recall_running(&t, running, c, w);
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
        if (track) /* M/(M − 1) is 1 for this M */
            lost |= nrmi_track(running, t.mean, t.var, c, w, (nrm_acc)1e30); /* LP.6 */
        for (k = 0; k < w && mean != NULL; k++) mean[c + k] = t.mean[k];
        for (k = 0; k < w && scale != NULL; k++) scale[c + k] = t.var[k];
    }
    if (track) running->batches++;
    return lost ? NRM_NONFINITE : NRM_OK;
}

/*
### 8.2  Backward

dβ and dγ are BN.12 and BN.13, with x̂ᵢ = cᵢ·r. For dx we need to know how t depends on u,
and then on x: if u is c, every uⱼ falls by 1/M of what xᵢ rises, so q loses its mean (which
is 0 for L2). xᵢ reaches x̂ⱼ directly, through μ, and through r, with ∂r/∂xᵢ = −r²·kᵢ.

    ∂t/∂uᵢ = qᵢ: sign(uᵢ)/M (L1), uᵢ/(M·t) (L2), sign(uᵢ) if |uᵢ| = t, else 0 (L∞)  [LP.8]
    ∂t/∂xᵢ = kᵢ = qᵢ, or qᵢ − ⟨q⟩ if centred                          [LP.9]
    ∂x̂ⱼ/∂xᵢ = r·(δᵢⱼ − 1/M − kᵢ·x̂ⱼ)                                   (LP.10)
    dxᵢ = γ·r·(dyᵢ − ⟨dy⟩ − kᵢ·∑ⱼ dyⱼ·x̂ⱼ)                             [LP.11]

In L∞ only the first value in memory with |uᵢ| = t counts; sign(0) is 0. At a tie, or in L1
where a value is 0, t has a kink, and this is one of its subgradients. In BN.19 kᵢ is x̂ᵢ/M.
Here what dy has along x̂ is subtracted along another direction k: from all values alike
except for their signs (L1), or from a single one (L∞).
*/
static void nrmi_lp_project(nrm_real *dx, const nrm_real *dy, const nrm_real *x,
                            const nrmi_centre *mu, const nrm_acc *size, const nrm_acc *gain,
                            const nrmi_sums *sums, int p, const nrmi_view *v, size_t g, size_t w)
{
    const int kind = p % NRM_CENTRED, centred = p > NRM_CENTRED;
    const int columns = v->kind == NRMI_COLUMNS;
    const nrm_acc M = (nrm_acc)v->runs * (nrm_acc)v->length;
    nrm_acc largest[NRM_SLOTS] = {0}, signs[NRM_SLOTS] = {0};
    nrm_real dy_mean[NRM_SLOTS], slope[NRM_SLOTS], shift[NRM_SLOTS], scale[NRM_SLOTS];
    size_t first[NRM_SLOTS] = {0}, n, k, j;
    for (n = 0; n < v->runs && (kind == NRM_LINF || (kind == NRM_L1 && centred)); n++)
        for (j = 0; j < w * v->length; j++) {
            const size_t i = n * v->pitch + g * v->apart + j, c = columns ? j : 0;
            const nrm_acc u = nrmi_lp_u(x[i], mu, c, p), most = nrmi_magnitude(u);
            const int counts = kind == NRM_L1 || most > largest[c];
            largest[c] = counts ? most : largest[c];
            first[c] = counts ? i : first[c];
            signs[c] =
                (counts ? (nrm_acc)NRM_LP_SIGN(u) : 0) + (kind == NRM_L1 || !counts ? signs[c] : 0);
        }
    for (k = 0; k < w; k++) {
        const nrm_acc part = kind == NRM_LINF ? 1 : kind == NRM_L1 ? M : M * size[k];
        const nrm_acc along = part > 0 ? -sums->dy_xhat[k] / part : 0;
        const nrm_acc u0 = centred ? -(nrm_acc)mu->low[k] : (nrm_acc)mu->high[k];
        const nrm_acc mean_sign = centred ? signs[k] * (1 / M) : 0;
        slope[k] = (nrm_real)along;
        scale[k] = (nrm_real)gain[k];
        shift[k] = (nrm_real)(-(nrm_acc)slope[k] * mean_sign); /* LP.9 */
        if (kind == NRM_L2) shift[k] = (nrm_real)(along * u0); /* u = q + u0 */
        dy_mean[k] = (nrm_real)(sums->dy[k] / M);
    }
    for (n = 0; n < v->runs; n++)
        for (j = 0; j < w * v->length; j++) {
            const size_t i = n * v->pitch + g * v->apart + j, c = columns ? j : 0;
            nrm_real q = x[i] - mu->high[c];
            if (kind != NRM_L2) q = NRM_LP_SIGN(nrmi_lp_u(x[i], mu, c, p));
            if (kind == NRM_LINF && i != first[c]) q = 0;                          /* LP.8 */
            dx[i] = ((dy[i] - dy_mean[c]) + (q * slope[c] + shift[c])) * scale[c]; /* LP.11 */
        }
}

/*
In mode frozen neither the mean nor a, which is in the place of t, depends on x:

    dxᵢ = γ·r·dyᵢ (frozen)                                            [LP.12]
*/
NRM_DEF int nrm_lp_batchnorm_backward(nrm_real *dx, nrm_real *dgamma, nrm_real *dbeta,
                                      const nrm_real *dy, const nrm_real *x, const nrm_acc *mean,
                                      const nrm_acc *scale, const nrm_real *gamma, int p, int mode,
                                      nrm_real eps, size_t N, size_t C, size_t S)
{
    const nrm_acc *const rstd = scale;
    const nrmi_arg args[] = {NRM_BACKWARD_ARGS(N * C * S, C, C, NRMI_NEEDED)};
    const nrmi_view v = nrmi_channels(N, C, S);
    const size_t step = nrmi_strip(&v);
    size_t c;
    int lost = 0, rc = mode == NRM_INFER ? NRM_EMODE : nrmi_check_batchnorm(mode, eps, N, C, S);
    if (rc == NRM_OK) rc = nrmi_check_lp(p);
    if (rc == NRM_OK && N > 0) rc = NRM_CHECK(args);
    if (rc != NRM_OK || N == 0) return rc;
    NRM_SHARE(N * C * S, lost)
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
        nrmi_give(dbeta, c, s.dy, w);
        nrmi_give(dgamma, c, s.dy_xhat, w);
        if (dx != NULL && mode == NRM_TRAIN)
            nrmi_lp_project(dx, dy, x, &mu, scale + c, gain, &s, p, &v, c, w); /* LP.11 */
        else if (dx != NULL)
            nrmi_project(dx, dy, NULL, x, &mu, r, gain, NULL, 0, &v, c, w); /* LP.12 */
    }
    return lost;
}

/*
### 8.3  What it means

t is homogeneous: doubling x doubles t. Euler's theorem for such functions gives LP.13. Sum
LP.11, multiplied by xᵢ or as it is:

    ∑ᵢ kᵢ·xᵢ = t                                                      (LP.13)
    ∑ᵢ dxᵢ·xᵢ = γ·ε·r·∑ᵢ dyᵢ·x̂ᵢ                                       (LP.14)
    ∑ᵢ dxᵢ = −γ·r·∑ⱼ dyⱼ·x̂ⱼ·∑ᵢ kᵢ, 0 if centred                        (LP.15)
    ⟨|c|⟩ ≤ √⟨c²⟩ ≤ maxᵢ |cᵢ|                                         (LP.16)

So no gradient along x except for ε, as in BN.22, whatever the size, and with it what
follows for the weights before the layer: they may grow, and their gradients shrink, without
changing what the network computes. BN.21 holds only if centred. By LP.16, centred L1 gives
the largest outputs (for normal values 1.25 times those of batch norm) and L∞ the smallest,
within β ± γ.
*/

/*
## 9  Activations, softmax and cross-entropy

*Which functions stand between the layers and at the end, and what are their gradients?*

### Activations

They work element by element, on an array of any shape.

    relu(x) = x if x > 0, else 0                                      [ACT.1]
    tanh(x) = −sign(x)·q/(2 + q), q = e^(−2|x|) − 1                   [ACT.2]
    sigmoid(x) = 1/(1 + e^(−x)) = e^x/(1 + e^x)                       [ACT.3]

Of the two forms in ACT.3 the first is for x ≥ 0. So both exponentials have arguments ≤ 0,
whatever the sign of x, and nothing overflows. A NaN stays a NaN, also through ReLU.
*/

/* tanh, or else sigmoid, of n <= NRM_SOME values; y may be x. */
static void nrmi_squash(nrm_real *y, const nrm_real *x, int activation, size_t n)
{
    const nrm_acc stretch = activation == NRM_TANH ? 2 : 1;
    nrm_acc v[NRM_SOME], e[NRM_SOME];
    size_t i;
    for (i = 0; i < n; i++) v[i] = (nrm_acc)x[i];
    for (; i < NRM_SOME; i++) v[i] = 0;
    for (i = 0; i < NRM_SOME; i++) e[i] = stretch * (v[i] < 0 ? v[i] : -v[i]); /* -|x| or twice */
    if (activation == NRM_TANH) {
        nrmi_expm1(e);
        for (i = 0; i < NRM_SOME; i++) {
            const nrm_acc t = (0 - e[i]) / (2 + e[i]); /* 0 - q, so that tanh(0) is 0 and not -0 */
            v[i] = v[i] < 0 ? -t : t; /* ACT.2 */
        }
    } else {
        nrmi_exp(e);
        for (i = 0; i < NRM_SOME; i++) v[i] = (v[i] < 0 ? e[i] : 1) / (1 + e[i]); /* ACT.3 */
    }
    for (i = 0; i < n; i++) y[i] = (nrm_real)v[i];
}

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
    if (rc == NRM_OK && count > 0) rc = NRM_CHECK(args);
    if (rc != NRM_OK) return rc;
    if (activation == NRM_IDENTITY)
        for (i = 0; i < count; i++) y[i] = x[i];
    else if (activation == NRM_RELU)
        for (i = 0; i < count; i++) y[i] = x[i] <= 0 ? 0 : x[i]; /* ACT.1 */
    else
        for (i = 0; i < count; i += NRM_SOME)
            nrmi_squash(y + i, x + i, activation, nrmi_least(count - i, NRM_SOME));
    return NRM_OK;
}

/*
The derivatives are written with the *output*, so that the input need not be kept. At x = 0
ReLU has none; like everybody we say 0.

    relu′ = 1 if y > 0, else 0                                        [ACT.4]
    tanh′ = 1 − y²                                                    [ACT.5]
    sigmoid′ = y·(1 − y)                                              [ACT.6]
*/
NRM_DEF int nrm_activation_backward(nrm_real *dx, const nrm_real *dy, const nrm_real *y,
                                    int activation, size_t count)
{
    const nrmi_arg args[] = {NRM_ARG(dx, count, NRMI_OUT | NRMI_NEEDED | NRMI_IN_PLACE),
                             NRM_ARG(dy, count, NRMI_NEEDED | NRMI_IN_PLACE),
                             NRM_ARG(y, count, NRMI_NEEDED)};
    size_t i;
    int rc = nrmi_check_activation(activation, count);
    if (rc == NRM_OK && count > 0) rc = NRM_CHECK(args);
    if (rc != NRM_OK) return rc;
    if (activation == NRM_IDENTITY)
        for (i = 0; i < count; i++) dx[i] = dy[i];
    else if (activation == NRM_RELU)
        for (i = 0; i < count; i++) dx[i] = y[i] <= 0 ? 0 : dy[i]; /* ACT.4 */
    else if (activation == NRM_TANH)
        for (i = 0; i < count; i++) dx[i] = dy[i] * (1 - y[i] * y[i]); /* ACT.5 */
    else
        for (i = 0; i < count; i++) dx[i] = dy[i] * (y[i] * (1 - y[i])); /* ACT.6 */
    return NRM_OK;
}

/*
### Softmax and cross-entropy

For each of N examples the last layer gives C numbers, the *logits* z. Softmax turns them
into probabilities p. The loss is minus the logarithm of the probability of the right class
t, averaged over the batch. Subtracting the largest logit first changes no probability, and
no exponential can then overflow:

    h = max_c z_c                                                     [CE.1]
    Z = ∑_c e^(z_c − h)                                               [CE.2]
    p_c = e^(z_c − h)/Z                                               [CE.3]
    ℓ = −ln p_t = ln Z + h − z_t                                      [CE.4]
    L = (1/N)·∑ₙ ℓₙ                                                   [CE.5]

The right side of CE.4 needs no p_t, which may round to 0 and then has no logarithm. An
empty batch, N = 0, is allowed; its loss and its accuracy are 0.
*/
static int nrmi_check_labels(const int *labels, size_t N, size_t C)
{
    size_t n;
    for (n = 0; n < N; n++)
        if (labels[n] < 0 || (size_t)labels[n] >= C) return NRM_ELABEL;
    return NRM_OK;
}

/* CE.1 to CE.4 for one row; p may be z, or NULL. */
static nrm_acc nrmi_cross_entropy_row(nrm_real *p, const nrm_real *z, size_t label, size_t C)
{
    const nrm_acc right = (nrm_acc)z[label];
    nrm_acc h = (nrm_acc)z[0], sum = 0;
    size_t c, i;
    for (c = 1; c < C; c++)
        if ((nrm_acc)z[c] > h) h = (nrm_acc)z[c]; /* CE.1 */
    for (c = 0; c < C; c += NRM_SOME) {
        const size_t some = nrmi_least(C - c, NRM_SOME);
        nrm_acc e[NRM_SOME];
        for (i = 0; i < some; i++) e[i] = (nrm_acc)z[c + i] - h;
        for (; i < NRM_SOME; i++) e[i] = 0;
        nrmi_exp(e);
        for (i = 0; i < some; i++) sum += e[i]; /* CE.2 */
        for (i = 0; i < some && p != NULL; i++) p[c + i] = (nrm_real)e[i];
    }
    for (c = 0; c < C && p != NULL; c++) p[c] = (nrm_real)((nrm_acc)p[c] / sum); /* CE.3 */
    if (!nrmi_finite(sum)) return sum;
    return nrmi_log(sum) + (h - right); /* CE.4 */
}

NRM_DEF int nrm_cross_entropy_forward(nrm_acc *loss, nrm_real *prob, const nrm_real *logits,
                                      const int *labels, size_t N, size_t C)
{
    const int needed = N > 0 ? NRMI_NEEDED : 0;
    const nrmi_arg args[] = {NRM_ARG(loss, 1, NRMI_OUT | NRMI_NEEDED),
                             NRM_ARG(prob, N * C, NRMI_OUT | NRMI_IN_PLACE),
                             NRM_ARG(logits, N * C, needed | NRMI_IN_PLACE),
                             NRM_ARG(labels, N, needed)};
    nrm_acc sum = 0;
    size_t n;
    int rc = nrmi_check_sizes(N, C, 1);
    if (rc == NRM_OK) rc = NRM_CHECK(args);
    if (rc == NRM_OK) rc = nrmi_check_labels(labels, N, C);
    if (rc != NRM_OK) return rc;
    for (n = 0; n < N; n++)
        sum += nrmi_cross_entropy_row(prob != NULL ? prob + n * C : NULL, logits + n * C,
                                      (size_t)labels[n], C);
    *loss = N > 0 ? sum / (nrm_acc)N : 0; /* CE.5 */
    return nrmi_finite(*loss) ? NRM_OK : NRM_NONFINITE;
}

/*
In ln Z + h, which is ln ∑_c e^(z_c), h cancels; the derivative with respect to z_c is p_c.
The term −z_t adds −1 for the right class. A row's gradient sums to 0, as its p sums to 1.

    dz_c = (1/N)·(p_c − δ_ct)                                         [CE.6]
    ∑_c dz_c = 0                                                      (CE.7)
*/
NRM_DEF int nrm_cross_entropy_backward(nrm_real *dlogits, const nrm_real *prob, const int *labels,
                                       size_t N, size_t C)
{
    const nrmi_arg args[] = {NRM_ARG(dlogits, N * C, NRMI_OUT | NRMI_NEEDED | NRMI_IN_PLACE),
                             NRM_ARG(prob, N * C, NRMI_NEEDED | NRMI_IN_PLACE),
                             NRM_ARG(labels, N, NRMI_NEEDED)};
    size_t n, c;
    int rc = nrmi_check_sizes(N, C, 1);
    if (rc != NRM_OK || N == 0) return rc;
    rc = NRM_CHECK(args);
    if (rc == NRM_OK) rc = nrmi_check_labels(labels, N, C);
    if (rc != NRM_OK) return rc;
    for (n = 0; n < N; n++)
        for (c = 0; c < C; c++) {
            const nrm_acc p = (nrm_acc)prob[n * C + c], delta = (size_t)labels[n] == c ? 1 : 0;
            dlogits[n * C + c] = (nrm_real)((p - delta) / (nrm_acc)N); /* CE.6 */
        }
    return NRM_OK;
}

/* Index of the largest entry, of equals the first; C if a NaN is among them. */
static size_t nrmi_argmax_row(const nrm_real *z, size_t C)
{
    size_t c, best = 0;
    for (c = 0; c < C; c++) {
        if (z[c] != z[c]) return C;
        if (z[c] > z[best]) best = c;
    }
    return best;
}

NRM_DEF int nrm_argmax(int *labels, const nrm_real *logits, size_t N, size_t C)
{
    const nrmi_arg args[] = {NRM_ARG(labels, N, NRMI_OUT | NRMI_NEEDED),
                             NRM_ARG(logits, N * C, NRMI_NEEDED)};
    size_t n;
    int rc = nrmi_check_sizes(N, C, 1);
    if (rc == NRM_OK && C > 0x7fffffffu) rc = NRM_ESIZE;
    if (rc != NRM_OK || N == 0) return rc;
    rc = NRM_CHECK(args);
    if (rc != NRM_OK) return rc;
    for (n = 0; n < N; n++) {
        const size_t best = nrmi_argmax_row(logits + n * C, C);
        labels[n] = best < C ? (int)best : 0;
        if (best == C) rc = NRM_NONFINITE;
    }
    return rc;
}

NRM_DEF int nrm_accuracy(nrm_acc *accuracy, const nrm_real *logits, const int *labels, size_t N,
                         size_t C)
{
    const int needed = N > 0 ? NRMI_NEEDED : 0;
    const nrmi_arg args[] = {NRM_ARG(accuracy, 1, NRMI_OUT | NRMI_NEEDED),
                             NRM_ARG(logits, N * C, needed), NRM_ARG(labels, N, needed)};
    size_t n, hits = 0;
    int rc = nrmi_check_sizes(N, C, 1);
    if (rc == NRM_OK) rc = NRM_CHECK(args);
    if (rc == NRM_OK) rc = nrmi_check_labels(labels, N, C);
    if (rc != NRM_OK) return rc;
    for (n = 0; n < N; n++) {
        const size_t best = nrmi_argmax_row(logits + n * C, C);
        hits += best == (size_t)labels[n];
        if (best == C) rc = NRM_NONFINITE;
    }
    *accuracy = N > 0 ? (nrm_acc)hits / (nrm_acc)N : 0;
    return rc;
}

/*
## 10  The linear layer

*What does a matrix of weights compute, and how do gradients pass through it?*

Each of N examples, a row of x `[N][in]`, becomes a row of y `[N][out]`. W is stored as
`[in][out]`: row i holds the weights that *leave* input i.

    yₙⱼ = bⱼ + ∑ᵢ xₙᵢ·Wᵢⱼ                                             [LIN.1]
*/
static int nrmi_check_linear(size_t N, size_t in, size_t out)
{
    int rc = nrmi_check_sizes(N, in, 1);
    if (rc == NRM_OK) rc = nrmi_check_sizes(N, out, 1);
    if (rc == NRM_OK) rc = nrmi_check_sizes(in, out, 1);
    return rc;
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
    if (rc != NRM_OK || N == 0) return rc;
    rc = NRM_CHECK(args);
    if (rc != NRM_OK) return rc;
    for (n = 0; n < N && b != NULL; n++) NRM_MEMCPY(y + n * out, b, out * sizeof *y);
    nrmi_product(y, nrmi_strided(x, in, 1), w, N, out, in, b == NULL); /* LIN.1 */
    return NRM_OK;
}

/*
A change of xₙᵢ reaches every output j of its own example. A change of Wᵢⱼ reaches output j
of every example, and so does a change of bⱼ. The chain rule adds up what each of them
reaches:

    dxₙᵢ = ∑ⱼ dyₙⱼ·Wᵢⱼ                                                [LIN.2]
    dWᵢⱼ = ∑ₙ xₙᵢ·dyₙⱼ                                                [LIN.3]
    dbⱼ = ∑ₙ dyₙⱼ                                                     [LIN.4]

In matrices: y = xW + b, dx = dy·Wᵀ, dW = xᵀ·dy. All three are products of one kind, with
the strides of a transpose where there is a ᵀ (chapter 19).
*/

/* LIN.2 to LIN.4 for arguments that have been checked; if `fresh`, dW = instead of dW +=. */
static void nrmi_linear_backward(nrm_real *dx, nrm_real *dW, nrm_real *db, const nrm_real *dy,
                                 const nrm_real *x, const nrm_real *W, size_t N, size_t in,
                                 size_t out, int fresh)
{
    const nrmi_matrix d = nrmi_strided(dy, out, 1);
    size_t n, j;
    if (dx != NULL) nrmi_product(dx, d, nrmi_strided(W, 1, out), N, in, out, 1); /* LIN.2 */
    if (dW != NULL) nrmi_product(dW, nrmi_strided(x, 1, in), d, in, out, N, fresh); /* LIN.3 */
    for (n = 0; n < N && db != NULL; n++)
        for (j = 0; j < out; j++) db[j] += dy[n * out + j]; /* LIN.4 */
}

NRM_DEF int nrm_linear_backward(nrm_real *dx, nrm_real *dW, nrm_real *db, const nrm_real *dy,
                                const nrm_real *x, const nrm_real *W, size_t N, size_t in,
                                size_t out)
{
    const nrmi_arg args[] = {NRM_ARG(dx, N * in, NRMI_OUT),
                             NRM_ARG(dW, in * out, NRMI_OUT),
                             NRM_ARG(db, out, NRMI_OUT),
                             NRM_ARG(dy, N * out, NRMI_NEEDED),
                             NRM_ARG(x, N * in, dW != NULL ? NRMI_NEEDED : NRMI_IN),
                             NRM_ARG(W, in * out, dx != NULL ? NRMI_NEEDED : NRMI_IN)};
    int rc = nrmi_check_linear(N, in, out);
    if (rc != NRM_OK || N == 0) return rc;
    rc = NRM_CHECK(args);
    if (rc == NRM_OK) nrmi_linear_backward(dx, dW, db, dy, x, W, N, in, out, 0);
    return rc;
}

/*
## 11  A recurrent layer

*What happens to a gradient that passes through the same weights five hundred times, and
what does a norm in the loop change?*

A recurrent layer keeps a state of H numbers. Each step computes a new state from the old
one and its own input. For the loss it is a network of T layers that share one set of
weights, so it has all the problems of depth. Layer norm was designed for it: each step of
each sequence is normalized over its own units, and one γ and one β serve sequences of any
length.

### 11.1  Shapes

T steps, N sequences side by side, `in` inputs, H units; all arrays are stored step by step:
x `[T][N][in]`, the summed inputs a `[T][N][H]`, the states h `[T+1][N][H]`. Step t computes
h[t+1] from h[t] and x[t]; the caller sets h[0]. μ and r are `[T][N]` for layer norm, one
for every row of a, and `[T][H]` for batch norm, one for every unit at every step.
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
    if (mode != NRM_TRAIN && mode != NRM_INFER && mode != NRM_FROZEN) return NRM_EMODE;
    if (rnn->norm < NRM_NO_NORM || rnn->norm > NRM_LAYER_NORM) return NRM_EKIND;
    rc = nrmi_check_activation(rnn->activation, 1);
    if (rc == NRM_OK) rc = nrmi_check_sizes(1, rnn->in, rnn->H);
    if (rc == NRM_OK) rc = nrmi_check_sizes(1, rnn->H, rnn->H);
    if (rc == NRM_OK && rnn->T == SIZE_MAX) rc = NRM_EOVERFLOW;
    if (rc == NRM_OK) rc = nrmi_check_sizes(rnn->N, rnn->T + 1, rnn->H);
    if (rc == NRM_OK) rc = nrmi_check_sizes(rnn->N, rnn->T + 1, rnn->in);
    if (rc == NRM_OK && rnn->norm != NRM_NO_NORM) rc = nrmi_check_eps(rnn->eps);
    if (rc == NRM_OK && rnn->norm == NRM_BATCH_NORM && mode == NRM_TRAIN && rnn->N == 1)
        rc = NRM_EBATCH;
    return rc;
}

/* The arrays of a forward pass, and the running statistics of one step (or NULL). */
static int nrmi_check_rnn_arrays(const nrm_real *h, const nrm_real *a, const nrm_acc *mean,
                                 const nrm_acc *rstd, const nrm_real *x, const nrm_rnn *rnn,
                                 const nrm_running *step, int mode)
{
    const size_t rows = rnn->T * rnn->N, H = rnn->H, saved = rnn->T * nrmi_rnn_groups(rnn);
    const int norm = rnn->norm != NRM_NO_NORM, tracked = mode == NRM_TRAIN ? NRMI_OUT : NRMI_IN;
    const int save = norm && (mode != NRM_INFER || mean != NULL || rstd != NULL);
    const int kept = save ? NRMI_OUT | NRMI_NEEDED : NRMI_OUT;
    const nrmi_arg args[] = {
        NRM_ARG(h, rows * H + rnn->N * H, NRMI_OUT | NRMI_NEEDED),
        NRM_ARG(a, rows * H, NRMI_OUT | NRMI_NEEDED), NRM_ARG(norm ? mean : NULL, saved, kept),
        NRM_ARG(norm ? rstd : NULL, saved, kept),
        NRM_ARG(step != NULL ? step->mean : NULL, H, tracked),
        NRM_ARG(step != NULL ? step->var : NULL, H, tracked),
        NRM_ARG(x, rows * rnn->in, NRMI_NEEDED), NRM_ARG(rnn->Wx, rnn->in * H, NRMI_NEEDED),
        NRM_ARG(rnn->Wh, H * H, NRMI_NEEDED), NRM_ARG(norm ? rnn->gamma : NULL, H, NRMI_IN),
        NRM_ARG(rnn->beta, H, NRMI_IN)};
    return NRM_CHECK(args);
}

/*
### 11.2  Forward

    a[t] = x[t]·Wx + h[t]·Wh                                          [RNN.1]
    z[t] = γ·norm(a[t]) + β                                           [RNN.2]
    h[t+1] = f(z[t])                                                  [RNN.3]

γ and β act unit by unit. The norm is LN.4 on each row of a[t], or BN.4 on each column, or
none; then β is the usual bias. All of x·Wx is one product of T·N rows; the second half has
to wait for h[t].
*/
NRM_DEF int nrm_rnn_forward(nrm_real *h, nrm_real *a, nrm_acc *mean, nrm_acc *rstd,
                            const nrm_real *x, const nrm_rnn *rnn, int mode)
{
    const size_t N = rnn != NULL ? rnn->N : 0, H = rnn != NULL ? rnn->H : 0;
    nrm_running *step;
    size_t t, i, groups;
    int rc = nrmi_check_rnn(rnn, mode);
    if (rc != NRM_OK || N == 0 || rnn->T == 0) return rc;
    groups = nrmi_rnn_groups(rnn);
    rc = nrmi_check_rnn_arrays(h, a, mean, rstd, x, rnn, NULL, mode);
    for (t = 0; t < rnn->T && rc == NRM_OK && rnn->norm == NRM_BATCH_NORM; t++) {
        step = rnn->running != NULL ? rnn->running + t : NULL;
        rc = nrmi_check_running(step, mode, H);
        if (rc == NRM_OK && mode != NRM_TRAIN && step->batches == 0 && rnn->running->batches > 0)
            rc = NRM_ESIZE; /* longer than the sequences of the training: 11.3 */
        if (rc == NRM_OK && step != NULL)
            rc = nrmi_check_rnn_arrays(h, a, mean, rstd, x, rnn, step, mode);
    }
    if (rc != NRM_OK) return rc;
    nrmi_product(a, nrmi_strided(x, rnn->in, 1), nrmi_strided(rnn->Wx, H, 1), rnn->T * N, H,
                 rnn->in, 1); /* RNN.1 */
    for (t = 0; t < rnn->T; t++, h += N * H, a += N * H) {
        nrm_real *next = h + N * H;
        int status = NRM_OK;
        step = rnn->running != NULL ? rnn->running + t : NULL;
        nrmi_product(a, nrmi_strided(h, H, 1), nrmi_strided(rnn->Wh, H, 1), N, H, H, 0);
        if (rnn->norm == NRM_LAYER_NORM)
            status = nrm_layernorm_forward(next, mean, rstd, a, rnn->gamma, rnn->beta, /* RNN.2 */
                                           rnn->eps, N, H);
        else if (rnn->norm == NRM_BATCH_NORM)
            status = nrm_batchnorm_forward(next, mean, rstd, step, a, rnn->gamma, /* RNN.2 */
                                           rnn->beta, mode, rnn->eps, N, H, 1);
        for (i = 0; i < N * H && rnn->norm == NRM_NO_NORM; i++)
            next[i] = rnn->beta != NULL ? a[i] + rnn->beta[i % H] : a[i];
        (void)nrm_activation_forward(next, next, rnn->activation, N * H); /* RNN.3 */
        if (status != NRM_OK) rc = NRM_NONFINITE;
        if (mean != NULL) mean += groups;
        if (rstd != NULL) rstd += groups;
    }
    return rc;
}

/*
There is one norm for the sum of both terms, as in the plain cell of the paper (its LSTM and
GRU have one for each), so a large input takes most of the variance that the row is divided
by, and leaves little to the state. A backward pass in infer mode is refused, even without a
batch norm, since μ and r need not be saved there.

### 11.3  Why batch norm is awkward here

The state of step 1 is not distributed as that of step 50. Averaged over the steps, running
statistics would be right for none of them, so each step has its own entry, `running[t]`
(Cooijmans et al., 2016). This has consequences that layer norm does not have:

- There are 2·T·H numbers to keep. `running` must have T entries, which cannot be checked.
- A sequence longer than those of the training has no statistics for its end. Provide
  entries for the longest one that will ever come, starting at 0 and 1: a step that no batch
  has entered is refused if one entered the first (`NRM_ESIZE`). The usual remedy is to copy
  the last trained entry.
- Few values make bad statistics, and a single one makes none (`NRM_EBATCH`). All N
  sequences of a call have the same length, so group them by length; padding would count as
  data.
- In training the result for a sequence depends on the other sequences.

### 11.4  Backward, through time

The loss may depend on any of the states. Let e[t] be its gradient by h[t] with the later
states held fixed; `dh` holds e when the pass begins. As h[t] also determines h[t+1],
gradients come from the end, step by step: the activation, from its output h[t+1] (ACT.4 to
ACT.6); the norm, for g = γ·dz; the product.

    dz[t] = dh[t+1]·f′(z[t])                                          [RNN.4]
    da[t] = r·(g − ⟨g⟩ − x̂·⟨g·x̂⟩), or g·r if frozen, or dz[t]         [RNN.5]
    dh[t] = e[t] + da[t]·Whᵀ, and dh[T] = e[T]                        [RNN.6]

RNN.5 is LN.14 or BN.19; the second form is BN.20, of mode frozen, and without a norm da is
dz. γ and β add up from step to step, as in LN.8 and LN.9, or BN.12 and BN.13. As RNN.6 adds
to what is there, `dh` turns from e into the whole gradient of each state.
*/
static void nrmi_rnn_through_time(nrm_real *dh, nrm_real *da, const nrm_rnn_grads *to,
                                  const nrm_real *h, const nrm_real *a, const nrm_acc *mean,
                                  const nrm_acc *rstd, const nrm_rnn *rnn, int mode)
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
The parameters are the same at all steps, so their gradients are sums over steps and
sequences (without a norm also dβ, the sum of all da). Once all of da is known, each is one
product of T·N rows:

    dWh = h[0]ᵀ·da[0] + h[1]ᵀ·da[1] + … + h[T−1]ᵀ·da[T−1]             [RNN.7]
    dWx = x[0]ᵀ·da[0] + x[1]ᵀ·da[1] + … + x[T−1]ᵀ·da[T−1]             [RNN.8]
    dx[t] = da[t]·Wxᵀ                                                 [RNN.9]
*/
NRM_DEF int nrm_rnn_backward(nrm_real *dh, nrm_real *dx, const nrm_rnn_grads *grads, nrm_real *da,
                             const nrm_real *h, const nrm_real *a, const nrm_acc *mean,
                             const nrm_acc *rstd, const nrm_real *x, const nrm_rnn *rnn, int mode)
{
    const nrm_rnn_grads none = {NULL, NULL, NULL, NULL}, *to = grads != NULL ? grads : &none;
    int rc = nrmi_check_rnn(rnn, mode);
    if (rc == NRM_OK && mode == NRM_INFER) rc = NRM_EMODE;
    if (rc == NRM_OK && rnn->N > 0 && rnn->T > 0) {
        const size_t rows = rnn->T * rnn->N, H = rnn->H, saved = rnn->T * nrmi_rnn_groups(rnn);
        const int norm = rnn->norm != NRM_NO_NORM, need = norm ? NRMI_NEEDED : NRMI_IN;
        const int need_x = to->dWx != NULL ? NRMI_NEEDED : NRMI_IN;
        const int need_Wx = dx != NULL ? NRMI_NEEDED : NRMI_IN;
        const nrmi_arg args[] = {
            NRM_ARG(dh, rows * H + rnn->N * H, NRMI_OUT | NRMI_NEEDED),
            NRM_ARG(dx, rows * rnn->in, NRMI_OUT), NRM_ARG(da, rows * H, NRMI_OUT | NRMI_NEEDED),
            NRM_ARG(to->dWx, rnn->in * H, NRMI_OUT), NRM_ARG(to->dWh, H * H, NRMI_OUT),
            NRM_ARG(norm ? to->dgamma : NULL, H, NRMI_OUT), NRM_ARG(to->dbeta, H, NRMI_OUT),
            NRM_ARG(h, rows * H + rnn->N * H, NRMI_NEEDED),
            NRM_ARG(norm ? a : NULL, rows * H, need), NRM_ARG(norm ? mean : NULL, saved, need),
            NRM_ARG(norm ? rstd : NULL, saved, need), NRM_ARG(x, rows * rnn->in, need_x),
            NRM_ARG(rnn->Wx, rnn->in * H, need_Wx), NRM_ARG(rnn->Wh, H * H, NRMI_NEEDED),
            NRM_ARG(norm ? rnn->gamma : NULL, H, NRMI_IN)};
        rc = NRM_CHECK(args);
        if (rc != NRM_OK) return rc;
        nrmi_rnn_through_time(dh, da, to, h, a, mean, rstd, rnn, mode);
        (void)nrm_linear_backward(NULL, to->dWh, NULL, da, h, NULL, rows, H, H); /* RNN.7 */
        (void)nrm_linear_backward(dx, to->dWx, norm ? NULL : to->dbeta, da, x, rnn->Wx, rows,
                                  rnn->in, H); /* RNN.8, RNN.9 */
    }
    return rc;
}

/*
### 11.5  The product of T Jacobians

For a single sequence, one step back is linear in dh. For layer norm its matrix is

    ∂h[t+1]ᵢ/∂h[t]ₖ = J[t]ₖᵢ = ∑ⱼ Whₖⱼ·r·(δⱼᵢ − 1/H − x̂ⱼ·x̂ᵢ/H)·γᵢ·f′(zᵢ)  (RNN.10)

so for a loss of the last state only (e[t] = 0 before it) the gradient, as a column, is

    dh[t] = J[t]·J[t+1]·…·J[T−1]·dh[T]                                (RNN.11)

A product of T matrices, each of which stretches by a factor of c on average, stretches by c
to the power of T: a quarter more at each step is 10⁴⁸ after 500 steps, a quarter less
10⁻⁶². For random weights, independent with mean 0 and variance s²/H, and any da that does
not depend on them, a single step gives

    E[|da·Whᵀ|²] = s²·|da|²                                           (RNN.12)

Without a norm a step's factor is s times the root mean square of f′, which is 1 for a
single, unknown s. With layer norm the factor is also multiplied by γ·r, and 1/r² is, except
for ε, the variance of the row: s²·⟨h²⟩ plus the part of the input. Without input, or if Wx
is scaled along with Wh, s cancels: the weights that stretch the gradient backwards have
stretched the row forwards by the same factor, and the norm has divided by it:

    norm(c·a) = norm(a) for c > 0, ε = 0                              (RNN.13)

That does not yet make the factor 1. What remains, without input, is the root of
γ²·⟨f′²⟩/⟨h²⟩: 1 for ReLU, 1.085 for tanh with γ = 1, 1.00006 for tanh with γ = 0.1. Input
at every step makes it smaller, since the state then has only a part of the variance: the
cell forgets (see docs/experiments/20_recurrent_norm.md).

The same for the gradient: a[t] is linear in x[t] and h[t] together, and scaling a row
changes nothing. With LN.15 and LN.16, for one row of a,

    ∑ₖ h[t]ₖ·(dh[t] − e[t])ₖ + ∑ᵢ x[t]ᵢ·dx[t]ᵢ = H·ε·r²·⟨g·x̂⟩         (RNN.14)

In a step without input the gradient from later steps has, except for ε, no component along
the state itself. Summed over all rows:

    ∑ₖⱼ Whₖⱼ·dWhₖⱼ + ∑ᵢⱼ Wxᵢⱼ·dWxᵢⱼ = the sum of H·ε·r²·⟨g·x̂⟩ over all rows  (RNN.15)

So, except for ε, the gradient has no component that scales Wh and Wx together.
*/

/*
## 12  The tiny multilayer perceptron

*The question it answers: what does a norm do inside a network that learns?*

The network is just large enough for experiments: linear layers, each with a norm and an
activation, then softmax cross-entropy. A layer makes h′ `[N][width]` from h `[N][in]`, which
is x or the output of the layer below. W is `[in][width]`; b, γ and β are `[width]`. The last
layer's output is the logits.

### 12.1  Layers

    h′ = f(norm(h·W + b))                                             [MLP.1]
    h′ = norm(f(h·W + b)) with `norm_after`                           [MLP.2]
*/
/* The place that comes first (turn 0), second and third; -1 if the layer lacks it. */
static int nrmi_place(const nrm_mlp_layer *shape, int turn)
{
    int place = turn;                                    /* MLP.1 */
    if (shape->norm_after && turn > 0) place = 3 - turn; /* MLP.2 */
    if (place == NRM_AT_NORM && shape->norm == NRM_NO_NORM) return -1;
    return place == NRM_AT_ACTIVATION && shape->activation == NRM_IDENTITY ? -1 : place;
}

enum { NRMI_W, NRMI_B, NRMI_GAMMA, NRMI_BETA, NRMI_ARRAYS }; /* so a layer's parameters lie */

static size_t nrmi_count(size_t *count, const nrm_mlp_layer *shape, size_t in)
{
    count[NRMI_W] = in * shape->width;
    count[NRMI_B] = shape->bias ? shape->width : 0;
    count[NRMI_GAMMA] = shape->norm != NRM_NO_NORM ? shape->width : 0;
    count[NRMI_BETA] = shape->norm != NRM_RMS_NORM ? count[NRMI_GAMMA] : 0;
    return count[NRMI_W] + count[NRMI_B] + count[NRMI_GAMMA] + count[NRMI_BETA];
}

/* Does its norm look at the batch, and keep running statistics? */
static int nrmi_has_batch_norm(const nrm_mlp_layer *shape)
{
    return shape->norm == NRM_BATCH_NORM || shape->norm == NRM_NOISY_BATCH_NORM ||
           shape->norm == NRM_BATCH_RENORM || shape->norm == NRM_LP_BATCH_NORM;
}

static int nrmi_usable(nrm_real v)
{
    return v >= 0 && nrmi_finite((nrm_acc)v);
}

static int nrmi_check_layer(const nrm_mlp_layer *shape, const nrm_mlp_spec *spec)
{
    const int p = shape->p > NRM_CENTRED ? shape->p - NRM_CENTRED : shape->p, norm = shape->norm;
    const size_t G = shape->groups, D = shape->width;
    if (D == 0) return NRM_ESIZE;
    if (shape->activation < NRM_IDENTITY || shape->activation > NRM_SIGMOID) return NRM_EKIND;
    if (norm < NRM_NO_NORM || norm > NRM_LP_BATCH_NORM) return NRM_EKIND;
    if (norm == NRM_LP_BATCH_NORM && (p < NRM_L1 || p > NRM_LINF)) return NRM_EKIND;
    if (norm == NRM_GROUP_NORM && (G == 0 || G >= D || D % G != 0)) return NRM_ESIZE;
    if (!(spec->r_max >= 1 && spec->d_max >= 0)) return NRM_ERATE;
    return nrmi_check_eps(spec->eps) != NRM_OK ? NRM_EEPS : nrmi_check_noise(&spec->noise);
}

/*
### 12.2  Forward

All layers are checked first: if the last one cannot be computed, the running statistics of
the first must not have moved. With `sync.merge` batch norm is that of chapter 4: the
statistics of all workers are merged (ST.1 to ST.3), and each worker normalizes its examples
by the result. Without it each worker's batch norm sees its own examples only, and the
network is another function.
*/
enum { NRMI_TRACK = 1, NRMI_ALONE = 2 }; /* running statistics move; other workers are left out */

static int nrmi_check_call(const nrm_mlp *net, const nrm_real *x, size_t N, int mode, int how)
{
    int rc = NRM_OK;
    size_t l;
    if (net == NULL || (x == NULL && N > 0)) return NRM_ENULL;
    if (N > net->spec.max_batch) return NRM_ESIZE;
    if (mode != NRM_TRAIN && mode != NRM_INFER && mode != NRM_FROZEN) return NRM_EMODE;
    for (l = 0; l < net->spec.layers && rc == NRM_OK; l++) {
        const nrm_mlp_state *s = &net->state[l];
        rc = nrmi_check_layer(&s->shape, &net->spec);
        if (rc != NRM_OK || !nrmi_has_batch_norm(&s->shape)) continue;
        if (mode == NRM_TRAIN && N == 1 && net->spec.sync.merge == NULL) return NRM_EBATCH;
        if (mode != NRM_TRAIN || s->shape.norm == NRM_BATCH_RENORM) /* they are read, */
            rc = nrmi_check_running(&s->running, NRM_FROZEN, s->shape.width);
        if (rc == NRM_OK && (how & NRMI_TRACK)) /* and moved */
            rc = nrmi_check_running(&s->running, mode, s->shape.width);
    }
    return rc;
}

static int nrmi_norm_forward(nrm_mlp *net, nrm_mlp_state *s, size_t N, int mode, int how)
{
    const nrm_mlp_spec *spec = &net->spec;
    const nrm_real eps = spec->eps, *x = s->shape.norm_after ? s->act_out : s->linear_out;
    const int kind = s->shape.norm, still = mode == NRM_TRAIN && !(how & NRMI_TRACK);
    const size_t D = s->shape.width;
    nrm_real *y = s->norm_out, *g = s->gamma, *b = s->beta;
    nrm_acc *m = s->mean, *r = s->rstd;
    nrm_running copy = {net->work[0], net->work[1], 0, 1, 0, s->running.batches};
    nrm_running *run = still ? NULL : &s->running;
    int rc;
    if (kind == NRM_LAYER_NORM) return nrm_layernorm_forward(y, m, r, x, g, b, eps, N, D);
    if (kind == NRM_RMS_NORM) return nrm_rmsnorm_forward(y, r, x, g, eps, N, D);
    if (kind == NRM_GROUP_NORM)
        return nrm_groupnorm_forward(y, m, r, x, g, b, eps, N, D, 1, s->shape.groups);
    if (kind == NRM_LP_BATCH_NORM)
        return nrm_lp_batchnorm_forward(y, m, r, run, x, g, b, s->shape.p, mode, eps, N, D, 1);
    if (kind == NRM_NOISY_BATCH_NORM)
        return nrm_noisy_batchnorm_forward(y, s->scale, m, r, run, x, g, b, &spec->noise, &net->rng,
                                           mode, eps, N, D, 1);
    if (kind == NRM_BATCH_RENORM) { /* it reads running statistics: if they stay, a copy moves */
        NRM_MEMCPY(copy.mean, s->running.mean, D * sizeof *copy.mean);
        NRM_MEMCPY(copy.var, s->running.var, D * sizeof *copy.var);
        return nrm_batchrenorm_forward(y, s->ratio, s->offset, m, r, still ? &copy : run, x, g, b,
                                       spec->r_max, spec->d_max, mode, eps, N, D, 1);
    }
    if (mode != NRM_TRAIN || spec->sync.merge == NULL || (how & NRMI_ALONE))
        return nrm_batchnorm_forward(y, m, r, run, x, g, b, mode, eps, N, D, 1);
    NRM_MEMSET(s->stats, 0, D * sizeof *s->stats);
    rc = nrm_stats_update(s->stats, x, NULL, N, D, 1);
    if (rc < 0) return rc;
    if (spec->sync.merge(spec->sync.context, s->stats, D) != 0) return NRM_ESYNC;
    return nrm_sync_batchnorm_forward(y, m, r, run, x, NULL, s->stats, g, b, eps, N, D, 1);
}

static int nrmi_mlp_forward(nrm_mlp *net, const nrm_real *x, size_t N, int mode, int how)
{
    int rc = NRM_OK, worst = NRM_OK; /* NRM_NONFINITE at the most */
    size_t i;
    for (i = 0; i < 3 * net->spec.layers; i++) {
        nrm_mlp_state *s = &net->state[i / 3];
        nrm_real *const out[] = {s->linear_out, s->norm_out, s->act_out};
        const int place = nrmi_place(&s->shape, (int)(i % 3)), f = s->shape.activation;
        nrm_mlp_event event = {i / 3, place, 0, NULL, N, s->shape.width};
        if (place < 0) continue;
        if (place == NRM_AT_LINEAR)
            rc = nrm_linear_forward(s->linear_out, x, s->W, s->b, N, s->in, event.cols);
        if (place == NRM_AT_NORM) rc = nrmi_norm_forward(net, s, N, mode, how);
        if (place == NRM_AT_ACTIVATION)
            rc = nrm_activation_forward(s->act_out, x, f, N * event.cols);
        if (rc < 0) return rc;
        worst |= rc;
        event.data = x = out[place];
        if (net->probe != NULL) net->probe(net->probe_context, &event);
    }
    return worst;
}

NRM_DEF int nrm_mlp_forward(nrm_mlp *net, const nrm_real *x, size_t N, int mode)
{
    const int rc = nrmi_check_call(net, x, N, mode, NRMI_TRACK);
    if (rc != NRM_OK || (N == 0 && net->spec.sync.add == NULL)) return rc;
    return nrmi_mlp_forward(net, x, N, mode, NRMI_TRACK);
}

/*
### 12.3  Is the bias redundant?

Before a *batch* norm in train mode it is: b shifts a channel, the mean shifts with it, and
x̂ stays. Before a *layer* norm, which averages features of different b, only the mean of b
is lost:

    BN(x + b) = BN(x) for b constant in each channel                  (MLP.3)
    LN(x + b) = LN(x + b − ⟨b⟩)                                       (MLP.4)

In the first case the gradient of b is zero by BN.21. Only rounding noise moves b, and Adam,
which divides by the size of the gradient, turns that noise into full steps. With running
statistics, and after an activation (`norm_after`), b does count.

### 12.4  Initial weights

Weights start random, so that units differ, at a scale that neither blows up the next layer
nor starves it. ReLU, for one, keeps half of the mean square, and a variance of 2/in makes
up for that. With `in` inputs and `out` outputs:

    W ~ N(0, 2/in) (He)                                               [MLP.5]
    W ~ U(−a, a), a = √(6/(in + out)) (Xavier, also called Glorot)    [MLP.6]
    W ~ N(0, s²), s = init_std (plain Gaussian)                       [MLP.7]
    W, b ~ U(−a, a), a = 1/√in (fan-in: PyTorch's default)            [MLP.8]

Each array is drawn from its own stream, numbered by layer and purpose. So two networks with
the same seed and different norms start from the same weight matrices.
*/
/* Where W, b, gamma and beta of layer l stand, from `at` on, and their first values; the end. */
static size_t nrmi_init_layer(nrm_mlp *net, size_t l, size_t at)
{
    const nrm_mlp_spec *spec = &net->spec;
    nrm_mlp_state *s = &net->state[l];
    nrm_real **const value[] = {&s->W, &s->b, &s->gamma, &s->beta};
    nrm_real **const grad[] = {&s->dW, &s->db, &s->dgamma, &s->dbeta};
    const nrm_acc in = (nrm_acc)s->in, out = (nrm_acc)s->shape.width;
    const int normal = spec->init == NRM_INIT_HE || spec->init == NRM_INIT_GAUSSIAN;
    nrm_acc scale = 1 / NRM_SQRT(in); /* MLP.8 */
    size_t count[NRMI_ARRAYS], a, i;
    if (spec->init == NRM_INIT_HE) scale = NRM_SQRT(2 / in);              /* MLP.5 */
    if (spec->init == NRM_INIT_XAVIER) scale = NRM_SQRT(6 / (in + out));  /* MLP.6 */
    if (spec->init == NRM_INIT_GAUSSIAN) scale = (nrm_acc)spec->init_std; /* MLP.7 */
    (void)nrmi_count(count, &s->shape, s->in);
    for (a = 0; a < NRMI_ARRAYS; at += count[a++]) {
        const int drawn = a == NRMI_W || (a == NRMI_B && spec->init == NRM_INIT_FAN_IN);
        nrm_real *p = net->params + at;
        nrm_rng rng;
        nrm_rng_seed(&rng, spec->seed, NRMI_ARRAYS * (uint64_t)l + a);
        for (i = 0; i < count[a] && drawn; i++)
            p[i] =
                (nrm_real)(scale * (normal ? (nrm_acc)nrm_rng_normal(&rng) : nrmi_symmetric(&rng)));
        for (i = 0; i < count[a] && a == NRMI_GAMMA; i++)
            p[i] = spec->gamma_init == NRM_GAMMA_UNIFORM ? nrm_rng_uniform(&rng) : 1;
        *value[a] = count[a] > 0 ? p : NULL;
        *grad[a] = count[a] > 0 ? net->grads + at : NULL;
    }
    for (i = 0; s->running.var != NULL && i < s->shape.width; i++) s->running.var[i] = 1;
    s->running.new_weight = spec->new_weight;
    s->running.cumulative = spec->cumulative;
    s->running.biased = spec->biased;
    return at;
}

/*
### 12.5  Backward

The places of a layer are undone in reverse order. Merged batch norm adds up the two sums of
ST.5 over all workers.
*/
static int nrmi_norm_backward(nrm_mlp *net, nrm_mlp_state *s, nrm_real *d, size_t N, int mode)
{
    const nrm_real eps = net->spec.eps, *x = s->shape.norm_after ? s->act_out : s->linear_out;
    const nrm_acc *m = s->mean, *r = s->rstd;
    const nrm_sync *sync = &net->spec.sync;
    const int kind = s->shape.norm;
    const size_t D = s->shape.width;
    nrm_real *g = s->gamma, *dg = s->dgamma, *db = s->dbeta;
    int rc;
    if (kind == NRM_LAYER_NORM) return nrm_layernorm_backward(d, dg, db, d, x, m, r, g, N, D);
    if (kind == NRM_RMS_NORM) return nrm_rmsnorm_backward(d, dg, d, x, r, g, N, D);
    if (kind == NRM_GROUP_NORM)
        return nrm_groupnorm_backward(d, dg, db, d, x, m, r, g, N, D, 1, s->shape.groups);
    if (kind == NRM_LP_BATCH_NORM)
        return nrm_lp_batchnorm_backward(d, dg, db, d, x, m, r, g, s->shape.p, mode, eps, N, D, 1);
    if (kind == NRM_NOISY_BATCH_NORM)
        return nrm_noisy_batchnorm_backward(d, dg, db, d, s->scale, x, m, r, g, mode, N, D, 1);
    if (kind == NRM_BATCH_RENORM)
        return nrm_batchrenorm_backward(d, dg, db, d, x, s->ratio, s->offset, m, r, g, mode, N, D,
                                        1);
    if (mode != NRM_TRAIN || sync->merge == NULL)
        return nrm_batchnorm_backward(d, dg, db, d, x, m, r, g, mode, N, D, 1);
    rc = nrm_sync_batchnorm_sums(s->sums, dg, db, d, x, NULL, m, r, N, D, 1);
    if (rc < 0) return rc;
    /* a nrm_sums is two nrm_acc, and nothing else */
    if (sync->add(sync->context, &s->sums->dy, 2 * D) != 0) return NRM_ESYNC;
    return nrm_sync_batchnorm_backward(d, d, x, NULL, m, r, g, s->stats, s->sums, N, D, 1);
}

/* From the gradient of the logits to net->grads. Those of two layers take turns in net->work. */
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
    return rc < 0 ? rc : NRM_OK;
}

/*
### 12.6  Several workers

In data-parallel training every worker has a copy of the network and its part of the batch,
N_w of N examples. L_w is the mean loss over these, and the loss of the whole batch is

    L = ∑_w (N_w/N)·L_w                                               [MLP.9]

So each worker weights its gradient by N_w/N, and the gradients are added up. The sum is the
gradient of the undivided batch, up to rounding, if the layers treat examples one by one or
if batch norm is merged. If the two functions of `spec.sync` work in the order of the
workers, all copies stay equal bit for bit. See `examples/mpi_batchnorm.c`.
*/
static int nrmi_mlp_gradient(nrm_mlp *net, nrm_acc *loss, const nrm_real *x, const int *labels,
                             size_t N, int mode, int how)
{
    const size_t layers = net->spec.layers, classes = net->state[layers - 1].shape.width;
    const size_t n = net->n_params;
    const nrm_sync *sync = &net->spec.sync;
    const nrm_rng kept = net->rng;
    nrm_real share = 1, *d = net->work[(layers - 1) % 2];
    nrm_acc value = 0, sums[2];
    size_t i;
    int back, bad = 0, rc = nrmi_check_call(net, x, N, mode, how);
    if (rc == NRM_OK && mode == NRM_INFER) rc = NRM_EMODE;
    if (rc == NRM_OK && labels == NULL && N > 0) rc = NRM_ENULL;
    if (rc == NRM_OK) rc = nrmi_check_labels(labels, N, classes);
    if (rc == NRM_OK && (N > 0 || sync->add != NULL)) {
        rc = nrmi_mlp_forward(net, x, N, mode, how);
        if (!(how & NRMI_TRACK)) net->rng = kept;
        if (rc < 0) return rc;
        rc |= nrm_cross_entropy_forward(&value, net->prob, net->logits, labels, N, classes);
        sums[0] = value * (nrm_acc)N;
        sums[1] = (nrm_acc)N;
        if (sync->add != NULL && sync->add(sync->context, sums, 2) != 0) return NRM_ESYNC;
        if (sync->add != NULL && sums[1] > 0) {
            value = sums[0] / sums[1];                /* MLP.9: L, */
            share = (nrm_real)((nrm_acc)N / sums[1]); /* N_w/N     */
        }
        back = nrm_cross_entropy_backward(d, net->prob, labels, N, classes);
        for (i = 0; i < N * classes && share != 1; i++) d[i] *= share; /* MLP.9 */
        if (back >= 0) back = nrmi_mlp_backward(net, x, N, mode);
        if (back < 0) return back;
        for (i = 0; i < n; i++) bad |= !nrmi_finite((nrm_acc)net->grads[i]);
        if (bad) rc = NRM_NONFINITE; /* (0·∞, under a finite loss) */
    }
    if (rc >= 0 && sync->add != NULL) { /* if one worker has met something not finite, all know */
        for (i = 0; i < n; i++) net->total[i] = (nrm_acc)net->grads[i];
        net->total[n] = rc == NRM_OK ? 0 : 1;
        if (sync->add(sync->context, net->total, n + 1) != 0) return NRM_ESYNC;
        for (i = 0; i < n; i++)
            bad |= !nrmi_finite((nrm_acc)(net->grads[i] = (nrm_real)net->total[i]));
        rc = net->total[n] == 0 && !bad ? NRM_OK : NRM_NONFINITE;
    }
    if (loss != NULL && rc >= 0) *loss = value;
    return rc;
}

NRM_DEF int nrm_mlp_gradient(nrm_mlp *net, nrm_acc *loss, const nrm_real *x, const int *labels,
                             size_t N, int mode)
{
    return net == NULL ? NRM_ENULL : nrmi_mlp_gradient(net, loss, x, labels, N, mode, 0);
}

/*
### 12.7  Optimizers

Gradient descent with Polyak's heavy ball, in PyTorch's form, and Adam (Kingma and Ba 2015).
θ is a parameter, g its gradient, η the learning rate, t the number of the step, from 1 on.
κ is `heavy_ball` and ε here is `adam_eps`. a and b start at 0. In Adam they are running
averages of g and g², and dividing by 1 − βᵗ removes the effect of that start.

    a ← κ·a + g                                                       [OPT.1]
    θ ← θ − η·a                                                       [OPT.2]
    a ← β₁·a + (1 − β₁)·g                                             [OPT.3]
    b ← β₂·b + (1 − β₂)·g²                                            [OPT.4]
    θ ← θ − η·(a/(1 − β₁ᵗ))/(√(b/(1 − β₂ᵗ)) + ε)                      [OPT.5]
*/
NRM_DEF int nrm_mlp_step(nrm_mlp *net)
{
    size_t i;
    if (net == NULL) return NRM_ENULL;
    if (!nrmi_usable(net->spec.lr)) return NRM_ERATE;
    net->steps++;
    if (net->spec.optimizer == NRM_SGD) {
        const nrm_real lr = net->spec.lr, keep = net->spec.heavy_ball;
        for (i = 0; i < net->n_params; i++) {
            nrm_real a = net->grads[i];
            if (net->moment1 != NULL) a = net->moment1[i] = keep * net->moment1[i] + a; /* OPT.1 */
            net->params[i] -= lr * a;                                                   /* OPT.2 */
        }
    } else {
        const nrm_real b1 = net->spec.beta1, b2 = net->spec.beta2;
        const nrm_acc lr = (nrm_acc)net->spec.lr, eps = (nrm_acc)net->spec.adam_eps;
        const nrm_acc lift1 = 1 / (1 - (net->beta1_power *= (nrm_acc)b1));
        const nrm_acc lift2 = 1 / (1 - (net->beta2_power *= (nrm_acc)b2));
        nrm_real *m = net->moment1, *v = net->moment2;
        for (i = 0; i < net->n_params; i++) {
            const nrm_real g = net->grads[i];
            const nrm_real a = m[i] = b1 * m[i] + (1 - b1) * g;     /* OPT.3 */
            const nrm_real b = v[i] = b2 * v[i] + (1 - b2) * g * g; /* OPT.4 */
            net->params[i] -= (nrm_real)(lr * ((nrm_acc)a * lift1) /
                                         (NRM_SQRT((nrm_acc)b * lift2) + eps)); /* OPT.5 */
        }
    }
    return NRM_OK;
}

NRM_DEF int nrm_mlp_train_step(nrm_mlp *net, nrm_acc *loss, const nrm_real *x, const int *labels,
                               size_t N)
{
    int rc = net == NULL ? NRM_ENULL : nrmi_usable(net->spec.lr) ? NRM_OK : NRM_ERATE;
    if (rc == NRM_OK) rc = nrmi_mlp_gradient(net, loss, x, labels, N, NRM_TRAIN, NRMI_TRACK);
    return rc != NRM_OK || (N == 0 && net->spec.sync.add == NULL) ? rc : nrm_mlp_step(net);
}

/*
### 12.8  Memory

The block that you bring holds the network, its activations, its parameters in one array (one
memcpy saves or restores them), their gradients and the optimizer's memory. One routine
measures and lays out, so the two cannot disagree.
*/
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
    if (spec == NULL || spec->layer == NULL) return NRM_ENULL;
    if (spec->inputs == 0 || spec->layers == 0 || spec->max_batch == 0) return NRM_ESIZE;
    if (spec->sync.merge != NULL && spec->sync.add == NULL) return NRM_ENULL;
    for (l = 0; l < spec->layers; l++) {
        const int rc = nrmi_check_layer(&spec->layer[l], spec), norm = spec->layer[l].norm;
        const nrm_real weight = spec->cumulative ? 1 : spec->new_weight;
        if (rc != NRM_OK) return rc;
        if (!nrmi_has_batch_norm(&spec->layer[l])) continue;
        if (spec->sync.merge != NULL && norm != NRM_BATCH_NORM) return NRM_EKIND;
        if (!(weight > 0 && weight <= 1)) return NRM_EWEIGHT;
    }
    if (spec->init < NRM_INIT_HE || spec->init > NRM_INIT_FAN_IN || !nrmi_usable(spec->init_std) ||
        (spec->gamma_init != NRM_GAMMA_ONE && spec->gamma_init != NRM_GAMMA_UNIFORM) ||
        (spec->optimizer != NRM_SGD && spec->optimizer != NRM_ADAM))
        return NRM_EKIND;
    if (!(spec->heavy_ball >= 0 && spec->heavy_ball < 1) ||
        !(spec->beta1 >= 0 && spec->beta1 < 1 && spec->beta2 >= 0 && spec->beta2 < 1))
        return NRM_ERATE;
    if (spec->adam_eps == 0) return NRM_ERATE; /* Adam would divide 0 by 0 */
    return nrmi_usable(spec->lr) && nrmi_usable(spec->adam_eps) ? NRM_OK : NRM_ERATE;
}

#define NRM_ALIGN 64 /* a cache line; also enough for any vector load */
#define NRM_TAKE(type, count) ((type *)nrmi_take(arena, (count), sizeof(type)))
typedef struct nrmi_arena { /* hands out pieces of the block; only counts when base is NULL */
    unsigned char *base;
    size_t used; /* SIZE_MAX: more than there can be */
} nrmi_arena;

static void *nrmi_take(nrmi_arena *arena, size_t count, size_t size)
{
    const size_t at = arena->used, most = SIZE_MAX / 4;
    const int fits = at <= most && count <= most / size;
    arena->used = fits ? (at + count * size + NRM_ALIGN - 1) / NRM_ALIGN * NRM_ALIGN : SIZE_MAX;
    return fits && arena->base != NULL ? arena->base + at : NULL;
}

/* The activations of one layer. A place that it lacks shares the linear part's buffer. */
static void nrmi_layout_layer(nrmi_arena *arena, nrm_mlp_state *s, const nrm_mlp_spec *spec)
{
    const int norm = s->shape.norm, batch_norm = nrmi_has_batch_norm(&s->shape);
    const size_t N = spec->max_batch, width = s->shape.width;
    const size_t saved = batch_norm ? width : norm == NRM_GROUP_NORM ? N * s->shape.groups : N;
    nrm_real **const out[] = {&s->linear_out, &s->norm_out, &s->act_out};
    int turn;
    for (turn = 0; turn < 3; turn++) {
        const int place = nrmi_place(&s->shape, turn);
        if (place >= 0) s->out = *out[place] = NRM_TAKE(nrm_real, N * width);
        if (turn == 0) s->norm_out = s->act_out = s->out;
    }
    if (norm != NRM_NO_NORM && norm != NRM_RMS_NORM) s->mean = NRM_TAKE(nrm_acc, saved);
    if (norm != NRM_NO_NORM) s->rstd = NRM_TAKE(nrm_acc, saved);
    if (norm == NRM_NOISY_BATCH_NORM) s->scale = NRM_TAKE(nrm_real, N * width);
    if (norm == NRM_BATCH_RENORM) s->ratio = NRM_TAKE(nrm_acc, width);
    if (norm == NRM_BATCH_RENORM) s->offset = NRM_TAKE(nrm_acc, width);
    if (!batch_norm) return;
    s->running.mean = NRM_TAKE(nrm_real, width);
    s->running.var = NRM_TAKE(nrm_real, width);
    if (norm != NRM_LP_BATCH_NORM) s->stats = NRM_TAKE(nrm_stats, width); /* t is no variance */
    if (spec->sync.merge != NULL) s->sums = NRM_TAKE(nrm_sums, width);
}

static void nrmi_layout(nrm_mlp *net, nrmi_arena *arena, const nrm_mlp_spec *spec)
{
    const int adam = spec->optimizer == NRM_ADAM;
    size_t l, n = 0, N = spec->max_batch, in = spec->inputs, widest = 0, count[NRMI_ARRAYS];
    (void)NRM_TAKE(nrm_mlp, 1); /* net itself */
    net->state = NRM_TAKE(nrm_mlp_state, spec->layers);
    for (l = 0; l < spec->layers; l++) {
        nrm_mlp_state measured, *s = net->state != NULL ? &net->state[l] : &measured;
        const size_t D = spec->layer[l].width;
        if (nrmi_check_sizes(4, in, D) || nrmi_check_sizes(1, N, D) || n > SIZE_MAX / 2)
            arena->used = SIZE_MAX;
        s->shape = spec->layer[l];
        s->in = in;
        nrmi_layout_layer(arena, s, spec);
        n += nrmi_count(count, &s->shape, in);
        if (D > widest) widest = D;
        in = D;
    }
    net->n_params = n;
    net->params = NRM_TAKE(nrm_real, n);
    net->grads = NRM_TAKE(nrm_real, n);
    if (adam || spec->heavy_ball > 0) net->moment1 = NRM_TAKE(nrm_real, n);
    if (adam) net->moment2 = NRM_TAKE(nrm_real, n);
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
    const int rc = nrmi_check_spec(spec);
    nrm_mlp *made;
    size_t l, at = 0;
    if (rc != NRM_OK) return rc;
    if (net == NULL || block == NULL) return NRM_ENULL;
    if (need == 0) return NRM_EOVERFLOW;
    if (bytes < need) return NRM_EBLOCK;
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
### 12.9  Inference, and running statistics by ST.7
*/
/* Any number of examples, max_batch at a time; `guess` and the other results may be NULL. */
static int nrmi_infer(nrm_mlp *net, nrm_acc *loss, nrm_acc *accuracy, int *guess, const nrm_real *x,
                      const int *labels, size_t N)
{
    const size_t classes = net->state[net->spec.layers - 1].shape.width;
    nrm_acc mean, losses = 0, hits = 0;
    size_t at, n;
    int rc = labels != NULL ? nrmi_check_labels(labels, N, classes) : NRM_OK, status;
    if (rc != NRM_OK) return rc;
    for (at = 0; at < N; at += n) {
        n = nrmi_least(N - at, net->spec.max_batch);
        status = nrm_mlp_forward(net, x + at * net->spec.inputs, n, NRM_INFER);
        if (status < 0) return status;
        rc |= status;
        if (guess != NULL && nrm_argmax(guess + at, net->logits, n, classes) != NRM_OK)
            rc = NRM_NONFINITE;
        if (labels == NULL) continue;
        rc |= nrm_cross_entropy_forward(&mean, NULL, net->logits, labels + at, n, classes);
        losses += mean * (nrm_acc)n;
        rc |= nrm_accuracy(&mean, net->logits, labels + at, n, classes);
        hits += mean * (nrm_acc)n;
    }
    if (loss != NULL) *loss = N > 0 ? losses / (nrm_acc)N : 0;
    if (accuracy != NULL) *accuracy = N > 0 ? hits / (nrm_acc)N : 0;
    return rc;
}

NRM_DEF int nrm_mlp_eval(nrm_mlp *net, nrm_acc *loss, nrm_acc *accuracy, const nrm_real *x,
                         const int *labels, size_t N)
{
    if (net == NULL || (N > 0 && (x == NULL || labels == NULL))) return NRM_ENULL;
    if (loss != NULL && loss == accuracy) return NRM_EALIAS;
    return nrmi_infer(net, loss, accuracy, NULL, x, labels, N);
}

NRM_DEF int nrm_mlp_predict(nrm_mlp *net, int *labels, const nrm_real *x, size_t N)
{
    const size_t inputs = net != NULL ? net->spec.inputs : 1;
    const nrmi_arg args[] = {NRM_ARG(labels, N, NRMI_OUT | NRMI_NEEDED),
                             NRM_ARG(x, N * inputs, NRMI_NEEDED)};
    int rc = net == NULL ? NRM_ENULL : nrmi_check_sizes(N, inputs, 1);
    if (rc == NRM_OK && N > 0) rc = NRM_CHECK(args);
    return rc != NRM_OK ? rc : nrmi_infer(net, NULL, NULL, labels, x, NULL, N);
}

NRM_DEF int nrm_mlp_reestimate(nrm_mlp *net, const nrm_real *x, size_t N)
{
    nrm_mlp_state *s, *end;
    nrm_sync sync;
    nrm_rng kept;
    size_t at, n;
    int status, rc = NRM_OK;
    if (net == NULL || (x == NULL && N > 0)) return NRM_ENULL;
    end = net->state + net->spec.layers;
    sync = net->spec.sync;
    kept = net->rng;
    if (N == 0 && sync.merge == NULL) return NRM_OK;
    for (s = net->state; s < end; s++) {
        if (s->shape.norm == NRM_LP_BATCH_NORM) return NRM_EKIND;
        if (s->stats != NULL) NRM_MEMSET(s->stats, 0, s->shape.width * sizeof *s->stats);
    }
    for (at = 0; at < N && rc >= 0; at += n) {
        n = nrmi_least(N - at, net->spec.max_batch);
        if (N - at - n == 1 && n > 2) n--; /* leave no batch of one behind */
        status = n == 1
                     ? NRM_EBATCH
                     : nrmi_mlp_forward(net, x + at * net->spec.inputs, n, NRM_TRAIN, NRMI_ALONE);
        rc = status < 0 ? status : rc | status;
        for (s = net->state; s < end && rc >= 0; s++)
            if (s->stats != NULL)
                rc |= nrm_stats_update(s->stats, s->shape.norm_after ? s->act_out : s->linear_out,
                                       NULL, n, s->shape.width, 1);
    }
    net->rng = kept;
    if (rc < 0 && sync.merge == NULL) return rc;
    for (s = net->state; s < end; s++) {
        const size_t width = s->shape.width;
        if (s->stats == NULL) continue;
        /* A refused part is merged too, since the others wait for it: as NaNs, which tell them. */
        if (rc < 0) NRM_MEMSET(s->stats, 255, width * sizeof *s->stats);
        if (sync.merge != NULL && sync.merge(sync.context, s->stats, width) != 0) return NRM_ESYNC;
        status = nrmi_check_stats_fit(&s->running, s->stats, width);
        if (status != NRM_OK) return rc < 0 ? rc : status;
    }
    for (s = net->state; s < end && rc >= 0; s++) /* all are good: now they may be stored */
        if (s->stats != NULL) (void)nrm_running_set(&s->running, s->stats, s->shape.width);
    return rc;
}

/*
## 13  Gradient checking

A network with a wrong backward pass often still trains, only worse. To find the mistake,
change one parameter a little, see how the loss moves, and compare with the gradient.

### 13.1  How to use it

Put what your loss needs into a struct, write a function that evaluates it, list the arrays
and their gradients, and call `nrm_gradcheck`. Compile with `NRM_DOUBLE`: in float the
differences of a loss have few digits left. Three habits decide whether the check can find
anything.

- Use L = ∑ yᵢ·wᵢ with fixed random wᵢ as the loss of a layer. With L = ∑ yᵢ the dx of a
  batch norm is zero, by BN.6, and with L = ∑ yᵢ² it is of the order of ε, by BN.7; so it is
  for a layer norm with γ = 1 and β = 0. A backward pass that returns zeros would pass.
- Use γ ≠ 1 and β ≠ 0, and N = 2, 3, 4. With γ = 1 a forgotten γ is invisible; at N = 128 a
  mistaken N − 1 for N changes dx by half a thousandth, which a loose tolerance lets pass.
- Try inputs of several sizes, 10⁻³ to 10³. An ε in the wrong place shows only where v is
  not much larger than it.
*/
typedef struct NRM_OWN(nrmi_check) { /* a loss that is being checked */
    nrm_loss_fn *loss;
    void *context;
    nrm_branches_fn *branches;
    uint64_t base_print;   /* the branches at the given parameters */
    nrm_acc base, largest; /* the loss there; |L| seen so far */
    int crossed;           /* some branch was different */
} nrmi_check;

static nrm_acc nrmi_abs(nrm_acc v)
{
    return v < 0 ? -v : v;
}
static nrm_acc nrmi_larger(nrm_acc a, nrm_acc b)
{
    return a > b ? a : b;
}
/* Of the coarser of the two types. */
static nrm_acc nrmi_precision(void)
{
    const int in_float = sizeof(nrm_real) == sizeof(float) || sizeof(nrm_acc) == sizeof(float);
    return in_float ? (nrm_acc)1.1920928955078125e-7 : (nrm_acc)2.220446049250313e-16;
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

The central difference looks at both sides, so its error has no term in h. Half the step has
a quarter of the error, so a suitable mixture has none of it (Richardson):

    D(h) = (L(θ + h) − L(θ − h))/(2·h)                                [GC.1]
    D(h) = L′ + (h²/6)·L‴ + O(h⁴)                                     (GC.2)
    R(h) = (4·D(h/2) − D(h))/3 = L′ + O(h⁴)                           [GC.3]
*/
/* The central difference, and the slopes of both sides. (Rounding changes the step a little: the
   one really made is up − at.) */
static nrm_acc nrmi_both_sides(nrm_acc *left, nrm_acc *right, nrmi_check *check, nrm_real *theta,
                               nrm_acc h)
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
static nrm_acc nrmi_richardson(nrm_acc half, nrm_acc whole)
{
    return (4 * half - whole) / 3; /* GC.3 */
}

/*
Rounding adds to R an error of the order u/h, with u the precision of the type, and
truncation one of the order h⁴; their sum is smallest where h⁵ is of the order of u. So the
step is u to the power 1/5, 7·10⁻⁴ in double and 4·10⁻² in float, relative to the size of
the parameter, or to the typical size in its array if that is larger:

    h = step·max(|θᵢ|, √⟨θ²⟩)                                         [GC.4]

If R and the gradient disagree, two steps tell which is wrong. The uncertainty of R has
three parts: the change of R when the step is halved; how far the difference J of the slopes
on the two sides (GC.7) is from shrinking like h, which shows rounding; and what rounding
must be at least:

    U = |R(h/2) − R(h)| + max(|J(h/2) − J(h)/2|, |J(h/4) − J(h)/4|) + 8·u·max|L|/(h/4)  [GC.5]

If U is too large for a judgement, the step was too large (or straddled a kink), and one of
an eighth is tried, up to five times. A gradient a is *wrong* only if it differs from R(h/2)
by more than the tolerance plus four times U. It is *unsettled* if U is so large that even
an entry as big as the largest of its array could not be judged.
*/
static nrm_acc nrmi_step_for(nrm_acc theta, nrm_acc typical, nrm_acc step)
{
    const nrm_acc scale = nrmi_larger(nrmi_abs(theta), typical);
    return step * (scale > 0 ? scale : 1); /* GC.4 */
}

/* From R(h) and R(h/2), J(h), J(h/2) and J(h/4), and the part of rounding. */
static nrm_acc nrmi_doubt(nrm_acc coarse, nrm_acc fine, const nrm_acc *jump, nrm_acc noise)
{
    const nrm_acc half = nrmi_abs(jump[1] - jump[0] / 2), quarter = nrmi_abs(jump[2] - jump[0] / 4);
    return nrmi_abs(fine - coarse) + nrmi_larger(half, quarter) + noise; /* GC.5 */
}

/*
### 13.3  Signs, small entries, kinks

The error is relative to the larger of the two, with their signs: equal |a| and |R| prove
nothing. Entries much smaller than the rest of their array are compared with a thousandth of
its largest, or, where rounding hides even that, with the largest itself:

    e = |a − R|/max(|a|, |R|, 10⁻³·max|grad|)                         [GC.6]
*/
typedef struct NRM_OWN(nrmi_slope) { /* what the differences say of one entry */
    nrm_acc value, uncertainty, noise; /* noise: its rounding part at the first, largest step */
    nrm_acc jump;                      /* |J| of GC.7 at the smallest distance */
    int kink;
} nrmi_slope;
/* Enters the verdict on one entry into the report. */
static void nrmi_judge(nrm_gradcheck_report *report, size_t index, nrm_acc analytic,
                       const nrmi_slope *slope, nrm_acc tolerance, nrm_acc largest)
{
    const nrm_acc numeric = slope->value, gap = nrmi_abs(analytic - numeric);
    const nrm_acc size = nrmi_larger(nrmi_abs(analytic), nrmi_abs(numeric));
    const nrm_acc scale = nrmi_larger(size, largest / 1000);
    const int blurred = slope->uncertainty > tolerance * scale;
    const nrm_acc ruler = blurred ? nrmi_larger(scale, largest) : scale;
    const nrm_acc error = ruler > 0 ? gap / ruler : 0; /* GC.6 */
    const int known = nrmi_finite(numeric) && nrmi_finite(slope->uncertainty);
    size_t judged = 0; /* neither wrong nor left out */
    size_t *const count = !nrmi_finite(analytic) ? &report->wrong
                          : !known ? &report->unsettled
                          : size <= 4 * slope->noise ? &report->vanishing
                          : slope->kink ? &report->kinks
                          : gap > tolerance * scale + 4 * slope->uncertainty ? &report->wrong
                          : slope->uncertainty > tolerance * ruler ? &report->unsettled
                          : &judged;
    report->checked++;
    ++*count;
    if ((count == &judged || count == &report->wrong) &&
        (error >= report->error || !nrmi_finite(error))) {
        report->worst = index;
        report->analytic = analytic;
        report->numeric = numeric;
        report->error = error;
        report->uncertainty = slope->uncertainty;
    }
}

/*
At a kink, such as ReLU's at 0, the derivatives from the right and from the left differ, and
the central difference is between them for every h. The slopes of the two sides tell:

    J(h) = (L(θ + h) − L(θ))/h − (L(θ) − L(θ − h))/h = h·L″ + O(h³)   [GC.7]

Where the loss is smooth J shrinks with h; at a kink it keeps its size and sign. If your
loss can report which branches it took (say a hash of the signs of all pre-activations),
give `branches`: then a step that changes them is recognised for certain. Kinks are skipped
and *counted*, so that a check that skipped everything does not look passed. So are
*vanishing* entries, whose gradients are both zero within rounding: if all are, nothing was
judged.
*/

/* One attempt with step h. A kink's J keeps its sign and, as the step shrinks, its size or a little
   less. One that shrinks like h is curvature; one that grows, or turns, is rounding. */
static nrmi_slope nrmi_attempt(nrmi_check *check, nrm_real *theta, nrm_acc h)
{
    nrm_acc central[3], jump[3], coarse, ratio, left, right;
    nrmi_slope slope;
    int k;
    check->crossed = 0;
    for (k = 0; k < 3; k++) {
        central[k] = nrmi_both_sides(&left, &right, check, theta, h / (nrm_acc)(1 << k));
        jump[k] = right - left; /* GC.7 */
    }
    coarse = nrmi_richardson(central[1], central[0]);
    slope.value = nrmi_richardson(central[2], central[1]);
    slope.noise = 8 * nrmi_precision() * check->largest / (h / 4);
    slope.uncertainty = nrmi_doubt(coarse, slope.value, jump, slope.noise);
    slope.jump = nrmi_abs(jump[2]);
    ratio = jump[0] < 0 || jump[0] > 0 ? jump[2] / jump[0] : 0;
    slope.kink = check->crossed || (ratio > (nrm_acc)0.5 && ratio < (nrm_acc)1.1 &&
                                    slope.jump > 8 * slope.noise);
    return slope;
}

/* The slope at theta by the step h or, where that does not settle, a smaller one. */
static nrmi_slope nrmi_settle(nrmi_check *check, nrm_real *theta, nrm_acc h, nrm_acc tolerance,
                              nrm_acc largest)
{
    nrmi_slope best = nrmi_attempt(check, theta, h);
    const nrm_acc noise = best.noise;
    int tries;
    for (tries = 0; tries < 5; tries++) {
        const nrm_acc enough = tolerance * nrmi_larger(nrmi_abs(best.value), largest / 1000) / 10;
        nrmi_slope next;
        if (!best.kink && best.uncertainty <= enough) break;
        h /= 8;
        next = nrmi_attempt(check, theta, h);
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
    nrm_acc squares = 0, largest = 0, typical; /* of all entries: for GC.4 and, gradients, GC.6 */
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
        const size_t from = k * each + (k < rest ? k : rest), span = each + (k < rest ? 1 : 0);
        const size_t most = span < 0x7fffffffu ? span : 0x7fffffffu;
        const size_t i = from + nrm_rng_below(rng, (uint32_t)most);
        nrm_real *theta = group->theta + i;
        const nrm_acc h = nrmi_step_for((nrm_acc)*theta, typical, o->step);
        const nrmi_slope slope = nrmi_settle(check, theta, h, o->tolerance, largest);
        nrmi_judge(report, i, (nrm_acc)group->grad[i], &slope, o->tolerance, largest);
    }
    report->status = report->wrong > 0 ? NRM_EGRADIENT : NRM_OK;
    if (report->wrong == 0 && (report->unsettled > 0 ||
         (report->kinks > 0 && report->kinks + report->vanishing == report->checked)))
        report->status = NRM_EUNSETTLED;
}

NRM_DEF int nrm_gradcheck(nrm_gradcheck_report *report, const nrm_gradcheck_group *group,
                          size_t groups, nrm_loss_fn *loss, void *context,
                          const nrm_gradcheck_options *options)
{
    const int in_float = nrmi_precision() > (nrm_acc)1e-10;
    nrm_gradcheck_options o = {0, 0, 0, 0, NULL};
    nrmi_check check = {loss, context, NULL, 0, 0, 0, 0};
    nrm_rng rng;
    size_t g;
    int rc = NRM_OK;
    if (groups == 0) return NRM_ESIZE;
    if (report == NULL || group == NULL || loss == NULL) return NRM_ENULL;
    for (g = 0; g < groups; g++)
        if (group[g].n > 0 && (group[g].theta == NULL || group[g].grad == NULL)) return NRM_ENULL;
    if (options != NULL) o = *options;
    if (!(o.tolerance >= 0) || !nrmi_finite(o.tolerance) || !(o.step >= 0) || !nrmi_finite(o.step))
        return NRM_ERATE;
    if (!(o.tolerance > 0)) o.tolerance = in_float ? (nrm_acc)1e-2 : (nrm_acc)1e-7;
    if (!(o.step > 0)) o.step = in_float ? (nrm_acc)4e-2 : (nrm_acc)7e-4;
    nrm_rng_seed(&rng, o.seed, 0);
    check.branches = o.branches;
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

Every public function checks before it writes. The checks are a few comparisons a call, which
is nothing beside the passes over the data. NaN and infinity are detected from their bits, so
that no compiler option can remove the test.
*/
NRM_DEF const char *nrm_version(void)
{
    return NRM_VERSION;
}

NRM_DEF const char *nrm_strerror(int status)
{
#define NRM_STATUS_CASE(name, value, message)                                                      \
    case value: return message;
    switch (status) {
        NRM_STATUS_LIST(NRM_STATUS_CASE)
    default: return "unknown status code";
    }
#undef NRM_STATUS_CASE
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

typedef union NRM_OWN(nrmi_bits) { /* a number and its bits */
    nrm_acc value;
    uint64_t u64;
    uint32_t u32;
} nrmi_bits;

static int nrmi_finite(nrm_acc v)
{
    nrmi_bits b;
    b.u64 = 0;
    b.value = v;
    if (sizeof(nrm_acc) == sizeof(float)) return (b.u32 >> 23 & 0xff) != 0xff;
    return (b.u64 >> 52 & 0x7ff) != 0x7ff;
}

static int nrmi_fits(nrm_acc v)
{
    return nrmi_finite((nrm_acc)(nrm_real)v);
}

static int nrmi_check_eps(nrm_real eps)
{
    return eps >= 0 && nrmi_finite((nrm_acc)eps) ? NRM_OK : NRM_EEPS;
}

/*
With `NRM_OPENMP` the layers share their work: batch norm by channels, layer norm by rows,
products by rows or columns of the result. Below 32768 numbers one thread does it alone:
waking another takes some microseconds.
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

A value of group g stands at g·apart + run·pitch + i. The channels of `[N][C][S]` with S = 1
are *columns*: neighbours belong to different channels, and many channels are summed side by
side. With S > 1 a channel is N *runs* of S values. The rows of `[N][D]` are one run each.
*/
enum {
    NRMI_FETCH_FROM = 1048576, /* numbers from which memory is asked for data ahead of time */
    NRMI_AT_ONCE = 4096,       /* numbers of a strip of rows: the first-level cache         */
    NRMI_BAND_NUMBERS = 16384, /* numbers of a band: the second-level cache                 */
    NRMI_ONE_SWEEP = 4096,     /* columns that are summed while dx is computed, at most     */
#ifdef NRM_PLAIN
    NRMI_GROUP = 1,
    NRMI_BAND = 1
#else
    NRMI_GROUP = 16, /* rows of a strip, at most */
    NRMI_BAND = 64   /* rows of a band, at most  */
#endif
};
#define NRM_LANES (64 / sizeof(nrm_real)) /* L of SUM.8 */

static nrmi_view nrmi_channels(size_t N, size_t C, size_t S)
{
    const nrmi_view v = {C, N, S, C * S, S, 1, N * C * S < NRMI_FETCH_FROM ? 0 : S,
                         S == 1 ? NRMI_COLUMNS : NRMI_RUNS};
    return v;
}

static nrmi_view nrmi_rows(size_t N, size_t D)
{
    const size_t ahead = N * D < NRMI_FETCH_FROM ? 0 : 2 * NRMI_AT_ONCE;
    const nrmi_view v = {N, 1, D, D, D, 1, ahead, NRMI_ROWS};
    return v;
}

/*
A strip is as many columns as fit the stack, or one channel of runs, which is still in the cache
for the pass that writes, or a few rows, so that their square roots overlap. The
gradients of layer norm's γ and β go down the columns: they are summed in `nrm_real` over a band
of rows that fits the second-level cache, and band after band in `nrm_acc`. With several sets of
γ and β a band holds whole examples, or a part of one.
*/
static size_t nrmi_strip(const nrmi_view *v)
{
    const size_t threads = nrmi_threads(v->groups * v->runs * v->length);
    const size_t lines = ((v->groups + threads - 1) / threads + NRM_LANES - 1) / NRM_LANES;
    if (v->kind == NRMI_COLUMNS) return nrmi_least(lines * NRM_LANES, NRM_WIDTH);
    if (v->kind == NRMI_RUNS || v->length > NRMI_AT_ONCE) return 1;
    return nrmi_least(NRMI_AT_ONCE / v->length, NRMI_GROUP);
}

static size_t nrmi_examples(const nrmi_view *v)
{
    const size_t rows = NRMI_BAND_NUMBERS / v->length, G = v->sets;
    const size_t band = nrmi_least(rows < 4 ? 4 : rows, NRMI_BAND);
    if (G == 1 || G * v->length > NRMI_ONE_SWEEP) return band;
    return band > G ? band / G : 1;
}

static size_t nrmi_band(const nrmi_view *v, size_t g)
{
    const size_t rows = NRMI_BAND_NUMBERS / v->length, G = v->sets;
    const size_t band = nrmi_least(rows < 4 ? 4 : rows, NRMI_BAND);
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

/* Splits a mean that is known as x1 + offset: SUM.10. */
static void nrmi_put(nrmi_moments *t, size_t k, nrm_real x1, nrm_acc offset, nrm_acc var)
{
    const nrm_acc mean = (nrm_acc)x1 + offset;
    t->mean[k] = mean;
    t->var[k] = var;
    t->at.high[k] = (nrm_real)mean;
    t->at.low[k] = (nrm_real)(((nrm_acc)x1 - (nrm_acc)(nrm_real)mean) + offset); /* SUM.10 */
}

static void nrmi_recall(nrmi_moments *t, size_t k, nrm_acc mean, nrm_acc var)
{
    const nrm_real high = (nrm_real)mean;
    nrmi_put(t, k, high, mean - (nrm_acc)high, var);
}

static int nrmi_lost(const nrmi_moments *t, size_t w, int stored)
{
    int lost = 0;
    size_t k;
    for (k = 0; k < w; k++) {
        nrm_acc mean = t->mean[k], var = t->var[k];
        if (stored) {
            mean = (nrm_acc)(nrm_real)mean;
            var = (nrm_acc)(nrm_real)var;
        }
        lost |= !nrmi_finite(mean) || !nrmi_finite(var);
    }
    return lost;
}

static void nrmi_saved(nrmi_centre *mu, const nrm_acc *mean, const nrm_real *x, const nrmi_view *v,
                       size_t g, size_t w)
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

    μ = x₁ + (1/M)·∑ᵢ (xᵢ − x₁), v = (1/M)·∑ᵢ (xᵢ − μ)²                [SUM.7]

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
    nrmi_put(t, k, x[0], offset, squares / M); /* SUM.7 */
}

/*
The primitives that follow define what the fast ones of chapters 16 to 18 compute. With
`NRM_PLAIN` they are all there is. A strip is a single group then: w is 1.
*/
#ifdef NRM_PLAIN
#define NRM_FROM(mu, x) (((nrm_acc)(x) - (nrm_acc)(mu)->high[0]) - (nrm_acc)(mu)->low[0])

static void nrmi_moments_of(nrmi_moments *t, const nrm_real *x, const nrmi_view *v, size_t g,
                            size_t w)
{
    nrmi_two_passes(t, w - 1, x + g * v->apart, v); /* SUM.7 */
}

static void nrmi_squares_of(nrmi_moments *t, const nrm_real *x, const nrmi_view *v, size_t g,
                            size_t w)
{
    nrm_acc squares = 0;
    size_t i;
    for (i = 0; i < v->length; i++)
        squares += (nrm_acc)x[nrmi_at(v, g, i)] * (nrm_acc)x[nrmi_at(v, g, i)];
    nrmi_put(t, w - 1, 0, 0, squares / (nrm_acc)v->length); /* RMS.1 */
}

static void nrmi_sums_of(nrmi_sums *s, const nrm_real *dy, const nrm_real *gamma, const nrm_real *x,
                         const nrmi_centre *mu, const nrm_acc *rstd, const nrmi_view *v, size_t g,
                         size_t w)
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
                             const nrm_acc *rstd, const nrm_real *gamma, const nrm_real *beta,
                             const nrmi_view *v, size_t g, size_t w)
{
    const size_t set = g % v->sets * v->length;
    size_t j;
    for (j = 0; j < w * v->length; j++) {
        const size_t i = nrmi_at(v, g, j);
        const nrm_acc xhat = NRM_FROM(mu, x[i]) * *rstd;                              /* LN.4 */
        y[i] = (nrm_real)(xhat * nrmi_or(gamma, set + j, 1) + nrmi_or(beta, set + j, 0)); /* LN.5 */
    }
}

static void nrmi_project(nrm_real *dx, const nrm_real *dy, const nrm_acc *gamma, const nrm_real *x,
                         const nrmi_centre *mu, const nrm_acc *rstd, const nrm_acc *scale,
                         const nrmi_sums *s, nrm_acc share, const nrmi_view *v, size_t g, size_t w)
{
    const nrm_acc c = gamma != NULL ? *gamma : 1;
    const nrm_acc m1 = s != NULL ? s->dy[0] * share : 0;
    const nrm_acc m2 = s != NULL ? s->dy_xhat[0] * share : 0;
    size_t j;
    for (j = 0; j < w * NRM_COUNT(v); j++) {
        const size_t i = nrmi_at(v, g, j);
        const nrm_acc xhat = NRM_FROM(mu, x[i]) * *rstd;
        dx[i] = (nrm_real)((c * (nrm_acc)dy[i] - m1 - xhat * m2) * *scale); /* BN.19 */
    }
}

static void nrmi_project_rows(nrm_real *dx, nrmi_columns *columns, const nrm_real *dy,
                              const nrm_real *gamma, const nrm_real *x, const nrmi_centre *mu,
                              const nrm_acc *rstd, const nrmi_sums *s, nrm_acc share,
                              const nrmi_view *v, size_t g, size_t w)
{
    const size_t set = g % v->sets * v->length;
    const nrm_acc m1 = s != NULL ? s->dy[0] * share : 0;
    const nrm_acc m2 = s != NULL ? s->dy_xhat[0] * share : 0;
    size_t j;
    for (j = 0; j < w * v->length; j++) {
        const size_t i = nrmi_at(v, g, j);
        const nrm_acc xhat = NRM_FROM(mu, x[i]) * *rstd, u = (nrm_acc)dy[i];
        const nrm_acc gi = u * nrmi_or(gamma, set + j, 1);
        if (columns != NULL) columns->dbeta[set + j] += u;         /* LN.8 */
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

    ⟨(x − μ)²⟩ = ⟨x²⟩ − μ²                                            (SUM.1)

which is true in algebra and ruinous in arithmetic: for values near 1000 with a spread of 0.1
both terms are about a million and agree in their first eight digits, and a float has seven.
But the identity holds for deviations from any number p, a *pivot*, and with a pivot near the
mean little cancels:

    d = x − p: μ = p + ⟨d⟩, v = ⟨d²⟩ − ⟨d⟩²                           [SUM.2]

The first pivot is the first value x₁; for columns it is the mean of the first eight rows,
since among many columns some would always start far from their mean. The difference of two
floats of one sign within a factor of two is exact (Sterbenz); any other is rounded by at most
2⁻²⁴ of itself. The values come in blocks of B. Of a block two sums are needed,

    S₁ = ∑ᵢ (xᵢ − p), S₂ = ∑ᵢ (xᵢ − p)²                               [SUM.3]

They are merged with the n values before: with their mean m, and with Q, the sum of their
squared deviations from m (Chan, Golub and LeVeque 1979).

    δ = p + S₁/B − m, m ← m + δ·B/(n + B)                             [SUM.4]
    Q ← Q + (S₂ − S₁²/B) + δ²·n·B/(n + B)                             [SUM.5]

*/
#ifndef NRM_PLAIN
#if (defined(__GNUC__) || defined(__clang__)) && !defined(NRM_NO_VECTORS) &&                       \
    !defined(NRM_ANY_FLOAT_EVAL)
#if defined(__AVX512F__)
#define NRM_VEC_BYTES 64
#elif defined(__AVX__)
#define NRM_VEC_BYTES 32
#else
#define NRM_VEC_BYTES 16
#if defined(__x86_64__) && !defined(NRM_NO_DISPATCH) && !defined(NRM_NO_LIBC) &&                   \
    !defined(_MSC_VER) && !defined(__OPTIMIZE_SIZE__)
#define NRM_DISPATCH
#ifndef NRM_DISPATCH_LIMIT
#define NRM_DISPATCH_LIMIT 64
#endif
#endif
#endif
#define NRM_VECTOR(name, bytes)                                                                    \
    typedef nrm_real name                                                                          \
        __attribute__((vector_size(bytes), aligned(__alignof__(nrm_real)), may_alias))
NRM_VECTOR(nrmi_vec, NRM_VEC_BYTES);
NRM_VECTOR(nrmi_quarter, 16); /* of 64 bytes */
#define NRM_ON_LINE __attribute__((aligned(64))) /* where a cache line begins */
#else /* a vector of one number: the same sums in the same order */
typedef nrm_real nrmi_vec;
typedef nrm_real nrmi_quarter;
#define NRM_ON_LINE
#endif

#if defined(__GNUC__) || defined(__clang__)
#define NRM_INLINE static inline __attribute__((always_inline))
#else
#define NRM_INLINE static inline
#endif
#if defined(__OPTIMIZE_SIZE__) || !(defined(__GNUC__) || defined(__clang__))
#define NRM_UNROLL
#elif defined(__clang__)
#define NRM_UNROLL _Pragma("unroll")
#else
#define NRM_UNROLL _Pragma("GCC unroll 8")
#endif

/*
**Instruction sets.** A *kernel* is a function that works on vectors. Where the compiler may only
assume the vectors of 16 bytes that every x86-64 has, each kernel is compiled three times, for
16, 32 (AVX2) and 64 bytes (AVX-512), and at each call the processor decides. No copy fuses
multiplication and addition, so the choice changes no bit. `NRM_DISPATCH_LIMIT`, the most bytes
to be used, is there for tests.
*/
static int nrmi_bytes(void)
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
#define NRM_COPY(name, isa, size, arguments, ...)                                                  \
    static __attribute__((target(isa))) NRM_APART void name##_##size(__VA_ARGS__)                  \
    {                                                                                              \
        name##_any(size, NRM_BARE arguments);                                                      \
    }
#define NRM_BARE(...) __VA_ARGS__
#define NRM_KERNEL(name, arguments, ...)                                                           \
    NRM_INLINE void name##_any(const int bytes, __VA_ARGS__);                                      \
    NRM_COPY(name, "avx512f", 64, arguments, __VA_ARGS__)                                          \
    NRM_COPY(name, "avx2", 32, arguments, __VA_ARGS__)                                             \
    static void name(__VA_ARGS__)                                                                  \
    {                                                                                              \
        const int bytes = nrmi_bytes();                                                            \
        if (bytes == 64)                                                                           \
            name##_64 arguments;                                                                   \
        else if (bytes == 32)                                                                      \
            name##_32 arguments;                                                                   \
        else                                                                                       \
            name##_any(16, NRM_BARE arguments);                                                    \
    }                                                                                              \
    NRM_INLINE void name##_any(const int bytes, __VA_ARGS__)
#define NRM_WIDTHS(...)                                                                            \
    if (bytes == 64) {                                                                             \
        typedef nrmi_vec64 nrmi_some;                                                              \
        __VA_ARGS__                                                                                \
    } else if (bytes == 32) {                                                                      \
        typedef nrmi_vec32 nrmi_some;                                                              \
        __VA_ARGS__                                                                                \
    } else {                                                                                       \
        typedef nrmi_vec nrmi_some;                                                                \
        __VA_ARGS__                                                                                \
    }
#else
#define NRM_BYTES
#define NRM_PASS_ON
#define NRM_KERNEL(name, arguments, ...) static void name(__VA_ARGS__)
#define NRM_WIDTHS(...)                                                                            \
    {                                                                                              \
        typedef nrmi_vec nrmi_some;                                                                \
        __VA_ARGS__                                                                                \
    }
#endif

/* Statements for each i < n: for vectors as long as there are whole ones, then for single numbers.
   nrmi_some is the type of what they work on, and NRM_MANY how many numbers that are. */
#define NRM_MANY (sizeof(nrmi_some) / sizeof(nrm_real))
#define NRM_LOOP(i, n, ...)                                                                        \
    for (; i + NRM_MANY <= (n); i += NRM_MANY) {                                                   \
        __VA_ARGS__;                                                                               \
    }
#define NRM_EACH(i, n, ...)                                                                        \
    NRM_WIDTHS(NRM_LOOP(i, n, __VA_ARGS__))                                                        \
    for (; i < (n); i++) {                                                                         \
        typedef nrm_real nrmi_some;                                                                \
        __VA_ARGS__;                                                                               \
    }
#define NRM_LOAD(at) (*(const nrmi_some *)(at))
#define NRM_STORE(at, some) (*(nrmi_some *)(at) = (some))
#define NRM_PLUS(p, i) ((p) != NULL ? (p) + (i) : NULL)

/* m is an offset from x1, the first pivot; p, the pivot of these sums, becomes the next one. What a
   block of B values weighs beside the n before it: 1/B, B/(n + B), n·B/(n + B). */
static inline void nrmi_merge(nrm_acc *m, nrm_acc *Q, nrm_real *p, nrm_real x1, nrm_acc s1,
                              nrm_acc s2, nrm_acc inverse, nrm_acc share, nrm_acc between)
{
    const nrm_acc mean = s1 * inverse;
    const nrm_acc delta = ((nrm_acc)*p - (nrm_acc)x1) + mean - *m;
    *m += delta * share;                              /* SUM.4 */
    *Q += (s2 - s1 * mean) + delta * delta * between; /* SUM.5 */
    *p = (nrm_real)((nrm_acc)x1 + *m);
}

/*
Then p becomes m rounded to `nrm_real`. Measured from m itself, the squares of a block sum to
(S₂ − S₁²/B) + B·δ². No block is longer than the first, so n/(n + B) ≥ ½, and Q gains at least
half of that:

    S₂ − S₁²/B + δ²·n·B/(n + B) ≥ ½·∑ᵢ (xᵢ − m)² ≥ S₂/8               [SUM.6]

The last step is the price of rounding p: it is the float nearest to m and xᵢ is a float, so
|xᵢ − p| ≤ 2·|xᵢ − m|. Only the first block depends on how good x₁ is as a pivot. If Q turns
out to be less than a quarter of all S₂ together, two bits were lost, and the sums are taken
once more with the mean just found as the first pivot. If that does not settle it, a square
has overflowed or there is a NaN, and the two passes of SUM.7 decide.

The inner loops SUM.3 therefore work in `nrm_real`, over stretches so short that rounding
errors stay small, and merging is done in `nrm_acc`, once for each block.
*/
#define NRM_SETTLED(Q, gross) (4 * (Q) >= (gross) && nrmi_finite(gross)) /* SUM.6 */

/*
**The order of a sum** is part of the specification. For neighbours: as many lanes as fit into
64 bytes (L = 16 floats or 8 doubles); lane j takes the terms whose index in the run is j
modulo L, and at the end of a block the lanes are folded in half until one is left.

    lⱼ = aⱼ + aⱼ₊L + aⱼ₊₂L + …, added from left to right              [SUM.8]
    lⱼ ← lⱼ + lⱼ₊ₖ for j < k, k = L/2, L/4, …, 1                       [SUM.9]

A block has at most 1024/L lines of L values and goes on from run to run. Columns are summed
straight down, in blocks of 32 rows. Vectors of any width give the same bits.
*/
enum {
    NRMI_BLOCK = 1024, /* values in a block of runs  */
    NRMI_LINES = 32,   /* rows in a block of columns */
    NRMI_STREAMS = 8   /* rows read at once          */
};

/* Two sums under way, of u and of u·d with d = x − p; u is d if dy is NULL (SUM.3), else dy, or
   dy·gamma. */
typedef struct NRM_OWN(nrmi_lanes) {
    nrm_real u[NRM_LANES] NRM_ON_LINE, ud[NRM_LANES];
} nrmi_lanes;
#define NRM_ADD(u_sum, ud_sum, u, d) ((u_sum) += (u), (ud_sum) += (u) * (d))
#define NRM_ALL_LANES(j) NRM_UNROLL for (j = 0; j < NRM_LANES / NRM_MANY; j++)

/* Adds n neighbours; the last ones, too few for all lanes, go one by one. */
NRM_INLINE void nrmi_add_run(NRM_BYTES nrmi_lanes *lanes, const nrm_real *x, nrm_real p,
                             const nrm_real *dy, const nrm_real *gamma, size_t n, int fresh)
{
    size_t i = 0, j;
    NRM_WIDTHS({
        nrmi_some u_sum[NRM_LANES / NRM_MANY], ud_sum[NRM_LANES / NRM_MANY], zero = {0};
        NRM_ALL_LANES(j) u_sum[j] = fresh ? zero : NRM_LOAD(lanes->u + j * NRM_MANY);
        NRM_ALL_LANES(j) ud_sum[j] = fresh ? zero : NRM_LOAD(lanes->ud + j * NRM_MANY);
        for (; i + NRM_LANES <= n; i += NRM_LANES) {
            NRM_ALL_LANES(j)
            {
                const size_t at = i + j * NRM_MANY;
                const nrmi_some d = NRM_LOAD(x + at) - p;
                nrmi_some u = d;
                if (dy != NULL) u = NRM_LOAD(dy + at);
                if (gamma != NULL) u *= NRM_LOAD(gamma + at);
                NRM_ADD(u_sum[j], ud_sum[j], u, d); /* SUM.8 */
            }
        }
        NRM_ALL_LANES(j) NRM_STORE(lanes->u + j * NRM_MANY, u_sum[j]);
        NRM_ALL_LANES(j) NRM_STORE(lanes->ud + j * NRM_MANY, ud_sum[j]);
    })
    for (j = 0; i < n; i++, j++) {
        const nrm_real d = x[i] - p;
        nrm_real u = dy != NULL ? dy[i] : d;
        if (gamma != NULL) u *= gamma[i];
        NRM_ADD(lanes->u[j], lanes->ud[j], u, d); /* SUM.8 */
    }
}

/* In quarters of Q lanes: 4, or 2 of doubles. */
static inline nrm_real nrmi_fold_lanes(const nrm_real *l)
{
    typedef nrmi_quarter nrmi_some;
    enum { Q = NRM_LANES / 4 };
    nrm_real q[4] = {0, 0, 0, 0};
    size_t j;
    for (j = 0; j < Q; j += NRM_MANY) {
        const nrmi_some even = NRM_LOAD(l + j) + NRM_LOAD(l + j + 2 * Q); /* SUM.9 */
        const nrmi_some odd = NRM_LOAD(l + j + Q) + NRM_LOAD(l + j + 3 * Q);
        NRM_STORE(q + j, even + odd);
    }
    return Q == 4 ? (q[0] + q[2]) + (q[1] + q[3]) : q[0] + q[1];
}
#endif

/*
## 17  Sums down columns, fast

The pass reads w columns of eight rows at a time, or of four rows of x and four of dy: the
sums of a few columns stay in registers for eight values. More would be worse, since rows that
are a multiple of 4 KB apart share eight places in the first-level cache.
*/
#ifndef NRM_PLAIN
NRM_KERNEL(nrmi_add_rows, (su, sud, x, p, dy, rows, pitch, w), nrm_real *su, nrm_real *sud,
           const nrm_real *x, const nrm_real *p, const nrm_real *dy, size_t rows, size_t pitch,
           size_t w)
{
    const size_t streams = NRMI_STREAMS / (dy != NULL ? 2u : 1u);
    size_t n, i;
    NRM_MEMSET(su, 0, w * sizeof *su);
    NRM_MEMSET(sud, 0, w * sizeof *sud);
    for (n = 0; n < rows; n += streams) {
        const size_t some = rows - n < streams ? rows - n : streams;
        const nrm_real *at = x + n * pitch, *u_at = NRM_PLUS(dy, n * pitch);
        size_t c = 0;
        NRM_EACH(c, w, {
            const nrmi_some pivot = NRM_LOAD(p + c);
            nrmi_some u_sum = NRM_LOAD(su + c), ud_sum = NRM_LOAD(sud + c);
            NRM_UNROLL for (i = 0; i < some; i++)
            {
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
           nrmi_walk *at, const nrm_real *x, const nrm_real *p, const nrm_real *dy,
           const nrm_real *gamma)
{
    const nrmi_view *v = at->v;
    const size_t down = at->run * v->pitch, i = at->i, D = v->length;
    size_t count = nrmi_least(v->runs - at->run, NRMI_LINES), lines = 0, from, piece, k;
    at->count = count;
    if (v->kind == NRMI_COLUMNS) {
        nrmi_add_rows(su, sud, x + down, p, NRM_PLUS(dy, down), count, v->pitch, at->w);
        at->run += count;
        return;
    }
    for (k = 0; k < at->w && at->count > 0; k++) {
        const nrm_real *scale = gamma != NULL ? gamma + (at->g + k) % v->sets * D + i : NULL;
        nrmi_lanes lanes;
        if (v->kind == NRMI_ROWS) {
            from = k * v->apart + i;
            count = nrmi_least(D - i, NRMI_BLOCK);
            nrmi_add_run(NRM_PASS_ON &lanes, x + from, p[k], NRM_PLUS(dy, from), scale, count, 1);
        } else {
            for (count = 0; at->run < v->runs; count += piece) {
                from = at->run * v->pitch + at->i;
                piece = nrmi_least(D - at->i, NRMI_BLOCK);
                lines += (piece + NRM_LANES - 1) / NRM_LANES; /* a lane takes one value of each */
                if (lines > NRMI_BLOCK / NRM_LANES) break;
                nrmi_add_run(NRM_PASS_ON &lanes, x + from, *p, NRM_PLUS(dy, from), NULL, piece,
                             count == 0);
                at->run += at->i + piece == D;
                at->i = at->i + piece < D ? at->i + piece : 0;
            }
        }
        su[k] = nrmi_fold_lanes(lanes.u);
        sud[k] = nrmi_fold_lanes(lanes.ud);
        at->count = count;
    }
    at->run += v->kind == NRMI_ROWS && (at->i += count) == D;
}

/* One turn for w groups that begin at x, with their first pivots, into t from k on. Returns how
   many are not settled: they get a variance of −1 and a better pivot. */
static size_t nrmi_turn(nrmi_moments *t, size_t k, nrm_real *first, const nrm_real *x,
                        const nrmi_view *v, size_t w)
{
    const int one_block = v->kind == NRMI_ROWS && v->length <= NRMI_BLOCK; /* nothing to merge */
    const nrm_acc M = (nrm_acc)v->runs * (nrm_acc)v->length, per = 1 / M;
    nrm_real pivot[NRM_SLOTS], s1[NRM_SLOTS], s2[NRM_SLOTS], gross[NRM_SLOTS];
    nrm_acc *offset = t->mean + k, *Q = t->var + k; /* which they become in the end */
    size_t c, n, unsettled = 0;
    nrmi_walk at = {v, 0, 0, 0, 0, 0};
    at.w = w;
    for (c = 0; c < w; c++) {
        offset[c] = Q[c] = 0;
        pivot[c] = first[c];
        gross[c] = 0;
    }
    nrmi_next_block(s1, s2, &at, x, pivot, NULL, NULL);
    for (n = 0; at.count > 0; nrmi_next_block(s1, s2, &at, x, pivot, NULL, NULL)) {
        const nrm_acc B = (nrm_acc)at.count, inverse = 1 / B, share = B / ((nrm_acc)n + B);
        for (c = 0; c < w; c++) /* (SUM.3) */
            nrmi_merge(&offset[c], &Q[c], &pivot[c], first[c], (nrm_acc)s1[c], (nrm_acc)s2[c],
                       inverse, share, (nrm_acc)n * share);
        for (c = 0; c < w; c++) gross[c] += s2[c];
        n += at.count;
    }
    for (c = 0; c < w; c++) {
        if (one_block) Q[c] = (nrm_acc)gross[c] - offset[c] * offset[c] * M; /* SUM.2 */
        if (NRM_SETTLED(Q[c], (nrm_acc)gross[c])) {
            nrmi_put(t, k + c, first[c], offset[c], one_block ? Q[c] * per : Q[c] / M);
        } else {
            first[c] = (nrm_real)((nrm_acc)first[c] + offset[c]);
            t->var[k + c] = -1;
            unsettled++;
        }
    }
    return unsettled;
}

/* In a second turn a settled column gets the same result. */
static void nrmi_moments_of(nrmi_moments *t, const nrm_real *x, const nrmi_view *v, size_t g,
                            size_t w)
{
    const size_t some = nrmi_least(v->runs, NRMI_STREAMS), apart = v->apart;
    nrm_real first[NRM_SLOTS], squares[NRM_SLOTS];
    size_t k;
    x += g * apart;
    if (v->kind == NRMI_COLUMNS) nrmi_add_rows(first, squares, x, x, NULL, some, v->pitch, w);
    for (k = 0; k < w; k++)
        first[k] = v->kind != NRMI_COLUMNS
                       ? x[k * apart]
                       : (nrm_real)((nrm_acc)x[k] + (nrm_acc)first[k] / (nrm_acc)some);
    if (nrmi_turn(t, 0, first, x, v, w) == 0) return;
    if (v->kind == NRMI_COLUMNS) nrmi_turn(t, 0, first, x, v, w);
    for (k = 0; k < w; k++)
        if (t->var[k] < 0 && (v->kind == NRMI_COLUMNS ||
                              nrmi_turn(t, k, first + k, x + k * apart, v, 1) > 0))
            nrmi_two_passes(t, k, x + k * apart, v);
}

/*
Sums of u·x̂ are sums like SUM.3, with u in the place of one factor. The mean is split into a
high part h, μ rounded to `nrm_real`, and a low part t, so that x − h keeps its digits where
the mean is large:

    μ = h + t, h = μ rounded to nrm_real                              [SUM.10]
    ∑ᵢ uᵢ·x̂ᵢ = r·(∑ᵢ uᵢ·(xᵢ − h) − t·∑ᵢ uᵢ)                            [SUM.12]
*/
static void nrmi_sums_of(nrmi_sums *s, const nrm_real *dy, const nrm_real *gamma, const nrm_real *x,
                         const nrmi_centre *mu, const nrm_acc *rstd, const nrmi_view *v, size_t g,
                         size_t w)
{
    nrm_real su[NRM_SLOTS], sud[NRM_SLOTS];
    nrmi_walk at = {v, 0, 0, 0, 0, 0};
    const size_t start = g * v->apart;
    size_t k;
    at.g = g;
    at.w = w;
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

/* A square of a float overflows above 10¹⁹ and loses digits below 10⁻¹⁹: then nrm_acc has to do. */
static void nrmi_squares_of(nrmi_moments *t, const nrm_real *x, const nrmi_view *v, size_t g,
                            size_t w)
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

    x̂ = r·(x − h) − r·t, γ·x̂ + β = s·(x − h) + b, s = γ·r, b = β − s·t  [SUM.11]
    a·(u − ⟨u⟩ − x̂·⟨u·x̂⟩) = a·((u − ⟨u⟩) + (s·(x − h) + b)), s = −r·⟨u·x̂⟩, b = −s·t  [SUM.13]

Scales and shifts are computed in `nrm_acc`, once for each group, and rounded. One r stays
outside in SUM.13, since r² leaves the range of a float where x is beyond 10¹⁹.
*/
#ifndef NRM_PLAIN
/* SUM.11 and SUM.13, of numbers or of vectors. */
#define NRM_AFFINE(x, high, slope, shift) (((x) - (high)) * (slope) + (shift))
#define NRM_PROJECT(dy, gamma, dy_mean, affine, scale)                                             \
    ((((dy) * (gamma) - (dy_mean)) + (affine)) * (scale))

/*
The processor prefetches along a stream that is being read. While a pass writes what
belongs to rows read before, no new line is read, and the stream stops. So the writing pass
asks for the lines that the next reading pass will want. On data in the cache that only costs,
so it is done from so many numbers on. The address may lie beyond the array, where a pointer
may not; hence the integer.
*/
#if defined(__GNUC__) || defined(__clang__)
#define NRM_PREFETCH(at, ahead)                                                                    \
    if ((ahead) > 0) __builtin_prefetch((const void *)((uintptr_t)(at) + (ahead) * sizeof *(at)))
#else
#define NRM_PREFETCH(at, ahead)
#endif

NRM_KERNEL(nrmi_affine, (y, x, mu, scale, shift, v, g, w), nrm_real *y, const nrm_real *x,
           const nrmi_centre *mu, const nrm_acc *scale, const nrm_acc *shift, const nrmi_view *v,
           size_t g, size_t w)
{
    const size_t S = v->length, ahead = v->ahead;
    nrm_real slope[NRM_SLOTS], offset[NRM_SLOTS];
    size_t n, k;
    for (k = 0; k < w; k++) {
        const nrm_acc b = shift != NULL ? shift[k] : 0;
        slope[k] = (nrm_real)scale[k];
        offset[k] = (nrm_real)(b - scale[k] * (nrm_acc)mu->low[k]);
    }
    for (n = 0; n < v->runs && v->kind == NRMI_COLUMNS; n++) {
        const size_t at = g * v->apart + n * v->pitch;
        size_t c = 0;
        NRM_EACH(c, w, NRM_STORE(y + at + c, NRM_AFFINE(NRM_LOAD(x + at + c), /* SUM.11 */
                                                        NRM_LOAD(mu->high + c), NRM_LOAD(slope + c),
                                                        NRM_LOAD(offset + c))))
    }
    for (k = 0; k < w && v->kind != NRMI_COLUMNS; k++) {
        const nrm_real high = mu->high[k], s = slope[k], b = offset[k];
        for (n = 0; n < v->runs; n++) {
            const size_t at = (g + k) * v->apart + n * v->pitch;
            size_t i = 0;
            NRM_EACH(i, S, {
                NRM_PREFETCH(x + at + i, ahead);
                NRM_STORE(y + at + i, NRM_AFFINE(NRM_LOAD(x + at + i), high, s, b)); /* SUM.11 */
            })
        }
    }
}

/* x̂ first, then γ and β along the row. */
NRM_KERNEL(nrmi_affine_rows, (y, x, mu, rstd, gamma, beta, v, g, w), nrm_real *y,
           const nrm_real *x, const nrmi_centre *mu, const nrm_acc *rstd, const nrm_real *gamma,
           const nrm_real *beta, const nrmi_view *v, size_t g, size_t w)
{
    const size_t D = v->length, G = v->sets, ahead = v->ahead;
    size_t k;
    for (k = 0; k < w; k++) {
        const size_t at = (g + k) * v->apart, set = (g + k) % G * D;
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
           const nrm_real *dy, const nrm_acc *gamma, const nrm_real *x, const nrmi_centre *mu,
           const nrm_acc *rstd, const nrm_acc *scale, const nrmi_sums *s, nrm_acc share,
           const nrmi_view *v, size_t g, size_t w)
{
    const int columns = v->kind == NRMI_COLUMNS;
    const size_t S = v->length;
    const size_t ahead = v->kind == NRMI_RUNS ? v->ahead : 0; /* (of rows it would be too far) */
    nrm_real slope[NRM_SLOTS], shift[NRM_SLOTS], c[NRM_SLOTS], m1[NRM_SLOTS], r[NRM_SLOTS];
    size_t n, k;
    for (k = 0; k < w; k++) {
        const nrm_acc dy_mean = s != NULL ? s->dy[k] * share : 0;
        const nrm_acc a = s != NULL ? -rstd[k] * (s->dy_xhat[k] * share) : 0;
        const nrm_acc b = -a * (nrm_acc)mu->low[k];
        slope[k] = (nrm_real)a;
        shift[k] = (nrm_real)(gamma != NULL ? -dy_mean + b : b); /* GN.8 */
        c[k] = (nrm_real)(gamma != NULL ? gamma[k] : 1);
        m1[k] = (nrm_real)(gamma != NULL ? 0 : dy_mean);
        r[k] = (nrm_real)scale[k];
    }
    for (n = 0; n < v->runs && columns; n++) {
        const size_t at = g * v->apart + n * v->pitch;
        size_t i = 0;
        NRM_EACH(i, w, {
            const nrmi_some affine = NRM_AFFINE(NRM_LOAD(x + at + i), NRM_LOAD(mu->high + i),
                                                NRM_LOAD(slope + i), NRM_LOAD(shift + i));
            NRM_STORE(dx + at + i, NRM_PROJECT(NRM_LOAD(dy + at + i), NRM_LOAD(c + i),
                                               NRM_LOAD(m1 + i), affine,
                                               NRM_LOAD(r + i))); /* BN.19 as SUM.13 */
        })
    }
    for (n = 0; n < v->runs * w && !columns; n++) {
        const size_t at = (g + n % w) * v->apart + n / w * v->pitch;
        const nrm_real high = mu->high[n % w], a = slope[n % w], b = shift[n % w];
        const nrm_real gain = c[n % w], dy_mean = m1[n % w], factor = r[n % w];
        size_t i = 0;
        NRM_EACH(i, S, {
            const nrmi_some affine = NRM_AFFINE(NRM_LOAD(x + at + i), high, a, b);
            NRM_PREFETCH(x + at + i, ahead);
            NRM_PREFETCH(dy + at + i, ahead);
            NRM_STORE(dx + at + i, NRM_PROJECT(NRM_LOAD(dy + at + i), gain, dy_mean, affine,
                                               factor)); /* BN.19 as SUM.13 */
        })
    }
}

/*
Layer norm's dγ and dβ go down the columns, dx goes along the rows, and both read the same x and
dy. So one sweep computes both.
*/
NRM_KERNEL(nrmi_project_rows, (dx, columns, dy, gamma, x, mu, rstd, s, share, v, g, w),
           nrm_real *dx, nrmi_columns *columns, const nrm_real *dy, const nrm_real *gamma,
           const nrm_real *x, const nrmi_centre *mu, const nrm_acc *rstd, const nrmi_sums *s,
           nrm_acc share, const nrmi_view *v, size_t g, size_t w)
{
    const size_t D = v->length, G = v->sets, ahead = 2 * v->ahead;
    size_t k;
    for (k = 0; k < w; k++) {
        const size_t at = (g + k) * v->apart, set = (g + k) % G * D;
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
                NRM_STORE(sum + i, NRM_LOAD(sum + i) + u);            /* LN.8 */
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
static int nrmi_next_stretch(nrmi_view *part, size_t *at, size_t *from, const nrmi_view *v,
                             const unsigned char *mask)
{
    const size_t all = v->runs * v->length, line = v->kind == NRMI_COLUMNS ? all : v->length;
    size_t first = *from, end, to;
    *part = *v;
    *at = 0;
    if (mask == NULL) return (*from)++ == 0;
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

    cᵢⱼ ← (((cᵢⱼ + aᵢ₁·b₁ⱼ) + aᵢ₂·b₂ⱼ) + …)                            [LIN.5]

This order is the specification, and the plain version is the whole of it. The order of i
and j is free.
*/
static nrmi_matrix nrmi_strided(const nrm_real *at, size_t row, size_t col)
{
    nrmi_matrix m;
    m.at = at;
    m.row = row;
    m.col = col;
    return m;
}

#ifdef NRM_PLAIN
static void nrmi_product(nrm_real *c, nrmi_matrix a, nrmi_matrix b, size_t rows, size_t cols,
                         size_t depth, int fresh)
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

Results do not depend on the width of the vectors, on blocks, or on the number of threads.
They depend only on whether the compiler fuses multiplication and addition into one
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

#define NRM_TILE(name, rows) /* a function of its own has all registers to itself */               \
    NRM_KERNEL(name, (c, ldc, a, b, depth, fresh), nrm_real *c, size_t ldc, nrmi_matrix a,         \
               nrmi_matrix b, size_t depth, int fresh)                                             \
    {                                                                                              \
        nrmi_tile(NRM_PASS_ON c, ldc, a, b, depth, fresh, rows);                                   \
    }
NRM_TILE(nrmi_tile6, 6)
NRM_TILE(nrmi_tile4, 4)
NRM_TILE(nrmi_tile2, 2)
NRM_TILE(nrmi_tile1, 1)

/* All rows of the columns of a tile, the largest tiles first. */
static void nrmi_block(nrm_real *c, size_t ldc, nrmi_matrix a, nrmi_matrix b, size_t rows,
                       size_t depth, int fresh)
{
    while (rows > 0) {
        const size_t step = rows >= 6 ? 6 : rows >= 4 ? 4 : rows >= 2 ? 2 : 1;
        switch (step) {
        case 6: nrmi_tile6(c, ldc, a, b, depth, fresh); break;
        case 4: nrmi_tile4(c, ldc, a, b, depth, fresh); break;
        case 2: nrmi_tile2(c, ldc, a, b, depth, fresh); break;
        default: nrmi_tile1(c, ldc, a, b, depth, fresh); break;
        }
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
cross as few cache lines as possible. Speed then does not depend on where the matrix begins.
With arrays 16 bytes past a cache line, as `malloc` returns them, 128 x 784 by 784 x 1000
rises from 73 to 85 GFLOP/s (peak 102, AVX2). For fewer than NRM_PACK_FROM rows the copy
does not pay; a transposed b needs it in any case. A stretch of at most NRM_DEPTH steps of k
is packed at a time, 20 KB with AVX. Between two stretches c is stored and loaded, which
changes no bit. So no bit depends on NRM_DEPTH either, and where `NRM_WIDTH` asks for a
small stack it shrinks too.
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
static int nrmi_blas(nrm_real *c, nrmi_matrix a, nrmi_matrix b, size_t rows, size_t cols,
                     size_t depth, int fresh)
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

static void nrmi_product(nrm_real *c, nrmi_matrix a, nrmi_matrix b, size_t rows, size_t cols,
                         size_t depth, int fresh)
{
    const int by_rows = rows > cols;
    const size_t grain = by_rows ? (size_t)NRMI_TILE_ROWS : nrmi_cols();
    const size_t count = by_rows ? rows : cols;
    size_t numbers, threads, share; /* numbers that are as much work; rows or columns a thread */
    int i, parts, bad = 0;
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
    NRM_SHARE(numbers, bad)
    for (i = 0; i < parts; i++) {
        const size_t from = (size_t)i * share, size = nrmi_least(count - from, share);
        if (by_rows)
            nrmi_multiply(c + from * cols, cols, nrmi_strided(a.at + from * a.row, a.row, a.col), b,
                          size, cols, depth, fresh);
        else
            nrmi_multiply(c + from, cols, a, nrmi_strided(b.at + from * b.col, b.row, b.col), rows,
                          size, depth, fresh);
    }
    (void)bad;
}
#endif /* NRM_PLAIN */

/*
## 20  Exponential and logarithm

IEEE 754 requires a correctly rounded square root, so every machine agrees on it. `exp`,
`log` and `tanh` may differ in the last bit between two C libraries, and then a training run
differs too. The functions below have the same bits everywhere, and are off by at most three
units in the last place.
*/
#define NRM_LN2_HEAD ((nrm_acc)0.69314575195312500)   /* 16 bits of ln 2    */
#define NRM_LN2_TAIL ((nrm_acc)1.4286068203094172e-6) /* what is left of it */
#define NRM_LN2_INVERSE ((nrm_acc)1.4426950408889634)
#define NRM_SQRT2 ((nrm_acc)1.4142135623730951)

/* 2^k, written straight into the exponent; k must be that of a normal number. */
static nrm_acc nrmi_power_of_two(int k)
{
    nrmi_bits p;
    p.u64 = 0;
    if (sizeof(nrm_acc) == 8)
        p.u64 = (uint64_t)(k + 1023) << 52;
    else
        p.u32 = (uint32_t)(k + 127) << 23;
    return p.value;
}

/* 1/n, looked up: a division takes longer than all the rest of a step of the series. */
static nrm_acc nrmi_inverse(int n)
{
#define NRM_OVER(n) ((nrm_acc)(1.0 / (n)))
    static const nrm_acc inverse[22] = {
        0,            NRM_OVER(1),  NRM_OVER(2),  NRM_OVER(3),  NRM_OVER(4),  NRM_OVER(5),
        NRM_OVER(6),  NRM_OVER(7),  NRM_OVER(8),  NRM_OVER(9),  NRM_OVER(10), NRM_OVER(11),
        NRM_OVER(12), NRM_OVER(13), NRM_OVER(14), NRM_OVER(15), NRM_OVER(16), NRM_OVER(17),
        NRM_OVER(18), NRM_OVER(19), NRM_OVER(20), NRM_OVER(21)};
#undef NRM_OVER
    return inverse[n];
}

/* Below this, e^x is taken for 0: the smallest normal number is not far. */
static nrm_acc nrmi_exp_lowest(void)
{
    return sizeof(nrm_acc) == 8 ? (nrm_acc)-708 : (nrm_acc)-87;
}

/*
Only exponentials of x ≤ 0 are needed: softmax subtracts the largest logit first, and
sigmoid and tanh use their symmetry. Split off a power of two, and the rest is small:

    k = ⌈x/ln2 − ½⌉                                                   [EXP.1]
    t = x − k·ln2, |t| ≤ ½·ln2                                        [EXP.2]
    q = e^t − 1 = t·(1 + t/2·(1 + t/3·(1 + t/4·(…))))                 [EXP.3]

In EXP.2 the product k·ln2 must not lose the digits that t is made of. So ln2 is cut in two:
a high part with so few bits that k times it is exact, and the rest. The series stops after
t¹³/13!; what is left out is below 2·10⁻¹⁷ of t.

Sixteen values are done at a time. Each step is a short loop in which no value waits for
another and no branch depends on a value (`?:` becomes a selection), so that compilers use
vectors.
*/

/* q and 2^k of EXP.1 to EXP.3 for some x, each between lowest and 0. */
static void nrmi_exp_parts(nrm_acc *q, nrm_acc *power, const nrm_acc *x)
{
    nrm_acc t[NRM_SOME];
    int k[NRM_SOME], j, n;
    for (j = 0; j < NRM_SOME; j++) {
        k[j] = (int)(x[j] * NRM_LN2_INVERSE - (nrm_acc)0.5); /* EXP.1: upwards, for x <= 0 */
        t[j] = (x[j] - (nrm_acc)k[j] * NRM_LN2_HEAD) - (nrm_acc)k[j] * NRM_LN2_TAIL; /* EXP.2 */
        q[j] = 1;
    }
    for (n = 13; n >= 2; n--) {
        const nrm_acc inverse = nrmi_inverse(n);
        for (j = 0; j < NRM_SOME; j++) q[j] = 1 + t[j] * inverse * q[j]; /* EXP.3 */
    }
    for (j = 0; j < NRM_SOME; j++) {
        q[j] = t[j] * q[j];
        power[j] = nrmi_power_of_two(k[j]);
    }
}

/* What the series can take: NaN and values too low become the lowest; the callers restore them. */
static void nrmi_exp_clamp(nrm_acc *inside, const nrm_acc *x)
{
    const nrm_acc lowest = nrmi_exp_lowest();
    int j;
    for (j = 0; j < NRM_SOME; j++) inside[j] = x[j] >= lowest ? x[j] : lowest;
}

/*
The power of two then goes back on. Near 0, EXP.5 keeps the digits that e^x − 1 would lose.

    e^x = 2^k·(1 + q)                                                 [EXP.4]
    e^x − 1 = 2^k·q + (2^k − 1)                                       [EXP.5]
*/

/* Puts e^x in the place of each of NRM_SOME values x <= 0; NaN stays NaN. */
static void nrmi_exp(nrm_acc *x)
{
    const nrm_acc lowest = nrmi_exp_lowest();
    nrm_acc inside[NRM_SOME], power[NRM_SOME], q[NRM_SOME];
    int j;
    nrmi_exp_clamp(inside, x);
    nrmi_exp_parts(q, power, inside);
    for (j = 0; j < NRM_SOME; j++) {
        const nrm_acc e = power[j] * (1 + q[j]); /* EXP.4 */
        x[j] = x[j] >= lowest ? e : x[j] < 0 ? 0 : x[j];
    }
}

/* The same for e^x - 1. */
static void nrmi_expm1(nrm_acc *x)
{
    const nrm_acc lowest = nrmi_exp_lowest();
    nrm_acc inside[NRM_SOME], power[NRM_SOME], q[NRM_SOME];
    int j;
    nrmi_exp_clamp(inside, x);
    nrmi_exp_parts(q, power, inside);
    for (j = 0; j < NRM_SOME; j++) {
        const nrm_acc e = power[j] * q[j] + (power[j] - 1); /* EXP.5 */
        x[j] = x[j] >= lowest ? e : x[j] < 0 ? -1 : x[j];
    }
}

/*
For the logarithm write x = 2^e·m with m between √½ and √2. The series is that of the
inverse hyperbolic tangent, and its argument s is below 0.172:

    s = (m − 1)/(m + 1)                                               [LOG.1]
    ln m = 2·s·(1 + s²/3 + s⁴/5 + s⁶/7 + …)                           [LOG.2]
    ln x = e·ln2 + ln m                                               [LOG.3]
*/
static nrm_acc nrmi_log(nrm_acc x)
{
    nrmi_bits b;
    nrm_acc m, s, sum = 0;
    int e, n;
    b.u64 = 0;
    b.value = x;
    e = sizeof(nrm_acc) == 8 ? (int)(b.u64 >> 52) - 1023 : (int)(b.u32 >> 23) - 127;
    m = x / nrmi_power_of_two(e); /* exact: now 1 <= m < 2 */
    if (m > NRM_SQRT2) {
        m /= 2;
        e++;
    }
    s = (m - 1) / (m + 1); /* LOG.1 */
    for (n = 21; n >= 1; n -= 2) sum = nrmi_inverse(n) + s * s * sum;
    m = 2 * s * sum; /* LOG.2 */
    return (nrm_acc)e * NRM_LN2_HEAD + ((nrm_acc)e * NRM_LN2_TAIL + m); /* LOG.3 */
}

/*
## 21  Random numbers

The generator is PCG32 (O'Neill 2014): a 64-bit linear congruential generator whose output
is scrambled to hide its weak low bits. The increment c may be any odd number, and each
choice is a sequence of its own, a *stream*. With one stream each for the weights, the noise
and the order of the data, drawing more from one never shifts another.

    s′ = a·s + c mod 2⁶⁴, a = 6364136223846793005                     [RNG.1]
    u = rotate(⌊(s ⊕ ⌊s/2¹⁸⌋)/2²⁷⌋ mod 2³², ⌊s/2⁵⁹⌋)                   [RNG.2]

RNG.2 takes the old state s. Its highest five bits say by how far to rotate, to the right,
the 32 bits that the shift and the exclusive or have picked.
*/
NRM_DEF uint32_t nrm_rng_u32(nrm_rng *rng)
{
    const uint64_t s = rng->state;
    const uint32_t x = (uint32_t)(((s >> 18) ^ s) >> 27);
    const uint32_t turn = (uint32_t)(s >> 59);
    rng->state = s * 6364136223846793005u + rng->increment; /* RNG.1 */
    return (x >> turn) | (x << ((32 - turn) & 31));         /* RNG.2 */
}

NRM_DEF void nrm_rng_seed(nrm_rng *rng, uint64_t seed, uint64_t stream)
{
    rng->state = 0;
    rng->increment = stream * 2 + 1;
    rng->spare = 0;
    rng->has_spare = 0;
    (void)nrm_rng_u32(rng);
    rng->state += seed;
    (void)nrm_rng_u32(rng);
}

/*
A uniform number is u scaled and cut to the digits of a float, so that float and double
builds draw the same stream. For an integer below n, u mod n alone would favour small values
where n does not divide 2³². So the lowest u are thrown away, as many as the remainder.

    U = u/2³² (double), ⌊u/2⁸⌋/2²⁴ (float)                            [RNG.3]
    u mod n, drawn again while u < 2³² mod n                          [RNG.4]
*/
NRM_DEF nrm_real nrm_rng_uniform(nrm_rng *rng)
{
    const uint32_t u = nrm_rng_u32(rng);
    if (sizeof(nrm_real) == sizeof(float)) return (nrm_real)(u >> 8) / 16777216; /* RNG.3 */
    return (nrm_real)u / (nrm_real)4294967296; /* RNG.3 */
}

NRM_DEF uint32_t nrm_rng_below(nrm_rng *rng, uint32_t n)
{
    uint32_t u, least;
    if (n == 0) return 0;
    least = (0u - n) % n; /* 2^32 mod n */
    do u = nrm_rng_u32(rng);
    while (u < least);
    return u % n; /* RNG.4 */
}

/*
Normal numbers come in pairs by Marsaglia's polar method: a point in the unit disc, found by
trial, is moved outwards until its distance from the origin has the right distribution.

    w = a² + b² < 1, a and b uniform in ±1                            [RNG.5]
    z₁ = a·√(−2·(ln w)/w), z₂ = b·√(−2·(ln w)/w)                      [RNG.6]
*/
static nrm_acc nrmi_symmetric(nrm_rng *rng)
{
    return (nrm_acc)nrm_rng_u32(rng) / (nrm_acc)2147483648u - 1;
}

NRM_DEF nrm_real nrm_rng_normal(nrm_rng *rng)
{
    nrm_acc a, b, w, stretch;
    if (rng->has_spare) {
        rng->has_spare = 0;
        return (nrm_real)rng->spare;
    }
    do {
        a = nrmi_symmetric(rng);
        b = nrmi_symmetric(rng);
        w = a * a + b * b; /* RNG.5 */
    } while (w >= 1 || w <= 0);
    stretch = NRM_SQRT(-2 * nrmi_log(w) / w);
    rng->spare = b * stretch;
    rng->has_spare = 1;
    return (nrm_real)(a * stretch); /* RNG.6 */
}

/* Fisher and Yates: from the end, swap each place with one drawn from those not yet settled. */
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
#undef NRM_ADD
#undef NRM_AFFINE
#undef NRM_ALIGN
#undef NRM_ALL_LANES
#undef NRM_APART
#undef NRM_ARG
#undef NRM_BACKWARD_ARGS
#undef NRM_BARE
#undef NRM_BYTES
#undef NRM_CHECK
#undef NRM_COLUMNS
#undef NRM_COPY
#undef NRM_COUNT
#undef NRM_DISPATCH
#undef NRM_DISPATCH_LIMIT
#undef NRM_EACH
#undef NRM_FORWARD_ARGS
#undef NRM_FROM
#undef NRM_INLINE
#undef NRM_KERNEL
#undef NRM_LANES
#undef NRM_LN2_HEAD
#undef NRM_LN2_INVERSE
#undef NRM_LN2_TAIL
#undef NRM_LOAD
#undef NRM_LOOP
#undef NRM_LP_SIGN
#undef NRM_LP_SUMS
#undef NRM_MANY
#undef NRM_ON_LINE
#undef NRM_OWN
#undef NRM_PACKED
#undef NRM_PASS_ON
#undef NRM_PLUS
#undef NRM_PRAGMA
#undef NRM_PRECISE
#undef NRM_PREFETCH
#undef NRM_PROJECT
#undef NRM_RUNNING_ARGS
#undef NRM_SETTLED
#undef NRM_SHARE
#undef NRM_SLOTS
#undef NRM_SOME
#undef NRM_SQRT
#undef NRM_SQRT2
#undef NRM_STORE
#undef NRM_TAKE
#undef NRM_TILE
#undef NRM_TILE_VECS
#undef NRM_UNROLL
#undef NRM_VECTOR
#undef NRM_VEC_BYTES
#undef NRM_WIDE
#undef NRM_WIDTH
#undef NRM_WIDTHS
#endif /* NORMLAYERS_IMPLEMENTATION */
/*
## 22  History, references, licences

### History

- 0.2.0, form: two parts, `NRM_PLAIN`. Files are in `examples/npz.h`. What left: `unfold`,
  `convention_of` and `running_import` (docs/10_conventions.md has their formulas),
  `layernorm_std` (LN.17, LN.18), `instancenorm` (group norm with G = C), and the four
  checks (the functions that use the data say the same).
- 0.2.0, refused now: `new_weight` 0 without `cumulative` in train mode; one value per group
  in group norm; `NRM_DOUBLE` with `NRM_ACC=float`; floats that are computed in another type
  (x87), unless `NRM_ANY_FLOAT_EVAL` is defined. A network checks all its layers before any
  of them works.
- 0.2.0, accepted now: ε = 0; dx NULL beside other outputs; y = x where nothing is saved; a
  predefined `NRM_DEF`; a global named `gamma` (gcc and clang need no math.h).
- 0.2.0, results: a cumulative average passes over a channel that is not finite, as
  `new_weight` does. With `NRM_ACC=float` or `NRM_DOUBLE` the backward pass of batch, layer,
  group norm and batch renorm keeps the low part of a large mean. NaN is detected from its
  bits, and clang's partial fast-math flags do not reach in. The stack follows `NRM_WIDTH`
  everywhere. The contract on accuracy speaks of the largest term before cancellation.
- 0.1.0: all layers, the perceptron, random numbers, files, gradient checking.

### References, by equation

- BN.1 to BN.5, BN.9 (the factor), BN.12 to BN.19: Ioffe, Szegedy, "Batch Normalization",
  2015. BR.1 to BR.3: Ioffe, "Batch Renormalization", 2017. NB.1 to NB.5, LP.2: Santurkar et
  al., "How Does Batch Normalization Help Optimization?", 2018, app. A.2, 3.3. ST.1 to ST.3:
  Chan, Golub, LeVeque, "Updating Formulae and a Pairwise Algorithm for Computing Sample
  Variances", 1979.
- LN.1 to LN.5, RNN.1 to RNN.3: Ba, Kiros, Hinton, "Layer Normalization", 2016. Statistics
  of each step: Cooijmans et al., "Recurrent Batch Normalization", 2016. RNN.6, RNN.11:
  Bengio, Simard, Frasconi, "Learning long-term dependencies with gradient descent is
  difficult", 1994.
- GN.1 to GN.3: Wu, He, "Group Normalization", 2018; G = C: Ulyanov et al., "Instance
  Normalization", 2016. RMS.1, RMS.2: Zhang, Sennrich, "Root Mean Square Layer
  Normalization", 2019. WN.2, WN.4, WN.6, WN.8: Salimans, Kingma, "Weight Normalization",
  2016. WN.12: Kohler et al., "Exponential convergence rates for Batch Normalization", 2018.
- MLP.5: He et al., "Delving Deep into Rectifiers", 2015. MLP.6: Glorot, Bengio,
  "Understanding the difficulty of training deep feedforward neural networks", 2010. OPT.1:
  Polyak, "Some methods of speeding up the convergence of iteration methods", 1964. OPT.3 to
  OPT.5: Kingma, Ba, "Adam", 2015.
- RNG.1, RNG.2: O'Neill, "PCG", 2014. RNG.5, RNG.6: Marsaglia, Bray, "A convenient method
  for generating normal variables", 1964. GC.3: Richardson, "The Approximate Arithmetical
  Solution by Finite Differences of Physical Problems", 1911.

### Licences: either of these two, whichever you prefer

- Public domain (The Unlicense). This is free and unencumbered software released into the
  public domain. Anyone is free to copy, modify, publish, use, compile, sell, or distribute
  this software, either in source code form or as a compiled binary, for any purpose,
  commercial or non-commercial, and by any means. In jurisdictions that recognize copyright
  laws, the author or authors of this software dedicate any and all copyright interest in
  the software to the public domain. We make this dedication for the benefit of the public
  at large and to the detriment of our heirs and successors. We intend this dedication to be
  an overt act of relinquishment in perpetuity of all present and future rights to this
  software under copyright law.
- MIT No Attribution (MIT-0). Copyright 2026 the normlayers.h authors. Permission is hereby
  granted, free of charge, to any person obtaining a copy of this software and associated
  documentation files (the "Software"), to deal in the Software without restriction,
  including without limitation the rights to use, copy, modify, merge, publish, distribute,
  sublicense, and/or sell copies of the Software, and to permit persons to whom the Software
  is furnished to do so.

In either case THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A
PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS
BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT
OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER
DEALINGS IN THE SOFTWARE.
*/
