/* 12_batch_size: what do small mini-batches do to the norms? (README.md)

   UNBIASED VARIANCE. The library divides by sqrt(v + eps) with the biased v. With u = v*m/(m-1) and
   k = sqrt((m-1)/m), gamma*(x - mean)/sqrt(u + eps) = (k*gamma)*(x - mean)/sqrt(v + k*k*eps), so it
   is the same layer with k*gamma for gamma and k*k*eps for eps, and where it stores the running
   variance as it is (biased) it also infers the same. What is left is that Adam's step is one of
   gamma, not of k*gamma: it is multiplied by k. (Its 1e-8 becomes 1e-8/k thereby.) */
#include "lab/experiment.h"

enum { INPUTS = 784, CLASSES = 10, WORKERS = 8, GROUPS = 8, HIDDEN = 2, CURVE_WIDTH = 128 };
enum { LEAST = 2, MOST = 256, PROBED = 1024 };

/* ---- the arms -------------------------------------------------------------------------------- */

/* clang-format off */
enum { NONE_128, LAYER_128, HIDDEN_128, ALL_128, NONE_4, LAYER_4, HIDDEN_4, ALL_4, HIDDEN_4_BIASED,
       ALL_4_BIASED, NONE, LAYER, GROUP, BATCH, NONE_FLAT, LAYER_FLAT, GROUP_FLAT, BATCH_FLAT,
       TEAM_OWN, TEAM_MERGED, ARMS };

static const struct setup {
    int norm;
    int all;              /* 1: the logits are normalized too */
    int unbiased;         /* 1: by the unbiased variance      */
    size_t batch, epochs; /* of figure 6                      */
} setups[ARMS] = {
    {NRM_NO_NORM, 0, 0, 128, 20}, {NRM_LAYER_NORM, 0, 0, 128, 20}, {NRM_BATCH_NORM, 0, 0, 128, 20},
    {NRM_BATCH_NORM, 1, 0, 128, 20}, {NRM_NO_NORM, 0, 0, 4, 6}, {NRM_LAYER_NORM, 0, 0, 4, 6},
    {NRM_BATCH_NORM, 0, 1, 4, 6}, {NRM_BATCH_NORM, 1, 1, 4, 6}, {NRM_BATCH_NORM, 0, 0, 4, 3},
    {NRM_BATCH_NORM, 1, 0, 4, 3},
    {NRM_NO_NORM}, {NRM_LAYER_NORM}, {NRM_GROUP_NORM}, {NRM_BATCH_NORM}, /* the curve */
    {NRM_NO_NORM}, {NRM_LAYER_NORM}, {NRM_GROUP_NORM}, {NRM_BATCH_NORM}, /* at one learning rate */
    {NRM_BATCH_NORM}, {NRM_BATCH_NORM}};

static const lab_arm arms[ARMS] = {
    {"none_128", "no norm", 36, 10}, {"layer_128", "layer norm", 37, 10},
    {"hidden_128", "batch norm, hidden layers", 37, 10},
    {"all_128", "batch norm, logits too", 37, 3}, {"none_4", "no norm", 49, 3},
    {"layer_4", "layer norm", 52, 10},
    {"hidden_4", "batch norm, hidden layers", 54, 10}, {"all_4", "batch norm, logits too", 55, 3},
    {"hidden_4_biased", "hidden layers, biased variance", 27, 3},
    {"all_4_biased", "logits too, biased variance", 28, 3},
    {"none", "no norm", 9}, {"layer", "layer norm", 9}, {"group", "group norm", 9},
    {"batch", "batch norm", 11}, {"none_flat", "no norm", 9, 3}, {"layer_flat", "layer norm", 9, 3},
    {"group_flat", "group norm", 9, 3}, {"batch_flat", "batch norm", 11, 3},
    {"team_own", "8 workers, statistics of their own", 7},
    {"team_merged", "8 workers, merged statistics", 7}};
/* clang-format on */

static int is_team(size_t arm)
{
    return arm >= TEAM_OWN;
}

/* ---- data ------------------------------------------------------------------------------------ */

LAB_SETS(train, test, quick ? 800 : 0, quick ? 200 : 0, DATASET_STD);

/* ---- the network ----------------------------------------------------------------------------- */

static double shrink(size_t m) /* k of the opening comment */
{
    return sqrt((double)(m - 1) / (double)m);
}

