/* layers_norms.h - the part of test_layers.c that is about group, instance and RMS norm, batch
   renorm, and masks. */
#ifndef LAYERS_NORMS_H
#define LAYERS_NORMS_H
#include "lab/draw.h"

/* ---- values ---------------------------------------------------------------------------------- */

/* Small shapes in all combinations, and then every way through the code: more than 64 groups, more
   groups than rows in a band; more than 1024 and more than 4096 sums; rows, runs and channels
   beyond 1024. */
static void test_groupnorm_values(void)
{
    static const size_t small[][2] = {{1, 1}, {2, 1}, {2, 2}, {6, 1},  {6, 2},  {6, 3},  {6, 6},
                                      {7, 7}, {8, 4}, {9, 3}, {16, 2}, {64, 8}, {65, 5}, {130, 13}};
    static const size_t Ns[] = {1, 2, 5}, Ss[] = {1, 2, 5, 8, 9, 17};
    static const size_t large[][4] = {
        {70, 32, 1, 4},   {3, 200, 1, 100}, {3, 200, 2, 200}, {2, 400, 1, 200}, {40, 512, 1, 8},
        {3, 1100, 1, 11}, {9, 3900, 1, 3},  {3, 4096, 1, 64}, {3, 5000, 1, 2},  {3, 8192, 1, 512},
        {2, 6000, 1, 5},  {3, 1100, 2, 11}, {2, 1100, 3, 1},  {2, 2100, 2, 21}, {2, 4, 1500, 2},
        {2, 3, 4000, 3},  {2, 2, 3000, 1},  {3, 96, 17, 96},  {2, 40, 50, 1},   {1, 4200, 2, 1},
        {33, 40, 33, 10}, {1, 1, 5000, 1}};
    norm_case k;
    nrm_rng rng;
    size_t c, n, p;
    nrm_rng_seed(&rng, 31, 1);
    for (c = 0; c < COUNT(small); c++)
        for (n = 0; n < COUNT(Ns); n++)
            for (p = 0; p < COUNT(Ss); p++) {
                if (small[c][0] == small[c][1] && Ss[p] == 1) continue; /* refused */
                k = norm_of(GROUP, Ns[n], small[c][0], Ss[p], small[c][1]);
                k.params = (int)(c + n + p) % 4;
                check_norm(&rng, k);
                k.centre = 100;
                k.sd = 0.5;
                k.params = (int)(c + n + p + 1) % 4;
                check_norm(&rng, k);
            }
    for (c = 0; c < COUNT(large); c++) {
        k = norm_of(GROUP, large[c][0], large[c][1], large[c][2], large[c][3]);
        k.centre = c % 2 ? 1 : -20;
        k.params = 3;
        check_norm(&rng, k);
        k.params = (int)c % 3;
        check_norm(&rng, k);
    }
}

static void test_rmsnorm_values(void)
{
    static const size_t Ds[] = {1, 2, 3, 7, 8, 9, 15, 16, 17, 63, 64, 65, 130, 1023, 1025, 4100};
    static const size_t Ns[] = {1, 2, 5, 33};
    nrm_rng rng;
    size_t d, n;
    nrm_rng_seed(&rng, 32, 1);
    for (d = 0; d < COUNT(Ds); d++)
        for (n = 0; n < (Ds[d] > 200 ? 3 : COUNT(Ns)); n++) {
            norm_case k = norm_of(RMS, Ns[n], Ds[d], 1, 1);
            k.params = (int)(d + n) % 2;
            check_norm(&rng, k);
            k.centre = 3;
            k.params = (int)(d + n + 1) % 2;
            check_norm(&rng, k);
        }
}

/* RMS norm at all scales whose results are floats; with the usual eps and with one that squares of
   small numbers have to be kept beside. */
