/* derive_tools.h - what the derivations share: the table of residuals, data, differences.

   Each display equation of normlayers.h has one line

       DERIVE(tag, residual, witness);

   here, which records how far apart its two sides are: 0 if they agree. It may run many times; the
   table keeps the largest residual. ALSO(residual, witness) straight after it, or ALSO_OF(tag,
   residual, witness) anywhere, adds a witness of another kind to the same equation. The kinds:

       R  replay        the code's bits against the same operations written out again
       I  identity      the code, or one side, against an independent evaluation of the other
       F  rule          an integral against Simpson's rule
       C  complex step  a derivative against the forward pass at a complex point, or in dual numbers
       O  order         what a series leaves out, against its first omitted term
       S  statistics    moments of random draws, in units of their standard error */
#ifndef DERIVE_TOOLS_H
#define DERIVE_TOOLS_H

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"
#include "lab/draw.h"

typedef long double wide; /* the type of independent evaluations */

enum { ROWS_OF_TABLE = 1024 };

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* ---- kinds of witness ------------------------------------------------------------------------ */

typedef struct witness { /* its kind, and how large a residual it may leave */
    char kind;
    double most;
} witness;

static inline witness make_witness(char kind, double most)
{
    witness w;
    w.kind = kind;
    w.most = most;
    return w;
}

static inline int in_float(void)
{
    return sizeof(nrm_real) == sizeof(float);
}

static inline int acc_in_float(void)
{
    return sizeof(nrm_acc) == sizeof(float);
}

/* Has nrm_acc no more digits than nrm_real? */
static inline int acc_no_wider(void)
{
    return sizeof(nrm_acc) == sizeof(nrm_real);
}

/* The same operations in the same order. */
static inline witness replay(void)
{
    return make_witness('R', 0);
}

/* A result of type nrm_real. */
static inline witness identity(void)
{
    return make_witness('I', in_float() ? 1e-6 : 1e-13);
}

/* Algebra in `wide`, that no number of the code takes part in. */
static inline witness algebra(void)
{
    return make_witness('I', 1e-13);
}

/* A result of type nrm_acc. */
static inline witness acc_identity(void)
{
    return make_witness('I', acc_in_float() ? 1e-6 : 1e-13);
}

/* A function of our own, of type nrm_acc, that claims to be right to the last place or so. */
static inline witness last_place(void)
{
    if (acc_in_float()) return make_witness('I', 4.5 * (double)FLT_EPSILON);
    if (LDBL_MANT_DIG == DBL_MANT_DIG) return acc_identity(); /* then `wide` is no better */
    return make_witness('I', 1e-15);
}

static inline witness acc_difference(void)
{
    return make_witness('F', 1e-9);
}

/* Derivatives by complex steps have no error of their own. */
static inline witness complex_step(void)
{
    return make_witness('C', 1e-14);
}

static inline witness statistics(void)
{
    return make_witness('S', 4);
}

/* ---- the table ------------------------------------------------------------------------------- */

typedef struct derivation {
    const char *tag;
    witness by;
    size_t evaluations;
    double worst;
} derivation;

static derivation derivation_table[ROWS_OF_TABLE];
static size_t derivation_count;
static const char *derivation_last; /* the tag that ALSO speaks of */

static inline int derivation_is(const derivation *row, const char *tag, witness w)
{
    return (row->tag == tag || strcmp(row->tag, tag) == 0) && row->by.kind == w.kind &&
           row->by.most == w.most;
}

static inline derivation *derivation_row(const char *tag, witness w)
{
    /* most calls are repeated: where the row of this string was found last */
    static derivation *found[256];
    const size_t at = ((uintptr_t)tag / 4 + (size_t)w.kind) % LENGTH(found);
    derivation *row = derivation_table;
    if (found[at] != NULL && derivation_is(found[at], tag, w)) return found[at];
    while (row < derivation_table + derivation_count && !derivation_is(row, tag, w)) row++;
    if (row == derivation_table + ROWS_OF_TABLE) {
        fprintf(stderr, "the table of derivations is full\n");
        exit(1);
    }
    if (row == derivation_table + derivation_count) {
        derivation_count++;
        row->tag = tag;
        row->by = w;
    }
    return found[at] = row;
}

/* A residual that is NaN is as bad as can be. */
static inline void derivation_record(const char *tag, wide residual, witness w)
{
    derivation *row = derivation_row(tag, w);
    const double size = residual >= 0 ? (double)residual : HUGE_VAL;
    derivation_last = tag;
    row->evaluations++;
    if (size > row->worst) row->worst = size;
}

#define DERIVE(tag, residual, witness) derivation_record(tag, residual, witness)
#define ALSO(residual, witness) derivation_record(derivation_last, residual, witness)
#define ALSO_OF(tag, residual, witness) derivation_record(tag, residual, witness)

