/* 10_mnist_norms: the MNIST comparison. What do normalization layers change in a small network?

   A 784-64-128-10 network with ReLU is trained as in the notebook behind one of the tutorials that
   this project grew from (batch 512, plain SGD with learning rate 0.01, 20 epochs, pixels in 0..1,
   weights and biases uniform in ±1/sqrt(inputs)), with each norm between linear part and ReLU:

       none, batch norm                 the tutorial's two networks, γ drawn from U(0,1) as there
       layer norm, noisy batch norm     two that it does not have, the same otherwise
       batch, layer, noisy with γ = 1   and batch norm without bias: what these choices matter

   All arms of a seed start from the same weights and see the same mini-batches. The claims, and
   what counts as reproduced, were written down before the run:

       loss      batch norm is below none at the end of every epoch in every seed, and reaches a
                 loss of 0.5 in at most half the steps
       log       the mean loss of batches 41 to 80 of epoch 20 is within 0.03 of the notebook's:
                 0.395 without and 0.162 with batch norm; the first loss is 2.30 ± 0.03
       centred   the outputs of the first batch norm after training (running statistics) have a
                 pooled mean within 0.3 of 0; and the mean input of ReLU, as seen in training, has
                 drifted further without batch norm than with it
       Gaussian  averaged over units, |skewness| < 0.5 and |excess kurtosis| < 1

   Four pages come out: training loss, test accuracy, the distribution in the first hidden layer,
   and a summary with the table and the verdicts; each with a CSV of the same name. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"
#define TRAINING_IMPLEMENTATION
#include "training.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "csv.h"
#include "jobs.h"
#include "plot.h"
#include "stats.h"

#define NAME "10_mnist_norms"

/* ---- the arms -------------------------------------------------------------------------------- */

typedef struct arm {
    const char *name, *id; /* for people, for columns */
    int norm, gamma, bias;
    plot_color color;
    int dash;
} arm;

enum {
    NONE = 0,
    BATCH,
    LAYER,
    NOISY,
    MAIN_ARMS,
    BATCH_ONE = MAIN_ARMS,
    LAYER_ONE,
    NOISY_ONE,
    BATCH_NO_BIAS,
    ARMS
};

static const arm arms[ARMS] = {
    {"no norm", "none", NRM_NO_NORM, NRM_GAMMA_ONE, 1, PLOT_VERMILLION, PLOT_DASHED},
    {"batch norm", "batch", NRM_BATCH_NORM, NRM_GAMMA_UNIFORM, 1, PLOT_BLUE, PLOT_SOLID},
    {"layer norm", "layer", NRM_LAYER_NORM, NRM_GAMMA_UNIFORM, 1, PLOT_GREEN, PLOT_DASHDOT},
    {"noisy batch norm", "noisy", NRM_NOISY_BATCH_NORM, NRM_GAMMA_UNIFORM, 1, PLOT_PURPLE,
     PLOT_DOTTED},
    {"batch norm, γ = 1", "batch_one", NRM_BATCH_NORM, NRM_GAMMA_ONE, 1, PLOT_BLUE, PLOT_SOLID},
    {"layer norm, γ = 1", "layer_one", NRM_LAYER_NORM, NRM_GAMMA_ONE, 1, PLOT_GREEN, PLOT_DASHDOT},
    {"noisy batch norm, γ = 1", "noisy_one", NRM_NOISY_BATCH_NORM, NRM_GAMMA_ONE, 1, PLOT_PURPLE,
     PLOT_DOTTED},
    {"batch norm, no bias", "batch_no_bias", NRM_BATCH_NORM, NRM_GAMMA_UNIFORM, 0, PLOT_SKY,
     PLOT_DASHED}};

/* ---- what one run leaves --------------------------------------------------------------------- */

enum { INPUTS = 784, WIDTH1 = 64, WIDTH2 = 128, CLASSES = 10, PROBED = 1000 };
enum { BINS = 60, UNITS = 3, LEVELS = 3, EPOCHS_MAX = 200, SEEDS_MAX = 50 };
#define HIST_LO (-4.0)
#define HIST_HI 6.5

static const size_t probed_unit[UNITS] = {0, 21, 42};
static const double level[LEVELS] = {0.15, 0.5, 0.85};

enum { BEFORE = 0, INFER, TRAIN, PLACES }; /* output of: linear part, norm (two modes) */
static const char *const place_name[PLACES] = {"linear", "norm_infer", "norm_train"};

typedef struct snapshot {             /* the first hidden layer over the first 1000 test images */
    double mean, sd, skew, kurtosis;  /* of all units pooled                */
    double unit_skew, unit_kurtosis;  /* mean over units of absolute values */
    double percentile[UNITS][LEVELS]; /* of three fixed units               */
    double density[BINS];
} snapshot;

typedef struct epoch_record {
    double train_loss;  /* mean over the epoch's batches (epoch 0: nothing)    */
    double window_loss; /* mean over batches 41..80, what the notebook printed */
    double test_loss, accuracy;
    snapshot shot[PLACES];
} epoch_record;

typedef struct experiment {
    const cli_options *o;
    dataset data;
    training_set train, test;
    size_t steps;         /* of one epoch                              */
    double *loss;         /* [runs][epochs*steps], shared with the jobs */
    epoch_record *record; /* [runs][epochs+1], shared          */
} experiment;

static size_t run_index(size_t seed, int a)
{
    return seed * ARMS + (size_t)a;
}

static double *run_loss(const experiment *e, size_t seed, int a)
{
    return e->loss + run_index(seed, a) * e->o->epochs * e->steps;
}

static epoch_record *run_record(const experiment *e, size_t seed, int a)
{
    return e->record + run_index(seed, a) * (e->o->epochs + 1);
}

/* ---- one run --------------------------------------------------------------------------------- */

