/* synthetic_digits.c - see synthetic_digits.h. */
#include "synthetic_digits.h"

#include <stdlib.h>
#include <string.h>

/* How different two digits of one style are: standard deviations in units of 1/SD_ONE. They set how
   hard the set is. A linear softmax reaches about 89 % on the test digits, an MLP 784-64-128-10
   (rate 0.1, batches of 64, 5 epochs) 95 to 97 %. */
#define SD_WARP_U 760 /* coefficients of the warp, to the sides */
#define SD_WARP_V 560 /* and along the height */
#define SD_TREMOR 165 /* of each point */
#define SD_SHIFT 190  /* of each stroke */
#define SD_ASPECT 600 /* of width to height */
#define SD_SLANT 1150
#define SD_TURN 400  /* of the tangent of half the angle of rotation */
#define SD_OFFSET 72 /* largest distance of the centre of mass from the middle, in 1/64 pixel */

/*
Units. Three scales, all integers:
    page   the coordinates of the style table, x 0..100 to the right, y 0..140 downwards
    plane  1/4096 of half the height of a digit, the origin in its middle: v = -1..1, u = -0.7..0.7
    fine   1/64 of a pixel
C rounds a quotient of integers towards zero, the same everywhere; nothing below shifts a negative
number to the right.
*/
#define SD_ONE 4096
#define SD_PIXEL 64
#define SD_SIDE (SYNTHETIC_DIGITS_SIDE * SD_PIXEL)
#define SD_BOX (20 * SD_PIXEL)
#define SD_PIECES 8      /* straight pieces from one point of a style to the next */
#define SD_MAX_POINTS 24 /* of a style */
#define SD_MAX_KNOTS (SD_MAX_POINTS * SD_PIECES)
#define SD_SOFT 32    /* half the width of the soft rim of the pen, fine */
#define SD_PEN_MIN 36 /* radius of the pen, fine */
#define SD_PEN_MAX 130
#define SD_ROOTS 2048 /* 16 SD_ROOTS > (SD_PEN_MAX + SD_SOFT)^2 */

/* ---------------------------------------------------------------- random numbers */

/*
PCG32 (M. E. O'Neill 2014, the variant XSH RR 64/32): a linear congruential generator of 64 bits,
    state <- state * 6364136223846793005 + inc  (mod 2^64), inc odd.
It puts out 32 bits of the old state x: the low word of (x ^ x >> 18) >> 27, rotated to the right by
the number in the top five bits, x >> 59.
*/
typedef struct sd_rng {
    uint64_t state, inc;
} sd_rng;

static uint32_t sd_next(sd_rng *g)
{
    uint64_t old = g->state;
    uint32_t folded = (uint32_t)((((old >> 18) ^ old) >> 27) & 0xffffffffu);
    unsigned turn = (unsigned)(old >> 59);
    g->state = old * UINT64_C(6364136223846793005) + g->inc;
    return (folded >> turn) | (folded << ((32u - turn) & 31u));
}

/* A bijection of 64-bit words, each bit spread over all others: the finaliser of SplitMix64. */
static uint64_t sd_mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Each digit has a generator of its own. Streams differ in inc, hence in the whole sequence and not
   only in where it starts. */
static sd_rng sd_seed(uint64_t seed, unsigned stream, uint64_t index)
{
    sd_rng g;
    g.inc = 2 * sd_mix(seed + UINT64_C(0x9e3779b97f4a7c15) * ((uint64_t)stream + 1)) + 1;
    g.state = sd_mix(g.inc + UINT64_C(0x9e3779b97f4a7c15) * (index + 1));
    (void)sd_next(&g);
    return g;
}

/* Uniform on lo..hi, both included; the high word of a product is biased by at most 2^-18 here. */
static int sd_uniform(sd_rng *g, int lo, int hi)
{
    uint64_t range = (uint64_t)(hi - lo) + 1;
    return lo + (int)(((uint64_t)sd_next(g) * range) >> 32);
}

/* Bell-shaped around 0 with the given standard deviation and never beyond 3.5 of them: the sum of
   four uniforms. One on [-w, w] has variance w^2/3, four have 4 w^2/3, so w = 0.866 sd. */
static int sd_bell(sd_rng *g, int sd)
{
    int w = sd * 887 / 1024;
    int a = sd_uniform(g, -w, w), b = sd_uniform(g, -w, w);
    int c = sd_uniform(g, -w, w), d = sd_uniform(g, -w, w);
    return a + b + c + d;
}

