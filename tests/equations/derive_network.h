/* derive_network.h - ACT, CE, MLP, OPT: what a network has beside its norms. */
#ifndef DERIVE_NETWORK_H
#define DERIVE_NETWORK_H

#include "derive_noise.h"

/* ---- activations ----------------------------------------------------------------------------- */

typedef struct act_case {
    int kind;
    double x;
} act_case;

static wide act_value(int kind, wide x)
{
    const wide q = expm1l(-2 * fabsl(x));
    switch (kind) {
    case NRM_RELU: return x > 0 ? x : 0;
    case NRM_TANH: return x > 0 ? -q / (2 + q) : q / (2 + q);
    default: return 1 / (1 + expl(-x));
    }
}

/* f(x): of the code in double, of the formula where the code is in float. */
static wide act_forward(void *context)
{
    const act_case *k = (const act_case *)context;
#ifdef NRM_DOUBLE
    nrm_real y = (nrm_real)HUGE_VAL;
    (void)nrm_activation_forward(&y, &k->x, k->kind, 1);
    return (wide)y;
#else
    return act_value(k->kind, (wide)k->x);
#endif
}

/* What ACT.4 to ACT.6 say the derivative is, given y. */
static wide act_derivative(int kind, wide y)
{
    switch (kind) {
    case NRM_RELU: return y > 0 ? 1 : 0;
    case NRM_TANH: return 1 - y * y;
    default: return y * (1 - y);
    }
}

typedef struct act_residuals {
    wide value, derivative, slope;
} act_residuals;

static act_residuals activation_at(int kind, double at)
{
    const nrm_real x = (nrm_real)at, dy = (nrm_real)-1.75;
    nrm_real y = 0, dx = 0;
    act_residuals a;
    act_case k;
    (void)nrm_activation_forward(&y, &x, kind, 1);
    (void)nrm_activation_backward(&dx, &dy, &y, kind, 1);
    k.kind = kind;
    k.x = (double)x;
    a.value = relative((wide)y, act_value(kind, (wide)x));
    a.derivative = apart((wide)dx, (wide)dy * act_derivative(kind, (wide)y), fabsl((wide)dy));
    a.slope = apart((wide)dx, (wide)dy * slope(act_forward, &k, &k.x, 1.0 / 1024), 1);
    return a;
}

static void derive_relu_at(double x)
{
    const act_residuals a = activation_at(NRM_RELU, x);
    DERIVE("ACT.1", a.value, identity());
    DERIVE("ACT.4", a.derivative, identity());
    if (fabs(x) > 0.01) ALSO(a.slope, difference()); /* not across the kink */
}

static void derive_tanh_at(double x)
{
    const act_residuals a = activation_at(NRM_TANH, x);
    DERIVE("ACT.2", worse(a.value, relative(act_value(NRM_TANH, (wide)x), tanhl((wide)x))),
           identity());
    DERIVE("ACT.5", a.derivative, identity());
    ALSO(a.slope, difference());
}

static void derive_sigmoid_at(double x)
{
    const act_residuals a = activation_at(NRM_SIGMOID, x);
    const wide e = expl((wide)x);
    DERIVE("ACT.3", worse(a.value, relative(act_value(NRM_SIGMOID, (wide)x), e / (1 + e))),
           identity());
    DERIVE("ACT.6", a.derivative, identity());
    ALSO(a.slope, difference());
}

static void derive_activations(void)
{
    nrm_rng rng = stream(20);
    int i;
    for (i = 0; i < 2000; i++) {
        const double sign = i % 2 ? 1 : -1;
        const double x = i < 2 ? 0 : sign * pow(10, uniform_between(&rng, -8, 1.6));
        derive_relu_at(x);
        derive_tanh_at(x);
        derive_sigmoid_at(x);
    }
}

/* ---- softmax and cross-entropy --------------------------------------------------------------- */

