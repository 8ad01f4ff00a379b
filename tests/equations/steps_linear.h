/* steps_linear.h - the steps of docs/06_network.md, executed, and those of docs/07_numerics.md
   about elementary functions and random numbers. */
#ifndef STEPS_LINEAR_H
#define STEPS_LINEAR_H

#include "derive_tools.h"

/* ---- the linear layer: LIN.2a to LIN.5b ------------------------------------------------------ */

enum { LS_MOST = 64 };

typedef struct ls_linear {
    size_t N, in, out;
    double x[LS_MOST], W[LS_MOST], b[LS_MOST], dy[LS_MOST];
    nrm_real dx[LS_MOST], dW[LS_MOST], db[LS_MOST];
    size_t n, j; /* the output that is looked at */
} ls_linear;

static wide ls_delta(size_t i, size_t j)
{
    return i == j ? 1 : 0;
}

static wide ls_output(void *context) /* y[n][j] */
{
    const ls_linear *k = (const ls_linear *)context;
    wide sum = (wide)k->b[k->j];
    size_t i;
    for (i = 0; i < k->in; i++) sum += (wide)k->x[k->n * k->in + i] * (wide)k->W[i * k->out + k->j];
    return sum;
}

static void ls_linear_make(ls_linear *k, size_t N, size_t in, size_t out, nrm_rng *rng)
{
    nrm_real x[LS_MOST], W[LS_MOST], dy[LS_MOST];
    memset(k, 0, sizeof *k);
    k->N = N;
    k->in = in;
    k->out = out;
    fill(k->x, N * in, 0.3, 1, rng);
    fill(k->W, in * out, -0.2, 1, rng);
    fill(k->b, out, 0.5, 1, rng);
    fill(k->dy, N * out, 0.1, 1, rng);
    to_real(x, k->x, N * in);
    to_real(W, k->W, in * out);
    to_real(dy, k->dy, N * out);
    (void)nrm_linear_backward(k->dx, k->dW, k->db, dy, x, W, N, in, out);
}

/* The three derivatives of one output y[m][j], by differences. */
static void ls_partials(ls_linear *k)
{
    wide by_x = 0, by_W = 0, by_b = 0;
    size_t n, i, j;
    for (k->n = 0; k->n < k->N; k->n++)
        for (k->j = 0; k->j < k->out; k->j++) {
            for (n = 0; n < k->N; n++)
                for (i = 0; i < k->in; i++)
                    by_x = worse(by_x, apart(slope(ls_output, k, k->x + n * k->in + i, 0.125),
                                             ls_delta(k->n, n) * (wide)k->W[i * k->out + k->j], 1));
            for (i = 0; i < k->in; i++)
                for (j = 0; j < k->out; j++)
                    by_W = worse(by_W, apart(slope(ls_output, k, k->W + i * k->out + j, 0.125),
                                             (wide)k->x[k->n * k->in + i] * ls_delta(j, k->j), 1));
            for (j = 0; j < k->out; j++)
                by_b =
                    worse(by_b, apart(slope(ls_output, k, k->b + j, 0.125), ls_delta(j, k->j), 1));
        }
    DERIVE("LIN.2b", by_x, acc_difference());
    DERIVE("LIN.3a", by_W, acc_difference());
    DERIVE("LIN.4a", by_b, acc_difference());
}

/* The chain rule in full, against the header. */
static void ls_chain(ls_linear *k)
{
    wide chain = 0, delta = 0, weights = 0;
    size_t n, m, i, j, l;
    for (n = 0; n < k->N; n++)
        for (i = 0; i < k->in; i++) {
            wide by_slope = 0, by_delta = 0, size = 0;
            for (m = 0; m < k->N; m++)
                for (j = 0; j < k->out; j++) {
                    const wide dy = (wide)k->dy[m * k->out + j];
                    k->n = m;
                    k->j = j;
                    by_slope += dy * slope(ls_output, k, k->x + n * k->in + i, 0.125);
                    by_delta += dy * ls_delta(m, n) * (wide)k->W[i * k->out + j];
                    size += fabsl(dy * (wide)k->W[i * k->out + j]);
                }
            chain = worse(chain, apart((wide)k->dx[n * k->in + i], by_slope, size));
            delta = worse(delta, apart((wide)k->dx[n * k->in + i], by_delta, size));
        }
    DERIVE("LIN.2a", chain, difference());
    DERIVE("LIN.2c", delta, identity());
    for (i = 0; i < k->in; i++)
        for (j = 0; j < k->out; j++) {
            wide sum = 0, size = 0;
            for (n = 0; n < k->N; n++)
                for (l = 0; l < k->out; l++) {
                    const wide term = (wide)k->dy[n * k->out + l] * (wide)k->x[n * k->in + i];
                    sum += term * ls_delta(j, l);
                    size += fabsl(term);
                }
            weights = worse(weights, apart((wide)k->dW[i * k->out + j], sum, size));
        }
    DERIVE("LIN.3b", weights, identity());
}