static nrm_mlp *make_net(const experiment *e, int a, uint64_t seed, void **block)
{
    nrm_mlp_layer layer[3];
    nrm_mlp_spec spec = nrm_mlp_defaults();
    int l;
    memset(layer, 0, sizeof layer);
    for (l = 0; l < 2; l++) {
        layer[l].width = l == 0 ? WIDTH1 : WIDTH2;
        layer[l].activation = NRM_RELU;
        layer[l].norm = arms[a].norm;
        layer[l].bias = arms[a].bias;
    }
    layer[2].width = CLASSES;
    layer[2].bias = 1;
    spec.inputs = INPUTS;
    spec.layers = 3;
    spec.layer = layer;
    spec.max_batch = e->o->batch > PROBED ? e->o->batch : PROBED;
    spec.seed = seed;
    spec.init = NRM_INIT_FAN_IN;
    spec.gamma_init = arms[a].gamma;
    spec.lr = (nrm_real)e->o->lr;
    return training_net(&spec, block);
}

/* What window_loss is the mean of. */
static const char *window_name(const experiment *e)
{
    return e->steps > 80 ? "batches 41 to 80" : "all batches";
}

typedef struct capture {   /* copies of the first hidden layer, taken by the probe */
    double *linear, *norm; /* [n][WIDTH1] */
} capture;

static void take(void *context, const nrm_mlp_event *event)
{
    capture *c = (capture *)context;
    double *to = event->place == NRM_AT_LINEAR ? c->linear : c->norm;
    size_t i;
    if (event->layer != 0 || event->gradient || event->place == NRM_AT_ACTIVATION) return;
    for (i = 0; i < event->rows * event->cols; i++) to[i] = (double)event->data[i];
}

static void describe(snapshot *s, const double *v, size_t n)
{
    double edges[BINS + 1], unit[PROBED];
    stats_summary all = stats_describe(v, n * WIDTH1);
    size_t u, i, k;
    s->mean = all.mean;
    s->sd = all.sd;
    s->skew = all.skew;
    s->kurtosis = all.kurtosis;
    s->unit_skew = s->unit_kurtosis = 0;
    for (u = 0; u < WIDTH1; u++) {
        stats_summary one;
        for (i = 0; i < n; i++) unit[i] = v[i * WIDTH1 + u];
        one = stats_describe(unit, n);
        s->unit_skew += fabs(one.skew) / WIDTH1;
        s->unit_kurtosis += fabs(one.kurtosis) / WIDTH1;
        for (k = 0; k < UNITS; k++)
            if (probed_unit[k] == u) {
                stats_sort(unit, n);
                for (i = 0; i < LEVELS; i++)
                    s->percentile[k][i] = stats_quantile(unit, n, level[i]);
            }
    }
    for (i = 0; i <= BINS; i++) edges[i] = HIST_LO + (HIST_HI - HIST_LO) * (double)i / BINS;
    (void)stats_histogram(v, n * WIDTH1, edges, BINS, s->density);
}

/* The distribution in the first hidden layer: linear part, norm with running statistics, norm with
   those of the batch. Training goes on as if nothing had happened. */
static int look(nrm_mlp *net, const experiment *e, epoch_record *r, capture *c)
{
    const size_t n = e->test.n < PROBED ? e->test.n : PROBED;
    const int has_norm = net->state[0].shape.norm != NRM_NO_NORM;
    int status;
    net->probe = take;
    net->probe_context = c;
    status = nrm_mlp_forward(net, e->test.x, n, NRM_INFER);
    describe(&r->shot[BEFORE], c->linear, n);
    if (has_norm && status >= 0) {
        describe(&r->shot[INFER], c->norm, n);
        status = nrm_mlp_gradient(net, NULL, e->test.x, e->test.labels, n, NRM_TRAIN);
        describe(&r->shot[TRAIN], c->norm, n);
    }
    net->probe = NULL;
    return status;
}

static int evaluate(nrm_mlp *net, const experiment *e, epoch_record *r, capture *c)
{
    nrm_acc loss = 0, accuracy = 0;
    const int status = nrm_mlp_eval(net, &loss, &accuracy, e->test.x, e->test.labels, e->test.n);
    r->test_loss = (double)loss;
    r->accuracy = (double)accuracy;
    return status < 0 ? status : look(net, e, r, c);
}

/* One pass over the training data: the losses of all steps, their mean, the mean of a window. */
static int train_epoch(nrm_mlp *net, const experiment *e, training_order *order, double *loss,
                       epoch_record *r)
{
    size_t step, in_window = 0;
    int status = NRM_OK;
    r->train_loss = r->window_loss = 0;
    for (step = 0; status >= 0 && training_next(order, &e->train); step++) {
        nrm_acc value = 0;
        status = nrm_mlp_train_step(net, &value, order->x, order->labels, order->count);
        loss[step] = (double)value;
        r->train_loss += loss[step] / (double)e->steps;
        if (step > 40 && step <= 80) {
            r->window_loss += loss[step];
            in_window++;
        }
    }
    r->window_loss = in_window > 0 ? r->window_loss / (double)in_window : r->train_loss;
    return status;
}

static int job(void *context, size_t index, volatile size_t *done)
{
    const experiment *e = (const experiment *)context;
    const int a = (int)(index % ARMS);
    const size_t s = index / ARMS;
    const uint64_t seed = e->o->seed + s;
    epoch_record *record = run_record(e, s, a);
    training_order order;
    capture c;
    void *block = NULL;
    size_t epoch;
    nrm_mlp *net = make_net(e, a, seed, &block);
    int status = -1;
    c.linear = (double *)malloc(PROBED * WIDTH1 * sizeof *c.linear);
    c.norm = (double *)malloc(PROBED * WIDTH1 * sizeof *c.norm);
    memset(&order, 0, sizeof order);
    if (net && c.linear && c.norm &&
        !training_order_start(&order, e->train.n, e->o->batch, INPUTS, seed))
        status = evaluate(net, e, &record[0], &c);
    for (epoch = 1; epoch <= e->o->epochs && status >= 0; epoch++) {
        status =
            train_epoch(net, e, &order, run_loss(e, s, a) + (epoch - 1) * e->steps, &record[epoch]);
        if (status >= 0) status = evaluate(net, e, &record[epoch], &c);
        *done = epoch;
    }
    if (status < 0) fprintf(stderr, NAME ": %s\n", net ? nrm_strerror(status) : "no network");
    training_order_free(&order);
    free(c.linear);
    free(c.norm);
    free(block);
    return status < 0 ? 1 : 0;
}

