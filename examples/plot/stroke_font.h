/* stroke_font.h - text as strokes: a sans-serif for figures

   A font without a font file. Every glyph is the path of a pen: the functions hand out its pieces,
   the caller strokes them with a round pen of whatever width suits. Text looks the same on every
   machine and at every size, because curves are flattened to 0.05 pixel at the size asked for.

   Markup

       ^{...}  _{...}   superscript, subscript: smaller, raised or lowered; they nest
       ^x  _x           the same for a single character; ² is ^2, ₁ _1
       \^ \_ \{ \} \\   the character itself; a file name wants "train\_loss"

       A superscript directly followed by a subscript, or the reverse, shares its x position, as
       in "θ_t^{(k)}". Inside a script a hyphen is drawn as a minus, unless it is between letters.
       A brace that nothing opened is drawn; a script that nobody closed ends with the text; ^ and
       _ before a space or at the end of the text stand for themselves.

   Characters

       ASCII, the Greek letters and signs of mathematics that the figures need, and a hat over
       lower case letters (x̂). A character that is not there draws an empty box. All digits have
       one advance, and + − = × and their kin have it too, so that columns of numbers line up. Tab
       and line end are drawn as a space.

   Coordinates

       x grows to the right, y grows downwards; the text begins at 0, 0, on its baseline. Glyphs are
       moved to whole pixels along it, by half a pixel at most; widths are not rounded. Sizes are
       the em: capitals and digits are 0.7 em high, lower case letters without ascenders 0.5 em,
       measured between the middles of the strokes. Nothing rises above 1 em or falls below 0.25 em
       but scripts and hats over scripts.

   No state, no allocation, no locale. */
#ifndef STROKE_FONT_H
#define STROKE_FONT_H

#ifdef __cplusplus
extern "C" {
#endif

/* Receives a straight piece of a stroke, in pixels; pieces of one stroke follow each other. */
typedef void font_pen(void *ctx, const double from[2], const double to[2]);

/* Draws utf8 and returns the advance width, in pixels. pen may be NULL: the text is only measured.
   A size that is not positive or too large, or a text that is NULL, draws nothing and gives 0. */
double font_text(const char *utf8, double size, font_pen *pen, void *ctx);

/* The advance width alone. */
double font_width(const char *utf8, double size);

#ifdef __cplusplus
}
#endif
#endif /* STROKE_FONT_H */
