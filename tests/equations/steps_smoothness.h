/* steps_smoothness.h - the steps of docs/08_smoothness.md, executed.

   First a function of three variables, with derivatives by hand. Then one channel of batch norm and
   a loss of its outputs, L(y) = ∑ w·y + ½·∑ A·y·y + ∑ c·sin(y), whose Hessian, A − diag(c·sin(y)),
   is different at each point. The gradient by x is that of the header; so are the derivatives of
   the gradient, by finite differences, where the header is in double. */
#ifndef STEPS_SMOOTHNESS_H
#define STEPS_SMOOTHNESS_H

#include "derive_tools.h"

enum { SMOOTH_VARS = 3, SMOOTH_MOST = 16, SMOOTH_TERMS = 4 };

static wide smooth_norm(const wide *a, size_t n)
{
    return sqrtl(dot_of(a, a, n));
}

/* A bound: broken, or how closely it was met. */
typedef struct smooth_bound {
    int broken;
    wide closest;
} smooth_bound;

static void smooth_compare(smooth_bound *b, wide is, wide at_most)
{
    if (!(is <= at_most * (1 + (wide)1e-13) + (wide)1e-16)) b->broken = 1;
    if (is / at_most > b->closest) b->closest = is / at_most;
}

static wide smooth_verdict(const smooth_bound *b, wide part)
{
    return unless(!b->broken && b->closest > part);
}

/* ---- functions with known constants ---------------------------------------------------------- */

/* f(a) = ∑ w·sin(qᵀa), so K is at most ∑ |w|·‖q‖ and B at most ∑ |w|·‖q‖²: exactly that, if it has
   a single term. */
typedef struct smooth_waves {
    size_t terms;
    wide w[SMOOTH_TERMS], q[SMOOTH_TERMS][SMOOTH_VARS], K, B;
} smooth_waves;

static void smooth_draw_waves(smooth_waves *f, size_t terms, nrm_rng *rng)
{
    size_t k, i;
    f->terms = terms;
    f->K = f->B = 0;
    for (k = 0; k < terms; k++) {
        wide length;
        f->w[k] = (wide)uniform_between(rng, -2, 2);
        for (i = 0; i < SMOOTH_VARS; i++) f->q[k][i] = (wide)uniform_between(rng, -1.5, 1.5);
        length = smooth_norm(f->q[k], SMOOTH_VARS);
        f->K += fabsl(f->w[k]) * length;
        f->B += fabsl(f->w[k]) * length * length;
    }
}

static wide smooth_value(const smooth_waves *f, const wide *a)
{
    wide sum = 0;
    size_t k;
    for (k = 0; k < f->terms; k++) sum += f->w[k] * sinl(dot_of(f->q[k], a, SMOOTH_VARS));
    return sum;
}

static void smooth_gradient(const smooth_waves *f, const wide *a, wide *g)
{
    size_t k, i;
    for (i = 0; i < SMOOTH_VARS; i++) g[i] = 0;
    for (k = 0; k < f->terms; k++)
        for (i = 0; i < SMOOTH_VARS; i++)
            g[i] += f->w[k] * f->q[k][i] * cosl(dot_of(f->q[k], a, SMOOTH_VARS));
}

/* H·p */
static void smooth_hessian(const smooth_waves *f, const wide *a, const wide *p, wide *Hp)
{
    size_t k, i;
    for (i = 0; i < SMOOTH_VARS; i++) Hp[i] = 0;
    for (k = 0; k < f->terms; k++)
        for (i = 0; i < SMOOTH_VARS; i++)
            Hp[i] -= f->w[k] * f->q[k][i] * dot_of(f->q[k], p, SMOOTH_VARS) *
                     sinl(dot_of(f->q[k], a, SMOOTH_VARS));
}

static void smooth_along(const wide *a, wide step, const wide *p, wide *to)
{
    size_t i;
    for (i = 0; i < SMOOTH_VARS; i++) to[i] = a[i] + step * p[i];
}

/* The integrals of the chapter, from τ = 0 to 1 along a + τ·p, by Romberg's rule. `what` is 0 for
   ∇fᵀp, 1 for (∇f − ∇f(a))ᵀp, 2 + i for entry i of H·p. */
static wide smooth_integrand(const smooth_waves *f, const wide *a, const wide *p, size_t what,
                             wide at)
{
    wide here[SMOOTH_VARS], g[SMOOTH_VARS], start[SMOOTH_VARS];
    smooth_along(a, at, p, here);
    if (what >= 2) {
        smooth_hessian(f, here, p, g);
        return g[what - 2];
    }
    smooth_gradient(f, here, g);
    smooth_gradient(f, a, start);
    return dot_of(g, p, SMOOTH_VARS) - (what == 1 ? dot_of(start, p, SMOOTH_VARS) : 0);
}

static wide smooth_integral(const smooth_waves *f, const wide *a, const wide *p, size_t what)
{
    enum { LEVELS = 7 };
    wide row[LEVELS];
    size_t level, j;
    for (level = 0; level < LEVELS; level++) {
        const size_t pieces = (size_t)1 << level;
        wide sum = (smooth_integrand(f, a, p, what, 0) + smooth_integrand(f, a, p, what, 1)) / 2;
        wide power = 1, old;
        for (j = 1; j < pieces; j++) sum += smooth_integrand(f, a, p, what, (wide)j / (wide)pieces);
        sum /= (wide)pieces;
        for (j = 0; j < level; j++) { /* Richardson */
            power *= 4;
            old = row[j];
            row[j] = sum;
            sum += (sum - old) / (power - 1);
        }
        row[level] = sum;
    }
    return row[LEVELS - 1];
}