static void job_name(void *context, size_t index, char *name, size_t size)
{
    const experiment *e = (const experiment *)context;
    (void)snprintf(name, size, "%s, seed %llu", arms[index % ARMS].name,
                   (unsigned long long)(e->o->seed + index / ARMS));
}

static int run_all(experiment *e)
{
    cli_progress progress;
    jobs_plan plan;
    char err[JOBS_ERR_MAX];
    int failed;
    memset(&plan, 0, sizeof plan);
    plan.count = e->o->seeds * ARMS;
    plan.processes = e->o->threads;
    plan.job = job;
    plan.context = e;
    plan.name = job_name;
    plan.tick = cli_progress_tick;
    plan.tick_context = &progress;
    cli_progress_start(&progress, "training, epochs", plan.count * e->o->epochs, e->o->quiet);
    failed = jobs_run(&plan, err);
    cli_progress_end(&progress);
    if (failed) fprintf(stderr, NAME ": %s\n", err);
    return failed;
}

/* ---- statistics over seeds ------------------------------------------------------------------- */

typedef double picker(const experiment *e, size_t seed, int a, size_t at);

static double pick_step(const experiment *e, size_t seed, int a, size_t at)
{
    return run_loss(e, seed, a)[at];
}

static double pick_epoch_loss(const experiment *e, size_t seed, int a, size_t at)
{
    return run_record(e, seed, a)[at].train_loss;
}

static double pick_window(const experiment *e, size_t seed, int a, size_t at)
{
    return run_record(e, seed, a)[at].window_loss;
}

static double pick_accuracy(const experiment *e, size_t seed, int a, size_t at)
{
    return 100 * run_record(e, seed, a)[at].accuracy;
}

static double pick_test_loss(const experiment *e, size_t seed, int a, size_t at)
{
    return run_record(e, seed, a)[at].test_loss;
}

/* First step (counted from 1) at which the mean loss of the last 20 steps is below 0.5; the number
   of all steps if none is. */
static double pick_steps_to_half(const experiment *e, size_t seed, int a, size_t at)
{
    const size_t n = e->o->epochs * e->steps;
    double *mean = (double *)malloc(n * sizeof *mean);
    double found = (double)n;
    size_t i;
    (void)at;
    if (!mean) return found;
    stats_running_mean(run_loss(e, seed, a), n, 20, mean);
    for (i = 0; i < n && found >= (double)n; i++)
        if (mean[i] < 0.5) found = (double)(i + 1);
    free(mean);
    return found;
}

static void collect(const experiment *e, picker *pick, int a, size_t at, double *value)
{
    size_t s;
    for (s = 0; s < e->o->seeds; s++) value[s] = pick(e, s, a, at);
}

static stats_summary over_seeds(const experiment *e, picker *pick, int a, size_t at)
{
    double value[SEEDS_MAX];
    stats_summary summary;
    collect(e, pick, a, at, value);
    summary = stats_describe(value, e->o->seeds);
    if (e->o->seeds == 1) summary.sd = 0;
    return summary;
}

/* Mean and standard deviation over seeds of n values from `first` on. */
static void curve(const experiment *e, picker *pick, int a, size_t first, size_t n, double *mean,
                  double *sd)
{
    size_t i;
    for (i = 0; i < n; i++) {
        const stats_summary s = over_seeds(e, pick, a, first + i);
        mean[i] = s.mean;
        sd[i] = s.sd;
    }
}

/* ---- verdicts -------------------------------------------------------------------------------- */

enum { CLAIMS = 4, TEXT = 160 };

typedef struct verdict {
    const char *claim;
    char criterion[TEXT], found[TEXT], result[32];
} verdict;

static void put(char *text, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, size, format, args);
    va_end(args);
}

/* Verdicts count for MNIST at the settings of the source only. */
static const char *why_not(const experiment *e)
{
    const cli_options *o = e->o;
    if (e->data.synthetic) return "not on MNIST";
    if (o->epochs != 20 || o->batch != 512 || fabs(o->lr - 0.01) > 1e-9 ||
        e->train.n != DATASET_TRAIN_N)
        return "other settings";
    return NULL;
}

static void settle(const experiment *e, verdict *v, const char *result)
{
    const char *reason = why_not(e);
    put(v->result, sizeof v->result, "%s", reason ? reason : result);
}

/* "504 ± 13", or "> 2360" if some seed never got there. */
static const char *steps_text(const experiment *e, int a, char *text)
{
    const stats_summary s = over_seeds(e, pick_steps_to_half, a, 0);
    const double all = (double)(e->o->epochs * e->steps);
    if (s.max >= all)
        put(text, 64, "> %.0f", all);
    else
        put(text, 64, "%.0f ± %.0f", s.mean, s.sd);
    return text;
}

static void judge_loss(const experiment *e, verdict *v)
{
    char fast_text[64], slow_text[64];
    double none[SEEDS_MAX], batch[SEEDS_MAX];
    size_t epoch, s, below = 0, all = e->o->epochs * e->o->seeds;
    stats_summary slow, fast;
    stats_paired pair;
    for (epoch = 1; epoch <= e->o->epochs; epoch++)
        for (s = 0; s < e->o->seeds; s++)
            below += pick_epoch_loss(e, s, BATCH, epoch) < pick_epoch_loss(e, s, NONE, epoch);
    slow = over_seeds(e, pick_steps_to_half, NONE, 0);
    fast = over_seeds(e, pick_steps_to_half, BATCH, 0);
    collect(e, pick_epoch_loss, NONE, e->o->epochs, none);
    collect(e, pick_epoch_loss, BATCH, e->o->epochs, batch);
    pair = stats_pair(batch, none, e->o->seeds);
    v->claim = "Batch norm reaches any given loss earlier";
    put(v->criterion, TEXT,
        "below no norm at every epoch of every seed; loss 0.5 in half the steps");
    put(v->found, TEXT, "below in %zu of %zu; steps to loss 0.5: %s and %s", below, all,
        steps_text(e, BATCH, fast_text), steps_text(e, NONE, slow_text));
    settle(e, v,
           stats_verdict_name(stats_judge(&pair, -1, below == all && slow.mean >= 2 * fast.mean)));
}

