/* page.h - tables of a documentation page, made by the test program that computes them.

   A page marks where a table goes, and the program says what belongs there:

       <!-- table: heights (make tables-docs) -->          page_table("heights");
                                                           page_print("| x | y |\n|---|---|\n");
       | x | y |                                           page_print("| 1 | %s |\n",
       |---|---|                                                      page_number(y, 4));
       | 1 | 0.5774 |

       <!-- end -->

   Then page_compare fails for every line that is not as computed, for tables that the page lacks
   and for marks that no table belongs to; page_write brings the page up to date. The page is as the
   program in double gives it, to the letter. With `exact` = 0 numbers may differ by a unit and a
   half in their last written place plus 2e-4 of their size, which leaves room for floats.

   In the main program:

       return page_main(argc, argv, "docs/page.md", exact, "the page");

   which reports, as test_report does, after it has compared the tables; with --markdown it prints
   them, with --docs it writes the page. Include this file before
   all others. */
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
} page_tables[PAGE_TABLES_MAX];
static size_t page_count;

static inline void page_table(const char *name)
{
    if (!CHECK(page_count < PAGE_TABLES_MAX)) exit(2);
    page_tables[page_count].name = name;
    page_tables[page_count++].start = page_length;
}

/* A table that this build of the program does not compute. */
static inline void page_skip(const char *name)
{
    page_table(name);
    page_tables[page_count - 1].skipped = 1;
}

#if defined(__GNUC__)
__attribute__((format(printf, 1, 2)))
#endif
static inline void page_print(const char *format, ...)
{
    va_list args;
    int n;
    va_start(args, format);
    n = vsnprintf(page_text + page_length, PAGE_TEXT_MAX - page_length, format, args);
    va_end(args);
    if (!CHECK(n >= 0 && page_length + (size_t)n < PAGE_TEXT_MAX)) exit(2);
    page_length += (size_t)n;
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

/* Both are lines that end with '\n'. */
static inline int page_same(const char *computed, const char *written, int exact)
{
    while (*computed != '\n' && *written != '\n') {
        const int number = !exact && strspn(written, "-0123456789.") > 0 &&
                           strspn(computed, "-0123456789.") > 0;
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

static inline const char *page_next_line(const char *p, const char *end)
{
    const char *newline = (const char *)memchr(p, '\n', (size_t)(end - p));
    return newline == NULL ? end : newline + 1;
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

/* The two lines that differ first, if any; p is behind the mark. Returns what follows the table. */
static inline const char *page_compare_table(size_t t, const char *p, const char *end, int exact)
{
    const char *q = page_text + page_tables[t].start, *q_end = page_table_end(t);
    int bad = 0;
    while (page_tables[t].skipped && p < end && !page_is_end(p)) p = page_next_line(p, end);
    if (page_tables[t].skipped) return p;
    if (p < end && *p == '\n') p++; /* an empty line on both sides, as Markdown wants */
    for (; p < end && !page_is_end(p) && q < q_end && !bad; p = page_next_line(p, end)) {
        bad = !page_same(q, p, exact);
        if (bad)
            printf("  table %s: computed %.*s\n  table %s: written  %.*s\n", page_tables[t].name,
                   (int)strcspn(q, "\n"), q, page_tables[t].name, (int)strcspn(p, "\n"), p);
        q = page_next_line(q, q_end);
    }
    if (!bad && p < end && *p == '\n') p++;
    CHECK(!bad && q == q_end && p < end && page_is_end(p));
    while (p < end && !page_is_end(p)) p = page_next_line(p, end);
    return p;
}

static inline void page_compare(const char *path, int exact)
{
    unsigned char *data;
    const char *p, *end;
    size_t n, t, found = 0;
    char err[FILES_ERR_MAX];
    if (!CHECK_INT(files_read(path, 1u << 20, &data, &n, err), 0)) {
        printf("  %s\n", err);
        return;
    }
    end = (const char *)data + n;
    for (p = (const char *)data; p < end; p = page_next_line(p, end)) {
        t = page_mark(p);
        if (!CHECK(t <= page_count)) printf("  no such table: %.*s\n", (int)strcspn(p, "\n"), p);
        if (t >= page_count) continue;
        found++;
        p = page_compare_table(t, page_next_line(p, end), end, exact);
    }
    if (!CHECK_INT(found, page_count)) printf("  %s lacks a table, or has one twice\n", path);
    free(data);
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Replaces what stands between marks and ends in data; returns the length, 0 if that is impossible.
   made has room for `room` characters. */
static inline size_t page_fill(char *made, size_t room, const char *data, size_t size)
{
    const char *p = data, *end = data + size, *next;
    size_t t, n, length = 0;
    while (p < end) {
        next = page_next_line(p, end);
        n = (size_t)(next - p);
        if (n > room - length) return 0;
        memcpy(made + length, p, n);
        length += n;
        t = page_mark(p);
        p = next;
        if (t >= page_count) continue;
        while (p < end && !page_is_end(p) && page_mark(p) == page_count) p = page_next_line(p, end);
        if (p == end || !page_is_end(p)) return 0;
        n = (size_t)(page_table_end(t) - page_text) - page_tables[t].start;
        if (n + 2 > room - length) return 0; /* a table twice */
        made[length++] = '\n';
        memcpy(made + length, page_text + page_tables[t].start, n);
        length += n;
        made[length++] = '\n';
    }
    return length;
}

static inline int page_write(const char *path)
{
    unsigned char *data;
    char *made, err[FILES_ERR_MAX];
    size_t n, length, room;
    int rc = -1;
    if (files_read(path, 1u << 20, &data, &n, err) != 0) {
        printf("%s\n", err);
        return 2;
    }
    room = n + page_length + 2 * page_count + 1;
    made = (char *)malloc(room);
    if (made == NULL) exit(2);
    length = page_fill(made, room, (const char *)data, n);
    if (length > 0) rc = files_write(path, made, length, err);
    if (length == 0) (void)snprintf(err, sizeof err, "a mark without an end, or a table twice");
    if (rc == 0)
        printf("wrote %s\n", path);
    else
        printf("%s: %s\n", path, err);
    free(made);
    free(data);
    return rc == 0 ? 0 : 2;
}

static const char *page_path;
static int page_exact;

static inline void test_page(void)
{
    page_compare(page_path, page_exact);
}

/* To be called when all tables are there. Returns the exit code. */
static inline int page_main(int argc, char **argv, const char *path, int exact, const char *name)
{
    size_t t;
    page_path = path;
    page_exact = exact;
    if (argc > 1 && strcmp(argv[1], "--markdown") == 0) {
        for (t = 0; t < page_count; t++)
            printf("<!-- table: %s -->\n\n%.*s\n", page_tables[t].name,
                   (int)((size_t)(page_table_end(t) - page_text) - page_tables[t].start),
                   page_text + page_tables[t].start);
        return test_failed != 0;
    }
    if (argc > 1 && strcmp(argv[1], "--docs") == 0) {
        for (t = 0; t < page_count; t++)
            if (page_tables[t].skipped) return 2;
        return test_failed ? 1 : page_write(path);
    }
    RUN(test_page);
    return test_report(name);
}
#endif
