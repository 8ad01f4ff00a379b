/* residual.c - see residual.h. */
#include "residual.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "draw.h"

enum { DEEPI_HIDDEN_MAX = 64 };

void deep_free(deep_net *net)
{
    free(net->block);
    free(net->past);
    memset(net, 0, sizeof *net);
}

static void deepi_draw_weights(const nrm_mlp *mlp, int he, uint64_t seed)
{
    size_t l;
    for (l = 0; l < mlp->spec.layers; l++) {
        const nrm_mlp_state *s = &mlp->state[l];
        const size_t fan = he ? s->in : s->in + s->shape.width;
        draw_normals(s->W, s->in * s->shape.width, sqrt(2.0 / (double)fan), seed, 4 * l);
    }
}

int deep_make(deep_net *net, const deep_spec *spec, uint64_t seed)
{
    nrm_mlp_layer layer[DEEPI_HIDDEN_MAX + 1];
    const int residual = spec->kind == DEEP_RESIDUAL;
    const size_t hidden = residual ? 2 * spec->depth + 1 : spec->depth;
    const size_t usual = residual ? DEEP_RESIDUAL_WIDTH : DEEP_PLAIN_WIDTH;
    const size_t width = spec->width > 0 ? spec->width : usual;
    nrm_mlp_spec of;
    size_t l;
    memset(net, 0, sizeof *net);
    net->spec = *spec;
    if (hidden > DEEPI_HIDDEN_MAX) {
        fprintf(stderr, "no network: more than %d hidden layers\n", DEEPI_HIDDEN_MAX);
        return -1;
    }
    of = training_plain(layer, hidden, width, NRM_RELU, spec->norm);
    of.max_batch = spec->max_batch > 0 ? spec->max_batch : DEEP_BATCH;
    of.seed = seed;
    of.init = spec->he ? NRM_INIT_HE : NRM_INIT_XAVIER;
    of.heavy_ball = spec->keep;
    if (spec->inputs > 0) of.inputs = spec->inputs;
    if (spec->classes > 0) layer[hidden].width = spec->classes;
    for (l = 0; residual && l <= hidden; l++) layer[l].bias = 0;
    net->past = (nrm_real *)malloc(of.max_batch * width * sizeof *net->past);
    net->mlp = net->past ? training_net(&of, &net->block) : NULL;
    if (!net->mlp) {
        fprintf(stderr, "no network of depth %lu\n", (unsigned long)spec->depth);
        deep_free(net);
        return -1;
    }
    if (residual) deepi_draw_weights(net->mlp, spec->he, seed);
    net->params = net->mlp->params;
    net->grads = net->mlp->grads;
    net->n_params = net->mlp->n_params;
    net->layers = net->mlp->spec.layers;
    return 0;
}

/* ---- between weights and ReLU: the norm, and what passes a block by -------------------------- */

static int deepi_forward(void *context, nrm_mlp *mlp, size_t l, size_t N)
{
    const deep_net *net = (const deep_net *)context;
    nrm_mlp_state *s = &mlp->state[l];
    nrm_running *running = net->mode == NRM_TRAIN && !net->track ? NULL : &s->running;
    const nrm_real eps = mlp->spec.eps;
    const size_t width = s->shape.width;
    size_t i;
    int rc = NRM_OK;
    if (s->shape.norm == NRM_LAYER_NORM)
        rc = nrm_layernorm_forward(s->norm_out, s->mean, s->rstd, s->linear_out, s->gamma, s->beta,
                                   eps, N, width);
    if (s->shape.norm == NRM_BATCH_NORM)
        rc = nrm_batchnorm_forward(s->norm_out, s->mean, s->rstd, running, s->linear_out, s->gamma,
                                   s->beta, net->mode, eps, N, width, 1);
    for (i = 0; l > 0 && l % 2 == 0 && i < N * width; i++) s->norm_out[i] += s[-2].out[i];
    return rc;
}

/* At the end of a block: d has come back through the next block and this layer's ReLU; net->past,
   which passed the next block by, still has to go through that ReLU. */
