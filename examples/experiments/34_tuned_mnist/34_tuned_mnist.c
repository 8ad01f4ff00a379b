/* 34_tuned_mnist: the MNIST comparison once more, each network at its own best learning rate.

   The network of 10_mnist_norms, with γ = 1 at the start, is trained at RATES rates from 0.003 to
   10 without a norm and with batch, layer, group (8 groups), RMS and noisy batch norm. The last
   5,000 training images are held out; a network's own rate is the one with the highest mean
   accuracy on them after the last epoch, over the seeds. Then the same for batches of 4 to 4096 in
   fewer epochs, each size of the batch with a rate of its own; noisy batch norm is not among these.

   Noisy batch norm is tested as it is and with γ and β times E[s] = 1.125, the mean of its noise's
   factor (header, NB.6), which inference leaves out. The two readings of one training count as two
   networks, each with a rate of its own.

   A training whose loss is not finite ends there and counts as chance, 10 %. Steps to a loss are
   those until the mean training loss of the last WINDOW batches is below 0.5. Seconds are the steps
   times the time of a step, which `34_tuned_mnist --time` measures: a clock in the runs would leave
   another table each time. */
#include "normlayers.h"
#include "lab/training.h"
#include "lab/lab.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BATCH = 512, EPOCHS = 10, SIZE_EPOCHS = 2, HELD_OUT = 5000, EVALUATED = 1000, WINDOW = 5 };
enum { RATES = 10, SIZES = 6, SIZE_RATES = 7, EARLY = 5, QUICK_STEPS = 20 };

#define SETTINGS "784-64-128-10, ReLU, γ = 1, SGD, batches of 512, 10 epochs of 55,000 images"
#define NOISE_FACTOR 1.125 /* NB.6 with the paper's noise */

static const double rate[RATES] = {0.003, 0.01, 0.03, 0.1, 0.2, 0.5, 1, 2, 5, 10};
static const size_t size[SIZES] = {4, 16, 64, 256, 1024, 4096}; /* of a batch */
static const double size_rate[SIZE_RATES] = {0.003, 0.01, 0.03, 0.1, 0.3, 1, 3};
static const size_t early[EARLY] = {4, 8, 16, 32, 64}; /* steps with a test, beside the epochs */

/* ---- the arms -------------------------------------------------------------------------------- */

enum { NONE = 0, BATCH_NORM, LAYER, GROUP, RMS, SIZE_ARMS, NOISY = SIZE_ARMS, ARMS };

static const lab_arm arms[ARMS] = {
    {"none", "no norm", 40, 0},     {"batch", "batch norm", 40, 0},
    {"layer", "layer norm", 40, 0}, {"group", "group norm", 40, 0},
    {"rms", "RMS norm", 40, 0},     {"noisy", "noisy batch norm", 65, 0}};
static const int norm[ARMS] = {NRM_NO_NORM,    NRM_BATCH_NORM, NRM_LAYER_NORM,
                               NRM_GROUP_NORM, NRM_RMS_NORM,   NRM_NOISY_BATCH_NORM};

static training_set train, held_out, test;

static int prepare(const dataset *d, int quick)
{
    (void)quick;
    if (training_load(&train, &test, d, 0, 0, DATASET_RAW01)) return -1;
    held_out = train;
    held_out.n = train.n * HELD_OUT / 60000;
    train.n -= held_out.n;
    held_out.x += train.n * train.features;
    held_out.labels += train.n;
    return 0;
}

/* ---- one training ---------------------------------------------------------------------------- */

typedef struct trial {
    lab_run *run;
    const char *name; /* what its series begin with */
    double rate;
    size_t batch, epochs;
    int whole; /* 1: tests on the way and steps to a loss; 0: the end alone */
    nrm_mlp *net;
    nrm_real *params; /* room for a copy */
    training_order order;
} trial;

static nrm_mlp *make_net(const trial *t, void **block)
{
    nrm_mlp_layer layer[3];
    nrm_mlp_spec spec = training_notebook(layer, norm[t->run->arm]);
    layer[0].groups = layer[1].groups = norm[t->run->arm] == NRM_GROUP_NORM ? 8 : 0;
    spec.max_batch = t->batch > EVALUATED ? t->batch : EVALUATED;
    spec.seed = t->run->seed;
    spec.lr = (nrm_real)t->rate;
    return training_net(&spec, block);
}

/* Loss and accuracy in percent; the digits of the table are those that 10,000 images give. */
static int score(trial *t, const char *what, const training_set *set, double x)
{
    nrm_acc loss = 0, accuracy = 0;
    const int status = nrm_mlp_eval(t->net, &loss, &accuracy, set->x, set->labels, set->n);
    lab_record_as(t->run, x, lab_round(100 * (double)accuracy, 4), "%s/%saccuracy", t->name, what);
    lab_record_as(t->run, x, lab_round((double)loss, 4), "%s/%sloss", t->name, what);
    return status < 0 ? -1 : 0;
}

