/* derive_merge.h - ST, BR, GN, RMS, LN.17 and LN.18: statistics that merge, batch renorm, and the
   norms that normalize parts of an example.

   The rows of layer norm with s + ε, of group norm and of RMS norm are row_cases; what knows a
   batch is the norm_case of derive_norms.h, split into shards, or with other parameters. */
#ifndef DERIVE_MERGE_H
#define DERIVE_MERGE_H

#include "derive_norms.h"
#include "layers/variants.h"

/* ---- rows ------------------------------------------------------------------------------------ */

enum row_kind { GROUP_ROWS, RMS_ROWS, STD_ROWS };

typedef struct row_case { /* N·G rows of D = K·S values; the last two kinds have G = S = 1 */
    enum row_kind kind;
    size_t N, G, K, S, D, rows, count, params;
    nrm_real eps;
    double x[NUMBERS], w[NUMBERS], gamma[CHANNELS], beta[CHANNELS];
    nrm_real y[NUMBERS], dx[NUMBERS];
    nrm_real dgamma[CHANNELS], dbeta[CHANNELS], dgamma_before[CHANNELS], dbeta_before[CHANNELS];
    nrm_acc mean[CHANNELS], rstd[CHANNELS];
} row_case;

/* Which γ and β a value meets. */
static size_t row_param(const row_case *k, size_t row, size_t i)
{
    return row % k->G * k->K + i / k->S;
}

/* The sample's standard deviation, divided by D − 1. */
static wide deviation_of(const norm_group *g)
{
    return sqrtl(g->v * (wide)g->n / (wide)(g->n - 1));
}

/* The factor of LN.18; where s is 0, so is what it multiplies. */
static wide kappa_of(const norm_group *g)
{
    const wide s = deviation_of(g);
    return s > 0 ? (wide)g->n / ((wide)(g->n - 1) * g->r * s) : 0;
}

/* A row by the papers' formulas. */
static void load_row(norm_group *g, const row_case *k, size_t row)
{
    size_t i;
    memset(g, 0, sizeof *g);
    g->n = k->D;
    g->eps = (wide)k->eps;
    for (i = 0; i < g->n; i++) {
        g->x[i] = (wide)k->x[row * k->D + i];
        g->w[i] = (wide)k->w[row * k->D + i];
        g->gamma[i] = (wide)k->gamma[row_param(k, row, i)];
        g->beta[i] = k->kind == RMS_ROWS ? 0 : (wide)k->beta[row_param(k, row, i)];
    }
    group_statistics(g);
    if (k->kind == RMS_ROWS) { /* v is q now */
        g->v += g->mu * g->mu;
        g->mu = 0;
    }
    g->r = k->kind == STD_ROWS ? 1 / (deviation_of(g) + g->eps) : 1 / sqrtl(g->v + g->eps);
    for (i = 0; i < g->n; i++) {
        g->xhat[i] = (g->x[i] - g->mu) * g->r;
        g->y[i] = g->gamma[i] * g->xhat[i] + g->beta[i];
    }
    group_gradient(g, 0);
    for (i = 0; i < g->n; i++) {
        const wide mean = k->kind == RMS_ROWS ? 0 : g->g_mean;
        const wide kappa = k->kind == STD_ROWS ? kappa_of(g) : 1;
        g->dx[i] = g->r * (g->g[i] - mean - kappa * g->xhat[i] * g->gx_mean);
    }
}

static int row_forward(row_case *k, nrm_real *y)
{
    nrm_real x[NUMBERS], gamma[CHANNELS], beta[CHANNELS];
    to_real(x, k->x, k->count);
    to_real(gamma, k->gamma, k->params);
    to_real(beta, k->beta, k->params);
    if (k->kind == RMS_ROWS) return nrm_rmsnorm_forward(y, k->rstd, x, gamma, k->eps, k->N, k->D);
    if (k->kind == STD_ROWS) {
        layernorm_std_forward(y, k->mean, k->rstd, x, gamma, beta, k->eps, k->N, k->D);
        return NRM_OK;
    }
    return nrm_groupnorm_forward(y, k->mean, k->rstd, x, gamma, beta, k->eps, k->N, k->params,
                                 k->S, k->G);
}

static int row_backward(row_case *k)
{
    nrm_real x[NUMBERS], dy[NUMBERS], gamma[CHANNELS], *dg = k->dgamma, *db = k->dbeta;
    to_real(x, k->x, k->count);
    to_real(dy, k->w, k->count);
    to_real(gamma, k->gamma, k->params);
    memcpy(dg, k->dgamma_before, sizeof k->dgamma);
    memcpy(db, k->dbeta_before, sizeof k->dbeta);
    if (k->kind == RMS_ROWS)
        return nrm_rmsnorm_backward(k->dx, dg, dy, x, k->rstd, gamma, k->N, k->D);
    if (k->kind == STD_ROWS) {
        layernorm_std_backward(k->dx, dg, db, dy, x, gamma, k->eps, k->N, k->D);
        return NRM_OK;
    }
    return nrm_groupnorm_backward(k->dx, dg, db, dy, x, k->mean, k->rstd, gamma, k->N, k->params,
                                  k->S, k->G);
}

