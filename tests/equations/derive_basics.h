/* derive_basics.h - LIN, EXP, LOG, RNG, SUM: the parts that the layers are made of. */
#ifndef DERIVE_BASICS_H
#define DERIVE_BASICS_H

#include "derive_tools.h"

/* ---- the linear layer ------------------------------------------------------------------------ */

enum { LIN_BATCH = 13, LIN_IN = 700, LIN_OUT = 70 };

typedef struct linear_case {
    size_t N, in, out;
    double x[LIN_BATCH * LIN_IN], W[LIN_IN * LIN_OUT], b[LIN_OUT], dy[LIN_BATCH * LIN_OUT];
    nrm_real rx[LIN_BATCH * LIN_IN], rW[LIN_IN * LIN_OUT], rb[LIN_OUT]; /* the same as nrm_real */
    nrm_real rdy[LIN_BATCH * LIN_OUT];
    nrm_real y[LIN_BATCH * LIN_OUT], dx[LIN_BATCH * LIN_IN], dW[LIN_IN * LIN_OUT], db[LIN_OUT];
    nrm_real dW_before[LIN_IN * LIN_OUT], db_before[LIN_OUT];
} linear_case;

typedef struct strided { /* a row or a column of a matrix */
    const nrm_real *at;
    size_t step;
} strided;

static strided every(const nrm_real *at, size_t step)
{
    strided s;
    s.at = at;
    s.step = step;
    return s;
}

/* How far `got` is from start + a·b, relative to the size of the terms. */
static wide dot_residual(nrm_real got, nrm_real start, strided a, strided b, size_t n)
{
    wide sum = (wide)start, size = fabsl((wide)start);
    size_t k;
    for (k = 0; k < n; k++) {
        const wide term = (wide)a.at[k * a.step] * (wide)b.at[k * b.step];
        sum += term;
        size += fabsl(term);
    }
    return apart((wide)got, sum, size);
}

/* How far it is from the running sum in nrm_real, in ascending order: 0 if LIN.5 holds. */
static wide order_residual(nrm_real got, nrm_real start, strided a, strided b, size_t n)
{
    nrm_real sum = start;
    size_t k;
    for (k = 0; k < n; k++) {
        const nrm_real product = a.at[k * a.step] * b.at[k * b.step];
        sum = sum + product;
    }
    return unless(memcmp(&sum, &got, sizeof sum) == 0);
}

typedef wide dot_check(nrm_real got, nrm_real start, strided a, strided b, size_t n);

static wide worst_of_y(const linear_case *k, dot_check *check)
{
    wide worst = 0;
    size_t n, j;
    for (n = 0; n < k->N; n++)
        for (j = 0; j < k->out; j++)
            worst = worse(worst, check(k->y[n * k->out + j], k->rb[j], every(k->rx + n * k->in, 1),
                                       every(k->rW + j, k->out), k->in));
    return worst;
}

static wide worst_of_dx(const linear_case *k, dot_check *check)
{
    wide worst = 0;
    size_t n, i;
    for (n = 0; n < k->N; n++)
        for (i = 0; i < k->in; i++)
            worst = worse(worst, check(k->dx[n * k->in + i], 0, every(k->rdy + n * k->out, 1),
                                       every(k->rW + i * k->out, 1), k->out));
    return worst;
}

static wide worst_of_dW(const linear_case *k, dot_check *check)
{
    wide worst = 0;
    size_t i, j;
    for (i = 0; i < k->in; i++)
        for (j = 0; j < k->out; j++)
            worst = worse(worst,
                          check(k->dW[i * k->out + j], k->dW_before[i * k->out + j],
                                every(k->rx + i, k->in), every(k->rdy + j, k->out), k->N));
    return worst;
}

static wide worst_of_db(const linear_case *k, dot_check *check)
{
    const nrm_real one = 1;
    wide worst = 0;
    size_t j;
    for (j = 0; j < k->out; j++)
        worst = worse(worst, check(k->db[j], k->db_before[j], every(k->rdy + j, k->out),
                                   every(&one, 0), k->N));
    return worst;
}

