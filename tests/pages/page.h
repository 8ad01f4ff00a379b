/* page.h - tables of a documentation page, made by the test program that computes them.

   A page marks where a table goes, and the program says what belongs there:

       <!-- table: heights (make tables-docs) -->         page_table("heights", "| x | y |");
                                                          page_print("| 1 | %s |\n",
       | x | y |                                                     page_number(y, 4));
       |---|---|
       | 1 | 0.5774 |

       <!-- end -->

   Then test_page fails at the first line that is not as computed, for a table that the page lacks
   or has twice, and for a mark of no table; page_write brings the page up to date. The page is as
   the program in double gives it, to the letter. With `exact` = 0 numbers may differ by a unit and
   a half in their last written place plus 2e-4 of their size, which leaves room for floats.

   In the main program:

       return page_main(argc, argv, "docs/page.md", exact, "the page");

   which reports, as test_report does, after it has compared the tables; with --docs it writes the
   page. Include this file before all others. */
#ifndef PAGE_H
#define PAGE_H
#include "lab/files.c"
#include "test.h"
#include <stdarg.h>
#include <stdlib.h>

#define PAGE_TEXT_MAX 65536
#define PAGE_TABLES_MAX 32

static char page_text[PAGE_TEXT_MAX];
static size_t page_length;
static struct {
    const char *name;
    size_t start; /* in page_text; the next one's start, or page_length, ends it */
    int skipped;  /* whatever the page says is right */
    int found;    /* its mark, in the page */
} page_tables[PAGE_TABLES_MAX];
static size_t page_count;

#if defined(__GNUC__)
__attribute__((format(printf, 1, 2)))
#endif
static inline void
page_print(const char *format, ...)
{
    va_list args;
    int n;
    va_start(args, format);
    n = vsnprintf(page_text + page_length, PAGE_TEXT_MAX - page_length, format, args);
    va_end(args);
    if (!CHECK(n >= 0 && page_length + (size_t)n < PAGE_TEXT_MAX)) exit(2);
    page_length += (size_t)n;
}

/* Begins a table: its name, and the line of its columns' names. */
static inline void page_table(const char *name, const char *heading)
{
    if (!CHECK(page_count < PAGE_TABLES_MAX)) exit(2);
    page_tables[page_count].name = name;
    page_tables[page_count++].start = page_length;
    page_print("%s\n|", heading);
    while ((heading = strchr(heading + 1, '|')) != NULL) page_print("---|");
    page_print("\n");
}

/* A table that this build of the program does not compute. */
static inline void page_skip(const char *name)
{
    page_table(name, "|");
    page_tables[page_count - 1].skipped = 1;
}

/* One of 16 buffers in turn, so that one page_print can show up to 16 numbers. */
static inline char *page_buffer(void)
{
    static char buffer[16][40];
    static int turn;
    return buffer[turn = (turn + 1) % 16];
}

/* With so many decimals, and never "-0.00". */
static inline const char *page_number(double value, int decimals)
{
    char *text = page_buffer();
    (void)snprintf(text, 40, "%.*f", decimals, value);
    if (strspn(text, "-0.") == strlen(text)) (void)snprintf(text, 40, "%.*f", decimals, 0.0);
    return text;
}

/* With so many digits, as 1.2e-5; plainly from 0.1 to 1000. */
static inline const char *page_small(double value, int digits)
{
    char *text = page_buffer(), *e;
    if (fabs(value) >= 0.1 && fabs(value) < 1000) {
        const int before_point = fabs(value) < 1 ? 0 : (int)floor(log10(fabs(value))) + 1;
        return page_number(value, digits > before_point ? digits - before_point : 0);
    }
    (void)snprintf(text, 40, "%.*e", digits - 1, value);
    e = strchr(text, 'e');
    if (e != NULL && e[2] == '0') memmove(e + 2, e + 3, strlen(e + 3) + 1); /* e-05 is e-5 */
    return text;
}

/* ---- comparing ------------------------------------------------------------------------------- */

/* Half a unit in the last place of the number that text begins with, times three. */
static inline double page_place(const char *text, const char *end)
{
    const char *point = NULL, *exponent = end, *p;
    double place = 1.5;
    for (p = text; p < end; p++) {
        if (*p == '.') point = p;
        if (*p == 'e') exponent = p;
    }
    if (point != NULL) place *= pow(10, -(double)(exponent - point - 1));
    return exponent < end ? place * pow(10, strtod(exponent + 1, NULL)) : place;
}

