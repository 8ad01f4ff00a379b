/* steps_conventions.h - the steps of docs/10_conventions.md, executed.

   Wherever the page speaks of u and ε, these are what convention_import of variants.h makes of the
   numbers that the other library keeps. */
#ifndef STEPS_CONVENTIONS_H
#define STEPS_CONVENTIONS_H

#include "derive_tools.h"
#include "layers/variants.h"

typedef struct imported { /* one channel */
    nrm_real m, u, eps;
} imported;

static imported import_spread(int keeps, int outside, double e, double stored)
{
    const nrm_real mean = 1, kept = (nrm_real)stored;
    convention from = conventions[KERAS];
    nrm_running running;
    imported to;
    memset(&to, 0, sizeof to);
    memset(&running, 0, sizeof running);
    running.mean = &to.m;
    running.var = &to.u;
    from.keeps = keeps;
    from.eps_outside = outside;
    from.eps = (nrm_acc)e;
    to.eps = convention_import(&running, &from, &mean, &kept, 1, 1);
    return to;
}

/* Ours, by the code: BN.11. */
static wide infer(imported *k, nrm_real x, nrm_real gamma, nrm_real beta)
{
    nrm_running running;
    nrm_real y = (nrm_real)NAN;
    memset(&running, 0, sizeof running);
    running.mean = &k->m;
    running.var = &k->u;
    (void)nrm_batchnorm_forward(&y, NULL, NULL, &running, &x, &gamma, &beta, NRM_INFER, k->eps, 1,
                                1, 1);
    return (wide)y;
}

static void steps_inside(double v, double e, nrm_rng *rng)
{
    const nrm_real kept = (nrm_real)v, eps = (nrm_real)e;
    imported k = import_spread(KEEPS_VAR, 0, (double)eps, (double)kept);
    const wide s = sqrtl((wide)kept + (wide)eps);
    const nrm_real x = (nrm_real)(1 + sqrt(v) * (double)nrm_rng_normal(rng));
    const nrm_real gamma = (nrm_real)1.5, beta = (nrm_real)-0.3;
    const wide line = (wide)gamma * ((wide)x - 1) / s;
    DERIVE("CONV.2a",
           apart(infer(&k, x, gamma, beta), line + (wide)beta, fabsl(line) + fabsl((wide)beta)),
           identity());
    DERIVE("CONV.2b", relative((wide)k.u + (wide)k.eps, s * s), identity());
    DERIVE("CONV.2c", relative((wide)k.u, (wide)kept), identity());
}

static wide u_outside(wide v, wide e)
{
    return v + 2 * e * sqrtl(v);
}

static void steps_outside(double v, double e, nrm_rng *rng)
{
    const nrm_real kept = (nrm_real)v;
    const imported k = import_spread(KEEPS_VAR, 1, e, (double)kept);
    const wide V = (wide)kept, E = (wide)(nrm_acc)e, s = sqrtl(V) + E;
    const wide other = V * (wide)uniform_between(rng, 0.1, 10);
    const wide w = (wide)uniform_between(rng, 0.1, 0.9), mixed = (1 - w) * V + w * other;
    const wide left = (1 - w) * u_outside(V, E) + w * u_outside(other, E) - u_outside(mixed, E);
    const wide right = 2 * E * ((1 - w) * sqrtl(V) + w * sqrtl(other) - sqrtl(mixed));
    DERIVE("CONV.3a", relative(s * s, V + 2 * E * sqrtl(V) + E * E), algebra());
    ALSO(unless(relative((wide)k.u + (wide)k.eps, s * s) <= (wide)identity().most), algebra());
    DERIVE("CONV.3b", apart(s * s - E, V + 2 * E * sqrtl(V) + E * E - E, s * s + E), algebra());
    DERIVE("CONV.3c", apart(V, powl(sqrtl((wide)k.u + (wide)k.eps) - E, 2), s * s), identity());
    DERIVE("CONV.3d", apart(left, right, u_outside(mixed, E)), algebra());
    ALSO(unless(right <= 0), algebra());
}

/* The three numbers of the page. */
static void steps_outside_numbers(void)
{
    const wide e = 1e-3L, tiny = 1e-6L;
    ALSO_OF("CONV.3b", relative(e * e - e, -0.000999L), algebra());
    ALSO_OF("CONV.3d", unless(fabsl(2 * tiny * (1.5L - sqrtl(2.5L)) + 1.6e-7L) < 0.05e-7L),
            algebra());
    ALSO_OF("CONV.2c", unless(fabsl(sqrtl((1e-3L + 1e-3L) / 1e-3L) - 1.41L) < 5e-3L), identity());
}

