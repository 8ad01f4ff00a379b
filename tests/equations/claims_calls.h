/* claims_calls.h - calls of the header from a *.claims file: y, mean, rstd = batchnorm(x, ...).

   An argument [] is NULL. Gradients of parameters start at 1 in the norms, at 0 elsewhere. A result
   that the header refuses to give is infinite. */
#ifndef CLAIMS_CALLS_H
#define CLAIMS_CALLS_H

#include "claims.h"
#include "layers/call.h"
#include "layers/recurrent.h"
#include "layers/variants.h"
#include "pages/museum.h"
#include "lab/draw.h"

enum { CALL_MOST = 24000 };

static nrm_real call_reals[12][CALL_MOST];
static nrm_acc call_accs[4][CALL_MOST];

/* Argument i, as the header wants it. */
static nrm_real *call_in(const value *in, int i)
{
    size_t k;
    if (count_of(in[i]) > CALL_MOST) claims_fail("too many values");
    for (k = 0; k < count_of(in[i]); k++) call_reals[i][k] = (nrm_real)in[i].a[k].v;
    return count_of(in[i]) == 0 ? NULL : call_reals[i];
}

/* The gradient of parameters that a backward pass adds to. */
static nrm_real *call_ones(nrm_real *a)
{
    size_t k;
    for (k = 0; k < CALL_MOST; k++) a[k] = 1;
    return a;
}

static nrm_acc *call_acc_in(const value *in, int i, int to)
{
    size_t k;
    for (k = 0; k < count_of(in[i]); k++) call_accs[to][k] = (nrm_acc)in[i].a[k].v;
    return call_accs[to];
}

/* Results number `to`, zero to begin with. */
static nrm_real *call_out(int to)
{
    memset(call_reals[to], 0, sizeof call_reals[to]);
    return call_reals[to];
}

static value call_made(const nrm_real *a, size_t r, size_t c)
{
    value out = claims_make(r, c);
    size_t k;
    for (k = 0; k < r * c; k++) out.a[k].v = (wide)a[k];
    return out;
}

static value call_made_accs(const nrm_acc *a, size_t n)
{
    value out = claims_make(1, n);
    size_t k;
    for (k = 0; k < n; k++) out.a[k].v = (wide)a[k];
    return out;
}

#define NUMBER(i) ((double)in[i].a[0].v)
#define LIKE(i) in[i].r, in[i].c

/* Every worker on its examples: y; dx, and dx from the own sums alone; the sums of dy and of dy·x̂
   of each worker, a row each; dgamma and dbeta; count, mean and m2 of all, a row each; rstd. */
static int call_workers(const value *in, int count, value *out)
{
    enum { MOST = 4, CALL_CHANNELS = 80 };
    static nrm_stats stats[CALL_CHANNELS], all[CALL_CHANNELS];
    static nrm_sums sums[MOST][CALL_CHANNELS], total[CALL_CHANNELS];
    const size_t workers = count_of(in[5]), C = SIZE(6), S = SIZE(7);
    const nrm_real *x = call_in(in, 0), *dy = call_in(in, 1), *gamma = call_in(in, 2);
    const nrm_real *beta = call_in(in, 3), eps = (nrm_real)NUMBER(4);
    nrm_real *dx = call_out(11), *own = call_out(10), *y = call_out(9);
    nrm_real *dgamma = call_ones(call_out(8)), *dbeta = call_ones(call_out(7));
    nrm_acc *mean = call_accs[0], *rstd = call_accs[1];
    static unsigned char kept[CALL_MOST];
    const unsigned char *mask = count > 8 ? kept : NULL, *here;
    size_t w, at, n, c;
    int rc = NRM_OK;
    for (n = 0; mask != NULL && n < count_of(in[8]); n++) kept[n] = in[8].a[n].v != 0;
    memset(all, 0, sizeof all);
    memset(total, 0, sizeof total);
    for (w = at = 0; w < workers; at += n * C * S, w++) {
        n = (size_t)in[5].a[w].v;
        here = mask == NULL ? NULL : mask + at / C;
        memset(stats, 0, sizeof stats);
        rc |= nrm_stats_update(stats, x + at, here, n, C, S);
        rc |= nrm_stats_merge(all, stats, C);
    }
    for (w = at = 0; w < workers; at += n * C * S, w++) {
        n = (size_t)in[5].a[w].v;
        here = mask == NULL ? NULL : mask + at / C;
        rc |= nrm_sync_batchnorm_forward(y + at, mean, rstd, NULL, x + at, here, all, gamma, beta,
                                         eps, n, C, S);
        rc |= nrm_sync_batchnorm_sums(sums[w], dgamma, dbeta, dy + at, x + at, here, mean, rstd, n,
                                      C, S);
        for (c = 0; c < C; c++) {
            total[c].dy += sums[w][c].dy;
            total[c].dy_xhat += sums[w][c].dy_xhat;
        }
    }
    for (c = 3; c < 5; c++) out[c] = claims_make(workers, C);
    for (w = at = 0; w < workers; at += n * C * S, w++) {
        n = (size_t)in[5].a[w].v;
        here = mask == NULL ? NULL : mask + at / C;
        rc |= nrm_sync_batchnorm_backward(dx + at, dy + at, x + at, here, mean, rstd, gamma, all,
                                          total, n, C, S);
        memcpy(stats, all, sizeof stats);
        for (c = 0; c < C; c++) {
            stats[c].count = (nrm_acc)(n * S);
            out[3].a[w * C + c].v = (wide)sums[w][c].dy;
            out[4].a[w * C + c].v = (wide)sums[w][c].dy_xhat;
        }
        if (mask == NULL && n * S > 1)
            rc |= nrm_sync_batchnorm_backward(own + at, dy + at, x + at, here, mean, rstd, gamma,
                                              stats, sums[w], n, C, S);
    }
    out[0] = call_made(y, LIKE(0));
    out[1] = call_made(dx, LIKE(0));
    out[2] = call_made(own, LIKE(0));
    out[5] = call_made(dgamma, 1, C);
    out[6] = call_made(dbeta, 1, C);
    out[7] = claims_make(3, C);
    for (c = 0; c < C; c++) {
        out[7].a[c].v = (wide)all[c].count;
        out[7].a[C + c].v = (wide)all[c].mean;
        out[7].a[2 * C + c].v = (wide)all[c].m2;
    }
    out[8] = call_made_accs(rstd, C);
    if (rc != NRM_OK) out[0].a[0].v = out[1].a[0].v = (wide)HUGE_VAL;
    return 9;
}

