/* training.c - see training.h. */
#include "training.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int training_set_make(training_set *set, const unsigned char *pixels, const unsigned char *labels,
                      size_t n, size_t features, dataset_encoding encoding)
{
    nrm_real value[256];
    size_t i;
    set->n = n;
    set->features = features;
    set->x = (nrm_real *)malloc(n * features * sizeof *set->x);
    set->labels = (int *)malloc(n * sizeof *set->labels);
    if (!set->x || !set->labels) {
        training_set_free(set);
        return -1;
    }
    for (i = 0; i < 256; i++) value[i] = (nrm_real)dataset_value((int)i, encoding);
    for (i = 0; i < n * features; i++) set->x[i] = value[pixels[i]];
    for (i = 0; i < n; i++) set->labels[i] = labels[i];
    return 0;
}

void training_set_free(training_set *set)
{
    free(set->x);
    free(set->labels);
    memset(set, 0, sizeof *set);
}

int training_load(training_set *train, training_set *test, const dataset *data, size_t train_n,
                  size_t test_n, dataset_encoding encoding)
{
    if (train_n == 0 || train_n > data->train_n) train_n = data->train_n;
    if (test_n == 0 || test_n > data->test_n) test_n = data->test_n;
    if (training_set_make(train, data->train_images, data->train_labels, train_n, DATASET_PIXELS,
                          encoding) == 0 &&
        (!test || training_set_make(test, data->test_images, data->test_labels, test_n,
                                    DATASET_PIXELS, encoding) == 0))
        return 0;
    fprintf(stderr, "no data: out of memory\n");
    return -1;
}

int training_order_start(training_order *order, size_t n, size_t batch, size_t features,
                         uint64_t seed)
{
    size_t i;
    memset(order, 0, sizeof *order);
    order->n = n;
    order->batch = batch;
    order->features = features;
    order->index = (size_t *)malloc(n * sizeof *order->index);
    order->x = (nrm_real *)malloc(batch * features * sizeof *order->x);
    order->labels = (int *)malloc(batch * sizeof *order->labels);
    if (!order->index || !order->x || !order->labels) {
        training_order_free(order);
        return -1;
    }
    for (i = 0; i < n; i++) order->index[i] = i;
    nrm_rng_seed(&order->rng, seed, TRAINING_STREAM_ORDER);
    return 0;
}

void training_order_free(training_order *order)
{
    free(order->index);
    free(order->x);
    free(order->labels);
    memset(order, 0, sizeof *order);
}

/* Example `from` of the set becomes number i of the batch. */
static void trainingi_take(training_order *order, const training_set *set, size_t i, size_t from)
{
    memcpy(order->x + i * order->features, set->x + from * order->features,
           order->features * sizeof *order->x);
    order->labels[i] = set->labels[from];
}

size_t training_next(training_order *order, const training_set *set)
{
    size_t i;
    if (order->at == 0) (void)nrm_rng_shuffle(&order->rng, order->index, order->n);
    order->count = order->n - order->at < order->batch ? order->n - order->at : order->batch;
    for (i = 0; i < order->count; i++) trainingi_take(order, set, i, order->index[order->at + i]);
    order->at = order->count > 0 ? order->at + order->count : 0;
    return order->count;
}

void training_go_on(training_order *order, const training_set *set, size_t least)
{
    while (training_next(order, set) < least) {
    }
}

void training_draw(training_order *order, const training_set *set)
{
    size_t i;
    order->count = order->batch;
    for (i = 0; i < order->count; i++)
        trainingi_take(order, set, i, nrm_rng_below(&order->rng, (uint32_t)order->n));
}

double training_dot(const nrm_real *a, const nrm_real *b, size_t n)
{
    double sum = 0;
    size_t i;
    for (i = 0; i < n; i++) sum += (double)a[i] * (double)b[i];
    return sum;
}

double training_squares(const nrm_real *a, size_t n)
{
    return training_dot(a, a, n);
}

double training_rms(const nrm_real *a, size_t n)
{
    return sqrt(training_squares(a, n) / (double)n);
}

double training_distance(const nrm_real *a, const nrm_real *b, size_t n)
{
    double sum = 0;
    size_t i;
    for (i = 0; i < n; i++) sum += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
    return sqrt(sum);
}

