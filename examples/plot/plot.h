/* plot.h: figures for papers, drawn on an RGB canvas and written as PNG.

What it is
    A figure is a page of W x H pixels with a title, a subtitle, a footer and a grid of panels. A
    panel holds any mix of lines, bands, points, histograms, ridges, bars, heat maps,
    reference lines and notes, or a contact sheet of small images.
    Calls only record what is to be drawn (data are copied); plot_save lays the page out from the
    measured text, draws it and writes the file. Every edge is anti-aliased; coordinates and
    coverage are integers in the end, and nothing depends on the last bits of the C library's
    mathematics, so the same calls give the same pixels everywhere.

How to use it
        #include "plot/plot.h"

        int main(void)
        {
            double step[3] = {0, 1, 2}, loss[3] = {2.3, 0.7, 0.2}, sd[3] = {0.1, 0.1, 0.05};
            plot_figure *f = plot_new(.width = 1600, .height = 1000, .title = "Training loss");
            plot_panel *p = plot_place(f, .x = "step", .y = "loss", .y_scale = PLOT_LOG10);
            plot_mean_band(p, "batch norm", step, loss, sd, 3, plot_solid(PLOT_BLUE));
            return plot_finish(f, "loss.png") ? 1 : 0;
        }

Errors
    The first error is kept in the figure (plot_error), every later call does nothing, and plot_save
    returns it. NULL figures and panels are accepted everywhere, so a program may draw without a
    single check and look at the result of plot_save only.

Data
    NaN and infinite values (and values <= 0 on a logarithmic axis) are gaps. Empty, constant and
    one-point series draw something sensible.

Text
    UTF-8 with the markup of stroke_font.h: 10^{-3}, x_{i}; \^ \_ \{ \} \\ are literal.

Sizes
    Text and lines scale with the page: at width 1600 tick labels have an em of 26 px and lines are
    3 px wide, which reads well at half size. .scale multiplies all of it, but no text gets
    smaller than 11 px on a page that is shown 838 px wide. */
#ifndef PLOT_H
#define PLOT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct plot_figure plot_figure;
typedef struct plot_panel plot_panel;

/* ---- colours: opaque 0xFFRRGGBB ------------------------------------------------------------- */

typedef uint32_t plot_color;

#define PLOT_RGB(r, g, b)                                                                          \
    (0xFF000000u | ((plot_color)(r) << 16) | ((plot_color)(g) << 8) | (plot_color)(b))
#define PLOT_BLACK 0xFF000000u /* Okabe and Ito's eight colours, told apart by the colour-blind */
#define PLOT_ORANGE 0xFFE69F00u
#define PLOT_SKY 0xFF56B4E9u
#define PLOT_GREEN 0xFF009E73u
#define PLOT_YELLOW 0xFFF0E442u
#define PLOT_BLUE 0xFF0072B2u
#define PLOT_VERMILLION 0xFFD55E00u
#define PLOT_PURPLE 0xFFCC79A7u
#define PLOT_GREY 0xFF808080u
#define PLOT_LIGHT 0xFFC8C8C8u
#define PLOT_INK 0xFF262626u /* text and axes */
#define PLOT_WHITE 0xFFFFFFFFu

/* ---- styles: a zero field is the default ---------------------------------------------------- */

enum { PLOT_SOLID = 0, PLOT_DASHED, PLOT_DOTTED, PLOT_DASHDOT };
enum {
    PLOT_NO_MARKER = 0,
    PLOT_CIRCLE,
    PLOT_SQUARE,
    PLOT_TRIANGLE,
    PLOT_DIAMOND,
    PLOT_WEDGE, /* triangle pointing down */
    PLOT_CROSS,
    PLOT_PLUS,
    PLOT_RING /* open circle */
};

typedef struct plot_style {
    plot_color color;
    double width;     /* line width in units of the default width; 0: 1 */
    double alpha;     /* opacity of the line or of the fill, 0..1; 0: the default of the kind */
    int dash;         /* PLOT_SOLID ... */
    int marker;       /* PLOT_NO_MARKER ... */
    int marker_every; /* a marker at every k-th point; 0: about a dozen per line */
    double size;      /* marker size in units of the default size; 0: 1 */
    int step;         /* 1: staircase (the value holds until the next x) */
} plot_style;

