/* derive_basics.h - RNG, SUM, and how weights are drawn: what claims cannot say, replayed. */
#ifndef DERIVE_BASICS_H
#define DERIVE_BASICS_H

#include "derive_tools.h"
#include "lab/draw.h"

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
        got = draw_uniform(&rng);
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
    static const uint32_t most[] = {
        1, 2, 3, 10, 1000, 0x7fffffffu, 0x80000000u, 0x80000001u, 0xc0000000u, 0xffffffffu};
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
        first = (wide)draw_normal(&rng);
        DERIVE("RNG.5", unless(copy.state == rng.state), replay());
        second = (wide)draw_normal(&rng);
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

/* A block has 1024/L lines, or 32 rows of columns, unless the channel ends. */
static wide block_residual(size_t length, size_t runs)
{
    static const nrm_real zeros[80 * 70] = {0};
    const nrmi_view v = nrmi_channels(runs, 1, length);
    const size_t fit = length == 1 ? 32 : 1024 / LANES / ((length + LANES - 1) / LANES);
    nrmi_walk at = {&v, 0, 1, 0, 0, 0};
    nrm_real u, ud, p = 0;
    nrmi_next_block(&u, &ud, &at, zeros, &p, NULL, NULL);
    return unless(at.count == length * (runs < fit ? runs : fit));
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
    DERIVE("SUM.2",
           worse(apart(p + d1, e.mean, fabsl(e.mean) + spread), apart(d2 - d1 * d1, e.var, d2)),
           algebra());
    m = su * (1 / (nrm_acc)n); /* the code's first pivot is the first value */
    Q = sud - m * m * (nrm_acc)n;
    if (4 * Q >= sud)
        ALSO(unless(mean == (nrm_acc)x[0] + m && one.var[0] == Q * (1 / (nrm_acc)n)), replay());
    DERIVE("SUM.3", worse(apart((wide)su, s1, size1), apart((wide)sud, s2, s2)), identity());
    DERIVE("SUM.7",
           worse(apart((wide)two.mean[0], e.mean, fabsl(e.mean) + spread),
                 apart((wide)two.var[0], e.var, e.var)),
           acc_identity());
    DERIVE("SUM.10",
           worse(unless(one.at.high[0] == (nrm_real)mean),
                 apart((wide)high + (wide)low, (wide)mean, fabsl((wide)low) + mean_digits(mean))),
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
        forward = worse(forward,
                        apart((wide)y[i], (wide)gamma * xhat + (wide)beta, 1 + fabsl((wide)y[i])));
    }
    for (i = 0; i < n; i++) {
        const wide xhat = (((wide)x[i] - (wide)x[0]) - offset) * (wide)rstd;
        const wide exact =
            (wide)gamma * (wide)rstd * ((wide)dy[i] - u / (wide)n - xhat * ux / (wide)n);
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
    for (n = 1; n <= 80; n++) ALSO_OF("SUM.8", block_residual(n, 70), replay());
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

/* ---- initialisation -------------------------------------------------------------------------- */

typedef struct init_residuals {
    wide replayed, moments;
} init_residuals;

/* The next weight of a stream, uniform in ±a or normal with standard deviation a. */
static nrm_real drawn_weight(int uniform, nrm_acc a, nrm_rng *rng)
{
    if (uniform) return (nrm_real)(a * symmetric(rng));
    return (nrm_real)(a * (nrm_acc)draw_normal(rng));
}

static nrm_acc root(nrm_acc v)
{
    return (nrm_acc)sqrt((double)v);
}

/* Layers of different shapes, so that `in` and `out` cannot be mistaken for one another. */
static init_residuals init_case(int init)
{
    enum { LAYERS = 3, BLOCK = 1 << 20 };
    static unsigned char block[BLOCK];
    static const size_t width[LAYERS] = {60, 200, 10};
    const int uniform = init == NRM_INIT_XAVIER || init == NRM_INIT_FAN_IN;
    nrm_mlp_spec spec = nrm_mlp_defaults();
    nrm_mlp_layer layer[LAYERS];
    init_residuals result = {0, 0};
    nrm_mlp *net = NULL;
    size_t l, i, in = 90;
    memset(layer, 0, sizeof layer);
    for (l = 0; l < LAYERS; l++) {
        layer[l].width = width[l];
        layer[l].bias = 1;
        layer[l].norm = l == 1 ? NRM_LAYER_NORM : NRM_NO_NORM;
    }
    spec.inputs = in;
    spec.layers = LAYERS;
    spec.layer = layer;
    spec.max_batch = 1;
    spec.seed = 77;
    spec.init = init;
    spec.init_std = (nrm_real)0.05;
    spec.gamma_init = NRM_GAMMA_UNIFORM;
    if (nrm_mlp_init(&net, block, BLOCK, &spec) != NRM_OK) result.replayed = (wide)HUGE_VAL;
    for (l = 0; l < LAYERS && net != NULL; l++) {
        const nrm_mlp_state *s = &net->state[l];
        const nrm_acc fan = (nrm_acc)in, out = (nrm_acc)width[l];
        const nrm_acc a = init == NRM_INIT_HE       ? root(2 / fan)
                          : init == NRM_INIT_XAVIER ? root(6 / (fan + out))
                          : init == NRM_INIT_FAN_IN ? 1 / root(fan)
                                                    : (nrm_acc)spec.init_std;
        nrm_rng weights, biases, gammas;
        moments seen = no_moments();
        nrm_rng_seed(&weights, 77, 4 * l);
        nrm_rng_seed(&biases, 77, 4 * l + 1);
        nrm_rng_seed(&gammas, 77, 4 * l + 2);
        for (i = 0; i < in * width[l]; i++) {
            if (s->W[i] != drawn_weight(uniform, a, &weights)) result.replayed = (wide)HUGE_VAL;
            take(&seen, (wide)s->W[i], 0);
        }
        for (i = 0; i < width[l]; i++) {
            const nrm_real b = init == NRM_INIT_FAN_IN ? drawn_weight(1, a, &biases) : 0;
            const int gamma = l != 1 || s->gamma[i] == draw_uniform(&gammas);
            if (s->b[i] != b || !gamma) result.replayed = (wide)HUGE_VAL;
        }
        result.moments = worse(result.moments, uniform ? surprise_uniform(&seen, -(wide)a, (wide)a)
                                                       : surprise(&seen, (wide)a * (wide)a, 3));
        in = width[l];
    }
    return result;
}

static void derive_init(void)
{
    init_residuals r = init_case(NRM_INIT_HE);
    DERIVE("MLP.5", r.replayed, replay());
    ALSO(r.moments, statistics());
    r = init_case(NRM_INIT_XAVIER);
    DERIVE("MLP.6", r.replayed, replay());
    ALSO(r.moments, statistics());
    r = init_case(NRM_INIT_GAUSSIAN);
    DERIVE("MLP.7", r.replayed, replay());
    ALSO(r.moments, statistics());
    r = init_case(NRM_INIT_FAN_IN);
    DERIVE("MLP.8", r.replayed, replay());
    ALSO(r.moments, statistics());
}

#endif
