/* stroke_font.c - see stroke_font.h. */
#include "stroke_font.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------------
   The glyphs

   A glyph is drawn on a grid of 1000 units per em with y upwards: baseline 0, x-height 500,
   capitals 700, ascenders 730, descenders -195; round shapes overshoot by 8 to 10, or they would
   look smaller than flat ones. x = 0 is the leftmost point of the path, `left` the room before it,
   so spacing can be tuned without touching a shape. The path is a small language:

       M x y        start a stroke              H x, V y     line to that x, or to that y
       L x y        line                        Z            line back to where the stroke began
       h x y        quarter of an oval that leaves horizontally and arrives vertically
       v x y        quarter of an oval that leaves vertically and arrives horizontally
       C x1 y1 x2 y2 x y          cubic Bezier curve
       D x y                      dot

   The ovals do most of the work: strokes made of them join smoothly by construction, and all of
   them share one curvature, which makes the letters a family. Straight strokes of neighbouring
   letters are about 200 units apart, round ones 150, diagonal ones 90: equal areas of white, not
   equal distances. Counters are 350 wide, so text at 12 pixels is still open. */
typedef struct {
    unsigned code;
    short left, advance;
    const char *path;
} sf_glyph;

/* Sorted by code. */
/* clang-format off */
static const sf_glyph sf_glyphs[] = {
    {' ', 0, 270, ""},
    {'!', 108, 216, "M0 700V215D0 8"},
    {'"', 100, 340, "M0 720V530M140 720V530"},
    {'#', 50, 620, "M160 700L80 0M440 700L360 0M30 480H520M0 220H490"},
    {'$', 85, 560, "M375 575C345 640 285 675 200 675C105 675 35 625 35 530"
                   "C35 420 125 390 205 368C305 340 390 300 390 190C390 90 310 25 200 25"
                   "C100 25 30 70 0 155M200 780V-80"},
    {'%', 70, 800, "M142 710h284 555v142 400h0 555v142 710ZM518 300h660 145v518 -10h376 145"
                   "v518 300ZM550 700L110 0"},
    {'&', 70, 670, "M550 0L150 470C115 512 95 545 95 590C95 660 145 710 220 710"
                   "C295 710 340 662 340 600C340 430 0 420 0 180C0 65 80 -10 195 -10"
                   "C350 -10 465 120 480 330"},
    {'\'', 100, 200, "M0 720V530"},
    {'(', 92, 300, "M150 790C48 650 0 500 0 325C0 150 48 0 150 -140"},
    {')', 58, 300, "M0 790C102 650 150 500 150 325C150 150 102 0 0 -140"},
    {'*', 60, 420, "M150 720V410M15 643L285 487M15 487L285 643"},
    {'+', 80, 560, "M0 320H400M200 520V120"},
    {',', 72, 240, "D52 8M58 0C58 -55 42 -98 4 -138"},
    {'-', 70, 350, "M0 275H210"},
    {'.', 112, 225, "D0 8"},
    {'/', 30, 400, "M0 -110L340 770"},
    {'0', 82, 560, "M198 710h396 350v198 -10h0 350v198 710Z"},
    {'1', 132, 560, "M0 568L195 700V0"},
    {'2', 85, 560, "M10 525C12 638 90 710 198 710C308 710 384 636 384 530"
                   "C384 450 340 386 260 295L0 0H400"},
    {'3', 80, 560, "M15 595C45 667 108 710 190 710h372 542v190 374H125M190 374h396 184v192 -10"
                   "C95 -10 27 38 0 122"},
    {'4', 65, 560, "M310 0V700L0 190H430"},
    {'5', 85, 560, "M365 700H70L38 375C78 420 130 444 195 444h392 220v192 -10C98 -10 28 35 0 115"},
    {'6', 82, 560, "M358 628C330 682 282 710 222 710h0 310V222v198 -10h396 222v202 452h0 222"},
    {'7', 80, 560, "M0 700H400L140 0"},
    {'8', 82, 560, "M198 710h368 540v198 372h28 540v198 710ZM198 372h396 181v198 -10h0 181"
                   "v198 372Z"},
    {'9', 82, 560, "M38 72C66 18 114 -10 174 -10h396 390V478v198 710h0 478v194 248h396 478"},
    {':', 112, 225, "D0 450D0 8"},
    {';', 72, 240, "D52 450D52 8M58 0C58 -55 42 -98 4 -138"},
    {'<', 80, 560, "M400 520L0 320L400 120"},
    {'=', 80, 560, "M0 400H400M0 240H400"},
    {'>', 80, 560, "M0 520L400 320L0 120"},
    {'?', 65, 450, "M0 560C20 655 85 710 175 710C280 710 350 645 350 550C350 395 170 395 170 218"
                   "D170 8"},
    {'@', 76, 900, "M540 450C510 490 465 512 410 512h235 285v395 90C475 90 520 160 535 260"
                   "L555 505M535 260C530 160 560 90 620 90C690 90 745 185 745 320v380 690h0 275"
                   "v380 -140C475 -140 545 -120 600 -85"},
    {'A', 46, 632, "M0 0L270 700L540 0M89 230H451"},
    {'B', 116, 647, "M0 364H205h378 532v205 700H0V0H225h428 182v225 364H205"},
    {'C', 84, 638, "M505 568C465 657 388 710 288 710h0 350v288 -10C388 -10 465 43 505 132"},
    {'D', 116, 690, "M0 0V700H190h490 350v190 0Z"},
    {'E', 116, 590, "M400 700H0V0H410M0 362H350"},
    {'F', 116, 554, "M390 700H0V0M0 350H345"},
    {'G', 76, 690, "M512 575C470 660 392 710 290 710h0 350v290 -10C385 -10 465 26 520 92V330H310"},
    {'H', 116, 712, "M0 0V700M480 0V700M0 360H480"},
    {'I', 115, 230, "M0 0V700"},
    {'J', 40, 435, "M290 700V185v140 -10C72 -10 24 28 0 95"},
    {'K', 116, 614, "M0 0V700M420 700L0 265M152 422L450 0"},
    {'L', 116, 524, "M0 700V0H370"},
    {'M', 116, 812, "M0 0V700L290 170L580 700V0"},
    {'N', 116, 712, "M0 0V700L480 0V700"},
    {'O', 84, 768, "M300 710h600 350v300 -10h0 350v300 710Z"},
    {'P', 116, 605, "M0 0V700H215h420 502v215 304H0"},
    {'Q', 84, 768, "M300 710h600 350v300 -10h0 350v300 710ZM375 165L570 -75"},
    {'R', 104, 612, "M0 0V700H215h420 506v215 312H0M228 312L442 0"},
    {'S', 74, 588, "M415 575C382 662 312 710 222 710C110 710 30 645 30 540"
                   "C30 415 130 385 225 358C340 326 440 290 440 175C440 60 345 -10 225 -10"
                   "C110 -10 30 45 0 140"},
    {'T', 51, 582, "M0 700H480M240 700V0"},
    {'U', 112, 698, "M0 700V230v237 -10h474 230V700"},
    {'V', 46, 622, "M0 700L265 0L530 700"},
    {'W', 46, 900, "M0 700L200 0L404 700L608 0L808 700"},
    {'X', 45, 570, "M15 700L480 0M465 700L0 0"},
    {'Y', 40, 570, "M0 700L245 325L490 700M245 325V0"},
    {'Z', 74, 593, "M12 700H435L0 0H447"},
    {'[', 105, 300, "M140 790H0V-140H140"},
    {'\\', 30, 400, "M0 770L340 -110"},
    {']', 55, 300, "M0 790H140V-140H0"},
    {'^', 90, 560, "M0 420L190 700L380 420"},
    {'_', 20, 500, "M0 -90H460"},
    {'`', 90, 300, "M0 720L110 590"},
    {'a', 74, 512, "M20 400C46 468 104 508 180 508h334 350V0M334 294H176h0 144v150 -10"
                   "C236 -10 302 40 334 128"},
    {'b', 100, 562, "M0 730V0M0 333C40 445 104 508 194 508h386 249v194 -10C104 -10 40 53 0 165"},
    {'c', 76, 472, "M352 392C325 466 268 508 196 508h0 249v196 -10C268 -10 325 32 352 106"},
    {'d', 76, 562, "M386 730V0M386 333C346 445 282 508 192 508h0 249v192 -10"
                   "C282 -10 346 53 386 165"},
    {'e', 76, 530, "M2 264H382v194 508h0 249v200 -10C274 -10 330 24 362 88"},
    {'f', 46, 326, "M96 0V595v222 735H270M0 500H248"},
    {'g', 76, 562, "M386 500V-20v196 -200C110 -200 50 -172 16 -112M386 333"
                   "C346 445 282 508 192 508h0 249v192 -10C282 -10 346 53 386 165"},
    {'h', 100, 546, "M0 730V0M0 322C36 444 100 508 192 508h346 336V0"},
    {'i', 104, 208, "M0 500V0D0 675"},
    {'j', 8, 214, "M98 500V-75v-15 -197D98 675"},
    {'k', 100, 488, "M0 730V0M326 500L0 188M118 301L350 0"},
    {'l', 102, 262, "M0 730V100v95 0H112"},
    {'m', 100, 818, "M0 500V0M0 328C30 444 86 508 164 508h308 350V0M308 328"
                    "C338 444 394 508 472 508h618 350V0"},
    {'n', 100, 546, "M0 500V0M0 322C36 444 100 508 192 508h346 336V0"},
    {'o', 76, 552, "M200 508h400 249v200 -10h0 249v200 508Z"},
    {'p', 100, 562, "M0 500V-195M0 333C40 445 104 508 194 508h386 249v194 -10"
                    "C104 -10 40 53 0 165"},
    {'q', 76, 562, "M386 500V-195M386 333C346 445 282 508 192 508h0 249v192 -10"
                   "C282 -10 346 53 386 165"},
    {'r', 100, 352, "M0 500V0M0 318C30 432 92 504 180 504H208"},
    {'s', 66, 460, "M305 410C280 474 230 508 162 508C85 508 25 462 25 388C25 305 95 282 165 262"
                   "C245 239 325 215 325 126C325 40 252 -10 165 -10C80 -10 22 32 0 102"},
    {'t', 45, 342, "M95 645V135v222 0H258M0 500H248"},
    {'u', 98, 546, "M346 500V0M346 178C310 56 246 -10 154 -10h0 164V500"},
    {'v', 46, 482, "M0 500L195 0L390 500"},
    {'w', 48, 734, "M0 500L158 0L319 500L480 0L638 500"},
    {'x', 50, 466, "M2 500L366 0M364 500L0 0"},
    {'y', 46, 482, "M0 500L195 0M390 500L195 0L150 -115C127 -173 90 -195 30 -195"},
    {'z', 64, 468, "M8 500H328L0 0H340"},
    {'{', 60, 320, "M190 790C120 790 90 755 90 690V440C90 370 60 335 0 325C60 315 90 280 90 210"
                   "V-40C90 -105 120 -140 190 -140"},
    {'|', 110, 220, "M0 790V-140"},
    {'}', 70, 320, "M0 790C70 790 100 755 100 690V440C100 370 130 335 190 325"
                   "C130 315 100 280 100 210V-40C100 -105 70 -140 0 -140"},
    {'~', 80, 560, "M0 260C20 350 70 385 120 385C220 385 180 255 280 255C330 255 380 290 400 380"},
    {0xB1, 80, 560, "M0 350H400M200 550V150M0 30H400"},
    {0xB7, 112, 225, "D0 320"},
    {0xD7, 120, 560, "M0 480L320 160M0 160L320 480"},
    {0x302, 0, 0, "M-112 608L0 712L112 608"},
    {0x394, 45, 660, "M0 0L285 700L570 0Z"},
    {0x3B1, 76, 565, "M412 500C375 235 305 -10 182 -10h0 249v182 508C312 508 332 140 356 60"
                     "C369 18 390 -2 424 -2"},
    {0x3B2, 100, 570, "M0 -195V562v172 735h340 570v172 405H112M172 405h390 197v194 -10"
                      "C112 -10 42 25 0 98"},
    {0x3B3, 45, 480, "M0 440C15 482 42 508 80 508C160 508 190 320 198 40V-195M385 500"
                     "C330 320 225 240 198 40"},
    {0x3B4, 76, 542, "M330 682C292 718 245 735 195 735C120 735 72 700 72 640"
                     "C72 530 390 450 390 220v195 -10h0 225C0 360 80 455 205 468"},
    {0x3B5, 65, 460, "M318 425C292 478 240 508 175 508C85 508 22 462 22 385"
                     "C22 308 80 262 165 262H220M165 262C65 262 0 215 0 128C0 42 70 -10 172 -10"
                     "C245 -10 300 22 330 85"},
    {0x3B7, 100, 546, "M0 500V0M0 322C36 444 100 508 192 508h346 336V-195"},
    {0x3B8, 82, 554, "M195 735h390 362v195 -10h0 362v195 735ZM0 362H390"},
    {0x3BB, 45, 490, "M10 730H35C92 730 112 690 132 638L385 0M0 0L190 488"},
    {0x3BC, 98, 546, "M0 500V-195M346 500V0M346 178C310 56 246 -10 154 -10h0 164"},
    {0x3C0, 48, 560, "M0 500H452M106 500V0M338 500V92v414 0H434"},
    {0x3C1, 100, 562, "M0 -195V249v193 508h386 249v193 -10C104 -10 40 53 0 165"},
    {0x3C3, 76, 562, "M440 500H200h0 245v200 -10h400 245v200 500"},
    {0x2013, 50, 560, "M0 290H460"},
    {0x2032, 60, 190, "M60 730L0 530"},
    {0x2192, 60, 760, "M0 320H640M450 510L640 320L450 130"},
    {0x2202, 76, 552, "M35 650C75 705 128 735 190 735C335 735 400 600 400 400"
                      "C400 150 305 -10 175 -10C70 -10 0 60 0 170C0 305 85 405 200 405"
                      "C290 405 360 360 396 282"},
    {0x2207, 45, 660, "M0 700H570L285 0Z"},
    {0x2211, 76, 620, "M450 760H0L270 330L0 -100H465"},
    {0x2212, 80, 560, "M0 320H400"},
    {0x221A, 40, 600, "M0 330L85 380L215 -20L390 790H560"},
    {0x221D, 80, 640, "M480 480C385 480 335 430 280 320C240 240 190 180 125 180h0 320v125 460"
                      "C190 460 240 400 280 320C335 210 385 160 480 160"},
    {0x221E, 70, 720, "M290 320C240 235 195 180 130 180h0 320v130 460C195 460 240 405 290 320"
                      "C340 235 385 180 450 180h580 320v450 460C385 460 340 405 290 320Z"},
    {0x2264, 80, 560, "M400 590L0 410L400 230M0 80H400"},
    {0x2713, 70, 640, "M0 300L170 70L500 660"},
    {0x27E8, 80, 320, "M160 790L0 325L160 -140"},
    {0x27E9, 80, 320, "M0 790L160 325L0 -140"}};

