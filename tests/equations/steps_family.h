/* steps_family.h - the steps of docs/03_family.md, executed.

   Each layer of the chapter has a struct with one call of the header at random, and where a
   derivative is asked for, its formulas in `wide` as a function of something that slope() can
   nudge. */
#ifndef STEPS_FAMILY_H
#define STEPS_FAMILY_H

#include "derive_tools.h"
#include "layers/variants.h"

enum { FAM_MOST = 96, FAM_CHANNELS = 8 };

static const size_t fam_sizes[] = {2, 3, 4, 7, 32};
static const double fam_scales[] = {1e-2, 1, 30};

/* ---- small things ---------------------------------------------------------------------------- */

static wide fam_most(const wide *a, size_t n)
{
    wide most = 0;
    size_t i;
    for (i = 0; i < n; i++) most = worse(most, fabsl(a[i]));
    return most;
}

static wide fam_variance(const wide *a, size_t n)
{
    const wide mean = mean_of(a, n);
    wide sum = 0;
    size_t i;
    for (i = 0; i < n; i++) sum += (a[i] - mean) * (a[i] - mean);
    return sum / (wide)n;
}

static void fam_widen(wide *to, const nrm_real *from, size_t n)
{
    size_t i;
    for (i = 0; i < n; i++) to[i] = (wide)from[i];
}

/* Is `value` what the page prints, rounded to that many digits after the point? */
static wide fam_prints(wide value, double printed, int digits)
{
    return unless(fabsl(value - (wide)printed) <= 0.501L * powl(10, -(wide)digits));
}

/* ---- group and instance norm ----------------------------------------------------------------- */

typedef struct fam_gn {
    size_t N, C, S, G, K, M, count;
    nrm_real eps, x[FAM_MOST], dy[FAM_MOST], gamma[FAM_CHANNELS], beta[FAM_CHANNELS];
    nrm_real y[FAM_MOST], dx[FAM_MOST], dgamma[FAM_CHANNELS], dbeta[FAM_CHANNELS];
    nrm_acc mean[FAM_MOST], rstd[FAM_MOST];
} fam_gn;

typedef struct fam_group { /* one group: K channels of S positions */
    size_t M, S, asked;    /* asked: which x̂ */
    double x[FAM_MOST], xhat_at[FAM_MOST], common;
    wide eps, mu, v, r, xhat[FAM_MOST], g[FAM_MOST], dy[FAM_MOST], gamma[FAM_CHANNELS];
} fam_group;

static void fam_gn_forward(fam_gn *k)
{
    if (nrm_groupnorm_forward(k->y, k->mean, k->rstd, k->x, k->gamma, k->beta, k->eps, k->N, k->C,
                              k->S, k->G) != NRM_OK)
        k->y[0] = (nrm_real)HUGE_VAL;
}

static void fam_gn_setup(fam_gn *k, const size_t *shape, double scale, int plain, nrm_rng *rng)
{
    size_t c;
    memset(k, 0, sizeof *k);
    k->N = shape[0];
    k->C = shape[1];
    k->S = shape[2];
    k->G = shape[3];
    k->K = k->C / k->G;
    k->M = k->K * k->S;
    k->count = k->N * k->C * k->S;
    k->eps = (nrm_real)(scale * scale / 16);
    fill_real(k->x, k->count, 0.7 * scale, scale, rng);
    fill_real(k->dy, k->count, 0.3, 1, rng);
    fill_real(k->gamma, k->C, 1.5, 0.5, rng);
    fill_real(k->beta, k->C, -0.4, 1, rng);
    for (c = 0; c < k->C && plain; c++) {
        k->gamma[c] = 1;
        k->beta[c] = 0;
    }
    fam_gn_forward(k);
    if (nrm_groupnorm_backward(k->dx, k->dgamma, k->dbeta, k->dy, k->x, k->mean, k->rstd, k->gamma,
                               k->N, k->C, k->S, k->G) != NRM_OK)
        k->dx[0] = (nrm_real)HUGE_VAL;
}

static void fam_group_evaluate(fam_group *g)
{
    wide x[FAM_MOST] = {0};
    size_t i;
    for (i = 0; i < g->M; i++) x[i] = (wide)g->x[i];
    g->mu = mean_of(x, g->M);
    g->v = fam_variance(x, g->M);
    g->r = 1 / sqrtl(g->v + g->eps);
    for (i = 0; i < g->M; i++) g->xhat[i] = (x[i] - g->mu) * g->r;
}

/* Group number `group` of example n: its first channel is group·K. */
static void fam_group_load(fam_group *g, const fam_gn *k, size_t n, size_t group)
{
    const size_t from = (n * k->C + group * k->K) * k->S;
    size_t i;
    memset(g, 0, sizeof *g);
    g->M = k->M;
    g->S = k->S;
    g->eps = (wide)k->eps;
    fam_widen(g->dy, k->dy + from, g->M);
    fam_widen(g->gamma, k->gamma + group * k->K, k->K);
    for (i = 0; i < g->M; i++) {
        g->x[i] = (double)k->x[from + i];
        g->g[i] = g->gamma[i / g->S] * g->dy[i];
    }
    fam_group_evaluate(g);
    for (i = 0; i < g->M; i++) g->xhat_at[i] = (double)g->xhat[i];
}

static wide fam_mu_of(void *context)
{
    fam_group *g = (fam_group *)context;
    fam_group_evaluate(g);
    return g->mu;
}

static wide fam_r_of(void *context)
{
    fam_group *g = (fam_group *)context;
    fam_group_evaluate(g);
    return g->r;
}

static wide fam_xhat_of(void *context)
{
    fam_group *g = (fam_group *)context;
    fam_group_evaluate(g);
    return g->xhat[g->asked];
}

/* ∑ dy·(γ·x̂) with x̂ given, and a constant added to all of it; β does not matter. */
static wide fam_loss_of_xhat(void *context)
{
    const fam_group *g = (const fam_group *)context;
    wide loss = 0;
    size_t i;
    for (i = 0; i < g->M; i++)
        loss += g->dy[i] * g->gamma[i / g->S] * ((wide)g->xhat_at[i] + (wide)g->common);
    return loss;
}

static void fam_group_differences(const fam_gn *k, const fam_group *given, size_t from)
{
    fam_group g = *given;
    const double h = binary((double)(1 / g.r) / 2048);
    const wide M = (wide)g.M, reach = 1 + fam_most(g.xhat, g.M);
    wide dx[FAM_MOST] = {0}, size = g.r * fam_most(g.g, g.M) * reach * reach;
    size_t i;
    DERIVE("GN.6b",
           apart(mean_of(given->g, g.M), slope(fam_loss_of_xhat, &g, &g.common, 0.25) / M, 1),
           acc_difference());
    for (i = 0; i < g.M; i++) {
        DERIVE("GN.6a", apart(given->g[i], slope(fam_loss_of_xhat, &g, &g.xhat_at[i], 0.25), 1),
               acc_difference());
        DERIVE("GN.7a", apart(1 / M, slope(fam_mu_of, &g, &g.x[i], h), 1), acc_difference());
        DERIVE("GN.7b",
               apart(-given->r * given->r * given->xhat[i] / M, slope(fam_r_of, &g, &g.x[i], h),
                     given->r * given->r * reach),
               acc_difference());
        for (g.asked = 0; g.asked < g.M; g.asked++) {
            const wide found = slope(fam_xhat_of, &g, &g.x[i], h);
            const wide should =
                given->r * ((g.asked == i) - 1 / M - given->xhat[g.asked] * given->xhat[i] / M);
            DERIVE("GN.7c", apart(found, should, given->r * reach * reach), acc_difference());
            dx[i] += given->g[g.asked] * found;
        }
        DERIVE("GN.7e", apart((wide)k->dx[from + i], dx[i], size), difference());
    }
}

static void fam_group_steps(const fam_gn *k, const fam_group *g, size_t from)
{
    const wide gx = dot_of(g->g, g->xhat, g->M) / (wide)g->M, mean = mean_of(g->g, g->M);
    const wide reach = 1 + fam_most(g->xhat, g->M);
    const wide size = g->r * fam_most(g->g, g->M) * reach * reach;
    const wide t = -g->r * gx, h = (wide)(nrm_real)g->mu;
    wide sum = 0;
    size_t i;
    for (i = 0; i < g->M; i++) {
        const wide dx = (wide)k->dx[from + i], x = (wide)g->x[i], gdy = g->g[i];
        DERIVE("GN.8a", apart(dx, g->r * (gdy - mean - (x - g->mu) * g->r * gx), size), identity());
        DERIVE("GN.8b", apart(dx, g->r * (gdy + t * (x - g->mu) - mean), size), identity());
        DERIVE("GN.8c", apart(x - g->mu, (x - h) - (g->mu - h), 1 / g->r), algebra());
        sum += dx;
    }
    DERIVE("GN.7f", apart(sum, 0, size * (wide)g->M), identity());
}

/* What belongs to G = C: each channel by itself. */
static void fam_instance_steps(const fam_gn *k, const fam_group *g, size_t n, size_t c)
{
    const size_t from = (n * k->C + c) * k->S;
    const wide reach = 1 + fam_most(g->xhat, g->M), mean = mean_of(g->dy, g->M);
    const wide dyx = dot_of(g->dy, g->xhat, g->M) / (wide)g->M;
    const wide size = g->r * fabsl(g->gamma[0]) * fam_most(g->dy, g->M) * reach * reach;
    wide sum = 0;
    size_t s;
    DERIVE("GN.3b", apart((wide)k->mean[n * k->C + c], g->mu, fabsl(g->mu) + 1 / g->r), identity());
    for (s = 0; s < g->M; s++) {
        const wide dx = (wide)k->dx[from + s];
        DERIVE("GN.7h", apart(dx, g->gamma[0] * g->r * (g->dy[s] - mean - g->xhat[s] * dyx), size),
               identity());
        sum += dx;
    }
    DERIVE("GN.7g", apart(sum, 0, size * (wide)g->M), identity());
}

