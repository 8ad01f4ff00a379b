/* 05_projection: batch norm as geometry, for a batch of three.

   Three values of one channel are a point in space. Less their mean they lie in the plane at right
   angles to (1, 1, 1), which is drawn here; with length sqrt(3) they lie on a circle in it. Panel a
   shows where a batch goes and what becomes of a gradient: BN.19 takes out its mean and its part
   along the normalized values. Panel b has the loss over the plane, and the gradients that
   nrm_batchnorm_backward makes of it: they go round and not in or out, and the farther away the
   shorter they are. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#define NRM_DOUBLE
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lab/cli.h"
#include "lab/csv.h"
#include "plot/plot.h"

enum { CELLS = 240, RINGS = 3, SPOKES = 16, ROUND = 181 };

#define REACH 4.4 /* the plane is shown from -REACH to REACH */

static const double gamma_one = 2, beta_one = -1, target[3] = {0, -1, 1};

typedef struct spot { /* a place in the plane, and what the layer makes of it */
    double u, w;      /* its coordinates: to the right, and up */
    double x[3], y[3], dx[3], loss;
} spot;

/* The plane's own axes: w along what x3 adds, u from x1 to x2. */
static void to_plane(double *u, double *w, const double x[3])
{
    *u = (x[1] - x[0]) / sqrt(2);
    *w = (2 * x[2] - x[0] - x[1]) / sqrt(6);
}

static void from_plane(double x[3], double u, double w)
{
    x[0] = -u / sqrt(2) - w / sqrt(6);
    x[1] = u / sqrt(2) - w / sqrt(6);
    x[2] = 2 * w / sqrt(6);
}

/* Forward and backward; the loss is half the squared distance from the target. */
static int spot_at(spot *s, double u, double w)
{
    double mean, rstd, dy[3];
    int i, status;
    s->u = u;
    s->w = w;
    from_plane(s->x, u, w);
    status = nrm_batchnorm_forward(s->y, &mean, &rstd, NULL, s->x, &gamma_one, &beta_one, NRM_TRAIN,
                                   NRM_EPS, 3, 1, 1);
    s->loss = 0;
    for (i = 0; i < 3; i++) {
        dy[i] = s->y[i] - target[i];
        s->loss += dy[i] * dy[i] / 2;
    }
    if (status != NRM_OK) return status;
    return nrm_batchnorm_backward(s->dx, NULL, NULL, dy, s->x, &mean, &rstd, &gamma_one, NRM_TRAIN,
                                  3, 1, 1);
}

static void arrow(plot_panel *p, const char *label, double u, double w, double du, double dw,
                  double head, plot_style s)
{
    const double length = sqrt(du * du + dw * dw), tip_u = u + du, tip_w = w + dw;
    double shaft[2][2] = {{u, tip_u}, {w, tip_w}}, tip[2][3];
    if (length <= 0) return;
    head = fmin(head, length) / length;
    tip[0][0] = tip_u - head * (du - 0.5 * dw);
    tip[1][0] = tip_w - head * (dw + 0.5 * du);
    tip[0][1] = tip_u;
    tip[1][1] = tip_w;
    tip[0][2] = tip_u - head * (du + 0.5 * dw);
    tip[1][2] = tip_w - head * (dw - 0.5 * du);
    plot_line(p, label, shaft[0], shaft[1], 2, s);
    s.dash = PLOT_SOLID;
    plot_line(p, NULL, tip[0], tip[1], 3, s);
}

static void circle(plot_panel *p, plot_style s)
{
    double u[ROUND], w[ROUND];
    int i;
    for (i = 0; i < ROUND; i++) {
        u[i] = sqrt(3) * cos(6.283185307179586 * i / (ROUND - 1));
        w[i] = sqrt(3) * sin(6.283185307179586 * i / (ROUND - 1));
    }
    plot_line(p, NULL, u, w, ROUND, s);
}

/* From lo to hi upwards, and as far as that to both sides. */
static plot_panel *panel(plot_figure *f, int col, const char *heading, double lo, double hi)
{
    return plot_place(f, .col = col, .heading = heading, .x_range = {-(hi - lo) / 2, (hi - lo) / 2},
                      .y_range = {lo, hi}, .aspect = 1, .frame = PLOT_BARE, .grid = -1,
                      .hide = PLOT_GRID_BOTH, .legend = PLOT_LEGEND_NONE);
}

