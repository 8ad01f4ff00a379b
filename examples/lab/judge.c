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
    return lab_mean_sd(r, lab_describe(a), decimals);
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

const lab_claim *lab_find(const lab_report *r, const char *id)
{
    const lab_program *program = lab_program_of(r);
    size_t i;
    for (i = 0; i < program->claims; i++)
        if (strcmp(program->claim[i].id, id) == 0) return &program->claim[i];
    fprintf(stderr, "%s: there is no claim %s\n", program->name, id);
    exit(1);
}

static stats_finding judgei_row(const lab_report *r, const lab_claim *c)
{
    const lab_numbers a = lab_all(r, c->a, c->series, c->at);
    switch (c->test) {
    case LAB_MORE:
        return lab_more(a, lab_all(r, c->b, c->series, c->at), 1);
    case LAB_LESS:
        return lab_less(a, lab_all(r, c->b, c->series, c->at), 1);
    case LAB_ABOVE:
        return lab_above(a, c->limit);
    case LAB_BELOW:
        return lab_below(a, c->limit);
    case LAB_WITHIN:
        return lab_within(a, c->limit, c->tolerance);
    }
    return stats_unknown();
}

void lab_judge(lab_report *r)
{
    const lab_program *program = lab_program_of(r);
    size_t i;
    for (i = 0; i < program->claims; i++) {
        const lab_claim *c = &program->claim[i];
        const char *remark = c->remark ? c->remark : "";
        if (c->judge)
            c->judge(r, c);
        else if (c->test == LAB_MORE || c->test == LAB_LESS)
            lab_verdict(r, c, judgei_row(r, c), remark, "%s against %s",
                        lab_text(r, c->a, c->series, c->at, c->decimals),
                        lab_text(r, c->b, c->series, c->at, c->decimals));
        else
            lab_verdict(r, c, judgei_row(r, c), remark, "%s",
                        lab_text(r, c->a, c->series, c->at, c->decimals));
    }
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
