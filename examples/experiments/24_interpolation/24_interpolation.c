/* 24_interpolation: what lies between the solutions that different optimizers find? (README.md)

   A 784-64-64-10 network with ReLU is trained for three epochs (batch 128, pixels with mean 0 and
   variance 1, W ~ U(±sqrt(6/(in+out)))) by four optimizers, from the same start and on the same
   batches:

       SGD        learning rate 0.1
       momentum   0.9, learning rate 0.01
       RMSprop    learning rate 0.001, v kept by 0.9, 1e-8 added to its root
       Adam       learning rate 0.001, 0.9, 0.999, 1e-8

   Between each two solutions A and B the loss and the error on the first 5000 training images are
   taken at (1-a) A + a B, all parameters alike, at 29 points from a = -0.2 to 1.2; and between each
   three of them on a triangle of 21 points a side. Batch norm uses the statistics of these 5000
   images at every point. Two pairs more tell how much of it is due to the optimizer: SGD twice, the
   second time with other batches, or from another start.

   The barrier of a pair is the largest loss at 0 <= a <= 1, less that of the worse end. The claims;
   what counts as reproduced was written down before the run:

       24a  a barrier separates the solutions of different optimizers: without norm it is above 1 %
            of the worse end's loss in at least 4 of 5 seeds, mean beyond 2 standard errors, for
            each of the six pairs (partly: for some)
       24b  the same with batch norm
       24c  with batch norm the curves are more alike from start to start: the distance of a seed's
            curve from the mean of the other seeds' curves, divided by that mean, averaged over 0 <=
            a <= 1 and the six pairs, is smaller than without, paired over seeds; and the standard
            deviation over seeds, divided by the mean, is smaller in at least 5 of the 6 pairs
            (else partly)
       24d  from one start the optimizers end in different places: |A-B| is more than half of the
            mean distance from the start, for each of the six pairs (as in 24a), both networks
       24e  the barrier is that of the optimizers: the mean barrier of the six pairs is above that
            of SGD twice with other batches, without norm
       24f  the same with batch norm
       24g  the shape of the curve is characteristic of the optimizers: the curve of a seed and a
            pair, divided by the mean of its ends, is nearest (mean distance, 0 <= a <= 1) to the
            other seeds' mean curve of the same pair, of all six, more often than the 1/6 of
            chance, paired over seeds, and in at least half of all cases, without norm
       24h  the same with batch norm
   Named before the run, to explain 24b: the curve between A and B after every hidden unit's weights
   in B were scaled to the length that they have in A, which does not change what B computes. */
#include "lab/experiment.h"

#define BARRIER_LEAST 0.01 /* of the worse end's loss: less is called none */

enum { HIDDEN = 2, WIDTH = 64, BATCH = 128, EPOCHS = 3, IMAGES = 5000 };
enum { POINTS = 29, SIDE = 21 };
enum { OTHER_SEED = 1000 }; /* of the controls: added to the seed */

/* ---- arms, optimizers, pairs ----------------------------------------------------------------- */

enum { NONE, BATCH_NORM, TRIANGLE_NONE, TRIANGLE_BATCH, ARMS };

static const lab_arm arms[ARMS] = {{"none", "no norm", 9, 20},
                                   {"batch", "batch norm", 12, 20},
                                   {"triangle_none", "triangles, no norm", 15, 1},
                                   {"triangle_batch", "triangles, batch norm", 20, 1}};

enum { SGD, MOMENTUM, RMSPROP, ADAM, OTHER_BATCHES, OTHER_START, SOLUTIONS, OPTIMIZERS = 4 };

static const char *const solution_name[SOLUTIONS] = {
    "SGD", "momentum", "RMSprop", "Adam", "SGD, other batches", "SGD, other start"};

typedef struct pair {
    const char *id;
    size_t a, b;
} pair;

enum { PAIRS = 8, OF_OPTIMIZERS = 6 }; /* the last two are the controls */

static const pair pairs[PAIRS] = {{"sgd-momentum", SGD, MOMENTUM},
                                  {"sgd-rmsprop", SGD, RMSPROP},
                                  {"sgd-adam", SGD, ADAM},
                                  {"momentum-rmsprop", MOMENTUM, RMSPROP},
                                  {"momentum-adam", MOMENTUM, ADAM},
                                  {"rmsprop-adam", RMSPROP, ADAM},
                                  {"sgd-batches", SGD, OTHER_BATCHES},
                                  {"sgd-start", SGD, OTHER_START}};

typedef struct triple {
    const char *id;
    size_t corner[3];
} triple;

enum { TRIPLES = 4 };

static const triple triples[TRIPLES] = {{"sgd-momentum-rmsprop", {SGD, MOMENTUM, RMSPROP}},
                                        {"sgd-momentum-adam", {SGD, MOMENTUM, ADAM}},
                                        {"sgd-rmsprop-adam", {SGD, RMSPROP, ADAM}},
                                        {"momentum-rmsprop-adam", {MOMENTUM, RMSPROP, ADAM}}};

static training_set train, test; /* made before the first run, shared by all */

static int prepare(const dataset *data, int quick)
{
    (void)quick;
    return training_load(&train, &test, data, 0, 0, DATASET_STD);
}

/* ---- training -------------------------------------------------------------------------------- */

