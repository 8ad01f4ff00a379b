/* report.c - the results of accuracy.c as tables and as a figure. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include "accuracy.h"

#include "lab/csv.h"
#include "normlayers.h"
#include "plot/plot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER = 24 };
enum { OTHERS = 3 }; /* the first contestant that is not ours */
static const char *const layer_names[LAYERS] = {"batch norm", "layer norm", "group norm",
                                                "RMS norm"};

/* One digit: 0.5, 3e4, 1e-7, or all before the point: 76, 310; no zeros in the exponent. */
static const char *number(char *text, double v)
{
    char *e;
    if (!(v <= 1e300)) return strcpy(text, "inf");
    if (v <= 0) return strcpy(text, "0");
    if (v >= 9.5 && v < 999.5) /* as many as stand before the point */
        (void)snprintf(text, NUMBER, "%.0f", v);
    else if (v >= 0.0095 && v < 9.5)
        (void)snprintf(text, NUMBER, "%.1g", v);
    else
        (void)snprintf(text, NUMBER, "%.0e", v);
    e = strchr(text, 'e');
    if (e != NULL) (void)snprintf(e, NUMBER - (size_t)(e - text), "e%d", atoi(e + 1));
    return text;
}

/* ---- CSV ------------------------------------------------------------------------------------- */

/* Four digits are enough of an error, and keep the file small. */
static double rounded(double v)
{
    char text[NUMBER];
    double back;
    if (!(v <= 1e300)) return HUGE_VAL;
    (void)snprintf(text, sizeof text, "%.3e", v);
    return csv_read_number(text, &back) == 0 ? back : v;
}

static void csv_outcome(csv_table *t, const outcome *o, const contestant *c, const score *s)
{
    static const char *const sets[3] = {"table", "by mean", "by length"};
    int k;
    csv_text(t, sets[o->set]);
    csv_text(t, layer_names[o->layer]);
    csv_real(t, (double)o->N);
    csv_real(t, (double)o->C);
    csv_real(t, (double)o->S);
    csv_text(t, o->data);
    csv_real(t, o->mean);
    csv_text(t, c->key);
    for (k = 0; k < QUANTITIES; k++) csv_real(t, rounded(s->relative[k]));
    for (k = 0; k < QUANTITIES; k++) csv_real(t, rounded(s->ulps[k]));
    csv_end_row(t);
}

int report_csv(const report *r, const char *path)
{
    static const char *const columns[] = {
        "set", "layer", "N",      "C",     "S",      "data",    "mean",        "algorithm",
        "y",   "dx",    "dgamma", "dbeta", "y_ulps", "dx_ulps", "dgamma_ulps", "dbeta_ulps"};
    csv_origin origin;
    csv_table t;
    size_t i, c;
    memset(&origin, 0, sizeof origin);
    origin.program = "tests/accuracy";
    origin.version = NRM_VERSION;
    csv_begin(&t);
    csv_note_origin(&t, &origin);
    csv_note(&t, "reference", r->reference);
    csv_note(&t, "pytorch", r->torch_version ? r->torch_version : "not here");
    csv_note(&t, "y, dx, dgamma, dbeta", "max |error| / max |exact|; where that is 0, max |error|");
    csv_columns(&t, columns, sizeof columns / sizeof columns[0]);
    for (i = 0; i < r->done; i++)
        for (c = 0; c < r->many; c++)
            if (r->cases[i].scores[c].ran)
                csv_outcome(&t, &r->cases[i], &r->who[c], &r->cases[i].scores[c]);
    return csv_finish(&t, path);
}

/* ---- Markdown -------------------------------------------------------------------------------- */

/* The worst relative error of y, dx and dγ over all layers and shapes with these data; -1 if the
   contestant has none of them. */
static double worst(const report *r, int kind, size_t c)
{
    double w = -1;
    size_t i;
    for (i = 0; i < r->done; i++) {
        const outcome *o = &r->cases[i];
        const double *error = o->scores[c].relative;
        if (o->set != IN_TABLE || o->kind != kind || !o->scores[c].ran) continue;
        w = fmax(w, fmax(error[Y], fmax(error[DX], error[DGAMMA])));
    }
    return w;
}

static const char *kind_name(const report *r, int kind)
{
    size_t i;
    for (i = 0; i < r->done; i++)
        if (r->cases[i].set == IN_TABLE && r->cases[i].kind == kind) return r->cases[i].data;
    return "";
}

void report_table(const report *r, FILE *to)
{
    char cell[NUMBER];
    size_t c;
    int kind;
    fprintf(to, "Reference: %s. PyTorch: %s.\n\n| data |", r->reference,
            r->torch_version ? r->torch_version : "not measured");
    for (c = 0; c < r->many; c++) fprintf(to, " %s |", r->who[c].name);
    fprintf(to, "\n|---|");
    for (c = 0; c < r->many; c++) fprintf(to, "---|");
    for (kind = 0; kind < r->kinds; kind++) {
        fprintf(to, "\n| %s |", kind_name(r, kind));
        for (c = 0; c < r->many; c++) {
            const double error = worst(r, kind, c);
            fprintf(to, " %s |", error < 0 ? "–" : number(cell, error));
        }
    }
    fprintf(to, "\n");
}

