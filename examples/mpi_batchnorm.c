/* mpi_batchnorm: one batch norm over several workers, with MPI.

       make mpi
       mpirun -np 3 build/mpi_batchnorm --out docs/figures

   The 784-64-128-10 network of 10_mnist_norms is trained data-parallel: each worker has a copy of
   it and a part of every batch. The parts are uneven: worker w of 0, 1, 2, ... has w + 1 shares,
   and of the short batch at the end of an epoch the last worker gets none. Three networks start
   from the same weights and see the same batches:

       undivided      every worker by itself has the whole batch, so as to compare
       synchronised   gradients are added up, and the statistics of batch norm are merged
       separate       gradients are added up; each worker normalizes its part by itself

   Synchronised should be undivided but for rounding: after one step to 1e-13 in double and 1e-5 in
   float, and later as long as no input of a ReLU is so close to 0 that rounding moves it to the
   other side. Separate should be less accurate: the normalized values of two examples are 1 and -1
   whatever these are, so worker 0 learns from signs. The criteria, in judge() below, were written
   down before the run; a first run, with the seeds 0 to 2, came before them.

   Evaluation is with running statistics: for separate those of worker 0, as data-parallel
   frameworks do it.

   The file is compiled twice, in float and with NRM_DOUBLE; the second time without the part that
   draws. The library knows nothing of MPI. What you would take to a program of your own are the two
   functions that come first. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"
#include <mpi.h>
#include <string.h>

/* ---- to take away: add and merge ------------------------------------------------------------- */

/* Put these into the spec of your network, on every worker:

       spec.sync.add = add;          the gradients of all workers become their sum
       spec.sync.merge = merge;      batch norm over all workers; without it each by itself
       spec.sync.context = &everyone;   a team; its room may be allocated after nrm_mlp_init

   Everyone gathers what all have and goes through it in the order of the ranks. So all workers have
   the same bits, and the next run has them too. (MPI_Allreduce moves less, but that it should add
   in the same order every time is no more than advice in the standard.) */
#define ACC_TYPE (sizeof(nrm_acc) == sizeof(double) ? MPI_DOUBLE : MPI_FLOAT)

typedef struct team {
    MPI_Comm comm;
    int size;
    nrm_acc *room; /* [size * most] for what all of them have                          */
    size_t most;   /* at least n_params + 1, and 3 times the widest batch norm; an int */
} team;

static int add(void *context, nrm_acc *sums, size_t n)
{
    const team *t = (const team *)context;
    const int count = (int)n;
    size_t i, w;
    if (n > t->most) return -1;
    if (MPI_Allgather(sums, count, ACC_TYPE, t->room, count, ACC_TYPE, t->comm)) return -1;
    memcpy(sums, t->room, n * sizeof *sums);
    for (w = 1; w < (size_t)t->size; w++)
        for (i = 0; i < n; i++) sums[i] += t->room[w * n + i];
    return 0;
}

static int merge(void *context, nrm_stats *stats, size_t n)
{
    const team *t = (const team *)context;
    const int count = (int)(3 * n); /* a nrm_stats is three nrm_acc */
    const nrm_stats *all = (const nrm_stats *)(void *)t->room;
    int w, rc = NRM_OK;
    if (3 * n > t->most) return -1;
    if (MPI_Allgather(stats, count, ACC_TYPE, t->room, count, ACC_TYPE, t->comm)) return -1;
    memset(stats, 0, n * sizeof *stats);
    for (w = 0; w < t->size && rc == NRM_OK; w++)
        rc = nrm_stats_merge(stats, all + (size_t)w * n, n);
    return rc;
}

/* ---- what one run leaves --------------------------------------------------------------------- */

#include "lab/training.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "lab/cli.h"

#define NAME "mpi_batchnorm"

enum { UNDIVIDED = 0, SYNCHRONISED, SEPARATE, ARMS };
enum { FLOAT = 0, DOUBLE, TYPES };
enum { INPUTS = 784, HIDDEN = 2, CLASSES = 10, EVAL_BATCH = 500, PATH_MOST = 1024 };
enum { EPOCHS_MAX = 100, SEEDS_MAX = 20, BLOCKS = 20 }; /* losses are means over 1/20 of an epoch */

/* What is recorded of a network, in an array each; and of the first step, the distances from
   undivided of these. */
enum { TRAIN_LOSS = 0, TEST_LOSS, ACCURACY, ANEW, BLOCK_LOSS, AWAY, DIFFER, FIRST, SERIES };
enum { LOSS = 0, MEAN1, RSTD1, MEAN2, RSTD2, GRADS1, GRADS2, GRADS3, QUANTITIES };

/* One seed in one type, by arm and series. [epochs+1]: mean loss of an epoch's batches, loss and
   accuracy (%) on the test set; [1]: accuracy with statistics of all training data; [epochs*20]:
   mean losses; [epochs*steps]: how far the parameters are from undivided's, and the ReLUs that are
   open in only one of the first two networks; [QUANTITIES]: the first step. On rank 0. */
typedef double *run[ARMS][SERIES];

typedef struct experiment {
    const cli_options *o;
    cli_progress progress;
    char png[PATH_MOST], csv[PATH_MOST]; /* of rank 0 */
    dataset data;
    size_t train_n, steps; /* of one epoch */
    size_t taken;          /* steps so far, for the progress line */
    int rank, size;
    run runs[TYPES][SEEDS_MAX];
} experiment;

void train_in_float(experiment *e, run r, uint64_t seed);
void train_in_double(experiment *e, run r, uint64_t seed);

