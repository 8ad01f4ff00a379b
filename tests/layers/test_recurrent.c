/* test_recurrent.c - the recurrent layer: its values and gradients against a plain one in long
   double, what it refuses, and that steps do not depend on how they are called. That the gradients
   are derivatives is what tests/equations has: test_complexstep.c, functions.claims. */
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"
#include "recurrent.h"
#include "test.h"
#include <float.h>
#include <stdlib.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const int in_float = sizeof(nrm_real) == sizeof(float);
static const int acc_in_float = sizeof(nrm_acc) == sizeof(float);

typedef struct kind { /* of layer */
    const char *name;
    int norm, mode;
} kind;

static const kind kinds[] = {
    {"no norm", NRM_NO_NORM, NRM_TRAIN},
    {"layer norm", NRM_LAYER_NORM, NRM_TRAIN},
    {"batch norm, train", NRM_BATCH_NORM, NRM_TRAIN},
    {"batch norm, frozen", NRM_BATCH_NORM, NRM_FROZEN},
};
static const int activations[] = {NRM_IDENTITY, NRM_RELU, NRM_TANH, NRM_SIGMOID};
static const size_t steps[] = {1, 2, 7, 50};

/* ---- values ---------------------------------------------------------------------------------- */

/* The largest difference, in units of the largest number; got is in nrm_real or in nrm_acc. */
static double gap_of(const nrm_real *reals, const nrm_acc *accs, const rnn_wide *should, size_t n)
{
    rnn_wide worst = 0, size = 0;
    size_t i;
    for (i = 0; i < n; i++) {
        const rnn_wide got = reals != NULL ? (rnn_wide)reals[i] : (rnn_wide)accs[i];
        const rnn_wide d = fabsl(got - should[i]);
        if (!(d <= worst)) worst = d;
        if (fabsl(should[i]) > size) size = fabsl(should[i]);
    }
    return worst == 0 ? 0 : (double)(worst / size);
}

static double gap(const nrm_real *got, const rnn_wide *should, size_t n)
{
    return gap_of(got, NULL, should, n);
}

/* Everything that a case has left, against the plain layer. */
static double case_gap(const rnn_case *k, const plain_rnn *p)
{
    const size_t H = p->H;
    double worst = gap(k->h, p->h, k->states);
    worst = fmax(worst, gap(k->a, p->a, k->sums));
    worst = fmax(worst, gap_of(NULL, k->mean, p->mean, k->saved));
    worst = fmax(worst, gap_of(NULL, k->rstd, p->r, k->saved));
    worst = fmax(worst, gap(k->dh, p->dh, k->states));
    worst = fmax(worst, gap(k->da, p->da, k->sums));
    worst = fmax(worst, gap(k->dx, p->dx, k->inputs));
    worst = fmax(worst, gap(k->dWx, p->dWx, p->in * H));
    worst = fmax(worst, gap(k->dWh, p->dWh, H * H));
    worst = fmax(worst, gap(k->dbeta, p->dbeta, H));
    return p->norm == NRM_NO_NORM ? worst : fmax(worst, gap(k->dgamma, p->dgamma, H));
}

static void poison(rnn_case *k)
{
    size_t i;
    for (i = k->rnn.N * k->rnn.H; i < k->states; i++) k->h[i] = (nrm_real)NAN;
    for (i = 0; i < k->sums; i++) k->a[i] = k->da[i] = (nrm_real)NAN;
    for (i = 0; i < k->inputs; i++) k->dx[i] = (nrm_real)NAN;
    for (i = 0; i < k->saved; i++) k->mean[i] = k->rstd[i] = (nrm_acc)NAN;
}

/* An error made at one step is carried on by those that follow, so the bound grows with them.
   Weights from a hundredth to a hundredfold; without a norm not so far, and not through 50 steps,
   where what is left has been multiplied by all of them. */
