/* 25_inference_statistics: with which statistics does a batch norm leave training? (README.md)

   One network is trained and looked at, again and again, through every kind of statistics that
   sources and libraries keep for inference; the reference is the population's. "Distance" of a
   variance: mean over all units of |ln(variance / the population's)|. A second part computes the
   variance of 128 numbers from N(offset, 1) in 32 bits, against two passes in 64. */
#include "lab/experiment.h"
#include "lab/draw.h"

enum { INPUTS = DATASET_PIXELS, CLASSES = DATASET_CLASSES };
enum { NORMS = 2, WIDTH1 = 64, WIDTH2 = 128, UNITS = WIDTH1 + WIDTH2 };
enum { RECENT = 10, MAX_BATCH = 1000, EPOCHS = 10, BATCH_SIZES = 7 };
#define EPS 1e-5

enum { LARGE, EIGHT, FOUR, ONE_PASS, ARMS };
static const lab_arm arms[ARMS] = {{"batch128", "batches of 128", 22},
                                   {"batch8", "batches of 8", 6, 20},
                                   {"batch4", "batches of 4", 8, 20},
                                   {"onepass", "variance of 128 numbers", 1}};
static const size_t batch_size[3] = {128, 8, 4};

LAB_SETS(train, test, 0, 0, DATASET_RAW01);

/* ---- statistics kept beside those of the network --------------------------------------------- */

enum { MEAN, BIASED, UNBIASED, SD, ROWS }; /* all but the first: what is averaged as the spread */
static const char *const row_id[ROWS] = {"mean", "biased", "unbiased", "sd"};

typedef struct moments { /* of all units of both layers */
    double of[ROWS][UNITS];
} moments;

enum { NEW_TENTH, NEW_HUNDREDTH, NEW_THOUSANDTH, WEIGHTS, SO_FAR = WEIGHTS, LAST_FEW, ALL_IMAGES };
static const double weight[WEIGHTS] = {0.1, 0.01, 0.001}; /* of the new batch in an average */

/* ALGORITHM2 goes over all training images in batches of the size trained with, POPULATION in
   batches of 1000, merged into one variance. */
/* clang-format off */
enum { FAST, FAST_BIASED, FAST_SD, MIDDLE, SLOW, SLOW_SD, SLOW_CORRECTED, ALL_SO_FAR, LAST10,
       LAST10_SD, ALGORITHM2, POPULATION, VARIANTS };
/* clang-format on */
static const struct {
    const char *id;
    int from, spread;
} variant[VARIANTS] = {{"new0.1", NEW_TENTH, UNBIASED},
                       {"new0.1_biased", NEW_TENTH, BIASED},
                       {"new0.1_sd", NEW_TENTH, SD},
                       {"new0.01", NEW_HUNDREDTH, UNBIASED},
                       {"new0.001", NEW_THOUSANDTH, UNBIASED},
                       {"new0.001_sd", NEW_THOUSANDTH, SD},
                       {"new0.001_corrected", NEW_THOUSANDTH, UNBIASED},
                       {"all_so_far", SO_FAR, UNBIASED},
                       {"last10", LAST_FEW, UNBIASED},
                       {"last10_sd", LAST_FEW, SD},
                       {"algorithm2", ALL_IMAGES, UNBIASED},
                       {"population", ALL_IMAGES, UNBIASED}};

typedef struct trial {
    moments start, kept[WEIGHTS]; /* the running averages; they start with 0 and 1 */
    moments sum, last[RECENT];    /* over all batches; the last few                */
    size_t batches;
    trainer probe; /* to look with: a network with the same weights */
    moments population;
    nrm_real *logits, *reference; /* [test.n][CLASSES] */
} trial;

static void mix(moments *m, double w, const moments *other, double v) /* m = w m + v other */
{
    size_t i, u;
    for (i = 0; i < ROWS; i++)
        for (u = 0; u < UNITS; u++) m->of[i][u] = w * m->of[i][u] + v * other->of[i][u];
}

static void keep(trial *k, const moments *batch)
{
    size_t w;
    for (w = 0; w < WEIGHTS; w++) mix(&k->kept[w], 1 - weight[w], batch, weight[w]);
    mix(&k->sum, 1, batch, 1);
    k->last[k->batches++ % RECENT] = *batch;
}

