/* lab.c - see lab.h. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include "lab.h"
#include "cli.h"
#include "files.h"
#include "jobs.h"
#include "page.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LABI_PATH 1024
#define LABI_FOLDER 700 /* of the command line: then every path fits */
#define LABI_DIGITS 7   /* of every recorded value; figures and verdicts see no more */

/* ---- records of one run ---- */

typedef struct labi_series {
    char *name;
    double *pair; /* [n]: x, y */
    size_t n, room;
} labi_series;

typedef struct labi_records {
    labi_series *series; /* [count], in order of appearance */
    size_t count, room, last;
    int failed; /* 1: out of memory */
} labi_records;

/* The series of this name, a new one if need be; null if memory is out. */
static labi_series *labi_series_of(labi_records *rec, const char *name)
{
    labi_series *grown;
    size_t i;
    for (i = 0; i < rec->count; i++) {
        labi_series *s = &rec->series[(rec->last + i) % rec->count];
        if (strcmp(s->name, name) != 0) continue;
        rec->last = (size_t)(s - rec->series);
        return s;
    }
    grown = (labi_series *)csv_grow(rec->series, rec->count, &rec->room, sizeof *grown);
    if (!grown) return NULL;
    rec->series = grown;
    grown[rec->count] = (labi_series){strdup(name)};
    return grown[rec->count].name ? &grown[rec->last = rec->count++] : NULL;
}

void lab_record(lab_run *run, const char *series, double x, double y)
{
    labi_series *s = labi_series_of(run->records, series);
    double *grown = s ? (double *)csv_grow(s->pair, s->n, &s->room, 2 * sizeof *grown) : NULL;
    if (!grown) {
        run->records->failed = 1;
        return;
    }
    s->pair = grown;
    grown[2 * s->n] = lab_round(x, LABI_DIGITS);
    grown[2 * s->n++ + 1] = lab_round(y, LABI_DIGITS);
}

void lab_record_as(lab_run *run, double x, double y, const char *format, ...)
{
    char series[LAB_NAME_MAX];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(series, sizeof series, format, args);
    va_end(args);
    lab_record(run, series, x, y);
}

double lab_round(double y, int digits)
{
    char text[64];
    if (!(fabs(y) <= 1.7e308)) return y;
    (void)snprintf(text, sizeof text, "%.*g", digits, y);
    return strtod(text, NULL);
}

void lab_progress(lab_run *run, double fraction)
{
    if (run->done && fraction > 0 && fraction < 1)
        *run->done = (size_t)(fraction * (double)run->units);
}

static void labi_free_records(labi_records *rec)
{
    size_t i;
    for (i = 0; i < rec->count; i++) {
        free(rec->series[i].name);
        free(rec->series[i].pair);
    }
    free(rec->series);
}

/* ---- the experiment as it runs ---- */

typedef struct labi_lab {
    const lab_program *program;
    size_t seed, seeds, threads;
    const char *data_folder, *out, *runs_folder, *from;
    int quick, quiet, plan, seeds_given;
    double ahead; /* seconds of other experiments that wait behind this one */
    dataset data;
    size_t *missing; /* [missing_count] runs to be done: arm * seeds + seed    */
    size_t missing_count;
    double started, spoke; /* seconds of the clock */
    size_t units;          /* of all missing runs  */
    cli_progress progress;
} labi_lab;

static size_t labi_arm_seeds(const labi_lab *lab, size_t arm)
{
    const size_t own = lab->program->arm[arm].seeds, all = lab->seeds;
    return own > 0 && (own < all || !(lab->quick || lab->seeds_given)) ? own : all;
}

static size_t labi_units(const lab_program *program, size_t arm)
{
    return (size_t)(10 * program->arm[arm].seconds) + 1;
}

/* Of the arm that has most. */
static size_t labi_most_seeds(const labi_lab *lab)
{
    size_t arm, most = 0;
    for (arm = 0; arm < lab->program->arms; arm++)
        if (labi_arm_seeds(lab, arm) > most) most = labi_arm_seeds(lab, arm);
    return most;
}

/* The lines that tell where a table comes from: of one run if arm < arms, else of all. */
static void labi_head(const labi_lab *lab, csv_table *t, size_t arm, size_t seed)
{
    const lab_program *program = lab->program;
    const int whole = arm == program->arms;
    const csv_origin origin = {.program = program->name,
                               .version = program->version,
                               .first_seed = lab->seed + (whole ? 0 : seed),
                               .seeds = whole ? labi_most_seeds(lab) : 1,
                               .data = program->uses & LAB_USES_DATA ? lab->data.name : NULL,
                               .data_hash = lab->data.hash};
    csv_note_origin(t, &origin);
    csv_note(t, "mode", lab->quick ? "quick" : "full");
    csv_note_real(t, "revision", program->revision);
    csv_note(t, "settings", program->settings);
    if (!whole) csv_note(t, "arm", program->arm[arm].id);
}

/* Runs on other data have a folder of their own: one that went on without MNIST must not take the
   place of those that count. */