/* ---------------------------------------------------------------- styles */

/*
Strokes in page units: "x,y" is a point of a smooth curve, "x,y!" one where the pen turns sharply,
"/" lifts the pen. The weight says how often a style is drawn among those of its digit.
*/
typedef struct sd_style {
    int digit, weight;
    const char *strokes;
} sd_style;

static const sd_style sd_styles[] = {
    {0, 4, "62,8 40,2 18,22 6,70 18,118 45,138 76,122 94,72 84,24 58,4"},
    {0, 2, "70,20 48,4 22,24 10,72 24,120 50,138 78,116 90,66 76,20 50,10 38,22"},
    {0, 2, "40,4 14,34 6,80 22,126 54,138 86,112 96,64 84,22 60,10"},
    {1, 5, "50,0 50,70 50,140"},
    {1, 3, "26,32 56,2! 54,70 52,140"},
    {1, 1, "28,30 54,2! 53,70 52,136 / 22,138 52,137 82,137"},
    {2, 3, "10,34 24,8 54,2 84,18 84,48 60,84 32,112 8,136! 50,134 94,132"},
    {2, 3, "12,30 32,6 62,4 82,26 76,58 54,92 28,122 10,126 10,108 28,104 52,120 76,134 98,126"},
    {2, 2, "14,20 44,4 78,16 84,44 64,76 40,104 12,136! 94,138"},
    {2, 1, "12,14 50,4 86,12 80,36 48,82 14,130! 52,126 94,134"},
    {3, 3, "12,16 40,2 76,10 80,40 58,60 38,66! 64,68 92,90 84,122 50,138 10,124"},
    {3, 2, "12,6 48,6 88,4! 66,32 46,54! 76,62 94,94 78,128 44,138 8,124"},
    {3, 2, "14,18 46,2 78,16 72,48 44,64 34,62 46,58 76,74 90,104 66,134 34,138 8,118"},
    {4, 3, "22,4 16,40 12,76! 50,78 92,74 / 78,4 72,70 68,140"},
    {4, 2, "66,2 36,42 6,88! 50,90 96,86 / 68,2 67,70 66,140"},
    {4, 3, "20,6 14,46 24,72 52,74 80,56 / 84,2 76,60 66,140"},
    {5, 3, "28,8 22,56! 52,50 86,70 88,106 60,136 10,128 / 28,8 60,8 92,4"},
    {5, 2, "90,4 58,8 30,8! 22,58! 56,52 88,74 84,114 50,138 8,122"},
    {5, 2, "86,8 50,6 26,28 36,56 70,72 86,102 62,134 28,138 8,122"},
    {6, 3, "74,4 40,26 14,70 10,108 30,136 64,134 84,108 70,80 40,80 14,106"},
    {6, 2, "50,2 26,44 14,96 28,132 58,136 80,114 72,86 46,82 22,104"},
    {6, 2, "84,8 50,12 18,54 8,100 30,136 72,134 92,100 74,70 40,72 14,96"},
    {7, 3, "8,10 50,10 90,8! 64,70 42,140"},
    {7, 2, "8,10 50,10 90,8! 64,70 42,140 / 26,74 56,72 86,68"},
    {7, 2, "12,30 14,8! 52,12 92,6! 66,66 52,140"},
    {7, 2, "6,16 40,6 84,10 86,26 62,78 48,140"},
    {8, 4, "78,18 50,2 22,18 26,46 54,66 84,94 78,126 48,138 16,122 18,92 48,66 76,42 80,20"},
    {8, 2,
     "50,2 24,14 24,46 50,62 76,46 76,14 50,2 / 50,62 16,84 14,118 48,138 86,120 84,86 50,62"},
    {8, 2, "82,12 46,8 26,32 50,62 76,96 62,132 32,136 18,108 40,74 68,44 86,10"},
    {9, 3, "82,20 50,2 16,24 16,56 46,70 78,48 84,18! 80,80 74,140"},
    {9, 2, "84,24 54,2 18,18 12,50 40,68 76,52 86,22 88,70 76,120 46,138 16,126"},
    {9, 2, "76,8 36,6 14,36 34,64 72,54 88,20! 82,80 58,140"},
};

typedef struct sd_point {
    int at[2];  /* page, later plane: to the right, downwards */
    int corner; /* the spline breaks here */
    int last;   /* the pen is lifted after this point */
} sd_point;

