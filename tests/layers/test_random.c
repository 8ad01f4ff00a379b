/* test_random.c - are the random numbers random? Uniform and normal ones against what theory says
   of them: moments to the eighth, Kolmogorov and Smirnov's distance, correlations along a stream
   and between neighbouring seeds and streams, counts of bits. The seeds are fixed. Each statistic
   has a known distribution, and fails where it is in a part of that with a probability of 1e-6.

     test_random KIND SEED   writes 32-bit numbers without end, for programs that test generators
                             (tests/layers/dieharder.sh): those of one stream (`bits`), 64
                             neighbouring streams, 4096 of each in turn (`streams`), or what normal
                             numbers say of the integral of their density (`normal`; in double) */
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"

#include "test.h"

enum { COUNT = 1 << 18, MOST_LAG = 16 };
static const double FAR = 4.892; /* a standard normal number is further from 0 once in 10^6 */

/* A number that should be standard normal. */
static void check_normal(double z, const char *what, int which)
{
    if (!CHECK(fabs(z) < FAR)) printf("    %s %d: %.2f standard errors\n", what, which, z);
}

/* Wilson and Hilferty: the cube root of chi-square over its degrees of freedom is nearly normal. */
static void check_chi_square(double chi, double degrees, const char *what, int which)
{
    const double v = 2 / (9 * degrees);
    check_normal((cbrt(chi / degrees) - (1 - v)) / sqrt(v), what, which);
}

