/* test_plot.c - the figures: a fingerprint of every capability, and properties that a picture of
   data must have whatever it shows.

   `test_plot --print` prints the table of fingerprints; `test_plot --write DIR` also writes every
   scene as DIR/NAME.png, to look at what changed. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L /* mkdtemp, opendir */
#endif
#include "plot/plot.c" /* for the pixels, the boxes and the ticks */
#include "plot/stroke_font.c"
#include "plot/stb_image_write.c"
#include "lab/files.c"
#include "test.h"
#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

#define N 60

static const double nan_value = (double)NAN;
static const double inf_value = (double)INFINITY;

/* ---- data: polynomials and integers only, the same on every machine ------------------------- */

static double ramp(int i) /* 0..1 */
{
    return (double)i / (N - 1);
}

static double bump(int i, double middle, double width) /* a smooth hill without exp */
{
    double d = (ramp(i) - middle) / width;
    return 1 / (1 + d * d * d * d);
}

static double wiggle(int i, int k) /* deterministic noise in -0.5..0.5 */
{
    unsigned h = (unsigned)i * 2654435761u + (unsigned)k * 40503u;
    h ^= h >> 15;
    h *= 2246822519u;
    return (double)((h >> 8) & 0xFFFFu) / 65535.0 - 0.5;
}

/* The i-th colour, dash and marker. */
static plot_style look(int i)
{
    static const int dash[4] = {PLOT_SOLID, PLOT_DASHED, PLOT_DASHDOT, PLOT_DOTTED};
    static const plot_color color[8] = {PLOT_BLUE,   PLOT_VERMILLION, PLOT_GREEN, PLOT_PURPLE,
                                        PLOT_ORANGE, PLOT_SKY,        PLOT_BLACK, PLOT_YELLOW};
    return plot_styled(.color = color[i % 8], .dash = dash[i % 4], .marker = PLOT_CIRCLE + i % 5);
}

/* ---- scenes: one capability each, small ----------------------------------------------------- */

static plot_page small_page(void)
{
    return (plot_page){.width = 320, .height = 240, .scale = 1.9};
}

static plot_panel *only_panel(plot_figure *f)
{
    return plot_place(f, .x = "step", .y = "value");
}

static void scene_lines(plot_figure *f)
{
    plot_panel *p = only_panel(f);
    double x[N], y[N];
    static const char *const name[4] = {"solid", "dashed", "dash-dot", "dotted"};
    int i, k;
    for (k = 0; k < 4; k++) {
        for (i = 0; i < N; i++) {
            x[i] = i;
            y[i] = k + bump(i, 0.2 + 0.2 * k, 0.2);
        }
        plot_line(p, name[k], x, y, N, look(k));
    }
}

static void scene_gaps(plot_figure *f)
{
    plot_panel *p = only_panel(f);
    double x[N], y[N], sd[N];
    int i;
    for (i = 0; i < N; i++) {
        x[i] = i;
        y[i] = i % 20 == 7 ? nan_value : i % 20 == 9 ? inf_value : bump(i, 0.5, 0.3);
        sd[i] = 0.1;
    }
    plot_mean_band(p, "with gaps", x, y, sd, N, plot_solid(PLOT_BLUE));
}

static void scene_bands(plot_figure *f)
{
    plot_panel *p = plot_place(f, .x = "step", .y = "value", .legend = PLOT_LEGEND_BOTTOM_LEFT);
    double x[N], y[N], sd[N];
    int i, k;
    for (k = 0; k < 2; k++) {
        for (i = 0; i < N; i++) {
            x[i] = i;
            y[i] = 2 - (k + 1) * ramp(i) + 0.1 * wiggle(i, k);
            sd[i] = 0.2 * (1.2 - ramp(i));
        }
        plot_mean_band(p, k ? "batch norm" : "standard", x, y, sd, N,
                       k ? plot_dashed(PLOT_BLUE) : plot_solid(PLOT_VERMILLION));
        plot_line(p, NULL, x, y, N, plot_thin(PLOT_GREY));
    }
}

static void scene_log(plot_figure *f)
{
    plot_panel *p = plot_place(f, .x = "step size α", .x_scale = PLOT_LOG10, .y = "loss",
                               .y_scale = PLOT_LOG10);
    double x[24], y[24], lo[24], hi[24];
    int i;
    for (i = 0; i < 24; i++) {
        x[i] = ldexp(1, i - 6);
        y[i] = 1 / (x[i] + 0.01);
        lo[i] = y[i] - 0.02; /* falls below zero: the band must reach the bottom */
        hi[i] = 2 * y[i];
    }
    plot_line(p, "GD", x, y, 24, plot_solid(PLOT_BLUE));
    plot_band(p, "GD", x, lo, hi, 24, plot_solid(PLOT_BLUE));
    plot_hline(p, 1, "no change", plot_dashed(PLOT_GREY));
}

