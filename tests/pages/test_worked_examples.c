/* test_worked_examples.c - the small examples by which batch norm is usually explained, computed
   by the library and compared with the numbers that the page of experiment 26 shows.

   Every function that ends in _tables makes the tables of one section of that page; the checks
   beside them compare with values worked out by hand, or by another road. --docs (make
   tables-docs, in double) writes the tables into the page. */
#include "page.h"
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"
#include "lab/draw.h"
#include <float.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define R(a) ((nrm_real)(a))
#define D(a) ((double)(a))

static const int in_double = sizeof(nrm_real) == sizeof(double);

/* What a result of size 1 may be off by: some places of a double, or of a float. */
static double places(double n)
{
    return n * (in_double ? DBL_EPSILON : (double)FLT_EPSILON);
}

static const char *num(double value, int decimals)
{
    return page_number(value, decimals);
}

/* What is 0 but for rounding is shown as 0. */
static const char *tiny(double value)
{
    return fabs(value) < places(1e5) ? "0" : page_small(value, 2);
}

/* ---- 1: ten people --------------------------------------------------------------------------- */

enum { PEOPLE = 10, FEATURES = 3 };
static const int people[PEOPLE][FEATURES] = {
    {150, 54, 26}, {60, 18, 4},   {160, 60, 48}, {177, 53, 16}, {180, 60, 24},
    {192, 90, 22}, {172, 76, 38}, {168, 83, 47}, {172, 64, 17}, {180, 90, 25},
};

typedef struct stats3 { /* of the three features */
    nrm_real mean[FEATURES], var[FEATURES];
} stats3;

static void people_as_reals(nrm_real *x)
{
    size_t i;
    for (i = 0; i < PEOPLE * FEATURES; i++) x[i] = R(people[i / FEATURES][i % FEATURES]);
}

/* Running statistics, from 0 and 1, after `times` updates by the ten people. */
static stats3 people_running(nrm_real *y, double new_weight, int biased, int times)
{
    nrm_real x[PEOPLE * FEATURES];
    nrm_acc mean[FEATURES], rstd[FEATURES];
    stats3 s = {{0, 0, 0}, {1, 1, 1}};
    nrm_running running;
    memset(&running, 0, sizeof running);
    running.mean = s.mean;
    running.var = s.var;
    running.new_weight = R(new_weight);
    running.biased = biased;
    people_as_reals(x);
    while (times-- > 0)
        OK(nrm_batchnorm_forward(y, mean, rstd, &running, x, NULL, NULL, NRM_TRAIN, NRM_EPS, PEOPLE,
                                 FEATURES, 1));
    return s;
}

static void people_row(const char *name, const nrm_real *value, int decimals)
{
    page_print("| %s | %s | %s | %s |\n", name, num(D(value[0]), decimals),
               num(D(value[1]), decimals), num(D(value[2]), decimals));
}

static void statistics_table(void)
{
    nrm_real y[PEOPLE * FEATURES];
    const stats3 v = people_running(y, 1, 1, 1), sample = people_running(y, 1, 0, 1);
    const stats3 once = people_running(y, 0.1, 0, 1), biased = people_running(y, 0.1, 1, 1);
    page_table("statistics", "| | height | weight | age |");
    people_row("mean μ, BN.1", v.mean, 3);
    people_row("variance v, by 10, BN.2", v.var, 3);
    people_row("sample variance, by 9", sample.var, 3);
    people_row("running mean after one update, BN.8", once.mean, 3);
    people_row("running variance after one update, BN.9", once.var, 3);
    people_row("the same with `biased`", biased.var, 3);
    CHECK_NEAR(D(v.mean[0]), 161.1, places(400));
    CHECK_NEAR(D(v.mean[1]), 64.8, places(200));
    CHECK_NEAR(D(v.mean[2]), 26.7, places(100));
    CHECK_NEAR(D(v.var[0]), 1255.29, places(4000));
    CHECK_NEAR(D(v.var[1]), 421.96, places(2000));
    CHECK_NEAR(D(v.var[2]), 175.01, places(500));
    CHECK_NEAR(D(sample.var[0]), 1394.767, 6e-4);
    CHECK_NEAR(D(sample.var[1]), 468.844, 6e-4);
    CHECK_NEAR(D(sample.var[2]), 194.456, 6e-4);
    CHECK_NEAR(D(once.mean[0]), 16.11, places(100));
    CHECK_NEAR(D(once.var[0]), 0.9 + 0.1 * 12552.9 / 9, places(1000));
    CHECK_NEAR(D(biased.var[0]), 0.9 + 125.529, places(1000));
}

/* The fraction of the ten that are not taller: what histogram equalization makes of a value. */
static double height_rank(int height)
{
    int count = 0, i;
    for (i = 0; i < PEOPLE; i++) count += people[i][0] <= height;
    return count / (double)PEOPLE;
}

static void scalings_table(void)
{
    static const double xhat[PEOPLE] = {-.3133, -2.8535, -.0310, .4488, .5334,
                                        .8721,  .3076,   .1947,  .3076, .5334};
    static const double min_max[PEOPLE] = {.6818, 0,     .7576, .8864, .9091,
                                           1,     .8485, .8182, .8485, .9091};
    nrm_real y[PEOPLE * FEATURES];
    int i;
    (void)people_running(y, 1, 1, 1);
    page_table("people",
               "| height | weight | age | x̂ height | x̂ weight | x̂ age | min-max height | rank |");
    for (i = 0; i < PEOPLE; i++) {
        const nrm_real *row = y + i * FEATURES;
        const double scaled = (people[i][0] - 60) / (192 - 60.0);
        page_print("| %d | %d | %d | %s | %s | %s | %s | %s |\n", people[i][0], people[i][1],
                   people[i][2], num(D(row[0]), 4), num(D(row[1]), 4), num(D(row[2]), 4),
                   num(scaled, 4), num(height_rank(people[i][0]), 1));
        CHECK_NEAR(D(row[0]), xhat[i], 5.1e-5);
        CHECK_NEAR(scaled, min_max[i], 5.1e-5);
    }
}

/* The first person judged by running statistics that have seen the batch so often. */
static void early_table(void)
{
    static const int times[] = {1, 2, 5, 10, 20, 50, 100};
    nrm_real y[PEOPLE * FEATURES], x[PEOPLE * FEATURES];
    size_t i;
    people_as_reals(x);
    page_table("early", "| updates | running mean | running variance | y of height 150, BN.11 |");
    for (i = 0; i < COUNT(times); i++) {
        stats3 s = people_running(y, 0.1, 0, times[i]);
        nrm_running running;
        memset(&running, 0, sizeof running);
        running.mean = s.mean;
        running.var = s.var;
        OK(nrm_batchnorm_forward(y, NULL, NULL, &running, x, NULL, NULL, NRM_INFER, NRM_EPS, PEOPLE,
                                 FEATURES, 1));
        page_print("| %d | %s | %s | %s |\n", times[i], num(D(s.mean[0]), 2), num(D(s.var[0]), 2),
                   num(D(y[0]), 3));
        CHECK_NEAR(D(s.mean[0]), 161.1 * (1 - pow(0.9, times[i])), places(4000));
    }
}

