/* page.h - the figures of an experiment as data: pages of panels, panels of lines.

   A line is a series of an arm over its seeds; axes, notes and limits stand beside it. What has to
   be computed first, a panel's own function draws. An example:

       static const lab_panel panels[] = {
           {.axes = {.heading = "loss", .x = "step", .y_scale = PLOT_LOG10, .y_range = {1e-3, 10},
                     .legend = PLOT_LEGEND_DIRECT},
            .line = {{NONE, "loss"}, {BATCH, "loss", .how = LAB_EACH_SEED}},
            .mark = {{LAB_HLINE, .y = 2.3, .text = "chance"}}},
           {.axes = {.col = 1, .heading = "ratio"}, .draw = draw_ratio}};
       static const lab_page pages[] = {
           {"Batch norm is faster", .height = 900, LAB_PANELS(panels)}};
*/
#ifndef PAGE_OF_PANELS_H
#define PAGE_OF_PANELS_H

#include "judge.h"

/* How a line shows its seeds: their mean, lowest and highest; a line for each; the first one's; the
   mean alone; as both, but the geometric mean; ten to the power of what LAB_RANGE has. Bars:
   the mean and one standard deviation at each x that axes.x_names has a name for, with the value
   over it to panel->value decimals. Errors: the same of the arms up to `to`, which axes.x_names
   names: the error in per cent of an accuracy, its last value. */
enum {
    LAB_RANGE,
    LAB_EACH_SEED,
    LAB_ONE_SEED,
    LAB_MEAN,
    LAB_GEOMETRIC,
    LAB_GEOMETRIC_MEAN,
    LAB_POWERS,
    LAB_BARS,
    LAB_ERRORS
};

typedef struct lab_line {
    size_t arm;
    const char *series;
    const char *label; /* NULL: the arm's name; "": none                              */
    plot_style style;  /* without a colour: the program's look of the arm, if it has one,
                          with this marker at every point if there is one                  */
    int how;           /* LAB_RANGE ...                                                    */
    size_t to;         /* the same of the arms after it up to this one; 0: of none         */
    size_t level[2];   /* i of n: the colour lab_level(i, n), where the style has none       */
} lab_line;

enum { LAB_NOTE, LAB_NOTE_IN, LAB_HLINE, LAB_VLINE }; /* text at data, at fractions; limits */

typedef struct lab_mark {
    int what;
    double x, y;
    const char *text; /* of a limit: "" for none */
    int align;
    plot_color color; /* 0: ink */
    int dash;         /* of a limit; PLOT_SOLID: thin */
} lab_mark;

typedef struct lab_panel {
    plot_axes axes;
    lab_line line[24]; /* up to the one without a series */
    lab_mark mark[12]; /* up to the one without a text   */
    lab_mark under[4]; /* the same, below the lines      */
    /* or null: what else to draw; the rest is for it */
    void (*draw)(lab_report *, plot_panel *, const struct lab_panel *);
    size_t arm, other;
    const char *series;
    double value;
    int full; /* 1: its ranges are for full runs; a quick one has those of its numbers      */
} lab_panel;

#define LAB_PANELS(table) .panel = table, .panels = LAB_COUNT(table)

typedef struct lab_page {
    const char *title, *what; /* it becomes NAME.png, or NAME_what.png                   */
    int height;               /* pixels, of a page 1600 pixels wide                        */
    double scale;             /* of text and lines; 0: 1                                  */
    const char *settings;     /* of this page; NULL: the program's                        */
    size_t seeds;             /* how many of the seeds it shows, the first ones; 0: all   */
    int no_data;              /* 1: nothing of the data set is shown                      */
    int shared_legend;
    double widths[PLOT_GRID_MAX], heights[PLOT_GRID_MAX]; /* as in plot_page */
    const lab_panel *panel;
    size_t panels; /* 6 at most: what a reader takes in at once */
} lab_page;

/* Geometric mean over seeds, lowest and highest at each x; `logs`: the series are logarithms. */
lab_curve lab_geometric(lab_report *r, size_t arm, const char *series, int logs);

/* Numbers of n places x, each with one for every seed, such as of n arms: the mean, and a
   band from the lowest to the highest. */
void lab_draw_numbers(plot_panel *p, const char *label, const double *x, const lab_numbers *y,
                      size_t n, plot_style style);

/* The same of n categories as bars: means, and standard deviations if there are several seeds. */
void lab_draw_bars(plot_panel *p, const char *label, const lab_numbers *y, size_t n,
                   plot_style style);

/* The page alone: 1600 pixels wide, twice what a reader sees of it, with letters, a subtitle (data,
   settings, seeds, notices) and a footer (the command). */
plot_figure *lab_figure(lab_report *r, const lab_page *page);

/* Saves it as NAME.png, or NAME_what.png, and frees it. Returns 0, or -1 after a line on stderr. */
int lab_save(lab_report *r, plot_figure *f, const char *what);

/* The report of a program: before, claims, after, pages; and of quick runs whether those that were
   done twice are as without a look (trainer.h). 0, or it failed. */
int lab_report_tables(lab_report *r);

#endif /* PAGE_OF_PANELS_H */
