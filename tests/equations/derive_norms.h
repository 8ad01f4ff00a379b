/* derive_norms.h - BN, LN, NB: the normalization layers.

   A norm_case is one call of a layer, forward and backward, with everything random: γ, β, centre
   and scale of the data, and the weights w of the loss L = ∑ w·y, so that dy = w. A norm_group is
   what is normalized together in it, a channel or a row, as the papers' formulas have it. */
#ifndef DERIVE_NORMS_H
#define DERIVE_NORMS_H

#include "derive_tools.h"

enum { CHANNELS = 80 };

typedef struct norm_case {
    int layer;               /* layer norm: N rows of C features, S = 1 */
    int mode;                /* of batch norm */
    size_t N, C, S, count;
    size_t groups, members;  /* what is normalized together, and how many of it */
    nrm_real eps;
    double x[NUMBERS], w[NUMBERS];                /* values that an nrm_real holds */
    double gamma[CHANNELS], beta[CHANNELS], m[CHANNELS], u[CHANNELS];
    nrm_real y[NUMBERS], xhat[NUMBERS], dx[NUMBERS];  /* what the code makes of them */
    nrm_real dgamma[CHANNELS], dbeta[CHANNELS], dgamma_before[CHANNELS], dbeta_before[CHANNELS];
    nrm_acc mean[CHANNELS], rstd[CHANNELS];
} norm_case;

typedef struct norm_group {
    size_t n;
    wide x[GROUP], w[GROUP], gamma[GROUP], beta[GROUP], eps;
    wide mu, v, r, xhat[GROUP], y[GROUP], g[GROUP], g_mean, gx_mean, dx[GROUP];
    wide size; /* of its gradients: r·max|g| */
} norm_group;

/* Where member i of a group stands in the tensor, and which parameters belong to it. */
static size_t place_of(const norm_case *k, size_t group, size_t i)
{
    if (k->layer) return group * k->C + i;
    return (i / k->S * k->C + group) * k->S + i % k->S;
}

static size_t param_of(const norm_case *k, size_t group, size_t i)
{
    return k->layer ? i : group;
}

/* ---- the papers' formulas -------------------------------------------------------------------- */

static void group_statistics(norm_group *g)
{
    size_t i;
    g->mu = mean_of(g->x, g->n);
    g->v = 0;
    for (i = 0; i < g->n; i++) g->v += (g->x[i] - g->mu) * (g->x[i] - g->mu);
    g->v /= (wide)g->n;
}

static void group_gradient(norm_group *g, int statistics_are_constants)
{
    wide products[GROUP] = {0};
    size_t i;
    g->size = 0;
    for (i = 0; i < g->n; i++) {
        g->g[i] = g->gamma[i] * g->w[i];
        products[i] = g->g[i] * g->xhat[i];
        g->size = worse(g->size, g->r * fabsl(g->g[i]));
    }
    g->g_mean = mean_of(g->g, g->n);
    g->gx_mean = mean_of(products, g->n);
    for (i = 0; i < g->n; i++)
        g->dx[i] = statistics_are_constants
                       ? g->r * g->g[i]
                       : g->r * (g->g[i] - g->g_mean - g->xhat[i] * g->gx_mean);
}

static void load_group(norm_group *g, const norm_case *k, size_t group)
{
    size_t i;
    g->n = k->members;
    g->eps = (wide)k->eps;
    for (i = 0; i < g->n; i++) {
        g->x[i] = (wide)k->x[place_of(k, group, i)];
        g->w[i] = (wide)k->w[place_of(k, group, i)];
        g->gamma[i] = (wide)k->gamma[param_of(k, group, i)];
        g->beta[i] = (wide)k->beta[param_of(k, group, i)];
    }
    group_statistics(g);
    if (k->mode != NRM_TRAIN) {
        g->mu = (wide)k->m[group];
        g->v = (wide)k->u[group];
    }
    g->r = 1 / sqrtl(g->v + g->eps);
    for (i = 0; i < g->n; i++) {
        g->xhat[i] = (g->x[i] - g->mu) * g->r;
        g->y[i] = g->gamma[i] * g->xhat[i] + g->beta[i];
    }
    group_gradient(g, k->mode != NRM_TRAIN);
}

/* ---- the code -------------------------------------------------------------------------------- */

static void point_running(nrm_running *running, nrm_real *mean, nrm_real *var, const norm_case *k)
{
    memset(running, 0, sizeof *running);
    to_real(mean, k->m, k->C);
    to_real(var, k->u, k->C);
    running->mean = mean;
    running->var = var;
}

static int run_forward(norm_case *k, nrm_real *y, int affine)
{
    nrm_real x[NUMBERS], gamma[CHANNELS], beta[CHANNELS], mean[CHANNELS], var[CHANNELS];
    nrm_running running;
    to_real(x, k->x, k->count);
    to_real(gamma, k->gamma, k->C);
    to_real(beta, k->beta, k->C);
    point_running(&running, mean, var, k);
    if (k->layer)
        return nrm_layernorm_forward(y, k->mean, k->rstd, x, affine ? gamma : NULL,
                                     affine ? beta : NULL, k->eps, k->N, k->C);
    return nrm_batchnorm_forward(y, k->mean, k->rstd, k->mode == NRM_TRAIN ? NULL : &running, x,
                                 affine ? gamma : NULL, affine ? beta : NULL, k->mode, k->eps,
                                 k->N, k->C, k->S);
}