static void row_run(row_case *k)
{
    if (row_forward(k, k->y) != NRM_OK || row_backward(k) != NRM_OK)
        k->y[0] = k->dx[0] = (nrm_real)HUGE_VAL;
}

static void row_setup(row_case *k, enum row_kind kind, size_t N, size_t G, size_t K, size_t S,
                      double scale, nrm_rng *rng)
{
    memset(k, 0, sizeof *k);
    k->kind = kind;
    k->N = N;
    k->G = G;
    k->K = K;
    k->S = S;
    k->D = K * S;
    k->rows = N * G;
    k->count = N * G * K * S;
    k->params = G * K;
    k->eps = nrm_rng_below(rng, 2) ? NRM_EPS : (nrm_real)1e-3;
    fill(k->x, k->count, 0.7 * scale, scale, rng);
    fill(k->w, k->count, 0.2, 1, rng);
    fill(k->gamma, k->params, 1.5, 0.5, rng);
    fill(k->beta, k->params, -0.3, 1, rng);
    fill_real(k->dgamma_before, k->params, 1, 1, rng);
    fill_real(k->dbeta_before, k->params, 1, 1, rng);
    row_run(k);
}

/* L = ∑ w·y of the code in double, of the formulas where the code is in float. */
static wide row_loss(void *context)
{
    row_case *k = (row_case *)context;
    wide loss = 0;
    size_t i;
#ifdef NRM_DOUBLE
    nrm_real y[NUMBERS];
    if (row_forward(k, y) != NRM_OK) return (wide)HUGE_VAL;
    for (i = 0; i < k->count; i++) loss += (wide)k->w[i] * (wide)y[i];
#else
    norm_group g;
    size_t row;
    for (row = 0; row < k->rows; row++) {
        load_row(&g, k, row);
        for (i = 0; i < g.n; i++) loss += g.w[i] * g.y[i];
    }
#endif
    return loss;
}

/* Some of dx against the slopes of the loss, three to a row. */
static wide row_slopes(row_case *k)
{
    wide worst = 0;
    norm_group g;
    size_t row, i;
    for (row = 0; row < k->rows; row++) {
        load_row(&g, k, row);
        for (i = row % 3; i < k->D; i += 1 + k->D / 3) {
            const size_t at = row * k->D + i;
            const wide should = slope(row_loss, k, k->x + at, step_for(&g));
            worst = worse(worst, apart((wide)k->dx[at], should, g.size));
        }
    }
    return worst;
}

static wide row_param_slopes(row_case *k, double *theta, const nrm_real *grad,
                             const nrm_real *before)
{
    wide worst = 0;
    size_t c;
    for (c = 0; c < k->params; c++) {
        const wide should = slope(row_loss, k, theta + c, 0.0625);
        worst = worse(worst, apart((wide)grad[c] - (wide)before[c], should, 1 + fabsl(should)));
    }
    return worst;
}

/* dβ (with_xhat = 0) or dγ of the code against the sum of dy or of dy·x̂. */
static wide row_param_residual(const row_case *k, int with_xhat)
{
    const nrm_real *got = with_xhat ? k->dgamma : k->dbeta;
    const nrm_real *before = with_xhat ? k->dgamma_before : k->dbeta_before;
    wide sum[CHANNELS], size[CHANNELS], worst = 0;
    norm_group g;
    size_t row, i;
    for (i = 0; i < k->params; i++) {
        sum[i] = (wide)before[i];
        size[i] = fabsl(sum[i]);
    }
    for (row = 0; row < k->rows; row++) {
        load_row(&g, k, row);
        for (i = 0; i < g.n; i++) {
            const wide term = with_xhat ? g.w[i] * g.xhat[i] : g.w[i];
            sum[row_param(k, row, i)] += term;
            size[row_param(k, row, i)] += fabsl(term);
        }
    }
    for (i = 0; i < k->params; i++) worst = worse(worst, apart((wide)got[i], sum[i], size[i]));
    return worst;
}

static wide row_mean_residual(const row_case *k, const norm_group *g, size_t row)
{
    return apart((wide)k->mean[row], g->mu, fabsl(g->mu) + sqrtl(g->v));
}

static wide row_rstd_residual(const row_case *k, const norm_group *g, size_t row)
{
    return relative((wide)k->rstd[row], g->r);
}

