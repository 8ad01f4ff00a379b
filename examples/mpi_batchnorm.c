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
   whatever these are, so worker 0 learns from signs. Evaluation is with running statistics: for
   separate those of worker 0, as data-parallel frameworks do it.

   Rank 0 is an experiment of lab.h that makes its runs one after the other: it has the options and
   the data, and tells the others what to do. The file is compiled twice, in float and with
   NRM_DOUBLE; the second time without that part. The library knows nothing of MPI. What you would
   take to a program of your own are the two functions that come first. */
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

/* ---- one run --------------------------------------------------------------------------------- */

#include "lab/page.h"
#include "lab/training.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define NAME "mpi_batchnorm"

enum { UNDIVIDED, SYNCHRONISED, SEPARATE, NETS };
enum { INPUTS = 784, HIDDEN = 2, BATCH = 12, EVAL_BATCH = 500 };
enum { BLOCKS = 20 }; /* losses are means over 1/20 of an epoch */

/* Of the first step, as x of the series "first". */
enum { LOSS, MEAN1, RSTD1, MEAN2, RSTD2, GRADS1, GRADS2, GRADS3, QUANTITIES };

static const char *const net_name[NETS] = {"undivided", "synchronised", "separate"};

typedef struct work { /* what each worker has to do */
    dataset data;
    int rank, size;
    uint64_t seed;
    size_t epochs;
    lab_run *run; /* on rank 0, which records; else NULL */
} work;

void train_in_float(const work *w);
void train_in_double(const work *w);

#ifdef NRM_DOUBLE
#define train_in train_in_double
#else
#define train_in train_in_float
#endif

typedef struct trainer {
    const work *w;
    training_set train, test;
    training_order order; /* the whole batch, and of it this worker's part: */
    size_t from, count;
    team everyone;
    nrm_mlp *net[NETS];
    void *block[NETS];
    size_t steps, step;   /* of an epoch; made so far                              */
    double sum[NETS];     /* of the losses of this block                           */
    size_t summed, shown; /* steps in them; the next step whose distances are kept */
    double agreed;        /* the largest distance while all ReLUs agree            */
    int parted;           /* 1: they do not any more                               */
} trainer;

/* An error that the other workers do not know of: they would wait for this one for ever. */
static void give_up(const char *why)
{
    fprintf(stderr, NAME ": %s\n", why);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

/* Where the part of worker w begins in a batch of n, and how many examples it has: a full batch is
   dealt 1 : 2 : 3 : ..., a short one is the beginning of a full one. */
static size_t part_of(size_t n, int w, int size, size_t *from)
{
    const size_t begin = (size_t)(BATCH * w * (w + 1) / (size * (size + 1)));
    const size_t end = (size_t)(BATCH * (w + 1) * (w + 2) / (size * (size + 1)));
    *from = begin < n ? begin : n;
    return (end < n ? end : n) - *from;
}

static void record(const trainer *t, int net, const char *what, double x, double y)
{
    if (t->w->run) lab_record_as(t->w->run, x, y, "%s/%s", net_name[net], what);
}

static void make_net(trainer *t, int net)
{
    nrm_mlp_layer layer[HIDDEN + 1];
    nrm_mlp_spec spec = training_plain(layer, HIDDEN, 64, NRM_RELU, NRM_BATCH_NORM);
    layer[1].width = 128;
    spec.max_batch = EVAL_BATCH;
    spec.seed = t->w->seed;
    spec.init = NRM_INIT_FAN_IN;
    spec.lr = (nrm_real)0.05;
    if (net != UNDIVIDED) spec.sync.add = add;
    if (net == SYNCHRONISED) spec.sync.merge = merge;
    spec.sync.context = &t->everyone;
    t->net[net] = training_net(&spec, &t->block[net]);
    if (!t->net[net]) give_up("no network");
}

static void prepare(trainer *t, const work *w)
{
    const team everyone = {MPI_COMM_WORLD, w->size, NULL, 0};
    int net;
    memset(t, 0, sizeof *t);
    t->w = w;
    t->everyone = everyone;
    t->steps = training_steps(w->data.train_n, BATCH);
    t->shown = 1;
    if (training_load(&t->train, &t->test, &w->data, 0, 0, DATASET_RAW01) ||
        training_order_start(&t->order, t->train.n, BATCH, INPUTS, w->seed))
        give_up("out of memory");
    for (net = 0; net < NETS; net++) make_net(t, net);
    t->everyone.most = t->net[SYNCHRONISED]->n_params + 1;
    t->everyone.room = (nrm_acc *)calloc((size_t)w->size * t->everyone.most, sizeof(nrm_acc));
    if (!t->everyone.room) give_up("out of memory");
}

static void dispose(trainer *t)
{
    int net;
    for (net = 0; net < NETS; net++) free(t->block[net]);
    free(t->everyone.room);
    training_order_free(&t->order);
    training_set_free(&t->train);
    training_set_free(&t->test);
}

/* One step on the whole batch, or on this worker's part. Returns the loss of the whole batch. */
static double step(trainer *t, int net)
{
    const size_t from = net == UNDIVIDED ? 0 : t->from;
    const size_t count = net == UNDIVIDED ? t->order.count : t->count;
    nrm_acc loss = 0;
    const int rc = nrm_mlp_train_step(t->net[net], &loss, t->order.x + from * INPUTS,
                                      t->order.labels + from, count);
    if (rc != NRM_OK) give_up(nrm_strerror(rc));
    return (double)loss;
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
        apart = stats_larger(apart, fabs((double)(a[i] - b[i])));
        size = stats_larger(size, fabs((double)b[i]));
    }
    return apart / size;
}