static void judge_log(const experiment *e, verdict *v)
{
    const stats_summary none = over_seeds(e, pick_window, NONE, e->o->epochs);
    const stats_summary batch = over_seeds(e, pick_window, BATCH, e->o->epochs);
    const stats_summary first = over_seeds(e, pick_step, NONE, 0);
    const int ok = fabs(none.mean - 0.395) <= 0.03 && fabs(batch.mean - 0.162) <= 0.03 &&
                   fabs(first.mean - 2.30) <= 0.03;
    v->claim = "The notebook's logged losses";
    put(v->criterion, TEXT, "epoch 20: 0.395 and 0.162 ± 0.03; first loss 2.30 ± 0.03");
    put(v->found, TEXT, "%.3f ± %.3f and %.3f ± %.3f; first %.3f", none.mean, none.sd, batch.mean,
        batch.sd, first.mean);
    settle(e, v, ok ? "reproduced" : "not reproduced");
}

static void judge_centred(const experiment *e, verdict *v)
{
    double drift[2] = {0, 0}, mean = 0;
    size_t s;
    int a;
    for (s = 0; s < e->o->seeds; s++) {
        for (a = NONE; a <= BATCH; a++) {
            const int place = a == NONE ? BEFORE : TRAIN;
            const epoch_record *r = run_record(e, s, a);
            drift[a] += fabs(r[e->o->epochs].shot[place].mean - r[0].shot[place].mean) /
                        (double)e->o->seeds;
        }
        mean += run_record(e, s, BATCH)[e->o->epochs].shot[INFER].mean / (double)e->o->seeds;
    }
    v->claim = "With batch norm, inputs to ReLU stay centred";
    put(v->criterion, TEXT, "|pooled mean| < 0.3 after training; without a norm it drifts further");
    put(v->found, TEXT, "|mean| %.2f; drift %.2f with, %.2f without", fabs(mean), drift[BATCH],
        drift[NONE]);
    settle(e, v, fabs(mean) < 0.3 && drift[NONE] > drift[BATCH] ? "reproduced" : "not reproduced");
}

static void judge_gaussian(const experiment *e, verdict *v)
{
    double skew = 0, kurtosis = 0, pooled = 0;
    size_t s;
    for (s = 0; s < e->o->seeds; s++) {
        const snapshot *shot = &run_record(e, s, BATCH)[e->o->epochs].shot[INFER];
        skew += shot->unit_skew / (double)e->o->seeds;
        kurtosis += shot->unit_kurtosis / (double)e->o->seeds;
        pooled += shot->kurtosis / (double)e->o->seeds;
    }
    v->claim = "With batch norm, they are still Gaussian";
    put(v->criterion, TEXT, "units: mean |skewness| < 0.5 and mean |excess kurtosis| < 1");
    put(v->found, TEXT, "units: %.2f and %.2f; all units pooled: excess kurtosis %.1f", skew,
        kurtosis, pooled);
    settle(e, v, skew < 0.5 && kurtosis < 1 ? "reproduced" : "not reproduced");
}