/* Drawn for every character the font does not have. */
static const sf_glyph sf_missing = {0, 80, 560, "M0 0H400V700H0Z"};

/* Pairs that need less room than their neighbours, by classes; the first match counts. Digits are
   left alone among themselves: numbers below each other must line up. */
typedef struct {
    const char *left, *right;
    double units;
} sf_kern_class;

static const sf_kern_class sf_kerns[] = {
    {"A", "TVWY", -62},         {"TVWY", "A", -62},       {"L", "TVWY'\"", -75},
    {"T", "acdegoqs", -75},     {"T", "mnpruvwxyz", -55}, {"Y", "acdegoqs", -58},
    {"VW", "acdegoqs", -35},    {"VWY", "mnpru", -22},    {"FPTVWY", ".,", -85},
    {"r", ".,", -55},           {"vwy", ".,", -50},       {"AKRX", "CGOQ", -18},
    {"CGOQ", "AX", -15},        {"F", "aegoq", -22},      {"K", "eovwy", -22},
    {"R", "TVWY", -18},         {"r", "acdegoq", -12},    {"k", "aceogq", -14},
    {"/", "/", -40},            {"f", "acdegoq.,", -14},  {"P", "A", -55}};

/* clang-format on */

#define SF_COUNT(table) (sizeof(table) / sizeof((table)[0]))