/* ---- reports -------------------------------------------------------------------------------- */

static inline void derivation_print(const derivation *row, const char *verdict)
{
    printf("%-7s %c %8lu %11.2e %9.1e%s\n", row->tag, row->by.kind, (unsigned long)row->evaluations,
           row->worst, row->by.most, verdict);
}

/* One test: an equation, with all its witnesses. */
static inline void derivation_report(const char *tag, int verbose)
{
    size_t i, rows = 0;
    int bad = 0;
    for (i = 0; i < derivation_count; i++) {
        const derivation *row = &derivation_table[i];
        const int failed = !(row->worst <= row->by.most);
        if (strcmp(row->tag, tag) != 0) continue;
        if (failed || verbose) derivation_print(row, failed ? "  FAILED" : "");
        bad |= failed;
        rows++;
    }
    if (rows == 0) printf("%-7s was never evaluated  FAILED\n", tag);
    if (rows == 0 || bad)
        test_failed++;
    else
        test_passed++;
}

/* ---- residuals ------------------------------------------------------------------------------- */

/* The larger of two residuals, NaN being the largest of all. */
static inline wide worse(wide a, wide b)
{
    if (!(a >= 0)) return a;
    return b <= a ? a : b;
}

/* |a - b| relative to a given scale; with no scale they have to be equal. */
static inline wide apart(wide a, wide b, wide scale)
{
    const wide gap = fabsl(a - b);
    if (gap == 0) return 0;
    return scale > 0 ? gap / scale : (wide)HUGE_VAL;
}

/* |a - b| relative to b. */
static inline wide relative(wide a, wide b)
{
    return apart(a, b, fabsl(b));
}

/* Sums and means, from left to right. */
static inline wide sum_of(const wide *a, size_t n)
{
    wide sum = 0;
    size_t i;
    for (i = 0; i < n; i++) sum += a[i];
    return sum;
}

static inline wide mean_of(const wide *a, size_t n)
{
    return sum_of(a, n) / (wide)n;
}

/* A condition as a residual: 0, or as bad as can be. */
static inline wide unless(int condition)
{
    return condition ? 0 : (wide)HUGE_VAL;
}

/* ---- data ------------------------------------------------------------------------------------ */

static inline nrm_rng stream(uint64_t number)
{
    nrm_rng rng;
    nrm_rng_seed(&rng, 2015, number);
    return rng;
}

/* Normal numbers around `centre`. */
static inline void fill_real(nrm_real *a, size_t n, double centre, double spread, nrm_rng *rng)
{
    size_t i;
    for (i = 0; i < n; i++) a[i] = (nrm_real)(centre + spread * (double)draw_normal(rng));
}

static inline double uniform_between(nrm_rng *rng, double low, double high)
{
    return low + (high - low) * ((double)nrm_rng_u32(rng) + 0.5) / 4294967296.0;
}

/* From -1 to 1, as noise and weights are drawn. */
static inline nrm_acc symmetric(nrm_rng *rng)
{
    return (nrm_acc)ldexp((double)(nrm_acc)nrm_rng_u32(rng), -31) - 1;
}

/* ---- statistics ------------------------------------------------------------------------------ */

typedef struct moments { /* of draws that should have a given mean, variance and fourth moment */
    size_t n;
    wide sum, squares, low, high;
} moments;

static inline moments no_moments(void)
{
    moments m;
    memset(&m, 0, sizeof m);
    m.low = (wide)HUGE_VAL;
    m.high = -(wide)HUGE_VAL;
    return m;
}

static inline void take(moments *m, wide v, wide centre)
{
    m->n++;
    m->sum += v - centre;
    m->squares += (v - centre) * (v - centre);
    if (v < m->low) m->low = v;
    if (v > m->high) m->high = v;
}

/* How many standard errors the mean is from the centre and the variance from the one given. The
   kurtosis says how far the variance of a sample scatters: 9/5 if uniform, 3 if normal. */
static inline wide surprise(const moments *m, wide variance, wide kurtosis)
{
    const wide n = (wide)m->n;
    const wide mean = m->sum / n / sqrtl(variance / n);
    const wide spread = (m->squares / n / variance - 1) / sqrtl((kurtosis - 1) / n);
    return worse(fabsl(mean), fabsl(spread));
}

/* Of a uniform distribution, the range too: within it, and up to a hundredth of its ends. */
static inline wide surprise_uniform(const moments *m, wide low, wide high)
{
    const wide margin = (high - low) / 100;
    const int inside = m->low >= low && m->high <= high;
    const int filled = m->low < low + margin && m->high > high - margin;
    return worse(unless(inside && filled),
                 surprise(m, (high - low) * (high - low) / 12, (wide)9 / 5));
}

#endif
