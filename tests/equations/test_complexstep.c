/* test_complexstep.c - the gradients, against a witness that shares nothing with them.

   Evaluate a function at x + i·h with a tiny h: the imaginary part, divided by h, is its
   derivative, to all digits, for nothing is subtracted. So here are the forward passes of all
   layers once more, written straight from the papers in complex numbers, and what they say is
   compared with the header's backward passes. In double only. -v prints the largest errors, and
   what they say about the equations: rows as those of test_derivations -v. */
#ifndef NRM_DOUBLE
#define NRM_DOUBLE
#endif
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"

#include <complex.h>
#include <stdlib.h>

#include "layers/recurrent.h"
#include "test.h"
#include "layers/variants.h"

typedef double complex number;

enum { NUMBERS = 800, CHANNELS = 40 };

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* How large an error may be, relative to the size of the terms. */
#define ONE_LAYER 1e-14
#define NETWORK 1e-13

static const double scales[] = {1e-3, 1e-2, 0.1, 1, 10, 100, 1e3};
static const size_t batches[] = {2, 3, 4, 7, 32};
static const size_t positions[] = {1, 2, 5};

/* ---- the witness ----------------------------------------------------------------------------- */

typedef number paper_loss(const void *shape, const number *theta);

/* x + i·h, without any arithmetic: a complex number is laid out as its two parts. */
static number nudged(double x, double h)
{
    number z = x;
    ((double *)&z)[1] = h;
    return z;
}

/* The largest |grad − derivative|/size over all parameters. */
static double complex_step(paper_loss *loss, const void *shape, const double *theta, size_t n,
                           const double *grad, const double *size)
{
    number z[NUMBERS];
    double worst = 0;
    size_t i;
    for (i = 0; i < n; i++) z[i] = theta[i];
    for (i = 0; i < n; i++) {
        const double h = i % 2 ? 1e-30 : 1e-100; /* no matter which */
        double derivative, error;
        z[i] = nudged(theta[i], h);
        derivative = cimag(loss(shape, z)) / h;
        z[i] = theta[i];
        error = fabs(grad[i] - derivative) / size[i];
        if (!(error <= worst)) worst = error;
    }
    return worst;
}

typedef struct verdict { /* the worst of what a family of cases left over */
    const char *what;
    double error, bound;
    unsigned long times;
} verdict;

static verdict verdicts[48];
static size_t verdict_count;

static void record(const char *what, double error, double bound)
{
    size_t v = 0;
    while (v < verdict_count && strcmp(verdicts[v].what, what) != 0) v++;
    if (v == verdict_count) {
        verdicts[verdict_count].what = what;
        verdicts[verdict_count].bound = bound;
        verdicts[verdict_count].times = 0;
        verdicts[verdict_count++].error = 0;
    }
    verdicts[v].times++;
    if (!(error <= verdicts[v].error)) verdicts[v].error = error;
    CHECK_NEAR(error, 0, bound);
}

static void fill(double *a, size_t n, double centre, double spread, nrm_rng *rng)
{
    size_t i;
    for (i = 0; i < n; i++) a[i] = centre + spread * nrm_rng_normal(rng);
}

static nrm_rng stream(uint64_t number_of)
{
    nrm_rng rng;
    nrm_rng_seed(&rng, 2018, number_of);
    return rng;
}

/* ---- the papers ------------------------------------------------------------------------------ */

typedef struct norm_shape {
    int norm, mode;
    size_t N, C, S;
    double eps;
    const double *m, *u;          /* running statistics */
    const double *factor, *offset; /* what noisy batch norm has drawn */
    const double *w;              /* the loss is ∑ w·y */
} norm_shape;

/* One mean, one variance, for `count` values: Ioffe and Szegedy, algorithm 1; Ba et al., (3). */
static void standardize(number *y, const number *x, const size_t *at, size_t count, double eps)
{
    number mean = 0, variance = 0, deviation;
    size_t i;
    for (i = 0; i < count; i++) mean += x[at[i]];
    mean /= (double)count;
    for (i = 0; i < count; i++) variance += (x[at[i]] - mean) * (x[at[i]] - mean);
    variance /= (double)count;
    deviation = csqrt(variance + eps);
    for (i = 0; i < count; i++) y[at[i]] = (x[at[i]] - mean) / deviation;
}

/* y of any of the norms; gamma and beta are [C]. */
static void paper_norm(number *y, const norm_shape *k, const number *x, const number *gamma,
                       const number *beta)
{
    const int rows = k->norm == NRM_LAYER_NORM, noisy = k->norm == NRM_NOISY_BATCH_NORM;
    size_t at[NUMBERS], c, n, s, count;
    for (c = 0; c < (rows ? k->N : k->C); c++) {
        count = 0;
        for (n = 0; n < (rows ? k->C : k->N); n++)
            for (s = 0; s < k->S; s++)
                at[count++] = rows ? c * k->C + n : (n * k->C + c) * k->S + s;
        if (rows || k->mode == NRM_TRAIN)
            standardize(y, x, at, count, k->eps);
        else
            for (n = 0; n < count; n++) y[at[n]] = (x[at[n]] - k->m[c]) / sqrt(k->u[c] + k->eps);
    }
    for (n = 0; n < k->N * k->C * k->S; n++) {
        c = n / k->S % k->C;
        y[n] = gamma[c] * y[n] + beta[c];
        if (noisy && k->mode == NRM_TRAIN) y[n] = k->factor[n] * y[n] + k->offset[n];
    }
}

static number paper_activation(int activation, number x)
{
    switch (activation) {
    case NRM_RELU: return creal(x) > 0 ? x : 0;
    case NRM_TANH: return ctanh(x);
    case NRM_SIGMOID: return 1 / (1 + cexp(-x));
    default: return x;
    }
}

/* The mean of −ln softmax(z)[label]. The shift is a real constant, which changes nothing. */
static number paper_cross_entropy(const number *z, const int *labels, size_t N, size_t C)
{
    number loss = 0;
    size_t n, c;
    for (n = 0; n < N; n++, z += C) {
        number sum = 0;
        double shift = creal(z[0]);
        for (c = 1; c < C; c++) shift = creal(z[c]) > shift ? creal(z[c]) : shift;
        for (c = 0; c < C; c++) sum += cexp(z[c] - shift);
        loss += clog(sum) + shift - z[labels[n]];
    }
    return loss / (double)N;
}

static void paper_linear(number *y, const number *x, const number *W, const number *b, size_t N,
                         size_t in, size_t out)
{
    size_t n, i, j;
    for (n = 0; n < N; n++)
        for (j = 0; j < out; j++) {
            y[n * out + j] = b != NULL ? b[j] : 0;
            for (i = 0; i < in; i++) y[n * out + j] += x[n * in + i] * W[i * out + j];
        }
}