static int run_backward(norm_case *k)
{
    nrm_real x[NUMBERS], dy[NUMBERS], gamma[CHANNELS];
    to_real(x, k->x, k->count);
    to_real(dy, k->w, k->count);
    to_real(gamma, k->gamma, k->C);
    memcpy(k->dgamma, k->dgamma_before, sizeof k->dgamma);
    memcpy(k->dbeta, k->dbeta_before, sizeof k->dbeta);
    if (k->layer)
        return nrm_layernorm_backward(k->dx, k->dgamma, k->dbeta, dy, x, k->mean, k->rstd, gamma,
                                      k->N, k->C);
    return nrm_batchnorm_backward(k->dx, k->dgamma, k->dbeta, dy, x, k->mean, k->rstd, gamma,
                                  k->mode, k->N, k->C, k->S);
}

/* Random numbers into a case of the given shape, and both passes of the code. */
static void norm_setup(norm_case *k, int layer, int mode, size_t N, size_t C, size_t S,
                       double scale, nrm_rng *rng)
{
    size_t c;
    memset(k, 0, sizeof *k);
    k->layer = layer;
    k->mode = mode;
    k->N = N;
    k->C = C;
    k->S = S;
    k->count = N * C * S;
    k->groups = layer ? N : C;
    k->members = layer ? C : N * S;
    k->eps = nrm_rng_below(rng, 2) ? NRM_EPS : (nrm_real)1e-3;
    fill(k->x, k->count, 0.7 * scale, scale, rng);
    fill(k->w, k->count, 0.2, 1, rng);
    fill(k->gamma, C, 1.5, 0.5, rng);
    fill(k->beta, C, -0.3, 1, rng);
    fill(k->m, C, 0.5 * scale, 0.1 * scale, rng);
    for (c = 0; c < C; c++)
        k->u[c] = (double)(nrm_real)(scale * scale * uniform_between(rng, 0.5, 2));
    fill_real(k->dgamma_before, C, 1, 1, rng);
    fill_real(k->dbeta_before, C, 1, 1, rng);
    if (run_forward(k, k->xhat, 0) != NRM_OK || run_forward(k, k->y, 1) != NRM_OK ||
        run_backward(k) != NRM_OK)
        k->y[0] = k->xhat[0] = k->dx[0] = (nrm_real)HUGE_VAL;
}

/* ---- differences of the forward pass --------------------------------------------------------- */

/* y of the case as it now is: of the code in double, of the formulas where the code is in float. */
static void forward_in_double(norm_case *k, wide *y)
{
    size_t i;
#ifdef NRM_DOUBLE
    nrm_real out[NUMBERS];
    const int rc = run_forward(k, out, 1);
    for (i = 0; i < k->count; i++) y[i] = rc == NRM_OK ? (wide)out[i] : (wide)HUGE_VAL;
#else
    norm_group g;
    size_t group;
    for (group = 0; group < k->groups; group++) {
        load_group(&g, k, group);
        for (i = 0; i < k->members; i++) y[place_of(k, group, i)] = g.y[i];
    }
#endif
}

static wide norm_loss(void *context)
{
    norm_case *k = (norm_case *)context;
    wide y[NUMBERS], loss = 0;
    size_t i;
    forward_in_double(k, y);
    for (i = 0; i < k->count; i++) loss += (wide)k->w[i] * y[i];
    return loss;
}

/* A step that is small beside the width of a group. */
static double step_for(const norm_group *g)
{
    return binary((double)(1 / g->r) / 1024);
}

/* dx of the code against the slopes of the loss. */
static wide input_slopes(norm_case *k)
{
    wide worst = 0;
    norm_group g;
    size_t group, i;
    for (group = 0; group < k->groups; group++) {
        load_group(&g, k, group);
        for (i = 0; i < k->members; i++) {
            const size_t at = place_of(k, group, i);
            const wide should = slope(norm_loss, k, k->x + at, step_for(&g));
            worst = worse(worst, apart((wide)k->dx[at], should, g.size));
        }
    }
    return worst;
}

/* dγ or dβ, less what stood there before, against the slopes of the loss. */
static wide param_slopes(norm_case *k, double *theta, const nrm_real *grad,
                         const nrm_real *before)
{
    wide worst = 0;
    size_t c;
    for (c = 0; c < k->C; c++) {
        const wide should = slope(norm_loss, k, theta + c, 0.0625);
        worst = worse(worst, apart((wide)grad[c] - (wide)before[c], should, 1 + fabsl(should)));
    }
    return worst;
}

/* ---- residuals of a group: those that both layers have --------------------------------------- */

static wide mean_residual(const norm_case *k, const norm_group *g, size_t group)
{
    return apart((wide)k->mean[group], g->mu, fabsl(g->mu) + sqrtl(g->v));
}

/* The code's variance, read back from its r. */
static wide variance_residual(const norm_case *k, const norm_group *g, size_t group)
{
    const wide r = (wide)k->rstd[group];
    return apart(1 / (r * r) - g->eps, g->v, g->v + g->eps);
}

static wide rstd_residual(const norm_case *k, const norm_group *g, size_t group)
{
    return relative((wide)k->rstd[group], g->r);
}

static wide xhat_residual(const norm_case *k, const norm_group *g, size_t group)
{
    wide worst = 0;
    size_t i;
    for (i = 0; i < g->n; i++)
        worst = worse(worst, apart((wide)k->xhat[place_of(k, group, i)], g->xhat[i],
                                   1 + fabsl(g->xhat[i])));
    return worst;
}