/* γ = √(v + ε) and β = μ of all ten undo the norm for these ten, and for no other batch. */
static void undo_table(void)
{
    nrm_real all[PEOPLE * FEATURES], fewer[PEOPLE * FEATURES], y[PEOPLE * FEATURES];
    nrm_real gamma[FEATURES];
    nrm_acc mean[FEATURES], rstd[FEATURES];
    const stats3 s = people_running(y, 1, 1, 1);
    nrm_real x[PEOPLE * FEATURES];
    size_t i, f;
    people_as_reals(x);
    for (f = 0; f < FEATURES; f++) gamma[f] = R(sqrt(D(s.var[f]) + D(NRM_EPS)));
    OK(nrm_batchnorm_forward(all, mean, rstd, NULL, x, gamma, s.mean, NRM_TRAIN, NRM_EPS, PEOPLE,
                             FEATURES, 1));
    for (i = 0; i < PEOPLE * FEATURES; i++) CHECK_NEAR(D(all[i]), D(x[i]), places(1000));
    memmove(x + FEATURES, x + 2 * FEATURES, (PEOPLE - 2) * FEATURES * sizeof *x);
    OK(nrm_batchnorm_forward(fewer, mean, rstd, NULL, x, gamma, s.mean, NRM_TRAIN, NRM_EPS,
                             PEOPLE - 1, FEATURES, 1));
    page_table("undo", "| height | y, batch of all ten | y, batch without the second |");
    for (i = 0; i < PEOPLE; i++)
        page_print("| %d | %s | %s |\n", people[i][0], num(D(all[i * FEATURES]), 1),
                   i == 1 ? "" : num(D(fewer[(i - (i > 1)) * FEATURES]), 1));
}

static void test_people(void)
{
    scalings_table();
    statistics_table();
    early_table();
    undo_table();
}

/* ---- 2: a chain of three neurons ------------------------------------------------------------- */

enum { A, B, C, NEURONS, BATCH = 4 };

typedef struct chain { /* z_k = w_k·h_k; h_A = x, and h of the next is z, or its batch norm */
    int norm;          /* batch norm behind a and b? */
    size_t N;
    nrm_real w[NEURONS], gamma[2], beta[2];
    nrm_real dw[NEURONS], dgamma[2], dbeta[2];
    nrm_real h[NEURONS][BATCH], z[NEURONS][BATCH], dz[NEURONS][BATCH];
    nrm_acc mean[2], rstd[2];
    double loss;
} chain;

static const double chain_x[BATCH] = {1, 0.5, 1.5, 2}; /* targets 2x; the first, or all */

static void chain_forward(chain *c)
{
    size_t k, n;
    for (n = 0; n < c->N; n++) c->h[A][n] = R(chain_x[n]);
    for (k = A; k < NEURONS; k++) {
        OK(nrm_linear_forward(c->z[k], c->h[k], &c->w[k], NULL, c->N, 1, 1));
        if (k == C) break;
        if (!c->norm)
            memcpy(c->h[k + 1], c->z[k], sizeof c->z[k]);
        else
            OK(nrm_batchnorm_forward(c->h[k + 1], &c->mean[k], &c->rstd[k], NULL, c->z[k],
                                     &c->gamma[k], &c->beta[k], NRM_TRAIN, NRM_EPS, c->N, 1, 1));
    }
    c->loss = 0;
    for (n = 0; n < c->N; n++) {
        const double error = D(c->z[C][n]) - 2 * chain_x[n];
        c->loss += error * error / (double)c->N;
        c->dz[C][n] = R(2 * error / (double)c->N);
    }
}

static void chain_gradient(chain *c)
{
    size_t k;
    chain_forward(c);
    memset(c->dw, 0, sizeof c->dw);
    memset(c->dgamma, 0, sizeof c->dgamma);
    memset(c->dbeta, 0, sizeof c->dbeta);
    for (k = C;; k--) {
        nrm_real dh[BATCH];
        OK(nrm_linear_backward(dh, &c->dw[k], NULL, c->dz[k], c->h[k], &c->w[k], c->N, 1, 1));
        if (k == A) break;
        if (!c->norm)
            memcpy(c->dz[k - 1], dh, sizeof dh);
        else
            OK(nrm_batchnorm_backward(c->dz[k - 1], &c->dgamma[k - 1], &c->dbeta[k - 1], dh,
                                      c->z[k - 1], &c->mean[k - 1], &c->rstd[k - 1],
                                      &c->gamma[k - 1], NRM_TRAIN, c->N, 1, 1));
    }
}

static void chain_step(chain *c, double rate)
{
    size_t k;
    for (k = A; k < NEURONS; k++) c->w[k] -= R(rate) * c->dw[k];
    for (k = A; c->norm && k < C; k++) {
        c->gamma[k] -= R(rate) * c->dgamma[k];
        c->beta[k] -= R(rate) * c->dbeta[k];
    }
}

/* With a norm, γ and β start where they undo it: the same function, the same loss. */
static chain chain_start(size_t N, int norm)
{
    chain c;
    size_t k, n;
    memset(&c, 0, sizeof c);
    c.N = N;
    c.w[A] = R(0.5);
    c.w[B] = 2;
    c.w[C] = R(1.5);
    chain_forward(&c);
    for (k = A; norm && k < C; k++) {
        double mean = 0, var = 0;
        for (n = 0; n < N; n++) mean += D(c.z[k][n]) / (double)N;
        for (n = 0; n < N; n++) var += pow(D(c.z[k][n]) - mean, 2) / (double)N;
        c.gamma[k] = R(sqrt(var + D(NRM_EPS)));
        c.beta[k] = R(mean);
    }
    c.norm = norm;
    return c;
}

/* G' of neuron k: its gradient after the step of all that comes before it, and of nothing else. */
static double chain_moved_gradient(const chain *before, size_t k, double rate)
{
    chain moved = *before, stepped = *before;
    size_t j;
    chain_gradient(&stepped);
    chain_step(&stepped, rate);
    for (j = A; j < k; j++) {
        moved.w[j] = stepped.w[j];
        moved.gamma[j] = stepped.gamma[j];
        moved.beta[j] = stepped.beta[j];
    }
    chain_gradient(&moved);
    return D(moved.dw[k]);
}