/* Of figure 6 with Adam, of the curve with a learning rate for the examples of a step. */
static nrm_mlp_spec network(trainer *t)
{
    const size_t arm = t->run->arm, batch = t->plan->batch;
    const struct setup *s = &setups[arm];
    const int figure6 = arm < NONE, flat = arm >= NONE_FLAT && !is_team(arm);
    const size_t width = !figure6 ? CURVE_WIDTH : t->run->quick ? 32 : 256;
    nrm_mlp_spec spec = training_plain(t->layer, HIDDEN, width, NRM_RELU, s->norm);
    size_t l;
    for (l = 0; l <= HIDDEN; l++) t->layer[l].groups = GROUPS;
    if (s->all) {
        t->layer[HIDDEN].norm = s->norm;
        t->layer[HIDDEN].bias = 0;
    }
    spec.max_batch = MOST;
    spec.optimizer = figure6 ? NRM_ADAM : NRM_SGD;
    spec.lr = (nrm_real)(figure6 ? 1e-3 : flat ? 0.05 : 0.1 * (double)batch / 128);
    if (s->unbiased) {
        spec.eps = (nrm_real)((double)spec.eps * shrink(batch) * shrink(batch));
        spec.biased = 1;
    }
    return spec;
}

/* Adam's step as one of gamma, where the network holds k*gamma. */
static int learn_unbiased(trainer *t, nrm_acc *loss)
{
    const nrm_real k = (nrm_real)shrink(t->order.count);
    const nrm_mlp_state *s = t->net->state;
    nrm_real kept[HIDDEN + 1][256];
    size_t l, i;
    int status;
    for (l = 0; l <= HIDDEN; l++)
        if (s[l].gamma) memcpy(kept[l], s[l].gamma, s[l].shape.width * sizeof kept[l][0]);
    status = nrm_mlp_train_step(t->net, loss, t->order.x, t->order.labels, t->order.count);
    for (l = 0; l <= HIDDEN; l++)
        for (i = 0; s[l].gamma && i < s[l].shape.width; i++)
            s[l].gamma[i] = kept[l][i] + k * (s[l].gamma[i] - kept[l][i]);
    return status;
}

/* ---- eight workers --------------------------------------------------------------------------- */

/* What they have besides the network, which is the same for all: they take turns in one process.
   Rows w*m ... w*m+m-1 of a batch are worker w's. Statistics and sums of all workers together
   stand behind the workers' own. */
typedef struct team {
    int merged; /* 1: they normalize with the statistics of all */
    nrm_stats stats[HIDDEN][WORKERS + 1][CURVE_WIDTH];
    nrm_acc mean[HIDDEN][WORKERS][CURVE_WIDTH], rstd[HIDDEN][WORKERS][CURVE_WIDTH];
    nrm_sums sums[WORKERS + 1][CURVE_WIDTH];
} team;

/* Running statistics become those of the first worker. */
static int team_forward(void *context, nrm_mlp *net, size_t l, size_t N)
{
    team *t = (team *)context;
    nrm_mlp_state *s = &net->state[l];
    const size_t m = N / WORKERS, width = s->shape.width, part = m * width;
    int rc = NRM_OK;
    size_t w;
    memset(t->stats[l], 0, sizeof t->stats[l]);
    for (w = 0; w < WORKERS && rc == NRM_OK; w++) {
        rc = nrm_stats_update(t->stats[l][w], s->linear_out + w * part, NULL, m, width, 1);
        if (rc == NRM_OK) rc = nrm_stats_merge(t->stats[l][WORKERS], t->stats[l][w], width);
    }
    for (w = 0; w < WORKERS && rc == NRM_OK; w++)
        rc = nrm_sync_batchnorm_forward(s->norm_out + w * part, t->mean[l][w], t->rstd[l][w],
                                        w == 0 ? &s->running : NULL, s->linear_out + w * part, NULL,
                                        t->stats[l][t->merged ? WORKERS : w], s->gamma, s->beta,
                                        net->spec.eps, m, width, 1);
    return rc;
}

static int team_backward(void *context, nrm_mlp *net, size_t l, nrm_real *d, size_t N)
{
    team *t = (team *)context;
    nrm_mlp_state *s = &net->state[l];
    const size_t m = N / WORKERS, width = s->shape.width, part = m * width;
    size_t w, i;
    int rc = NRM_OK;
    memset(t->sums[WORKERS], 0, sizeof t->sums[WORKERS]);
    for (w = 0; w < WORKERS && rc == NRM_OK; w++) {
        rc = nrm_sync_batchnorm_sums(t->sums[w], s->dgamma, s->dbeta, d + w * part,
                                     s->linear_out + w * part, NULL, t->mean[l][w], t->rstd[l][w],
                                     m, width, 1);
        for (i = 0; i < width; i++) {
            t->sums[WORKERS][i].dy += t->sums[w][i].dy;
            t->sums[WORKERS][i].dy_xhat += t->sums[w][i].dy_xhat;
        }
    }
    for (w = 0; w < WORKERS && rc == NRM_OK; w++) {
        const size_t of = t->merged ? WORKERS : w;
        rc = nrm_sync_batchnorm_backward(d + w * part, d + w * part, s->linear_out + w * part, NULL,
                                         t->mean[l][w], t->rstd[l][w], s->gamma, t->stats[l][of],
                                         t->sums[of], m, width, 1);
    }
    return rc;
}

