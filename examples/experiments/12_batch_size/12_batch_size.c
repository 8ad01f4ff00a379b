/* 12_batch_size: what do small mini-batches do to the norms? (README.md)

   Two experiments of one question.

   FIGURE 6 of Ba, Kiros and Hinton (2016): layer norm, batch norm and no norm at batch 128 and 4.
   The paper trains 784-1000-1000-10 with Adam for 65 epochs on 55,000 images. Its nonlinearity,
   learning rate, initial weights and eps are not stated. Here, frozen before the run:

       784-256-256-10, ReLU, Glorot's uniform weights, standardized pixels, first 55,000 images,
       Adam (0.9, 0.999, 1e-8) with learning rate 1e-3; batch 128 for 20 epochs, 4 for 6; 3 seeds
       none; layer norm; batch norm of the hidden layers; batch norm of the logits too, since the
       paper says that it was "applied to all layers"
       at batch 4 batch norm divides by the UNBIASED variance, as in the paper, and in arms of their
       own (3 epochs) by the biased one, as usual

   THE CURVE: 784-128-128-10, ReLU, one pass over the 60,000 images at batch sizes 2 to 256, with no
   norm, batch norm, layer norm, group norm (8 groups); SGD with learning rate 0.1*m/128 (5 seeds),
   and in arms of their own 0.05 at every m (3 seeds). And eight workers with m examples each, so
   that a step sees 8m: once each normalizes with the statistics of its own m, once with those of
   all, merged (nrm_stats_merge): then their batch norm is that of one batch of 8m.

   Our choices where the sources leave it open: eps 1e-5; running statistics take in 0.1 of each new
   batch, with the unbiased variance, so at small batches they rest on few examples (the diagnostic
   for this: the same network with statistics taken anew from the training images); normalized
   layers have no bias of their own; with several workers the first one's running statistics are
   used, as data-parallel training usually does. The training loss is the mean loss of the
   mini-batches of the epoch, or half epoch, before.

   UNBIASED VARIANCE. The library divides by sqrt(v + eps) with the biased v. With u = v*m/(m-1) and
   k = sqrt((m-1)/m),

       gamma*(x - mean)/sqrt(u + eps) = (k*gamma)*(x - mean)/sqrt(v + k*k*eps),

   so it is the same layer with k*gamma for gamma and k*k*eps for eps, and where it stores the
   running variance as it is (biased) it also infers the same. What is left is that Adam's step is
   one of gamma, not of k*gamma: it is multiplied by k. (Its 1e-8 becomes 1e-8/k thereby.) */
#include "lab/experiment.h"
#include "lab/draw.h"

#define NAME "12_batch_size"

enum { INPUTS = 784, CLASSES = 10, WORKERS = 8, GROUPS = 8, HIDDEN = 2, CURVE_WIDTH = 128 };
enum { LEAST = 2, MOST = 256, PROBED = 1024 };

/* ---- the arms -------------------------------------------------------------------------------- */

enum kind { FIGURE6, CURVE, TEAM };

typedef struct setup {
    enum kind kind;
    int norm;
    int all;      /* 1: the logits are normalized too                        */
    int unbiased; /* 1: by the unbiased variance                             */
    int flat;     /* curve: 1: one learning rate for all batch sizes         */
    int merged;   /* workers: 1: statistics of all of them                   */
    size_t batch, epochs;
} setup;

enum { /* places in the two tables that follow */
       NONE_128,
       LAYER_128,
       HIDDEN_128,
       ALL_128,
       NONE_4,
       LAYER_4,
       HIDDEN_4,
       ALL_4,
       HIDDEN_4_BIASED,
       ALL_4_BIASED,
       NONE,
       LAYER,
       GROUP,
       BATCH,
       NONE_FLAT,
       LAYER_FLAT,
       GROUP_FLAT,
       BATCH_FLAT,
       TEAM_OWN,
       TEAM_MERGED,
       ARMS
};

static const setup setups[ARMS] = {
    {FIGURE6, NRM_NO_NORM, 0, 0, 0, 0, 128, 20},    {FIGURE6, NRM_LAYER_NORM, 0, 0, 0, 0, 128, 20},
    {FIGURE6, NRM_BATCH_NORM, 0, 0, 0, 0, 128, 20}, {FIGURE6, NRM_BATCH_NORM, 1, 0, 0, 0, 128, 20},
    {FIGURE6, NRM_NO_NORM, 0, 0, 0, 0, 4, 6},       {FIGURE6, NRM_LAYER_NORM, 0, 0, 0, 0, 4, 6},
    {FIGURE6, NRM_BATCH_NORM, 0, 1, 0, 0, 4, 6},    {FIGURE6, NRM_BATCH_NORM, 1, 1, 0, 0, 4, 6},
    {FIGURE6, NRM_BATCH_NORM, 0, 0, 0, 0, 4, 3},    {FIGURE6, NRM_BATCH_NORM, 1, 0, 0, 0, 4, 3},
    {CURVE, NRM_NO_NORM, 0, 0, 0, 0, 0, 1},         {CURVE, NRM_LAYER_NORM, 0, 0, 0, 0, 0, 1},
    {CURVE, NRM_GROUP_NORM, 0, 0, 0, 0, 0, 1},      {CURVE, NRM_BATCH_NORM, 0, 0, 0, 0, 0, 1},
    {CURVE, NRM_NO_NORM, 0, 0, 1, 0, 0, 1},         {CURVE, NRM_LAYER_NORM, 0, 0, 1, 0, 0, 1},
    {CURVE, NRM_GROUP_NORM, 0, 0, 1, 0, 0, 1},      {CURVE, NRM_BATCH_NORM, 0, 0, 1, 0, 0, 1},
    {TEAM, NRM_BATCH_NORM, 0, 0, 0, 0, 0, 1},       {TEAM, NRM_BATCH_NORM, 0, 0, 0, 1, 0, 1}};

static const lab_arm arms[ARMS] = {{"none_128", "no norm", 36, 3},
                                   {"layer_128", "layer norm", 37, 3},
                                   {"hidden_128", "batch norm, hidden layers", 37, 3},
                                   {"all_128", "batch norm, logits too", 37, 3},
                                   {"none_4", "no norm", 49, 3},
                                   {"layer_4", "layer norm", 52, 3},
                                   {"hidden_4", "batch norm, hidden layers", 54, 3},
                                   {"all_4", "batch norm, logits too", 55, 3},
                                   {"hidden_4_biased", "hidden layers, biased variance", 27, 3},
                                   {"all_4_biased", "logits too, biased variance", 28, 3},
                                   {"none", "no norm", 9, 0},
                                   {"layer", "layer norm", 9, 0},
                                   {"group", "group norm", 9, 0},
                                   {"batch", "batch norm", 11, 0},
                                   {"none_flat", "no norm", 9, 3},
                                   {"layer_flat", "layer norm", 9, 3},
                                   {"group_flat", "group norm", 9, 3},
                                   {"batch_flat", "batch norm", 11, 3},
                                   {"team_own", "8 workers, statistics of their own", 7, 0},
                                   {"team_merged", "8 workers, merged statistics", 7, 0}};

/* ---- data ------------------------------------------------------------------------------------ */

static training_set train, test;

