/* test_status.c - every function says NRM_NONFINITE if it met a statistic that is not finite,
   wherever among its channels, rows or steps that was, and NRM_OK if not.

   The arrays are long enough for threads to share the work, and wide enough for several strips, so
   that whatever a strip or a thread finds has to reach the status. tests/bits/threads.sh runs this
   program with NRM_OPENMP on several numbers of threads. Each trouble is planted in one group of
   numbers after the other, and nothing else is wrong. */
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"
#include "layers/call.h"
#include "test.h"
#include <float.h>

enum { MOST = 36000, PLACES = 5 };

typedef struct sizes { /* [N][C][S]; the groups of numbers are channels, or rows of C·S or K·S */
    size_t N, C, S;
} sizes;
static const sizes columns = {16, 2050, 1}, runs = {4, 41, 202}, rows = {330, 100, 1},
                   wide_rows = {8, 4200, 1}, images = {20, 8, 210};

static nrm_real x[MOST], y[MOST], dx[MOST], dy[MOST], scale[MOST], gamma_[MOST], beta_[MOST];
static nrm_real run_mean[4200], run_var[4200], dgamma[MOST], dbeta[MOST];
static nrm_acc mean[4200], rstd[4200], ratio[4200], offset[4200];
static nrm_stats stats[4200];
static nrm_sums sums[4200];
static unsigned char mask[MOST];
static nrm_running running;
static nrm_rng rng;
static nrm_real eps;
static const nrm_noise noise = {(nrm_real)0.5, (nrm_real)1.25, (nrm_real)0.1, (nrm_real)0.1};

/* What may be wrong with one group of numbers. */
enum trouble {
    NOTHING,
    NOT_A_NUMBER, /* one of its values                                     */
    INFINITE,     /* one of its values                                     */
    FLAT,         /* all of them are 0, and so is eps: 1/0 */
    ROOT,         /* its running variance is 0, and so is eps: 1/0 */
    WIDE,         /* a variance that fits into nrm_acc, not into nrm_real   */
    UNBIASED,     /* a variance that fits; v·M/(M − 1) does not             */
    FAR_APART,    /* the largest |x − μ| fits into nrm_acc, not into nrm_real */
    RUNNING,      /* its running mean is a NaN                             */
    TROUBLES
};
static const char *const trouble_name[] = {"nothing", "NaN", "infinity", "flat", "root", "wide",
                                           "unbiased", "far apart", "running"};

enum { ALONE = 1, MASKED = 2 }; /* without running statistics; with a mask */

typedef struct site {
    const char *name;
    int function, mode, p, how;
    const sizes *shape;
    int per_row;          /* the groups: channels (0), or so many of equal length in each row */
    const char *expected; /* one letter for each trouble: ! NRM_NONFINITE, . NRM_OK, s NRM_ESTATS */
} site;

/* Of a function on all of the arrays, in groups of four channels. */
static layer_call call_on(const sizes *s, int mode, int p)
{
    layer_call c;
    memset(&c, 0, sizeof c);
    c.y = y, c.x = x, c.dy = dy, c.dx = dx, c.gamma = gamma_, c.beta = beta_, c.scale = scale;
    c.dgamma = dgamma, c.dbeta = dbeta;
    c.mean = mean, c.rstd = rstd, c.ratio = ratio, c.offset = offset, c.stats = stats;
    c.sums = sums, c.running = &running, c.noise = &noise, c.rng = &rng;
    c.N = s->N, c.C = s->C, c.S = s->S, c.G = 4;
    c.mode = mode, c.p = p, c.eps = eps, c.r_max = 3, c.d_max = 5;
    return c;
}

static int call_site(const site *s)
{
    layer_call c = call_on(s->shape, s->mode, s->p);
    if (s->how & ALONE) c.running = NULL;
    if (s->how & MASKED) c.mask = mask;
    if (s->mode == NRM_INFER) c.mean = c.rstd = NULL;
    c.p += NRM_CENTRED;
    if (s->function == CALL_FOLD) c.dy = beta_, c.beta = NULL;
    if (s->function == CALL_SYNC) (void)call_layer(CALL_STATS_UPDATE, &c);
    return call_layer(s->function, &c);
}