/* An error that the other workers do not know of: they would wait for this one for ever. */
static void give_up(const char *why)
{
    fprintf(stderr, NAME ": %s\n", why);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

static void *allocate(size_t count, size_t size)
{
    void *p = calloc(count > 0 ? count : 1, size);
    if (!p) give_up("out of memory");
    return p;
}

/* Where the part of worker w begins, in a batch of n: a full batch is dealt 1 : 2 : 3 : ..., a
   short one is the beginning of a full one. Worker `size` begins at the end. */
static size_t part_begins(const experiment *e, size_t n, int w)
{
    const size_t shares = (size_t)(e->size * (e->size + 1)), mine = (size_t)(w * (w + 1));
    const size_t at = e->o->batch * mine / shares;
    return at < n ? at : n;
}

/* ---- one run --------------------------------------------------------------------------------- */

#ifdef NRM_DOUBLE
#define train_in train_in_double
#else
#define train_in train_in_float
#endif

typedef struct trainer {
    experiment *e;
    training_set train, test;
    training_order order;
    team everyone;
    nrm_mlp *net[ARMS];
    void *block[ARMS];
} trainer;

static void make_net(trainer *t, int arm, uint64_t seed)
{
    nrm_mlp_layer layer[HIDDEN + 1];
    nrm_mlp_spec spec = training_plain(layer, HIDDEN, 64, NRM_RELU, NRM_BATCH_NORM);
    layer[1].width = 128;
    spec.max_batch = t->e->o->batch > EVAL_BATCH ? t->e->o->batch : EVAL_BATCH;
    spec.seed = seed;
    spec.init = NRM_INIT_FAN_IN;
    spec.lr = (nrm_real)t->e->o->lr;
    if (arm != UNDIVIDED) spec.sync.add = add;
    if (arm == SYNCHRONISED) spec.sync.merge = merge;
    spec.sync.context = &t->everyone;
    t->net[arm] = training_net(&spec, &t->block[arm]);
    if (!t->net[arm]) give_up("no network");
}

static void prepare(trainer *t, experiment *e, uint64_t seed)
{
    int arm;
    memset(t, 0, sizeof *t);
    t->e = e;
    if (training_load(&t->train, &t->test, &e->data, 0, 0, DATASET_RAW01) ||
        training_order_start(&t->order, e->train_n, e->o->batch, INPUTS, seed))
        give_up("out of memory");
    for (arm = 0; arm < ARMS; arm++) make_net(t, arm, seed);
    t->everyone.comm = MPI_COMM_WORLD;
    t->everyone.size = e->size;
    t->everyone.most = t->net[SYNCHRONISED]->n_params + 1;
    t->everyone.room = (nrm_acc *)allocate((size_t)e->size * t->everyone.most, sizeof(nrm_acc));
}

static void dispose(trainer *t)
{
    int arm;
    for (arm = 0; arm < ARMS; arm++) free(t->block[arm]);
    free(t->everyone.room);
    training_order_free(&t->order);
    training_set_free(&t->train);
    training_set_free(&t->test);
}

/* The present batch, or this worker's part of it: one step. Returns the loss of the whole batch. */
static double step(trainer *t, int arm)
{
    const experiment *e = t->e;
    const size_t n = t->order.count;
    const size_t from = arm == UNDIVIDED ? 0 : part_begins(e, n, e->rank);
    const size_t to = arm == UNDIVIDED ? n : part_begins(e, n, e->rank + 1);
    nrm_acc loss = 0;
    const int rc = nrm_mlp_train_step(t->net[arm], &loss, t->order.x + from * INPUTS,
                                      t->order.labels + from, to - from);
    if (rc != NRM_OK) give_up(nrm_strerror(rc));
    return (double)loss;
}

/* The larger of two; NaN if one is, so that nothing passes that is no number. */
static double worse(double a, double b)
{
    return a > b || a != a ? a : b;
}

/* The largest |a - b|, relative to the largest |b|. */
static double reals_apart(const nrm_real *a, const nrm_real *b, size_t n)
{
    return training_farthest(a, b, n) / training_farthest(b, NULL, n);
}

static double accs_apart(const nrm_acc *a, const nrm_acc *b, size_t n)
{
    double apart = 0, size = 0;
    size_t i;
    for (i = 0; i < n; i++) {
        apart = worse(apart, fabs((double)(a[i] - b[i])));
        size = worse(size, fabs((double)b[i]));
    }
    return apart / size;
}

/* What the layers have saved in the step just taken, and the gradients of all workers. A layer's
   gradients lie side by side: W, b, gamma, beta. */
static void compare_step(const nrm_mlp *net, const nrm_mlp *whole, double *apart)
{
    size_t l;
    for (l = 0; l <= HIDDEN; l++) {
        const nrm_mlp_state *s = &net->state[l], *of_whole = &whole->state[l];
        const nrm_real *end = l < HIDDEN ? of_whole[1].dW : whole->grads + whole->n_params;
        apart[GRADS1 + l] = reals_apart(s->dW, of_whole->dW, (size_t)(end - of_whole->dW));
        if (l == HIDDEN) break;
        apart[MEAN1 + 2 * l] = accs_apart(s->mean, of_whole->mean, s->shape.width);
        apart[RSTD1 + 2 * l] = accs_apart(s->rstd, of_whole->rstd, s->shape.width);
    }
}

/* How many ReLUs of my part of the batch are open in one network and closed in the other. */
static double relus_that_differ(const trainer *t)
{
    const size_t from = part_begins(t->e, t->order.count, t->e->rank);
    const size_t to = part_begins(t->e, t->order.count, t->e->rank + 1);
    size_t l, i, found = 0;
    for (l = 0; l < HIDDEN; l++) {
        const size_t width = t->net[UNDIVIDED]->state[l].shape.width;
        const nrm_real *whole = t->net[UNDIVIDED]->state[l].act_out + from * width;
        const nrm_real *part = t->net[SYNCHRONISED]->state[l].act_out;
        for (i = 0; i < (to - from) * width; i++) found += (whole[i] > 0) != (part[i] > 0);
    }
    return (double)found;
}

/* Do all workers have the same? Running statistics too, where they are said to be common. */
static void check_copies(const trainer *t, int arm)
{
    const nrm_mlp *net = t->net[arm];
    uint64_t hash = files_hash(FILES_HASH_INIT, net->params, net->n_params * sizeof *net->params);
    uint64_t *all = (uint64_t *)allocate((size_t)t->e->size, sizeof *all);
    int l, w;
    for (l = 0; l < HIDDEN && arm != SEPARATE; l++) {
        const nrm_mlp_state *s = &net->state[l];
        hash = files_hash(hash, s->running.mean, s->shape.width * sizeof *s->running.mean);
        hash = files_hash(hash, s->running.var, s->shape.width * sizeof *s->running.var);
    }
    MPI_Allgather(&hash, 1, MPI_UINT64_T, all, 1, MPI_UINT64_T, MPI_COMM_WORLD);
    for (w = 1; w < t->e->size; w++)
        if (all[w] != all[0]) give_up("the workers' copies of a network differ");
    free(all);
}

static double accuracy_of(const trainer *t, int arm, double *loss)
{
    nrm_acc of_loss = 0, accuracy = 0;
    if (nrm_mlp_eval(t->net[arm], &of_loss, &accuracy, t->test.x, t->test.labels, t->test.n))
        give_up("the evaluation failed");
    if (loss) *loss = (double)of_loss;
    return (double)accuracy;
}

static void evaluate(const trainer *t, run r, size_t epoch)
{
    int arm;
    for (arm = 0; arm < ARMS; arm++) check_copies(t, arm);
    for (arm = 0; arm < ARMS && t->e->rank == 0; arm++)
        r[arm][ACCURACY][epoch] = accuracy_of(t, arm, &r[arm][TEST_LOSS][epoch]);
}

/* What step k of an epoch (0, 1, ...) leaves of one network. */
static void record(const trainer *t, run r, int arm, size_t epoch, size_t k, const double *loss)
{
    const nrm_mlp *net = t->net[arm], *whole = t->net[UNDIVIDED];
    const size_t steps = t->e->steps;
    const size_t b = k * BLOCKS / steps; /* block b: steps (b*steps/20 .. (b+1)*steps/20), up */
    const size_t first = (b * steps + BLOCKS - 1) / BLOCKS;
    const size_t next = ((b + 1) * steps + BLOCKS - 1) / BLOCKS;
    r[arm][TRAIN_LOSS][epoch] += loss[arm] / (double)steps;
    r[arm][BLOCK_LOSS][(epoch - 1) * BLOCKS + b] += loss[arm] / (double)(next - first);
    r[arm][AWAY][(epoch - 1) * steps + k] = reals_apart(net->params, whole->params, net->n_params);
    if (epoch > 1 || k > 0) return;
    r[arm][FIRST][LOSS] = fabs(loss[arm] - loss[UNDIVIDED]) / loss[UNDIVIDED];
    compare_step(net, whole, r[arm][FIRST]);
}

static void train_epoch(trainer *t, run r, size_t epoch)
{
    double loss[ARMS], differ, *sum = r[SYNCHRONISED][DIFFER] + (epoch - 1) * t->e->steps;
    size_t k;
    int arm;
    for (k = 0; training_next(&t->order, &t->train); k++) {
        for (arm = 0; arm < ARMS; arm++) loss[arm] = step(t, arm);
        for (arm = 0; arm < ARMS && t->e->rank == 0; arm++) record(t, r, arm, epoch, k, loss);
        differ = relus_that_differ(t);
        MPI_Reduce(&differ, &sum[k], 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
        cli_progress_update(&t->e->progress, ++t->e->taken, NULL);
    }
}

/* The statistics of batch norm once more, from all training data: is it the running ones that are
   to blame? Synchronised: each worker looks at its share of the data. */
static void evaluate_anew(trainer *t, run r)
{
    const size_t n = t->train.n, share = n / (size_t)t->e->size, from = share * (size_t)t->e->rank;
    const size_t mine = t->e->rank == t->e->size - 1 ? n - from : share;
    int arm;
    if (training_reestimate(t->net[SYNCHRONISED], t->train.x + from * INPUTS, mine))
        give_up("no statistics");
    for (arm = 0; arm < ARMS && t->e->rank == 0; arm++) {
        if (arm != SYNCHRONISED && training_reestimate(t->net[arm], t->train.x, n))
            give_up("no statistics");
        r[arm][ANEW][0] = accuracy_of(t, arm, NULL);
    }
}

void train_in(experiment *e, run r, uint64_t seed)
{
    trainer t;
    size_t epoch;
    prepare(&t, e, seed);
    evaluate(&t, r, 0);
    for (epoch = 1; epoch <= e->o->epochs; epoch++) {
        train_epoch(&t, r, epoch);
        evaluate(&t, r, epoch);
    }
    evaluate_anew(&t, r);
    dispose(&t);
}

/* ==== only once: options, tables, figure ====================================================== */
#ifndef NRM_DOUBLE

#include <stdarg.h>

#include "lab/csv.h"
#include "plot/plot.h"
#include "lab/stats.h"

enum { TRAIN_N = 10000, TEST_N = 10000, QUICK_N = 1000, SHOWN_MAX = 200 };
enum { CLAIMS = 4, TEXT = 160 };

static const char *const arm_name[ARMS] = {"undivided", "synchronised", "separate"};
static const char *const type_name[TYPES] = {"float", "double"};
/* clang-format off */
static const char *const quantity_name[QUANTITIES] = {
    "loss", "means of layer 1", "1/sd of layer 1", "means of layer 2", "1/sd of layer 2",
    "gradients of layer 1", "gradients of layer 2", "gradients of output layer"};
/* clang-format on */

static void put(char *text, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, size, format, args);
    va_end(args);
}

static const char *plural(size_t n)
{
    return n == 1 ? "" : "s";
}

/* ---- over the seeds -------------------------------------------------------------------------- */

/* Accuracies in %. */
static stats_summary over_seeds(const experiment *e, int type, int arm, int series, size_t at)
{
    const double unit = series == ACCURACY || series == ANEW ? 100 : 1;
    double value[SEEDS_MAX];
    stats_summary summary;
    size_t s;
    for (s = 0; s < e->o->seeds; s++) value[s] = unit * e->runs[type][s][arm][series][at];
    summary = stats_describe(value, e->o->seeds);
    if (e->o->seeds == 1) summary.sd = 0;
    return summary;
}

static double most(const experiment *e, int type, int arm, int series, size_t at)
{
    double found = 0;
    size_t s;
    for (s = 0; s < e->o->seeds; s++) found = worse(found, e->runs[type][s][arm][series][at]);
    return found;
}

/* The step, from 1 on, with the first ReLU that differs; one more than there are steps if none. */
static size_t first_that_differs(const experiment *e, size_t seed)
{
    const size_t all = e->o->epochs * e->steps;
    size_t k;
    for (k = 0; k < all; k++)
        if (e->runs[FLOAT][seed][SYNCHRONISED][DIFFER][k] > 0) return k + 1;
    return all + 1;
}

/* ---- verdicts -------------------------------------------------------------------------------- */

typedef struct verdict {
    const char *claim, *criterion;
    char found[TEXT];
    int holds;
} verdict;

static const char *result(const verdict *v)
{
    return v->holds ? "holds" : "does not hold";
}

static void judge_step(const experiment *e, verdict *v)
{
    double worst[TYPES] = {0, 0}, least = 1e300;
    size_t q, s;
    int type;
    for (q = 0; q < QUANTITIES; q++)
        for (type = 0; type < TYPES; type++)
            worst[type] = worse(worst[type], most(e, type, SYNCHRONISED, FIRST, q));
    for (s = 0; s < e->o->seeds; s++)
        for (q = MEAN1; q < QUANTITIES; q++)
            least = fmin(least, e->runs[FLOAT][s][SEPARATE][FIRST][q]);
    v->claim = "One step is that of the undivided batch";
    v->criterion = "apart by at most 1e-13 in double, 1e-5 in float; separate > 0.01";
    put(v->found, TEXT, "%.1e in double, %.1e in float; separate >= %.2f", worst[DOUBLE],
        worst[FLOAT], least);
    v->holds = worst[DOUBLE] <= 1e-13 && worst[FLOAT] <= 1e-5 && least > 0.01;
}

static void judge_copies(const experiment *e, verdict *v)
{
    const size_t seeds = e->o->seeds, epochs = e->o->epochs;
    v->claim = "All copies of a network stay the same";
    v->criterion = "the same bits on all workers at the end of every epoch";
    put(v->found, TEXT, "so they are: %d workers, %zu seed%s, 2 types, %zu epoch%s", e->size, seeds,
        plural(seeds), epochs, plural(epochs));
    v->holds = 1; /* check_copies would have ended the program */
}

static void judge_drift(const experiment *e, verdict *v)
{
    const size_t all = e->o->epochs * e->steps;
    const double in_double = most(e, DOUBLE, SYNCHRONISED, AWAY, all - 1);
    char first[64] = ""; /* "6, 768, -": where the first ReLU differs in each seed */
    double agreed = 0;
    size_t s, k, others = 0;
    for (s = 0; s < e->o->seeds; s++) {
        const size_t differs = first_that_differs(e, s), used = strlen(first);
        for (k = 0; k + 1 < differs; k++)
            agreed = worse(agreed, e->runs[FLOAT][s][SYNCHRONISED][AWAY][k]);
        for (k = 0; k <= e->o->epochs; k++)
            others += e->runs[DOUBLE][s][SYNCHRONISED][ACCURACY][k] !=
                      e->runs[DOUBLE][s][UNDIVIDED][ACCURACY][k];
        if (used + 16 >= sizeof first) continue;
        put(first + used, sizeof first - used, differs > all ? "%s-" : "%s%zu", s > 0 ? ", " : "",
            differs);
    }
    v->claim = "What parts them later is rounding";
    v->criterion = "float: 1e-5 while all ReLUs agree; double: 1e-9 to the end, same accuracies";
    put(v->found, TEXT, "%.1e, first ReLUs at %s; %.1e, %zu differ", agreed, first, in_double,
        others);
    v->holds = agreed <= 1e-5 && in_double <= 1e-9 && others == 0;
}

static void judge_separate(const experiment *e, verdict *v)
{
    const size_t last = e->o->epochs;
    size_t s, below = 0;
    for (s = 0; s < e->o->seeds; s++)
        below += e->runs[FLOAT][s][SEPARATE][ACCURACY][last] <
                 e->runs[FLOAT][s][SYNCHRONISED][ACCURACY][last];
    v->claim = "Separate is less accurate";
    v->criterion = "below synchronised in every seed, after the last epoch";
    put(v->found, TEXT, "below in %zu of %zu: %.2f %% against %.2f %%", below, e->o->seeds,
        over_seeds(e, FLOAT, SEPARATE, ACCURACY, last).mean,
        over_seeds(e, FLOAT, SYNCHRONISED, ACCURACY, last).mean);
    v->holds = below == e->o->seeds;
}

static void print_results(const experiment *e, const verdict v[CLAIMS])
{
    const cli_options *o = e->o;
    const size_t last = o->epochs, rest = e->train_n % o->batch;
    size_t q;
    int a, w;
    printf("%s, %zu images, %zu seed%s from %llu, %zu epoch%s, lr %g\n", e->data.name, e->train_n,
           o->seeds, plural(o->seeds), (unsigned long long)o->seed, o->epochs, plural(o->epochs),
           o->lr);
    printf("%d workers, with", e->size);
    for (w = 0; w < e->size; w++)
        printf(" %zu", part_begins(e, o->batch, w + 1) - part_begins(e, o->batch, w));
    printf(" of every %zu", o->batch);
    for (w = 0; w < e->size && rest > 0; w++)
        printf("%s %zu", w == 0 ? ", and" : "",
               part_begins(e, rest, w + 1) - part_begins(e, rest, w));
    printf("%s\n\n%-24s %15s %15s %15s\n", rest > 0 ? " of the last batch" : "",
           "apart after one step", "synchronised", "synchronised", "separate");
    printf("%-24s %15s %15s %15s\n", "", "float", "double", "float");
    for (q = 0; q < QUANTITIES; q++)
        printf("%-24s %15.1e %15.1e %15.1e\n", quantity_name[q],
               most(e, FLOAT, SYNCHRONISED, FIRST, q), most(e, DOUBLE, SYNCHRONISED, FIRST, q),
               most(e, FLOAT, SEPARATE, FIRST, q));
    printf("\n%-24s %17s %17s %17s\n", "in float", "training loss", "test accuracy %",
           "statistics anew");
    for (a = 0; a < ARMS; a++) {
        const stats_summary loss = over_seeds(e, FLOAT, a, TRAIN_LOSS, last);
        const stats_summary accuracy = over_seeds(e, FLOAT, a, ACCURACY, last);
        const stats_summary anew = over_seeds(e, FLOAT, a, ANEW, 0);
        printf("%-24s %8.4f ± %6.4f %9.2f ± %5.2f %9.2f ± %5.2f\n", arm_name[a], loss.mean, loss.sd,
               accuracy.mean, accuracy.sd, anew.mean, anew.sd);
    }
    printf("\n");
    for (a = 0; a < CLAIMS; a++)
        printf("%s: %s\n    criterion: %s\n    found: %s\n", v[a].claim, result(&v[a]),
               v[a].criterion, v[a].found);
}

/* ---- tables ---------------------------------------------------------------------------------- */

/* The head of a table, with the verdicts if there are any. */
static void begin_table(const experiment *e, csv_table *t, const verdict *v,
                        const char *const *columns, size_t n)
{
    const csv_origin origin = {.program = NAME,
                               .version = NRM_VERSION,
                               .first_seed = e->o->seed,
                               .seeds = e->o->seeds,
                               .data = e->data.name,
                               .data_hash = e->data.hash};
    int i;
    csv_begin(t);
    csv_note_origin(t, &origin);
    csv_note(t, "network", "784-64-128-10, ReLU, linear-batch norm-ReLU");
    csv_note_real(t, "workers", e->size);
    csv_note_real(t, "batch", (double)e->o->batch);
    csv_note_real(t, "epochs", (double)e->o->epochs);
    csv_note_real(t, "training_images", (double)e->train_n);
    csv_note_real(t, "lr", e->o->lr);
    for (i = 0; i < CLAIMS && v; i++) {
        char line[3 * TEXT];
        put(line, sizeof line, "%s: %s [%s] %s", v[i].claim, result(&v[i]), v[i].criterion,
            v[i].found);
        csv_note(t, "verdict", line);
    }
    csv_columns(t, columns, n);
}

static int write_epochs(const experiment *e, const verdict v[CLAIMS], const char *path)
{
    const char *columns[8] = {"type",       "network",   "seed",     "epoch",
                              "train_loss", "test_loss", "accuracy", "accuracy_anew"};
    csv_table t;
    size_t s, epoch;
    int type, a;
    begin_table(e, &t, v, columns, 8);
    for (type = 0; type < TYPES; type++)
        for (a = 0; a < ARMS; a++)
            for (s = 0; s < e->o->seeds; s++)
                for (epoch = 0; epoch <= e->o->epochs; epoch++) {
                    double *const *of = e->runs[type][s][a];
                    csv_text(&t, type_name[type]);
                    csv_text(&t, arm_name[a]);
                    csv_real(&t, (double)(e->o->seed + s));
                    csv_real(&t, (double)epoch);
                    csv_real(&t, epoch ? of[TRAIN_LOSS][epoch] : (double)NAN);
                    csv_real(&t, of[TEST_LOSS][epoch]);
                    csv_real(&t, of[ACCURACY][epoch]);
                    csv_real(&t, epoch == e->o->epochs ? of[ANEW][0] : (double)NAN);
                    csv_end_row(&t);
                }
    return csv_finish(&t, path);
}

/* Panel a: mean and standard deviation over the seeds, in float. */
static int write_loss(const experiment *e, const char *path)
{
    const char *columns[1 + 2 * ARMS] = {
        "epoch",           "undivided_mean", "undivided_sd", "synchronised_mean",
        "synchronised_sd", "separate_mean",  "separate_sd"};
    csv_table t;
    size_t i;
    int a;
    begin_table(e, &t, NULL, columns, 1 + 2 * ARMS);
    for (i = 0; i < e->o->epochs * BLOCKS; i++) {
        csv_real(&t, (double)(i + 1) / BLOCKS);
        for (a = 0; a < ARMS; a++) {
            const stats_summary s = over_seeds(e, FLOAT, a, BLOCK_LOSS, i);
            csv_real(&t, s.mean);
            csv_real(&t, s.sd);
        }
        csv_end_row(&t);
    }
    return csv_finish(&t, path);
}

/* Panel d. */
static int write_first(const experiment *e, const char *path)
{
    const char *columns[5] = {"quantity", "synchronised_float", "synchronised_double",
                              "separate_float", "separate_double"};
    csv_table t;
    size_t q;
    int type, a;
    begin_table(e, &t, NULL, columns, 5);
    for (q = 0; q < QUANTITIES; q++) {
        csv_text(&t, quantity_name[q]);
        for (a = SYNCHRONISED; a < ARMS; a++)
            for (type = 0; type < TYPES; type++) csv_real(&t, most(e, type, a, FIRST, q));
        csv_end_row(&t);
    }
    return csv_finish(&t, path);
}

/* The steps that are shown on a logarithmic axis: 1, 2, 3, ... ever further apart, and the last. */
static size_t shown_steps(const experiment *e, double *shown)
{
    const size_t all = e->o->epochs * e->steps;
    size_t n = 0, at = 1;
    while (at < all && n < SHOWN_MAX - 1) {
        shown[n++] = (double)at;
        at += at < 10 ? 1 : at / 10;
    }
    shown[n++] = (double)all;
    return n;
}

/* Panel c. */
static int write_drift(const experiment *e, const char *path)
{
    const char *columns[8] = {"seed",
                              "step",
                              "synchronised_float",
                              "separate_float",
                              "relus_float",
                              "synchronised_double",
                              "separate_double",
                              "relus_double"};
    double shown[SHOWN_MAX];
    const size_t n = shown_steps(e, shown);
    csv_table t;
    size_t s, i;
    int type, a;
    begin_table(e, &t, NULL, columns, 8);
    for (s = 0; s < e->o->seeds; s++)
        for (i = 0; i < n; i++) {
            const size_t k = (size_t)shown[i] - 1;
            csv_real(&t, (double)(e->o->seed + s));
            csv_real(&t, shown[i]);
            for (type = 0; type < TYPES; type++) {
                for (a = SYNCHRONISED; a < ARMS; a++) csv_real(&t, e->runs[type][s][a][AWAY][k]);
                csv_real(&t, e->runs[type][s][SYNCHRONISED][DIFFER][k]);
            }
            csv_end_row(&t);
        }
    return csv_finish(&t, path);
}

/* ---- figure ---------------------------------------------------------------------------------- */

/* A wide pale line for what the thin dashed one is to lie on. */
static plot_style arm_style(int a)
{
    const plot_color color[ARMS] = {PLOT_SKY, PLOT_BLUE, PLOT_VERMILLION};
    const int dash[ARMS] = {PLOT_SOLID, PLOT_DASHED, PLOT_DASHDOT};
    plot_style style = plot_solid(color[a]);
    style.dash = dash[a];
    if (a == UNDIVIDED) style.width = 3;
    return style;
}

/* Means over the seeds in float; with a band, but synchronised's would hide the one below. */
static void add_curves(const experiment *e, plot_panel *p, int series, size_t n, const double *x)
{
    static double mean[EPOCHS_MAX * BLOCKS], sd[EPOCHS_MAX * BLOCKS];
    size_t i;
    int a;
    for (a = 0; a < ARMS; a++) {
        for (i = 0; i < n; i++) {
            const stats_summary s = over_seeds(e, FLOAT, a, series, i);
            mean[i] = s.mean;
            sd[i] = s.sd;
        }
        if (a == SYNCHRONISED)
            plot_line(p, arm_name[a], x, mean, n, arm_style(a));
        else
            plot_mean_band(p, arm_name[a], x, mean, sd, n, arm_style(a));
    }
}

static void add_learning(const experiment *e, plot_figure *f)
{
    static double x[EPOCHS_MAX * BLOCKS];
    const double epochs = (double)e->o->epochs;
    const size_t n = e->o->epochs * BLOCKS;
    plot_panel *loss =
        plot_place(f, .heading = "training loss, mean ± 1 sd over seeds", .x = "epoch",
                   .y = "cross-entropy (nats)", .x_range = {0, epochs});
    plot_panel *accuracy =
        plot_place(f, .col = 1, .heading = "test accuracy, by running statistics", .x = "epoch",
                   .y = "test accuracy (%)", .x_range = {0, epochs}, .y_range = {50, 100});
    size_t i;
    for (i = 0; i < n; i++) x[i] = (double)(i + 1) / BLOCKS;
    add_curves(e, loss, BLOCK_LOSS, n, x);
    for (i = 0; i <= e->o->epochs; i++) x[i] = (double)i; /* epoch 0 is below the axis */
    add_curves(e, accuracy, ACCURACY, e->o->epochs + 1, x);
}

/* A line for each seed, and a ring where the first ReLU differs. */
static void add_drift(const experiment *e, plot_figure *f)
{
    double shown[SHOWN_MAX], away[ARMS + 1][SHOWN_MAX], at, height;
    const size_t n = shown_steps(e, shown);
    plot_panel *p = plot_place(f, .row = 1, .heading = "parameters: how far from undivided",
                               .x = "step", .x_scale = PLOT_LOG10,
                               .y = "largest difference / largest", .y_scale = PLOT_LOG10);
    plot_style in_double = arm_style(SYNCHRONISED);
    size_t s, i;
    in_double.dash = PLOT_DOTTED;
    for (s = 0; s < e->o->seeds; s++) {
        const size_t differs = first_that_differs(e, s);
        for (i = 0; i < n; i++) {
            const size_t k = (size_t)shown[i] - 1;
            away[SYNCHRONISED][i] = e->runs[FLOAT][s][SYNCHRONISED][AWAY][k];
            away[SEPARATE][i] = e->runs[FLOAT][s][SEPARATE][AWAY][k];
            away[ARMS][i] = e->runs[DOUBLE][s][SYNCHRONISED][AWAY][k];
        }
        plot_line(p, arm_name[SEPARATE], shown, away[SEPARATE], n, arm_style(SEPARATE));
        plot_line(p, arm_name[SYNCHRONISED], shown, away[SYNCHRONISED], n, arm_style(SYNCHRONISED));
        plot_line(p, "synchronised, in double", shown, away[ARMS], n, in_double);
        if (differs > e->o->epochs * e->steps) continue;
        at = (double)differs;
        height = e->runs[FLOAT][s][SYNCHRONISED][AWAY][differs - 1];
        plot_scatter(p, "first ReLU that differs", &at, &height, 1,
                     plot_marked(PLOT_INK, PLOT_RING));
    }
}

/* "2·10^{-16}" */
static void power(char *text, size_t size, double x)
{
    const double exponent = x > 0 ? floor(log10(x)) : 0;
    if (x == 0)
        put(text, size, "0");
    else if (exponent >= -2)
        put(text, size, x < 10 ? "%.2f" : "%.0f", x);
    else
        put(text, size, "%.0f·10^{%.0f}", x / pow(10, exponent), exponent);
}

static void add_first(const experiment *e, plot_figure *f)
{
    enum { COLUMNS = 4 };
    static char text[QUANTITIES][COLUMNS][32];
    const char *cells[QUANTITIES + 1][COLUMNS] = {
        {"", "synch., float", "synch., double", "separate"}};
    plot_panel *p = plot_place(f, .row = 1, .col = 1,
                               .heading = "after one step: largest difference / largest");
    size_t i, c;
    for (i = 0; i < QUANTITIES; i++) {
        power(text[i][1], 32, most(e, FLOAT, SYNCHRONISED, FIRST, i));
        power(text[i][2], 32, most(e, DOUBLE, SYNCHRONISED, FIRST, i));
        power(text[i][3], 32, most(e, FLOAT, SEPARATE, FIRST, i));
        cells[i + 1][0] = quantity_name[i];
        for (c = 1; c < COLUMNS; c++) cells[i + 1][c] = text[i][c];
    }
    plot_table(p, cells[0], QUANTITIES + 1, COLUMNS, "lrrr");
}

static void add_verdicts(plot_figure *f, const verdict v[CLAIMS])
{
    const char *cells[CLAIMS + 1][4] = {
        {"claim", "criterion, written before the run", "found", "verdict"}};
    int i;
    for (i = 0; i < CLAIMS; i++) {
        cells[i + 1][0] = v[i].claim;
        cells[i + 1][1] = v[i].criterion;
        cells[i + 1][2] = v[i].found;
        cells[i + 1][3] = result(&v[i]);
    }
    plot_table(plot_place(f, .row = 2, .cols = 2, .heading = "verdicts"), cells[0], CLAIMS + 1, 4,
               "llll");
}

static int draw(const experiment *e, const verdict v[CLAIMS], const char *path)
{
    const double heights[3] = {1, 1, 0.55};
    const cli_options *o = e->o;
    plot_figure *f = plot_new(1600, 1450);
    char text[400];
    plot_title(f, "One batch norm over several workers");
    put(text, sizeof text,
        "%s%s%s, %zu training images. 784-64-128-10, ReLU, SGD with learning rate %g, batches of "
        "%zu over %d workers. %zu seed%s.",
        cli_quick_note(o->quick), e->data.synthetic ? "Not MNIST: " : "", e->data.name, e->train_n,
        o->lr, o->batch, e->size, o->seeds, plural(o->seeds));
    plot_subtitle(f, text);
    put(text, sizeof text,
        "mpirun -np %d " NAME " --seed %llu --seeds %zu --epochs %zu --batch %zu --lr %g%s",
        e->size, (unsigned long long)o->seed, o->seeds, o->epochs, o->batch, o->lr,
        o->quick ? " --quick" : "");
    plot_footer(f, text);
    plot_heights(f, heights, 3);
    plot_letters(f);
    plot_shared_legend(f);
    add_learning(e, f);
    add_drift(e, f);
    add_first(e, f);
    add_verdicts(f, v);
    return plot_finish(f, path);
}

static int publish(const experiment *e)
{
    char path[3][PATH_MOST + 16];
    const char *const ending[3] = {"_loss.csv", "_drift.csv", "_first.csv"};
    verdict v[CLAIMS];
    int i;
    for (i = 0; i < 3; i++) (void)cli_path_beside(path[i], sizeof path[i], e->png, ending[i]);
    judge_step(e, &v[0]);
    judge_copies(e, &v[1]);
    judge_drift(e, &v[2]);
    judge_separate(e, &v[3]);
    print_results(e, v);
    if (draw(e, v, e->png) || write_epochs(e, v, e->csv) || write_loss(e, path[0]) ||
        write_drift(e, path[1]) || write_first(e, path[2]))
        return 1;
    printf("\nwrote %s and its tables\n", e->png);
    return 0;
}

/* ---- the program ----------------------------------------------------------------------------- */

static int parse(cli_options *o, int argc, char **argv)
{
    cli_program program;
    int status;
    cli_program_init(&program, NAME, "One batch norm over several workers, with MPI.",
                     CLI_USES_ALL & ~(CLI_USES_THREADS | CLI_USES_PLAN));
    program.version = NRM_VERSION;
    program.example = "mpirun -np 3 " NAME " --out build/figures";
    program.defaults.epochs = 5;
    program.defaults.seeds = 3;
    program.defaults.batch = 12;
    program.defaults.lr = 0.05;
    program.most_seeds = SEEDS_MAX;
    program.most_epochs = EPOCHS_MAX;
    program.least_batch = 2;
    status = cli_parse(o, &program, argc, argv);
    if (status != CLI_RUN) return status;
    if (o->quick && !(o->given & CLI_USES_EPOCHS)) o->epochs = 1;
    if (o->quick && !(o->given & CLI_USES_SEEDS)) o->seeds = 2;
    return CLI_RUN;
}

/* Separate workers need two examples or none, and the blocks of panel a a step each. */
static int check_parts(const experiment *e)
{
    int last, w;
    if (e->steps < BLOCKS) {
        fprintf(stderr, NAME ": --batch %zu makes less than %d steps of %zu images\n", e->o->batch,
                (int)BLOCKS, e->train_n);
        return CLI_EXIT_USAGE;
    }
    for (last = 0; last < 2; last++) {
        const size_t n = last ? e->train_n % e->o->batch : e->o->batch; /* may be 0 */
        for (w = 0; w < e->size && n > 0; w++)
            if (part_begins(e, n, w + 1) - part_begins(e, n, w) == 1) {
                fprintf(stderr,
                        NAME ": of a batch of %zu worker %d would get one example, which batch "
                             "norm cannot train on alone; try another --batch\n",
                        n, w);
                return CLI_EXIT_USAGE;
            }
    }
    return CLI_RUN;
}

/* All workers read the data, and come to the same conclusions. If one of them cannot, it tells the
   others why, of which rank 0 is heard. */
static int load(experiment *e)
{
    const size_t train_n = e->o->quick ? QUICK_N : TRAIN_N, test_n = e->o->quick ? QUICK_N : TEST_N;
    char err[DATASET_ERR_MAX] = "";
    const int failed = dataset_load(&e->data, e->o->data, 1, train_n, test_n, err) != 0;
    int mine = failed ? e->rank : e->size, first = 0;
    MPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (first < e->size) {
        MPI_Bcast(err, DATASET_ERR_MAX, MPI_CHAR, first, MPI_COMM_WORLD);
        fprintf(stderr, NAME ": worker %d: %s\n", first, err);
        return CLI_EXIT_ERROR;
    }
    if (e->data.synthetic)
        fprintf(stderr, NAME ": no MNIST here (`make mnist` fetches it): using the built-in "
                             "synthetic digits\n");
    e->train_n = e->data.train_n;
    e->steps = training_steps(e->train_n, e->o->batch);
    return check_parts(e);
}

/* Room for the series of a run, each as long as the longest. */
static void make_run(const experiment *e, run r)
{
    const size_t room = e->o->epochs * e->steps + QUANTITIES;
    double *block = (double *)allocate(ARMS * SERIES * room, sizeof(double));
    size_t a, s;
    for (a = 0; a < ARMS; a++)
        for (s = 0; s < SERIES; s++) r[a][s] = block + (a * SERIES + s) * room;
}

static void run_all(experiment *e)
{
    const size_t steps = e->o->epochs * e->steps;
    size_t s;
    int type;
    cli_progress_start(&e->progress, "training", "steps", TYPES * e->o->seeds * steps,
                       e->o->quiet || e->rank != 0);
    for (type = 0; type < TYPES; type++)
        for (s = 0; s < e->o->seeds; s++) {
            make_run(e, e->runs[type][s]);
            (type == FLOAT ? train_in_float : train_in_double)(e, e->runs[type][s], e->o->seed + s);
        }
    cli_progress_end(&e->progress);
}

static int run_program(experiment *e, cli_options *o, int argc, char **argv)
{
    int status;
    /* what is to be said is the same everywhere, and said by rank 0 */
    if (e->rank != 0 && !(freopen("/dev/null", "w", stdout) && freopen("/dev/null", "w", stderr)))
        return CLI_EXIT_ERROR;
    status = parse(o, argc, argv);
    if (status != CLI_RUN) return status;
    if (e->size < 2) {
        fprintf(stderr, NAME ": one worker alone has nothing to show; call me by mpirun -np 3\n");
        return CLI_EXIT_USAGE;
    }
    e->o = o;
    status = load(e);
    if (status != CLI_RUN) return status;
    if (e->rank == 0) status = cli_results(e->png, e->csv, PATH_MOST, NAME, o, o->quick);
    MPI_Bcast(&status, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (status != CLI_RUN) return status;
    run_all(e);
    return e->rank == 0 ? publish(e) : 0;
}

int main(int argc, char **argv)
{
    static experiment e;
    cli_options o;
    int status, i;
    if (MPI_Init(&argc, &argv) != MPI_SUCCESS) return 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &e.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &e.size);
    status = run_program(&e, &o, argc, argv);
    for (i = 0; i < TYPES * SEEDS_MAX; i++) free(e.runs[i / SEEDS_MAX][i % SEEDS_MAX][0][0]);
    dataset_free(&e.data);
    MPI_Finalize();
    return status;
}

#endif /* NRM_DOUBLE */