static void steps_reciprocal(double v, double e)
{
    const nrm_real r = (nrm_real)(1 / sqrt(v + e));
    imported k = import_spread(KEEPS_RSTD, 0, e, (double)r);
    const wide square = (wide)k.u + (wide)k.eps, eta = 1e-3L, off = (1 + eta) * (wide)r;
    const wide line = infer(&k, 3, 1, 0); /* (3 - 1)/s */
    DERIVE("CONV.4a", relative(1 / ((wide)r * (wide)r), square), identity());
    ALSO(relative(powl(2 / line, 2), square), make_witness('I', in_float() ? 1e-6 : 1e-13));
    DERIVE("CONV.4b",
           apart(1 / (off * off) - (wide)k.eps, square / ((1 + eta) * (1 + eta)) - (wide)k.eps,
                 square),
           identity());
}

/* Two columns of sums after t batches, by the rule, and written out. */
static void steps_sums(double momentum, nrm_rng *rng)
{
    enum { BATCHES = 50 };
    const wide f = (wide)momentum;
    wide mu[BATCHES], S = 0, c = 0, average = 0;
    int t, k;
    for (t = 0; t < BATCHES; t++) {
        const wide before = c, S_before = S;
        wide powers = 0, written_out = 0, w;
        mu[t] = 3 + (wide)nrm_rng_normal(rng);
        S = f * S + mu[t];
        c = f * c + 1;
        for (k = 0; k <= t; k++) {
            powers += powl(f, k);
            written_out += powl(f, k) * mu[t - k];
        }
        w = 1 / c;
        average = (1 - w) * average + w * mu[t];
        DERIVE("CONV.5a", relative(c, powers), algebra());
        DERIVE("CONV.5b", apart(S, written_out, c), algebra());
        DERIVE("CONV.5c", apart((1 - f) * c, 1 - powl(f, t + 1), 1), algebra());
        if (t > 0)
            DERIVE("CONV.6a", relative(S / c, f * before / c * (S_before / before) + mu[t] / c),
                   algebra());
        ALSO_OF("CONV.6a", relative(S / c, average), algebra());
        DERIVE("CONV.6b", apart(f * before / c, 1 - w, 1), algebra());
        DERIVE("CONV.6c", relative(1 / (f * before + 1), (1 - f) / (1 - powl(f, t + 1))),
               algebra());
    }
}

/* One step of a library that weighs the old value with f, by the code. */
static void steps_weight(double f)
{
    const nrm_real x[2] = {2, 4};
    nrm_real mean = 10, var = 1, y[2], eps, kept_mean = 10, kept_var = 1;
    nrm_acc saved[2];
    convention from = conventions[KERAS];
    nrm_running running;
    memset(&running, 0, sizeof running);
    running.mean = &mean;
    running.var = &var;
    from.momentum = (nrm_acc)f;
    eps = convention_import(&running, &from, &kept_mean, &kept_var, 1, 1);
    if (nrm_batchnorm_forward(y, saved, saved + 1, &running, x, NULL, NULL, NRM_TRAIN, eps, 2, 1,
                              1) != NRM_OK)
        mean = (nrm_real)NAN;
    DERIVE("CONV.7a", relative((wide)mean, (wide)f * 10 + (1 - (wide)f) * 3), identity());
}

/* ---- the import ------------------------------------------------------------------------------ */

enum { KEPT = 6 };

/* What the other library would divide by, if it has `stored`. */
static wide divisor_of(const convention *from, wide stored)
{
    const wide e = (wide)from->eps;
    if (from->keeps == KEEPS_RSTD) return 1 / stored;
    if (from->eps_outside) return (from->keeps == KEEPS_STD ? stored : sqrtl(stored)) + e;
    return sqrtl((from->keeps == KEEPS_STD ? stored * stored : stored) + e);
}

/* One call of the import for KEPT variances of a given size: is u + ε the square of the divisor,
   and does BN.11 give what the other library computes? */