static void walk_table(void)
{
    static const char *const name[] = {"a", "b", "c"};
    chain c = chain_start(1, 0);
    int pass;
    size_t k;
    page_table("walk",
               "| step | input of the neuron | ∂L/∂z | ∂L/∂w = ∂L/∂z · input | w before | w after "
               "|");
    for (pass = 1; pass <= 2; pass++) {
        chain before;
        chain_gradient(&c);
        before = c;
        chain_step(&c, 0.1);
        for (k = NEURONS; k-- > A;)
            page_print("| %d%s | %s | %s | %s | %s | %s |\n", pass, name[k],
                       num(D(before.h[k][0]), 4), num(D(before.dz[k][0]), 4),
                       num(D(before.dw[k]), 5), num(D(before.w[k]), 4), num(D(c.w[k]), 5));
        if (pass == 2) continue;
        CHECK_NEAR(D(before.dw[C]), -1, places(8));
        CHECK_NEAR(D(before.dw[B]), -0.75, places(8));
        CHECK_NEAR(D(before.dw[A]), -3, places(8));
        CHECK_NEAR(D(c.w[A]), 0.8, places(8));
        CHECK_NEAR(D(c.w[B]), 2.075, places(8));
        CHECK_NEAR(D(c.w[C]), 1.6, places(8));
    }
}

static void forward_table(void)
{
    static const char *const when[] = {"at the start", "after one step", "after two"};
    chain c = chain_start(1, 0);
    int pass;
    page_table("forward", "| | w_a | w_b | w_c | z_a | z_b | z_c | L |");
    for (pass = 0; pass < 3; pass++) {
        chain_gradient(&c);
        page_print("| %s | %s | %s | %s | %s | %s | %s | %s |\n", when[pass], num(D(c.w[A]), 4),
                   num(D(c.w[B]), 4), num(D(c.w[C]), 4), num(D(c.z[A][0]), 4),
                   num(D(c.z[B][0]), 4), num(D(c.z[C][0]), 4), num(c.loss, 5));
        if (pass == 0) CHECK_NEAR(c.loss, 0.25, places(4));
        if (pass == 1) CHECK_NEAR(c.loss, 0.430336, places(16));
        if (pass == 1) CHECK_NEAR(D(c.z[B][0]), 1.66, places(8));
        chain_step(&c, 0.1);
    }
}

/* Gradients of weights when each weight is changed as soon as its gradient is known. */
static void sequential_gradients(chain *c, double rate)
{
    size_t k;
    chain_gradient(c);
    for (k = C;; k--) {
        c->dw[k] = 0;
        OK(nrm_linear_backward(NULL, &c->dw[k], NULL, c->dz[k], c->h[k], &c->w[k], 1, 1, 1));
        c->w[k] -= R(rate) * c->dw[k];
        if (k == A) return;
        OK(nrm_linear_backward(c->dz[k - 1], NULL, NULL, c->dz[k], NULL, &c->w[k], 1, 1, 1));
    }
}

static void order_and_shift_table(void)
{
    static const char *const name[] = {"a", "b", "c"};
    chain right = chain_start(1, 0), wrong = right;
    size_t k;
    chain_gradient(&right);
    sequential_gradients(&wrong, 0.1);
    page_table("shift",
               "| weight | G: gradient, all weights old | in sequence (wrong) | G′: earlier "
               "weights new | ‖G′ − G‖ |");
    for (k = NEURONS; k-- > A;) {
        const double moved = chain_moved_gradient(&right, k, 0.1);
        page_print("| w_%s | %s | %s | %s | %s |\n", name[k], num(D(right.dw[k]), 4),
                   num(D(wrong.dw[k]), 4), num(moved, 4), num(fabs(moved - D(right.dw[k])), 4));
    }
    CHECK_NEAR(D(wrong.dw[B]), -0.8, places(8));
    CHECK_NEAR(chain_moved_gradient(&right, C, 0.1), 1.6268, places(16));
    CHECK_NEAR(chain_moved_gradient(&right, A, 0.1), -3, places(16));
}

static double chain_loss_after(chain c, double rate)
{
    chain_gradient(&c);
    chain_step(&c, rate);
    chain_forward(&c);
    return c.loss;
}

static void rates_table(void)
{
    static const double rate[] = {0.1, 0.05, 0.03, 0.01, 0.001};
    const chain one = chain_start(1, 0), plain = chain_start(BATCH, 0);
    const chain normed = chain_start(BATCH, 1);
    chain c = one;
    double squares;
    size_t i;
    chain_gradient(&c);
    squares = pow(D(c.dw[A]), 2) + pow(D(c.dw[B]), 2) + pow(D(c.dw[C]), 2);
    CHECK_NEAR(squares, 10.5625, places(32));
    page_table("rates",
               "| α | L, promised: L − α·‖∇L‖² | L after the step | G′ of w_c | batch of 4: L "
               "after the step | with batch norm |");
    for (i = 0; i < COUNT(rate); i++)
        page_print("| %g | %s | %s | %s | %s | %s |\n", rate[i],
                   num(0.25 - rate[i] * squares, 4), num(chain_loss_after(one, rate[i]), 4),
                   num(chain_moved_gradient(&one, C, rate[i]), 4),
                   num(chain_loss_after(plain, rate[i]), 4),
                   num(chain_loss_after(normed, rate[i]), 4));
}

static void input_of_c(const chain *c, double *mean, double *sd)
{
    size_t n;
    *mean = *sd = 0;
    for (n = 0; n < c->N; n++) *mean += D(c->h[C][n]) / (double)c->N;
    for (n = 0; n < c->N; n++) *sd += pow(D(c->h[C][n]) - *mean, 2) / (double)c->N;
    *sd = sqrt(*sd);
}

static void batch_table(void)
{
    int norm;
    page_table("batch",
               "| batch of 4 | L | L after one step | L after two | input of c, mean ± sd | the "
               "same after one step | G of w_c | G′ of w_c |");
    for (norm = 0; norm < 2; norm++) {
        const chain start = chain_start(BATCH, norm);
        chain c = start, once;
        double mean[2], sd[2];
        chain_gradient(&c);
        input_of_c(&c, &mean[0], &sd[0]);
        once = c;
        chain_step(&once, 0.1);
        chain_gradient(&once);
        input_of_c(&once, &mean[1], &sd[1]);
        page_print("| %s | %s | %s | %s | %s ± %s | %s ± %s | %s | %s |\n",
                   norm ? "batch norm after a and b" : "no norm", num(c.loss, 4),
                   num(once.loss, 4), num(chain_loss_after(once, 0.1), 4), num(mean[0], 4),
                   num(sd[0], 4), num(mean[1], 4), num(sd[1], 4), num(D(c.dw[C]), 4),
                   num(chain_moved_gradient(&start, C, 0.1), 4));
        CHECK_NEAR(c.loss, 0.46875, places(32));
    }
}

