/* golden.h - reads the cases of tests/expected/torch_*.txt and compares our answers with theirs.

   A case names a layer, its settings and its input arrays, and holds the results that PyTorch has
   for it in float64; tests/parity/layers.py writes them and explains the format. The caller asks
   for inputs and for buffers by name,

       reals(g, "x")            an input, NULL if the case has none of that name
       size(g, "N")             a setting
       wanted(g, "y")           a buffer for a result, NULL if the case does not want it

   runs the layer, and calls golden_compare(g): every result that the case holds must have been
   asked for, and must be near. scratch(g, bytes) is memory besides. golden_release takes it all. */
#ifndef GOLDEN_H
#define GOLDEN_H
#include "test.h"
#include <float.h>
#include <stdlib.h>

/* What our results may differ by, relative to the largest entry of their array. For networks in
   training the case itself says it, and in the root mean square: layers.py says why. */
#define GOLDEN_FLOAT 2e-6
#define GOLDEN_DOUBLE 1e-12

typedef struct golden_array {
    char name[32];
    size_t count;
    int is_result;
    double *value;   /* an input, or PyTorch's results                 */
    nrm_real *reals; /* an input in our type, or the buffer for ours   */
    nrm_acc *accs;   /* the buffer, if it was asked for in this type   */
    int *ints;       /* labels                                         */
} golden_array;

enum { GOLDEN_ARRAYS = 40, GOLDEN_SCRATCH = 64 };

typedef struct golden {
    char layer[32], title[96];
    int function; /* of call.h, for the caller */
    golden_array array[GOLDEN_ARRAYS];
    size_t count;
    void *scratch[GOLDEN_SCRATCH];
    size_t scratches;
    double error; /* the largest, and the array that has it */
    const char *worst;
} golden;

static void golden_fatal(const char *what, const char *about)
{
    printf("golden: %s %s\n", what, about);
    exit(2);
}

