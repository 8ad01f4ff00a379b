/* judge.c - see judge.h. */
#include "judge.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

lab_numbers lab_all(const lab_report *r, size_t arm, const char *series, double x)
{
    lab_numbers a;
    a.n = lab_values(r, arm, series, x, a.of);
    return a;
}

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

stats_summary lab_describe(lab_numbers a)
{
    return stats_describe(a.of, a.n);
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
    return lab_mean_sd(r, s, decimals);
}

double lab_largest(const lab_report *r, size_t arm, const char *series)
{
    double most = (double)-INFINITY;
    size_t s, i;
    for (s = 0; s < lab_seeds(r, arm); s++) {
        const lab_series one = lab_get(r, arm, s, series);
        if (one.n == 0) return (double)NAN;
        for (i = 0; i < one.n; i++) most = stats_larger(most, one.y[i]);
    }
    return most;
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

const lab_claim *lab_find(const lab_report *r, const char *id)
{
    const lab_program *program = lab_program_of(r);
    size_t i;
    for (i = 0; i < program->claims; i++)
        if (strcmp(program->claim[i].id, id) == 0) return &program->claim[i];
    fprintf(stderr, "%s: there is no claim %s\n", program->name, id);
    exit(1);
}

static lab_numbers judgei_values(const lab_report *r, const lab_part *p, int of_b)
{
    const size_t arm = of_b ? p->b : p->a;
    if (p->each) return lab_each(r, arm, p->each);
    return lab_all(r, arm, of_b && p->other ? p->other : p->series,
                   of_b && p->other_at > 0 ? p->other_at : p->at);
}

static stats_finding judgei_test(const lab_part *p, lab_numbers a, lab_numbers b)
{
    const double apart = p->limit > 0 ? lab_describe(a).mean - lab_describe(b).mean : 0;
    switch (p->test) {
    case LAB_MORE:
        return lab_more(a, b, p->limit > 0 ? apart >= p->limit : 1);
    case LAB_LESS:
        return lab_less(a, b, p->limit > 0 ? -apart >= p->limit : 1);
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

/* `say` with the n-th text for $n. */
static const char *judgei_say(lab_report *r, const char *say, const char *const *text)
{
    const char *done = "", *at;
    while ((at = strchr(say, '$')) != NULL) {
        char *end;
        const size_t n = (size_t)strtoul(at + 1, &end, 10);
        done = lab_format(r, "%s%.*s%s", done, (int)(at - say), say, n > 0 ? text[n - 1] : "");
        say = end;
    }
    return lab_format(r, "%s%s", done, say);
}

/* A claim without a function: what its parts, or the row itself, compare. */
static void judgei_claim(lab_report *r, const lab_claim *c)
{
    const lab_part row[2] = {
        {c->test, c->a, c->b, c->series, c->at, c->limit, c->tolerance, NULL, 0, c->each}};
    const lab_part *p = c->part ? c->part : row;
    const char *text[2 * JUDGEI_PARTS], *remark = c->remark ? c->remark : "";
    stats_finding found[JUDGEI_PARTS];
    size_t parts = 0, texts = 0, exact = 0, held = 0;
    for (; (p->series || p->each) && parts + exact < JUDGEI_PARTS; p++) {
        const int pair = p->test == LAB_MORE || p->test == LAB_LESS;
        const lab_numbers a = judgei_values(r, p, 0), b = pair ? judgei_values(r, p, 1) : a;
        text[texts++] = p->test == LAB_EXACT
                            ? lab_format(r, "%.*e", c->decimals, lab_largest(r, p->a, p->series))
                            : lab_pm(r, a, c->decimals);
        if (pair) text[texts++] = lab_pm(r, b, c->decimals);
        if (p->test == LAB_EXACT) {
            exact++;
            held += lab_largest(r, p->a, p->series) < p->limit;
        } else if (p->test)
            found[parts++] = judgei_test(p, a, b);
    }
    if (exact) found[parts++] = stats_holds(held == exact);
    lab_verdict(r, c,
                parts == 1 ? found[0]
                : parts    ? stats_together(found, parts)
                           : stats_unknown(),
                judgei_say(r, remark, text), "%s",
                judgei_say(r,
                           c->say      ? c->say
                           : texts > 1 ? "$1 against $2"
                                       : "$1",
                           text));
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
    lab_check(r, same && looked > 0,
              "quick runs: one that is looked at ends with the bits of one that is not", "%lu runs",
              (unsigned long)looked);
}
