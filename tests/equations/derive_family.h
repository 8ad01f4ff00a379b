/* derive_family.h - LP, WN: Lp batch normalization, weight normalization.

   An lp_case is one call of Lp batch norm, forward and backward, at random; an lp_channel is one of
   its channels, as the formulas have it. A wn_case is one call of weight norm, and a unit is what
   stands before batch norm: inputs, weights, and the loss ∑ dy·y. */
#ifndef DERIVE_FAMILY_H
#define DERIVE_FAMILY_H

#include "derive_tools.h"

/* ---- Lp batch normalization ------------------------------------------------------------------ */

typedef struct lp_case {
    int p, centred, mode;
    size_t N, C, S, count, members;
    nrm_real eps;
    nrm_real x[NUMBERS], dy[NUMBERS], gamma[GROUP], beta[GROUP], m[GROUP], a[GROUP];
    nrm_real y[NUMBERS], dx[NUMBERS], dgamma[GROUP], dbeta[GROUP]; /* what the code makes of them */
    nrm_acc mean[GROUP], scale[GROUP];
} lp_case;

typedef struct lp_channel {
    int p, centred, constant; /* constant: mu and t are given, not computed */
    size_t n, j;              /* j: which x̂ is asked for */
    double x[GROUP], eps;
    wide dy[GROUP], gamma, beta, mu, t, r, c[GROUP], u[GROUP], q[GROUP], k[GROUP], xhat[GROUP];
    wide sum, sum_x, dx[GROUP], size; /* ∑dy, ∑dy·x̂; the size of the terms of dx */
    wide blur; /* how much they may be off for want of digits in a saved mean: as blurred_size */
} lp_channel;

static size_t lp_place(const lp_case *k, size_t c, size_t i)
{
    return (i / k->S * k->C + c) * k->S + i % k->S;
}

/* LP.2, of the values in u. */
static wide lp_size(const wide *u, size_t n, int p)
{
    wide sum = 0, most = 0;
    size_t i;
    for (i = 0; i < n; i++) {
        sum += p == NRM_L2 ? u[i] * u[i] : fabsl(u[i]);
        most = fabsl(u[i]) > most ? fabsl(u[i]) : most;
    }
    if (p == NRM_LINF) return most;
    return p == NRM_L2 ? sqrtl(sum / (wide)n) : sum / (wide)n;
}

/* From x to x̂. */
static void lp_evaluate(lp_channel *g)
{
    wide x[GROUP];
    size_t i;
    for (i = 0; i < g->n; i++) x[i] = (wide)g->x[i];
    if (!g->constant) g->mu = mean_of(x, g->n);
    for (i = 0; i < g->n; i++) {
        g->c[i] = x[i] - g->mu;
        g->u[i] = g->centred ? g->c[i] : x[i];
    }
    if (!g->constant) g->t = lp_size(g->u, g->n, g->p);
    g->r = 1 / (g->t + (wide)g->eps);
    for (i = 0; i < g->n; i++) g->xhat[i] = g->c[i] * g->r;
}

/* LP.8 */
static wide lp_q(const lp_channel *g, size_t i)
{
    const wide sign = g->u[i] > 0 ? 1 : g->u[i] < 0 ? -1 : 0;
    size_t first = 0;
    if (g->p == NRM_L1) return sign / (wide)g->n;
    if (g->p == NRM_L2) return g->u[i] / ((wide)g->n * g->t);
    while (fabsl(g->u[first]) < g->t) first++;
    return i == first ? sign : 0;
}

static void lp_differentiate(lp_channel *g)
{
    wide q_mean, most = 0;
    size_t i;
    g->sum = g->sum_x = 0;
    for (i = 0; i < g->n; i++) {
        g->q[i] = g->constant ? 0 : lp_q(g, i);
        g->sum += g->dy[i];
        g->sum_x += g->dy[i] * g->xhat[i];
        most = worse(most, fabsl(g->dy[i]));
    }
    q_mean = mean_of(g->q, g->n);
    for (i = 0; i < g->n; i++) {
        g->k[i] = g->q[i] - (g->centred ? q_mean : 0);                         /* LP.9 */
        g->dx[i] = g->gamma * g->r *
                   (g->dy[i] - (g->constant ? 0 : g->sum / (wide)g->n) - g->k[i] * g->sum_x);
        most = worse(most, fabsl(g->k[i]) * (wide)g->n * lp_size(g->dy, g->n, NRM_L1) *
                               lp_size(g->xhat, g->n, NRM_LINF));
    }
    g->blur = 1 + (acc_in_float() ? fabsl(g->mu) * g->r : 0);
    g->size = fabsl(g->gamma) * g->r * most * g->blur;
}

