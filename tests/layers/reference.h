/* reference.h - what the norms ought to compute, in a wider type: the second opinion of the tests
   of layers, of numerics, and of the accuracy tables.

   Include it after normlayers.h; the data are of its nrm_real, everything else is of ref_wide. That
   is long double. With REF_FLOAT128 defined as 1 it is __float128 where long double has no more
   digits than double and the compiler has that type, with 2 wherever the compiler has it. If
   REF_IS_WIDE is 0, results in double are judged by their equal.

   It is written as directly as the definition allows: one value at a time, no lanes, no blocking,
   and the backward pass by the chain rule along the forward graph instead of the closed form that
   normlayers.h derives. Two precautions keep its own rounding out of sight: sums carry what each
   addition loses, and a mean is kept as a value of the data plus the mean distance from it, so that
   no digit of a deviation is lost to a large mean. */
#ifndef REFERENCE_H
#define REFERENCE_H

#include <float.h>
#include <math.h>
#include <stddef.h>

#ifndef REF_FLOAT128
#define REF_FLOAT128 0
#endif
#if defined(__SIZEOF_FLOAT128__) && REF_FLOAT128 > (LDBL_MANT_DIG > DBL_MANT_DIG ? 1 : 0)
typedef __float128 ref_wide;
#define REF_IS_WIDE 1
#define REF_TYPE "__float128"
#else
typedef long double ref_wide;
#define REF_IS_WIDE (LDBL_MANT_DIG > DBL_MANT_DIG)
#define REF_TYPE (LDBL_MANT_DIG == 64 ? "80-bit long double" : "long double")
#endif
#define REF(a) ((ref_wide)(a))

/* ---- numbers --------------------------------------------------------------------------------- */

static inline ref_wide ref_abs(ref_wide a)
{
    return a < 0 ? -a : a;
}

/* By Newton's method from the double, since libm has no root of a __float128: each step doubles the
   correct digits. a is within the range of double. */
static inline ref_wide ref_sqrt(ref_wide a)
{
    ref_wide s = REF(sqrt((double)a));
    int step;
    for (step = 0; step < 2 && s > 0; step++) s -= (s * s - a) / (2 * s);
    return s;
}

/* A sum and, beside it, what the additions have lost: each loss is exact (Knuth's two-sum). */
typedef struct ref_sum {
    ref_wide sum, lost;
} ref_sum;

static inline void ref_add(ref_sum *s, ref_wide term)
{
    const ref_wide next = s->sum + term, added = next - s->sum;
    s->lost += (s->sum - (next - added)) + (term - added);
    s->sum = next;
}

static inline ref_wide ref_total(const ref_sum *s)
{
    return s->sum + s->lost;
}

/* ---- groups ---------------------------------------------------------------------------------- */

/* Values that are normalized together, `outer` runs of `inner` neighbours: value (o, i) stands at
   start + o*stride + i and has the parameters number par + o*par_stride + i*par_step. */
typedef struct ref_group {
    size_t start, outer, stride, inner, par, par_stride, par_step;
} ref_group;

/* Channel c of a tensor [N][C][S]. */
static inline ref_group ref_channel(size_t c, size_t N, size_t C, size_t S)
{
    ref_group g;
    g.start = c * S;
    g.outer = N;
    g.stride = C * S;
    g.inner = S;
    g.par = c;
    g.par_stride = 0;
    g.par_step = 0;
    return g;
}

/* Row n of a matrix [N][D]. */
static inline ref_group ref_row(size_t n, size_t D)
{
    ref_group g;
    g.start = n * D;
    g.outer = 1;
    g.stride = 0;
    g.inner = D;
    g.par = 0;
    g.par_stride = 0;
    g.par_step = 1;
    return g;
}

/* Group j of G of example n of a tensor [N][C][S]. */
static inline ref_group ref_channels(size_t n, size_t j, size_t C, size_t S, size_t G)
{
    ref_group g;
    g.start = (n * G + j) * (C / G) * S;
    g.outer = C / G;
    g.stride = S;
    g.inner = S;
    g.par = j * (C / G);
    g.par_stride = 1;
    g.par_step = 0;
    return g;
}

/* Runs `statement` for all values of the group *g in order: `at` is the place of the value, `par`
   the number of its parameters. */
#define REF_EACH(g, statement)                                                                     \
    do {                                                                                           \
        size_t o_, i_;                                                                             \
        for (o_ = 0; o_ < (g)->outer; o_++)                                                        \
            for (i_ = 0; i_ < (g)->inner; i_++) {                                                  \
                const size_t at = (g)->start + o_ * (g)->stride + i_;                              \
                const size_t par = (g)->par + o_ * (g)->par_stride + i_ * (g)->par_step;           \
                (void)par;                                                                         \
                statement;                                                                         \
            }                                                                                      \
    } while (0)

/* ---- forward --------------------------------------------------------------------------------- */

typedef struct ref_stats { /* the mean is shift + offset, where shift is exact and offset small */
    ref_wide shift, offset, var;
} ref_stats;

static inline ref_wide ref_mean(const ref_stats *s)
{
    return s->shift + s->offset;
}

static inline ref_wide ref_deviation(const ref_stats *s, nrm_real x)
{
    return (REF(x) - s->shift) - s->offset;
}

/* Statistics that are given, not computed. */
static inline ref_stats ref_given(ref_wide mean, ref_wide var)
{
    ref_stats s;
    s.shift = mean;
    s.offset = 0;
    s.var = var;
    return s;
}

