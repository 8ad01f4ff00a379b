/* 13_noisy_batch_norm: does batch norm help because it keeps distributions steady? (README.md)

   Santurkar et al. (2018) put noise behind every batch norm, noise whose mean and scale are drawn
   anew for each unit at each step. The distributions are then less steady than without any norm,
   and still the network trained about as fast as with batch norm. The same on MNIST, with three
   networks:

       6 x 100 ReLU       784-100-100-100-100-100-100-10
       6 x 100 sigmoid    the same with sigmoid
       13 x 100 ReLU      as many hidden layers as VGG-16 has convolutions

   each in four arms: no norm, batch norm, batch norm and noise, no norm but the same noise.

   Settings: pixels with mean 0 and variance 1, Glorot's uniform weights, SGD with learning rate
   0.1, batches of 128, 3000 steps, seeds 11 to 15. The noise is the paper's (range of means 0.5,
   largest scale 1.25, jitters 0.1), after gamma and beta, before the activation, in hidden layers
   only, and a constant to the backward pass. Running statistics are those of clean batches. All
   arms of a seed start from the same weights and see the same batches; the two noisy ones draw the
   same noise.
   Choices that the specification of the experiment left open: "final" is the last 250 steps; the
   layers shown are the first, the middle and the last hidden one; the unit of the ridges is number
   21; the moments of the training batch are averaged over all 100 units of a layer; the fixed batch
   is the first 1000 training images, taken forward in train mode with and without noise. */
#include "lab/experiment.h"
#include "lab/draw.h"

enum { INPUTS = 784, CLASSES = 10, WIDTH = 100, DEEPEST = 13, BATCH = 128, PROBED = 1000 };
enum { SHOWN = 3, UNIT = 21, BINS = 41, CHECKED = 101 };
enum { STREAM_NOISE_TEST = 13 }; /* of the generator's test */

/* ---- the arms -------------------------------------------------------------------------------- */

enum { RELU6, SIGMOID6, RELU13, NETS };
enum { NONE, NORMED, NOISY, ONLY_NOISE, KINDS };
enum { ARMS = NETS * KINDS };

typedef struct network {
    const char *name;
    size_t hidden;
    int activation;
} network;

static const network networks[NETS] = {{"6 x 100 ReLU", 6, NRM_RELU},
                                       {"6 x 100 sigmoid", 6, NRM_SIGMOID},
                                       {"13 x 100 ReLU", 13, NRM_RELU}};

static const lab_arm arms[ARMS] = {
    {"relu6_none", "no norm", 8, 0},    {"relu6_batch", "batch norm", 9, 0},
    {"relu6_noisy", "noisy", 13, 0},    {"relu6_noise", "noise, no norm", 13, 0},
    {"sigmoid6_none", "no norm", 8, 0}, {"sigmoid6_batch", "batch norm", 9, 0},
    {"sigmoid6_noisy", "noisy", 13, 0}, {"sigmoid6_noise", "noise, no norm", 13, 0},
    {"relu13_none", "no norm", 12, 0},  {"relu13_batch", "batch norm", 13, 0},
    {"relu13_noisy", "noisy", 22, 0},   {"relu13_noise", "noise, no norm", 22, 0}};

static size_t arm_of(int net, int kind)
{
    return (size_t)net * KINDS + (size_t)kind;
}

/* The first, the middle and the last hidden layer, counted from 0. */
static size_t shown_layer(int net, int which)
{
    return (networks[net].hidden - 1) * (size_t)which / 2;
}

static const char *series_of(lab_report *r, const char *what, size_t layer)
{
    return lab_format(r, "%s_%zu", what, layer + 1);
}

/* ---- what all runs share --------------------------------------------------------------------- */

static training_set train_set, test_set;

static int prepare(const dataset *data, int quick)
{
    return training_load(&train_set, &test_set, data, quick ? 4000 : 0, quick ? 500 : 0,
                         DATASET_STD);
}

/* ---- a network in training ------------------------------------------------------------------- */

typedef struct moments { /* of what the activations are given, for each unit */
    double mean[DEEPEST][WIDTH], var[DEEPEST][WIDTH];
} moments;

typedef struct trial {
    lab_run *r;
    int net, kind;
    nrm_mlp *mlp;
    void *block;
    training_order order;
    nrm_rng rng;                /* noise without a norm; as in the network with one */
    nrm_real *scale;            /* [hidden][rows][WIDTH] its factors                */
    nrm_real *d[2];             /* [rows][WIDTH] gradients on their way back        */
    size_t rows, steps;         /* the most rows of a batch; steps of the run       */
    moments now;                /* of the last forward pass                         */
    double unit[SHOWN][PROBED]; /* and what one unit of three layers was given  */
    nrm_real *expected;         /* the parameters after CHECKED steps, without any of this */
} trial;

static size_t hidden_of(const trial *t)
{
    return networks[t->net].hidden;
}

static void trial_free(trial *t)
{
    training_order_free(&t->order);
    free(t->block);
    free(t->scale);
    free(t->d[0]);
    free(t->d[1]);
    free(t->expected);
}

static nrm_mlp *make_net(const trial *t, void **block)
{
    static const int norm[KINDS] = {NRM_NO_NORM, NRM_BATCH_NORM, NRM_NOISY_BATCH_NORM, NRM_NO_NORM};
    nrm_mlp_layer layer[DEEPEST + 1];
    nrm_mlp_spec spec =
        training_plain(layer, hidden_of(t), WIDTH, networks[t->net].activation, norm[t->kind]);
    spec.max_batch = t->rows;
    spec.seed = t->r->seed;
    spec.lr = (nrm_real)0.1;
    return training_net(&spec, block);
}

static int trial_make(trial *t, lab_run *r)
{
    size_t i;
    memset(t, 0, sizeof *t);
    t->r = r;
    t->net = (int)(r->arm / KINDS);
    t->kind = (int)(r->arm % KINDS);
    t->rows = r->quick ? BATCH : PROBED;
    t->steps = r->quick ? 16 : 3000;
    t->mlp = make_net(t, &t->block);
    t->scale = (nrm_real *)malloc(hidden_of(t) * t->rows * WIDTH * sizeof *t->scale);
    for (i = 0; i < 2; i++) t->d[i] = (nrm_real *)malloc(t->rows * WIDTH * sizeof *t->d[i]);
    if (!t->mlp || !t->scale || !t->d[0] || !t->d[1]) return -1;
    t->rng = t->mlp->rng;
    return 0;
}

static int trial_start(trial *t, lab_run *r)
{
    const int rc = trial_make(t, r);
    return rc ? rc : training_order_start(&t->order, train_set.n, BATCH, INPUTS, r->seed);
}

