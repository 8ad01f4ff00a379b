/* 26_worked_examples: the examples by which batch norm is usually explained, as pictures.

   Small examples of the tutorials, with their numbers, and what they do not say (README.md).
   Everything is in double. */
#define NRM_DOUBLE
#include "lab/experiment.h"
#include "lab/draw.h"

/* ---- the arms -------------------------------------------------------------------------------- */

enum { PEOPLE, DIGIT, CHAIN, PRODUCT, SHIFT, CHASE, ARMS, MANY = 200 /* seeds */ };

/* clang-format off */
static const lab_arm arms[ARMS] = {
    {"people", "ten people", 0.01, 1}, {"digit", "a digit", 0.01, 1},
    {"chain", "a chain of three neurons", 0.01, 1},
    {"product", "a product of five weights", 0.01, 1},
    {"shift", "covariate shift", 0.01, MANY}, {"chase", "the chasing game", 0.01, MANY}};
/* clang-format on */

enum { STREAM_SHIFT = 26, STREAM_CHASE = 27 };

/* ---- ten people, and a digit ----------------------------------------------------------------- */

enum { MEN = 10, COLUMNS = 3, GREYS = 256 };
static const char *const column_name[COLUMNS] = {"height", "weight", "age"};
static const double people[COLUMNS][MEN] = {{150, 60, 160, 177, 180, 192, 172, 168, 172, 180},
                                            {54, 18, 60, 53, 60, 90, 76, 83, 64, 90},
                                            {26, 4, 48, 16, 24, 22, 38, 47, 17, 25}};

/* Three scalings, column after column. A column is a channel with ten places. */
static int run_people(lab_run *r)
{
    nrm_real z[COLUMNS][MEN];
    nrm_acc mean[COLUMNS], rstd[COLUMNS];
    size_t i, k, c;
    (void)nrm_batchnorm_forward(z[0], mean, rstd, NULL, people[0], NULL, NULL, NRM_TRAIN, NRM_EPS,
                                1, COLUMNS, MEN);
    for (c = 0; c < COLUMNS; c++) {
        const double *x = people[c], var = 1 / (rstd[c] * rstd[c]) - NRM_EPS;
        const stats_summary of = stats_describe(x, MEN);
        lab_record(r, "mean", (double)c, mean[c]);
        lab_record(r, "var", (double)c, var);
        lab_record(r, "sample_var", (double)c, var * MEN / (MEN - 1));
        for (i = 0; i < MEN; i++) {
            const double at = (double)(c * MEN + i);
            double not_above = 0;
            for (k = 0; k < MEN; k++) not_above += x[k] <= x[i];
            lab_record(r, "z", at, z[c][i]);
            lab_record(r, "minmax", at, (x[i] - of.min) / (of.max - of.min));
            lab_record(r, "rank", at, not_above / MEN);
        }
    }
    return 0;
}

/* The pixels of the first test image; what each grey value becomes by its rank. The equalized
   digit's distribution function is the identity at the values that occur and flat up to the next,
   so it is off by the largest share of one grey value. */
static int run_digit(lab_run *r)
{
    const unsigned char *pixels = r->data->test_images;
    double count[GREYS] = {0}, below = 0, off = 0;
    size_t i;
    for (i = 0; i < DATASET_PIXELS; i++) {
        count[pixels[i]]++;
        lab_record(r, "pixel", (double)i, pixels[i]);
    }
    for (i = 0; i < GREYS; i++) {
        const double share = count[i] / DATASET_PIXELS;
        below += share;
        off = fmax(off, share);
        if (share > 0) lab_record(r, "cdf", (double)i, below);
    }
    lab_record(r, "off", 0, off);
    return 0;
}

/* ---- a chain of three neurons ---------------------------------------------------------------- */

enum { NEURONS = 3, W = 0, GAMMA, BETA, OWN, FOUR = 4 };

typedef struct chain {                       /* three neurons a, b, c, and a squared error */
    double p[NEURONS][OWN], g[NEURONS][OWN]; /* w; γ and β behind a and b, if `norm`       */
    double x[FOUR], y[FOUR];
    size_t n;
    int norm;
    double loss, input_mean, input_sd; /* of the last pass; of what goes into c */
} chain;

/* The n parameters make their step. */
static void move(double *p, const double *g, double rate, size_t n)
{
    size_t i;
    for (i = 0; i < n; i++) p[i] -= rate * g[i];
}