/* Mean and variance (divided by the count) of a group that is not empty. */
static inline ref_stats ref_moments(const ref_group *g, const nrm_real *x)
{
    const ref_wide count = REF(g->outer) * REF(g->inner);
    ref_sum sum = {0, 0}, squares = {0, 0};
    ref_stats s = ref_given(REF(x[g->start]), 0);
    REF_EACH(g, ref_add(&sum, REF(x[at]) - s.shift));
    s.offset = ref_total(&sum) / count;
    REF_EACH(g, ref_add(&squares, ref_deviation(&s, x[at]) * ref_deviation(&s, x[at])));
    s.var = ref_total(&squares) / count;
    return s;
}

/* With any rstd. gamma and beta may be NULL, for 1 and 0. */
static inline void ref_forward_by(ref_wide *y, const ref_group *g, const nrm_real *x,
                                  const ref_stats *s, ref_wide rstd, const nrm_real *gamma,
                                  const nrm_real *beta)
{
    REF_EACH(g, {
        y[at] = ref_deviation(s, x[at]) * rstd;
        if (gamma != NULL) y[at] *= REF(gamma[par]);
        if (beta != NULL) y[at] += REF(beta[par]);
    });
}

static inline void ref_forward(ref_wide *y, const ref_group *g, const nrm_real *x,
                               const ref_stats *s, ref_wide eps, const nrm_real *gamma,
                               const nrm_real *beta)
{
    ref_forward_by(y, g, x, s, 1 / ref_sqrt(s->var + eps), gamma, beta);
}

/* ---- backward -------------------------------------------------------------------------------- */

/* The chain rule along the graph x -> mean -> variance -> normalized. With `constant` the
   statistics do not depend on x. */
static inline void ref_backward_input(ref_wide *dx, const ref_group *g, const nrm_real *x,
                                      const nrm_real *dy, const ref_stats *s, ref_wide eps,
                                      const nrm_real *gamma, int constant)
{
    const ref_wide share = 1 / (REF(g->outer) * REF(g->inner)); /* of one value in a mean */
    const ref_wide rstd = 1 / ref_sqrt(s->var + eps);
    ref_sum through_var = {0, 0}, through_mean = {0, 0};
    ref_wide dvar, dmean;
    REF_EACH(g, {
        const ref_wide dxhat = REF(dy[at]) * (gamma != NULL ? REF(gamma[par]) : 1);
        ref_add(&through_var, dxhat * ref_deviation(s, x[at]));
        ref_add(&through_mean, -dxhat * rstd);
        dx[at] = dxhat * rstd;
    });
    if (constant) return;
    dvar = ref_total(&through_var) * (-rstd * rstd * rstd / 2); /* of 1/sqrt(var + eps) */
    REF_EACH(g, ref_add(&through_mean, -dvar * 2 * ref_deviation(s, x[at]) * share));
    dmean = ref_total(&through_mean);
    REF_EACH(g, dx[at] += (dvar * 2 * ref_deviation(s, x[at]) + dmean) * share);
}

/* Adds to dgamma and dbeta what this group has to do with them. */
static inline void ref_backward_parameters_by(ref_wide *dgamma, ref_wide *dbeta,
                                              const ref_group *g, const nrm_real *x,
                                              const nrm_real *dy, const ref_stats *s,
                                              ref_wide rstd)
{
    ref_sum gamma_sum = {0, 0}, beta_sum = {0, 0};
    if (g->par_step != 0 || g->par_stride != 0) { /* not one pair of parameters for all */
        REF_EACH(g, {
            dgamma[par] += REF(dy[at]) * ref_deviation(s, x[at]) * rstd;
            dbeta[par] += REF(dy[at]);
        });
        return;
    }
    REF_EACH(g, {
        ref_add(&gamma_sum, REF(dy[at]) * ref_deviation(s, x[at]) * rstd);
        ref_add(&beta_sum, REF(dy[at]));
    });
    dgamma[g->par] += ref_total(&gamma_sum);
    dbeta[g->par] += ref_total(&beta_sum);
}

static inline void ref_backward_parameters(ref_wide *dgamma, ref_wide *dbeta, const ref_group *g,
                                           const nrm_real *x, const nrm_real *dy,
                                           const ref_stats *s, ref_wide eps)
{
    ref_backward_parameters_by(dgamma, dbeta, g, x, dy, s, 1 / ref_sqrt(s->var + eps));
}

/* ---- RMS norm, and layer norm with s + eps --------------------------------------------------- */

/* The mean square takes the place of the variance, and 0 that of the mean: all but the gradient of
   the input is as above. */
static inline ref_stats ref_mean_square(const ref_group *g, const nrm_real *x)
{
    ref_sum squares = {0, 0};
    REF_EACH(g, ref_add(&squares, REF(x[at]) * REF(x[at])));
    return ref_given(0, ref_total(&squares) / (REF(g->outer) * REF(g->inner)));
}

/* The chain rule along x -> mean square -> normalized. */
static inline void ref_backward_rms(ref_wide *dx, const ref_group *g, const nrm_real *x,
                                    const nrm_real *dy, const ref_stats *s, ref_wide eps,
                                    const nrm_real *gamma)
{
    const ref_wide share = 1 / (REF(g->outer) * REF(g->inner));
    const ref_wide rstd = 1 / ref_sqrt(s->var + eps);
    ref_sum through = {0, 0};
    REF_EACH(g, {
        const ref_wide dxhat = REF(dy[at]) * (gamma != NULL ? REF(gamma[par]) : 1);
        ref_add(&through, dxhat * REF(x[at]));
        dx[at] = dxhat * rstd;
    });
    REF_EACH(g, dx[at] += ref_total(&through) * (-rstd * rstd * rstd / 2) * 2 * REF(x[at]) * share);
}

#endif