/* Without room in nrm_acc for more than an nrm_real, the variance of numbers of this size is
   infinite, its rstd 0, and the output of a norm 0 too: only the status tells. */
#define NO_ROOM (sizeof(nrm_acc) == sizeof(nrm_real))
static nrm_real huge(void)
{
    return sizeof(nrm_real) == 4 ? (nrm_real)1e25 : (nrm_real)1e200;
}

/* What is wide is no harm where it is not stored. */
static const site sites[] = {
    {"batch norm", CALL_BATCHNORM, NRM_TRAIN, 0, ALONE, &columns, 0, ".!!! .   "},
    {"batch norm, images", CALL_BATCHNORM, NRM_TRAIN, 0, ALONE, &runs, 0, ".!!! .   "},
    {"batch norm, tracked", CALL_BATCHNORM, NRM_TRAIN, 0, 0, &columns, 0, ".!!!.!!!!"},
    {"batch norm, tracked images", CALL_BATCHNORM, NRM_TRAIN, 0, 0, &runs, 0, ".!!!.!!!!"},
    {"batch norm, infer", CALL_BATCHNORM, NRM_INFER, 0, 0, &columns, 0, "... !   s"},
    {"batch norm, infer, images", CALL_BATCHNORM, NRM_INFER, 0, 0, &runs, 0, "... !   s"},
    {"batch norm, frozen", CALL_BATCHNORM, NRM_FROZEN, 0, 0, &columns, 0, "... !   s"},
    {"noisy batch norm", CALL_NOISY, NRM_TRAIN, 0, 0, &columns, 0, ".!!!.!!!!"},
    {"batch renorm", CALL_RENORM, NRM_TRAIN, 0, 0, &columns, 0, ".!!!!!!!s"},
    {"batch renorm, images", CALL_RENORM, NRM_TRAIN, 0, 0, &runs, 0, ".!!!!!!!s"},
    {"L1", CALL_LP, NRM_TRAIN, NRM_L1, 0, &columns, 0, ".!!!... !"},
    {"L1, images", CALL_LP, NRM_TRAIN, NRM_L1, 0, &runs, 0, ".!!!... !"},
    {"L2", CALL_LP, NRM_TRAIN, NRM_L2, 0, &columns, 0, ".!!!... !"},
    {"L infinity", CALL_LP, NRM_TRAIN, NRM_LINF, 0, &columns, 0, ".!!!...!!"},
    {"L infinity, images", CALL_LP, NRM_TRAIN, NRM_LINF, 0, &runs, 0, ".!!!...!!"},
    {"L infinity, not tracked", CALL_LP, NRM_TRAIN, NRM_LINF, ALONE, &columns, 0, ".!!! ... "},
    {"statistics", CALL_STATS_UPDATE, 0, 0, 0, &columns, 0, ".!!. .   "},
    {"statistics, images", CALL_STATS_UPDATE, 0, 0, 0, &runs, 0, ".!!. .   "},
    {"statistics, masked", CALL_STATS_UPDATE, 0, 0, MASKED, &runs, 0, ".!!. .   "},
    {"sync batch norm", CALL_SYNC, 0, 0, ALONE, &columns, 0, ".!!! .   "},
    {"sync batch norm, tracked", CALL_SYNC, 0, 0, 0, &columns, 0, ".!!!.!! !"},
    {"sync batch norm, tracked images", CALL_SYNC, 0, 0, 0, &runs, 0, ".!!!.!! !"},
    {"layer norm", CALL_LAYERNORM, 0, 0, 0, &rows, 1, ".!!! .   "},
    {"layer norm, wide", CALL_LAYERNORM, 0, 0, 0, &wide_rows, 1, ".!!! .   "},
    {"RMS norm", CALL_RMSNORM, 0, 0, 0, &rows, 1, ".!!! .   "},
    {"group norm", CALL_GROUPNORM, 0, 0, 0, &rows, 4, ".!!! .   "},
    {"group norm, images", CALL_GROUPNORM, 0, 0, 0, &images, 4, ".!!! .   "},
    {"weight norm", CALL_WEIGHTNORM, 0, 0, 0, &columns, 0, ".!!! .   "},
    {"folding", CALL_FOLD, 0, 0, 0, &columns, 0, ".!! !   s"},
};
enum { SITES = (int)(sizeof sites / sizeof *sites) };