static wide row_output_residual(const row_case *k, const norm_group *g, size_t row)
{
    wide worst = 0;
    size_t i;
    for (i = 0; i < g->n; i++)
        worst = worse(worst, apart((wide)k->y[row * k->D + i], g->y[i],
                                   fabsl(g->gamma[i] * g->xhat[i]) + fabsl(g->beta[i]) + 1));
    return worst;
}

/* The size of a row's gradients, and by how much a saved mean that is a float blurs them. */
static wide row_size(const norm_group *g)
{
    return g->size * (1 + (acc_in_float() ? fabsl(g->mu) * g->r : 0));
}

static wide row_dx_residual(const row_case *k, const norm_group *g, size_t row)
{
    wide worst = 0;
    size_t i;
    for (i = 0; i < g->n; i++)
        worst = worse(worst, apart((wide)k->dx[row * k->D + i], g->dx[i], row_size(g)));
    return worst;
}

/* ---- group and instance normalization -------------------------------------------------------- */

/* Where dy is 0 the code's dx is −r·(⟨g⟩ + x̂·⟨g·x̂⟩): two such places, those of the largest and
   the smallest x, give both means. They are compared with GN.6, channel by channel. */
static wide group_means_residual(row_case *k, size_t row)
{
    const size_t first = row * k->D;
    size_t low = 0, high = 0, i, c;
    wide slope_of, mean_of_g, spread, size, g_mean = 0, gx_mean = 0;
    norm_group g;
    for (i = 1; i < k->D; i++) {
        if (k->x[first + i] < k->x[first + low]) low = i;
        if (k->x[first + i] > k->x[first + high]) high = i;
    }
    k->w[first + low] = k->w[first + high] = 0;
    row_run(k);
    load_row(&g, k, row);
    for (c = 0; c < k->K; c++) {
        wide dy = 0, dy_xhat = 0;
        for (i = c * k->S; i < (c + 1) * k->S; i++) {
            dy += g.w[i];
            dy_xhat += g.w[i] * g.xhat[i];
        }
        g_mean += g.gamma[c * k->S] * dy;
        gx_mean += g.gamma[c * k->S] * dy_xhat;
    }
    g_mean /= (wide)k->D;
    gx_mean /= (wide)k->D;
    spread = g.xhat[high] - g.xhat[low];
    slope_of = -((wide)k->dx[first + high] - (wide)k->dx[first + low]) / g.r / spread;
    mean_of_g = -(wide)k->dx[first + low] / g.r - g.xhat[low] * slope_of;
    size = row_size(&g) / g.r * (1 + 1 / spread);
    return worse(apart(slope_of, gx_mean, size),
                 apart(mean_of_g, g_mean, (1 + fabsl(g.xhat[low])) * size));
}

/* The straight line of GN.8 against GN.7, for μ rounded in three ways. */
static wide group_line_residual(const norm_group *g)
{
    const wide head[3] = {(wide)(float)g->mu, (wide)(nrm_real)g->mu, 0};
    wide worst = 0;
    size_t h, i;
    for (h = 0; h < 3; h++) {
        const wide t = -g->r * g->gx_mean, b = -g->g_mean - t * (g->mu - head[h]);
        for (i = 0; i < g->n; i++) {
            const wide line = g->r * (g->gamma[i] * g->w[i] + (t * (g->x[i] - head[h]) + b));
            const wide size = g->size + g->r * (fabsl(t * g->x[i]) + fabsl(b));
            worst = worse(worst, apart(line, g->dx[i], size));
        }
    }
    return worst;
}

static void derive_groupnorm_case(row_case *k)
{
    norm_group g;
    size_t row;
    DERIVE("GN.4", row_param_residual(k, 0), identity());
    ALSO(row_param_slopes(k, k->beta, k->dbeta, k->dbeta_before), difference());
    DERIVE("GN.5", row_param_residual(k, 1), identity());
    ALSO(row_param_slopes(k, k->gamma, k->dgamma, k->dgamma_before), difference());
    for (row = 0; row < k->rows; row++) {
        load_row(&g, k, row);
        DERIVE("GN.1", row_mean_residual(k, &g, row), identity());
        DERIVE("GN.2", row_rstd_residual(k, &g, row), identity());
        DERIVE("GN.3", row_output_residual(k, &g, row), identity());
        DERIVE("GN.7", row_dx_residual(k, &g, row), identity());
        DERIVE("GN.8", group_line_residual(&g), algebra()); /* dx by it: that of GN.7 */
    }
    ALSO_OF("GN.7", row_slopes(k), difference());
    if (k->D > 2)
        for (row = 0; row < k->rows; row++)
            DERIVE("GN.6", group_means_residual(k, row), identity());
}

