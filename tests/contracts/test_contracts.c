/* test_contracts.c - what normlayers.h promises beside its equations: each wrong argument refused
   with its code and nothing written, in-place use where it is documented and nowhere else, N = 0,
   constant and huge inputs, NaN kept in its channel or row, gradients that accumulate.

   The functions share one form of contract, so most checks are written once and run over a table
   of calls (`sites`). Each buffer of a call has a slot of its own in an arena; a refused call must
   leave the whole arena as it was, byte for byte, and an accepted one may change outputs only. */
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"
#include "lab/draw.h"
#include "test.h"
#include <float.h>
#include <limits.h>
#include <stdlib.h>
#include "sites.h"

static nrm_real *real_at(const args *a, int i)
{
    return (nrm_real *)a->p[i];
}

static int *label_at(const args *a, int i)
{
    return (int *)a->p[i];
}

static nrm_stats *stats_at(const args *a, int i)
{
    return (nrm_stats *)a->p[i];
}

static nrm_running *running_of(args *a, int i)
{
    a->running.mean = real_at(a, i);
    a->running.var = real_at(a, i + 1);
    return a->null_running ? NULL : &a->running;
}

/* A failed check inside a loop says where in the loop it was. */
#define CHECK_AT(cond, s, what, i, j)                                                              \
    do {                                                                                           \
        if (!CHECK(cond) && test_bad <= 20)                                                        \
            printf("    %s: %s %d %d\n", (s)->name, (what), (int)(i), (int)(j));                   \
    } while (0)
#define CHECK_RC(rc, expected, s, what, i, j)                                                      \
    do {                                                                                           \
        const int got_ = (rc);                                                                     \
        if (!CHECK(got_ == (expected)) && test_bad <= 20)                                          \
            printf("    %s: %s %d %d: %d (%s)\n", (s)->name, (what), (int)(i), (int)(j), got_,     \
                   nrm_strerror(got_));                                                            \
    } while (0)

/* Numbers with few bits, all between 1 and 2: read as another type they are harmless too. */
static void fill(const site *s, const args *a, int i)
{
    unsigned char *at = arena.slot[i] + MARGIN;
    size_t k;
    for (k = 0; k < bytes_of(s, i, a) / sizeof(nrm_real) && type(s, i) == 'r'; k++)
        ((nrm_real *)(void *)at)[k] =
            (nrm_real)(1 + (double)((k * 5 + (size_t)i * 3) % 8) / 8);
    for (k = 0; k < bytes_of(s, i, a) / sizeof(nrm_acc) && type(s, i) == 'a'; k++)
        ((nrm_acc *)(void *)at)[k] = (nrm_acc)(1 + (double)((k * 3 + (size_t)i) % 8) / 8);
    for (k = 0; k < bytes_of(s, i, a) / sizeof(nrm_acc) && strchr("tu", type(s, i)) != NULL; k++)
        ((nrm_acc *)(void *)at)[k] = (nrm_acc)(2 + k % 5); /* a count, a mean, a sum of squares */
    for (k = 0; k < bytes_of(s, i, a) && type(s, i) == 'm'; k++)
        at[k] = (unsigned char)(k % 3 != 1);
    for (k = 0; k < bytes_of(s, i, a) / sizeof(int) && type(s, i) == 'l'; k++)
        ((int *)(void *)at)[k] = (int)(k % 2);
}

/* Valid arguments, and the arena filled; the state is kept in `before`. */
static args prepare(const site *s)
{
    args a;
    int i;
    memset(&a, 0, sizeof a);
    memset(&arena, 0xA5, sizeof arena);
    a.N = strlen(s->sizes) == 1 ? 24 : 4; /* even, so that all types fit behind any buffer */
    a.C = 4;
    a.S = 2;
    a.eps = NRM_EPS;
    a.kind = s->kind;
    a.noise = nrm_noise_paper();
    a.running.new_weight = (nrm_real)0.25;
    nrm_rng_seed(&a.rng, 7, 8);
    for (i = 0; i < buffers_of(s); i++) {
        a.p[i] = arena.slot[i] + MARGIN;
        fill(s, &a, i);
    }
    before = arena;
    return a;
}

static void keep(void)
{
    before = arena;
}

static int same_rng(const nrm_rng *a, const nrm_rng *b) /* which has gaps */
{
    return a->state == b->state && a->increment == b->increment && a->spare == b->spare &&
           a->has_spare == b->has_spare;
}

/* Nothing at all has changed. */
static int untouched(const args *a, const args *b)
{
    const nrm_running *r = &a->running, *s = &b->running;
    return memcmp(&arena, &before, sizeof arena) == 0 && r->batches == s->batches &&
           r->cumulative == s->cumulative && r->biased == s->biased &&
           memcmp(&r->new_weight, &s->new_weight, sizeof r->new_weight) == 0 &&
           memcmp(&a->noise, &b->noise, sizeof a->noise) == 0 &&
           same_rng(&a->rng, &b->rng);
}

static void refused(const site *s, args *a, int expected, const char *what, int i, int j)
{
    const args kept = *a;
    CHECK_RC(site_call(s, a), expected, s, what, i, j);
    CHECK_AT(untouched(a, &kept), s, what, i, j);
}

/* Only outputs have changed, and nothing around them. */
static int only_outputs_changed(const site *s, const args *a)
{
    int i, ok = 1;
    for (i = 0; i < SLOTS; i++) {
        const size_t from = MARGIN, to = MARGIN + (i < buffers_of(s) ? bytes_of(s, i, a) : 0);
        if (i >= buffers_of(s) || !is_output(s, i)) {
            ok &= memcmp(arena.slot[i], before.slot[i], ROOM) == 0;
            continue;
        }
        ok &= memcmp(arena.slot[i], before.slot[i], from) == 0;
        ok &= memcmp(arena.slot[i] + to, before.slot[i] + to, ROOM - to) == 0;
    }
    return ok;
}

static void test_valid_calls_write_outputs_only(void)
{
    nrm_rng seeded;
    int k, i;
    nrm_rng_seed(&seeded, 7, 8);
    for (k = 0; k < SITES; k++) {
        const site *s = &sites[k];
        args a = prepare(s);
        CHECK_RC(site_call(s, &a), NRM_OK, s, "valid", 0, 0);
        CHECK_AT(only_outputs_changed(s, &a), s, "only outputs", 0, 0);
        CHECK_AT(s->flags & NOISE || same_rng(&a.rng, &seeded), s, "rng", 0, 0);
        CHECK_AT(a.running.batches == (s->flags & RUNNING && s->kind == NRM_TRAIN), s, "batches", 0,
                 0);
        for (i = 0; i < buffers_of(s); i++)
            if (is_output(s, i))
                CHECK_AT(memcmp(arena.slot[i], before.slot[i], ROOM) != 0, s, "writes", i, 0);
    }
}

static void test_null_pointers(void)
{
    int k, i;
    for (k = 0; k < SITES; k++) {
        const site *s = &sites[k];
        args a;
        for (i = 0; i < buffers_of(s); i++) {
            a = prepare(s);
            a.p[i] = NULL;
            if (role(s, i) == 'o' || role(s, i) == 'i')
                refused(s, &a, NRM_ENULL, "null", i, 0);
            else
                CHECK_RC(site_call(s, &a), NRM_OK, s, "optional null", i, 0);
        }
        if (s->flags & RUNNING) {
            a = prepare(s);
            a.null_running = 1;
            if (s->kind == NRM_TRAIN && !(s->flags & USED))
                CHECK_RC(site_call(s, &a), NRM_OK, s, "no running", 0, 0);
            else
                refused(s, &a, NRM_ENULL, "no running", 0, 0);
        }
        if (s->flags & NOISE) {
            a = prepare(s);
            a.null_noise = 1;
            refused(s, &a, NRM_ENULL, "no noise", 0, 0);
            a = prepare(s);
            a.null_rng = 1;
            refused(s, &a, NRM_ENULL, "no rng", 0, 0);
        }
    }
}

/* The NULL rules that tie two parameters to each other. */
static void test_null_pairs(void)
{
    const site *linear = &sites[1], *layer = &sites[7];
    args a = prepare(linear);
    CHECK_STR(linear->name, "linear backward");
    a.p[1] = a.p[4] = NULL; /* no dW, so x is not needed */
    OK(site_call(linear, &a));
    a = prepare(linear);
    a.p[0] = a.p[5] = NULL; /* no dx, so W is not needed */
    OK(site_call(linear, &a));
    a = prepare(layer);
    CHECK_STR(layer->name, "layer norm");
    a.p[1] = a.p[2] = NULL; /* nothing saved */
    OK(site_call(layer, &a));
}

static void test_sizes(void)
{
    int k;
    size_t i, j;
    for (k = 0; k < SITES; k++) {
        const site *s = &sites[k];
        args a;
        for (i = 0; i < strlen(s->sizes); i++) {
            a = prepare(s);
            *size_of(&a, s->sizes[i]) = SIZE_MAX / 2;
            refused(s, &a, NRM_EOVERFLOW, "overflow", (int)i, 0);
            a = prepare(s);
            *size_of(&a, s->sizes[i]) = SIZE_MAX;
            refused(s, &a, NRM_EOVERFLOW, "overflow", (int)i, 1);
            for (j = 0; j < i; j++) { /* each fits, the product wraps around to zero */
                a = prepare(s);
                *size_of(&a, s->sizes[i]) = *size_of(&a, s->sizes[j]) =
                    (size_t)1 << (sizeof(size_t) * CHAR_BIT / 2);
                refused(s, &a, NRM_EOVERFLOW, "wrap", (int)i, (int)j);
            }
            if (s->sizes[i] == 'N' && s->function != CALL_FOLD) continue; /* which has no batch */
            a = prepare(s);
            *size_of(&a, s->sizes[i]) = 0;
            refused(s, &a, NRM_ESIZE, "zero", (int)i, 0);
        }
    }
    CHECK_INT(nrm_rng_shuffle(NULL, NULL, 2), NRM_ENULL);
}