typedef struct ls_matrix { /* [rows][cols] */
    size_t rows, cols;
    wide at[LS_MOST];
} ls_matrix;

static ls_matrix ls_from(const double *a, size_t rows, size_t cols)
{
    ls_matrix m;
    size_t i;
    memset(&m, 0, sizeof m);
    m.rows = rows;
    m.cols = cols;
    for (i = 0; i < rows * cols; i++) m.at[i] = (wide)a[i];
    return m;
}

static ls_matrix ls_transposed(const ls_matrix *a)
{
    ls_matrix t = *a;
    size_t i, j;
    t.rows = a->cols;
    t.cols = a->rows;
    for (i = 0; i < t.rows; i++)
        for (j = 0; j < t.cols; j++) t.at[i * t.cols + j] = a->at[j * a->cols + i];
    return t;
}

/* How far `got` is from the matrix product a·b. */
static wide ls_product_residual(const nrm_real *got, const ls_matrix *a, const ls_matrix *b)
{
    wide worst = unless(a->cols == b->rows);
    size_t i, j, k;
    for (i = 0; i < a->rows; i++)
        for (j = 0; j < b->cols; j++) {
            wide sum = 0, size = 0;
            for (k = 0; k < a->cols; k++) {
                sum += a->at[i * a->cols + k] * b->at[k * b->cols + j];
                size += fabsl(a->at[i * a->cols + k] * b->at[k * b->cols + j]);
            }
            worst = worse(worst, apart((wide)got[i * b->cols + j], sum, size));
        }
    return worst;
}

static void ls_matrices(const ls_linear *k)
{
    const ls_matrix x = ls_from(k->x, k->N, k->in), W = ls_from(k->W, k->in, k->out);
    const ls_matrix dy = ls_from(k->dy, k->N, k->out);
    const ls_matrix Wt = ls_transposed(&W), xt = ls_transposed(&x);
    double ones[LS_MOST];
    ls_matrix row;
    size_t n;
    for (n = 0; n < k->N; n++) ones[n] = 1;
    row = ls_from(ones, 1, k->N);
    DERIVE("LIN.4b", ls_product_residual(k->dx, &dy, &Wt), identity());
    DERIVE("LIN.4c", ls_product_residual(k->dW, &xt, &dy), identity());
    DERIVE("LIN.4d", ls_product_residual(k->db, &row, &dy), identity());
}

/* A sum of K products in float, and its bound. */
/* Returns which part of its bound the error is. */
static wide ls_order(size_t K, nrm_rng *rng)
{
    const wide u = (wide)FLT_EPSILON;
    volatile float sum = 0;
    wide exact = 0, size = 0, first;
    size_t k;
    for (k = 0; k < K; k++) {
        const float a = (float)nrm_rng_normal(rng), b = (float)nrm_rng_normal(rng);
        const volatile float product = a * b;
        const volatile float before = sum;
        sum = before + product;
        first = ((wide)sum - ((wide)before + (wide)product)) / u;
        DERIVE("LIN.5a", /* one addition: off by no more than u/2 of its result */
               unless(fabsl(first) <= fabsl((wide)sum) / 2 &&
                      fabsl((wide)product - (wide)a * (wide)b) <= u / 2 * fabsl((wide)product)),
               algebra());
        exact += (wide)a * (wide)b;
        size += fabsl((wide)a * (wide)b);
    }
    DERIVE("LIN.5b", unless(fabsl((wide)sum - exact) <= u / 2 * (wide)K * size * 1.0001L),
           algebra());
    return fabsl((wide)sum - exact) / (u / 2 * (wide)K * size);
}