/* y is a straight line in each β and γ, so a nudge by 1 shows the derivative. */
static void fam_gn_parameters(const fam_gn *k)
{
    fam_gn more_beta, more_gamma;
    size_t c, i;
    for (c = 0; c < k->C; c++) {
        more_beta = more_gamma = *k;
        more_beta.beta[c] = k->beta[c] + 1;
        more_gamma.gamma[c] = k->gamma[c] + 1;
        fam_gn_forward(&more_beta);
        fam_gn_forward(&more_gamma);
        for (i = 0; i < k->count; i++) {
            const size_t channel = i / k->S % k->C, row = i / k->M;
            const wide xhat = ((wide)k->x[i] - (wide)k->mean[row]) * (wide)k->rstd[row];
            const wide size = 2 + fabsl((wide)k->y[i]) + fabsl(xhat);
            DERIVE("GN.4a", apart((wide)more_beta.y[i] - (wide)k->y[i], channel == c, size),
                   identity());
            DERIVE("GN.5a",
                   apart((wide)more_gamma.y[i] - (wide)k->y[i], channel == c ? xhat : 0, size),
                   identity());
        }
    }
}

/* A value of one group changes: the outputs of all others keep their bits. */
static void fam_gn_apart(const fam_gn *k)
{
    size_t row, i;
    for (row = 0; row < k->N * k->G && k->M > 1; row++) {
        fam_gn moved = *k;
        wide differs = 0;
        moved.x[row * k->M] += (nrm_real)1;
        fam_gn_forward(&moved);
        for (i = 0; i < k->count; i++)
            if (i / k->M != row) differs += moved.y[i] != k->y[i];
        DERIVE("GN.7d", differs, replay());
        differs = 0;
        for (i = row * k->M; i < (row + 1) * k->M; i++) differs += moved.y[i] != k->y[i];
        ALSO_OF("GN.7d", unless(differs >= 2), replay());
    }
}

/* The same memory read as one example of N·G channels. */
static void fam_gn_view(const size_t *shape, double scale, nrm_rng *rng)
{
    nrm_real y[FAM_MOST] = {0}, dx[FAM_MOST] = {0};
    nrm_acc mean[FAM_MOST] = {0}, rstd[FAM_MOST] = {0};
    wide dy[FAM_MOST] = {0}, size;
    fam_gn k;
    size_t i;
    fam_gn_setup(&k, shape, scale, 1, rng);
    if (k.M < 2) return;
    if (nrm_batchnorm_forward(y, mean, rstd, NULL, k.x, NULL, NULL, NRM_TRAIN, k.eps, 1, k.N * k.G,
                              k.M) != NRM_OK ||
        nrm_batchnorm_backward(dx, NULL, NULL, k.dy, k.x, mean, rstd, NULL, NRM_TRAIN, 1, k.N * k.G,
                               k.M) != NRM_OK)
        y[0] = (nrm_real)HUGE_VAL;
    fam_widen(dy, k.dy, k.count);
    size = fam_most(dy, k.count) / sqrtl((wide)k.eps);
    for (i = 0; i < k.count; i++)
        DERIVE("GN.1a",
               worse(apart((wide)k.y[i], (wide)y[i], 1 + fabsl((wide)y[i])),
                     apart((wide)k.dx[i], (wide)dx[i], size)),
               identity());
}

/* G = 1: layer norm of rows of C·S features, γ and β repeated S times. */
static void fam_gn_as_layer(const fam_gn *k)
{
    const size_t D = k->C * k->S;
    nrm_real y[FAM_MOST] = {0}, gamma[FAM_MOST] = {0}, beta[FAM_MOST] = {0};
    nrm_acc mean[FAM_MOST] = {0}, rstd[FAM_MOST] = {0};
    size_t i;
    if (k->G != 1) return;
    for (i = 0; i < D; i++) {
        gamma[i] = k->gamma[i / k->S];
        beta[i] = k->beta[i / k->S];
    }
    if (nrm_layernorm_forward(y, mean, rstd, k->x, gamma, beta, k->eps, k->N, D) != NRM_OK)
        y[0] = (nrm_real)HUGE_VAL;
    for (i = 0; i < k->count; i++)
        DERIVE("GN.3c", apart((wide)k->y[i], (wide)y[i], 2 + fabsl((wide)y[i])), identity());
    if (k->S == 1) DERIVE("GN.3a", unless(memcmp(k->y, y, k->count * sizeof *y) == 0), replay());
}

/* The first correction of the page: statistics of images, and of pixels. */
static void fam_pixels(void)
{
    static const nrm_real images[8] = {1, 2, 3, 4, 3, 2, 9, 10};
    nrm_real y[8], pixel[8];
    nrm_acc mean[4], rstd[4];
    if (nrm_batchnorm_forward(y, mean, rstd, NULL, images, NULL, NULL, NRM_TRAIN, (nrm_real)1e-12,
                              2, 1, 4) != NRM_OK ||
        nrm_batchnorm_forward(pixel, mean, rstd, NULL, images, NULL, NULL, NRM_TRAIN,
                              (nrm_real)1e-12, 2, 4, 1) != NRM_OK)
        y[0] = (nrm_real)HUGE_VAL;
    ALSO_OF("GN.1a", fam_prints((wide)y[0], -1.0310, 4), algebra());
    ALSO_OF("GN.1a", fam_prints((wide)y[4], -0.3965, 4), algebra());
    ALSO_OF("GN.1a", fam_prints((wide)pixel[0], -1, 4), algebra());
    ALSO_OF("GN.1a", fam_prints((wide)pixel[4], 1, 4), algebra());
    ALSO_OF("GN.1a", fam_prints((wide)pixel[3], -1, 4), algebra());
    ALSO_OF("GN.1a", unless(pixel[1] == 0 && pixel[5] == 0), algebra());
}

/* The picture of the page: which letter stands at channel c of example n. */
static size_t fam_letter(int norm, size_t n, size_t c)
{
    switch (norm) {
    case 0:
        return c;
    case 1:
        return n;
    case 2:
        return 2 * n + c / 2;
    default:
        return 4 * n + c;
    }
}

static int fam_picture_norm(nrm_real *y, const nrm_real *x, int norm)
{
    nrm_acc mean[8], rstd[8];
    if (norm == 0)
        return nrm_batchnorm_forward(y, mean, rstd, NULL, x, NULL, NULL, NRM_TRAIN, NRM_EPS, 2, 4,
                                     3);
    return nrm_groupnorm_forward(y, mean, rstd, x, NULL, NULL, NRM_EPS, 2, 4, 3,
                                 norm == 1   ? 1
                                 : norm == 2 ? 2
                                             : 4);
}

/* A number moves: the outputs that change are those with its letter. */
static void fam_picture(nrm_rng *rng)
{
    nrm_real x[24], y[24], moved[24];
    size_t i, j;
    int norm;
    fill_real(x, 24, 0.7, 1, rng);
    for (norm = 0; norm < 4; norm++)
        for (i = 0; i < 24; i++) {
            const nrm_real kept = x[i];
            size_t wrong = fam_picture_norm(y, x, norm) != NRM_OK;
            x[i] = kept + 1;
            wrong += fam_picture_norm(moved, x, norm) != NRM_OK;
            x[i] = kept;
            for (j = 0; j < 24; j++) {
                const int same =
                    fam_letter(norm, i / 12, i / 3 % 4) == fam_letter(norm, j / 12, j / 3 % 4);
                wrong += same ? y[j] == moved[j] : y[j] != moved[j];
            }
            ALSO_OF("GN.1a", unless(wrong == 0), algebra());
        }
}

static void steps_group_norm(nrm_rng *rng)
{
    static const size_t shape[][4] = {{2, 4, 3, 2}, {1, 2, 1, 1}, {2, 3, 1, 1}, {3, 6, 1, 2},
                                      {2, 4, 7, 4}, {1, 4, 2, 4}, {2, 3, 4, 1}, {1, 8, 4, 1},
                                      {2, 7, 1, 1}, {2, 6, 4, 3}, {3, 2, 16, 1}};
    fam_gn k;
    fam_group g;
    size_t i, j, n, group;
    for (i = 0; i < LENGTH(shape); i++)
        for (j = 0; j < LENGTH(fam_scales); j++) {
            fam_gn_setup(&k, shape[i], fam_scales[j], 0, rng);
            for (n = 0; n < k.N; n++)
                for (group = 0; group < k.G; group++) {
                    const size_t from = (n * k.C + group * k.K) * k.S;
                    fam_group_load(&g, &k, n, group);
                    fam_group_steps(&k, &g, from);
                    if (n == 0 && g.M < 16) fam_group_differences(&k, &g, from);
                    if (k.G == k.C) fam_instance_steps(&k, &g, n, group);
                }
            fam_gn_parameters(&k);
            fam_gn_apart(&k);
            fam_gn_as_layer(&k);
            fam_gn_view(shape[i], fam_scales[j], rng);
        }
    fam_picture(rng);
    fam_pixels();
}

/* ---- RMS norm -------------------------------------------------------------------------------- */

typedef struct fam_rms { /* one row */
    size_t D, asked;
    double x[FAM_MOST], q_at;
    wide eps, q, r, xhat[FAM_MOST], g[FAM_MOST];
} fam_rms;

static void fam_rms_evaluate(fam_rms *k)
{
    size_t i;
    k->q = 0;
    for (i = 0; i < k->D; i++) k->q += (wide)k->x[i] * (wide)k->x[i] / (wide)k->D;
    k->r = 1 / sqrtl(k->q + k->eps);
    for (i = 0; i < k->D; i++) k->xhat[i] = (wide)k->x[i] * k->r;
}

static wide fam_q_of(void *context)
{
    fam_rms *k = (fam_rms *)context;
    fam_rms_evaluate(k);
    return k->q;
}

static wide fam_r_of_q(void *context)
{
    const fam_rms *k = (const fam_rms *)context;
    return 1 / sqrtl((wide)k->q_at + k->eps);
}

static wide fam_rms_r_of(void *context)
{
    fam_rms *k = (fam_rms *)context;
    fam_rms_evaluate(k);
    return k->r;
}

static wide fam_rms_xhat_of(void *context)
{
    fam_rms *k = (fam_rms *)context;
    fam_rms_evaluate(k);
    return k->xhat[k->asked];
}