/* L = ∑ dy·y as a function of x, W and b. */
static wide linear_loss(void *context)
{
    const linear_case *k = (const linear_case *)context;
    double y[LIN_BATCH * LIN_OUT];
    wide loss = 0;
    size_t i;
#ifdef NRM_DOUBLE
    if (nrm_linear_forward(y, k->x, k->W, k->b, k->N, k->in, k->out) != NRM_OK)
        return (wide)HUGE_VAL;
#else
    size_t n, j;
    for (n = 0; n < k->N; n++)
        for (j = 0; j < k->out; j++) {
            y[n * k->out + j] = k->b[j];
            for (i = 0; i < k->in; i++)
                y[n * k->out + j] += k->x[n * k->in + i] * k->W[i * k->out + j];
        }
#endif
    for (i = 0; i < k->N * k->out; i++) loss += (wide)k->dy[i] * (wide)y[i];
    return loss;
}

/* The gradient less what stood there before, against the slope of the loss. */
static wide linear_slopes(linear_case *k, double *theta, const nrm_real *grad,
                          const nrm_real *before, size_t n)
{
    wide worst = 0;
    size_t i;
    for (i = 0; i < n; i++) {
        const wide should = slope(linear_loss, k, theta + i, 0.125);
        const wide got = (wide)grad[i] - (before != NULL ? (wide)before[i] : 0);
        worst = worse(worst, apart(got, should, 10));
    }
    return worst;
}

static void linear_setup(linear_case *k, size_t N, size_t in, size_t out, nrm_rng *rng)
{
    memset(k, 0, sizeof *k);
    k->N = N;
    k->in = in;
    k->out = out;
    fill(k->x, N * in, 0.3, 1, rng);
    fill(k->W, in * out, -0.2, 1, rng);
    fill(k->b, out, 0, 1, rng);
    fill(k->dy, N * out, 0.1, 1, rng);
    to_real(k->rx, k->x, N * in);
    to_real(k->rW, k->W, in * out);
    to_real(k->rb, k->b, out);
    to_real(k->rdy, k->dy, N * out);
    fill_real(k->dW_before, in * out, 0, 1, rng);
    fill_real(k->db_before, out, 0, 1, rng);
    memcpy(k->dW, k->dW_before, sizeof k->dW);
    memcpy(k->db, k->db_before, sizeof k->db);
    fill_real(k->y, N * out, 0, 1, rng); /* to be overwritten */
    fill_real(k->dx, N * in, 0, 1, rng);
    (void)nrm_linear_forward(k->y, k->rx, k->rW, k->rb, N, in, out);
    (void)nrm_linear_backward(k->dx, k->dW, k->db, k->rdy, k->rx, k->rW, N, in, out);
}

static void derive_linear(void)
{
    static const size_t shape[][3] = {{1, 1, 1}, {2, 3, 5},  {3, 7, 4},    {4, 5, 17}, {7, 2, 3},
                                      {6, 9, 8}, {13, 5, 70}, {5, 700, 33}, {1, 130, 64}};
    static linear_case k; /* too large for some stacks */
    nrm_rng rng = stream(1);
    size_t i;
    for (i = 0; i < LENGTH(shape); i++) {
        const int small = i < 6;
        linear_setup(&k, shape[i][0], shape[i][1], shape[i][2], &rng);
        DERIVE("LIN.1", worst_of_y(&k, dot_residual), identity());
        DERIVE("LIN.2", worst_of_dx(&k, dot_residual), identity());
        if (small) ALSO(linear_slopes(&k, k.x, k.dx, NULL, k.N * k.in), difference());
        DERIVE("LIN.3", worst_of_dW(&k, dot_residual), identity());
        if (small) ALSO(linear_slopes(&k, k.W, k.dW, k.dW_before, k.in * k.out), difference());
        DERIVE("LIN.4", worst_of_db(&k, dot_residual), identity());
        if (small) ALSO(linear_slopes(&k, k.b, k.db, k.db_before, k.out), difference());
        DERIVE("LIN.5",
               worse(worse(worst_of_y(&k, order_residual), worst_of_dx(&k, order_residual)),
                     worst_of_dW(&k, order_residual)),
               replay());
        memset(k.rb, 0, sizeof k.rb); /* no bias; y is overwritten nevertheless */
        (void)nrm_linear_forward(k.y, k.rx, k.rW, NULL, k.N, k.in, k.out);
        ALSO_OF("LIN.1", worst_of_y(&k, dot_residual), identity());
        ALSO_OF("LIN.5", worst_of_y(&k, order_residual), replay());
    }
}

