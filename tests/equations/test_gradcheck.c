/* test_gradcheck.c - the gradient checker and the gradients of all layers.

   First every layer is checked with L = sum of w*y for fixed random w, at the sizes and scales
   where mistakes show: batches of 2, 3 and 4, inputs from 1e-3 to 1e3, gamma away from 1 and beta
   away from 0. Then the checker is checked: it must find what is wrong, and only that; test_power.c
   measures that more finely, and tests/pages/test_museum.c has wrong backward passes. In float the
   tolerances are the checker's own and wide. */
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"
#include "lab/draw.h"
#include "layers/call.h"
#include "test.h"

static const int in_float = sizeof(nrm_real) == sizeof(float);
static const int acc_in_float = sizeof(nrm_acc) == sizeof(float);

/* ---- a layer under test ---------------------------------------------------------------------- */

enum kind {
    BATCH_TRAIN, BATCH_FROZEN, LAYER, NOISY_TRAIN, LINEAR, IDENTITY, RELU, TANH, SIGMOID,
    CROSS_ENTROPY, LP_TRAIN, LP_FROZEN, WEIGHT
};
enum { MOST = 1120 }; /* 32 examples, 7 channels, 5 positions */

typedef struct subject {
    int kind, p;    /* p: of Lp batch norm */
    size_t N, C, S; /* of the linear layer: examples, inputs, outputs */
    size_t n_x, n_gamma, n_beta, n_y;
    nrm_real eps;
    nrm_real x[MOST], gamma[MOST], beta[MOST], w[MOST]; /* w: dy; gamma, beta: W, b of linear */
    nrm_real dx[MOST], dgamma[MOST], dbeta[MOST];
    nrm_real y[MOST], scale[MOST];
    nrm_acc mean[MOST], rstd[MOST];
    nrm_real run_mean[MOST], run_var[MOST];
    int labels[MOST];
    nrm_running running;
    nrm_rng draws; /* every forward pass starts from here: the same noise each time   */
} subject;

static const struct { /* in the order of the kinds */
    const char *name;
    int function, mode;
} kinds[] = {
    {"batch norm, train", CALL_BATCHNORM, NRM_TRAIN},
    {"batch norm, frozen", CALL_BATCHNORM, NRM_FROZEN},
    {"layer norm", CALL_LAYERNORM, 0},
    {"noisy batch norm", CALL_NOISY, NRM_TRAIN},
    {"linear", CALL_LINEAR, 0},
    {"identity", CALL_ACTIVATION, NRM_IDENTITY},
    {"relu", CALL_ACTIVATION, NRM_RELU},
    {"tanh", CALL_ACTIVATION, NRM_TANH},
    {"sigmoid", CALL_ACTIVATION, NRM_SIGMOID},
    {"cross-entropy", CALL_CROSS_ENTROPY, 0},
    {"Lp, train", CALL_LP, NRM_TRAIN},
    {"Lp, frozen", CALL_LP, NRM_FROZEN},
    {"weight norm", CALL_WEIGHTNORM, 0},
};

static int call_of(subject *s, int back, nrm_acc *loss)
{
    const nrm_noise noise = nrm_noise_paper();
    const int activation = kinds[s->kind].function == CALL_ACTIVATION;
    nrm_rng rng = s->draws;
    layer_call c;
    memset(&c, 0, sizeof c);
    c.x = s->x, c.dy = s->w, c.gamma = s->gamma, c.beta = s->beta, c.y = s->y, c.dx = s->dx;
    c.dgamma = s->dgamma, c.dbeta = s->dbeta, c.scale = s->scale, c.mean = s->mean;
    c.rstd = s->rstd, c.labels = s->labels, c.loss = loss, c.noise = &noise, c.rng = &rng;
    c.N = activation ? s->n_x : s->N, c.C = s->C, c.S = s->S;
    c.mode = kinds[s->kind].mode, c.p = s->p, c.eps = s->eps;
    if (!activation && c.mode == NRM_FROZEN) c.running = &s->running;
    return call_layer(kinds[s->kind].function + back, &c);
}