/* Mean and variance of each column, and the columns that the ridges show. */
static void look(trial *t, size_t layer, const nrm_real *z, size_t rows)
{
    double *mean = t->now.mean[layer], *var = t->now.var[layer];
    size_t i, j;
    int k;
    memset(mean, 0, sizeof t->now.mean[0]);
    memset(var, 0, sizeof t->now.var[0]);
    for (i = 0; i < rows; i++)
        for (j = 0; j < WIDTH; j++) mean[j] += (double)z[i * WIDTH + j];
    for (j = 0; j < WIDTH; j++) mean[j] /= (double)rows;
    for (i = 0; i < rows; i++)
        for (j = 0; j < WIDTH; j++) {
            const double c = (double)z[i * WIDTH + j] - mean[j];
            var[j] += c * c;
        }
    for (j = 0; j < WIDTH; j++) var[j] /= (double)rows;
    for (k = 0; k < SHOWN; k++)
        for (i = 0; i < rows && layer == shown_layer(t->net, k); i++)
            t->unit[k][i] = (double)z[i * WIDTH + UNIT];
}

static void on_event(void *context, const nrm_mlp_event *event)
{
    trial *t = (trial *)context;
    const int before_activation =
        t->kind == NORMED || t->kind == NOISY ? NRM_AT_NORM : NRM_AT_LINEAR;
    if (!event->gradient && event->place == before_activation && event->layer < hidden_of(t))
        look(t, event->layer, event->data, event->rows);
}

/* Factors of 1 and offsets of 0. */
static const nrm_noise no_noise = {0, 1, 0, 0};

/* ---- noise without a norm -------------------------------------------------------------------- */

/* Uniform in ±1. */
static double symmetric(nrm_rng *rng)
{
    return (double)nrm_rng_u32(rng) / 2147483648.0 - 1;
}

/* Of N rows: NB.1 to NB.5, drawn in the order of nrm_noisy_batchnorm_forward. */
static void add_noise(nrm_real *z, nrm_real *scale, const nrm_noise *noise, nrm_rng *rng, size_t N,
                      size_t width)
{
    nrm_real factor[64];
    size_t n, j;
    for (j = 0; j < width; j++) {
        const double mu = (double)noise->mean_range * symmetric(rng);
        const double sigma = 1 + ((double)noise->scale_max - 1) * (symmetric(rng) + 1) / 2;
        for (n = 0; n < N; n++) {
            const size_t i = n * width + j;
            const size_t k = n % 64;
            if (k == 0) nrm_rng_normal(rng, factor, N - n < 64 ? N - n : 64);
            scale[i] = (nrm_real)(sigma + (double)noise->scale_jitter * (double)factor[k]);
            z[i] = (nrm_real)((double)scale[i] * (double)z[i] +
                              (mu + (double)noise->mean_jitter * symmetric(rng)));
        }
    }
}

/* The forward pass of a network that nrm_mlp does not have: linear part, noise, activation. By the
   layers' own functions, in the network's own arrays. */
static int noise_forward(trial *t, const nrm_real *x, size_t N, int watched)
{
    const nrm_mlp *net = t->mlp;
    size_t l;
    int rc = NRM_OK;
    for (l = 0; l < net->spec.layers && rc >= 0; l++) {
        const nrm_mlp_state *s = &net->state[l];
        const size_t width = s->shape.width;
        rc = nrm_linear_forward(s->linear_out, x, s->W, s->b, N, s->in, width);
        if (l < hidden_of(t) && rc >= 0) {
            add_noise(s->linear_out, t->scale + l * t->rows * WIDTH, &net->spec.noise, &t->rng, N,
                      width);
            if (watched) look(t, l, s->linear_out, N);
            rc = nrm_activation_forward(s->act_out, s->linear_out, s->shape.activation, N * width);
        }
        x = s->out;
    }
    return rc;
}

static int noise_backward(trial *t, const nrm_real *x, const int *labels, size_t N)
{
    const nrm_mlp *net = t->mlp;
    size_t l, i, turn = 0;
    int rc = nrm_cross_entropy_backward(t->d[0], net->prob, labels, N, CLASSES);
    memset(net->grads, 0, net->n_params * sizeof *net->grads);
    for (l = net->spec.layers; l-- > 0 && rc >= 0; turn = 1 - turn) {
        const nrm_mlp_state *s = &net->state[l];
        const size_t width = s->shape.width;
        nrm_real *d = t->d[turn];
        if (l < hidden_of(t)) {
            const nrm_real *scale = t->scale + l * t->rows * WIDTH;
            rc = nrm_activation_backward(d, d, s->act_out, s->shape.activation, N * width);
            for (i = 0; i < N * width; i++) d[i] *= scale[i]; /* NB.7 */
        }
        if (rc >= 0)
            rc = nrm_linear_backward(l > 0 ? t->d[1 - turn] : NULL, s->dW, s->db, d,
                                     l > 0 ? net->state[l - 1].out : x, s->W, N, s->in, width);
    }
    return rc;
}

static int noise_gradient(trial *t, const nrm_real *x, const int *labels, size_t N)
{
    nrm_acc loss;
    int rc = noise_forward(t, x, N, t->mlp->probe != NULL);
    if (rc >= 0)
        rc = nrm_cross_entropy_forward(&loss, t->mlp->prob, t->mlp->logits, labels, N, CLASSES);
    if (rc >= 0 && rc != NRM_NONFINITE) rc = noise_backward(t, x, labels, N);
    return rc;
}

static int noise_step(trial *t)
{
    const int rc = noise_gradient(t, t->order.x, t->order.labels, t->order.count);
    return rc < 0 || rc == NRM_NONFINITE ? rc : nrm_mlp_step(t->mlp);
}

/* ---- training -------------------------------------------------------------------------------- */

/* One step of SGD. A step that is not finite is not taken. Sets the accuracy on its batch. */
static int step(trial *t, double *accuracy)
{
    nrm_acc hits = 0;
    int rc;
    training_go_on(&t->order, &train_set, 1);
    rc = t->kind == ONLY_NOISE
             ? noise_step(t)
             : nrm_mlp_train_step(t->mlp, NULL, t->order.x, t->order.labels, t->order.count);
    if (rc >= 0) rc = nrm_accuracy(&hits, t->mlp->logits, t->order.labels, t->order.count, CLASSES);
    *accuracy = (double)hits;
    return rc;
}

/* Of one layer: mean over the units of |a - b| in the means, or in the variances; and the former in
   units of each one's standard deviation. */
typedef struct change {
    double mean, var, relative;
} change;

static change difference(const moments *a, const moments *b, size_t layer)
{
    change c = {0, 0, 0};
    size_t j;
    for (j = 0; j < WIDTH; j++) {
        const double moved = fabs(a->mean[layer][j] - b->mean[layer][j]);
        c.mean += moved / WIDTH;
        c.var += fabs(a->var[layer][j] - b->var[layer][j]) / WIDTH;
        c.relative += moved / sqrt(a->var[layer][j] + 1e-12) / WIDTH;
    }
    return c;
}