/* What the layers have saved in the step just taken, and the gradients of all workers. A layer's
   gradients lie side by side: W, b, gamma, beta. */
static void compare_step(const trainer *t, int net)
{
    const nrm_mlp *whole = t->net[UNDIVIDED];
    int l;
    for (l = 0; l <= HIDDEN; l++) {
        const nrm_mlp_state *s = &t->net[net]->state[l], *of_whole = &whole->state[l];
        const nrm_real *end = l < HIDDEN ? of_whole[1].dW : whole->grads + whole->n_params;
        const size_t width = s->shape.width, n = (size_t)(end - of_whole->dW);
        record(t, net, "first", GRADS1 + l, reals_apart(s->dW, of_whole->dW, n));
        if (l == HIDDEN) break;
        record(t, net, "first", MEAN1 + 2 * l, accs_apart(s->mean, of_whole->mean, width));
        record(t, net, "first", RSTD1 + 2 * l, accs_apart(s->rstd, of_whole->rstd, width));
    }
}

/* Is a ReLU of anybody's part of the batch open in one network and closed in the other? */
static int relus_differ(const trainer *t)
{
    size_t l, i;
    int mine = 0, all = 0;
    for (l = 0; l < HIDDEN; l++) {
        const size_t width = t->net[UNDIVIDED]->state[l].shape.width;
        const nrm_real *whole = t->net[UNDIVIDED]->state[l].act_out + t->from * width;
        const nrm_real *part = t->net[SYNCHRONISED]->state[l].act_out;
        for (i = 0; i < t->count * width; i++) mine |= (whole[i] > 0) != (part[i] > 0);
    }
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return all;
}

/* How many workers have another network than rank 0? Of running statistics too, where they are
   said to be common. */