static void lp_load(lp_channel *g, const lp_case *k, size_t c)
{
    size_t i;
    memset(g, 0, sizeof *g);
    g->p = k->p;
    g->centred = k->centred;
    g->constant = k->mode != NRM_TRAIN;
    g->n = k->members;
    g->eps = (double)k->eps;
    g->gamma = (wide)k->gamma[c];
    g->beta = (wide)k->beta[c];
    g->mu = (wide)k->m[c];
    g->t = (wide)k->a[c];
    for (i = 0; i < g->n; i++) {
        g->x[i] = (double)k->x[lp_place(k, c, i)];
        g->dy[i] = (wide)k->dy[lp_place(k, c, i)];
    }
    lp_evaluate(g);
    lp_differentiate(g);
}

/* The forward pass of the case's x, γ and β; running starts from the case's m and a. */
static int lp_forward(lp_case *k, nrm_running *running)
{
    return nrm_lp_batchnorm_forward(k->y, k->mean, k->scale, running, k->x, k->gamma, k->beta,
                                    k->p + (k->centred ? NRM_CENTRED : 0), k->mode, k->eps, k->N,
                                    k->C, k->S);
}

static void lp_setup(lp_case *k, int p, int centred, int mode, const size_t *shape, double scale,
                     nrm_rng *rng)
{
    nrm_running running;
    size_t c;
    memset(k, 0, sizeof *k);
    memset(&running, 0, sizeof running);
    k->p = p;
    k->centred = centred;
    k->mode = mode;
    k->N = shape[0];
    k->C = shape[1];
    k->S = shape[2];
    k->count = k->N * k->C * k->S;
    k->members = k->N * k->S;
    k->eps = nrm_rng_below(rng, 2) ? NRM_EPS : (nrm_real)(scale / 8);
    fill_real(k->x, k->count, 0.7 * scale, scale, rng);
    fill_real(k->dy, k->count, 0.2, 1, rng);
    fill_real(k->gamma, k->C, 1.5, 0.5, rng);
    fill_real(k->beta, k->C, -0.3, 1, rng);
    fill_real(k->m, k->C, 0.5 * scale, 0.1 * scale, rng);
    for (c = 0; c < k->C; c++) k->a[c] = (nrm_real)(scale * uniform_between(rng, 0.5, 2));
    running.mean = k->m;
    running.var = k->a;
    if (lp_forward(k, mode == NRM_TRAIN ? NULL : &running) != NRM_OK ||
        nrm_lp_batchnorm_backward(k->dx, k->dgamma, k->dbeta, k->dy, k->x, k->mean, k->scale,
                                  k->gamma, p + (centred ? NRM_CENTRED : 0), mode, k->eps, k->N,
                                  k->C, k->S) != NRM_OK)
        k->y[0] = k->dx[0] = (nrm_real)HUGE_VAL;
}

static wide lp_output_residual(const lp_case *k, const lp_channel *g, size_t c)
{
    wide worst = 0;
    size_t i;
    for (i = 0; i < g->n; i++) {
        const wide line = g->gamma * g->xhat[i];
        worst = worse(worst, apart((wide)k->y[lp_place(k, c, i)], line + g->beta,
                                   fabsl(line) + fabsl(g->beta) + 1));
    }
    return worst;
}

/* c, or r, read back from the code's y. */
static wide lp_deviation_residual(const lp_case *k, const lp_channel *g, size_t c)
{
    const wide line = fabsl(g->gamma) * g->r, blur = fabsl(g->beta / line);
    wide worst = 0;
    size_t i;
    for (i = 0; i < g->n; i++) {
        const wide got = ((wide)k->y[lp_place(k, c, i)] - g->beta) / (g->gamma * g->r);
        worst = worse(worst, apart(got, g->c[i], fabsl(g->c[i]) + blur + 1 / g->r));
    }
    return worst;
}

static wide lp_factor_residual(const lp_case *k, const lp_channel *g, size_t c)
{
    const wide should = 1 / ((wide)k->scale[c] + (wide)g->eps);
    wide got, blur;
    size_t i, far = 0;
    for (i = 0; i < g->n; i++)
        if (fabsl(g->c[i]) > fabsl(g->c[far])) far = i;
    got = ((wide)k->y[lp_place(k, c, far)] - g->beta) / (g->gamma * g->c[far]);
    blur = 1 + fabsl(g->beta / (g->gamma * g->c[far] * g->r));
    return apart(got, should, should * blur);
}

static wide lp_dx_residual(const lp_case *k, const lp_channel *g, size_t c)
{
    wide worst = 0;
    size_t i;
    for (i = 0; i < g->n; i++)
        worst = worse(worst, apart((wide)k->dx[lp_place(k, c, i)], g->dx[i], g->size));
    return worst;
}

static wide lp_params_residual(const lp_case *k, const lp_channel *g, size_t c)
{
    const wide size = (wide)g->n * lp_size(g->dy, g->n, NRM_L1) * g->blur;
    return worse(apart((wide)k->dbeta[c], g->sum, size),
                 apart((wide)k->dgamma[c], g->sum_x,
                       size * (1 + lp_size(g->xhat, g->n, NRM_LINF))));
}

