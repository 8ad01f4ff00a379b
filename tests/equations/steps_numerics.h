/* steps_numerics.h - steps of docs/07_numerics.md and docs/06_network.md that are about floats, or
   that look into the header. The others are in numerics.claims.

   An inequality leaves 0 where it holds. Where it can be attained it is also asked that some of the
   data nearly do, so that a bound which is twice too large is noticed. */
#ifndef STEPS_NUMERICS_H
#define STEPS_NUMERICS_H

#include "derive_tools.h"
#include "lab/draw.h"

enum { MEANS_MOST = 128 };

typedef struct means_set { /* values, and their statistics by definition */
    size_t n;
    wide x[MEANS_MOST], mu, v, spread;
} means_set;

/* ⟨(a − p)²⟩ */
static wide means_about(const wide *a, size_t n, wide p)
{
    wide sum = 0;
    size_t i;
    for (i = 0; i < n; i++) sum += (a[i] - p) * (a[i] - p);
    return sum / (wide)n;
}

static void means_take(means_set *s)
{
    s->mu = mean_of(s->x, s->n);
    s->v = means_about(s->x, s->n, s->mu);
    s->spread = sqrtl(s->v);
}

/* Values that a float holds, so that a float and a double have the same data. */
static void means_draw(means_set *s, size_t n, double centre, double spread, nrm_rng *rng)
{
    size_t i;
    s->n = n;
    for (i = 0; i < n; i++) s->x[i] = (wide)(float)(centre + spread * (double)draw_normal(rng));
    means_take(s);
}

/* Where a bound has been met most closely, and whether it has ever been broken. */
typedef struct means_bound {
    int broken;
    wide closest;
} means_bound;

static void means_compare(means_bound *b, wide is, wide at_most)
{
    if (!(is <= at_most)) b->broken = 1;
    if (is / at_most > b->closest) b->closest = is / at_most;
}

/* 0 if the bound was never broken, and more than `part` of it was reached. */
static wide means_verdict(const means_bound *b, wide part)
{
    return unless(!b->broken && b->closest > part);
}

/* ---- floats ---------------------------------------------------------------------------------- */

static const wide means_eta = (wide)1 / 16777216; /* η, half of FLT_EPSILON */

static float means_any_float(nrm_rng *rng)
{
    const float a = (float)uniform_between(rng, 1, 2);
    return ldexpf(a, (int)nrm_rng_below(rng, 20) - 10);
}

/* One operation, rounded once: + * / √ */
static void means_one_rounding(nrm_rng *rng)
{
    means_bound bound = {0, 0};
    int turn;
    for (turn = 0; turn < 500; turn++) {
        const float a = means_any_float(rng), b = means_any_float(rng);
        const volatile float sum = a + b, product = a * b, quotient = a / b, root = sqrtf(a);
        const wide A = (wide)a, B = (wide)b;
        means_compare(&bound, fabsl((wide)sum / (A + B) - 1), means_eta);
        means_compare(&bound, fabsl((wide)product / (A * B) - 1), means_eta);
        means_compare(&bound, fabsl((wide)quotient * B / A - 1), means_eta * (1 + means_eta));
        means_compare(&bound, fabsl((wide)root / sqrtl(A) - 1), means_eta);
    }
    DERIVE("MV.6", means_verdict(&bound, (wide)0.75), replay());
}

/* Sterbenz; and that it is not so for floats further apart. */
static void means_exact_differences(nrm_rng *rng)
{
    int turn, exact = 1, exact_beyond = 1;
    for (turn = 0; turn < 500; turn++) {
        const float b = means_any_float(rng);
        const float a = b * (float)uniform_between(rng, 0.5, 2);
        const float beyond = b * (float)uniform_between(rng, 2.1, 4);
        const volatile float near_by = a - b, far_off = beyond - b;
        if (b <= 2 * a && a <= 2 * b) exact &= (wide)near_by == (wide)a - (wide)b;
        exact_beyond &= (wide)far_off == (wide)beyond - (wide)b;
    }
    DERIVE("MV.7", unless(exact && !exact_beyond), replay());
}