/* What this way of keeping would use now; not for those that go over all images. */
static moments read_kept(const trial *k, int v)
{
    const size_t recent = k->batches < RECENT ? k->batches : RECENT;
    const int from = variant[v].from;
    const double rest = pow(1 - weight[NEW_THOUSANDTH], (double)k->batches);
    moments m = k->kept[from < WEIGHTS ? from : 0];
    size_t i;
    if (from == SO_FAR) mix(&m, 0, &k->sum, 1 / (double)k->batches);
    for (i = 0; i < recent && from == LAST_FEW; i++)
        mix(&m, i > 0, &k->last[i], 1 / (double)recent);
    if (v == SLOW_CORRECTED) /* what is left of the start goes */
        mix(&m, 1 / (1 - rest), &k->start, -rest / (1 - rest));
    return m;
}

/* ---- the network's --------------------------------------------------------------------------- */

static nrm_mlp_spec network(trainer *t)
{
    nrm_mlp_spec spec = training_notebook(t->layer, NRM_BATCH_NORM);
    spec.max_batch = MAX_BATCH;
    spec.gamma_init = NRM_GAMMA_UNIFORM;
    spec.eps = (nrm_real)EPS;
    spec.lr = (nrm_real)0.05;
    return spec;
}

static const size_t first_unit[NORMS + 1] = {0, WIDTH1, UNITS};

/* What the last forward pass in train mode has found in its batch of n. */
static moments read_batch(const nrm_mlp *net, size_t n)
{
    const double lift = (double)n / (double)(n - 1);
    moments m;
    size_t l, j;
    for (l = 0; l < NORMS; l++)
        for (j = 0; j < net->state[l].shape.width; j++) {
            const size_t u = first_unit[l] + j;
            const double rstd = (double)net->state[l].rstd[j];
            const double v = 1 / (rstd * rstd) - (double)net->spec.eps;
            m.of[MEAN][u] = (double)net->state[l].mean[j];
            m.of[BIASED][u] = v > 0 ? v : 0;
            m.of[UNBIASED][u] = lift * m.of[BIASED][u];
            m.of[SD][u] = sqrt(m.of[UNBIASED][u]);
        }
    return m;
}

/* The variance that inference makes of what was kept. */
static double variance(const moments *m, int spread, size_t u)
{
    return spread == SD ? m->of[SD][u] * m->of[SD][u] : m->of[spread][u];
}

static void set_running(nrm_mlp *net, const moments *m, int spread)
{
    size_t l, j;
    for (l = 0; l < NORMS; l++)
        for (j = 0; j < net->state[l].shape.width; j++) {
            net->state[l].running.mean[j] = (nrm_real)m->of[MEAN][first_unit[l] + j];
            net->state[l].running.var[j] = (nrm_real)variance(m, spread, first_unit[l] + j);
        }
}

static moments get_running(const nrm_mlp *net)
{
    moments m = {{{0}}};
    size_t l, j;
    for (l = 0; l < NORMS; l++)
        for (j = 0; j < net->state[l].shape.width; j++) {
            m.of[MEAN][first_unit[l] + j] = (double)net->state[l].running.mean[j];
            m.of[UNBIASED][first_unit[l] + j] = (double)net->state[l].running.var[j];
        }
    return m;
}

/* What batches of m, forward in train mode, find in the mean. They lie behind one another (a last,
   smaller one is left out), or are `sampled` in number, all over the set. */
static int average(nrm_mlp *net, size_t m, size_t sampled, moments *found)
{
    const size_t batches = sampled ? sampled : train.n / m;
    size_t i;
    memset(found, 0, sizeof *found);
    for (i = 0; i < batches; i++) {
        const size_t at =
            sampled ? (i * 128 + 64 * (i / (train.n / 128))) % (train.n - 128) : i * m;
        moments batch;
        if (nrm_mlp_forward(net, train.x + at * INPUTS, m, NRM_TRAIN) < 0) return -1;
        batch = read_batch(net, m);
        mix(found, 1, &batch, 1 / (double)batches);
    }
    return 0;
}

/* ---- looking at it through each kind of statistics ------------------------------------------- */