static void judge_all(const experiment *e, verdict v[CLAIMS])
{
    judge_loss(e, &v[0]);
    judge_log(e, &v[1]);
    judge_centred(e, &v[2]);
    judge_gaussian(e, &v[3]);
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
    csv_note(t, "network", "784-64-128-10, ReLU, linear-norm-ReLU");
    csv_note_int(t, "batch", (long long)e->o->batch);
    csv_note_int(t, "epochs", (long long)e->o->epochs);
    csv_note_int(t, "training_images", (long long)e->train.n);
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

/* Columns "x", then "ARM_mean" and "ARM_sd" for each arm. */
static void arm_columns(csv_table *t, const char *x)
{
    char text[2 * ARMS][40];
    const char *columns[2 * ARMS + 1];
    size_t i;
    columns[0] = x;
    for (i = 0; i < 2 * ARMS; i++) {
        put(text[i], sizeof text[i], "%s_%s", arms[i / 2].id, i % 2 ? "sd" : "mean");
        columns[i + 1] = text[i];
    }
    csv_columns(t, columns, 2 * ARMS + 1);
}

static int write_steps(const experiment *e, const char *path)
{
    const size_t n = e->o->epochs * e->steps;
    csv_table t;
    size_t i;
    int a;
    begin_table(e, &t);
    arm_columns(&t, "step");
    for (i = 0; i < n; i++) {
        csv_int(&t, (long long)i + 1);
        for (a = 0; a < ARMS; a++) {
            const stats_summary s = over_seeds(e, pick_step, a, i);
            csv_float(&t, (float)s.mean);
            csv_float(&t, (float)s.sd);
        }
        csv_end_row(&t);
    }
    return end_table(&t, path);
}

static int write_epochs(const experiment *e, const char *path)
{
    const char *columns[7] = {"arm",         "seed",      "epoch",   "train_loss",
                              "window_loss", "test_loss", "accuracy"};
    csv_table t;
    size_t s, epoch;
    int a;
    begin_table(e, &t);
    csv_columns(&t, columns, 7);
    for (a = 0; a < ARMS; a++)
        for (s = 0; s < e->o->seeds; s++)
            for (epoch = 0; epoch <= e->o->epochs; epoch++) {
                csv_text(&t, arms[a].id);
                csv_uint(&t, e->o->seed + s);
                csv_int(&t, (long long)epoch);
                csv_real(&t, epoch ? pick_epoch_loss(e, s, a, epoch) : (double)NAN);
                csv_real(&t, epoch ? pick_window(e, s, a, epoch) : (double)NAN);
                csv_real(&t, pick_test_loss(e, s, a, epoch));
                csv_real(&t, run_record(e, s, a)[epoch].accuracy);
                csv_end_row(&t);
            }
    return end_table(&t, path);
}

static void write_shot(csv_table *t, const snapshot *shot)
{
    size_t i, k;
    csv_real(t, shot->mean);
    csv_real(t, shot->sd);
    csv_real(t, shot->skew);
    csv_real(t, shot->kurtosis);
    csv_real(t, shot->unit_skew);
    csv_real(t, shot->unit_kurtosis);
    for (k = 0; k < UNITS; k++)
        for (i = 0; i < LEVELS; i++) csv_float(t, (float)shot->percentile[k][i]);
    for (i = 0; i < BINS; i++) csv_float(t, (float)shot->density[i]);
}

/* Moments, percentiles and histograms of the main arms, at every place and epoch. */
static int write_activations(const experiment *e, const char *path)
{
    enum { FIXED = 10, COLUMNS = FIXED + UNITS * LEVELS + BINS };
    const char *columns[COLUMNS] = {"arm", "seed", "epoch",    "place",     "mean",
                                    "sd",  "skew", "kurtosis", "unit_skew", "unit_kurtosis"};
    char text[COLUMNS][32];
    csv_table t;
    size_t s, epoch, i;
    int a, place;
    for (i = 0; i < UNITS * LEVELS; i++)
        put(text[FIXED + i], 32, "unit%zu_p%.0f", probed_unit[i / LEVELS], 100 * level[i % LEVELS]);
    for (i = 0; i < BINS; i++)
        put(text[FIXED + UNITS * LEVELS + i], 32, "density_%.3f",
            HIST_LO + (HIST_HI - HIST_LO) * ((double)i + 0.5) / BINS);
    for (i = FIXED; i < COLUMNS; i++) columns[i] = text[i];
    begin_table(e, &t);
    csv_columns(&t, columns, COLUMNS);
    for (a = 0; a < MAIN_ARMS; a++)
        for (s = 0; s < e->o->seeds; s++)
            for (epoch = 0; epoch <= e->o->epochs; epoch++)
                for (place = 0; place < (a == NONE ? 1 : PLACES); place++) {
                    csv_text(&t, arms[a].id);
                    csv_uint(&t, e->o->seed + s);
                    csv_int(&t, (long long)epoch);
                    csv_text(&t, place_name[place]);
                    write_shot(&t, &run_record(e, s, a)[epoch].shot[place]);
                    csv_end_row(&t);
                }
    return end_table(&t, path);
}

static int write_summary(const experiment *e, const verdict v[CLAIMS], const char *path)
{
    const char *columns[9] = {
        "arm",           "train_loss",       "train_loss_sd", "window_loss",    "window_loss_sd",
        "test_accuracy", "test_accuracy_sd", "steps_to_0.5",  "steps_to_0.5_sd"};
    csv_table t;
    int a, i;
    begin_table(e, &t);
    for (i = 0; i < CLAIMS; i++) {
        char line[3 * TEXT];
        put(line, sizeof line, "%s: %s [%s] %s", v[i].claim, v[i].result, v[i].criterion,
            v[i].found);
        csv_note(&t, "verdict", line);
    }
    csv_columns(&t, columns, 9);
    for (a = 0; a < ARMS; a++) {
        picker *const pick[4] = {pick_epoch_loss, pick_window, pick_accuracy, pick_steps_to_half};
        csv_text(&t, arms[a].id);
        for (i = 0; i < 4; i++) {
            const stats_summary s = over_seeds(e, pick[i], a, e->o->epochs);
            const int missed = i == 3 && s.max >= (double)(e->o->epochs * e->steps);
            csv_real(&t, missed ? (double)NAN : s.mean); /* a loss that was never reached */
            csv_real(&t, missed ? (double)NAN : s.sd);
        }
        csv_end_row(&t);
    }
    return end_table(&t, path);
}

static void print_results(const experiment *e, const verdict v[CLAIMS])
{
    int a, i;
    printf("%s, %zu images, %zu seed%s from %llu, %zu epochs of batches of %zu, lr %g\n\n",
           e->data.name, e->train.n, e->o->seeds, e->o->seeds == 1 ? "" : "s",
           (unsigned long long)e->o->seed, e->o->epochs, e->o->batch, e->o->lr);
    printf("%-24s %17s %17s %16s %15s\n", "arm", "loss, last epoch", "loss over", "test",
           "steps to");
    printf("%-24s %17s %17s %16s %15s\n", "", "", window_name(e), "accuracy %", "loss 0.5");
    for (a = 0; a < ARMS; a++) {
        const stats_summary loss = over_seeds(e, pick_epoch_loss, a, e->o->epochs);
        const stats_summary window = over_seeds(e, pick_window, a, e->o->epochs);
        const stats_summary accuracy = over_seeds(e, pick_accuracy, a, e->o->epochs);
        char steps[64];
        const int width = strstr(arms[a].name, "γ") ? 25 : 24; /* γ has two bytes */
        printf("%-*s %8.4f ± %6.4f %8.4f ± %6.4f %8.2f ± %5.2f  %s\n", width, arms[a].name,
               loss.mean, loss.sd, window.mean, window.sd, accuracy.mean, accuracy.sd,
               steps_text(e, a, steps));
    }
    printf("\n");
    for (i = 0; i < CLAIMS; i++)
        printf("%s: %s\n    criterion: %s\n    found: %s\n", v[i].claim, v[i].result,
               v[i].criterion, v[i].found);
}

/* ---- figures --------------------------------------------------------------------------------- */

static plot_figure *begin_figure(const experiment *e, const char *title, int width, int height)
{
    plot_figure *f = plot_new(width, height);
    char text[400];
    plot_title(f, title);
    put(text, sizeof text,
        "%s%s, %zu training images. 784-64-128-10, ReLU, SGD with learning rate %g, batches of "
        "%zu. %zu seed%s.",
        e->data.synthetic ? "Not MNIST: " : "", e->data.name, e->train.n, e->o->lr, e->o->batch,
        e->o->seeds, e->o->seeds == 1 ? "" : "s");
    plot_subtitle(f, text);
    put(text, sizeof text, NAME " --seed %llu --seeds %zu --epochs %zu --batch %zu --lr %g%s",
        (unsigned long long)e->o->seed, e->o->seeds, e->o->epochs, e->o->batch, e->o->lr,
        e->o->quick ? " --quick" : "");
    plot_footer(f, text);
    return f;
}

static int end_figure(plot_figure *f, const char *path)
{
    const int failed = plot_save(f, path);
    if (failed) fprintf(stderr, NAME ": %s\n", plot_error(f));
    plot_free(f);
    return failed;
}

static plot_style arm_style(int a)
{
    plot_style style = plot_solid(arms[a].color);
    style.dash = arms[a].dash;
    if (a >= MAIN_ARMS) style.width = 0.8;
    return style;
}

/* Mean lines with bands for the main arms, thin lines for the others. */
static void add_curves(const experiment *e, plot_panel *p, picker *pick, size_t first, size_t n,
                       int from, int to, const double *x)
{
    double *mean = (double *)malloc(n * sizeof *mean), *sd = (double *)malloc(n * sizeof *sd);
    int a;
    for (a = from; a < to && mean && sd; a++) {
        curve(e, pick, a, first, n, mean, sd);
        if (a < MAIN_ARMS)
            plot_mean_band(p, arms[a].name, x, mean, sd, n, arm_style(a));
        else
            plot_line(p, arms[a].name, x, mean, n, arm_style(a));
    }
    free(mean);
    free(sd);
}

/* A rule on the notebook's logged loss, beside our curve of the same quantity. */
static void add_logged(plot_panel *p)
{
    const double epoch[4] = {1, 5, 10, 20};
    const double none[4] = {2.292, 1.836, 0.679, 0.395}, batch[4] = {1.734, 0.477, 0.271, 0.162};
    plot_scatter(p, "the source's log", epoch, none, 4, plot_marked(PLOT_INK, PLOT_RING));
    plot_scatter(p, "the source's log", epoch, batch, 4, plot_marked(PLOT_INK, PLOT_RING));
}

static void counting(double *x, size_t n, double first)
{
    size_t i;
    for (i = 0; i < n; i++) x[i] = first + (double)i;
}

static int draw_loss(const experiment *e, const char *path)
{
    const size_t n = e->o->epochs * e->steps;
    double *x = (double *)malloc((n + EPOCHS_MAX) * sizeof *x);
    const double widths[2] = {1.25, 1};
    const double tick[5] = {0.1, 0.2, 0.5, 1, 2};
    const char *const tick_name[5] = {"0.1", "0.2", "0.5", "1", "2"};
    char heading[64];
    plot_figure *f = begin_figure(e, "Training loss with and without normalization", 2000, 1000);
    plot_panel *p = plot_add(f, 0, 0, 1, 1);
    if (!x) return -1;
    plot_widths(f, widths, 2);
    plot_letters(f);
    plot_shared_legend(f);
    plot_heading(p, "every step, mean ± 1 sd over seeds");
    plot_axis_x(p, "step", PLOT_LINEAR);
    plot_axis_y(p, "cross-entropy (nats)", PLOT_LINEAR);
    plot_range_x(p, 0, (double)n);
    plot_range_y(p, 0, 2.5);
    counting(x, n, 1);
    add_curves(e, p, pick_step, 0, n, 0, MAIN_ARMS, x);
    p = plot_add(f, 0, 1, 1, 1);
    put(heading, sizeof heading, "every epoch: mean of %s", window_name(e));
    plot_heading(p, heading);
    plot_axis_x(p, "epoch", PLOT_LINEAR);
    plot_axis_y(p, "", PLOT_LOG10);
    plot_range_x(p, 0, (double)e->o->epochs);
    plot_range_y(p, 0.1, 2.5);
    plot_ticks_y(p, tick, tick_name, 5);
    counting(x, e->o->epochs, 1);
    add_curves(e, p, pick_window, 1, e->o->epochs, 0, ARMS, x);
    if (!why_not(e)) add_logged(p);
    free(x);
    return end_figure(f, path);
}

static int draw_accuracy(const experiment *e, const char *path)
{
    const char *const heading[2] = {"the four networks", "the norms: γ ~ U(0,1) against γ = 1"};
    double x[EPOCHS_MAX + 1];
    plot_figure *f = begin_figure(e, "Test accuracy with and without normalization", 2000, 1060);
    const double last = over_seeds(e, pick_accuracy, NONE, e->o->epochs).mean;
    int i;
    counting(x, e->o->epochs + 1, 0);
    plot_letters(f);
    plot_shared_legend(f);
    for (i = 0; i < 2; i++) {
        plot_panel *p = plot_add(f, 0, i, 1, 1);
        plot_heading(p, heading[i]);
        plot_axis_x(p, "epoch", PLOT_LINEAR);
        plot_axis_y(p, i == 0 ? "test accuracy (%)" : "", PLOT_LINEAR);
        plot_range_x(p, 0, (double)e->o->epochs);
        plot_range_y(p, i == 0 ? 0 : 5 * floor(last / 5 - 0.5), 100);
        add_curves(e, p, pick_accuracy, 0, e->o->epochs + 1, i == 0 ? NONE : BATCH,
                   i == 0 ? MAIN_ARMS : ARMS, x);
    }
    return end_figure(f, path);
}

/* a: the source's figure. Histograms of the first seed's units after training. */
static void add_overlay(const experiment *e, plot_figure *f)
{
    plot_panel *p = plot_add(f, 0, 0, 1, 2);
    double edges[BINS + 1];
    size_t i;
    for (i = 0; i <= BINS; i++) edges[i] = HIST_LO + (HIST_HI - HIST_LO) * (double)i / BINS;
    plot_heading(p, "all 64 units after training");
    plot_axis_x(p, "input of ReLU", PLOT_LINEAR);
    plot_axis_y(p, "density", PLOT_LINEAR);
    plot_range_x(p, HIST_LO, HIST_HI);
    plot_hist(p, arms[NONE].name, edges, run_record(e, 0, NONE)[e->o->epochs].shot[BEFORE].density,
              BINS, arm_style(NONE));
    plot_hist(p, arms[BATCH].name, edges, run_record(e, 0, BATCH)[e->o->epochs].shot[TRAIN].density,
              BINS, arm_style(BATCH));
    plot_hist(p, "batch norm, running statistics", edges,
              run_record(e, 0, BATCH)[e->o->epochs].shot[INFER].density, BINS, arm_style(LAYER));
}

/* b, c: the same over the epochs. Batch norm with the statistics of the batch, as in training: at
   the start the running ones say nothing. */
static void add_ridges(const experiment *e, plot_figure *f, int a, int place, int col)
{
    size_t shown[7] = {0, 1, 2, 5, 10, 15, 20}; /* the last of them is the last epoch */
    plot_panel *p = plot_add(f, 0, col, 1, 2);
    char name[32];
    double x[BINS];
    size_t i;
    for (i = 0; i < BINS; i++) x[i] = HIST_LO + (HIST_HI - HIST_LO) * ((double)i + 0.5) / BINS;
    plot_heading(p, a == NONE ? "no norm, over the epochs" : "batch norm, over the epochs");
    plot_axis_x(p, "input of ReLU", PLOT_LINEAR);
    plot_range_x(p, HIST_LO, HIST_HI);
    for (i = 0; i < 7; i++) {
        if (i > 0 && shown[i - 1] >= e->o->epochs) break;
        if (i == 6 || shown[i] > e->o->epochs) shown[i] = e->o->epochs;
        put(name, sizeof name, i == 0 ? "epoch 0" : "%zu", shown[i]);
        plot_ridge(p, name, x, run_record(e, 0, a)[shown[i]].shot[place].density, BINS,
                   plot_solid(arms[a].color));
    }
}

/* d, e, f: percentile bands of three fixed units. */
static void add_units(const experiment *e, plot_figure *f)
{
    double x[EPOCHS_MAX + 1], q[LEVELS][EPOCHS_MAX + 1], packed[LEVELS * (EPOCHS_MAX + 1)];
    const size_t n = e->o->epochs + 1;
    plot_panel *first = NULL;
    size_t k, i, epoch;
    int a;
    counting(x, n, 0);
    for (k = 0; k < UNITS; k++) {
        plot_panel *p = plot_add(f, 1, (int)(2 * k), 1, 2);
        char heading[64];
        put(heading, sizeof heading, "unit %zu: median, 15 to 85 %%", probed_unit[k]);
        plot_heading(p, heading);
        plot_axis_x(p, "epoch", PLOT_LINEAR);
        plot_axis_y(p, k == 0 ? "input of ReLU" : "", PLOT_LINEAR);
        for (a = NONE; a <= BATCH; a++) {
            for (epoch = 0; epoch < n; epoch++)
                for (i = 0; i < LEVELS; i++)
                    q[i][epoch] = run_record(e, 0, a)[epoch]
                                      .shot[a == NONE ? BEFORE : TRAIN]
                                      .percentile[k][i];
            for (i = 0; i < LEVELS; i++) memcpy(packed + i * n, q[i], n * sizeof *packed);
            plot_percentiles(p, arms[a].name, x, packed, LEVELS, n, NULL, arm_style(a));
        }
        if (first) plot_share_y(p, first);
        if (!first) first = p;
    }
}

static int draw_activations(const experiment *e, const char *path)
{
    char title[80];
    plot_figure *f;
    const double heights[2] = {1.3, 1};
    put(title, sizeof title, "What the first hidden layer's ReLU is given, seed %llu",
        (unsigned long long)e->o->seed);
    f = begin_figure(e, title, 2200, 1560);
    plot_heights(f, heights, 2);
    plot_letters(f);
    plot_shared_legend(f);
    add_overlay(e, f);
    add_ridges(e, f, NONE, BEFORE, 2);
    add_ridges(e, f, BATCH, TRAIN, 4);
    add_units(e, f);
    return end_figure(f, path);
}

static void add_result_table(const experiment *e, plot_figure *f)
{
    enum { COLUMNS = 5 };
    static char text[ARMS * COLUMNS][64];
    const char *cells[(ARMS + 1) * COLUMNS] = {"network", "training loss",
                                               e->steps > 80 ? "batches 41-80" : "all batches",
                                               "test accuracy (%)", "steps to loss 0.5"};
    picker *const pick[3] = {pick_epoch_loss, pick_window, pick_accuracy};
    const char *const format[3] = {"%.4f ± %.4f", "%.4f ± %.4f", "%.2f ± %.2f"};
    plot_panel *p = plot_add(f, 1, 0, 1, 2);
    int a, i;
    for (a = 0; a < ARMS; a++) {
        put(text[a * COLUMNS], 64, "%s", arms[a].name);
        for (i = 0; i < 3; i++) {
            const stats_summary s = over_seeds(e, pick[i], a, e->o->epochs);
            put(text[a * COLUMNS + i + 1], 64, format[i], s.mean, s.sd);
        }
        (void)steps_text(e, a, text[a * COLUMNS + 4]);
    }
    for (i = 0; i < ARMS * COLUMNS; i++) cells[COLUMNS + i] = text[i];
    plot_heading(p, "last epoch, mean ± sd over seeds");
    plot_table(p, cells, ARMS + 1, COLUMNS, "lrrrr");
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
        cells[4 * i + 7] = v[i].result;
    }
    plot_heading(p, "verdicts");
    plot_table(p, cells, CLAIMS + 1, 4, "llll");
}

