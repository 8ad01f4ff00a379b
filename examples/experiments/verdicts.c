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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/files.h"
#include "lab/lab.h"

enum { TABLES_MAX = 100, CLAIMS_MAX = 2000, PAGE_MAX = 1 << 22 };

/* The verdicts as they are counted: each stats_verdict, and quick runs and synthetic digits. */
enum { NOT_COUNTED = STATS_NOT_REPRODUCED + 1, KINDS };
static const char *const kind_name[KINDS] = {"reproduced", "partly", "inconclusive",
                                             "not reproduced", "not counted"};

/* The columns of a table of verdicts. */
enum { KIND, ID, CLAIM, SOURCE, PAPER, OURS };
enum { VERDICT = OURS + 1, REMARK, CRITERION, ABOUT, WHY_NOT, SIZE, TEXTS };
enum { N, DIFFERENCE, LOW, HIGH, EFFECT, PARTS, BEST_P, NUMBERS };
static const char *const text_name[TEXTS] = {"kind",      "id",    "claim",   "source",
                                             "paper",     "ours",  "verdict", "remark",
                                             "criterion", "class", "why_not", "size"};
static const char *const number_name[NUMBERS] = {"n",      "difference", "low",   "high",
                                                 "effect", "parts",      "best_p"};

typedef struct table { /* the verdicts of one experiment */
    csv_data data;
    const char *program;
    size_t first, end; /* its claims */
} table;

typedef struct claim {
    const char *text[TEXTS];
    double number[NUMBERS];
    stats_finding found;
    double q;         /* after the correction; nan where there is no p */
    const char *word; /* the verdict that stands in the page           */
    int kind;         /* of that */
} claim;

static table tables[TABLES_MAX];
static claim claims[CLAIMS_MAX];
static size_t table_count, claim_count, checks, checks_passed;

static int complain(const char *why)
{
    fprintf(stderr, "verdicts: %s\n", why);
    return -1;
}

/* A cell of a Markdown table: a bar would end it, and a line's end the row. */
static void put_cell(FILE *p, const char *text)
{
    fprintf(p, "| ");
    for (; *text; text++)
        fprintf(p, *text == '|' ? "\\%c" : "%c", *text == '\n' || *text == '\r' ? ' ' : *text);
    fprintf(p, " ");
}

/* What the program found, out of its row. */
static stats_finding found_in(const claim *c)
{
    stats_finding f;
    f.n = (size_t)c->number[N];
    f.mean = c->number[DIFFERENCE];
    f.size_met = strcmp(c->text[SIZE], "met") == 0;
    f.parts = (size_t)c->number[PARTS];
    f.best_p = c->number[BEST_P];
    f.sd = isinf(c->number[EFFECT]) ? 0 : f.mean / c->number[EFFECT];
    if (f.n > 1 && isnan(f.sd)) /* a mean of 0 */
        f.sd = (c->number[HIGH] - c->number[LOW]) / 2 * sqrt((double)f.n) /
               stats_t_quantile(STATS_LEVEL, f.n - 1);
    return f;
}

/* Takes the rows of a table. Returns 0, or -1 with the reason in err. */
static int take(table *t, char *err)
{
    char *const *text[TEXTS];
    const double *number[NUMBERS];
    size_t row, i;
    t->program = csv_comment(&t->data, "program");
    if (!t->program) return files_fail(err, "no program is named");
    for (i = 0; i < TEXTS; i++)
        if (!(text[i] = csv_texts(&t->data, text_name[i], err))) return -1;
    for (i = 0; i < NUMBERS; i++)
        if (!(number[i] = csv_numbers(&t->data, number_name[i], err))) return -1;
    t->first = claim_count;
    for (row = 0; row < t->data.rows && claim_count < CLAIMS_MAX; row++) {
        claim *c = &claims[claim_count];
        if (strcmp(text[KIND][row], "claim") == 0) {
            for (i = 0; i < TEXTS; i++) c->text[i] = text[i][row];
            for (i = 0; i < NUMBERS; i++) c->number[i] = number[i][row];
            c->found = found_in(c);
            claim_count++;
        } else {
            checks++;
            checks_passed += strcmp(text[VERDICT][row], "passed") == 0;
        }
    }
    t->end = claim_count;
    return claim_count < CLAIMS_MAX ? 0 : files_fail(err, "more than %d claims", CLAIMS_MAX - 1);
}

static int load(const char *path)
{
    char err[CSV_ERR_MAX] = "too many tables";
    table *t = &tables[table_count];
    if (table_count == TABLES_MAX || csv_load(path, &t->data, err)) return complain(err);
    table_count++;
    if (!take(t, err)) return 0;
    fprintf(stderr, "verdicts: '%s': %s\n", path, err);
    return -1;
}