/* The draws of noisy batch norm, unit by unit: what the code does with the same stream. */
static void draw_noise(double *factor, double *offset, const nrm_noise *noise, nrm_rng *rng,
                       size_t N, size_t C, size_t S)
{
    size_t c, n, s;
    for (c = 0; c < C; c++) {
        const double mu = noise->mean_range * (ldexp(nrm_rng_u32(rng), -31) - 1);
        const double sigma = 1 + (noise->scale_max - 1) * nrm_rng_uniform(rng);
        for (n = 0; n < N; n++)
            for (s = 0; s < S; s++) {
                const size_t at = (n * C + c) * S + s;
                offset[at] = mu + noise->mean_jitter * (ldexp(nrm_rng_u32(rng), -31) - 1);
                factor[at] = sigma + noise->scale_jitter * nrm_rng_normal(rng);
            }
    }
}

/* ---- the norm layers ------------------------------------------------------------------------- */

/* theta: x [N][C][S], gamma [C], beta [C]. */
static number norm_loss(const void *shape, const number *theta)
{
    const norm_shape *k = (const norm_shape *)shape;
    const size_t count = k->N * k->C * k->S;
    number y[NUMBERS], loss = 0;
    size_t i;
    paper_norm(y, k, theta, theta + count, theta + count + k->C);
    for (i = 0; i < count; i++) loss += k->w[i] * y[i];
    return loss;
}

typedef struct norm_data {
    double theta[NUMBERS], grad[NUMBERS], size[NUMBERS]; /* x, gamma, beta one after the other */
    double w[NUMBERS], m[CHANNELS], u[CHANNELS], factor[NUMBERS], offset[NUMBERS];
    nrm_noise noise;
    nrm_rng draws;
} norm_data;

/* Both passes of the header, or of a variant: fills grad. */
static int header_norm(norm_data *d, const norm_shape *k, double *rstd)
{
    const size_t count = k->N * k->C * k->S;
    const double *x = d->theta, *gamma = x + count, *beta = gamma + k->C;
    double *dgamma = d->grad + count, *dbeta = dgamma + k->C;
    double y[NUMBERS], scale[NUMBERS], mean[CHANNELS], drawn_m[CHANNELS], drawn_u[CHANNELS];
    nrm_running running;
    nrm_rng rng = d->draws;
    int rc;
    memset(&running, 0, sizeof running);
    memset(d->grad, 0, sizeof d->grad);
    memcpy(drawn_m, d->m, sizeof drawn_m);
    memcpy(drawn_u, d->u, sizeof drawn_u);
    running.mean = drawn_m;
    running.var = drawn_u;
    running.new_weight = 0.1;
    if (k->norm == NRM_LAYER_NORM) {
        rc = nrm_layernorm_forward(y, mean, rstd, x, gamma, beta, k->eps, k->N, k->C);
        return rc != NRM_OK ? rc
                            : nrm_layernorm_backward(d->grad, dgamma, dbeta, d->w, x, mean, rstd,
                                                     gamma, k->N, k->C);
    }
    if (k->norm == NRM_BATCH_NORM) {
        rc = nrm_batchnorm_forward(y, mean, rstd, &running, x, gamma, beta, k->mode, k->eps, k->N,
                                   k->C, k->S);
        return rc != NRM_OK ? rc
                            : nrm_batchnorm_backward(d->grad, dgamma, dbeta, d->w, x, mean, rstd,
                                                     gamma, k->mode, k->N, k->C, k->S);
    }
    rc = nrm_noisy_batchnorm_forward(y, scale, mean, rstd, &running, x, gamma, beta, &d->noise,
                                     &rng, k->mode, k->eps, k->N, k->C, k->S);
    return rc != NRM_OK ? rc
                        : nrm_noisy_batchnorm_backward(d->grad, dgamma, dbeta, d->w, scale, x,
                                                       mean, rstd, gamma, k->mode, k->N, k->C,
                                                       k->S);
}

/* The size of the terms that a gradient is made of: r·max|γ·w| for x, ∑|w| for γ and β. */
static void gradient_sizes(norm_data *d, const norm_shape *k, const double *rstd)
{
    const size_t count = k->N * k->C * k->S;
    const int rows = k->norm == NRM_LAYER_NORM;
    double largest[CHANNELS] = {0};
    size_t i;
    for (i = 0; i < 2 * k->C; i++) d->size[count + i] = 0;
    for (i = 0; i < count; i++) {
        const size_t c = i / k->S % k->C, group = rows ? i / k->C : c;
        const double factor = k->norm == NRM_NOISY_BATCH_NORM ? fabs(d->factor[i]) : 1;
        const double g = fabs(d->theta[count + c] * d->w[i]) * factor * rstd[group];
        largest[group] = g > largest[group] ? g : largest[group];
        d->size[count + c] += fabs(d->w[i]);
        d->size[count + k->C + c] += fabs(d->w[i]);
    }
    for (i = 0; i < count; i++) d->size[i] = largest[rows ? i / k->C : i / k->S % k->C];
}

static double norm_error(int norm, int mode, size_t N, size_t C, size_t S, double scale,
                         nrm_rng *rng)
{
    static norm_data d;
    const size_t count = N * C * S;
    double rstd[CHANNELS];
    norm_shape k;
    size_t c;
    memset(&d, 0, sizeof d);
    k.norm = norm;
    k.mode = mode;
    k.N = N;
    k.C = C;
    k.S = S;
    k.eps = nrm_rng_below(rng, 2) ? 1e-5 : 1e-3;
    k.m = d.m;
    k.u = d.u;
    k.factor = d.factor;
    k.offset = d.offset;
    k.w = d.w;
    fill(d.theta, count, 0.7 * scale, scale, rng);
    fill(d.theta + count, C, 1.5, 0.5, rng);
    fill(d.theta + count + C, C, -0.5, 1, rng);
    fill(d.w, count, 0.2, 1, rng);
    fill(d.m, C, 0.5 * scale, 0.2 * scale, rng);
    for (c = 0; c < C; c++) d.u[c] = scale * scale * (0.5 + nrm_rng_uniform(rng));
    d.noise = nrm_noise_paper();
    d.draws = *rng;
    draw_noise(d.factor, d.offset, &d.noise, rng, N, C, S);
    if (header_norm(&d, &k, rstd) != NRM_OK) return HUGE_VAL;
    gradient_sizes(&d, &k, rstd);
    return complex_step(norm_loss, &k, d.theta, count + 2 * C, d.grad, d.size);
}

static void all_shapes(const char *what, int norm, int mode, uint64_t number_of)
{
    nrm_rng rng = stream(number_of);
    size_t b, p, s;
    for (b = 0; b < LENGTH(batches); b++)
        for (p = 0; p < LENGTH(positions); p++)
            for (s = 0; s < LENGTH(scales); s++) {
                const size_t C = batches[b] < 32 ? 3 : 1;
                record(what, norm_error(norm, mode, batches[b], C, positions[p], scales[s], &rng),
                       ONE_LAYER);
            }
}

static void test_batch_norm_in_training(void)
{
    all_shapes("batch norm, train", NRM_BATCH_NORM, NRM_TRAIN, 1);
}

static void test_batch_norm_frozen(void)
{
    all_shapes("batch norm, frozen", NRM_BATCH_NORM, NRM_FROZEN, 2);
}