/* ---- probes: they leave the training as it was ----------------------------------------------- */

/* The length of the gradient by the first weights, over batches of m: median and mean; and the
   median over batches and units of one unit's part. */
static void first_gradient(lab_run *r, nrm_mlp *net, size_t m)
{
    const size_t n = r->quick ? 256 : PROBED, batches = n / m, units = batches * CURVE_WIDTH;
    const size_t weights = INPUTS * CURVE_WIDTH; /* they stand first in net->grads */
    static double all[PROBED / LEAST], unit[PROBED / LEAST * CURVE_WIDTH];
    size_t i, j;
    memset(unit, 0, sizeof unit);
    for (i = 0; i < batches; i++) {
        (void)nrm_mlp_gradient(net, NULL, train.x + i * m * INPUTS, train.labels + i * m, m,
                               NRM_TRAIN);
        all[i] = sqrt(training_squares(net->grads, weights));
        for (j = 0; j < weights; j++)
            unit[i * CURVE_WIDTH + j % CURVE_WIDTH] += pow((double)net->grads[j], 2);
    }
    for (i = 0; i < units; i++) unit[i] = sqrt(unit[i]);
    lab_record(r, "gradient_start_median", (double)m, stats_median(all, batches));
    lab_record(r, "gradient_start_mean", (double)m, stats_mean(all, batches));
    lab_record(r, "gradient_start_unit", (double)m, stats_median(unit, units));
}

/* The test error if batches of m test images are normalized by their own statistics. */
static double error_by_batches(nrm_mlp *net, size_t m)
{
    const size_t n = test.n - test.n % m;
    double right = 0;
    size_t i;
    for (i = 0; i < n; i += m) {
        nrm_acc share = 0;
        (void)nrm_mlp_gradient(net, NULL, test.x + i * INPUTS, test.labels + i, m, NRM_TRAIN);
        (void)nrm_accuracy(&share, net->logits, test.labels + i, m, CLASSES);
        right += (double)share * (double)m;
    }
    return 1 - right / (double)n;
}

static void record_test(trainer *t, const char *series, double x)
{
    lab_record(t->run, series, x, 1 - trainer_accuracy(t, &test, NULL));
}

/* ---- runs of figure 6 ------------------------------------------------------------------------ */

static int begin_figure6(trainer *t)
{
    const struct setup *s = &setups[t->run->arm];
    size_t l, i;
    for (l = 0; s->unbiased && l <= HIDDEN; l++)
        for (i = 0; t->net->state[l].gamma && i < t->net->state[l].shape.width; i++)
            t->net->state[l].gamma[i] *= (nrm_real)shrink(s->batch);
    *(double *)t->plan->context = 0;
    return 0;
}

static int add_loss(trainer *t)
{
    *(double *)t->plan->context += t->loss;
    return 0;
}

/* The mean loss of the steps since the last look, and the test error, by the epoch. */
static int look_figure6(trainer *t)
{
    double *sum = (double *)t->plan->context;
    const double epoch = (double)t->step / (double)training_steps(t->order.n, t->plan->batch);
    lab_record(t->run, "train_nll", epoch, *sum / (double)t->plan->every);
    record_test(t, "test_error", epoch);
    *sum = 0;
    return 0;
}

/* It is looked at when an epoch ends, and in its middle too if the batches are small. */
static int run_figure6(lab_run *r)
{
    const struct setup *s = &setups[r->arm];
    training_set first = train;
    double sum;
    trainer_plan plan =
        trainer_plan_of(.network = network, .begin = begin_figure6,
                        .learn = s->unbiased ? learn_unbiased : NULL, .after = add_loss,
                        .look = look_figure6, .set = &first, .batch = s->batch, .context = &sum);
    first.n = r->quick ? 400 : 55000;
    plan.steps = s->epochs * training_steps(first.n, s->batch);
    plan.every = training_steps(first.n, s->batch) / (s->batch < 128 ? 2 : 1);
    return trainer_run(r, &plan);
}

/* ---- runs of the curve ----------------------------------------------------------------------- */

static int learn_in_team(trainer *t, nrm_acc *loss)
{
    const training_between workers = {t->plan->context, team_forward, team_backward};
    const int status =
        training_gradient(t->net, loss, t->order.x, t->order.labels, t->order.count, &workers);
    return status == NRM_OK ? nrm_mlp_step(t->net) : status;
}

