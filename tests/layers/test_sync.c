/* test_sync.c - statistics that merge: a batch in parts is the batch.

   However a batch is cut into the parts of up to eight workers, uneven ones and empty ones:
   outputs, gradients and running statistics are those of the undivided batch, to 1e-12. In one
   order of merging they have the same bits whoever computes them when, shown with threads; in
   another order they differ by rounding alone. The same for micro-batches that follow each other.
   A network whose workers merge is in test_workers.c; what is refused, in test_contracts.c. */
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"
#include "lab/draw.h"
#include "test.h"
#include <float.h>
#include <pthread.h>
#include <stdlib.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { MOST = 8192, MOST_C = 40, WORKERS = 8 };

static const int in_float = sizeof(nrm_real) == sizeof(float);
static const int acc_in_float = sizeof(nrm_acc) == sizeof(float);
#ifdef NRM_PLAIN
static const int in_chains = 1;
#else
static const int in_chains = 0;
#endif

/* How far a batch in parts may be from the whole: the statistics are equal but for the rounding of
   nrm_acc; a float made from them is mostly the same float, or its neighbour. */
static double tolerance(void)
{
    return in_float ? 1e-6 : 1e-12;
}

/* And what it may be more: a chain of float sums loses up to half a place for each of its terms. */
static double chain(size_t terms)
{
    return in_chains && acc_in_float ? (double)terms * (double)FLT_EPSILON / 2 : 0;
}

/* ---- one batch, whole and in parts ----------------------------------------------------------- */

typedef struct batch {
    size_t N, C, S;
    size_t workers, from[WORKERS + 1]; /* worker i has the examples from[i]..from[i+1]−1 */
    double new_weight;
    int cumulative, biased;
    nrm_real x[MOST], dy[MOST], gamma[MOST_C], beta[MOST_C];
} batch;

typedef struct result {
    nrm_real y[MOST], dx[MOST], dgamma[MOST_C], dbeta[MOST_C];
    nrm_real run_mean[MOST_C], run_var[MOST_C];
    nrm_acc mean[MOST_C], rstd[MOST_C];
    nrm_running running;
} result;

static void fill(nrm_real *a, size_t n, double centre, double sd, nrm_rng *rng)
{
    size_t i;
    for (i = 0; i < n; i++) a[i] = (nrm_real)(centre + sd * (double)draw_normal(rng));
}

static size_t each(const batch *b)
{
    return b->C * b->S;
}

static size_t numbers(const batch *b)
{
    return b->N * each(b);
}

static size_t share(const batch *b, size_t worker)
{
    return b->from[worker + 1] - b->from[worker];
}

/* Cuts anywhere, also on one another. */
static void cut(batch *b, size_t workers, nrm_rng *rng)
{
    size_t i, j;
    b->workers = workers;
    b->from[0] = 0;
    b->from[workers] = b->N;
    for (i = 1; i < workers; i++) {
        const size_t at = nrm_rng_below(rng, (uint32_t)(b->N + 1));
        for (j = i; j > 1 && b->from[j - 1] > at; j--) b->from[j] = b->from[j - 1];
        b->from[j] = at;
    }
}

static void make_batch(batch *b, size_t N, size_t C, size_t S, double centre, nrm_rng *rng)
{
    memset(b, 0, sizeof *b);
    b->N = N;
    b->C = C;
    b->S = S;
    b->new_weight = 0.1;
    fill(b->x, numbers(b), centre, 1, rng);
    fill(b->dy, numbers(b), 0.1, 1, rng);
    fill(b->gamma, C, 1.5, 0.5, rng);
    fill(b->beta, C, 0, 1, rng);
    cut(b, 1, rng);
}

/* Running statistics as every worker has them before. */
static void start(result *r, const batch *b)
{
    size_t c;
    memset(r, 0, sizeof *r);
    for (c = 0; c < b->C; c++) {
        r->run_mean[c] = (nrm_real)(0.1 * (double)c);
        r->run_var[c] = (nrm_real)(1 + 0.2 * (double)c);
        r->dgamma[c] = r->dbeta[c] = 0;
    }
    r->running.mean = r->run_mean;
    r->running.var = r->run_var;
    r->running.new_weight = (nrm_real)b->new_weight;
    r->running.cumulative = b->cumulative;
    r->running.biased = b->biased;
    r->running.batches = 2;
}