/* Where each of the three values alone points to, seen in the plane. */
static void draw_axes(plot_panel *p)
{
    const char *const name[3] = {"x_{1}", "x_{2}", "x_{3}"};
    int i;
    for (i = 0; i < 3; i++) {
        double x[3] = {0, 0, 0}, u, w;
        x[i] = 3.4;
        to_plane(&u, &w, x);
        arrow(p, NULL, 0, 0, u, w, 0.15, plot_thin(PLOT_GREY));
        plot_text(p, 1.08 * u, 1.08 * w, name[i], PLOT_CENTER, PLOT_GREY);
    }
}

static int draw_batch(plot_figure *f)
{
    plot_panel *p = panel(f, 0, "The plane of three values without their mean", -2.3, 4.2);
    const double x[3] = {1, 2, 6}, flat[3] = {3, 3.2, 4}, dy[3] = {-1, 1, 1}, one = 1;
    double xhat[3], dx[3], mean, rstd, u, w, hu, hw, gu, gw, tu, tw, ray[2][2] = {{0, 0}, {0, 0}};
    int i, status;
    status =
        nrm_batchnorm_forward(xhat, &mean, &rstd, NULL, x, NULL, NULL, NRM_TRAIN, NRM_EPS, 3, 1, 1);
    if (status != NRM_OK) return status;
    status = nrm_batchnorm_backward(dx, NULL, NULL, dy, x, &mean, &rstd, &one, NRM_TRAIN, 3, 1, 1);
    if (status != NRM_OK) return status;
    for (i = 0; i < 3; i++) dx[i] /= rstd; /* without the factor in front */
    draw_axes(p);
    circle(p, plot_solid(PLOT_BLACK));
    to_plane(&u, &w, x);
    ray[0][1] = 1.12 * u;
    ray[1][1] = 1.12 * w;
    plot_line(p, NULL, ray[0], ray[1], 2, plot_dashed(PLOT_BLUE));
    plot_scatter(p, NULL, &u, &w, 1, plot_marked(PLOT_BLUE, PLOT_CIRCLE));
    plot_text(p, u + 0.2, w, "(1, 2, 6)", PLOT_LEFT, PLOT_BLUE);
    to_plane(&u, &w, flat);
    plot_scatter(p, NULL, &u, &w, 1, plot_marked(PLOT_BLUE, PLOT_CIRCLE));
    plot_text(p, u + 0.15, w - 0.1, "(3, 3.2, 4)", PLOT_LEFT, PLOT_BLUE);
    to_plane(&hu, &hw, xhat);
    to_plane(&gu, &gw, dy);
    to_plane(&tu, &tw, dx);
    arrow(p, NULL, hu, hw, gu, gw, 0.2, plot_solid(PLOT_BLACK));
    arrow(p, NULL, hu + tu, hw + tw, gu - tu, gw - tw, 0.2, plot_dashed(PLOT_GREY));
    arrow(p, NULL, hu, hw, tu, tw, 0.2, plot_solid(PLOT_GREEN));
    plot_scatter(p, NULL, &hu, &hw, 1, plot_marked(PLOT_VERMILLION, PLOT_CIRCLE));
    plot_text(p, hu - 0.2, hw + 0.25, "x̂ of both", PLOT_RIGHT, PLOT_VERMILLION);
    plot_text(p, hu + gu + 0.1, hw + gw + 0.2, "dy − ⟨dy⟩", PLOT_LEFT, PLOT_BLACK);
    plot_text(p, hu + tu + 0.15, hw + tw - 0.1, "dx/(γr)", PLOT_LEFT, PLOT_GREEN);
    plot_text(p, hu + gu + 0.1, hw + tw + 0.5 * (gw - tw) + 0.1, "along x̂", PLOT_LEFT, PLOT_GREY);
    plot_text(p, 0, -1.98, "length √3", PLOT_CENTER, PLOT_BLACK);
    return NRM_OK;
}