static nrm_acc loss_of(void *context)
{
    subject *s = (subject *)context;
    nrm_acc loss = 0;
    long double sum = 0; /* the loss should have no rounding of its own */
    size_t i;
    CHECK(call_of(s, 0, &loss) == NRM_OK);
    if (s->kind == CROSS_ENTROPY) return loss;
    for (i = 0; i < s->n_y; i++) sum += (long double)s->w[i] * (long double)s->y[i];
    return (nrm_acc)sum;
}

static void backward(subject *s)
{
    (void)loss_of(s);
    memset(s->dgamma, 0, sizeof s->dgamma);
    memset(s->dbeta, 0, sizeof s->dbeta);
    if (s->kind == WEIGHT) memset(s->dx, 0, sizeof s->dx);
    CHECK(call_of(s, 1, NULL) == NRM_OK);
}

static void fill(nrm_real *a, size_t n, double centre, double sd, nrm_rng *rng)
{
    size_t i;
    for (i = 0; i < n; i++) a[i] = (nrm_real)(centre + sd * (double)draw_normal(rng));
}

static void prepare(subject *s, int kind, size_t N, size_t C, size_t S, double scale, double eps,
                    nrm_rng *rng)
{
    size_t i;
    memset(s, 0, sizeof *s);
    s->kind = kind;
    s->N = N;
    s->C = C;
    s->S = kind == LAYER || kind == CROSS_ENTROPY || kind == WEIGHT ? 1 : S;
    s->eps = (nrm_real)eps;
    s->n_x = kind == LINEAR ? N * C : N * C * s->S;
    s->n_y = kind == LINEAR ? N * S : s->n_x;
    s->n_gamma = kind == LINEAR ? C * S : C;
    s->n_beta = kind == LINEAR ? S : C;
    fill(s->x, s->n_x, scale / 3, scale, rng);
    fill(s->gamma, s->n_gamma, 1.5, 0.5, rng);
    fill(s->beta, s->n_beta, 0.5, kind == LINEAR ? scale : 1,
         rng); /* of the size of what it shifts */
    fill(s->w, s->n_y, 0, 1, rng);
    fill(s->run_mean, C, 0, scale, rng);
    for (i = 0; i < C; i++) { /* of Lp, what t was on average */
        const double v = scale * scale * (0.5 + (double)draw_uniform(rng));
        s->run_var[i] = (nrm_real)(kind == LP_FROZEN ? sqrt(v) : v);
    }
    for (i = 0; i < N; i++) s->labels[i] = (int)nrm_rng_below(rng, (uint32_t)C);
    s->running.mean = s->run_mean;
    s->running.var = s->run_var;
    nrm_rng_seed(&s->draws, nrm_rng_u32(rng), 3);
}

static nrm_gradcheck_group group_of(const char *name, nrm_real *theta, const nrm_real *grad,
                                    size_t n)
{
    nrm_gradcheck_group g;
    g.name = name;
    g.theta = theta;
    g.grad = grad;
    g.n = n;
    return g;
}

static size_t groups_of(subject *s, nrm_gradcheck_group *group)
{
    group[0] = group_of("x", s->x, s->dx, s->n_x);
    group[1] = group_of("gamma", s->gamma, s->dgamma, s->n_gamma);
    group[2] = group_of("beta", s->beta, s->dbeta, s->n_beta);
    if (s->kind == WEIGHT) return 2;
    return s->kind <= LINEAR || s->kind > CROSS_ENTROPY ? 3 : 1;
}

/* ---- all layers ------------------------------------------------------------------------------ */

typedef struct tally {
    double worst;
    size_t cases, checked, vanishing, unsettled, kinks;
} tally;

