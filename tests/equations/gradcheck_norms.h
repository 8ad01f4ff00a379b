/* gradcheck_norms.h - the gradient checks of test_gradcheck.c for group, instance and RMS norm,
   layer norm with s + eps, batch renorm, and batch norm in portions or behind a mask.

   The checker evaluates the loss at other x, gamma and beta. Where a backward pass takes something
   as a constant, so does the loss: the ratio and offset of batch renorm are those of the first
   forward pass, put into gamma and beta of plain batch norm. */
#ifndef GRADCHECK_NORMS_H
#define GRADCHECK_NORMS_H

#include "layers/variants.h"

enum variety {
    GROUPS,
    INSTANCES,
    RMS,
    WITH_STD,
    RENORM,
    RENORM_LIMITED,
    PORTIONS_1,
    PORTIONS_2,
    PORTIONS_3,
    MASKED,
    MASKED_3, /* in three portions */
    VARIETIES
};
enum { MOST_CHANNELS = 8, MOST_PORTIONS = 3, MOST_POSITIONS = 160 };

typedef struct variant {
    int variety;
    size_t N, C, S, G, n;
    size_t together; /* how many values share one statistic, or the fewest of some that do */
    nrm_real eps;
    nrm_real x[MOST], w[MOST], gamma[MOST_CHANNELS], beta[MOST_CHANNELS];
    nrm_real y[MOST], dx[MOST], dgamma[MOST_CHANNELS], dbeta[MOST_CHANNELS];
    nrm_acc mean[MOST], rstd[MOST];
    nrm_real run_mean[MOST_CHANNELS], run_var[MOST_CHANNELS];
    nrm_acc ratio[MOST_CHANNELS], offset[MOST_CHANNELS];
    size_t portions, from[MOST_PORTIONS + 1];
    unsigned char mask[MOST_POSITIONS];
    nrm_stats stats[MOST_CHANNELS];
} variant;

static int is_masked(const variant *v)
{
    return v->variety == MASKED || v->variety == MASKED_3;
}

static const unsigned char *mask_from(const variant *v, size_t n)
{
    return is_masked(v) ? v->mask + n * v->S : NULL;
}

/* ---- batch norm in portions ------------------------------------------------------------------ */

static int portions_forward(variant *v)
{
    const size_t each = v->C * v->S;
    int rc = NRM_OK;
    size_t i;
    memset(v->stats, 0, sizeof v->stats);
    for (i = 0; i < v->portions && rc == NRM_OK; i++) {
        nrm_stats part[MOST_CHANNELS];
        memset(part, 0, sizeof part);
        rc = nrm_stats_update(part, v->x + v->from[i] * each, mask_from(v, v->from[i]),
                              v->from[i + 1] - v->from[i], v->C, v->S);
        if (rc == NRM_OK) rc = nrm_stats_merge(v->stats, part, v->C);
    }
    for (i = 0; i < v->portions && rc == NRM_OK; i++) {
        const size_t at = v->from[i] * each;
        rc = nrm_sync_batchnorm_forward(v->y + at, v->mean, v->rstd, NULL, v->x + at,
                                        mask_from(v, v->from[i]), v->stats, v->gamma, v->beta,
                                        v->eps, v->from[i + 1] - v->from[i], v->C, v->S);
    }
    return rc;
}

static int portions_backward(variant *v)
{
    const size_t each = v->C * v->S;
    nrm_sums part[MOST_CHANNELS], sums[MOST_CHANNELS];
    int rc = NRM_OK;
    size_t i, c;
    memset(sums, 0, sizeof sums);
    for (i = 0; i < v->portions && rc == NRM_OK; i++) {
        const size_t at = v->from[i] * each;
        rc = nrm_sync_batchnorm_sums(part, v->dgamma, v->dbeta, v->w + at, v->x + at,
                                     mask_from(v, v->from[i]), v->mean, v->rstd,
                                     v->from[i + 1] - v->from[i], v->C, v->S);
        for (c = 0; c < v->C; c++) {
            sums[c].dy += part[c].dy;
            sums[c].dy_xhat += part[c].dy_xhat;
        }
    }
    for (i = 0; i < v->portions && rc == NRM_OK; i++) {
        const size_t at = v->from[i] * each;
        rc = nrm_sync_batchnorm_backward(v->dx + at, v->w + at, v->x + at, mask_from(v, v->from[i]),
                                         v->mean, v->rstd, v->gamma, v->stats, sums,
                                         v->from[i + 1] - v->from[i], v->C, v->S);
    }
    return rc;
}

/* ---- batch renorm ---------------------------------------------------------------------------- */