/* Within a decade the ticks are 1.2·10^4, 1.4·10^4, ... and not 10^4 and 10^4. */
static void scene_within_a_decade(plot_figure *f)
{
    const double x[3] = {0, 1, 2}, y[3] = {11000, 18000, 15000};
    plot_line(plot_place(f, .y_scale = PLOT_LOG10), "GD", x, y, 3, plot_solid(PLOT_BLUE));
}

static void scene_log2(plot_figure *f)
{
    plot_panel *p = plot_place(f, .x = "batch size", .x_scale = PLOT_LOG2, .y = "error (%)");
    double x[8], y[8], lo[8], hi[8];
    int i;
    for (i = 0; i < 8; i++) {
        x[i] = ldexp(1, i + 1);
        y[i] = 3 + 8 / x[i];
        lo[i] = y[i] - 0.4;
        hi[i] = y[i] + 0.6;
    }
    plot_errorbars(p, "batch norm", x, y, lo, hi, 8, plot_marked(PLOT_BLUE, PLOT_SQUARE));
}

static void scene_histogram(plot_figure *f)
{
    plot_panel *p = only_panel(f);
    double edges[N + 1], h[N];
    int i, k;
    for (k = 0; k < 2; k++) {
        for (i = 0; i <= N; i++) edges[i] = -4 + 8 * (double)i / N;
        for (i = 0; i < N; i++) h[i] = bump(i, 0.4 + 0.2 * k, 0.1 + 0.1 * k) / (1 + k);
        plot_hist(p, k ? "none" : "BN", edges, h, N, k ? plot_dashed(PLOT_VERMILLION) : look(0));
    }
}

static void scene_ridges(plot_figure *f)
{
    static const char *const name[6] = {"0", "100", "200", "300", "400", "500"};
    plot_panel *p = only_panel(f);
    double x[N], y[N];
    int i, k;
    for (k = 0; k < 6; k++) {
        for (i = 0; i < N; i++) {
            x[i] = i;
            y[i] = bump(i, 0.3 + 0.07 * k, 0.12 + 0.02 * k);
        }
        plot_ridge(p, name[k], x, y, N, plot_solid(plot_map(PLOT_SEQUENTIAL, 0.12 + 0.68 * k / 5)));
    }
}

static void scene_bars(plot_figure *f)
{
    static const char *const name[3] = {"ReLU", "sigmoid", "tanh"};
    static const double a[3] = {0.95, 0.92, 0.94}, b[3] = {0.93, -0.2, 0.9},
                        e[3] = {0.02, 0.1, 0.03};
    plot_panel *p = only_panel(f);
    plot_categories(p, name, 3);
    plot_bars(p, "BN", a, e, 3, plot_solid(PLOT_BLUE));
    plot_bars(p, "none", b, e, 3, plot_solid(PLOT_VERMILLION));
    plot_bar_values(p, 2);
}

static void scene_heat(plot_figure *f)
{
    plot_panel *p = plot_place(f, 0), *q = plot_place(f, .row = 1);
    double v[12 * 20], most = 0;
    int i;
    for (i = 0; i < 240; i++) v[i] = wiggle(i, 1) * (1 + i / 20);
    v[25] = nan_value;
    for (i = 0; i < 240; i++) most = fabs(v[i]) > most ? fabs(v[i]) : most;
    plot_heat(p, v, 12, 20, 0, 20, 0, 12, PLOT_DIVERGING, -most, most);
    plot_colorbar(p, "∂L");
    for (i = 0; i < 240; i++) v[i] = (i % 20) * (i / 20);
    plot_heat(q, v, 12, 20, 0, 20, 12, 0, PLOT_SEQUENTIAL, 0, 0);
    plot_colorbar(q, NULL);
}

static void scene_heat_small_cells(plot_figure *f)
{
    plot_panel *p = plot_place(f, 0);
    static double v[500 * 700];
    int i;
    for (i = 0; i < 500 * 700; i++) v[i] = (i % 700) * 0.01 + wiggle(i, 3);
    plot_heat(p, v, 500, 700, 0, 1, 0, 1, PLOT_SEQUENTIAL, 0, 7);
}

static void scene_classes(plot_figure *f)
{
    plot_panel *p = plot_place(f, .aspect = 1, .frame = PLOT_BOX);
    static double classes[400 * 400];
    int i, k;
    double x[20], y[20];
    for (i = 0; i < 400 * 400; i++) {
        int u = i % 400 - 190, v = i / 400 - 190;
        classes[i] = u * u + v * v < 12000;
    }
    plot_heat(p, classes, 400, 400, -1, 1, -1, 1, PLOT_TINTS, 0, 1);
    for (k = 0; k < 3; k++) {
        for (i = 0; i < 20; i++) {
            x[i] = wiggle(i, k) + 0.3 * (k - 1);
            y[i] = wiggle(i, k + 9);
        }
        plot_scatter(p,
                     k == 0   ? "0"
                     : k == 1 ? "1"
                              : "2",
                     x, y, 20, plot_marked(look(k).color, PLOT_CIRCLE + k));
    }
}

