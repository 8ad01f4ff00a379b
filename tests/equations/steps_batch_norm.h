/* steps_batch_norm.h - the steps of docs/01_batch_norm.md, executed.

   Derivatives are those of the forward pass at a complex point: the value of any node of the graph
   gets an imaginary part, and what depends on it is looked at. The right sides are in `wide`, from
   the formulas of the page. Where an equation contains a sum that is zero, it is also evaluated
   where that sum is not: with a centre that is off the mean, or with any vector for x̂. */
#ifndef STEPS_BATCH_NORM_H
#define STEPS_BATCH_NORM_H

#include <complex.h>

#include "derive_tools.h"

enum { BN_MOST = 32 };

typedef double complex bn_number;

/* ---- one channel ----------------------------------------------------------------------------- */

typedef struct bn_set {
    size_t M;
    double x[BN_MOST], gamma, beta, eps, off; /* off: how far the centre is from the mean */
    double weight[BN_MOST], bend[BN_MOST];    /* L = ∑ (weight·y + ½·bend·y²) */
    wide size;                                /* of the data */
    wide mu, c[BN_MOST], v, r, xhat[BN_MOST], y[BN_MOST], dy[BN_MOST], g[BN_MOST];
} bn_set;

/* ∑ |a|, the scale of a sum. */
static wide bn_gross(const wide *a, size_t n)
{
    wide sum = 0;
    size_t i;
    for (i = 0; i < n; i++) sum += fabsl(a[i]);
    return sum;
}

static wide bn_root(wide eps, wide v)
{
    return sqrtl(v + eps);
}

/* BN.1 to BN.5, and the gradients of the loss by y and x̂. */
static void bn_fill_in(bn_set *s)
{
    size_t i;
    s->mu = 0;
    for (i = 0; i < s->M; i++) s->mu += (wide)s->x[i] / (wide)s->M;
    s->mu += (wide)s->off;
    s->size = fabsl(s->mu);
    for (i = 0; i < s->M; i++) {
        s->c[i] = (wide)s->x[i] - s->mu;
        s->size = worse(s->size, fabsl((wide)s->x[i]));
    }
    s->v = mean_of_product(s->c, s->c, s->M);
    s->r = powl(s->v + (wide)s->eps, -(wide)0.5);
    for (i = 0; i < s->M; i++) {
        s->xhat[i] = s->c[i] / bn_root((wide)s->eps, s->v);
        s->y[i] = (wide)s->gamma * s->xhat[i] + (wide)s->beta;
        s->dy[i] = (wide)s->weight[i] + (wide)s->bend[i] * s->y[i];
        s->g[i] = (wide)s->gamma * s->dy[i];
    }
}

/* Random numbers of a given scale. ε is tiny, a twentieth or two thirds beside scale². */
static void bn_draw(bn_set *s, size_t M, double scale, int kind, nrm_rng *rng)
{
    static const double shares[3] = {1e-5, 0.05, 0.7};
    size_t i;
    memset(s, 0, sizeof *s);
    s->M = M;
    s->eps = (double)(nrm_real)(shares[kind] * scale * scale);
    fill(s->x, M, 0.7 * scale, 0.3 * scale, rng);
    for (i = 0; i < M; i++) s->x[i] = (double)(nrm_real)(s->x[i] + scale * (i % 2 ? -0.8 : 0.8));
    fill(&s->gamma, 1, 1.6, 0.2, rng);
    fill(&s->beta, 1, -0.4, 0.3, rng);
    fill(s->weight, M, 0.3, 1, rng);
    fill(s->bend, M, 0.5, 1, rng);
    bn_fill_in(s);
}

/* ---- the graph at a complex point ------------------------------------------------------------ */

enum bn_node {
    BN_X,
    BN_MU,
    BN_C,
    BN_Q,
    BN_V,
    BN_TAU,
    BN_RHO,
    BN_R,
    BN_XHAT,
    BN_P,
    BN_Y,
    BN_GAMMA,
    BN_BETA
};

typedef struct bn_point {
    bn_number x[BN_MOST], mu, c[BN_MOST], q[BN_MOST], v, tau, rho, r, xhat[BN_MOST], p[BN_MOST],
        y[BN_MOST], gamma, beta, loss;
} bn_point;

#define BN_STEP 1e-40

/* i·h for the node that is moved, nothing for the others. */
static bn_number bn_nudge(int moved)
{
    const double parts[2] = {0, moved ? BN_STEP : 0};
    bn_number step;
    memcpy(&step, parts, sizeof step);
    return step;
}

static wide bn_slope(bn_number a)
{
    return (wide)(cimag(a) / BN_STEP);
}

/* GR.1 to GR.10 and the loss, with node number `at` of a kind moved. */
static void bn_run(bn_point *p, const bn_set *s, enum bn_node moved, size_t at)
{
    const double M = (double)s->M;
    size_t i;
#define BN_MOVE(kind, i) bn_nudge(moved == (kind) && (i) == at)
    memset(p, 0, sizeof *p);
    for (i = 0; i < s->M; i++) p->x[i] = s->x[i] + BN_MOVE(BN_X, i);
    for (i = 0; i < s->M; i++) p->mu += p->x[i];
    p->mu = p->mu / M + s->off + BN_MOVE(BN_MU, 0);
    for (i = 0; i < s->M; i++) p->c[i] = p->x[i] - p->mu + BN_MOVE(BN_C, i);
    for (i = 0; i < s->M; i++) p->q[i] = p->c[i] * p->c[i] + BN_MOVE(BN_Q, i);
    for (i = 0; i < s->M; i++) p->v += p->q[i];
    p->v = p->v / M + BN_MOVE(BN_V, 0);
    p->tau = p->v + s->eps + BN_MOVE(BN_TAU, 0);
    p->rho = csqrt(p->tau) + BN_MOVE(BN_RHO, 0);
    p->r = 1 / p->rho + BN_MOVE(BN_R, 0);
    p->gamma = s->gamma + BN_MOVE(BN_GAMMA, 0);
    p->beta = s->beta + BN_MOVE(BN_BETA, 0);
    for (i = 0; i < s->M; i++) {
        p->xhat[i] = p->c[i] * p->r + BN_MOVE(BN_XHAT, i);
        p->p[i] = p->gamma * p->xhat[i] + BN_MOVE(BN_P, i);
        p->y[i] = p->p[i] + p->beta + BN_MOVE(BN_Y, i);
        p->loss += s->weight[i] * p->y[i] + s->bend[i] / 2 * p->y[i] * p->y[i];
    }
#undef BN_MOVE
}

/* ∂L by a node. */
static wide bn_d(const bn_set *s, enum bn_node moved, size_t at)
{
    bn_point p;
    bn_run(&p, s, moved, at);
    return bn_slope(p.loss);
}

static void bn_d_all(wide *d, const bn_set *s, enum bn_node moved)
{
    size_t i;
    for (i = 0; i < s->M; i++) d[i] = bn_d(s, moved, i);
}

/* A number that the page states, with so many decimals. */
static wide bn_says(wide value, double stated, int decimals)
{
    return unless(fabsl(value - (wide)stated) <= (wide)0.5000001 * powl(10, -(wide)decimals));
}

/* A channel of the page: three values, the usual ε. */
static bn_set bn_channel(const double *x, size_t M)
{
    bn_set s;
    memset(&s, 0, sizeof s);
    s.M = M;
    memcpy(s.x, x, M * sizeof *x);
    s.gamma = 1;
    s.eps = 1e-5;
    bn_fill_in(&s);
    return s;
}

static const double bn_126[3] = {1, 2, 6};

/* ---- section 2: forward ---------------------------------------------------------------------- */

static void bn_steps_tensor(size_t N, size_t C, size_t S, nrm_rng *rng)
{
    nrm_real x[NUMBERS], y[NUMBERS];
    nrm_acc mean[8], rstd[8];
    size_t n, c, s;
    fill_real(x, N * C * S, 0.7, 1, rng);
    if (nrm_batchnorm_forward(y, mean, rstd, NULL, x, NULL, NULL, NRM_TRAIN, NRM_EPS, N, C, S) !=
        NRM_OK)
        mean[0] = (nrm_acc)HUGE_VAL;
    for (c = 0; c < C; c++) {
        wide sum = 0;
        for (n = 0; n < N; n++)
            for (s = 0; s < S; s++) sum += (wide)x[(n * C + c) * S + s];
        DERIVE("BN.1a", apart((wide)mean[c], sum / (wide)(N * S), 2), identity());
    }
}

static void bn_steps_undo(const bn_set *s, const bn_set *other)
{
    const wide gamma = bn_root((wide)s->eps, s->v), beta = s->mu;
    size_t i;
    for (i = 0; i < s->M; i++)
        DERIVE("BN.5a", apart(s->xhat[i] / s->r + s->mu, (wide)s->x[i], s->size), algebra());
    for (i = 0; i < s->M; i++)
        DERIVE("BN.5b",
               apart(gamma * other->xhat[i] + beta,
                     s->mu + other->r / s->r * ((wide)other->x[i] - other->mu),
                     s->size + gamma * other->r * other->size),
               algebra());
}

/* ---- section 3: properties ------------------------------------------------------------------- */