/* Logits of the whole test set; returns the percentage that is right, or -1. */
static double test_logits(nrm_mlp *net, nrm_real *logits)
{
    nrm_acc right = 0;
    size_t at;
    for (at = 0; at < test.n; at += MAX_BATCH) {
        const size_t n = test.n - at < MAX_BATCH ? test.n - at : MAX_BATCH;
        if (nrm_mlp_forward(net, test.x + at * INPUTS, n, NRM_INFER) < 0) return -1;
        memcpy(logits + at * CLASSES, net->logits, n * CLASSES * sizeof *logits);
    }
    if (nrm_accuracy(&right, logits, test.labels, test.n, CLASSES) < 0) return -1;
    return 100 * (double)right;
}

/* Over the units from the first to the last, without the last. */
static void record_distance(const trainer *t, const char *what, int v, const moments *m,
                            size_t first, size_t last)
{
    const trial *k = (const trial *)t->plan->context;
    double sum = 0;
    size_t u;
    for (u = first; u < last; u++)
        sum += fabs(log(variance(m, variant[v].spread, u) / k->population.of[UNBIASED][u]));
    lab_record_as(t->run, (double)t->step, sum / (double)(last - first), "%s/%s", what,
                  variant[v].id);
}

/* Test accuracy with the statistics m, and how far logits are from those with the population's;
   with small batches, of the kinds that the page compares, also how far the statistics are. */
static int look_through(const trainer *t, int v, const moments *m)
{
    const trial *k = (const trial *)t->plan->context;
    const double step = (double)t->step;
    const int small = t->run->arm != LARGE;
    double accuracy;
    set_running(k->probe.net, m, variant[v].spread);
    accuracy = test_logits(k->probe.net, k->logits);
    if (accuracy < 0) return -1;
    lab_record_as(t->run, step, accuracy, "accuracy/%s", variant[v].id);
    if (v == POPULATION || (small && v > FAST_SD && v != ALGORITHM2)) return 0;
    lab_record_as(t->run, step, training_farthest(k->logits, k->reference, test.n * CLASSES),
                  "logits/%s", variant[v].id);
    if (!small) return 0;
    record_distance(t, "distance", v, m, 0, UNITS);
    record_distance(t, "distance1", v, m, 0, WIDTH1);
    record_distance(t, "distance2", v, m, WIDTH1, UNITS);
    return 0;
}

/* How large the variances of batches of m come out, relative to the population's: mean over the
   units of a layer, for the weights as they are after training. */
static int record_sizes(const trainer *t)
{
    const trial *k = (const trial *)t->plan->context;
    moments found;
    size_t m, l, u;
    int spread;
    for (m = 2; m <= 128; m *= 2) {
        if (average(k->probe.net, m, 400, &found)) return -1;
        for (spread = BIASED; spread <= SD; spread++)
            for (l = 0; l < NORMS; l++) {
                double mean = 0;
                for (u = first_unit[l]; u < first_unit[l + 1]; u++)
                    mean += variance(&found, spread, u) / k->population.of[UNBIASED][u] /
                            (double)(first_unit[l + 1] - first_unit[l]);
                lab_record_as(t->run, (double)m, mean, "size%d/%s", (int)l + 1, row_id[spread]);
            }
    }
    return 0;
}

static int look(const trainer *t)
{
    trial *k = (trial *)t->plan->context;
    nrm_mlp *net = k->probe.net;
    moments m;
    int v;
    memcpy(net->params, t->net->params, net->n_params * sizeof *net->params);
    if (training_reestimate(net, train.x, train.n) < 0) return -1;
    k->population = get_running(net);
    if (test_logits(net, k->reference) < 0) return -1;
    if (look_through(t, POPULATION, &k->population)) return -1;
    if (t->step == t->plan->steps && t->run->arm == LARGE && record_sizes(t)) return -1;
    for (v = 0; v < ALGORITHM2; v++) {
        m = read_kept(k, v);
        if (look_through(t, v, &m)) return -1;
    }
    return average(net, t->plan->batch, 0, &m) || look_through(t, ALGORITHM2, &m) ? -1 : 0;
}

/* ---- one training ---------------------------------------------------------------------------- */

