/* derive_conventions.h - FOLD, CONV: batch norm folded into weights, statistics of other libraries.

   The layer before batch norm is a sum over k; `wide` evaluates it, so that only W′ and b′ have
   been rounded when the two sides of FOLD.3 are compared. */
#ifndef DERIVE_CONVENTIONS_H
#define DERIVE_CONVENTIONS_H

#include "derive_tools.h"

enum { FOLD_CHANNELS = 5, FOLD_WEIGHTS = 240 };

typedef struct fold_case {
    size_t outer, C, inner;
    double center; /* of the running means, in standard deviations */
    nrm_real eps, W[FOLD_WEIGHTS], b[FOLD_CHANNELS], x[FOLD_WEIGHTS];
    nrm_real mean[FOLD_CHANNELS], var[FOLD_CHANNELS], gamma[FOLD_CHANNELS], beta[FOLD_CHANNELS];
    nrm_real W_folded[FOLD_WEIGHTS], b_folded[FOLD_CHANNELS];
    nrm_running running;
} fold_case;

static void fold_setup(fold_case *k, size_t outer, size_t C, size_t inner, double center,
                       double scale, nrm_rng *rng)
{
    size_t c;
    memset(k, 0, sizeof *k);
    k->outer = outer;
    k->C = C;
    k->inner = inner;
    k->eps = (nrm_real)(1e-3 * scale * scale);
    fill_real(k->W, outer * C * inner, 0.1 * scale, scale, rng);
    fill_real(k->x, outer * inner, 0, 1, rng);
    fill_real(k->b, C, 2 * scale, scale, rng);
    fill_real(k->beta, C, 1, 1, rng);
    for (c = 0; c < C; c++) {
        k->gamma[c] = (nrm_real)(uniform_between(rng, 0.25, 2) * (c % 2 ? -1 : 1));
        k->var[c] = (nrm_real)(scale * scale * uniform_between(rng, 0.1, 10));
        k->mean[c] = (nrm_real)(scale * center * uniform_between(rng, -1, 1));
    }
    k->running.mean = k->mean;
    k->running.var = k->var;
    if (nrm_batchnorm_fold(k->W_folded, k->b_folded, k->W, k->b, &k->running, k->gamma, k->beta,
                           k->eps, outer, C, inner) != NRM_OK)
        k->W_folded[0] = (nrm_real)NAN;
}

static wide factor_of(const fold_case *k, size_t c)
{
    return (wide)k->gamma[c] / sqrtl((wide)k->var[c] + (wide)k->eps);
}

/* Weight number i of channel c, and the input that it meets. */
static size_t weight_of(const fold_case *k, size_t c, size_t i)
{
    return (i / k->inner * k->C + c) * k->inner + i % k->inner;
}

/* A sum x·W + b, or of its terms' sizes. */
static wide layer_output(const fold_case *k, const nrm_real *W, wide b, size_t c, int sizes)
{
    wide sum = sizes ? fabsl(b) : b;
    size_t i;
    for (i = 0; i < k->outer * k->inner; i++) {
        const wide term = (wide)k->x[i] * (wide)W[weight_of(k, c, i)];
        sum += sizes ? fabsl(term) : term;
    }
    return sum;
}

static void derive_fold_channel(const fold_case *k, size_t c)
{
    const wide a = factor_of(k, c), beta = (wide)k->beta[c], mean = (wide)k->mean[c];
    const wide shift = a * ((wide)k->b[c] - mean);
    const wide z = layer_output(k, k->W, (wide)k->b[c], c, 0);
    const wide y = layer_output(k, k->W_folded, (wide)k->b_folded[c], c, 0);
    const wide exact = a * (z - mean) + beta, terms = layer_output(k, k->W_folded, 0, c, 1);
    const wide unit = ldexpl(1, in_float() ? -24 : -53);
    wide bound = unit * (terms + fabsl((wide)k->b_folded[c])) * (1 + 1e-6L), worst = 0;
    size_t i;
    if (acc_no_wider()) bound = 6 * unit * (terms + fabsl(shift) + fabsl(beta));
    for (i = 0; i < k->outer * k->inner; i++) {
        const size_t at = weight_of(k, c, i);
        worst = worse(worst, relative((wide)k->W_folded[at], a * (wide)k->W[at]));
    }
    DERIVE("FOLD.1", worst, identity());
    DERIVE("FOLD.2", apart((wide)k->b_folded[c], shift + beta, fabsl(shift) + fabsl(beta)),
           identity());
    DERIVE("FOLD.3", apart(y, exact, terms + fabsl(shift) + fabsl(beta)), identity());
    DERIVE("FOLD.4", unless(fabsl(y - exact) <= bound), algebra());
}