/* The workers' gradient against the library's: merged, that of one batch of 8m; else the mean of
   eight batches of m. The largest difference, relative to the largest gradient. */
static void check_team(trainer *t, size_t m)
{
    const training_between workers = {t->plan->context, team_forward, team_backward};
    const size_t all = WORKERS * m, n = t->net->n_params;
    const size_t part = t->run->arm == TEAM_MERGED ? all : m;
    nrm_real *off = (nrm_real *)malloc(n * sizeof *off);
    nrm_acc loss;
    size_t at, i;
    if (!off) return;
    (void)training_gradient(t->net, &loss, train.x, train.labels, all, &workers);
    memcpy(off, t->net->grads, n * sizeof *off);
    for (at = 0; at < all; at += part) {
        (void)nrm_mlp_gradient(t->net, &loss, train.x + at * INPUTS, train.labels + at, part,
                               NRM_TRAIN);
        for (i = 0; i < n; i++) off[i] -= t->net->grads[i] * (nrm_real)part / (nrm_real)all;
    }
    lab_record(t->run, "check_team", (double)m,
               training_farthest(off, NULL, n) / training_farthest(t->net->grads, NULL, n));
    free(off);
}

static size_t examples_of(const trainer *t) /* of one worker, or of the batch */
{
    return is_team(t->run->arm) ? t->plan->batch / WORKERS : t->plan->batch;
}

static int begin_curve(trainer *t)
{
    if (t->run->arm < NONE_FLAT && t->looked_at) first_gradient(t->run, t->net, examples_of(t));
    return 0;
}

static int end_curve(trainer *t)
{
    const size_t m = examples_of(t);
    record_test(t, "test_error", (double)m);
    if (is_team(t->run->arm) && t->run->quick) check_team(t, m);
    if (t->run->arm != BATCH) return 0;
    lab_record(t->run, "error_by_batches", (double)m, error_by_batches(t->net, m));
    if (training_reestimate(t->net, train.x, train.n) < 0) return -1;
    record_test(t, "error_anew", (double)m); /* running statistics from the training images */
    return 0;
}

static int run_curve(lab_run *r)
{
    static team workers;
    const size_t most = is_team(r->arm) ? MOST / WORKERS : MOST;
    training_set first = train;
    trainer_plan plan = trainer_plan_of(.network = network, .begin = begin_curve,
                                        .learn = is_team(r->arm) ? learn_in_team : NULL,
                                        .end = end_curve, .set = &first, .context = &workers);
    size_t m = r->arm == TEAM_MERGED ? 1 : LEAST;
    int failed = 0;
    workers.merged = r->arm == TEAM_MERGED;
    first.n -= first.n % WORKERS;
    for (; m <= most && !failed; m *= 2) {
        if (r->quick && m != 2 && m != 4 && m != 32) continue;
        plan.batch = is_team(r->arm) ? WORKERS * m : m;
        plan.steps = training_steps(first.n, plan.batch);
        failed = trainer_twice(r, &plan, r->quick ? "same_bits" : NULL); /* begin_curve looks */
    }
    return failed;
}

static int run(lab_run *r)
{
    return r->arm < NONE ? run_figure6(r) : run_curve(r);
}

static void check_workers(lab_report *r)
{
    const double off = lab_worst(r, "check_team");
    if (lab_quick(r))
        lab_check(r, off < 1e-4,
                  "8 workers: the gradient of one batch if merged, else the mean of 8 batches'",
                  "largest difference %.1e of the largest gradient", off);
}

/* ---- claims ---------------------------------------------------------------------------------- */

#define FIGURE_6 "Ba, Kiros and Hinton 2016, Fig. 6"
#define BESIDE_6 "ours, beside " FIGURE_6
#define DERIVATIVE "ours, from the derivative of batch norm (Ioffe and Szegedy 2015) at m = 2"
#define WORKERS_OURS "ours, of synchronised batch norm (docs/03_family.md)"
#define SMALL_BATCHES "a tutorial on batch and layer norm; Chinese notes on batch norm"

static const char *error_of(lab_report *r, size_t arm, double x)
{
    return lab_text(r, arm, "test_error", x, 4);
}

/* How much worse batch 4 is than batch 128 after as many examples. */
static double lost(const lab_report *r, size_t arm, size_t seed)
{
    return lab_at(r, arm, seed, "test_error", 6) -
           lab_at(r, arm - NONE_4 + NONE_128, seed, "test_error", 6);
}