static void test_empty_batches(void)
{
    int k, i;
    for (k = 0; k < SITES; k++) {
        const site *s = &sites[k];
        args a = prepare(s), kept;
        if (s->sizes[0] != 'N' || s->flags & ALWAYS) continue; /* no batch, or see below */
        a.N = 0;
        for (i = s->flags & LOSS ? 1 : 0; i < SLOTS; i++) a.p[i] = NULL;
        kept = a;
        CHECK_RC(site_call(s, &a), NRM_OK, s, "empty", 0, 0);
        if (s->flags & LOSS) {
            CHECK_AT(acc_at(&a, 0)[0] == 0, s, "empty", 0, 0);
            fill(s, &a, 0);
            memcpy(arena.slot[0], before.slot[0], ROOM);
        }
        CHECK_AT(untouched(&a, &kept), s, "empty", 0, 0);
    }
}

static void test_settings(void)
{
    const nrm_real bad_eps[4] = {-NRM_EPS, (nrm_real)NAN, (nrm_real)INFINITY,
                                 -(nrm_real)INFINITY};
    const int bad_kind[4] = {-1, 3, 4, INT_MAX};
    int k, i;
    for (k = 0; k < SITES; k++) {
        const site *s = &sites[k];
        args a;
        for (i = 0; i < 4 && s->flags & EPS; i++) {
            a = prepare(s);
            a.eps = bad_eps[i];
            refused(s, &a, NRM_EEPS, "eps", i, 0);
        }
        if (s->flags & EPS) { /* no variance here is 0 */
            a = prepare(s);
            a.eps = 0;
            CHECK_RC(site_call(s, &a), NRM_OK, s, "eps", 0, 0);
        }
        for (i = 0; i < 4 && s->flags & MODE; i++) {
            a = prepare(s);
            a.kind = bad_kind[i];
            refused(s, &a, NRM_EMODE, "mode", i, 0);
        }
        for (i = 0; i < 4 && s->flags & ACTIVATION; i++) {
            a = prepare(s);
            if (bad_kind[i] == NRM_SIGMOID) continue;
            a.kind = bad_kind[i];
            refused(s, &a, NRM_EKIND, "kind", i, 0);
        }
        if (strstr(s->name, "norm backward") != NULL && s->flags & MODE) {
            a = prepare(s);
            a.kind = NRM_INFER;
            refused(s, &a, NRM_EMODE, "backward in infer mode", 0, 0);
        }
    }
}

static void test_one_value_per_channel(void)
{
    int k;
    for (k = 0; k < SITES; k++) {
        const site *s = &sites[k];
        args a;
        if (!(s->flags & MODE)) continue;
        a = prepare(s);
        a.N = a.S = 1;
        if (s->kind == NRM_TRAIN)
            refused(s, &a, NRM_EBATCH, "one value", 0, 0);
        else
            CHECK_RC(site_call(s, &a), NRM_OK, s, "one value", 0, 0);
        a = prepare(s);
        a.N = 1;
        CHECK_RC(site_call(s, &a), NRM_OK, s, "one example of two positions", 0, 0);
    }
}

static void test_running_arguments(void)
{
    const nrm_real bad_weight[4] = {(nrm_real)-0.125, (nrm_real)1.125, (nrm_real)NAN,
                                    (nrm_real)INFINITY};
    const nrm_real bad_var[4] = {-1, (nrm_real)NAN, (nrm_real)INFINITY, -(nrm_real)INFINITY};
    int k, i;
    for (k = 0; k < SITES; k++) {
        const site *s = &sites[k];
        const int at = running_at(s);
        const int used = s->kind != NRM_TRAIN || s->flags & USED;
        args a;
        if (!(s->flags & RUNNING)) continue;
        for (i = 0; i < 4 && s->kind == NRM_TRAIN; i++) {
            a = prepare(s);
            a.running.new_weight = bad_weight[i];
            refused(s, &a, NRM_EWEIGHT, "weight", i, 0);
            a.running.cumulative = 1; /* then the weight is not looked at */
            CHECK_RC(site_call(s, &a), NRM_OK, s, "weight", i, 1);
        }
        for (i = 0; i < 2 && s->kind == NRM_TRAIN; i++) { /* 1 is in the range; 0 never learns */
            a = prepare(s);
            a.running.new_weight = (nrm_real)(1 - i);
            if (i == 1) refused(s, &a, NRM_EWEIGHT, "weight", i, 2);
            a.running.cumulative = i;
            CHECK_RC(site_call(s, &a), NRM_OK, s, "weight", i, 2);
            CHECK_AT(a.running.batches == 1, s, "batches", i, 2);
        }
        if (s->kind != NRM_TRAIN) { /* nobody learns */
            a = prepare(s);
            a.running.new_weight = 0;
            CHECK_RC(site_call(s, &a), NRM_OK, s, "weight", 0, 3);
        }
        for (i = 0; i < 16 && used; i++) { /* in each channel */
            a = prepare(s);
            real_at(&a, at + 1)[i / 4] = bad_var[i % 4];
            keep();
            refused(s, &a, NRM_ESTATS, "variance", i, 0);
            if (i % 4 == 0) continue; /* a mean may be negative */
            a = prepare(s);
            real_at(&a, at)[i / 4] = bad_var[i % 4];
            keep();
            refused(s, &a, NRM_ESTATS, "mean", i, 0);
        }
        if (used) { /* no variance at all is a variance */
            a = prepare(s);
            real_at(&a, at + 1)[0] = 0;
            CHECK_RC(site_call(s, &a), NRM_OK, s, "zero variance", 0, 0);
            CHECK_AT(a.running.batches == (s->kind == NRM_TRAIN), s, "batches", 0, 0);
        }
    }
}

static void test_noise_arguments(void)
{
    const nrm_real bad[3] = {(nrm_real)-0.125, (nrm_real)NAN, (nrm_real)INFINITY};
    int k, i, field;
    for (k = 0; k < SITES; k++) {
        const site *s = &sites[k];
        for (i = 0; i < 12 && s->flags & NOISE; i++) {
            args a = prepare(s);
            field = i / 3;
            if (field == 0) a.noise.mean_range = bad[i % 3];
            if (field == 1) a.noise.scale_max = bad[i % 3];
            if (field == 2) a.noise.mean_jitter = bad[i % 3];
            if (field == 3) a.noise.scale_jitter = bad[i % 3];
            refused(s, &a, NRM_ENOISE, "noise", i, 0);
        }
    }
}

static void test_labels(void)
{
    const int bad[4] = {-1, 4, INT_MAX, INT_MIN};
    int k, i, last;
    for (k = 0; k < SITES; k++) {
        const site *s = &sites[k];
        const int at = buffers_of(s) - 1;
        for (i = 0; i < 8 && type(s, at) == 'l'; i++) {
            args a = prepare(s);
            last = i < 4 ? 0 : (int)a.N - 1;
            label_at(&a, at)[last] = bad[i % 4];
            keep();
            refused(s, &a, NRM_ELABEL, "label", i, 0);
        }
    }
}

/* Zero is a number, a statistic and a label: so that overlapping buffers of two types are refused
   for the overlap, and not for what one of them reads in the other. A count should not be zero; two
   will do for everything but a label. */
static void neutral(const site *s, int i)
{
    size_t k;
    memset(arena.slot[i], 0, ROOM);
    for (k = 0; k < ROOM / sizeof(nrm_acc) && s->flags & MERGED; k++)
        ((nrm_acc *)(void *)arena.slot[i])[k] = 2;
}

static void neutral_if_judged(const site *s, int i, int j)
{
    const int labels = type(s, i) == 'l' || type(s, j) == 'l';
    const int statistics = s->flags & RUNNING && (s->kind != NRM_TRAIN || s->flags & USED);
    if (!labels && !statistics && !(s->flags & MERGED)) return;
    neutral(s, i);
    neutral(s, j);
}

static void test_aliases(void)
{
    int k, i, j, place;
    for (k = 0; k < SITES; k++) {
        const site *s = &sites[k];
        for (i = 0; i < buffers_of(s); i++)
            for (j = 0; j < buffers_of(s); j++)
                for (place = 0; place < 5; place++) { /* also the last bytes of one alone */
                    args a = prepare(s);
                    const int unit = type(s, j) == 'm' ? 1 : 8; /* where j may begin */
                    const int last_i = (int)(bytes_of(s, i, &a) - 1) / unit * unit;
                    const int last_j = (int)(bytes_of(s, j, &a) - 1) / unit * unit;
                    const int shifts[5] = {-last_j, -8, 0, 8, last_i}, shift = shifts[place];
                    const int pair = (i == s->in_place_out && j == s->in_place_in) ||
                                     (j == s->in_place_out && i == s->in_place_in) ||
                                     (s->function == CALL_FOLD && i + j == 4 && i * j == 3);
                    const int allowed = pair && shift == 0;
                    if (i == j || !is_output(s, i) || allowed) continue;
                    if (shift >= (int)bytes_of(s, i, &a)) continue;
                    if (-shift >= (int)bytes_of(s, j, &a)) continue;
                    neutral_if_judged(s, i, j);
                    keep();
                    a.p[j] = (unsigned char *)a.p[i] + shift;
                    refused(s, &a, NRM_EALIAS, "alias", i * 100 + j, shift);
                }
    }
}