/* Loss and gradient at the present parameters. */
static void chain_gradient(chain *k)
{
    double h[NEURONS + 1][FOUR], z[NEURONS][FOUR], d[FOUR]; /* z = w·h goes into the norm */
    nrm_acc mean[NEURONS], rstd[NEURONS];
    size_t i, s;
    memset(k->g, 0, sizeof k->g);
    memcpy(h[0], k->x, sizeof k->x);
    for (s = 0; s < NEURONS; s++) {
        const double *p = k->p[s];
        for (i = 0; i < k->n; i++) z[s][i] = h[s + 1][i] = p[W] * h[s][i];
        if (k->norm && s < NEURONS - 1)
            (void)nrm_batchnorm_forward(h[s + 1], &mean[s], &rstd[s], NULL, z[s], p + GAMMA,
                                        p + BETA, NRM_TRAIN, NRM_EPS, k->n, 1, 1);
    }
    k->loss = k->input_mean = k->input_sd = 0;
    for (i = 0; i < k->n; i++) {
        const double e = h[NEURONS][i] - k->y[i];
        k->loss += e * e / (double)k->n;
        k->input_mean += h[2][i] / (double)k->n;
        d[i] = 2 * e / (double)k->n;
    }
    for (i = 0; i < k->n; i++)
        k->input_sd += (h[2][i] - k->input_mean) * (h[2][i] - k->input_mean) / (double)k->n;
    k->input_sd = sqrt(k->input_sd);
    while (s-- > 0) {
        const double *p = k->p[s];
        double *g = k->g[s];
        if (k->norm && s < NEURONS - 1)
            (void)nrm_batchnorm_backward(d, g + GAMMA, g + BETA, d, z[s], &mean[s], &rstd[s],
                                         p + GAMMA, NRM_TRAIN, k->n, 1, 1);
        for (i = 0; i < k->n; i++) {
            g[W] += d[i] * h[s][i];
            d[i] *= p[W];
        }
    }
}

/* The first `moved` neurons make a step. */
static void chain_step(chain *k, double rate, size_t moved)
{
    move(k->p[0], k->g[0], rate, moved * OWN);
    chain_gradient(k);
}

/* One example; or four, and then gamma and beta start at the deviation and the mean of what they
   normalize, so that both chains are the same function. */
static chain chain_make(size_t n, int norm)
{
    chain k = {{{0.5}, {2}, {1.5}}, .x = {1, 0.5, 1.5, 2}, .y = {2, 1, 3, 4}, .n = n};
    chain_gradient(&k); /* b = x: the input of c is x at the start, that of b is x/2 */
    k.p[0][GAMMA] = sqrt(k.input_sd * k.input_sd / 4 + NRM_EPS);
    k.p[0][BETA] = k.input_mean / 2;
    k.p[1][GAMMA] = sqrt(k.input_sd * k.input_sd + NRM_EPS);
    k.p[1][BETA] = k.input_mean;
    k.norm = norm;
    chain_gradient(&k);
    return k;
}

/* Weights and gradients of c, b, a; and the gradients after a step of the neurons before. */
static void record_shift(lab_run *r, const chain *k, size_t step)
{
    size_t i;
    for (i = 0; i < NEURONS; i++) {
        const size_t s = NEURONS - 1 - i;
        chain moved = *k;
        chain_step(&moved, 0.1, s);
        lab_record(r, "weight", (double)(NEURONS * step + i), k->p[s][W]);
        lab_record(r, "gradient", (double)(NEURONS * step + i), k->g[s][W]);
        if (step == 0) lab_record(r, "shifted", (double)i, moved.g[s][W]);
    }
}

/* Two steps; the loss after one step against the rate, and what the gradient promises. */
static void run_steps(lab_run *r, const char *which, size_t n, int norm)
{
    const chain start = chain_make(n, norm);
    const double squares = training_squares(start.g[0], NEURONS * OWN);
    chain k = start;
    size_t i;
    for (i = 0; i < 3; i++) {
        lab_record_as(r, (double)i, k.loss, "loss_%s", which);
        lab_record_as(r, (double)i, k.input_mean, "input_mean_%s", which);
        lab_record_as(r, (double)i, k.input_sd, "input_sd_%s", which);
        if (n == 1) record_shift(r, &k, i);
        chain_step(&k, 0.1, NEURONS);
    }
    for (i = 0; i <= 40; i++) {
        const double rate = pow(10, -3 + (double)i / 40 * 2.5);
        k = start;
        chain_step(&k, rate, NEURONS);
        lab_record_as(r, rate, k.loss, "after_%s", which);
        if (n == 1) lab_record(r, "promised", rate, start.loss - rate * squares);
    }
}

static int run_chain(lab_run *r)
{
    run_steps(r, "one", 1, 0);
    run_steps(r, "none", FOUR, 0);
    run_steps(r, "batch", FOUR, 1);
    return 0;
}

/* ---- a product of five weights --------------------------------------------------------------- */

enum { FACTORS = 5 };
static const double factor[FACTORS] = {1.5, -2, 1.2, 2, 0.8};

/* The product of w - rate*g as a polynomial in the rate: the sum of all terms of each order, after
   multiplication by rate^order. */
static void orders_of(double order[FACTORS + 1], double rate)
{
    double product = 1;
    size_t i, k;
    for (i = 0; i < FACTORS; i++) product *= factor[i];
    memset(order, 0, (FACTORS + 1) * sizeof *order);
    order[0] = 1;
    for (i = 0; i < FACTORS; i++)
        for (k = i + 2; k-- > 0;)
            order[k] =
                order[k] * factor[i] + (k > 0 ? order[k - 1] * -rate * product / factor[i] : 0);
}

static int run_product(lab_run *r)
{
    static const double rates[] = {0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001};
    double order[FACTORS + 1], sum;
    size_t i, k;
    for (i = 0; i <= 50; i++) {
        const double rate = 0.1 * (double)i / 50;
        orders_of(order, rate);
        for (k = 0, sum = 0; k <= FACTORS; k++)
            lab_record_as(r, rate, sum += order[k], "up_to_%zu", k);
    }
    for (i = 0; i < LAB_COUNT(rates); i++) {
        orders_of(order, rates[i]);
        for (k = 1, sum = 0; k <= FACTORS; k++) {
            sum += order[k];
            lab_record_as(r, rates[i], fabs(order[k]), "size_%zu", k);
        }
        lab_record(r, "second", rates[i], order[2] / sum); /* its share of the change */
    }
    orders_of(order, 0.05);
    for (k = 1; k <= FACTORS; k++) lab_record(r, "order", (double)k, order[k]);
    return 0;
}

