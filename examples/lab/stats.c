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
    s.se = s.sd / sqrt((double)n);
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

/* The data are cut into blocks as long as the window. A window then is the end of one block and
   the beginning of the next, and both parts are running sums that only ever add. */
void stats_running_mean(const double *x, size_t n, size_t window, double *out)
{
    size_t block, i;
    double sum = 0;
    if (!n || !window) return;
    if (window > n) window = n;
    for (i = n; i-- > 0;) { /* out[i] = sum of x from i to the end of its block */
        if ((i + 1) % window == 0) sum = 0;
        sum += x[i];
        out[i] = sum;
    }
    /* From the last block to the first, so that the sums of the one before are still there. */
    for (block = (n - 1) / window + 1; block-- > 0;) {
        size_t first = block * window;
        size_t end = n - first < window ? n : first + window;
        for (i = first, sum = 0; i < end; i++) {
            size_t here = i - first + 1; /* values of this block in the window of i */
            double before = block && here < window ? out[i + 1 - window] : 0;
            sum += x[i];
            out[i] = (before + sum) / (double)(block ? window : here);
        }
    }
}

stats_paired stats_pair(const double *a, const double *b, size_t n)
{
    stats_paired d;
    double sum = 0, sum2 = 0;
    size_t i;
    d.n = n;
    d.positive = d.negative = 0;
    for (i = 0; i < n; i++) {
        sum += a[i] - b[i];
        d.positive += a[i] > b[i] ? 1u : 0u;
        d.negative += a[i] < b[i] ? 1u : 0u;
    }
    d.mean = n ? sum / (double)n : (double)NAN;
    for (i = 0; i < n; i++) {
        double rest = a[i] - b[i] - d.mean;
        sum2 += rest * rest;
    }
    d.sd = n > 1 ? sqrt(sum2 / (double)(n - 1)) : (double)NAN;
    d.se = d.sd / sqrt((double)n);
    return d;
}

stats_verdict stats_judge(const stats_paired *d, int sign, int magnitude_met)
{
    const size_t stated = sign > 0 ? d->positive : d->negative;
    const size_t opposite = sign > 0 ? d->negative : d->positive;
    const double mean = sign > 0 ? d->mean : -d->mean;
    if (d->n < 2 || !(fabs(mean) > 2 * d->se)) return STATS_INCONCLUSIVE; /* nan ends here too */
    if (mean > 0 && stats_most(stated, d->n)) return stats_holds_partly(magnitude_met, 1);
    if (mean < 0 && stats_most(opposite, d->n)) return STATS_NOT_REPRODUCED;
    return STATS_INCONCLUSIVE;
}

stats_verdict stats_judge_pairs(const double *a, const double *b, size_t n, int sign,
                                int magnitude_met)
{
    const stats_paired pairs = stats_pair(a, b, n);
    return stats_judge(&pairs, sign, magnitude_met);
}

stats_verdict stats_judge_limit(const double *x, size_t n, double limit, int sign)
{
    const stats_summary s = stats_describe(x, n);
    stats_paired d;
    size_t i;
    d.n = n;
    d.mean = s.mean - limit;
    d.sd = s.sd;
    d.se = s.se;
    d.positive = d.negative = 0;
    for (i = 0; i < n; i++) {
        d.positive += x[i] > limit ? 1u : 0u;
        d.negative += x[i] < limit ? 1u : 0u;
    }
    return stats_judge(&d, sign, 1);
}

int stats_most(size_t agree, size_t n)
{
    return 5 * agree >= 4 * n;
}

stats_verdict stats_holds(int holds)
{
    return stats_holds_partly(holds, 0);
}

stats_verdict stats_holds_partly(int holds, int partly)
{
    return holds ? STATS_REPRODUCED : partly ? STATS_PARTLY : STATS_NOT_REPRODUCED;
}

stats_verdict stats_together(const stats_verdict *part, size_t n)
{
    size_t i, same = 0, some = 0;
    for (i = 0; i < n; i++) {
        same += part[i] == part[0] ? 1u : 0u;
        some += part[i] == STATS_REPRODUCED || part[i] == STATS_PARTLY ? 1u : 0u;
    }
    if (n > 0 && same == n) return part[0];
    return some > 0 ? STATS_PARTLY : STATS_INCONCLUSIVE;
}

stats_verdict stats_weakest(const stats_verdict *part, size_t n)
{
    stats_verdict weakest = n > 0 ? part[0] : STATS_INCONCLUSIVE;
    size_t i;
    for (i = 1; i < n; i++)
        if (part[i] > weakest) weakest = part[i];
    return weakest;
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