static void test_rmsnorm_scales(void)
{
    enum { N = 3, MOST_D = 1500 };
    static const size_t Ds[] = {1, 7, 64, MOST_D};
    nrm_rng rng;
    int power, d, e;
    nrm_rng_seed(&rng, 33, 1);
    for (power = -25; power <= 25; power++)
        for (d = 0; d < 4; d++)
            for (e = 0; e < 3; e++) {
                const size_t D = Ds[d], n = N * D;
                const double scale = pow(10, power);
                const nrm_real eps = (nrm_real)(e == 0 ? 1e-5 : e == 1 ? 1e-37 : 1e-44);
                nrm_real *x = random_reals(&rng, n, 0, scale), *dy = random_reals(&rng, n, 0, 1);
                nrm_real *gamma = random_reals(&rng, D, 1, 0.5), *dgamma = reals_of(D, 0);
                nrm_real *y = reals_of(n, not_a_number()), *dx = reals_of(n, not_a_number());
                wide *ye = wides_of(n), *dxe = wides_of(n), *dge = wides_of(D), *dbe = wides_of(D);
                wide steepest = 0;
                nrm_acc rstd[N];
                size_t i;
                if (acc_in_float && (power > 17 || (e > 0 && power < -17))) {
                    release(); /* the sum of squares is no float */
                    continue;
                }
                OK(nrm_rmsnorm_forward(y, rstd, x, gamma, eps, N, D));
                OK(nrm_rmsnorm_backward(dx, dgamma, dy, x, rstd, gamma, N, D));
                for (i = 0; i < N; i++) {
                    const ref_group g = ref_row(i, D);
                    const ref_stats s = ref_mean_square(&g, x);
                    const wide r = 1 / ref_sqrt(s.var + WIDE(eps));
                    CHECK(acc_gap(rstd[i], r, r) <= allowed_rstd(0, 1));
                    ref_forward(ye, &g, x, &s, WIDE(eps), gamma, NULL);
                    ref_backward_rms(dxe, &g, x, dy, &s, WIDE(eps), gamma);
                    ref_backward_parameters(dge, dbe, &g, x, dy, &s, WIDE(eps));
                    if (r > steepest) steepest = r;
                }
                CHECK(gap(y, ye, n) <= 2 * allowed(0, 1));
                CHECK(gap_of_size(dx, dxe, n, steepest) <= 8 * allowed(0, 1));
                CHECK(gap_of_size(dgamma, dge, D, steepest * WIDE(scale)) <= 8 * allowed(0, 1));
                if (test_bad > 0)
                    printf("  D=%u, scale 1e%d, eps %g\n", (unsigned)D, power, (double)eps);
                release();
            }
}

/* ---- one layer by two functions -------------------------------------------------------------- */

/* y, statistics and all three gradients of some layer. */
typedef struct passes {
    nrm_real *y, *dx, *dgamma, *dbeta;
    nrm_acc *mean, *rstd;
} passes;

static passes passes_of(size_t n, size_t C, size_t rows)
{
    passes p;
    p.y = reals_of(n, not_a_number());
    p.dx = reals_of(n, not_a_number());
    p.dgamma = reals_of(C, 0.25);
    p.dbeta = reals_of(C, 0.5);
    p.mean = accs_of(rows);
    p.rstd = accs_of(rows);
    return p;
}

static int same_passes(const passes *a, const passes *b, size_t n, size_t C, size_t rows)
{
    return same_bits(a->y, b->y, n) && same_bits(a->dx, b->dx, n) &&
           same_bits(a->dgamma, b->dgamma, C) && same_bits(a->dbeta, b->dbeta, C) &&
           memcmp(a->mean, b->mean, rows * sizeof *a->mean) == 0 &&
           memcmp(a->rstd, b->rstd, rows * sizeof *a->rstd) == 0;
}

/* Group norm with one group of rows is layer norm, to the bit. */
static void test_groupnorm_is_layernorm(void)
{
    static const size_t shape[][2] = {{5, 7}, {33, 64}, {3, 1500}, {2, 5000}, {70, 300}};
    nrm_rng rng;
    size_t i;
    nrm_rng_seed(&rng, 34, 1);
    for (i = 0; i < COUNT(shape); i++) {
        const size_t N = shape[i][0], D = shape[i][1], n = N * D;
        nrm_real *x = random_reals(&rng, n, 2, 1), *dy = random_reals(&rng, n, 0, 1);
        nrm_real *gamma = random_reals(&rng, D, 1, 0.5), *beta = random_reals(&rng, D, 0, 1);
        passes a = passes_of(n, D, N), b = passes_of(n, D, N);
        OK(nrm_groupnorm_forward(a.y, a.mean, a.rstd, x, gamma, beta, NRM_EPS, N, D, 1, 1));
        OK(nrm_groupnorm_backward(a.dx, a.dgamma, a.dbeta, dy, x, a.mean, a.rstd, gamma, N, D, 1,
                                  1));
        OK(nrm_layernorm_forward(b.y, b.mean, b.rstd, x, gamma, beta, NRM_EPS, N, D));
        OK(nrm_layernorm_backward(b.dx, b.dgamma, b.dbeta, dy, x, b.mean, b.rstd, gamma, N, D));
        CHECK(same_passes(&a, &b, n, D, N));
        release();
    }
}