static wide output_residual(const norm_case *k, const norm_group *g, size_t group)
{
    wide worst = 0;
    size_t i;
    for (i = 0; i < g->n; i++)
        worst = worse(worst, apart((wide)k->y[place_of(k, group, i)], g->y[i],
                                   fabsl(g->gamma[i] * g->xhat[i]) + fabsl(g->beta[i]) + 1));
    return worst;
}

/* ∑ x̂ of the code. */
static wide sum_residual(const norm_case *k, const norm_group *g, size_t group)
{
    wide sum = 0;
    size_t i;
    for (i = 0; i < g->n; i++) sum += (wide)k->xhat[place_of(k, group, i)];
    return fabsl(sum) / (wide)g->n;
}

/* The three sides of ⟨x̂²⟩ = v·r² = 1 − ε·r², the first of the code. */
static wide square_residual(const norm_case *k, const norm_group *g, size_t group)
{
    const wide r = (wide)k->rstd[group];
    wide sum = 0;
    size_t i;
    for (i = 0; i < g->n; i++)
        sum += (wide)k->xhat[place_of(k, group, i)] * (wide)k->xhat[place_of(k, group, i)];
    sum /= (wide)g->n;
    return worse(apart(sum, g->v * g->r * g->r, 1), apart(sum, 1 - g->eps * r * r, 1));
}

/* The backward pass has nothing but the saved mean. In a float that is rounded, and where the mean
   is far from 0 all x̂ are off by the same small amount: how much the gradients may grow by it. */
static wide blurred_size(const norm_group *g)
{
    return g->size * (1 + (acc_in_float() ? fabsl(g->mu) * g->r : 0));
}

static wide dx_residual(const norm_case *k, const norm_group *g, size_t group)
{
    const wide size = blurred_size(g);
    wide worst = 0;
    size_t i;
    for (i = 0; i < g->n; i++)
        worst = worse(worst, apart((wide)k->dx[place_of(k, group, i)], g->dx[i], size));
    return worst;
}

/* ∑ dx of the code. */
static wide dx_sum_residual(const norm_case *k, const norm_group *g, size_t group)
{
    wide sum = 0;
    size_t i;
    for (i = 0; i < g->n; i++) sum += (wide)k->dx[place_of(k, group, i)];
    return apart(sum, 0, (wide)g->n * blurred_size(g));
}

/* ∑ dx·x̂ of the code against n·ε·r³·⟨g·x̂⟩. */
static wide dx_xhat_residual(const norm_case *k, const norm_group *g, size_t group)
{
    const wide should = (wide)g->n * g->eps * g->r * g->r * g->r * g->gx_mean;
    wide sum = 0;
    size_t i;
    for (i = 0; i < g->n; i++) {
        const size_t at = place_of(k, group, i);
        sum += (wide)k->dx[at] * (wide)k->xhat[at];
    }
    return apart(sum, should, (wide)g->n * g->size);
}

/* dβ (with_xhat = 0) or dγ of the code against the sum of dy or of dy·x̂. */
static wide param_residual(const norm_case *k, int with_xhat)
{
    const nrm_real *got = with_xhat ? k->dgamma : k->dbeta;
    const nrm_real *before = with_xhat ? k->dgamma_before : k->dbeta_before;
    wide sum[CHANNELS], size[CHANNELS], worst = 0;
    norm_group g;
    size_t group, i;
    for (i = 0; i < k->C; i++) {
        sum[i] = (wide)before[i];
        size[i] = fabsl(sum[i]);
    }
    for (group = 0; group < k->groups; group++) {
        load_group(&g, k, group);
        for (i = 0; i < g.n; i++) {
            const wide term = with_xhat ? g.w[i] * g.xhat[i] : g.w[i];
            sum[param_of(k, group, i)] += term;
            size[param_of(k, group, i)] += fabsl(term);
        }
    }
    for (i = 0; i < k->C; i++) worst = worse(worst, apart((wide)got[i], sum[i], size[i]));
    return worst;
}

/* ---- the roads: derivatives of one group's statistics ---------------------------------------- */

enum road { ROAD_MEAN, ROAD_VARIANCE, ROAD_RSTD, ROAD_XHAT };

typedef struct road_context {
    norm_case *k;
    enum road what;
    size_t j; /* of x̂ⱼ */
} road_context;

/* μ, v, r or x̂ⱼ of a case that has one group. */
static wide road_value(void *context)
{
    const road_context *c = (const road_context *)context;
    wide r;
#ifdef NRM_DOUBLE
    if (run_forward(c->k, c->k->xhat, 0) != NRM_OK) return (wide)HUGE_VAL;
    r = (wide)c->k->rstd[0];
    if (c->what == ROAD_MEAN) return (wide)c->k->mean[0];
    if (c->what == ROAD_XHAT) return (wide)c->k->xhat[c->j];
#else
    norm_group g;
    load_group(&g, c->k, 0);
    r = g.r;
    if (c->what == ROAD_MEAN) return g.mu;
    if (c->what == ROAD_XHAT) return g.xhat[c->j];
#endif
    return c->what == ROAD_RSTD ? r : 1 / (r * r) - (wide)c->k->eps;
}

/* The right sides, with n for M or D. */
static wide road_formula(const norm_group *g, enum road what, size_t i, size_t j)
{
    const wide n = (wide)g->n, same = i == j ? 1 : 0;
    wide through_mean = 0;
    size_t l;
    switch (what) {
    case ROAD_MEAN: return 1 / n;
    case ROAD_VARIANCE:
        for (l = 0; l < g->n; l++) through_mean += g->x[l] - g->mu; /* the term that vanishes */
        return 2 / n * (g->x[i] - g->mu) - 2 / n / n * through_mean;
    case ROAD_RSTD: return -g->r * g->r * g->xhat[i] / n;
    case ROAD_XHAT: return g->r * (same - 1 / n - g->xhat[i] * g->xhat[j] / n);
    }
    return (wide)HUGE_VAL;
}

