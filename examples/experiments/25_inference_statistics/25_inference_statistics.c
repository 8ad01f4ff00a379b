/* 25_inference_statistics: with which statistics does a batch norm leave training? (README.md)

   In training a batch norm uses the mean and variance of the mini-batch; afterwards it needs some
   of its own. Ioffe and Szegedy (2015, Algorithm 2) average over mini-batches once training is over
   and correct the variance by m/(m-1); libraries and tutorials keep running averages, each in its
   own way. One network is trained here and looked at, again and again, through all of them:

       running averages      new weight 0.1, 0.01, 0.001 ("momentum" 0.9, 0.99, 0.999), of the
                             unbiased variance; the first also of the biased variance, and of the
                             standard deviation; the last also of the standard deviation (so a
                             lecture-style post has it), and divided by 1 - 0.999^t (Caffe)
       averages              of all batches so far; of the last 10, of variances or of standard
                             deviations
       Algorithm 2           over all training images in batches of the size trained with
       population            all training images in batches of 1000, merged into one variance: the
                             reference
       folded                the population's, melted into weights and biases

   Settings: 784-64-128-10 with ReLU, batch norm before it, γ from U(0,1), weights and biases
   uniform in ±1/sqrt(inputs), pixels in 0..1, as in the comparison of 10_mnist_norms; ours: SGD
   with learning rate 0.05, batches of 128 for 10 epochs, and of 8 and 4 for 7500 steps. eps 1e-5.
   "Distance" of a variance: mean over all units of |ln(variance / the population's)|.

   A second part is about the variance itself: E[x²] - μ² in one pass, two passes and Welford's
   update, all in 32 bits, of 128 numbers from N(offset, 1), 200 times per seed, against two passes
   in 64 bits on the same numbers. normlayers.h, one pass from a pivot, is drawn beside. */
#include "lab/experiment.h"
#include "lab/draw.h"

#include "lab/files.h"

enum { INPUTS = 784, WIDTH1 = 64, WIDTH2 = 128, CLASSES = 10, UNITS = WIDTH1 + WIDTH2 };
enum { NORMS = 2, RECENT = 10, MAX_BATCH = 1000, EPOCHS = 10 };
#define EPS 1e-5

enum { LARGE = 0, EIGHT, FOUR, ONE_PASS, ARMS };
static const lab_arm arms[ARMS] = {{"batch128", "batches of 128", 22, 0},
                                   {"batch8", "batches of 8", 6, 20},
                                   {"batch4", "batches of 4", 8, 20},
                                   {"onepass", "variance of 128 numbers", 1, 0}};
static const size_t batch_size[3] = {128, 8, 4};

static training_set train, test;

static int prepare(const dataset *d, int quick)
{
    (void)quick;
    return training_load(&train, &test, d, 0, 0, DATASET_RAW01);
}

/* ---- statistics kept beside those of the network --------------------------------------------- */

typedef struct moments { /* of all units of both layers */
    double mean[UNITS], var[UNITS];
} moments;

enum variant {
    FAST = 0, /* new weight 0.1, unbiased variance */
    FAST_BIASED,
    FAST_SD,
    MIDDLE, /* 0.01 */
    SLOW,   /* 0.001 */
    SLOW_SD,
    SLOW_CORRECTED,
    ALL_SO_FAR,
    LAST10,
    LAST10_SD,
    ALGORITHM2,
    POPULATION,
    VARIANTS
};
static const char *const variant_id[VARIANTS] = {
    "new0.1",   "new0.1_biased", "new0.1_sd",          "new0.01",
    "new0.001", "new0.001_sd",   "new0.001_corrected", "all_so_far",
    "last10",   "last10_sd",     "algorithm2",         "population"};
static const char *const variant_name[VARIANTS] = {"new weight 0.1",
                                                   "0.1, biased variance",
                                                   "0.1, standard deviation",
                                                   "new weight 0.01",
                                                   "new weight 0.001",
                                                   "0.001, standard deviation",
                                                   "0.001 / (1 − 0.999^{t})",
                                                   "all batches so far",
                                                   "last 10 batches",
                                                   "last 10, standard deviation",
                                                   "Algorithm 2",
                                                   "population"};

typedef struct batch_moments { /* of one batch, all units */
    double mean[UNITS], biased[UNITS], unbiased[UNITS], sd[UNITS];
} batch_moments;

/* Where a spread is averaged as a standard deviation, `var` holds that until it is used. */
typedef struct ledger {
    moments kept[SLOW_SD + 1]; /* the running averages                 */
    moments sum;               /* over all batches                     */
    batch_moments last[RECENT];
    size_t batches;
} ledger;

/* How the running averages are kept: weight of the new batch, and what is averaged. */
static const double new_weight[SLOW_SD + 1] = {0.1, 0.1, 0.1, 0.01, 0.001, 0.001};

static void ledger_start(ledger *k)
{
    size_t v, u;
    memset(k, 0, sizeof *k);
    for (v = 0; v <= SLOW_SD; v++)
        for (u = 0; u < UNITS; u++) k->kept[v].var[u] = 1;
}

static void ledger_add(ledger *k, const batch_moments *b)
{
    size_t v, u;
    for (v = 0; v <= SLOW_SD; v++) {
        const double *spread = v == FAST_BIASED               ? b->biased
                               : v == FAST_SD || v == SLOW_SD ? b->sd
                                                              : b->unbiased;
        const double w = new_weight[v];
        for (u = 0; u < UNITS; u++) {
            k->kept[v].mean[u] = (1 - w) * k->kept[v].mean[u] + w * b->mean[u];
            k->kept[v].var[u] = (1 - w) * k->kept[v].var[u] + w * spread[u];
        }
    }
    for (u = 0; u < UNITS; u++) {
        k->sum.mean[u] += b->mean[u];
        k->sum.var[u] += b->unbiased[u];
    }
    k->last[k->batches++ % RECENT] = *b;
}

