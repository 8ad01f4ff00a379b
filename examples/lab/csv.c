/* csv.c - see csv.h. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include "csv.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef BUILD_FLAGS
#define BUILD_FLAGS "unknown"
#endif
#if defined(__clang__)
#define CSVI_COMPILER "clang " __clang_version__
#elif defined(__GNUC__)
#define CSVI_COMPILER "gcc " __VERSION__
#else
#define CSVI_COMPILER "unknown"
#endif

/* ---- numbers ---- */

/* Replaces the first `from` in `text` by `to`; `text` has room for it. */
static void csvi_replace(char *text, const char *from, const char *to)
{
    char *at = strstr(text, from);
    size_t a = strlen(from), b = strlen(to);
    if (!at || strcmp(from, to) == 0) return;
    memmove(at + b, at + a, strlen(at + a) + 1);
    memcpy(at, to, b);
}

/* Prints a finite x with a decimal point whatever the locale. */
static void csvi_print(char *text, int digits, double x)
{
    (void)snprintf(text, CSV_NUMBER_MAX, "%.*g", digits, x);
    csvi_replace(text, localeconv()->decimal_point, ".");
}

/* Prints nan and the infinities, whose spelling libc leaves open, and says if it did. */
static int csvi_print_special(char *text, double x)
{
    if (!isnan(x) && !isinf(x)) return 0;
    strcpy(text, isnan(x) ? "nan" : x > 0 ? "inf" : "-inf");
    return 1;
}

/* The fewest digits that give the same number back, or the same float. */
static char *csvi_shortest(char *text, double x, int digits, int single)
{
    double back;
    if (csvi_print_special(text, x)) return text;
    /* 0 and -0 are printed differently, so equal values are equal bits here. */
    for (; digits <= 17; digits++) {
        csvi_print(text, digits, x);
        if (csv_read_number(text, &back) != 0) continue;
        if (single ? (float)back == (float)x : back == x) break;
    }
    return text;
}

char *csv_format(char *text, double x)
{
    return csvi_shortest(text, x, 15, 0);
}

char *csv_format_float(char *text, float x)
{
    return csvi_shortest(text, (double)x, 6, 1);
}

static const char *csvi_skip_digits(const char *s, int *any)
{
    for (; *s >= '0' && *s <= '9'; s++) *any = 1;
    return s;
}

/* Is the whole of s a decimal number? strtod alone accepts blanks, hexadecimal and nan(...). */
static int csvi_is_decimal(const char *s)
{
    int digits = 0, exponent = 0;
    if (*s == '+' || *s == '-') s++;
    s = csvi_skip_digits(s, &digits);
    if (*s == '.') s = csvi_skip_digits(s + 1, &digits);
    if (!digits) return 0;
    if (*s != 'e' && *s != 'E') return *s == 0;
    s++;
    if (*s == '+' || *s == '-') s++;
    s = csvi_skip_digits(s, &exponent);
    return exponent && *s == 0;
}

int csv_read_number(const char *text, double *x)
{
    const char *unsigned_part = text + (*text == '+' || *text == '-');
    char local[512];
    if (strcmp(text, "nan") == 0) {
        *x = (double)NAN;
        return 0;
    }
    if (strcmp(unsigned_part, "inf") == 0) {
        *x = *text == '-' ? -(double)INFINITY : (double)INFINITY;
        return 0;
    }
    if (!csvi_is_decimal(text) || strlen(text) > sizeof local - 32) return -1;
    strcpy(local, text);
    csvi_replace(local, ".", localeconv()->decimal_point); /* strtod wants the locale's own */
    *x = strtod(local, NULL);
    return isinf(*x) ? -1 : 0;
}

/* ---- writing ---- */

void csv_begin(csv_table *t)
{
    memset(t, 0, sizeof *t);
}

void csv_end(csv_table *t)
{
    free(t->text);
    memset(t, 0, sizeof *t);
}

static void csvi_append(csv_table *t, const char *text, size_t n)
{
    if (*t->error) return;
    if (t->capacity - t->length < n) {
        size_t capacity = 2 * t->capacity + n + 1024;
        char *grown = capacity > t->capacity ? (char *)realloc(t->text, capacity) : NULL;
        if (!grown) {
            (void)files_fail(t->error, "no memory for a table of %zu bytes", t->length);
            return;
        }
        t->text = grown;
        t->capacity = capacity;
    }
    memcpy(t->text + t->length, text, n);
    t->length += n;
}