static void record_layer(trial *t, const char *what, size_t layer, double x, double y)
{
    lab_record_as(t->r, x, lab_round(y, 4), "%s_%zu", what, layer + 1);
}

/* The fixed batch through the network as it is in training, with or without noise; the training
   goes on as if nothing had happened. */
static int fixed_batch(trial *t, int noise)
{
    nrm_mlp *net = t->mlp;
    const size_t n = t->rows;
    const nrm_noise kept = net->spec.noise;
    int rc;
    if (!noise) net->spec.noise = no_noise;
    rc = nrm_mlp_gradient(net, NULL, train_set.x, train_set.labels, n, NRM_TRAIN);
    net->spec.noise = kept;
    return rc;
}

/* The distribution of one unit in three layers. */
static void record_ridges(trial *t, size_t at)
{
    static const double lo = -5, hi = 5;
    double grid[BINS], density[BINS];
    size_t i;
    int k;
    for (i = 0; i < BINS; i++) grid[i] = lo + (hi - lo) * (double)i / (BINS - 1);
    for (k = 0; k < SHOWN; k++) {
        const size_t layer = shown_layer(t->net, k);
        stats_sort(t->unit[k], t->rows);
        if (stats_kde(t->unit[k], t->rows, stats_bandwidth(t->unit[k], t->rows), grid, BINS,
                      density))
            continue;
        for (i = 0; i < BINS; i++)
            lab_record_as(t->r, lab_round(grid[i], 4), floor(density[i] * 1000 + 0.5) / 1000,
                          "ridge_%zu_%04zu", layer + 1, at);
    }
}

/* What the weights alone have changed since the start, and (one seed, one network) ridges with the
   noise of training. */
static int visit(trial *t, size_t at, moments *first)
{
    const moments kept = t->now;
    const int ridges = t->net == RELU6 && t->kind != ONLY_NOISE && t->r->seed % 5 == 1;
    int k, rc = fixed_batch(t, 0);
    if (at == 0) *first = t->now;
    for (k = 0; k < SHOWN && t->net == RELU6; k++) {
        const size_t layer = shown_layer(t->net, k);
        const change c = difference(&t->now, first, layer);
        record_layer(t, "weights_mean", layer, (double)at, c.mean);
        record_layer(t, "weights_var", layer, (double)at, c.var);
    }
    if (ridges && rc >= 0) {
        if (t->kind == NOISY) rc = fixed_batch(t, 1);
        record_ridges(t, at);
    }
    t->now = kept;
    return rc;
}

typedef struct tally { /* sums over a window, or over the run */
    change step[DEEPEST], start[DEEPEST];
    double n;
} tally;

static void add_change(change *sum, change c)
{
    sum->mean += c.mean;
    sum->var += c.var;
    sum->relative += c.relative;
}

static void tally_step(tally *a, const trial *t, const moments *before, const moments *first)
{
    size_t l;
    for (l = 0; l < hidden_of(t); l++) {
        add_change(&a->step[l], difference(&t->now, before, l));
        add_change(&a->start[l], difference(&t->now, first, l));
    }
    a->n++;
}

static void record_window(trial *t, tally *a, double x)
{
    int k;
    for (k = 0; k < SHOWN && t->net == RELU6 && a->n > 0; k++) {
        const size_t l = shown_layer(t->net, k);
        record_layer(t, "step_mean", l, x, a->step[l].mean / a->n);
        record_layer(t, "step_var", l, x, a->step[l].var / a->n);
        record_layer(t, "start_mean", l, x, a->start[l].mean / a->n);
        record_layer(t, "start_var", l, x, a->start[l].var / a->n);
    }
    memset(a, 0, sizeof *a);
}

static void record_run(trial *t, const tally *a)
{
    size_t l;
    for (l = 0; l < hidden_of(t); l++) {
        record_layer(t, "run_mean", l, 0, a->step[l].mean / a->n);
        record_layer(t, "run_var", l, 0, a->step[l].var / a->n);
        record_layer(t, "run_relative", l, 0, a->step[l].relative / a->n);
    }
}

/* Accuracy on the training batches: means over the last 25 steps, the first 500, the last 250. */
static void record_accuracy(trial *t, const double *accuracy)
{
    const size_t n = t->steps, early = n < 500 ? n : 500, late = n < 250 ? n : 250;
    double *mean = (double *)malloc(n * sizeof *mean);
    double first = 0, last = 0;
    size_t s;
    if (!mean) return;
    stats_running_mean(accuracy, n, 25, mean);
    for (s = 1; s <= n; s++) {
        if (s <= early) first += accuracy[s - 1] / (double)early;
        if (s > n - late) last += accuracy[s - 1] / (double)late;
        if ((s <= 500 && s % 25 == 0) || s % 100 == 0)
            lab_record(t->r, "accuracy", (double)s, lab_round(mean[s - 1], 4));
    }
    lab_record(t->r, "early", 0, first);
    lab_record(t->r, "final", 0, last);
    free(mean);
}

static int train(trial *t, double *accuracy)
{
    const size_t window = t->r->quick ? 4 : 150, every = t->r->quick ? 8 : 200;
    moments first, before, fixed;
    tally recent, all;
    size_t s, bad = 0;
    int rc;
    memset(&recent, 0, sizeof recent);
    memset(&all, 0, sizeof all);
    t->mlp->probe = on_event;
    t->mlp->probe_context = t;
    rc = visit(t, 0, &fixed);
    for (s = 1; s <= t->steps && rc >= 0; s++) {
        before = t->now;
        rc = step(t, &accuracy[s - 1]);
        bad += rc > 0;
        if (s == CHECKED || (s == t->steps && s < CHECKED))
            lab_record(t->r, "same_bits", 0,
                       !memcmp(t->mlp->params, t->expected, t->mlp->n_params * sizeof(nrm_real)));
        if (s == 1) first = t->now;
        if (s > 1) {
            tally_step(&recent, t, &before, &first);
            tally_step(&all, t, &before, &first);
        }
        if (s % window == 0) record_window(t, &recent, (double)s - (double)window / 2);
        if (s % every == 0 && rc >= 0) rc = visit(t, s, &fixed);
        if (s % 50 == 0) lab_progress(t->r, (double)s / (double)t->steps);
    }
    t->mlp->probe = NULL;
    record_run(t, &all);
    record_accuracy(t, accuracy);
    lab_record(t->r, "not_finite", 0, (double)bad);
    return rc < 0 ? rc : 0;
}

/* ---- test accuracy --------------------------------------------------------------------------- */

/* What follows noise with the mean factor f may expect: gamma and beta, or weights and bias, of all
   hidden layers times f. */
