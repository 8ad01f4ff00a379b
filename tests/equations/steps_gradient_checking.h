/* steps_gradient_checking.h - the steps of docs/05_gradient_checking.md, executed.

   A remainder O(hⁿ) is checked twice: on polynomials that have none, where nothing may be left but
   rounding, and on exponentials, where what is left must be the next term of the series. */
#ifndef STEPS_GRADIENT_CHECKING_H
#define STEPS_GRADIENT_CHECKING_H

#include <complex.h>

#include "derive_tools.h"
#include "pages/museum.h"

#undef I /* the letter is needed elsewhere */

/* ---- losses of one number, all of whose derivatives are known -------------------------------- */

typedef struct fd_curve { /* L = ∑ cₙ·(θ − centre)ⁿ + amplitude·e^(rate·θ) */
    wide c[6], centre, amplitude, rate;
} fd_curve;

/* The order-th derivative at t. */
static wide fd_at(const fd_curve *l, wide t, int order)
{
    wide sum = 0;
    int n, k;
    for (n = 5; n >= order; n--) {
        wide c = l->c[n];
        for (k = 0; k < order; k++) c *= (wide)(n - k);
        sum = sum * (t - l->centre) + c;
    }
    if (l->amplitude == 0) return sum;
    return sum + l->amplitude * powl(l->rate, (wide)order) * expl(l->rate * t);
}

static fd_curve fd_polynomial(int degree, nrm_rng *rng)
{
    fd_curve l;
    int n;
    memset(&l, 0, sizeof l);
    for (n = 0; n <= degree; n++) l.c[n] = 1 + (wide)nrm_rng_normal(rng);
    return l;
}

static fd_curve fd_exponential(wide rate)
{
    fd_curve l;
    memset(&l, 0, sizeof l);
    l.amplitude = 1.25L;
    l.rate = rate;
    return l;
}

static wide fd_forward(const fd_curve *l, wide t, wide h)
{
    return (fd_at(l, t + h, 0) - fd_at(l, t, 0)) / h;
}

static wide fd_backward(const fd_curve *l, wide t, wide h)
{
    return (fd_at(l, t, 0) - fd_at(l, t - h, 0)) / h;
}

static wide fd_central(const fd_curve *l, wide t, wide h)
{
    return (fd_at(l, t + h, 0) - fd_at(l, t - h, 0)) / (2 * h);
}

static wide fd_richardson(const fd_curve *l, wide t, wide h)
{
    return (4 * fd_central(l, t, h / 2) - fd_central(l, t, h)) / 3;
}

static wide fd_jump(const fd_curve *l, wide t, wide h)
{
    return fd_forward(l, t, h) - fd_backward(l, t, h);
}

/* The size of the terms whose rounding a difference over h carries. */
static wide fd_size(const fd_curve *l, wide t, wide h)
{
    wide size = 1;
    int n;
    for (n = 0; n <= 5; n++) size += fabsl(l->c[n]) * powl(fabsl(t - l->centre) + h, (wide)n);
    return (size + fabsl(fd_at(l, t, 0))) / h;
}

/* What is left of an O(...), against the next term of the series. */
static wide fd_left(wide left, wide next)
{
    return fabsl(left / next - 1);
}

static witness fd_next_term(void)
{
    return make_witness('O', 0.02);
}

/* Is this what the page has printed, to half a unit of its last place? */
static wide fd_printed(wide value, wide page, wide unit)
{
    return unless(fabsl(value - page) <= 0.5001L * unit);
}

/* The same for a number printed to two digits, such as 3.6e-13. */
static wide fd_printed_2(wide value, double page)
{
    return fd_printed(value, (wide)page, (wide)pow(10, floor(log10(fabs(page))) - 1));
}

/* ---- Taylor: FD.1 to FD.3, GC.2a to GC.3e ---------------------------------------------------- */

/* l has no terms of the order that the formulas leave out. */
static void fd_exact(nrm_rng *rng, wide t, wide h)
{
    const fd_curve line = fd_polynomial(1, rng), bow = fd_polynomial(2, rng);
    const fd_curve l = fd_polynomial(5, rng);
    const wide L = fd_at(&l, t, 0), L1 = fd_at(&l, t, 1), L2 = fd_at(&l, t, 2);
    const wide L3 = fd_at(&l, t, 3), L4 = fd_at(&l, t, 4), L5 = fd_at(&l, t, 5);
    const wide h2 = h * h, h3 = h2 * h, h4 = h3 * h, h5 = h4 * h, size = fd_size(&l, t, h);
    const wide D = fd_central(&l, t, h), half = fd_central(&l, t, h / 2);
    DERIVE("FD.1", apart(fd_forward(&line, t, h), line.c[1], fd_size(&line, t, h)), algebra());
    DERIVE("FD.2",
           apart(fd_at(&l, t + h, 0),
                 L + h * L1 + h2 / 2 * L2 + h3 / 6 * L3 + h4 / 24 * L4 + h5 / 120 * L5, size),
           algebra());
    DERIVE("FD.3",
           apart(fd_forward(&bow, t, h), fd_at(&bow, t, 1) + h / 2 * fd_at(&bow, t, 2),
                 fd_size(&bow, t, h)),
           algebra());
    DERIVE("GC.2a",
           apart(fd_at(&l, t - h, 0),
                 L - h * L1 + h2 / 2 * L2 - h3 / 6 * L3 + h4 / 24 * L4 - h5 / 120 * L5, size),
           algebra());
    DERIVE("GC.2b",
           apart(fd_at(&l, t + h, 0) - fd_at(&l, t - h, 0), 2 * h * L1 + h3 / 3 * L3 + h5 / 60 * L5,
                 size),
           algebra());
    DERIVE("GC.2c", apart(D, L1 + h2 / 6 * L3 + h4 / 120 * L5, size), algebra());
    DERIVE("GC.3a", apart(half, L1 + h2 / 24 * L3 + h4 / 1920 * L5, size), algebra());
    DERIVE("GC.3b", apart(4 * half - D, 3 * L1 - h4 / 160 * L5, size), algebra());
    DERIVE("GC.3c", apart(fd_richardson(&l, t, h), L1 - h4 / 480 * L5, size), algebra());
    DERIVE("GC.3d",
           apart(fd_richardson(&l, t, 2 * h),
                 (8 * (fd_at(&l, t + h, 0) - fd_at(&l, t - h, 0)) -
                  (fd_at(&l, t + 2 * h, 0) - fd_at(&l, t - 2 * h, 0))) /
                     (12 * h),
                 fd_size(&l, t, 2 * h)),
           algebra());
    DERIVE("GC.3e",
           apart(fd_richardson(&l, t, 2 * h), L1 - h4 / 30 * L5, 2 * fd_size(&l, t, 2 * h)),
           algebra());
}