/* Both are lines, which '\n' ends, or 0. */
static inline int page_same(const char *computed, const char *written, int exact)
{
    while (*computed != 0 && *computed != '\n' && *written != '\n') {
        const int number =
            !exact && strspn(written, "-0123456789.") > 0 && strspn(computed, "-0123456789.") > 0;
        char *end_computed, *end_written;
        const double a = number ? strtod(computed, &end_computed) : 0;
        const double b = number ? strtod(written, &end_written) : 0;
        if (number && end_computed > computed && end_written > written) {
            if (!(fabs(a - b) <= page_place(written, end_written) + 2e-4 * fabs(b))) return 0;
            computed = end_computed;
            written = end_written;
        } else if (*computed++ != *written++) {
            return 0;
        }
    }
    return *computed == *written;
}

static inline const char *page_next_line(const char *p)
{
    return p + strcspn(p, "\n") + (strchr(p, '\n') != NULL);
}

static inline const char *page_table_end(size_t t)
{
    return page_text + (t + 1 < page_count ? page_tables[t + 1].start : page_length);
}

/* The number of the table that the mark on this line asks for; page_count if it is no mark, and
   one more if it asks for a table that there is not. */
static inline size_t page_mark(const char *line)
{
    static const char mark[] = "<!-- table: ";
    size_t t, n;
    if (strncmp(line, mark, sizeof mark - 1) != 0) return page_count;
    line += sizeof mark - 1;
    n = strcspn(line, " \n");
    for (t = 0; t < page_count; t++)
        if (strlen(page_tables[t].name) == n && memcmp(page_tables[t].name, line, n) == 0) return t;
    return page_count + 1;
}

static inline int page_is_end(const char *line)
{
    return strncmp(line, "<!-- end -->", 12) == 0;
}

/* The page as it should be, for free(); NULL after a word if it has not each table once, with an
   end. */
static inline char *page_fill(const char *page)
{
    char *const made = (char *)malloc(strlen(page) + page_length + 2 * page_count + 1), *to = made;
    size_t found = 0;
    int bad = 0;
    if (made == NULL) exit(2);
    while (*page && !bad) {
        const char *from = page;
        const size_t t = page_mark(page);
        page = page_next_line(page);
        bad = t != page_count && (t > page_count || page_tables[t].found++ > 0);
        if (bad) printf("  no such table, or twice: %.*s\n", (int)strcspn(from, "\n"), from);
        memcpy(to, from, (size_t)(page - from));
        to += page - from;
        if (t == page_count || bad) continue;
        found++;
        from = page;
        while (*page && !page_is_end(page)) page = page_next_line(page);
        bad = *page == 0;
        if (bad) printf("  table %s has no end\n", page_tables[t].name);
        if (page_tables[t].skipped) {
            memcpy(to, from, (size_t)(page - from));
            to += page - from;
        } else {
            from = page_text + page_tables[t].start;
            to += sprintf(to, "\n%.*s\n", (int)(page_table_end(t) - from), from);
        }
    }
    *to = 0;
    if (!bad && found == page_count) return made;
    if (!bad) printf("  the page lacks a table\n");
    free(made);
    return NULL;
}

static const char *page_path;
static int page_exact;

/* The page and what it should be, both for free(); 0, or -1 after a word. */
static inline int page_both(char **written, char **made)
{
    unsigned char *data;
    size_t n;
    char err[FILES_ERR_MAX];
    if (files_read(page_path, 1u << 20, &data, &n, err) != 0) {
        printf("%s\n", err);
        return -1;
    }
    *written = (char *)data;
    *made = page_fill(*written);
    if (*made == NULL) free(data);
    return *made == NULL ? -1 : 0;
}

static inline void test_page(void)
{
    char *written, *made;
    const char *p, *q;
    if (!CHECK_INT(page_both(&written, &made), 0)) return;
    for (p = made, q = written; *p && *q && page_same(p, q, page_exact); q = page_next_line(q))
        p = page_next_line(p);
    if (!CHECK(*p == 0 && *q == 0))
        printf("  computed %.*s\n  written  %.*s\n", (int)strcspn(p, "\n"), p,
               (int)strcspn(q, "\n"), q);
    free(made);
    free(written);
}

static inline int page_write(void)
{
    char *written, *made, err[FILES_ERR_MAX];
    int rc;
    if (page_both(&written, &made) != 0) return 2;
    rc = files_write(page_path, made, strlen(made), err);
    printf("%s %s\n", rc == 0 ? "wrote" : err, rc == 0 ? page_path : "");
    free(made);
    free(written);
    return rc == 0 ? 0 : 2;
}

/* To be called when all tables are there. Returns the exit code. */
static inline int page_main(int argc, char **argv, const char *path, int exact, const char *name)
{
    page_path = path;
    page_exact = exact;
    if (argc > 1 && strcmp(argv[1], "--docs") == 0) {
        size_t t;
        for (t = 0; t < page_count; t++)
            if (page_tables[t].skipped) return 2;
        return test_failed ? 1 : page_write();
    }
    RUN(test_page);
    return test_report(name);
}
#endif