/* ---- exponential and logarithm --------------------------------------------------------------- */

#define WIDE_LN2 0.693147180559945309417232121458176568L

/* Lambert's continued fraction of tanh z, cut after six levels. */
static wide lambert(wide z)
{
    wide level = 11;
    int n;
    for (n = 9; n >= 1; n -= 2) level = (wide)n + z * z / level;
    return z / level;
}

/* 2·s·(1 + s²/3 + s⁴/5 + ...): ln((1 + s)/(1 - s)). */
static wide log_series(wide s)
{
    wide sum = 0;
    int n;
    for (n = 61; n >= 1; n -= 2) sum = 1 / (wide)n + s * s * sum;
    return 2 * s * sum;
}

/* e^x, tanh x or sigmoid x as the code has it, in an nrm_acc; x stands among others. */
static wide curve_at(int curve, nrm_acc x)
{
    const int bytes = 16; /* of the vectors, where they are chosen at run time */
    nrm_acc v[NRM_SOME] = {0, -1, 2};
    (void)bytes;
    v[7] = x;
    nrmi_curve_of(NRM_PASS_ON v, curve, NRM_SOME);
    return (wide)v[7];
}

static wide log_at(nrm_acc x)
{
    nrm_acc v[NRM_SOME] = {1, 2, 3};
    v[5] = x;
    nrmi_log(v, 6);
    return (wide)v[5];
}

static void derive_exp_at(nrm_acc x)
{
    const wide k = ceill((wide)x / WIDE_LN2 - 0.5L), t = (wide)x - k * WIDE_LN2;
    const wide e = curve_at(NRMI_EXP, x), scaled = ldexpl(e, -(int)k);
    /* with k the rest of the exponential is between √½ and √2, and its logarithm is t */
    DERIVE("EXP.1", unless(scaled > 0.7071L && scaled < 1.41422L), replay());
    DERIVE("EXP.2", worse(apart(logl(scaled), t, 1), unless(fabsl(t) <= 0.3466L)), last_place());
    DERIVE("EXP.3", /* tanh z with k = 0 is the fraction itself */
           worse(relative(curve_at(NRM_TANH, (nrm_acc)(t / 2)), lambert((wide)(nrm_acc)(t / 2))),
                 relative((1 + lambert(t / 2)) / (1 - lambert(t / 2)), expl(t))),
           last_place());
    DERIVE("EXP.4", relative(e, expl((wide)x)), last_place());
    DERIVE("EXP.5", relative(curve_at(NRM_TANH, x), tanhl((wide)x)), last_place());
    if (fabs((double)x) > 1e-4) /* (below, a tie is broken on purpose) */
        DERIVE("EXP.6", relative(curve_at(NRM_SIGMOID, x), 1 / (1 + expl(-(wide)x))), last_place());
}

static void derive_log_at(nrm_acc x)
{
    int e;
    wide m = 2 * frexpl((wide)x, &e), s;
    e--;
    if (m > sqrtl(2)) {
        m /= 2;
        e++;
    }
    s = (m - 1) / (m + 1);
    /* the code's s, read back from ln m */
    DERIVE("LOG.1",
           worse(apart(tanhl(log_at((nrm_acc)m) / 2), s, fabsl(s)),
                 unless(fabsl(s) <= 0.1716L)),
           last_place());
    DERIVE("LOG.2",
           worse(apart(log_at((nrm_acc)m), log_series(s), fabsl(s)),
                 apart(log_series(s), logl(m), fabsl(s))),
           last_place());
    DERIVE("LOG.3", apart(log_at(x), logl((wide)x), fabsl(logl((wide)x))), last_place());
}