static void parameters_table(void)
{
    chain before = chain_start(BATCH, 1), after;
    size_t k;
    static const char *const name[] = {"a", "b", "c"};
    chain_gradient(&before);
    after = before;
    chain_step(&after, 0.1);
    page_table("parameters", "| parameter | value | gradient | value after the step |");
    for (k = A; k < NEURONS; k++) {
        page_print("| w_%s | %s | %s | %s |\n", name[k], num(D(before.w[k]), 4),
                   num(D(before.dw[k]), 3), num(D(after.w[k]), 3));
        if (k == C) break;
        page_print("| γ_%s | %s | %s | %s |\n", name[k], num(D(before.gamma[k]), 4),
                   num(D(before.dgamma[k]), 3), num(D(after.gamma[k]), 3));
        page_print("| β_%s | %s | %s | %s |\n", name[k], num(D(before.beta[k]), 4),
                   num(D(before.dbeta[k]), 3), num(D(after.beta[k]), 3));
    }
    for (k = A; k < C; k++) CHECK_NEAR(D(before.dw[k]), 0, 2e-4); /* of the size of ε */
    CHECK_NEAR(D(before.dgamma[A]), 0, 2e-4);
    CHECK_NEAR(D(before.dbeta[A]), 0, places(100));
    CHECK(fabs(D(before.dgamma[B])) > 0.5 && fabs(D(before.dbeta[B])) > 0.5);
}

/* The weights before a norm may go where they like: c does not see it. */
static void test_norm_hides_weights(void)
{
    chain c = chain_start(BATCH, 1), moved = c;
    double mean[2], sd[2];
    chain_forward(&c);
    moved.w[A] = R(0.8);
    moved.w[B] = R(2.075);
    chain_forward(&moved);
    input_of_c(&c, &mean[0], &sd[0]);
    input_of_c(&moved, &mean[1], &sd[1]);
    CHECK_NEAR(mean[0], mean[1], places(16));
    CHECK_NEAR(sd[0], sd[1], 2e-4);
    CHECK_NEAR(c.loss, moved.loss, 1e-3);
}

static void test_chain(void)
{
    walk_table();
    forward_table();
    order_and_shift_table();
    rates_table();
    batch_table();
    parameters_table();
}

/* ---- 3: a product of five weights ------------------------------------------------------------ */

enum { FACTORS = 5 };
static const double factor[FACTORS] = {1.5, -2, 1.2, 2, 0.8};

/* y = w5·…·w1·x and g, the gradient of y, by five linear layers of one weight. */
static double product_gradient(double *g)
{
    nrm_real h[FACTORS + 1], w[FACTORS], dw[FACTORS] = {0, 0, 0, 0, 0}, dy = 1, dx;
    size_t k;
    h[0] = 1;
    for (k = 0; k < FACTORS; k++) {
        w[k] = R(factor[k]);
        OK(nrm_linear_forward(&h[k + 1], &h[k], &w[k], NULL, 1, 1, 1));
    }
    for (k = FACTORS; k-- > 0; dy = dx)
        OK(nrm_linear_backward(&dx, &dw[k], NULL, &dy, &h[k], &w[k], 1, 1, 1));
    for (k = 0; k < FACTORS; k++) g[k] = D(dw[k]);
    return D(h[FACTORS]);
}

/* The product of all (w - ε·g), as a polynomial in ε: coefficient k is the part of order k. */
static void product_orders(double *coefficient, const double *g)
{
    int i, k;
    coefficient[0] = 1;
    for (k = 1; k <= FACTORS; k++) coefficient[k] = 0;
    for (i = 0; i < FACTORS; i++)
        for (k = i + 1; k >= 0; k--)
            coefficient[k] = factor[i] * coefficient[k] - (k > 0 ? g[i] * coefficient[k - 1] : 0);
}

static double product_after(double eps, const double *g)
{
    double y = 1;
    int i;
    for (i = 0; i < FACTORS; i++) y *= factor[i] - eps * g[i];
    return y;
}

static void orders_table(void)
{
    double g[FACTORS], coefficient[FACTORS + 1], sum = 0;
    const double y = product_gradient(g);
    int k;
    product_orders(coefficient, g);
    page_table("orders", "| order in ε | terms | their sum | y up to here |");
    for (k = 0; k <= FACTORS; k++) {
        static const int binomial[] = {1, 5, 10, 10, 5, 1};
        const double part = coefficient[k] * pow(0.05, k);
        sum += part;
        page_print("| %d | %d | %s | %s |\n", k, binomial[k], num(part, 5), num(sum, 5));
        if (k == 0) CHECK_NEAR(sum, -5.76, 1e-6);
        if (k == 1) CHECK_NEAR(sum, -11.07072, 1e-5);
        if (k == 2) CHECK_NEAR(sum, -12.74352, 1e-5);
    }
    CHECK_NEAR(y, -5.76, places(16));
    CHECK_NEAR(sum, product_after(0.05, g), places(100));
    CHECK_NEAR(sum, -12.99183, 1e-5);
}

/* The second order: one term for each pair of weights, ε²·gᵢ·gⱼ times the three others. */
static void pairs_table(void)
{
    double g[FACTORS], coefficient[FACTORS + 1], sum = 0;
    int i, j, k;
    (void)product_gradient(g);
    product_orders(coefficient, g);
    page_table("pairs", "| | w₂ | w₃ | w₄ | w₅ |");
    for (i = 0; i < FACTORS - 1; i++) {
        page_print("| w%s |", i == 0 ? "₁" : i == 1 ? "₂" : i == 2 ? "₃" : "₄");
        for (j = 1; j < FACTORS; j++) {
            double term = 0.05 * 0.05 * g[i] * g[j];
            for (k = 0; k < FACTORS; k++) term *= k == i || k == j ? 1 : factor[k];
            page_print(j > i ? " %s |" : " |", num(term, 5));
            if (j > i) sum += term;
        }
        page_print("\n");
    }
    CHECK_NEAR(sum, coefficient[2] * 0.05 * 0.05, places(100));
}