static void csvi_append_text(csv_table *t, const char *text)
{
    csvi_append(t, text, strlen(text));
}

/* The text of a comment must not end the comment. */
static void csvi_append_one_line(csv_table *t, const char *text)
{
    for (; *text; text++) csvi_append(t, *text == '\n' || *text == '\r' ? " " : text, 1);
}

void csv_note(csv_table *t, const char *key, const char *value)
{
    if (t->columns && !*t->error)
        (void)files_fail(t->error, "the comment '%s' comes after the column names", key);
    csvi_append_text(t, "# ");
    csvi_append_one_line(t, key);
    csvi_append_text(t, ": ");
    csvi_append_one_line(t, value ? value : "");
    csvi_append_text(t, "\n");
}

void csv_note_real(csv_table *t, const char *key, double value)
{
    char text[CSV_NUMBER_MAX];
    csv_note(t, key, csv_format(text, value));
}

void csv_note_int(csv_table *t, const char *key, long long value)
{
    char text[CSV_NUMBER_MAX];
    (void)snprintf(text, sizeof text, "%lld", value);
    csv_note(t, key, text);
}

/* "11 12 13", or "11 to 211" if they are many. */
static void csvi_note_seeds(csv_table *t, uint64_t first, size_t count)
{
    char text[512];
    size_t i, used = 0;
    const size_t shown = count > 16 ? 1 : count;
    for (i = 0; i < shown; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, i ? " %llu" : "%llu",
                                 (unsigned long long)(first + i));
    if (shown < count)
        (void)snprintf(text + used, sizeof text - used, " to %llu",
                       (unsigned long long)(first + (count - 1)));
    csv_note(t, count == 1 ? "seed" : "seeds", text);
}

void csv_note_origin(csv_table *t, const csv_origin *origin)
{
    if (origin->program) csv_note(t, "program", origin->program);
    if (origin->version) csv_note(t, "version", origin->version);
    if (origin->seeds) csvi_note_seeds(t, origin->first_seed, origin->seeds);
    csv_note(t, "compiler", CSVI_COMPILER);
    csv_note(t, "flags", BUILD_FLAGS);
    if (origin->data) {
        char text[256];
        (void)snprintf(text, sizeof text, "%.200s %016llx", origin->data,
                       (unsigned long long)origin->data_hash);
        csv_note(t, "data", text);
    }
}

/* Must the text be quoted to come back as the same text? */
static int csvi_needs_quotes(const char *text)
{
    double ignored;
    size_t n = strlen(text);
    return n == 0 || strpbrk(text, ",\"\r\n") != NULL || text[0] == '#' || text[0] == ' ' ||
           text[n - 1] == ' ' || (unsigned char)text[0] == 0xef /* perhaps a byte order mark */ ||
           csv_read_number(text, &ignored) == 0;
}

static void csvi_append_quoted(csv_table *t, const char *text)
{
    if (!csvi_needs_quotes(text)) {
        csvi_append_text(t, text);
        return;
    }
    csvi_append_text(t, "\"");
    for (; *text; text++) {
        if (*text == '"') csvi_append_text(t, "\"");
        csvi_append(t, text, 1);
    }
    csvi_append_text(t, "\"");
}

void csv_columns(csv_table *t, const char *const *names, size_t n)
{
    size_t i, k;
    if (*t->error) return;
    if (t->columns) (void)files_fail(t->error, "column names twice");
    if (n == 0 || n > CSV_COLUMNS_MAX) (void)files_fail(t->error, "%zu columns", n);
    for (i = 0; i < n && !*t->error; i++) {
        for (k = 0; k < i && strcmp(names[k], names[i]) != 0; k++) {
        }
        if (k < i || !*names[i]) (void)files_fail(t->error, "column name '%s' is bad", names[i]);
        if (i) csvi_append_text(t, ",");
        csvi_append_quoted(t, names[i]);
    }
    csvi_append_text(t, "\n");
    if (!*t->error) t->columns = n;
}

/* Starts a cell; afterwards its text is appended. */
static void csvi_start_cell(csv_table *t)
{
    if (*t->error) return;
    if (t->cell == t->columns)
        (void)files_fail(t->error, "row %zu has more than %zu cells", t->row + 1, t->columns);
    else if (t->cell++)
        csvi_append_text(t, ",");
}

