/* steps_questions.h - the steps of docs/09_faq.md, executed. */
#ifndef STEPS_QUESTIONS_H
#define STEPS_QUESTIONS_H

#include "derive_tools.h"

/* ---- integrals ------------------------------------------------------------------------------- */

typedef wide integrand(wide z, wide parameter);

/* Gauss's rule with five points on each of 256 pieces. */
static wide integral(integrand *f, wide parameter, wide from, wide to)
{
    const wide root = 2 * sqrtl(10 / (wide)7), width = (to - from) / 256;
    const wide at[5] = {0, sqrtl(5 - root) / 3, -sqrtl(5 - root) / 3, sqrtl(5 + root) / 3,
                        -sqrtl(5 + root) / 3};
    const wide inner = (322 + 13 * sqrtl(70)) / 900, outer = (322 - 13 * sqrtl(70)) / 900;
    const wide weight[5] = {128 / (wide)225, inner, inner, outer, outer};
    wide sum = 0;
    int piece, k;
    for (piece = 0; piece < 256; piece++)
        for (k = 0; k < 5; k++)
            sum += weight[k] * f(from + width * (piece + (1 + at[k]) / 2), parameter);
    return sum * width / 2;
}

static const wide far_out = 14; /* where the normal density is 10^-43 */

static wide normal_density(wide z)
{
    return expl(-z * z / 2) / sqrtl(2 * acosl(-1));
}

static wide power_times_density(wide z, wide power)
{
    return powl(z, power) * normal_density(z);
}

static wide tanh_square(wide z, wide unused)
{
    (void)unused;
    return tanhl(z) * tanhl(z) * normal_density(z);
}

static wide sigmoid_square(wide z, wide centre)
{
    return powl(1 / (1 + expl(-z)) - centre, 2) * normal_density(z);
}

static wide power_of(wide gamma, wide power)
{
    return powl(gamma, power);
}

/* E[(γz)^power] for γ ~ U(0, 1), z ~ N(0, 1): the inner integral over z. */
static wide scaled_moment(wide gamma, wide power)
{
    return powl(gamma, power) * integral(power_times_density, power, -far_out, far_out);
}

static void steps_moments(void)
{
    const wide pi = acosl(-1);
    const wide first = integral(power_times_density, 1, 0, far_out);
    const wide second = integral(power_times_density, 2, 0, far_out);
    const wide fourth = integral(scaled_moment, 4, 0, 1),
               squared = integral(scaled_moment, 2, 0, 1);
    DERIVE("QA.4", relative(integral(power_of, 2, 0, 1), 1 / (wide)3), algebra());
    DERIVE("QA.5", relative(fourth / (squared * squared) - 3, 2.4L), algebra());
    ALSO(relative(fourth / (squared * squared),
                  3 * integral(power_of, 4, 0, 1) / powl(integral(power_of, 2, 0, 1), 2)),
         algebra());
    DERIVE("QA.6", relative(first, normal_density(0) - normal_density(far_out)), algebra());
    ALSO(relative(first, 1 / sqrtl(2 * pi)), algebra());
    ALSO(unless(fabsl(first - 0.399L) < 5e-4L), algebra());
    DERIVE("QA.7", relative(second, 0.5L), algebra());
    DERIVE("QA.8", relative(second - first * first, 0.5L - 1 / (2 * pi)), algebra());
    ALSO(unless(fabsl(second - first * first - 0.341L) < 5e-4L), algebra());
    ALSO(unless(fabsl(integral(tanh_square, 0, -far_out, far_out) - 0.394L) < 5e-4L), algebra());
    ALSO(unless(fabsl(integral(sigmoid_square, 0.5L, -far_out, far_out) - 0.0434L) < 5e-5L),
         algebra());
    /* a scaled bell: the probability of |z| > artanh 0.97 */
    ALSO(unless(fabsl(2 * integral(power_times_density, 0, atanhl(0.97L), far_out) - 0.036L) <
                5e-4L),
         algebra());
}