/* The norms' outputs times the mean of the noise's factor. */
static void stretch(nrm_mlp *net)
{
    nrm_mlp_state *s;
    size_t i;
    for (s = net->state; s < net->state + net->spec.layers; s++)
        for (i = 0; i < s->shape.width && s->gamma; i++) {
            s->gamma[i] *= (nrm_real)NOISE_FACTOR;
            s->beta[i] *= (nrm_real)NOISE_FACTOR;
        }
}

static int evaluate(trial *t, size_t step, int last)
{
    int failed = score(t, "", &test, (double)step);
    if (last) failed = failed || score(t, "held_out_", &held_out, (double)step);
    if (norm[t->run->arm] != NRM_NOISY_BATCH_NORM) return failed;
    memcpy(t->params, t->net->params, t->net->n_params * sizeof *t->params);
    stretch(t->net);
    failed = failed || score(t, "factor_", &test, (double)step);
    if (last) failed = failed || score(t, "factor_held_out_", &held_out, (double)step);
    memcpy(t->net->params, t->params, t->net->n_params * sizeof *t->params);
    return failed;
}

/* What a training that blew up is worth. */
static void give_up(trial *t, double step)
{
    static const char *const what[4] = {"", "held_out_", "factor_", "factor_held_out_"};
    int i;
    for (i = 0; i < (norm[t->run->arm] == NRM_NOISY_BATCH_NORM ? 4 : 2); i++)
        lab_record_as(t->run, step, 10, "%s/%saccuracy", t->name, what[i]);
}

static int is_test(const trial *t, size_t step)
{
    const size_t steps = training_steps(train.n, t->batch), epoch = step / steps;
    size_t i;
    for (i = 0; i < EARLY; i++)
        if (early[i] == step) return t->whole;
    return t->whole && step % steps == 0 && (epoch <= 3 || epoch == 5 || epoch == 7);
}

static int steps_of(trial *t)
{
    const size_t all = t->epochs * training_steps(train.n, t->batch);
    const size_t steps = t->run->quick && all > QUICK_STEPS ? QUICK_STEPS : all;
    double last[WINDOW] = {0};
    size_t step;
    int reached = 0;
    for (step = 1; step <= steps; step++) {
        nrm_acc loss = 0;
        training_go_on(&t->order, &train, 2); /* batch norm takes no batch of one */
        if (nrm_mlp_train_step(t->net, &loss, t->order.x, t->order.labels, t->order.count) < 0)
            return -1;
        if (!(fabs((double)loss) < 1e6)) {
            give_up(t, (double)steps);
            return 0;
        }
        last[step % WINDOW] = (double)loss;
        if (!reached && step >= WINDOW && t->whole && stats_mean(last, WINDOW) < 0.5) {
            lab_record_as(t->run, 0, (double)step, "%s/steps_to_half", t->name);
            reached = 1;
        }
        if ((is_test(t, step) || step == steps) && evaluate(t, step, step == steps)) return -1;
    }
    return 0;
}

static int training(trial *t)
{
    void *block = NULL;
    int failed = 1;
    t->net = make_net(t, &block);
    t->params = t->net ? (nrm_real *)malloc(t->net->n_params * sizeof *t->params) : NULL;
    if (t->params &&
        !training_order_start(&t->order, train.n, t->batch, train.features, t->run->seed))
        failed = steps_of(t);
    training_order_free(&t->order);
    free(t->params);
    free(block);
    return failed ? -1 : 0;
}

static int run(lab_run *r)
{
    char name[64];
    size_t i, k;
    trial t;
    memset(&t, 0, sizeof t);
    t.run = r;
    t.name = name;
    for (i = 0; i < RATES; i++) {
        t.rate = rate[i];
        t.batch = BATCH;
        t.epochs = r->quick ? 1 : EPOCHS;
        t.whole = 1;
        (void)snprintf(name, sizeof name, "rate_%g", rate[i]);
        if (training(&t)) return -1;
        lab_progress(r, 0.6 * (double)(i + 1) / RATES);
    }
    for (k = 0; k < SIZES && r->arm < SIZE_ARMS; k++)
        for (i = 0; i < SIZE_RATES; i++) {
            t.rate = size_rate[i];
            t.batch = size[k];
            t.epochs = r->quick ? 1 : SIZE_EPOCHS;
            t.whole = 0;
            (void)snprintf(name, sizeof name, "batch_%u/rate_%g", (unsigned)size[k], size_rate[i]);
            if (training(&t)) return -1;
            lab_progress(r, 0.6 + 0.4 * (double)(k * SIZE_RATES + i + 1) / (SIZES * SIZE_RATES));
        }
    return 0;
}

/* ---- each network's own rate ----------------------------------------------------------------- */