/* Means over the last batches: of unbiased variances, or of standard deviations, squared. */
static void last_moments(const ledger *k, int of_sd, moments *out)
{
    const size_t n = k->batches < RECENT ? k->batches : RECENT;
    size_t i, u;
    memset(out, 0, sizeof *out);
    for (i = 0; i < n; i++)
        for (u = 0; u < UNITS; u++) {
            out->mean[u] += k->last[i].mean[u] / (double)n;
            out->var[u] += (of_sd ? k->last[i].sd[u] : k->last[i].unbiased[u]) / (double)n;
        }
    for (u = 0; u < UNITS && of_sd; u++) out->var[u] *= out->var[u];
}

/* What this way of keeping would use now; not for those that go over all images. */
static void ledger_read(const ledger *k, int variant, moments *out)
{
    const double n = (double)k->batches, residue = pow(1 - new_weight[SLOW], n);
    size_t u;
    if (variant == LAST10 || variant == LAST10_SD) {
        last_moments(k, variant == LAST10_SD, out);
        return;
    }
    for (u = 0; u < UNITS; u++) {
        if (variant == ALL_SO_FAR) {
            out->mean[u] = k->sum.mean[u] / n;
            out->var[u] = k->sum.var[u] / n;
        } else if (variant == SLOW_CORRECTED) { /* a 1 was there to begin with: off it goes */
            out->mean[u] = k->kept[SLOW].mean[u] / (1 - residue);
            out->var[u] = (k->kept[SLOW].var[u] - residue) / (1 - residue);
        } else {
            out->mean[u] = k->kept[variant].mean[u];
            out->var[u] = k->kept[variant].var[u];
            if (variant == FAST_SD || variant == SLOW_SD) out->var[u] *= out->var[u];
        }
    }
}

/* ---- the network ----------------------------------------------------------------------------- */

typedef struct trial {
    lab_run *run;
    nrm_mlp *net, *folded;
    void *block, *folded_block;
    training_order order;
    size_t batch, steps;
    ledger kept;
    moments population, now;
    double *logits, *reference; /* [test.n][CLASSES] */
} trial;

static nrm_mlp *make_net(const trial *t, int norm, void **block)
{
    nrm_mlp_layer layer[NORMS + 1];
    nrm_mlp_spec spec = training_plain(layer, NORMS, WIDTH1, NRM_RELU, norm);
    layer[1].width = WIDTH2;
    layer[0].bias = layer[1].bias = 1;
    spec.max_batch = MAX_BATCH;
    spec.seed = t->run->seed;
    spec.init = NRM_INIT_FAN_IN;
    spec.gamma_init = norm == NRM_NO_NORM ? NRM_GAMMA_ONE : NRM_GAMMA_UNIFORM;
    spec.eps = (nrm_real)EPS;
    spec.lr = (nrm_real)0.05;
    return training_net(&spec, block);
}

static size_t first_unit(size_t layer)
{
    return layer == 0 ? 0 : WIDTH1;
}

/* What the last forward pass in train mode has found in its batch of n. */
static void read_batch(const nrm_mlp *net, size_t n, batch_moments *b)
{
    const double lift = (double)n / (double)(n - 1);
    size_t l, j;
    for (l = 0; l < NORMS; l++)
        for (j = 0; j < net->state[l].shape.width; j++) {
            const size_t u = first_unit(l) + j;
            const double rstd = (double)net->state[l].rstd[j];
            const double v = 1 / (rstd * rstd) - (double)net->spec.eps;
            b->mean[u] = (double)net->state[l].mean[j];
            b->biased[u] = v > 0 ? v : 0;
            b->unbiased[u] = lift * b->biased[u];
            b->sd[u] = sqrt(b->unbiased[u]);
        }
}

static void get_running(const nrm_mlp *net, moments *m)
{
    size_t l, j;
    for (l = 0; l < NORMS; l++)
        for (j = 0; j < net->state[l].shape.width; j++) {
            m->mean[first_unit(l) + j] = (double)net->state[l].running.mean[j];
            m->var[first_unit(l) + j] = (double)net->state[l].running.var[j];
        }
}

static void set_running(nrm_mlp *net, const moments *m)
{
    size_t l, j;
    for (l = 0; l < NORMS; l++)
        for (j = 0; j < net->state[l].shape.width; j++) {
            net->state[l].running.mean[j] = (nrm_real)m->mean[first_unit(l) + j];
            net->state[l].running.var[j] = (nrm_real)m->var[first_unit(l) + j];
        }
}

/* Algorithm 2: batches of `size` forward in train mode, their means and unbiased variances
   averaged. A last, smaller batch is left out. */
static int algorithm2(nrm_mlp *net, size_t size, moments *m)
{
    const size_t batches = train.n / size;
    batch_moments b;
    size_t i, u;
    int status = NRM_OK;
    memset(m, 0, sizeof *m);
    for (i = 0; i < batches && status >= 0; i++) {
        status = nrm_mlp_forward(net, train.x + i * size * INPUTS, size, NRM_TRAIN);
        read_batch(net, size, &b);
        for (u = 0; u < UNITS; u++) {
            m->mean[u] += b.mean[u] / (double)batches;
            m->var[u] += b.unbiased[u] / (double)batches;
        }
    }
    return status;
}

/* ---- looking at it through each kind of statistics ------------------------------------------- */

static void record(lab_run *r, const char *what, const char *of, double x, double y)
{
    lab_record_as(r, x, y, "%s/%s", what, of);
}