/* ---- what gamma and beta can undo, and what no affine map can -------------------------------- */

typedef struct sample { /* of one channel, as the code has it */
    size_t M;
    wide mean, var;
    nrm_real x[GROUP];
} sample;

static sample draw_sample(size_t M, double centre, double spread, nrm_rng *rng)
{
    sample s;
    size_t i;
    memset(&s, 0, sizeof s);
    s.M = M;
    fill_real(s.x, M, centre, spread, rng);
    for (i = 0; i < M; i++) s.mean += (wide)s.x[i] / (wide)M;
    for (i = 0; i < M; i++) s.var += powl((wide)s.x[i] - s.mean, 2) / (wide)M;
    return s;
}

static int normalize(nrm_real *y, const sample *s, nrm_real gamma, nrm_real beta, nrm_real eps)
{
    nrm_acc mean, rstd;
    return nrm_batchnorm_forward(y, &mean, &rstd, NULL, s->x, &gamma, &beta, NRM_TRAIN, eps, s->M,
                                 1, 1);
}

static void steps_undo(size_t M, nrm_rng *rng)
{
    const sample one = draw_sample(M, 3, 2, rng), other = draw_sample(M, -1, 0.5, rng);
    const nrm_real eps = (nrm_real)0.01;
    const nrm_real gamma = (nrm_real)sqrtl(one.var + (wide)eps), beta = (nrm_real)one.mean;
    const wide stretch = sqrtl((one.var + (wide)eps) / (other.var + (wide)eps));
    nrm_real y[GROUP], z[GROUP];
    wide same = 0, moved = 0;
    size_t i;
    if (normalize(y, &one, gamma, beta, eps) != NRM_OK ||
        normalize(z, &other, gamma, beta, eps) != NRM_OK)
        same = (wide)HUGE_VAL;
    for (i = 0; i < M; i++) {
        same = worse(same, apart((wide)y[i], (wide)one.x[i], 3));
        moved = worse(moved, apart((wide)z[i], stretch * ((wide)other.x[i] - other.mean) + one.mean,
                                   fabsl(one.mean) + 3 * (wide)gamma));
    }
    DERIVE("QA.1", same, identity());
    DERIVE("QA.2", moved, identity());
}

/* The mean of the third powers over the 3/2th power of that of the squares. */
static wide skewness(const nrm_real *a, size_t n)
{
    wide mean = 0, squares = 0, cubes = 0;
    size_t i;
    for (i = 0; i < n; i++) mean += (wide)a[i] / (wide)n;
    for (i = 0; i < n; i++) squares += powl((wide)a[i] - mean, 2) / (wide)n;
    for (i = 0; i < n; i++) cubes += powl((wide)a[i] - mean, 3) / (wide)n;
    return cubes / powl(squares, 1.5L);
}

static void steps_shape(size_t M, nrm_real gamma, nrm_rng *rng)
{
    sample s = draw_sample(M, 0, 1, rng);
    nrm_real y[GROUP];
    size_t i;
    wide result;
    for (i = 0; i < M; i++) s.x[i] *= s.x[i]; /* far from Gaussian */
    result = normalize(y, &s, gamma, (nrm_real)0.3, (nrm_real)1e-3) == NRM_OK
                 ? apart(skewness(y, M), (wide)gamma / fabsl((wide)gamma) * skewness(s.x, M), 1)
                 : (wide)HUGE_VAL;
    DERIVE("QA.3", result, identity());
}

/* ---- correlations ---------------------------------------------------------------------------- */