static int prepare(const dataset *data, int quick)
{
    return training_load(&train, &test, data, quick ? 800 : 0, quick ? 200 : 0, DATASET_STD);
}

/* ---- the network ----------------------------------------------------------------------------- */

static double shrink(size_t m) /* k of the opening comment */
{
    return sqrt((double)(m - 1) / (double)m);
}

static nrm_mlp *make_net(const setup *s, size_t width, size_t batch, double lr, uint64_t seed,
                         void **block)
{
    nrm_mlp_layer layer[HIDDEN + 1];
    nrm_mlp_spec spec = training_plain(layer, HIDDEN, width, NRM_RELU, s->norm);
    nrm_mlp *net;
    size_t l, i;
    for (l = 0; l <= HIDDEN; l++) layer[l].groups = GROUPS;
    if (s->all && s->norm != NRM_NO_NORM) {
        layer[HIDDEN].norm = s->norm;
        layer[HIDDEN].bias = 0;
    }
    spec.max_batch = MOST;
    spec.seed = seed;
    spec.lr = (nrm_real)lr;
    spec.optimizer = s->kind == FIGURE6 ? NRM_ADAM : NRM_SGD;
    if (s->unbiased) {
        spec.eps = (nrm_real)((double)spec.eps * shrink(batch) * shrink(batch));
        spec.biased = 1;
    }
    net = training_net(&spec, block);
    for (l = 0; net && s->unbiased && l <= HIDDEN; l++)
        for (i = 0; net->state[l].gamma && i < net->state[l].shape.width; i++)
            net->state[l].gamma[i] *= (nrm_real)shrink(batch);
    return net;
}

/* Adam's step as one of gamma, where the network holds k*gamma: `kept` has room for all of them. */
static int unbiased_step(nrm_mlp *net, nrm_acc *loss, const training_order *o, nrm_real *kept)
{
    const nrm_real k = (nrm_real)shrink(o->count);
    nrm_real *at = kept;
    int status;
    size_t l, i;
    for (l = 0; l < net->spec.layers; l++)
        if (net->state[l].gamma)
            for (i = 0; i < net->state[l].shape.width; i++) *at++ = net->state[l].gamma[i];
    status = nrm_mlp_train_step(net, loss, o->x, o->labels, o->count);
    for (l = 0, at = kept; l < net->spec.layers; l++)
        if (net->state[l].gamma)
            for (i = 0; i < net->state[l].shape.width; i++, at++)
                net->state[l].gamma[i] = *at + k * (net->state[l].gamma[i] - *at);
    return status;
}

/* ---- eight workers --------------------------------------------------------------------------- */

/* What they have besides the network, which is the same for all: they take turns in one process.
   Rows w*m ... w*m+m-1 of a batch are worker w's. */
typedef struct team {
    nrm_stats stats[HIDDEN][WORKERS][CURVE_WIDTH]; /* that each normalizes with */
    nrm_acc mean[HIDDEN][WORKERS][CURVE_WIDTH], rstd[HIDDEN][WORKERS][CURVE_WIDTH];
    nrm_sums sums[WORKERS][CURVE_WIDTH];
} team;

static int team_statistics(team *t, const nrm_mlp_state *s, size_t l, size_t m, int merged)
{
    nrm_stats all[CURVE_WIDTH];
    const size_t width = s->shape.width;
    size_t w;
    int rc = NRM_OK;
    memset(t->stats[l], 0, sizeof t->stats[l]);
    memset(all, 0, sizeof all);
    for (w = 0; w < WORKERS && rc == NRM_OK; w++) {
        rc = nrm_stats_update(t->stats[l][w], s->linear_out + w * m * width, NULL, m, width, 1);
        if (rc == NRM_OK) rc = nrm_stats_merge(all, t->stats[l][w], width);
    }
    for (w = 0; w < WORKERS && merged; w++) memcpy(t->stats[l][w], all, sizeof all);
    return rc;
}

static int team_layer_forward(nrm_mlp *net, team *t, size_t l, const nrm_real *x, size_t m,
                              int merged)
{
    nrm_mlp_state *s = &net->state[l];
    const size_t width = s->shape.width, part = m * width;
    int rc = nrm_linear_forward(s->linear_out, x, s->W, s->b, WORKERS * m, s->in, width);
    size_t w;
    if (rc == NRM_OK) rc = team_statistics(t, s, l, m, merged);
    for (w = 0; w < WORKERS && rc == NRM_OK; w++)
        rc = nrm_sync_batchnorm_forward(s->norm_out + w * part, t->mean[l][w], t->rstd[l][w],
                                        w == 0 ? &s->running : NULL, s->linear_out + w * part, NULL,
                                        t->stats[l][w], s->gamma, s->beta, net->spec.eps, m, width,
                                        1);
    if (rc != NRM_OK) return rc;
    return nrm_activation_forward(s->act_out, s->norm_out, s->shape.activation, WORKERS * part);
}

/* d [8m][width], the gradient of the layer's output, becomes that of linear_out. */
static int team_layer_backward(nrm_mlp *net, team *t, size_t l, nrm_real *d, size_t m, int merged)
{
    nrm_mlp_state *s = &net->state[l];
    const size_t width = s->shape.width, part = m * width;
    size_t w, i;
    int rc = nrm_activation_backward(d, d, s->act_out, s->shape.activation, WORKERS * part);
    for (w = 0; w < WORKERS && rc == NRM_OK; w++)
        rc = nrm_sync_batchnorm_sums(t->sums[w], s->dgamma, s->dbeta, d + w * part,
                                     s->linear_out + w * part, NULL, t->mean[l][w], t->rstd[l][w],
                                     m, width, 1);
    for (w = 1; w < WORKERS && merged; w++)
        for (i = 0; i < width; i++) {
            t->sums[0][i].dy += t->sums[w][i].dy;
            t->sums[0][i].dy_xhat += t->sums[w][i].dy_xhat;
        }
    for (w = 0; w < WORKERS && rc == NRM_OK; w++)
        rc = nrm_sync_batchnorm_backward(d + w * part, d + w * part, s->linear_out + w * part, NULL,
                                         t->mean[l][w], t->rstd[l][w], s->gamma, t->stats[l][w],
                                         t->sums[merged ? 0 : w], m, width, 1);
    return rc;
}

/* Loss and net->grads of 8m examples; running statistics become those of the first worker. */
static int team_gradient(nrm_mlp *net, team *t, nrm_acc *loss, const nrm_real *x, const int *labels,
                         size_t m, int merged)
{
    const nrm_mlp_state *top = &net->state[HIDDEN];
    const size_t N = WORKERS * m;
    nrm_real *d = net->work[0], *below = net->work[1], *swap;
    size_t l;
    int rc = NRM_OK;
    for (l = 0; l < HIDDEN && rc == NRM_OK; l++)
        rc = team_layer_forward(net, t, l, l ? net->state[l - 1].out : x, m, merged);
    if (rc == NRM_OK)
        rc = nrm_linear_forward(net->logits, net->state[HIDDEN - 1].out, top->W, top->b, N, top->in,
                                CLASSES);
    if (rc == NRM_OK)
        rc = nrm_cross_entropy_forward(loss, net->prob, net->logits, labels, N, CLASSES);
    if (rc == NRM_OK) rc = nrm_cross_entropy_backward(d, net->prob, labels, N, CLASSES);
    memset(net->grads, 0, net->n_params * sizeof *net->grads);
    for (l = HIDDEN + 1; l-- > 0 && rc == NRM_OK;) {
        nrm_mlp_state *s = &net->state[l];
        if (l < HIDDEN) rc = team_layer_backward(net, t, l, d, m, merged);
        if (rc == NRM_OK)
            rc = nrm_linear_backward(l ? below : NULL, s->dW, s->db, d,
                                     l ? net->state[l - 1].out : x, s->W, N, s->in, s->shape.width);
        swap = d;
        d = below;
        below = swap;
    }
    return rc;
}