static void check_values(const kind *what, int activation)
{
    static rnn_case k;
    static plain_rnn p;
    static const double scales[] = {0.7, 0.01, 0.1, 1, 10, 100};
    double worst = 0;
    size_t s, N, H, c;
    nrm_rng rng;
    nrm_rng_seed(&rng, 31, (uint64_t)(what - kinds) * 4 + (uint64_t)activation);
    for (s = 0; s < COUNT(steps); s++)
        for (N = 1; N <= 4; N++)
            for (H = 1; H <= 7; H = H * 2 + 1) /* 1, 3, 7 */
                for (c = 0; c < COUNT(scales); c++) {
                    const double unit = in_float ? (double)FLT_EPSILON : DBL_EPSILON;
                    const double bound = (400 + 100 * (double)steps[s]) * unit, scale = scales[c];
                    double found;
                    /* of two values little is left (BN.23), of one nothing; and the sums of a
                       single unit may cancel */
                    if (what->norm == NRM_BATCH_NORM && what->mode == NRM_TRAIN &&
                        N < (c == 0 ? 2 : 3))
                        continue;
                    if (c > 0 && H == 1) continue;
                    if (what->norm == NRM_NO_NORM && (scale > 1 || scale < 0.1)) continue;
                    rnn_prepare(&k, what->norm, what->mode, activation, steps[s], N, 1 + N % 3, H,
                                scale, scale * scale / 10, &rng);
                    plain_rnn_of(&p, &k);
                    poison(&k);
                    OK(rnn_forward(&k));
                    OK(rnn_backward(&k));
                    plain_forward(&p);
                    plain_backward(&p);
                    found = case_gap(&k, &p);
                    worst = fmax(worst, found / bound);
                    if (!CHECK(found <= bound))
                        printf("  %s, activation %d, T=%u N=%u H=%u scale %g: off by %g\n",
                               what->name, activation, (unsigned)steps[s], (unsigned)N, (unsigned)H,
                               scale, found);
                }
    printf("%-18s activation %d: %.2f of the bound\n", what->name, activation, worst);
}

static void test_values(void)
{
    size_t i, j;
    for (i = 0; i < COUNT(kinds); i++)
        for (j = 0; j < COUNT(activations); j++) check_values(&kinds[i], activations[j]);
}

/* ---- steps ----------------------------------------------------------------------------------- */

enum { T7 = 7, N4 = 4, IN2 = 2, H7 = 7 }; /* the shape of the cases that follow */

static void prepare_usual(rnn_case *k, const kind *what, uint64_t seed)
{
    size_t t;
    nrm_rng rng;
    nrm_rng_seed(&rng, seed, 33);
    rnn_prepare(k, what->norm, what->mode, NRM_TANH, T7, N4, IN2, H7, 1, 1e-5, &rng);
    for (t = 0; t < T7; t++) k->running[t].new_weight = (nrm_real)0.25;
}

static int same_bits(const nrm_real *a, const nrm_real *b, size_t n)
{
    return memcmp(a, b, n * sizeof *a) == 0;
}

/* A sequence in two calls, the second from the last state of the first. */
static void test_two_calls_are_one(void)
{
    static rnn_case whole, part;
    const size_t first = 3, state = N4 * H7, rest = T7 - first;
    size_t i;
    for (i = 0; i < COUNT(kinds); i++) {
        prepare_usual(&whole, &kinds[i], 1);
        part = whole;
        rnn_point(&part);
        OK(rnn_forward(&whole));
        part.rnn.T = first;
        OK(rnn_forward(&part));
        CHECK(same_bits(part.h, whole.h, (first + 1) * state));
        part.rnn.T = rest;
        memmove(part.h, part.h + first * state, state * sizeof *part.h);
        memmove(part.x, part.x + first * N4 * IN2, rest * N4 * IN2 * sizeof *part.x);
        if (part.rnn.running != NULL) part.rnn.running = part.running + first;
        OK(rnn_forward(&part));
        CHECK(same_bits(part.h, whole.h + first * state, (rest + 1) * state));
    }
}

/* With layer norm or none a sequence does not know who is beside it; with batch norm it does. */
static void test_who_is_beside(void)
{
    static rnn_case k, other;
    size_t i, t;
    for (i = 0; i < 3; i++) {
        int kept = 1;
        prepare_usual(&k, &kinds[i], 2);
        other = k;
        rnn_point(&other);
        for (t = 0; t < T7; t++) /* the last sequence only */
            other.x[(t * N4 + N4 - 1) * IN2] += 1;
        OK(rnn_forward(&k));
        OK(rnn_forward(&other));
        for (t = 1; t <= T7; t++) {
            kept = kept && same_bits(k.h + t * N4 * H7, other.h + t * N4 * H7, (N4 - 1) * H7);
            CHECK(!same_bits(k.h + (t * N4 + N4 - 1) * H7, other.h + (t * N4 + N4 - 1) * H7, H7));
        }
        CHECK_INT(kept, kinds[i].norm != NRM_BATCH_NORM);
    }
}

