/* residual.c - see residual.h. */
#include "residual.h"
#include "dataset.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "draw.h"

#define RESIDUAL_EPS ((nrm_real)1e-5)
#define RESIDUAL_NEW_WEIGHT ((nrm_real)0.1)

/* ---- memory ---------------------------------------------------------------------------------- */

typedef struct residuali_block { /* a network's blocks are a list */
    struct residuali_block *next;
    double align;
} residuali_block;

/* Zeros; NULL, and then net->layers is 0, if memory is out. */
static void *residuali_take(residual_net *net, size_t bytes)
{
    residuali_block *block = (residuali_block *)calloc(1, sizeof *block + bytes);
    if (!block) net->layers = 0;
    if (!block) return NULL;
    block->next = (residuali_block *)net->block;
    net->block = block;
    return block + 1;
}

static nrm_real *residuali_reals(residual_net *net, size_t n)
{
    return (nrm_real *)residuali_take(net, n * sizeof(nrm_real));
}

void residual_free(residual_net *net)
{
    residuali_block *block = (residuali_block *)net->block;
    while (block) {
        residuali_block *next = block->next;
        free(block);
        block = next;
    }
    memset(net, 0, sizeof *net);
}

/* Shape, activations and statistics of layer l. */
static void residuali_make_layer(residual_net *net, size_t l)
{
    const residual_spec *spec = &net->spec;
    const int is_last = l == 2 * spec->blocks + 1;
    residual_layer *s = &net->layer[l];
    size_t most;
    s->in = l == 0 ? spec->inputs : spec->width;
    s->out = is_last ? spec->classes : spec->width;
    s->z = residuali_reals(net, spec->max_batch * s->out);
    s->y = is_last ? s->z : residuali_reals(net, spec->max_batch * s->out);
    net->n_params += s->in * s->out;
    if (is_last || spec->norm == NRM_NO_NORM) return;
    net->n_params += 2 * s->out;
    most = s->out > spec->max_batch ? s->out : spec->max_batch;
    s->mean = (nrm_acc *)residuali_take(net, most * sizeof(nrm_acc));
    s->rstd = (nrm_acc *)residuali_take(net, most * sizeof(nrm_acc));
    s->running.mean = residuali_reals(net, s->out);
    s->running.var = residuali_reals(net, s->out);
    s->running.new_weight = RESIDUAL_NEW_WEIGHT;
}

/* Returns 0, or -1 if memory is out. */
static int residuali_allocate(residual_net *net)
{
    const residual_spec *spec = &net->spec;
    const size_t rows = spec->max_batch;
    const size_t widest = spec->width > spec->classes ? spec->width : spec->classes;
    size_t l;
    net->layers = 2 * spec->blocks + 2;
    net->layer = (residual_layer *)residuali_take(net, net->layers * sizeof *net->layer);
    net->h = (nrm_real **)residuali_take(net, (spec->blocks + 1) * sizeof *net->h);
    if (!net->layer || !net->h) return -1;
    for (l = 0; l < net->layers; l++) residuali_make_layer(net, l);
    net->h[0] = net->layer[0].y;
    for (l = 1; l <= spec->blocks; l++) net->h[l] = residuali_reals(net, rows * spec->width);
    net->params = residuali_reals(net, net->n_params);
    net->grads = residuali_reals(net, net->n_params);
    net->velocity = residuali_reals(net, net->n_params);
    net->prob = residuali_reals(net, rows * spec->classes);
    net->work[0] = residuali_reals(net, rows * widest);
    net->work[1] = residuali_reals(net, rows * widest);
    return net->layers ? 0 : -1;
}

/* ---- the beginning --------------------------------------------------------------------------- */

/* Draws the weights of a layer and points it at its parameters; returns how many it has. */
static size_t residuali_start_layer(residual_net *net, size_t l, size_t at)
{
    residual_layer *s = &net->layer[l];
    const size_t weights = s->in * s->out;
    const size_t fan = net->spec.init == RESIDUAL_HE ? s->in : s->in + s->out;
    const double sd = sqrt(2.0 / (double)fan);
    nrm_rng rng;
    size_t i;
    s->W = net->params + at;
    s->dW = net->grads + at;
    nrm_rng_seed(&rng, net->spec.seed, 4 * (uint64_t)l);
    for (i = 0; i < weights; i++) s->W[i] = (nrm_real)(sd * (double)draw_normal(&rng));
    if (!s->running.mean) return weights;
    s->gamma = s->W + weights;
    s->beta = s->gamma + s->out;
    s->dgamma = s->dW + weights;
    s->dbeta = s->dgamma + s->out;
    for (i = 0; i < s->out; i++) s->gamma[i] = s->running.var[i] = 1;
    return weights + 2 * s->out;
}