static void derive_exp_log(void)
{
    const double lowest = sizeof(nrm_acc) == 8 ? -708 : -87; /* below it e^x is taken for 0 */
    nrm_rng rng = stream(2);
    int i;
    for (i = 0; i < 4000; i++) {
        const double size = pow(10, uniform_between(&rng, -12, 0));
        derive_exp_at((nrm_acc)(lowest * size));
        derive_exp_at((nrm_acc)uniform_between(&rng, lowest, 0));
        derive_log_at((nrm_acc)(1 + size));
        derive_log_at((nrm_acc)(1 - 0.9 * size));
        derive_log_at((nrm_acc)pow(10, uniform_between(&rng, -30, 30)));
    }
}

/* ---- random numbers -------------------------------------------------------------------------- */

/* The low 64 bits of a product, by long multiplication in base 2³². */
static uint64_t product_64(uint64_t a, uint64_t b)
{
    const uint64_t low = 0xffffffffu;
    const uint64_t cross = (a >> 32) * (b & low) + (a & low) * (b >> 32);
    return (a & low) * (b & low) + ((cross & low) << 32);
}

/* RNG.2 word by word: divisions for the floors, and a rotation that takes one bit at a time. */
static uint32_t pcg_output(uint64_t s)
{
    const uint64_t two_18 = 262144u, two_27 = 134217728u, two_32 = 4294967296u;
    uint32_t u = (uint32_t)((s ^ (s / two_18)) / two_27 % two_32);
    uint64_t turns = s / two_27 / two_32;
    while (turns-- > 0) u = (u >> 1) | ((u & 1u) << 31);
    return u;
}

static void derive_pcg(void)
{
    /* what the generator's author prints for seed 42 and stream 54 */
    static const uint32_t published[] = {0xa15c02b7u, 0x7b47f409u, 0xba1d3330u,
                                         0x83d2f293u, 0xbfa4784bu, 0xcbed606eu};
    nrm_rng rng, seeds = stream(3);
    uint64_t state, increment;
    size_t i, k;
    for (k = 0; k < 200; k++) {
        const uint64_t seed = ((uint64_t)nrm_rng_u32(&seeds) << 32) + nrm_rng_u32(&seeds);
        const uint64_t number = ((uint64_t)nrm_rng_u32(&seeds) << 32) + nrm_rng_u32(&seeds);
        nrm_rng_seed(&rng, k == 0 ? 42 : seed, k == 0 ? 54 : number);
        increment = 2 * (k == 0 ? 54 : number) + 1;
        state = product_64(6364136223846793005u, increment + (k == 0 ? 42 : seed)) + increment;
        for (i = 0; i < 50; i++) {
            const uint32_t should = pcg_output(state), got = nrm_rng_u32(&rng);
            const int known = k > 0 || i >= LENGTH(published) || got == published[i];
            state = product_64(6364136223846793005u, state) + increment;
            DERIVE("RNG.1", unless(rng.state == state && rng.increment == increment), replay());
            DERIVE("RNG.2", unless(got == should && known), replay());
        }
    }
}

static void derive_uniform(void)
{
    nrm_rng rng = stream(4), copy;
    moments seen = no_moments();
    int i;
    for (i = 0; i < 100000; i++) {
        uint32_t u;
        nrm_real got;
        copy = rng;
        u = nrm_rng_u32(&copy);
        got = nrm_rng_uniform(&rng);
        take(&seen, (wide)got, 0.5L);
        DERIVE("RNG.3",
               unless((double)got == (in_float() ? ldexp(u / 256, -24) : ldexp(u, -32)) &&
                      got >= 0 && got < 1 && copy.state == rng.state),
               replay());
    }
    ALSO(surprise_uniform(&seen, 0, 1), statistics());
}