/* RNN.13 to the bit: all weights twice as large, and eps four times. */
static void test_scale_of_weights(void)
{
    static rnn_case k, twice;
    size_t i, j;
    for (i = 1; i < 3; i++) {
        prepare_usual(&k, &kinds[i], 3);
        twice = k;
        rnn_point(&twice);
        for (j = 0; j < H7 * H7; j++) twice.Wh[j] *= 2;
        for (j = 0; j < IN2 * H7; j++) twice.Wx[j] *= 2;
        twice.rnn.eps *= 4;
        OK(rnn_forward(&k));
        OK(rnn_forward(&twice));
        OK(rnn_backward(&k));
        OK(rnn_backward(&twice));
        CHECK(same_bits(k.h, twice.h, k.states));
        CHECK(same_bits(k.dh, twice.dh, k.states));
        CHECK(same_bits(k.dgamma, twice.dgamma, H7));
        for (j = 0; j < H7 * H7; j++) CHECK_NEAR(twice.dWh[j] * 2, k.dWh[j], 0);
    }
}

/* Infer mode is frozen mode without saved statistics; layer norm and none know no modes. */
static void test_modes(void)
{
    static rnn_case k, other;
    size_t i;
    for (i = 0; i < COUNT(kinds); i++) {
        prepare_usual(&k, &kinds[i], 4);
        other = k;
        rnn_point(&other);
        if (kinds[i].norm == NRM_BATCH_NORM) k.mode = other.mode = NRM_FROZEN;
        rnn_point(&k);
        rnn_point(&other);
        OK(rnn_forward(&k));
        OK(nrm_rnn_forward(other.h, other.a, NULL, NULL, other.x, &other.rnn, NRM_INFER));
        CHECK(same_bits(k.h, other.h, k.states));
        if (kinds[i].norm == NRM_NO_NORM) continue;
        CHECK_INT(
            nrm_rnn_forward(other.h, other.a, other.mean, NULL, other.x, &other.rnn, NRM_INFER),
            NRM_ENULL); /* both or neither */
        OK(nrm_rnn_forward(other.h, other.a, other.mean, other.rstd, other.x, &other.rnn,
                           NRM_INFER));
        CHECK(memcmp(other.rstd, k.rstd, k.saved * sizeof *k.rstd) == 0);
    }
}

/* Each step has running statistics of its own: those of as many separate layers. */
static void test_running_statistics(void)
{
    static rnn_case k, before;
    nrm_real y[N4 * H7];
    nrm_acc mean[H7], rstd[H7];
    size_t t;
    int cumulative;
    for (cumulative = 0; cumulative < 2; cumulative++) {
        prepare_usual(&k, &kinds[2], 5);
        k.rnn.running = k.running;
        for (t = 0; t < T7; t++) {
            k.running[t].new_weight = (nrm_real)0.25;
            k.running[t].cumulative = cumulative;
        }
        before = k;
        rnn_point(&before);
        OK(rnn_forward(&k));
        for (t = 0; t < T7; t++) {
            OK(nrm_batchnorm_forward(y, mean, rstd, &before.running[t], k.a + t * N4 * H7, k.gamma,
                                     k.beta, NRM_TRAIN, k.rnn.eps, N4, H7, 1));
            CHECK_INT(k.running[t].batches, 1);
            CHECK(memcmp(rstd, k.rstd + t * H7, sizeof rstd) == 0);
        }
        CHECK(same_bits(k.run_mean, before.run_mean, T7 * H7));
        CHECK(same_bits(k.run_var, before.run_var, T7 * H7));
    }
}