static nrm_mlp *make_net(int norm, size_t solution, uint64_t seed, size_t max_batch, void **block)
{
    nrm_mlp_layer layer[HIDDEN + 1];
    nrm_mlp_spec spec = training_plain(layer, HIDDEN, WIDTH, NRM_RELU, norm);
    spec.max_batch = max_batch;
    spec.seed = seed;
    spec.optimizer = solution == ADAM ? NRM_ADAM : NRM_SGD;
    spec.heavy_ball = (nrm_real)(solution == MOMENTUM ? 0.9 : 0);
    spec.lr = (nrm_real)(solution == MOMENTUM                      ? 0.01
                         : solution == RMSPROP || solution == ADAM ? 0.001
                                                                   : 0.1);
    return training_net(&spec, block);
}

/* RMSprop: a step against the gradient, divided by the root of its running mean square. */
static void rmsprop_step(nrm_mlp *net, nrm_real *v)
{
    const double keep = 0.9, eps = 1e-8, lr = (double)net->spec.lr;
    size_t i;
    for (i = 0; i < net->n_params; i++) {
        const double g = (double)net->grads[i];
        v[i] = (nrm_real)(keep * (double)v[i] + (1 - keep) * g * g);
        net->params[i] -= (nrm_real)(lr * g / (sqrt((double)v[i]) + eps));
    }
}

static int train_steps(nrm_mlp *net, size_t solution, uint64_t order_seed, size_t steps)
{
    nrm_real *v = (nrm_real *)calloc(net->n_params, sizeof *v);
    training_order order;
    size_t step = 0;
    int rc = NRM_OK;
    if (!v || training_order_start(&order, train.n, BATCH, DATASET_PIXELS, order_seed)) {
        free(v);
        return -1;
    }
    while (step < steps && rc == NRM_OK) {
        training_go_on(&order, &train, 1);
        step++;
        if (solution != RMSPROP) {
            rc = nrm_mlp_train_step(net, NULL, order.x, order.labels, order.count);
            continue;
        }
        rc = nrm_mlp_gradient(net, NULL, order.x, order.labels, order.count, NRM_TRAIN);
        if (rc == NRM_OK) rmsprop_step(net, v);
    }
    if (rc != NRM_OK) fprintf(stderr, "training: %s\n", nrm_strerror(rc));
    training_order_free(&order);
    free(v);
    return rc == NRM_OK ? 0 : -1;
}

/* ---- between solutions ----------------------------------------------------------------------- */

typedef struct solutions {
    size_t n;                        /* parameters          */
    nrm_real *start, *at[SOLUTIONS]; /* [n] each            */
    nrm_mlp *net;                    /* to evaluate with    */
    void *block;
    size_t images;
} solutions;

static void free_solutions(solutions *s)
{
    free(s->start);
    free(s->block);
}

/* Loss and error at the parameters of s->net, batch norm with the statistics of these images. */
static int evaluate(solutions *s, double *loss, double *error)
{
    nrm_acc value, accuracy;
    int rc = nrm_mlp_forward(s->net, train.x, s->images, NRM_TRAIN);
    if (rc >= 0)
        rc = nrm_cross_entropy_forward(&value, NULL, s->net->logits, train.labels, s->images,
                                       DATASET_CLASSES);
    if (rc >= 0)
        rc = nrm_accuracy(&accuracy, s->net->logits, train.labels, s->images, DATASET_CLASSES);
    if (rc < 0) return -1;
    *loss = (double)value;
    *error = 1 - (double)accuracy;
    return 0;
}

static int make_solutions(solutions *s, lab_run *run, int norm)
{
    const size_t steps = run->quick ? 8 : EPOCHS * training_steps(train.n, BATCH);
    size_t k;
    void *block;
    memset(s, 0, sizeof *s);
    s->images = run->quick ? 200 : IMAGES;
    s->net = make_net(norm, SGD, run->seed, s->images, &s->block);
    if (!s->net) return -1;
    s->n = s->net->n_params;
    s->start = (nrm_real *)malloc((SOLUTIONS + 1) * s->n * sizeof *s->start);
    if (!s->start) return -1;
    memcpy(s->start, s->net->params, s->n * sizeof *s->start);
    for (k = 0; k < SOLUTIONS; k++) {
        const uint64_t start = run->seed + (k == OTHER_START ? OTHER_SEED : 0);
        nrm_mlp *net = make_net(norm, k, start, run->quick ? 500 : 1000, &block);
        nrm_acc accuracy = 0;
        int failed =
            !net || train_steps(net, k, run->seed + (k == OTHER_BATCHES ? OTHER_SEED : 0), steps);
        s->at[k] = s->start + (k + 1) * s->n;
        if (!failed) memcpy(s->at[k], net->params, s->n * sizeof *s->start);
        if (!failed && norm) failed = training_reestimate(net, train.x, s->images) < 0;
        if (!failed) failed = nrm_mlp_eval(net, NULL, &accuracy, test.x, test.labels, test.n) < 0;
        lab_record(run, "test_error", (double)k, 1 - (double)accuracy);
        lab_progress(run, 0.5 * (double)(k + 1) / SOLUTIONS);
        free(block);
        if (failed) return -1;
    }
    return 0;
}

static double distance(const nrm_real *a, const nrm_real *b, size_t n)
{
    double sum = 0;
    size_t i;
    for (i = 0; i < n; i++) sum += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
    return sqrt(sum);
}