enum { FACTOR = ARMS, NETS }; /* the noisy network with its factor is a network of its own */

static const struct {
    size_t arm;
    const char *prefix, *name, *look;
} net[NETS] = {{NONE, "", "no norm", "none"},
               {BATCH_NORM, "", "batch norm", "batch"},
               {LAYER, "", "layer norm", "layer"},
               {GROUP, "", "group norm", "group"},
               {RMS, "", "RMS norm", "rms"},
               {NOISY, "", "noisy batch norm", "noisy"},
               {NOISY, "factor_", "noisy, times 1.125", "noisy"}};

/* CPU seconds of an epoch of 55,000 images, `34_tuned_mnist --time`: one thread of a Xeon at -O3
   -march=native, the median of ROUNDS rounds in which all networks take their turn. */
static const double epoch_seconds[NETS] = {0, 0, 0, 0, 0, 0, 0};

static struct { /* indices of rates */
    size_t own[NETS], fastest[NETS], at_size[SIZES][SIZE_ARMS];
} chosen;

static const char *of(lab_report *r, size_t n, double lr, const char *what)
{
    return lab_format(r, "rate_%g/%s%s", lr, net[n].prefix, what);
}

static const char *of_size(lab_report *r, size_t k, double lr, const char *what)
{
    return lab_format(r, "batch_%u/rate_%g/%s", (unsigned)size[k], lr, what);
}

static const char *own(lab_report *r, size_t n, const char *what)
{
    return of(r, n, rate[chosen.own[n]], what);
}

/* The seeds' values at the end. */
static size_t ends(lab_report *r, size_t n, const char *series, double *value)
{
    return lab_values(r, net[n].arm, series, LAB_LAST, value);
}

static double mean_end(lab_report *r, size_t n, const char *series)
{
    return lab_mean(r, net[n].arm, series, LAB_LAST);
}

/* Steps to a loss of 0.5; of a noisy network, which is trained once and read twice, the same. */
static const char *steps_at(lab_report *r, size_t i)
{
    return lab_format(r, "rate_%g/steps_to_half", rate[i]);
}

static void choose(lab_report *r)
{
    size_t n, i, k;
    memset(&chosen, 0, sizeof chosen);
    for (n = 0; n < NETS; n++) {
        double most = -1, least = (double)INFINITY;
        for (i = 0; i < RATES; i++) {
            const double accuracy = mean_end(r, n, of(r, n, rate[i], "held_out_accuracy"));
            const double steps = mean_end(r, n, steps_at(r, i)); /* nan if a seed never got there */
            if (accuracy > most) chosen.own[n] = i;
            if (accuracy > most) most = accuracy;
            if (steps < least) chosen.fastest[n] = i;
            if (steps < least) least = steps;
        }
    }
    for (n = 0; n < SIZE_ARMS; n++)
        for (k = 0; k < SIZES; k++) {
            double most = -1;
            for (i = 0; i < SIZE_RATES; i++) {
                const double accuracy =
                    mean_end(r, n, of_size(r, k, size_rate[i], "held_out_accuracy"));
                if (accuracy > most) chosen.at_size[k][n] = i;
                if (accuracy > most) most = accuracy;
            }
        }
}

/* ---- claims ---------------------------------------------------------------------------------- */

enum {
    STEPS,
    FASTEST,
    ACCURACY,
    LARGER,
    SECONDS,
    LAYER_FASTER,
    SMALL_LAYER,
    SMALL_GROUP,
    RMS_GOOD,
    RMS_CHEAP,
    NOISE,
    WITH_FACTOR,
    GAP,
    BATCH_OR_LAYER,
    CLAIMS
};

#define PILOT "one trial run (seed 1, one epoch, on the training images only): "

