/* test_stroke_font.c - the stroke font of the figures: coverage, metrics, markup, bad input, and a
   fingerprint of every outline. */
#include "plot/stroke_font.h"
#include "test.h"
#include <stdint.h>
#include <stdlib.h>

#define EM 1000.0 /* at this size a pixel is one unit of the design grid */
#define CAP_HEIGHT 700.0
#define X_HEIGHT 500.0
#define ASCENDER 740.0
#define DESCENDER 200.0
#define TOP 1000.0
#define BOTTOM 250.0
#define PEN 80.0 /* of regular text */
#define MAX_POINTS 65536
#define MAX_CODE 0x110000ul

/* Everything a text sends to the pen, as polylines. */
typedef struct {
    int lines, points;
    int begins[2048]; /* first point of each polyline */
    double xy[2 * MAX_POINTS];
    double x0, x1, y0, y1;
} drawing;

static void add_point(drawing *d, const double *p)
{
    if (d->points == MAX_POINTS) return;
    memcpy(d->xy + 2 * d->points++, p, 2 * sizeof *p);
    if (!(p[0] >= d->x0)) d->x0 = p[0];
    if (!(p[0] <= d->x1)) d->x1 = p[0];
    if (!(p[1] >= d->y0)) d->y0 = p[1];
    if (!(p[1] <= d->y1)) d->y1 = p[1];
}

static void take(void *ctx, const double *from, const double *to)
{
    drawing *d = (drawing *)ctx;
    const double *last = d->xy + 2 * d->points - 2;
    if (d->points == 0 || from[0] != last[0] || from[1] != last[1]) {
        if (d->lines >= 2046) return;
        d->begins[d->lines++] = d->points;
        add_point(d, from);
    }
    add_point(d, to);
    d->begins[d->lines] = d->points;
}

static double draw_at(drawing *d, const char *text, double size)
{
    d->lines = d->points = 0;
    d->x0 = d->y0 = 1e300;
    d->x1 = d->y1 = -1e300;
    return font_text(text, size, take, d);
}

static double draw(drawing *d, const char *text)
{
    return draw_at(d, text, EM);
}

static int same_drawing(const drawing *a, const drawing *b)
{
    int i;
    if (a->lines != b->lines || a->points != b->points) return 0;
    for (i = 0; i < 2 * a->points; i++)
        if (fabs(a->xy[i] - b->xy[i]) > 1e-6) return 0;
    return 1;
}

static drawing first, second; /* too large for the stack */

static int same_text(const char *a, const char *b)
{
    const double wa = draw(&first, a), wb = draw(&second, b);
    return wa == wb && same_drawing(&first, &second);
}

static const char *encode(unsigned long c, char *out)
{
    int n = 0;
    if (c < 0x80) {
        out[n++] = (char)c;
    } else {
        const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
        const unsigned long lead = more == 1 ? 0xC0 : more == 2 ? 0xE0 : 0xF0;
        int i;
        out[n++] = (char)(unsigned char)(lead | c >> (6 * more));
        for (i = more - 1; i >= 0; i--)
            out[n++] = (char)(unsigned char)(0x80 | (c >> (6 * i) & 0x3F));
    }
    out[n] = '\0';
    return out;
}

/* The code point as a text that shows it, with the backslash the markup wants. */
static const char *literal(unsigned long c, char *out)
{
    const int escaped = c < 0x80 && strchr("^_{}\\", (int)c) != NULL;
    out[0] = '\\';
    encode(c, out + escaped);
    return out;
}

/* One code point of a string of valid UTF-8. */
static const char *next_code(const char *p, unsigned long *code)
{
    const unsigned char *b = (const unsigned char *)p;
    const int more = b[0] < 0x80 ? 0 : b[0] < 0xE0 ? 1 : b[0] < 0xF0 ? 2 : 3;
    int i;
    *code = more == 0 ? b[0] : b[0] & (0x3Fu >> more);
    for (i = 1; i <= more; i++) *code = *code << 6 | (b[i] & 0x3Fu);
    return p + more + 1;
}

/* An upright rectangle, as the box for what is not there; no letter is one. */
static int is_rectangle(const drawing *d, int line)
{
    const double *p = d->xy + 2 * d->begins[line];
    if (d->begins[line + 1] - d->begins[line] != 5) return 0;
    return p[0] == p[8] && p[1] == p[9] && p[1] == p[3] && p[2] == p[4] && p[5] == p[7];
}

/* Does the font draw the code point, and no box instead? The outline is in `first`. */
static int has(unsigned long c)
{
    char text[8];
    draw(&first, literal(c, text));
    return c == ' ' || (first.lines > 0 && !is_rectangle(&first, 0));
}