static void fam_rms_differences(const fam_rms *given)
{
    fam_rms k = *given;
    const double h = binary((double)(1 / k.r) / 2048);
    const wide D = (wide)k.D, r = k.r, scale = 1 / r, reach = 1 + fam_most(k.xhat, k.D);
    size_t i;
    k.q_at = (double)k.q;
    DERIVE("RMS.4b",
           apart(-r * r * r / 2,
                 slope(fam_r_of_q, &k, &k.q_at, binary((double)(scale * scale) / 2048)), r * r * r),
           acc_difference());
    for (i = 0; i < k.D; i++) {
        DERIVE("RMS.4a",
               apart(2 / D * (wide)given->x[i], slope(fam_q_of, &k, &k.x[i], h), scale * reach),
               acc_difference());
        DERIVE(
            "RMS.4c",
            apart(-r * r * given->xhat[i] / D, slope(fam_rms_r_of, &k, &k.x[i], h), r * r * reach),
            acc_difference());
        for (k.asked = 0; k.asked < k.D; k.asked++)
            DERIVE("RMS.4d",
                   apart(r * ((k.asked == i) - given->xhat[i] * given->xhat[k.asked] / D),
                         slope(fam_rms_xhat_of, &k, &k.x[i], h), r * reach * reach),
                   acc_difference());
    }
}

static void fam_rms_row(size_t D, double scale, double eps, nrm_rng *rng)
{
    nrm_real x[FAM_MOST] = {0}, dy[FAM_MOST] = {0}, gamma[FAM_MOST] = {0}, centred[FAM_MOST] = {0};
    nrm_real y[FAM_MOST] = {0}, dx[FAM_MOST] = {0}, ln[FAM_MOST] = {0}, rms[FAM_MOST] = {0};
    nrm_acc rstd, mean, other;
    wide xs[FAM_MOST] = {0}, dxs[FAM_MOST] = {0}, gx, size, reach, mu, v;
    fam_rms k;
    size_t i;
    memset(&k, 0, sizeof k);
    k.D = D;
    k.eps = (wide)(nrm_real)eps;
    fill_real(x, D, 0.7 * scale, scale, rng);
    fill_real(dy, D, 0.3, 1, rng);
    fill_real(gamma, D, 1.5, 0.5, rng);
    for (i = 0; i < D; i++) {
        k.x[i] = (double)x[i];
        k.g[i] = (wide)gamma[i] * (wide)dy[i];
    }
    fam_rms_evaluate(&k);
    fam_widen(xs, x, D);
    mu = mean_of(xs, D);
    v = fam_variance(xs, D);
    if (nrm_rmsnorm_forward(y, &rstd, x, gamma, (nrm_real)eps, 1, D) != NRM_OK ||
        nrm_rmsnorm_backward(dx, NULL, dy, x, &rstd, gamma, 1, D) != NRM_OK)
        y[0] = dx[0] = (nrm_real)HUGE_VAL;
    DERIVE("RMS.1a", relative(v + mu * mu, k.q), algebra());
    gx = 0;
    for (i = 0; i < D; i++) gx += (wide)y[i] / (wide)gamma[i] * ((wide)y[i] / (wide)gamma[i]);
    DERIVE("RMS.2b", apart(gx / (wide)D, k.q * k.r * k.r, 1), identity());
    ALSO(apart(gx / (wide)D, 1 - k.eps * k.r * k.r, 1), identity());
    DERIVE("RMS.2c", apart(fam_variance(k.xhat, D), v / (v + mu * mu + k.eps), 1), algebra());
    ALSO(apart(fam_variance(k.xhat, D), v * k.r * k.r, 1), algebra());
    for (i = 0; i < D; i++) centred[i] = (nrm_real)(xs[i] - mu);
    fam_widen(xs, centred, D);
    if (nrm_rmsnorm_forward(rms, &other, centred, gamma, (nrm_real)eps, 1, D) != NRM_OK ||
        nrm_layernorm_forward(ln, &mean, &other, x, gamma, NULL, (nrm_real)eps, 1, D) != NRM_OK)
        ln[0] = (nrm_real)HUGE_VAL;
    for (i = 0; i < D; i++)
        DERIVE("RMS.2a", apart((wide)rms[i], (wide)ln[i], 2 + 2 * fabsl((wide)ln[i])), identity());
    reach = 1 + fam_most(k.xhat, D);
    size = k.r * fam_most(k.g, D) * reach * reach;
    gx = dot_of(k.g, k.xhat, D);
    fam_widen(dxs, dx, D);
    for (i = 0; i < D; i++)
        DERIVE("RMS.4e", apart(dxs[i], k.r * k.g[i] - k.r / (wide)D * k.xhat[i] * gx, size),
               identity());
    DERIVE("RMS.5a",
           apart(dot_of(dxs, k.xhat, D), k.r * gx / (wide)D * ((wide)D - dot_of(k.xhat, k.xhat, D)),
                 size * (wide)D * reach),
           identity());
    DERIVE("RMS.5b",
           apart(sum_of(dxs, D),
                 (wide)D * k.r * (mean_of(k.g, D) - mean_of(k.xhat, D) * gx / (wide)D),
                 size * (wide)D),
           identity());
    if (D < 16) fam_rms_differences(&k);
}

/* 1, 2, 3, 4, and the same with 100 added. */
static void fam_rms_numbers(void)
{
    static const double rms[4] = {0.3651, 0.7303, 1.0954, 1.4606};
    static const double ln[4] = {-1.3416, -0.4472, 0.4472, 1.3416};
    static const double shifted[4] = {0.9853, 0.9951, 1.0048, 1.0146};
    nrm_real x[4] = {1, 2, 3, 4}, far[4] = {101, 102, 103, 104}, y[4];
    nrm_acc mean, rstd;
    size_t i, turn;
    for (turn = 0; turn < 4; turn++) {
        const nrm_real *from = turn < 2 ? x : far;
        const double *to = turn % 2 == 0 ? ln : turn == 1 ? rms : shifted;
        const int rc = turn % 2 == 0
                           ? nrm_layernorm_forward(y, &mean, &rstd, from, NULL, NULL, NRM_EPS, 1, 4)
                           : nrm_rmsnorm_forward(y, &rstd, from, NULL, NRM_EPS, 1, 4);
        for (i = 0; i < 4; i++)
            ALSO_OF("RMS.2c", rc == NRM_OK ? fam_prints((wide)y[i], to[i], 4) : 1, algebra());
    }
}

static void steps_rms_norm(nrm_rng *rng)
{
    size_t i, j;
    for (i = 0; i < LENGTH(fam_sizes); i++)
        for (j = 0; j < LENGTH(fam_scales); j++) {
            const double s = fam_scales[j];
            fam_rms_row(fam_sizes[i], s, s * s / 16, rng);
            fam_rms_row(fam_sizes[i], s, s * s / 1024, rng);
        }
    fam_rms_numbers();
}

/* ---- merging, and several workers ------------------------------------------------------------ */

enum { FAM_WORKERS = 3 };

typedef struct fam_team { /* one channel, spread over workers */
    size_t n, part[FAM_WORKERS], owner[FAM_MOST], asked;
    double x[FAM_MOST];
    nrm_real xs[FAM_MOST], dy[FAM_MOST], dx[FAM_MOST], own[FAM_MOST], gamma, eps;
    nrm_real dgamma[FAM_WORKERS], dbeta[FAM_WORKERS];
    nrm_stats stats[FAM_WORKERS], all;
    nrm_sums sums[FAM_WORKERS], total;
    wide mu, v, r, xhat[FAM_MOST];
} fam_team;

static void fam_team_evaluate(fam_team *t)
{
    wide x[FAM_MOST] = {0};
    size_t i;
    for (i = 0; i < t->n; i++) x[i] = (wide)t->x[i];
    t->mu = mean_of(x, t->n);
    t->v = fam_variance(x, t->n);
    t->r = 1 / sqrtl(t->v + (wide)t->eps);
    for (i = 0; i < t->n; i++) t->xhat[i] = (x[i] - t->mu) * t->r;
}

static wide fam_team_xhat(void *context)
{
    fam_team *t = (fam_team *)context;
    fam_team_evaluate(t);
    return t->xhat[t->asked];
}

/* Every worker on its part: statistics, sums, gradient; and the gradient from own sums alone. */
static void fam_team_run(fam_team *t)
{
    nrm_real y[FAM_MOST] = {0};
    nrm_acc mean[1], rstd[1];
    size_t w, at;
    int rc = NRM_OK;
    memset(&t->all, 0, sizeof t->all);
    memset(&t->total, 0, sizeof t->total);
    for (w = at = 0; w < FAM_WORKERS; at += t->part[w++]) {
        memset(&t->stats[w], 0, sizeof t->stats[w]);
        rc |= nrm_stats_update(&t->stats[w], t->xs + at, NULL, t->part[w], 1, 1);
        rc |= nrm_stats_merge(&t->all, &t->stats[w], 1);
    }
    for (w = at = 0; w < FAM_WORKERS; at += t->part[w++]) {
        rc |= nrm_sync_batchnorm_forward(y + at, mean, rstd, NULL, t->xs + at, NULL, &t->all,
                                         &t->gamma, NULL, t->eps, t->part[w], 1, 1);
        t->dgamma[w] = t->dbeta[w] = 0;
        rc |= nrm_sync_batchnorm_sums(&t->sums[w], &t->dgamma[w], &t->dbeta[w], t->dy + at,
                                      t->xs + at, NULL, mean, rstd, t->part[w], 1, 1);
        t->total.dy += t->sums[w].dy;
        t->total.dy_xhat += t->sums[w].dy_xhat;
    }
    for (w = at = 0; w < FAM_WORKERS; at += t->part[w++]) {
        nrm_stats mine = t->all;
        mine.count = (nrm_acc)t->part[w];
        rc |= nrm_sync_batchnorm_backward(t->dx + at, t->dy + at, t->xs + at, NULL, mean, rstd,
                                          &t->gamma, &t->all, &t->total, t->part[w], 1, 1);
        rc |= nrm_sync_batchnorm_backward(t->own + at, t->dy + at, t->xs + at, NULL, mean, rstd,
                                          &t->gamma, &mine, &t->sums[w], t->part[w], 1, 1);
    }
    if (rc != NRM_OK) t->dx[0] = (nrm_real)HUGE_VAL;
}