/* x 2^k times as large, with an eps that does not count: dx is 2^k times as small, along every way
   through the code, also where r^2 is no float. */
static void test_groupnorm_scales(void)
{
    static const size_t shape[][4] = {{4, 6, 1, 2}, {3, 6, 5, 1}, {3, 6, 5, 3},
                                      {3, 6, 5, 6}, {2, 4, 1100, 2}, {2, 1100, 2, 11}};
    const nrm_real eps = (nrm_real)(in_float || acc_in_float ? 1e-37 : 1e-300);
    nrm_rng rng;
    size_t i, j;
    int power;
    nrm_rng_seed(&rng, 36, 1);
    for (i = 0; i < COUNT(shape); i++) {
        const size_t N = shape[i][0], C = shape[i][1], S = shape[i][2], G = shape[i][3];
        const size_t n = N * C * S;
        nrm_real *x = random_reals(&rng, n, 0.5, 1), *dy = random_reals(&rng, n, 0, 1);
        nrm_real *gamma = random_reals(&rng, C, 1, 0.5), *scaled = reals_of(n, 0);
        passes a = passes_of(n, C, N * G), b = passes_of(n, C, N * G);
        wide *expected = wides_of(n);
        OK(nrm_groupnorm_forward(a.y, a.mean, a.rstd, x, gamma, NULL, eps, N, C, S, G));
        OK(nrm_groupnorm_backward(a.dx, NULL, NULL, dy, x, a.mean, a.rstd, gamma, N, C, S, G));
        for (j = 0; j < n; j++) expected[j] = WIDE(a.dx[j]);
        for (power = -50; power <= 110; power += 10) {
            if (acc_in_float && power > 50) continue; /* the sum of squares is no float */
            for (j = 0; j < n; j++) scaled[j] = (nrm_real)ldexp((double)x[j], power);
            OK(nrm_groupnorm_forward(b.y, b.mean, b.rstd, scaled, gamma, NULL, eps, N, C, S, G));
            OK(nrm_groupnorm_backward(b.dx, NULL, NULL, dy, scaled, b.mean, b.rstd, gamma, N, C, S,
                                      G));
            for (j = 0; j < n; j++) b.dx[j] = (nrm_real)ldexp((double)b.dx[j], power);
            CHECK(gap(b.dx, expected, n) <= 8 * allowed(0, 1));
            if (test_bad > 0) printf("  case %u, scale 2^%d\n", (unsigned)i, power);
        }
        release();
    }
}

/* ---- batch renorm ---------------------------------------------------------------------------- */

typedef struct renorm_case {
    size_t N, C, S;
    double r_max, d_max;
    int cumulative, biased;
} renorm_case;

/* Against the reference with gamma·ratio and beta + gamma·offset; running statistics move as batch
   norm moves them, after they have been used. */