typedef struct loss_case {
    size_t N, C;
    double z[NUMBERS];
    int labels[CHANNELS];
    nrm_real p[NUMBERS], dz[NUMBERS]; /* what the code makes of them */
    nrm_acc loss;
} loss_case;

typedef struct loss_row { /* the formulas of one row */
    wide h, Z, p[CHANNELS], loss;
    size_t top; /* where h is */
} loss_row;

static void softmax_row(loss_row *row, const double *z, size_t label, size_t C)
{
    size_t c;
    row->top = 0;
    for (c = 0; c < C; c++)
        if (z[c] > z[row->top]) row->top = c;
    row->h = (wide)z[row->top];
    row->Z = 0;
    for (c = 0; c < C; c++) row->Z += expl((wide)z[c] - row->h);
    for (c = 0; c < C; c++) row->p[c] = expl((wide)z[c] - row->h) / row->Z;
    row->loss = logl(row->Z) + row->h - (wide)z[label];
}

static void run_loss(loss_case *k)
{
    nrm_real z[NUMBERS] = {0};
    to_real(z, k->z, k->N * k->C);
    if (nrm_cross_entropy_forward(&k->loss, k->p, z, k->labels, k->N, k->C) != NRM_OK)
        k->loss = (nrm_acc)HUGE_VAL;
}

/* L of the code in double, of the formulas where the code is in float. */
static wide mean_loss(void *context)
{
    loss_case *k = (loss_case *)context;
#ifdef NRM_DOUBLE
    run_loss(k);
    return (wide)k->loss;
#else
    loss_row row;
    wide sum = 0;
    size_t n;
    for (n = 0; n < k->N; n++) {
        softmax_row(&row, k->z + n * k->C, (size_t)k->labels[n], k->C);
        sum += row.loss;
    }
    return sum / (wide)k->N;
#endif
}

/* h = max z makes all differences z − h, and so all bits, those of logits that are all shifted. */
static wide shift_residual(const loss_case *given)
{
    static const double shift[] = {4096, -4096, 64};
    loss_case k = *given, moved;
    size_t i, s;
    for (i = 0; i < k.N * k.C; i++) k.z[i] = floor(8 * k.z[i]) / 8; /* so that shifts are exact */
    run_loss(&k);
    for (s = 0; s < LENGTH(shift); s++) {
        moved = k;
        for (i = 0; i < k.N * k.C; i++) moved.z[i] = k.z[i] + shift[s];
        run_loss(&moved);
        if (moved.loss != k.loss || memcmp(moved.p, k.p, k.N * k.C * sizeof k.p[0]) != 0)
            return (wide)HUGE_VAL;
    }
    return 0;
}

static void derive_loss_row(const loss_case *k, size_t n, wide *sum)
{
    const double *z = k->z + n * k->C;
    const size_t label = (size_t)k->labels[n];
    nrm_real one_row[CHANNELS], p[CHANNELS];
    wide sum_dz = 0, p_worst = 0, dz_worst = 0;
    nrm_acc loss = 0;
    loss_row row;
    size_t c;
    softmax_row(&row, z, label, k->C);
    to_real(one_row, z, k->C);
    (void)nrm_cross_entropy_forward(&loss, p, one_row, k->labels + n, 1, k->C);
    for (c = 0; c < k->C; c++) {
        const size_t at = n * k->C + c;
        const wide should = (row.p[c] - (c == label ? 1 : 0)) / (wide)k->N;
        /* where z - h is rounded to a float, e^(z - h) is off by as many places as that is large */
        const wide magnified = 1 + (acc_in_float() ? row.h - (wide)z[c] : 0);
        p_worst = worse(p_worst, apart((wide)k->p[at], row.p[c], 1));
        if (row.p[c] > 1e-30L)
            p_worst = worse(p_worst, apart((wide)k->p[at], row.p[c], row.p[c] * magnified));
        dz_worst = worse(dz_worst, apart((wide)k->dz[at], should, 1 / (wide)k->N));
        sum_dz += (wide)k->dz[at];
    }
    /* what the code took for h, read back from its loss */
    DERIVE("CE.1",
           apart((wide)loss + (wide)z[label] - logl(row.Z), row.h, 1 + fabsl(row.h) + row.loss),
           acc_identity());
    DERIVE("CE.2", relative(1 / (wide)k->p[n * k->C + row.top], row.Z), identity());
    DERIVE("CE.3", p_worst, identity());
    DERIVE("CE.4", apart((wide)loss, row.loss, 1 + row.loss), acc_identity());
    if (row.p[label] > 1e-300L)
        ALSO(apart((wide)loss, -logl(row.p[label]), 1 + row.loss), acc_identity());
    DERIVE("CE.6", dz_worst, identity());
    DERIVE("CE.7", fabsl(sum_dz) * (wide)k->N, identity());
    *sum += row.loss;
}