static void stretch(trial *t, nrm_real f)
{
    size_t l, i;
    for (l = 0; l < hidden_of(t); l++) {
        const nrm_mlp_state *s = &t->mlp->state[l];
        for (i = 0; i < WIDTH && s->gamma; i++) {
            s->gamma[i] *= f;
            s->beta[i] *= f;
        }
        for (i = 0; i < s->in * WIDTH && !s->gamma; i++) s->W[i] *= f;
        for (i = 0; i < WIDTH && !s->gamma; i++) s->b[i] *= f;
    }
}

static int test_infer(trial *t, const char *name)
{
    nrm_acc accuracy = 0;
    const int rc = nrm_mlp_eval(t->mlp, NULL, &accuracy, test_set.x, test_set.labels, test_set.n);
    lab_record(t->r, name, 0, (double)accuracy);
    return rc;
}

/* In batches as in training, with the noise of training. Running statistics and noise move: to be
   called last. */
static int test_as_trained(trial *t)
{
    double hits = 0;
    size_t at, n;
    int rc = NRM_OK;
    for (at = 0; at < test_set.n && rc >= 0; at += n) {
        const nrm_real *x = test_set.x + at * INPUTS;
        nrm_acc part = 0;
        n = test_set.n - at < BATCH ? test_set.n - at : BATCH;
        rc = t->kind == ONLY_NOISE ? noise_forward(t, x, n, 0)
                                   : nrm_mlp_forward(t->mlp, x, n, NRM_TRAIN);
        if (rc >= 0) rc = nrm_accuracy(&part, t->mlp->logits, test_set.labels + at, n, CLASSES);
        hits += (double)part * (double)n;
    }
    lab_record(t->r, "test_as_trained", 0, hits / (double)test_set.n);
    return rc;
}

static int test(trial *t)
{
    nrm_mlp *net = t->mlp;
    const nrm_real factor = (1 + net->spec.noise.scale_max) / 2; /* NB.6 */
    nrm_real *kept = (nrm_real *)malloc(net->n_params * sizeof *kept);
    int rc = kept ? test_infer(t, "test_infer") : -1;
    if (kept && rc >= 0 && (t->kind == NOISY || t->kind == ONLY_NOISE)) {
        memcpy(kept, net->params, net->n_params * sizeof *kept);
        stretch(t, factor);
        rc = test_infer(t, "test_factor");
        memcpy(net->params, kept, net->n_params * sizeof *kept);
    }
    free(kept);
    return rc < 0 ? rc : test_as_trained(t);
}

/* ---- checks ---------------------------------------------------------------------------------- */

/* The generator on inputs of mean 0 and variance 1: what equations NB.1 to NB.6 say of its moments,
   and of a unit's mean and variance from one draw to the next. */
static int check_noise(lab_run *r)
{
    enum { N = 200, UNITS = 1000 };
    const nrm_noise noise = nrm_noise_paper();
    nrm_real *z = (nrm_real *)malloc(2 * N * sizeof *z), *scale = z + N;
    double s1 = 0, s2 = 0, jump = 0, jump2 = 0, mean = 0, var = 0;
    nrm_rng rng;
    size_t u, i;
    int rc = z ? NRM_OK : -1;
    nrm_rng_seed(&rng, r->seed, STREAM_NOISE_TEST);
    for (u = 0; u < UNITS && rc >= 0; u++) {
        double m = 0, v = 0;
        for (i = 0; i < N; i++) z[i] = i % 2 ? (nrm_real)1 : (nrm_real)-1;
        add_noise(z, scale, &noise, &rng, N, 1);
        for (i = 0; i < N; i++) {
            m += (double)z[i] / N;
            s1 += (double)scale[i] / (N * UNITS);
            s2 += (double)scale[i] * (double)scale[i] / (N * UNITS);
        }
        for (i = 0; i < N; i++) v += ((double)z[i] - m) * ((double)z[i] - m) / N;
        if (u > 0) jump += fabs(m - mean) / (UNITS - 1);
        if (u > 0) jump2 += fabs(v - var) / (UNITS - 1);
        mean = m;
        var = v;
    }
    free(z);
    lab_record(r, "noise_factor", 0, s1);
    lab_record(r, "noise_factor2", 0, s2);
    lab_record(r, "noise_jump_mean", 0, jump);
    lab_record(r, "noise_jump_var", 0, jump2);
    return rc;
}

/* With noise of size 0 the arm that is written by hand is the library's network without a norm: are
   its gradients the same to the last bit? 1: yes, 0: no, -1: it could not be done. */
static int check_by_hand(void)
{
    lab_run r;
    trial *t = (trial *)malloc(sizeof *t);
    nrm_real *x = (nrm_real *)malloc(BATCH * INPUTS * sizeof *x), *grads = NULL;
    int labels[BATCH], rc;
    size_t i;
    memset(&r, 0, sizeof r);
    r.arm = arm_of(RELU6, ONLY_NOISE);
    r.quick = 1;
    rc = t && x ? trial_make(t, &r) : -1;
    if (rc >= 0) grads = (nrm_real *)malloc(t->mlp->n_params * sizeof *grads);
    for (i = 0; i < BATCH * INPUTS && rc >= 0; i++) x[i] = draw_normal(&t->rng);
    for (i = 0; i < BATCH; i++) labels[i] = (int)(i % CLASSES);
    if (rc >= 0) t->mlp->spec.noise = no_noise;
    if (rc >= 0) rc = noise_gradient(t, x, labels, BATCH);
    if (rc >= 0 && grads) memcpy(grads, t->mlp->grads, t->mlp->n_params * sizeof *grads);
    if (rc >= 0) rc = nrm_mlp_gradient(t->mlp, NULL, x, labels, BATCH, NRM_TRAIN);
    if (rc >= 0 && grads) rc = !memcmp(grads, t->mlp->grads, t->mlp->n_params * sizeof *grads);
    if (!grads) rc = -1;
    if (t) trial_free(t);
    free(t);
    free(x);
    free(grads);
    return rc;
}

/* The first steps without a look at the network: what the parameters are then. */
static nrm_real *unwatched(lab_run *r, size_t steps)
{
    trial *t = (trial *)malloc(sizeof *t);
    nrm_real *params = NULL;
    double accuracy;
    size_t s;
    int rc = t ? trial_start(t, r) : -1;
    for (s = 0; s < steps && rc >= 0; s++) rc = step(t, &accuracy);
    if (rc >= 0) params = (nrm_real *)malloc(t->mlp->n_params * sizeof *params);
    if (params) memcpy(params, t->mlp->params, t->mlp->n_params * sizeof *params);
    if (t) trial_free(t);
    free(t);
    return params;
}

