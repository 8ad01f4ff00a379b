/* flatness.c - see flatness.h. */
#include "flatness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "draw.h"
#include "matrix.h"
#include "stats.h"

#define NUDGE 0.01 /* of the parameters, along a direction of length 1, for a curvature */

void flatness_here(flatness_view *v)
{
    memcpy(v->kept, v->net->params, v->net->n_params * sizeof *v->kept);
}

int flatness_open(flatness_view *v, nrm_mlp *net, const nrm_real *x, const int *labels, size_t n)
{
    v->net = net;
    v->x = x;
    v->labels = labels;
    v->n = n;
    v->kept = (nrm_real *)malloc(net->n_params * sizeof *v->kept);
    if (!v->kept) return -1;
    flatness_here(v);
    return 0;
}

void flatness_close(flatness_view *v)
{
    free(v->kept);
    v->kept = NULL;
}

int flatness_at(flatness_view *v, const nrm_real *d, double t, double *loss)
{
    nrm_mlp *net = v->net;
    nrm_acc value = 0;
    size_t i;
    int rc;
    for (i = 0; i < net->n_params && d; i++)
        net->params[i] = (nrm_real)((double)v->kept[i] + t * (double)d[i]);
    rc = nrm_mlp_gradient(net, &value, v->x, v->labels, v->n, NRM_TRAIN);
    memcpy(net->params, v->kept, net->n_params * sizeof *v->kept);
    *loss = (double)value;
    return rc;
}

static void flatnessi_add(nrm_real *a, const nrm_real *b, double factor, size_t n)
{
    size_t i;
    for (i = 0; i < n; i++) a[i] = (nrm_real)((double)a[i] + factor * (double)b[i]);
}

static void flatnessi_scale(nrm_real *a, double factor, size_t n)
{
    size_t i;
    for (i = 0; i < n; i++) a[i] = (nrm_real)(factor * (double)a[i]);
}

/* out = H q, q of length 1: the difference of the gradients on both sides. */
static int flatnessi_hessian_times(flatness_view *v, const nrm_real *q, nrm_real *out)
{
    const size_t n = v->net->n_params;
    double loss;
    int rc = flatness_at(v, q, NUDGE, &loss);
    memcpy(out, v->net->grads, n * sizeof *out);
    if (rc >= 0) rc = flatness_at(v, q, -NUDGE, &loss);
    flatnessi_add(out, v->net->grads, -1, n);
    flatnessi_scale(out, 1 / (2 * NUDGE), n);
    return rc;
}

/* The largest eigenvalue of the tridiagonal matrix T with diagonal a[k] and b[k-1] beside it. With
   the shift it is positive definite. */
static double flatnessi_largest(const double *a, const double *b, size_t k)
{
    double T[FLATNESS_KRYLOV * FLATNESS_KRYLOV] = {0}, shift = 0, largest;
    size_t i;
    for (i = 0; i < k; i++) shift += fabs(a[i]) + 2 * fabs(b[i]);
    for (i = 0; i < k; i++) {
        T[i * k + i] = a[i] + shift;
        if (i + 1 < k) T[i * k + i + 1] = T[(i + 1) * k + i] = b[i];
    }
    (void)matrix_eigen(T, NULL, k);
    for (largest = T[0], i = 1; i < k; i++) largest = stats_larger(largest, T[i * k + i]);
    return largest - shift;
}

/* Of T's eigenvector for its largest eigenvalue, the last component over the length: from the last
   component to the first, the way in which they grow. */
static double flatnessi_last_component(const double *a, const double *b, size_t k, double lambda)
{
    double next = 0, here = 1, squares = 1;
    size_t i;
    for (i = k; i-- > 1;) {
        const double before = ((lambda - a[i]) * here - (i + 1 < k ? b[i] : 0) * next) / b[i - 1];
        next = here;
        here = before;
        squares += here * here;
    }
    return 1 / sqrt(squares);
}

/* Lanczos: T = QᵀHQ on the space of q, Hq, H²q, ..., q random, each new vector orthogonal to
   all before. */