/* The common factor comes out of the sum wherever the deviations are measured from. */
static wide bn_factor_out(const bn_set *s)
{
    wide left = 0, right = 0;
    size_t i;
    for (i = 0; i < s->M; i++) left += s->xhat[i];
    for (i = 0; i < s->M; i++) right += (wide)s->x[i] - s->mu;
    return apart(left, s->r * right, (wide)s->M * s->r * s->size);
}

/* And the sum of differences is the difference of sums for any centre, too. */
static wide bn_split_sum(const bn_set *s)
{
    wide x[BN_MOST] = {0};
    size_t i;
    for (i = 0; i < s->M; i++) x[i] = (wide)s->x[i];
    return apart(sum_of(s->c, s->M), sum_of(x, s->M) - (wide)s->M * s->mu, bn_gross(x, s->M));
}

static void bn_steps_sums(const bn_set *s)
{
    const wide M = (wide)s->M;
    bn_set shifted = *s;
    wide x[BN_MOST] = {0}, gross;
    size_t i;
    for (i = 0; i < s->M; i++) x[i] = (wide)s->x[i];
    gross = bn_gross(x, s->M);
    DERIVE("BN.6b",
           worse(apart(sum_of(s->c, s->M), 0, gross), apart(sum_of(x, s->M), M * s->mu, gross)),
           algebra());
    shifted.off = 0.3 * (double)s->size;
    bn_fill_in(&shifted);
    DERIVE("BN.6a", worse(bn_split_sum(s), bn_split_sum(&shifted)), algebra());
    DERIVE("BN.6c", worse(bn_factor_out(s), bn_factor_out(&shifted)), algebra());
    DERIVE("BN.7a",
           relative(mean_of_product(s->xhat, s->xhat, s->M),
                    s->r * s->r * mean_of_product(s->c, s->c, s->M)),
           algebra());
    DERIVE("BN.7b", apart(s->v, 1 / (s->r * s->r) - (wide)s->eps, s->v + (wide)s->eps), algebra());
}

/* The same data stretched and shifted, by factors that lose no bit. */
static void bn_steps_stretched(const bn_set *s, double a, double b)
{
    bn_set other = *s;
    const wide eps_for_less = (wide)s->eps / ((wide)a * (wide)a);
    size_t i;
    for (i = 0; i < s->M; i++) other.x[i] = a * s->x[i] + b;
    bn_fill_in(&other);
    DERIVE("BN.7c", apart(other.mu, (wide)a * s->mu + (wide)b, other.size + (wide)a * s->size),
           algebra());
    DERIVE("BN.7d", relative(other.v, (wide)a * (wide)a * s->v), algebra());
    for (i = 0; i < s->M; i++) {
        const wide middle = (wide)a * s->c[i] / sqrtl((wide)a * (wide)a * s->v + (wide)s->eps);
        const wide right = s->c[i] / sqrtl(s->v + eps_for_less);
        DERIVE("BN.7e",
               worse(apart(other.xhat[i], middle, 1 + fabsl(middle)),
                     apart(middle, right, 1 + fabsl(right))),
               algebra());
    }
}

static void bn_steps_correlation(const bn_set *s, const bn_set *z)
{
    const size_t M = s->M;
    const wide left =
        mean_of_product(s->xhat, z->xhat, M) /
        sqrtl(mean_of_product(s->xhat, s->xhat, M) * mean_of_product(z->xhat, z->xhat, M));
    DERIVE("BN.7f", apart(left, mean_of_product(s->c, z->c, M) / sqrtl(s->v * z->v), 1), algebra());
}

/* ---- section 4, and "In the code": the line -------------------------------------------------- */

/* Any h, and what the mean has besides: where h is the mean rounded, t is too small to be seen. */
static void bn_steps_line(const bn_set *s, double part)
{
    const wide h = s->mu * (wide)part, t = s->mu - h, gamma = (wide)s->gamma;
    const wide size = 1 + s->r * s->size, mean = mean_of_product(s->dy, s->xhat, s->M);
    wide left = 0, right = 0, gross = 0;
    size_t i;
    for (i = 0; i < s->M; i++) {
        const wide d = (wide)s->x[i] - h;
        DERIVE("SUM.11a", apart(s->xhat[i], s->r * (d - t), size), algebra());
        DERIVE("SUM.11b",
               apart(gamma * s->xhat[i] + (wide)s->beta,
                     gamma * s->r * d + ((wide)s->beta - gamma * s->r * t),
                     fabsl(gamma) * size + fabsl((wide)s->beta)),
               algebra());
        DERIVE("SUM.13a", apart(-s->xhat[i] * mean, -s->r * mean * (d - t), size * fabsl(mean)),
               algebra());
        left += s->dy[i] * s->xhat[i];
        right += s->dy[i] * (d - t);
        gross += fabsl(s->dy[i]) * size;
    }
    DERIVE("SUM.12a", apart(left, s->r * right, gross), algebra());
}

/* ---- section 5: the graph of three examples -------------------------------------------------- */

/* The nodes against what the header makes of the same three values. */
static void bn_steps_graph_forward(const bn_set *s)
{
    nrm_real x[3], y[3], xhat[3], gamma = (nrm_real)s->gamma, beta = (nrm_real)s->beta;
    nrm_acc mean, rstd;
    wide c[3], q[3], p[3], mu, v, tau, rho, r, code;
    int rc;
    size_t i;
    to_real(x, s->x, 3);
    rc = nrm_batchnorm_forward(xhat, &mean, &rstd, NULL, x, NULL, NULL, NRM_TRAIN, (nrm_real)s->eps,
                               3, 1, 1);
    rc |= nrm_batchnorm_forward(y, &mean, &rstd, NULL, x, &gamma, &beta, NRM_TRAIN,
                                (nrm_real)s->eps, 3, 1, 1);
    code = rc == NRM_OK ? (wide)rstd : (wide)HUGE_VAL;
    mu = ((wide)s->x[0] + (wide)s->x[1] + (wide)s->x[2]) / 3;
    DERIVE("GR.1", apart(mu, (wide)mean, s->size), identity());
    for (i = 0; i < 3; i++) {
        c[i] = (wide)s->x[i] - mu;
        DERIVE("GR.2", apart(c[i], (wide)xhat[i] / code, s->size), identity());
        q[i] = c[i] * c[i];
        DERIVE("GR.3",
               apart(q[i], (wide)xhat[i] / code * ((wide)xhat[i] / code), s->size * s->size),
               identity());
    }
    v = (q[0] + q[1] + q[2]) / 3;
    DERIVE("GR.4", apart(v, 1 / (code * code) - (wide)(nrm_real)s->eps, 1 / (code * code)),
           identity());
    tau = v + (wide)s->eps;
    DERIVE("GR.5", relative(tau, 1 / (code * code)), identity());
    rho = sqrtl(tau);
    DERIVE("GR.6", relative(rho, 1 / code), identity());
    r = 1 / rho;
    DERIVE("GR.7", relative(r, code), identity());
    for (i = 0; i < 3; i++) {
        DERIVE("GR.8", apart(c[i] * r, (wide)xhat[i], 1), identity());
        p[i] = (wide)s->gamma * (c[i] * r);
        DERIVE("GR.9", apart(p[i], (wide)y[i] - (wide)s->beta, fabsl((wide)y[i]) + 1), identity());
        DERIVE("GR.10", apart(p[i] + (wide)s->beta, (wide)y[i], fabsl(p[i]) + 1), identity());
    }
}

/* A number that is used three times: b₁ = a², b₂ = sin a, b₃ = 3·a; L = b₁·b₂ + b₃² + e^b₂. */
static bn_number bn_fan(double a, int moved, bn_number *b)
{
    const bn_number at = a + bn_nudge(moved == 0);
    b[0] = at * at + bn_nudge(moved == 1);
    b[1] = csin(at) + bn_nudge(moved == 2);
    b[2] = 3 * at + bn_nudge(moved == 3);
    return b[0] * b[1] + b[2] * b[2] + cexp(b[1]);
}

static void bn_steps_rule(double a)
{
    bn_number uses[3], other[3];
    const wide da = bn_slope(bn_fan(a, 0, uses));
    wide terms[3];
    int k;
    for (k = 0; k < 3; k++) terms[k] = bn_slope(bn_fan(a, k + 1, other)) * bn_slope(uses[k]);
    DERIVE("GR.11", apart(da, sum_of(terms, 3), bn_gross(terms, 3)), complex_step());
}

