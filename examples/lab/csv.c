/* csv.c - see csv.h. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include "csv.h"

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

void *csv_grow(void *array, size_t count, size_t *capacity, size_t item)
{
    const size_t more = 2 * *capacity + 64;
    void *grown;
    if (count < *capacity) return array;
    grown = realloc(array, more * item);
    if (grown) *capacity = more;
    return grown;
}

/* ---- numbers ---- */

char *csv_format(char *text, double x)
{
    double back;
    int digits = 15;
    if (isnan(x)) return strcpy(text, "nan"); /* not -nan */
    do (void)snprintf(text, CSV_NUMBER_MAX, "%.*g", digits, x);
    while (++digits <= 17 && (csv_read_number(text, &back) != 0 || back != x));
    return text;
}

int csv_read_number(const char *text, double *x)
{
    static const char *const named[3] = {"nan", "inf", "-inf"};
    char *end;
    size_t i;
    *x = strtod(text, &end);
    if (end == text || *end) return -1;
    for (i = 0; i < 3; i++)
        if (strcmp(text, named[i]) == 0) return 0;
    /* strtod alone accepts blanks, hexadecimal, nan(...), and what is too large */
    return isinf(*x) || text[strspn(text, "+-.0123456789eE")] ? -1 : 0;
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

static void csvi_append(csv_table *t, const char *text)
{
    const size_t n = strlen(text);
    if (*t->error) return;
    if (t->capacity - t->length < n) {
        const size_t capacity = 2 * t->capacity + n + 1024;
        char *grown = (char *)realloc(t->text, capacity);
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

void csv_note(csv_table *t, const char *key, const char *value)
{
    csvi_append(t, "# ");
    csvi_append(t, key);
    csvi_append(t, ": ");
    csvi_append(t, value);
    csvi_append(t, "\n");
}

void csv_note_real(csv_table *t, const char *key, double value)
{
    char text[CSV_NUMBER_MAX];
    csv_note(t, key, csv_format(text, value));
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
    char text[256];
    csv_note(t, "program", origin->program);
    csv_note(t, "version", origin->version);
    if (origin->seeds) csvi_note_seeds(t, origin->first_seed, origin->seeds);
    csv_note(t, "compiler", CSVI_COMPILER);
    csv_note(t, "flags", BUILD_FLAGS);
    if (!origin->data) return;
    (void)snprintf(text, sizeof text, "%.200s %016llx", origin->data,
                   (unsigned long long)origin->data_hash);
    csv_note(t, "data", text);
}

void csv_columns(csv_table *t, const char *const *names, size_t n)
{
    t->columns = n;
    while (t->cell < n) csv_text(t, names[t->cell]);
    csv_end_row(t);
}

static void csvi_start_cell(csv_table *t)
{
    if (t->cell++) csvi_append(t, ",");
}

/* Must the text be quoted to come back as the same text, and not as a number? */
static int csvi_needs_quotes(const char *text)
{
    double ignored;
    const size_t n = strlen(text);
    return n == 0 || strpbrk(text, ",\"\r\n") != NULL || text[0] == '#' || text[0] == ' ' ||
           text[n - 1] == ' ' || csv_read_number(text, &ignored) == 0;
}

void csv_text(csv_table *t, const char *text)
{
    csvi_start_cell(t);
    if (!csvi_needs_quotes(text)) {
        csvi_append(t, text);
        return;
    }
    csvi_append(t, "\"");
    for (; *text; text++) {
        const char one[2] = {*text, 0};
        csvi_append(t, *text == '"' ? "\"\"" : one);
    }
    csvi_append(t, "\"");
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
        if (i) csvi_append(t, " ");
        csvi_append(t, csv_format(text, x[i * step]));
    }
}

void csv_end_row(csv_table *t)
{
    if (t->cell != t->columns && !*t->error)
        (void)files_fail(t->error, "a row has %zu of %zu cells", t->cell, t->columns);
    csvi_append(t, "\n");
    t->cell = 0;
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

typedef struct csvi_list { /* of texts */
    char **text;
    size_t count, capacity;
} csvi_list;

static int csvi_add(csvi_list *list, char *text)
{
    char **grown = (char **)csv_grow(list->text, list->count, &list->capacity, sizeof *grown);
    if (!grown) return -1;
    list->text = grown;
    grown[list->count++] = text;
    return 0;
}

/* Takes a comment's line out of the text, and returns what follows it. */
static char *csvi_take_comment(char *at)
{
    char *end = at + strcspn(at, "\n");
    if (!*end) return end;
    *end = 0;
    return end + 1;
}

/* Takes the cell at *at out of the text, in place and without its quotes, and moves *at behind it.
   Returns what ended it, ',' or '\n' or 0; or -1 if a quote is not where it should be. */
static int csvi_take_cell(char **at)
{
    const int quoted = **at == '"';
    char *from = *at + quoted, *to = *at;
    int closed = 0, end;
    while (*from && !closed && (quoted || (*from != ',' && *from != '\n'))) {
        closed = *from == '"' && (!quoted || *++from != '"');
        if (!closed) *to++ = *from++;
    }
    end = *from;
    if (closed != quoted || (end && end != ',' && end != '\n')) return -1;
    *at = from + (end != 0);
    *to = 0;
    return end;
}

/* Takes a row out of the text. Returns 0, or -1 with the reason in err. */
static int csvi_take_row(char **at, csvi_list *cells, csv_data *d, const char *name, char *err)
{
    const size_t first = cells->count, row = d->columns ? first / d->columns : 0;
    int end = ',';
    while (end == ',') {
        char *cell = *at;
        end = csvi_take_cell(at);
        if (end < 0) return files_fail(err, "%.300s: row %zu: a misplaced quote", name, row);
        if (csvi_add(cells, cell)) return files_fail(err, "%.300s: no memory", name);
    }
    if (!d->columns) d->columns = cells->count;
    if (cells->count - first == d->columns) return 0;
    return files_fail(err, "%.300s: row %zu: %zu cells where %zu are expected", name, row,
                      cells->count - first, d->columns);
}

/* Turns the cells, which are row by row with the names first, into columns. */
static int csvi_make_columns(csv_data *d, const csvi_list *cells)
{
    size_t c, i;
    d->rows = cells->count / d->columns - 1;
    d->texts = (char **)malloc(cells->count * sizeof *d->texts);
    d->numbers = (double *)malloc(cells->count * sizeof *d->numbers);
    if (!d->texts || !d->numbers) return -1;
    for (c = 0; c < d->columns; c++)
        for (i = 0; i < d->rows; i++)
            d->texts[c * d->rows + i] = cells->text[(i + 1) * d->columns + c];
    return 0;
}

int csv_parse(char *text, size_t n, const char *name, csv_data *d, char *err)
{
    csvi_list cells = {0}, comments = {0};
    char *at = text;
    int failed = 0;
    memset(d, 0, sizeof *d);
    if (strlen(text) != n) failed = files_fail(err, "%.300s: a 0 byte; this is no text", name);
    while (*at && !failed) {
        if (*at != '#') {
            failed = csvi_take_row(&at, &cells, d, name, err);
        } else {
            failed = csvi_add(&comments, at + strspn(at, "# "));
            at = csvi_take_comment(at);
            if (failed) (void)files_fail(err, "%.300s: no memory", name);
        }
    }
    d->block = text;
    d->names = cells.text;
    d->comment = comments.text;
    d->comments = comments.count;
    if (!failed && !d->columns)
        failed = files_fail(err, "%.300s: no row of column names", name);
    else if (!failed && csvi_make_columns(d, &cells))
        failed = files_fail(err, "%.300s: no memory", name);
    if (failed) csv_release(d);
    return failed;
}

int csv_load(const char *path, csv_data *d, char *err)
{
    unsigned char *text;
    size_t n;
    memset(d, 0, sizeof *d);
    if (files_read(path, CSV_FILE_MAX, &text, &n, err)) return -1;
    return csv_parse((char *)text, n, path, d, err);
}

char *const *csv_texts(const csv_data *d, const char *name, char *err)
{
    size_t c;
    for (c = 0; c < d->columns; c++)
        if (strcmp(d->names[c], name) == 0) return d->texts + c * d->rows;
    (void)files_fail(err, "there is no column '%.300s'", name);
    return NULL;
}

const double *csv_numbers(const csv_data *d, const char *name, char *err)
{
    char *const *text = csv_texts(d, name, err);
    double *x = text ? d->numbers + (text - d->texts) : NULL;
    size_t i;
    for (i = 0; x && i < d->rows; i++)
        if (csv_read_number(*text[i] ? text[i] : "nan", &x[i])) {
            (void)files_fail(err, "row %zu: the column '%.300s' is not all numbers", i + 1, name);
            return NULL;
        }
    return x;
}

const char *csv_comment(const csv_data *d, const char *key)
{
    size_t i, n = strlen(key);
    for (i = 0; i < d->comments; i++) {
        const char *line = d->comment[i];
        if (strncmp(line, key, n) == 0 && line[n] == ':') return line + n + strspn(line + n, ": ");
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
    memset(d, 0, sizeof *d);
}
