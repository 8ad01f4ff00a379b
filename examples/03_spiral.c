/* 03_spiral: a first picture. Two spiral arms, a small network, with and without batch norm.

   The same five-layer network learns to tell the arms of a spiral apart, from the same initial
   weights and the same mini-batches: once plain, once with a batch norm before each activation. The
   picture shows what the two have learnt after the same number of steps (first seed), and the loss
   on the way there (all seeds).

   Then train longer (`--epochs 1000`): the plain network overtakes. And with small batches
   (`--batch 32 --epochs 400`) batch norm stays at a loss near 0.22, since the statistics of 32
   points are noisy, where the plain network goes on falling. One picture is not a law. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"
#include "lab/draw.h"
#include "lab/training.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/cli.h"
#include "lab/csv.h"
#include "plot/plot.h"
#include "lab/stats.h"

enum { POINTS = 400, WIDTH = 16, DEPTH = 4, ARMS = 2, GRID = 480, SEEDS_MAX = 20 };
enum { EPOCHS_MAX = 1000 };
#define RATE 0.1
#define HALF 1.3 /* the picture shows the square of this half width */

static const char *const arm_name[ARMS] = {"no norm", "batch norm"};
static const plot_color arm_color[ARMS] = {PLOT_VERMILLION, PLOT_BLUE};

typedef struct experiment {
    size_t seed, seeds, epochs, batch;
    int quick;
    double loss[ARMS][EPOCHS_MAX][SEEDS_MAX]; /* mean over the epoch                        */
    double accuracy[ARMS][SEEDS_MAX];         /* on a fresh sample of the spiral            */
    double regions[ARMS][GRID * GRID];        /* of the first seed: the class of each point */
} experiment;

typedef struct spiral { /* the points of a training_set */
    nrm_real x[2 * POINTS];
    int labels[POINTS];
} spiral;

/* Two spiral arms with noise, equally dense everywhere; the second arm is the first one turned by
   half a turn. Radius and angle grow together. The directions come from turning a vector by a small
   angle again and again, so that the points are the same with every C library. */
static training_set make_spiral(spiral *points, uint64_t seed)
{
    enum { TURNS = 1000 };
    const double step_cos = 0.99995487533938, step_sin = 0.00949985710481; /* of 9.5/1000 radians */
    double c[TURNS], s[TURNS];
    const training_set set = {points->x, points->labels, POINTS, 2};
    nrm_rng rng;
    size_t i;
    nrm_rng_seed(&rng, seed, TRAINING_STREAM_DATA);
    c[0] = 1;
    s[0] = 0;
    for (i = 1; i < TURNS; i++) {
        c[i] = c[i - 1] * step_cos - s[i - 1] * step_sin;
        s[i] = s[i - 1] * step_cos + c[i - 1] * step_sin;
    }
    for (i = 0; i < POINTS; i++) {
        const double radius = sqrt((double)draw_uniform(&rng)), side = i % 2 ? -1 : 1;
        const size_t k = (size_t)(radius * TURNS);
        points->x[2 * i] = (nrm_real)(side * radius * c[k] + 0.03 * (double)draw_normal(&rng));
        points->x[2 * i + 1] = (nrm_real)(side * radius * s[k] + 0.03 * (double)draw_normal(&rng));
        points->labels[i] = (int)(i % 2);
    }
    return set;
}

static nrm_mlp *make_net(int arm, const experiment *e, uint64_t seed, void **block)
{
    nrm_mlp_layer layer[DEPTH + 1];
    nrm_mlp_spec spec =
        training_plain(layer, DEPTH, WIDTH, NRM_TANH, arm == 1 ? NRM_BATCH_NORM : NRM_NO_NORM);
    int l;
    for (l = 0; l < DEPTH; l++) layer[l].bias = 1;
    layer[DEPTH].width = 2;
    spec.inputs = 2;
    spec.max_batch = e->batch > GRID ? e->batch : GRID;
    spec.seed = seed;
    spec.lr = (nrm_real)RATE;
    return training_net(&spec, block);
}

/* The class of each point of the grid, row by row from the bottom. */
static int map_regions(nrm_mlp *net, double *regions)
{
    nrm_real x[GRID * 2];
    int row, col, status = NRM_OK;
    for (row = 0; row < GRID && status >= 0; row++) {
        for (col = 0; col < GRID; col++) {
            x[2 * col] = (nrm_real)(HALF * ((2 * col + 1) / (double)GRID - 1));
            x[2 * col + 1] = (nrm_real)(HALF * ((2 * row + 1) / (double)GRID - 1));
        }
        status = nrm_mlp_forward(net, x, GRID, NRM_INFER);
        for (col = 0; col < GRID; col++)
            regions[row * GRID + col] = net->logits[2 * col + 1] > net->logits[2 * col];
    }
    return status;
}