static void undivided(result *r, const batch *b)
{
    start(r, b);
    OK(nrm_batchnorm_forward(r->y, r->mean, r->rstd, &r->running, b->x, b->gamma, b->beta,
                             NRM_TRAIN, NRM_EPS, b->N, b->C, b->S));
    OK(nrm_batchnorm_backward(r->dx, r->dgamma, r->dbeta, b->dy, b->x, r->mean, r->rstd, b->gamma,
                              NRM_TRAIN, b->N, b->C, b->S));
}

/* What one worker does by himself: the first three, with a meeting after the first and second. */
static int take_statistics(nrm_stats *stats, const batch *b, size_t worker)
{
    memset(stats, 0, b->C * sizeof *stats);
    return nrm_stats_update(stats, b->x + b->from[worker] * each(b), NULL, share(b, worker), b->C,
                            b->S);
}

/* A worker's outputs lie in r at his place; the rest of r is his own. */
static int forward_and_sums(result *r, nrm_sums *sums, const batch *b, const nrm_stats *stats,
                            size_t worker)
{
    const size_t at = b->from[worker] * each(b);
    const int rc =
        nrm_sync_batchnorm_forward(r->y + at, r->mean, r->rstd, &r->running, b->x + at, NULL, stats,
                                   b->gamma, b->beta, NRM_EPS, share(b, worker), b->C, b->S);
    if (rc != NRM_OK) return rc;
    return nrm_sync_batchnorm_sums(sums, r->dgamma, r->dbeta, b->dy + at, b->x + at, NULL, r->mean,
                                   r->rstd, share(b, worker), b->C, b->S);
}

static int backward(result *r, const batch *b, const nrm_stats *stats, const nrm_sums *sums,
                    size_t worker)
{
    const size_t at = b->from[worker] * each(b);
    return nrm_sync_batchnorm_backward(r->dx + at, b->dy + at, b->x + at, NULL, r->mean, r->rstd,
                                       b->gamma, stats, sums, share(b, worker), b->C, b->S);
}

static void add_sums(nrm_sums *to, const nrm_sums *from, size_t C)
{
    size_t c;
    for (c = 0; c < C; c++) {
        to[c].dy += from[c].dy;
        to[c].dy_xhat += from[c].dy_xhat;
    }
}

static int same_bits(const nrm_real *a, const nrm_real *b, size_t n)
{
    return memcmp(a, b, n * sizeof *a) == 0;
}

/* All workers one after the other, with statistics merged some way or other. */
static void in_parts_by(result *r, const batch *b, const nrm_stats *merged)
{
    nrm_sums sums[MOST_C], one[MOST_C];
    static result own;
    size_t w, c;
    start(r, b);
    memset(sums, 0, sizeof sums);
    for (w = 0; w < b->workers; w++) {
        start(&own, b);
        memcpy(own.y, r->y, sizeof own.y);
        OK(forward_and_sums(&own, one, b, merged, w));
        add_sums(sums, one, b->C);
        memcpy(r->y, own.y, sizeof own.y);
        for (c = 0; c < b->C; c++) {
            r->dgamma[c] += own.dgamma[c];
            r->dbeta[c] += own.dbeta[c];
        }
        if (w > 0) /* all workers, empty-handed or not, move on alike */
            CHECK(same_bits(own.run_mean, r->run_mean, b->C) &&
                  same_bits(own.run_var, r->run_var, b->C) &&
                  own.running.batches == r->running.batches &&
                  memcmp(own.mean, r->mean, sizeof own.mean) == 0 &&
                  memcmp(own.rstd, r->rstd, sizeof own.rstd) == 0);
        memcpy(r->run_mean, own.run_mean, sizeof own.run_mean);
        memcpy(r->run_var, own.run_var, sizeof own.run_var);
        memcpy(r->mean, own.mean, sizeof own.mean);
        memcpy(r->rstd, own.rstd, sizeof own.rstd);
        r->running.batches = own.running.batches;
    }
    for (w = 0; w < b->workers; w++) OK(backward(r, b, merged, sums, w));
}

/* Merged by number. */
static void merge_all(nrm_stats *merged, const batch *b)
{
    nrm_stats one[MOST_C];
    size_t w;
    memset(merged, 0, b->C * sizeof *merged);
    for (w = 0; w < b->workers; w++) {
        OK(take_statistics(one, b, w));
        OK(nrm_stats_merge(merged, one, b->C));
    }
}

