/* verdicts: the verdicts of all experiments as one page, and those of one experiment in its page.

       verdicts --out examples/experiments/verdicts.md --links NN_name/NN_name_verdicts.csv...
       verdicts --into NN_name/README.md NN_name/NN_name_verdicts.csv

   Nothing is judged here: the first lists, in the order of the command line, every row of the
   tables that the experiments wrote (lab.h), and counts them. A claim that failed is a row as any
   other. With --links the page leads to those of the experiments, in folders beside it. The second
   writes the rows of one table between the lines <!-- verdicts --> and <!-- end of verdicts --> of
   a page, and leaves the rest of the page alone. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
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
    char *const *kind, *const *id, *const *claim, *const *source, *const *paper,
                                                                      *const *ours,
                                                                          *const *verdict,
                                                                              *const *remark,
                                                                                  *const *criterion;
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

static int load(table *t, const char *path)
{
    char err[CSV_ERR_MAX];
    if (csv_load(path, &t->data, err)) {
        fprintf(stderr, "verdicts: %s\n", err);
    } else {
        t->kind = csv_texts(&t->data, "kind", err);
        t->id = csv_texts(&t->data, "id", err);
        t->claim = csv_texts(&t->data, "claim", err);
        t->source = csv_texts(&t->data, "source", err);
        t->paper = csv_texts(&t->data, "paper", err);
        t->ours = csv_texts(&t->data, "ours", err);
        t->verdict = csv_texts(&t->data, "verdict", err);
        t->remark = csv_texts(&t->data, "remark", err);
        t->criterion = csv_texts(&t->data, "criterion", err);
        if (t->kind && t->id && t->claim && t->source && t->paper && t->ours && t->verdict &&
            t->remark && t->criterion && csv_comment(&t->data, "program"))
            return 0;
        fprintf(stderr, "verdicts: '%s': %s\n", path, *err ? err : "no program is named");
    }
    return -1;
}

/* Which of the kinds the verdict is; KINDS if it is none. */
static int kind_of(const char *verdict)
{
    int k;
    for (k = 0; k < KINDS; k++)
        if (strncmp(verdict, kind_name[k], strlen(kind_name[k])) == 0) return k;
    return KINDS;
}

static int is_claim(const table *t, size_t row)
{
    return strcmp(t->kind[row], "claim") == 0;
}

/* What a claim is worth: what the sources say of networks; a matter of algebra, which comes out the
   same whatever the data, known by a criterion that begins with "exact"; or a claim of our own, by
   a source "ours". */
enum { OF_SOURCE, EXACT, OURS, WORTHS };

static int worth_of(const table *t, size_t row)
{
    if (strncmp(t->source[row], "ours", 4) == 0) return OURS;
    return strncmp(t->criterion[row], "exact", 5) == 0 ? EXACT : OF_SOURCE;
}

typedef struct tally {
    size_t count[WORTHS][KINDS + 1], claims[WORTHS], checks, passed;
} tally;