static void fd_next_terms(wide t, wide rate)
{
    const fd_curve l = fd_exponential(rate);
    const wide h = 1.0L / 16, L = fd_at(&l, t, 0), L1 = fd_at(&l, t, 1), L2 = fd_at(&l, t, 2);
    const wide L3 = fd_at(&l, t, 3), L4 = fd_at(&l, t, 4), L5 = fd_at(&l, t, 5);
    const wide L6 = fd_at(&l, t, 6), L7 = fd_at(&l, t, 7), D = fd_central(&l, t, h);
    const wide h2 = h * h, h3 = h2 * h, h4 = h3 * h, h5 = h4 * h, h6 = h5 * h, h7 = h6 * h;
    const wide even = L + h2 / 2 * L2 + h4 / 24 * L4, odd = h * L1 + h3 / 6 * L3 + h5 / 120 * L5;
    const wide half = fd_central(&l, t, h / 2), up = fd_at(&l, t + h, 0),
               down = fd_at(&l, t - h, 0);
    ALSO_OF("FD.2", fd_left(up - even - odd, h6 / 720 * L6), fd_next_term());
    ALSO_OF("FD.3", fd_left(fd_forward(&l, t, h) - L1 - h / 2 * L2, h2 / 6 * L3), fd_next_term());
    ALSO_OF("GC.2a", fd_left(down - even + odd, h6 / 720 * L6), fd_next_term());
    ALSO_OF("GC.2b", fd_left(up - down - 2 * odd, h7 / 2520 * L7), fd_next_term());
    ALSO_OF("GC.2c", fd_left(D - odd / h, h6 / 5040 * L7), fd_next_term());
    ALSO_OF("GC.3a", fd_left(half - L1 - h2 / 24 * L3 - h4 / 1920 * L5, h6 / 322560 * L7),
            fd_next_term());
    ALSO_OF("GC.3b", fd_left(4 * half - D - 3 * L1 + h4 / 160 * L5, -h6 / 5376 * L7),
            fd_next_term());
    ALSO_OF("GC.3c", fd_left(fd_richardson(&l, t, h) - L1 + h4 / 480 * L5, -h6 / 16128 * L7),
            fd_next_term());
    ALSO_OF("GC.3e", fd_left(fd_richardson(&l, t, 2 * h) - L1 + h4 / 30 * L5, -h6 / 252 * L7),
            fd_next_term());
    ALSO_OF("GC.7a", fd_left(fd_forward(&l, t, h) - L1 - h / 2 * L2 - h2 / 6 * L3, h3 / 24 * L4),
            fd_next_term());
    ALSO_OF("GC.7b", fd_left(fd_backward(&l, t, h) - L1 + h / 2 * L2 - h2 / 6 * L3, -h3 / 24 * L4),
            fd_next_term());
    ALSO_OF("GC.7c", fd_left(fd_jump(&l, t, h) - h * L2 - h3 / 12 * L4, h5 / 360 * L6),
            fd_next_term());
    ALSO_OF("GC.5a",
            fd_left(fd_richardson(&l, t, h / 2) - fd_richardson(&l, t, h) - h4 / 512 * L5,
                    h6 / 16384 * L7),
            fd_next_term());
    ALSO_OF("GC.5b",
            fd_left(fd_jump(&l, t, h / 2) - fd_jump(&l, t, h) / 2 + h3 / 32 * L4, -h5 / 768 * L6),
            fd_next_term());
}

/* The table of the page: L = e^θ at θ = 1, in digits that rounding does not reach. */
static void fd_table_of_errors(void)
{
    static const struct {
        wide h;
        double forward, central, richardson, five;
    } page[] = {{0.1L, 0.14, 4.5e-3, -5.7e-7, -9.1e-6},
                {0.01L, 0.014, 4.5e-5, -5.7e-11, -9.1e-10},
                {0.05L, 0.069, 1.1e-3, -3.5e-8, -5.7e-7}};
    fd_curve l = fd_exponential(1);
    size_t i;
    l.amplitude = 1;
    if (LDBL_MANT_DIG == DBL_MANT_DIG) return; /* then the smallest has no digits left */
    for (i = 0; i < LENGTH(page); i++) {
        const wide h = page[i].h, slope = expl(1);
        ALSO_OF("FD.3", fd_printed_2(fd_forward(&l, 1, h) - slope, page[i].forward), algebra());
        ALSO_OF("GC.2c", fd_printed_2(fd_central(&l, 1, h) - slope, page[i].central), algebra());
        ALSO_OF("GC.3c", fd_printed_2(fd_richardson(&l, 1, h) - slope, page[i].richardson),
                algebra());
        ALSO_OF("GC.3e", fd_printed_2(fd_richardson(&l, 1, 2 * h) - slope, page[i].five),
                algebra());
    }
}

/* ---- rounding: FD.4 to FD.11, GC.4a to GC.4c, GC.5c ------------------------------------------ */

typedef struct fd_stencil { /* a difference: ∑ weight·L(θ + at) */
    size_t n;
    wide at[4], weight[4];
} fd_stencil;

static fd_stencil fd_stencil_of(int method, wide h)
{
    static const wide places[4][4] = {{1, 0}, {1, -1}, {0.5L, -0.5L, 1, -1}, {0}};
    static const wide weights[4][4] = {
        {1, -1}, {0.5L, -0.5L}, {4 / 3.0L, -4 / 3.0L, -1 / 6.0L, 1 / 6.0L}, {0}};
    fd_stencil s;
    size_t k;
    s.n = method == 2 ? 4 : 2;
    for (k = 0; k < 4; k++) {
        s.at[k] = places[method][k] * h;
        s.weight[k] = weights[method][k] / h;
    }
    return s;
}