/* Buffers that touch do not overlap, and inputs may share memory as they like. */
static void test_neighbours_and_shared_inputs(void)
{
    int k, i, j;
    for (k = 0; k < SITES; k++) {
        const site *s = &sites[k];
        for (i = 0; i < buffers_of(s); i++)
            for (j = 0; j < buffers_of(s); j++) {
                args a = prepare(s);
                if (i == j) continue;
                if (is_output(s, i)) { /* of zeros, which have no direction */
                    const int directions = s->function == CALL_WEIGHTNORM && j == 2;
                    neutral(s, i);
                    a.p[j] = (unsigned char *)a.p[i] + (bytes_of(s, i, &a) + 7) / 8 * 8;
                    CHECK_RC(site_call(s, &a), directions ? NRM_NONFINITE : NRM_OK, s, "neighbour",
                             i * 100 + j, 0);
                } else if (!is_output(s, j)) {
                    neutral_if_judged(s, i, j);
                    keep();
                    if (bytes_of(s, i, &a) >= bytes_of(s, j, &a)) a.p[j] = a.p[i];
                    CHECK_RC(site_call(s, &a), NRM_OK, s, "shared inputs", i * 100 + j, 0);
                    CHECK_AT(only_outputs_changed(s, &a), s, "shared inputs", i, j);
                }
            }
    }
}

static void test_in_place(void)
{
    unsigned char out[SLOTS][ROOM];
    int k, i;
    for (k = 0; k < SITES; k++) {
        const site *s = &sites[k];
        const int to = s->in_place_out, from = s->in_place_in;
        args a;
        if (to < 0) continue;
        a = prepare(s);
        CHECK_RC(site_call(s, &a), NRM_OK, s, "apart", 0, 0);
        memcpy(out, arena.slot, sizeof out);
        a = prepare(s);
        a.p[to] = a.p[from];
        CHECK_RC(site_call(s, &a), NRM_OK, s, "in place", 0, 0);
        for (i = 0; i < buffers_of(s); i++) {
            const int where = i == to ? from : i;
            if (i == from) continue;
            CHECK_AT(memcmp(out[i] + MARGIN, arena.slot[where] + MARGIN, bytes_of(s, i, &a)) == 0,
                     s, "in place", i, 0);
        }
    }
}

/* ---- values ---------------------------------------------------------------------------------- */

enum { MOST = 4096 };
static nrm_real xs[MOST], ys[MOST], dys[MOST], dxs[MOST];
static nrm_real gammas[MOST], betas[MOST], dgammas[MOST], dbetas[MOST], rmeans[MOST], rvars[MOST];
static nrm_acc means[MOST], rstds[MOST];

static void draw(nrm_real *a, size_t n, double mean, double sd, uint64_t seed)
{
    nrm_rng rng;
    size_t i;
    nrm_rng_seed(&rng, seed, 1);
    for (i = 0; i < n; i++) a[i] = (nrm_real)(mean + sd * (double)draw_normal(&rng));
}

static nrm_running track(size_t C, double weight)
{
    nrm_running r;
    size_t c;
    memset(&r, 0, sizeof r);
    for (c = 0; c < C; c++) rmeans[c] = 0, rvars[c] = 1;
    r.mean = rmeans;
    r.var = rvars;
    r.new_weight = (nrm_real)weight;
    return r;
}

/* A layer on [N][C][S] whose groups of values know nothing of each other: its channels, or G groups
   of channels in each example. */
typedef struct grouped {
    int function, p;
    size_t N, C, S, G;
} grouped;

static const grouped norms[] = {
    {CALL_BATCHNORM, 0, 6, 5, 1, 0},
    {CALL_BATCHNORM, 0, 4, 70, 1, 0}, /* a second block of channels */
    {CALL_BATCHNORM, 0, 3, 4, 13, 0},
    {CALL_LP, NRM_L1, 6, 5, 1, 0},
    {CALL_LP, NRM_L1, 3, 4, 19, 0},
    {CALL_LP, NRM_L2, 6, 5, 1, 0},
    {CALL_LP, NRM_L2, 3, 4, 19, 0},
    {CALL_LP, NRM_LINF, 6, 5, 1, 0},
    {CALL_LP, NRM_LINF, 3, 4, 19, 0},
    {CALL_LP, NRM_L1 + NRM_CENTRED, 3, 4, 19, 0},
    {CALL_LP, NRM_L2 + NRM_CENTRED, 3, 4, 19, 0},
    {CALL_LP, NRM_LINF + NRM_CENTRED, 3, 4, 19, 0},
    {CALL_RENORM, 0, 3, 6, 1, 0},
    {CALL_RENORM, 0, 3, 6, 5, 0},
    {CALL_SYNC, 0, 3, 6, 1, 0},
    {CALL_SYNC, 0, 3, 6, 13, 0},
    {CALL_LAYERNORM, 0, 4, 9, 1, 1},
    {CALL_LAYERNORM, 0, 3, 17, 1, 1},
    {CALL_GROUPNORM, 0, 3, 6, 1, 3},
    {CALL_GROUPNORM, 0, 3, 6, 5, 3},
    {CALL_GROUPNORM, 0, 3, 6, 13, 1},
    {CALL_RMSNORM, 0, 3, 6, 1, 1},
};
enum { NORMS = (int)(sizeof norms / sizeof norms[0]) };

static nrm_acc ratios[MOST], offsets[MOST];
static nrm_stats statistics[MOST];
static nrm_sums gradients[MOST];

static size_t channel_at(const grouped *k, size_t i)
{
    return i / k->S % k->C;
}
static size_t group_at(const grouped *k, size_t i)
{
    if (k->G == 0) return channel_at(k, i);
    return i / k->S / k->C * k->G + channel_at(k, i) / (k->C / k->G);
}

static layer_call call_of(const grouped *k)
{
    layer_call c;
    memset(&c, 0, sizeof c);
    c.x = xs, c.y = ys, c.dy = dys, c.dx = dxs, c.gamma = gammas, c.beta = betas;
    c.dgamma = dgammas, c.dbeta = dbetas, c.mean = means, c.rstd = rstds;
    c.ratio = ratios, c.offset = offsets, c.stats = statistics, c.sums = gradients;
    c.N = k->N, c.C = k->C, c.S = k->S, c.G = k->G;
    c.mode = NRM_TRAIN, c.p = k->p, c.eps = NRM_EPS, c.r_max = 2, c.d_max = 1;
    return c;
}

static int both_passes(const grouped *k, const layer_call *c)
{
    int i, rc;
    memset(dgammas, 0, sizeof dgammas);
    memset(dbetas, 0, sizeof dbetas);
    memset(statistics, 0, sizeof statistics);
    for (i = 0; i < 2 && k->function == CALL_SYNC; i++) (void)call_layer(CALL_STATS_UPDATE, c);
    rc = call_layer(k->function, c);
    if (k->function == CALL_SYNC) OK(call_layer(CALL_SYNC_SUMS, c));
    CHECK(call_layer(k->function + 1, c) >= 0);
    return rc;
}

/* Noisy batch norm and batch renorm outside train mode are batch norm, to the bit, and ask for no
   noise, factors or limits; so they are in train mode, without noise and without correction. */
static void test_is_batch_norm(void)
{
    static nrm_real y[MOST], dx[MOST], dg[MOST], db[MOST], m[MOST], u[MOST], scale[MOST];
    static nrm_acc mean[MOST], rstd[MOST];
    const int functions[3] = {CALL_BATCHNORM, CALL_NOISY, CALL_RENORM};
    const nrm_noise silent = {0, 1, 0, 0};
    const grouped k = {0, 0, 9, 5, 3, 0};
    const size_t n = k.N * k.C * k.S;
    nrm_rng rng;
    int f, mode;
    nrm_rng_seed(&rng, 12, 1);
    draw(xs, n, 1, 2, 36);
    draw(dys, n, 0, 1, 37);
    draw(gammas, k.C, 1, 0.5, 38);
    for (mode = NRM_TRAIN; mode <= NRM_FROZEN; mode++)
        for (f = 0; f < 3; f++) {
            nrm_running running = track(k.C, 0.25);
            layer_call c = call_of(&k);
            memset(dgammas, 0, sizeof dgammas);
            memset(dbetas, 0, sizeof dbetas);
            c.running = &running;
            c.mode = mode;
            c.r_max = 1, c.d_max = 0;
            if (mode != NRM_TRAIN) c.ratio = c.offset = NULL;
            if (mode == NRM_TRAIN) c.scale = scale, c.noise = &silent, c.rng = &rng;
            OK(call_layer(functions[f], &c));
            if (mode != NRM_INFER) OK(call_layer(functions[f] + 1, &c));
            if (f == 0) {
                memcpy(y, ys, sizeof y), memcpy(dx, dxs, sizeof dx);
                memcpy(dg, dgammas, sizeof dg), memcpy(db, dbetas, sizeof db);
                memcpy(m, rmeans, sizeof m), memcpy(u, rvars, sizeof u);
                memcpy(mean, means, sizeof mean), memcpy(rstd, rstds, sizeof rstd);
            }
            CHECK(memcmp(y, ys, sizeof y) == 0 && memcmp(dx, dxs, sizeof dx) == 0);
            CHECK(memcmp(dg, dgammas, sizeof dg) == 0 && memcmp(db, dbetas, sizeof db) == 0);
            CHECK(memcmp(m, rmeans, sizeof m) == 0 && memcmp(u, rvars, sizeof u) == 0);
            CHECK(memcmp(mean, means, sizeof mean) == 0 && memcmp(rstd, rstds, sizeof rstd) == 0);
            CHECK_INT(running.batches, mode == NRM_TRAIN);
        }
}