static int copies_that_differ(const trainer *t, int which)
{
    const nrm_mlp *net = t->net[which];
    uint64_t hash = files_hash(FILES_HASH_INIT, net->params, net->n_params * sizeof *net->params);
    uint64_t first;
    int l, mine, all = 0;
    for (l = 0; l < HIDDEN && which != SEPARATE; l++) {
        const nrm_mlp_state *s = &net->state[l];
        hash = files_hash(hash, s->running.mean, s->shape.width * sizeof *s->running.mean);
        hash = files_hash(hash, s->running.var, s->shape.width * sizeof *s->running.var);
    }
    first = hash;
    MPI_Bcast(&first, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    mine = hash != first;
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

static void evaluate(const trainer *t, double epoch)
{
    nrm_acc accuracy[NETS];
    int net;
    for (net = 0; net < NETS; net++) {
        record(t, net, "other_copies", epoch, copies_that_differ(t, net));
        if (!t->w->run) continue;
        if (nrm_mlp_eval(t->net[net], NULL, &accuracy[net], t->test.x, t->test.labels, t->test.n))
            give_up("the evaluation failed");
        record(t, net, "accuracy", epoch, 100 * (double)accuracy[net]);
        record(t, net, "other_accuracy", epoch, accuracy[net] != accuracy[UNDIVIDED]);
    }
}

/* What a step leaves: `loss` by network; did a ReLU differ? */
static void record_step(trainer *t, const double *loss, int differ)
{
    const nrm_mlp *whole = t->net[UNDIVIDED];
    const size_t block = t->step++ * BLOCKS / t->steps, next = t->step * BLOCKS / t->steps;
    const int shown = t->step == t->shown || t->step == t->w->epochs * t->steps;
    const double at = (double)t->step;
    double away[NETS] = {0};
    int net;
    t->summed++;
    for (net = 0; net < NETS; net++) {
        t->sum[net] += loss[net];
        if (next > block) {
            record(t, net, "loss", (double)next / BLOCKS, t->sum[net] / (double)t->summed);
            t->sum[net] = 0;
        }
        if (net == UNDIVIDED) continue;
        away[net] = reals_apart(t->net[net]->params, whole->params, whole->n_params);
        if (shown) record(t, net, "away", at, away[net]);
        if (t->step > 1) continue;
        record(t, net, "first", LOSS, fabs(loss[net] - loss[UNDIVIDED]) / loss[UNDIVIDED]);
        compare_step(t, net);
    }
    if (next > block) t->summed = 0;
    if (t->step == t->shown) t->shown += t->shown < 10 ? 1 : t->shown / 10;
    if (differ && !t->parted) record(t, SYNCHRONISED, "relu", at, away[SYNCHRONISED]);
    t->parted |= differ;
    if (!t->parted) t->agreed = stats_larger(t->agreed, away[SYNCHRONISED]);
}

void train_in(const work *w)
{
    trainer t;
    double loss[NETS];
    size_t epoch;
    int net, differ;
    prepare(&t, w);
    evaluate(&t, 0);
    for (epoch = 1; epoch <= w->epochs; epoch++) {
        while (training_next(&t.order, &t.train)) {
            t.count = part_of(t.order.count, w->rank, w->size, &t.from);
            for (net = 0; net < NETS; net++) loss[net] = step(&t, net);
            differ = relus_differ(&t);
            if (w->run) record_step(&t, loss, differ);
        }
        evaluate(&t, (double)epoch);
    }
    record(&t, SYNCHRONISED, "agreed", 0, t.agreed);
    dispose(&t);
}

/* ==== only once: the experiment =============================================================== */
#ifndef NRM_DOUBLE

enum { FLOAT, DOUBLE, TYPES }; /* the arms */
enum { EPOCHS = 5, TRAIN_N = 10000, QUICK_N = 1000 };
enum { END, DATA, RUN }; /* what rank 0 says, and three numbers */

static work everybody;

static void share(unsigned char **bytes, size_t n)
{
    if (everybody.rank != 0) *bytes = (unsigned char *)malloc(n);
    if (!*bytes) give_up("out of memory");
    MPI_Bcast(*bytes, (int)n, MPI_BYTE, 0, MPI_COMM_WORLD);
}

/* All workers do what rank 0 tells them. Returns 0 at the end. */
static int obey(uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    uint64_t order[4] = {a, b, c, d};
    dataset *data = &everybody.data;
    MPI_Bcast(order, 4, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    if (order[0] == DATA) {
        data->train_n = order[1];
        data->test_n = order[2];
        share(&data->train_images, data->train_n * DATASET_PIXELS);
        share(&data->train_labels, data->train_n);
        share(&data->test_images, data->test_n * DATASET_PIXELS);
        share(&data->test_labels, data->test_n);
    }
    if (order[0] == RUN) {
        everybody.seed = order[2];
        everybody.epochs = order[3];
        (order[1] == FLOAT ? train_in_float : train_in_double)(&everybody);
    }
    return order[0] != END;
}

/* Separate workers need two examples or none. */
static int prepare_all(const dataset *data, int quick)
{
    const size_t train_n = quick ? QUICK_N : TRAIN_N, rest = train_n % BATCH;
    const int size = everybody.size;
    size_t from;
    int w;
    for (w = 0; w < size; w++)
        if (size == 1 || part_of(BATCH, w, size, &from) == 1 ||
            part_of(rest, w, size, &from) == 1) {
            fprintf(stderr,
                    NAME ": not with %d, call me by mpirun -np 3: batch norm cannot train "
                         "on one example, and one worker alone has nothing to show\n",
                    size);
            return -1;
        }
    everybody.data = *data;
    return !obey(DATA, train_n, quick ? QUICK_N : data->test_n, 0);
}

static int run(lab_run *r)
{
    everybody.run = r;
    return !obey(RUN, r->arm, r->seed, r->quick ? 1 : EPOCHS);
}

/* ---- claims ---------------------------------------------------------------------------------- */

/* The least that separate is apart after one step, but for the loss. */
static double least_apart(const lab_report *r)
{
    double least = (double)INFINITY;
    int q;
    for (q = MEAN1; q < QUANTITIES; q++)
        least = stats_smaller(least, lab_least(r, FLOAT, FLOAT, "separate/first", q));
    return least;
}

static void judge_step(lab_report *r, const lab_claim *c)
{
    const double in_float = lab_largest(r, FLOAT, "synchronised/first");
    const double in_double = lab_largest(r, DOUBLE, "synchronised/first"), apart = least_apart(r);
    lab_verdict(r, c, stats_holds(in_double <= 1e-13 && in_float <= 1e-5 && apart > 0.01), "",
                "%.1e in double, %.1e in float; separate >= %.2f", in_double, in_float, apart);
}

static void judge_separate(lab_report *r, const lab_claim *c)
{
    const lab_numbers separate = lab_all(r, FLOAT, "separate/accuracy", LAB_LAST);
    const lab_numbers merged = lab_all(r, FLOAT, "synchronised/accuracy", LAB_LAST);
    size_t s, below = 0;
    for (s = 0; s < separate.n; s++) below += separate.of[s] < merged.of[s];
    lab_verdict(r, c, stats_holds(below == separate.n), "", "below in %lu of %lu: %s %% against %s",
                (unsigned long)below, (unsigned long)separate.n, lab_pm(r, separate, 2),
                lab_pm(r, merged, 2));
}

/* clang-format off */
#define OURS "ours", "no numbers"
static const lab_claim claims[] = {
    {"step", "One step is that of the undivided batch", OURS,
     "apart by at most 1e-13 in double, 1e-5 in float; separate > 0.01",
     "a first run, with the seeds 0 to 2", LAB_IDENTITY, .judge = judge_step},
    {"copies", "All copies of a network stay the same", OURS,
     "the same bits on all workers at the end of every epoch",
     "a first run, with the seeds 0 to 2", LAB_IDENTITY,
     LAB_PARTS({LAB_EXACT, FLOAT, 0, "undivided/other_copies", .limit = 1},
               {LAB_EXACT, FLOAT, 0, "synchronised/other_copies", .limit = 1},
               {LAB_EXACT, FLOAT, 0, "separate/other_copies", .limit = 1},
               {LAB_EXACT, DOUBLE, 0, "undivided/other_copies", .limit = 1},
               {LAB_EXACT, DOUBLE, 0, "synchronised/other_copies", .limit = 1},
               {LAB_EXACT, DOUBLE, 0, "separate/other_copies", .limit = 1}),
     .say = "workers with another one: #1, #2, #3; in double #4, #5, #6"},
    {"rounding", "What parts them later is rounding", OURS,
     "float: 1e-5 while all ReLUs agree; double: 1e-9 to the end, same accuracies",
     "a first run, with the seeds 0 to 2", LAB_ARITHMETIC,
     LAB_PARTS({LAB_EXACT, FLOAT, 0, "synchronised/agreed", .limit = 1e-5},
               {LAB_EXACT, DOUBLE, 0, "synchronised/away", .limit = 1e-9},
               {LAB_EXACT, DOUBLE, 0, "synchronised/other_accuracy", .limit = 1}),
     .say = "#1[%.1e]; #2[%.1e], the same accuracies but for #3"},
    {"separate", "Separate is less accurate", OURS,
     "below synchronised in every seed, after the last epoch",
     "a first run, with the seeds 0 to 2", LAB_TRAINING, .judge = judge_separate}};

static const char *const quantity[QUANTITIES] = {
    "loss", "means of layer 1", "1/sd of layer 1", "means of layer 2", "1/sd of layer 2",
    "gradients of layer 1", "gradients of layer 2", "gradients of the output"};
/* clang-format on */

/* The rows of the page's table: the largest of all seeds. */
static void print_first(lab_report *r)
{
    int q;
    for (q = 0; q < QUANTITIES; q++)
        printf("| %s | %.0e | %.0e | %.2g |\n", quantity[q],
               lab_summary(r, FLOAT, "synchronised/first", q).max,
               lab_summary(r, DOUBLE, "synchronised/first", q).max,
               lab_summary(r, FLOAT, "separate/first", q).max);
}

/* ---- figure ---------------------------------------------------------------------------------- */

/* A ring where the first ReLU differs. */
static void draw_relus(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    size_t s;
    for (s = 0; s < lab_seeds(r, panel->arm); s++) {
        const lab_series at = lab_get(r, panel->arm, s, "synchronised/relu");
        plot_scatter(p, "first ReLU that differs", at.x, at.y, at.n,
                     plot_marked(PLOT_INK, PLOT_RING));
    }
}

/* clang-format off */
#define THREE(series) /* a wide pale line for what the thin dashed one is to lie on */             \
    {{FLOAT, "undivided/" series, "undivided", {PLOT_SKY, .width = 3}},                            \
     {FLOAT, "synchronised/" series, "synchronised", {PLOT_BLUE, .dash = PLOT_DASHED}, LAB_MEAN},  \
     {FLOAT, "separate/" series, "separate", {PLOT_VERMILLION, .dash = PLOT_DASHDOT}}}
static const lab_panel panels[] = {
    {.axes = {.heading = "training loss", .x = "epoch", .y = "cross-entropy (nats)",
              .x_range = {0, EPOCHS}}, .line = THREE("loss"), .full = 1},
    {.axes = {.col = 1, .heading = "test accuracy, by running statistics", .x = "epoch",
              .y = "test accuracy (%)", .x_range = {0, EPOCHS}, .y_range = {50, 100}},
     .line = THREE("accuracy"), .full = 1},
    {.axes = {.col = 2, .heading = "parameters: how far from undivided", .x = "step",
              .x_scale = PLOT_LOG10, .y = "largest difference / largest", .y_scale = PLOT_LOG10},
     .line = {{FLOAT, "separate/away", "separate", {PLOT_VERMILLION, .dash = PLOT_DASHDOT},
               LAB_EACH_SEED},
              {FLOAT, "synchronised/away", "synchronised", {PLOT_BLUE, .dash = PLOT_DASHED},
               LAB_EACH_SEED},
              {DOUBLE, "synchronised/away", "synchronised, in double",
               {PLOT_BLUE, .dash = PLOT_DOTTED}, LAB_EACH_SEED}},
     .draw = draw_relus}};
static const lab_page pages[] = {
    {"Merged statistics train the network of the undivided batch", NULL, 760, .shared_legend = 1,
     LAB_PANELS(panels)}};
/* clang-format on */

/* ---- the program ----------------------------------------------------------------------------- */

static char settings[120];
static const lab_arm arms[TYPES] = {{"float", "float", 30, 3}, {"double", "double", 45, 3}};

/* clang-format off */
static const lab_program program = {
    NAME, NRM_VERSION, "One batch norm over several workers, with MPI", settings, .revision = 1,
    .uses = LAB_USES_DATA | LAB_IN_TURN, .arm = arms, .arms = TYPES, .prepare = prepare_all,
    .run = run, .claim = claims, .claims = LAB_COUNT(claims), .after = print_first,
    .page = pages, .pages = LAB_COUNT(pages), .command = "mpirun build/" NAME};
/* clang-format on */

int main(int argc, char **argv)
{
    int status = 0;
    if (MPI_Init(&argc, &argv) != MPI_SUCCESS) return 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &everybody.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &everybody.size);
    (void)snprintf(settings, sizeof settings,
                   "784-64-128-10, ReLU, SGD with learning rate 0.05, %d images, batches of %d "
                   "over %d workers",
                   TRAIN_N, BATCH, everybody.size);
    if (everybody.rank == 0) status = lab_main(&program, argc, argv);
    while (obey(END, 0, 0, 0)) continue; /* on rank 0: this is the end */
    if (everybody.rank != 0) dataset_free(&everybody.data);
    MPI_Finalize();
    return status;
}

#endif /* NRM_DOUBLE */