static void judge_large(lab_report *r, const lab_claim *c)
{
    const lab_numbers batch = lab_mean_over(r, BATCH, "test_error", 32, MOST);
    const lab_numbers layer = lab_mean_over(r, LAYER, "test_error", 32, MOST);
    double m;
    int each = 1;
    for (m = 32; m <= MOST; m *= 2)
        each = each && lab_mean(r, BATCH, "test_error", m) <= lab_mean(r, LAYER, "test_error", m);
    lab_verdict(r, c, lab_less(batch, layer, each), "",
                "mean %.4f against %.4f; m = 32: %s against %s; 256: %s against %s",
                lab_describe(batch).mean, lab_describe(layer).mean, error_of(r, BATCH, 32),
                error_of(r, LAYER, 32), error_of(r, BATCH, 256), error_of(r, LAYER, 256));
}

static void judge_two(lab_report *r, const lab_claim *c)
{
    const lab_numbers two = lab_all(r, BATCH, c->series, 2), four = lab_all(r, BATCH, c->series, 4);
    const double worst = lab_describe(lab_calc(two, '/', four)).max; /* nan if one is */
    lab_verdict(r, c, lab_less(two, four, worst < 0.01), "",
                "%.2g against %.2g, ratio at most %.2g", lab_describe(two).mean,
                lab_describe(four).mean, worst);
}

/* Test errors that should be the same: of arm a at m and of arm b at `times` m, for m from `least`
   to `most`. The largest difference, nan if a value is missing; in quick runs, which have few
   sizes, missing ones do not count. */
static double farthest(const lab_report *r, size_t seed, size_t a, size_t b, double times,
                       double least, double most)
{
    double worst = 0, m;
    for (m = least; m <= most; m *= 2) {
        const double off =
            fabs(lab_at(r, a, seed, "test_error", m) - lab_at(r, b, seed, "test_error", times * m));
        if (!isnan(off) || !lab_quick(r)) worst = stats_larger(worst, off);
    }
    return worst;
}

static double from_one_machine(const lab_report *r, size_t arm, size_t seed)
{
    return farthest(r, seed, arm, BATCH, WORKERS, 1, (double)MOST / WORKERS);
}

static double from_layer_norm(const lab_report *r, size_t arm, size_t seed)
{
    return farthest(r, seed, arm, LAYER, 1, 2, 4);
}

#define LOWER(arm_a, arm_b)                                                                        \
    .test = LAB_LESS, .a = arm_a, .b = arm_b, .series = "test_error", .at = 6, .decimals = 4
#define FASTER(a, b)                                                                               \
    LAB_PARTS({LAB_LESS, a, b, "train_nll", 5}, {LAB_LESS, a, b, "train_nll", 10},                 \
              {LAB_LESS, a, b, "train_nll", 20}),                                                  \
        .decimals = -2, .say = "epoch 5: $1 against $2; 10: $3 against $4; 20: $5 against $6"
#define WORSE(a, b)                                                                                \
    LAB_PARTS({LAB_MORE, a, b, "test_error", 2}, {LAB_MORE, a, b, "test_error", 4}),               \
        .decimals = 4, .say = "m = 2: $1 against $2; m = 4: $3 against $4"