static const char *labi_kind(const labi_lab *lab)
{
    if (lab->quick) return "_quick";
    if (!(lab->program->uses & LAB_USES_DATA)) return "";
    if (lab->data.synthetic) return "_synthetic";
    return lab->data.hash == DATASET_MNIST_HASH ? "" : "_other";
}

static void labi_run_path(const labi_lab *lab, size_t arm, size_t seed, char *path)
{
    (void)snprintf(path, LABI_PATH, "%s/%s%s/%s_seed%llu.csv", lab->runs_folder, lab->program->name,
                   labi_kind(lab), lab->program->arm[arm].id,
                   (unsigned long long)(lab->seed + seed));
}

/* ---- tables: arm, series, all x in one cell, and for each seed all y ---- */

enum { LABI_X = 2, LABI_SEED = 3 }; /* columns */

typedef struct labi_table {
    csv_data csv;
    char *const *arm, *const *series;
    size_t seeds;
    lab_series *cell; /* [columns][rows], from the column of x on */
    double *number;   /* all that the cells point to */
} labi_table;

static lab_series *labi_cell(const labi_table *t, size_t row, size_t s)
{
    return &t->cell[(LABI_SEED + s) * t->csv.rows + row];
}

static void labi_columns(csv_table *t, uint64_t first, size_t seeds)
{
    char text[LAB_SEEDS_MAX][32];
    const char *name[LABI_SEED + LAB_SEEDS_MAX] = {"arm", "series", "x"};
    size_t s;
    for (s = 0; s < seeds; s++) {
        (void)snprintf(text[s], sizeof text[s], "seed_%llu", (unsigned long long)(first + s));
        name[LABI_SEED + s] = text[s];
    }
    csv_columns(t, name, LABI_SEED + seeds);
}

static void labi_release(labi_table *t)
{
    csv_release(&t->csv);
    free(t->cell);
    free(t->number);
    memset(t, 0, sizeof *t);
}

/* Reads the lists: there is a separator behind each number, so `size` bytes hold at most half as
   many of them. Returns 0, or -1 with the reason in err. */
static int labi_read_lists(labi_table *t, size_t size, char *err)
{
    const size_t rows = t->csv.rows, columns = t->csv.columns;
    double *next = t->number = (double *)malloc((size / 2 + 1) * sizeof *next);
    size_t c, row;
    t->cell = (lab_series *)calloc(columns * rows + 1, sizeof *t->cell);
    t->arm = csv_texts(&t->csv, "arm", err);
    t->series = csv_texts(&t->csv, "series", err);
    if (!t->arm || !t->series || !csv_texts(&t->csv, "x", err)) return -1;
    t->seeds = columns - LABI_SEED;
    if (t->seeds == 0 || t->seeds > LAB_SEEDS_MAX) return files_fail(err, "%zu seeds", t->seeds);
    if (!t->cell || !next) return files_fail(err, "out of memory");
    for (c = LABI_X; c < columns; c++) {
        char *const *text = csv_texts(&t->csv, t->csv.names[c], err), *rest, *number;
        if (c > LABI_X && strncmp(t->csv.names[c], "seed_", 5) != 0)
            return files_fail(err, "column '%.100s' is of no seed", t->csv.names[c]);
        for (row = 0; row < rows; row++) {
            lab_series *x = &t->cell[LABI_X * rows + row], *y = &t->cell[c * rows + row];
            int bad = 0;
            *y = (lab_series){y == x ? next : x->x, next, 0};
            for (number = strtok_r(text[row], " ", &rest); number;
                 number = strtok_r(NULL, " ", &rest), y->n++)
                bad |= csv_read_number(number, next++);
            if (bad || (y->n > 0 && y->n != x->n))
                return files_fail(err, "row %zu: %.100s has not a number for each x", row + 1,
                                  t->csv.names[c]);
        }
    }
    return 0;
}

/* Loads a table that begins with `head` (or null) and whose last line is whole: a number that was
   cut is a number still. Returns 0, or -1 with the reason in err. */
static int labi_load(const char *path, const csv_table *head, labi_table *t, char *err)
{
    unsigned char *text;
    size_t n;
    int failed = 0;
    memset(t, 0, sizeof *t);
    if (files_read(path, CSV_FILE_MAX, &text, &n, err)) return -1;
    if (head && (*head->error || n < head->length || memcmp(text, head->text, head->length) != 0))
        failed = files_fail(err, "'%.400s' is of another build", path);
    else if (n > 0 && text[n - 1] != '\n')
        failed = files_fail(err, "'%.400s' is cut", path);
    if (failed)
        free(text);
    else
        failed = csv_parse((char *)text, n, path, &t->csv, err) || labi_read_lists(t, n, err);
    if (failed) labi_release(t);
    return failed ? -1 : 0;
}

/* Loads the file of a run if it is there, with the head that the run would get now, and whole.
   Returns 0, or -1 with the reason in err. */