static void test_noisy_batch_norm(void)
{
    all_shapes("noisy batch norm", NRM_NOISY_BATCH_NORM, NRM_TRAIN, 3);
}

static void test_layer_norm(void)
{
    nrm_rng rng = stream(4);
    size_t b, s;
    for (b = 0; b < LENGTH(batches); b++)
        for (s = 0; s < LENGTH(scales); s++) {
            const size_t rows = 1 + b;
            record("layer norm",
                   norm_error(NRM_LAYER_NORM, NRM_TRAIN, rows, batches[b], 1, scales[s], &rng),
                   ONE_LAYER);
        }
}

/* ---- the layers between ---------------------------------------------------------------------- */

typedef struct linear_shape {
    size_t N, in, out;
    const double *w;
} linear_shape;

/* theta: x [N][in], W [in][out], b [out]. */
static number linear_loss(const void *shape, const number *theta)
{
    const linear_shape *k = (const linear_shape *)shape;
    const number *W = theta + k->N * k->in;
    number y[NUMBERS], loss = 0;
    size_t i;
    paper_linear(y, theta, W, W + k->in * k->out, k->N, k->in, k->out);
    for (i = 0; i < k->N * k->out; i++) loss += k->w[i] * y[i];
    return loss;
}

static void test_linear(void)
{
    nrm_rng rng = stream(5);
    size_t b, s, i;
    for (b = 0; b < LENGTH(batches); b++)
        for (s = 0; s < LENGTH(scales); s++) {
            double theta[NUMBERS], grad[NUMBERS] = {0}, size[NUMBERS], w[NUMBERS];
            const size_t N = batches[b], in = 5, out = 3 + b, weights = N * in;
            const size_t biases = weights + in * out;
            linear_shape k;
            k.N = N;
            k.in = in;
            k.out = out;
            k.w = w;
            fill(w, N * out, 0.2, 1, &rng);
            fill(theta, N * in, 0.5 * scales[s], scales[s], &rng);
            fill(theta + weights, in * out + out, 0.1, 1, &rng);
            for (i = 0; i < biases + out; i++)
                size[i] = i >= weights && i < biases ? scales[s] * (double)N : (double)N;
            CHECK_INT(nrm_linear_backward(grad, grad + weights, grad + biases, w, theta,
                                          theta + weights, N, in, out),
                      NRM_OK);
            record("linear", complex_step(linear_loss, &k, theta, biases + out, grad, size),
                   ONE_LAYER);
        }
}

typedef struct act_shape {
    int activation;
    size_t count;
    const double *w;
} act_shape;

static number act_loss(const void *shape, const number *theta)
{
    const act_shape *k = (const act_shape *)shape;
    number loss = 0;
    size_t i;
    for (i = 0; i < k->count; i++) loss += k->w[i] * paper_activation(k->activation, theta[i]);
    return loss;
}

static void check_activation(const char *what, int activation, uint64_t number_of)
{
    enum { COUNT = 60 };
    nrm_rng rng = stream(number_of);
    double x[COUNT], y[COUNT], dx[COUNT], w[COUNT], size[COUNT];
    act_shape k;
    size_t s, i;
    k.activation = activation;
    k.count = COUNT;
    k.w = w;
    for (s = 0; s < LENGTH(scales); s++) {
        fill(x, COUNT, 0.1 * scales[s], scales[s], &rng);
        fill(w, COUNT, 0.2, 1, &rng);
        for (i = 0; i < COUNT; i++) size[i] = fabs(w[i]);
        CHECK_INT(nrm_activation_forward(y, x, activation, COUNT), NRM_OK);
        CHECK_INT(nrm_activation_backward(dx, w, y, activation, COUNT), NRM_OK);
        record(what, complex_step(act_loss, &k, x, COUNT, dx, size), ONE_LAYER);
    }
}

static void test_activations(void)
{
    check_activation("relu", NRM_RELU, 6);
    check_activation("tanh", NRM_TANH, 7);
    check_activation("sigmoid", NRM_SIGMOID, 8);
}

typedef struct loss_shape {
    size_t N, C;
    const int *labels;
} loss_shape;

static number logits_loss(const void *shape, const number *theta)
{
    const loss_shape *k = (const loss_shape *)shape;
    return paper_cross_entropy(theta, k->labels, k->N, k->C);
}

static void test_cross_entropy(void)
{
    nrm_rng rng = stream(9);
    size_t b, s, i;
    for (b = 0; b < LENGTH(batches); b++)
        for (s = 0; s < LENGTH(scales); s++) {
            double z[NUMBERS], p[NUMBERS], dz[NUMBERS], size[NUMBERS], loss;
            const size_t N = batches[b], C = 2 + b;
            int labels[CHANNELS];
            loss_shape k;
            k.N = N;
            k.C = C;
            k.labels = labels;
            fill(z, N * C, 0.5 * scales[s], scales[s], &rng);
            for (i = 0; i < N; i++) labels[i] = (int)nrm_rng_below(&rng, (uint32_t)C);
            for (i = 0; i < N * C; i++) size[i] = 1 / (double)N;
            CHECK_INT(nrm_cross_entropy_forward(&loss, p, z, labels, N, C), NRM_OK);
            CHECK_INT(nrm_cross_entropy_backward(dz, p, labels, N, C), NRM_OK);
            record("cross-entropy", complex_step(logits_loss, &k, z, N * C, dz, size), ONE_LAYER);
        }
}

/* ---- a whole network ------------------------------------------------------------------------- */

enum { NET_IN = 4, NET_HIDDEN = 6, NET_CLASSES = 3, NET_MOST = 32, NET_BLOCK = 1 << 17 };

typedef struct net_shape {
    const nrm_mlp *net;
    size_t N;
    int mode;
    const double *x;
    const int *labels;
    double factor[2][NUMBERS], offset[2][NUMBERS];
} net_shape;

/* theta: all parameters, in the order in which the network keeps them. */
static number net_loss(const void *shape, const number *theta)
{
    const net_shape *k = (const net_shape *)shape;
    number h[NUMBERS], a[NUMBERS];
    size_t l, i;
    for (i = 0; i < k->N * NET_IN; i++) h[i] = k->x[i];
    for (l = 0; l < 2; l++) {
        const nrm_mlp_state *s = &k->net->state[l];
        const size_t width = s->shape.width, count = k->N * width;
        const number *b = theta + s->in * width, *gamma = b + (s->shape.bias ? width : 0);
        norm_shape n;
        n.norm = s->shape.norm;
        n.mode = k->mode;
        n.N = k->N;
        n.C = width;
        n.S = 1;
        n.eps = k->net->spec.eps;
        n.m = s->running.mean;
        n.u = s->running.var;
        n.factor = k->factor[l];
        n.offset = k->offset[l];
        paper_linear(a, h, theta, s->shape.bias ? b : NULL, k->N, s->in, width);
        for (i = 0; i < count && s->shape.norm_after; i++)
            a[i] = paper_activation(s->shape.activation, a[i]);
        if (n.norm != NRM_NO_NORM) paper_norm(h, &n, a, gamma, gamma + width);
        for (i = 0; i < count; i++) {
            if (n.norm == NRM_NO_NORM) h[i] = a[i];
            if (!s->shape.norm_after) h[i] = paper_activation(s->shape.activation, h[i]);
        }
        theta = gamma + (n.norm != NRM_NO_NORM ? 2 * width : 0);
    }
    return paper_cross_entropy(h, k->labels, k->N, NET_CLASSES);
}