static void fam_team_steps(fam_team *t, double scale)
{
    const double h = binary(scale / 2048);
    wide dy[FAM_MOST] = {0}, A, B, size, n = (wide)t->n, gamma = (wide)t->gamma, reach;
    size_t i, w, at;
    fam_team nudged;
    fam_team_evaluate(t);
    nudged = *t;
    fam_widen(dy, t->dy, t->n);
    A = sum_of(dy, t->n);
    B = dot_of(dy, t->xhat, t->n);
    reach = 1 + fam_most(t->xhat, t->n);
    size = fabsl(gamma) * t->r * fam_most(dy, t->n) * reach * reach;
    for (i = 0; i < t->n; i++) {
        const size_t mine = t->owner[i];
        const wide dx = (wide)t->dx[i];
        wide sum = 0;
        for (nudged.asked = 0; nudged.asked < t->n; nudged.asked++) {
            const wide found = slope(fam_team_xhat, &nudged, &nudged.x[i], h);
            sum += gamma * dy[nudged.asked] * found;
            if (t->owner[nudged.asked] != mine)
                DERIVE("ST.5b",
                       apart(found, -t->r / n * (1 + t->xhat[i] * t->xhat[nudged.asked]),
                             t->r * reach * reach),
                       acc_difference());
        }
        DERIVE("ST.5a", apart(dx, sum, size), difference());
        DERIVE("ST.5c", apart(dx, gamma * t->r * (dy[i] - A / n - t->xhat[i] / n * B), size),
               identity());
    }
    for (w = at = 0; w < FAM_WORKERS; at += t->part[w++]) {
        const wide n_w = (wide)t->part[w], A_w = sum_of(dy + at, t->part[w]);
        const wide B_w = dot_of(dy + at, t->xhat + at, t->part[w]);
        wide sum = 0;
        for (i = at; i < at + t->part[w]; i++) {
            const wide missing = (A_w / n_w - A / n) + t->xhat[i] * (B_w / n_w - B / n);
            sum += (wide)t->dx[i];
            DERIVE("ST.6a",
                   apart((wide)t->dx[i] - (wide)t->own[i], gamma * t->r * missing, 4 * size),
                   identity());
        }
        DERIVE("ST.6b",
               apart(sum,
                     gamma * t->r * (A_w - n_w / n * A - B / n * sum_of(t->xhat + at, t->part[w])),
                     n * size),
               identity());
    }
    {
        wide db = 0, dg = 0, sum_a = 0, sum_b = 0, big = n * fam_most(dy, t->n) * reach;
        for (w = 0; w < FAM_WORKERS; w++) {
            sum_a += (wide)t->sums[w].dy;
            sum_b += (wide)t->sums[w].dy_xhat;
            db += (wide)t->dbeta[w];
            dg += (wide)t->dgamma[w];
        }
        DERIVE("ST.5d", worse(apart(sum_a, A, big), apart(sum_b, B, big)), identity());
        DERIVE("ST.6c", worse(apart(db, A, big), apart(dg, B, big)), identity());
    }
}

/* ST.4a for two portions, by the header's triples. */
static void fam_merge(const nrm_real *x, size_t n_a, size_t n_b)
{
    wide all[FAM_MOST] = {0}, n = (wide)(n_a + n_b), delta, v;
    nrm_stats a, b;
    fam_widen(all, x, n_a + n_b);
    memset(&a, 0, sizeof a);
    memset(&b, 0, sizeof b);
    if (nrm_stats_update(&a, x, NULL, n_a, 1, 1) != NRM_OK ||
        nrm_stats_update(&b, x + n_a, NULL, n_b, 1, 1) != NRM_OK ||
        nrm_stats_merge(&a, &b, 1) != NRM_OK)
        a.m2 = -1;
    delta = mean_of(all + n_a, n_b) - mean_of(all, n_a);
    v = ((wide)n_a * fam_variance(all, n_a) + (wide)n_b * fam_variance(all + n_a, n_b)) / n +
        (wide)n_a * (wide)n_b / (n * n) * delta * delta;
    DERIVE("ST.4a", relative((wide)a.m2 / (wide)a.count, v), identity());
    ALSO(relative(fam_variance(all, n_a + n_b), v), algebra());
}

static void fam_merge_numbers(void)
{
    static const nrm_real even[4] = {1, 3, 5, 7}, uneven[6] = {1, 3, 5, 7, 9, 11};
    wide a[6];
    fam_merge(even, 2, 2);
    fam_merge(uneven, 2, 4);
    fam_widen(a, even, 4);
    ALSO_OF("ST.4a", unless(fam_variance(a, 2) == 1 && fam_variance(a + 2, 2) == 1), algebra());
    ALSO_OF("ST.4a", unless(fam_variance(a, 4) == 5), algebra());
    fam_widen(a, uneven, 6);
    ALSO_OF("ST.4a", unless((mean_of(a, 2) + mean_of(a + 2, 4)) / 2 == 5 && mean_of(a, 6) == 6),
            algebra());
}

/* Batches of one size, merged one after another. */
static void fam_batches(size_t M, size_t batches, double scale, nrm_rng *rng)
{
    nrm_real x[FAM_MOST] = {0};
    wide xs[FAM_MOST] = {0}, v[FAM_MOST] = {0}, mu[FAM_MOST] = {0};
    nrm_stats all;
    size_t b;
    int rc = NRM_OK;
    memset(&all, 0, sizeof all);
    fill_real(x, M * batches, 0.7 * scale, scale, rng);
    fam_widen(xs, x, M * batches);
    for (b = 0; b < batches; b++) {
        rc |= nrm_stats_update(&all, x + b * M, NULL, M, 1, 1);
        mu[b] = mean_of(xs + b * M, M);
        v[b] = fam_variance(xs + b * M, M);
    }
    DERIVE("ST.7a",
           rc != NRM_OK ? 1
                        : relative((wide)all.m2 / (wide)all.count,
                                   mean_of(v, batches) + fam_variance(mu, batches)),
           identity());
}

static void steps_workers(nrm_rng *rng)
{
    static const size_t parts[][FAM_WORKERS] = {{2, 2, 3}, {2, 3, 2}, {4, 2, 7}, {5, 2, 10}};
    fam_team t;
    size_t i, j, w, k, at;
    for (i = 0; i < LENGTH(parts); i++)
        for (j = 0; j < LENGTH(fam_scales); j++) {
            const double s = fam_scales[j];
            memset(&t, 0, sizeof t);
            for (w = at = 0; w < FAM_WORKERS; w++) {
                t.part[w] = parts[i][w];
                for (k = 0; k < t.part[w]; k++, at++) {
                    t.owner[at] = w;
                    fill_real(&t.xs[at], 1, s * (0.7 + (double)w), s, rng);
                    fill_real(&t.dy[at], 1, 0.3 - (double)w, 1, rng);
                    t.x[at] = (double)t.xs[at];
                }
            }
            t.n = at;
            t.eps = (nrm_real)(s * s / 16);
            fill_real(&t.gamma, 1, 1.5, 0.5, rng);
            fam_team_run(&t);
            fam_team_steps(&t, s);
            fam_merge(t.xs, t.n / 3 + 1, t.n - t.n / 3 - 1);
            fam_batches(2 + i, 5, s, rng);
        }
    fam_merge_numbers();
}

/* ---- batch renorm ---------------------------------------------------------------------------- */

typedef struct fam_br { /* one channel */
    size_t n, asked;
    int held; /* are ρ and d given? */
    double x[FAM_MOST];
    nrm_real xs[FAM_MOST], dy[FAM_MOST], gamma, beta, eps, m, u, r_max, d_max;
    nrm_real y[FAM_MOST], dx[FAM_MOST];
    nrm_acc ratio, offset, mean, rstd;
    wide rho, d, r, xhat[FAM_MOST];
} fam_br;

static void fam_br_forward(fam_br *k)
{
    nrm_real m = k->m, u = k->u;
    nrm_running running;
    memset(&running, 0, sizeof running);
    running.mean = &m;
    running.var = &u;
    running.new_weight = (nrm_real)0.1;
    if (nrm_batchrenorm_forward(k->y, &k->ratio, &k->offset, &k->mean, &k->rstd, &running, k->xs,
                                &k->gamma, &k->beta, k->r_max, k->d_max, NRM_TRAIN, k->eps, k->n, 1,
                                1) != NRM_OK)
        k->y[0] = (nrm_real)HUGE_VAL;
}

/* Formulas, without limits; y of value number `asked`. */
static wide fam_br_y(void *context)
{
    fam_br *k = (fam_br *)context;
    wide x[FAM_MOST] = {0}, mu, v;
    const wide root = sqrtl((wide)k->u + (wide)k->eps);
    size_t i;
    for (i = 0; i < k->n; i++) x[i] = (wide)k->x[i];
    mu = mean_of(x, k->n);
    v = fam_variance(x, k->n);
    if (!k->held) {
        k->rho = sqrtl(v + (wide)k->eps) / root;
        k->d = (mu - (wide)k->m) / root;
    }
    k->r = 1 / sqrtl(v + (wide)k->eps);
    for (i = 0; i < k->n; i++) k->xhat[i] = (x[i] - mu) * k->r;
    return (wide)k->gamma * (k->rho * k->xhat[k->asked] + k->d) + (wide)k->beta;
}

static wide fam_br_loss(void *context)
{
    fam_br *k = (fam_br *)context;
    wide loss = 0;
    for (k->asked = 0; k->asked < k->n; k->asked++) loss += (wide)k->dy[k->asked] * fam_br_y(k);
    return loss;
}

