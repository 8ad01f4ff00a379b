/* 18_sgd_noise: how far is the gradient of a mini-batch from that of the whole set, and what is a
   larger batch worth?

   A 784-100x6-10 network with ReLU (pixels with mean 0 and variance 1, W ~ U(±sqrt(6/(in+out)))) is
   trained for 200 steps of SGD, learning rate 0.1, batch 128, without norm and with batch norm.
   Then N = 2000 training images are the whole set. C is the mean of |g_i - g|² over its images, g_i
   the gradient of the loss of one image, g their mean; for batch norm this is with running
   statistics taken as constants, since with those of a batch no image has a loss of its own. Batches
   of 1, 4, 16, 64, 256 are drawn from the set, with and without replacement, 2000 of 256 and more of
   smaller ones, 2000 · 256 / size. All inner products g_i · g_j are computed at first; a batch is
   then a sum over its pairs, exact to rounding.

   With batch norm as it is in training, with the statistics of each batch, 200 batches of 4, 16, 64,
   256 are put through the network, and compared with the whole set as one batch.

   What a batch is worth: steps until the loss on the first 1000 training images (running statistics)
   is 0.3, for batches of 8, 16, ..., 512, at the best of the five learning rates 0.1 sqrt(batch/64)
   times 1/4, 1/2, 1, 2, 4; at most 90,000 images, and an attempt ends at twice the images of the
   best so far. What one image costs is counted, in operations and in words of memory, not timed.

   The claims; what counts as reproduced was written down before the run:

       18a  the gradient of a batch is unbiased: its mean error along g is 0 within 3 standard
            errors in all but at most one of the 100 cases (5 sizes, 2 ways to draw, 2 networks, 5
            seeds)
       18b  E|α g - α g_B|² is at most α²C/|B|: with replacement it equals it within 3 % for every
            size, network and seed (partly: the means over seeds do)
       18c  without replacement it equals α²C/|B| · (N-|B|)/(N-1) within 3 %, the same
       18d  unbiased also with batch norm as in training: |bias|², estimated without bias from two
            halves of the draws, is 0 within 2 standard errors over seeds for each size (not
            reproduced: it is above 0, in 4 of 5 seeds and by more than 2, for each size; else
            partly)
       18e  the estimate improves as the batch grows: E|g - g_B|² falls from 16 to 64 to 256, for
            both networks, batch norm as in training, and in all by 16 ± 4
       18f  a larger batch needs fewer steps: those of 512 are below those of 8, and at most an
            eighth, for both networks
       18g  ... but more images, beyond some size: those of 512 are above those of 32, both
            networks
       18h  beyond what size, the noise tells: the batch at which steps and images both are twice
            their least, from a fit of steps = least (1 + size/batch), is within a factor of 10 of
            C/|g|², in the mean over seeds, both networks

   Paired over seeds: the sign in 4 of 5, the mean beyond 2 standard errors. */
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"
#define TRAINING_IMPLEMENTATION
#include "training.h"

#include "lab.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH = 6, WIDTH = 100, SET = 2000, STEPS = 200, BATCH = 128 };
enum { SIZES = 5, TRAIN_SIZES = 4, BATCHES = 7, RATES = 5 };
enum { STREAM_DRAWS = TRAINING_STREAM_DATA + 10 };

static const size_t sizes[SIZES] = {1, 4, 16, 64, 256};

/* ---- the arms -------------------------------------------------------------------------------- */

enum { NOISE_NONE, NOISE_BATCH, WORTH, ARMS = WORTH + 2 * BATCHES };

static const lab_arm arms[ARMS] = {
    {"noise_none", "no norm", 4, 0},          {"noise_batch", "batch norm", 5, 0},
    {"none_8", "no norm, batch 8", 4, 0},     {"batch_8", "batch norm, batch 8", 4, 0},
    {"none_16", "no norm, batch 16", 3, 0},   {"batch_16", "batch norm, batch 16", 3, 0},
    {"none_32", "no norm, batch 32", 2, 0},   {"batch_32", "batch norm, batch 32", 2, 0},
    {"none_64", "no norm, batch 64", 2, 0},   {"batch_64", "batch norm, batch 64", 2, 0},
    {"none_128", "no norm, batch 128", 2, 0}, {"batch_128", "batch norm, batch 128", 2, 0},
    {"none_256", "no norm, batch 256", 3, 0}, {"batch_256", "batch norm, batch 256", 3, 0},
    {"none_512", "no norm, batch 512", 4, 0}, {"batch_512", "batch norm, batch 512", 4, 0}};