/* ---- covariate shift ------------------------------------------------------------------------- */

enum { POINTS = 400, KEPT = 60 };

/* Least squares of y by 1, x, ..., x^(terms-1); terms <= 3. */
static void fit(double *c, size_t terms, const double *x, const double *y, size_t n)
{
    double a[3][4] = {{0}};
    size_t i, j, k;
    for (i = 0; i < n; i++) {
        const double power[3] = {1, x[i], x[i] * x[i]};
        for (j = 0; j < terms; j++) {
            for (k = 0; k < terms; k++) a[j][k] += power[j] * power[k];
            a[j][3] += power[j] * y[i];
        }
    }
    for (k = 0; k < terms; k++) /* Gauss and Jordan; the matrix is positive definite */
        for (j = 0; j < terms; j++) {
            const double f = j == k ? 0 : a[j][k] / a[k][k];
            for (i = 0; i < 4; i++) a[j][i] -= f * a[k][i];
        }
    for (k = 0; k < terms; k++) c[k] = a[k][3] / a[k][k];
}

static double error_of(const double *c, const double *x, const double *y, size_t n)
{
    double sum = 0;
    size_t i;
    for (i = 0; i < n; i++) {
        const double e = c[0] + c[1] * x[i] + c[2] * x[i] * x[i] - y[i];
        sum += e * e / (double)n;
    }
    return sqrt(sum);
}

enum { SOURCE, TARGET, PARABOLA, MODELS, PLACES = 2 }; /* a line of each place, a parabola */
static const char *const model_name[MODELS] = {"source", "target", "parabola"};

static int run_shift(lab_run *r)
{
    double x[PLACES][POINTS], y[PLACES][POINTS], c[MODELS][3] = {{0}};
    nrm_rng rng;
    size_t d, m, i;
    nrm_rng_seed(&rng, r->seed, STREAM_SHIFT);
    for (d = 0; d < PLACES; d++)
        for (i = 0; i < POINTS; i++) {
            x[d][i] = (d == SOURCE ? -1 : 1) + 0.5 * draw_normal(&rng);
            y[d][i] = x[d][i] * x[d][i] + 0.2 * draw_normal(&rng);
            if (i < KEPT && r->first)
                lab_record_as(r, x[d][i], y[d][i], "points_%s", model_name[d]);
        }
    fit(c[SOURCE], 2, x[SOURCE], y[SOURCE], POINTS);
    fit(c[TARGET], 2, x[TARGET], y[TARGET], POINTS);
    fit(c[PARABOLA], 3, x[SOURCE], y[SOURCE], POINTS);
    for (m = 0; m < MODELS; m++) {
        for (i = 0; i < 3; i++) lab_record_as(r, (double)i, c[m][i], "fit_%s", model_name[m]);
        for (d = 0; d < PLACES; d++)
            lab_record_as(r, (double)m, error_of(c[m], x[d], y[d], POINTS), "error_%s",
                          model_name[d]);
    }
    return 0;
}

/* ---- the chasing game ------------------------------------------------------------------------ */

enum { CLASS = 100, SPOTS = 2 * CLASS, SWEEP = 15 }; /* four rates a decade */
static const double shown_rate = 5;                  /* in the pictures */

/* Two inputs, a 2 x 2 layer, a unit: p = sigmoid(h·w + b), h = x·A + a. */
enum { A, LAYER_BIAS = A + 4, UNIT = LAYER_BIAS + 2, BIAS = UNIT + 2, WEIGHTS };

typedef struct game {
    double x[SPOTS][2], h[SPOTS][2];
    double p[WEIGHTS], g[WEIGHTS], loss, hits; /* A, a, w, b and the gradients by them */
} game;

/* The unit's inputs, its cross-entropy on them, and all gradients. */
static void game_gradient(game *g)
{
    double z[SPOTS], dz[SPOTS], dh[SPOTS * 2];
    size_t i;
    memset(g->g, 0, sizeof g->g);
    g->loss = g->hits = 0;
    (void)nrm_linear_forward(g->h[0], g->x[0], g->p + A, g->p + LAYER_BIAS, SPOTS, 2, 2);
    (void)nrm_linear_forward(z, g->h[0], g->p + UNIT, g->p + BIAS, SPOTS, 2, 1);
    for (i = 0; i < SPOTS; i++) {
        const double margin = i < CLASS ? z[i] : -z[i];
        g->loss += (margin > 0 ? log1p(exp(-margin)) : log1p(exp(margin)) - margin) / SPOTS;
        g->hits += (margin > 0 ? 1.0 : 0.0) / SPOTS;
        dz[i] = (1 / (1 + exp(-z[i])) - (i < CLASS ? 1 : 0)) / SPOTS;
    }
    (void)nrm_linear_backward(dh, g->g + UNIT, g->g + BIAS, dz, g->h[0], g->p + UNIT, SPOTS, 2, 1);
    (void)nrm_linear_backward(NULL, g->g + A, g->g + LAYER_BIAS, dh, g->x[0], NULL, SPOTS, 2, 2);
}