static const lab_claim claims[CLAIMS] = {
    {"34a", "Each at its own best rate, batch norm needs far fewer steps",
     "Ioffe & Szegedy 2015, abstract",
     "the same accuracy with 14 times fewer steps (ImageNet, with rates only batch norm allows)",
     "at the rates of highest held-out accuracy: a training loss of 0.5 in at most half the steps, "
     "seed by seed",
     PILOT "30 steps at 0.1 against 62 at 0.5", LAB_TRAINING, LAB_SETTING},
    {"34b", "Each at its fastest rate, batch norm needs far fewer steps",
     "Ioffe & Szegedy 2015, abstract",
     "the same accuracy with 14 times fewer steps (ImageNet, with rates only batch norm allows)",
     "at the rates of fewest steps to a training loss of 0.5: at most half the steps, seed by seed",
     PILOT "11 steps at 0.5 and 1 against 62 at 0.5", LAB_TRAINING, LAB_SETTING},
    {"34c", "Each at its own best rate, batch norm ends more accurate",
     "Ioffe & Szegedy 2015, Figure 3", "74.8 against 72.2 % (ImageNet)",
     "higher test accuracy after the last epoch, seed by seed",
     PILOT "94.8 against 92.3 % of held-out images", LAB_TRAINING, LAB_SETTING},
    {"34d", "Batch norm works at larger learning rates", "Ioffe & Szegedy 2015; Bjorck et al. 2018",
     "5 to 30 times the rate (ImageNet)",
     "the largest rate whose held-out accuracy is within a point of the seed's best is more than "
     "twice that without a norm, seed by seed",
     PILOT "best at 0.1 against 0.5; but batch norm at 5 is within a point of its best",
     LAB_TRAINING, LAB_SETTING},
    {"34e", "It also pays in time", "ours: seconds in place of steps", "not discussed",
     "each at its own best rate: fewer seconds to a training loss of 0.5, seed by seed",
     PILOT "an epoch takes up to a third longer", LAB_TRAINING, LAB_SETTING},
    {"34f", "Layer norm trains faster than batch norm",
     "Ba, Kiros & Hinton 2016, section 6.6 (MNIST)",
     "faster convergence, at batches of 128 and of 4; curves only",
     "each at its own best rate, batches of 512: fewer steps to a training loss of 0.5, seed by "
     "seed",
     PILOT "48 steps at 0.2 against 30 at 0.1", LAB_TRAINING, LAB_SETTING},
    {"34g", "Batch norm suffers in small batches, layer norm does not",
     "Ba, Kiros & Hinton 2016, Figure 6",
     "with batches of 4 layer norm's test error stays near that with 128, batch norm's does not",
     "each at its own best rate for the size: at 4 layer norm's test accuracy is higher than batch "
     "norm's, and by more than at 256, seed by seed",
     PILOT "at 4: 96.6 against 95.1 % of held-out images", LAB_TRAINING, LAB_SETTING},
    {"34h", "Group norm is better than batch norm in small batches", "Wu & He 2018, abstract",
     "10.6 points lower error at a batch size of 2 (ImageNet)",
     "each at its own best rate for a batch of 4: higher test accuracy, seed by seed", "none",
     LAB_TRAINING, LAB_SETTING},
    {"34i", "RMS norm is as good as layer norm", "Zhang & Sennrich 2019, abstract",
     "comparable performance",
     "each at its own best rate: test accuracies less than 0.2 points apart, seed by seed",
     PILOT "94.6 and 94.4 % of held-out images", LAB_TRAINING, LAB_SETTING},
    {"34j", "RMS norm takes 7 to 64 % less time than layer norm", "Zhang & Sennrich 2019, abstract",
     "7 to 64 %, by model", "the CPU time of an epoch of this network is at least 7 % lower",
     PILOT "0.13 s each", LAB_ARITHMETIC, LAB_SETTING},
    {"34k", "With noise behind it, batch norm still beats no norm",
     "Santurkar et al. 2018, Figure 2", "noisy batch norm above no norm throughout; curves only",
     "each at its own best rate, noisy batch norm tested with its factor: higher test accuracy, "
     "and fewer steps to a training loss of 0.5, seed by seed",
     PILOT "95.5 against 92.3 % of held-out images, without the factor", LAB_TRAINING, LAB_SETTING},
    {"34l", "The factor 1.125 belongs to the noisy network at inference", "ours: the header's NB.6",
     "not discussed", "at the best rate with it: test loss lower than without, seed by seed",
     "none here; 13s to 13u", LAB_TRAINING, LAB_SETTING},
    {"34m", "Most of the gap at the notebook's rate belongs to the rate", "ours", "not discussed",
     "test accuracy with batch norm minus that without: at the own best rates at most half of that "
     "at 0.01, seed by seed",
     "another program's runs (20 epochs, three seeds): 6.6 points at 0.01, 1.0 at the better of "
     "0.3 and 1",
     LAB_TRAINING, LAB_SETTING},
    {"34n", "Each at its own best rate, batch norm ends more accurate than layer norm", "ours",
     "not discussed", "batches of 512: higher test accuracy after the last epoch, seed by seed",
     "another program's runs (20 epochs, three seeds): 97.7 and 97.2 % at the better of 0.3 and 1",
     LAB_TRAINING, LAB_SETTING},
};

/* a below (sign -1) or above (+1) factor * b, seed by seed. */
static stats_finding judge(const double *a, const double *b, double factor, size_t n, int sign)
{
    double limit[LAB_SEEDS_MAX];
    size_t s;
    for (s = 0; s < n; s++) limit[s] = factor * b[s];
    return stats_judge_pairs(a, limit, n, sign, 1);
}