int residual_make(residual_net *net, const residual_spec *spec)
{
    size_t l, at = 0;
    memset(net, 0, sizeof *net);
    net->spec = *spec;
    if (residuali_allocate(net)) {
        fprintf(stderr, "no residual network: out of memory\n");
        residual_free(net);
        return -1;
    }
    for (l = 0; l < net->layers; l++) at += residuali_start_layer(net, l, at);
    return 0;
}

/* ---- forward --------------------------------------------------------------------------------- */

/* Keeps the first error, else the first thing that was not finite. */
static void residuali_note(int *worst, int rc)
{
    if (rc < 0 ? *worst >= 0 : rc > *worst && *worst == NRM_OK) *worst = rc;
}

static int residuali_norm_forward(residual_net *net, residual_layer *s, size_t N, int mode,
                                  int track)
{
    nrm_running *running = mode == NRM_TRAIN && !track ? NULL : &s->running;
    if (!s->gamma) {
        memcpy(s->y, s->z, N * s->out * sizeof *s->y);
        return NRM_OK;
    }
    if (net->spec.norm == NRM_LAYER_NORM)
        return nrm_layernorm_forward(s->y, s->mean, s->rstd, s->z, s->gamma, s->beta, RESIDUAL_EPS,
                                     N, s->out);
    return nrm_batchnorm_forward(s->y, s->mean, s->rstd, running, s->z, s->gamma, s->beta, mode,
                                 RESIDUAL_EPS, N, s->out, 1);
}

/* Weights, norm and, if asked for, ReLU. */
static int residuali_layer_forward(residual_net *net, size_t l, const nrm_real *x, size_t N,
                                   int mode, int track, int relu)
{
    residual_layer *s = &net->layer[l];
    int worst = nrm_linear_forward(s->z, x, s->W, NULL, N, s->in, s->out);
    residuali_note(&worst, residuali_norm_forward(net, s, N, mode, track));
    if (relu) residuali_note(&worst, nrm_activation_forward(s->y, s->y, NRM_RELU, N * s->out));
    return worst;
}

static int residuali_forward(residual_net *net, const nrm_real *x, size_t N, int mode, int track)
{
    residual_layer *last = &net->layer[net->layers - 1];
    const size_t cells = N * net->spec.width;
    size_t k, i;
    int worst = residuali_layer_forward(net, 0, x, N, mode, track, 1);
    for (k = 1; k <= net->spec.blocks; k++) {
        const nrm_real *before = net->h[k - 1], *branch = net->layer[2 * k].y;
        nrm_real *h = net->h[k];
        residuali_note(&worst, residuali_layer_forward(net, 2 * k - 1, before, N, mode, track, 1));
        residuali_note(&worst, residuali_layer_forward(net, 2 * k, net->layer[2 * k - 1].y, N, mode,
                                                       track, 0));
        for (i = 0; i < cells; i++) h[i] = before[i] + branch[i];
        residuali_note(&worst, nrm_activation_forward(h, h, NRM_RELU, cells));
    }
    residuali_note(&worst, nrm_linear_forward(last->z, net->h[net->spec.blocks], last->W, NULL, N,
                                              last->in, last->out));
    return worst;
}

static int residuali_loss(residual_net *net, nrm_acc *loss, const nrm_real *x, const int *labels,
                          size_t N, int mode, int track)
{
    nrm_acc value = 0;
    int worst;
    if (N > net->spec.max_batch) return NRM_ESIZE;
    worst = residuali_forward(net, x, N, mode, track);
    residuali_note(&worst,
                   nrm_cross_entropy_forward(&value, net->prob, net->layer[net->layers - 1].z,
                                             labels, N, net->spec.classes));
    if (loss) *loss = value;
    if (!isfinite((double)value)) residuali_note(&worst, NRM_NONFINITE);
    return worst;
}

/* ---- backward -------------------------------------------------------------------------------- */