/* Both terms exact but for one rounding each: what the difference has left. `p` is the pivot. */
typedef struct means_cancelled {
    wide squares, square, theta1, theta2, got;
} means_cancelled;

static means_cancelled means_cancel(const means_set *s, wide p)
{
    means_cancelled c;
    const wide squares = means_about(s->x, s->n, p), square = (s->mu - p) * (s->mu - p);
    const float a = (float)squares, b = (float)square;
    const volatile float difference = a - b;
    c.squares = squares;
    c.square = square;
    c.theta1 = (wide)a / squares - 1;
    c.theta2 = (wide)b / square - 1;
    c.got = (wide)difference;
    return c;
}

static void means_cancellation(nrm_rng *rng)
{
    means_bound one = {0, 0}, pivot = {0, 0}, exact = {0, 0};
    means_set s;
    int turn;
    for (turn = 0; turn < 1000; turn++) {
        const double spread = uniform_between(rng, 1, 16);
        wide p, distance;
        means_cancelled c;
        means_draw(&s, 4, spread * uniform_between(rng, 0, 90), spread, rng);
        /* a pivot anywhere from the mean to three standard deviations away: MV.7 need not hold */
        p = s.mu + s.spread * (wide)(turn % 31 - 15) / 5;
        distance = (s.mu - p) * (s.mu - p) / s.v;
        c = means_cancel(&s, p);
        means_compare(&pivot, fabsl(c.got - s.v) / s.v,
                      means_eta * (1 + means_eta) * (2 + 2 * distance));
        means_compare(&exact, fabsl(c.got - s.v) / s.v, means_eta * (1 + 2 * distance));
        if (s.mu < s.spread) continue;       /* MV.7 would not hold */
        if (s.mu > 100 * s.spread) continue; /* nor is a long double long enough */
        c = means_cancel(&s, 0);
        DERIVE("MV.8",
               apart(c.got, c.squares * (1 + c.theta1) - c.square * (1 + c.theta2), c.squares),
               algebra());
        DERIVE("MV.9", apart(c.got - s.v, c.theta1 * c.squares - c.theta2 * c.square, s.v),
               algebra());
        means_compare(&one, fabsl(c.got - s.v) / s.v, means_eta * (1 + 2 * s.mu * s.mu / s.v));
    }
    DERIVE("MV.10", means_verdict(&one, (wide)0.5), replay());
    /* and the difference is not exact for all of these: the bound of MV.10 is broken */
    DERIVE("MV.13", worse(means_verdict(&pivot, (wide)0.5), unless(exact.broken)), replay());
}

/* ---- the usual algorithms, in float ---------------------------------------------------------- */

static float means_float_mean(const float *x, size_t n)
{
    volatile float sum = 0;
    size_t i;
    for (i = 0; i < n; i++) sum = sum + x[i];
    return sum / (float)n;
}

static float means_one_pass(const float *x, size_t n)
{
    volatile float squares = 0, square;
    const float mean = means_float_mean(x, n);
    size_t i;
    for (i = 0; i < n; i++) {
        square = x[i] * x[i];
        squares = squares + square;
    }
    square = mean * mean;
    squares = squares / (float)n;
    return squares - square;
}

static float means_two_passes(const float *x, size_t n, int corrected)
{
    const float mean = means_float_mean(x, n);
    volatile float squares = 0, rest = 0, d, square;
    size_t i;
    for (i = 0; i < n; i++) {
        d = x[i] - mean;
        square = d * d;
        squares = squares + square;
        rest = rest + d;
    }
    square = rest * rest;
    if (corrected) squares = squares - square / (float)n;
    return squares / (float)n;
}

static float means_welford(const float *x, size_t n)
{
    volatile float m = 0, Q = 0, before, after, step;
    size_t k;
    for (k = 0; k < n; k++) {
        before = x[k] - m;
        step = before / (float)(k + 1);
        m = m + step;
        after = x[k] - m;
        step = before * after;
        Q = Q + step;
    }
    return Q / (float)n;
}

static float means_of_header(const float *x, size_t n)
{
    const nrmi_view row = nrmi_channels(1, 1, n);
    nrm_real copy[MEANS_MOST];
    nrmi_moments t;
    size_t i;
    for (i = 0; i < n; i++) copy[i] = (nrm_real)x[i];
    nrmi_moments_of(&t, copy, &row, 0, 1);
    return (float)t.var[0];
}