/* thin: translucent too, for raw curves, single seeds */
#define plot_styled(...) ((plot_style){__VA_ARGS__})
#define plot_solid(c) plot_styled(.color = (c))
#define plot_dashed(c) plot_styled(.color = (c), .dash = PLOT_DASHED)
#define plot_dotted(c) plot_styled(.color = (c), .dash = PLOT_DOTTED)
#define plot_dashdot(c) plot_styled(.color = (c), .dash = PLOT_DASHDOT)
#define plot_thin(c) plot_styled(.color = (c), .width = 0.45, .alpha = 0.45)
#define plot_marked(c, m) plot_styled(.color = (c), .marker = (m))
plot_style plot_with_marker(plot_style s, int marker); /* the same, a marker at every point */

/* ---- the figure ----------------------------------------------------------------------------- */

enum { PLOT_GRID_MAX = 16 }; /* rows, and columns, of panels */

typedef struct plot_page {
    int width, height; /* in pixels: 32..16384, 40 million in all */
    const char *title;
    const char *subtitle;          /* data, settings, notices; wrapped */
    const char *footer;            /* small print, no markup: command, seed */
    double scale;                  /* size of text and lines, 0.1..10; 0: 1 */
    double widths[PLOT_GRID_MAX];  /* relative, of the grid's columns; 0: 1 */
    double heights[PLOT_GRID_MAX]; /* of its rows */
    int letters;                   /* 1: bold a, b, c ... in front of the panels' headings */
    int shared_legend;             /* 1: one legend under the title for all panels */
} plot_page;

/* What is not allowed sets the figure's error. NULL only when not even the figure itself can be
   allocated. */
plot_figure *plot_new_page(plot_page page);
#define plot_new(...) plot_new_page((plot_page){__VA_ARGS__}) /* .width = 1600, .height = 900 */
void plot_free(plot_figure *f);
const char *plot_error(const plot_figure *f); /* "" while all is well */

/* Draws and writes the PNG. 0, or -1 with plot_error set; a failed write leaves no file behind. */
int plot_save(plot_figure *f, const char *path);

/* The same with the error on stderr, and plot_free. */
int plot_finish(plot_figure *f, const char *path);

/* ---- panels --------------------------------------------------------------------------------- */

enum { PLOT_LINEAR = 0, PLOT_LOG10, PLOT_LOG2 };
enum { PLOT_OPEN = 0, PLOT_BOX, PLOT_BARE }; /* left and bottom spine; four spines; none */
enum { PLOT_GRID_X = 1, PLOT_GRID_Y = 2, PLOT_GRID_BOTH = 3 };
enum {
    PLOT_LEGEND_AUTO = 0, /* a free corner, else outside: what covers no data */
    PLOT_LEGEND_NONE,
    PLOT_LEGEND_RIGHT,
    PLOT_LEGEND_ABOVE,
    PLOT_LEGEND_DIRECT, /* names at the right ends of the lines */
    PLOT_LEGEND_TOP_RIGHT,
    PLOT_LEGEND_TOP_LEFT,
    PLOT_LEGEND_BOTTOM_RIGHT,
    PLOT_LEGEND_BOTTOM_LEFT
};
enum { PLOT_LEFT = 0, PLOT_CENTER = 1, PLOT_RIGHT = 2, PLOT_BELOW = 4, PLOT_ABOVE = 8 };

typedef struct plot_axes {
    int row, col, rows, cols; /* place in the grid, from 0; a span of 0 is 1 */
    const char *heading, *x, *y;
    int x_scale, y_scale;
    double x_range[2], y_range[2]; /* {0, 0}: as the data want it; from high to low: turned round */
    int share_y;                   /* 1: the y range is that of the panel before it too */
    const double *x_ticks, *y_ticks;
    const char *const *x_names, *const *y_names;
    int x_count, y_count; /* of the ticks */
    int legend, frame;
    int grid;       /* PLOT_GRID_X ..., -1 for none; 0: as the marks want it */
    int hide;       /* PLOT_GRID_X ...: no label and no tick labels */
    double aspect;  /* pixels of one y unit / pixels of one x unit */
    double overlap; /* height of the highest ridge, in rows; 0: 2.2 */
} plot_axes;
plot_panel *plot_place_axes(plot_figure *f, plot_axes axes);
#define plot_place(f, ...) plot_place_axes(f, (plot_axes){__VA_ARGS__}) /* f, .heading = "loss" */