/* d [N][out] is the gradient of y before ReLU; it becomes that of z, and `below` that of x. */
static int residuali_layer_backward(residual_net *net, size_t l, nrm_real *below, nrm_real *d,
                                    const nrm_real *x, size_t N)
{
    residual_layer *s = &net->layer[l];
    int worst = NRM_OK;
    if (s->gamma && net->spec.norm == NRM_LAYER_NORM)
        worst = nrm_layernorm_backward(d, s->dgamma, s->dbeta, d, s->z, s->mean, s->rstd, s->gamma,
                                       N, s->out);
    else if (s->gamma)
        worst = nrm_batchnorm_backward(d, s->dgamma, s->dbeta, d, s->z, s->mean, s->rstd, s->gamma,
                                       NRM_TRAIN, N, s->out, 1);
    residuali_note(&worst, nrm_linear_backward(below, s->dW, NULL, d, x, s->W, N, s->in, s->out));
    return worst;
}

/* d is the gradient of h_k and becomes that of h_(k-1). */
static int residuali_block_backward(residual_net *net, size_t k, nrm_real *d, nrm_real *branch,
                                    size_t N)
{
    const size_t cells = N * net->spec.width;
    nrm_real *dv = net->layer[2 * k].y; /* nobody needs y any more: room for its gradient */
    const nrm_real *u = net->layer[2 * k - 1].y;
    size_t i;
    int worst = nrm_activation_backward(d, d, net->h[k], NRM_RELU, cells);
    memcpy(dv, d, cells * sizeof *dv);
    residuali_note(&worst, residuali_layer_backward(net, 2 * k, branch, dv, u, N));
    residuali_note(&worst, nrm_activation_backward(branch, branch, u, NRM_RELU, cells));
    residuali_note(&worst, residuali_layer_backward(net, 2 * k - 1, dv, branch, net->h[k - 1], N));
    for (i = 0; i < cells; i++) d[i] += dv[i];
    return worst;
}

static int residuali_all_finite(const nrm_real *a, size_t n)
{
    unsigned bad = 0;
    size_t i;
    for (i = 0; i < n; i++) bad |= a[i] - a[i] != 0;
    return bad == 0;
}

int residual_gradient(residual_net *net, nrm_acc *loss, const nrm_real *x, const int *labels,
                      size_t N, int track)
{
    const size_t blocks = net->spec.blocks, last = net->layers - 1;
    nrm_real *d = net->work[0], *other = net->work[1];
    size_t k;
    int worst = residuali_loss(net, loss, x, labels, N, NRM_TRAIN, track);
    if (worst < 0) return worst;
    memset(net->grads, 0, net->n_params * sizeof *net->grads);
    residuali_note(&worst,
                   nrm_cross_entropy_backward(other, net->prob, labels, N, net->spec.classes));
    residuali_note(&worst,
                   nrm_linear_backward(d, net->layer[last].dW, NULL, other, net->h[blocks],
                                       net->layer[last].W, N, net->spec.width, net->spec.classes));
    for (k = blocks; k > 0; k--)
        residuali_note(&worst, residuali_block_backward(net, k, d, other, N));
    residuali_note(&worst, nrm_activation_backward(d, d, net->h[0], NRM_RELU, N * net->spec.width));
    residuali_note(&worst, residuali_layer_backward(net, 0, NULL, d, x, N));
    if (!residuali_all_finite(net->grads, net->n_params)) residuali_note(&worst, NRM_NONFINITE);
    return worst;
}

/* ---- the optimizer; evaluation --------------------------------------------------------------- */

void residual_step(residual_net *net, nrm_real rate, nrm_real keep, nrm_real decay)
{
    nrm_real *w = net->params, *v = net->velocity;
    const nrm_real *g = net->grads;
    size_t i;
    for (i = 0; i < net->n_params; i++) {
        v[i] = keep * v[i] + (g[i] + decay * w[i]);
        w[i] -= rate * v[i];
    }
}

int residual_eval(residual_net *net, nrm_acc *loss, nrm_acc *accuracy, const nrm_real *x,
                  const int *labels, size_t N)
{
    const size_t most = net->spec.max_batch;
    double sum = 0, right = 0;
    size_t at, n;
    int worst = NRM_OK;
    for (at = 0; at < N; at += n) {
        nrm_acc value = 0, part = 0;
        n = N - at < most ? N - at : most;
        residuali_note(&worst, residuali_loss(net, &value, x + at * net->spec.inputs, labels + at,
                                              n, NRM_INFER, 0));
        residuali_note(&worst, nrm_accuracy(&part, net->layer[net->layers - 1].z, labels + at, n,
                                            net->spec.classes));
        sum += (double)value * (double)n;
        right += (double)part * (double)n;
        if (worst < 0) return worst;
    }
    if (loss) *loss = (nrm_acc)(sum / (double)(N > 0 ? N : 1));
    if (accuracy) *accuracy = (nrm_acc)(right / (double)(N > 0 ? N : 1));
    return worst;
}