static void call_rnn_scaled(nrm_real c, value *out)
{
    static rnn_case one, other;
    size_t i;
    int rc;
    rnn_prepare(&one, NRM_LAYER_NORM, NRM_TRAIN, NRM_TANH, 5, 2, 2, 4, 1, 0.0625, &claims_rng);
    other = one;
    rnn_point(&other);
    for (i = 0; i < 16; i++) other.Wh[i] *= c;
    for (i = 0; i < 8; i++) other.Wx[i] *= c;
    other.rnn.eps *= c * c;
    rc = rnn_forward(&one);
    rc |= rnn_backward(&one);
    rc |= rnn_forward(&other);
    rc |= rnn_backward(&other);
    out[0] = call_made(one.dWh, 4, 4);
    out[1] = call_made(other.dWh, 4, 4);
    if (rc != NRM_OK) out[0].a[0].v = (wide)HUGE_VAL;
}

static void call_drawn_curve(value *out)
{
    FILE *f = fopen("docs/figures/02_gradcheck_curve.csv", "r");
    double column[5];
    char text[400];
    int m;
    out[0] = claims_make(1, 4);
    out[1] = claims_make(1, 4);
    for (m = 0; m < 4; m++) out[1].a[m].v = 1;
    while (f != NULL && fgets(text, sizeof text, f) != NULL)
        if (sscanf(text, "%lf,%lf,%lf,%lf,%lf", column, column + 1, column + 2, column + 3,
                   column + 4) == 5)
            for (m = 0; m < 4; m++)
                if ((wide)column[m + 1] < out[1].a[m].v) {
                    out[1].a[m].v = (wide)column[m + 1];
                    out[0].a[m].v = (wide)column[0];
                }
    if (f != NULL) fclose(f);
}

typedef struct corner { /* a loss whose slope is a up to d, and b beyond */
    double a, b, d;
    nrm_real theta;
} corner;

static nrm_acc corner_loss(void *context)
{
    const corner *c = (const corner *)context;
    const double s = (double)c->theta;
    return (nrm_acc)(s < c->d ? c->a * s : c->a * c->d + c->b * (s - c->d));
}

/* ---- networks -------------------------------------------------------------------------------- */

enum { CALL_BLOCK = 1 << 15 };

static nrm_mlp *call_net(nrm_mlp_spec *spec, nrm_mlp_layer *layer, size_t inputs, size_t layers)
{
    static unsigned char block[CALL_BLOCK];
    nrm_mlp *net = NULL;
    spec->inputs = inputs;
    spec->layers = layers;
    spec->layer = layer;
    if (nrm_mlp_init(&net, block, CALL_BLOCK, spec) != NRM_OK) claims_fail("no network");
    return net;
}

static const int *call_labels(value v)
{
    static int labels[CALL_MOST];
    size_t n;
    for (n = 0; n < count_of(v); n++) labels[n] = (int)(v.a[n].v + 0.5L);
    return labels;
}

/* What a network shows on its way back: dy of the output; dh, dy and dz of the hidden layer. */
static void call_look(void *context, const nrm_mlp_event *event)
{
    value *out = (value *)context;
    const int which = event->layer == 1                   ? 1
                      : event->place == NRM_AT_ACTIVATION ? 4
                      : event->place == NRM_AT_NORM       ? 5
                                                          : 8;
    if (event->gradient) out[which] = call_made(event->data, event->rows, event->cols);
}

/* x, W, gamma, beta, V, b, labels, eps: the loss, dy of the output, dV, db, dh, dy, dbeta, dgamma,
   dz and dW of one hidden layer with batch norm and ReLU. */
static int call_network(const value *in, value *out)
{
    nrm_mlp_layer layer[2];
    nrm_mlp_spec spec = nrm_mlp_defaults();
    nrm_acc loss = 0;
    nrm_mlp *net;
    memset(layer, 0, sizeof layer);
    layer[0].width = in[1].c;
    layer[0].norm = NRM_BATCH_NORM;
    layer[0].activation = NRM_RELU;
    layer[1].width = in[4].c;
    layer[1].bias = 1;
    spec.max_batch = in[0].r;
    spec.eps = (nrm_real)NUMBER(7);
    net = call_net(&spec, layer, in[0].c, 2);
    memcpy(net->state[0].W, call_in(in, 1), count_of(in[1]) * sizeof(nrm_real));
    memcpy(net->state[0].gamma, call_in(in, 2), count_of(in[2]) * sizeof(nrm_real));
    memcpy(net->state[0].beta, call_in(in, 3), count_of(in[3]) * sizeof(nrm_real));
    memcpy(net->state[1].W, call_in(in, 4), count_of(in[4]) * sizeof(nrm_real));
    memcpy(net->state[1].b, call_in(in, 5), count_of(in[5]) * sizeof(nrm_real));
    net->probe = call_look;
    net->probe_context = out;
    if (nrm_mlp_gradient(net, &loss, call_in(in, 0), call_labels(in[6]), in[0].r, NRM_TRAIN) !=
        NRM_OK)
        claims_fail("the network refuses");
    out[0] = claims_number_value((wide)loss);
    out[2] = call_made(net->state[1].dW, LIKE(4));
    out[3] = call_made(net->state[1].db, LIKE(5));
    out[6] = call_made(net->state[0].dbeta, LIKE(3));
    out[7] = call_made(net->state[0].dgamma, LIKE(2));
    out[9] = call_made(net->state[0].dW, LIKE(1));
    return 10;
}