/* What flows back to a layer may cancel nearly to nothing, as it does below a batch norm with two
   examples, and its rounding errors then are those of what has cancelled. So all gradients are
   measured by the largest of the network; those of the first weights, which multiply the data, by
   that times the scale of the data. */
static void net_sizes(const nrm_mlp *net, double scale, double *size)
{
    const size_t first = net->state[0].in * net->state[0].shape.width;
    double largest = 0;
    size_t i;
    for (i = 0; i < net->n_params; i++) {
        const double g = fabs(net->grads[i]) / (i < first ? scale : 1);
        largest = g > largest ? g : largest;
    }
    for (i = 0; i < net->n_params; i++) size[i] = i < first ? largest * scale : largest;
}

static double net_error(int norm, int norm_after, int activation, int mode, size_t N, double scale,
                        nrm_rng *rng)
{
    static unsigned char block[NET_BLOCK];
    double x[NUMBERS], size[NUMBERS];
    int labels[NET_MOST];
    nrm_mlp_spec spec = nrm_mlp_defaults();
    nrm_mlp_layer layer[2];
    nrm_mlp *net = NULL;
    net_shape k;
    nrm_rng draws;
    size_t l, i;
    memset(layer, 0, sizeof layer);
    layer[0].width = NET_HIDDEN;
    layer[1].width = NET_CLASSES;
    layer[0].activation = activation;
    layer[0].norm = layer[1].norm = norm;
    layer[0].norm_after = norm_after;
    layer[0].bias = layer[1].bias = 1;
    spec.inputs = NET_IN;
    spec.layers = 2;
    spec.layer = layer;
    spec.max_batch = NET_MOST;
    spec.eps = 0.01; /* else units that happen to vary little magnify the rounding before them */
    if (nrm_mlp_init(&net, block, sizeof block, &spec) != NRM_OK) return HUGE_VAL;
    fill(net->params, net->n_params, 0.3, 0.7, rng);
    for (i = 0; i < NET_IN * NET_HIDDEN; i++) net->params[i] /= scale; /* sums of moderate size */
    fill(x, N * NET_IN, 0.5 * scale, scale, rng);
    for (i = 0; i < N; i++) labels[i] = (int)nrm_rng_below(rng, NET_CLASSES);
    for (l = 0; l < 3 && mode == NRM_FROZEN; l++) /* running statistics worth having */
        (void)nrm_mlp_forward(net, x, N, NRM_TRAIN);
    draws = net->rng;
    k.net = net;
    k.N = N;
    k.mode = mode;
    k.x = x;
    k.labels = labels;
    for (l = 0; l < 2; l++)
        draw_noise(k.factor[l], k.offset[l], &spec.noise, &draws, N, layer[l].width, 1);
    if (nrm_mlp_gradient(net, NULL, x, labels, N, mode) != NRM_OK) return HUGE_VAL;
    net_sizes(net, scale, size);
    return complex_step(net_loss, &k, net->params, net->n_params, net->grads, size);
}

static void check_net(const char *what, int norm, uint64_t number_of)
{
    static const int activation[] = {NRM_TANH, NRM_SIGMOID, NRM_RELU};
    static const double net_scales[] = {1e-3, 1, 1e3};
    nrm_rng rng = stream(number_of);
    size_t b, s, a;
    for (b = 0; b < LENGTH(batches); b++)
        for (s = 0; s < LENGTH(net_scales); s++)
            for (a = 0; a < LENGTH(activation); a++) {
                const size_t N = batches[b];
                const double scale = net_scales[s];
                record(what, net_error(norm, 0, activation[a], NRM_TRAIN, N, scale, &rng),
                       NETWORK);
                record(what, net_error(norm, 1, activation[a], NRM_TRAIN, N, scale, &rng),
                       NETWORK);
                record(what, net_error(norm, 0, activation[a], NRM_FROZEN, N, scale, &rng),
                       NETWORK);
            }
}

static void test_network_without_norm(void)
{
    check_net("network without norm", NRM_NO_NORM, 10);
}

static void test_network_with_batch_norm(void)
{
    check_net("network, batch norm", NRM_BATCH_NORM, 11);
}

static void test_network_with_layer_norm(void)
{
    check_net("network, layer norm", NRM_LAYER_NORM, 12);
}

static void test_network_with_noisy_batch_norm(void)
{
    check_net("network, noisy", NRM_NOISY_BATCH_NORM, 13);
}

/* ---- Lp batch norm and weight norm ----------------------------------------------------------- */

typedef struct lp_shape {
    int p, centred, frozen;
    size_t N, C, S;
    double eps;
    const double *m, *a, *w; /* running mean and size; the loss is ∑ w·y */
} lp_shape;

/* |z| is z or −z, by the sign of the real part. */
static number absolute(number z)
{
    return creal(z) < 0 ? -z : z;
}

/* What channel c is divided by: of the first largest value, if there are several. */
static number paper_size(const lp_shape *k, const number *x, number mean, size_t c)
{
    const size_t M = k->N * k->S;
    number t = 0;
    size_t i;
    for (i = 0; i < M; i++) {
        const number value = x[(i / k->S * k->C + c) * k->S + i % k->S];
        const number u = value - (k->centred ? mean : 0);
        if (k->p == NRM_L1) t += absolute(u) / (double)M;
        if (k->p == NRM_L2) t += u * u / (double)M;
        if (k->p == NRM_LINF && creal(absolute(u)) > creal(t)) t = absolute(u);
    }
    return k->p == NRM_L2 ? csqrt(t) : t;
}

/* theta: x [N][C][S], gamma [C], beta [C]. */
static number lp_loss(const void *shape, const number *theta)
{
    const lp_shape *k = (const lp_shape *)shape;
    const size_t M = k->N * k->S;
    const number *gamma = theta + M * k->C, *beta = gamma + k->C;
    number loss = 0;
    size_t c, i;
    for (c = 0; c < k->C; c++) {
        number mean = 0, t;
        for (i = 0; i < M; i++) mean += theta[(i / k->S * k->C + c) * k->S + i % k->S] / (double)M;
        t = k->frozen ? k->a[c] : paper_size(k, theta, mean, c);
        if (k->frozen) mean = k->m[c];
        for (i = 0; i < M; i++) {
            const size_t at = (i / k->S * k->C + c) * k->S + i % k->S;
            loss += k->w[at] * (gamma[c] * (theta[at] - mean) / (t + k->eps) + beta[c]);
        }
    }
    return loss;
}