static int expected_of(const site *s, int trouble)
{
    switch (s->expected[trouble]) {
    case '.': return NRM_OK;
    case '!': return NRM_NONFINITE;
    case 's': return NRM_ESTATS;
    default: return -100; /* not asked */
    }
}

static size_t groups_of(const site *s)
{
    return s->per_row ? s->shape->N * (size_t)s->per_row : s->shape->C;
}
static size_t length_of(const site *s)
{
    return s->shape->N * s->shape->C * s->shape->S / groups_of(s);
}
static nrm_real *value_of(const site *s, size_t g, size_t i)
{
    const sizes *f = s->shape;
    return s->per_row ? x + g * length_of(s) + i : x + (i / f->S * f->C + g) * f->S + i % f->S;
}

/* Ordinary numbers everywhere, and ordinary settings. */
static void prepare(void)
{
    size_t i;
    for (i = 0; i < MOST; i++) {
        x[i] = (nrm_real)(i * 7 % 11) - 5 + (nrm_real)(i % 3);
        gamma_[i] = 1;
        beta_[i] = 2;
        mask[i] = i % 7 != 3;
    }
    for (i = 0; i < 4200; i++) {
        run_mean[i] = 0;
        run_var[i] = 1;
    }
    memset(stats, 0, sizeof stats);
    memset(&running, 0, sizeof running);
    running.mean = run_mean;
    running.var = run_var;
    running.new_weight = (nrm_real)0.1;
    eps = NRM_EPS;
    nrm_rng_seed(&rng, 1, 2);
}

static void plant(const site *s, int trouble, size_t g)
{
    const nrm_real largest = sizeof(nrm_real) == 4 ? (nrm_real)FLT_MAX : (nrm_real)DBL_MAX;
    const size_t n = length_of(s), at = (g * 5 + 1) % n;
    const double wide = 2 * sqrt((double)largest), edge = (double)largest * (1 - 0.5 / (double)n);
    size_t i;
    if (trouble == NOT_A_NUMBER) *value_of(s, g, s->how & MASKED ? 0 : at) = (nrm_real)NAN;
    if (trouble == INFINITE)
        *value_of(s, g, s->how & MASKED ? 0 : at) = (nrm_real)INFINITY;
    if (trouble == RUNNING) run_mean[g] = (nrm_real)NAN;
    if (trouble == FLAT || trouble == ROOT) eps = 0;
    if (trouble == ROOT) run_var[g] = 0;
    if (trouble == UNBIASED) {
        running.new_weight = 1;
        run_mean[g] = 5; /* which would move */
    }
    for (i = 0; i < n; i++) {
        const nrm_real sign = i % 2 ? -1 : 1;
        if (trouble == FLAT) *value_of(s, g, i) = 0;
        if (trouble == WIDE) *value_of(s, g, i) = sign * (nrm_real)wide;
        if (trouble == UNBIASED) *value_of(s, g, i) = sign * (nrm_real)sqrt(edge);
        if (trouble == FAR_APART) *value_of(s, g, i) = i == at ? largest : -largest;
    }
}