/* A sequence longer than those of the training: its last steps have no statistics. */
static void test_longer_than_training(void)
{
    static rnn_case k;
    prepare_usual(&k, &kinds[2], 6);
    k.rnn.running = k.running;
    k.rnn.T = 5;
    OK(rnn_forward(&k));
    k.mode = NRM_FROZEN;
    OK(rnn_forward(&k));
    OK(rnn_backward(&k));
    k.rnn.T = T7;
    CHECK_INT(rnn_forward(&k), NRM_ESIZE);
    CHECK_INT(nrm_rnn_forward(k.h, k.a, NULL, NULL, k.x, &k.rnn, NRM_INFER), NRM_ESIZE);
    k.rnn.running = k.running + 5; /* none of these has seen a batch: somebody has set them */
    k.rnn.T = 2;
    OK(rnn_forward(&k));
}

/* A NaN spoils its own sequence with layer norm, from its step on; with batch norm all of them, and
   no running statistic. */
static void test_poison(void)
{
    static rnn_case k, clean;
    size_t i, t, n;
    for (i = 0; i < 3; i++) {
        prepare_usual(&k, &kinds[i], 7);
        k.rnn.running = k.running;
        for (t = 0; t < T7; t++) k.running[t].new_weight = (nrm_real)0.5;
        clean = k;
        rnn_point(&clean);
        OK(rnn_forward(&clean));
        k.x[(2 * N4 + 1) * IN2] = (nrm_real)NAN; /* step 2, sequence 1 */
        CHECK_INT(rnn_forward(&k), kinds[i].norm == NRM_NO_NORM ? NRM_OK : NRM_NONFINITE);
        CHECK(same_bits(k.h, clean.h, 3 * N4 * H7));
        for (t = 3; t <= T7; t++)
            for (n = 0; n < N4; n++) {
                const nrm_real *h = k.h + (t * N4 + n) * H7;
                if (n == 1 || kinds[i].norm == NRM_BATCH_NORM)
                    CHECK(h[0] != h[0] && h[H7 - 1] != h[H7 - 1]);
                else
                    CHECK(same_bits(h, clean.h + (t * N4 + n) * H7, H7));
            }
        for (t = 0; t < T7 * H7; t++) CHECK(k.run_mean[t] - k.run_mean[t] == 0);
    }
}

/* Parameters' gradients add up over calls; what is not wanted may be NULL. */
static void test_gradients_accumulate(void)
{
    static rnn_case k, again;
    size_t i, j;
    for (i = 0; i < COUNT(kinds); i++) {
        nrm_rnn_grads only;
        prepare_usual(&k, &kinds[i], 8);
        OK(rnn_forward(&k));
        OK(rnn_backward(&k));
        again = k;
        rnn_point(&again);
        OK(rnn_backward(&again));
        for (j = 0; j < H7 * H7; j++)
            CHECK_NEAR(again.dWh[j] / 2, k.dWh[j], in_float ? 1e-5 : 1e-13);
        for (j = 0; j < H7; j++)
            CHECK_NEAR(again.dbeta[j] / 2, k.dbeta[j], in_float ? 1e-5 : 1e-13);
        memcpy(again.dh, k.e, sizeof again.dh);
        OK(nrm_rnn_backward(again.dh, NULL, NULL, again.da, k.h, k.a, k.mean, k.rstd, NULL, &k.rnn,
                            k.mode));
        CHECK(same_bits(again.dh, k.dh, k.states) && same_bits(again.da, k.da, k.sums));
        memset(&only, 0, sizeof only);
        memset(again.dWh, 0, sizeof again.dWh);
        only.dWh = again.dWh;
        memcpy(again.dh, k.e, sizeof again.dh);
        k.rnn.Wx = NULL; /* not needed without dx */
        OK(nrm_rnn_backward(again.dh, NULL, &only, again.da, k.h, k.a, k.mean, k.rstd, NULL, &k.rnn,
                            k.mode));
        CHECK(same_bits(again.dWh, k.dWh, H7 * H7));
    }
}

/* ---- refusals -------------------------------------------------------------------------------- */

typedef struct call { /* the arguments of both passes, to be spoiled one at a time */
    nrm_real *h, *a, *dh, *dx, *da;
    nrm_acc *mean, *rstd;
    const nrm_real *x;
    nrm_rnn rnn;
    const nrm_rnn *layer; /* &rnn, or NULL */
    nrm_rnn_grads grads;
    int mode;
} call;

static rnn_case store, kept; /* the buffers of all calls, and a copy of them */