/* Networks of small batches are looked at at the end alone. */
static int is_looked_at(const trainer *t)
{
    static const size_t at[7] = {10, 20, 50, 100, 200, 1000, 3000};
    const size_t epoch = training_steps(train.n, t->plan->batch);
    size_t i;
    if (t->run->arm != LARGE) return t->step == t->plan->steps;
    for (i = 0; i < 7; i++)
        if (at[i] == t->step) return 1;
    return t->step == t->plan->steps || t->step % epoch == 0;
}

static int after_step(trainer *t)
{
    const moments batch = read_batch(t->net, t->order.count);
    keep((trial *)t->plan->context, &batch);
    return is_looked_at(t) ? look(t) : 0;
}

/* The network keeps running statistics too: those with new weight 0.1. */
static int end(trainer *t)
{
    const moments running = get_running(t->net);
    const moments mine = read_kept((const trial *)t->plan->context, FAST);
    double worst = 0;
    size_t u;
    for (u = 0; u < UNITS; u++)
        worst = stats_larger(worst, fabs(running.of[UNBIASED][u] / mine.of[UNBIASED][u] - 1));
    lab_record(t->run, "agreement", 0, worst);
    return 0;
}

static int run_training(lab_run *r)
{
    const size_t batch = batch_size[r->arm], logits = test.n * CLASSES;
    const size_t all = r->arm == LARGE ? EPOCHS * training_steps(train.n, batch) : 7500;
    trial *k = (trial *)calloc(1, sizeof *k + 2 * logits * sizeof(nrm_real));
    const trainer_plan plan =
        trainer_plan_of(.network = network, .after = after_step, .end = end, .set = &train,
                        .batch = batch, .steps = r->quick ? 50 : all, .context = k);
    size_t i, u;
    int rc;
    if (!k) return -1;
    for (i = BIASED; i < ROWS; i++)
        for (u = 0; u < UNITS; u++) k->start.of[i][u] = 1;
    for (i = 0; i < WEIGHTS; i++) k->kept[i] = k->start;
    k->logits = (nrm_real *)(k + 1);
    k->reference = k->logits + logits;
    rc = trainer_open(&k->probe, r, &plan) || trainer_run(r, &plan) ? -1 : 0;
    trainer_close(&k->probe);
    free(k);
    return rc;
}

/* ---- the variance of 128 numbers ------------------------------------------------------------- */

enum { NUMBERS = 128, TRIALS = 200, OFFSETS = 12, METHODS = 4 };
static const double offset[OFFSETS] = {0, 1, 3, 10, 30, 100, 300, 1000, 4096, 10000, 30000, 100000};

/* The sum of (x - from)^power. */
static float sum_of(const float *x, float from, int power)
{
    float sum = 0;
    size_t i;
    for (i = 0; i < NUMBERS; i++) sum += power == 1 ? x[i] - from : (x[i] - from) * (x[i] - from);
    return sum;
}

static double one_pass(const float *x)
{
    const float mean = sum_of(x, 0, 1) / NUMBERS;
    return (double)(sum_of(x, 0, 2) / NUMBERS - mean * mean);
}

static double two_passes(const float *x)
{
    return (double)(sum_of(x, sum_of(x, 0, 1) / NUMBERS, 2) / NUMBERS);
}

static double welford(const float *x)
{
    float mean = 0, squares = 0;
    size_t i;
    for (i = 0; i < NUMBERS; i++) {
        const float apart = x[i] - mean;
        mean += apart / (float)(i + 1);
        squares += apart * (x[i] - mean);
    }
    return (double)(squares / NUMBERS);
}

static double header(const float *x)
{
    float y[NUMBERS];
    nrm_acc mean = 0, rstd = 1;
    (void)nrm_batchnorm_forward(y, &mean, &rstd, NULL, x, NULL, NULL, NRM_TRAIN, (nrm_real)EPS,
                                NUMBERS, 1, 1);
    return 1 / ((double)rstd * (double)rstd) - (double)(nrm_real)EPS;
}

static double exact(const float *x)
{
    double mean = 0, squares = 0;
    size_t i;
    for (i = 0; i < NUMBERS; i++) mean += (double)x[i] / NUMBERS;
    for (i = 0; i < NUMBERS; i++) squares += ((double)x[i] - mean) * ((double)x[i] - mean);
    return squares / NUMBERS;
}