/* Every row begins with its code, so a row can be compared as a code. */
static int sf_compare(const void *code, const void *row)
{
    const unsigned a = *(const unsigned *)code, b = *(const unsigned *)row;
    return a < b ? -1 : a > b;
}

/* The row of the code, or NULL. */
static const sf_glyph *sf_find(unsigned code)
{
    return (const sf_glyph *)bsearch(&code, sf_glyphs, SF_COUNT(sf_glyphs), sizeof *sf_glyphs,
                                     sf_compare);
}

/* ------------------------------------------------------------------------------------------------
   From paths to strokes */

#define SF_SEGMENTS 64    /* most segments of one curve */
#define SF_TOLERANCE 0.05 /* how far a chord may be from its curve, in pixels */
#define SF_OVAL 0.575     /* handle length of the ovals; a circle has 0.5523 */
#define SF_DOT 17.0       /* radius of the pen's path in a dot, in units */

/* Where glyph units land, pixel = (x, y) + (kx, -ky) * units, and where the pen is, in pixels. */
typedef struct {
    font_pen *pen;
    void *ctx;
    double x, y, kx, ky, at[2];
} sf_stroke;

static void sf_go(sf_stroke *s, int down, double x, double y)
{
    const double to[2] = {s->x + s->kx * x, s->y - s->ky * y};
    if (down) s->pen(s->ctx, s->at, to);
    memcpy(s->at, to, sizeof to);
}