/* ∑ k·x = t: of the formulas. */
static wide lp_euler_residual(const lp_channel *g)
{
    wide sum = 0, size = g->t;
    size_t i;
    for (i = 0; i < g->n; i++) {
        sum += g->k[i] * (wide)g->x[i];
        size += fabsl(g->k[i] * (wide)g->x[i]);
    }
    return apart(sum, g->t, size);
}

/* ∑ dx·x and ∑ dx of the code. */
static wide lp_along_residual(const lp_case *k, const lp_channel *g, size_t c)
{
    const wide should = g->gamma * (wide)g->eps * g->r * g->sum_x;
    wide sum = 0, size = 0;
    size_t i;
    for (i = 0; i < g->n; i++) {
        sum += (wide)k->dx[lp_place(k, c, i)] * (wide)g->x[i];
        size += g->size * fabsl((wide)g->x[i]);
    }
    return apart(sum, should, size + fabsl(should));
}

static wide lp_sum_residual(const lp_case *k, const lp_channel *g, size_t c)
{
    wide sum = 0, should = 0;
    size_t i;
    for (i = 0; i < g->n; i++) sum += (wide)k->dx[lp_place(k, c, i)];
    if (!g->centred)
        for (i = 0; i < g->n; i++) should -= g->gamma * g->r * g->sum_x * g->k[i];
    return apart(sum, should, (wide)g->n * g->size);
}

/* ---- differences of the formulas, away from kinks -------------------------------------------- */

/* Is every nudge by up to 2h too small to change a sign, or which value is the largest? */
static int lp_smooth(const lp_channel *g, double h)
{
    wide first = 0, second = 0, least = (wide)HUGE_VAL;
    size_t i;
    for (i = 0; i < g->n; i++) {
        const wide size = fabsl(g->u[i]);
        least = size < least ? size : least;
        if (size > first) {
            second = first;
            first = size;
        } else if (size > second)
            second = size;
    }
    return g->p == NRM_L2 || (g->p == NRM_L1 ? least : first - second) > 5 * (wide)h;
}

static wide lp_t_of(void *context)
{
    lp_channel *g = (lp_channel *)context;
    lp_evaluate(g);
    return g->t;
}

static wide lp_xhat_of(void *context)
{
    lp_channel *g = (lp_channel *)context;
    lp_evaluate(g);
    return g->xhat[g->j];
}

static wide lp_loss_of(void *context)
{
    lp_channel *g = (lp_channel *)context;
    wide loss = 0;
    size_t i;
    lp_evaluate(g);
    for (i = 0; i < g->n; i++) loss += g->dy[i] * (g->gamma * g->xhat[i] + g->beta);
    return loss;
}

/* t as a function of u: that of an uncentred channel whose x is u. */
static wide lp_q_residual(const lp_channel *g, double h)
{
    lp_channel as_u = *g;
    wide worst = 0;
    size_t i;
    as_u.centred = 0;
    for (i = 0; i < g->n; i++) as_u.x[i] = (double)g->u[i];
    for (i = 0; i < g->n; i++)
        worst = worse(worst, apart(g->q[i], slope(lp_t_of, &as_u, &as_u.x[i], h), 1));
    return worst;
}

static wide lp_k_residual(const lp_channel *g, double h)
{
    lp_channel at = *g;
    wide worst = 0;
    size_t i;
    for (i = 0; i < g->n; i++)
        worst = worse(worst, apart(g->k[i], slope(lp_t_of, &at, &at.x[i], h), 1));
    return worst;
}

static wide lp_jacobian_residual(const lp_channel *g, double h)
{
    lp_channel at = *g;
    const wide n = (wide)g->n, size = g->r * (1 + lp_size(g->xhat, g->n, NRM_LINF));
    wide worst = 0;
    size_t i;
    for (at.j = 0; at.j < g->n; at.j++)
        for (i = 0; i < g->n; i++) {
            const wide formula = g->r * ((i == at.j) - 1 / n - g->k[i] * g->xhat[at.j]);
            worst = worse(worst, apart(formula, slope(lp_xhat_of, &at, &at.x[i], h), size));
        }
    return worst;
}

static wide lp_slopes_residual(const lp_case *k, const lp_channel *g, size_t c, double h)
{
    lp_channel at = *g;
    wide worst = 0;
    size_t i;
    for (i = 0; i < g->n; i++)
        worst = worse(worst, apart((wide)k->dx[lp_place(k, c, i)],
                                   slope(lp_loss_of, &at, &at.x[i], h), g->size));
    return worst;
}

