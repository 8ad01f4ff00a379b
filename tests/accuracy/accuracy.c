/* accuracy.c - how far from the exact result? normlayers.h, the usual algorithms and PyTorch, on
   data chosen to hurt.

   For every shape and every kind of data the outputs y and the gradients dx, dγ, dβ of all
   contestants are compared with those of reference.h, which gets the same floats: that a float near
   a million cannot hold what was meant is nobody's error. Two measures: the largest error as a part
   of the largest exact value, and in ulps of that value, of the contestant's own type.

   Prints tables, writes them as CSV and Markdown, draws a figure, and fails if normlayers.h breaks
   one of the bounds below.

   The gradients that arrive, dy, are of size 1, for then all exact results are normal floats: at
   scale 10^18 dx is about 10^-18, at 10^-18 with a small eps about 10^18. */
#define REF_FLOAT128 1
#include "normlayers.h"
#include "lab/draw.h"
#include "accuracy.h"
#include "layers/reference.h"
#include "groups.h"

#include "lab/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- data and bounds ------------------------------------------------------------------------- */

enum shape_of_data { PLAIN, CONSTANT, OUTLIERS, ALTERNATING };

enum { OURS = 0, OURS_FLOAT_SUMS, OURS_DOUBLE, PRECISIONS };

/* What normlayers.h has to reach, for y, dx, dγ and dβ alike, as a part of the largest exact value.
   The default precision is held to a promise. For the other two the bounds are some way above
   what has been measured: with float sums a mean is known to its last place in float, which counts
   the more the larger |mean|/sd is, and long sums lose digits; in double it is the same with a
   double's places. An infinite bound promises nothing: squares of 10^18 overflow float. */
#define PROMISE 2e-6
#define PROMISE_LONG 4e-6 /* for rows of 10^6 */
#define NO_BOUND HUGE_VAL

typedef struct data_kind {
    const char *name;
    enum shape_of_data shape;
    double mean, sd, eps;
    int centred; /* beta = 0, where y - beta would be too small to be seen beside beta */
    double bound[PRECISIONS];
} data_kind;