static void steps_correlation(size_t M, double shared, nrm_rng *rng)
{
    enum { TWO = 2 };
    nrm_real x[TWO * GROUP], y[TWO * GROUP];
    nrm_acc mean[TWO], rstd[TWO];
    const nrm_real eps = (nrm_real)0.1;
    wide m[TWO] = {0, 0}, v[TWO] = {0, 0}, r[TWO], covariance = 0, product = 0, correlation;
    size_t i, c;
    fill_real(x, TWO * M, 1, 2, rng);
    for (i = 0; i < M; i++) x[TWO * i + 1] = x[TWO * i + 1] / 4 + (nrm_real)shared * x[TWO * i];
    for (c = 0; c < TWO; c++) {
        for (i = 0; i < M; i++) m[c] += (wide)x[TWO * i + c] / (wide)M;
        for (i = 0; i < M; i++) v[c] += powl((wide)x[TWO * i + c] - m[c], 2) / (wide)M;
        r[c] = 1 / sqrtl(v[c] + (wide)eps);
    }
    if (nrm_batchnorm_forward(y, mean, rstd, NULL, x, NULL, NULL, NRM_TRAIN, eps, M, TWO, 1) !=
        NRM_OK)
        product = (wide)HUGE_VAL;
    for (i = 0; i < M; i++) {
        product += (wide)y[TWO * i] * (wide)y[TWO * i + 1] / (wide)M;
        covariance += ((wide)x[TWO * i] - m[0]) * ((wide)x[TWO * i + 1] - m[1]) / (wide)M;
    }
    correlation = covariance / sqrtl(v[0] * v[1]);
    DERIVE("QA.9", apart(product, r[0] * r[1] * covariance, 1), identity());
    DERIVE("QA.10",
           apart(product,
                 correlation * sqrtl((1 - (wide)eps * r[0] * r[0]) * (1 - (wide)eps * r[1] * r[1])),
                 1),
           identity());
}

/* ---- M or M - 1 ------------------------------------------------------------------------------ */

enum { POPULATION = 4 };

/* All batches of M values, with repetition, from a population of four: their means over all. */
static void steps_expected_variance(int M, nrm_rng *rng)
{
    double value[POPULATION];
    wide centre = 0, sigma2 = 0, spread_of_means = 0, expected = 0, split = 0;
    long batch, batches = 1;
    int i;
    fill(value, POPULATION, 5, 2, rng);
    for (i = 0; i < POPULATION; i++) centre += (wide)value[i] / POPULATION;
    for (i = 0; i < POPULATION; i++) sigma2 += powl((wide)value[i] - centre, 2) / POPULATION;
    for (i = 0; i < M; i++) batches *= POPULATION;
    for (batch = 0; batch < batches; batch++) {
        wide mean = 0, v = 0, about_centre = 0;
        long digits = batch;
        for (i = 0; i < M; i++, digits /= POPULATION) mean += (wide)value[digits % POPULATION] / M;
        for (i = 0, digits = batch; i < M; i++, digits /= POPULATION) {
            v += powl((wide)value[digits % POPULATION] - mean, 2) / M;
            about_centre += powl((wide)value[digits % POPULATION] - centre, 2) / M;
        }
        split = worse(split, apart(about_centre, v + powl(mean - centre, 2), sigma2));
        spread_of_means += powl(mean - centre, 2) / (wide)batches;
        expected += v / (wide)batches;
    }
    DERIVE("QA.12", split, algebra());
    DERIVE("QA.13", relative(spread_of_means, sigma2 / M), algebra());
    DERIVE("QA.14", relative(expected, (1 - 1 / (wide)M) * sigma2), algebra());
}

static void steps_sample_variance(size_t M, nrm_rng *rng)
{
    const sample s = draw_sample(M, 2, 3, rng);
    wide sum = 0, worst = 0;
    size_t i;
    for (i = 0; i < M; i++) sum += powl((wide)s.x[i] - s.mean, 2);
    for (i = 0; i < M; i++) {
        const wide d = (wide)s.x[i] - s.mean;
        worst = worse(worst, apart(d / sqrtl(sum / (wide)(M - 1)),
                                   sqrtl(1 - 1 / (wide)M) * d / sqrtl(s.var), 1));
    }
    DERIVE("QA.11", worst, algebra());
}

/* ---- epsilon --------------------------------------------------------------------------------- */