/* ---------------------------------------------------------------------------------------------- */

/* What the figures draw; all of it stays in its box, and there is nothing else. */
static void test_coverage(void)
{
    const char *p = "αβγδεηθλμπρσΔ−×·±≤∝→∞∂∇√∑′–²₁✓⟨⟩\xCC\x82";
    unsigned long c;
    int listed = 0, count = 0;
    for (c = 0x20; c < 0x7F; c++, listed++) CHECK(has(c));
    for (; *p != '\0'; listed++) {
        p = next_code(p, &c);
        if (!CHECK(has(c))) printf("missing: U+%04lX\n", c);
    }
    for (c = 1; c < MAX_CODE; c++) {
        char text[8];
        const double slack = 30.0, advance = font_width(literal(c, text), EM);
        if (!has(c)) continue;
        count++;
        if (c == ' ') continue;
        if (!CHECK(c == 0x302 ? advance == 0.0 : advance > 0.0) ||
            !CHECK(c == 0x302 || (first.x0 >= -slack && first.x1 <= advance + slack)) ||
            !CHECK(first.y0 >= -TOP && first.y1 <= BOTTOM))
            printf("U+%04lX leaves its box\n", c);
    }
    CHECK_INT(count, listed);
}

static void test_hat(void)
{
    static const char *const letters[] = {"x", "o", "y", "θ"};
    size_t i;
    for (i = 0; i < sizeof(letters) / sizeof(*letters); i++) {
        const double advance = draw(&first, letters[i]);
        const double *hat;
        char text[16];
        strcpy(text, letters[i]);
        strcat(text, "\xCC\x82");
        CHECK_NEAR(draw(&second, text), advance, 0.0);
        if (!CHECK_INT(second.lines, first.lines + 1)) continue;
        hat = second.xy + 2 * second.begins[first.lines];
        CHECK_NEAR((hat[0] + hat[4]) / 2.0, (first.x0 + first.x1) / 2.0, 10.0);
        CHECK(*letters[i] != 'x' || (hat[1] <= first.y0 - 70.0 && hat[3] <= first.y0 - 70.0));
    }
    CHECK(font_width("\xCC\x82", EM) == 0.0); /* a hat over nothing */
}

static void test_figures_line_up(void)
{
    static const char *const wide[] = {"+", "−", "=", "×", "±", "<", ">", "≤"};
    const double digit = font_width("0", EM);
    size_t i;
    char text[3] = {0, 0, 0};
    char other;
    for (text[0] = '0'; text[0] <= '9'; text[0]++) {
        CHECK_NEAR(font_width(text, EM), digit, 0.0);
        for (other = '0'; other <= '9'; other++) {
            text[1] = other;
            CHECK_NEAR(font_width(text, EM), 2.0 * digit, 1e-9);
            text[1] = '\0';
        }
    }
    for (i = 0; i < sizeof(wide) / sizeof(*wide); i++)
        CHECK_NEAR(font_width(wide[i], EM), digit, 0.0);
    draw(&first, "+");
    draw(&second, "−");
    CHECK(first.x0 == second.x0 && first.x1 == second.x1);
}

static void test_heights(void)
{
    draw(&first, "HEI17");
    CHECK_NEAR(first.y0, -CAP_HEIGHT, 1e-9);
    CHECK_NEAR(first.y1, 0.0, 1e-9);
    draw(&first, "xvz");
    CHECK_NEAR(first.y0, -X_HEIGHT, 1e-9);
    draw(&first, "bdfghklpqy");
    CHECK(first.y0 >= -ASCENDER && first.y0 < -CAP_HEIGHT);
    CHECK(first.y1 <= DESCENDER && first.y1 > 0.9 * DESCENDER);
}

static void test_lookalikes_differ(void)
{
    CHECK(!same_text("1", "l") && !same_text("l", "I") && !same_text("1", "I"));
    CHECK(font_width("O", EM) > 1.2 * font_width("0", EM));
    CHECK(!same_text("η", "n") && !same_text("μ", "u"));
}