static void derive_import(const convention *from, double size, nrm_rng *rng)
{
    nrm_real mean[KEPT], spread[KEPT], m[KEPT], u[KEPT], x[KEPT], y[KEPT], gamma[KEPT], beta[KEPT];
    nrm_real eps;
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
        spread[c] = (nrm_real)(from->keeps == KEEPS_VAR ? v : s);
        if (from->keeps == KEEPS_RSTD)
            spread[c] = (nrm_real)(1 / (from->eps_outside ? s + (double)from->eps
                                                          : sqrt(v + (double)from->eps)));
        x[c] = (nrm_real)(s * (double)nrm_rng_normal(rng));
    }
    fill_real(gamma, KEPT, 1, 0.5, rng);
    fill_real(beta, KEPT, 0, 1, rng);
    eps = convention_import(&running, from, mean, spread, 1, KEPT);
    rc = nrm_batchnorm_forward(y, NULL, NULL, &running, x, gamma, beta, NRM_INFER, eps, 1, KEPT, 1);
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
    if (from->keeps == KEEPS_RSTD)
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
    wide sum = 0, c = 0, average = 0, weights = 0, moving = 0;
    nrm_real stored, var = 1, m = 0, u = 1;
    nrm_running running;
    int t;
    memset(&running, 0, sizeof running);
    running.mean = &m;
    running.var = &u;
    for (t = 0; t < 40; t++) {
        const wide mu = 3 + (wide)nrm_rng_normal(rng), w = 1 / ((wide)f * c + 1);
        sum = (wide)f * sum + mu;
        c = (wide)f * c + 1;
        average = (wide)f * average + mu; /* Horner: the newest with weight 1 */
        weights = (wide)f * weights + 1;
        moving = (1 - w) * moving + w * mu;
        stored = (nrm_real)sum;
        (void)convention_import(&running, &conventions[CAFFE], &stored, &var, (nrm_acc)c, 1);
        DERIVE("CONV.5", relative((wide)m, average / weights), identity());
        DERIVE("CONV.6", relative(moving, sum / c), algebra());
        ALSO(unless(w >= 1 - (wide)f && (f > 0.9 || t < 39 || w - (1 - (wide)f) < 1e-3L)),
             algebra());
    }
    stored = 3; /* before the first batch the sums are of nothing */
    (void)convention_import(&running, &conventions[CAFFE], &stored, &var, 0, 1);
    ALSO_OF("CONV.5", unless(m == 0 && u == 0), replay());
}

static void derive_conventions(void)
{
    nrm_rng rng = stream(1401);
    convention from;
    int library, keeps, outside, i;
    for (library = 0; library < LIBRARIES; library++) {
        from = conventions[library];
        if (from.eps < 0) {
            from.momentum = (nrm_acc)0.25;
            from.eps = (nrm_acc)1e-4;
        }
        for (i = 0; i < 3; i++) derive_import(&from, i == 0 ? 1 : i == 1 ? 1e-4 : 1e4, &rng);
    }
    for (keeps = KEEPS_VAR; keeps <= KEEPS_RSTD; keeps++)
        for (outside = 0; outside < 2; outside++)
            for (i = 0; i < 3; i++) {
                from.keeps = keeps;
                from.eps_outside = outside;
                from.weight_is_old = i == 1;
                from.momentum = (nrm_acc)0.125;
                from.eps = (nrm_acc)(i == 0 ? 0.5 : 1e-3); /* a large ε, too */
                derive_import(&from, i == 2 ? 100 : 1, &rng);
            }
    derive_sums_of_means(0.75, &rng);
    derive_sums_of_means(0.999, &rng);
}

static void steps_conventions(void)
{
    static const double size[] = {1e-4, 1e-2, 1, 100, 1e4};
    nrm_rng rng = stream(1502);
    size_t i, j;
    derive_conventions();
    for (i = 0; i < LENGTH(size); i++)
        for (j = 0; j < 2; j++) {
            const double e = j ? 1e-3 : 0.5;
            steps_inside(size[i] * uniform_between(&rng, 0.5, 2), e, &rng);
            steps_outside(size[i] * uniform_between(&rng, 0.5, 2), e, &rng);
            steps_reciprocal(size[i] * uniform_between(&rng, 0.5, 2), e);
        }
    steps_outside_numbers();
    steps_sums(0.5, &rng);
    steps_sums(0.999, &rng);
    steps_weight(0.99);
    steps_weight(0.25);
}
#endif
