/* 02_gradcheck_curve: how good is a gradient check, and what does its step size do to it?

   The gradient of a layer norm is compared with four numerical derivatives of its forward pass, for
   steps h from 1 down to 10^-16: the forward difference, the central difference, Richardson's
   mixture of two of them (equation GC.3 of the header), and the complex step. Differences are
   caught between truncation (large h) and cancellation (small h); the complex step,
   Im L(x + ih)/h, subtracts nothing and is right to the last digit as soon as h is small. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#define NRM_DOUBLE
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"
#include "lab/draw.h"

#include <complex.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lab/cli.h"
#include "lab/csv.h"
#include "plot/plot.h"

enum { ROWS = 4, FEATURES = 7, SIZE = ROWS * FEATURES, STEPS = 129, METHODS = 4 };

static const char *const method_name[METHODS] = {"forward difference", "central difference",
                                                 "Richardson, two central differences",
                                                 "complex step"};

typedef struct problem { /* L(x) = sum of w*y, y the layer norm of x */
    double x[SIZE], w[SIZE], gamma[FEATURES], beta[FEATURES];
    double dx[SIZE]; /* the gradient that the header computes */
} problem;

static int problem_make(problem *p, uint64_t seed)
{
    double y[SIZE];
    nrm_acc mean[ROWS], rstd[ROWS];
    nrm_rng rng;
    int i, status;
    nrm_rng_seed(&rng, seed, 0);
    for (i = 0; i < SIZE; i++) p->x[i] = draw_normal(&rng);
    for (i = 0; i < SIZE; i++) p->w[i] = draw_normal(&rng);
    for (i = 0; i < FEATURES; i++) p->gamma[i] = 0.5 + draw_uniform(&rng);
    for (i = 0; i < FEATURES; i++) p->beta[i] = draw_normal(&rng);
    status = nrm_layernorm_forward(y, mean, rstd, p->x, p->gamma, p->beta, NRM_EPS, ROWS, FEATURES);
    if (status != NRM_OK) return status;
    return nrm_layernorm_backward(p->dx, NULL, NULL, p->w, p->x, mean, rstd, p->gamma, ROWS,
                                  FEATURES);
}

/* The loss through the header's forward pass, with x[at] moved by h. */
static double loss_real(const problem *p, int at, double h)
{
    double x[SIZE], y[SIZE], loss = 0;
    int i;
    memcpy(x, p->x, sizeof x);
    x[at] += h;
    (void)nrm_layernorm_forward(y, NULL, NULL, x, p->gamma, p->beta, NRM_EPS, ROWS, FEATURES);
    for (i = 0; i < SIZE; i++) loss += p->w[i] * y[i];
    return loss;
}

/* The same loss from the paper's formulas in complex numbers, with x[at] moved by ih. */
static double complex loss_complex(const problem *p, int at, double h)
{
    double complex loss = 0;
    int n, i;
    for (n = 0; n < ROWS; n++) {
        double complex x[FEATURES], mu = 0, v = 0, r;
        for (i = 0; i < FEATURES; i++) {
            x[i] = p->x[n * FEATURES + i];
            if (n * FEATURES + i == at) x[i] += h * (double complex)I;
            mu += x[i] / FEATURES;
        }
        for (i = 0; i < FEATURES; i++) v += (x[i] - mu) * (x[i] - mu) / FEATURES;
        r = 1 / csqrt(v + NRM_EPS);
        for (i = 0; i < FEATURES; i++)
            loss += p->w[n * FEATURES + i] * (p->gamma[i] * (x[i] - mu) * r + p->beta[i]);
    }
    return loss;
}

static double central(const problem *p, int at, double h)
{
    return (loss_real(p, at, h) - loss_real(p, at, -h)) / (2 * h);
}

static double derivative(const problem *p, int method, int at, double h)
{
    switch (method) {
    case 0:
        return (loss_real(p, at, h) - loss_real(p, at, 0)) / h;
    case 1:
        return central(p, at, h);
    case 2:
        return (4 * central(p, at, h / 2) - central(p, at, h)) / 3;
    default:
        return cimag(loss_complex(p, at, h)) / h;
    }
}

/* The largest error over all x, relative to the largest gradient. Errors of exactly 0 are shown as
   a tenth of the precision, since the axis is logarithmic. */