/* At most `share` of the steps? */
static void judge_steps(lab_report *r, int claim, size_t a, size_t b, const size_t *at,
                        double share)
{
    double va[LAB_SEEDS_MAX], vb[LAB_SEEDS_MAX];
    const size_t n = ends(r, a, steps_at(r, at[a]), va);
    (void)ends(r, b, steps_at(r, at[b]), vb);
    lab_verdict(r, &claims[claim], judge(va, vb, share, n, -1), "",
                "%s steps at rate %g, %s at %g: %.1f times",
                lab_mean_sd(r, stats_describe(va, n), 0), rate[at[a]],
                lab_mean_sd(r, stats_describe(vb, n), 0), rate[at[b]],
                stats_mean(vb, n) / stats_mean(va, n));
}

static void judge_accuracy(lab_report *r, int claim, size_t a, size_t b)
{
    double va[LAB_SEEDS_MAX], vb[LAB_SEEDS_MAX];
    const size_t n = ends(r, a, own(r, a, "accuracy"), va);
    (void)ends(r, b, own(r, b, "accuracy"), vb);
    lab_verdict(r, &claims[claim], judge(va, vb, 1, n, +1), "", "%s %% at rate %g, %s %% at %g",
                lab_mean_sd(r, stats_describe(va, n), 2), rate[chosen.own[a]],
                lab_mean_sd(r, stats_describe(vb, n), 2), rate[chosen.own[b]]);
}

/* The largest rate within a point of the seed's best. */
static size_t largest(lab_report *r, size_t n, double *value)
{
    double at[RATES][LAB_SEEDS_MAX];
    size_t i, s, seeds = 0;
    for (i = 0; i < RATES; i++) seeds = ends(r, n, of(r, n, rate[i], "held_out_accuracy"), at[i]);
    for (s = 0; s < seeds; s++) {
        double best = 0;
        for (i = 0; i < RATES; i++) best = stats_larger(best, at[i][s]);
        for (i = 0; i < RATES; i++)
            if (at[i][s] >= best - 1) value[s] = rate[i];
    }
    return seeds;
}

static void judge_larger(lab_report *r)
{
    double with[LAB_SEEDS_MAX], without[LAB_SEEDS_MAX];
    const size_t n = largest(r, BATCH_NORM, with);
    (void)largest(r, NONE, without);
    lab_verdict(r, &claims[LARGER], judge(with, without, 2, n, +1), "",
                "up to %.2g (%.2g to %.2g by seed) against %.2g (%.2g to %.2g)",
                stats_mean(with, n), stats_describe(with, n).min, stats_describe(with, n).max,
                stats_mean(without, n), stats_describe(without, n).min,
                stats_describe(without, n).max);
}

static double step_seconds(size_t n)
{
    return epoch_seconds[n] / 108; /* batches of 512 in 55,000 images */
}

static void judge_seconds(lab_report *r)
{
    double with[LAB_SEEDS_MAX], without[LAB_SEEDS_MAX];
    const size_t n = ends(r, BATCH_NORM, steps_at(r, chosen.own[BATCH_NORM]), with);
    const double ratio = step_seconds(BATCH_NORM) / step_seconds(NONE);
    (void)ends(r, NONE, steps_at(r, chosen.own[NONE]), without);
    lab_verdict(r, &claims[SECONDS], judge(with, without, 1 / ratio, n, -1), "",
                "%.0f ms against %.0f; a step takes %.2f times as long",
                1000 * step_seconds(BATCH_NORM) * stats_mean(with, n),
                1000 * step_seconds(NONE) * stats_mean(without, n), ratio);
}

/* Test accuracies of a network with batches of size[k], at its own rate for them. */
static size_t at_size(lab_report *r, size_t n, size_t k, double *value)
{
    return ends(r, n, of_size(r, k, size_rate[chosen.at_size[k][n]], "accuracy"), value);
}

static void judge_small(lab_report *r)
{
    double layer[LAB_SEEDS_MAX], batch[LAB_SEEDS_MAX], gap[2][LAB_SEEDS_MAX];
    const size_t k[2] = {0, 3}; /* 4 and 256 */
    stats_finding part[2];
    size_t n = 0, s, i;
    for (i = 2; i-- > 0;) {
        n = at_size(r, LAYER, k[i], layer);
        (void)at_size(r, BATCH_NORM, k[i], batch);
        for (s = 0; s < n; s++) gap[i][s] = layer[s] - batch[s];
    }
    part[0] = judge(layer, batch, 1, n, +1);
    part[1] = judge(gap[0], gap[1], 1, n, +1);
    lab_verdict(r, &claims[SMALL_LAYER], stats_together(part, 2), "",
                "at 4: %s against %s %%; at 256 layer norm %+.2f points",
                lab_mean_sd(r, stats_describe(layer, n), 2),
                lab_mean_sd(r, stats_describe(batch, n), 2), stats_mean(gap[1], n));
}

static void judge_group(lab_report *r)
{
    double group[LAB_SEEDS_MAX], batch[LAB_SEEDS_MAX];
    const size_t n = at_size(r, GROUP, 0, group);
    (void)at_size(r, BATCH_NORM, 0, batch);
    lab_verdict(r, &claims[SMALL_GROUP], judge(group, batch, 1, n, +1), "", "%s against %s %%",
                lab_mean_sd(r, stats_describe(group, n), 2),
                lab_mean_sd(r, stats_describe(batch, n), 2));
}