/* The first loss of 784-100-100-100-10, with He's weights or small ones, and how many weights. */
static int call_first_loss(int small, value *out)
{
    enum { N = 20, IN = 784 };
    nrm_mlp_layer layer[4];
    nrm_mlp_spec spec = nrm_mlp_defaults();
    nrm_real *x = (nrm_real *)malloc(N * IN * sizeof *x);
    nrm_rng rng = stream(208);
    nrm_mlp *net = NULL;
    nrm_acc loss = -1;
    int labels[N];
    void *block;
    size_t l, n;
    memset(layer, 0, sizeof layer);
    for (l = 0; l < 4; l++) {
        layer[l].width = l < 3 ? 100 : 10;
        layer[l].norm = l < 3 ? NRM_BATCH_NORM : NRM_NO_NORM;
        layer[l].activation = l < 3 ? NRM_RELU : NRM_IDENTITY;
        layer[l].bias = 1;
    }
    spec.inputs = IN;
    spec.layers = 4;
    spec.layer = layer;
    spec.max_batch = N;
    spec.init = small ? NRM_INIT_GAUSSIAN : NRM_INIT_HE;
    block = malloc(nrm_mlp_bytes(&spec));
    for (n = 0; x != NULL && n < N * IN; n++) x[n] = draw_uniform(&rng);
    for (n = 0; n < N; n++) labels[n] = (int)(n % 10);
    if (x == NULL || block == NULL ||
        nrm_mlp_init(&net, block, nrm_mlp_bytes(&spec), &spec) != NRM_OK ||
        nrm_mlp_forward(net, x, N, NRM_TRAIN) != NRM_OK)
        claims_fail("no network");
    (void)nrm_cross_entropy_forward(&loss, NULL, net->logits, labels, N, 10);
    out[0] = claims_number_value((wide)loss);
    out[1] = claims_number_value((wide)net->n_params);
    free(block);
    free(x);
    return 2;
}

/* g, a row of gradients for each step; 1 for Adam; start, rate, keep or beta1, beta2, eps (without
   them one weight starts at 0): the two moments and the weights after each step. Or constants: of
   the heavy ball, the rate, beta1, beta2, eps. */
static int call_optimizer(int run, const value *in, int count, value *out)
{
    const size_t steps = run && count > 2 ? in[0].r : run ? in[0].c : 1;
    const size_t weights = run && count > 2 ? in[0].c : 1;
    nrm_mlp_layer layer;
    nrm_mlp_spec spec = nrm_mlp_defaults();
    nrm_mlp *net;
    size_t t, i;
    memset(&layer, 0, sizeof layer);
    layer.width = 1;
    spec.max_batch = 1;
    spec.optimizer = run && NUMBER(1) != 0 ? NRM_ADAM : NRM_SGD;
    spec.lr = (nrm_real)(count > 2 ? NUMBER(3) : 0.0625);
    spec.heavy_ball = (nrm_real)(count > 2 ? NUMBER(4) : 0.9);
    if (count > 2) spec.beta1 = (nrm_real)NUMBER(4), spec.beta2 = (nrm_real)NUMBER(5);
    if (count > 2) spec.adam_eps = (nrm_real)NUMBER(6);
    net = call_net(&spec, &layer, weights, 1);
    if (!run) {
        const nrm_real constants[5] = {net->spec.heavy_ball, net->spec.lr, net->spec.beta1,
                                       net->spec.beta2, net->spec.adam_eps};
        out[0] = call_made(constants, 1, 5);
        return 1;
    }
    for (i = 0; i < 3; i++) out[i] = claims_make(in[0].r, in[0].c);
    for (i = 0; i < weights; i++) net->params[i] = (nrm_real)(count > 2 ? in[2].a[i].v : 0);
    for (t = 0; t < steps; t++) {
        for (i = 0; i < weights; i++) net->grads[i] = (nrm_real)in[0].a[t * weights + i].v;
        if (nrm_mlp_step(net) != NRM_OK) net->params[0] = (nrm_real)HUGE_VAL;
        for (i = 0; i < weights; i++) {
            const size_t at = t * weights + i;
            if (net->moment1 != NULL) out[0].a[at].v = (wide)net->moment1[i];
            if (spec.optimizer == NRM_ADAM) out[1].a[at].v = (wide)net->moment2[i];
            out[2].a[at].v = (wide)net->params[i];
        }
    }
    return 3;
}

/* x, labels: loss and gradients of 3-5-4, tanh and layer norm, with always the same weights. */
static int call_shared_network(const value *in, value *out)
{
    nrm_mlp_layer layer[2];
    nrm_mlp_spec spec = nrm_mlp_defaults();
    nrm_acc loss = (nrm_acc)HUGE_VAL;
    nrm_mlp *net;
    memset(layer, 0, sizeof layer);
    layer[0].width = 5;
    layer[0].activation = NRM_TANH;
    layer[0].norm = NRM_LAYER_NORM;
    layer[1].width = 4;
    layer[1].bias = 1;
    spec.max_batch = 16;
    net = call_net(&spec, layer, 3, 2);
    (void)nrm_mlp_gradient(net, &loss, call_in(in, 0), call_labels(in[1]), in[0].r, NRM_TRAIN);
    out[0] = claims_number_value((wide)loss);
    out[1] = call_made(net->grads, 1, net->n_params);
    return 2;
}

/* The offsets and factors of noisy batch norm, drawn in the order of section 3.1. */
static void call_draws(nrm_acc *offset, nrm_acc *factor, const nrm_noise *noise, nrm_rng *rng,
                       size_t N, size_t C, size_t S)
{
    nrm_real z[64];
    size_t c, i;
    for (c = 0; c < C; c++) {
        const nrm_acc mu = (nrm_acc)noise->mean_range * symmetric(rng);
        const nrm_acc sigma = 1 + ((nrm_acc)noise->scale_max - 1) * (symmetric(rng) + 1) / 2;
        for (i = 0; i < N * S; i++) {
            const size_t at = (i / S * C + c) * S + i % S;
            if (i % 64 == 0) nrm_rng_normal(rng, z, N * S - i < 64 ? N * S - i : 64);
            offset[at] = mu + (nrm_acc)noise->mean_jitter * symmetric(rng);
            factor[at] = sigma + (nrm_acc)noise->scale_jitter * (nrm_acc)z[i % 64];
        }
    }
}

/* N, C, S, 1 with jitter: what noisy batch norm, of random ranges, makes of zeros, and its factors;
   x; what it makes of x with the same draws, and its factors; batch norm of x; the draws. */