static void in_parts(result *r, const batch *b)
{
    nrm_stats merged[MOST_C];
    merge_all(merged, b);
    in_parts_by(r, b, merged);
}

/* ---- how far apart --------------------------------------------------------------------------- */

/* The largest difference, relative to the largest expected or to `size`; infinite with a NaN. */
static double distance(const nrm_real *got, const nrm_real *expected, size_t n, double size)
{
    double most = 0;
    size_t i;
    for (i = 0; i < n; i++) {
        const double gap = fabs((double)got[i] - (double)expected[i]);
        if (!(gap <= most)) most = gap < HUGE_VAL ? gap : HUGE_VAL;
        size = fmax(size, fabs((double)expected[i]));
    }
    return most > 0 ? most / size : 0;
}

/* How far the parts are from the whole, all in all. Sums are measured by the size that sums of as
   many terms have, and dx by that of its terms, of which little may be left. */
static double apart(const result *got, const result *whole, const batch *b)
{
    const double root = sqrt((double)(b->N * b->S));
    double steepest = 0, worst;
    size_t c;
    for (c = 0; c < b->C; c++) steepest = fmax(steepest, (double)whole->rstd[c]);
    worst = distance(got->y, whole->y, numbers(b), 0);
    worst = fmax(worst, distance(got->dx, whole->dx, numbers(b), steepest));
    worst = fmax(worst, distance(got->dgamma, whole->dgamma, b->C, root));
    worst = fmax(worst, distance(got->dbeta, whole->dbeta, b->C, root));
    worst = fmax(worst, distance(got->run_mean, whole->run_mean, b->C, 1));
    worst = fmax(worst, distance(got->run_var, whole->run_var, b->C, 0));
    return got->running.batches == whole->running.batches ? worst : HUGE_VAL;
}

static int equal(const result *a, const result *b, const batch *k)
{
    const size_t n = numbers(k), C = k->C;
    return same_bits(a->y, b->y, n) && same_bits(a->dx, b->dx, n) &&
           same_bits(a->dgamma, b->dgamma, C) && same_bits(a->dbeta, b->dbeta, C) &&
           same_bits(a->run_mean, b->run_mean, C) && same_bits(a->run_var, b->run_var, C) &&
           memcmp(a->mean, b->mean, C * sizeof *a->mean) == 0 &&
           memcmp(a->rstd, b->rstd, C * sizeof *a->rstd) == 0;
}

/* ---- any split ------------------------------------------------------------------------------- */

static const size_t shapes[][3] = {{2, 3, 1},   {3, 5, 1},   {16, 1, 1},  {33, 7, 1},
                                   {64, 40, 1}, {200, 8, 1}, {2, 3, 4},   {7, 4, 9},
                                   {16, 5, 33}, {1, 2, 50},  {5, 1, 1500}};

static void test_any_split(void)
{
    static batch b;
    static result whole, parts;
    double worst = 0;
    nrm_rng rng;
    size_t i, w;
    nrm_rng_seed(&rng, 41, 1);
    for (i = 0; i < COUNT(shapes); i++)
        for (w = 1; w <= 3 * WORKERS; w++) {
            make_batch(&b, shapes[i][0], shapes[i][1], shapes[i][2], 0.5, &rng);
            b.cumulative = w % 3 == 0;
            b.biased = w % 2 == 0;
            b.new_weight = w % 5 == 0 ? 1 : 0.1;
            cut(&b, 1 + (w - 1) % WORKERS, &rng);
            undivided(&whole, &b);
            in_parts(&parts, &b);
            worst = fmax(worst, apart(&parts, &whole, &b) - chain(b.N * b.S));
        }
    CHECK_NEAR(worst, 0, acc_in_float ? 2e-6 : tolerance());
    printf("any split: %.1e from the whole\n", worst);
}

/* One worker alone is the undivided batch. His statistics take the way through a triple, where the
   variance is multiplied by the count and divided by it again. */
static void test_one_worker(void)
{
    static batch b;
    static result whole, parts;
    nrm_rng rng;
    size_t i;
    nrm_rng_seed(&rng, 42, 1);
    for (i = 0; i < COUNT(shapes); i++) {
        make_batch(&b, shapes[i][0], shapes[i][1], shapes[i][2], 0.5, &rng);
        undivided(&whole, &b);
        in_parts(&parts, &b);
        CHECK(memcmp(parts.mean, whole.mean, sizeof parts.mean) == 0);
        /* with float sums only the undivided batch has the low part of a mean on the way back */
        CHECK(apart(&parts, &whole, &b) <=
              (acc_in_float ? 2e-6 + chain(b.N * b.S) : in_float ? 5e-7 : 1e-14));
    }
}