/* The largest gradient on the way from a to a + p. */
static wide smooth_steepest(const smooth_waves *f, const wide *a, const wide *p)
{
    wide here[SMOOTH_VARS], g[SMOOTH_VARS], steepest = 0;
    int i;
    for (i = 0; i <= 50; i++) {
        smooth_along(a, (wide)i / 50, p, here);
        smooth_gradient(f, here, g);
        steepest = worse(steepest, smooth_norm(g, SMOOTH_VARS));
    }
    return steepest;
}

typedef struct smooth_bounds {
    smooth_bound lipschitz, steepest, gradient, curvature, quadratic, descent, best, probe;
} smooth_bounds;

/* Two points, a and b = a + p. */
static void smooth_two_points(const smooth_waves *f, const wide *a, const wide *p, smooth_bounds *m)
{
    wide b[SMOOTH_VARS], g[SMOOTH_VARS], gb[SMOOTH_VARS], change[SMOOTH_VARS], Hp[SMOOTH_VARS];
    wide worst = 0;
    const wide length = smooth_norm(p, SMOOTH_VARS), fa = smooth_value(f, a);
    wide fb, eta, norm, pg;
    size_t i;
    smooth_along(a, 1, p, b);
    fb = smooth_value(f, b);
    smooth_gradient(f, a, g);
    smooth_gradient(f, b, gb);
    smooth_hessian(f, a, p, Hp);
    for (i = 0; i < SMOOTH_VARS; i++) change[i] = gb[i] - g[i];
    pg = dot_of(p, g, SMOOTH_VARS);
    smooth_compare(&m->lipschitz, fabsl(fb - fa), f->K * length);
    smooth_compare(&m->steepest, fabsl(fb - fa),
                   smooth_steepest(f, a, p) * length * (1 + (wide)1e-3));
    smooth_compare(&m->gradient, smooth_norm(change, SMOOTH_VARS), f->B * length);
    smooth_compare(&m->curvature, fabsl(dot_of(p, Hp, SMOOTH_VARS)), f->B * length * length);
    smooth_compare(&m->quadratic, fb - fa - pg, f->B / 2 * length * length);
    DERIVE("SM.2", apart(fb - fa, smooth_integral(f, a, p, 0), f->K * length), algebra());
    DERIVE("SM.8", apart(fb - fa - pg, smooth_integral(f, a, p, 1), f->K * length), algebra());
    for (i = 0; i < SMOOTH_VARS; i++)
        worst = worse(worst, apart(change[i], smooth_integral(f, a, p, 2 + i), f->B * length));
    DERIVE("SM.6", worst, algebra());
    { /* the slope in the direction of the gradient */
        const wide h = (wide)1 / 1024, size = smooth_norm(g, SMOOTH_VARS);
        wide unit[SMOOTH_VARS], to[SMOOTH_VARS], near_by, far_off;
        for (i = 0; i < SMOOTH_VARS; i++) unit[i] = g[i] / size;
        smooth_along(a, h, unit, to);
        near_by = smooth_value(f, to);
        smooth_along(a, -h, unit, to);
        near_by -= smooth_value(f, to);
        smooth_along(a, 2 * h, unit, to);
        far_off = smooth_value(f, to);
        smooth_along(a, -2 * h, unit, to);
        far_off -= smooth_value(f, to);
        DERIVE("SM.4",
               worse(apart((8 * near_by - far_off) / (12 * h), size, f->K),
                     unless(size <= f->K * (1 + (wide)1e-13))),
               acc_difference());
    }
    norm = dot_of(g, g, SMOOTH_VARS);
    for (eta = (wide)0.25 / f->B; eta < 3 / f->B; eta += (wide)0.25 / f->B) {
        wide to[SMOOTH_VARS], there[SMOOTH_VARS];
        smooth_along(a, -eta, g, to);
        if (eta < 2 / f->B)
            smooth_compare(&m->descent, smooth_value(f, to) - fa + eta * norm,
                           eta * eta * f->B / 2 * norm);
        smooth_gradient(f, to, there);
        for (i = 0; i < SMOOTH_VARS; i++) there[i] -= g[i];
        smooth_compare(&m->probe, smooth_norm(there, SMOOTH_VARS) / (eta * sqrtl(norm)), f->B);
    }
    {
        wide to[SMOOTH_VARS];
        smooth_along(a, -1 / f->B, g, to);
        smooth_compare(&m->best, norm / (2 * f->B), fa - smooth_value(f, to));
    }
}

static void smooth_constants(nrm_rng *rng)
{
    smooth_bounds m;
    int turn;
    memset(&m, 0, sizeof m);
    for (turn = 0; turn < 60; turn++) {
        smooth_waves f;
        wide a[SMOOTH_VARS], p[SMOOTH_VARS];
        size_t i;
        /* one wave, along it, from its steepest point or its trough: there the bounds are met */
        smooth_draw_waves(&f, turn % 3 == 0 ? SMOOTH_TERMS : 1, rng);
        for (i = 0; i < SMOOTH_VARS; i++) {
            a[i] = (wide)uniform_between(rng, -2, 2);
            p[i] = (wide)uniform_between(rng, -1, 1);
            if (turn % 3 != 0) {
                const wide phase = turn % 3 == 1 ? 0 : -acosl(-1) / 2 * (f.w[0] > 0 ? 1 : -1);
                const wide square = dot_of(f.q[0], f.q[0], SMOOTH_VARS);
                a[i] = f.q[0][i] * (phase + (turn % 3 == 2 ? (wide)0.1 : 0)) / square;
                p[i] = f.q[0][i] / 8;
            }
        }
        smooth_two_points(&f, a, p, &m);
    }
    DERIVE("SM.1", smooth_verdict(&m.lipschitz, (wide)0.9), replay());
    DERIVE("SM.3", smooth_verdict(&m.steepest, (wide)0.9), replay());
    DERIVE("SM.5", smooth_verdict(&m.gradient, (wide)0.9), replay());
    DERIVE("SM.7", smooth_verdict(&m.curvature, (wide)0.9), replay());
    DERIVE("SM.9", smooth_verdict(&m.quadratic, (wide)0.9), replay());
    DERIVE("SM.10", smooth_verdict(&m.descent, (wide)0.9), replay());
    DERIVE("SM.11", smooth_verdict(&m.best, (wide)0.9), replay());
    DERIVE("SM.40", smooth_verdict(&m.probe, (wide)0.9), replay());
}