static void derive_below(void)
{
    static const uint32_t most[] = {1,           2,           3,           10,
                                    1000,        0x7fffffffu, 0x80000000u, 0x80000001u,
                                    0xc0000000u, 0xffffffffu};
    const uint64_t two_32 = 4294967296u;
    nrm_rng rng = stream(5), copy;
    size_t i, k, below = 0;
    for (i = 0; i < LENGTH(most); i++)
        for (k = 0; k < 2000; k++) {
            uint32_t u, got;
            copy = rng;
            do u = nrm_rng_u32(&copy);
            while (u < two_32 % most[i]);
            got = nrm_rng_below(&rng, most[i]);
            DERIVE("RNG.4", unless(got == u % most[i] && copy.state == rng.state), replay());
            if (most[i] == 0xc0000000u) below += got < 0x40000000u;
        }
    /* u mod 3·2³⁰ alone would fall into the first third half the time */
    ALSO(fabsl((wide)below - 2000 / 3.0L) / sqrtl(2000 * 2 / 9.0L), statistics());
}

/* Marsaglia's polar method with u32 draws; returns w. */
static wide polar(nrm_rng *rng, wide *a, wide *b, size_t *trials)
{
    wide w;
    do {
        *a = (wide)nrm_rng_u32(rng) / 2147483648.0L - 1;
        *b = (wide)nrm_rng_u32(rng) / 2147483648.0L - 1;
        w = *a * *a + *b * *b;
        ++*trials;
    } while (w >= 1 || w == 0);
    return w;
}

static void derive_normal(void)
{
    const size_t pairs = 50000;
    const wide disc = atanl(1); /* the disc's share of the square: π/4 */
    nrm_rng rng = stream(6), copy;
    moments seen = no_moments();
    size_t i, trials = 0;
    for (i = 0; i < pairs; i++) {
        wide a, b, w, stretch, first, second, size;
        copy = rng;
        w = polar(&copy, &a, &b, &trials);
        stretch = sqrtl(-2 * logl(w) / w);
        first = (wide)nrm_rng_normal(&rng);
        DERIVE("RNG.5", unless(copy.state == rng.state), replay());
        second = (wide)nrm_rng_normal(&rng);
        /* in float w is off by a place of 1, which near the rim of the disc is much for ln w:
           the root's own derivative by w says how much */
        size = acc_in_float() ? 1 + 1 / (w * stretch) : 1;
        DERIVE("RNG.6",
               worse(worse(apart(first, a * stretch, size), apart(second, b * stretch, size)),
                     unless(copy.state == rng.state)),
               identity());
        take(&seen, first, 0);
        take(&seen, second, 0);
    }
    ALSO(surprise(&seen, 1, 3), statistics());
    /* so many pairs out of so many trials fell into the disc */
    ALSO_OF("RNG.5",
            fabsl((wide)pairs - disc * (wide)trials) / sqrtl((wide)trials * disc * (1 - disc)),
            statistics());
}

/* ---- sums and means -------------------------------------------------------------------------- */

enum { SUM_MOST = 200, LANES = 64 / (int)sizeof(nrm_real) };

/* SUM.8 and SUM.9 for terms that are already there. */
static nrm_acc sum_in_order(const nrm_real *term, size_t n)
{
    nrm_real lane[LANES];
    size_t j, k, i;
    for (j = 0; j < LANES; j++) {
        lane[j] = 0;
        for (i = j; i < n; i += LANES) lane[j] = lane[j] + term[i];
    }
    for (k = LANES / 2; k > 0; k /= 2)
        for (j = 0; j < k; j++) lane[j] = lane[j] + lane[j + k];
    return (nrm_acc)lane[0];
}

/* The sums of one block as the code makes them: dy NULL for SUM.3. */
static void block_sums(nrm_acc *su, nrm_acc *sud, const nrm_real *x, nrm_real p, const nrm_real *dy,
                       const nrm_real *gamma, size_t n)
{
    const nrmi_view row = nrmi_rows(1, n);
    nrmi_walk at = {&row, 0, 1, 0, 0, 0};
    nrm_real u = 0, ud = 0;
    nrmi_next_block(&u, &ud, &at, x, &p, dy, gamma);
    *su = at.count == n ? (nrm_acc)u : (nrm_acc)NAN;
    *sud = at.count == n ? (nrm_acc)ud : (nrm_acc)NAN;
}