static tally count_all(const table *t, int tables)
{
    tally all;
    size_t row;
    int i;
    memset(&all, 0, sizeof all);
    for (i = 0; i < tables; i++)
        for (row = 0; row < t[i].data.rows; row++) {
            if (is_claim(&t[i], row)) {
                all.claims[worth_of(&t[i], row)]++;
                all.count[worth_of(&t[i], row)][kind_of(t[i].verdict[row])]++;
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

static void put_count(page *p, const table *t, int tables)
{
    const tally all = count_all(t, tables);
    put(p, "**%lu claims: ", (unsigned long)all.claims[OF_SOURCE]);
    put_kinds(p, all.count[OF_SOURCE]);
    put(p, ".**\n\nThese are what the sources say of networks and of their training. Beside them:"
           "\n\n");
    put(p,
        "- %lu statements that follow from algebra, arithmetic or a count, so that a run only\n"
        "  confirms them (their criteria begin with \"exact\"; what algebra refutes is counted "
        "above):\n  ",
        (unsigned long)all.claims[EXACT]);
    put_kinds(p, all.count[EXACT]);
    put(p,
        ".\n- %lu claims of our own, such as limits, controls and other readings of a "
        "sentence:\n  ",
        (unsigned long)all.claims[OURS]);
    put_kinds(p, all.count[OURS]);
    put(p,
        ".\n- %lu of %lu checks passed that the programs make of themselves, such as gradients\n"
        "  against differences, and looks that leave no trace.\n",
        (unsigned long)all.passed, (unsigned long)all.checks);
}

/* How each experiment came out: the claims of its sources, and how many others it has. */
static void put_overview(page *p, const table *t, int tables, int links)
{
    int i, k;
    put(p, "\n| claims of the sources | reproduced | partly | inconclusive | not reproduced "
           "| exact | our own |\n|---|---|---|---|---|---|---|\n");
    for (i = 0; i < tables; i++) {
        const tally one = count_all(&t[i], 1);
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

static void put_head(page *p, const table *t, int tables, int links)
{
    put(p, "# Verdicts\n\n"
           "Written by `make reproduce` from the tables of the experiments; not by hand.\n\n");
    put_count(p, t, tables);
    put(p,
        "\nA claim is *reproduced* if the stated sign holds in at least four of five seeds, the "
        "mean\ndifference exceeds two standard errors and any stated magnitude is met; *partly* "
        "if only the\nmagnitude is missed, or some parts of the claim; *inconclusive* if the "
        "difference is within two\nstandard errors, or the seeds do not agree; *not reproduced* "
        "if the opposite holds. Where a\ncriterion is a threshold or asks for every case, it says "
        "so. What the rule is worth stands with\n[the rules](README.md#rules): where "
        "there is no effect it still calls 6 of 100 claims\nreproduced with five seeds.\n\n"
        "Criteria were written before the runs, but for some: a few were made stricter or added\n"
        "afterwards, and a few claims were renamed, or turned out to be our own. The page of each\n"
        "experiment has the criteria, and says which of them are younger than the run.\n\n"
        "How to read the tables: *paper* is what the source reports, *ours* what was measured "
        "here. Numbers\nare mean ± standard deviation over seeds, unless they are named "
        "otherwise. The hexadecimal number\nbeside MNIST is a checksum of the images and "
        "labels.\n");
    put_overview(p, t, tables, links);
}

static void put_verdict(page *p, const char *verdict)
{
    put(p, kind_of(verdict) == 0 ? "| %s " : "| **%s** ", verdict);
}

static void put_table(page *p, const table *t, int links)
{
    const char *program = csv_comment(&t->data, "program");
    const char *data = csv_comment(&t->data, "data"), *seeds = csv_comment(&t->data, "seeds");
    size_t row;
    if (links)
        put(p, "\n## [%s](%s/README.md)\n\n", program, program);
    else
        put(p, "\n## %s\n\n", program);
    put(p, "%s; seeds %s.\n\n", data ? data : "No data set", seeds ? seeds : "none");
    put(p,
        "| | claim | source | paper | ours | verdict | remark |\n|---|---|---|---|---|---|---|\n");
    for (row = 0; row < t->data.rows; row++) {
        if (!is_claim(t, row)) continue;
        put_cell(p, t->id[row]);
        put_cell(p, t->claim[row]);
        put_cell(p, t->source[row]);
        put_cell(p, t->paper[row]);
        put_cell(p, t->ours[row]);
        put_verdict(p, t->verdict[row]);
        put_cell(p, t->remark[row]);
        put(p, "|\n");
    }
}

/* ---- the page of one experiment -------------------------------------------------------------- */

static void put_own_table(page *p, const table *t)
{
    size_t row;
    put(p, "| | claim | criterion | paper | ours | verdict |\n|---|---|---|---|---|---|\n");
    for (row = 0; row < t->data.rows; row++) {
        if (!is_claim(t, row)) continue;
        put_cell(p, t->id[row]);
        put_cell(p, t->claim[row]);
        put_cell(p, t->criterion[row]);
        put_cell(p, t->paper[row]);
        put_cell(p, t->ours[row]);
        put_verdict(p, t->verdict[row]);
        put(p, "|\n");
    }
}

/* Replaces what stands between the two marks in the page at `path`. */
static int write_into(const char *path, const table *t)
{
    static const char begin[] = "<!-- verdicts -->\n", end[] = "<!-- end of verdicts -->";
    char err[FILES_ERR_MAX];
    unsigned char *old = NULL;
    const char *from, *to;
    page p;
    size_t n;
    int failed = -1;
    memset(&p, 0, sizeof p);
    if (files_read(path, PAGE_MAX, &old, &n, err)) {
        fprintf(stderr, "verdicts: %s\n", err);
        return -1;
    }
    from = strstr((const char *)old, begin);
    to = from ? strstr(from, end) : NULL;
    if (to) {
        put(&p, "%.*s\n", (int)(from - (const char *)old) + (int)strlen(begin), (const char *)old);
        put_own_table(&p, t);
        put(&p, "\n%s", to);
        failed = p.failed || files_write(path, p.text, p.length, err);
        if (failed) fprintf(stderr, "verdicts: %s\n", p.failed ? "out of memory" : err);
    } else {
        fprintf(stderr, "verdicts: '%s' has no place for them\n", path);
    }
    free(p.text);
    free(old);
    return failed;
}

/* ---- the program ----------------------------------------------------------------------------- */

static int usage(void)
{
    fprintf(stderr, "usage: verdicts --out FILE.md [--links] VERDICTS.csv...\n"
                    "       verdicts --into PAGE.md VERDICTS.csv\n");
    return 2;
}

static int write_page(const char *out, int links, const table *tables, int n)
{
    char err[FILES_ERR_MAX];
    page p;
    int i, failed;
    memset(&p, 0, sizeof p);
    put_head(&p, tables, n, links);
    for (i = 0; i < n; i++) put_table(&p, &tables[i], links);
    failed = p.failed || files_write(out, p.text, p.length, err);
    if (failed) fprintf(stderr, "verdicts: %s\n", p.failed ? "out of memory" : err);
    free(p.text);
    return failed;
}

int main(int argc, char **argv)
{
    const char *out = NULL, *into = NULL;
    static table tables[TABLES_MAX];
    int i, n = 0, failed = 0, links = 0;
    for (i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--out") == 0 && i + 1 < argc)
            out = argv[++i];
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
    if (n == 0 || !out == !into || (into && n > 1)) return usage();
    if (!failed) failed = out ? write_page(out, links, tables, n) : write_into(into, &tables[0]);
    for (i = 0; i < n; i++) csv_release(&tables[i].data);
    return failed ? 1 : 0;
}