static const struct {
    const char *id, *name;
    double (*variance)(const float *);
} method[METHODS] = {{"one_pass", "E[x²] − μ², one pass", one_pass},
                     {"two_passes", "two passes", two_passes},
                     {"welford", "Welford's update", welford},
                     {"header", "normlayers.h", header}};

static int run_variances(lab_run *r)
{
    float x[NUMBERS];
    nrm_rng rng;
    size_t o, k, m, i;
    nrm_rng_seed(&rng, r->seed, TRAINING_STREAM_DATA);
    for (o = 0; o < OFFSETS; o++) {
        double most[METHODS] = {0}, ratio[METHODS][TRIALS];
        for (k = 0; k < TRIALS; k++) {
            double truth;
            for (i = 0; i < NUMBERS; i++) x[i] = (float)(offset[o] + (double)draw_normal(&rng));
            truth = exact(x);
            for (m = 0; m < METHODS; m++) {
                const double v = method[m].variance(x);
                most[m] = stats_larger(most[m], fabs(v - truth) / truth);
                ratio[m][k] = v / truth;
            }
        }
        for (m = 0; m < METHODS; m++) {
            const stats_summary all = stats_describe(ratio[m], TRIALS);
            lab_record_as(r, offset[o], most[m], "error/%s", method[m].id);
            lab_record_as(r, offset[o], all.min, "low/%s", method[m].id);
            lab_record_as(r, offset[o], all.max, "high/%s", method[m].id);
        }
    }
    return 0;
}

static int run(lab_run *r)
{
    return r->arm == ONE_PASS ? run_variances(r) : run_training(r);
}

/* ---- claims ---------------------------------------------------------------------------------- */

static void judge_tracking(lab_report *r, const lab_claim *c)
{
    const size_t epochs = lab_quick(r) ? 1 : EPOCHS;
    stats_finding part[EPOCHS];
    double of_mean = 0, of_one = 0;
    size_t e, met = 0;
    for (e = 0; e < epochs; e++) {
        const double step = (double)(e + 1) * (lab_quick(r) ? 50 : 469);
        const lab_numbers apart = lab_calc(lab_all(r, LARGE, "accuracy/new0.1", step), '-',
                                           lab_all(r, LARGE, "accuracy/algorithm2", step));
        of_mean = stats_larger(of_mean, fabs(lab_average(apart)));
        of_one = stats_larger(of_one, lab_describe(lab_map(apart, fabs)).max);
        part[e] = lab_within(apart, 0, 0.5);
        met += stats_reproduced(part[e]) ? 1u : 0u;
    }
    lab_verdict(
        r, c, stats_together(part, epochs),
        lab_format(r, "met at %lu of %lu epochs", (unsigned long)met, (unsigned long)epochs),
        "at most %.2f points apart in the mean of the seeds, %.2f in a single one", of_mean,
        of_one);
}

/* Is the series smaller with new weight 0.1 than with another way of keeping? */
/* clang-format off */
#define SMALLER(arm, what, way)                                                                    \
    {LAB_LESS, arm, arm, what "/new0.1", LAB_LAST, .other = what "/new0.1_" way}
#define TOLD(what, way) {.a = FOUR, .series = what "/new0.1" way, .at = LAB_LAST}
#define BATCHES .decimals = 3, .say = "batches of 4: $1 against $2; of 8: $3 against $4"
#define DISTANCES(way)                                                                             \
    LAB_PARTS(SMALLER(FOUR, "distance", way), SMALLER(EIGHT, "distance", way),                     \
              TOLD("distance1", ""), TOLD("distance1", "_" way), TOLD("distance2", ""),            \
              TOLD("distance2", "_" way)),                                                         \
    BATCHES, .remark = "batches of 4, first layer alone: $5 against $6; second: $7 against $8"
/* Of all trials at offsets 0 to 10,000. */
#define ERROR(way) {LAB_EXACT, ONE_PASS, .series = "error/" way, .to = 10000, .limit = 1e-5}