static int train(nrm_mlp *net, experiment *e, size_t s, int arm, const training_set *set)
{
    training_order order;
    size_t epoch;
    int status = NRM_OK;
    if (training_order_start(&order, set->n, e->batch, 2, e->seed + s)) return -1;
    for (epoch = 0; epoch < e->epochs && status >= 0; epoch++) {
        double sum = 0;
        while (status >= 0 && training_next(&order, set)) {
            nrm_acc loss = 0;
            status = nrm_mlp_train_step(net, &loss, order.x, order.labels, order.count);
            sum += (double)loss * (double)order.count;
        }
        e->loss[arm][epoch][s] = sum / (double)set->n;
    }
    training_order_free(&order);
    return status;
}

static int run_one(experiment *e, size_t s, int arm)
{
    const uint64_t seed = e->seed + s;
    spiral points, others;
    const training_set set = make_spiral(&points, seed), fresh = make_spiral(&others, ~seed);
    void *block;
    nrm_mlp *net = make_net(arm, e, seed, &block);
    nrm_acc accuracy = 0;
    const int failed = !net || train(net, e, s, arm, &set) < 0 ||
                       (s == 0 && map_regions(net, e->regions[arm]) < 0) ||
                       nrm_mlp_eval(net, NULL, &accuracy, fresh.x, fresh.labels, fresh.n) < 0;
    e->accuracy[arm][s] = (double)accuracy;
    free(block);
    return failed;
}

/* Of one seed the standard deviation is 0. */
static stats_summary over_seeds(const experiment *e, const double *value)
{
    stats_summary s = stats_describe(value, e->seeds);
    if (e->seeds == 1) s.sd = 0;
    return s;
}

static void draw_regions(plot_figure *f, const experiment *e, const training_set *set, int arm)
{
    const plot_color colors[2] = {PLOT_ORANGE, PLOT_SKY};
    double x[POINTS], y[POINTS];
    char heading[80];
    plot_panel *p =
        plot_place(f, .col = arm, .x = "x_1", .y = arm == 0 ? "x_2" : "", .x_range = {-HALF, HALF},
                   .y_range = {-HALF, HALF}, .aspect = 1, .frame = PLOT_BOX);
    size_t i, n;
    int label;
    (void)snprintf(heading, sizeof heading, "%s: %.0f %% of new points right", arm_name[arm],
                   100 * e->accuracy[arm][0]);
    plot_heading(p, heading);
    plot_heat(p, e->regions[arm], GRID, GRID, -HALF, HALF, -HALF, HALF, PLOT_TINTS, 0, 1);
    for (label = 0; label < 2; label++) {
        plot_style style = plot_marked(colors[label], label ? PLOT_TRIANGLE : PLOT_CIRCLE);
        style.size = 0.8;
        style.alpha = 1;
        for (i = 0, n = 0; i < set->n; i++)
            if (set->labels[i] == label) {
                x[n] = (double)set->x[2 * i];
                y[n++] = (double)set->x[2 * i + 1];
            }
        plot_scatter(p, NULL, x, y, n, style);
    }
}

static int draw(const experiment *e, const training_set *set, const char *path)
{
    static double epoch[EPOCHS_MAX], mean[EPOCHS_MAX], sd[EPOCHS_MAX];
    plot_figure *f;
    plot_panel *p;
    char text[300], command[120];
    size_t i;
    int arm;
    (void)snprintf(text, sizeof text,
                   "%s2-16-16-16-16-2, tanh, SGD, learning rate %g, %zu of %d points a step. "
                   "Regions: first seed. Loss: mean ± 1 sd, %zu seed%s.",
                   cli_quick_note(e->quick), RATE, e->batch, (int)POINTS, e->seeds,
                   e->seeds == 1 ? "" : "s");
    (void)snprintf(command, sizeof command,
                   "03_spiral --seed %zu --seeds %zu --epochs %zu --batch %zu", e->seed, e->seeds,
                   e->epochs, e->batch);
    f = plot_new(.width = 1600, .height = 680, .subtitle = text, .footer = command,
                 .title = "Two spirals, learnt with and without batch norm",
                 .widths = {1, 1, 1.15});
    for (arm = 0; arm < ARMS; arm++) draw_regions(f, e, set, arm);
    p = plot_place(f, .col = 2, .heading = "training loss", .x = "epoch", .y = "cross-entropy",
                   .y_range = {0, 0.8});
    for (arm = 0; arm < ARMS; arm++) {
        plot_style style = plot_solid(arm_color[arm]);
        if (arm == 0) style.dash = PLOT_DASHED;
        for (i = 0; i < e->epochs; i++) {
            const stats_summary loss = over_seeds(e, e->loss[arm][i]);
            epoch[i] = (double)i + 1;
            mean[i] = loss.mean;
            sd[i] = loss.sd;
        }
        plot_mean_band(p, arm_name[arm], epoch, mean, sd, e->epochs, style);
    }
    return plot_finish(f, path);
}

