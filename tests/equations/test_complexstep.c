/* test_complexstep.c - the gradients of networks and of the recurrent layer, against a witness that
   shares nothing with them; layers.claims has those of single layers.

   Evaluate a function at x + i·h with a tiny h: the imaginary part, divided by h, is its
   derivative, to all digits, for nothing is subtracted. So here are the forward passes once more,
   written straight from the papers in complex numbers, and what they say is compared with the
   header's backward passes. In double only. -v prints the largest errors, and what they say about
   the equations: rows as those of test_derivations -v. */
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

static const size_t batches[] = {2, 3, 4, 7, 32};

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

/* Which equations a family of cases bears witness to. */
static const struct {
    const char *what, *tags;
} witnessed[] = {
    {"recurrent, layer norm", "RNN.4 RNN.5 RNN.6 RNN.7 RNN.8 RNN.9"},
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
    RUN(test_network_without_norm);
    RUN(test_network_with_batch_norm);
    RUN(test_network_with_layer_norm);
    RUN(test_network_with_noisy_batch_norm);
    RUN(test_recurrent);
    if (argc > 1 && strcmp(argv[1], "-v") == 0)
        for (v = 0; v < verdict_count; v++) {
            printf("%-22s %8.1e of %.0e\n", verdicts[v].what, verdicts[v].error, verdicts[v].bound);
            print_equations(&verdicts[v]);
        }
    return test_report("complexstep");
}