static wide logit_slopes(loss_case *k)
{
    wide worst = 0;
    size_t i;
    for (i = 0; i < k->N * k->C; i++) {
        const wide should = slope(mean_loss, k, k->z + i, 1.0 / 1024);
        worst = worse(worst, apart((wide)k->dz[i], should, 1 / (wide)k->N));
    }
    return worst;
}

static void derive_loss_case(size_t N, size_t C, double scale, nrm_rng *rng)
{
    loss_case k;
    wide sum = 0;
    size_t n;
    memset(&k, 0, sizeof k);
    k.N = N;
    k.C = C;
    fill(k.z, N * C, 0.3 * scale, scale, rng);
    for (n = 0; n < N; n++) k.labels[n] = (int)nrm_rng_below(rng, (uint32_t)C);
    run_loss(&k);
    (void)nrm_cross_entropy_backward(k.dz, k.p, k.labels, N, C);
    for (n = 0; n < N; n++) derive_loss_row(&k, n, &sum);
    DERIVE("CE.5", apart((wide)k.loss, sum / (wide)N, 1 + sum / (wide)N), acc_identity());
    if (scale < 100) ALSO_OF("CE.1", shift_residual(&k), replay());
    if (scale < 100) ALSO_OF("CE.6", logit_slopes(&k), difference());
}

static void derive_cross_entropy(void)
{
    static const size_t shape[][2] = {{1, 1}, {1, 2}, {2, 3}, {3, 10}, {7, 5}, {4, 40}};
    static const double scale[] = {1e-3, 1, 10, 1000};
    nrm_rng rng = stream(21);
    size_t i, j;
    for (i = 0; i < LENGTH(shape); i++)
        for (j = 0; j < LENGTH(scale); j++)
            derive_loss_case(shape[i][0], shape[i][1], scale[j], &rng);
}

/* ---- the perceptron -------------------------------------------------------------------------- */

enum { NET_BATCH = 6, NET_IN = 5, NET_BLOCK = 1 << 17 };

/* A network of three layers with all parameters random. NULL if init refuses. */
static nrm_mlp *make_net(unsigned char *block, nrm_mlp_spec *spec, nrm_mlp_layer *layer,
                         nrm_rng *rng)
{
    nrm_mlp *net = NULL;
    spec->inputs = NET_IN;
    spec->layers = 3;
    spec->layer = layer;
    spec->max_batch = NET_BATCH;
    spec->seed = nrm_rng_u32(rng);
    layer[0].width = 7;
    layer[1].width = 4;
    layer[2].width = 3;
    if (nrm_mlp_init(&net, block, NET_BLOCK, spec) != NRM_OK) return NULL;
    fill_real(net->params, net->n_params, 0.1, 0.8, rng);
    return net;
}

typedef struct norm_group { /* values that share a mean */
    size_t n;
    wide x[GROUP], mu, v;
} norm_group;

static void group_statistics(norm_group *g)
{
    size_t i;
    g->mu = mean_of(g->x, g->n);
    g->v = 0;
    for (i = 0; i < g->n; i++) g->v += (g->x[i] - g->mu) * (g->x[i] - g->mu) / (wide)g->n;
}