/* The largest |difference − slope| if each value of L is off by a part u of it, up or down. */
static wide fd_worst(const fd_stencil *s, const fd_curve *l, wide t, wide u, wide slope)
{
    wide worst = 0;
    unsigned signs;
    size_t k;
    for (signs = 0; signs < 1u << s->n; signs++) {
        wide sum = 0;
        for (k = 0; k < s->n; k++)
            sum += s->weight[k] * fd_at(l, t + s->at[k], 0) * (1 + ((signs >> k) & 1u ? u : -u));
        worst = worse(worst, fabsl(sum - slope));
    }
    return worst;
}

typedef double complex fd_number;

static fd_number fd_nudged(double x, double h)
{
    fd_number z = x;
    ((double *)&z)[1] = h; /* without arithmetic */
    return z;
}

/* The three totals of the page, for a step that may be complex. */
static fd_number fd_total(int method, fd_number h, double u, double L, double high)
{
    if (method == 0) return 2 * u * L / h + h * high / 2;
    if (method == 1) return u * L / h + h * h * high / 6;
    return 3 * u * L / h + h * h * h * h * high / 480;
}

static double fd_total_at(int method, double h, double u, double L, double high)
{
    return creal(fd_total(method, h, u, L, high));
}

static double fd_total_slope(int method, double h, double u, double L, double high)
{
    return cimag(fd_total(method, fd_nudged(h, h * 1e-30), u, L, high)) / (h * 1e-30);
}

/* Is h the best step? The slope is nothing there, and a little to either side the total is more. */
static wide fd_not_best(int method, double h, double u, double L, double high)
{
    const double least = fd_total_at(method, h, u, L, high);
    const double slope = fd_total_slope(method, h, u, L, high);
    return worse(apart((wide)slope, 0, (wide)(least / h)),
                 unless(fd_total_at(method, h * 1.01, u, L, high) > least &&
                        fd_total_at(method, h / 1.01, u, L, high) > least));
}

static void fd_best_steps(double u, double L, double high)
{
    const double central = cbrt(3 * u * L / high), one_sided = 2 * sqrt(u * L / high);
    const double mixed = pow(360 * u * L / high, 0.2), h = central * 1.7;
    const double falling = -u * L / (h * h), rising = h * high / 3;
    DERIVE("FD.7",
           apart((wide)fd_total_slope(1, h, u, L, high), (wide)(falling + rising),
                 (wide)(rising - falling)),
           complex_step());
    DERIVE("FD.8", fd_not_best(1, central, u, L, high), algebra());
    DERIVE("FD.9",
           relative((wide)fd_total_at(1, central, u, L, high), (wide)(1.5 * u * L / central)),
           algebra());
    DERIVE("FD.11",
           worse(fd_not_best(0, one_sided, u, L, high),
                 relative((wide)fd_total_at(0, one_sided, u, L, high),
                          (wide)(2 * sqrt(u * L * high)))),
           algebra());
    DERIVE("GC.4b",
           worse(fd_not_best(2, mixed, u, L, high),
                 relative((wide)fd_total_at(2, mixed, u, L, high), (wide)(3.75 * u * L / mixed))),
           algebra());
}

/* Losses for which the values beside θ have together the size of the one at θ: then the totals are
   what the worst signs really make. */
static void fd_worst_cases(nrm_rng *rng, wide h)
{
    const wide u = 1e-3L, t = (wide)nrm_rng_normal(rng), L = 2 + fabsl((wide)nrm_rng_normal(rng));
    const wide bend = (wide)nrm_rng_normal(rng);
    fd_stencil s = fd_stencil_of(1, h);
    fd_curve l;
    wide exact;
    memset(&l, 0, sizeof l);
    l.centre = t;
    l.c[0] = L;
    l.c[1] = 0.5L;
    l.c[2] = 0.25L;
    exact = fd_central(&l, t, h);
    DERIVE("FD.5",
           relative(fd_worst(&s, &l, t, u, exact),
                    u * (fabsl(fd_at(&l, t + h, 0)) + fabsl(fd_at(&l, t - h, 0))) / (2 * h)),
           algebra());
    l.c[2] = 0;
    l.c[3] = bend;
    DERIVE("FD.6", relative(fd_worst(&s, &l, t, u, 0.5L), u * L / h + h * h * fabsl(6 * bend) / 6),
           algebra());
    l.c[3] = 0;
    l.c[5] = bend;
    s = fd_stencil_of(2, h);
    DERIVE("GC.4a",
           relative(fd_worst(&s, &l, t, u, 0.5L),
                    3 * u * L / h + h * h * h * h * fabsl(120 * bend) / 480),
           algebra());
    l.c[5] = 0;
    l.c[2] = bend;
    l.c[1] = -bend * h; /* L is the same at both places */
    s = fd_stencil_of(0, h);
    DERIVE("FD.10",
           relative(fd_worst(&s, &l, t, u, l.c[1]), 2 * u * L / h + h * fabsl(2 * bend) / 2),
           algebra());
    memset(&l, 0, sizeof l);
    l.c[0] = L; /* the largest |L| everywhere, and no slope: rounding alone */
    s = fd_stencil_of(2, h / 2);
    DERIVE("GC.5c", relative(fd_worst(&s, &l, t, u, 0), 1.5L * u * L / (h / 4)), algebra());
}

/* A loss kept in a float, and one kept in a double. */
static void fd_rounding(nrm_rng *rng)
{
    wide worst = 0;
    int i;
    for (i = 0; i < 1000; i++) {
        const wide L = expl((wide)nrm_rng_normal(rng)) / 3;
        const wide rho = (wide)(float)L / L - 1;
        worst = worse(worst, fabsl(rho) / (wide)FLT_EPSILON);
    }
    DERIVE("FD.4", unless(worst <= 1 && worst > 0.4L), algebra()); /* once: half of u */
}

/* GC.4c: Λ stretched by s has its best step s times as far. */
static void fd_stretched(nrm_rng *rng, wide s)
{
    const fd_curve l = fd_exponential(0.5L + fabsl((wide)nrm_rng_normal(rng)));
    const wide t = (wide)nrm_rng_normal(rng), u = (wide)DBL_EPSILON;
    fd_curve wider = l;
    wide own;
    wider.rate /= s;
    own = powl(360 * u * fd_at(&wider, t * s, 0) / fd_at(&wider, t * s, 5), 0.2L);
    DERIVE("GC.4c", relative(own, s * powl(360 * u * fd_at(&l, t, 0) / fd_at(&l, t, 5), 0.2L)),
           algebra());
}

