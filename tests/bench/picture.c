/* picture.c - draws the table of layers.c, from the table alone.

       picture TABLE.csv NORMS.png OTHERS.png

   NORMS.png has a panel for each pass of batch and layer norm, OTHERS.png one for each pass of
   everything else. A bar is the percentage of the one-pass limit that a contestant reaches. */
#include "lab/csv.h"
#include "plot/plot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GROUPS_MAX = 64, LABEL_MAX = 64, TOP = 125 };

typedef struct bench_table {
    csv_data data;
    char *const *layer, *const *size, *const *pass, *const *contestant;
    const double *percent;
} bench_table;

typedef struct bar_kind {
    const char *contestant, *label;
    plot_color color;
} bar_kind;

static const bar_kind kinds[] = {
    {"ours", "normlayers.h, -O3 -march=native", PLOT_BLUE},
    {"ours-O2", "normlayers.h, -O2", PLOT_SKY},
    {"one-pass", "plain C, E[x²] − μ²", PLOT_LIGHT},
    {"three-pass", "plain C, a loop for each sum", PLOT_GREY},
    {"pytorch", "PyTorch", PLOT_VERMILLION},
    {"onednn", "oneDNN", PLOT_ORANGE},
};

enum { KINDS = sizeof kinds / sizeof *kinds };

/* The bars of a panel stand in groups: one for each size of the layers in question. */
typedef struct bar_groups {
    size_t count;
    const char *layer, *size[GROUPS_MAX];
    char label[GROUPS_MAX][LABEL_MAX];
} bar_groups;

static int table_load(bench_table *t, const char *path, char *err)
{
    if (csv_load(path, &t->data, err)) return -1;
    t->layer = csv_texts(&t->data, "layer", err);
    t->size = csv_texts(&t->data, "size", err);
    t->pass = csv_texts(&t->data, "pass", err);
    t->contestant = csv_texts(&t->data, "contestant", err);
    t->percent = csv_numbers(&t->data, "percent_of_limit", err);
    return t->layer && t->size && t->pass && t->contestant && t->percent ? 0 : -1;
}

/* The percentage in the table, or NaN: no bar. */
static double percent_of(const bench_table *t, const char *layer, const char *size,
                         const char *pass, const char *contestant)
{
    size_t i;
    for (i = 0; i < t->data.rows; i++)
        if (!strcmp(t->layer[i], layer) && !strcmp(t->size[i], size) && !strcmp(t->pass[i], pass) &&
            !strcmp(t->contestant[i], contestant))
            return t->percent[i];
    return (double)NAN;
}

/* "32x64x56x56" becomes "32×64×56×56" */
static void pretty_size(char *to, size_t room, const char *size)
{
    size_t n = 0;
    for (; *size && n + 3 < room; size++) {
        if (*size == 'x') {
            memcpy(to + n, "×", 2);
            n += 2;
        } else {
            to[n++] = *size;
        }
    }
    to[n] = 0;
}

/* All sizes of `layer` that have this pass. */
static void collect(bar_groups *g, const bench_table *t, const char *layer, const char *pass)
{
    size_t i, k;
    g->count = 0;
    g->layer = layer;
    for (i = 0; i < t->data.rows && g->count < GROUPS_MAX; i++) {
        if (strcmp(t->layer[i], layer) != 0 || strcmp(t->pass[i], pass) != 0) continue;
        for (k = 0; k < g->count; k++)
            if (!strcmp(g->size[k], t->size[i])) break;
        if (k < g->count) continue;
        g->size[k] = t->size[i];
        pretty_size(g->label[k], LABEL_MAX, t->size[i]);
        g->count++;
    }
}

/* The bars of all contestants that have any in this panel. Higher ones than TOP are cut there. */
static void bars(plot_panel *p, const bench_table *t, const bar_groups *g, const char *pass)
{
    const char *names[GROUPS_MAX];
    double value[GROUPS_MAX];
    size_t i, k, any;
    for (i = 0; i < g->count; i++) names[i] = g->label[i];
    for (k = 0; k < KINDS; k++) {
        for (any = i = 0; i < g->count; i++) {
            value[i] = percent_of(t, g->layer, g->size[i], pass, kinds[k].contestant);
            any += isfinite(value[i]) != 0;
        }
        if (any) plot_bars(p, kinds[k].label, value, NULL, g->count, plot_solid(kinds[k].color));
    }
    plot_categories(p, names, (int)g->count);
    plot_hline(p, 100, NULL, plot_dashed(PLOT_INK));
}