static const lab_claim claims[] = {
    {"25a", "Too slow a running average looks like a failure of batch norm", "ours: a reading of a "
     "lecture-style post on how batch norm helps, which keeps 0.999 of the old",
     "the post does not evaluate",
     "batches of 128: new weight 0.001 below 0.1 in test accuracy at steps 100 and 1000",
     "trial run (1 seed), steps 10, 100, 1000, 3000: 0.1: 73.9, 91.3, 96.6, 97.4 %; 0.001: 62.5, "
     "87.4, 94.7, 97.0 %", LAB_TRAINING, LAB_SETTING,
     LAB_PARTS({LAB_LESS, LARGE, LARGE, "accuracy/new0.001", 100, .other = "accuracy/new0.1"},
               {LAB_LESS, LARGE, LARGE, "accuracy/new0.001", 1000, .other = "accuracy/new0.1"}),
     .decimals = 1, .say = "step 100: $1 against $2 %; 1000: $3 against $4 %"},
    {"25b", "With moving averages the accuracy can be tracked as the model trains",
     "Ioffe & Szegedy 2015, section 3.1", "no number", "new weight 0.1 within 0.5 points of "
     "Algorithm 2 at the end of every epoch, seed by seed (of the means, until after the run)",
     "none", LAB_TRAINING, LAB_SETTING, judge_tracking},
    {"25c", "The mean over the last few batches is enough for inference",
     "Chinese notes on batch norm", "no number", "batches of 128: last 10 at most 0.2 points of "
     "test accuracy below the population, seed by seed (of the means, until after the run)", "none",
     LAB_TRAINING, LAB_SETTING,
     LAB_PARTS({LAB_MORE, LARGE, LARGE, "accuracy/last10", LAB_LAST, .tolerance = 0.2,
                .other = "accuracy/population"},
               {.a = EIGHT, .series = "accuracy/last10", .at = LAB_LAST},
               {.a = FOUR, .series = "accuracy/last10", .at = LAB_LAST}),
     .decimals = 2, .say = "$1 against $2 %", .remark = "batches of 8: $3, of 4: $4 %"},
    {"25d", "The stored variance should be the unbiased one",
     "Ioffe & Szegedy 2015, Algorithm 2; a tutorial with a custom batch norm",
     "m/(m-1) is in the algorithm; no number",
     "distance from the population smaller with it, batches of 4 and of 8, after training", "none",
     LAB_TRAINING, LAB_NEWS, DISTANCES("biased")},
    {"25e", "With the unbiased variance the logits are closer, too",
     "ours: what the unbiased variance should be good for", "no number",
     "largest difference of a logit from the population's smaller with it, batches of 4 and of 8",
     "none", LAB_TRAINING, LAB_SETTING, 
     LAB_PARTS(SMALLER(FOUR, "logits", "biased"), SMALLER(EIGHT, "logits", "biased")), BATCHES},
    {"25f", "Variances are to be averaged, not standard deviations",
     "ours: a correction to the Chinese notes on batch norm and to the lecture-style post",
     "both average standard deviations",
     "distance from the population smaller with variances, batches of 4 and of 8", "none",
     LAB_TRAINING, LAB_NEWS, DISTANCES("sd")},
    {"25g", "Two passes, and Welford's update, are exact enough in 32 bits",
     "ours: textbook algorithms", "no number",
     "relative error below 1e-5 at offsets 0 to 10,000, largest of all trials and seeds",
     "trial run: both below 1e-5", LAB_ARITHMETIC, LAB_ALGEBRA,
     LAB_PARTS(ERROR("two_passes"), ERROR("welford")), .decimals = 1, .say = "largest: $1 and $2"},
    {"25h", "The variance may be computed as E[x²] − μ² in 32 bits",
     "ours: the formula of a derivation of batch norm's backward pass, taken for a program",
     "the formula is given, not how to compute it",
     "relative error below 1e-5 at offsets 0 to 10,000, largest of all trials and seeds",
     "trial run: −0.0032 for a variance near 1 at offset 4096, 4.31 for 0.85 at 10,000",
     LAB_ARITHMETIC, LAB_ALGEBRA,
     LAB_PARTS(ERROR("one_pass"), {.a = ONE_PASS, .series = "low/one_pass", .at = 10000},
               {.a = ONE_PASS, .series = "high/one_pass", .at = 10000}),
     .decimals = 1, .say = "largest: $1; between #2[min %.1f] and #3[max %.1f] times the true "
     "variance at offset 10,000"}};