/* Logits of the whole test set; returns the percentage that is right, or -1. */
static double test_logits(nrm_mlp *net, double *logits)
{
    size_t at, i, c, right = 0;
    for (at = 0; at < test.n; at += MAX_BATCH) {
        const size_t n = test.n - at < MAX_BATCH ? test.n - at : MAX_BATCH;
        if (nrm_mlp_forward(net, test.x + at * INPUTS, n, NRM_INFER) < 0) return -1;
        for (i = 0; i < n; i++) {
            const nrm_real *row = net->logits + i * CLASSES;
            size_t best = 0;
            for (c = 0; c < CLASSES; c++) {
                logits[(at + i) * CLASSES + c] = (double)row[c];
                if (row[c] > row[best]) best = c;
            }
            right += (int)best == test.labels[at + i];
        }
    }
    return 100 * (double)right / (double)test.n;
}

static double largest_difference(const double *a, const double *b, size_t n)
{
    double most = 0;
    size_t i;
    for (i = 0; i < n; i++)
        if (fabs(a[i] - b[i]) > most) most = fabs(a[i] - b[i]);
    return most;
}

/* Over the units from the first to the last, without the last. */
static double distance(const moments *a, const moments *b, size_t first, size_t last)
{
    double sum = 0;
    size_t u;
    for (u = first; u < last; u++) sum += fabs(log(a->var[u] / b->var[u]));
    return sum / (double)(last - first);
}

/* Of both layers; for the small batches, and the kinds that the page compares, also of each. */
static void record_distance(trial *t, int variant, size_t step)
{
    const char *id = variant_id[variant];
    record(t->run, "distance", id, (double)step, distance(&t->now, &t->population, 0, UNITS));
    if (t->run->arm == LARGE || (variant > FAST_SD && variant != ALGORITHM2)) return;
    record(t->run, "distance1", id, (double)step, distance(&t->now, &t->population, 0, WIDTH1));
    record(t->run, "distance2", id, (double)step, distance(&t->now, &t->population, WIDTH1, UNITS));
}

static int look_through(trial *t, int variant, size_t step)
{
    const char *id = variant_id[variant];
    double accuracy, apart;
    if (variant < ALGORITHM2) ledger_read(&t->kept, variant, &t->now);
    set_running(t->net, &t->now);
    accuracy = test_logits(t->net, t->logits);
    apart = largest_difference(t->logits, t->reference, test.n * CLASSES);
    record(t->run, "accuracy", id, (double)step, accuracy);
    if (variant == POPULATION) return accuracy < 0 ? -1 : 0;
    record(t->run, "logits", id, (double)step, apart);
    record_distance(t, variant, step);
    return accuracy < 0 ? -1 : 0;
}

/* The network without batch norms whose weights and biases have them inside. The running statistics
   are the population's. */
static int record_folded(trial *t)
{
    const size_t n = test.n * CLASSES;
    double most = 0;
    size_t l, i;
    int status = 0;
    for (l = 0; l < NORMS && status >= 0; l++) {
        const nrm_mlp_state *s = &t->net->state[l];
        status = nrm_batchnorm_fold(t->folded->state[l].W, t->folded->state[l].b, s->W, s->b,
                                    &s->running, s->gamma, s->beta, t->net->spec.eps, s->in,
                                    s->shape.width, 1);
    }
    memcpy(t->folded->state[NORMS].W, t->net->state[NORMS].W,
           WIDTH2 * CLASSES * sizeof *t->net->state[NORMS].W);
    memcpy(t->folded->state[NORMS].b, t->net->state[NORMS].b,
           CLASSES * sizeof *t->net->state[NORMS].b);
    if (status < 0 || test_logits(t->folded, t->logits) < 0) return -1;
    for (i = 0; i < n; i++)
        if (fabs(t->reference[i]) > most) most = fabs(t->reference[i]);
    lab_record(t->run, "folded", 0, largest_difference(t->logits, t->reference, n) / most);
    return 0;
}

/* How large the variances of batches of m come out, relative to the population's: mean over the
   units of a layer, for the weights as they are after training. */
static int record_sizes(trial *t)
{
    enum { BATCHES = 400 };
    static const size_t size[7] = {2, 4, 8, 16, 32, 64, 128};
    static const char *const name[3] = {"biased", "unbiased", "sd"};
    const size_t first[NORMS + 1] = {0, WIDTH1, UNITS};
    static double sum[3][UNITS];
    batch_moments b;
    size_t m, i, k, l, u;
    for (m = 0; m < 7; m++) {
        memset(sum, 0, sizeof sum);
        for (i = 0; i < BATCHES; i++) {
            const size_t at = (i * 128 + 64 * (i / (train.n / 128))) % (train.n - 128);
            if (nrm_mlp_forward(t->net, train.x + at * INPUTS, size[m], NRM_TRAIN) < 0) return -1;
            read_batch(t->net, size[m], &b);
            for (u = 0; u < UNITS; u++) {
                sum[0][u] += b.biased[u] / BATCHES;
                sum[1][u] += b.unbiased[u] / BATCHES;
                sum[2][u] += b.sd[u] / BATCHES;
            }
        }
        for (k = 0; k < 3; k++)
            for (l = 0; l < NORMS; l++) {
                double mean = 0;
                for (u = first[l]; u < first[l + 1]; u++) {
                    const double v = k == 2 ? sum[k][u] * sum[k][u] : sum[k][u];
                    mean += v / t->population.var[u] / (double)(first[l + 1] - first[l]);
                }
                record(t->run, l == 0 ? "size1" : "size2", name[k], (double)size[m], mean);
            }
    }
    return 0;
}

static int look(trial *t, size_t step, int is_last)
{
    size_t batches[NORMS], l;
    moments running, after;
    int status, v;
    get_running(t->net, &running);
    for (l = 0; l < NORMS; l++) batches[l] = t->net->state[l].running.batches;
    status = training_reestimate(t->net, train.x, train.n);
    get_running(t->net, &t->population);
    if (status >= 0 && test_logits(t->net, t->reference) < 0) status = -1;
    t->now = t->population;
    if (status >= 0) status = look_through(t, POPULATION, step);
    if (status >= 0 && is_last) status = record_folded(t);
    if (status >= 0 && is_last && t->run->arm == LARGE) status = record_sizes(t);
    for (v = 0; v < ALGORITHM2 && status >= 0; v++) status = look_through(t, v, step);
    if (status >= 0) status = algorithm2(t->net, t->batch, &t->now);
    if (status >= 0) status = look_through(t, ALGORITHM2, step);
    set_running(t->net, &running);
    for (l = 0; l < NORMS; l++) t->net->state[l].running.batches = batches[l];
    get_running(t->net, &after);
    if (memcmp(&running, &after, sizeof running) != 0) lab_record(t->run, "touched", 0, 1);
    return status;
}