/* Gradient descent on parabolas. */
static void smooth_parabolas(nrm_rng *rng)
{
    static const double etas[] = {0.1, 0.5, 0.9, 1.1};
    const wide c = 2, c2 = (wide)0.125; /* 2/c = 1: the last rate is too large */
    size_t k, i;
    for (k = 0; k < LENGTH(etas); k++) {
        const wide eta = (wide)etas[k], start = (wide)1.5;
        wide a = start, ab[2], g[2], Hg[2], before, after, norm, form, there;
        int t;
        for (t = 0; t < 40; t++) a -= eta * c * a;
        DERIVE("SM.12",
               worse(relative(a, powl(1 - eta * c, 40) * start),
                     unless((fabsl(a) < start) == (eta < 2 / c))),
               algebra());
        for (i = 0; i < 2; i++) ab[i] = (wide)uniform_between(rng, -2, 2);
        before = (c * ab[0] * ab[0] + c2 * ab[1] * ab[1]) / 2;
        g[0] = c * ab[0];
        g[1] = c2 * ab[1];
        Hg[0] = c * g[0];
        Hg[1] = c2 * g[1];
        norm = dot_of(g, g, 2);
        form = dot_of(g, Hg, 2);
        for (i = 0; i < 2; i++) ab[i] -= eta * g[i];
        after = (c * ab[0] * ab[0] + c2 * ab[1] * ab[1]) / 2;
        DERIVE("SM.13", apart(after - before, -eta * norm * (1 - eta / 2 * form / norm), before),
               algebra());
        there = sqrtl(powl(c * ab[0] - g[0], 2) + powl(c2 * ab[1] - g[1], 2));
        DERIVE("SM.41", relative(there / (eta * sqrtl(norm)), smooth_norm(Hg, 2) / sqrtl(norm)),
               algebra());
    }
}

/* ---- one channel of batch norm, and a loss --------------------------------------------------- */

typedef struct smooth_case {
    size_t M;
    nrm_real eps, gamma, beta;
    wide x[SMOOTH_MOST], w[SMOOTH_MOST], c[SMOOTH_MOST], A[SMOOTH_MOST][SMOOTH_MOST];
} smooth_case;

typedef struct smooth_point { /* what belongs to a place x */
    wide mu, v, r, xhat[SMOOTH_MOST], y[SMOOTH_MOST], dy[SMOOTH_MOST], dx[SMOOTH_MOST];
    wide dy_mean, dyx_mean;
} smooth_point;

static void smooth_draw_case(smooth_case *k, size_t M, double spread, nrm_real eps, nrm_rng *rng)
{
    size_t i, j;
    memset(k, 0, sizeof *k);
    k->M = M;
    k->eps = eps;
    k->gamma = (nrm_real)uniform_between(rng, 0.5, 2);
    k->beta = (nrm_real)uniform_between(rng, -1, 1);
    for (i = 0; i < M; i++) {
        k->x[i] = (wide)(float)(0.8 * spread + spread * (double)nrm_rng_normal(rng));
        k->w[i] = (wide)uniform_between(rng, -1, 2);
        k->c[i] = (wide)uniform_between(rng, -1, 1);
        for (j = 0; j <= i; j++) k->A[i][j] = k->A[j][i] = (wide)uniform_between(rng, -1, 1);
    }
}

/* dy = ∂L/∂y */
static void smooth_loss_gradient(const smooth_case *k, const wide *y, wide *dy)
{
    size_t i;
    for (i = 0; i < k->M; i++) dy[i] = k->w[i] + dot_of(k->A[i], y, k->M) + k->c[i] * cosl(y[i]);
}

static wide smooth_loss_hessian(const smooth_case *k, const wide *y, size_t i, size_t j)
{
    return k->A[i][j] - (i == j ? k->c[i] * sinl(y[i]) : 0);
}

/* Everything by the formulas; dy is held at `held` if that is not NULL. */
static void smooth_evaluate(const smooth_case *k, const wide *x, const wide *held, smooth_point *p)
{
    const wide M = (wide)k->M, gamma = (wide)k->gamma;
    size_t i;
    p->mu = p->v = p->dy_mean = p->dyx_mean = 0;
    for (i = 0; i < k->M; i++) p->mu += x[i] / M;
    for (i = 0; i < k->M; i++) p->v += (x[i] - p->mu) * (x[i] - p->mu) / M;
    p->r = 1 / sqrtl(p->v + (wide)k->eps);
    for (i = 0; i < k->M; i++) {
        p->xhat[i] = (x[i] - p->mu) * p->r;
        p->y[i] = gamma * p->xhat[i] + (wide)k->beta;
    }
    if (held != NULL) memcpy(p->dy, held, k->M * sizeof *held);
    if (held == NULL) smooth_loss_gradient(k, p->y, p->dy);
    for (i = 0; i < k->M; i++) {
        p->dy_mean += p->dy[i] / M;
        p->dyx_mean += p->dy[i] * p->xhat[i] / M;
    }
    for (i = 0; i < k->M; i++)
        p->dx[i] = gamma * p->r * (p->dy[i] - p->dy_mean - p->xhat[i] * p->dyx_mean);
}