static double lp_error(int p, int frozen, size_t N, size_t C, size_t S, double scale, nrm_rng *rng)
{
    static double theta[NUMBERS], grad[NUMBERS], size[NUMBERS], w[NUMBERS], y[NUMBERS];
    const size_t count = N * C * S;
    const double M = (double)(N * S);
    double m[CHANNELS], a[CHANNELS], mean[CHANNELS], t[CHANNELS];
    double *gamma = theta + count, *beta = gamma + C;
    const int mode = frozen ? NRM_FROZEN : NRM_TRAIN;
    nrm_running running;
    lp_shape k;
    size_t i;
    k.p = p % NRM_CENTRED;
    k.centred = p > NRM_CENTRED;
    k.frozen = frozen;
    k.N = N;
    k.C = C;
    k.S = S;
    k.eps = nrm_rng_below(rng, 2) ? 1e-5 : scale / 8;
    k.m = m;
    k.a = a;
    k.w = w;
    fill(theta, count, 0.7 * scale, scale, rng);
    fill(gamma, C, 1.5, 0.5, rng);
    fill(beta, C, -0.5, 1, rng);
    fill(w, count, 0.2, 1, rng);
    fill(m, C, 0.5 * scale, 0.2 * scale, rng);
    for (i = 0; i < C; i++) a[i] = scale * (0.5 + nrm_rng_uniform(rng));
    memset(&running, 0, sizeof running);
    memset(grad, 0, sizeof grad);
    running.mean = m;
    running.var = a;
    if (nrm_lp_batchnorm_forward(y, mean, t, frozen ? &running : NULL, theta, gamma, beta, p, mode,
                                 k.eps, N, C, S) != NRM_OK ||
        nrm_lp_batchnorm_backward(grad, grad + count, grad + count + C, w, theta, mean, t, gamma, p,
                                  mode, k.eps, N, C, S) != NRM_OK)
        return HUGE_VAL;
    for (i = 0; i < 2 * C; i++) size[count + i] = 0;
    for (i = 0; i < count; i++) { /* the terms of dx: dy, and its sum, along x̂ and then along k */
        const size_t c = i / S % C;
        const double xhat = fabs(theta[i] - mean[c]) / (t[c] + k.eps);
        size[count + c] += fabs(w[i]) * (1 + xhat);
        size[count + C + c] += fabs(w[i]);
    }
    for (i = 0; i < count; i++) {
        const size_t c = i / S % C;
        size[i] = fabs(gamma[c]) / (t[c] + k.eps) * (size[count + c] + fabs(w[i]) * M) /
                  (k.p == NRM_LINF ? 1 : M);
    }
    return complex_step(lp_loss, &k, theta, count + 2 * C, grad, size);
}

static void lp_shapes(const char *what, int p, int frozen)
{
    nrm_rng rng = stream((uint64_t)(20 + 8 * frozen + p));
    size_t b, s, q;
    for (b = 0; b < LENGTH(batches); b++)
        for (q = 0; q < LENGTH(positions); q++)
            for (s = 0; s < LENGTH(scales); s++)
                record(what, lp_error(p, frozen, batches[b], batches[b] < 32 ? 3 : 1, positions[q],
                                      scales[s], &rng),
                       ONE_LAYER);
}

static void test_lp_batch_norm(void)
{
    lp_shapes("L1", NRM_L1, 0);
    lp_shapes("L2", NRM_L2, 0);
    lp_shapes("largest", NRM_LINF, 0);
    lp_shapes("L1, centred", NRM_L1 + NRM_CENTRED, 0);
    lp_shapes("L2, centred", NRM_L2 + NRM_CENTRED, 0);
    lp_shapes("largest, centred", NRM_LINF + NRM_CENTRED, 0);
    lp_shapes("L1, frozen", NRM_L1, 1);
}

typedef struct weight_shape {
    size_t in, out;
    const double *w;
} weight_shape;

/* Salimans and Kingma, (2). theta: v [in][out], g [out]. */
static number weight_loss(const void *shape, const number *theta)
{
    const weight_shape *k = (const weight_shape *)shape;
    number loss = 0;
    size_t i, j;
    for (j = 0; j < k->out; j++) {
        number squares = 0, sum = 0;
        for (i = 0; i < k->in; i++) {
            const number v = theta[i * k->out + j];
            squares += v * v;
            sum += k->w[i * k->out + j] * v;
        }
        loss += theta[k->in * k->out + j] * sum / csqrt(squares);
    }
    return loss;
}

static double weight_error(size_t in, size_t out, double scale, nrm_rng *rng)
{
    static double theta[NUMBERS], grad[NUMBERS], size[NUMBERS], w[NUMBERS], W[NUMBERS];
    const size_t count = in * out;
    double norm[CHANNELS];
    weight_shape k;
    size_t i;
    k.in = in;
    k.out = out;
    k.w = w;
    fill(theta, count, 0.3 * scale, scale, rng);
    fill(theta + count, out, 1.5, 0.5, rng);
    fill(w, count, 0.2, 1, rng);
    memset(grad, 0, sizeof grad);
    memset(size, 0, sizeof size);
    if (nrm_weightnorm_forward(W, norm, theta, theta + count, in, out) != NRM_OK ||
        nrm_weightnorm_backward(grad, grad + count, w, theta, norm, theta + count, in, out) !=
            NRM_OK)
        return HUGE_VAL;
    for (i = 0; i < count; i++) size[count + i % out] += fabs(w[i]);
    for (i = 0; i < count; i++)
        size[i] = fabs(theta[count + i % out]) / norm[i % out] * size[count + i % out];
    return complex_step(weight_loss, &k, theta, count + out, grad, size);
}

static void test_weight_norm(void)
{
    nrm_rng rng = stream(40);
    size_t b, q, s;
    for (b = 0; b < LENGTH(batches); b++)
        for (q = 0; q < LENGTH(positions); q++)
            for (s = 0; s < LENGTH(scales); s++)
                record("weight norm", weight_error(batches[b], positions[q], scales[s], &rng),
                       ONE_LAYER);
}

/* ---- the recurrent layer --------------------------------------------------------------------- */

/* theta: h[0] [N][H], x [T][N][in], Wx, Wh, gamma, beta. */
static size_t rnn_parts(const rnn_case *k, size_t *count)
{
    const size_t H = k->rnn.H;
    size_t i, all = 0;
    count[0] = k->rnn.N * H;
    count[1] = k->inputs;
    count[2] = k->rnn.in * H;
    count[3] = H * H;
    count[4] = count[5] = H;
    for (i = 0; i < 6; i++) all += count[i];
    return all;
}