/* Sums that grow value by value: MV.11. */
static void means_running_sums(const means_set *s)
{
    const wide k = (wide)(2 * s->n + 1) * means_eta;
    float x[MEANS_MOST] = {0};
    volatile float squares = 0, mean, square;
    wide theta1, theta2, shift = 0;
    size_t i;
    for (i = 0; i < s->n; i++) shift = worse(shift, fabsl(s->x[i]));
    for (i = 0; i < s->n; i++) { /* of one sign */
        x[i] = (float)(s->x[i] + 2 * shift);
        square = x[i] * x[i];
        squares = squares + square;
    }
    squares = squares / (float)s->n;
    mean = means_float_mean(x, s->n);
    {
        means_set moved = *s;
        for (i = 0; i < s->n; i++) moved.x[i] = (wide)x[i];
        means_take(&moved);
        square = mean * mean;
        theta1 = (wide)squares / means_about(moved.x, s->n, 0) - 1;
        theta2 = (wide)square / (moved.mu * moved.mu) - 1;
        DERIVE("MV.12",
               apart(means_about(moved.x, s->n, (wide)mean) - moved.v,
                     ((wide)mean - moved.mu) * ((wide)mean - moved.mu), moved.v),
               algebra());
    }
    DERIVE("MV.11", unless(worse(fabsl(theta1), fabsl(theta2)) <= k / (1 - k)), replay());
}

/* Does `is` look like `shown` when it is printed with so many digits? */
static int means_reads(double is, double shown, int digits)
{
    char a[40], b[40];
    snprintf(a, sizeof a, "%.*g", digits, is);
    snprintf(b, sizeof b, "%.*g", digits, shown);
    return strcmp(a, b) == 0;
}

/* Values about an offset, each a sum of twelve uniforms less 6: mean 0, variance 1 before that. */
static void means_about_offset(float *x, means_set *s, double offset, nrm_rng *rng)
{
    size_t i, j;
    s->n = MEANS_MOST;
    for (i = 0; i < s->n; i++) {
        double z = -6;
        for (j = 0; j < 12; j++) z += (double)nrm_rng_u32(rng) / 4294967296.0;
        x[i] = (float)(offset + z);
        s->x[i] = (wide)x[i];
    }
    means_take(s);
}

/* The table of the chapter, to the digits shown. */
static wide means_table(void)
{
    static const struct {
        double offset, one_pass, two_passes, welford, header, exact;
    } rows[] = {
        {0, 1.269, 1.269, 1.269, 1.269, 1.269},         {10, 1.2691, 1.269, 1.269, 1.269, 1.269},
        {100, 1.2646, 1.269, 1.269, 1.269, 1.269},      {1000, 1.1875, 1.269, 1.269, 1.269, 1.269},
        {4096, 0, 1.269, 1.2689, 1.269, 1.269},         {10000, 0, 1.2689, 1.2689, 1.2689, 1.2689},
        {100000, 1024, 1.2697, 1.2701, 1.2692, 1.2692},
    };
    int same = 1;
    size_t row;
    for (row = 0; row < LENGTH(rows); row++) {
        float x[MEANS_MOST];
        nrm_rng rng = stream(2901);
        means_set s;
        means_about_offset(x, &s, rows[row].offset, &rng);
        same &= means_reads((double)means_one_pass(x, s.n), rows[row].one_pass, 5);
        same &= means_reads((double)means_two_passes(x, s.n, 0), rows[row].two_passes, 5);
        same &= means_reads((double)means_welford(x, s.n), rows[row].welford, 5);
        same &= means_reads((double)means_of_header(x, s.n), rows[row].header, 5);
        same &= means_reads((double)s.v, rows[row].exact, 5);
    }
    return unless(same);
}

/* Mean 4096, a thousand times: how often one pass gives a negative variance, and how often 0. */
static wide means_signs(void)
{
    nrm_rng rng = stream(2902);
    int negative = 0, zero = 0, turn;
    for (turn = 0; turn < 1000; turn++) {
        float x[MEANS_MOST], v;
        means_set s;
        means_about_offset(x, &s, 4096, &rng);
        v = means_one_pass(x, s.n);
        negative += v < 0;
        zero += v == 0;
    }
    return unless(negative == 406 && zero == 99);
}

