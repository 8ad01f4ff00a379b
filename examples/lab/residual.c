/* residual.c - see residual.h. */
#include "residual.h"
#include "dataset.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "draw.h"

enum { RESIDUALI_HIDDEN_MAX = 64 };

void residual_free(residual_net *net)
{
    free(net->block);
    free(net->past);
    memset(net, 0, sizeof *net);
}

int residual_make(residual_net *net, const residual_spec *of)
{
    nrm_mlp_layer layer[RESIDUALI_HIDDEN_MAX + 1];
    const size_t hidden = 2 * of->blocks + 1;
    nrm_mlp_spec spec;
    size_t l;
    memset(net, 0, sizeof *net);
    if (hidden > RESIDUALI_HIDDEN_MAX) {
        fprintf(stderr, "no residual network: more than %d hidden layers\n", RESIDUALI_HIDDEN_MAX);
        return -1;
    }
    spec = training_plain(layer, hidden, of->width, NRM_RELU, of->norm);
    for (l = 0; l <= hidden; l++) layer[l].bias = 0;
    layer[hidden].width = of->classes;
    spec.inputs = of->inputs;
    spec.max_batch = of->max_batch;
    spec.heavy_ball = of->keep;
    net->mlp = training_net(&spec, &net->block);
    net->past = (nrm_real *)malloc(of->max_batch * of->width * sizeof *net->past);
    if (!net->mlp || !net->past) {
        fprintf(stderr, "no residual network\n");
        residual_free(net);
        return -1;
    }
    for (l = 0; l <= hidden; l++) {
        const nrm_mlp_state *s = &net->mlp->state[l];
        const size_t fan = of->he ? s->in : s->in + s->shape.width;
        draw_normals(s->W, s->in * s->shape.width, sqrt(2.0 / (double)fan), of->seed, 4 * l);
    }
    return 0;
}

/* ---- between weights and ReLU: the norm, and what passes a block by -------------------------- */

static int residuali_forward(void *context, nrm_mlp *mlp, size_t l, size_t N)
{
    const residual_net *net = (const residual_net *)context;
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

/* At the end of a block: d comes through the next one and has been behind this layer's ReLU; what
   passed the next one by has not. */
static int residuali_backward(void *context, nrm_mlp *mlp, size_t l, nrm_real *d, size_t N)
{
    const residual_net *net = (const residual_net *)context;
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

static training_between residuali_between(residual_net *net, int mode, int track)
{
    const training_between between = {net, residuali_forward, residuali_backward};
    net->mode = mode;
    net->track = track;
    return between;
}

int residual_gradient(residual_net *net, nrm_acc *loss, const nrm_real *x, const int *labels,
                      size_t N, int track)
{
    const training_between between = residuali_between(net, NRM_TRAIN, track);
    const nrm_mlp *mlp = net->mlp;
    nrm_acc value = 0;
    size_t i;
    int rc = N > mlp->spec.max_batch ? NRM_ESIZE : NRM_OK;
    if (rc == NRM_OK) rc = training_gradient(net->mlp, &value, x, labels, N, &between);
    for (i = 0; rc == NRM_OK && i < mlp->n_params; i++)
        if (mlp->grads[i] - mlp->grads[i] != 0) rc = NRM_NONFINITE;
    if (loss && rc >= 0) *loss = value;
    return rc;
}

int residual_step(residual_net *net, nrm_real rate, nrm_real decay)
{
    nrm_mlp *mlp = net->mlp;
    size_t i;
    for (i = 0; i < mlp->n_params; i++) mlp->grads[i] += decay * mlp->params[i];
    mlp->spec.lr = rate;
    return nrm_mlp_step(mlp);
}

int residual_eval(residual_net *net, nrm_acc *loss, nrm_acc *accuracy, const nrm_real *x,
                  const int *labels, size_t N)
{
    const training_between between = residuali_between(net, NRM_INFER, 0);
    nrm_mlp *mlp = net->mlp;
    const size_t most = mlp->spec.max_batch, classes = mlp->state[mlp->spec.layers - 1].shape.width;
    double sum = 0, right = 0;
    size_t at, n;
    int worst = NRM_OK;
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

/* ---- a network of either kind ---------------------------------------------------------------- */

static int deepi_make_plain(deep_net *net, uint64_t seed)
{
    nrm_mlp_layer layer[RESIDUALI_HIDDEN_MAX + 1];
    const size_t hidden = net->spec.depth;
    nrm_mlp_spec spec;
    if (hidden > RESIDUALI_HIDDEN_MAX) {
        fprintf(stderr, "no plain network: more than %d hidden layers\n", RESIDUALI_HIDDEN_MAX);
        return -1;
    }
    spec = training_plain(layer, hidden, DEEP_PLAIN_WIDTH, NRM_RELU, net->spec.norm);
    spec.max_batch = DEEP_BATCH;
    spec.seed = seed;
    spec.init = net->spec.he ? NRM_INIT_HE : NRM_INIT_XAVIER;
    spec.heavy_ball = net->spec.keep;
    net->residual.mlp = training_net(&spec, &net->residual.block);
    return net->residual.mlp ? 0 : -1;
}

int deep_make(deep_net *net, const deep_spec *spec, uint64_t seed)
{
    const residual_spec residual = {DATASET_PIXELS, DEEP_RESIDUAL_WIDTH, spec->depth,
                                    DEEP_CLASSES,   DEEP_BATCH,          spec->norm,
                                    spec->he,       spec->keep,          seed};
    memset(net, 0, sizeof *net);
    net->spec = *spec;
    if (spec->kind == DEEP_PLAIN ? deepi_make_plain(net, seed)
                                 : residual_make(&net->residual, &residual))
        return -1;
    net->mlp = net->residual.mlp;
    net->params = net->mlp->params;
    net->grads = net->mlp->grads;
    net->n_params = net->mlp->n_params;
    net->layers = net->mlp->spec.layers;
    return 0;
}

void deep_free(deep_net *net)
{
    residual_free(&net->residual);
}

int deep_gradient(deep_net *net, nrm_acc *loss, const nrm_real *x, const int *labels, size_t N)
{
    if (net->spec.kind == DEEP_PLAIN)
        return nrm_mlp_gradient(net->mlp, loss, x, labels, N, NRM_TRAIN);
    return residual_gradient(&net->residual, loss, x, labels, N, 0);
}

int deep_train_step(deep_net *net, nrm_real rate, nrm_acc *loss, const nrm_real *x,
                    const int *labels, size_t N)
{
    int rc;
    net->mlp->spec.lr = rate;
    if (net->spec.kind == DEEP_PLAIN) return nrm_mlp_train_step(net->mlp, loss, x, labels, N);
    rc = residual_gradient(&net->residual, loss, x, labels, N, 1);
    return rc == NRM_OK ? residual_step(&net->residual, rate, net->spec.decay) : rc;
}

int deep_eval(deep_net *net, nrm_acc *loss, nrm_acc *accuracy, const nrm_real *x, const int *labels,
              size_t N)
{
    if (net->spec.kind == DEEP_PLAIN) return nrm_mlp_eval(net->mlp, loss, accuracy, x, labels, N);
    return residual_eval(&net->residual, loss, accuracy, x, labels, N);
}

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
