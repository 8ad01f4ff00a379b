/* stats.h - the few statistics that the experiments need, and the rule that turns differences
   between seeds into a verdict.

   An example:

       double with[] = {0.95, 0.96, 0.95, 0.97, 0.96}, without[] = {0.92, 0.93, 0.91, 0.93, 0.92};
       stats_paired d = stats_pair(with, without, 5);
       stats_summary s = stats_describe(with, 5);
       printf("%.3f +- %.3f: %s\n", s.mean, s.sd, stats_verdict_name(stats_judge(&d, +1, 1)));

   All sums are in double and in the order of the data, so the same data give the same results.
   Where a quantity is not defined (the mean of nothing, the standard deviation of one value) it is
   nan. nan in the data makes nan in the results, except where said otherwise.
*/
#ifndef STATS_H
#define STATS_H

#include <stddef.h>

typedef struct stats_summary {
    size_t n;
    double mean;
    double sd; /* sample standard deviation, divisor n-1                     */
    double se; /* standard error of the mean, sd / sqrt(n)                   */
    double min, max;
    double skew;     /* third central moment / variance^1.5, divisor n in both     */
    double kurtosis; /* fourth central moment / variance^2 - 3, divisor n in both  */
} stats_summary;

/* Differences of pairs, such as two arms of an experiment run with the same seeds. */
typedef struct stats_paired {
    size_t n;
    double mean, sd, se;       /* of a[i] - b[i]                */
    size_t positive, negative; /* how many differences are > 0, < 0 */
} stats_paired;

typedef enum stats_verdict {
    STATS_REPRODUCED,
    STATS_PARTLY,
    STATS_INCONCLUSIVE,
    STATS_NOT_REPRODUCED
} stats_verdict;

/* The summary of `x[n]`. */
stats_summary stats_describe(const double *x, size_t n);

/* Its mean alone. */
double stats_mean(const double *x, size_t n);

/* Sorts `x[n]` upwards in place; nan goes to the end. */
void stats_sort(double *x, size_t n);

/* The quantile 0 <= p <= 1 of the sorted `x[n]`, with linear interpolation between the order
   statistics (x[0] is the quantile 0, x[n-1] the quantile 1; "type 7"). p = 0.5 is the median.
   Between two that are infinite there is none: nan. */
double stats_quantile(const double *sorted, size_t n, double p);

/* The larger and the smaller of two, nan if one of them is: a maximum made with fmax would lose it,
   and a check of "at most" would pass on numbers that are none. */
double stats_larger(double a, double b);
double stats_smaller(double a, double b);

/* The median of the values of `x[n]` that are not nan; nan if there are none. Sorts x. */
double stats_median(double *x, size_t n);

/* Histogram of `x[n]` over the `bins` intervals between the increasing `edges[bins+1]`. Each takes
   its left edge in, the last one its right edge too. `density[bins]` integrates to 1 over the
   values inside (all 0 if there are none). Returns the number of values outside, nan included. */
size_t stats_histogram(const double *x, size_t n, const double *edges, size_t bins,
                       double *density);

/* Silverman's bandwidth 0.9 min(sd, interquartile range / 1.34) n^(-1/5) of the sorted `x[n]`. A
   range of 0 is left out of the minimum. 0 if all values are equal, nan for fewer than 2. */
double stats_bandwidth(const double *sorted, size_t n);

/* Gaussian kernel density of `x[n]` at the points `grid[m]`, into `density[m]`. Returns 0, or -1
   without writing if n is 0 or `bandwidth` is not positive and finite. */
int stats_kde(const double *x, size_t n, double bandwidth, const double *grid, size_t m,
              double *density);

/* out[i] = mean of the last `window` values x[i-window+1] ... x[i]; the first ones, which have
   fewer before them, take all there are. window >= 1; `out[n]` must not be `x`. Sums never
   subtract, so a single huge, infinite or nan value does no harm beyond its window. */
void stats_running_mean(const double *x, size_t n, size_t window, double *out);

/* The differences a[i] - b[i] of `n` pairs. */
stats_paired stats_pair(const double *a, const double *b, size_t n);

/* The verdict on a claim about the differences `d`: `sign` is +1 if it says a > b, -1 if a < b;
   `magnitude_met` is 1 if the size that the claim states is met, or if it states none.

       inconclusive     |mean| <= 2 standard errors, or nothing to judge by (1 pair, nan)
       reproduced       the stated sign in at least 80 % of the pairs, and the magnitude is met
       partly           the stated sign in at least 80 % of the pairs, but not the magnitude
       not reproduced   the opposite sign in at least 80 % of the pairs
       inconclusive     anything else: the pairs do not agree

   The first line that applies counts. The mean must have the sign of the majority, otherwise the
   pairs do not agree either. */
stats_verdict stats_judge(const stats_paired *d, int sign, int magnitude_met);

/* stats_judge on the differences of `n` pairs a[i] - b[i]. */
stats_verdict stats_judge_pairs(const double *a, const double *b, size_t n, int sign,
                                int magnitude_met);

/* The verdict on a claim that x is above (`sign` +1) or below (-1) a limit: stats_judge on the
   distances x[i] - limit, so that a mean on the right side is not enough. */
stats_verdict stats_judge_limit(const double *x, size_t n, double limit, int sign);

/* Do enough of `n` pairs (or seeds) agree, 80 % of them? */
int stats_most(size_t agree, size_t n);

/* The verdict on a claim that either holds or does not. */
stats_verdict stats_holds(int holds);

/* The verdict on a claim that holds, holds in part, or does not; `partly` counts if it does not
   hold wholly. */
stats_verdict stats_holds_partly(int holds, int partly);

/* The verdict on a claim of `n` parts: that of the parts if they agree; else partly reproduced if
   at least one part is, wholly or partly; else inconclusive. */
stats_verdict stats_together(const stats_verdict *part, size_t n);

/* For a claim that asks for each of its parts in so many words: the weakest of their verdicts, from
   reproduced over partly and inconclusive down to not reproduced. */
stats_verdict stats_weakest(const stats_verdict *part, size_t n);

/* "reproduced", "partly reproduced", "inconclusive" or "not reproduced". */
const char *stats_verdict_name(stats_verdict verdict);

#endif /* STATS_H */