/* The page's table of best steps, for L = e^θ, and the figure's, from its own table. */
static void fd_page_of_best_steps(void)
{
    static const double best[3][2] = {{3.0e-8, 3.0e-8}, {8.7e-6, 3.8e-11}, {2.4e-3, 3.5e-13}};
    static const double drawn[4][2] = {
        {7.5e-8, 1.2e-8}, {1.0e-5, 2.2e-11}, {1.3e-3, 3.6e-13}, {1.0e-9, 1.1e-16}};
    const double u = DBL_EPSILON;
    const double h[3] = {2 * sqrt(u), cbrt(3 * u), pow(360 * u, 0.2)};
    double at[4] = {0}, least[4] = {1, 1, 1, 1}, column[5];
    FILE *f = fopen("docs/figures/02_gradcheck_curve.csv", "r");
    char line[400];
    int m;
    while (f != NULL && fgets(line, sizeof line, f) != NULL)
        if (sscanf(line, "%lf,%lf,%lf,%lf,%lf", column, column + 1, column + 2, column + 3,
                   column + 4) == 5)
            for (m = 0; m < 4; m++)
                if (column[m + 1] < least[m]) {
                    least[m] = column[m + 1];
                    at[m] = column[0];
                }
    if (f != NULL) fclose(f);
    for (m = 0; m < 4; m++)
        ALSO_OF("FD.6",
                worse(fd_printed_2((wide)at[m], drawn[m][0]),
                      fd_printed_2((wide)least[m], drawn[m][1])),
                algebra());
    for (m = 0; m < 3; m++)
        ALSO_OF("FD.6",
                worse(fd_printed_2((wide)h[m], best[m][0]),
                      fd_printed_2((wide)fd_total_at(m, h[m], u, 1, 1), best[m][1])),
                algebra());
    /* the steps of the header */
    ALSO_OF("GC.4b",
            worse(fd_printed((wide)pow(DBL_EPSILON, 0.2), 7e-4L, 1e-4L),
                  fd_printed((wide)pow((double)FLT_EPSILON, 0.2), 4e-2L, 1e-2L)),
            algebra());
}

static void fd_roundings(void)
{
    nrm_rng rng = stream(61);
    int i;
    fd_rounding(&rng);
    for (i = 0; i < 30; i++) {
        fd_worst_cases(&rng, (wide)uniform_between(&rng, 0.1, 0.5));
        fd_best_steps(i % 2 ? DBL_EPSILON : (double)FLT_EPSILON, uniform_between(&rng, 0.1, 10),
                      uniform_between(&rng, 0.01, 100));
        fd_stretched(&rng, (wide)pow(10, i % 7 - 3));
    }
    fd_page_of_best_steps();
}

/* ---- the complex step: FD.12 to FD.17 -------------------------------------------------------- */

/* A cubic in complex arithmetic. */
static fd_number fd_cubic(const double *c, fd_number z)
{
    return c[0] + z * (c[1] + z * (c[2] + z * c[3]));
}

static void fd_complex_series(nrm_rng *rng, double h)
{
    double c[4], t = (double)nrm_rng_normal(rng), size, L, L1, L2, L3;
    fd_number z;
    int n;
    for (n = 0; n < 4; n++) c[n] = (double)nrm_rng_normal(rng);
    size = fabs(c[0]) + fabs(t) * (fabs(c[1]) + fabs(t) * (fabs(c[2]) + fabs(t * c[3]))) + 1;
    size += 6 * (fabs(c[1]) + fabs(c[2]) + fabs(c[3]));
    L = c[0] + t * (c[1] + t * (c[2] + t * c[3]));
    L1 = c[1] + t * (2 * c[2] + t * 3 * c[3]);
    L2 = 2 * c[2] + 6 * t * c[3];
    L3 = 6 * c[3];
    z = fd_cubic(c, fd_nudged(t, h));
    DERIVE("FD.12",
           worse(apart((wide)creal(z), (wide)(L - h * h / 2 * L2), (wide)size),
                 apart((wide)cimag(z), (wide)(h * L1 - h * h * h / 6 * L3), (wide)(size * h))),
           complex_step());
    DERIVE("FD.13", apart((wide)(cimag(z) / h), (wide)(L1 - h * h / 6 * L3), (wide)size),
           complex_step());
    if (h < 1e-10) ALSO(apart((wide)(cimag(z) / h), (wide)L1, (wide)size), complex_step());
}

static void fd_complex_rules(nrm_rng *rng, double h)
{
    const double a = (double)nrm_rng_normal(rng), b = (double)nrm_rng_normal(rng);
    const double da = (double)nrm_rng_normal(rng), db = (double)nrm_rng_normal(rng);
    const fd_number product = fd_nudged(a, h * da) * fd_nudged(b, h * db);
    const double v = 0.01 + fabs(a);
    const fd_number r = 1 / csqrt(fd_nudged(v, h * da));
    const fd_number z = fd_nudged(a, h), absolute = cabs(z), branch = creal(z) < 0 ? -z : z;
    const wide size = (wide)(fabs(a * db) + fabs(da * b));
    DERIVE("FD.14",
           apart((wide)(cimag(product) / h), (wide)a * (wide)db + (wide)da * (wide)b, size),
           complex_step());
    DERIVE("FD.15",
           apart((wide)creal(product), (wide)a * (wide)b - (wide)(h * h) * (wide)da * (wide)db,
                 (wide)fabs(a * b) + (wide)(h * h * fabs(da * db))),
           complex_step());
    if (h < 1e-10) {
        ALSO(unless(creal(product) == a * b), complex_step()); /* the bits of the real program */
        DERIVE("FD.16", relative((wide)(cimag(r) / h), -(wide)da / (2 * (wide)v * sqrtl((wide)v))),
               complex_step());
    }
    DERIVE("FD.17",
           worse(apart((wide)creal(absolute), sqrtl((wide)a * (wide)a + (wide)(h * h)), 1),
                 unless(cimag(absolute) == 0)),
           complex_step());
    ALSO(unless(cimag(branch) / h == (a < 0 ? -1 : 1)), complex_step()); /* how it should be done */
}

static void fd_complex(void)
{
    static const double step[] = {0.5, 0.125, 1e-3, 1e-20, 1e-100};
    nrm_rng rng = stream(62);
    size_t i;
    int turn;
    for (turn = 0; turn < 50; turn++)
        for (i = 0; i < LENGTH(step); i++) {
            fd_complex_series(&rng, step[i]);
            fd_complex_rules(&rng, step[i]);
        }
}