/* FOLD.5 and FOLD.6 by themselves, and folding again what they give: the last place of W′, and of b
   where it is as large as its terms. */
static void derive_unfold(const fold_case *k)
{
    static nrm_real W[FOLD_WEIGHTS], b[FOLD_CHANNELS];
    const wide unit = in_float() ? (wide)FLT_EPSILON : (wide)DBL_EPSILON;
    fold_case again = *k;
    wide weights = 0, back = 0;
    size_t c, i;
    if (nrm_batchnorm_unfold(W, b, k->W_folded, k->b_folded, &k->running, k->gamma, k->beta, k->eps,
                             k->outer, k->C, k->inner) != NRM_OK)
        weights = (wide)HUGE_VAL;
    (void)nrm_batchnorm_fold(again.W_folded, again.b_folded, W, b, &k->running, k->gamma, k->beta,
                             k->eps, k->outer, k->C, k->inner);
    for (c = 0; c < k->C; c++) {
        const wide a = factor_of(k, c), solved = ((wide)k->b_folded[c] - (wide)k->beta[c]) / a;
        const wide size = fabsl(solved) + fabsl((wide)k->mean[c]) + fabsl((wide)k->beta[c] / a);
        for (i = 0; i < k->outer * k->inner; i++) {
            const size_t at = weight_of(k, c, i);
            const wide there = (wide)k->W_folded[at];
            weights = worse(weights, relative((wide)W[at], there / a));
            back =
                worse(back, unless(fabsl((wide)again.W_folded[at] - there) <= unit * fabsl(there)));
        }
        DERIVE("FOLD.6", apart((wide)b[c], solved + (wide)k->mean[c], size), identity());
        ALSO(unless(fabsl((wide)again.b_folded[c] - (wide)k->b_folded[c]) <=
                    (acc_no_wider() ? 4 : 1) * unit * size * fabsl(a)),
             algebra());
    }
    DERIVE("FOLD.5", weights, identity());
    ALSO(back, algebra());
}

static void derive_fold(void)
{
    static const size_t shape[][3] = {{1, 1, 1},  {7, 3, 1}, {1, 3, 7}, {48, 5, 1},
                                      {1, 5, 48}, {4, 2, 9}, {3, 5, 2}};
    static const double center[] = {0, 1, 1000}, scale[] = {1e-3, 1, 1e3};
    nrm_rng rng = stream(1400);
    fold_case k;
    size_t i, j, c;
    for (i = 0; i < LENGTH(shape); i++)
        for (j = 0; j < 9; j++) {
            fold_setup(&k, shape[i][0], shape[i][1], shape[i][2], center[j % 3], scale[j / 3],
                       &rng);
            for (c = 0; c < k.C; c++) derive_fold_channel(&k, c);
            derive_unfold(&k);
        }
}

/* ---- the statistics of other libraries ------------------------------------------------------- */

enum { KEPT = 6 };

/* What the other library would divide by, if it has `stored`. */
static wide divisor_of(const nrm_convention *from, wide stored)
{
    const wide e = (wide)from->eps;
    if (from->spread == NRM_KEEPS_RSTD) return 1 / stored;
    if (from->eps_outside) return (from->spread == NRM_KEEPS_STD ? stored : sqrtl(stored)) + e;
    return sqrtl((from->spread == NRM_KEEPS_STD ? stored * stored : stored) + e);
}

/* One call of the import for KEPT variances of a given size: is u + ε the square of the divisor,
   and does BN.11 give what the other library computes? */