static void test_widths_add_up(void)
{
    static const char *const parts[] = {"mini",   "batch ", "σ²",  "x̂_i",
                                        "(0, 1)", "∂L/∂h",  "{a}", "e\xCC\x82"};
    const size_t n = sizeof(parts) / sizeof(*parts);
    size_t i, k;
    for (i = 0; i < n; i++) {
        for (k = 0; k < n; k++) {
            char both[64];
            strcpy(both, parts[i]);
            strcat(both, parts[k]);
            CHECK_NEAR(font_width(both, 20.0),
                       font_width(parts[i], 20.0) + font_width(parts[k], 20.0), 1e-9);
        }
    }
    CHECK(font_width("AV", EM) < font_width("A", EM) + font_width("V", EM));
    CHECK(font_width("To", EM) < font_width("T", EM) + font_width("o", EM));
    CHECK_NEAR(font_width("A\xCC\x82V", EM), font_width("AV", EM), 1e-9);
    CHECK_NEAR(font_width("A^{}V", EM) - font_width("^{}", EM),
               font_width("A", EM) + font_width("V", EM), 1e-9);
}

/* The second of two equal letters is the first, some whole pixels to the right. */
static void test_letters_are_set_to_the_pixel(void)
{
    double advance;
    int i;
    CHECK(draw_at(&first, "oo", 20.3) > 0.0 && first.points % 2 == 0);
    advance = first.xy[first.points] - first.xy[0];
    CHECK_NEAR(advance, floor(font_width("o", 20.3) + 0.5), 1e-9);
    for (i = 0; i < first.points; i++)
        CHECK_NEAR(first.xy[first.points + i] - first.xy[i], i % 2 == 0 ? advance : 0.0, 1e-9);
}

static void test_scaling(void)
{
    const char *text = "x̂_i = (x_i − μ)/√(σ^2 + ε) ✓";
    CHECK_NEAR(font_width(text, 62.0), 2.0 * font_width(text, 31.0), 1e-9);
}

/* ---------------------------------------------------------------------------------------------- */

static void test_scripts(void)
{
    double plain, scripted, limit;
    CHECK(same_text("x^2", "x^{2}") && same_text("x²", "x^2") && same_text("x₁", "x_1"));
    CHECK(same_text("h_t", "h_{t}"));
    CHECK(same_text("10^{-3}", "10^{−3}") && !same_text("a_{12}", "a_12"));
    CHECK(!same_text("-", "−") && !same_text("x_{a-b}", "x_{a−b}") &&
          same_text("x^{n-1}", "x^{n−1}"));
    plain = font_width("2", EM);
    scripted = font_width("x^2", EM) - font_width("x", EM);
    CHECK(scripted < 0.85 * plain && scripted > 0.68 * plain);
    draw(&first, "x^2");
    CHECK(first.y0 < -CAP_HEIGHT - 50.0); /* a superscript rises above the capitals */
    draw(&first, "x_2");
    CHECK(first.y1 > 100.0);
    draw(&first, "e^{x}");
    draw(&second, "e^{x^2}");
    CHECK(second.y0 < first.y0 - 100.0); /* nested scripts rise further and shrink further */
    limit = font_width("x^{2}", EM) - font_width("x", EM);
    CHECK(font_width("e^{x^2}", EM) - font_width("e^x", EM) < limit);
}

static void test_stacked_scripts(void)
{
    const double up = font_width("θ^{(k)}", EM), down = font_width("θ_t", EM);
    double upper, lower;
    CHECK_NEAR(font_width("θ_t^{(k)}", EM), up > down ? up : down, 1e-9);
    CHECK_NEAR(font_width("θ^{(k)}_t", EM), up > down ? up : down, 1e-9);
    CHECK(same_text("x_i^2", "x_i²"));
    CHECK_NEAR(font_width("x^2^3", EM) - font_width("x^2", EM),
               font_width("x^3", EM) - font_width("x", EM),
               1e-9);      /* same side: one after the other */
    draw(&first, "l^l_l"); /* three verticals; both scripts begin at the same x */
    CHECK_INT(first.lines, 3);
    CHECK_NEAR(first.xy[2 * first.begins[1]], first.xy[2 * first.begins[2]], 1e-9);
    draw(&first, "I^I_I"); /* drawn from the foot up: a pen and a half fits between the scripts */
    upper = first.xy[2 * first.begins[1] + 1];
    lower = first.xy[2 * first.begins[2] + 3];
    CHECK(lower - upper > 1.5 * PEN);
}