/* ---- one training ---------------------------------------------------------------------------- */

static int is_looked_at(const trial *t, size_t step)
{
    static const size_t at[7] = {10, 20, 50, 100, 200, 1000, 3000};
    const size_t epoch = training_steps(train.n, t->batch);
    size_t i;
    if (step == t->steps || (t->run->arm == LARGE && step % epoch == 0)) return 1;
    for (i = 0; i < 7; i++)
        if (at[i] == step) return t->run->arm == LARGE || step >= 1000;
    return 0;
}

/* The network keeps running statistics too: they must be those of the ledger. */
static void record_agreement(trial *t)
{
    moments running, mine;
    double worst = 0;
    size_t u;
    get_running(t->net, &running);
    ledger_read(&t->kept, FAST, &mine);
    for (u = 0; u < UNITS; u++) {
        const double off = fabs(running.var[u] / mine.var[u] - 1);
        if (off > worst) worst = off;
    }
    lab_record(t->run, "agreement", 0, worst);
}

static int train_net(trial *t)
{
    batch_moments b;
    size_t step;
    int status = NRM_OK;
    ledger_start(&t->kept);
    for (step = 1; step <= t->steps && status >= 0; step++) {
        if (!training_next(&t->order, &train) && !training_next(&t->order, &train)) return -1;
        status = nrm_mlp_train_step(t->net, NULL, t->order.x, t->order.labels, t->order.count);
        read_batch(t->net, t->order.count, &b);
        ledger_add(&t->kept, &b);
        if (status >= 0 && is_looked_at(t, step)) status = look(t, step, step == t->steps);
        if (step % 50 == 0) lab_progress(t->run, (double)step / (double)t->steps);
    }
    record_agreement(t);
    return status;
}

static int run_training(lab_run *r)
{
    trial *t = (trial *)calloc(1, sizeof *t);
    int status = -1;
    if (!t) return -1;
    t->run = r;
    t->batch = batch_size[r->arm];
    t->steps = r->quick ? 50 : r->arm == LARGE ? EPOCHS * training_steps(train.n, t->batch) : 7500;
    t->net = make_net(t, NRM_BATCH_NORM, &t->block);
    t->folded = make_net(t, NRM_NO_NORM, &t->folded_block);
    t->logits = (double *)malloc(test.n * CLASSES * sizeof *t->logits);
    t->reference = (double *)malloc(test.n * CLASSES * sizeof *t->reference);
    if (t->net && t->folded && t->logits && t->reference &&
        !training_order_start(&t->order, train.n, t->batch, INPUTS, r->seed))
        status = train_net(t);
    training_order_free(&t->order);
    free(t->logits);
    free(t->reference);
    free(t->block);
    free(t->folded_block);
    free(t);
    return status < 0 ? -1 : 0;
}

/* ---- the variance of 128 numbers ------------------------------------------------------------- */

enum { NUMBERS = 128, TRIALS = 200, OFFSETS = 12, METHODS = 4 };
static const double offset[OFFSETS] = {0, 1, 3, 10, 30, 100, 300, 1000, 4096, 10000, 30000, 100000};
static const char *const method_id[METHODS] = {"one_pass", "two_passes", "welford", "header"};

static double one_pass(const float *x)
{
    float sum = 0, squares = 0, mean;
    size_t i;
    for (i = 0; i < NUMBERS; i++) {
        sum += x[i];
        squares += x[i] * x[i];
    }
    mean = sum / NUMBERS;
    return (double)(squares / NUMBERS - mean * mean);
}