static size_t worth_arm(size_t batch_index, size_t norm)
{
    return WORTH + 2 * batch_index + norm;
}

static training_set train; /* made before the first run, shared by all */

static int prepare(const dataset *data, int quick)
{
    (void)quick;
    if (training_set_make(&train, data->train_images, data->train_labels, data->train_n,
                          DATASET_PIXELS, DATASET_STD)) {
        fprintf(stderr, "out of memory\n");
        return -1;
    }
    return 0;
}

static nrm_mlp *make_net(int norm, uint64_t seed, double lr, size_t max_batch, void **block)
{
    nrm_mlp_layer layer[DEPTH + 1];
    nrm_mlp_spec spec = nrm_mlp_defaults();
    size_t l;
    memset(layer, 0, sizeof layer);
    for (l = 0; l < DEPTH; l++) {
        layer[l].width = WIDTH;
        layer[l].activation = NRM_RELU;
        layer[l].norm = norm;
        layer[l].bias = norm == NRM_NO_NORM;
    }
    layer[l].width = DATASET_CLASSES;
    layer[l].bias = 1;
    spec.inputs = DATASET_PIXELS;
    spec.layers = DEPTH + 1;
    spec.layer = layer;
    spec.max_batch = max_batch;
    spec.seed = seed;
    spec.init = NRM_INIT_XAVIER;
    spec.lr = (nrm_real)lr;
    return training_net(&spec, block);
}

/* ---- all inner products of the gradients of single images ------------------------------------ */

typedef struct gram {
    size_t n;
    nrm_real *k;              /* [n][n] g_i · g_j                           */
    double *with_mean;        /* [n] g_i · g                                */
    double mean_square, C;    /* |g|², mean |g_i - g|²                      */
    nrm_real *flat, *product; /* [n][784] turned round, [n][n]: work space  */
    nrm_mlp *net;
    int failed;
} gram;

/* product[i][j] = a_i · a_j, for a [n][width]. */
static void inner_products(gram *m, const nrm_real *a, size_t width)
{
    size_t i, j;
    for (i = 0; i < m->n; i++)
        for (j = 0; j < width; j++) m->flat[j * m->n + i] = a[i * width + j];
    if (nrm_linear_forward(m->product, a, m->flat, NULL, m->n, width, m->n) < 0) m->failed = 1;
}

/* k += factor · product, with factor[i][j] = b_i · b_j + more. A layer's weights have the gradient
   input x error: the inner product of two of those is that of the inputs times that of the errors;
   `more` is 1 if there is a bias, whose gradient is the error. */
static void add_layer(gram *m, const nrm_real *input, size_t in, const nrm_real *error,
                      size_t width, double more)
{
    nrm_real *kept = (nrm_real *)malloc(m->n * m->n * sizeof *kept);
    size_t i;
    if (!kept) {
        m->failed = 1;
        return;
    }
    inner_products(m, input, in);
    memcpy(kept, m->product, m->n * m->n * sizeof *kept);
    inner_products(m, error, width);
    for (i = 0; i < m->n * m->n; i++) m->k[i] += (kept[i] + (nrm_real)more) * m->product[i];
    free(kept);
}

static void add_vectors(gram *m, const nrm_real *a, size_t width)
{
    size_t i;
    inner_products(m, a, width);
    for (i = 0; i < m->n * m->n; i++) m->k[i] += m->product[i];
}

/* Called on the way back. The loss is a mean over n images: times n, these are gradients of single
   images. */
static void see_gradient(void *context, const nrm_mlp_event *e)
{
    gram *m = (gram *)context;
    const nrm_mlp_state *s = &m->net->state[e->layer];
    const size_t width = e->cols;
    nrm_real *d;
    size_t i, j;
    if (!e->gradient || e->place == NRM_AT_ACTIVATION) return;
    d = (nrm_real *)malloc(m->n * width * sizeof *d);
    if (!d) {
        m->failed = 1;
        return;
    }
    for (i = 0; i < m->n * width; i++) d[i] = e->data[i] * (nrm_real)m->n;
    if (e->place == NRM_AT_LINEAR) {
        const nrm_real *input = e->layer ? m->net->state[e->layer - 1].out : train.x;
        add_layer(m, input, s->in, d, width, s->shape.bias);
    } else {
        add_vectors(m, d, width); /* of β; that of γ is this times the normalized input */
        for (i = 0; i < m->n; i++)
            for (j = 0; j < width; j++)
                d[i * width + j] *=
                    (nrm_real)(((double)s->linear_out[i * width + j] - (double)s->mean[j]) *
                               (double)s->rstd[j]);
        add_vectors(m, d, width);
    }
    free(d);
}

