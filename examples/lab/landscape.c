/* landscape.c - see landscape.h. */
#include "landscape.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "draw.h"

/* ---- a network, or weight norm's parameters of one ---- */

static int landscapei_evaluate_network(landscape_model *m, nrm_acc *loss)
{
    return nrm_mlp_gradient(m->net, loss, m->x, m->labels, m->rows, NRM_TRAIN);
}

static nrm_real *landscapei_gains(const landscape_model *m, size_t l)
{
    return m->params + m->net->n_params + l * m->net->state[0].shape.width;
}

/* Of the hidden layers: W = g·v/|v| from v and g or, with `back`, the gradients by v and g from
   that by W. The model's parameters are the network's, with v in the place of W, and then all g. */
static int landscapei_weights(landscape_model *m, int back)
{
    size_t l;
    int rc = NRM_OK;
    for (l = 0; l + 1 < m->net->spec.layers && rc >= 0; l++) {
        const nrm_mlp_state *s = &m->net->state[l];
        const size_t width = s->shape.width, of_v = (size_t)(s->W - m->net->params);
        nrm_real *v = m->params + of_v, *dv = m->grads + of_v;
        nrm_real *g = landscapei_gains(m, l), *dg = m->grads + (g - m->params);
        nrm_acc *length = m->length + l * width; /* hidden layers are equally wide */
        if (!back) {
            rc = nrm_weightnorm_forward(s->W, length, v, g, s->in, width);
            continue;
        }
        memset(dv, 0, s->in * width * sizeof *dv);
        memset(dg, 0, width * sizeof *dg);
        rc = nrm_weightnorm_backward(dv, dg, s->dW, v, length, g, s->in, width);
    }
    return rc;
}

static int landscapei_spread(landscape_model *m)
{
    memcpy(m->net->params, m->params, m->net->n_params * sizeof *m->params);
    return landscapei_weights(m, 0);
}

static int landscapei_evaluate_weight_norm(landscape_model *m, nrm_acc *loss)
{
    int rc = landscapei_spread(m);
    if (rc >= 0) rc = landscapei_evaluate_network(m, loss);
    memcpy(m->grads, m->net->grads, m->net->n_params * sizeof *m->grads);
    return rc < 0 ? rc : landscapei_weights(m, 1);
}

void landscape_model_free(landscape_model *m)
{
    if (m->weight_norm) free(m->params);
    if (m->weight_norm) free(m->length);
    memset(m, 0, sizeof *m);
}

/* With weight norm: v starts as the W that the network has, g as 1. */
static int landscapei_weight_make(landscape_model *m)
{
    const size_t hidden = (m->net->spec.layers - 1) * m->net->state[0].shape.width;
    size_t i;
    m->weight_norm = 1;
    m->evaluate = landscapei_evaluate_weight_norm;
    m->n = m->net->n_params + hidden;
    m->params = (nrm_real *)calloc(2 * m->n, sizeof *m->params);
    m->length = (nrm_acc *)calloc(hidden, sizeof *m->length);
    if (!m->params || !m->length) return -1;
    m->grads = m->params + m->n;
    memcpy(m->params, m->net->params, m->net->n_params * sizeof *m->params);
    for (i = m->net->n_params; i < m->n; i++) m->params[i] = 1;
    return landscapei_spread(m) >= 0 ? 0 : -1;
}

int landscape_model_make(landscape_model *m, nrm_mlp *net, int weight_norm)
{
    memset(m, 0, sizeof *m);
    m->net = net;
    m->n = net->n_params;
    m->params = net->params;
    m->grads = net->grads;
    m->evaluate = landscapei_evaluate_network;
    return weight_norm ? landscapei_weight_make(m) : 0;
}

void landscape_batch(landscape_model *m, const training_order *order)
{
    m->x = order->x;
    m->labels = order->labels;
    m->rows = order->count;
}

int landscape_step(landscape_model *m, nrm_acc *loss)
{
    size_t i;
    int rc;
    if (m->weight_norm) {
        rc = m->evaluate(m, loss);
        for (i = 0; i < m->n; i++) m->params[i] -= m->net->spec.lr * m->grads[i];
        if (rc >= 0) rc = landscapei_spread(m);
    } else
        rc = nrm_mlp_train_step(m->net, loss, m->x, m->labels, m->rows);
    return rc == NRM_NONFINITE ? NRM_OK : rc;
}

