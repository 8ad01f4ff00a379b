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

size_t landscape_weight_of(const landscape_model *m, size_t l, size_t at, landscape_weight *part)
{
    nrm_mlp_state *s = &m->net->state[l];
    const size_t weights = s->in * s->shape.width, gains = l + 1 < m->net->spec.layers;
    part->state = s;
    part->v = m->params + at;
    part->dv = m->grads + at;
    part->g = gains ? part->v + weights : NULL;
    part->dg = gains ? part->dv + weights : NULL;
    part->b = part->v + weights + gains * s->shape.width;
    part->db = part->dv + weights + gains * s->shape.width;
    part->length = m->length + l * s->shape.width; /* hidden layers are equally wide */
    return at + weights + (gains + 1) * s->shape.width;
}

static int landscapei_spread(landscape_model *m)
{
    size_t l, at = 0;
    int rc = NRM_OK;
    for (l = 0; l < m->net->spec.layers && rc >= 0; l++) {
        landscape_weight part;
        nrm_mlp_state *s;
        at = landscape_weight_of(m, l, at, &part);
        s = part.state;
        memcpy(s->b, part.b, s->shape.width * sizeof *s->b);
        if (part.g)
            rc = nrm_weightnorm_forward(s->W, part.length, part.v, part.g, s->in, s->shape.width);
        else
            memcpy(s->W, part.v, s->in * s->shape.width * sizeof *s->W);
    }
    return rc;
}

static int landscapei_evaluate_weight_norm(landscape_model *m, nrm_acc *loss)
{
    size_t l, at = 0;
    int rc = landscapei_spread(m);
    if (rc >= 0) rc = landscapei_evaluate_network(m, loss);
    memset(m->grads, 0, m->n * sizeof *m->grads);
    for (l = 0; l < m->net->spec.layers && rc >= 0; l++) {
        landscape_weight part;
        nrm_mlp_state *s;
        at = landscape_weight_of(m, l, at, &part);
        s = part.state;
        memcpy(part.db, s->db, s->shape.width * sizeof *s->db);
        if (part.g)
            rc = nrm_weightnorm_backward(part.dv, part.dg, s->dW, part.v, part.length, part.g,
                                         s->in, s->shape.width);
        else
            memcpy(part.dv, s->dW, s->in * s->shape.width * sizeof *s->dW);
    }
    return rc;
}

void landscape_model_free(landscape_model *m)
{
    if (m->weight_norm) free(m->params);
    if (m->weight_norm) free(m->length);
}

/* v starts as the W of the network without. */
static int landscapei_weight_make(landscape_model *m)
{
    const size_t layers = m->net->spec.layers;
    size_t l, at = 0, i;
    m->weight_norm = 1;
    m->evaluate = landscapei_evaluate_weight_norm;
    m->n = m->net->n_params + (layers - 1) * m->net->state[0].shape.width;
    m->params = (nrm_real *)calloc(2 * m->n, sizeof *m->params);
    m->length = (nrm_acc *)calloc(layers * m->net->state[0].shape.width, sizeof *m->length);
    if (!m->params || !m->length) return -1;
    m->grads = m->params + m->n;
    for (l = 0; l < layers; l++) {
        landscape_weight part;
        at = landscape_weight_of(m, l, at, &part);
        memcpy(part.v, part.state->W, part.state->in * part.state->shape.width * sizeof *part.v);
        for (i = 0; part.g && i < part.state->shape.width; i++) part.g[i] = 1;
    }
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

void landscape_columns(const nrm_mlp_event *event, size_t most, double *mean, double *var)
{
    size_t i, j;
    for (j = 0; j < event->cols && j < most; j++) {
        double sum = 0, sum2 = 0;
        for (i = 0; i < event->rows; i++) sum += (double)event->data[i * event->cols + j];
        mean[j] = sum / (double)event->rows;
        for (i = 0; i < event->rows; i++) {
            const double d = (double)event->data[i * event->cols + j] - mean[j];
            sum2 += d * d;
        }
        var[j] = sum2 / (double)event->rows;
    }
}

typedef struct landscapei_inputs { /* of the activation of one layer */
    size_t layer, width;
    double *mean, *var; /* [width] */
} landscapei_inputs;

static void landscapei_take_inputs(void *context, const nrm_mlp_event *event)
{
    const landscapei_inputs *found = (const landscapei_inputs *)context;
    if (event->gradient || event->place != NRM_AT_LINEAR || event->layer != found->layer) return;
    landscape_columns(event, found->width, found->mean, found->var);
}

int landscape_first_batch(landscape_model *m)
{
    const size_t width = m->net->state[0].shape.width;
    landscapei_inputs found;
    size_t at = 0, j;
    nrm_acc loss;
    int rc = NRM_OK;
    found.width = width;
    found.mean = (double *)calloc(2 * width, sizeof *found.mean);
    if (!found.mean) return NRM_ENULL;
    found.var = found.mean + width;
    m->net->probe = landscapei_take_inputs;
    m->net->probe_context = &found;
    for (found.layer = 0; found.layer + 1 < m->net->spec.layers && rc >= 0; found.layer++) {
        landscape_weight part;
        rc = m->evaluate(m, &loss);
        at = landscape_weight_of(m, found.layer, at, &part);
        for (j = 0; j < width; j++) {
            const double sd = sqrt(found.var[j]);
            if (!(sd > 0)) continue;
            part.g[j] = (nrm_real)(1 / sd);
            part.b[j] = (nrm_real)(-found.mean[j] / sd);
        }
    }
    m->net->probe = NULL;
    free(found.mean);
    return rc < 0 ? rc : landscapei_spread(m);
}

/* ---- looking around ---- */

/* In four sums, so that they need not wait for each other. */
static double landscapei_distance(const nrm_real *a, const nrm_real *b, size_t n)
{
    double sum[4] = {0, 0, 0, 0};
    size_t i, k;
    for (i = 0; i + 4 <= n; i += 4)
        for (k = 0; k < 4; k++) {
            const double d = (double)a[i + k] - (b ? (double)b[i + k] : 0);
            sum[k] += d * d;
        }
    for (; i < n; i++) {
        const double d = (double)a[i] - (b ? (double)b[i] : 0);
        sum[0] += d * d;
    }
    return sqrt((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

double landscape_length(const nrm_real *a, size_t n)
{
    return landscapei_distance(a, NULL, n);
}

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
    p->length = landscape_length(p->grads, p->m->n);
    return rc;
}

void landscape_turn(landscape_place *p)
{
    const size_t n = p->m->n;
    nrm_real stretch;
    size_t i;
    for (i = 0; i < n; i++) p->direction[i] = draw_normal(&p->rng);
    stretch = (nrm_real)(p->length / landscape_length(p->direction, n));
    for (i = 0; i < n; i++) p->direction[i] *= stretch;
}

double landscape_or_infinite(double v)
{
    return isfinite(v) ? v : (double)INFINITY;
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
    *change = landscape_or_infinite(landscapei_distance(m->grads, p->grads, m->n));
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