/* Empty triples and empty workers change no bit. */
static void test_empty_workers(void)
{
    static batch b;
    static result without, with;
    nrm_stats empty[MOST_C], stats[MOST_C], kept[MOST_C];
    nrm_rng rng;
    nrm_rng_seed(&rng, 43, 1);
    make_batch(&b, 20, 6, 3, 0.5, &rng);
    b.workers = 2;
    b.from[1] = 7;
    b.from[2] = 20;
    in_parts(&without, &b);
    b.workers = 5;
    b.from[0] = b.from[1] = 0; /* nobody, 7, nobody, 13, nobody */
    b.from[2] = b.from[3] = 7;
    b.from[4] = b.from[5] = 20;
    in_parts(&with, &b);
    CHECK(equal(&with, &without, &b));
    merge_all(stats, &b);
    memcpy(kept, stats, sizeof stats);
    memset(empty, 0, sizeof empty);
    OK(nrm_stats_merge(stats, empty, b.C));
    CHECK(memcmp(stats, kept, b.C * sizeof *stats) == 0);
    OK(nrm_stats_merge(empty, stats, b.C));
    CHECK(memcmp(empty, kept, b.C * sizeof *stats) == 0);
}

/* Values a million spreads from 0. One batch knows its mean better than to the last place of
   nrm_acc (section 5.3), a triple does not: y and dx may be off by two places or so, dgamma by as
   much for each of its terms. */
static void test_far_off(void)
{
    static batch b;
    static result whole, parts;
    const double place = 1e6 * (acc_in_float ? (double)FLT_EPSILON : DBL_EPSILON);
    double worst = 0, sums = 0;
    nrm_rng rng;
    size_t i, w;
    nrm_rng_seed(&rng, 44, 1);
    for (i = 3; i < COUNT(shapes); i++)
        for (w = 2; w <= WORKERS; w++) {
            make_batch(&b, shapes[i][0], shapes[i][1], shapes[i][2], 1e6, &rng);
            cut(&b, w, &rng);
            undivided(&whole, &b);
            in_parts(&parts, &b);
            worst = fmax(worst, distance(parts.y, whole.y, numbers(&b), 0));
            worst = fmax(worst, distance(parts.dx, whole.dx, numbers(&b), 1));
            worst = fmax(worst, distance(parts.run_mean, whole.run_mean, b.C, 1));
            worst = fmax(worst, distance(parts.run_var, whole.run_var, b.C, 0));
            sums = fmax(sums, distance(parts.dgamma, whole.dgamma, b.C, (double)(b.N * b.S)));
            CHECK(distance(parts.dbeta, whole.dbeta, b.C, (double)(b.N * b.S)) <= tolerance());
        }
    CHECK_NEAR(worst, 0, tolerance() + 2 * place);
    CHECK_NEAR(sums, 0, tolerance() + 2 * place);
    printf("mean 1e6, spread 1: %.1e from the whole\n", fmax(worst, sums));
}

/* ---- orders ---------------------------------------------------------------------------------- */

/* The next permutation in lexicographic order; 0 after the last. */
static int next_order(size_t *order, size_t n)
{
    size_t i = n - 1, j = n - 1, k;
    while (i > 0 && order[i - 1] > order[i]) i--;
    if (i == 0) return 0;
    while (order[j] < order[i - 1]) j--;
    k = order[i - 1];
    order[i - 1] = order[j];
    order[j] = k;
    for (j = n - 1; i < j; i++, j--) {
        k = order[i];
        order[i] = order[j];
        order[j] = k;
    }
    return 1;
}

/* In a chain, or the first half and the second half by themselves and then both. */
static void merge_in_order(nrm_stats *merged, nrm_stats parts[][MOST_C], const size_t *order,
                           size_t n, size_t C, int as_tree)
{
    size_t i;
    memset(merged, 0, C * sizeof *merged);
    if (as_tree && n > 1) {
        nrm_stats half[MOST_C];
        merge_in_order(merged, parts, order, n / 2, C, 1);
        merge_in_order(half, parts, order + n / 2, n - n / 2, C, 1);
        OK(nrm_stats_merge(merged, half, C));
        return;
    }
    for (i = 0; i < n; i++) OK(nrm_stats_merge(merged, parts[order[i]], C));
}