static void check_renorm(nrm_rng *rng, const renorm_case *k)
{
    const size_t N = k->N, C = k->C, S = k->S, n = N * C * S;
    nrm_real *x = random_reals(rng, n, 1, 2), *dy = random_reals(rng, n, 0, 1);
    nrm_real *gamma = random_reals(rng, C, 1, 0.5), *beta = random_reals(rng, C, 0, 1);
    nrm_real *m = random_reals(rng, C, 1, 1), *u = reals_of(C, 0);
    nrm_real *m2 = copy_of(m, C), *u2, *plain = reals_of(n, 0);
    nrm_real *folded_gamma = reals_of(C, 0);
    nrm_acc *ratio = accs_of(C), *offset = accs_of(C), *mean2 = accs_of(C), *rstd2 = accs_of(C);
    wide *ye = wides_of(n), *dxe = wides_of(n), *dge = wides_of(C), *dbe = wides_of(C), size = 0;
    const nrm_real eps = (nrm_real)1e-3;
    passes p = passes_of(n, C, C);
    nrm_running running, other;
    size_t c;
    for (c = 0; c < C; c++) u[c] = (nrm_real)(0.5 + 8 * (double)draw_uniform(rng));
    u2 = copy_of(u, C);
    memset(&running, 0, sizeof running);
    running.new_weight = (nrm_real)0.1;
    running.cumulative = k->cumulative;
    running.biased = k->biased;
    running.batches = 3;
    other = running;
    running.mean = m;
    running.var = u;
    other.mean = m2;
    other.var = u2;
    for (c = 0; c < C; c++) {
        const ref_group g = ref_channel(c, N, C, S);
        const ref_stats s = ref_moments(&g, x);
        const wide old = ref_sqrt(WIDE(u[c]) + WIDE(eps)), r_max = WIDE((nrm_real)k->r_max);
        const wide d_max = WIDE((nrm_real)k->d_max);
        wide ratio_e = ref_sqrt(s.var + WIDE(eps)) / old, scratch = 0, sum = 0;
        wide offset_e = (ref_mean(&s) - WIDE(m[c])) / old;
        ratio_e = fmaxl(1 / r_max, fminl(r_max, ratio_e));
        offset_e = fmaxl(-d_max, fminl(d_max, offset_e));
        ref_forward(ye, &g, x, &s, WIDE(eps), NULL, NULL);
        REF_EACH(&g, ye[at] = WIDE(gamma[c]) * (ratio_e * ye[at] + offset_e) + WIDE(beta[c]));
        ref_backward_input(dxe, &g, x, dy, &s, WIDE(eps), NULL, 0);
        REF_EACH(&g, dxe[at] *= WIDE(gamma[c]) * ratio_e);
        dge[c] = 0;
        dbe[c] = 0;
        ref_backward_parameters(dge, dbe, &g, x, dy, &s, WIDE(eps));
        scratch = dge[c];
        sum = dbe[c];
        dge[c] = WIDE(0.25) + ratio_e * scratch + offset_e * sum;
        dbe[c] = WIDE(0.5) + sum;
        size = fmaxl(size, fabsl(ratio_e) + fabsl(offset_e));
    }
    OK(nrm_batchrenorm_forward(p.y, ratio, offset, p.mean, p.rstd, &running, x, gamma, beta,
                               (nrm_real)k->r_max, (nrm_real)k->d_max, NRM_TRAIN, eps, N, C, S));
    OK(nrm_batchrenorm_backward(p.dx, p.dgamma, p.dbeta, dy, x, ratio, offset, p.mean, p.rstd,
                                gamma, NRM_TRAIN, N, C, S));
    OK(nrm_batchnorm_forward(plain, mean2, rstd2, &other, x, gamma, beta, NRM_TRAIN, eps, N, C, S));
    CHECK(same_bits(m, m2, C) && same_bits(u, u2, C));
    CHECK_INT(running.batches, other.batches);
    CHECK(memcmp(p.mean, mean2, C * sizeof *mean2) == 0);
    CHECK(memcmp(p.rstd, rstd2, C * sizeof *rstd2) == 0);
    CHECK(gap_of_size(p.y, ye, n, size) <= 4 * allowed(1, 2));
    /* of two values in a channel little is left of dy: then it is its rounding that counts */
    CHECK(gap_of_size(p.dx, dxe, n, 1) <= 64 * allowed(1, 2));
    CHECK(gap_of_size(p.dgamma, dge, C, size * sqrtl(WIDE(N * S))) <= 16 * allowed(1, 2));
    CHECK(gap_of_size(p.dbeta, dbe, C, sum_size(N * S)) <= 8 * allowed(1, 2));
    for (c = 0; c < C; c++) folded_gamma[c] = gamma[c];
    if (k->r_max <= 1 && k->d_max <= 0) { /* plain batch norm */
        passes q = passes_of(n, C, C);
        CHECK(same_bits(p.y, plain, n));
        OK(nrm_batchnorm_backward(q.dx, q.dgamma, q.dbeta, dy, x, mean2, rstd2, folded_gamma,
                                  NRM_TRAIN, N, C, S));
        CHECK(same_bits(p.dx, q.dx, n) && same_bits(p.dgamma, q.dgamma, C) &&
              same_bits(p.dbeta, q.dbeta, C));
    }
    OK(nrm_batchrenorm_backward(dy, NULL, NULL, dy, x, ratio, offset, p.mean, p.rstd, gamma,
                                NRM_TRAIN, N, C, S));
    CHECK(same_bits(dy, p.dx, n)); /* in place */
    release();
}