/* Every function, every trouble, and five places for it: the first, the last, and between. */
static void test_wherever_it_is(void)
{
    int k, trouble, place;
    for (k = 0; k < SITES; k++)
        for (trouble = 0; trouble < TROUBLES; trouble++)
            for (place = 0; place < PLACES; place++) {
                const site *s = &sites[k];
                const size_t g = (groups_of(s) - 1) * (size_t)place / (PLACES - 1);
                const int alone = s->expected[WIDE] == '.' && s->expected[RUNNING] == ' ' &&
                                  s->function != CALL_WEIGHTNORM && s->function != CALL_LP;
                const int expected =
                    NO_ROOM && trouble == WIDE && alone ? NRM_NONFINITE : expected_of(s, trouble);
                size_t i, moved = 0;
                int rc;
                if (expected == -100) continue;
                if (NO_ROOM && trouble >= WIDE && trouble <= FAR_APART && !alone) continue;
                prepare();
                plant(s, trouble, g);
                rc = call_site(s);
                if (!CHECK(rc == expected))
                    printf("    %s, %s, place %d: %d, not %d\n", s->name, trouble_name[trouble],
                           place, rc, expected);
                if (trouble == WIDE || trouble == FAR_APART) continue;
                if (rc != NRM_NONFINITE || s->expected[RUNNING] != '!') continue;
                /* of this channel neither has moved, of all others both have */
                for (i = 0; i < groups_of(s); i++)
                    moved += (run_mean[i] != 0 && i != g) || run_var[i] != 1;
                CHECK(run_mean[g] == (trouble == UNBIASED ? 5 : 0) || trouble == RUNNING);
                CHECK(moved == groups_of(s) - (trouble == FLAT ? 0 : 1));
            }
}

/* In the first group and in the last one: of several threads two have met it. */
static void test_in_two_places(void)
{
    int k;
    for (k = 0; k < SITES; k++) {
        const site *s = &sites[k];
        const int expected = expected_of(s, NOT_A_NUMBER);
        if (expected == -100) continue;
        prepare();
        plant(s, NOT_A_NUMBER, 0);
        plant(s, NOT_A_NUMBER, groups_of(s) - 1);
        if (!CHECK(call_site(s) == expected)) printf("    %s\n", s->name);
    }
}

/* A gradient that is not finite is passed on, by every part of the work: that is no status. */
static void test_gradients_are_passed_on(void)
{
    static const struct {
        int function;
        const sizes *shape;
    } layer[] = {{CALL_BATCHNORM, &columns}, {CALL_BATCHNORM, &images}, {CALL_NOISY, &columns},
                 {CALL_RENORM, &columns},    {CALL_LP, &columns},       {CALL_WEIGHTNORM, &columns},
                 {CALL_SYNC, &columns},      {CALL_GROUPNORM, &images}, {CALL_LAYERNORM, &rows},
                 {CALL_LAYERNORM, &wide_rows}, {CALL_RMSNORM, &rows}};
    size_t k, place;
    for (k = 0; k < sizeof layer / sizeof *layer; k++)
        for (place = 0; place < PLACES; place++) {
            const sizes *s = layer[k].shape;
            layer_call c;
            int rc = NRM_OK;
            prepare();
            c = call_on(s, NRM_TRAIN, NRM_L1);
            if (layer[k].function == CALL_SYNC) CHECK(call_layer(CALL_STATS_UPDATE, &c) == NRM_OK);
            CHECK(call_layer(layer[k].function, &c) == NRM_OK);
            memcpy(dy, x, sizeof dy);
            dy[(s->N * s->C * s->S - 1) * place / (PLACES - 1)] = (nrm_real)NAN;
            if (layer[k].function == CALL_SYNC) rc = call_layer(CALL_SYNC_SUMS, &c);
            if (rc == NRM_OK) rc = call_layer(layer[k].function + 1, &c);
            if (!CHECK(rc == NRM_OK)) printf("    backward %d: %d\n", (int)k, rc);
        }
}

/* A channel without values has nothing that could be lost: not even if eps is 0. */
static void test_empty_channels(void)
{
    const sizes *s = &runs;
    layer_call call;
    size_t c;
    prepare();
    memset(mask, 0, sizeof mask);
    eps = 0;
    for (c = 0; c < s->C; c++) {
        const nrm_stats some = {4, 1, 8};
        stats[c] = some;
    }
    memset(&stats[3], 0, sizeof stats[3]);
    memset(&stats[s->C - 1], 0, sizeof stats[0]);
    mean[3] = rstd[3] = 7;
    call = call_on(s, NRM_TRAIN, 0);
    call.mask = mask;
    OK(call_layer(CALL_SYNC, &call));
    CHECK(run_mean[3] == 0 && run_var[3] == 1 && run_mean[4] != 0 && running.batches == 1);
    CHECK(mean[3] == 0 && rstd[3] != 7 && mean[4] == 1);
    stats[5].mean = (nrm_acc)INFINITY; /* and statistics that others have brought */
    call.running = NULL;
    CHECK_INT(call_layer(CALL_SYNC, &call), NRM_NONFINITE);
}