/* Along the line through a and b. */
static int walk(solutions *s, lab_run *run, const char *what, const char *id, const nrm_real *a,
                const nrm_real *b)
{
    double loss, error;
    size_t k, i;
    for (k = 0; k < POINTS; k++) {
        const double at = ((double)k - 4) / 20;
        for (i = 0; i < s->n; i++)
            s->net->params[i] = (nrm_real)((1 - at) * (double)a[i] + at * (double)b[i]);
        if (evaluate(s, &loss, &error)) return -1;
        lab_record_as(run, at, loss, "%sloss/%s", what, id);
        if (!*what) lab_record_as(run, at, error, "error/%s", id);
    }
    return 0;
}

/* out = b with the weights into each hidden unit scaled to the length that they have in a. */
static void same_lengths(const solutions *s, nrm_real *out, const nrm_real *a, const nrm_real *b)
{
    size_t l, i, j;
    memcpy(out, b, s->n * sizeof *out);
    for (l = 0; l < HIDDEN; l++) {
        const nrm_mlp_state *state = &s->net->state[l];
        const size_t first = (size_t)(state->W - s->net->params);
        for (j = 0; j < WIDTH; j++) {
            double aa = 0, bb = 0;
            for (i = 0; i < state->in; i++) {
                const size_t at = first + i * WIDTH + j;
                aa += (double)a[at] * (double)a[at];
                bb += (double)b[at] * (double)b[at];
            }
            for (i = 0; i < state->in && bb > 0; i++)
                out[first + i * WIDTH + j] *= (nrm_real)sqrt(aa / bb);
        }
    }
}

static int run_pairs(solutions *s, lab_run *run, int norm)
{
    nrm_real *scaled = (nrm_real *)malloc(s->n * sizeof *scaled);
    size_t k;
    int failed = !scaled;
    for (k = 0; k < SOLUTIONS; k++)
        lab_record(run, "from_start", (double)k, distance(s->start, s->at[k], s->n));
    for (k = 0; k < PAIRS && !failed; k++) {
        const nrm_real *a = s->at[pairs[k].a], *b = s->at[pairs[k].b];
        lab_record(run, "apart", (double)k, distance(a, b, s->n));
        failed = walk(s, run, "", pairs[k].id, a, b);
        if (failed || !norm) continue;
        same_lengths(s, scaled, a, b);
        failed = walk(s, run, "scaled_", pairs[k].id, a, scaled);
        lab_progress(run, 0.5 + 0.5 * (double)(k + 1) / PAIRS);
    }
    free(scaled);
    return failed;
}

/* Row by row: i/20 of the second corner, j/20 of the third. x counts the points. */
static int run_triangles(solutions *s, lab_run *run)
{
    double loss, error;
    size_t k, i, j, p, count;
    for (k = 0; k < TRIPLES; k++) {
        const nrm_real *a = s->at[triples[k].corner[0]], *b = s->at[triples[k].corner[1]];
        const nrm_real *c = s->at[triples[k].corner[2]];
        for (i = 0, count = 0; i < SIDE; i++)
            for (j = 0; i + j < SIDE; j++, count++) {
                const double u = (double)i / (SIDE - 1), v = (double)j / (SIDE - 1);
                for (p = 0; p < s->n; p++)
                    s->net->params[p] = (nrm_real)((1 - u - v) * (double)a[p] + u * (double)b[p] +
                                                   v * (double)c[p]);
                if (evaluate(s, &loss, &error)) return -1;
                lab_record_as(run, (double)count, loss, "loss/%s", triples[k].id);
            }
        lab_progress(run, 0.5 + 0.5 * (double)(k + 1) / TRIPLES);
    }
    return 0;
}

static int run(lab_run *r)
{
    const int norm =
        r->arm == BATCH_NORM || r->arm == TRIANGLE_BATCH ? NRM_BATCH_NORM : NRM_NO_NORM;
    solutions s;
    int failed = make_solutions(&s, r, norm);
    if (!failed) failed = r->arm >= TRIANGLE_NONE ? run_triangles(&s, r) : run_pairs(&s, r, norm);
    free_solutions(&s);
    return failed;
}

/* ---- what came out --------------------------------------------------------------------------- */

static int between(double a)
{
    return a >= -1e-6 && a <= 1 + 1e-6;
}

/* The largest loss at 0 <= a <= 1 less that of the worse end; `relative`: over that of this end. */
static double barrier_of(lab_series loss, int relative)
{
    double most = 0, ends = 0;
    size_t i;
    for (i = 0; i < loss.n; i++) {
        const int end = fabs(loss.x[i]) < 1e-6 || fabs(loss.x[i] - 1) < 1e-6;
        if (between(loss.x[i])) most = stats_larger(most, loss.y[i]);
        if (end) ends = stats_larger(ends, loss.y[i]);
    }
    return loss.n ? (most - ends) / (relative ? ends : 1) : (double)NAN;
}

static size_t barriers(lab_report *r, size_t arm, const char *what, size_t pair_index, int relative,
                       double *value)
{
    const char *series = lab_format(r, "%sloss/%s", what, pairs[pair_index].id);
    size_t s;
    for (s = 0; s < lab_seeds(r, arm); s++)
        value[s] = barrier_of(lab_get(r, arm, s, series), relative);
    return lab_seeds(r, arm);
}