static int draw_loss(plot_figure *f, spot ring[RINGS][SPOKES])
{
    plot_panel *p = panel(f, 1, "The loss over that plane, and −dx", -REACH, REACH);
    static double loss[CELLS * CELLS];
    int i, k, status;
    for (i = 0; i < CELLS * CELLS; i++) {
        spot s;
        status = spot_at(&s, REACH * (2 * (i % CELLS + 0.5) / CELLS - 1),
                         REACH * (2 * (i / CELLS + 0.5) / CELLS - 1));
        if (status != NRM_OK) return status;
        loss[i] = s.loss;
    }
    plot_heat(p, loss, CELLS, CELLS, -REACH, REACH, -REACH, REACH, PLOT_SEQUENTIAL, 0, 0);
    plot_colorbar(p, "loss");
    circle(p, plot_dashed(PLOT_WHITE));
    for (k = 0; k < RINGS; k++)
        for (i = 0; i < SPOKES; i++) {
            const spot *s = &ring[k][i];
            double du, dw;
            to_plane(&du, &dw, s->dx);
            arrow(p, NULL, s->u, s->w, -0.2 * du, -0.2 * dw, 0.16, plot_solid(PLOT_VERMILLION));
        }
    return NRM_OK;
}

static int draw(const char *path, spot ring[RINGS][SPOKES])
{
    plot_figure *f =
        plot_new(.width = 1600, .height = 960, .letters = 1, .footer = "05_projection",
                 .title = "Batch norm of three values: a projection, forwards and backwards",
                 .subtitle =
                     "Batches on one ray become the same point of the circle. The gradient has no "
                     "part along (1, 1, 1), which would point at the reader, and none along x̂.");
    if (draw_batch(f) == NRM_OK && draw_loss(f, ring) == NRM_OK) return plot_finish(f, path);
    fprintf(stderr, "05_projection: a layer failed\n");
    plot_free(f);
    return -1;
}

static int write_table(const char *path, spot ring[RINGS][SPOKES])
{
    const char *columns[9] = {"u", "w", "x1", "x2", "x3", "loss", "dx1", "dx2", "dx3"};
    const csv_origin origin = {.program = "05_projection", .version = NRM_VERSION};
    csv_table t;
    int i, k, j;
    csv_begin(&t);
    csv_note_origin(&t, &origin);
    csv_columns(&t, columns, 9);
    for (k = 0; k < RINGS; k++)
        for (i = 0; i < SPOKES; i++) {
            csv_real(&t, ring[k][i].u);
            csv_real(&t, ring[k][i].w);
            for (j = 0; j < 3; j++) csv_real(&t, ring[k][i].x[j]);
            csv_real(&t, ring[k][i].loss);
            for (j = 0; j < 3; j++) csv_real(&t, ring[k][i].dx[j]);
            csv_end_row(&t);
        }
    return csv_finish(&t, path);
}

int main(int argc, char **argv)
{
    static const double radius[RINGS] = {1.2, 2.4, 3.8};
    static spot ring[RINGS][SPOKES];
    const char *out = "build/figures";
    char png[1024], csv[1024];
    double mean = 0, along = 0;
    int i, k, j, status, quick = 0; /* it is never long */
    cli_option option[2] = {CLI_OUT(&out), CLI_QUICK(&quick)};
    status = cli_parse("05_projection", "Batch norm of three values as a projection", option, 2,
                       argc, argv);
    if (status == CLI_RUN) status = cli_results(png, csv, sizeof png, "05_projection", out, 0);
    if (status != CLI_RUN) return status;
    for (k = 0; k < RINGS; k++)
        for (i = 0; i < SPOKES; i++) {
            const double angle = 6.283185307179586 * i / SPOKES;
            double sum = 0, with = 0;
            status = spot_at(&ring[k][i], radius[k] * cos(angle), radius[k] * sin(angle));
            if (status != NRM_OK) {
                fprintf(stderr, "05_projection: %s\n", nrm_strerror(status));
                return 1;
            }
            for (j = 0; j < 3; j++) sum += ring[k][i].dx[j];
            for (j = 0; j < 3; j++) with += ring[k][i].dx[j] * ring[k][i].x[j];
            mean = fmax(mean, fabs(sum));
            along = fmax(along, fabs(with));
        }
    printf("largest |sum of dx|   %8.1e   (BN.21: 0)\n", mean);
    printf("largest |sum of dx*x| %8.1e   (BN.22: 0 but for eps)\n", along);
    if (draw(png, ring) || write_table(csv, ring)) return 1;
    printf("wrote %s and its table\n", png);
    return 0;
}