static int labi_load_run(const labi_lab *lab, size_t arm, size_t seed, labi_table *run, char *err)
{
    char path[LABI_PATH];
    const char *rows;
    csv_table head;
    int failed;
    labi_run_path(lab, arm, seed, path);
    csv_begin(&head);
    labi_head(lab, &head, arm, seed);
    failed = labi_load(path, &head, run, err);
    csv_end(&head);
    if (failed) return -1;
    rows = csv_comment(&run->csv, "rows");
    if (rows && strtoul(rows, NULL, 10) == run->csv.rows && run->seeds == 1) return 0;
    labi_release(run);
    return files_fail(err, "'%.400s' is cut", path);
}

static int labi_is_done(const labi_lab *lab, size_t arm, size_t seed)
{
    char ignored[CSV_ERR_MAX];
    labi_table run;
    if (labi_load_run(lab, arm, seed, &run, ignored)) return 0;
    labi_release(&run);
    return 1;
}

static int labi_write_run(const labi_lab *lab, size_t arm, size_t seed, const labi_records *rec)
{
    char path[LABI_PATH], err[CSV_ERR_MAX];
    csv_table t;
    size_t i;
    int failed;
    csv_begin(&t);
    labi_head(lab, &t, arm, seed);
    csv_note_real(&t, "rows", (double)rec->count); /* so that a cut file is not taken for whole */
    labi_columns(&t, lab->seed + seed, 1);
    for (i = 0; i < rec->count; i++) {
        const labi_series *s = &rec->series[i];
        csv_text(&t, lab->program->arm[arm].id);
        csv_text(&t, s->name);
        csv_list(&t, s->pair, s->n, 2);
        csv_list(&t, s->pair + 1, s->n, 2);
        csv_end_row(&t);
    }
    labi_run_path(lab, arm, seed, path);
    failed = csv_save(&t, path, err);
    if (failed) fprintf(stderr, "%s: %s\n", lab->program->name, err);
    csv_end(&t);
    return failed;
}

static int labi_job(void *context, size_t index, volatile size_t *done)
{
    const labi_lab *lab = (const labi_lab *)context;
    const lab_program *program = lab->program;
    const size_t most = labi_most_seeds(lab);
    const size_t arm = lab->missing[index] / most, seed = lab->missing[index] % most;
    const double started = cli_seconds();
    labi_records records = {0};
    lab_run run = {.arm = arm,
                   .seed = lab->seed + seed,
                   .first = seed == 0,
                   .quick = lab->quick,
                   .data = program->uses & LAB_USES_DATA ? &lab->data : NULL,
                   .records = &records,
                   .done = done,
                   .units = labi_units(program, arm)};
    int failed = program->run(&run);
    if (!failed && (records.failed || records.count == 0)) {
        fprintf(stderr, "%s: %s\n", program->name,
                records.failed ? "out of memory" : "a run left no records");
        failed = 1;
    }
    failed = failed || labi_write_run(lab, arm, seed, &records);
    labi_free_records(&records);
    *done = run.units;
    if (!failed && !lab->progress.active && !lab->quiet)
        fprintf(stderr, "%s: %s, seed %llu: %.1f s\n", program->name, program->arm[arm].id,
                (unsigned long long)run.seed, cli_seconds() - started);
    return failed;
}

static void labi_job_name(void *context, size_t index, char *name, size_t size)
{
    const labi_lab *lab = (const labi_lab *)context;
    const size_t run = lab->missing[index], most = labi_most_seeds(lab);
    (void)snprintf(name, size, "%s, seed %llu", lab->program->arm[run / most].id,
                   (unsigned long long)(lab->seed + run % most));
}

/* Time to go, for this experiment and those behind it, at the pace so far. */
static void labi_tick(void *context, size_t done)
{
    labi_lab *lab = (labi_lab *)context;
    const double now = cli_seconds(), elapsed = now - lab->started;
    const double left = (double)(lab->units - done) + 10 * lab->ahead;
    char note[80] = "";
    if (done > 0)
        (void)snprintf(note, sizeof note, "everything: about %.0f min left",
                       ceil(left * elapsed / (double)done / 60));
    if (lab->progress.active) {
        cli_progress_update(&lab->progress, done, note);
    } else if (!lab->quiet && done > 0 && now - lab->spoke > 60) {
        lab->spoke = now;
        fprintf(stderr, "%s: %.0f %%; %s\n", lab->program->name,
                100 * (double)done / (double)lab->units, note);
    }
}

static int labi_find_missing(labi_lab *lab)
{
    const size_t most = labi_most_seeds(lab), all = lab->program->arms * most;
    size_t run;
    lab->missing = (size_t *)malloc((all + 1) * sizeof *lab->missing);
    if (!lab->missing) {
        fprintf(stderr, "%s: out of memory\n", lab->program->name);
        return -1;
    }
    for (run = 0; run < all; run++) {
        const size_t arm = run / most, seed = run % most;
        if (seed >= labi_arm_seeds(lab, arm) || labi_is_done(lab, arm, seed)) continue;
        lab->missing[lab->missing_count++] = run;
        lab->units += labi_units(lab->program, arm);
    }
    return 0;
}