typedef struct root {
    double v, e;
    int outside;
} root;

static wide reciprocal_root(void *context)
{
    const root *at = (const root *)context;
    const wide v = (wide)at->v, e = (wide)at->e;
    return at->outside ? 1 / (sqrtl(v) + e) : 1 / sqrtl(v + e);
}

static void steps_epsilon(double v, double e)
{
    root at;
    wide inside, outside;
    at.v = v;
    at.e = e;
    at.outside = 0;
    inside = slope(reciprocal_root, &at, &at.v, binary(v * 1e-3));
    at.outside = 1;
    outside = slope(reciprocal_root, &at, &at.v, binary(v * 1e-3));
    DERIVE("QA.15", relative(inside, -0.5L * powl((wide)v + (wide)e, -1.5L)), acc_difference());
    DERIVE("QA.16",
           relative(outside, -1 / (2 * sqrtl((wide)v) * powl(sqrtl((wide)v) + (wide)e, 2))),
           acc_difference());
}

/* ---- running statistics ---------------------------------------------------------------------- */

/* What is left of the start: batches with mean 0, by the code. */
static void steps_start(double weight)
{
    const nrm_real x[2] = {-1, 1};
    nrm_real mean = 5, var = 1, y[2];
    nrm_acc saved[2];
    nrm_running running;
    int t;
    memset(&running, 0, sizeof running);
    running.mean = &mean;
    running.var = &var;
    running.new_weight = (nrm_real)weight;
    for (t = 1; t <= 6; t++) {
        if (nrm_batchnorm_forward(y, saved, saved + 1, &running, x, NULL, NULL, NRM_TRAIN, NRM_EPS,
                                  2, 1, 1) != NRM_OK)
            mean = (nrm_real)NAN;
        DERIVE("QA.17", apart((wide)mean, powl(1 - (wide)running.new_weight, t) * 5, 5),
               identity());
    }
}

/* Batch means that are +1 or -1 like a coin: all sequences of ten, then many steps of the rule. */
static void steps_scatter(double weight)
{
    const wide w = (wide)weight;
    wide s = 0;
    int steps, sequence, t;
    for (steps = 1; steps <= 10; steps++) {
        wide sum = 0, squares = 0;
        for (sequence = 0; sequence < 1 << steps; sequence++) {
            wide m = 0;
            for (t = 0; t < steps; t++) m = (1 - w) * m + w * (sequence >> t & 1 ? 1 : -1);
            sum += m / (wide)(1 << steps);
            squares += m * m / (wide)(1 << steps);
        }
        s = (1 - w) * (1 - w) * s + w * w;
        DERIVE("QA.18", apart(s, squares - sum * sum, 1), algebra());
    }
    for (t = 0; t < 4000; t++) s = (1 - w) * (1 - w) * s + w * w;
    DERIVE("QA.19", relative(s, w / (2 - w)), algebra());
}

/* ---- how far a normalized value can be from 0 ------------------------------------------------ */

/* Some data, or, if `alone`, one value that differs from all others. */
static void steps_range(size_t M, int alone, nrm_rng *rng)
{
    const wide m = (wide)M, slack = (wide)identity().most;
    sample s = draw_sample(M, 1, 2, rng);
    wide sum = 0, least = (wide)HUGE_VAL, squares = 0, others = 0, others2 = 0, first = 0;
    nrm_real y[GROUP];
    size_t i;
    for (i = 1; alone && i < M; i++) s.x[i] = 1;
    if (alone) s.x[0] = 1001;
    if (normalize(y, &s, 1, 0, (nrm_real)1e-12) != NRM_OK) sum = (wide)HUGE_VAL;
    for (i = 0; i < M; i++) {
        sum += (wide)y[i];
        squares += (wide)y[i] * (wide)y[i] / m;
        if ((wide)y[i] * (wide)y[i] < least) least = (wide)y[i] * (wide)y[i];
        if (i > 0) others += (wide)y[i];
        if (i > 0) others2 += (wide)y[i] * (wide)y[i];
    }
    first = (wide)y[0];
    DERIVE("QA.20", unless(least <= squares + slack && squares <= 1 + slack), identity());
    if (M == 2) ALSO(apart(least, squares, 1), identity());
    if (alone) ALSO(apart(squares, 1, 1), identity());
    DERIVE("QA.21", apart(first * first, others * others, m), identity());
    DERIVE("QA.22", unless(others * others <= (m - 1) * others2 + slack * m), identity());
    if (alone) ALSO(apart(others * others, (m - 1) * others2, m), identity());
    DERIVE("QA.23", unless(first * first <= (m - 1) * (1 + slack)), identity());
    if (alone) ALSO(apart(first * first, m - 1, m), identity());
    ALSO(apart(sum, 0, m), identity());
}