void csv_text(csv_table *t, const char *text)
{
    csvi_start_cell(t);
    csvi_append_quoted(t, text ? text : "");
}

static void csvi_number(csv_table *t, const char *text)
{
    csvi_start_cell(t);
    csvi_append_text(t, text);
}

void csv_real(csv_table *t, double x)
{
    csv_list(t, &x, 1, 1);
}

void csv_list(csv_table *t, const double *x, size_t n, size_t step)
{
    char text[CSV_NUMBER_MAX];
    size_t i;
    csvi_start_cell(t);
    for (i = 0; i < n; i++) {
        if (i) csvi_append_text(t, " ");
        csvi_append_text(t, csv_format(text, x[i * step]));
    }
}

void csv_float(csv_table *t, float x)
{
    char text[CSV_NUMBER_MAX];
    csvi_number(t, csv_format_float(text, x));
}

void csv_int(csv_table *t, long long x)
{
    char text[CSV_NUMBER_MAX];
    (void)snprintf(text, sizeof text, "%lld", x);
    csvi_number(t, text);
}

void csv_uint(csv_table *t, uint64_t x)
{
    char text[CSV_NUMBER_MAX];
    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)x);
    csvi_number(t, text);
}

void csv_end_row(csv_table *t)
{
    if (*t->error) return;
    if (t->cell != t->columns || !t->columns) {
        (void)files_fail(t->error, "row %zu has %zu of %zu cells", t->row + 1, t->cell, t->columns);
        return;
    }
    csvi_append_text(t, "\n");
    t->cell = 0;
    t->row++;
}

int csv_save(const csv_table *t, const char *path, char *err)
{
    if (*t->error) return files_fail(err, "cannot write '%.300s': %.200s", path, t->error);
    if (!t->columns || t->cell)
        return files_fail(err, "cannot write '%.300s': the table is unfinished", path);
    return files_write(path, t->text, t->length, err);
}

int csv_finish(csv_table *t, const char *path)
{
    char err[CSV_ERR_MAX];
    const int failed = csv_save(t, path, err);
    if (failed) fprintf(stderr, "%s\n", err);
    csv_end(t);
    return failed;
}

/* ---- reading ---- */

typedef struct csvi_cell {
    char *text;
    size_t line;
    int quoted;
} csvi_cell;

typedef struct csvi_reader {
    char *at, *end; /* *end is 0 */
    size_t line;
    const char *name;
    char *err;
    csvi_cell *cells; /* names and rows, one after the other */
    size_t count, capacity;
    size_t columns; /* 0 until the names were read */
    size_t comments, comments_capacity;
    char **comment;
} csvi_reader;

enum { CSVI_NEXT_CELL, CSVI_NEXT_LINE, CSVI_BAD };

static int csvi_malformed(const csvi_reader *r, size_t line, const char *what)
{
    return files_fail(r->err, "%.300s: line %zu: %s", r->name, line, what);
}

void *csv_grow(void *array, size_t count, size_t *capacity, size_t item)
{
    size_t more = 2 * *capacity + 64;
    void *grown;
    if (count < *capacity) return array;
    if (more > (size_t)-1 / item) return NULL;
    grown = realloc(array, more * item);
    if (grown) *capacity = more;
    return grown;
}

/* Takes the separator at r->at away, a 0 in its place, and says what follows it. */
static int csvi_take_separator(csvi_reader *r)
{
    char *at = r->at;
    int is_line_end = at == r->end || *at == '\n' || (*at == '\r' && at[1] == '\n');
    if (!is_line_end && *at != ',') return CSVI_BAD;
    if (at == r->end) return CSVI_NEXT_LINE;
    r->at += *at == '\r' ? 2 : 1;
    r->line += is_line_end ? 1u : 0u;
    *at = 0;
    return is_line_end ? CSVI_NEXT_LINE : CSVI_NEXT_CELL;
}

/* Reads a quoted cell in place: the text without its quotes is never longer than with them. */
static int csvi_read_quoted(csvi_reader *r, csvi_cell *cell)
{
    char *out = ++r->at;
    int next;
    cell->text = out;
    cell->quoted = 1;
    for (;;) {
        if (r->at == r->end) {
            (void)csvi_malformed(r, cell->line, "a quote is not closed");
            return CSVI_BAD;
        }
        if (*r->at == '"' && *++r->at != '"') break;
        if (*r->at == '\n') r->line++;
        *out++ = *r->at++;
    }
    next = csvi_take_separator(r);
    *out = 0;
    if (next == CSVI_BAD) (void)csvi_malformed(r, r->line, "text behind a closing quote");
    return next;
}