/* Can files be written to this folder? To be known before the runs, not hours later. */
static int labi_can_write(const labi_lab *lab, const char *folder)
{
    char path[LABI_PATH], err[FILES_ERR_MAX];
    (void)snprintf(path, sizeof path, "%s/.%s", folder, lab->program->name);
    if (files_can_write(path, err) == 0) return 1;
    fprintf(stderr, "%s: nothing was run: %s\n", lab->program->name, err);
    return 0;
}

static int labi_run_in_turn(labi_lab *lab)
{
    size_t done, i = 0;
    while (i < lab->missing_count && labi_job(lab, i, &done) == 0) i++;
    return i < lab->missing_count ? -1 : 0;
}

static int labi_run_missing(labi_lab *lab)
{
    const jobs_plan plan = {lab->missing_count, lab->threads, labi_job, lab,
                            labi_job_name,      labi_tick};
    char err[JOBS_ERR_MAX];
    int failed;
    if (lab->missing_count == 0) return 0;
    if (!labi_can_write(lab, lab->out) || !labi_can_write(lab, lab->runs_folder)) return -1;
    if (lab->program->prepare && lab->program->prepare(&lab->data, lab->quick)) return -1;
    if (lab->program->uses & LAB_IN_TURN) return labi_run_in_turn(lab);
    lab->started = lab->spoke = cli_seconds();
    cli_progress_start(&lab->progress, lab->program->name, lab->units, lab->quiet);
    failed = jobs_run(&plan, err);
    cli_progress_end(&lab->progress);
    if (failed) fprintf(stderr, "%s: %s\n", lab->program->name, err);
    return failed;
}

/* ---- the table of all runs ---- */

/* The cell of a run in the row of this series and these x, perhaps an empty one. */
static lab_series *labi_find(const labi_table *run, const char *series, const lab_series *like)
{
    static lab_series none;
    size_t row;
    for (row = 0; row < run->csv.rows; row++) {
        lab_series *s = labi_cell(run, row, 0);
        if (strcmp(run->series[row], series) == 0 && s->n == like->n &&
            memcmp(s->x, like->x, s->n * sizeof *s->x) == 0)
            return s;
    }
    return &none;
}

/* A row for each series of the first run, then for each that only later ones have: what stands in
   the table is taken away from the runs. */
static void labi_join_arm(csv_table *t, const labi_table *run, size_t seeds)
{
    size_t s, row, k;
    for (s = 0; s < seeds; s++)
        for (row = 0; row < run[s].csv.rows; row++) {
            const lab_series like = *labi_cell(&run[s], row, 0);
            if (like.n == 0) continue;
            csv_text(t, run[s].arm[row]);
            csv_text(t, run[s].series[row]);
            csv_list(t, like.x, like.n, 1);
            for (k = 0; k < seeds; k++) {
                lab_series *y = labi_find(&run[k], run[s].series[row], &like);
                csv_list(t, y->y, y->n, 1);
                y->n = 0;
            }
            csv_end_row(t);
        }
}

/* Puts the files of all runs together into one table at `path`. */
static int labi_join(const labi_lab *lab, const char *path)
{
    const lab_program *program = lab->program;
    const size_t most = labi_most_seeds(lab);
    labi_table run[LAB_SEEDS_MAX] = {0};
    char err[CSV_ERR_MAX];
    csv_table t;
    size_t arm, seed;
    int failed = 0;
    csv_begin(&t);
    labi_head(lab, &t, program->arms, 0);
    labi_columns(&t, lab->seed, most);
    for (arm = 0; arm < program->arms && !failed; arm++) {
        for (seed = 0; seed < labi_arm_seeds(lab, arm) && !failed; seed++)
            failed = labi_load_run(lab, arm, seed, &run[seed], err);
        if (!failed) labi_join_arm(&t, run, most);
        for (seed = 0; seed < most; seed++) labi_release(&run[seed]);
    }
    failed = failed || csv_save(&t, path, err);
    if (failed) fprintf(stderr, "%s: %s\n", program->name, err);
    csv_end(&t);
    return failed;
}

/* ---- the report ---- */

typedef struct labi_block { /* what lives as long as the report */
    struct labi_block *next;
    double align;
} labi_block;

struct lab_report {
    const lab_program *program;
    const char *out; /* folder */
    labi_table table;
    size_t *arm;   /* [rows] */
    size_t *seeds; /* [arms]: each has the first ones of the table */
    size_t checks_failed;
    csv_table verdicts;
    labi_block *blocks;
};

static void *labi_alloc(lab_report *r, size_t size)
{
    labi_block *b = (labi_block *)malloc(sizeof *b + size);
    if (!b) return NULL;
    b->next = r->blocks;
    r->blocks = b;
    return b + 1;
}

static const char *labi_note(const lab_report *r, const char *key)
{
    const char *text = csv_comment(&r->table.csv, key);
    return text ? text : "";
}

const lab_program *lab_program_of(const lab_report *r)
{
    return r->program;
}

size_t lab_seeds(const lab_report *r, size_t arm)
{
    return r->seeds[arm];
}

static const char *labi_seed(const lab_report *r, size_t s)
{
    return r->table.csv.names[LABI_SEED + s] + strlen("seed_");
}

int lab_quick(const lab_report *r)
{
    return strcmp(labi_note(r, "mode"), "full") != 0;
}