/* The page's sum of three numbers in float, in two orders. */
static void ls_order_numbers(void)
{
    const volatile float large = 1e8f, one = 1;
    volatile float left = large + one, right = -large + large;
    left = left - large;
    right = right + one;
    ALSO_OF("LIN.5a", unless(left == 0 && right == 1), algebra());
}

/* N = 2, in = 3, out = 2: the numbers of the page. */
static void ls_linear_numbers(void)
{
    static const nrm_real x[] = {1, 2, 3, 4, 5, 6}, W[] = {1, -1, 0, 2, 3, 1}, b[] = {10, 20};
    static const nrm_real dy[] = {1, 0, 2, -1};
    static const nrm_real y_page[] = {20, 26, 32, 32}, dx_page[] = {1, 0, 3, 3, -2, 5};
    static const nrm_real dW_page[] = {9, -4, 12, -5, 15, -6}, db_page[] = {3, -1};
    nrm_real y[4], dx[6], dW[6] = {0}, db[2] = {0};
    (void)nrm_linear_forward(y, x, W, b, 2, 3, 2);
    (void)nrm_linear_backward(dx, dW, db, dy, x, W, 2, 3, 2);
    ALSO_OF("LIN.4b", unless(memcmp(y, y_page, sizeof y) == 0), identity());
    ALSO_OF("LIN.4b", unless(memcmp(dx, dx_page, sizeof dx) == 0), identity());
    ALSO_OF("LIN.4c", unless(memcmp(dW, dW_page, sizeof dW) == 0), identity());
    ALSO_OF("LIN.4d", unless(memcmp(db, db_page, sizeof db) == 0), identity());
}

static void ls_layer(void)
{
    static const size_t shape[][3] = {{1, 1, 1}, {2, 3, 5}, {3, 7, 4}, {4, 2, 7}, {7, 3, 2}};
    nrm_rng rng = stream(70);
    wide nearest = 0;
    ls_linear k;
    size_t i;
    for (i = 0; i < LENGTH(shape); i++) {
        ls_linear_make(&k, shape[i][0], shape[i][1], shape[i][2], &rng);
        ls_partials(&k);
        ls_chain(&k);
        ls_matrices(&k);
    }
    for (i = 1; i < 400; i += 1 + i / 2) (void)ls_order(i, &rng);
    for (i = 0; i < 300; i++) nearest = worse(nearest, ls_order(1, &rng));
    ALSO_OF("LIN.5b", unless(nearest > 0.8L),
            algebra()); /* the bound is no larger than it must be */
    ls_linear_numbers();
    ls_order_numbers();
}

/* ---- exponential: EXP.1a to EXP.5a ----------------------------------------------------------- */

#define LS_LN2 0.693147180559945309417232121458176568L

static wide ls_exp_rest(wide t) /* ∑ tⁿ⁻¹/n! from n = 14 on */
{
    wide term = 1 / (wide)87178291200.0, sum = 0; /* 1/14! */
    int n;
    for (n = 1; n <= 13; n++) term *= t;
    for (n = 15; n < 40; n++) {
        sum += term;
        term *= t / (wide)n;
    }
    return sum;
}

