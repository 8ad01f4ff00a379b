/* test_stroke_font.c - the stroke font of the figures: coverage, metrics, markup, bad input, and a
   fingerprint of every outline. */
#include "plot/stroke_font.h"
#include "test.h"
#include <stdint.h>
#include <stdlib.h>

#define EM 1000.0 /* at this size a pixel is one unit of the design grid */
#define MAX_POINTS 65536
#define MAX_CODE 0x110000ul

/* Everything a text sends to the pen. */
typedef struct {
    int lines, points;
    int begins[2048]; /* first point of each polyline */
    double xy[2 * MAX_POINTS];
    double x0, x1, y0, y1;
    int short_lines; /* polylines of fewer than two points: never allowed */
} drawing;

static void take(void *ctx, const double *xy, int points)
{
    drawing *d = (drawing *)ctx;
    int i;
    if (points < 2) d->short_lines++;
    if (d->lines >= 2047 || d->points + points > MAX_POINTS) return;
    d->begins[d->lines++] = d->points;
    d->begins[d->lines] = d->points + points;
    for (i = 0; i < points; i++, d->points++) {
        const double x = xy[2 * i], y = xy[2 * i + 1];
        d->xy[2 * d->points] = x;
        d->xy[2 * d->points + 1] = y;
        if (!(x >= d->x0)) d->x0 = x;
        if (!(x <= d->x1)) d->x1 = x;
        if (!(y >= d->y0)) d->y0 = y;
        if (!(y <= d->y1)) d->y1 = y;
    }
}

static void clear(drawing *d)
{
    d->lines = d->points = d->short_lines = 0;
    d->x0 = d->y0 = 1e300;
    d->x1 = d->y1 = -1e300;
}

static double draw_at(drawing *d, const char *text, double x, double y, double size)
{
    clear(d);
    return font_text(text, x, y, size, take, d);
}

static double draw(drawing *d, const char *text)
{
    return draw_at(d, text, 0.0, 0.0, EM);
}

/* Same polylines, moved by (dx, dy)? */
static int same_drawing(const drawing *a, const drawing *b, double dx, double dy)
{
    int i;
    if (a->lines != b->lines || a->points != b->points) return 0;
    for (i = 0; i < a->points; i++) {
        if (fabs(a->xy[2 * i] + dx - b->xy[2 * i]) > 1e-6) return 0;
        if (fabs(a->xy[2 * i + 1] + dy - b->xy[2 * i + 1]) > 1e-6) return 0;
    }
    return 1;
}

static drawing first, second; /* too large for the stack */

