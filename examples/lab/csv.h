/* csv.h - tables of results that say where they come from, written and read.

   A number in a table is worth little if nobody can tell which program, seed and data made it. The
   writer puts that on top as lines that start with "# ", then the names of the columns, then the
   rows. The table is built in memory and appears on the disk whole or not at all (files_write). The
   reader takes the same format back, so that a figure can be redrawn from its table.

   An example, which leaves out the error checks of every single call because errors stick:

       const char *columns[] = {"epoch", "loss", "arm"};
       char err[CSV_ERR_MAX];
       csv_table t;
       csv_begin(&t);
       csv_note(&t, "program", "training");
       csv_note_real(&t, "lr", 0.1);
       csv_columns(&t, columns, 3);
       csv_real(&t, 1); csv_real(&t, 2.25); csv_text(&t, "batch norm"); csv_end_row(&t);
       if (csv_finish(&t, "out/loss.csv")) return 1;

       csv_data d;
       const double *loss;
       if (csv_load("out/loss.csv", &d, err) || !(loss = csv_numbers(&d, "loss", err)))
           fprintf(stderr, "%s\n", err);
       csv_release(&d);

   The format: cells are separated by commas, lines end in \n. A cell is quoted where it must be,
   also when a text looks like a number, so that texts stay texts. Numbers are written with as many
   digits as it takes to read back the same value; the others are spelt nan, inf, -inf.
*/
#ifndef CSV_H
#define CSV_H

#include "files.h"

#include <stddef.h>
#include <stdint.h>

#define CSV_ERR_MAX FILES_ERR_MAX      /* size of every `err` buffer: one line of text          */
#define CSV_NUMBER_MAX 40              /* size of a buffer for one number                       */
#define CSV_FILE_MAX ((size_t)1 << 28) /* csv_load refuses larger files                       */

/* ---- numbers ---- */

/* Writes `x` into `text` (CSV_NUMBER_MAX bytes) so that csv_read_number gives the same value
   back, in the fewest of 15, 16 or 17 significant digits that do. Returns `text`. */
char *csv_format(char *text, double x);

/* Reads the whole of `text` as a decimal number (or nan, inf, -inf) into `*x`. Returns 0, or -1 if
   it is anything else: empty, blanks, trailing characters, hexadecimal, too large. */
int csv_read_number(const char *text, double *x);

/* ---- writing ---- */

/* A table in the making. Treat the members as private. The first error is kept, and csv_save
   reports it: memory is out, or a row has not as many cells as there are columns. */
typedef struct csv_table {
    char *text;
    size_t length, capacity;
    size_t columns, cell; /* cell: cells so far in the current row */
    char error[CSV_ERR_MAX];
} csv_table;

/* Where a table comes from. */
typedef struct csv_origin {
    const char *program;
    const char *version; /* of the library                          */
    uint64_t first_seed; /* the runs used first_seed, first_seed+1, */
    size_t seeds;        /* ... `seeds` in number; 0: no seeds      */
    const char *data;    /* name of the data set, or null           */
    uint64_t data_hash;  /* files_hash of its bytes                 */
} csv_origin;

/* Makes an empty table. */
void csv_begin(csv_table *t);

/* Frees it. */
void csv_end(csv_table *t);

/* Comment lines "# key: value", before csv_columns; `value` is one line. */
void csv_note(csv_table *t, const char *key, const char *value);
void csv_note_real(csv_table *t, const char *key, double value);

/* The comment lines program, version, seeds, compiler, flags and data. The flags are the string
   BUILD_FLAGS with which the implementation of this header was compiled, else "unknown". */
void csv_note_origin(csv_table *t, const csv_origin *origin);

/* The row of column names: `n` >= 1 distinct texts. Once, before the first cell. */
void csv_columns(csv_table *t, const char *const *names, size_t n);

/* The next cell of the row. */
void csv_text(csv_table *t, const char *text);
void csv_real(csv_table *t, double x);

/* The numbers x[0], x[step], ..., `n` of them, in one cell with a blank between two. */
void csv_list(csv_table *t, const double *x, size_t n, size_t step);

/* Ends the row, which must have as many cells as there are columns. */
void csv_end_row(csv_table *t);

/* Writes the table to `path`. Returns 0, or -1 with the reason in `err` (CSV_ERR_MAX bytes or
   null): the first error of the table, or that of files_write. */
int csv_save(const csv_table *t, const char *path, char *err);

/* The same with the reason on stderr, and csv_end. */
int csv_finish(csv_table *t, const char *path);

/* ---- reading ---- */

/* A table that was read. */
typedef struct csv_data {
    size_t rows, columns, comments;
    char **names;   /* [columns]                                     */
    char **comment; /* [comments], without the leading "# "          */
    /* private: */
    char *block;     /* the text that the pointers point into            */
    char **texts;    /* [columns][rows]                                  */
    double *numbers; /* [columns][rows], of columns that were asked for  */
} csv_data;

/* Reads the file `path` of at most CSV_FILE_MAX bytes. Returns 0, or -1 with the reason in `err`
   (CSV_ERR_MAX bytes or null); then `*d` is empty. Malformed is: no row of names, a row with more
   or fewer cells than names, a quote that is not closed or stands inside a cell, a 0 byte. */
int csv_load(const char *path, csv_data *d, char *err);

/* The same for a text of `n` bytes with a 0 behind them, a block which is csv_release's to free, or
   freed already. `name` stands for the file in messages. */
int csv_parse(char *text, size_t n, const char *name, csv_data *d, char *err);

/* The `rows` numbers of the column `name`, or null with the reason in `err` (or null): no such
   column, or not all numbers. Empty cells are nan. A table without rows gives a valid pointer. */
const double *csv_numbers(const csv_data *d, const char *name, char *err);

/* The `rows` texts of the column `name`, or null with the reason in `err` (or null). */
char *const *csv_texts(const csv_data *d, const char *name, char *err);

/* The value of the first comment "# key: value", or null. */
const char *csv_comment(const csv_data *d, const char *key);

/* Frees what csv_load or csv_parse made; harmless after their failure. */
void csv_release(csv_data *d);

/* Room for one more item in an array of `count` of them: returns it, perhaps moved, or null, and
   then the old array is still there. */
void *csv_grow(void *array, size_t count, size_t *capacity, size_t item);

#endif /* CSV_H */