/* With zeros in all other lanes the tree has nothing to add, and a lane's own order shows. */
static wide lane_residual(const nrm_real *x, size_t n, size_t lane)
{
    nrm_real only[SUM_MOST], u = 0, ud = 0;
    nrm_acc su, sud;
    size_t i;
    for (i = 0; i < n; i++) only[i] = i % LANES == lane ? x[i] : 0;
    for (i = lane; i < n; i += LANES) {
        const nrm_real square = x[i] * x[i];
        u = u + x[i];
        ud = ud + square;
    }
    block_sums(&su, &sud, only, 0, NULL, NULL, n);
    return unless(su == (nrm_acc)u && sud == (nrm_acc)ud);
}

/* Both sums of a block, and with u = dy·gamma, bit for bit. */
static wide tree_residual(const nrm_real *x, const nrm_real *dy, size_t n)
{
    nrm_real d[SUM_MOST], dd[SUM_MOST], g[SUM_MOST], gd[SUM_MOST];
    nrm_acc su, sud, sg, sgd;
    size_t i;
    for (i = 0; i < n; i++) {
        d[i] = x[i] - x[0];
        dd[i] = d[i] * d[i];
        g[i] = dy[i] * x[n - 1 - i];
        gd[i] = g[i] * d[i];
    }
    block_sums(&su, &sud, x, x[0], NULL, NULL, n);
    for (i = 0; i < n; i++) dd[i] = d[i] * d[i];
    {
        nrm_real reversed[SUM_MOST];
        for (i = 0; i < n; i++) reversed[i] = x[n - 1 - i];
        block_sums(&sg, &sgd, x, x[0], dy, reversed, n);
    }
    return unless(su == sum_in_order(d, n) && sud == sum_in_order(dd, n) &&
                  sg == sum_in_order(g, n) && sgd == sum_in_order(gd, n));
}

/* A row of equal values has exactly their value as its mean, and its variance is exactly 0. */
static wide constant_residual(nrm_real value, size_t n)
{
    nrm_real x[SUM_MOST], y[SUM_MOST];
    nrm_acc mean = 0, rstd = 0;
    size_t i;
    int good;
    for (i = 0; i < n; i++) x[i] = value;
    (void)nrm_layernorm_forward(y, &mean, &rstd, x, NULL, NULL, NRM_EPS, 1, n);
    good = mean == (nrm_acc)value && y[0] == 0 && y[n - 1] == 0;
    (void)nrm_batchnorm_forward(y, &mean, &rstd, NULL, x, NULL, NULL, NRM_TRAIN, NRM_EPS, n, 1, 1);
    return unless(good && mean == (nrm_acc)value && y[0] == 0 && y[n - 1] == 0);
}

typedef struct exact_moments {
    wide mean, var, squares; /* squares: ⟨x²⟩ */
} exact_moments;

static exact_moments exact_moments_of(const nrm_real *x, size_t n)
{
    exact_moments e = {0, 0, 0};
    size_t i;
    for (i = 0; i < n; i++) e.mean += (wide)x[i] / (wide)n;
    for (i = 0; i < n; i++) {
        e.var += ((wide)x[i] - e.mean) * ((wide)x[i] - e.mean) / (wide)n;
        e.squares += (wide)x[i] * (wide)x[i] / (wide)n;
    }
    return e;
}

/* The saved mean of a type no wider than the data is rounded, its high and low part together are
   not: what that may make. */
static wide mean_digits(nrm_acc mean)
{
    return acc_no_wider() ? fabsl((wide)mean) : 0;
}