/* Each ∂L/∂node against what the page makes of those after it. */
static void bn_steps_graph_backward(const bn_set *s)
{
    const wide gamma = (wide)s->gamma, rho = 1 / s->r;
    const wide dbeta = bn_d(s, BN_BETA, 0), dgamma = bn_d(s, BN_GAMMA, 0), dr = bn_d(s, BN_R, 0);
    const wide drho = bn_d(s, BN_RHO, 0), dtau = bn_d(s, BN_TAU, 0), dv = bn_d(s, BN_V, 0);
    const wide dmu = bn_d(s, BN_MU, 0);
    wide dy[3], dp[3], dxhat[3], dc[3], dq[3], dx[3], terms[3];
    size_t i;
    bn_d_all(dy, s, BN_Y);
    bn_d_all(dp, s, BN_P);
    bn_d_all(dxhat, s, BN_XHAT);
    bn_d_all(dc, s, BN_C);
    bn_d_all(dq, s, BN_Q);
    bn_d_all(dx, s, BN_X);
    DERIVE("GR.12", apart(dbeta, dy[0] + dy[1] + dy[2], bn_gross(dy, 3)), complex_step());
    for (i = 0; i < 3; i++) terms[i] = dp[i] * s->xhat[i];
    DERIVE("GR.14", apart(dgamma, sum_of(terms, 3), bn_gross(terms, 3)), complex_step());
    for (i = 0; i < 3; i++) terms[i] = s->c[i] * dxhat[i];
    DERIVE("GR.16", apart(dr, sum_of(terms, 3), bn_gross(terms, 3)), complex_step());
    DERIVE("GR.17", relative(drho, -dr / (rho * rho)), complex_step());
    DERIVE("GR.18", relative(dtau, drho / (2 * rho)), complex_step());
    DERIVE("GR.19", relative(dv, dtau), complex_step());
    DERIVE("GR.22", apart(dmu, -(dc[0] + dc[1] + dc[2]), bn_gross(dc, 3)), complex_step());
    for (i = 0; i < 3; i++) {
        DERIVE("GR.13", apart(dp[i], dy[i], bn_gross(dy, 3)), complex_step());
        DERIVE("GR.15", apart(dxhat[i], gamma * dp[i], bn_gross(dxhat, 3)), complex_step());
        DERIVE("GR.20", relative(dq[i], dv / 3), complex_step());
        DERIVE("GR.21",
               apart(dc[i], s->r * dxhat[i] + 2 * s->c[i] * dq[i],
                     fabsl(s->r * dxhat[i]) + fabsl(2 * s->c[i] * dq[i])),
               complex_step());
        DERIVE("GR.23", apart(dx[i], dc[i] + dmu / 3, bn_gross(dc, 3)), complex_step());
    }
}

static void bn_steps_graph_collapse(const bn_set *s, int centred)
{
    const wide dr = bn_d(s, BN_R, 0), dv = bn_d(s, BN_V, 0), dmu = bn_d(s, BN_MU, 0), r = s->r;
    wide dxhat[3], dc[3], dq[3], dx[3], terms[3], mean, along, most;
    size_t i;
    bn_d_all(dxhat, s, BN_XHAT);
    bn_d_all(dc, s, BN_C);
    bn_d_all(dq, s, BN_Q);
    bn_d_all(dx, s, BN_X);
    for (i = 0; i < 3; i++) terms[i] = dxhat[i] * s->xhat[i];
    mean = mean_of(dxhat, 3);
    along = mean_of(terms, 3);
    most = r * (bn_gross(dxhat, 3) + bn_gross(terms, 3) * (1 + bn_gross(s->xhat, 3)));
    DERIVE("GR.24", relative(dv, -r * r * r * dr / 2), complex_step());
    DERIVE("GR.25", apart(dv, -(wide)3 / 2 * r * r * along, r * r * bn_gross(terms, 3)),
           complex_step());
    for (i = 0; i < 3; i++) {
        DERIVE("GR.26", apart(2 * s->c[i] * dq[i], -r * s->xhat[i] * along, most), complex_step());
        DERIVE("GR.27", apart(dc[i], r * (dxhat[i] - s->xhat[i] * along), most), complex_step());
    }
    DERIVE("GR.28", apart(dmu, -3 * r * mean + r * along * sum_of(s->xhat, 3), most),
           complex_step());
    if (!centred) return;
    DERIVE("GR.29", apart(dmu, -3 * r * mean, most), complex_step());
    for (i = 0; i < 3; i++)
        DERIVE("GR.30", apart(dx[i], r * (dxhat[i] - mean - s->xhat[i] * along), most),
               complex_step());
}

/* ---- section 6: the closed form -------------------------------------------------------------- */

static void bn_steps_parameters(const bn_set *s)
{
    bn_point beta, gamma, xhat;
    size_t i, j;
    bn_run(&beta, s, BN_BETA, 0);
    bn_run(&gamma, s, BN_GAMMA, 0);
    for (i = 0; i < s->M; i++) {
        DERIVE("BN.12a", apart(bn_slope(beta.y[i]), 1, 1), complex_step());
        DERIVE("BN.13a", apart(bn_slope(gamma.y[i]), s->xhat[i], 1 + fabsl(s->xhat[i])),
               complex_step());
        bn_run(&xhat, s, BN_XHAT, i);
        for (j = 0; j < s->M; j++)
            DERIVE("BN.14a", apart(bn_slope(xhat.y[j]), i == j ? (wide)s->gamma : 0, 1),
                   complex_step());
    }
}

/* ∂/∂xᵢ of everything. `centred`: the centre is the mean, and not any point that moves along. */
static void bn_steps_roads(const bn_set *s, int centred)
{
    const wide M = (wide)s->M, r = s->r, all = sum_of(s->c, s->M);
    bn_point p, by_mu, by_v;
    wide terms[BN_MOST];
    size_t i, j;
    bn_run(&by_mu, s, BN_MU, 0);
    bn_run(&by_v, s, BN_V, 0);
    DERIVE("BN.16e", apart(bn_slope(by_mu.v), -2 / M * all, s->size), complex_step());
    if (centred) ALSO_OF("BN.16e", apart(bn_slope(by_mu.v), 0, s->size), complex_step());
    DERIVE("BN.17a", relative(bn_slope(by_v.r), -r * r * r / 2), complex_step());
    for (i = 0; i < s->M; i++) {
        wide ones = 0;
        bn_run(&p, s, BN_X, i);
        for (j = 0; j < s->M; j++) {
            const wide same = i == j ? 1 : 0;
            DERIVE("BN.15a", apart(bn_slope(p.x[j]), same, 1), complex_step());
            ones += same;
            terms[j] = 2 * s->c[j] * bn_slope(p.c[j]);
        }
        DERIVE("BN.15b", apart(bn_slope(p.mu), ones / M, 1), complex_step());
        DERIVE("BN.16a", apart(bn_slope(p.v), sum_of(terms, s->M) / M, s->size), complex_step());
        for (j = 0; j < s->M; j++) terms[j] = i == j ? s->c[j] : 0;
        DERIVE("BN.16c",
               apart(bn_slope(p.v), 2 / M * sum_of(terms, s->M) - 2 / M * (1 / M) * all, s->size),
               complex_step());
        DERIVE("BN.16d", apart(sum_of(terms, s->M), (wide)s->x[i] - s->mu, s->size), algebra());
        if (centred) {
            DERIVE("BN.17b", apart(bn_slope(p.r), -r * r * r / 2 * (2 / M) * s->c[i], r * r),
                   complex_step());
            ALSO_OF("BN.17b", apart(bn_slope(p.r), -r * r * r * s->c[i] / M, r * r),
                    complex_step());
        }
        for (j = 0; j < s->M; j++) {
            const wide dc = bn_slope(p.c[j]), dr = bn_slope(p.r), same = i == j ? 1 : 0;
            DERIVE("BN.16b", apart(dc, same - 1 / M, 1), complex_step());
            DERIVE("BN.18a", apart(bn_slope(p.xhat[j]), r * dc + s->c[j] * dr, r), complex_step());
            DERIVE("BN.18b", apart(r * dc, r * (same - 1 / M), r), complex_step());
            if (centred)
                DERIVE("BN.18c", apart(s->c[j] * dr, -r * s->xhat[i] * s->xhat[j] / M, r),
                       complex_step());
        }
    }
}

static void bn_steps_product(const bn_set *s)
{
    const wide M = (wide)s->M, r = s->r, mean = mean_of(s->g, s->M);
    const wide along = mean_of_product(s->g, s->xhat, s->M), gamma = (wide)s->gamma;
    const wide size = r * (bn_gross(s->g, s->M) + 1);
    wide g[BN_MOST], dx[BN_MOST], terms[BN_MOST], picked[BN_MOST], moved[BN_MOST];
    bn_point p;
    size_t i, j;
    bn_d_all(g, s, BN_XHAT);
    bn_d_all(dx, s, BN_X);
    for (i = 0; i < s->M; i++) {
        bn_run(&p, s, BN_X, i);
        for (j = 0; j < s->M; j++) moved[j] = g[j] * bn_slope(p.xhat[j]);
        DERIVE("BN.19a", apart(dx[i], sum_of(moved, s->M), size), complex_step());
        for (j = 0; j < s->M; j++) {
            const wide same = i == j ? 1 : 0;
            terms[j] = s->g[j] * (same - 1 / M - s->xhat[i] * s->xhat[j] / M);
            picked[j] = s->g[j] * same;
        }
        DERIVE("BN.19b", apart(dx[i], r * sum_of(terms, s->M), size), complex_step());
        DERIVE("BN.19c",
               apart(dx[i],
                     r * (sum_of(picked, s->M) - sum_of(s->g, s->M) / M -
                          s->xhat[i] / M * dot_of(s->g, s->xhat, s->M)),
                     size),
               complex_step());
        DERIVE("BN.19d", apart(dx[i], r * (s->g[i] - mean - s->xhat[i] * along), size),
               complex_step());
    }
    DERIVE("BN.19e", apart(mean_of(g, s->M), gamma * mean_of(s->dy, s->M), size / r),
           complex_step());
    DERIVE("BN.19f",
           apart(mean_of_product(g, s->xhat, s->M), gamma * mean_of_product(s->dy, s->xhat, s->M),
                 size / r),
           complex_step());
    DERIVE("BN.19g", apart(mean_of(s->dy, s->M), bn_d(s, BN_BETA, 0) / M, size / r),
           complex_step());
    DERIVE("BN.19h",
           apart(mean_of_product(s->dy, s->xhat, s->M), bn_d(s, BN_GAMMA, 0) / M, size / r),
           complex_step());
}

