/* derive_fold.h - FOLD: batch norm folded into the weights before it.

   The layer before batch norm is a sum over k; `wide` evaluates it, so that only W′ and b′ have
   been rounded when the two sides of FOLD.3 are compared. */
#ifndef DERIVE_FOLD_H
#define DERIVE_FOLD_H

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
        }
}

#endif