/* SUM.1 to SUM.3 and SUM.7: algebra, and what the code makes of a row. */
static void derive_moments_of(const nrm_real *x, size_t n)
{
    const exact_moments e = exact_moments_of(x, n);
    const nrmi_view row = nrmi_rows(1, n);
    const wide p = (wide)x[n / 2], spread = sqrtl(e.var) + fabsl((wide)x[0] - e.mean);
    wide s1 = 0, s2 = 0, size1 = 0, d1 = 0, d2 = 0;
    nrm_acc su, sud, m, Q, mean, high, low;
    nrmi_moments one, two;
    size_t i;
    nrmi_moments_of(&one, x, &row, 0, 1);
    nrmi_two_passes(&two, 0, x, &row);
    mean = one.mean[0];
    high = (nrm_acc)one.at.high[0];
    low = (nrm_acc)one.at.low[0];
    for (i = 0; i < n; i++) {
        const wide d = (wide)x[i] - (wide)x[0], q = (wide)x[i] - p;
        s1 += d;
        size1 += fabsl(d);
        s2 += d * d;
        d1 += q / (wide)n;
        d2 += q * q / (wide)n;
    }
    block_sums(&su, &sud, x, x[0], NULL, NULL, n);
    DERIVE("SUM.1", apart(e.var, e.squares - e.mean * e.mean, e.squares), algebra());
    DERIVE("SUM.2", worse(apart(p + d1, e.mean, fabsl(e.mean) + spread),
                          apart(d2 - d1 * d1, e.var, d2)),
           algebra());
    m = su * (1 / (nrm_acc)n); /* the code's first pivot is the first value */
    Q = sud - m * m * (nrm_acc)n;
    if (4 * Q >= sud)
        ALSO(unless(mean == (nrm_acc)x[0] + m && one.var[0] == Q * (1 / (nrm_acc)n)), replay());
    DERIVE("SUM.3", worse(apart((wide)su, s1, size1), apart((wide)sud, s2, s2)), identity());
    DERIVE("SUM.7", worse(apart((wide)two.mean[0], e.mean, fabsl(e.mean) + spread),
                          apart((wide)two.var[0], e.var, e.var)),
           acc_identity());
    DERIVE("SUM.10", worse(unless(one.at.high[0] == (nrm_real)mean),
                           apart((wide)high + (wide)low, (wide)mean,
                                 fabsl((wide)low) + mean_digits(mean))),
           identity());
    ALSO(apart(((wide)high - (wide)x[0]) + (wide)low, s1 / (wide)n, spread), identity());
}

/* SUM.4 to SUM.6: the first n of some values, and then the other B. */
static void derive_merge(const nrm_real *x, size_t n, size_t B)
{
    const exact_moments first = exact_moments_of(x, n), all = exact_moments_of(x, n + B);
    const wide count = (wide)(n + B), weight = (wide)n * (wide)B / count;
    nrm_acc m = (nrm_acc)(first.mean - (wide)x[0]), M = (nrm_acc)(first.var * (wide)n);
    const nrm_acc share = (nrm_acc)B / (nrm_acc)(n + B);
    nrm_real p = (nrm_real)((nrm_acc)x[0] + m);
    wide s1 = 0, s2 = 0, direct, delta, grown;
    size_t i;
    for (i = n; i < n + B; i++) {
        s1 += (wide)x[i] - (wide)p;
        s2 += ((wide)x[i] - (wide)p) * ((wide)x[i] - (wide)p);
    }
    nrmi_merge(&m, &M, &p, x[0], (nrm_acc)s1, (nrm_acc)s2, 1 / (nrm_acc)B, share,
               (nrm_acc)n * share);
    DERIVE("SUM.4", apart((wide)x[0] + (wide)m, all.mean, fabsl(all.mean) + sqrtl(all.var)),
           acc_identity());
    ALSO(unless(p == (nrm_real)((nrm_acc)x[0] + m)), replay());
    DERIVE("SUM.5", apart((wide)M, all.var * count, all.var * count), acc_identity());
    s1 = s2 = direct = 0; /* the pivot is the first part's mean, rounded */
    p = (nrm_real)first.mean;
    for (i = n; i < n + B; i++) {
        s1 += (wide)x[i] - (wide)p;
        s2 += ((wide)x[i] - (wide)p) * ((wide)x[i] - (wide)p);
        direct += ((wide)x[i] - first.mean) * ((wide)x[i] - first.mean);
    }
    delta = (wide)p + s1 / (wide)B - first.mean;
    grown = s2 - s1 * s1 / (wide)B + delta * delta * weight;
    DERIVE("SUM.6",
           worse(apart(direct, s2 - s1 * s1 / (wide)B + (wide)B * delta * delta, s2),
                 n < B ? 0 : unless(grown >= direct / 2 - s2 * 1e-15L && direct >= s2 / 4)),
           algebra());
}