int flatness_lanczos(flatness_view *v, uint64_t seed, size_t steps, flatness_eigenvalue *out)
{
    const size_t n = v->net->n_params;
    nrm_real *q = (nrm_real *)malloc((steps + 1) * n * sizeof *q);
    double a[FLATNESS_KRYLOV] = {0}, b[FLATNESS_KRYLOV] = {0};
    nrm_rng rng;
    size_t k, j, i;
    int rc = 0;
    if (!q || steps > FLATNESS_KRYLOV) {
        free(q);
        return -1;
    }
    nrm_rng_seed(&rng, seed, FLATNESS_STREAM + 20);
    for (i = 0; i < n; i++) q[i] = draw_normal(&rng);
    flatnessi_scale(q, 1 / sqrt(training_dot(q, q, n)), n);
    for (k = 0; k < steps && rc >= 0; k++) {
        nrm_real *here = q + k * n, *next = here + n;
        rc = flatnessi_hessian_times(v, here, next);
        a[k] = training_dot(here, next, n);
        for (j = 0; j < 2 * (k + 1); j++) { /* twice: once is not enough in float */
            const nrm_real *old = q + j % (k + 1) * n;
            flatnessi_add(next, old, -training_dot(old, next, n), n);
        }
        b[k] = sqrt(training_dot(next, next, n));
        if (!(b[k] > 1e-6 * fabs(a[0]))) { /* the space is closed: nothing new is left */
            k++;
            break;
        }
        flatnessi_scale(next, 1 / b[k], n);
    }
    free(q);
    out->value = flatnessi_largest(a, b, k);
    out->error = b[k - 1] * flatnessi_last_component(a, b, k, out->value);
    return rc;
}

static void flatnessi_direction(const nrm_mlp *net, int kind, uint64_t seed, uint64_t number,
                                nrm_real *d)
{
    nrm_rng rng;
    size_t l, i, j;
    nrm_rng_seed(&rng, seed, FLATNESS_STREAM + number);
    memset(d, 0, net->n_params * sizeof *d);
    for (l = 0; l < net->spec.layers; l++) {
        const nrm_mlp_state *s = &net->state[l];
        nrm_real *dw = d + (s->W - net->params);
        const size_t width = s->shape.width;
        for (i = 0; i < s->in * width; i++) {
            dw[i] = draw_normal(&rng);
            if (kind == FLATNESS_RELATIVE) dw[i] *= s->W[i];
        }
        for (j = 0; j < width && kind == FLATNESS_FILTER; j++) {
            double of_w = 0, of_d = 0;
            for (i = 0; i < s->in; i++) {
                of_w += (double)s->W[i * width + j] * (double)s->W[i * width + j];
                of_d += (double)dw[i * width + j] * (double)dw[i * width + j];
            }
            for (i = 0; i < s->in; i++)
                dw[i * width + j] = (nrm_real)((double)dw[i * width + j] * sqrt(of_w / of_d));
        }
    }
}

/* What the network that was looked at last says of each image. */
static void flatnessi_decisions(const flatness_view *v, int *decided)
{
    size_t i, c;
    for (i = 0; i < v->n; i++) {
        const nrm_real *logit = v->net->logits + i * DATASET_CLASSES;
        decided[i] = 0;
        for (c = 1; c < DATASET_CLASSES; c++)
            if (logit[c] > logit[decided[i]]) decided[i] = (int)c;
    }
}

int flatness_shake(flatness_view *v, int kind, uint64_t seed, double size, size_t directions,
                   flatness_harm *out)
{
    nrm_real *d = (nrm_real *)malloc(v->net->n_params * sizeof *d);
    int *before = (int *)malloc(2 * v->n * sizeof *before);
    double here = 0, there = 0, rises = 0, changed = 0;
    size_t k, i;
    int rc = d && before ? flatness_at(v, NULL, 0, &here) : -1;
    if (rc >= 0) flatnessi_decisions(v, before);
    for (k = 0; k < directions && rc >= 0; k++) {
        int *after = before + v->n;
        flatnessi_direction(v->net, kind, seed, k, d);
        rc = flatness_at(v, d, size, &there);
        flatnessi_decisions(v, after);
        rises += there - here;
        for (i = 0; i < v->n; i++) changed += before[i] != after[i];
    }
    free(before);
    free(d);
    out->rise = rises / (double)directions;
    out->changed = changed / (double)(directions * v->n);
    return rc;
}