static int run(lab_run *r)
{
    trial *t = (trial *)malloc(sizeof *t);
    double *accuracy = NULL;
    int rc = t ? trial_start(t, r) : -1;
    if (rc >= 0) accuracy = (double *)malloc(t->steps * sizeof *accuracy);
    if (rc >= 0) t->expected = unwatched(r, t->steps < CHECKED ? t->steps : CHECKED);
    if (rc >= 0 && accuracy && t->expected) rc = train(t, accuracy);
    if (rc >= 0) rc = test(t);
    if (rc >= 0 && r->arm == arm_of(RELU6, NOISY)) rc = check_noise(r);
    if (rc < 0) fprintf(stderr, "a run failed: %s\n", nrm_strerror(rc));
    if (t) trial_free(t);
    free(accuracy);
    free(t);
    return rc < 0;
}

/* ---- claims ---------------------------------------------------------------------------------- */

enum { DRIFT, SPREAD, SPEED, END, BROKEN, ALIKE, FACTOR, CLAIMS };

/* What is claimed of each network; pilot: of the three. */
typedef struct claim {
    const char *text, *source, *paper, *criterion, *pilot[NETS];
} claim;

static const claim of_each[CLAIMS] = {
    {"With noise the means move more from step to step than without a norm, and with batch norm "
     "less",
     "Santurkar et al. 2018, Fig. 2 and 8",
     "shown in figures: noisy > standard > batch norm (VGG)",
     "noisy > none > batch norm in every hidden layer",
     {"0.33, 0.16 to 0.22, 0.000 (1 seed)", "not measured",
      "0.33, about 0.1, 0 (another program, 2 seeds)"}},
    {"The same of the variances",
     "Santurkar et al. 2018, Fig. 8",
     "shown in a figure: noisy > standard > batch norm (VGG)",
     "noisy > none > batch norm in every hidden layer",
     {"0.20, 0.26 to 0.70, 0.000 (1 seed): expected to fail", "not measured", "not measured"}},
    {"With noise training is faster than without a norm, and nearly as fast as with batch norm",
     "Santurkar et al. 2018, Fig. 2",
     "shown in a figure: batch norm and noisy far above standard",
     "mean training accuracy of steps 1 to 500: noisy > none, and batch - noisy < (batch - "
     "none)/2, "
     "both paired over seeds",
     {"0.897, 0.871, batch norm 0.917 (1 seed)", "0.96, 0.10, 0.96 after 2000 steps (2 seeds)",
      "0.80, 0.27, 0.857 at step 100 (2 seeds)"}},
    {"At the end the training accuracy is higher with noise than without a norm",
     "Santurkar et al. 2018, Fig. 2",
     "shown in a figure: noisy far above standard",
     "mean training accuracy of the last 250 steps: noisy > none",
     {"0.971 against 0.980 (2 seeds): expected to fail", "0.96 against 0.10 (2 seeds)",
      "0.963 against 0.978 (2 seeds): expected to fail"}},
    {"The same noise without a norm prevents training",
     "Santurkar et al. 2018, section 2.2",
     "\"prevents it from training entirely\"",
     "training accuracy of the last 250 steps: below 0.2 with noise, above it without",
     {"0.973 (2 seeds): expected to fail", "0.10 (2 seeds)", "0.959 (2 seeds): expected to fail"}},
    {"With noise it ends largely as with batch norm",
     "a lecture-style post on how batch norm helps; Chinese notes on batch norm",
     "\"largely similar\"; no obvious difference (read off Fig. 2)",
     "last 250 steps: |noisy - batch| < |noisy - none|",
     {"0.971; 0.985, 0.980 (2 seeds): expected to fail", "0.96; 0.96, 0.10 (2 seeds)",
      "0.963; 0.977, 0.978 (2 seeds): expected to fail"}},
    {"Tested without noise, the noisy network suffers from the missing factor 1.125",
     "ours",
     "not discussed",
     "test accuracy is higher with the norms' outputs times 1.125",
     {"0.978 against 0.962 (1 seed)", "none", "none"}}};

/* clang-format off */
static const lab_claim claims[] = {
    {"13v",
     "With and without batch norm the distributions hardly differ in how far they go: 6 x 100 ReLU",
     "Santurkar et al. 2018, Fig. 1", "ridges of two layers of VGG, no numbers", "moves of mean "
     "and variance since the start, fixed batch, mean over units, layers and time: none <= 2 batch "
     "norm, paired, for both",
     "no trial runs; written after the run, before this was computed: expected to fail",
     LAB_TRAINING, LAB_SETTING},
    {"13w", "Without batch norm shallow networks suffer little, deep ones are hard to train: 6 and "
     "13 layers of ReLU", "Chinese notes on batch norm", "no numbers, nor how deep is deep",
     "training accuracy, mean of steps 1 to 500, batch - none: larger with 13 layers, paired, and "
     "in the mean more than 3 times as large, else partly; written with the curves known",
     "none before the run, whose curves were known: a gap with 13 layers, a small one with 6",
     LAB_TRAINING, LAB_SETTING},
    {"13x", "... and deep ones do not converge easily: the same at the end",
     "Chinese notes on batch norm", "no numbers, nor how deep is deep", "the same over the last "
     "250 steps: batch - none larger with 13 layers, paired; written with the curves known",
     "none before the run, whose curves were known: hardly a gap at the end", LAB_TRAINING,
     LAB_SETTING},
    {"13y", "Batch norm makes a network of sigmoids trainable that is not trainable without",
     "Ioffe & Szegedy 2015, section 4.2.2",
     "ImageNet, Inception with sigmoid: 69.8 % with batch norm, never above 0.1 % without",
     "training accuracy of the last 250 steps: none below 0.2, batch norm above 0.9, both by the "
     "rule for limits; written with the curves known",
     "none before the run, whose curves were known; of batch norm alone 0.96, none 0.10 (2 seeds)",
     LAB_TRAINING, LAB_SETTING}};
/* clang-format on */

/* On one network, which has the records for it. */

/* On what the sources say of networks without noise; the curves were known. */

/* ---- verdicts -------------------------------------------------------------------------------- */

/* The claim on one of the three networks: "13a", "13b", "13c" the first on each, and so on. */
static lab_claim claim_on(lab_report *r, int which, int net)
{
    const claim *c = &of_each[which];
    lab_claim out;
    out.id = lab_format(r, "13%c", 'a' + which * NETS + net);
    out.text = lab_format(r, "%s: %s", c->text, networks[net].name);
    out.source = c->source;
    out.paper = c->paper;
    out.criterion = c->criterion;
    out.pilot = lab_format(r, "trial runs: %s", c->pilot[net]);
    out.about = LAB_TRAINING;
    out.why_not = LAB_SETTING;
    return out;
}

static double value(const lab_report *r, int net, int kind, size_t seed, const char *series)
{
    return lab_at(r, arm_of(net, kind), seed, series, 0);
}