/* The paper's lines are right wherever the centre is. */
static void bn_steps_paper(const bn_set *s)
{
    const wide M = (wide)s->M, tau = s->v + (wide)s->eps, size = s->r * (bn_gross(s->g, s->M) + 1);
    const wide dv = bn_d(s, BN_V, 0), dmu = bn_d(s, BN_MU, 0);
    wide terms[BN_MOST] = {0};
    size_t i;
    for (i = 0; i < s->M; i++) terms[i] = s->g[i] * s->c[i] * -(wide)0.5 * powl(tau, -(wide)1.5);
    DERIVE("BN.19i", apart(dv, sum_of(terms, s->M), bn_gross(terms, s->M)), complex_step());
    DERIVE("BN.19j",
           apart(dmu, -sum_of(s->g, s->M) / sqrtl(tau) - dv * 2 / M * sum_of(s->c, s->M),
                 size + fabsl(dv) * s->size),
           complex_step());
    for (i = 0; i < s->M; i++)
        DERIVE("BN.19k",
               apart(bn_d(s, BN_X, i), s->g[i] / sqrtl(tau) + dv * 2 / M * s->c[i] + dmu / M,
                     size + fabsl(dv) * s->size),
               complex_step());
}

/* x̂ from statistics that do not move. */
static void bn_steps_frozen(const bn_set *s, double m, double u)
{
    const wide r = 1 / sqrtl((wide)u + (wide)s->eps);
    size_t i, j;
    for (i = 0; i < s->M; i++)
        for (j = 0; j < s->M; j++) {
            const bn_number xhat = (s->x[j] + bn_nudge(i == j) - m) / csqrt(u + s->eps);
            DERIVE("BN.20a", apart(bn_slope(xhat), i == j ? r : 0, r), complex_step());
        }
}

/* ---- section 7: the projection picture ------------------------------------------------------- */

typedef struct bn_matrix {
    size_t M;
    wide at[BN_MOST][BN_MOST];
} bn_matrix;

/* a·I + b·u·vᵀ */
static void bn_make(bn_matrix *A, size_t M, wide a, wide b, const wide *u, const wide *v)
{
    size_t i, j;
    A->M = M;
    for (i = 0; i < M; i++)
        for (j = 0; j < M; j++) A->at[i][j] = (i == j ? a : 0) + b * u[i] * v[j];
}

/* A += b·u·vᵀ */
static void bn_add(bn_matrix *A, wide b, const wide *u, const wide *v)
{
    size_t i, j;
    for (i = 0; i < A->M; i++)
        for (j = 0; j < A->M; j++) A->at[i][j] += b * u[i] * v[j];
}

static void bn_times(bn_matrix *out, const bn_matrix *A, const bn_matrix *B)
{
    size_t i, j, k;
    out->M = A->M;
    for (i = 0; i < A->M; i++)
        for (j = 0; j < A->M; j++) {
            wide sum = 0;
            for (k = 0; k < A->M; k++) sum += A->at[i][k] * B->at[k][j];
            out->at[i][j] = sum;
        }
}

static void bn_apply(wide *out, const bn_matrix *A, const wide *a)
{
    size_t i;
    for (i = 0; i < A->M; i++) out[i] = dot_of(A->at[i], a, A->M);
}

static wide bn_trace(const bn_matrix *A)
{
    wide sum = 0;
    size_t i;
    for (i = 0; i < A->M; i++) sum += A->at[i][i];
    return sum;
}

static wide bn_matrices_apart(const bn_matrix *A, const bn_matrix *B)
{
    wide worst = 0;
    size_t i, j;
    for (i = 0; i < A->M; i++)
        for (j = 0; j < A->M; j++) worst = worse(worst, apart(A->at[i][j], B->at[i][j], 1));
    return worst;
}

static wide bn_vectors_apart(const wide *a, const wide *b, size_t M, wide scale)
{
    wide worst = 0;
    size_t i;
    for (i = 0; i < M; i++) worst = worse(worst, apart(a[i], b[i], scale));
    return worst;
}

static void bn_steps_centring(const bn_set *s, const bn_matrix *P, const wide *one)
{
    const wide M = (wide)s->M;
    bn_matrix square, middle;
    wide x[BN_MOST], Px[BN_MOST], P1[BN_MOST], none[BN_MOST] = {0}, right[BN_MOST];
    bn_point p;
    size_t i, j;
    for (i = 0; i < s->M; i++) {
        x[i] = (wide)s->x[i];
        bn_run(&p, s, BN_X, i); /* what the graph makes of it: ∂cⱼ/∂xᵢ */
        for (j = 0; j < s->M; j++)
            DERIVE("HP.1", apart(P->at[j][i], bn_slope(p.c[j]), 1), complex_step());
        for (j = 0; j < s->M; j++) DERIVE("HP.4", apart(P->at[i][j], P->at[j][i], 1), algebra());
    }
    bn_apply(Px, P, x);
    bn_apply(P1, P, one);
    DERIVE("HP.2", bn_vectors_apart(Px, s->c, s->M, s->size), algebra());
    DERIVE("HP.3", bn_vectors_apart(P1, none, s->M, 1), algebra());
    bn_times(&square, P, P);
    bn_make(&middle, s->M, 1, -2 / M, one, one);
    bn_add(&middle, dot_of(one, one, s->M) / (M * M), one, one);
    DERIVE("HP.5", worse(bn_matrices_apart(&square, &middle), bn_matrices_apart(&middle, P)),
           algebra());
    DERIVE("HP.6", apart(bn_trace(P), M - 1, M), algebra());
    DERIVE("HP.7", relative(s->v, dot_of(Px, Px, s->M) / M), algebra());
    for (i = 0; i < s->M; i++)
        right[i] = sqrtl(M) * Px[i] / sqrtl(dot_of(Px, Px, s->M) + M * (wide)s->eps);
    DERIVE("HP.8", bn_vectors_apart(right, s->xhat, s->M, 1), algebra());
    DERIVE("HP.9", relative(dot_of(s->xhat, s->xhat, s->M), M * (1 - (wide)s->eps * s->r * s->r)),
           algebra());
}

/* What a projection leaves of a vector, made by hand: less its mean, less its part along c. */
static void bn_gram_schmidt(wide *left, const wide *a, const wide *c, size_t M)
{
    wide mean = mean_of(a, M), part;
    size_t i;
    for (i = 0; i < M; i++) left[i] = a[i] - mean;
    part = dot_of(left, c, M) / dot_of(c, c, M);
    for (i = 0; i < M; i++) left[i] -= part * c[i];
}

static void bn_steps_projection(const bn_set *s)
{
    const size_t M = s->M;
    const wide leak = (wide)s->eps * s->r * s->r, length = sqrtl(dot_of(s->xhat, s->xhat, M));
    bn_matrix P, Q, E, PQ, QP, QQ, right;
    wide one[BN_MOST] = {0}, e[BN_MOST] = {0}, out[BN_MOST] = {0}, should[BN_MOST] = {0};
    wide dx[BN_MOST] = {0}, across[BN_MOST] = {0};
    bn_point p;
    size_t i, j;
    for (i = 0; i < M; i++) one[i] = 1;
    for (i = 0; i < M; i++) e[i] = s->xhat[i] / length;
    bn_make(&P, M, 1, -1 / (wide)M, one, one);
    bn_steps_centring(s, &P, one);
    bn_make(&Q, M, 1, -1 / (wide)M, s->xhat, s->xhat);
    bn_apply(out, &Q, s->dy);
    for (i = 0; i < M; i++) should[i] = s->dy[i] - s->xhat[i] * mean_of_product(s->dy, s->xhat, M);
    DERIVE("HP.10", bn_vectors_apart(out, should, M, 1 + bn_gross(s->dy, M)), algebra());
    bn_times(&PQ, &P, &Q);
    bn_times(&QP, &Q, &P);
    bn_make(&right, M, 1, -1 / (wide)M, one, one);
    bn_add(&right, -1 / (wide)M, s->xhat, s->xhat);
    DERIVE("HP.11", worse(bn_matrices_apart(&PQ, &right), bn_matrices_apart(&right, &QP)),
           algebra());
    for (i = 0; i < M; i++) {
        wide sum = 0, along = 0;
        bn_run(&p, s, BN_X, i);
        for (j = 0; j < M; j++)
            DERIVE("HP.12", apart(bn_slope(p.xhat[j]), s->r * PQ.at[j][i], s->r), complex_step());
        for (j = 0; j < M; j++) { /* of x̂ᵢ by all xⱼ */
            bn_run(&p, s, BN_X, j);
            sum += bn_slope(p.xhat[i]);
            along += bn_slope(p.xhat[i]) * s->c[j];
        }
        DERIVE("HP.14", apart(sum, 0, s->r * (wide)M), complex_step());
        DERIVE("HP.15", apart(along, leak * s->xhat[i], (wide)M), complex_step());
    }
    bn_d_all(dx, s, BN_X);
    bn_apply(out, &PQ, s->dy);
    for (i = 0; i < M; i++) out[i] *= (wide)s->gamma * s->r;
    DERIVE("HP.13", bn_vectors_apart(dx, out, M, s->r * (1 + bn_gross(s->g, M))), complex_step());
    bn_apply(out, &Q, s->xhat);
    for (i = 0; i < M; i++) should[i] = leak * s->xhat[i];
    DERIVE("HP.16", bn_vectors_apart(out, should, M, 1), algebra());
    bn_times(&QQ, &Q, &Q);
    right = Q;
    bn_add(&right, -leak / (wide)M, s->xhat, s->xhat);
    DERIVE("HP.17", bn_matrices_apart(&QQ, &right), algebra());
    bn_make(&E, M, 1, -1 / (wide)M, one, one);
    bn_add(&E, -1, e, e);
    bn_apply(out, &E, s->dy);
    bn_gram_schmidt(across, s->dy, s->c, M);
    DERIVE("HP.18", bn_vectors_apart(out, across, M, 1 + bn_gross(s->dy, M)), algebra());
    right = E;
    bn_add(&right, leak, e, e);
    DERIVE("HP.19", bn_matrices_apart(&PQ, &right), algebra());
    DERIVE("HP.20", apart(bn_trace(&PQ), (wide)M - 2 + leak, (wide)M), algebra());
    bn_apply(out, &PQ, across); /* the eigenvalue 1 */
    ALSO_OF("HP.20", bn_vectors_apart(out, across, M, 1 + bn_gross(s->dy, M)), algebra());
    bn_apply(out, &PQ, one); /* the eigenvalue 0 */
    for (i = 0; i < M; i++) should[i] = 0;
    ALSO_OF("HP.20", bn_vectors_apart(out, should, M, 1), algebra());
    bn_apply(out, &PQ, s->xhat); /* and the one between */
    for (i = 0; i < M; i++) should[i] = leak * s->xhat[i];
    ALSO_OF("HP.20", bn_vectors_apart(out, should, M, 1), algebra());
}