/* dx by the header, for a given dy. */
static int smooth_header_backward(const smooth_case *k, const wide *x, const wide *dy, wide *dx)
{
    nrm_real in[SMOOTH_MOST], y[SMOOTH_MOST], up[SMOOTH_MOST], down[SMOOTH_MOST];
    nrm_acc mean, rstd;
    size_t i;
    int rc;
    for (i = 0; i < k->M; i++) {
        in[i] = (nrm_real)x[i];
        up[i] = (nrm_real)dy[i];
    }
    rc = nrm_batchnorm_forward(y, &mean, &rstd, NULL, in, &k->gamma, &k->beta, NRM_TRAIN, k->eps,
                               k->M, 1, 1);
    if (rc == NRM_OK)
        rc = nrm_batchnorm_backward(down, NULL, NULL, up, in, &mean, &rstd, &k->gamma, NRM_TRAIN,
                                    k->M, 1, 1);
    for (i = 0; i < k->M; i++) dx[i] = rc == NRM_OK ? (wide)down[i] : (wide)HUGE_VAL;
    return rc;
}

/* The gradient of the loss by x: by the header where that is in double, else by the formulas. */
static void smooth_input_gradient(const smooth_case *k, const wide *x, wide *dx)
{
    smooth_point p;
    smooth_evaluate(k, x, NULL, &p);
    memcpy(dx, p.dx, sizeof p.dx);
    if (!in_float() && !acc_in_float()) smooth_header_backward(k, x, p.dy, dx);
}

/* What is differentiated by the x: each gives M numbers. */
enum smooth_quantity { SMOOTH_Y, SMOOTH_XHAT, SMOOTH_R, SMOOTH_DX, SMOOTH_DX_HELD };

static void smooth_take(const smooth_case *k, const wide *x, const wide *held,
                        enum smooth_quantity what, wide *to)
{
    smooth_point p;
    size_t i;
    smooth_evaluate(k, x, what == SMOOTH_DX_HELD ? held : NULL, &p);
    if (what == SMOOTH_DX) {
        smooth_input_gradient(k, x, to);
        return;
    }
    for (i = 0; i < k->M; i++)
        to[i] = what == SMOOTH_Y      ? p.y[i]
                : what == SMOOTH_XHAT ? p.xhat[i]
                : what == SMOOTH_R    ? p.r
                                      : p.dx[i];
}

/* out[i][j] = ∂(quantity i)/∂xⱼ by five-point differences. */
static void smooth_jacobian(const smooth_case *k, const wide *held, enum smooth_quantity what,
                            wide out[SMOOTH_MOST][SMOOTH_MOST], wide r)
{
    const wide h = (wide)binary((double)(1 / r) / 1024);
    wide x[SMOOTH_MOST], to[4][SMOOTH_MOST];
    size_t i, j;
    int q;
    memcpy(x, k->x, sizeof x);
    for (j = 0; j < k->M; j++) {
        static const int steps[] = {1, -1, 2, -2};
        for (q = 0; q < 4; q++) {
            x[j] = k->x[j] + steps[q] * h;
            smooth_take(k, x, held, what, to[q]);
        }
        x[j] = k->x[j];
        for (i = 0; i < k->M; i++)
            out[i][j] = (8 * (to[0][i] - to[1][i]) - (to[2][i] - to[3][i])) / (12 * h);
    }
}

static wide smooth_form(const wide *a, wide H[SMOOTH_MOST][SMOOTH_MOST], const wide *b, size_t n)
{
    wide sum = 0;
    size_t i;
    for (i = 0; i < n; i++) sum += a[i] * dot_of(H[i], b, n);
    return sum;
}

/* ---- theorem 4.1: the gradient --------------------------------------------------------------- */

/* SM.15 is true of any numbers in the place of x̂. With x̂ itself, whose mean is 0, its last term
   could have any factor; so x̂ + ½ is put there. */
static wide smooth_six_terms(const smooth_point *s, size_t n)
{
    const wide M = (wide)n, dy_mean = s->dy_mean;
    wide x[SMOOTH_MOST], mean = 0, square = 0, along = 0, squares = 0, dyy, right;
    size_t i;
    for (i = 0; i < n; i++) {
        x[i] = s->xhat[i] + (wide)0.5;
        mean += x[i] / M;
        square += x[i] * x[i] / M;
        along += s->dy[i] * x[i] / M;
    }
    for (i = 0; i < n; i++) squares += powl(s->dy[i] - dy_mean - x[i] * along, 2) / M;
    dyy = dot_of(s->dy, s->dy, n) / M;
    right = dyy + dy_mean * dy_mean + square * along * along - 2 * dy_mean * dy_mean -
            2 * along * along + 2 * dy_mean * mean * along;
    return apart(squares, right, dyy);
}

