/* judge.c - see judge.h. */
#include "judge.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static lab_numbers judgei_over(const lab_report *r, size_t arm, const char *series, double from,
                               double to, int most)
{
    lab_numbers a;
    size_t s, i;
    a.n = lab_seeds(r, arm);
    for (s = 0; s < a.n; s++) {
        const lab_series one = lab_get(r, arm, s, series);
        double sum = 0, largest = (double)-INFINITY, count = 0;
        for (i = 0; i < one.n; i++) {
            if (one.x[i] < from || one.x[i] > to) continue;
            sum += one.y[i];
            largest = stats_larger(largest, one.y[i]);
            count++;
        }
        a.of[s] = count > 0 ? (most ? largest : sum / count) : (double)NAN;
    }
    return a;
}

lab_numbers lab_mean_over(const lab_report *r, size_t arm, const char *series, double from,
                          double to)
{
    return judgei_over(r, arm, series, from, to, 0);
}

lab_numbers lab_most_over(const lab_report *r, size_t arm, const char *series, double from,
                          double to)
{
    return judgei_over(r, arm, series, from, to, 1);
}

lab_numbers lab_each(const lab_report *r, size_t arm,
                     double (*of)(const lab_report *r, size_t arm, size_t seed))
{
    lab_numbers a;
    size_t s;
    a.n = lab_seeds(r, arm);
    for (s = 0; s < a.n; s++) a.of[s] = of(r, arm, s);
    return a;
}

lab_numbers lab_calc(lab_numbers a, char op, lab_numbers b)
{
    size_t s;
    if (b.n < a.n) a.n = b.n;
    for (s = 0; s < a.n; s++) {
        if (op == '+') a.of[s] += b.of[s];
        if (op == '-') a.of[s] -= b.of[s];
        if (op == '*') a.of[s] *= b.of[s];
        if (op == '/') a.of[s] /= b.of[s];
    }
    return a;
}

lab_numbers lab_plus(lab_numbers a, double number)
{
    size_t s;
    for (s = 0; s < a.n; s++) a.of[s] += number;
    return a;
}

lab_numbers lab_times(lab_numbers a, double factor)
{
    size_t s;
    for (s = 0; s < a.n; s++) a.of[s] *= factor;
    return a;
}

lab_numbers lab_map(lab_numbers a, double (*function)(double))
{
    size_t s;
    for (s = 0; s < a.n; s++) a.of[s] = function(a.of[s]);
    return a;
}

lab_numbers lab_errors(lab_numbers accuracy)
{
    return lab_plus(lab_times(accuracy, -100), 100);
}

stats_summary lab_describe(lab_numbers a)
{
    return stats_describe(a.of, a.n);
}

double lab_average(lab_numbers a)
{
    return lab_describe(a).mean;
}

stats_finding lab_more(lab_numbers a, lab_numbers b, int size_met)
{
    return stats_judge_pairs(a.of, b.of, a.n < b.n ? a.n : b.n, +1, size_met);
}

stats_finding lab_less(lab_numbers a, lab_numbers b, int size_met)
{
    return stats_judge_pairs(a.of, b.of, a.n < b.n ? a.n : b.n, -1, size_met);
}

stats_finding lab_above(lab_numbers a, double limit)
{
    return stats_judge_limit(a.of, a.n, limit, +1);
}

stats_finding lab_below(lab_numbers a, double limit)
{
    return stats_judge_limit(a.of, a.n, limit, -1);
}

stats_finding lab_within(lab_numbers a, double target, double tolerance)
{
    size_t s;
    for (s = 0; s < a.n; s++) a.of[s] = fabs(a.of[s] - target);
    return lab_below(a, tolerance);
}

const char *lab_pm(lab_report *r, lab_numbers a, int decimals)
{
    const stats_summary s = lab_describe(a);
    if (decimals < 0) return lab_format(r, "%.*g ± %.1g", -decimals, s.mean, s.sd);
    if (s.n < 2) return lab_format(r, "%.*f", decimals, s.mean);
    return lab_format(r, "%.*f ± %.*f", decimals, s.mean, decimals, s.sd);
}

const char *lab_text(lab_report *r, size_t arm, const char *series, double x, int decimals)
{
    return lab_pm(r, lab_all(r, arm, series, x), decimals);
}

double lab_largest(const lab_report *r, size_t arm, const char *series)
{
    return lab_describe(lab_most_over(r, arm, series, (double)-INFINITY, (double)INFINITY)).max;
}

double lab_worst(const lab_report *r, const char *series)
{
    double most = (double)-INFINITY;
    size_t arm, s, i;
    for (arm = 0; arm < lab_program_of(r)->arms; arm++)
        for (s = 0; s < lab_seeds(r, arm); s++) {
            const lab_series one = lab_get(r, arm, s, series);
            for (i = 0; i < one.n; i++) most = stats_larger(most, fabs(one.y[i]));
        }
    return most < 0 ? (double)NAN : most;
}