static const char *sd_style_pick(sd_rng *g, int digit)
{
    const size_t count = sizeof sd_styles / sizeof sd_styles[0];
    int total = 0, draw;
    size_t i;
    for (i = 0; i < count; i++)
        if (sd_styles[i].digit == digit) total += sd_styles[i].weight;
    draw = sd_uniform(g, 0, total - 1);
    for (i = 0; i < count; i++) {
        if (sd_styles[i].digit != digit) continue;
        draw -= sd_styles[i].weight;
        if (draw < 0) return sd_styles[i].strokes;
    }
    return "";
}

static int sd_style_parse(const char *s, sd_point *p)
{
    char *end;
    int n;
    for (n = 0; *s && n < SD_MAX_POINTS; n++) {
        p[n].at[0] = (int)strtol(s, &end, 10);
        p[n].at[1] = (int)strtol(end + 1, &end, 10);
        p[n].corner = *end == '!';
        s = end + p[n].corner;
        p[n].last = !*s || s[1] == '/';
        if (*s && p[n].last) s += 2; /* behind the "/" */
    }
    return n;
}

/* ---------------------------------------------------------------- deformation */

/* The hand: what differs between two digits of the same style. All in units of 1/SD_ONE. */
typedef struct sd_hand {
    int warp[2][5];   /* of u and of v: coefficients of uu, uv, vv, uuv, uvv */
    int affine[2][2]; /* [u'; v'] = affine [u; v] */
    int pen,
        pen_slope[2]; /* radius of the pen in fine units, and its relative change along u and v */
    int ink, ink_slope[2]; /* the same for its pressure, SD_ONE is full black */
} sd_hand;

static int sd_mul(int a, int b)
{
    return a * b / SD_ONE; /* |a|, |b| < 11 SD_ONE keeps the product within 32 bits */
}

static int sd_clamp(int v, int lo, int hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}

/* Rotation by the angle a without sine and cosine: with t = tan(a/2),
   cos a = (1-tt)/(1+tt) and sin a = 2t/(1+tt). */
static void sd_hand_affine(sd_rng *g, int m[2][2])
{
    int aspect = sd_clamp(3480 + sd_bell(g, SD_ASPECT), 2200, 4800);
    int slant = sd_clamp(540 + sd_bell(g, SD_SLANT), -1900, 3000);
    int t = sd_bell(g, SD_TURN);
    int tt = sd_mul(t, t);
    int c = (SD_ONE - tt) * SD_ONE / (SD_ONE + tt), s = 2 * t * SD_ONE / (SD_ONE + tt);
    m[0][0] = sd_mul(c, aspect);
    m[0][1] = sd_mul(c, -slant) - s; /* y grows downwards: a positive slant leans to the right */
    m[1][0] = sd_mul(s, aspect);
    m[1][1] = sd_mul(s, -slant) + c;
}

static void sd_hand_draw(sd_rng *g, sd_hand *h)
{
    int i;
    for (i = 0; i < 10; i++) h->warp[i / 5][i % 5] = sd_bell(g, i < 5 ? SD_WARP_U : SD_WARP_V);
    sd_hand_affine(g, h->affine);
    h->pen = sd_clamp(88 + sd_bell(g, 20), 44, SD_PEN_MAX);
    h->ink = sd_clamp(4350 + sd_bell(g, 260), 3400, SD_ONE);
    for (i = 0; i < 2; i++) {
        h->pen_slope[i] = sd_bell(g, 420);
        h->ink_slope[i] = sd_bell(g, 200);
    }
}

static int sd_warped(const int k[5], int u, int v)
{
    int uu = sd_mul(u, u), uv = sd_mul(u, v), vv = sd_mul(v, v);
    return sd_mul(k[0], uu) + sd_mul(k[1], uv) + sd_mul(k[2], vv) + sd_mul(k[3], sd_mul(uu, v)) +
           sd_mul(k[4], sd_mul(uv, v));
}

static void sd_deform(sd_rng *g, const sd_hand *h, sd_point *p, int n)
{
    int i, k, shift[2], moved[2];
    for (k = 0; k < 2; k++) shift[k] = sd_bell(g, SD_SHIFT);
    for (i = 0; i < n; i++) {
        const int u = (p[i].at[0] - 50) * SD_ONE / 70, v = (p[i].at[1] - 70) * SD_ONE / 70;
        for (k = 0; k < 2; k++)
            moved[k] =
                (k == 0 ? u : v) + sd_warped(h->warp[k], u, v) + shift[k] + sd_bell(g, SD_TREMOR);
        for (k = 0; k < 2; k++)
            p[i].at[k] = sd_mul(h->affine[k][0], moved[0]) + sd_mul(h->affine[k][1], moved[1]);
        for (k = 0; k < 2 && p[i].last; k++) shift[k] = sd_bell(g, SD_SHIFT);
    }
}