/* Equal values give exactly beta, whatever their size and number, and no gradient is NaN; in RMS
   norm zeros do. */
static void test_constant_inputs_give_beta(void)
{
    const double magnitude[10] = {0, 0.1, -0.1, 1e6 / 3, 1e18, -1e18, 1e-30, 3e37, 1e6 + 0.1, -0.7};
    const size_t counts[9] = {1, 2, 3, 7, 8, 9, 13, 31, 100};
    size_t m, j, i;
    int k;
    draw(gammas, MOST, 1.5, 0.5, 1);
    draw(betas, MOST, 0, 1, 2);
    draw(dys, MOST, 0, 1, 44);
    for (k = 0; k < NORMS; k++)
        for (m = 0; m < 10; m++)
            for (j = norms[k].function == CALL_LAYERNORM ? 0 : 1; j < 9; j++) {
                const int rms = norms[k].function == CALL_RMSNORM;
                grouped l = norms[k];
                layer_call c;
                size_t n;
                int same;
                if (l.G == 0)
                    l.N = counts[j];
                else if (l.S > 1)
                    l.S = counts[j];
                else
                    l.C = counts[j] * l.G;
                n = l.N * l.C * l.S;
                if (n > MOST || l.function == CALL_RENORM || (rms && m > 0)) continue;
                if (l.function == CALL_LP && magnitude[m] > 1e37) continue; /* a sum of sizes */
                for (i = 0; i < n; i++) xs[i] = (nrm_real)magnitude[m];
                c = call_of(&l);
                same = both_passes(&l, &c) == NRM_OK;
                for (i = 0; i < n; i++)
                    same &= ys[i] == (rms ? 0 : betas[channel_at(&l, i)]) &&
                            isfinite((double)dxs[i]);
                same &= rms || means[group_at(&l, n - 1)] == (nrm_acc)(nrm_real)magnitude[m];
                if (!CHECK(same)) printf("  layer %d, %g, %d\n", k, magnitude[m], (int)counts[j]);
            }
}

/* One bad value of x, or of dy: the other groups do not notice. Of dy it stays in its channel where
   gradients of parameters are summed; of x it keeps out of the running statistics. */
static void check_spoilt(const grouped *k, nrm_real value, int cumulative)
{
    enum { CLEAN, BAD_X, BAD_DY, TURNS };
    static nrm_real y[TURNS][MOST], dx[TURNS][MOST], dg[TURNS][MOST], db[TURNS][MOST];
    static nrm_real m[TURNS][MOST], u[TURNS][MOST];
    const size_t n = k->N * k->C * k->S, at = ((k->N - 1) * k->C + k->C / 2) * k->S + k->S / 2;
    const int whole = value != value || k->function != CALL_RMSNORM; /* which divides by infinity */
    size_t i;
    int turn;
    for (turn = 0; turn < TURNS; turn++) {
        nrm_running running = track(k->C, 0.25);
        layer_call c = call_of(k);
        running.cumulative = cumulative;
        c.running = &running;
        draw(xs, n, 1, 2, 4);
        draw(dys, n, 0, 1, 5);
        draw(gammas, k->C, 1, 0.5, 7);
        if (turn == BAD_X) xs[at] = value;
        if (turn == BAD_DY) dys[at] = value;
        CHECK_INT(both_passes(k, &c), turn == BAD_X ? NRM_NONFINITE : NRM_OK);
        CHECK_INT(running.batches, k->G == 0);
        memcpy(y[turn], ys, sizeof ys), memcpy(dx[turn], dxs, sizeof dxs);
        memcpy(dg[turn], dgammas, sizeof dgammas), memcpy(db[turn], dbetas, sizeof dbetas);
        memcpy(m[turn], rmeans, sizeof rmeans), memcpy(u[turn], rvars, sizeof rvars);
    }
    for (i = 0; i < n; i++)
        if (group_at(k, i) != group_at(k, at)) {
            CHECK(y[BAD_X][i] == y[CLEAN][i] && dx[BAD_X][i] == dx[CLEAN][i]);
            CHECK(dx[BAD_DY][i] == dx[CLEAN][i]);
        } else {
            if (whole) CHECK(y[BAD_X][i] != y[BAD_X][i] && dx[BAD_X][i] != dx[BAD_X][i]);
            if (value != value || i == at) CHECK(dx[BAD_DY][i] != dx[BAD_DY][i]);
        }
    for (i = 0; i < k->C; i++) {
        const int bad = i == channel_at(k, at);
        CHECK(bad == !(dg[BAD_DY][i] == dg[CLEAN][i]));
        if (k->function != CALL_RMSNORM) CHECK(bad == !(db[BAD_DY][i] == db[CLEAN][i]));
        if (k->G > 0) continue;
        CHECK(m[BAD_X][i] == (bad ? 0 : m[CLEAN][i]) && m[CLEAN][i] != 0);
        CHECK(u[BAD_X][i] == (bad ? 1 : u[CLEAN][i]) && u[CLEAN][i] != 1);
    }
    if (test_bad > 0) printf("  function %d, p %d: %g\n", k->function, k->p, (double)value);
}

static void test_nan_stays_where_it_is(void)
{
    const nrm_real values[3] = {(nrm_real)NAN, (nrm_real)INFINITY, -(nrm_real)INFINITY};
    int v, k;
    for (v = 0; v < 6; v++)
        for (k = 0; k < NORMS; k++) check_spoilt(&norms[k], values[v / 2], v % 2);
}

/* Finite inputs whose variance does not fit into an nrm_real, or nor into an nrm_acc: nothing
   infinite is stored. */
static void test_running_statistics_stay_finite(void)
{
    const double largest = sizeof(nrm_real) == 4 ? 3e19 : 1.1e154;
    const double fits = sizeof(nrm_acc) == 4 ? 9e18 : sizeof(nrm_real) == 4 ? 1e30 : 1e153;
    int turn;
    for (turn = 0; turn < 2; turn++) {
        const nrm_real huge = (nrm_real)(turn ? fits : largest), x[4] = {huge, 1, -huge, 2};
        nrm_running running = track(2, 0.5);
        nrm_real y[4];
        CHECK(nrm_batchnorm_forward(y, means, rstds, &running, x, NULL, NULL, NRM_TRAIN, NRM_EPS, 2,
                                    2, 1) >= 0);
        CHECK(isfinite((double)rmeans[0]) && isfinite((double)rvars[0]));
        CHECK(rmeans[1] != 0);
        if (turn) CHECK_NEAR(y[0], 1, 1e-6);
        if (turn) CHECK_NEAR(y[2], -1, 1e-6);
        CHECK(nrm_batchnorm_forward(y, NULL, NULL, &running, x, NULL, NULL, NRM_INFER, NRM_EPS, 2,
                                    2, 1) >= 0);
    }
}

/* ---- the perceptron -------------------------------------------------------------------------- */

enum { INPUTS = 3, CLASSES = 2, BATCH = 6, BLOCK = 1 << 16 };
static unsigned char block[BLOCK], block2[BLOCK], copy[BLOCK];
static const int some_labels[BATCH] = {0, 1, 1, 0, 1, 0};

static nrm_mlp_spec small_spec(nrm_mlp_layer *layer, int norm)
{
    nrm_mlp_spec spec = nrm_mlp_defaults();
    memset(layer, 0, 2 * sizeof *layer);
    layer[0].width = 5;
    layer[0].norm = norm;
    layer[0].activation = NRM_TANH;
    layer[1].width = CLASSES;
    layer[1].bias = 1;
    spec.inputs = INPUTS;
    spec.layers = 2;
    spec.layer = layer;
    spec.max_batch = BATCH;
    return spec;
}

static void refused_spec(const nrm_mlp_spec *spec, int expected)
{
    nrm_mlp *net = NULL;
    memset(block, 0xA5, sizeof block);
    memcpy(copy, block, sizeof block);
    CHECK_INT(nrm_mlp_bytes(spec), 0);
    CHECK_INT(nrm_mlp_init(&net, block, sizeof block, spec), expected);
    CHECK(net == NULL);
    CHECK(memcmp(block, copy, sizeof block) == 0);
}

#define REFUSED_SPEC(field, value, expected)                                                       \
    do {                                                                                           \
        spec = small_spec(layer, NRM_BATCH_NORM);                                                  \
        field = value;                                                                             \
        refused_spec(&spec, expected);                                                             \
    } while (0)