static void derive_groupnorm(void)
{
    static const size_t shape[][4] = {{1, 1, 1, 2}, {1, 2, 1, 5},  {2, 1, 3, 1}, {2, 3, 2, 1},
                                      {3, 2, 3, 2}, {2, 2, 3, 5},  {2, 3, 1, 7}, {1, 2, 1, 2},
                                      {3, 4, 1, 3}, {1, 1, 2, 37}, {2, 2, 20, 1}, {4, 1, 1, 19}};
    static const double scale[] = {1e-3, 1, 1e3};
    nrm_rng rng = stream(20);
    row_case k;
    size_t i, j;
    for (i = 0; i < LENGTH(shape); i++)
        for (j = 0; j < LENGTH(scale); j++) {
            row_setup(&k, GROUP_ROWS, shape[i][0], shape[i][1], shape[i][2], shape[i][3], scale[j],
                      &rng);
            derive_groupnorm_case(&k);
        }
}

/* ---- RMS normalization ----------------------------------------------------------------------- */

static wide mean_square_residual(const row_case *k, const norm_group *g, size_t row)
{
    const wide r = (wide)k->rstd[row];
    return apart(1 / (r * r) - g->eps, g->v, g->v + g->eps);
}

/* ∑ dx·x̂ of the code against D·ε·r³·⟨g·x̂⟩. */
static wide rms_property_residual(const row_case *k, const norm_group *g, size_t row)
{
    const wide should = (wide)g->n * g->eps * g->r * g->r * g->r * g->gx_mean;
    wide sum = 0;
    size_t i;
    for (i = 0; i < g->n; i++) sum += (wide)k->dx[row * k->D + i] * g->xhat[i];
    return apart(sum, should, (wide)g->n * g->size);
}

static void derive_rmsnorm_case(row_case *k)
{
    norm_group g;
    size_t row;
    DERIVE("RMS.3", row_param_residual(k, 1), identity());
    ALSO(row_param_slopes(k, k->gamma, k->dgamma, k->dgamma_before), difference());
    for (row = 0; row < k->rows; row++) {
        load_row(&g, k, row);
        DERIVE("RMS.1", mean_square_residual(k, &g, row), identity());
        ALSO(row_rstd_residual(k, &g, row), identity());
        DERIVE("RMS.2", row_output_residual(k, &g, row), identity());
        DERIVE("RMS.4", row_dx_residual(k, &g, row), identity());
        DERIVE("RMS.5", rms_property_residual(k, &g, row), identity());
    }
    ALSO_OF("RMS.4", row_slopes(k), difference());
}

/* ---- layer normalization with s + ε ---------------------------------------------------------- */

static void derive_layernorm_std_case(row_case *k)
{
    norm_group g;
    size_t row;
    for (row = 0; row < k->rows; row++) {
        load_row(&g, k, row);
        DERIVE("LN.17", worse(row_rstd_residual(k, &g, row), row_mean_residual(k, &g, row)),
               identity());
        ALSO(row_output_residual(k, &g, row), identity());
        DERIVE("LN.18", row_dx_residual(k, &g, row), identity());
    }
    ALSO(row_param_residual(k, 0), identity());
    ALSO(row_param_residual(k, 1), identity());
    ALSO(row_slopes(k), difference());
}

/* Equal features: s = 0, and dx is r·(g − ⟨g⟩) with r = 1/ε. */
static void derive_layernorm_std_constant(row_case *k)
{
    norm_group g;
    size_t row, i;
    for (i = 0; i < k->count; i++) k->x[i] = 0.7;
    row_run(k);
    for (row = 0; row < k->rows; row++) {
        load_row(&g, k, row);
        for (i = 0; i < k->D; i++) {
            const wide beta = (wide)(nrm_real)k->beta[i];
            ALSO_OF("LN.17", unless((wide)k->y[row * k->D + i] == beta), replay());
            ALSO_OF("LN.18", apart((wide)k->dx[row * k->D + i], (g.g[i] - g.g_mean) / g.eps,
                                   g.size), identity());
        }
    }
}

static void derive_rows_of_features(void)
{
    static const size_t shape[][2] = {{1, 2}, {2, 2},  {2, 5},  {3, 3}, {3, 7},
                                      {7, 3}, {2, 20}, {1, 19}, {2, 67}, {4, 1}};
    static const double scale[] = {1e-3, 1, 1e3};
    nrm_rng rng = stream(21);
    row_case k;
    size_t i, j;
    for (i = 0; i < LENGTH(shape); i++)
        for (j = 0; j < LENGTH(scale); j++) {
            row_setup(&k, RMS_ROWS, shape[i][0], 1, shape[i][1], 1, scale[j], &rng);
            derive_rmsnorm_case(&k);
            if (shape[i][1] == 1) continue; /* no sample, no standard deviation */
            row_setup(&k, STD_ROWS, shape[i][0], 1, shape[i][1], 1, scale[j], &rng);
            derive_layernorm_std_case(&k);
            derive_layernorm_std_constant(&k);
        }
}