/* Four values that one can do by hand: x² of the last needs 25 bits. */
static wide means_by_hand(void)
{
    static const float x[] = {4095, 4096, 4096, 4097};
    return unless(means_one_pass(x, 4) == 0 && means_two_passes(x, 4, 0) == (float)0.5 &&
                  means_reads((double)means_welford(x, 4), 0.499969, 6) &&
                  means_of_header(x, 4) == (float)0.5);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* What δ² is multiplied by: SUM.5. */
static wide means_between(wide n, wide B)
{
    return n * B / (n + B);
}

/* A block of `count` values that come after `before` others; p is what the header takes. */
static void means_block_steps(const means_set *s, size_t before)
{
    const size_t count = s->n - before;
    const wide *block = s->x + before;
    const wide m = mean_of(s->x, before), mean = mean_of(block, count);
    const wide n = (wide)before, B = (wide)count, own = B * means_about(block, count, mean);
    const wide delta = mean - m, about_m = B * means_about(block, count, m);
    const nrm_real p = (nrm_real)m;
    nrm_real x[MEANS_MOST];
    nrm_real s1, s2;
    const nrmi_view row = nrmi_rows(1, count);
    nrmi_walk at = {&row, 0, 1, 0, 0, 0};
    size_t i;
    wide S1, S2 = B * means_about(block, count, (wide)p), worst_d = 0, worst_e = 0;
    for (i = 0; i < count; i++) {
        const wide from_m = fabsl(block[i] - m), from_p = fabsl(block[i] - (wide)p);
        const wide pivot_off = fabsl(m - (wide)p);
        x[i] = (nrm_real)block[i];
        worst_d = worse(worst_d, unless(pivot_off <= from_m * (1 + (wide)1e-15)));
        worst_e = worse(worst_e, unless(from_p <= (from_m + pivot_off) * (1 + (wide)1e-15) &&
                                        from_p <= 2 * from_m * (1 + (wide)1e-15)));
    }
    nrmi_next_block(&s1, &s2, &at, x, &p, NULL, NULL);
    if (at.count != count) s1 = (nrm_real)NAN;
    S1 = (wide)s1;
    DERIVE("SUM.4a", apart(mean, (wide)p + S1 / B, fabsl(mean) + s->spread), identity());
    DERIVE("SUM.5a", apart(own, (wide)s2 - S1 * S1 / B, S2), identity());
    DERIVE("SUM.6a", relative(about_m, own + B * delta * delta), algebra());
    DERIVE("SUM.6b", unless(count > before || means_between(n, B) >= B / 2), replay());
    DERIVE("SUM.6c",
           unless(count > before || own + delta * delta * means_between(n, B) >=
                                        (own + B * delta * delta) / 2 * (1 - (wide)1e-15)),
           replay());
    DERIVE("SUM.6d", worst_d, replay());
    DERIVE("SUM.6e", worst_e, replay());
    DERIVE("SUM.6f", unless(S2 <= 4 * about_m * (1 + (wide)1e-15)), replay());
}

/* The bounds of SUM.6b to SUM.6f are met: blocks of equal length, and a mean halfway between two
   numbers of the type, with values on the far side of it. */
static void means_block_extremes(void)
{
    const nrm_real one = 1, after = (nrm_real)1 +
                                    (in_float() ? (nrm_real)FLT_EPSILON : (nrm_real)DBL_EPSILON);
    const wide m = ((wide)one + (wide)after) / 2;
    const nrm_real p = (nrm_real)m, x = p == one ? after : one;
    const wide from_m = fabsl((wide)x - m), from_p = fabsl((wide)x - (wide)p);
    const int wider = LDBL_MANT_DIG > DBL_MANT_DIG || in_float();
    ALSO_OF("SUM.6b", unless(means_between(8, 8) == (wide)8 / 2), replay());
    ALSO_OF("SUM.6d", unless(!wider || fabsl(m - (wide)p) == from_m), replay());
    ALSO_OF("SUM.6e", unless(!wider || from_p == 2 * from_m), replay());
    ALSO_OF("SUM.6f", unless(!wider || from_p * from_p == 4 * (from_m * from_m)), replay());
}

/* ---- order ----------------------------------------------------------------------------------- */

static void means_fold_steps(nrm_rng *rng)
{
    volatile float l[8], a, b;
    float t[8];
    int j, k;
    for (j = 0; j < 8; j++) l[j] = t[j] = (float)draw_normal(rng) * 1000;
    for (k = 4; k > 0; k /= 2)
        for (j = 0; j < k; j++) l[j] = l[j] + l[j + k]; /* SUM.9 */
    {
        const volatile float t04 = t[0] + t[4], t26 = t[2] + t[6], t15 = t[1] + t[5],
                             t37 = t[3] + t[7];
        a = t04 + t26;
        b = t15 + t37;
        a = a + b;
    }
    DERIVE("SUM.9a", unless(l[0] == a), replay());
}

static void means_not_associative(void)
{
    volatile float left = 16777216, right = 1;
    left = left + 1;
    left = left + 1;
    right = right + 1;
    right = right + 16777216;
    DERIVE("MV.27", unless(left == 16777216 && right == 16777218), replay());
}

/* A sum in the order of SUM.8 and SUM.9, and through how many additions its terms go at most. The
   first addition to an empty lane is exact, and none. */
static float means_lane_sum(const float *a, size_t n, size_t L, size_t *additions)
{
    volatile float lane[16];
    size_t depth[16], i, j, k;
    for (j = 0; j < L; j++) {
        lane[j] = a[j];
        depth[j] = 0;
    }
    for (i = L; i < n; i++) {
        lane[i % L] = lane[i % L] + a[i];
        depth[i % L]++;
    }
    for (k = L / 2; k > 0; k /= 2)
        for (j = 0; j < k; j++) {
            lane[j] = lane[j] + lane[j + k];
            depth[j] = (depth[j] > depth[j + k] ? depth[j] : depth[j + k]) + 1;
        }
    *additions = depth[0];
    return lane[0];
}

static void means_order_bound(nrm_rng *rng)
{
    static const struct {
        size_t n, L, logarithm;
    } shapes[] = {{2, 1, 0},   {4, 1, 0},    {128, 1, 0}, {2, 2, 1},
                  {128, 8, 3}, {128, 16, 4}, {77, 16, 4}};
    means_bound bound = {0, 0};
    size_t shape, turn, i;
    for (shape = 0; shape < LENGTH(shapes); shape++)
        for (turn = 0; turn < 50; turn++) {
            const size_t n = shapes[shape].n, L = shapes[shape].L;
            float a[MEANS_MOST];
            wide sum = 0, size = 0, k;
            size_t additions;
            float got;
            for (i = 0; i < n; i++) {
                a[i] = (float)draw_normal(rng) + 1;
                sum += (wide)a[i];
                size += fabsl((wide)a[i]);
            }
            got = means_lane_sum(a, n, L, &additions);
            k = (wide)additions * means_eta;
            DERIVE("MV.28", unless(additions == (n + L - 1) / L - 1 + shapes[shape].logarithm),
                   replay());
            means_compare(&bound, fabsl((wide)got - sum), k / (1 - k) * size);
        }
    DERIVE("MV.29", means_verdict(&bound, (wide)0.5), replay());
}

/* ---- products, exp, remainders --------------------------------------------------------------- */

/* A sum of K products in float; returns which part of its bound the error is. */
static wide ls_order(size_t K, nrm_rng *rng)
{
    const wide u = (wide)FLT_EPSILON;
    volatile float sum = 0;
    wide exact = 0, size = 0, first;
    size_t k;
    for (k = 0; k < K; k++) {
        const float a = (float)draw_normal(rng), b = (float)draw_normal(rng);
        const volatile float product = a * b;
        const volatile float before = sum;
        sum = before + product;
        first = ((wide)sum - ((wide)before + (wide)product)) / u;
        DERIVE("LIN.5a", /* one addition: off by no more than u/2 of its result */
               unless(fabsl(first) <= fabsl((wide)sum) / 2 &&
                      fabsl((wide)product - (wide)a * (wide)b) <= u / 2 * fabsl((wide)product)),
               algebra());
        exact += (wide)a * (wide)b;
        size += fabsl((wide)a * (wide)b);
    }
    DERIVE("LIN.5b", unless(fabsl((wide)sum - exact) <= u / 2 * (wide)K * size * 1.0001L),
           algebra());
    return fabsl((wide)sum - exact) / (u / 2 * (wide)K * size);
}

/* The page's sum of three numbers in float, in two orders. */
static void ls_order_numbers(void)
{
    const volatile float large = 1e8f, one = 1;
    volatile float left = large + one, right = -large + large;
    left = left - large;
    right = right + one;
    ALSO_OF("LIN.5a", unless(left == 0 && right == 1), algebra());
}

#define LS_LN2 0.693147180559945309417232121458176568L

/* The head of ln2 times any k is exact; one number for ln2 costs 3 digits; e^x − 1 loses half. */
static void ls_exp_numbers(void)
{
    const double head = 0.693145751953125, x = -1e-10;
    const volatile double product = -1000 * 0.6931471805599453, e = exp(x), naive = e - 1;
    nrm_real small = (nrm_real)x, y = 0;
    int k;
    for (k = 0; k <= 1022; k++)
        ALSO_OF("EXP.2b", unless((wide)(double)((double)k * head) == (wide)k * (wide)head),
                algebra());
    ALSO_OF("EXP.2b", unless(head * 65536 == floor(head * 65536)), algebra()); /* 16 bits */
    if (LDBL_MANT_DIG > DBL_MANT_DIG) {
        /* −1000·ln2 from one rounded number */
        const wide off = fabsl((wide)product + 1000 * LS_LN2);
        ALSO_OF("EXP.2a", unless(off > 6.8e-14L && off < 6.9e-14L), algebra());
    }
    ALSO_OF("EXP.5", unless(fabs(naive / expm1(x) - 1) > 8e-8), algebra());
    (void)nrm_activation_forward(&y, &small, NRM_TANH, 1);
    ALSO(unless(y == small), algebra());
}

/* All numbers below 2¹² but the first few: how often is each remainder met? */
static void ls_remainders(size_t n)
{
    enum { ALL = 4096 };
    static size_t count[ALL];
    const size_t few = ALL % n;
    size_t u, j, bad = 0;
    memset(count, 0, sizeof count);
    for (u = few; u < ALL; u++) count[u % n]++;
    for (j = 0; j < n; j++) bad += count[j] != ALL / n;
    DERIVE("RNG.4a", unless(bad == 0), replay());
}

static void steps_numerics(void)
{
    static const size_t sizes[] = {2, 3, 4, 7, 32};
    static const double centres[] = {0.7, -5, 40}, spreads[] = {1, 0.25, 3};
    nrm_rng rng = stream(2900);
    wide nearest = 0;
    size_t i, j;
    for (i = 0; i < LENGTH(sizes); i++)
        for (j = 0; j < LENGTH(centres); j++) {
            means_set s;
            means_draw(&s, sizes[i], centres[j], spreads[j], &rng);
            means_running_sums(&s);
            means_block_steps(&s, (sizes[i] + 1) / 2);
        }
    means_one_rounding(&rng);
    means_exact_differences(&rng);
    means_cancellation(&rng);
    ALSO_OF("MV.10", means_table(), replay());
    ALSO_OF("MV.10", means_signs(), replay());
    ALSO_OF("MV.10", means_by_hand(), replay());
    means_block_extremes();
    for (i = 0; i < 20; i++) means_fold_steps(&rng);
    means_not_associative();
    means_order_bound(&rng);
    for (i = 1; i < 400; i += 1 + i / 2) (void)ls_order(i, &rng);
    for (i = 0; i < 300; i++) nearest = worse(nearest, ls_order(1, &rng));
    ALSO_OF("LIN.5b", unless(nearest > 0.8L), algebra()); /* no larger than it must be */
    ls_order_numbers();
    ls_exp_numbers();
    for (i = 1; i < 4096; i += 1 + i / 7) ls_remainders(i);
}
#endif