static void test_mlp_spec(void)
{
    const nrm_real nan = (nrm_real)NAN, inf = (nrm_real)INFINITY;
    nrm_mlp_layer layer[2];
    nrm_mlp_spec spec;
    REFUSED_SPEC(spec.layer, NULL, NRM_ENULL);
    REFUSED_SPEC(spec.inputs, 0, NRM_ESIZE);
    REFUSED_SPEC(spec.layers, 0, NRM_ESIZE);
    REFUSED_SPEC(spec.max_batch, 0, NRM_ESIZE);
    REFUSED_SPEC(layer[1].width, 0, NRM_ESIZE);
    REFUSED_SPEC(layer[1].activation, 4, NRM_EKIND);
    REFUSED_SPEC(layer[0].activation, -1, NRM_EKIND);
    REFUSED_SPEC(layer[1].norm, NRM_LP_BATCH_NORM + 1, NRM_EKIND);
    REFUSED_SPEC(layer[1].norm, NRM_LP_BATCH_NORM, NRM_EKIND); /* of no p */
    REFUSED_SPEC(layer[0].norm, NRM_GROUP_NORM, NRM_ESIZE); /* of no groups */
    REFUSED_SPEC(layer[0].norm, -1, NRM_EKIND);
    REFUSED_SPEC(spec.init, -1, NRM_EKIND);
    REFUSED_SPEC(spec.init, 4, NRM_EKIND);
    REFUSED_SPEC(spec.gamma_init, 2, NRM_EKIND);
    REFUSED_SPEC(spec.optimizer, 2, NRM_EKIND);
    REFUSED_SPEC(spec.lr, -1, NRM_ERATE);
    REFUSED_SPEC(spec.lr, nan, NRM_ERATE);
    REFUSED_SPEC(spec.lr, inf, NRM_ERATE);
    REFUSED_SPEC(spec.heavy_ball, 1, NRM_ERATE);
    REFUSED_SPEC(spec.heavy_ball, nan, NRM_ERATE);
    REFUSED_SPEC(spec.beta1, 1, NRM_ERATE);
    REFUSED_SPEC(spec.beta2, -1, NRM_ERATE);
    REFUSED_SPEC(spec.adam_eps, 0, NRM_ERATE);
    REFUSED_SPEC(spec.adam_eps, nan, NRM_ERATE);
    REFUSED_SPEC(spec.adam_eps, inf, NRM_ERATE);
    REFUSED_SPEC(spec.new_weight, 2, NRM_EWEIGHT);
    REFUSED_SPEC(spec.new_weight, 0, NRM_EWEIGHT);
    REFUSED_SPEC(spec.new_weight, nan, NRM_EWEIGHT);
    REFUSED_SPEC(spec.eps, -1, NRM_EEPS);
    REFUSED_SPEC(spec.eps, inf, NRM_EEPS);
    REFUSED_SPEC(spec.noise.mean_range, -1, NRM_ENOISE);
    REFUSED_SPEC(spec.noise.scale_max, nan, NRM_ENOISE);
    REFUSED_SPEC(spec.noise.scale_jitter, nan, NRM_ENOISE);
    REFUSED_SPEC(spec.beta2, nan, NRM_ERATE);
    REFUSED_SPEC(spec.gamma_init, -1, NRM_EKIND);
    REFUSED_SPEC(spec.optimizer, -1, NRM_EKIND);
    REFUSED_SPEC(spec.init_std, -1, NRM_EKIND);
    REFUSED_SPEC(spec.init_std, inf, NRM_EKIND);
    REFUSED_SPEC(spec.heavy_ball, -1, NRM_ERATE);
    REFUSED_SPEC(spec.beta1, -1, NRM_ERATE);
    REFUSED_SPEC(spec.beta1, nan, NRM_ERATE);
    REFUSED_SPEC(spec.beta2, 1, NRM_ERATE);
    REFUSED_SPEC(spec.r_max, (nrm_real)0.5, NRM_ERATE);
    REFUSED_SPEC(spec.r_max, nan, NRM_ERATE);
    REFUSED_SPEC(spec.d_max, -1, NRM_ERATE);
    REFUSED_SPEC(spec.d_max, nan, NRM_ERATE);
    REFUSED_SPEC(layer[0].norm = NRM_GROUP_NORM; layer[0].groups, layer[0].width, NRM_ESIZE);
    REFUSED_SPEC(layer[0].norm = NRM_GROUP_NORM; layer[0].groups, 2 * layer[0].width, NRM_ESIZE);
    refused_spec(NULL, NRM_ENULL);
    spec = small_spec(layer, NRM_BATCH_NORM);
    spec.new_weight = nan;
    spec.cumulative = 1; /* then nobody asks for the weight */
    spec.eps = 0;
    CHECK(nrm_mlp_bytes(&spec) > 0);
}

static void test_mlp_block(void)
{
    nrm_mlp_layer layer[2];
    nrm_mlp_spec spec = small_spec(layer, NRM_NOISY_BATCH_NORM);
    const size_t bytes = nrm_mlp_bytes(&spec);
    nrm_mlp *net = NULL, *shifted = NULL;
    CHECK(bytes > 0 && bytes + 64 < BLOCK);
    memset(block, 0xA5, sizeof block);
    memcpy(copy, block, sizeof block);
    CHECK_INT(nrm_mlp_init(&net, block, bytes - 1, &spec), NRM_EBLOCK);
    CHECK_INT(nrm_mlp_init(NULL, block, bytes, &spec), NRM_ENULL);
    CHECK_INT(nrm_mlp_init(&net, NULL, bytes, &spec), NRM_ENULL);
    CHECK(net == NULL && memcmp(block, copy, sizeof block) == 0);
    OK(nrm_mlp_init(&net, block, bytes, &spec));
    memset(block2, 0xA5, sizeof block2);
    OK(nrm_mlp_init(&shifted, block2 + 13, bytes, &spec));
    if (net == NULL || shifted == NULL) return;
    CHECK(memcmp(net->params, shifted->params, net->n_params * sizeof *net->params) == 0);
    CHECK((unsigned char *)net >= block && (unsigned char *)net < block + bytes);
    CHECK(memcmp(block + bytes, copy + bytes, sizeof block - bytes) == 0);
    CHECK(memcmp(block2 + 13 + bytes, copy + 13 + bytes, sizeof block - 13 - bytes) == 0);
    CHECK(memcmp(block2, copy, 13) == 0);
}

/* Specifications of more bytes than there are: refused, whichever sum or product overflows. */
static void test_mlp_overflow(void)
{
    static const size_t huge[] = {SIZE_MAX, SIZE_MAX - 3, SIZE_MAX / 2, SIZE_MAX / 8,
                                  SIZE_MAX / 64};
    const size_t half = (size_t)1 << (sizeof(size_t) * CHAR_BIT / 2);
    nrm_mlp_layer layer[2];
    nrm_mlp_spec spec;
    size_t i, back, wrong = 0;
    for (i = 0; i < 5; i++) {
        REFUSED_SPEC(spec.inputs, huge[i], NRM_EOVERFLOW);
        REFUSED_SPEC(spec.max_batch, huge[i], NRM_EOVERFLOW);
        REFUSED_SPEC(layer[0].width, huge[i], NRM_EOVERFLOW);
    }
    REFUSED_SPEC(spec.inputs = layer[0].width, half, NRM_EOVERFLOW);
    REFUSED_SPEC(layer[0].width = layer[1].width, half, NRM_EOVERFLOW);
    /* two arrays that leave less than an alignment free, and others after them that wrap around */
    spec = small_spec(layer, NRM_NO_NORM);
    layer[0].activation = NRM_IDENTITY;
    spec.inputs = layer[0].width = layer[1].width = 1;
    for (back = 0; back < 2048; back++) {
        spec.max_batch = SIZE_MAX / 4 / sizeof(nrm_real) - back;
        wrong += nrm_mlp_bytes(&spec) != 0;
    }
    CHECK_INT(wrong, 0);
}

/* Weights of 2^58 numbers each: every layer fits, and so many of them do not. */
static void test_mlp_many_large_layers(void)
{
    enum { LAYERS = 24 };
    nrm_mlp_layer layer[LAYERS];
    nrm_mlp_spec spec = nrm_mlp_defaults();
    size_t l, fits = 0;
    memset(layer, 0, sizeof layer);
    for (l = 0; l < LAYERS; l++) layer[l].width = (size_t)1 << (sizeof(size_t) * CHAR_BIT / 2 - 4);
    spec.layer = layer;
    spec.max_batch = 1;
    spec.inputs = layer[0].width;
    for (spec.layers = 1; spec.layers < LAYERS; spec.layers++) {
        const size_t bytes = nrm_mlp_bytes(&spec);
        CHECK(bytes == 0 || bytes / layer[0].width / layer[0].width >= spec.layers);
        CHECK(bytes > 0 || spec.layers > 1);
        fits += bytes > 0;
    }
    CHECK(fits > 1 && fits < 9); /* of parameters and gradients, in float or double */
}

/* Logits of moderate size, but their gradient times x overflows: no step. */
static void test_mlp_gradient_that_overflows(void)
{
    const nrm_real huge = sizeof(nrm_real) == 4 ? (nrm_real)1e25 : (nrm_real)1e200;
    nrm_mlp_layer layer[2];
    const nrm_mlp_spec spec = small_spec(layer, NRM_NO_NORM);
    nrm_mlp *net = NULL;
    nrm_real params[64];
    nrm_acc loss = 0;
    size_t i;
    OK(nrm_mlp_init(&net, block, sizeof block, &spec));
    if (net == NULL) return;
    draw(xs, INPUTS * BATCH, 0, 1, 13);
    for (i = 0; i < INPUTS * BATCH; i++) xs[i] *= huge;
    for (i = 0; i < 15; i++) net->state[0].W[i] /= huge;
    for (i = 0; i < 10; i++) net->state[1].W[i] *= huge;
    memcpy(params, net->params, net->n_params * sizeof *params);
    CHECK_INT(nrm_mlp_train_step(net, &loss, xs, some_labels, BATCH), NRM_NONFINITE);
    CHECK(net->steps == 0);
    CHECK(memcmp(params, net->params, net->n_params * sizeof *params) == 0);
}

/* ---- gradient checking, random numbers, status codes ----------------------------------------- */