/* ---- the correction for their number --------------------------------------------------------- */

typedef struct correction {
    size_t tests, changed; /* claims with a p; those whose verdict it changed */
    size_t doubtful;       /* discoveries that would be none under any dependence */
    double level;          /* what is left of STATS_LEVEL */
} correction;

/* Gives each claim its q and its word. Of what does not count the word says so. */
static int correct(correction *all)
{
    static double p[CLAIMS_MAX], q[CLAIMS_MAX];
    double harmonic = 0;
    size_t k;
    memset(all, 0, sizeof *all);
    for (k = 0; k < claim_count; k++) {
        p[k] = stats_p(&claims[k].found);
        all->tests += isnan(p[k]) ? 0u : 1u;
    }
    all->level = stats_discoveries(p, claim_count, STATS_LEVEL, q);
    for (k = 1; k <= all->tests; k++) harmonic += 1 / (double)k;
    for (k = 0; k < claim_count; k++) {
        claim *c = &claims[k];
        const stats_verdict alone = stats_word(&c->found, STATS_LEVEL);
        const stats_verdict verdict = stats_word(&c->found, all->level);
        c->q = q[k];
        c->kind = strncmp(c->text[VERDICT], "not counted", 11) == 0 ? NOT_COUNTED : (int)verdict;
        c->word = c->kind == NOT_COUNTED ? c->text[VERDICT] : stats_verdict_name(verdict);
        all->changed += alone != verdict;
        all->doubtful += q[k] <= STATS_LEVEL && q[k] * harmonic > STATS_LEVEL;
    }
    return all->level < 0 ? complain("out of memory") : 0;
}

/* ---- counts ---------------------------------------------------------------------------------- */

/* What a claim is worth: what the sources say of networks that learn; an identity or a matter of
   arithmetic, which comes out the same whatever the seed; or a claim of our own, by a source
   "ours". */
enum { OF_SOURCE, EXACT, OURS_OWN, WORTHS };

static int worth_of(const claim *c)
{
    if (strncmp(c->text[SOURCE], "ours", 4) == 0) return OURS_OWN;
    return strcmp(c->text[ABOUT], "training") == 0 ? OF_SOURCE : EXACT;
}

enum { REASONS = 3 };
static const char *const reason[REASONS] = {"setting", "algebra", "news"};

typedef struct tally {
    size_t count[WORTHS][KINDS], claims[WORTHS], failed[REASONS];
} tally;

static tally count_claims(size_t first, size_t end)
{
    tally all;
    memset(&all, 0, sizeof all);
    for (; first < end; first++) {
        const claim *c = &claims[first];
        int k;
        all.claims[worth_of(c)]++;
        all.count[worth_of(c)][c->kind]++;
        for (k = 0; k < REASONS; k++)
            all.failed[k] +=
                c->kind == STATS_NOT_REPRODUCED && strcmp(c->text[WHY_NOT], reason[k]) == 0;
    }
    return all;
}

/* How many claims there are of a worth, and "19 reproduced, 5 partly, 4 inconclusive, 3 not
   reproduced" of them. */
static void put_worth(FILE *p, const tally *all, int worth, const char *format)
{
    const size_t *count = all->count[worth];
    int k;
    fprintf(p, format, all->claims[worth]);
    for (k = 0; k < KINDS; k++)
        if (k < KINDS - 1 || count[k] > 0)
            fprintf(p, "%s%zu %s", k ? ", " : "", count[k], kind_name[k]);
}

static void put_count(FILE *p)
{
    const tally all = count_claims(0, claim_count);
    put_worth(p, &all, OF_SOURCE, "**%zu claims: ");
    put_worth(p, &all, EXACT,
              ".**\n\nThese are what the sources say of networks and of their training. Beside "
              "them:\n\n- %zu identities and matters of arithmetic, so that a run only confirms or "
              "refutes them, whatever\n  the seed:\n  ");
    put_worth(p, &all, OURS_OWN,
              ".\n- %zu claims of our own, such as limits, controls and other readings of a "
              "sentence:\n  ");
    fprintf(
        p,
        ".\n- %zu of %zu checks passed that the programs make of themselves, such as gradients\n"
        "  against differences, and looks that leave no trace.\n\n"
        "Of all claims that are not reproduced, %zu are refuted by algebra or logic, in every "
        "setting\n(*algebra*); %zu say something of this setting, which is small and easy, and "
        "little of the\nsources' (*setting*); %zu should have held here too (*news*).\n",
        checks_passed, checks, all.failed[1], all.failed[0], all.failed[2]);
}

/* The name of an experiment, which may lead to its page. */
static void put_name(FILE *p, const char *program, int links)
{
    fprintf(p, links ? "[%s](%s/README.md)" : "%s", program, program);
}