/* Two classes of 100 points around (1, 0.5) and (-1, -0.5), deviation 0.7; weights N(0, 1). */
static void game_start(game *g, uint64_t seed)
{
    nrm_rng rng;
    size_t i, j;
    memset(g, 0, sizeof *g);
    nrm_rng_seed(&rng, seed, STREAM_CHASE);
    for (i = 0; i < SPOTS; i++)
        for (j = 0; j < 2; j++)
            g->x[i][j] = (i < CLASS ? 1 : -1) * (j == 0 ? 1 : 0.5) + 0.7 * draw_normal(&rng);
    for (i = 0; i < 2; i++) {
        g->p[A + i] = draw_normal(&rng);
        g->p[A + 2 + i] = draw_normal(&rng);
        g->p[UNIT + i] = draw_normal(&rng);
    }
    game_gradient(g);
}

/* By the gradients at the start: the unit's step alone, and with that of the layer before it. */
enum { START, ALONE, BOTH, STATES };

static void game_step(game g[STATES], double rate)
{
    g[ALONE] = g[START];
    move(g[ALONE].p + UNIT, g[ALONE].g + UNIT, rate, WEIGHTS - UNIT);
    g[BOTH] = g[ALONE];
    game_gradient(&g[ALONE]);
    move(g[BOTH].p, g[BOTH].g, rate, UNIT);
    game_gradient(&g[BOTH]);
}

/* What the pictures show of H1, H2, H3. */
static void record_state(lab_run *r, const game *g, size_t h)
{
    size_t i;
    for (i = 0; i < 3; i++) lab_record_as(r, (double)i, g->p[UNIT + i], "line_%zu", h);
    lab_record(r, "loss", (double)h, g->loss);
    lab_record(r, "hits", (double)h, g->hits);
    for (i = 0; i < SPOTS; i += 2)
        lab_record_as(r, g->h[i][0], g->h[i][1], "%s_%zu", i < CLASS ? "one" : "other", h);
}

/* Losses against the rate, decades from the start; and one step in three pictures. */
static int run_chase(lab_run *r)
{
    game g[STATES];
    size_t i;
    game_start(&g[START], r->seed);
    for (i = 0; i < SWEEP; i++) {
        const double rate = pow(10, -2 + (double)i / 4);
        game_step(g, rate);
        lab_record(r, "own", rate, lab_round(log10(g[ALONE].loss / g[START].loss), 4));
        lab_record(r, "both", rate, lab_round(log10(g[BOTH].loss / g[START].loss), 4));
    }
    game_step(g, shown_rate);
    for (i = 0; i < STATES && r->first; i++) record_state(r, &g[i], i + 1);
    return 0;
}

static int run(lab_run *r)
{
    static int (*const of[ARMS])(lab_run *) = {run_people,  run_digit, run_chain,
                                               run_product, run_shift, run_chase};
    return of[r->arm](r);
}

/* ---- claims ---------------------------------------------------------------------------------- */

/* The values that a series must have at x = from, from + 1, ..., to so many decimals. tell: null,
   or the format in which the verdict names the last of them. */
typedef struct known {
    const char *claim;
    size_t arm;
    const char *series;
    int decimals;
    double from;
    size_t n;
    double value[MEN];
    const char *tell;
} known;

/* clang-format off */
static const known numbers[] = {
    {"26a", PEOPLE, "mean", 1, 0, COLUMNS, {161.1, 64.8, 26.7}},
    {"26a", PEOPLE, "var", 2, 0, COLUMNS, {1255.29, 421.96, 175.01}},
    {"26a", PEOPLE, "sample_var", 3, 0, COLUMNS, {1394.767, 468.844, 194.456}},
    {"26a", PEOPLE, "z", 4, 0, MEN, /* of the heights, which come first */
     {-.3133, -2.8535, -.0310, .4488, .5334, .8721, .3076, .1947, .3076, .5334}},
    {"26a", PEOPLE, "minmax", 4, 0, MEN,
     {.6818, 0, .7576, .8864, .9091, 1, .8485, .8182, .8485, .9091}},
    {"26c", CHAIN, "gradient", 5, 0, 3, {-1, -0.75, -3}},
    {"26c", CHAIN, "weight", 5, 3, 3, {1.6, 2.075, 0.8}},
    {"26c", CHAIN, "input_mean_one", 5, 0, 2, {1, 1.66}, "%.2f"},
    {"26c", CHAIN, "loss_one", 5, 0, 2, {0.25, 0.43034}, "; %.5f"},
    {"26c", CHAIN, "shifted", 4, 0, 1, {1.6268}, "; %.4f"},
    {"26d", PRODUCT, "up_to_0", 5, 0.05, 1, {-5.76}},
    {"26d", PRODUCT, "up_to_5", 5, 0.05, 1, {-12.99183}, "%.5f"},
    {"26d", PRODUCT, "up_to_1", 5, 0.05, 1, {-11.07072}, "; %.5f"},
    {"26d", PRODUCT, "up_to_2", 5, 0.05, 1, {-12.74352}, "; %.5f"}};
/* clang-format on */

