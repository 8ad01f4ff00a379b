/* derive_gradcheck.h - GC: the differences that check gradients, checked in their turn. */
#ifndef DERIVE_GRADCHECK_H
#define DERIVE_GRADCHECK_H

#include "derive_tools.h"
#include "lab/draw.h"

/* A loss whose derivatives are all known: e^θ, |θ|, or a polynomial of degree five. */
enum curve_kind { CURVE_EXP, CURVE_BEND, CURVE_POLYNOMIAL };

typedef struct curve {
    enum curve_kind kind;
    wide c[6]; /* coefficients */
    nrm_real theta;
} curve;

/* The order-th derivative at t. */
static wide curve_derivative(const curve *l, wide t, int order)
{
    wide sum = 0;
    int n, k;
    if (l->kind == CURVE_EXP) return expl(t);
    if (l->kind == CURVE_BEND) return fabsl(t);
    for (n = 5; n >= order; n--) {
        wide c = l->c[n];
        for (k = 0; k < order; k++) c *= (wide)(n - k);
        sum = sum * t + c;
    }
    return sum;
}

static nrm_acc curve_loss(void *context)
{
    const curve *l = (const curve *)context;
    return (nrm_acc)curve_derivative(l, (wide)l->theta, 0);
}

static wide central(const curve *l, wide h)
{
    const wide t = (wide)l->theta;
    return (curve_derivative(l, t + h, 0) - curve_derivative(l, t - h, 0)) / (2 * h);
}

static wide richardson(const curve *l, wide h)
{
    return (4 * central(l, h / 2) - central(l, h)) / 3;
}

static void start_check(nrmi_check *check, curve *l)
{
    memset(check, 0, sizeof *check);
    check->loss = curve_loss;
    check->context = l;
    check->base = curve_loss(l);
    check->largest = (nrm_acc)fabs((double)check->base);
}

/* A remainder O(hⁿ) divided by its leading term: 1 but for the terms after it. */
static witness remainder_order(void)
{
    return make_witness('O', 0.01);
}

/* The size that rounding of the loss can have in a difference over h. */
static wide rounding_size(const curve *l, double h)
{
    const wide t = (wide)l->theta;
    wide size = 1;
    size = worse(size, fabsl(curve_derivative(l, t + (wide)h, 0)));
    size = worse(size, fabsl(curve_derivative(l, t - (wide)h, 0)));
    return size / (wide)h;
}

static void derive_difference(curve *l, double h)
{
    const wide t = (wide)l->theta, step = (wide)h, size = rounding_size(l, h);
    const wide slope_up = (curve_derivative(l, t + step, 0) - curve_derivative(l, t, 0)) / step;
    const wide slope_down = (curve_derivative(l, t, 0) - curve_derivative(l, t - step, 0)) / step;
    const wide leading =
        curve_derivative(l, t, 1) + step * step / 6 * curve_derivative(l, t, 3);
    nrmi_check check;
    nrm_acc left, right, jump, jumped, D;
    start_check(&check, l);
    D = nrmi_both_sides(&left, &right, &check, &l->theta, (nrm_acc)h);
    jump = right - left;
    DERIVE("GC.1", apart((wide)D, central(l, step), size), acc_identity());
    DERIVE("GC.7", apart((wide)jump, slope_up - slope_down, size), acc_identity());
    /* and by the line that a check runs; its smallest distance is a quarter of its step */
    jumped = nrmi_attempt(&check, &l->theta, 4 * (nrm_acc)h).jump;
    ALSO_OF("GC.7", apart((wide)jumped, fabsl(slope_up - slope_down), size), acc_identity());
    if (l->kind == CURVE_POLYNOMIAL && l->c[5] == 0) {
        /* with no fifth derivative nothing is left; without the fourth, neither in J */
        DERIVE("GC.2", apart((wide)D, leading, size), acc_identity());
        if (l->c[4] == 0)
            ALSO_OF("GC.7", apart((wide)jump, step * curve_derivative(l, t, 2), size),
                    acc_identity());
    }
    if (l->kind == CURVE_EXP && h >= (acc_in_float() ? 0.5 : 0.125)) {
        /* what is left is h⁴/120 times the fifth derivative, and in J h³/12 times the fourth */
        const wide rest = ((wide)D - leading) / (step * step * step * step / 120 * expl(t));
        const wide bend = ((wide)jump - step * expl(t)) / (step * step * step / 12 * expl(t));
        ALSO_OF("GC.2", fabsl(rest - 1), remainder_order());
        ALSO_OF("GC.7", fabsl(bend - 1), remainder_order());
    }
}