/* The size that a derivative of this kind has. */
static wide road_size(const norm_group *g, enum road what)
{
    switch (what) {
    case ROAD_MEAN: return 1;
    case ROAD_VARIANCE: return 1 / g->r;
    case ROAD_RSTD: return g->r * g->r;
    case ROAD_XHAT: return g->r;
    }
    return 0;
}

static wide road_residual(norm_case *k, enum road what)
{
    const size_t last = what == ROAD_XHAT ? k->members : 1;
    road_context c;
    norm_group g;
    wide worst = 0;
    size_t i;
    load_group(&g, k, 0);
    c.k = k;
    c.what = what;
    for (i = 0; i < k->members; i++)
        for (c.j = 0; c.j < last; c.j++)
            worst = worse(worst, apart(slope(road_value, &c, k->x + i, step_for(&g)),
                                       road_formula(&g, what, i, c.j), road_size(&g, what)));
    return worst;
}

/* ---- batch normalization --------------------------------------------------------------------- */

static void derive_batchnorm_forward(const norm_case *k, const norm_group *g, size_t c)
{
    DERIVE("BN.1", mean_residual(k, g, c), identity());
    DERIVE("BN.2", variance_residual(k, g, c), identity());
    DERIVE("BN.3", rstd_residual(k, g, c), identity());
    DERIVE("BN.4", xhat_residual(k, g, c), identity());
    DERIVE("BN.5", output_residual(k, g, c), identity());
    DERIVE("BN.6", sum_residual(k, g, c), identity());
    DERIVE("BN.7", square_residual(k, g, c), identity());
}

/* With M = 2: dx₁ = −dx₂ = ½·γ·ε·r³·(dy₁ − dy₂). */
static wide pair_residual(const norm_case *k, const norm_group *g, size_t c)
{
    const wide should = g->gamma[0] * g->eps * g->r * g->r * g->r * (g->w[0] - g->w[1]) / 2;
    return worse(apart((wide)k->dx[place_of(k, c, 0)], should, g->size),
                 apart(-(wide)k->dx[place_of(k, c, 1)], should, g->size));
}

static void derive_batchnorm_case(norm_case *k)
{
    norm_group g;
    size_t c;
    DERIVE("BN.12", param_residual(k, 0), identity());
    ALSO(param_slopes(k, k->beta, k->dbeta, k->dbeta_before), difference());
    DERIVE("BN.13", param_residual(k, 1), identity());
    ALSO(param_slopes(k, k->gamma, k->dgamma, k->dgamma_before), difference());
    for (c = 0; c < k->groups; c++) {
        load_group(&g, k, c);
        derive_batchnorm_forward(k, &g, c);
        DERIVE("BN.19", dx_residual(k, &g, c), identity());
        DERIVE("BN.21", dx_sum_residual(k, &g, c), identity());
        DERIVE("BN.22", dx_xhat_residual(k, &g, c), identity());
        if (k->members == 2) DERIVE("BN.23", pair_residual(k, &g, c), identity());
    }
    ALSO_OF("BN.19", input_slopes(k), difference());
}

static void derive_batchnorm_roads(norm_case *k)
{
    DERIVE("BN.15", road_residual(k, ROAD_MEAN), acc_difference());
    DERIVE("BN.16", road_residual(k, ROAD_VARIANCE), acc_difference());
    DERIVE("BN.17", road_residual(k, ROAD_RSTD), acc_difference());
    DERIVE("BN.18", road_residual(k, ROAD_XHAT), acc_difference());
}

/* Both modes with running statistics, and what only mode frozen has. */
static void derive_frozen_case(norm_case *k)
{
    norm_group g;
    size_t c;
    for (c = 0; c < k->groups; c++) {
        load_group(&g, k, c);
        DERIVE("BN.11", output_residual(k, &g, c), identity());
        DERIVE("BN.20", dx_residual(k, &g, c), identity());
    }
    ALSO(input_slopes(k), difference());
    k->mode = NRM_INFER;
    (void)run_forward(k, k->y, 1);
    for (c = 0; c < k->groups; c++) {
        load_group(&g, k, c);
        ALSO_OF("BN.11", output_residual(k, &g, c), identity());
    }
}

/* Frozen with m = 0 and u = 1 − ε, batch norm is handed x̂ itself: then dx is g. */
static void derive_affine_case(norm_case *k)
{
    wide worst = 0;
    size_t group, i;
    for (i = 0; i < k->C; i++) {
        k->m[i] = 0;
        k->u[i] = (double)(nrm_real)(1 - k->eps);
    }
    (void)run_forward(k, k->y, 1);
    (void)run_backward(k);
    for (group = 0; group < k->groups; group++)
        for (i = 0; i < k->members; i++) {
            const size_t at = place_of(k, group, i);
            const wide g = (wide)k->gamma[group] * (wide)k->w[at];
            worst = worse(worst, apart((wide)k->dx[at], g, fabsl(g)));
        }
    DERIVE("BN.14", worst, identity());
    ALSO(input_slopes(k), difference());
}