static int call_noise(const value *in, value *out)
{
    const size_t N = SIZE(0), C = SIZE(1), S = SIZE(2), n = N * C * S;
    const double ranges[4][2] = {{0.1, 1}, {0.5, 3}, {0.01, 0.5}, {0.01, 0.5}};
    nrm_real *zeros = call_out(0), *x = call_out(1), *y = call_out(2), *f = call_out(3), r[4];
    nrm_acc *mean = call_accs[0], *rstd = call_accs[1];
    nrm_noise noise;
    nrm_rng again, draws;
    int i, rc = NRM_OK;
    for (i = 0; i < 4; i++)
        r[i] = (nrm_real)uniform_between(&claims_rng, ranges[i][0], ranges[i][1]);
    noise.mean_range = r[0], noise.scale_max = r[1];
    noise.mean_jitter = NUMBER(3) != 0 ? r[2] : 0, noise.scale_jitter = NUMBER(3) != 0 ? r[3] : 0;
    draws = claims_rng;
    (void)nrm_rng_u32(&claims_rng);
    fill_real(x, n, 0.5, 2, &claims_rng);
    for (i = 0; i < 2; i++) {
        again = draws;
        rc |= nrm_noisy_batchnorm_forward(y, f, mean, rstd, NULL, i == 0 ? zeros : x, NULL, NULL,
                                          &noise, &again, NRM_TRAIN, NRM_EPS, N, C, S);
        out[3 * i] = call_made(y, 1, n);
        out[3 * i + 1] = call_made(f, 1, n);
    }
    rc |= nrm_batchnorm_forward(y, mean, rstd, NULL, x, NULL, NULL, NRM_TRAIN, NRM_EPS, N, C, S);
    call_draws(call_accs[2], call_accs[3], &noise, &draws, N, C, S);
    if (rc != NRM_OK || again.state != draws.state) y[0] = (nrm_real)HUGE_VAL; /* no draw more */
    out[2] = call_made(x, 1, n);
    out[5] = call_made(y, 1, n);
    out[6] = call_made_accs(call_accs[2], n);
    out[7] = call_made_accs(call_accs[3], n);
    return 8;
}

/* norm, norm_after, activation, mode, N, scale of the data: a network 4-6-3 with random parameters
   whose running statistics have moved. Parameters, x, labels, gradients (of one pass in train or
   frozen mode), running mean and variance of each layer, the factors and offsets that the noise of
   that pass has, the outputs of the layers. */
static int call_random_net(const value *in, value *out)
{
    enum { MOST = 32, LAYERS = 2, PARTS = 8 };
    static const size_t width[LAYERS] = {6, 3};
    const size_t N = SIZE(4), from[LAYERS] = {0, 6 * N};
    const int norm = (int)SIZE(0), mode = (int)SIZE(3);
    const int noisy = norm == NRM_NOISY_BATCH_NORM && mode == NRM_TRAIN;
    const nrm_real scale = (nrm_real)NUMBER(5);
    nrm_mlp_layer layer[LAYERS];
    nrm_mlp_spec spec = nrm_mlp_defaults();
    nrm_real *x = call_out(0);
    nrm_mlp *net;
    nrm_rng noise;
    int labels[MOST];
    size_t l, i;
    memset(layer, 0, sizeof layer);
    for (l = 0; l < LAYERS; l++) {
        layer[l].width = width[l];
        layer[l].norm = norm;
        layer[l].norm_after = l == 0 && NUMBER(1) != 0;
        layer[l].activation = l == 0 ? (int)SIZE(2) : NRM_IDENTITY;
        layer[l].bias = !layer[l].norm_after;
    }
    spec.max_batch = MOST;
    spec.eps = (nrm_real)0.01; /* else units that vary little magnify the rounding before them */
    spec.seed = nrm_rng_u32(&claims_rng);
    net = call_net(&spec, layer, 4, LAYERS);
    fill_real(net->params, net->n_params, 0.3, 0.7, &claims_rng);
    for (i = 0; i < 24; i++) net->params[i] /= scale; /* sums of moderate size */
    fill_real(x, N * 4, 0.5 * (double)scale, (double)scale, &claims_rng);
    for (i = 0; i < N; i++) labels[i] = (int)nrm_rng_below(&claims_rng, 3);
    for (i = 0; i < 3; i++) (void)nrm_mlp_forward(net, x, N, NRM_TRAIN);
    noise = net->rng;
    if ((mode == NRM_INFER ? nrm_mlp_forward(net, x, N, mode)
                           : nrm_mlp_gradient(net, NULL, x, labels, N, mode)) != NRM_OK)
        net->grads[0] = net->state[0].out[0] = (nrm_real)HUGE_VAL;
    out[0] = call_made(net->params, 1, net->n_params);
    out[1] = call_made(x, N, 4);
    out[2] = claims_make(1, N);
    out[3] = call_made(net->grads, 1, net->n_params);
    out[4] = claims_make(1, 2 * 9);
    for (i = 5; i < PARTS; i++) out[i] = claims_make(1, 9 * N);
    for (i = 0; i < N; i++) out[2].a[i].v = labels[i];
    for (l = 0; l < LAYERS; l++) {
        const nrm_mlp_state *s = &net->state[l];
        call_draws(call_accs[0], call_accs[1], &spec.noise, &noise, N, width[l], 1);
        for (i = 0; i < N * width[l]; i++) {
            out[5].a[from[l] + i].v = noisy ? (wide)call_accs[1][i] : 1;
            out[6].a[from[l] + i].v = noisy ? (wide)call_accs[0][i] : 0;
            out[7].a[from[l] + i].v = (wide)s->out[i];
        }
        for (i = 0; i < 2 * width[l] && s->running.mean != NULL; i++)
            out[4].a[2 * from[l] / N + i].v =
                (wide)(i < width[l] ? s->running.mean : s->running.var - width[l])[i];
    }
    return PARTS;
}

/* norm, mode, activation, T, N, in, H, 1 if the loss looks at the last state only: h, a, x, e, dh,
   dx, da, Wx, Wh, dWx, dWh, what these two start with, gamma, beta, running means and variances. */
static int call_rnn(const value *in, value *out)
{
    const size_t T = SIZE(3), N = SIZE(4), inputs = SIZE(5), H = SIZE(6);
    static rnn_case k;
    int i = 0, rc;
    rnn_prepare(&k, (int)SIZE(0), (int)SIZE(1), (int)SIZE(2), T, N, inputs, H, 1, 0.01,
                &claims_rng);
    fill_real(k.dWx, RNN_SQUARE, 0, 1, &claims_rng);
    fill_real(k.dWh, RNN_SQUARE, 0, 1, &claims_rng);
    if (NUMBER(7) != 0) memset(k.e, 0, T * N * H * sizeof *k.e);
    out[11] = call_made(k.dWx, inputs, H);
    out[12] = call_made(k.dWh, H, H);
    rc = rnn_forward(&k);
    rc |= rnn_backward(&k);
    if (rc != NRM_OK) k.h[k.states - 1] = k.a[0] = k.da[0] = k.dh[0] = (nrm_real)HUGE_VAL;
    out[i++] = call_made(k.h, (T + 1) * N, H);
    out[i++] = call_made(k.a, T * N, H);
    out[i++] = call_made(k.x, T * N, inputs);
    out[i++] = call_made(k.e, (T + 1) * N, H);
    out[i++] = call_made(k.dh, (T + 1) * N, H);
    out[i++] = call_made(k.dx, T * N, inputs);
    out[i++] = call_made(k.da, T * N, H);
    out[i++] = call_made(k.Wx, inputs, H);
    out[i++] = call_made(k.Wh, H, H);
    out[i++] = call_made(k.dWx, inputs, H);
    out[i++] = call_made(k.dWh, H, H);
    i += 2;
    out[i++] = call_made(k.gamma, 1, H);
    out[i++] = call_made(k.beta, 1, H);
    out[i++] = call_made(k.run_mean, T, H);
    out[i++] = call_made(k.run_var, T, H);
    return i;
}