/* How each experiment came out: the claims of its sources, and how many others it has. */
static void put_overview(FILE *p, int links)
{
    size_t i;
    int k;
    fprintf(p, "\n| claims of the sources | reproduced | partly | inconclusive | not reproduced "
               "| exact | our own |\n|---|---|---|---|---|---|---|\n");
    for (i = 0; i < table_count; i++) {
        const tally one = count_claims(tables[i].first, tables[i].end);
        fprintf(p, "| ");
        put_name(p, tables[i].program, links);
        for (k = 0; k < KINDS - 1; k++) fprintf(p, " | %zu", one.count[OF_SOURCE][k]);
        fprintf(p, " | %zu | %zu |\n", one.claims[EXACT], one.claims[OURS_OWN]);
    }
}

static const char the_rule[] =
    "\n## The rule\n\n"
    "One rule judges all claims. A claim is turned into a difference for each seed, above 0 where "
    "it is\nas the claim says: between two arms with the same seed, or from a limit. *n* is the "
    "number of seeds,\n*difference* the mean with its 95 %% interval (Student's t), *effect* the "
    "mean in standard\ndeviations of the difference. The verdict is\n\n"
    "- *reproduced*, if the difference is above 0 beyond chance, at least %g standard deviations, "
    "and as\n  large as the claim says, in the mean, if it says so;\n"
    "- *partly reproduced*, if the direction is right beyond chance, but not the size; or, of a "
    "claim of\n  several parts, if some are as it says;\n"
    "- *not reproduced*, if the difference is below 0 beyond chance; or if the interval of the "
    "effect\n  lies within ±%g, so that there is no difference to speak of;\n"
    "- *inconclusive* otherwise.\n\n";
static const char the_correction[] =
    "Of a claim of several parts the row shows the part that says least for it, and a part alone "
    "counts\nfor *partly* if its p is below the level divided by the number of parts. A claim "
    "without chance (an\nidentity, a count) has a dash: it holds or does not.\n\n"
    "*Beyond chance* is corrected for the number of claims: of %zu tests, at most %g %% of those "
    "that are\nsignificant are so by chance (Benjamini and Hochberg 1995; *q* is the share at "
    "which a test still\nis). That leaves p at most %.3g, and changes %zu %s. It holds for tests "
    "that are independent\nor that go together, as those of one run do; under any dependence "
    "(Benjamini and Yekutieli 2001)\n%zu of them would not be significant. With few seeds an "
    "interval needs differences near to normal.\n\n";
static const char the_criteria[] =
    "Criteria were written before the runs, but for some: a few were made stricter or added\n"
    "afterwards, and a few claims were renamed, or turned out to be our own. The page of each\n"
    "experiment has the criteria, and says which of them are younger than the run.\n\n"
    "In the tables *paper* is what the source reports, *ours* what was measured here: mean ± "
    "standard\ndeviation over seeds, unless it is named otherwise. The hexadecimal number beside "
    "MNIST is a\nchecksum of the images and labels.\n";

static void put_head(FILE *p, int links, const correction *c)
{
    fprintf(p, "# Verdicts\n\n"
               "Written by `make reproduce` from the tables of the experiments; not by hand.\n\n");
    put_count(p);
    fprintf(p, the_rule, STATS_SMALL, STATS_SMALL);
    fprintf(p, the_correction, c->tests, 100 * STATS_LEVEL, c->level, c->changed,
            c->changed == 1 ? "verdict" : "verdicts", c->doubtful);
    fputs(the_criteria, p);
    put_overview(p, links);
}

/* n, difference, effect and q: four cells. */
static void put_numbers(FILE *p, const claim *c)
{
    const double effect = c->number[EFFECT];
    if (c->found.n < 2) {
        fprintf(p, c->found.n ? "| 1 | – | – | – " : "| – | – | – | – ");
        return;
    }
    fprintf(p, "| %zu | %+.3g [%.3g, %.3g] ", c->found.n, c->found.mean, c->number[LOW],
            c->number[HIGH]);
    fprintf(p, fabs(effect) < 1000 ? "| %+.2g " : "| %+.0e ", effect);
    fprintf(p, c->q < 0.001 ? "| < 0.001 " : isnan(c->q) ? "| – " : "| %.2g ", c->q);
}

/* The claims of a table: these texts of each, its numbers, its verdict, perhaps its remark. */
static void put_claims(FILE *p, const table *t, const int *texts, size_t n, int remark)
{
    size_t i, k;
    for (i = t->first; i < t->end; i++) {
        const claim *c = &claims[i];
        for (k = 0; k < n; k++) put_cell(p, c->text[texts[k]]);
        put_numbers(p, c);
        fprintf(p, c->kind == STATS_REPRODUCED ? "| %s " : "| **%s** ", c->word);
        if (c->kind == STATS_NOT_REPRODUCED) fprintf(p, "(%s) ", c->text[WHY_NOT]);
        if (remark) put_cell(p, c->text[REMARK]);
        fprintf(p, "|\n");
    }
}

