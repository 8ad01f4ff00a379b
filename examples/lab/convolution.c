/* convolution.c - see convolution.h. */
#include "convolution.h"

#include "draw.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static nrm_real *convolutioni_take(convolution_net *c, nrm_real **gradient, size_t n)
{
    nrm_real *at = c->theta + c->params;
    *gradient = c->grad + c->params;
    c->params += n;
    return at;
}

static void convolutioni_glorot(nrm_real *W, size_t n, size_t in, size_t out, uint64_t seed,
                                uint64_t stream)
{
    const double reach = sqrt(6 / (double)(in + out));
    nrm_rng rng;
    size_t i;
    nrm_rng_seed(&rng, seed, stream);
    for (i = 0; i < n; i++) W[i] = (nrm_real)(reach * (2 * (double)draw_uniform(&rng) - 1));
}

convolution_net *convolution_make(int norm, int after, size_t side, uint64_t seed)
{
    static const size_t channels[] = {1, CONVOLUTION_FIRST, CONVOLUTION_SECOND};
    convolution_net *c = (convolution_net *)calloc(1, sizeof *c);
    size_t l, i;
    for (l = 0; c && l < CONVOLUTION_STAGES; l++) {
        convolution_stage *s = &c->stage[l];
        s->in = channels[l];
        s->out = channels[l + 1];
        s->side = side >> l;
        s->cells = s->side * s->side;
        s->norm = norm;
        s->after = after;
        s->K = convolutioni_take(c, &s->dK, s->out * 9 * s->in);
        if (norm != NRM_NO_NORM) s->gamma = convolutioni_take(c, &s->dgamma, s->out);
        s->beta = convolutioni_take(c, &s->dbeta, s->out);
        s->running.mean = s->running_mean;
        s->running.var = s->running_var;
        s->running.new_weight = (nrm_real)0.1;
        convolutioni_glorot(s->K, s->out * 9 * s->in, 9 * s->in, 9 * s->out, seed, l);
        for (i = 0; s->gamma && i < s->out; i++) s->gamma[i] = 1;
        for (i = 0; i < s->out; i++) s->running.var[i] = 1;
    }
    if (!c) return NULL;
    c->features = CONVOLUTION_SECOND * (side / 4) * (side / 4);
    c->W = convolutioni_take(c, &c->dW, c->features * CONVOLUTION_CLASSES);
    c->b = convolutioni_take(c, &c->db, CONVOLUTION_CLASSES);
    convolutioni_glorot(c->W, c->features * CONVOLUTION_CLASSES, c->features, CONVOLUTION_CLASSES,
                        seed, CONVOLUTION_STAGES);
    return c;
}

/* Row 9·channel + 3·dy + dx of the patches is the channel moved by -1..1 both ways: which value of
   the image is at (i, j) of it, its place plus 1, or 0 for a zero from outside. */
static size_t convolutioni_place(size_t row, size_t i, size_t j, size_t side)
{
    const size_t down = i + row % 9 / 3, right = j + row % 3; /* 1: at the edge */
    if (down < 1 || down > side || right < 1 || right > side) return 0;
    return (row / 9 * side + down - 1) * side + right;
}

/* x [in][side·side] to patches [9·in][side·side]; or gradients of patches are added up where they
   came from. One of x and dx is null. */
static void convolutioni_patches(nrm_real *patches, const nrm_real *x, nrm_real *dx, size_t in,
                                 size_t side)
{
    size_t row, i, j;
    for (row = 0; row < 9 * in; row++)
        for (i = 0; i < side; i++)
            for (j = 0; j < side; j++, patches++) {
                const size_t at = convolutioni_place(row, i, j, side);
                if (x) *patches = at ? x[at - 1] : 0;
                if (dx && at) dx[at - 1] += *patches;
            }
}

static size_t convolutioni_groups(const convolution_stage *s)
{
    return s->norm == NRM_GROUP_NORM ? 4 : s->norm == NRM_LAYER_NORM ? 1 : s->out;
}

static int convolutioni_norm(convolution_stage *s, const nrm_real *x, int mode, size_t N, int track)
{
    if (s->norm == NRM_BATCH_NORM)
        return nrm_batchnorm_forward(s->y, s->mean, s->rstd, track ? &s->running : NULL, x,
                                     s->gamma, s->beta, mode, (nrm_real)NRM_EPS, N, s->out,
                                     s->cells);
    return nrm_groupnorm_forward(s->y, s->mean, s->rstd, x, s->gamma, s->beta, (nrm_real)NRM_EPS, N,
                                 s->out, s->cells, convolutioni_groups(s));
}

static int convolutioni_norm_backward(convolution_stage *s, const nrm_real *x, size_t N)
{
    if (s->norm == NRM_BATCH_NORM)
        return nrm_batchnorm_backward(s->d, s->dgamma, s->dbeta, s->d, x, s->mean, s->rstd,
                                      s->gamma, NRM_TRAIN, N, s->out, s->cells);
    return nrm_groupnorm_backward(s->d, s->dgamma, s->dbeta, s->d, x, s->mean, s->rstd, s->gamma, N,
                                  s->out, s->cells, convolutioni_groups(s));
}