static number rnn_loss(const void *shape, const number *theta)
{
    const rnn_case *k = (const rnn_case *)shape;
    const size_t N = k->rnn.N, H = k->rnn.H, in = k->rnn.in, step = N * H;
    const number *x = theta + step, *Wx = x + k->inputs, *Wh = Wx + in * H;
    const number *gamma = Wh + H * H, *beta = gamma + H;
    number h[RNN_BATCH * RNN_UNITS], a[RNN_BATCH * RNN_UNITS], z[RNN_BATCH * RNN_UNITS], loss = 0;
    size_t t, i;
    norm_shape norm;
    memset(&norm, 0, sizeof norm);
    norm.norm = k->rnn.norm;
    norm.mode = k->mode;
    norm.N = N;
    norm.C = H;
    norm.S = 1;
    norm.eps = k->rnn.eps;
    memcpy(h, theta, step * sizeof *h);
    for (t = 0; t <= k->rnn.T; t++) {
        for (i = 0; i < step; i++) loss += k->e[t * step + i] * h[i];
        if (t == k->rnn.T) break;
        paper_linear(a, x + t * N * in, Wx, NULL, N, in, H);
        paper_linear(z, h, Wh, NULL, N, H, H);
        for (i = 0; i < step; i++) a[i] += z[i];
        norm.m = k->run_mean + t * H;
        norm.u = k->run_var + t * H;
        if (norm.norm == NRM_NO_NORM)
            for (i = 0; i < step; i++) z[i] = a[i] + beta[i % H];
        else
            paper_norm(z, &norm, a, gamma, beta);
        for (i = 0; i < step; i++) h[i] = paper_activation(k->rnn.activation, z[i]);
    }
    return loss;
}

/* Errors are relative to the largest gradient of their array. */
static double rnn_error(rnn_case *k)
{
    double theta[NUMBERS], grad[NUMBERS], size[NUMBERS];
    size_t count[6], all = rnn_parts(k, count), part, i, at = 0;
    const double *value[6], *gradient[6];
    value[0] = k->h;
    value[1] = k->x;
    value[2] = k->Wx;
    value[3] = k->Wh;
    value[4] = k->gamma;
    value[5] = k->beta;
    gradient[0] = k->dh;
    gradient[1] = k->dx;
    gradient[2] = k->dWx;
    gradient[3] = k->dWh;
    gradient[4] = k->dgamma;
    gradient[5] = k->dbeta;
    if (all > NUMBERS || rnn_forward(k) != NRM_OK || rnn_backward(k) != NRM_OK) return HUGE_VAL;
    for (part = 0; part < 6; part++) {
        double largest = 0;
        for (i = 0; i < count[part]; i++) largest = fmax(largest, fabs(gradient[part][i]));
        if (largest == 0) largest = 1; /* gamma without a norm */
        for (i = 0; i < count[part]; i++, at++) {
            theta[at] = value[part][i];
            grad[at] = gradient[part][i];
            size[at] = largest;
        }
    }
    return complex_step(rnn_loss, k, theta, all, grad, size);
}

/* Up to 50 steps with weights that do not let the gradient explode: rounding would, along with it.
   A batch norm of two sequences takes nearly all of the gradient away (BN.23), and what its 50
   steps leave is small beside the terms it is made of. */
static void check_recurrent(const char *what, int norm, int mode, uint64_t number_of)
{
    static const int activation[] = {NRM_IDENTITY, NRM_TANH, NRM_SIGMOID, NRM_RELU};
    static const size_t T[] = {1, 2, 7, 50};
    static rnn_case k;
    nrm_rng rng = stream(number_of);
    size_t a, t, N;
    for (a = 0; a < LENGTH(activation); a++)
        for (t = 0; t < LENGTH(T); t++)
            for (N = 1; N <= 4; N++) {
                if (norm == NRM_BATCH_NORM && mode == NRM_TRAIN && N < (T[t] > 7 ? 3 : 2)) continue;
                rnn_prepare(&k, norm, mode, activation[a], T[t], N, 1 + N % 3, 5, 0.7, 0.05, &rng);
                record(what, rnn_error(&k), NETWORK);
            }
}

static void test_recurrent(void)
{
    check_recurrent("recurrent, no norm", NRM_NO_NORM, NRM_TRAIN, 20);
    check_recurrent("recurrent, layer norm", NRM_LAYER_NORM, NRM_TRAIN, 21);
    check_recurrent("recurrent, batch norm", NRM_BATCH_NORM, NRM_TRAIN, 22);
    check_recurrent("recurrent, frozen", NRM_BATCH_NORM, NRM_FROZEN, 23);
}

/* ---- the other norms ------------------------------------------------------------------------- */

enum { GROUPS, RMS, WITH_STD, RENORM, PORTIONS, PORTIONS_MASKED };

typedef struct other_shape {
    int kind;
    size_t N, C, S, G; /* of the kinds that know a batch, G = 1 */
    double eps;
    const unsigned char *mask;      /* [N][S] */
    const double *ratio, *offset;   /* of batch renorm: constants of the step */
    const double *w;
} other_shape;

static int by_rows(const other_shape *k)
{
    return k->kind <= WITH_STD;
}

/* What is normalized together: groups of an example's channels, or what counts of a channel. */
static size_t statistics_of(const other_shape *k)
{
    return by_rows(k) ? k->N * k->G : k->C;
}

static size_t members_of(size_t *at, const other_shape *k, size_t group)
{
    const size_t D = k->C / k->G * k->S;
    size_t count = 0, n, s;
    if (by_rows(k)) {
        for (n = 0; n < D; n++) at[n] = group * D + n;
        return D;
    }
    for (n = 0; n < k->N; n++)
        for (s = 0; s < k->S; s++)
            if (k->kind != PORTIONS_MASKED || k->mask[n * k->S + s])
                at[count++] = (n * k->C + group) * k->S + s;
    return count;
}

/* Zhang and Sennrich, (4), with ε in the root. */
static void divide_by_rms(number *y, const number *x, const size_t *at, size_t count, double eps)
{
    number squares = 0;
    size_t i;
    for (i = 0; i < count; i++) squares += x[at[i]] * x[at[i]];
    for (i = 0; i < count; i++) y[at[i]] = x[at[i]] / csqrt(squares / (double)count + eps);
}

/* (x − mean)/(std + ε), where std divides by one less. */
static void divide_by_std(number *y, const number *x, const size_t *at, size_t count, double eps)
{
    number mean = 0, squares = 0;
    size_t i;
    for (i = 0; i < count; i++) mean += x[at[i]] / (double)count;
    for (i = 0; i < count; i++) squares += (x[at[i]] - mean) * (x[at[i]] - mean);
    for (i = 0; i < count; i++)
        y[at[i]] = (x[at[i]] - mean) / (csqrt(squares / (double)(count - 1)) + eps);
}

/* theta: x [N][C][S], gamma [C], beta [C]. */
static number other_loss(const void *shape, const number *theta)
{
    const other_shape *k = (const other_shape *)shape;
    const size_t count = k->N * k->C * k->S;
    const number *gamma = theta + count, *beta = gamma + k->C;
    number y[NUMBERS], loss = 0;
    size_t at[NUMBERS], group, i;
    for (group = 0; group < statistics_of(k); group++) {
        const size_t members = members_of(at, k, group);
        if (k->kind == RMS)
            divide_by_rms(y, theta, at, members, k->eps);
        else if (k->kind == WITH_STD)
            divide_by_std(y, theta, at, members, k->eps);
        else
            standardize(y, theta, at, members, k->eps);
        for (i = 0; i < members; i++) {
            const size_t c = at[i] / k->S % k->C;
            if (k->kind == RENORM) y[at[i]] = k->ratio[c] * y[at[i]] + k->offset[c];
            loss += k->w[at[i]] * (gamma[c] * y[at[i]] + (k->kind == RMS ? 0 : beta[c]));
        }
    }
    return loss;
}