static int same_text(const char *a, const char *b)
{
    const double wa = draw(&first, a), wb = draw(&second, b);
    return wa == wb && same_drawing(&first, &second, 0.0, 0.0);
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

static int is_mark(unsigned long c)
{
    return c >= 0x300 && c <= 0x36F;
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

/* ---------------------------------------------------------------------------------------------- */

static void test_coverage(void)
{
    const char *p = "αβγδεζηθικλμνξπρστυφχψωΓΔΘΛΞΠΣΦΨΩ"
                    "−×·±≤≥≠≈∝→←↑↓∞∂∇√∑∏∫∈‖′″°…–—‘’“”•½²³⁻¹⁰⁴⁵⁶⁷⁸⁹⁺₀₁₂₃₄₅₆₇₈₉ᵢⱼₖₜₙ✓✗"
                    "⟨⟩⊙∘≡ℝ⊤ℓ";
    unsigned long c;
    for (c = 0x20; c < 0x7F; c++) CHECK(font_has(c));
    while (*p != '\0') {
        p = next_code(p, &c);
        if (!CHECK(font_has(c))) printf("missing: U+%04lX\n", c);
    }
    for (c = 0x300; c <= 0x308; c++) CHECK(font_has(c) || c == 0x305 || c == 0x306);
    CHECK(!font_has(0) && !font_has('\n') && !font_has(0x4E00) && !font_has(0x1F600));
    CHECK(!font_has(MAX_CODE) && !font_has(~0ul));
}

/* A glyph may only be empty if it is a space. */
static int is_blank(unsigned long c)
{
    return c == ' ';
}

static int is_subscript(unsigned long c)
{
    return (c >= 0x1D62 && c <= 0x1D6A) || (c >= 0x2080 && c <= 0x209C) || c == 0x2C7C;
}

/* The outline that begins every box: no letter is a closed upright rectangle. */
static int is_rectangle(const drawing *d, int line)
{
    const double *p = d->xy + 2 * d->begins[line];
    if (d->begins[line + 1] - d->begins[line] != 5) return 0;
    return p[0] == p[8] && p[1] == p[9] && p[1] == p[3] && p[2] == p[4] && p[5] == p[7];
}

/* Tables refer to each other: no covered character may end at the box of the unknown ones. */
static void check_not_missing(unsigned long c)
{
    char text[8];
    draw(&first, literal(c, text));
    if (!CHECK(first.lines == 0 || !is_rectangle(&first, 0))) printf("U+%04lX draws a box\n", c);
}

static void check_glyph(unsigned long c)
{
    char text[8];
    const double slack = 30.0, advance = draw(&first, literal(c, text));
    const double bottom = (is_subscript(c) ? 1.2 : 1.0) * FONT_BOTTOM * EM;
    int ok = first.short_lines == 0 && (first.points > 0) != is_blank(c);
    if (is_mark(c)) {
        ok = ok && advance == 0.0;
    } else if (first.points > 0) {
        ok = ok && advance > 0.0 && first.x0 >= -slack && first.x1 <= advance + slack;
        ok = ok && first.y0 >= -FONT_TOP * EM && first.y1 <= bottom;
    }
    if (!CHECK(ok)) printf("U+%04lX leaves its box\n", c);
}

static void test_glyphs_stay_in_their_boxes(void)
{
    unsigned long c;
    int count = 0;
    for (c = 0; c < MAX_CODE; c++) {
        if (!font_has(c)) continue;
        count++;
        check_glyph(c);
        if (c != 0xFFFD) check_not_missing(c);
    }
    CHECK_INT(count, 235);
}

static void test_marks_sit_above_their_letters(void)
{
    static const char *const letters[] = {"x", "o", "i", "j", "h", "A", "θ", "y"};
    static const char *const marks[] = {"\xCC\x80", "\xCC\x81", "\xCC\x82", "\xCC\x83",
                                        "\xCC\x84", "\xCC\x87", "\xCC\x88"};
    size_t i, k;
    for (i = 0; i < sizeof(letters) / sizeof(*letters); i++) {
        double top, middle;
        const double advance = draw(&first, *letters[i] == 'i'   ? "ı"
                                            : *letters[i] == 'j' ? "ȷ"
                                                                 : letters[i]);
        top = first.y0;
        middle = *letters[i] == 'j' ? first.x1 : (first.x0 + first.x1) / 2.0;
        for (k = 0; k < sizeof(marks) / sizeof(*marks); k++) {
            const int before = first.lines;
            char text[16];
            int p, outline;
            double x0 = 1e9, x1 = -1e9, lowest = -1e9;
            strcpy(text, letters[i]);
            strcat(text, marks[k]);
            CHECK_NEAR(draw(&second, text), advance, 0.0);
            CHECK(second.y0 >= -FONT_TOP * EM && second.lines > before);
            outline = second.begins[before];
            for (p = outline; p < second.points; p++) {
                if (second.xy[2 * p] < x0) x0 = second.xy[2 * p];
                if (second.xy[2 * p] > x1) x1 = second.xy[2 * p];
                if (second.xy[2 * p + 1] > lowest) lowest = second.xy[2 * p + 1];
            }
            CHECK(lowest <= top - 70.0);
            CHECK_NEAR((x0 + x1) / 2.0, middle, 25.0); /* acute and grave lean */
        }
    }
    CHECK(same_text("i\xCC\x82", "ı\xCC\x82"));
    draw(&first, "x\xCC\x82");
    draw(&second, "x\xCC\x82\xCC\x82"); /* a second hat stands on the first */
    CHECK(second.y0 < first.y0 - 100.0);
    CHECK(font_width("\xCC\x82", EM) == 0.0); /* a hat over nothing */
}

static void test_figures_line_up(void)
{
    static const char *const wide[] = {"+", "−", "=", "×", "±", "<", ">", "≤", "≥", "≠", "≈"};
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
    CHECK_NEAR(first.y0, -FONT_CAP_HEIGHT * EM, 1e-9);
    CHECK_NEAR(first.y1, 0.0, 1e-9);
    draw(&first, "xvz");
    CHECK_NEAR(first.y0, -FONT_X_HEIGHT * EM, 1e-9);
    draw(&first, "bdfghklpqy");
    CHECK(first.y0 >= -FONT_ASCENDER * EM && first.y0 < -FONT_CAP_HEIGHT * EM);
    CHECK(first.y1 <= FONT_DESCENDER * EM && first.y1 > 0.9 * FONT_DESCENDER * EM);
}

static void test_lookalikes_differ(void)
{
    CHECK(!same_text("1", "l") && !same_text("l", "I") && !same_text("1", "I"));
    CHECK(font_width("O", EM) > 1.2 * font_width("0", EM));
    CHECK(!same_text("ν", "v") && !same_text("μ", "u"));
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
    CHECK_NEAR(font_width("A\xCC\x88V", EM), font_width("AV", EM), 1e-9);
    CHECK_NEAR(font_width("A^{}V", EM) - font_width("^{}", EM),
               font_width("A", EM) + font_width("V", EM), 1e-9);
}

static void test_moving_and_scaling(void)
{
    const char *text = "x̂_i = (x_i − μ)/√(σ^2 + ε) ✓";
    const double width = draw_at(&first, text, 0.0, 0.0, 31.0);
    CHECK_NEAR(draw_at(&second, text, 17.25, -400.5, 31.0), width, 0.0);
    CHECK(same_drawing(&first, &second, 17.25, -400.5));
    CHECK_NEAR(font_width(text, 31.0), width, 0.0);
    CHECK_NEAR(font_width(text, 62.0), 2.0 * width, 1e-9);
}

/* ---------------------------------------------------------------------------------------------- */

static void test_scripts(void)
{
    double plain, scripted, limit;
    CHECK(same_text("x^2", "x^{2}") && same_text("x²", "x^2") && same_text("h_t", "h_{t}"));
    CHECK(same_text("10⁻³", "10^{-3}") && same_text("10^{-3}", "10^{−3}"));
    CHECK(same_text("xᵢ", "x_i") && same_text("a₁₂", "a_{12}") && !same_text("a₁₂", "a_12"));
    CHECK(same_text("x_x̂y", "x_{x̂}y"));
    CHECK(!same_text("-", "−") && !same_text("x_{a-b}", "x_{a−b}") &&
          same_text("x^{n-1}", "x^{n−1}"));
    plain = font_width("2", EM);
    scripted = font_width("x^2", EM) - font_width("x", EM);
    CHECK(scripted < 0.85 * plain && scripted > FONT_SCRIPT_SCALE * plain);
    draw(&first, "x^2");
    CHECK(first.y0 < -FONT_CAP_HEIGHT * EM - 50.0); /* a superscript rises above the capitals */
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
    CHECK(same_text("x_i^2", "xᵢ²"));
    CHECK_NEAR(font_width("x^2^3", EM) - font_width("x^2", EM),
               font_width("x^3", EM) - font_width("x", EM),
               1e-9);      /* same side: one after the other */
    draw(&first, "l^l_l"); /* three verticals; both scripts begin at the same x */
    CHECK_INT(first.lines, 3);
    CHECK_NEAR(first.xy[2 * first.begins[1]], first.xy[2 * first.begins[2]], 1e-9);
    draw(&first, "I^I_I"); /* drawn from the foot up: a pen and a half fits between the scripts */
    upper = first.xy[2 * first.begins[1] + 1];
    lower = first.xy[2 * first.begins[2] + 3];
    CHECK(lower - upper > 1.5 * FONT_PEN_REGULAR * EM);
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
        "²",         "²₂²₂",    "^²",        "^{²}",
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
        CHECK(width >= 0.0 && width < 10.0 * EM && first.short_lines == 0);
    }
    for (i = 0; i + 2 < sizeof(deep); i += 2) memcpy(deep + i, "^{", 2);
    deep[i] = '\0';
    CHECK(font_width(deep, EM) > 0.0); /* deeper than scripts nest: drawn as characters */
}

/* ---------------------------------------------------------------------------------------------- */

static int count_crossed_boxes(const char *text)
{
    drawing *d = &first;
    int i, crossings = 0;
    draw(d, text);
    for (i = 0; i + 2 < d->lines; i++) {
        crossings += is_rectangle(d, i) && d->begins[i + 2] - d->begins[i + 1] == 2 &&
                     d->begins[i + 3] - d->begins[i + 2] == 2;
    }
    return crossings;
}

static void test_invalid_utf8(void)
{
    CHECK_INT(count_crossed_boxes("\xEF\xBF\xBD"), 1); /* U+FFFD itself */
    CHECK_INT(count_crossed_boxes("\x80"), 1);         /* a continuation without a lead */
    CHECK_INT(count_crossed_boxes("\xFF\xFE"), 2);
    CHECK_INT(count_crossed_boxes("\xC3"), 1); /* cut off by the end of the text */
    CHECK_INT(count_crossed_boxes("\xE2\x88"), 2);
    CHECK_INT(count_crossed_boxes("\xF0\x9F\x98"), 3);
    CHECK_INT(count_crossed_boxes("\xC3(\xE2(\xF0("), 3); /* a letter where a byte should follow */
    CHECK_INT(count_crossed_boxes("\xC0\xAF"), 2);        /* overlong */
    CHECK_INT(count_crossed_boxes("\xE0\x80\xAF"), 3);
    CHECK_INT(count_crossed_boxes("\xF0\x80\x80\xAF"), 4);
    CHECK_INT(count_crossed_boxes("\xED\xA0\x80"), 3);     /* surrogate */
    CHECK_INT(count_crossed_boxes("\xF4\x90\x80\x80"), 4); /* beyond U+10FFFF */
    CHECK_INT(count_crossed_boxes("β→✓"), 0);
    CHECK(!same_text("\xE4\xB8\x80", "\xFF") && same_text("\xE4\xB8\x80", "\xF0\x9F\x98\x80"));
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
            CHECK(draw(&first, text) >= 0.0 && first.short_lines == 0);
            CHECK_NEAR(font_width(text, EM), draw(&second, text), 0.0);
            free(text);
        }
    }
}