static const data_kind kinds[] = {
    {"mean 0, sd 1", PLAIN, 0, 1, 1e-5, 0, {PROMISE, 4e-6, 6e-14}},
    {"mean 1e2, sd 1", PLAIN, 1e2, 1, 1e-5, 0, {PROMISE, 2e-5, 6e-14}},
    {"mean 1e4, sd 1", PLAIN, 1e4, 1, 1e-5, 0, {PROMISE, 1e-3, 2e-12}},
    {"mean 1e6, sd 1", PLAIN, 1e6, 1, 1e-5, 0, {PROMISE, 6e-2, 2e-10}},
    {"mean 1, sd 1e-4", PLAIN, 1, 1e-4, 1e-5, 1, {PROMISE, 2e-3, 3e-12}},
    {"constant 3.3", CONSTANT, 3.3, 0, 1e-5, 0, {PROMISE, 3e-6, 1e-15}},
    {"constant 1e6/3", CONSTANT, 1e6 / 3, 0, 1e-5, 0, {PROMISE, 3e-6, 1e-15}},
    {"constant 0.1", CONSTANT, 0.1, 0, 1e-5, 0, {PROMISE, 3e-6, 1e-15}},
    {"outliers 1e4", OUTLIERS, 0, 1, 1e-5, 0, {PROMISE, 4e-6, 6e-14}},
    {"1e4 and 1e-4 in turn", ALTERNATING, 0, 1, 1e-5, 0, {PROMISE, 1e-5, 6e-14}},
    {"scale 1e18", PLAIN, 0, 1e18, 1e-5, 0, {PROMISE, NO_BOUND, 4e-14}},
    {"scale 1e-18", PLAIN, 0, 1e-18, 1e-5, 1, {PROMISE, 4e-6, 4e-14}},
    {"scale 1e-18, small eps", PLAIN, 0, 1e-18, 1e-37, 0, {PROMISE, 4e-6, 4e-14}},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

typedef struct tensor_shape {
    int layer;
    size_t N, C, S, G;
} tensor_shape;

static const tensor_shape shapes[] = {
    {BATCH_NORM, 64, 128, 1, 1},     {BATCH_NORM, 4096, 64, 1, 1}, {BATCH_NORM, 100352, 8, 1, 1},
    {BATCH_NORM, 32, 8, 56 * 56, 1}, {LAYER_NORM, 64, 128, 1, 1},  {LAYER_NORM, 64, 4096, 1, 1},
    {LAYER_NORM, 4, 1000000, 1, 1},  {GROUP_NORM, 64, 256, 1, 8},  {GROUP_NORM, 16, 64, 28 * 28, 8},
    {GROUP_NORM, 4, 8, 300 * 300, 1}, {RMS_NORM, 64, 128, 1, 1},   {RMS_NORM, 64, 4096, 1, 1},
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

/* The figure: error against mean/sd, and against the number of values, at mean/sd = 100. */
static const tensor_shape mean_shapes[] = {{BATCH_NORM, 4096, 64, 1, 1},
                                           {LAYER_NORM, 64, 4096, 1, 1}};
static const size_t lengths[] = {32, 100, 316, 1000, 3162, 10000, 31623, 100000, 316228, 1000000};
enum { MEAN_STEPS = 13, LENGTHS = sizeof lengths / sizeof lengths[0], LENGTH_ROWS = 4 };
static const double length_mean = 100;

enum { OUTCOMES_MAX = KINDS * SHAPES + 2 * MEAN_STEPS + 2 * LENGTHS, TABLE = KINDS * SHAPES };

/* ---- the exact answer ------------------------------------------------------------------------ */

typedef struct exact_value { /* head + tail, which judges faster than the wide type */
    double head, tail;
} exact_value;

typedef struct bench { /* all arrays, as large as the largest case wants */
    float *z, *dy, *gamma, *beta, *zero, *x;
    answer got;
    ref_wide *wide[QUANTITIES];
    exact_value *exact[QUANTITIES];
    double largest[QUANTITIES]; /* of the exact values */
} bench;

size_t quantity_size(const problem *p, int quantity)
{
    return quantity == Y || quantity == DX ? p->N * p->C * p->S : p->C;
}

static void *array(size_t n, size_t size)
{
    void *a = calloc(n, size);
    if (a != NULL) return a;
    fprintf(stderr, "accuracy: no memory\n");
    exit(2);
}

static void bench_make(bench *b)
{
    enum { MOST = 4000000, PARAMETERS = 1000000 }; /* of the shapes above */
    int k;
    b->z = (float *)array(MOST, sizeof(float));
    b->dy = (float *)array(MOST, sizeof(float));
    b->x = (float *)array(MOST, sizeof(float));
    b->gamma = (float *)array(PARAMETERS, sizeof(float));
    b->beta = (float *)array(PARAMETERS, sizeof(float));
    b->zero = (float *)array(PARAMETERS, sizeof(float));
    for (k = 0; k < QUANTITIES; k++) {
        const size_t n = k == Y || k == DX ? MOST : PARAMETERS;
        b->got.out[k] = (double *)array(n, sizeof(double));
        b->wide[k] = (ref_wide *)array(n, sizeof(ref_wide));
        b->exact[k] = (exact_value *)array(n, sizeof(exact_value));
    }
}

static void bench_free(bench *b)
{
    int k;
    for (k = 0; k < QUANTITIES; k++) {
        free(b->got.out[k]);
        free(b->wide[k]);
        free(b->exact[k]);
    }
    free(b->z), free(b->dy), free(b->x), free(b->gamma), free(b->beta), free(b->zero);
}

static void split_exact(bench *b, const problem *p, int quantity)
{
    const size_t n = quantity_size(p, quantity);
    double largest = 0;
    size_t i;
    for (i = 0; i < n; i++) {
        const ref_wide exact = b->wide[quantity][i];
        exact_value *v = &b->exact[quantity][i];
        v->head = (double)exact;
        v->tail = (double)(exact - REF(v->head));
        largest = fmax(largest, fabs(v->head));
    }
    b->largest[quantity] = largest;
}

static void solve_exactly(bench *b, const problem *p)
{
    const size_t groups = group_count(p);
    const int rms = p->layer == RMS_NORM;
    const ref_wide eps = REF(p->eps);
    size_t k;
    for (k = 0; k < p->C; k++) b->wide[DGAMMA][k] = b->wide[DBETA][k] = 0;
    for (k = 0; k < groups; k++) {
        const ref_group g = group_number(p, k);
        const ref_stats s = rms ? ref_mean_square(&g, p->x) : ref_moments(&g, p->x);
        ref_forward(b->wide[Y], &g, p->x, &s, eps, p->gamma, rms ? NULL : p->beta);
        if (rms)
            ref_backward_rms(b->wide[DX], &g, p->x, p->dy, &s, eps, p->gamma);
        else
            ref_backward_input(b->wide[DX], &g, p->x, p->dy, &s, eps, p->gamma, 0);
        ref_backward_parameters(b->wide[DGAMMA], b->wide[DBETA], &g, p->x, p->dy, &s, eps);
    }
    for (k = 0; k < p->C && rms; k++) b->wide[DBETA][k] = 0; /* there is no beta */
    for (k = 0; k < QUANTITIES; k++) split_exact(b, p, (int)k);
}

/* ---- the cases ------------------------------------------------------------------------------- */

/* Standard normal numbers for x and dy, and parameters: the same for all kinds of data. */
static void draw(bench *b, const tensor_shape *t)
{
    const size_t n = t->N * t->C * t->S;
    nrm_rng rng;
    size_t i;
    nrm_rng_seed(&rng, 19, n + (size_t)t->layer);
    for (i = 0; i < n; i++) b->z[i] = draw_normal(&rng);
    for (i = 0; i < n; i++) b->dy[i] = draw_normal(&rng);
    for (i = 0; i < t->C; i++) b->gamma[i] = 0.5f + draw_uniform(&rng);
    for (i = 0; i < t->C; i++) b->beta[i] = draw_normal(&rng);
}

/* Element i of a tensor: example n, channel (or feature) c, position s. The number of the value in
   its group is n*S + s in batch norm and c in layer norm; in group norm, that in its example. */
static double value_of(const data_kind *d, const tensor_shape *t, size_t i, double z)
{
    const size_t s = i % t->S, c = i / t->S % t->C, n = i / t->S / t->C;
    const size_t in_group = t->layer == BATCH_NORM ? n * t->S + s : c * t->S + s;
    double scale = 1;
    if (d->shape == CONSTANT) return d->mean;
    if (d->shape == OUTLIERS && n == t->N / 2 && s == t->S / 2) scale *= 1e4; /* a row */
    if (d->shape == OUTLIERS && c == t->C / 2) scale *= 1e4;                  /* a column */
    if (d->shape == ALTERNATING) scale = in_group % 2 ? 1e-4 : 1e4;
    return d->mean + d->sd * scale * z;
}

static void pose(problem *p, bench *b, const tensor_shape *t, const data_kind *d)
{
    size_t i;
    for (i = 0; i < t->N * t->C * t->S; i++) b->x[i] = (float)value_of(d, t, i, (double)b->z[i]);
    p->layer = t->layer;
    p->N = t->N;
    p->C = t->C;
    p->S = t->S;
    p->G = t->G;
    p->eps = (float)d->eps;
    p->x = b->x;
    p->dy = b->dy;
    p->gamma = b->gamma;
    p->beta = d->centred ? b->zero : b->beta;
}

/* ---- scores ---------------------------------------------------------------------------------- */

static double in_ulps(double error, double largest, int bits)
{
    int exponent;
    if (!(largest > 0)) return error > 0 ? HUGE_VAL : 0;
    (void)frexp(largest, &exponent);
    return ldexp(error, bits - exponent);
}

/* Infinite where a result is not finite. */
static double largest_error(const double *got, const exact_value *exact, size_t n)
{
    double error = 0;
    size_t i;
    for (i = 0; i < n; i++) {
        const double gap = fabs((got[i] - exact[i].head) - exact[i].tail);
        if (!(gap <= error)) error = gap <= HUGE_VAL ? gap : HUGE_VAL;
    }
    return error;
}

static void judge(score *s, int quantity, const bench *b, size_t n, int bits)
{
    const double largest = b->largest[quantity];
    const double error = largest_error(b->got.out[quantity], b->exact[quantity], n);
    s->relative[quantity] = largest > 0 ? error / largest : error;
    s->ulps[quantity] = in_ulps(error, largest, bits);
}

static void compare(outcome *o, bench *b, const problem *p, const contestant *who, size_t many)
{
    size_t c;
    int k;
    solve_exactly(b, p);
    for (c = 0; c < many; c++) {
        score *s = &o->scores[c];
        s->ran =
            (o->set == IN_TABLE || who[c].in_figure) && who[c].run(who[c].way, p, &b->got) == 0;
        for (k = 0; k < QUANTITIES && s->ran; k++) judge(s, k, b, quantity_size(p, k), who[c].bits);
    }
}

static void describe(outcome *o, int set, const tensor_shape *t, const data_kind *d, int kind)
{
    memset(o, 0, sizeof *o);
    o->set = set;
    o->layer = t->layer;
    o->N = t->N;
    o->C = t->C;
    o->S = t->S;
    o->G = t->G;
    o->data = d->name;
    o->kind = kind;
    o->mean = d->mean;
}

typedef struct run { /* everything that is passed around below */
    bench arrays;
    report results;
    cli_progress progress;
} run;

static void run_case(run *r, int set, const tensor_shape *t, const data_kind *d, int kind)
{
    outcome *o = &r->results.cases[r->results.done];
    problem p;
    describe(o, set, t, d, kind);
    pose(&p, &r->arrays, t, d);
    compare(o, &r->arrays, &p, r->results.who, r->results.many);
    cli_progress_update(&r->progress, ++r->results.done, d->name);
}

static void run_table(run *r)
{
    int t, d;
    for (t = 0; t < SHAPES; t++) {
        draw(&r->arrays, &shapes[t]);
        for (d = 0; d < KINDS; d++) run_case(r, IN_TABLE, &shapes[t], &kinds[d], d);
    }
}

static void run_sweeps(run *r)
{
    data_kind d = kinds[0];
    int t, k;
    d.name = "sweep";
    for (t = 0; t < 2; t++) {
        draw(&r->arrays, &mean_shapes[t]);
        for (k = 0; k < MEAN_STEPS; k++) {
            d.mean = pow(10, k / 2.0); /* 1 to 10^6 */
            run_case(r, BY_MEAN, &mean_shapes[t], &d, 0);
        }
    }
    d.mean = length_mean;
    for (t = 0; t < 2; t++)
        for (k = 0; k < LENGTHS; k++) {
            tensor_shape shape = mean_shapes[t];
            shape.N = t == 0 ? lengths[k] : LENGTH_ROWS;
            shape.C = t == 0 ? LENGTH_ROWS : lengths[k];
            draw(&r->arrays, &shape);
            run_case(r, BY_LENGTH, &shape, &d, 0);
        }
}

/* ---- bounds ---------------------------------------------------------------------------------- */

static int within(const outcome *o, int precision)
{
    static const char *const names[QUANTITIES] = {"y", "dx", "dgamma", "dbeta"};
    static const char *const layer_names[LAYERS] = {"batch", "layer", "group", "RMS"};
    static const char *const precision_names[PRECISIONS] = {"default", "NRM_ACC=float",
                                                            "NRM_DOUBLE"};
    const data_kind *d = &kinds[o->kind];
    const score *s = &o->scores[precision];
    const int is_long = o->layer == LAYER_NORM && o->C > 100352;
    /* to RMS norm, constants are data like others */
    const int plain = o->layer == RMS_NORM && d->shape == CONSTANT;
    const double bound = precision == OURS && is_long ? PROMISE_LONG
                                                      : kinds[plain ? 0 : o->kind].bound[precision];
    int k, broken = !s->ran;
    for (k = 0; k < QUANTITIES && s->ran; k++) {
        /* y of constants is beta to the bit, and x̂ = 0 leaves dγ = 0 */
        const int exact = d->shape == CONSTANT && !plain && (k == Y || k == DGAMMA);
        if (s->relative[k] <= (exact ? 0 : bound)) continue;
        broken = 1;
        printf("broken: %s norm %zux%zux%zu, %s, %s, %s: %.2g, bound %.2g\n",
               layer_names[o->layer], o->N, o->C, o->S, d->name,
               precision_names[precision], names[k], s->relative[k], exact ? 0 : bound);
    }
    return !broken;
}

/* Prints what is broken, then the verdict; returns how many are. */
static int check_bounds(const report *r)
{
    int precision, passed = 0, failed = 0;
    size_t i;
    for (i = 0; i < r->done; i++) {
        if (r->cases[i].set != IN_TABLE) continue;
        for (precision = 0; precision < PRECISIONS; precision++) {
            if (within(&r->cases[i], precision))
                passed++;
            else
                failed++;
        }
    }
    printf("accuracy: %d passed, %d failed\n", passed, failed);
    return failed;
}

/* ---- contestants ----------------------------------------------------------------------------- */

/* The first three in the order of OURS, OURS_FLOAT_SUMS, OURS_DOUBLE; PyTorch is the last. */
static const contestant contestants[] = {
    {"normlayers", "normlayers.h", 24, 1, layers_default, 0},
    {"normlayers_float_sums", "normlayers.h, NRM_ACC=float", 24, 1, layers_float_sums, 0},
    {"normlayers_double", "normlayers.h, NRM_DOUBLE", 53, 0, layers_double, 0},
    {"one_pass", "one pass, ⟨x²⟩ − μ²", 24, 1, textbook_run, ONE_PASS},
    {"two_pass", "two passes", 24, 1, textbook_run, TWO_PASS},
    {"welford", "Welford", 24, 1, textbook_run, WELFORD},
    {"shifted", "two passes from x₁", 24, 1, textbook_run, SHIFTED},
    {"double_sums", "double sums, float mean", 24, 1, textbook_run, DOUBLE_SUMS},
    {"pytorch", "PyTorch", 24, 1, torch_run, 0},
};

/* ---- main ------------------------------------------------------------------------------------ */

static int write_reports(const report *r, const char *folder)
{
    char csv[1024], markdown[1024], png[1024];
    FILE *table;
    if (cli_results(png, csv, sizeof png, "accuracy", folder, 0) != CLI_RUN) return -1;
    (void)snprintf(markdown, sizeof markdown, "%.1000s/accuracy_tables.md", folder);
    report_table(r, stdout);
    if (report_csv(r, csv) || report_figure(r, png)) return -1;
    table = fopen(markdown, "w");
    if (table != NULL) report_table(r, table);
    if (table == NULL || ferror(table) | fclose(table)) {
        perror(markdown);
        return -1;
    }
    printf("wrote %s, %s, %s\n", csv, markdown, png);
    return 0;
}

/* PyTorch's version, or NULL. */
static const char *start_torch(const char *python, const char *folder)
{
    char answers[1024];
    const char *version = NULL;
    if (python == NULL)
        printf("no PyTorch here (Debian: python3-torch): its column is left out\n");
    else if (snprintf(answers, sizeof answers, "%s/torch_answers", folder) < (int)sizeof answers)
        version = torch_start(python, "tests/accuracy/torch_norms.py", answers);
    if (python != NULL && version == NULL)
        printf("PyTorch does not start: its column is left out\n");
    return version;
}

int main(int argc, char **argv)
{
    const char *python = NULL, *out = "build/accuracy";
    int status, quiet = 0;
    cli_option option[3] = {
        {"python", "PROGRAM", "a Python that has PyTorch", CLI_TEXT, &python, 0, 0, 0},
        CLI_OUT(&out),
        CLI_QUIET(&quiet)};
    run r;
    report *const results = &r.results;
    status = cli_parse("accuracy", "Norms against the exact result, on data that hurt", option, 3,
                       argc, argv);
    if (status != CLI_RUN) return status;
    memset(&r, 0, sizeof r);
    results->torch_version = start_torch(python, out);
    results->reference = REF_TYPE;
    results->kinds = KINDS;
    results->who = contestants;
    results->many = sizeof contestants / sizeof *contestants - !results->torch_version;
    results->cases = (outcome *)array(OUTCOMES_MAX, sizeof *results->cases);
    bench_make(&r.arrays);
    cli_progress_start(&r.progress, "comparing", OUTCOMES_MAX, quiet);
    run_table(&r);
    run_sweeps(&r);
    cli_progress_end(&r.progress);
    if (results->torch_version && torch_stop())
        printf("PyTorch ended early: its column has gaps\n");
    if (!REF_IS_WIDE) printf("no type wider than double: results in double are not judged well\n");
    status = write_reports(results, out) ? 2 : check_bounds(results) ? 1 : 0;
    free(results->cases);
    bench_free(&r.arrays);
    return status;
}