static void smooth_first_order(const smooth_case *k, int no_eps)
{
    const size_t n = k->M;
    const wide M = (wide)n, gamma = (wide)k->gamma, eps = (wide)k->eps;
    wide p[SMOOTH_MOST], dx[SMOOTH_MOST], squares = 0, cos1, cos2, worst = 0, trace = 0, xx;
    wide dyy, before, after, size;
    smooth_point s;
    size_t i;
    smooth_evaluate(k, k->x, NULL, &s);
    smooth_header_backward(k, k->x, s.dy, dx);
    dyy = dot_of(s.dy, s.dy, n);
    xx = dot_of(s.xhat, s.xhat, n) / M;
    size = fabsl(gamma) * s.r * sqrtl(dyy);
    for (i = 0; i < n; i++) {
        p[i] = s.dy[i] - s.dy_mean - s.xhat[i] * s.dyx_mean;
        squares += p[i] * p[i] / M;
        worst = worse(worst, apart(dx[i], gamma * s.r * p[i], size));
    }
    before = gamma * gamma * s.r * s.r * dyy;
    if (!no_eps) {
        DERIVE("SM.14", worst, identity());
        DERIVE("SM.15", smooth_six_terms(&s, n), algebra());
        DERIVE("SM.16",
               apart(squares,
                     dyy / M - s.dy_mean * s.dy_mean - 2 * s.dyx_mean * s.dyx_mean +
                         xx * s.dyx_mean * s.dyx_mean,
                     dyy / M),
               algebra());
        after = dyy / M - s.dy_mean * s.dy_mean - (1 + eps * s.r * s.r) * s.dyx_mean * s.dyx_mean;
        DERIVE("SM.17", apart(squares, after, dyy / M), algebra());
        DERIVE("SM.18",
               apart(dot_of(dx, dx, n),
                     gamma * gamma * s.r * s.r *
                         (dyy - M * s.dy_mean * s.dy_mean -
                          M * (1 + eps * s.r * s.r) * s.dyx_mean * s.dyx_mean),
                     before),
               identity());
        return;
    }
    after = gamma * gamma / s.v * (dyy - M * s.dy_mean * s.dy_mean - M * s.dyx_mean * s.dyx_mean);
    DERIVE("SM.19", apart(dot_of(dx, dx, n), after, before), identity());
    cos1 = cos2 = 0;
    for (i = 0; i < n; i++) {
        cos1 += s.dy[i] / sqrtl(dyy * M);
        cos2 += s.dy[i] * s.xhat[i] / sqrtl(dyy * dot_of(s.xhat, s.xhat, n));
    }
    DERIVE("SM.20", apart(dot_of(dx, dx, n) / before, 1 - cos1 * cos1 - cos2 * cos2, 1),
           identity());
    for (i = 0; i < n; i++) { /* dy = each unit vector in turn */
        wide unit[SMOOTH_MOST] = {0};
        unit[i] = 1;
        smooth_header_backward(k, k->x, unit, dx);
        trace += dot_of(dx, dx, n) / (gamma * gamma * s.r * s.r);
    }
    DERIVE("SM.21", apart(trace, M - 2, M), identity());
}

/* ---- theorem 4.2: the Hessian ---------------------------------------------------------------- */

static void smooth_second_order(const smooth_case *k, int no_eps)
{
    static wide J[SMOOTH_MOST][SMOOTH_MOST], full[SMOOTH_MOST][SMOOTH_MOST];
    static wide T[SMOOTH_MOST][SMOOTH_MOST], X[SMOOTH_MOST][SMOOTH_MOST];
    static wide R[SMOOTH_MOST][SMOOTH_MOST], H[SMOOTH_MOST][SMOOTH_MOST];
    const size_t n = k->M;
    const wide M = (wide)n, gamma = (wide)k->gamma;
    wide dx[SMOOTH_MOST], Jdx, worst_j = 0, worst_chain = 0, worst_product = 0, worst_mean = 0;
    wide worst_t = 0, worst_jdx = 0, worst_jdx0 = 0, size = 0, norm, upper;
    smooth_point s;
    size_t i, j, l;
    smooth_evaluate(k, k->x, NULL, &s);
    smooth_header_backward(k, k->x, s.dy, dx);
    smooth_jacobian(k, NULL, SMOOTH_Y, J, s.r);
    smooth_jacobian(k, NULL, SMOOTH_XHAT, X, s.r);
    smooth_jacobian(k, NULL, SMOOTH_R, R, s.r);
    smooth_jacobian(k, NULL, SMOOTH_DX, full, s.r);
    smooth_jacobian(k, s.dy, SMOOTH_DX_HELD, T, s.r);
    for (i = 0; i < n; i++)
        for (j = 0; j < n; j++) {
            H[i][j] = smooth_loss_hessian(k, s.y, i, j);
            size = worse(size, fabsl(full[i][j]));
            size = worse(size, fabsl(T[i][j]));
        }
    norm = dot_of(s.dx, s.dx, n);
    for (i = 0; i < n; i++) {
        Jdx = dot_of(J[i], s.dx, n);
        worst_jdx = worse(
            worst_jdx, apart(Jdx, gamma * s.r * (s.dx[i] - s.xhat[i] * dot_of(s.dx, s.xhat, n) / M),
                             gamma * s.r * sqrtl(norm)));
        worst_jdx0 =
            worse(worst_jdx0, apart(Jdx, gamma * s.r * s.dx[i], gamma * s.r * sqrtl(norm)));
        for (j = 0; j < n; j++) {
            const wide exact = gamma * s.r * ((i == j) - 1 / M - s.xhat[i] * s.xhat[j] / M);
            wide JHJ = 0, mean = 0;
            for (l = 0; l < n; l++) {
                JHJ += dot_of(H[l], J[j], n) * J[i][l];
                mean += s.dy[l] * X[l][j] / M;
            }
            worst_j = worse(worst_j, apart(J[j][i], exact, gamma * s.r));
            worst_chain = worse(worst_chain, apart(full[i][j], JHJ + T[i][j], size));
            worst_product = worse(worst_product,
                                  apart(T[i][j],
                                        R[i][j] / s.r * s.dx[i] -
                                            gamma * s.r * (X[i][j] * s.dyx_mean + s.xhat[i] * mean),
                                        size));
            worst_mean = worse(worst_mean, apart(mean, s.dx[j] / (gamma * M), s.r));
            worst_t = worse(worst_t, apart(T[i][j],
                                           -s.r / M * (s.xhat[j] * s.dx[i] + s.xhat[i] * s.dx[j]) -
                                               s.r * s.dyx_mean * exact,
                                           size));
        }
    }
    DERIVE("SM.22", worst_j, acc_difference());
    DERIVE("SM.23", worst_chain, acc_difference());
    DERIVE("SM.24", worst_product, acc_difference());
    DERIVE("SM.25", worst_mean, acc_difference());
    DERIVE("SM.26", worst_t, acc_difference());
    DERIVE("SM.27", worst_jdx, acc_difference());
    upper = -2 * s.r * dot_of(s.dx, s.xhat, n) / M * norm -
            s.r * s.dyx_mean * smooth_form(s.dx, J, s.dx, n);
    DERIVE("SM.29", apart(smooth_form(s.dx, T, s.dx, n), upper, size * norm), acc_difference());
    if (!no_eps) return;
    DERIVE("SM.28", worst_jdx0, acc_difference());
    /* of the size of its terms: these forms are of the fourth power of the gradient */
    upper = gamma * gamma * s.r * s.r * smooth_form(s.dx, H, s.dx, n);
    DERIVE("SM.30",
           apart(smooth_form(s.dx, full, s.dx, n), upper - gamma * s.r * s.r * s.dyx_mean * norm,
                 size * norm),
           acc_difference());
    DERIVE("SM.31",
           apart(smooth_form(s.dx, full, s.dx, n) / norm,
                 upper / norm - gamma * s.r * s.r * s.dyx_mean, size),
           acc_difference());
    DERIVE("SM.43", apart(smooth_form(s.xhat, full, s.xhat, n), 0, size * M), acc_difference());
    DERIVE("SM.44", apart(smooth_form(s.xhat, full, s.dx, n), -s.r * norm, size * sqrtl(M * norm)),
           acc_difference());
    { /* so there is a direction in which the loss is curved downwards */
        const wide along = smooth_form(s.dx, full, s.dx, n);
        const wide tau = s.r * norm / (1 + fabsl(along));
        wide q[SMOOTH_MOST];
        for (i = 0; i < n; i++) q[i] = s.xhat[i] + tau * s.dx[i];
        ALSO(unless(smooth_form(q, full, q, n) < 0), replay());
    }
}

