/* verdicts: the verdicts of all experiments as one page, and those of each experiment in its page.

       verdicts --out verdicts.md --links --csv verdicts.csv NN_name/NN_name_verdicts.csv...
       verdicts --into FOLDER NN_name/NN_name_verdicts.csv...

   The programs say what they found (lab.h: n, difference, interval, effect, p) and judge each claim
   alone. Among hundreds of claims some are significant by chance; so here the share of false
   discoveries is held at STATS_LEVEL (stats_discoveries), and each claim is judged again, by the
   same rule (stats_word), at what that leaves of the level. The first way lists every row in the
   order of the command line and counts them; with --links the page leads to those of the
   experiments, in folders beside it; --csv has the numbers with their q. The second writes the rows
   of each table between the lines <!-- verdicts --> and <!-- end of verdicts --> of
   FOLDER/NN_name/README.md, and leaves the rest of the page alone. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/csv.h"
#include "lab/files.h"
#include "lab/stats.h"

enum { TABLES_MAX = 100, KINDS = 5, PAGE_MAX = 1 << 22 };

/* The verdicts as they are written, and as they are counted. */
static const char *const kind_name[KINDS] = {"reproduced", "partly reproduced", "inconclusive",
                                             "not reproduced", "not counted"};
static const char *const kind_short[KINDS] = {"reproduced", "partly", "inconclusive",
                                              "not reproduced", "not counted"};

typedef struct table { /* the verdicts of one experiment */
    csv_data data;
    char *const *kind, *const *id, *const *claim, *const *source, *const *paper, *const *ours;
    char *const *verdict, *const *remark, *const *criterion, *const *about, *const *why_not;
    char *const *size;
    const double *n, *difference, *low, *high, *effect, *parts, *best_p;
    stats_finding *found; /* [rows] */
    double *q;            /* [rows] after the correction; nan where there is no p */
} table;

typedef struct page { /* the text in the making */
    char *text;
    size_t length, room;
    int failed;
} page;

static void put(page *p, const char *format, ...)
{
    va_list list, again;
    int n;
    va_start(list, format);
    va_copy(again, list);
    n = vsnprintf(NULL, 0, format, list);
    if (n >= 0 && p->length + (size_t)n + 1 > p->room) {
        char *grown = (char *)realloc(p->text, 2 * (p->length + (size_t)n + 1));
        if (grown) p->room = 2 * (p->length + (size_t)n + 1);
        if (grown) p->text = grown;
        p->failed = p->failed || !grown;
    }
    if (n >= 0 && !p->failed)
        p->length += (size_t)vsnprintf(p->text + p->length, (size_t)n + 1, format, again);
    va_end(again);
    va_end(list);
}

/* A cell of a Markdown table: a bar would end it, and a line's end the row. */
static void put_cell(page *p, const char *text)
{
    put(p, "| ");
    for (; *text; text++)
        put(p, *text == '|' ? "\\%c" : "%c", *text == '\n' || *text == '\r' ? ' ' : *text);
    put(p, " ");
}

/* What the program found, out of its row. */
static stats_finding found_in(const table *t, size_t row)
{
    stats_finding f;
    f.n = (size_t)t->n[row];
    f.mean = t->difference[row];
    f.size_met = strcmp(t->size[row], "met") == 0;
    f.parts = (size_t)t->parts[row];
    f.best_p = t->best_p[row];
    f.sd = isinf(t->effect[row]) ? 0 : t->difference[row] / t->effect[row];
    if (f.n > 1 && isnan(f.sd)) /* a mean of 0 */
        f.sd = (t->high[row] - t->low[row]) / 2 * sqrt((double)f.n) /
               stats_t_quantile(STATS_LEVEL, f.n - 1);
    return f;
}

static int is_claim(const table *t, size_t row)
{
    return strcmp(t->kind[row], "claim") == 0;
}

static int columns(table *t, char *err)
{
    const struct {
        const char *name;
        char *const **to;
    } text[] = {{"kind", &t->kind},       {"id", &t->id},           {"claim", &t->claim},
                {"source", &t->source},   {"paper", &t->paper},     {"ours", &t->ours},
                {"verdict", &t->verdict}, {"remark", &t->remark},   {"criterion", &t->criterion},
                {"class", &t->about},     {"why_not", &t->why_not}, {"size", &t->size}};
    const struct {
        const char *name;
        const double **to;
    } number[] = {{"n", &t->n},          {"difference", &t->difference}, {"low", &t->low},
                  {"high", &t->high},    {"effect", &t->effect},         {"parts", &t->parts},
                  {"best_p", &t->best_p}};
    size_t i;
    for (i = 0; i < sizeof text / sizeof *text; i++)
        if (!(*text[i].to = csv_texts(&t->data, text[i].name, err))) return -1;
    for (i = 0; i < sizeof number / sizeof *number; i++)
        if (!(*number[i].to = csv_numbers(&t->data, number[i].name, err))) return -1;
    return csv_comment(&t->data, "program") ? 0 : -1;
}