/* No limit bites: the step from batch statistics to running ones. */
static void fam_br_free(const fam_br *given, double scale)
{
    fam_br k = *given;
    const wide u = (wide)k.u + (wide)k.eps, gamma = (wide)k.gamma, beta = (wide)k.beta;
    const wide mu = (wide)k.mean, m = (wide)k.m;
    const double h = binary(scale / 2048);
    nrm_real infer[FAM_MOST] = {0};
    nrm_running running;
    wide v, size;
    size_t i;
    memset(&running, 0, sizeof running);
    running.mean = &k.m;
    running.var = &k.u;
    if (nrm_batchnorm_forward(infer, NULL, NULL, &running, k.xs, &k.gamma, &k.beta, NRM_INFER,
                              k.eps, k.n, 1, 1) != NRM_OK)
        infer[0] = (nrm_real)HUGE_VAL;
    v = 1 / ((wide)k.rstd * (wide)k.rstd); /* with ε */
    k.held = 0;
    (void)fam_br_y(&k);
    DERIVE("BR.5c", relative((wide)k.ratio * (wide)k.rstd, 1 / sqrtl(u)), acc_identity());
    for (i = 0; i < k.n; i++) {
        const wide x = (wide)k.x[i], code = ((wide)k.y[i] - beta) / gamma;
        const wide blur = 4 + fabsl(code) + fabsl(k.d) + fabsl(beta / gamma);
        const wide line = sqrtl(v) / sqrtl(u) * ((x - mu) / sqrtl(v)) + (mu - m) / sqrtl(u);
        DERIVE("BR.3a", apart(code, line, blur), identity());
        DERIVE("BR.3b", apart(line, ((x - mu) + (mu - m)) / sqrtl(u), blur), algebra());
        DERIVE("BR.3c", apart(code, (x - m) / sqrtl(u), blur), identity());
        ALSO(apart((wide)k.y[i], (wide)infer[i], 2 + fabsl(gamma) * blur), identity());
        size = fabsl(gamma) * 8 / sqrtl(u);
        DERIVE("BR.5a",
               apart(slope(fam_br_loss, &k, &k.x[i], h), gamma * (wide)k.dy[i] / sqrtl(u), size),
               acc_difference());
    }
}

/* Where limits bite. */
static void fam_br_limited(const fam_br *given, double scale, nrm_rng *rng)
{
    fam_br k = *given, more, held;
    const double h = binary(scale / 2048);
    nrm_real y[FAM_MOST] = {0}, gamma, beta;
    nrm_acc mean, rstd;
    size_t i;
    k.r_max = (nrm_real)1.25;
    k.d_max = (nrm_real)0.125;
    fam_br_forward(&k);
    gamma = (nrm_real)((wide)k.gamma * (wide)k.ratio);
    beta = (nrm_real)((wide)k.gamma * (wide)k.offset + (wide)k.beta);
    if (nrm_batchnorm_forward(y, &mean, &rstd, NULL, k.xs, &gamma, &beta, NRM_TRAIN, k.eps, k.n, 1,
                              1) != NRM_OK)
        y[0] = (nrm_real)HUGE_VAL;
    more = k;
    more.gamma = k.gamma + 1;
    fam_br_forward(&more);
    held = k;
    held.held = 1;
    held.rho = (wide)k.ratio;
    held.d = (wide)k.offset;
    (void)fam_br_y(&held);
    for (i = 0; i < k.n; i++) {
        const wide xhat = ((wide)k.x[i] - (wide)k.mean) * (wide)k.rstd, size = 6 + fabsl(xhat) * 4;
        DERIVE("BR.4a", apart((wide)k.y[i], (wide)y[i], 2 * size), identity());
        DERIVE(
            "BR.4b",
            apart((wide)more.y[i] - (wide)k.y[i], (wide)k.ratio * xhat + (wide)k.offset, 2 * size),
            identity());
    }
    for (i = 0; i < k.n; i++) {
        const wide n = (wide)k.n;
        const size_t j = (size_t)nrm_rng_below(rng, (uint32_t)k.n);
        wide xi, xj, r, found;
        held.asked = j;
        (void)fam_br_y(&held);
        r = held.r;
        xi = held.xhat[i];
        xj = held.xhat[j];
        found = slope(fam_br_y, &held, &held.x[i], h);
        DERIVE("BR.5b",
               apart(found, (wide)k.gamma * held.rho * r * ((i == j) - 1 / n - xi * xj / n),
                     4 * r * (1 + fabsl(xi) * fabsl(xj))),
               difference());
    }
    k.r_max = 1;
    k.d_max = 0;
    fam_br_forward(&k);
    if (nrm_batchnorm_forward(y, &mean, &rstd, NULL, k.xs, &k.gamma, &k.beta, NRM_TRAIN, k.eps, k.n,
                              1, 1) != NRM_OK)
        y[0] = (nrm_real)HUGE_VAL;
    for (i = 0; i < k.n; i++)
        DERIVE("BR.3d", apart((wide)k.y[i], (wide)y[i], 8 + 2 * fabsl((wide)y[i])), identity());
}

/* Four values with mean 0.7 and variance 0.25. */
static void fam_br_numbers(void)
{
    fam_br k;
    size_t i;
    memset(&k, 0, sizeof k);
    k.n = 4;
    k.gamma = 1;
    k.eps = (nrm_real)1e-12;
    k.m = (nrm_real)0.5;
    k.u = 1;
    k.r_max = k.d_max = 100;
    for (i = 0; i < 4; i++) k.xs[i] = (nrm_real)(i < 2 ? 0.2 : 1.2);
    fam_br_forward(&k);
    ALSO_OF("BR.3a", worse(fam_prints((wide)k.ratio, 0.5, 5), fam_prints((wide)k.offset, 0.2, 5)),
            algebra());
}

static void steps_batch_renorm(nrm_rng *rng)
{
    fam_br k;
    size_t i, j, a;
    for (i = 0; i < LENGTH(fam_sizes); i++)
        for (j = 0; j < LENGTH(fam_scales); j++) {
            const double s = fam_scales[j];
            memset(&k, 0, sizeof k);
            k.n = fam_sizes[i];
            k.eps = (nrm_real)(s * s / 16);
            k.m = (nrm_real)(0.3 * s);
            k.u = (nrm_real)(2.5 * s * s);
            k.r_max = k.d_max = 1000;
            fill_real(k.xs, k.n, 0.7 * s, s, rng);
            fill_real(k.dy, k.n, 0.3, 1, rng);
            fill_real(&k.gamma, 1, 1.5, 0.5, rng);
            fill_real(&k.beta, 1, -0.4, 1, rng);
            for (a = 0; a < k.n; a++) k.x[a] = (double)k.xs[a];
            fam_br_forward(&k);
            fam_br_free(&k, s);
            fam_br_limited(&k, s, rng);
        }
    fam_br_numbers();
}

/* ---- Lp batch norm --------------------------------------------------------------------------- */

typedef struct fam_lp { /* one channel */
    int p, centred;     /* p: an NRM_L..., or with `power` set, that power */
    size_t n, asked;
    wide power, gamma, eps;
    double x[FAM_MOST];
    wide mu, t, r, c[FAM_MOST], u[FAM_MOST], q[FAM_MOST], k[FAM_MOST], xhat[FAM_MOST];
    wide dy[FAM_MOST], dx[FAM_MOST]; /* dx is the header's */
} fam_lp;

/* LP.2 */
static wide fam_size(const wide *u, size_t n, int p)
{
    wide sum = 0;
    size_t i;
    if (p == NRM_LINF) return fam_most(u, n);
    for (i = 0; i < n; i++) sum += p == NRM_L2 ? u[i] * u[i] : fabsl(u[i]);
    return p == NRM_L2 ? sqrtl(sum / (wide)n) : sum / (wide)n;
}

static wide fam_power_size(const wide *u, size_t n, wide p)
{
    wide sum = 0;
    size_t i;
    for (i = 0; i < n; i++) sum += powl(fabsl(u[i]), p);
    return powl(sum / (wide)n, 1 / p);
}

static void fam_lp_evaluate(fam_lp *k)
{
    wide x[FAM_MOST] = {0};
    size_t i;
    for (i = 0; i < k->n; i++) x[i] = (wide)k->x[i];
    k->mu = mean_of(x, k->n);
    for (i = 0; i < k->n; i++) {
        k->c[i] = x[i] - k->mu;
        k->u[i] = k->centred ? k->c[i] : x[i];
    }
    k->t = k->power > 0 ? fam_power_size(k->u, k->n, k->power) : fam_size(k->u, k->n, k->p);
    k->r = 1 / (k->t + k->eps);
    for (i = 0; i < k->n; i++) k->xhat[i] = k->c[i] * k->r;
}

static wide fam_lp_t(void *context)
{
    fam_lp *k = (fam_lp *)context;
    fam_lp_evaluate(k);
    return k->t;
}

static wide fam_lp_r(void *context)
{
    fam_lp *k = (fam_lp *)context;
    fam_lp_evaluate(k);
    return k->r;
}

static wide fam_lp_u(void *context)
{
    fam_lp *k = (fam_lp *)context;
    fam_lp_evaluate(k);
    return k->u[k->asked];
}

static wide fam_lp_xhat(void *context)
{
    fam_lp *k = (fam_lp *)context;
    fam_lp_evaluate(k);
    return k->xhat[k->asked];
}

static wide fam_abs_of(void *context)
{
    return fabsl((wide) * (const double *)context);
}

static wide fam_sign(wide a)
{
    return a > 0 ? 1 : a < 0 ? -1 : 0;
}

/* No value is near 0, nor another near the largest. */
static int fam_lp_smooth(const fam_lp *k, double margin)
{
    wide first = 0, second = 0;
    size_t i;
    for (i = 0; i < k->n; i++) {
        const wide a = fabsl(k->u[i]);
        if (a < (wide)margin) return 0;
        second = a > first ? first : a > second ? a : second;
        first = a > first ? a : first;
    }
    return first - second > (wide)margin;
}

/* What LP.8b to LP.8d say of the size p. */
static wide fam_lp_q(const fam_lp *k, size_t i)
{
    size_t a = 0, j;
    for (j = 1; j < k->n; j++)
        if (fabsl(k->u[j]) > fabsl(k->u[a])) a = j;
    if (k->p == NRM_L1) return fam_sign(k->u[i]) / (wide)k->n;
    if (k->p == NRM_L2) return 1 / (2 * k->t) * (2 * k->u[i] / (wide)k->n);
    return i == a ? fam_sign(k->u[a]) : 0;
}

