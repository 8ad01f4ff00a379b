/* page.c - see page.h. */
#include "page.h"

#include <math.h>
#include <stdio.h>

lab_curve lab_geometric(lab_report *r, size_t arm, const char *series, int logs)
{
    lab_curve c = lab_over_seeds(r, arm, series);
    size_t i;
    for (i = 0; i < c.n; i++) {
        const lab_numbers all = lab_all(r, arm, series, c.x[i]);
        const stats_summary m = lab_describe(logs ? all : lab_map(all, log10));
        c.mean[i] = pow(10, m.mean);
        c.low[i] = pow(10, m.min);
        c.high[i] = pow(10, m.max);
    }
    return c;
}

static void pagei_line(lab_report *r, plot_panel *p, const lab_line *line)
{
    const lab_program *program = lab_program_of(r);
    const char *label = line->label ? line->label : program->arm[line->arm].name;
    plot_style style = line->style;
    lab_series one;
    lab_curve all;
    if (!style.color && line->level[1]) {
        style.color = lab_level(line->level[0], line->level[1]);
    } else if (!style.color && program->look) {
        style = program->look(line->arm);
        if (line->style.marker) style = plot_with_marker(style, line->style.marker);
    }
    switch (line->how) {
    case LAB_EACH_SEED:
        lab_plot_seeds(r, p, line->arm, line->series, label, style);
        break;
    case LAB_MEAN:
        all = lab_over_seeds(r, line->arm, line->series);
        plot_line(p, label, all.x, all.mean, all.n, style);
        break;
    case LAB_GEOMETRIC:
    case LAB_GEOMETRIC_MEAN:
    case LAB_POWERS:
        all = lab_geometric(r, line->arm, line->series, line->how == LAB_POWERS);
        if (line->how != LAB_GEOMETRIC_MEAN)
            plot_band(p, NULL, all.x, all.low, all.high, all.n, style);
        plot_line(p, label, all.x, all.mean, all.n, style);
        break;
    case LAB_ONE_SEED:
        one = lab_get(r, line->arm, 0, line->series);
        plot_line(p, label, one.x, one.y, one.n, style);
        break;
    default:
        lab_plot(r, p, line->arm, line->series, label, style);
    }
}

void lab_draw_numbers(plot_panel *p, const char *label, const double *x, const lab_numbers *y,
                      size_t n, plot_style style)
{
    enum { MOST = 200 };
    double mean[MOST], low[MOST], high[MOST];
    size_t i;
    if (n > MOST) n = MOST;
    for (i = 0; i < n; i++) {
        const stats_summary s = lab_describe(y[i]);
        mean[i] = s.mean;
        low[i] = s.min;
        high[i] = s.max;
    }
    if (n > 0 && y[0].n > 1) plot_band(p, label, x, low, high, n, style);
    plot_line(p, label, x, mean, n, style);
}

enum { PAGEI_BARS = 20 };

void lab_draw_bars(plot_panel *p, const char *label, const lab_numbers *y, size_t n,
                   plot_style style)
{
    double mean[PAGEI_BARS], sd[PAGEI_BARS];
    size_t i;
    if (n > PAGEI_BARS) n = PAGEI_BARS;
    for (i = 0; i < n; i++) {
        const stats_summary s = lab_describe(y[i]);
        mean[i] = s.mean;
        sd[i] = s.n > 1 ? s.sd : 0;
    }
    plot_bars(p, label, mean, sd, n, style);
}

static void pagei_mark(plot_panel *p, const lab_mark *m)
{
    const plot_color color = m->color ? m->color : PLOT_INK;
    const plot_style limit = m->dash ? (plot_style){color, .dash = m->dash} : plot_thin(color);
    if (m->what == LAB_NOTE) plot_text(p, m->x, m->y, m->text, m->align, color);
    if (m->what == LAB_NOTE_IN) plot_text_in(p, m->x, m->y, m->text, m->align, color);
    if (m->what == LAB_HLINE) plot_hline(p, m->y, m->text, limit);
    if (m->what == LAB_VLINE) plot_vline(p, m->x, m->text, limit);
}

/* A bar for each x that has a name, or for each arm. */
static void pagei_bars(lab_report *r, plot_panel *p, const lab_panel *panel, const lab_line *line)
{
    const lab_curve all = lab_over_seeds(r, line->arm, line->series);
    const size_t named = (size_t)panel->axes.x_count;
    lab_numbers error[PAGEI_BARS];
    size_t i;
    plot_categories(p, panel->axes.x_names, panel->axes.x_count);
    plot_bar_values(p, (int)panel->value);
    if (line->how == LAB_BARS) {
        plot_bars(p, line->label, all.mean, lab_seeds(r, line->arm) > 1 ? all.sd : NULL,
                  all.n < named ? all.n : named, line->style);
        return;
    }
    for (i = 0; line->arm + i <= line->to && i < PAGEI_BARS; i++)
        error[i] = lab_errors(lab_all(r, line->arm + i, line->series, LAB_LAST));
    lab_draw_bars(p, line->label, error, i, line->style);
}

static void pagei_panel(lab_report *r, plot_figure *f, const lab_panel *panel)
{
    plot_axes axes = panel->axes;
    plot_panel *p;
    size_t i;
    if (panel->full && lab_quick(r))
        axes.x_range[0] = axes.x_range[1] = axes.y_range[0] = axes.y_range[1] = 0;
    p = plot_place_axes(f, axes);
    for (i = 0; i < LAB_COUNT(panel->under) && panel->under[i].text; i++)
        pagei_mark(p, &panel->under[i]);
    for (i = 0; i < LAB_COUNT(panel->line) && panel->line[i].series; i++) {
        lab_line line = panel->line[i];
        if (line.how == LAB_BARS || line.how == LAB_ERRORS) {
            pagei_bars(r, p, panel, &line);
            continue;
        }
        do pagei_line(r, p, &line);
        while (line.arm++ < line.to);
    }
    if (panel->draw) panel->draw(r, p, panel);
    for (i = 0; i < LAB_COUNT(panel->mark) && panel->mark[i].text; i++)
        pagei_mark(p, &panel->mark[i]);
}

static int pagei_page(lab_report *r, const lab_page *page)
{
    plot_figure *f;
    size_t i;
    if (page->panels > 6) {
        fprintf(stderr, "'%s': %zu panels, at most 6 are allowed\n", page->title, page->panels);
        return -1;
    }
    f = lab_figure(r, page);
    for (i = 0; i < page->panels; i++) pagei_panel(r, f, &page->panel[i]);
    return lab_save(r, f, page->what);
}

int lab_report_tables(lab_report *r)
{
    const lab_program *of = lab_program_of(r);
    size_t i;
    if (of->before && of->before(r)) return -1;
    lab_judge(r);
    if (of->after) of->after(r);
    lab_check_same_bits(r);
    for (i = 0; i < of->pages; i++)
        if (pagei_page(r, &of->page[i])) return -1;
    return 0;
}
