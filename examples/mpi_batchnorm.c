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

   The claims, and when they hold, were written down before the run; a first run, with the seeds 0
   to 2, came before them:

       step     after the first step, loss, statistics and gradients of synchronised are those of
                undivided to 1e-13 in double and 1e-5 in float, relative to the largest of each
                array; those of separate differ by more than 0.01
       copies   at the end of every epoch the workers' copies of a network have the same bits
       drift    what parts synchronised from undivided later is rounding. By itself it grows
                slowly; but sooner or later the input of a ReLU is as close to 0 as rounding is
                large, and is positive here and negative there. So in float the parameters are
                within 1e-5 of undivided's as long as all ReLUs agree; and in double they are within
                1e-9 to the end, and every test accuracy is the same
       separate is less accurate than synchronised in every seed. The reason: the normalized values
                of two examples are 1 and -1 whatever these are, so worker 0 learns from signs, and
                no network sees in inference what it has seen in training

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
enum { INPUTS = 784, WIDTH1 = 64, WIDTH2 = 128, CLASSES = 10, EVAL_BATCH = 500 };
enum { PATH_MOST = 1024 };
enum { EPOCHS_MAX = 100, SEEDS_MAX = 20, BLOCKS = 20 }; /* losses are means over 1/20 of an epoch */

enum { LOSS = 0, MEAN1, RSTD1, MEAN2, RSTD2, GRADS1, GRADS2, GRADS3, QUANTITIES };

typedef struct epoch_record {
    double train_loss; /* mean over the epoch's batches (epoch 0: nothing) */
    double test_loss, accuracy;
} epoch_record;

typedef struct run {                /* one seed in one type; what is evaluated, on rank 0 only */
    double first[ARMS][QUANTITIES]; /* after one step: how far from undivided */
    epoch_record epoch[ARMS][EPOCHS_MAX + 1];
    double block[ARMS][EPOCHS_MAX * BLOCKS]; /* mean losses */
    double *away[ARMS]; /* [epochs*steps] how far the parameters are from undivided's   */
    double *differ;     /* [epochs*steps] ReLUs open in only one of the first two networks */
    double anew[ARMS];  /* accuracy with statistics of all training data                */
} run;

typedef struct experiment {
    const cli_options *o;
    cli_progress progress;
    char png[PATH_MOST], csv[PATH_MOST]; /* of rank 0 */
    dataset data;
    size_t train_n, steps; /* of one epoch */
    size_t taken;          /* steps so far, for the progress line */
    int rank, size;
    run *runs[TYPES]; /* [seeds] */
} experiment;

void train_in_float(experiment *e, run *r, uint64_t seed);
void train_in_double(experiment *e, run *r, uint64_t seed);

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
    const experiment *e = t->e;
    nrm_mlp_layer layer[3];
    nrm_mlp_spec spec = nrm_mlp_defaults();
    memset(layer, 0, sizeof layer);
    layer[0].width = WIDTH1;
    layer[1].width = WIDTH2;
    layer[0].activation = layer[1].activation = NRM_RELU;
    layer[0].norm = layer[1].norm = NRM_BATCH_NORM;
    layer[2].width = CLASSES;
    layer[2].bias = 1;
    spec.inputs = INPUTS;
    spec.layers = 3;
    spec.layer = layer;
    spec.max_batch = e->o->batch > EVAL_BATCH ? e->o->batch : EVAL_BATCH;
    spec.seed = seed;
    spec.init = NRM_INIT_FAN_IN;
    spec.lr = (nrm_real)e->o->lr;
    if (arm != UNDIVIDED) spec.sync.add = add;
    if (arm == SYNCHRONISED) spec.sync.merge = merge;
    spec.sync.context = &t->everyone;
    t->net[arm] = training_net(&spec, &t->block[arm]);
    if (!t->net[arm]) give_up("no network");
}