/* How many chords keep a cubic within the tolerance: the error of n chords is at most
   max|second derivative| / (8 n^2), and the second derivative of a cubic is at most 6 times the
   longer second difference of its control points. */
static int sf_segments(const sf_stroke *s, const double *p)
{
    double longest = 0.0, n;
    int i;
    for (i = 0; i < 2; i++) {
        const double dx = s->kx * (p[2 * i] - 2.0 * p[2 * i + 2] + p[2 * i + 4]);
        const double dy = s->ky * (p[2 * i + 1] - 2.0 * p[2 * i + 3] + p[2 * i + 5]);
        const double d = sqrt(dx * dx + dy * dy);
        if (d > longest) longest = d;
    }
    n = sqrt(6.0 * longest / (8.0 * SF_TOLERANCE));
    return n < SF_SEGMENTS - 1 ? (int)n + 1 : SF_SEGMENTS;
}

/* p: the four control points of the curve; the pen is at the first. */
static void sf_curve(sf_stroke *s, const double *p)
{
    const int n = sf_segments(s, p);
    int i;
    for (i = 1; i < n; i++) {
        const double t = (double)i / n, u = 1.0 - t;
        const double b0 = u * u * u, b1 = 3.0 * t * u * u, b2 = 3.0 * t * t * u, b3 = t * t * t;
        sf_go(s, 1, b0 * p[0] + b1 * p[2] + b2 * p[4] + b3 * p[6],
              b0 * p[1] + b1 * p[3] + b2 * p[5] + b3 * p[7]);
    }
    sf_go(s, 1, p[6], p[7]);
}