static stats_summary barrier_summary(lab_report *r, size_t arm, const char *what, size_t k,
                                     int relative)
{
    double value[LAB_SEEDS_MAX];
    const size_t n = barriers(r, arm, what, k, relative, value);
    return stats_describe(value, n);
}

/* Mean over 0 <= a <= 1 of the loss's standard deviation over seeds divided by its mean. */
static double unlikeness(lab_report *r, size_t arm, size_t k)
{
    const lab_curve c = lab_over_seeds(r, arm, lab_format(r, "loss/%s", pairs[k].id));
    double sum = 0;
    size_t i, n = 0;
    for (i = 0; i < c.n; i++) {
        if (!between(c.x[i])) continue;
        sum += c.sd[i] / c.mean[i];
        n++;
    }
    return n ? sum / (double)n : (double)NAN;
}

/* How far the curves of seed s are from the means of the other seeds' curves, over those means:
   mean over 0 <= a <= 1 and the six pairs. */
static double from_others(lab_report *r, size_t arm, size_t s)
{
    const size_t n = lab_seeds(r, arm);
    double sum = 0;
    size_t i, k, other, count = 0;
    for (k = 0; k < OF_OPTIMIZERS; k++) {
        const char *series = lab_format(r, "loss/%s", pairs[k].id);
        const lab_series own = lab_get(r, arm, s, series);
        for (i = 0; i < own.n; i++) {
            double mean = 0;
            if (!between(own.x[i])) continue;
            for (other = 0; other < n; other++)
                if (other != s) mean += lab_at(r, arm, other, series, own.x[i]) / ((double)n - 1);
            sum += fabs(own.y[i] - mean) / mean;
            count++;
        }
    }
    return count ? sum / (double)count : (double)NAN;
}

/* |A-B| over the mean distance of A and B from the start. */
static size_t apart(const lab_report *r, size_t arm, size_t k, double *value)
{
    size_t s;
    for (s = 0; s < lab_seeds(r, arm); s++) {
        const double a = lab_at(r, arm, s, "from_start", (double)pairs[k].a);
        const double b = lab_at(r, arm, s, "from_start", (double)pairs[k].b);
        value[s] = lab_at(r, arm, s, "apart", (double)k) / (0.5 * (a + b));
    }
    return lab_seeds(r, arm);
}

/* How many of the six pairs are above the limit, seed by seed; the common verdict of the six. */
static stats_finding six_pairs(double (*value)[LAB_SEEDS_MAX], size_t n, double limit, size_t *held)
{
    double limits[LAB_SEEDS_MAX];
    stats_finding verdict[OF_OPTIMIZERS];
    size_t k;
    for (k = 0; k < n; k++) limits[k] = limit;
    *held = 0;
    for (k = 0; k < OF_OPTIMIZERS; k++) {
        verdict[k] = stats_judge_pairs(value[k], limits, n, 1, 1);
        *held += stats_reproduced(verdict[k]) ? 1u : 0u;
    }
    return stats_together(verdict, OF_OPTIMIZERS);
}

static const char known[] = "none; the curves had been seen when the criterion was written";

/* clang-format off */
static const lab_claim claims[] = {
    {"24a", "A barrier separates the solutions of different optimizers, without norm",
     "Im, Tao & Branson 2016 (abstract and notes by others)", "no numbers at hand",
     "loss between more than 1 % above that of the worse end, seed by seed, for each of six pairs",
     "none before the criterion; then one seed: barriers of 0.003 to 0.012", LAB_TRAINING,
     LAB_SETTING},
    {"24b", "... and with batch norm", "Im, Tao & Branson 2016 (abstract and notes by others)",
     "no numbers at hand", "the same with batch norm",
     "none before the criterion; then one seed: no barrier in any pair", LAB_TRAINING, LAB_SETTING},
    {"24c", "With batch norm the curves are more alike from start to start",
     "Im, Tao & Branson 2016 (abstract and notes by others)",
     "\"key\" to the consistency across re-initializations; no numbers at hand", "a seed's curves "
     "are nearer to the means of the other seeds' with batch norm, paired over seeds, and standard "
     "deviation by mean is smaller in 5 of 6 pairs (else partly)", "none", LAB_TRAINING,
     LAB_SETTING},
    {"24d", "From one start the optimizers end in different places",
     "Im, Tao & Branson 2016 (abstract)", "\"different\" minima; no numbers at hand", "|A-B| above "
     "half of the mean distance from the start: seed by seed, each of six pairs, both networks",
     "none", LAB_TRAINING, LAB_SETTING},
    {"24e", "The barrier is that of the optimizers, not of chance, without norm",
     "Im, Tao & Branson 2016 (abstract): \"characteristic of the optimizer\"", "no numbers at hand",
     "mean barrier of the six pairs above that of SGD twice with other batches", "none",
     LAB_TRAINING, LAB_SETTING},
    {"24f", "... and with batch norm",
     "Im, Tao & Branson 2016 (abstract): \"characteristic of the optimizer\"", "no numbers at hand",
     "the same with batch norm", "none", LAB_TRAINING, LAB_SETTING},
    {"24g", "The shape of the curve tells which optimizers it lies between, without norm",
     "Im, Tao & Branson 2016 (abstract and notes by others)", "no numbers at hand",
     "a seed's curve, over the mean of its ends, is nearest to the other seeds' mean of its own "
     "pair, of six: more often than 1/6, paired over seeds, and in half of all cases. Added after "
     "the run", known, LAB_TRAINING, LAB_SETTING},
    {"24h", "... and with batch norm", "Im, Tao & Branson 2016 (abstract and notes by others)",
     "no numbers at hand", "the same with batch norm. Added after the run", known, LAB_TRAINING,
     LAB_SETTING}};