static void ls_exp_at(wide x)
{
    const wide k = ceill(x / LS_LN2 - 0.5L), t = x - k * LS_LN2, tau = 1e-4L;
    const wide H = 0.693145751953125L, T = LS_LN2 - H;
    wide term = 1, sum = 0;
    int n;
    DERIVE("EXP.1a", relative(expl(x), ldexpl(expl(t), (int)k)), algebra());
    DERIVE("EXP.1b", unless(k - x / LS_LN2 >= -0.5L - 1e-16L && k - x / LS_LN2 < 0.5L + 1e-16L),
           algebra());
    ALSO(unless(fabsl(t) <= LS_LN2 / 2 * (1 + 1e-15L)), algebra());
    DERIVE("EXP.2b", apart((x - k * H) - k * T, t, 1), algebra());
    DERIVE("EXP.2a", fabsl((expl(t + tau) / expl(t) - 1 - tau) / (tau * tau / 2) - 1),
           make_witness('O', 0.02));
    for (n = 1; n <= 20; n++) {
        term *= t / (wide)n;
        sum += term;
    }
    DERIVE("EXP.3a", apart(expm1l(t), sum, fabsl(t)), algebra());
    DERIVE("EXP.3b",
           apart(t + t * t / 2 + t * t * t / 6 + t * t * t * t / 24,
                 t * (1 + t / 2 * (1 + t / 3 * (1 + t / 4))), fabsl(t)),
           algebra());
    DERIVE("EXP.3c", unless(fabsl(ls_exp_rest(fabsl(t))) < 2e-17L), algebra());
    DERIVE("EXP.5a",
           apart(ldexpl(1 + expm1l(t), (int)k) - 1,
                 ldexpl(expm1l(t), (int)k) + (ldexpl(1, (int)k) - 1), 1),
           algebra());
}

/* The head of ln2 times any k is exact; one number for ln2 costs 3 digits; e^x − 1 loses half. */
static void ls_exp_numbers(void)
{
    const double head = 0.693145751953125, x = -1e-10;
    const volatile double product = -1000 * 0.6931471805599453, e = exp(x), naive = e - 1;
    nrm_acc m[16] = {0};
    int k;
    for (k = 0; k <= 1022; k++)
        ALSO_OF("EXP.2b", unless((wide)(double)((double)k * head) == (wide)k * (wide)head),
                algebra());
    ALSO_OF("EXP.2b", unless(head * 65536 == floor(head * 65536)), algebra()); /* 16 bits */
    if (LDBL_MANT_DIG > DBL_MANT_DIG) {
        /* −1000·ln2 from one rounded number */
        const wide off = fabsl((wide)product + 1000 * LS_LN2);
        ALSO_OF("EXP.2a", unless(off > 6.8e-14L && off < 6.9e-14L), algebra());
    }
    m[0] = (nrm_acc)x;
    nrmi_expm1(m);
    ALSO_OF("EXP.5a", unless(fabs(naive / expm1(x) - 1) > 8e-8), algebra());
    if (!acc_in_float()) ALSO(unless(fabs((double)m[0] / expm1(x) - 1) < 1e-15), algebra());
    ALSO_OF("EXP.3c", unless(ls_exp_rest(LS_LN2 / 2) > 1.1e-17L), algebra()); /* 1.2e-17 */
}

/* ---- logarithm: LOG.1a to LOG.2d ------------------------------------------------------------- */

static void ls_log_at(wide x)
{
    int e;
    wide m = 2 * frexpl(x, &e), s, rest = 0, power;
    int n;
    e--;
    if (m > sqrtl(2)) {
        m /= 2;
        e++;
    }
    s = (m - 1) / (m + 1);
    DERIVE("LOG.1a", apart(logl(x), (wide)e * LS_LN2 + logl(m), 1 + fabsl((wide)e)), algebra());
    DERIVE("LOG.1b", relative((1 + s) / (1 - s), m), algebra());
    DERIVE("LOG.1c", unless(fabsl(s) <= (sqrtl(2) - 1) / (sqrtl(2) + 1) * (1 + 1e-15L)), algebra());
    ALSO(relative((sqrtl(2) - 1) / (sqrtl(2) + 1), 3 - 2 * sqrtl(2)), algebra());
    power = powl(fabsl(s), 22);
    for (n = 23; n < 60; n += 2) {
        rest += power / (wide)n;
        power *= s * s;
    }
    DERIVE("LOG.2d", unless(rest < 1e-18L), algebra());
}

/* The first omitted terms of the two series and of their difference. */
static void ls_log_series(wide s)
{
    const wide s2 = s * s, s3 = s2 * s, s4 = s3 * s, s5 = s4 * s, s7 = s5 * s2;
    const wide up = s - s2 / 2 + s3 / 3 - s4 / 4, down = -s - s2 / 2 - s3 / 3 - s4 / 4;
    const witness next = make_witness('O', 0.02);
    DERIVE("LOG.2a", fabsl((log1pl(s) - up) / (s5 / 5) - 1), next);
    DERIVE("LOG.2b", fabsl((log1pl(-s) - down) / (-s5 / 5) - 1), next);
    DERIVE("LOG.2c", fabsl((log1pl(s) - log1pl(-s) - 2 * (s + s3 / 3 + s5 / 5)) / (2 * s7 / 7) - 1),
           next);
}