/* All 120 orders of five, as a chain and as a tree. */
static void test_all_orders(void)
{
    enum { PARTS = 5 };
    static batch b;
    static result whole, parts;
    static nrm_stats stats[PARTS][MOST_C];
    nrm_stats merged[MOST_C];
    size_t order[PARTS] = {0, 1, 2, 3, 4}, w, orders = 0;
    double worst = 0;
    int as_tree;
    nrm_rng rng;
    nrm_rng_seed(&rng, 45, 1);
    make_batch(&b, 61, 7, 3, 10, &rng);
    cut(&b, PARTS, &rng);
    undivided(&whole, &b);
    for (w = 0; w < PARTS; w++) OK(take_statistics(stats[w], &b, w));
    do {
        for (as_tree = 0; as_tree < 2; as_tree++) {
            merge_in_order(merged, stats, order, PARTS, b.C, as_tree);
            in_parts_by(&parts, &b, merged);
            worst = fmax(worst, apart(&parts, &whole, &b));
        }
        orders++;
    } while (next_order(order, PARTS));
    CHECK_INT(orders, 120);
    CHECK_NEAR(worst, 0, acc_in_float ? 5e-6 : tolerance());
    printf("all orders of five: %.1e from the whole\n", worst);
}

/* ---- threads --------------------------------------------------------------------------------- */

typedef struct meeting { /* a barrier */
    pthread_mutex_t lock;
    pthread_cond_t complete;
    size_t expected, here;
    unsigned round;
} meeting;

static void meet(meeting *m)
{
    unsigned round;
    pthread_mutex_lock(&m->lock);
    round = m->round;
    if (++m->here == m->expected) {
        m->here = 0;
        m->round++;
        pthread_cond_broadcast(&m->complete);
    }
    while (round == m->round) pthread_cond_wait(&m->complete, &m->lock);
    pthread_mutex_unlock(&m->lock);
}

typedef struct crew { /* what the threads share: each writes its own row */
    const batch *b;
    nrm_stats stats[WORKERS][MOST_C];
    nrm_sums sums[WORKERS][MOST_C];
    result own[WORKERS];
    int status[WORKERS];
    meeting point;
} crew;

typedef struct member {
    crew *all;
    size_t number;
} member;

/* Everyone merges everything, by number. */
static void *work(void *context)
{
    const member *me = (const member *)context;
    crew *all = me->all;
    const batch *b = all->b;
    const size_t w = me->number;
    nrm_stats merged[MOST_C];
    nrm_sums sums[MOST_C];
    size_t i;
    int rc = take_statistics(all->stats[w], b, w);
    meet(&all->point);
    memset(merged, 0, sizeof merged);
    for (i = 0; i < b->workers; i++) (void)nrm_stats_merge(merged, all->stats[i], b->C);
    start(&all->own[w], b);
    if (rc == NRM_OK) rc = forward_and_sums(&all->own[w], all->sums[w], b, merged, w);
    meet(&all->point);
    memset(sums, 0, sizeof sums);
    for (i = 0; i < b->workers; i++) add_sums(sums, all->sums[i], b->C);
    if (rc == NRM_OK) rc = backward(&all->own[w], b, merged, sums, w);
    all->status[w] = rc;
    return NULL;
}

/* Every worker a thread; their parts put together. */
static void in_threads(result *r, const batch *b)
{
    static crew all;
    pthread_t thread[WORKERS];
    member m[WORKERS];
    size_t w, c;
    memset(&all, 0, sizeof all);
    all.b = b;
    all.point.expected = b->workers;
    pthread_mutex_init(&all.point.lock, NULL);
    pthread_cond_init(&all.point.complete, NULL);
    for (w = 0; w < b->workers; w++) {
        m[w].all = &all;
        m[w].number = w;
        if (pthread_create(&thread[w], NULL, work, &m[w]) != 0) exit(2);
    }
    for (w = 0; w < b->workers; w++) pthread_join(thread[w], NULL);
    pthread_cond_destroy(&all.point.complete);
    pthread_mutex_destroy(&all.point.lock);
    start(r, b);
    for (w = 0; w < b->workers; w++) {
        const size_t at = b->from[w] * each(b), n = share(b, w) * each(b);
        OK(all.status[w]);
        memcpy(r->y + at, all.own[w].y + at, n * sizeof *r->y);
        memcpy(r->dx + at, all.own[w].dx + at, n * sizeof *r->dx);
        for (c = 0; c < b->C; c++) {
            r->dgamma[c] += all.own[w].dgamma[c];
            r->dbeta[c] += all.own[w].dbeta[c];
        }
    }
    memcpy(r->mean, all.own[0].mean, sizeof r->mean);
    memcpy(r->rstd, all.own[0].rstd, sizeof r->rstd);
    memcpy(r->run_mean, all.own[0].run_mean, sizeof r->run_mean);
    memcpy(r->run_var, all.own[0].run_var, sizeof r->run_var);
    r->running.batches = all.own[0].running.batches;
}