static double worst_error(const problem *p, int method, double h)
{
    double worst = 0, largest = 0;
    int i;
    for (i = 0; i < SIZE; i++) {
        worst = fmax(worst, fabs(derivative(p, method, i, h) - p->dx[i]));
        largest = fmax(largest, fabs(p->dx[i]));
    }
    return fmax(worst / largest, 2e-17);
}

static int draw(const char *path, double h[], double error[METHODS][STEPS], size_t seed)
{
    const plot_style style[METHODS] = {plot_dotted(PLOT_BLACK), plot_solid(PLOT_BLUE),
                                       plot_dashed(PLOT_GREEN), plot_dashdot(PLOT_VERMILLION)};
    plot_figure *f;
    plot_panel *p;
    char footer[120];
    int m;
    (void)snprintf(footer, sizeof footer, "02_gradcheck_curve --seed %zu", seed);
    f = plot_new(.width = 1600, .height = 1040, .footer = footer,
                 .title = "Checking a gradient: the error against the step",
                 .subtitle = "Layer norm, 4 × 7 inputs, double precision. Largest error of the "
                             "numerical ∂L/∂x, relative to the largest gradient.");
    p = plot_place(f, .x = "step h", .x_scale = PLOT_LOG10, .x_range = {1e-16, 1},
                   .y = "relative error", .y_scale = PLOT_LOG10, .y_range = {1e-17, 10},
                   .legend = PLOT_LEGEND_ABOVE);
    for (m = 0; m < METHODS; m++) plot_line(p, method_name[m], h, error[m], STEPS, style[m]);
    plot_hline(p, 2.220446049250313e-16, "precision of double", plot_thin(PLOT_GREY));
    plot_text(p, 2e-12, 3e-2, "cancellation ∝ 1/h", PLOT_LEFT, PLOT_INK);
    plot_text(p, 1e-5, 3e-4, "truncation ∝ h", PLOT_CENTER, PLOT_INK);
    plot_text(p, 3e-6, 1e-13, "∝ h^2", PLOT_LEFT, PLOT_INK);
    plot_text(p, 3e-2, 2e-10, "∝ h^4", PLOT_LEFT, PLOT_INK);
    return plot_finish(f, path);
}

static int write_table(const char *path, double h[], double error[METHODS][STEPS], size_t seed)
{
    const char *columns[METHODS + 1] = {"h", "forward", "central", "richardson", "complex_step"};
    const csv_origin origin = {
        .program = "02_gradcheck_curve", .version = NRM_VERSION, .first_seed = seed, .seeds = 1};
    csv_table t;
    int i, m;
    csv_begin(&t);
    csv_note_origin(&t, &origin);
    csv_columns(&t, columns, METHODS + 1);
    for (i = 0; i < STEPS; i++) {
        csv_real(&t, h[i]);
        for (m = 0; m < METHODS; m++) csv_real(&t, error[m][i]);
        csv_end_row(&t);
    }
    return csv_finish(&t, path);
}

int main(int argc, char **argv)
{
    static double h[STEPS], error[METHODS][STEPS];
    const char *out = "build/figures";
    char png[1024], csv[1024];
    size_t seed = 11;
    problem p;
    int i, m, status, quick = 0; /* it is never long */
    cli_option option[3] = {CLI_SEED(&seed), CLI_OUT(&out), CLI_QUICK(&quick)};
    status = cli_parse("02_gradcheck_curve", "The error of a gradient check against its step size",
                       option, 3, argc, argv);
    if (status == CLI_RUN) status = cli_results(png, csv, sizeof png, "02_gradcheck_curve", out, 0);
    if (status != CLI_RUN) return status;
    status = problem_make(&p, seed);
    if (status != NRM_OK) {
        fprintf(stderr, "%s\n", nrm_strerror(status));
        return 1;
    }
    for (i = 0; i < STEPS; i++) h[i] = pow(10, -16.0 * i / (STEPS - 1));
    printf("%-38s %12s %12s\n", "method", "best error", "at h");
    for (m = 0; m < METHODS; m++) {
        int best = 0;
        for (i = 0; i < STEPS; i++) {
            error[m][i] = worst_error(&p, m, h[i]);
            if (error[m][i] < error[m][best]) best = i;
        }
        printf("%-38s %12.1e %12.1e\n", method_name[m], error[m][best], h[best]);
    }
    if (draw(png, h, error, seed) || write_table(csv, h, error, seed)) return 1;
    printf("wrote %s and its table\n", png);
    return 0;
}