/* The layer itself: once, for what the loss then holds fixed. */
static int renorm_first(variant *v)
{
    const int limited = v->variety == RENORM_LIMITED;
    nrm_real m[MOST_CHANNELS], u[MOST_CHANNELS];
    nrm_running running;
    memset(&running, 0, sizeof running);
    memcpy(m, v->run_mean, sizeof m);
    memcpy(u, v->run_var, sizeof u);
    running.mean = m;
    running.var = u;
    running.new_weight = (nrm_real)0.1;
    return nrm_batchrenorm_forward(v->y, v->ratio, v->offset, v->mean, v->rstd, &running, v->x,
                                   v->gamma, v->beta, limited ? (nrm_real)1.1 : (nrm_real)1e6,
                                   limited ? (nrm_real)0.2 : (nrm_real)1e6, NRM_TRAIN, v->eps, v->N,
                                   v->C, v->S);
}

/* Batch norm with gamma*ratio and beta + gamma*offset. */
static int renorm_as_batchnorm(variant *v)
{
    nrm_real gamma[MOST_CHANNELS], beta[MOST_CHANNELS];
    size_t c;
    for (c = 0; c < v->C; c++) {
        gamma[c] = (nrm_real)((nrm_acc)v->gamma[c] * v->ratio[c]);
        beta[c] = (nrm_real)((nrm_acc)v->beta[c] + (nrm_acc)v->gamma[c] * v->offset[c]);
    }
    return nrm_batchnorm_forward(v->y, v->mean, v->rstd, NULL, v->x, gamma, beta, NRM_TRAIN, v->eps,
                                 v->N, v->C, v->S);
}

/* ---- both passes ----------------------------------------------------------------------------- */

static int variant_forward(variant *v)
{
    switch (v->variety) {
    case GROUPS:
    case INSTANCES:
        return nrm_groupnorm_forward(v->y, v->mean, v->rstd, v->x, v->gamma, v->beta, v->eps, v->N,
                                     v->C, v->S, v->G);
    case RMS:
        return nrm_rmsnorm_forward(v->y, v->rstd, v->x, v->gamma, v->eps, v->N, v->C);
    case WITH_STD:
        layernorm_std_forward(v->y, v->mean, v->rstd, v->x, v->gamma, v->beta, v->eps, v->N, v->C);
        return NRM_OK;
    case RENORM:
    case RENORM_LIMITED:
        return renorm_as_batchnorm(v);
    default:
        return portions_forward(v);
    }
}

static int variant_backward(variant *v)
{
    memset(v->dgamma, 0, sizeof v->dgamma);
    memset(v->dbeta, 0, sizeof v->dbeta);
    switch (v->variety) {
    case GROUPS:
    case INSTANCES:
        return nrm_groupnorm_backward(v->dx, v->dgamma, v->dbeta, v->w, v->x, v->mean, v->rstd,
                                      v->gamma, v->N, v->C, v->S, v->G);
    case RMS:
        return nrm_rmsnorm_backward(v->dx, v->dgamma, v->w, v->x, v->rstd, v->gamma, v->N, v->C);
    case WITH_STD:
        layernorm_std_backward(v->dx, v->dgamma, v->dbeta, v->w, v->x, v->gamma, v->eps, v->N,
                               v->C);
        return NRM_OK;
    case RENORM:
    case RENORM_LIMITED:
        return nrm_batchrenorm_backward(v->dx, v->dgamma, v->dbeta, v->w, v->x, v->ratio, v->offset,
                                        v->mean, v->rstd, v->gamma, NRM_TRAIN, v->N, v->C, v->S);
    default:
        return portions_backward(v);
    }
}

static nrm_acc variant_loss(void *context)
{
    variant *v = (variant *)context;
    long double sum = 0;
    size_t i;
    CHECK_INT(variant_forward(v), NRM_OK);
    for (i = 0; i < v->n; i++) sum += (long double)v->w[i] * (long double)v->y[i];
    return (nrm_acc)sum;
}

/* ---- cases ----------------------------------------------------------------------------------- */

/* At least three positions count, if there are as many; all, if there are two. */
static void draw_mask(variant *v, nrm_rng *rng)
{
    const size_t positions = v->N * v->S;
    size_t kept = 0, i;
    for (i = 0; i < positions; i++) kept += v->mask[i] = nrm_rng_below(rng, 3) > 0;
    for (i = 0; i < positions && kept < 3; i++) {
        kept += !v->mask[i];
        v->mask[i] = 1;
    }
    if (is_masked(v)) v->together = kept;
}