static call usual_call(const kind *what)
{
    call c;
    memset(&c, 0, sizeof c);
    prepare_usual(&store, what, 9);
    if (what->norm == NRM_BATCH_NORM) store.rnn.running = store.running;
    OK(rnn_forward(&store));
    c.h = store.h;
    c.a = store.a;
    c.dh = store.dh;
    c.dx = store.dx;
    c.da = store.da;
    c.mean = what->norm == NRM_NO_NORM ? NULL : store.mean;
    c.rstd = what->norm == NRM_NO_NORM ? NULL : store.rstd;
    c.x = store.x;
    c.rnn = store.rnn;
    c.grads.dWx = store.dWx;
    c.grads.dWh = store.dWh;
    c.grads.dgamma = store.dgamma;
    c.grads.dbeta = store.dbeta;
    c.mode = what->mode;
    kept = store;
    return c;
}

static int forward_of(call *c)
{
    return nrm_rnn_forward(c->h, c->a, c->mean, c->rstd, c->x, &c->rnn, c->mode);
}

static int backward_of(call *c)
{
    return nrm_rnn_backward(c->dh, c->dx, &c->grads, c->da, c->h, c->a, c->mean, c->rstd, c->x,
                            &c->rnn, c->mode);
}

/* Both passes (or one) must refuse with this code, and write nothing. */
#define REFUSED(pass, code)                                                                        \
    do {                                                                                           \
        CHECK_INT(pass(&c), code);                                                                 \
        CHECK(memcmp(&store, &kept, sizeof store) == 0);                                           \
    } while (0)
#define BOTH_REFUSED(code)                                                                         \
    do {                                                                                           \
        REFUSED(forward_of, code);                                                                 \
        REFUSED(backward_of, code);                                                                \
    } while (0)

static void test_null_pointers(void)
{
    size_t i;
    for (i = 0; i < COUNT(kinds); i++) {
        const kind *what = &kinds[i];
        const int norm = what->norm != NRM_NO_NORM;
        call c;
        CHECK_INT(nrm_rnn_forward(NULL, NULL, NULL, NULL, NULL, NULL, NRM_TRAIN), NRM_ENULL);
        CHECK_INT(
            nrm_rnn_backward(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NRM_TRAIN),
            NRM_ENULL);
#define WITHOUT(member, pass)                                                                      \
    c = usual_call(what);                                                                          \
    c.member = NULL;                                                                               \
    REFUSED(pass, NRM_ENULL)
        WITHOUT(h, forward_of);
        WITHOUT(a, forward_of);
        WITHOUT(x, forward_of);
        WITHOUT(rnn.Wx, forward_of);
        WITHOUT(rnn.Wh, forward_of);
        WITHOUT(dh, backward_of);
        WITHOUT(da, backward_of);
        WITHOUT(h, backward_of);
        WITHOUT(x, backward_of);
        WITHOUT(rnn.Wx, backward_of);
        WITHOUT(rnn.Wh, backward_of);
        if (norm) {
            WITHOUT(mean, forward_of);
            WITHOUT(rstd, forward_of);
            c = usual_call(what); /* one without the other, where neither is needed */
            c.mode = NRM_INFER;
            c.mean = NULL;
            REFUSED(forward_of, NRM_ENULL);
            WITHOUT(a, backward_of);
            WITHOUT(mean, backward_of);
            WITHOUT(rstd, backward_of);
        } else {
            c = usual_call(what);
            c.a = NULL;
            OK(backward_of(&c));
        }
        if (what->mode == NRM_FROZEN) {
            WITHOUT(rnn.running, forward_of);
            c = usual_call(what);
            store.running[0].mean = kept.running[0].mean = NULL;
            REFUSED(forward_of, NRM_ENULL);
            c = usual_call(what);
            store.running[3].var = kept.running[3].var = NULL;
            REFUSED(forward_of, NRM_ENULL);
        }
#undef WITHOUT
        c = usual_call(what);
        c.rnn.gamma = NULL;
        c.rnn.beta = NULL;
        OK(forward_of(&c));
        OK(backward_of(&c));
    }
}