/* clang-format on */

/* ---- figures --------------------------------------------------------------------------------- */

/* E[s]/σ for the standard deviation s, divisor m - 1, of m Gaussian numbers. */
static double c4(double m)
{
    return sqrt(2 / (m - 1)) * exp(lgamma(m / 2) - lgamma((m - 1) / 2));
}

/* How large variances of small batches come out: measured, and what theory says of a layer whose
   inputs are independent examples, or, in layer 2, come from another batch norm. */
static void draw_sizes(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    static const char *const name[] = {"biased variance", "unbiased variance",
                                       "standard deviation²"};
    static const int marker[] = {PLOT_CIRCLE, PLOT_SQUARE, PLOT_TRIANGLE};
    static const double m[BATCH_SIZES] = {2, 4, 8, 16, 32, 64, 128};
    double theory[BATCH_SIZES];
    size_t i, j;
    for (j = 0; j < 3; j++) {
        const char *id = row_id[BIASED + j];
        const lab_curve c = lab_over_seeds(r, LARGE, lab_format(r, "%s/%s", panel->series, id));
        for (i = 0; i < BATCH_SIZES; i++) {
            const double shrunk = (m[i] - 1) / m[i];
            theory[i] = j == 0 ? shrunk : j == 1 ? 1 : c4(m[i]) * c4(m[i]);
            if (panel->value == 2) theory[i] /= shrunk;
        }
        plot_line(p, NULL, m, theory, BATCH_SIZES, plot_solid(lab_level(j, 3)));
        plot_scatter(p, name[j], c.x, c.mean, c.n, plot_marked(lab_level(j, 3), marker[j]));
    }
}

static void draw_distances(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    static const char *const shown[4] = {"new0.1", "new0.1_biased", "new0.1_sd", "algorithm2"};
    static const char *const names[4] = {"unbiased", "biased", "sd", "Alg. 2"};
    static const struct {
        size_t arm, level;
        const char *series, *label;
    } bars[4] = {{FOUR, 0, "distance1", "first layer, m = 4"},
                 {EIGHT, 2, "distance1", "first layer, m = 8"},
                 {FOUR, 1, "distance2", "second layer, m = 4"},
                 {EIGHT, 3, "distance2", "second layer, m = 8"}};
    size_t b, i;
    (void)panel;
    plot_categories(p, names, 4);
    for (b = 0; b < 4; b++) {
        lab_numbers y[4];
        for (i = 0; i < 4; i++)
            y[i] =
                lab_all(r, bars[b].arm, lab_format(r, "%s/%s", bars[b].series, shown[i]), LAB_LAST);
        lab_draw_bars(p, bars[b].label, y, 4, plot_solid(lab_level(bars[b].level, 4)));
    }
}

/* The largest of all trials of all seeds; but for panel->other, the smallest too. */
static void draw_variances(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    const plot_style style[METHODS] = {plot_dashed(lab_level(2, 3)), plot_solid(lab_level(0, 3)),
                                       plot_dashdot(lab_level(1, 3)), plot_dotted(PLOT_INK)};
    double low[OFFSETS], high[OFFSETS];
    size_t m, i;
    for (m = 0; m < METHODS; m++) {
        const char *up = lab_format(r, "%s/%s", panel->series, method[m].id);
        const char *down = lab_format(r, "low/%s", method[m].id);
        for (i = 0; i < OFFSETS; i++) {
            low[i] = lab_summary(r, ONE_PASS, down, offset[i]).min;
            high[i] = lab_summary(r, ONE_PASS, up, offset[i]).max;
        }
        if (!panel->other && m == 0) plot_band(p, NULL, offset, low, high, OFFSETS, style[m]);
        if (!panel->other) plot_line(p, method[m].name, offset, low, OFFSETS, style[m]);
        plot_line(p, method[m].name, offset, high, OFFSETS, style[m]);
    }
}

/* clang-format off */
#define STEPS_OF(column) .col = column, .cols = 3, .x = "training step", .x_scale = PLOT_LOG10
#define SIZES_OF(column) .row = 1, .col = column, .cols = 2, .x = "batch size m",                  \
    .x_scale = PLOT_LOG2, .y_range = {0.4, 1.5}