static void scene_markers(plot_figure *f)
{
    plot_panel *p = only_panel(f);
    double x[6], y[6];
    int i, k;
    for (k = PLOT_CIRCLE; k <= PLOT_RING; k++) {
        for (i = 0; i < 6; i++) {
            x[i] = i;
            y[i] = k;
        }
        plot_scatter(p, NULL, x, y, 6, plot_marked(look(k - PLOT_CIRCLE).color, k));
    }
}

static void scene_notes(plot_figure *f)
{
    plot_panel *p = only_panel(f);
    double x[N], y[N];
    plot_style s = plot_solid(PLOT_PURPLE);
    int i;
    for (i = 0; i < N; i++) {
        x[i] = i;
        y[i] = 1 + i / 20;
    }
    s.step = 1;
    plot_line(p, NULL, x, y, N, s);
    plot_span_x(p, 20, 40, plot_solid(PLOT_ORANGE));
    plot_span_y(p, 1.5, 1.8, plot_solid(PLOT_GREY));
    plot_vline(p, 30, "lr / 10", plot_dotted(PLOT_GREY));
    plot_text(p, 10, 1, "left", PLOT_LEFT | PLOT_ABOVE, 0);
    plot_text_in(p, 1, 0, "corner", PLOT_RIGHT | PLOT_ABOVE, PLOT_BLUE);
    plot_note(p, 40, 3, 0.3, 0.9, "jump", PLOT_VERMILLION);
}

static void scene_direct(plot_figure *f)
{
    plot_panel *p = plot_place(f, .x = "step", .y = "value", .legend = PLOT_LEGEND_DIRECT);
    double x[N], y[N];
    static const char *const name[3] = {"one", "two", "three"};
    int i, k;
    for (k = 0; k < 3; k++) {
        for (i = 0; i < N; i++) {
            x[i] = 1000.0 * i;
            y[i] = ramp(i) * (1 + 0.02 * k);
        }
        plot_line(p, name[k], x, y, N, plot_solid(look(k).color));
    }
}

static void scene_page(plot_figure *f)
{
    double x[N], y[N];
    plot_panel *p[2][2];
    int i, r, c;
    for (r = 0; r < 2; r++) {
        for (c = 0; c < 2; c++) {
            p[r][c] =
                plot_place(f, .row = r, .col = c, .heading = "panel", .x = "x", .share_y = r || c,
                           .hide = (r == 0 ? PLOT_GRID_X : 0) | (c == 1 ? PLOT_GRID_Y : 0));
            for (i = 0; i < N; i++) {
                x[i] = i;
                y[i] = (r + 1) * bump(i, 0.3 + 0.4 * c, 0.3);
            }
            plot_line(p[r][c], "one", x, y, N, look(0));
        }
    }
}

static void scene_images(plot_figure *f)
{
    static const char *const caption[6] = {"0", "1", NULL, "3", "a long caption", "5"};
    unsigned char grey[6 * 64];
    plot_panel *p = plot_place(f, 0);
    int i;
    for (i = 0; i < 6 * 64; i++) grey[i] = (unsigned char)(i * 7 % 256);
    plot_images(p, grey, 6, 8, 8, 3, caption, 0);
    plot_heading(p, "digits");
}

static void scene_corner_cases(plot_figure *f)
{
    double x[3] = {1, 2, 3}, flat[3] = {5, 5, 5}, none[3], one = 2;
    plot_panel *p = plot_place(f, 0);
    none[0] = none[1] = nan_value;
    none[2] = inf_value;
    plot_line(p, "empty", x, flat, 0, plot_solid(PLOT_BLUE));
    p = plot_place(f, .col = 1);
    plot_line(p, "flat", x, flat, 3, plot_solid(PLOT_BLUE));
    p = plot_place(f, .row = 1);
    plot_line(p, "none", x, none, 3, plot_solid(PLOT_BLUE));
    p = plot_place(f, .row = 1, .col = 1);
    plot_line(p, "one", &one, &one, 1, plot_solid(PLOT_BLUE));
}

typedef struct scene {
    const char *name;
    void (*draw)(plot_figure *f);
    uint64_t hash; /* FNV-1a of width * height * 3 bytes */
} scene;

static plot_figure *page_of(void (*draw)(plot_figure *f))
{
    plot_page page = small_page();
    plot_figure *f;
    if (draw == scene_page)
        page = (plot_page){.width = 320,
                           .height = 240,
                           .scale = 1.9,
                           .widths = {1.5, 1},
                           .title = "A title long enough to need two lines",
                           .subtitle = "synthetic data, σ^2 = 1",
                           .letters = 1,
                           .footer = "examples/a_b --seed 1",
                           .shared_legend = 1};
    f = plot_new_page(page);
    draw(f);
    return f;
}

#define HASH(hi, lo) (((uint64_t)hi << 32) | lo)