typedef struct other_data {
    double theta[NUMBERS], grad[NUMBERS], size[NUMBERS], w[NUMBERS], y[NUMBERS];
    double mean[NUMBERS], rstd[NUMBERS], m[CHANNELS], u[CHANNELS];
    double ratio[CHANNELS], offset[CHANNELS];
    unsigned char mask[NUMBERS];
} other_data;

/* Batch norm in three portions, of which some may be empty. */
static int header_portions(other_data *d, const other_shape *k, nrm_rng *rng)
{
    const size_t count = k->N * k->C * k->S, each = k->C * k->S;
    const double *x = d->theta, *gamma = x + count, *beta = gamma + k->C;
    double *dgamma = d->grad + count, *dbeta = dgamma + k->C;
    size_t from[4] = {0, 0, 0, 0}, i, c;
    nrm_stats part[CHANNELS], stats[CHANNELS];
    nrm_sums some[CHANNELS], sums[CHANNELS];
    int rc = NRM_OK;
    from[1] = nrm_rng_below(rng, (uint32_t)(k->N + 1));
    from[2] = from[1] + nrm_rng_below(rng, (uint32_t)(k->N - from[1] + 1));
    from[3] = k->N;
    memset(stats, 0, sizeof stats);
    memset(sums, 0, sizeof sums);
    for (i = 0; i < 3 && rc == NRM_OK; i++) {
        memset(part, 0, sizeof part);
        rc = nrm_stats_update(part, x + from[i] * each,
                              k->kind == PORTIONS ? NULL : d->mask + from[i] * k->S,
                              from[i + 1] - from[i], k->C, k->S);
        (void)nrm_stats_merge(stats, part, k->C);
    }
    for (i = 0; i < 3 && rc == NRM_OK; i++) {
        const unsigned char *mask = k->kind == PORTIONS ? NULL : d->mask + from[i] * k->S;
        const size_t at = from[i] * each, N = from[i + 1] - from[i];
        rc = nrm_sync_batchnorm_forward(d->y + at, d->mean, d->rstd, NULL, x + at, mask, stats,
                                        gamma, beta, k->eps, N, k->C, k->S);
        if (rc != NRM_OK) return rc;
        rc = nrm_sync_batchnorm_sums(some, dgamma, dbeta, d->w + at, x + at, mask, d->mean,
                                     d->rstd, N, k->C, k->S);
        for (c = 0; c < k->C; c++) {
            sums[c].dy += some[c].dy;
            sums[c].dy_xhat += some[c].dy_xhat;
        }
    }
    for (i = 0; i < 3 && rc == NRM_OK; i++) {
        const size_t at = from[i] * each;
        rc = nrm_sync_batchnorm_backward(d->grad + at, d->w + at, x + at,
                                         k->kind == PORTIONS ? NULL : d->mask + from[i] * k->S,
                                         d->mean, d->rstd, gamma, stats, sums,
                                         from[i + 1] - from[i], k->C, k->S);
    }
    return rc;
}

static int header_renorm(other_data *d, const other_shape *k)
{
    const size_t count = k->N * k->C * k->S;
    const double *x = d->theta, *gamma = x + count, *beta = gamma + k->C;
    double *dgamma = d->grad + count;
    nrm_running running;
    int rc;
    memset(&running, 0, sizeof running);
    running.mean = d->m;
    running.var = d->u;
    running.new_weight = 0.1;
    rc = nrm_batchrenorm_forward(d->y, d->ratio, d->offset, d->mean, d->rstd, &running, x, gamma,
                                 beta, 1.2, 0.5, NRM_TRAIN, k->eps, k->N, k->C, k->S);
    return rc != NRM_OK ? rc
                        : nrm_batchrenorm_backward(d->grad, dgamma, dgamma + k->C, d->w, x,
                                                   d->ratio, d->offset, d->mean, d->rstd, gamma,
                                                   NRM_TRAIN, k->N, k->C, k->S);
}

/* Both passes of the header, or of a variant: fills grad. */
static int header_other(other_data *d, const other_shape *k, nrm_rng *rng)
{
    const size_t count = k->N * k->C * k->S, N = k->N, C = k->C, S = k->S;
    const double *x = d->theta, *gamma = x + count, *beta = gamma + C;
    double *dx = d->grad, *dgamma = dx + count, *dbeta = dgamma + C;
    int rc;
    if (k->kind == RENORM) return header_renorm(d, k);
    if (k->kind >= PORTIONS) return header_portions(d, k, rng);
    if (k->kind == RMS) {
        rc = nrm_rmsnorm_forward(d->y, d->rstd, x, gamma, k->eps, N, C);
        return rc != NRM_OK ? rc : nrm_rmsnorm_backward(dx, dgamma, d->w, x, d->rstd, gamma, N, C);
    }
    if (k->kind == WITH_STD) {
        layernorm_std_forward(d->y, d->mean, d->rstd, x, gamma, beta, k->eps, N, C);
        layernorm_std_backward(dx, dgamma, dbeta, d->w, x, gamma, k->eps, N, C);
        return NRM_OK;
    }
    rc = nrm_groupnorm_forward(d->y, d->mean, d->rstd, x, gamma, beta, k->eps, N, C, S, k->G);
    return rc != NRM_OK ? rc
                        : nrm_groupnorm_backward(dx, dgamma, dbeta, d->w, x, d->mean, d->rstd,
                                                 gamma, N, C, S, k->G);
}

/* As gradient_sizes. */
static void other_sizes(other_data *d, const other_shape *k)
{
    const size_t count = k->N * k->C * k->S;
    size_t at[NUMBERS], group, i;
    for (i = 0; i < count + 2 * k->C; i++) d->size[i] = 1; /* where a mask is, all is 0 */
    for (i = 0; i < 2 * k->C; i++) d->size[count + i] = 0;
    for (group = 0; group < statistics_of(k); group++) {
        const size_t members = members_of(at, k, group);
        double largest = 0;
        for (i = 0; i < members; i++) {
            const size_t c = at[i] / k->S % k->C;
            const double factor = k->kind == RENORM ? d->ratio[c] : 1;
            largest = fmax(largest, fabs(d->theta[count + c] * d->w[at[i]]) * factor);
            d->size[count + c] += fabs(d->w[at[i]]);
            d->size[count + k->C + c] += fabs(d->w[at[i]]);
        }
        for (i = 0; i < members; i++) d->size[at[i]] = largest * d->rstd[group];
    }
}