/* Are all numbers of the claim right? Tells some of them, or how many are. */
static void judge_numbers(lab_report *r, const lab_claim *c)
{
    const char *told = "";
    size_t i, k, count = 0, right = 0;
    for (i = 0; i < LAB_COUNT(numbers); i++) {
        const known *e = &numbers[i];
        double value = 0;
        if (strcmp(e->claim, c->id) != 0) continue;
        for (k = 0; k < e->n; k++, count++) {
            value = lab_at(r, e->arm, 0, e->series, e->from + (double)k);
            right += fabs(value - e->value[k]) <= 0.5 * pow(10, -e->decimals) * (1 + 1e-9);
        }
        if (e->tell) told = lab_format(r, "%s%s", told, lab_format(r, e->tell, value));
    }
    if (!*told) told = lab_format(r, "%zu of %zu numbers", right, count);
    lab_verdict(r, c, stats_holds(right == count), "", "%s", told);
}

static void judge_lost(lab_report *r, const lab_claim *c)
{
    const lab_numbers both = lab_all(r, CHASE, "both", 10), own = lab_all(r, CHASE, "own", 10);
    lab_numbers times = lab_calc(both, '-', own);
    stats_finding lost = lab_more(both, own, lab_describe(times).mean >= log10(2));
    size_t s, above = 0;
    for (s = 0; s < times.n; s++) above += times.of[s] > 0;
    lab_verdict(r, c, lost,
                lab_format(r, "higher in %lu of %lu seeds; median factor %.1f",
                           (unsigned long)above, (unsigned long)times.n,
                           pow(10, stats_median(times.of, times.n))),
                "decades: %s against %s", lab_pm(r, both, 2), lab_pm(r, own, 2));
}

static void judge_second(lab_report *r, const lab_claim *c)
{
    const double share = lab_at(r, PRODUCT, 0, "second", 0.05);
    lab_verdict(r, c, stats_holds(share > 0.1), "",
                "%.0f %% of the change; at the rate 0.1 %.0f %%, at 0.01 %.1f %%", 100 * share,
                100 * lab_at(r, PRODUCT, 0, "second", 0.1),
                100 * lab_at(r, PRODUCT, 0, "second", 0.01));
}

/* clang-format off */
static const lab_claim claims[] = {
    {"26a", "Ten people, standardized", "Chinese notes on batch norm",
     "mean height 161.1; and the rest of the table",
     "exact: means, variances, standardized and min-max heights to the digits shown", "none",
     LAB_ARITHMETIC, LAB_SETTING, .judge = judge_numbers},
    {"26b", "Histogram equalization makes grey values uniform", "Chinese notes on batch norm",
     "named beside min-max and standardization", "largest distance of the equalized digit's "
     "distribution function from the uniform one below 0.05 (another criterion before the run)",
     "none", LAB_ARITHMETIC, LAB_ALGEBRA,
     .test = LAB_EXACT, .a = DIGIT, .series = "off", .limit = 0.05,
     .say = "off by #1[%.2f]; the largest share of one grey value is #1[%.2f]"},
    {"26c", "The input of the last neuron moves though x does not",
     "a lecture-style post on how batch norm helps", "order 1c, 1b, 1a, 2c, without numbers",
     "exact: input 1 to 1.66, loss 0.25 to 0.43034, G = -1 and G' = 1.6268", "none", LAB_ARITHMETIC,
     LAB_SETTING, .judge = judge_numbers},
    {"26d", "The step of a product has terms of higher order that its gradient does not know",
     "a derivation of batch norm's backward pass", "one term of the second order, no numbers",
     "exact: -12.99183; first order -11.07072; up to the second -12.74352", "none", LAB_ARITHMETIC,
     LAB_SETTING, .judge = judge_numbers},
    {"26e", "With the inputs the best line changes, though y of x does not",
     "a tutorial on batch and layer norm; a lecture-style post", "a definition and a drawing",
     "slopes -2 on the source and +2 on the target, each within 0.1 in the mean", "none",
     LAB_PARTS({LAB_BELOW, SHIFT, .series = "fit_source", .at = 1, .limit = -1.9},
               {LAB_ABOVE, SHIFT, .series = "fit_source", .at = 1, .limit = -2.1},
               {LAB_ABOVE, SHIFT, .series = "fit_target", .at = 1, .limit = 1.9},
               {LAB_BELOW, SHIFT, .series = "fit_target", .at = 1, .limit = 2.1}),
     .decimals = 2, .say = "$1 and $3"},
    {"26f", "At a large rate the unit's step is lost on inputs that have moved meanwhile",
     "Chinese notes on batch norm", "a drawing: H1, H2, H3", "rate 10: log loss after both steps "
     "above that after the unit's own, paired over 200 seeds, and in the mean by a factor of 2",
     "five seeds: 36 times that, 22 times the start; 96 others: 2.3 times the start, above it in "
     "62 of them", .judge = judge_lost},
    {"26g", "At a small rate moving inputs help", "ours", "not discussed",
     "rate 0.1: log loss after both steps below that after the unit's own, paired over 200 seeds",
     "five seeds: 0.81 against 0.90 of the loss",
     LAB_PARTS({LAB_LESS, CHASE, CHASE, "both", 0.1, .other = "own"}), .decimals = 3,
     .say = "decades: $1 against $2"},
    {"26h", "Terms of the second order may become very large",
     "a derivation of batch norm's backward pass", "no number",
     "exact: more than 10 % of the change of y, five weights, rate 0.05; added after the run",
     "the orders were known", LAB_ARITHMETIC, LAB_SETTING, .judge = judge_second}};