/* J(h) of GC.7: slope to the right less slope to the left. */
static wide bend_over(const curve *l, wide h)
{
    const wide t = (wide)l->theta, here = curve_derivative(l, t, 0);
    return (curve_derivative(l, t + h, 0) - here) / h - (here - curve_derivative(l, t - h, 0)) / h;
}

static void derive_richardson(curve *l, double h)
{
    const wide t = (wide)l->theta, step = (wide)h, size = rounding_size(l, h / 4);
    const wide unit = in_float() ? (wide)FLT_EPSILON : (wide)DBL_EPSILON;
    nrmi_check check;
    nrmi_slope s;
    wide largest = fabsl(curve_derivative(l, t, 0)), uncertainty;
    int part;
    start_check(&check, l);
    s = nrmi_attempt(&check, &l->theta, (nrm_acc)h);
    for (part = 1; part <= 4; part *= 2) { /* all places that were looked at */
        largest = worse(largest, fabsl(curve_derivative(l, t + step / (wide)part, 0)));
        largest = worse(largest, fabsl(curve_derivative(l, t - step / (wide)part, 0)));
    }
    uncertainty = fabsl(richardson(l, step / 2) - richardson(l, step)) +
                  worse(fabsl(bend_over(l, step / 2) - bend_over(l, step) / 2),
                        fabsl(bend_over(l, step / 4) - bend_over(l, step) / 4)) +
                  8 * unit * largest / (step / 4);
    DERIVE("GC.3", apart((wide)s.value, richardson(l, step / 2), size), acc_identity());
    if (l->kind == CURVE_POLYNOMIAL && l->c[5] == 0)
        ALSO(apart((wide)s.value, curve_derivative(l, t, 1), size), acc_identity());
    if (l->kind == CURVE_EXP && h >= 0.25 && !acc_in_float()) { /* which is too coarse for it */
        /* h⁴/480 times the fifth derivative is missing, for the h/2 that came last */
        const wide missing = (curve_derivative(l, t, 1) - (wide)s.value) / expl(t);
        const wide should = step * step * step * step / 16 / 480;
        ALSO(fabsl(missing / should - 1), remainder_order());
    }
    DERIVE("GC.5", apart((wide)s.uncertainty, uncertainty, size), acc_identity());
}

/* A line with few digits: no rounding at all, and so nothing but the second term of U. */
static void derive_noise_floor(double h)
{
    const wide unit = in_float() ? (wide)FLT_EPSILON : (wide)DBL_EPSILON;
    nrmi_check check;
    nrmi_slope s;
    curve l;
    memset(&l, 0, sizeof l);
    l.kind = CURVE_POLYNOMIAL;
    l.c[0] = 1;
    l.c[1] = 3;
    l.theta = (nrm_real)0.75;
    start_check(&check, &l);
    s = nrmi_attempt(&check, &l.theta, (nrm_acc)h);
    ALSO_OF("GC.5", relative((wide)s.uncertainty, 8 * unit * (3.25L + 3 * (wide)h) / ((wide)h / 4)),
            acc_identity());
}

static void derive_differences(void)
{
    static const double step[] = {0.5, 0.25, 0.125, 0.0625, 0.015625};
    nrm_rng rng = stream(30);
    curve l;
    size_t i, turn;
    int n, degree;
    for (turn = 0; turn < 40; turn++)
        for (i = 0; i < LENGTH(step); i++) {
            memset(&l, 0, sizeof l);
            l.theta = (nrm_real)(((double)nrm_rng_below(&rng, 256) - 128) / 64);
            l.kind = CURVE_EXP;
            derive_difference(&l, step[i]);
            derive_richardson(&l, step[i]);
            l.kind = CURVE_POLYNOMIAL;
            for (degree = 3; degree <= 5; degree++) {
                memset(l.c, 0, sizeof l.c);
                for (n = 0; n <= degree; n++) l.c[n] = (wide)nrm_rng_below(&rng, 9) / 4 - 1;
                l.c[degree] += 3;
                derive_difference(&l, step[i]);
                derive_richardson(&l, step[i]);
            }
            l.kind = CURVE_BEND;
            l.theta = 0;
            derive_difference(&l, step[i]);
            derive_noise_floor(step[i]);
        }
}