void landscape_columns(const nrm_real *x, size_t rows, size_t cols, double *mean, double *var)
{
    size_t i, j;
    for (j = 0; j < cols; j++) {
        double sum = 0, sum2 = 0;
        for (i = 0; i < rows; i++) sum += (double)x[i * cols + j];
        mean[j] = sum / (double)rows;
        for (i = 0; i < rows; i++) {
            const double d = (double)x[i * cols + j] - mean[j];
            sum2 += d * d;
        }
        var[j] = sum2 / (double)rows;
    }
}

int landscape_first_batch(landscape_model *m)
{
    const size_t width = m->net->state[0].shape.width;
    double *mean = (double *)calloc(2 * width, sizeof *mean), *var = mean + width;
    size_t l, j;
    int rc = mean ? NRM_OK : NRM_ENULL;
    for (l = 0; l + 1 < m->net->spec.layers && rc >= 0; l++) {
        const nrm_mlp_state *s = &m->net->state[l];
        nrm_real *g = landscapei_gains(m, l), *b = m->params + (s->b - m->net->params);
        rc = landscapei_evaluate_weight_norm(m, NULL);
        landscape_columns(s->linear_out, m->rows, width, mean, var);
        for (j = 0; j < width; j++) {
            const double sd = sqrt(var[j]);
            if (!(sd > 0)) continue;
            g[j] = (nrm_real)(1 / sd);
            b[j] = (nrm_real)(-mean[j] / sd);
        }
    }
    free(mean);
    return rc < 0 ? rc : landscapei_spread(m);
}

/* ---- looking around ---- */

int landscape_place_make(landscape_place *p, landscape_model *m, uint64_t seed)
{
    memset(p, 0, sizeof *p);
    p->m = m;
    p->params = (nrm_real *)malloc(3 * m->n * sizeof *p->params);
    if (!p->params) return -1;
    p->grads = p->params + m->n;
    p->direction = p->grads + m->n;
    nrm_rng_seed(&p->rng, seed, LANDSCAPE_STREAM);
    return 0;
}

void landscape_place_free(landscape_place *p)
{
    free(p->params);
    memset(p, 0, sizeof *p);
}

int landscape_arrive(landscape_place *p)
{
    const int rc = p->m->evaluate(p->m, &p->loss);
    memcpy(p->params, p->m->params, p->m->n * sizeof *p->params);
    memcpy(p->grads, p->m->grads, p->m->n * sizeof *p->grads);
    memcpy(p->direction, p->m->grads, p->m->n * sizeof *p->grads);
    p->length = sqrt(training_squares(p->grads, p->m->n));
    return rc;
}

void landscape_turn(landscape_place *p)
{
    const size_t n = p->m->n;
    nrm_real stretch;
    size_t i;
    for (i = 0; i < n; i++) p->direction[i] = draw_normal(&p->rng);
    stretch = (nrm_real)(p->length / sqrt(training_squares(p->direction, n)));
    for (i = 0; i < n; i++) p->direction[i] *= stretch;
}

double landscape_or_infinite(double v)
{
    return isfinite(v) ? v : (double)INFINITY;
}

void landscape_move(landscape_place *p, double s, size_t n)
{
    size_t i;
    memcpy(p->m->params, p->params, p->m->n * sizeof *p->params);
    for (i = 0; i < n; i++) p->m->params[i] -= (nrm_real)s * p->grads[i];
}

int landscape_look(landscape_place *p, double s, double *loss, double *change)
{
    landscape_model *m = p->m;
    nrm_acc there = 0;
    size_t i;
    int rc;
    for (i = 0; i < m->n; i++) m->params[i] = p->params[i] - (nrm_real)s * p->direction[i];
    rc = m->evaluate(m, &there);
    *loss = landscape_or_infinite((double)there);
    *change = landscape_or_infinite(training_distance(m->grads, p->grads, m->n));
    memcpy(m->params, p->params, m->n * sizeof *m->params);
    return rc == NRM_NONFINITE ? NRM_OK : rc;
}

void landscape_view_start(landscape_view *v)
{
    v->lowest = v->least = (double)INFINITY;
    v->highest = v->most = v->beta = v->slope = -(double)INFINITY;
}

int landscape_view_add(landscape_view *v, landscape_place *p, double s)
{
    double loss, change;
    const int rc = landscape_look(p, s, &loss, &change);
    const double path = s * p->length;
    v->lowest = fmin(v->lowest, loss);
    v->highest = fmax(v->highest, loss);
    v->least = fmin(v->least, change);
    v->most = fmax(v->most, change);
    v->beta = fmax(v->beta, landscape_or_infinite(change / path));
    v->slope = fmax(v->slope, landscape_or_infinite(fabs(loss - (double)p->loss) / path));
    return rc;
}

double landscape_range(const landscape_view *v)
{
    return landscape_or_infinite(v->highest - v->lowest);
}