static void judge_rms(lab_report *r)
{
    double rms[LAB_SEEDS_MAX], layer[LAB_SEEDS_MAX], apart[LAB_SEEDS_MAX];
    const size_t n = ends(r, RMS, own(r, RMS, "accuracy"), rms);
    size_t s;
    (void)ends(r, LAYER, own(r, LAYER, "accuracy"), layer);
    for (s = 0; s < n; s++) apart[s] = fabs(rms[s] - layer[s]);
    lab_verdict(r, &claims[RMS_GOOD], stats_judge_limit(apart, n, 0.2, -1), "",
                "%s and %s %%; |difference| %s", lab_mean_sd(r, stats_describe(rms, n), 2),
                lab_mean_sd(r, stats_describe(layer, n), 2),
                lab_mean_sd(r, stats_describe(apart, n), 2));
    lab_verdict(r, &claims[RMS_CHEAP],
                stats_holds(epoch_seconds[RMS] <= 0.93 * epoch_seconds[LAYER]), "",
                "%.3f and %.3f s: %.0f %% less", epoch_seconds[RMS], epoch_seconds[LAYER],
                100 * (1 - epoch_seconds[RMS] / epoch_seconds[LAYER]));
}

static void judge_noise(lab_report *r)
{
    double with[LAB_SEEDS_MAX], without[LAB_SEEDS_MAX], a[LAB_SEEDS_MAX], b[LAB_SEEDS_MAX];
    const size_t n = ends(r, FACTOR, own(r, FACTOR, "accuracy"), with), i = chosen.own[FACTOR];
    stats_finding part[2];
    (void)ends(r, NONE, own(r, NONE, "accuracy"), without);
    part[0] = judge(with, without, 1, n, +1);
    (void)ends(r, FACTOR, steps_at(r, i), a);
    (void)ends(r, NONE, steps_at(r, chosen.own[NONE]), b);
    part[1] = judge(a, b, 1, n, -1);
    lab_verdict(r, &claims[NOISE], stats_together(part, 2), "",
                "%s against %s %%; %s against %s steps", lab_mean_sd(r, stats_describe(with, n), 2),
                lab_mean_sd(r, stats_describe(without, n), 2),
                lab_mean_sd(r, stats_describe(a, n), 0), lab_mean_sd(r, stats_describe(b, n), 0));
    (void)ends(r, FACTOR, of(r, FACTOR, rate[i], "loss"), with);
    (void)ends(r, NOISY, of(r, NOISY, rate[i], "loss"), without);
    (void)ends(r, FACTOR, of(r, FACTOR, rate[i], "accuracy"), a);
    (void)ends(r, NOISY, of(r, NOISY, rate[i], "accuracy"), b);
    lab_verdict(r, &claims[WITH_FACTOR], judge(with, without, 1, n, -1), "",
                "%s against %s; accuracy %s against %s %%",
                lab_mean_sd(r, stats_describe(with, n), 4),
                lab_mean_sd(r, stats_describe(without, n), 4),
                lab_mean_sd(r, stats_describe(a, n), 2), lab_mean_sd(r, stats_describe(b, n), 2));
}

/* Test accuracy with batch norm minus that without, at 0.01 or at the own rates. */
static size_t gap_of(lab_report *r, int notebook, double *gap)
{
    double without[LAB_SEEDS_MAX];
    const double lr = 0.01;
    const size_t n =
        ends(r, BATCH_NORM,
             of(r, BATCH_NORM, notebook ? lr : rate[chosen.own[BATCH_NORM]], "accuracy"), gap);
    size_t s;
    (void)ends(r, NONE, of(r, NONE, notebook ? lr : rate[chosen.own[NONE]], "accuracy"), without);
    for (s = 0; s < n; s++) gap[s] -= without[s];
    return n;
}

static void judge_gap(lab_report *r)
{
    double tuned[LAB_SEEDS_MAX], untuned[LAB_SEEDS_MAX];
    const size_t n = gap_of(r, 0, tuned);
    (void)gap_of(r, 1, untuned);
    lab_verdict(r, &claims[GAP], judge(tuned, untuned, 0.5, n, -1), "", "%s points against %s",
                lab_mean_sd(r, stats_describe(tuned, n), 2),
                lab_mean_sd(r, stats_describe(untuned, n), 2));
}