static int draw_summary(const experiment *e, const verdict v[CLAIMS], const char *path)
{
    const double heights[3] = {1.25, 0.85, 0.55};
    double x[EPOCHS_MAX + 1];
    plot_figure *f = begin_figure(e, "Four small networks on handwritten digits", 2200, 2000);
    plot_panel *p = plot_add(f, 0, 0, 1, 1);
    plot_heights(f, heights, 3);
    plot_letters(f);
    counting(x, e->o->epochs, 1);
    plot_heading(p, "training loss");
    plot_axis_x(p, "epoch", PLOT_LINEAR);
    plot_axis_y(p, "cross-entropy (nats)", PLOT_LINEAR);
    plot_range_x(p, 0, (double)e->o->epochs);
    plot_range_y(p, 0, 2.5);
    add_curves(e, p, pick_epoch_loss, 1, e->o->epochs, 0, MAIN_ARMS, x);
    p = plot_add(f, 0, 1, 1, 1);
    plot_heading(p, "test accuracy");
    plot_axis_x(p, "epoch", PLOT_LINEAR);
    plot_axis_y(p, "test accuracy (%)", PLOT_LINEAR);
    plot_range_x(p, 0, (double)e->o->epochs);
    plot_range_y(p, 0, 100);
    counting(x, e->o->epochs + 1, 0);
    add_curves(e, p, pick_accuracy, 0, e->o->epochs + 1, 0, MAIN_ARMS, x);
    add_result_table(e, f);
    add_verdicts(f, v);
    return end_figure(f, path);
}