/* Mean over the layers and over the seeds. */
static double over_layers(lab_report *r, int net, int kind, const char *what)
{
    double sum = 0;
    size_t l;
    for (l = 0; l < networks[net].hidden; l++)
        sum += lab_mean(r, arm_of(net, kind), series_of(r, what, l), 0);
    return sum / (double)networks[net].hidden;
}

/* Two comparisons for each layer: noisy above none, none above batch norm. */
static void judge_moves(lab_report *r, int which, int net, const char *what)
{
    const lab_claim c = claim_on(r, which, net);
    stats_finding part[2 * DEEPEST];
    size_t l;
    for (l = 0; l < networks[net].hidden; l++) {
        const char *series = series_of(r, what, l);
        part[2 * l] = lab_compare(r, arm_of(net, NOISY), arm_of(net, NONE), series, 0, +1, 1);
        part[2 * l + 1] = lab_compare(r, arm_of(net, NONE), arm_of(net, NORMED), series, 0, +1, 1);
    }
    lab_verdict(r, &c, stats_together(part, 2 * networks[net].hidden),
                "means over the layers; judged in each", "%.3g, %.3g, %.3g",
                over_layers(r, net, NOISY, what), over_layers(r, net, NONE, what),
                over_layers(r, net, NORMED, what));
}

static const char *percent(lab_report *r, int net, int kind, const char *series)
{
    const stats_summary s = lab_summary(r, arm_of(net, kind), series, 0);
    return lab_format(r, "%.1f ± %.1f %%", 100 * s.mean, 100 * s.sd);
}

static void judge_speed(lab_report *r, int net)
{
    const lab_claim c = claim_on(r, SPEED, net);
    const size_t n = lab_seeds(r, arm_of(net, NOISY));
    double lost[LAB_SEEDS_MAX], half[LAB_SEEDS_MAX];
    size_t s;
    for (s = 0; s < n; s++) {
        const double batch = value(r, net, NORMED, s, "early");
        lost[s] = batch - value(r, net, NOISY, s, "early");
        half[s] = (batch - value(r, net, NONE, s, "early")) / 2;
    }
    lab_verdict(r, &c,
                lab_compare(r, arm_of(net, NOISY), arm_of(net, NONE), "early", 0, +1,
                            stats_reproduced(stats_judge_pairs(lost, half, n, -1, 1))),
                "", "%s, none %s, batch norm %s", percent(r, net, NOISY, "early"),
                percent(r, net, NONE, "early"), percent(r, net, NORMED, "early"));
}

static void judge_end(lab_report *r, int net)
{
    const lab_claim c = claim_on(r, END, net);
    lab_verdict(r, &c, lab_compare(r, arm_of(net, NOISY), arm_of(net, NONE), "final", 0, +1, 1), "",
                "%s against %s", percent(r, net, NOISY, "final"), percent(r, net, NONE, "final"));
}

/* Noise prevents the training where the accuracy is above the limit without it, and below with it:
   the smaller of the two distances, seed by seed. */
static void judge_broken(lab_report *r, int net)
{
    const lab_claim c = claim_on(r, BROKEN, net);
    double with[LAB_SEEDS_MAX], without[LAB_SEEDS_MAX];
    const size_t n = lab_values(r, arm_of(net, ONLY_NOISE), "final", 0, with);
    const int trains = lab_mean(r, arm_of(net, NONE), "final", 0) >= 0.2;
    size_t s;
    (void)lab_values(r, arm_of(net, NONE), "final", 0, without);
    for (s = 0; s < n; s++) with[s] = stats_smaller(without[s] - 0.2, 0.2 - with[s]);
    lab_verdict(r, &c, stats_judge_limit(with, n, 0, +1),
                trains ? "" : "without noise it does not train either", "%s; without noise %s",
                percent(r, net, ONLY_NOISE, "final"), percent(r, net, NONE, "final"));
}

static void judge_alike(lab_report *r, int net)
{
    const lab_claim c = claim_on(r, ALIKE, net);
    const size_t n = lab_seeds(r, arm_of(net, NOISY));
    double batch[LAB_SEEDS_MAX], none[LAB_SEEDS_MAX];
    size_t s;
    for (s = 0; s < n; s++) {
        const double noisy = value(r, net, NOISY, s, "final");
        batch[s] = fabs(noisy - value(r, net, NORMED, s, "final"));
        none[s] = fabs(noisy - value(r, net, NONE, s, "final"));
    }
    lab_verdict(r, &c, stats_judge_pairs(batch, none, n, -1, 1), "", "%s; batch norm %s, none %s",
                percent(r, net, NOISY, "final"), percent(r, net, NORMED, "final"),
                percent(r, net, NONE, "final"));
}

static void judge_factor(lab_report *r, int net)
{
    const lab_claim c = claim_on(r, FACTOR, net);
    const size_t arm = arm_of(net, NOISY);
    lab_verdict(r, &c, lab_compare_series(r, arm, "test_factor", "test_infer", 0, +1, 1), "",
                "%s against %s; batch norm %s", percent(r, net, NOISY, "test_factor"),
                percent(r, net, NOISY, "test_infer"), percent(r, net, NORMED, "test_infer"));
}

/* How far the weights alone move the moments of the fixed batch: mean over layers and time. */
static double gone(lab_report *r, int kind, size_t seed, const char *what)
{
    double sum = 0, n = 0;
    size_t i;
    int k;
    for (k = 0; k < SHOWN; k++) {
        const char *series = series_of(r, what, shown_layer(RELU6, k));
        const lab_series s = lab_get(r, arm_of(RELU6, kind), seed, series);
        for (i = 0; i < s.n; i++) {
            sum += s.x[i] > 0 ? s.y[i] : 0;
            n += s.x[i] > 0 ? 1 : 0;
        }
    }
    return sum / n;
}

static void judge_figure1(lab_report *r)
{
    static const char *const what[2] = {"weights_mean", "weights_var"};
    const size_t n = lab_seeds(r, arm_of(RELU6, NORMED));
    stats_finding part[2];
    const char *text[2];
    size_t s;
    int i;
    for (i = 0; i < 2; i++) {
        double none[LAB_SEEDS_MAX], batch[LAB_SEEDS_MAX], twice[LAB_SEEDS_MAX];
        for (s = 0; s < n; s++) {
            none[s] = gone(r, NONE, s, what[i]);
            batch[s] = gone(r, NORMED, s, what[i]);
            twice[s] = 2 * batch[s];
        }
        part[i] = stats_judge_pairs(none, twice, n, -1, 1);
        text[i] = lab_format(r, "%s against %s", lab_mean_sd(r, stats_describe(none, n), 3),
                             lab_mean_sd(r, stats_describe(batch, n), 3));
    }
    lab_verdict(r, lab_find(r, "13v"), stats_together(part, 2), "", "means %s; variances %s",
                text[0], text[1]);
}