/* The norm of a layer on a [N][width], by the formulas. `drawn` is used by noisy batch norm. */
static void paper_norm(wide *a, const nrm_mlp *net, const nrm_mlp_state *s, size_t N, int mode,
                       const noise_case *drawn)
{
    const int rows = s->shape.norm == NRM_LAYER_NORM;
    const size_t width = s->shape.width, groups = rows ? N : width, n = rows ? width : N;
    norm_group g;
    size_t group, i;
    for (group = 0; group < groups; group++) {
        wide v;
        g.n = n;
        for (i = 0; i < n; i++) g.x[i] = a[rows ? group * width + i : i * width + group];
        group_statistics(&g);
        if (!rows && mode != NRM_TRAIN) {
            g.mu = (wide)s->running.mean[group];
            g.v = (wide)s->running.var[group];
        }
        v = sqrtl(g.v + (wide)net->spec.eps);
        for (i = 0; i < n; i++) {
            const size_t at = rows ? group * width + i : i * width + group, c = at % width;
            a[at] = (wide)s->gamma[c] * (g.x[i] - g.mu) / v + (wide)s->beta[c];
            if (s->shape.norm == NRM_NOISY_BATCH_NORM && mode == NRM_TRAIN)
                a[at] = (wide)drawn->s[at] * a[at] + (wide)drawn->m[at];
        }
    }
}

static void paper_activation(wide *a, int kind, size_t n)
{
    size_t i;
    for (i = 0; i < n && kind != NRM_IDENTITY; i++) a[i] = act_value(kind, a[i]);
}

/* A layer's output against the formula applied to what the layer below has put out. */
static wide layer_residual(const nrm_mlp *net, size_t l, const nrm_real *x, size_t N, int mode,
                           nrm_rng *rng)
{
    const nrm_mlp_state *s = &net->state[l];
    const size_t width = s->shape.width;
    const nrm_real *in = l > 0 ? net->state[l - 1].out : x;
    wide a[NUMBERS], worst = 0;
    noise_case drawn;
    size_t n, i, j;
    drawn.N = N;
    drawn.C = width;
    drawn.S = 1;
    drawn.noise = net->spec.noise;
    if (s->shape.norm == NRM_NOISY_BATCH_NORM && mode == NRM_TRAIN) noise_draws(&drawn, rng);
    for (n = 0; n < N; n++)
        for (j = 0; j < width; j++) {
            a[n * width + j] = s->b != NULL ? (wide)s->b[j] : 0;
            for (i = 0; i < s->in; i++)
                a[n * width + j] += (wide)in[n * s->in + i] * (wide)s->W[i * width + j];
        }
    if (s->shape.norm_after) paper_activation(a, s->shape.activation, N * width);
    if (s->shape.norm != NRM_NO_NORM) paper_norm(a, net, s, N, mode, &drawn);
    if (!s->shape.norm_after) paper_activation(a, s->shape.activation, N * width);
    for (i = 0; i < N * width; i++)
        worst = worse(worst, apart((wide)s->out[i], a[i], 4 + fabsl(a[i])));
    return worst;
}

static wide net_residual(int norm, int activation, int norm_after, int mode, nrm_rng *rng)
{
    static unsigned char block[NET_BLOCK];
    nrm_mlp_spec spec = nrm_mlp_defaults();
    nrm_mlp_layer layer[3];
    nrm_real x[NET_BATCH * NET_IN];
    nrm_rng noise;
    nrm_mlp *net;
    wide worst = 0;
    size_t l;
    memset(layer, 0, sizeof layer);
    for (l = 0; l < 3; l++) {
        layer[l].activation = l < 2 ? activation : NRM_IDENTITY;
        layer[l].norm = l < 2 ? norm : NRM_NO_NORM;
        layer[l].norm_after = norm_after;
        layer[l].bias = l != 1;
    }
    net = make_net(block, &spec, layer, rng);
    if (net == NULL) return (wide)HUGE_VAL;
    fill_real(x, NET_BATCH * NET_IN, 0.3, 1, rng);
    (void)nrm_mlp_forward(net, x, NET_BATCH, NRM_TRAIN); /* so that running statistics move */
    noise = net->rng;
    if (nrm_mlp_forward(net, x, NET_BATCH, mode) < 0) return (wide)HUGE_VAL;
    for (l = 0; l < 3; l++)
        worst = worse(worst, layer_residual(net, l, x, NET_BATCH, mode, &noise));
    return worst;
}