/* Losses and ranks: in the first row, in the last, and between. */
static void test_rows_of_logits(void)
{
    enum { N = 60, C = 600 };
    static int labels[N];
    nrm_acc loss, accuracy;
    size_t n;
    for (n = 0; n < N; n++) labels[n] = (int)(n * 7 % C);
    for (n = 0; n <= N; n++) {
        prepare();
        if (n < N) x[n * C + (size_t)labels[n]] = -(nrm_real)INFINITY;
        CHECK_INT(nrm_cross_entropy_forward(&loss, y, x, labels, N, C), n < N);
        OK(nrm_accuracy(&accuracy, x, labels, N, C));
        if (n < N) x[n * C + (C - 1)] = (nrm_real)NAN;
        CHECK_INT(nrm_cross_entropy_forward(&loss, y, x, labels, N, C), n < N);
        CHECK_INT(nrm_accuracy(&accuracy, x, labels, N, C), n < N);
    }
}

/* A weight or a bias that does not fit; a column whose gain does not. */
static void test_weights(void)
{
    const nrm_real tiny = sizeof(nrm_real) == 4 ? (nrm_real)1e-30 : (nrm_real)1e-250;
    const site *weight = &sites[SITES - 2], *fold = &sites[SITES - 1];
    size_t c, i;
    for (c = 0; c < columns.C; c += 683) {
        prepare();
        for (i = 0; i < columns.N; i++) x[i * columns.C + c] = tiny;
        gamma_[c] = 1 / tiny;
        CHECK_INT(call_site(weight), NRM_NONFINITE);
        prepare();
        gamma_[c] = 1 / tiny; /* makes of the weights no more than 1e31 */
        OK(call_site(fold));
        run_var[c] = tiny * tiny > 0 ? 0 : tiny; /* but of a small variance */
        eps = tiny;
        CHECK_INT(call_site(fold), NRM_NONFINITE);
        prepare();
        beta_[c] = (nrm_real)INFINITY;
        CHECK_INT(call_site(fold), NRM_NONFINITE);
    }
}

/* Each step of a recurrent layer counts, also one whose trouble does not reach the next. */
static void test_steps(void)
{
    enum { T = 3, N = 12, IN = 4, H = 5 };
    nrm_rnn rnn;
    nrm_running step[T];
    size_t t, i;
    int norm;
    for (t = 0; t <= T; t++)
        for (norm = NRM_BATCH_NORM; norm <= NRM_LAYER_NORM; norm++) {
            int rc;
            prepare();
            memset(&rnn, 0, sizeof rnn);
            rnn.T = T, rnn.N = N, rnn.in = IN, rnn.H = H;
            rnn.norm = norm;
            rnn.activation = NRM_TANH;
            rnn.eps = eps;
            rnn.Wx = dy, rnn.Wh = dx;
            for (i = 0; i < IN * H; i++) dy[i] = (nrm_real)(i * 3 % 7) - 3;
            for (i = 0; i < H * H; i++) dx[i] = (nrm_real)(i * 5 % 3) - 1;
            for (i = 0; i < T; i++) {
                step[i] = running;
                step[i].mean = run_mean + i * H;
                step[i].var = run_var + i * H;
            }
            rnn.running = step;
            memset(y, 0, sizeof y);
            if (t < T && norm == NRM_BATCH_NORM) run_mean[t * H] = (nrm_real)NAN;
            for (i = 0; i < N * IN && t < T && norm == NRM_LAYER_NORM; i++)
                x[t * N * IN + i] *= huge(); /* the variance is infinite, the output 0 */
            if (norm == NRM_LAYER_NORM && !NO_ROOM) continue;
            rc = nrm_rnn_forward(y, scale, mean, rstd, x, &rnn, NRM_TRAIN);
            if (!CHECK(rc == (t < T))) printf("    norm %d, step %d: %d\n", norm, (int)t, rc);
        }
}

