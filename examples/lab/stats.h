/* stats.h - the few statistics that the experiments need, and the one rule that turns what was
   found into a verdict.

   An example:

       double with[] = {0.95, 0.96, 0.95, 0.97, 0.96}, without[] = {0.92, 0.93, 0.91, 0.93, 0.92};
       stats_finding d = stats_judge_pairs(with, without, 5, +1, 1);
       stats_interval of = stats_interval_of(&d);
       printf("%.3f, 95 %% interval %.3f to %.3f: %s\n", d.mean, of.low, of.high,
              stats_verdict_name(stats_word(&d, STATS_LEVEL)));

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
    double min, max;
    double skew;     /* third central moment / variance^1.5, divisor n in both     */
    double kurtosis; /* fourth central moment / variance^2 - 3, divisor n in both  */
} stats_summary;

/* What was found about a claim: differences between pairs, such as two arms of an experiment run
   with the same seeds, or distances from a limit, in the direction that the claim states; or a
   fact, which has no spread. Of a claim of several parts it is the part that says least for it. */
typedef struct stats_finding {
    size_t n;        /* pairs or seeds; 0: a fact                                         */
    double mean, sd; /* of the differences; above 0: as the claim says. Of a fact: 1 or -1 */
    int size_met;    /* 1: the size that the claim states is met, or it states none       */
    size_t parts;    /* of the claim: 1 or more                                           */
    double best_p;   /* the smallest p of a part that is as the claim says; 1: of none    */
} stats_finding;

typedef struct stats_interval {
    double low, high;
} stats_interval;

typedef enum stats_verdict {
    STATS_REPRODUCED,
    STATS_PARTLY,
    STATS_INCONCLUSIVE,
    STATS_NOT_REPRODUCED
} stats_verdict;

#define STATS_LEVEL 0.05 /* of significance; intervals are of 1 - STATS_LEVEL */
#define STATS_SMALL 0.5  /* an effect below it is lost among the seeds        */

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
   fewer before them, take all there are. window >= 1; `out[n]` must not be `x`. */
void stats_running_mean(const double *x, size_t n, size_t window, double *out);

/* ---- Student's t, and many tests at once ---- */

/* The probability that |t| with so many degrees of freedom is larger than |t| by chance. */
double stats_t_p(double t, size_t freedom);

/* The t whose probability is p, 0 < p < 1. */
double stats_t_quantile(double p, size_t freedom);

/* Benjamini and Hochberg (1995): into `q[n]` the smallest share of false discoveries at which the
   test with `p[i]` is still one. p of nan, no test, gets nan. Returns the largest p whose q is at
   most `level`, or 0 if there is none. Holds for independent tests and for those that go together.
   -1 if memory is out. */
double stats_discoveries(const double *p, size_t n, double level, double *q);

/* ---- from differences to a verdict ---- */

/* The differences a[i] - b[i] of `n` pairs, for a claim that says a > b (`sign` +1) or a < b (-1).
   `size_met` is 1 if the size that the claim states is met, or if it states none. */
stats_finding stats_judge_pairs(const double *a, const double *b, size_t n, int sign, int size_met);

/* The distances x[i] - limit, for a claim that x is above (`sign` +1) or below (-1) it. */
stats_finding stats_judge_limit(const double *x, size_t n, double limit, int sign);

/* A claim that either holds or does not, whatever the seed. */
stats_finding stats_holds(int holds);

/* A claim that holds, holds in part, or does not; `partly` counts if it does not hold wholly. */
stats_finding stats_holds_partly(int holds, int partly);

/* Nothing to judge by. */
stats_finding stats_unknown(void);

/* A claim of `n` parts: the one that says least for it. Parts may have parts. */
stats_finding stats_together(const stats_finding *part, size_t n);

/* The mean in standard errors, that in standard deviations (Cohen's d of pairs), the two-sided p of
   Student's t, and the interval of the mean. Of a fact, of one value and of values that are none:
   nan. Where no two seeds differ, t and effect are infinite or, of a mean of 0, nan. */
double stats_t_of(const stats_finding *f);
double stats_effect(const stats_finding *f);
double stats_p(const stats_finding *f);
stats_interval stats_interval_of(const stats_finding *f);

/* The verdict on a claim, the same rule for all:

       reproduced       the difference is as the claim says: p at most `level`; it is at least
                        STATS_SMALL standard deviations, and as large as the claim says
       partly           the direction is as the claim says, but not the size; or, of a claim of
                        several parts, some are as it says (p at most level / parts)
       not reproduced   the opposite, p at most `level`; or, at STATS_LEVEL, the effect lies within
                        STATS_SMALL of 0: there is no difference to speak of; or a fact that is none
       inconclusive     anything else

   The level is STATS_LEVEL, or what stats_discoveries leaves of it where there are many claims. */
stats_verdict stats_word(const stats_finding *f, double level);

/* The same at STATS_LEVEL: is the claim reproduced? */
int stats_reproduced(stats_finding f);

/* Do enough of `n` agree, 80 % of them? */
int stats_most(size_t agree, size_t n);

/* "reproduced", "partly reproduced", "inconclusive" or "not reproduced". */
const char *stats_verdict_name(stats_verdict verdict);

#endif /* STATS_H */