static void ls_exp_log(void)
{
    nrm_rng rng = stream(71);
    int i;
    for (i = 0; i < 300; i++) {
        ls_exp_at((wide)uniform_between(&rng, -700, 0));
        ls_exp_at((wide)uniform_between(&rng, -1, 0));
        ls_log_at((wide)pow(10, uniform_between(&rng, -30, 30)));
        ls_log_at((wide)uniform_between(&rng, 0.5, 2));
        ls_log_series((wide)uniform_between(&rng, 0.005, 0.02));
    }
    ls_exp_numbers();
}

/* ---- random numbers: RNG.4a to RNG.6d -------------------------------------------------------- */

/* All numbers below 2¹² but the first few: how often is each remainder met? */
static void ls_remainders(size_t n)
{
    enum { ALL = 4096 };
    static size_t count[ALL];
    const size_t few = ALL % n;
    size_t u, j, bad = 0;
    memset(count, 0, sizeof count);
    for (u = few; u < ALL; u++) count[u % n]++;
    for (j = 0; j < n; j++) bad += count[j] != ALL / n;
    DERIVE("RNG.4a", unless(bad == 0), replay());
}

/* Points in the disc: how many have w up to t, and how many lie outside of it to begin with. */
static void ls_disc(void)
{
    enum { POINTS = 40000 };
    static const double t[] = {0.1, 0.25, 0.5, 0.9}, far_out[] = {0.5, 1, 4, 9};
    const double pi = 3.14159265358979324;
    nrm_rng rng = stream(72);
    size_t within[4] = {0}, beyond[4] = {0}, i, k, trials = 0;
    for (i = 0; i < POINTS; i++) {
        double a, b, w;
        do {
            a = uniform_between(&rng, -1, 1);
            b = uniform_between(&rng, -1, 1);
            w = a * a + b * b;
            trials++;
        } while (w >= 1);
        for (k = 0; k < 4; k++) {
            within[k] += w <= t[k];
            beyond[k] += -2 * log(w) > far_out[k];
        }
        DERIVE("RNG.6d",
               apart((wide)(a / sqrt(w) * sqrt(-2 * log(w))), (wide)(a * sqrt(-2 * log(w) / w)), 1),
               algebra());
    }
    DERIVE("RNG.5a",
           (wide)(fabs((double)POINTS - pi / 4 * (double)trials) /
                  sqrt((double)trials * pi / 4 * (1 - pi / 4))),
           statistics());
    for (k = 0; k < 4; k++) {
        const double p = t[k], q = exp(-far_out[k] / 2);
        DERIVE("RNG.6a", (wide)(fabs((double)within[k] - POINTS * p) / sqrt(POINTS * p * (1 - p))),
               statistics());
        DERIVE("RNG.6b", (wide)(fabs((double)beyond[k] - POINTS * q) / sqrt(POINTS * q * (1 - q))),
               statistics());
    }
}

/* The normal density over the plane outside of a circle, ring by ring: Simpson's rule. */
static void ls_rings(double t)
{
    const int rings = 2000;
    const wide from = sqrtl((wide)t), width = (12 - from) / (wide)rings;
    wide sum = 0;
    int i;
    for (i = 0; i <= rings; i++) {
        const wide radius = from + width * (wide)i;
        const wide weight = i == 0 || i == rings ? 1 : i % 2 ? 4 : 2;
        /* the circumference times the density, exp(−radius²/2)/2π */
        sum += weight * 2 * 3.14159265358979323846L * radius *
               (expl(-radius * radius / 2) / (2 * 3.14159265358979323846L));
    }
    DERIVE("RNG.6c", apart(sum * width / 3, expl(-(wide)t / 2), 1), acc_difference());
}

static void ls_draws(void)
{
    static const double t[] = {0, 0.3, 1, 4, 10};
    size_t n;
    for (n = 1; n < 4096; n += 1 + n / 7) ls_remainders(n);
    ls_disc();
    for (n = 0; n < LENGTH(t); n++) ls_rings(t[n]);
}

