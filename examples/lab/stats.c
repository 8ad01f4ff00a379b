/* stats.c - see stats.h. */
#include "stats.h"

#include <math.h>
#include <stdlib.h>

double stats_mean(const double *x, size_t n)
{
    double sum = 0, rest = 0, mean;
    size_t i;
    if (!n) return (double)NAN;
    for (i = 0; i < n; i++) sum += x[i];
    mean = sum / (double)n;
    if (isinf(mean)) return mean;
    /* The second pass takes out the rounding of the first. */
    for (i = 0; i < n; i++) rest += x[i] - mean;
    return mean + rest / (double)n;
}

stats_summary stats_describe(const double *x, size_t n)
{
    stats_summary s;
    double sum2 = 0, sum3 = 0, sum4 = 0, variance;
    size_t i;
    s.n = n;
    s.mean = stats_mean(x, n);
    s.min = s.max = n ? x[0] : (double)NAN;
    for (i = 0; i < n; i++) {
        double d = x[i] - s.mean;
        sum2 += d * d;
        sum3 += d * d * d;
        sum4 += d * d * d * d;
        if (x[i] < s.min || isnan(x[i])) s.min = x[i];
        if (x[i] > s.max || isnan(x[i])) s.max = x[i];
    }
    variance = sum2 / (double)n;
    s.sd = n > 1 ? sqrt(sum2 / (double)(n - 1)) : (double)NAN;
    s.skew = variance > 0 ? sum3 / (double)n / (variance * sqrt(variance)) : (double)NAN;
    s.kurtosis = variance > 0 ? sum4 / (double)n / (variance * variance) - 3 : (double)NAN;
    return s;
}

static int statsi_compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    if (isnan(x) || isnan(y)) return (isnan(x) ? 1 : 0) - (isnan(y) ? 1 : 0);
    return (x > y) - (x < y);
}

void stats_sort(double *x, size_t n)
{
    if (n) qsort(x, n, sizeof *x, statsi_compare);
}

double stats_quantile(const double *sorted, size_t n, double p)
{
    double position, part;
    size_t below;
    if (!n || !(p >= 0 && p <= 1) || isnan(sorted[n - 1])) return (double)NAN;
    position = p * (double)(n - 1);
    below = (size_t)position;
    part = position - (double)below;
    if (below + 1 >= n || part <= 0) return sorted[below];
    return sorted[below] + part * (sorted[below + 1] - sorted[below]);
}

double stats_larger(double a, double b)
{
    return isnan(a) || a >= b ? a : b;
}

double stats_smaller(double a, double b)
{
    return isnan(a) || a <= b ? a : b;
}

double stats_median(double *x, size_t n)
{
    stats_sort(x, n);
    while (n > 0 && isnan(x[n - 1])) n--;
    return stats_quantile(x, n, 0.5);
}

/* The bin of the value, or `bins` if it is outside. */
static size_t statsi_find_bin(const double *edges, size_t bins, double value)
{
    size_t low = 0, high = bins;
    if (!(value >= edges[0] && value <= edges[bins])) return bins;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (value >= edges[middle])
            low = middle;
        else
            high = middle;
    }
    return low;
}

size_t stats_histogram(const double *x, size_t n, const double *edges, size_t bins, double *density)
{
    size_t i, inside = 0;
    if (!bins) return n;
    for (i = 0; i < bins; i++) density[i] = 0;
    for (i = 0; i < n; i++) {
        size_t bin = statsi_find_bin(edges, bins, x[i]);
        if (bin == bins) continue;
        density[bin] += 1;
        inside++;
    }
    for (i = 0; i < bins && inside; i++) density[i] /= (double)inside * (edges[i + 1] - edges[i]);
    return n - inside;
}

double stats_bandwidth(const double *sorted, size_t n)
{
    double spread = stats_describe(sorted, n).sd;
    double range = (stats_quantile(sorted, n, 0.75) - stats_quantile(sorted, n, 0.25)) / 1.34;
    if (range > 0 && range < spread) spread = range;
    return 0.9 * spread * pow((double)n, -0.2);
}