/* ---- kinks, uncertainty, relative error: GC.5 to GC.7, FD.18 --------------------------------- */

static void fd_jumps(nrm_rng *rng, wide t, wide h)
{
    const fd_curve bow = fd_polynomial(3, rng), l = fd_polynomial(5, rng);
    const wide B1 = fd_at(&bow, t, 1), B2 = fd_at(&bow, t, 2), B3 = fd_at(&bow, t, 3);
    const wide L2 = fd_at(&l, t, 2), L4 = fd_at(&l, t, 4), L5 = fd_at(&l, t, 5);
    const wide size = fd_size(&l, t, h / 4), h2 = h * h;
    DERIVE("GC.7a",
           apart(fd_forward(&bow, t, h), B1 + h / 2 * B2 + h2 / 6 * B3, fd_size(&bow, t, h)),
           algebra());
    DERIVE("GC.7b",
           apart(fd_backward(&bow, t, h), B1 - h / 2 * B2 + h2 / 6 * B3, fd_size(&bow, t, h)),
           algebra());
    DERIVE("GC.7c", apart(fd_jump(&l, t, h), h * L2 + h2 * h / 12 * L4, size), algebra());
    DERIVE("GC.5a",
           apart(fd_richardson(&l, t, h / 2) - fd_richardson(&l, t, h), h2 * h2 / 512 * L5, size),
           algebra());
    DERIVE("GC.5b", apart(fd_jump(&l, t, h / 2) - fd_jump(&l, t, h) / 2, -h2 * h / 32 * L4, size),
           algebra());
}

/* Slope a up to the kink at distance d, and b beyond. */
static wide fd_bent(wide s, wide a, wide b, wide d)
{
    return s < d ? a * s : a * d + b * (s - d);
}

typedef struct fd_corner { /* a loss with a kink at d */
    wide a, b, d;
    nrm_real theta;
} fd_corner;

static nrm_acc fd_corner_loss(void *context)
{
    const fd_corner *c = (const fd_corner *)context;
    return (nrm_acc)fd_bent((wide)c->theta, c->a, c->b, c->d);
}

/* Does the header see it from 0, with the step h? */
static int fd_recognised(wide a, wide b, wide h, wide d)
{
    fd_corner c = {a, b, d, 0};
    nrmi_check check;
    memset(&check, 0, sizeof check);
    check.loss = fd_corner_loss;
    check.context = &c;
    return nrmi_attempt(&check, &c.theta, (nrm_acc)h).kink;
}

static void fd_kink(wide a, wide b, wide h, wide d)
{
    const wide up = fd_bent(h, a, b, d) / h, down = -fd_bent(-h, a, b, d) / h;
    const wide size = fabsl(a) + fabsl(b);
    DERIVE("GC.7d", apart((up + down) / 2, a + (b - a) / 2 * (1 - d / h), size), algebra());
    DERIVE("GC.7e", apart(up - down, (b - a) * (1 - d / h), size), algebra());
    if (d <= h / 4) {
        const wide near_by = 4 * (fd_bent(h / 4, a, b, d) + fd_bent(-h / 4, a, b, d)) / h;
        const wide ratio = (1 - 4 * d / h) / (1 - d / h);
        DERIVE("GC.7f", apart(near_by / (up - down), ratio, size / fabsl(b - a)), algebra());
        if (fabsl(d / h - 1 / 7.0L) > 1e-3L) /* where the header recognises a kink */
            ALSO(unless(fd_recognised(a, b, h, d) == (7 * d < h)), algebra());
    }
}

/* e as the header has it. */
static wide fd_error(wide a, wide R, wide largest)
{
    nrm_gradcheck_report report;
    nrmi_slope s;
    memset(&report, 0, sizeof report);
    memset(&s, 0, sizeof s);
    s.value = (nrm_acc)R;
    nrmi_judge(&report, 0, (nrm_acc)a, &s, (nrm_acc)1e-7, (nrm_acc)largest);
    return (wide)report.error;
}

static void fd_errors(nrm_rng *rng)
{
    const wide R = (wide)nrm_rng_normal(rng), c = 1 + (wide)uniform_between(rng, 0.1, 9);
    const wide a = (wide)nrm_rng_normal(rng), e = fd_error(a, R, 0);
    const wide sum = fabsl(a - R) / (fabsl(a) + fabsl(R));
    DERIVE("GC.6a", apart(fd_error(-R, R, fabsl(R)), 2, 1), acc_identity());
    DERIVE("GC.6b", apart(fd_error(c * R, R, 0), 1 - 1 / c, 1), acc_identity());
    ALSO(apart(fd_error(R / c, R, 0), 1 - 1 / c, 1), acc_identity()); /* too small by c */
    ALSO(apart(fd_error(0, R, 0), 1, 1), acc_identity());
    DERIVE("GC.6c", unless(sum <= e * 1.000001L && sum >= e / 2 * 0.999999L), acc_identity());
    /* both ends are reached: with the opposite sign, and with 0 */
    ALSO(apart(2 * fabsl(R) / (fabsl(R) + fabsl(R)), fd_error(-R, R, 0) / 2, 1), acc_identity());
    ALSO(apart(fabsl(R) / fabsl(R), fd_error(0, R, 0), 1), acc_identity());
    DERIVE("FD.18", apart(fabsl(fabsl(-R) - fabsl(R)), 0, 1), algebra());
    ALSO(unless(fabsl(fabsl(a) - fabsl(R)) > 0), algebra()); /* but not blind to all */
}

static void fd_verdicts(void)
{
    nrm_rng rng = stream(63);
    int i;
    for (i = 0; i < 60; i++) {
        const wide h = (wide)uniform_between(&rng, 0.1, 0.7);
        fd_jumps(&rng, (wide)nrm_rng_normal(&rng), h);
        fd_kink((wide)nrm_rng_normal(&rng), (wide)nrm_rng_normal(&rng) + 3, h,
                h * (wide)uniform_between(&rng, 0, i % 2 ? 1 : 0.25));
        fd_errors(&rng);
    }
}

/* ---- losses that see nothing: FD.19 to FD.25 ------------------------------------------------- */

enum { FD_MOST = 32 };