#define KEPT(what)                                                                                 \
    {LARGE, what "/last10", "last 10 batches", {.dash = PLOT_DOTTED}, .level = {0, 4}},            \
    {LARGE, what "/new0.001_corrected", "0.001 / (1 − 0.999^{t})",                                 \
     {PLOT_GREY, .marker = PLOT_TRIANGLE}},                                                        \
    {LARGE, what "/new0.001", "new weight 0.001", {.dash = PLOT_DASHED}, .level = {3, 4}},         \
    {LARGE, what "/new0.01", "new weight 0.01", {.dash = PLOT_DASHDOT}, .level = {1, 4}},          \
    {LARGE, what "/new0.1", "new weight 0.1", {PLOT_BLUE}}

static const lab_panel statistics[] = {
    {.axes = {STEPS_OF(0), .heading = "test accuracy, batches of 128", .y = "test accuracy (%)",
              .y_range = {0, 100}, .legend = PLOT_LEGEND_BOTTOM_RIGHT},
     .line = {KEPT("accuracy"),
              {LARGE, "accuracy/population", "population", {PLOT_INK, .marker = PLOT_RING}}}},
    {.axes = {STEPS_OF(3), .heading = "how far the logits are from the population's",
              .y = "largest difference", .y_scale = PLOT_LOG10, .legend = PLOT_LEGEND_NONE},
     .line = {KEPT("logits")}},
    {.axes = {SIZES_OF(0), .heading = "first layer, 400 batches",
              .y = "average / population variance", .legend = PLOT_LEGEND_TOP_RIGHT},
     .draw = draw_sizes, .series = "size1", .value = 1},
    {.axes = {SIZES_OF(2), .heading = "second layer, behind the first", .legend = PLOT_LEGEND_NONE},
     .draw = draw_sizes, .series = "size2", .value = 2},
    {.axes = {.row = 1, .col = 4, .cols = 2, .heading = "variances after training in batches of m",
              .y = "distance from population", .y_range = {0, 0.6},
              .legend = PLOT_LEGEND_TOP_RIGHT},
     .draw = draw_distances}};
static const lab_panel variances[] = {
    {.axes = {.heading = "from the smallest to the largest of all trials", .x = "offset",
              .x_scale = PLOT_LOG10, .x_range = {1, 1e5}, .y = "computed / true variance",
              .y_range = {-2, 4}},
     .draw = draw_variances, .series = "high"},
    {.axes = {.col = 1, .heading = "the largest error of all trials", .x = "offset",
              .x_scale = PLOT_LOG10, .x_range = {1, 1e5}, .y = "relative error",
              .y_scale = PLOT_LOG10, .y_range = {1e-9, 1e5}},
     .draw = draw_variances, .series = "error", .other = 1,
     .mark = {{LAB_HLINE, .y = 1e-5, .text = "criterion"}}}};
static const lab_page pages[] = {
    {"In batches of 4 the biased variance is nearer to the population's than the unbiased",
     .height = 1200, .scale = 0.88,
     .settings = "784-64-128-10, ReLU, batch norm before it, SGD with learning rate 0.05; a to d: "
                 "batches of 128, 10 epochs, five seeds; e: of 8 and 4, 7500 steps",
     LAB_PANELS(statistics)},
    {"E[x²] - μ² fails in 32 bits from an offset of some hundreds on", "onepass", 800, .seeds = 5,
     .settings = "200 trials of a seed for each offset, everything in 32 bits; normlayers.h takes "
                 "one pass from a pivot. Around 100,000 the numbers themselves are 1/128 apart",
     .no_data = 1, .shared_legend = 1, LAB_PANELS(variances)}};
/* clang-format on */

static void check(lab_report *r)
{
    const double apart = lab_worst(r, "agreement");
    lab_check(r, apart < 1e-4, "new weight 0.1 is what the layer itself keeps",
              "variances differ by %.1e at most", apart);
}

LAB_PROGRAM(
    "25_inference_statistics", "With which statistics does a batch norm leave training?",
    "784-64-128-10, ReLU, batch norm before it, SGD with learning rate 0.05; batches of 128, 10 "
    "epochs, or of 8 and 4, 7500 steps",
    .after = check, .revision = 2, .uses = LAB_USES_DATA, .prepare = prepare)