void plot_heading(plot_panel *p, const char *text);
void plot_ticks_x(plot_panel *p, const double *at, const char *const *labels, int n);
void plot_ticks_y(plot_panel *p, const double *at, const char *const *labels, int n);

/* ---- marks: label NULL or "": not in the legend; equal labels share one legend entry ------ */

void plot_line(plot_panel *p, const char *label, const double *x, const double *y, size_t n,
               plot_style s);
void plot_band(plot_panel *p, const char *label, const double *x, const double *lo,
               const double *hi, size_t n, plot_style s);
/* mean +- sd as a band with the mean as a line on it */
void plot_mean_band(plot_panel *p, const char *label, const double *x, const double *mean,
                    const double *sd, size_t n, plot_style s);
void plot_scatter(plot_panel *p, const char *label, const double *x, const double *y, size_t n,
                  plot_style s);
void plot_errorbars(plot_panel *p, const char *label, const double *x, const double *y,
                    const double *lo, const double *hi, size_t n, plot_style s);
/* bins heights over bins + 1 edges: translucent fill and outline */
void plot_hist(plot_panel *p, const char *label, const double *edges, const double *heights,
               size_t bins, plot_style s);
/* One row of a ridge plot, below the rows before it. name: the row's label. */
void plot_ridge(plot_panel *p, const char *name, const double *x, const double *density, size_t n,
                plot_style s);
/* One bar for each of n categories; several calls stand side by side. error may be NULL. */
void plot_bars(plot_panel *p, const char *label, const double *value, const double *error, size_t n,
               plot_style s);
void plot_categories(plot_panel *p, const char *const *names, int n); /* names under the bars */
void plot_bar_values(plot_panel *p, int decimals); /* print the values over the bars */
void plot_hline(plot_panel *p, double y, const char *note, plot_style s);
void plot_vline(plot_panel *p, double x, const char *note, plot_style s);
void plot_span_x(plot_panel *p, double x0, double x1, plot_style s); /* shaded interval */
void plot_span_y(plot_panel *p, double y0, double y1, plot_style s);
/* Text at data coordinates; align: PLOT_LEFT, CENTER or RIGHT, + PLOT_BELOW or PLOT_ABOVE. */
void plot_text(plot_panel *p, double x, double y, const char *text, int align, plot_color color);
/* Text at a fraction of the axes box: (0, 0) bottom left, (1, 1) top right. */
void plot_text_in(plot_panel *p, double fx, double fy, const char *text, int align,
                  plot_color color);
/* Text at a fraction of the axes box with a thin leader to the data point (x, y). */
void plot_note(plot_panel *p, double x, double y, double fx, double fy, const char *text,
               plot_color color);

enum { PLOT_SEQUENTIAL = 0, PLOT_DIVERGING, PLOT_TINTS }; /* tints: of two classes, 0 and 1 */
/* rows x cols values, row 0 at y0; the field covers [x0, x1] x [y0, y1]. lo >= hi: the range of the
   data. NaN cells are grey. */
void plot_heat(plot_panel *p, const double *v, size_t rows, size_t cols, double x0, double x1,
               double y0, double y1, int map, double lo, double hi);
void plot_colorbar(plot_panel *p, const char *label);
plot_color plot_map(int map, double t); /* the colour at t in 0..1 */

/* ---- panels without axes -------------------------------------------------------------------- */

/* count grey images of w x h bytes each, one after the other, in a grid of columns; captions (NULL
   or count texts, each may be NULL) stand under the images. paper = 1: 0 is white, 255 black. */
void plot_images(plot_panel *p, const unsigned char *grey, size_t count, int w, int h, int columns,
                 const char *const *captions, int paper);

#ifdef __cplusplus
}
#endif
#endif /* PLOT_H */