/* SUM.11 to SUM.13: the lines that the layers draw, at the statistics they have saved. */
static void derive_lines(const nrm_real *x, const nrm_real *dy, size_t n)
{
    const nrm_real gamma = (nrm_real)1.75, beta = (nrm_real)-0.5, eps = (nrm_real)0.25;
    nrm_real y[SUM_MOST], dx[SUM_MOST];
    const nrmi_view row = nrmi_rows(1, n);
    nrm_acc mean, rstd;
    nrmi_centre mu;
    nrmi_sums sums;
    wide u = 0, ux = 0, size = 0, forward = 0, backward = 0, offset = 0;
    size_t i;
    (void)nrm_batchnorm_forward(y, &mean, &rstd, NULL, x, &gamma, &beta, NRM_TRAIN, eps, 1, 1, n);
    (void)nrm_batchnorm_backward(dx, NULL, NULL, dy, x, &mean, &rstd, &gamma, NRM_TRAIN, 1, 1, n);
    for (i = 0; i < n; i++) offset += ((wide)x[i] - (wide)x[0]) / (wide)n;
    for (i = 0; i < n; i++) {
        /* both passes have every digit of the mean, and not just those that are saved */
        const wide xhat = (((wide)x[i] - (wide)x[0]) - offset) * (wide)rstd;
        u += (wide)dy[i];
        ux += (wide)dy[i] * xhat;
        size += fabsl((wide)dy[i]) * (1 + fabsl(xhat));
        forward = worse(forward, apart((wide)y[i], (wide)gamma * xhat + (wide)beta,
                                       1 + fabsl((wide)y[i])));
    }
    for (i = 0; i < n; i++) {
        const wide xhat = (((wide)x[i] - (wide)x[0]) - offset) * (wide)rstd;
        const wide exact = (wide)gamma * (wide)rstd *
                           ((wide)dy[i] - u / (wide)n - xhat * ux / (wide)n);
        backward = worse(backward, apart((wide)dx[i], exact, size / (wide)n));
    }
    nrmi_saved(&mu, &mean, x, &row, 0, 1);
    nrmi_sums_of(&sums, dy, NULL, x, &mu, &rstd, &row, 0, 1);
    DERIVE("SUM.11", forward, identity());
    DERIVE("SUM.12", apart((wide)sums.dy_xhat[0], ux, size), identity());
    ALSO(apart((wide)sums.dy[0], u, size), identity());
    DERIVE("SUM.13", backward, in_float() ? make_witness('I', 5e-6) : identity());
}

static void derive_sums(void)
{
    static const double centre[] = {0, 1, -1000, 1e6};
    nrm_rng rng = stream(7);
    nrm_real x[SUM_MOST], dy[SUM_MOST];
    size_t n, c, lane;
    for (n = 1; n < SUM_MOST; n += 1 + n / 5)
        for (c = 0; c < LENGTH(centre); c++) {
            fill_real(x, n, centre[c], 1, &rng);
            fill_real(dy, n, 0, 1, &rng);
            derive_moments_of(x, n);
            ALSO_OF("SUM.2", constant_residual(x[0] / 3, n + 1), replay());
            if (n > 1) derive_merge(x, n - n / 3 - 1, n / 3 + 1);
            if (n > 2) derive_merge(x, n / 3, n - n / 3);
            if (n > 1) derive_lines(x, dy, n);
            for (lane = 0; lane < LANES; lane++)
                DERIVE("SUM.8", lane_residual(x, n, lane), replay());
            DERIVE("SUM.9", tree_residual(x, dy, n), replay());
        }
}

#endif