static void gram_end(gram *m)
{
    free(m->k);
    free(m->flat);
    free(m->product);
    free(m->with_mean);
}

/* At the parameters of `net`, of the first n training images; running statistics as constants. */
static int gram_make(gram *m, nrm_mlp *net, size_t n)
{
    size_t i, j;
    memset(m, 0, sizeof *m);
    m->n = n;
    m->net = net;
    m->k = (nrm_real *)calloc(n * n, sizeof *m->k);
    m->flat = (nrm_real *)malloc(n * DATASET_PIXELS * sizeof *m->flat);
    m->product = (nrm_real *)malloc(n * n * sizeof *m->product);
    m->with_mean = (double *)calloc(n, sizeof *m->with_mean);
    if (!m->k || !m->flat || !m->product || !m->with_mean) return -1;
    net->probe = see_gradient;
    net->probe_context = m;
    if (nrm_mlp_gradient(net, NULL, train.x, train.labels, n, NRM_FROZEN) < 0) m->failed = 1;
    net->probe = NULL;
    for (i = 0; i < n; i++) {
        for (j = 0; j < n; j++) m->with_mean[i] += (double)m->k[i * n + j] / (double)n;
        m->mean_square += m->with_mean[i] / (double)n;
        m->C += (double)m->k[i * n + i] / (double)n;
    }
    m->C -= m->mean_square;
    return m->failed ? -1 : 0;
}

/* The largest difference of an inner product from that of gradients of batches of one image, over
   the first few, relative to C. */
static double gram_error(const gram *m)
{
    enum { FEW = 6 };
    const size_t p = m->net->n_params;
    nrm_real *g = (nrm_real *)malloc(FEW * p * sizeof *g);
    double worst = 0;
    size_t i, j, q;
    if (!g) return (double)INFINITY;
    for (i = 0; i < FEW; i++) {
        if (nrm_mlp_gradient(m->net, NULL, train.x + i * DATASET_PIXELS, train.labels + i, 1,
                             NRM_FROZEN) < 0)
            worst = (double)INFINITY;
        memcpy(g + i * p, m->net->grads, p * sizeof *g);
    }
    for (i = 0; i < FEW; i++)
        for (j = 0; j <= i; j++) {
            double sum = 0;
            for (q = 0; q < p; q++) sum += (double)g[i * p + q] * (double)g[j * p + q];
            sum = fabs(sum - (double)m->k[i * m->n + j]) / m->C;
            if (!(sum <= worst)) worst = sum;
        }
    free(g);
    return worst;
}

/* ---- batches drawn from the set -------------------------------------------------------------- */

/* Draws `size` of n into pick[n]. */
static void draw(nrm_rng *rng, size_t *pick, size_t n, size_t size, int replace)
{
    size_t i;
    for (i = 0; i < size; i++) {
        const size_t left = replace ? n : n - i;
        const size_t other = (replace ? 0 : i) + nrm_rng_below(rng, (uint32_t)left);
        if (replace) {
            pick[i] = other;
        } else {
            const size_t kept = pick[i];
            pick[i] = pick[other];
            pick[other] = kept;
        }
    }
}

/* |g_B - g|² of the images in pick, by their inner products. */
static double square_error(const gram *m, const size_t *pick, size_t size)
{
    double pairs = 0, single = 0, mean = 0;
    size_t i, j;
    for (i = 0; i < size; i++) {
        const nrm_real *row = m->k + pick[i] * m->n;
        double sum = 0;
        for (j = 0; j < i; j++) sum += (double)row[pick[j]];
        pairs += sum;
        single += (double)row[pick[i]];
        mean += m->with_mean[pick[i]];
    }
    return (2 * pairs + single) / (double)(size * size) - 2 * mean / (double)size + m->mean_square;
}

/* Records for a size: the mean square error over what the formula gives, and the mean error along g
   in standard errors. */