/* A network says what any of its layers, parts of the examples and results has met. */
static void test_networks(void)
{
    enum { INPUTS = 3, UNITS = 4, CLASSES = 3, BATCH = 6, N = 3 * BATCH };
    static const int labels[N] = {0, 1, 2, 2, 1, 0, 0, 1, 2, 0, 1, 2, 0, 1, 2, 1, 1, 0};
    static double memory[4096];
    int k;
    for (k = 0; k < 7; k++) {
        nrm_mlp_spec spec = nrm_mlp_defaults();
        nrm_mlp_layer shape[3];
        nrm_mlp *net = NULL;
        nrm_acc loss, hits;
        int rc;
        memset(shape, 0, sizeof shape);
        shape[0].width = shape[1].width = UNITS;
        shape[0].norm = k == 2 ? NRM_LAYER_NORM : NRM_BATCH_NORM;
        shape[1].norm = NRM_BATCH_NORM;
        shape[0].activation = shape[1].activation = NRM_TANH;
        shape[2].width = CLASSES;
        shape[2].bias = 1;
        spec.inputs = INPUTS, spec.layers = 3, spec.layer = shape, spec.max_batch = BATCH;
        prepare();
        OK(nrm_mlp_init(&net, memory, sizeof memory, &spec));
        if (net == NULL) return;
        OK(nrm_mlp_forward(net, x, BATCH, NRM_TRAIN));
        if (k == 1) { /* the first layer's running mean stays a NaN; the output is fine */
            net->state[0].running.mean[1] = (nrm_real)NAN;
            CHECK_INT(nrm_mlp_forward(net, x, BATCH, NRM_TRAIN), NRM_NONFINITE);
        }
        if (k == 2 && NO_ROOM) {
            size_t i;
            for (i = 0; i < BATCH * INPUTS; i++) x[i] *= huge();
            CHECK_INT(nrm_mlp_forward(net, x, BATCH, NRM_INFER), NRM_NONFINITE);
            CHECK_INT(nrm_mlp_eval(net, &loss, &hits, x, labels, N), NRM_NONFINITE);
            CHECK(isfinite((double)loss));
        }
        if (k == 4) { /* a label that its logit excludes: of all results the loss alone */
            net->state[2].b[1] = -(nrm_real)INFINITY;
            OK(nrm_mlp_forward(net, x, BATCH, NRM_INFER));
            CHECK_INT(nrm_mlp_eval(net, &loss, &hits, x, labels, N), NRM_NONFINITE);
            CHECK_INT(nrm_mlp_gradient(net, &loss, x, labels, BATCH, NRM_FROZEN), NRM_NONFINITE);
        }
        if (k == 5) { /* in the first part of the examples only */
            x[0] = (nrm_real)NAN;
            CHECK_INT(nrm_mlp_eval(net, &loss, NULL, x, labels, N), NRM_NONFINITE);
            OK(nrm_mlp_eval(net, NULL, &hits, x + INPUTS, labels + 1, N - 1));
        }
        if (k == 6) { /* of an infinite input, which tanh hides */
            x[BATCH * INPUTS - 1] = (nrm_real)INFINITY;
            rc = nrm_mlp_train_step(net, &loss, x, labels, BATCH);
            CHECK(rc == NRM_NONFINITE && net->steps == 0);
        }
        if (k == 3) OK(nrm_mlp_eval(net, &loss, &hits, x, labels, N));
    }
}

int main(void)
{
    RUN(test_wherever_it_is);
    RUN(test_in_two_places);
    RUN(test_gradients_are_passed_on);
    RUN(test_empty_channels);
    RUN(test_rows_of_logits);
    RUN(test_weights);
    RUN(test_steps);
    RUN(test_networks);
    return test_report("status");
}