static void test_bad_sizes_and_places(void)
{
    const double zero = 0.0, nan = zero / zero, inf = 1.0 / zero;
    const double bad[] = {0.0, -0.0, -12.0, 0.0 / zero, 1.0 / zero, -1.0 / zero};
    size_t i;
    for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        CHECK_NEAR(draw_at(&first, "abc", 1.0, 2.0, bad[i]), 0.0, 0.0);
        CHECK_INT(first.points, 0);
    }
    CHECK_NEAR(draw_at(&first, "abc", nan, 0.0, 20.0), font_width("abc", 20.0), 0.0);
    CHECK_INT(first.points, 0);
    CHECK_NEAR(draw_at(&first, "abc", 0.0, inf, 20.0), font_width("abc", 20.0), 0.0);
    CHECK_INT(first.points, 0);
    CHECK_NEAR(draw_at(&first, NULL, 0.0, 0.0, 20.0), 0.0, 0.0);
    CHECK_NEAR(draw_at(&first, "", 0.0, 0.0, 20.0), 0.0, 0.0);
    CHECK(draw_at(&first, "abc @", 0.0, 0.0, 1e-9) > 0.0 && first.short_lines == 0);
    CHECK(draw_at(&first, "a\tb\nc\r", 0.0, 0.0, 20.0) == font_width("a b c ", 20.0));
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
    draw_at(&first, text, 0.0, 0.0, size);
    draw_at(&second, text, 0.0, 0.0, size * zoom);
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
    size_t i;
    for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        const double error = flattening_error("&@S8agαξ∞", sizes[i], 8.0);
        CHECK(error <= 0.05 && error > 0.0);
    }
    draw_at(&first, "o", 0.0, 0.0, 10.0);
    draw_at(&second, "o", 0.0, 0.0, 100.0);
    CHECK(second.points > 2 * first.points); /* and no finer than it needs to be */
}