static void test_settings(void)
{
    size_t i;
    for (i = 0; i < COUNT(kinds); i++) {
        const kind *what = &kinds[i];
        call c;
#define WITH(member, value, code)                                                                  \
    c = usual_call(what);                                                                          \
    c.member = value;                                                                              \
    BOTH_REFUSED(code)
        WITH(mode, 3, NRM_EMODE);
        WITH(mode, -1, NRM_EMODE);
        WITH(rnn.norm, NRM_NOISY_BATCH_NORM, NRM_EKIND);
        WITH(rnn.norm, -1, NRM_EKIND);
        WITH(rnn.activation, 4, NRM_EKIND);
        WITH(rnn.activation, -1, NRM_EKIND);
        WITH(rnn.in, 0, NRM_ESIZE);
        WITH(rnn.H, 0, NRM_ESIZE);
        WITH(rnn.in, SIZE_MAX / 2, NRM_EOVERFLOW);
        WITH(rnn.H, SIZE_MAX / 2, NRM_EOVERFLOW);
        WITH(rnn.N, SIZE_MAX / 2, NRM_EOVERFLOW);
        WITH(rnn.T, SIZE_MAX / 2, NRM_EOVERFLOW);
        WITH(rnn.T, SIZE_MAX, NRM_EOVERFLOW);
        if (what->norm != NRM_NO_NORM) {
            WITH(rnn.eps, -NRM_EPS, NRM_EEPS);
            WITH(rnn.eps, (nrm_real)NAN, NRM_EEPS);
        }
#undef WITH
        c = usual_call(what);
        c.mode = NRM_INFER;
        REFUSED(backward_of, NRM_EMODE);
        c = usual_call(what);
        c.rnn.N = 1;
        if (what->norm == NRM_BATCH_NORM && what->mode == NRM_TRAIN) BOTH_REFUSED(NRM_EBATCH);
        c.rnn.eps = -1; /* which comes first */
        if (what->norm != NRM_NO_NORM) BOTH_REFUSED(NRM_EEPS);
        c = usual_call(what);
        c.rnn.N = 0;
        BOTH_REFUSED(NRM_OK);
        c = usual_call(what);
        c.rnn.T = 0;
        BOTH_REFUSED(NRM_OK);
    }
}

static void test_running_arguments(void)
{
    size_t i;
    call c = usual_call(&kinds[2]);
    store.running[3].new_weight = kept.running[3].new_weight = (nrm_real)1.5;
    REFUSED(forward_of, NRM_EWEIGHT);
    c = usual_call(&kinds[2]);
    store.running[3].new_weight = kept.running[3].new_weight = 0; /* would never learn */
    REFUSED(forward_of, NRM_EWEIGHT);
    c = usual_call(&kinds[2]);
    store.running[4].var = kept.running[4].var = store.running[4].mean;
    REFUSED(forward_of, NRM_EALIAS);
    c = usual_call(&kinds[2]);
    store.running[4].var = kept.running[4].var = store.h + 5; /* an output */
    REFUSED(forward_of, NRM_EALIAS);
    c = usual_call(&kinds[2]);
    store.running[4].var = kept.running[4].var = store.gamma; /* would be written */
    REFUSED(forward_of, NRM_EALIAS);
    c = usual_call(&kinds[3]);
    for (i = 0; i < H7; i++) store.a[i] = kept.a[i] = 1;
    store.running[4].var = kept.running[4].var = store.a; /* would be overwritten */
    REFUSED(forward_of, NRM_EALIAS);
    c = usual_call(&kinds[3]);
    store.run_var[4 * H7 + 1] = kept.run_var[4 * H7 + 1] = -1;
    REFUSED(forward_of, NRM_ESTATS);
    c = usual_call(&kinds[3]); /* read only: they may be anywhere, and shared */
    store.running[4] = kept.running[4] = store.running[3];
    OK(forward_of(&c));
}

/* ---- overlaps -------------------------------------------------------------------------------- */

enum { BUFFERS = 15, ROOM = 1024 };

typedef struct spot { /* a buffer: the pointer to it (of one type or another), and its size */
    void *at;
    size_t count; /* in nrm_real */
    int output;
} spot;

static nrm_real room[BUFFERS][ROOM], room_before[BUFFERS][ROOM];

static void put(const spot *s, const nrm_real *where)
{
    const void *address = where;
    memcpy(s->at, &address, sizeof address);
}