int stats_kde(const double *x, size_t n, double bandwidth, const double *grid, size_t m,
              double *density)
{
    const double sqrt_2pi = 2.5066282746310005;
    size_t i, k;
    if (!n || !(bandwidth > 0) || isinf(bandwidth)) return -1;
    for (k = 0; k < m; k++) {
        double sum = 0;
        for (i = 0; i < n; i++) {
            double z = (grid[k] - x[i]) / bandwidth;
            sum += exp(-0.5 * z * z);
        }
        density[k] = sum / ((double)n * bandwidth * sqrt_2pi);
    }
    return 0;
}

void stats_running_mean(const double *x, size_t n, size_t window, double *out)
{
    size_t i, k;
    for (i = 0; i < n; i++) {
        const size_t first = i < window ? 0 : i + 1 - window;
        double sum = 0;
        for (k = first; k <= i; k++) sum += x[k];
        out[i] = sum / (double)(i + 1 - first);
    }
}

/* Abramowitz and Stegun 26.7.3 and 26.7.4: with whole degrees of freedom the distribution is a
   finite sum of powers of cos² = freedom / (freedom + t²). */
double stats_t_p(double t, size_t freedom)
{
    const double pi = 3.14159265358979323846;
    const double angle = atan(fabs(t) / sqrt((double)freedom));
    const double cosine = cos(angle);
    double term = freedom % 2 ? cosine : 1, sum = 0;
    size_t k;
    if (isnan(t) || !freedom) return (double)NAN;
    for (k = 2 + freedom % 2; k <= freedom; k += 2) {
        sum += term;
        term *= cosine * cosine * ((double)k - 1) / (double)k;
    }
    sum = freedom % 2 ? 2 / pi * (angle + sin(angle) * sum) : sin(angle) * sum;
    return sum < 1 - 1e-12 ? 1 - sum : 0; /* the rest is rounding */
}

double stats_t_quantile(double p, size_t freedom)
{
    double low = 0, high = 1;
    int i;
    if (!(p > 0 && p < 1) || !freedom) return (double)NAN;
    while (stats_t_p(high, freedom) > p && high < 1e300) high *= 2;
    for (i = 0; i < 200 && low < high; i++) {
        const double middle = low + (high - low) / 2;
        if (middle <= low || middle >= high) break;
        if (stats_t_p(middle, freedom) > p)
            low = middle;
        else
            high = middle;
    }
    return high;
}

double stats_discoveries(const double *p, size_t n, double level, double *q)
{
    double *sorted = (double *)malloc((n + 1) * sizeof *sorted), limit = 0;
    size_t i, k, tests = 0;
    if (!sorted) return -1;
    for (i = 0; i < n; i++) sorted[i] = p[i];
    stats_sort(sorted, n);
    while (tests < n && !isnan(sorted[tests])) tests++;
    for (i = 0; i < n; i++) {
        q[i] = isnan(p[i]) ? (double)NAN : 1;
        for (k = 0; k < tests; k++)
            if (sorted[k] >= p[i])
                q[i] = stats_smaller(q[i], sorted[k] * (double)tests / (double)(k + 1));
        if (q[i] <= level) limit = stats_larger(limit, p[i]);
    }
    free(sorted);
    return limit;
}

/* The finding of `n` differences, in the direction of the claim. */
static stats_finding statsi_find(const double *a, const double *b, double limit, size_t n, int sign,
                                 int size_met)
{
    stats_finding f;
    double sum = 0, sum2 = 0, p;
    size_t i;
    f.n = n;
    f.size_met = size_met;
    f.parts = 1;
    for (i = 0; i < n; i++) sum += a[i] - (b ? b[i] : limit);
    f.mean = n ? sum / (double)n : (double)NAN;
    for (i = 0; i < n; i++) {
        const double rest = a[i] - (b ? b[i] : limit) - f.mean;
        sum2 += rest * rest;
    }
    f.sd = n > 1 ? sqrt(sum2 / (double)(n - 1)) : (double)NAN;
    if (!n) f.n = 1; /* no fact, but nothing to judge by */
    if (sign < 0) f.mean = -f.mean;
    p = stats_p(&f);
    f.best_p = f.mean > 0 && p <= 1 ? p : 1;
    return f;
}