/* clang-format off */
static const lab_claim claims[] = {
    {"12a", "At batch 4 layer norm has a lower test error than batch norm of all layers", FIGURE_6,
     "0.015 against 0.017 to above 0.025, the end of the axis (65 epochs, width 1000)",
     "lower after 6 epochs, seed by seed; unbiased variance",
     "trial run (1 seed, biased variance, pixels 0..1, 3 epochs): 0.0247 against 0.0511",
     LAB_TRAINING, LAB_SETTING, LOWER(LAYER_4, ALL_4)},
    {"12b", "At batch 4 layer norm has a lower test error than batch norm of the hidden layers",
     BESIDE_6, "not drawn: batch norm is \"applied to all layers\"",
     "lower after 6 epochs, seed by seed; unbiased variance",
     "trial run (1 seed, biased variance, pixels 0..1, 3 epochs): 0.0247 against 0.0403",
     LAB_TRAINING, LAB_SETTING, LOWER(LAYER_4, HIDDEN_4)},
    {"12c", "Layer norm loses little by going from batch 128 to batch 4", FIGURE_6,
     "0.013 to 0.015; batch norm 0.0135 to 0.017 and more", "error at batch 4 minus error at batch "
     "128, both after 6 epochs: at most 0.005 in the mean, and smaller than that of batch norm of "
     "all layers, seed by seed", "none", LAB_TRAINING, LAB_SETTING,
     .test = LAB_LESS, .a = LAYER_4, .b = ALL_4, .each = lost, .a_mean = {-HUGE_VAL, 0.005},
     .say = "layer norm #1[%+.4f], batch norm of all layers #2[%+.4f]"},
    {"12d", "At batch 128 layer norm trains faster than batch norm of all layers", FIGURE_6,
     "training loss below 1e-7 by epoch 30 against 1e-4 at epoch 65",
     "lower training loss at epochs 5, 10 and 20, seed by seed",
     "trial run (1 seed, pixels 0..1), epoch 5: 0.033 against 0.063", LAB_TRAINING, LAB_SETTING,
     FASTER(LAYER_128, ALL_128)},
    {"12e", "At batch 128 layer norm trains faster than batch norm of the hidden layers", BESIDE_6,
     "not drawn", "lower training loss at epochs 5, 10 and 20, seed by seed",
     "trial run (1 seed, pixels 0..1), epoch 5: 0.033 against 0.025: expected to fail",
     LAB_TRAINING, LAB_NEWS, FASTER(LAYER_128, HIDDEN_128)},
    {"12f", "At batch 128 both norms end with a lower test error than no norm", FIGURE_6,
     "layer norm 0.013, batch norm 0.0135, none 0.015",
     "layer norm and batch norm of all layers each below none after 20 epochs, seed by seed",
     "trial run (1 seed, pixels 0..1, 15 epochs): layer 0.0199, batch 0.0171, none 0.0201",
     LAB_TRAINING, LAB_SETTING,
     LAB_PARTS({LAB_LESS, LAYER_128, NONE_128, "test_error", 20},
               {LAB_LESS, ALL_128, NONE_128, "test_error", 20}),
     .decimals = 4, .say = "layer norm $1, batch norm $3, none $2"},
    {"12g", "At batch 4 the training loss is lowest with layer norm, highest with batch norm",
     FIGURE_6, "layer norm 1e-3, none 5e-3, batch norm 4e-2",
     "layer norm below none, none below batch norm of all layers after 6 epochs, seed by seed",
     "none", LAB_TRAINING, LAB_SETTING,
     LAB_PARTS({LAB_LESS, LAYER_4, NONE_4, "train_nll", 6},
               {LAB_LESS, NONE_4, ALL_4, "train_nll", 6}),
     .decimals = -2, .say = "layer norm $1, none $2, batch norm $4"},
    {"12h", "Batch norm is worse than layer norm at batch sizes 2 and 4", SMALL_BATCHES,
     "no numbers", "higher test error at 2 and at 4, seed by seed; learning rate 0.1*m/128",
     "trial run (1 seed, 16,000 and 32,000 examples at 2 and 4), accuracy: 0.653 against 0.928 and "
     "0.916 against 0.943", LAB_TRAINING, LAB_SETTING, WORSE(BATCH, LAYER)},
    {"12i", "Batch norm is at least as good as layer norm from batch size 32 on",
     "ours, the other end of 12h", "no numbers", "lower test error, mean over 32, 64, 128, 256, "
     "seed by seed; and in the mean over seeds at each of the four",
     "trial run (1 seed), accuracy at 128: 0.960 against 0.956", LAB_TRAINING, LAB_SETTING,
     judge_large},
    {"12j", "Batch norm is worse than layer norm at 2 and 4, at one learning rate for all sizes",
     SMALL_BATCHES, "no numbers",
     "higher test error at 2 and at 4, seed by seed; learning rate 0.05 at every m", "none",
     LAB_TRAINING, LAB_SETTING, WORSE(BATCH_FLAT, LAYER_FLAT)},
    {"12k", "At batch size 2 batch norm passes practically no gradient to a unit before it",
     DERIVATIVE, "eps/(v + eps) of what it would be", "length of the gradient by one unit's first "
     "weights before training, median over units and batches: at m = 2 below 1 % of that at m = 4 "
     "in every seed", "trial run (1 layer): 0.0028 against 1 to 3; short runs of this program "
     "(seeds 1, 2): 0.00016 against 0.78", LAB_TRAINING, LAB_SETTING, judge_two,
     .series = "gradient_start_unit"},
    {"12l", "... and so practically none to the layer", DERIVATIVE, "the same",
     "the same with the length of the gradient by all first weights, median over batches",
     "short runs of this program (seeds 1, 2): the median at m = 2 is above that at m = 4: rare "
     "units in which the two values nearly agree rule it; expected to fail", LAB_TRAINING, LAB_NEWS,
     judge_two, .series = "gradient_start_median"},
    {"12m", "Statistics merged over 8 workers make up for few examples on each", WORKERS_OURS,
     "no numbers",
     "lower test error than with statistics of their own at m = 2 and m = 4, seed by seed", "none",
     LAB_TRAINING, LAB_SETTING, WORSE(TEAM_OWN, TEAM_MERGED)},
    {"12n", "8 workers with m examples and merged statistics train as one batch of 8m does",
     WORKERS_OURS, "equal but for rounding", "exact but for rounding, which training enlarges: "
     "test errors within 0.005 of each other at every 8m from 8 to 256 in every seed", "none",
     LAB_IDENTITY, LAB_SETTING, .test = LAB_BELOW, .a = TEAM_MERGED, .each = from_one_machine,
     .limit = 0.005, .say = "the largest difference is #1[max %.4f]"},
    {"12o", "Post hoc: group norm does as layer norm does at batch sizes 2 and 4",
     "ours, written after the run", "no numbers",
     "test errors within 0.005 of each other at 2 and at 4 in every seed; learning rate 0.1*m/128",
     "the run itself: claim and criterion were written when its test errors were known",
     LAB_TRAINING, LAB_SETTING,
     LAB_PARTS({LAB_BELOW, GROUP, .each = from_layer_norm, .limit = 0.005},
               {.a = GROUP, .series = "test_error", .at = 2},
               {.a = LAYER, .series = "test_error", .at = 2},
               {.a = GROUP, .series = "test_error", .at = 4},
               {.a = LAYER, .series = "test_error", .at = 4}),
     .decimals = 4, .say = "m = 2: $2 against $3; m = 4: $4 against $5; the largest difference is "
     "#1[max %.4f]", .remark = "post hoc"}};