/* Each buffer gets a place of its own, far from the others. */
static void spread_out(spot *s, size_t n)
{
    size_t i, j;
    for (i = 0; i < n; i++) {
        for (j = 0; j < ROOM; j++) room[i][j] = (nrm_real)0.01;
        if (s[i].count > 0) put(&s[i], room[i]);
    }
}

/* Each output in turn is laid on the last number of each other buffer. */
static void check_overlaps(int (*pass)(call *), call *c, spot *s, size_t n)
{
    size_t i, j;
    spread_out(s, n);
    CHECK(pass(c) == NRM_OK);
    for (i = 0; i < n; i++)
        for (j = 0; j < n; j++) {
            if (i == j || !s[i].output || s[i].count == 0 || s[j].count == 0) continue;
            spread_out(s, n);
            memcpy(room_before, room, sizeof room);
            put(&s[i], room[j] + s[j].count - 1);
            if (!CHECK(pass(c) == NRM_EALIAS)) printf("  %u on %u\n", (unsigned)i, (unsigned)j);
            CHECK(memcmp(room, room_before, sizeof room) == 0);
        }
}

static spot spot_of(void *at, size_t count, int output)
{
    spot s;
    s.at = at;
    s.count = count;
    s.output = output;
    return s;
}

static void test_overlaps(void)
{
    const size_t width = (sizeof(nrm_acc) + sizeof(nrm_real) - 1) / sizeof(nrm_real);
    size_t i;
    for (i = 0; i < COUNT(kinds); i++) {
        call c = usual_call(&kinds[i]);
        const size_t norm = kinds[i].norm != NRM_NO_NORM, saved = store.saved * width;
        spot s[BUFFERS];
        if (kinds[i].mode == NRM_TRAIN) c.rnn.running = NULL;
        s[0] = spot_of(&c.h, store.states, 1);
        s[1] = spot_of(&c.a, store.sums, 1);
        s[2] = spot_of(&c.mean, saved, 1);
        s[3] = spot_of(&c.rstd, saved, 1);
        s[4] = spot_of(&c.x, store.inputs, 0);
        s[5] = spot_of(&c.rnn.Wx, IN2 * H7, 0);
        s[6] = spot_of(&c.rnn.Wh, H7 * H7, 0);
        s[7] = spot_of(&c.rnn.gamma, norm * H7, 0);
        s[8] = spot_of(&c.rnn.beta, H7, 0);
        check_overlaps(forward_of, &c, s, 9);
        c = usual_call(&kinds[i]);
        s[0] = spot_of(&c.dh, store.states, 1);
        s[1] = spot_of(&c.dx, store.inputs, 1);
        s[2] = spot_of(&c.da, store.sums, 1);
        s[3] = spot_of(&c.grads.dWx, IN2 * H7, 1);
        s[4] = spot_of(&c.grads.dWh, H7 * H7, 1);
        s[5] = spot_of(&c.grads.dgamma, norm * H7, 1);
        s[6] = spot_of(&c.grads.dbeta, H7, 1);
        s[7] = spot_of(&c.h, store.states, 0);
        s[8] = spot_of(&c.a, norm * store.sums, 0);
        s[9] = spot_of(&c.mean, saved, 0);
        s[10] = spot_of(&c.rstd, saved, 0);
        s[11] = spot_of(&c.x, store.inputs, 0);
        s[12] = spot_of(&c.rnn.Wx, IN2 * H7, 0);
        s[13] = spot_of(&c.rnn.Wh, H7 * H7, 0);
        s[14] = spot_of(&c.rnn.gamma, norm * H7, 0);
        check_overlaps(backward_of, &c, s, BUFFERS);
    }
}

int main(void)
{
    RUN(test_values);
    RUN(test_two_calls_are_one);
    RUN(test_who_is_beside);
    RUN(test_scale_of_weights);
    RUN(test_modes);
    RUN(test_running_statistics);
    RUN(test_longer_than_training);
    RUN(test_poison);
    RUN(test_gradients_accumulate);
    RUN(test_null_pointers);
    RUN(test_settings);
    RUN(test_running_arguments);
    RUN(test_overlaps);
    return test_report(acc_in_float ? "recurrent (float sums)"
                       : in_float   ? "recurrent (float)"
                                    : "recurrent (double)");
}