/* ---- the program ----------------------------------------------------------------------------- */

static int parse(cli_options *o, int argc, char **argv)
{
    cli_program program;
    int status;
    cli_program_init(&program, NAME, "Batch, layer and noisy batch norm against none, on MNIST.",
                     CLI_USES_ALL);
    program.version = NRM_VERSION;
    program.defaults.epochs = 20;
    program.defaults.batch = 512;
    program.defaults.lr = 0.01;
    status = cli_parse(o, &program, argc, argv);
    if (status != CLI_RUN) return status;
    if (o->quick && !(o->given & CLI_USES_EPOCHS)) o->epochs = 3;
    if (o->quick && !(o->given & CLI_USES_SEEDS)) o->seeds = 2;
    if (o->seeds > SEEDS_MAX || o->epochs > EPOCHS_MAX || o->batch < 2) {
        fprintf(stderr,
                NAME ": --seeds can be at most %d, --epochs at most %d, --batch at least 2\n",
                (int)SEEDS_MAX, (int)EPOCHS_MAX);
        return CLI_EXIT_USAGE;
    }
    return CLI_RUN;
}

static int load(experiment *e)
{
    const size_t train_n = e->o->quick ? 6000 : 0, test_n = e->o->quick ? 1000 : 0;
    char err[DATASET_ERR_MAX];
    dataset *d = &e->data;
    if (dataset_load(d, e->o->data, 1, train_n, test_n, err)) {
        fprintf(stderr, NAME ": %s\n", err);
        return -1;
    }
    if (d->synthetic)
        fprintf(stderr, NAME ": no MNIST here (`make mnist` fetches it): using the built-in "
                             "synthetic digits; the verdicts do not count\n");
    if (training_set_make(&e->train, d->train_images, d->train_labels, d->train_n, INPUTS,
                          DATASET_RAW01) ||
        training_set_make(&e->test, d->test_images, d->test_labels, d->test_n, INPUTS,
                          DATASET_RAW01)) {
        fprintf(stderr, NAME ": out of memory\n");
        return -1;
    }
    e->steps = training_steps(e->train.n, e->o->batch);
    if (e->train.n % e->o->batch == 1) {
        fprintf(stderr,
                NAME ": --batch %zu leaves one image for the last batch of %zu, which batch "
                     "norm cannot train on\n",
                e->o->batch, e->train.n);
        return -1;
    }
    return 0;
}

