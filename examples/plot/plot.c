/* plot.c - see plot.h. */
#include "plot.h"
#include "lab/files.h"
#include "stroke_font.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stb_image_write.h>
/* not among its declarations */
unsigned char *stbi_zlib_compress(unsigned char *data, int data_len, int *out_len, int quality);

#define PLOTI_SIDE_MAX 16384
#define PLOTI_AREA_MAX 40000000
#define PLOTI_TICKS 64
#define PLOTI_LABEL 96
#define PLOTI_ENTRIES 48
#define PLOTI_GAP ((double)NAN) /* no value here: not drawn */
#define PLOTI_HUGE ((double)INFINITY)
#define PLOTI_LIMIT 1e300
#define PLOTI_NO_MEMORY "plot: out of memory"
#define PLOTI_FAR 1e7 /* device coordinates are clamped here: far outside, exact in integers */

/* ---- structures ----------------------------------------------------------------------------- */

typedef struct ploti_block { /* every allocation of a figure, freed in one sweep */
    struct ploti_block *next;
    double align;
} ploti_block;

typedef struct ploti_point {
    double x, y;
} ploti_point;

typedef struct ploti_rect {
    double x0, y0, x1, y1;
} ploti_rect;

typedef struct ploti_area { /* whole pixels, x1 and y1 exclusive */
    int x0, y0, x1, y1;
} ploti_area;

enum { PLOTI_BLANK = 0, PLOTI_SHADE, PLOTI_DATA };

typedef struct ploti_canvas {
    int w, h;
    unsigned char *rgb;
    unsigned char *mask; /* coverage of the stroke being drawn */
    unsigned char
        *ink;       /* PLOTI_DATA where a legend must not go, PLOTI_SHADE where it had better not */
    int32_t *cells; /* signed area of the polygon being filled, rows of w + 2 */
    ploti_area clip, mask_dirty, cell_dirty;
    int inking; /* what is being drawn now */
} ploti_canvas;

typedef struct ploti_ticks {
    int n, minors;
    double at[PLOTI_TICKS], minor[PLOTI_TICKS * 8];
    char text[PLOTI_TICKS][PLOTI_LABEL];
} ploti_ticks;

typedef struct ploti_axis {
    int scale, fixed, tight, is_custom, upright;
    const char *label;
    double fixed_lo, fixed_hi; /* as given by the caller */
    double data_lo, data_hi;   /* what the data span, transformed */
    double lo, hi;             /* the range, transformed: log10 or log2 on log axes */
    double from, to;           /* pixels of lo and hi */
    double tick_em;
    ploti_ticks ticks, custom;
} ploti_axis;

enum { /* what a panel holds: the rows of ploti_kinds */
       PLOTI_LINE,
       PLOTI_BAND,
       PLOTI_SCATTER,
       PLOTI_ERROR,
       PLOTI_HIST,
       PLOTI_RIDGE,
       PLOTI_BAR,
       PLOTI_RULE, /* a reference line across the axes */
       PLOTI_SPAN,
       PLOTI_TEXT,
       PLOTI_TEXT_IN,
       PLOTI_NOTE,
       PLOTI_HEAT,
       PLOTI_IMAGES
};

/* Parts of a sample in a legend. */
enum { PLOTI_STROKE = 1, PLOTI_FILL = 2, PLOTI_OUTLINE = 4, PLOTI_POINTS = 8 };

/* Layers that are special, of 0 to 8: the background, and words, which may stand out. */
enum { PLOTI_SHADES = 1, PLOTI_WORDS = 8 };

typedef struct ploti_item {
    struct ploti_item *next;
    int kind, index, align;  /* index: number of the bar series or ridge row */
    const char *label, *end; /* end: a note */
    ploti_axis *axis;        /* that a rule or a span crosses */
    plot_style style;
    size_t n, rows, cols;
    double *x, *y, *lo, *hi;
    ploti_point *path; /* room for its polyline or polygon */
    const char **texts;
    ploti_rect at;   /* a place in x0 and y0, in x1 and y1 one inside the axes box; a field */
    double from, to; /* of a rule or span on its axis; of the colours of a field */
    int map, w, h;
} ploti_item;

typedef struct ploti_kind {
    int layer; /* when it is drawn */
    void (*draw)(plot_panel *p, const ploti_item *it);
    void (*see)(plot_panel *p, const ploti_item *it); /* what the axes have to show; or NULL */
    int parts, marker; /* of the sample in a legend, if any; if the style has none */
    double alpha;      /* if the style has none */
} ploti_kind;

typedef struct ploti_entry { /* one line of a legend */
    const char *label;
    plot_style style;
    int parts; /* of the sample */
    double fill_alpha;
} ploti_entry;

typedef struct ploti_legend {
    ploti_entry entry[PLOTI_ENTRIES];
    int n;
} ploti_legend;

struct plot_panel {
    plot_panel *next;
    plot_figure *fig;
    plot_axes axes;
    const char *bar_label;
    ploti_axis x, y;
    ploti_item *items, **tail;
    int index, colorbar, spot; /* spot: where the legend ended up */
    int bars, ridges, bar_decimals;
    double overlap;
    ploti_rect cell, box, legend_box; /* cell: the box before the aspect ratio shrinks it */
    double left, right, top, bottom;  /* what stands around the axes, in pixels */
    double col_left;                  /* the same left of the whole column: letters line up */
    double row_top;                   /* the same above the whole row: headings line up */
    ploti_legend entries;
};

struct plot_figure {
    ploti_canvas cv;
    ploti_block *blocks;
    plot_panel *panels, **tail;
    plot_page page; /* its texts are copies */
    int npanels, failed;
    char err[FILES_ERR_MAX + 6]; /* "plot: " and why */
    double scale;                /* of page.scale, for this width */
    ploti_legend entries;
};

/* ---- errors and memory ---------------------------------------------------------------------- */

static void ploti_fail(plot_figure *f, const char *what, const char *detail)
{
    if (!f || f->failed) return;
    f->failed = 1;
    (void)snprintf(f->err, sizeof f->err, "%s%s", what, detail);
}

/* Is it so? If not, the figure has failed, and this says why. */
static int ploti_demand(plot_figure *f, int good, const char *what)
{
    if (!good) ploti_fail(f, what, "");
    return good;
}

/* count * size zeroed bytes that live as long as the figure, or NULL with the error set */
static void *ploti_alloc(plot_figure *f, size_t count, size_t size)
{
    ploti_block *b = NULL;
    if (f->failed) return NULL;
    if (count == 0) count = 1;
    if (size <= (SIZE_MAX - sizeof *b) / count)
        b = (ploti_block *)calloc(1, sizeof *b + count * size);
    if (!ploti_demand(f, b != NULL, PLOTI_NO_MEMORY)) return NULL;
    b->next = f->blocks;
    f->blocks = b;
    return b + 1;
}

static void *ploti_copy(plot_figure *f, const void *src, size_t count, size_t size)
{
    void *dst;
    if (!ploti_demand(f, src || !count, "plot: NULL data")) return NULL;
    dst = ploti_alloc(f, count, size);
    if (dst && count) memcpy(dst, src, count * size);
    return dst;
}

static double *ploti_doubles(plot_figure *f, const double *src, size_t n)
{
    return (double *)ploti_copy(f, src, n, sizeof *src);
}

static const char *ploti_string(plot_figure *f, const char *s)
{
    return s && !f->failed ? (const char *)ploti_copy(f, s, strlen(s) + 1, 1) : NULL;
}

/* A copy in which nothing is markup: file names and commands are full of underscores. */
static const char *ploti_literal(plot_figure *f, const char *s)
{
    size_t i, n = 0, len = s ? strlen(s) : 0;
    char *out = s && len < SIZE_MAX / 2 ? (char *)ploti_alloc(f, 2 * len + 1, 1) : NULL;
    if (!out) return NULL;
    for (i = 0; i < len; i++) {
        if (strchr("^_{}\\", s[i])) out[n++] = '\\';
        out[n++] = s[i];
    }
    return out;
}

/* ---- numbers -------------------------------------------------------------------------------- */

static double ploti_clamp(double v, double lo, double hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}

static int ploti_between(int v, int lo, int hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}

static int ploti_int(double v) /* floor, held within what fits */
{
    return v == v ? (int)floor(ploti_clamp(v, -1e9, 1e9)) : 0;
}

/* log2 by its own series: the C library's last bit differs between machines */
static double ploti_log2(double v)
{
    int e, k;
    double m = frexp(v, &e), s, s2, term, sum = 0;
    if (m < 0.70710678118654752) {
        m *= 2;
        e--;
    }
    s = (m - 1) / (m + 1);
    s2 = s * s;
    for (term = s, k = 1; k < 27; k += 2, term *= s2) sum += term / k;
    return e + 2 * sum * 1.4426950408889634;
}

static double ploti_pow10(int k)
{
    double p = 1;
    int i;
    if (k < -300) return ploti_pow10(-300) / ploti_pow10(-k - 300); /* subnormal, not 1 / inf */
    for (i = 0; i < (k < 0 ? -k : k); i++) p *= 10;
    return k < 0 ? 1 / p : p;
}

static double ploti_transform(int scale, double v)
{
    if (!isfinite(v)) return PLOTI_GAP;
    if (scale == PLOT_LINEAR) return v;
    if (v <= 0) return PLOTI_GAP;
    return scale == PLOT_LOG2 ? ploti_log2(v) : ploti_log2(v) * 0.30102999566398120;
}

/* Pixel of a value: quantised, so that the last bits of the arithmetic above cannot be seen. */
static double ploti_pixel(const ploti_axis *a, double v)
{
    double t = ploti_transform(a->scale, v), px;
    if (!isfinite(t)) return PLOTI_GAP;
    px = a->from + (t - a->lo) / (a->hi - a->lo) * (a->to - a->from);
    px = px != px ? 0 : ploti_clamp(px, -PLOTI_FAR, PLOTI_FAR);
    return floor(px * 64 + 0.5) / 64;
}

/* As above, but a value that a log axis cannot show lies below its lower end: bars and bands. */
static double ploti_pixel_low(const ploti_axis *a, double v)
{
    if (a->scale != PLOT_LINEAR && v <= 0)
        return a->from + (a->from < a->to ? -PLOTI_FAR : PLOTI_FAR);
    return ploti_pixel(a, v);
}

/* v with the given decimals and thousands commas */
static void ploti_number(char *out, double v, int decimals)
{
    char digits[PLOTI_LABEL];
    const int n = snprintf(digits, sizeof digits, "%.*f", decimals, fmin(fabs(v), 1e15));
    const int whole = decimals > 0 ? n - decimals - 1 : n;
    int len = 0, i;
    if (v < 0 && strspn(digits, "0.") < (size_t)n) {
        memcpy(out, "\xE2\x88\x92", 3); /* a true minus sign */
        len = 3;
    }
    for (i = 0; i < n; i++) {
        out[len++] = digits[i];
        if (whole > 4 && i + 1 < whole && (whole - 1 - i) % 3 == 0)
            out[len++] = ','; /* 1000 stays plain, 10,000 does not */
    }
    out[len] = 0;
}

/* ---- ticks ---------------------------------------------------------------------------------- */

static int ploti_decade(double v) /* floor(log10 v), exact at the powers of ten */
{
    int k;
    v = v > 0 ? ploti_clamp(v, 1e-306, 1e306) : 1;
    k = ploti_int(ploti_log2(v) * 0.30102999566398120 + 0.5);
    while (ploti_pow10(k) > v * (1 + 1e-12)) k--;
    while (ploti_pow10(k + 1) <= v * (1 + 1e-12)) k++;
    return k;
}

/* The smallest 1-2-5 step that puts at most `most` ticks on [lo, hi]. */
static int ploti_linear_ticks(double lo, double hi, int most, double *at)
{
    static const double mult[3] = {1, 2, 5};
    double step, k;
    int decade = ploti_decade((hi - lo) / most) - 1, i = 0, n = 0;
    if (hi - lo < 1e-290) return 0;
    for (;;) {
        step = mult[i] * ploti_pow10(decade);
        if (floor(hi / step + 1e-9) - ceil(lo / step - 1e-9) + 1 <= most) break;
        i = (i + 1) % 3;
        decade += i == 0;
    }
    for (k = ceil(lo / step - 1e-9); k <= floor(hi / step + 1e-9) && n < most; k++)
        at[n++] = decade < 0 ? k * mult[i] / ploti_pow10(-decade) + 0 : k * step + 0; /* no -0 */
    return n;
}

/* Whole decades, or powers of two, when two or more fit, thinned to at most `most`; else 0. */
static int ploti_decades(double lo, double hi, int scale, int most, double *at)
{
    int a = (int)ceil(ploti_transform(scale, lo) - 1e-9), stride = 1, n = 0, k;
    const int b = (int)floor(ploti_transform(scale, hi) + 1e-9);
    if (b - a < 1) return 0;
    while ((b - a) / stride + 1 > most) stride++;
    a = (int)ceil((double)a / stride) * stride;
    for (k = a; k <= b && n < most; k += stride)
        at[n++] = scale == PLOT_LOG2 ? ldexp(1.0, k) : ploti_pow10(k);
    return n;
}

/* The multiples of powers of ten in [lo, hi] that a digit of `digits` begins, at most `most`. */
static int ploti_multiples(double lo, double hi, const char *digits, int most, double *at)
{
    const char *d;
    int k, n = 0;
    for (k = ploti_decade(lo); k <= ploti_decade(hi); k++)
        for (d = digits; *d; d++) {
            const double v = (*d - '0') * ploti_pow10(k);
            if (v >= lo && v <= hi && n < most) at[n++] = v;
        }
    return n;
}

/* At most `most` nice ticks in [lo, hi] to at[PLOTI_TICKS]: 1-2-5 steps; decades or powers of two
   on log axes. Returns how many. */
static int ploti_nice_ticks(double lo, double hi, int scale, int most, double *at)
{
    int n;
    if (!(hi > lo) || !isfinite(hi - lo) || most < 1) return 0;
    if (most > PLOTI_TICKS) most = PLOTI_TICKS;
    if (scale != PLOT_LINEAR && lo > 0) {
        n = ploti_decades(lo, hi, scale, most, at);
        if (n < 2 && scale == PLOT_LOG10) { /* about one decade: all of these, or none */
            n = ploti_multiples(lo * (1 - 1e-9), hi * (1 + 1e-9), "125", PLOTI_TICKS, at);
            if (n > most) n = 0;
        }
        if (n >= 2) return n;
    }
    return ploti_linear_ticks(lo, hi, most, at);
}

static int ploti_decimals(double v) /* the fewest that show v */
{
    int d = 0;
    while (d < 12 && fabs(v * ploti_pow10(d) - floor(v * ploti_pow10(d) + 0.5)) > 1e-6) d++;
    return d;
}

/* All with the same decimals on a linear axis; as powers of ten where a log10 axis goes far. */
static void ploti_label(ploti_ticks *t, int scale)
{
    int i, most = 0, plain = 1;
    for (i = 0; i < t->n; i++) {
        const int decimals = ploti_decimals(t->at[i]);
        if (decimals > most) most = decimals;
        plain &= scale != PLOT_LOG10 || (t->at[i] > 0.00999 && t->at[i] < 1001);
    }
    for (i = 0; i < t->n; i++) {
        const int k = ploti_decade(t->at[i]);
        const double v = t->at[i] / ploti_pow10(k);
        char base[PLOTI_LABEL / 2] = "", power[40];
        if (plain) {
            ploti_number(t->text[i], t->at[i],
                         scale == PLOT_LINEAR ? most : ploti_decimals(t->at[i]));
            continue;
        }
        if (fabs(v - 1) > 1e-9) ploti_number(base, v, ploti_decimals(v));
        ploti_number(power, k, 0);
        (void)snprintf(t->text[i], PLOTI_LABEL, "%s%s10^{%s}", base, base[0] ? "\xC2\xB7" : "",
                       power);
    }
}

/* The value at an axis end: base^t with square roots only. */
static double ploti_untransform(int scale, double t)
{
    double whole = ploti_clamp(floor(t), -1100, 1100), frac = t - floor(t), r = 1;
    double base = scale == PLOT_LOG2 ? 2 : 10;
    int i;
    if (scale == PLOT_LINEAR) return t;
    for (i = 0; i < 60; i++) { /* one bit of the fraction a turn */
        base = sqrt(base);
        frac *= 2;
        if (frac < 1) continue;
        r *= base;
        frac -= 1;
    }
    return scale == PLOT_LOG2 ? ldexp(r, (int)whole) : r * ploti_pow10((int)whole);
}