/* a @ b + start in nrm_real, term by term in ascending order. */
static value call_in_order(const value *in)
{
    const nrm_real *a = call_in(in, 0), *b = call_in(in, 1), *start = call_in(in, 2);
    const size_t inner = in[0].c, cols = in[1].c;
    value out = claims_make(in[0].r, cols);
    size_t i, k;
    for (i = 0; i < count_of(out); i++) {
        nrm_real sum = start[i];
        for (k = 0; k < inner; k++) {
            const nrm_real product = a[i / cols * inner + k] * b[k * cols + i % cols];
            sum = sum + product;
        }
        out.a[i].v = (wide)sum;
    }
    return out;
}

/* e^x, tanh x or sigmoid x of x <= 0, or its logarithm, as the header has it in an nrm_acc; each x
   stands among others. */
static value call_function(int which, const value x)
{
    const int bytes = 16; /* of the vectors, where they are chosen at run time */
    value out = claims_make(1, x.c);
    size_t k;
    (void)bytes;
    for (k = 0; k < x.c; k++) {
        nrm_acc v[NRM_SOME] = {0, -1, 2}, w[NRM_SOME] = {1, 2, 3};
        v[7] = w[5] = (nrm_acc)x.a[k].v;
        if (which >= 0) nrmi_curve_of(NRM_PASS_ON v, which, NRM_SOME);
        if (which < 0) nrmi_log(w, 6);
        out.a[k].v = (wide)(which < 0 ? w[5] : v[7]);
    }
    return out;
}

/* ---- layers ---------------------------------------------------------------------------------- */

/* Arguments and results in order: arrays by the letters of call_array; N, C and S; e eps, p of Lp,
   a groups, R r_max, D d_max, W weight, K cumulative, Z biased, T batches, A activation. Without
   N and C they are the rows and columns of the first argument. */
static const struct call_row {
    const char *name;
    int function, mode;
    const char *arguments, *results;
} call_rows[] = {
    {"batchnorm", CALL_BATCHNORM, NRM_TRAIN, "xgbeNCS", "ymr"},
    {"batchnorm_infer", CALL_BATCHNORM, NRM_INFER, "xuvgbeNCS", "y"},
    {"batchnorm_frozen", CALL_BATCHNORM, NRM_FROZEN, "xuvgbeNCS", "ymr"},
    {"batchnorm_back", CALL_BATCHNORM_BACK, NRM_TRAIN, "xYmrgNCS", "XGB"},
    {"frozen_back", CALL_BATCHNORM_BACK, NRM_FROZEN, "xYmrgNCS", "XGB"},
    {"tracked", CALL_BATCHNORM, NRM_TRAIN, "uvWKZTxNCS", "uv"},
    {"layernorm", CALL_LAYERNORM, 0, "xgbe", "ymr"},
    {"layernorm_back", CALL_LAYERNORM_BACK, 0, "xYmrg", "XGB"},
    {"groupnorm", CALL_GROUPNORM, 0, "xgbeNCSa", "ymr"},
    {"groupnorm_back", CALL_GROUPNORM_BACK, 0, "xYmrgNCSa", "XGB"},
    {"rmsnorm", CALL_RMSNORM, 0, "xge", "yr"},
    {"rmsnorm_back", CALL_RMSNORM_BACK, 0, "xYrg", "XG"},
    {"renorm", CALL_RENORM, NRM_TRAIN, "xuvgbRDeNCS", "yqomr"},
    {"renorm_back", CALL_RENORM_BACK, NRM_TRAIN, "xYqomrgNCS", "XGB"},
    {"lp", CALL_LP, NRM_TRAIN, "xgbpeNCS", "ymr"},
    {"lp_frozen", CALL_LP, NRM_FROZEN, "xgbpeNCSuv", "ymr"},
    {"lp_back", CALL_LP_BACK, NRM_TRAIN, "xYmrgpeNCS", "XGB"},
    {"lp_frozen_back", CALL_LP_BACK, NRM_FROZEN, "xYmrgpeNCS", "XGB"},
    {"lp_tracked", CALL_LP, NRM_TRAIN, "uvWKZTxpNCS", "uvT"},
    {"noisy", CALL_NOISY, NRM_TRAIN, "xgbeNCS", "yfmr"},
    {"noisy_back", CALL_NOISY_BACK, NRM_TRAIN, "xYfmrgNCS", "X"},
    {"weightnorm", CALL_WEIGHTNORM, 0, "xg", "ym"},
    {"activation", CALL_ACTIVATION, 0, "xA", "y"},
    {"activation_back", CALL_ACTIVATION_BACK, 0, "YyA", "X"},
    {"cross_entropy_back", CALL_CROSS_ENTROPY_BACK, 0, "yl", "X"},
};

static void call_argument(layer_call *c, nrm_running *running, char letter, const value *in, int i)
{
    static const char accs[] = "mrqo";
    switch (letter) {
    case 'N': c->N = SIZE(i); break;
    case 'C': c->C = SIZE(i); break;
    case 'S': c->S = SIZE(i); break;
    case 'a': c->G = SIZE(i); break;
    case 'p': c->p = (int)SIZE(i); break;
    case 'A': c->mode = (int)SIZE(i); break;
    case 'e': c->eps = (nrm_real)NUMBER(i); break;
    case 'R': c->r_max = (nrm_real)NUMBER(i); break;
    case 'D': c->d_max = (nrm_real)NUMBER(i); break;
    case 'W': running->new_weight = (nrm_real)NUMBER(i); break;
    case 'K': running->cumulative = (int)SIZE(i); break;
    case 'Z': running->biased = (int)SIZE(i); break;
    case 'T': running->batches = SIZE(i); break;
    case 'l': c->labels = call_labels(in[i]); break;
    default:
        if (letter == 'u') c->running = running;
        call_array(c, letter, strchr(accs, letter) == NULL
                                  ? (void *)call_in(in, i)
                                  : call_acc_in(in, i, (int)(strchr(accs, letter) - accs)));
    }
}