double training_farthest(const nrm_real *a, const nrm_real *b, size_t n)
{
    double most = 0;
    size_t i;
    for (i = 0; i < n; i++) {
        const double off = fabs((double)a[i] - (b ? (double)b[i] : 0));
        if (isnan(off)) return off;
        if (off > most) most = off;
    }
    return most;
}

double training_log_length(const nrm_real *a, size_t n)
{
    const double most = training_farthest(a, NULL, n);
    double sum = 0;
    size_t i;
    if (!(most > 0) || isinf(most)) return log10(most);
    for (i = 0; i < n; i++) sum += ((double)a[i] / most) * ((double)a[i] / most);
    return log10(most) + 0.5 * log10(sum);
}

double training_cosine(const nrm_real *a, const nrm_real *b, size_t rows, size_t cols)
{
    double most = 0;
    size_t i, j;
    for (j = 0; j < cols; j++) {
        double aa = 0, ab = 0, bb = 0;
        for (i = j; i < rows * cols; i += cols) {
            const double x = (double)a[i], y = (double)b[i];
            aa += x * x;
            ab += x * y;
            bb += y * y;
        }
        if (bb > 0) most = fmax(most, fabs(ab) / sqrt(aa * bb));
    }
    return most;
}

int training_same_bits(const nrm_mlp *a, const nrm_mlp *b)
{
    int same = memcmp(a->params, b->params, a->n_params * sizeof *a->params) == 0;
    size_t l;
    for (l = 0; l < a->spec.layers && same; l++) {
        const nrm_running *ra = &a->state[l].running, *rb = &b->state[l].running;
        const size_t size = a->state[l].shape.width * sizeof *ra->mean;
        if (ra->mean) same = memcmp(ra->mean, rb->mean, size) == 0;
        if (ra->var && same) same = memcmp(ra->var, rb->var, size) == 0;
    }
    return same;
}

/* Running statistics become those of all values that were counted: ST.7. */
static int training_store(nrm_running *running, const nrm_stats *stats, size_t width)
{
    size_t c;
    for (c = 0; c < width; c++) {
        const nrm_acc n = stats[c].count - (running->biased ? 0 : 1);
        if (!(n > 0)) return NRM_EBATCH;
        if (!(stats[c].m2 >= 0)) return NRM_ESTATS; /* or NaN */
        running->mean[c] = (nrm_real)stats[c].mean;
        running->var[c] = (nrm_real)(stats[c].m2 / n);
    }
    running->batches = 1;
    return NRM_OK;
}
int training_reestimate(nrm_mlp *net, const nrm_real *x, size_t n)
{
    const nrm_sync sync = net->spec.sync;
    const nrm_rng rng = net->rng;
    nrm_mlp_state *s, *end = net->state + net->spec.layers;
    size_t at, count;
    int status = NRM_OK, worst = NRM_OK;
    for (s = net->state; s < end; s++)
        if (s->stats) memset(s->stats, 0, s->shape.width * sizeof *s->stats);
    net->spec.sync.merge = NULL; /* workers take different numbers of batches */
    for (at = 0; at < n && status >= 0; at += count) {
        count = n - at < net->spec.max_batch ? n - at : net->spec.max_batch;
        if (n - at - count == 1 && count > 2) count--; /* leave no batch of one behind */
        status = nrm_mlp_forward(net, x + at * net->spec.inputs, count, NRM_TRAIN);
        worst |= status;
        for (s = net->state; s < end && status >= 0; s++) {
            const nrm_real *z = s->shape.norm_after ? s->act_out : s->linear_out;
            if (s->stats) status = nrm_stats_update(s->stats, z, NULL, count, s->shape.width, 1);
        }
    }
    net->spec.sync = sync;
    net->rng = rng;
    for (s = net->state; s < end && status >= 0; s++) {
        if (!s->stats) continue;
        if (sync.merge && sync.merge(sync.context, s->stats, s->shape.width)) return NRM_ESYNC;
        status = training_store(&s->running, s->stats, s->shape.width);
    }
    return status < 0 ? status : worst;
}