/* ---- statistics that merge ------------------------------------------------------------------- */

enum { SHARDS = 4 };

typedef struct sync_case { /* a batch in shards, from..to−1 of its examples each */
    norm_case k;
    size_t from[SHARDS + 1];
    nrm_stats stats[SHARDS][CHANNELS], all[CHANNELS];
    nrm_sums sums[SHARDS][CHANNELS], total[CHANNELS];
} sync_case;

/* Statistics of every shard, and of all, merged one by one. */
static int sync_statistics(sync_case *s)
{
    const size_t example = s->k.C * s->k.S;
    nrm_real x[NUMBERS];
    int rc = NRM_OK;
    size_t i;
    to_real(x, s->k.x, s->k.count);
    memset(s->stats, 0, sizeof s->stats);
    memset(s->all, 0, sizeof s->all);
    for (i = 0; i < SHARDS && rc == NRM_OK; i++) {
        rc = nrm_stats_update(s->stats[i], x + s->from[i] * example, NULL,
                              s->from[i + 1] - s->from[i], s->k.C, s->k.S);
        if (rc == NRM_OK) rc = nrm_stats_merge(s->all, s->stats[i], s->k.C);
    }
    return rc;
}

/* y of all shards. */
static int sync_forward(sync_case *s, nrm_real *y)
{
    norm_case *k = &s->k;
    const size_t example = k->C * k->S;
    nrm_real x[NUMBERS], gamma[CHANNELS], beta[CHANNELS];
    int rc = sync_statistics(s);
    size_t i;
    to_real(x, k->x, k->count);
    to_real(gamma, k->gamma, k->C);
    to_real(beta, k->beta, k->C);
    for (i = 0; i < SHARDS && rc == NRM_OK; i++) {
        const size_t at = s->from[i] * example;
        rc = nrm_sync_batchnorm_forward(y + at, k->mean, k->rstd, NULL, x + at, NULL, s->all, gamma,
                                        beta, k->eps, s->from[i + 1] - s->from[i], k->C, k->S);
    }
    return rc;
}

static int sync_backward(sync_case *s)
{
    norm_case *k = &s->k;
    const size_t example = k->C * k->S;
    nrm_real x[NUMBERS], dy[NUMBERS], gamma[CHANNELS];
    int rc = NRM_OK;
    size_t i, c;
    to_real(x, k->x, k->count);
    to_real(dy, k->w, k->count);
    to_real(gamma, k->gamma, k->C);
    memcpy(k->dgamma, k->dgamma_before, sizeof k->dgamma);
    memcpy(k->dbeta, k->dbeta_before, sizeof k->dbeta);
    memset(s->total, 0, sizeof s->total);
    for (i = 0; i < SHARDS && rc == NRM_OK; i++) {
        const size_t at = s->from[i] * example;
        rc = nrm_sync_batchnorm_sums(s->sums[i], k->dgamma, k->dbeta, dy + at, x + at, NULL,
                                     k->mean, k->rstd, s->from[i + 1] - s->from[i], k->C, k->S);
        for (c = 0; c < k->C; c++) {
            s->total[c].dy += s->sums[i][c].dy;
            s->total[c].dy_xhat += s->sums[i][c].dy_xhat;
        }
    }
    for (i = 0; i < SHARDS && rc == NRM_OK; i++) {
        const size_t at = s->from[i] * example;
        rc = nrm_sync_batchnorm_backward(k->dx + at, dy + at, x + at, NULL, k->mean, k->rstd, gamma,
                                         s->all, s->total, s->from[i + 1] - s->from[i], k->C, k->S);
    }
    return rc;
}

/* Cuts fall anywhere, also on one another. */
static void sync_setup(sync_case *s, size_t N, size_t C, size_t S, double scale, nrm_rng *rng)
{
    size_t i;
    norm_setup(&s->k, 0, NRM_TRAIN, N, C, S, scale, rng);
    s->from[0] = 0;
    s->from[SHARDS] = N;
    for (i = 1; i < SHARDS; i++)
        s->from[i] = s->from[i - 1] + nrm_rng_below(rng, (uint32_t)(N - s->from[i - 1] + 1));
    if (sync_forward(s, s->k.y) != NRM_OK || sync_backward(s) != NRM_OK)
        s->k.y[0] = s->k.dx[0] = (nrm_real)HUGE_VAL;
}

/* The values of a channel from one example to another. */
static void load_stretch(norm_group *g, const norm_case *k, size_t c, size_t from, size_t to)
{
    size_t i;
    g->n = (to - from) * k->S;
    for (i = 0; i < g->n; i++) g->x[i] = (wide)k->x[place_of(k, c, from * k->S + i)];
    if (g->n > 0) group_statistics(g);
}