static const scene scenes[] = {
    {"lines", scene_lines, HASH(0xFE48638Au, 0x14192DA0u)},
    {"gaps", scene_gaps, HASH(0x9C7EAB35u, 0xADA6E186u)},
    {"bands", scene_bands, HASH(0x131B5655u, 0xB32E3952u)},
    {"log", scene_log, HASH(0x80869DF9u, 0x2B201995u)},
    {"within_a_decade", scene_within_a_decade, HASH(0xC25E275Au, 0x1672577Du)},
    {"log2", scene_log2, HASH(0x945CD789u, 0xDAC61B93u)},
    {"histogram", scene_histogram, HASH(0x9C4A518Cu, 0x70D328D2u)},
    {"ridges", scene_ridges, HASH(0x4F093BECu, 0xAC170809u)},
    {"bars", scene_bars, HASH(0x7AB3F421u, 0x6A34D770u)},
    {"heat", scene_heat, HASH(0x79986F5Bu, 0x2CF5F6F2u)},
    {"heat_small_cells", scene_heat_small_cells, HASH(0xBDCC79DEu, 0x2B0A3F12u)},
    {"classes", scene_classes, HASH(0x03E2FCB4u, 0x7F413EA9u)},
    {"markers", scene_markers, HASH(0xC247A397u, 0xAD3D364Fu)},
    {"notes", scene_notes, HASH(0xB06B8F9Cu, 0xBDB010A3u)},
    {"direct", scene_direct, HASH(0xAA6E1EC9u, 0x271A70B3u)},
    {"page", scene_page, HASH(0xD9401C00u, 0x6C9F5116u)},
    {"images", scene_images, HASH(0x9D78184Cu, 0xF08BF565u)},
    {"corner_cases", scene_corner_cases, HASH(0x343D8DB7u, 0xFD488688u)},
};

#define SCENES (sizeof scenes / sizeof *scenes)

static uint64_t fingerprint(void (*draw)(plot_figure *f))
{
    plot_figure *f = page_of(draw);
    uint64_t hash = 0;
    CHECK_INT(ploti_render(f), 0);
    CHECK_STR(plot_error(f), "");
    if (f->cv.rgb) hash = files_hash(FILES_HASH_INIT, f->cv.rgb, 320 * 240 * 3);
    plot_free(f);
    return hash;
}

static void test_fingerprints(void)
{
    size_t i;
    for (i = 0; i < SCENES; i++) {
        uint64_t h = fingerprint(scenes[i].draw);
        if (!CHECK(h == scenes[i].hash)) printf("    scene %s\n", scenes[i].name);
    }
}

static void test_twice_the_same(void)
{
    CHECK(fingerprint(scene_page) == fingerprint(scene_page));
    CHECK(fingerprint(scene_classes) == fingerprint(scene_classes));
}

/* ---- looking at pixels ---------------------------------------------------------------------- */

static int darkest(const plot_figure *f, ploti_rect box)
{
    int x, y, least = 255;
    for (y = (int)box.y0; y < (int)box.y1; y++) {
        for (x = (int)box.x0; x < (int)box.x1; x++) {
            const unsigned char *p = f->cv.rgb + 3 * ploti_index(&f->cv, x, y);
            int v = p[0] < p[1] ? p[0] : p[1];
            v = v < p[2] ? v : p[2];
            least = v < least ? v : least;
        }
    }
    return least;
}

/* Three lines with bands; `pattern` says which corners they leave free. */
static plot_figure *legend_case(int pattern, int where, plot_panel **panel)
{
    plot_figure *f = plot_new(.width = 800, .height = 600);
    plot_panel *p = plot_place(f, .grid = -1, .legend = where);
    double x[N], y[N], lo[N], hi[N];
    int i, k;
    for (k = 0; k < 3; k++) {
        for (i = 0; i < N; i++) {
            double t = ramp(i), rising = 0.3 * k + t, falling = 0.3 * k + 1 - t;
            double valley = 4 * (t - 0.5) * (t - 0.5) + 0.1 * k;
            x[i] = i;
            y[i] = pattern == 0   ? rising
                   : pattern == 1 ? falling
                   : pattern == 2 ? valley
                   : pattern == 3 ? -valley
                                  : wiggle(i, k); /* fills everything */
            lo[i] = y[i] - 0.05;
            hi[i] = y[i] + 0.05;
        }
        plot_line(p, k == 0 ? "standard" : k == 1 ? "batch norm" : "layer norm", x, y, N, look(k));
        plot_band(p, NULL, x, lo, hi, N, look(k));
    }
    *panel = p;
    return f;
}