/* clang-format on */

/* ---- the chain and the product, a page ------------------------------------------------------- */

static void draw_input(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    static const char *const which[2] = {"none", "batch"};
    static const char *const name[2] = {"no norm", "batch norm"};
    int i;
    (void)panel;
    for (i = 0; i < 2; i++) {
        const lab_series m = lab_get(r, CHAIN, 0, lab_format(r, "input_mean_%s", which[i]));
        const lab_series d = lab_get(r, CHAIN, 0, lab_format(r, "input_sd_%s", which[i]));
        plot_mean_band(p, name[i], m.x, m.y, d.y, m.n,
                       plot_with_marker(lab_style(which[i]), i ? PLOT_CIRCLE : PLOT_SQUARE));
    }
}

/* clang-format off */
static const char *const neurons[3] = {"c", "b", "a"};
static const char *const orders[FACTORS] = {"1st", "2nd", "3rd", "4th", "5th"};
static const double steps_at[3] = {0, 1, 2};
static const char *const steps_name[3] = {"0", "1", "2"};
#define AT_RATE(rate) {{LAB_VLINE, .x = rate, .text = ""}}
#define ONE(arm, series, name, ...) {arm, series, name, {__VA_ARGS__}, LAB_ONE_SEED}

static const lab_panel chain_panels[] = {
    {.axes = {.heading = "One example: the shift of each weight's gradient",
              .x_names = neurons, .x_count = 3, .y = "gradient of the loss",
              .y_range = {-3.6, 2.4}, .legend = PLOT_LEGEND_BOTTOM_LEFT},
     .line = {{CHAIN, "gradient", "G: as used", {PLOT_SKY}, LAB_BARS},
              {CHAIN, "shifted", "G′: earlier weights moved", {PLOT_ORANGE}, LAB_BARS}},
     .value = 2},
    {.axes = {.col = 1, .heading = "One example: promise and result", .x = "learning rate",
              .x_scale = PLOT_LOG10, .y = "loss after one step", .y_range = {-1, 1},
              .legend = PLOT_LEGEND_ABOVE},
     .line = {ONE(CHAIN, "promised", "promised by the gradient", PLOT_GREY, .dash = PLOT_DOTTED),
              ONE(CHAIN, "after_one", "after the step", PLOT_VERMILLION, .dash = PLOT_DASHED)},
     .mark = AT_RATE(0.1)},
    {.axes = {.row = 1, .heading = "Four examples", .x = "learning rate",
              .x_scale = PLOT_LOG10, .y = "loss after one step", .y_scale = PLOT_LOG10,
              .y_range = {1e-3, 1e4}, .legend = PLOT_LEGEND_ABOVE},
     .line = {ONE(CHAIN, "after_none", "no norm", PLOT_VERMILLION, .dash = PLOT_DASHED),
              ONE(CHAIN, "after_batch", "batch norm after a and b", PLOT_BLUE)},
     .mark = AT_RATE(0.1)},
    {.axes = {.row = 1, .col = 1, .heading = "Four examples: what neuron c is given",
              .x = "steps taken, rate 0.1", .x_range = {-0.1, 2.1}, .x_ticks = steps_at,
              .x_names = steps_name, .x_count = 3, .y = "input, mean ± 1 sd",
              .legend = PLOT_LEGEND_ABOVE},
     .draw = draw_input}};

static const lab_panel product_panels[] = {
    {.axes = {.heading = "Five weights: y after a step", .x = "rate of the step", .y = "y",
              .legend = PLOT_LEGEND_BOTTOM_LEFT},
     .line = {ONE(PRODUCT, "up_to_1", "first order: the gradient", PLOT_VERMILLION,
                  .dash = PLOT_DASHED),
              ONE(PRODUCT, "up_to_2", "up to the second", PLOT_GREEN, .dash = PLOT_DASHDOT),
              ONE(PRODUCT, "up_to_5", "exact", PLOT_INK)},
     .mark = AT_RATE(0.05)},
    {.axes = {.col = 1, .heading = "The change of y by orders, rate 0.05",
              .x_names = orders, .x_count = FACTORS, .y = "sum of the terms",
              .y_range = {-6.4, 0.6}},
     .line = {{PRODUCT, "order", NULL, {PLOT_SKY}, LAB_BARS}}, .value = 4},
    {.axes = {.col = 2, .heading = "Each order against the rate",
              .x = "rate of the step", .x_scale = PLOT_LOG10, .y = "size of its sum",
              .y_scale = PLOT_LOG10, .legend = PLOT_LEGEND_BOTTOM_RIGHT},
     .line = {ONE(PRODUCT, "size_1", "1st", PLOT_VERMILLION, .dash = PLOT_DASHED,
                  .marker = PLOT_CIRCLE, .marker_every = 1),
              ONE(PRODUCT, "size_2", "2nd", PLOT_GREEN, .dash = PLOT_DASHDOT,
                  .marker = PLOT_SQUARE, .marker_every = 1),
              ONE(PRODUCT, "size_3", "3rd", PLOT_PURPLE, .dash = PLOT_DOTTED,
                  .marker = PLOT_TRIANGLE, .marker_every = 1)}}};