/* Sizes by finite differences: by u, that is by x where x is measured. */
static void fam_lp_sizes(const fam_lp *given, double h)
{
    fam_lp k = *given;
    const wide p = given->power;
    size_t i;
    for (i = 0; i < k.n; i++) {
        double u = (double)given->u[i];
        DERIVE("LP.8a", apart(fam_sign((wide)u), slope(fam_abs_of, &u, &u, h), 1),
               acc_difference());
        if (given->centred) continue;
        if (p > 0) {
            const wide found = slope(fam_lp_t, &k, &k.x[i], h);
            const wide share = powl(fabsl(given->u[i]) / given->t, p - 1);
            DERIVE("LP.8e", apart(fam_sign(given->u[i]) / (wide)k.n * share, found, 1),
                   acc_difference());
        } else {
            const wide residual = apart(fam_lp_q(given, i), slope(fam_lp_t, &k, &k.x[i], h), 1);
            if (k.p == NRM_L1) DERIVE("LP.8b", residual, acc_difference());
            if (k.p == NRM_L2) DERIVE("LP.8c", residual, acc_difference());
            if (k.p == NRM_LINF) DERIVE("LP.8d", residual, acc_difference());
        }
    }
}

static void fam_lp_roads(const fam_lp *given, double h)
{
    fam_lp k = *given;
    const wide M = (wide)k.n, r = given->r, reach = 1 + fam_most(given->xhat, k.n);
    wide q_sum = 0;
    size_t i, j;
    for (i = 0; i < k.n; i++) {
        const wide moved = slope(fam_lp_t, &k, &k.x[i], h);
        wide chain = 0;
        for (j = 0; j < k.n; j++) chain += given->q[j] * ((i == j) - 1 / M);
        DERIVE("LP.10a", apart(-r * r * given->k[i], slope(fam_lp_r, &k, &k.x[i], h), r * r),
               acc_difference());
        if (k.centred) DERIVE("LP.9b", apart(chain, moved, 1), acc_difference());
        for (k.asked = 0; k.asked < k.n; k.asked++) {
            const wide to_u = slope(fam_lp_u, &k, &k.x[i], h);
            const wide to_xhat = slope(fam_lp_xhat, &k, &k.x[i], h);
            if (k.centred)
                DERIVE("LP.9a", apart((i == k.asked) - 1 / M, to_u, 1), acc_difference());
            DERIVE("LP.10b",
                   apart(r * ((i == k.asked) - 1 / M) - given->c[k.asked] * r * r * given->k[i],
                         to_xhat, r * reach * reach),
                   acc_difference());
        }
        q_sum += given->q[i];
    }
    if (k.centred && k.p == NRM_L2)
        DERIVE("LP.9c",
               worse(apart(q_sum / M, 0, 1), apart(mean_of(given->c, k.n) / (M * k.t), 0, 1)),
               algebra());
}

/* Of the header's dx. */
static void fam_lp_sums(const fam_lp *k, const wide *xhat_code)
{
    const wide M = (wide)k->n, dyx = dot_of(k->dy, k->xhat, k->n), dy = sum_of(k->dy, k->n);
    const wide reach = 1 + fam_most(k->xhat, k->n);
    wide size = fabsl(k->gamma) * k->r * fam_most(k->dy, k->n) * M * reach, x[FAM_MOST],
         s[FAM_MOST];
    const wide scale = 2.5L;
    size_t i;
    for (i = 0; i < k->n; i++) {
        wide picked = 0;
        size_t j;
        for (j = 0; j < k->n; j++) picked += k->dy[j] * (i == j);
        x[i] = (wide)k->x[i];
        s[i] = scale * k->u[i];
        DERIVE("LP.11a", apart(k->dx[i], k->gamma * k->r * (picked - dy / M - k->k[i] * dyx), size),
               identity());
        if (k->centred && k->p == NRM_L2)
            DERIVE("LP.11b", apart(k->k[i], k->xhat[i] / M * (k->t + k->eps) / k->t, 1), algebra());
    }
    DERIVE("LP.13a", relative(fam_size(s, k->n, k->p), scale * k->t), algebra());
    size *= M * (fam_most(x, k->n) + 1);
    DERIVE("LP.14a",
           apart(dot_of(k->dx, x, k->n),
                 k->gamma * k->r * (dot_of(k->dy, x, k->n) - M * (dy / M) * k->mu - k->t * dyx),
                 size),
           identity());
    size = M * fam_most(k->dy, k->n) * (fam_most(x, k->n) + fabsl(k->mu));
    DERIVE("LP.14b",
           apart(dot_of(k->dy, x, k->n) - M * mean_of(k->dy, k->n) * k->mu,
                 dot_of(k->dy, k->c, k->n), size),
           algebra());
    DERIVE("LP.14c",
           apart(dot_of(k->dy, k->c, k->n), (k->t + k->eps) * dot_of(k->dy, xhat_code, k->n),
                 4 * size),
           identity());
    DERIVE("LP.15a",
           apart(sum_of(k->dx, k->n),
                 k->gamma * k->r * (dy - M * mean_of(k->dy, k->n)) -
                     k->gamma * k->r * sum_of(k->k, k->n) * dyx,
                 M * M * fabsl(k->gamma) * k->r * fam_most(k->dy, k->n) * reach),
           identity());
    if (k->centred) {
        DERIVE("LP.15b", apart(sum_of(k->k, k->n), 0, 1), algebra());
        ALSO(apart(sum_of(k->q, k->n) - M * mean_of(k->q, k->n), 0, 1), algebra());
    }
}

static void fam_lp_case(int p, int centred, size_t n, double scale, nrm_rng *rng)
{
    const double margin = scale / 64, h = binary(scale / 2048);
    nrm_real x[FAM_MOST] = {0}, dy[FAM_MOST] = {0}, y[FAM_MOST] = {0}, dx[FAM_MOST] = {0}, gamma,
             beta, eps;
    nrm_acc mean, t;
    wide xhat[FAM_MOST] = {0}, q_mean, l1[FAM_MOST] = {0}, size;
    const int kind = p + (centred ? NRM_CENTRED : 0);
    fam_lp k, power;
    size_t i;
    int tries = 0;
    memset(&k, 0, sizeof k);
    k.p = p;
    k.centred = centred;
    k.n = n;
    eps = (nrm_real)(scale / 8);
    k.eps = (wide)eps;
    do {
        fill_real(x, n, 0.7 * scale, scale, rng);
        for (i = 0; i < n; i++) k.x[i] = (double)x[i];
        fam_lp_evaluate(&k);
    } while (!fam_lp_smooth(&k, margin) && tries++ < 100);
    if (!fam_lp_smooth(&k, p == NRM_L2 || (p == NRM_LINF && n == 2 && centred) ? -1 : margin))
        return; /* two deviations are always of one size */
    fill_real(dy, n, 0.3, 1, rng);
    fill_real(&gamma, 1, 1.5, 0.5, rng);
    fill_real(&beta, 1, -0.4, 1, rng);
    k.gamma = (wide)gamma;
    if (nrm_lp_batchnorm_forward(y, &mean, &t, NULL, x, &gamma, &beta, kind, NRM_TRAIN, eps, n, 1,
                                 1) != NRM_OK ||
        nrm_lp_batchnorm_backward(dx, NULL, NULL, dy, x, &mean, &t, &gamma, kind, NRM_TRAIN, eps, n,
                                  1, 1) != NRM_OK)
        y[0] = dx[0] = (nrm_real)HUGE_VAL;
    fam_widen(k.dy, dy, n);
    fam_widen(k.dx, dx, n);
    for (i = 0; i < n; i++) {
        k.q[i] = fam_lp_q(&k, i);
        xhat[i] = ((wide)y[i] - (wide)beta) / k.gamma;
        l1[i] = fabsl(k.c[i]) - fam_size(k.c, n, NRM_L1);
    }
    q_mean = mean_of(k.q, n);
    for (i = 0; i < n; i++) k.k[i] = k.q[i] - (centred ? q_mean : 0);
    fam_lp_sums(&k, xhat);
    size = fam_size(k.c, n, NRM_L2);
    DERIVE("LP.5a",
           apart(dot_of(k.c, k.c, n) / (wide)n + 2 * k.mu * mean_of(k.c, n) + k.mu * k.mu,
                 powl(fam_power_size(k.c, n, 2), 2) + k.mu * k.mu, size * size + k.mu * k.mu),
           algebra());
    for (i = 0; i < n; i++) xhat[i] = (wide)k.x[i] * (wide)k.x[i];
    ALSO(apart(mean_of(xhat, n),
               dot_of(k.c, k.c, n) / (wide)n + 2 * k.mu * mean_of(k.c, n) + k.mu * k.mu,
               mean_of(xhat, n)),
         algebra());
    DERIVE("LP.5b", unless(centred || fabsl(k.mu) <= fam_size(k.u, n, NRM_L1) * (1 + 1e-18L)),
           algebra());
    DERIVE("LP.16a",
           apart(size * size - powl(fam_size(k.c, n, NRM_L1), 2), dot_of(l1, l1, n) / (wide)n,
                 size * size),
           algebra());
    if (n > 8 || !fam_lp_smooth(&k, margin)) return;
    fam_lp_sizes(&k, h);
    fam_lp_roads(&k, h);
    power = k;
    for (i = 1; i < 5; i++) {
        power.power = (wide)i;
        power.centred = 0;
        fam_lp_evaluate(&power);
        if (fam_lp_smooth(&power, margin)) fam_lp_sizes(&power, binary(scale / 8192));
    }
}