static void derive_import(const nrm_convention *from, double size, nrm_rng *rng)
{
    nrm_real mean[KEPT], spread[KEPT], m[KEPT], u[KEPT], x[KEPT], y[KEPT], gamma[KEPT], beta[KEPT];
    nrm_real eps = 0;
    nrm_running running;
    wide square = 0, result = 0, extra = 0;
    const wide e = (wide)from->eps;
    size_t c;
    int rc;
    memset(&running, 0, sizeof running);
    running.mean = m;
    running.var = u;
    for (c = 0; c < KEPT; c++) {
        const double v = size * uniform_between(rng, 0.1, 10), s = sqrt(v);
        mean[c] = (nrm_real)(s * uniform_between(rng, -1, 1));
        spread[c] = (nrm_real)(from->spread == NRM_KEEPS_VAR ? v : s);
        if (from->spread == NRM_KEEPS_RSTD)
            spread[c] = (nrm_real)(1 / (from->eps_outside ? s + (double)from->eps
                                                          : sqrt(v + (double)from->eps)));
        x[c] = (nrm_real)(s * (double)nrm_rng_normal(rng));
    }
    fill_real(gamma, KEPT, 1, 0.5, rng);
    fill_real(beta, KEPT, 0, 1, rng);
    rc = nrm_running_import(&running, &eps, mean, spread, 1, from, KEPT);
    if (rc == NRM_OK)
        rc = nrm_batchnorm_forward(y, NULL, NULL, &running, x, gamma, beta, NRM_INFER, eps, 1, KEPT,
                                   1);
    if (rc != NRM_OK) result = (wide)HUGE_VAL;
    for (c = 0; c < KEPT && rc == NRM_OK; c++) {
        const wide s = divisor_of(from, (wide)spread[c]);
        const wide z = (wide)gamma[c] * ((wide)x[c] - (wide)mean[c]) / s, v = (s - e) * (s - e);
        square = worse(square, relative((wide)u[c] + (wide)eps, s * s));
        result =
            worse(result, apart((wide)y[c], z + (wide)beta[c], fabsl(z) + fabsl((wide)beta[c])));
        if (from->eps_outside) extra = worse(extra, relative(v + 2 * e * (s - e), s * s - e * e));
    }
    DERIVE("CONV.1", result, identity());
    DERIVE("CONV.2", square, identity());
    if (from->eps_outside) DERIVE("CONV.3", worse(square, extra), identity());
    if (from->spread == NRM_KEEPS_RSTD)
        DERIVE("CONV.4",
               apart((wide)u[0], 1 / ((wide)spread[0] * (wide)spread[0]) - (wide)eps,
                     (wide)u[0] + (wide)eps),
               identity());
    DERIVE("CONV.7",
           apart((wide)running.new_weight,
                 from->weight_is_old ? 1 - (wide)from->momentum : (wide)from->momentum, 1),
           identity());
}

/* CONV.5 and CONV.6: sums and their weight against a plain average with the weights 1, f, f², …,
   and against BN.8 with the weight of CONV.6; both by the import after some batches. */
static void derive_sums_of_means(double f, nrm_rng *rng)
{
    nrm_convention caffe;
    wide sum = 0, c = 0, average = 0, weights = 0, moving = 0;
    nrm_real stored, var = 1, m = 0, u = 1, eps;
    nrm_running running;
    int t;
    memset(&running, 0, sizeof running);
    running.mean = &m;
    running.var = &u;
    (void)nrm_convention_of(&caffe, NRM_CAFFE);
    for (t = 0; t < 40; t++) {
        const wide mu = 3 + (wide)nrm_rng_normal(rng), w = 1 / ((wide)f * c + 1);
        sum = (wide)f * sum + mu;
        c = (wide)f * c + 1;
        average = (wide)f * average + mu; /* Horner: the newest with weight 1 */
        weights = (wide)f * weights + 1;
        moving = (1 - w) * moving + w * mu;
        stored = (nrm_real)sum;
        if (nrm_running_import(&running, &eps, &stored, &var, (nrm_acc)c, &caffe, 1) != NRM_OK)
            m = (nrm_real)NAN;
        DERIVE("CONV.5", relative((wide)m, average / weights), identity());
        DERIVE("CONV.6", relative(moving, sum / c), algebra());
        ALSO(unless(w >= 1 - (wide)f && (f > 0.9 || t < 39 || w - (1 - (wide)f) < 1e-3L)),
             algebra());
    }
}

static void derive_conventions(void)
{
    nrm_rng rng = stream(1401);
    nrm_convention from;
    int library, spread, outside, i;
    for (library = NRM_PYTORCH; library <= NRM_RUNNING_STD; library++) {
        (void)nrm_convention_of(&from, library);
        if (library == NRM_CUDNN) {
            from.momentum = (nrm_acc)0.25;
            from.eps = (nrm_acc)1e-4;
        }
        for (i = 0; i < 3; i++) derive_import(&from, i == 0 ? 1 : i == 1 ? 1e-4 : 1e4, &rng);
    }
    for (spread = NRM_KEEPS_VAR; spread <= NRM_KEEPS_RSTD; spread++)
        for (outside = 0; outside < 2; outside++)
            for (i = 0; i < 3; i++) {
                from.spread = spread;
                from.eps_outside = outside;
                from.weight_is_old = i == 1;
                from.momentum = (nrm_acc)0.125;
                from.eps = (nrm_acc)(i == 0 ? 0.5 : 1e-3); /* a large ε, too */
                derive_import(&from, i == 2 ? 100 : 1, &rng);
            }
    derive_sums_of_means(0.75, &rng);
    derive_sums_of_means(0.999, &rng);
}

#endif