static void derive_batchnorm(void)
{
    static const size_t shape[][3] = {{2, 3, 1}, {2, 3, 2}, {2, 2, 5}, {3, 3, 1}, {3, 3, 2},
                                      {3, 1, 5}, {4, 3, 1}, {4, 2, 2}, {4, 3, 5}, {7, 3, 1},
                                      {7, 1, 2}, {7, 2, 5}, {1, 3, 2}, {1, 2, 5}, {2, 2, 19},
                                      {3, 67, 1}};
    static const double scale[] = {1e-3, 1, 1e3};
    nrm_rng rng = stream(10);
    norm_case k;
    size_t i, j;
    for (i = 0; i < LENGTH(shape); i++)
        for (j = 0; j < LENGTH(scale); j++) {
            const size_t N = shape[i][0], C = shape[i][1], S = shape[i][2];
            if (C == 67 && j != 1) continue;
            norm_setup(&k, 0, NRM_TRAIN, N, C, S, scale[j], &rng);
            derive_batchnorm_case(&k);
            norm_setup(&k, 0, NRM_FROZEN, N, C, S, scale[j], &rng);
            derive_frozen_case(&k);
            norm_setup(&k, 0, NRM_FROZEN, N, C, S, 1, &rng);
            derive_affine_case(&k);
            norm_setup(&k, 0, NRM_TRAIN, N * S, 1, 1, scale[j], &rng);
            derive_batchnorm_roads(&k);
        }
}

/* ---- running statistics ---------------------------------------------------------------------- */

/* t batches, each with its own N; the recursions are replaced by what they add up to:
   m_t = (1 − w)^t·m₀ + ∑ₖ w·(1 − w)^(t − k)·μₖ, or the plain average of all μₖ. */
static void derive_running(int cumulative, int biased, double new_weight, nrm_rng *rng)
{
    enum { BATCHES = 6, C = 3 };
    nrm_real mean[C] = {0}, var[C] = {1, 1, 1};
    wide m[C] = {0}, u[C] = {0};
    nrm_running running;
    norm_case k;
    norm_group g;
    size_t t, c;
    memset(&running, 0, sizeof running);
    running.mean = mean;
    running.var = var;
    running.new_weight = (nrm_real)new_weight;
    running.cumulative = cumulative;
    running.biased = biased;
    for (t = 1; t <= BATCHES; t++) {
        const size_t N = 1 + t % 4, S = t % 2 ? 1 : 3;
        const wide w = cumulative ? 1 : (wide)(nrm_real)new_weight;
        const wide M = (wide)(N * S), factor = biased ? 1 : M / (M - 1);
        nrm_real x[NUMBERS], y[NUMBERS];
        nrm_acc mu[C], r[C];
        norm_setup(&k, 0, NRM_TRAIN, N, C, S, (double)t, rng);
        to_real(x, k.x, k.count);
        (void)nrm_batchnorm_forward(y, mu, r, &running, x, NULL, NULL, NRM_TRAIN, NRM_EPS, N, C,
                                    S);
        for (c = 0; c < C; c++) {
            const wide whole = cumulative ? (wide)t : 1;
            const wide start = cumulative ? 0 : powl(1 - w, (wide)t);
            load_group(&g, &k, c);
            m[c] = (cumulative ? m[c] : (1 - w) * m[c]) + w * g.mu;
            u[c] = (cumulative ? u[c] : (1 - w) * u[c]) + w * g.v * factor;
            DERIVE("BN.8", apart((wide)mean[c], m[c] / whole, fabsl(m[c] / whole) + 1), identity());
            DERIVE("BN.9", relative((wide)var[c], u[c] / whole + start), identity());
            if (cumulative)
                DERIVE("BN.10",
                       worse(apart((wide)mean[c], m[c] / (wide)t, 1 + fabsl(m[c] / (wide)t)),
                             relative((wide)var[c], u[c] / (wide)t)),
                       identity());
        }
    }
}

static void derive_all_running(void)
{
    nrm_rng rng = stream(11);
    derive_running(0, 0, 0.1, &rng);
    derive_running(0, 1, 0.1, &rng);
    derive_running(0, 0, 0.75, &rng);
    derive_running(0, 0, 1, &rng);
    derive_running(1, 0, 0.1, &rng);
    derive_running(1, 1, 0.1, &rng);
}

/* ---- layer normalization --------------------------------------------------------------------- */

/* gᵢ = dyᵢ·γᵢ: on a row of equal features x̂ is 0, and a dy that is 0 but at i leaves
   dxᵢ = r·gᵢ·(1 − 1/D). */
static wide one_hot_residual(norm_case *k)
{
    wide worst = 0;
    size_t i, j;
    for (i = 0; i < k->C; i++) {
        for (j = 0; j < k->C; j++) {
            k->x[j] = 3;
            k->w[j] = j == i ? 1.75 : 0;
        }
        (void)run_forward(k, k->y, 1);
        (void)run_backward(k);
        worst = worse(worst, relative((wide)k->dx[i] / (wide)k->rstd[0] /
                                          (1 - 1 / (wide)k->C),
                                      1.75L * (wide)k->gamma[i]));
    }
    return worst;
}

/* ∂L/∂x̂ᵢ as the quotient of differences between two rows: w·(yₙᵢ − y₀ᵢ)/(x̂ₙᵢ − x̂₀ᵢ) = γᵢ·w. */
static wide row_difference_residual(const norm_case *k)
{
    wide worst = 0;
    size_t n, i;
    for (n = 1; n < k->N; n++)
        for (i = 0; i < k->C; i++) {
            const wide rise = (wide)k->y[n * k->C + i] - (wide)k->y[i];
            const wide run = (wide)k->xhat[n * k->C + i] - (wide)k->xhat[i];
            worst = worse(worst, apart(rise, (wide)k->gamma[i] * run, 1 + fabsl(rise)));
        }
    return worst;
}

