/* accuracy.h - what the parts of the accuracy program share: a problem, an answer to it, those who
   answer (the contestants), and the results. See accuracy.c. */
#ifndef ACCURACY_H
#define ACCURACY_H

#include <stddef.h>
#include <stdio.h>

enum { BATCH_NORM = 0, LAYER_NORM = 1, GROUP_NORM = 2, RMS_NORM = 3, LAYERS };
enum { Y = 0, DX, DGAMMA, DBETA, QUANTITIES };

/* Data in float, the same bits for everybody. Batch norm and group norm, with G groups, take a
   tensor [N][C][S] with parameters [C]; layer norm and RMS norm take N rows of C values, S = G = 1,
   with parameters [C] as well, of which RMS norm knows no beta. */
typedef struct problem {
    int layer;
    size_t N, C, S, G;
    float eps;
    const float *x, *dy, *gamma, *beta;
} problem;

/* Results, in double so that those of every contestant fit: y and dx like x, the others [C]. */
typedef struct answer {
    double *out[QUANTITIES];
} answer;

/* How many values a quantity has. */
size_t quantity_size(const problem *p, int quantity);

/* Fills `*a`, gradients of parameters included (set, not added), in one of the function's ways.
   Returns 0, or -1 if it cannot. */
typedef int contestant_run(int way, const problem *p, answer *a);

typedef struct contestant {
    const char *key;  /* in the CSV file          */
    const char *name; /* in tables and figure     */
    int bits;         /* of its results: 24 or 53 */
    int in_figure;
    contestant_run *run;
    int way;
} contestant;

enum { CONTESTANTS_MAX = 12 };

/* normlayers.h in its three precisions: layers.c, compiled three times. */
contestant_run layers_default, layers_float_sums, layers_double;

/* Algorithms as textbooks and libraries have them: textbook.c. */
enum { ONE_PASS, TWO_PASS, WELFORD, SHIFTED, DOUBLE_SUMS };
contestant_run textbook_run;

/* PyTorch in a process of its own: torch.c. The program `python` runs the file `script`, and
   answers by the FIFO `answers`, which is made. Returns its version, or NULL. */
const char *torch_start(const char *python, const char *script, const char *answers);
int torch_stop(void); /* 0, or -1 if it had ended before */
contestant_run torch_run;

/* ---- results --------------------------------------------------------------------------------- */

typedef struct score { /* of one contestant in one case */
    int ran;
    double relative[QUANTITIES]; /* max |error| / max |reference|; if that is 0, max |error|    */
    double ulps[QUANTITIES]; /* max |error| in ulps of max |reference|; if that is 0, 0 or inf */
} score;

enum { IN_TABLE = 0, BY_MEAN, BY_LENGTH };

typedef struct outcome { /* one case: its data, and everybody's score */
    int set;             /* IN_TABLE, or the sweep of the figure that it belongs to */
    int layer;
    size_t N, C, S, G;
    const char *data; /* in words        */
    int kind;         /* number of these */
    double mean;
    score scores[CONTESTANTS_MAX];
} outcome;

typedef struct report {
    const contestant *who;
    size_t many;
    outcome *cases;
    size_t done;
    int kinds;
    const char *torch_version; /* or NULL */
    const char *reference;     /* type of the reference */
} report;

void report_table(const report *r, FILE *to); /* in Markdown */
/* These return 0, or -1 after a line on stderr. */
int report_csv(const report *r, const char *path);
int report_figure(const report *r, const char *path);

#endif