stats_finding stats_judge_pairs(const double *a, const double *b, size_t n, int sign, int size_met)
{
    return statsi_find(a, b, 0, n, sign, size_met);
}

stats_finding stats_judge_limit(const double *x, size_t n, double limit, int sign)
{
    return statsi_find(x, NULL, limit, n, sign, 1);
}

stats_finding stats_holds(int holds)
{
    return stats_holds_partly(holds, 0);
}

stats_finding stats_holds_partly(int holds, int partly)
{
    stats_finding f;
    f.n = 0;
    f.mean = holds || partly ? 1 : -1;
    f.sd = 0;
    f.size_met = holds;
    f.parts = 1;
    f.best_p = holds || partly ? 0 : 1;
    return f;
}

stats_finding stats_unknown(void)
{
    return stats_judge_limit(NULL, 0, 0, 1);
}

/* How much a finding says for the claim: t, and of facts more than any t. nan says nothing. */
static double statsi_for(const stats_finding *f)
{
    const double t = f->n ? stats_t_of(f) : f->mean * (double)INFINITY;
    return isnan(t) ? 0 : t;
}

/* Of two parts, is a the one that says less for the claim? One whose size is missed says less than
   any that is met, unless that one is against it. */
static int statsi_less(const stats_finding *a, const stats_finding *b)
{
    const int for_a = (int)stats_word(a, STATS_LEVEL);
    const int for_b = (int)stats_word(b, STATS_LEVEL);
    if (for_a != for_b) return for_a > for_b;
    return statsi_for(a) < statsi_for(b);
}

stats_finding stats_together(const stats_finding *part, size_t n)
{
    stats_finding f = n ? part[0] : stats_unknown();
    size_t i;
    for (i = 1; i < n; i++) {
        const size_t parts = f.parts + part[i].parts;
        const double best = stats_smaller(f.best_p, part[i].best_p);
        if (statsi_less(&part[i], &f)) f = part[i];
        f.parts = parts;
        f.best_p = best;
    }
    return f;
}

double stats_t_of(const stats_finding *f)
{
    return f->n > 1 ? stats_effect(f) * sqrt((double)f->n) : (double)NAN;
}

double stats_effect(const stats_finding *f)
{
    return f->n > 1 ? f->mean / f->sd : (double)NAN;
}

double stats_p(const stats_finding *f)
{
    return f->n > 1 ? stats_t_p(stats_t_of(f), f->n - 1) : (double)NAN;
}

stats_interval stats_interval_of(const stats_finding *f)
{
    stats_interval of = {(double)NAN, (double)NAN};
    if (f->n > 1) {
        const double half = stats_t_quantile(STATS_LEVEL, f->n - 1) * f->sd / sqrt((double)f->n);
        of.low = f->mean - half;
        of.high = f->mean + half;
    }
    return of;
}

stats_verdict stats_word(const stats_finding *f, double level)
{
    const double p = stats_p(f), effect = stats_effect(f), small = STATS_SMALL * f->sd;
    const stats_interval of = stats_interval_of(f);
    const int sure = f->n ? p <= level : 1;
    if (sure && f->mean > 0)
        return f->size_met && !(effect < STATS_SMALL) ? STATS_REPRODUCED : STATS_PARTLY;
    if (f->parts > 1 && f->best_p * (double)f->parts <= level) return STATS_PARTLY;
    if (sure && f->mean < 0) return STATS_NOT_REPRODUCED;
    if (of.low >= -small && of.high <= small) return STATS_NOT_REPRODUCED;
    return STATS_INCONCLUSIVE;
}

int stats_reproduced(stats_finding f)
{
    return stats_word(&f, STATS_LEVEL) == STATS_REPRODUCED;
}

int stats_most(size_t agree, size_t n)
{
    return 5 * agree >= 4 * n;
}

const char *stats_verdict_name(stats_verdict verdict)
{
    switch (verdict) {
    case STATS_REPRODUCED:
        return "reproduced";
    case STATS_PARTLY:
        return "partly reproduced";
    case STATS_INCONCLUSIVE:
        return "inconclusive";
    case STATS_NOT_REPRODUCED:
        return "not reproduced";
    }
    return "unknown";
}