static int csvi_read_plain(csvi_reader *r, csvi_cell *cell)
{
    cell->text = r->at;
    cell->quoted = 0;
    for (;;) {
        int next = csvi_take_separator(r);
        if (next != CSVI_BAD) return next;
        if (*r->at == '"') {
            (void)csvi_malformed(r, r->line, "a quote inside a cell that does not begin with one");
            return CSVI_BAD;
        }
        r->at++;
    }
}

/* Reads one line of cells, which quoted line ends may stretch. Returns 0 or -1. */
static int csvi_read_row(csvi_reader *r)
{
    size_t cells = 0, line = r->line;
    int next = CSVI_NEXT_CELL;
    while (next == CSVI_NEXT_CELL) {
        csvi_cell *grown =
            (csvi_cell *)csv_grow(r->cells, r->count, &r->capacity, sizeof *r->cells);
        csvi_cell *cell;
        if (!grown) return csvi_malformed(r, r->line, "no memory for the table");
        r->cells = grown;
        cell = &grown[r->count++];
        cell->line = r->line;
        next = *r->at == '"' ? csvi_read_quoted(r, cell) : csvi_read_plain(r, cell);
        if (next == CSVI_BAD) return -1;
        if (++cells > CSV_COLUMNS_MAX) return csvi_malformed(r, line, "too many cells");
    }
    if (r->columns && cells != r->columns)
        return files_fail(r->err, "%.300s: line %zu: %zu cells where %zu are expected", r->name,
                          line, cells, r->columns);
    r->columns = cells;
    return 0;
}

static int csvi_read_comment(csvi_reader *r)
{
    char **grown =
        (char **)csv_grow(r->comment, r->comments, &r->comments_capacity, sizeof *r->comment);
    char *stop = (char *)memchr(r->at, '\n', (size_t)(r->end - r->at));
    char *next = stop ? stop + 1 : r->end;
    if (!grown) return csvi_malformed(r, r->line, "no memory for the table");
    if (!stop) stop = r->end;
    if (stop[-1] == '\r') stop--; /* there is at least the # before it */
    *stop = 0;
    r->comment = grown;
    r->comment[r->comments++] = r->at + (r->at[1] == ' ' ? 2 : 1);
    r->at = next;
    r->line++;
    return 0;
}

/* Column names must tell the columns apart. */
static int csvi_check_names(const csvi_reader *r)
{
    size_t i, k;
    for (i = 0; i < r->columns; i++) {
        const csvi_cell *cell = &r->cells[i];
        if (!*cell->text) return csvi_malformed(r, cell->line, "a column without a name");
        for (k = 0; k < i; k++)
            if (strcmp(r->cells[k].text, cell->text) == 0)
                return csvi_malformed(r, cell->line, "two columns of the same name");
    }
    return 0;
}

static int csvi_read_lines(csvi_reader *r)
{
    if (r->end - r->at >= 3 && memcmp(r->at, "\xef\xbb\xbf", 3) == 0) r->at += 3;
    while (r->at < r->end) {
        int names_known = r->columns != 0, status = 0;
        if (*r->at == '#')
            status = csvi_read_comment(r);
        else if (*r->at == '\n' || (*r->at == '\r' && r->at[1] == '\n'))
            (void)csvi_take_separator(r);
        else
            status = csvi_read_row(r);
        if (status == 0 && !names_known && r->columns) status = csvi_check_names(r);
        if (status != 0) return -1;
    }
    if (!r->columns) (void)files_fail(r->err, "%.300s: no row of column names", r->name);
    return r->columns ? 0 : -1;
}

/* Puts the cells of column `c` into place, as texts and as numbers. */
static void csvi_fill_column(csv_data *d, const csvi_cell *cells, size_t c)
{
    size_t i;
    d->text_line[c] = 0;
    for (i = 0; i < d->rows; i++) {
        const csvi_cell *cell = &cells[(i + 1) * d->columns + c];
        double *number = &d->numbers[c * d->rows + i];
        *number = (double)NAN;
        d->texts[c * d->rows + i] = cell->text;
        if (!cell->quoted && (!*cell->text || csv_read_number(cell->text, number) == 0)) continue;
        if (!d->text_line[c]) d->text_line[c] = cell->line;
    }
}