static void measure_draws(const gram *m, lab_run *run, size_t *pick, size_t size, int replace)
{
    const char *way = replace ? "with" : "without";
    const double n = (double)m->n, b = (double)size;
    const double expected = m->C / b * (replace ? 1 : (n - b) / (n - 1));
    const size_t draws = (run->quick ? 20u : 2000u) * 256 / size;
    double sum = 0, squares = 0, along = 0, along2 = 0, d = (double)draws;
    char series[48];
    nrm_rng rng;
    size_t k, i;
    nrm_rng_seed(&rng, run->seed, STREAM_DRAWS + 2 * size + (replace ? 1 : 0));
    for (i = 0; i < m->n; i++) pick[i] = i;
    for (k = 0; k < draws; k++) {
        double error, projected = 0;
        draw(&rng, pick, m->n, size, replace);
        error = square_error(m, pick, size) / expected;
        for (i = 0; i < size; i++) projected += m->with_mean[pick[i]] / b;
        projected -= m->mean_square;
        sum += error;
        squares += error * error;
        along += projected;
        along2 += projected * projected;
    }
    (void)snprintf(series, sizeof series, "ratio_%s", way);
    lab_record(run, series, b, sum / d);
    (void)snprintf(series, sizeof series, "ratio_se_%s", way);
    lab_record(run, series, b, sqrt((squares / d - sum / d * sum / d) / d));
    (void)snprintf(series, sizeof series, "error_%s", way);
    lab_record(run, series, b, sum / d * expected);
    (void)snprintf(series, sizeof series, "z_%s", way);
    lab_record(run, series, b, along / d / sqrt((along2 / d - along / d * along / d) / d));
}

/* Batches through the network as in training; with the whole set as one batch for comparison.
   Records E|error|² and |bias|² over |g|². */
static int measure_training_mode(lab_run *run, nrm_mlp *net, size_t n, size_t *pick, size_t size)
{
    const size_t p = net->n_params, draws = run->quick ? 4 : 200;
    double *half = (double *)calloc(2 * p, sizeof *half), square = 0, total = 0, bias = 0;
    nrm_real *g = (nrm_real *)malloc(p * sizeof *g);
    nrm_real *x = (nrm_real *)malloc(size * DATASET_PIXELS * sizeof *x);
    int labels[256], rc = half && g && x ? NRM_OK : -1;
    nrm_rng rng;
    size_t k, i;
    if (rc >= 0) rc = nrm_mlp_gradient(net, NULL, train.x, train.labels, n, NRM_TRAIN);
    for (i = 0; i < p && rc >= 0; i++) square += (double)net->grads[i] * (double)net->grads[i];
    if (rc >= 0) memcpy(g, net->grads, p * sizeof *g);
    nrm_rng_seed(&rng, run->seed, STREAM_DRAWS + 1000 + size);
    for (i = 0; i < n; i++) pick[i] = i;
    for (k = 0; k < draws && rc >= 0; k++) {
        double *sum = half + (k % 2) * p;
        draw(&rng, pick, n, size, 0);
        for (i = 0; i < size; i++) {
            memcpy(x + i * DATASET_PIXELS, train.x + pick[i] * DATASET_PIXELS,
                   DATASET_PIXELS * sizeof *x);
            labels[i] = train.labels[pick[i]];
        }
        rc = nrm_mlp_gradient(net, NULL, x, labels, size, NRM_TRAIN);
        for (i = 0; i < p; i++) {
            const double e = (double)net->grads[i] - (double)g[i];
            sum[i] += e;
            total += e * e;
        }
    }
    for (i = 0; i < p && rc >= 0; i++) bias += half[i] * half[p + i];
    lab_record(run, "train_error", (double)size, total / (double)draws / square);
    lab_record(run, "train_bias", (double)size, bias / (0.25 * (double)(draws * draws)) / square);
    free(half);
    free(g);
    free(x);
    return rc < 0 ? -1 : 0;
}

static int train_steps(nrm_mlp *net, uint64_t seed, size_t steps)
{
    training_order order;
    int rc = NRM_OK;
    if (training_order_start(&order, train.n, BATCH, DATASET_PIXELS, seed)) return -1;
    while (net->steps < steps && rc == NRM_OK)
        if (training_next(&order, &train))
            rc = nrm_mlp_train_step(net, NULL, order.x, order.labels, order.count);
    training_order_free(&order);
    return rc == NRM_OK ? 0 : -1;
}