static void derive_layers(void)
{
    static const int mode[] = {NRM_TRAIN, NRM_INFER, NRM_FROZEN};
    nrm_rng rng = stream(22);
    int norm, activation;
    size_t m;
    for (norm = NRM_NO_NORM; norm <= NRM_NOISY_BATCH_NORM; norm++)
        for (activation = NRM_IDENTITY; activation <= NRM_SIGMOID; activation++)
            for (m = 0; m < LENGTH(mode); m++) {
                DERIVE("MLP.1", net_residual(norm, activation, 0, mode[m], &rng), identity());
                DERIVE("MLP.2", net_residual(norm, activation, 1, mode[m], &rng), identity());
            }
}

/* The largest gap between the outputs of a norm for two inputs, [5][6] each. */
static wide norm_gap(const double *x, const double *moved, int layer)
{
    enum { N = 5, C = 6 };
    nrm_real in[N * C], y[2][N * C];
    nrm_acc mean[C], rstd[C];
    wide worst = 0;
    int i, rc = NRM_OK;
    for (i = 0; i < 2; i++) {
        to_real(in, i == 0 ? x : moved, N * C);
        rc |= layer ? nrm_layernorm_forward(y[i], NULL, NULL, in, NULL, NULL, NRM_EPS, N, C)
                    : nrm_batchnorm_forward(y[i], mean, rstd, NULL, in, NULL, NULL, NRM_TRAIN,
                                            NRM_EPS, N, C, 1);
    }
    for (i = 0; i < N * C; i++) worst = worse(worst, apart((wide)y[1][i], (wide)y[0][i], 10));
    return worse(worst, unless(rc == NRM_OK));
}

/* What the bias of the first layer gets for a gradient: each db alone, or their sum, relative to
   the largest entry of dW. */
static wide bias_gradient(int norm, nrm_rng *rng)
{
    static unsigned char block[NET_BLOCK];
    static const int labels[NET_BATCH] = {0, 1, 2, 0, 1, 2};
    nrm_mlp_spec spec = nrm_mlp_defaults();
    nrm_mlp_layer layer[3];
    nrm_real x[NET_BATCH * NET_IN];
    nrm_mlp *net;
    nrm_mlp_state *s;
    wide size = 0, each = 0, sum = 0;
    size_t i;
    memset(layer, 0, sizeof layer);
    layer[0].activation = layer[1].activation = NRM_TANH;
    layer[0].norm = norm;
    layer[0].bias = 1;
    net = make_net(block, &spec, layer, rng);
    if (net == NULL) return (wide)HUGE_VAL;
    fill_real(x, NET_BATCH * NET_IN, 0.3, 1, rng);
    if (nrm_mlp_gradient(net, NULL, x, labels, NET_BATCH, NRM_TRAIN) != NRM_OK)
        return (wide)HUGE_VAL;
    s = &net->state[0];
    for (i = 0; i < s->in * s->shape.width; i++) size = worse(size, fabsl((wide)s->dW[i]));
    for (i = 0; i < s->shape.width; i++) {
        each = worse(each, fabsl((wide)s->db[i]));
        sum += (wide)s->db[i];
    }
    return apart(norm == NRM_BATCH_NORM ? each : sum, 0, size);
}