static int load(table *t, const char *path)
{
    char err[CSV_ERR_MAX] = "";
    size_t row;
    if (csv_load(path, &t->data, err)) {
        fprintf(stderr, "verdicts: %s\n", err);
        return -1;
    }
    if (columns(t, err)) {
        fprintf(stderr, "verdicts: '%s': %s\n", path, *err ? err : "no program is named");
        return -1;
    }
    t->found = (stats_finding *)calloc(t->data.rows + 1, sizeof *t->found);
    t->q = (double *)calloc(t->data.rows + 1, sizeof *t->q);
    if (!t->found || !t->q) {
        fprintf(stderr, "verdicts: out of memory\n");
        return -1;
    }
    for (row = 0; row < t->data.rows; row++)
        if (is_claim(t, row)) t->found[row] = found_in(t, row);
    return 0;
}

/* Which of the kinds the verdict is; KINDS if it is none. */
static int kind_of(const char *verdict)
{
    int k;
    for (k = 0; k < KINDS; k++)
        if (strncmp(verdict, kind_name[k], strlen(kind_name[k])) == 0) return k;
    return KINDS;
}

/* ---- the correction for their number --------------------------------------------------------- */

typedef struct correction {
    size_t tests, changed; /* claims with a p; those whose verdict it changed */
    size_t doubtful;       /* discoveries that would be none under any dependence */
    double level;          /* what is left of STATS_LEVEL */
} correction;

/* The verdict that stands in the page: of what does not count it says so. */
static const char *word_of(const table *t, size_t row, const correction *c)
{
    return kind_of(t->verdict[row]) == KINDS - 1
               ? t->verdict[row]
               : stats_verdict_name(stats_word(&t->found[row], c->level));
}

/* Into c the level and into the tables the q. Returns 0, or -1 if memory is out. */
static int correct(table *t, int tables, correction *c)
{
    double *p, *q;
    double harmonic = 0;
    size_t rows = 0, row, k = 0;
    int i;
    memset(c, 0, sizeof *c);
    for (i = 0; i < tables; i++) rows += t[i].data.rows;
    p = (double *)calloc(rows + 1, sizeof *p);
    q = (double *)calloc(rows + 1, sizeof *q);
    for (i = 0; p && i < tables; i++)
        for (row = 0; row < t[i].data.rows; row++, k++) {
            p[k] = is_claim(&t[i], row) ? stats_p(&t[i].found[row]) : (double)NAN;
            c->tests += isnan(p[k]) ? 0u : 1u;
        }
    c->level = p && q ? stats_discoveries(p, rows, STATS_LEVEL, q) : -1;
    for (i = 0, k = 0; c->level >= 0 && i < tables; i++)
        for (row = 0; row < t[i].data.rows; row++) {
            t[i].q[row] = q[k++];
            if (is_claim(&t[i], row))
                c->changed += stats_word(&t[i].found[row], c->level) !=
                              stats_word(&t[i].found[row], STATS_LEVEL);
        }
    for (k = 1; k <= c->tests; k++) harmonic += 1 / (double)k;
    for (k = 0; c->level >= 0 && k < rows; k++)
        c->doubtful += q[k] <= STATS_LEVEL && q[k] * harmonic > STATS_LEVEL ? 1u : 0u;
    free(p);
    free(q);
    if (c->level < 0) fprintf(stderr, "verdicts: out of memory\n");
    return c->level < 0 ? -1 : 0;
}

/* ---- counts ---------------------------------------------------------------------------------- */

/* What a claim is worth: what the sources say of networks that learn; an identity or a matter of
   arithmetic, which comes out the same whatever the seed; or a claim of our own, by a source
   "ours". */
enum { OF_SOURCE, EXACT, OURS, WORTHS };

static int worth_of(const table *t, size_t row)
{
    if (strncmp(t->source[row], "ours", 4) == 0) return OURS;
    return strcmp(t->about[row], "training") == 0 ? OF_SOURCE : EXACT;
}

enum { REASONS = 3 };
static const char *const reason[REASONS] = {"setting", "algebra", "news"};

typedef struct tally {
    size_t count[WORTHS][KINDS + 1], claims[WORTHS], failed[REASONS], checks, passed;
} tally;