static void test_legend_covers_no_data(void)
{
    int pattern;
    for (pattern = 0; pattern < 5; pattern++) {
        plot_panel *p, *q;
        plot_figure *f = legend_case(pattern, PLOT_LEGEND_AUTO, &p), *g;
        const ploti_rect *box = &p->legend_box, *axes = &p->box;
        CHECK_INT(ploti_render(f), 0);
        if (pattern == 4) { /* no room inside: it must be outside, and on the page */
            CHECK(box->x0 >= axes->x1 || box->y1 <= axes->y0);
            CHECK(box->x0 >= 0 && box->y0 >= 0 && box->x1 <= f->cv.w && box->y1 <= f->cv.h);
        } else {
            CHECK(box->x0 >= axes->x0 && box->x1 <= axes->x1);
            CHECK(box->y0 >= axes->y0 && box->y1 <= axes->y1 && box->x1 > box->x0);
            g = legend_case(pattern, PLOT_LEGEND_NONE, &q);
            CHECK_INT(ploti_render(g), 0);
            CHECK(q->legend_box.x1 <= q->legend_box.x0);
            CHECK_INT(darkest(g, *box), 255);
            plot_free(g);
        }
        plot_free(f);
    }
}

static void test_legend_outside_and_above(void)
{
    plot_panel *p;
    plot_figure *f = legend_case(0, PLOT_LEGEND_RIGHT, &p);
    CHECK_INT(ploti_render(f), 0);
    CHECK(p->legend_box.x0 >= p->box.x1 && p->legend_box.x1 <= 800);
    plot_free(f);
    f = legend_case(0, PLOT_LEGEND_ABOVE, &p);
    CHECK_INT(ploti_render(f), 0);
    CHECK(p->legend_box.y1 <= p->box.y0 && p->legend_box.y0 >= 0);
    plot_free(f);
}

/* Nothing is cut off: the outermost pixels of the page stay white. */
static void test_nothing_is_clipped(void)
{
    size_t i;
    int side;
    for (i = 0; i < SCENES; i++) {
        plot_figure *f = page_of(scenes[i].draw);
        CHECK_INT(ploti_render(f), 0);
        for (side = 0; side < 4; side++) {
            ploti_rect box = {0, 0, 320, 240};
            if (side == 0) box.x1 = 2;
            if (side == 1) box.x0 = 318;
            if (side == 2) box.y1 = 2;
            if (side == 3) box.y0 = 238;
            if (!CHECK_INT(darkest(f, box), 255)) {
                printf("    scene %s, side %d\n", scenes[i].name, side);
            }
        }
        plot_free(f);
    }
}

static void test_panels_align(void)
{
    plot_figure *f = plot_new(.width = 900, .height = 700);
    plot_panel *a = plot_place(f, 0), *b = plot_place(f, .row = 1),
               *c = plot_place(f, .col = 1, .heading = "with a heading", .x = "with a label");
    double x[2] = {0, 1}, small[2] = {0, 1}, large[2] = {0, 90000};
    plot_line(a, NULL, x, small, 2, plot_solid(PLOT_BLUE));
    plot_line(b, NULL, x, large, 2, plot_solid(PLOT_BLUE));
    plot_line(c, NULL, x, large, 2, plot_solid(PLOT_BLUE));
    CHECK_INT(ploti_render(f), 0);
    CHECK(a->box.x0 == b->box.x0 && a->box.x1 == b->box.x1); /* one column */
    CHECK(a->box.y0 == c->box.y0 && a->box.y1 == c->box.y1); /* one row */
    plot_free(f);
}

static int row_ink(const double *y,
                   int column) /* coloured pixels in a column of a wide line plot */
{
    plot_figure *f = plot_new(.width = 700, .height = 300);
    plot_panel *p = plot_place(f, .x_range = {0, 6}, .y_range = {0, 2}, .grid = -1);
    double x[7] = {0, 1, 2, 3, 4, 5, 6};
    int row, n = 0, at;
    plot_line(p, NULL, x, y, 7, plot_solid(PLOT_VERMILLION));
    CHECK_INT(ploti_render(f), 0);
    at = (int)(p->box.x0 + (column + 0.5) / 6 * (p->box.x1 - p->box.x0));
    for (row = (int)p->box.y0; row < (int)p->box.y1 - 3; row++) {
        const unsigned char *q = f->cv.rgb + 3 * ploti_index(&f->cv, at, row);
        n += q[0] > q[2] + 60;
    }
    plot_free(f);
    return n;
}

static void test_gaps(void)
{
    double whole[7] = {1, 1, 1, 1, 1, 1, 1}, gap[7] = {1, 1, 1, 0, 1, 1, 1};
    int i;
    for (i = 0; i < 6; i++) CHECK(row_ink(whole, i) > 0);
    gap[3] = nan_value;
    for (i = 0; i < 6; i++) CHECK((row_ink(gap, i) > 0) == (i != 2 && i != 3));
    gap[3] = -inf_value;
    for (i = 0; i < 6; i++) CHECK((row_ink(gap, i) > 0) == (i != 2 && i != 3));
    gap[3] = 1e300; /* finite, far outside: two steep lines, clipped */
    CHECK(row_ink(gap, 1) > 0 && row_ink(gap, 4) > 0);
}

