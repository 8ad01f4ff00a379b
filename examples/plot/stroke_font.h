/* stroke_font.h - text as polylines: a single-stroke sans-serif for figures

   A font without a font file. Every glyph is the path of a pen: the functions hand out polylines,
   the caller strokes them with a round pen of whatever width suits. Text looks the same on every
   machine and at every size, because curves are flattened to 0.05 pixel at the size asked for.

   Example: a formula as an SVG drawing.

       #include "stroke_font.h"
       #include <stdio.h>

       static void svg_pen(void *ctx, const double *xy, int points)
       {
           FILE *out = (FILE *)ctx;
           int i;
           fputs("<polyline points='", out);
           for (i = 0; i < points; i++) fprintf(out, "%.2f,%.2f ", xy[2 * i], xy[2 * i + 1]);
           fputs("'/>\n", out);
       }

       int main(void)
       {
           const double size = 40.0;
           const char *text = "x̂_i = (x_i − μ) / √(σ^2 + ε)";
           printf("<svg xmlns='http://www.w3.org/2000/svg' width='%.0f' height='60' fill='none' "
                  "stroke='black' stroke-width='%.2f' stroke-linecap='round' "
                  "stroke-linejoin='round'>\n",
                  font_width(text, size), FONT_PEN_REGULAR * size);
           font_text(text, 0.0, 42.0, size, svg_pen, stdout);
           puts("</svg>");
           return 0;
       }

   Markup

       ^{...}  _{...}   superscript, subscript: smaller, raised or lowered; they nest
       ^x  _x           the same for a single character (with its combining marks)
       \^ \_ \{ \} \\   the character itself; a file name wants "train\_loss"

       A superscript directly followed by a subscript, or the reverse, shares its x position, as
       in "θ_t^{(k)}". The characters ² ³ ⁻ ¹ ᵢ ₂ ... are read as the same markup, so "10⁻³" and
       "10^{-3}" give the same drawing: inside a script a hyphen is drawn as a minus, unless it is
       between letters. A brace that nothing opened is drawn; a script that nobody closed ends
       with the text; ^ and _ before a space or at the end of the text stand for themselves.

   Characters

       ASCII, Greek, the usual signs of mathematics and typography, and combining accents over
       anything (x̂, x̄, x̃). A character that is not there
       draws an empty box, a byte that is not UTF-8 a crossed one; neither stops the text. All
       digits have one advance, and + − = × and their kin have it too, so that columns of numbers
       line up. Tab and line end are drawn as a space.

   Coordinates

       x grows to the right, y grows downwards, the baseline is at y. Sizes are the em: capitals
       and digits are FONT_CAP_HEIGHT * size high, measured between the middles of the strokes, so
       the ink reaches half a pen further on every side.

   No state, no allocation, no locale; of the C library it calls bsearch, sqrt, strchr, strlen.
*/
#ifndef STROKE_FONT_H
#define STROKE_FONT_H

#ifdef __cplusplus
extern "C" {
#endif

/* Heights and depths above and below the baseline, as fractions of the size. */
#define FONT_CAP_HEIGHT 0.70 /* capitals and digits */
#define FONT_X_HEIGHT 0.50   /* lower case without ascenders */
#define FONT_ASCENDER 0.74   /* the tallest lower case letters */
#define FONT_DESCENDER 0.20  /* depth of g, p, y */
#define FONT_TOP 1.00        /* nothing that is not a superscript rises above, accents included */
#define FONT_BOTTOM 0.25     /* nothing that is not a subscript falls below */

/* Pen widths that suit the shapes, as fractions of the size. */
#define FONT_PEN_REGULAR 0.080
#define FONT_PEN_BOLD 0.115

/* Size of a superscript or subscript, relative to the text that carries it. */
#define FONT_SCRIPT_SCALE 0.68

/* Receives one polyline: points >= 2 points x0, y0, x1, y1, ... valid during the call only.
   A closed outline ends at the point it began with; a dot is a very small closed outline. */
typedef void font_pen(void *ctx, const double *xy, int points);

/* Draws utf8 with the baseline starting at (x, y), in pixels, and returns the advance width.
   pen may be NULL: the text is only measured. A size that is not positive and finite, or a text
   that is NULL, draws nothing and gives 0; a position that is not finite is only measured. */
double font_text(const char *utf8, double x, double y, double size, font_pen *pen, void *ctx);

/* The advance width alone. */
double font_width(const char *utf8, double size);

/* 1 if the font can draw the code point (space and combining marks count), else 0. */
int font_has(unsigned long code);

#ifdef __cplusplus
}
#endif
#endif /* STROKE_FONT_H */