static int deepi_backward(void *context, nrm_mlp *mlp, size_t l, nrm_real *d, size_t N)
{
    const deep_net *net = (const deep_net *)context;
    const nrm_mlp_state *s = &mlp->state[l];
    const size_t width = s->shape.width, cells = N * width;
    size_t i;
    int rc = NRM_OK;
    if (l % 2 == 0 && l + 2 < mlp->spec.layers) {
        rc = nrm_activation_backward(net->past, net->past, s->act_out, NRM_RELU, cells);
        for (i = 0; i < cells; i++) d[i] += net->past[i];
    }
    if (l % 2 == 0) memcpy(net->past, d, cells * sizeof *d);
    if (rc == NRM_OK && s->shape.norm == NRM_LAYER_NORM)
        rc = nrm_layernorm_backward(d, s->dgamma, s->dbeta, d, s->linear_out, s->mean, s->rstd,
                                    s->gamma, N, width);
    if (rc == NRM_OK && s->shape.norm == NRM_BATCH_NORM)
        rc = nrm_batchnorm_backward(d, s->dgamma, s->dbeta, d, s->linear_out, s->mean, s->rstd,
                                    s->gamma, NRM_TRAIN, N, width, 1);
    return rc;
}

static training_between deepi_between(deep_net *net, int mode, int track)
{
    const training_between between = {net, deepi_forward, deepi_backward};
    net->mode = mode;
    net->track = track;
    return between;
}

/* Of a residual network. With `track` running statistics move on. */
static int deepi_gradient(deep_net *net, nrm_acc *loss, const nrm_real *x, const int *labels,
                          size_t N, int track)
{
    const training_between between = deepi_between(net, NRM_TRAIN, track);
    nrm_acc value = 0;
    size_t i;
    int rc = N > net->mlp->spec.max_batch ? NRM_ESIZE : NRM_OK;
    if (rc == NRM_OK) rc = training_gradient(net->mlp, &value, x, labels, N, &between);
    for (i = 0; rc == NRM_OK && i < net->n_params; i++)
        if (net->grads[i] - net->grads[i] != 0) rc = NRM_NONFINITE;
    if (loss && rc >= 0) *loss = value;
    return rc;
}

int deep_gradient(deep_net *net, nrm_acc *loss, const nrm_real *x, const int *labels, size_t N)
{
    if (net->spec.kind == DEEP_RESIDUAL) return deepi_gradient(net, loss, x, labels, N, 0);
    return nrm_mlp_gradient(net->mlp, loss, x, labels, N, NRM_TRAIN);
}

int deep_train_step(deep_net *net, nrm_real rate, nrm_acc *loss, const nrm_real *x,
                    const int *labels, size_t N)
{
    size_t i;
    int rc;
    net->mlp->spec.lr = rate;
    if (net->spec.kind == DEEP_PLAIN) return nrm_mlp_train_step(net->mlp, loss, x, labels, N);
    rc = deepi_gradient(net, loss, x, labels, N, 1);
    if (rc != NRM_OK) return rc;
    for (i = 0; i < net->n_params; i++) net->grads[i] += net->spec.decay * net->params[i];
    return nrm_mlp_step(net->mlp);
}

int deep_eval(deep_net *net, nrm_acc *loss, nrm_acc *accuracy, const nrm_real *x, const int *labels,
              size_t N)
{
    const training_between between = deepi_between(net, NRM_INFER, 0);
    nrm_mlp *mlp = net->mlp;
    const size_t most = mlp->spec.max_batch, classes = mlp->state[net->layers - 1].shape.width;
    double sum = 0, right = 0;
    size_t at, n;
    int worst = NRM_OK;
    if (net->spec.kind == DEEP_PLAIN) return nrm_mlp_eval(mlp, loss, accuracy, x, labels, N);
    for (at = 0; at < N; at += n) {
        nrm_acc value = 0, part = 0;
        int rc;
        n = N - at < most ? N - at : most;
        rc = training_forward(mlp, x + at * mlp->spec.inputs, n, &between);
        if (rc < 0) return rc;
        worst |= rc;
        worst |= nrm_cross_entropy_forward(&value, NULL, mlp->logits, labels + at, n, classes);
        worst |= nrm_accuracy(&part, mlp->logits, labels + at, n, classes);
        sum += (double)value * (double)n;
        right += (double)part * (double)n;
    }
    if (loss) *loss = (nrm_acc)(sum / (double)(N > 0 ? N : 1));
    if (accuracy) *accuracy = (nrm_acc)(right / (double)(N > 0 ? N : 1));
    return worst;
}

/* ---- what it has computed -------------------------------------------------------------------- */

const nrm_real *deep_output(const deep_net *net, size_t k, size_t *width)
{
    const size_t l = net->spec.kind == DEEP_RESIDUAL ? 2 * k : k > 0 ? k - 1 : 0;
    *width = net->mlp->state[l].shape.width;
    return net->mlp->state[l].out;
}

const nrm_real *deep_prob(const deep_net *net)
{
    return net->mlp->prob;
}

const nrm_real *deep_weight_gradient(const deep_net *net, size_t l, size_t *n)
{
    *n = net->mlp->state[l].in * net->mlp->state[l].shape.width;
    return net->mlp->state[l].dW;
}