static void judge_all(lab_report *r)
{
    judge_steps(r, STEPS, BATCH_NORM, NONE, chosen.own, 0.5);
    judge_steps(r, FASTEST, BATCH_NORM, NONE, chosen.fastest, 0.5);
    judge_accuracy(r, ACCURACY, BATCH_NORM, NONE);
    judge_larger(r);
    judge_seconds(r);
    judge_steps(r, LAYER_FASTER, LAYER, BATCH_NORM, chosen.own, 1);
    judge_small(r);
    judge_group(r);
    judge_rms(r);
    judge_noise(r);
    judge_gap(r);
    judge_accuracy(r, BATCH_OR_LAYER, BATCH_NORM, LAYER);
}

/* ---- figures --------------------------------------------------------------------------------- */

static plot_panel *panel(plot_figure *f, int row, int col, const char *heading, const char *x,
                         int x_scale, const char *y, int y_scale)
{
    plot_panel *p = plot_add(f, row, col, 1, 1);
    plot_heading(p, heading);
    plot_axis_x(p, x, x_scale);
    plot_axis_y(p, y, y_scale);
    plot_legend(p, PLOT_LEGEND_DIRECT);
    return p;
}

/* A line through the means of the seeds on a band from the lowest seed to the highest. values: the
   seeds' numbers at each x, [n][LAB_SEEDS_MAX]. Where a seed has none there is a gap. */
static void add_range(plot_panel *p, size_t which, const double *x, const double *values, size_t n,
                      size_t seeds)
{
    const plot_style look = lab_style(net[which].look);
    double mean[RATES + 2 * EARLY], lo[RATES + 2 * EARLY], hi[RATES + 2 * EARLY];
    size_t i;
    for (i = 0; i < n; i++) {
        const stats_summary s = stats_describe(values + i * LAB_SEEDS_MAX, seeds);
        mean[i] = s.mean;
        lo[i] = s.min;
        hi[i] = s.max;
    }
    plot_band(p, NULL, x, lo, hi, n, look);
    plot_line(p, net[which].name, x, mean, n, look);
}

/* A series of a rate against the steps times `scale`: 1/108 for epochs. */
static void add_steps(lab_report *r, plot_panel *p, size_t n, double lr, const char *what,
                      double scale)
{
    const char *name = of(r, n, lr, what);
    const lab_series first = lab_get(r, net[n].arm, 0, name);
    double x[RATES + 2 * EARLY], value[(RATES + 2 * EARLY) * LAB_SEEDS_MAX];
    size_t i;
    for (i = 0; i < first.n; i++) {
        x[i] = first.x[i] * scale;
        (void)lab_values(r, net[n].arm, name, first.x[i], value + i * LAB_SEEDS_MAX);
    }
    add_range(p, n, x, value, first.n, lab_seeds(r, net[n].arm));
}

/* What the trainings end with, against the rate. */
static void add_rates(lab_report *r, plot_panel *p, size_t n, const char *what)
{
    double value[RATES * LAB_SEEDS_MAX];
    size_t i;
    for (i = 0; i < RATES; i++)
        (void)ends(r, n,
                   strcmp(what, "steps_to_half") == 0 ? steps_at(r, i) : of(r, n, rate[i], what),
                   value + i * LAB_SEEDS_MAX);
    add_range(p, n, rate, value, RATES, lab_seeds(r, net[n].arm));
}

static double epochs_of(const lab_report *r)
{
    return lab_quick(r) ? 1 : EPOCHS;
}

/* How far apart batch norm and no norm end, in points, at the notebook's rate or at their own. */
static double mean_gap(lab_report *r, int notebook)
{
    double gap[LAB_SEEDS_MAX];
    return stats_mean(gap, gap_of(r, notebook, gap));
}

/* a, b: the same networks at the notebook's rate and at their own. c, d: why. */
static int page_rates(lab_report *r)
{
    const double at[5] = {0.01, 0.1, 1, 10, 0.003}, step = 1.0 / 108;
    const char *const label[5] = {"0.01", "0.1", "1", "10", "0.003"};
    plot_figure *f = lab_figure(
        r,
        lab_format(r,
                   "Batch norm is %.1f points ahead at one rate for all, %.1f at the best of each",
                   mean_gap(r, 1), mean_gap(r, 0)),
        2000, 1640);
    plot_panel *p[4];
    size_t n;
    int i;
    plot_letters(f);
    p[0] = panel(f, 0, 0, "the notebook's rate for all: 0.01", "epoch", PLOT_LINEAR,
                 "test accuracy (%)", PLOT_LINEAR);
    p[1] = panel(f, 0, 1, "each at its own best rate", "epoch", PLOT_LINEAR, "", PLOT_LINEAR);
    p[2] = panel(f, 1, 0, "after the last epoch, at every rate", "learning rate", PLOT_LOG10,
                 "test accuracy (%)", PLOT_LINEAR);
    p[3] = panel(f, 1, 1, "how soon, at every rate", "learning rate", PLOT_LOG10,
                 "steps to a training loss of 0.5", PLOT_LOG10);
    for (i = 0; i < 2; i++) {
        plot_range_x(p[i], 0, epochs_of(r));
        plot_range_y(p[i], 80, 100);
    }
    plot_range_y(p[2], 90, 99);
    for (i = 2; i < 4; i++) {
        plot_range_x(p[i], 0.003, 10);
        plot_ticks_x(p[i], at, label, 5);
    }
    for (n = 0; n < NETS; n++) {
        if (n == NOISY) continue; /* page_time has it */
        add_steps(r, p[0], n, 0.01, "accuracy", step);
        add_steps(r, p[1], n, rate[chosen.own[n]], "accuracy", step);
        add_rates(r, p[2], n, "accuracy");
        add_rates(r, p[3], n, "steps_to_half");
    }
    return lab_save(r, f, NULL);
}