static void derive_lp_differences(const lp_case *k, const lp_channel *g, size_t c)
{
    const double h = binary((double)(1 / g->r) / 4096);
    if (!lp_smooth(g, h)) return;
    DERIVE("LP.8", lp_q_residual(g, h), acc_difference());
    DERIVE("LP.9", lp_k_residual(g, h), acc_difference());
    if (g->n <= 20) /* a Jacobian of 40 x 40 takes longer than all the rest here */
        DERIVE("LP.10", lp_jacobian_residual(g, h), acc_difference());
    ALSO_OF("LP.11", lp_slopes_residual(k, g, c, h), difference());
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void derive_lp_train(const lp_case *k)
{
    lp_channel g;
    size_t c;
    for (c = 0; c < k->C; c++) {
        lp_load(&g, k, c);
        DERIVE("LP.1", lp_deviation_residual(k, &g, c), identity());
        DERIVE("LP.2", apart((wide)k->scale[c], g.t, g.t), identity());
        DERIVE("LP.3", lp_factor_residual(k, &g, c), identity());
        DERIVE("LP.4", lp_output_residual(k, &g, c), identity());
        DERIVE("LP.11", lp_dx_residual(k, &g, c), identity());
        ALSO_OF("BN.13", lp_params_residual(k, &g, c), identity());
        DERIVE("LP.13", lp_euler_residual(&g), algebra());
        DERIVE("LP.14", lp_along_residual(k, &g, c), identity());
        DERIVE("LP.15", lp_sum_residual(k, &g, c), identity());
        derive_lp_differences(k, &g, c);
    }
}

static void derive_lp_frozen(const lp_case *k)
{
    lp_channel g;
    size_t c;
    for (c = 0; c < k->C; c++) {
        lp_load(&g, k, c);
        DERIVE("LP.7", lp_output_residual(k, &g, c), identity());
        DERIVE("LP.12", lp_dx_residual(k, &g, c), identity());
    }
}

/* Three sizes of the same data; the code's own t among them. */
static void derive_lp_sizes(const size_t *shape, int centred, nrm_rng *rng)
{
    lp_case k, other;
    lp_channel g;
    wide mean = 0, square = 0;
    size_t c, i;
    lp_setup(&k, NRM_L2, centred, NRM_TRAIN, shape, 1, rng);
    other = k;
    for (c = 0; c < k.C; c++) {
        lp_load(&g, &k, c);
        mean = square = 0;
        for (i = 0; i < g.n; i++) mean += (wide)g.x[i] / (wide)g.n;
        for (i = 0; i < g.n; i++)
            square += ((wide)g.x[i] - mean) * ((wide)g.x[i] - mean) / (wide)g.n;
        DERIVE("LP.5", relative(sqrtl(square + (centred ? 0 : mean * mean)), g.t), algebra());
        DERIVE("LP.16", unless(lp_size(g.c, g.n, NRM_L1) <= lp_size(g.c, g.n, NRM_L2) &&
                               lp_size(g.c, g.n, NRM_L2) <= lp_size(g.c, g.n, NRM_LINF)),
               algebra());
    }
    if (!centred) return;
    k.p = NRM_L1;
    other.p = NRM_LINF;
    ALSO_OF("LP.16", unless(lp_forward(&k, NULL) == NRM_OK && lp_forward(&other, NULL) == NRM_OK),
            replay());
    for (c = 0; c < k.C; c++)
        ALSO_OF("LP.16", unless(k.scale[c] < other.scale[c] || k.members < 3), replay());
}

/* LP.6: two batches into running statistics that start at the case's. */
static void derive_lp_running(const size_t *shape, int cumulative, double weight, nrm_rng *rng)
{
    lp_case k;
    lp_channel g;
    nrm_real m[GROUP], a[GROUP];
    nrm_running running;
    wide m_should[GROUP], a_should[GROUP];
    size_t c;
    int batch;
    memset(&running, 0, sizeof running);
    lp_setup(&k, NRM_L1 + (int)nrm_rng_below(rng, 3), (int)nrm_rng_below(rng, 2), NRM_TRAIN, shape,
             1, rng);
    memcpy(m, k.m, sizeof m);
    memcpy(a, k.a, sizeof a);
    for (c = 0; c < k.C; c++) {
        m_should[c] = (wide)m[c];
        a_should[c] = (wide)a[c];
    }
    running.mean = m;
    running.var = a;
    running.new_weight = (nrm_real)weight;
    running.cumulative = cumulative;
    running.biased = (int)nrm_rng_below(rng, 2); /* makes no difference */
    for (batch = 1; batch <= 2; batch++) {
        const wide w = cumulative ? 1 / (wide)batch : (wide)running.new_weight;
        fill_real(k.x, k.count, 0.4, 1, rng);
        ALSO_OF("LP.6", unless(lp_forward(&k, &running) == NRM_OK), replay());
        for (c = 0; c < k.C; c++) {
            lp_load(&g, &k, c);
            m_should[c] = (1 - w) * m_should[c] + w * g.mu;
            a_should[c] = (1 - w) * a_should[c] + w * g.t;
            DERIVE("LP.6", worse(apart((wide)m[c], m_should[c], 1 + fabsl(m_should[c])),
                                 relative((wide)a[c], a_should[c])),
                   identity());
        }
        ALSO_OF("LP.6", unless(running.batches == (size_t)batch), replay());
    }
}

static void derive_lp(void)
{
    static const size_t shape[][3] = {{2, 3, 1}, {1, 2, 2}, {3, 3, 1}, {4, 2, 2}, {7, 3, 1},
                                      {3, 1, 5}, {1, 2, 19}, {2, 2, 19}, {40, 5, 1}, {3, 67, 1}};
    static const double scale[] = {1e-3, 1, 1e3};
    nrm_rng rng = stream(70);
    lp_case k;
    size_t i, j;
    int p, centred;
    for (p = NRM_L1; p <= NRM_LINF; p++)
        for (centred = 0; centred < 2; centred++)
            for (i = 0; i < LENGTH(shape); i++)
                for (j = 0; j < LENGTH(scale); j++) {
                    lp_setup(&k, p, centred, NRM_TRAIN, shape[i], scale[j], &rng);
                    derive_lp_train(&k);
                    lp_setup(&k, p, centred, NRM_FROZEN, shape[i], scale[j], &rng);
                    derive_lp_frozen(&k);
                    derive_lp_sizes(shape[i], centred, &rng);
                }
    for (i = 0; i < LENGTH(shape); i++) {
        derive_lp_running(shape[i], 0, 0.1, &rng);
        derive_lp_running(shape[i], 0, 1, &rng);
        derive_lp_running(shape[i], 1, 0.1, &rng);
    }
}

/* ---- weight normalization -------------------------------------------------------------------- */

typedef struct wn_case {
    size_t in, out;
    nrm_real v[NUMBERS], g[GROUP], dW[NUMBERS];
    nrm_real W[NUMBERS], dv[NUMBERS], dg[GROUP], dv_before[NUMBERS], dg_before[GROUP];
    nrm_acc norm[GROUP];
} wn_case;

typedef struct wn_column {
    size_t in, j; /* j: which W is asked for */
    double v[GROUP];
    wide g, n, dg, W[GROUP], dW[GROUP], dv[GROUP];
    wide size; /* of the terms of dv */
} wn_column;

static void wn_evaluate(wn_column *c)
{
    wide most = 0, sum = 0;
    size_t i;
    for (i = 0; i < c->in; i++) most = worse(most, fabsl((wide)c->v[i]));
    for (i = 0; i < c->in; i++) sum += (wide)c->v[i] / most * ((wide)c->v[i] / most);
    c->n = most * sqrtl(sum);
    for (i = 0; i < c->in; i++) c->W[i] = c->g * (wide)c->v[i] / c->n;
}

static void wn_load(wn_column *c, const wn_case *k, size_t column)
{
    wide most = 0;
    size_t i;
    memset(c, 0, sizeof *c);
    c->in = k->in;
    c->g = (wide)k->g[column];
    for (i = 0; i < c->in; i++) {
        c->v[i] = (double)k->v[i * k->out + column];
        c->dW[i] = (wide)k->dW[i * k->out + column];
        most = worse(most, fabsl(c->dW[i]));
    }
    wn_evaluate(c);
    for (i = 0; i < c->in; i++) c->dg += c->dW[i] * (wide)c->v[i] / c->n;
    for (i = 0; i < c->in; i++)
        c->dv[i] = c->g / c->n * (c->dW[i] - c->dg * (wide)c->v[i] / c->n);
    c->size = fabsl(c->g) / c->n * (most + fabsl(c->dg));
}

static void wn_setup(wn_case *k, size_t in, size_t out, double scale, int gathered, nrm_rng *rng)
{
    memset(k, 0, sizeof *k);
    k->in = in;
    k->out = out;
    fill_real(k->v, in * out, 0.3 * scale, scale, rng);
    fill_real(k->g, out, 1.5, 0.5, rng);
    fill_real(k->dW, in * out, 0.2, 1, rng);
    if (gathered) fill_real(k->dv_before, in * out, 1 / scale, 1 / scale, rng);
    if (gathered) fill_real(k->dg_before, out, 1, 1, rng);
    memcpy(k->dv, k->dv_before, sizeof k->dv);
    memcpy(k->dg, k->dg_before, sizeof k->dg);
    if (nrm_weightnorm_forward(k->W, k->norm, k->v, k->g, in, out) != NRM_OK ||
        nrm_weightnorm_backward(k->dv, k->dg, k->dW, k->v, k->norm, k->g, in, out) != NRM_OK)
        k->W[0] = k->dv[0] = (nrm_real)HUGE_VAL;
}

static wide wn_length_of(void *context)
{
    wn_column *c = (wn_column *)context;
    wn_evaluate(c);
    return c->n;
}

static wide wn_weight_of(void *context)
{
    wn_column *c = (wn_column *)context;
    wn_evaluate(c);
    return c->W[c->j];
}

static void derive_wn_differences(const wn_column *c)
{
    wn_column at = *c;
    const double h = binary((double)c->n / 4096);
    size_t i;
    for (i = 0; i < c->in; i++) {
        const wide share = (wide)c->v[i] / c->n;
        DERIVE("WN.5", apart(share, slope(wn_length_of, &at, &at.v[i], h), 1), acc_difference());
        for (at.j = 0; at.j < c->in; at.j++) {
            const wide should =
                c->g / c->n * ((i == at.j) - share * (wide)c->v[at.j] / c->n);
            DERIVE("WN.7", apart(should, slope(wn_weight_of, &at, &at.v[i], h), fabsl(c->g) / c->n),
                   acc_difference());
        }
    }
}

static void derive_wn_column(const wn_case *k, const wn_column *c, size_t column)
{
    wide along = 0, along_size = 0, before = 0, step = 0, after = 0;
    const wide rate = c->n * c->n / 8; /* a step of about an eighth of the length */
    size_t i;
    DERIVE("WN.1", relative((wide)k->norm[column], c->n), identity());
    DERIVE("WN.6", apart((wide)k->dg[column] - (wide)k->dg_before[column], c->dg,
                         fabsl((wide)k->dg_before[column]) + sqrtl((wide)c->in) * c->n * c->size),
           identity());
    for (i = 0; i < c->in; i++) {
        const size_t at = i * k->out + column;
        const wide dv = (wide)k->dv[at] - (wide)k->dv_before[at], v = (wide)c->v[i];
        DERIVE("WN.2", apart((wide)k->W[at], c->W[i], fabsl(c->g)), identity());
        DERIVE("WN.8", apart(dv, c->dv[i], c->size + fabsl((wide)k->dv_before[at])), identity());
        along += dv * v;
        along_size += (c->size + fabsl((wide)k->dv_before[at])) * fabsl(v);
        before += v * v;
        step += rate * rate * dv * dv;
        after += (v - rate * dv) * (v - rate * dv);
    }
    DERIVE("WN.9", apart(along, 0, along_size), identity());
    DERIVE("WN.10", apart(after, before + step, before + step + rate * along_size), identity());
}

/* Columns of all lengths that W can be made of, near the ends of the range of float, or double. */
static void derive_wn_lengths(nrm_rng *rng)
{
    static const double in_floats[] = {1e-30, 1e-25, 1e-20, 1e-14, 1e14, 1e20, 1e25, 1e30};
    static const double in_doubles[] = {1e-300, 1e-250, 1e-160, 1e160, 1e250, 1e300};
    const int both = !in_float() && !acc_in_float();
    wn_case k;
    wn_column c;
    size_t i, j, column;
    for (i = 0; i < LENGTH(in_floats) + (both ? LENGTH(in_doubles) : 0); i++)
        for (j = 0; j < 3; j++) {
            const double scale = i < LENGTH(in_floats) ? in_floats[i]
                                                       : in_doubles[i - LENGTH(in_floats)];
            wn_setup(&k, j == 0 ? 1 : j == 1 ? 5 : 40, 3, scale, 0, rng);
            for (column = 0; column < 3; column++) {
                wn_load(&c, &k, column);
                DERIVE("WN.3", relative((wide)k.norm[column], c.n), acc_identity());
                if (scale > 1e100 || scale < 1e-100) continue; /* a wide may have no more range */
                derive_wn_column(&k, &c, column);
            }
        }
}

/* The three lines in the header's text: WN.4. */
static void derive_wn_start(nrm_rng *rng)
{
    enum { N = 12, IN = 5, OUT = 3 };
    nrm_real x[N * IN], v[IN * OUT], W[IN * OUT], z[N * OUT], y[N * OUT], g[OUT], b[OUT];
    nrm_acc mean[OUT], rstd[OUT];
    size_t n, j;
    fill_real(x, N * IN, 0.5, 1, rng);
    fill_real(v, IN * OUT, 0, 0.05, rng);
    if (nrm_weightnorm_forward(W, NULL, v, NULL, IN, OUT) != NRM_OK ||
        nrm_linear_forward(z, x, W, NULL, N, IN, OUT) != NRM_OK ||
        nrm_batchnorm_forward(y, mean, rstd, NULL, z, NULL, NULL, NRM_TRAIN, NRM_EPS, N, OUT, 1) !=
            NRM_OK)
        memset(rstd, 0, sizeof rstd);
    for (j = 0; j < OUT; j++) {
        g[j] = (nrm_real)rstd[j];
        b[j] = (nrm_real)(-mean[j] * rstd[j]);
    }
    if (nrm_weightnorm_forward(W, NULL, v, g, IN, OUT) != NRM_OK ||
        nrm_linear_forward(z, x, W, b, N, IN, OUT) != NRM_OK)
        z[0] = (nrm_real)HUGE_VAL;
    for (n = 0; n < N * OUT; n++)
        DERIVE("WN.4", apart((wide)z[n], (wide)y[n], 1 + fabsl((wide)y[n])), identity());
}

static void derive_weightnorm(void)
{
    static const size_t shape[][2] = {{1, 1}, {1, 3}, {2, 3}, {5, 1}, {7, 7}, {3, 67}, {70, 5}};
    static const double scale[] = {1e-3, 1, 1e3};
    nrm_rng rng = stream(71);
    wn_case k;
    wn_column c;
    size_t i, j, column;
    for (i = 0; i < LENGTH(shape); i++)
        for (j = 0; j < LENGTH(scale); j++) {
            wn_setup(&k, shape[i][0], shape[i][1], scale[j], j == 1, &rng);
            for (column = 0; column < k.out; column++) {
                wn_load(&c, &k, column);
                derive_wn_column(&k, &c, column);
                if (k.in <= 7) derive_wn_differences(&c);
            }
        }
    derive_wn_lengths(&rng);
    derive_wn_start(&rng);
}

/* ---- batch norm as a reparametrization ------------------------------------------------------- */

enum { UNIT_ROWS = 12, UNIT_IN = 4 };

typedef struct unit_case { /* a linear unit and batch norm after it */
    size_t N, in;
    nrm_real eps, gamma, beta;
    nrm_real x[UNIT_ROWS * UNIT_IN], w[UNIT_IN], dy[UNIT_ROWS];
    nrm_real y[UNIT_ROWS], dw[UNIT_IN]; /* of the code, by way of the layers */
    nrm_acc mean, rstd;
} unit_case;

typedef struct unit { /* the same as the formulas have it */
    wide m[UNIT_IN], S[UNIT_IN][UNIT_IN], raw[UNIT_IN][UNIT_IN]; /* raw: not centred */
    wide Sw[UNIT_IN], variance, mean, r, w_hat[UNIT_IN], shift, a[UNIT_IN], aw, dw[UNIT_IN];
    wide y_size, dw_size;
} unit;

static void unit_run(unit_case *k)
{
    nrm_real z[UNIT_ROWS], dz[UNIT_ROWS];
    memset(k->dw, 0, sizeof k->dw);
    if (nrm_linear_forward(z, k->x, k->w, NULL, k->N, k->in, 1) != NRM_OK ||
        nrm_batchnorm_forward(k->y, &k->mean, &k->rstd, NULL, z, &k->gamma, &k->beta, NRM_TRAIN,
                              k->eps, k->N, 1, 1) != NRM_OK ||
        nrm_batchnorm_backward(dz, NULL, NULL, k->dy, z, &k->mean, &k->rstd, &k->gamma, NRM_TRAIN,
                               k->N, 1, 1) != NRM_OK ||
        nrm_linear_backward(NULL, k->dw, NULL, dz, k->x, k->w, k->N, k->in, 1) != NRM_OK)
        k->y[0] = k->dw[0] = (nrm_real)HUGE_VAL;
}

static void unit_covariance(unit *u, const unit_case *k)
{
    const wide share = 1 / (wide)k->N;
    size_t n, i, j;
    memset(u, 0, sizeof *u);
    for (n = 0; n < k->N; n++)
        for (i = 0; i < k->in; i++) u->m[i] += (wide)k->x[n * k->in + i] * share;
    for (n = 0; n < k->N; n++)
        for (i = 0; i < k->in; i++)
            for (j = 0; j < k->in; j++) {
                const wide xi = (wide)k->x[n * k->in + i], xj = (wide)k->x[n * k->in + j];
                u->S[i][j] += (xi - u->m[i]) * (xj - u->m[j]) * share;
                u->raw[i][j] += xi * xj * share;
            }
}

static wide unit_form(wide S[UNIT_IN][UNIT_IN], const unit_case *k)
{
    wide sum = 0;
    size_t i, j;
    for (i = 0; i < k->in; i++)
        for (j = 0; j < k->in; j++) sum += (wide)k->w[i] * S[i][j] * (wide)k->w[j];
    return sum;
}

/* WN.11 to WN.13 */
static void unit_evaluate(unit *u, const unit_case *k)
{
    size_t n, i, j;
    unit_covariance(u, k);
    u->variance = unit_form(u->S, k);
    u->r = 1 / sqrtl(u->variance + (wide)k->eps);
    u->shift = (wide)k->beta;
    for (i = 0; i < k->in; i++) {
        u->mean += u->m[i] * (wide)k->w[i];
        u->w_hat[i] = (wide)k->gamma * (wide)k->w[i] * u->r;
        u->shift -= u->m[i] * u->w_hat[i];
        for (j = 0; j < k->in; j++) u->Sw[i] += u->S[i][j] * (wide)k->w[j];
        for (n = 0; n < k->N; n++) {
            u->a[i] += (wide)k->dy[n] * ((wide)k->x[n * k->in + i] - u->m[i]);
            u->dw_size += fabsl((wide)k->gamma * u->r * (wide)k->dy[n] * (wide)k->x[n * k->in + i]);
        }
        u->aw += u->a[i] * (wide)k->w[i];
        u->y_size += fabsl(u->w_hat[i]);
    }
    for (i = 0; i < k->in; i++)
        u->dw[i] = (wide)k->gamma * u->r * (u->a[i] - u->r * u->r * u->aw * u->Sw[i]);
}

static void derive_unit_case(const unit_case *k)
{
    wide along = 0, along_size = 0;
    unit u;
    size_t n, i;
    unit_evaluate(&u, k);
    DERIVE("WN.11", apart((wide)k->mean, u.mean, fabsl(u.mean) + 1 / u.r), identity());
    ALSO(apart(1 / ((wide)k->rstd * (wide)k->rstd) - (wide)k->eps, u.variance,
               u.variance + (wide)k->eps),
         identity());
    for (n = 0; n < k->N; n++) {
        wide y = u.shift, size = 4 * u.y_size + fabsl(u.shift);
        for (i = 0; i < k->in; i++) y += (wide)k->x[n * k->in + i] * u.w_hat[i];
        DERIVE("WN.12", apart((wide)k->y[n], y, size), identity());
    }
    for (i = 0; i < k->in; i++) {
        DERIVE("WN.13", apart((wide)k->dw[i], u.dw[i], u.dw_size), identity());
        along += (wide)k->dw[i] * (wide)k->w[i];
        along_size += u.dw_size * fabsl((wide)k->w[i]);
    }
    DERIVE("WN.14",
           apart(along, (wide)k->gamma * u.r * (wide)k->eps * u.r * u.r * u.aw, along_size),
           identity());
}

/* One input, the values 1 and 3: the covariance gives what batch norm gives, ⟨x²⟩ does not. */
static void derive_unit_uncentred(void)
{
    unit_case k;
    unit u;
    memset(&k, 0, sizeof k);
    k.N = 2;
    k.in = 1;
    k.eps = (nrm_real)1e-30;
    k.gamma = k.w[0] = k.x[0] = 1;
    k.x[1] = 3;
    unit_run(&k);
    unit_evaluate(&u, &k);
    ALSO_OF("WN.12", unless(k.y[0] == -1 && k.y[1] == 1), replay());
    ALSO_OF("WN.12", apart(unit_form(u.S, &k), 1, 1), algebra());
    ALSO_OF("WN.12", apart((3 - u.m[0]) / sqrtl(unit_form(u.raw, &k)), 1 / sqrtl(5), 1), algebra());
}

/* Inputs with mean 0 and covariance 1, the columns of a Hadamard matrix: batch norm is weight norm
   then, in what it computes and in its gradient. */
static void derive_unit_white(nrm_rng *rng)
{
    static const int sign[4][3] = {{1, 1, 1}, {-1, 1, -1}, {1, -1, -1}, {-1, -1, 1}};
    unit_case k;
    unit u;
    nrm_real W[3], dW[3], dv[3] = {0, 0, 0};
    nrm_acc norm;
    size_t n, i;
    memset(&k, 0, sizeof k);
    k.N = 4;
    k.in = 3;
    k.eps = (nrm_real)1e-30;
    k.beta = 0;
    fill_real(&k.gamma, 1, 1.5, 0.5, rng);
    fill_real(k.w, 3, 0, 1, rng);
    fill_real(k.dy, 4, 0, 1, rng);
    for (n = 0; n < 4; n++)
        for (i = 0; i < 3; i++) k.x[n * 3 + i] = (nrm_real)sign[n][i];
    unit_run(&k);
    unit_evaluate(&u, &k);
    for (i = 0; i < 3; i++) dW[i] = (nrm_real)u.a[i];
    if (nrm_weightnorm_forward(W, &norm, k.w, &k.gamma, 3, 1) != NRM_OK ||
        nrm_weightnorm_backward(dv, NULL, dW, k.w, &norm, &k.gamma, 3, 1) != NRM_OK)
        W[0] = dv[0] = (nrm_real)HUGE_VAL;
    for (n = 0; n < 4; n++) {
        wide y = 0;
        for (i = 0; i < 3; i++) y += (wide)k.x[n * 3 + i] * (wide)W[i];
        ALSO_OF("WN.2", apart((wide)k.y[n], y, 3 * u.y_size), identity());
    }
    for (i = 0; i < 3; i++)
        ALSO_OF("WN.8", apart((wide)k.dw[i], (wide)dv[i], u.dw_size), identity());
}

static void derive_reparametrization(void)
{
    nrm_rng rng = stream(72);
    unit_case k;
    int turn;
    for (turn = 0; turn < 100; turn++) {
        memset(&k, 0, sizeof k);
        k.N = 3 + nrm_rng_below(&rng, UNIT_ROWS - 2);
        k.in = 1 + nrm_rng_below(&rng, UNIT_IN);
        k.eps = turn % 2 ? NRM_EPS : (nrm_real)0.1;
        fill_real(k.x, k.N * k.in, turn % 3, 1, &rng); /* means of 0, 1 and 2 */
        fill_real(k.w, k.in, 0, 1, &rng);
        fill_real(k.dy, k.N, 0.2, 1, &rng);
        fill_real(&k.gamma, 1, 1.5, 0.5, &rng);
        fill_real(&k.beta, 1, -0.3, 1, &rng);
        unit_run(&k);
        derive_unit_case(&k);
        derive_unit_white(&rng);
    }
    derive_unit_uncentred();
}

#endif
