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

/* Is the size met that the claim states of the means? `sign`: is a more (+1) than b, or less? */
static int judgei_size(const lab_part *p, lab_numbers a, lab_numbers b, int sign)
{
    const double more = lab_describe(sign > 0 ? a : b).mean;
    const double less = lab_describe(sign > 0 ? b : a).mean;
    return (p->limit > 0 ? more - less >= p->limit : 1) &&
           (p->times > 0 ? more >= p->times * less : 1);
}

static stats_finding judgei_test(const lab_part *p, lab_numbers a, lab_numbers b)
{
    switch (p->test) {
    case LAB_MORE:
        return lab_more(a, b, judgei_size(p, a, b, 1));
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

typedef struct judgei_texts { /* what $1, $2, ... and #1, #2, ... stand for */
    const char *pm[2 * JUDGEI_PARTS], *mean[2 * JUDGEI_PARTS];
    size_t n;
} judgei_texts;

static const char *judgei_say(lab_report *r, const char *say, const judgei_texts *text)
{
    const char *done = "", *at;
    while ((at = strpbrk(say, "$#")) != NULL) {
        char *end;
        const size_t n = (size_t)strtoul(at + 1, &end, 10) - 1;
        const char *const *of = *at == '$' ? text->pm : text->mean;
        done = lab_format(r, "%s%.*s%s", done, (int)(at - say), say, n < text->n ? of[n] : "");
        say = end;
    }
    return lab_format(r, "%s%s", done, say);
}

static void judgei_tell(lab_report *r, judgei_texts *text, lab_numbers a, int decimals)
{
    text->pm[text->n] = lab_pm(r, a, decimals);
    text->mean[text->n++] = lab_format(r, "%.*f", decimals, lab_describe(a).mean);
}

/* A claim without a function: what its parts, or the row itself, compare. */
static void judgei_claim(lab_report *r, const lab_claim *c)
{
    const lab_part row[2] = {
        {c->test, c->a, c->b, c->series, c->at, c->limit, c->tolerance, c->times, .each = c->each}};
    const lab_part *p = c->part ? c->part : row;
    judgei_texts text = {.n = 0};
    stats_finding found[JUDGEI_PARTS];
    size_t parts = 0, exact = 0, held = 0;
    const char *say;
    for (; (p->series || p->each) && parts + exact < JUDGEI_PARTS; p++) {
        const int pair = p->test == LAB_MORE || p->test == LAB_LESS;
        const lab_numbers a = judgei_values(r, p, 0), b = pair ? judgei_values(r, p, 1) : a;
        if (p->test == LAB_EXACT) {
            const double most = lab_largest(r, p->a, p->series);
            text.pm[text.n++] = lab_format(r, "%.*e", c->decimals, most);
            held += most < p->limit;
            exact++;
            continue;
        }
        judgei_tell(r, &text, a, c->decimals);
        if (pair) judgei_tell(r, &text, b, c->decimals);
        if (p->test) found[parts++] = judgei_test(p, a, b);
    }
    if (exact) found[parts++] = stats_holds(held == exact);
    if (parts == 0) found[0] = stats_unknown();
    say = c->say ? c->say : text.n > 1 ? "$1 against $2" : "$1";
    lab_verdict(r, c, parts > 1 ? stats_together(found, parts) : found[0],
                judgei_say(r, c->remark ? c->remark : "", &text), "%s", judgei_say(r, say, &text));
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