/* ---- a network of either kind ---------------------------------------------------------------- */

enum { DEEPI_HIDDEN_MAX = 64 };

static int deepi_make_plain(deep_net *net, uint64_t seed)
{
    nrm_mlp_layer layer[DEEPI_HIDDEN_MAX + 1];
    const size_t hidden = net->spec.depth;
    nrm_mlp_spec spec;
    if (hidden > DEEPI_HIDDEN_MAX) {
        fprintf(stderr, "no plain network: more than %d hidden layers\n", DEEPI_HIDDEN_MAX);
        return -1;
    }
    spec = training_plain(layer, hidden, DEEP_PLAIN_WIDTH, NRM_RELU, net->spec.norm);
    spec.max_batch = DEEP_BATCH;
    spec.seed = seed;
    spec.init = net->spec.he ? NRM_INIT_HE : NRM_INIT_XAVIER;
    spec.heavy_ball = net->spec.keep;
    net->plain = training_net(&spec, &net->block);
    if (!net->plain) return -1;
    net->params = net->plain->params;
    net->grads = net->plain->grads;
    net->n_params = net->plain->n_params;
    net->layers = hidden + 1;
    return 0;
}

int deep_make(deep_net *net, const deep_spec *spec, uint64_t seed)
{
    residual_spec residual = {
        DATASET_PIXELS, DEEP_RESIDUAL_WIDTH, 0, DEEP_CLASSES, DEEP_BATCH, 0, 0, 0};
    memset(net, 0, sizeof *net);
    net->spec = *spec;
    if (spec->kind == DEEP_PLAIN) return deepi_make_plain(net, seed);
    residual.blocks = spec->depth;
    residual.norm = spec->norm;
    residual.init = spec->he ? RESIDUAL_HE : RESIDUAL_GLOROT;
    residual.seed = seed;
    if (residual_make(&net->residual, &residual)) return -1;
    net->params = net->residual.params;
    net->grads = net->residual.grads;
    net->n_params = net->residual.n_params;
    net->layers = net->residual.layers;
    return 0;
}

void deep_free(deep_net *net)
{
    if (net->spec.kind == DEEP_PLAIN)
        free(net->block);
    else
        residual_free(&net->residual);
}

int deep_gradient(deep_net *net, nrm_acc *loss, const nrm_real *x, const int *labels, size_t N)
{
    if (net->spec.kind == DEEP_PLAIN)
        return nrm_mlp_gradient(net->plain, loss, x, labels, N, NRM_TRAIN);
    return residual_gradient(&net->residual, loss, x, labels, N, 0);
}

int deep_train_step(deep_net *net, nrm_real rate, nrm_acc *loss, const nrm_real *x,
                    const int *labels, size_t N)
{
    int rc;
    if (net->spec.kind == DEEP_PLAIN) {
        net->plain->spec.lr = rate;
        return nrm_mlp_train_step(net->plain, loss, x, labels, N);
    }
    rc = residual_gradient(&net->residual, loss, x, labels, N, 1);
    if (rc == NRM_OK) residual_step(&net->residual, rate, net->spec.keep, net->spec.decay);
    return rc;
}

int deep_eval(deep_net *net, nrm_acc *loss, nrm_acc *accuracy, const nrm_real *x, const int *labels,
              size_t N)
{
    if (net->spec.kind == DEEP_PLAIN) return nrm_mlp_eval(net->plain, loss, accuracy, x, labels, N);
    return residual_eval(&net->residual, loss, accuracy, x, labels, N);
}

const nrm_real *deep_output(const deep_net *net, size_t k, size_t *width)
{
    *width = net->spec.kind == DEEP_PLAIN ? DEEP_PLAIN_WIDTH : DEEP_RESIDUAL_WIDTH;
    if (net->spec.kind == DEEP_RESIDUAL) return net->residual.h[k];
    return net->plain->state[k > 0 ? k - 1 : 0].out;
}

const nrm_real *deep_prob(const deep_net *net)
{
    return net->spec.kind == DEEP_PLAIN ? net->plain->prob : net->residual.prob;
}

const nrm_real *deep_weight_gradient(const deep_net *net, size_t l, size_t *n)
{
    if (net->spec.kind == DEEP_PLAIN) {
        *n = net->plain->state[l].in * net->plain->state[l].shape.width;
        return net->plain->state[l].dW;
    }
    *n = net->residual.layer[l].in * net->residual.layer[l].out;
    return net->residual.layer[l].dW;
}