/* A stroke with more points than one call can carry goes on where the previous piece ended. */
static void test_long_strokes_continue(void)
{
    const double huge = 1e6;
    int joint;
    draw_at(&first, "∞", 0.0, 0.0, huge);
    CHECK_INT(first.lines, 2);
    joint = first.begins[1];
    CHECK(first.xy[2 * joint] == first.xy[2 * joint - 2]);
    CHECK(first.xy[2 * joint + 1] == first.xy[2 * joint - 1]);
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
    h = hash_number(h, draw_at(&first, text, 0.0, 0.0, size) * grid);
    for (i = 0; i < first.lines; i++) h = hash_number(h, first.begins[i]);
    for (i = 0; i < 2 * first.points; i++) h = hash_number(h, first.xy[i] * grid);
    return h;
}

/* Every outline and the layout of a few labels, to 1/1000 em. A change that was meant brings a new
   value with it; look at the figures before accepting it. */
static void test_fingerprint(void)
{
    static const char *const labels[] = {"Training loss per step", "x̂ᵢ = (xᵢ − μ)/√(σ² + ε)",
                                         "10^{-3}", "AVATAR, To. Te LT r.", "θ_t^{(k)} e^{−x^{2}}"};
    const uint64_t expected = 0x50DEE2B181A72333ull;
    uint64_t h = 0xCBF29CE484222325ull;
    unsigned long c;
    size_t i;
    char text[8];
    for (c = 0; c < MAX_CODE; c++)
        if (font_has(c)) h = hash_text(h, literal(c, text));
    h = hash_text(h, "\xFF");
    for (i = 0; i < sizeof(labels) / sizeof(*labels); i++) h = hash_text(h, labels[i]);
    if (!CHECK(h == expected))
        printf("fingerprint: 0x%08lX%08lX\n", (unsigned long)(h >> 32),
               (unsigned long)(h & 0xFFFFFFFFul));
}

int main(void)
{
    RUN(test_coverage);
    RUN(test_glyphs_stay_in_their_boxes);
    RUN(test_marks_sit_above_their_letters);
    RUN(test_figures_line_up);
    RUN(test_heights);
    RUN(test_lookalikes_differ);
    RUN(test_widths_add_up);
    RUN(test_moving_and_scaling);
    RUN(test_scripts);
    RUN(test_stacked_scripts);
    RUN(test_escapes_and_odd_braces);
    RUN(test_invalid_utf8);
    RUN(test_no_byte_past_the_end);
    RUN(test_bad_sizes_and_places);
    RUN(test_curves_are_smooth_at_every_size);
    RUN(test_long_strokes_continue);
    RUN(test_fingerprint);
    return test_report("stroke font");
}