static int labi_synthetic(const lab_report *r)
{
    return strncmp(labi_note(r, "data"), "synthetic", 9) == 0;
}

/* The data of a full run have the format of MNIST's files, but are not MNIST. */
static int labi_foreign(const lab_report *r)
{
    const char *data = labi_note(r, "data");
    return !lab_quick(r) && strncmp(data, "MNIST ", 6) == 0 &&
           strtoull(data + 6, NULL, 16) != DATASET_MNIST_HASH;
}

/* Null, or why the verdicts do not count. */
static const char *labi_why_not(const lab_report *r)
{
    size_t arm;
    if (lab_quick(r)) return "quick run";
    if (labi_synthetic(r)) return "synthetic digits";
    if (labi_foreign(r)) return "not the data of MNIST";
    for (arm = 0; arm < r->program->arms; arm++) {
        const size_t own = r->program->arm[arm].seeds, want = own > 0 && own < 5 ? own : 5;
        if (r->seeds[arm] < want) return "fewer seeds";
    }
    return NULL;
}

lab_series lab_get(const lab_report *r, size_t arm, size_t s, const char *series)
{
    static const lab_series none = {NULL, NULL, 0};
    static size_t row; /* where the last one was: the next one is often there, or near it */
    const size_t rows = r->table.csv.rows;
    size_t i;
    if (arm >= r->program->arms || s >= r->seeds[arm]) return none;
    for (i = 0; i < rows; i++, row++) {
        const lab_series *found;
        if (row >= rows) row = 0;
        found = labi_cell(&r->table, row, s);
        if (r->arm[row] == arm && found->n > 0 && strcmp(r->table.series[row], series) == 0)
            return *found;
    }
    return none;
}

double lab_at(const lab_report *r, size_t arm, size_t s, const char *series, double x)
{
    const lab_series found = lab_get(r, arm, s, series);
    const double wanted = lab_round(x, LABI_DIGITS);
    size_t i;
    if (found.n > 0 && isinf(x)) return found.y[found.n - 1];
    for (i = 0; i < found.n; i++)
        if (!(found.x[i] < wanted) && !(found.x[i] > wanted)) return found.y[i];
    return (double)NAN;
}

lab_numbers lab_all(const lab_report *r, size_t arm, const char *series, double x)
{
    lab_numbers a;
    size_t s;
    a.n = r->seeds[arm];
    for (s = 0; s < a.n; s++) a.of[s] = lab_at(r, arm, s, series, x);
    return a;
}

stats_summary lab_summary(const lab_report *r, size_t arm, const char *series, double x)
{
    const lab_numbers a = lab_all(r, arm, series, x);
    return stats_describe(a.of, a.n);
}

double lab_mean(const lab_report *r, size_t arm, const char *series, double x)
{
    return lab_summary(r, arm, series, x).mean;
}

lab_curve lab_over_seeds(lab_report *r, size_t arm, const char *series)
{
    const lab_series first = lab_get(r, arm, 0, series);
    lab_curve c = {0};
    size_t i;
    c.x = (double *)labi_alloc(r, 5 * (first.n + 1) * sizeof *c.x);
    if (!c.x) return c;
    c.mean = c.x + first.n;
    c.sd = c.mean + first.n;
    c.low = c.sd + first.n;
    c.high = c.low + first.n;
    c.n = first.n;
    for (i = 0; i < c.n; i++) {
        const stats_summary summary = lab_summary(r, arm, series, first.x[i]);
        c.x[i] = first.x[i];
        c.mean[i] = summary.mean;
        c.sd[i] = r->seeds[arm] > 1 ? summary.sd : 0;
        c.low[i] = summary.min;
        c.high[i] = summary.max;
    }
    return c;
}

/* ---- verdicts ---- */

enum { FOUND = 9, COLUMNS = 12 + FOUND };

static const char *labi_vformat(lab_report *r, const char *format, va_list list)
{
    va_list again;
    char *text = NULL;
    int n;
    va_copy(again, list);
    n = vsnprintf(NULL, 0, format, list);
    if (n >= 0) text = (char *)labi_alloc(r, (size_t)n + 1);
    if (text) (void)vsnprintf(text, (size_t)n + 1, format, again);
    va_end(again);
    return text ? text : "";
}

const char *lab_format(lab_report *r, const char *format, ...)
{
    const char *text;
    va_list list;
    va_start(list, format);
    text = labi_vformat(r, format, list);
    va_end(list);
    return text;
}

/* What was found, so that verdicts.c can judge it again: columns n to best_p; nothing of a check */
static void labi_found(lab_report *r, const stats_finding *f)
{
    enum { SIZE = 6 };
    const stats_finding found = f ? *f : stats_unknown();
    const stats_interval of = stats_interval_of(&found);
    const double value[FOUND - 1] = {
        (double)found.n, found.mean,          of.low,      of.high, stats_effect(&found),
        stats_p(&found), (double)found.parts, found.best_p};
    int i;
    for (i = 0; i < FOUND - 1; i++) {
        if (i == SIZE) csv_text(&r->verdicts, !f ? "" : found.size_met ? "met" : "missed");
        csv_real(&r->verdicts, f ? lab_round(value[i], 4) : (double)NAN);
    }
}