static void test_renorm_values(void)
{
    static const size_t shape[][3] = {{2, 3, 1},  {7, 65, 1},   {33, 130, 1}, {4, 3, 5},
                                      {1, 2, 40}, {9, 1100, 1}, {5, 7, 17}};
    static const double limits[][2] = {{1, 0}, {1, 1e9}, {1e9, 0}, {1.5, 0.5}, {3, 5}, {1e9, 1e9}};
    nrm_rng rng;
    renorm_case k;
    size_t i, l;
    nrm_rng_seed(&rng, 35, 1);
    for (i = 0; i < COUNT(shape); i++)
        for (l = 0; l < COUNT(limits); l++) {
            k.N = shape[i][0];
            k.C = shape[i][1];
            k.S = shape[i][2];
            k.r_max = limits[l][0];
            k.d_max = limits[l][1];
            k.cumulative = (int)(i + l) % 3 == 0;
            k.biased = (int)(i + l) % 2;
            check_renorm(&rng, &k);
        }
}

/* ---- masks ----------------------------------------------------------------------------------- */

enum mask_kind { RANDOM_MASK, FULL_MASK, PREFIX_MASK, STRIPED_MASK, MASK_KINDS };

/* At least two positions count. */
static size_t draw_mask(unsigned char *mask, enum mask_kind kind, size_t N, size_t S, nrm_rng *rng)
{
    size_t n, s, kept = 0;
    for (n = 0; n < N; n++) {
        const size_t length = nrm_rng_below(rng, (uint32_t)(S + 1)); /* of a sequence */
        for (s = 0; s < S; s++) {
            unsigned char keep = 1;
            if (kind == RANDOM_MASK) keep = (unsigned char)nrm_rng_below(rng, 2);
            if (kind == PREFIX_MASK) keep = s < length;
            if (kind == STRIPED_MASK) keep = (n + s) % 3 == 0;
            if (n * S + s == 0 || n * S + s == N * S - 1) keep = 255; /* any but 0 counts */
            mask[n * S + s] = keep;
            kept += keep != 0;
        }
    }
    return kept;
}

/* The kept positions side by side, as a dense batch [kept][C]; or back to where they belong. */
static void compact(nrm_real *batch, nrm_real *tensor, const unsigned char *mask, size_t N,
                    size_t C, size_t S, int back)
{
    size_t n, s, c, row = 0;
    for (n = 0; n < N; n++)
        for (s = 0; s < S; s++) {
            if (!mask[n * S + s]) continue;
            for (c = 0; c < C; c++) {
                nrm_real *in = tensor + (n * C + c) * S + s, *out = batch + row * C + c;
                if (back)
                    *in = *out;
                else
                    *out = *in;
            }
            row++;
        }
}

typedef struct masked_case {
    size_t N, C, S;
    const nrm_real *x, *dy, *gamma, *beta;
    const unsigned char *mask;
    nrm_running *running;
} masked_case;

/* All of batch norm behind a mask. */
static void masked_passes(passes *p, const masked_case *k)
{
    const size_t N = k->N, C = k->C, S = k->S;
    nrm_stats *stats = (nrm_stats *)bytes_of(C * sizeof *stats);
    nrm_sums *sums = (nrm_sums *)bytes_of(C * sizeof *sums);
    memset(stats, 0, C * sizeof *stats);
    OK(nrm_stats_update(stats, k->x, k->mask, N, C, S));
    OK(nrm_sync_batchnorm_forward(p->y, p->mean, p->rstd, k->running, k->x, k->mask, stats,
                                  k->gamma, k->beta, NRM_EPS, N, C, S));
    OK(nrm_sync_batchnorm_sums(sums, p->dgamma, p->dbeta, k->dy, k->x, k->mask, p->mean, p->rstd, N,
                               C, S));
    OK(nrm_sync_batchnorm_backward(p->dx, k->dy, k->x, k->mask, p->mean, p->rstd, k->gamma, stats,
                                   sums, N, C, S));
}

/* The largest difference; infinite if there is a NaN. */
static double distance(const nrm_real *a, const nrm_real *b, size_t n)
{
    double most = 0;
    size_t i;
    for (i = 0; i < n; i++) {
        const double d = fabs((double)a[i] - (double)b[i]);
        if (!(d <= most)) most = d < HUGE_VAL ? d : HUGE_VAL;
    }
    return most;
}