static nrm_acc sum_of_squares(void *context)
{
    const nrm_real *v = (const nrm_real *)context;
    return (nrm_acc)v[0] * (nrm_acc)v[0] + (nrm_acc)v[1] * (nrm_acc)v[1];
}

static void test_gradcheck_arguments(void)
{
    nrm_real v[2], kept[2], grad[2];
    nrm_gradcheck_report report[2], untouched_report[2];
    nrm_gradcheck_group group[2];
    const nrm_acc bad[4] = {-1, (nrm_acc)NAN, (nrm_acc)INFINITY, -(nrm_acc)INFINITY};
    size_t k;
    v[0] = (nrm_real)0.7, v[1] = (nrm_real)-1.3;
    grad[0] = 2 * v[0], grad[1] = 2 * v[1];
    memset(group, 0, sizeof group);
    group[0].theta = v;
    group[0].grad = grad;
    group[0].n = 2;
    memset(report, 0xA5, sizeof report);
    memcpy(untouched_report, report, sizeof report);
    memcpy(kept, v, sizeof v);
    CHECK_INT(nrm_gradcheck(report, group, 0, sum_of_squares, v, NULL), NRM_ESIZE);
    CHECK_INT(nrm_gradcheck(NULL, group, 1, sum_of_squares, v, NULL), NRM_ENULL);
    CHECK_INT(nrm_gradcheck(report, NULL, 1, sum_of_squares, v, NULL), NRM_ENULL);
    CHECK_INT(nrm_gradcheck(report, group, 1, NULL, v, NULL), NRM_ENULL);
    group[0].theta = NULL;
    CHECK_INT(nrm_gradcheck(report, group, 1, sum_of_squares, v, NULL), NRM_ENULL);
    group[0].theta = v;
    group[0].grad = NULL;
    CHECK_INT(nrm_gradcheck(report, group, 1, sum_of_squares, v, NULL), NRM_ENULL);
    group[0].grad = grad;
    for (k = 0; k < 8; k++) {
        nrm_gradcheck_options options;
        memset(&options, 0, sizeof options);
        *(k < 4 ? &options.tolerance : &options.step) = bad[k % 4];
        CHECK_INT(nrm_gradcheck(report, group, 1, sum_of_squares, v, &options), NRM_ERATE);
    }
    CHECK(memcmp(report, untouched_report, sizeof report) == 0);
    OK(nrm_gradcheck(report, group, 2, sum_of_squares, v, NULL)); /* one is empty */
    CHECK(report[0].checked == 2 && report[1].checked == 0 && report[1].status == NRM_OK);
    CHECK(memcmp(kept, v, sizeof v) == 0);
    grad[1] = -grad[1];
    CHECK_INT(nrm_gradcheck(report, group, 2, sum_of_squares, v, NULL), NRM_EGRADIENT);
    CHECK(report[0].wrong == 1 && report[0].worst == 1);
    CHECK(memcmp(kept, v, sizeof v) == 0);
}

static void test_rng_arguments(void)
{
    size_t index[3] = {0, 1, 2}, k;
    nrm_rng rng, kept;
    nrm_rng_seed(&rng, 1, 2);
    kept = rng;
    CHECK_INT(nrm_rng_below(&rng, 0), 0);
    OK(nrm_rng_shuffle(&rng, NULL, 0));
    CHECK_INT(nrm_rng_shuffle(NULL, index, 3), NRM_ENULL);
    CHECK_INT(nrm_rng_shuffle(&rng, NULL, 3), NRM_ENULL);
    if (sizeof(size_t) > 4) CHECK_INT(nrm_rng_shuffle(&rng, index, SIZE_MAX), NRM_ESIZE);
    if (sizeof(size_t) > 4)
        CHECK_INT(nrm_rng_shuffle(&rng, index, (size_t)UINT32_MAX + 1), NRM_ESIZE);
    nrm_rng_uniform(&rng, NULL, 0);
    nrm_rng_normal(&rng, NULL, 0);
    CHECK(rng.state == kept.state && index[0] == 0 && index[1] == 1 && index[2] == 2);
    OK(nrm_rng_shuffle(&rng, index, 1));
    CHECK(rng.state == kept.state && index[0] == 0);
    CHECK_INT(nrm_rng_below(&rng, 1), 0);
    for (k = 0; k < 100; k++) /* of which a quarter is drawn again */
        CHECK(nrm_rng_below(&rng, 3u << 30) < 3u << 30);
    /* the two states in a row whose points are the middle of the disc: drawn again */
    rng.state = ((uint64_t)1 << 58) + ((uint64_t)1 << 40);
    rng.increment = rng.state + 1 - rng.state * 6364136223846793005u;
    rng.has_spare = 0;
    kept = rng;
    CHECK_INT(nrm_rng_u32(&kept), 0x80000000u);
    CHECK_INT(nrm_rng_u32(&kept), 0x80000000u);
    CHECK(isfinite((double)draw_normal(&rng)) && rng.state != kept.state);
}

#define CODE_OF(name, value, message) name,

static void test_messages(void)
{
    static const int code[] = {NRM_STATUS_LIST(CODE_OF) INT_MAX};
    const int count = (int)(sizeof code / sizeof code[0]);
    int i, j;
    for (i = 0; i < count; i++) {
        CHECK(nrm_strerror(code[i]) != NULL && nrm_strerror(code[i])[0] != '\0');
        for (j = 0; j < i; j++) {
            CHECK(code[i] != code[j]);
            CHECK(strcmp(nrm_strerror(code[i]), nrm_strerror(code[j])) != 0);
        }
    }
    CHECK(count == 20); /* a new code must also get a test that provokes it */
    CHECK_STR(nrm_strerror(INT_MIN), nrm_strerror(INT_MAX));
}

/* ---- Lp batch norm and weight norm ----------------------------------------------------------- */

static void test_lp_kinds(void)
{
    const int bad[8] = {-1, 0, 4, 8, 9, -NRM_CENTRED, INT_MAX, INT_MIN};
    nrm_running running = track(2, 0.25);
    nrm_real dx[4] = {7, 7, 7, 7}, y[4] = {7, 7, 7, 7};
    int i, k;
    draw(xs, 4, 0, 1, 40);
    for (i = 0; i < 8; i++) {
        CHECK_INT(nrm_lp_batchnorm_forward(y, means, rstds, &running, xs, NULL, NULL, bad[i],
                                           NRM_TRAIN, NRM_EPS, 2, 2, 1),
                  NRM_EKIND);
        CHECK_INT(nrm_lp_batchnorm_backward(dx, NULL, NULL, xs, xs, means, rstds, NULL, bad[i],
                                            NRM_TRAIN, NRM_EPS, 2, 2, 1),
                  NRM_EKIND);
        CHECK_INT(nrm_lp_batchnorm_forward(NULL, NULL, NULL, NULL, NULL, NULL, NULL, bad[i],
                                           NRM_TRAIN, NRM_EPS, 0, 2, 1),
                  NRM_EKIND);
    }
    for (k = 0; k < 4; k++) CHECK(y[k] == 7 && dx[k] == 7);
    CHECK(running.batches == 0 && rvars[0] == 1 && rmeans[0] == 0);
}

/* Zeros in column 1, a NaN or infinity in column 3: the other columns do not notice. */
static void test_weight_norm_bad_columns(void)
{
    const nrm_real values[2] = {(nrm_real)-INFINITY, (nrm_real)NAN};
    nrm_real v[15], W[15], W2[15], dW[15], dv[15], dv2[15], dg[5], dg2[5];
    nrm_acc norm[5], norm2[5];
    int k, i, same = 1;
    draw(v, 15, 0, 1, 47);
    draw(dW, 15, 0, 1, 48);
    memset(dv, 0, sizeof dv);
    memset(dg, 0, sizeof dg);
    OK(nrm_weightnorm_forward(W, norm, v, NULL, 3, 5));
    OK(nrm_weightnorm_backward(dv, dg, dW, v, norm, NULL, 3, 5));
    for (k = 0; k < 2; k++) {
        for (i = 0; i < 15; i++) dv2[i] = 7;
        for (i = 0; i < 5; i++) dg2[i] = 7;
        v[1] = v[6] = v[11] = 0;
        v[8] = values[k];
        if (k == 1) v[3] = v[13] = 0;
        CHECK_INT(nrm_weightnorm_forward(W2, norm2, v, NULL, 3, 5), NRM_NONFINITE);
        OK(nrm_weightnorm_backward(dv2, dg2, dW, v, norm2, NULL, 3, 5));
        CHECK(norm2[1] == 0);
        for (i = 0; i < 15; i++) {
            if (i % 5 == 1) CHECK(W2[i] == 0 && dv2[i] == 7 && dg2[1] == 7);
            else if (i % 5 == 3) CHECK(W2[i] != W2[i] && dv2[i] != dv2[i]);
            else same &= W2[i] == W[i] && dv2[i] == 7 + dv[i] && dg2[i % 5] == 7 + dg[i % 5];
        }
    }
    CHECK(same);
    v[8] = 0;
    CHECK_INT(nrm_weightnorm_forward(W2, NULL, v, NULL, 3, 5), NRM_NONFINITE); /* zeros alone */
}

/* ---- the newer norms ------------------------------------------------------------------------- */

static const site *site_named(const char *name)
{
    int k;
    for (k = 0; k < SITES; k++)
        if (strcmp(sites[k].name, name) == 0) return &sites[k];
    CHECK_STR(name, "the name of a site");
    return &sites[0];
}