typedef struct fd_norm { /* a channel of batch norm, by the formulas */
    size_t M;
    double x[FD_MOST], w[FD_MOST];
    wide gamma, beta, eps, shrink; /* shrink: the variance is divided by M − shrink */
    int squares;                   /* L = ∑ y², else ∑ w·y */
    wide mu, v, r, xhat[FD_MOST], y[FD_MOST];
} fd_norm;

static void fd_normalize(fd_norm *k)
{
    size_t i;
    k->mu = k->v = 0;
    for (i = 0; i < k->M; i++) k->mu += (wide)k->x[i] / (wide)k->M;
    for (i = 0; i < k->M; i++)
        k->v += ((wide)k->x[i] - k->mu) * ((wide)k->x[i] - k->mu) / ((wide)k->M - k->shrink);
    k->r = 1 / sqrtl(k->v + k->eps);
    for (i = 0; i < k->M; i++) {
        k->xhat[i] = ((wide)k->x[i] - k->mu) * k->r;
        k->y[i] = k->gamma * k->xhat[i] + k->beta;
    }
}

static wide fd_norm_loss(void *context)
{
    fd_norm k = *(const fd_norm *)context;
    wide loss = 0;
    size_t i;
    fd_normalize(&k);
    for (i = 0; i < k.M; i++) loss += k.squares ? k.y[i] * k.y[i] : (wide)k.w[i] * k.y[i];
    return loss;
}

static void fd_norm_random(fd_norm *k, size_t M, double scale, double eps, nrm_rng *rng)
{
    memset(k, 0, sizeof *k);
    k->M = M;
    fill(k->x, M, 0.7 * scale, scale, rng);
    fill(k->w, M, 0.2, 1, rng);
    k->gamma = (wide)(nrm_real)(1.5 + 0.5 * (double)nrm_rng_normal(rng));
    k->beta = (wide)(nrm_real)(0.5 + (double)nrm_rng_normal(rng));
    k->eps = (wide)(nrm_real)eps;
    fd_normalize(k);
}

/* The header's dx of batch norm for this channel and some dy. */
static void fd_header_dx(nrm_real *dx, const fd_norm *k, const wide *dy)
{
    const nrm_real gamma = (nrm_real)k->gamma, beta = (nrm_real)k->beta, eps = (nrm_real)k->eps;
    nrm_real x[FD_MOST], y[FD_MOST], d[FD_MOST];
    nrm_acc mean, rstd;
    size_t i;
    to_real(x, k->x, k->M);
    for (i = 0; i < k->M; i++) d[i] = (nrm_real)dy[i];
    (void)nrm_batchnorm_forward(y, &mean, &rstd, NULL, x, &gamma, &beta, NRM_TRAIN, eps, k->M, 1,
                                1);
    (void)nrm_batchnorm_backward(dx, NULL, NULL, d, x, &mean, &rstd, &gamma, NRM_TRAIN, k->M, 1, 1);
}

static wide fd_mean(const wide *a, const wide *b, size_t n)
{
    wide sum = 0;
    size_t i;
    for (i = 0; i < n; i++) sum += a[i] * (b != NULL ? b[i] : 1) / (wide)n;
    return sum;
}

static void fd_blind_loss(fd_norm *k)
{
    wide g[FD_MOST], dy[FD_MOST], size, worst = 0;
    nrm_real dx[FD_MOST];
    size_t i;
    for (i = 0; i < k->M; i++) {
        dy[i] = 1;
        g[i] = k->gamma * dy[i];
        k->w[i] = 1;
    }
    size = fabsl(k->gamma) * k->r;
    DERIVE("FD.19",
           worse(relative(fd_mean(g, NULL, k->M), k->gamma),
                 apart(fd_mean(g, k->xhat, k->M), 0, fabsl(k->gamma))),
           algebra());
    fd_header_dx(dx, k, dy);
    for (i = 0; i < k->M; i++) worst = worse(worst, apart((wide)dx[i], 0, size));
    DERIVE("FD.20", worst, identity());
    worst = 0;
    for (i = 0; i < k->M; i++)
        worst =
            worse(worst, apart(slope(fd_norm_loss, k, k->x + i, binary((double)(1 / k->r) / 1024)),
                               0, size));
    ALSO(worst, acc_difference());
}

static wide fd_square(void *context)
{
    const double y = *(const double *)context;
    return (wide)y * (wide)y;
}

static void fd_square_loss(fd_norm *k)
{
    wide g[FD_MOST], dy[FD_MOST], size = 0, by_slope = 0, by_header = 0;
    nrm_real dx[FD_MOST];
    size_t i;
    k->squares = 1;
    for (i = 0; i < k->M; i++) {
        double y = (double)k->y[i];
        dy[i] = 2 * (k->gamma * k->xhat[i] + k->beta);
        DERIVE("FD.21", apart(slope(fd_square, &y, &y, 0.125), dy[i], 1 + fabsl(dy[i])),
               acc_difference());
        g[i] = k->gamma * dy[i];
        size = worse(size, k->r * fabsl(g[i]));
    }
    DERIVE("FD.22", apart(fd_mean(g, NULL, k->M), 2 * k->gamma * k->beta, size / k->r), algebra());
    DERIVE("FD.23",
           apart(fd_mean(g, k->xhat, k->M), 2 * k->gamma * k->gamma * (1 - k->eps * k->r * k->r),
                 size / k->r),
           algebra());
    fd_header_dx(dx, k, dy);
    for (i = 0; i < k->M; i++) {
        const wide should = 2 * k->gamma * k->gamma * k->eps * k->r * k->r * k->r * k->xhat[i];
        by_header = worse(by_header, apart((wide)dx[i], should, size));
        by_slope = worse(by_slope,
                         apart(slope(fd_norm_loss, k, k->x + i, binary((double)(1 / k->r) / 1024)),
                               should, size));
    }
    DERIVE("FD.24", by_header, identity());
    for (i = 0; i < k->M; i++) {
        const wide G = k->gamma * k->gamma, b = 2 * k->gamma * k->beta;
        const wide middle =
            k->r * (2 * G * k->xhat[i] + b - b - k->xhat[i] * 2 * G * (1 - k->eps * k->r * k->r));
        ALSO(apart(middle, 2 * G * k->eps * k->r * k->r * k->r * k->xhat[i], size), identity());
    }
    ALSO_OF("FD.24", by_slope, acc_difference());
}