static void steps_table(void)
{
    static const double eps[] = {0.1, 0.05, 0.02, 0.01, 0.001};
    double g[FACTORS], coefficient[FACTORS + 1];
    size_t i;
    const double y = product_gradient(g);
    product_orders(coefficient, g);
    page_table("steps", "| ε | y after the step | first order | second order | the rest |");
    for (i = 0; i < COUNT(eps); i++) {
        const double e = eps[i], exact = product_after(e, g);
        const double first = coefficient[1] * e, second = coefficient[2] * e * e;
        page_print("| %g | %s | %s | %s | %s |\n", e, num(exact, 5), num(first, 5),
                   num(second, 5), num(exact - y - first - second, 5));
    }
}

static void test_product(void)
{
    double g[FACTORS];
    (void)product_gradient(g);
    page_table("factors", "| | w₁ | w₂ | w₃ | w₄ | w₅ |");
    page_print("| w | %g | %g | %g | %g | %g |\n", factor[0], factor[1], factor[2], factor[3],
               factor[4]);
    page_print("| g = ∂y/∂w | %s | %s | %s | %s | %s |\n", num(g[0], 2), num(g[1], 2),
               num(g[2], 2), num(g[3], 2), num(g[4], 2));
    orders_table();
    pairs_table();
    steps_table();
}

/* ---- 4: a tanh network, 5-100-5 -------------------------------------------------------------- */

enum { INPUTS = 5, HIDDEN = 100, CLASSES = 5, TRAINING = 2000, PROBES = 1000, SMALL_BATCH = 32 };

static nrm_real task_x[(TRAINING + PROBES) * INPUTS]; /* the probes stand last */
static int task_label[TRAINING + PROBES];

/* x ~ N(0, 1), and the class is the largest of five fixed random mixtures of x. */
static void make_task(void)
{
    nrm_real mix[INPUTS * CLASSES], score[CLASSES];
    nrm_rng rng;
    size_t i;
    int c;
    nrm_rng_seed(&rng, 1, 100);
    for (i = 0; i < INPUTS * CLASSES; i++) mix[i] = draw_normal(&rng);
    for (i = 0; i < COUNT(task_x); i++) task_x[i] = draw_normal(&rng);
    for (i = 0; i < COUNT(task_label); i++) {
        OK(nrm_linear_forward(score, task_x + i * INPUTS, mix, NULL, 1, INPUTS, CLASSES));
        for (c = 1; c < CLASSES; c++)
            if (score[c] > score[task_label[i]]) task_label[i] = c; /* which was 0 */
    }
}

static const nrm_real *probe_x(void)
{
    return task_x + TRAINING * INPUTS;
}

static const int *probe_labels(void)
{
    return task_label + TRAINING;
}

/* All weights and the last bias ~ N(0, 1); then the first weights times `scale`, and the bias of
   the hidden layer ~ N(0, spread²). Release with free(). */
static void *make_net(nrm_mlp **net, int norm, double scale, double spread)
{
    nrm_mlp_layer layer[2];
    nrm_mlp_spec spec = nrm_mlp_defaults();
    nrm_rng rng;
    void *block;
    size_t i;
    memset(layer, 0, sizeof layer);
    layer[0].width = HIDDEN;
    layer[0].activation = NRM_TANH;
    layer[0].norm = norm;
    layer[0].bias = 1;
    layer[1].width = CLASSES;
    layer[1].bias = 1;
    spec.inputs = INPUTS;
    spec.layers = 2;
    spec.layer = layer;
    spec.max_batch = PROBES;
    spec.init = NRM_INIT_GAUSSIAN;
    spec.init_std = 1;
    spec.seed = 42;
    block = malloc(nrm_mlp_bytes(&spec));
    if (block == NULL || nrm_mlp_init(net, block, nrm_mlp_bytes(&spec), &spec) != NRM_OK) exit(2);
    nrm_rng_seed(&rng, 42, 101);
    for (i = 0; i < INPUTS * HIDDEN; i++) (*net)->state[0].W[i] *= R(scale);
    for (i = 0; i < CLASSES; i++) (*net)->state[1].b[i] = draw_normal(&rng);
    for (i = 0; i < HIDDEN; i++) (*net)->state[0].b[i] = R(spread) * draw_normal(&rng);
    return block;
}

typedef struct saturation { /* of the hidden layer, over all probes */
    double saturated;       /* fraction of outputs beyond ±0.97                        */
    int dead;               /* units that are saturated for every probe                */
    double gradient;        /* root of the mean square of the first weights' gradients */
} saturation;

static saturation measure(nrm_mlp *net)
{
    const nrm_mlp_state *s = &net->state[0];
    saturation m = {0, 0, 0};
    size_t unit, n, i;
    OK(nrm_mlp_gradient(net, NULL, probe_x(), probe_labels(), PROBES, NRM_TRAIN));
    for (unit = 0; unit < HIDDEN; unit++) {
        int count = 0;
        for (n = 0; n < PROBES; n++) count += fabs(D(s->act_out[n * HIDDEN + unit])) > 0.97;
        m.saturated += count / (double)(PROBES * HIDDEN);
        m.dead += count == PROBES;
    }
    for (i = 0; i < INPUTS * HIDDEN; i++) m.gradient += pow(D(s->dW[i]), 2) / (INPUTS * HIDDEN);
    m.gradient = sqrt(m.gradient);
    return m;
}

static void saturation_table(void)
{
    static const struct {
        const char *name;
        double scale, spread;
    } start[] = {{"W₁ ~ N(0, 0.2²)", 0.2, 0}, {"W₁ ~ N(0, 1)", 1, 0},
                 {"W₁ ~ N(0, 5²)", 5, 0},     {"W₁ ~ N(0, 25²)", 25, 0},
                 {"W₁ ~ N(0, 1), b₁ ~ N(0, 10²)", 1, 10}};
    size_t i;
    int norm;
    page_table("saturation",
               "| start | saturated | dead of 100 | rms ∂L/∂W₁ | with batch norm: saturated | "
               "dead | rms ∂L/∂W₁ |");
    for (i = 0; i < COUNT(start); i++) {
        page_print("| %s", start[i].name);
        for (norm = NRM_NO_NORM; norm <= NRM_BATCH_NORM; norm++) {
            nrm_mlp *net;
            void *block = make_net(&net, norm, start[i].scale, start[i].spread);
            const saturation m = measure(net);
            page_print(" | %s | %d | %s", num(m.saturated, 3), m.dead, num(m.gradient, 5));
            if (norm == NRM_BATCH_NORM) {
                CHECK_NEAR(m.saturated, 0.0364, 0.015); /* P(|tanh N(0, 1)| > 0.97) */
                CHECK_INT(m.dead, 0);
            }
            free(block);
        }
        page_print(" |\n");
    }
}

/* What a bias ~ N(0, 10²) before the norm changes: the largest change of a logit, and the largest
   gradient of that bias. In infer mode the running statistics are those of 200 batches without. */