/* ---- observation 4.3, theorem 4.4, lemma 4.5 ------------------------------------------------- */

static void smooth_identity(const smooth_case *k)
{
    smooth_case same = *k;
    smooth_point s;
    nrm_real x[SMOOTH_MOST], y[SMOOTH_MOST];
    nrm_acc mean, rstd;
    wide dx[SMOOTH_MOST], worst = 0, dyy;
    const wide M = (wide)k->M;
    size_t i;
    smooth_evaluate(k, k->x, NULL, &s);
    same.gamma = (nrm_real)sqrtl(s.v + (wide)k->eps);
    same.beta = (nrm_real)s.mu;
    for (i = 0; i < k->M; i++) x[i] = (nrm_real)k->x[i];
    if (nrm_batchnorm_forward(y, &mean, &rstd, NULL, x, &same.gamma, &same.beta, NRM_TRAIN, k->eps,
                              k->M, 1, 1) != NRM_OK)
        y[0] = (nrm_real)HUGE_VAL;
    for (i = 0; i < k->M; i++)
        worst = worse(worst, apart((wide)y[i], k->x[i], fabsl(k->x[i]) + 3 / s.r));
    DERIVE("SM.32", worst, identity());
    smooth_header_backward(&same, k->x, s.dy, dx);
    dyy = dot_of(s.dy, s.dy, k->M);
    DERIVE("SM.33",
           apart(dot_of(dx, dx, k->M),
                 dyy - M * s.dy_mean * s.dy_mean -
                     M * (1 + (wide)k->eps * s.r * s.r) * s.dyx_mean * s.dyx_mean,
                 dyy),
           identity());
}

/* ∂L/∂W = Xᵀ·d of a linear layer with one output, by the header; returns its squared length. */
static wide smooth_weight_gradient(wide X[SMOOTH_MOST][SMOOTH_VARS], const wide *d, size_t n,
                                   wide *dW)
{
    nrm_real in[SMOOTH_MOST * SMOOTH_VARS], up[SMOOTH_MOST], grad[SMOOTH_VARS] = {0};
    size_t i, j;
    for (i = 0; i < n; i++) {
        up[i] = (nrm_real)d[i];
        for (j = 0; j < SMOOTH_VARS; j++) in[i * SMOOTH_VARS + j] = (nrm_real)X[i][j];
    }
    if (nrm_linear_backward(NULL, grad, NULL, up, in, NULL, n, SMOOTH_VARS, 1) != NRM_OK)
        grad[0] = (nrm_real)NAN;
    for (j = 0; j < SMOOTH_VARS; j++) dW[j] = (wide)grad[j];
    return dot_of(dW, dW, SMOOTH_VARS);
}

/* The largest singular value, by the power method. */
static wide smooth_largest(wide X[SMOOTH_MOST][SMOOTH_VARS], size_t n)
{
    wide q[SMOOTH_VARS] = {1, (wide)0.7, (wide)-0.4}, length = 0;
    int turn;
    size_t i, j;
    for (turn = 0; turn < 300; turn++) {
        wide next[SMOOTH_VARS] = {0};
        for (i = 0; i < n; i++) {
            const wide Xq = dot_of(X[i], q, SMOOTH_VARS);
            for (j = 0; j < SMOOTH_VARS; j++) next[j] += Xq * X[i][j];
        }
        length = smooth_norm(next, SMOOTH_VARS);
        for (j = 0; j < SMOOTH_VARS; j++) q[j] = next[j] / length;
    }
    return sqrtl(length);
}