static value call_result(const layer_call *c, char letter, size_t stats, const value *in)
{
    switch (letter) {
    case 'y': return call_made(c->y, LIKE(0));
    case 'X': return call_made(c->dx, LIKE(0));
    case 'f': return call_made(c->scale, LIKE(0));
    case 'G': return call_made(c->dgamma, 1, c->C);
    case 'B': return call_made(c->dbeta, 1, c->C);
    case 'u': return call_made(c->running->mean, 1, c->C);
    case 'v': return call_made(c->running->var, 1, c->C);
    case 'T': return claims_number_value((wide)c->running->batches);
    case 'm': return call_made_accs(c->mean, stats);
    case 'r': return call_made_accs(c->rstd, stats);
    case 'q': return call_made_accs(c->ratio, stats);
    default: return call_made_accs(c->offset, stats); /* o */
    }
}

static int call_row_of(const struct call_row *row, const value *in, value *out)
{
    static const nrm_noise noise = {(nrm_real)0.4, (nrm_real)1.75, (nrm_real)0.2, (nrm_real)0.15};
    const int by_row = row->function == CALL_LAYERNORM || row->function == CALL_RMSNORM;
    nrm_running running;
    layer_call c;
    int i, rc;
    memset(&running, 0, sizeof running);
    memset(&c, 0, sizeof c);
    running.new_weight = (nrm_real)0.1;
    c.y = c.dx = call_out(11), c.scale = call_out(8);
    c.dgamma = call_ones(call_out(10)), c.dbeta = call_ones(call_out(9));
    c.mean = call_accs[0], c.rstd = call_accs[1], c.ratio = call_accs[2], c.offset = call_accs[3];
    c.N = in[0].r, c.C = in[0].c, c.S = 1;
    c.mode = row->mode, c.eps = NRM_EPS, c.noise = &noise, c.rng = &claims_rng;
    for (i = 0; row->arguments[i]; i++) call_argument(&c, &running, row->arguments[i], in, i);
    if (strchr(row->arguments, 'A') != NULL) c.N = count_of(in[0]);
    rc = call_layer(row->function, &c);
    for (i = 0; row->results[i]; i++)
        out[i] = call_result(&c, row->results[i], by_row ? c.N : c.G ? c.N * c.G : c.C, in);
    if (rc != NRM_OK) out[0].a[0].v = (wide)HUGE_VAL;
    return i;
}