/* Kinks, numbers, and the integral. */
static void fam_lp_numbers(void)
{
    static const nrm_real x[4] = {1, 2, 3, 6}, tie[4] = {1, 2, -3, 3}, dy[4] = {1, -2, 1, 3};
    static const double size[2][3] = {{3, 3.5355, 6}, {1.5, 1.8708, 3}};
    const wide top = 12, step = top / 60000;
    nrm_real y[4], dx[4];
    nrm_acc mean, t;
    wide sum = 0, most, q;
    int p, centred, i;
    for (p = 0; p < 3; p++)
        for (centred = 0; centred < 2; centred++) {
            if (nrm_lp_batchnorm_forward(y, &mean, &t, NULL, x, NULL, NULL,
                                         NRM_L1 + p + (centred ? NRM_CENTRED : 0), NRM_TRAIN,
                                         NRM_EPS, 4, 1, 1) != NRM_OK)
                t = -1;
            ALSO_OF("LP.5a", fam_prints((wide)t, size[centred][p], 4), algebra());
        }
    for (i = 1; i < 40; i++) {
        const wide h = ldexpl(1, -i), a = 3;
        DERIVE("LP.8f", apart((fabsl(0 + h) - fabsl(0 - h)) / (2 * h), 0, 1), algebra());
        most = fabsl(a + h) > fabsl(a) ? fabsl(a + h) : fabsl(a);
        most -= fabsl(a - h) > fabsl(a) ? fabsl(a - h) : fabsl(a);
        DERIVE("LP.8g", apart(most / (2 * h), 0.5L, 1), algebra());
    }
    /* the header at a tie: all of it goes to the first, whose sign it has */
    if (nrm_lp_batchnorm_forward(y, &mean, &t, NULL, tie, NULL, NULL, NRM_LINF, NRM_TRAIN, NRM_EPS,
                                 4, 1, 1) != NRM_OK ||
        nrm_lp_batchnorm_backward(dx, NULL, NULL, dy, tie, &mean, &t, NULL, NRM_LINF, NRM_TRAIN,
                                  NRM_EPS, 4, 1, 1) != NRM_OK)
        dx[0] = (nrm_real)HUGE_VAL;
    for (i = 0; i < 4; i++) sum += (wide)dy[i] * (wide)y[i];
    q = ((wide)dy[2] - 0.75L - (wide)dx[2] * (3 + (wide)NRM_EPS)) / sum;
    ALSO_OF("LP.8g", unless(apart(q, -1, 1) < 1e-5L), algebra());
    q = ((wide)dy[3] - 0.75L - (wide)dx[3] * (3 + (wide)NRM_EPS)) / sum;
    ALSO_OF("LP.8g", unless(apart(q, 0, 1) < 1e-5L), algebra());
    sum = 0; /* Simpson's rule from 0 to 12, twice */
    for (i = 0; i <= 60000; i++) {
        const wide a = step * (wide)i, weight = i == 0 || i == 60000 ? 1 : i % 2 ? 4 : 2;
        sum += weight * a * expl(-a * a / 2);
    }
    sum *= 2 * step / 3 / sqrtl(2 * acosl(-1));
    DERIVE("LP.16b", apart(sum, sqrtl(2 / acosl(-1)), 1), algebra());
    ALSO(worse(fam_prints(sum, 0.7979, 4), fam_prints(1 / sum, 1.2533, 4)), algebra());
}

static void steps_lp(nrm_rng *rng)
{
    size_t i, j;
    int p, centred;
    for (p = NRM_L1; p <= NRM_LINF; p++)
        for (centred = 0; centred < 2; centred++)
            for (i = 0; i < LENGTH(fam_sizes); i++)
                for (j = 0; j < LENGTH(fam_scales); j++)
                    fam_lp_case(p, centred, fam_sizes[i], fam_scales[j], rng);
    fam_lp_numbers();
}

/* ---- weight norm ----------------------------------------------------------------------------- */

typedef struct fam_wn { /* one column */
    size_t in, asked;
    double v[FAM_MOST], g_at;
    nrm_real vs[FAM_MOST], dW[FAM_MOST], W[FAM_MOST], dv[FAM_MOST], g, dg;
    nrm_acc norm;
} fam_wn;

static void fam_wn_run(fam_wn *k)
{
    memset(k->dv, 0, sizeof k->dv);
    k->dg = 0;
    if (nrm_weightnorm_forward(k->W, &k->norm, k->vs, &k->g, k->in, 1) != NRM_OK ||
        nrm_weightnorm_backward(k->dv, &k->dg, k->dW, k->vs, &k->norm, &k->g, k->in, 1) != NRM_OK)
        k->dv[0] = (nrm_real)HUGE_VAL;
}

static wide fam_wn_square(void *context)
{
    const fam_wn *k = (const fam_wn *)context;
    wide sum = 0;
    size_t i;
    for (i = 0; i < k->in; i++) sum += (wide)k->v[i] * (wide)k->v[i];
    return sum;
}

static wide fam_wn_length(void *context)
{
    return sqrtl(fam_wn_square(context));
}

static wide fam_wn_reciprocal(void *context)
{
    return 1 / fam_wn_length(context);
}

static wide fam_wn_weight(void *context)
{
    const fam_wn *k = (const fam_wn *)context;
    return (wide)k->g_at * (wide)k->v[k->asked] / fam_wn_length(context);
}

static void fam_wn_differences(const fam_wn *given)
{
    fam_wn k = *given;
    const wide n = fam_wn_length(&k), g = (wide)k.g;
    const double h = binary((double)n / 4096);
    size_t i;
    for (i = 0; i < k.in; i++) {
        const wide v = (wide)given->v[i], square = slope(fam_wn_square, &k, &k.v[i], h);
        const wide length = slope(fam_wn_length, &k, &k.v[i], h);
        DERIVE("WN.5a", apart(square, 2 * v, n), acc_difference());
        DERIVE("WN.5b", apart(square, 2 * n * length, n), acc_difference());
        DERIVE("WN.7a",
               apart(slope(fam_wn_reciprocal, &k, &k.v[i], h), -1 / (n * n) * (v / n), 1 / (n * n)),
               acc_difference());
        k.asked = i;
        DERIVE("WN.6a", apart(slope(fam_wn_weight, &k, &k.g_at, 0.125), v / n, 1),
               acc_difference());
        for (k.asked = 0; k.asked < k.in; k.asked++) {
            const wide other = (wide)given->v[k.asked];
            DERIVE("WN.7b",
                   apart(slope(fam_wn_weight, &k, &k.v[i], h),
                         g * ((k.asked == i) / n - other * v / (n * n * n)), fabsl(g) / n),
                   acc_difference());
        }
    }
}

/* |v − η·d|² and its steps, for a d that need not be a gradient. */
static void fam_wn_lengths(const wide *v, const wide *d, size_t n, wide eta)
{
    const wide vv = dot_of(v, v, n), dd = dot_of(d, d, n), vd = dot_of(v, d, n);
    wide after = 0, across[FAM_MOST] = {0}, a, fourth;
    size_t i;
    for (i = 0; i < n; i++) after += (v[i] - eta * d[i]) * (v[i] - eta * d[i]);
    DERIVE("WN.10a", apart(after, vv - 2 * eta * vd + eta * eta * dd, vv + eta * eta * dd),
           algebra());
    for (i = 0; i < n; i++) across[i] = d[i] - v[i] * vd / vv; /* a d at a right angle to v */
    after = 0;
    for (i = 0; i < n; i++) after += (v[i] - eta * across[i]) * (v[i] - eta * across[i]);
    a = sqrtl(vv) * sqrtl(dot_of(across, across, n));
    fourth = vv * vv + 2 * eta * eta * a * a + powl(eta * a, 4) / (vv * vv);
    DERIVE("WN.10c", apart(after * after, fourth, fourth), algebra());
}

static void fam_wn_case(size_t in, double scale, nrm_rng *rng)
{
    nrm_real gamma[FAM_MOST] = {0}, y[FAM_MOST] = {0};
    nrm_acc rstd;
    wide v[FAM_MOST] = {0}, dW[FAM_MOST] = {0}, dv[FAM_MOST] = {0}, n, g, dg, size, along, t = 0,
         sum = 0;
    fam_wn k, scaled;
    size_t i;
    memset(&k, 0, sizeof k);
    k.in = in;
    fill_real(k.vs, in, 0.3 * scale, scale, rng);
    fill_real(k.dW, in, 0.2, 1, rng);
    fill_real(&k.g, 1, 1.5, 0.5, rng);
    k.g_at = (double)k.g;
    for (i = 0; i < in; i++) k.v[i] = (double)k.vs[i];
    fam_wn_run(&k);
    fam_widen(v, k.vs, in);
    fam_widen(dW, k.dW, in);
    fam_widen(dv, k.dv, in);
    n = sqrtl(dot_of(v, v, in));
    g = (wide)k.g;
    along = dot_of(dW, v, in);
    dg = along / n;
    size = fabsl(g) / n * fam_most(dW, in) * (wide)in;
    t = fam_most(v, in);
    for (i = 0; i < in; i++) sum += v[i] * (v[i] / t);
    DERIVE("WN.3a", relative(t * sum, dot_of(v, v, in)), algebra());
    DERIVE("WN.8b", apart(along, n * (wide)k.dg, n * fam_most(dW, in) * (wide)in), identity());
    for (i = 0; i < in; i++)
        DERIVE("WN.8a", apart(dv[i], g / n * (dW[i] - v[i] / (n * n) * along), size), identity());
    DERIVE(
        "WN.9a",
        apart(dot_of(dv, v, in), g / n * (along - dg / n * dot_of(v, v, in)), size * n * (wide)in),
        identity());
    fam_wn_lengths(v, dv, in, n * n / 8);
    fam_wn_lengths(v, dW, in, n / 8);
    scaled = k;
    for (i = 0; i < in; i++) scaled.vs[i] = k.vs[i] * 4;
    fam_wn_run(&scaled);
    for (i = 0; i < in; i++)
        DERIVE("WN.10b", apart((wide)scaled.dv[i], dv[i] / 4, size), identity());
    for (i = 0; i < in; i++) gamma[i] = (nrm_real)(g / sqrtl((wide)in));
    if (nrm_rmsnorm_forward(y, &rstd, k.vs, gamma, (nrm_real)1e-30, 1, in) != NRM_OK)
        y[0] = (nrm_real)HUGE_VAL;
    for (i = 0; i < in; i++) DERIVE("WN.8c", apart((wide)k.W[i], (wide)y[i], fabsl(g)), identity());
    if (in < 16) fam_wn_differences(&k);
}