static void derive_layernorm_forward(const norm_case *k, const norm_group *g, size_t n)
{
    DERIVE("LN.1", mean_residual(k, g, n), identity());
    DERIVE("LN.2", variance_residual(k, g, n), identity());
    DERIVE("LN.3", rstd_residual(k, g, n), identity());
    DERIVE("LN.4", xhat_residual(k, g, n), identity());
    DERIVE("LN.5", output_residual(k, g, n), identity());
    DERIVE("LN.6", sum_residual(k, g, n), identity());
    DERIVE("LN.7", square_residual(k, g, n), identity());
}

static void derive_layernorm_case(norm_case *k)
{
    norm_group g;
    size_t n;
    DERIVE("LN.8", param_residual(k, 0), identity());
    ALSO(param_slopes(k, k->beta, k->dbeta, k->dbeta_before), difference());
    DERIVE("LN.9", param_residual(k, 1), identity());
    ALSO(param_slopes(k, k->gamma, k->dgamma, k->dgamma_before), difference());
    for (n = 0; n < k->groups; n++) {
        load_group(&g, k, n);
        derive_layernorm_forward(k, &g, n);
        DERIVE("LN.14", dx_residual(k, &g, n), identity());
        DERIVE("LN.15", dx_sum_residual(k, &g, n), identity());
        DERIVE("LN.16", dx_xhat_residual(k, &g, n), identity());
    }
    ALSO_OF("LN.14", input_slopes(k), difference());
    ALSO_OF("LN.10", row_difference_residual(k), difference());
}

static void derive_layernorm_roads(norm_case *k)
{
    DERIVE("LN.11", road_residual(k, ROAD_VARIANCE), acc_difference());
    DERIVE("LN.12", road_residual(k, ROAD_RSTD), acc_difference());
    DERIVE("LN.13", road_residual(k, ROAD_XHAT), acc_difference());
    if (k->C > 1) DERIVE("LN.10", one_hot_residual(k), identity());
}

static void derive_layernorm(void)
{
    static const size_t shape[][2] = {{1, 1}, {1, 2}, {2, 2}, {2, 5},  {3, 3},  {3, 7},
                                      {4, 4}, {4, 8}, {7, 3}, {2, 20}, {1, 19}, {3, 67}};
    static const double scale[] = {1e-3, 1, 1e3};
    nrm_rng rng = stream(12);
    norm_case k;
    size_t i, j;
    for (i = 0; i < LENGTH(shape); i++)
        for (j = 0; j < LENGTH(scale); j++) {
            if (shape[i][1] == 67 && j != 1) continue;
            norm_setup(&k, 1, NRM_TRAIN, shape[i][0], shape[i][1], 1, scale[j], &rng);
            derive_layernorm_case(&k);
            if (shape[i][1] == 67) continue;
            norm_setup(&k, 1, NRM_TRAIN, 1, shape[i][1], 1, scale[j], &rng);
            derive_layernorm_roads(&k);
        }
}

/* ---- noisy batch normalization --------------------------------------------------------------- */

static nrm_acc noise_symmetric(nrm_rng *rng)
{
    return (nrm_acc)ldexp((double)(nrm_acc)nrm_rng_u32(rng), -31) - 1;
}

typedef struct noise_case {
    size_t N, C, S;
    nrm_noise noise;
    nrm_real x[NUMBERS], y[NUMBERS], offset[NUMBERS], scale[NUMBERS], z[NUMBERS];
    nrm_real scale_again[NUMBERS]; /* y: without the noise */
    nrm_acc mean[CHANNELS], rstd[CHANNELS];
    nrm_acc mu[CHANNELS], sigma[CHANNELS], m[NUMBERS], s[NUMBERS]; /* the draws, made again */
} noise_case;

/* Draws as section 3.1 says, in its order. */
static void noise_draws(noise_case *k, nrm_rng *rng)
{
    size_t c, n, s;
    for (c = 0; c < k->C; c++) {
        k->mu[c] = (nrm_acc)k->noise.mean_range * noise_symmetric(rng);
        k->sigma[c] = 1 + ((nrm_acc)k->noise.scale_max - 1) * (nrm_acc)nrm_rng_uniform(rng);
        for (n = 0; n < k->N; n++)
            for (s = 0; s < k->S; s++) {
                const size_t at = (n * k->C + c) * k->S + s;
                k->m[at] = k->mu[c] + (nrm_acc)k->noise.mean_jitter * noise_symmetric(rng);
                k->s[at] = k->sigma[c] +
                           (nrm_acc)k->noise.scale_jitter * (nrm_acc)nrm_rng_normal(rng);
            }
    }
}

static int add_noise(noise_case *k, nrm_real *z, nrm_real *scale, nrm_rng *rng)
{
    return nrm_noisy_batchnorm_forward(z, scale, k->mean, k->rstd, NULL, k->x, NULL, NULL,
                                       &k->noise, rng, NRM_TRAIN, NRM_EPS, k->N, k->C, k->S);
}

