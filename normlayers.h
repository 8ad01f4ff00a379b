/* normlayers.h - v0.1.0 - normalization layers, derived - public domain or MIT-0, see the end */
/*
# normlayers.h

Batch norm, layer norm and their family, forward and backward, in one C file that you can
read from top to bottom: each formula is derived in the comment above the line that computes
it, carries a tag such as BN.17, and is checked by a test of that name. A gradient checker
for layers of your own, a recurrent layer and a small multilayer perceptron come along.

## Do this

Copy this file into your project. In exactly one of your C or C++ files write

    #define NORMLAYERS_IMPLEMENTATION
    #include "normlayers.h"

and in all others just the `#include`. Then compile as always: `cc app.c -lm` (C99 or C++11,
or later).

## A complete program

```c
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"
#include <stdio.h>

int main(void)
{
    const nrm_real x[2][4] = {{1, 2, 3, 4}, {10, 20, 30, 40}};
    const nrm_real gamma[4] = {1, 1, 1, 1}, beta[4] = {0, 0, 0, 0};
    nrm_real y[2][4];
    nrm_acc mean[2], rstd[2]; // what the backward pass will want
    int rc = nrm_layernorm_forward(y[0], mean, rstd, x[0], gamma, beta, NRM_EPS, 2, 4);
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
    ## 1  ## 2       Checking of arguments; the linear layer and its three products
    ## 3  ## 4       Exponential and logarithm, the same bits everywhere; random numbers
    ## 5             Sums and means
    ## 6             Batch normalization
    ## 7             Layer normalization (7.6: with D − 1, and ε outside the root)
    ## 8             Noisy batch normalization
    ## 9             Statistics that merge: synchronised, masked and virtual batches
    ## 10            Batch renormalization
    ## 11            Group, instance and RMS normalization
    ## 12            Lp batch normalization
    ## 13            Weight normalization
    ## 14            Folding into weights; running statistics of PyTorch, Keras and others
    ## 15 ## 16      Activations; softmax, cross-entropy, accuracy
    ## 17            A recurrent layer
    ## 18            The tiny multilayer perceptron
    ## 19            Files of named arrays, .npy and .npz among them
    ## 20            Gradient checking
    ## 21            History, references by equation, licences

## This header does not

allocate memory, print, touch a file (except for the five functions of ## 19, which are
there to do that), start threads (unless `NRM_OPENMP` asks for them), keep global state,
call `rand()`, or look at the locale. It has no automatic differentiation and no convolution
(though batch norm takes the layout of one), and it does not guess: a wrong argument is
refused with a named code.

## Options

Define them before the `#include`. *Everywhere* means: with the same value in every file
that includes the header, best on the compiler's command line.

    macro                       default     effect                                  where
    NORMLAYERS_IMPLEMENTATION   -           compile the functions here              one file only
    NRM_STATIC                  -           private `static inline` copy of all     any file
    NRM_DOUBLE                  -           nrm_real is double, names get _f64      everywhere
    NRM_ACC                     double      type of statistics: float or double     everywhere
    NRM_SQRT(a)                 sqrt        square root of an nrm_acc               one file only
    NRM_NO_LIBC                 -           include neither math.h nor string.h     one file only
    NRM_NO_STDIO                -           no files: ## 19 and stdio.h left out    any file
    NRM_MEMCPY(to, from, n)     memcpy      copies n bytes                          one file only
    NRM_MEMSET(to, byte, n)     memset      fills n bytes                           one file only
    NRM_NO_VECTORS              -           no vector extensions                    one file only
    NRM_WIDTH                   1024        dense channels done together; 40 B      one file only
                                            of stack each (64 B with NRM_DOUBLE)
    NRM_OPENMP                  -           share the work among OpenMP's threads   one file only
    NRM_GEMM                    -           cblas_sgemm or cblas_dgemm, see ## 2    one file only

`NRM_NO_LIBC` implies `NRM_NO_STDIO`, and you supply `NRM_SQRT`, `NRM_MEMCPY` and
`NRM_MEMSET` then; besides these only what the compiler itself wants of a freestanding
program (memcpy, memmove, memset); the header brings its own exponential, logarithm and
random numbers. MSVC needs `/utf-8` for the comments. Two files that disagree on
`NRM_DOUBLE` or `NRM_ACC` fail to link instead of misreading each other's arrays, since the
link names differ; and one program may hold both precisions, in different files.

## Contracts

- All arrays are the caller's, dense and row-major. A shape such as `[N][C][S]` is written
  at each parameter. Sizes are `size_t`; a product that overflows is refused.
- Parameters come in one order: outputs (those saved for the backward pass last), inputs, in
  a backward pass the saved values, parameters of the layer, scalars, sizes.
- Gradients of *inputs* are overwritten (`=`). Gradients of *parameters* are accumulated
  (`+=`), so that several batches can share one step; set them to zero first. (A network
  does that itself: `net->grads` are those of its last batch.)
- Every function that can fail returns a status: `NRM_OK` (0), a negative code when it
  refused to work (then nothing was written), or the positive `NRM_NONFINITE` when it did
  work but a statistic, a loss or a gradient of the network was not finite, or a row to be
  ranked held a NaN. The others pass a NaN on without a word. `nrm_strerror` puts a code
  into words. Two negative codes come after work: a gradient check that fails has written
  its reports, and a network whose workers have lost each other (`NRM_ESYNC`) is half-way
  through a step.
- Outputs may not overlap inputs, except where a declaration says "may be" (in place, same
  pointer).
- `N = 0` is a well-defined nothing: no output, no change, `NRM_OK`. (The one exception is a
  batch shared by several workers, ## 9: one that has no examples still moves its running
  statistics, as all the others do.)
- In a forward pass a NaN or infinity spoils the channel (batch norm) or the row (layer
  norm) it is in, and nothing else; it never enters running statistics. Gradients of
  parameters are sums over rows, so there it reaches all.
- In float, results are within 5·10⁻⁶ of the largest exact one for means of x up to 10⁶
  times its spread, and for values up to about 10³⁷, if the mean of dy is no larger than its
  spread (docs/accuracy.md). Where it is, the error of γ's gradient in batch norm grows with
  it: some 3·10⁻⁶ times as many spreads as it is.
- Calls on different buffers may run at the same time; an `nrm_mlp`, `nrm_rng` or
  `nrm_running` belongs to one thread at a time. The deepest stack is dense batch norm's, 42
  KB (66 KB with `NRM_DOUBLE`; a smaller `NRM_WIDTH` makes it smaller, and no result
  different), but for layer norm's backward pass of rows wider than that: 100 KB (130 KB).
- ε stands inside the square root, and a variance divides by the number of values, not by
  one less. The exceptions say so: `nrm_layernorm_std_...` (## 7.6), the stored variance of
  batch norm (`biased`), and Lp batch norm, which has no root to put ε into. No running
  statistic contains ε: give a layer the same one in training and in use.
- No parameter is called momentum: the weight of the *new* value is `new_weight` (PyTorch's
  momentum; one minus the momentum of Keras, Flax and ONNX, see ## 14.4).

## Notation

    N, C, S, D      examples in a batch, channels, positions per channel (1 if dense), features
    xᵢ, yᵢ          input and output; a hat, x̂ᵢ, is the normalized value
    μ, v, r         mean, variance (divided by the count), r = 1/√(v + ε)       mean, -, rstd
    γ, β, ε         scale, shift, the small constant inside the root            gamma, beta, eps
    ⟨a⟩             mean of a over whatever is being normalized together
    M               values that share one statistic in batch norm, N·S
    U(a, b)         uniform between a and b; N(m, v): normal with mean m and VARIANCE v
    ~, E[a]         "is drawn from"; expectation
    L, dx           the scalar loss; dx is short for ∂L/∂x, and so for every other letter
    g               ∂L/∂x̂, the gradient by the normalized value: γ·dy
    m, u            running mean and running variance of batch norm
    h               μ rounded to nrm_real: the point from which the code measures x
    δᵢⱼ             1 if i = j, else 0
    ∑ᵢ              sum over i

Other letters (a, b, q, s, t, …) are defined where they occur and hold for that section; so
does a letter of the list that a section defines anew.
*/
#ifndef NORMLAYERS_H
#define NORMLAYERS_H

#include <stddef.h>
#include <stdint.h>

#define NRM_VERSION_MAJOR 0
#define NRM_VERSION_MINOR 1
#define NRM_VERSION_PATCH 0
#define NRM_VERSION "0.1.0"


#if defined(NRM_NO_LIBC) && !defined(NRM_NO_STDIO)
#define NRM_NO_STDIO
#endif

#ifdef NRM_DOUBLE
typedef double nrm_real; /* the type of all data and parameters */
#else
typedef float nrm_real; /* the type of all data and parameters */
#endif
#ifdef NRM_ACC
typedef NRM_ACC nrm_acc; /* the type of statistics, sums and losses */
#else
typedef double nrm_acc; /* the type of statistics, sums and losses */
#endif

/* A compile-time check: nrm_acc is float or double. */
typedef char nrm_acc_is_float_or_double
    [sizeof(nrm_acc) == sizeof(float) || sizeof(nrm_acc) == sizeof(double) ? 1 : -1];

#define NRM_EPS ((nrm_real)1e-5) /* the usual ε, in the right type */

#ifdef NRM_STATIC
#define NRM_DEF static inline
#elif defined(__cplusplus)
#define NRM_DEF extern "C"
#else
#define NRM_DEF extern
#endif

/*
### Link names

A program that declares these functions for `double` and links a copy compiled for `float`
would misread its arrays in silence. So the names that the linker sees carry the types,
unless they are the default ones: `nrm_accuracy` becomes `nrm_accuracy_f64` with
`NRM_DOUBLE`, and `nrm_accuracy_f32_float` with `NRM_ACC=float`. The structs go along, since
in C++ two types of one name would break the rules.
*/
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
#define nrm_convention NRM_LINK(nrm_convention)
#define nrm_rnn NRM_LINK(nrm_rnn)
#define nrm_rnn_grads NRM_LINK(nrm_rnn_grads)
#define nrm_array NRM_LINK(nrm_array)
#define nrm_array_info NRM_LINK(nrm_array_info)
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
#define nrm_mlp_check NRM_LINK(nrm_mlp_check)
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
#define nrm_stats_check NRM_LINK(nrm_stats_check)
#define nrm_running_check NRM_LINK(nrm_running_check)
#define nrm_sync_batchnorm_forward NRM_LINK(nrm_sync_batchnorm_forward)
#define nrm_sync_batchnorm_sums NRM_LINK(nrm_sync_batchnorm_sums)
#define nrm_sync_batchnorm_backward NRM_LINK(nrm_sync_batchnorm_backward)
#define nrm_batchrenorm_forward NRM_LINK(nrm_batchrenorm_forward)
#define nrm_batchrenorm_backward NRM_LINK(nrm_batchrenorm_backward)
#define nrm_layernorm_std_forward NRM_LINK(nrm_layernorm_std_forward)
#define nrm_layernorm_std_backward NRM_LINK(nrm_layernorm_std_backward)
#define nrm_groupnorm_forward NRM_LINK(nrm_groupnorm_forward)
#define nrm_groupnorm_backward NRM_LINK(nrm_groupnorm_backward)
#define nrm_instancenorm_forward NRM_LINK(nrm_instancenorm_forward)
#define nrm_instancenorm_backward NRM_LINK(nrm_instancenorm_backward)
#define nrm_rmsnorm_forward NRM_LINK(nrm_rmsnorm_forward)
#define nrm_rmsnorm_backward NRM_LINK(nrm_rmsnorm_backward)
#define nrm_lp_batchnorm_forward NRM_LINK(nrm_lp_batchnorm_forward)
#define nrm_lp_batchnorm_backward NRM_LINK(nrm_lp_batchnorm_backward)
#define nrm_weightnorm_forward NRM_LINK(nrm_weightnorm_forward)
#define nrm_weightnorm_backward NRM_LINK(nrm_weightnorm_backward)
#define nrm_batchnorm_fold NRM_LINK(nrm_batchnorm_fold)
#define nrm_batchnorm_unfold NRM_LINK(nrm_batchnorm_unfold)
#define nrm_convention_of NRM_LINK(nrm_convention_of)
#define nrm_running_import NRM_LINK(nrm_running_import)
#define nrm_rnn_forward NRM_LINK(nrm_rnn_forward)
#define nrm_rnn_backward NRM_LINK(nrm_rnn_backward)
#define nrm_save NRM_LINK(nrm_save)
#define nrm_load NRM_LINK(nrm_load)
#define nrm_list NRM_LINK(nrm_list)
#define nrm_mlp_reestimate NRM_LINK(nrm_mlp_reestimate)
#define nrm_mlp_check_stats NRM_LINK(nrm_mlp_check_stats)
#define nrm_mlp_save NRM_LINK(nrm_mlp_save)
#define nrm_mlp_load NRM_LINK(nrm_mlp_load)
#define nrm_gradcheck NRM_LINK(nrm_gradcheck)
#endif

/* ---- status codes ---------------------------------------------------------------------------- */

/* One list: name, value, message. The enum and nrm_strerror are both made from it. */
#define NRM_STATUS_LIST(X)                                                                         \
    X(NRM_NONFINITE, 1, "done, but met a NaN or an infinity; no running statistic took it in")  \
    X(NRM_OK, 0, "success")                                                                        \
    X(NRM_ENULL, -1, "a required pointer is NULL")                                                 \
    X(NRM_ESIZE, -2, "a size is zero, or an index or count is out of range")                       \
    X(NRM_EOVERFLOW, -3, "the product of the sizes does not fit into size_t")                      \
    X(NRM_EALIAS, -4, "an output overlaps another buffer")                                         \
    X(NRM_EEPS, -5, "eps must be positive and finite")                                             \
    X(NRM_EMODE, -6, "unknown mode, or a backward pass in infer mode")                             \
    X(NRM_EBATCH, -7, "one value per channel in train mode: its variance is no estimate")          \
    X(NRM_EWEIGHT, -8, "new_weight must lie in 0..1")                                              \
    X(NRM_ESTATS, -9, "running statistics hold a negative variance, a NaN or an infinity")         \
    X(NRM_ENOISE, -10, "noise parameters must be finite and not negative")                         \
    X(NRM_EKIND, -11, "unknown activation, norm, initialisation or optimizer")                     \
    X(NRM_ELABEL, -12, "a label lies outside 0..C-1")                                              \
    X(NRM_ERATE, -13, "a learning rate, tolerance or another setting is out of range")             \
    X(NRM_EBLOCK, -14, "the memory block is smaller than nrm_mlp_bytes asks")                      \
    X(NRM_EGRADIENT, -15, "a gradient is wrong: the report names the worst entry of its group")    \
    X(NRM_EUNSETTLED, -16, "a gradient could not be judged: the differences do not settle")        \
    X(NRM_EFILE, -17, "the file cannot be opened, read, written or renamed: see errno")           \
    X(NRM_EFORMAT, -18, "the file is damaged, or not in a format that is known")                   \
    X(NRM_ESHAPE, -19, "an array of a file has another type or shape, or a network other layers")  \
    X(NRM_ENAME, -20, "an array is not in the file, or its name is taken, too long, not allowed")  \
    X(NRM_ESYNC, -21, "the merge or add function of nrm_sync has failed")

#define NRM_STATUS_ENUM(name, value, message) name = value,
enum nrm_status { NRM_STATUS_LIST(NRM_STATUS_ENUM) };

NRM_DEF const char *nrm_version(void);        /* the version of the compiled code, "0.1.0"        */
NRM_DEF const char *nrm_strerror(int status); /* the message; never NULL, even for unknown codes  */

/* ---- linear layer: y = xW + b ---------------------------------------------------------------- */

NRM_DEF int nrm_linear_forward(
    nrm_real *y,            /* [N][out]  out                                                      */
    const nrm_real *x,      /* [N][in]                                                            */
    const nrm_real *W,      /* [in][out]                                                          */
    const nrm_real *b,      /* [out], or NULL for none                                            */
    size_t N, size_t in, size_t out);

NRM_DEF int nrm_linear_backward(
    nrm_real *dx,           /* [N][in]   out, =   or NULL if not wanted                           */
    nrm_real *dW,           /* [in][out] in/out, +=   or NULL if not wanted                       */
    nrm_real *db,           /* [out]     in/out, +=   or NULL if not wanted                       */
    const nrm_real *dy,     /* [N][out]                                                           */
    const nrm_real *x,      /* [N][in]   may be NULL if dW is                                     */
    const nrm_real *W,      /* [in][out] may be NULL if dx is                                     */
    size_t N, size_t in, size_t out);

/* ---- random numbers: PCG32 ------------------------------------------------------------------- */

typedef struct nrm_rng { /* copy it to fork or rewind a stream */
    uint64_t state, increment;
    nrm_acc spare;       /* normals come in pairs: the second one, */
    int has_spare;       /* if there is one                        */
} nrm_rng;

/* Any seed, any stream. A network draws from streams 0 to 4·layers - 1 of its seed: take others. */
NRM_DEF void nrm_rng_seed(nrm_rng *rng, uint64_t seed, uint64_t stream);
NRM_DEF uint32_t nrm_rng_u32(nrm_rng *rng);               /* all 2^32 values alike              */
NRM_DEF uint32_t nrm_rng_below(nrm_rng *rng, uint32_t n); /* 0..n-1, unbiased; 0 if n is 0      */
NRM_DEF nrm_real nrm_rng_uniform(nrm_rng *rng);           /* in [0, 1)                          */
NRM_DEF nrm_real nrm_rng_normal(nrm_rng *rng);            /* mean 0, standard deviation 1       */
NRM_DEF int nrm_rng_shuffle(nrm_rng *rng, size_t *index, size_t n); /* [n] in/out, n < 2^32     */

/* ---- batch normalization --------------------------------------------------------------------- */

enum nrm_mode {
    NRM_TRAIN = 0,  /* statistics of this batch; running statistics are updated                   */
    NRM_INFER = 1,  /* running statistics; no backward pass                                       */
    NRM_FROZEN = 2  /* running statistics, taken as constants; gradients flow through             */
};

typedef struct nrm_running { /* running statistics of one batch norm layer */
    nrm_real *mean;      /* [C] start at 0                                                        */
    nrm_real *var;       /* [C] start at 1                                                        */
    nrm_real new_weight; /* weight of the new batch, 0..1; 0.1 is usual                           */
    int cumulative;      /* non-zero: the plain average of all batches; new_weight is not used    */
    int biased;          /* non-zero: store v as is; zero: store v·M/(M-1), as PyTorch does       */
    size_t batches;      /* how many batches have entered so far                                  */
} nrm_running;

/* The tensor is [N][C][S]: S = 1 for a dense layer, S = H*W for images in NCHW order. Images in
   NHWC order are the dense case with N*H*W rows. In train mode N*S must be at least 2. */
NRM_DEF int nrm_batchnorm_forward(
    nrm_real *y,            /* [N][C][S] out; may be x in infer mode                              */
    nrm_acc *mean,          /* [C] out, saved for backward; may be NULL in infer mode             */
    nrm_acc *rstd,          /* [C] out, saved for backward; may be NULL in infer mode             */
    nrm_running *running,   /* in/out in train mode (NULL: not tracked), in otherwise             */
    const nrm_real *x,      /* [N][C][S]                                                          */
    const nrm_real *gamma,  /* [C], or NULL for 1                                                 */
    const nrm_real *beta,   /* [C], or NULL for 0                                                 */
    int mode, nrm_real eps, size_t N, size_t C, size_t S);

NRM_DEF int nrm_batchnorm_backward(
    nrm_real *dx,           /* [N][C][S] out, =; may be dy                                        */
    nrm_real *dgamma,       /* [C] in/out, +=, or NULL if not wanted                              */
    nrm_real *dbeta,        /* [C] in/out, +=, or NULL if not wanted                              */
    const nrm_real *dy,     /* [N][C][S]                                                          */
    const nrm_real *x,      /* [N][C][S] the forward pass's input                                 */
    const nrm_acc *mean,    /* [C] as saved                                                       */
    const nrm_acc *rstd,    /* [C] as saved                                                       */
    const nrm_real *gamma,  /* [C], or NULL for 1                                                 */
    int mode, size_t N, size_t C, size_t S); /* the forward pass's mode: train or frozen          */

/* ---- statistics that merge; synchronised and masked batch norm ------------------------------- */

typedef struct nrm_stats { /* of one channel; all zero means: of no values yet */
    nrm_acc count, mean, m2; /* how many, their mean, the sum of squared deviations from it       */
} nrm_stats;

typedef struct nrm_sums { /* of one channel: what a backward pass wants to know of all workers */
    nrm_acc dy, dy_xhat;     /* sum of dy, sum of dy times normalized x: add these up             */
} nrm_sums;

/* Takes the values of a batch in. In these four functions mask [N][S] says which positions count:
   where it is 0, x and dy are not looked at, and y and dx are set to 0. NULL: all count. */
NRM_DEF int nrm_stats_update(
    nrm_stats *stats,       /* [C] in/out                                                         */
    const nrm_real *x,      /* [N][C][S]                                                          */
    const unsigned char *mask, size_t N, size_t C, size_t S);

/* As if `into` had seen the values of `from` too, after its own. The order makes the bits. */
NRM_DEF int nrm_stats_merge(nrm_stats *into /* [C] in/out */, const nrm_stats *from, size_t C);

/* Running statistics become those of all values that stats has seen, and count as one batch. */
NRM_DEF int nrm_running_set(nrm_running *running, const nrm_stats *stats /* [C] */, size_t C);

/* Are the statistics usable? If not: NRM_ESTATS, and the first bad channel (may be NULL). */
NRM_DEF int nrm_stats_check(size_t *channel, const nrm_stats *stats /* [C] */, size_t C);
NRM_DEF int nrm_running_check(size_t *channel, const nrm_running *running, size_t C);

/* Batch norm in train mode by statistics that may be of more than this batch: those of all workers
   or micro-batches, merged. If N = 0 there is no y, but mean, rstd and running are as with all
   other workers. */
NRM_DEF int nrm_sync_batchnorm_forward(
    nrm_real *y,            /* [N][C][S] out                                                      */
    nrm_acc *mean,          /* [C] out, saved for backward                                        */
    nrm_acc *rstd,          /* [C] out, saved for backward                                        */
    nrm_running *running,   /* in/out, NULL: not tracked                                          */
    const nrm_real *x,      /* [N][C][S]                                                          */
    const unsigned char *mask, const nrm_stats *stats, /* [N][S] or NULL, [C]                     */
    const nrm_real *gamma, const nrm_real *beta,       /* [C], or NULL for 1, 0                   */
    nrm_real eps, size_t N, size_t C, size_t S);

/* First half of the backward pass: this batch's part of the sums, and of the gradients. */
NRM_DEF int nrm_sync_batchnorm_sums(
    nrm_sums *sums,         /* [C] out, =                                                         */
    nrm_real *dgamma, nrm_real *dbeta,                 /* [C] in/out, +=, or NULL                 */
    const nrm_real *dy, const nrm_real *x,             /* [N][C][S]                               */
    const unsigned char *mask, const nrm_acc *mean, const nrm_acc *rstd, /* as above              */
    size_t N, size_t C, size_t S);

/* Second half: the gradient of the input, from the sums of all. */
NRM_DEF int nrm_sync_batchnorm_backward(
    nrm_real *dx,           /* [N][C][S] out, =; may be dy                                        */
    const nrm_real *dy, const nrm_real *x, const unsigned char *mask,
    const nrm_acc *mean, const nrm_acc *rstd, const nrm_real *gamma,
    const nrm_stats *stats, /* [C] as in the forward pass: their counts                           */
    const nrm_sums *sums,   /* [C] added up over all workers or micro-batches                     */
    size_t N, size_t C, size_t S);

/* ---- batch renormalization ------------------------------------------------------------------- */

/* Batch norm whose output in train mode is that of the running statistics, within limits. */
NRM_DEF int nrm_batchrenorm_forward(
    nrm_real *y,            /* [N][C][S] out; may be x in infer mode                              */
    nrm_acc *ratio,         /* [C] out in train mode, saved for backward: ρ of BR.1               */
    nrm_acc *offset,        /* [C] out in train mode, saved for backward: d of BR.2               */
    nrm_acc *mean, nrm_acc *rstd, nrm_running *running, /* as in batch norm; running is required  */
    const nrm_real *x, const nrm_real *gamma, const nrm_real *beta,
    nrm_real r_max,         /* ρ stays within 1/r_max..r_max; 1: plain batch norm                 */
    nrm_real d_max,         /* d stays within ±d_max; 0: plain batch norm                         */
    int mode, nrm_real eps, size_t N, size_t C, size_t S);

NRM_DEF int nrm_batchrenorm_backward(
    nrm_real *dx, nrm_real *dgamma, nrm_real *dbeta,    /* as in batch norm                       */
    const nrm_real *dy, const nrm_real *x, const nrm_acc *ratio, const nrm_acc *offset,
    const nrm_acc *mean, const nrm_acc *rstd, const nrm_real *gamma,
    int mode, size_t N, size_t C, size_t S);

/* ---- layer normalization --------------------------------------------------------------------- */

NRM_DEF int nrm_layernorm_forward(
    nrm_real *y,            /* [N][D] out                                                         */
    nrm_acc *mean,          /* [N] out, saved for backward; both NULL if there will be none       */
    nrm_acc *rstd,          /* [N] out, saved for backward                                        */
    const nrm_real *x,      /* [N][D]                                                             */
    const nrm_real *gamma,  /* [D], or NULL for 1                                                 */
    const nrm_real *beta,   /* [D], or NULL for 0                                                 */
    nrm_real eps, size_t N, size_t D);

NRM_DEF int nrm_layernorm_backward(
    nrm_real *dx,           /* [N][D] out, =; may be dy                                           */
    nrm_real *dgamma,       /* [D] in/out, +=, or NULL if not wanted                              */
    nrm_real *dbeta,        /* [D] in/out, +=, or NULL if not wanted                              */
    const nrm_real *dy,     /* [N][D]                                                             */
    const nrm_real *x,      /* [N][D] the forward pass's input                                    */
    const nrm_acc *mean,    /* [N] as saved                                                       */
    const nrm_acc *rstd,    /* [N] as saved                                                       */
    const nrm_real *gamma,  /* [D], or NULL for 1                                                 */
    size_t N, size_t D);

/* The variant with x̂ = (x − μ)/(s + ε), s the standard deviation with D − 1 below: LN.17. D is at
   least 2, and the backward pass wants eps again. All else as above. */
NRM_DEF int nrm_layernorm_std_forward(nrm_real *y, nrm_acc *mean, nrm_acc *rstd /* [N] 1/(s + ε) */,
                                      const nrm_real *x, const nrm_real *gamma,
                                      const nrm_real *beta, nrm_real eps, size_t N, size_t D);
NRM_DEF int nrm_layernorm_std_backward(nrm_real *dx, nrm_real *dgamma, nrm_real *dbeta,
                                       const nrm_real *dy, const nrm_real *x, const nrm_acc *mean,
                                       const nrm_acc *rstd, const nrm_real *gamma, nrm_real eps,
                                       size_t N, size_t D);

/* ---- group, instance and RMS normalization --------------------------------------------------- */

/* G groups of C/G channels; every group of every example has its own statistics. G = 1 is layer
   norm over channels and positions, G = C is instance norm. */
NRM_DEF int nrm_groupnorm_forward(
    nrm_real *y,            /* [N][C][S] out                                                      */
    nrm_acc *mean,          /* [N][G] out, saved for backward; both NULL if there will be none    */
    nrm_acc *rstd,          /* [N][G] out, saved for backward                                     */
    const nrm_real *x,      /* [N][C][S]                                                          */
    const nrm_real *gamma,  /* [C], or NULL for 1                                                 */
    const nrm_real *beta,   /* [C], or NULL for 0                                                 */
    nrm_real eps, size_t N, size_t C, size_t S, size_t G);

NRM_DEF int nrm_groupnorm_backward(
    nrm_real *dx,           /* [N][C][S] out, =; may be dy                                        */
    nrm_real *dgamma,       /* [C] in/out, +=, or NULL if not wanted                              */
    nrm_real *dbeta,        /* [C] in/out, +=, or NULL if not wanted                              */
    const nrm_real *dy, const nrm_real *x,              /* [N][C][S]                              */
    const nrm_acc *mean, const nrm_acc *rstd,           /* [N][G] as saved                        */
    const nrm_real *gamma, size_t N, size_t C, size_t S, size_t G);

/* Group norm with G = C: every channel of every example on its own. */
NRM_DEF int nrm_instancenorm_forward(nrm_real *y, nrm_acc *mean, nrm_acc *rstd, const nrm_real *x,
                                     const nrm_real *gamma, const nrm_real *beta, nrm_real eps,
                                     size_t N, size_t C, size_t S);
NRM_DEF int nrm_instancenorm_backward(nrm_real *dx, nrm_real *dgamma, nrm_real *dbeta,
                                      const nrm_real *dy, const nrm_real *x, const nrm_acc *mean,
                                      const nrm_acc *rstd, const nrm_real *gamma, size_t N,
                                      size_t C, size_t S);

/* Layer norm without the mean. */
NRM_DEF int nrm_rmsnorm_forward(
    nrm_real *y,            /* [N][D] out                                                         */
    nrm_acc *rstd,          /* [N] out, saved for backward; NULL if there will be none            */
    const nrm_real *x,      /* [N][D]                                                             */
    const nrm_real *gamma,  /* [D], or NULL for 1                                                 */
    nrm_real eps, size_t N, size_t D);

NRM_DEF int nrm_rmsnorm_backward(
    nrm_real *dx,           /* [N][D] out, =; may be dy                                           */
    nrm_real *dgamma,       /* [D] in/out, +=, or NULL if not wanted                              */
    const nrm_real *dy, const nrm_real *x, const nrm_acc *rstd, const nrm_real *gamma,
    size_t N, size_t D);

/* ---- noisy batch normalization --------------------------------------------------------------- */

typedef struct nrm_noise { /* how the noise is drawn: equations NB.1 to NB.4 */
    nrm_real mean_range;   /* n_μ: a unit's offset is centred somewhere in ±n_μ                   */
    nrm_real scale_max;    /* n_σ: a unit's scale is centred somewhere between 1 and n_σ          */
    nrm_real mean_jitter;  /* r_μ: half the width of the offsets' spread over the samples         */
    nrm_real scale_jitter; /* r_σ: standard deviation of the scales over the samples              */
} nrm_noise;

NRM_DEF nrm_noise nrm_noise_paper(void); /* 0.5, 1.25, 0.1, 0.1: Santurkar et al., app. A.2 */

NRM_DEF int nrm_noise_forward(
    nrm_real *y,            /* [N][C][S] out; may be x                                            */
    nrm_real *scale,        /* [N][C][S] out, saved for backward: the factors drawn               */
    const nrm_real *x,      /* [N][C][S]                                                          */
    const nrm_noise *noise, nrm_rng *rng, size_t N, size_t C, size_t S);

NRM_DEF int nrm_noise_backward(
    nrm_real *dx,           /* [count] out, =; may be dy                                          */
    const nrm_real *dy,     /* [count]                                                            */
    const nrm_real *scale,  /* [count] as saved                                                   */
    size_t count);          /* N*C*S                                                              */

/* Batch norm, then noise in train mode; in the other modes batch norm alone. */
NRM_DEF int nrm_noisy_batchnorm_forward(
    nrm_real *y,            /* [N][C][S] out                                                      */
    nrm_real *scale,        /* [N][C][S] out, saved for backward in train mode                    */
    nrm_acc *mean, nrm_acc *rstd, nrm_running *running, /* as in nrm_batchnorm_forward            */
    const nrm_real *x, const nrm_real *gamma, const nrm_real *beta,
    const nrm_noise *noise, nrm_rng *rng, int mode, nrm_real eps, size_t N, size_t C, size_t S);

NRM_DEF int nrm_noisy_batchnorm_backward(
    nrm_real *dx,           /* [N][C][S] out, =; may be dy                                        */
    nrm_real *dgamma, nrm_real *dbeta,      /* [C] in/out, +=, or NULL                            */
    const nrm_real *dy,     /* [N][C][S]                                                          */
    const nrm_real *scale,  /* [N][C][S] as saved: the same draws as in the forward pass          */
    const nrm_real *x, const nrm_acc *mean, const nrm_acc *rstd, const nrm_real *gamma,
    int mode, size_t N, size_t C, size_t S);

/* ---- Lp batch normalization ------------------------------------------------------------------ */

enum nrm_lp { /* what batch norm divides by, with ε added to it */
    NRM_L1 = 1,       /* the mean of |x|                                                          */
    NRM_L2 = 2,       /* the root of the mean of x²                                               */
    NRM_LINF = 3,     /* the largest |x|                                                          */
    NRM_CENTRED = 4   /* add it, and |x − μ| takes the place of |x|                               */
};

NRM_DEF int nrm_lp_batchnorm_forward(
    nrm_real *y,            /* [N][C][S] out; may be x in infer mode                              */
    nrm_acc *mean,          /* [C] out, saved for backward; may be NULL in infer mode             */
    nrm_acc *scale,         /* [C] out, saved for backward: t of LP.2; may be NULL in infer mode  */
    nrm_running *running,   /* as in batch norm, but var holds the running t itself               */
    const nrm_real *x, const nrm_real *gamma, const nrm_real *beta,
    int p,                  /* NRM_L1, NRM_L2, NRM_LINF, or one of these + NRM_CENTRED            */
    int mode, nrm_real eps, size_t N, size_t C, size_t S);

NRM_DEF int nrm_lp_batchnorm_backward(
    nrm_real *dx, nrm_real *dgamma, nrm_real *dbeta,    /* as in batch norm                       */
    const nrm_real *dy, const nrm_real *x, const nrm_acc *mean, const nrm_acc *scale,
    const nrm_real *gamma, int p, int mode, nrm_real eps, size_t N, size_t C, size_t S);

/* ---- weight normalization -------------------------------------------------------------------- */

NRM_DEF int nrm_weightnorm_forward( /* W = g·v/|v|, column by column: use W in the linear layer */
    nrm_real *W,            /* [in][out] out                                                      */
    nrm_acc *norm,          /* [out] out, saved for backward: |v|; NULL if there will be none     */
    const nrm_real *v,      /* [in][out] directions                                               */
    const nrm_real *g,      /* [out] lengths, or NULL for 1                                       */
    size_t in, size_t out);

NRM_DEF int nrm_weightnorm_backward(
    nrm_real *dv,           /* [in][out] in/out, +=; or NULL if not wanted                        */
    nrm_real *dg,           /* [out] in/out, +=; or NULL if not wanted                            */
    const nrm_real *dW,     /* [in][out] from the linear layer                                    */
    const nrm_real *v, const nrm_acc *norm, const nrm_real *g, size_t in, size_t out);

/* ---- folding, and the statistics of other libraries ------------------------------------------ */

/* Batch norm with running statistics, melted into the weights before it: W' and b' of FOLD.1 and
   FOLD.2. The weights are [outer][C][inner], with C the outputs: [in][out] as here is outer = in,
   inner = 1; [out][in], and convolutions [out][in][h][w], are outer = 1, inner = all the rest. */
NRM_DEF int nrm_batchnorm_fold(
    nrm_real *W_out,        /* [outer][C][inner] out; may be W                                    */
    nrm_real *b_out,        /* [C] out; may be b                                                  */
    const nrm_real *W,      /* [outer][C][inner]                                                  */
    const nrm_real *b,      /* [C], or NULL for 0                                                 */
    const nrm_running *running, const nrm_real *gamma, const nrm_real *beta,
    nrm_real eps, size_t outer, size_t C, size_t inner);

/* The way back: weights that give the folded ones. If gamma/√(u + ε) is 0 or else cannot be undone:
   NRM_ESTATS. Either way NRM_NONFINITE says that a result is not finite. */
NRM_DEF int nrm_batchnorm_unfold(
    nrm_real *W, nrm_real *b,                            /* out; may be W_folded, b_folded        */
    const nrm_real *W_folded, const nrm_real *b_folded,  /* neither may be NULL                   */
    const nrm_running *running, const nrm_real *gamma, const nrm_real *beta,
    nrm_real eps, size_t outer, size_t C, size_t inner);

enum nrm_library { /* whose running statistics these are; the last is of texts, not of a library */
    NRM_PYTORCH = 0, NRM_KERAS = 1, NRM_FLAX = 2, NRM_ONNX = 3, NRM_CAFFE = 4, NRM_DARKNET = 5,
    NRM_CUDNN = 6, NRM_TINY_DNN = 7, NRM_RUNNING_STD = 8
};
enum nrm_spread { NRM_KEEPS_VAR = 0, NRM_KEEPS_STD = 1, NRM_KEEPS_RSTD = 2 };

typedef struct nrm_convention { /* how a library keeps its running statistics */
    int spread;          /* NRM_KEEPS_VAR, NRM_KEEPS_STD, or NRM_KEEPS_RSTD: 1/(its divisor)      */
    int eps_outside;     /* 1: divides by √v + ε; 0: by √(v + ε)                                  */
    int weight_is_old;   /* 1: its momentum is the weight of the old value                        */
    int biased;          /* 1: stores the variance divided by M                                   */
    nrm_acc momentum, eps; /* as it writes them; its defaults, or -1: it has none, set them       */
} nrm_convention;

NRM_DEF int nrm_convention_of(nrm_convention *convention, int library);

/* Running statistics and ε as another library has them, made ours: BN.11 then gives what it gave.
   cumulative and batches stay as they are. */
NRM_DEF int nrm_running_import(
    nrm_running *running,   /* mean, var [C] out, new_weight and biased too                       */
    nrm_real *eps,          /* out: the ε to use from now on                                      */
    const nrm_real *mean,   /* [C] as stored there                                                */
    const nrm_real *spread, /* [C] as stored there: variance, standard deviation or 1/s           */
    nrm_acc factor,         /* Caffe's third blob, by which both are divided; else 1              */
    const nrm_convention *convention, size_t C);

/* ---- activations ----------------------------------------------------------------------------- */

enum nrm_activation { NRM_IDENTITY = 0, NRM_RELU = 1, NRM_TANH = 2, NRM_SIGMOID = 3 };

NRM_DEF int nrm_activation_forward(
    nrm_real *y,            /* [count] out; may be x                                              */
    const nrm_real *x,      /* [count]                                                            */
    int activation, size_t count);

NRM_DEF int nrm_activation_backward(
    nrm_real *dx,           /* [count] out, =; may be dy                                          */
    const nrm_real *dy,     /* [count]                                                            */
    const nrm_real *y,      /* [count] the forward pass's output                                  */
    int activation, size_t count);

/* ---- softmax cross-entropy with logits, mean over the batch ---------------------------------- */

NRM_DEF int nrm_cross_entropy_forward(
    nrm_acc *loss,          /* out: the mean loss in nats (0 for an empty batch)                  */
    nrm_real *prob,         /* [N][C] out, saved for backward: softmax(z); may be logits; or NULL */
    const nrm_real *logits, /* [N][C]                                                             */
    const int *labels,      /* [N] each in 0..C-1                                                 */
    size_t N, size_t C);

NRM_DEF int nrm_cross_entropy_backward(
    nrm_real *dlogits,      /* [N][C] out, =; may be prob                                         */
    const nrm_real *prob,   /* [N][C] as saved                                                    */
    const int *labels,      /* [N]                                                                */
    size_t N, size_t C);

NRM_DEF int nrm_argmax(     /* the largest entry of each row; of equals the first                 */
    int *labels,            /* [N] out                                                            */
    const nrm_real *logits, /* [N][C]                                                             */
    size_t N, size_t C);

NRM_DEF int nrm_accuracy(   /* the fraction of rows whose largest entry is the label's            */
    nrm_acc *accuracy,      /* out: in 0..1 (0 for an empty batch); a row that holds NaN is wrong */
    const nrm_real *logits, /* [N][C]                                                             */
    const int *labels,      /* [N] each in 0..C-1                                                 */
    size_t N, size_t C);

/* ---- a recurrent layer ----------------------------------------------------------------------- */

typedef struct nrm_rnn { /* h[t+1] = f(norm(x[t]·Wx + h[t]·Wh)·gamma + beta), and its sizes */
    size_t T, N, in, H;     /* steps, sequences side by side, inputs, units; T = 0: like N = 0    */
    int norm;               /* NRM_NO_NORM, NRM_LAYER_NORM or NRM_BATCH_NORM                      */
    int activation;         /* f                                                                  */
    nrm_real eps;           /* not used without a norm                                            */
    const nrm_real *Wx;     /* [in][H]                                                            */
    const nrm_real *Wh;     /* [H][H]                                                             */
    const nrm_real *gamma;  /* [H], or NULL for 1; not used without a norm                        */
    const nrm_real *beta;   /* [H], or NULL for 0; without a norm: the bias                       */
    nrm_running *running;   /* [T] batch norm only: one for each step; may be NULL in train mode.
                               In the others a step that no batch has entered, where some did
                               enter the first, is refused: NRM_ESIZE, see ## 17.3                */
} nrm_rnn;

NRM_DEF int nrm_rnn_forward(
    nrm_real *h,            /* [T+1][N][H] h[0]: in, the state to start from; the rest: out       */
    nrm_real *a,            /* [T][N][H] out, saved for backward: the summed inputs               */
    nrm_acc *mean,          /* [T][N] (layer norm) or [T][H] (batch norm) out, saved for backward;
                               may be NULL without a norm and in infer mode                       */
    nrm_acc *rstd,          /* the same; both or neither                                          */
    const nrm_real *x,      /* [T][N][in]                                                         */
    const nrm_rnn *rnn, int mode);

typedef struct nrm_rnn_grads { /* what backward adds to, of the same shapes; each may be NULL */
    nrm_real *dWx, *dWh, *dgamma, *dbeta; /* dgamma is not used without a norm                    */
} nrm_rnn_grads;

NRM_DEF int nrm_rnn_backward(
    nrm_real *dh,           /* [T+1][N][H] in/out: in, the loss by each h alone; out, by way of
                               all later ones too; dh[0] is that of the state to start from       */
    nrm_real *dx,           /* [T][N][in] out, =, or NULL if not wanted                           */
    const nrm_rnn_grads *grads, /* in/out, +=, or NULL if not wanted                              */
    nrm_real *da,           /* [T][N][H] out: the gradient by the summed inputs                   */
    const nrm_real *h, const nrm_real *a, const nrm_acc *mean, const nrm_acc *rstd, /* as saved;
                               without a norm only h                                              */
    const nrm_real *x,      /* [T][N][in] may be NULL if dWx is                                   */
    const nrm_rnn *rnn, int mode); /* the forward pass's mode: train or frozen                    */

/* ---- the tiny multilayer perceptron ---------------------------------------------------------- */

enum nrm_norm {
    NRM_NO_NORM = 0, NRM_BATCH_NORM = 1, NRM_LAYER_NORM = 2, NRM_NOISY_BATCH_NORM = 3,
    NRM_GROUP_NORM = 4, NRM_RMS_NORM = 5, NRM_BATCH_RENORM = 6, NRM_LP_BATCH_NORM = 7
};
enum nrm_init {
    NRM_INIT_HE = 0,       /* W ~ N(0, 2/in), b = 0                                               */
    NRM_INIT_XAVIER = 1,   /* W ~ U(±√(6/(in+out))), b = 0                                        */
    NRM_INIT_GAUSSIAN = 2, /* W ~ N(0, init_std²), b = 0                                          */
    NRM_INIT_FAN_IN = 3    /* W, b ~ U(±1/√in): what PyTorch's Linear does by default             */
};
enum nrm_gamma { NRM_GAMMA_ONE = 0, NRM_GAMMA_UNIFORM = 1 /* γ ~ U(0,1) */ };
enum nrm_optimizer { NRM_SGD = 0, NRM_ADAM = 1 };
enum nrm_place { NRM_AT_LINEAR = 0, NRM_AT_NORM = 1, NRM_AT_ACTIVATION = 2 };

typedef struct nrm_mlp_layer { /* one layer; all zero but width: linear, no norm, no bias */
    size_t width;      /* outputs of this layer                                                   */
    int activation;    /* NRM_IDENTITY, NRM_RELU, NRM_TANH, NRM_SIGMOID                           */
    int norm;          /* NRM_NO_NORM, NRM_BATCH_NORM, NRM_LAYER_NORM, ...: enum nrm_norm         */
    int norm_after;    /* 0: linear, norm, activation; 1: linear, activation, norm                */
    int bias;          /* 1: the linear part has a bias; see MLP.3 for when it is redundant       */
    size_t groups;     /* of NRM_GROUP_NORM: must divide width                                    */
    int p;             /* of NRM_LP_BATCH_NORM: NRM_L1, ..., enum nrm_lp                          */
} nrm_mlp_layer;

typedef struct nrm_mlp_event { /* what a probe is shown */
    size_t layer;          /* 0 is the first hidden layer                                         */
    int place;             /* NRM_AT_LINEAR, NRM_AT_NORM, NRM_AT_ACTIVATION: the output of that   */
    int gradient;          /* 0: the value itself, in the forward pass; 1: its gradient           */
    const nrm_real *data;  /* [rows][cols], valid during the call only                            */
    size_t rows, cols;
} nrm_mlp_event;
typedef void nrm_mlp_probe(void *context, const nrm_mlp_event *event);

/* Training on several workers: each has its own copy of the network and calls the same functions in
   the same order, with its part of the batch. These two functions are yours; they return 0, or not
   if they have failed. add NULL: no other workers. merge NULL: batch norm stays each worker's own;
   else it is that of section 9. A worker may come without examples; if all do, a step is one with
   gradient 0. */
typedef struct nrm_sync {
    int (*add)(void *context, nrm_acc *sums, size_t n);      /* [n] in/out: mine become everyone's,
                               added in the order of the workers                                  */
    int (*merge)(void *context, nrm_stats *stats, size_t n); /* [n] in/out: mine become everyone's,
                               merged by nrm_stats_merge in the order of the workers              */
    void *context;          /* handed to both                                                     */
} nrm_sync;

typedef struct nrm_mlp_spec { /* start from nrm_mlp_defaults(); set the first four */
    size_t inputs;               /* features of one example                                       */
    size_t layers;               /* layers that follow, the output layer included                 */
    const nrm_mlp_layer *layer;  /* [layers]; read by init only                                   */
    size_t max_batch;            /* the largest N that one call will see                          */
    uint64_t seed;               /* of weights and noise                                          */
    int init;                    /* how W starts                                                  */
    nrm_real init_std;           /* of NRM_INIT_GAUSSIAN                                          */
    int gamma_init;              /* how γ starts; β starts at 0                                   */
    nrm_real eps;                /* of all norms                                                  */
    nrm_real new_weight;         /* of all running statistics                                     */
    int cumulative, biased;      /* of all running statistics                                     */
    nrm_noise noise;             /* of noisy batch norm                                           */
    nrm_real r_max, d_max;       /* of batch renorm; to be raised while training: net->spec.r_max */
    nrm_sync sync;               /* of training on several workers                                */
    int optimizer;               /* NRM_SGD or NRM_ADAM                                           */
    nrm_real lr;                 /* learning rate: 0.1 suits SGD, 1e-3 Adam                       */
    nrm_real heavy_ball;         /* SGD: how much of the last step is kept, 0 <= . < 1            */
    nrm_real beta1, beta2;       /* Adam: how much of the averages is kept, 0 <= . < 1            */
    nrm_real adam_eps;           /* Adam: added to the root                                       */
} nrm_mlp_spec;

typedef struct nrm_mlp_state { /* one layer's arrays; they point into the block */
    nrm_mlp_layer shape;
    size_t in;                                   /* inputs of this layer                          */
    nrm_real *W, *b, *gamma, *beta;              /* [in][width], then [width]; NULL if absent     */
    nrm_real *dW, *db, *dgamma, *dbeta;          /* their gradients                               */
    nrm_real *linear_out, *norm_out, *act_out;   /* [max_batch][width]; absent stages share       */
    nrm_real *out;                               /* the last of the three                         */
    nrm_acc *mean, *rstd;                        /* saved statistics                              */
    nrm_real *scale;                             /* [max_batch][width] noise factors, or NULL     */
    nrm_acc *ratio, *offset;                     /* [width] of batch renorm, or NULL              */
    nrm_running running;                         /* of batch norm                                 */
    nrm_stats *stats;                            /* [width] of batch norm: merged statistics      */
    nrm_sums *sums;                              /* [width] with sync: sums of all workers        */
} nrm_mlp_state;

typedef struct nrm_mlp { /* change spec.lr, params, probe, and grads before a step; read all */
    nrm_mlp_spec spec;           /* spec.layer is NULL here: see state                            */
    nrm_mlp_state *state;        /* [layers]                                                      */
    size_t n_params;             /* all parameters lie in one array,                              */
    nrm_real *params, *grads;    /* [n_params] each, layer by layer: W, b, gamma, beta            */
    nrm_real *moment1, *moment2; /* [n_params] the optimizer's, NULL if it has none               */
    nrm_real *logits, *prob;     /* [max_batch][classes]                                          */
    nrm_real *work[2];           /* [max_batch][widest] gradients on their way back               */
    nrm_acc *total;              /* [n_params + 1] with sync: what is added up                    */
    nrm_rng rng;                 /* the noise                                                     */
    size_t steps;                /* optimizer steps so far                                        */
    nrm_acc beta1_power, beta2_power; /* beta1^steps, beta2^steps                                 */
    nrm_mlp_probe *probe;        /* called at every place that a layer has, if not NULL           */
    void *probe_context;
} nrm_mlp;

NRM_DEF nrm_mlp_spec nrm_mlp_defaults(void);  /* He, eps 1e-5, new_weight 0.1, SGD with lr 0.1 */
NRM_DEF int nrm_mlp_check(const nrm_mlp_spec *spec);    /* NRM_OK or what is wrong with it      */
NRM_DEF size_t nrm_mlp_bytes(const nrm_mlp_spec *spec); /* size of the block; 0 if spec is bad  */
NRM_DEF int nrm_mlp_init(
    nrm_mlp **net,          /* out: the network, inside the block                                 */
    void *block,            /* any alignment; yours to free, not to move: it points into itself   */
    size_t bytes,           /* of the block, at least nrm_mlp_bytes(spec)                         */
    const nrm_mlp_spec *spec);

/* Forward pass to net->logits [N][classes]. In train mode running statistics move on. N is at most
   max_batch (else NRM_ESIZE), here and in the two that follow; eval and predict take any N. */
NRM_DEF int nrm_mlp_forward(nrm_mlp *net, const nrm_real *x /* [N][inputs] */, size_t N, int mode);

/* Loss and net->grads (overwritten) at the present parameters, in train or frozen mode. Changes
   neither parameters nor running statistics nor the noise stream: the tool for experiments.
   To check these gradients, copy them first. loss may be NULL. */
NRM_DEF int nrm_mlp_gradient(nrm_mlp *net, nrm_acc *loss, const nrm_real *x, const int *labels,
                             size_t N, int mode);

NRM_DEF int nrm_mlp_step(nrm_mlp *net); /* the optimizer's step down net->grads */

/* Gradient in train mode, running statistics, step. If something is not finite: NRM_NONFINITE, and
   no step. loss may be NULL. */
NRM_DEF int nrm_mlp_train_step(nrm_mlp *net, nrm_acc *loss, const nrm_real *x, const int *labels,
                               size_t N);

/* Mean loss and accuracy of any number of examples in infer mode; either result may be NULL. */
NRM_DEF int nrm_mlp_eval(nrm_mlp *net, nrm_acc *loss, nrm_acc *accuracy,
                         const nrm_real *x /* [N][inputs] */, const int *labels, size_t N);

NRM_DEF int nrm_mlp_predict(nrm_mlp *net, int *labels /* [N] out */, const nrm_real *x, size_t N);

/* All running statistics anew, from these N >= 2 examples, taken forward in train mode, max_batch
   at a time (3 or more if N is odd). With sync each worker brings its own, or none; if one worker's
   cannot be used, no worker's statistics change. Nothing else changes: see ST.7. An Lp batch norm
   has nothing that could be merged: NRM_EKIND. */
NRM_DEF int nrm_mlp_reestimate(nrm_mlp *net, const nrm_real *x /* [N][inputs] */, size_t N);

/* Are all running statistics usable? If not: NRM_ESTATS, and where the first bad one is. */
NRM_DEF int nrm_mlp_check_stats(const nrm_mlp *net, size_t *layer, size_t *channel);

#ifndef NRM_NO_STDIO
/* ---- files of named arrays ------------------------------------------------------------------- */

enum nrm_type { NRM_REALS = 0, NRM_U64 = 1 };
enum { NRM_MOST_DIMS = 8, NRM_NAME_BYTES = 64 };

typedef struct nrm_array { /* one array of a file */
    const char *name;       /* "layer0.W"; letters, digits, '.', '_', '-', at most 63 of them     */
    int type;               /* NRM_REALS: nrm_real; NRM_U64: uint64_t                             */
    void *data;
    size_t dims;            /* 0 (a single number) to NRM_MOST_DIMS                               */
    size_t shape[NRM_MOST_DIMS];
} nrm_array;

typedef struct nrm_array_info { /* what a file says of an array */
    char name[NRM_NAME_BYTES];
    int type;               /* as above; -1, and zeros below: none of these, cannot be loaded     */
    size_t bytes_each;      /* 4 or 8, as stored                                                  */
    size_t dims, shape[NRM_MOST_DIMS];
} nrm_array_info;

/* Writes all arrays, or leaves what was there. The ending of the name says in which format: .npz
   (NumPy, uncompressed), .npy (NumPy, one array), anything else our own, with checksums. */
NRM_DEF int nrm_save(const char *path, const nrm_array *array, size_t count);

/* Reads the arrays of these names: types and shapes must be the same; float and double are
   converted. The whole file is checked first: if anything is wrong, nothing is changed. The array
   of a .npy file has no name, and goes by any. */
NRM_DEF int nrm_load(const char *path, const nrm_array *array, size_t count);

/* What is in a file: fills at most `most` entries and says how many there are. */
NRM_DEF int nrm_list(const char *path, nrm_array_info *info, size_t *count, size_t most);

/* A network's parameters, running statistics, optimizer and noise: training goes on bit for bit. */
NRM_DEF int nrm_mlp_save(const nrm_mlp *net, const char *path);
NRM_DEF int nrm_mlp_load(nrm_mlp *net, const char *path); /* of the same spec, else NRM_ESHAPE */
#endif /* NRM_NO_STDIO */

/* ---- gradient checking ----------------------------------------------------------------------- */

typedef nrm_acc nrm_loss_fn(void *context);       /* the loss at the present parameters           */
typedef uint64_t nrm_branches_fn(void *context);  /* a fingerprint of the branches it took last   */

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

/* Compares the gradients of all groups with differences of the loss. NRM_OK if every group is. */
NRM_DEF int nrm_gradcheck(
    nrm_gradcheck_report *report,        /* [groups] out                                          */
    const nrm_gradcheck_group *group,    /* [groups]                                              */
    size_t groups, nrm_loss_fn *loss, void *context,
    const nrm_gradcheck_options *options /* NULL: defaults                                      */);

#endif /* NORMLAYERS_H */

/* ============================================================================================== */
#if (defined(NORMLAYERS_IMPLEMENTATION) || defined(NRM_STATIC)) && !defined(NRM_IMPLEMENTED)
#define NRM_IMPLEMENTED

#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__ > 0) ||       \
    defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__) || defined(_M_FP_FAST)
#error "normlayers.h: compile without -ffast-math or -Ofast: they break NaN tests and results"
#endif
#if defined(NRM_NO_LIBC) && !(defined(NRM_SQRT) && defined(NRM_MEMCPY) && defined(NRM_MEMSET))
#error "normlayers.h: NRM_NO_LIBC wants NRM_SQRT, NRM_MEMCPY and NRM_MEMSET"
#endif

#ifdef NRM_TAG /* private structs differ with the types too, and so must their names */
#define nrmi_bits NRM_LINK(nrmi_bits)
#define nrmi_bn_job NRM_LINK(nrmi_bn_job)
#define nrmi_channels NRM_LINK(nrmi_channels)
#define nrmi_check NRM_LINK(nrmi_check)
#define nrmi_entry NRM_LINK(nrmi_entry)
#define nrmi_gemm NRM_LINK(nrmi_gemm)
#define nrmi_lanes NRM_LINK(nrmi_lanes)
#define nrmi_line NRM_LINK(nrmi_line)
#define nrmi_ln_job NRM_LINK(nrmi_ln_job)
#define nrmi_lp_job NRM_LINK(nrmi_lp_job)
#define nrmi_matrix NRM_LINK(nrmi_matrix)
#define nrmi_moments NRM_LINK(nrmi_moments)
#define nrmi_row NRM_LINK(nrmi_row)
#define nrmi_set NRM_LINK(nrmi_set)
#define nrmi_slope NRM_LINK(nrmi_slope)
#define nrmi_strip NRM_LINK(nrmi_strip)
#define nrmi_weight NRM_LINK(nrmi_weight)
#endif

#ifndef NRM_NO_LIBC
#include <math.h>
#include <string.h>
#endif
#ifndef NRM_NO_STDIO
#include <stdio.h>
#endif
#ifdef NRM_OPENMP
#include <omp.h>
#endif
#ifndef NRM_SQRT
#define NRM_SQRT(a) nrmi_sqrt(a)
#define NRM_OWN_SQRT
#endif
#ifndef NRM_MEMCPY
#define NRM_MEMCPY(to, from, bytes) memcpy((to), (from), (bytes))
#endif
#ifndef NRM_MEMSET
#define NRM_MEMSET(to, byte, bytes) memset((to), (byte), (bytes))
#endif

/*
### No fused operations

A processor may offer a·b + c as one operation with one rounding, and a compiler may use it
where it likes; then two builds differ in the last bit. We forbid it, everywhere but in the
inner loop of the matrix product. So everything outside the products has the same bits on
every machine that rounds as IEEE 754 says and evaluates in the type itself (32-bit x86 does
with `-msse2 -mfpmath=sse`, its old floating-point stack does not); products have them too
if the program is compiled with `-ffp-contract=off`. Each compiler has its own way to be
told; clang's `-ffp-contract=fast` overrules it.
*/
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC push_options
#pragma GCC optimize("fp-contract=off")
#elif defined(_MSC_VER)
#pragma fp_contract(off)
#endif

/*
## 1  Status codes and the checking of arguments

A wrong argument should be found by the function that receives it, not by a debugger an hour
later. Every public function therefore checks before it writes: settings and sizes,
pointers, and whether an output lies on top of something it must not. The checks cost a few
comparisons per call, which is nothing beside the passes over the data.
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

/* a*b*c elements of the widest type must be addressable. */
static int nrmi_check_volume(size_t a, size_t b, size_t c)
{
    const size_t most = SIZE_MAX / sizeof(double) / 2;
    if (b == 0 || c == 0) return NRM_ESIZE;
    if (b > most / c || (a > 0 && b * c > most / a)) return NRM_EOVERFLOW;
    return NRM_OK;
}

/* Is v a number? Infinity minus itself is not. */
static int nrmi_finite(nrm_acc v)
{
    return v - v == 0;
}

static int nrmi_check_eps(nrm_real eps)
{
    return eps > 0 && nrmi_finite((nrm_acc)eps) ? NRM_OK : NRM_EEPS;
}

typedef struct nrmi_span { /* a buffer: where and how long */
    const void *at;
    size_t bytes;
} nrmi_span;

static nrmi_span nrmi_bytes(const void *at, size_t bytes)
{
    nrmi_span s;
    s.at = at;
    s.bytes = bytes;
    return s;
}

static nrmi_span nrmi_reals(const nrm_real *at, size_t count)
{
    return nrmi_bytes(at, count * sizeof(nrm_real));
}

static nrmi_span nrmi_accs(const nrm_acc *at, size_t count)
{
    return nrmi_bytes(at, count * sizeof(nrm_acc));
}

static nrmi_span nrmi_ints(const int *at, size_t count)
{
    return nrmi_bytes(at, count * sizeof(int));
}

static size_t nrmi_least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static int nrmi_overlap(nrmi_span a, nrmi_span b)
{
    const uintptr_t p = (uintptr_t)a.at, q = (uintptr_t)b.at;
    if (a.at == NULL || b.at == NULL) return 0;
    return p < q + b.bytes && q < p + a.bytes;
}

/* The first `outs` buffers are written: each must lie apart from all the others. */
static int nrmi_check_apart(const nrmi_span *buffer, size_t count, size_t outs)
{
    size_t i, j;
    for (i = 0; i < outs; i++)
        for (j = i + 1; j < count; j++)
            if (nrmi_overlap(buffer[i], buffer[j])) return NRM_EALIAS;
    return NRM_OK;
}

/* In place means the same pointer: either that, or apart. */
static int nrmi_check_in_place(nrmi_span out, nrmi_span in)
{
    return out.at == in.at || !nrmi_overlap(out, in) ? NRM_OK : NRM_EALIAS;
}

/*
### Threads

None, unless `NRM_OPENMP` is defined and the compiler has OpenMP switched on. Then the
layers and products share their work among OpenMP's threads: batch norm by channels, layer
norm by rows, products by rows or columns of the result. Nothing is ever summed across
threads, so their number changes no bit. Below 32768 numbers one thread does it alone:
waking another takes some microseconds, a layer of 64 x 64 one and a half. Parts begin at
multiples of a cache line, or of a tile.
*/
#if defined(NRM_OPENMP) && !defined(_OPENMP)
#error "normlayers.h: NRM_OPENMP wants the compiler's OpenMP switched on (-fopenmp)"
#endif
#define NRM_SHARED_FROM 32768 /* numbers: below, one thread does it alone */

/* One part of a job, from..to−1 of what it can be divided into; returns a status. */
typedef int nrmi_part(void *job, size_t from, size_t to);

static size_t nrmi_threads(size_t numbers)
{
#ifdef NRM_OPENMP
    return numbers >= NRM_SHARED_FROM && !omp_in_parallel() ? (size_t)omp_get_max_threads() : 1;
#else
    (void)numbers;
    return 1;
#endif
}

/* Runs all parts of a job of so many numbers, each from a multiple of `grain` on. A part returns
   NRM_OK or NRM_NONFINITE, and so does the whole. */
static int nrmi_share(nrmi_part *part, void *job, size_t count, size_t grain, size_t numbers)
{
#ifdef NRM_OPENMP
    const size_t grains = (count + grain - 1) / grain, threads = nrmi_threads(numbers);
    const size_t share = (grains + threads - 1) / threads * grain;
    int i, bad = 0;
    if (share < count) {
#pragma omp parallel for schedule(static) reduction(+ : bad)
        for (i = 0; i < (int)threads; i++) {
            const size_t from = (size_t)i * share;
            if (from < count) bad += part(job, from, from + nrmi_least(count - from, share)) != 0;
        }
        return bad > 0 ? NRM_NONFINITE : NRM_OK;
    }
#endif
    (void)grain;
    (void)numbers;
    return part(job, 0, count);
}

/*
## 2  The linear layer and its three products

A linear layer multiplies its input by a weight matrix and adds a bias. We store W as
`[in][out]`, so that row i of W holds the weights *leaving* input i, and a batch of rows x
multiplies from the left.

    yₙⱼ = bⱼ + ∑ᵢ xₙᵢ·Wᵢⱼ                                             [LIN.1]

The chain rule gives three sums, each of them again a matrix product. A change of xₙᵢ
reaches every output j of its own example; a change of Wᵢⱼ reaches output j of every
example; and so does one of bⱼ.

    dxₙᵢ = ∑ⱼ dyₙⱼ·Wᵢⱼ                                                [LIN.2]
    dWᵢⱼ = ∑ₙ xₙᵢ·dyₙⱼ                                                [LIN.3]
    dbⱼ = ∑ₙ dyₙⱼ                                                     [LIN.4]

In matrices: y = xW + b, dx = dy·Wᵀ, dW = xᵀ·dy.

### One kernel for three products

All three have the shape cᵢⱼ ← cᵢⱼ + ∑ₖ aᵢₖ·bₖⱼ, with c starting at the bias, at zero, or at
the gradient gathered so far; only the strides of a and b differ. Each cᵢⱼ is a running sum
over ascending k, and never anything else:

    cᵢⱼ ← (((cᵢⱼ + aᵢ₁·b₁ⱼ) + aᵢ₂·b₂ⱼ) + …)                            [LIN.5]

That order is our specification. It leaves all freedom over i and j, and there the speed is:
the kernel holds a small tile of c in registers, walks once along k, and for each k
multiplies one broadcast element of a with a short run of b. The tile is 6 rows by two or
four vector registers: with the operands 6·2 + 2 + 1 of the 16 registers of AVX, 6·4 + 4 + 1
of the 32 of AVX-512. Its size is a literal: registers have no addresses, so a tile with a
variable bound would have to stay in memory, about four times slower.

The strip of b that a tile walks along is first copied, *packed*, into rows of exactly its
width, none of which lies across more cache lines than it must; in the matrix each row may
be on another page and across two lines. The strip is packed some hundred steps of k at a
time, 20 KB (AVX) that the stack can bear; between two such stretches c is put back, which
changes no bit. What this buys is that it does not matter where the matrix begins: with
arrays as `malloc` hands them out, 16 bytes beside a cache line, 64 x 784 by 784 x 64 went
from 74 to 87 GFLOP/s and 128 x 784 by 784 x 1000 from 73 to 85 (peak 102, AVX2), which both
reach without packing too if all arrays begin on a line. For a handful of rows it does not
pay for the copy; for a transposed b it must be done in any case.

GCC and Clang have vectors as an extension of C: `a * b + c` on a `nrmi_vec` works on all
its lanes. For other compilers a `nrmi_vec` is a single number, and the same lines do the
same sums in the same order. So the results do not depend on the width, nor on blocking, nor
on the number of threads; only on whether the compiler fuses multiplication and addition
into one rounding (as gcc does by default in its GNU dialects, and newer clangs;
`-ffp-contract=off` forbids it).

Whoever has a BLAS can have it do the products: include `cblas.h` first, and define
`NRM_GEMM` as `cblas_sgemm`, or `cblas_dgemm` with `NRM_DOUBLE`. The order of the sums is
then that library's.
*/
#if (defined(__GNUC__) || defined(__clang__)) && !defined(NRM_NO_VECTORS) &&                       \
    !(defined(__FLT_EVAL_METHOD__) &&                                                              \
      (__FLT_EVAL_METHOD__ < 0 || __FLT_EVAL_METHOD__ == 1 || __FLT_EVAL_METHOD__ == 2))
/* (the old floating-point stack, which computes in another type, knows no vectors) */
#define NRM_VECTORS
#if defined(__AVX512F__)
#define NRM_VEC_BYTES 64
#define NRM_TILE_VECS 4
#elif defined(__AVX__)
#define NRM_VEC_BYTES 32
#define NRM_TILE_VECS 2
#else
#define NRM_VEC_BYTES 16
#define NRM_TILE_VECS 2
#endif
typedef nrm_real nrmi_vec
    __attribute__((vector_size(NRM_VEC_BYTES), aligned(__alignof__(nrm_real)), may_alias));
#define NRM_ON_LINE __attribute__((aligned(64))) /* where a cache line begins */
#else
#define NRM_TILE_VECS 4
typedef nrm_real nrmi_vec;
#define NRM_ON_LINE
#endif

#if defined(__OPTIMIZE_SIZE__)
#define NRM_UNROLL
#elif defined(__clang__)
#define NRM_UNROLL _Pragma("unroll")
#elif defined(__GNUC__)
#define NRM_UNROLL _Pragma("GCC unroll 8")
#else
#define NRM_UNROLL
#endif

#if defined(__GNUC__) || defined(__clang__) /* a function that is not to become part of another */
#define NRM_APART __attribute__((noinline))
#elif defined(_MSC_VER)
#define NRM_APART __declspec(noinline)
#else
#define NRM_APART
#endif

#define NRM_VEC (sizeof(nrmi_vec) / sizeof(nrm_real)) /* numbers in a vector          */
#define NRM_COLS (NRM_VEC * NRM_TILE_VECS)            /* columns of a tile            */
#define NRM_DEPTH (NRM_COLS > 32 ? 160 : 320)         /* steps of k in a stretch      */
#define NRM_PACK_FROM 12                              /* rows for which packing pays  */

/* One operand of a product: element (i, k) stands at at[i*row + k*col]. */
typedef struct nrmi_matrix {
    const nrm_real *at;
    size_t row, col;
} nrmi_matrix;

/* What a block of the product is made of: c is [rows][cols], ldc apart; b is read in rows of
   NRM_COLS contiguous columns, ldb apart. If `fresh`, c starts at zero whatever it holds. */
typedef struct nrmi_job {
    size_t ldc, ldb, depth;
    int fresh;
} nrmi_job;

#if defined(__clang__) /* here, and only here, multiplication and addition may be fused */
#pragma STDC FP_CONTRACT DEFAULT
#elif defined(__GNUC__)
#pragma GCC pop_options
#elif defined(_MSC_VER)
#pragma fp_contract(on)
#endif
/* LIN.5 for a tile of ROWS x NRM_COLS. */
#define NRM_TILE_FUNCTION(NAME, ROWS)                                                              \
    static void NAME(nrm_real *c, nrmi_matrix a, const nrm_real *b, const nrmi_job *job)           \
    {                                                                                              \
        nrmi_vec sum[ROWS][NRM_TILE_VECS], bk[NRM_TILE_VECS];                                      \
        const size_t ldc = job->ldc, ldb = job->ldb, depth = job->depth;                           \
        size_t k;                                                                                  \
        int i, v;                                                                                  \
        if (job->fresh) {                                                                          \
            NRM_MEMSET(sum, 0, sizeof sum);                                                        \
        } else {                                                                                   \
            NRM_UNROLL for (i = 0; i < (ROWS); i++)                                                \
            {                                                                                      \
                NRM_UNROLL for (v = 0; v < NRM_TILE_VECS; v++)                                     \
                    sum[i][v] = *(const nrmi_vec *)(c + (size_t)i * ldc + (size_t)v * NRM_VEC);    \
            }                                                                                      \
        }                                                                                          \
        for (k = 0; k < depth; k++, a.at += a.col, b += ldb) {                                     \
            NRM_UNROLL for (v = 0; v < NRM_TILE_VECS; v++)                                         \
                bk[v] = *(const nrmi_vec *)(b + (size_t)v * NRM_VEC);                              \
            NRM_UNROLL for (i = 0; i < (ROWS); i++)                                                \
            {                                                                                      \
                const nrm_real aik = a.at[(size_t)i * a.row];                                      \
                NRM_UNROLL for (v = 0; v < NRM_TILE_VECS; v++) sum[i][v] += aik * bk[v];           \
            }                                                                                      \
        }                                                                                          \
        NRM_UNROLL for (i = 0; i < (ROWS); i++)                                                    \
        {                                                                                          \
            NRM_UNROLL for (v = 0; v < NRM_TILE_VECS; v++)                                         \
                *(nrmi_vec *)(c + (size_t)i * ldc + (size_t)v * NRM_VEC) = sum[i][v];              \
        }                                                                                          \
    }
NRM_TILE_FUNCTION(nrmi_tile6, 6)
NRM_TILE_FUNCTION(nrmi_tile4, 4)
NRM_TILE_FUNCTION(nrmi_tile2, 2)
NRM_TILE_FUNCTION(nrmi_tile1, 1)
#undef NRM_TILE_FUNCTION
#if defined(__clang__) /* from here on no more */
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC push_options
#pragma GCC optimize("fp-contract=off")
#elif defined(_MSC_VER)
#pragma fp_contract(off)
#endif

/* All rows of one column block, the largest tiles first. */
static void nrmi_block(nrm_real *c, nrmi_matrix a, const nrm_real *b, const nrmi_job *job,
                       size_t rows)
{
    while (rows > 0) {
        const size_t step = rows >= 6 ? 6 : rows >= 4 ? 4 : rows >= 2 ? 2 : 1;
        switch (step) {
        case 6: nrmi_tile6(c, a, b, job); break;
        case 4: nrmi_tile4(c, a, b, job); break;
        case 2: nrmi_tile2(c, a, b, job); break;
        default: nrmi_tile1(c, a, b, job); break;
        }
        c += step * job->ldc;
        a.at += step * a.row;
        rows -= step;
    }
}

/* The last columns, too few for a whole tile: c makes a detour through a padded copy. */
static void nrmi_narrow_block(nrm_real *c, nrmi_matrix a, const nrm_real *b, const nrmi_job *job,
                              size_t rows, size_t cols)
{
    nrm_real padded[6 * NRM_COLS];
    nrmi_job inner = *job;
    size_t i, j;
    inner.ldc = NRM_COLS;
    NRM_MEMSET(padded, 0, sizeof padded);
    while (rows > 0) {
        const size_t step = rows < 6 ? rows : 6;
        for (i = 0; i < step && !job->fresh; i++)
            for (j = 0; j < cols; j++) padded[i * NRM_COLS + j] = c[i * job->ldc + j];
        nrmi_block(padded, a, b, &inner, step);
        for (i = 0; i < step; i++)
            for (j = 0; j < cols; j++) c[i * job->ldc + j] = padded[i * NRM_COLS + j];
        c += step * job->ldc;
        a.at += step * a.row;
        rows -= step;
    }
}

/* Copies depth x cols elements of b, of at most NRM_COLS columns, into rows of NRM_COLS. */
static void nrmi_pack(nrm_real *to, nrmi_matrix b, size_t depth, size_t cols)
{
    size_t k, j;
    int v;
    for (k = 0; k < depth; k++, to += NRM_COLS, b.at += b.row) {
        if (b.col == 1 && cols == NRM_COLS) {
            NRM_UNROLL for (v = 0; v < NRM_TILE_VECS; v++)
            {
                const size_t at = (size_t)v * NRM_VEC;
                *(nrmi_vec *)(to + at) = *(const nrmi_vec *)(b.at + at);
            }
            continue;
        }
        for (j = 0; j < cols; j++) to[j] = b.at[j * b.col];
        for (; j < NRM_COLS; j++) to[j] = 0;
    }
}

/* A product c [rows][cols] += a [rows][depth] times b [depth][cols]; if `fresh`, = instead of +=.
   Rows of c are ldc apart. */
typedef struct nrmi_gemm {
    nrm_real *c;
    nrmi_matrix a, b;
    size_t ldc, rows, cols, depth;
    int fresh;
} nrmi_gemm;

/* The whole of it, in the order of LIN.5. The depth is cut into equal stretches, so that none is
   too short to pay, and a stretch of a stays in the cache for all columns. */
static void nrmi_multiply(const nrmi_gemm *g)
{
    nrm_real packed[NRM_DEPTH * NRM_COLS] NRM_ON_LINE;
    const size_t stretches = (g->depth + NRM_DEPTH - 1) / NRM_DEPTH;
    const size_t deep = (g->depth + stretches - 1) / stretches;
    nrmi_job job;
    size_t j, k;
    job.ldc = g->ldc;
    for (k = 0; k < g->depth; k += deep)
        for (j = 0; j < g->cols; j += NRM_COLS) {
            const size_t wide = nrmi_least(g->cols - j, NRM_COLS);
            nrmi_matrix a = g->a, b = g->b;
            a.at += k * a.col;
            b.at += k * b.row + j * b.col;
            job.depth = nrmi_least(g->depth - k, deep);
            job.fresh = g->fresh && k == 0;
            job.ldb = b.row;
            if (b.col != 1 || wide < NRM_COLS || g->rows >= NRM_PACK_FROM) {
                nrmi_pack(packed, b, job.depth, wide);
                job.ldb = NRM_COLS;
                b.at = packed;
            }
            if (wide == NRM_COLS)
                nrmi_block(g->c + j, a, b.at, &job, g->rows);
            else
                nrmi_narrow_block(g->c + j, a, b.at, &job, g->rows, wide);
        }
}

/* Rows from..to−1 of a product, and columns. */
static int nrmi_multiply_rows(void *context, size_t from, size_t to)
{
    nrmi_gemm g = *(const nrmi_gemm *)context;
    g.c += from * g.ldc;
    g.a.at += from * g.a.row;
    g.rows = to - from;
    nrmi_multiply(&g);
    return NRM_OK;
}

static int nrmi_multiply_columns(void *context, size_t from, size_t to)
{
    nrmi_gemm g = *(const nrmi_gemm *)context;
    g.c += from;
    g.b.at += from * g.b.col;
    g.cols = to - from;
    nrmi_multiply(&g);
    return NRM_OK;
}

/* c [rows][cols] += or, if `fresh`, = a times b: by the user's CBLAS, or by the kernel above. */
static void nrmi_product(nrm_real *c, nrmi_matrix a, nrmi_matrix b, size_t rows, size_t cols,
                         size_t depth, int fresh)
{
    size_t numbers; /* what the work compares with */
    nrmi_gemm g;
#ifdef NRM_GEMM
    const size_t most = 0x7fffffff; /* its sizes are ints */
    const int turned_a = a.col != 1, turned_b = b.col != 1;
    const size_t lda = turned_a ? a.col : a.row, ldb = turned_b ? b.col : b.row;
    const size_t least_a = turned_a ? rows : depth, least_b = turned_b ? depth : cols;
    if (rows <= most && cols <= most && depth <= most) { /* a single row may have any stride */
        NRM_GEMM(CblasRowMajor, turned_a ? CblasTrans : CblasNoTrans,
                 turned_b ? CblasTrans : CblasNoTrans, (int)rows, (int)cols, (int)depth, 1, a.at,
                 (int)(lda < least_a ? least_a : lda), b.at, (int)(ldb < least_b ? least_b : ldb),
                 (nrm_real)(fresh ? 0 : 1), c, (int)cols);
        return;
    }
#endif
    g.c = c;
    g.a = a;
    g.b = b;
    g.ldc = cols;
    g.rows = rows;
    g.cols = cols;
    g.depth = depth;
    g.fresh = fresh;
    numbers = depth <= SIZE_MAX / (rows * cols) ? rows * cols * depth / 64 : SIZE_MAX;
    if (rows > cols)
        (void)nrmi_share(nrmi_multiply_rows, &g, rows, 6, numbers);
    else
        (void)nrmi_share(nrmi_multiply_columns, &g, cols, NRM_COLS, numbers);
}

static nrmi_matrix nrmi_view(const nrm_real *at, size_t row, size_t col)
{
    nrmi_matrix m;
    m.at = at;
    m.row = row;
    m.col = col;
    return m;
}

static int nrmi_check_linear(size_t N, size_t in, size_t out)
{
    int rc = nrmi_check_volume(N, in, 1);
    if (rc == NRM_OK) rc = nrmi_check_volume(N, out, 1);
    if (rc == NRM_OK) rc = nrmi_check_volume(in, out, 1);
    return rc;
}

NRM_DEF int nrm_linear_forward(nrm_real *y, const nrm_real *x, const nrm_real *W, const nrm_real *b,
                               size_t N, size_t in, size_t out)
{
    nrmi_span buffer[4];
    size_t n;
    int rc = nrmi_check_linear(N, in, out);
    if (rc != NRM_OK || N == 0) return rc;
    if (y == NULL || x == NULL || W == NULL) return NRM_ENULL;
    buffer[0] = nrmi_reals(y, N * out);
    buffer[1] = nrmi_reals(x, N * in);
    buffer[2] = nrmi_reals(W, in * out);
    buffer[3] = nrmi_reals(b, out);
    if (nrmi_check_apart(buffer, 4, 1) != NRM_OK) return NRM_EALIAS;
    for (n = 0; n < N && b != NULL; n++) NRM_MEMCPY(y + n * out, b, out * sizeof *y);
    nrmi_product(y, nrmi_view(x, in, 1), nrmi_view(W, out, 1), N, out, in, b == NULL); /* LIN.1 */
    return NRM_OK;
}

static int nrmi_check_linear_backward(const nrm_real *dx, const nrm_real *dW, const nrm_real *db,
                                      const nrm_real *dy, const nrm_real *x, const nrm_real *W,
                                      size_t N, size_t in, size_t out)
{
    nrmi_span buffer[6];
    if (dy == NULL || (dW != NULL && x == NULL) || (dx != NULL && W == NULL)) return NRM_ENULL;
    buffer[0] = nrmi_reals(dx, N * in);
    buffer[1] = nrmi_reals(dW, in * out);
    buffer[2] = nrmi_reals(db, out);
    buffer[3] = nrmi_reals(dy, N * out);
    buffer[4] = nrmi_reals(x, N * in);
    buffer[5] = nrmi_reals(W, in * out);
    return nrmi_check_apart(buffer, 6, 3);
}

/* LIN.2 to LIN.4 for arguments that have been checked; if `fresh`, dW = instead of dW +=. */
static void nrmi_linear_backward(nrm_real *dx, nrm_real *dW, nrm_real *db, const nrm_real *dy,
                                 const nrm_real *x, const nrm_real *W, size_t N, size_t in,
                                 size_t out, int fresh)
{
    size_t n, j;
    if (N == 0) { /* a worker that has no example */
        if (fresh && dW != NULL) NRM_MEMSET(dW, 0, in * out * sizeof *dW);
        return;
    }
    if (dx != NULL)
        nrmi_product(dx, nrmi_view(dy, out, 1), nrmi_view(W, 1, out), N, in, out, 1); /* LIN.2 */
    if (dW != NULL)
        nrmi_product(dW, nrmi_view(x, 1, in), nrmi_view(dy, out, 1), in, out, N, fresh); /* LIN.3 */
    for (n = 0; n < N && db != NULL; n++)
        for (j = 0; j < out; j++) db[j] += dy[n * out + j]; /* LIN.4 */
}

NRM_DEF int nrm_linear_backward(nrm_real *dx, nrm_real *dW, nrm_real *db, const nrm_real *dy,
                                const nrm_real *x, const nrm_real *W, size_t N, size_t in,
                                size_t out)
{
    int rc = nrmi_check_linear(N, in, out);
    if (rc != NRM_OK || N == 0) return rc;
    rc = nrmi_check_linear_backward(dx, dW, db, dy, x, W, N, in, out);
    if (rc == NRM_OK) nrmi_linear_backward(dx, dW, db, dy, x, W, N, in, out, 0);
    return rc;
}

/*
## 3  Exponential and logarithm, the same bits everywhere

The square root is required by IEEE 754 to be correctly rounded, so every machine agrees on
it. `exp`, `log` and `tanh` are not: two C libraries may differ in the last bit, and a
training run that differs in the last bit is soon a different run. The functions below are
ours for that reason; they are good to three units in the last place.

Only exponentials of x ≤ 0 are ever needed here: softmax subtracts the largest logit first,
and sigmoid and tanh use their symmetry. Split off a power of two, and the rest is small:

    k = ⌈x/ln2 − ½⌉                                                   [EXP.1]
    t = x − k·ln2, |t| ≤ ½·ln2                                        [EXP.2]
    q = e^t − 1 = t·(1 + t/2·(1 + t/3·(1 + t/4·(…))))                 [EXP.3]
    e^x = 2^k·(1 + q)                                                 [EXP.4]
    e^x − 1 = 2^k·q + (2^k − 1)                                       [EXP.5]

The product k·ln2 in EXP.2 would lose the digits that t is made of. So ln2 is cut in two, a
head with so few bits that k times it is exact, and a tail. The series stops after t¹³/13!;
what is left out is below 2·10⁻¹⁷ of t. EXP.5 is there for tanh: near 0 it keeps the digits
that e^x − 1 would lose.

The functions take sixteen values at a time. Each step is a short loop over them, in which
no result waits for another and no branch depends on a value (`?:` becomes a selection), so
compilers do four or eight at once: less than half the time, with the same bits. They still
compute in `nrm_acc`; a library that computes in float is faster.

For the logarithm write x = 2^e·m with m between √½ and √2, and use the series of the
inverse hyperbolic tangent, whose argument s is below 0.172:

    s = (m − 1)/(m + 1)                                               [LOG.1]
    ln m = 2·s·(1 + s²/3 + s⁴/5 + s⁶/7 + …)                           [LOG.2]
    ln x = e·ln2 + ln m                                               [LOG.3]
*/
#ifdef NRM_OWN_SQRT
static nrm_acc nrmi_sqrt(nrm_acc a)
{
    if (sizeof(nrm_acc) == sizeof(float)) return (nrm_acc)sqrtf((float)a);
    return (nrm_acc)sqrt((double)a);
}
#endif

#define NRM_LN2_HEAD ((nrm_acc)0.69314575195312500)     /* 16 bits of ln 2         */
#define NRM_LN2_TAIL ((nrm_acc)1.4286068203094172e-6)   /* what is left of it      */
#define NRM_LN2_INVERSE ((nrm_acc)1.4426950408889634)
#define NRM_SQRT2 ((nrm_acc)1.4142135623730951)

typedef union nrmi_bits { /* a number and its bits */
    nrm_acc value;
    uint64_t u64;
    uint32_t u32;
} nrmi_bits;

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

#define NRM_SOME 16 /* exponentials are done so many at a time */

/* Below this, e^x is taken for 0: the smallest normal number is not far. */
static nrm_acc nrmi_exp_lowest(void)
{
    return sizeof(nrm_acc) == 8 ? (nrm_acc)-708 : (nrm_acc)-87;
}

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

/* What the series can take of x: NaN and values too low are put aside, and seen to later. */
static void nrmi_exp_clamp(nrm_acc *inside, const nrm_acc *x)
{
    const nrm_acc lowest = nrmi_exp_lowest();
    int j;
    for (j = 0; j < NRM_SOME; j++) inside[j] = x[j] >= lowest ? x[j] : lowest;
}

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

/* ln x for a normal x > 0. */
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
    s = (m - 1) / (m + 1);                                                           /* LOG.1 */
    for (n = 21; n >= 1; n -= 2) sum = nrmi_inverse(n) + s * s * sum;
    m = 2 * s * sum;                                                                 /* LOG.2 */
    return (nrm_acc)e * NRM_LN2_HEAD + ((nrm_acc)e * NRM_LN2_TAIL + m);              /* LOG.3 */
}

/*
## 4  Random numbers

Figures that anybody can redraw need random numbers that do not come from the C library. We
use PCG32 (O'Neill 2014): a 64-bit linear congruential generator, whose output is scrambled
to hide its weak low bits. The increment c may be any odd number, and each choice is a
sequence of its own, a *stream*: one for the weights, one for the noise, one for the order
of the data, so that asking more of one never shifts another.

    s′ = a·s + c mod 2⁶⁴, a = 6364136223846793005                     [RNG.1]
    u = rotate(⌊(s ⊕ ⌊s/2¹⁸⌋)/2²⁷⌋ mod 2³², ⌊s/2⁵⁹⌋)                   [RNG.2]

RNG.2 takes the old state s: the highest five bits say by how far to rotate (to the right)
the 32 bits that the shift and the exclusive or have picked. A uniform number is u scaled,
cut to the digits a float has; so float and double builds draw the same stream.

    U = u/2³² (double), ⌊u/2⁸⌋/2²⁴ (float)                            [RNG.3]

For an integer below n, u mod n alone would favour small values when n does not divide 2³².
We throw away the few lowest u, of which there are as many as the remainder:

    u mod n, drawn again while u < 2³² mod n                          [RNG.4]

Normal numbers come in pairs by Marsaglia's polar method: a point in the unit disc, drawn by
trial, is pushed outwards until its distance from the origin has the right distribution.

    w = a² + b² < 1, a and b uniform in ±1                            [RNG.5]
    z₁ = a·√(−2·(ln w)/w), z₂ = b·√(−2·(ln w)/w)                      [RNG.6]

To shuffle, walk from the end and swap each place with one drawn from those not yet settled,
itself included (Fisher and Yates).
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

NRM_DEF uint32_t nrm_rng_below(nrm_rng *rng, uint32_t n)
{
    uint32_t u, least;
    if (n == 0) return 0;
    least = (0u - n) % n; /* 2^32 mod n */
    do u = nrm_rng_u32(rng);
    while (u < least);
    return u % n; /* RNG.4 */
}

NRM_DEF nrm_real nrm_rng_uniform(nrm_rng *rng)
{
    const uint32_t u = nrm_rng_u32(rng); /* RNG.3 */
    if (sizeof(nrm_real) == sizeof(float)) return (nrm_real)(u >> 8) / (nrm_real)16777216;
    return (nrm_real)u / (nrm_real)4294967296;
}

/* 2u/2^32 - 1: a uniform number in ±1. */
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

NRM_DEF int nrm_rng_shuffle(nrm_rng *rng, size_t *index, size_t n)
{
    size_t i;
    if (n == 0) return NRM_OK;
    if (rng == NULL || index == NULL) return NRM_ENULL;
    if ((uint64_t)n > 0xffffffffu) return NRM_ESIZE;
    for (i = n - 1; i > 0; i--) {
        const size_t j = nrm_rng_below(rng, (uint32_t)i + 1), kept = index[i];
        index[i] = index[j];
        index[j] = kept;
    }
    return NRM_OK;
}

/*
## 5  Sums and means

Every layer below begins with a mean and a variance, and many of the bugs reported against
normalization layers are in these two lines. They are also where the time goes. One rule
serves exactness and speed alike: measure from a point nearby.

### 5.1  One pass, from a pivot

The variance is often computed in one pass from the identity

    ⟨(x − μ)²⟩ = ⟨x²⟩ − μ²                                            [SUM.1]

which is true in algebra and ruinous in arithmetic: for values near 1000 with a spread of
0.1 both terms on the right are about a million and agree in their first eight digits, and a
float has seven. The difference can even come out negative. The usual remedy is a second
pass with the mean in hand.

But the identity holds for deviations from any number p, a *pivot*, and with a pivot near
the mean there is little to cancel:

    d = x − p: μ = p + ⟨d⟩, v = ⟨d²⟩ − ⟨d⟩²                           [SUM.2]

Our first pivot is the first value, x₁ (in a dense batch the mean of the first eight, see
6.4, which serves the same ends). If all values are equal then all d are exactly 0, and
normalizing gives 0 and not noise divided by √ε. And d loses nothing that matters: floats of
one sign within a factor of two of each other have a difference that is a float (Sterbenz),
any other is rounded by at most 2⁻²⁴ of itself.

The values come in blocks of B, and the pivot moves as we learn. Of a block only two sums
are wanted,

    S₁ = ∑ᵢ (xᵢ − p), S₂ = ∑ᵢ (xᵢ − p)²                               [SUM.3]

to be merged with what is known of the n values before it: their mean m and Q, the sum of
their squared deviations from m (Chan, Golub and LeVeque 1979).

    δ = p + S₁/B − m, m ← m + δ·B/(n + B)                             [SUM.4]
    Q ← Q + (S₂ − S₁²/B) + δ²·n·B/(n + B)                             [SUM.5]

Then p becomes m, rounded to `nrm_real`, and little can cancel from now on. Measured from m
itself, the squares of a block sum to its own part and that of its mean, (S₂ − S₁²/B) +
B·δ². No block is longer than the first, so n ≥ B, n/(n + B) ≥ ½, and what is added to Q is
at least half of that:

    S₂ − S₁²/B + δ²·n·B/(n + B) ≥ ½·∑ᵢ (xᵢ − m)² ≥ S₂/8               [SUM.6]

The last step is the price of rounding p: it is the float nearest to m, and xᵢ is a float,
so |m − p| ≤ |xᵢ − m|, |xᵢ − p| ≤ 2·|xᵢ − m|, and S₂ ≤ 4·∑ᵢ (xᵢ − m)².

Only the first block is at the mercy of x₁, which may be an outlier. If Q turns out to be
less than a quarter of all S₂ together, so that two bits were lost, we start again with the
mean just found as the first pivot. That settles it, unless a square has overflowed, or
there is a NaN; then two passes in `nrm_acc` have the last word (and take ten times as
long):

    μ = x₁ + (1/N)·∑ᵢ (xᵢ − x₁), v = (1/N)·∑ᵢ (xᵢ − μ)²                [SUM.7]

So the inner loops, SUM.3, can work in `nrm_real`, over stretches so short that rounding
errors stay small: a lane of 5.2 has at most 64 terms, a channel 32. A register holds eight
floats but only four doubles (AVX), and nothing is converted. The merging is done in
`nrm_acc`, double by default, once per block. Compared with two passes in double this made
the forward passes two to three times as fast on matrices that fit the cache, and errors
stay below 10⁻⁶ (docs/accuracy.md).

The code keeps m as an offset from the first pivot, and so does SUM.10 below. The offset is
of the size of the spread, and in the same type it has digits for which the mean has no
room. That matters with `NRM_ACC=float`: y is then exact at a mean of 10⁶, while dx, which
has only the saved mean, is not.

### 5.2  The order of a sum

Floating-point addition is not associative, so a compiler may not reorder a sum, and one
that runs in a single chain waits for each addition before the next can start. We write down
another order that suits the machine and make it the specification. For values that lie side
by side: as many lanes as fit into 64 bytes (L = 16 floats, or 8 doubles), lane j taking the
terms whose index, counted from 0 in each run, is j modulo L,

    lⱼ = aⱼ + aⱼ₊L + aⱼ₊₂L + …, added from left to right              [SUM.8]

and at the end of a block the lanes are folded in half until one is left.

    lⱼ ← lⱼ + lⱼ₊ₖ for j < k, k = L/2, L/4, …, 1                       [SUM.9]

Such a block has at most 1024/L lines of L values: 64 lines of floats, 128 of doubles. The
lanes go on from run to run until it is full. In a dense batch neighbours belong to
different channels; there the channels are the lanes, each is summed straight down, and a
block has 32 rows. Registers of 1, 2, 4, 8 or 16 numbers give the same bits, and so do
several threads, for each of them gets whole rows or whole channels.

### 5.3  Head and tail of a mean

Floats near 10⁶ are 1/16 apart. A mean rounded to a float is then off by up to 1/32, and so
is every x − μ, however exactly μ was summed. We keep μ in `nrm_acc` and split it into a
head of type `nrm_real` and a small tail:

    μ = h + t, h = μ rounded to nrm_real                              [SUM.10]

Where the mean is large beside the spread, x − h is exact now; elsewhere it is rounded once,
like any difference. t goes where it costs nothing, into the coefficients of a straight line
in x − h, which are computed once per channel or row. x̂ is such a line, and where γ and β
are the same for all values y is one too:

    x̂ = r·(x − h) − r·t, γ·x̂ + β = s·(x − h) + b, s = γ·r, b = β − s·t  [SUM.11]

Layer norm uses the first form and applies its γᵢ and βᵢ afterwards, batch norm the second.
The rest of this section is for the backward passes: come back to it after 6.5. Let u be the
gradient that is averaged there (dy in batch norm, dy·γ in layer norm) and a = γ·r. Sums of
u·x̂ are sums like SUM.3, with u in the place of one factor, and what BN.19 says is once
more a straight line in x − h:

    ∑ᵢ uᵢ·x̂ᵢ = r·(∑ᵢ uᵢ·(xᵢ − h) − t·∑ᵢ uᵢ)                            [SUM.12]
    a·(u − ⟨u⟩ − x̂·⟨u·x̂⟩) = a·((u − ⟨u⟩) + (s·(x − h) + b)), s = −r·⟨u·x̂⟩, b = −s·t [SUM.13]

### 5.4  The code

A `nrmi_vec` is loaded and stored as a whole. What is left at the end of a row goes one
number at a time, or, inside the lanes, filled up with values that add nothing.
*/
static inline nrmi_vec nrmi_load(const nrm_real *at)
{
    return *(const nrmi_vec *)at;
}

static inline void nrmi_store(nrm_real *at, nrmi_vec v)
{
    *(nrmi_vec *)at = v;
}

/* A load where perhaps only n > 0 numbers are left; the other places get `fill`. */
static inline nrmi_vec nrmi_load_last(const nrm_real *at, size_t n, nrm_real fill)
{
    nrm_real part[NRM_VEC];
    size_t j;
    if (n >= NRM_VEC) return nrmi_load(at);
    for (j = 0; j < NRM_VEC; j++) part[j] = j < n ? at[j] : fill;
    return nrmi_load(part);
}

/* Asks for the cache line `ahead` numbers further on. A processor fetches ahead by itself along a
   stream that it sees being read; while a pass writes what belongs to rows read before, no new line
   is read, and the stream stops. So the writing pass asks for the lines that the next reading pass
   will want (layer norm 8192 x 768, forward: 59 % of the one-pass limit without, 76 with). On data
   that are in the cache it only costs, so it is done from so many numbers on. The address may lie
   beyond the array, where a pointer may not; hence the integer. */
#define NRM_FETCH_FROM 1048576
#if defined(__GNUC__) || defined(__clang__)
#define NRM_PREFETCH(at, ahead)                                                                    \
    __builtin_prefetch((const void *)((uintptr_t)(at) + (ahead) * sizeof(nrm_real)))
#else
#define NRM_PREFETCH(at, ahead) ((void)0)
#endif

#define NRM_LANES (64 / sizeof(nrm_real))          /* L of SUM.8                 */
#define NRM_LANE_VECS ((int)(NRM_LANES / NRM_VEC)) /* vectors that hold them     */
#define NRM_BLOCK 1024                             /* values in a block of runs  */
#define NRM_ROWS 32                                /* rows in a block of columns */

/* Two sums under way, lane by lane: of u, and of u·(x − p). */
typedef struct nrmi_lanes {
    nrmi_vec u[NRM_LANE_VECS], ud[NRM_LANE_VECS];
} nrmi_lanes;

static inline void nrmi_clear_lanes(nrmi_lanes *lanes)
{
    const nrmi_vec zero = {0};
    int v;
    for (v = 0; v < NRM_LANE_VECS; v++) lanes->u[v] = lanes->ud[v] = zero;
}

/* Adds n values that lie side by side. u is x − p if dy is NULL, which makes the sums those of
   SUM.3; otherwise it is dy, or dy·gamma. */
static void nrmi_add_run(nrmi_lanes *lanes, const nrm_real *x, nrm_real p, const nrm_real *dy,
                         const nrm_real *gamma, size_t n)
{
    nrmi_lanes sum = *lanes; /* a copy that may live in registers */
    size_t i;
    int v;
    for (i = 0; i + NRM_LANES <= n; i += NRM_LANES)
        NRM_UNROLL for (v = 0; v < NRM_LANE_VECS; v++)
        {
            const size_t at = i + (size_t)v * NRM_VEC;
            const nrmi_vec d = nrmi_load(x + at) - p;
            nrmi_vec u = d;
            if (dy != NULL) u = nrmi_load(dy + at);
            if (gamma != NULL) u *= nrmi_load(gamma + at);
            sum.u[v] += u;
            sum.ud[v] += u * d; /* SUM.8 */
        }
    NRM_UNROLL for (v = 0; v < NRM_LANE_VECS; v++)
    {
        const size_t at = i + (size_t)v * NRM_VEC;
        if (at < n) { /* the rest: filled up, so that d = 0 and u = 0 where nothing is */
            const nrmi_vec d = nrmi_load_last(x + at, n - at, p) - p;
            nrmi_vec u = d;
            if (dy != NULL) u = nrmi_load_last(dy + at, n - at, 0);
            if (gamma != NULL) u *= nrmi_load_last(gamma + at, n - at, 0);
            sum.u[v] += u;
            sum.ud[v] += u * d;
        }
    }
    *lanes = sum;
}

/* The same for fewer values than there are lanes. Filled up to whole vectors, the runs of images of
   2 x 2 or 3 x 3 made batch norm take twice as long. */
static void nrmi_add_few(nrmi_lanes *lanes, const nrm_real *x, nrm_real p, const nrm_real *dy,
                         const nrm_real *gamma, size_t n)
{
    nrm_real *u_sum = (nrm_real *)lanes->u, *ud_sum = (nrm_real *)lanes->ud;
    size_t i;
    for (i = 0; i < n; i++) {
        const nrm_real d = x[i] - p;
        nrm_real u = dy != NULL ? dy[i] : d;
        if (gamma != NULL) u *= gamma[i];
        u_sum[i] += u;
        ud_sum[i] += u * d;
    }
}

/* SUM.9: sixteen lanes to eight, and those to one. */
static inline nrm_acc nrmi_fold(const nrmi_vec *lanes)
{
    const nrm_real *lane = (const nrm_real *)lanes;
    nrm_real l[8];
    size_t j;
    /* % only keeps the index inside where L is 8 */
    for (j = 0; j < 8; j++) l[j] = NRM_LANES == 16 ? lane[j] + lane[(j + 8) % NRM_LANES] : lane[j];
    return (nrm_acc)(((l[0] + l[4]) + (l[2] + l[6])) + ((l[1] + l[5]) + (l[3] + l[7])));
}

/* What a block of B values weighs beside the n before it: 1/B, B/(n + B), n·B/(n + B). */
typedef struct nrmi_weight {
    nrm_acc inverse, share, between;
} nrmi_weight;

static nrmi_weight nrmi_weigh(nrm_acc n, nrm_acc B)
{
    nrmi_weight w;
    w.inverse = 1 / B;
    w.share = B / (n + B);
    w.between = n * w.share;
    return w;
}

/* Merges the sums of a block. m is kept as an offset from x1, the first pivot of all; p, the pivot
   of these sums, becomes that of the next block. */
static inline void nrmi_merge(nrm_acc *m, nrm_acc *Q, nrm_real *p, nrm_real x1, nrm_acc s1,
                              nrm_acc s2, nrmi_weight w)
{
    const nrm_acc mean = s1 * w.inverse;
    const nrm_acc delta = ((nrm_acc)*p - (nrm_acc)x1) + mean - *m;
    *m += delta * w.share;                              /* SUM.4 */
    *Q += (s2 - s1 * mean) + delta * delta * w.between; /* SUM.5 */
    *p = (nrm_real)((nrm_acc)x1 + *m);
}

/* What the values that are normalized together have in common. */
typedef struct nrmi_moments {
    nrm_acc mean, var;
    nrm_real head, tail; /* the mean once more, split */
} nrmi_moments;

static inline nrmi_moments nrmi_split(nrm_real x1, nrm_acc offset, nrm_acc var)
{
    nrmi_moments t;
    t.mean = (nrm_acc)x1 + offset;
    t.var = var;
    t.head = (nrm_real)t.mean;
    t.tail = (nrm_real)(((nrm_acc)x1 - (nrm_acc)t.head) + offset); /* SUM.10 */
    return t;
}

/* The values of one row or channel: `runs` runs of S, `stride` apart. How far we are in them. */
typedef struct nrmi_walk {
    size_t runs, stride, S, run, s;
} nrmi_walk;

static nrmi_walk nrmi_walk_from_start(size_t runs, size_t stride, size_t S)
{
    nrmi_walk at;
    at.runs = runs;
    at.stride = stride;
    at.S = S;
    at.run = at.s = 0;
    return at;
}

/* Was the pivot good enough? `gross` is the sum of all S2; it may have overflowed. */
static int nrmi_settled(nrm_acc Q, nrm_acc gross)
{
    return 4 * Q >= gross && nrmi_finite(gross); /* see SUM.6 */
}

/* SUM.7 */
static nrmi_moments nrmi_two_passes(const nrm_real *x, nrmi_walk all)
{
    const nrm_acc x1 = (nrm_acc)x[0], count = (nrm_acc)all.runs * (nrm_acc)all.S;
    nrm_acc offset = 0, squares = 0;
    size_t n, s;
    for (n = 0; n < all.runs; n++)
        for (s = 0; s < all.S; s++) offset += (nrm_acc)x[n * all.stride + s] - x1;
    offset /= count;
    for (n = 0; n < all.runs; n++)
        for (s = 0; s < all.S; s++) {
            const nrm_acc d = ((nrm_acc)x[n * all.stride + s] - x1) - offset;
            squares += d * d;
        }
    return nrmi_split(x[0], offset, squares / count);
}

/* The two sums over the next block; returns how many values it has, 0 at the end. */
static size_t nrmi_next_block(nrm_acc *su, nrm_acc *sud, nrmi_walk *at, const nrm_real *x,
                              nrm_real p, const nrm_real *dy, const nrm_real *gamma)
{
    nrmi_lanes lanes;
    size_t count = 0, lines = 0; /* a lane takes one value of each line */
    nrmi_clear_lanes(&lanes);
    while (at->run < at->runs) {
        const size_t left = at->S - at->s, piece = nrmi_least(left, NRM_BLOCK);
        const size_t from = at->run * at->stride + at->s;
        const nrm_real *u = dy != NULL ? dy + from : NULL;
        lines += (piece + NRM_LANES - 1) / NRM_LANES;
        if (lines > NRM_BLOCK / NRM_LANES) break;
        if (piece < NRM_LANES)
            nrmi_add_few(&lanes, x + from, p, u, gamma != NULL ? gamma + at->s : NULL, piece);
        else
            nrmi_add_run(&lanes, x + from, p, u, gamma != NULL ? gamma + at->s : NULL, piece);
        count += piece;
        at->s = piece < left ? at->s + piece : 0;
        if (piece == left) at->run++;
    }
    *su = nrmi_fold(lanes.u);
    *sud = nrmi_fold(lanes.ud);
    return count;
}

/* Mean and variance of a row, or of a channel that has runs. */
static nrmi_moments nrmi_run_moments(const nrm_real *x, nrmi_walk all)
{
    const nrm_acc total = (nrm_acc)all.runs * (nrm_acc)all.S;
    nrm_real first = x[0];
    int turn;
    for (turn = 0; turn < 2; turn++) {
        nrmi_walk at = all;
        nrm_acc m = 0, Q = 0, n = 0, gross = 0, s1, s2;
        nrm_real p = first;
        size_t count;
        while ((count = nrmi_next_block(&s1, &s2, &at, x, p, NULL, NULL)) > 0) { /* SUM.3 */
            nrmi_merge(&m, &Q, &p, first, s1, s2, nrmi_weigh(n, (nrm_acc)count));
            gross += s2;
            n += (nrm_acc)count;
        }
        if (nrmi_settled(Q, gross)) return nrmi_split(first, m, Q / total);
        first = (nrm_real)((nrm_acc)first + m); /* once more, from the mean */
    }
    return nrmi_two_passes(x, all);
}

/* The same for a row of one block, where there is nothing to merge; `inverse` is 1/n. */
static inline nrmi_moments nrmi_short_moments(const nrm_real *x, size_t n, nrm_acc inverse)
{
    nrm_real first = x[0];
    int turn;
    for (turn = 0; turn < 2; turn++) {
        nrmi_lanes lanes;
        nrm_acc m, Q, gross;
        nrmi_clear_lanes(&lanes);
        nrmi_add_run(&lanes, x, first, NULL, NULL, n);
        gross = nrmi_fold(lanes.ud);
        m = nrmi_fold(lanes.u) * inverse;
        Q = gross - m * m * (nrm_acc)n; /* SUM.2 */
        if (nrmi_settled(Q, gross)) return nrmi_split(first, m, Q * inverse);
        first = (nrm_real)((nrm_acc)first + m);
    }
    return nrmi_two_passes(x, nrmi_walk_from_start(1, 0, n));
}

/* ∑u and ∑u·(x − h) over a row or channel, with u = dy or dy·gamma. */
static void nrmi_run_sums(nrm_acc *su, nrm_acc *sud, nrmi_walk at, const nrm_real *x, nrm_real h,
                          const nrm_real *dy, const nrm_real *gamma)
{
    nrm_acc u, ud;
    *su = *sud = 0;
    while (nrmi_next_block(&u, &ud, &at, x, h, dy, gamma) > 0) {
        *su += u;
        *sud += ud;
    }
}

/* The same for a row of one block. */
static inline void nrmi_short_sums(nrm_acc *su, nrm_acc *sud, const nrm_real *x, nrm_real h,
                                   const nrm_real *dy, const nrm_real *gamma, size_t n)
{
    nrmi_lanes lanes;
    nrmi_clear_lanes(&lanes);
    nrmi_add_run(&lanes, x, h, dy, gamma, n);
    *su = nrmi_fold(lanes.u);
    *sud = nrmi_fold(lanes.ud);
}

/* SUM.12 */
static inline nrm_acc nrmi_sum_with_xhat(nrm_acc su, nrm_acc sud, nrm_acc r, nrm_real tail)
{
    return r * (sud - (nrm_acc)tail * su);
}

/*
## 6  Batch normalization

*The question it answers: is this value large for its feature, judged by the other examples
of the batch?*

Ioffe and Szegedy (2015) proposed to standardize every feature over the mini-batch, inside
the network and as part of what is differentiated, and to give each feature a scale γ and a
shift β of its own.

### 6.1  Shapes

The tensor is `[N][C][S]`: N examples, C channels, S positions. A dense layer of 64 units
and a batch of 512 has N = 512, C = 64, S = 1; an image tensor in NCHW order has S = H·W.
One channel is normalized with one mean and one variance over all its M = N·S values. In
what follows a single channel is meant, and i runs over its M values. `mean` and `rstd`,
`[C]` each, are saved for the backward pass.

### 6.2  Forward

    μ = (1/M)·∑ᵢ xᵢ                                                   [BN.1]
    v = (1/M)·∑ᵢ (xᵢ − μ)²                                            [BN.2]
    r = 1/√(v + ε)                                                    [BN.3]
    x̂ᵢ = (xᵢ − μ)·r                                                   [BN.4]
    yᵢ = γ·x̂ᵢ + β                                                     [BN.5]

Three choices in these lines have been bug reports elsewhere. The variance is divided by M,
not by M − 1, since BN.19 differentiates this formula and no other; a library that used M −
1 in one direction only had gradients some 15 to 20 % off for batches of four. ε is inside
the root, in both directions. And for one value per channel the variance is 0 whatever the
value is, so y would be β whatever x is, and no gradient would pass; we refuse
(`NRM_EBATCH`) rather than let the last, odd example of an epoch pass for training.

Rewritten for x̂, BN.1 and BN.2 say that its mean is 0 and its mean square nearly 1. BN.22
will need both:

    ∑ᵢ x̂ᵢ = 0                                                         [BN.6]
    ⟨x̂²⟩ = v·r² = 1 − ε·r²                                            [BN.7]

### 6.3  Running statistics and the three modes

When a single example is to be classified there is no batch to compare it with. So training
keeps a running mean m and a running variance u, which move towards those of each batch by a
weight w:

    m ← (1 − w)·m + w·μ                                               [BN.8]
    u ← (1 − w)·u + w·v·M/(M − 1)                                     [BN.9]

The factor M/(M − 1) makes the stored variance an unbiased estimate of the population's, if
the M values are independent. The paper has it, in an average over batches after training,
and PyTorch in this moving form; Keras 3, Flax and ONNX do not; set `biased` for theirs. w
is 0.1 in PyTorch (called momentum) and 0.01 in Keras (whose momentum, 0.99, is the weight
of the old value). With `cumulative` every batch counts alike: at the t-th batch

    w = 1/t                                                           [BN.10]

With running statistics a layer is a fixed affine map of each value:

    yᵢ = γ·(xᵢ − m)/√(u + ε) + β                                      [BN.11]

That is mode *infer*; and it is mode *frozen*, which differs in what it is for: fine-tuning
a network while its statistics stay put. Gradients flow through BN.11, with m and u as
constants.

### 6.4  The code

In a dense layer the channels lie side by side and a channel's values C apart; with S > 1
they lie in runs of S. Statistics, sums and the drawing of the line know the difference, and
nothing else. With runs we take one channel at a time, whose data are then still in the
cache for the line. Dense channels are taken 1024 at a time, for reading whole rows is what
memory is good at. (Strips of 64 channels would stay in the cache, but each of their rows is
on another page: on 4096 x 1024 they took nearly twice as long.)

Of so many channels, some would always have a first value so far from the mean that all had
to start again; so the first pivots are the means of the first eight rows.

To sum, we read eight rows at once, or four of x and four of dy: sums and pivots of a few
channels stay in registers for eight values instead of one. More would be worse. Rows that
are a multiple of 4 KB apart share a set of eight places in the first-level cache; with
sixteen they throw each other out.
*/
#ifndef NRM_WIDTH
#define NRM_WIDTH 1024 /* dense channels, or columns, worked on together */
#elif NRM_WIDTH < 1
#error "normlayers.h: NRM_WIDTH must be at least 1"
#endif
#define NRM_STREAMS 8 /* rows read at once when they are summed */

/* A call, as its parts see it: each part is a range of channels. */
typedef struct nrmi_bn_job {
    nrm_real *out, *dgamma, *dbeta; /* out is y or dx */
    nrm_acc *mean, *rstd;           /* written by the forward pass, */
    const nrm_acc *mu, *r;          /* read by the backward pass    */
    nrm_running *running;
    const nrm_real *dy, *x, *gamma, *beta;
    int mode, late;         /* late: running statistics are updated when all parts are done */
    nrm_acc eps;
    nrm_stats *taken;       /* section 9: where the moments go, and nothing else is done,   */
    const nrm_stats *given; /* or where they come from, and their counts                    */
    nrm_sums *taken_sums;   /* the same of the backward pass                                */
    const nrm_sums *given_sums;
    nrm_acc *ratio, *offset, r_max, d_max; /* section 10: BR.1 and BR.2, */
    const nrm_acc *br_r, *br_d;            /* as saved                   */
    size_t N, C, S;             /* a view: channel c of example n has S values from            */
    size_t pitch, apart, ahead; /* n·pitch + c·apart on; ahead: to what is fetched in time     */
} nrmi_bn_job;

/* The whole of a tensor [N][C][S]; the caller fills in the rest. */
static nrmi_bn_job nrmi_bn_whole(size_t N, size_t C, size_t S)
{
    nrmi_bn_job job;
    NRM_MEMSET(&job, 0, sizeof job);
    job.N = N;
    job.C = C;
    job.S = S;
    job.pitch = C * S;
    job.apart = S;
    if (N * C * S >= NRM_FETCH_FROM) job.ahead = S;
    return job;
}

/* Do neighbours belong to different channels? */
static int nrmi_dense(const nrmi_bn_job *job)
{
    return job->apart == 1;
}

static size_t nrmi_bn_numbers(const nrmi_bn_job *job)
{
    return job->N * job->C * job->S;
}

/* Shares the work on a job: dense channels in whole cache lines, others one by one. */
static int nrmi_bn_share(nrmi_part *part, nrmi_bn_job *job)
{
    return nrmi_share(part, job, job->C, nrmi_dense(job) ? NRM_LANES : 1, nrmi_bn_numbers(job));
}

/* The channels that are being worked on. */
typedef struct nrmi_channels {
    nrm_acc mean[NRM_WIDTH], var[NRM_WIDTH]; /* backward: ∑dy and ∑dy·(x − h) */
    nrm_real head[NRM_WIDTH], tail[NRM_WIDTH];
    nrm_real slope[NRM_WIDTH], shift[NRM_WIDTH];      /* s, b of SUM.11 and SUM.13 */
    nrm_real dy_slope[NRM_WIDTH], dy_mean[NRM_WIDTH]; /* a, ⟨u⟩ of SUM.13          */
} nrmi_channels;

/* What sections 9 and 10 put in between. */
static nrmi_moments nrmi_stats_moments(nrm_stats stats);
static int nrmi_stats_take(const nrmi_bn_job *job, size_t c, const nrmi_channels *ch, size_t width);
static void nrmi_renorm(const nrmi_bn_job *job, size_t c, nrm_acc mean, nrm_acc var);

/* Adds a few rows of dense channels to the sums of u and u·(x − p): u is x − p, or dy. */
static void nrmi_add_rows(nrm_real *su, nrm_real *sud, const nrm_real *x, const nrm_real *p,
                          const nrm_real *dy, size_t rows, size_t C, size_t width)
{
    size_t c, i;
    for (c = 0; c + NRM_VEC <= width; c += NRM_VEC) {
        const nrmi_vec pivot = nrmi_load(p + c);
        nrmi_vec u_sum = nrmi_load(su + c), ud_sum = nrmi_load(sud + c);
        NRM_UNROLL for (i = 0; i < rows; i++)
        {
            const nrmi_vec d = nrmi_load(x + i * C + c) - pivot;
            nrmi_vec u = d;
            if (dy != NULL) u = nrmi_load(dy + i * C + c);
            u_sum += u;
            ud_sum += u * d;
        }
        nrmi_store(su + c, u_sum);
        nrmi_store(sud + c, ud_sum);
    }
    for (; c < width; c++)
        for (i = 0; i < rows; i++) {
            const nrm_real d = x[i * C + c] - p[c], u = dy != NULL ? dy[i * C + c] : d;
            su[c] += u;
            sud[c] += u * d;
        }
}

/* The two sums over a block of rows. */
static void nrmi_sum_rows(nrm_real *su, nrm_real *sud, const nrm_real *x, const nrm_real *p,
                          const nrm_real *dy, size_t rows, size_t C, size_t width)
{
    const size_t streams = dy != NULL ? NRM_STREAMS / 2 : NRM_STREAMS;
    size_t i;
    NRM_MEMSET(su, 0, width * sizeof *su);
    NRM_MEMSET(sud, 0, width * sizeof *sud);
    for (i = 0; i < rows; i += streams)
        nrmi_add_rows(su, sud, x + i * C, p, dy != NULL ? dy + i * C : NULL,
                      nrmi_least(rows - i, streams), C, width);
}

static void nrmi_put_moments(nrmi_channels *ch, size_t c, nrmi_moments t)
{
    ch->mean[c] = t.mean;
    ch->var[c] = t.var;
    ch->head[c] = t.head;
    ch->tail[c] = t.tail;
}

/* The sums of dense channels from the pivots in ch->dy_slope; returns how many are not settled.
   mean and var become m, an offset from that pivot, and Q; all S2 together go to ch->dy_mean. */
static size_t nrmi_column_turn(nrmi_channels *ch, const nrm_real *x, size_t N, size_t C,
                               size_t width)
{
    nrm_real *s1 = ch->slope, *s2 = ch->shift, *gross = ch->dy_mean, *first = ch->dy_slope;
    size_t n, c, unsettled = 0;
    for (c = 0; c < width; c++) {
        ch->mean[c] = ch->var[c] = 0;
        ch->head[c] = first[c];
        gross[c] = 0;
    }
    for (n = 0; n < N; n += NRM_ROWS) {
        const size_t rows = nrmi_least(N - n, NRM_ROWS);
        const nrmi_weight w = nrmi_weigh((nrm_acc)n, (nrm_acc)rows);
        nrmi_sum_rows(s1, s2, x + n * C, ch->head, NULL, rows, C, width); /* SUM.3 */
        for (c = 0; c < width; c++)
            nrmi_merge(&ch->mean[c], &ch->var[c], &ch->head[c], first[c], (nrm_acc)s1[c],
                       (nrm_acc)s2[c], w);
        for (c = 0; c < width; c++) gross[c] += s2[c];
    }
    for (c = 0; c < width; c++) unsettled += !nrmi_settled(ch->var[c], (nrm_acc)gross[c]);
    return unsettled;
}

/* Means and variances of dense channels. The first pivot is the mean of a few rows: of so many
   channels, some would always find their first value too far off. A channel that is settled after
   the first turn comes to the same in the second. */
static void nrmi_column_moments(nrmi_channels *ch, const nrm_real *x, size_t N, size_t C,
                                size_t width)
{
    nrm_real *s1 = ch->slope, *gross = ch->dy_mean, *first = ch->dy_slope; /* not yet needed */
    const size_t rows = nrmi_least(N, NRM_STREAMS);
    size_t c;
    nrmi_sum_rows(s1, ch->shift, x, x, NULL, rows, C, width);
    for (c = 0; c < width; c++)
        first[c] = (nrm_real)((nrm_acc)x[c] + (nrm_acc)s1[c] / (nrm_acc)rows);
    if (nrmi_column_turn(ch, x, N, C, width) > 0) {
        for (c = 0; c < width; c++)
            if (!nrmi_settled(ch->var[c], (nrm_acc)gross[c]))
                first[c] = (nrm_real)((nrm_acc)first[c] + ch->mean[c]);
        (void)nrmi_column_turn(ch, x, N, C, width);
    }
    for (c = 0; c < width; c++) { /* nrmi_split, in a form that is done for several at once */
        const nrm_acc offset = ch->mean[c], mean = (nrm_acc)first[c] + offset;
        ch->mean[c] = mean;
        ch->head[c] = (nrm_real)mean;
        ch->tail[c] = (nrm_real)(((nrm_acc)first[c] - (nrm_acc)(nrm_real)mean) + offset);
    }
    for (c = 0; c < width; c++)
        if (nrmi_settled(ch->var[c], (nrm_acc)gross[c]))
            ch->var[c] /= (nrm_acc)N;
        else
            nrmi_put_moments(ch, c, nrmi_two_passes(x + c, nrmi_walk_from_start(N, C, 1)));
}

/* Statistics of the channels from c on. */
static void nrmi_bn_moments(nrmi_channels *ch, const nrmi_bn_job *job, size_t c, size_t width)
{
    const nrm_real *x = job->x + c * job->apart;
    size_t k;
    if (job->given != NULL)
        for (k = 0; k < width; k++)
            nrmi_put_moments(ch, k, nrmi_stats_moments(job->given[c + k]));
    else if (job->mode != NRM_TRAIN) /* BN.11 */
        for (k = 0; k < width; k++)
            nrmi_put_moments(ch, k, nrmi_split(job->running->mean[c + k], 0,
                                               (nrm_acc)job->running->var[c + k]));
    else if (nrmi_dense(job))
        nrmi_column_moments(ch, x, job->N, job->pitch, width); /* BN.1 and BN.2 */
    else
        for (k = 0; k < width; k++)
            nrmi_put_moments(ch, k,
                             nrmi_run_moments(x + k * job->apart,
                                              nrmi_walk_from_start(job->N, job->pitch, job->S)));
}

/* y of one row of dense channels: BN.4 and BN.5 in the form of SUM.11. */
static void nrmi_bn_forward_row(nrm_real *y, const nrm_real *x, const nrmi_channels *ch,
                                size_t width)
{
    size_t c;
    for (c = 0; c + NRM_VEC <= width; c += NRM_VEC) {
        const nrmi_vec d = nrmi_load(x + c) - nrmi_load(ch->head + c);
        nrmi_store(y + c, d * nrmi_load(ch->slope + c) + nrmi_load(ch->shift + c));
    }
    for (; c < width; c++) y[c] = (x[c] - ch->head[c]) * ch->slope[c] + ch->shift[c]; /* BN.5 */
}

/* The straight lines of one channel: s·(x − h) + b, and what is taken off dy and multiplies all. */
typedef struct nrmi_line {
    nrm_real head, slope, shift, dy_mean, dy_slope;
} nrmi_line;

static nrmi_line nrmi_line_of(const nrmi_channels *ch, size_t c)
{
    nrmi_line line;
    line.head = ch->head[c];
    line.slope = ch->slope[c];
    line.shift = ch->shift[c];
    line.dy_mean = 0; /* the backward pass puts its own in */
    line.dy_slope = 1;
    return line;
}

/* y of one run. */
static void nrmi_bn_forward_run(nrm_real *y, const nrm_real *x, nrmi_line line, size_t S,
                                size_t ahead)
{
    const nrm_real head = line.head, slope = line.slope, shift = line.shift;
    size_t s;
    for (s = 0; s + NRM_VEC <= S; s += NRM_VEC) {
        if (ahead > 0) NRM_PREFETCH(x + s, ahead);
        nrmi_store(y + s, (nrmi_load(x + s) - head) * slope + shift);
    }
    for (; s < S; s++) y[s] = (x[s] - head) * slope + shift; /* BN.5 as SUM.11 */
}

/* Finite, and still so as an nrm_real? */
static int nrmi_fits(nrm_acc v)
{
    return nrmi_finite((nrm_acc)(nrm_real)v);
}

/* BN.8 to BN.10 for channels c0 to c0 + width − 1. A channel whose result would not be finite, also
   for want of range in nrm_real, is passed over. */
static void nrmi_bn_track(const nrm_running *running, const nrm_acc *mean, const nrm_acc *var,
                          size_t c0, size_t width, nrm_acc count)
{
    const nrm_acc w = running->cumulative ? 1 / (nrm_acc)running->batches  /* BN.10 */
                                          : (nrm_acc)running->new_weight;
    const nrm_acc unbiased = running->biased ? 1 : count / (count - 1);
    size_t c;
    for (c = 0; c < width; c++) {
        nrm_real *m = running->mean + c0 + c, *u = running->var + c0 + c;
        const nrm_acc next_m = (1 - w) * (nrm_acc)*m + w * mean[c];             /* BN.8 */
        const nrm_acc next_u = (1 - w) * (nrm_acc)*u + w * (var[c] * unbiased); /* BN.9 */
        if (!nrmi_fits(next_m) || !nrmi_fits(next_u)) continue;
        *m = (nrm_real)next_m;
        *u = (nrm_real)next_u;
    }
}

static int nrmi_check_batchnorm(int mode, size_t N, size_t C, size_t S)
{
    const int rc = nrmi_check_volume(N, C, S);
    if (mode != NRM_TRAIN && mode != NRM_INFER && mode != NRM_FROZEN) return NRM_EMODE;
    if (rc == NRM_OK && mode == NRM_TRAIN && N == 1 && S == 1) return NRM_EBATCH;
    return rc;
}

/* Running statistics that are to be used must be usable. */
static int nrmi_check_running(const nrm_running *running, int mode, size_t C)
{
    if (running == NULL) return mode == NRM_TRAIN ? NRM_OK : NRM_ENULL;
    if (mode != NRM_TRAIN) return nrm_running_check(NULL, running, C);
    if (running->mean == NULL || running->var == NULL) return NRM_ENULL;
    return running->cumulative || (running->new_weight >= 0 && running->new_weight <= 1)
               ? NRM_OK
               : NRM_EWEIGHT;
}

static int nrmi_check_batchnorm_forward(const nrm_real *y, const nrm_acc *mean, const nrm_acc *rstd,
                                        const nrm_running *running, const nrm_real *x,
                                        const nrm_real *gamma, const nrm_real *beta, int mode,
                                        size_t N, size_t C, size_t S)
{
    const size_t count = N * C * S;
    nrmi_span buffer[8];
    int rc;
    if (y == NULL || x == NULL) return NRM_ENULL;
    if (mode != NRM_INFER && (mean == NULL || rstd == NULL)) return NRM_ENULL;
    rc = nrmi_check_running(running, mode, C);
    if (rc != NRM_OK) return rc;
    buffer[0] = nrmi_reals(y, count);
    buffer[1] = nrmi_accs(mean, C);
    buffer[2] = nrmi_accs(rstd, C);
    buffer[3] = nrmi_reals(running ? running->mean : NULL, C);
    buffer[4] = nrmi_reals(running ? running->var : NULL, C);
    buffer[5] = nrmi_reals(gamma, C);
    buffer[6] = nrmi_reals(beta, C);
    buffer[7] = nrmi_reals(x, count);
    return nrmi_check_apart(buffer, mode == NRM_INFER && x == y ? 7 : 8, mode == NRM_TRAIN ? 5 : 3);
}

/* NRM_NONFINITE if a statistic is not finite, or not as an nrm_real that has to hold it. */
static int nrmi_bn_usable(const nrmi_channels *ch, const nrmi_bn_job *job, size_t width)
{
    size_t k;
    int rc = NRM_OK;
    for (k = 0; k < width; k++)
        if (!nrmi_finite(ch->mean[k]) || !nrmi_finite(ch->var[k]) ||
            (job->running != NULL && !(nrmi_fits(ch->mean[k]) && nrmi_fits(ch->var[k]))))
            rc = NRM_NONFINITE;
    return rc;
}

/* The coefficients of the line, from r in ch->var. */
static void nrmi_bn_slopes(nrmi_channels *ch, const nrmi_bn_job *job, size_t c, size_t width)
{
    size_t k;
    for (k = 0; k < width; k++) {
        const nrm_acc gamma = job->gamma != NULL ? (nrm_acc)job->gamma[c + k] : 1;
        nrm_acc beta = job->beta != NULL ? (nrm_acc)job->beta[c + k] : 0;
        nrm_acc s = gamma * ch->var[k];
        if (job->ratio != NULL) { /* BR.3 */
            beta += gamma * job->offset[c + k];
            s *= job->ratio[c + k];
        }
        ch->slope[k] = (nrm_real)s;
        ch->shift[k] = (nrm_real)(beta - s * (nrm_acc)ch->tail[k]); /* SUM.11 */
    }
}

/* The statistics' way out, and the coefficients of the line. */
static int nrmi_bn_forward_lines(nrmi_channels *ch, const nrmi_bn_job *job, size_t c, size_t width)
{
    const int rc = nrmi_bn_usable(ch, job, width);
    size_t k;
    for (k = 0; k < width && job->ratio != NULL; k++)
        nrmi_renorm(job, c + k, ch->mean[k], ch->var[k]); /* before the running statistics move */
    if (job->mode == NRM_TRAIN && job->running != NULL && !job->late)
        nrmi_bn_track(job->running, ch->mean, ch->var, c, width,
                      (nrm_acc)job->N * (nrm_acc)job->S);
    for (k = 0; k < width && job->mean != NULL; k++) job->mean[c + k] = ch->mean[k];
    for (k = 0; k < width && job->late; k++) job->rstd[c + k] = ch->var[k]; /* it waits there */
    for (k = 0; k < width; k++) ch->var[k] = 1 / NRM_SQRT(ch->var[k] + job->eps); /* BN.3 */
    for (k = 0; k < width && job->rstd != NULL && !job->late; k++) job->rstd[c + k] = ch->var[k];
    nrmi_bn_slopes(ch, job, c, width);
    return rc;
}

/* y of the channels whose lines are known: BN.4 and BN.5. */
static void nrmi_bn_forward_values(const nrmi_channels *ch, const nrmi_bn_job *job, size_t c,
                                   size_t width)
{
    const nrmi_line line = nrmi_line_of(ch, 0);
    size_t n;
    for (n = 0; n < job->N; n++) {
        const size_t at = n * job->pitch + c * job->apart;
        if (nrmi_dense(job))
            nrmi_bn_forward_row(job->out + at, job->x + at, ch, width);
        else
            nrmi_bn_forward_run(job->out + at, job->x + at, line, job->S, job->ahead);
    }
}

/* Channels from..to−1, from statistics to y. */
static int nrmi_bn_forward_part(void *context, size_t from, size_t to)
{
    const nrmi_bn_job *job = (const nrmi_bn_job *)context;
    const size_t step = nrmi_dense(job) ? NRM_WIDTH : 1;
    nrmi_channels ch;
    size_t c;
    int rc = NRM_OK;
    for (c = from; c < to; c += step) {
        const size_t width = nrmi_least(to - c, step);
        nrmi_bn_moments(&ch, job, c, width);
        if (job->taken != NULL) {
            if (nrmi_stats_take(job, c, &ch, width) != NRM_OK) rc = NRM_NONFINITE;
            continue;
        }
        if (nrmi_bn_forward_lines(&ch, job, c, width) != NRM_OK) rc = NRM_NONFINITE;
        nrmi_bn_forward_values(&ch, job, c, width);
    }
    return rc;
}

/* The late update: a plain average takes whole batches only, and counts them. */
static void nrmi_bn_track_late(const nrmi_bn_job *job, int finite)
{
    size_t c;
    if (finite) {
        job->running->batches++;
        nrmi_bn_track(job->running, job->mean, job->rstd, 0, job->C,
                      (nrm_acc)job->N * (nrm_acc)job->S);
    }
    for (c = 0; c < job->C; c++) job->rstd[c] = 1 / NRM_SQRT(job->rstd[c] + job->eps);
}

static nrmi_bn_job nrmi_bn_forward_job(nrm_real *y, nrm_acc *mean, nrm_acc *rstd,
                                       nrm_running *running, const nrm_real *x,
                                       const nrm_real *gamma, const nrm_real *beta, int mode,
                                       nrm_real eps, size_t N, size_t C, size_t S)
{
    nrmi_bn_job job = nrmi_bn_whole(N, C, S);
    job.out = y;
    job.mean = mean;
    job.rstd = rstd;
    job.running = running;
    job.x = x;
    job.gamma = gamma;
    job.beta = beta;
    job.mode = mode;
    job.eps = (nrm_acc)eps;
    return job;
}

/* A forward pass whose arguments have been checked. */
static int nrmi_bn_forward(nrmi_bn_job *job)
{
    const int track = job->mode == NRM_TRAIN && job->running != NULL;
    int rc;
    job->late = track && job->running->cumulative;
    if (job->mode != NRM_TRAIN) job->ahead = 0; /* one stream in, one out: it runs by itself */
    rc = nrmi_bn_share(nrmi_bn_forward_part, job);
    if (job->late)
        nrmi_bn_track_late(job, rc == NRM_OK);
    else if (track)
        job->running->batches++;
    return rc;
}

NRM_DEF int nrm_batchnorm_forward(nrm_real *y, nrm_acc *mean, nrm_acc *rstd, nrm_running *running,
                                  const nrm_real *x, const nrm_real *gamma, const nrm_real *beta,
                                  int mode, nrm_real eps, size_t N, size_t C, size_t S)
{
    nrmi_bn_job job;
    int rc = nrmi_check_batchnorm(mode, N, C, S);
    if (rc == NRM_OK) rc = nrmi_check_eps(eps);
    if (rc != NRM_OK || N == 0) return rc;
    rc = nrmi_check_batchnorm_forward(y, mean, rstd, running, x, gamma, beta, mode, N, C, S);
    if (rc != NRM_OK) return rc;
    job = nrmi_bn_forward_job(y, mean, rstd, running, x, gamma, beta, mode, eps, N, C, S);
    return nrmi_bn_forward(&job);
}

/*
### 6.5  Backward

Given is dyᵢ = ∂L/∂yᵢ for every value of the channel. β is added to all of them and γ
multiplies all of them, so their gradients are sums:

    dβ = ∑ᵢ dyᵢ                                                       [BN.12]
    dγ = ∑ᵢ dyᵢ·x̂ᵢ                                                    [BN.13]
    gᵢ = ∂L/∂x̂ᵢ = γ·dyᵢ                                               [BN.14]

Now x. A change of xᵢ reaches x̂ⱼ by three roads: directly if i = j, through μ, and through
r, which depends on v, and v on xᵢ and μ.

The mean is simple. For the variance, differentiate BN.2: besides the direct term there is
one through μ, with the factor ∑ⱼ (xⱼ − μ), and that is zero. Several bug reports ask where
this term has gone in other people's code. It is not forgotten; it vanishes.

    ∂μ/∂xᵢ = 1/M                                                      [BN.15]
    ∂v/∂xᵢ = (2/M)·(xᵢ − μ) − (2/M)·(1/M)·∑ⱼ (xⱼ − μ) = (2/M)·(xᵢ − μ)  [BN.16]
    ∂r/∂xᵢ = −½·r³·∂v/∂xᵢ = −(1/M)·r²·x̂ᵢ                              [BN.17]

The product rule on BN.4 puts the roads together. They give r·δᵢⱼ, −r/M, and (xⱼ −
μ)·∂r/∂xᵢ; in the last one (xⱼ − μ)·r² is r·x̂ⱼ:

    ∂x̂ⱼ/∂xᵢ = r·(δᵢⱼ − 1/M − x̂ᵢ·x̂ⱼ/M)                                 [BN.18]

and sum over j, which needs no M×M matrix but two means. γ is the same for the whole channel
and comes out:

    dxᵢ = ∑ⱼ gⱼ·∂x̂ⱼ/∂xᵢ = γ·r·(dyᵢ − ⟨dy⟩ − x̂ᵢ·⟨dy·x̂⟩)                [BN.19]

The two means are dβ/M and dγ/M, had we asked for them. In mode frozen μ and r do not depend
on x, and only the direct road is left:

    dxᵢ = γ·r·dyᵢ (frozen)                                            [BN.20]

### 6.6  What it means

But for ε and the factor γ·r, BN.19 is a projection: it takes out of dy its mean and its
part along x̂. Adding a constant to all x of a channel leaves y alone, and stretching them
does too, up to ε; so the gradient has nothing to say in the first direction and next to
nothing in the second. That gives two checks that need no reference (for the second,
multiply BN.19 by x̂ᵢ, sum, and use BN.6 and BN.7):

    ∑ᵢ dxᵢ = 0                                                        [BN.21]
    ∑ᵢ dxᵢ·x̂ᵢ = γ·r·M·ε·r²·⟨dy·x̂⟩                                     [BN.22]

Two directions are removed from the M that a channel has. With M = 2 nothing remains: as
long as the two values differ by much more than √ε, x̂ is +1 and −1 whatever they are, and

    dx₁ = −dx₂ = ½·γ·ε·r³·(dy₁ − dy₂) for M = 2                       [BN.23]

which is small: take from what mode frozen passes, γ·r·dyᵢ, its mean, and the fraction ε·r²
of the rest is left. Batch norm with two values per channel passes practically no gradient
down, and the layers before it hardly learn.

We keep μ and r, two numbers a channel, and compute x̂ again: one subtraction and one
multiplication buy back a buffer as large as the activations.
*/

/* ∑dy and ∑dy·(x − h) of dense channels, left in ch->mean and ch->var. */
static void nrmi_column_sums(nrmi_channels *ch, const nrm_real *dy, const nrm_real *x, size_t N,
                             size_t C, size_t width)
{
    nrm_real *su = ch->slope, *sud = ch->shift; /* not yet needed */
    size_t n, c;
    for (c = 0; c < width; c++) ch->mean[c] = ch->var[c] = 0;
    for (n = 0; n < N; n += NRM_ROWS) {
        nrmi_sum_rows(su, sud, x + n * C, ch->head, dy + n * C, nrmi_least(N - n, NRM_ROWS), C,
                      width);
        for (c = 0; c < width; c++) {
            ch->mean[c] += (nrm_acc)su[c];
            ch->var[c] += (nrm_acc)sud[c];
        }
    }
}

/* ∑dy and ∑dy·(x − h) of the channels from c on, and the head and tail of their means. */
static void nrmi_bn_sums(nrmi_channels *ch, const nrmi_bn_job *job, size_t c, size_t width)
{
    const size_t first = c * job->apart;
    size_t k;
    for (k = 0; k < width; k++) {
        ch->head[k] = (nrm_real)job->mu[c + k];
        ch->tail[k] = (nrm_real)(job->mu[c + k] - (nrm_acc)ch->head[k]);
    }
    if (job->given_sums != NULL) return;
    if (nrmi_dense(job))
        nrmi_column_sums(ch, job->dy + first, job->x + first, job->N, job->pitch, width);
    else
        nrmi_run_sums(&ch->mean[0], &ch->var[0], nrmi_walk_from_start(job->N, job->pitch, job->S),
                      job->x + first, ch->head[0], job->dy + first, NULL);
}

/* BN.12 and BN.13 for the channels from c on: left in ch->mean and ch->var. */
static void nrmi_bn_backward_sums(nrmi_channels *ch, const nrmi_bn_job *job, size_t c, size_t width)
{
    size_t k;
    nrmi_bn_sums(ch, job, c, width); /* BN.12 */
    if (job->given_sums != NULL) {
        for (k = 0; k < width; k++) ch->mean[k] = job->given_sums[c + k].dy;
        for (k = 0; k < width; k++) ch->var[k] = job->given_sums[c + k].dy_xhat;
        return;
    }
    for (k = 0; k < width; k++) /* BN.13 */
        ch->var[k] = nrmi_sum_with_xhat(ch->mean[k], ch->var[k], job->r[c + k], ch->tail[k]);
}

/* The sums' way out, and the coefficients of BN.19 as SUM.13. */
static void nrmi_bn_backward_lines(nrmi_channels *ch, const nrmi_bn_job *job, size_t c,
                                   size_t width)
{
    const nrm_acc count = (nrm_acc)job->N * (nrm_acc)job->S;
    const int train = job->mode == NRM_TRAIN; /* BN.20 is without the means of BN.19 */
    size_t k;
    for (k = 0; k < width; k++) {
        const nrm_acc r = job->r[c + k], sum = ch->mean[k], sum_x = ch->var[k];
        const nrm_acc share = 1 / (job->given != NULL ? job->given[c + k].count : count);
        nrm_acc a = job->gamma != NULL ? (nrm_acc)job->gamma[c + k] * r : r, dgamma = sum_x;
        const nrm_acc s = train ? -r * (sum_x * share) : 0; /* not 0 times what may be infinite */
        if (job->br_r != NULL) {
            a *= job->br_r[c + k];                                            /* BR.5 */
            dgamma = job->br_r[c + k] * sum_x + job->br_d[c + k] * sum;       /* BR.4 */
        }
        if (job->dbeta != NULL) job->dbeta[c + k] += (nrm_real)sum;
        if (job->dgamma != NULL) job->dgamma[c + k] += (nrm_real)dgamma;
        ch->dy_slope[k] = (nrm_real)a;
        ch->dy_mean[k] = (nrm_real)(train ? sum * share : 0);
        ch->slope[k] = (nrm_real)s;
        ch->shift[k] = (nrm_real)(-s * (nrm_acc)ch->tail[k]); /* SUM.13 */
    }
}

/* dx of one row of dense channels. */
static void nrmi_bn_backward_row(nrm_real *dx, const nrm_real *dy, const nrm_real *x,
                                 const nrmi_channels *ch, size_t width)
{
    size_t c;
    for (c = 0; c + NRM_VEC <= width; c += NRM_VEC) {
        const nrmi_vec d = nrmi_load(x + c) - nrmi_load(ch->head + c);
        const nrmi_vec line = d * nrmi_load(ch->slope + c) + nrmi_load(ch->shift + c);
        const nrmi_vec u = nrmi_load(dy + c) - nrmi_load(ch->dy_mean + c);
        nrmi_store(dx + c, (u + line) * nrmi_load(ch->dy_slope + c));
    }
    for (; c < width; c++)
        dx[c] = ((dy[c] - ch->dy_mean[c]) +
                 ((x[c] - ch->head[c]) * ch->slope[c] + ch->shift[c])) *
                ch->dy_slope[c]; /* BN.19 as SUM.13 */
}

/* dx of one run. */
static void nrmi_bn_backward_run(nrm_real *dx, const nrm_real *dy, const nrm_real *x,
                                 nrmi_line line, size_t S, size_t ahead)
{
    const nrm_real head = line.head, slope = line.slope, shift = line.shift;
    const nrm_real dy_mean = line.dy_mean, dy_slope = line.dy_slope;
    size_t s;
    for (s = 0; s + NRM_VEC <= S; s += NRM_VEC) {
        if (ahead > 0) {
            NRM_PREFETCH(x + s, ahead);
            NRM_PREFETCH(dy + s, ahead);
        }
        nrmi_store(dx + s, ((nrmi_load(dy + s) - dy_mean) +
                            ((nrmi_load(x + s) - head) * slope + shift)) *
                               dy_slope);
    }
    for (; s < S; s++)
        dx[s] = ((dy[s] - dy_mean) + ((x[s] - head) * slope + shift)) * dy_slope; /* BN.19 */
}

/* dx of the channels whose lines are known: BN.19 or BN.20. */
static void nrmi_bn_backward_values(const nrmi_channels *ch, const nrmi_bn_job *job, size_t c,
                                    size_t width)
{
    nrmi_line line = nrmi_line_of(ch, 0);
    size_t n;
    line.dy_mean = ch->dy_mean[0];
    line.dy_slope = ch->dy_slope[0];
    for (n = 0; n < job->N; n++) {
        const size_t at = n * job->pitch + c * job->apart;
        if (nrmi_dense(job))
            nrmi_bn_backward_row(job->out + at, job->dy + at, job->x + at, ch, width);
        else
            nrmi_bn_backward_run(job->out + at, job->dy + at, job->x + at, line, job->S,
                                 job->ahead);
    }
}

/* Channels from..to−1, from the sums to dx. */
static int nrmi_bn_backward_part(void *context, size_t from, size_t to)
{
    const nrmi_bn_job *job = (const nrmi_bn_job *)context;
    const size_t step = nrmi_dense(job) ? NRM_WIDTH : 1;
    nrmi_channels ch;
    size_t c, k;
    for (c = from; c < to; c += step) {
        const size_t width = nrmi_least(to - c, step);
        nrmi_bn_backward_sums(&ch, job, c, width);
        if (job->taken_sums != NULL) {
            for (k = 0; k < width; k++) job->taken_sums[c + k].dy += ch.mean[k];
            for (k = 0; k < width; k++) job->taken_sums[c + k].dy_xhat += ch.var[k];
            continue;
        }
        nrmi_bn_backward_lines(&ch, job, c, width);
        nrmi_bn_backward_values(&ch, job, c, width);
    }
    return NRM_OK;
}

/* The buffers of any norm's backward pass: count values, groups of them with statistics of their
   own, params of gamma and beta. */
static int nrmi_check_norm_backward(const nrm_real *dx, const nrm_real *dgamma,
                                    const nrm_real *dbeta, const nrm_real *dy, const nrm_real *x,
                                    const nrm_acc *mean, const nrm_acc *rstd,
                                    const nrm_real *gamma, size_t count, size_t groups,
                                    size_t params)
{
    nrmi_span buffer[8];
    if (dx == NULL || dy == NULL || x == NULL || mean == NULL || rstd == NULL) return NRM_ENULL;
    buffer[0] = nrmi_reals(dx, count);
    buffer[1] = nrmi_reals(dgamma, params);
    buffer[2] = nrmi_reals(dbeta, params);
    buffer[3] = nrmi_reals(x, count);
    buffer[4] = nrmi_accs(mean, groups);
    buffer[5] = nrmi_accs(rstd, groups);
    buffer[6] = nrmi_reals(gamma, params);
    buffer[7] = nrmi_reals(dy, count);
    return nrmi_check_apart(buffer, dx == dy ? 7 : 8, 3);
}

static int nrmi_check_batchnorm_backward(const nrm_real *dx, const nrm_real *dgamma,
                                         const nrm_real *dbeta, const nrm_real *dy,
                                         const nrm_real *x, const nrm_acc *mean,
                                         const nrm_acc *rstd, const nrm_real *gamma, int mode,
                                         size_t N, size_t C, size_t S)
{
    const int rc = nrmi_check_batchnorm(mode, N, C, S);
    if (mode == NRM_INFER) return NRM_EMODE;
    if (rc != NRM_OK || N == 0) return rc;
    return nrmi_check_norm_backward(dx, dgamma, dbeta, dy, x, mean, rstd, gamma, N * C * S, C, C);
}

static nrmi_bn_job nrmi_bn_backward_job(nrm_real *dx, nrm_real *dgamma, nrm_real *dbeta,
                                        const nrm_real *dy, const nrm_real *x, const nrm_acc *mean,
                                        const nrm_acc *rstd, const nrm_real *gamma, int mode,
                                        size_t N, size_t C, size_t S)
{
    nrmi_bn_job job = nrmi_bn_whole(N, C, S);
    job.out = dx;
    job.dgamma = dgamma;
    job.dbeta = dbeta;
    job.mu = mean;
    job.r = rstd;
    job.dy = dy;
    job.x = x;
    job.gamma = gamma;
    job.mode = mode;
    return job;
}

NRM_DEF int nrm_batchnorm_backward(nrm_real *dx, nrm_real *dgamma, nrm_real *dbeta,
                                   const nrm_real *dy, const nrm_real *x, const nrm_acc *mean,
                                   const nrm_acc *rstd, const nrm_real *gamma, int mode, size_t N,
                                   size_t C, size_t S)
{
    nrmi_bn_job job;
    const int rc = nrmi_check_batchnorm_backward(dx, dgamma, dbeta, dy, x, mean, rstd, gamma, mode,
                                                 N, C, S);
    if (rc != NRM_OK || N == 0) return rc;
    job = nrmi_bn_backward_job(dx, dgamma, dbeta, dy, x, mean, rstd, gamma, mode, N, C, S);
    return nrmi_bn_share(nrmi_bn_backward_part, &job);
}

/*
## 7  Layer normalization

*The question it answers: is this value large for its example, judged by the other
features?*

Ba, Kiros and Hinton (2016) turned the axis of the average. Each row is on its own: there is
nothing about a batch to depend on or to remember, and training and inference compute the
same. It works for a batch of one, and inside a recurrent network whose sequences differ in
length.

### 7.1  Shapes

`x`, `y`, `dx`, `dy` are `[N][D]`; γ and β are `[D]`, one for each feature; μ and r are
`[N]`. In what follows a single row is meant, and i, j run over its D features; the row's
index n returns with LN.8.

### 7.2  Forward

    μ = (1/D)·∑ⱼ xⱼ                                                   [LN.1]
    v = (1/D)·∑ⱼ (xⱼ − μ)²                                            [LN.2]
    r = 1/√(v + ε)                                                    [LN.3]
    x̂ᵢ = (xᵢ − μ)·r                                                   [LN.4]
    yᵢ = γᵢ·x̂ᵢ + βᵢ                                                   [LN.5]

The same choices as in batch norm hide in LN.2 and LN.3, and a text that many learned from,
The Annotated Transformer, decided otherwise: it divides by D − 1 and adds ε to the standard
deviation, outside the root. At D = 512 its copies disagree with every framework by one part
in a thousand. What differs from batch norm in earnest is LN.5: γ changes along the very
axis that is averaged. We shall meet it again in LN.14.

A row of equal features is not an error here, since it says nothing wrong about other rows:
v = 0, x̂ = 0, y = β. The same goes for D = 1. As in BN.6 and BN.7,

    ∑ᵢ x̂ᵢ = 0                                                         [LN.6]
    ⟨x̂²⟩ = v·r² = 1 − ε·r²                                            [LN.7]

In the code short rows are taken some at a time, since the root and the division of one row
need not wait for the sums of the next: a tenth of the time at 64 x 128. A row of at most
1024 values is one block, with nothing to merge: another third there.
*/
#define NRM_AT_ONCE 4096       /* numbers of a group, whose rows stay in the first-level cache */
#define NRM_GROUP 16           /* rows of a group, at most                                     */
#define NRM_BAND_NUMBERS 16384 /* numbers of a band, which stays in the second-level cache     */
#define NRM_BAND 64            /* rows of a band, at most                                      */
#define NRM_WIDE 4096          /* columns whose gradients are summed while dx is made, at most */

enum { NRMI_LAYER, NRMI_STD, NRMI_RMS }; /* LN.3 or, by its variants, LN.17 and RMS.1 */

typedef struct nrmi_ln_job { /* a call, as its parts see it: each part is a range of rows */
    nrm_real *out;                 /* y or dx                      */
    nrm_acc *mean, *rstd;          /* written by the forward pass, */
    const nrm_acc *mu, *r;         /* read by the backward pass    */
    nrm_real *dgamma, *dbeta;
    const nrm_real *dy, *x, *gamma, *beta;
    int kind;
    nrm_acc eps;
    size_t N, D; /* rows, and their length                                               */
    size_t G, S; /* section 11: G rows make an example, and share none of gamma and beta;
                    a gamma serves S neighbours. Layer norm has G = S = 1                */
    size_t ahead; /* how far on to fetch */
} nrmi_ln_job;

/* The sizes; large tensors are fetched `ahead`. The caller fills in the rest. */
static nrmi_ln_job nrmi_ln_view(int kind, size_t rows, size_t D, size_t G, size_t S, size_t ahead)
{
    nrmi_ln_job job;
    NRM_MEMSET(&job, 0, sizeof job);
    job.kind = kind;
    job.N = rows;
    job.D = D;
    job.G = G;
    job.S = S;
    job.ahead = rows * D < NRM_FETCH_FROM ? 0 : ahead;
    return job;
}

/* Where the gamma and beta of row n begin. */
static size_t nrmi_ln_params(const nrmi_ln_job *job, size_t n)
{
    return job->G == 1 ? 0 : n % job->G * (job->D / job->S);
}

/* How many rows have about `values` numbers: at least `least`, at most `most`. */
static size_t nrmi_ln_rows(size_t values, size_t D, size_t least, size_t most)
{
    const size_t rows = values / D;
    return rows < least ? least : nrmi_least(rows, most);
}

typedef struct nrmi_row { /* x̂ = (x − head)·rstd + shift; the means are for the backward pass */
    nrm_real head, rstd, shift, g_mean, gx_mean;
} nrmi_row;

static nrmi_moments nrmi_mean_square(const nrm_real *x, size_t D); /* section 11 */

/* Mean and variance of one row: LN.1 and LN.2; of a group, GN.1 and GN.2. */
static inline nrmi_moments nrmi_ln_moments(const nrmi_ln_job *job, size_t n, nrm_acc inverse)
{
    const nrm_real *x = job->x + n * job->D;
    if (job->kind == NRMI_RMS) return nrmi_mean_square(x, job->D);
    return job->D <= NRM_BLOCK ? nrmi_short_moments(x, job->D, inverse)
                               : nrmi_run_moments(x, nrmi_walk_from_start(1, 0, job->D));
}

/* Statistics of a few rows: LN.1 to LN.3. First all variances, then all roots: neither sums nor
   roots wait for one another's results then. */
static int nrmi_ln_statistics(nrmi_row *row, const nrmi_ln_job *job, size_t n, size_t rows)
{
    const size_t D = job->D;
    const nrm_acc inverse = 1 / (nrm_acc)D;
    nrmi_moments t[NRM_GROUP];
    nrm_acc r[NRM_GROUP];
    size_t i;
    int rc = NRM_OK;
    for (i = 0; i < rows; i++) {
        t[i] = nrmi_ln_moments(job, n + i, inverse);
        r[i] = t[i].var + job->eps;
    }
    if (job->kind == NRMI_STD)
        for (i = 0; i < rows; i++) /* LN.17 */
            r[i] = 1 / (NRM_SQRT(t[i].var * (nrm_acc)D / (nrm_acc)(D - 1)) + job->eps);
    else
        for (i = 0; i < rows; i++) r[i] = 1 / NRM_SQRT(r[i]); /* LN.3 */
    for (i = 0; i < rows; i++) {
        row[i].head = t[i].head;
        row[i].rstd = (nrm_real)r[i];
        row[i].shift = (nrm_real)(-(nrm_acc)t[i].tail * r[i]);
        if (job->mean != NULL) job->mean[n + i] = t[i].mean;
        if (job->rstd != NULL) job->rstd[n + i] = r[i];
        if (!nrmi_finite(t[i].mean) || !nrmi_finite(t[i].var)) rc = NRM_NONFINITE;
    }
    return rc;
}

/* y of one row. */
static void nrmi_ln_forward_row(nrm_real *y, const nrm_real *x, nrmi_row row, const nrm_real *gamma,
                                const nrm_real *beta, size_t D, size_t ahead)
{
    const size_t whole = D - D % NRM_VEC;
    size_t i = 0;
    while (i < whole) {
        const size_t line = nrmi_least(i + NRM_LANES, whole);
        if (ahead > 0) NRM_PREFETCH(x + i, ahead);
        for (; i < line; i += NRM_VEC) {
            nrmi_vec v = (nrmi_load(x + i) - row.head) * row.rstd + row.shift; /* LN.4, SUM.11 */
            if (gamma != NULL) v *= nrmi_load(gamma + i);
            if (beta != NULL) v += nrmi_load(beta + i); /* LN.5 */
            nrmi_store(y + i, v);
        }
    }
    for (; i < D; i++) {
        nrm_real v = (x[i] - row.head) * row.rstd + row.shift;
        if (gamma != NULL) v *= gamma[i];
        if (beta != NULL) v += beta[i];
        y[i] = v;
    }
}

static void nrmi_gn_forward_runs(const nrmi_ln_job *job, size_t n, nrmi_row row); /* section 11 */

static int nrmi_ln_forward_part(void *context, size_t from, size_t to)
{
    const nrmi_ln_job *job = (const nrmi_ln_job *)context;
    const size_t D = job->D, group = nrmi_ln_rows(NRM_AT_ONCE, D, 1, NRM_GROUP);
    nrmi_row row[NRM_GROUP];
    size_t n, i;
    int rc = NRM_OK;
    for (n = from; n < to; n += group) {
        const size_t rows = nrmi_least(to - n, group);
        if (nrmi_ln_statistics(row, job, n, rows) != NRM_OK) rc = NRM_NONFINITE;
        for (i = 0; i < rows; i++) {
            const size_t at = (n + i) * D, param = nrmi_ln_params(job, n + i);
            if (job->S > 1)
                nrmi_gn_forward_runs(job, n + i, row[i]);
            else
                nrmi_ln_forward_row(job->out + at, job->x + at, row[i],
                                    job->gamma != NULL ? job->gamma + param : NULL,
                                    job->beta != NULL ? job->beta + param : NULL, D, job->ahead);
        }
    }
    return rc;
}

static int nrmi_check_layernorm_forward(const nrmi_ln_job *job)
{
    const size_t count = job->N * job->D, params = job->G * (job->D / job->S);
    nrmi_span buffer[6];
    if (job->out == NULL || job->x == NULL) return NRM_ENULL;
    if (job->kind != NRMI_RMS && (job->mean == NULL) != (job->rstd == NULL)) return NRM_ENULL;
    buffer[0] = nrmi_reals(job->out, count);
    buffer[1] = nrmi_accs(job->mean, job->N);
    buffer[2] = nrmi_accs(job->rstd, job->N);
    buffer[3] = nrmi_reals(job->x, count);
    buffer[4] = nrmi_reals(job->gamma, params);
    buffer[5] = nrmi_reals(job->beta, params);
    return nrmi_check_apart(buffer, 6, 3);
}

/* Rows of D, G to an example; in section 11 there is more to say about the last three. */
static int nrmi_ln_forward(int kind, nrm_real *y, nrm_acc *mean, nrm_acc *rstd, const nrm_real *x,
                           const nrm_real *gamma, const nrm_real *beta, nrm_real eps, size_t rows,
                           size_t D, size_t G, size_t S)
{
    nrmi_ln_job job;
    int rc = nrmi_check_volume(rows, D, 1);
    if (rc == NRM_OK && kind == NRMI_STD && D < 2) rc = NRM_ESIZE;
    if (rc == NRM_OK) rc = nrmi_check_eps(eps);
    if (rc != NRM_OK || rows == 0) return rc;
    job = nrmi_ln_view(kind, rows, D, G, S, 2 * NRM_AT_ONCE);
    job.out = y;
    job.mean = mean;
    job.rstd = rstd;
    job.x = x;
    job.gamma = gamma;
    job.beta = beta;
    job.eps = (nrm_acc)eps;
    rc = nrmi_check_layernorm_forward(&job);
    return rc != NRM_OK ? rc : nrmi_share(nrmi_ln_forward_part, &job, rows, 1, rows * D);
}

NRM_DEF int nrm_layernorm_forward(nrm_real *y, nrm_acc *mean, nrm_acc *rstd, const nrm_real *x,
                                  const nrm_real *gamma, const nrm_real *beta, nrm_real eps,
                                  size_t N, size_t D)
{
    return nrmi_ln_forward(NRMI_LAYER, y, mean, rstd, x, gamma, beta, eps, N, D, 1, 1);
}

/*
### 7.3  Backward

All rows share γ and β; so each row n adds its part to their gradients:

    dβᵢ = ∑ₙ dyₙᵢ                                                     [LN.8]
    dγᵢ = ∑ₙ dyₙᵢ·x̂ₙᵢ                                                 [LN.9]
    gᵢ = ∂L/∂x̂ᵢ = dyᵢ·γᵢ                                              [LN.10]

x reaches x̂ by the same three roads as in batch norm, with D in the place of M; again the
term of ∂v that goes through μ carries the factor ∑ⱼ (xⱼ − μ) = 0.

    ∂v/∂xᵢ = (2/D)·(xᵢ − μ)                                           [LN.11]
    ∂r/∂xᵢ = −½·r³·∂v/∂xᵢ = −(1/D)·r²·x̂ᵢ                              [LN.12]
    ∂x̂ⱼ/∂xᵢ = r·(δᵢⱼ − 1/D − x̂ᵢ·x̂ⱼ/D)                                 [LN.13]

The Jacobian is symmetric, and multiplying it by g takes two means of the row:

    dxᵢ = ∑ⱼ gⱼ·∂x̂ⱼ/∂xᵢ = r·(gᵢ − ⟨g⟩ − x̂ᵢ·⟨g·x̂⟩)                     [LN.14]

Here γ is inside the means, since it differs from feature to feature: ⟨g⟩ is not γ·⟨dy⟩. A
test with γ = 1 cannot see the difference. (One library lost γ altogether on this way, and
its tests, which start at γ = 1, passed.)

### 7.4  What it means

LN.13 is r times something close to a projection: it takes out of g its mean, and its part
along x̂. The first is gone entirely. The second is gone but for ε; so dx is not quite
orthogonal to x̂, as one often reads, and LN.16 says how far from it:

    ∑ᵢ dxᵢ = 0                                                        [LN.15]
    ∑ᵢ dxᵢ·x̂ᵢ = D·ε·r³·⟨g·x̂⟩                                          [LN.16]

### 7.5  The code

The parameters' gradients go down the columns, the input's along the rows, and both want the
same x and dy. We take a band of rows, few enough to stay in the second-level cache: first
the two sums of each row, then one sweep that finishes dx and adds to the columns. A column
is summed in `nrm_real` over a band, and band after band is added up in `nrm_acc`. That
takes 24 bytes of stack for each column; so for rows wider than 4096 the columns have sweeps
of their own, in strips of 1024.

On 8192 x 768 this is five times as fast as going over everything twice in double, once down
the columns and once along the rows: 57 % of the time that memory allows instead of 14. The
other half of the way is waiting. While the sweep writes, nobody reads ahead, and when the
next band's sums begin, its rows are not there. So the sweep asks for them, line by line,
while it works: 66 %.

With threads the two halves of the sweep part: bands of rows for dx, strips of columns for
the parameters. The bits stay the same.
*/

/* ∑g and ∑g·(x − h) over n values that lie side by side, with g = dy or dy·gamma. */
static inline void nrmi_side_by_side(nrm_acc *su, nrm_acc *sud, const nrm_real *x, nrm_real h,
                                     const nrm_real *dy, const nrm_real *gamma, size_t n)
{
    if (n <= NRM_BLOCK)
        nrmi_short_sums(su, sud, x, h, dy, gamma, n);
    else
        nrmi_run_sums(su, sud, nrmi_walk_from_start(1, 0, n), x, h, dy, gamma);
}

/* The part of the mean that its head leaves over: SUM.10. */
static nrm_real nrmi_ln_tail(const nrmi_ln_job *job, size_t n)
{
    return job->mu != NULL ? (nrm_real)(job->mu[n] - (nrm_acc)(nrm_real)job->mu[n]) : 0;
}

/* κ of LN.18; where s is 0 so is x̂, and κ has no say. */
static nrm_acc nrmi_ln_kappa(const nrmi_ln_job *job, size_t n)
{
    const nrm_acc r = job->r[n], s = 1 / r - job->eps;
    return s > 0 ? (nrm_acc)job->D / ((nrm_acc)(job->D - 1) * r * s) : 0; /* LN.18 */
}

/* What of a row no gradient takes part in. */
static nrmi_row nrmi_ln_saved_row(const nrmi_ln_job *job, size_t n)
{
    const nrm_acc mu = job->mu != NULL ? job->mu[n] : 0, r = job->r[n];
    nrmi_row row;
    row.head = (nrm_real)mu;
    row.rstd = (nrm_real)r;
    row.shift = (nrm_real)(-(nrm_acc)nrmi_ln_tail(job, n) * r);
    row.g_mean = row.gx_mean = 0;
    return row;
}

/* The coefficients of a few rows, `step` apart; the means, for which the row must be read, only for
   dx. */
static void nrmi_ln_backward_lines(nrmi_row *row, const nrmi_ln_job *job, size_t n, size_t rows,
                                   size_t step, int means)
{
    const nrm_acc inverse = 1 / (nrm_acc)job->D;
    size_t i;
    for (i = 0; i < rows; i++) {
        const size_t which = n + i * step, at = which * job->D;
        nrm_acc g, gd, gx;
        row[i] = nrmi_ln_saved_row(job, which);
        if (!means) continue;
        nrmi_side_by_side(&g, &gd, job->x + at, row[i].head, job->dy + at, /* LN.10 */
                          job->gamma != NULL ? job->gamma + nrmi_ln_params(job, which) : NULL,
                          job->D);
        gx = nrmi_sum_with_xhat(g, gd, job->r[which], nrmi_ln_tail(job, which));
        if (job->kind == NRMI_STD) gx *= nrmi_ln_kappa(job, which);
        row[i].g_mean = job->kind == NRMI_RMS ? 0 : (nrm_real)(g * inverse);
        row[i].gx_mean = (nrm_real)(gx * inverse);
    }
}

/* One row or a stretch of it: dx if it is wanted, and the columns' sums if they are. */
static void nrmi_ln_backward_row(nrm_real *dx, nrm_real *sum, nrm_real *sum_x, const nrm_real *dy,
                                 const nrm_real *x, nrmi_row row, const nrm_real *gamma, size_t D,
                                 size_t ahead)
{
    const size_t whole = D - D % NRM_VEC;
    size_t i = 0;
    while (i < whole) {
        const size_t line = nrmi_least(i + NRM_LANES, whole);
        if (ahead > 0) {
            NRM_PREFETCH(x + i, ahead);
            NRM_PREFETCH(dy + i, ahead);
        }
        for (; i < line; i += NRM_VEC) {
            const nrmi_vec xhat = (nrmi_load(x + i) - row.head) * row.rstd + row.shift;
            nrmi_vec g = nrmi_load(dy + i);
            if (sum != NULL) {
                nrmi_store(sum + i, nrmi_load(sum + i) + g);
                nrmi_store(sum_x + i, nrmi_load(sum_x + i) + g * xhat);
            }
            if (dx == NULL) continue;
            if (gamma != NULL) g *= nrmi_load(gamma + i);
            nrmi_store(dx + i, ((g - row.g_mean) - xhat * row.gx_mean) * row.rstd);
        }
    }
    for (; i < D; i++) {
        const nrm_real xhat = (x[i] - row.head) * row.rstd + row.shift;
        const nrm_real u = dy[i], g = gamma != NULL ? u * gamma[i] : u;
        if (sum != NULL) {
            sum[i] += u;                                                        /* LN.8 */
            sum_x[i] += u * xhat;                                               /* LN.9 */
        }
        if (dx != NULL) dx[i] = ((g - row.g_mean) - xhat * row.gx_mean) * row.rstd; /* LN.14 */
    }
}

/* Sums down a strip of columns: in nrm_real over a band, in nrm_acc over the bands. */
typedef struct nrmi_strip {
    nrm_real *sum, *sum_x;   /* NULL if they are not wanted */
    nrm_acc *dbeta, *dgamma;
} nrmi_strip;

static int nrmi_gn_backward_pass(nrmi_ln_job *job); /* section 11 */

/* The rows that a sweep takes, and which stretch of each; step is 1, or G for one group's rows. */
typedef struct nrmi_sweep {
    size_t from, to, step, c, width;
} nrmi_sweep;

static nrmi_sweep nrmi_all_rows(const nrmi_ln_job *job, size_t from, size_t to)
{
    nrmi_sweep all;
    all.from = from;
    all.to = to;
    all.step = 1;
    all.c = 0;
    all.width = job->D;
    return all;
}

/* How many rows from n on make the next band. It holds whole examples, or less than one; of one
   group's rows as many as it has examples, so that a column has the same sums by either way, but
   where one thread would not sum beside dx either. */
static size_t nrmi_ln_band(const nrmi_ln_job *job, nrmi_sweep sweep, size_t n)
{
    const size_t band = nrmi_ln_rows(NRM_BAND_NUMBERS, job->D, 4, NRM_BAND);
    const size_t left = (sweep.to - n + sweep.step - 1) / sweep.step, G = job->G;
    if (G == 1 || (sweep.step > 1 && G * job->D > NRM_WIDE)) return nrmi_least(left, band);
    if (sweep.step > 1) return nrmi_least(left, band > G ? band / G : 1);
    return nrmi_least(left, band > G ? band - band % G : nrmi_least(band, G - n % G));
}

/* dx if it is wanted, and the strip's sums, `sums` of them, if they are. */
static void nrmi_ln_sweep(const nrmi_ln_job *job, nrmi_sweep sweep, int want_dx,
                             nrmi_strip strip, size_t sums)
{
    nrmi_row row[NRM_BAND];
    size_t n, i, k, rows;
    for (k = 0; k < sums; k++) strip.dbeta[k] = strip.dgamma[k] = 0;
    for (n = sweep.from; n < sweep.to; n += rows * sweep.step) {
        const size_t first = sweep.step == 1 ? nrmi_ln_params(job, n) : 0; /* of the sums */
        size_t last;
        rows = nrmi_ln_band(job, sweep, n);
        last = nrmi_least(sums, first + rows * sweep.width);
        nrmi_ln_backward_lines(row, job, n, rows, sweep.step, want_dx);
        for (k = first; k < last; k++) strip.sum[k] = strip.sum_x[k] = 0;
        for (i = 0; i < rows; i++) {
            const size_t which = n + i * sweep.step, at = which * job->D + sweep.c;
            const size_t param = nrmi_ln_params(job, which), sum = sweep.step == 1 ? param : 0;
            nrmi_ln_backward_row(want_dx ? job->out + at : NULL,
                                 sums > 0 ? strip.sum + sum : NULL,
                                 sums > 0 ? strip.sum_x + sum : NULL,
                                 job->dy + at, job->x + at, row[i],
                                 job->gamma != NULL ? job->gamma + param + sweep.c : NULL,
                                 sweep.width, job->ahead);
        }
        for (k = first; k < last; k++) {
            strip.dbeta[k] += (nrm_acc)strip.sum[k];
            strip.dgamma[k] += (nrm_acc)strip.sum_x[k];
        }
    }
}

/* The columns' sums go to the gradients from param on. */
static void nrmi_ln_give(const nrmi_ln_job *job, nrmi_strip strip, size_t param, size_t sums)
{
    size_t k;
    for (k = 0; k < sums && job->dbeta != NULL; k++)
        job->dbeta[param + k] += (nrm_real)strip.dbeta[k];
    for (k = 0; k < sums && job->dgamma != NULL; k++)
        job->dgamma[param + k] += (nrm_real)strip.dgamma[k];
}

/* A sweep with at most NRM_WIDTH sums. */
static NRM_APART void nrmi_ln_backward_strip(const nrmi_ln_job *job, nrmi_sweep sweep, int want_dx,
                                             size_t param, size_t sums)
{
    nrm_real sum[NRM_WIDTH], sum_x[NRM_WIDTH];
    nrm_acc dbeta[NRM_WIDTH], dgamma[NRM_WIDTH];
    nrmi_strip strip;
    strip.sum = sum;
    strip.sum_x = sum_x;
    strip.dbeta = dbeta;
    strip.dgamma = dgamma;
    nrmi_ln_sweep(job, sweep, want_dx, strip, sums);
    nrmi_ln_give(job, strip, param, sums);
}

/* All rows, with at most NRM_WIDE sums; apart, so that nobody else pays for its stack. */
static NRM_APART void nrmi_ln_backward_wide(const nrmi_ln_job *job, size_t sums)
{
    nrm_real sum[NRM_WIDE], sum_x[NRM_WIDE];
    nrm_acc dbeta[NRM_WIDE], dgamma[NRM_WIDE];
    nrmi_strip strip;
    strip.sum = sum;
    strip.sum_x = sum_x;
    strip.dbeta = dbeta;
    strip.dgamma = dgamma;
    nrmi_ln_sweep(job, nrmi_all_rows(job, 0, job->N), 1, strip, sums);
    nrmi_ln_give(job, strip, 0, sums);
}

static int nrmi_ln_backward_rows(void *context, size_t from, size_t to)
{
    const nrmi_ln_job *job = (const nrmi_ln_job *)context;
    nrmi_strip none;
    none.sum = none.sum_x = NULL;
    none.dbeta = none.dgamma = NULL;
    nrmi_ln_sweep(job, nrmi_all_rows(job, from, to), 1, none, 0);
    return NRM_OK;
}

/* Parameters from..to−1, in strips that lie within one group. */
static int nrmi_ln_backward_columns(void *context, size_t from, size_t to)
{
    const nrmi_ln_job *job = (const nrmi_ln_job *)context;
    while (from < to) {
        nrmi_sweep sweep = nrmi_all_rows(job, from / job->D, job->N);
        sweep.step = job->G;
        sweep.c = from % job->D;
        sweep.width = nrmi_least(nrmi_least(to - from, job->D - sweep.c), NRM_WIDTH);
        nrmi_ln_backward_strip(job, sweep, 0, from, sweep.width);
        from += sweep.width;
    }
    return NRM_OK;
}

/* The columns' sums beside dx where one thread has room for them; else first these, then dx. */
static int nrmi_ln_backward_pass(nrmi_ln_job *job)
{
    const size_t sums = job->G * job->D, numbers = job->N * job->D;
    const int wanted = job->dgamma != NULL || job->dbeta != NULL;
    if (job->S > 1) return nrmi_gn_backward_pass(job);
    if (!wanted || nrmi_threads(numbers) > 1 || sums > NRM_WIDE) {
        if (wanted) /* columns first: dx may be dy */
            (void)nrmi_share(nrmi_ln_backward_columns, job, sums, NRM_LANES, numbers);
        return nrmi_share(nrmi_ln_backward_rows, job, job->N, 1, numbers);
    }
    if (sums <= NRM_WIDTH)
        nrmi_ln_backward_strip(job, nrmi_all_rows(job, 0, job->N), 1, 0, sums);
    else
        nrmi_ln_backward_wide(job, sums);
    return NRM_OK;
}

/* As nrmi_ln_forward; ε matters to LN.18 only. */
static int nrmi_ln_backward(int kind, nrm_real *dx, nrm_real *dgamma, nrm_real *dbeta,
                            const nrm_real *dy, const nrm_real *x, const nrm_acc *mean,
                            const nrm_acc *rstd, const nrm_real *gamma, nrm_real eps, size_t rows,
                            size_t D, size_t G, size_t S)
{
    const nrm_acc *means = kind == NRMI_RMS ? rstd : mean; /* RMS norm has none to check */
    nrmi_ln_job job;
    int rc = nrmi_check_volume(rows, D, 1);
    if (rc == NRM_OK && kind == NRMI_STD && D < 2) rc = NRM_ESIZE;
    if (rc == NRM_OK && kind == NRMI_STD) rc = nrmi_check_eps(eps);
    if (rc != NRM_OK || rows == 0) return rc;
    rc = nrmi_check_norm_backward(dx, dgamma, dbeta, dy, x, means, rstd, gamma, rows * D, rows,
                                  G * (D / S));
    if (rc != NRM_OK) return rc;
    job = nrmi_ln_view(kind, rows, D, G, S, NRM_BAND_NUMBERS);
    job.out = dx;
    job.dgamma = dgamma;
    job.dbeta = dbeta;
    job.mu = mean;
    job.r = rstd;
    job.dy = dy;
    job.x = x;
    job.gamma = gamma;
    job.eps = (nrm_acc)eps;
    return nrmi_ln_backward_pass(&job);
}

NRM_DEF int nrm_layernorm_backward(nrm_real *dx, nrm_real *dgamma, nrm_real *dbeta,
                                   const nrm_real *dy, const nrm_real *x, const nrm_acc *mean,
                                   const nrm_acc *rstd, const nrm_real *gamma, size_t N, size_t D)
{
    return nrmi_ln_backward(NRMI_LAYER, dx, dgamma, dbeta, dy, x, mean, rstd, gamma, NRM_EPS, N, D,
                            1, 1);
}

/*
### 7.6  The variant with s + ε

That text (see 7.2) reads, with s the standard deviation of the row as a sample,

    x̂ᵢ = (xᵢ − μ)/(s + ε), s = √(∑ⱼ (xⱼ − μ)²/(D − 1))                [LN.17]

What it computes cannot be had from LN.5 by choosing another γ: the ratio of the two depends
on s, and so differs from row to row. So it has functions of its own, with a name that says
so. With r = 1/(s + ε) in the place of LN.3 the forward pass is the same. On the way back s
changes by ∂s/∂xᵢ = (xᵢ − μ)/((D − 1)·s), and r by ∂r/∂xᵢ = −r²·∂s/∂xᵢ. Where 7.3 had
−(1/D)·r²·x̂ᵢ there is now −r·x̂ᵢ/((D − 1)·s); that leaves LN.14 with a factor in its last
term:

    dxᵢ = r·(gᵢ − ⟨g⟩ − κ·x̂ᵢ·⟨g·x̂⟩), κ = D/((D − 1)·r·s)             [LN.18]

κ is D/(D − 1) for ε = 0, and 1 if D is large too, as it must be. A row of equal values has
s = 0 and x̂ = 0; the limit of the last term is 0 there, and so is ours. (Automatic
differentiation of √v gives NaN: it multiplies 0 by the derivative of the root at 0, which
is infinite. PyTorch's `std` has a rule of its own for this, with the same limit.)
*/
NRM_DEF int nrm_layernorm_std_forward(nrm_real *y, nrm_acc *mean, nrm_acc *rstd, const nrm_real *x,
                                      const nrm_real *gamma, const nrm_real *beta, nrm_real eps,
                                      size_t N, size_t D)
{
    return nrmi_ln_forward(NRMI_STD, y, mean, rstd, x, gamma, beta, eps, N, D, 1, 1);
}

NRM_DEF int nrm_layernorm_std_backward(nrm_real *dx, nrm_real *dgamma, nrm_real *dbeta,
                                       const nrm_real *dy, const nrm_real *x, const nrm_acc *mean,
                                       const nrm_acc *rstd, const nrm_real *gamma, nrm_real eps,
                                       size_t N, size_t D)
{
    return nrmi_ln_backward(NRMI_STD, dx, dgamma, dbeta, dy, x, mean, rstd, gamma, eps, N, D, 1, 1);
}

/*
## 8  Noisy batch normalization

*The question it answers: does batch norm help because it keeps the distributions inside the
network steady?*

Santurkar, Tsipras, Ilyas and Mądry (2018) put it to the test by making them unsteady on
purpose: after each batch norm they add noise whose mean and scale are themselves drawn anew
at every step, so that the next layer never sees the same distribution twice. If steadiness
were what helps, the help should be gone.

### 8.1  Forward

At every step each unit c draws where its noise will be centred,

    μ_c ~ U(−n_μ, n_μ)                                                [NB.1]
    σ_c ~ U(1, n_σ)                                                   [NB.2]

and then every sample i of the unit draws an offset and a factor around that centre:

    m_ic ~ U(μ_c − r_μ, μ_c + r_μ)                                    [NB.3]
    s_ic ~ N(σ_c, r_σ²)                                               [NB.4]
    zᵢ = sᵢ·yᵢ + mᵢ                                                   [NB.5]

with y the output of batch norm, γ and β included. The paper's constants are n_μ = 0.5, n_σ
= 1.25 and r_μ = r_σ = 0.1. On average a factor is not 1, which a network that is tested
without noise will notice:

    E[s] = (1 + n_σ)/2, E[m] = 0                                      [NB.6]

The draws are made unit by unit: first μ_c and σ_c, then m and s of each of its samples in
turn.
*/
NRM_DEF nrm_noise nrm_noise_paper(void)
{
    nrm_noise noise;
    noise.mean_range = (nrm_real)0.5;
    noise.scale_max = (nrm_real)1.25;
    noise.mean_jitter = (nrm_real)0.1;
    noise.scale_jitter = (nrm_real)0.1;
    return noise;
}

static int nrmi_noise_number(nrm_real v)
{
    return v >= 0 && nrmi_finite((nrm_acc)v);
}

static int nrmi_check_noise(const nrm_noise *noise, const nrm_rng *rng)
{
    if (noise == NULL || rng == NULL) return NRM_ENULL;
    return nrmi_noise_number(noise->mean_range) && nrmi_noise_number(noise->scale_max) &&
                   nrmi_noise_number(noise->mean_jitter) && nrmi_noise_number(noise->scale_jitter)
               ? NRM_OK
               : NRM_ENOISE;
}

NRM_DEF int nrm_noise_forward(nrm_real *y, nrm_real *scale, const nrm_real *x,
                              const nrm_noise *noise, nrm_rng *rng, size_t N, size_t C, size_t S)
{
    nrmi_span out, saved, in;
    size_t n, c, s;
    int rc = nrmi_check_volume(N, C, S);
    if (rc != NRM_OK || N == 0) return rc;
    if (y == NULL || scale == NULL || x == NULL) return NRM_ENULL;
    rc = nrmi_check_noise(noise, rng);
    if (rc != NRM_OK) return rc;
    out = nrmi_reals(y, N * C * S);
    saved = nrmi_reals(scale, N * C * S);
    in = nrmi_reals(x, N * C * S);
    if (nrmi_check_in_place(out, in) != NRM_OK) return NRM_EALIAS;
    if (nrmi_overlap(saved, out) || nrmi_overlap(saved, in)) return NRM_EALIAS;
    for (c = 0; c < C; c++) {
        const nrm_acc mu = (nrm_acc)noise->mean_range * nrmi_symmetric(rng);             /* NB.1 */
        const nrm_acc sigma =
            1 + ((nrm_acc)noise->scale_max - 1) * (nrm_acc)nrm_rng_uniform(rng);         /* NB.2 */
        for (n = 0; n < N; n++)
            for (s = 0; s < S; s++) {
                const size_t at = (n * C + c) * S + s;
                const nrm_acc m = mu + (nrm_acc)noise->mean_jitter * nrmi_symmetric(rng); /* NB.3 */
                const nrm_acc f =
                    sigma + (nrm_acc)noise->scale_jitter * (nrm_acc)nrm_rng_normal(rng); /* NB.4 */
                scale[at] = (nrm_real)f;
                y[at] = (nrm_real)((nrm_acc)scale[at] * (nrm_acc)x[at] + m);             /* NB.5 */
            }
    }
    return NRM_OK;
}

/*
### 8.2  Backward

To the step that drew them, s and m are constants. So the gradient meets the same factors on
its way back, the very ones of the forward pass, which is why they are saved; then it is
batch norm's turn.

    dyᵢ = sᵢ·dzᵢ                                                      [NB.7]

### 8.3  What it means

The paper found that a network with this noise trains about as well as with batch norm
alone, though its distributions move more than those of a network without any norm; and that
the same noise without batch norm can keep a network from training. Look at NB.7 for what
the noise leaves intact: the gradient still goes through BN.19, and so is still projected
and scaled by r. Our own run of it is in `docs/experiments/10_mnist_norms.md`.
*/
NRM_DEF int nrm_noise_backward(nrm_real *dx, const nrm_real *dy, const nrm_real *scale,
                               size_t count)
{
    nrmi_span out;
    size_t i;
    int rc = nrmi_check_volume(count, 1, 1);
    if (rc != NRM_OK || count == 0) return rc;
    if (dx == NULL || dy == NULL || scale == NULL) return NRM_ENULL;
    out = nrmi_reals(dx, count);
    if (nrmi_check_in_place(out, nrmi_reals(dy, count)) != NRM_OK) return NRM_EALIAS;
    if (nrmi_overlap(out, nrmi_reals(scale, count))) return NRM_EALIAS;
    for (i = 0; i < count; i++) dx[i] = scale[i] * dy[i]; /* NB.7 */
    return NRM_OK;
}

NRM_DEF int nrm_noisy_batchnorm_forward(nrm_real *y, nrm_real *scale, nrm_acc *mean, nrm_acc *rstd,
                                        nrm_running *running, const nrm_real *x,
                                        const nrm_real *gamma, const nrm_real *beta,
                                        const nrm_noise *noise, nrm_rng *rng, int mode,
                                        nrm_real eps, size_t N, size_t C, size_t S)
{
    int rc, noisy;
    if (mode == NRM_TRAIN && N > 0 && nrmi_check_batchnorm(mode, N, C, S) == NRM_OK) {
        nrmi_span buffer[9];
        if (scale == NULL) return NRM_ENULL;
        rc = nrmi_check_noise(noise, rng);
        if (rc != NRM_OK) return rc;
        buffer[0] = nrmi_reals(scale, N * C * S);
        buffer[1] = nrmi_reals(y, N * C * S);
        buffer[2] = nrmi_reals(x, N * C * S);
        buffer[3] = nrmi_accs(mean, C);
        buffer[4] = nrmi_accs(rstd, C);
        buffer[5] = nrmi_reals(running != NULL ? running->mean : NULL, C);
        buffer[6] = nrmi_reals(running != NULL ? running->var : NULL, C);
        buffer[7] = nrmi_reals(gamma, C);
        buffer[8] = nrmi_reals(beta, C);
        if (nrmi_check_apart(buffer, 9, 1) != NRM_OK) return NRM_EALIAS;
    }
    rc = nrm_batchnorm_forward(y, mean, rstd, running, x, gamma, beta, mode, eps, N, C, S);
    if (rc < 0 || mode != NRM_TRAIN) return rc;
    noisy = nrm_noise_forward(y, scale, y, noise, rng, N, C, S);
    return noisy != NRM_OK ? noisy : rc;
}

NRM_DEF int nrm_noisy_batchnorm_backward(nrm_real *dx, nrm_real *dgamma, nrm_real *dbeta,
                                         const nrm_real *dy, const nrm_real *scale,
                                         const nrm_real *x, const nrm_acc *mean,
                                         const nrm_acc *rstd, const nrm_real *gamma, int mode,
                                         size_t N, size_t C, size_t S)
{
    nrmi_span buffer[4];
    int rc = nrmi_check_batchnorm_backward(dx, dgamma, dbeta, dy, x, mean, rstd, gamma, mode, N, C,
                                           S);
    if (rc != NRM_OK || N == 0) return rc;
    buffer[0] = nrmi_reals(dx, N * C * S);
    buffer[1] = nrmi_reals(dgamma, C);
    buffer[2] = nrmi_reals(dbeta, C);
    buffer[3] = nrmi_reals(scale, N * C * S);
    if (nrmi_check_apart(buffer, 4, 3) != NRM_OK) return NRM_EALIAS;
    if (mode == NRM_TRAIN) {
        rc = nrm_noise_backward(dx, dy, scale, N * C * S);
        if (rc != NRM_OK) return rc;
        dy = dx;
    }
    return nrm_batchnorm_backward(dx, dgamma, dbeta, dy, x, mean, rstd, gamma, mode, N, C, S);
}

/*
## 9  Statistics that merge: synchronised, masked and virtual batches

*The question it answers: what if the values to be normalized together are not in one
place?*

A batch may be spread over several machines, come in small portions because memory is short,
hold sequences of different lengths, or be a whole data set. What is needed from each
portion is the same: how many values, their mean, and the sum of their squared deviations
from it. Such triples can be merged, exactly but for rounding, whatever their sizes: the
formula of Chan, Golub and LeVeque that section 5 uses between blocks.

### 9.1  Shapes

A tensor is `[N][C][S]`, as in section 6; `nrm_stats` are `[C]`, a triple for each channel.
A mask is `[N][S]`, one byte for each position, the same for all channels; where it is 0
there is nothing: it is not read, and y and dx are 0 there. So sequences of unequal length
lie side by side, padded with anything, and the padding cannot be told from its absence.

### 9.2  Merging

Two portions a and b have counts n_a and n_b, means μ_a and μ_b, and sums of squared
deviations Q_a and Q_b. Both together have

    n = n_a + n_b                                                     [ST.1]
    μ = μ_a + δ·n_b/n, δ = μ_b − μ_a                                  [ST.2]
    Q = Q_a + Q_b + δ²·n_a·n_b/n                                      [ST.3]
    v = Q/n                                                           [ST.4]

For the deviations of a are measured from μ_a; measured from μ, their squares sum to Q_a +
n_a·(μ_a − μ)², likewise those of b, and with ST.2 the two additions make the last term of
ST.3. Averaging the variances of workers loses just that term, the spread of the workers'
means; and averaging without weights is wrong as soon as the portions are uneven. Merging in
another order gives the same numbers but for rounding; in the same order, the same bits. So
whoever merges should do it by the number of the worker, not by who comes first.

### 9.3  Synchronised batch norm

Forward: every worker takes the statistics of its portion (`nrm_stats_update`), all are
merged, in memory, by a socket, by MPI, which is not for this header to know
(`examples/mpi_batchnorm.c` shows it), and every worker normalizes its portion with the
result (`nrm_sync_batchnorm_forward`). Backward: the means of BN.19 are over all values, and
the values are elsewhere; but their sums can be added (`nrm_sync_batchnorm_sums`, an
addition by the caller, `nrm_sync_batchnorm_backward`):

    A = ∑ᵢ dyᵢ, B = ∑ᵢ dyᵢ·x̂ᵢ over the values of all workers          [ST.5]
    dxᵢ = γ·r·(dyᵢ − A/n − x̂ᵢ·B/n)                                    [ST.6]

Here n, the count of all, is the M of section 6, and r is BN.3 with v of ST.4. Why just two
numbers a channel? Take BN.18 for an xᵢ of mine and an x̂ⱼ of yours. The direct road is
closed, as i is not j; xᵢ reaches x̂ⱼ through μ, which is the −1/M and needs the sum of your
dyⱼ, and through r, which is the −x̂ᵢ·x̂ⱼ/M and needs the sum of your dyⱼ·x̂ⱼ. All else in
dxᵢ is mine. A worker that takes A and B over its own values alone, but μ and r over all,
has left out what its x do to the outputs of others, and its dx is not the gradient of the
loss.

The gradients of γ and β are each worker's own part of the sums, as with all parameters of a
network that is trained in parallel; whoever adds up the others adds up these too. Mind that
dy belongs to one common loss: a mean over a worker's portion must be weighted by its share.

The same functions do a *virtual batch*: micro-batches that follow each other take the
places of workers. All of them go forward through the layers below, their statistics are
merged, and then all go on; on the way back all of them reach this layer, their sums are
added up, and then all go on. And they do masks, with one worker.

### 9.4  Statistics of a whole data set

Running statistics forget, and those of a network that is still learning lag behind it. When
training is over they can be taken anew, from as much data as one likes, and put in the
place of the running ones ("precise" batch norm; the averages of the paper's algorithm 2,
but with the spread of the batch means in them): `nrm_stats_update` batch by batch, then
`nrm_running_set`, which makes

    m = μ, u = Q/(n − 1), or Q/n if `biased`                          [ST.7]

with m and u of BN.11, and `nrm_mlp_reestimate` does it for a whole network. If it is to be
the last k batches instead of all: keep k triples, and merge them.
*/
static nrm_stats nrmi_stats_merge(nrm_stats a, nrm_stats b)
{
    const nrm_acc delta = b.mean - a.mean;
    nrmi_weight w;
    if (b.count == 0) return a;
    if (a.count == 0) return b;
    w = nrmi_weigh(a.count, b.count);
    a.count += b.count;                          /* ST.1 */
    a.mean += delta * w.share;                   /* ST.2 */
    a.m2 += b.m2 + delta * delta * w.between;    /* ST.3 */
    return a;
}

static nrmi_moments nrmi_stats_moments(nrm_stats stats)
{
    const nrm_real head = (nrm_real)stats.mean;
    return nrmi_split(head, stats.mean - (nrm_acc)head,
                      stats.count > 0 ? stats.m2 / stats.count : 0); /* ST.4 */
}

/* The moments of a job's channels from c on are merged into what is known. */
static int nrmi_stats_take(const nrmi_bn_job *job, size_t c, const nrmi_channels *ch, size_t width)
{
    size_t k;
    int rc = NRM_OK;
    for (k = 0; k < width; k++) {
        nrm_stats new_ones;
        new_ones.count = (nrm_acc)job->N * (nrm_acc)job->S;
        new_ones.mean = ch->mean[k];
        new_ones.m2 = ch->var[k] * new_ones.count;
        job->taken[c + k] = nrmi_stats_merge(job->taken[c + k], new_ones);
        if (!nrmi_finite(ch->mean[k]) || !nrmi_finite(ch->var[k])) rc = NRM_NONFINITE;
    }
    return rc;
}

/* The job on a stretch of it: rows from..from+length−1 if it is dense, else positions of example
   n. */
static nrmi_bn_job nrmi_bn_stretch(const nrmi_bn_job *whole, size_t n, size_t from, size_t length)
{
    const int dense = nrmi_dense(whole);
    const size_t at = dense ? from * whole->pitch : n * whole->pitch + from;
    nrmi_bn_job job = *whole;
    job.N = dense ? length : 1;
    job.S = dense ? 1 : length;
    job.ahead = 0;
    if (job.out != NULL) job.out += at;
    if (job.dy != NULL) job.dy += at;
    job.x += at;
    return job;
}

/* Does a job on all positions that count, stretch by stretch. */
static int nrmi_bn_masked(nrmi_part *part, const nrmi_bn_job *whole, const unsigned char *mask)
{
    const int dense = nrmi_dense(whole);
    const size_t lines = dense ? 1 : whole->N, length = dense ? whole->N : whole->S;
    nrmi_bn_job job = *whole;
    size_t n, from, to;
    int rc;
    if (mask == NULL) return nrmi_bn_share(part, &job);
    job.N = 0; /* statistics are written even if no position counts */
    rc = whole->taken == NULL && whole->taken_sums == NULL ? nrmi_bn_share(part, &job) : NRM_OK;
    for (n = 0; n < lines; n++)
        for (from = 0; from < length; from = to + 1) {
            const unsigned char *line = mask + n * length;
            while (from < length && !line[from]) from++;
            for (to = from; to < length && line[to];) to++;
            if (to == from) break;
            job = nrmi_bn_stretch(whole, n, from, to - from);
            if (nrmi_bn_share(part, &job) != NRM_OK) rc = NRM_NONFINITE;
        }
    return rc;
}

/* Zeros where the mask is 0. */
static void nrmi_blank(nrm_real *a, const unsigned char *mask, size_t N, size_t C, size_t S)
{
    size_t n, c, s;
    for (n = 0; n < N && mask != NULL; n++)
        for (s = 0; s < S; s++)
            for (c = 0; c < C && !mask[n * S + s]; c++) a[(n * C + c) * S + s] = 0;
}

NRM_DEF int nrm_stats_update(nrm_stats *stats, const nrm_real *x, const unsigned char *mask,
                             size_t N, size_t C, size_t S)
{
    nrmi_span buffer[3];
    nrmi_bn_job job;
    const int rc = nrmi_check_volume(N, C, S);
    if (rc != NRM_OK || N == 0) return rc;
    if (stats == NULL || x == NULL) return NRM_ENULL;
    buffer[0] = nrmi_bytes(stats, C * sizeof *stats);
    buffer[1] = nrmi_reals(x, N * C * S);
    buffer[2] = nrmi_bytes(mask, N * S);
    if (nrmi_check_apart(buffer, 3, 1) != NRM_OK) return NRM_EALIAS;
    job = nrmi_bn_whole(N, C, S);
    job.mode = NRM_TRAIN;
    job.x = x;
    job.taken = stats;
    return nrmi_bn_masked(nrmi_bn_forward_part, &job, mask);
}

NRM_DEF int nrm_stats_merge(nrm_stats *into, const nrm_stats *from, size_t C)
{
    const int rc = nrmi_check_volume(1, C, 1);
    size_t c;
    if (rc != NRM_OK) return rc;
    if (into == NULL || from == NULL) return NRM_ENULL;
    if (nrmi_overlap(nrmi_bytes(into, C * sizeof *into), nrmi_bytes(from, C * sizeof *from)))
        return NRM_EALIAS;
    for (c = 0; c < C; c++) into[c] = nrmi_stats_merge(into[c], from[c]);
    return NRM_OK;
}

static int nrmi_stats_usable(nrm_stats s)
{
    return s.count >= 0 && s.m2 >= 0 && nrmi_finite(s.count) && nrmi_finite(s.mean) &&
           nrmi_finite(s.m2);
}

NRM_DEF int nrm_stats_check(size_t *channel, const nrm_stats *stats, size_t C)
{
    const int rc = nrmi_check_volume(1, C, 1);
    size_t c = 0;
    if (rc != NRM_OK) return rc;
    if (stats == NULL) return NRM_ENULL;
    while (c < C && nrmi_stats_usable(stats[c])) c++;
    if (c == C) return NRM_OK;
    if (channel != NULL) *channel = c;
    return NRM_ESTATS;
}

NRM_DEF int nrm_running_check(size_t *channel, const nrm_running *running, size_t C)
{
    const int rc = nrmi_check_volume(1, C, 1);
    size_t c = 0;
    if (rc != NRM_OK) return rc;
    if (running == NULL || running->mean == NULL || running->var == NULL) return NRM_ENULL;
    while (c < C && running->var[c] >= 0 && nrmi_finite((nrm_acc)running->var[c]) &&
           nrmi_finite((nrm_acc)running->mean[c]))
        c++;
    if (c == C) return NRM_OK;
    if (channel != NULL) *channel = c;
    return NRM_ESTATS;
}

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
        if (!nrmi_stats_usable(stats[c]) || !nrmi_fits(stats[c].mean)) return NRM_ESTATS;
        if (stats[c].count < (running->biased ? 1 : 2)) return NRM_EBATCH;
        if (!nrmi_fits(nrmi_stats_var(running, stats[c]))) return NRM_ESTATS;
    }
    return NRM_OK;
}

NRM_DEF int nrm_running_set(nrm_running *running, const nrm_stats *stats, size_t C)
{
    nrmi_span buffer[3];
    size_t c;
    int rc = nrmi_check_volume(1, C, 1);
    if (rc != NRM_OK) return rc;
    if (running == NULL || stats == NULL || running->mean == NULL || running->var == NULL)
        return NRM_ENULL;
    buffer[0] = nrmi_reals(running->mean, C);
    buffer[1] = nrmi_reals(running->var, C);
    buffer[2] = nrmi_bytes(stats, C * sizeof *stats);
    if (nrmi_check_apart(buffer, 3, 2) != NRM_OK) return NRM_EALIAS;
    rc = nrmi_check_stats_fit(running, stats, C);
    if (rc != NRM_OK) return rc;
    for (c = 0; c < C; c++) { /* ST.7 */
        running->mean[c] = (nrm_real)stats[c].mean;
        running->var[c] = (nrm_real)nrmi_stats_var(running, stats[c]);
    }
    running->batches = 1;
    return NRM_OK;
}

/* BN.8 to BN.10 with merged statistics, every channel by its own count. NRM_NONFINITE if some are
   not to be stored: then a plain average takes none. */
static int nrmi_stats_track(nrm_running *running, const nrm_stats *stats, size_t C)
{
    size_t c, values = 0, bad = 0;
    for (c = 0; c < C; c++) {
        const nrmi_moments t = nrmi_stats_moments(stats[c]);
        values += stats[c].count > 0;
        bad += !nrmi_fits(t.mean) || !nrmi_fits(t.var);
    }
    if (values > 0 && (bad == 0 || !running->cumulative)) running->batches++;
    for (c = 0; c < C && (bad == 0 || !running->cumulative); c++) {
        const nrmi_moments t = nrmi_stats_moments(stats[c]);
        if (stats[c].count > 0) nrmi_bn_track(running, &t.mean, &t.var, c, 1, stats[c].count);
    }
    return bad == 0 ? NRM_OK : NRM_NONFINITE;
}

/* Can these be the statistics of a batch, of which some is here or not? A mean or a sum that is not
   a number can: there was one in x. */
static int nrmi_check_counts(const nrm_stats *stats, size_t C, int any_here)
{
    size_t c;
    for (c = 0; c < C; c++) {
        const nrm_acc count = stats[c].count;
        if (!(count >= 0) || !nrmi_finite(count) || stats[c].m2 < 0) return NRM_ESTATS;
        if (any_here && count == 0) return NRM_ESTATS;
        if (count > 0 && count < 2) return NRM_EBATCH;
    }
    return NRM_OK;
}

/* Is there a position that counts? */
static int nrmi_any_kept(const unsigned char *mask, size_t positions)
{
    size_t i = 0;
    while (mask != NULL && i < positions && !mask[i]) i++;
    return i < positions;
}

static int nrmi_check_sync_forward(const nrm_real *y, const nrm_acc *mean, const nrm_acc *rstd,
                                   const nrm_running *running, const nrm_real *x,
                                   const unsigned char *mask, const nrm_stats *stats,
                                   const nrm_real *gamma, const nrm_real *beta, size_t N, size_t C,
                                   size_t S)
{
    nrmi_span buffer[10];
    int rc;
    if (stats == NULL || mean == NULL || rstd == NULL) return NRM_ENULL;
    if (N > 0 && (x == NULL || y == NULL)) return NRM_ENULL;
    rc = nrmi_check_running(running, NRM_TRAIN, C);
    if (rc == NRM_OK) rc = nrmi_check_counts(stats, C, N > 0 && nrmi_any_kept(mask, N * S));
    if (rc != NRM_OK) return rc;
    buffer[0] = nrmi_reals(y, N * C * S);
    buffer[1] = nrmi_accs(mean, C);
    buffer[2] = nrmi_accs(rstd, C);
    buffer[3] = nrmi_reals(running ? running->mean : NULL, C);
    buffer[4] = nrmi_reals(running ? running->var : NULL, C);
    buffer[5] = nrmi_reals(x, N * C * S);
    buffer[6] = nrmi_bytes(mask, N * S);
    buffer[7] = nrmi_bytes(stats, C * sizeof *stats);
    buffer[8] = nrmi_reals(gamma, C);
    buffer[9] = nrmi_reals(beta, C);
    return nrmi_check_apart(buffer, 10, 5);
}

NRM_DEF int nrm_sync_batchnorm_forward(nrm_real *y, nrm_acc *mean, nrm_acc *rstd,
                                       nrm_running *running, const nrm_real *x,
                                       const unsigned char *mask, const nrm_stats *stats,
                                       const nrm_real *gamma, const nrm_real *beta, nrm_real eps,
                                       size_t N, size_t C, size_t S)
{
    nrmi_bn_job job;
    int rc = nrmi_check_volume(N, C, S), bad;
    if (rc == NRM_OK) rc = nrmi_check_eps(eps);
    if (rc == NRM_OK)
        rc = nrmi_check_sync_forward(y, mean, rstd, running, x, mask, stats, gamma, beta, N, C, S);
    if (rc != NRM_OK) return rc;
    job = nrmi_bn_whole(N, C, S);
    job.mode = NRM_TRAIN;
    job.out = y;
    job.mean = mean;
    job.rstd = rstd;
    job.x = x;
    job.given = stats;
    job.gamma = gamma;
    job.beta = beta;
    job.eps = (nrm_acc)eps;
    rc = nrmi_bn_masked(nrmi_bn_forward_part, &job, mask);
    nrmi_blank(y, mask, N, C, S);
    bad = running != NULL && nrmi_stats_track(running, stats, C) != NRM_OK;
    return bad ? NRM_NONFINITE : rc;
}

static int nrmi_check_sync_sums(const nrm_sums *sums, const nrm_real *dgamma, const nrm_real *dbeta,
                                const nrm_real *dy, const nrm_real *x, const unsigned char *mask,
                                const nrm_acc *mean, const nrm_acc *rstd, size_t N, size_t C,
                                size_t S)
{
    nrmi_span buffer[8];
    if (sums == NULL || mean == NULL || rstd == NULL) return NRM_ENULL;
    if (N > 0 && (x == NULL || dy == NULL)) return NRM_ENULL;
    buffer[0] = nrmi_bytes(sums, C * sizeof *sums);
    buffer[1] = nrmi_reals(dgamma, C);
    buffer[2] = nrmi_reals(dbeta, C);
    buffer[3] = nrmi_reals(dy, N * C * S);
    buffer[4] = nrmi_reals(x, N * C * S);
    buffer[5] = nrmi_bytes(mask, N * S);
    buffer[6] = nrmi_accs(mean, C);
    buffer[7] = nrmi_accs(rstd, C);
    return nrmi_check_apart(buffer, 8, 3);
}

NRM_DEF int nrm_sync_batchnorm_sums(nrm_sums *sums, nrm_real *dgamma, nrm_real *dbeta,
                                    const nrm_real *dy, const nrm_real *x,
                                    const unsigned char *mask, const nrm_acc *mean,
                                    const nrm_acc *rstd, size_t N, size_t C, size_t S)
{
    nrmi_bn_job job;
    size_t c;
    int rc = nrmi_check_volume(N, C, S);
    if (rc == NRM_OK)
        rc = nrmi_check_sync_sums(sums, dgamma, dbeta, dy, x, mask, mean, rstd, N, C, S);
    if (rc != NRM_OK) return rc;
    job = nrmi_bn_whole(N, C, S);
    job.mode = NRM_TRAIN;
    job.dy = dy;
    job.x = x;
    job.mu = mean;
    job.r = rstd;
    job.taken_sums = sums;
    NRM_MEMSET(sums, 0, C * sizeof *sums);
    if (N > 0) (void)nrmi_bn_masked(nrmi_bn_backward_part, &job, mask); /* ST.5 */
    for (c = 0; c < C && dbeta != NULL; c++) dbeta[c] += (nrm_real)sums[c].dy;
    for (c = 0; c < C && dgamma != NULL; c++) dgamma[c] += (nrm_real)sums[c].dy_xhat;
    return NRM_OK;
}

static int nrmi_check_sync_backward(const nrm_real *dx, const nrm_real *dy, const nrm_real *x,
                                    const unsigned char *mask, const nrm_acc *mean,
                                    const nrm_acc *rstd, const nrm_real *gamma,
                                    const nrm_stats *stats, const nrm_sums *sums, size_t N,
                                    size_t C, size_t S)
{
    nrmi_span buffer[9];
    if (dx == NULL || dy == NULL || x == NULL || mean == NULL || rstd == NULL || stats == NULL ||
        sums == NULL)
        return NRM_ENULL;
    buffer[0] = nrmi_reals(dx, N * C * S);
    buffer[1] = nrmi_reals(x, N * C * S);
    buffer[2] = nrmi_bytes(mask, N * S);
    buffer[3] = nrmi_accs(mean, C);
    buffer[4] = nrmi_accs(rstd, C);
    buffer[5] = nrmi_reals(gamma, C);
    buffer[6] = nrmi_bytes(stats, C * sizeof *stats);
    buffer[7] = nrmi_bytes(sums, C * sizeof *sums);
    buffer[8] = nrmi_reals(dy, N * C * S);
    if (nrmi_check_apart(buffer, dx == dy ? 8 : 9, 1) != NRM_OK) return NRM_EALIAS;
    return nrmi_check_counts(stats, C, nrmi_any_kept(mask, N * S));
}

NRM_DEF int nrm_sync_batchnorm_backward(nrm_real *dx, const nrm_real *dy, const nrm_real *x,
                                        const unsigned char *mask, const nrm_acc *mean,
                                        const nrm_acc *rstd, const nrm_real *gamma,
                                        const nrm_stats *stats, const nrm_sums *sums, size_t N,
                                        size_t C, size_t S)
{
    nrmi_bn_job job;
    int rc = nrmi_check_volume(N, C, S);
    if (rc != NRM_OK || N == 0) return rc;
    rc = nrmi_check_sync_backward(dx, dy, x, mask, mean, rstd, gamma, stats, sums, N, C, S);
    if (rc != NRM_OK) return rc;
    job = nrmi_bn_whole(N, C, S);
    job.mode = NRM_TRAIN;
    job.out = dx;
    job.dy = dy;
    job.x = x;
    job.mu = mean;
    job.r = rstd;
    job.gamma = gamma;
    job.given = stats;
    job.given_sums = sums;
    (void)nrmi_bn_masked(nrmi_bn_backward_part, &job, mask); /* ST.6 */
    nrmi_blank(dx, mask, N, C, S);
    return NRM_OK;
}

/*
## 10  Batch renormalization

*The question it answers: can a network be trained on the output that it will have in use?*

In training a value is judged by its batch, in use by the running statistics. With large
batches the two agree; with batches of four, or of examples that resemble each other, they
do not, and the network learns to live with the first and is tested with the second. Ioffe
(2017) corrects the output of the batch by an affine map that makes it what the running
statistics would have made of it.

### 10.1  Forward

Shapes are those of section 6. With the running mean m and variance u, as they are before
this batch, a channel has

    ρ = √(v + ε)/√(u + ε), kept within 1/ρ_max and ρ_max              [BR.1]
    d = (μ − m)/√(u + ε), kept within ±d_max                          [BR.2]
    yᵢ = γ·(ρ·x̂ᵢ + d) + β                                             [BR.3]

with the limits ρ_max (`r_max`, at least 1) and d_max. These are r and d of the paper, whose
r would be a second one here; and where it keeps a running standard deviation, we keep u, as
batch norm does.

If neither limit bites, ρ·x̂ + d is (x − m)/√(u + ε), and y that of infer mode: BN.11. If
the limits are 1 and 0, y is that of plain batch norm. One begins with the second and lets
the limits go up to some 3 and 5 in the course of the training, for at the beginning the
running statistics are nothing to be trusted.

### 10.2  Backward

ρ and d are taken as constants of the step: they only choose an affine map, and that is
where the difference to infer mode is, through whose statistics no gradient flows. So BR.3
is batch norm with γ·ρ for γ and β + γ·d for β:

    dγ = ∑ᵢ dyᵢ·(ρ·x̂ᵢ + d) = ρ·∑ᵢ dyᵢ·x̂ᵢ + d·∑ᵢ dyᵢ                    [BR.4]
    dxᵢ = (γ·ρ)·r·(dyᵢ − ⟨dy⟩ − x̂ᵢ·⟨dy·x̂⟩)                            [BR.5]

and dβ is BN.12. So the answer to the question is: the output can be that of use, the
gradient is not. The projection of BN.19 is still there, and with it what is odd about small
batches (BN.23); only its scale r·ρ is that of the running statistics, 1/√(u + ε), where the
limits do not bite. In the modes infer and frozen there is nothing to correct: they are
those of batch norm.
*/
static nrm_acc nrmi_clamp(nrm_acc v, nrm_acc low, nrm_acc high)
{
    return v < low ? low : v > high ? high : v;
}

/* ρ and d of channel c, which go to where the backward pass will find them. */
static void nrmi_renorm(const nrmi_bn_job *job, size_t c, nrm_acc mean, nrm_acc var)
{
    const nrm_acc m = (nrm_acc)job->running->mean[c], u = (nrm_acc)job->running->var[c];
    const nrm_acc scale = 1 / NRM_SQRT(u + job->eps);
    job->ratio[c] = nrmi_clamp(NRM_SQRT(var + job->eps) * scale, 1 / job->r_max, job->r_max);
    job->offset[c] = nrmi_clamp((mean - m) * scale, -job->d_max, job->d_max); /* BR.1 and BR.2 */
}

/* What batch norm does not check: the two arrays of its own, and the limits. */
static int nrmi_check_renorm(const nrm_acc *ratio, const nrm_acc *offset, const nrm_real *y,
                             const nrm_acc *mean, const nrm_acc *rstd, const nrm_running *running,
                             const nrm_real *x, const nrm_real *gamma, const nrm_real *beta,
                             size_t count, size_t C)
{
    nrmi_span buffer[10];
    const int rc = nrm_running_check(NULL, running, C);
    if (ratio == NULL || offset == NULL) return NRM_ENULL;
    if (rc != NRM_OK) return rc;
    buffer[0] = nrmi_accs(ratio, C);
    buffer[1] = nrmi_accs(offset, C);
    buffer[2] = nrmi_reals(y, count);
    buffer[3] = nrmi_accs(mean, C);
    buffer[4] = nrmi_accs(rstd, C);
    buffer[5] = nrmi_reals(running->mean, C);
    buffer[6] = nrmi_reals(running->var, C);
    buffer[7] = nrmi_reals(x, count);
    buffer[8] = nrmi_reals(gamma, C);
    buffer[9] = nrmi_reals(beta, C);
    return nrmi_check_apart(buffer, 10, 2);
}

NRM_DEF int nrm_batchrenorm_forward(nrm_real *y, nrm_acc *ratio, nrm_acc *offset, nrm_acc *mean,
                                    nrm_acc *rstd, nrm_running *running, const nrm_real *x,
                                    const nrm_real *gamma, const nrm_real *beta, nrm_real r_max,
                                    nrm_real d_max, int mode, nrm_real eps, size_t N, size_t C,
                                    size_t S)
{
    nrmi_bn_job job;
    int rc = nrmi_check_batchnorm(mode, N, C, S);
    if (rc == NRM_OK) rc = nrmi_check_eps(eps);
    if (rc == NRM_OK && !(r_max >= 1 && d_max >= 0)) rc = NRM_ERATE;
    if (rc != NRM_OK || N == 0) return rc;
    if (mode == NRM_TRAIN)
        rc = nrmi_check_renorm(ratio, offset, y, mean, rstd, running, x, gamma, beta, N * C * S, C);
    if (rc == NRM_OK)
        rc = nrmi_check_batchnorm_forward(y, mean, rstd, running, x, gamma, beta, mode, N, C, S);
    if (rc != NRM_OK) return rc;
    job = nrmi_bn_forward_job(y, mean, rstd, running, x, gamma, beta, mode, eps, N, C, S);
    if (mode == NRM_TRAIN) {
        job.ratio = ratio;
        job.offset = offset;
        job.r_max = (nrm_acc)r_max;
        job.d_max = (nrm_acc)d_max;
    }
    return nrmi_bn_forward(&job);
}

NRM_DEF int nrm_batchrenorm_backward(nrm_real *dx, nrm_real *dgamma, nrm_real *dbeta,
                                     const nrm_real *dy, const nrm_real *x, const nrm_acc *ratio,
                                     const nrm_acc *offset, const nrm_acc *mean,
                                     const nrm_acc *rstd, const nrm_real *gamma, int mode, size_t N,
                                     size_t C, size_t S)
{
    nrmi_span out[3], saved[2];
    nrmi_bn_job job;
    int i, rc = nrmi_check_batchnorm_backward(dx, dgamma, dbeta, dy, x, mean, rstd, gamma, mode, N,
                                              C, S);
    if (rc != NRM_OK || N == 0) return rc;
    job = nrmi_bn_backward_job(dx, dgamma, dbeta, dy, x, mean, rstd, gamma, mode, N, C, S);
    if (mode == NRM_TRAIN) {
        if (ratio == NULL || offset == NULL) return NRM_ENULL;
        out[0] = nrmi_reals(dx, N * C * S);
        out[1] = nrmi_reals(dgamma, C);
        out[2] = nrmi_reals(dbeta, C);
        saved[0] = nrmi_accs(ratio, C);
        saved[1] = nrmi_accs(offset, C);
        for (i = 0; i < 6; i++)
            if (nrmi_overlap(out[i / 2], saved[i % 2])) return NRM_EALIAS;
        job.br_r = ratio;
        job.br_d = offset;
    }
    return nrmi_bn_share(nrmi_bn_backward_part, &job);
}

/*
## 11  Group, instance and RMS normalization

*The question they answer: what else can be averaged, if not the batch?*

Layer norm averages all channels of an image alike. Group norm (Wu and He 2018) lets G
groups of channels be averaged apart from each other, and instance norm (Ulyanov et al.
2016) every channel by itself. RMS norm (Zhang and Sennrich 2019) leaves the mean alone, and
finds that the mean is not missed. None of them knows a batch or has anything to remember.

### 11.1  Shapes

The tensor is `[N][C][S]`, as for batch norm; γ and β are `[C]`, one for each channel; μ and
r are `[N][G]`. The K = C/G channels of a group lie side by side, M = K·S values in all. So
for the statistics a group is a *row* of layer norm, and an example is G rows. What differs
is which γ a value meets: that of its channel, the same for S neighbours, and other ones in
the next group. In what follows a single group is meant, c its channels, s their positions.

### 11.2  Forward

    μ = (1/M)·∑_c ∑ₛ x_cs                                             [GN.1]
    r = 1/√((1/M)·∑_c ∑ₛ (x_cs − μ)² + ε)                             [GN.2]
    y_cs = γ_c·(x_cs − μ)·r + β_c                                     [GN.3]

G = 1 makes it layer norm over channels and positions; with S = 1 that is section 7 to the
last bit. G = C makes it instance norm. A group of one value is not an error, as in layer
norm: y is β_c then, and no gradient passes, which is what instance norm of a dense layer
amounts to. What PyTorch writes as `GroupNorm(8, 64)` is, for 32 images of 28 x 28, with
`mean` and `rstd` of 32 x 8 numbers each,

```c sketch
rc = nrm_groupnorm_forward(y, mean, rstd, x, gamma, beta, NRM_EPS, 32, 64, 28 * 28, 8);
```

### 11.3  Backward

Layer norm's formulas hold, with g = γ_c·dy. But a sum over the positions of a channel has γ
as a common factor, and is wanted for three things: for β's gradient, for γ's, and, times γ,
for the means of the group. It is made once.

    dβ_c = ∑ₙ ∑ₛ dy_ncs                                               [GN.4]
    dγ_c = ∑ₙ ∑ₛ dy_ncs·x̂_ncs                                         [GN.5]
    ⟨g⟩ = (1/M)·∑_c γ_c·∑ₛ dy_cs, ⟨g·x̂⟩ = (1/M)·∑_c γ_c·∑ₛ dy_cs·x̂_cs  [GN.6]
    dx_cs = r·(γ_c·dy_cs − ⟨g⟩ − x̂_cs·⟨g·x̂⟩)                          [GN.7]

With S = 1 layer norm's own code does all of it, several groups to a row. With S > 1 a
channel is a run of S with one γ, and its part of GN.7 is a straight line in dy and x. With
h, the head of μ (SUM.10), and with t for a slope, which was the tail there:

    dx_cs = r·(γ_c·dy_cs + (t·(x_cs − h) + b)), t = −r·⟨g·x̂⟩, b = −⟨g⟩ − t·(μ − h)  [GN.8]

One r stays outside, as in SUM.13: r² leaves the range of a float where x is beyond 10¹⁹.
*/

/* γ of channel k of row n; 1 if there is none. */
static nrm_acc nrmi_gn_gamma(const nrmi_ln_job *job, size_t n, size_t k)
{
    return job->gamma != NULL ? (nrm_acc)job->gamma[nrmi_ln_params(job, n) + k] : 1;
}

/* y of all runs of row n: GN.3 in the form of SUM.11. */
static void nrmi_gn_forward_runs(const nrmi_ln_job *job, size_t n, nrmi_row row)
{
    const size_t S = job->S, K = job->D / S, first = nrmi_ln_params(job, n);
    size_t k;
    for (k = 0; k < K; k++) {
        const size_t at = n * job->D + k * S;
        const nrm_acc gamma = nrmi_gn_gamma(job, n, k);
        const nrm_acc beta = job->beta != NULL ? (nrm_acc)job->beta[first + k] : 0;
        nrmi_line line;
        line.head = row.head;
        line.slope = (nrm_real)(gamma * (nrm_acc)row.rstd);
        line.shift = (nrm_real)(beta + gamma * (nrm_acc)row.shift);
        line.dy_mean = line.dy_slope = 0;
        nrmi_bn_forward_run(job->out + at, job->x + at, line, S, job->ahead); /* GN.3 */
    }
}

/* ∑dy and ∑dy·x̂ over the positions of channel k of row n. */
static nrm_sums nrmi_gn_sums(const nrmi_ln_job *job, size_t n, size_t k)
{
    const size_t at = n * job->D + k * job->S;
    nrm_sums sums;
    nrm_acc sud;
    nrmi_side_by_side(&sums.dy, &sud, job->x + at, (nrm_real)job->mu[n], job->dy + at, NULL,
                      job->S);
    sums.dy_xhat = nrmi_sum_with_xhat(sums.dy, sud, job->r[n], nrmi_ln_tail(job, n));
    return sums;
}

/* dx of one run: GN.8. */
static void nrmi_gn_backward_run(nrm_real *dx, const nrm_real *dy, const nrm_real *x,
                                 nrmi_line line, nrm_real r, size_t S)
{
    size_t s;
    for (s = 0; s + NRM_VEC <= S; s += NRM_VEC)
        nrmi_store(dx + s, (nrmi_load(dy + s) * line.dy_slope +
                            ((nrmi_load(x + s) - line.head) * line.slope + line.shift)) *
                               r);
    for (; s < S; s++)
        dx[s] = (dy[s] * line.dy_slope + ((x[s] - line.head) * line.slope + line.shift)) * r;
}

/* dx of row n; the sums of its channels are added to total, if that is wanted. */
static void nrmi_gn_backward_row(const nrmi_ln_job *job, size_t n, nrm_sums *total)
{
    const size_t S = job->S, K = job->D / S;
    const nrm_acc r = job->r[n], share = 1 / (nrm_acc)job->D;
    nrm_acc g = 0, gx = 0, t;
    nrmi_line line;
    size_t k;
    for (k = 0; k < K; k++) {
        const nrm_sums sums = nrmi_gn_sums(job, n, k);
        const nrm_acc gamma = nrmi_gn_gamma(job, n, k);
        g += gamma * sums.dy; /* GN.6 */
        gx += gamma * sums.dy_xhat;
        if (total == NULL) continue;
        total[k].dy += sums.dy;           /* GN.4 */
        total[k].dy_xhat += sums.dy_xhat; /* GN.5 */
    }
    t = -r * (gx * share);
    line.head = (nrm_real)job->mu[n];
    line.slope = (nrm_real)t;
    line.shift = (nrm_real)(-(g * share) - t * (nrm_acc)nrmi_ln_tail(job, n));
    line.dy_mean = 0;
    for (k = 0; k < K; k++) {
        const size_t at = n * job->D + k * S;
        line.dy_slope = (nrm_real)nrmi_gn_gamma(job, n, k);
        nrmi_gn_backward_run(job->out + at, job->dy + at, job->x + at, line, (nrm_real)r,
                             S); /* GN.7 */
    }
}

/* The gradients of gamma and beta take a sum over all examples in. */
static void nrmi_gn_give(const nrmi_ln_job *job, size_t c, nrm_sums total)
{
    if (job->dbeta != NULL) job->dbeta[c] += (nrm_real)total.dy;
    if (job->dgamma != NULL) job->dgamma[c] += (nrm_real)total.dy_xhat;
}

/* Channels from..to−1: the gradients of their gamma and beta alone. */
static int nrmi_gn_backward_channels(void *context, size_t from, size_t to)
{
    const nrmi_ln_job *job = (const nrmi_ln_job *)context;
    const size_t K = job->D / job->S;
    size_t c, n;
    for (c = from; c < to; c++) {
        nrm_sums total = {0, 0};
        for (n = c / K; n < job->N; n += job->G) {
            const nrm_sums sums = nrmi_gn_sums(job, n, c % K);
            total.dy += sums.dy;
            total.dy_xhat += sums.dy_xhat;
        }
        nrmi_gn_give(job, c, total);
    }
    return NRM_OK;
}

static int nrmi_gn_backward_rows(void *context, size_t from, size_t to)
{
    const nrmi_ln_job *job = (const nrmi_ln_job *)context;
    size_t n;
    for (n = from; n < to; n++) nrmi_gn_backward_row(job, n, NULL);
    return NRM_OK;
}

/* Everything in one go, for at most NRM_WIDTH channels. */
static NRM_APART void nrmi_gn_backward_all(const nrmi_ln_job *job, size_t C)
{
    nrm_sums total[NRM_WIDTH];
    size_t c, n;
    NRM_MEMSET(total, 0, C * sizeof *total);
    for (n = 0; n < job->N; n++) nrmi_gn_backward_row(job, n, total + nrmi_ln_params(job, n));
    for (c = 0; c < C; c++) nrmi_gn_give(job, c, total[c]);
}

/* S > 1; as in nrmi_ln_backward_pass. */
static int nrmi_gn_backward_pass(nrmi_ln_job *job)
{
    const size_t C = job->G * (job->D / job->S), numbers = job->N * job->D;
    const int wanted = job->dgamma != NULL || job->dbeta != NULL;
    if (wanted && nrmi_threads(numbers) == 1 && C <= NRM_WIDTH) {
        nrmi_gn_backward_all(job, C);
        return NRM_OK;
    }
    if (wanted) (void)nrmi_share(nrmi_gn_backward_channels, job, C, NRM_LANES, numbers);
    return nrmi_share(nrmi_gn_backward_rows, job, job->N, 1, numbers);
}

/* The sizes of [N][C][S] in G groups. */
static int nrmi_check_groups(size_t N, size_t C, size_t S, size_t G)
{
    const int rc = nrmi_check_volume(N, C, S);
    return rc == NRM_OK && (G == 0 || C % G != 0) ? NRM_ESIZE : rc;
}

NRM_DEF int nrm_groupnorm_forward(nrm_real *y, nrm_acc *mean, nrm_acc *rstd, const nrm_real *x,
                                  const nrm_real *gamma, const nrm_real *beta, nrm_real eps,
                                  size_t N, size_t C, size_t S, size_t G)
{
    const int rc = nrmi_check_groups(N, C, S, G);
    if (rc != NRM_OK) return rc;
    return nrmi_ln_forward(NRMI_LAYER, y, mean, rstd, x, gamma, beta, eps, N * G, C / G * S, G, S);
}

NRM_DEF int nrm_groupnorm_backward(nrm_real *dx, nrm_real *dgamma, nrm_real *dbeta,
                                   const nrm_real *dy, const nrm_real *x, const nrm_acc *mean,
                                   const nrm_acc *rstd, const nrm_real *gamma, size_t N, size_t C,
                                   size_t S, size_t G)
{
    const int rc = nrmi_check_groups(N, C, S, G);
    if (rc != NRM_OK) return rc;
    return nrmi_ln_backward(NRMI_LAYER, dx, dgamma, dbeta, dy, x, mean, rstd, gamma, NRM_EPS, N * G,
                            C / G * S, G, S);
}

NRM_DEF int nrm_instancenorm_forward(nrm_real *y, nrm_acc *mean, nrm_acc *rstd, const nrm_real *x,
                                     const nrm_real *gamma, const nrm_real *beta, nrm_real eps,
                                     size_t N, size_t C, size_t S)
{
    return nrm_groupnorm_forward(y, mean, rstd, x, gamma, beta, eps, N, C, S, C);
}

NRM_DEF int nrm_instancenorm_backward(nrm_real *dx, nrm_real *dgamma, nrm_real *dbeta,
                                      const nrm_real *dy, const nrm_real *x, const nrm_acc *mean,
                                      const nrm_acc *rstd, const nrm_real *gamma, size_t N,
                                      size_t C, size_t S)
{
    return nrm_groupnorm_backward(dx, dgamma, dbeta, dy, x, mean, rstd, gamma, N, C, S, C);
}

/*
### 11.4  RMS norm

Rows `[N][D]` as in layer norm, with 0 in the place of μ, and by custom no β:

    q = (1/D)·∑ⱼ xⱼ², r = 1/√(q + ε)                                  [RMS.1]
    yᵢ = γᵢ·xᵢ·r                                                      [RMS.2]

Of the three roads by which x reaches x̂ = x·r the one through the mean is gone, and with it
⟨g⟩ in LN.14, for g = dy·γ:

    dγᵢ = ∑ₙ dyₙᵢ·x̂ₙᵢ                                                 [RMS.3]
    dxᵢ = r·(gᵢ − x̂ᵢ·⟨g·x̂⟩)                                           [RMS.4]

So one direction is removed instead of two: stretching x leaves y alone, up to ε, but adding
a constant does not.

    ∑ᵢ dxᵢ·x̂ᵢ = D·ε·r³·⟨g·x̂⟩                                          [RMS.5]

A sum of squares has nothing to cancel; so there is no pivot, and no second turn. But the
square of a float overflows above 10¹⁹ and loses its digits below 10⁻¹⁹ (which an ε of 10⁻⁵
hides, and a much smaller one does not). Then the squares are summed in `nrm_acc`.

Here, and in group norm, ε is an argument like any other, and a model brings its own: 10⁻⁶
and 10⁻⁵ are both in use for RMS norm.
*/
static nrmi_moments nrmi_mean_square(const nrm_real *x, size_t D)
{
    /* below this, what is lost at the lower end of nrm_real's range might count */
    const int wide = sizeof(nrm_real) > sizeof(float) && sizeof(nrm_acc) > sizeof(float);
    const nrm_acc least = wide ? (nrm_acc)1e-290 : (nrm_acc)1e-30;
    nrm_acc sum, squares;
    size_t i;
    nrmi_side_by_side(&sum, &squares, x, 0, x, NULL, D);
    if (!nrmi_finite(squares) || squares < least) {
        squares = 0;
        for (i = 0; i < D; i++) squares += (nrm_acc)x[i] * (nrm_acc)x[i];
    }
    return nrmi_split(0, 0, squares / (nrm_acc)D); /* RMS.1 */
}

NRM_DEF int nrm_rmsnorm_forward(nrm_real *y, nrm_acc *rstd, const nrm_real *x,
                                const nrm_real *gamma, nrm_real eps, size_t N, size_t D)
{
    return nrmi_ln_forward(NRMI_RMS, y, NULL, rstd, x, gamma, NULL, eps, N, D, 1, 1); /* RMS.2 */
}

NRM_DEF int nrm_rmsnorm_backward(nrm_real *dx, nrm_real *dgamma, const nrm_real *dy,
                                 const nrm_real *x, const nrm_acc *rstd, const nrm_real *gamma,
                                 size_t N, size_t D)
{
    return nrmi_ln_backward(NRMI_RMS, dx, dgamma, NULL, dy, x, NULL, rstd, gamma, NRM_EPS, N, D, 1,
                            1); /* RMS.3 and RMS.4 */
}

/*
## 12  Lp batch normalization

*The question it answers: does it matter that batch norm divides by the standard deviation,
of all things?*

Santurkar, Tsipras, Ilyas and Mądry (2018) put other sizes in its place: the mean of |x|,
the root of the mean of x², the largest |x|. None of these gives a channel a fixed variance,
let alone a distribution, and the paper's networks trained about as fast with them. So the
variance is not what makes the difference; that there is some size by which a channel is
divided, and through which gradients flow, may be.

### 12.1  Shapes

All as in batch norm: `[N][C][S]`, one channel is meant, i runs over its M = N·S values, and
`mean` and `scale` are saved, `[C]` each. `p` says how the size is measured.

### 12.2  Forward

    cᵢ = xᵢ − μ                                                       [LP.1]
    t = ⟨|u|⟩ (L1), √⟨u²⟩ (L2), maxᵢ |uᵢ| (L∞); u = x, or c if centred  [LP.2]
    r = 1/(t + ε)                                                     [LP.3]
    yᵢ = γ·cᵢ·r + β                                                   [LP.4]

with μ of BN.1. Two choices hide here. The first: which values are measured? The paper
measures x, *before* the mean is taken off. Then t is at least |μ|, whatever p is, and a
channel whose mean is ten times its spread comes out ten times too small; centred, t depends
on the deviations alone. The paper's form is `NRM_L1` and so on, the other one `NRM_L1 +
NRM_CENTRED`. The second: ε is added to t and not under a root, as there is none in two of
three cases. So it is to be compared with t and not with t².

L2 needs no sums of its own, since BN.2 has them; and L2 centred is batch norm, but for the
place of ε:

    √⟨x²⟩ = √(v + μ²), √⟨c²⟩ = √v                                     [LP.5]

For L1 and L∞, u is x less the head of the mean and then its tail (SUM.10, where the tail is
called t), or less 0 twice if not centred; so a mean of a million and a spread of 1 are as
good as any. The sums are taken in `nrm_acc`, straight down a dense channel, and in the
lanes of SUM.8 along runs. That takes twice the time of batch norm, and two to seven times
on the way back (512 x 1024 and 32 x 64 x 196, `-O3`).

Running statistics move as in batch norm, with t itself in the place of the variance; there
is no M/(M − 1), which belongs to squares, and `biased` does not matter. (A maximum grows
with M, so that L∞ learns a size that goes with the size of its batches.)

    m ← (1 − w)·m + w·μ, a ← (1 − w)·a + w·t                          [LP.6]
    yᵢ = γ·(xᵢ − m)/(a + ε) + β (infer, frozen)                       [LP.7]

One value per channel is refused in training, as in batch norm: c is 0 then, and y = β.
*/
typedef struct nrmi_lp_job { /* a call; in bn the place of r is taken by t */
    nrmi_bn_job bn;
    int p, centred; /* p: NRM_L1, NRM_L2 or NRM_LINF */
} nrmi_lp_job;

/* u of LP.2: the deviation from a mean, or x itself if head and tail are 0. */
static inline nrm_acc nrmi_lp_value(nrm_real x, nrm_real head, nrm_real tail)
{
    return ((nrm_acc)x - (nrm_acc)head) - (nrm_acc)tail;
}

/* |u|, in a form that compilers make one instruction of, a maximum, and no branch. */
static inline nrm_acc nrmi_lp_abs(nrm_acc u)
{
    return u > -u ? u : -u;
}

/* Two sizes of the same kind made one: not yet divided by M. */
static inline nrm_acc nrmi_lp_join(nrm_acc a, nrm_acc b, int p)
{
    return p == NRM_LINF ? (b > a ? b : a) : a + b;
}

/* Takes n values into as many sizes, each with a head and tail of its own. */
static inline void nrmi_lp_take(nrm_acc *size, const nrm_real *x, const nrm_real *head,
                                const nrm_real *tail, int p, size_t n)
{
    size_t i;
    for (i = 0; i < n; i++) {
        const nrm_acc u = nrmi_lp_value(x[i], head[i], tail[i]);
        size[i] = nrmi_lp_join(size[i], nrmi_lp_abs(u), p);
    }
}

/* The size of one channel that has runs. */
static nrm_acc nrmi_lp_run_size(const nrm_real *x, nrmi_walk all, nrm_real head, nrm_real tail,
                                int p)
{
    nrm_acc lane[NRM_LANES];
    nrm_real heads[NRM_LANES], tails[NRM_LANES];
    size_t n, s, k;
    for (k = 0; k < NRM_LANES; k++) {
        lane[k] = 0;
        heads[k] = head;
        tails[k] = tail;
    }
    for (n = 0; n < all.runs; n++)
        for (s = 0; s < all.S; s += NRM_LANES) /* SUM.8 */
            nrmi_lp_take(lane, x + n * all.stride + s, heads, tails, p,
                         nrmi_least(all.S - s, NRM_LANES));
    for (n = NRM_LANES / 2; n > 0; n /= 2) /* SUM.9 */
        for (k = 0; k < n; k++) lane[k] = nrmi_lp_join(lane[k], lane[k + n], p);
    return lane[0];
}

/* L1 and L∞ of LP.2 for the channels from c on, into ch->var. */
static void nrmi_lp_sizes(nrmi_channels *ch, const nrmi_lp_job *job, size_t c, size_t width,
                          const nrm_real *head, const nrm_real *tail)
{
    const size_t N = job->bn.N, C = job->bn.C, S = job->bn.S;
    const nrm_acc share = job->p == NRM_L1 ? 1 / ((nrm_acc)N * (nrm_acc)S) : 1;
    const nrm_real *x = job->bn.x + c * S;
    size_t n, k;
    for (k = 0; k < width; k++) ch->var[k] = 0;
    for (n = 0; n < N && S == 1; n++) nrmi_lp_take(ch->var, x + n * C, head, tail, job->p, width);
    if (S > 1)
        ch->var[0] =
            nrmi_lp_run_size(x, nrmi_walk_from_start(N, C * S, S), head[0], tail[0], job->p);
    for (k = 0; k < width; k++) ch->var[k] *= share;
}

/* From mean and variance of the batch to mean and t. */
static void nrmi_lp_scales(nrmi_channels *ch, const nrmi_lp_job *job, size_t c, size_t width)
{
    nrm_real *head = ch->dy_slope, *tail = ch->dy_mean; /* not needed on the way forward */
    size_t k;
    for (k = 0; k < width; k++) {
        const nrm_acc square = job->centred ? 0 : ch->mean[k] * ch->mean[k];
        ch->var[k] = NRM_SQRT(ch->var[k] + square); /* LP.5 */
        head[k] = job->centred ? ch->head[k] : 0;
        tail[k] = job->centred ? ch->tail[k] : 0;
    }
    if (job->p != NRM_L2) nrmi_lp_sizes(ch, job, c, width, head, tail); /* LP.2 */
}

/* Channels from..to−1, from statistics to y. */
static int nrmi_lp_forward_part(void *context, size_t from, size_t to)
{
    const nrmi_lp_job *job = (const nrmi_lp_job *)context;
    const nrmi_bn_job *bn = &job->bn;
    const size_t step = nrmi_dense(bn) ? NRM_WIDTH : 1;
    nrmi_channels ch;
    size_t c, k;
    int rc = NRM_OK;
    for (c = from; c < to; c += step) {
        const size_t width = nrmi_least(to - c, step);
        nrmi_bn_moments(&ch, bn, c, width);
        if (bn->mode == NRM_TRAIN) nrmi_lp_scales(&ch, job, c, width);
        if (nrmi_bn_usable(&ch, bn, width) != NRM_OK) rc = NRM_NONFINITE;
        if (bn->mode == NRM_TRAIN && bn->running != NULL && !bn->late)
            nrmi_bn_track(bn->running, ch.mean, ch.var, c, width, 1); /* LP.6 */
        for (k = 0; k < width && bn->mean != NULL; k++) bn->mean[c + k] = ch.mean[k];
        for (k = 0; k < width && bn->rstd != NULL; k++) bn->rstd[c + k] = ch.var[k];
        for (k = 0; k < width; k++) ch.var[k] = 1 / (ch.var[k] + bn->eps); /* LP.3 */
        nrmi_bn_slopes(&ch, bn, c, width);
        nrmi_bn_forward_values(&ch, bn, c, width); /* LP.1, LP.4 and LP.7 */
    }
    return rc;
}

static int nrmi_check_lp(int p)
{
    const int plain = p > NRM_CENTRED ? p - NRM_CENTRED : p;
    return plain >= NRM_L1 && plain <= NRM_LINF ? NRM_OK : NRM_EKIND;
}

/* The two parts of an enum nrm_lp. */
static void nrmi_lp_split(nrmi_lp_job *job, int p)
{
    job->centred = p > NRM_CENTRED;
    job->p = job->centred ? p - NRM_CENTRED : p;
}

NRM_DEF int nrm_lp_batchnorm_forward(nrm_real *y, nrm_acc *mean, nrm_acc *scale,
                                     nrm_running *running, const nrm_real *x,
                                     const nrm_real *gamma, const nrm_real *beta, int p, int mode,
                                     nrm_real eps, size_t N, size_t C, size_t S)
{
    const int track = mode == NRM_TRAIN && running != NULL;
    nrm_running as_is; /* the same arrays, but the new t goes in as it is */
    nrmi_lp_job job;
    int rc = nrmi_check_batchnorm(mode, N, C, S);
    NRM_MEMSET(&as_is, 0, sizeof as_is);
    if (rc == NRM_OK) rc = nrmi_check_lp(p);
    if (rc == NRM_OK) rc = nrmi_check_eps(eps);
    if (rc != NRM_OK || N == 0) return rc;
    rc = nrmi_check_batchnorm_forward(y, mean, scale, running, x, gamma, beta, mode, N, C, S);
    if (rc != NRM_OK) return rc;
    if (running != NULL) {
        as_is = *running;
        as_is.biased = 1;
    }
    job.bn = nrmi_bn_forward_job(y, mean, scale, running != NULL ? &as_is : NULL, x, gamma, beta,
                                 mode, eps, N, C, S);
    nrmi_lp_split(&job, p);
    job.bn.late = track && running->cumulative;
    rc = nrmi_share(nrmi_lp_forward_part, &job, C, S == 1 ? NRM_LANES : 1, N * C * S);
    if (track && (rc == NRM_OK || !job.bn.late)) as_is.batches = ++running->batches;
    if (job.bn.late && rc == NRM_OK) nrmi_bn_track(&as_is, mean, scale, 0, C, 1);
    return rc;
}

/*
### 12.3  Backward

dβ and dγ are the sums BN.12 and BN.13, with x̂ᵢ = cᵢ·r. For dx we need to know how t
depends on x; first, how it depends on u:

    ∂t/∂uᵢ = qᵢ: sign(uᵢ)/M (L1), uᵢ/(M·t) (L2), sign(uᵢ) if |uᵢ| = t, else 0 (L∞)  [LP.8]

In L∞ only one value counts, the first in memory if there are several with |uᵢ| = t; sign(0)
is 0. At a tie, and in L1 where a value is 0, t has a kink, and this is one of its
subgradients, as 0 is for ReLU at 0. If u is x we are done. If it is c, all uⱼ go down by
1/M of what xᵢ goes up; so q loses its mean:

    ∂t/∂xᵢ = kᵢ = qᵢ, or qᵢ − ⟨q⟩ if centred                          [LP.9]

(For L2 centred, ⟨q⟩ is the sum of all deviations over M²·t: 0 once more.) Now the three
roads to x̂ⱼ: directly, through μ, and through r, where ∂r/∂xᵢ = −r²·kᵢ.

    ∂x̂ⱼ/∂xᵢ = r·(δᵢⱼ − 1/M − kᵢ·x̂ⱼ)                                   [LP.10]
    dxᵢ = γ·r·(dyᵢ − ⟨dy⟩ − kᵢ·∑ⱼ dyⱼ·x̂ⱼ)                             [LP.11]
    dxᵢ = γ·r·dyᵢ (frozen)                                            [LP.12]

(In LP.12 r is 1/(a + ε), of LP.7.) Compare LP.11 with BN.19: there kᵢ is x̂ᵢ/M, and the
Jacobian is symmetric. Here the gradient of all values, gathered along x̂, is handed out
along k, which is another direction: to all values alike but for their signs (L1), or to a
single one (L∞).

### 12.4  What it means

t is homogeneous: x twice as large, t twice as large. Euler's theorem for such functions,
and the part of dx along x that it leaves:

    ∑ᵢ kᵢ·xᵢ = t                                                      [LP.13]
    ∑ᵢ dxᵢ·xᵢ = γ·ε·r·∑ᵢ dyᵢ·x̂ᵢ                                       [LP.14]

(Multiply LP.11 by xᵢ and sum: ∑ᵢ dyᵢ·xᵢ − M·⟨dy⟩·μ is ∑ᵢ dyᵢ·cᵢ, that is (t + ε)·∑ᵢ
dyᵢ·x̂ᵢ, and t of t + ε goes.) So the property of BN.22, no gradient along x but for ε,
belongs to any size that we might divide by, and with it whatever follows for the weights
before the layer: they may grow, and their gradients shrink, without changing what the
network computes. (It is ∑ᵢ dxᵢ·xᵢ that vanishes with ε; ∑ᵢ dxᵢ·cᵢ is that less μ·∑ᵢ dxᵢ,
which does not, if not centred.) Of the other property, BN.21, only the centred forms have
their full share:

    ∑ᵢ dxᵢ = −γ·r·∑ⱼ dyⱼ·x̂ⱼ·∑ᵢ kᵢ, 0 if centred                        [LP.15]

A constant added to x leaves c alone but not ⟨|x|⟩. How large y is differs too, which γ has
to even out: of the same deviations

    ⟨|c|⟩ ≤ √⟨c²⟩ ≤ maxᵢ |cᵢ|                                         [LP.16]

so that centred L1 gives the largest outputs (for normal values 1.25 times those of batch
norm) and L∞ the smallest: they never leave β ± γ.

In the code L2 and mode frozen are straight lines in x − h, drawn by batch norm's own
functions. L1 and L∞ are lines in signs. The largest value is found by comparing with the
maximum, which is computed once more: the saved one was measured with a mean that had more
digits. (With `NRM_ACC=float` the saved mean is a float, and where it is far from 0 beside
the spread, a value next to it may have the wrong sign.)
*/

/* M·qᵢ in L1, qᵢ in L∞, where the largest value counts once: then *t changes its sign. */
static inline nrm_acc nrmi_lp_sign(nrm_acc u, nrm_acc *t, int p)
{
    const nrm_acc sign = (nrm_acc)((u > 0) - (u < 0));
    const int counts = p == NRM_L1 || nrmi_lp_abs(u) == *t; /* LP.8 */
    if (p == NRM_LINF) *t = counts ? -*t : *t;
    return counts ? sign : 0;
}

/* The sums of these signs into ch->mean; t stays as it is. */
static void nrmi_lp_sum_signs(nrmi_channels *ch, const nrmi_lp_job *job, size_t c, size_t width)
{
    const size_t S = job->bn.S;
    size_t n, k, s;
    for (k = 0; k < width; k++) ch->mean[k] = 0;
    for (n = 0; n < job->bn.N; n++) {
        const nrm_real *x = job->bn.x + (n * job->bn.C + c) * S;
        for (k = 0; k < width && S == 1; k++)
            ch->mean[k] += nrmi_lp_sign(nrmi_lp_value(x[k], ch->head[k], ch->tail[k]), &ch->var[k],
                                        job->p);
        for (s = 0; s < S && S > 1; s++)
            ch->mean[0] += nrmi_lp_sign(nrmi_lp_value(x[s], ch->head[0], ch->tail[0]), &ch->var[0],
                                        job->p);
    }
    for (k = 0; k < width; k++) ch->var[k] = nrmi_lp_abs(ch->var[k]);
}

/* BN.12 and BN.13 for the channels from c on, and the coefficients of LP.11: its line in x − h for
   L2, in signs for the others, whose shift is still to come. */
static void nrmi_lp_backward_lines(nrmi_channels *ch, const nrmi_lp_job *job, size_t c,
                                   size_t width)
{
    const nrmi_bn_job *bn = &job->bn;
    const nrm_acc M = (nrm_acc)bn->N * (nrm_acc)bn->S;
    const int train = bn->mode == NRM_TRAIN; /* LP.12 is without the means of LP.11 */
    size_t k;
    for (k = 0; k < width; k++) {
        const nrm_acc t = bn->r[c + k], r = 1 / (t + bn->eps), sum = ch->mean[k];
        const nrm_acc sum_x = nrmi_sum_with_xhat(sum, ch->var[k], r, ch->tail[k]);
        const nrm_acc gamma = bn->gamma != NULL ? (nrm_acc)bn->gamma[c + k] : 1;
        const nrm_acc u0 = job->centred ? -(nrm_acc)ch->tail[k] : (nrm_acc)ch->head[k];
        nrm_acc slope = 0;
        if (train && job->p == NRM_L1) slope = -sum_x / M;
        if (train && job->p == NRM_L2 && t > 0) slope = -sum_x / (M * t);
        if (train && job->p == NRM_LINF) slope = -sum_x;
        if (bn->dbeta != NULL) bn->dbeta[c + k] += (nrm_real)sum;
        if (bn->dgamma != NULL) bn->dgamma[c + k] += (nrm_real)sum_x;
        ch->dy_slope[k] = (nrm_real)(gamma * r);
        ch->dy_mean[k] = (nrm_real)(train ? sum / M : 0);
        ch->slope[k] = (nrm_real)slope;
        ch->shift[k] = (nrm_real)(job->p == NRM_L2 ? slope * u0 : 0); /* u is u0 where x is h */
    }
}

/* What the lines in signs still want: head and tail of what u is measured from, t, and ⟨q⟩. */
static void nrmi_lp_sign_lines(nrmi_channels *ch, const nrmi_lp_job *job, size_t c, size_t width)
{
    const nrm_acc share = 1 / ((nrm_acc)job->bn.N * (nrm_acc)job->bn.S);
    size_t k;
    for (k = 0; k < width && !job->centred; k++) ch->head[k] = ch->tail[k] = 0;
    if (job->p == NRM_LINF) nrmi_lp_sizes(ch, job, c, width, ch->head, ch->tail);
    if (!job->centred) return;
    nrmi_lp_sum_signs(ch, job, c, width);
    for (k = 0; k < width; k++)
        ch->shift[k] = (nrm_real)(-(nrm_acc)ch->slope[k] * (ch->mean[k] * share)); /* LP.9 */
}

static inline nrm_real nrmi_lp_dx(nrm_real dy, nrm_acc sign, nrm_real slope, nrm_real shift,
                                  nrm_real dy_mean, nrm_real dy_slope)
{
    return ((dy - dy_mean) + ((nrm_real)sign * slope + shift)) * dy_slope; /* LP.11 */
}

/* dx of one row of dense channels. */
static void nrmi_lp_backward_row(nrm_real *dx, const nrm_real *dy, const nrm_real *x,
                                 nrmi_channels *ch, int p, size_t width)
{
    size_t k;
    for (k = 0; k < width; k++) {
        const nrm_acc u = nrmi_lp_value(x[k], ch->head[k], ch->tail[k]);
        dx[k] = nrmi_lp_dx(dy[k], nrmi_lp_sign(u, &ch->var[k], p), ch->slope[k], ch->shift[k],
                           ch->dy_mean[k], ch->dy_slope[k]);
    }
}

/* dx of one run. */
static void nrmi_lp_backward_run(nrm_real *dx, const nrm_real *dy, const nrm_real *x,
                                 nrmi_channels *ch, int p, size_t S)
{
    const nrm_real head = ch->head[0], tail = ch->tail[0], slope = ch->slope[0];
    const nrm_real shift = ch->shift[0], dy_mean = ch->dy_mean[0], dy_slope = ch->dy_slope[0];
    nrm_acc t = ch->var[0];
    size_t s;
    for (s = 0; s < S; s++) {
        const nrm_acc u = nrmi_lp_value(x[s], head, tail);
        dx[s] = nrmi_lp_dx(dy[s], nrmi_lp_sign(u, &t, p), slope, shift, dy_mean, dy_slope);
    }
    ch->var[0] = t;
}

/* Channels from..to−1, from the sums to dx. */
static int nrmi_lp_backward_part(void *context, size_t from, size_t to)
{
    const nrmi_lp_job *job = (const nrmi_lp_job *)context;
    const nrmi_bn_job *bn = &job->bn;
    const size_t S = bn->S, step = nrmi_dense(bn) ? NRM_WIDTH : 1;
    nrmi_channels ch;
    size_t c, n;
    for (c = from; c < to; c += step) {
        const size_t width = nrmi_least(to - c, step);
        nrmi_bn_sums(&ch, bn, c, width);
        nrmi_lp_backward_lines(&ch, job, c, width);
        if (job->p == NRM_L2 || bn->mode != NRM_TRAIN) {
            nrmi_bn_backward_values(&ch, bn, c, width); /* LP.12 */
            continue;
        }
        nrmi_lp_sign_lines(&ch, job, c, width);
        for (n = 0; n < bn->N; n++) {
            const size_t at = (n * bn->C + c) * S;
            if (S == 1)
                nrmi_lp_backward_row(bn->out + at, bn->dy + at, bn->x + at, &ch, job->p, width);
            else
                nrmi_lp_backward_run(bn->out + at, bn->dy + at, bn->x + at, &ch, job->p, S);
        }
    }
    return NRM_OK;
}

NRM_DEF int nrm_lp_batchnorm_backward(nrm_real *dx, nrm_real *dgamma, nrm_real *dbeta,
                                      const nrm_real *dy, const nrm_real *x, const nrm_acc *mean,
                                      const nrm_acc *scale, const nrm_real *gamma, int p, int mode,
                                      nrm_real eps, size_t N, size_t C, size_t S)
{
    nrmi_lp_job job;
    int rc = nrmi_check_batchnorm(mode, N, C, S);
    if (mode == NRM_INFER) return NRM_EMODE;
    if (rc == NRM_OK) rc = nrmi_check_lp(p);
    if (rc == NRM_OK) rc = nrmi_check_eps(eps);
    if (rc != NRM_OK || N == 0) return rc;
    rc = nrmi_check_norm_backward(dx, dgamma, dbeta, dy, x, mean, scale, gamma, N * C * S, C, C);
    if (rc != NRM_OK) return rc;
    job.bn = nrmi_bn_backward_job(dx, dgamma, dbeta, dy, x, mean, scale, gamma, mode, N, C, S);
    job.bn.eps = (nrm_acc)eps;
    nrmi_lp_split(&job, p);
    return nrmi_share(nrmi_lp_backward_part, &job, C, S == 1 ? NRM_LANES : 1, N * C * S);
}

/*
## 13  Weight normalization

*The question it answers: can we have the scale invariance of batch norm without a batch?*

Salimans and Kingma (2016) write each unit's weight vector as a length g times a direction
v/|v|, and learn both. What it does to the gradient is what RMS norm does, with a column of
weights in the place of a row of data (compare WN.8 with RMS.4); no example takes notice of
any other.

### 13.1  Shapes

`v`, `W`, `dv` and `dW` are `[in][out]`, as in the linear layer, so that the weights of a
unit are a column; `g`, `dg` and the saved `norm` are `[out]`. In what follows a single
column is meant, and i, j run over its `in` weights. The letters are those of the paper: v
is a vector here and no variance, g a length and no gradient. The layer makes weights: run
it before the linear layer in the forward pass, and after it in the backward pass, on the
`dW` of that pass alone.

### 13.2  Forward

    n = |v| = √(∑ᵢ vᵢ²)                                               [WN.1]
    Wᵢ = g·vᵢ/n                                                       [WN.2]

There is no ε, and none is needed: what comes from WN.2 has length |g| to rounding, for long
vectors and short ones, as long as g/n is within the normal range of `nrm_real`. Squares of
floats, however, leave the range of float where the values are still far inside it. If n
does not turn out between 10⁻¹² and 10¹², it is computed once more from products that stay
in range,

    n = √t·√(∑ᵢ vᵢ·(vᵢ/t)), t = maxᵢ |vᵢ|                             [WN.3]

A column of zeros has no direction. W is 0 there, the status is `NRM_NONFINITE`, and dv and
dg get nothing; so it stays as it is until somebody moves it. One that holds a NaN or an
infinity is all NaN. All other columns are as they would be without it.

Salimans and Kingma also start g, and the bias b, from the data: with g = 1 and no bias, let
one batch go through the layer, and take its mean μ and standard deviation σ at each unit.

    g = 1/σ, b = −μ/σ                                                 [WN.4]

makes these outputs standardized, as batch norm would, but at this one moment only. μ and
1/σ are what batch norm saves, with its ε in σ:

```c sketch
nrm_weightnorm_forward(W, NULL, v, NULL, in, out);       // g = 1
nrm_linear_forward(z, x, W, NULL, N, in, out);
nrm_batchnorm_forward(y, mean, rstd, NULL, z, NULL, NULL, NRM_TRAIN, eps, N, out, 1);
for (j = 0; j < out; j++) g[j] = (nrm_real)rstd[j], b[j] = (nrm_real)(-mean[j] * rstd[j]);
```

The code is batch norm's, with head and shift 0: `nrmi_column_sums` of v with itself gives
WN.1, and the line through 0 with slope g/n is WN.2.
*/

/* ∑ aᵢ·(bᵢ/scale) down one column. */
static nrm_acc nrmi_wn_dot(const nrm_real *a, const nrm_real *b, nrm_acc scale, size_t in,
                           size_t out)
{
    nrm_acc sum = 0;
    size_t i;
    for (i = 0; i < in; i++) sum += (nrm_acc)a[i * out] * ((nrm_acc)b[i * out] / scale);
    return sum;
}

/* May float squares and products be trusted with a column of this length? Not if it is a NaN. */
static int nrmi_wn_ordinary(nrm_acc norm)
{
    return norm > (nrm_acc)1e-12 && norm < (nrm_acc)1e12;
}

/* WN.3 */
static nrm_acc nrmi_wn_norm(const nrm_real *v, size_t in, size_t out)
{
    nrm_acc most = 0;
    size_t i;
    for (i = 0; i < in; i++) {
        const nrm_acc size = nrmi_lp_abs((nrm_acc)v[i * out]);
        most = size > most || size != size ? size : most;
    }
    return most == 0 ? 0 : NRM_SQRT(most) * NRM_SQRT(nrmi_wn_dot(v, v, most, in, out));
}

/* g/n, the slope of WN.2: 0 for a column of zeros, NaN where the length is not a finite number. */
static nrm_acc nrmi_wn_slope(const nrmi_bn_job *job, size_t c, nrm_acc norm)
{
    const nrm_acc g = job->gamma != NULL ? (nrm_acc)job->gamma[c] : 1;
    if (!nrmi_finite(norm)) return norm - norm;
    return norm > 0 ? g / norm : 0;
}

static int nrmi_wn_forward_part(void *context, size_t from, size_t to)
{
    const nrmi_bn_job *job = (const nrmi_bn_job *)context;
    const size_t in = job->N, out = job->C;
    nrmi_channels ch;
    size_t c, k;
    int rc = NRM_OK;
    for (c = from; c < to; c += NRM_WIDTH) {
        const size_t width = nrmi_least(to - c, NRM_WIDTH);
        const nrm_real *v = job->x + c;
        for (k = 0; k < width; k++) ch.head[k] = 0;
        nrmi_column_sums(&ch, v, v, in, out, width);
        for (k = 0; k < width; k++) {
            nrm_acc norm = NRM_SQRT(ch.var[k]); /* WN.1 */
            if (!nrmi_wn_ordinary(norm)) norm = nrmi_wn_norm(v + k, in, out);
            ch.slope[k] = (nrm_real)nrmi_wn_slope(job, c + k, norm);
            ch.shift[k] = 0;
            if (job->mean != NULL) job->mean[c + k] = norm;
            if (!(norm > 0) || !nrmi_finite((nrm_acc)ch.slope[k])) rc = NRM_NONFINITE;
        }
        nrmi_bn_forward_values(&ch, job, c, width); /* WN.2 */
    }
    return rc;
}

NRM_DEF int nrm_weightnorm_forward(nrm_real *W, nrm_acc *norm, const nrm_real *v,
                                   const nrm_real *g, size_t in, size_t out)
{
    nrmi_bn_job job;
    nrmi_span buffer[4];
    const int rc = nrmi_check_volume(1, in, out);
    if (rc != NRM_OK) return rc;
    if (W == NULL || v == NULL) return NRM_ENULL;
    buffer[0] = nrmi_reals(W, in * out);
    buffer[1] = nrmi_accs(norm, out);
    buffer[2] = nrmi_reals(v, in * out);
    buffer[3] = nrmi_reals(g, out);
    if (nrmi_check_apart(buffer, 4, 2) != NRM_OK) return NRM_EALIAS;
    job = nrmi_bn_whole(in, out, 1);
    job.out = W;
    job.mean = norm;
    job.x = v;
    job.gamma = g;
    return nrmi_bn_share(nrmi_wn_forward_part, &job);
}

/*
### 13.3  Backward

The length depends on each weight by its share of the direction, and W on v directly and
through n:

    ∂n/∂vᵢ = vᵢ/n                                                     [WN.5]
    dg = ∑ᵢ dWᵢ·vᵢ/n                                                  [WN.6]
    ∂Wⱼ/∂vᵢ = (g/n)·(δᵢⱼ − vᵢ·vⱼ/n²)                                  [WN.7]

Sum over j with dWⱼ; what is then gathered along v is dg:

    dvᵢ = ∑ⱼ dWⱼ·∂Wⱼ/∂vᵢ = (g/n)·(dWᵢ − dg·vᵢ/n)                      [WN.8]

Here dg is what this call adds to the gradient of g, and not what may have stood there.

### 13.4  What it means

WN.8 is a projection, and this time a clean one, with no ε in the way: what dW has along v
goes to g, and v gets the rest.

    ∑ᵢ dvᵢ·vᵢ = 0                                                     [WN.9]

By Pythagoras, a step of gradient descent with learning rate η can then only make v longer:

    |v − η·dv|² = |v|² + η²·|dv|²                                     [WN.10]

and dv is proportional to g/n. So too large a learning rate is answered by longer vectors,
with smaller gradients and slower turns: a brake that adjusts itself. It does not let go,
though; and under momentum or Adam, whose steps are not along dv, WN.10 does not hold.

### 13.5  Batch norm is weight norm in another metric

Let z = x·w be one unit before batch norm, with x the row of its inputs, and average over
the N rows of the batch. z has mean m·w, where m is the row of the inputs' means, and its
variance σ² depends on w through their covariance, a matrix S:

    S = ⟨(x − m)ᵀ·(x − m)⟩, σ² = wᵀ·S·w                               [WN.11]

So batch norm, ε and all, can be written as a linear layer whose weights have been
normalized, and whose bias takes off the mean (Kohler and others, 2018, for m = 0):

    BN(x·w) = x·ŵ + (β − m·ŵ), ŵ = γ·w/√(wᵀ·S·w + ε)                  [WN.12]

This is WN.2 with γ for g, and the length √(wᵀ·S·w) for √(wᵀ·w): weight norm is what batch
norm would be if inputs were known to have mean 0 and the unit matrix for S. For a layer
with a matrix W of weights each column has its own length, and that is the diagonal of WᵀSW,
whose roots are taken one by one; the root of the matrix would mix the units.

S has to be the covariance. One also reads the formula with ⟨xᵀ·x⟩ in its place, which is
the same only if all means are 0. Take one input with the values 1 and 3, and w = γ = 1, β =
ε = 0: batch norm gives −1 and 1, as does WN.12 with S = 1. But ⟨x²⟩ = 5, and the two values
come out as −1/√5 and 1/√5.

The gradient can be taken either way. By the chain rule through the layer it is xᵀ·dz with
dz of BN.19; by the quotient WN.12, with ∂σ²/∂w = 2·S·w, and with j for the rows,

    dw = γ·r·(a − r²·(a·w)·S·w), a = ∑ⱼ dyⱼ·(xⱼ − m)ᵀ, r = 1/√(σ² + ε)  [WN.13]

and both are the same numbers. Multiply by w: as in BN.22, only ε leaves anything.

    ∑ᵢ dwᵢ·wᵢ = γ·r·ε·r²·(a·w)                                        [WN.14]

With that, WN.10 holds for weights before batch norm too, up to ε.
*/
static int nrmi_wn_backward_part(void *context, size_t from, size_t to)
{
    const nrmi_bn_job *job = (const nrmi_bn_job *)context;
    const size_t in = job->N, out = job->C;
    nrmi_channels ch;
    size_t c, k, i;
    for (c = from; c < to; c += NRM_WIDTH) {
        const size_t width = nrmi_least(to - c, NRM_WIDTH);
        const nrm_real *v = job->x + c, *dW = job->dy + c;
        for (k = 0; k < width; k++) ch.head[k] = ch.dy_mean[k] = 0;
        nrmi_column_sums(&ch, dW, v, in, out, width);
        for (k = 0; k < width; k++) {
            const nrm_acc norm = job->mu[c + k];
            nrm_acc dg = 0; /* WN.6 */
            if (nrmi_wn_ordinary(norm))
                dg = ch.var[k] / norm;
            else if (!(norm == 0))
                dg = nrmi_wn_dot(dW + k, v + k, norm, in, out);
            ch.slope[k] = (nrm_real)(norm == 0 ? 0 : -dg / norm);
            ch.shift[k] = 0; /* the sums have used it */
            ch.dy_slope[k] = (nrm_real)nrmi_wn_slope(job, c + k, norm);
            if (job->dgamma != NULL) job->dgamma[c + k] += (nrm_real)dg;
        }
        for (i = 0; i < in && job->out != NULL; i++) {
            nrm_real *dv = job->out + i * out + c, *row = ch.tail; /* which nobody needs */
            nrmi_bn_backward_row(row, dW + i * out, v + i * out, &ch, width); /* WN.8 */
            for (k = 0; k < width; k++) dv[k] += row[k];
        }
    }
    return NRM_OK;
}

NRM_DEF int nrm_weightnorm_backward(nrm_real *dv, nrm_real *dg, const nrm_real *dW,
                                    const nrm_real *v, const nrm_acc *norm, const nrm_real *g,
                                    size_t in, size_t out)
{
    nrmi_bn_job job;
    nrmi_span buffer[6];
    const int rc = nrmi_check_volume(1, in, out);
    if (rc != NRM_OK) return rc;
    if (dW == NULL || v == NULL || norm == NULL) return NRM_ENULL;
    buffer[0] = nrmi_reals(dv, in * out);
    buffer[1] = nrmi_reals(dg, out);
    buffer[2] = nrmi_reals(dW, in * out);
    buffer[3] = nrmi_reals(v, in * out);
    buffer[4] = nrmi_accs(norm, out);
    buffer[5] = nrmi_reals(g, out);
    if (nrmi_check_apart(buffer, 6, 2) != NRM_OK) return NRM_EALIAS;
    job = nrmi_bn_whole(in, out, 1);
    job.out = dv;
    job.dgamma = dg;
    job.mu = norm;
    job.dy = dW;
    job.x = v;
    job.gamma = g;
    return nrmi_bn_share(nrmi_wn_backward_part, &job);
}

/*
## 14  Folding, and the statistics of other libraries

*The questions it answers: what does batch norm cost once training is over, and what do the
running statistics mean that another library has left behind?*

### 14.1  Shapes

In inference batch norm is a fixed line for each channel. If the layer before it is linear,
or a convolution, the line can be melted into that layer's weights, and nothing is left to
compute. The weights are seen as `[outer][C][inner]`, with C the outputs: `[in][out]`, as
the linear layer here has them, is outer = in, C = out, inner = 1. Libraries that store
`[out][in]`, and convolutions `[out][in][h][w]`, are outer = 1, inner = all that follows.
One channel is meant in what follows, and k runs over its weights. Between the two layers
there may be nothing: with an activation there, batch norm has to be folded into the layer
that comes next, or stay.

### 14.2  Folding

The layer before gives z = ∑ₖ xₖ·Wₖ + b, and BN.11 makes y = a·(z − m) + β of it, with a =
γ/√(u + ε). Multiply out, and collect what stands at xₖ and what does not:

    W′ₖ = a·Wₖ, a = γ/√(u + ε)                                        [FOLD.1]
    b′ = a·(b − m) + β                                                [FOLD.2]
    ∑ₖ xₖ·W′ₖ + b′ = γ·(∑ₖ xₖ·Wₖ + b − m)/√(u + ε) + β                [FOLD.3]

Each has been somebody's bug report. Two libraries scaled the weights and forgot to scale b
along with m, which nobody sees as long as b is 0: a layer before batch norm has no use for
a bias, so most have none. Another multiplied along the wrong axis, which goes unnoticed if
the matrix is square; here a matrix `[out][in]` that is passed as `[in][out]` is in bounds
as well, for the sizes alone cannot tell. And statistics that came out of a converted file
may hold a variance just below zero, whose root is a NaN: they are refused (`NRM_ESTATS`)
before anything is written.

FOLD.3 is exact; W′ and b′ have to be rounded. Both are computed in `nrm_acc` and rounded
once, so that in float each is within half a unit of its last place. If the sum over k were
computed without error, a folded layer would be off by no more than

    |error of y| ≤ η·(∑ₖ |xₖ·W′ₖ| + |b′|)                             [FOLD.4]

with η = 2⁻²⁴. Where `nrm_acc` is no wider than the data, as with `NRM_DOUBLE` (then η =
2⁻⁵³), 6η takes its place, and |a·(b − m)| + |β| that of |b′|. How many places of y that is
depends on how much of the sum cancels. Where m is a thousand times √u, so are the terms
beside y, and their roundings. It is no loss by folding: unfolded, z is rounded as coarsely
before m is taken away. `docs/10_conventions.md` has what was measured.

### 14.3  Unfolding

The way back is wanted by those who have only the folded weights and would train on. Solve
FOLD.1 and FOLD.2:

    Wₖ = W′ₖ/a                                                        [FOLD.5]
    b = (b′ − β)/a + m                                                [FOLD.6]

With γ = 0 the weights are lost and nothing brings them back; so that, and any other factor
a without a reciprocal in `nrm_real`, is refused. Folding the result gives W′ again but for
the last place.
*/
/* The smallest number that has all its digits both in nrm_real and in nrm_acc. */
static nrm_acc nrmi_least_normal(void)
{
    const int in_float = sizeof(nrm_real) == sizeof(float) || sizeof(nrm_acc) == sizeof(float);
    return in_float ? (nrm_acc)1.17549435e-38 : (nrm_acc)2.2250738585072014e-308;
}

/* a of FOLD.1 for channels c0 to c0 + width − 1. */
static void nrmi_fold_factors(nrm_acc *a, const nrm_running *running, const nrm_real *gamma,
                              nrm_real eps, size_t c0, size_t width)
{
    size_t k;
    for (k = 0; k < width; k++) {
        const nrm_acc g = gamma != NULL ? (nrm_acc)gamma[c0 + k] : 1;
        a[k] = g / NRM_SQRT((nrm_acc)running->var[c0 + k] + (nrm_acc)eps); /* FOLD.1 */
    }
}

/* Can all factors be undone? */
static int nrmi_check_factors(const nrm_running *running, const nrm_real *gamma, nrm_real eps,
                              size_t C)
{
    const nrm_acc least = nrmi_least_normal();
    nrm_acc a;
    size_t c;
    for (c = 0; c < C; c++) {
        nrmi_fold_factors(&a, running, gamma, eps, c, 1);
        if (a < 0) a = -a;
        if (!(a >= least && a <= 1 / least)) return NRM_ESTATS;
    }
    return NRM_OK;
}

static int nrmi_check_fold(const nrm_real *W_out, const nrm_real *b_out, const nrm_real *W,
                           const nrm_real *b, const nrm_running *running, const nrm_real *gamma,
                           const nrm_real *beta, nrm_real eps, size_t outer, size_t C, size_t inner)
{
    const size_t count = outer * C * inner;
    nrmi_span buffer[6];
    int rc = nrmi_check_volume(outer, C, inner);
    if (rc == NRM_OK && outer == 0) rc = NRM_ESIZE;
    if (rc == NRM_OK) rc = nrmi_check_eps(eps);
    if (rc != NRM_OK) return rc;
    if (W_out == NULL || b_out == NULL || W == NULL) return NRM_ENULL;
    rc = nrmi_check_running(running, NRM_INFER, C);
    if (rc != NRM_OK) return rc;
    buffer[0] = nrmi_reals(W_out, count);
    buffer[1] = nrmi_reals(b_out, C);
    buffer[2] = nrmi_reals(running->mean, C);
    buffer[3] = nrmi_reals(running->var, C);
    buffer[4] = nrmi_reals(gamma, C);
    buffer[5] = nrmi_reals(beta, C);
    if (nrmi_check_apart(buffer, 6, 2) != NRM_OK) return NRM_EALIAS;
    if (nrmi_overlap(buffer[0], nrmi_reals(b, C)) || nrmi_overlap(buffer[1], nrmi_reals(W, count)))
        return NRM_EALIAS;
    rc = nrmi_check_in_place(buffer[0], nrmi_reals(W, count));
    return rc == NRM_OK ? nrmi_check_in_place(buffer[1], nrmi_reals(b, C)) : rc;
}

/* Channels from c0 on, each multiplied by its factor, or divided by it. */
static int nrmi_scale_channels(nrm_real *to, const nrm_real *from, const nrm_acc *a, int divide,
                               size_t c0, size_t width, size_t outer, size_t C, size_t inner)
{
    size_t o, k, i;
    int rc = NRM_OK;
    for (o = 0; o < outer; o++)
        for (k = 0; k < width; k++)
            for (i = 0; i < inner; i++) {
                const size_t at = (o * C + c0 + k) * inner + i;
                const nrm_acc w = (nrm_acc)from[at];
                to[at] = (nrm_real)(divide ? w / a[k] : w * a[k]);
                if (!nrmi_finite((nrm_acc)to[at])) rc = NRM_NONFINITE;
            }
    return rc;
}

NRM_DEF int nrm_batchnorm_fold(nrm_real *W_out, nrm_real *b_out, const nrm_real *W,
                               const nrm_real *b, const nrm_running *running, const nrm_real *gamma,
                               const nrm_real *beta, nrm_real eps, size_t outer, size_t C,
                               size_t inner)
{
    nrm_acc a[NRM_WIDTH];
    size_t c, k;
    int rc = nrmi_check_fold(W_out, b_out, W, b, running, gamma, beta, eps, outer, C, inner);
    if (rc != NRM_OK) return rc;
    for (c = 0; c < C; c += NRM_WIDTH) {
        const size_t width = nrmi_least(C - c, NRM_WIDTH);
        nrmi_fold_factors(a, running, gamma, eps, c, width);
        if (nrmi_scale_channels(W_out, W, a, 0, c, width, outer, C, inner) != NRM_OK) /* FOLD.1 */
            rc = NRM_NONFINITE;
        for (k = 0; k < width; k++) {
            const nrm_acc bias = b != NULL ? (nrm_acc)b[c + k] : 0;
            const nrm_acc shift = beta != NULL ? (nrm_acc)beta[c + k] : 0;
            b_out[c + k] = (nrm_real)((bias - (nrm_acc)running->mean[c + k]) * a[k] + shift);
            if (!nrmi_finite((nrm_acc)b_out[c + k])) rc = NRM_NONFINITE; /* FOLD.2 */
        }
    }
    return rc;
}

NRM_DEF int nrm_batchnorm_unfold(nrm_real *W, nrm_real *b, const nrm_real *W_folded,
                                 const nrm_real *b_folded, const nrm_running *running,
                                 const nrm_real *gamma, const nrm_real *beta, nrm_real eps,
                                 size_t outer, size_t C, size_t inner)
{
    nrm_acc a[NRM_WIDTH];
    size_t c, k;
    int rc = nrmi_check_fold(W, b, W_folded, b_folded, running, gamma, beta, eps, outer, C, inner);
    if (rc == NRM_OK && b_folded == NULL) rc = NRM_ENULL;
    if (rc == NRM_OK) rc = nrmi_check_factors(running, gamma, eps, C);
    if (rc != NRM_OK) return rc;
    for (c = 0; c < C; c += NRM_WIDTH) {
        const size_t width = nrmi_least(C - c, NRM_WIDTH);
        nrmi_fold_factors(a, running, gamma, eps, c, width);
        if (nrmi_scale_channels(W, W_folded, a, 1, c, width, outer, C, inner) != NRM_OK)
            rc = NRM_NONFINITE; /* FOLD.5 */
        for (k = 0; k < width; k++) {
            const nrm_acc shift = beta != NULL ? (nrm_acc)beta[c + k] : 0;
            b[c + k] = (nrm_real)(((nrm_acc)b_folded[c + k] - shift) / a[k] +
                                  (nrm_acc)running->mean[c + k]); /* FOLD.6 */
            if (!nrmi_finite((nrm_acc)b[c + k])) rc = NRM_NONFINITE;
        }
    }
    return rc;
}

/*
### 14.4  The statistics of other libraries

Two libraries may train the same layer and store numbers that mean different things. There
are five questions. Is the momentum the weight of the new value, or of the old one? Is the
stored variance divided by M, or by M − 1? Where does ε stand, and how large is it? Is it a
variance at all that is stored, or a standard deviation, or one over it? And are the numbers
averages, or sums that are still to be divided by a weight? An `nrm_convention` holds the
answers, `nrm_convention_of` knows those of some libraries and texts, and
`nrm_running_import` is the arithmetic that follows from them. A library's file may hold
other values than its defaults: put them into the convention before the import.

Whatever it is that the other library divides by, call it s; its inference is

    y = γ·(x − m)/s + β                                               [CONV.1]

and it is ours, BN.11, if m is ours and s is the root of u + ε. So the whole of the import
is to find s, and

    u = s² − ε                                                        [CONV.2]

with an ε that may be chosen as long as u does not become negative. Let v be the variance
that is stored, and e the other library's ε. In the usual case, s = √(v + e), that is u = v
and ε = e. If e stands outside the root, s = √v + e, we take ε = e², and then

    s² − e² = (√v + e)² − e² = v + 2·e·√v                             [CONV.3]

is never negative: the function is the same for every v, and not only where e is small. A
running standard deviation t takes the place of √v in both: s = √(t² + e) or s = t + e. Of a
running r = 1/s nothing need be known but s = 1/r:

    u = 1/r² − ε                                                      [CONV.4]

with ε chosen as before, where a u near 0 may come out below it, since r was rounded: by up
to 10⁻⁶·ε (2·10⁻¹⁵·ε in double) that is taken as 0. If it is more, then r was stored with
another ε, and the import is refused. And some divide by a standard deviation alone. Our ε
must be positive; so it becomes the smallest normal number, about 10⁻³⁸ in float, which
changes no digit of s if s is above 10⁻¹⁵. A channel that never varied has x = m, and gives
β here where 0/0 was computed there.

Caffe keeps sums, of the means and of the variances, together with the weight c that they
have gathered, and with f for the momentum:

    c ← f·c + 1, and the sum ← f·sum + new                            [CONV.5]

Both sums are to be divided by c; this is the argument `factor`, which is 1 for all others.
If c = 0 no batch has been seen, and that library takes mean and variance to be 0; so do we.
As an average, CONV.5 is BN.8 with a weight that falls from batch to batch,

    w = 1/(f·c + 1), which tends to 1 − f                             [CONV.6]

since c tends to 1/(1 − f). The import sets w for all of them to the weight of the new
value,

    w = momentum, or 1 − momentum if that is the weight of the old one  [CONV.7]

which for that library is right in the limit; after only a few batches take CONV.6 instead.

### 14.5  What does not carry over

Inference is the same to rounding, whatever the convention. Training on is the same where
the other library, too, normalizes with the variance divided by M, keeps a variance, and has
its ε inside the root. The average of standard deviations is not the root of the averaged
variances. With ε outside u contains 2·e·√v, and the average of √v is not the root of the
average of v either; for e = 10⁻⁶ that is next to nothing. And a library that normalizes
with M − 1, as some do, trains another function than BN.4: its x̂ is smaller by the factor
√(1 − 1/M).

An import is all or nothing: with a NaN, a negative variance, or a number beyond the range
of `nrm_real` in any channel, nothing is written. Output and input may be the same arrays,
mean for mean and variance for spread.
*/
NRM_DEF int nrm_convention_of(nrm_convention *convention, int library)
{
    static const nrm_convention known[] = { /* in the order of enum nrm_library */
        /* kept          ε out  old  biased  momentum         ε              */
        {NRM_KEEPS_VAR,  0,     0,   0,      (nrm_acc)0.1,    (nrm_acc)1e-5}, /* PyTorch          */
        {NRM_KEEPS_VAR,  0,     1,   1,      (nrm_acc)0.99,   (nrm_acc)1e-3}, /* Keras            */
        {NRM_KEEPS_VAR,  0,     1,   1,      (nrm_acc)0.99,   (nrm_acc)1e-5}, /* Flax             */
        {NRM_KEEPS_VAR,  0,     1,   1,      (nrm_acc)0.9,    (nrm_acc)1e-5}, /* ONNX             */
        {NRM_KEEPS_VAR,  0,     1,   0,      (nrm_acc)0.999,  (nrm_acc)1e-5}, /* Caffe: sums      */
        {NRM_KEEPS_VAR,  1,     1,   0,      (nrm_acc)0.99,   (nrm_acc)1e-6}, /* darknet's CPU    */
        {NRM_KEEPS_VAR,  0,     0,   0,      (nrm_acc)-1,     (nrm_acc)-1},   /* cuDNN: as called */
        {NRM_KEEPS_VAR,  0,     1,   0,      (nrm_acc)0.999,  (nrm_acc)1e-5}, /* tiny-dnn         */
        {NRM_KEEPS_STD,  0,     0,   0,      (nrm_acc)0.001,  0},             /* a running std    */
    };
    if (convention == NULL) return NRM_ENULL;
    if (library < 0 || (size_t)library >= sizeof known / sizeof known[0]) return NRM_EKIND;
    *convention = known[library];
    return NRM_OK;
}

static int nrmi_check_convention(const nrm_convention *from)
{
    if (from->spread != NRM_KEEPS_VAR && from->spread != NRM_KEEPS_STD &&
        from->spread != NRM_KEEPS_RSTD)
        return NRM_EKIND;
    if (!(from->momentum >= 0 && from->momentum <= 1)) return NRM_EWEIGHT;
    if (!(from->eps >= 0) || !nrmi_fits(from->eps * (from->eps_outside ? from->eps : 1)))
        return NRM_EEPS;
    return NRM_OK;
}

static int nrmi_check_import(const nrm_running *running, const nrm_real *eps, const nrm_real *mean,
                             const nrm_real *spread, size_t C)
{
    const nrmi_span in_mean = nrmi_reals(mean, C), in_spread = nrmi_reals(spread, C);
    nrmi_span out[3];
    int rc;
    out[0] = nrmi_reals(running->mean, C);
    out[1] = nrmi_reals(running->var, C);
    out[2] = nrmi_reals(eps, 1);
    if (nrmi_check_apart(out, 3, 3) != NRM_OK) return NRM_EALIAS;
    if (nrmi_overlap(out[0], in_spread) || nrmi_overlap(out[1], in_mean)) return NRM_EALIAS;
    if (nrmi_overlap(out[2], in_spread) || nrmi_overlap(out[2], in_mean)) return NRM_EALIAS;
    rc = nrmi_check_in_place(out[0], in_mean);
    return rc == NRM_OK ? nrmi_check_in_place(out[1], in_spread) : rc;
}

/* The ε that CONV.2 and CONV.3 take; never 0. */
static nrm_real nrmi_import_eps(const nrm_convention *from)
{
    const nrm_acc eps = from->eps_outside ? from->eps * from->eps : from->eps;
    const nrm_acc least = nrmi_least_normal();
    return (nrm_real)(eps > least ? eps : least);
}

/* By how much of ε a variance may be below 0: eight times the rounding of 1/r². */
static nrm_acc nrmi_import_slack(void)
{
    const int in_float = sizeof(nrm_real) == sizeof(float) || sizeof(nrm_acc) == sizeof(float);
    return in_float ? (nrm_acc)9.5367431640625e-7 : (nrm_acc)1.7763568394002505e-15;
}

/* u of one channel. Below 0, infinite or NaN if there is none. */
static nrm_acc nrmi_import_var(nrm_acc stored, const nrm_convention *from, nrm_acc eps)
{
    const int std = from->spread == NRM_KEEPS_STD;
    if (!(stored >= 0)) return -1;
    if (from->spread == NRM_KEEPS_RSTD) {
        const nrm_acc s = 1 / stored, u = s * s - eps; /* CONV.4 */
        return u < 0 && u >= -nrmi_import_slack() * eps ? 0 : u;
    }
    if (from->eps_outside) {
        const nrm_acc root = std ? stored : NRM_SQRT(stored);
        return root * root + 2 * from->eps * root; /* CONV.3 */
    }
    return std ? stored * stored : stored; /* CONV.2 */
}

NRM_DEF int nrm_running_import(nrm_running *running, nrm_real *eps, const nrm_real *mean,
                               const nrm_real *spread, nrm_acc factor,
                               const nrm_convention *convention, size_t C)
{
    const nrm_acc share = factor > 0 ? factor : 1, scale = factor > 0 ? 1 : 0;
    nrm_real our_eps;
    size_t c;
    int pass, rc = nrmi_check_volume(1, C, 1);
    if (rc != NRM_OK) return rc;
    if (running == NULL || eps == NULL || mean == NULL || spread == NULL || convention == NULL ||
        running->mean == NULL || running->var == NULL)
        return NRM_ENULL;
    rc = nrmi_check_convention(convention);
    if (rc == NRM_OK) rc = nrmi_check_import(running, eps, mean, spread, C);
    if (rc == NRM_OK && (!(factor >= 0) || !nrmi_finite(factor))) rc = NRM_ESTATS;
    if (rc != NRM_OK) return rc;
    our_eps = nrmi_import_eps(convention);
    for (pass = 0; pass < 2; pass++) /* first look, then write */
        for (c = 0; c < C; c++) {
            const nrm_acc m = scale * (nrm_acc)mean[c] / share; /* CONV.5: 0 of 0 batches */
            const nrm_acc u = nrmi_import_var(scale * (nrm_acc)spread[c] / share, convention,
                                              (nrm_acc)our_eps);
            if (pass == 0 && (!nrmi_fits(m) || !nrmi_fits(u) || u < 0)) return NRM_ESTATS;
            if (pass == 0) continue;
            running->mean[c] = (nrm_real)m; /* CONV.1 */
            running->var[c] = (nrm_real)u;
        }
    running->new_weight = (nrm_real)(convention->weight_is_old ? 1 - convention->momentum
                                                               : convention->momentum); /* CONV.7 */
    running->biased = convention->biased;
    *eps = our_eps;
    return NRM_OK;
}

/*
## 15  Activations

Element by element; the derivative is written with the *output*, so that the input need not
be kept.

    relu(x) = x if x > 0, else 0                                      [ACT.1]
    tanh(x) = −sign(x)·q/(2 + q), q = e^(−2|x|) − 1                   [ACT.2]
    sigmoid(x) = 1/(1 + e^(−x)) = e^x/(1 + e^x)                       [ACT.3]

Both exponentials have arguments ≤ 0, whichever the sign of x, so nothing overflows: of the
two forms in ACT.3 the first is for x ≥ 0.

    relu′ = 1 if y > 0, else 0                                        [ACT.4]
    tanh′ = 1 − y²                                                    [ACT.5]
    sigmoid′ = y·(1 − y)                                              [ACT.6]

At x = 0 ReLU has no derivative; like everybody we say 0. A NaN stays a NaN, also through
ReLU.
*/

/* tanh, or else sigmoid, of n <= NRM_SOME values; y may be x. No branch depends on a value. */
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
            v[i] = v[i] < 0 ? -t : t;                                          /* ACT.2 */
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
    return nrmi_check_volume(count, 1, 1);
}

NRM_DEF int nrm_activation_forward(nrm_real *y, const nrm_real *x, int activation, size_t count)
{
    size_t i;
    int rc = nrmi_check_activation(activation, count);
    if (rc != NRM_OK || count == 0) return rc;
    if (y == NULL || x == NULL) return NRM_ENULL;
    rc = nrmi_check_in_place(nrmi_reals(y, count), nrmi_reals(x, count));
    if (rc != NRM_OK) return rc;
    switch (activation) {
    case NRM_RELU:
        for (i = 0; i < count; i++) y[i] = x[i] <= 0 ? 0 : x[i]; /* ACT.1 */
        break;
    case NRM_TANH:
    case NRM_SIGMOID:
        for (i = 0; i < count; i += NRM_SOME)
            nrmi_squash(y + i, x + i, activation, nrmi_least(count - i, NRM_SOME));
        break;
    default:
        for (i = 0; i < count; i++) y[i] = x[i];
        break;
    }
    return NRM_OK;
}

NRM_DEF int nrm_activation_backward(nrm_real *dx, const nrm_real *dy, const nrm_real *y,
                                    int activation, size_t count)
{
    size_t i;
    int rc = nrmi_check_activation(activation, count);
    if (rc != NRM_OK || count == 0) return rc;
    if (dx == NULL || dy == NULL || y == NULL) return NRM_ENULL;
    rc = nrmi_check_in_place(nrmi_reals(dx, count), nrmi_reals(dy, count));
    if (rc != NRM_OK || nrmi_overlap(nrmi_reals(dx, count), nrmi_reals(y, count)))
        return NRM_EALIAS;
    switch (activation) {
    case NRM_RELU:
        for (i = 0; i < count; i++) dx[i] = y[i] <= 0 ? 0 : dy[i]; /* ACT.4 */
        break;
    case NRM_TANH:
        for (i = 0; i < count; i++) dx[i] = dy[i] * (1 - y[i] * y[i]); /* ACT.5 */
        break;
    case NRM_SIGMOID:
        for (i = 0; i < count; i++) dx[i] = dy[i] * (y[i] * (1 - y[i])); /* ACT.6 */
        break;
    default:
        for (i = 0; i < count; i++) dx[i] = dy[i];
        break;
    }
    return NRM_OK;
}

/*
## 16  Softmax, cross-entropy, accuracy

The last layer gives C numbers for each example, the logits z. Softmax makes probabilities
of them, and the loss is minus the logarithm of the probability of the right class t,
averaged over the batch. Subtracting the largest logit first changes no probability, and no
exponential can then overflow:

    h = max_c z_c                                                     [CE.1]
    Z = ∑_c e^(z_c − h)                                               [CE.2]
    p_c = e^(z_c − h)/Z                                               [CE.3]
    ℓ = −ln p_t = ln Z + h − z_t                                      [CE.4]
    L = (1/N)·∑ₙ ℓₙ                                                   [CE.5]

The right side of CE.4 needs no p_t, which may round to 0 and has no logarithm then. The
derivative is as short as a derivative can be: ∂h drops out, ∂ln Z/∂z_c is p_c, and −z_t
gives −1 at the right class.

    dz_c = (1/N)·(p_c − δ_ct)                                         [CE.6]
    ∑_c dz_c = 0                                                      [CE.7]
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
        if ((nrm_acc)z[c] > h) h = (nrm_acc)z[c];                           /* CE.1 */
    for (c = 0; c < C; c += NRM_SOME) {
        const size_t some = nrmi_least(C - c, NRM_SOME);
        nrm_acc e[NRM_SOME];
        for (i = 0; i < some; i++) e[i] = (nrm_acc)z[c + i] - h;
        for (; i < NRM_SOME; i++) e[i] = 0;
        nrmi_exp(e);
        for (i = 0; i < some; i++) sum += e[i];                             /* CE.2 */
        for (i = 0; i < some && p != NULL; i++) p[c + i] = (nrm_real)e[i];
    }
    for (c = 0; c < C && p != NULL; c++) p[c] = (nrm_real)((nrm_acc)p[c] / sum); /* CE.3 */
    if (!nrmi_finite(sum)) return sum;
    return nrmi_log(sum) + (h - right);                                     /* CE.4 */
}

static int nrmi_check_cross_entropy(const nrm_acc *loss, const nrm_real *prob,
                                    const nrm_real *logits, const int *labels, size_t N, size_t C)
{
    nrmi_span buffer[4];
    buffer[0] = nrmi_accs(loss, 1);
    buffer[1] = nrmi_reals(prob, N * C);
    buffer[2] = nrmi_ints(labels, N);
    buffer[3] = nrmi_reals(logits, N * C);
    return prob == logits ? nrmi_check_apart(buffer, 3, 2) : nrmi_check_apart(buffer, 4, 2);
}

NRM_DEF int nrm_cross_entropy_forward(nrm_acc *loss, nrm_real *prob, const nrm_real *logits,
                                      const int *labels, size_t N, size_t C)
{
    nrm_acc sum = 0;
    size_t n;
    int rc = nrmi_check_volume(N, C, 1);
    if (rc != NRM_OK) return rc;
    if (loss == NULL || (N > 0 && (logits == NULL || labels == NULL))) return NRM_ENULL;
    rc = nrmi_check_labels(labels, N, C);
    if (rc != NRM_OK) return rc;
    if (nrmi_check_cross_entropy(loss, prob, logits, labels, N, C) != NRM_OK) return NRM_EALIAS;
    for (n = 0; n < N; n++)
        sum += nrmi_cross_entropy_row(prob != NULL ? prob + n * C : NULL, logits + n * C,
                                      (size_t)labels[n], C);
    *loss = N > 0 ? sum / (nrm_acc)N : 0;                                   /* CE.5 */
    return nrmi_finite(*loss) ? NRM_OK : NRM_NONFINITE;
}

NRM_DEF int nrm_cross_entropy_backward(nrm_real *dlogits, const nrm_real *prob, const int *labels,
                                       size_t N, size_t C)
{
    size_t n, c;
    int rc = nrmi_check_volume(N, C, 1);
    if (rc != NRM_OK || N == 0) return rc;
    if (dlogits == NULL || prob == NULL || labels == NULL) return NRM_ENULL;
    rc = nrmi_check_labels(labels, N, C);
    if (rc != NRM_OK) return rc;
    if (nrmi_check_in_place(nrmi_reals(dlogits, N * C), nrmi_reals(prob, N * C)) != NRM_OK ||
        nrmi_overlap(nrmi_reals(dlogits, N * C), nrmi_ints(labels, N)))
        return NRM_EALIAS;
    for (n = 0; n < N; n++)
        for (c = 0; c < C; c++) {
            const nrm_acc delta = (size_t)labels[n] == c ? 1 : 0;
            dlogits[n * C + c] =
                (nrm_real)(((nrm_acc)prob[n * C + c] - delta) / (nrm_acc)N); /* CE.6 */
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
    size_t n;
    int rc = nrmi_check_volume(N, C, 1);
    if (rc == NRM_OK && C > 0x7fffffffu) rc = NRM_ESIZE;
    if (rc != NRM_OK || N == 0) return rc;
    if (labels == NULL || logits == NULL) return NRM_ENULL;
    if (nrmi_overlap(nrmi_ints(labels, N), nrmi_reals(logits, N * C))) return NRM_EALIAS;
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
    size_t n, hits = 0;
    int rc = nrmi_check_volume(N, C, 1);
    if (rc != NRM_OK) return rc;
    if (accuracy == NULL || (N > 0 && (logits == NULL || labels == NULL))) return NRM_ENULL;
    rc = nrmi_check_labels(labels, N, C);
    if (rc != NRM_OK) return rc;
    if (nrmi_overlap(nrmi_accs(accuracy, 1), nrmi_reals(logits, N * C)) ||
        nrmi_overlap(nrmi_accs(accuracy, 1), nrmi_ints(labels, N)))
        return NRM_EALIAS;
    for (n = 0; n < N; n++) {
        const size_t best = nrmi_argmax_row(logits + n * C, C);
        hits += best == (size_t)labels[n];
        if (best == C) rc = NRM_NONFINITE;
    }
    *accuracy = N > 0 ? (nrm_acc)hits / (nrm_acc)N : 0;
    return rc;
}

/*
## 17  A recurrent layer

*The question it answers: what becomes of a gradient that goes through the same weights five
hundred times, and what does a norm in the loop change?*

A recurrent layer reads a sequence step by step and keeps a state, H numbers, that each step
makes anew from the old state and its own input. Seen from the loss it is a network of T
layers that share one set of weights, and whatever depth does to a network it does here
without mercy. Ba, Kiros and Hinton had this place in mind for layer norm: each step of each
sequence is judged by its own units, one γ and one β serve all steps, and it does not matter
how long a sequence is.

### 17.1  Shapes

T steps, N sequences side by side, `in` inputs, H units. All arrays go step by step: x is
`[T][N][in]`, the summed inputs a are `[T][N][H]`, the states h `[T+1][N][H]`. Step t makes
h[t+1] out of h[t] and x[t], so h[0] is the state to start from, and yours to set. μ and r
are `[T][N]` for layer norm, one of each for every row of a, and `[T][H]` for batch norm,
one of each for every unit at every step. T = 0 is a well-defined nothing, as N = 0 is.

### 17.2  Forward

    a[t] = x[t]·Wx + h[t]·Wh                                          [RNN.1]
    z[t] = γ·norm(a[t]) + β                                           [RNN.2]
    h[t+1] = f(z[t])                                                  [RNN.3]

γ and β act unit by unit. The norm is LN.4 on each row of a[t], or BN.4 on each column, or
none; then z[t] = a[t] + β, and β is the usual bias.

There is one norm for the sum of both terms, as in the plain cell of the paper (its LSTM and
GRU have one for each), and that matters more than it seems: a loud input takes most of the
variance that the row is divided by, and leaves the state little. Layer norm and the cell
without a norm compute the same in all three modes. They take the mode nevertheless, and
refuse a backward pass in infer mode, where μ and r need not be kept.

All of x·Wx is one product of T·N rows; each a then goes on with its running sum (LIN.5)
over the units. That second half has to wait for h[t]: it is T products of N rows each, and
each reads all of Wh. Sequences side by side share that reading.

### 17.3  Why batch norm is awkward here

The state of step 1 is not distributed as that of step 50. Averaged over the steps, running
statistics would be right for none of them; so there is one entry, `running[t]`, for each
step (Cooijmans et al., 2016). What follows from that:

- 2·T·H numbers to keep. T is how many entries you have; there is nothing that we could
  compare it with.
- A sequence longer than those of the training has no statistics for its end. Have entries
  ready for the longest one that will ever come, starting at 0 and 1 as always: then a step
  that no batch has entered, when batches did enter the first, is seen, and refused
  (`NRM_ESIZE`). What is usually done is to go on with the last statistics that there are:
  let the later entries be copies of that one.
- Sequences end at different steps. Towards the end of a batch few are still running, and
  few values make bad statistics; with one left there are none (`NRM_EBATCH`). All N
  sequences of a call have the same length here, so group them by length; padding would
  count as data.
- In training, what is made of a sequence depends on who is beside it.

Layer norm has none of these troubles.
*/

/* How many means a step has. */
static size_t nrmi_rnn_groups(const nrm_rnn *rnn)
{
    if (rnn->norm == NRM_NO_NORM) return 0;
    return rnn->norm == NRM_LAYER_NORM ? rnn->N : rnn->H;
}

/* Statistics of step t. */
static nrm_acc *nrmi_rnn_saved(nrm_acc *of_all, const nrm_rnn *rnn, size_t t)
{
    return of_all != NULL ? of_all + t * nrmi_rnn_groups(rnn) : NULL;
}

static int nrmi_check_rnn_sizes(size_t T, size_t N, size_t in, size_t H)
{
    int rc = nrmi_check_volume(1, in, H);
    if (rc == NRM_OK) rc = nrmi_check_volume(1, H, H);
    if (rc == NRM_OK && T == SIZE_MAX) rc = NRM_EOVERFLOW;
    if (rc == NRM_OK) rc = nrmi_check_volume(N, T + 1, H);
    if (rc == NRM_OK) rc = nrmi_check_volume(N, T + 1, in);
    return rc;
}

static int nrmi_check_rnn(const nrm_rnn *rnn, int mode)
{
    int rc;
    if (rnn == NULL) return NRM_ENULL;
    if (mode != NRM_TRAIN && mode != NRM_INFER && mode != NRM_FROZEN) return NRM_EMODE;
    if (rnn->norm != NRM_NO_NORM && rnn->norm != NRM_LAYER_NORM && rnn->norm != NRM_BATCH_NORM)
        return NRM_EKIND;
    rc = nrmi_check_activation(rnn->activation, 1);
    if (rc == NRM_OK) rc = nrmi_check_rnn_sizes(rnn->T, rnn->N, rnn->in, rnn->H);
    if (rc == NRM_OK && rnn->norm != NRM_NO_NORM) rc = nrmi_check_eps(rnn->eps);
    if (rc == NRM_OK && rnn->norm == NRM_BATCH_NORM && mode == NRM_TRAIN && rnn->N == 1)
        rc = NRM_EBATCH;
    return rc;
}

/* Are the running statistics of all steps usable, and apart from the `count` buffers of the call,
   of which the first `outs` are written? Steps may share theirs. */
static int nrmi_check_rnn_running(const nrm_rnn *rnn, int mode, const nrmi_span *buffer,
                                  size_t count, size_t outs)
{
    const size_t foes = mode == NRM_TRAIN ? count : outs;
    nrmi_span own[2];
    size_t t, i;
    int rc;
    if (rnn->running == NULL) return mode == NRM_TRAIN ? NRM_OK : NRM_ENULL;
    for (t = 0; t < rnn->T; t++) {
        rc = nrmi_check_running(&rnn->running[t], mode, rnn->H);
        if (rc != NRM_OK) return rc;
        if (mode != NRM_TRAIN && rnn->running[t].batches == 0 && rnn->running[0].batches > 0)
            return NRM_ESIZE; /* the sequence is longer than those of the training */
        own[0] = nrmi_reals(rnn->running[t].mean, rnn->H);
        own[1] = nrmi_reals(rnn->running[t].var, rnn->H);
        if (mode == NRM_TRAIN && nrmi_overlap(own[0], own[1])) return NRM_EALIAS;
        for (i = 0; i < foes; i++)
            if (nrmi_overlap(own[0], buffer[i]) || nrmi_overlap(own[1], buffer[i]))
                return NRM_EALIAS;
    }
    return NRM_OK;
}

static int nrmi_check_rnn_forward(const nrm_real *h, const nrm_real *a, const nrm_acc *mean,
                                  const nrm_acc *rstd, const nrm_real *x, const nrm_rnn *rnn,
                                  int mode)
{
    const size_t rows = rnn->T * rnn->N, H = rnn->H, saved = rnn->T * nrmi_rnn_groups(rnn);
    const int norm = rnn->norm != NRM_NO_NORM;
    nrmi_span buffer[9];
    if (h == NULL || a == NULL || x == NULL || rnn->Wx == NULL || rnn->Wh == NULL)
        return NRM_ENULL;
    if (norm && (mode != NRM_INFER || mean != NULL || rstd != NULL) &&
        (mean == NULL || rstd == NULL))
        return NRM_ENULL;
    buffer[0] = nrmi_reals(h, rows * H + rnn->N * H);
    buffer[1] = nrmi_reals(a, rows * H);
    buffer[2] = nrmi_accs(norm ? mean : NULL, saved);
    buffer[3] = nrmi_accs(norm ? rstd : NULL, saved);
    buffer[4] = nrmi_reals(x, rows * rnn->in);
    buffer[5] = nrmi_reals(rnn->Wx, rnn->in * H);
    buffer[6] = nrmi_reals(rnn->Wh, H * H);
    buffer[7] = nrmi_reals(norm ? rnn->gamma : NULL, H);
    buffer[8] = nrmi_reals(rnn->beta, H);
    if (nrmi_check_apart(buffer, 9, 4) != NRM_OK) return NRM_EALIAS;
    return rnn->norm == NRM_BATCH_NORM ? nrmi_check_rnn_running(rnn, mode, buffer, 9, 4) : NRM_OK;
}

/* h[t+1] out of a[t]. */
static int nrmi_rnn_step(nrm_real *h, nrm_acc *mean, nrm_acc *rstd, nrm_running *running,
                         const nrm_real *a, const nrm_rnn *rnn, int mode)
{
    const size_t N = rnn->N, H = rnn->H;
    size_t n, i;
    int rc = NRM_OK;
    if (rnn->norm == NRM_LAYER_NORM) /* RNN.2 */
        rc = nrm_layernorm_forward(h, mean, rstd, a, rnn->gamma, rnn->beta, rnn->eps, N, H);
    else if (rnn->norm == NRM_BATCH_NORM)
        rc = nrm_batchnorm_forward(h, mean, rstd, running, a, rnn->gamma, rnn->beta, mode,
                                   rnn->eps, N, H, 1);
    else
        for (n = 0; n < N; n++)
            for (i = 0; i < H; i++)
                h[n * H + i] = rnn->beta != NULL ? a[n * H + i] + rnn->beta[i] : a[n * H + i];
    (void)nrm_activation_forward(h, h, rnn->activation, N * H); /* RNN.3 */
    return rc;
}

NRM_DEF int nrm_rnn_forward(nrm_real *h, nrm_real *a, nrm_acc *mean, nrm_acc *rstd,
                            const nrm_real *x, const nrm_rnn *rnn, int mode)
{
    size_t t, N, H;
    int rc = nrmi_check_rnn(rnn, mode);
    if (rc != NRM_OK || rnn->N == 0 || rnn->T == 0) return rc;
    rc = nrmi_check_rnn_forward(h, a, mean, rstd, x, rnn, mode);
    if (rc != NRM_OK) return rc;
    N = rnn->N;
    H = rnn->H;
    nrmi_product(a, nrmi_view(x, rnn->in, 1), nrmi_view(rnn->Wx, H, 1), rnn->T * N, H, rnn->in, 1);
    for (t = 0; t < rnn->T; t++, h += N * H, a += N * H) {
        nrm_running *running = rnn->running != NULL ? rnn->running + t : NULL;
        nrmi_product(a, nrmi_view(h, H, 1), nrmi_view(rnn->Wh, H, 1), N, H, H, 0); /* RNN.1 */
        if (nrmi_rnn_step(h + N * H, nrmi_rnn_saved(mean, rnn, t), nrmi_rnn_saved(rstd, rnn, t),
                          running, a, rnn, mode) != NRM_OK)
            rc = NRM_NONFINITE;
    }
    return rc;
}

/*
### 17.4  Backward, through time

The loss may look at any of the states. Let e[t] be what it says of h[t] directly, with the
later states held fixed: that is what `dh` holds when the pass begins. But h[t] also makes
h[t+1], and so the gradient comes from the end, one step at a time. Within a step there is
nothing new: the activation, by its output h[t+1] (ACT.4 to ACT.6); the norm, for g = γ·dz;
the product.

    dz[t] = dh[t+1]·f′(z[t])                                          [RNN.4]
    da[t] = r·(g − ⟨g⟩ − x̂·⟨g·x̂⟩), or g·r if frozen, or dz[t]         [RNN.5]
    dh[t] = e[t] + da[t]·Whᵀ, and dh[T] = e[T]                        [RNN.6]

RNN.5 is LN.14 or BN.19; the second form is BN.20, of batch norm in mode frozen, and without
a norm da is dz. As RNN.6 adds to what is there already, `dh` turns from e into the whole
gradient of each state, and an experiment that wants to see how far back the loss can feel
has nothing more to compute.

The parameters are the same at all steps, so their gradients are sums over steps and
sequences. Once all of da is known, each is one product of T·N rows:

    dWh = h[0]ᵀ·da[0] + h[1]ᵀ·da[1] + … + h[T−1]ᵀ·da[T−1]             [RNN.7]
    dWx = x[0]ᵀ·da[0] + x[1]ᵀ·da[1] + … + x[T−1]ᵀ·da[T−1]             [RNN.8]
    dx[t] = da[t]·Wxᵀ                                                 [RNN.9]

γ and β add up as in LN.8 and LN.9, or BN.12 and BN.13, from step to step; without a norm dβ
is the sum of all da.

### 17.5  The product of T Jacobians

Take a single sequence. One step back is linear in dh; written as a matrix, for layer norm,
the step is

    ∂h[t+1]ᵢ/∂h[t]ₖ = J[t]ₖᵢ = ∑ⱼ Whₖⱼ·r·(δⱼᵢ − 1/H − x̂ⱼ·x̂ᵢ/H)·γᵢ·f′(zᵢ)  [RNN.10]

and a loss that looks at the last state only, so that e[t] = 0 before it, has the gradient,
as a column,

    dh[t] = J[t]·J[t+1]·…·J[T−1]·dh[T]                                [RNN.11]

A product of T matrices, each of which stretches by a factor of c on average, stretches by c
to the power of T: a quarter more at each step is 10⁴⁸ after 500, a quarter less 10⁻⁶². What
a single step does is easy to say for random weights, independent of each other with mean 0
and variance s²/H. For any da that knows nothing of them,

    E[|da·Whᵀ|²] = s²·|da|²                                           [RNN.12]

Without a norm, da is dh times f′, so a step's factor is s times the root mean square of f′:
there is one s at which it is 1, and nobody hands it to us. With layer norm the factor is
also multiplied by γ·r; and 1/r² is, but for ε, the variance of the row, which is s²·⟨h²⟩
plus what the input adds. If there is no input, or if Wx has been stretched along with Wh, s
cancels. Whatever stretches the gradient on its way back has also stretched the row on its
way forth, and there the norm has divided by it:

    norm(c·a) = norm(a) for c > 0, ε = 0                              [RNN.13]

That is all that layer norm promises, and it is not yet a factor of 1. What is left, without
input, is the root of γ²·⟨f′²⟩/⟨h²⟩, a matter of f and γ: 1 for ReLU, 1.085 for tanh with γ
= 1, 1.00006 for tanh with γ = 0.1. Input at every step makes it less, for then the state's
part of the variance is not all: the cell forgets. docs/experiments/20_recurrent_norm.md
derives these figures, and measures where they hold and where they do not.

The same fact from the side of the gradient: a[t] is linear in x[t] and h[t] together, and
to stretch a row changes nothing. With LN.15 and LN.16, for one row of a,

    ∑ₖ h[t]ₖ·(dh[t] − e[t])ₖ + ∑ᵢ x[t]ᵢ·dx[t]ᵢ = H·ε·r²·⟨g·x̂⟩         [RNN.14]

In a step without input the gradient that comes from later steps has, but for ε, no part
along the state itself; and summed over all rows, the left side is that for the weights:

    ∑ₖⱼ Whₖⱼ·dWhₖⱼ + ∑ᵢⱼ Wxᵢⱼ·dWxᵢⱼ = the sum of H·ε·r²·⟨g·x̂⟩ over all rows  [RNN.15]

So, but for ε, the gradient does not ask for Wh and Wx to grow or shrink together.
*/
static int nrmi_check_rnn_backward(const nrm_real *dh, const nrm_real *dx,
                                   const nrm_rnn_grads *grads, const nrm_real *da,
                                   const nrm_real *h, const nrm_real *a, const nrm_acc *mean,
                                   const nrm_acc *rstd, const nrm_real *x, const nrm_rnn *rnn)
{
    const size_t rows = rnn->T * rnn->N, H = rnn->H, saved = rnn->T * nrmi_rnn_groups(rnn);
    const int norm = rnn->norm != NRM_NO_NORM;
    nrmi_span buffer[15];
    if (dh == NULL || da == NULL || h == NULL || rnn->Wh == NULL) return NRM_ENULL;
    if (norm && (a == NULL || mean == NULL || rstd == NULL)) return NRM_ENULL;
    if ((dx != NULL && rnn->Wx == NULL) || (grads->dWx != NULL && x == NULL)) return NRM_ENULL;
    buffer[0] = nrmi_reals(dh, rows * H + rnn->N * H);
    buffer[1] = nrmi_reals(dx, rows * rnn->in);
    buffer[2] = nrmi_reals(da, rows * H);
    buffer[3] = nrmi_reals(grads->dWx, rnn->in * H);
    buffer[4] = nrmi_reals(grads->dWh, H * H);
    buffer[5] = nrmi_reals(norm ? grads->dgamma : NULL, H);
    buffer[6] = nrmi_reals(grads->dbeta, H);
    buffer[7] = nrmi_reals(h, rows * H + rnn->N * H);
    buffer[8] = nrmi_reals(norm ? a : NULL, rows * H);
    buffer[9] = nrmi_accs(norm ? mean : NULL, saved);
    buffer[10] = nrmi_accs(norm ? rstd : NULL, saved);
    buffer[11] = nrmi_reals(x, rows * rnn->in);
    buffer[12] = nrmi_reals(rnn->Wx, rnn->in * H);
    buffer[13] = nrmi_reals(rnn->Wh, H * H);
    buffer[14] = nrmi_reals(norm ? rnn->gamma : NULL, H);
    return nrmi_check_apart(buffer, 15, 7);
}

/* da[t] out of dh[t+1], and the step's part of dgamma and dbeta. */
static void nrmi_rnn_step_backward(nrm_real *da, const nrm_rnn_grads *grads, const nrm_real *dh,
                                   const nrm_real *h, const nrm_real *a, const nrm_acc *mean,
                                   const nrm_acc *rstd, const nrm_rnn *rnn, int mode)
{
    const size_t N = rnn->N, H = rnn->H;
    (void)nrm_activation_backward(da, dh, h, rnn->activation, N * H); /* RNN.4 */
    if (rnn->norm == NRM_LAYER_NORM)                                  /* RNN.5 */
        (void)nrm_layernorm_backward(da, grads->dgamma, grads->dbeta, da, a, mean, rstd,
                                     rnn->gamma, N, H);
    else if (rnn->norm == NRM_BATCH_NORM)
        (void)nrm_batchnorm_backward(da, grads->dgamma, grads->dbeta, da, a, mean, rstd,
                                     rnn->gamma, mode, N, H, 1);
}

/* RNN.4 to RNN.6, from the last step to the first. */
static void nrmi_rnn_through_time(nrm_real *dh, nrm_real *da, const nrm_rnn_grads *grads,
                                  const nrm_real *h, const nrm_real *a, const nrm_acc *mean,
                                  const nrm_acc *rstd, const nrm_rnn *rnn, int mode)
{
    const size_t N = rnn->N, H = rnn->H, step = N * H, groups = nrmi_rnn_groups(rnn);
    size_t t = rnn->T;
    while (t-- > 0) {
        const size_t at = t * step, s = t * groups;
        const int norm = groups > 0;
        nrmi_rnn_step_backward(da + at, grads, dh + at + step, h + at + step,
                               norm ? a + at : NULL, norm ? mean + s : NULL,
                               norm ? rstd + s : NULL, rnn, mode);
        nrmi_product(dh + at, nrmi_view(da + at, H, 1), nrmi_view(rnn->Wh, 1, H), N, H, H,
                     0); /* RNN.6 */
    }
}

NRM_DEF int nrm_rnn_backward(nrm_real *dh, nrm_real *dx, const nrm_rnn_grads *grads, nrm_real *da,
                             const nrm_real *h, const nrm_real *a, const nrm_acc *mean,
                             const nrm_acc *rstd, const nrm_real *x, const nrm_rnn *rnn, int mode)
{
    nrm_rnn_grads none;
    nrm_real *dbias;
    int rc = nrmi_check_rnn(rnn, mode);
    if (rc == NRM_OK && mode == NRM_INFER) rc = NRM_EMODE;
    if (rc != NRM_OK || rnn->N == 0 || rnn->T == 0) return rc;
    NRM_MEMSET(&none, 0, sizeof none);
    if (grads == NULL) grads = &none;
    rc = nrmi_check_rnn_backward(dh, dx, grads, da, h, a, mean, rstd, x, rnn);
    if (rc != NRM_OK) return rc;
    nrmi_rnn_through_time(dh, da, grads, h, a, mean, rstd, rnn, mode);
    dbias = rnn->norm == NRM_NO_NORM ? grads->dbeta : NULL; /* a norm has added to its own */
    nrmi_linear_backward(NULL, grads->dWh, NULL, da, h, NULL, rnn->T * rnn->N, rnn->H, rnn->H,
                         0);                                                       /* RNN.7 */
    nrmi_linear_backward(dx, grads->dWx, dbias, da, x, rnn->Wx, rnn->T * rnn->N, rnn->in,
                         rnn->H, 0);                                      /* RNN.8 and RNN.9 */
    return rc;
}

/*
## 18  The tiny multilayer perceptron

Enough of a network to run the experiments: linear layers, each with a norm and an
activation of your choice, softmax cross-entropy at the end, and two optimizers. With h the
output of the layer below, a layer is

    h′ = f(norm(h·W + b))                                             [MLP.1]
    h′ = norm(f(h·W + b)) with `norm_after`                           [MLP.2]

### 18.1  Is the bias redundant?

Before a *batch* norm it is: b shifts all values of a channel alike, the mean shifts with
them, and x̂ does not see it. Its gradient is zero by BN.21, so that only rounding noise
moves it (and Adam, which divides by the size of the gradient, makes steps out of that
noise). With running statistics, in infer and frozen mode, it does count.

    BN(x + b) = BN(x) for b constant in each channel                  [MLP.3]

Before a *layer* norm it is not quite: there b differs from feature to feature of the row
that is averaged, and only its mean over the features is lost.

    LN(x + b) = LN(x + b − ⟨b⟩)                                       [MLP.4]

So `bias` is a choice of yours, not a rule of ours. After an activation (`norm_after`)
neither cancels.

### 18.2  Initialisation

Weights start random so that units differ, and at a scale that neither blows up nor starves
the next layer: ReLU, for one, keeps half of the mean square, so that the variance 2/in
hands it on unchanged. With `in` inputs and `out` outputs:

    W ~ N(0, 2/in) (He)                                               [MLP.5]
    W ~ U(−a, a), a = √(6/(in + out)) (Xavier, also called Glorot)    [MLP.6]
    W ~ N(0, s²), s = init_std (plain Gaussian)                       [MLP.7]
    W, b ~ U(−a, a), a = 1/√in (fan-in: PyTorch's default)            [MLP.8]

Each array is drawn from a stream of its own, numbered by layer and purpose. So two networks
with the same seed that differ in their norms still share every weight matrix: what
experiments want to compare.

### 18.3  Optimizers

Gradient descent with Polyak's heavy ball, in the form that PyTorch has, and Adam (Kingma
and Ba 2015). θ is a parameter, g its gradient, η the learning rate, t the number of the
step, starting at 1; κ is `heavy_ball`, β₁ and β₂ are `beta1` and `beta2`, and ε here is
`adam_eps`. a and b start at 0; in Adam they are running averages of g and g², and dividing
by 1 − βᵗ undoes the zero start.

    a ← κ·a + g                                                       [OPT.1]
    θ ← θ − η·a                                                       [OPT.2]

    a ← β₁·a + (1 − β₁)·g                                             [OPT.3]
    b ← β₂·b + (1 − β₂)·g²                                            [OPT.4]
    θ ← θ − η·(a/(1 − β₁ᵗ))/(√(b/(1 − β₂ᵗ)) + ε)                      [OPT.5]

### 18.4  Memory

`nrm_mlp_bytes` says how large a block you must bring, and `nrm_mlp_init` lays out in it the
network, its parameters in one array (so that an experiment can copy, move and restore them
with one memcpy), their gradients, the optimizer's memory, and the activations for up to
`max_batch` examples. The same routine measures and lays out, so the two cannot disagree.
*/
NRM_DEF nrm_mlp_spec nrm_mlp_defaults(void)
{
    nrm_mlp_spec spec;
    NRM_MEMSET(&spec, 0, sizeof spec);
    spec.init_std = (nrm_real)0.01;
    spec.eps = NRM_EPS;
    spec.new_weight = (nrm_real)0.1;
    spec.noise = nrm_noise_paper();
    spec.r_max = 1;
    spec.lr = (nrm_real)0.1;
    spec.beta1 = (nrm_real)0.9;
    spec.beta2 = (nrm_real)0.999;
    spec.adam_eps = (nrm_real)1e-8;
    return spec;
}

/* The norms that look at the batch, and keep running statistics. */
static int nrmi_has_batch_norm(const nrm_mlp_layer *shape)
{
    return shape->norm == NRM_BATCH_NORM || shape->norm == NRM_NOISY_BATCH_NORM ||
           shape->norm == NRM_BATCH_RENORM || shape->norm == NRM_LP_BATCH_NORM;
}

static int nrmi_check_layer(const nrm_mlp_layer *layer)
{
    if (layer->width == 0) return NRM_ESIZE;
    if (layer->activation < NRM_IDENTITY || layer->activation > NRM_SIGMOID) return NRM_EKIND;
    if (layer->norm < NRM_NO_NORM || layer->norm > NRM_LP_BATCH_NORM) return NRM_EKIND;
    if (layer->norm == NRM_LP_BATCH_NORM) return nrmi_check_lp(layer->p);
    if (layer->norm == NRM_GROUP_NORM)
        return nrmi_check_groups(1, layer->width, 1, layer->groups);
    return NRM_OK;
}

/* Is there more than one worker, and is batch norm theirs together? */
static int nrmi_synced(const nrm_mlp_spec *spec)
{
    return spec->sync.add != NULL;
}

static int nrmi_merged(const nrm_mlp_spec *spec)
{
    return spec->sync.merge != NULL;
}

/* Other batch norms have no merged form here. */
static int nrmi_check_sync(const nrm_mlp_spec *spec)
{
    size_t l;
    if (!nrmi_merged(spec)) return NRM_OK;
    if (!nrmi_synced(spec)) return NRM_ENULL;
    for (l = 0; l < spec->layers; l++)
        if (nrmi_has_batch_norm(&spec->layer[l]) && spec->layer[l].norm != NRM_BATCH_NORM)
            return NRM_EKIND;
    return NRM_OK;
}

static int nrmi_check_fraction(nrm_real v)
{
    return v >= 0 && v < 1;
}

NRM_DEF int nrm_mlp_check(const nrm_mlp_spec *spec)
{
    nrm_rng unused;
    size_t l;
    int rc;
    if (spec == NULL || spec->layer == NULL) return NRM_ENULL;
    if (spec->inputs == 0 || spec->layers == 0 || spec->max_batch == 0) return NRM_ESIZE;
    for (l = 0; l < spec->layers; l++) {
        rc = nrmi_check_layer(&spec->layer[l]);
        if (rc != NRM_OK) return rc;
    }
    if (spec->init < NRM_INIT_HE || spec->init > NRM_INIT_FAN_IN) return NRM_EKIND;
    if (spec->gamma_init != NRM_GAMMA_ONE && spec->gamma_init != NRM_GAMMA_UNIFORM)
        return NRM_EKIND;
    if (spec->optimizer != NRM_SGD && spec->optimizer != NRM_ADAM) return NRM_EKIND;
    if (!(spec->init_std >= 0) || !nrmi_finite((nrm_acc)spec->init_std)) return NRM_EKIND;
    if (!(spec->lr >= 0) || !nrmi_finite((nrm_acc)spec->lr)) return NRM_ERATE;
    if (!nrmi_check_fraction(spec->heavy_ball) || !nrmi_check_fraction(spec->beta1) ||
        !nrmi_check_fraction(spec->beta2) || nrmi_check_eps(spec->adam_eps) != NRM_OK)
        return NRM_ERATE;
    if (!spec->cumulative && !(spec->new_weight >= 0 && spec->new_weight <= 1)) return NRM_EWEIGHT;
    if (!(spec->r_max >= 1 && spec->d_max >= 0)) return NRM_ERATE;
    rc = nrmi_check_sync(spec);
    if (rc == NRM_OK) rc = nrmi_check_eps(spec->eps);
    return rc != NRM_OK ? rc : nrmi_check_noise(&spec->noise, &unused);
}

#define NRM_ALIGN 64 /* a cache line; also enough for any vector load */

typedef struct nrmi_arena { /* hands out pieces of the block; only counts when base is NULL */
    unsigned char *base;
    size_t used;
    int overflow;
} nrmi_arena;

/* rows x cols items of `size` bytes, aligned; NULL when measuring. */
static void *nrmi_take(nrmi_arena *arena, size_t rows, size_t cols, size_t size)
{
    const size_t at = arena->used, most = SIZE_MAX / 2;
    if (rows == 0 || cols == 0) return NULL;
    if (arena->overflow || cols > most / size || rows > most / (cols * size) ||
        at > most - NRM_ALIGN || rows * cols * size > most - NRM_ALIGN - at) {
        arena->overflow = 1;
        return NULL;
    }
    arena->used = (at + rows * cols * size + NRM_ALIGN - 1) / NRM_ALIGN * NRM_ALIGN;
    return arena->base != NULL ? arena->base + at : NULL;
}

static nrm_real *nrmi_take_reals(nrmi_arena *arena, size_t rows, size_t cols)
{
    return (nrm_real *)nrmi_take(arena, rows, cols, sizeof(nrm_real));
}

/* How many arrays of [width] a layer's norm has: gamma and beta, or gamma alone. */
static size_t nrmi_norm_params(const nrm_mlp_layer *shape)
{
    return shape->norm == NRM_NO_NORM ? 0 : shape->norm == NRM_RMS_NORM ? 1 : 2;
}

/* How many means its norm saves in a batch, and how many 1/σ. */
static size_t nrmi_norm_groups(const nrm_mlp_layer *shape, size_t max_batch)
{
    if (shape->norm == NRM_NO_NORM) return 0;
    if (nrmi_has_batch_norm(shape)) return shape->width;
    return max_batch * (shape->norm == NRM_GROUP_NORM ? shape->groups : 1);
}

/* Number of parameters of a layer; the arena notes an overflow. */
static size_t nrmi_layer_params(nrmi_arena *arena, size_t in, const nrm_mlp_layer *shape)
{
    const size_t others = (size_t)(shape->bias ? 1 : 0) + nrmi_norm_params(shape);
    if (in > SIZE_MAX / 16 || shape->width > SIZE_MAX / 16 / (in + 3)) {
        arena->overflow = 1;
        return 0;
    }
    return shape->width * (in + others);
}

/* The activations of one layer. Stages that a layer lacks share the buffer of the one before. */
static void nrmi_layout_layer(nrmi_arena *arena, nrm_mlp_state *state, const nrm_mlp_spec *spec)
{
    const nrm_mlp_layer *shape = &state->shape;
    const size_t width = shape->width, max_batch = spec->max_batch;
    const int has_norm = shape->norm != NRM_NO_NORM, has_act = shape->activation != NRM_IDENTITY;
    const size_t statistics = nrmi_norm_groups(shape, max_batch);
    nrm_real *norm_out, *act_out;
    state->linear_out = nrmi_take_reals(arena, max_batch, width);
    norm_out = has_norm ? nrmi_take_reals(arena, max_batch, width) : NULL;
    act_out = has_act ? nrmi_take_reals(arena, max_batch, width) : NULL;
    if (shape->norm_after) {
        state->act_out = has_act ? act_out : state->linear_out;
        state->norm_out = has_norm ? norm_out : state->act_out;
        state->out = state->norm_out;
    } else {
        state->norm_out = has_norm ? norm_out : state->linear_out;
        state->act_out = has_act ? act_out : state->norm_out;
        state->out = state->act_out;
    }
    if (shape->norm != NRM_RMS_NORM)
        state->mean = (nrm_acc *)nrmi_take(arena, 1, statistics, sizeof(nrm_acc));
    state->rstd = (nrm_acc *)nrmi_take(arena, 1, statistics, sizeof(nrm_acc));
    if (nrmi_has_batch_norm(shape)) {
        state->running.mean = nrmi_take_reals(arena, 1, width);
        state->running.var = nrmi_take_reals(arena, 1, width);
        if (shape->norm != NRM_LP_BATCH_NORM) /* whose t cannot be had from a variance */
            state->stats = (nrm_stats *)nrmi_take(arena, 1, width, sizeof(nrm_stats));
        if (nrmi_merged(spec))
            state->sums = (nrm_sums *)nrmi_take(arena, 1, width, sizeof(nrm_sums));
    }
    if (shape->norm == NRM_NOISY_BATCH_NORM)
        state->scale = nrmi_take_reals(arena, max_batch, width);
    if (shape->norm == NRM_BATCH_RENORM) {
        state->ratio = (nrm_acc *)nrmi_take(arena, 1, width, sizeof(nrm_acc));
        state->offset = (nrm_acc *)nrmi_take(arena, 1, width, sizeof(nrm_acc));
    }
}

/* Points a layer at its share of the parameters and gradients, in the order W, b, gamma, beta. */
static size_t nrmi_bind_params(nrm_mlp_state *state, nrm_real *params, nrm_real *grads)
{
    const size_t width = state->shape.width, weights = state->in * width;
    size_t at = weights;
    state->W = params;
    state->dW = grads;
    if (state->shape.bias) {
        state->b = params + at;
        state->db = grads + at;
        at += width;
    }
    if (nrmi_norm_params(&state->shape) > 0) {
        state->gamma = params + at;
        state->dgamma = grads + at;
        at += width;
    }
    if (nrmi_norm_params(&state->shape) > 1) {
        state->beta = params + at;
        state->dbeta = grads + at;
        at += width;
    }
    return at;
}

/* Lays the network out in the arena; with no base, only measures and returns NULL. */
static nrm_mlp *nrmi_layout(nrmi_arena *arena, const nrm_mlp_spec *spec)
{
    const int moments =
        spec->optimizer == NRM_ADAM ? 2 : spec->heavy_ball > 0 ? 1 : 0; /* arrays to remember */
    nrm_mlp *net = (nrm_mlp *)nrmi_take(arena, 1, 1, sizeof(nrm_mlp));
    nrm_mlp_state *state =
        (nrm_mlp_state *)nrmi_take(arena, 1, spec->layers, sizeof(nrm_mlp_state));
    size_t l, in = spec->inputs, params = 0, widest = 0;
    nrm_mlp made;
    NRM_MEMSET(&made, 0, sizeof made);
    for (l = 0; l < spec->layers && !arena->overflow; l++) {
        const size_t more = nrmi_layer_params(arena, in, &spec->layer[l]);
        nrm_mlp_state s;
        NRM_MEMSET(&s, 0, sizeof s);
        s.shape = spec->layer[l];
        s.in = in;
        nrmi_layout_layer(arena, &s, spec);
        if (state != NULL) state[l] = s;
        if (more > SIZE_MAX / 16 - params) arena->overflow = 1;
        params += more;
        in = spec->layer[l].width;
        if (in > widest) widest = in;
    }
    made.state = state;
    made.n_params = params;
    made.params = nrmi_take_reals(arena, 1, params);
    made.grads = nrmi_take_reals(arena, 1, params);
    if (moments > 0) made.moment1 = nrmi_take_reals(arena, 1, params);
    if (moments > 1) made.moment2 = nrmi_take_reals(arena, 1, params);
    if (nrmi_synced(spec))
        made.total = (nrm_acc *)nrmi_take(arena, 1, params + 1, sizeof(nrm_acc));
    made.prob = nrmi_take_reals(arena, spec->max_batch, in);
    made.work[0] = nrmi_take_reals(arena, spec->max_batch, widest);
    made.work[1] = nrmi_take_reals(arena, spec->max_batch, widest);
    if (net != NULL) *net = made;
    return net;
}

NRM_DEF size_t nrm_mlp_bytes(const nrm_mlp_spec *spec)
{
    nrmi_arena arena;
    if (nrm_mlp_check(spec) != NRM_OK) return 0;
    NRM_MEMSET(&arena, 0, sizeof arena);
    (void)nrmi_layout(&arena, spec);
    return arena.overflow ? 0 : arena.used + NRM_ALIGN;
}

enum { NRMI_STREAM_W = 0, NRMI_STREAM_B = 1, NRMI_STREAM_GAMMA = 2, NRMI_STREAM_NOISE = 3 };

static void nrmi_fill_uniform(nrm_real *a, size_t n, nrm_acc half_width, nrm_rng *rng)
{
    size_t i;
    for (i = 0; i < n; i++) a[i] = (nrm_real)(half_width * nrmi_symmetric(rng));
}

static void nrmi_fill_normal(nrm_real *a, size_t n, nrm_acc sd, nrm_rng *rng)
{
    size_t i;
    for (i = 0; i < n; i++) a[i] = (nrm_real)(sd * (nrm_acc)nrm_rng_normal(rng));
}

static void nrmi_init_layer(nrm_mlp_state *s, const nrm_mlp_spec *spec, size_t l)
{
    const nrm_acc in = (nrm_acc)s->in, out = (nrm_acc)s->shape.width;
    const size_t weights = s->in * s->shape.width;
    nrm_rng rng;
    size_t i;
    nrm_rng_seed(&rng, spec->seed, 4 * (uint64_t)l + NRMI_STREAM_W);
    switch (spec->init) {
    case NRM_INIT_HE:
        nrmi_fill_normal(s->W, weights, NRM_SQRT(2 / in), &rng); /* MLP.5 */
        break;
    case NRM_INIT_XAVIER:
        nrmi_fill_uniform(s->W, weights, NRM_SQRT(6 / (in + out)), &rng); /* MLP.6 */
        break;
    case NRM_INIT_GAUSSIAN:
        nrmi_fill_normal(s->W, weights, (nrm_acc)spec->init_std, &rng); /* MLP.7 */
        break;
    default:
        nrmi_fill_uniform(s->W, weights, 1 / NRM_SQRT(in), &rng); /* MLP.8 */
        break;
    }
    if (s->b != NULL && spec->init == NRM_INIT_FAN_IN) {
        nrm_rng_seed(&rng, spec->seed, 4 * (uint64_t)l + NRMI_STREAM_B);
        nrmi_fill_uniform(s->b, s->shape.width, 1 / NRM_SQRT(in), &rng);
    }
    nrm_rng_seed(&rng, spec->seed, 4 * (uint64_t)l + NRMI_STREAM_GAMMA);
    for (i = 0; s->gamma != NULL && i < s->shape.width; i++)
        s->gamma[i] = spec->gamma_init == NRM_GAMMA_UNIFORM ? nrm_rng_uniform(&rng) : 1;
    for (i = 0; s->running.var != NULL && i < s->shape.width; i++) s->running.var[i] = 1;
    s->running.new_weight = spec->new_weight;
    s->running.cumulative = spec->cumulative;
    s->running.biased = spec->biased;
}

NRM_DEF int nrm_mlp_init(nrm_mlp **net, void *block, size_t bytes, const nrm_mlp_spec *spec)
{
    nrmi_arena arena;
    nrm_mlp *made;
    size_t l, at = 0, need;
    const int rc = nrm_mlp_check(spec);
    if (rc != NRM_OK) return rc;
    if (net == NULL || block == NULL) return NRM_ENULL;
    need = nrm_mlp_bytes(spec);
    if (need == 0) return NRM_EOVERFLOW;
    if (bytes < need) return NRM_EBLOCK;
    NRM_MEMSET(block, 0, need);
    NRM_MEMSET(&arena, 0, sizeof arena);
    arena.base = (unsigned char *)block;
    arena.base += (NRM_ALIGN - (uintptr_t)block % NRM_ALIGN) % NRM_ALIGN;
    made = nrmi_layout(&arena, spec);
    made->spec = *spec;
    made->spec.layer = NULL;
    made->logits = made->state[spec->layers - 1].out;
    made->beta1_power = made->beta2_power = 1;
    for (l = 0; l < spec->layers; l++) {
        at += nrmi_bind_params(&made->state[l], made->params + at, made->grads + at);
        nrmi_init_layer(&made->state[l], spec, l);
    }
    nrm_rng_seed(&made->rng, spec->seed, NRMI_STREAM_NOISE);
    *net = made;
    return NRM_OK;
}

/*
### 18.5  Several workers

Data-parallel training: every worker has a copy of the network and its part of the batch,
N_w of N examples. The mean loss of the whole batch is

    L = ∑_w (N_w/N)·L_w                                               [MLP.9]

with L_w the mean over the worker's own examples, so that is the weight of its gradient, and
the gradients of the workers are added up. If the layers treat their examples one by one the
sum is the gradient of the undivided batch. Batch norm does not. If `merge` is there, it
exchanges the triples of ST.2 on the way up by `merge`, and the two sums of ST.5 on the way
back by `add`; then the sum is that gradient again, to rounding. Without `merge` each
worker's batch norm looks at its own part, and that is another function. How the numbers
travel is the business of the two functions in `spec.sync`; if they merge and add in the
order of the workers, all copies stay the same, bit for bit. `examples/mpi_batchnorm.c` does
it with MPI.

### 18.6  Forward and backward

A probe is called at every place that a layer has, with the value on the way up and its
gradient on the way down. That is how the experiments look into the network without changing
it.
*/
static void nrmi_show(const nrm_mlp *net, size_t l, int place, int gradient, const nrm_real *data,
                      size_t N)
{
    nrm_mlp_event event;
    if (net->probe == NULL) return;
    event.layer = l;
    event.place = place;
    event.gradient = gradient;
    event.data = data;
    event.rows = N;
    event.cols = net->state[l].shape.width;
    net->probe(net->probe_context, &event);
}

/* How a forward pass is meant, besides its mode: whether running statistics move on, and whether
   other workers are left out of it. */
enum { NRMI_TRACK = 1, NRMI_ALONE = 2 };

/* Section 9, forward: my statistics, everyone's, and the batch norm of all. */
static int nrmi_sync_forward(nrm_mlp *net, nrm_mlp_state *s, const nrm_real *in,
                             nrm_running *running, size_t N)
{
    const nrm_sync *sync = &net->spec.sync;
    const size_t width = s->shape.width;
    int rc;
    NRM_MEMSET(s->stats, 0, width * sizeof *s->stats);
    rc = nrm_stats_update(s->stats, in, NULL, N, width, 1);
    if (rc < 0) return rc;
    if (sync->merge(sync->context, s->stats, width) != 0) return NRM_ESYNC;
    return nrm_sync_batchnorm_forward(s->norm_out, s->mean, s->rstd, running, in, NULL, s->stats,
                                      s->gamma, s->beta, net->spec.eps, N, width, 1);
}

/* Batch renorm needs its running statistics even where they must not move: a weight of 0. */
static int nrmi_renorm_forward(nrm_mlp *net, nrm_mlp_state *s, const nrm_real *in, int mode,
                               int how, size_t N)
{
    nrm_running still = s->running;
    still.new_weight = 0;
    still.cumulative = 0;
    return nrm_batchrenorm_forward(s->norm_out, s->ratio, s->offset, s->mean, s->rstd,
                                   mode == NRM_TRAIN && !(how & NRMI_TRACK) ? &still : &s->running,
                                   in, s->gamma, s->beta, net->spec.r_max, net->spec.d_max, mode,
                                   net->spec.eps, N, s->shape.width, 1);
}

static int nrmi_norm_forward(nrm_mlp *net, size_t l, size_t N, int mode, int how)
{
    nrm_mlp_state *s = &net->state[l];
    const nrm_mlp_spec *spec = &net->spec;
    const nrm_real *in = s->shape.norm_after ? s->act_out : s->linear_out;
    nrm_running *running = mode == NRM_TRAIN && !(how & NRMI_TRACK) ? NULL : &s->running;
    const size_t width = s->shape.width;
    switch (s->shape.norm) {
    case NRM_LAYER_NORM:
        return nrm_layernorm_forward(s->norm_out, s->mean, s->rstd, in, s->gamma, s->beta,
                                     spec->eps, N, width);
    case NRM_GROUP_NORM:
        return nrm_groupnorm_forward(s->norm_out, s->mean, s->rstd, in, s->gamma, s->beta,
                                     spec->eps, N, width, 1, s->shape.groups);
    case NRM_RMS_NORM:
        return nrm_rmsnorm_forward(s->norm_out, s->rstd, in, s->gamma, spec->eps, N, width);
    case NRM_BATCH_RENORM:
        return nrmi_renorm_forward(net, s, in, mode, how, N);
    case NRM_LP_BATCH_NORM:
        return nrm_lp_batchnorm_forward(s->norm_out, s->mean, s->rstd, running, in, s->gamma,
                                        s->beta, s->shape.p, mode, spec->eps, N, width, 1);
    case NRM_NOISY_BATCH_NORM:
        return nrm_noisy_batchnorm_forward(s->norm_out, s->scale, s->mean, s->rstd, running, in,
                                           s->gamma, s->beta, &spec->noise, &net->rng, mode,
                                           spec->eps, N, width, 1);
    default:
        if (mode == NRM_TRAIN && nrmi_merged(spec) && !(how & NRMI_ALONE))
            return nrmi_sync_forward(net, s, in, running, N);
        return nrm_batchnorm_forward(s->norm_out, s->mean, s->rstd, running, in, s->gamma, s->beta,
                                     mode, spec->eps, N, width, 1);
    }
}

static int nrmi_act_forward(nrm_mlp *net, size_t l, size_t N)
{
    nrm_mlp_state *s = &net->state[l];
    const nrm_real *in = s->shape.norm_after ? s->linear_out : s->norm_out;
    const int rc =
        nrm_activation_forward(s->act_out, in, s->shape.activation, N * s->shape.width);
    if (rc >= 0) nrmi_show(net, l, NRM_AT_ACTIVATION, 0, s->act_out, N);
    return rc;
}

/* The two optional stages in their order: MLP.1 or MLP.2. */
static int nrmi_stages_forward(nrm_mlp *net, size_t l, size_t N, int mode, int how)
{
    const nrm_mlp_layer *shape = &net->state[l].shape;
    const int has_norm = shape->norm != NRM_NO_NORM, has_act = shape->activation != NRM_IDENTITY;
    int rc = NRM_OK, worst = NRM_OK, turn;
    for (turn = 0; turn < 2 && rc >= 0; turn++) {
        const int norm_turn = (turn == 0) == !shape->norm_after;
        if (norm_turn && has_norm) {
            rc = nrmi_norm_forward(net, l, N, mode, how);
            if (rc >= 0) nrmi_show(net, l, NRM_AT_NORM, 0, net->state[l].norm_out, N);
        }
        if (!norm_turn && has_act) rc = nrmi_act_forward(net, l, N);
        if (rc > worst) worst = rc;
    }
    return rc < 0 ? rc : worst;
}

static int nrmi_check_batch(const nrm_mlp *net, const nrm_real *x, size_t N, int mode)
{
    size_t l;
    if (net == NULL || (x == NULL && N > 0)) return NRM_ENULL;
    if (N > net->spec.max_batch) return NRM_ESIZE;
    if (mode != NRM_TRAIN && mode != NRM_INFER && mode != NRM_FROZEN) return NRM_EMODE;
    if (nrmi_merged(&net->spec)) return NRM_OK; /* the others may have more */
    for (l = 0; l < net->spec.layers && mode == NRM_TRAIN && N == 1; l++)
        if (nrmi_has_batch_norm(&net->state[l].shape)) return NRM_EBATCH;
    return NRM_OK;
}

/* A worker without examples still has to meet the others. */
static int nrmi_nothing_to_do(const nrm_mlp *net, size_t N)
{
    return N == 0 && !nrmi_synced(&net->spec);
}

/* The forward pass of a batch that has been checked. */
static int nrmi_mlp_forward(nrm_mlp *net, const nrm_real *x, size_t N, int mode, int how)
{
    size_t l;
    int rc, worst = NRM_OK;
    for (l = 0; l < net->spec.layers; l++) {
        nrm_mlp_state *s = &net->state[l];
        rc = nrm_linear_forward(s->linear_out, x, s->W, s->b, N, s->in, s->shape.width);
        if (rc < 0) return rc;
        nrmi_show(net, l, NRM_AT_LINEAR, 0, s->linear_out, N);
        rc = nrmi_stages_forward(net, l, N, mode, how);
        if (rc < 0) return rc;
        if (rc > worst) worst = rc;
        x = s->out;
    }
    return worst;
}

NRM_DEF int nrm_mlp_forward(nrm_mlp *net, const nrm_real *x, size_t N, int mode)
{
    const int rc = nrmi_check_batch(net, x, N, mode);
    if (rc != NRM_OK || nrmi_nothing_to_do(net, N)) return rc;
    return nrmi_mlp_forward(net, x, N, mode, NRMI_TRACK);
}

/* Section 9, backward: my sums, everyone's, and the gradient of my part. */
static int nrmi_sync_backward(nrm_mlp *net, nrm_mlp_state *s, nrm_real *d, const nrm_real *in,
                              size_t N)
{
    const nrm_sync *sync = &net->spec.sync;
    const size_t width = s->shape.width;
    const int rc = nrm_sync_batchnorm_sums(s->sums, s->dgamma, s->dbeta, d, in, NULL, s->mean,
                                           s->rstd, N, width, 1);
    if (rc < 0) return rc;
    /* a nrm_sums is two nrm_acc, and nothing else */
    if (sync->add(sync->context, &s->sums->dy, 2 * width) != 0) return NRM_ESYNC;
    return nrm_sync_batchnorm_backward(d, d, in, NULL, s->mean, s->rstd, s->gamma, s->stats,
                                       s->sums, N, width, 1);
}

static int nrmi_norm_backward(nrm_mlp *net, size_t l, nrm_real *d, size_t N, int mode)
{
    nrm_mlp_state *s = &net->state[l];
    const nrm_real *in = s->shape.norm_after ? s->act_out : s->linear_out;
    const size_t width = s->shape.width;
    switch (s->shape.norm) {
    case NRM_LAYER_NORM:
        return nrm_layernorm_backward(d, s->dgamma, s->dbeta, d, in, s->mean, s->rstd, s->gamma, N,
                                      width);
    case NRM_GROUP_NORM:
        return nrm_groupnorm_backward(d, s->dgamma, s->dbeta, d, in, s->mean, s->rstd, s->gamma, N,
                                      width, 1, s->shape.groups);
    case NRM_RMS_NORM:
        return nrm_rmsnorm_backward(d, s->dgamma, d, in, s->rstd, s->gamma, N, width);
    case NRM_BATCH_RENORM:
        return nrm_batchrenorm_backward(d, s->dgamma, s->dbeta, d, in, s->ratio, s->offset, s->mean,
                                        s->rstd, s->gamma, mode, N, width, 1);
    case NRM_LP_BATCH_NORM:
        return nrm_lp_batchnorm_backward(d, s->dgamma, s->dbeta, d, in, s->mean, s->rstd, s->gamma,
                                         s->shape.p, mode, net->spec.eps, N, width, 1);
    case NRM_NOISY_BATCH_NORM:
        return nrm_noisy_batchnorm_backward(d, s->dgamma, s->dbeta, d, s->scale, in, s->mean,
                                            s->rstd, s->gamma, mode, N, width, 1);
    default:
        if (mode == NRM_TRAIN && nrmi_merged(&net->spec))
            return nrmi_sync_backward(net, s, d, in, N);
        return nrm_batchnorm_backward(d, s->dgamma, s->dbeta, d, in, s->mean, s->rstd, s->gamma,
                                      mode, N, width, 1);
    }
}

static int nrmi_act_backward(nrm_mlp *net, size_t l, nrm_real *d, size_t N)
{
    nrm_mlp_state *s = &net->state[l];
    nrmi_show(net, l, NRM_AT_ACTIVATION, 1, d, N);
    return nrm_activation_backward(d, d, s->act_out, s->shape.activation, N * s->shape.width);
}

/* The stages of a layer, last first; d [N][width] is turned into the gradient of linear_out. */
static int nrmi_stages_backward(nrm_mlp *net, size_t l, nrm_real *d, size_t N, int mode)
{
    const nrm_mlp_layer *shape = &net->state[l].shape;
    const int has_norm = shape->norm != NRM_NO_NORM, has_act = shape->activation != NRM_IDENTITY;
    int rc = NRM_OK, turn;
    for (turn = 1; turn >= 0 && rc >= 0; turn--) {
        const int norm_turn = (turn == 0) == !shape->norm_after;
        if (norm_turn && has_norm) {
            nrmi_show(net, l, NRM_AT_NORM, 1, d, N);
            rc = nrmi_norm_backward(net, l, d, N, mode);
        }
        if (!norm_turn && has_act) rc = nrmi_act_backward(net, l, d, N);
    }
    return rc;
}

/* A loss can be finite where a gradient is not: zero times infinity is NaN. */
static int nrmi_all_finite(const nrm_real *a, size_t n)
{
    unsigned bad = 0; /* no early end: this way it takes eight numbers at a time */
    size_t i;
    for (i = 0; i < n; i++) bad |= a[i] - a[i] != 0;
    return bad == 0;
}

/* The gradients of one layer's parameters, from d, that of its output; d_below receives that of its
   input x. They are looked at while still in the cache: NRM_NONFINITE if one is not finite. */
static int nrmi_layer_backward(nrm_mlp *net, size_t l, nrm_real *d_below, nrm_real *d,
                               const nrm_real *x, size_t N, int mode)
{
    nrm_mlp_state *s = &net->state[l];
    const size_t width = s->shape.width, weights = s->in * width;
    const size_t others = width * ((s->b != NULL ? 1u : 0u) + nrmi_norm_params(&s->shape));
    int rc;
    NRM_MEMSET(s->dW + weights, 0, others * sizeof *s->dW); /* db, dgamma, dbeta stand behind dW */
    rc = nrmi_stages_backward(net, l, d, N, mode);
    if (rc < 0) return rc;
    nrmi_show(net, l, NRM_AT_LINEAR, 1, d, N);
    nrmi_linear_backward(d_below, s->dW, s->db, d, x, s->W, N, s->in, width, 1);
    return nrmi_all_finite(s->dW, weights + others) ? NRM_OK : NRM_NONFINITE;
}

/* From net->prob to net->grads; the gradients of two layers take turns in net->work. `share` is
   this worker's part of the batch. */
static int nrmi_mlp_backward(nrm_mlp *net, const nrm_real *x, const int *labels, size_t N, int mode,
                             nrm_real share)
{
    const size_t layers = net->spec.layers, classes = net->state[layers - 1].shape.width;
    nrm_real *d = net->work[0], *d_below = net->work[1], *swap;
    size_t l, i;
    int rc = nrm_cross_entropy_backward(d, net->prob, labels, N, classes), worst = rc;
    for (i = 0; i < N * classes && share != 1; i++) d[i] *= share; /* MLP.9 */
    for (l = layers; l-- > 0 && rc >= 0;) {
        rc = nrmi_layer_backward(net, l, l > 0 ? d_below : NULL, d,
                                 l > 0 ? net->state[l - 1].out : x, N, mode);
        if (rc > worst) worst = rc;
        swap = d;
        d = d_below;
        d_below = swap;
    }
    return rc < 0 ? rc : worst;
}

/* MLP.9: *loss becomes that of all workers' examples, *share the part of these that is here. */
static int nrmi_sync_loss(nrm_mlp *net, nrm_acc *loss, nrm_real *share, size_t N)
{
    const nrm_sync *sync = &net->spec.sync;
    nrm_acc sums[2];
    *share = 1;
    if (!nrmi_synced(&net->spec)) return NRM_OK;
    sums[0] = *loss * (nrm_acc)N;
    sums[1] = (nrm_acc)N;
    if (sync->add(sync->context, sums, 2) != 0) return NRM_ESYNC;
    *loss = sums[1] > 0 ? sums[0] / sums[1] : 0;
    *share = sums[1] > 0 ? (nrm_real)((nrm_acc)N / sums[1]) : 1;
    return NRM_OK;
}

/* The gradients of all workers added up; and if one of them has met something that is not finite,
   then all know it. */
static int nrmi_sync_gradients(nrm_mlp *net, int rc)
{
    const nrm_sync *sync = &net->spec.sync;
    const size_t n = net->n_params;
    size_t i;
    if (!nrmi_synced(&net->spec)) return rc;
    for (i = 0; i < n; i++) net->total[i] = (nrm_acc)net->grads[i];
    net->total[n] = rc == NRM_OK ? 0 : 1;
    if (sync->add(sync->context, net->total, n + 1) != 0) return NRM_ESYNC;
    for (i = 0; i < n; i++) net->grads[i] = (nrm_real)net->total[i];
    return net->total[n] == 0 && nrmi_all_finite(net->grads, n) ? NRM_OK : NRM_NONFINITE;
}

/* Forward, loss, backward. */
static int nrmi_mlp_loss_gradient(nrm_mlp *net, nrm_acc *loss, const nrm_real *x, const int *labels,
                                  size_t N, int mode, int how)
{
    const size_t classes = net->state[net->spec.layers - 1].shape.width;
    nrm_real share = 1;
    int rc = nrmi_mlp_forward(net, x, N, mode, how), worst = rc;
    if (rc >= 0) rc = nrm_cross_entropy_forward(loss, net->prob, net->logits, labels, N, classes);
    if (rc > worst) worst = rc;
    if (rc >= 0) rc = nrmi_sync_loss(net, loss, &share, N);
    if (rc >= 0) rc = nrmi_mlp_backward(net, x, labels, N, mode, share);
    if (rc > worst) worst = rc;
    return rc < 0 ? rc : nrmi_sync_gradients(net, worst);
}

static int nrmi_check_training(const nrm_mlp *net, const nrm_real *x, const int *labels, size_t N,
                               int mode)
{
    const int rc = nrmi_check_batch(net, x, N, mode);
    if (rc != NRM_OK) return rc;
    if (mode == NRM_INFER) return NRM_EMODE;
    if (labels == NULL && N > 0) return NRM_ENULL;
    return nrmi_check_labels(labels, N, net->state[net->spec.layers - 1].shape.width);
}

NRM_DEF int nrm_mlp_gradient(nrm_mlp *net, nrm_acc *loss, const nrm_real *x, const int *labels,
                             size_t N, int mode)
{
    nrm_acc value = 0;
    nrm_rng kept;
    int rc = nrmi_check_training(net, x, labels, N, mode);
    if (rc != NRM_OK) return rc;
    kept = net->rng;
    if (!nrmi_nothing_to_do(net, N))
        rc = nrmi_mlp_loss_gradient(net, &value, x, labels, N, mode, 0);
    net->rng = kept;
    if (loss != NULL && rc >= 0) *loss = value;
    return rc;
}

static void nrmi_sgd(nrm_mlp *net)
{
    const nrm_real lr = net->spec.lr, keep = net->spec.heavy_ball;
    size_t i;
    for (i = 0; i < net->n_params; i++) {
        nrm_real a = net->grads[i];
        if (net->moment1 != NULL) a = net->moment1[i] = keep * net->moment1[i] + a; /* OPT.1 */
        net->params[i] -= lr * a;                                                  /* OPT.2 */
    }
}

static void nrmi_adam(nrm_mlp *net)
{
    const nrm_real b1 = net->spec.beta1, b2 = net->spec.beta2, eps = net->spec.adam_eps;
    const nrm_acc lr = (nrm_acc)net->spec.lr;
    nrm_acc lift1, lift2;
    size_t i;
    net->beta1_power *= (nrm_acc)b1;
    net->beta2_power *= (nrm_acc)b2;
    lift1 = 1 / (1 - net->beta1_power);
    lift2 = 1 / (1 - net->beta2_power);
    for (i = 0; i < net->n_params; i++) {
        const nrm_real g = net->grads[i];
        const nrm_real a = net->moment1[i] = b1 * net->moment1[i] + (1 - b1) * g;     /* OPT.3 */
        const nrm_real b = net->moment2[i] = b2 * net->moment2[i] + (1 - b2) * g * g; /* OPT.4 */
        net->params[i] -= (nrm_real)(lr * ((nrm_acc)a * lift1) /
                                     (NRM_SQRT((nrm_acc)b * lift2) + (nrm_acc)eps));  /* OPT.5 */
    }
}

static int nrmi_check_rate(nrm_real lr)
{
    return lr >= 0 && nrmi_finite((nrm_acc)lr) ? NRM_OK : NRM_ERATE;
}

NRM_DEF int nrm_mlp_step(nrm_mlp *net)
{
    if (net == NULL) return NRM_ENULL;
    if (nrmi_check_rate(net->spec.lr) != NRM_OK) return NRM_ERATE;
    net->steps++;
    if (net->spec.optimizer == NRM_ADAM)
        nrmi_adam(net);
    else
        nrmi_sgd(net);
    return NRM_OK;
}

NRM_DEF int nrm_mlp_train_step(nrm_mlp *net, nrm_acc *loss, const nrm_real *x, const int *labels,
                               size_t N)
{
    nrm_acc value = 0;
    int rc = nrmi_check_training(net, x, labels, N, NRM_TRAIN);
    if (rc == NRM_OK) rc = nrmi_check_rate(net->spec.lr);
    if (rc == NRM_OK && !nrmi_nothing_to_do(net, N))
        rc = nrmi_mlp_loss_gradient(net, &value, x, labels, N, NRM_TRAIN, NRMI_TRACK);
    if (loss != NULL && rc >= 0) *loss = value;
    return rc != NRM_OK || nrmi_nothing_to_do(net, N) ? rc : nrm_mlp_step(net);
}

NRM_DEF int nrm_mlp_eval(nrm_mlp *net, nrm_acc *loss, nrm_acc *accuracy, const nrm_real *x,
                         const int *labels, size_t N)
{
    nrm_acc loss_sum = 0, hit_sum = 0, part_loss, part_hits;
    size_t at, n, classes;
    int rc, worst = NRM_OK;
    if (net == NULL || (N > 0 && (x == NULL || labels == NULL))) return NRM_ENULL;
    classes = net->state[net->spec.layers - 1].shape.width;
    rc = loss != NULL && loss == accuracy ? NRM_EALIAS : nrmi_check_labels(labels, N, classes);
    for (at = 0; at < N && rc >= 0; at += n) {
        n = N - at < net->spec.max_batch ? N - at : net->spec.max_batch;
        rc = nrm_mlp_forward(net, x + at * net->spec.inputs, n, NRM_INFER);
        if (rc < 0) break;
        if (rc > worst) worst = rc;
        rc = nrm_cross_entropy_forward(&part_loss, NULL, net->logits, labels + at, n, classes);
        if (rc > worst) worst = rc;
        if (nrm_accuracy(&part_hits, net->logits, labels + at, n, classes) > worst)
            worst = NRM_NONFINITE;
        loss_sum += part_loss * (nrm_acc)n;
        hit_sum += part_hits * (nrm_acc)n;
    }
    if (rc < 0) return rc;
    if (loss != NULL) *loss = N > 0 ? loss_sum / (nrm_acc)N : 0;
    if (accuracy != NULL) *accuracy = N > 0 ? hit_sum / (nrm_acc)N : 0;
    return worst;
}

NRM_DEF int nrm_mlp_predict(nrm_mlp *net, int *labels, const nrm_real *x, size_t N)
{
    size_t at, n;
    int rc = NRM_OK, worst = NRM_OK;
    if (net == NULL || (N > 0 && (x == NULL || labels == NULL))) return NRM_ENULL;
    rc = nrmi_check_volume(N, net->spec.inputs, 1);
    if (rc == NRM_OK && nrmi_overlap(nrmi_ints(labels, N), nrmi_reals(x, N * net->spec.inputs)))
        rc = NRM_EALIAS;
    for (at = 0; at < N && rc >= 0; at += n) {
        n = N - at < net->spec.max_batch ? N - at : net->spec.max_batch;
        rc = nrm_mlp_forward(net, x + at * net->spec.inputs, n, NRM_INFER);
        if (rc > worst) worst = rc;
        if (rc >= 0)
            rc = nrm_argmax(labels + at, net->logits, n,
                            net->state[net->spec.layers - 1].shape.width);
        if (rc > worst) worst = rc;
    }
    return rc < 0 ? rc : worst;
}

/* One batch forward, and its statistics merged into state->stats. */
static int nrmi_reestimate_batch(nrm_mlp *net, const nrm_real *x, size_t n)
{
    size_t l;
    int rc = nrmi_mlp_forward(net, x, n, NRM_TRAIN, NRMI_ALONE), worst = rc;
    for (l = 0; l < net->spec.layers && rc >= 0; l++) {
        nrm_mlp_state *s = &net->state[l];
        const nrm_real *in = s->shape.norm_after ? s->act_out : s->linear_out;
        if (s->stats != NULL) rc = nrm_stats_update(s->stats, in, NULL, n, s->shape.width, 1);
        if (rc > worst) worst = rc;
    }
    return rc < 0 ? rc : worst;
}

/* The merged statistics of all layers, if they are good, become the running ones. `mine` is what
   came of this worker's part: if it was refused, the others still wait to merge, and NaNs (which
   all bits set are) tell them. */
static int nrmi_reestimate_set(nrm_mlp *net, int mine)
{
    size_t l;
    int rc = nrmi_merged(&net->spec) || mine >= 0 ? NRM_OK : mine;
    for (l = 0; l < net->spec.layers && rc == NRM_OK; l++) {
        const nrm_mlp_state *s = &net->state[l];
        if (s->stats == NULL) continue;
        if (mine < 0) NRM_MEMSET(s->stats, 255, s->shape.width * sizeof *s->stats);
        if (nrmi_merged(&net->spec) &&
            net->spec.sync.merge(net->spec.sync.context, s->stats, s->shape.width) != 0)
            return NRM_ESYNC;
        rc = nrmi_check_stats_fit(&s->running, s->stats, s->shape.width);
    }
    if (mine < 0) return mine;
    for (l = 0; l < net->spec.layers && rc == NRM_OK; l++)
        if (net->state[l].stats != NULL)
            rc = nrm_running_set(&net->state[l].running, net->state[l].stats,
                                 net->state[l].shape.width);
    return rc == NRM_OK ? mine : rc;
}

NRM_DEF int nrm_mlp_reestimate(nrm_mlp *net, const nrm_real *x, size_t N)
{
    nrm_rng kept;
    size_t at, n, l;
    int rc = NRM_OK, worst = NRM_OK;
    if (net == NULL || (x == NULL && N > 0)) return NRM_ENULL;
    kept = net->rng;
    for (l = 0; l < net->spec.layers; l++)
        if (net->state[l].shape.norm == NRM_LP_BATCH_NORM) return NRM_EKIND;
    for (l = 0; l < net->spec.layers; l++)
        if (net->state[l].stats != NULL)
            NRM_MEMSET(net->state[l].stats, 0, net->state[l].shape.width * sizeof(nrm_stats));
    for (at = 0; at < N && rc >= 0; at += n) {
        n = nrmi_least(N - at, net->spec.max_batch);
        if (N - at - n == 1 && n > 2) n--; /* leave no batch of one behind */
        rc = n == 1 ? NRM_EBATCH : nrmi_reestimate_batch(net, x + at * net->spec.inputs, n);
        if (rc > worst) worst = rc;
    }
    net->rng = kept;
    return nrmi_reestimate_set(net, rc < 0 ? rc : worst);
}

NRM_DEF int nrm_mlp_check_stats(const nrm_mlp *net, size_t *layer, size_t *channel)
{
    size_t l;
    int rc = NRM_OK;
    if (net == NULL) return NRM_ENULL;
    for (l = 0; l < net->spec.layers && rc == NRM_OK; l++)
        if (net->state[l].running.var != NULL)
            rc = nrm_running_check(channel, &net->state[l].running, net->state[l].shape.width);
    if (rc != NRM_OK && layer != NULL) *layer = l - 1;
    return rc;
}

/*
## 19  Files of named arrays

*The question it answers: how do weights get onto a disk, and back, so that a damaged file
is never taken for a good one?*

A training run is worth hours, and its result is a few arrays. They are kept in files whose
arrays have names, in one of three formats. Ours has a checksum for every part. NumPy's
`.npz` is there for Python, and so is `.npy`, which holds a single array without a name and
without a checksum. `nrm_save` goes by the ending of the path (in small letters), `nrm_load`
and `nrm_list` by the first bytes of the file. docs/files.md describes every byte and tells
how to exchange weights with NumPy and PyTorch.

    path ends in    written                 checksums         arrays       size
    .npz            NumPy, uncompressed     one per array     to 65535     below 4 GiB
    .npy            NumPy                   none              1            any
    anything else   our own                 of everything     to 65535     any

What is promised:

- *A file is whole or it is not there.* `nrm_save` writes beside the target, asks whether
  all of it went out, and only then renames. If anything fails, the new file is removed and
  the old one stays. (ISO C cannot force a disk to write, so after a power cut it is for the
  file system to keep this promise. A symbolic link is replaced, not followed.)
- *Arrays are changed only if everything is right.* `nrm_load` goes through the file twice.
  The first time it looks at everything: structure, names, types, shapes, checksums, the
  exact length, and whether each number fits. Only the second time does it store. So half of
  a file can be seen only if the file changes, or the disk fails, between the two.
- *A file cannot lie to its reader.* Each number of it is compared with what is possible
  before anything is computed from it, no array may lie on top of another, and there are no
  gaps to hide in. Nothing is allocated, so no file can ask for a terabyte.
- *The same bytes everywhere.* Numbers are written low byte first, put together by shifts,
  and there is no time or place in a file. Loading turns floats into doubles, and doubles
  into floats if they fit: a finite number that would become infinite is refused.

Arrays of the file that nobody asked for are checked and passed over; to check a file alone,
load nothing from it (`count` 0). An array without elements has no data, and its `data` may
be NULL. A `.npz` may hold arrays that we have no type for, or whose names break our rules;
the former are listed with type −1 and cannot be loaded, the latter are not listed.

### 19.1  Our own format

A header, a directory, and the data, each array at the next multiple of 64, so that a
program may map the file into memory and use the arrays where they are:

    at = 64·⌈end/64⌉, where end is that of the array before           [FILE.1]

    offset          bytes   what
    0               8       137 'N' 'R' 'M' 13 10 26 10: no text, and broken by any conversion
    8               4       version, 1
    12              4       how many arrays, n
    16              8       length of the file
    24              8       0
    32              192 n   the directory: see nrmi_write_entry
    32 + 192 n      4       CRC-32 of all before it
    36 + 192 n      28      0
    64 + 192 n      -       the data of the first array; 0 between its end and the next

So there is only one file for given arrays, and a reader can insist on it: any other byte is
damage.

### 19.2  The checksum

CRC-32 is the remainder of a division. Take the bits of the message as the coefficients of a
polynomial, modulo 2, and divide by one of degree 32 that is chosen so that no short burst
of wrong bits is divisible by it. The division goes like one on paper, except that to
subtract is to take the exclusive or: one bit of the remainder c leaves, and if it was a 1,
the divisor is taken off. The bits stand in reversed order, as in Ethernet, zip and PNG; so
the bit that leaves is the lowest, and P = 3988292384 (edb88320 in base 16).

    c′ = ⌊c/2⌋ ⊕ P·(c mod 2)                                          [CRC.1]

Eight steps at once come from a table, since division is linear: T(k) is what c = k has
become after eight steps.

    c′ = ⌊c/2⁸⌋ ⊕ T((c ⊕ byte) mod 2⁸)                                [CRC.2]

The first 32 bits are turned over, or zeros at the start of a message would not count; so
are all bits of the result.

    crc = c ⊕ (2³² − 1), where c starts at 2³² − 1                    [CRC.3]

Any burst of up to 32 wrong bits is found, and of other damage all but one case in 2³². It
is no protection against an adversary, who can compute it too.
*/
#ifndef NRM_NO_STDIO

#define NRM_CHUNK 4096        /* bytes of a file that are on the stack at a time        */
#define NRM_HEAD 32           /* bytes of our header, and of what follows the directory */
#define NRM_ENTRY 192         /* bytes of an entry of our directory                     */
#define NRM_MOST_ARRAYS 65535 /* in a file: what a zip archive can count                */
#define NRM_MOST_PATH 4096    /* bytes of a path, with the zero at its end              */
#define NRM_MOST_MEMBER 1024  /* bytes of the name of an archive's file                 */
#define NRM_MOST_FACTS 32     /* numbers that describe a layer                          */
#define NRM_NPY_TEXT 320      /* bytes that hold any .npy header that we write          */
#define NRM_ONES 0xffffffffu

enum nrmi_format { NRMI_OWN, NRMI_NPY, NRMI_NPZ };

typedef struct nrmi_file { /* being written or read */
    FILE *stream;        /* NULL: only the checksum is wanted        */
    uint64_t at;         /* where the next byte comes from or goes   */
    uint32_t crc;        /* of what was written                      */
    int failed;          /* something could not be written           */
    int format;
    uint64_t length;     /* when reading: of the file;               */
    uint64_t directory;  /* where an archive's directory begins;     */
    uint64_t next;       /* where the next entry of it is;           */
    uint64_t end;        /* where the data of the last entry ended   */
    size_t count, index; /* entries in all; that were read           */
    uint32_t table[256]; /* T of CRC.2                               */
    unsigned char chunk[NRM_CHUNK];
} nrmi_file;

static void nrmi_crc_table(uint32_t *table)
{
    uint32_t k, c;
    int bit;
    for (k = 0; k < 256; k++) {
        c = k;
        for (bit = 0; bit < 8; bit++)
            c = (c >> 1) ^ ((c & 1) != 0 ? 0xedb88320u : 0); /* CRC.1 */
        table[k] = c;
    }
}

/* The checksum of a message goes on over n more bytes; that of none is 0. */
static uint32_t nrmi_crc(const uint32_t *table, uint32_t crc, const unsigned char *from, size_t n)
{
    uint32_t c = crc ^ NRM_ONES; /* CRC.3 */
    size_t i;
    for (i = 0; i < n; i++) c = (c >> 8) ^ table[(c ^ from[i]) & 255]; /* CRC.2 */
    return c ^ NRM_ONES;
}

/* Numbers of a file, low byte first. */
static uint64_t nrmi_get(const unsigned char *from, size_t bytes)
{
    uint64_t value = 0;
    while (bytes-- > 0) value = (value << 8) | from[bytes];
    return value;
}

static void nrmi_put(unsigned char *to, uint64_t value, size_t bytes)
{
    size_t i;
    for (i = 0; i < bytes; i++) to[i] = (unsigned char)((value >> (8 * i)) & 255);
}

static int nrmi_all_zero(const unsigned char *from, size_t n)
{
    while (n > 0 && from[n - 1] == 0) n--;
    return n == 0;
}

/*
### 19.3  Floats and doubles, bit by bit

A number is stored as its IEEE-754 pattern, and converted as a pattern, by integers: so it
does not matter what the processor thinks of subnormal numbers and signalling NaNs, and no
double takes part where `NRM_ACC=float` promises that. A double's significand p of 53 bits
loses its lowest bits, 29 of them, or more if the result is subnormal. If h is half of what
the last kept bit is worth, then p = 2h·q + t, and rounding to the nearest, in a tie to the
even, is

    q′ = q + 1 if t > h, or if t = h and q is odd; else q′ = q        [FILE.2]

Since the exponent stands right above the significand, a q′ that has grown by a digit
carries into it, which is just right. A NaN keeps its sign and its upper bits.
*/
static uint64_t nrmi_widen(uint32_t bits)
{
    const uint64_t sign = (uint64_t)(bits >> 31) << 63;
    uint64_t exponent = (bits >> 23) & 255, fraction = bits & 0x7fffffu;
    if (exponent == 255) return sign | ((uint64_t)0x7ff << 52) | (fraction << 29);
    if (exponent == 0 && fraction == 0) return sign;
    if (exponent == 0) { /* subnormal, which as a double it is not; the exponent wraps, and back */
        for (exponent = 1; (fraction & 0x800000u) == 0; exponent--) fraction <<= 1;
        fraction &= 0x7fffffu;
    }
    return sign | ((exponent + 896) << 52) | (fraction << 29); /* 896 = 1023 - 127 */
}

static uint32_t nrmi_narrow(uint64_t bits)
{
    const uint32_t sign = (uint32_t)(bits >> 63) << 31;
    const uint64_t exponent = (bits >> 52) & 0x7ff;
    uint64_t p = bits & (((uint64_t)1 << 52) - 1), q, t, h;
    unsigned lost = 29;
    if (exponent == 0x7ff) /* a NaN must not become an infinity */
        return sign | 0x7f800000u | (p != 0 ? 0x400000u | (uint32_t)(p >> 29) : 0);
    if (exponent >= 896 + 255) return sign | 0x7f800000u;
    if (exponent > 896) {
        p |= (exponent - 896) << 52;
    } else { /* subnormal or zero; of what is below 2^-150 nothing is left */
        if (exponent < 872) return sign;
        p |= (uint64_t)1 << 52;
        lost = (unsigned)(926 - exponent);
    }
    h = (uint64_t)1 << (lost - 1);
    q = p >> lost;
    t = p & (2 * h - 1);
    if (t > h || (t == h && (q & 1) != 0)) q++; /* FILE.2 */
    return sign | (uint32_t)q;
}

/* The pattern of a float, a double or an integer in memory. */
static uint64_t nrmi_pattern(const void *from, size_t bytes)
{
    uint32_t half;
    uint64_t all;
    if (bytes == sizeof half) {
        NRM_MEMCPY(&half, from, sizeof half);
        return half;
    }
    NRM_MEMCPY(&all, from, sizeof all);
    return all;
}

/* Stores a pattern of `from` bytes (4 or 8) into a number of `bytes`; `to` may be NULL. NRM_EFORMAT
   if a finite number would become infinite. */
static int nrmi_set_pattern(void *to, size_t bytes, uint64_t pattern, size_t from)
{
    const uint32_t half = from == 8 ? nrmi_narrow(pattern) : (uint32_t)pattern;
    if (bytes == 8) {
        if (from == 4) pattern = nrmi_widen(half);
        if (to != NULL) NRM_MEMCPY(to, &pattern, sizeof pattern);
        return NRM_OK;
    }
    if (from == 8 && (half & 0x7fffffffu) == 0x7f800000u && ((pattern >> 52) & 0x7ff) != 0x7ff)
        return NRM_EFORMAT;
    if (to != NULL) NRM_MEMCPY(to, &half, sizeof half);
    return NRM_OK;
}

/* A real number as a double's pattern. */
static uint64_t nrmi_as_double(const void *real, size_t bytes)
{
    const uint64_t pattern = nrmi_pattern(real, bytes);
    return bytes == 4 ? nrmi_widen((uint32_t)pattern) : pattern;
}

/*
### 19.4  The arrays of a call

They are the caller's list, or made up from a network, one at a time: a network may have any
number of layers, and there is no memory for a list.
*/
typedef struct nrmi_set {
    const nrm_array *array; /* the caller's, or NULL                                  */
    const nrm_mlp *net;     /* the network's, or NULL                                 */
    nrm_mlp *target;        /* the network when it is loaded                          */
    size_t slots;           /* 0 ... slots - 1, of which a network may leave some out */
    size_t hint;            /* the slot that is expected next                         */
    char name[NRM_NAME_BYTES];
    uint64_t fact[NRM_MOST_FACTS];   /* integers of the network, as they are,         */
    uint64_t loaded[NRM_MOST_FACTS]; /* and as the file has them                      */
} nrmi_set;

static int nrmi_net_array(nrm_array *made, nrmi_set *set, size_t slot); /* in 19.9 */

/* The array of a slot; 0 if there is none. */
static int nrmi_array_at(nrm_array *made, nrmi_set *set, size_t slot)
{
    if (set->net != NULL) return nrmi_net_array(made, set, slot);
    *made = set->array[slot];
    return 1;
}

static size_t nrmi_bytes_each(int type)
{
    return type == NRM_U64 ? sizeof(uint64_t) : sizeof(nrm_real);
}

/* Bytes of an array; returns 0 if they are too many for this machine. */
static int nrmi_measure(size_t *bytes, size_t dims, const size_t *shape, size_t each)
{
    const size_t most = SIZE_MAX / 4;
    size_t i, n = each;
    for (i = 0; i < dims; i++)
        if (shape[i] == 0) n = 0;
    for (i = 0; i < dims && n > 0; i++) {
        if (shape[i] > most / n) return 0;
        n *= shape[i];
    }
    *bytes = n;
    return 1;
}

static size_t nrmi_bytes_of(const nrm_array *a)
{
    size_t bytes = 0;
    (void)nrmi_measure(&bytes, a->dims, a->shape, nrmi_bytes_each(a->type));
    return bytes;
}

/* How long a name is; 0 if it breaks the rules. */
static size_t nrmi_name_length(const char *name)
{
    size_t n;
    for (n = 0; name[n] != '\0'; n++) {
        const char c = name[n];
        const int good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                         (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
        if (!good || n + 1 >= NRM_NAME_BYTES) return 0;
    }
    return n;
}

static int nrmi_check_array(const nrm_array *a)
{
    size_t bytes = 0;
    if (a->name == NULL) return NRM_ENULL;
    if (nrmi_name_length(a->name) == 0) return NRM_ENAME;
    if (a->type != NRM_REALS && a->type != NRM_U64) return NRM_EKIND;
    if (a->dims > NRM_MOST_DIMS) return NRM_ESIZE;
    if (!nrmi_measure(&bytes, a->dims, a->shape, nrmi_bytes_each(a->type))) return NRM_EOVERFLOW;
    return a->data == NULL && bytes > 0 ? NRM_ENULL : NRM_OK;
}

static nrmi_span nrmi_array_span(const nrm_array *a)
{
    nrmi_span s;
    s.bytes = nrmi_bytes_of(a);
    s.at = s.bytes > 0 ? a->data : NULL;
    return s;
}

/* The caller's list: each array; no name twice; and if they will be written to, all of them apart
   from one another and from the list. */
static int nrmi_check_arrays(const nrm_array *array, size_t count, int written)
{
    nrmi_span list;
    size_t i, j;
    int rc = NRM_OK;
    if (count > NRM_MOST_ARRAYS) return NRM_ESIZE;
    if (array == NULL && count > 0) return NRM_ENULL;
    list.at = array;
    list.bytes = count * sizeof *array;
    for (i = 0; i < count && rc == NRM_OK; i++) rc = nrmi_check_array(&array[i]);
    for (i = 0; i < count && rc == NRM_OK; i++) {
        const nrmi_span span = nrmi_array_span(&array[i]);
        if (written && nrmi_overlap(span, list)) rc = NRM_EALIAS;
        for (j = 0; j < i && rc == NRM_OK; j++) {
            if (strcmp(array[i].name, array[j].name) == 0) rc = NRM_ENAME;
            if (written && nrmi_overlap(span, nrmi_array_span(&array[j]))) rc = NRM_EALIAS;
        }
    }
    return rc;
}

/*
### 19.5  Writing

Checksums stand before the data that they speak of. So the data are gone through twice, the
first time with no stream to write to.
*/
static void nrmi_write(nrmi_file *f, const unsigned char *from, size_t n)
{
    f->crc = nrmi_crc(f->table, f->crc, from, n);
    f->at += n;
    if (n == 0 || f->stream == NULL || f->failed) return;
    if (fwrite(from, 1, n, f->stream) != n) f->failed = 1;
}

static void nrmi_write_number(nrmi_file *f, uint64_t value, size_t bytes)
{
    unsigned char to[8];
    nrmi_put(to, value, bytes);
    nrmi_write(f, to, bytes);
}

static void nrmi_write_zeros(nrmi_file *f, size_t n)
{
    while (n-- > 0) nrmi_write_number(f, 0, 1);
}

static void nrmi_write_data(nrmi_file *f, const nrm_array *a)
{
    const size_t each = nrmi_bytes_each(a->type), bytes = nrmi_bytes_of(a);
    const unsigned char *from = (const unsigned char *)a->data;
    size_t at, n, i;
    for (at = 0; at < bytes; at += n) {
        n = nrmi_least(bytes - at, NRM_CHUNK);
        for (i = 0; i < n; i += each)
            nrmi_put(f->chunk + i, nrmi_pattern(from + at + i, each), each);
        nrmi_write(f, f->chunk, n);
    }
}

/* The checksum of a text of n bytes and then an array's data. */
static uint32_t nrmi_checksum(nrmi_file *f, const unsigned char *text, size_t n, const nrm_array *a)
{
    FILE *const stream = f->stream;
    const uint64_t at = f->at;
    const uint32_t crc = f->crc;
    uint32_t made;
    f->stream = NULL;
    f->crc = 0;
    nrmi_write(f, text, n);
    nrmi_write_data(f, a);
    made = f->crc;
    f->stream = stream;
    f->at = at;
    f->crc = crc;
    return made;
}

static uint64_t nrmi_aligned(uint64_t end)
{
    return (end + 63) / 64 * 64; /* FILE.1 */
}

/* An entry: name [64], type, bytes of a number, dims, CRC-32 of the data [4 each], shape [8 x 8],
   offset and length of the data [8 each], 0 [32]; what is not used is 0. */
static void nrmi_write_entry(nrmi_file *f, const nrm_array *a, uint64_t at)
{
    unsigned char name[NRM_NAME_BYTES];
    size_t i;
    NRM_MEMSET(name, 0, sizeof name);
    NRM_MEMCPY(name, a->name, nrmi_name_length(a->name));
    nrmi_write(f, name, sizeof name);
    nrmi_write_number(f, (uint64_t)a->type, 4);
    nrmi_write_number(f, nrmi_bytes_each(a->type), 4);
    nrmi_write_number(f, a->dims, 4);
    nrmi_write_number(f, nrmi_checksum(f, NULL, 0, a), 4);
    for (i = 0; i < NRM_MOST_DIMS; i++) nrmi_write_number(f, i < a->dims ? a->shape[i] : 0, 8);
    nrmi_write_number(f, at, 8);
    nrmi_write_number(f, nrmi_bytes_of(a), 8);
    nrmi_write_zeros(f, 32);
}

/* The first eight bytes of our files. */
static const char *nrmi_magic(void)
{
    return "\x89NRM\r\n\x1a\n";
}

/* Where the directory and what follows it end. */
static uint64_t nrmi_data_begin(size_t count)
{
    return 2 * NRM_HEAD + NRM_ENTRY * (uint64_t)count;
}

static uint64_t nrmi_own_length(nrmi_set *set, size_t count)
{
    uint64_t end = nrmi_data_begin(count);
    nrm_array a;
    size_t i;
    for (i = 0; i < set->slots; i++)
        if (nrmi_array_at(&a, set, i)) end = nrmi_aligned(end) + nrmi_bytes_of(&a);
    return end;
}

static void nrmi_write_own(nrmi_file *f, nrmi_set *set, size_t count)
{
    uint64_t end = nrmi_data_begin(count);
    nrm_array a;
    size_t i;
    nrmi_write(f, (const unsigned char *)nrmi_magic(), 8);
    nrmi_write_number(f, 1, 4);
    nrmi_write_number(f, count, 4);
    nrmi_write_number(f, nrmi_own_length(set, count), 8);
    nrmi_write_zeros(f, 8);
    for (i = 0; i < set->slots; i++) {
        if (!nrmi_array_at(&a, set, i)) continue;
        nrmi_write_entry(f, &a, nrmi_aligned(end));
        end = nrmi_aligned(end) + nrmi_bytes_of(&a);
    }
    nrmi_write_number(f, f->crc, 4);
    nrmi_write_zeros(f, NRM_HEAD - 4);
    for (i = 0; i < set->slots; i++) {
        if (!nrmi_array_at(&a, set, i)) continue;
        nrmi_write_zeros(f, (size_t)(nrmi_aligned(f->at) - f->at));
        nrmi_write_data(f, &a);
    }
}

/*
### 19.6  Writing for NumPy

A `.npy` file is a line of text, which is a Python dictionary, and then the data. The text
is filled up with spaces so that the data begin at a multiple of 64. A `.npz` file is a zip
archive of such files: each behind a header of its own, and at the end of the archive a
directory that says everything a second time. We store without compression; an archive has
to stay below 4 GiB, where the old format ends.
*/
static size_t nrmi_append(char *to, size_t at, const char *text)
{
    const size_t n = strlen(text);
    NRM_MEMCPY(to + at, text, n + 1);
    return at + n;
}

static size_t nrmi_append_number(char *to, size_t at, uint64_t value)
{
    char digits[24];
    size_t first = sizeof digits - 1;
    digits[first] = '\0';
    do digits[--first] = (char)('0' + (int)(value % 10));
    while ((value /= 10) > 0);
    return nrmi_append(to, at, digits + first);
}

static const char *nrmi_descr(int type)
{
    return type == NRM_U64 ? "<u8" : sizeof(nrm_real) == 4 ? "<f4" : "<f8";
}

/* The .npy header of an array, in [NRM_NPY_TEXT] bytes: how many of them. */
static size_t nrmi_npy_text(unsigned char *to, const nrm_array *a)
{
    char text[NRM_NPY_TEXT];
    size_t i, n = 0, whole;
    n = nrmi_append(text, n, "{'descr': '");
    n = nrmi_append(text, n, nrmi_descr(a->type));
    n = nrmi_append(text, n, "', 'fortran_order': False, 'shape': (");
    for (i = 0; i < a->dims; i++) {
        n = nrmi_append_number(text, n, a->shape[i]);
        if (i + 1 < a->dims) n = nrmi_append(text, n, ", ");
    }
    n = nrmi_append(text, n, a->dims == 1 ? ",), }" : "), }");
    whole = (size_t)nrmi_aligned(10 + n + 1);
    NRM_MEMCPY(to, "\x93NUMPY\x01", 8); /* version 1, and 0 */
    nrmi_put(to + 8, whole - 10, 2);
    NRM_MEMCPY(to + 10, text, n);
    NRM_MEMSET(to + 10 + n, ' ', whole - 10 - n);
    to[whole - 1] = '\n';
    return whole;
}

static void nrmi_write_npy(nrmi_file *f, const nrm_array *a)
{
    unsigned char text[NRM_NPY_TEXT];
    nrmi_write(f, text, nrmi_npy_text(text, a));
    nrmi_write_data(f, a);
}

/* What both headers of an archive's file say, and its name. */
static void nrmi_write_member(nrmi_file *f, const nrm_array *a, int in_directory, uint64_t at)
{
    unsigned char text[NRM_NPY_TEXT];
    const size_t n = nrmi_npy_text(text, a), bytes = n + nrmi_bytes_of(a);
    const size_t name = nrmi_name_length(a->name);
    nrmi_write_number(f, 20, 2);         /* a reader of version 2.0 will do */
    nrmi_write_number(f, 0, 2);          /* flags: none                     */
    nrmi_write_number(f, 0, 2);          /* method: stored                  */
    nrmi_write_number(f, 0x00210000, 4); /* 1980-01-01, 0:00                */
    nrmi_write_number(f, nrmi_checksum(f, text, n, a), 4);
    nrmi_write_number(f, bytes, 4);      /* as stored,                      */
    nrmi_write_number(f, bytes, 4);      /* and as it is                    */
    nrmi_write_number(f, name + 4, 2);
    nrmi_write_number(f, 0, 2);          /* nothing extra                   */
    if (in_directory) {
        nrmi_write_zeros(f, 10);         /* comment, disk, attributes       */
        nrmi_write_number(f, at, 4);     /* where the other header is       */
    }
    nrmi_write(f, (const unsigned char *)a->name, name);
    nrmi_write(f, (const unsigned char *)".npy", 4);
}

/* How much an archive grows by an array: in its directory, or before it. */
static uint64_t nrmi_member_bytes(const nrm_array *a, int in_directory)
{
    unsigned char text[NRM_NPY_TEXT];
    const uint64_t name = nrmi_name_length(a->name) + 4;
    return in_directory ? 46 + name : 30 + name + nrmi_npy_text(text, a) + nrmi_bytes_of(a);
}

static void nrmi_write_npz(nrmi_file *f, nrmi_set *set, size_t count)
{
    uint64_t at = 0, start;
    nrm_array a;
    size_t i;
    for (i = 0; i < set->slots; i++) {
        if (!nrmi_array_at(&a, set, i)) continue;
        nrmi_write_number(f, 0x04034b50, 4);
        nrmi_write_member(f, &a, 0, 0);
        nrmi_write_npy(f, &a);
    }
    start = f->at;
    for (i = 0; i < set->slots; i++) {
        if (!nrmi_array_at(&a, set, i)) continue;
        nrmi_write_number(f, 0x02014b50, 4);
        nrmi_write_number(f, 20, 2);
        nrmi_write_member(f, &a, 1, at);
        at += nrmi_member_bytes(&a, 0);
    }
    at = f->at - start;
    nrmi_write_number(f, 0x06054b50, 4); /* the end: disks, how many, how long, where, comment */
    nrmi_write_number(f, 0, 4);
    nrmi_write_number(f, count, 2);
    nrmi_write_number(f, count, 2);
    nrmi_write_number(f, at, 4);
    nrmi_write_number(f, start, 4);
    nrmi_write_number(f, 0, 2);
}

/*
### 19.7  Whole or not at all

The file is written under another name in the same folder: that of the target, `.tmp`, and
eight digits which differ from thread to thread and, on most systems, from process to
process. C11 can insist on a new file; before C11 there is a moment between the look whether
the name is free and its use.
*/
#if defined(__GLIBC__) || (defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L) ||            \
    (defined(__cplusplus) && __cplusplus >= 201703L)
#define NRM_CREATE "wbx"
#else
#define NRM_CREATE "wb"
#endif
#define NRM_SUFFIX 12 /* ".tmp" and eight digits */

/* Opens f for writing under a temporary name, [length of path + NRM_SUFFIX + 1]. */
static int nrmi_create(nrmi_file *f, char *temporary, const char *path)
{
    const size_t n = nrmi_append(temporary, nrmi_append(temporary, 0, path), ".tmp");
    uint64_t mark = (uint64_t)(uintptr_t)f;
    FILE *taken;
    int turn;
    size_t i;
    temporary[n + 8] = '\0';
    for (turn = 0; turn < 16; turn++) {
        mark = mark * 6364136223846793005u + 1442695040888963407u; /* its highest bits are best */
        for (i = 0; i < 8; i++) temporary[n + i] = "0123456789abcdef"[(mark >> (60 - 4 * i)) & 15];
        taken = fopen(temporary, "rb");
        if (taken == NULL) {
            f->stream = fopen(temporary, NRM_CREATE);
            if (f->stream != NULL) return NRM_OK;
        } else {
            (void)fclose(taken);
        }
    }
    return NRM_EFILE;
}

/* Puts the finished file in the place of what is at path. */
static int nrmi_replace(const char *temporary, const char *path)
{
#ifdef _WIN32
    /* Here rename refuses to replace: the old file steps aside, and comes back if need be. */
    char aside[NRM_MOST_PATH + NRM_SUFFIX + 2];
    if (rename(temporary, path) == 0) return NRM_OK;
    (void)nrmi_append(aside, nrmi_append(aside, 0, temporary), "~");
    if (rename(path, aside) != 0) return NRM_EFILE;
    if (rename(temporary, path) != 0) {
        (void)rename(aside, path);
        return NRM_EFILE;
    }
    (void)remove(aside);
    return NRM_OK;
#else
    return rename(temporary, path) == 0 ? NRM_OK : NRM_EFILE;
#endif
}

static int nrmi_format_of(const char *path, size_t n)
{
    if (n >= 4 && strcmp(path + n - 4, ".npz") == 0) return NRMI_NPZ;
    if (n >= 4 && strcmp(path + n - 4, ".npy") == 0) return NRMI_NPY;
    return NRMI_OWN;
}

/* Counts the arrays: are they too many or too large for the format? */
static int nrmi_check_room(size_t *count, nrmi_set *set, int format)
{
    const uint64_t most = format == NRMI_NPZ ? NRM_ONES - 1 : (uint64_t)1 << 62;
    uint64_t bytes = 22;
    nrm_array a;
    size_t i;
    *count = 0;
    for (i = 0; i < set->slots; i++) {
        if (!nrmi_array_at(&a, set, i)) continue;
        bytes += nrmi_member_bytes(&a, 0) + nrmi_member_bytes(&a, 1);
        if (bytes > most) return format == NRMI_NPZ ? NRM_ESIZE : NRM_EOVERFLOW;
        ++*count;
    }
    return *count > NRM_MOST_ARRAYS || (format == NRMI_NPY && *count != 1) ? NRM_ESIZE : NRM_OK;
}

static int nrmi_write_file(const char *path, nrmi_set *set)
{
    char temporary[NRM_MOST_PATH + NRM_SUFFIX + 1];
    const size_t n = strlen(path);
    size_t count = 0;
    nrmi_file f;
    nrm_array a;
    int rc;
    if (n == 0 || n >= NRM_MOST_PATH) return NRM_EFILE;
    NRM_MEMSET(&f, 0, sizeof f);
    nrmi_crc_table(f.table);
    f.format = nrmi_format_of(path, n);
    rc = nrmi_check_room(&count, set, f.format);
    if (rc == NRM_OK) rc = nrmi_create(&f, temporary, path);
    if (rc != NRM_OK) return rc;
    if (f.format == NRMI_NPZ)
        nrmi_write_npz(&f, set, count);
    else if (f.format == NRMI_OWN)
        nrmi_write_own(&f, set, count);
    else if (nrmi_array_at(&a, set, 0))
        nrmi_write_npy(&f, &a);
    if (f.failed || fflush(f.stream) != 0 || ferror(f.stream)) rc = NRM_EFILE;
    if (fclose(f.stream) != 0) rc = NRM_EFILE;
    if (rc == NRM_OK) rc = nrmi_replace(temporary, path);
    if (rc != NRM_OK) (void)remove(temporary);
    return rc;
}

static nrmi_set nrmi_array_set(const nrm_array *array, size_t count)
{
    nrmi_set set;
    NRM_MEMSET(&set, 0, sizeof set);
    set.array = array;
    set.slots = count;
    return set;
}

NRM_DEF int nrm_save(const char *path, const nrm_array *array, size_t count)
{
    nrmi_set set;
    const int rc = path == NULL ? NRM_ENULL : nrmi_check_arrays(array, count, 0);
    if (rc != NRM_OK) return rc;
    set = nrmi_array_set(array, count);
    return nrmi_write_file(path, &set);
}

/*
### 19.8  Reading

Every format is read as a sequence of entries, in the order of its directory. Data have to
stand in that order too, each part where the one before ends (or where FILE.1 has it): then
nothing can overlap, and nothing is left over. A zip archive is read by the directory at its
end, and each file's own header has to agree with it. Archives that are encrypted,
compressed, spread over disks, or were written before the sizes were known are refused.
NumPy reserves room for sizes beyond 4 GiB in each file's own header, so that is understood.
*/
typedef struct nrmi_entry { /* one array of the file that is being read */
    nrm_array_info info;
    int status;         /* why it cannot be loaded, if so                          */
    int hidden;         /* its name breaks the rules                               */
    int is_signed;      /* as PyTorch's counters are; negative ones do not fit     */
    int has_crc;
    uint32_t crc;       /* of bytes from ... end - 1                               */
    uint64_t from, end;
    uint64_t at;        /* where the numbers begin                                 */
} nrmi_entry;

/* Bytes at ... at + n - 1 of the file, into f->chunk. */
static int nrmi_fetch(nrmi_file *f, uint64_t at, size_t n)
{
    if (n > NRM_CHUNK || at > f->length || n > f->length - at) return NRM_EFORMAT;
    if (n == 0) return NRM_OK;
    if (at != f->at && fseek(f->stream, (long)at, SEEK_SET) != 0) return NRM_EFILE;
    f->at = at + n;
    if (fread(f->chunk, 1, n, f->stream) == n) return NRM_OK;
    f->at = f->length + 1; /* wherever it is now */
    return ferror(f->stream) ? NRM_EFILE : NRM_EFORMAT;
}

/* The checksum of bytes at ... end - 1; each piece passes through f->chunk. */
static int nrmi_read_crc(nrmi_file *f, uint32_t *crc, uint64_t at, uint64_t end)
{
    int rc = NRM_OK;
    size_t n;
    for (*crc = 0; at < end && rc == NRM_OK; at += n) {
        n = (size_t)(end - at < NRM_CHUNK ? end - at : NRM_CHUNK);
        rc = nrmi_fetch(f, at, n);
        if (rc == NRM_OK) *crc = nrmi_crc(f->table, *crc, f->chunk, n);
    }
    return rc;
}

static int nrmi_good(int condition)
{
    return condition ? NRM_OK : NRM_EFORMAT;
}

/* Header and directory of our own format. */
static int nrmi_start_own(nrmi_file *f)
{
    const unsigned char *p = f->chunk;
    uint32_t crc = 0;
    int rc = nrmi_fetch(f, 0, NRM_HEAD);
    if (rc != NRM_OK) return rc;
    f->count = (size_t)nrmi_get(p + 12, 4);
    if (memcmp(p, nrmi_magic(), 8) != 0 || nrmi_get(p + 8, 4) != 1 || f->count > NRM_MOST_ARRAYS ||
        nrmi_get(p + 16, 8) != f->length || !nrmi_all_zero(p + 24, 8))
        return NRM_EFORMAT;
    f->next = NRM_HEAD;
    f->end = nrmi_data_begin(f->count);
    if (f->end > f->length) return NRM_EFORMAT;
    rc = nrmi_read_crc(f, &crc, 0, f->end - NRM_HEAD);
    if (rc == NRM_OK) rc = nrmi_fetch(f, f->end - NRM_HEAD, NRM_HEAD);
    if (rc != NRM_OK) return rc;
    return nrmi_good(nrmi_get(p, 4) == crc && nrmi_all_zero(p + 4, NRM_HEAD - 4));
}

/* Name, type and shape from an entry of our directory. */
static int nrmi_read_entry(nrm_array_info *info, const unsigned char *p)
{
    const uint64_t type = nrmi_get(p + 64, 4), each = nrmi_get(p + 68, 4);
    const uint64_t dims = nrmi_get(p + 72, 4);
    size_t i, n;
    if (p[NRM_NAME_BYTES - 1] != 0 || type > 1 || dims > NRM_MOST_DIMS) return NRM_EFORMAT;
    if (each != 8 && (each != 4 || type != (uint64_t)NRM_REALS)) return NRM_EFORMAT;
    NRM_MEMCPY(info->name, p, NRM_NAME_BYTES);
    n = nrmi_name_length(info->name);
    if (n == 0 || !nrmi_all_zero(p + n, NRM_NAME_BYTES - n)) return NRM_EFORMAT;
    info->type = (int)type;
    info->bytes_each = (size_t)each;
    info->dims = (size_t)dims;
    for (i = 0; i < NRM_MOST_DIMS; i++) {
        const uint64_t extent = nrmi_get(p + 80 + 8 * i, 8);
        info->shape[i] = (size_t)extent;
        if (info->shape[i] != extent || (i >= info->dims && extent != 0)) return NRM_EFORMAT;
    }
    return NRM_OK;
}

static int nrmi_next_own(nrmi_file *f, nrmi_entry *e)
{
    const unsigned char *p = f->chunk;
    const uint64_t end = f->end;
    size_t bytes = 0;
    int rc = nrmi_fetch(f, f->next, NRM_ENTRY);
    if (rc == NRM_OK) rc = nrmi_read_entry(&e->info, p);
    if (rc != NRM_OK) return rc;
    f->next += NRM_ENTRY;
    e->has_crc = 1;
    e->crc = (uint32_t)nrmi_get(p + 76, 4);
    e->at = e->from = nrmi_aligned(end);
    if (!nrmi_measure(&bytes, e->info.dims, e->info.shape, e->info.bytes_each) ||
        nrmi_get(p + 144, 8) != e->at || nrmi_get(p + 152, 8) != bytes ||
        !nrmi_all_zero(p + 160, 32) || e->at > f->length || bytes > f->length - e->at)
        return NRM_EFORMAT;
    f->end = e->end = e->at + bytes;
    rc = nrmi_fetch(f, end, (size_t)(e->at - end));
    return rc != NRM_OK ? rc : nrmi_good(nrmi_all_zero(p, (size_t)(e->at - end)));
}

typedef struct nrmi_text { /* what is still to be read of a text */
    const unsigned char *at, *end;
} nrmi_text;

/* Skips spaces, and then this word if it stands there. */
static int nrmi_accept(nrmi_text *t, const char *word)
{
    const size_t n = strlen(word);
    while (t->at < t->end && *t->at == ' ') t->at++;
    if ((size_t)(t->end - t->at) < n || memcmp(t->at, word, n) != 0) return 0;
    t->at += n;
    return 1;
}

/* A string in either kind of quotes, of which up to 15 characters are kept; 0 if there is none. */
static int nrmi_quoted(nrmi_text *t, char *to)
{
    const int quote = nrmi_accept(t, "'") ? '\'' : nrmi_accept(t, "\"") ? '"' : 0;
    size_t n = 0;
    for (; quote != 0 && t->at < t->end && *t->at != quote; t->at++) {
        if (*t->at < ' ' || *t->at == '\\') return 0;
        if (n < 15) to[n++] = (char)*t->at;
    }
    to[n] = '\0';
    if (quote == 0 || t->at == t->end) return 0;
    t->at++;
    return 1;
}

/* A count in decimal digits, without a zero in front. */
static int nrmi_decimal(nrmi_text *t, size_t *value)
{
    const unsigned char *first;
    (void)nrmi_accept(t, "");
    first = t->at;
    for (*value = 0; t->at < t->end && *t->at >= '0' && *t->at <= '9'; t->at++) {
        const size_t digit = (size_t)(*t->at - '0');
        if (*value > (SIZE_MAX - digit) / 10) return 0;
        *value = 10 * *value + digit;
    }
    return t->at > first && (*first != '0' || t->at == first + 1);
}

/* "()", "(3,)", "(3, 4)": more dimensions than we can have are counted, but not kept. */
static int nrmi_tuple(nrmi_text *t, nrm_array_info *info)
{
    size_t extent = 0;
    if (!nrmi_accept(t, "(")) return 0;
    for (info->dims = 0; !nrmi_accept(t, ")"); info->dims++) {
        if (!nrmi_decimal(t, &extent)) return 0;
        if (info->dims < NRM_MOST_DIMS) info->shape[info->dims] = extent;
        if (nrmi_accept(t, ",")) continue;
        info->dims++;
        return info->dims > 1 && nrmi_accept(t, ")");
    }
    return 1;
}

/* The types that we know, signed integers only for reading. */
static int nrmi_read_descr(nrmi_entry *e, const char *descr)
{
    e->info.type = descr[0] == '<' && descr[1] == 'f' ? NRM_REALS : NRM_U64;
    e->info.bytes_each = strcmp(descr, "<f4") == 0 ? 4 : 8;
    e->is_signed = strcmp(descr, "<i8") == 0;
    return e->is_signed || strcmp(descr, "<u8") == 0 || strcmp(descr, "<f8") == 0 ||
           strcmp(descr, "<f4") == 0;
}

/* The value of a key of the dictionary; which one, or 0. A type that we do not know is no damage,
   but e->status tells. */
static int nrmi_read_item(nrmi_text *t, nrmi_entry *e, int *fortran)
{
    char word[16];
    if (!nrmi_quoted(t, word) || !nrmi_accept(t, ":")) return 0;
    if (strcmp(word, "shape") == 0) return nrmi_tuple(t, &e->info) ? 4 : 0;
    if (strcmp(word, "fortran_order") == 0) {
        *fortran = nrmi_accept(t, "True");
        return *fortran || nrmi_accept(t, "False") ? 2 : 0;
    }
    if (strcmp(word, "descr") != 0) return 0;
    if (!nrmi_quoted(t, word))
        t->at = t->end; /* a list: records, which could go on in any way */
    else if (nrmi_read_descr(e, word))
        return 1;
    e->status = NRM_ESHAPE;
    return 1;
}

/* The dictionary of a .npy header: three keys in any order, each of them once. */
static int nrmi_read_dictionary(nrmi_text *t, nrmi_entry *e)
{
    int seen = 0, key = 0, fortran = 0, more = 1;
    if (!nrmi_accept(t, "{")) return 0;
    while (more && !nrmi_accept(t, "}")) {
        key = nrmi_read_item(t, e, &fortran);
        if (key == 0 || (seen & key) != 0) return 0;
        if (t->at == t->end && e->status != NRM_OK) return 1;
        seen |= key;
        more = nrmi_accept(t, ",");
        if (!more && !nrmi_accept(t, "}")) return 0;
    }
    if (e->info.dims > NRM_MOST_DIMS) e->status = NRM_ESHAPE;
    if (fortran && e->info.dims > 1) e->status = NRM_EFORMAT; /* columns first: not our order */
    return seen == 7 && nrmi_accept(t, "\n") && t->at == t->end;
}

/* A .npy file, which may be part of an archive, in bytes e->from ... e->end - 1. */
static int nrmi_read_npy(nrmi_file *f, nrmi_entry *e)
{
    const uint64_t span = e->end - e->from;
    const size_t most = (size_t)(span < NRM_CHUNK ? span : NRM_CHUNK);
    const unsigned char *p = f->chunk;
    size_t start, bytes = 0;
    uint64_t text;
    nrmi_text t;
    const int rc = nrmi_fetch(f, e->from, most);
    if (rc != NRM_OK) return rc;
    if (most < 12 || memcmp(p, "\x93NUMPY", 6) != 0 || p[6] < 1 || p[6] > 3 || p[7] != 0)
        return NRM_EFORMAT;
    start = p[6] == 1 ? 10 : 12;
    text = nrmi_get(p + 8, start - 8);
    if (text > span - start) return NRM_EFORMAT;
    e->at = e->from + start + text;
    if (text > most - start) {
        e->status = NRM_ESHAPE; /* a long text: that of records */
    } else {
        t.at = p + start;
        t.end = t.at + text;
        if (!nrmi_read_dictionary(&t, e)) return NRM_EFORMAT;
    }
    if (e->status == NRM_OK)
        return nrmi_good(nrmi_measure(&bytes, e->info.dims, e->info.shape, e->info.bytes_each) &&
                         e->end - e->at == bytes);
    NRM_MEMSET(e->info.shape, 0, sizeof e->info.shape);
    e->info.dims = e->info.bytes_each = 0;
    e->info.type = -1;
    return NRM_OK;
}

/* The end of an archive's directory, which is the end of the file. */
static int nrmi_start_npz(nrmi_file *f)
{
    const unsigned char *p = f->chunk;
    const uint64_t end = f->length - 22;
    const int rc = f->length < 22 ? NRM_EFORMAT : nrmi_fetch(f, end, 22);
    if (rc != NRM_OK) return rc;
    f->count = (size_t)nrmi_get(p + 8, 2);
    f->next = f->directory = nrmi_get(p + 16, 4);
    return nrmi_good(nrmi_get(p, 4) == 0x06054b50 && nrmi_all_zero(p + 4, 4) &&
                     nrmi_get(p + 10, 2) == f->count && f->directory <= end &&
                     nrmi_get(p + 12, 4) == end - f->directory && nrmi_all_zero(p + 20, 2));
}

typedef struct nrmi_member { /* what a header says of a file of the archive */
    unsigned flags, method;
    uint32_t crc;
    uint64_t stored, bytes; /* as stored, and as it is: for us the same */
    size_t name, extra;     /* how long they are                        */
} nrmi_member;

static void nrmi_read_member(nrmi_member *m, const unsigned char *p)
{
    m->flags = (unsigned)nrmi_get(p + 2, 2);
    m->method = (unsigned)nrmi_get(p + 4, 2);
    m->crc = (uint32_t)nrmi_get(p + 10, 4);
    m->stored = nrmi_get(p + 14, 4);
    m->bytes = nrmi_get(p + 18, 4);
    m->name = (size_t)nrmi_get(p + 22, 2);
    m->extra = (size_t)nrmi_get(p + 24, 2);
}

/* Sizes that stand among what is extra in a header, where it says so. */
static int nrmi_long_sizes(nrmi_member *m, const unsigned char *extra)
{
    size_t at = 0, n;
    if (m->bytes != NRM_ONES && m->stored != NRM_ONES) return 1;
    for (; m->extra - at >= 4; at += n + 4) {
        n = (size_t)nrmi_get(extra + at + 2, 2);
        if (n > m->extra - at - 4) return 0;
        if (nrmi_get(extra + at, 2) != 1 || n < 16) continue;
        m->bytes = nrmi_get(extra + at + 4, 8);
        m->stored = nrmi_get(extra + at + 12, 8);
        return 1;
    }
    return 0;
}

/* "W.npy" becomes "W"; what cannot be a name of ours is hidden. */
static void nrmi_read_name(nrmi_entry *e, const unsigned char *name, size_t n)
{
    e->hidden = 1;
    if (n <= 4 || n - 4 >= NRM_NAME_BYTES || memcmp(name + n - 4, ".npy", 4) != 0) return;
    NRM_MEMCPY(e->info.name, name, n - 4);
    e->hidden = nrmi_name_length(e->info.name) != n - 4;
}

/* The next entry of an archive's directory, and the name in it. */
static int nrmi_read_listed(nrmi_file *f, nrmi_member *m, unsigned char *name)
{
    const unsigned char *p = f->chunk;
    const uint64_t last = f->length - 22; /* where the directory ends */
    size_t rest;
    int rc = last - f->next < 46 ? NRM_EFORMAT : nrmi_fetch(f, f->next, 46);
    if (rc != NRM_OK) return rc;
    nrmi_read_member(m, p + 6);
    rest = m->name + m->extra + (size_t)nrmi_get(p + 32, 2); /* and a comment */
    if (nrmi_get(p, 4) != 0x02014b50 || (m->flags & ~0x0800u) != 0 || m->method != 0 ||
        m->stored != m->bytes || m->bytes == NRM_ONES || !nrmi_all_zero(p + 34, 2) ||
        nrmi_get(p + 42, 4) != f->end || m->name > NRM_MOST_MEMBER || rest > last - f->next - 46)
        return NRM_EFORMAT; /* 34: the disk. The one flag allowed says that the name is UTF-8. */
    rc = nrmi_fetch(f, f->next + 46, m->name);
    if (rc == NRM_OK) NRM_MEMCPY(name, p, m->name);
    f->next += 46 + rest;
    return rc;
}

static int nrmi_next_npz(nrmi_file *f, nrmi_entry *e)
{
    const unsigned char *p = f->chunk;
    unsigned char name[NRM_MOST_MEMBER];
    nrmi_member listed, own;
    int rc = nrmi_read_listed(f, &listed, name);
    if (rc == NRM_OK) rc = nrmi_fetch(f, f->end, 30);
    if (rc != NRM_OK) return rc;
    nrmi_read_member(&own, p + 4);
    if (nrmi_get(p, 4) != 0x04034b50 || own.flags != listed.flags || own.method != 0 ||
        own.crc != listed.crc || own.name != listed.name)
        return NRM_EFORMAT;
    rc = nrmi_fetch(f, f->end + 30, own.name + own.extra);
    if (rc != NRM_OK) return rc;
    if (memcmp(p, name, own.name) != 0 || !nrmi_long_sizes(&own, p + own.name) ||
        own.bytes != listed.bytes || own.stored != listed.bytes)
        return NRM_EFORMAT;
    e->from = f->end + 30 + own.name + own.extra;
    if (e->from > f->directory || own.bytes > f->directory - e->from) return NRM_EFORMAT;
    f->end = e->end = e->at = e->from + own.bytes;
    e->has_crc = 1;
    e->crc = own.crc;
    nrmi_read_name(e, name, own.name);
    return e->hidden ? NRM_OK : nrmi_read_npy(f, e);
}

/* To before the first entry. */
static int nrmi_start(nrmi_file *f)
{
    f->index = 0;
    f->count = 1;
    f->end = 0;
    if (f->format == NRMI_OWN) return nrmi_start_own(f);
    return f->format == NRMI_NPZ ? nrmi_start_npz(f) : NRM_OK;
}

static int nrmi_next(nrmi_file *f, nrmi_entry *e)
{
    NRM_MEMSET(e, 0, sizeof *e);
    f->index++;
    if (f->format == NRMI_OWN) return nrmi_next_own(f, e);
    if (f->format == NRMI_NPZ) return nrmi_next_npz(f, e);
    f->end = e->end = f->length;
    return nrmi_read_npy(f, e);
}

/* After the last entry: was that all? */
static int nrmi_ended(const nrmi_file *f)
{
    if (f->format == NRMI_NPZ) return f->end == f->directory && f->next == f->length - 22;
    return f->end == f->length;
}

/* Opens a file and finds out what it is. After NRM_OK the stream must be closed. */
static int nrmi_open(nrmi_file *f, const char *path)
{
    const unsigned char *p = f->chunk;
    long length = -1;
    int rc = NRM_EFILE;
    NRM_MEMSET(f, 0, sizeof *f);
    nrmi_crc_table(f->table);
    f->stream = fopen(path, "rb");
    if (f->stream == NULL) return NRM_EFILE;
    if (fseek(f->stream, 0, SEEK_END) == 0) length = ftell(f->stream);
    if (length >= 0) {
        f->at = f->length = (uint64_t)length;
        rc = nrmi_fetch(f, 0, 8);
    }
    if (rc == NRM_OK) {
        if (memcmp(p, nrmi_magic(), 8) == 0)
            f->format = NRMI_OWN;
        else if (memcmp(p, "\x93NUMPY", 6) == 0)
            f->format = NRMI_NPY;
        else if (memcmp(p, "PK\3\4", 4) == 0 || memcmp(p, "PK\5\6", 4) == 0)
            f->format = NRMI_NPZ;
        else
            rc = NRM_EFORMAT;
    }
    if (rc != NRM_OK) (void)fclose(f->stream);
    return rc;
}

/* Numbers first, first + 1, ... of an array, from the n bytes of f->chunk: do they fit? */
static int nrmi_take_numbers(const nrmi_file *f, const nrmi_entry *e, const nrm_array *a,
                             size_t first, size_t n, int store)
{
    const size_t from = e->info.bytes_each, each = nrmi_bytes_each(a->type);
    unsigned char *const to = (unsigned char *)a->data;
    size_t i;
    int rc = NRM_OK;
    for (i = 0; i < n / from && rc == NRM_OK; i++) {
        const uint64_t pattern = nrmi_get(f->chunk + i * from, from);
        if (e->is_signed && pattern >> 63 != 0) return NRM_EFORMAT;
        rc = nrmi_set_pattern(store ? to + (first + i) * each : NULL, each, pattern, from);
    }
    return rc;
}

/* Goes through the data of an entry: the checksum, and the numbers if an array wants them. */
static int nrmi_scan(nrmi_file *f, const nrmi_entry *e, const nrm_array *a, int store)
{
    uint64_t at;
    uint32_t crc = 0;
    size_t n, done = 0;
    int rc = nrmi_read_crc(f, &crc, e->from, e->at); /* what stands before the numbers */
    for (at = e->at; at < e->end && rc == NRM_OK; at += n) {
        n = (size_t)(e->end - at < NRM_CHUNK ? e->end - at : NRM_CHUNK);
        rc = nrmi_fetch(f, at, n);
        if (rc != NRM_OK) break;
        crc = nrmi_crc(f->table, crc, f->chunk, n);
        if (a == NULL) continue;
        rc = nrmi_take_numbers(f, e, a, done, n, store);
        done += n / e->info.bytes_each;
    }
    return rc != NRM_OK ? rc : nrmi_good(!e->has_crc || crc == e->crc);
}

static int nrmi_same_shape(const nrm_array *a, const nrm_array_info *info)
{
    size_t i;
    if (a->type != info->type || a->dims != info->dims) return 0;
    for (i = 0; i < a->dims; i++)
        if (a->shape[i] != info->shape[i]) return 0;
    return 1;
}

/* Which slot has the entry's name? The order is most often that of the file. The one array of a
   .npy file has no name: whatever is wanted is it. */
static int nrmi_find(nrm_array *a, size_t *slot, nrmi_set *set, const nrmi_file *f,
                     const nrmi_entry *e)
{
    size_t i;
    for (i = 0; i < set->slots && !e->hidden; i++) {
        *slot = (set->hint + i) % set->slots;
        if (!nrmi_array_at(a, set, *slot)) continue;
        if (f->format != NRMI_NPY && strcmp(a->name, e->info.name) != 0) continue;
        set->hint = *slot + 1;
        return 1;
    }
    return 0;
}

static int nrmi_net_agrees(const nrmi_set *set, size_t slot); /* these two are in 19.9 */
static void nrmi_net_adopt(nrmi_set *set, size_t slot);

/* An entry and the array that wants it. Damage is returned; a type, shape or network that does not
   fit goes into complaint, unless there is one. Integers of a network pass through set->loaded. */
static int nrmi_read_array(nrmi_file *f, nrmi_set *set, const nrmi_entry *e, size_t slot,
                           const nrm_array *a, int store, int *complaint)
{
    const int staged = a->data == set->loaded;
    int fits = e->status, rc;
    if (fits == NRM_OK && !nrmi_same_shape(a, &e->info)) fits = NRM_ESHAPE;
    rc = nrmi_scan(f, e, fits == NRM_OK ? a : NULL, store || staged);
    if (rc != NRM_OK) return rc;
    if (fits == NRM_OK && staged) fits = nrmi_net_agrees(set, slot);
    if (fits == NRM_OK && staged && store) nrmi_net_adopt(set, slot);
    if (*complaint == NRM_OK) *complaint = fits;
    return NRM_OK;
}

/* Goes through the file: once to check everything, once to store. Of damage, a wrong shape and a
   missing name the first is told. */
static int nrmi_pass(nrmi_file *f, nrmi_set *set, int store)
{
    unsigned char seen[NRM_MOST_ARRAYS / 8 + 1];
    nrmi_entry e;
    nrm_array a;
    size_t slot = 0;
    int rc = nrmi_start(f), complaint = NRM_OK;
    NRM_MEMSET(seen, 0, sizeof seen);
    set->hint = 0;
    while (rc == NRM_OK && f->index < f->count) {
        rc = nrmi_next(f, &e);
        if (rc != NRM_OK) return rc;
        if (nrmi_find(&a, &slot, set, f, &e)) {
            const unsigned char bit = (unsigned char)(1u << (slot % 8));
            if ((seen[slot / 8] & bit) != 0) return NRM_EFORMAT; /* a name twice: which one? */
            seen[slot / 8] = (unsigned char)(seen[slot / 8] | bit);
            rc = nrmi_read_array(f, set, &e, slot, &a, store, &complaint);
        } else if (!store) {
            rc = nrmi_scan(f, &e, NULL, 0);
        }
    }
    if (rc == NRM_OK) rc = nrmi_good(nrmi_ended(f));
    if (rc != NRM_OK || complaint != NRM_OK) return rc != NRM_OK ? rc : complaint;
    for (slot = 0; slot < set->slots; slot++)
        if (nrmi_array_at(&a, set, slot) && ((seen[slot / 8] >> (slot % 8)) & 1) == 0)
            return NRM_ENAME;
    return NRM_OK;
}

static int nrmi_read_file(const char *path, nrmi_set *set)
{
    nrmi_file f;
    int rc = nrmi_open(&f, path);
    if (rc != NRM_OK) return rc;
    rc = nrmi_pass(&f, set, 0);
    if (rc == NRM_OK && set->slots > 0) rc = nrmi_pass(&f, set, 1);
    (void)fclose(f.stream);
    return rc;
}

NRM_DEF int nrm_load(const char *path, const nrm_array *array, size_t count)
{
    nrmi_set set;
    const int rc = path == NULL ? NRM_ENULL : nrmi_check_arrays(array, count, 1);
    if (rc != NRM_OK) return rc;
    set = nrmi_array_set(array, count);
    return nrmi_read_file(path, &set);
}

/* The second time through a file, which is known to be good. */
static int nrmi_fill_list(nrmi_file *f, nrm_array_info *info, size_t *count, size_t most)
{
    nrmi_entry e;
    size_t n = 0;
    int rc = nrmi_start(f);
    while (rc == NRM_OK && f->index < f->count) {
        rc = nrmi_next(f, &e);
        if (rc != NRM_OK || e.hidden) continue;
        if (n < most) info[n] = e.info;
        n++;
    }
    if (rc == NRM_OK) *count = n;
    return rc;
}

NRM_DEF int nrm_list(const char *path, nrm_array_info *info, size_t *count, size_t most)
{
    nrmi_file f;
    nrmi_set none;
    nrmi_span out[2];
    int rc;
    if (path == NULL || count == NULL || (info == NULL && most > 0)) return NRM_ENULL;
    if (most > SIZE_MAX / 2 / sizeof *info) return NRM_EOVERFLOW;
    out[0].at = info;
    out[0].bytes = most * sizeof *info;
    out[1].at = count;
    out[1].bytes = sizeof *count;
    rc = nrmi_check_apart(out, 2, 1);
    if (rc == NRM_OK) rc = nrmi_open(&f, path);
    if (rc != NRM_OK) return rc;
    NRM_MEMSET(&none, 0, sizeof none);
    rc = nrmi_pass(&f, &none, 0);
    if (rc == NRM_OK) rc = nrmi_fill_list(&f, info, count, most);
    (void)fclose(f.stream);
    return rc;
}

/*
### 19.9  A network

A network's file holds all that a pause must not change: parameters, running statistics and
how many batches they have seen, the optimizer's memory with the powers of its β, and the
noise generator with the normal number that it has in stock. After `nrm_mlp_load` training
goes on, bit for bit, as if it had never stopped.

And it says what network this is, so that no other takes it: inputs, optimizer, ε, and for
each layer what `nrmi_layer_facts` lists. The line is drawn at what the arrays *mean*: of
two networks that agree in these, each can use the other's arrays, and in infer mode
computes the same function. How training goes on is for your spec to say, as it was for the
one that began: `lr`, `heavy_ball`, `beta1`, `beta2`, `adam_eps`, `new_weight`,
`cumulative`, `biased`, `noise`, `r_max`, `d_max` and `sync` are neither stored nor
compared, nor are `seed`, `init`, `init_std`, `gamma_init` and `max_batch`, which have done
their work. (So limits of batch renorm that have been raised while training are to be set
again.)

    network       [5]         inputs, layers, optimizer, its moments, ε (the bits of a double)
    training      [7]         steps, powers of β₁ and β₂ (bits of doubles), the generator
    moment1, moment2          [n_params], if the optimizer has them
    layer0.shape  [8]         inputs, width, activation, norm, norm_after, bias, groups, p
    layer0.W, layer0.b, layer0.gamma, layer0.beta     the parameters that the layer has
    layer0.mean, layer0.var, layer0.batches           the running statistics of batch norm

A double's ε that is to match a float's is compared as a float: 10⁻⁵ is not the same number
in both.
*/
enum { NRMI_NET_FACTS, NRMI_NET_TRAINING, NRMI_NET_MOMENT1, NRMI_NET_MOMENT2, NRMI_NET_SLOTS };
enum { NRMI_LAYER_FACTS, NRMI_LAYER_W, NRMI_LAYER_BATCHES = 7, NRMI_LAYER_SLOTS };

/* What a layer is. A new property of layers is one more line here; at most NRM_MOST_FACTS. */
static size_t nrmi_layer_facts(uint64_t *fact, const nrm_mlp_state *s)
{
    size_t n = 0;
    fact[n++] = s->in;
    fact[n++] = s->shape.width;
    fact[n++] = (uint64_t)s->shape.activation;
    fact[n++] = (uint64_t)s->shape.norm;
    fact[n++] = s->shape.norm_after != 0;
    fact[n++] = s->shape.bias != 0;
    fact[n++] = s->shape.norm == NRM_GROUP_NORM ? s->shape.groups : 0;
    fact[n++] = s->shape.norm == NRM_LP_BATCH_NORM ? (uint64_t)s->shape.p : 0;
    return n;
}

static size_t nrmi_net_facts(uint64_t *fact, const nrm_mlp *net)
{
    size_t n = 0;
    fact[n++] = net->spec.inputs;
    fact[n++] = net->spec.layers;
    fact[n++] = (uint64_t)net->spec.optimizer;
    fact[n++] = (net->moment1 != NULL ? 1u : 0u) + (net->moment2 != NULL ? 1u : 0u);
    fact[n++] = nrmi_as_double(&net->spec.eps, sizeof net->spec.eps);
    return n;
}

static size_t nrmi_training_facts(uint64_t *fact, const nrm_mlp *net)
{
    const nrm_rng *rng = &net->rng;
    size_t n = 0;
    fact[n++] = net->steps;
    fact[n++] = nrmi_as_double(&net->beta1_power, sizeof net->beta1_power);
    fact[n++] = nrmi_as_double(&net->beta2_power, sizeof net->beta2_power);
    fact[n++] = rng->state;
    fact[n++] = rng->increment;
    fact[n++] = rng->has_spare != 0;
    fact[n++] = rng->has_spare ? nrmi_as_double(&rng->spare, sizeof rng->spare) : 0;
    return n;
}

/* An array of integers of the network. */
static int nrmi_facts_array(nrm_array *made, nrmi_set *set, size_t count)
{
    made->type = NRM_U64;
    made->data = set->target != NULL ? set->loaded : set->fact;
    made->dims = 1;
    made->shape[0] = count;
    return 1;
}

/* An array of reals, [rows][cols], or [cols] if rows is 0. */
static int nrmi_reals_array(nrm_array *made, nrm_real *data, size_t rows, size_t cols)
{
    made->type = NRM_REALS;
    made->data = data;
    made->dims = rows > 0 ? 2 : 1;
    made->shape[0] = rows > 0 ? rows : cols;
    made->shape[1] = rows > 0 ? cols : 0;
    return data != NULL;
}

static int nrmi_layer_array(nrm_array *made, nrmi_set *set, size_t l, size_t slot)
{
    static const char name[NRMI_LAYER_SLOTS][8] = {"shape", "W",    "b",   "gamma",
                                                   "beta",  "mean", "var", "batches"};
    nrm_mlp_state *const s = &set->net->state[l];
    nrm_real *data[NRMI_LAYER_SLOTS];
    size_t n = nrmi_append(set->name, 0, "layer");
    data[NRMI_LAYER_FACTS] = data[NRMI_LAYER_BATCHES] = NULL;
    data[NRMI_LAYER_W] = s->W;
    data[2] = s->b;
    data[3] = s->gamma;
    data[4] = s->beta;
    data[5] = s->running.mean;
    data[6] = s->running.var;
    n = nrmi_append_number(set->name, n, l);
    n = nrmi_append(set->name, n, ".");
    (void)nrmi_append(set->name, n, name[slot]);
    made->name = set->name;
    if (slot == NRMI_LAYER_FACTS)
        return nrmi_facts_array(made, set, nrmi_layer_facts(set->fact, s));
    if (slot != NRMI_LAYER_BATCHES)
        return nrmi_reals_array(made, data[slot], slot == NRMI_LAYER_W ? s->in : 0, s->shape.width);
    set->fact[0] = s->running.batches;
    (void)nrmi_facts_array(made, set, 1);
    made->dims = 0;
    return s->running.mean != NULL;
}

static int nrmi_net_array(nrm_array *made, nrmi_set *set, size_t slot)
{
    static const char name[NRMI_NET_SLOTS][9] = {"network", "training", "moment1", "moment2"};
    const nrm_mlp *net = set->net;
    const size_t beyond = slot - NRMI_NET_SLOTS;
    NRM_MEMSET(made, 0, sizeof *made);
    if (slot >= NRMI_NET_SLOTS)
        return nrmi_layer_array(made, set, beyond / NRMI_LAYER_SLOTS, beyond % NRMI_LAYER_SLOTS);
    made->name = name[slot];
    if (slot == NRMI_NET_FACTS) return nrmi_facts_array(made, set, nrmi_net_facts(set->fact, net));
    if (slot == NRMI_NET_TRAINING)
        return nrmi_facts_array(made, set, nrmi_training_facts(set->fact, net));
    return nrmi_reals_array(made, slot == NRMI_NET_MOMENT1 ? net->moment1 : net->moment2, 0,
                            net->n_params);
}

/* The same ε, or as near as a float can come to it? */
static int nrmi_same_eps(uint64_t a, uint64_t b)
{
    const uint32_t short_a = nrmi_narrow(a), short_b = nrmi_narrow(b);
    const int some_float = nrmi_widen(short_a) == a || nrmi_widen(short_b) == b;
    return a == b || (some_float && short_a == short_b);
}

/* Integers that were loaded: NRM_ESHAPE if they are of another network, NRM_EFORMAT if of none.
   Powers of β lie in 0..1, the generator's increment is odd, its spare number finite. */
static int nrmi_net_agrees(const nrmi_set *set, size_t slot)
{
    const uint64_t one = (uint64_t)0x3ff << 52, infinity = (uint64_t)0x7ff << 52;
    const uint64_t *got = set->loaded;
    const size_t beyond = slot - NRMI_NET_SLOTS;
    uint64_t own[NRM_MOST_FACTS];
    size_t n, i;
    if (slot == NRMI_NET_TRAINING)
        return nrmi_good((size_t)got[0] == got[0] && got[1] <= one && got[2] <= one &&
                         (got[4] & 1) != 0 && got[5] <= 1 &&
                         (got[6] & ~((uint64_t)1 << 63)) < infinity);
    if (slot >= NRMI_NET_SLOTS && beyond % NRMI_LAYER_SLOTS == NRMI_LAYER_BATCHES)
        return nrmi_good((size_t)got[0] == got[0]);
    if (slot == NRMI_NET_FACTS) {
        n = nrmi_net_facts(own, set->net) - 1; /* ε is the last */
        if (!nrmi_same_eps(own[n], got[n])) return NRM_ESHAPE;
    } else {
        n = nrmi_layer_facts(own, &set->net->state[beyond / NRMI_LAYER_SLOTS]);
    }
    for (i = 0; i < n; i++)
        if (own[i] != got[i]) return NRM_ESHAPE;
    return NRM_OK;
}

static void nrmi_net_adopt(nrmi_set *set, size_t slot)
{
    nrm_mlp *net = set->target;
    const uint64_t *got = set->loaded;
    const size_t beyond = slot - NRMI_NET_SLOTS;
    if (slot == NRMI_NET_TRAINING) {
        net->steps = (size_t)got[0];
        (void)nrmi_set_pattern(&net->beta1_power, sizeof net->beta1_power, got[1], 8);
        (void)nrmi_set_pattern(&net->beta2_power, sizeof net->beta2_power, got[2], 8);
        net->rng.state = got[3];
        net->rng.increment = got[4];
        net->rng.has_spare = (int)got[5];
        (void)nrmi_set_pattern(&net->rng.spare, sizeof net->rng.spare, got[6], 8);
    } else if (slot >= NRMI_NET_SLOTS && beyond % NRMI_LAYER_SLOTS == NRMI_LAYER_BATCHES) {
        net->state[beyond / NRMI_LAYER_SLOTS].running.batches = (size_t)got[0];
    }
}

static int nrmi_net_set(nrmi_set *set, const nrm_mlp *net)
{
    NRM_MEMSET(set, 0, sizeof *set);
    if (net->spec.layers > (NRM_MOST_ARRAYS - NRMI_NET_SLOTS) / NRMI_LAYER_SLOTS) return NRM_ESIZE;
    set->net = net;
    set->slots = NRMI_NET_SLOTS + net->spec.layers * NRMI_LAYER_SLOTS;
    return NRM_OK;
}

NRM_DEF int nrm_mlp_save(const nrm_mlp *net, const char *path)
{
    nrmi_set set;
    int rc = net == NULL || path == NULL ? NRM_ENULL : NRM_OK;
    if (rc == NRM_OK) rc = nrmi_net_set(&set, net);
    return rc == NRM_OK ? nrmi_write_file(path, &set) : rc;
}

NRM_DEF int nrm_mlp_load(nrm_mlp *net, const char *path)
{
    nrmi_set set;
    int rc = net == NULL || path == NULL ? NRM_ENULL : NRM_OK;
    if (rc == NRM_OK) rc = nrmi_net_set(&set, net);
    if (rc != NRM_OK) return rc;
    set.target = net;
    return nrmi_read_file(path, &set);
}
#endif /* NRM_NO_STDIO */

/*
## 20  Gradient checking

A backward pass that is wrong often still trains, only worse. The remedy is as old as the
mistake: nudge one parameter, see how the loss moves, compare. This section does it for any
loss that you can evaluate and any arrays that it depends on, your own layers included.

### 20.1  How to use it

Put what your loss needs into a struct, write a function that evaluates it, list the arrays
with the gradients that your backward pass computed for them, and call `nrm_gradcheck`.
Compile with `NRM_DOUBLE`: in float the differences of a loss have few digits left. Three
habits decide whether the check can find anything.

- Use L = ∑ yᵢ·wᵢ with fixed random wᵢ as the loss of a layer. With L = ∑ yᵢ the dx of a
  batch norm is zero, by BN.6, and with L = ∑ yᵢ² it is of the order of ε, by BN.7; so it is
  for a layer norm with γ = 1 and β = 0. A backward pass that returns nothing at all would
  be found correct.
- Use γ ≠ 1 and β ≠ 0, and N = 2, 3, 4. With γ = 1 a forgotten γ is invisible; at N = 128 to
  take N − 1 for N changes dx by half a thousandth, which a loose tolerance lets pass.
- Try inputs of several sizes, 10⁻³ to 10³. An ε in the wrong place shows only where v is
  not much larger than it.

### 20.2  The difference and its error

The central difference looks at both sides, so that its error has no term in h:

    D(h) = (L(θ + h) − L(θ − h))/(2·h)                                [GC.1]
    D(h) = L′ + (h²/6)·L‴ + O(h⁴)                                     [GC.2]

Half the step has a quarter of the error, so a suitable mixture has none of it (Richardson):

    R(h) = (4·D(h/2) − D(h))/3 = L′ + O(h⁴)                           [GC.3]

Rounding adds to R an error of the order u/h, with u the precision of the type, and
truncation one of the order h⁴; their sum is smallest where h⁵ is of the order of u. So the
step is u to the power 1/5, 7·10⁻⁴ in double and 4·10⁻² in float, relative to the size of
the parameter; or to the typical size in its array if that is larger, since a parameter near
zero is no reason for a tiny step:

    h = step·max(|θᵢ|, √⟨θ²⟩)                                         [GC.4]

When R and the gradient disagree, is the gradient wrong, or the difference? Two steps tell.
The uncertainty of R has three parts: how far R moves when the step is halved; how far the
difference J of the slopes on the two sides (GC.7) is from shrinking like h, as it should,
which shows rounding as it really is; and what rounding must be at least:

    U = |R(h/2) − R(h)| + max(|J(h/2) − J(h)/2|, |J(h/4) − J(h)/4|) + 8·u·max|L|/(h/4)  [GC.5]

If U is too large for a judgement, the step was too large (or straddled a kink), and we try
one of an eighth, up to five times. A gradient a is *wrong* only if it differs from R(h/2)
by more than the tolerance plus four times U. It is *unsettled* if U is so large that even
an entry as big as the largest of its array could not be judged.

### 20.3  Signs, small entries, kinks

The error is relative to the larger of the two, with their signs: |a| and |R| being equal
proves nothing. Entries much smaller than the rest of their array are compared with a
thousandth of its largest, or, where rounding leaves less than that to see, with the largest
itself:

    e = |a − R|/max(|a|, |R|, 10⁻³·max|grad|)                         [GC.6]

At a kink, such as ReLU's at 0, the derivative from the right and that from the left differ,
and the central difference is between them for every h. The slopes of the two sides tell:

    J(h) = (L(θ + h) − L(θ))/h − (L(θ) − L(θ − h))/h = h·L″ + O(h³)   [GC.7]

Where the loss is smooth J shrinks with h; at a kink it keeps its size, and its sign. If
your loss can say which branches it took (the signs of all pre-activations, hashed, say),
give `branches`: then a step that changes them is recognised for certain. Kinks are skipped
and *counted*, so that a check that skipped everything does not look like one that passed.
Counted too are entries where both gradients are zero within rounding, *vanishing* ones: if
all are, nothing was judged, though nothing was wrong either.
*/
typedef struct nrmi_check { /* what one entry's differences need */
    nrm_loss_fn *loss;
    void *context;
    nrm_branches_fn *branches;
    nrm_acc base;        /* the loss where we stand    */
    uint64_t base_print; /* and its branches           */
    nrm_acc largest;     /* |L| seen so far            */
    int crossed;         /* some branch was different  */
} nrmi_check;

typedef struct nrmi_slope { /* what the differences say */
    nrm_acc value, uncertainty;
    nrm_acc noise; /* the rounding part of the uncertainty at the first, largest step */
    nrm_acc jump;  /* |J| of GC.7 at the smallest distance */
    int kink;
} nrmi_slope;

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

/* D(h), and J(h) by the way. The step that was really taken is what rounding left of it. */
static nrm_acc nrmi_difference(nrmi_check *check, nrm_real *theta, nrm_acc h, nrm_acc *jump)
{
    const nrm_real at = *theta;
    const nrm_real up = (nrm_real)((nrm_acc)at + h), down = (nrm_real)((nrm_acc)at - h);
    const nrm_acc above = nrmi_loss_at(check, theta, up);
    const nrm_acc below = nrmi_loss_at(check, theta, down);
    *theta = at;
    *jump = (above - check->base) / ((nrm_acc)up - (nrm_acc)at) -
            (check->base - below) / ((nrm_acc)at - (nrm_acc)down);             /* GC.7 */
    return (above - below) / ((nrm_acc)up - (nrm_acc)down);                    /* GC.1 */
}

/* A kink's J keeps its sign and, as the step shrinks, its size or a little less. One that shrinks
   like h is curvature; one that grows, or turns, is rounding. */
static int nrmi_jumps(nrm_acc wide, nrm_acc quarter, nrm_acc noise)
{
    const nrm_acc ratio = wide < 0 || wide > 0 ? quarter / wide : 0;
    return ratio > (nrm_acc)0.5 && ratio < (nrm_acc)1.1 && nrmi_abs(quarter) > 8 * noise;
}

/* One attempt with step h; says whether there seems to be a kink. */
static nrmi_slope nrmi_attempt(nrmi_check *check, nrm_real *theta, nrm_acc h)
{
    nrm_acc wide, half, quarter, coarse, fine, jump_wide, jump_half, jump_quarter, shaky;
    nrmi_slope slope;
    check->crossed = 0;
    wide = nrmi_difference(check, theta, h, &jump_wide);
    half = nrmi_difference(check, theta, h / 2, &jump_half);
    quarter = nrmi_difference(check, theta, h / 4, &jump_quarter);
    coarse = (4 * half - wide) / 3;                                            /* GC.3 */
    fine = (4 * quarter - half) / 3;
    slope.value = fine;
    slope.noise = 8 * nrmi_precision() * check->largest / (h / 4);
    shaky = nrmi_larger(nrmi_abs(jump_half - jump_wide / 2),
                        nrmi_abs(jump_quarter - jump_wide / 4));
    slope.uncertainty = nrmi_abs(fine - coarse) + shaky + slope.noise;         /* GC.5 */
    slope.jump = nrmi_abs(jump_quarter);
    slope.kink = check->crossed || nrmi_jumps(jump_wide, jump_quarter, slope.noise);
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

/* Enters one entry's verdict into the report. */
static void nrmi_judge(nrm_gradcheck_report *report, size_t index, nrm_acc analytic,
                       const nrmi_slope *slope, nrm_acc tolerance, nrm_acc largest)
{
    const nrm_acc numeric = slope->value, gap = nrmi_abs(analytic - numeric);
    const nrm_acc size = nrmi_larger(nrmi_abs(analytic), nrmi_abs(numeric));
    const nrm_acc scale = nrmi_larger(size, largest / 1000);
    const int blurred = slope->uncertainty > tolerance * scale;
    const nrm_acc ruler = blurred ? nrmi_larger(scale, largest) : scale;
    const nrm_acc error = ruler > 0 ? gap / ruler : 0;                         /* GC.6 */
    report->checked++;
    if (!nrmi_finite(analytic)) {
        report->wrong++;
    } else if (!nrmi_finite(numeric) || !nrmi_finite(slope->uncertainty)) {
        report->unsettled++;
        return;
    } else if (size <= 4 * slope->noise) {
        report->vanishing++;
        return;
    } else if (slope->kink) {
        report->kinks++;
        return;
    } else if (gap > tolerance * scale + 4 * slope->uncertainty) {
        report->wrong++;
    } else if (slope->uncertainty > tolerance * ruler) {
        report->unsettled++;
        return;
    }
    if (error >= report->error || !nrmi_finite(error)) {
        report->worst = index;
        report->analytic = analytic;
        report->numeric = numeric;
        report->error = error;
        report->uncertainty = slope->uncertainty;
    }
}

/* The typical size of the entries, for GC.4, and their largest gradient, for GC.6. */
static void nrmi_group_scales(const nrm_gradcheck_group *group, nrm_acc *typical, nrm_acc *largest)
{
    nrm_acc squares = 0;
    size_t i;
    *largest = 0;
    for (i = 0; i < group->n; i++) {
        squares += (nrm_acc)group->theta[i] * (nrm_acc)group->theta[i];
        if (nrmi_finite((nrm_acc)group->grad[i]))
            *largest = nrmi_larger(*largest, nrmi_abs((nrm_acc)group->grad[i]));
    }
    *typical = group->n > 0 ? NRM_SQRT(squares / (nrm_acc)group->n) : 0;
}

static void nrmi_check_group(nrm_gradcheck_report *report, const nrm_gradcheck_group *group,
                             nrmi_check *check, const nrm_gradcheck_options *o, nrm_rng *rng)
{
    const size_t count = o->at_most > 0 && o->at_most < group->n ? o->at_most : group->n;
    nrm_acc typical, largest;
    size_t k;
    NRM_MEMSET(report, 0, sizeof *report);
    nrmi_group_scales(group, &typical, &largest);
    for (k = 0; k < count; k++) {
        /* one entry from each of `count` equal stretches of the array */
        const size_t each = group->n / count, rest = group->n % count;
        const size_t from = k * each + (k < rest ? k : rest), span = each + (k < rest ? 1 : 0);
        const size_t most = span < 0x7fffffffu ? span : 0x7fffffffu;
        const size_t i = from + nrm_rng_below(rng, (uint32_t)most);
        nrm_real *theta = group->theta + i;
        const nrm_acc scale = nrmi_larger(nrmi_abs((nrm_acc)*theta), typical);
        const nrm_acc h = o->step * (scale > 0 ? scale : 1); /* GC.4 */
        const nrmi_slope slope = nrmi_settle(check, theta, h, o->tolerance, largest);
        nrmi_judge(report, i, (nrm_acc)group->grad[i], &slope, o->tolerance, largest);
    }
    report->status = report->wrong > 0 ? NRM_EGRADIENT : NRM_OK;
    if (report->wrong == 0 && (report->unsettled > 0 ||
         (report->kinks > 0 && report->kinks + report->vanishing == report->checked)))
        report->status = NRM_EUNSETTLED;
}

static void nrmi_gradcheck_defaults(nrm_gradcheck_options *o, const nrm_gradcheck_options *given)
{
    const int in_float = nrmi_precision() > (nrm_acc)1e-10;
    NRM_MEMSET(o, 0, sizeof *o);
    if (given != NULL) *o = *given;
    if (!(o->tolerance > 0)) o->tolerance = in_float ? (nrm_acc)1e-2 : (nrm_acc)1e-7;
    if (!(o->step > 0)) o->step = in_float ? (nrm_acc)4e-2 : (nrm_acc)7e-4;
}

NRM_DEF int nrm_gradcheck(nrm_gradcheck_report *report, const nrm_gradcheck_group *group,
                          size_t groups, nrm_loss_fn *loss, void *context,
                          const nrm_gradcheck_options *options)
{
    nrm_gradcheck_options o;
    nrmi_check check;
    nrm_rng rng;
    size_t g;
    int rc = NRM_OK;
    if (groups == 0) return NRM_ESIZE;
    if (report == NULL || group == NULL || loss == NULL) return NRM_ENULL;
    for (g = 0; g < groups; g++)
        if (group[g].n > 0 && (group[g].theta == NULL || group[g].grad == NULL)) return NRM_ENULL;
    if (options != NULL && (!(options->tolerance >= 0) || !nrmi_finite(options->tolerance) ||
                            !(options->step >= 0) || !nrmi_finite(options->step)))
        return NRM_ERATE;
    nrmi_gradcheck_defaults(&o, options);
    nrm_rng_seed(&rng, o.seed, 0);
    NRM_MEMSET(&check, 0, sizeof check);
    check.loss = loss;
    check.context = context;
    check.branches = o.branches;
    check.base = loss(context);
    check.largest = nrmi_abs(check.base);
    if (o.branches != NULL) check.base_print = o.branches(context);
    for (g = 0; g < groups; g++) {
        nrmi_check_group(&report[g], &group[g], &check, &o, &rng);
        if (report[g].status == NRM_EGRADIENT || rc == NRM_OK)
            rc = rc == NRM_EGRADIENT ? rc : report[g].status;
    }
    return rc;
}

#if defined(__clang__)
#pragma STDC FP_CONTRACT DEFAULT
#elif defined(__GNUC__)
#pragma GCC pop_options
#endif

#ifdef NRM_TAG
#undef nrmi_bits
#undef nrmi_bn_job
#undef nrmi_channels
#undef nrmi_check
#undef nrmi_entry
#undef nrmi_gemm
#undef nrmi_lanes
#undef nrmi_line
#undef nrmi_ln_job
#undef nrmi_lp_job
#undef nrmi_matrix
#undef nrmi_moments
#undef nrmi_row
#undef nrmi_set
#undef nrmi_slope
#undef nrmi_strip
#undef nrmi_weight
#endif
#undef NRM_ALIGN
#undef NRM_APART
#undef NRM_AT_ONCE
#undef NRM_BAND
#undef NRM_BAND_NUMBERS
#undef NRM_BLOCK
#undef NRM_CHUNK
#undef NRM_COLS
#undef NRM_CREATE
#undef NRM_DEPTH
#undef NRM_ENTRY
#undef NRM_FETCH_FROM
#undef NRM_GROUP
#undef NRM_HEAD
#undef NRM_LANES
#undef NRM_LANE_VECS
#undef NRM_LN2_HEAD
#undef NRM_LN2_INVERSE
#undef NRM_LN2_TAIL
#undef NRM_MOST_ARRAYS
#undef NRM_MOST_FACTS
#undef NRM_MOST_MEMBER
#undef NRM_MOST_PATH
#undef NRM_NPY_TEXT
#undef NRM_ONES
#undef NRM_ON_LINE
#undef NRM_PACK_FROM
#undef NRM_PREFETCH
#undef NRM_ROWS
#undef NRM_SHARED_FROM
#undef NRM_SOME
#undef NRM_SQRT2
#undef NRM_STREAMS
#undef NRM_SUFFIX
#undef NRM_WIDE
#undef NRM_TILE_VECS
#undef NRM_UNROLL
#undef NRM_VEC
#undef NRM_VECTORS
#undef NRM_VEC_BYTES
#undef NRM_WIDTH
#ifdef NRM_OWN_SQRT
#undef NRM_OWN_SQRT
#undef NRM_SQRT
#endif

#endif /* NORMLAYERS_IMPLEMENTATION */
/*
## 21  History, references, licences

### History

- 0.1.0: batch norm and layer norm; noisy, Lp and synchronised batch norm, batch renorm,
  group, instance, RMS and weight norm; folding, and the statistics of other libraries; the
  linear layer, activations, softmax cross-entropy, a recurrent layer, the tiny perceptron;
  random numbers, files, gradient checking.

### References, by equation

- BN.1 to BN.5, BN.9 (the factor), BN.12 to BN.19: S. Ioffe, C. Szegedy, "Batch
  Normalization: Accelerating Deep Network Training by Reducing Internal Covariate Shift",
  2015, algorithms 1 and 2 and section 3.
- LN.1 to LN.5: J. L. Ba, J. R. Kiros, G. E. Hinton, "Layer Normalization", 2016, equations
  3 and 4.
- RNN.1 to RNN.3: the same, section 3.1. Statistics of each step: T. Cooijmans, N. Ballas,
  C. Laurent, C. Gulcehre, A. Courville, "Recurrent Batch Normalization", 2016. RNN.6,
  RNN.11: Y. Bengio, P. Simard, P. Frasconi, "Learning long-term dependencies with gradient
  descent is difficult", 1994.
- NB.1 to NB.5: S. Santurkar, D. Tsipras, A. Ilyas, A. Mądry, "How Does Batch Normalization
  Help Optimization?", 2018, appendix A.2.
- ST.1 to ST.3: T. F. Chan, G. H. Golub, R. J. LeVeque, "Updating Formulae and a Pairwise
  Algorithm for Computing Sample Variances", 1979.
- BR.1 to BR.3: S. Ioffe, "Batch Renormalization: Towards Reducing Minibatch Dependence in
  Batch-Normalized Models", 2017.
- GN.1 to GN.3: Y. Wu, K. He, "Group Normalization", 2018; for G = C: D. Ulyanov, A.
  Vedaldi, V. Lempitsky, "Instance Normalization: The Missing Ingredient for Fast
  Stylization", 2016. RMS.1, RMS.2: B. Zhang, R. Sennrich, "Root Mean Square Layer
  Normalization", 2019.
- LP.2: S. Santurkar, D. Tsipras, A. Ilyas, A. Mądry, "How Does Batch Normalization Help
  Optimization?", 2018, section 3.3 (not centred).
- WN.2, WN.4, WN.6, WN.8: T. Salimans, D. P. Kingma, "Weight Normalization: A Simple
  Reparameterization to Accelerate Training of Deep Neural Networks", 2016, equations 2, 3
  and 6. WN.12: J. Kohler, H. Daneshmand, A. Lucchi, M. Zhou, K. Neymeyr, T. Hofmann,
  "Exponential convergence rates for Batch Normalization: The power of length-direction
  decoupling in non-convex optimization", 2018.
- MLP.5: K. He, X. Zhang, S. Ren, J. Sun, "Delving Deep into Rectifiers", 2015. MLP.6: X.
  Glorot, Y. Bengio, "Understanding the difficulty of training deep feedforward neural
  networks", 2010.
- OPT.1: B. T. Polyak, "Some methods of speeding up the convergence of iteration methods",
  1964. OPT.3 to OPT.5: D. P. Kingma, J. Ba, "Adam: A Method for Stochastic Optimization",
  2015.
- RNG.1, RNG.2: M. E. O'Neill, "PCG: A Family of Simple Fast Space-Efficient Statistically
  Good Algorithms for Random Number Generation", 2014. RNG.5, RNG.6: G. Marsaglia, T. A.
  Bray, "A convenient method for generating normal variables", 1964.
- CRC.1 to CRC.3: W. W. Peterson, D. T. Brown, "Cyclic Codes for Error Detection", 1961; the
  polynomial and its order of bits are those of ISO 3309 and of PKZIP.
- GC.3: L. F. Richardson, "The Approximate Arithmetical Solution by Finite Differences of
  Physical Problems", 1911.

### Licences

This file is available under either of two licences, whichever you prefer.

Alternative A, public domain (The Unlicense). This is free and unencumbered software
released into the public domain. Anyone is free to copy, modify, publish, use, compile,
sell, or distribute this software, either in source code form or as a compiled binary, for
any purpose, commercial or non-commercial, and by any means. In jurisdictions that recognize
copyright laws, the author or authors of this software dedicate any and all copyright
interest in the software to the public domain. We make this dedication for the benefit of
the public at large and to the detriment of our heirs and successors. We intend this
dedication to be an overt act of relinquishment in perpetuity of all present and future
rights to this software under copyright law.

Alternative B, MIT No Attribution (MIT-0). Copyright 2026 the normlayers.h authors.
Permission is hereby granted, free of charge, to any person obtaining a copy of this
software and associated documentation files (the "Software"), to deal in the Software
without restriction, including without limitation the rights to use, copy, modify, merge,
publish, distribute, sublicense, and/or sell copies of the Software, and to permit persons
to whom the Software is furnished to do so.

In either case THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A
PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS
BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT
OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER
DEALINGS IN THE SOFTWARE.
*/