/* ---------------------------------------------------------------- strokes to pieces */

typedef struct sd_knot {
    int at[2]; /* plane, later fine */
    int pen, ink;
    int last; /* no piece leads on from here */
} sd_knot;

/* Catmull-Rom at t = k/8 between b and c, with neighbours a and d:
   2 p(t) = 2b + (c-a) t + (2a-5b+4c-d) tt + (3b-a-3c+d) ttt. */
static int sd_spline(int a, int b, int c, int d, int k)
{
    int sum = 2 * b * 512 + (c - a) * 64 * k + (2 * a - 5 * b + 4 * c - d) * 8 * k * k +
              (3 * b - a - 3 * c + d) * k * k * k;
    return sum / 1024;
}

/* Flattens all strokes. At the ends of a smooth run the missing neighbour is the point itself. */
static int sd_flatten(const sd_point *p, int n, sd_knot *knot)
{
    int i, k, axis, m = 0;
    for (i = 0; i < n; i++) {
        const sd_point *b = p + i, *c = b->last ? b : b + 1;
        const sd_point *a = i == 0 || b[-1].last || b->corner ? b : b - 1;
        const sd_point *d = c->last || c->corner ? c : c + 1;
        for (k = 0; k < (b->last ? 1 : SD_PIECES); k++, m++) {
            knot[m].last = b->last;
            for (axis = 0; axis < 2; axis++)
                knot[m].at[axis] = sd_spline(a->at[axis], b->at[axis], c->at[axis], d->at[axis], k);
        }
    }
    return m;
}

/* Length of a piece to within 7 %: exact enough to weigh it or to count its stamps. */
static int sd_length(const sd_knot *a, const sd_knot *b)
{
    const int dx = abs(b->at[0] - a->at[0]), dy = abs(b->at[1] - a->at[1]);
    return dx > dy ? dx + dy * 3 / 8 : dy + dx * 3 / 8;
}

static void sd_set_pen(const sd_hand *h, sd_knot *knot, int m)
{
    int i;
    for (i = 0; i < m; i++) {
        int u = knot[i].at[0], v = knot[i].at[1];
        int w = SD_ONE + sd_mul(h->pen_slope[0], u) + sd_mul(h->pen_slope[1], v);
        int f = h->ink + sd_mul(h->ink_slope[0], u) + sd_mul(h->ink_slope[1], v);
        knot[i].pen = sd_clamp(sd_mul(h->pen, w), SD_PEN_MIN, SD_PEN_MAX);
        knot[i].ink = sd_clamp(f, 2900, SD_ONE);
    }
}

/* Scales the ink to the box. Its centre of mass goes to `centre`, unless the ink would then be cut
   off at the edge of the image. */
static void sd_place(sd_knot *knot, int m, int pen, const int centre[2])
{
    const int scale = SD_BOX - 2 * pen, rim = pen + SD_SOFT;
    int i, k, low[2], high[2], extent;
    int64_t sum[2] = {0, 0}, mass = 1;
    for (i = 0; i < m; i++) {
        const sd_knot *a = knot + i, *b = a->last ? a : a + 1;
        const int weight = sd_length(a, b) * a->pen / SD_PIXEL;
        mass += 2 * weight;
        for (k = 0; k < 2; k++) {
            sum[k] += (int64_t)weight * (a->at[k] + b->at[k]);
            if (i == 0 || a->at[k] < low[k]) low[k] = a->at[k];
            if (i == 0 || a->at[k] > high[k]) high[k] = a->at[k];
        }
    }
    extent = (high[0] - low[0] > high[1] - low[1] ? high[0] - low[0] : high[1] - low[1]) + 1;
    for (k = 0; k < 2; k++) {
        const int mean = (int)(sum[k] / mass);
        const int first = rim - (low[k] - mean) * scale / extent;
        const int last = SD_SIDE - rim - (high[k] - mean) * scale / extent;
        const int to = sd_clamp(centre[k], first, last);
        for (i = 0; i < m; i++) knot[i].at[k] = to + (knot[i].at[k] - mean) * scale / extent;
    }
}

/* ---------------------------------------------------------------- ink */