static void smooth_weights(const smooth_case *k, nrm_rng *rng)
{
    const size_t n = k->M;
    const wide M = (wide)n, lambda = (wide)uniform_between(rng, 0.5, 3);
    const wide gamma = (wide)k->gamma, bound = in_float() ? (wide)1e-6 : (wide)1e-13;
    wide X[SMOOTH_MOST][SMOOTH_VARS], dW[SMOOTH_VARS], W[SMOOTH_VARS], dx[SMOOTH_MOST];
    wide most, squares, G, G_norm, worst = 0, dyy;
    smooth_point s;
    size_t i, j, l;
    smooth_evaluate(k, k->x, NULL, &s);
    smooth_header_backward(k, k->x, s.dy, dx);
    for (i = 0; i < n; i++)
        for (j = 0; j < SMOOTH_VARS; j++) X[i][j] = (wide)uniform_between(rng, -1, 1);
    most = smooth_largest(X, n);
    squares = smooth_weight_gradient(X, dx, n, dW);
    DERIVE("SM.34", unless(squares <= most * most * dot_of(dx, dx, n) * (1 + bound)), replay());
    /* X = λ·U, the columns of U orthonormal and spanning (1, ..., 1), x̂ and dy */
    for (j = 0; j < SMOOTH_VARS; j++) {
        wide length = 0;
        int twice;
        for (i = 0; i < n; i++) X[i][j] = j == 0 ? 1 : j == 1 ? s.xhat[i] : s.dy[i];
        for (twice = 0; twice < 2; twice++)
            for (l = 0; l < j; l++) {
                wide part = 0;
                for (i = 0; i < n; i++) part += X[i][j] * X[i][l];
                for (i = 0; i < n; i++) X[i][j] -= part * X[i][l];
            }
        for (i = 0; i < n; i++) length += X[i][j] * X[i][j];
        for (i = 0; i < n; i++) X[i][j] /= sqrtl(length);
    }
    for (i = 0; i < n; i++)
        for (j = 0; j < SMOOTH_VARS; j++) X[i][j] *= lambda;
    for (j = 0; j < SMOOTH_VARS; j++) {
        W[j] = 0;
        for (i = 0; i < n; i++) W[j] += X[i][j] * k->x[i] / (lambda * lambda);
    }
    for (i = 0; i < n; i++)
        worst = worse(worst, apart(dot_of(X[i], W, SMOOTH_VARS), k->x[i], 1 / s.r));
    dyy = dot_of(s.dy, s.dy, n);
    G = smooth_weight_gradient(X, s.dy, n, dW);
    G_norm = smooth_weight_gradient(X, dx, n, dW);
    worst = worse(worst, apart(G, lambda * lambda * dyy, lambda * lambda * dyy));
    worst = worse(worst, apart(G_norm, lambda * lambda * dot_of(dx, dx, n),
                               lambda * lambda * gamma * gamma * s.r * s.r * dyy));
    DERIVE("SM.35", worst, identity());
    DERIVE("SM.36",
           apart(G_norm,
                 gamma * gamma * s.r * s.r *
                     (G - lambda * lambda * M * s.dy_mean * s.dy_mean -
                      lambda * lambda * M * s.dyx_mean * s.dyx_mean),
                 gamma * gamma * s.r * s.r * G),
           identity());
}

/* y of X·(k·W) by the header. */
static void smooth_scaled(wide X[SMOOTH_MOST][SMOOTH_VARS], const wide *W, wide k, nrm_real *y,
                          size_t n)
{
    nrm_real x[SMOOTH_MOST];
    nrm_acc mean, rstd;
    size_t i;
    for (i = 0; i < n; i++) x[i] = (nrm_real)(k * dot_of(X[i], W, SMOOTH_VARS));
    if (nrm_batchnorm_forward(y, &mean, &rstd, NULL, x, NULL, NULL, NRM_TRAIN, (nrm_real)1e-30, n,
                              1, 1) != NRM_OK)
        y[0] = (nrm_real)HUGE_VAL;
}

static void smooth_initialisation(nrm_rng *rng)
{
    wide start[SMOOTH_VARS], best[SMOOTH_VARS], X[SMOOTH_MOST][SMOOTH_VARS], gap[SMOOTH_VARS];
    wide ww, w0, k, closest, any, away;
    nrm_real y[SMOOTH_MOST], scaled[SMOOTH_MOST];
    size_t i, j;
    for (j = 0; j < SMOOTH_VARS; j++) {
        start[j] = (wide)uniform_between(rng, -1, 2);
        best[j] = (wide)uniform_between(rng, 0, 2);
    }
    ww = dot_of(best, best, SMOOTH_VARS);
    w0 = dot_of(best, start, SMOOTH_VARS);
    any = (wide)uniform_between(rng, 0.2, 2);
    for (j = 0; j < SMOOTH_VARS; j++) gap[j] = start[j] - any * best[j];
    DERIVE("SM.37",
           relative(dot_of(gap, gap, SMOOTH_VARS),
                    dot_of(start, start, SMOOTH_VARS) - 2 * any * w0 + any * any * ww),
           algebra());
    k = w0 / ww;
    for (j = 0; j < SMOOTH_VARS; j++) gap[j] = start[j] - k * best[j];
    closest = dot_of(gap, gap, SMOOTH_VARS);
    DERIVE("SM.38",
           apart(closest, dot_of(start, start, SMOOTH_VARS) - w0 * w0 / ww, closest + w0 * w0),
           algebra());
    for (j = 0; j < SMOOTH_VARS; j++) gap[j] = start[j] - best[j];
    away = dot_of(gap, gap, SMOOTH_VARS);
    DERIVE("SM.39", apart(closest, away - (ww - w0) * (ww - w0) / ww, away), algebra());
    if (k <= 0) return;
    {
        wide worst = 0;
        for (i = 0; i < SMOOTH_MOST; i++)
            for (j = 0; j < SMOOTH_VARS; j++) X[i][j] = (wide)uniform_between(rng, -1, 1);
        smooth_scaled(X, best, 1, y, SMOOTH_MOST);
        smooth_scaled(X, best, k, scaled, SMOOTH_MOST);
        for (i = 0; i < SMOOTH_MOST; i++)
            worst = worse(worst, apart((wide)y[i], (wide)scaled[i], 1));
        ALSO_OF("SM.39", unless(worst <= (in_float() ? (wide)1e-5 : (wide)1e-13)), replay());
    }
}

/* ---- what is not claimed --------------------------------------------------------------------- */

/* x̂ = (1, 1, -1, -1), σ = 1, γ = 1: numbers of the chapter. */
static void smooth_four(smooth_case *k)
{
    static const double x[] = {1, 1, -1, -1};
    size_t i;
    memset(k, 0, sizeof *k);
    k->M = 4;
    k->gamma = 1;
    k->eps = (nrm_real)1e-30;
    for (i = 0; i < 4; i++) k->x[i] = (wide)x[i];
}