/* One row of the table of verdicts; `found` is null for a check. */
static void labi_verdict_row(lab_report *r, const char *kind, const lab_claim *c,
                             const stats_finding *found, const char *ours, const char *verdict,
                             const char *remark)
{
    static const char *const abouts[3] = {"training", "arithmetic", "identity"};
    static const char *const reasons[3] = {"setting", "algebra", "news"};
    const char *about = found ? abouts[c->about] : "", *why_not = found ? reasons[c->why_not] : "";
    const char *const text[COLUMNS - FOUND] = {kind,         c->id,    c->text, c->source,
                                               c->paper,     ours,     verdict, remark,
                                               c->criterion, c->pilot, about,   why_not};
    int i;
    for (i = 0; i < COLUMNS - FOUND; i++) csv_text(&r->verdicts, text[i]);
    labi_found(r, found);
    csv_end_row(&r->verdicts);
}

void lab_verdict(lab_report *r, const lab_claim *claim, stats_finding found, const char *remark,
                 const char *ours, ...)
{
    const char *why_not = labi_why_not(r), *text;
    const char *name = stats_verdict_name(stats_word(&found, STATS_LEVEL));
    va_list list;
    va_start(list, ours);
    text = labi_vformat(r, ours, list);
    va_end(list);
    if (why_not) name = lab_format(r, "not counted: %s", why_not);
    labi_verdict_row(r, "claim", claim, &found, text, name, remark ? remark : "");
    printf("%s %s\n    %s\n    paper: %s\n    ours:  %s\n", claim->id, name, claim->text,
           claim->paper, text);
}

void lab_check(lab_report *r, int ok, const char *what, const char *found, ...)
{
    const char *text;
    const lab_claim check = {
        .id = "", .text = what, .source = "", .paper = "", .criterion = "", .pilot = ""};
    va_list list;
    va_start(list, found);
    text = labi_vformat(r, found, list);
    va_end(list);
    labi_verdict_row(r, "check", &check, NULL, text, ok ? "passed" : "failed", "");
    if (!ok) r->checks_failed++;
    if (!ok) fprintf(stderr, "%s: a check FAILED: %s: %s\n", r->program->name, what, text);
    if (ok) printf("check: %s: %s\n", what, text);
}

/* ---- drawing ---- */

static const char *labi_subtitle(lab_report *r, const lab_page *page)
{
    const char *settings = page->settings ? page->settings : labi_note(r, "settings");
    const char *data = labi_note(r, "data"), *space = strrchr(data, ' ');
    const char *named = "", *of;
    size_t seeds = r->table.seeds;
    if (page->seeds && page->seeds < seeds) seeds = page->seeds; /* a quick run has fewer */
    if (space && !labi_synthetic(r)) named = lab_format(r, "%.*s. ", (int)(space - data), data);
    if (labi_synthetic(r)) named = "NOT MNIST but synthetic digits: verdicts do not count. ";
    if (labi_foreign(r)) named = "NOT MNIST but files of its format: verdicts do not count. ";
    if (page->no_data) named = "";
    of = seeds == 1 ? lab_format(r, "Seed %s", labi_seed(r, 0))
                    : lab_format(r, "Seeds %s to %s", labi_seed(r, 0), labi_seed(r, seeds - 1));
    return lab_format(r, "%s%s%s%s. %s.", cli_quick_note(lab_quick(r)), named,
                      lab_quick(r) ? "Settings of a full run: " : "", settings, of);
}

plot_figure *lab_figure(lab_report *r, const lab_page *page)
{
    plot_page on = {.width = 1600, .height = page->height, .letters = 1};
    on.title = page->title;
    on.subtitle = labi_subtitle(r, page);
    on.footer = r->program->command;
    if (!on.footer)
        on.footer =
            lab_format(r, "%s %s, make reproduce ONLY=%.2s%s", r->program->name,
                       labi_note(r, "version"), r->program->name, lab_quick(r) ? " QUICK=1" : "");
    on.scale = page->scale;
    on.shared_legend = page->shared_legend;
    memcpy(on.widths, page->widths, sizeof on.widths);
    memcpy(on.heights, page->heights, sizeof on.heights);
    return plot_new_page(on);
}

static void labi_out_path(const lab_report *r, const char *what, const char *extension, char *path)
{
    (void)snprintf(path, LABI_PATH, "%s/%s%s%s%s%s", r->out, r->program->name,
                   lab_quick(r) ? "_quick" : "", what ? "_" : "", what ? what : "", extension);
}

int lab_save(lab_report *r, plot_figure *f, const char *what)
{
    char path[LABI_PATH];
    labi_out_path(r, what, ".png", path);
    if (plot_finish(f, path)) return -1;
    printf("wrote %s\n", path);
    return 0;
}