/* ---- a chain of three, and a recurrence ------------------------------------------------------ */

typedef struct chain_of_three {
    double w[3], x, y;
} chain_of_three;

static wide chain_loss(void *context)
{
    const chain_of_three *c = (const chain_of_three *)context;
    const wide z = (wide)c->w[2] * ((wide)c->w[1] * ((wide)c->w[0] * (wide)c->x));
    return powl(z - (wide)c->y, 2);
}

static void steps_chain(nrm_rng *rng)
{
    chain_of_three c;
    wide z_b, z_c;
    fill(c.w, 3, 1, 1, rng);
    c.x = uniform_between(rng, 0.5, 2);
    c.y = uniform_between(rng, -2, 2);
    z_b = (wide)c.w[1] * (wide)c.w[0] * (wide)c.x;
    z_c = (wide)c.w[2] * z_b;
    DERIVE("QA.24",
           apart(slope(chain_loss, &c, &c.w[2], binary(1e-3)), 2 * (z_c - (wide)c.y) * z_b,
                 fabsl(z_b) * (fabsl(z_c) + fabsl((wide)c.y))),
           acc_difference());
}

/* The variance of h after t steps by its definition: h is a sum of independent a^k x. */
static void steps_recurrence(double factor)
{
    const wide a = (wide)factor;
    wide before = 0;
    int t, k;
    for (t = 1; t <= 40; t++) {
        wide v = 0;
        for (k = 0; k < t; k++) v += powl(a, k) * powl(a, k);
        DERIVE("QA.25", relative(v, a * a * before + 1), algebra());
        DERIVE("QA.26", relative(v, (1 - powl(a, 2 * t)) / (1 - a * a)), algebra());
        before = v;
    }
}

static void steps_questions(void)
{
    static const size_t Ms[] = {2, 3, 4, 7, 32};
    nrm_rng rng = stream(1500);
    size_t i;
    int M;
    steps_moments();
    for (i = 0; i < LENGTH(Ms); i++) {
        steps_undo(Ms[i], &rng);
        if (Ms[i] > 2) steps_shape(Ms[i], (nrm_real)1.7, &rng);
        if (Ms[i] > 2) steps_shape(Ms[i], (nrm_real)-0.6, &rng);
        steps_correlation(Ms[i], 0.5, &rng);
        steps_correlation(Ms[i], -0.1, &rng);
        steps_sample_variance(Ms[i], &rng);
        steps_range(Ms[i], 0, &rng);
        steps_range(Ms[i], 1, &rng);
        steps_chain(&rng);
    }
    for (M = 2; M <= 6; M++) steps_expected_variance(M, &rng);
    steps_epsilon(1, 0.1);
    steps_epsilon(1e-6, 1e-5);
    steps_epsilon(1e-6, 1e-3);
    steps_epsilon(1e4, 1e-3);
    steps_start(0.1);
    steps_start(0.99);
    steps_scatter(0.1);
    steps_scatter(0.01);
    steps_scatter(0.9);
    steps_recurrence(0.5);
    steps_recurrence(-0.9);
}
#endif