/* ---- scalings, a page ------------------------------------------------------------------------ */

static const double people_at[COLUMNS] = {3, 2, 1};

/* The ten people on one axis, a row for each column of the table; the child is a ring. */
static void draw_people(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    static const plot_style style[COLUMNS] = {
        {PLOT_BLUE, .alpha = 0.75, .marker = PLOT_CIRCLE},
        {PLOT_VERMILLION, .alpha = 0.75, .marker = PLOT_TRIANGLE},
        {PLOT_GREEN, .alpha = 0.75, .marker = PLOT_SQUARE}};
    size_t c, i;
    for (c = 0; c < COLUMNS; c++) {
        const double *x =
            panel->series ? lab_get(r, PEOPLE, 0, panel->series).y + c * MEN : people[c];
        const plot_style ring = {style[c].color, .marker = PLOT_RING, .size = 2.2};
        double y[MEN];
        for (i = 0; i < MEN; i++) y[i] = people_at[c];
        plot_scatter(p, NULL, x, y, MEN, style[c]);
        plot_scatter(p, NULL, x + 1, y + 1, 1, ring);
    }
}

/* The digit: as it is, and with each grey replaced by the share of pixels not lighter than it. */
static void draw_digit(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    static const char *const captions[2] = {"as it is (min-max: 0 to 1)",
                                            "equalized: paper becomes 85 % grey"};
    const lab_series pixel = lab_get(r, DIGIT, 0, "pixel");
    unsigned char images[2][DATASET_PIXELS];
    size_t i;
    (void)panel;
    for (i = 0; i < pixel.n && i < DATASET_PIXELS; i++) {
        images[0][i] = (unsigned char)pixel.y[i];
        images[1][i] = (unsigned char)(255 * lab_at(r, DIGIT, 0, "cdf", pixel.y[i]));
    }
    plot_images(p, images[0], 2, DATASET_SIDE, DATASET_SIDE, 2, captions, 1);
}

static void draw_equalized(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    static const double line[2] = {0, 1};
    const lab_series cdf = lab_get(r, DIGIT, 0, "cdf");
    const plot_style stairs = {PLOT_PURPLE, .step = 1};
    double share[GREYS + 1] = {0}; /* it jumps where the value occurs */
    size_t i;
    (void)panel;
    for (i = 0; i < cdf.n && i < GREYS; i++) share[i + 1] = cdf.y[i];
    plot_line(p, "uniform", line, line, 2, plot_dotted(PLOT_GREY));
    plot_line(p, "the digit", share, share, i + 1, stairs);
}

#define ROWS .y_range = {0.4, 3.6}, .y_ticks = people_at, .y_names = column_name, \
    .y_count = COLUMNS, .grid = PLOT_GRID_X

static const lab_panel scaling_panels[] = {
    {.axes = {.heading = "As measured", .x = "cm, kg, years", .x_range = {-12, 205}, ROWS},
     .draw = draw_people},
    {.axes = {.col = 1, .heading = "Standardized", .x = "standard deviations",
              .x_range = {-3.3, 2}, ROWS, .hide = PLOT_GRID_Y},
     .draw = draw_people, .series = "z"},
    {.axes = {.col = 2, .heading = "Min-max", .x = "0: smallest, 1: largest",
              .x_range = {-0.08, 1.08}, ROWS, .hide = PLOT_GRID_Y},
     .draw = draw_people, .series = "minmax"},
    {.axes = {.col = 3, .heading = "Ranks", .x = "share of people not above",
              .x_range = {-0.08, 1.08}, ROWS, .hide = PLOT_GRID_Y},
     .draw = draw_people, .series = "rank"},
    {.axes = {.row = 1, .cols = 2, .heading = "The first test image"}, .draw = draw_digit},
    {.axes = {.row = 1, .col = 2, .cols = 2, .heading = "Its distribution, equalized",
              .x = "equalized value (0.85: paper)", .y = "share of pixels not above",
              .legend = PLOT_LEGEND_TOP_LEFT}, .draw = draw_equalized}};
/* clang-format on */

/* ---- covariate shift and the chasing game, a page -------------------------------------------- */

/* Some points of both places, the best line of each, and the parabola. */
static void draw_shift(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    static const plot_style curve[MODELS] = {
        {PLOT_BLUE}, {PLOT_VERMILLION, .dash = PLOT_DASHED}, {PLOT_INK, .dash = PLOT_DOTTED}};
    enum { N = 81 };
    size_t m, i;
    (void)panel;
    for (m = 0; m < MODELS; m++) {
        const char *name = m == PARABOLA ? "parabola of the source" : model_name[m];
        const lab_series s = lab_get(r, SHIFT, 0, lab_format(r, "points_%s", model_name[m]));
        const lab_series c = lab_get(r, SHIFT, 0, lab_format(r, "fit_%s", model_name[m]));
        const plot_style dots = {curve[m].color, .alpha = 0.5,
                                 .marker = m == SOURCE ? PLOT_CIRCLE : PLOT_TRIANGLE};
        double x[N], y[N];
        for (i = 0; i < N && c.n == 3; i++) {
            x[i] = -2.4 + 4.8 * (double)i / (N - 1);
            y[i] = c.y[0] + c.y[1] * x[i] + c.y[2] * x[i] * x[i];
        }
        if (s.n) plot_scatter(p, name, s.x, s.y, s.n, dots);
        plot_line(p, name, x, y, i, curve[m]);
    }
}