static void derive_biases(void)
{
    enum { N = 5, C = 6 };
    double x[N * C], b[C], shifted[N * C], centred[N * C], mean;
    nrm_rng rng = stream(24);
    int turn, i;
    for (turn = 0; turn < 10; turn++) {
        fill(x, N * C, 0, 1, &rng);
        fill(b, C, 1, 2, &rng);
        mean = (b[0] + b[1] + b[2] + b[3] + b[4] + b[5]) / C;
        for (i = 0; i < N * C; i++) {
            shifted[i] = x[i] + b[i % C];
            centred[i] = x[i] + b[i % C] - mean;
        }
        DERIVE("MLP.3", norm_gap(x, shifted, 0), identity());
        ALSO(bias_gradient(NRM_BATCH_NORM, &rng), identity());
        DERIVE("MLP.4", norm_gap(centred, shifted, 1), identity());
        ALSO(bias_gradient(NRM_LAYER_NORM, &rng), identity());
        ALSO(unless(norm_gap(x, shifted, 1) > 1e-3L), identity()); /* not quite redundant */
    }
}

/* ---- initialisation -------------------------------------------------------------------------- */

typedef struct init_residuals {
    wide replayed, moments;
} init_residuals;

/* The next weight of a stream, uniform in ±a or normal with standard deviation a. */
static nrm_real drawn_weight(int uniform, nrm_acc a, nrm_rng *rng)
{
    if (uniform) return (nrm_real)(a * noise_symmetric(rng));
    return (nrm_real)(a * (nrm_acc)nrm_rng_normal(rng));
}

static nrm_acc root(nrm_acc v)
{
    return (nrm_acc)sqrt((double)v);
}

/* Layers of different shapes, so that `in` and `out` cannot be mistaken for one another. */
static init_residuals init_case(int init)
{
    enum { LAYERS = 3, BLOCK = 1 << 20 };
    static unsigned char block[BLOCK];
    static const size_t width[LAYERS] = {60, 200, 10};
    const int uniform = init == NRM_INIT_XAVIER || init == NRM_INIT_FAN_IN;
    nrm_mlp_spec spec = nrm_mlp_defaults();
    nrm_mlp_layer layer[LAYERS];
    init_residuals result = {0, 0};
    nrm_mlp *net = NULL;
    size_t l, i, in = 90;
    memset(layer, 0, sizeof layer);
    for (l = 0; l < LAYERS; l++) {
        layer[l].width = width[l];
        layer[l].bias = 1;
        layer[l].norm = l == 1 ? NRM_LAYER_NORM : NRM_NO_NORM;
    }
    spec.inputs = in;
    spec.layers = LAYERS;
    spec.layer = layer;
    spec.max_batch = 1;
    spec.seed = 77;
    spec.init = init;
    spec.init_std = (nrm_real)0.05;
    if (nrm_mlp_init(&net, block, BLOCK, &spec) != NRM_OK) result.replayed = (wide)HUGE_VAL;
    for (l = 0; l < LAYERS && net != NULL; l++) {
        const nrm_mlp_state *s = &net->state[l];
        const nrm_acc fan = (nrm_acc)in, out = (nrm_acc)width[l];
        const nrm_acc a = init == NRM_INIT_HE       ? root(2 / fan)
                          : init == NRM_INIT_XAVIER ? root(6 / (fan + out))
                          : init == NRM_INIT_FAN_IN ? 1 / root(fan)
                                                    : (nrm_acc)spec.init_std;
        nrm_rng weights, biases;
        moments seen = no_moments();
        nrm_rng_seed(&weights, 77, 4 * l);
        nrm_rng_seed(&biases, 77, 4 * l + 1);
        for (i = 0; i < in * width[l]; i++) {
            if (s->W[i] != drawn_weight(uniform, a, &weights)) result.replayed = (wide)HUGE_VAL;
            take(&seen, (wide)s->W[i], 0);
        }
        for (i = 0; i < width[l]; i++) {
            const nrm_real b = init == NRM_INIT_FAN_IN ? drawn_weight(1, a, &biases) : 0;
            if (s->b[i] != b) result.replayed = (wide)HUGE_VAL;
        }
        result.moments =
            worse(result.moments, uniform ? surprise_uniform(&seen, -(wide)a, (wide)a)
                                          : surprise(&seen, (wide)a * (wide)a, 3));
        in = width[l];
    }
    return result;
}