static void fam_wn_standardize(size_t n, double scale, nrm_rng *rng)
{
    double z[FAM_MOST];
    wide zs[FAM_MOST] = {0}, mu, sigma;
    size_t i;
    fill(z, n, 0.7 * scale, scale, rng);
    for (i = 0; i < n; i++) zs[i] = (wide)z[i];
    mu = mean_of(zs, n);
    sigma = sqrtl(fam_variance(zs, n));
    for (i = 0; i < n; i++)
        DERIVE("WN.4a",
               apart((zs[i] - mu) / sigma, 1 / sigma * zs[i] + -mu / sigma,
                     1 + fabsl(zs[i] / sigma) + fabsl(mu / sigma)),
               algebra());
}

/* v = (3, 4), g = 2, dW = (1, 0): W, two steps of heavy ball, and shifted weights. */
static void fam_wn_numbers(void)
{
    wide step[2], first[2], w[2];
    fam_wn k;
    memset(&k, 0, sizeof k);
    k.in = 2;
    k.vs[0] = 3;
    k.vs[1] = 4;
    k.g = 2;
    k.dW[0] = 1;
    fam_wn_run(&k);
    ALSO_OF("WN.8b", worse(fam_prints((wide)k.W[0], 1.2, 5), fam_prints((wide)k.W[1], 1.6, 5)),
            identity());
    fam_widen(first, k.dv, 2);
    w[0] = 3 - first[0];
    w[1] = 4 - first[1];
    k.vs[0] = (nrm_real)w[0];
    k.vs[1] = (nrm_real)w[1];
    fam_wn_run(&k);
    step[0] = -(0.9L * first[0] + (wide)k.dv[0]);
    step[1] = -(0.9L * first[1] + (wide)k.dv[1]);
    ALSO_OF(
        "WN.10a",
        fam_prints(dot_of(step, w, 2) / sqrtl(dot_of(step, step, 2) * dot_of(w, w, 2)), 0.0296, 4),
        algebra());
    k.vs[0] = 4;
    k.vs[1] = 5;
    fam_wn_run(&k);
    ALSO_OF("WN.8b",
            worse(fam_prints((wide)k.W[0], 1.2494, 4), fam_prints((wide)k.W[1], 1.5617, 4)),
            identity());
}

static void steps_weight_norm(nrm_rng *rng)
{
    size_t i, j;
    for (i = 0; i < LENGTH(fam_sizes); i++)
        for (j = 0; j < LENGTH(fam_scales); j++) {
            fam_wn_case(fam_sizes[i], fam_scales[j], rng);
            fam_wn_standardize(fam_sizes[i], fam_scales[j], rng);
        }
    fam_wn_numbers();
}

/* ---- folding --------------------------------------------------------------------------------- */

/* The way back by itself, and folding again what it gives: the last place of W′. */
static void fam_unfold(const nrm_real *W_out, nrm_real b_out, const nrm_running *running,
                       nrm_real gamma, nrm_real beta, nrm_real eps, size_t in)
{
    const wide unit = in_float() ? (wide)FLT_EPSILON : (wide)DBL_EPSILON;
    const wide a = (wide)gamma / sqrtl((wide)running->var[0] + (wide)eps);
    const wide solved = ((wide)b_out - (wide)beta) / a, m = (wide)running->mean[0];
    nrm_real W[FAM_MOST], again[FAM_MOST], b, b_again;
    size_t k;
    batchnorm_unfold(W, &b, W_out, &b_out, running, &gamma, &beta, eps, in, 1, 1);
    if (nrm_batchnorm_fold(again, &b_again, W, &b, running, &gamma, &beta, eps, in, 1, 1) != NRM_OK)
        b = (nrm_real)NAN;
    for (k = 0; k < in; k++) {
        DERIVE("FOLD.5", relative((wide)W[k], (wide)W_out[k] / a), identity());
        ALSO(unless(fabsl((wide)again[k] - (wide)W_out[k]) <=
                    (acc_no_wider() ? 4 : 1) * unit * fabsl((wide)W_out[k])),
             algebra());
    }
    DERIVE("FOLD.6", apart((wide)b, solved + m, fabsl(solved) + fabsl(m) + fabsl((wide)beta / a)),
           identity());
}

static void fam_fold_case(size_t in, double scale, nrm_rng *rng)
{
    const wide eta = (in_float() ? (wide)FLT_EPSILON : (wide)DBL_EPSILON) / 2 * (1 + 1e-6L);
    nrm_real W[FAM_MOST] = {0}, W_out[FAM_MOST] = {0}, x[FAM_MOST] = {0}, b, b_out, m, u, gamma,
             beta, z, y, eps;
    wide a, shift, sum = 0, scaled = 0, size, rounded = 0, errors = 0, e, e0;
    nrm_running running;
    size_t k;
    int rc;
    memset(&running, 0, sizeof running);
    running.mean = &m;
    running.var = &u;
    fill_real(W, in, 0.3, 1, rng);
    fill_real(x, in, 0.7, 1, rng);
    fill_real(&b, 1, 0.5, 1, rng);
    fill_real(&m, 1, 0.7 * scale, scale, rng);
    fill_real(&gamma, 1, 1.5, 0.5, rng);
    fill_real(&beta, 1, -0.4, 1, rng);
    u = (nrm_real)(scale * scale * uniform_between(rng, 0.5, 2));
    eps = (nrm_real)(scale * scale / 16);
    rc = nrm_batchnorm_fold(W_out, &b_out, W, &b, &running, &gamma, &beta, eps, in, 1, 1);
    rc |= nrm_linear_forward(&z, x, W, &b, 1, in, 1);
    rc |=
        nrm_batchnorm_forward(&y, NULL, NULL, &running, &z, &gamma, &beta, NRM_INFER, eps, 1, 1, 1);
    if (rc != NRM_OK) y = (nrm_real)HUGE_VAL;
    a = (wide)gamma / sqrtl((wide)u + (wide)eps);
    size = fabsl(a * ((wide)b - (wide)m)) + fabsl((wide)beta) + fabsl(a * (wide)m);
    for (k = 0; k < in; k++) {
        sum += (wide)x[k] * (wide)W[k];
        scaled += (wide)x[k] * (a * (wide)W[k]);
        size += fabsl((wide)x[k] * a * (wide)W[k]) * (wide)in;
    }
    DERIVE("FOLD.1a", apart((wide)y, a * ((wide)z - (wide)m) + (wide)beta, size), identity());
    DERIVE("FOLD.1b", apart((wide)y, a * (sum + (wide)b - (wide)m) + (wide)beta, size), identity());
    DERIVE("FOLD.1c",
           apart(scaled + a * ((wide)b - (wide)m) + (wide)beta,
                 a * (sum + (wide)b - (wide)m) + (wide)beta, size),
           algebra());
    for (k = 0; k < in; k++) {
        const wide exact = a * (wide)W[k];
        DERIVE("FOLD.4a",
               unless(fabsl((wide)W_out[k] - exact) <=
                      (acc_no_wider() ? 3.5L : 1) * eta * fabsl(exact)),
               identity());
    }
    shift = a * ((wide)b - (wide)m) + (wide)beta;
    if (acc_no_wider())
        ALSO_OF("FOLD.4a",
                unless(fabsl((wide)b_out - shift) <=
                       eta * (5.5L * fabsl(a * ((wide)b - (wide)m)) + fabsl((wide)beta))),
                identity());
    else
        ALSO_OF("FOLD.4a", unless(fabsl((wide)b_out - shift) <= eta * fabsl(shift)), identity());
    DERIVE("FOLD.6a",
           apart((wide)b_out - (wide)beta, a * ((wide)b - (wide)m),
                 fabsl(shift) + 2 * fabsl((wide)beta)),
           identity());
    fam_unfold(W_out, b_out, &running, gamma, beta, eps, in);
    e0 = (wide)uniform_between(rng, -1e-3, 1e-3);
    for (k = 0; k < in; k++) {
        const wide exact = a * (wide)W[k];
        e = (wide)uniform_between(rng, -1e-3, 1e-3);
        rounded += (wide)x[k] * (exact * (1 + e));
        errors += (wide)x[k] * exact * e;
    }
    DERIVE("FOLD.4b",
           apart(rounded + shift * (1 + e0) - (scaled + shift), errors + shift * e0, 1e-3L * size),
           algebra());
}

static void fam_fold_numbers(void)
{
    const nrm_real W[2] = {2, -1}, b = (nrm_real)0.5, gamma = 3, beta = (nrm_real)0.25;
    nrm_real W_out[2], b_out, m = 1, u = 4;
    nrm_running running;
    int i;
    memset(&running, 0, sizeof running);
    running.mean = &m;
    running.var = &u;
    if (nrm_batchnorm_fold(W_out, &b_out, W, &b, &running, &gamma, &beta, (nrm_real)1e-12, 2, 1,
                           1) != NRM_OK)
        W_out[0] = (nrm_real)HUGE_VAL;
    ALSO_OF("FOLD.1c", fam_prints((wide)W_out[0], 3, 4), algebra());
    ALSO_OF("FOLD.1c", fam_prints((wide)W_out[1], -1.5, 4), algebra());
    ALSO_OF("FOLD.1c", fam_prints((wide)b_out, -0.5, 4), algebra());
    ALSO_OF("FOLD.1c", fam_prints((wide)(W_out[0] + W_out[1] + b_out), 1, 4), algebra());
    ALSO_OF("FOLD.1c", fam_prints((wide)(W_out[0] + W_out[1]) + 0.5L - 1.5L + 0.25L, 0.75, 4),
            algebra());
    for (i = -1; i < 2; i += 2) {
        const wide e = (wide)i * ldexpl(1, -14);
        DERIVE("FOLD.4c", apart(sqrtl(1 + e), 1 + e / 2 - e * e / 8, 1), algebra());
    }
}

static void steps_folding(nrm_rng *rng)
{
    size_t i, j, turn;
    for (i = 0; i < LENGTH(fam_sizes); i++)
        for (j = 0; j < LENGTH(fam_scales); j++)
            for (turn = 0; turn < 8; turn++) fam_fold_case(fam_sizes[i], fam_scales[j], rng);
    fam_fold_numbers();
}

static void steps_family(void)
{
    nrm_rng rng = stream(205);
    steps_group_norm(&rng);
    steps_rms_norm(&rng);
    steps_workers(&rng);
    steps_batch_renorm(&rng);
    steps_lp(&rng);
    steps_weight_norm(&rng);
    steps_folding(&rng);
}
#endif