/* ST.1 to ST.3 by themselves: the triples of two adjacent stretches, by the formulas, make the
   triple of both. */
static void derive_chan(const norm_case *k, size_t c, size_t cut)
{
    norm_group a, b, both;
    wide n_a, n_b, n, delta, m, Q;
    load_stretch(&a, k, c, 0, cut);
    load_stretch(&b, k, c, cut, k->N);
    load_stretch(&both, k, c, 0, k->N);
    if (a.n == 0 || b.n == 0) return;
    n_a = (wide)a.n;
    n_b = (wide)b.n;
    n = n_a + n_b;
    delta = b.mu - a.mu;
    m = a.mu + delta * n_b / n;
    Q = a.v * n_a + b.v * n_b + delta * delta * n_a * n_b / n;
    ALSO_OF("ST.1", unless((size_t)n == both.n), algebra());
    ALSO_OF("ST.2", apart(m, both.mu, fabsl(both.mu) + sqrtl(both.v)), algebra());
    ALSO_OF("ST.3", relative(Q, both.v * n), algebra());
}

/* What the code has merged against the statistics of the whole batch. */
static void derive_merging(const sync_case *s, const norm_group *g, size_t c)
{
    const nrm_stats all = s->all[c];
    const wide r = (wide)s->k.rstd[c];
    DERIVE("ST.1", apart((wide)all.count, (wide)g->n, 0), replay());
    DERIVE("ST.2", apart((wide)all.mean, g->mu, fabsl(g->mu) + sqrtl(g->v)), identity());
    DERIVE("ST.3", relative((wide)all.m2, g->v * (wide)g->n), identity());
    DERIVE("ST.4", apart(1 / (r * r) - g->eps, g->v, g->v + g->eps), identity());
    derive_chan(&s->k, c, s->from[2]);
}

/* D and E, added up over the shards, against the sums over the whole channel. */
static wide sums_residual(const sync_case *s, const norm_group *g, size_t c)
{
    const wide blur = acc_in_float() ? fabsl(g->mu) * g->r : 0;
    wide dy = 0, dy_xhat = 0, size = 0;
    size_t i;
    for (i = 0; i < g->n; i++) {
        dy += g->w[i];
        dy_xhat += g->w[i] * g->xhat[i];
        size += fabsl(g->w[i]) * (1 + fabsl(g->xhat[i]) + blur);
    }
    return worse(apart((wide)s->total[c].dy, dy, size),
                 apart((wide)s->total[c].dy_xhat, dy_xhat, size));
}

static wide sync_loss(void *context)
{
    sync_case *s = (sync_case *)context;
    wide loss = 0;
    size_t i;
#ifdef NRM_DOUBLE
    nrm_real y[NUMBERS];
    if (sync_forward(s, y) != NRM_OK) return (wide)HUGE_VAL;
    for (i = 0; i < s->k.count; i++) loss += (wide)s->k.w[i] * (wide)y[i];
#else
    wide y[NUMBERS];
    forward_in_double(&s->k, y);
    for (i = 0; i < s->k.count; i++) loss += (wide)s->k.w[i] * y[i];
#endif
    return loss;
}

/* dx of all shards against the slopes of the loss of all. */
static wide sync_slopes(sync_case *s)
{
    static nrm_real dx[NUMBERS];
    wide worst = 0;
    norm_group g;
    size_t c, i;
    memcpy(dx, s->k.dx, sizeof dx);
    for (c = 0; c < s->k.C; c++) {
        load_group(&g, &s->k, c);
        for (i = 0; i < g.n; i += 1 + g.n / 8) {
            const size_t at = place_of(&s->k, c, i);
            worst = worse(worst, apart((wide)dx[at],
                                       slope(sync_loss, s, s->k.x + at, step_for(&g)), g.size));
        }
    }
    return worst;
}

/* The mean and both variances from the merged triples. */
static wide set_residual(const sync_case *s, int biased)
{
    norm_group g;
    wide worst = 0;
    size_t c;
    for (c = 0; c < s->k.C; c++) {
        const wide u = (wide)(s->all[c].m2 / (s->all[c].count - (biased ? 0 : 1)));
        load_group(&g, &s->k, c);
        worst = worse(worst, apart((wide)s->all[c].mean, g.mu, fabsl(g.mu) + sqrtl(g.v)));
        worst = worse(worst, relative(u * ((wide)g.n - (biased ? 0 : 1)),
                                      g.v * (wide)g.n));
    }
    return worst;
}