static tally count_all(const table *t, int tables, const correction *c)
{
    tally all;
    size_t row;
    int i;
    memset(&all, 0, sizeof all);
    for (i = 0; i < tables; i++)
        for (row = 0; row < t[i].data.rows; row++) {
            if (is_claim(&t[i], row)) {
                const int kind = kind_of(word_of(&t[i], row, c));
                int k;
                all.claims[worth_of(&t[i], row)]++;
                all.count[worth_of(&t[i], row)][kind]++;
                for (k = 0; k < REASONS; k++)
                    all.failed[k] += kind == 3 && strcmp(t[i].why_not[row], reason[k]) == 0;
            } else {
                all.checks++;
                all.passed += strcmp(t[i].verdict[row], "passed") == 0;
            }
        }
    return all;
}

/* "19 reproduced, 5 partly, 4 inconclusive, 3 not reproduced" */
static void put_kinds(page *p, const size_t *count)
{
    int k;
    for (k = 0; k < KINDS; k++)
        if (k < KINDS - 1 || count[k] > 0)
            put(p, "%s%lu %s", k ? ", " : "", (unsigned long)count[k], kind_short[k]);
}

static void put_count(page *p, const tally *all)
{
    put(p, "**%lu claims: ", (unsigned long)all->claims[OF_SOURCE]);
    put_kinds(p, all->count[OF_SOURCE]);
    put(p, ".**\n\nThese are what the sources say of networks and of their training. Beside them:"
           "\n\n");
    put(p,
        "- %lu identities and matters of arithmetic, so that a run only confirms or refutes them, "
        "whatever\n  the seed:\n  ",
        (unsigned long)all->claims[EXACT]);
    put_kinds(p, all->count[EXACT]);
    put(p,
        ".\n- %lu claims of our own, such as limits, controls and other readings of a "
        "sentence:\n  ",
        (unsigned long)all->claims[OURS]);
    put_kinds(p, all->count[OURS]);
    put(p,
        ".\n- %lu of %lu checks passed that the programs make of themselves, such as gradients\n"
        "  against differences, and looks that leave no trace.\n\n",
        (unsigned long)all->passed, (unsigned long)all->checks);
    put(p,
        "Of all claims that are not reproduced, %lu are refuted by algebra or logic, in every "
        "setting\n(*algebra*); %lu say something of this setting, which is small and easy, and "
        "little of the\nsources' (*setting*); %lu should have held here too (*news*).\n",
        (unsigned long)all->failed[1], (unsigned long)all->failed[0],
        (unsigned long)all->failed[2]);
}

/* How each experiment came out: the claims of its sources, and how many others it has. */
static void put_overview(page *p, const table *t, int tables, int links, const correction *c)
{
    int i, k;
    put(p, "\n| claims of the sources | reproduced | partly | inconclusive | not reproduced "
           "| exact | our own |\n|---|---|---|---|---|---|---|\n");
    for (i = 0; i < tables; i++) {
        const tally one = count_all(&t[i], 1, c);
        const char *program = csv_comment(&t[i].data, "program");
        if (links)
            put(p, "| [%s](%s/README.md) ", program, program);
        else
            put(p, "| %s ", program);
        for (k = 0; k < KINDS - 1; k++) put(p, "| %lu ", (unsigned long)one.count[OF_SOURCE][k]);
        put(p, "| %lu | %lu |\n", (unsigned long)one.claims[EXACT],
            (unsigned long)one.claims[OURS]);
    }
}