/* clang-format on */

static void judge_barrier(lab_report *r, size_t arm)
{
    double value[OF_OPTIMIZERS][LAB_SEEDS_MAX];
    double low = (double)INFINITY, high = 0;
    stats_finding verdict;
    size_t k, held, n = 0;
    for (k = 0; k < OF_OPTIMIZERS; k++) {
        n = barriers(r, arm, "", k, 1, value[k]);
        low = stats_smaller(low, stats_mean(value[k], n));
        high = stats_larger(high, stats_mean(value[k], n));
    }
    verdict = six_pairs(value, n, BARRIER_LEAST, &held);
    lab_verdict(r, lab_find(r, "24a") + arm, verdict,
                "SGD twice from two starts: the barrier that there can be",
                "%lu of 6 pairs; mean barriers %.1f %% to %.1f %% of the worse end's loss; from "
                "another start %.1f times it",
                (unsigned long)held, 100 * low, 100 * high, barrier_summary(r, arm, "", 7, 1).mean);
}

static void judge_consistency(lab_report *r)
{
    double with[OF_OPTIMIZERS], without[OF_OPTIMIZERS], far[2][LAB_SEEDS_MAX];
    size_t k, s, arm, smaller = 0;
    const size_t n = lab_seeds(r, NONE);
    for (k = 0; k < OF_OPTIMIZERS; k++) {
        with[k] = unlikeness(r, BATCH_NORM, k);
        without[k] = unlikeness(r, NONE, k);
        smaller += with[k] < without[k];
    }
    for (arm = 0; arm < 2; arm++)
        for (s = 0; s < n; s++) far[arm][s] = from_others(r, arm, s);
    lab_verdict(
        r, lab_find(r, "24c"), stats_judge_pairs(far[BATCH_NORM], far[NONE], n, -1, smaller >= 5),
        "six pairs share their ends: seeds are what is independent",
        "from the others' mean by %s without, %s with; spread by mean %.3f without, %.3f "
        "with, smaller in %lu of 6 pairs",
        lab_mean_sd(r, stats_describe(far[NONE], n), 3),
        lab_mean_sd(r, stats_describe(far[BATCH_NORM], n), 3), stats_mean(without, OF_OPTIMIZERS),
        stats_mean(with, OF_OPTIMIZERS), (unsigned long)smaller);
}

static void judge_places(lab_report *r)
{
    double value[OF_OPTIMIZERS][LAB_SEEDS_MAX], low[2], high[2];
    stats_finding verdict[2];
    size_t k, arm, held[2];
    for (arm = 0; arm < 2; arm++) {
        size_t n = 0;
        low[arm] = (double)INFINITY;
        high[arm] = 0;
        for (k = 0; k < OF_OPTIMIZERS; k++) {
            n = apart(r, arm, k, value[k]);
            low[arm] = stats_smaller(low[arm], stats_mean(value[k], n));
            high[arm] = stats_larger(high[arm], stats_mean(value[k], n));
        }
        verdict[arm] = six_pairs(value, n, 0.5, &held[arm]);
    }
    lab_verdict(r, lab_find(r, "24d"), stats_together(verdict, 2), "",
                "%lu and %lu of 6 pairs; |A-B| is %.2f to %.2f of the distance without, %.2f to "
                "%.2f with",
                (unsigned long)held[0], (unsigned long)held[1], low[0], high[0], low[1], high[1]);
}

static void judge_control(lab_report *r, size_t arm)
{
    double value[LAB_SEEDS_MAX], mean[LAB_SEEDS_MAX] = {0}, other[LAB_SEEDS_MAX], most;
    size_t k, s, n = 0;
    for (k = 0; k < OF_OPTIMIZERS; k++) {
        n = barriers(r, arm, "", k, 0, value);
        for (s = 0; s < n; s++) mean[s] += value[s] / OF_OPTIMIZERS;
    }
    (void)barriers(r, arm, "", OF_OPTIMIZERS, 0, other);
    most = stats_larger(stats_describe(mean, n).max, stats_describe(other, n).max);
    lab_verdict(r, lab_find(r, "24e") + arm, stats_judge_pairs(mean, other, n, 1, 1),
                most <= 0 ? "no pair has a barrier, so there is nothing to compare" : "",
                "%s between optimizers, %s with other batches",
                lab_mean_sd(r, stats_describe(mean, n), 4),
                lab_mean_sd(r, stats_describe(other, n), 4));
}

/* The curve of a seed and a pair at 0 <= a <= 1, over the mean of its ends, or its ends alone;
   returns its points. */
static size_t shape(lab_report *r, size_t arm, size_t s, size_t k, int ends_alone, double *y)
{
    const lab_series loss = lab_get(r, arm, s, lab_format(r, "loss/%s", pairs[k].id));
    size_t i, n = 0;
    for (i = 0; i < loss.n && n < POINTS; i++)
        if (between(loss.x[i])) y[n++] = loss.y[i];
    if (n > 0) {
        const double ends = (y[0] + y[n - 1]) / 2;
        for (i = 0; i < n; i++) y[i] /= ends;
    }
    if (ends_alone && n > 2) {
        y[1] = y[n - 1];
        n = 2;
    }
    return n;
}