static void check_subject(tally *t, subject *s, const nrm_gradcheck_options *o,
                          int may_be_unsettled, double scale)
{
    nrm_gradcheck_group group[3];
    nrm_gradcheck_report report[3];
    const size_t groups = groups_of(s, group);
    size_t g;
    int rc;
    backward(s);
    rc = nrm_gradcheck(report, group, groups, loss_of, s, o);
    CHECK(rc == NRM_OK || (rc == NRM_EUNSETTLED && may_be_unsettled));
    t->cases++;
    for (g = 0; g < groups; g++) {
        t->checked += report[g].checked;
        t->vanishing += report[g].vanishing;
        t->unsettled += report[g].unsettled;
        t->kinks += report[g].kinks;
        t->worst = fmax(t->worst, (double)report[g].error);
        if (report[g].wrong > 0 || (report[g].status != NRM_OK && !may_be_unsettled))
            printf("  %s of %s, N=%u C=%u S=%u scale %g: %s; at %u: %g, differences %g +- %g\n",
                   group[g].name, kinds[s->kind].name, (unsigned)s->N, (unsigned)s->C,
                   (unsigned)s->S, scale, nrm_strerror(report[g].status),
                   (unsigned)report[g].worst, (double)report[g].analytic,
                   (double)report[g].numeric, (double)report[g].uncertainty);
    }
}

/* The inputs of these have a size of their own, 1, whatever ours; so has the step. Far out they are
   flat, and the loss has no digits left for their slopes. */
static int saturates(int kind)
{
    return kind == TANH || kind == SIGMOID || kind == CROSS_ENTROPY;
}

/* With two values per group dx is only what eps leaves of it (BN.23), for the usual eps and large
   inputs less than the differences can resolve: then the checker may, and must, abstain. Of one
   weight dv is 0. */
static int nothing_left(const subject *s, double scale)
{
    if (saturates(s->kind)) return scale > 1;
    if (s->kind == WEIGHT) return s->N < 3;
    return s->kind != BATCH_FROZEN && s->kind <= NOISY_TRAIN &&
           (s->kind == LAYER ? s->C : s->N * s->S) == 2 && scale * scale > 1e3 * (double)s->eps;
}

/* How many of the checked entries may be unsettled, and at kinks. A loss that is itself a float is
   a staircase, seen closely. Of Lp batch norm L1 has a kink wherever a value is 0, the maximum
   wherever two are the largest; and of two values dx is next to nothing, as with batch norm. */
static void check_tally(const tally *t, int kind, int p)
{
    const int lp = kind == LP_TRAIN || kind == LP_FROZEN;
    const int smooth = kind == LP_FROZEN || p % NRM_CENTRED == NRM_L2;
    size_t unsettled = t->checked / (in_float ? 4 : 20), kinks = 0;
    printf("%-18s %d worst %.1e of %5u entries in %3u cases (%u zero, %u at kinks, %u unsettled)\n",
           kinds[kind].name, p, t->worst, (unsigned)t->checked, (unsigned)t->cases,
           (unsigned)t->vanishing, (unsigned)t->kinks, (unsigned)t->unsettled);
    CHECK(t->worst <= (in_float ? 1e-2 : 1e-7));
    if (acc_in_float) kinks = t->checked / 1000;
    if (lp) kinks = t->checked / (smooth ? 1000 : 100);
    if (lp) unsettled = t->checked / (in_float ? 100 : kind == LP_FROZEN ? 1000 : 50);
    CHECK(t->checked > 0 && t->unsettled < unsettled);
    CHECK(t->kinks <= kinks || kind == RELU);
}

