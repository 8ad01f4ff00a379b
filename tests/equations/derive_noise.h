/* derive_noise.h - NB: what noisy batch norm draws, one by one. layers.claims has its gradient. */
#ifndef DERIVE_NOISE_H
#define DERIVE_NOISE_H

#include "derive_tools.h"

enum { CHANNELS = 80 };

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
                k->s[at] =
                    k->sigma[c] + (nrm_acc)k->noise.scale_jitter * (nrm_acc)nrm_rng_normal(rng);
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