/* Turns the cells, which are row by row, into columns. Returns 0, or -1 for lack of memory. */
static int csvi_make_columns(csvi_reader *r, csv_data *d)
{
    size_t c, cells;
    d->columns = r->columns;
    d->rows = r->count / r->columns - 1;
    cells = d->rows * d->columns;
    d->names = (char **)malloc(d->columns * sizeof *d->names);
    d->text_line = (size_t *)malloc(d->columns * sizeof *d->text_line);
    d->texts = (char **)malloc((cells + 1) * sizeof *d->texts);
    d->numbers = (double *)malloc((cells + 1) * sizeof *d->numbers);
    if (!d->names || !d->text_line || !d->texts || !d->numbers)
        return files_fail(r->err, "%.300s: no memory for the table", r->name);
    for (c = 0; c < d->columns; c++) {
        d->names[c] = r->cells[c].text;
        csvi_fill_column(d, r->cells, c);
    }
    return 0;
}

/* Parses `block` of n bytes and a 0 behind them; the block then belongs to `d`. */
static int csvi_parse_block(char *block, size_t n, const char *name, csv_data *d, char *err)
{
    csvi_reader r;
    const char *zero = (const char *)memchr(block, 0, n);
    int status = -1;
    memset(&r, 0, sizeof r);
    memset(d, 0, sizeof *d);
    d->block = block;
    r.at = block;
    r.end = block + n;
    r.line = 1;
    r.name = name;
    r.err = err;
    if (zero) {
        const char *p;
        for (p = block; p < zero; p++) r.line += *p == '\n' ? 1u : 0u;
        (void)csvi_malformed(&r, r.line, "a 0 byte; this is no text");
    } else {
        status = csvi_read_lines(&r);
    }
    if (status == 0) status = csvi_make_columns(&r, d);
    d->comment = r.comment;
    d->comments = r.comments;
    free(r.cells);
    if (status != 0) csv_release(d);
    return status;
}

int csv_parse(const char *text, size_t n, const char *name, csv_data *d, char *err)
{
    char *block = n < (size_t)-1 ? (char *)malloc(n + 1) : NULL;
    memset(d, 0, sizeof *d);
    if (err) *err = 0;
    if (!block) return files_fail(err, "%.300s: no memory for the table", name);
    if (n) memcpy(block, text, n);
    block[n] = 0;
    return csvi_parse_block(block, n, name, d, err);
}

int csv_load(const char *path, csv_data *d, char *err)
{
    unsigned char *block;
    size_t n;
    memset(d, 0, sizeof *d);
    if (files_read(path, CSV_FILE_MAX, &block, &n, err) != 0) return -1;
    return csvi_parse_block((char *)block, n, path, d, err);
}

/* The index of a column, or `columns` with a message. */
static size_t csvi_find_column(const csv_data *d, const char *name, char *err)
{
    size_t c;
    for (c = 0; c < d->columns && strcmp(d->names[c], name) != 0; c++) {
    }
    if (c == d->columns) (void)files_fail(err, "there is no column '%.300s'", name);
    return c;
}

const double *csv_numbers(const csv_data *d, const char *name, char *err)
{
    size_t c = csvi_find_column(d, name, err);
    if (c == d->columns) return NULL;
    if (!d->text_line[c]) return d->numbers + c * d->rows;
    (void)files_fail(err, "line %zu: the column '%.300s' is not all numbers", d->text_line[c],
                     name);
    return NULL;
}

char *const *csv_texts(const csv_data *d, const char *name, char *err)
{
    size_t c = csvi_find_column(d, name, err);
    return c == d->columns ? NULL : d->texts + c * d->rows;
}

const char *csv_comment(const csv_data *d, const char *key)
{
    size_t i, n = strlen(key);
    for (i = 0; i < d->comments; i++) {
        const char *line = d->comment[i];
        if (strncmp(line, key, n) == 0 && line[n] == ':')
            return line + n + (line[n + 1] == ' ' ? 2 : 1);
    }
    return NULL;
}

void csv_release(csv_data *d)
{
    free(d->names);
    free(d->comment);
    free(d->block);
    free(d->texts);
    free(d->numbers);
    free(d->text_line);
    memset(d, 0, sizeof *d);
}