static void derive_sync_case(sync_case *s)
{
    norm_group g;
    size_t c;
    for (c = 0; c < s->k.C; c++) {
        load_group(&g, &s->k, c);
        derive_merging(s, &g, c);
        ALSO_OF("ST.4", output_residual(&s->k, &g, c), identity());
        DERIVE("ST.5", sums_residual(s, &g, c), identity());
        DERIVE("ST.6", dx_residual(&s->k, &g, c), identity());
    }
    ALSO_OF("ST.5", param_residual(&s->k, 0), identity());
    ALSO_OF("ST.5", param_residual(&s->k, 1), identity());
    DERIVE("ST.7", worse(set_residual(s, 0), set_residual(s, 1)), identity());
    ALSO_OF("ST.6", sync_slopes(s), difference()); /* the last: it leaves other triples behind */
}

static void derive_statistics(void)
{
    static const size_t shape[][3] = {{2, 3, 1}, {2, 3, 2}, {2, 2, 5},  {3, 3, 1},  {4, 3, 2},
                                      {7, 2, 5}, {1, 2, 5}, {16, 3, 4}, {80, 5, 1}, {33, 2, 2}};
    static const double scale[] = {1e-3, 1, 1e3};
    static sync_case s;
    nrm_rng rng = stream(22);
    size_t i, j, turn;
    for (i = 0; i < LENGTH(shape); i++)
        for (j = 0; j < LENGTH(scale); j++)
            for (turn = 0; turn < 3; turn++) {
                sync_setup(&s, shape[i][0], shape[i][1], shape[i][2], scale[j], &rng);
                derive_sync_case(&s);
            }
}

/* ---- batch renormalization ------------------------------------------------------------------- */

typedef struct renorm_case {
    norm_case k;
    nrm_real r_max, d_max;
    nrm_acc ratio[CHANNELS], offset[CHANNELS];
} renorm_case;

static wide within(wide v, wide low, wide high)
{
    return v < low ? low : v > high ? high : v;
}

/* ρ and d of a channel, and its group with γ·ρ and β + γ·d: then all of BN holds. */
static void load_renorm(norm_group *g, wide *ratio, wide *offset, const renorm_case *b, size_t c)
{
    const wide s = sqrtl((wide)b->k.u[c] + (wide)b->k.eps), most = (wide)b->r_max;
    size_t i;
    load_group(g, &b->k, c);
    *ratio = within(sqrtl(g->v + g->eps) / s, 1 / most, most);
    *offset = within((g->mu - (wide)b->k.m[c]) / s, -(wide)b->d_max, (wide)b->d_max);
    for (i = 0; i < g->n; i++) {
        g->beta[i] += g->gamma[i] * *offset;
        g->gamma[i] *= *ratio;
        g->y[i] = g->gamma[i] * g->xhat[i] + g->beta[i];
    }
    group_gradient(g, 0);
}

static void renorm_run(renorm_case *b)
{
    norm_case *k = &b->k;
    nrm_real x[NUMBERS], dy[NUMBERS], gamma[CHANNELS], beta[CHANNELS], m[CHANNELS], u[CHANNELS];
    nrm_running running;
    to_real(x, k->x, k->count);
    to_real(dy, k->w, k->count);
    to_real(gamma, k->gamma, k->C);
    to_real(beta, k->beta, k->C);
    point_running(&running, m, u, k);
    running.new_weight = (nrm_real)0.1;
    memcpy(k->dgamma, k->dgamma_before, sizeof k->dgamma);
    memcpy(k->dbeta, k->dbeta_before, sizeof k->dbeta);
    if (nrm_batchrenorm_forward(k->y, b->ratio, b->offset, k->mean, k->rstd, &running, x, gamma,
                                beta, b->r_max, b->d_max, NRM_TRAIN, k->eps, k->N, k->C,
                                k->S) != NRM_OK ||
        nrm_batchrenorm_backward(k->dx, k->dgamma, k->dbeta, dy, x, b->ratio, b->offset, k->mean,
                                 k->rstd, gamma, NRM_TRAIN, k->N, k->C, k->S) != NRM_OK)
        k->y[0] = k->dx[0] = (nrm_real)HUGE_VAL;
}

/* If neither limit bites, ρ·x̂ + d is what infer mode makes of x. */
static wide infer_residual(const renorm_case *b, size_t c)
{
    const wide s = sqrtl((wide)b->k.u[c] + (wide)b->k.eps);
    wide worst = 0;
    norm_group g;
    size_t i;
    load_group(&g, &b->k, c);
    for (i = 0; i < g.n; i++) {
        const wide xhat = (g.x[i] - (wide)b->k.m[c]) / s;
        worst = worse(worst, apart((wide)b->k.y[place_of(&b->k, c, i)],
                                   g.gamma[i] * xhat + g.beta[i],
                                   (1 + fabsl(xhat) + fabsl(g.mu) / s) * fabsl(g.gamma[i]) +
                                       fabsl(g.beta[i]) + 1));
    }
    return worst;
}