static void put_head(page *p, const table *t, int tables, int links, const correction *c)
{
    const tally all = count_all(t, tables, c);
    put(p, "# Verdicts\n\n"
           "Written by `make reproduce` from the tables of the experiments; not by hand.\n\n");
    put_count(p, &all);
    put(p,
        "\n## The rule\n\n"
        "One rule judges all claims. A claim is turned into a difference for each seed, above 0 "
        "where it is\nas the claim says: between two arms with the same seed, or from a limit. "
        "*n* is the number of seeds,\n*difference* the mean with its 95 %% interval (Student's "
        "t), *effect* the mean in standard\ndeviations of the difference. The verdict is\n\n"
        "- *reproduced*, if the difference is above 0 beyond chance, at least %g standard "
        "deviations, and as\n  large as the claim says, in the mean, if it says so;\n"
        "- *partly reproduced*, if the direction is right beyond chance, but not the size; or, of "
        "a claim of\n  several parts, if some are as it says;\n"
        "- *not reproduced*, if the difference is below 0 beyond chance; or if the interval of the "
        "effect\n  lies within ±%g, so that there is no difference to speak of;\n"
        "- *inconclusive* otherwise.\n\n",
        STATS_SMALL, STATS_SMALL);
    put(p,
        "Of a claim of several parts the row shows the part that says least for it, and a part "
        "alone counts\nfor *partly* if its p is below the level divided by the number of parts. "
        "A claim without chance (an\nidentity, a count) has a dash: it holds or does not.\n\n"
        "*Beyond chance* is corrected for the number of claims: of %lu tests, at most %g %% of "
        "those that are\nsignificant are so by chance (Benjamini and Hochberg 1995; *q* is the "
        "share at which a test still\nis). That leaves p at most %.3g, and changes %lu %s. "
        "It holds for tests that are independent\nor that go together, as those of one run do; "
        "under any dependence (Benjamini and Yekutieli 2001)\n%lu of them would not be "
        "significant. With few seeds an interval needs differences near to normal.\n\n",
        (unsigned long)c->tests, 100 * STATS_LEVEL, c->level, (unsigned long)c->changed,
        c->changed == 1 ? "verdict" : "verdicts", (unsigned long)c->doubtful);
    put(p,
        "Criteria were written before the runs, but for some: a few were made stricter or added\n"
        "afterwards, and a few claims were renamed, or turned out to be our own. The page of "
        "each\nexperiment has the criteria, and says which of them are younger than the run.\n\n"
        "In the tables *paper* is what the source reports, *ours* what was measured here: mean "
        "± standard\ndeviation over seeds, unless it is named otherwise. The hexadecimal "
        "number beside MNIST is a\nchecksum of the images and labels.\n");
    put_overview(p, t, tables, links, c);
}

/* n, difference, effect and q: four cells. */
static void put_numbers(page *p, const table *t, size_t row)
{
    const stats_finding *f = &t->found[row];
    if (f->n < 2) {
        put(p, f->n ? "| 1 | – | – | – " : "| – | – | – | – ");
        return;
    }
    put(p, "| %lu | %+.3g [%.3g, %.3g] ", (unsigned long)f->n, f->mean, t->low[row], t->high[row]);
    put(p, fabs(t->effect[row]) < 1000 ? "| %+.2g " : "| %+.0e ", t->effect[row]);
    put(p, t->q[row] < 0.001 ? "| < 0.001 " : isnan(t->q[row]) ? "| – " : "| %.2g ", t->q[row]);
}

static void put_verdict(page *p, const table *t, size_t row, const correction *c)
{
    const char *verdict = word_of(t, row, c);
    const int kind = kind_of(verdict);
    put(p, kind == 0 ? "| %s " : "| **%s** ", verdict);
    if (kind == 3) put(p, "(%s) ", t->why_not[row]);
}

static void put_table(page *p, const table *t, int links, const correction *c)
{
    const char *program = csv_comment(&t->data, "program"), *data = csv_comment(&t->data, "data");
    size_t row;
    if (links)
        put(p, "\n## [%s](%s/README.md)\n\n", program, program);
    else
        put(p, "\n## %s\n\n", program);
    put(p, "%s.\n\n", data ? data : "No data set");
    put(p, "| | claim | source | class | paper | ours | n | difference | effect | q | verdict | "
           "remark |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n");
    for (row = 0; row < t->data.rows; row++) {
        if (!is_claim(t, row)) continue;
        put_cell(p, t->id[row]);
        put_cell(p, t->claim[row]);
        put_cell(p, t->source[row]);
        put_cell(p, t->about[row]);
        put_cell(p, t->paper[row]);
        put_cell(p, t->ours[row]);
        put_numbers(p, t, row);
        put_verdict(p, t, row, c);
        put_cell(p, t->remark[row]);
        put(p, "|\n");
    }
}

/* All numbers, with the q and the verdict after the correction. */
static int write_csv(const char *path, const table *tables, int n, const correction *c)
{
    static const char *const columns_of[12] = {"id",         "class", "why_not", "n",
                                               "difference", "low",   "high",    "effect",
                                               "p",          "q",     "parts",   "verdict"};
    csv_table out;
    size_t row;
    int i, k;
    csv_begin(&out);
    csv_columns(&out, columns_of, 12);
    for (i = 0; i < n; i++)
        for (row = 0; row < tables[i].data.rows; row++) {
            const table *t = &tables[i];
            const double p = stats_p(&t->found[row]);
            const double value[6] = {t->difference[row], t->low[row], t->high[row],
                                     t->effect[row],     p,           t->q[row]};
            char text[32];
            if (!is_claim(t, row)) continue;
            csv_text(&out, t->id[row]);
            csv_text(&out, t->about[row]);
            csv_text(&out, t->why_not[row]);
            csv_real(&out, (double)t->found[row].n);
            for (k = 0; k < 6; k++) {
                (void)snprintf(text, sizeof text, "%.4g", value[k]);
                csv_real(&out, strtod(text, NULL));
            }
            csv_real(&out, (double)t->found[row].parts);
            csv_text(&out, word_of(t, row, c));
            csv_end_row(&out);
        }
    return csv_finish(&out, path);
}