static double two_passes(const float *x)
{
    float sum = 0, squares = 0, mean;
    size_t i;
    for (i = 0; i < NUMBERS; i++) sum += x[i];
    mean = sum / NUMBERS;
    for (i = 0; i < NUMBERS; i++) squares += (x[i] - mean) * (x[i] - mean);
    return (double)(squares / NUMBERS);
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

static int run_variances(lab_run *r)
{
    double (*const method[METHODS])(const float *) = {one_pass, two_passes, welford, header};
    float x[NUMBERS];
    nrm_rng rng;
    size_t o, trial_number, m, i;
    nrm_rng_seed(&rng, r->seed, TRAINING_STREAM_DATA);
    for (o = 0; o < OFFSETS; o++) {
        double most[METHODS] = {0, 0, 0, 0}, low[METHODS], high[METHODS], bad = 0;
        for (trial_number = 0; trial_number < TRIALS; trial_number++) {
            double truth;
            for (i = 0; i < NUMBERS; i++) x[i] = (float)(offset[o] + (double)draw_normal(&rng));
            truth = exact(x);
            for (m = 0; m < METHODS; m++) {
                const double v = method[m](x), off = fabs(v - truth) / truth;
                if (off > most[m]) most[m] = off;
                if (trial_number == 0 || v / truth < low[m]) low[m] = v / truth;
                if (trial_number == 0 || v / truth > high[m]) high[m] = v / truth;
                /* clamped at 0, as it must be before the root */
                if (!isfinite(1 / sqrt((v > 0 ? v : 0) + EPS))) bad++;
            }
        }
        for (m = 0; m < METHODS; m++) {
            record(r, "error", method_id[m], offset[o], most[m]);
            record(r, "low", method_id[m], offset[o], low[m]);
            record(r, "high", method_id[m], offset[o], high[m]);
        }
        lab_record(r, "not_finite", offset[o], bad);
    }
    return 0;
}

static int run(lab_run *r)
{
    return r->arm == ONE_PASS ? run_variances(r) : run_training(r);
}

/* ---- checks ---------------------------------------------------------------------------------- */

/* E[s]/σ for the standard deviation s, divisor m - 1, of m Gaussian numbers. */
static double c4(double m)
{
    return sqrt(2 / (m - 1)) * exp(lgamma(m / 2) - lgamma((m - 1) / 2));
}

/* The mean standard deviation of groups of 32 Gaussian numbers. */
static double mean_sd_of_32(void)
{
    enum { GROUPS = 20000 };
    double x[32], mean = 0;
    nrm_rng rng;
    size_t g, i;
    nrm_rng_seed(&rng, 1, TRAINING_STREAM_DATA);
    for (g = 0; g < GROUPS; g++) {
        for (i = 0; i < 32; i++) x[i] = (double)draw_normal(&rng);
        mean += stats_describe(x, 32).sd / GROUPS;
    }
    return mean;
}

/* What is left of the variance that running statistics begin with, after 1000 batches of variance
   0 or of new weight 0.001; and do new weight 0.1 and old weight 0.9 mean the same? */
static void check_running(lab_report *r)
{
    const nrm_real x[2] = {3, 3};
    nrm_real y[2], mean = 0, var = 1;
    nrm_acc saved_mean, saved_rstd;
    nrm_running running;
    double old_way = 1, new_way = 1;
    int i;
    memset(&running, 0, sizeof running);
    running.mean = &mean;
    running.var = &var;
    running.new_weight = (nrm_real)0.001;
    for (i = 0; i < 1000; i++)
        (void)nrm_batchnorm_forward(y, &saved_mean, &saved_rstd, &running, x, NULL, NULL, NRM_TRAIN,
                                    (nrm_real)EPS, 2, 1, 1);
    lab_check(r, fabs((double)var - 0.36770) < 1e-4,
              "new weight 0.001 keeps 0.999^t of where it began", "%.5f at t = 1000, expected %.5f",
              (double)var, pow(0.999, 1000));
    for (i = 0; i < 100; i++) {
        const double batch = 1 + (double)(i % 7);
        old_way = old_way * 0.9 + batch * (1 - 0.9);
        new_way = (1 - 0.1) * new_way + 0.1 * batch;
    }
    lab_check(r, fabs(old_way / new_way - 1) < 1e-12,
              "0.9 on the old value and 0.1 on the new one are the same average",
              "they differ by %.1e", fabs(old_way / new_way - 1));
}

static void check(lab_report *r)
{
    double folded = 0, agreement = 0, bad = 0;
    size_t a, s, touched = 0, o;
    const double sd = mean_sd_of_32();
    lab_check(r, fabs(c4(32) - 0.99197) < 1e-5 && fabs(sd - c4(32)) < 1e-3,
              "the mean standard deviation of 32 Gaussian numbers is c4(32)·σ",
              "c4(32) = %.5f, expected 0.99197; 20,000 draws: %.4f", c4(32), sd);
    check_running(r);
    for (a = LARGE; a <= FOUR; a++)
        for (s = 0; s < lab_seeds(r, a); s++) {
            folded = stats_larger(folded, lab_at(r, a, s, "folded", 0));
            agreement = stats_larger(agreement, lab_at(r, a, s, "agreement", 0));
            touched += lab_get(r, a, s, "touched").n;
        }
    for (s = 0; s < lab_seeds(r, ONE_PASS); s++)
        for (o = 0; o < OFFSETS; o++) bad += lab_at(r, ONE_PASS, s, "not_finite", offset[o]);
    lab_check(r, folded < 1e-5, "folded and unfolded networks have the same logits",
              "largest difference %.1e of the largest logit, expected below 1e-5", folded);
    lab_check(r, agreement < 1e-4, "new weight 0.1 is what the layer itself keeps",
              "variances differ by %.1e at most", agreement);
    lab_check(r, touched == 0, "looking leaves the running statistics as they were",
              "%lu looks did not", (unsigned long)touched);
    lab_check(r, bad < 1, "1/sqrt(variance + eps) is finite once the variance is clamped at 0",
              "%.0f times not", bad);
}

/* ---- claims ---------------------------------------------------------------------------------- */

static const char *series_of(lab_report *r, const char *what, int variant)
{
    return lab_format(r, "%s/%s", what, variant_id[variant]);
}

/* Is one way of keeping statistics below another, in the same runs? */
static stats_finding compare(lab_report *r, size_t arm, const char *what, int low, int high,
                             double at)
{
    return lab_compare_series(r, arm, series_of(r, what, low), series_of(r, what, high), at, -1, 1);
}

static const char *text_of(lab_report *r, size_t arm, const char *what, int variant, double at,
                           int decimals)
{
    return lab_text(r, arm, series_of(r, what, variant), at, decimals);
}

/* clang-format off */
static const lab_claim claims[] = {
    {"25a", "Too slow a running average looks like a failure of batch norm", "ours: a reading of a "
     "lecture-style post on how batch norm helps, which keeps 0.999 of the old",
     "the post does not evaluate",
     "batches of 128: new weight 0.001 below 0.1 in test accuracy at steps 100 and 1000",
     "trial run (1 seed), steps 10, 100, 1000, 3000: 0.1: 73.9, 91.3, 96.6, 97.4 %; 0.001: 62.5, "
     "87.4, 94.7, 97.0 %", LAB_TRAINING, LAB_SETTING},
    {"25b", "With moving averages the accuracy can be tracked as the model trains",
     "Ioffe & Szegedy 2015, section 3.1", "no number", "new weight 0.1 within 0.5 points of "
     "Algorithm 2 at the end of every epoch, seed by seed (of the means, until after the run)",
     "none", LAB_TRAINING, LAB_SETTING},
    {"25c", "The mean over the last few batches is enough for inference",
     "Chinese notes on batch norm", "no number", "batches of 128: last 10 at most 0.2 points of "
     "test accuracy below the population, seed by seed (of the means, until after the run)", "none",
     LAB_TRAINING, LAB_SETTING},
    {"25d", "The stored variance should be the unbiased one",
     "Ioffe & Szegedy 2015, Algorithm 2; a tutorial with a custom batch norm",
     "m/(m-1) is in the algorithm; no number",
     "distance from the population smaller with it, batches of 4 and of 8, after training", "none",
     LAB_TRAINING, LAB_NEWS},
    {"25e", "With the unbiased variance the logits are closer, too",
     "ours: what the unbiased variance should be good for", "no number",
     "largest difference of a logit from the population's smaller with it, batches of 4 and of 8",
     "none", LAB_TRAINING, LAB_SETTING},
    {"25f", "Variances are to be averaged, not standard deviations",
     "ours: a correction to the Chinese notes on batch norm and to the lecture-style post",
     "both average standard deviations",
     "distance from the population smaller with variances, batches of 4 and of 8", "none",
     LAB_TRAINING, LAB_NEWS},
    {"25g", "Two passes, and Welford's update, are exact enough in 32 bits",
     "ours: textbook algorithms", "no number",
     "relative error below 1e-5 at offsets 0 to 10,000, largest of all trials and seeds",
     "trial run: both below 1e-5", LAB_ARITHMETIC, LAB_ALGEBRA},
    {"25h", "The variance may be computed as E[x²] − μ² in 32 bits",
     "ours: the formula of a derivation of batch norm's backward pass, taken for a program",
     "the formula is given, not how to compute it",
     "relative error below 1e-5 at offsets 0 to 10,000, largest of all trials and seeds",
     "trial run: −0.0032 for a variance near 1 at offset 4096, 4.31 for 0.85 at 10,000",
     LAB_ARITHMETIC, LAB_ALGEBRA}};
/* clang-format on */

static void judge_slow(lab_report *r)
{
    const double first = lab_quick(r) ? 10 : 100, second = lab_quick(r) ? 50 : 1000;
    const stats_finding v[2] = {compare(r, LARGE, "accuracy", SLOW, FAST, first),
                                compare(r, LARGE, "accuracy", SLOW, FAST, second)};
    lab_verdict(r, lab_find(r, "25a"), stats_together(v, 2), "",
                "step 100: %s against %s %%; 1000: %s against %s %%",
                text_of(r, LARGE, "accuracy", SLOW, first, 1),
                text_of(r, LARGE, "accuracy", FAST, first, 1),
                text_of(r, LARGE, "accuracy", SLOW, second, 1),
                text_of(r, LARGE, "accuracy", FAST, second, 1));
}

/* How far two ways of keeping are apart in test accuracy, seed by seed, batches of 128. */
static size_t apart(lab_report *r, int a, int b, double at, double *points)
{
    double other[LAB_SEEDS_MAX];
    const size_t n = lab_values(r, LARGE, series_of(r, "accuracy", a), at, points);
    size_t s;
    (void)lab_values(r, LARGE, series_of(r, "accuracy", b), at, other);
    for (s = 0; s < n; s++) points[s] -= other[s];
    return n;
}

static void judge_tracking(lab_report *r)
{
    const lab_curve all = lab_over_seeds(r, LARGE, series_of(r, "accuracy", FAST));
    const double epoch = lab_quick(r) ? 50 : 469;
    stats_finding part[EPOCHS];
    double points[LAB_SEEDS_MAX], of_mean = 0, of_one = 0;
    size_t i, s, n, epochs = 0, met = 0;
    for (i = 0; i < all.n && epochs < EPOCHS; i++) {
        if (fmod(all.x[i], epoch) >= 0.5) continue;
        n = apart(r, FAST, ALGORITHM2, all.x[i], points);
        of_mean = stats_larger(of_mean, fabs(stats_mean(points, n)));
        for (s = 0; s < n; s++) {
            points[s] = fabs(points[s]);
            of_one = stats_larger(of_one, points[s]);
        }
        part[epochs] = stats_judge_limit(points, n, 0.5, -1);
        met += stats_reproduced(part[epochs++]) ? 1u : 0u;
    }
    lab_verdict(
        r, lab_find(r, "25b"), stats_together(part, epochs),
        lab_format(r, "met at %lu of %lu epochs", (unsigned long)met, (unsigned long)epochs),
        "at most %.2f points apart in the mean of the seeds, %.2f in a single one", of_mean,
        of_one);
}

static void judge_last(lab_report *r)
{
    double points[LAB_SEEDS_MAX];
    const size_t n = apart(r, POPULATION, LAST10, LAB_LAST, points);
    lab_verdict(r, lab_find(r, "25c"), stats_judge_limit(points, n, 0.2, -1),
                lab_format(r, "batches of 8: %s, of 4: %s %%",
                           text_of(r, EIGHT, "accuracy", LAST10, LAB_LAST, 2),
                           text_of(r, FOUR, "accuracy", LAST10, LAB_LAST, 2)),
                "%s against %s %%", text_of(r, LARGE, "accuracy", LAST10, LAB_LAST, 2),
                text_of(r, LARGE, "accuracy", POPULATION, LAB_LAST, 2));
}

/* The same in each layer, for batches of 4. */
static const char *by_layer(lab_report *r, int high)
{
    return lab_format(r, "batches of 4, first layer alone: %s against %s; second: %s against %s",
                      text_of(r, FOUR, "distance1", FAST, LAB_LAST, 3),
                      text_of(r, FOUR, "distance1", high, LAB_LAST, 3),
                      text_of(r, FOUR, "distance2", FAST, LAB_LAST, 3),
                      text_of(r, FOUR, "distance2", high, LAB_LAST, 3));
}

static void judge_bias(lab_report *r)
{
    static const char *const what[3] = {"distance", "logits", "distance"};
    static const int high[3] = {FAST_BIASED, FAST_BIASED, FAST_SD};
    const lab_claim *claim[3];
    int i;
    claim[0] = lab_find(r, "25d");
    claim[1] = lab_find(r, "25e");
    claim[2] = lab_find(r, "25f");
    for (i = 0; i < 3; i++) {
        const stats_finding v[2] = {compare(r, FOUR, what[i], FAST, high[i], LAB_LAST),
                                    compare(r, EIGHT, what[i], FAST, high[i], LAB_LAST)};
        lab_verdict(r, claim[i], stats_together(v, 2), i == 1 ? "" : by_layer(r, high[i]),
                    "batches of 4: %s against %s; of 8: %s against %s",
                    text_of(r, FOUR, what[i], FAST, LAB_LAST, 3),
                    text_of(r, FOUR, what[i], high[i], LAB_LAST, 3),
                    text_of(r, EIGHT, what[i], FAST, LAB_LAST, 3),
                    text_of(r, EIGHT, what[i], high[i], LAB_LAST, 3));
    }
}

/* The largest relative error of all trials and seeds at the offsets of the claim. */
static double worst_error(lab_report *r, int method)
{
    static const double claimed[6] = {0, 10, 100, 1000, 4096, 10000};
    const char *series = lab_format(r, "error/%s", method_id[method]);
    double worst = 0;
    size_t i;
    for (i = 0; i < 6; i++)
        worst = stats_larger(worst, lab_summary(r, ONE_PASS, series, claimed[i]).max);
    return worst;
}

static void judge_variances(lab_report *r)
{
    const double two = worst_error(r, 1), update = worst_error(r, 2), one = worst_error(r, 0);
    lab_verdict(r, lab_find(r, "25g"), stats_holds(two < 1e-5 && update < 1e-5), "",
                "largest: %.1e and %.1e", two, update);
    lab_verdict(r, lab_find(r, "25h"), stats_holds(one < 1e-5), "",
                "largest: %.1e; between %.1f and %.1f times the true "
                "variance at offset 10,000",
                one, lab_summary(r, ONE_PASS, "low/one_pass", 10000).min,
                lab_summary(r, ONE_PASS, "high/one_pass", 10000).max);
}

/* ---- figures --------------------------------------------------------------------------------- */

enum { DRAWN = 6 };
static const int drawn[DRAWN] = {POPULATION, FAST, MIDDLE, SLOW, SLOW_CORRECTED, LAST10};

static plot_style drawn_style(int i)
{
    switch (drawn[i]) {
    case FAST:
        return plot_solid(PLOT_BLUE);
    case MIDDLE:
        return plot_dashdot(lab_level(1, 4));
    case SLOW:
        return plot_dashed(lab_level(3, 4));
    case SLOW_CORRECTED:
        return plot_marked(PLOT_GREY, PLOT_TRIANGLE);
    case LAST10:
        return plot_dotted(lab_level(0, 4));
    default:
        return plot_marked(PLOT_INK, PLOT_RING);
    }
}

static plot_panel *add_panel(plot_figure *f, int row, int col, int colspan, const char *heading,
                             const char *x, int x_scale, const char *y, int y_scale)
{
    plot_panel *p = plot_add(f, row, col, 1, colspan);
    plot_heading(p, heading);
    plot_axis_x(p, x, x_scale);
    plot_axis_y(p, y, y_scale);
    return p;
}

static void draw_training(lab_report *r, plot_figure *f)
{
    plot_panel *a = add_panel(f, 0, 0, 3, "test accuracy, batches of 128", "training step",
                              PLOT_LOG10, "test accuracy (%)", PLOT_LINEAR);
    plot_panel *b = add_panel(f, 0, 3, 3, "how far the logits are from the population's",
                              "training step", PLOT_LOG10, "largest difference", PLOT_LOG10);
    int i;
    plot_range_y(a, 0, 100);
    plot_legend(a, PLOT_LEGEND_BOTTOM_RIGHT);
    plot_legend(b, PLOT_LEGEND_NONE);
    for (i = DRAWN - 1; i >= 0; i--) {
        const char *name = variant_name[drawn[i]];
        lab_plot(r, a, LARGE, series_of(r, "accuracy", drawn[i]), name, drawn_style(i));
        if (drawn[i] != POPULATION)
            lab_plot(r, b, LARGE, series_of(r, "logits", drawn[i]), name, drawn_style(i));
    }
}

/* How large variances of small batches come out: measured, and what theory says of a layer whose
   inputs are independent examples, or come from another batch norm. */
static void draw_sizes(lab_report *r, plot_panel *p, int layer)
{
    static const char *const id[3] = {"biased", "unbiased", "sd"};
    static const char *const name[3] = {"biased variance", "unbiased variance",
                                        "standard deviation²"};
    const plot_color color[3] = {lab_level(0, 3), lab_level(1, 3), lab_level(2, 3)};
    static const int marker[3] = {PLOT_CIRCLE, PLOT_SQUARE, PLOT_TRIANGLE};
    static const double m[7] = {2, 4, 8, 16, 32, 64, 128};
    double theory[7];
    size_t i, k;
    plot_range_y(p, 0.4, 1.5);
    plot_legend(p, layer == 1 ? PLOT_LEGEND_TOP_RIGHT : PLOT_LEGEND_NONE);
    for (k = 0; k < 3; k++) {
        const lab_curve c = lab_over_seeds(r, LARGE, lab_format(r, "size%d/%s", layer, id[k]));
        for (i = 0; i < 7; i++) {
            const double shrunk = (m[i] - 1) / m[i];
            theory[i] = k == 0 ? shrunk : k == 1 ? 1 : c4(m[i]) * c4(m[i]);
            if (layer == 2) theory[i] /= shrunk;
        }
        plot_line(p, NULL, m, theory, 7, plot_solid(color[k]));
        plot_scatter(p, name[k], c.x, c.mean, c.n, plot_marked(color[k], marker[k]));
    }
}

static void draw_distances(lab_report *r, plot_panel *p)
{
    static const int variant[4] = {FAST, FAST_BIASED, FAST_SD, ALGORITHM2};
    static const char *const names[4] = {"unbiased", "biased", "sd", "Alg. 2"};
    static const char *const series[2] = {"distance1", "distance2"};
    static const char *const label[2][2] = {{"first layer, m = 8", "second layer, m = 8"},
                                            {"first layer, m = 4", "second layer, m = 4"}};
    const plot_color color[2][2] = {{lab_level(2, 4), lab_level(3, 4)},
                                    {lab_level(0, 4), lab_level(1, 4)}};
    size_t l, a, i;
    plot_categories(p, names, 4);
    plot_legend(p, PLOT_LEGEND_TOP_RIGHT);
    plot_range_y(p, 0, 0.6);
    for (l = 0; l < 2; l++)
        for (a = 2; a-- > 0;) {
            double mean[4], sd[4];
            for (i = 0; i < 4; i++) {
                const stats_summary s =
                    lab_summary(r, EIGHT + a, series_of(r, series[l], variant[i]), LAB_LAST);
                mean[i] = s.mean;
                sd[i] = s.n > 1 ? s.sd : 0;
            }
            plot_bars(p, label[a][l], mean, sd, 4, plot_solid(color[a][l]));
        }
}

static int page_statistics(lab_report *r)
{
    plot_figure *f = lab_figure(
        r, "In batches of 4 the biased variance serves inference better than the unbiased", 2000,
        1500);
    plot_scale(f, 0.88);
    draw_training(r, f);
    draw_sizes(r,
               add_panel(f, 1, 0, 2, "first layer, 400 batches", "batch size m", PLOT_LOG2,
                         "average / population variance", PLOT_LINEAR),
               1);
    draw_sizes(r,
               add_panel(f, 1, 2, 2, "second layer, behind the first", "batch size m", PLOT_LOG2,
                         "", PLOT_LINEAR),
               2);
    draw_distances(r, add_panel(f, 1, 4, 2, "variances after training in batches of m", "",
                                PLOT_LINEAR, "distance from population", PLOT_LINEAR));
    return lab_save(r, f, NULL);
}

/* Smallest and largest of all trials of all seeds. */
static void draw_variances(lab_report *r, plot_panel *a, plot_panel *b, size_t method,
                           const char *name, plot_style style)
{
    const char *id = method_id[method];
    double low[OFFSETS], high[OFFSETS], most[OFFSETS];
    size_t i;
    for (i = 0; i < OFFSETS; i++) {
        low[i] = lab_summary(r, ONE_PASS, lab_format(r, "low/%s", id), offset[i]).min;
        high[i] = lab_summary(r, ONE_PASS, lab_format(r, "high/%s", id), offset[i]).max;
        most[i] = lab_summary(r, ONE_PASS, lab_format(r, "error/%s", id), offset[i]).max;
    }
    if (method == 0) plot_band(a, NULL, offset, low, high, OFFSETS, style);
    plot_line(a, name, offset, low, OFFSETS, style);
    plot_line(a, name, offset, high, OFFSETS, style);
    plot_line(b, name, offset, most, OFFSETS, style);
}

static int page_one_pass(lab_report *r)
{
    static const char *const name[METHODS] = {"E[x²] − μ², one pass", "two passes",
                                              "Welford's update", "normlayers.h"};
    const unsigned trials = (unsigned)(lab_seeds(r, ONE_PASS) * TRIALS);
    plot_style style[METHODS];
    plot_figure *f =
        lab_figure(r, "E[x²] - μ² fails in 32 bits from an offset of some hundreds on", 2000, 1000);
    plot_panel *a = add_panel(f, 0, 0, 1, "from the smallest to the largest of all trials",
                              "offset", PLOT_LOG10, "computed / true variance", PLOT_LINEAR);
    plot_panel *b = add_panel(f, 0, 1, 1, "the largest error of all trials", "offset", PLOT_LOG10,
                              "relative error", PLOT_LOG10);
    size_t m;
    plot_subtitle(f,
                  lab_format(r,
                             "%u trials for each offset, everything in 32 bits; normlayers.h takes "
                             "one pass from a pivot. Around 100,000 the numbers themselves are "
                             "1/128 apart.",
                             trials));
    plot_shared_legend(f);
    plot_range_y(a, -2, 4);
    plot_range_y(b, 1e-9, 1e5);
    plot_range_x(a, 1, 1e5);
    plot_range_x(b, 1, 1e5);
    style[0] = plot_dashed(lab_level(2, 3));
    style[1] = plot_solid(lab_level(0, 3));
    style[2] = plot_dashdot(lab_level(1, 3));
    style[3] = plot_dotted(PLOT_INK);
    for (m = 0; m < METHODS; m++) draw_variances(r, a, b, m, name[m], style[m]);
    plot_hline(b, 1e-5, "criterion", plot_thin(PLOT_INK));
    return lab_save(r, f, "onepass");
}

static int report(lab_report *r)
{
    check(r);
    judge_slow(r);
    judge_tracking(r);
    judge_last(r);
    judge_bias(r);
    judge_variances(r);
    return page_statistics(r) || page_one_pass(r);
}

/* clang-format off */
static const lab_program program = {
    "25_inference_statistics", NRM_VERSION,
    "With which statistics does a batch norm leave training?",
    "784-64-128-10, ReLU, batch norm before it, SGD with learning rate 0.05; batches of 128, 10 "
    "epochs, or of 8 and 4, 7500 steps", 1, LAB_USES_DATA, arms, ARMS, prepare, run, report, claims,
    LAB_COUNT(claims)};
/* clang-format on */
LAB_MAIN(program)