/* ---- activations: ACT.2a to ACT.6f ----------------------------------------------------------- */

static wide ls_tanh(void *x)
{
    return tanhl((wide) * (const double *)x);
}

static wide ls_sigmoid(void *x)
{
    return 1 / (1 + expl(-(wide) * (const double *)x));
}

static void ls_activation_at(double x)
{
    const wide X = (wide)x, up = expl(X), down = expl(-X), y = tanhl(X), z = ls_sigmoid(&x);
    const wide sum = up + down, gap = up - down, q = expm1l(-2 * fabsl(X));
    double at = x;
    DERIVE("ACT.2a", apart(gap / sum, (1 - expl(-2 * X)) / (1 + expl(-2 * X)), 1), algebra());
    ALSO(apart(gap / sum, y, 1), algebra());
    DERIVE("ACT.2b", relative(-q / (2 + q), fabsl(y)), algebra());
    DERIVE("ACT.3a", relative(up / (1 + up), z), algebra());
    DERIVE("ACT.5a",
           apart(slope(ls_tanh, &at, &at, 1.0 / 256), (sum * sum - gap * gap) / (sum * sum), 1),
           acc_difference());
    DERIVE("ACT.5b", apart((sum * sum - gap * gap) / (sum * sum), 1 - y * y, 1), algebra());
    DERIVE("ACT.6a",
           apart(slope(ls_sigmoid, &at, &at, 1.0 / 256), down / ((1 + down) * (1 + down)), 1),
           acc_difference());
    DERIVE("ACT.6b", apart(down / (1 + down), 1 - z, 1), algebra());
    ALSO(apart(down / ((1 + down) * (1 + down)), z * (1 - z), 1), algebra());
    at = 2 * x;
    DERIVE("ACT.6c", apart(y, 2 * ls_sigmoid(&at) - 1, 1), algebra());
}

/* The fraction of normal numbers beyond a bound, by Simpson's rule on the density. */
static wide ls_beyond(wide bound)
{
    const int parts = 2000;
    const wide width = bound / (wide)parts;
    wide sum = 0;
    int i;
    for (i = 0; i <= parts; i++) {
        const wide v = width * (wide)i;
        sum += (i == 0 || i == parts ? 1 : i % 2 ? 4 : 2) * expl(-v * v / 2);
    }
    return 1 - 2 * sum * width / 3 / sqrtl(2 * 3.14159265358979323846L);
}

static wide ls_printed(wide value, double page, double unit)
{
    return unless(fabsl(value - (wide)page) <= 0.5001L * (wide)unit);
}

static void ls_saturation(nrm_rng *rng)
{
    static const double spread[] = {1, 3, 10}, page[] = {0.036, 0.49, 0.83};
    enum { BATCH = 200 };
    double x[BATCH];
    wide mean = 0, v = 0;
    size_t i, k;
    for (i = 0; i < 200; i++) {
        const wide c = (wide)uniform_between(rng, 0.01, 0.99), x_at = 3 * (wide)nrm_rng_normal(rng);
        const wide bound = logl((1 + c) / (1 - c)) / 2;
        DERIVE("ACT.6d", apart(tanhl(bound), c, 1), algebra());
        ALSO(unless((fabsl(tanhl(x_at)) > c) == (fabsl(x_at) > bound)), algebra());
    }
    ALSO(ls_printed(logl(1.97L / 0.03L) / 2, 2.09, 0.01), algebra());
    for (k = 0; k < 3; k++) {
        const wide bound = atanhl(0.97L) / (wide)spread[k];
        DERIVE("ACT.6e", apart(ls_beyond(bound), erfcl(bound / sqrtl(2)), 1), acc_difference());
        ALSO(ls_printed(ls_beyond(bound), page[k], k ? 0.01 : 0.001), acc_difference());
    }
    for (k = 0; k < 50; k++) { /* any batch, the odder the better: powers of normal numbers */
        const wide t = (wide)uniform_between(rng, 0.5, 4);
        size_t beyond = 0;
        mean = v = 0;
        for (i = 0; i < BATCH; i++) {
            const double z = (double)nrm_rng_normal(rng);
            x[i] = k % 2 ? (i < 30 ? 50 : 0) + z / 100 : z * z * z;
        }
        for (i = 0; i < BATCH; i++) mean += (wide)x[i] / BATCH;
        for (i = 0; i < BATCH; i++) v += ((wide)x[i] - mean) * ((wide)x[i] - mean) / BATCH;
        for (i = 0; i < BATCH; i++) beyond += fabsl((wide)x[i] - mean) / sqrtl(v + 1e-5L) > t;
        DERIVE("ACT.6f", unless((wide)beyond / BATCH <= 1 / (t * t)), algebra());
        /* and the bound is nearly met: 30 of 200 lie 2.38 spreads out, and 1/2.38² is 0.177 */
        if (k % 2 && t < 2.3L && t > 1) ALSO(unless(beyond == 30), algebra());
    }
    /* and it is met by values that are 0 but for a few of one size: 30 of 200, at 1/sqrt(0.15) */
    for (i = 0, v = 0; i < BATCH; i++) v += (i < 30 ? 2500 : 0) / (wide)BATCH;
    ALSO(relative(30 / (wide)BATCH, powl(50 / sqrtl(v), -2)), algebra());
    ALSO(ls_printed(1 / (2.0923L * 2.0923L), 0.23, 0.01), algebra());
}