static void variant_prepare(variant *v, int variety, size_t N, size_t C, size_t S, size_t G,
                            double scale, double eps, nrm_rng *rng)
{
    const int rows = variety == RMS || variety == WITH_STD;
    size_t i;
    memset(v, 0, sizeof *v);
    v->variety = variety;
    v->N = N;
    v->C = C;
    v->S = rows ? 1 : S;
    v->G = G;
    v->n = N * C * v->S;
    v->together = variety <= INSTANCES ? C / G * S : rows ? C : N * S;
    v->eps = (nrm_real)eps;
    v->portions = variety == PORTIONS_2 ? 2 : variety == PORTIONS_3 || variety == MASKED_3 ? 3 : 1;
    for (i = 1; i < v->portions; i++) /* anywhere, so that some are empty */
        v->from[i] = v->from[i - 1] + nrm_rng_below(rng, (uint32_t)(N - v->from[i - 1] + 1));
    v->from[v->portions] = N;
    fill(v->x, v->n, scale / 3, scale, rng);
    fill(v->gamma, C, 1.5, 0.5, rng);
    fill(v->beta, C, 0.5, 1, rng);
    for (i = 0; i < C; i++) /* near zero it would be a measure for tiny steps only */
        if (fabs((double)v->beta[i]) < 0.25) v->beta[i] += (nrm_real)0.5;
    fill(v->w, v->n, 0, 1, rng);
    fill(v->run_mean, C, 0, scale, rng);
    for (i = 0; i < C; i++)
        v->run_var[i] = (nrm_real)(scale * scale * (0.5 + (double)nrm_rng_uniform(rng)));
    draw_mask(v, rng);
    if (variety == RENORM || variety == RENORM_LIMITED) {
        static nrm_real y[MOST];
        double worst = 0;
        CHECK_INT(renorm_first(v), NRM_OK);
        memcpy(y, v->y, sizeof y);
        CHECK_INT(variant_forward(v), NRM_OK); /* the same function, so the check means something */
        for (i = 0; i < v->n; i++) worst = fmax(worst, fabs((double)v->y[i] - (double)y[i]));
        CHECK(worst <= (in_float ? 1e-4 : 1e-12));
    }
}

static void check_variant(tally *t, variant *v, const char *name, const nrm_gradcheck_options *o,
                          int may_be_unsettled, double scale)
{
    nrm_gradcheck_group group[3];
    nrm_gradcheck_report report[3];
    const size_t groups = v->variety == RMS ? 2 : 3;
    size_t g, i, c, s;
    int rc;
    (void)variant_loss(v);
    CHECK_INT(variant_backward(v), NRM_OK);
    for (i = 0; is_masked(v) && i < v->N; i++)
        for (c = 0; c < v->C; c++)
            for (s = 0; s < v->S; s++) {
                const size_t at = (i * v->C + c) * v->S + s;
                CHECK(v->mask[i * v->S + s] || (v->y[at] == 0 && v->dx[at] == 0));
            }
    group[0] = group_of("x", v->x, v->dx, v->n);
    group[1] = group_of("gamma", v->gamma, v->dgamma, v->C);
    group[2] = group_of("beta", v->beta, v->dbeta, v->C);
    rc = nrm_gradcheck(report, group, groups, variant_loss, v, o);
    t->cases++;
    for (g = 0; g < groups; g++) {
        t->checked += report[g].checked;
        t->vanishing += report[g].vanishing;
        t->unsettled += report[g].unsettled;
        t->kinks += report[g].kinks;
        t->worst = fmax(t->worst, (double)report[g].error);
        if (report[g].wrong > 0 || (report[g].status != NRM_OK && !may_be_unsettled))
            printf(
                "  %s of %s, N=%u C=%u S=%u G=%u scale %g: %s; at %u: %g, differences %g +- %g\n",
                group[g].name, name, (unsigned)v->N, (unsigned)v->C, (unsigned)v->S, (unsigned)v->G,
                scale, nrm_strerror(report[g].status), (unsigned)report[g].worst,
                (double)report[g].analytic, (double)report[g].numeric,
                (double)report[g].uncertainty);
    }
    CHECK(rc == NRM_OK || (rc == NRM_EUNSETTLED && may_be_unsettled));
}

/* As nothing_left in test_gradcheck.c: where as many directions are taken out as there are, eps
   decides what remains; with s + eps it remains in proportion to eps, not to its square. */
static int little_left(const variant *v, double scale)
{
    const double eps = (double)v->eps;
    if (v->variety == RMS) return v->together == 1 && scale * scale > 1e3 * eps;
    if (v->variety == WITH_STD) return v->together == 2 && scale > 1e2 * eps;
    return v->together == 2 && scale * scale > 1e3 * eps;
}