static void test_escapes_and_odd_braces(void)
{
    static const char *const odd[] = {
        "^",         "_",       "x^",        "x_",
        "^{",        "_{",      "^{^{",      "^{a",
        "^}",        "}",       "{",         "{{{",
        "}}}",       "^{}",     "^{}_{}",    "^^",
        "^_",        "_^",      "^^^^^^",    "\\",
        "^\\",       "^{\\",    "^{\\}",     "^{a\\}b}c",
        "^{a{b}c}d", "^ a",     "_ _",       "^{x^{x^{x^{x^{x^{x}}}}}}",
        "²",         "²²²",     "^²",        "^{²}",
        "x^\xFF",    "^{\xFF}", "^\xCC\x82", "\xCC\x82\xCC\x82"};
    size_t i;
    char deep[3000];
    draw(&first, "\\^");
    CHECK(first.points > 0);
    CHECK(same_text("\\^", "^") && same_text("a\\_ b", "a_ b"));
    CHECK(font_width("a\\_b", EM) > font_width("a_b", EM));
    CHECK(same_text("\\{a\\}", "{a}") && same_text("\\\\", "\\") && same_text("\\n", "\\\\n"));
    CHECK(same_text("x^{ab", "x^{ab}") && same_text("x^ 2", "x\\^ 2") && same_text("x^", "x\\^"));
    CHECK(font_width("^{a{b}c}", EM) > font_width("^{abc}", EM));
    for (i = 0; i < sizeof(odd) / sizeof(*odd); i++) {
        const double width = draw(&first, odd[i]);
        CHECK(width >= 0.0 && width < 10.0 * EM);
    }
    for (i = 0; i + 2 < sizeof(deep); i += 2) memcpy(deep + i, "^{", 2);
    deep[i] = '\0';
    CHECK(font_width(deep, EM) > 0.0); /* deeper than scripts nest: drawn as characters */
}

/* ---------------------------------------------------------------------------------------------- */

static int count_boxes(const char *text)
{
    int i, boxes = 0;
    draw(&first, text);
    for (i = 0; i < first.lines; i++) boxes += is_rectangle(&first, i);
    return boxes;
}

static void test_invalid_utf8(void)
{
    CHECK_INT(count_boxes("\x80"), 1); /* a continuation without a lead */
    CHECK_INT(count_boxes("\xFF\xFE"), 2);
    CHECK_INT(count_boxes("\xC3"), 1); /* cut off by the end of the text */
    CHECK_INT(count_boxes("\xE2\x88"), 1);
    CHECK_INT(count_boxes("\xC3(\xE2(\xF0("), 3);          /* a letter where a byte should follow */
    CHECK_INT(count_boxes("\xF4\x90\x80\x80"), 1);         /* beyond U+10FFFF */
    CHECK_INT(count_boxes("\xE4\xB8\x80\xEF\xBF\xBD"), 2); /* not in the font */
    CHECK_INT(count_boxes("β→✓"), 0);
}

/* All strings of up to three bytes out of the awkward ones, each in a block of exactly its size, so
   that a memory checker sees any read past the end. */
static void test_no_byte_past_the_end(void)
{
    static const unsigned char awkward[] = {'a',  '^',  '_',  '{',  '}',  '\\', ' ',  0x80,
                                            0xC3, 0xE2, 0xF0, 0xCC, 0x82, 0xB2, 0xFF, 'i'};
    const size_t n = sizeof(awkward);
    size_t i, length;
    for (length = 0; length <= 3; length++) {
        size_t total = 1, k;
        for (k = 0; k < length; k++) total *= n;
        for (i = 0; i < total; i++) {
            char *text = (char *)malloc(length + 1);
            size_t rest = i;
            if (!text) return;
            for (k = 0; k < length; k++, rest /= n) text[k] = (char)awkward[rest % n];
            text[length] = '\0';
            CHECK(draw(&first, text) >= 0.0);
            CHECK_NEAR(font_width(text, EM), draw(&second, text), 0.0);
            free(text);
        }
    }
}

static void test_bad_sizes(void)
{
    const double zero = 0.0;
    const double bad[] = {0.0, -0.0, -12.0, 0.0 / zero, 1.0 / zero, -1.0 / zero};
    size_t i;
    for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        CHECK_NEAR(draw_at(&first, "abc", bad[i]), 0.0, 0.0);
        CHECK_INT(first.points, 0);
    }
    CHECK_NEAR(draw_at(&first, NULL, 20.0), 0.0, 0.0);
    CHECK_NEAR(draw_at(&first, "", 20.0), 0.0, 0.0);
    CHECK(draw_at(&first, "abc @", 1e-9) > 0.0);
    CHECK(draw_at(&first, "a\tb\nc\r", 20.0) == font_width("a b c ", 20.0));
}

/* ---------------------------------------------------------------------------------------------- */

static double distance_to_segment(const double *p, const double *a, const double *b)
{
    const double dx = b[0] - a[0], dy = b[1] - a[1], length = dx * dx + dy * dy;
    double t = length > 0.0 ? ((p[0] - a[0]) * dx + (p[1] - a[1]) * dy) / length : 0.0;
    double x, y;
    t = t < 0.0 ? 0.0 : t > 1.0 ? 1.0 : t;
    x = p[0] - a[0] - t * dx;
    y = p[1] - a[1] - t * dy;
    return sqrt(x * x + y * y);
}