void lab_plot(lab_report *r, plot_panel *p, size_t arm, const char *series, const char *label,
              plot_style style)
{
    const lab_curve c = lab_over_seeds(r, arm, series);
    if (!label) label = r->program->arm[arm].name;
    if (r->seeds[arm] > 1) plot_band(p, label, c.x, c.low, c.high, c.n, style);
    plot_line(p, label, c.x, c.mean, c.n, style);
}

void lab_plot_seeds(lab_report *r, plot_panel *p, size_t arm, const char *series, const char *label,
                    plot_style style)
{
    size_t s;
    if (!label) label = r->program->arm[arm].name;
    for (s = 0; s < r->seeds[arm]; s++) {
        const lab_series one = lab_get(r, arm, s, series);
        plot_line(p, label, one.x, one.y, one.n, style);
    }
}

plot_style lab_style(const char *norm)
{
    static const struct {
        const char *norm;
        plot_style style;
    } look[] = {{"none", {PLOT_VERMILLION, .dash = PLOT_DASHED}},
                {"batch", {PLOT_BLUE}},
                {"layer", {PLOT_GREEN, .dash = PLOT_DASHDOT}},
                {"noisy", {PLOT_PURPLE, .dash = PLOT_DOTTED}},
                {"group", {PLOT_ORANGE, .dash = PLOT_DASHED}},
                {"rms", {PLOT_SKY, .dash = PLOT_DASHDOT}},
                {"l1", {PLOT_RGB(140, 81, 10), .dash = PLOT_DASHDOT}},
                {"l2", {PLOT_GREY, .width = 1.4, .dash = PLOT_DOTTED}},
                {"linf", {PLOT_RGB(136, 34, 85)}},
                {"weight", {PLOT_BLACK, .dash = PLOT_DOTTED}}};
    static const plot_style other = {PLOT_INK};
    size_t i;
    for (i = 0; i < LAB_COUNT(look); i++)
        if (strcmp(norm, look[i].norm) == 0) return look[i].style;
    return other;
}

plot_color lab_level(size_t i, size_t n)
{
    return plot_map(PLOT_SEQUENTIAL, n > 1 ? 0.1 + 0.7 * (double)i / (double)(n - 1) : 0.6);
}

/* ---- reading the table ---- */

/* Finds the arms of the rows and their seeds. Comparisons go seed by seed, so an arm must have the
   first seeds of the table. Returns 0, or -1 with the reason in err. */
static int labi_index(lab_report *r, char *err)
{
    size_t row, s;
    for (row = 0; row < r->table.csv.rows; row++) {
        const char *id = r->table.arm[row];
        size_t a = 0;
        while (a < r->program->arms && strcmp(r->program->arm[a].id, id) != 0) a++;
        if (a == r->program->arms)
            return files_fail(err, "row %zu is of an unknown arm '%.100s'", row + 1, id);
        r->arm[row] = a;
    }
    for (s = 0; s < r->table.seeds; s++)
        for (row = 0; row < r->table.csv.rows; row++) {
            size_t *seeds = &r->seeds[r->arm[row]];
            if (labi_cell(&r->table, row, s)->n == 0) continue;
            if (*seeds < s)
                return files_fail(err, "row %zu: no run of the seed before %s", row + 1,
                                  labi_seed(r, s));
            *seeds = s + 1;
        }
    return 0;
}

static int labi_read(lab_report *r, const char *path, char *err)
{
    const lab_program *program = r->program;
    if (labi_load(path, NULL, &r->table, err)) return -1;
    if (strcmp(labi_note(r, "program"), program->name) != 0)
        return files_fail(err, "'%.200s' is a table of '%.100s'", path, labi_note(r, "program"));
    r->arm = (size_t *)calloc(r->table.csv.rows + 1, sizeof *r->arm);
    r->seeds = (size_t *)calloc(program->arms + 1, sizeof *r->seeds);
    return r->arm && r->seeds ? labi_index(r, err) : files_fail(err, "out of memory");
}

static void labi_begin_verdicts(lab_report *r)
{
    static const char *const columns[COLUMNS] = {
        "kind",   "id",        "claim",  "source", "paper",   "ours",  "verdict",
        "remark", "criterion", "pilot",  "class",  "why_not", "n",     "difference",
        "low",    "high",      "effect", "p",      "size",    "parts", "best_p"};
    static const char *const notes[9] = {"program",  "version", "seed", "seeds",   "data",
                                         "compiler", "flags",   "mode", "settings"};
    size_t i;
    csv_begin(&r->verdicts);
    for (i = 0; i < 9; i++)
        if (csv_comment(&r->table.csv, notes[i]))
            csv_note(&r->verdicts, notes[i], labi_note(r, notes[i]));
    csv_columns(&r->verdicts, columns, COLUMNS);
}

static void labi_end_report(lab_report *r)
{
    while (r->blocks) {
        labi_block *next = r->blocks->next;
        free(r->blocks);
        r->blocks = next;
    }
    csv_end(&r->verdicts);
    labi_release(&r->table);
    free(r->arm);
    free(r->seeds);
}