static void bias_row(const char *name, int norm, int mode)
{
    static nrm_real before[PROBES * CLASSES];
    nrm_mlp *net;
    void *block = make_net(&net, norm, 1, 0);
    nrm_rng rng;
    double change = 0, gradient = 0;
    size_t i;
    nrm_rng_seed(&rng, 7, 102);
    for (i = 0; i < 200; i++) {
        const size_t at = i * SMALL_BATCH % (TRAINING - SMALL_BATCH);
        OK(nrm_mlp_forward(net, task_x + at * INPUTS, SMALL_BATCH, NRM_TRAIN));
    }
    OK(nrm_mlp_forward(net, probe_x(), PROBES, mode));
    memcpy(before, net->logits, sizeof before);
    for (i = 0; i < HIDDEN; i++) net->state[0].b[i] = 10 * draw_normal(&rng);
    OK(nrm_mlp_gradient(net, NULL, probe_x(), probe_labels(), PROBES,
                        mode == NRM_INFER ? NRM_FROZEN : mode));
    for (i = 0; i < PROBES * CLASSES; i++)
        change = fmax(change, fabs(D(net->logits[i]) - D(before[i])));
    for (i = 0; i < HIDDEN; i++) gradient = fmax(gradient, fabs(D(net->state[0].db[i])));
    page_print("| %s | %s | %s |\n", name, tiny(change), tiny(gradient));
    if (norm == NRM_BATCH_NORM && mode == NRM_TRAIN) {
        CHECK_NEAR(change, 0, places(1e5)); /* MLP.3, for logits up to 30 or so */
        CHECK_NEAR(gradient, 0, places(1e3));
    }
    free(block);
}

static void bias_table(void)
{
    page_table("bias", "| norm before tanh | largest change of a logit | largest ∂L/∂b₁ |");
    bias_row("none", NRM_NO_NORM, NRM_TRAIN);
    bias_row("layer norm", NRM_LAYER_NORM, NRM_TRAIN);
    bias_row("batch norm", NRM_BATCH_NORM, NRM_TRAIN);
    bias_row("batch norm, statistics fixed", NRM_BATCH_NORM, NRM_INFER);
}

static void train(nrm_mlp *net, int steps, nrm_acc *first_loss)
{
    nrm_real x[SMALL_BATCH * INPUTS];
    int labels[SMALL_BATCH], step;
    nrm_acc loss;
    nrm_rng rng;
    size_t n;
    nrm_rng_seed(&rng, 5, 103);
    for (step = 0; step < steps; step++) {
        for (n = 0; n < SMALL_BATCH; n++) {
            const size_t i = nrm_rng_below(&rng, TRAINING);
            memcpy(x + n * INPUTS, task_x + i * INPUTS, INPUTS * sizeof *x);
            labels[n] = task_label[i];
        }
        OK(nrm_mlp_train_step(net, &loss, x, labels, SMALL_BATCH));
        if (step == 0) *first_loss = loss;
    }
}

/* In double only: 5000 steps in float are other numbers. */
static void training_table(void)
{
    static const struct {
        const char *name;
        int norm;
        double scale, spread;
    } arm[] = {{"no norm", NRM_NO_NORM, 1, 0},
               {"batch norm", NRM_BATCH_NORM, 1, 0},
               {"no norm, W₁ ~ N(0, 25²)", NRM_NO_NORM, 25, 0},
               {"batch norm, W₁ ~ N(0, 25²)", NRM_BATCH_NORM, 25, 0},
               {"no norm, b₁ ~ N(0, 10²)", NRM_NO_NORM, 1, 10},
               {"batch norm, b₁ ~ N(0, 10²)", NRM_BATCH_NORM, 1, 10}};
    size_t i;
    page_table("training",
               "| start | loss of the first batch | test loss | test accuracy | saturated | dead "
               "of 100 |");
    for (i = 0; i < COUNT(arm); i++) {
        nrm_mlp *net;
        void *block = make_net(&net, arm[i].norm, arm[i].scale, arm[i].spread);
        nrm_acc first = 0, loss = 0, accuracy = 0;
        saturation m;
        train(net, 5000, &first);
        OK(nrm_mlp_eval(net, &loss, &accuracy, probe_x(), probe_labels(), PROBES));
        m = measure(net);
        page_print("| %s | %s | %s | %s | %s | %d |\n", arm[i].name, num(D(first), 2),
                   num(D(loss), 3), num(D(accuracy), 3), num(m.saturated, 3), m.dead);
        CHECK(first > 3 && D(accuracy) > 0.85);
        free(block);
    }
}

/* The layer as some tutorials write it: the standard deviation by N - 1, and no ε at all. That is
   the library's with γ times √((N - 1)/N), and an ε too small to count. */
static void test_sample_deviation(void)
{
    nrm_real a[SMALL_BATCH * HIDDEN], y[SMALL_BATCH * HIDDEN], gamma[HIDDEN];
    nrm_acc mean[HIDDEN], rstd[HIDDEN];
    nrm_mlp *net;
    void *block = make_net(&net, NRM_NO_NORM, 1, 0);
    size_t n, c;
    OK(nrm_linear_forward(a, task_x, net->state[0].W, NULL, SMALL_BATCH, INPUTS, HIDDEN));
    for (c = 0; c < HIDDEN; c++) gamma[c] = R(sqrt((SMALL_BATCH - 1.0) / SMALL_BATCH));
    OK(nrm_batchnorm_forward(y, mean, rstd, NULL, a, gamma, NULL, NRM_TRAIN, R(1e-30), SMALL_BATCH,
                             HIDDEN, 1));
    for (c = 0; c < HIDDEN; c++) {
        double m = 0, s = 0;
        for (n = 0; n < SMALL_BATCH; n++) m += D(a[n * HIDDEN + c]) / SMALL_BATCH;
        for (n = 0; n < SMALL_BATCH; n++) s += pow(D(a[n * HIDDEN + c]) - m, 2) / (SMALL_BATCH - 1);
        for (n = 0; n < SMALL_BATCH; n++)
            CHECK_NEAR(D(y[n * HIDDEN + c]), (D(a[n * HIDDEN + c]) - m) / sqrt(s), places(64));
    }
    free(block);
}

/* c4: the mean of the sample standard deviation of m normal numbers of variance 1. */
static double mean_of_deviation(int m)
{
    return sqrt(2.0 / (m - 1)) * exp(lgamma(m / 2.0) - lgamma((m - 1) / 2.0));
}