/* BN.21a and BN.22a: as sums that are split, for any vector in the place of x̂. */
static void bn_steps_split(const bn_set *s, const wide *a)
{
    const size_t M = s->M;
    const wide f = (wide)s->gamma * s->r, along = mean_of_product(s->dy, a, M),
               mean = mean_of(s->dy, M);
    const wide size = fabsl(f) * (1 + bn_gross(s->dy, M)) * (1 + dot_of(a, a, M));
    wide sum = 0, with = 0;
    size_t i;
    for (i = 0; i < M; i++) {
        const wide dx = f * (s->dy[i] - mean - a[i] * along);
        sum += dx;
        with += dx * a[i];
    }
    DERIVE("BN.21a",
           apart(sum, f * (sum_of(s->dy, M) - (wide)M * mean - along * sum_of(a, M)), size),
           algebra());
    DERIVE("BN.22a",
           apart(with, f * (dot_of(s->dy, a, M) - mean * sum_of(a, M) - along * dot_of(a, a, M)),
                 size),
           algebra());
}

/* And for x̂ itself, with the gradient of the loss. */
static void bn_steps_checks(const bn_set *s)
{
    const size_t M = s->M;
    const wide f = (wide)s->gamma * s->r, mean = mean_of(s->dy, M);
    const wide along = mean_of_product(s->dy, s->xhat, M);
    const wide size = fabsl(f) * (1 + bn_gross(s->dy, M)) * (wide)M;
    wide dx[BN_MOST], a[BN_MOST] = {0};
    size_t i;
    for (i = 0; i < M; i++) a[i] = s->xhat[i] + (wide)0.25 * (wide)i;
    bn_steps_split(s, a);
    bn_d_all(dx, s, BN_X);
    ALSO_OF("BN.21a",
            apart(sum_of(dx, M),
                  f * (sum_of(s->dy, M) - (wide)M * mean - along * sum_of(s->xhat, M)), size),
            complex_step());
    ALSO_OF("BN.22a",
            apart(dot_of(dx, s->xhat, M),
                  f * (dot_of(s->dy, s->xhat, M) - mean * sum_of(s->xhat, M) -
                       along * dot_of(s->xhat, s->xhat, M)),
                  size),
            complex_step());
}

static void bn_steps_pair(const bn_set *s)
{
    const wide half = (s->dy[0] - s->dy[1]) / 2, size = 1 + bn_gross(s->dy, 2);
    DERIVE("BN.23a", apart(s->xhat[1], -s->xhat[0], 1), algebra());
    DERIVE("BN.23b", apart(s->xhat[0] * s->xhat[0], 1 - (wide)s->eps * s->r * s->r, 1), algebra());
    DERIVE("BN.23c", apart(s->dy[0] - mean_of(s->dy, 2), half, size), algebra());
    DERIVE("BN.23d", apart(mean_of_product(s->dy, s->xhat, 2), s->xhat[0] * half, size), algebra());
    DERIVE("BN.23e",
           apart(bn_d(s, BN_X, 0), (wide)s->gamma * s->r * half * (1 - s->xhat[0] * s->xhat[0]),
                 (wide)s->gamma * s->r * size),
           complex_step());
}

/* ---- sections 8 and 9: positions, running statistics ----------------------------------------- */

/* Mean square distance from mu of the n values at a, `stride` numbers from each other, from their
   distances from p: three terms, of which one vanishes where p is their mean. */
static wide bn_two_centres(const wide *a, size_t n, size_t stride, wide p, wide mu)
{
    wide squares = 0, sum = 0, left = 0;
    size_t i;
    for (i = 0; i < n; i++) {
        const wide x = a[i * stride];
        left += (x - mu) * (x - mu) / (wide)n;
        squares += (x - p) * (x - p) / (wide)n;
        sum += (x - p) / (wide)n;
    }
    return apart(left, squares + 2 * (p - mu) * sum + (p - mu) * (p - mu), left + squares);
}

static void bn_steps_positions(size_t N, size_t S, nrm_rng *rng)
{
    double drawn[NUMBERS];
    wide x[NUMBERS] = {0}, mu, v = 0, within = 0, between = 0;
    size_t n, s;
    fill(drawn, N * S, 0.7, 1, rng);
    for (n = 0; n < N * S; n++) x[n] = (wide)drawn[n] + (wide)(n % S);
    mu = mean_of(x, N * S);
    for (n = 0; n < N * S; n++) v += (x[n] - mu) * (x[n] - mu) / (wide)(N * S);
    for (s = 0; s < S; s++) {
        wide mean = 0, var = 0, around = 0;
        for (n = 0; n < N; n++) mean += x[n * S + s] / (wide)N;
        for (n = 0; n < N; n++) var += (x[n * S + s] - mean) * (x[n * S + s] - mean) / (wide)N;
        for (n = 0; n < N; n++) around += (x[n * S + s] - mu) * (x[n * S + s] - mu) / (wide)N;
        DERIVE("BN.2a",
               worse(bn_two_centres(x + s, N, S, mean, mu),
                     bn_two_centres(x + s, N, S, mean + (wide)0.5, mu)),
               algebra());
        DERIVE("BN.2b", apart(around, var + (mean - mu) * (mean - mu), around), algebra());
        within += var;
        between += (mean - mu) * (mean - mu);
    }
    DERIVE("BN.2c", relative(v, within / (wide)S + between / (wide)S), algebra());
}

/* BN.8 step by step against its closed form, and BN.10 against the plain mean. */
static void bn_steps_running(double w, size_t batches, nrm_rng *rng)
{
    double drawn[NUMBERS], start;
    wide m, all = 0, weights, plain = 0, left = 1;
    size_t j;
    fill(&start, 1, 3, 1, rng);
    fill(drawn, batches, 0.7, 1, rng);
    m = (wide)start;
    for (j = 0; j < batches; j++) m = (1 - (wide)w) * m + (wide)w * (wide)drawn[j];
    for (j = 0; j < batches; j++) left *= 1 - (wide)w;
    weights = left;
    for (j = 1; j <= batches; j++) {
        const wide weight = (wide)w * powl(1 - (wide)w, (wide)(batches - j));
        all += weight * (wide)drawn[j - 1];
        weights += weight;
    }
    DERIVE("BN.8a", apart(m, left * (wide)start + all, 4), algebra());
    DERIVE("BN.8b", apart(weights, 1, 1), algebra());
    for (j = 1; j <= batches; j++) {
        const wide t = (wide)j, before = plain; /* the sum of the j − 1 first */
        plain += (wide)drawn[j - 1];
        if (j < 2) continue;
        DERIVE("BN.10a",
               apart((1 - 1 / t) * (1 / (t - 1)) * before + (wide)drawn[j - 1] / t, plain / t, 4),
               algebra());
    }
}

/* All batches of M draws from a population of five values, each as likely as any other. */
static void bn_steps_unbiased(size_t M)
{
    static const wide values[5] = {-1, 0, 2, 5, (wide)5.5};
    wide expected = 0, variance = 0, mean = mean_of(values, 5), x[4], count = powl(5, (wide)M);
    size_t batch, rest, i;
    for (i = 0; i < 5; i++) variance += (values[i] - mean) * (values[i] - mean) / 5;
    for (batch = 0; (wide)batch < count; batch++) {
        wide mu, v = 0;
        for (i = 0, rest = batch; i < M; i++, rest /= 5) x[i] = values[rest % 5];
        mu = mean_of(x, M);
        for (i = 0; i < M; i++) v += (x[i] - mu) * (x[i] - mu) / (wide)M;
        expected += v / count;
    }
    DERIVE("BN.9a", relative(expected, ((wide)M - 1) / (wide)M * variance), algebra());
}

