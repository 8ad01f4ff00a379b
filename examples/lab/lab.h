/* lab.h - what the experiments share: runs that are done once, records, claims, verdicts.

   An experiment is a set of arms (what is compared) times a number of seeds. Each pair of them is
   one run. A run leaves nothing but records: named series of pairs (x, y), such as the loss against
   the step. They go to a file of the run's own, whose head says what they come from:

       build/runs/16_landscape/batch_seed12.csv

   (with --quick in 16_landscape_quick; on other data than MNIST in 16_landscape_synthetic or
   16_landscape_other). A run whose file is there, with the head that it would get now, is not done
   again; since files appear whole or not at all, an experiment that was killed goes on where it
   was. When all runs are there, they are put together into one table, and figures and verdicts come
   from that table alone:

       16_landscape.csv             arm, series, all x, and for each seed all y
       16_landscape_verdicts.csv    claim, source, what the paper has, ours, verdict, ...
       16_landscape.png             and other pages, 16_landscape_WHAT.png

   so that `16_landscape --from 16_landscape.csv` draws and judges anew without a single run.

   experiments/31_bias_before_norm is a short one as a whole. What every one has:

       static const lab_arm arms[2] = {{"none", "no norm", 4, 0}, {"batch", "batch norm", 6, 0}};

       static int run(lab_run *r)
       {
           size_t step;
           for (step = 0; step < 100; step++) lab_record(r, "loss", step, train(r->arm, r->seed));
           return 0;
       }

   and a table of claims (judge.h), one of pages (page.h), and LAB_PROGRAM (experiment.h), which
   makes a program of them.
*/
#ifndef LAB_H
#define LAB_H

#include "csv.h"
#include "dataset.h"
#include "plot/plot.h"
#include "stats.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __GNUC__ /* arms, claims and panels are tables of data: what is left out is 0 */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#endif

#define LAB_SEEDS_MAX 512 /* runs of an arm, at most */
#define LAB_NAME_MAX 700  /* of the name of a series */

/* ---- the experiment -------------------------------------------------------------------------- */

typedef struct lab_arm {
    const char *id;   /* for tables and files: letters, digits, '_', '-', '.' */
    const char *name; /* for people                                           */
    double seconds;   /* that one run takes on one core, about: for the time to go */
    size_t seeds;     /* how many seeds it gets; 0: as many as the others          */
} lab_arm;

/* One run in the making. */
typedef struct lab_run {
    size_t arm;          /* index of the arm                                            */
    uint64_t seed;       /* 11, 12, ...                                                 */
    int first;           /* 1: of the first seed; pictures of single runs need no others */
    int quick;           /* 1: a small run that shows the program works                 */
    const dataset *data; /* NULL for an experiment without                              */
    struct labi_records *records;
    volatile size_t *done;
    size_t units;
} lab_run;

/* Notes y at x in the series of this name, which has letters, digits and "_-./" only. Values are
   kept to seven digits. A run out of memory fails at its end. */
void lab_record(lab_run *run, const char *series, double x, double y);

/* The same in a series whose name is made from a format. */
void lab_record_as(lab_run *run, double x, double y, const char *format, ...);

/* y to so many significant digits, where figures and verdicts need no more: a smaller table. */
double lab_round(double y, int digits);

/* How much of the run is done, 0..1: for the time to go. */
void lab_progress(lab_run *run, double fraction);

typedef struct lab_report lab_report;

enum {                    /* lab_program.uses */
       LAB_USES_DATA = 1, /* MNIST, or what stands in for it                         */
       LAB_IN_TURN = 2,   /* runs one after the other, all in the program's process */
       LAB_TWICE = 4      /* quick runs train twice, and must end with the same bits */
};

typedef struct lab_program {
    const char *name;     /* "16_landscape"                                                    */
    const char *version;  /* NRM_VERSION                                                       */
    const char *question; /* one line                                                          */
    const char *settings; /* what was frozen before the run; one line, printed under figures   */
    int revision;         /* raise it when the computing part changes: old runs are done again */
    unsigned uses;
    const lab_arm *arm;
    size_t arms;
    int (*prepare)(const dataset *data, int quick); /* or null: called once before the first run;
                             0, or the experiment fails. It is not called if no run is missing */
    int (*run)(lab_run *run);      /* in a process of its own. 0, or the run failed; says why */
    int (*before)(lab_report *r);  /* or null: what claims and pages need first. 0, or it failed  */
    const struct lab_claim *claim; /* for lab_judge (judge.h)                                    */
    size_t claims;
    void (*after)(lab_report *r); /* or null: checks of what must hold whatever the data say     */
    const struct lab_page *page;  /* page.h                                                      */
    size_t pages;
    plot_style (*look)(size_t arm); /* or null: of the arms' lines (page.h)                   */
    const char *command; /* printed under figures; null: make reproduce                      */
} lab_program;

#define LAB_COUNT(array) (sizeof(array) / sizeof(array)[0])
#define LAB_TEXT(macro) LAB_TEXT_OF(macro) /* the number that a macro stands for, for .settings */
#define LAB_TEXT_OF(number) #number
#define LAB_MAIN(program)                                                                          \
    int main(int argc, char **argv)                                                                \
    {                                                                                              \
        return lab_main(&(program), argc, argv);                                                   \
    }