static void put_table(FILE *p, const table *t, int links)
{
    static const int texts[6] = {ID, CLAIM, SOURCE, ABOUT, PAPER, OURS};
    const char *data = csv_comment(&t->data, "data");
    fprintf(p, "\n## ");
    put_name(p, t->program, links);
    fprintf(p, "\n\n%s.\n\n", data ? data : "No data set");
    fprintf(p,
            "| | claim | source | class | paper | ours | n | difference | effect | q | verdict | "
            "remark |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n");
    put_claims(p, t, texts, 6, 1);
}

/* All numbers, with the q and the verdict after the correction. */
static int write_csv(const char *path)
{
    static const char *const columns[12] = {"id",         "class", "why_not", "n",
                                            "difference", "low",   "high",    "effect",
                                            "p",          "q",     "parts",   "verdict"};
    csv_table out;
    size_t i;
    int k;
    csv_begin(&out);
    csv_columns(&out, columns, 12);
    for (i = 0; i < claim_count; i++) {
        const claim *c = &claims[i];
        const double value[6] = {c->number[DIFFERENCE], c->number[LOW],     c->number[HIGH],
                                 c->number[EFFECT],     stats_p(&c->found), c->q};
        csv_text(&out, c->text[ID]);
        csv_text(&out, c->text[ABOUT]);
        csv_text(&out, c->text[WHY_NOT]);
        csv_real(&out, (double)c->found.n);
        for (k = 0; k < 6; k++) csv_real(&out, lab_round(value[k], 4));
        csv_real(&out, (double)c->found.parts);
        csv_text(&out, c->word);
        csv_end_row(&out);
    }
    return csv_finish(&out, path);
}

/* ---- the page of one experiment -------------------------------------------------------------- */

/* A page is made in memory, and written whole or not at all. */
typedef struct page {
    char *text;
    size_t length;
} page;

static int finish(page *made, FILE *p, const char *path)
{
    char err[FILES_ERR_MAX] = "out of memory";
    const int failed = (ferror(p) | fclose(p)) || files_write(path, made->text, made->length, err);
    free(made->text);
    return failed ? complain(err) : 0;
}

/* Replaces what stands between the two marks in the page of the experiment in this folder. */
static int write_into(const char *folder, const table *t)
{
    static const char begin[] = "<!-- verdicts -->\n", end[] = "<!-- end of verdicts -->";
    static const int texts[5] = {ID, CLAIM, CRITERION, PAPER, OURS};
    char err[FILES_ERR_MAX], path[1024];
    unsigned char *old;
    const char *from, *to;
    page made;
    FILE *p;
    size_t n;
    int failed = -1;
    (void)snprintf(path, sizeof path, "%.500s/%.100s/README.md", folder, t->program);
    if (files_read(path, PAGE_MAX, &old, &n, err)) return complain(err);
    from = strstr((const char *)old, begin);
    to = from ? strstr(from, end) : NULL;
    p = to ? open_memstream(&made.text, &made.length) : NULL;
    if (p) {
        fprintf(p, "%.*s\n", (int)(from - (const char *)old) + (int)strlen(begin),
                (const char *)old);
        fprintf(p,
                "| | claim | criterion | paper | ours | n | difference | effect | q | verdict |\n"
                "|---|---|---|---|---|---|---|---|---|---|\n");
        put_claims(p, t, texts, 5, 0);
        fprintf(p, "\n%s", to);
        failed = finish(&made, p, path);
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

static int write_page(const char *out, int links, const correction *c)
{
    page made;
    FILE *p = open_memstream(&made.text, &made.length);
    size_t i;
    if (!p) return -1;
    put_head(p, links, c);
    for (i = 0; i < table_count; i++) put_table(p, &tables[i], links);
    return finish(&made, p, out);
}

int main(int argc, char **argv)
{
    const char *out = NULL, *into = NULL, *numbers = NULL;
    correction c;
    size_t t;
    int i, failed = 0, links = 0;
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
        else if (load(argv[i]))
            failed = 1;
    }
    if (!failed && (table_count == 0 || !out == !into || (into && numbers))) return usage();
    failed = failed || correct(&c);
    if (!failed && out) failed = write_page(out, links, &c);
    if (!failed && numbers) failed = write_csv(numbers);
    for (t = 0; into && t < table_count && !failed; t++) failed = write_into(into, &tables[t]);
    for (t = 0; t < table_count; t++) csv_release(&tables[t].data);
    return failed ? 1 : 0;
}