/* batch - none of one seed. */
static double gain(const lab_report *r, int net, size_t seed, const char *series)
{
    return value(r, net, NORMED, seed, series) - value(r, net, NONE, seed, series);
}

/* times: how many times as large it is to be; 0: no matter. */
static void judge_depth(lab_report *r, const lab_claim *stated, const char *series, double times)
{
    const size_t n = lab_seeds(r, arm_of(RELU13, NORMED));
    double shallow[LAB_SEEDS_MAX], deep[LAB_SEEDS_MAX];
    stats_summary of[2];
    size_t s;
    int met;
    for (s = 0; s < n; s++) {
        shallow[s] = 100 * gain(r, RELU6, s, series);
        deep[s] = 100 * gain(r, RELU13, s, series);
    }
    of[0] = stats_describe(shallow, n);
    of[1] = stats_describe(deep, n);
    met = times <= 0 || of[1].mean > times * of[0].mean;
    lab_verdict(r, stated, stats_judge_pairs(deep, shallow, n, +1, met), "",
                "batch norm gains %s points with 6 layers, %s with 13", lab_mean_sd(r, of[0], 1),
                lab_mean_sd(r, of[1], 1));
}

static void judge_trainable(lab_report *r)
{
    stats_finding part[2];
    part[0] = lab_limit(r, arm_of(SIGMOID6, NONE), "final", 0, 0.2, -1);
    part[1] = lab_limit(r, arm_of(SIGMOID6, NORMED), "final", 0, 0.9, +1);
    lab_verdict(r, lab_find(r, "13y"), stats_together(part, 2), "3000 steps, one learning rate",
                "%s with, %s without; test %s and %s", percent(r, SIGMOID6, NORMED, "final"),
                percent(r, SIGMOID6, NONE, "final"), percent(r, SIGMOID6, NORMED, "test_infer"),
                percent(r, SIGMOID6, NONE, "test_infer"));
}

static void judge(lab_report *r)
{
    int net;
    for (net = 0; net < NETS; net++) judge_moves(r, DRIFT, net, "run_mean");
    for (net = 0; net < NETS; net++) judge_moves(r, SPREAD, net, "run_var");
    for (net = 0; net < NETS; net++) judge_speed(r, net);
    for (net = 0; net < NETS; net++) judge_end(r, net);
    for (net = 0; net < NETS; net++) judge_broken(r, net);
    for (net = 0; net < NETS; net++) judge_alike(r, net);
    for (net = 0; net < NETS; net++) judge_factor(r, net);
    judge_figure1(r);
    judge_depth(r, lab_find(r, "13w"), "early", 3);
    judge_depth(r, lab_find(r, "13x"), "final", 0);
    judge_trainable(r);
}

static void check_close(lab_report *r, const char *series, double expected, double within)
{
    const double found = lab_mean(r, arm_of(RELU6, NOISY), series, 0);
    lab_check(r, fabs(found - expected) < within, series, "%.4f, expected %.4f", found, expected);
}

static void check_runs(lab_report *r)
{
    const int by_hand = check_by_hand();
    size_t a, s;
    int same = 1;
    check_close(r, "noise_factor", 1.125, 0.008);
    check_close(r, "noise_factor2", 1.2808, 0.018);
    check_close(r, "noise_jump_mean", 1.0 / 3, 0.03);
    check_close(r, "noise_jump_var", 0.1875, 0.02);
    for (a = 0; a < ARMS; a++)
        for (s = 0; s < lab_seeds(r, a); s++)
            if (!(lab_at(r, a, s, "same_bits", 0) > 0)) same = 0;
    lab_check(r, by_hand == 1, "noise of size 0",
              by_hand == 1 ? "the gradients of the network without a norm" : "other gradients");
    lab_check(r, same, "a look changes nothing", same ? "the same bits" : "other parameters");
}

/* ---- figures --------------------------------------------------------------------------------- */

static plot_style style_of(int kind)
{
    static const char *const norm[KINDS] = {"none", "batch", "noisy", ""};
    plot_style style = kind == ONLY_NOISE ? plot_dashdot(PLOT_INK) : lab_style(norm[kind]);
    if (kind == NOISY) style.width = 1.7;
    return style;
}

static void draw_arms(lab_report *r, plot_panel *p, int net, const char *series)
{
    int kind;
    for (kind = 0; kind < KINDS; kind++)
        lab_plot(r, p, arm_of(net, kind), series, NULL, style_of(kind));
}

static void draw_accuracy(lab_report *r, plot_panel *p, int net, double lo, double steps)
{
    plot_axis_x(p, "steps", PLOT_LINEAR);
    plot_axis_y(p, "training accuracy", PLOT_LINEAR);
    draw_arms(r, p, net, "accuracy");
    plot_range_y(p, lo, 1);
    plot_range_x(p, 0, steps);
}

/* One unit's inputs, a ridge for each time, from the seed that has them. */
static void draw_ridges(lab_report *r, plot_panel *p, int kind, size_t layer)
{
    const size_t arm = arm_of(RELU6, kind);
    size_t at, s;
    for (s = 0; s < lab_seeds(r, arm); s++)
        for (at = 0; at <= 3000; at++) {
            const lab_series d =
                lab_get(r, arm, s, lab_format(r, "ridge_%zu_%04zu", layer + 1, at));
            plot_style style = style_of(kind);
            style.dash = PLOT_SOLID;
            if (d.n > 0)
                plot_ridge(p, at % 1000 == 0 ? lab_format(r, "%zu", at) : "", d.x, d.y, d.n, style);
        }
    plot_ridge_overlap(p, 3);
}

static int page_figure2(lab_report *r)
{
    static const double widths[4] = {1.7, 1, 1, 1};
    plot_figure *f = lab_figure(
        r, "Noise that moves the inputs of ReLU slows batch norm down only a little", 1600, 1250);
    plot_panel *all = plot_add(f, 0, 0, 2, 1), *zoom = plot_add(f, 2, 0, 1, 1);
    int kind, k;
    plot_scale(f, 0.86);
    plot_widths(f, widths, 4);
    plot_heading(all, "Training accuracy, first 500 steps");
    draw_accuracy(r, all, RELU6, 0, 500);
    plot_legend(all, PLOT_LEGEND_BOTTOM_RIGHT);
    plot_heading(zoom, "All steps, enlarged");
    draw_accuracy(r, zoom, RELU6, 0.92, 3000);
    plot_legend(zoom, PLOT_LEGEND_NONE);
    for (kind = NONE; kind <= NOISY; kind++)
        for (k = 0; k < SHOWN; k++) {
            const size_t layer = shown_layer(RELU6, k);
            plot_panel *p = plot_add(f, k, kind + 1, 1, 1);
            plot_heading(p, lab_format(r, "%s, layer %zu", arms[kind].name, layer + 1));
            plot_axis_x(p, k == 2 ? "input of ReLU, unit 21" : "", PLOT_LINEAR);
            if (kind == NONE) plot_axis_y(p, "steps", PLOT_LINEAR);
            draw_ridges(r, p, kind, layer);
        }
    return lab_save(r, f, NULL);
}