/* Where w·h + b = 0, through the window. */
static void draw_boundary(lab_report *r, plot_panel *p, int h, plot_style style)
{
    const char *name = lab_format(r, "line_%d", h);
    const double a = lab_at(r, CHASE, 0, name, 0), b = lab_at(r, CHASE, 0, name, 1);
    const double c = lab_at(r, CHASE, 0, name, 2), n = a * a + b * b;
    const double x[2] = {-a * c / n - 40 * b, -a * c / n + 40 * b};
    const double y[2] = {-b * c / n + 40 * a, -b * c / n - 40 * a};
    plot_line(p, NULL, x, y, 2, style);
}

/* Before a step, after the unit's, after that of the layer before it too: H1, H2, H3. */
static void draw_chase(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    static const char *const name[STATES] = {"before", "the unit has moved", "its inputs too"};
    static const plot_style spots[2] = {
        {PLOT_BLUE, .alpha = 0.55, .marker = PLOT_CIRCLE, .size = 0.8},
        {PLOT_VERMILLION, .alpha = 0.55, .marker = PLOT_TRIANGLE, .size = 0.8}};
    const int h = panel->axes.col + 1;
    int i;
    plot_heading(p,
                 lab_format(r, "H_{%d}, %s: loss %.2f, %.0f %% right", h, name[h - 1],
                            lab_at(r, CHASE, 0, "loss", h), 100 * lab_at(r, CHASE, 0, "hits", h)));
    for (i = 0; i < 2; i++) {
        const lab_series s = lab_get(r, CHASE, 0, lab_format(r, i ? "other_%d" : "one_%d", h));
        plot_scatter(p, i ? "class 0" : "class 1", s.x, s.y, s.n, spots[i]);
    }
    if (h == 2) draw_boundary(r, p, 1, plot_thin(PLOT_INK));
    draw_boundary(r, p, h, plot_solid(PLOT_INK));
}

/* clang-format off */
#define GAME(place, reach)                                                                 \
    {.axes = {.row = 1, .col = place, .x = "input h_{1} of the unit", .y = "input h_{2}",  \
              .x_range = {-reach, reach}, .y_range = {-reach, reach}, .aspect = 1},        \
     .draw = draw_chase}

static const char *const models[3] = {"line of\nsource", "line of\ntarget", "parabola"};

static const lab_panel shift_panels[] = {
    {.axes = {.heading = "Same y of x, other x: another line", .x = "x", .y = "y",
              .y_range = {-4, 7.5}, .legend = PLOT_LEGEND_ABOVE}, .draw = draw_shift},
    {.axes = {.col = 1, .heading = "Who fits whom", .x_names = models, .x_count = 3,
              .y = "root mean square error", .legend = PLOT_LEGEND_ABOVE},
     .line = {{SHIFT, "error_source", "on the source", {PLOT_SKY}, LAB_BARS},
              {SHIFT, "error_target", "on the target", {PLOT_VERMILLION}, LAB_BARS}},
     .value = 2},
    {.axes = {.col = 2, .heading = "Whose step helps, against the rate", .x = "learning rate",
              .x_scale = PLOT_LOG10, .y = "change of the loss, decades",
              .legend = PLOT_LEGEND_TOP_LEFT},
     .line = {{CHASE, "own", "the unit alone (H2)", {PLOT_BLUE}},
              {CHASE, "both", "unit and inputs (H3)", {PLOT_VERMILLION, .dash = PLOT_DASHED}}},
     .mark = {{LAB_HLINE, .y = 0, .text = "", .color = PLOT_GREY, .dash = PLOT_DOTTED}}},
    GAME(0, 4), GAME(1, 4), GAME(2, 11)};

static const lab_page pages[] = {
    {"At a large rate the inputs of the last neuron move away; behind batch norm they stay",
     NULL, 1000, 0.84, "A chain of three neurons, one example (a, b) or four (c, d)",
     .seeds = 1, .no_data = 1, LAB_PANELS(chain_panels)},
    {"The gradient of a product does not know the second order of its step", "product", 620,
     0.84, "A product of five weights", .seeds = 1, .no_data = 1,
     LAB_PANELS(product_panels)},
    {"Standardized, one outlier stands out; equalized, a digit's grey values are not uniform",
     "scaling", 920, 0.84, "Ten people, the child as a ring; the first test image",
     .seeds = 1, .heights = {1, 1.35}, LAB_PANELS(scaling_panels)},
    {"The best line moves with the inputs; a large step is lost when they move", "shift", 1210,
     0.84,
     "a, b: a line fitted to y = x² + noise around -1 and around 1; c: the loss after a "
     "unit's step on the old inputs and on moved ones; d to f: one game at rate 5",
     .seeds = MANY, .no_data = 1, .heights = {1, 1.15},
     LAB_PANELS(shift_panels)}};
/* clang-format on */

LAB_PROGRAM(
    "26_worked_examples", "What do the small examples say by which batch norm is explained?",
    "Ten people; one digit; a chain of three neurons; a product of five weights; a line fitted to "
    "a parabola; a unit that chases its inputs",
    .revision = 6, .uses = LAB_USES_DATA)