size_t training_steps(size_t n, size_t batch)
{
    return (n + batch - 1) / batch;
}

nrm_mlp_spec training_plain(nrm_mlp_layer *layer, size_t hidden, size_t width, int activation,
                            int norm)
{
    nrm_mlp_spec spec = nrm_mlp_defaults();
    size_t l;
    memset(layer, 0, (hidden + 1) * sizeof *layer);
    for (l = 0; l < hidden; l++) {
        layer[l].width = width;
        layer[l].activation = activation;
        layer[l].norm = norm;
        layer[l].bias = norm == NRM_NO_NORM;
    }
    layer[hidden].width = DATASET_CLASSES;
    layer[hidden].bias = 1;
    spec.inputs = DATASET_PIXELS;
    spec.layers = hidden + 1;
    spec.layer = layer;
    spec.init = NRM_INIT_XAVIER;
    return spec;
}

nrm_mlp_spec training_notebook(nrm_mlp_layer *layer, int norm)
{
    nrm_mlp_spec spec = training_plain(layer, 2, 64, NRM_RELU, norm);
    layer[1].width = 128;
    layer[0].bias = layer[1].bias = 1;
    spec.init = NRM_INIT_FAN_IN;
    return spec;
}

int training_forward(nrm_mlp *net, const nrm_real *x, size_t N, const training_between *with)
{
    size_t l;
    int rc = NRM_OK, worst = NRM_OK;
    for (l = 0; l < net->spec.layers && rc >= 0; l++) {
        const nrm_mlp_state *s = &net->state[l];
        const size_t width = s->shape.width;
        rc = nrm_linear_forward(s->linear_out, x, s->W, s->b, N, s->in, width);
        if (l + 1 < net->spec.layers && rc >= 0) rc = with->forward(with->context, net, l, N);
        if (rc > 0) worst = rc;
        if (l + 1 < net->spec.layers && rc >= 0)
            rc = nrm_activation_forward(s->act_out, s->norm_out, s->shape.activation, N * width);
        x = s->out;
    }
    return rc < 0 ? rc : worst;
}

int training_gradient(nrm_mlp *net, nrm_acc *loss, const nrm_real *x, const int *labels, size_t N,
                      const training_between *with)
{
    size_t l = net->spec.layers;
    const size_t classes = net->state[l - 1].shape.width;
    const int worst = training_forward(net, x, N, with);
    int rc = worst;
    if (rc >= 0) rc = nrm_cross_entropy_forward(loss, net->prob, net->logits, labels, N, classes);
    if (rc != NRM_OK || worst != NRM_OK) return rc != NRM_OK ? rc : worst;
    memset(net->grads, 0, net->n_params * sizeof *net->grads);
    rc = nrm_cross_entropy_backward(net->work[l % 2], net->prob, labels, N, classes);
    while (l > 0 && rc >= 0) {
        nrm_real *d = net->work[l-- % 2], *below = l > 0 ? net->work[l % 2] : NULL;
        const nrm_mlp_state *s = &net->state[l];
        const size_t width = s->shape.width;
        if (l + 1 < net->spec.layers)
            rc = nrm_activation_backward(d, d, s->act_out, s->shape.activation, N * width);
        if (l + 1 < net->spec.layers && rc >= 0) rc = with->backward(with->context, net, l, d, N);
        if (rc >= 0)
            rc = nrm_linear_backward(below, s->dW, s->db, d, l > 0 ? net->state[l - 1].out : x,
                                     s->W, N, s->in, width);
    }
    return rc;
}

nrm_mlp *training_net(const nrm_mlp_spec *spec, void **block)
{
    const size_t bytes = nrm_mlp_bytes(spec); /* 0 of a bad spec: nrm_mlp_init says why */
    nrm_mlp *net = NULL;
    int status;
    *block = malloc(bytes > 0 ? bytes : 1);
    status = *block ? nrm_mlp_init(&net, *block, bytes, spec) : NRM_OK;
    if (*block && status == NRM_OK) return net;
    fprintf(stderr, "no network: %s\n", *block ? nrm_strerror(status) : "out of memory");
    free(*block);
    *block = NULL;
    return NULL;
}