/* The mean loss of a batch from those of its parts, one of them empty. */
static void derive_parts(void)
{
    enum { N = 11, CLASSES = 3 };
    static const size_t part[4] = {4, 0, 1, 6};
    nrm_rng rng = stream(77);
    nrm_real logits[N * CLASSES];
    nrm_acc whole = 0, loss = 0;
    int labels[N];
    wide sum = 0;
    size_t n, at = 0;
    fill_real(logits, N * CLASSES, 0, 2, &rng);
    for (n = 0; n < N; n++) labels[n] = (int)nrm_rng_below(&rng, CLASSES);
    nrm_cross_entropy_forward(&whole, NULL, logits, labels, N, CLASSES);
    for (n = 0; n < 4; n++) {
        nrm_cross_entropy_forward(&loss, NULL, logits + at * CLASSES, labels + at, part[n],
                                  CLASSES);
        sum += (wide)loss * (wide)part[n] / N;
        at += part[n];
    }
    DERIVE("MLP.9", relative((wide)whole, sum), acc_identity());
}

static void derive_init(void)
{
    init_residuals r = init_case(NRM_INIT_HE);
    derive_parts();
    DERIVE("MLP.5", r.replayed, replay());
    ALSO(r.moments, statistics());
    r = init_case(NRM_INIT_XAVIER);
    DERIVE("MLP.6", r.replayed, replay());
    ALSO(r.moments, statistics());
    r = init_case(NRM_INIT_GAUSSIAN);
    DERIVE("MLP.7", r.replayed, replay());
    ALSO(r.moments, statistics());
    r = init_case(NRM_INIT_FAN_IN);
    DERIVE("MLP.8", r.replayed, replay());
    ALSO(r.moments, statistics());
}

/* ---- optimizers ------------------------------------------------------------------------------ */

enum { STEPS = 6, PARAMS = 128 };

typedef struct descent { /* gradients that are handed to the optimizer, and where it started */
    nrm_mlp *net;
    wide g[STEPS][PARAMS], start[PARAMS];
} descent;

static int start_descent(descent *d, unsigned char *block, nrm_mlp_spec *spec, nrm_rng *rng)
{
    nrm_mlp_layer layer[3];
    size_t i;
    memset(layer, 0, sizeof layer);
    memset(d, 0, sizeof *d);
    d->net = make_net(block, spec, layer, rng);
    if (d->net == NULL || d->net->n_params > PARAMS) return 0;
    for (i = 0; i < d->net->n_params; i++) d->start[i] = (wide)d->net->params[i];
    return 1;
}

static void descend(descent *d, size_t step, nrm_rng *rng)
{
    size_t i;
    fill_real(d->net->grads, d->net->n_params, 0.2, pow(10, (double)step - 3), rng);
    for (i = 0; i < d->net->n_params; i++) d->g[step][i] = (wide)d->net->grads[i];
    (void)nrm_mlp_step(d->net);
}

/* ∑ₖ keepᵗ⁻ᵏ·gₖ or ∑ₖ keepᵗ⁻ᵏ·gₖ²: what the recursions add up to after step t. */
static wide remembered(const descent *d, size_t t, size_t i, wide keep, int squared)
{
    wide sum = 0;
    size_t k;
    for (k = 0; k <= t; k++)
        sum += powl(keep, (wide)(t - k)) * (squared ? d->g[k][i] * d->g[k][i] : d->g[k][i]);
    return sum;
}

static wide remembered_size(const descent *d, size_t t, size_t i, wide keep)
{
    wide sum = 0;
    size_t k;
    for (k = 0; k <= t; k++) sum += powl(keep, (wide)(t - k)) * fabsl(d->g[k][i]);
    return sum;
}