static double other_error(int kind, size_t N, size_t C, size_t S, size_t G, double scale,
                          nrm_rng *rng)
{
    static other_data d;
    const size_t count = N * C * S;
    other_shape k;
    size_t i;
    memset(&d, 0, sizeof d);
    k.kind = kind;
    k.N = N;
    k.C = C;
    k.S = S;
    k.G = G;
    k.eps = nrm_rng_below(rng, 2) ? 1e-5 : 1e-3;
    k.mask = d.mask;
    k.ratio = d.ratio;
    k.offset = d.offset;
    k.w = d.w;
    fill(d.theta, count, 0.7 * scale, scale, rng);
    fill(d.theta + count, C, 1.5, 0.5, rng);
    fill(d.theta + count + C, C, -0.5, 1, rng);
    fill(d.w, count, 0.2, 1, rng);
    fill(d.m, C, 0.5 * scale, 0.5 * scale, rng);
    for (i = 0; i < C; i++) d.u[i] = scale * scale * (0.5 + nrm_rng_uniform(rng));
    for (i = 0; i < N * S; i++) d.mask[i] = i < 2 || nrm_rng_below(rng, 3) > 0;
    if (header_other(&d, &k, rng) != NRM_OK) return HUGE_VAL;
    other_sizes(&d, &k);
    return complex_step(other_loss, &k, d.theta, count + (kind == RMS ? 1 : 2) * C, d.grad, d.size);
}

static void test_group_norm(void)
{
    static const size_t shape[][4] = {{1, 2, 1, 1}, {2, 6, 1, 2}, {3, 6, 5, 3}, {2, 4, 2, 4},
                                      {3, 4, 7, 1}, {5, 6, 3, 2}, {1, 1, 9, 1}, {4, 6, 1, 3},
                                      {2, 3, 40, 3}, {2, 8, 2, 2}, {7, 32, 1, 4}, {2, 5, 2, 5}};
    nrm_rng rng = stream(14);
    size_t i, s;
    for (i = 0; i < LENGTH(shape); i++)
        for (s = 0; s < LENGTH(scales); s++)
            record(shape[i][3] == shape[i][1] ? "instance norm" : "group norm",
                   other_error(GROUPS, shape[i][0], shape[i][1], shape[i][2], shape[i][3],
                               scales[s], &rng),
                   ONE_LAYER);
}

static void test_rms_norm(void)
{
    static const size_t widths[] = {1, 2, 3, 7, 32};
    nrm_rng rng = stream(15);
    size_t b, s;
    for (b = 0; b < LENGTH(widths); b++)
        for (s = 0; s < LENGTH(scales); s++)
            record("RMS norm", other_error(RMS, 1 + b, widths[b], 1, 1, scales[s], &rng),
                   ONE_LAYER);
}

static void test_layer_norm_with_std(void)
{
    nrm_rng rng = stream(16);
    size_t b, s;
    for (b = 0; b < LENGTH(batches); b++)
        for (s = 0; s < LENGTH(scales); s++)
            record("layer norm, s + eps",
                   other_error(WITH_STD, 1 + b, batches[b], 1, 1, scales[s], &rng), ONE_LAYER);
}

static void batches_of_all_shapes(const char *what, int kind, uint64_t number_of)
{
    nrm_rng rng = stream(number_of);
    size_t b, p, s;
    for (b = 0; b < LENGTH(batches); b++)
        for (p = 0; p < LENGTH(positions); p++)
            for (s = 0; s < LENGTH(scales); s++)
                record(what,
                       other_error(kind, batches[b], batches[b] < 32 ? 3 : 1, positions[p], 1,
                                   scales[s], &rng),
                       ONE_LAYER);
}

static void test_batch_renorm(void)
{
    batches_of_all_shapes("batch renorm", RENORM, 17);
}

static void test_batch_norm_in_portions(void)
{
    batches_of_all_shapes("batch norm, portions", PORTIONS, 18);
    batches_of_all_shapes("batch norm, masked", PORTIONS_MASKED, 19);
}

/* Which equations a family of cases bears witness to. */
static const struct {
    const char *what, *tags;
} witnessed[] = {
    {"batch norm, train", "BN.12 BN.13 BN.19"},
    {"batch norm, frozen", "BN.20"},
    {"noisy batch norm", "NB.7"},
    {"layer norm", "LN.8 LN.9 LN.14"},
    {"linear", "LIN.2 LIN.3 LIN.4"},
    {"relu", "ACT.4"},
    {"tanh", "ACT.5"},
    {"sigmoid", "ACT.6"},
    {"cross-entropy", "CE.6"},
    {"L1", "LP.11"},
    {"L2", "LP.11"},
    {"largest", "LP.11"},
    {"L1, centred", "LP.11"},
    {"L2, centred", "LP.11"},
    {"largest, centred", "LP.11"},
    {"L1, frozen", "LP.12"},
    {"weight norm", "WN.6 WN.8"},
    {"recurrent, layer norm", "RNN.4 RNN.5 RNN.6 RNN.7 RNN.8 RNN.9"},
    {"group norm", "GN.4 GN.5 GN.7"},
    {"instance norm", "GN.4 GN.5 GN.7"},
    {"RMS norm", "RMS.3 RMS.4"},
    {"layer norm, s + eps", "LN.18"},
    {"batch renorm", "BR.4 BR.5"},
    {"batch norm, portions", "ST.6"},
    {"batch norm, masked", "ST.6"},
};

static void print_equations(const verdict *seen)
{
    size_t i;
    for (i = 0; i < LENGTH(witnessed); i++) {
        const char *at = witnessed[i].tags;
        char tag[8];
        if (strcmp(witnessed[i].what, seen->what) != 0) continue;
        for (; sscanf(at, "%7s", tag) == 1; at += strspn(at, " ")) {
            printf("%-7s C %8lu %11.2e %9.1e%s\n", tag, seen->times, seen->error, seen->bound,
                   seen->error <= seen->bound ? "" : "  FAILED");
            at += strlen(tag);
        }
    }
}

int main(int argc, char **argv)
{
    size_t v;
    RUN(test_batch_norm_in_training);
    RUN(test_batch_norm_frozen);
    RUN(test_noisy_batch_norm);
    RUN(test_layer_norm);
    RUN(test_linear);
    RUN(test_activations);
    RUN(test_cross_entropy);
    RUN(test_network_without_norm);
    RUN(test_network_with_batch_norm);
    RUN(test_network_with_layer_norm);
    RUN(test_network_with_noisy_batch_norm);
    RUN(test_lp_batch_norm);
    RUN(test_weight_norm);
    RUN(test_recurrent);
    RUN(test_group_norm);
    RUN(test_rms_norm);
    RUN(test_layer_norm_with_std);
    RUN(test_batch_renorm);
    RUN(test_batch_norm_in_portions);
    if (argc > 1 && strcmp(argv[1], "-v") == 0)
        for (v = 0; v < verdict_count; v++) {
            printf("%-22s %8.1e of %.0e\n", verdicts[v].what, verdicts[v].error, verdicts[v].bound);
            print_equations(&verdicts[v]);
        }
    return test_report("complexstep");
}