static void check_kind(int kind, int p)
{
    static const size_t Ns[6] = {1, 2, 3, 4, 7, 32}, Cs[3] = {1, 2, 7}, Ss[3] = {1, 2, 5};
    static const double scales[7] = {1e-3, 1e-2, 1e-1, 1, 10, 100, 1000};
    const int batch = kind == BATCH_TRAIN || kind == NOISY_TRAIN || kind == LP_TRAIN;
    const int flat = kind == LAYER || kind == CROSS_ENTROPY || kind == WEIGHT;
    const int lp = kind == LP_TRAIN || kind == LP_FROZEN;
    static subject s;
    nrm_gradcheck_options o;
    nrm_rng rng;
    tally t;
    size_t n, c, q, k;
    int ample;
    memset(&t, 0, sizeof t);
    memset(&o, 0, sizeof o);
    o.at_most = 12;
    nrm_rng_seed(&rng, 20, (uint64_t)(kind + 100 * p));
    for (n = 0; n < 6; n++)
        for (c = 0; c < 3; c++)
            for (q = 0; q < (flat ? 1 : 3); q++)
                for (k = in_float ? 2 : 0; k < (in_float ? 5 : 7); k++) {
                    const double scale = scales[k], more = lp ? scale / 3 : scale * scale / 10;
                    if (batch && Ns[n] * Ss[q] < 2) continue;
                    if (kind == CROSS_ENTROPY && scale > 10) continue; /* one class has all */
                    if (saturates(kind)) o.step = (nrm_acc)((in_float ? 4e-2 : 7e-4) / scale);
                    o.seed++;
                    for (ample = 0; ample < (kind <= NOISY_TRAIN || lp ? 2 : 1); ample++) {
                        prepare(&s, kind, Ns[n], Cs[c], Ss[q], scale, ample ? more : 1e-5, &rng);
                        s.p = p;
                        check_subject(&t, &s, &o, in_float || lp || nothing_left(&s, scale), scale);
                    }
                }
    check_tally(&t, kind, p);
}

static void test_norms(void)
{
    check_kind(BATCH_TRAIN, 0);
    check_kind(BATCH_FROZEN, 0);
    check_kind(LAYER, 0);
    check_kind(NOISY_TRAIN, 0);
}

static void test_other_layers(void)
{
    check_kind(LINEAR, 0);
    check_kind(IDENTITY, 0);
    check_kind(RELU, 0);
    check_kind(TANH, 0);
    check_kind(SIGMOID, 0);
    check_kind(CROSS_ENTROPY, 0);
    check_kind(WEIGHT, 0);
}

static void test_lp(void)
{
    int p;
    for (p = NRM_L1; p <= NRM_LINF; p++) {
        check_kind(LP_TRAIN, p);
        check_kind(LP_TRAIN, p + NRM_CENTRED);
        check_kind(LP_FROZEN, p);
    }
}

/* ---- the checker finds what is wrong --------------------------------------------------------- */

/* The verdict on `grad` as the gradient of the subject's x. */
static nrm_gradcheck_report verdict(subject *s, const nrm_real *grad)
{
    const nrm_gradcheck_group group = group_of("x", s->x, grad, s->n_x);
    nrm_gradcheck_report report;
    const int rc = nrm_gradcheck(&report, &group, 1, loss_of, s, NULL);
    CHECK_INT(rc, report.status);
    return report;
}

static void test_finds_wrong_gradients(void)
{
    static subject s;
    nrm_real grad[MOST];
    nrm_gradcheck_report r;
    nrm_rng rng;
    size_t i, largest = 0;
    nrm_rng_seed(&rng, 21, 1);
    prepare(&s, BATCH_TRAIN, 4, 3, 1, 1, 0.1, &rng);
    backward(&s);
    for (i = 0; i < s.n_x; i++)
        if (fabs((double)s.dx[i]) > fabs((double)s.dx[largest])) largest = i;
    r = verdict(&s, s.dx);
    OK(r.status);
    CHECK_INT(r.checked, s.n_x);
    CHECK_INT(r.wrong + r.unsettled + r.kinks + r.vanishing, 0);

    for (i = 0; i < s.n_x; i++) grad[i] = -s.dx[i];
    r = verdict(&s, grad);
    CHECK_INT(r.status, NRM_EGRADIENT);
    CHECK_INT(r.wrong, s.n_x);
    CHECK_NEAR(r.error, 2, in_float ? 0.1 : 1e-6); /* the largest error there is */

    memcpy(grad, s.dx, sizeof grad);
    grad[largest] *= (nrm_real)1.5; /* one entry: found, named, with its figures */
    r = verdict(&s, grad);
    CHECK_INT(r.status, NRM_EGRADIENT);
    CHECK_INT(r.wrong, 1);
    CHECK_INT(r.worst, largest);
    CHECK_NEAR(r.error, 1.0 / 3, in_float ? 0.02 : 1e-6);
    CHECK_NEAR(r.analytic, grad[largest], 0);
    CHECK_NEAR((double)r.numeric / (double)s.dx[largest], 1, in_float ? 0.02 : 1e-7);
    CHECK(r.uncertainty > 0);
}