/* H = p·pᵀ with p = (1, -1, 0, 0)/√2, and dy = (4, 2, 3, 3): curvature along the gradient. */
static wide smooth_curvature_rises(void)
{
    static const double dy[] = {4, 2, 3, 3};
    static wide full[SMOOTH_MOST][SMOOTH_MOST];
    smooth_case k;
    smooth_point s;
    wide H[2] = {(wide)0.5, (wide)-0.5}, plain, normed, up[4];
    size_t i;
    smooth_four(&k);
    k.A[0][0] = k.A[1][1] = H[0];
    k.A[0][1] = k.A[1][0] = H[1];
    for (i = 0; i < 4; i++) {
        up[i] = (wide)dy[i];
        k.w[i] = up[i] - dot_of(k.A[i], k.x, 4); /* so that dy is that where y = x */
    }
    smooth_evaluate(&k, k.x, NULL, &s);
    plain = smooth_form(up, k.A, up, 4) / dot_of(up, up, 4);
    smooth_jacobian(&k, NULL, SMOOTH_DX, full, s.r);
    normed = smooth_form(s.dx, full, s.dx, 4) / dot_of(s.dx, s.dx, 4);
    return worse(worse(apart(plain, (wide)2 / 38, 1), apart(normed, 1, 1)),
                 worse(apart(dot_of(up, up, 4), 38, 1), apart(dot_of(s.dx, s.dx, 4), 2, 1)));
}

/* A linear loss, H = 0, with dy against x̂: the curvature comes from batch norm alone. */
static wide smooth_curvature_appears(void)
{
    static const double dy[] = {-2, -4, 3, 3};
    static wide full[SMOOTH_MOST][SMOOTH_MOST];
    smooth_case k;
    smooth_point s;
    size_t i;
    smooth_four(&k);
    for (i = 0; i < 4; i++) k.w[i] = (wide)dy[i];
    smooth_evaluate(&k, k.x, NULL, &s);
    smooth_jacobian(&k, NULL, SMOOTH_DX, full, s.r);
    return worse(apart(s.dyx_mean, -3, 1),
                 apart(smooth_form(s.dx, full, s.dx, 4) / dot_of(s.dx, s.dx, 4), 3, 1));
}

/* The printed form of theorem 4.4, with dy = (2, 0, -1, -1)·scale and λ = 2. */
static wide smooth_misprint(void)
{
    static const double dy[] = {2, 0, -1, -1};
    const wide lambda2 = 4;
    wide worst = 0;
    int turn;
    for (turn = 0; turn < 2; turn++) {
        const wide scale = turn == 0 ? 1 : (wide)0.1;
        smooth_case k;
        smooth_point s;
        wide G, left, once, literal, inner, up[4];
        size_t i;
        smooth_four(&k);
        for (i = 0; i < 4; i++) up[i] = (wide)dy[i] * scale;
        smooth_evaluate(&k, k.x, up, &s);
        left = lambda2 * dot_of(s.dx, s.dx, 4);
        G = lambda2 * dot_of(up, up, 4);
        inner = dot_of(up, s.xhat, 4);
        once = G - 4 * s.dy_mean * s.dy_mean - lambda2 * inner * inner;
        literal = G * G - 4 * s.dy_mean * s.dy_mean - lambda2 * inner * inner;
        worst = worse(worst, apart(left, 8 * scale * scale, 1));
        if (turn == 0) worst = worse(worst, worse(apart(once, -40, 1), apart(literal, 512, 1)));
        if (turn == 1) worst = worse(worst, apart(literal, (wide)-0.5824, 1));
    }
    return worst;
}

/* As the spread goes, so does the bound: values within 10⁻⁶ of each other, and a dy with hardly a
   part in what is taken out. */
static void smooth_worst_gradient(nrm_rng *rng)
{
    smooth_bound bound = {0, 0};
    int turn;
    for (turn = 0; turn < 20; turn++) {
        smooth_case k;
        wide dx[SMOOTH_MOST], dy[SMOOTH_MOST], at_most;
        const double spread = turn % 2 == 0 ? 1e-6 : 1;
        size_t i;
        smooth_draw_case(&k, 8, spread, NRM_EPS, rng);
        for (i = 0; i < 8; i++) {
            k.x[i] -= (wide)0.8 * (wide)spread;
            dy[i] = i % 2 == 0 ? 1 : -1;
        }
        smooth_header_backward(&k, k.x, dy, dx);
        at_most = (wide)k.gamma * smooth_norm(dy, 8) / sqrtl((wide)k.eps);
        smooth_compare(&bound, smooth_norm(dx, 8), at_most * (1 + (wide)1e-6));
    }
    DERIVE("SM.42", smooth_verdict(&bound, (wide)0.9), replay());
}

static void steps_smoothness(void)
{
    static const size_t sizes[] = {4, 7, 16};
    static const double spreads[] = {1, 0.5, 3};
    nrm_rng rng = stream(2909);
    size_t i, j;
    smooth_constants(&rng);
    smooth_parabolas(&rng);
    for (i = 0; i < LENGTH(sizes); i++)
        for (j = 0; j < LENGTH(spreads); j++) {
            smooth_case k;
            smooth_draw_case(&k, sizes[i], spreads[j], (nrm_real)1e-2, &rng);
            smooth_first_order(&k, 0);
            smooth_second_order(&k, 0);
            smooth_identity(&k);
            smooth_draw_case(&k, sizes[i], spreads[j], (nrm_real)1e-30, &rng);
            smooth_first_order(&k, 1);
            smooth_second_order(&k, 1);
            smooth_weights(&k, &rng);
            smooth_initialisation(&rng);
        }
    ALSO_OF("SM.31", smooth_curvature_rises(), acc_difference());
    ALSO_OF("SM.31", smooth_curvature_appears(), acc_difference());
    ALSO_OF("SM.36", smooth_misprint(), algebra());
    smooth_worst_gradient(&rng);
}
#endif