static int run_noise(lab_run *run, int norm)
{
    const size_t n = run->quick ? 400 : SET;
    size_t *pick = (size_t *)malloc(n * sizeof *pick), k;
    void *block;
    nrm_mlp *net = make_net(norm, run->seed, 0.1, n, &block);
    gram m;
    int failed = !pick || !net || train_steps(net, run->seed, run->quick ? 20 : STEPS);
    memset(&m, 0, sizeof m);
    failed = failed || gram_make(&m, net, n);
    for (k = 0; k < SIZES && !failed; k++) {
        measure_draws(&m, run, pick, sizes[k], 1);
        measure_draws(&m, run, pick, sizes[k], 0);
        lab_progress(run, (double)(k + 1) / SIZES);
    }
    for (k = 1; k < SIZES && !failed; k++)
        failed = measure_training_mode(run, net, n, pick, sizes[k]);
    if (!failed) {
        lab_record(run, "C", 0, m.C);
        lab_record(run, "square", 0, m.mean_square);
        lab_record(run, "gram_error", 0, gram_error(&m));
    }
    gram_end(&m);
    free(pick);
    free(block);
    return failed;
}

/* ---- what a batch is worth ------------------------------------------------------------------- */

enum { SEEN_IMAGES = 1000, SEEN_EVERY = 1024, IMAGES_MAX = 90000 };

static const double rate_factor[RATES] = {1, 2, 0.5, 4, 0.25}; /* in the order of the attempts */

/* Images until the loss is 0.3: between two looks, by a straight line in log loss. nan: not within
   `most`. */
static int images_to_target(lab_run *run, int norm, size_t batch, double lr, double most,
                            double *images)
{
    const size_t every = SEEN_EVERY / batch;
    const double target = log(run->quick ? 2.2 : 0.3);
    double last = 0, now = 0;
    training_order order;
    nrm_acc loss;
    void *block;
    nrm_mlp *net = make_net(norm, run->seed, lr, SEEN_IMAGES, &block);
    int rc = NRM_OK;
    *images = (double)NAN;
    if (!net || training_order_start(&order, train.n, batch, DATASET_PIXELS, run->seed)) {
        free(block);
        return -1;
    }
    while (rc == NRM_OK && (double)(net->steps * batch) < most) {
        if (training_next(&order, &train) < batch) continue; /* the short one at the end */
        rc = nrm_mlp_train_step(net, NULL, order.x, order.labels, batch);
        if (rc != NRM_OK || net->steps % every > 0) continue;
        rc = nrm_mlp_eval(net, &loss, NULL, train.x, train.labels, SEEN_IMAGES);
        now = log((double)loss);
        if (rc != NRM_OK || now <= target) break;
        last = now;
    }
    if (rc == NRM_OK && now <= target && last > target) {
        const double back = (target - now) / (last - now) * (double)(every * batch);
        *images = (double)(net->steps * batch) - back;
    }
    training_order_free(&order);
    free(block);
    return rc < 0 ? -1 : 0; /* not finite: this rate is too large */
}

static int run_worth(lab_run *run, size_t batch, int norm)
{
    double best = run->quick ? 2048 : IMAGES_MAX / 2.0, best_rate = (double)NAN;
    size_t k;
    for (k = 0; k < RATES; k++) {
        const double lr = 0.1 * sqrt((double)batch / 64) * rate_factor[k];
        double images;
        if (images_to_target(run, norm, batch, lr, 2 * best, &images)) return -1;
        lab_record(run, "images", rate_factor[k], images);
        if (images < best || (isnan(best_rate) && images > 0)) {
            best = images;
            best_rate = lr;
        }
        lab_progress(run, (double)(k + 1) / RATES);
    }
    lab_record(run, "best_images", 0, isnan(best_rate) ? (double)NAN : best);
    lab_record(run, "best_rate", 0, best_rate);
    return 0;
}

static int run(lab_run *r)
{
    static const size_t batches[BATCHES] = {8, 16, 32, 64, 128, 256, 512};
    const int norm = r->arm % 2 ? NRM_BATCH_NORM : NRM_NO_NORM;
    if (r->arm < WORTH) return run_noise(r, norm);
    return run_worth(r, batches[(r->arm - WORTH) / 2], norm);
}

/* ---- what came out --------------------------------------------------------------------------- */

static int report(lab_report *r)
{
    (void)worth_arm;
    (void)r;
    return 0;
}

int main(int argc, char **argv)
{
    static const lab_program program = {
        "18_sgd_noise",
        NRM_VERSION,
        "How far is the gradient of a mini-batch from that of the whole set?",
        "784-100x6-10 ReLU after 200 steps of SGD, learning rate 0.1, batch 128; the whole set is "
        "2000 images",
        1,
        LAB_USES_DATA,
        arms,
        ARMS,
        prepare,
        run,
        report};
    return lab_main(&program, argc, argv);
}