static void prepare(trainer *t, experiment *e, uint64_t seed)
{
    const dataset *d = &e->data;
    int arm;
    memset(t, 0, sizeof *t);
    t->e = e;
    if (training_set_make(&t->train, d->train_images, d->train_labels, d->train_n, INPUTS,
                          DATASET_RAW01) ||
        training_set_make(&t->test, d->test_images, d->test_labels, d->test_n, INPUTS,
                          DATASET_RAW01) ||
        training_order_start(&t->order, d->train_n, e->o->batch, INPUTS, seed))
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

/* The largest |a - b|, relative to the largest |b|; once for each type of number. */
static double reals_apart(const nrm_real *a, const nrm_real *b, size_t n)
{
    double apart = 0, size = 0;
    size_t i;
    for (i = 0; i < n; i++) {
        apart = worse(apart, fabs((double)a[i] - (double)b[i]));
        size = worse(size, fabs((double)b[i]));
    }
    return apart / size;
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
static void compare_step(const trainer *t, int arm, double loss, double whole_loss,
                         double apart[QUANTITIES])
{
    const nrm_mlp *net = t->net[arm], *whole = t->net[UNDIVIDED];
    const nrm_mlp_state *s = net->state, *of_whole = whole->state;
    size_t l;
    apart[LOSS] = fabs(loss - whole_loss) / whole_loss;
    apart[MEAN1] = accs_apart(s[0].mean, of_whole[0].mean, WIDTH1);
    apart[RSTD1] = accs_apart(s[0].rstd, of_whole[0].rstd, WIDTH1);
    apart[MEAN2] = accs_apart(s[1].mean, of_whole[1].mean, WIDTH2);
    apart[RSTD2] = accs_apart(s[1].rstd, of_whole[1].rstd, WIDTH2);
    for (l = 0; l < 3; l++) {
        const nrm_real *end = l < 2 ? whole->state[l + 1].dW : whole->grads + whole->n_params;
        apart[GRADS1 + l] = reals_apart(s[l].dW, of_whole[l].dW, (size_t)(end - of_whole[l].dW));
    }
}

/* How many ReLUs of my part of the batch are open in one network and closed in the other. */
static double relus_that_differ(const trainer *t)
{
    const size_t from = part_begins(t->e, t->order.count, t->e->rank);
    const size_t to = part_begins(t->e, t->order.count, t->e->rank + 1);
    size_t l, i, found = 0;
    for (l = 0; l < 2; l++) {
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
    for (l = 0; l < 2 && arm != SEPARATE; l++) {
        const nrm_mlp_state *s = &net->state[l];
        hash = files_hash(hash, s->running.mean, s->shape.width * sizeof *s->running.mean);
        hash = files_hash(hash, s->running.var, s->shape.width * sizeof *s->running.var);
    }
    MPI_Allgather(&hash, 1, MPI_UINT64_T, all, 1, MPI_UINT64_T, MPI_COMM_WORLD);
    for (w = 1; w < t->e->size; w++)
        if (all[w] != all[0]) give_up("the workers' copies of a network differ");
    free(all);
}

static void evaluate(const trainer *t, run *r, size_t epoch)
{
    int arm;
    for (arm = 0; arm < ARMS; arm++) check_copies(t, arm);
    for (arm = 0; arm < ARMS && t->e->rank == 0; arm++) {
        nrm_acc loss = 0, accuracy = 0;
        if (nrm_mlp_eval(t->net[arm], &loss, &accuracy, t->test.x, t->test.labels, t->test.n))
            give_up("the evaluation failed");
        r->epoch[arm][epoch].test_loss = (double)loss;
        r->epoch[arm][epoch].accuracy = (double)accuracy;
    }
}

/* What step k of an epoch (0, 1, ...) leaves of one network. */
static void record(const trainer *t, run *r, int arm, size_t epoch, size_t k, const double *loss)
{
    const experiment *e = t->e;
    const size_t b = k * BLOCKS / e->steps; /* block b: steps (b*steps/20 .. (b+1)*steps/20), up */
    const size_t first = (b * e->steps + BLOCKS - 1) / BLOCKS;
    const size_t next = ((b + 1) * e->steps + BLOCKS - 1) / BLOCKS;
    r->epoch[arm][epoch].train_loss += loss[arm] / (double)e->steps;
    r->block[arm][(epoch - 1) * BLOCKS + b] += loss[arm] / (double)(next - first);
    r->away[arm][(epoch - 1) * e->steps + k] =
        reals_apart(t->net[arm]->params, t->net[UNDIVIDED]->params, t->net[arm]->n_params);
    if (epoch == 1 && k == 0) compare_step(t, arm, loss[arm], loss[UNDIVIDED], r->first[arm]);
}

static void train_epoch(trainer *t, run *r, size_t epoch)
{
    double loss[ARMS], differ, *sum = r->differ + (epoch - 1) * t->e->steps;
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
static void evaluate_anew(trainer *t, run *r)
{
    const size_t n = t->train.n, share = n / (size_t)t->e->size, from = share * (size_t)t->e->rank;
    const size_t mine = t->e->rank == t->e->size - 1 ? n - from : share;
    int arm;
    if (training_reestimate(t->net[SYNCHRONISED], t->train.x + from * INPUTS, mine))
        give_up("no statistics");
    for (arm = 0; arm < ARMS && t->e->rank == 0; arm++) {
        nrm_acc accuracy = 0;
        if ((arm != SYNCHRONISED && training_reestimate(t->net[arm], t->train.x, n)) ||
            nrm_mlp_eval(t->net[arm], NULL, &accuracy, t->test.x, t->test.labels, t->test.n))
            give_up("the evaluation failed");
        r->anew[arm] = (double)accuracy;
    }
}

void train_in(experiment *e, run *r, uint64_t seed)
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

static const char *const arm_name[ARMS] = {"undivided", "synchronised", "separate"};
static const char *const type_name[TYPES] = {"float", "double"};
static const char *const quantity_name[QUANTITIES] = {"loss",
                                                      "means of layer 1",
                                                      "1/sd of layer 1",
                                                      "means of layer 2",
                                                      "1/sd of layer 2",
                                                      "gradients of layer 1",
                                                      "gradients of layer 2",
                                                      "gradients of output layer"};

static void put(char *text, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, size, format, args);
    va_end(args);
}

/* ---- over the seeds -------------------------------------------------------------------------- */

typedef double picker(const run *r, int arm, size_t at);

static double pick_block(const run *r, int arm, size_t at)
{
    return r->block[arm][at];
}

static double pick_loss(const run *r, int arm, size_t at)
{
    return r->epoch[arm][at].train_loss;
}

static double pick_accuracy(const run *r, int arm, size_t at)
{
    return 100 * r->epoch[arm][at].accuracy;
}

static double pick_anew(const run *r, int arm, size_t at)
{
    (void)at;
    return 100 * r->anew[arm];
}

static double pick_away(const run *r, int arm, size_t at)
{
    return r->away[arm][at];
}

/* Counted from 1; one more than there are steps if there is none. */
static size_t first_that_differs(const experiment *e, const run *r)
{
    const size_t all = e->o->epochs * e->steps;
    size_t k;
    for (k = 0; k < all; k++)
        if (r->differ[k] > 0) return k + 1;
    return all + 1;
}

static double pick_first(const run *r, int arm, size_t at)
{
    return r->first[arm][at];
}

static stats_summary over_seeds(const experiment *e, picker *pick, int type, int arm, size_t at)
{
    double value[SEEDS_MAX];
    stats_summary summary;
    size_t s;
    for (s = 0; s < e->o->seeds; s++) value[s] = pick(&e->runs[type][s], arm, at);
    summary = stats_describe(value, e->o->seeds);
    if (e->o->seeds == 1) summary.sd = 0;
    return summary;
}

static double most(const experiment *e, picker *pick, int type, int arm, size_t at)
{
    double found = 0;
    size_t s;
    for (s = 0; s < e->o->seeds; s++) found = worse(found, pick(&e->runs[type][s], arm, at));
    return found;
}

/* Over all quantities of the first step, and all seeds. */
static double most_first(const experiment *e, int type, int arm)
{
    double found = 0;
    size_t q;
    for (q = 0; q < QUANTITIES; q++) found = worse(found, most(e, pick_first, type, arm, q));
    return found;
}

/* ---- verdicts -------------------------------------------------------------------------------- */

enum { CLAIMS = 4, TEXT = 160 };

typedef struct verdict {
    const char *claim;
    char criterion[TEXT], found[TEXT];
    int holds;
} verdict;

static void judge_step(const experiment *e, verdict *v)
{
    const double in_float = most_first(e, FLOAT, SYNCHRONISED);
    const double in_double = most_first(e, DOUBLE, SYNCHRONISED);
    double least = 1e300;
    size_t q, s;
    for (s = 0; s < e->o->seeds; s++)
        for (q = MEAN1; q < QUANTITIES; q++)
            least = fmin(least, e->runs[FLOAT][s].first[SEPARATE][q]);
    v->claim = "One step is that of the undivided batch";
    put(v->criterion, TEXT, "apart by at most 1e-13 in double, 1e-5 in float; separate > 0.01");
    put(v->found, TEXT, "%.1e in double, %.1e in float; separate >= %.2f", in_double, in_float,
        least);
    v->holds = in_double <= 1e-13 && in_float <= 1e-5 && least > 0.01;
}

static void judge_copies(const experiment *e, verdict *v)
{
    v->claim = "All copies of a network stay the same";
    put(v->criterion, TEXT, "the same bits on all workers at the end of every epoch");
    put(v->found, TEXT, "so they are: %d workers, %zu seed%s, 2 types, %zu epoch%s", e->size,
        e->o->seeds, e->o->seeds == 1 ? "" : "s", e->o->epochs, e->o->epochs == 1 ? "" : "s");
    v->holds = 1; /* check_copies would have ended the program */
}

/* "6, 768, 1632": where the first ReLU differs in each seed, "-" where none ever does. */
static void list_first(const experiment *e, char *text, size_t size)
{
    size_t s, used = 0;
    text[0] = '\0';
    for (s = 0; s < e->o->seeds && used + 16 < size; s++) {
        const size_t differs = first_that_differs(e, &e->runs[FLOAT][s]);
        const char *comma = s > 0 ? ", " : "";
        if (differs > e->o->epochs * e->steps)
            put(text + used, size - used, "%s-", comma);
        else
            put(text + used, size - used, "%s%zu", comma, differs);
        used += strlen(text + used);
    }
}

static void judge_drift(const experiment *e, verdict *v)
{
    const size_t last = e->o->epochs * e->steps - 1;
    const double in_double = most(e, pick_away, DOUBLE, SYNCHRONISED, last);
    char first[64];
    double agreed = 0;
    size_t s, k, others = 0;
    for (s = 0; s < e->o->seeds; s++) {
        const run *r = &e->runs[FLOAT][s], *in_double_run = &e->runs[DOUBLE][s];
        const size_t differs = first_that_differs(e, r);
        for (k = 0; k + 1 < differs; k++) agreed = worse(agreed, r->away[SYNCHRONISED][k]);
        for (k = 0; k <= e->o->epochs; k++)
            others += pick_accuracy(in_double_run, SYNCHRONISED, k) !=
                      pick_accuracy(in_double_run, UNDIVIDED, k);
    }
    list_first(e, first, sizeof first);
    v->claim = "What parts them later is rounding";
    put(v->criterion, TEXT,
        "float: 1e-5 while all ReLUs agree; double: 1e-9 to the end, same accuracies");
    put(v->found, TEXT, "%.1e, first ReLUs at %s; %.1e, %zu differ", agreed, first, in_double,
        others);
    v->holds = agreed <= 1e-5 && in_double <= 1e-9 && others == 0;
}

static void judge_separate(const experiment *e, verdict *v)
{
    const size_t last = e->o->epochs;
    size_t s, below = 0;
    for (s = 0; s < e->o->seeds; s++)
        below += pick_accuracy(&e->runs[FLOAT][s], SEPARATE, last) <
                 pick_accuracy(&e->runs[FLOAT][s], SYNCHRONISED, last);
    v->claim = "Separate is less accurate";
    put(v->criterion, TEXT, "below synchronised in every seed, after the last epoch");
    put(v->found, TEXT, "below in %zu of %zu: %.2f %% against %.2f %%", below, e->o->seeds,
        over_seeds(e, pick_accuracy, FLOAT, SEPARATE, last).mean,
        over_seeds(e, pick_accuracy, FLOAT, SYNCHRONISED, last).mean);
    v->holds = below == e->o->seeds;
}

static void judge_all(const experiment *e, verdict v[CLAIMS])
{
    judge_step(e, &v[0]);
    judge_copies(e, &v[1]);
    judge_drift(e, &v[2]);
    judge_separate(e, &v[3]);
}

static const char *result(const verdict *v)
{
    return v->holds ? "holds" : "does not hold";
}

static void print_results(const experiment *e, const verdict v[CLAIMS])
{
    const cli_options *o = e->o;
    const size_t last = o->epochs, rest = e->train_n % o->batch;
    size_t q;
    int a, w;
    printf("%s, %zu images, %zu seed%s from %llu, %zu epoch%s, lr %g\n", e->data.name, e->train_n,
           o->seeds, o->seeds == 1 ? "" : "s", (unsigned long long)o->seed, o->epochs,
           o->epochs == 1 ? "" : "s", o->lr);
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
               most(e, pick_first, FLOAT, SYNCHRONISED, q),
               most(e, pick_first, DOUBLE, SYNCHRONISED, q),
               most(e, pick_first, FLOAT, SEPARATE, q));
    printf("\n%-24s %17s %17s %17s\n", "in float", "training loss", "test accuracy %",
           "statistics anew");
    for (a = 0; a < ARMS; a++) {
        const stats_summary loss = over_seeds(e, pick_loss, FLOAT, a, last);
        const stats_summary accuracy = over_seeds(e, pick_accuracy, FLOAT, a, last);
        const stats_summary anew = over_seeds(e, pick_anew, FLOAT, a, 0);
        printf("%-24s %8.4f ± %6.4f %9.2f ± %5.2f %9.2f ± %5.2f\n", arm_name[a], loss.mean, loss.sd,
               accuracy.mean, accuracy.sd, anew.mean, anew.sd);
    }
    printf("\n");
    for (a = 0; a < CLAIMS; a++)
        printf("%s: %s\n    criterion: %s\n    found: %s\n", v[a].claim, result(&v[a]),
               v[a].criterion, v[a].found);
}

/* ---- tables ---------------------------------------------------------------------------------- */

static void begin_table(const experiment *e, csv_table *t)
{
    csv_origin origin;
    memset(&origin, 0, sizeof origin);
    origin.program = NAME;
    origin.version = NRM_VERSION;
    origin.first_seed = e->o->seed;
    origin.seeds = e->o->seeds;
    origin.data = e->data.name;
    origin.data_hash = e->data.hash;
    csv_begin(t);
    csv_note_origin(t, &origin);
    csv_note(t, "network", "784-64-128-10, ReLU, linear-batch norm-ReLU");
    csv_note_int(t, "workers", e->size);
    csv_note_int(t, "batch", (long long)e->o->batch);
    csv_note_int(t, "epochs", (long long)e->o->epochs);
    csv_note_int(t, "training_images", (long long)e->train_n);
    csv_note_real(t, "lr", e->o->lr);
}

static int end_table(csv_table *t, const char *path)
{
    char err[CSV_ERR_MAX];
    const int failed = csv_save(t, path, err);
    if (failed) fprintf(stderr, NAME ": %s\n", err);
    csv_end(t);
    return failed;
}

static int write_epochs(const experiment *e, const verdict v[CLAIMS], const char *path)
{
    const char *columns[8] = {"type",       "network",   "seed",     "epoch",
                              "train_loss", "test_loss", "accuracy", "accuracy_anew"};
    csv_table t;
    size_t s, epoch;
    int type, a, i;
    begin_table(e, &t);
    for (i = 0; i < CLAIMS; i++) {
        char line[3 * TEXT];
        put(line, sizeof line, "%s: %s [%s] %s", v[i].claim, result(&v[i]), v[i].criterion,
            v[i].found);
        csv_note(&t, "verdict", line);
    }
    csv_columns(&t, columns, 8);
    for (type = 0; type < TYPES; type++)
        for (a = 0; a < ARMS; a++)
            for (s = 0; s < e->o->seeds; s++)
                for (epoch = 0; epoch <= e->o->epochs; epoch++) {
                    const run *r = &e->runs[type][s];
                    const epoch_record *at = &r->epoch[a][epoch];
                    csv_text(&t, type_name[type]);
                    csv_text(&t, arm_name[a]);
                    csv_uint(&t, e->o->seed + s);
                    csv_int(&t, (long long)epoch);
                    csv_real(&t, epoch ? at->train_loss : (double)NAN);
                    csv_real(&t, at->test_loss);
                    csv_real(&t, at->accuracy);
                    csv_real(&t, epoch == e->o->epochs ? r->anew[a] : (double)NAN);
                    csv_end_row(&t);
                }
    return end_table(&t, path);
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
    begin_table(e, &t);
    csv_columns(&t, columns, 1 + 2 * ARMS);
    for (i = 0; i < e->o->epochs * BLOCKS; i++) {
        csv_real(&t, (double)(i + 1) / BLOCKS);
        for (a = 0; a < ARMS; a++) {
            const stats_summary s = over_seeds(e, pick_block, FLOAT, a, i);
            csv_float(&t, (float)s.mean);
            csv_float(&t, (float)s.sd);
        }
        csv_end_row(&t);
    }
    return end_table(&t, path);
}

/* Panel d. */
static int write_first(const experiment *e, const char *path)
{
    const char *columns[5] = {"quantity", "synchronised_float", "synchronised_double",
                              "separate_float", "separate_double"};
    csv_table t;
    size_t q;
    int type, a;
    begin_table(e, &t);
    csv_columns(&t, columns, 5);
    for (q = 0; q < QUANTITIES; q++) {
        csv_text(&t, quantity_name[q]);
        for (a = SYNCHRONISED; a < ARMS; a++)
            for (type = 0; type < TYPES; type++) csv_real(&t, most(e, pick_first, type, a, q));
        csv_end_row(&t);
    }
    return end_table(&t, path);
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
    begin_table(e, &t);
    csv_columns(&t, columns, 8);
    for (s = 0; s < e->o->seeds; s++)
        for (i = 0; i < n; i++) {
            const size_t k = (size_t)shown[i] - 1;
            csv_uint(&t, e->o->seed + s);
            csv_real(&t, shown[i]);
            for (type = 0; type < TYPES; type++) {
                for (a = SYNCHRONISED; a < ARMS; a++) csv_real(&t, e->runs[type][s].away[a][k]);
                csv_real(&t, e->runs[type][s].differ[k]);
            }
            csv_end_row(&t);
        }
    return end_table(&t, path);
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

static void add_curves(const experiment *e, plot_panel *p, picker *pick, size_t n, const double *x)
{
    static double mean[EPOCHS_MAX * BLOCKS], sd[EPOCHS_MAX * BLOCKS];
    size_t i;
    int a;
    for (a = 0; a < ARMS; a++) {
        for (i = 0; i < n; i++) {
            const stats_summary s = over_seeds(e, pick, FLOAT, a, i);
            mean[i] = s.mean;
            sd[i] = s.sd;
        }
        if (a == SYNCHRONISED) /* its band would hide the one below */
            plot_line(p, arm_name[a], x, mean, n, arm_style(a));
        else
            plot_mean_band(p, arm_name[a], x, mean, sd, n, arm_style(a));
    }
}

static void add_loss(const experiment *e, plot_figure *f)
{
    static double x[EPOCHS_MAX * BLOCKS];
    const size_t n = e->o->epochs * BLOCKS;
    plot_panel *p = plot_add(f, 0, 0, 1, 1);
    size_t i;
    for (i = 0; i < n; i++) x[i] = (double)(i + 1) / BLOCKS;
    plot_heading(p, "training loss, mean ± 1 sd over seeds");
    plot_axis_x(p, "epoch", PLOT_LINEAR);
    plot_axis_y(p, "cross-entropy (nats)", PLOT_LINEAR);
    plot_range_x(p, 0, (double)e->o->epochs);
    add_curves(e, p, pick_block, n, x);
}

static void add_accuracy(const experiment *e, plot_figure *f)
{
    double x[EPOCHS_MAX + 1];
    const size_t n = e->o->epochs + 1;
    plot_panel *p = plot_add(f, 0, 1, 1, 1);
    size_t i;
    for (i = 0; i < n; i++) x[i] = (double)i; /* epoch 0 is below the axis */
    plot_heading(p, "test accuracy, by running statistics");
    plot_axis_x(p, "epoch", PLOT_LINEAR);
    plot_axis_y(p, "test accuracy (%)", PLOT_LINEAR);
    plot_range_x(p, 0, (double)e->o->epochs);
    plot_range_y(p, 50, 100);
    add_curves(e, p, pick_accuracy, n, x);
}

/* A line for each seed, and a ring where the first ReLU differs. */
static void add_drift(const experiment *e, plot_figure *f)
{
    double shown[SHOWN_MAX], away[ARMS + 1][SHOWN_MAX], at, height;
    const size_t n = shown_steps(e, shown);
    plot_panel *p = plot_add(f, 1, 0, 1, 1);
    plot_style in_double = arm_style(SYNCHRONISED);
    size_t s, i;
    in_double.dash = PLOT_DOTTED;
    plot_heading(p, "parameters: how far from undivided");
    plot_axis_x(p, "step", PLOT_LOG10);
    plot_axis_y(p, "largest difference / largest", PLOT_LOG10);
    for (s = 0; s < e->o->seeds; s++) {
        const run *r = &e->runs[FLOAT][s];
        const size_t differs = first_that_differs(e, r);
        for (i = 0; i < n; i++) {
            const size_t k = (size_t)shown[i] - 1;
            away[SYNCHRONISED][i] = r->away[SYNCHRONISED][k];
            away[SEPARATE][i] = r->away[SEPARATE][k];
            away[ARMS][i] = e->runs[DOUBLE][s].away[SYNCHRONISED][k];
        }
        plot_line(p, arm_name[SEPARATE], shown, away[SEPARATE], n, arm_style(SEPARATE));
        plot_line(p, arm_name[SYNCHRONISED], shown, away[SYNCHRONISED], n, arm_style(SYNCHRONISED));
        plot_line(p, "synchronised, in double", shown, away[ARMS], n, in_double);
        if (differs > e->o->epochs * e->steps) continue;
        at = (double)differs;
        height = r->away[SYNCHRONISED][differs - 1];
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
    static char text[QUANTITIES * COLUMNS][32];
    const char *cells[(QUANTITIES + 1) * COLUMNS] = {"", "synch., float", "synch., double",
                                                     "separate"};
    plot_panel *p = plot_add(f, 1, 1, 1, 1);
    size_t i;
    for (i = 0; i < QUANTITIES; i++) {
        cells[(i + 1) * COLUMNS] = quantity_name[i];
        power(text[i * COLUMNS + 1], 32, most(e, pick_first, FLOAT, SYNCHRONISED, i));
        power(text[i * COLUMNS + 2], 32, most(e, pick_first, DOUBLE, SYNCHRONISED, i));
        power(text[i * COLUMNS + 3], 32, most(e, pick_first, FLOAT, SEPARATE, i));
    }
    for (i = 0; i < QUANTITIES * COLUMNS; i++)
        if (i % COLUMNS) cells[COLUMNS + i] = text[i];
    plot_heading(p, "after one step: largest difference / largest");
    plot_table(p, cells, QUANTITIES + 1, COLUMNS, "lrrr");
}

static void add_verdicts(plot_figure *f, const verdict v[CLAIMS])
{
    const char *cells[(CLAIMS + 1) * 4] = {"claim", "criterion, written before the run", "found",
                                           "verdict"};
    plot_panel *p = plot_add(f, 2, 0, 1, 2);
    int i;
    for (i = 0; i < CLAIMS; i++) {
        cells[4 * i + 4] = v[i].claim;
        cells[4 * i + 5] = v[i].criterion;
        cells[4 * i + 6] = v[i].found;
        cells[4 * i + 7] = result(&v[i]);
    }
    plot_heading(p, "verdicts");
    plot_table(p, cells, CLAIMS + 1, 4, "llll");
}

static int draw(const experiment *e, const verdict v[CLAIMS], const char *path)
{
    const double heights[3] = {1, 1, 0.55};
    const cli_options *o = e->o;
    plot_figure *f = plot_new(2200, 2000);
    char text[400];
    int failed;
    plot_title(f, "One batch norm over several workers");
    put(text, sizeof text,
        "%s%s%s, %zu training images. 784-64-128-10, ReLU, SGD with learning rate %g, batches of "
        "%zu over %d workers. %zu seed%s.",
        cli_quick_note(o->quick), e->data.synthetic ? "Not MNIST: " : "", e->data.name, e->train_n,
        o->lr, o->batch, e->size, o->seeds, o->seeds == 1 ? "" : "s");
    plot_subtitle(f, text);
    put(text, sizeof text,
        "mpirun -np %d " NAME " --seed %llu --seeds %zu --epochs %zu --batch %zu --lr %g%s",
        e->size, (unsigned long long)o->seed, o->seeds, o->epochs, o->batch, o->lr,
        o->quick ? " --quick" : "");
    plot_footer(f, text);
    plot_heights(f, heights, 3);
    plot_letters(f);
    plot_shared_legend(f);
    add_loss(e, f);
    add_accuracy(e, f);
    add_drift(e, f);
    add_first(e, f);
    add_verdicts(f, v);
    failed = plot_save(f, path);
    if (failed) fprintf(stderr, NAME ": %s\n", plot_error(f));
    plot_free(f);
    return failed;
}

static int publish(const experiment *e)
{
    char path[3][PATH_MOST + 16];
    const char *const ending[3] = {"_loss.csv", "_drift.csv", "_first.csv"};
    verdict v[CLAIMS];
    int i;
    for (i = 0; i < 3; i++) (void)cli_path_beside(path[i], sizeof path[i], e->png, ending[i]);
    judge_all(e, v);
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

static void run_all(experiment *e)
{
    const size_t steps = e->o->epochs * e->steps;
    size_t s;
    int type, a;
    cli_progress_start(&e->progress, "training", "steps", TYPES * e->o->seeds * steps,
                       e->o->quiet || e->rank != 0);
    for (type = 0; type < TYPES; type++) {
        e->runs[type] = (run *)allocate(e->o->seeds, sizeof(run));
        for (s = 0; s < e->o->seeds; s++) {
            run *r = &e->runs[type][s];
            for (a = 0; a < ARMS; a++) r->away[a] = (double *)allocate(steps, sizeof(double));
            r->differ = (double *)allocate(steps, sizeof(double));
            (type == FLOAT ? train_in_float : train_in_double)(e, r, e->o->seed + s);
        }
    }
    cli_progress_end(&e->progress);
}

static void free_runs(experiment *e)
{
    size_t s;
    int type, a;
    for (type = 0; type < TYPES; type++) {
        for (s = 0; e->runs[type] && s < e->o->seeds; s++) {
            for (a = 0; a < ARMS; a++) free(e->runs[type][s].away[a]);
            free(e->runs[type][s].differ);
        }
        free(e->runs[type]);
    }
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
    int status;
    if (MPI_Init(&argc, &argv) != MPI_SUCCESS) return 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &e.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &e.size);
    status = run_program(&e, &o, argc, argv);
    free_runs(&e);
    dataset_free(&e.data);
    MPI_Finalize();
    return status;
}

#endif /* NRM_DOUBLE */