/* How far the finely drawn text is from the coarse one, in pixels of the coarse one. */
static double flattening_error(const char *text, double size, double zoom)
{
    double worst = 0.0;
    int line, i, k;
    draw_at(&first, text, size);
    draw_at(&second, text, size * zoom);
    if (first.lines != second.lines) return 1e9;
    for (line = 0; line < first.lines; line++) {
        for (i = second.begins[line]; i < second.begins[line + 1]; i++) {
            double best = 1e9, p[2];
            p[0] = second.xy[2 * i] / zoom;
            p[1] = second.xy[2 * i + 1] / zoom;
            for (k = first.begins[line]; k + 1 < first.begins[line + 1]; k++) {
                const double d = distance_to_segment(p, first.xy + 2 * k, first.xy + 2 * k + 2);
                if (d < best) best = d;
            }
            if (best > worst) worst = best;
        }
    }
    return worst;
}

static void test_curves_are_smooth_at_every_size(void)
{
    static const double sizes[] = {9.0, 12.0, 20.0, 48.0, 96.0, 300.0};
    static const char *const letters[] = {"&", "@", "S", "8", "a", "g", "α", "δ", "∞"};
    size_t i, k;
    for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        double worst = 0.0;
        for (k = 0; k < sizeof(letters) / sizeof(*letters); k++) {
            const double error = flattening_error(letters[k], sizes[i], 8.0);
            if (error > worst) worst = error;
        }
        CHECK(worst <= 0.05 && worst > 0.0);
    }
    draw_at(&first, "o", 10.0);
    draw_at(&second, "o", 100.0);
    CHECK(second.points > 2 * first.points); /* and no finer than it needs to be */
}

/* ---------------------------------------------------------------------------------------------- */

static uint64_t hash_number(uint64_t h, double value)
{
    /* Not 0.5: many coordinates end in exactly one half, which must not hang on the last bit. */
    const uint64_t n = (uint64_t)(int64_t)floor(value + 0.3719);
    int i;
    for (i = 0; i < 8; i++) {
        h ^= n >> (8 * i) & 0xFF;
        h *= 0x100000001B3ull;
    }
    return h;
}

static uint64_t hash_text(uint64_t h, const char *text)
{
    const double size = 40.0, grid = 1000.0 / size;
    int i;
    h = hash_number(h, draw_at(&first, text, size) * grid);
    for (i = 0; i < first.lines; i++) h = hash_number(h, first.begins[i]);
    for (i = 0; i < 2 * first.points; i++) h = hash_number(h, first.xy[i] * grid);
    return h;
}

/* Every outline and the layout of a few labels, to 1/1000 em. A change that was meant brings a new
   value with it; look at the figures before accepting it. */
static void test_fingerprint(void)
{
    static const char *const labels[] = {"Training loss per step", "x̂_i = (x_i − μ)/√(σ² + ε)",
                                         "10^{-3}", "AVATAR, To. Te LT r.", "θ_t^{(k)} e^{−x^{2}}"};
    const uint64_t expected = 0x6D9D8C5DD55308A8ull;
    uint64_t h = 0xCBF29CE484222325ull;
    unsigned long c;
    size_t i;
    char text[8];
    for (c = 1; c < MAX_CODE; c++)
        if (has(c)) h = hash_text(h, literal(c, text));
    h = hash_text(h, "\xFF");
    for (i = 0; i < sizeof(labels) / sizeof(*labels); i++) h = hash_text(h, labels[i]);
    if (!CHECK(h == expected))
        printf("fingerprint: 0x%08lX%08lX\n", (unsigned long)(h >> 32),
               (unsigned long)(h & 0xFFFFFFFFul));
}

int main(void)
{
    RUN(test_coverage);
    RUN(test_hat);
    RUN(test_figures_line_up);
    RUN(test_heights);
    RUN(test_lookalikes_differ);
    RUN(test_widths_add_up);
    RUN(test_letters_are_set_to_the_pixel);
    RUN(test_scaling);
    RUN(test_scripts);
    RUN(test_stacked_scripts);
    RUN(test_escapes_and_odd_braces);
    RUN(test_invalid_utf8);
    RUN(test_no_byte_past_the_end);
    RUN(test_bad_sizes);
    RUN(test_curves_are_smooth_at_every_size);
    RUN(test_fingerprint);
    return test_report("stroke font");
}