/* A quarter of an oval from (x0, y0) to (x1, y1). */
static void sf_oval(sf_stroke *s, int horizontal, double x0, double y0, double x1, double y1)
{
    const double hx = SF_OVAL * (x1 - x0), hy = SF_OVAL * (y1 - y0);
    const double flat[8] = {x0, y0, x0 + hx, y0, x1, y1 - hy, x1, y1};
    const double steep[8] = {x0, y0, x0, y0 + hy, x1 - hx, y1, x1, y1};
    sf_curve(s, horizontal ? flat : steep);
}

static void sf_dot(sf_stroke *s, double x, double y)
{
    sf_go(s, 0, x, y + SF_DOT);
    sf_oval(s, 1, x, y + SF_DOT, x + SF_DOT, y);
    sf_oval(s, 0, x + SF_DOT, y, x, y - SF_DOT);
    sf_oval(s, 1, x, y - SF_DOT, x - SF_DOT, y);
    sf_oval(s, 0, x - SF_DOT, y, x, y + SF_DOT);
}

/* Reads the `want` integers of a step into a. */
static const char *sf_numbers(const char *p, int want, double *a)
{
    char *end;
    for (; want > 0; want--, p = end) *a++ = (double)strtol(p, &end, 10);
    return p;
}

static void sf_play(sf_stroke *s, const char *path)
{
    double a[8] = {0.0}; /* a[0], a[1]: where the pen is; then the operands */
    double start_x = 0.0, start_y = 0.0;
    while (*path != '\0') {
        const char op = *path++;
        path = sf_numbers(path, strchr("HV", op) ? 1 : op == 'C' ? 6 : op == 'Z' ? 0 : 2, a + 2);
        switch (op) {
        case 'D':
            sf_dot(s, a[2], a[3]);
            break;
        case 'M':
            start_x = a[2];
            start_y = a[3];
            break;
        case 'H':
            a[3] = a[1];
            break;
        case 'V':
            a[3] = a[2];
            a[2] = a[0];
            break;
        case 'Z':
            a[2] = start_x;
            a[3] = start_y;
            break;
        case 'C':
            sf_curve(s, a);
            a[2] = a[6];
            a[3] = a[7];
            break;
        case 'h':
        case 'v':
            sf_oval(s, op == 'h', a[0], a[1], a[2], a[3]);
            break;
        default:
            break;
        }
        if (strchr("MLHVZ", op)) sf_go(s, op != 'M', a[2], a[3]);
        a[0] = a[2];
        a[1] = a[3];
    }
}