static void *golden_bytes(size_t count, size_t each)
{
    void *p = calloc(count > 0 ? count : 1, each);
    if (p == NULL) golden_fatal("no memory for", "a case");
    return p;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* The next word of the file; 0 at its end. Lines that begin with # are no words. */
static int golden_word(FILE *file, char *word, size_t most)
{
    size_t n = 0;
    int c = getc(file);
    while (c == ' ' || c == '\n' || c == '\r' || c == '#') {
        if (c == '#')
            while (c != '\n' && c != EOF) c = getc(file);
        else
            c = getc(file);
    }
    for (; c != EOF && c != ' ' && c != '\n' && c != '\r'; c = getc(file))
        if (n + 1 < most) word[n++] = (char)c;
    word[n] = 0;
    return n > 0;
}

static double *golden_values(FILE *file, size_t count, const char *name)
{
    double *v = (double *)golden_bytes(count, sizeof *v);
    char word[64], *end;
    size_t i;
    for (i = 0; i < count; i++) {
        if (!golden_word(file, word, sizeof word)) golden_fatal("the file ends within", name);
        v[i] = strtod(word, &end);
        if (*end != 0) golden_fatal("not a number:", word);
    }
    return v;
}

/* "[5][3]" is 15 numbers. */
static size_t golden_volume(FILE *file, const char *name)
{
    char shape[64], *at = shape;
    size_t count = 1;
    if (!golden_word(file, shape, sizeof shape)) golden_fatal("no shape:", name);
    while (*at == '[') {
        count *= (size_t)strtoul(at + 1, &at, 10);
        if (*at++ != ']') golden_fatal("not a shape:", shape);
    }
    return count;
}

/* One line of a case, what = "set", "in" or "out". */
static void golden_entry(FILE *file, golden *g, const char *what)
{
    golden_array *a = &g->array[g->count++];
    if (g->count == GOLDEN_ARRAYS) golden_fatal("too many arrays:", g->title);
    memset(a, 0, sizeof *a);
    golden_word(file, a->name, sizeof a->name);
    a->count = strcmp(what, "set") == 0 ? 1 : golden_volume(file, a->name);
    a->value = golden_values(file, a->count, a->name);
    a->is_result = strcmp(what, "out") == 0;
}

/* The next case of the file; 0 if there is none. */
static int golden_read(FILE *file, golden *g)
{
    char word[32], *at;
    memset(g, 0, sizeof *g);
    if (!golden_word(file, word, sizeof word)) return 0;
    if (strcmp(word, "case") != 0) golden_fatal("this should be \"case\":", word);
    golden_word(file, g->layer, sizeof g->layer);
    golden_word(file, g->title, sizeof g->title);
    for (at = g->title; *at != 0; at++)
        if (*at == '_') *at = ' ';
    while (golden_word(file, word, sizeof word) && strcmp(word, "end") != 0) {
        if (strcmp(word, "set") != 0 && strcmp(word, "in") != 0 && strcmp(word, "out") != 0)
            golden_fatal("this should be \"set\", \"in\" or \"out\":", word);
        golden_entry(file, g, word);
    }
    if (strcmp(word, "end") != 0) golden_fatal("no end of", g->title);
    return 1;
}

static void golden_release(golden *g)
{
    size_t i;
    for (i = 0; i < g->count; i++) {
        free(g->array[i].value);
        free(g->array[i].reals);
        free(g->array[i].accs);
        free(g->array[i].ints);
    }
    for (i = 0; i < g->scratches; i++) free(g->scratch[i]);
}

/* ---- what a case holds ----------------------------------------------------------------------- */

static golden_array *golden_find(golden *g, const char *name, int is_result)
{
    size_t i;
    for (i = 0; i < g->count; i++)
        if (strcmp(g->array[i].name, name) == 0 && g->array[i].is_result == is_result)
            return &g->array[i];
    return NULL;
}

static double number(golden *g, const char *name)
{
    const golden_array *a = golden_find(g, name, 0);
    if (a == NULL) golden_fatal("no setting", name);
    return a->value[0];
}

static nrm_real real(golden *g, const char *name)
{
    return (nrm_real)number(g, name);
}

static size_t size(golden *g, const char *name)
{
    return (size_t)number(g, name);
}

static size_t size_or(golden *g, const char *name, size_t otherwise)
{
    return golden_find(g, name, 0) == NULL ? otherwise : size(g, name);
}

static int choice(golden *g, const char *name)
{
    return (int)number(g, name);
}

static nrm_real *reals(golden *g, const char *name)
{
    golden_array *a = golden_find(g, name, 0);
    size_t i;
    if (a == NULL || a->reals != NULL) return a == NULL ? NULL : a->reals;
    a->reals = (nrm_real *)golden_bytes(a->count, sizeof *a->reals);
    for (i = 0; i < a->count; i++) a->reals[i] = (nrm_real)a->value[i];
    return a->reals;
}

static int *ints(golden *g, const char *name)
{
    golden_array *a = golden_find(g, name, 0);
    size_t i;
    if (a == NULL || a->ints != NULL) return a == NULL ? NULL : a->ints;
    a->ints = (int *)golden_bytes(a->count, sizeof *a->ints);
    for (i = 0; i < a->count; i++) a->ints[i] = (int)a->value[i];
    return a->ints;
}

/* A buffer for a result. It starts at 0: what a gradient is added to. */
static nrm_real *wanted(golden *g, const char *name)
{
    golden_array *a = golden_find(g, name, 1);
    if (a == NULL || a->reals != NULL) return a == NULL ? NULL : a->reals;
    a->reals = (nrm_real *)golden_bytes(a->count, sizeof *a->reals);
    return a->reals;
}

static nrm_acc *wanted_accs(golden *g, const char *name)
{
    golden_array *a = golden_find(g, name, 1);
    if (a == NULL || a->accs != NULL) return a == NULL ? NULL : a->accs;
    a->accs = (nrm_acc *)golden_bytes(a->count, sizeof *a->accs);
    return a->accs;
}

/* Zeroed memory that lives as long as the case. */
static void *scratch(golden *g, size_t bytes)
{
    if (g->scratches == GOLDEN_SCRATCH) golden_fatal("too much scratch memory:", g->title);
    return g->scratch[g->scratches++] = golden_bytes(bytes, 1);
}

/* Saved statistics: a result if the case wants them, else just memory. */
static nrm_acc *saved(golden *g, const char *name, size_t count)
{
    nrm_acc *a = wanted_accs(g, name);
    return a != NULL ? a : (nrm_acc *)scratch(g, count * sizeof *a);
}

/* ---- comparing ------------------------------------------------------------------------------- */

/* The largest difference of our results from PyTorch's, relative to the largest entry of theirs.
   With rms, both in the root mean square instead. */
static double golden_distance(const golden_array *a, int rms)
{
    double largest = 0, worst = 0, squares = 0, off_squares = 0;
    size_t i;
    for (i = 0; i < a->count; i++) {
        const double ours = a->reals != NULL ? (double)a->reals[i] : (double)a->accs[i];
        const double off = fabs(ours - a->value[i]);
        if (!(off < HUGE_VAL)) return HUGE_VAL; /* NaN too */
        worst = fmax(worst, off);
        largest = fmax(largest, fabs(a->value[i]));
        squares += a->value[i] * a->value[i];
        off_squares += off * off;
    }
    if (rms) return squares > 0 ? sqrt(off_squares / squares) : sqrt(off_squares);
    return largest > 0 ? worst / largest : worst;
}

static void golden_judge(golden *g, const golden_array *a)
{
    const int in_float = sizeof(nrm_real) == sizeof(float);
    const golden_array *drift = in_float ? golden_find(g, "drift", 0) : NULL;
    const double error = golden_distance(a, drift != NULL);
    const double bound = drift != NULL ? drift->value[0] : in_float ? GOLDEN_FLOAT : GOLDEN_DOUBLE;
    if (error >= g->error) {
        g->error = error;
        g->worst = a->name;
    }
    if (error <= bound) return;
    test_bad++;
    printf("%s, %s: %s differs from PyTorch's by %.2g, bound %.2g\n", g->layer, g->title, a->name,
           error, bound);
}

static void golden_compare(golden *g)
{
    size_t i;
    for (i = 0; i < g->count; i++) {
        const golden_array *a = &g->array[i];
        if (a->is_result && a->reals == NULL && a->accs == NULL) {
            test_bad++;
            printf("%s, %s: nobody computed %s\n", g->layer, g->title, a->name);
        } else if (a->is_result) {
            golden_judge(g, a);
        }
    }
}
#endif