static void derive_sgd(double heavy_ball, nrm_rng *rng)
{
    static unsigned char block[NET_BLOCK];
    nrm_mlp_spec spec = nrm_mlp_defaults();
    const wide keep = (wide)(nrm_real)heavy_ball, lr = (wide)(nrm_real)0.03;
    descent d;
    size_t t, i;
    spec.heavy_ball = (nrm_real)heavy_ball;
    spec.lr = (nrm_real)0.03;
    if (!start_descent(&d, block, &spec, rng)) {
        ALSO_OF("OPT.2", unless(0), identity());
        return;
    }
    for (t = 0; t < STEPS; t++) {
        descend(&d, t, rng);
        for (i = 0; i < d.net->n_params; i++) {
            wide walked = 0, size = fabsl(d.start[i]);
            size_t k;
            for (k = 0; k <= t; k++) {
                walked += remembered(&d, k, i, keep, 0);
                size += lr * remembered_size(&d, k, i, keep);
            }
            if (heavy_ball > 0)
                DERIVE("OPT.1",
                       apart((wide)d.net->moment1[i], remembered(&d, t, i, keep, 0),
                             remembered_size(&d, t, i, keep)),
                       identity());
            DERIVE("OPT.2", apart((wide)d.net->params[i], d.start[i] - lr * walked, size),
                   identity());
        }
    }
}

/* The step of OPT.5 after step t, from the gradients alone. */
static wide adam_step(const descent *d, size_t t, size_t i)
{
    const wide b1 = (wide)d->net->spec.beta1, b2 = (wide)d->net->spec.beta2;
    const wide a = (1 - b1) * remembered(d, t, i, b1, 0) / (1 - powl(b1, (wide)(t + 1)));
    const wide b = (1 - b2) * remembered(d, t, i, b2, 1) / (1 - powl(b2, (wide)(t + 1)));
    return (wide)d->net->spec.lr * a / (sqrtl(b) + (wide)d->net->spec.adam_eps);
}

static void derive_adam(double beta1, double beta2, double eps, nrm_rng *rng)
{
    static unsigned char block[NET_BLOCK];
    nrm_mlp_spec spec = nrm_mlp_defaults();
    const wide b1 = (wide)(nrm_real)beta1, b2 = (wide)(nrm_real)beta2;
    descent d;
    size_t t, i;
    spec.optimizer = NRM_ADAM;
    spec.beta1 = (nrm_real)beta1;
    spec.beta2 = (nrm_real)beta2;
    spec.adam_eps = (nrm_real)eps;
    spec.lr = (nrm_real)0.05;
    if (!start_descent(&d, block, &spec, rng)) {
        ALSO_OF("OPT.5", unless(0), identity());
        return;
    }
    for (t = 0; t < STEPS; t++) {
        descend(&d, t, rng);
        for (i = 0; i < d.net->n_params; i++) {
            wide walked = 0;
            size_t k;
            for (k = 0; k <= t; k++) walked += adam_step(&d, k, i);
            DERIVE("OPT.3",
                   apart((wide)d.net->moment1[i], (1 - b1) * remembered(&d, t, i, b1, 0),
                         (1 - b1) * remembered_size(&d, t, i, b1)),
                   identity());
            DERIVE("OPT.4",
                   relative((wide)d.net->moment2[i], (1 - b2) * remembered(&d, t, i, b2, 1)),
                   identity());
            DERIVE("OPT.5", apart((wide)d.net->params[i], d.start[i] - walked, 1 + fabsl(walked)),
                   identity());
        }
    }
}

static void derive_optimizers(void)
{
    nrm_rng rng = stream(25);
    derive_sgd(0, &rng);
    derive_sgd(0.9, &rng);
    derive_sgd(0.3, &rng);
    derive_adam(0.9, 0.999, 1e-8, &rng);
    derive_adam(0.5, 0.75, 1e-2, &rng);
}

#endif