/* A weight gradient with its indices swapped has the right size and the right entries. */
static void test_finds_transposed_gradient(void)
{
    static subject s;
    nrm_real grad[16];
    nrm_gradcheck_group group;
    nrm_gradcheck_report r;
    nrm_rng rng;
    size_t i, j;
    nrm_rng_seed(&rng, 23, 1);
    prepare(&s, LINEAR, 3, 4, 4, 1, 1, &rng);
    backward(&s);
    for (i = 0; i < 4; i++)
        for (j = 0; j < 4; j++) grad[i * 4 + j] = s.dgamma[j * 4 + i];
    group = group_of("W", s.gamma, grad, 16);
    CHECK_INT(nrm_gradcheck(&r, &group, 1, loss_of, &s, NULL), NRM_EGRADIENT);
    CHECK_INT(r.wrong, 12); /* all but the diagonal */
    CHECK(r.worst / 4 != r.worst % 4);
}

/* ---- kinks, noise, zeros --------------------------------------------------------------------- */

typedef struct hinge { /* L = sum of w*relu(theta), and some noise if wanted */
    nrm_real theta[8], w[8];
    double noise;
    nrm_rng rng;
} hinge;

static nrm_acc hinge_loss(void *context)
{
    hinge *h = (hinge *)context;
    nrm_acc sum = 0;
    size_t i;
    for (i = 0; i < 8; i++)
        if (h->theta[i] > 0) sum += (nrm_acc)h->w[i] * (nrm_acc)h->theta[i];
    if (h->noise > 0) sum += (nrm_acc)(h->noise * (double)draw_normal(&h->rng));
    return sum;
}

static uint64_t hinge_branches(void *context)
{
    const hinge *h = (const hinge *)context;
    uint64_t bits = 0;
    size_t i;
    for (i = 0; i < 8; i++) bits = bits * 2 + (h->theta[i] > 0);
    return bits;
}

static hinge new_hinge(nrm_real *grad)
{
    static const double theta[8] = {1, -1, 0, 1e-9, -1e-9, 0.25, -2, 1.5};
    hinge h;
    size_t i;
    memset(&h, 0, sizeof h);
    nrm_rng_seed(&h.rng, 24, 1);
    for (i = 0; i < 8; i++) {
        h.theta[i] = (nrm_real)theta[i];
        h.w[i] = (nrm_real)((i % 2 ? -1.0 : 1.0) * (1 + 0.3 * (double)i));
        grad[i] = h.theta[i] > 0 ? h.w[i] : 0;
    }
    return h;
}

static void test_kinks(void)
{
    nrm_real grad[8];
    hinge h = new_hinge(grad);
    nrm_gradcheck_group group = group_of("theta", h.theta, grad, 8);
    nrm_gradcheck_options o;
    nrm_gradcheck_report r;
    int with_branches;
    for (with_branches = 0; with_branches < 2; with_branches++) {
        memset(&o, 0, sizeof o);
        o.branches = with_branches ? hinge_branches : NULL;
        grad[5] = h.w[5];
        OK(nrm_gradcheck(&r, &group, 1, hinge_loss, &h, &o));
        CHECK_INT(r.kinks, 3); /* 0 and its two neighbours: skipped, and it shows */
        CHECK_INT(r.checked, 8);
        CHECK_INT(r.wrong + r.unsettled, 0);
        CHECK_INT(r.vanishing, 2);
        grad[5] = 0; /* a wrong one among them is still found */
        CHECK_INT(nrm_gradcheck(&r, &group, 1, hinge_loss, &h, &o), NRM_EGRADIENT);
        CHECK_INT(r.wrong, 1);
        CHECK_INT(r.worst, 5);
    }
    memset(h.theta, 0, sizeof h.theta);
    memset(grad, 0, sizeof grad);
    CHECK_INT(nrm_gradcheck(&r, &group, 1, hinge_loss, &h, NULL), NRM_EUNSETTLED);
    CHECK_INT(r.kinks, 8); /* nothing but kinks is not a pass */
}