/* clang-format on */

/* ---- pages ----------------------------------------------------------------------------------- */

static plot_style look_of(size_t arm)
{
    static const int marker[4] = {PLOT_SQUARE, PLOT_DIAMOND, PLOT_TRIANGLE, PLOT_CIRCLE};
    static const char *const id[] = {[NRM_NO_NORM] = "none",
                                     [NRM_LAYER_NORM] = "layer",
                                     [NRM_GROUP_NORM] = "group",
                                     [NRM_BATCH_NORM] = "batch"};
    const struct setup *setup = &setups[arm];
    plot_style s = lab_style(id[setup->norm]);
    if (arm >= NONE) return plot_with_marker(s, marker[(arm - NONE) % 4]);
    if (arm == HIDDEN_4_BIASED || arm == ALL_4_BIASED)
        s.dash = PLOT_DOTTED;
    else if (setup->all) {
        s.marker = PLOT_SQUARE;
        s.marker_every = setup->batch == 4 ? 1 : 2;
    }
    return s;
}

/* The paper's values of no norm, layer norm and batch norm at the end of its 65 epochs (0: far
   below our axis), at the right edge. */
static void draw_paper(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    static const double of[4][3] = {
        {0, 0, 0}, {5e-3, 1e-3, 4e-2}, {0.015, 0.013, 0.0135}, {0.016, 0.015, 0.025}};
    static const size_t paper[3] = {NONE_128, LAYER_128, ALL_128};
    const double *value = of[2 * panel->axes.row + panel->axes.col];
    size_t i;
    (void)r;
    for (i = 0; i < 3; i++) {
        const plot_style s = {look_of(paper[i]).color, .marker = PLOT_RING, .size = 1.3};
        plot_scatter(p, i == 2 ? "rings: the paper at epoch 65" : NULL, &panel->value, &value[i], 1,
                     s);
    }
}

/* Batch norm on one machine, moved to m = batch/8. */
static void draw_one_machine(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    const lab_curve c = lab_over_seeds(r, BATCH, "test_error");
    plot_style s = plot_marked(PLOT_INK, PLOT_RING);
    size_t i;
    (void)panel;
    s.size = 1.5;
    for (i = 0; i < c.n; i++) {
        const double x = c.x[i] / WORKERS;
        if (x >= 1) plot_scatter(p, "one batch of 8m", &x, &c.mean[i], 1, s);
    }
}

/* clang-format off */
#define LOSS .y = "training loss (nats)", .y_scale = PLOT_LOG10, .grid = PLOT_GRID_Y,              \
    .y_range = {7e-4, 2}
#define ERROR .y = "test error", .y_range = {0.005, 0.06}, .grid = PLOT_GRID_Y
#define IN_128 .x = "epoch", .x_range = {0, 21}
#define IN_4 .x = "epoch", .x_range = {0, 6.3}
#define OF_128(of) .line = {{NONE_128, of, .to = ALL_128}}, .draw = draw_paper, .value = 20.7
#define OF_4(of) .line = {{NONE_4, of, .to = ALL_4_BIASED}}, .draw = draw_paper, .value = 6.2