#define PLOTI_QUIET 0xFF595959u /* subtitle */
#define PLOTI_FAINT 0xFF767676u /* footer */
#define PLOTI_HAIR 0xFFE4E4E4u  /* grid lines */

/* ---- colour --------------------------------------------------------------------------------- */

static int ploti_part(plot_color c, int k) /* 0: red, 1: green, 2: blue */
{
    return (int)((c >> (16 - 8 * k)) & 255u);
}

static plot_color ploti_blend(plot_color a, plot_color b, double t) /* a at 0, b at 1 */
{
    int m = ploti_int(ploti_clamp(t, 0, 1) * 256 + 0.5), v[3], k;
    for (k = 0; k < 3; k++) v[k] = (ploti_part(a, k) * (256 - m) + ploti_part(b, k) * m + 128) >> 8;
    return PLOT_RGB(v[0], v[1], v[2]);
}

/* A colour for words: light colours are darkened until they read well on white. */
static plot_color ploti_text_color(plot_color c)
{
    int luma = 2 * ploti_part(c, 0) + 5 * ploti_part(c, 1) + ploti_part(c, 2);
    return luma > 1000 ? ploti_blend(c, PLOT_BLACK, (luma - 1000) / 1400.0 + 0.12) : c;
}

static unsigned ploti_channel(double linear) /* linear light to an sRGB byte */
{
    double v = ploti_clamp(linear, 0, 1);
    v = v <= 0.0031308 ? 12.92 * v : 1.055 * pow(v, 1 / 2.4) - 0.055;
    return (unsigned)ploti_int(v * 255 + 0.5);
}