/* Enormous, tiny and reversed ranges must be drawn without trouble. */
static void test_wild_numbers(void)
{
    static const double big[6] = {1e308, -1e308, 1e300, 5e-324, 1e-300, 0};
    double x[6];
    int i, k, scale;
    for (k = 0; k < 6; k++) {
        for (scale = PLOT_LINEAR; scale <= PLOT_LOG2; scale++) {
            plot_figure *f = plot_new(.width = 200, .height = 160);
            plot_panel *p = plot_place(f, .x = "x", .x_scale = scale, .y = "y", .y_scale = scale);
            for (i = 0; i < 6; i++) x[i] = big[(i + k) % (k + 1)];
            plot_line(p, "a", x, big, 6, look(1));
            plot_mean_band(p, "b", big, x, big, 6, look(k));
            plot_hist(p, "c", big, x, 5, look(k));
            plot_bars(p, "d", big, x, 6, look(k));
            plot_heat(p, big, 2, 3, 0, 1, 0, 1, PLOT_DIVERGING, 0, 0);
            plot_colorbar(p, NULL);
            plot_ridge(p, "e", big, x, 6, plot_solid(PLOT_BLUE));
            CHECK_INT(ploti_render(f), 0);
            CHECK_STR(plot_error(f), "");
            plot_free(f);
        }
    }
}

/* ---- ticks ---------------------------------------------------------------------------------- */

static int is_nice(double step) /* 1, 2 or 5 times a power of ten */
{
    while (step > 9.999) step /= 10;
    while (step < 0.9999) step *= 10;
    return fabs(step - 1) < 1e-6 || fabs(step - 2) < 1e-6 || fabs(step - 5) < 1e-6;
}

static void test_linear_ticks(void)
{
    int i, k, most, n;
    double at[64];
    for (i = 0; i < 3000; i++) {
        double span = ldexp(1 + wiggle(i, 1), i % 60 - 30), lo = wiggle(i, 2) * span * (i % 7);
        double hi = lo + span;
        most = 2 + i % 11;
        n = ploti_nice_ticks(lo, hi, PLOT_LINEAR, most, at);
        CHECK(n >= 1 && n <= most);
        for (k = 0; k < n; k++) CHECK(at[k] >= lo - 1e-6 * span && at[k] <= hi + 1e-6 * span);
        for (k = 0; k + 1 < n; k++) CHECK(is_nice(at[k + 1] - at[k]));
    }
    n = ploti_nice_ticks(0, 1, PLOT_LINEAR, 6, at);
    CHECK_INT(n, 6);
    CHECK(at[0] == 0 && at[1] == 0.2 && at[2] == 0.4 && at[3] == 0.6 && at[5] == 1);
}

static void test_log_ticks(void)
{
    double at[64];
    int n = ploti_nice_ticks(1e-6, 10, PLOT_LOG10, 10, at), k;
    CHECK_INT(n, 8);
    for (k = 0; k + 1 < n; k++) CHECK_NEAR(at[k + 1] / at[k], 10, 1e-9);
    n = ploti_nice_ticks(1e-30, 1e30, PLOT_LOG10, 6, at);
    CHECK(n >= 2 && n <= 6);
    n = ploti_nice_ticks(1, 256, PLOT_LOG2, 12, at);
    CHECK_INT(n, 9);
    CHECK(at[0] == 1 && at[8] == 256);
    n = ploti_nice_ticks(0.3, 0.6, PLOT_LOG10, 6, at); /* within a decade: linear steps */
    CHECK(n >= 2 && at[0] >= 0.3 && at[n - 1] <= 0.6 + 1e-12);
}

static void test_impossible_ticks(void)
{
    double at[64];
    CHECK_INT(ploti_nice_ticks(1, 1, PLOT_LINEAR, 5, at), 0);
    CHECK_INT(ploti_nice_ticks(2, 1, PLOT_LINEAR, 5, at), 0);
    CHECK_INT(ploti_nice_ticks(nan_value, 1, PLOT_LINEAR, 5, at), 0);
    CHECK_INT(ploti_nice_ticks(0, inf_value, PLOT_LINEAR, 5, at), 0);
    CHECK_INT(ploti_nice_ticks(0, 1, PLOT_LINEAR, 0, at), 0);
    CHECK(ploti_nice_ticks(0, 1000, PLOT_LINEAR, 1000, at) <= 64);
}

/* ---- colours -------------------------------------------------------------------------------- */

static int luma(plot_color c)
{
    return (int)(299 * ((c >> 16) & 255u) + 587 * ((c >> 8) & 255u) + 114 * (c & 255u));
}