/* The share of the six curves of seed s that are nearest to the other seeds' mean of their pair. */
static double recognized(lab_report *r, size_t arm, size_t s, int ends_alone)
{
    double mean[OF_OPTIMIZERS][POINTS] = {{0}}, y[POINTS];
    size_t k, c, i, other, n = 0, right = 0;
    for (k = 0; k < OF_OPTIMIZERS; k++)
        for (other = 0; other < lab_seeds(r, arm); other++) {
            if (other == s) continue;
            n = shape(r, arm, other, k, ends_alone, y);
            for (i = 0; i < n; i++) mean[k][i] += y[i] / ((double)lab_seeds(r, arm) - 1);
        }
    for (k = 0; k < OF_OPTIMIZERS; k++) {
        double least = (double)INFINITY;
        size_t nearest = OF_OPTIMIZERS;
        n = shape(r, arm, s, k, ends_alone, y);
        for (c = 0; c < OF_OPTIMIZERS; c++) {
            double far = 0;
            for (i = 0; i < n; i++) far += fabs(y[i] - mean[c][i]);
            if (far < least) nearest = c;
            least = stats_smaller(least, far);
        }
        right += n > 0 && nearest == k ? 1u : 0u;
    }
    return (double)right / OF_OPTIMIZERS;
}

static void judge_shape(lab_report *r, size_t arm)
{
    double share[LAB_SEEDS_MAX], chance[LAB_SEEDS_MAX], by_ends = 0;
    const size_t n = lab_seeds(r, arm);
    size_t s;
    for (s = 0; s < n; s++) {
        share[s] = recognized(r, arm, s, 0);
        by_ends += OF_OPTIMIZERS * recognized(r, arm, s, 1);
        chance[s] = 1.0 / OF_OPTIMIZERS;
    }
    lab_verdict(r, lab_find(r, "24g") + arm,
                stats_judge_pairs(share, chance, n, 1, stats_mean(share, n) >= 0.5),
                lab_format(r, "by the losses of the two ends alone: %.0f", by_ends),
                "%.0f of %lu curves are nearest to their own pair's; by chance %.0f",
                stats_mean(share, n) * (double)n * OF_OPTIMIZERS, (unsigned long)n * OF_OPTIMIZERS,
                (double)n);
}

/* The ends of a line are the same for all pairs that share a solution, and scaling must not move
   them. */
static void check_ends(lab_report *r)
{
    double worst = 0, moved = 0;
    size_t arm, s, k;
    for (arm = 0; arm < 2; arm++)
        for (s = 0; s < lab_seeds(r, arm); s++)
            for (k = 0; k < OF_OPTIMIZERS; k++) {
                const pair *p = &pairs[k];
                const char *first = p->a == SGD ? "loss/sgd-momentum" : "loss/sgd-rmsprop";
                const char *own = lab_format(r, "loss/%s", p->id);
                const char *scaled = lab_format(r, "scaled_loss/%s", p->id);
                const double at = p->a == SGD ? 0 : 1;
                if (p->a == MOMENTUM) first = "loss/sgd-momentum";
                worst = stats_larger(
                    worst, fabs(lab_at(r, arm, s, own, 0) - lab_at(r, arm, s, first, at)));
                if (arm == BATCH_NORM)
                    moved = stats_larger(
                        moved, fabs(lab_at(r, arm, s, own, 1) / lab_at(r, arm, s, scaled, 1) - 1));
            }
    lab_check(r, worst <= 0, "lines that share an end agree there", "largest difference %.1e",
              worst);
    lab_check(r, moved < 1e-3, "with batch norm, scaled weights compute the same",
              "loss at the scaled end, largest relative difference %.1e (ε, rounding)", moved);
}

/* ---- pages ----------------------------------------------------------------------------------- */

static void curve_panel(lab_report *r, plot_figure *f, size_t k)
{
    const int log_axis = k == PAIRS - 1;
    plot_panel *p = plot_add(f, (int)k / 3, (int)k % 3, 1, 1);
    const char *series = lab_format(r, "loss/%s", pairs[k].id);
    size_t arm;
    plot_heading(p,
                 lab_format(r, "%s to %s", solution_name[pairs[k].a], solution_name[pairs[k].b]));
    plot_axis_x(p,
                lab_format(r, "a (0: %s, 1: %s)", solution_name[pairs[k].a],
                           k < OF_OPTIMIZERS ? solution_name[pairs[k].b]
                                             : strchr(solution_name[pairs[k].b], 'o')),
                PLOT_LINEAR);
    plot_axis_y(p, "loss", log_axis ? PLOT_LOG10 : PLOT_LINEAR);
    plot_grid(p, PLOT_GRID_Y);
    plot_range_x(p, -0.2, 1.2);
    if (!log_axis && !lab_quick(r)) plot_range_y(p, 0.03, 0.15);
    plot_vline(p, 0, NULL, plot_thin(PLOT_INK));
    plot_vline(p, 1, NULL, plot_thin(PLOT_INK));
    for (arm = 0; arm < 2; arm++) {
        plot_style thin = lab_style(arms[arm].id);
        const lab_curve c = lab_over_seeds(r, arm, series);
        thin.width = 0.4;
        thin.alpha = 0.6;
        lab_plot_seeds(r, p, arm, series, "", thin);
        plot_line(p, lab_format(r, "%s, mean (thin: each seed)", arms[arm].name), c.x, c.mean, c.n,
                  lab_style(arms[arm].id));
    }
}

