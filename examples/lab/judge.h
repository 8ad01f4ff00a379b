/* judge.h - claims as a table, and numbers of which there is one for each seed.

   A program's claims stand in one table, in the order of its page; lab_judge goes through it. What
   compares two arms, or an arm with a limit, is judged by the row itself; anything else by a
   function that the row names. An example:

       static const lab_claim claims[] = {
           {"9a", "Batch norm trains faster", "Somebody 2015", "0.1 against 0.3",
            "lower loss at step 99", "none", LAB_TRAINING, LAB_SETTING,
            .test = LAB_LESS, .a = BATCH, .b = NONE, .series = "loss", .at = 99, .decimals = 3},
           {"9b", "... twice as fast", "ours", "no numbers", "half the steps to 0.5", "none",
            LAB_TRAINING, LAB_SETTING, .judge = judge_steps}};

       static void judge_steps(lab_report *r, const lab_claim *c)
       {
           const lab_numbers a = lab_all(r, BATCH, "steps", 0), b = lab_all(r, NONE, "steps", 0);
           lab_verdict(r, c, lab_less(a, lab_times(b, 0.5), 1), "", "%s against %s",
                       lab_pm(r, a, 0), lab_pm(r, b, 0));
       }

   A claim of several parts has them as a list, and says in which order their numbers are told: $1
   is the first one's a, $2 its b, and so on, in `say` and in `remark`, #1 the mean of $1 alone. All
   of them are tested:

       LAB_PARTS({LAB_LESS, BATCH, NONE, "loss", 50}, {LAB_LESS, LAYER, NONE, "loss", 50}),
       .decimals = 3, .say = "batch norm $1, layer norm $3, none $2"

   $1[2] has two decimals, $1[100 2] tells it in per cent. After # stand the mean, or the largest or
   the smallest of the seeds, a hundred times it or ten to its power, and a format: #1[%.1e],
   #1[max 100 %.1f], #1[10^%.2g]; #2-1[10^%.2g] is of the difference of two means, #2/1[%.1f] of
   their ratio, #1..8[max %.1f] the largest of eight. #! is in how many of the parts that are tested
   the means are as the claim says.
*/
#ifndef JUDGE_H
#define JUDGE_H

#include "lab.h"

enum {
    LAB_BY_FUNCTION, /* of a part: no test, but a number to tell */
    LAB_MORE,  /* the series of arm a is above that of arm b, seed by seed: "$1 against $2"; where
                 the claim states a size, in the means by `limit` at least, or `times` as large,
                 or with the means within a_mean and b_mean; with `tolerance`: above that of b
                 less the tolerance */
    LAB_LESS,  /* below */
    LAB_ABOVE, /* that of arm a is above `limit`: "$1" */
    LAB_BELOW,
    LAB_WITHIN, /* that of arm a is within `tolerance` of `limit` */
    LAB_EXACT   /* all values of all seeds are below `limit`: "$1", the largest, as 1e-16; the exact
                   parts of a claim are one fact together                                       */
};

typedef struct lab_part { /* as in a claim */
    int test;
    size_t a, b;
    const char *series;
    double at, limit, tolerance, times;
    const char *other; /* of b; NULL: the same series */
    double other_at;   /* of b; 0: the same x         */
    double (*each)(const lab_report *r, size_t arm, size_t seed);
    double to; /* above 0: means over at <= x <= to; of LAB_EXACT the values there */
    double a_mean[2], b_mean[2];
    int most; /* 1: most of the seeds (stats_most) are within a_mean and b_mean too */
} lab_part;

/* clang-format off */
#define LAB_PARTS(...) .part = (const lab_part[]){__VA_ARGS__, {0}}
/* clang-format on */

/* Judges all claims of the program in their order. */
void lab_judge(lab_report *r);

/* ---- one number for each seed (lab_all) ---- */

/* The mean, and the largest, of those values of a series that lie at from <= x <= to (nan if there
   are none, or one is nan). */
lab_numbers lab_mean_over(const lab_report *r, size_t arm, const char *series, double from,
                          double to);
lab_numbers lab_most_over(const lab_report *r, size_t arm, const char *series, double from,
                          double to);

/* What a function makes of each seed. */
lab_numbers lab_each(const lab_report *r, size_t arm,
                     double (*of)(const lab_report *r, size_t arm, size_t seed));

/* Seed by seed: a op b with + - * or /; a plus, or times, a number; a function, such as log. */
lab_numbers lab_calc(lab_numbers a, char op, lab_numbers b);
lab_numbers lab_plus(lab_numbers a, double number);
lab_numbers lab_times(lab_numbers a, double factor);
lab_numbers lab_map(lab_numbers a, double (*function)(double));

/* The errors in per cent of accuracies from 0 to 1. */
lab_numbers lab_errors(lab_numbers accuracy);

stats_summary lab_describe(lab_numbers a);
double lab_average(lab_numbers a);
stats_finding lab_more(lab_numbers a, lab_numbers b, int size_met);
stats_finding lab_less(lab_numbers a, lab_numbers b, int size_met);
stats_finding lab_above(lab_numbers a, double limit);
stats_finding lab_below(lab_numbers a, double limit);
stats_finding lab_within(lab_numbers a, double target, double tolerance);

/* "0.912 ± 0.004"; with -2 decimals to two digits, ± to one: "9.1e-05 ± 4e-06". The same of one
   series. */
const char *lab_pm(lab_report *r, lab_numbers a, int decimals);
const char *lab_text(lab_report *r, size_t arm, const char *series, double x, int decimals);

/* The largest of all values of a series, of all seeds; nan if one is, or a seed has none. */
double lab_largest(const lab_report *r, size_t arm, const char *series);

/* The largest |value| of a series over all runs that have it; nan if none has, or one is nan. */
double lab_worst(const lab_report *r, const char *series);

/* The smallest value of a series at x over all runs of the arms from the first to the last; nan if
   one has none, or is nan. */
double lab_least(const lab_report *r, size_t first, size_t last, const char *series, double x);

/* Of the straight line through the values of a series at from <= x <= to, by least squares; `logs`:
   through the logarithms of x and value. */
double lab_slope(const lab_report *r, size_t arm, size_t seed, const char *series, double from,
                 double to, int logs);

/* On how many decades of x, from <= x <= to, a series is above `level`: straight lines between its
   values, against log10 of x. nan if it has none there, or one is nan. */
double lab_decades_above(const lab_report *r, size_t arm, size_t seed, const char *series,
                         double level, double from, double to);

/* In quick runs: of all trainings that were done twice, are all as without a look? (trainer.h) */
void lab_check_same_bits(lab_report *r);

#endif /* JUDGE_H */