/* Oklab (Ottosson) to sRGB: equal steps of L look like equal steps of lightness. */
static plot_color ploti_oklab(double lightness, double a, double b)
{
    double l = lightness + 0.3963377774 * a + 0.2158037573 * b;
    double m = lightness - 0.1055613458 * a - 0.0638541728 * b;
    double s = lightness - 0.0894841775 * a - 1.2914855480 * b;
    l = l * l * l;
    m = m * m * m;
    s = s * s * s;
    return PLOT_RGB(ploti_channel(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
                    ploti_channel(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
                    ploti_channel(-0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s));
}

plot_color plot_map(int map, double t)
{
    t = t == t ? ploti_clamp(t, 0, 1) : 0;
    if (map == PLOT_DIVERGING) { /* blue, white, red: lightness falls linearly to both ends */
        double u = 2 * t - 1, d = fabs(u), c = d * (1.35 - 0.35 * d);
        if (u < 0) return ploti_oklab(0.975 - 0.515 * d, -0.036 * c, -0.128 * c);
        return ploti_oklab(0.975 - 0.495 * d, 0.165 * c, 0.082 * c);
    }
    if (map == PLOT_TINTS)
        return ploti_blend(PLOT_WHITE, ploti_blend(PLOT_ORANGE, PLOT_SKY, t), 0.3);
    /* lightness is linear, the hue runs along a parabola from violet over teal to yellow */
    return ploti_oklab(0.27 + 0.65 * t, 0.08 - 0.56 * t + 0.43 * t * t,
                       -0.10 + 0.05 * t + 0.23 * t * t);
}

/* ---- styles --------------------------------------------------------------------------------- */

plot_style plot_with_marker(plot_style s, int marker)
{
    s.marker = marker;
    s.marker_every = 1;
    return s;
}

/* ---- canvas: pixels and coverage ------------------------------------------------------------ */

static const ploti_area ploti_nothing = {INT32_MAX, INT32_MAX, 0, 0};

static void ploti_grow(ploti_area *a, ploti_area by)
{
    if (by.x0 < a->x0) a->x0 = by.x0;
    if (by.y0 < a->y0) a->y0 = by.y0;
    if (by.x1 > a->x1) a->x1 = by.x1;
    if (by.y1 > a->y1) a->y1 = by.y1;
}

/* The whole pixels that x0 <= x < x1, y0 <= y < y1 touches, within `in`. */
static ploti_area ploti_within(ploti_area in, double x0, double y0, double x1, double y1)
{
    return (ploti_area){ploti_between(ploti_int(x0), in.x0, in.x1),
                        ploti_between(ploti_int(y0), in.y0, in.y1),
                        ploti_between(ploti_int(ceil(x1)), in.x0, in.x1),
                        ploti_between(ploti_int(ceil(y1)), in.y0, in.y1)};
}

static void ploti_clip(ploti_canvas *c, double x0, double y0, double x1, double y1)
{
    c->clip = ploti_within((ploti_area){0, 0, c->w, c->h}, x0, y0, x1, y1);
}

static void ploti_unclip(ploti_canvas *c)
{
    ploti_clip(c, 0, 0, c->w, c->h);
}

static size_t ploti_index(const ploti_canvas *c, int x, int y)
{
    return (size_t)y * (size_t)c->w + (size_t)x;
}

static void ploti_pixel_mix(ploti_canvas *c, int x, int y, plot_color color, int cover)
{
    size_t i = ploti_index(c, x, y);
    unsigned char *p = c->rgb + 3 * i;
    int keep = 255 - cover, k;
    for (k = 0; k < 3; k++)
        p[k] = (unsigned char)((p[k] * keep + ploti_part(color, k) * cover + 127) / 255);
    if (c->inking > c->ink[i] && cover > 3) c->ink[i] = (unsigned char)c->inking;
}

static int ploti_byte(double alpha)
{
    return ploti_int(ploti_clamp(alpha, 0, 1) * 255 + 0.5);
}

/* A rectangle with whole-pixel edges: spines, image cells, colour bars stay crisp. */
static void ploti_block_fill(ploti_canvas *c, int x0, int y0, int x1, int y1, plot_color color)
{
    const ploti_area b = ploti_within(c->clip, x0, y0, x1, y1);
    int x, y;
    for (y = b.y0; y < b.y1; y++)
        for (x = b.x0; x < b.x1; x++) ploti_pixel_mix(c, x, y, color, 255);
}

/* ---- canvas: strokes ------------------------------------------------------------------------ */

/* Coordinates with which the arithmetic below is exact enough; NaN is not. */
static int ploti_drawable(ploti_point p)
{
    return fabs(p.x) < 1e9 && fabs(p.y) < 1e9;
}

/* Cuts [*t0, *t1] to where lo <= a + t d <= hi. */
static void ploti_cut(double a, double d, double lo, double hi, double *t0, double *t1)
{
    const double u = (lo - a) / d, v = (hi - a) / d;
    if (d == 0 && (a < lo || a > hi)) *t1 = -1;
    if (d == 0) return;
    *t0 = fmax(*t0, fmin(u, v));
    *t1 = fmin(*t1, fmax(u, v));
}

/* The part of the segment inside the clip area grown by `margin`, as parameters; 0 if none. */
static int ploti_visible(const ploti_canvas *c, ploti_point a, ploti_point b, double margin,
                         double *t0, double *t1)
{
    *t0 = 0;
    *t1 = 1;
    ploti_cut(a.x, b.x - a.x, c->clip.x0 - margin, c->clip.x1 + margin, t0, t1);
    ploti_cut(a.y, b.y - a.y, c->clip.y0 - margin, c->clip.y1 + margin, t0, t1);
    return *t0 <= *t1;
}

/* Coverage of a segment with round ends, from the distance to it, united by the maximum. */
static void ploti_segment(ploti_canvas *c, ploti_point a, ploti_point z, double radius)
{
    const double r = fmax(radius, 0.5), reach = r + 0.5, outer = reach * reach, inner = r - 0.5;
    const double peak = fmin(2 * radius, 1); /* thinner than a pixel: paler, not thinner */
    double t0, t1, ax, ay, dx, dy, inverse;
    ploti_area b;
    int x, y;
    if (!ploti_drawable(a) || !ploti_drawable(z)) return;
    if (!ploti_visible(c, a, z, reach + 1, &t0, &t1)) return;
    ax = a.x + t0 * (z.x - a.x);
    ay = a.y + t0 * (z.y - a.y);
    dx = (t1 - t0) * (z.x - a.x);
    dy = (t1 - t0) * (z.y - a.y);
    inverse = dx * dx + dy * dy > 1e-12 ? 1 / (dx * dx + dy * dy) : 0;
    b = ploti_within(c->clip, fmin(ax, ax + dx) - reach, fmin(ay, ay + dy) - reach,
                     floor(fmax(ax, ax + dx) + reach) + 1, floor(fmax(ay, ay + dy) + reach) + 1);
    for (y = b.y0; y < b.y1; y++) {
        unsigned char *m = c->mask + ploti_index(c, 0, y);
        const double py = y + 0.5 - ay;
        for (x = b.x0; x < b.x1; x++) {
            const double px = x + 0.5 - ax, t = ploti_clamp((px * dx + py * dy) * inverse, 0, 1);
            const double ex = px - t * dx, ey = py - t * dy, d2 = ex * ex + ey * ey;
            int level;
            if (d2 >= outer || m[x] == 255) continue;
            level = (int)((d2 <= inner * inner ? 1 : reach - sqrt(d2)) * peak * 255 + 0.5);
            if (level > m[x]) m[x] = (unsigned char)(level > 255 ? 255 : level);
        }
    }
    if (b.x0 < b.x1 && b.y0 < b.y1) ploti_grow(&c->mask_dirty, b);
}

/* Paints what the strokes since the last flush cover, once, so that crossings do not darken. */
static void ploti_flush(ploti_canvas *c, plot_color color, double alpha)
{
    ploti_area d = c->mask_dirty;
    int x, y, a = ploti_byte(alpha);
    for (y = d.y0; y < d.y1; y++) {
        unsigned char *m = c->mask + ploti_index(c, 0, y);
        for (x = d.x0; x < d.x1; x++) {
            if (!m[x]) continue;
            ploti_pixel_mix(c, x, y, color, (m[x] * a + 127) / 255);
            m[x] = 0;
        }
    }
    c->mask_dirty = ploti_nothing;
}

static void ploti_polyline(ploti_canvas *c, const ploti_point *p, size_t n, double radius)
{
    size_t i;
    if (n == 1) ploti_segment(c, p[0], p[0], radius);
    for (i = 0; i + 1 < n; i++) ploti_segment(c, p[i], p[i + 1], radius);
}

typedef struct ploti_pattern { /* on, off, on, off in pixels, and where we are in it */
    double len[4], total, phase;
    int n;
} ploti_pattern;

static ploti_pattern ploti_dashes(int dash, double w) /* round caps add w to each dash */
{
    static const double table[4][4] = {
        {1, 0, 0, 0}, {2.7, 2.9, 0, 0}, {0.01, 2.1, 0, 0}, {3.6, 2.5, 0.01, 2.5}};
    ploti_pattern p;
    int i;
    p.n = dash == PLOT_DASHDOT ? 4 : 2;
    p.total = p.phase = 0;
    for (i = 0; i < 4; i++) {
        p.len[i] = table[ploti_between(dash, 0, 3)][i] * w;
        p.total += p.len[i];
    }
    return p;
}

static void ploti_dash_segment(ploti_canvas *c, ploti_point a, ploti_point b, double radius,
                               ploti_pattern *pat)
{
    double dx = b.x - a.x, dy = b.y - a.y, len = sqrt(dx * dx + dy * dy), t0, t1, s, end;
    if (len > 0 && ploti_visible(c, a, b, radius + 2, &t0, &t1)) {
        double at = fmod(pat->phase + t0 * len, pat->total);
        int k = 0;
        while (k + 1 < pat->n && at >= pat->len[k]) at -= pat->len[k++];
        for (s = t0 * len, end = t1 * len; s < end; k = (k + 1) % pat->n, at = 0) {
            const double next = fmin(s + fmax(pat->len[k] - at, 1e-3), end);
            const ploti_point p = {a.x + dx * (s / len), a.y + dy * (s / len)};
            const ploti_point q = {a.x + dx * (next / len), a.y + dy * (next / len)};
            if (k % 2 == 0) ploti_segment(c, p, q, radius);
            s = next;
        }
    }
    pat->phase = fmod(pat->phase + len, pat->total);
}

/* Adds a polyline in the given style to the mask; ploti_flush paints it. */
static void ploti_stroke(ploti_canvas *c, const ploti_point *p, size_t n, double width, int dash)
{
    ploti_pattern pat = ploti_dashes(dash, fmax(width, 1));
    size_t i;
    if (dash == PLOT_SOLID || n < 2)
        ploti_polyline(c, p, n, width / 2);
    else
        for (i = 0; i + 1 < n; i++) ploti_dash_segment(c, p[i], p[i + 1], width / 2, &pat);
}

static void ploti_rule(ploti_canvas *c, double x0, double y0, double x1, double y1, double width,
                       int dash, plot_color color, double alpha)
{
    const ploti_point p[2] = {{x0, y0}, {x1, y1}};
    ploti_stroke(c, p, 2, width, dash);
    ploti_flush(c, color, alpha);
}

/* ---- canvas: polygons, by exact signed area in units of 1/256 pixel ------------------------- */

/* An edge inside one row from (xa, .) to (xb, .), xa <= xb, that falls by dy: area to its right. */
static void ploti_cells(ploti_canvas *c, int row, int64_t xa, int64_t xb, int64_t dy)
{
    int32_t *cell = c->cells + (size_t)row * (size_t)(c->w + 2);
    int64_t x = xa, done = 0, next, upto, fx;
    do {
        next = (x / 256 + 1) * 256;
        if (next > xb) next = xb;
        upto = xb > xa ? dy * (next - xa) / (xb - xa) : dy;
        fx = x + next - x / 256 * 512;
        cell[x / 256] += (int32_t)((upto - done) * (512 - fx));
        cell[x / 256 + 1] += (int32_t)((upto - done) * fx);
        done = upto;
        x = next;
    } while (x < xb);
    ploti_grow(&c->cell_dirty, (ploti_area){(int)(xa / 256), row, (int)(xb / 256) + 2, row + 1});
}

/* As above for any x: left of the clip area counts at its border, right of it not at all. */
static void ploti_row_edge(ploti_canvas *c, int row, int64_t xa, int64_t xb, int64_t dy)
{
    int64_t left = (int64_t)c->clip.x0 * 256, right = (int64_t)c->clip.x1 * 256, part;
    if (xa > xb) part = xa, xa = xb, xb = part;
    if (xb <= left) xa = xb = left;
    if (xa >= right) return;
    if (xa < left) {
        part = dy * (left - xa) / (xb - xa);
        ploti_cells(c, row, left, left, part);
        dy -= part;
        xa = left;
    }
    if (xb > right) {
        dy = dy * (right - xa) / (xb - xa);
        xb = right;
    }
    ploti_cells(c, row, xa, xb, dy);
}

static int64_t ploti_fixed(double v)
{
    return (int64_t)floor(ploti_clamp(v, -4e6, 4e6) * 256 + 0.5);
}

static void ploti_edge(ploti_canvas *c, ploti_point a, ploti_point b)
{
    const int down = ploti_fixed(a.y) < ploti_fixed(b.y);
    const ploti_point top = down ? a : b, foot = down ? b : a;
    const int64_t x0 = ploti_fixed(top.x), y0 = ploti_fixed(top.y), y1 = ploti_fixed(foot.y);
    const int64_t dx = ploti_fixed(foot.x) - x0, dy = y1 - y0;
    const int64_t first = (int64_t)c->clip.y0 * 256, last = (int64_t)c->clip.y1 * 256;
    const int64_t end = y1 > last ? last : y1;
    int64_t y = y0 < first ? first : y0, ny, xa, xb;
    if (dy == 0) return;
    for (xa = x0 + dx * (y - y0) / dy; y < end; y = ny, xa = xb) {
        ny = (y / 256 + 1) * 256;
        if (ny > end) ny = end;
        xb = x0 + dx * (ny - y0) / dy;
        ploti_row_edge(c, (int)(y / 256), xa, xb, down ? ny - y : y - ny);
    }
}

static void ploti_fill_flush(ploti_canvas *c, plot_color color, double alpha)
{
    ploti_area d = c->cell_dirty;
    int x, y, a = ploti_byte(alpha);
    for (y = d.y0; y < d.y1; y++) {
        int32_t *cell = c->cells + (size_t)y * (size_t)(c->w + 2);
        int64_t sum = 0, cover;
        for (x = d.x0; x < d.x1; x++) {
            sum += cell[x];
            cell[x] = 0;
            cover = sum < 0 ? -sum : sum;
            if (cover > 131072) cover = 131072;
            cover = (cover * a + 65536) >> 17;
            if (cover > 0 && x < c->clip.x1) ploti_pixel_mix(c, x, y, color, (int)cover);
        }
    }
    c->cell_dirty = ploti_nothing;
}

static void ploti_polygon(ploti_canvas *c, const ploti_point *p, size_t n, plot_color color,
                          double alpha)
{
    size_t i;
    if (n < 3) return;
    for (i = 0; i < n; i++)
        if (!ploti_drawable(p[i])) return;
    for (i = 0; i < n; i++) ploti_edge(c, p[i], p[(i + 1) % n]);
    ploti_fill_flush(c, color, alpha);
}

static void ploti_box_fill(ploti_canvas *c, double x0, double y0, double x1, double y1,
                           plot_color color, double alpha)
{
    const ploti_point p[4] = {{x0, y0}, {x1, y0}, {x1, y1}, {x0, y1}};
    ploti_polygon(c, p, 4, color, alpha);
}

/* ---- text ----------------------------------------------------------------------------------- */

typedef struct ploti_pen {
    ploti_canvas *c;
    double x, y, radius;
    int upright; /* 1: the text runs upwards */
} ploti_pen;

static ploti_point ploti_pen_at(const ploti_pen *pen, const double *xy)
{
    const double x = pen->x + (pen->upright ? xy[1] : xy[0]);
    const double y = pen->y + (pen->upright ? -xy[0] : xy[1]);
    return (ploti_point){floor(x * 64 + 0.5) / 64, floor(y * 64 + 0.5) / 64};
}

static void ploti_pen_line(void *ctx, const double *from, const double *to)
{
    const ploti_pen *pen = (const ploti_pen *)ctx;
    ploti_segment(pen->c, ploti_pen_at(pen, from), ploti_pen_at(pen, to), pen->radius);
}

#define PLOTI_REGULAR 0.074 /* pen width / em */
#define PLOTI_BOLD 0.118

/* Strokes text with a pen at its beginning, its baseline to the pixel. */
static void ploti_write(ploti_pen pen, const char *s, double size, double weight, plot_color color,
                        double alpha)
{
    pen.x = floor(pen.x + 0.5);
    pen.y = floor(pen.y + 0.5);
    pen.radius = size * weight / 2;
    (void)font_text(s, size, ploti_pen_line, &pen);
    ploti_flush(pen.c, color, alpha);
}

/* Text with its baseline at y; align 0, 1, 2: x is the left end, the middle, the right end. */
static void ploti_put(ploti_canvas *c, double x, double y, const char *s, double size, int align,
                      double weight, plot_color color)
{
    const ploti_pen pen = {.c = c, .x = x - font_width(s, size) * align / 2, .y = y};
    ploti_write(pen, s, size, weight, color, 1);
}

/* The same with a white rim that keeps it readable on lines. */
static void ploti_put_halo(ploti_canvas *c, double x, double y, const char *s, double size,
                           int align, plot_color color)
{
    const ploti_pen pen = {.c = c, .x = x - font_width(s, size) * align / 2, .y = y};
    ploti_write(pen, s, size, PLOTI_REGULAR + 0.2, PLOT_WHITE, 0.7);
    ploti_write(pen, s, size, PLOTI_REGULAR, color, 1);
}

/* The same upwards, its middle at y. */
static void ploti_put_up(ploti_canvas *c, double x, double y, const char *s, double size)
{
    const ploti_pen pen = {.c = c, .x = x, .y = y + font_width(s, size) / 2, .upright = 1};
    ploti_write(pen, s, size, PLOTI_REGULAR, PLOT_INK, 1);
}

/* The size at which s is no wider than room, but not below 0.55 of the wish. */
static double ploti_fit(const char *s, double size, double room)
{
    double w = font_width(s, size);
    return w > room && w > 0 ? size * fmax(room / w, 0.55) : size;
}

/* Wraps s to `room`, draws it if c is given, and returns the height used. */
static double ploti_wrap(plot_figure *f, ploti_canvas *c, double x, double y, double room,
                         const char *s, double size, double weight, double pitch, plot_color color)
{
    double used = 0, em = size;
    char *line = s ? (char *)ploti_alloc(f, strlen(s) + 1, 1) : NULL;
    size_t len;
    while (line && *s) { /* one line per turn */
        size_t good = 0;
        for (len = 0; s[len];) { /* whole words while they fit */
            size_t end = len;
            while (s[end] == ' ') end++;
            while (s[end] && s[end] != ' ') end++;
            memcpy(line, s, end);
            line[end] = 0;
            if (good && font_width(line, em) > room) break;
            good = len = end;
        }
        memcpy(line, s, good);
        line[good] = 0;
        if (c) ploti_put(c, x, y + used + 0.7 * em, line, em, 0, weight, color);
        used += pitch * em;
        for (s += good; *s == ' '; s++) continue;
    }
    return used;
}

/* ---- markers -------------------------------------------------------------------------------- */

/* Outlines of the filled markers as multiples of the radius, equal-looking areas; of the others
   two strokes. */
static const struct {
    size_t n;
    ploti_point p[4];
} ploti_shapes[] = {
    [PLOT_SQUARE] = {4, {{-0.87, -0.87}, {0.87, -0.87}, {0.87, 0.87}, {-0.87, 0.87}}},
    [PLOT_TRIANGLE] = {3, {{0, -1.25}, {1.13, 0.75}, {-1.13, 0.75}}},
    [PLOT_DIAMOND] = {4, {{0, -1.28}, {1.28, 0}, {0, 1.28}, {-1.28, 0}}},
    [PLOT_WEDGE] = {3, {{0, 1.25}, {-1.13, -0.75}, {1.13, -0.75}}},
    [PLOT_CROSS] = {4, {{-0.85, -0.85}, {0.85, 0.85}, {-0.85, 0.85}, {0.85, -0.85}}},
    [PLOT_PLUS] = {4, {{-1.15, 0}, {1.15, 0}, {0, 1.15}, {0, -1.15}}}};

static void ploti_disc(ploti_canvas *c, double x, double y, double r, plot_color color,
                       double alpha)
{
    const ploti_point p = {x, y};
    ploti_segment(c, p, p, r);
    ploti_flush(c, color, alpha);
}

static void ploti_shape(ploti_canvas *c, double x, double y, double r, int marker, plot_color color,
                        double alpha)
{
    const size_t n = ploti_shapes[marker].n;
    ploti_point p[4] = {{0}}; /* gcc 12 cannot see that n is never 0 */
    size_t i;
    for (i = 0; i < n; i++) {
        p[i].x = x + r * ploti_shapes[marker].p[i].x;
        p[i].y = y + r * ploti_shapes[marker].p[i].y;
    }
    if (marker == PLOT_CROSS || marker == PLOT_PLUS) {
        for (i = 0; i < n; i += 2) ploti_segment(c, p[i], p[i + 1], 0.31 * r);
        ploti_flush(c, color, alpha);
    } else {
        ploti_polygon(c, p, n, color, alpha);
    }
}

/* rim: width of the white edge that parts overlapping markers */
static void ploti_marker(ploti_canvas *c, double x, double y, double r, int marker, double rim,
                         plot_color color, double alpha)
{
    if (marker == PLOT_RING) {
        ploti_disc(c, x, y, r * 1.1, color, alpha);
        ploti_disc(c, x, y, r * 0.62, PLOT_WHITE, 1);
    } else if (marker == PLOT_CIRCLE) {
        ploti_disc(c, x, y, r + rim, PLOT_WHITE, alpha);
        ploti_disc(c, x, y, r, color, alpha);
    } else {
        if (marker != PLOT_CROSS && marker != PLOT_PLUS)
            ploti_shape(c, x, y, r + 1.4 * rim, marker, PLOT_WHITE, alpha);
        ploti_shape(c, x, y, r, marker, color, alpha);
    }
}

/* ---- building a figure ---------------------------------------------------------------------- */

static void ploti_relative(plot_figure *f, double *rel)
{
    int i;
    for (i = 0; i < PLOT_GRID_MAX; i++) {
        if (rel[i] == 0) rel[i] = 1;
        (void)ploti_demand(f, rel[i] > 0 && rel[i] < 1e6, "plot: relative sizes must be positive");
    }
}

plot_figure *plot_new_page(plot_page page)
{
    const int w = page.width, h = page.height;
    plot_figure *f = (plot_figure *)calloc(1, sizeof *f);
    if (!f) return NULL;
    f->tail = &f->panels;
    f->page = page;
    (void)ploti_demand(f,
                       w >= 32 && h >= 32 && w <= PLOTI_SIDE_MAX && h <= PLOTI_SIDE_MAX &&
                           w <= PLOTI_AREA_MAX / h,
                       "plot: the size of the page must be 32..16384 pixels a side, "
                       "40 million in all");
    f->cv.w = w;
    f->cv.h = h;
    if (page.scale == 0) f->page.scale = 1;
    (void)ploti_demand(f, f->page.scale >= 0.1 && f->page.scale <= 10,
                       "plot: the scale must be 0.1..10");
    ploti_relative(f, f->page.widths);
    ploti_relative(f, f->page.heights);
    f->page.title = ploti_string(f, page.title);
    f->page.subtitle = ploti_string(f, page.subtitle);
    f->page.footer = ploti_literal(f, page.footer);
    return f;
}

void plot_free(plot_figure *f)
{
    ploti_block *b, *next;
    if (!f) return;
    for (b = f->blocks; b; b = next) {
        next = b->next;
        free(b);
    }
    free(f);
}

const char *plot_error(const plot_figure *f)
{
    return f ? f->err : PLOTI_NO_MEMORY;
}

static int ploti_open(plot_panel *p) /* may this call change the panel? */
{
    return p && !p->fig->failed;
}

void plot_heading(plot_panel *p, const char *text)
{
    if (ploti_open(p)) p->axes.heading = ploti_string(p->fig, text);
}

static void ploti_set_axis(plot_panel *p, ploti_axis *a, const char *label, int scale,
                           const double range[2])
{
    a->label = ploti_string(p->fig, label);
    a->scale = scale;
    a->fixed = range[0] != range[1];
    a->fixed_lo = range[0];
    a->fixed_hi = range[1];
    (void)ploti_demand(p->fig, isfinite(range[1] - range[0]), "plot: an axis range must be finite");
}

static void ploti_set_ticks(plot_panel *p, ploti_axis *a, const double *at,
                            const char *const *labels, int n)
{
    int i;
    if (!ploti_demand(p->fig, n >= 0 && n <= PLOTI_TICKS, "plot: at most 64 ticks on an axis"))
        return;
    memset(&a->custom, 0, sizeof a->custom);
    for (i = 0; i < n; i++) {
        a->custom.at[i] = at[i];
        if (labels && labels[i]) (void)snprintf(a->custom.text[i], PLOTI_LABEL, "%s", labels[i]);
    }
    a->custom.n = n;
    a->is_custom = 1;
}

void plot_ticks_x(plot_panel *p, const double *at, const char *const *labels, int n)
{
    if (ploti_open(p)) ploti_set_ticks(p, &p->x, at, labels, n);
}

void plot_ticks_y(plot_panel *p, const double *at, const char *const *labels, int n)
{
    if (ploti_open(p)) ploti_set_ticks(p, &p->y, at, labels, n);
}

void plot_categories(plot_panel *p, const char *const *names, int n)
{
    double at[PLOTI_TICKS];
    int i;
    for (i = 0; i < n && i < PLOTI_TICKS; i++) at[i] = i;
    plot_ticks_x(p, at, names, n);
}

plot_panel *plot_place_axes(plot_figure *f, plot_axes a)
{
    plot_panel *p;
    if (!f || f->failed) return NULL;
    if (a.rows == 0) a.rows = 1;
    if (a.cols == 0) a.cols = 1;
    if (!ploti_demand(f,
                      a.row >= 0 && a.col >= 0 && a.rows > 0 && a.cols > 0 &&
                          a.rows <= PLOT_GRID_MAX - a.row && a.cols <= PLOT_GRID_MAX - a.col,
                      "plot: a panel must lie within a grid of 16 x 16"))
        return NULL;
    p = (plot_panel *)ploti_alloc(f, 1, sizeof *p);
    if (!p) return NULL;
    p->fig = f;
    p->axes = a;
    p->index = f->npanels++;
    p->tail = &p->items;
    p->bar_decimals = -1;
    p->overlap = a.overlap > 0 ? ploti_clamp(a.overlap, 0.1, 100) : 2.2;
    p->y.upright = 1;
    ploti_set_axis(p, &p->x, a.x, a.x_scale, a.x_range);
    ploti_set_axis(p, &p->y, a.y, a.y_scale, a.y_range);
    plot_heading(p, a.heading);
    if (a.x_ticks) plot_ticks_x(p, a.x_ticks, a.x_names, a.x_count);
    if (a.y_ticks) plot_ticks_y(p, a.y_ticks, a.y_names, a.y_count);
    *f->tail = p;
    f->tail = &p->next;
    return p;
}

void plot_bar_values(plot_panel *p, int decimals)
{
    if (ploti_open(p)) p->bar_decimals = ploti_between(decimals, -1, 9);
}

void plot_colorbar(plot_panel *p, const char *label)
{
    if (!ploti_open(p)) return;
    p->colorbar = 1;
    p->bar_label = ploti_string(p->fig, label);
}

/* ---- ranges of data ------------------------------------------------------------------------- */

static void ploti_see(ploti_axis *a, double v)
{
    double t = ploti_transform(a->scale, v);
    if (!isfinite(t)) return;
    t = ploti_clamp(t, -PLOTI_LIMIT, PLOTI_LIMIT); /* so that ranges are finite too */
    if (t < a->data_lo) a->data_lo = t;
    if (t > a->data_hi) a->data_hi = t;
}

static void ploti_see_all(ploti_axis *a, const double *v, size_t n)
{
    size_t i;
    for (i = 0; i < n; i++) ploti_see(a, v[i]);
}

/* ---- marks ---------------------------------------------------------------------------------- */

static ploti_item *ploti_push(plot_panel *p, int kind, const char *label, plot_style style)
{
    ploti_item *it = ploti_open(p) ? (ploti_item *)ploti_alloc(p->fig, 1, sizeof *it) : NULL;
    if (!it) return NULL;
    it->kind = kind;
    it->style = style;
    if (label && *label) it->label = ploti_string(p->fig, label);
    *p->tail = it;
    p->tail = &it->next;
    return it;
}

static const ploti_kind *ploti_kind_of(const ploti_item *it);

/* What has numbers, with the usual opacity and marker of its kind. */
static ploti_item *ploti_series(plot_panel *p, int kind, const char *label, plot_style style,
                                size_t n, const double *x, const double *y, const double *lo,
                                const double *hi)
{
    const int two_ends = kind == PLOTI_BAND || kind == PLOTI_ERROR;
    ploti_item *it = ploti_push(p, kind, label, style);
    if (!it) return NULL;
    it->n = n;
    if (kind != PLOTI_BAR) it->x = ploti_doubles(p->fig, x, n + (kind == PLOTI_HIST && n > 0));
    it->y = ploti_doubles(p->fig, y, n);
    it->path = (ploti_point *)ploti_alloc(p->fig, n + 2, 2 * sizeof *it->path);
    if (two_ends) it->lo = ploti_doubles(p->fig, lo, n);
    if (two_ends || hi) it->hi = ploti_doubles(p->fig, hi, n);
    if (style.alpha <= 0) it->style.alpha = ploti_kind_of(it)->alpha;
    if (!style.marker) it->style.marker = ploti_kind_of(it)->marker;
    return p->fig->failed ? NULL : it;
}

void plot_line(plot_panel *p, const char *label, const double *x, const double *y, size_t n,
               plot_style s)
{
    (void)ploti_series(p, PLOTI_LINE, label, s, n, x, y, NULL, NULL);
}

void plot_band(plot_panel *p, const char *label, const double *x, const double *lo,
               const double *hi, size_t n, plot_style s)
{
    (void)ploti_series(p, PLOTI_BAND, label, s, n, x, lo, lo, hi);
}

void plot_mean_band(plot_panel *p, const char *label, const double *x, const double *mean,
                    const double *sd, size_t n, plot_style s)
{
    plot_style band = s;
    ploti_item *it;
    size_t i;
    band.alpha = 0;
    it = ploti_series(p, PLOTI_BAND, label, band, n, x, mean, mean, sd);
    for (i = 0; it && i < n; i++) {
        it->lo[i] = mean[i] - sd[i];
        it->hi[i] = mean[i] + sd[i];
    }
    plot_line(p, label, x, mean, n, s);
}

void plot_scatter(plot_panel *p, const char *label, const double *x, const double *y, size_t n,
                  plot_style s)
{
    (void)ploti_series(p, PLOTI_SCATTER, label, s, n, x, y, NULL, NULL);
}

void plot_errorbars(plot_panel *p, const char *label, const double *x, const double *y,
                    const double *lo, const double *hi, size_t n, plot_style s)
{
    (void)ploti_series(p, PLOTI_ERROR, label, s, n, x, y, lo, hi);
}

void plot_hist(plot_panel *p, const char *label, const double *edges, const double *heights,
               size_t bins, plot_style s)
{
    (void)ploti_series(p, PLOTI_HIST, label, s, bins, edges, heights, NULL, NULL);
}

void plot_ridge(plot_panel *p, const char *name, const double *x, const double *density, size_t n,
                plot_style s)
{
    ploti_item *it = ploti_series(p, PLOTI_RIDGE, name, s, n, x, density, NULL, NULL);
    if (it) it->index = p->ridges++;
}

void plot_bars(plot_panel *p, const char *label, const double *value, const double *error, size_t n,
               plot_style s)
{
    ploti_item *it = ploti_series(p, PLOTI_BAR, label, s, n, NULL, value, NULL, error);
    if (it) it->index = p->bars++;
}

static void ploti_cross(plot_panel *p, int kind, ploti_axis *axis, double from, double to,
                        const char *note, plot_style s)
{
    ploti_item *it = ploti_push(p, kind, NULL, s);
    if (!it) return;
    it->axis = axis;
    it->from = from;
    it->to = to;
    it->end = ploti_string(p->fig, note);
}

void plot_hline(plot_panel *p, double y, const char *note, plot_style s)
{
    if (p) ploti_cross(p, PLOTI_RULE, &p->y, y, y, note, s);
}

void plot_vline(plot_panel *p, double x, const char *note, plot_style s)
{
    if (p) ploti_cross(p, PLOTI_RULE, &p->x, x, x, note, s);
}

void plot_span_x(plot_panel *p, double x0, double x1, plot_style s)
{
    if (p) ploti_cross(p, PLOTI_SPAN, &p->x, x0, x1, NULL, s);
}

void plot_span_y(plot_panel *p, double y0, double y1, plot_style s)
{
    if (p) ploti_cross(p, PLOTI_SPAN, &p->y, y0, y1, NULL, s);
}

static void ploti_words(plot_panel *p, int kind, ploti_rect at, const char *text, int align,
                        plot_color color)
{
    ploti_item *it = ploti_push(p, kind, NULL, plot_solid(color ? color : PLOT_INK));
    if (!it) return;
    it->at = at;
    it->align = align;
    it->end = ploti_string(p->fig, text);
}

void plot_text(plot_panel *p, double x, double y, const char *text, int align, plot_color color)
{
    ploti_words(p, PLOTI_TEXT, (ploti_rect){x, y, 0, 0}, text, align, color);
}

void plot_text_in(plot_panel *p, double fx, double fy, const char *text, int align,
                  plot_color color)
{
    ploti_words(p, PLOTI_TEXT_IN, (ploti_rect){0, 0, fx, fy}, text, align, color);
}

void plot_note(plot_panel *p, double x, double y, double fx, double fy, const char *text,
               plot_color color)
{
    ploti_words(p, PLOTI_NOTE, (ploti_rect){x, y, fx, fy}, text, PLOT_CENTER, color);
}

/* The colours of a field span its numbers. */
static void ploti_heat_range(ploti_item *it)
{
    ploti_axis a = {.data_lo = PLOTI_HUGE, .data_hi = -PLOTI_HUGE};
    ploti_see_all(&a, it->y, it->n);
    it->from = a.data_lo;
    it->to = a.data_hi;
    if (a.data_lo < a.data_hi) return;
    it->from = isfinite(a.data_lo) ? a.data_lo - 0.5 : 0; /* nothing, or one value everywhere */
    it->to = it->from + 1;
}

void plot_heat(plot_panel *p, const double *v, size_t rows, size_t cols, double x0, double x1,
               double y0, double y1, int map, double lo, double hi)
{
    ploti_item *it;
    if (!ploti_open(p) ||
        !ploti_demand(p->fig,
                      isfinite(x0 + x1) && isfinite(y0 + y1) && x0 != x1 && y0 != y1 &&
                          rows <= 1000000 && cols <= 1000000,
                      "plot: a field needs a finite rectangle and at most 10^6 rows or columns"))
        return;
    it = ploti_push(p, PLOTI_HEAT, NULL, plot_solid(0));
    if (!it) return;
    it->rows = rows;
    it->cols = cols;
    it->n = rows * cols;
    it->at = (ploti_rect){x0, y0, x1, y1};
    it->map = map;
    it->y = ploti_doubles(p->fig, v, it->n);
    it->from = lo;
    it->to = hi;
    if (it->y && (!(lo < hi) || !isfinite(hi - lo))) ploti_heat_range(it);
}

void plot_images(plot_panel *p, const unsigned char *grey, size_t count, int w, int h, int columns,
                 const char *const *captions, int paper)
{
    ploti_item *it;
    size_t i;
    if (!ploti_open(p) || !ploti_demand(p->fig, grey || !count, "plot: NULL data") ||
        !ploti_demand(p->fig,
                      w >= 1 && h >= 1 && w <= PLOTI_SIDE_MAX && h <= PLOTI_SIDE_MAX &&
                          columns >= 1 && count <= (size_t)PLOTI_AREA_MAX / ((size_t)w * (size_t)h),
                      "plot: images need a size of at least 1 x 1 and 40 million pixels at most"))
        return;
    it = ploti_push(p, PLOTI_IMAGES, NULL, plot_solid(0));
    if (!it) return;
    it->n = count;
    it->w = w;
    it->h = h;
    it->cols = count < (size_t)columns && count > 0 ? count : (size_t)columns;
    it->rows = (count + it->cols - 1) / it->cols;
    it->map = paper;
    it->y = (double *)ploti_alloc(p->fig, count * (size_t)w * (size_t)h, sizeof *it->y);
    for (i = 0; it->y && i < count * (size_t)w * (size_t)h; i++) it->y[i] = grey[i];
    if (captions) it->texts = (const char **)ploti_alloc(p->fig, count, sizeof *it->texts);
    for (i = 0; it->texts && i < count; i++) it->texts[i] = ploti_string(p->fig, captions[i]);
}

/* ---- ranges of the axes --------------------------------------------------------------------- */

/* With a fixed x range, y follows what shows. */
static int ploti_in_view(const ploti_axis *x, double v)
{
    return !x->fixed ||
           (v >= fmin(x->fixed_lo, x->fixed_hi) && v <= fmax(x->fixed_lo, x->fixed_hi));
}

static void ploti_see_series(plot_panel *p, const ploti_item *it)
{
    size_t i;
    for (i = 0; i < it->n; i++) {
        if (!isfinite(it->y[i]) || !isfinite(it->x[i])) continue;
        ploti_see(&p->x, it->x[i]);
        if (!ploti_in_view(&p->x, it->x[i])) continue;
        ploti_see(&p->y, it->y[i]);
        if (it->lo) {
            ploti_see(&p->y, it->lo[i]);
            ploti_see(&p->y, it->hi[i]);
        }
    }
}

static void ploti_see_hist(plot_panel *p, const ploti_item *it)
{
    if (it->n == 0) return;
    ploti_see_all(&p->x, it->x, it->n + 1);
    ploti_see_all(&p->y, it->y, it->n);
    ploti_see(&p->y, 0);
}

static void ploti_see_bars(plot_panel *p, const ploti_item *it)
{
    size_t i;
    ploti_see_all(&p->y, it->y, it->n);
    for (i = 0; it->hi && i < it->n; i++) {
        ploti_see(&p->y, it->y[i] + it->hi[i]);
        ploti_see(&p->y, it->y[i] - it->hi[i]);
    }
    ploti_see(&p->y, 0);
    ploti_see(&p->x, -0.5);
    ploti_see(&p->x, (double)(it->n ? it->n : 1) - 0.5);
    p->x.tight = 1;
}

static void ploti_see_ridge(plot_panel *p, const ploti_item *it)
{
    ploti_see_all(&p->x, it->x, it->n);
    ploti_see(&p->y, -0.25);
    ploti_see(&p->y, p->ridges - 1 + p->overlap * 1.04);
    p->y.tight = 1;
}

static void ploti_see_rule(plot_panel *p, const ploti_item *it)
{
    (void)p;
    ploti_see(it->axis, it->from);
}

static void ploti_see_heat(plot_panel *p, const ploti_item *it)
{
    const double ends[4] = {it->at.x0, it->at.x1, it->at.y0, it->at.y1};
    ploti_see_all(&p->x, ends, 2);
    ploti_see_all(&p->y, ends + 2, 2);
    p->x.tight = p->y.tight = 1;
}

static void ploti_pad(ploti_axis *a, double pad)
{
    double lo = a->data_lo, hi = a->data_hi, d;
    if (!(lo <= hi)) {
        lo = 0;
        hi = 1;
    } else if (hi - lo <= 1e-12 * fmax(fabs(lo), fabs(hi))) { /* constant */
        d = a->scale != PLOT_LINEAR ? 0.5 : lo != 0 ? 0.1 * fabs(lo) : 1;
        lo -= d;
        hi += d;
    } else if (!a->tight) {
        d = pad * (hi - lo);
        /* an axis of non-negative data starts at zero rather than below it */
        lo = a->scale == PLOT_LINEAR && lo >= 0 && lo - d < 0 ? 0 : lo - d;
        hi = a->scale == PLOT_LINEAR && hi <= 0 && hi + d > 0 ? 0 : hi + d;
    }
    a->lo = lo;
    a->hi = hi;
}

static void ploti_settle(plot_figure *f, ploti_axis *a, double pad)
{
    if (!a->fixed) {
        ploti_pad(a, pad);
        return;
    }
    a->lo = ploti_transform(a->scale, a->fixed_lo);
    a->hi = ploti_transform(a->scale, a->fixed_hi);
    (void)ploti_demand(f, isfinite(a->lo) && isfinite(a->hi),
                       "plot: the range of a log axis must be positive");
}

/* The panels from this one on that share their range of y: what the data of all of them span. */
static void ploti_unite(plot_panel *first)
{
    plot_panel *p;
    for (p = first->next; p && p->axes.share_y; p = p->next) {
        first->y.data_lo = fmin(first->y.data_lo, p->y.data_lo);
        first->y.data_hi = fmax(first->y.data_hi, p->y.data_hi);
    }
    for (p = first->next; p && p->axes.share_y; p = p->next) {
        p->y.data_lo = first->y.data_lo;
        p->y.data_hi = first->y.data_hi;
    }
}

static const ploti_item *ploti_find(const plot_panel *p, int kind)
{
    const ploti_item *it = p->items;
    while (it && it->kind != kind) it = it->next;
    return it;
}

static void ploti_ranges(plot_figure *f)
{
    plot_panel *p;
    const ploti_item *it;
    for (p = f->panels; p; p = p->next) {
        p->x.data_lo = p->y.data_lo = PLOTI_HUGE;
        p->x.data_hi = p->y.data_hi = -PLOTI_HUGE;
        p->x.tight = p->y.tight = 0;
        for (it = p->items; it; it = it->next)
            if (ploti_kind_of(it)->see) ploti_kind_of(it)->see(p, it);
    }
    for (p = f->panels; p; p = p->next)
        if (!p->axes.share_y) ploti_unite(p);
    for (p = f->panels; p; p = p->next) {
        ploti_settle(f, &p->x, ploti_find(p, PLOTI_SCATTER) ? 0.04 : 0.02);
        ploti_settle(f, &p->y, p->bars && p->bar_decimals >= 0 ? 0.13 : 0.05);
    }
}

/* ---- ticks of an axis, as many as fit ------------------------------------------------------- */

/* The em of each kind of text at scale 1, in tenths of a pixel. */
enum {
    PLOTI_EM_TICK = 260,
    PLOTI_EM_LABEL = 285,
    PLOTI_EM_LEGEND = 265,
    PLOTI_EM_NOTE = 250,
    PLOTI_EM_HEADING = 300,
    PLOTI_EM_TITLE = 410,
    PLOTI_EM_SUBTITLE = 275,
    PLOTI_EM_FOOTER = 210
};

/* No text is smaller than that of a footer at scale 1: 11 px on a page shown 838 px wide. */
static double ploti_em(const plot_figure *f, int tenths)
{
    return fmax(f->scale * (tenths / 10.0), 21 * f->cv.w / 1600.0);
}

/* The rows' names; `lines`: how many lines of text the axis is high. */
static void ploti_ridge_ticks(const plot_panel *p, ploti_ticks *t, double lines)
{
    const ploti_item *it;
    int every = 1 + ploti_int(1.05 * (p->ridges + p->overlap) / fmax(lines, 1));
    for (it = p->items; it; it = it->next) {
        if (it->kind != PLOTI_RIDGE || t->n >= PLOTI_TICKS || !it->label) continue;
        if (it->index % every != 0) continue;
        t->at[t->n] = p->ridges - 1 - it->index;
        (void)snprintf(t->text[t->n++], PLOTI_LABEL, "%s", it->label);
    }
}

static void ploti_auto_ticks(const ploti_axis *a, ploti_ticks *t, int most)
{
    const double lo = ploti_untransform(a->scale, fmin(a->lo, a->hi));
    const double hi = ploti_untransform(a->scale, fmax(a->lo, a->hi));
    /* 2 ... 9 only where a decade has room for them */
    const int room = fabs((a->to - a->from) / (a->hi - a->lo)) >= 1.6 * a->tick_em;
    t->n = ploti_nice_ticks(lo, hi, a->scale, most, t->at);
    ploti_label(t, a->scale);
    if (a->scale == PLOT_LOG10 && t->n > 0 && ploti_decade(hi) - ploti_decade(lo) <= 24)
        t->minors = ploti_multiples(lo, hi, room ? "123456789" : "1", 8 * PLOTI_TICKS, t->minor);
}

/* Do the labels along x keep a distance from each other? */
static int ploti_apart(const ploti_axis *a, double em)
{
    const double gap = a->is_custom ? 0.4 : a->scale == PLOT_LINEAR ? 1.1 : 0.75;
    double last = -PLOTI_HUGE;
    int i, down = a->to < a->from || a->hi < a->lo;
    for (i = 0; i < a->ticks.n; i++) {
        int k = down ? a->ticks.n - 1 - i : i;
        double w = font_width(a->ticks.text[k], em), x = ploti_pixel(a, a->ticks.at[k]);
        if (!isfinite(x) || !a->ticks.text[k][0]) continue;
        if (x - w / 2 < last) return 0;
        last = x + w / 2 + gap * em;
    }
    return 1;
}

static void ploti_make_ticks(plot_panel *p, ploti_axis *a)
{
    double em = ploti_em(p->fig, PLOTI_EM_TICK), len = fabs(a->to - a->from);
    int most = ploti_between(ploti_int(len / ((a->upright ? 2.2 : 1.9) * em)), 2,
                             a->scale == PLOT_LINEAR ? 8 : 12);
    a->tick_em = em;
    for (;; most--) {
        memset(&a->ticks, 0, sizeof a->ticks);
        if (a->is_custom)
            a->ticks = a->custom;
        else if (a->upright && p->ridges)
            ploti_ridge_ticks(p, &a->ticks, len / em);
        else
            ploti_auto_ticks(a, &a->ticks, most);
        if (a->upright || ploti_apart(a, a->tick_em)) return;
        if (a->is_custom) {
            a->tick_em *= 0.95; /* names cannot be left out: write them smaller */
            if (a->tick_em < 0.6 * em) return;
        } else if (most <= 2) {
            return;
        }
    }
}

static double ploti_widest(const ploti_axis *a)
{
    double w = 0;
    int i;
    for (i = 0; i < a->ticks.n; i++) w = fmax(w, font_width(a->ticks.text[i], a->tick_em));
    return w;
}

/* ---- legends -------------------------------------------------------------------------------- */

static void ploti_collect(ploti_legend *l, const plot_panel *p)
{
    const ploti_item *it;
    for (it = p->items; it; it = it->next) {
        const int parts = ploti_kind_of(it)->parts;
        ploti_entry *e = l->entry;
        if (!it->label || !parts) continue;
        while (e < l->entry + l->n && strcmp(e->label, it->label) != 0) e++;
        if (e == l->entry + PLOTI_ENTRIES) continue;
        if (e == l->entry + l->n) {
            *e = (ploti_entry){.label = it->label, .style = it->style};
            l->n++;
        }
        if (it->kind != PLOTI_BAND) e->style = it->style;
        if (it->kind == PLOTI_ERROR) e->style.dash = PLOT_SOLID;
        if (parts & PLOTI_FILL) e->fill_alpha = it->style.alpha;
        e->parts |= parts;
    }
}

static double ploti_line_px(const plot_figure *f, const plot_style *s)
{
    return 3.1 * f->scale * (s->width > 0 ? s->width : 1);
}

static double ploti_marker_px(const plot_figure *f, const plot_style *s)
{
    return 6.3 * f->scale * (s->size > 0 ? s->size : 1);
}

static double ploti_opacity(const plot_style *s, double usual)
{
    return s->alpha > 0 ? fmin(s->alpha, 1) : usual;
}

/* The most important thing that has been drawn in a box. */
static int ploti_covers_ink(const plot_figure *f, const ploti_rect *b, double margin)
{
    const ploti_area whole = {0, 0, f->cv.w, f->cv.h};
    const ploti_area a = ploti_within(whole, b->x0 - margin, b->y0 - margin,
                                      floor(b->x1 + margin) + 1, floor(b->y1 + margin) + 1);
    int x, y, most = 0;
    for (y = a.y0; y < a.y1; y++)
        for (x = a.x0; x < a.x1; x++) {
            const int ink = f->cv.ink[ploti_index(&f->cv, x, y)];
            if (ink > most) most = ink;
        }
    return most;
}

/* The sample in front of the names: a bare marker needs less room than a line. */
static double ploti_handle_width(const ploti_legend *l, double em)
{
    int i;
    for (i = 0; i < l->n; i++)
        if (l->entry[i].parts != PLOTI_POINTS) return 2.1 * em;
    return 0.8 * em;
}

static void ploti_handle(plot_figure *f, const ploti_entry *e, double x, double x1, double y,
                         double em)
{
    ploti_canvas *c = &f->cv;
    double w = ploti_line_px(f, &e->style), h = 0.36 * em;
    double alpha = ploti_opacity(&e->style, 1);
    if (e->parts & PLOTI_FILL)
        ploti_box_fill(c, x, y - h, x1, y + h, e->style.color, e->fill_alpha);
    if (e->parts & PLOTI_OUTLINE) {
        const double l = x + w / 2, r = x1 - w / 2;
        const ploti_point p[5] = {{l, y - h}, {r, y - h}, {r, y + h}, {l, y + h}, {l, y - h}};
        ploti_stroke(c, p, 5, 0.8 * w, e->style.dash);
        ploti_flush(c, e->style.color, 1);
    }
    if (e->parts & PLOTI_STROKE)
        ploti_rule(c, x + w / 2, y, x1 - w / 2, y, w, e->style.dash, e->style.color,
                   fmax(alpha, 0.6));
    if (e->style.marker && e->parts & (PLOTI_POINTS | PLOTI_STROKE))
        ploti_marker(c, (x + x1) / 2, y, ploti_marker_px(f, &e->style), e->style.marker,
                     1.2 * f->scale, e->style.color, fmax(alpha, 0.85));
}

typedef struct ploti_flow { /* a legend laid out in rows and columns */
    int columns, even;      /* even: columns of one width; a single row needs none */
    double em, pitch, handle, widest, w, h;
} ploti_flow;

static double ploti_entry_width(const ploti_flow *o, const ploti_entry *e)
{
    return o->handle + 0.5 * o->em + font_width(e->label, o->em);
}

#define PLOTI_BETWEEN 1.4 /* em between two columns */

static ploti_flow ploti_flow_columns(const plot_figure *f, const ploti_legend *l, int columns)
{
    ploti_flow o;
    int i;
    memset(&o, 0, sizeof o);
    o.em = ploti_em(f, PLOTI_EM_LEGEND);
    o.pitch = 1.42 * o.em;
    o.handle = ploti_handle_width(l, o.em);
    o.columns = ploti_between(columns, 1, l->n > 0 ? l->n : 1);
    if (o.columns < l->n) { /* no column without entries */
        int rows = (l->n + o.columns - 1) / o.columns;
        o.columns = (l->n + rows - 1) / rows;
        o.even = 1;
    }
    for (i = 0; i < l->n; i++) {
        double one = ploti_entry_width(&o, &l->entry[i]);
        o.widest = fmax(o.widest, one);
        o.w += one + (i ? PLOTI_BETWEEN * o.em : 0);
    }
    if (o.even) o.w = o.columns * (o.widest + PLOTI_BETWEEN * o.em) - PLOTI_BETWEEN * o.em;
    o.h = ((l->n + o.columns - 1) / o.columns) * o.pitch;
    return o;
}

/* As many columns as `room` holds. */
static ploti_flow ploti_flow_wide(const plot_figure *f, const ploti_legend *l, double room)
{
    int columns = l->n;
    ploti_flow o = ploti_flow_columns(f, l, columns);
    while (o.w > room && columns > 1) o = ploti_flow_columns(f, l, --columns);
    return o;
}

static ploti_flow ploti_flow_of(const plot_panel *p, int spot)
{
    if (spot == PLOT_LEGEND_ABOVE)
        return ploti_flow_wide(p->fig, &p->entries, p->box.x1 - p->box.x0);
    return ploti_flow_columns(p->fig, &p->entries, 1);
}

static void ploti_draw_flow(plot_figure *f, const ploti_legend *l, const ploti_flow *o, double x,
                            double y)
{
    double at = x;
    int i, rows = (l->n + o->columns - 1) / o->columns;
    for (i = 0; i < l->n; i++) { /* down the columns */
        double cy = y + (i % rows + 0.5) * o->pitch;
        if (o->even) at = x + (i / rows) * (o->widest + PLOTI_BETWEEN * o->em);
        ploti_handle(f, &l->entry[i], at, at + o->handle, cy, o->em);
        ploti_put(&f->cv, at + o->handle + 0.5 * o->em, cy + 0.35 * o->em, l->entry[i].label, o->em,
                  0, PLOTI_REGULAR, PLOT_INK);
        at += PLOTI_BETWEEN * o->em + ploti_entry_width(o, &l->entry[i]);
    }
}

/* The places inside the axes, best first, as fractions of the free room: PLOT_LEGEND_TOP_RIGHT and
   so on, and four more. */
static const double ploti_spots[8][2] = {{1, 0},   {0, 0},   {1, 1},   {0, 1},
                                         {1, 0.5}, {0, 0.5}, {0.5, 0}, {0.5, 1}};

static ploti_rect ploti_spot_box(const plot_panel *p, int spot, double w, double h)
{
    double m = 0.55 * ploti_em(p->fig, PLOTI_EM_LEGEND);
    ploti_rect b;
    b.x0 = p->box.x0 + m +
           ploti_spots[spot - PLOT_LEGEND_TOP_RIGHT][0] * (p->box.x1 - p->box.x0 - 2 * m - w);
    b.y0 = p->box.y0 + m * 0.6 +
           ploti_spots[spot - PLOT_LEGEND_TOP_RIGHT][1] * (p->box.y1 - p->box.y0 - 1.2 * m - h);
    b.x1 = b.x0 + w;
    b.y1 = b.y0 + h;
    return b;
}

/* Where the legend goes, given the data drawn in the present layout. */
static int ploti_choose_spot(plot_panel *p)
{
    plot_figure *f = p->fig;
    double margin = 0.3 * ploti_em(f, PLOTI_EM_LEGEND), aside;
    ploti_flow o = ploti_flow_columns(f, &p->entries, 1), above, right;
    int i;
    for (i = 0; i < 16; i++) { /* the second time round, a shaded background will do */
        const int spot = PLOT_LEGEND_TOP_RIGHT + i % 8;
        const ploti_rect b = ploti_spot_box(p, spot, o.w, o.h);
        if (b.x0 < p->box.x0 || b.x1 > p->box.x1 || b.y0 < p->box.y0 || b.y1 > p->box.y1) break;
        if (ploti_covers_ink(f, &b, margin) <= (i < 8 ? PLOTI_BLANK : PLOTI_SHADE)) return spot;
    }
    if (p->colorbar) return PLOT_LEGEND_ABOVE;
    above = ploti_flow_of(p, PLOT_LEGEND_ABOVE);
    right = ploti_flow_of(p, PLOT_LEGEND_RIGHT);
    /* what either costs of the panel; a legend beside a square panel may cost nothing */
    aside = fmax(0, right.w + 2 * right.em - (p->cell.x1 - p->box.x1)) / (p->cell.x1 - p->cell.x0);
    if (aside > 0 && above.h < 1.5 * above.pitch) return PLOT_LEGEND_ABOVE; /* one row is enough */
    return aside <= above.h / (p->cell.y1 - p->cell.y0) ? PLOT_LEGEND_RIGHT : PLOT_LEGEND_ABOVE;
}

static int ploti_first_spot(const plot_panel *p)
{
    if (p->fig->page.shared_legend || p->entries.n == 0) return PLOT_LEGEND_NONE;
    return p->axes.legend == PLOT_LEGEND_AUTO ? PLOT_LEGEND_TOP_RIGHT : p->axes.legend;
}

/* Chooses again for the panels that are free to choose; 1 if a legend moved outside. */
static int ploti_place_legends(plot_figure *f)
{
    plot_panel *p;
    int moved = 0;
    for (p = f->panels; p; p = p->next) {
        if (p->axes.legend != PLOT_LEGEND_AUTO || p->spot < PLOT_LEGEND_TOP_RIGHT) continue;
        p->spot = ploti_choose_spot(p);
        moved |= p->spot < PLOT_LEGEND_TOP_RIGHT;
    }
    return moved;
}

/* ---- layout --------------------------------------------------------------------------------- */

/* A panel of images has no axes and uses its whole cell. */
static int ploti_free(const plot_panel *p)
{
    return ploti_find(p, PLOTI_IMAGES) != NULL;
}

static const char *ploti_end_label(const plot_panel *p, const ploti_item *it)
{
    return it->kind == PLOTI_LINE && p->spot == PLOT_LEGEND_DIRECT ? it->label : NULL;
}

static ploti_axis ploti_bar_axis(const plot_panel *p, const ploti_item *heat)
{
    ploti_axis a = {.upright = 1,
                    .label = p->bar_label,
                    .lo = heat->from,
                    .hi = heat->to,
                    .from = p->box.y1,
                    .to = p->box.y0,
                    .tick_em = ploti_em(p->fig, PLOTI_EM_TICK)};
    const int most = ploti_int((a.from - a.to) / (2.3 * a.tick_em));
    ploti_auto_ticks(&a, &a.ticks, ploti_between(most, 2, 10));
    return a;
}

static double ploti_gap(const plot_figure *f) /* between an axis and its words */
{
    return 7 * f->scale;
}

static double ploti_tick_len(const plot_figure *f)
{
    return 7.5 * f->scale;
}

static void ploti_measure_right(plot_panel *p)
{
    plot_figure *f = p->fig;
    const ploti_item *it, *heat = ploti_find(p, PLOTI_HEAT);
    double em = ploti_em(f, PLOTI_EM_TICK), w, ends = 0;
    if (p->x.ticks.n && !(p->axes.hide & PLOT_GRID_X)) { /* half of the last label may stand out */
        int last = p->x.lo <= p->x.hi ? p->x.ticks.n - 1 : 0;
        double x = ploti_pixel(&p->x, p->x.ticks.at[last]);
        w = font_width(p->x.ticks.text[last], p->x.tick_em) / 2;
        if (isfinite(x)) p->right = fmax(p->right, x + w - fmax(p->x.from, p->x.to));
    }
    for (it = p->items; it; it = it->next) {
        const char *s = ploti_end_label(p, it);
        if (s) ends = fmax(ends, font_width(s, ploti_em(f, PLOTI_EM_LEGEND)) + 0.8 * em);
    }
    p->right = fmax(p->right, ends);
    if (p->colorbar && heat) {
        const ploti_axis a = ploti_bar_axis(p, heat);
        p->right = fmax(p->right, 1.7 * em + ploti_widest(&a) + ploti_gap(f) + ploti_tick_len(f) +
                                      (p->bar_label ? 1.75 * em : 0));
    }
    if (p->spot == PLOT_LEGEND_RIGHT) p->right += ploti_flow_of(p, p->spot).w + 0.8 * em;
}

/* What a panel needs around its axes. */
static void ploti_measure(plot_panel *p)
{
    plot_figure *f = p->fig;
    double tick = ploti_em(f, PLOTI_EM_TICK), label = ploti_em(f, PLOTI_EM_LABEL);
    p->left = p->right = p->bottom = 0;
    p->top =
        p->axes.heading || f->page.letters ? 1.45 * ploti_em(f, PLOTI_EM_HEADING) : 0.35 * tick;
    if (ploti_free(p)) {
        p->top += 0.35 * tick;
        return;
    }
    ploti_make_ticks(p, &p->x);
    ploti_make_ticks(p, &p->y);
    p->left = p->bottom = ploti_gap(f);
    if (!(p->axes.hide & PLOT_GRID_Y)) {
        p->left = ploti_widest(&p->y) + ploti_tick_len(f) + ploti_gap(f);
        if (p->y.label && p->y.label[0]) p->left += 1.55 * label;
    }
    if (!(p->axes.hide & PLOT_GRID_X)) {
        p->bottom = ploti_tick_len(f) + ploti_gap(f) + 1.1 * tick;
        if (p->x.label && p->x.label[0]) p->bottom += 1.25 * label;
    }
    if (p->spot == PLOT_LEGEND_ABOVE) p->top += ploti_flow_of(p, p->spot).h + 0.2 * tick;
    ploti_measure_right(p);
}

typedef struct ploti_tracks { /* the columns, or the rows, of the grid */
    int n;
    double before[PLOT_GRID_MAX], after[PLOT_GRID_MAX], at[PLOT_GRID_MAX], len[PLOT_GRID_MAX];
} ploti_tracks;

static void ploti_track_need(ploti_tracks *t, int first, int span, double before, double after)
{
    t->before[first] = fmax(t->before[first], before);
    t->after[first + span - 1] = fmax(t->after[first + span - 1], after);
    if (first + span > t->n) t->n = first + span;
}

/* Shares what the decorations leave among the tracks; 0 if that is too little. */
static int ploti_track_place(ploti_tracks *t, const double *rel, double from, double to, double gap)
{
    double room = to - from - gap * (t->n - 1), sum = 0;
    int i;
    for (i = 0; i < t->n; i++) {
        room -= t->before[i] + t->after[i];
        sum += rel[i];
    }
    for (i = 0; i < t->n; i++) {
        t->len[i] = room * rel[i] / sum;
        t->at[i] = floor(from + t->before[i]);
        from += t->before[i] + t->len[i] + t->after[i] + gap;
    }
    return room >= 8 * t->n;
}

/* Shrinks the box so that one unit of y is `aspect` units of x. */
static void ploti_apply_aspect(plot_panel *p)
{
    double xr = fabs(p->x.hi - p->x.lo), yr = fabs(p->y.hi - p->y.lo) * p->axes.aspect;
    double w = p->box.x1 - p->box.x0, h = p->box.y1 - p->box.y0, unit;
    if (!(p->axes.aspect > 0) || !(xr > 0) || !(yr > 0)) return;
    unit = fmin(w / xr, h / yr);
    if (!(unit * xr >= 2 && unit * yr >= 2)) return; /* would leave nothing to see */
    p->box.x1 = floor(p->box.x0 + unit * xr); /* to the left, as the panels above and below */
    p->box.y0 = floor(p->box.y0 + (h - unit * yr) / 2);
    p->box.y1 = floor(p->box.y0 + unit * yr);
}

static void ploti_set_box(plot_panel *p, const ploti_tracks *cols, const ploti_tracks *rows)
{
    int c1 = p->axes.col + p->axes.cols - 1, r1 = p->axes.row + p->axes.rows - 1;
    p->box.x0 = cols->at[p->axes.col];
    p->box.x1 = floor(cols->at[c1] + cols->len[c1]);
    p->box.y0 = rows->at[p->axes.row];
    p->row_top = p->box.y0 - rows->before[p->axes.row];
    p->col_left = p->box.x0 - cols->before[p->axes.col];
    p->box.y1 = floor(rows->at[r1] + rows->len[r1]);
    p->cell = p->box;
    if (ploti_free(p)) {
        p->box.x0 -= cols->before[p->axes.col];
        p->box.x1 += cols->after[c1];
        p->box.y1 += rows->after[r1];
    } else {
        ploti_apply_aspect(p);
    }
    p->x.from = p->box.x0;
    p->x.to = p->box.x1;
    p->y.from = p->box.y1;
    p->y.to = p->box.y0;
}

/* Title, subtitle, shared legend and footer: measures, or draws. page: what the panels get. */
static void ploti_page(plot_figure *f, int draw, ploti_rect *page)
{
    ploti_canvas *c = draw ? &f->cv : NULL;
    double m = 1.05 * ploti_em(f, PLOTI_EM_TICK), room = f->cv.w - 2 * m, y = m, h;
    double foot = ploti_em(f, PLOTI_EM_FOOTER);
    if (f->page.title)
        y += ploti_wrap(f, c, m, y, room, f->page.title, ploti_em(f, PLOTI_EM_TITLE), PLOTI_BOLD,
                        1.25, PLOT_INK);
    if (f->page.subtitle)
        y += ploti_wrap(f, c, m, y, room, f->page.subtitle, ploti_em(f, PLOTI_EM_SUBTITLE),
                        PLOTI_REGULAR, 1.3, PLOTI_QUIET);
    if (f->page.title || f->page.subtitle) y += 0.55 * m;
    if (f->page.shared_legend && f->entries.n) {
        ploti_flow o = ploti_flow_wide(f, &f->entries, room);
        if (draw) ploti_draw_flow(f, &f->entries, &o, m, y);
        y += o.h + 0.75 * m;
    }
    page->x0 = m;
    page->x1 = f->cv.w - m;
    page->y0 = y;
    page->y1 = f->cv.h - m;
    if (f->page.footer) {
        h = ploti_wrap(f, NULL, m, 0, room, f->page.footer, foot, PLOTI_REGULAR, 1.3, PLOTI_FAINT);
        page->y1 -= h + 0.45 * foot;
        (void)ploti_wrap(f, c, m, f->cv.h - 0.8 * m - h, room, f->page.footer, foot, PLOTI_REGULAR,
                         1.3, PLOTI_FAINT);
    }
}

static void ploti_layout(plot_figure *f)
{
    plot_panel *p;
    ploti_tracks cols, rows;
    ploti_rect page;
    double gap = 1.15 * ploti_em(f, PLOTI_EM_TICK);
    int round, fits = 1;
    ploti_page(f, 0, &page);
    for (p = f->panels; p; p = p->next) p->cell = p->box = page; /* a first guess */
    for (round = 0; round < 4; round++) { /* ticks depend on sizes, sizes on the ticks' words */
        memset(&cols, 0, sizeof cols);
        memset(&rows, 0, sizeof rows);
        for (p = f->panels; p; p = p->next) {
            ploti_measure(p);
            ploti_track_need(&cols, p->axes.col, p->axes.cols, p->left,
                             fmax(0, p->right - (p->cell.x1 - p->box.x1)));
            ploti_track_need(&rows, p->axes.row, p->axes.rows, p->top, p->bottom);
        }
        fits = ploti_track_place(&cols, f->page.widths, page.x0, page.x1, gap);
        fits &= ploti_track_place(&rows, f->page.heights, page.y0, page.y1, gap * 0.9);
        for (p = f->panels; p; p = p->next) ploti_set_box(p, &cols, &rows);
    }
    for (p = f->panels; p; p = p->next) {
        if (!ploti_free(p)) ploti_make_ticks(p, &p->x);
        if (!ploti_free(p)) ploti_make_ticks(p, &p->y);
    }
    (void)ploti_demand(f, fits, "plot: the page is too small for its panels and their text");
}

/* ---- drawing the marks ---------------------------------------------------------------------- */

static int ploti_on_axis(const ploti_axis *a, double px)
{
    return isfinite(px) && px >= fmin(a->from, a->to) - 0.51 && px <= fmax(a->from, a->to) + 0.51;
}

static void ploti_draw_markers(plot_panel *p, const ploti_item *it)
{
    plot_figure *f = p->fig;
    double r = ploti_marker_px(f, &it->style) * (it->kind == PLOTI_SCATTER ? 0.92 : 1);
    size_t i, every = 1, start = 0;
    if (it->kind ==
        PLOTI_LINE) { /* a dozen per line, staggered by series so that they do not pile up */
        every = it->style.marker_every > 0 ? (size_t)it->style.marker_every : 1 + it->n / 13;
        start = it->style.marker_every > 0 || every < 4
                    ? 0
                    : (size_t)(it->style.marker % 4) * every / 4;
    }
    ploti_unclip(&f->cv); /* half a marker may cross the frame */
    for (i = start; i < it->n; i += every) {
        double x = ploti_pixel(&p->x, it->x[i]), y = ploti_pixel(&p->y, it->y[i]);
        if (!ploti_on_axis(&p->x, x) || !ploti_on_axis(&p->y, y)) continue;
        ploti_marker(&f->cv, x, y, r, it->style.marker,
                     it->kind == PLOTI_SCATTER ? 0.9 * f->scale : 1.3 * f->scale, it->style.color,
                     it->kind == PLOTI_LINE ? 1 : ploti_opacity(&it->style, 1));
    }
}

static void ploti_draw_line(plot_panel *p, const ploti_item *it)
{
    plot_figure *f = p->fig;
    const double w = ploti_line_px(f, &it->style);
    ploti_point *q = it->path;
    size_t i, n = 0;
    for (i = 0; i <= it->n; i++) {
        const double x = i < it->n ? ploti_pixel(&p->x, it->x[i]) : PLOTI_GAP;
        const double y = i < it->n ? ploti_pixel(&p->y, it->y[i]) : PLOTI_GAP;
        if (!isfinite(x) || !isfinite(y)) { /* a gap ends the run */
            ploti_stroke(&f->cv, q, n, n == 1 ? 2.4 * w : w, it->style.dash);
            n = 0;
            continue;
        }
        if (it->style.step && n > 0) {
            q[n] = (ploti_point){x, q[n - 1].y};
            n++;
        }
        q[n++] = (ploti_point){x, y};
    }
    ploti_flush(&f->cv, it->style.color, ploti_opacity(&it->style, 1));
    if (it->style.marker) ploti_draw_markers(p, it);
}

/* The polygon of one run of a band: lows forwards in the first half, then highs backwards. */
static void ploti_band_run(plot_panel *p, const ploti_item *it, size_t from, size_t to)
{
    ploti_point *q = it->path;
    size_t i, n = to - from;
    for (i = 0; i < n; i++) {
        const double x = ploti_pixel(&p->x, it->x[from + i]);
        q[i] = (ploti_point){x, ploti_pixel_low(&p->y, it->lo[from + i])};
        q[2 * n - 1 - i] = (ploti_point){x, ploti_pixel_low(&p->y, it->hi[from + i])};
    }
    if (n == 1) {
        ploti_stroke(&p->fig->cv, q, 2, 3 * ploti_line_px(p->fig, &it->style), PLOT_SOLID);
        ploti_flush(&p->fig->cv, it->style.color, it->style.alpha);
    }
    ploti_polygon(&p->fig->cv, q, 2 * n, it->style.color, it->style.alpha);
}

static void ploti_draw_band(plot_panel *p, const ploti_item *it)
{
    size_t i, from = 0;
    for (i = 0; i <= it->n; i++) {
        int good = i < it->n && isfinite(ploti_pixel(&p->x, it->x[i])) && isfinite(it->lo[i]) &&
                   isfinite(it->hi[i]);
        if (good) continue;
        if (i > from) ploti_band_run(p, it, from, i);
        from = i + 1;
    }
}

static void ploti_whisker(plot_panel *p, double x, double lo, double hi, double cap, double width,
                          plot_color color)
{
    const ploti_point end[6] = {{x, lo},       {x, hi},       {x - cap, lo},
                                {x + cap, lo}, {x - cap, hi}, {x + cap, hi}};
    int i;
    for (i = 0; i < 6; i += 2) ploti_segment(&p->fig->cv, end[i], end[i + 1], width / 2);
    ploti_flush(&p->fig->cv, color, 1);
}

static void ploti_draw_errors(plot_panel *p, const ploti_item *it)
{
    double w = 0.7 * ploti_line_px(p->fig, &it->style), cap = ploti_marker_px(p->fig, &it->style);
    size_t i;
    for (i = 0; i < it->n; i++) {
        const double x = ploti_pixel(&p->x, it->x[i]), y = ploti_pixel(&p->y, it->y[i]);
        const double lo = ploti_pixel_low(&p->y, it->lo[i]), hi = ploti_pixel_low(&p->y, it->hi[i]);
        if (isfinite(x + y + lo + hi)) ploti_whisker(p, x, lo, hi, 0.8 * cap, w, it->style.color);
    }
    ploti_draw_markers(p, it);
}

static void ploti_draw_hist(plot_panel *p, const ploti_item *it)
{
    plot_figure *f = p->fig;
    ploti_point *q = it->path;
    const double base = ploti_pixel_low(&p->y, 0);
    size_t i, n = 0;
    if (it->n == 0) return;
    q[n++] = (ploti_point){ploti_pixel(&p->x, it->x[0]), base};
    for (i = 0; i < it->n; i++) {
        const double x0 = ploti_pixel(&p->x, it->x[i]), x1 = ploti_pixel(&p->x, it->x[i + 1]);
        const double y = isfinite(it->y[i]) ? ploti_pixel_low(&p->y, it->y[i]) : base;
        if (!isfinite(x0) || !isfinite(x1)) continue;
        q[n++] = (ploti_point){x0, y};
        q[n++] = (ploti_point){x1, y};
    }
    q[n] = (ploti_point){q[n - 1].x, base};
    if (++n < 4 || !isfinite(q[0].x)) return;
    ploti_polygon(&f->cv, q, n, it->style.color, it->style.alpha);
    ploti_stroke(&f->cv, q, n, 0.8 * ploti_line_px(f, &it->style), it->style.dash);
    ploti_flush(&f->cv, it->style.color, 1);
}

static double ploti_ridge_top(const plot_panel *p) /* the highest density of all rows */
{
    const ploti_item *it;
    double top = 0;
    size_t i;
    for (it = p->items; it; it = it->next)
        for (i = 0; it->kind == PLOTI_RIDGE && i < it->n; i++)
            if (isfinite(it->y[i])) top = fmax(top, it->y[i]);
    return top > 0 ? top : 1;
}

static void ploti_draw_ridge(plot_panel *p, const ploti_item *it)
{
    plot_figure *f = p->fig;
    ploti_point *q = it->path;
    const double unit = p->overlap / ploti_ridge_top(p), w = 0.72 * ploti_line_px(f, &it->style);
    const double row = p->ridges - 1 - it->index, base = ploti_pixel(&p->y, row);
    const plot_color color = it->style.color;
    size_t i, n = 1;
    if (!isfinite(base)) return;
    for (i = 0; i < it->n; i++) {
        const double x = ploti_pixel(&p->x, it->x[i]);
        const double y = ploti_pixel(&p->y, row + it->y[i] * unit);
        if (isfinite(x)) q[n++] = (ploti_point){x, isfinite(y) ? y : base};
    }
    if (n < 3) return;
    q[0] = (ploti_point){q[1].x, base};
    q[n] = (ploti_point){q[n - 1].x, base};
    n++;
    ploti_polygon(&f->cv, q, n, PLOT_WHITE, 0.88); /* what lies behind stays a hint */
    ploti_polygon(&f->cv, q, n, color, ploti_opacity(&it->style, 0.62));
    ploti_rule(&f->cv, p->box.x0, base, p->box.x1, base, 0.5 * w, PLOT_SOLID, color, 0.6);
    ploti_stroke(&f->cv, q + 1, n - 2, w, PLOT_SOLID);
    ploti_flush(&f->cv, ploti_blend(color, PLOT_BLACK, 0.25), 1);
}

static void ploti_bar_value(plot_panel *p, double x, double y, double v, double room)
{
    double em = 0.86 * ploti_em(p->fig, PLOTI_EM_NOTE);
    ploti_area clip;
    char text[64];
    ploti_number(text, v, p->bar_decimals);
    em = ploti_fit(text, em, room);
    y = v < 0 ? y + 1.0 * em : y - 0.32 * em;
    clip = p->fig->cv.clip; /* the words, unlike the bars, may leave the axes */
    ploti_unclip(&p->fig->cv);
    ploti_put(&p->fig->cv, x, y, text, em, 1, PLOTI_REGULAR, PLOT_INK);
    p->fig->cv.clip = clip;
}

static void ploti_draw_bars(plot_panel *p, const ploti_item *it)
{
    plot_figure *f = p->fig;
    double slot = 0.8 / p->bars, base = ploti_pixel_low(&p->y, 0);
    size_t i;
    for (i = 0; i < it->n; i++) {
        double mid = (double)i - 0.4 + (it->index + 0.5) * slot, half = 0.46 * slot, e, top;
        double x0 = floor(ploti_pixel(&p->x, mid - half) + 0.5), y = ploti_pixel(&p->y, it->y[i]);
        double x1 = floor(ploti_pixel(&p->x, mid + half) + 0.5), x = (x0 + x1) / 2;
        if (!isfinite(y) || !isfinite(x0) || !isfinite(x1)) continue;
        if (x1 <= x0) x1 = x0 + 1;
        ploti_box_fill(&f->cv, x0, y, x1, base, it->style.color, it->style.alpha);
        e = it->hi && isfinite(it->hi[i]) ? fabs(it->hi[i]) : 0;
        top = ploti_pixel_low(&p->y, it->y[i] < 0 ? it->y[i] - e : it->y[i] + e);
        if (e > 0) {
            double far = ploti_pixel_low(&p->y, it->y[i] < 0 ? it->y[i] + e : it->y[i] - e);
            double cap = fmin(0.22 * (x1 - x0), 8 * f->scale);
            ploti_whisker(p, x, far, top, cap, 2 * f->scale, PLOT_INK);
        }
        if (p->bar_decimals >= 0 && ploti_on_axis(&p->y, top))
            ploti_bar_value(p, x, top, it->y[i], 0.8 / 0.46 * half / slot * (x1 - x0) * 1.3);
    }
}

/* The part of the axes box between the ends of a span; of a rule, a line. */
static ploti_rect ploti_stripe(const plot_panel *p, const ploti_item *it)
{
    const double from = ploti_pixel(it->axis, it->from), to = ploti_pixel(it->axis, it->to);
    if (it->axis->upright) return (ploti_rect){p->box.x0, from, p->box.x1, to};
    return (ploti_rect){from, p->box.y0, to, p->box.y1};
}

static void ploti_draw_rule(plot_panel *p, const ploti_item *it)
{
    const ploti_rect b = ploti_stripe(p, it);
    if (!isfinite(b.x0) || !isfinite(b.y0)) return;
    ploti_rule(&p->fig->cv, b.x0, b.y1, b.x1, b.y0, 0.7 * ploti_line_px(p->fig, &it->style),
               it->style.dash, it->style.color, ploti_opacity(&it->style, 1));
}

/* The four places of a reference line's note: at either end, on either side of the line. */
static ploti_rect ploti_reference_box(const plot_panel *p, int flat, double v, int place, double w,
                                      double em)
{
    ploti_rect b;
    int far = place / 2, other = place % 2;
    if (flat) {
        b.x0 = far ? p->box.x0 + 0.4 * em : p->box.x1 - 0.4 * em - w;
        b.y0 = other ? v + 0.25 * em : v - 1.1 * em;
    } else {
        b.x0 = other ? v - 0.45 * em - w : v + 0.45 * em;
        b.y0 = far ? p->box.y1 - 1.3 * em : p->box.y0 + 0.25 * em;
    }
    b.x1 = b.x0 + w;
    b.y1 = b.y0 + 0.85 * em;
    return b;
}

static void ploti_draw_reference_note(plot_panel *p, const ploti_item *it)
{
    plot_figure *f = p->fig;
    const double em = ploti_em(f, PLOTI_EM_NOTE) * 0.95, w = font_width(it->end, em);
    const double v = ploti_pixel(it->axis, it->from);
    int flat = it->axis->upright, place;
    ploti_rect b;
    if (!it->end || !ploti_on_axis(it->axis, v)) return;
    for (place = 0; place < 8; place++) { /* the second time round it may cover data */
        b = ploti_reference_box(p, flat, v, place % 4, w, em);
        if (b.x0 >= p->box.x0 && b.x1 <= p->box.x1 && b.y0 >= p->box.y0 && b.y1 <= p->box.y1 &&
            (place >= 4 || ploti_covers_ink(f, &b, 0) <= PLOTI_SHADE))
            break;
    }
    if (place == 8) b = ploti_reference_box(p, flat, v, 0, w, em);
    ploti_put_halo(&f->cv, b.x0, b.y0 + 0.77 * em, it->end, em, 0,
                   ploti_text_color(it->style.color));
}

static void ploti_draw_span(plot_panel *p, const ploti_item *it)
{
    const ploti_rect b = ploti_stripe(p, it);
    ploti_box_fill(&p->fig->cv, b.x0, b.y0, b.x1, b.y1, it->style.color,
                   ploti_opacity(&it->style, 0.13));
}

/* The thin line from words at `to`, at their near edge, to what they are about. */
static void ploti_draw_leader(plot_figure *f, const ploti_item *it, ploti_point from,
                              ploti_point to, double em)
{
    const double w = font_width(it->end, em) / 2;
    ploti_rule(&f->cv, ploti_clamp(from.x, to.x - w, to.x + w),
               ploti_clamp(from.y, to.y - 0.75 * em, to.y + 0.75 * em), from.x, from.y,
               1.7 * f->scale, PLOT_SOLID, it->style.color, 0.8);
    ploti_disc(&f->cv, from.x, from.y, 4.2 * f->scale, it->style.color, 1);
}

static void ploti_draw_text(plot_panel *p, const ploti_item *it)
{
    const double em = ploti_em(p->fig, PLOTI_EM_NOTE);
    const int side = it->align & 3;
    const ploti_point data = {ploti_pixel(&p->x, it->at.x0), ploti_pixel(&p->y, it->at.y0)};
    ploti_point at = {p->box.x0 + it->at.x1 * (p->box.x1 - p->box.x0),
                      p->box.y1 + it->at.y1 * (p->box.y0 - p->box.y1)};
    if (it->kind == PLOTI_TEXT) {
        at = data;
        at.x += side == PLOT_LEFT ? 0.45 * em : side == PLOT_RIGHT ? -0.45 * em : 0;
    }
    if (!isfinite(at.x) || !isfinite(at.y) || !it->end) return;
    if (it->kind == PLOTI_NOTE && ploti_drawable(data)) ploti_draw_leader(p->fig, it, data, at, em);
    at.y += it->align & PLOT_BELOW ? 1.15 * em : it->align & PLOT_ABOVE ? -0.5 * em : 0.35 * em;
    ploti_put_halo(&p->fig->cv, at.x, at.y, it->end, em, side, ploti_text_color(it->style.color));
}

/* ---- fields --------------------------------------------------------------------------------- */

/* The cells that a pixel shows: the one at its middle, or all of them if cells are smaller. */
static void ploti_cell_range(double px, double e0, double e1, size_t cells, size_t *from,
                             size_t *to)
{
    double n = (double)cells, per = n / fabs(e1 - e0), mid = (px + 0.5 - e0) / (e1 - e0) * n;
    double a = per > 1 ? mid - per / 2 : mid, b = per > 1 ? mid + per / 2 : mid;
    *from = (size_t)ploti_clamp(floor(a), 0, n - 1);
    *to = (size_t)ploti_clamp(ceil(b), (double)*from + 1, n);
    if (per <= 1) *to = *from + 1;
}

/* The mean of the cells that are numbers. */
static double ploti_mean_cell(const double *v, size_t cols, size_t r0, size_t r1, size_t c0,
                              size_t c1)
{
    double sum = 0;
    size_t r, c, n = 0;
    for (r = r0; r < r1; r++)
        for (c = c0; c < c1; c++) {
            if (!isfinite(v[r * cols + c])) continue;
            sum += v[r * cols + c];
            n++;
        }
    return n ? sum / (double)n : PLOTI_GAP;
}

/* Paints rows x cols values of lo..hi in these colours; the edges of the field may be mirrored. */
static void ploti_draw_cells(ploti_canvas *c, const double *v, size_t rows, size_t cols,
                             ploti_rect to, const plot_color color[256], double lo, double hi)
{
    const ploti_area b =
        ploti_within(c->clip, fmin(to.x0, to.x1) + 0.5, fmin(to.y0, to.y1) + 0.5,
                     floor(fmax(to.x0, to.x1) + 0.5), floor(fmax(to.y0, to.y1) + 0.5));
    int x, y;
    for (y = b.y0; y < b.y1; y++) {
        size_t r0, r1, c0, c1;
        ploti_cell_range(y, to.y0, to.y1, rows, &r0, &r1);
        for (x = b.x0; x < b.x1; x++) {
            double t;
            ploti_cell_range(x, to.x0, to.x1, cols, &c0, &c1);
            t = (ploti_mean_cell(v, cols, r0, r1, c0, c1) - lo) / (hi - lo);
            t = ploti_clamp(t, 0, 1) * 255 + 0.5;
            ploti_pixel_mix(c, x, y, isfinite(t) ? color[ploti_int(t)] : PLOT_LIGHT, 255);
        }
    }
}

static void ploti_draw_heat(plot_panel *p, const ploti_item *it)
{
    const ploti_rect to = {ploti_pixel(&p->x, it->at.x0), ploti_pixel(&p->y, it->at.y0),
                           ploti_pixel(&p->x, it->at.x1), ploti_pixel(&p->y, it->at.y1)};
    plot_color color[256];
    int i;
    if (!isfinite(to.x0 + to.x1 + to.y0 + to.y1) || to.x0 == to.x1 || to.y0 == to.y1 || !it->n)
        return;
    for (i = 0; i < 256; i++) color[i] = plot_map(it->map, i / 255.0);
    ploti_draw_cells(&p->fig->cv, it->y, it->rows, it->cols, to, color, it->from, it->to);
}

/* ---- panels without axes -------------------------------------------------------------------- */

static void ploti_draw_image(plot_figure *f, const ploti_item *it, size_t k, int x0, int y0, int w,
                             int h)
{
    const size_t rows = (size_t)it->h, cols = (size_t)it->w;
    const ploti_rect to = {x0, y0, x0 + w, y0 + h};
    const int line = ploti_int(fmax(1, f->scale * 1.4));
    plot_color grey[256];
    int i;
    for (i = 0; i < 256; i++) grey[it->map ? 255 - i : i] = PLOT_RGB(i, i, i);
    ploti_block_fill(&f->cv, x0 - line, y0 - line, x0 + w + line, y0 + h + line, PLOT_LIGHT);
    ploti_draw_cells(&f->cv, it->y + k * rows * cols, rows, cols, to, grey, 0, 255);
}

static void ploti_draw_images(plot_panel *p, const ploti_item *it)
{
    plot_figure *f = p->fig;
    double em = 0.85 * ploti_em(f, PLOTI_EM_NOTE), gap = 0.45 * em,
           words = it->texts ? 1.3 * em : 0;
    double pw, ph, k, out = 0;
    int w, h, x0, y0;
    size_t i;
    if (it->n == 0) return;
    pw = (p->box.x1 - p->box.x0) / (double)it->cols;
    ph = (p->box.y1 - p->box.y0) / (double)it->rows;
    k = fmin((pw - gap) / it->w, (ph - gap - words) / it->h);
    if (k > 1) k = floor(k); /* whole pixels per image pixel stay crisp */
    w = ploti_int(fmax(k * it->w, 1));
    h = ploti_int(fmax(k * it->h, 1));
    pw = fmin(pw, w + fmax(gap, it->texts ? 1.6 * em : gap) * 2);
    ph = fmin(ph, h + words + gap * 2);
    for (i = 0; i < it->n && it->texts; i++) /* room on the left for captions wider than images */
        out = fmax(out, (font_width(it->texts[i], em) - w) / 2);
    out = fmin(out, (pw - w) / 2);
    for (i = 0; i < it->n; i++) {
        const char *s = it->texts ? it->texts[i] : NULL;
        x0 = ploti_int(p->box.x0 + (double)(i % it->cols) * pw + out);
        y0 = ploti_int(p->box.y0 + (double)(i / it->cols) * ph + gap / 2);
        ploti_draw_image(f, it, i, x0, y0, w, h);
        if (s)
            ploti_put(&f->cv, x0 + w / 2.0, y0 + h + 0.98 * em, s, ploti_fit(s, em, pw - 0.2 * em),
                      1, PLOTI_REGULAR, PLOT_INK);
    }
}

/* ---- drawing a panel ------------------------------------------------------------------------ */

static const ploti_kind ploti_kinds[] = {
    [PLOTI_LINE] = {6, ploti_draw_line, ploti_see_series, PLOTI_STROKE, 0, 0},
    [PLOTI_BAND] = {2, ploti_draw_band, ploti_see_series, PLOTI_FILL, 0, 0.2},
    [PLOTI_SCATTER] = {7, ploti_draw_markers, ploti_see_series, PLOTI_POINTS, PLOT_CIRCLE, 0.85},
    [PLOTI_ERROR] = {7, ploti_draw_errors, ploti_see_series, PLOTI_POINTS | PLOTI_STROKE,
                     PLOT_CIRCLE, 0},
    [PLOTI_HIST] = {4, ploti_draw_hist, ploti_see_hist, PLOTI_FILL | PLOTI_OUTLINE, 0, 0.25},
    [PLOTI_RIDGE] = {5, ploti_draw_ridge, ploti_see_ridge, 0, 0, 0},
    [PLOTI_BAR] = {4, ploti_draw_bars, ploti_see_bars, PLOTI_FILL, 0, 0.9},
    [PLOTI_RULE] = {3, ploti_draw_rule, ploti_see_rule, 0, 0, 0},
    [PLOTI_SPAN] = {PLOTI_SHADES, ploti_draw_span, NULL, 0, 0, 0},
    [PLOTI_TEXT] = {PLOTI_WORDS, ploti_draw_text, NULL, 0, 0, 0},
    [PLOTI_TEXT_IN] = {PLOTI_WORDS, ploti_draw_text, NULL, 0, 0, 0},
    [PLOTI_NOTE] = {PLOTI_WORDS, ploti_draw_text, NULL, 0, 0, 0},
    [PLOTI_HEAT] = {0, ploti_draw_heat, ploti_see_heat, 0, 0, 0},
    [PLOTI_IMAGES] = {0, ploti_draw_images, NULL, 0, 0, 0},
};

static const ploti_kind *ploti_kind_of(const ploti_item *it)
{
    return &ploti_kinds[it->kind];
}

static int ploti_thick(const plot_figure *f, double w) /* whole pixels for axis lines */
{
    int n = ploti_int(w * f->scale + 0.5);
    return n < 1 ? 1 : n;
}

/* A crisp line, flat at y = `at` from x = from to x = to, or upright with x and y exchanged. */
static void ploti_straight(plot_figure *f, int flat, double at, double from, double to, double w,
                           plot_color c)
{
    const int t = ploti_thick(f, w), a = ploti_int(at + 0.5) - t / 2;
    if (flat)
        ploti_block_fill(&f->cv, ploti_int(from), a, ploti_int(to), a + t, c);
    else
        ploti_block_fill(&f->cv, a, ploti_int(from), a + t, ploti_int(to), c);
}

/* The ticks of an axis, from `from` to `to` across it, or the grid lines. */
static void ploti_draw_ticks(plot_figure *f, const ploti_axis *a, const double *at, int n,
                             double from, double to, double w, plot_color c)
{
    int i;
    for (i = 0; i < n; i++) {
        const double v = ploti_pixel(a, at[i]);
        if (ploti_on_axis(a, v)) ploti_straight(f, a->upright, v, from, to, w, c);
    }
}

static int ploti_grid_of(const plot_panel *p)
{
    if (p->axes.grid) return p->axes.grid > 0 ? p->axes.grid : 0;
    if (ploti_find(p, PLOTI_HEAT)) return 0;
    if (p->ridges) return PLOT_GRID_X;
    return p->bars ? PLOT_GRID_Y : PLOT_GRID_BOTH;
}

static void ploti_draw_grid(plot_panel *p)
{
    const ploti_ticks *x = &p->x.ticks, *y = &p->y.ticks;
    const ploti_rect b = p->box;
    const int grid = ploti_grid_of(p);
    if (grid & PLOT_GRID_X)
        ploti_draw_ticks(p->fig, &p->x, x->at, x->n, b.y0, b.y1, 1.4, PLOTI_HAIR);
    if (grid & PLOT_GRID_Y)
        ploti_draw_ticks(p->fig, &p->y, y->at, y->n, b.x0, b.x1, 1.4, PLOTI_HAIR);
}

/* The data of a panel, clipped to its axes; words may stand out a little. */
static void ploti_draw_body(plot_panel *p)
{
    ploti_canvas *c = &p->fig->cv;
    const ploti_item *it;
    const double bleed = ploti_find(p, PLOTI_HEAT) ? 0 : 1.6 * p->fig->scale; /* half a line */
    const int whole = ploti_free(p);
    int layer;
    if (!whole) ploti_draw_grid(p);
    for (layer = 0; layer <= PLOTI_WORDS; layer++) {
        for (it = p->items; it; it = it->next) {
            if (ploti_kind_of(it)->layer != layer) continue;
            ploti_unclip(c);
            if (!whole && layer != PLOTI_WORDS)
                ploti_clip(c, p->box.x0 - bleed, p->box.y0 - bleed, p->box.x1 + bleed,
                           p->box.y1 + bleed);
            c->inking = layer == PLOTI_SHADES ? PLOTI_SHADE : PLOTI_DATA;
            ploti_kind_of(it)->draw(p, it);
        }
    }
    c->inking = PLOTI_DATA;
    ploti_unclip(c);
    for (it = p->items; it; it = it->next) /* over the data, where there are none if possible */
        if (it->kind == PLOTI_RULE) ploti_draw_reference_note(p, it);
    c->inking = PLOTI_BLANK;
}

/* ---- axes and words around a panel ---------------------------------------------------------- */

static void ploti_draw_frame(plot_panel *p)
{
    plot_figure *f = p->fig;
    const ploti_rect b = p->box;
    const int t = ploti_thick(f, 1.9), all = p->axes.frame == PLOT_BOX;
    const double right = b.x1 + t - t / 2;
    if (p->axes.frame == PLOT_BARE) return;
    ploti_straight(f, 1, b.y1, b.x0 - t / 2, all ? right : b.x1, 1.9, PLOT_INK);
    if (!p->ridges || all)
        ploti_straight(f, 0, b.x0, all ? b.y0 - t / 2 : b.y0, b.y1, 1.9, PLOT_INK);
    if (all) {
        ploti_straight(f, 1, b.y0, b.x0 - t / 2, right, 1.9, PLOT_INK);
        ploti_straight(f, 0, b.x1, b.y0 - t / 2, b.y1, 1.9, PLOT_INK);
    }
}

/* The words at the ticks of an axis; across: their baseline, or their end at an upright axis. */
static void ploti_draw_tick_words(plot_figure *f, const ploti_axis *a, double across, int align)
{
    const double em = a->tick_em;
    int i;
    for (i = 0; i < a->ticks.n; i++) {
        const double v = ploti_pixel(a, a->ticks.at[i]);
        if (ploti_on_axis(a, v))
            ploti_put(&f->cv, a->upright ? across : v, a->upright ? v + 0.35 * em : across,
                      a->ticks.text[i], em, align, PLOTI_REGULAR, PLOT_INK);
    }
}

static void ploti_draw_x_axis(plot_panel *p)
{
    plot_figure *f = p->fig;
    const ploti_axis *a = &p->x;
    const ploti_ticks *t = &a->ticks;
    const double len = ploti_tick_len(f), y = p->box.y1;
    const double wide = p->box.x1 - p->box.x0 + 0.7 * (p->left + p->right);
    const double em = ploti_fit(a->label, ploti_em(f, PLOTI_EM_LABEL), wide);
    const int marks = p->axes.frame != PLOT_BARE;
    if (marks) ploti_draw_ticks(f, a, t->minor, t->minors, y, y + 0.55 * len + 1, 1.2, PLOT_INK);
    if (marks && !p->bars) ploti_draw_ticks(f, a, t->at, t->n, y, y + len + 1, 1.7, PLOT_INK);
    if (p->axes.hide & PLOT_GRID_X) return;
    ploti_draw_tick_words(f, a, y + len + ploti_gap(f) + 0.78 * a->tick_em, PLOT_CENTER);
    ploti_put(&f->cv, (p->box.x0 + p->box.x1) / 2, y + p->bottom - 0.28 * em, a->label, em, 1,
              PLOTI_REGULAR, PLOT_INK);
}

static void ploti_draw_y_axis(plot_panel *p)
{
    plot_figure *f = p->fig;
    const ploti_axis *a = &p->y;
    const ploti_ticks *t = &a->ticks;
    const double len = ploti_tick_len(f), x = p->box.x0;
    /* a label longer than the axis reaches down, not up into the heading */
    const double em =
        ploti_fit(a->label, ploti_em(f, PLOTI_EM_LABEL), p->box.y1 - p->box.y0 + 0.9 * p->bottom);
    const double middle =
        fmax((p->box.y0 + p->box.y1) / 2, p->box.y0 + font_width(a->label, em) / 2);
    if (p->axes.frame != PLOT_BARE && !p->ridges) {
        ploti_draw_ticks(f, a, t->minor, t->minors, x - 0.55 * len, x, 1.2, PLOT_INK);
        ploti_draw_ticks(f, a, t->at, t->n, x - len, x, 1.7, PLOT_INK);
    }
    if (p->axes.hide & PLOT_GRID_Y) return;
    ploti_draw_tick_words(f, a, x - len - ploti_gap(f), PLOT_RIGHT);
    ploti_put_up(&f->cv, x - p->left + 0.82 * em, middle, a->label, em);
}

static void ploti_draw_heading(plot_panel *p)
{
    plot_figure *f = p->fig;
    double em = ploti_em(f, PLOTI_EM_HEADING), x = p->box.x0, y;
    double right = p->box.x1 + p->right;
    /* letters stand in line along a row; bare headings stay close to their axes */
    y = (f->page.letters ? p->row_top : p->box.y0 - p->top) + 0.78 * em;
    if (f->page.letters) {
        char letter[2];
        letter[0] = (char)('a' + p->index % 26);
        letter[1] = 0;
        x = p->col_left;
        ploti_put(&f->cv, x, y, letter, 1.12 * em, 0, PLOTI_BOLD * 1.15, PLOT_BLACK);
        x = fmax(x + 1.15 * em, p->box.x0);
    }
    if (p->axes.heading)
        ploti_put(&f->cv, x, y, p->axes.heading, ploti_fit(p->axes.heading, em, right - x), 0,
                  (PLOTI_REGULAR + PLOTI_BOLD) / 2, PLOT_INK);
}

static void ploti_draw_colorbar(plot_panel *p)
{
    plot_figure *f = p->fig;
    const ploti_item *heat = ploti_find(p, PLOTI_HEAT);
    double em = ploti_em(f, PLOTI_EM_TICK), x = p->box.x1 + 0.75 * em, w = 0.85 * em;
    double label = ploti_em(f, PLOTI_EM_LABEL), high = p->box.y1 - p->box.y0;
    ploti_axis a;
    int y;
    if (!p->colorbar || !heat) return;
    a = ploti_bar_axis(p, heat);
    for (y = (int)p->box.y0; y < (int)p->box.y1; y++)
        ploti_block_fill(&f->cv, ploti_int(x), y, ploti_int(x + w), y + 1,
                         plot_map(heat->map, (p->box.y1 - y - 0.5) / high));
    x += w;
    ploti_draw_ticks(f, &a, a.ticks.at, a.ticks.n, x, x + ploti_tick_len(f), 1.7, PLOT_INK);
    x += ploti_tick_len(f) + ploti_gap(f);
    ploti_draw_tick_words(f, &a, x, PLOT_LEFT);
    x += ploti_widest(&a) + 1.25 * label;
    ploti_put_up(&f->cv, x, (p->box.y0 + p->box.y1) / 2, a.label, ploti_fit(a.label, label, high));
}

/* ---- legends and direct labels -------------------------------------------------------------- */

typedef struct ploti_end { /* a name at the right end of a line */
    const char *text;
    plot_color color;
    double x, y, wish;
} ploti_end;

static int ploti_find_ends(const plot_panel *p, ploti_end *e)
{
    const ploti_item *it;
    int n = 0;
    for (it = p->items; it; it = it->next) {
        const char *text = ploti_end_label(p, it);
        size_t i;
        if (!text || n == PLOTI_ENTRIES) continue;
        for (i = it->n; i-- > 0;) { /* the last point that shows */
            double x = ploti_pixel(&p->x, it->x[i]), y = ploti_pixel(&p->y, it->y[i]);
            if (!ploti_on_axis(&p->x, x) || !isfinite(y)) continue;
            e[n].text = text;
            e[n].color = it->style.color;
            e[n].x = x;
            e[n].y = e[n].wish = ploti_clamp(y, p->box.y0, p->box.y1);
            n++;
            break;
        }
    }
    return n;
}

/* Pushes the names apart until no two are closer than `pitch`, as near to their wishes as goes. */
static void ploti_spread(ploti_end *e, int n, double pitch, double top, double bottom)
{
    int i, j, round;
    for (i = 1; i < n; i++) { /* insertion sort, stable */
        ploti_end t = e[i];
        for (j = i; j > 0 && e[j - 1].y > t.y; j--) e[j] = e[j - 1];
        e[j] = t;
    }
    for (round = 0; round < 200; round++) {
        double worst = 0;
        for (i = 0; i + 1 < n; i++) {
            double lack = pitch - (e[i + 1].y - e[i].y);
            if (lack <= 0) continue;
            e[i].y -= lack / 2;
            e[i + 1].y += lack / 2;
            worst = fmax(worst, lack);
        }
        if (n && e[0].y < top) e[0].y = top;
        if (n && e[n - 1].y > bottom) e[n - 1].y = bottom;
        if (worst < 0.25) break;
    }
}

static void ploti_draw_ends(plot_panel *p)
{
    plot_figure *f = p->fig;
    double em = ploti_em(f, PLOTI_EM_LEGEND), pitch = 1.12 * em;
    ploti_end e[PLOTI_ENTRIES];
    int n = ploti_find_ends(p, e), i;
    ploti_spread(e, n, pitch, p->box.y0 + 0.3 * em, p->box.y1 - 0.2 * em);
    for (i = 0; i < n; i++) {
        double x = p->box.x1 + 0.55 * em;
        if (fabs(e[i].y - e[i].wish) > 0.3 * em || e[i].x < p->box.x1 - 0.8 * em)
            ploti_rule(&f->cv, e[i].x + 0.1 * em, e[i].wish, x - 0.15 * em, e[i].y, 1.4 * f->scale,
                       PLOT_SOLID, e[i].color, 0.7);
        ploti_put(&f->cv, x, e[i].y + 0.35 * em, e[i].text, em, 0, PLOTI_REGULAR,
                  ploti_text_color(e[i].color));
    }
}

static void ploti_draw_legend(plot_panel *p)
{
    plot_figure *f = p->fig;
    ploti_rect *b = &p->legend_box;
    ploti_flow o = ploti_flow_of(p, p->spot);
    b->x0 = b->x1 = -1;
    if (p->spot == PLOT_LEGEND_NONE || p->spot == PLOT_LEGEND_DIRECT) return;
    if (p->spot == PLOT_LEGEND_ABOVE) {
        b->x0 = p->box.x0;
        b->y0 = p->box.y0 - o.h - 0.25 * o.em;
    } else if (p->spot == PLOT_LEGEND_RIGHT) {
        b->x0 = p->box.x1 + p->right - o.w;
        b->y0 = p->box.y0;
    } else {
        *b = ploti_spot_box(p, p->spot, o.w, o.h);
        ploti_box_fill(&f->cv, b->x0 - 0.2 * o.em, b->y0, b->x0 + o.w + 0.2 * o.em, b->y0 + o.h,
                       PLOT_WHITE, 0.85); /* hides the grid lines, no data */
    }
    b->x1 = b->x0 + o.w;
    b->y1 = b->y0 + o.h;
    ploti_draw_flow(f, &p->entries, &o, b->x0, b->y0);
}

/* ---- the whole page ------------------------------------------------------------------------- */

static int ploti_canvas_ready(plot_figure *f)
{
    ploti_canvas *c = &f->cv;
    size_t area = (size_t)c->w * (size_t)c->h;
    if (!c->rgb) {
        c->rgb = (unsigned char *)ploti_alloc(f, area, 3);
        c->mask = (unsigned char *)ploti_alloc(f, area, 1);
        c->ink = (unsigned char *)ploti_alloc(f, area, 1);
        c->cells = (int32_t *)ploti_alloc(f, area + 2 * (size_t)c->h, sizeof *c->cells);
    }
    if (f->failed) return 0;
    memset(c->rgb, 255, area * 3);
    memset(c->mask, 0, area);
    memset(c->ink, 0, area);
    memset(c->cells, 0, (area + 2 * (size_t)c->h) * sizeof *c->cells);
    c->mask_dirty = c->cell_dirty = ploti_nothing;
    c->inking = PLOTI_BLANK;
    ploti_unclip(c);
    return 1;
}

static void ploti_draw_around(plot_panel *p)
{
    ploti_draw_heading(p);
    if (ploti_free(p)) return;
    ploti_draw_frame(p);
    ploti_draw_x_axis(p);
    ploti_draw_y_axis(p);
    ploti_draw_colorbar(p);
    ploti_draw_ends(p);
    ploti_draw_legend(p);
}

static int ploti_render(plot_figure *f)
{
    plot_panel *p;
    ploti_rect page;
    int round;
    if (f->failed) return -1;
    f->scale = f->page.scale * f->cv.w / 1600.0;
    f->entries.n = 0;
    for (p = f->panels; p; p = p->next) {
        p->entries.n = 0;
        ploti_collect(&p->entries, p);
        ploti_collect(&f->entries, p);
        p->spot = ploti_first_spot(p);
    }
    ploti_ranges(f);
    for (round = 0; round < 5 && !f->failed; round++) { /* again when a legend has to go outside */
        ploti_layout(f);
        if (f->failed || !ploti_canvas_ready(f)) return -1;
        for (p = f->panels; p; p = p->next) ploti_draw_body(p);
        if (!ploti_place_legends(f)) break;
    }
    for (p = f->panels; p; p = p->next) ploti_draw_around(p);
    ploti_page(f, 1, &page);
    return f->failed ? -1 : 0;
}

/* A PNG with a palette: a third of the size. Colours are told apart by six bits a channel. The most
   frequent ones enter the palette; those of fewer than one pixel in 1000 only if none nearly alike
   is in it, and the others take the nearest. So flat colours stay, and the shades at the edges of
   lines share some. */
enum { PLOTI_PALETTE = 256, PLOTI_COLOURS = 1 << 18, PLOTI_ALIKE = 24, PLOTI_FLAT = 1000 };

static size_t ploti_key(const unsigned char *rgb)
{
    return ((size_t)rgb[0] >> 2) << 12 | ((size_t)rgb[1] >> 2) << 6 | (size_t)rgb[2] >> 2;
}

typedef struct ploti_colour {
    size_t key, pixels;
} ploti_colour;

static int ploti_by_pixels(const void *a, const void *b)
{
    const ploti_colour *p = (const ploti_colour *)a, *q = (const ploti_colour *)b;
    if (p->pixels != q->pixels) return p->pixels < q->pixels ? 1 : -1;
    return p->key < q->key ? -1 : p->key > q->key;
}

static int ploti_distance(size_t a, size_t b) /* squared distance of two keys */
{
    const int r = (int)(a >> 12) - (int)(b >> 12), g = (int)(a >> 6 & 63) - (int)(b >> 6 & 63);
    const int l = (int)(a & 63) - (int)(b & 63);
    return r * r + g * g + l * l;
}

/* Sorts the colours, fills the palette and, for each key, its entry; colours of more pixels than
   `flat` stay. Returns the number of entries. */
static int ploti_choose(unsigned char *palette, unsigned char *entry, ploti_colour *colour,
                        size_t flat)
{
    size_t chosen[PLOTI_PALETTE], i;
    int n = 0, k, c;
    qsort(colour, PLOTI_COLOURS, sizeof *colour, ploti_by_pixels);
    for (i = 0; i < PLOTI_COLOURS && colour[i].pixels > 0; i++) {
        const size_t key = colour[i].key;
        int best = -1, gap = 0;
        for (k = 0; k < n; k++) {
            const int other = ploti_distance(key, chosen[k]);
            if (best < 0 || other < gap) best = k, gap = other;
        }
        if (n < PLOTI_PALETTE && (!n || gap > PLOTI_ALIKE || colour[i].pixels > flat)) {
            for (c = 0; c < 3; c++)
                palette[3 * n + c] = (unsigned char)((key >> (12 - 6 * c) & 63) * 255 / 63);
            best = n;
            chosen[n++] = key;
        }
        entry[key] = (unsigned char)best;
    }
    return n;
}

/* A byte for each pixel, after a byte 0 for each row (it is not filtered), and the palette, of
   *entries; NULL if there is no memory. */
static unsigned char *ploti_indexed(unsigned char *palette, int *entries, plot_figure *f)
{
    const size_t w = (size_t)f->cv.w, h = (size_t)f->cv.h;
    const unsigned char *rgb = f->cv.rgb;
    ploti_colour *colour = (ploti_colour *)ploti_alloc(f, PLOTI_COLOURS, sizeof *colour);
    unsigned char *entry = (unsigned char *)ploti_alloc(f, PLOTI_COLOURS, 1);
    unsigned char *index = (unsigned char *)ploti_alloc(f, h, w + 1);
    size_t i;
    if (f->failed) return NULL;
    for (i = 0; i < PLOTI_COLOURS; i++) colour[i].key = i;
    for (i = 0; i < w * h; i++) colour[ploti_key(rgb + 3 * i)].pixels++;
    *entries = ploti_choose(palette, entry, colour, w * h / PLOTI_FLAT);
    for (i = 0; i < w * h; i++) index[i + i / w + 1] = entry[ploti_key(rgb + 3 * i)];
    return index;
}

static unsigned char *ploti_word(unsigned char *to, uint32_t v)
{
    int k;
    for (k = 0; k < 4; k++) to[k] = (unsigned char)(v >> (24 - 8 * k) & 0xff);
    return to + 4;
}

/* A chunk: length, name, data, and the CRC-32 of name and data. */
static unsigned char *ploti_chunk(unsigned char *to, const char *name, const void *data, size_t n)
{
    uint32_t crc = 0xffffffffu;
    size_t i;
    int k;
    to = ploti_word(to, (uint32_t)n);
    memcpy(to, name, 4);
    if (n > 0) memcpy(to + 4, data, n);
    for (i = 0; i < n + 4; i++)
        for (crc ^= to[i], k = 0; k < 8; k++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    return ploti_word(to + 4 + n, crc ^ 0xffffffffu);
}

/* The file; NULL if there is no memory for it. */
static unsigned char *ploti_png(plot_figure *f, size_t *size)
{
    static const unsigned char signature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    const int pixels = (f->cv.w + 1) * f->cv.h;
    unsigned char palette[3 * PLOTI_PALETTE], head[13] = {0}, *png = NULL, *at, *packed = NULL;
    int entries = 0, n = 0;
    unsigned char *index = ploti_indexed(palette, &entries, f);
    if (index) packed = stbi_zlib_compress(index, pixels, &n, 64);
    if (ploti_demand(f, packed != NULL, PLOTI_NO_MEMORY))
        png = (unsigned char *)ploti_alloc(f, (size_t)n + sizeof palette + 100, 1);
    if (png) {
        memcpy(png, signature, sizeof signature);
        (void)ploti_word(ploti_word(head, (uint32_t)f->cv.w), (uint32_t)f->cv.h);
        head[8] = 8; /* bits of an index */
        head[9] = 3; /* into a palette */
        at = ploti_chunk(png + sizeof signature, "IHDR", head, sizeof head);
        at = ploti_chunk(at, "PLTE", palette, 3 * (size_t)entries);
        at = ploti_chunk(at, "IDAT", packed, (size_t)n);
        *size = (size_t)(ploti_chunk(at, "IEND", NULL, 0) - png);
    }
    free(packed);
    return png;
}

int plot_save(plot_figure *f, const char *path)
{
    const unsigned char *png;
    size_t size = 0;
    char why[FILES_ERR_MAX] = "";
    if (!f || ploti_render(f) != 0 || !ploti_demand(f, path && path[0], "plot: no file name"))
        return -1;
    png = ploti_png(f, &size);
    if (png && files_write(path, png, size, why) != 0) ploti_fail(f, "plot: ", why);
    return f->failed ? -1 : 0;
}

int plot_finish(plot_figure *f, const char *path)
{
    const int failed = plot_save(f, path);
    if (failed) fprintf(stderr, "%s\n", plot_error(f));
    plot_free(f);
    return failed;
}