/* ---- probes: they leave the training as it was ----------------------------------------------- */

/* The length of the gradient by the weights of one unit of the first layer. */
static double unit_length(const nrm_mlp *net, size_t unit)
{
    const size_t width = net->state[0].shape.width;
    double sum = 0;
    size_t i;
    for (i = unit; i < INPUTS * width; i += width)
        sum += (double)net->grads[i] * (double)net->grads[i];
    return sqrt(sum);
}

/* The length of the gradient by the first weights, over batches of m: median, mean, largest; and
   the median over batches and units of one unit's part. when NULL: looks, records nothing. */
static void first_gradient(lab_run *r, const char *when, nrm_mlp *net, size_t m)
{
    const size_t n = r->quick ? 256 : PROBED, batches = n / m, width = CURVE_WIDTH;
    double *value = (double *)malloc(batches * (width + 1) * sizeof *value), *unit;
    stats_summary all;
    size_t i, j;
    if (!value) return;
    unit = value + batches;
    for (i = 0; i < batches; i++) {
        (void)nrm_mlp_gradient(net, NULL, train.x + i * m * INPUTS, train.labels + i * m, m,
                               NRM_TRAIN);
        value[i] = sqrt(
            training_squares(net->grads, INPUTS * width)); /* W of the first layer stands first */
        for (j = 0; j < width; j++) unit[i * width + j] = unit_length(net, j);
    }
    stats_sort(value, batches);
    stats_sort(unit, batches * width);
    all = stats_describe(value, batches);
    for (i = 0; when && i < 4; i++) {
        static const char *const what[4] = {"median", "mean", "largest", "unit"};
        const double y[4] = {stats_quantile(value, batches, 0.5), all.mean, all.max,
                             stats_quantile(unit, batches * width, 0.5)};
        lab_record_as(r, (double)m, y[i], "gradient_%s_%s", when, what[i]);
    }
    free(value);
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

static void test_error(nrm_mlp *net, double *error, double *nll)
{
    nrm_acc loss = (nrm_acc)NAN, accuracy = 0;
    (void)nrm_mlp_eval(net, &loss, &accuracy, test.x, test.labels, test.n);
    *error = 1 - (double)accuracy;
    *nll = (double)loss;
}

/* ---- runs of figure 6 ------------------------------------------------------------------------ */

/* One epoch; a record at its end, and in its middle too if the batches are small. */
static int figure6_epoch(lab_run *r, nrm_mlp *net, training_order *o, size_t epoch, nrm_real *kept)
{
    const setup *s = &setups[r->arm];
    const size_t steps = training_steps(o->n, s->batch), windows = s->batch < 128 ? 2 : 1;
    size_t step, window = 1, since = 0;
    double sum = 0, error, nll;
    int status = NRM_OK;
    for (step = 1; training_next(o, &train) && status >= 0; step++) {
        nrm_acc loss = 0;
        status = s->unbiased ? unbiased_step(net, &loss, o, kept)
                             : nrm_mlp_train_step(net, &loss, o->x, o->labels, o->count);
        sum += (double)loss;
        since++;
        if (step * windows >= window * steps) {
            const double x = (double)epoch + (double)window / (double)windows;
            lab_record(r, "train_nll", x, sum / (double)since);
            test_error(net, &error, &nll);
            lab_record(r, "test_error", x, error);
            lab_record(r, "test_nll", x, nll);
            sum = 0;
            since = 0;
            window++;
        }
        if (step % 64 == 0)
            lab_progress(r, ((double)epoch + (double)step / (double)steps) / (double)s->epochs);
    }
    return status;
}

static int run_figure6(lab_run *r)
{
    const setup *s = &setups[r->arm];
    const size_t width = r->quick ? 32 : 256, n = r->quick ? 400 : 55000;
    nrm_real kept[HIDDEN * 256 + CLASSES];
    training_order order;
    void *block = NULL;
    size_t epoch;
    double error, nll;
    nrm_mlp *net = make_net(s, width, s->batch, 1e-3, r->seed, &block);
    int status = net ? NRM_OK : -1;
    if (!net || training_order_start(&order, n, s->batch, INPUTS, r->seed)) return 1;
    for (epoch = 0; epoch < s->epochs && status >= 0; epoch++)
        status = figure6_epoch(r, net, &order, epoch, kept);
    if (s->norm == NRM_BATCH_NORM && status >= 0) {
        status = training_reestimate(net, train.x, n);
        test_error(net, &error, &nll);
        lab_record(r, "error_anew", (double)s->epochs, error);
    }
    training_order_free(&order);
    free(block);
    if (status < 0) fprintf(stderr, NAME ": %s\n", nrm_strerror(status));
    return status < 0;
}

/* ---- runs of the curve ----------------------------------------------------------------------- */

static int curve_step(nrm_mlp *net, const setup *s, team *t, nrm_acc *loss, const training_order *o)
{
    int status;
    if (s->kind != TEAM) return nrm_mlp_train_step(net, loss, o->x, o->labels, o->count);
    status = team_gradient(net, t, loss, o->x, o->labels, o->count / WORKERS, s->merged);
    return status == NRM_OK ? nrm_mlp_step(net) : status;
}

/* Trains on all examples once. A step without a finite result is not done, and counted. */
static int curve_train(lab_run *r, nrm_mlp *net, team *t, size_t batch, double m)
{
    const setup *s = &setups[r->arm];
    training_order order;
    const size_t n = train.n - train.n % WORKERS, steps = training_steps(n, batch);
    const size_t tail = steps - steps / 10 > 0 ? steps - steps / 10 : 1;
    double sum = 0, spoiled = 0;
    size_t step;
    int status = NRM_OK;
    if (training_order_start(&order, n, batch, INPUTS, r->seed)) return -1;
    for (step = 1; training_next(&order, &train) && status >= 0; step++) {
        nrm_acc loss = 0;
        status = curve_step(net, s, t, &loss, &order);
        if (status > 0) spoiled++;
        if (step >= tail) sum += (double)loss;
    }
    lab_record(r, "train_nll", m, sum / (double)(steps - tail + 1));
    lab_record(r, "spoiled_steps", m, spoiled);
    training_order_free(&order);
    return status;
}

static double curve_rate(const setup *s, size_t batch)
{
    return s->flat ? 0.05 : 0.1 * (double)batch / 128;
}

/* One network at m examples, for a team at m for each worker. */
static int curve_point(lab_run *r, team *t, size_t m)
{
    const setup *s = &setups[r->arm];
    const size_t batch = s->kind == TEAM ? WORKERS * m : m;
    const int batch_norm = s->norm == NRM_BATCH_NORM, probe = s->kind == CURVE && !s->flat;
    const double x = (double)m;
    double error, nll;
    void *block = NULL;
    nrm_mlp *net = make_net(s, CURVE_WIDTH, batch, curve_rate(s, batch), r->seed, &block);
    int status;
    if (!net) return -1;
    if (probe) first_gradient(r, "start", net, m);
    status = curve_train(r, net, t, batch, x);
    test_error(net, &error, &nll);
    lab_record(r, "test_error", x, error);
    lab_record(r, "test_nll", x, nll);
    if (probe) first_gradient(r, "end", net, m);
    if (probe && batch_norm) lab_record(r, "error_by_batches", x, error_by_batches(net, m));
    if (batch_norm && status >= 0) {
        status = training_reestimate(net, train.x, train.n);
        test_error(net, &error, &nll);
        lab_record(r, "error_anew", x, error);
    }
    free(block);
    return status;
}

/* ---- checks that need a network and data ----------------------------------------------------- */

/* Twenty steps with probes between them must leave the same bits as twenty without. */
static int check_probes(lab_run *r)
{
    enum { BATCH_SIZE = 8, STEPS = 20 };
    const setup *s = &setups[BATCH];
    void *block[2] = {NULL, NULL};
    nrm_mlp *net[2];
    size_t i, k;
    for (k = 0; k < 2; k++) {
        net[k] = make_net(s, CURVE_WIDTH, BATCH_SIZE, 0.05, r->seed, &block[k]);
        for (i = 0; net[k] && i < STEPS; i++) {
            (void)nrm_mlp_train_step(net[k], NULL, train.x + i * BATCH_SIZE * INPUTS,
                                     train.labels + i * BATCH_SIZE, BATCH_SIZE);
            if (k == 0 || i % 10 != 0) continue;
            first_gradient(r, NULL, net[k], 64);
            (void)error_by_batches(net[k], 100);
        }
    }
    if (net[0] && net[1]) lab_record(r, "check_probes", 0, training_same_bits(net[0], net[1]));
    free(block[0]);
    free(block[1]);
    return net[0] && net[1] ? 0 : -1;
}

/* The workers' gradient against the library's: merged, that of one batch of 8m; else the mean of
   eight batches of m. The largest difference, relative to the largest gradient. */
static int check_team(lab_run *r, team *t)
{
    enum { M = 4 };
    const setup *s = &setups[r->arm];
    const size_t part = s->merged ? WORKERS * M : M, parts = s->merged ? 1 : WORKERS;
    void *block = NULL;
    nrm_mlp *net = make_net(s, CURVE_WIDTH, WORKERS * M, 0.1, r->seed, &block);
    nrm_real *mine = net ? (nrm_real *)malloc(net->n_params * sizeof *mine) : NULL;
    double *mean = net ? (double *)calloc(net->n_params, sizeof *mean) : NULL;
    double most = 0, off = 0;
    nrm_acc loss;
    size_t i, w;
    if (mine && mean && team_gradient(net, t, &loss, train.x, train.labels, M, s->merged) == 0) {
        memcpy(mine, net->grads, net->n_params * sizeof *mine);
        for (w = 0; w < parts; w++) {
            (void)nrm_mlp_gradient(net, &loss, train.x + w * part * INPUTS, train.labels + w * part,
                                   part, NRM_TRAIN);
            for (i = 0; i < net->n_params; i++) mean[i] += (double)net->grads[i] / (double)parts;
        }
        for (i = 0; i < net->n_params; i++) {
            most = fmax(most, fabs(mean[i]));
            off = fmax(off, fabs(mean[i] - (double)mine[i]));
        }
    }
    lab_record(r, "check_team", 0, most > 0 ? off / most : 1);
    free(mean);
    free(mine);
    free(block);
    return 0;
}

static int run(lab_run *r)
{
    const setup *s = &setups[r->arm];
    team *t;
    size_t m = s->kind == TEAM && s->merged ? 1 : LEAST;
    const size_t last = s->kind == TEAM ? MOST / WORKERS : MOST;
    int status = 0;
    if (s->kind == FIGURE6) return run_figure6(r);
    t = (team *)malloc(sizeof *t);
    if (!t) return 1;
    if (r->arm == BATCH) status = check_probes(r);
    if (s->kind == TEAM) status = check_team(r, t);
    for (; m <= last && status >= 0; m *= 2) {
        if (r->quick && m != 2 && m != 4 && m != 32) continue;
        status = curve_point(r, t, m);
        lab_progress(r, 1 - 1 / (double)m);
    }
    free(t);
    if (status < 0) fprintf(stderr, NAME ": %s\n", nrm_strerror(status));
    return status < 0;
}

/* ---- checks that need neither ---------------------------------------------------------------- */

enum { ROWS = 4, COLS = 5, CELLS = ROWS * COLS };

typedef struct sample { /* of a layer's input, gradient and parameters */
    nrm_real x[CELLS], dy[CELLS], gamma[COLS], beta[COLS];
} sample;

static void draw(sample *a)
{
    nrm_rng rng;
    size_t i;
    nrm_rng_seed(&rng, 1, 7);
    for (i = 0; i < CELLS; i++) a->x[i] = draw_normal(&rng);
    for (i = 0; i < CELLS; i++) a->dy[i] = draw_normal(&rng);
    for (i = 0; i < COLS; i++) a->gamma[i] = 1 + draw_uniform(&rng);
    for (i = 0; i < COLS; i++) a->beta[i] = draw_normal(&rng);
}

typedef struct by_hand { /* the layer with the unbiased variance u, one column at a time */
    double y[CELLS], dx[CELLS], dgamma[COLS], inferred[CELLS]; /* inferred: mean 0.5, u = 2 */
} by_hand;

static void unbiased_by_hand(by_hand *h, const sample *a, double eps)
{
    const double m = ROWS;
    size_t i, j;
    for (j = 0; j < COLS; j++) {
        const double gamma = (double)a->gamma[j], beta = (double)a->beta[j];
        double mean = 0, u = 0, sum = 0, sum_xhat = 0, s;
        for (i = j; i < CELLS; i += COLS) mean += (double)a->x[i] / m;
        for (i = j; i < CELLS; i += COLS) u += pow((double)a->x[i] - mean, 2) / (m - 1);
        s = sqrt(u + eps);
        for (i = j; i < CELLS; i += COLS) {
            h->y[i] = gamma * ((double)a->x[i] - mean) / s + beta;
            h->inferred[i] = gamma * ((double)a->x[i] - 0.5) / sqrt(2 + eps) + beta;
            sum += (double)a->dy[i];
            sum_xhat += (double)a->dy[i] * ((double)a->x[i] - mean) / s;
        }
        h->dgamma[j] = sum_xhat;
        for (i = j; i < CELLS; i += COLS)
            h->dx[i] =
                gamma / s *
                ((double)a->dy[i] - sum / m - ((double)a->x[i] - mean) / s * sum_xhat / (m - 1));
    }
}

/* The library's layer with k*gamma and k*k*eps is the unbiased one: outputs, gradients, inference;
   eps is large, so that a wrong one would show. Returns the largest difference. */
static double unbiased_difference(void)
{
    const double eps = 0.3, k = shrink(ROWS);
    nrm_real y[CELLS], inferred[CELLS], dx[CELLS], dgamma[COLS] = {0}, dbeta[COLS] = {0};
    nrm_real mean_kept[COLS], var_kept[COLS];
    nrm_acc mean[COLS], rstd[COLS];
    nrm_running running = {NULL, NULL, 1, 0, 1, 0};
    const nrm_real small_eps = (nrm_real)(k * k * eps);
    double most = 0;
    by_hand h;
    sample a;
    size_t i;
    draw(&a);
    unbiased_by_hand(&h, &a, eps);
    for (i = 0; i < COLS; i++) a.gamma[i] *= (nrm_real)k;
    running.mean = mean_kept;
    running.var = var_kept;
    for (i = 0; i < COLS; i++) {
        mean_kept[i] = (nrm_real)0.5;
        var_kept[i] = (nrm_real)(k * k * 2); /* the biased variance whose unbiased one is 2 */
    }
    (void)nrm_batchnorm_forward(inferred, NULL, NULL, &running, a.x, a.gamma, a.beta, NRM_INFER,
                                small_eps, ROWS, COLS, 1);
    (void)nrm_batchnorm_forward(y, mean, rstd, NULL, a.x, a.gamma, a.beta, NRM_TRAIN, small_eps,
                                ROWS, COLS, 1);
    (void)nrm_batchnorm_backward(dx, dgamma, dbeta, a.dy, a.x, mean, rstd, a.gamma, NRM_TRAIN, ROWS,
                                 COLS, 1);
    for (i = 0; i < CELLS; i++) {
        most = stats_larger(most, fabs((double)y[i] - h.y[i]));
        most = stats_larger(most, fabs((double)inferred[i] - h.inferred[i]));
        most = stats_larger(most, fabs((double)dx[i] - h.dx[i]));
    }
    for (i = 0; i < COLS; i++) most = stats_larger(most, fabs(k * (double)dgamma[i] - h.dgamma[i]));
    return most;
}

/* What batch norm passes back at m = 2: gamma/s * (dy1 - dy2)/2 * eps/(v + eps), and its negative.
   The largest difference from that, relative to the largest. */
static double pair_difference(void)
{
    const double eps = 0.3;
    nrm_real y[2 * COLS], dx[2 * COLS];
    nrm_acc mean[COLS], rstd[COLS];
    double most = 0, off = 0;
    sample a;
    size_t j;
    draw(&a);
    (void)nrm_batchnorm_forward(y, mean, rstd, NULL, a.x, a.gamma, a.beta, NRM_TRAIN, (nrm_real)eps,
                                2, COLS, 1);
    (void)nrm_batchnorm_backward(dx, NULL, NULL, a.dy, a.x, mean, rstd, a.gamma, NRM_TRAIN, 2, COLS,
                                 1);
    for (j = 0; j < COLS; j++) {
        const double half = ((double)a.x[j] - (double)a.x[COLS + j]) / 2, v = half * half;
        const double wanted = (double)a.gamma[j] / sqrt(v + eps) *
                              ((double)a.dy[j] - (double)a.dy[COLS + j]) / 2 * eps / (v + eps);
        most = stats_larger(most, fabs(wanted));
        off = stats_larger(off, fabs((double)dx[j] - wanted));
        off = stats_larger(off, fabs((double)dx[COLS + j] + wanted));
    }
    return off / most;
}

static void check(lab_report *r)
{
    static const nrm_real one[1] = {1};
    const double unbiased = unbiased_difference(), pair = pair_difference();
    nrm_real y[1];
    nrm_acc mean[1], rstd[1];
    const int alone =
        nrm_batchnorm_forward(y, mean, rstd, NULL, one, NULL, NULL, NRM_TRAIN, NRM_EPS, 1, 1, 1);
    const double own = lab_summary(r, TEAM_OWN, "check_team", 0).max;
    const double merged = lab_summary(r, TEAM_MERGED, "check_team", 0).max;
    lab_check(r, unbiased < 1e-5, "k*gamma and k*k*eps make the layer with the unbiased variance",
              "outputs, gradients and inference within %.1e of the formula, at m = 4, eps = 0.3",
              unbiased);
    lab_check(r, pair < 1e-5, "at m = 2 the gradient is gamma/s*(dy1 - dy2)/2*eps/(v + eps)",
              "within %.1e of it, relative", pair);
    lab_check(r, alone == NRM_EBATCH, "batch norm refuses to train with one example", "%s",
              nrm_strerror(alone));
    lab_check(r, merged < 1e-4, "8 workers, merged statistics: the gradient of one batch",
              "largest difference %.1e of the largest gradient, at 8 x 4", merged);
    lab_check(r, own < 1e-4, "8 workers, own statistics: the mean gradient of 8 batches",
              "largest difference %.1e of the largest gradient, at 8 x 4", own);
    lab_check(r, lab_summary(r, BATCH, "check_probes", 0).min > 0.5,
              "a training with probes ends with the same bits as one without",
              "weights and running variances, 20 steps");
}

/* ---- claims ---------------------------------------------------------------------------------- */

#define FIGURE_6 "Ba, Kiros and Hinton 2016, Fig. 6"
#define BESIDE_6 "ours, beside " FIGURE_6
#define DERIVATIVE "ours, from the derivative of batch norm (Ioffe and Szegedy 2015) at m = 2"
#define WORKERS_OURS "ours, of synchronised batch norm (docs/03_family.md)"
#define SMALL_BATCHES "a tutorial on batch and layer norm; Chinese notes on batch norm"

enum {
    SMALL_ALL,
    SMALL_HIDDEN,
    LITTLE_LOST,
    FASTER_ALL,
    FASTER_HIDDEN,
    BELOW_NONE,
    ORDER_4,
    CURVE_SMALL,
    CURVE_LARGE,
    CURVE_FLAT,
    UNIT_GRADIENT,
    LAYER_GRADIENT,
    MERGED_BETTER,
    MERGED_SAME,
    GROUP_SAME,
    CLAIMS
};

static const lab_claim claims[CLAIMS] = {
    {"12a", "At batch 4 layer norm has a lower test error than batch norm of all layers", FIGURE_6,
     "0.015 against 0.017 to above 0.025, the end of the axis (65 epochs, width 1000)",
     "lower after 6 epochs, seed by seed; unbiased "
     "variance",
     "trial run (1 seed, biased variance, pixels 0..1, 3 epochs): 0.0247 against 0.0511",
     LAB_TRAINING, LAB_SETTING},
    {"12b", "At batch 4 layer norm has a lower test error than batch norm of the hidden layers",
     BESIDE_6, "not drawn: batch norm is \"applied to all layers\"",
     "lower after 6 epochs, seed by seed; unbiased "
     "variance",
     "trial run (1 seed, biased variance, pixels 0..1, 3 epochs): 0.0247 against 0.0403",
     LAB_TRAINING, LAB_SETTING},
    {"12c", "Layer norm loses little by going from batch 128 to batch 4", FIGURE_6,
     "0.013 to 0.015; batch norm 0.0135 to 0.017 and more",
     "error at batch 4 minus error at batch 128, both after 6 epochs: at most 0.005 in the mean, "
     "and smaller than that of batch norm of all layers, seed by seed",
     "none", LAB_TRAINING, LAB_SETTING},
    {"12d", "At batch 128 layer norm trains faster than batch norm of all layers", FIGURE_6,
     "training loss below 1e-7 by epoch 30 against 1e-4 at epoch 65",
     "lower training loss at epochs 5, 10 and 20, seed by seed",
     "trial run (1 seed, pixels 0..1), epoch 5: 0.033 against 0.063", LAB_TRAINING, LAB_SETTING},
    {"12e", "At batch 128 layer norm trains faster than batch norm of the hidden layers", BESIDE_6,
     "not drawn", "lower training loss at epochs 5, 10 and 20, seed by seed",
     "trial run (1 seed, pixels 0..1), epoch 5: 0.033 against 0.025: expected to fail",
     LAB_TRAINING, LAB_NEWS},
    {"12f", "At batch 128 both norms end with a lower test error than no norm", FIGURE_6,
     "layer norm 0.013, batch norm 0.0135, none 0.015",
     "layer norm and batch norm of all layers each below none after 20 epochs, seed by seed",
     "trial run (1 seed, pixels 0..1, 15 epochs): layer 0.0199, batch 0.0171, none 0.0201",
     LAB_TRAINING, LAB_SETTING},
    {"12g", "At batch 4 the training loss is lowest with layer norm, highest with batch norm",
     FIGURE_6, "layer norm 1e-3, none 5e-3, batch norm 4e-2",
     "layer norm below none, none below batch norm of all layers after 6 epochs, seed by seed",
     "none", LAB_TRAINING, LAB_SETTING},
    {"12h", "Batch norm is worse than layer norm at batch sizes 2 and 4", SMALL_BATCHES,
     "no numbers", "higher test error at 2 and at 4, seed by seed; learning rate 0.1*m/128",
     "trial run (1 seed, 16,000 and 32,000 examples at 2 and 4), accuracy: 0.653 against 0.928 and "
     "0.916 against 0.943",
     LAB_TRAINING, LAB_SETTING},
    {"12i", "Batch norm is at least as good as layer norm from batch size 32 on",
     "ours, the other end of 12h", "no numbers",
     "lower test error, mean over 32, 64, 128, 256, seed by seed; and in the mean over seeds "
     "at each of the four",
     "trial run (1 seed), accuracy at 128: 0.960 against 0.956", LAB_TRAINING, LAB_SETTING},
    {"12j", "Batch norm is worse than layer norm at 2 and 4, at one learning rate for all sizes",
     SMALL_BATCHES, "no numbers",
     "higher test error at 2 and at 4, seed by seed; learning rate 0.05 at every m", "none",
     LAB_TRAINING, LAB_SETTING},
    {"12k", "At batch size 2 batch norm passes practically no gradient to a unit before it",
     DERIVATIVE, "eps/(v + eps) of what it would be",
     "length of the gradient by one unit's first weights before training, median over units and "
     "batches: at m = 2 below 1 % of that at m = 4 in every seed",
     "trial run (1 layer): 0.0028 against 1 to 3; short runs of this program (seeds 1, 2): 0.00016 "
     "against 0.78",
     LAB_TRAINING, LAB_SETTING},
    {"12l", "... and so practically none to the layer", DERIVATIVE, "the same",
     "the same with the length of the gradient by all first weights, median over batches",
     "short runs of this program (seeds 1, 2): the median at m = 2 is above that at m = 4: rare "
     "units in which the two values nearly agree rule it; expected to fail",
     LAB_TRAINING, LAB_NEWS},
    {"12m", "Statistics merged over 8 workers make up for few examples on each", WORKERS_OURS,
     "no numbers",
     "lower test error than with statistics of their own at m = 2 and m = 4, seed by seed", "none",
     LAB_TRAINING, LAB_SETTING},
    {"12n", "8 workers with m examples and merged statistics train as one batch of 8m does",
     WORKERS_OURS, "equal but for rounding",
     "exact but for rounding, which training enlarges: test errors within 0.005 of each other at "
     "every 8m from 8 to 256 in every seed",
     "none", LAB_IDENTITY, LAB_SETTING},
    {"12o", "Post hoc: group norm does as layer norm does at batch sizes 2 and 4",
     "ours, written after the run", "no numbers",
     "test errors within 0.005 of each other at 2 and at 4 in every seed; learning rate 0.1*m/128",
     "the run itself: claim and criterion were written when its test errors were known",
     LAB_TRAINING, LAB_SETTING}};

static const char *error_of(lab_report *r, size_t arm, double x)
{
    return lab_text(r, arm, "test_error", x, 4);
}

static const char *nll_of(lab_report *r, size_t arm, double epoch)
{
    const stats_summary s = lab_summary(r, arm, "train_nll", epoch);
    return lab_format(r, "%.2g ± %.1g", s.mean, s.sd);
}

/* How much worse batch 4 is than batch 128 after as many examples, seed by seed. */
static stats_finding judge_loss_by_4(const lab_report *r, double *layer, double *batch)
{
    double a[LAB_SEEDS_MAX], b[LAB_SEEDS_MAX], little, much;
    size_t s, n = lab_seeds(r, LAYER_4);
    for (s = 0; s < n; s++) {
        a[s] = lab_at(r, LAYER_4, s, "test_error", 6) - lab_at(r, LAYER_128, s, "test_error", 6);
        b[s] = lab_at(r, ALL_4, s, "test_error", 6) - lab_at(r, ALL_128, s, "test_error", 6);
    }
    little = stats_mean(a, n);
    much = stats_mean(b, n);
    *layer = little;
    *batch = much;
    return stats_judge_pairs(a, b, n, -1, little <= 0.005);
}

static void judge_faster(lab_report *r, const lab_claim *claim, size_t rival)
{
    static const double epoch[3] = {5, 10, 20};
    stats_finding v[3];
    size_t i;
    for (i = 0; i < 3; i++) v[i] = lab_compare(r, LAYER_128, rival, "train_nll", epoch[i], -1, 1);
    lab_verdict(r, claim, stats_together(v, 3), "",
                "epoch 5: %s against %s; 10: %s against %s; 20: %s against %s",
                nll_of(r, LAYER_128, 5), nll_of(r, rival, 5), nll_of(r, LAYER_128, 10),
                nll_of(r, rival, 10), nll_of(r, LAYER_128, 20), nll_of(r, rival, 20));
}

static void judge_figure6(lab_report *r)
{
    double little, much;
    const stats_finding lost = judge_loss_by_4(r, &little, &much);
    stats_finding v[2];
    lab_verdict(r, &claims[SMALL_ALL], lab_compare(r, LAYER_4, ALL_4, "test_error", 6, -1, 1), "",
                "%s against %s", error_of(r, LAYER_4, 6), error_of(r, ALL_4, 6));
    lab_verdict(r, &claims[SMALL_HIDDEN], lab_compare(r, LAYER_4, HIDDEN_4, "test_error", 6, -1, 1),
                "", "%s against %s", error_of(r, LAYER_4, 6), error_of(r, HIDDEN_4, 6));
    lab_verdict(r, &claims[LITTLE_LOST], lost, "",
                "layer norm %+.4f, batch norm of all layers %+.4f", little, much);
    judge_faster(r, &claims[FASTER_ALL], ALL_128);
    judge_faster(r, &claims[FASTER_HIDDEN], HIDDEN_128);
    v[0] = lab_compare(r, LAYER_128, NONE_128, "test_error", 20, -1, 1);
    v[1] = lab_compare(r, ALL_128, NONE_128, "test_error", 20, -1, 1);
    lab_verdict(r, &claims[BELOW_NONE], stats_together(v, 2), "",
                "layer norm %s, batch norm %s, none %s", error_of(r, LAYER_128, 20),
                error_of(r, ALL_128, 20), error_of(r, NONE_128, 20));
    v[0] = lab_compare(r, LAYER_4, NONE_4, "train_nll", 6, -1, 1);
    v[1] = lab_compare(r, NONE_4, ALL_4, "train_nll", 6, -1, 1);
    lab_verdict(r, &claims[ORDER_4], stats_together(v, 2), "",
                "layer norm %s, none %s, batch norm %s", nll_of(r, LAYER_4, 6),
                nll_of(r, NONE_4, 6), nll_of(r, ALL_4, 6));
}

static void judge_small(lab_report *r, const lab_claim *claim, size_t a, size_t b)
{
    stats_finding v[2];
    v[0] = lab_compare(r, a, b, "test_error", 2, +1, 1);
    v[1] = lab_compare(r, a, b, "test_error", 4, +1, 1);
    lab_verdict(r, claim, stats_together(v, 2), "", "m = 2: %s against %s; m = 4: %s against %s",
                error_of(r, a, 2), error_of(r, b, 2), error_of(r, a, 4), error_of(r, b, 4));
}

static void judge_large(lab_report *r)
{
    static const double size[4] = {32, 64, 128, 256};
    double batch[LAB_SEEDS_MAX] = {0}, layer[LAB_SEEDS_MAX] = {0};
    const size_t n = lab_seeds(r, BATCH);
    int each = 1;
    size_t i, s;
    for (i = 0; i < 4; i++) {
        for (s = 0; s < n; s++) {
            batch[s] += lab_at(r, BATCH, s, "test_error", size[i]) / 4;
            layer[s] += lab_at(r, LAYER, s, "test_error", size[i]) / 4;
        }
        each = each && lab_mean(r, BATCH, "test_error", size[i]) <=
                           lab_mean(r, LAYER, "test_error", size[i]);
    }
    lab_verdict(r, &claims[CURVE_LARGE], stats_judge_pairs(batch, layer, n, -1, each), "",
                "mean %.4f against %.4f; m = 32: %s against %s; 256: %s against %s",
                stats_mean(batch, n), stats_mean(layer, n), error_of(r, BATCH, 32),
                error_of(r, LAYER, 32), error_of(r, BATCH, 256), error_of(r, LAYER, 256));
}

static void judge_pairs(lab_report *r, const lab_claim *claim, const char *series)
{
    double two[LAB_SEEDS_MAX], four[LAB_SEEDS_MAX], ratio[LAB_SEEDS_MAX], worst;
    const size_t n = lab_values(r, BATCH, series, 2, two);
    size_t s;
    (void)lab_values(r, BATCH, series, 4, four);
    for (s = 0; s < n; s++) ratio[s] = two[s] / four[s];
    worst = stats_describe(ratio, n).max; /* nan if one is */
    lab_verdict(r, claim, stats_judge_pairs(two, four, n, -1, worst < 0.01), "",
                "%.2g against %.2g, ratio at most %.2g", stats_mean(two, n), stats_mean(four, n),
                worst);
}

/* Test errors that should be the same: of arm a at m and of arm b at `times` m, for m from `least`
   to `most`. The largest difference of each seed, nan if a value is missing, but quick runs have
   few sizes; returns the number of seeds. */
static size_t farthest(const lab_report *r, size_t a, size_t b, double times, double least,
                       double most, double *worst)
{
    double m;
    size_t s;
    for (s = 0; s < lab_seeds(r, a); s++)
        for (worst[s] = 0, m = least; m <= most; m *= 2) {
            const double off =
                fabs(lab_at(r, a, s, "test_error", m) - lab_at(r, b, s, "test_error", times * m));
            if (!isnan(off) || !lab_quick(r)) worst[s] = stats_larger(worst[s], off);
        }
    return lab_seeds(r, a);
}

static void judge_same(lab_report *r)
{
    double merged[LAB_SEEDS_MAX], group[LAB_SEEDS_MAX];
    const size_t n = farthest(r, TEAM_MERGED, BATCH, WORKERS, 1, (double)MOST / WORKERS, merged);
    const size_t of_groups = farthest(r, GROUP, LAYER, 1, 2, 4, group);
    lab_verdict(r, &claims[MERGED_SAME], stats_judge_limit(merged, n, 0.005, -1), "",
                "the largest difference is %.4f", stats_describe(merged, n).max);
    lab_verdict(r, &claims[GROUP_SAME], stats_judge_limit(group, of_groups, 0.005, -1), "post hoc",
                "m = 2: %s against %s; m = 4: %s against %s; the largest difference is %.4f",
                error_of(r, GROUP, 2), error_of(r, LAYER, 2), error_of(r, GROUP, 4),
                error_of(r, LAYER, 4), stats_describe(group, of_groups).max);
}

static void judge(lab_report *r)
{
    judge_figure6(r);
    judge_small(r, &claims[CURVE_SMALL], BATCH, LAYER);
    judge_large(r);
    judge_small(r, &claims[CURVE_FLAT], BATCH_FLAT, LAYER_FLAT);
    judge_pairs(r, &claims[UNIT_GRADIENT], "gradient_start_unit");
    judge_pairs(r, &claims[LAYER_GRADIENT], "gradient_start_median");
    judge_small(r, &claims[MERGED_BETTER], TEAM_OWN, TEAM_MERGED);
    judge_same(r);
}

/* ---- pages ----------------------------------------------------------------------------------- */

static plot_style look(size_t arm)
{
    plot_style s = lab_style(setups[arm].norm == NRM_LAYER_NORM   ? "layer"
                             : setups[arm].norm == NRM_BATCH_NORM ? "batch"
                                                                  : "none");
    if (setups[arm].norm == NRM_GROUP_NORM) s = plot_with_marker(lab_style("group"), PLOT_TRIANGLE);
    if (setups[arm].all) {
        s.marker = PLOT_SQUARE;
        s.marker_every = setups[arm].batch == 4 ? 1 : 2;
    }
    if (arm == HIDDEN_4_BIASED || arm == ALL_4_BIASED) {
        s.dash = PLOT_DOTTED;
        s.marker = PLOT_NO_MARKER;
    }
    return s;
}

/* The paper's values at the end of its 65 epochs, at the right edge. */
static void paper_values(plot_panel *p, double x, const double *value)
{
    static const size_t arm[3] = {NONE_128, LAYER_128, ALL_128};
    size_t i;
    for (i = 0; i < 3; i++) {
        plot_style s = plot_marked(look(arm[i]).color, PLOT_RING);
        s.size = 1.3;
        plot_scatter(p, i == 2 ? "rings: the paper at epoch 65" : NULL, &x, &value[i], 1, s);
    }
}

static void panel_figure6(lab_report *r, plot_panel *p, int row, int col)
{
    static const size_t arm[2][6] = {
        {NONE_128, LAYER_128, HIDDEN_128, ALL_128, ARMS, ARMS},
        {NONE_4, LAYER_4, HIDDEN_4, ALL_4, HIDDEN_4_BIASED, ALL_4_BIASED}};
    /* of the figure: none, layer norm, batch norm; losses at batch 128 are far below our axis */
    static const double nll[2][3] = {{0, 0, 0}, {5e-3, 1e-3, 4e-2}};
    static const double error[2][3] = {{0.015, 0.013, 0.0135}, {0.016, 0.015, 0.025}};
    size_t i;
    plot_axis_x(p, "epoch", PLOT_LINEAR);
    plot_axis_y(p, row == 0 ? "training loss (nats)" : "test error",
                row == 0 ? PLOT_LOG10 : PLOT_LINEAR);
    plot_range_x(p, 0, col == 0 ? 21 : 6.3);
    if (row == 0) plot_range_y(p, lab_quick(r) ? 0.01 : 7e-4, lab_quick(r) ? 4 : 2);
    if (row == 1) plot_range_y(p, 0.005, 0.06);
    plot_grid(p, PLOT_GRID_Y);
    for (i = 0; i < 6 && arm[col][i] < ARMS; i++)
        lab_plot(r, p, arm[col][i], row == 0 ? "train_nll" : "test_error", NULL, look(arm[col][i]));
    paper_values(p, col == 0 ? 20.7 : 6.2, row == 0 ? nll[col] : error[col]);
    if (row == 0 && col == 0) {
        plot_text_in(p, 0.03, 0.14, "the paper at epoch 65: batch norm 10^{-4},", PLOT_LEFT,
                     PLOT_INK);
        plot_text_in(p, 0.03, 0.05, "layer norm and none below 10^{-7}", PLOT_LEFT, PLOT_INK);
    }
}

static int page_figure6(lab_report *r)
{
    plot_figure *f = lab_figure(
        r, "In batches of 4 layer norm learns best and batch norm worst; in 128 they are alike",
        1600, 1340);
    int row, col;
    lab_subtitle(r, f, "784-256-256-10, ReLU, Adam with learning rate 0.001, batch 128 and 4", 3);
    plot_shared_legend(f);
    for (row = 0; row < 2; row++)
        for (col = 0; col < 2; col++) {
            plot_panel *p = plot_add(f, row, col, 1, 1);
            if (row == 0) plot_heading(p, col == 0 ? "batch 128" : "batch 4");
            panel_figure6(r, p, row, col);
        }
    return lab_save(r, f, NULL);
}

/* A panel of curves against the batch size. legend 0: the colours of another panel. */
static plot_panel *against_m(plot_figure *f, int row, int col, const char *heading,
                             const char *y_label, int legend)
{
    plot_panel *p = plot_add(f, row, col, 1, 1);
    plot_heading(p, heading);
    plot_axis_x(p, "batch size m", PLOT_LOG2);
    plot_axis_y(p, y_label, PLOT_LOG10);
    plot_grid(p, PLOT_GRID_Y);
    plot_legend(p, legend ? PLOT_LEGEND_TOP_RIGHT : PLOT_LEGEND_NONE);
    return p;
}

/* Where there is one power of ten on an axis, the ticks of the others are not enough to read it. */
static void error_axis(plot_panel *p, double most)
{
    static const double at[6] = {0.03, 0.05, 0.1, 0.2, 0.5, 1};
    static const char *const name[6] = {"0.03", "0.05", "0.1", "0.2", "0.5", "1"};
    plot_range_y(p, 0.03, most);
    plot_ticks_y(p, at, name, 6);
}

static void draw_norms(lab_report *r, plot_panel *p, size_t first, const char *series)
{
    static const int marker[4] = {PLOT_SQUARE, PLOT_DIAMOND, PLOT_TRIANGLE, PLOT_CIRCLE};
    size_t i;
    for (i = 0; i < 4; i++)
        lab_plot(r, p, first + i, series, NULL, plot_with_marker(look(first + i), marker[i]));
}

/* Batch norm on one machine, moved to m = batch/8. */
static void draw_one_machine(lab_report *r, plot_panel *p)
{
    const lab_curve c = lab_over_seeds(r, BATCH, "test_error");
    plot_style s = plot_marked(PLOT_INK, PLOT_RING);
    size_t i;
    s.size = 1.5;
    for (i = 0; i < c.n; i++) {
        const double x = c.x[i] / WORKERS;
        if (x >= 1) plot_scatter(p, "one batch of 8m", &x, &c.mean[i], 1, s);
    }
}

static int page_curve(lab_report *r)
{
    plot_figure *f =
        lab_figure(r, "Batch norm fails at batch sizes 2 and 4; layer and group norm hardly notice",
                   1700, 1240);
    plot_panel *scaled = against_m(f, 0, 0, "learning rate 0.1·m/128", "test error", 1);
    plot_panel *flat = against_m(f, 0, 1, "learning rate 0.05 (colours of a)", "test error", 0);
    plot_panel *eight = against_m(f, 0, 2, "eight workers, m each", "test error", 1);
    plot_panel *modes = against_m(f, 1, 0, "batch norm's test statistics", "test error", 1);
    plot_panel *layer =
        against_m(f, 1, 1, "first layer (colours of a)", "gradient before training", 0);
    plot_panel *unit =
        against_m(f, 1, 2, "its median unit (colours of a)", "gradient before training", 0);
    lab_subtitle(r, f, "784-128-128-10, ReLU, SGD, one pass over 60,000 images; b with three seeds",
                 5);
    plot_axis_x(eight, "examples m of a worker", PLOT_LOG2);
    draw_norms(r, scaled, NONE, "test_error");
    draw_norms(r, flat, NONE_FLAT, "test_error");
    lab_plot(r, eight, TEAM_OWN, "test_error", "own statistics",
             plot_with_marker(plot_dashed(PLOT_GREY), PLOT_WEDGE));
    lab_plot(r, eight, TEAM_MERGED, "test_error", "merged statistics",
             plot_with_marker(plot_solid(PLOT_BLUE), PLOT_CIRCLE));
    draw_one_machine(r, eight);
    lab_plot(r, modes, BATCH, "test_error", "running",
             plot_with_marker(plot_solid(PLOT_BLUE), PLOT_CIRCLE));
    lab_plot(r, modes, BATCH, "error_by_batches", "of m test images",
             plot_with_marker(plot_dashed(PLOT_GREY), PLOT_WEDGE));
    lab_plot(r, modes, BATCH, "error_anew", "anew, training images",
             plot_with_marker(plot_dashdot(PLOT_INK), PLOT_SQUARE));
    draw_norms(r, layer, NONE, "gradient_start_median");
    draw_norms(r, unit, NONE, "gradient_start_unit");
    error_axis(scaled, 1.2); /* room for legends: no line is above them */
    error_axis(flat, 1.2);
    error_axis(eight, 1.2);
    error_axis(modes, 1.6);
    return lab_save(r, f, "curve");
}

static int report(lab_report *r)
{
    check(r);
    judge(r);
    return page_figure6(r) || page_curve(r);
}

/* clang-format off */
static const lab_program program = {
    NAME, NRM_VERSION, "What do small mini-batches do to batch norm, layer norm, group norm?",
    "a-b: 784-256-256-10, ReLU, Adam 1e-3, batch 128 and 4; curve: 784-128-128-10, ReLU, SGD, "
    "60,000 examples", 1, LAB_USES_DATA, arms, ARMS, prepare, run, report};
/* clang-format on */
LAB_MAIN(program)