static int page_time(lab_report *r)
{
    plot_figure *f = lab_figure(r, "In seconds", 2000, 1000);
    plot_panel *p[2];
    size_t n;
    plot_letters(f);
    p[0] = panel(f, 0, 0, "each at its own best rate", "seconds of one core", PLOT_LOG10,
                 "test accuracy (%)", PLOT_LINEAR);
    p[1] = panel(f, 0, 1, "the same, over the epochs", "epoch", PLOT_LINEAR, "test loss (nats)",
                 PLOT_LOG10);
    for (n = 0; n < NETS; n++) {
        if (n != NOISY) add_steps(r, p[0], n, rate[chosen.own[n]], "accuracy", step_seconds(n));
        add_steps(r, p[1], n, rate[chosen.own[n]], "loss", 1.0 / 108);
    }
    return lab_save(r, f, "time");
}

static int page_sizes(lab_report *r)
{
    plot_figure *f = lab_figure(r, "Batch size", 2000, 1000);
    plot_panel *p[2];
    double x[SIZES], best[SIZES], value[SIZES * LAB_SEEDS_MAX];
    size_t n, k;
    plot_letters(f);
    p[0] = panel(f, 0, 0, "each at its own best rate for the size", "examples in a batch",
                 PLOT_LOG2, "test accuracy (%)", PLOT_LINEAR);
    p[1] =
        panel(f, 0, 1, "that rate", "examples in a batch", PLOT_LOG2, "learning rate", PLOT_LOG10);
    for (n = 0; n < SIZE_ARMS; n++) {
        for (k = 0; k < SIZES; k++) {
            x[k] = (double)size[k];
            best[k] = size_rate[chosen.at_size[k][n]];
            (void)at_size(r, n, k, value + k * LAB_SEEDS_MAX);
        }
        add_range(p[0], n, x, value, SIZES, lab_seeds(r, net[n].arm));
        plot_line(p[1], net[n].name, x, best, SIZES, lab_style(net[n].look));
    }
    return lab_save(r, f, "batches");
}

static int report(lab_report *r)
{
    choose(r);
    judge_all(r);
    return page_rates(r) || page_time(r) || page_sizes(r);
}

/* ---- the time of an epoch -------------------------------------------------------------------- */

enum { ROUNDS = 15 };

static double epoch_time(size_t arm)
{
    void *block = NULL;
    clock_t began;
    lab_run r;
    trial t;
    memset(&t, 0, sizeof t);
    memset(&r, 0, sizeof r);
    r.arm = arm;
    r.seed = 1;
    t.run = &r;
    t.rate = 0.1;
    t.batch = BATCH;
    t.net = make_net(&t, &block);
    if (!t.net || training_order_start(&t.order, train.n, BATCH, train.features, 1)) exit(1);
    began = clock();
    while (training_next(&t.order, &train) > 0)
        (void)nrm_mlp_train_step(t.net, NULL, t.order.x, t.order.labels, t.order.count);
    began = clock() - began;
    training_order_free(&t.order);
    free(block);
    return (double)began / CLOCKS_PER_SEC;
}

static int measure(void)
{
    double seconds[ARMS][ROUNDS];
    char err[DATASET_ERR_MAX];
    dataset d;
    size_t a;
    int i;
    if (dataset_load(&d, NULL, 1, 0, 0, err) || prepare(&d, 0)) return 1;
    for (i = 0; i < ROUNDS; i++)
        for (a = 0; a < ARMS; a++) seconds[a][i] = epoch_time(a);
    for (a = 0; a < ARMS; a++)
        printf("%s: %.4f s\n", arms[a].name, stats_median(seconds[a], ROUNDS));
    return 0;
}

int main(int argc, char **argv)
{
    static const lab_program program = {"34_tuned_mnist",
                                        NRM_VERSION,
                                        "The norms on MNIST, each at its own best learning rate",
                                        SETTINGS,
                                        1,
                                        LAB_USES_DATA,
                                        arms,
                                        ARMS,
                                        prepare,
                                        run,
                                        report};
    if (argc == 2 && strcmp(argv[1], "--time") == 0) return measure();
    return lab_main(&program, argc, argv);
}