typedef int page(const experiment *e, const verdict v[CLAIMS], const char *png, const char *csv);

static int page_loss(const experiment *e, const verdict v[CLAIMS], const char *png, const char *csv)
{
    (void)v;
    return draw_loss(e, png) || write_steps(e, csv);
}

static int page_accuracy(const experiment *e, const verdict v[CLAIMS], const char *png,
                         const char *csv)
{
    (void)v;
    return draw_accuracy(e, png) || write_epochs(e, e->o->csv ? e->o->csv : csv);
}

static int page_activations(const experiment *e, const verdict v[CLAIMS], const char *png,
                            const char *csv)
{
    (void)v;
    return draw_activations(e, png) || write_activations(e, csv);
}

static int page_summary(const experiment *e, const verdict v[CLAIMS], const char *png,
                        const char *csv)
{
    return draw_summary(e, v, png) || write_summary(e, v, csv);
}

static int publish(const experiment *e)
{
    const char *const names[4] = {NAME "_loss.png", NAME "_accuracy.png", NAME "_activations.png",
                                  NAME ".png"};
    page *const pages[4] = {page_loss, page_accuracy, page_activations, page_summary};
    char png[1024], csv[1024];
    verdict v[CLAIMS];
    int i;
    judge_all(e, v);
    print_results(e, v);
    for (i = 0; i < 4; i++) {
        if (cli_path(png, sizeof png, e->o->out, names[i]) ||
            cli_path_beside(csv, sizeof csv, png, ".csv")) {
            fprintf(stderr, NAME ": the path is too long\n");
            return 1;
        }
        if (pages[i](e, v, png, csv)) return 1;
        printf("wrote %s and its table\n", png);
    }
    return 0;
}

int main(int argc, char **argv)
{
    experiment e;
    cli_options o;
    size_t runs, loss_bytes, record_bytes;
    int failed = 1, status = parse(&o, argc, argv);
    if (status != CLI_RUN) return status;
    memset(&e, 0, sizeof e);
    e.o = &o;
    if (load(&e) == 0) {
        runs = o.seeds * ARMS;
        loss_bytes = runs * o.epochs * e.steps * sizeof *e.loss;
        record_bytes = runs * (o.epochs + 1) * sizeof *e.record;
        e.loss = (double *)jobs_alloc(loss_bytes);
        e.record = (epoch_record *)jobs_alloc(record_bytes);
        if (!e.loss || !e.record)
            fprintf(stderr, NAME ": out of memory\n");
        else
            failed = run_all(&e) || publish(&e);
        jobs_free(e.loss, loss_bytes);
        jobs_free(e.record, record_bytes);
    }
    training_set_free(&e.train);
    training_set_free(&e.test);
    dataset_free(&e.data);
    return failed ? 1 : 0;
}