/* Groups that do not divide the channels, and groups of one value. */
static void test_group_sizes(void)
{
    const size_t bad[4] = {0, 3, 5, SIZE_MAX};
    const site *forward = site_named("group norm"), *back = site_named("group norm backward");
    args a;
    int i;
    for (i = 0; i < 4; i++) {
        a = prepare(forward);
        CHECK_INT(nrm_groupnorm_forward(real_at(&a, 0), acc_at(&a, 1), acc_at(&a, 2),
                                        real_at(&a, 3), NULL, NULL, NRM_EPS, a.N, a.C, a.S, bad[i]),
                  NRM_ESIZE);
        CHECK(untouched(&a, &a));
        a = prepare(back);
        CHECK_INT(nrm_groupnorm_backward(real_at(&a, 0), real_at(&a, 1), real_at(&a, 2),
                                         real_at(&a, 3), real_at(&a, 4), acc_at(&a, 5),
                                         acc_at(&a, 6), NULL, a.N, a.C, a.S, bad[i]),
                  NRM_ESIZE);
        CHECK(untouched(&a, &a));
    }
    a = prepare(forward);
    a.C = GROUPS;
    a.S = 1;
    refused(forward, &a, NRM_EBATCH, "one value", 0, 0);
    a = prepare(back);
    a.C = GROUPS;
    a.S = 1;
    refused(back, &a, NRM_EBATCH, "one value", 0, 0);
    a = prepare(forward);
    a.C = GROUPS; /* instance norm of two positions */
    OK(site_call(forward, &a));
    a = prepare(site_named("group norm")); /* nothing saved: both or neither */
    a.p[1] = a.p[2] = NULL;
    OK(site_call(forward, &a));
}

static void test_renorm_limits(void)
{
    const nrm_real r_bad[5] = {(nrm_real)0.875, 0, -2, (nrm_real)NAN, -(nrm_real)INFINITY};
    const nrm_real d_bad[3] = {-1, (nrm_real)NAN, -(nrm_real)INFINITY};
    const site *s = site_named("batch renorm train");
    int i, mode;
    for (i = 0; i < 8; i++)
        for (mode = NRM_TRAIN; mode <= NRM_FROZEN; mode++) {
            args a = prepare(s);
            const int rc = nrm_batchrenorm_forward(
                real_at(&a, 0), acc_at(&a, 3), acc_at(&a, 4), acc_at(&a, 1), acc_at(&a, 2),
                running_of(&a, 5), real_at(&a, 7), NULL, NULL, i < 5 ? r_bad[i] : 2,
                i < 5 ? 1 : d_bad[i - 5], mode, NRM_EPS, a.N, a.C, a.S);
            CHECK_RC(rc, NRM_ERATE, s, "limit", i, mode);
            CHECK_AT(untouched(&a, &a) && a.running.batches == 0, s, "limit", i, mode);
        }
    for (i = 0; i < 2; i++) { /* no limit at all is a limit */
        args a = prepare(s);
        size_t k;
        OK(nrm_batchrenorm_forward(real_at(&a, 0), acc_at(&a, 3), acc_at(&a, 4), acc_at(&a, 1),
                                   acc_at(&a, 2), running_of(&a, 5), real_at(&a, 7), NULL, NULL,
                                   i ? (nrm_real)INFINITY : (nrm_real)1, i ? (nrm_real)INFINITY : 0,
                                   NRM_TRAIN, NRM_EPS, a.N, a.C, a.S));
        for (k = 0; k < a.N * a.C * a.S; k++) CHECK(isfinite((double)real_at(&a, 0)[k]));
        for (k = 0; k < a.C && i == 0; k++)
            CHECK(acc_at(&a, 3)[k] == 1 && acc_at(&a, 4)[k] == 0);
    }
}

/* Statistics that cannot be those of a batch; a NaN can, for there may have been one in x. */
static void test_merged_statistics(void)
{
    const nrm_acc bad[7][3] = {/* count, m2, status */
                               {1, 2, NRM_EBATCH},
                               {0, 2, NRM_ESTATS},
                               {-2, 2, NRM_ESTATS},
                               {(nrm_acc)NAN, 2, NRM_ESTATS},
                               {(nrm_acc)INFINITY, 2, NRM_ESTATS},
                               {4, -1, NRM_ESTATS},
                               {4, -(nrm_acc)INFINITY, NRM_ESTATS}};
    const char *const names[2] = {"sync batch norm", "sync batch norm backward"};
    int k, i, rc;
    size_t n;
    for (k = 0; k < 2; k++) {
        const site *s = site_named(names[k]);
        args a;
        for (i = 0; i < 7; i++) {
            a = prepare(s);
            stats_at(&a, 7)[a.C - 1].count = bad[i][0];
            stats_at(&a, 7)[a.C - 1].m2 = bad[i][1];
            keep();
            refused(s, &a, (int)bad[i][2], "statistics", i, 0);
        }
        a = prepare(s);
        memset(stats_at(&a, 7), 0, a.C * sizeof(nrm_stats)); /* nothing anywhere */
        memset(a.p[k == 0 ? 6 : 3], 0, a.N * a.S);
        CHECK_RC(site_call(s, &a), NRM_OK, s, "all masked", 0, 0);
        for (n = 0; n < a.N * a.C * a.S; n++) CHECK(real_at(&a, 0)[n] == 0);
        if (k == 0) CHECK_INT(a.running.batches, 0);
        a = prepare(s);
        stats_at(&a, 7)[0].mean = (nrm_acc)NAN;
        rc = site_call(s, &a);
        CHECK_INT(rc, k == 0 ? NRM_NONFINITE : NRM_OK);
    }
    { /* the plain average passes over the channel, and counts the batch */
        args a = prepare(site_named("sync batch norm"));
        a.running.cumulative = 1;
        stats_at(&a, 7)[0].mean = (nrm_acc)NAN;
        keep();
        CHECK_INT(site_call(site_named("sync batch norm"), &a), NRM_NONFINITE);
        CHECK_INT(a.running.batches, 1);
        for (i = 3; i < 5; i++)
            CHECK(memcmp(arena.slot[i], before.slot[i], MARGIN + sizeof(nrm_real)) == 0);
        CHECK(real_at(&a, 3)[1] == (nrm_real)stats_at(&a, 7)[1].mean);
    }
}

/* A worker without examples has no x, y and dy; but statistics as all others. */
static void test_sync_without_examples(void)
{
    const site *s = site_named("sync batch norm"), *sums = site_named("sync batch norm sums");
    args a = prepare(s), b, kept;
    int i;
    a.N = 0;
    a.p[0] = a.p[5] = a.p[6] = NULL;
    OK(site_call(s, &a));
    CHECK_INT(a.running.batches, 1);
    CHECK(memcmp(arena.slot[3], before.slot[3], ROOM) != 0);
    CHECK(acc_at(&a, 1)[1] == stats_at(&a, 7)[1].mean);
    for (i = 0; i < 10; i++) {
        if (i == 0 || i == 5 || i == 6 || i >= 8) continue;
        b = prepare(s);
        b.N = 0;
        b.p[i] = NULL;
        refused(s, &b, NRM_ENULL, "null without examples", i, 0);
    }
    a = prepare(s);
    a.N = 0;
    memset(stats_at(&a, 7), 0, a.C * sizeof(nrm_stats)); /* nobody had any */
    keep();
    OK(site_call(s, &a));
    CHECK_INT(a.running.batches, 0);
    CHECK(memcmp(arena.slot[3], before.slot[3], ROOM) == 0);
    a = prepare(s);
    a.N = 0;
    stats_at(&a, 7)[2].count = 1;
    keep();
    refused(s, &a, NRM_EBATCH, "one value anywhere", 0, 0);
    a = prepare(s);
    a.N = 1; /* of one example x is needed */
    a.p[5] = NULL;
    refused(s, &a, NRM_ENULL, "one example", 0, 0);
    a = prepare(sums);
    a.N = 0;
    a.p[3] = a.p[4] = a.p[5] = NULL;
    kept = a;
    OK(site_call(sums, &a));
    for (i = 0; i < 8; i++) CHECK(acc_at(&kept, 0)[i] == 0);
    CHECK(memcmp(arena.slot[1], before.slot[1], ROOM) == 0);
    a = prepare(sums);
    a.N = 0;
    a.p[0] = NULL;
    refused(sums, &a, NRM_ENULL, "no sums", 0, 0);
}

/* Without ε a variance of 0 has no root: NaN there, and a status that says so. */
static void test_eps_of_zero(void)
{
    const nrm_real x[6] = {1, 5, 2, 5, 4, 5}; /* channels {1, 2, 4} and {5, 5, 5} */
    const nrm_real v = (nrm_real)14 / 9;
    nrm_running running = track(2, 0.5);
    nrm_real y[6];
    size_t i;
    CHECK_INT(nrm_batchnorm_forward(y, means, rstds, NULL, x, NULL, NULL, NRM_TRAIN, 0, 3, 2, 1),
              NRM_NONFINITE);
    for (i = 0; i < 3; i++) {
        CHECK_NEAR(y[2 * i], ((double)x[2 * i] - 7. / 3) / sqrt((double)v), 1e-6);
        CHECK(!isfinite((double)y[2 * i + 1]));
    }
    OK(nrm_layernorm_forward(y, means, rstds, x, NULL, NULL, 0, 3, 2));
    for (i = 0; i < 6; i++) CHECK_NEAR(y[i], i % 2 ? 1 : -1, 1e-6);
    rvars[1] = 0;
    CHECK_INT(nrm_batchnorm_forward(y, NULL, NULL, &running, x, NULL, NULL, NRM_INFER, 0, 3, 2, 1),
              NRM_NONFINITE);
    for (i = 0; i < 6; i += 2) CHECK(y[i] == x[i] && !isfinite((double)y[i + 1]));
}