/* ------------------------------------------------------------------------------------------------
   From text to glyphs */

/* Decodes one character. What is not UTF-8 gives some other code; the zero at the end of a text
   ends a character too. */
static const char *sf_decode(const char *p, unsigned *code)
{
    const unsigned char *b = (const unsigned char *)p;
    *code = b[0] < 0xC0 ? b[0] : b[0] & (b[0] < 0xE0 ? 0x1Fu : b[0] < 0xF0 ? 0x0Fu : 0x07u);
    while ((*++b & 0xC0u) == 0x80u) *code = *code << 6 | (*b & 0x3Fu);
    return (const char *)b;
}

/* The same, with the backslash escapes of the markup. */
static const char *sf_character(const char *p, const char *end, unsigned *code)
{
    if (p[0] == '\\' && end - p > 1 && strchr("^_{}\\", p[1])) p++;
    return sf_decode(p, code);
}

/* A superscript or subscript found in the text: its content is [begin, end), the text goes on at
   next. */
typedef struct {
    const char *begin, *end, *next;
    int side; /* 1: superscript; -1: subscript */
} sf_script;

/* The content of braces; p is behind the opening one. */
static void sf_read_braces(const char *p, const char *end, sf_script *script)
{
    int open = 0;
    script->begin = p;
    while (p < end && (open > 0 || *p != '}')) {
        open += *p == '{' ? 1 : *p == '}' ? -1 : 0;
        p += *p == '\\' && end - p > 1 ? 2 : 1;
    }
    script->end = p;
    script->next = p < end ? p + 1 : end;
}

/* 1 if a script begins at p. */
static int sf_read_script(const char *p, const char *end, sf_script *script)
{
    static const char digits[] = "12";
    unsigned code;
    if (p == end) return 0;
    script->next = sf_decode(p, &code);
    script->side = code == '_' || code == 0x2081 ? -1 : 1;
    if (code == 0xB2 || code == 0x2081) { /* ² and ₁ */
        script->begin = digits + (code == 0xB2);
        script->end = script->begin + 1;
        return 1;
    }
    if ((code != '^' && code != '_') || end - p < 2 || p[1] == ' ') return 0;
    if (p[1] == '{') {
        sf_read_braces(p + 2, end, script);
    } else {
        script->begin = p + 1;
        script->end = script->next = sf_character(p + 1, end, &code);
    }
    return 1;
}

/* What stays the same during one text. */
typedef struct {
    double scale; /* pixels per unit */
    font_pen *pen;
    void *ctx;
} sf_page;

/* What changes from script to script. */
typedef struct {
    int depth;
    double raise, scale;
} sf_style;

#define SF_DEPTH 4     /* scripts nest this deep; further down ^ and _ stand for themselves */
#define SF_WIDEN 1.04  /* small text is drawn a little wider, to keep it open */
#define SF_SCRIPT 0.68 /* size of a script, relative to the text that carries it */
#define SF_SUPER 330.0 /* how far a superscript rises and a subscript falls */
#define SF_SUB 135.0
#define SF_STACKED 70.0 /* how much further each of two stacked scripts moves away */
#define SF_AFTER 30.0   /* room behind a script */

static double sf_width_scale(const sf_style *style)
{
    return style->depth > 0 ? SF_WIDEN * style->scale : style->scale;
}

/* Draws one glyph path `offset` units to the right of x, which is moved to a whole pixel: the same
   letter in a line is the same pixels again, and an image file need not repeat them. */
static void sf_draw(const sf_page *page, const sf_style *style, const char *path, double x,
                    double offset)
{
    sf_stroke stroke;
    if (!page->pen) return;
    stroke.pen = page->pen;
    stroke.ctx = page->ctx;
    stroke.kx = page->scale * sf_width_scale(style);
    stroke.ky = page->scale * style->scale;
    stroke.x = floor(page->scale * x + 0.5) + page->scale * offset;
    stroke.y = -page->scale * style->raise;
    sf_play(&stroke, path);
}