/* The whole program: options, missing runs, tables, figures, verdicts. Returns the exit code: 0; 1
   if a run, a check or a file failed; 2 for a wrong command line. A verdict of "not reproduced" is
   no failure. */
int lab_main(const lab_program *program, int argc, char **argv);

/* ---- records, in the report ------------------------------------------------------------------ */

#define LAB_LAST ((double)INFINITY) /* as x: the last value of the series */

typedef struct lab_series {
    const double *x, *y;
    size_t n; /* 0: there is no such series */
} lab_series;

const lab_program *lab_program_of(const lab_report *r);
size_t lab_seeds(const lab_report *r, size_t arm); /* runs of this arm              */
int lab_quick(const lab_report *r);

/* Of the seed number s = 0, 1, ... */
lab_series lab_get(const lab_report *r, size_t arm, size_t s, const char *series);

/* Its value at x (nan if there is none). */
double lab_at(const lab_report *r, size_t arm, size_t s, const char *series, double x);

/* The same of all seeds; what one does with such numbers is in judge.h. */
typedef struct lab_numbers {
    size_t n;
    double of[LAB_SEEDS_MAX];
} lab_numbers;
lab_numbers lab_all(const lab_report *r, size_t arm, const char *series, double x);

/* Mean, standard deviation and so on over seeds. */
stats_summary lab_summary(const lab_report *r, size_t arm, const char *series, double x);
double lab_mean(const lab_report *r, size_t arm, const char *series, double x);

/* Mean, standard deviation, lowest and highest over seeds at each x of the first seed. Where a seed
   has no value, because its run diverged, the curve has none either: nan. Arrays live as long as
   the report. */
typedef struct lab_curve {
    double *x, *mean, *sd, *low, *high;
    size_t n;
} lab_curve;
lab_curve lab_over_seeds(lab_report *r, size_t arm, const char *series);

/* ---- judging --------------------------------------------------------------------------------- */

/* What a claim is about, and so what a run can say of it. A row that does not say is of the first
   kind, here and in the next list. */
typedef enum lab_class {
    LAB_TRAINING,   /* networks that have learned, or are about to: other seeds may differ       */
    LAB_ARITHMETIC, /* one computation or count, without chance                                  */
    LAB_IDENTITY    /* algebra: a run only confirms or refutes it, whatever the data             */
} lab_class;

/* What it says if a claim is not reproduced. */
typedef enum lab_reason {
    LAB_SETTING, /* of this setting: data, size and length of the training are not the source's  */
    LAB_ALGEBRA, /* of the sentence: algebra or logic refutes it in every setting                */
    LAB_NEWS     /* of the matter: it should have held here too                                  */
} lab_reason;

/* Why a claim is made and what counts as reproduced: written before the run. */
typedef struct lab_claim {
    const char *id;        /* "16a"                                                          */
    const char *text;      /* the claim, one sentence                                        */
    const char *source;    /* "Santurkar et al. 2018, Fig. 4"; of our own: begins with "ours" */
    const char *paper;     /* what they have, in numbers                                     */
    const char *criterion; /* what we count as reproduced; of an identity, which no data can
                              break: begins with "exact"                                     */
    const char *pilot;     /* what trial runs had shown when the criterion was written; "none" */
    lab_class about;
    lab_reason why_not;
    /* how it is judged: see judge.h */
    void (*judge)(lab_report *r, const struct lab_claim *claim);
    int test;
    size_t a, b; /* arms */
    const char *series;
    double at, limit, tolerance, times;
    const struct lab_part *part; /* of a claim of several: each tested like a row */
    double (*each)(const lab_report *r, size_t arm, size_t seed); /* in place of a series */
    double to, a_mean[2], b_mean[2];
    int decimals;
    const char *say, *remark;
} lab_claim;

/* The verdict on a claim, stats_word of what was found; `ours` is a format: what we have,
   mean ± sd, in the paper's terms. `remark` may be empty. With quick runs or synthetic digits it is
   written as not counted. It is the word of this claim alone; verdicts.c corrects for their number.
   */
void lab_verdict(lab_report *r, const lab_claim *claim, stats_finding found, const char *remark,
                 const char *ours, ...);

/* A text in a buffer of the report's. */
const char *lab_format(lab_report *r, const char *format, ...);

/* A check that must hold whatever the data say, such as an exact value. If it fails, so does the
   program. `found` is a format: what was found and what was expected. */
void lab_check(lab_report *r, int ok, const char *what, const char *found, ...);

/* ---- drawing --------------------------------------------------------------------------------- */

/* Mean line, and a band from the lowest to the highest seed. label NULL: the arm's name; "": none.
   */
void lab_plot(lab_report *r, plot_panel *p, size_t arm, const char *series, const char *label,
              plot_style style);

/* A thin line for each seed. */
void lab_plot_seeds(lab_report *r, plot_panel *p, size_t arm, const char *series, const char *label,
                    plot_style style);

/* The look of an arm by its norm, the same on every page; it means nothing else there. Safe for the
   colour-blind: none vermillion dashed, batch blue solid, layer green dash-dot, noisy purple
   dotted, group orange dashed, RMS sky dash-dot, L1 brown dash-dot, L2 grey dotted, L∞ wine solid,
   weight black dotted. */
plot_style lab_style(const char *norm);

/* The colour of the i-th of n ordered settings, such as batch sizes or rates: none of a norm's. */
plot_color lab_level(size_t i, size_t n);

#endif /* LAB_H */