/* ---- the page of one experiment -------------------------------------------------------------- */

static void put_own_table(page *p, const table *t, const correction *c)
{
    size_t row;
    put(p, "| | claim | criterion | paper | ours | n | difference | effect | q | verdict |\n"
           "|---|---|---|---|---|---|---|---|---|---|\n");
    for (row = 0; row < t->data.rows; row++) {
        if (!is_claim(t, row)) continue;
        put_cell(p, t->id[row]);
        put_cell(p, t->claim[row]);
        put_cell(p, t->criterion[row]);
        put_cell(p, t->paper[row]);
        put_cell(p, t->ours[row]);
        put_numbers(p, t, row);
        put_verdict(p, t, row, c);
        put(p, "|\n");
    }
}

/* Writes the page and frees its text. */
static int finish(page *p, const char *path)
{
    char err[FILES_ERR_MAX] = "out of memory";
    const int failed = p->failed || files_write(path, p->text, p->length, err);
    if (failed) fprintf(stderr, "verdicts: %s\n", err);
    free(p->text);
    return failed;
}

/* Replaces what stands between the two marks in the page of the experiment in this folder. */
static int write_into(const char *folder, const table *t, const correction *c)
{
    static const char begin[] = "<!-- verdicts -->\n", end[] = "<!-- end of verdicts -->";
    char err[FILES_ERR_MAX], path[1024];
    unsigned char *old = NULL;
    const char *from, *to;
    page p = {0};
    size_t n;
    int failed = -1;
    (void)snprintf(path, sizeof path, "%.500s/%.100s/README.md", folder,
                   csv_comment(&t->data, "program"));
    if (files_read(path, PAGE_MAX, &old, &n, err)) {
        fprintf(stderr, "verdicts: %s\n", err);
        return -1;
    }
    from = strstr((const char *)old, begin);
    to = from ? strstr(from, end) : NULL;
    if (to) {
        put(&p, "%.*s\n", (int)(from - (const char *)old) + (int)strlen(begin), (const char *)old);
        put_own_table(&p, t, c);
        put(&p, "\n%s", to);
        failed = finish(&p, path);
    } else {
        fprintf(stderr, "verdicts: '%s' has no place for them\n", path);
    }
    free(old);
    return failed;
}

/* ---- the program ----------------------------------------------------------------------------- */

static int usage(void)
{
    fprintf(stderr, "usage: verdicts --out FILE.md [--links] [--csv FILE.csv] VERDICTS.csv...\n"
                    "       verdicts --into FOLDER VERDICTS.csv...\n");
    return 2;
}

static int write_page(const char *out, int links, const table *tables, int n, const correction *c)
{
    page p = {0};
    int i;
    put_head(&p, tables, n, links, c);
    for (i = 0; i < n; i++) put_table(&p, &tables[i], links, c);
    return finish(&p, out);
}

int main(int argc, char **argv)
{
    const char *out = NULL, *into = NULL, *numbers = NULL;
    static table tables[TABLES_MAX];
    correction c;
    int i, n = 0, failed = 0, links = 0;
    for (i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--out") == 0 && i + 1 < argc)
            out = argv[++i];
        else if (strcmp(argv[i], "--csv") == 0 && i + 1 < argc)
            numbers = argv[++i];
        else if (strcmp(argv[i], "--links") == 0)
            links = 1;
        else if (strcmp(argv[i], "--into") == 0 && i + 1 < argc)
            into = argv[++i];
        else if (argv[i][0] == '-')
            return usage();
        else if (n == TABLES_MAX)
            return fprintf(stderr, "verdicts: more than %d tables\n", TABLES_MAX), 1;
        else if (load(&tables[n++], argv[i]))
            failed = 1;
    }
    if (n == 0 || !out == !into || (into && numbers)) return usage();
    failed = failed || correct(tables, n, &c);
    if (!failed && out) failed = write_page(out, links, tables, n, &c);
    if (!failed && numbers) failed = write_csv(numbers, tables, n, &c);
    for (i = 0; into && i < n && !failed; i++) failed = write_into(into, &tables[i], &c);
    for (i = 0; i < n; i++) {
        csv_release(&tables[i].data);
        free(tables[i].found);
        free(tables[i].q);
    }
    return failed ? 1 : 0;
}