static const char *const short_names[PAIRS] = {"S-M", "S-R", "S-A",       "M-R",
                                               "M-A", "R-A", "S-S batch", "S-S start"};

static void bars_panel(lab_report *r, plot_figure *f, int row, int col, int span, int what)
{
    double value[2][PAIRS], sd[2][PAIRS], seed[LAB_SEEDS_MAX];
    const size_t n = what == 0 ? (size_t)OF_OPTIMIZERS + 1 : (size_t)PAIRS;
    plot_panel *p = plot_add(f, row, col, 1, span);
    size_t arm, k;
    for (arm = 0; arm < 2; arm++)
        for (k = 0; k < n; k++) {
            stats_summary b;
            if (what == 0) b = barrier_summary(r, arm, "", k, 1);
            if (what == 1) b = stats_describe(seed, apart(r, arm, k, seed));
            value[arm][k] = what == 2 ? unlikeness(r, arm, k) : what ? b.mean : 100 * b.mean;
            sd[arm][k] = what == 2 || b.n < 2 ? 0 : what ? b.sd : 100 * b.sd;
        }
    plot_heading(p, what == 0   ? "Barrier (another start: see h)"
                    : what == 1 ? "Distance of the two, by that from the start"
                                : "Spread over starts, by the mean");
    plot_axis_y(p,
                what == 0   ? "loss above the worse end, %"
                : what == 1 ? "ratio"
                            : "sd / mean of loss",
                PLOT_LINEAR);
    plot_axis_x(p, "S SGD, M momentum, R RMSprop, A Adam", PLOT_LINEAR);
    plot_grid(p, PLOT_GRID_Y);
    plot_categories(p, short_names, (int)n);
    for (arm = 0; arm < 2; arm++)
        plot_bars(p, what ? arms[arm].name : NULL, value[arm], what == 2 ? NULL : sd[arm], n,
                  plot_solid(arm ? PLOT_BLUE : PLOT_VERMILLION));
    if (what) return;
    for (k = 1; k < n; k++) value[1][0] = stats_larger(value[1][0], value[1][k]);
    if (!lab_quick(r)) plot_range_y(p, -1.5, 16);
    plot_hline(p, 100 * BARRIER_LEAST, NULL, plot_thin(PLOT_INK));
    plot_text_in(p, 0.97, 0.93, lab_format(r, "batch norm: at most %.1f %%", value[1][0]),
                 PLOT_RIGHT, PLOT_BLUE);
}

static int page_curves(lab_report *r)
{
    plot_figure *f = lab_figure(
        r, "Between the solutions of two optimizers: a barrier without norm, none with batch norm",
        1800, 1560);
    size_t k;
    plot_scale(f, 0.78);
    plot_shared_legend(f);
    for (k = 0; k < PAIRS; k++) curve_panel(r, f, k);
    bars_panel(r, f, 2, 2, 1, 0);
    return lab_save(r, f, NULL);
}

/* The value at u, v of the triangle's points, linear between them; nan outside. */
static double in_triangle(lab_series loss, double u, double v)
{
    const double left = 1 - u - v, n = SIDE - 1, slack = 1e-9;
    double at[3];
    size_t i, j, up, right;
    double fu, fv;
    if (u < -slack || v < -slack || left < -slack) return (double)NAN;
    u = fmin(fmax(u, 0), 1 - 1e-9) * n;
    v = fmin(fmax(v, 0), 1 - 1e-9) * n;
    i = (size_t)u;
    j = (size_t)v;
    if (i + j >= SIDE - 1) { /* the slanted edge */
        if (i > 0) i = SIDE - 2 - j;
        if (i + j >= SIDE - 1) j = SIDE - 2 - i;
    }
    fu = u - (double)i;
    fv = v - (double)j;
    right = (i + 1) * SIDE - (i + 1) * i / 2 + j; /* rows of SIDE, SIDE - 1, ... points */
    up = i * SIDE - (i > 0 ? i * (i - 1) / 2 : 0) + j + 1;
    if (fu + fv <= 1 || i + j + 2 >= SIDE) {
        at[0] = loss.y[up - 1];
        at[1] = loss.y[right];
        at[2] = loss.y[up];
        return at[0] + fu * (at[1] - at[0]) + fv * (at[2] - at[0]);
    }
    at[0] = loss.y[right + 1];
    at[1] = loss.y[up];
    at[2] = loss.y[right];
    return at[0] + (1 - fu) * (at[1] - at[0]) + (1 - fv) * (at[2] - at[0]);
}

/* White over the corners of the field that are not in the triangle, and its edge. */
static void triangle_edge(plot_panel *p, double height)
{
    const double x[2][3] = {{-0.02, 0, 0.5}, {0.5, 1, 1.02}};
    const double lo[2][3] = {{0, 0, height}, {height, 0, 0}};
    const double hi[3] = {height + 0.02, height + 0.02, height + 0.02};
    const double ex[4] = {0, 1, 0.5, 0}, ey[4] = {0, 0, height, 0};
    plot_style white = plot_solid(PLOT_WHITE), edge = plot_solid(PLOT_INK);
    white.alpha = 1;
    edge.width = 0.6;
    plot_band(p, NULL, x[0], lo[0], hi, 3, white);
    plot_band(p, NULL, x[1], lo[1], hi, 3, white);
    plot_line(p, NULL, ex, ey, 4, edge);
}