static void bn_steps_spreads(const double *sigma, size_t n)
{
    wide a[BN_MOST] = {0}, mean, of_squares, spread = 0;
    size_t i;
    for (i = 0; i < n; i++) a[i] = fabsl((wide)sigma[i]);
    mean = mean_of(a, n);
    of_squares = mean_of_product(a, a, n);
    for (i = 0; i < n; i++) spread += (a[i] - mean) * (a[i] - mean) / (wide)n;
    DERIVE("BN.9b", apart(mean * mean, of_squares - spread, of_squares), algebra());
}

static void bn_steps_in_use(const bn_set *s, double m, double u)
{
    const nrm_real start = (nrm_real)m, var = (nrm_real)u, gamma = (nrm_real)s->gamma;
    const nrm_real beta = (nrm_real)s->beta;
    nrm_real x[BN_MOST], y[BN_MOST], mean_now = start, var_now = var;
    nrm_running running;
    const wide a = (wide)gamma / sqrtl((wide)var + (wide)(nrm_real)s->eps);
    size_t i;
    memset(&running, 0, sizeof running);
    running.mean = &mean_now;
    running.var = &var_now;
    to_real(x, s->x, s->M);
    if (nrm_batchnorm_forward(y, NULL, NULL, &running, x, &gamma, &beta, NRM_INFER,
                              (nrm_real)s->eps, s->M, 1, 1) != NRM_OK)
        y[0] = (nrm_real)HUGE_VAL;
    for (i = 0; i < s->M; i++)
        DERIVE("BN.11a",
               apart((wide)y[i], a * (wide)x[i] + ((wide)beta - a * (wide)start),
                     1 + fabsl(a) * (s->size + fabsl((wide)start))),
               identity());
}

/* ---- section 10: new coordinates for the weights --------------------------------------------- */

enum { BN_ROWS = 9, BN_WIDE = 4 };

typedef struct bn_unit { /* a linear unit before batch norm */
    size_t N, D;
    double x[BN_ROWS][BN_WIDE], w[BN_WIDE], gamma, beta, eps, weight[BN_ROWS], bend[BN_ROWS];
} bn_unit;

typedef struct bn_unit_point {
    bn_number z[BN_ROWS], mean, var, r, what[BN_WIDE], y[BN_ROWS], loss;
} bn_unit_point;

enum bn_moved { BN_W, BN_Z };

/* Through the layer: z, its statistics, y, L. The normalized weight is looked at on the way. */
static void bn_unit_run(bn_unit_point *p, const bn_unit *k, enum bn_moved moved, size_t at)
{
    const double N = (double)k->N;
    bn_number w[BN_WIDE];
    size_t i, j;
    memset(p, 0, sizeof *p);
    for (i = 0; i < k->D; i++) w[i] = k->w[i] + bn_nudge(moved == BN_W && i == at);
    for (j = 0; j < k->N; j++) {
        for (i = 0; i < k->D; i++) p->z[j] += k->x[j][i] * w[i];
        p->z[j] += bn_nudge(moved == BN_Z && j == at);
        p->mean += p->z[j] / N;
    }
    for (j = 0; j < k->N; j++) p->var += (p->z[j] - p->mean) * (p->z[j] - p->mean) / N;
    p->r = 1 / csqrt(p->var + k->eps);
    for (i = 0; i < k->D; i++) p->what[i] = k->gamma * w[i] / csqrt(p->var + k->eps);
    for (j = 0; j < k->N; j++) {
        p->y[j] = k->gamma * ((p->z[j] - p->mean) * p->r) + k->beta;
        p->loss += k->weight[j] * p->y[j] + k->bend[j] / 2 * p->y[j] * p->y[j];
    }
}

/* ∂L by the normalized weight number `at`, in the linear layer of WN.12. */
static wide bn_unit_by_what(const bn_unit *k, const wide *m, const wide *what, size_t at)
{
    bn_number loss = 0;
    size_t i, j;
    for (j = 0; j < k->N; j++) {
        bn_number y = k->beta;
        for (i = 0; i < k->D; i++)
            y += ((double)((wide)k->x[j][i] - m[i])) * ((double)what[i] + bn_nudge(i == at));
        loss += k->weight[j] * y + k->bend[j] / 2 * y * y;
    }
    return bn_slope(loss);
}

typedef struct bn_metric { /* what section 10 computes from the unit: m, S, S·w and so on */
    wide m[BN_WIDE], S[BN_WIDE][BN_WIDE], w[BN_WIDE], Sw[BN_WIDE], a[BN_WIDE], what[BN_WIDE];
    wide var, r, gamma, eps, z[BN_ROWS], y[BN_ROWS], dy[BN_ROWS], d[BN_ROWS][BN_WIDE], size;
} bn_metric;

static void bn_unit_metric(bn_metric *t, const bn_unit *k)
{
    size_t i, j, l;
    memset(t, 0, sizeof *t);
    t->gamma = (wide)k->gamma;
    t->eps = (wide)k->eps;
    for (i = 0; i < k->D; i++) t->w[i] = (wide)k->w[i];
    for (i = 0; i < k->D; i++)
        for (j = 0; j < k->N; j++) t->m[i] += (wide)k->x[j][i] / (wide)k->N;
    for (j = 0; j < k->N; j++)
        for (i = 0; i < k->D; i++) {
            t->z[j] += (wide)k->x[j][i] * t->w[i];
            t->d[j][i] = (wide)k->x[j][i] - t->m[i];
        }
    for (i = 0; i < k->D; i++)
        for (l = 0; l < k->D; l++) {
            for (j = 0; j < k->N; j++) t->S[i][l] += t->d[j][i] * t->d[j][l] / (wide)k->N;
            t->Sw[i] += t->S[i][l] * t->w[l];
        }
    t->var = dot_of(t->w, t->Sw, k->D);
    t->r = 1 / sqrtl(t->var + t->eps);
    for (i = 0; i < k->D; i++) t->what[i] = t->gamma * t->r * t->w[i];
    for (j = 0; j < k->N; j++) {
        t->y[j] = dot_of(t->d[j], t->what, k->D) + (wide)k->beta;
        t->dy[j] = (wide)k->weight[j] + (wide)k->bend[j] * t->y[j];
        for (i = 0; i < k->D; i++) t->a[i] += t->dy[j] * t->d[j][i];
        t->size = worse(t->size, bn_gross(t->d[j], k->D) * (1 + bn_gross(t->dy, k->N)));
    }
}

static void bn_steps_metric(const bn_unit *k, const bn_metric *t)
{
    const wide mean = mean_of(t->z, k->N), scale = 1 + bn_gross(t->z, k->N);
    wide left = 0, right = 0, var = 0;
    size_t i, j, l;
    DERIVE("WN.11a", apart(mean, dot_of(t->m, t->w, k->D), scale), algebra());
    for (j = 0; j < k->N; j++) {
        DERIVE("WN.11b", apart(t->z[j] - mean, dot_of(t->d[j], t->w, k->D), scale), algebra());
        left += dot_of(t->d[j], t->w, k->D) * dot_of(t->d[j], t->w, k->D) / (wide)k->N;
        var += (t->z[j] - mean) * (t->z[j] - mean) / (wide)k->N;
        for (i = 0; i < k->D; i++)
            for (l = 0; l < k->D; l++)
                right += t->w[i] * t->d[j][i] * t->d[j][l] * t->w[l] / (wide)k->N;
    }
    DERIVE("WN.11c", worse(relative(var, left), relative(left, right)), algebra());
    for (j = 0; j < k->N; j++)
        DERIVE("WN.12a",
               apart(t->gamma * (t->z[j] - mean) / sqrtl(var + t->eps) + (wide)k->beta,
                     t->gamma * dot_of(t->d[j], t->w, k->D) /
                             sqrtl(dot_of(t->w, t->Sw, k->D) + t->eps) +
                         (wide)k->beta,
                     1 + fabsl(t->y[j])),
               algebra());
}

/* ∂L/∂w through the layer. */
static wide bn_unit_gradient(wide *dw, const bn_unit *k)
{
    bn_unit_point p;
    size_t i;
    for (i = 0; i < k->D; i++) {
        bn_unit_run(&p, k, BN_W, i);
        dw[i] = bn_slope(p.loss);
    }
    return bn_gross(dw, k->D);
}

