/* steps_conventions.h - the steps of docs/10_conventions.md, executed.

   Wherever a step speaks of u and ε, these are what nrm_running_import makes of the numbers that
   the other library keeps. */
#ifndef STEPS_CONVENTIONS_H
#define STEPS_CONVENTIONS_H

#include "derive_tools.h"

typedef struct imported { /* one channel */
    nrm_real m, u, eps;
} imported;

static imported import_spread(int spread, int outside, double e, double stored)
{
    const nrm_real mean = 1, kept = (nrm_real)stored;
    nrm_convention from;
    nrm_running running;
    imported to;
    memset(&to, 0, sizeof to);
    memset(&running, 0, sizeof running);
    running.mean = &to.m;
    running.var = &to.u;
    from.spread = spread;
    from.eps_outside = outside;
    from.weight_is_old = 1;
    from.biased = 0;
    from.momentum = (nrm_acc)0.9;
    from.eps = (nrm_acc)e;
    if (nrm_running_import(&running, &to.eps, &mean, &kept, 1, &from, 1) != NRM_OK)
        to.u = (nrm_real)NAN;
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
    imported k = import_spread(NRM_KEEPS_VAR, 0, (double)eps, (double)kept);
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
    const imported k = import_spread(NRM_KEEPS_VAR, 1, e, (double)kept);
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
    imported k = import_spread(NRM_KEEPS_RSTD, 0, e, (double)r);
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
    nrm_convention from;
    nrm_running running;
    memset(&running, 0, sizeof running);
    running.mean = &mean;
    running.var = &var;
    (void)nrm_convention_of(&from, NRM_KERAS);
    from.momentum = (nrm_acc)f;
    if (nrm_running_import(&running, &eps, &kept_mean, &kept_var, 1, &from, 1) != NRM_OK ||
        nrm_batchnorm_forward(y, saved, saved + 1, &running, x, NULL, NULL, NRM_TRAIN, eps, 2, 1,
                              1) != NRM_OK)
        mean = (nrm_real)NAN;
    DERIVE("CONV.7a", relative((wide)mean, (wide)f * 10 + (1 - (wide)f) * 3), identity());
}

static void steps_conventions(void)
{
    static const double size[] = {1e-4, 1e-2, 1, 100, 1e4};
    nrm_rng rng = stream(1502);
    size_t i, j;
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