/* A batch behind a mask is the batch of what it lets through, and NaN behind it changes nothing. */
static void check_mask(nrm_rng *rng, enum mask_kind kind, size_t N, size_t C, size_t S)
{
    const size_t n = N * C * S;
    const double tol = 64 * unit();
    unsigned char *mask = (unsigned char *)bytes_of(N * S);
    const size_t kept = draw_mask(mask, kind, N, S, rng);
    nrm_real *x = random_reals(rng, n, 1, 1), *dy = random_reals(rng, n, 0, 1);
    nrm_real *gamma = random_reals(rng, C, 1, 0.5), *beta = random_reals(rng, C, 0, 1);
    nrm_real *bx = reals_of(kept * C, 0), *bdy = reals_of(kept * C, 0);
    nrm_real *y = reals_of(n, 0), *dx = reals_of(n, 0);
    nrm_real *m = reals_of(C, 0), *u = reals_of(C, 1), *m2 = reals_of(C, 0), *u2 = reals_of(C, 1);
    passes masked = passes_of(n, C, C), again = passes_of(n, C, C);
    passes batch = passes_of(kept * C, C, C);
    nrm_running running, other;
    masked_case k;
    double size, blur;
    size_t i, c;
    memset(&running, 0, sizeof running);
    running.new_weight = (nrm_real)0.3;
    other = running;
    running.mean = m;
    running.var = u;
    other.mean = m2;
    other.var = u2;
    compact(bx, x, mask, N, C, S, 0);
    compact(bdy, dy, mask, N, C, S, 0);
    OK(nrm_batchnorm_forward(batch.y, batch.mean, batch.rstd, &other, bx, gamma, beta, NRM_TRAIN,
                             NRM_EPS, kept, C, 1));
    OK(nrm_batchnorm_backward(batch.dx, batch.dgamma, batch.dbeta, bdy, bx, batch.mean, batch.rstd,
                              gamma, NRM_TRAIN, kept, C, 1));
    compact(batch.y, y, mask, N, C, S, 1);
    compact(batch.dx, dx, mask, N, C, S, 1);
    k.N = N;
    k.C = C;
    k.S = S;
    k.x = x;
    k.dy = dy;
    k.gamma = gamma;
    k.beta = beta;
    k.mask = mask;
    k.running = &running;
    masked_passes(&masked, &k);
    size = 1;
    for (c = 0; c < C; c++) size = fmax(size, (double)batch.rstd[c]);
    blur = (acc_in_float ? size : 1) * size;
    CHECK(distance(masked.y, y, n) <= tol * size);
    CHECK(distance(masked.dx, dx, n) <= tol * blur * 4);
    CHECK(distance(masked.dgamma, batch.dgamma, C) <= tol * size * sqrt((double)kept));
    CHECK(distance(masked.dbeta, batch.dbeta, C) <= tol * sqrt((double)kept));
    CHECK(distance(m, m2, C) <= tol && distance(u, u2, C) <= 4 * tol);
    for (i = 0; i < n; i++) /* NaN and infinity where nothing is */
        if (!mask[i / S / C * S + i % S])
            x[i] = dy[i] = i % 2 ? not_a_number() : (nrm_real)INFINITY;
    k.running = NULL;
    masked_passes(&again, &k);
    CHECK(same_passes(&masked, &again, n, C, C));
    for (i = 0; i < n; i++)
        CHECK(mask[i / S / C * S + i % S] || (masked.y[i] == 0 && masked.dx[i] == 0));
    if (test_bad > 0)
        printf("  mask %d, %ux%ux%u, %u kept\n", (int)kind, (unsigned)N, (unsigned)C, (unsigned)S,
               (unsigned)kept);
    release();
}

static void test_masks(void)
{
    const unsigned char all[6] = {1, 1, 1, 1, 1, 1};
    nrm_stats stats[3], full[3];
    nrm_real *x;
    static const size_t shape[][3] = {{2, 3, 1}, {9, 1, 1}, {40, 7, 1}, {100, 65, 1}, {9, 1100, 1},
                                      {2, 3, 2}, {5, 4, 9}, {7, 3, 64}, {3, 2, 1500}, {1, 5, 33}};
    nrm_rng rng;
    size_t i;
    int kind;
    nrm_rng_seed(&rng, 37, 1);
    for (i = 0; i < COUNT(shape); i++)
        for (kind = 0; kind < MASK_KINDS; kind++)
            check_mask(&rng, (enum mask_kind)kind, shape[i][0], shape[i][1], shape[i][2]);
    x = random_reals(&rng, 6 * 3, 0, 1); /* a full mask in a dense batch is none */
    memset(stats, 0, sizeof stats);
    memset(full, 0, sizeof full);
    OK(nrm_stats_update(stats, x, NULL, 6, 3, 1));
    OK(nrm_stats_update(full, x, all, 6, 3, 1));
    CHECK(memcmp(stats, full, sizeof stats) == 0);
    release();
}

#endif