static void bn_steps_weights(const bn_unit *k)
{
    bn_metric t;
    bn_unit_point p;
    wide dw[BN_WIDE], dz[BN_ROWS], r3, aw, size, with = 0;
    size_t i, j, l;
    bn_unit_metric(&t, k);
    bn_steps_metric(k, &t);
    bn_unit_gradient(dw, k);
    r3 = t.r * t.r * t.r;
    aw = dot_of(t.a, t.w, k->D);
    size = t.gamma * t.r * (1 + t.size) * (wide)k->N;
    for (j = 0; j < k->N; j++) {
        bn_unit_run(&p, k, BN_Z, j);
        dz[j] = bn_slope(p.loss);
    }
    for (i = 0; i < k->D; i++) {
        const wide scale = bn_gross(t.S[i], k->D) * bn_gross(t.w, k->D);
        wide through = 0, layer = 0;
        bn_unit_run(&p, k, BN_W, i);
        DERIVE("WN.13a", apart(bn_slope(p.var), 2 * t.Sw[i], scale), complex_step());
        DERIVE("WN.13b", apart(bn_slope(p.r), -r3 * t.Sw[i], r3 * scale), complex_step());
        for (l = 0; l < k->D; l++) {
            const wide by = bn_slope(p.what[l]);
            DERIVE("WN.13c",
                   apart(by, t.gamma * ((i == l ? t.r : 0) - r3 * t.w[l] * t.Sw[i]),
                         t.gamma * t.r * (1 + t.r * bn_gross(t.w, k->D) * (1 + sqrtl(t.S[i][i])))),
                   complex_step());
            through += t.a[l] * by;
        }
        DERIVE("WN.13d", apart(bn_unit_by_what(k, t.m, t.what, i), t.a[i], 1 + t.size),
               complex_step());
        DERIVE("WN.13e",
               worse(apart(dw[i], through, size),
                     apart(through, t.gamma * t.r * t.a[i] - t.gamma * r3 * aw * t.Sw[i], size)),
               complex_step());
        for (j = 0; j < k->N; j++) layer += (wide)k->x[j][i] * dz[j];
        DERIVE("WN.13f", apart(dw[i], layer, size), complex_step());
        with += dw[i] * t.w[i];
    }
    DERIVE("WN.14a",
           apart(with, t.gamma * t.r * aw * (1 - t.r * t.r * t.var), size * bn_gross(t.w, k->D)),
           complex_step());
}

/* Weights that are longer by a power of two, with ε as it is, against ε for the shorter ones. */
static void bn_steps_longer(const bn_unit *k, double longer)
{
    bn_unit stretched = *k, smaller = *k;
    wide left[BN_WIDE], right[BN_WIDE], size;
    size_t i;
    for (i = 0; i < k->D; i++) stretched.w[i] *= longer;
    smaller.eps /= longer * longer;
    bn_unit_gradient(left, &stretched);
    size = 1 + bn_unit_gradient(right, &smaller);
    for (i = 0; i < k->D; i++)
        DERIVE("WN.14b", apart(left[i], right[i] / (wide)longer, size / (wide)longer),
               complex_step());
}

static void bn_draw_unit(bn_unit *k, size_t N, size_t D, double eps, nrm_rng *rng)
{
    size_t i, j;
    memset(k, 0, sizeof *k);
    k->N = N;
    k->D = D;
    k->eps = eps;
    for (j = 0; j < N; j++)
        for (i = 0; i < D; i++) fill(&k->x[j][i], 1, 0.5 + (double)i, 1 + 0.5 * (double)i, rng);
    for (j = 0; j < N; j++)
        for (i = 1; i < D; i++) k->x[j][i] += 0.5 * k->x[j][0]; /* correlated */
    fill(k->w, D, 0.3, 1, rng);
    fill(&k->gamma, 1, 1.6, 0.2, rng);
    fill(&k->beta, 1, -0.4, 0.3, rng);
    fill(k->weight, N, 0.3, 1, rng);
    fill(k->bend, N, 0.5, 1, rng);
}

/* ---- the numbers of the page ----------------------------------------------------------------- */

/* dx of a layer that divides by M − 1, with `over` values in the mean of dy·x̂. */
static void bn_one_less(wide *dx, const wide *x, const wide *dy, size_t M, wide over)
{
    wide mu = mean_of(x, M), v = 0, xhat[128], along;
    size_t i;
    for (i = 0; i < M; i++) v += (x[i] - mu) * (x[i] - mu) / ((wide)M - 1);
    for (i = 0; i < M; i++) xhat[i] = (x[i] - mu) / sqrtl(v + (wide)1e-5);
    along = dot_of(dy, xhat, M) / over;
    for (i = 0; i < M; i++)
        dx[i] = (dy[i] - mean_of(dy, M) - xhat[i] * along) / sqrtl(v + (wide)1e-5);
}

/* How wrong the gradient is that takes M for M − 1, beside its largest entry. */
static wide bn_wrong_by(const wide *wrong, const wide *right, size_t M)
{
    wide gap = 0, most = 0;
    size_t i;
    for (i = 0; i < M; i++) gap = worse(gap, fabsl(wrong[i] - right[i]));
    for (i = 0; i < M; i++) most = worse(most, fabsl(right[i]));
    return gap / most;
}

static void bn_numbers_divisor(nrm_rng *rng)
{
    static const wide x[4] = {1, 2, 6, 7}, dy[4] = {1, 0, 0, 0};
    static const double right[4] = {0.1372, -0.1633, -0.0065, 0.0327};
    static const double wrong[4] = {0.1666, -0.1437, -0.0261, 0.0033};
    static const double of_norm[4] = {0.1584, -0.1886, -0.0075, 0.0377}; /* which divides by M */
    nrm_real nx[4], ndy[4], y[4], dx[4];
    nrm_acc mean, rstd;
    wide is[128], would[128], large_x[128], large_dy[128];
    double drawn[128];
    int trial, unseen = 0;
    size_t i;
    bn_one_less(is, x, dy, 4, 3);
    bn_one_less(would, x, dy, 4, 4);
    for (i = 0; i < 4; i++) ALSO_OF("BN.19d", bn_says(is[i], right[i], 4), replay());
    for (i = 0; i < 4; i++) ALSO_OF("BN.19d", bn_says(would[i], wrong[i], 4), replay());
    for (i = 0; i < 4; i++) nx[i] = (nrm_real)x[i];
    for (i = 0; i < 4; i++) ndy[i] = (nrm_real)dy[i];
    (void)nrm_batchnorm_forward(y, &mean, &rstd, NULL, nx, NULL, NULL, NRM_TRAIN, NRM_EPS, 4, 1, 1);
    (void)nrm_batchnorm_backward(dx, NULL, NULL, ndy, nx, &mean, &rstd, NULL, NRM_TRAIN, 4, 1, 1);
    for (i = 0; i < 4; i++) ALSO_OF("BN.19d", bn_says((wide)dx[i], of_norm[i], 4), replay());
    ALSO_OF("BN.19d", bn_says(bn_wrong_by(would, is, 4), 0.18, 2), replay());
    for (trial = 0; trial < 21; trial++) {
        fill(drawn, 128, 0.7, 1, rng);
        for (i = 0; i < 128; i++) large_x[i] = (wide)drawn[i];
        fill(drawn, 128, 0.2, 1, rng);
        for (i = 0; i < 128; i++) large_dy[i] = (wide)drawn[i];
        bn_one_less(is, large_x, large_dy, 128, 127);
        bn_one_less(would, large_x, large_dy, 128, 128);
        unseen += bn_wrong_by(would, is, 128) < 1e-3L;
    }
    ALSO_OF("BN.19d", unless(unseen >= 18), replay());
    ALSO_OF("BN.17a", bn_says(1 / ((wide)1e-3 + (wide)1e-6), 999.0, 1), replay());
    ALSO_OF("BN.17a", bn_says(1 / sqrtl((wide)1e-6 + (wide)1e-5), 301.5, 1), replay());
}

static void bn_numbers_forward(void)
{
    static const double even[3] = {2, 4, 6}, odd[3] = {1, 3, 5}, far[3] = {12, 14, 22};
    static const double undone[3] = {0.3543, 3, 5.6457}, three[3] = {-0.926, -0.463, 1.389};
    static const double five[3] = {-0.92582, -0.46291, 1.38873};
    bn_set s = bn_channel(bn_126, 3), e = bn_channel(even, 3), o = bn_channel(odd, 3);
    bn_set f = bn_channel(far, 3);
    size_t i;
    for (i = 0; i < 3; i++) {
        ALSO_OF("BN.5b", bn_says(e.xhat[i] / s.r + s.mu, undone[i], 4), replay());
        ALSO_OF("BN.7f", bn_says(s.xhat[i], three[i], 3), replay());
        ALSO_OF("HP.20", bn_says(s.xhat[i], five[i], 5), replay());
        ALSO_OF("HP.20", bn_says(f.xhat[i], five[i], 5), replay());
    }
    ALSO_OF("BN.7f", bn_says(mean_of_product(s.c, o.c, 3) / sqrtl(s.v * o.v), 0.944911, 6),
            replay());
    ALSO_OF("BN.7f",
            bn_says(mean_of_product(s.xhat, o.xhat, 3) / sqrtl(mean_of_product(s.xhat, s.xhat, 3) *
                                                               mean_of_product(o.xhat, o.xhat, 3)),
                    0.944911, 6),
            replay());
    ALSO_OF("BN.7b", bn_says(1 / (1 + (wide)1e-5), 0.99999, 5), replay());
    ALSO_OF("BN.7b", bn_says((wide)1e-5 / (2 * (wide)1e-5), 0.5, 9), replay());
}