/* The code twice with the same draws: on zeros, where z is the offset alone, and on data. */
static void noise_setup(noise_case *k, size_t N, size_t C, size_t S, const nrm_noise *noise,
                        nrm_rng *rng)
{
    const size_t count = N * C * S;
    nrm_rng copy = *rng;
    memset(k, 0, sizeof *k);
    k->N = N;
    k->C = C;
    k->S = S;
    k->noise = *noise;
    noise_draws(k, &copy);
    copy = *rng;
    (void)add_noise(k, k->offset, k->scale_again, &copy);
    copy = *rng;
    (void)nrm_rng_u32(rng);
    fill_real(k->x, count, 0.5, 2, rng);
    (void)nrm_batchnorm_forward(k->y, k->mean, k->rstd, NULL, k->x, NULL, NULL, NRM_TRAIN, NRM_EPS,
                                N, C, S);
    (void)add_noise(k, k->z, k->scale, &copy);
}

static wide equal_draws(const nrm_real *got, const nrm_acc *drawn, size_t n)
{
    size_t i;
    for (i = 0; i < n; i++)
        if (got[i] != (nrm_real)drawn[i]) return (wide)HUGE_VAL;
    return 0;
}

/* Without jitter all samples of a unit show its centre. */
static wide equal_centres(const noise_case *k, const nrm_real *got, const nrm_acc *centre)
{
    const size_t samples = k->N * k->S;
    size_t c, i;
    for (c = 0; c < k->C; c++)
        for (i = 0; i < samples; i++)
            if (got[(i / k->S * k->C + c) * k->S + i % k->S] != (nrm_real)centre[c])
                return (wide)HUGE_VAL;
    return 0;
}

static wide noise_residual(const noise_case *k)
{
    wide worst = 0;
    size_t i;
    for (i = 0; i < k->N * k->C * k->S; i++) {
        const wide product = (wide)k->scale[i] * (wide)k->y[i];
        worst = worse(worst, apart((wide)k->z[i], product + (wide)k->m[i], 1 + fabsl(product)));
    }
    return worst;
}

/* One big draw, looked at from outside: ranges and moments of each of the four. */
static void derive_noise_moments(void)
{
    enum { UNITS = 500, EACH = 40 };
    static nrm_real x[2 * UNITS * EACH], y[2 * UNITS * EACH], scale[2 * UNITS * EACH]; /* x = 0 */
    static nrm_acc mean[UNITS * EACH], rstd[UNITS * EACH];
    const nrm_noise noise = nrm_noise_paper();
    nrm_noise centres = noise;
    const wide n_mu = (wide)noise.mean_range, n_sigma = (wide)noise.scale_max;
    const wide r_mu = (wide)noise.mean_jitter, r_sigma = (wide)noise.scale_jitter;
    moments mu = no_moments(), sigma = mu, m = mu, s = mu;
    wide off_mean = 0, scale_mean = 0;
    nrm_rng rng = stream(14);
    size_t c, n;
    centres.mean_jitter = centres.scale_jitter = 0;
    (void)nrm_noisy_batchnorm_forward(y, scale, mean, rstd, NULL, x, NULL, NULL, &centres, &rng,
                                      NRM_TRAIN, NRM_EPS, 2, UNITS * EACH, 1);
    for (c = 0; c < UNITS * EACH; c++) {
        take(&mu, (wide)y[c], 0);
        take(&sigma, (wide)scale[c], (1 + n_sigma) / 2);
    }
    (void)nrm_noisy_batchnorm_forward(y, scale, mean, rstd, NULL, x, NULL, NULL, &noise, &rng,
                                      NRM_TRAIN, NRM_EPS, EACH, UNITS, 1);
    for (c = 0; c < UNITS; c++) {
        wide middle = 0, typical = 0;
        for (n = 0; n < EACH; n++) {
            middle += (wide)y[n * UNITS + c] / EACH;
            typical += (wide)scale[n * UNITS + c] / EACH;
        }
        off_mean += middle / UNITS;
        scale_mean += typical / UNITS;
        /* deviations from the unit's own mean, widened by what estimating that mean takes away */
        for (n = 0; n < EACH; n++) {
            const wide widen = sqrtl((wide)EACH / (EACH - 1));
            take(&m, ((wide)y[n * UNITS + c] - middle) * widen, 0);
            take(&s, ((wide)scale[n * UNITS + c] - typical) * widen, 0);
        }
    }
    ALSO_OF("NB.2", unless(noise.mean_range == (nrm_real)0.5 && noise.scale_max == (nrm_real)1.25),
            replay()); /* the paper's numbers */
    ALSO_OF("NB.4",
            unless(noise.mean_jitter == (nrm_real)0.1 && noise.scale_jitter == (nrm_real)0.1),
            replay());
    ALSO_OF("NB.1", surprise_uniform(&mu, -n_mu, n_mu), statistics());
    ALSO_OF("NB.2", surprise_uniform(&sigma, 1, n_sigma), statistics());
    ALSO_OF("NB.3", surprise(&m, r_mu * r_mu / 3, (wide)9 / 5), statistics());
    ALSO_OF("NB.4", surprise(&s, r_sigma * r_sigma, 3), statistics());
    DERIVE("NB.6",
           worse(fabsl(scale_mean - (1 + n_sigma) / 2) /
                     sqrtl(((n_sigma - 1) * (n_sigma - 1) / 12 + r_sigma * r_sigma / EACH) / UNITS),
                 fabsl(off_mean) / sqrtl((n_mu * n_mu / 3 + r_mu * r_mu / 3 / EACH) / UNITS)),
           statistics());
}

/* The layer as a whole: noise with the same draws on top of batch norm. */
typedef struct noisy_case {
    norm_case bn;
    nrm_rng before;      /* the stream as the forward pass found it */
    nrm_noise noise;
    nrm_real scale[NUMBERS];
} noisy_case;