double lab_least(const lab_report *r, size_t first, size_t last, const char *series, double x)
{
    double least = (double)INFINITY;
    size_t s;
    for (; first <= last; first++)
        for (s = 0; s < lab_seeds(r, first); s++)
            least = stats_smaller(least, lab_at(r, first, s, series, x));
    return least;
}

double lab_slope(const lab_report *r, size_t arm, size_t seed, const char *series, double from,
                 double to, int logs)
{
    const lab_series s = lab_get(r, arm, seed, series);
    double n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
    size_t i;
    for (i = 0; i < s.n; i++) {
        const double x = logs ? log(s.x[i]) : s.x[i], y = logs ? log(s.y[i]) : s.y[i];
        if (s.x[i] < from || s.x[i] > to) continue;
        n += 1;
        sx += x;
        sy += y;
        sxx += x * x;
        sxy += x * y;
    }
    return (n * sxy - sx * sy) / (n * sxx - sx * sx);
}

double lab_decades_above(const lab_report *r, size_t arm, size_t seed, const char *series,
                         double level, double from, double to)
{
    const lab_series s = lab_get(r, arm, seed, series);
    double sum = s.n > 0 ? 0 : (double)NAN;
    size_t i;
    for (i = 1; i < s.n; i++) {
        const double a = s.y[i - 1] - level, b = s.y[i] - level;
        const double decades = log10(s.x[i] / s.x[i - 1]);
        if (s.x[i - 1] < from || s.x[i] > to) continue;
        if (isnan(a) || isnan(b)) return (double)NAN;
        if (a > 0 && b > 0) sum += decades;
        if ((a > 0) != (b > 0)) sum += decades * fmax(a, b) / fabs(a - b);
    }
    return sum;
}

static lab_numbers judgei_values(const lab_report *r, const lab_part *p, int of_b)
{
    const size_t arm = of_b ? p->b : p->a;
    const char *series = of_b && p->other ? p->other : p->series;
    if (p->each) return lab_each(r, arm, p->each);
    if (p->to > 0) return lab_mean_over(r, arm, series, p->at, p->to);
    return lab_all(r, arm, series, of_b && p->other_at > 0 ? p->other_at : p->at);
}

/* Is the mean within this range, and with `most` also the value of most seeds? */
static int judgei_in(const double range[2], lab_numbers a, int most)
{
    const double mean = lab_average(a);
    size_t s, in = 0;
    if (!(range[0] < range[1])) return 1;
    for (s = 0; s < a.n; s++) in += a.of[s] >= range[0] && a.of[s] <= range[1];
    return mean >= range[0] && mean <= range[1] && (!most || stats_most(in, a.n));
}

/* Is the size met that the claim states of the means? `sign`: is a more (+1) than b, or less? */
static int judgei_size(const lab_part *p, lab_numbers a, lab_numbers b, int sign)
{
    const double more = lab_describe(sign > 0 ? a : b).mean;
    const double less = lab_describe(sign > 0 ? b : a).mean;
    return (p->limit > 0 ? more - less >= p->limit : 1) &&
           (p->times > 0 ? more >= p->times * less : 1) && judgei_in(p->a_mean, a, p->most) &&
           judgei_in(p->b_mean, b, p->most);
}

static stats_finding judgei_test(const lab_part *p, lab_numbers a, lab_numbers b)
{
    switch (p->test) {
    case LAB_MORE:
        return lab_more(a, lab_plus(b, -p->tolerance), judgei_size(p, a, b, 1));
    case LAB_LESS:
        return lab_less(a, b, judgei_size(p, a, b, -1));
    case LAB_ABOVE:
        return lab_above(a, p->limit);
    case LAB_BELOW:
        return lab_below(a, p->limit);
    case LAB_WITHIN:
        return lab_within(a, p->limit, p->tolerance);
    }
    return stats_unknown();
}

enum { JUDGEI_PARTS = 12 };

typedef struct judgei_told { /* what $1, $2, ... stand for */
    lab_numbers of[2 * JUDGEI_PARTS];
    int exact[2 * JUDGEI_PARTS]; /* 1: the largest of all */
    size_t n, agree;             /* agree: parts that are, in the mean, as the claim says */
    int decimals;
} judgei_told;