/* x = (1, 2, 3, 4), γ = 2, β = 1, ε = 1e-5: the numbers of the page. */
static void fd_blind_numbers(void)
{
    static const double x[] = {1, 2, 3, 4}, w[] = {0.3, -1.2, 0.8, 0.5};
    static const double page[] = {1.1, -2.1, 1.0, 0.018};
    nrm_real dx[FD_MOST];
    wide dy[FD_MOST];
    fd_norm k;
    size_t i;
    memset(&k, 0, sizeof k);
    k.M = 4;
    memcpy(k.x, x, sizeof x);
    k.gamma = 2;
    k.beta = 1;
    k.eps = 1e-5L;
    fd_normalize(&k);
    ALSO_OF("FD.24", fd_printed_2(8 * k.eps * k.r * k.r * k.r * k.xhat[3], 7.7e-5), identity());
    for (i = 0; i < 4; i++) dy[i] = (wide)w[i];
    fd_header_dx(dx, &k, dy);
    for (i = 0; i < 4; i++) ALSO_OF("FD.25", fd_printed_2((wide)dx[i], page[i]), algebra());
}

/* The mean over all vectors of M signs, one after the other. */
static void fd_projection(size_t M, nrm_rng *rng)
{
    double wrong[FD_MOST]; /* one column of the difference of two Jacobians */
    wide seen = 0, whole = 0;
    unsigned signs;
    size_t j;
    fill(wrong, M, 0.1, 1, rng);
    for (signs = 0; signs < 1u << M; signs++) {
        wide sum = 0;
        for (j = 0; j < M; j++) sum += (signs >> j) & 1u ? (wide)wrong[j] : -(wide)wrong[j];
        seen += sum * sum / (wide)(1u << M);
    }
    for (j = 0; j < M; j++) whole += (wide)wrong[j] * (wide)wrong[j];
    DERIVE("FD.25", relative(seen, whole), algebra());
}

static void fd_blindness(void)
{
    static const size_t Ms[] = {2, 3, 4, 7, 32};
    static const double sizes[] = {1e-2, 1, 100};
    nrm_rng rng = stream(64);
    fd_norm k;
    size_t m, s;
    for (m = 0; m < LENGTH(Ms); m++)
        for (s = 0; s < LENGTH(sizes); s++) {
            fd_norm_random(&k, Ms[m], sizes[s], sizes[s] * sizes[s] / 3, &rng);
            fd_blind_loss(&k);
            fd_norm_random(&k, Ms[m], sizes[s], sizes[s] * sizes[s] / 3, &rng);
            fd_square_loss(&k);
        }
    for (m = 0; m < 4; m++) fd_projection(Ms[m], &rng);
    fd_blind_numbers();
}

/* ---- sizes and settings: FD.26 to FD.31 ------------------------------------------------------ */

/* Against N − 1: the true derivative, and how far the exhibit of the museum is from it. */
static void fd_sample_variance(fd_norm *k)
{
    const wide N = (wide)k->M;
    nrm_real x[FD_MOST], dy[FD_MOST], dx[FD_MOST], gamma = (nrm_real)k->gamma, none = 0,
                                                   nothing = 0;
    wide g[FD_MOST], gx, size = 0, truth = 0, gap = 0;
    size_t i;
    k->shrink = 1;
    fd_normalize(k);
    to_real(x, k->x, k->M);
    to_real(dy, k->w, k->M);
    museum_backward(MUSEUM_SAMPLE_VARIANCE, dx, &none, &nothing, dy, x, &gamma, (double)k->eps,
                    k->M, 1);
    for (i = 0; i < k->M; i++) {
        g[i] = k->gamma * (wide)k->w[i];
        size = worse(size, k->r * fabsl(g[i]));
    }
    gx = fd_mean(g, k->xhat, k->M);
    for (i = 0; i < k->M; i++) {
        const wide should = k->r * (g[i] - fd_mean(g, NULL, k->M) - N / (N - 1) * k->xhat[i] * gx);
        const wide by_slope = slope(fd_norm_loss, k, k->x + i, binary((double)(1 / k->r) / 1024));
        truth = worse(truth, apart(by_slope, should, size));
        gap = worse(gap, apart((wide)dx[i] - by_slope, k->r / (N - 1) * k->xhat[i] * gx, size));
    }
    DERIVE("FD.26", truth, acc_difference());
    DERIVE("FD.27", gap, in_float() ? identity() : acc_difference());
}

/* The root mean square over all g of the error and of dx, by one g for each place. */
static void fd_how_it_hides(size_t N, nrm_rng *rng)
{
    wide wrong = 0, whole = 0;
    size_t i, j;
    fd_norm k;
    fd_norm_random(&k, N, 1, 0, rng);
    k.eps = 0;
    k.shrink = 1;
    fd_normalize(&k);
    for (j = 0; j < N; j++)
        for (i = 0; i < N; i++) { /* g is 1 at place j and 0 elsewhere */
            const wide n = (wide)N, gx = k.xhat[j] / n;
            const wide dx = k.r * ((i == j ? 1 : 0) - 1 / n - n / (n - 1) * k.xhat[i] * gx);
            const wide code = k.r * ((i == j ? 1 : 0) - 1 / n - k.xhat[i] * gx);
            whole += dx * dx;
            wrong += (code - dx) * (code - dx);
        }
    DERIVE("FD.28", relative(sqrtl(wrong / whole), 1 / ((wide)N * sqrtl((wide)N - 2))), algebra());
}

static void fd_hidden_numbers(void)
{
    static const struct {
        double N, page;
    } row[] = {{3, 0.33}, {4, 0.18}, {8, 0.051}, {32, 5.7e-3}, {128, 7.0e-4}};
    static const struct {
        double scale, page;
    } line[] = {{1, -4.0e-6}, {0.1, -4.9e-4}, {0.01, -0.046}, {0.001, -0.70}};
    size_t i;
    for (i = 0; i < LENGTH(row); i++)
        ALSO_OF("FD.28", fd_printed_2((wide)(1 / (row[i].N * sqrt(row[i].N - 2))), row[i].page),
                algebra());
    ALSO_OF("FD.28", unless(101 * sqrt(99) > 1000 && 100 * sqrt(98) < 1000), algebra());
    for (i = 0; i < LENGTH(line); i++) {
        const wide s = (wide)line[i].scale;
        ALSO_OF("FD.29", fd_printed_2((s + 1e-6L) / sqrtl(s * s + 1e-5L) - 1, line[i].page),
                algebra());
    }
}