static void check_counts(const unsigned *count, size_t bins, double draws, const char *what, int k)
{
    const double expected = draws / (double)bins;
    double chi = 0;
    size_t i;
    for (i = 0; i < bins; i++) chi += pow(count[i] - expected, 2) / expected;
    check_chi_square(chi, (double)bins - 1, what, k);
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* p: numbers that should be uniform between 0 and 1. Their distance D from that, times the root of
   n, is above 2.69 and below 0.27 with a probability of 1e-6 each. */
static void check_distance(double *p, size_t n, const char *what)
{
    double D = 0;
    size_t i;
    qsort(p, n, sizeof *p, by_size);
    for (i = 0; i < n; i++) {
        D = fmax(D, fabs(p[i] - (double)i / (double)n));
        D = fmax(D, fabs(p[i] - (double)(i + 1) / (double)n));
    }
    D *= sqrt((double)n);
    if (!CHECK(D > 0.27 && D < 2.69)) printf("    %s: distance %.3f\n", what, D);
}

static nrm_real drawn[COUNT];
static double work[COUNT]; /* numbers of mean 0 and variance 1, or probabilities */

/* Numbers of a stream, shifted and scaled to mean 0 and variance 1. */
static void draw(int normal, uint64_t seed, uint64_t stream, double *to, size_t n)
{
    nrm_rng rng;
    size_t i;
    nrm_rng_seed(&rng, seed, stream);
    (normal ? nrm_rng_normal : nrm_rng_uniform)(&rng, drawn, n);
    for (i = 0; i < n; i++)
        to[i] = normal ? (double)drawn[i] : ((double)drawn[i] - 0.5) * sqrt(12);
}

/* E[z^k]; of a uniform number of variance 1: 3^(k/2)/(k + 1). */
static double moment(int normal, int k)
{
    double m = 1;
    int i;
    if (k % 2 == 1) return 0;
    for (i = 1; i < k && normal; i += 2) m *= i;
    return normal ? m : pow(3, k / 2) / (k + 1);
}

static void check_moments(int normal, uint64_t seed)
{
    double sum[9] = {0};
    size_t i;
    int k;
    draw(normal, seed, 1, work, COUNT);
    for (i = 0; i < COUNT; i++)
        for (k = 1; k <= 8; k++) sum[k] += pow(work[i], k) - moment(normal, k);
    for (k = 1; k <= 8; k++) {
        const double variance = moment(normal, 2 * k) - pow(moment(normal, k), 2);
        check_normal(sum[k] / sqrt(COUNT * variance), normal ? "normal moment" : "moment", k);
    }
}

static void test_moments(void)
{
    uint64_t seed;
    for (seed = 1; seed <= 4; seed++) {
        check_moments(0, seed);
        check_moments(1, seed);
    }
}

static void test_distribution(void)
{
    uint64_t seed;
    size_t i;
    for (seed = 1; seed <= 3; seed++) {
        draw(0, seed, 2, work, COUNT);
        for (i = 0; i < COUNT; i++) work[i] = work[i] / sqrt(12) + 0.5;
        check_distance(work, COUNT, "uniform");
        draw(1, seed, 2, work, COUNT);
        for (i = 0; i < COUNT; i++) work[i] = 0.5 * erfc(-work[i] * sqrt(0.5));
        check_distance(work, COUNT, "normal");
        draw(1, seed, 3, work, COUNT); /* of a pair the radius and, below, the angle */
        for (i = 0; i < COUNT / 2; i++)
            work[i] = exp(-0.5 * (pow(work[2 * i], 2) + pow(work[2 * i + 1], 2)));
        check_distance(work, COUNT / 2, "radius");
        draw(1, seed, 3, work, COUNT);
        for (i = 0; i < COUNT / 2; i++)
            work[i] = atan2(work[2 * i], work[2 * i + 1]) / (2 * acos(-1)) + 0.5;
        check_distance(work, COUNT / 2, "angle");
    }
}

/* The correlation of a with b and of their squares, in standard errors. */
static void check_pair(const double *a, const double *b, size_t n, int normal, const char *what,
                       int which)
{
    const double fourth = moment(normal, 4) - 1; /* the variance of a square */
    double sum = 0, squares = 0;
    size_t i;
    for (i = 0; i < n; i++) {
        sum += a[i] * b[i];
        squares += (a[i] * a[i] - 1) * (b[i] * b[i] - 1);
    }
    check_normal(sum / sqrt((double)n), what, which);
    check_normal(squares / (fourth * sqrt((double)n)), what, which);
}

static void test_lags(void)
{
    int normal, lag;
    for (normal = 0; normal < 2; normal++) {
        draw(normal, 7, 4, work, COUNT);
        for (lag = 1; lag <= MOST_LAG; lag++)
            check_pair(work, work + lag, COUNT - MOST_LAG, normal, "lag", lag);
    }
}

/* Seeds and streams that differ by 1, and seeds that differ in one bit. That must be one of the
   lower 46, as docs/07_numerics.md says; it is seen where it is another one. */
static void test_neighbours(void)
{
    enum { N = 1 << 13, BITS = 46 };
    static double a[N], b[N];
    double sum = 0;
    int normal, k;
    for (normal = 0; normal < 2; normal++)
        for (k = 0; k < 100; k++) {
            const uint64_t n = (uint64_t)k;
            draw(normal, n, 5, a, N);
            draw(normal, n + 1, 5, b, N);
            check_pair(a, b, N, normal, "seed", k);
            draw(normal, 5, n, a, N);
            draw(normal, 5, n + 1, b, N);
            check_pair(a, b, N, normal, "stream", k);
            if (k >= BITS) continue;
            draw(normal, 9, 6, a, N);
            draw(normal, 9 ^ ((uint64_t)1 << k), 6, b, N);
            check_pair(a, b, N, normal, "bit of the seed", k);
        }
    draw(0, 9, 6, a, N);
    draw(0, 9 + ((uint64_t)1 << 58), 6, b, N);
    for (k = 0; k < N; k++) sum += a[k] * b[k];
    CHECK(sum / sqrt(N) > FAR);
}

/* The j-th numbers of many seeds: as random as the numbers of one. */
static void test_across_seeds(void)
{
    enum { SEEDS = 20000 };
    nrm_rng rng;
    size_t i;
    int j;
    for (j = 0; j < 3; j++) {
        for (i = 0; i < SEEDS; i++) {
            int k;
            nrm_rng_seed(&rng, i, 0);
            for (k = 0; k <= j; k++) nrm_rng_uniform(&rng, drawn, 1);
            work[i] = ((double)drawn[0] - 0.5) * sqrt(12);
        }
        check_pair(work, work + 1, SEEDS - 1, 0, "seeds one after the other", j);
        for (i = 0; i < SEEDS; i++) work[i] = work[i] / sqrt(12) + 0.5;
        check_distance(work, SEEDS, "first numbers of seeds");
    }
}

static void test_bits(void)
{
    enum { N = 1 << 20 };
    static unsigned bit[32][2], run[32][4], byte[4][256], pair[4096], triple[4096];
    nrm_rng rng;
    uint32_t u = 0, last = 0, before = 0;
    int i, k;
    nrm_rng_seed(&rng, 8, 7);
    for (i = 0; i < N; i++, before = last, last = u) {
        u = nrm_rng_u32(&rng);
        for (k = 0; k < 32; k++) {
            bit[k][u >> k & 1]++;
            if (i % 2 == 1) run[k][(u >> k & 1) | (last >> k & 1) << 1]++;
        }
        for (k = 0; k < 4; k++) byte[k][u >> 8 * k & 255]++;
        if (i % 2 == 1) pair[(u >> 26) | (last >> 26) << 6]++;
        if (i % 3 == 2) triple[(u >> 28) | (last >> 28) << 4 | (before >> 28) << 8]++;
    }
    for (k = 0; k < 32; k++) check_counts(bit[k], 2, N, "bit", k);
    for (k = 0; k < 32; k++) check_counts(run[k], 4, N / 2, "bits of two numbers", k);
    for (k = 0; k < 4; k++) check_counts(byte[k], 256, N, "byte", k);
    check_counts(pair, 4096, N / 2, "high bits of two numbers", 0);
    check_counts(triple, 4096, N / 3, "high bits of three numbers", 0);
}

static int endless(const char *kind, uint64_t seed)
{
    enum { STREAMS = 64, PORTION = 4096 };
    const size_t streams = strcmp(kind, "streams") == 0 ? STREAMS : 1;
    static uint32_t u[PORTION];
    nrm_rng rng[STREAMS];
    size_t i, turn = 0;
    for (i = 0; i < STREAMS; i++) nrm_rng_seed(&rng[i], seed, i);
    do {
        for (i = 0; i < PORTION; i++) u[i] = nrm_rng_u32(&rng[turn % streams]);
        turn++;
        if (strcmp(kind, "normal") == 0) {
            nrm_rng_normal(rng, drawn, PORTION);
            for (i = 0; i < PORTION; i++)
                u[i] = (uint32_t)(4294967296 * 0.5 * erfc((double)drawn[i] * sqrt(0.5)));
        }
    } while (fwrite(u, sizeof *u, PORTION, stdout) == PORTION);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3) return endless(argv[1], strtoull(argv[2], NULL, 10));
    RUN(test_moments);
    RUN(test_distribution);
    RUN(test_lags);
    RUN(test_neighbours);
    RUN(test_across_seeds);
    RUN(test_bits);
    return test_report(sizeof(nrm_real) == 4 ? "random (float)" : "random (double)");
}