/* ---- the step -------------------------------------------------------------------------------- */

enum { PROBED = 9 };

typedef struct step_recorder { /* a linear loss that notes how far each entry has been nudged */
    nrm_real theta[PROBED], at[PROBED];
    nrm_real slope[PROBED];
    wide farthest[PROBED];
} step_recorder;

static nrm_acc recorded_loss(void *context)
{
    step_recorder *r = (step_recorder *)context;
    nrm_acc loss = 0;
    size_t i;
    for (i = 0; i < PROBED; i++) {
        const wide moved = fabsl((wide)r->theta[i] - (wide)r->at[i]);
        if (moved > r->farthest[i]) r->farthest[i] = moved;
        loss += (nrm_acc)r->slope[i] * (nrm_acc)r->theta[i];
    }
    return loss;
}

static void derive_step(double scale, double step, nrm_rng *rng)
{
    nrm_gradcheck_group group;
    nrm_gradcheck_options options;
    nrm_gradcheck_report report;
    step_recorder r;
    wide squares = 0, worst = 0;
    size_t i;
    memset(&r, 0, sizeof r);
    memset(&options, 0, sizeof options);
    options.step = (nrm_acc)step;
    fill_real(r.theta, PROBED, 0.3 * scale, scale, rng);
    r.theta[4] = 0; /* for which the typical size stands in */
    memcpy(r.at, r.theta, sizeof r.at);
    fill_real(r.slope, PROBED, 2, 0.1, rng);
    group.name = "theta";
    group.theta = r.theta;
    group.grad = r.slope;
    group.n = PROBED;
    (void)nrm_gradcheck(&report, &group, 1, recorded_loss, &r, &options);
    for (i = 0; i < PROBED; i++) squares += (wide)r.at[i] * (wide)r.at[i];
    for (i = 0; i < PROBED; i++) {
        const wide typical = sqrtl(squares / PROBED), own = fabsl((wide)r.at[i]);
        worst = worse(worst, relative(r.farthest[i],
                                      (wide)(nrm_acc)step * (own > typical ? own : typical)));
    }
    /* θ + h is rounded to an nrm_real, which is what spoils the last digits */
    DERIVE("GC.4", worst, make_witness('I', in_float() ? 1e-5 : 1e-13));
}

/* ---- the error ------------------------------------------------------------------------------- */

static void derive_error(double a, double R, double largest)
{
    const wide analytic = (wide)(nrm_acc)a, numeric = (wide)(nrm_acc)R;
    nrm_gradcheck_report report;
    nrmi_slope s;
    wide ruler = worse(fabsl(analytic), fabsl(numeric));
    memset(&report, 0, sizeof report);
    memset(&s, 0, sizeof s);
    s.value = (nrm_acc)R;
    nrmi_judge(&report, 3, (nrm_acc)a, &s, (nrm_acc)1e-3, (nrm_acc)largest);
    ruler = worse(ruler, (wide)(nrm_acc)largest / 1000);
    DERIVE("GC.6", relative((wide)report.error, fabsl(analytic - numeric) / ruler), acc_identity());
    ALSO(unless(report.worst == 3 && report.wrong == (report.error > (nrm_acc)1e-3)), replay());
}

static void derive_gradcheck(void)
{
    nrm_rng rng = stream(31);
    int i;
    derive_differences();
    for (i = 0; i < 20; i++) {
        derive_step(1, 1.0 / 64, &rng);
        derive_step(100, 1.0 / 16, &rng);
        derive_step(0.001, 1.0 / 32, &rng);
    }
    derive_error(1, -1, 1);
    derive_error(-2, 2, 5);
    derive_error(1, 0, 3);
    derive_error(1e-6, -1e-6, 10);
    for (i = 0; i < 200; i++) {
        const double a = (double)draw_normal(&rng), R = a + pow(10, -(double)(i % 8));
        const double small = pow(10, -(double)(i % 6));
        derive_error(small * a, small * R, 1 + fabs(R));
    }
}

#endif