/* The exhibit's ε inside is 10 times the one outside. */
static void fd_two_epsilons(double scale, double eps, nrm_rng *rng)
{
    museum_group m;
    wide v;
    memset(&m, 0, sizeof m);
    m.count = 2 + nrm_rng_below(rng, 7);
    m.var = scale * scale * (0.5 + (double)nrm_rng_uniform(rng));
    v = (wide)m.var * (wide)m.count / ((wide)m.count - 1);
    DERIVE("FD.29",
           relative((wide)museum_backward_scale(MUSEUM_TWO_EPSILONS, &m, eps) /
                        (wide)museum_forward_scale(MUSEUM_TWO_EPSILONS, &m, eps),
                    (sqrtl(v) + (wide)(eps / 10)) / sqrtl(v + (wide)eps)),
           algebra());
}

/* Forgotten γ, and gradients that are gathered. */
static void fd_dead_settings(fd_norm *k)
{
    nrm_real x[FD_MOST], dy[FD_MOST], dx[FD_MOST], wrong[FD_MOST];
    nrm_real gamma = (nrm_real)k->gamma, start = (nrm_real)0.75, dgamma = start, other = 0;
    const nrm_real eps = (nrm_real)k->eps;
    wide g[FD_MOST], size = 0, worst = 0, sum = 0, terms = 1;
    nrm_real y[FD_MOST];
    nrm_acc mean, rstd;
    size_t i;
    int twice;
    to_real(x, k->x, k->M);
    to_real(dy, k->w, k->M);
    for (i = 0; i < k->M; i++) g[i] = (wide)k->w[i];
    fd_header_dx(dx, k, g);
    museum_backward(MUSEUM_LOST_GAMMA, wrong, &other, &other, dy, x, &gamma, (double)k->eps, k->M,
                    1);
    for (i = 0; i < k->M; i++) {
        size = worse(size, k->r * fabsl(g[i]) * (1 + fabsl(k->gamma)));
        sum += (wide)k->w[i] * k->xhat[i];
        terms += fabsl((wide)k->w[i] * k->xhat[i]);
    }
    for (i = 0; i < k->M; i++)
        worst = worse(worst, apart((wide)wrong[i] * k->gamma, (wide)dx[i], size));
    DERIVE("FD.30", worst, identity());
    (void)nrm_batchnorm_forward(y, &mean, &rstd, NULL, x, &gamma, NULL, NRM_TRAIN, eps, k->M, 1, 1);
    for (twice = 0; twice < 2; twice++)
        (void)nrm_batchnorm_backward(dx, &dgamma, NULL, dy, x, &mean, &rstd, &gamma, NRM_TRAIN,
                                     k->M, 1, 1);
    DERIVE("FD.31", apart((wide)dgamma, (wide)start + 2 * sum, terms), identity());
}

/* ---- the layer of the page's program: FD.32 and FD.33 ---------------------------------------- */

static wide fd_unit_loss(void *context) /* L = ∑ w·γ·x/|x|; γ stands in y */
{
    const fd_norm *k = (const fd_norm *)context;
    wide squares = k->eps, loss = 0;
    size_t i;
    for (i = 0; i < k->M; i++) squares += (wide)k->x[i] * (wide)k->x[i];
    for (i = 0; i < k->M; i++) loss += (wide)k->w[i] * k->y[i] * (wide)k->x[i] / sqrtl(squares);
    return loss;
}

static wide fd_unit_r(void *context)
{
    const fd_norm *k = (const fd_norm *)context;
    wide squares = k->eps;
    size_t i;
    for (i = 0; i < k->M; i++) squares += (wide)k->x[i] * (wide)k->x[i];
    return 1 / sqrtl(squares);
}

static void fd_unit_layer(fd_norm *k)
{
    wide r = fd_unit_r(k), sum = 0, size = 0, worst_r = 0, worst = 0;
    const double h = binary((double)(1 / r) / 1024);
    size_t i;
    for (i = 0; i < k->M; i++) {
        sum += (wide)k->w[i] * k->y[i] * (wide)k->x[i];
        size += r * fabsl((wide)k->w[i] * k->y[i]);
    }
    for (i = 0; i < k->M; i++) {
        const wide x = (wide)k->x[i], g = (wide)k->w[i] * k->y[i];
        worst_r = worse(worst_r, apart(slope(fd_unit_r, k, k->x + i, h), -r * r * r * x, r * r));
        worst = worse(worst,
                      apart(slope(fd_unit_loss, k, k->x + i, h), r * (g - r * r * x * sum), size));
    }
    DERIVE("FD.32", worst_r, acc_difference());
    DERIVE("FD.33", worst, acc_difference());
}

static void fd_settings(void)
{
    static const size_t Ns[] = {3, 4, 7, 32};
    static const double sizes[] = {1e-3, 1, 1000};
    nrm_rng rng = stream(65);
    fd_norm k;
    size_t n, s;
    for (n = 0; n < LENGTH(Ns); n++) {
        for (s = 0; s < LENGTH(sizes); s++) {
            fd_norm_random(&k, Ns[n], sizes[s], sizes[s] * sizes[s] / 10, &rng);
            fd_sample_variance(&k);
            fd_norm_random(&k, Ns[n], sizes[s], sizes[s] * sizes[s] / 10, &rng);
            fd_dead_settings(&k);
            fd_unit_layer(&k);
            fd_two_epsilons(sizes[s], 1e-5, &rng);
        }
        fd_how_it_hides(Ns[n], &rng);
    }
    fd_hidden_numbers();
}

static void steps_gradient_checking(void)
{
    static const double step[] = {0.5, 0.3, 0.07};
    nrm_rng rng = stream(60);
    size_t i;
    int turn;
    for (turn = 0; turn < 30; turn++) {
        const wide t = (wide)nrm_rng_normal(&rng);
        for (i = 0; i < LENGTH(step); i++) fd_exact(&rng, t, (wide)step[i]);
        fd_next_terms(t, turn % 2 ? 1 : -0.75L);
    }
    fd_table_of_errors();
    fd_roundings();
    fd_complex();
    fd_verdicts();
    fd_blindness();
    fd_settings();
}
#endif