static int nearly(const void *a, const void *b, size_t n)
{
    const nrm_real *p = (const nrm_real *)a, *q = (const nrm_real *)b;
    while (n-- > 0)
        if (!(fabs((double)p[n] - (double)q[n]) <= (sizeof *p == 4 ? 1e-5 : 1e-13))) return 0;
    return 1;
}

/* Of noisy batch norm the saved means, which one path takes as they are and the other improves. */
static void true_means(args *a)
{
    size_t n, c, s;
    for (c = 0; c < a->C; c++) {
        nrm_acc sum = 0;
        for (n = 0; n < a->N; n++)
            for (s = 0; s < a->S; s++) sum += (nrm_acc)real_at(a, 5)[(n * a->C + c) * a->S + s];
        acc_at(a, 6)[c] = sum / (nrm_acc)(a->N * a->S);
    }
}

/* The parameters' gradients are the same bits if dx is not wanted; those of noisy batch norm, where
   dx is what holds dy times noise, the same to rounding. */
static void test_dx_is_optional(void)
{
    static const char *const outputs[] = {"dx", "dgamma", "dbeta"};
    int k, i;
    for (k = 0; k < SITES; k++) {
        const site *s = &sites[k];
        unsigned char out[SLOTS][ROOM];
        args a;
        if (strstr(s->name, "norm backward") == NULL || role(s, 0) != 'O') continue;
        if (s->function == CALL_WEIGHTNORM_BACK || s->function == CALL_SYNC_BACK) continue;
        a = prepare(s);
        if (s->function == CALL_NOISY_BACK) true_means(&a);
        CHECK_RC(site_call(s, &a), NRM_OK, s, outputs[0], 0, 0);
        memcpy(out, arena.slot, sizeof out);
        a = prepare(s);
        if (s->function == CALL_NOISY_BACK) true_means(&a);
        a.p[0] = NULL;
        CHECK_RC(site_call(s, &a), NRM_OK, s, "without dx", 0, 0);
        CHECK_AT(memcmp(arena.slot[0], before.slot[0], ROOM) == 0, s, outputs[0], 0, 0);
        for (i = 1; i < buffers_of(s); i++)
            if (is_output(s, i))
                CHECK_AT(s->function == CALL_NOISY_BACK
                             ? nearly(out[i] + MARGIN, arena.slot[i] + MARGIN, a.C)
                             : memcmp(out[i], arena.slot[i], ROOM) == 0,
                         s, outputs[i], i, 0);
    }
}

/* y may be x where nothing is saved: with the statistics saved a backward pass would want x. */
static void test_in_place_if_nothing_is_saved(void)
{
    static const char *const names[] = {"layer norm", "group norm", "RMS norm"};
    size_t k;
    for (k = 0; k < 3; k++) {
        const site *s = site_named(names[k]);
        const int x = k == 2 ? 2 : 3;
        unsigned char y[ROOM];
        args a = prepare(s);
        int i;
        for (i = 1; i < x; i++) a.p[i] = NULL;
        CHECK_RC(site_call(s, &a), NRM_OK, s, "apart", 0, 0);
        memcpy(y, arena.slot[0], sizeof y);
        a = prepare(s);
        for (i = 1; i < x; i++) a.p[i] = NULL;
        a.p[0] = a.p[x];
        CHECK_RC(site_call(s, &a), NRM_OK, s, "in place", 0, 0);
        CHECK_AT(memcmp(y + MARGIN, arena.slot[x] + MARGIN, bytes_of(s, 0, &a)) == 0, s,
                 "in place", 0, 0);
        a = prepare(s);
        for (i = 1; i < x; i++) a.p[i] = NULL;
        a.p[0] = (unsigned char *)a.p[x] + 8;
        refused(s, &a, NRM_EALIAS, "shifted", 0, 0);
        a = prepare(s);
        a.p[0] = a.p[x];
        refused(s, &a, NRM_EALIAS, "saved", 0, 0);
    }
}

/* The plain average passes over a channel that is not finite, as new_weight does, and counts the
   batch; the next good one of that channel has the weight of its turn. */
static void test_cumulative_passes_over(void)
{
    nrm_real x[6] = {1, 2, 3, 4, 5, 9}, y[6]; /* channels {1, 3, 5} and {2, 4, 9} */
    nrm_running r = track(2, 0);
    r.cumulative = 1;
    x[3] = (nrm_real)NAN;
    CHECK_INT(nrm_batchnorm_forward(y, means, rstds, &r, x, NULL, NULL, NRM_TRAIN, NRM_EPS, 3, 2,
                                    1),
              NRM_NONFINITE);
    CHECK_INT(r.batches, 1);
    CHECK_NEAR(rmeans[0], 3, 1e-6);
    CHECK_NEAR(rvars[0], 4, 1e-6);
    CHECK(rmeans[1] == 0 && rvars[1] == 1);
    x[3] = 4;
    OK(nrm_batchnorm_forward(y, means, rstds, &r, x, NULL, NULL, NRM_TRAIN, NRM_EPS, 3, 2, 1));
    CHECK_INT(r.batches, 2);
    CHECK_NEAR(rmeans[0], 3, 1e-6);
    CHECK_NEAR(rmeans[1], 0.5 * 5, 1e-6);
    CHECK_NEAR(rvars[1], 0.5 + 0.5 * 13, 1e-6);
}

/* No value of mine counts, but others have brought theirs: statistics, and zeros. */
static void test_all_masked_in_company(void)
{
    enum { N = 3, C = 2, S = 2 };
    const unsigned char mask[N * S] = {0};
    const nrm_stats stats[C] = {{4, 1, 4}, {4, -2, 16}};
    nrm_real x[N * C * S], y[N * C * S], dx[N * C * S];
    nrm_acc mean[C], rstd[C];
    nrm_running r = track(C, 0.5);
    nrm_sums sums[C];
    size_t i;
    for (i = 0; i < N * C * S; i++) x[i] = y[i] = dx[i] = (nrm_real)NAN;
    OK(nrm_sync_batchnorm_forward(y, mean, rstd, &r, x, mask, stats, NULL, NULL, NRM_EPS, N, C, S));
    CHECK(mean[0] == 1 && mean[1] == -2 && r.batches == 1 && rmeans[1] == -1);
    CHECK_NEAR(rstd[1], 0.5, 1e-5);
    OK(nrm_sync_batchnorm_sums(sums, NULL, NULL, x, x, mask, mean, rstd, N, C, S));
    CHECK(sums[0].dy == 0 && sums[0].dy_xhat == 0 && sums[1].dy == 0 && sums[1].dy_xhat == 0);
    OK(nrm_sync_batchnorm_backward(dx, x, x, mask, mean, rstd, NULL, stats, sums, N, C, S));
    for (i = 0; i < N * C * S; i++) CHECK(y[i] == 0 && dx[i] == 0);
}

/* A batch that is not finite is noised all the same: every factor is drawn and saved. */
static void test_noise_of_a_bad_batch(void)
{
    enum { N = 4, C = 3 };
    const nrm_noise noise = nrm_noise_paper();
    nrm_real x[N * C], y[N * C], scale[N * C] = {0}, good[N * C];
    nrm_rng rng, again;
    size_t i;
    nrm_rng_seed(&rng, 3, 1);
    again = rng;
    for (i = 0; i < N * C; i++) x[i] = (nrm_real)(i * i % 7);
    OK(nrm_noisy_batchnorm_forward(y, good, means, rstds, NULL, x, NULL, NULL, &noise, &rng,
                                   NRM_TRAIN, NRM_EPS, N, C, 1));
    x[4] = (nrm_real)NAN;
    CHECK_INT(nrm_noisy_batchnorm_forward(y, scale, means, rstds, NULL, x, NULL, NULL, &noise,
                                          &again, NRM_TRAIN, NRM_EPS, N, C, 1),
              NRM_NONFINITE);
    CHECK(memcmp(scale, good, sizeof good) == 0 && rng.state == again.state);
}

int main(void)
{
    RUN(test_valid_calls_write_outputs_only);
    RUN(test_null_pointers);
    RUN(test_null_pairs);
    RUN(test_sizes);
    RUN(test_empty_batches);
    RUN(test_settings);
    RUN(test_one_value_per_channel);
    RUN(test_running_arguments);
    RUN(test_noise_arguments);
    RUN(test_labels);
    RUN(test_aliases);
    RUN(test_neighbours_and_shared_inputs);
    RUN(test_in_place);
    RUN(test_is_batch_norm);
    RUN(test_constant_inputs_give_beta);
    RUN(test_nan_stays_where_it_is);
    RUN(test_running_statistics_stay_finite);
    RUN(test_mlp_spec);
    RUN(test_mlp_block);
    RUN(test_mlp_overflow);
    RUN(test_mlp_many_large_layers);
    RUN(test_mlp_gradient_that_overflows);
    RUN(test_gradcheck_arguments);
    RUN(test_rng_arguments);
    RUN(test_messages);
    RUN(test_lp_kinds);
    RUN(test_weight_norm_bad_columns);
    RUN(test_group_sizes);
    RUN(test_renorm_limits);
    RUN(test_merged_statistics);
    RUN(test_sync_without_examples);
    RUN(test_eps_of_zero);
    RUN(test_dx_is_optional);
    RUN(test_in_place_if_nothing_is_saved);
    RUN(test_cumulative_passes_over);
    RUN(test_all_masked_in_company);
    RUN(test_noise_of_a_bad_batch);
    return test_report("contracts");
}