/* The table of the term that vanishes: taken `times` times, with deviations from a centre. */
static void bn_numbers_vanishing(wide times, wide centre, const double *stated, double stated_sum)
{
    static const double dy[3] = {-2, 1, 3};
    bn_set s = bn_channel(bn_126, 3);
    wide dxhat[3], dv = 0, sum = 0, term, mean, dx;
    size_t i;
    for (i = 0; i < 3; i++) dxhat[i] = 2 * (wide)dy[i];
    for (i = 0; i < 3; i++) dv -= s.r * s.r * s.r / 2 * dxhat[i] * s.c[i];
    for (i = 0, term = 0; i < 3; i++) term -= dv * 2 / 3 * ((wide)bn_126[i] - (wide)centre);
    mean = mean_of(dxhat, 3);
    for (i = 0; i < 3; i++) {
        dx = s.r * dxhat[i] + dv * 2 / 3 * s.c[i] + (-3 * s.r * mean + times * term) / 3;
        ALSO_OF("BN.16e", bn_says(dx, stated[i], 6), replay());
        sum += dx;
    }
    ALSO_OF("BN.16e", bn_says(sum, stated_sum, 6), replay());
}

/* The gradient of the worked example, and what the misprint makes of it. */
static void bn_numbers_misprint(void)
{
    static const wide t[3] = {0, -1, 1};
    bn_set s = bn_channel(bn_126, 3);
    wide g[3], dx[3], frozen[3], along, mean;
    size_t i;
    for (i = 0; i < 3; i++) g[i] = 2 * (2 * s.xhat[i] - 1 - t[i]);
    mean = mean_of(g, 3);
    along = mean_of_product(g, s.xhat, 3);
    for (i = 0; i < 3; i++) dx[i] = s.r * (g[i] - mean - s.xhat[i] * along);
    for (i = 0; i < 3; i++) {
        wide by_mu = 0, by_v = 0; /* the sums as printed: of dx, where g belongs */
        size_t j;
        for (j = 0; j < 3; j++) by_mu -= dx[j] * s.r;
        for (j = 0; j < 3; j++) by_v -= dx[j] * s.c[j] * s.r * s.r * s.r / 2;
        frozen[i] = s.r * g[i] + by_v * 2 / 3 * s.c[i] + by_mu / 3;
        ALSO_OF("BN.20a", apart(frozen[i], s.r * g[i], 1) < (wide)1e-5 ? 0 : (wide)HUGE_VAL,
                replay());
        frozen[i] = s.r * g[i];
    }
    ALSO_OF("BN.20a", bn_says(dx[1], 0.661298, 6), replay());
    ALSO_OF("BN.20a", bn_says(frozen[1], -0.857141, 6), replay());
    ALSO_OF("BN.20a", bn_says(bn_wrong_by(frozen, dx, 3), 3.19, 2), replay());
}

static void bn_numbers_images(void)
{
    static const wide pattern[4] = {-6, 4, -4, 6};
    static const double stated[4] = {-1.177, 0.784, -0.784, 1.177};
    const wide eps = (wide)1e-5;
    size_t i;
    for (i = 0; i < 4; i++)
        ALSO_OF("BN.2c", bn_says(pattern[i] / sqrtl(26 + eps), stated[i], 3), replay());
    ALSO_OF("BN.2c", bn_says(1 / sqrtl(1 + eps), 1, 3), replay());
    ALSO_OF("BN.2c", bn_says((wide)98 / 97, 1.0103, 4), replay());
}

/* The mean of the standard deviation of n normal numbers, divided by n − 1, in units of σ. */
static wide bn_c4(wide n)
{
    return sqrtl(2 / (n - 1)) * tgammal(n / 2) / tgammal((n - 1) / 2);
}

static void bn_numbers_in_use(void)
{
    wide second = 0, fourth = 0;
    int k;
    ALSO_OF("BN.8a", bn_says(powl((wide)0.9, 50), 0.0052, 4), replay());
    ALSO_OF("BN.8a", bn_says(powl((wide)0.999, 1000), 0.3677, 4), replay());
    ALSO_OF("BN.9a", bn_says(bn_c4(4), 0.9213, 4), replay());
    ALSO_OF("BN.9a", bn_says(bn_c4(32), 0.9920, 4), replay());
    for (k = 0; k < 1000; k++) { /* scales uniform between 0 and 1 */
        const wide gamma = ((wide)k + (wide)0.5) / 1000;
        second += gamma * gamma / 1000;
        fourth += gamma * gamma * gamma * gamma / 1000;
    }
    ALSO_OF("BN.7f", bn_says(3 * fourth / (second * second), 5.4, 4), replay());
    ALSO_OF("WN.12a", bn_says(1 / sqrtl(5), 0.447214, 6), replay());
    ALSO_OF("WN.12a", bn_says(3 / sqrtl(5), 1.341641, 6), replay());
    ALSO_OF("WN.12a", bn_says((1 - 2) / sqrtl(5), -0.447214, 6), replay());
}

/* Two units with the covariance C: divided by the roots of its diagonal they stay correlated, and
   by the root R of the whole matrix they do not. R = (C + √det·I)/√(trace + 2·√det). */
static void bn_numbers_whitening(wide a, wide b, wide d)
{
    const wide root = sqrtl(a * d - b * b), by = sqrtl(a + d + 2 * root);
    const wide p = (a + root) / by, q = b / by, t = (d + root) / by, det = p * t - q * q;
    const wide inverse[2][2] = {{t / det, -q / det}, {-q / det, p / det}},
               C[2][2] = {{a, b}, {b, d}};
    int i, j, k, l;
    for (i = 0; i < 2; i++)
        for (j = 0; j < 2; j++) {
            wide sum = 0;
            for (k = 0; k < 2; k++)
                for (l = 0; l < 2; l++) sum += inverse[i][k] * C[k][l] * inverse[l][j];
            ALSO_OF("WN.12a", apart(sum, i == j ? 1 : 0, 1), algebra());
        }
    ALSO_OF("WN.12a", unless(fabsl(b / sqrtl(a * d)) > (wide)0.1), replay());
}

static void bn_numbers(nrm_rng *rng)
{
    static const double true_dx[3] = {-0.881736, 1.102164, -0.220428};
    static const double wrong_dx[3] = {-0.088178, 1.895721, 0.573130};
    bn_numbers_divisor(rng);
    bn_numbers_forward();
    bn_numbers_vanishing(0, 3, true_dx, 0);
    bn_numbers_vanishing(1, 3, true_dx, 0);
    bn_numbers_vanishing(1000, 3, true_dx, 0);
    bn_numbers_vanishing(1, 2, wrong_dx, 2.380673);
    bn_numbers_misprint();
    bn_numbers_images();
    bn_numbers_in_use();
    bn_numbers_whitening(2, 3, 7);
}

/* ---- all ------------------------------------------------------------------------------------- */

static void bn_steps_channel(const bn_set *s, const bn_set *other)
{
    bn_set shifted = *s;
    shifted.off = 0.3 * (double)s->size;
    bn_fill_in(&shifted);
    bn_steps_undo(s, other);
    bn_steps_sums(s);
    bn_steps_stretched(s, 8, -3 * (double)s->size);
    bn_steps_stretched(s, 0.25, 2 * (double)s->size);
    bn_steps_correlation(s, other);
    bn_steps_line(s, 0.875);
    bn_steps_parameters(s);
    bn_steps_roads(s, 1);
    bn_steps_roads(&shifted, 0);
    bn_steps_product(s);
    bn_steps_paper(s);
    bn_steps_paper(&shifted);
    bn_steps_frozen(s, 0.4 * (double)s->size, (double)(s->size * s->size) / 3);
    bn_steps_projection(s);
    bn_steps_checks(s);
    bn_steps_in_use(s, 0.4 * (double)s->size, (double)(s->size * s->size) / 3);
    if (s->M == 2) bn_steps_pair(s);
    if (s->M != 3) return;
    bn_steps_graph_forward(s);
    bn_steps_graph_backward(s);
    bn_steps_graph_backward(&shifted);
    bn_steps_graph_collapse(s, 1);
    bn_steps_graph_collapse(&shifted, 0);
}

static void steps_batch_norm(void)
{
    static const size_t counts[6] = {2, 3, 3, 4, 7, 32};
    static const double scales[3] = {1, 1000, 0.001};
    nrm_rng rng = stream(202);
    bn_set s, other;
    bn_unit unit;
    size_t k;
    int kind;
    for (k = 0; k < LENGTH(counts); k++)
        for (kind = 0; kind < 3; kind++) {
            bn_draw(&s, counts[k], scales[(k + (size_t)kind) % 3], kind, &rng);
            bn_draw(&other, counts[k], 3 * scales[(k + (size_t)kind) % 3], kind, &rng);
            bn_steps_channel(&s, &other);
        }
    bn_steps_tensor(5, 3, 1, &rng);
    bn_steps_tensor(3, 2, 7, &rng);
    for (k = 0; k < 5; k++) bn_steps_rule(-1 + 0.7 * (double)k);
    bn_steps_positions(2, 3, &rng);
    bn_steps_positions(7, 5, &rng);
    bn_steps_running(0.1, 50, &rng);
    bn_steps_running(0.01, 200, &rng);
    for (k = 2; k <= 4; k++) bn_steps_unbiased(k);
    for (k = 2; k <= 7; k++) bn_steps_spreads(s.x, k);
    for (k = 0; k < 4; k++) {
        bn_draw_unit(&unit, 5 + k, 1 + k, k % 2 ? 1e-5 : 0.5, &rng);
        bn_steps_weights(&unit);
        bn_steps_longer(&unit, 4);
    }
    bn_numbers(&rng);
}
#endif