/* A step that is at first too wide is made smaller until it stays on one side. */
static void test_near_kink(void)
{
    nrm_real grad[8];
    hinge h = new_hinge(grad);
    nrm_gradcheck_group group = group_of("theta", h.theta, grad, 8);
    nrm_gradcheck_report r;
    if (in_float) return; /* no room between the step and rounding */
    h.theta[2] = (nrm_real)1e-5;
    h.theta[3] = (nrm_real)2e-6;
    h.theta[4] = (nrm_real)-1e-5;
    grad[2] = h.w[2];
    OK(nrm_gradcheck(&r, &group, 1, hinge_loss, &h, NULL));
    CHECK_INT(r.kinks, 0);
    CHECK_INT(r.vanishing, 3);
    CHECK((double)r.error <= 1e-7);
}

static void test_noisy_loss(void)
{
    nrm_real grad[8];
    hinge h = new_hinge(grad);
    nrm_gradcheck_group group = group_of("theta", h.theta, grad, 8);
    nrm_gradcheck_report r;
    h.noise = in_float ? 1e-2 : 1e-6;
    CHECK_INT(nrm_gradcheck(&r, &group, 1, hinge_loss, &h, NULL), NRM_EUNSETTLED);
    CHECK_INT(r.wrong, 0);
    CHECK(r.unsettled + r.kinks > 4);
}

/* ---- what the checker promises about its arguments ------------------------------------------- */

typedef struct watch { /* a loss that notes which entries of theta were nudged */
    nrm_real theta[100], base[100], grad[100];
    unsigned char nudged[100];
    size_t most_at_once;
} watch;

static nrm_acc watch_loss(void *context)
{
    watch *w = (watch *)context;
    nrm_acc sum = 0;
    size_t i, moved = 0;
    for (i = 0; i < 100; i++) {
        sum += (nrm_acc)w->theta[i] * (nrm_acc)w->theta[i] * (nrm_acc)0.5;
        if (memcmp(&w->theta[i], &w->base[i], sizeof w->theta[i]) == 0) continue;
        w->nudged[i] = 1;
        moved++;
    }
    if (moved > w->most_at_once) w->most_at_once = moved;
    return sum;
}

static void test_restores_theta(void)
{
    static watch w;
    nrm_gradcheck_group group = group_of("theta", w.theta, w.grad, 100);
    nrm_gradcheck_report r;
    nrm_rng rng;
    size_t i, nudged = 0;
    nrm_rng_seed(&rng, 26, 1);
    memset(&w, 0, sizeof w);
    fill(w.theta, 100, 0, 1, &rng);
    w.theta[3] = (nrm_real)-0.0;
    w.theta[4] = 0;
    w.theta[5] = in_float ? (nrm_real)1e-44 : (nrm_real)5e-324; /* the least of the subnormals */
    w.theta[6] = (nrm_real)(1.0 / 3);
    memcpy(w.base, w.theta, sizeof w.base);
    memcpy(w.grad, w.theta, sizeof w.grad); /* the gradient of half the square */
    OK(nrm_gradcheck(&r, &group, 1, watch_loss, &w, NULL));
    CHECK(memcmp(w.theta, w.base, sizeof w.base) == 0);
    for (i = 0; i < 100; i++) nudged += w.nudged[i];
    CHECK_INT(nudged, 100);
    CHECK_INT(w.most_at_once, 1);
}

int main(void)
{
    RUN(test_norms);
    RUN(test_other_layers);
    RUN(test_finds_wrong_gradients);
    RUN(test_finds_transposed_gradient);
    RUN(test_kinks);
    RUN(test_near_kink);
    RUN(test_noisy_loss);
    RUN(test_restores_theta);
    RUN(test_lp);
    return test_report(in_float ? "gradcheck (float)" : "gradcheck (double)");
}