/* root[q] = the distance in fine units whose square is about 16 q. */
static void sd_roots(unsigned char root[SD_ROOTS])
{
    int q, r = 0;
    for (q = 0; q < SD_ROOTS; q++) {
        while ((r + 1) * (r + 1) <= 16 * q + 8) r++;
        root[q] = (unsigned char)r;
    }
}

/* The first pixel whose centre is not before c. */
static int sd_pixel(int c)
{
    return sd_clamp((c + SD_PIXEL / 2 - 1) / SD_PIXEL, 0, SYNTHETIC_DIGITS_SIDE);
}

/* One touch of the pen: full ink within pen - SD_SOFT of (cx, cy), none beyond pen + SD_SOFT,
   linear between. The darker of old and new ink stays. */
static void sd_stamp(unsigned char *image, const unsigned char *root, int cx, int cy, int pen,
                     int ink)
{
    const int reach = pen + SD_SOFT;
    const int x0 = sd_pixel(cx - reach), x1 = sd_pixel(cx + reach + 1);
    const int y0 = sd_pixel(cy - reach), y1 = sd_pixel(cy + reach + 1);
    int x, y;
    for (y = y0; y < y1; y++) {
        int dy = y * SD_PIXEL + SD_PIXEL / 2 - cy;
        unsigned char *row = image + y * SYNTHETIC_DIGITS_SIDE;
        for (x = x0; x < x1; x++) {
            int dx = x * SD_PIXEL + SD_PIXEL / 2 - cx;
            unsigned square = (unsigned)(dx * dx + dy * dy), cover;
            if (square >= (unsigned)(reach * reach)) continue;
            cover = (unsigned)(reach - root[square / 16]) * 255 / (2 * SD_SOFT);
            cover = (cover < 255 ? cover : 255) * (unsigned)ink / SD_ONE;
            if (cover > row[x]) row[x] = (unsigned char)cover;
        }
    }
}

/* Stamps at most a third of a pixel apart look like a line. */
static void sd_ink(unsigned char *image, const unsigned char *root, const sd_knot *knot, int m)
{
    int i, k;
    for (i = 0; i < m; i++) {
        const sd_knot *a = knot + i, *b = a->last ? a : a + 1;
        const int dx = b->at[0] - a->at[0], dy = b->at[1] - a->at[1];
        const int steps = 1 + sd_length(a, b) * 3 / SD_PIXEL;
        for (k = 0; k < steps; k++)
            sd_stamp(image, root, a->at[0] + dx * k / steps, a->at[1] + dy * k / steps, a->pen,
                     a->ink);
    }
}

/* Only pixels with ink get noise, some percent of their darkness. */
static void sd_noise(sd_rng *g, unsigned char *image)
{
    int i;
    for (i = 0; i < SYNTHETIC_DIGITS_PIXELS; i++) {
        int v = image[i];
        if (v > 0) image[i] = (unsigned char)sd_clamp(v + v * sd_uniform(g, -9, 9) / 100, 1, 255);
    }
}

/* ---------------------------------------------------------------- a digit */

static int sd_digit(unsigned char *image, const unsigned char *root, sd_rng *g)
{
    sd_point point[SD_MAX_POINTS];
    sd_knot knot[SD_MAX_KNOTS];
    sd_hand hand;
    int label = sd_uniform(g, 0, 9), centre[2], n, m, k;
    n = sd_style_parse(sd_style_pick(g, label), point);
    sd_hand_draw(g, &hand);
    sd_deform(g, &hand, point, n);
    m = sd_flatten(point, n, knot);
    sd_set_pen(&hand, knot, m);
    for (k = 0; k < 2; k++) centre[k] = SD_SIDE / 2 + sd_uniform(g, -SD_OFFSET, SD_OFFSET);
    sd_place(knot, m, hand.pen, centre);
    memset(image, 0, SYNTHETIC_DIGITS_PIXELS);
    sd_ink(image, root, knot, m);
    sd_noise(g, image);
    return label;
}

void synthetic_digits_fill(unsigned char *images, unsigned char *labels, size_t n, uint64_t seed,
                           unsigned stream)
{
    unsigned char root[SD_ROOTS];
    size_t i;
    sd_roots(root);
    for (i = 0; i < n; i++) {
        sd_rng g = sd_seed(seed, stream, i);
        labels[i] = (unsigned char)sd_digit(images + i * SYNTHETIC_DIGITS_PIXELS, root, &g);
    }
}