static void convolutioni_pool(convolution_stage *s, const nrm_real *x, size_t N)
{
    const size_t half = s->side / 2;
    size_t p, i, j, k, to = 0;
    for (p = 0; p < N * s->out; p++)
        for (i = 0; i < half; i++)
            for (j = 0; j < half; j++, to++) {
                const size_t corner = p * s->cells + 2 * i * s->side + 2 * j;
                s->from[to] = corner;
                for (k = 1; k < 4; k++) {
                    const size_t at = corner + (k / 2) * s->side + k % 2;
                    if (x[at] > x[s->from[to]]) s->from[to] = at;
                }
                s->pooled[to] = x[s->from[to]];
            }
}

static int convolutioni_forward(convolution_stage *s, const nrm_real *x, int mode, size_t N,
                                int track)
{
    const size_t rows = 9 * s->in, S = s->cells, all = N * s->out * S;
    const int normed = s->norm != NRM_NO_NORM, before = normed && !s->after;
    size_t n, i;
    int failed = 0;
    for (n = 0; n < N; n++) {
        nrm_real *patches = s->patches + n * rows * S, *z = s->z + n * s->out * S;
        convolutioni_patches(patches, x + n * s->in * S, NULL, s->in, s->side);
        failed |= nrm_linear_forward(z, s->K, patches, NULL, s->out, rows, S) < 0;
        for (i = 0; !normed && i < s->out * S; i++) z[i] += s->beta[i / S];
    }
    if (before) failed |= convolutioni_norm(s, s->z, mode, N, track) < 0;
    failed |= nrm_activation_forward(s->h, before ? s->y : s->z, NRM_RELU, all) < 0;
    if (normed && s->after) failed |= convolutioni_norm(s, s->h, mode, N, track) < 0;
    convolutioni_pool(s, normed && s->after ? s->y : s->h, N);
    return failed;
}

/* d_pooled, the gradient of the maxima, to the gradients of the parameters, and to dx unless it is
   null. */
static int convolutioni_backward(convolution_stage *s, nrm_real *dx, const nrm_real *d_pooled,
                                 size_t N)
{
    const size_t rows = 9 * s->in, S = s->cells, all = N * s->out * S;
    const int normed = s->norm != NRM_NO_NORM;
    size_t i, n;
    int failed = 0;
    memset(s->d, 0, all * sizeof *s->d);
    for (i = 0; i < all / 4; i++) s->d[s->from[i]] += d_pooled[i];
    if (normed && s->after) failed |= convolutioni_norm_backward(s, s->h, N) < 0;
    failed |= nrm_activation_backward(s->d, s->d, s->h, NRM_RELU, all) < 0;
    if (normed && !s->after) failed |= convolutioni_norm_backward(s, s->z, N) < 0;
    if (dx) memset(dx, 0, N * s->in * S * sizeof *dx);
    for (n = 0; n < N; n++) {
        const nrm_real *d = s->d + n * s->out * S;
        memset(s->dpatches, 0, rows * S * sizeof *s->dpatches);
        failed |= nrm_linear_backward(s->part, dx ? s->dpatches : NULL, NULL, d, s->K,
                                      s->patches + n * rows * S, s->out, rows, S) < 0;
        for (i = 0; i < s->out * rows; i++) s->dK[i] += s->part[i];
        for (i = 0; !normed && i < s->out * S; i++) s->dbeta[i / S] += d[i];
        if (dx) convolutioni_patches(s->dpatches, NULL, dx + n * s->in * S, s->in, s->side);
    }
    return failed;
}

int convolution_forward(convolution_net *c, const nrm_real *x, size_t N, int mode, int track)
{
    convolution_stage *s = c->stage;
    int failed = convolutioni_forward(&s[0], x, mode, N, track);
    failed |= convolutioni_forward(&s[1], s[0].pooled, mode, N, track);
    failed |= nrm_linear_forward(c->logits, s[1].pooled, c->W, c->b, N, c->features,
                                 CONVOLUTION_CLASSES) < 0;
    return failed ? -1 : 0;
}

int convolution_gradient(convolution_net *c, nrm_acc *loss, const nrm_real *x, const int *labels,
                         size_t N, int track)
{
    enum { C = CONVOLUTION_CLASSES };
    convolution_stage *s = c->stage;
    int failed = convolution_forward(c, x, N, NRM_TRAIN, track);
    memset(c->grad, 0, c->params * sizeof *c->grad);
    failed |= nrm_cross_entropy_forward(loss, c->prob, c->logits, labels, N, C) < 0;
    failed |= nrm_cross_entropy_backward(c->prob, c->prob, labels, N, C) < 0;
    failed |=
        nrm_linear_backward(c->d, c->dW, c->db, c->prob, s[1].pooled, c->W, N, c->features, C) < 0;
    /* the maxima of the first stage are not needed any more, their gradients take the place */
    failed |= convolutioni_backward(&s[1], s[0].pooled, c->d, N);
    failed |= convolutioni_backward(&s[0], NULL, s[0].pooled, N);
    return failed ? -1 : 0;
}