/* ---- figure ---------------------------------------------------------------------------------- */

static plot_style style_of(const char *key)
{
    static const struct {
        const char *key;
        plot_color color;
        int dash, marker;
        double width;
    } looks[] = {
        {"normlayers", PLOT_BLACK, PLOT_SOLID, PLOT_CIRCLE, 1.6},
        {"normlayers_float_sums", PLOT_BLACK, PLOT_DOTTED, PLOT_RING, 1.2},
        {"one_pass", PLOT_VERMILLION, PLOT_SOLID, PLOT_CROSS, 1},
        {"two_pass", PLOT_ORANGE, PLOT_SOLID, PLOT_SQUARE, 2.4},
        {"welford", PLOT_PURPLE, PLOT_DASHDOT, PLOT_DIAMOND, 1},
        {"shifted", PLOT_GREEN, PLOT_DASHED, PLOT_TRIANGLE, 1},
        {"double_sums", PLOT_SKY, PLOT_SOLID, PLOT_WEDGE, 2},
        {"pytorch", PLOT_BLUE, PLOT_DASHDOT, PLOT_PLUS, 1},
    };
    plot_style s = plot_solid(PLOT_GREY);
    size_t i;
    for (i = 0; i < sizeof looks / sizeof looks[0]; i++) {
        if (strcmp(looks[i].key, key) != 0) continue;
        s.color = looks[i].color;
        s.dash = looks[i].dash;
        s.marker = looks[i].marker;
        s.width = looks[i].width;
    }
    s.marker_every = 1;
    return s;
}

/* A name without markup: in figures an underscore lowers what follows. */
static const char *plain_name(char *to, size_t size, const char *name)
{
    size_t n = 0;
    for (; *name && n + 3 < size; name++) {
        if (*name == '_') to[n++] = '\\';
        to[n++] = *name;
    }
    to[n] = 0;
    return to;
}

static void draw_line(plot_panel *p, const report *r, const contestant *who, int set, int layer)
{
    enum { POINTS = 64 };
    const size_t c = (size_t)(who - r->who);
    double x[POINTS], y[POINTS];
    char name[80];
    size_t i, n = 0;
    for (i = 0; i < r->done && n < POINTS; i++) {
        const outcome *o = &r->cases[i];
        if (o->set != set || o->layer != layer || !o->scores[c].ran) continue;
        x[n] = set == BY_MEAN ? o->mean : (double)(layer == 0 ? o->N : o->C);
        y[n++] = o->scores[c].relative[Y];
    }
    plot_line(p, plain_name(name, sizeof name, who->name), x, y, n, style_of(who->key));
}

/* One panel: everybody's error of y in the sweep `set` of a layer, ours on top. */
static void draw_sweep(plot_panel *p, const report *r, int set, int layer)
{
    size_t c;
    for (c = 0; c < r->many; c++) {
        const contestant *who = &r->who[(c + OTHERS) % r->many];
        if (who->in_figure) draw_line(p, r, who, set, layer);
    }
    plot_hline(p, 1, "as large as y", plot_dotted(PLOT_GREY));
    plot_hline(p, ldexp(1, -24), NULL, plot_dotted(PLOT_GREY));
    plot_text_in(p, 0.98, 0.03, "rounding unit of float", PLOT_RIGHT + PLOT_ABOVE, PLOT_GREY);
}

int report_figure(const report *r, const char *path)
{
    static const char *const headings[2][2] = {
        {"Batch norm, 4096 × 64", "Layer norm, 64 × 4096"},
        {"Batch norm, N × 4, mean 100, sd 1", "Layer norm, 4 × D, mean 100, sd 1"}};
    static const char *const labels[2][2] = {
        {"mean / standard deviation", "mean / standard deviation"}, {"batch size N", "features D"}};
    plot_figure *f;
    char footer[160];
    int row, layer;
    (void)snprintf(footer, sizeof footer, "make accuracy; normlayers.h %s, PyTorch %s", NRM_VERSION,
                   r->torch_version ? r->torch_version : "not measured");
    f = plot_new(.width = 1600, .height = 1380, .shared_legend = 1, .letters = 1,
                 .title = "How exact is a normalized value?", .footer = footer,
                 .subtitle =
                     "Largest error of y as a part of the largest exact y. Normal data in "
                     "float32, the same bits for all; γ in 0.5..1.5, β normal, ε = 10^{-5}.");
    for (row = 0; row < 2; row++)
        for (layer = 0; layer < 2; layer++) {
            plot_panel *p = plot_place(f, .row = row, .col = layer, .heading = headings[row][layer],
                                       .x = labels[row][layer], .x_scale = PLOT_LOG10,
                                       .y = "relative error of y", .y_scale = PLOT_LOG10,
                                       .y_range = {2e-9, 2e3}, .grid = PLOT_GRID_Y);
            draw_sweep(p, r, row == 0 ? BY_MEAN : BY_LENGTH, layer);
        }
    return plot_finish(f, path);
}