/* Averages of s and of s² over 2000 batches of normal numbers, in 100 channels each. */
static void deviation_row(int m)
{
    static nrm_real x[SMALL_BATCH * HIDDEN], y[SMALL_BATCH * HIDDEN];
    nrm_real mean[HIDDEN], var[HIDDEN];
    nrm_acc batch_mean[HIDDEN], rstd[HIDDEN];
    nrm_running running;
    nrm_rng rng;
    double of_s = 0, of_var = 0;
    int batch;
    size_t i;
    memset(&running, 0, sizeof running);
    running.mean = mean;
    running.var = var;
    running.cumulative = 1;
    memset(mean, 0, sizeof mean);
    memset(var, 0, sizeof var);
    nrm_rng_seed(&rng, 11, 104);
    for (batch = 0; batch < 2000; batch++) {
        for (i = 0; i < (size_t)m * HIDDEN; i++) x[i] = draw_normal(&rng);
        OK(nrm_batchnorm_forward(y, batch_mean, rstd, &running, x, NULL, NULL, NRM_TRAIN, R(1e-30),
                                 (size_t)m, HIDDEN, 1));
        for (i = 0; i < HIDDEN; i++) of_s += sqrt(m / (m - 1.0)) / D(rstd[i]) / (2000.0 * HIDDEN);
    }
    for (i = 0; i < HIDDEN; i++) of_var += D(var[i]) / HIDDEN;
    page_print("| %d | %s | %s | %s |\n", m, num(sqrt(of_var), 4), num(of_s, 4),
               num(mean_of_deviation(m), 4));
    CHECK_NEAR(of_s, mean_of_deviation(m), 4e-3);
    CHECK_NEAR(sqrt(of_var), 1, 4e-3);
}

static void deviation_table(void)
{
    page_table("deviation",
               "| batch | root of the average variance | average standard deviation | expected: "
               "c₄ |");
    deviation_row(4);
    deviation_row(8);
    deviation_row(32);
    CHECK_NEAR(mean_of_deviation(32), 0.99197, 1e-5);
    CHECK_NEAR(mean_of_deviation(4), 0.921, 5e-4);
    CHECK_NEAR(pow(0.999, 1000), 0.368, 5e-4);
}

static void test_tanh_network(void)
{
    make_task();
    saturation_table();
    bias_table();
    if (in_double)
        training_table();
    else
        page_skip("training");
    deviation_table();
}

/* ---- 5: batch norm of three examples, node by node ------------------------------------------- */

enum {
    X1, X2, X3, GAMMA, BETA,  /* leaves */
    MU, C1, C2, C3, V, RSTD,  /* μ, cᵢ = xᵢ - μ, v, r = 1/√(v + ε) */
    H1, H2, H3, Y1, Y2, Y3, L, NODES
};

static const double leaf[5] = {1, 2, 6, 2, -1}, target[3] = {0, -1, 1};

/* All nodes in order. Node number `nudged` is moved by `by` when its turn comes, and what follows
   sees it moved: so the derivative by any node can be measured. */
static void graph_forward(double *a, int nudged, double by)
{
    int k;
    for (k = 0; k < NODES; k++) {
        switch (k) {
        case MU: a[k] = (a[X1] + a[X2] + a[X3]) / 3; break;
        case C1: case C2: case C3: a[k] = a[X1 + k - C1] - a[MU]; break;
        case V: a[k] = (a[C1] * a[C1] + a[C2] * a[C2] + a[C3] * a[C3]) / 3; break;
        case RSTD: a[k] = 1 / sqrt(a[V] + 1e-5); break;
        case H1: case H2: case H3: a[k] = a[C1 + k - H1] * a[RSTD]; break;
        case Y1: case Y2: case Y3: a[k] = a[GAMMA] * a[H1 + k - Y1] + a[BETA]; break;
        case L:
            a[k] = (pow(a[Y1] - target[0], 2) + pow(a[Y2] - target[1], 2) +
                    pow(a[Y3] - target[2], 2)) / 2;
            break;
        default: a[k] = leaf[k]; break;
        }
        if (k == nudged) a[k] += by;
    }
}

/* d[k] = ∂L/∂(node k): each node hands its own to those it was made of. */
static void graph_backward(double *d, const double *a)
{
    int i;
    for (i = 0; i < NODES; i++) d[i] = 0;
    d[L] = 1;
    for (i = 0; i < 3; i++) {
        d[Y1 + i] = d[L] * (a[Y1 + i] - target[i]);
        d[BETA] += d[Y1 + i];               /* BN.12 */
        d[GAMMA] += d[Y1 + i] * a[H1 + i];  /* BN.13 */
        d[H1 + i] = a[GAMMA] * d[Y1 + i];   /* BN.14 */
        d[RSTD] += d[H1 + i] * a[C1 + i];
    }
    d[V] = d[RSTD] * -0.5 * pow(a[RSTD], 3);
    for (i = 0; i < 3; i++) {
        d[C1 + i] = d[H1 + i] * a[RSTD] + d[V] * 2 * a[C1 + i] / 3;
        d[MU] -= d[C1 + i];
    }
    for (i = 0; i < 3; i++) d[X1 + i] = d[C1 + i] + d[MU] / 3;
}

static double graph_difference(int node)
{
    const double h = 1e-4;
    double up[NODES], down[NODES];
    graph_forward(up, node, h);
    graph_forward(down, node, -h);
    return (up[L] - down[L]) / (2 * h);
}

static void nodes_tables(const double *a, const double *d)
{
    static const struct {
        int node, count;
        const char *name, *forward, *backward;
    } row[] = {
        {X1, 3, "x", "given", "∂L/∂cᵢ + ∂L/∂μ/3"},
        {MU, 1, "μ", "⟨x⟩, BN.1", "−∑ ∂L/∂cᵢ"},
        {C1, 3, "c", "xᵢ − μ", "r·∂L/∂x̂ᵢ + 2·cᵢ/3·∂L/∂v"},
        {V, 1, "v", "⟨c²⟩, BN.2", "−½·r³·∂L/∂r"},
        {RSTD, 1, "r", "1/√(v + ε), BN.3", "∑ cᵢ·∂L/∂x̂ᵢ"},
        {H1, 3, "x̂", "cᵢ·r, BN.4", "γ·dyᵢ, BN.14"},
        {GAMMA, 1, "γ", "given", "∑ dyᵢ·x̂ᵢ, BN.13"},
        {BETA, 1, "β", "given", "∑ dyᵢ, BN.12"},
        {Y1, 3, "y", "γ·x̂ᵢ + β, BN.5", "yᵢ − tᵢ"},
        {L, 1, "L", "½·∑ (yᵢ − tᵢ)²", "1"},
    };
    static const char *const index[] = {"₁", "₂", "₃"};
    size_t i;
    int k;
    page_table("nodes", "| node | how it is made | value | ∂L/∂node | how that is made |");
    for (i = 0; i < COUNT(row); i++)
        for (k = 0; k < row[i].count; k++)
            page_print("| %s%s | %s | %s | %s | %s |\n", row[i].name,
                       row[i].count > 1 ? index[k] : "", row[i].forward,
                       num(a[row[i].node + k], 6), num(d[row[i].node + k], 6), row[i].backward);
}