/* Reads the table, draws and judges. */
static int labi_report(const lab_program *program, const char *table, const char *out)
{
    char path[LABI_PATH], err[CSV_ERR_MAX] = "";
    lab_report r = {.program = program, .out = out};
    int failed = 1;
    if (labi_read(&r, table, err)) {
        fprintf(stderr, "%s: %s\n", program->name, err);
    } else {
        labi_begin_verdicts(&r);
        failed = lab_report_tables(&r);
        if (!failed && r.checks_failed) failed = 1;
        labi_out_path(&r, "verdicts", ".csv", path);
        if (csv_save(&r.verdicts, path, err)) {
            fprintf(stderr, "%s: %s\n", program->name, err);
            failed = 1;
        }
    }
    labi_end_report(&r);
    return failed;
}

/* ---- the program ---- */

static int labi_parse(labi_lab *lab, int argc, char **argv)
{
    cli_option option[11] = {
        {"runs", "DIR", "folder of the finished runs", CLI_TEXT, &lab->runs_folder},
        {"from", "CSV", "draw and judge from this table, without any run", CLI_TEXT, &lab->from},
        {"ahead", "S", "seconds of other experiments still to come, for the time to go", CLI_REAL,
         &lab->ahead, 0, 1e9},
        {"threads", "N", "processes at once, 0: one for each processor", CLI_WHOLE, &lab->threads,
         0, 256},
        {"plan", "", "only say what would run, and how long", CLI_FLAG, &lab->plan},
        CLI_SEED(&lab->seed),
        CLI_SEEDS(&lab->seeds, LAB_SEEDS_MAX),
        CLI_OUT(&lab->out),
        CLI_QUICK(&lab->quick),
        CLI_QUIET(&lab->quiet),
        CLI_DATA(&lab->data_folder)};
    const size_t options = lab->program->uses & LAB_USES_DATA ? 11 : 10;
    const int status =
        cli_parse(lab->program->name, lab->program->question, option, options, argc, argv);
    lab->seeds_given = option[6].given;
    if (lab->quick && !lab->seeds_given) lab->seeds = 2;
    if (strlen(lab->out) <= LABI_FOLDER && strlen(lab->runs_folder) <= LABI_FOLDER) return status;
    fprintf(stderr, "%s: a folder with too long a name\n", lab->program->name);
    return CLI_EXIT_USAGE;
}

static int labi_load_data(labi_lab *lab)
{
    const size_t train_n = lab->quick ? 6000 : 0, test_n = lab->quick ? 1000 : 0;
    char err[DATASET_ERR_MAX];
    if (!(lab->program->uses & LAB_USES_DATA)) return 0;
    if (dataset_load(&lab->data, lab->data_folder, 1, train_n, test_n, err)) {
        fprintf(stderr, "%s: %s\n", lab->program->name, err);
        return -1;
    }
    if (lab->data.synthetic && !lab->plan)
        fprintf(stderr,
                "%s: using the built-in synthetic digits (`make mnist` fetches MNIST); the "
                "verdicts do not count\n",
                lab->program->name);
    if (!lab->data.synthetic && !lab->quick && lab->data.hash != DATASET_MNIST_HASH)
        fprintf(stderr,
                "%s: these files have MNIST's format, but not its content (`make mnist` "
                "checks and repairs them): the verdicts do not count\n",
                lab->program->name);
    return 0;
}

static int labi_print_plan(const labi_lab *lab)
{
    double seconds = 0, to_do = 0;
    size_t runs = 0, arm, i;
    for (arm = 0; arm < lab->program->arms; arm++) {
        runs += labi_arm_seeds(lab, arm);
        seconds += lab->program->arm[arm].seconds * (double)labi_arm_seeds(lab, arm);
    }
    for (i = 0; i < lab->missing_count; i++)
        to_do += lab->program->arm[lab->missing[i] / labi_most_seeds(lab)].seconds;
    printf("%s %zu runs, %zu to do; ", lab->program->name, runs, lab->missing_count);
    if (lab->quick)
        printf("quick ones, of a second or so\n");
    else
        printf("%.1f s on one core, %.1f s to do\n", seconds, to_do);
    return 0;
}

static int labi_experiment(labi_lab *lab)
{
    char table[LABI_PATH];
    if (labi_load_data(lab) || labi_find_missing(lab)) return 1;
    if (lab->plan) return labi_print_plan(lab);
    (void)snprintf(table, sizeof table, "%s/%s%s.csv", lab->out, lab->program->name,
                   lab->quick ? "_quick" : "");
    if (labi_run_missing(lab) || labi_join(lab, table)) return 1;
    return labi_report(lab->program, table, lab->out);
}

int lab_main(const lab_program *program, int argc, char **argv)
{
    labi_lab lab = {program, .seed = 11, .seeds = 5, .out = "build/figures",
                    .runs_folder = "build/runs"};
    int status = labi_parse(&lab, argc, argv);
    if (status != CLI_RUN) return status;
    status = lab.from ? labi_report(program, lab.from, lab.out) : labi_experiment(&lab);
    free(lab.missing);
    dataset_free(&lab.data);
    if (fflush(stdout) || ferror(stdout)) {
        fprintf(stderr, "%s: cannot write the verdicts to the terminal or pipe\n", program->name);
        status = 1;
    }
    return status ? 1 : 0;
}