static int write_table(const experiment *e, const char *path)
{
    const char *columns[5] = {"epoch", "none_mean", "none_sd", "batch_mean", "batch_sd"};
    const csv_origin origin = {
        .program = "03_spiral", .version = NRM_VERSION, .first_seed = e->seed, .seeds = e->seeds};
    csv_table t;
    size_t i;
    int arm;
    csv_begin(&t);
    csv_note_origin(&t, &origin);
    csv_note(&t, "mode", e->quick ? "quick" : "full");
    csv_note_real(&t, "lr", RATE);
    csv_note_real(&t, "batch", (double)e->batch);
    csv_columns(&t, columns, 5);
    for (i = 0; i < e->epochs; i++) {
        csv_real(&t, (double)i + 1);
        for (arm = 0; arm < ARMS; arm++) {
            const stats_summary loss = over_seeds(e, e->loss[arm][i]);
            csv_real(&t, loss.mean);
            csv_real(&t, loss.sd);
        }
        csv_end_row(&t);
    }
    return csv_finish(&t, path);
}

static void print_results(const experiment *e)
{
    int arm;
    printf("%-12s %22s  %22s\n", "network", "loss, last epoch", "accuracy, fresh points");
    for (arm = 0; arm < ARMS; arm++) {
        const stats_summary l = over_seeds(e, e->loss[arm][e->epochs - 1]);
        const stats_summary a = over_seeds(e, e->accuracy[arm]);
        printf("%-12s %12.4f ± %7.4f  %12.4f ± %7.4f\n", arm_name[arm], l.mean, l.sd, a.mean, a.sd);
    }
}

static int parse(experiment *e, const char **out, int argc, char **argv)
{
    cli_option option[] = {
        {"epochs", "N", "passes over the points", CLI_WHOLE, &e->epochs, 1, EPOCHS_MAX, 0},
        {"batch", "N", "points of a step", CLI_WHOLE, &e->batch, 2, POINTS, 0},
        CLI_SEED(&e->seed),
        CLI_SEEDS(&e->seeds, SEEDS_MAX),
        CLI_OUT(out),
        CLI_QUICK(&e->quick)};
    const int status = cli_parse("03_spiral", "Two spiral arms learnt with and without batch norm",
                                 option, sizeof option / sizeof *option, argc, argv);
    if (e->quick && !option[0].given) e->epochs = 20;
    if (e->quick && !option[3].given) e->seeds = 2;
    if (POINTS % e->batch != 1) return status;
    fprintf(stderr, "03_spiral: --batch %zu leaves a single point of %d for the last batch\n",
            e->batch, (int)POINTS);
    return CLI_EXIT_USAGE;
}

int main(int argc, char **argv)
{
    static experiment e = {.seed = 11, .seeds = 5, .epochs = 250, .batch = 100};
    const char *out = "build/figures";
    char png[1024], csv[1024];
    spiral points;
    training_set set;
    size_t s;
    int arm, status = parse(&e, &out, argc, argv);
    if (status == CLI_RUN) status = cli_results(png, csv, sizeof png, "03_spiral", out, e.quick);
    if (status != CLI_RUN) return status;
    for (s = 0; s < e.seeds; s++)
        for (arm = 0; arm < ARMS; arm++)
            if (run_one(&e, s, arm)) return 1;
    set = make_spiral(&points, e.seed);
    print_results(&e);
    if (draw(&e, &set, png) || write_table(&e, csv)) return 1;
    printf("wrote %s and its table\n", png);
    return 0;
}