/* dγ against both forms of BR.4. */
static wide renorm_gamma_residual(const renorm_case *b, size_t c)
{
    wide ratio, offset, one = 0, dy = 0, dy_xhat = 0, size, start;
    norm_group g;
    size_t i;
    load_renorm(&g, &ratio, &offset, b, c);
    start = (wide)b->k.dgamma_before[c];
    size = fabsl(start);
    for (i = 0; i < g.n; i++) {
        one += g.w[i] * (ratio * g.xhat[i] + offset);
        dy += g.w[i];
        dy_xhat += g.w[i] * g.xhat[i];
        size += fabsl(g.w[i]) *
                (ratio * (fabsl(g.xhat[i]) + (acc_in_float() ? fabsl(g.mu) * g.r : 0)) +
                 fabsl(offset));
    }
    return worse(apart(one, ratio * dy_xhat + offset * dy, size),
                 apart((wide)b->k.dgamma[c], start + one, size));
}

typedef struct renorm_loss_context { /* the loss with ρ and d as they were, which are constants */
    renorm_case *b;
    wide ratio[CHANNELS], offset[CHANNELS];
} renorm_loss_context;

static wide renorm_loss(void *context)
{
    renorm_loss_context *l = (renorm_loss_context *)context;
    norm_case *k = &l->b->k;
    wide loss = 0;
    norm_group g;
    size_t c, i;
    for (c = 0; c < k->C; c++) {
        load_group(&g, k, c);
        for (i = 0; i < g.n; i++)
            loss += g.w[i] * (g.gamma[i] * (l->ratio[c] * g.xhat[i] + l->offset[c]) + g.beta[i]);
    }
    return loss;
}

/* dx (or dγ) against the slopes of that loss. */
static wide renorm_slopes(renorm_case *b, int of_gamma)
{
    renorm_loss_context l;
    wide worst = 0, ratio, offset;
    norm_group g;
    size_t c, i;
    l.b = b;
    for (c = 0; c < b->k.C; c++) load_renorm(&g, &l.ratio[c], &l.offset[c], b, c);
    for (c = 0; c < b->k.C; c++) {
        load_renorm(&g, &ratio, &offset, b, c);
        if (of_gamma) {
            const wide should = slope(renorm_loss, &l, b->k.gamma + c, 0.0625);
            const wide got = (wide)b->k.dgamma[c] - (wide)b->k.dgamma_before[c];
            worst = worse(worst, apart(got, should, 1 + fabsl(should)));
        }
        for (i = 0; i < g.n && !of_gamma; i += 1 + g.n / 8) {
            const size_t at = place_of(&b->k, c, i);
            const wide should = slope(renorm_loss, &l, b->k.x + at, step_for(&g));
            worst = worse(worst, apart((wide)b->k.dx[at], should, g.size));
        }
    }
    return worst;
}

static void derive_renorm_case(renorm_case *b, int limited)
{
    wide ratio, offset;
    norm_group g;
    size_t c;
    for (c = 0; c < b->k.C; c++) {
        load_renorm(&g, &ratio, &offset, b, c);
        DERIVE("BR.1", relative((wide)b->ratio[c], ratio), identity());
        DERIVE("BR.2", apart((wide)b->offset[c], offset, 1 + fabsl(offset) + fabsl(g.mu) * g.r),
               identity());
        DERIVE("BR.3", output_residual(&b->k, &g, c), identity());
        if (!limited) ALSO(infer_residual(b, c), identity());
        DERIVE("BR.4", renorm_gamma_residual(b, c), identity());
        DERIVE("BR.5", dx_residual(&b->k, &g, c), identity());
    }
    ALSO_OF("BR.4", renorm_slopes(b, 1), difference());
    ALSO_OF("BR.5", renorm_slopes(b, 0), difference());
}

static void derive_renorm(void)
{
    static const size_t shape[][3] = {{2, 3, 1}, {2, 3, 2}, {2, 2, 5}, {3, 3, 1},
                                      {4, 3, 2}, {7, 2, 5}, {1, 2, 5}, {33, 4, 1}};
    static const double limits[][2] = {{1, 0}, {1.25, 0.5}, {3, 5}, {1e6, 1e6}};
    static const double scale[] = {1e-3, 1, 1e3};
    static renorm_case b;
    nrm_rng rng = stream(23);
    size_t i, j, l;
    for (i = 0; i < LENGTH(shape); i++)
        for (j = 0; j < LENGTH(scale); j++)
            for (l = 0; l < LENGTH(limits); l++) {
                norm_setup(&b.k, 0, NRM_TRAIN, shape[i][0], shape[i][1], shape[i][2], scale[j],
                           &rng);
                b.r_max = (nrm_real)limits[l][0];
                b.d_max = (nrm_real)limits[l][1];
                renorm_run(&b);
                derive_renorm_case(&b, l < 3);
            }
}

#endif