/* ---- softmax and cross-entropy: CE.2a to CE.7b ----------------------------------------------- */

enum { LS_CLASSES = 7 };

typedef struct ls_logits {
    size_t C, t, k; /* k: the probability that is looked at */
    double z[LS_CLASSES];
} ls_logits;

static wide ls_largest(const ls_logits *l)
{
    wide h = (wide)l->z[0];
    size_t c;
    for (c = 1; c < l->C; c++) h = (wide)l->z[c] > h ? (wide)l->z[c] : h;
    return h;
}

static wide ls_Z(void *context) /* CE.2 */
{
    const ls_logits *l = (const ls_logits *)context;
    const wide h = ls_largest(l);
    wide sum = 0;
    size_t c;
    for (c = 0; c < l->C; c++) sum += expl((wide)l->z[c] - h);
    return sum;
}

static wide ls_ell(void *context) /* −ln p of the right class, straight from the definition */
{
    const ls_logits *l = (const ls_logits *)context;
    wide sum = 0;
    size_t c;
    for (c = 0; c < l->C; c++) sum += expl((wide)l->z[c]);
    return -logl(expl((wide)l->z[l->t]) / sum);
}

static wide ls_p(void *context) /* CE.3, for class k */
{
    const ls_logits *l = (const ls_logits *)context;
    return expl((wide)l->z[l->k] - ls_largest(l)) / ls_Z(context);
}

static void ls_softmax(ls_logits *l)
{
    const wide h = ls_largest(l), Z = ls_Z(l), step = 1.0L / 256;
    nrm_real z[LS_CLASSES], prob[LS_CLASSES], dz[LS_CLASSES];
    const int label = (int)l->t;
    wide total = 0, unshifted = 0, deltas = 0;
    nrm_acc loss;
    size_t c, k;
    to_real(z, l->z, l->C);
    (void)nrm_cross_entropy_forward(&loss, prob, z, &label, 1, l->C);
    (void)nrm_cross_entropy_backward(dz, prob, &label, 1, l->C);
    DERIVE("CE.2a", unless(Z >= 1 && Z <= (wide)l->C * (1 + 1e-15L)), algebra());
    DERIVE("CE.4a", apart(ls_ell(l), logl(Z) - ((wide)l->z[l->t] - h), 1 + fabsl(h)), algebra());
    for (c = 0; c < l->C; c++) unshifted += expl((wide)l->z[c]);
    for (c = 0; c < l->C; c++) {
        const wide is_h = (wide)l->z[c] == h ? 1 : 0, is_t = ls_delta(c, l->t);
        const wide dZ = slope(ls_Z, l, l->z + c, (double)step), p = expl((wide)l->z[c] - h) / Z;
        const wide dl = slope(ls_ell, l, l->z + c, (double)step);
        wide chain = 0;
        DERIVE("CE.3a", apart(p, expl((wide)l->z[c]) / unshifted, 1), algebra());
        DERIVE("CE.6a", apart(dl, dZ / Z + is_h - is_t, 1), acc_difference());
        DERIVE("CE.6b", apart(dZ, expl((wide)l->z[c] - h) - Z * is_h, 1), acc_difference());
        DERIVE("CE.6c", apart(dZ / Z, p - is_h, 1), acc_difference());
        DERIVE("CE.6d", apart(dl, p - is_t, 1), acc_difference());
        ALSO(apart((wide)dz[c], p - is_t, 1), identity());
        for (k = 0; k < l->C; k++) {
            const wide pk = expl((wide)l->z[k] - h) / Z;
            l->k = k;
            DERIVE("CE.6e",
                   apart(slope(ls_p, l, l->z + c, (double)step), pk * (ls_delta(k, c) - p), 1),
                   acc_difference());
            chain += -ls_delta(k, l->t) / pk * (pk * (ls_delta(k, c) - p));
        }
        DERIVE("CE.6f", apart(chain, p - is_t, 1), algebra());
        total += (wide)prob[c];
        deltas += is_t;
    }
    DERIVE("CE.7a", worse(apart(total, 1, 1), unless(deltas == 1)), identity());
}