/* Merged by number, the same bits every time, whoever came first. */
static void test_repeats(void)
{
    static batch b;
    static result first, again;
    nrm_rng rng;
    size_t workers, i;
    int round;
    nrm_rng_seed(&rng, 46, 1);
    for (workers = 2; workers <= 4; workers++)
        for (i = 3; i < COUNT(shapes); i += 2) {
            make_batch(&b, shapes[i][0], shapes[i][1], shapes[i][2], 3, &rng);
            cut(&b, workers, &rng);
            in_parts(&first, &b);
            in_parts(&again, &b);
            CHECK(equal(&again, &first, &b));
            for (round = 0; round < 10; round++) {
                in_threads(&again, &b);
                CHECK(equal(&again, &first, &b));
            }
        }
}

/* ---- micro-batches --------------------------------------------------------------------------- */

/* One triple takes all micro-batches in, one after the other; the gradient overwrites dy. */
static void test_virtual_batches(void)
{
    static batch b;
    static result whole, parts;
    static nrm_real dy[MOST];
    nrm_stats stats[MOST_C];
    nrm_sums sums[MOST_C], one[MOST_C];
    double worst = 0;
    nrm_rng rng;
    size_t i, w, size, at;
    nrm_rng_seed(&rng, 47, 1);
    for (i = 0; i < COUNT(shapes); i++)
        for (size = 1; size <= 3; size++) {
            make_batch(&b, shapes[i][0], shapes[i][1], shapes[i][2], 0.5, &rng);
            undivided(&whole, &b);
            memset(stats, 0, sizeof stats);
            memset(sums, 0, sizeof sums);
            start(&parts, &b);
            for (w = 0; w < b.N; w += size) /* all go through the layers below, and are looked at */
                OK(nrm_stats_update(stats, b.x + w * each(&b), NULL,
                                    b.N - w < size ? b.N - w : size, b.C, b.S));
            for (w = 0; w < b.N; w += size) { /* then all go on; running statistics move once */
                const size_t n = b.N - w < size ? b.N - w : size;
                at = w * each(&b);
                OK(nrm_sync_batchnorm_forward(parts.y + at, parts.mean, parts.rstd,
                                              w == 0 ? &parts.running : NULL, b.x + at, NULL, stats,
                                              b.gamma, b.beta, NRM_EPS, n, b.C, b.S));
                OK(nrm_sync_batchnorm_sums(one, parts.dgamma, parts.dbeta, b.dy + at, b.x + at,
                                           NULL, parts.mean, parts.rstd, n, b.C, b.S));
                add_sums(sums, one, b.C);
            }
            memcpy(dy, b.dy, sizeof dy);
            for (w = 0; w < b.N; w += size) {
                at = w * each(&b);
                OK(nrm_sync_batchnorm_backward(dy + at, dy + at, b.x + at, NULL, parts.mean,
                                               parts.rstd, b.gamma, stats, sums,
                                               b.N - w < size ? b.N - w : size, b.C, b.S));
            }
            memcpy(parts.dx, dy, sizeof dy);
            worst = fmax(worst, apart(&parts, &whole, &b));
        }
    CHECK_NEAR(worst, 0, acc_in_float ? 2e-5 : in_float ? 2e-6 : 1e-12);
    printf("micro-batches of 1, 2, 3: %.1e from the whole\n", worst);
}

int main(void)
{
    RUN(test_any_split);
    RUN(test_one_worker);
    RUN(test_empty_workers);
    RUN(test_far_off);
    RUN(test_all_orders);
    RUN(test_repeats);
    RUN(test_virtual_batches);
    return test_report(in_float ? acc_in_float ? "sync (float sums)" : "sync (float)"
                                : "sync (double)");
}