/* What stands for "$1" or "#2[max %.1e]" and so on; `end`: behind it. */
static const char *judgei_value(lab_report *r, const judgei_told *told, const char *at, char **end)
{
    const size_t i = (size_t)strtoul(at + 1, end, 10) - 1;
    const char *how = "";
    const lab_numbers a = told->of[i < told->n ? i : 0];
    stats_summary s = lab_describe(a);
    double value;
    size_t k;
    if (at[1] == '!') {
        *end += 1;
        return lab_format(r, "%zu", told->agree);
    }
    if (*at == '#' && strncmp(*end, "..", 2) == 0)
        for (k = (size_t)strtoul(*end + 2, end, 10) - 1; k > i && k < told->n; k--) {
            s.min = stats_smaller(s.min, lab_describe(told->of[k]).min);
            s.max = stats_larger(s.max, lab_describe(told->of[k]).max);
        }
    if (*at == '#' && (**end == '-' || **end == '/')) {
        const int less = **end == '-';
        const double other = lab_average(told->of[strtoul(*end + 1, end, 10) - 1]);
        s.mean = less ? s.mean - other : s.mean / other;
    }
    if (**end == '[') {
        const size_t n = strcspn(*end, "]");
        how = lab_format(r, "%.*s", (int)n - 1, *end + 1);
        *end += n + 1;
    }
    if (i >= told->n) return "";
    if (*at == '$' && strncmp(how, "100 ", 4) == 0)
        return lab_pm(r, lab_times(a, 100), atoi(how + 4));
    if (*at == '$' && *how) return lab_pm(r, a, atoi(how));
    if (*at == '$' && !told->exact[i]) return lab_pm(r, a, told->decimals);
    value = strncmp(how, "max ", 4) == 0 ? s.max : strncmp(how, "min ", 4) == 0 ? s.min : s.mean;
    if (*how == 'm') how += 4;
    if (strncmp(how, "10^", 3) == 0) return lab_format(r, how + 3, pow(10, value));
    if (strncmp(how, "100 ", 4) == 0) return lab_format(r, how + 4, 100 * value);
    if (*how) return lab_format(r, how, value);
    return lab_format(r, *at == '$' ? "%.*e" : "%.*f", told->decimals, value);
}

static const char *judgei_say(lab_report *r, const char *say, const judgei_told *told)
{
    const char *done = "", *at;
    while ((at = strpbrk(say, "$#")) != NULL) {
        char *end;
        const char *value = judgei_value(r, told, at, &end);
        done = lab_format(r, "%s%.*s%s", done, (int)(at - say), say, value);
        say = end;
    }
    return lab_format(r, "%s%s", done, say);
}

static void judgei_tell(judgei_told *told, lab_numbers a, int exact)
{
    told->exact[told->n] = exact;
    told->of[told->n++] = a;
}

/* A claim without a function: what its parts, or the row itself, compare. */
static void judgei_claim(lab_report *r, const lab_claim *c)
{
    const lab_part row[2] = {{c->test, c->a, c->b, c->series, c->at, c->limit, c->tolerance,
                              c->times, .each = c->each, .to = c->to,
                              .a_mean = {c->a_mean[0], c->a_mean[1]},
                              .b_mean = {c->b_mean[0], c->b_mean[1]}}};
    const lab_part *p = c->part ? c->part : row;
    judgei_told told = {.decimals = c->decimals};
    stats_finding found[JUDGEI_PARTS];
    size_t parts = 0, exact = 0, held = 0;
    const char *say;
    for (; (p->series || p->each) && parts + exact < JUDGEI_PARTS; p++) {
        const int pair = p->test == LAB_MORE || p->test == LAB_LESS;
        const lab_numbers a = judgei_values(r, p, 0), b = pair ? judgei_values(r, p, 1) : a;
        if (p->test == LAB_EXACT) {
            const double most =
                p->to > 0 ? lab_describe(lab_most_over(r, p->a, p->series, p->at, p->to)).max
                          : lab_largest(r, p->a, p->series);
            judgei_tell(&told, (lab_numbers){1, {most}}, 1);
            held += most < p->limit;
            exact++;
            continue;
        }
        judgei_tell(&told, a, 0);
        if (pair) judgei_tell(&told, b, 0);
        if (p->test) {
            found[parts] = judgei_test(p, a, b);
            told.agree += found[parts++].mean > 0;
        }
    }
    if (exact) found[parts++] = stats_holds(held == exact);
    if (parts == 0) found[0] = stats_unknown();
    say = c->say ? c->say : told.n > 1 ? "$1 against $2" : "$1";
    lab_verdict(r, c, parts > 1 ? stats_together(found, parts) : found[0],
                judgei_say(r, c->remark ? c->remark : "", &told), "%s", judgei_say(r, say, &told));
}

void lab_judge(lab_report *r)
{
    const lab_program *program = lab_program_of(r);
    size_t i;
    for (i = 0; i < program->claims; i++)
        (program->claim[i].judge ? program->claim[i].judge : judgei_claim)(r, &program->claim[i]);
}

void lab_check_same_bits(lab_report *r)
{
    size_t a, s, looked = 0;
    int same = 1;
    if (!lab_quick(r)) return;
    for (a = 0; a < lab_program_of(r)->arms; a++)
        for (s = 0; s < lab_seeds(r, a); s++) {
            if (lab_get(r, a, s, "same_bits").n == 0) continue;
            looked++;
            if (lab_at(r, a, s, "same_bits", 0) != 1) same = 0;
        }
    if (!looked && !(lab_program_of(r)->uses & LAB_TWICE)) return;
    lab_check(r, same && looked > 0,
              "quick runs: one that is looked at ends with the bits of one that is not", "%lu runs",
              (unsigned long)looked);
}