static int run_noisy(noisy_case *k, nrm_real *z)
{
    nrm_real x[NUMBERS], gamma[CHANNELS] = {0}, beta[CHANNELS] = {0};
    nrm_rng copy = k->before;
    to_real(x, k->bn.x, k->bn.count);
    to_real(gamma, k->bn.gamma, k->bn.C);
    to_real(beta, k->bn.beta, k->bn.C);
    return nrm_noisy_batchnorm_forward(z, k->scale, k->bn.mean, k->bn.rstd, NULL, x, gamma, beta,
                                       &k->noise, &copy, NRM_TRAIN, k->bn.eps, k->bn.N, k->bn.C,
                                       k->bn.S);
}

/* L = ∑ w·z. The offsets add a constant, so the formulas may leave them out. */
static wide noisy_loss(void *context)
{
    noisy_case *k = (noisy_case *)context;
    wide loss = 0;
    size_t i;
#ifdef NRM_DOUBLE
    nrm_real z[NUMBERS];
    if (run_noisy(k, z) != NRM_OK) return (wide)HUGE_VAL;
    for (i = 0; i < k->bn.count; i++) loss += (wide)k->bn.w[i] * (wide)z[i];
#else
    wide y[NUMBERS];
    forward_in_double(&k->bn, y);
    for (i = 0; i < k->bn.count; i++) loss += (wide)k->bn.w[i] * (wide)k->scale[i] * y[i];
#endif
    return loss;
}

static wide noisy_slopes(noisy_case *k)
{
    nrm_real z[NUMBERS], x[NUMBERS], dy[NUMBERS], gamma[CHANNELS] = {0};
    norm_group g;
    wide worst = 0;
    size_t group, i;
    (void)run_noisy(k, z);
    to_real(x, k->bn.x, k->bn.count);
    to_real(dy, k->bn.w, k->bn.count);
    to_real(gamma, k->bn.gamma, k->bn.C);
    (void)nrm_noisy_batchnorm_backward(k->bn.dx, k->bn.dgamma, k->bn.dbeta, dy, k->scale, x,
                                       k->bn.mean, k->bn.rstd, gamma, NRM_TRAIN, k->bn.N, k->bn.C,
                                       k->bn.S);
    for (group = 0; group < k->bn.groups; group++) {
        load_group(&g, &k->bn, group);
        for (i = 0; i < k->bn.members; i++) {
            const size_t at = place_of(&k->bn, group, i);
            const wide should = slope(noisy_loss, k, k->bn.x + at, step_for(&g));
            worst = worse(worst, apart((wide)k->bn.dx[at], should, 2 * g.size));
        }
    }
    return worst;
}

/* Batch norm's backward pass on s·dz; any numbers will do for dz. */
static wide noise_backward_residual(const noise_case *k)
{
    const size_t count = k->N * k->C * k->S;
    nrm_real dy[NUMBERS], dx[NUMBERS], should[NUMBERS];
    wide worst = 0;
    size_t i;
    for (i = 0; i < count; i++) dy[i] = k->scale[i] * k->z[i];
    (void)nrm_batchnorm_backward(should, NULL, NULL, dy, k->x, k->mean, k->rstd, NULL, NRM_TRAIN,
                                 k->N, k->C, k->S);
    (void)nrm_noisy_batchnorm_backward(dx, NULL, NULL, k->z, k->scale, k->x, k->mean, k->rstd, NULL,
                                       NRM_TRAIN, k->N, k->C, k->S);
    for (i = 0; i < count; i++)
        worst = worse(worst, apart((wide)dx[i], (wide)should[i], fabsl((wide)should[i])));
    return worst;
}

static void derive_noise_case(size_t N, size_t C, size_t S, nrm_rng *rng)
{
    nrm_noise noise, centres;
    noise_case k;
    noisy_case whole;
    noise.mean_range = (nrm_real)uniform_between(rng, 0.1, 1);
    noise.scale_max = (nrm_real)uniform_between(rng, 0.5, 3);
    noise.mean_jitter = (nrm_real)uniform_between(rng, 0.01, 0.5);
    noise.scale_jitter = (nrm_real)uniform_between(rng, 0.01, 0.5);
    centres = noise;
    centres.mean_jitter = centres.scale_jitter = 0;
    noise_setup(&k, N, C, S, &centres, rng);
    DERIVE("NB.1", equal_centres(&k, k.offset, k.mu), replay());
    DERIVE("NB.2", equal_centres(&k, k.scale, k.sigma), replay());
    noise_setup(&k, N, C, S, &noise, rng);
    DERIVE("NB.3", equal_draws(k.offset, k.m, N * C * S), replay());
    DERIVE("NB.4", equal_draws(k.scale, k.s, N * C * S), replay());
    DERIVE("NB.5", noise_residual(&k), identity());
    DERIVE("NB.7", noise_backward_residual(&k), identity());
    norm_setup(&whole.bn, 0, NRM_TRAIN, N, C, S, 1, rng);
    whole.noise = noise;
    whole.before = *rng;
    ALSO(noisy_slopes(&whole), difference());
}

static void derive_noise(void)
{
    static const size_t shape[][3] = {{2, 3, 1}, {3, 2, 2}, {4, 3, 5}, {7, 5, 1}, {3, 1, 2}};
    nrm_rng rng = stream(13);
    size_t i;
    for (i = 0; i < LENGTH(shape); i++)
        derive_noise_case(shape[i][0], shape[i][1], shape[i][2], &rng);
    derive_noise_moments();
}

#endif