/* One layer and pass, if the table has it. Only the leftmost panels carry the axis. */
static int panel(plot_figure *f, const bench_table *t, int row, int col, const char *layer,
                 const char *pass, const char *heading, const char *axis)
{
    bar_groups g;
    collect(&g, t, layer, pass);
    if (g.count == 0) return 0;
    bars(plot_place(f, .row = row, .col = col, .heading = heading, .y = axis, .y_range = {0, TOP},
                    .grid = PLOT_GRID_Y, .hide = col > 0 ? PLOT_GRID_Y : 0),
         t, &g, pass);
    return 1;
}

/* A page with the words of both. */
static plot_figure *begin(const bench_table *t, plot_page page, const char *more)
{
    char text[512], footer[128];
    const char *version = csv_comment(&t->data, "version"),
               *rounds = csv_comment(&t->data, "rounds"), *cpu = csv_comment(&t->data, "processor"),
               *compiler = csv_comment(&t->data, "compiler");
    snprintf(
        text, sizeof text,
        "Speed in percent of a loop that reads and writes the same arrays once (dashed).%s One "
        "thread of %s, %s; medians of %s rounds.",
        more, cpu ? cpu : "?", compiler ? compiler : "?", rounds ? rounds : "?");
    snprintf(footer, sizeof footer, "normlayers.h %.80s · make bench-peers",
             version ? version : "?");
    page.width = 1600;
    page.subtitle = text;
    page.footer = footer;
    page.shared_legend = 1;
    return plot_new_page(page);
}

static int finish(plot_figure *f, int panels, const char *path)
{
    const int failed = panels > 0 && plot_save(f, path);
    if (failed) fprintf(stderr, "picture: %s\n", plot_error(f));
    plot_free(f);
    return failed;
}

static int draw_norms(const bench_table *t, const char *path)
{
    static const char *const passes[3] = {"fwd", "bwd", "inf"};
    static const char *const titles[3] = {"forward, training", "backward", "inference"};
    char heading[64];
    plot_figure *f =
        begin(t,
              (plot_page){.height = 1330,
                          .scale = 0.85,
                          .widths = {1.9, 1},
                          .title = "Batch norm and layer norm beside other implementations"},
              "");
    int i, panels = 0;
    for (i = 0; i < 3; i++) {
        snprintf(heading, sizeof heading, "Batch norm, %s", titles[i]);
        panels += panel(f, t, i, 0, "batchnorm", passes[i], heading, "% of limit");
        snprintf(heading, sizeof heading, "Layer norm, %s", titles[i]);
        panels += panel(f, t, i, 1, "layernorm", passes[i], heading, "% of limit");
    }
    return finish(f, panels, path);
}

static int draw_others(const bench_table *t, const char *path)
{
    static const char *const layers[7] = {"frozen",  "noisy",   "relu",  "tanh",
                                          "sigmoid", "entropy", "linear"};
    static const char *const titles[7] = {"Frozen norm", "Noisy norm",    "ReLU",  "tanh",
                                          "Sigmoid",     "Cross-entropy", "Linear"};
    plot_figure *f = begin(t,
                           (plot_page){.height = 870,
                                       .scale = 0.8,
                                       .title = "The other layers",
                                       .widths = {1, 1, 1, 1, 1, 1, 2.1}},
                           " The linear layer's limit is as many multiply-adds in registers.");
    int i, panels = 0;
    for (i = 0; i < 7; i++) {
        panels += panel(f, t, 0, i, layers[i], "fwd", titles[i], "forward, % of limit");
        panels += panel(f, t, 1, i, layers[i], "bwd", NULL, "backward, % of limit");
    }
    return finish(f, panels, path);
}

int main(int argc, char **argv)
{
    char err[CSV_ERR_MAX];
    bench_table t;
    int failed;
    if (argc != 4) {
        fprintf(stderr, "usage: picture TABLE.csv NORMS.png OTHERS.png\n");
        return 2;
    }
    memset(&t, 0, sizeof t);
    failed = table_load(&t, argv[1], err);
    if (failed) fprintf(stderr, "picture: %s\n", err);
    if (!failed) failed = draw_norms(&t, argv[2]) | draw_others(&t, argv[3]);
    csv_release(&t.data);
    return failed ? 1 : 0;
}