/* All shapes and scales of one N, C, G. */
static void check_shapes(tally *t, variant *v, int variety, const char *name, size_t N, size_t C,
                         size_t G, nrm_gradcheck_options *o, nrm_rng *rng)
{
    static const double scales[7] = {1e-3, 1e-2, 1e-1, 1, 10, 100, 1000};
    static const size_t Ss[3] = {1, 2, 5};
    const int rows = variety == RMS || variety == WITH_STD;
    size_t p, k;
    for (p = 0; p < (rows ? 1 : 3); p++)
        for (k = in_float ? 2 : 0; k < (in_float ? 5 : 7); k++) {
            const double scale = scales[k], ample = variety == WITH_STD ? scale : scale * scale;
            if (variety >= RENORM && N * Ss[p] < 2) continue;
            if (variety <= INSTANCES && C / G * Ss[p] < 2) continue; /* refused */
            o->seed++;
            variant_prepare(v, variety, N, C, Ss[p], G, scale, 1e-5, rng);
            check_variant(t, v, name, o, in_float || little_left(v, scale), scale);
            variant_prepare(v, variety, N, C, Ss[p], G, scale, ample / 10, rng);
            check_variant(t, v, name, o, in_float, scale);
        }
}

static void check_variety(int variety, const char *name)
{
    static const size_t Ns[6] = {1, 2, 3, 4, 7, 32}, Cs[4] = {1, 2, 6, 7};
    static variant v;
    nrm_gradcheck_options o;
    nrm_rng rng;
    tally t;
    size_t n, c, G;
    memset(&t, 0, sizeof t);
    memset(&o, 0, sizeof o);
    o.at_most = in_float ? 6 : 12; /* what a float cannot see once it cannot see twice */
    nrm_rng_seed(&rng, 30, (uint64_t)variety);
    for (n = 0; n < 6; n++)
        for (c = 0; c < 4; c++)
            for (G = 1; G <= Cs[c]; G++) {
                const size_t only = variety == INSTANCES ? Cs[c] : 1;
                if (Cs[c] % G != 0 || (variety != GROUPS && G != only)) continue;
                if (variety == WITH_STD && Cs[c] < 2) continue; /* no standard deviation */
                check_shapes(&t, &v, variety, name, Ns[n], Cs[c], G, &o, &rng);
            }
    printf("%-18s worst %.1e of %5u entries in %3u cases (%u zero, %u at kinks, %u unsettled)\n",
           name, t.worst, (unsigned)t.checked, (unsigned)t.cases, (unsigned)t.vanishing,
           (unsigned)t.kinks, (unsigned)t.unsettled);
    CHECK(t.worst <= (in_float ? 1e-2 : 1e-7));
    CHECK(t.checked > 0 && t.unsettled < t.checked / (in_float ? 4 : 20));
    /* all are smooth; but where the terms of a loss cancel its size does not tell their rounding,
       and by chance a straight line looks bent */
    CHECK(t.kinks <= t.checked / (in_float ? 1000 : 10000));
}

static void test_rows_of_all_kinds(void)
{
    check_variety(GROUPS, "group norm");
    check_variety(INSTANCES, "instance norm");
    check_variety(RMS, "RMS norm");
    check_variety(WITH_STD, "layer norm, s + eps");
}

static void test_batches_of_all_kinds(void)
{
    check_variety(RENORM, "batch renorm");
    check_variety(RENORM_LIMITED, "batch renorm, limits");
    check_variety(PORTIONS_1, "one portion");
    check_variety(PORTIONS_2, "two portions");
    check_variety(PORTIONS_3, "three portions");
    check_variety(MASKED, "masked");
    check_variety(MASKED_3, "masked, three");
}

/* The ratio and offset are not constants of the mathematics: with those that move along with x the
   checker must disagree, or holding them fixed would have shown nothing. */
static nrm_acc renorm_moving_loss(void *context)
{
    variant *v = (variant *)context;
    long double sum = 0;
    size_t i;
    CHECK_INT(renorm_first(v), NRM_OK);
    for (i = 0; i < v->n; i++) sum += (long double)v->w[i] * (long double)v->y[i];
    return (nrm_acc)sum;
}

static void test_finds_moving_statistics(void)
{
    static variant v;
    nrm_gradcheck_group group;
    nrm_gradcheck_report report;
    nrm_rng rng;
    nrm_rng_seed(&rng, 31, 1);
    variant_prepare(&v, RENORM, 4, 3, 2, 1, 1, 0.1, &rng);
    (void)variant_loss(&v);
    CHECK_INT(variant_backward(&v), NRM_OK);
    group = group_of("x", v.x, v.dx, v.n);
    CHECK_INT(nrm_gradcheck(&report, &group, 1, renorm_moving_loss, &v, NULL), NRM_EGRADIENT);
}

#endif