enum { MOVES = 6 };

/* In the layout of Fig. 8; and what the weights alone have moved. */
static int page_drift(lab_report *r)
{
    static const char *const series[MOVES] = {"step_mean", "step_var",     "start_mean",
                                              "start_var", "weights_mean", "weights_var"};
    static const char *const heading[MOVES] = {
        "means, from batch to batch",  "variances, from batch to batch",
        "means, from the start",       "variances, from the start",
        "means, by the weights alone", "variances, by the weights alone"};
    plot_figure *f = lab_figure(
        r, "With noise inputs move as without a norm, and weights as with batch norm", 1600, 1560);
    int i;
    lab_subtitle(
        r, f,
        "6 x 100 ReLU, layer 3, Glorot weights, SGD with learning rate 0.1, batches of 128; "
        "noise (0.5, 1.25, 0.1, 0.1) before the activation; e, f: a fixed batch, no noise",
        5);
    for (i = 0; i < MOVES; i++) {
        plot_panel *p = plot_add(f, i / 2, i % 2, 1, 1);
        plot_heading(p, heading[i]);
        plot_axis_x(p, "steps", PLOT_LINEAR);
        plot_axis_y(p, i % 2 ? "|Δσ²|, mean of units" : "|Δμ|, mean of units", PLOT_LOG10);
        draw_arms(r, p, RELU6, series_of(r, series[i], shown_layer(RELU6, 1)));
        if (i < 2) plot_range_y(p, 1e-4, i == 0 ? 1 : 10);
        if (i >= 2) plot_range_y(p, 1e-2, i % 2 == 0 ? 10 : 100);
        plot_range_x(p, 0, 3000);
        plot_legend(p, PLOT_LEGEND_DIRECT);
    }
    return lab_save(r, f, "drift");
}

/* The error of each arm, tested in three ways. */
static void draw_tests(lab_report *r, plot_panel *p, int net)
{
    static const char *const series[3] = {"test_as_trained", "test_infer", "test_factor"};
    static const char *const name[3] = {"as in training", "running statistics", "and times 1.125"};
    static const char *const names[KINDS] = {"none", "batch", "noisy", "noise"};
    static const double at[KINDS] = {0, 1, 2, 3};
    static const plot_color colors[3] = {PLOT_GREY, PLOT_BLUE, PLOT_ORANGE};
    int i, kind;
    plot_axis_y(p, "test error", PLOT_LOG10);
    for (i = 0; i < 3; i++) {
        double x[KINDS], y[KINDS], lo[KINDS], hi[KINDS];
        for (kind = 0; kind < KINDS; kind++) {
            const stats_summary s = lab_summary(r, arm_of(net, kind), series[i], 0);
            x[kind] = at[kind] + 0.2 * (i - 1);
            y[kind] = 1 - s.mean;
            lo[kind] = y[kind] - s.sd;
            hi[kind] = y[kind] + s.sd;
        }
        plot_errorbars(p, name[i], x, y, lo, hi, KINDS, plot_marked(colors[i], PLOT_CIRCLE + i));
    }
    plot_ticks_x(p, at, names, KINDS);
    plot_range_x(p, -0.5, 3.5);
    plot_range_y(p, 0.015, 1);
    plot_legend(p, PLOT_LEGEND_NONE);
}

/* Over the layers: mean over the run, all units and seeds. */
static void draw_layers(lab_report *r, plot_panel *p, int net, const char *what)
{
    int kind;
    for (kind = 0; kind < KINDS; kind++) {
        double x[DEEPEST], y[DEEPEST];
        const size_t n = networks[net].hidden;
        plot_style style = style_of(kind);
        size_t l;
        for (l = 0; l < n; l++) {
            x[l] = (double)l + 1;
            y[l] = lab_mean(r, arm_of(net, kind), series_of(r, what, l), 0);
        }
        style = plot_with_marker(style, kind == NONE     ? PLOT_SQUARE
                                        : kind == NORMED ? PLOT_CIRCLE
                                        : kind == NOISY  ? PLOT_TRIANGLE
                                                         : PLOT_DIAMOND);
        plot_line(p, arms[kind].name, x, y, n, style);
    }
    plot_axis_x(p, "hidden layer", PLOT_LINEAR);
    plot_range_x(p, 0.6, (double)networks[net].hidden + 0.4);
    plot_legend(p, PLOT_LEGEND_NONE);
}

static int page_networks(lab_report *r)
{
    static const char *const what[3] = {"run_mean", "run_var", "run_relative"};
    static const char *const axis[3] = {"|Δμ|, mean of the run", "|Δσ²|, mean of the run",
                                        "|Δμ|/σ, mean of the run"};
    plot_figure *f = lab_figure(
        r,
        "In all three networks noise moves the means more than no norm does, and training goes on",
        1600, 1850);
    int net, i;
    plot_scale(f, 0.86);
    for (net = 0; net < NETS; net++) {
        plot_panel *p = plot_add(f, 0, net, 1, 1);
        plot_heading(p, networks[net].name);
        draw_accuracy(r, p, net, 0, 3000);
        plot_legend(p, net == 0 ? PLOT_LEGEND_BOTTOM_RIGHT : PLOT_LEGEND_NONE);
        for (i = 0; i < 3; i++) {
            p = plot_add(f, i + 1, net, 1, 1);
            plot_axis_y(p, axis[i], PLOT_LOG10);
            draw_layers(r, p, net, what[i]);
        }
        p = plot_add(f, 4, net, 1, 1);
        draw_tests(r, p, net);
        if (net == SIGMOID6) plot_legend(p, PLOT_LEGEND_ABOVE);
    }
    return lab_save(r, f, "networks");
}

static int report(lab_report *r)
{
    judge(r);
    check_runs(r);
    return page_figure2(r) || page_drift(r) || page_networks(r);
}

/* clang-format off */
static const lab_program program = {
    "13_noisy_batch_norm", NRM_VERSION,
    "Does batch norm help because it keeps distributions steady?", "Hidden layers of 100 units, "
    "Glorot weights, pixels standardized, SGD with learning rate 0.1, batches of 128, 3000 steps; "
    "noise (0.5, 1.25, 0.1, 0.1) before the activation", 2, LAB_USES_DATA, arms, ARMS, prepare,
    run, report, claims, LAB_COUNT(claims)};
/* clang-format on */
LAB_MAIN(program)