static void test_maps_are_monotone(void)
{
    int i;
    for (i = 0; i < 255; i++) { /* so that a grey print shows the same order */
        CHECK(luma(plot_map(PLOT_SEQUENTIAL, (i + 1) / 255.0)) >=
              luma(plot_map(PLOT_SEQUENTIAL, i / 255.0)) - 400);
        if (i < 127) {
            CHECK(luma(plot_map(PLOT_DIVERGING, (i + 1) / 255.0)) >=
                  luma(plot_map(PLOT_DIVERGING, i / 255.0)) - 400);
        }
    }
    CHECK(plot_map(PLOT_SEQUENTIAL, -5) == plot_map(PLOT_SEQUENTIAL, 0));
    CHECK(plot_map(PLOT_SEQUENTIAL, nan_value) == plot_map(PLOT_SEQUENTIAL, 0));
    CHECK(luma(plot_map(PLOT_DIVERGING, 0.5)) > 240000);
}

/* ---- errors --------------------------------------------------------------------------------- */

static void test_sizes(void)
{
    static const int bad[7][2] = {{0, 0},          {-5, 100},      {31, 100},
                                  {100, 20000},    {16384, 16384}, {2147483647, 2147483647},
                                  {-2147483647, 2}};
    int i;
    for (i = 0; i < 7; i++) {
        plot_figure *f = plot_new(.width = bad[i][0], .height = bad[i][1]);
        CHECK(f != NULL);
        CHECK(strstr(plot_error(f), "size of the page") != NULL);
        CHECK(plot_place(f, 0) == NULL);
        CHECK_INT(ploti_render(f), -1);
        CHECK_INT(plot_save(f, "never.png"), -1);
        plot_free(f);
    }
}

static void test_first_error_stays(void)
{
    plot_figure *f = plot_new(.width = 300, .height = 200);
    plot_panel *p = plot_place(f, 0);
    double x[2] = {0, 1};
    (void)plot_place(f, .x_range = {0, inf_value});
    CHECK(strstr(plot_error(f), "range") != NULL);
    (void)plot_place(f, .row = -1);
    plot_line(p, "a", x, x, 2, plot_solid(PLOT_BLUE));
    plot_line(p, "a", NULL, x, 2, plot_solid(PLOT_BLUE));
    CHECK(strstr(plot_error(f), "range") != NULL);
    CHECK_INT(plot_save(f, "never.png"), -1);
    CHECK(access("never.png", F_OK) != 0);
    plot_free(f);
}

static void test_every_misuse_is_named(void)
{
    static const char *const words[10] = {"grid",  "grid", "scale", "relative", "range",
                                          "ticks", "NULL", "field", "images",   "log axis"};
    double x[2] = {0, 1};
    int i;
    for (i = 0; i < 10; i++) {
        plot_figure *f = plot_new(.width = 300, .height = 200, .scale = i == 2 ? nan_value : 1,
                                  .widths = {1, i == 3 ? -1 : 1});
        plot_panel *p = plot_place(f, 0);
        if (i == 0) (void)plot_place(f, .row = -1);
        if (i == 1) (void)plot_place(f, .col = 3, .cols = 2147483647);
        if (i == 4) (void)plot_place(f, .y_range = {0, inf_value});
        if (i == 5) plot_ticks_x(p, x, NULL, 65);
        if (i == 6) plot_line(p, NULL, x, NULL, 2, plot_solid(PLOT_BLUE));
        if (i == 7) plot_heat(p, x, (size_t)-1, 2, 0, 1, 0, 1, 0, 0, 0);
        if (i == 8) plot_images(p, (const unsigned char *)x, (size_t)-1, 28, 28, 4, NULL, 0);
        if (i == 9) {
            p = plot_place(f, .y_scale = PLOT_LOG10, .y_range = {-1, 1});
            (void)ploti_render(f);
        }
        if (!CHECK(strstr(plot_error(f), words[i]) != NULL)) printf("    %s\n", plot_error(f));
        plot_free(f);
    }
}

static void test_null_is_harmless(void)
{
    double x[1] = {0};
    plot_free(NULL);
    CHECK(plot_place(NULL, 0) == NULL);
    plot_heading(NULL, "x");
    plot_line(NULL, "x", x, x, 1, plot_solid(PLOT_BLUE));
    plot_line(NULL, "x", NULL, NULL, 1, plot_solid(PLOT_BLUE));
    CHECK_INT(plot_save(NULL, "never.png"), -1);
    CHECK(plot_error(NULL)[0] != 0);
}

static void test_crowded_page_is_refused(void)
{
    plot_figure *f = plot_new(.width = 100, .height = 60, .scale = 10);
    int i;
    for (i = 0; i < 6; i++) (void)plot_place(f, .row = i, .col = i, .heading = "heading");
    CHECK_INT(ploti_render(f), -1);
    CHECK(strstr(plot_error(f), "too small") != NULL);
    plot_free(f);
}

static int files_in(const char *dir)
{
    DIR *d = opendir(dir);
    int n = 0;
    if (!d) return -1;
    while (readdir(d)) n++;
    (void)closedir(d);
    return n - 2;
}