/* The line being set: where the next glyph goes, and the one before it, 0 after a script. */
typedef struct {
    double x, advance;
    unsigned previous;
} sf_line;

static double sf_kerning(unsigned left, unsigned right)
{
    int i;
    if (left == 0 || left > 0x7F || right > 0x7F) return 0.0;
    for (i = 0; i < (int)SF_COUNT(sf_kerns); i++) {
        if (strchr(sf_kerns[i].left, (int)left) && strchr(sf_kerns[i].right, (int)right))
            return sf_kerns[i].units;
    }
    return 0.0;
}

static int sf_is_letter(unsigned code)
{
    return (code >= 'A' && code <= 'Z') || (code >= 'a' && code <= 'z');
}

static void sf_set(const sf_page *page, const sf_style *style, sf_line *line, unsigned code,
                   unsigned following)
{
    const double k = sf_width_scale(style);
    const sf_glyph *glyph;
    if (code == '\t' || code == '\n' || code == '\r') code = ' ';
    /* in scripts a hyphen is a minus, except between letters: "10^{-3}" but "x_{pre-norm}" */
    if (code == '-' && style->depth > 0 &&
        !(sf_is_letter(line->previous) && sf_is_letter(following)))
        code = 0x2212;
    glyph = sf_find(code);
    if (code == 0x302) { /* drawn with its middle at 0, over the letter before it */
        const double width = k * line->advance;
        sf_draw(page, style, glyph->path, line->x - width, width / 2.0);
        return;
    }
    if (!glyph) glyph = &sf_missing;
    line->x += k * sf_kerning(line->previous, code);
    sf_draw(page, style, glyph->path, line->x, k * glyph->left);
    line->x += k * glyph->advance;
    line->advance = glyph->advance;
    line->previous = code;
}

/* Scripts contain text, text contains scripts. */
static double sf_run(const sf_page *page, const sf_style *style, const char *p, const char *end,
                     double x);

/* Draws one script at x and returns where it ends. */
static double sf_set_script(const sf_page *page, const sf_style *around, const sf_script *script,
                            double extra, double x)
{
    const double shift = script->side > 0 ? SF_SUPER + extra : -SF_SUB - extra;
    sf_style style;
    style.depth = around->depth + 1;
    style.raise = around->raise + around->scale * shift;
    style.scale = around->depth == 0 ? SF_SCRIPT : 0.8 * around->scale;
    return sf_run(page, &style, script->begin, script->end, x);
}

/* Draws the script and, if one of the other side follows, that one below or above it. */
static double sf_set_scripts(const sf_page *page, const sf_style *style, const sf_script *first,
                             double x, const char *end, const char **next)
{
    sf_script second;
    double x1, x2 = x;
    const int stacked = sf_read_script(first->next, end, &second) && second.side != first->side;
    const double extra = stacked ? SF_STACKED : 0.0;
    x1 = sf_set_script(page, style, first, extra, x);
    if (stacked) x2 = sf_set_script(page, style, &second, extra, x);
    *next = stacked ? second.next : first->next;
    return (x1 > x2 ? x1 : x2) + style->scale * SF_AFTER;
}

/* Draws [p, end) from x on, in units of the page, and returns where it ends. */
static double sf_run(const sf_page *page, const sf_style *style, const char *p, const char *end,
                     double x)
{
    sf_line line = {0.0, 0.0, 0};
    line.x = x;
    while (p < end) {
        sf_script script;
        unsigned code, following = 0;
        if (style->depth < SF_DEPTH && sf_read_script(p, end, &script)) {
            line.x = sf_set_scripts(page, style, &script, line.x, end, &p);
            line.advance = 0.0;
            line.previous = 0;
            continue;
        }
        p = sf_character(p, end, &code);
        if (p < end) sf_decode(p, &following);
        sf_set(page, style, &line, code, following);
    }
    return line.x;
}

double font_text(const char *utf8, double size, font_pen *pen, void *ctx)
{
    const sf_page page = {size / 1000.0, pen, ctx};
    const sf_style style = {0, 0.0, 1.0};
    if (!utf8 || !(size > 0.0 && size < 1e9)) return 0.0;
    return page.scale * sf_run(&page, &style, utf8, utf8 + strlen(utf8), 0.0);
}

double font_width(const char *utf8, double size)
{
    return font_text(utf8, size, NULL, NULL);
}