/* BN.15 to BN.18: what one example does to the statistics and to all normalized values. */
static void jacobian_table(const double *a)
{
    double plain[NODES], moved[NODES];
    int i, j;
    graph_forward(plain, -1, 0);
    page_table("jacobian", "| | ∂μ, BN.15 | ∂v, BN.16 | ∂r, BN.17 | ∂x̂₁, BN.18 | ∂x̂₂ | ∂x̂₃ |");
    for (i = 0; i < 3; i++) {
        const double h = 1e-6, dv = 2 * a[C1 + i] / 3, dr = -a[RSTD] * a[RSTD] * a[H1 + i] / 3;
        graph_forward(moved, X1 + i, h);
        CHECK_NEAR((moved[MU] - plain[MU]) / h, 1 / 3.0, 1e-5);
        CHECK_NEAR((moved[V] - plain[V]) / h, dv, 1e-5);
        CHECK_NEAR((moved[RSTD] - plain[RSTD]) / h, dr, 1e-5);
        page_print("| by x%s | %s | %s | %s", i == 0 ? "₁" : i == 1 ? "₂" : "₃", num(1 / 3.0, 6),
                   num(dv, 6), num(dr, 6));
        for (j = 0; j < 3; j++) {
            const double dh = a[RSTD] * ((i == j) - 1 / 3.0 - a[H1 + i] * a[H1 + j] / 3);
            CHECK_NEAR((moved[H1 + j] - plain[H1 + j]) / h, dh, 1e-5);
            page_print(" | %s", num(dh, 6));
        }
        page_print(" |\n");
    }
}

typedef struct library3 { /* what the library makes of the three examples */
    nrm_real y[3], dx[3], frozen[3], dgamma, dbeta;
    nrm_acc mean, rstd;
} library3;

static library3 by_library(const double *d)
{
    library3 l;
    nrm_real x[3], dy[3];
    const nrm_real gamma = R(leaf[GAMMA]), beta = R(leaf[BETA]);
    int i;
    memset(&l, 0, sizeof l);
    for (i = 0; i < 3; i++) {
        x[i] = R(leaf[i]);
        dy[i] = R(d[Y1 + i]);
    }
    OK(nrm_batchnorm_forward(l.y, &l.mean, &l.rstd, NULL, x, &gamma, &beta, NRM_TRAIN, NRM_EPS, 3,
                             1, 1));
    OK(nrm_batchnorm_backward(l.frozen, NULL, NULL, dy, x, &l.mean, &l.rstd, &gamma, NRM_FROZEN, 3,
                              1, 1));
    OK(nrm_batchnorm_backward(l.dx, &l.dgamma, &l.dbeta, dy, x, &l.mean, &l.rstd, &gamma, NRM_TRAIN,
                              3, 1, 1));
    return l;
}

static void dx_row(const char *name, const double *dx, const double *a)
{
    page_print("| %s | %s | %s | %s | %s | %s |\n", name, num(dx[0], 6), num(dx[1], 6),
               num(dx[2], 6), num(dx[0] + dx[1] + dx[2], 6),
               num(dx[0] * a[H1] + dx[1] * a[H2] + dx[2] * a[H3], 6));
}

static void dx_table(const double *a, const double *d)
{
    const library3 l = by_library(d);
    double closed[3], library[3], frozen[3], mean_dy, mean_dy_xhat;
    int i;
    mean_dy = (d[Y1] + d[Y2] + d[Y3]) / 3;
    mean_dy_xhat = (d[Y1] * a[H1] + d[Y2] * a[H2] + d[Y3] * a[H3]) / 3;
    for (i = 0; i < 3; i++) {
        closed[i] = a[GAMMA] * a[RSTD] * (d[Y1 + i] - mean_dy - a[H1 + i] * mean_dy_xhat);
        library[i] = D(l.dx[i]);
        frozen[i] = D(l.frozen[i]);
        CHECK_NEAR(closed[i], d[X1 + i], 1e-14);
        CHECK_NEAR(library[i], d[X1 + i], places(16));
        CHECK_NEAR(D(l.y[i]), a[Y1 + i], places(16));
    }
    page_table("dx", "| dx | of x₁ | of x₂ | of x₃ | ∑ dxᵢ | ∑ dxᵢ·x̂ᵢ |");
    dx_row("node by node", &d[X1], a);
    dx_row("in one line, BN.19", closed, a);
    dx_row("`nrm_batchnorm_backward`", library, a);
    dx_row("μ and r taken for constants, BN.20", frozen, a);
    CHECK_NEAR(D(l.mean), a[MU], places(16));
    CHECK_NEAR(D(l.rstd), a[RSTD], places(16));
    CHECK_NEAR(D(l.dgamma), d[GAMMA], places(16));
    CHECK_NEAR(D(l.dbeta), d[BETA], places(16));
}

/* The derivatives by mean and variance, put together from ∂L/∂x instead of ∂L/∂x̂: a misprint that
   circulates. Both sums vanish; what remains is the gradient with statistics held constant. */
static void check_misprint(const double *a, const double *d)
{
    double by_mean = 0, by_variance = 0;
    int i;
    for (i = 0; i < 3; i++) {
        by_mean -= d[X1 + i] * a[RSTD];
        by_variance -= d[X1 + i] * 0.5 * a[C1 + i] * pow(a[RSTD], 3);
    }
    CHECK_NEAR(by_mean, 0, 1e-14);
    CHECK_NEAR(by_variance, 0, 1e-5);
}

static void test_graph(void)
{
    double a[NODES], d[NODES];
    int k;
    graph_forward(a, -1, 0);
    graph_backward(d, a);
    for (k = 0; k < NODES; k++) CHECK_NEAR(graph_difference(k), d[k], 1e-7);
    nodes_tables(a, d);
    jacobian_table(a);
    dx_table(a, d);
    check_misprint(a, d);
}

int main(int argc, char **argv)
{
    RUN(test_people);
    RUN(test_chain);
    RUN(test_norm_hides_weights);
    RUN(test_product);
    RUN(test_tanh_network);
    RUN(test_sample_deviation);
    RUN(test_graph);
    return page_main(argc, argv, "examples/experiments/26_worked_examples/README.md", in_double,
                     in_double ? "worked examples (double)" : "worked examples (float)");
}