static const lab_panel figure_6[] = {
    {.axes = {.heading = "batch 128", IN_128, LOSS}, OF_128("train_nll"),
     .mark = {{LAB_NOTE_IN, 0.03, 0.14, "the paper at epoch 65: batch norm 10^{-4},"},
              {LAB_NOTE_IN, 0.03, 0.05, "layer norm and none below 10^{-7}"}}},
    {.axes = {.col = 1, .heading = "batch 4", IN_4, LOSS}, OF_4("train_nll")},
    {.axes = {.row = 1, IN_128, ERROR}, OF_128("test_error")},
    {.axes = {1, 1, IN_4, ERROR}, OF_4("test_error")}};

/* Where there is one power of ten on an axis, the ticks of the others are not enough to read it.
   The highest error leaves room for legends: no line is above them. */
#define ERRORS(highest) .x_scale = PLOT_LOG2, .y = "test error", .y_scale = PLOT_LOG10,            \
    .y_range = {0.03, highest}, .y_ticks = errors, .y_names = names, .y_count = LAB_COUNT(errors), \
    .grid = PLOT_GRID_Y
#define GRADIENTS .x = "batch size m", .x_scale = PLOT_LOG2, .y = "gradient before training",      \
    .y_scale = PLOT_LOG10, .grid = PLOT_GRID_Y, .legend = PLOT_LEGEND_NONE
#define LEGEND .legend = PLOT_LEGEND_TOP_RIGHT
#define MARKED(line_color, line_dash, shape)                                                       \
    {line_color, .dash = line_dash, .marker = shape, .marker_every = 1}

#define FOUR(first, last, series) .line = {{first, series, .to = last}}

static const double errors[] = {0.03, 0.05, 0.1, 0.2, 0.5, 1};
static const char *const names[] = {"0.03", "0.05", "0.1", "0.2", "0.5", "1"};
static const lab_panel curve[] = {
    {.axes = {.heading = "learning rate 0.1·m/128", .x = "batch size m", ERRORS(1.2), LEGEND},
     FOUR(NONE, BATCH, "test_error")},
    {.axes = {.col = 1, .heading = "learning rate 0.05 (colours of a)", .x = "batch size m",
              ERRORS(1.2), .legend = PLOT_LEGEND_NONE},
     FOUR(NONE_FLAT, BATCH_FLAT, "test_error")},
    {.axes = {.col = 2, .heading = "eight workers, m each", .x = "examples m of a worker",
              ERRORS(1.2), LEGEND},
     .line = {{TEAM_OWN, "test_error", "own statistics",
               MARKED(PLOT_GREY, PLOT_DASHED, PLOT_WEDGE)},
              {TEAM_MERGED, "test_error", "merged statistics",
               MARKED(PLOT_BLUE, PLOT_SOLID, PLOT_CIRCLE)}},
     .draw = draw_one_machine},
    {.axes = {.row = 1, .heading = "batch norm's test statistics", .x = "batch size m",
              ERRORS(1.6), LEGEND},
     .line = {{BATCH, "test_error", "running", MARKED(PLOT_BLUE, PLOT_SOLID, PLOT_CIRCLE)},
              {BATCH, "error_by_batches", "of m test images",
               MARKED(PLOT_GREY, PLOT_DASHED, PLOT_WEDGE)},
              {BATCH, "error_anew", "anew, training images",
               MARKED(PLOT_INK, PLOT_DASHDOT, PLOT_SQUARE)}}},
    {.axes = {1, 1, .heading = "first layer (colours of a)", GRADIENTS},
     FOUR(NONE, BATCH, "gradient_start_median")},
    {.axes = {1, 2, .heading = "its median unit (colours of a)", GRADIENTS},
     FOUR(NONE, BATCH, "gradient_start_unit")}};

static const lab_page pages[] = {
    {"In batches of 4 layer norm learns best and batch norm worst; in 128 they are alike", NULL,
     1340, .shared_legend = 1, .seeds = 10, LAB_PANELS(figure_6),
     .settings = "784-256-256-10, ReLU, Adam with learning rate 0.001, batch 128 and 4; three "
                 "seeds with the logits, with the biased variance, and for no norm in 4"},
    {"Batch norm fails at batch sizes 2 and 4; layer and group norm hardly notice", "curve",
     1170, .seeds = 5, LAB_PANELS(curve),
     .settings = "784-128-128-10, ReLU, SGD, one pass over 60,000 images; b with three seeds"}};

LAB_PROGRAM("12_batch_size", "What do small mini-batches do to batch norm, layer norm, group norm?",
            "a-b: 784-256-256-10, ReLU, Adam 1e-3, batch 128 and 4; curve: 784-128-128-10, ReLU, "
            "SGD, 60,000 examples",
            .revision = 2, .uses = LAB_USES_DATA + LAB_TWICE, .prepare = prepare,
            .look = look_of, .after = check_workers)