static void ls_softmax_numbers(void)
{
    static const nrm_real z[3] = {2, 1, -1}, same[3] = {4, 4, 4};
    static const nrm_real wide_apart[2] = {0, (nrm_real)800};
    static const double p_page[3] = {0.705, 0.259, 0.035};
    const int label = 1, first = 0;
    nrm_real prob[3];
    nrm_acc loss;
    ls_logits l;
    size_t C, c;
    (void)nrm_cross_entropy_forward(&loss, prob, z, &label, 1, 3);
    for (c = 0; c < 3; c++)
        ALSO_OF("CE.6d", ls_printed((wide)prob[c], p_page[c], 0.001), identity());
    ALSO_OF("CE.6d", ls_printed((wide)loss, 1.35, 0.01), identity());
    (void)nrm_cross_entropy_forward(&loss, prob, wide_apart, &first, 1, 2);
    ALSO_OF("CE.4a", unless(loss == 800 && prob[0] == 0), algebra());
    ALSO_OF("CE.4a",
            unless(expf(89) > FLT_MAX && expf(88) < FLT_MAX && exp(710) > DBL_MAX &&
                   exp(709) < DBL_MAX),
            algebra());
    (void)nrm_cross_entropy_forward(&loss, prob, same, &label, 1, 3);
    for (C = 1; C <= LS_CLASSES; C++) {
        memset(&l, 0, sizeof l);
        l.C = C;
        for (c = 0; c < C; c++) l.z[c] = -0.75;
        ALSO_OF("CE.2a", apart(ls_Z(&l), (wide)C, 1), algebra()); /* both ends are reached */
        l.z[0] += 1e5;
        ALSO_OF("CE.2a", apart(ls_Z(&l), 1, 1), algebra());
        l.z[0] -= 1e5;
        DERIVE("CE.7b", apart(ls_ell(&l), logl((wide)C), 1), acc_identity());
    }
    ALSO(apart((wide)loss, logl(3), 1), acc_identity());
    ALSO(ls_printed(logl(10), 2.303, 0.001), acc_identity());
}

static void steps_linear(void)
{
    static const double fixed[] = {0, 1e-3, -0.5, 1, -4, 8};
    nrm_rng rng = stream(73);
    ls_logits l;
    size_t i, turn;
    ls_layer();
    ls_exp_log();
    ls_draws();
    for (i = 0; i < LENGTH(fixed); i++) ls_activation_at(fixed[i]);
    for (i = 0; i < 50; i++) ls_activation_at(2 * (double)nrm_rng_normal(&rng));
    ls_saturation(&rng);
    for (turn = 0; turn < 30; turn++) {
        memset(&l, 0, sizeof l);
        l.C = 2 + turn % (LS_CLASSES - 1);
        l.t = nrm_rng_below(&rng, (uint32_t)l.C);
        fill(l.z, l.C, 1, 2, &rng);
        l.z[turn % l.C] += 4; /* no two compete for being the largest */
        ls_softmax(&l);
    }
    ls_softmax_numbers();
}
#endif