static uint32_t word_at(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* A PNG of indices into a palette: its chunks fill the file, in order, each with its CRC-32. */
static void check_chunks(const unsigned char *data, size_t n)
{
    static const char *const names[] = {"IHDR", "PLTE", "IDAT", "IEND"};
    size_t at = 8, k;
    for (k = 0; k < 4 && at + 12 <= n; k++) {
        const size_t length = word_at(data + at);
        uint32_t crc = 0xffffffffu;
        size_t i;
        int bit;
        CHECK(memcmp(data + at + 4, names[k], 4) == 0 && length <= n - at - 12);
        if (length > n - at - 12) return;
        for (i = 0; i < length + 4; i++)
            for (crc ^= data[at + 4 + i], bit = 0; bit < 8; bit++)
                crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
        CHECK((crc ^ 0xffffffffu) == word_at(data + at + 8 + length));
        if (k == 0) CHECK(length == 13 && data[at + 16] == 8 && data[at + 17] == 3);
        if (k == 1) CHECK(length > 0 && length <= 768 && length % 3 == 0);
        at += 12 + length;
    }
    CHECK(k == 4 && at == n);
}

static void test_saving(void)
{
    char dir[] = "/tmp/test_plot_XXXXXX", path[64], err[FILES_ERR_MAX];
    unsigned char *data = NULL;
    size_t n = 0;
    plot_figure *f = page_of(scene_lines);
    CHECK(mkdtemp(dir) != NULL);
    (void)snprintf(path, sizeof path, "%s/a.png", dir);
    CHECK_INT(plot_save(f, path), 0);
    CHECK_STR(plot_error(f), "");
    CHECK_INT(files_read(path, 1 << 24, &data, &n, err), 0);
    CHECK(n > 100 && data && memcmp(data, "\x89PNG\r\n\x1a\n", 8) == 0);
    check_chunks(data, n);
    CHECK_INT(files_in(dir), 1);
    free(data);
    (void)unlink(path);
    plot_free(f);
    f = page_of(scene_lines); /* the folder is in the way: nothing may be left behind */
    CHECK_INT(plot_save(f, dir), -1);
    CHECK(strlen(plot_error(f)) > 6);
    CHECK_INT(files_in(dir), 0);
    plot_free(f);
    f = plot_new_page(small_page());
    CHECK_INT(plot_save(f, ""), -1);
    CHECK(plot_error(f)[0] != 0);
    plot_free(f);
    (void)rmdir(dir);
}

static void test_figure_can_grow_after_drawing(void)
{
    plot_figure *f = plot_new(.width = 300, .height = 200),
                *g = plot_new(.width = 300, .height = 200);
    plot_panel *p = plot_place(f, 0), *q = plot_place(g, 0);
    double x[3] = {0, 1, 2}, y[3] = {0, 1, 0};
    plot_line(p, "a", x, x, 3, look(0));
    CHECK_INT(ploti_render(f), 0);
    plot_line(p, "b", x, y, 3, look(1));
    plot_line(q, "a", x, x, 3, look(0));
    plot_line(q, "b", x, y, 3, look(1));
    CHECK(ploti_render(f) == 0 && ploti_render(g) == 0);
    CHECK(memcmp(f->cv.rgb, g->cv.rgb, 300 * 200 * 3) == 0);
    plot_free(f);
    plot_free(g);
}

/* ---- the table of fingerprints -------------------------------------------------------------- */

static void print_scene(const scene *s, const char *dir)
{
    uint64_t h = fingerprint(s->draw);
    printf("    {\"%s\", scene_%s, HASH(0x%08lXu, 0x%08lXu)},\n", s->name, s->name,
           (unsigned long)(h >> 32), (unsigned long)(h & 0xFFFFFFFFu));
    if (dir) {
        char path[512];
        plot_figure *f = page_of(s->draw);
        (void)snprintf(path, sizeof path, "%s/%s.png", dir, s->name);
        if (plot_save(f, path) != 0) printf("%s\n", plot_error(f));
        plot_free(f);
    }
}

int main(int argc, char **argv)
{
    size_t i;
    if (argc > 1 && (strcmp(argv[1], "--print") == 0 || strcmp(argv[1], "--write") == 0)) {
        for (i = 0; i < SCENES; i++) print_scene(&scenes[i], argc > 2 ? argv[2] : NULL);
        return 0;
    }
    RUN(test_fingerprints);
    RUN(test_twice_the_same);
    RUN(test_legend_covers_no_data);
    RUN(test_legend_outside_and_above);
    RUN(test_nothing_is_clipped);
    RUN(test_panels_align);
    RUN(test_gaps);
    RUN(test_wild_numbers);
    RUN(test_linear_ticks);
    RUN(test_log_ticks);
    RUN(test_impossible_ticks);
    RUN(test_maps_are_monotone);
    RUN(test_sizes);
    RUN(test_first_error_stays);
    RUN(test_every_misuse_is_named);
    RUN(test_null_is_harmless);
    RUN(test_crowded_page_is_refused);
    RUN(test_saving);
    RUN(test_figure_can_grow_after_drawing);
    return test_report("plot");
}