static void triangle_panel(lab_report *r, plot_figure *f, size_t arm, size_t k, double lo,
                           double hi)
{
    enum { ROWS = 156, COLS = 180 };
    const double height = 0.8660254;
    const lab_series loss = lab_get(r, arm, 0, lab_format(r, "loss/%s", triples[k].id));
    double *field = (double *)malloc(sizeof(double) * ROWS * COLS);
    plot_panel *p = plot_add(f, (int)(arm - TRIANGLE_NONE), 3 * (int)k, 1, 3);
    size_t i, j;
    if (!field) return;
    for (i = 0; i < ROWS; i++)
        for (j = 0; j < COLS; j++) {
            const double v = ((double)i + 0.5) / ROWS, x = ((double)j + 0.5) / COLS;
            field[i * COLS + j] = loss.n ? in_triangle(loss, x - 0.5 * v, v) : (double)NAN;
        }
    plot_heading(p, lab_format(r, "%s%s",
                               k                      ? ""
                               : arm == TRIANGLE_NONE ? "no norm"
                                                      : "batch norm",
                               k ? " " : ""));
    plot_frame(p, PLOT_BARE);
    plot_axis_x(p, "", PLOT_LINEAR);
    plot_axis_y(p, "", PLOT_LINEAR);
    plot_hide_x(p);
    plot_hide_y(p);
    plot_range_x(p, -0.2, 1.2);
    plot_range_y(p, -0.12, 1.0);
    plot_aspect(p, 1);
    plot_heat(p, field, ROWS, COLS, 0, 1, 0, height, PLOT_SEQUENTIAL, lo, hi);
    if (k == TRIPLES - 1) plot_colorbar(p, "loss");
    triangle_edge(p, height);
    plot_text(p, 0, -0.02, solution_name[triples[k].corner[0]], PLOT_CENTER | PLOT_BELOW, PLOT_INK);
    plot_text(p, 1, -0.02, solution_name[triples[k].corner[1]], PLOT_CENTER | PLOT_BELOW, PLOT_INK);
    plot_text(p, 0.5, height + 0.02, solution_name[triples[k].corner[2]], PLOT_CENTER | PLOT_ABOVE,
              PLOT_INK);
    free(field);
}

static int page_triangles(lab_report *r)
{
    plot_figure *f = lab_figure(
        r, "Optimizers end in different places of one valley (three solutions of one seed)", 1800,
        1400);
    size_t arm, k, i;
    plot_scale(f, 0.72);
    for (arm = TRIANGLE_NONE; arm <= TRIANGLE_BATCH; arm++) {
        double lo = 1e9, hi = 0;
        for (k = 0; k < TRIPLES; k++) {
            const lab_series loss = lab_get(r, arm, 0, lab_format(r, "loss/%s", triples[k].id));
            for (i = 0; i < loss.n; i++) {
                lo = fmin(lo, loss.y[i]);
                hi = fmax(hi, loss.y[i]);
            }
        }
        for (k = 0; k < TRIPLES; k++) triangle_panel(r, f, arm, k, lo, hi);
    }
    bars_panel(r, f, 2, 0, 6, 1);
    bars_panel(r, f, 2, 6, 6, 2);
    return lab_save(r, f, "triangles");
}

static void print_ends(lab_report *r)
{
    size_t arm, k;
    for (arm = 0; arm < 2; arm++)
        for (k = 0; k < SOLUTIONS; k++)
            printf("%s, %s: test error %s, distance from the start %s\n", arms[arm].name,
                   solution_name[k], lab_text(r, arm, "test_error", (double)k, 4),
                   lab_text(r, arm, "from_start", (double)k, 2));
    for (k = 0; k < OF_OPTIMIZERS; k++)
        printf("%s: barrier %.4f without, %.4f with, %.4f with weights of the same lengths\n",
               pairs[k].id, barrier_summary(r, NONE, "", k, 0).mean,
               barrier_summary(r, BATCH_NORM, "", k, 0).mean,
               barrier_summary(r, BATCH_NORM, "scaled_", k, 0).mean);
}

static int report(lab_report *r)
{
    check_ends(r);
    judge_barrier(r, NONE);
    judge_barrier(r, BATCH_NORM);
    judge_consistency(r);
    judge_places(r);
    judge_control(r, NONE);
    judge_control(r, BATCH_NORM);
    judge_shape(r, NONE);
    judge_shape(r, BATCH_NORM);
    print_ends(r);
    return page_curves(r) || page_triangles(r) ? -1 : 0;
}

/* clang-format off */
static const lab_program program = {
    "24_interpolation", NRM_VERSION,
    "What lies between the solutions that different optimizers find?", "784-64-64-10 ReLU, three "
    "epochs of batch 128, from one start on the same batches; loss on 5000 training images", 1,
    LAB_USES_DATA, arms, ARMS, prepare, run, report, claims, LAB_COUNT(claims)};
/* clang-format on */
LAB_MAIN(program)