static int claims_call(const char *f, const value *in, int count, value *out)
{
    nrm_real *y = call_out(11), *dgamma = call_out(10), *dbeta = call_out(9);
    nrm_acc *mean = call_accs[0], *rstd = call_accs[1];
    nrm_running running;
    int rc = 1, found = 0;
    size_t row;
    memset(&running, 0, sizeof running);
    for (row = 0; row < sizeof call_rows / sizeof *call_rows; row++)
        if (IS(call_rows[row].name)) return call_row_of(&call_rows[row], in, out);
    if (IS("rows")) { /* x, residual, gamma, beta, eps, rms */
        const nrm_rows rows = {1, in[0].r, in[0].c, in[0].r * in[0].c, (int)SIZE(5)};
        nrm_real *sum = call_out(8);
        rc = nrm_rows_forward(y, sum, mean, rstd, call_in(in, 0), call_in(in, 1), call_in(in, 2),
                              call_in(in, 3), (nrm_real)NUMBER(4), &rows);
        out[1] = call_made(sum, LIKE(0));
        out[2] = call_made_accs(mean, in[0].r);
        out[3] = call_made_accs(rstd, in[0].r);
        found = 4;
    } else if (IS("rows_back")) { /* sum, dy, dsum, mean, rstd, gamma, rms */
        const nrm_rows rows = {1, in[0].r, in[0].c, in[0].r * in[0].c, (int)SIZE(6)};
        rc = nrm_rows_backward(y, call_ones(dgamma), call_ones(dbeta), call_in(in, 1),
                               call_in(in, 2), call_in(in, 0), call_acc_in(in, 3, 0),
                               call_acc_in(in, 4, 1), call_in(in, 5), &rows);
        out[1] = call_made(dgamma, 1, in[0].c);
        found = 2;
    } else if (IS("std_norm")) { /* x, gamma, beta, eps: layer norm with s + eps, of variants.h */
        layernorm_std_forward(y, mean, rstd, call_in(in, 0), call_in(in, 1), call_in(in, 2),
                              (nrm_real)NUMBER(3), LIKE(0));
        out[1] = call_made_accs(mean, in[0].r);
        out[2] = call_made_accs(rstd, in[0].r);
        rc = NRM_OK;
        found = 3;
    } else if (IS("std_norm_back")) { /* x, dy, gamma, eps */
        layernorm_std_backward(y, call_ones(dgamma), call_ones(dbeta), call_in(in, 1),
                               call_in(in, 0), call_in(in, 2), (nrm_real)NUMBER(3), LIKE(0));
        out[1] = call_made(dgamma, 1, in[0].c);
        out[2] = call_made(dbeta, 1, in[0].c);
        rc = NRM_OK;
        found = 3;
    } else if (IS("weightnorm_back")) { /* v, dW, g, what dv starts with */
        nrm_real *dv = call_in(in, 3);
        rc = nrm_weightnorm_forward(dbeta, mean, call_in(in, 0), call_in(in, 2), LIKE(0));
        rc |= nrm_weightnorm_backward(dv, call_ones(dgamma), call_in(in, 1), call_in(in, 0), mean,
                                      call_in(in, 2), LIKE(0));
        memcpy(y, dv, count_of(in[0]) * sizeof *y);
        out[1] = call_made(dgamma, 1, in[0].c);
        found = 2;
    } else if (IS("fold")) { /* W, b, m, u, gamma, beta, eps, outer (all, if it is left out) */
        const size_t C = count_of(in[1]), outer = count > 7 ? SIZE(7) : count_of(in[0]) / C;
        running.mean = call_in(in, 2);
        running.var = call_in(in, 3);
        rc = nrm_batchnorm_fold(y, dbeta, call_in(in, 0), call_in(in, 1), &running, call_in(in, 4),
                                call_in(in, 5), (nrm_real)NUMBER(6), outer, C,
                                count_of(in[0]) / C / outer);
        out[1] = call_made(dbeta, 1, C);
        found = 2;
    } else if (IS("unfold")) { /* W, b, m, u, gamma, beta, eps: one unit */
        running.mean = call_in(in, 2);
        running.var = call_in(in, 3);
        batchnorm_unfold(y, dbeta, call_in(in, 0), call_in(in, 1), &running, call_in(in, 4),
                         call_in(in, 5), (nrm_real)NUMBER(6), in[0].c, 1, 1);
        rc = NRM_OK;
        out[1] = call_made(dbeta, 1, 1);
        found = 2;
    } else if (IS("workers")) { /* x, dy, gamma, beta, eps, examples of each, C, S, mask */
        return call_workers(in, count, out);
    } else if (IS("merged")) { /* x, n, ...: statistics of portions of so many values, merged */
        nrm_stats all, part;
        size_t at = 0;
        int i;
        memset(&all, 0, sizeof all);
        for (i = 1, rc = NRM_OK; i < count; at += SIZE(i++)) {
            memset(&part, 0, sizeof part);
            rc |= nrm_stats_update(&part, call_in(in, 0) + at, NULL, SIZE(i), 1, 1);
            rc |= nrm_stats_merge(&all, &part, 1);
        }
        out[0] =
            claims_number_value(rc == NRM_OK ? (wide)all.m2 / (wide)all.count : (wide)HUGE_VAL);
        return 1;
    } else if (IS("updated")) { /* x: rows that one nrm_stats takes, one after another */
        nrm_stats all;
        size_t i;
        memset(&all, 0, sizeof all);
        for (i = 0, rc = NRM_OK; i < in[0].r; i++)
            rc |= nrm_stats_update(&all, call_in(in, 0) + i * in[0].c, NULL, in[0].c, 1, 1);
        out[0] =
            claims_number_value(rc == NRM_OK ? (wide)all.m2 / (wide)all.count : (wide)HUGE_VAL);
        return 1;
    } else if (IS("linear")) { /* x, W, b */
        y[0] = y[1] = 7; /* not read */
        rc = nrm_linear_forward(y, call_in(in, 0), call_in(in, 1), call_in(in, 2), in[0].r, in[0].c,
                                in[1].c);
        out[0] = call_made(y, in[0].r, in[1].c);
        return rc == NRM_OK;
    } else if (IS("linear_back")) { /* x, dy of one output: dW */
        rc = nrm_linear_backward(NULL, y, NULL, call_in(in, 1), call_in(in, 0), NULL, in[0].r,
                                 in[0].c, 1);
        out[0] = call_made(y, 1, in[0].c);
        return rc == NRM_OK;
    } else if (IS("rnn_scaled")) { /* c: dWh of a layer, and of one whose weights are c times its */
        call_rnn_scaled((nrm_real)NUMBER(0), out);
        return 2;
    } else if (IS("wide_reals")) {
        out[0] = claims_number_value(LDBL_MANT_DIG > DBL_MANT_DIG);
        return 1;
    } else if (IS("drawn_curve")) { /* steps and errors at the best of each curve of the figure */
        call_drawn_curve(out);
        return 2;
    } else if (IS("sees_kink")) { /* slopes a and b, step h, place of the kink */
        corner c = {NUMBER(0), NUMBER(1), NUMBER(3), 0};
        nrmi_check check;
        memset(&check, 0, sizeof check);
        check.loss = corner_loss;
        check.context = &c;
        out[0] = claims_number_value(nrmi_attempt(&check, &c.theta, (nrm_acc)NUMBER(2)).kink);
        return 1;
    } else if (IS("slope_error")) { /* gradient, slope, largest gradient: e of the header */
        nrm_gradcheck_report report;
        nrmi_slope s;
        memset(&report, 0, sizeof report);
        memset(&s, 0, sizeof s);
        s.value = (nrm_acc)NUMBER(1);
        nrmi_judge(&report, 0, (nrm_acc)NUMBER(0), &s, (nrm_acc)1e-7, (nrm_acc)NUMBER(2));
        out[0] = claims_number_value((wide)report.error);
        return 1;
    } else if (IS("museum_lost_gamma") || IS("museum_sample_variance")) { /* x, dy, gamma, eps */
        museum_backward(IS("museum_lost_gamma") ? MUSEUM_LOST_GAMMA : MUSEUM_SAMPLE_VARIANCE, y,
                        dgamma, dbeta, call_in(in, 1), call_in(in, 0), call_in(in, 2), NUMBER(3),
                        in[0].c, 1);
        rc = NRM_OK;
        found = 1;
    } else if (IS("museum_two_epsilons")) { /* count, variance, eps: scales, the sample variance */
        museum_group m;
        memset(&m, 0, sizeof m);
        m.count = SIZE(0);
        m.var = NUMBER(1);
        out[0] =
            claims_number_value((wide)museum_backward_scale(MUSEUM_TWO_EPSILONS, &m, NUMBER(2)));
        out[1] =
            claims_number_value((wide)museum_forward_scale(MUSEUM_TWO_EPSILONS, &m, NUMBER(2)));
        out[2] = claims_number_value((wide)m.var * (wide)m.count / ((wide)m.count - 1));
        return 3;
    } else if (IS("gathered")) { /* x, dy, mean, rstd, gamma, dgamma: two passes add to it */
        int twice;
        dgamma[0] = (nrm_real)NUMBER(5);
        for (twice = 0, rc = NRM_OK; twice < 2; twice++)
            rc |= nrm_batchnorm_backward(y, dgamma, NULL, call_in(in, 1), call_in(in, 0),
                                         call_acc_in(in, 2, 0), call_acc_in(in, 3, 1),
                                         call_in(in, 4), NRM_TRAIN, in[0].c, 1, 1);
        out[0] = claims_number_value(rc == NRM_OK ? (wide)dgamma[0] : (wide)HUGE_VAL);
        return 1;
    } else if (IS("linear_backward")) { /* x, W, dy, what dW and db start with: dx, dW, db */
        if (count > 3) dgamma = call_in(in, 3), dbeta = call_in(in, 4);
        y[0] = y[1] = 7; /* not read */
        rc = nrm_linear_backward(y, dgamma, dbeta, call_in(in, 2), call_in(in, 0), call_in(in, 1),
                                 in[0].r, in[0].c, in[2].c);
        out[1] = call_made(dgamma, in[0].c, in[2].c);
        out[2] = call_made(dbeta, 1, in[2].c);
        found = 3;
    } else if (IS("in_order")) {
        out[0] = call_in_order(in);
        return 1;
    } else if (IS("curve") || IS("logarithm")) { /* NRMI_EXP, NRM_TANH or NRM_SIGMOID; x <= 0 */
        out[0] = call_function(IS("curve") ? (int)SIZE(0) : -1, in[IS("curve") ? 1 : 0]);
        return 1;
    } else if (IS("cross_entropy")) { /* logits, labels: mean loss, probabilities */
        nrm_acc loss = (nrm_acc)HUGE_VAL;
        if (nrm_cross_entropy_forward(&loss, y, call_in(in, 0), call_labels(in[1]), in[0].r,
                                      in[0].c) != NRM_OK)
            loss = (nrm_acc)HUGE_VAL;
        out[0] = claims_number_value((wide)loss);
        out[1] = call_made(y, LIKE(0));
        return 2;
    } else if (IS("convention")) { /* number: keeps, outside, weight_is_old, momentum, eps */
        const convention *c = &conventions[SIZE(0)];
        const nrm_acc fields[5] = {(nrm_acc)c->keeps, (nrm_acc)c->eps_outside,
                                   (nrm_acc)c->weight_is_old, c->momentum, c->eps};
        out[0] = call_made_accs(fields, 5);
        return 1;
    } else if (IS("imported")) { /* keeps, outside, eps, old, momentum, means, spreads, weight */
        convention from = conventions[KERAS];
        from.keeps = (int)SIZE(0);
        from.eps_outside = (int)SIZE(1);
        from.eps = (nrm_acc)NUMBER(2);
        from.weight_is_old = (int)SIZE(3);
        from.momentum = (nrm_acc)NUMBER(4);
        running.mean = y;
        running.var = dbeta;
        out[2] = claims_number_value((wide)convention_import(
            &running, &from, call_in(in, 5), call_in(in, 6), (nrm_acc)NUMBER(7), count_of(in[5])));
        out[1] = call_made(dbeta, LIKE(5));
        out[3] = claims_number_value((wide)running.new_weight);
        out[0] = call_made(y, LIKE(5));
        return 4;
    } else if (IS("net")) {
        return call_random_net(in, out);
    } else if (IS("rnn")) {
        return call_rnn(in, out);
    } else if (IS("float_overflows")) { /* where exp leaves float and double */
        out[0] = claims_number_value(expf(89) > FLT_MAX && expf(88) < FLT_MAX &&
                                     exp(710) > DBL_MAX && exp(709) < DBL_MAX);
        return 1;
    } else if (IS("network")) {
        return call_network(in, out);
    } else if (IS("first_loss")) {
        return call_first_loss(NUMBER(0) != 0, out);
    } else if (IS("optimizer_constants") || IS("optimized")) {
        return call_optimizer(IS("optimized"), in, count, out);
    } else if (IS("shared_network")) {
        return call_shared_network(in, out);
    } else if (IS("noise")) {
        return call_noise(in, out);
    } else if (IS("paper_noise")) {
        const nrm_noise n = nrm_noise_paper();
        const nrm_real fields[4] = {n.mean_range, n.scale_max, n.mean_jitter, n.scale_jitter};
        out[0] = call_made(fields, 1, 4);
        return 1;
    } else if (
        IS("noisy_units")) { /* units, jitter, rows: the paper's offsets, factors, at y = 1 */
        const size_t units = SIZE(0), shown = count > 2 ? SIZE(2) : 1, all = shown < 2 ? 2 : shown;
        nrm_real *scale = call_out(0), *x = call_out(1), *ones = call_out(2);
        static nrm_acc means[CALL_MOST], rstds[CALL_MOST];
        nrm_noise noise = nrm_noise_paper();
        size_t k;
        if (NUMBER(1) == 0) noise.mean_jitter = noise.scale_jitter = 0;
        for (k = 0; k < units; k++) ones[k] = 1;
        if (all * units > CALL_MOST ||
            nrm_noisy_batchnorm_forward(y, scale, means, rstds, NULL, x, NULL, ones, &noise,
                                        &claims_rng, NRM_TRAIN, NRM_EPS, all, units, 1) != NRM_OK)
            claims_fail("no noise");
        for (k = 0; k < shown * units; k++) y[k] -= scale[k];
        out[0] = call_made(y, shown, units);
        out[1] = call_made(scale, shown, units);
        return 2;
    } else if (IS("running_mean")) { /* start, weight, batches of mean 0 */
        nrm_real x[2] = {-1, 1}, m = (nrm_real)NUMBER(0), v = 1;
        size_t t;
        running.mean = &m;
        running.var = &v;
        running.new_weight = (nrm_real)NUMBER(1);
        for (t = 0; t < SIZE(2); t++)
            if (nrm_batchnorm_forward(y, mean, rstd, &running, x, NULL, NULL, NRM_TRAIN, NRM_EPS, 2,
                                      1, 1) != NRM_OK)
                m = (nrm_real)NAN;
        out[0] = claims_number_value((wide)m);
        return 1;
    } else if (IS("moving")) { /* start, weight, cumulative, batches of 8: the mean; theirs */
        nrm_real m = (nrm_real)NUMBER(0), v = 1;
        size_t t, k;
        running.mean = &m;
        running.var = &v;
        running.new_weight = (nrm_real)NUMBER(1);
        running.cumulative = (int)NUMBER(2);
        out[1] = claims_make(1, SIZE(3));
        for (t = 0; t < out[1].c; t++) {
            fill_real(dbeta, 8, 2, 1, &claims_rng);
            if (nrm_batchnorm_forward(y, mean, rstd, &running, dbeta, NULL, NULL, NRM_TRAIN,
                                      NRM_EPS, 8, 1, 1) != NRM_OK)
                m = (nrm_real)NAN;
            for (k = 0; k < 8; k++) out[1].a[t].v += (wide)dbeta[k] / 8;
        }
        out[0] = claims_number_value((wide)m);
        return 2;
    } else if (IS("acc_is_float")) {
        out[0] = claims_number_value(acc_in_float());
        return 1;
    } else if (IS("double_range")) {
        out[0] = claims_number_value(!in_float() && !acc_in_float());
        return 1;
    } else if (IS("acc_no_wider")) {
        out[0] = claims_number_value(acc_no_wider());
        return 1;
    }
    if (found == 0) return 0;
    out[0] = call_made(y, LIKE(0));
    if (rc != NRM_OK) out[0].a[0].v = (wide)HUGE_VAL;
    return found;
}
#endif
