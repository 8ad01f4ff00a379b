/* plain_code.c - the plain functions of the chapters beside the header's, for plain_code.sh.

   Each check draws random data, runs both, and notes the largest difference, relative to the
   largest value. All have to agree to 1e-12; and with any tagged line of the pages made wrong by a
   factor of 1.001 at least one must not. */
#include "normlayers.h"
#include "lab/draw.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pages.h"

#define LENGTH(a) (sizeof(a) / sizeof *(a))
static nrm_rng rng;
static double worst; /* of the check that runs */

static void draw(double *a, int n, double centre)
{
    for (int i = 0; i < n; i++) a[i] = centre + draw_normal(&rng);
}
/* Parameters' gradients are added to what is there: both sides start from the same numbers. */
static void start(double *a, double *b, int n)
{
    draw(a, n, 0);
    memcpy(b, a, (size_t)n * sizeof *a);
}
static void same(const double *ours, const double *header, int n)
{
    double size = 0;
    for (int i = 0; i < n; i++) size = fmax(size, fabs(header[i]));
    for (int i = 0; i < n; i++) {
        const double apart = fabs(ours[i] - header[i]);
        if (!(apart <= worst * size)) worst = apart / size;
    }
}
static void fine(int rc)
{
    if (rc == NRM_OK) return;
    printf("the header says: %s\n", nrm_strerror(rc));
    exit(1);
}

/* ---- chapter 1 ---- */

static void check_batch_norm(void)
{
    enum { M = 7 };
    double x[M], y[M], xhat[M], dy[M], dx[M], y2[M], dx2[M], g[2], g2[2], r, gamma, beta;
    nrm_acc mean, rstd;
    draw(x, M, 3), draw(dy, M, 1), draw(&gamma, 1, 2), draw(&beta, 1, 0), start(g, g2, 2);
    fine(nrm_batchnorm_forward(y2, &mean, &rstd, NULL, x, &gamma, &beta, NRM_TRAIN, 0.1, M, 1, 1));
    fine(nrm_batchnorm_backward(
        dx2, &g2[0], &g2[1], dy, x, &mean, &rstd, &gamma, NRM_TRAIN, M, 1, 1));
    batch_norm_forward(y, xhat, &r, x, gamma, beta, 0.1, M);
    batch_norm_backward(dx, &g[0], &g[1], dy, xhat, r, gamma, M);
    same(y, y2, M), same(dx, dx2, M), same(g, g2, 2), same(&r, &rstd, 1);
}

static void check_graph(void)
{
    double x[3], y[3], dy[3], dx[3], dx2[3], g[2], g2[2], gamma;
    nrm_acc mean, rstd;
    draw(x, 3, 3), draw(dy, 3, 1), draw(&gamma, 1, 2), start(g, g2, 2);
    fine(nrm_batchnorm_forward(y, &mean, &rstd, NULL, x, &gamma, NULL, NRM_TRAIN, 0.1, 3, 1, 1));
    fine(nrm_batchnorm_backward(
        dx2, &g2[0], &g2[1], dy, x, &mean, &rstd, &gamma, NRM_TRAIN, 3, 1, 1));
    batch_norm_graph(dx, &g[0], &g[1], dy, x, gamma, 0.1);
    same(dx, dx2, 3), same(g, g2, 2);
}

static void check_running(void)
{
    enum { M = 7 };
    double x[M], y[M], y2[M], xhat[M], m[2] = {0.5, 2}, m2[2] = {0.5, 2}, gamma, beta, r, mu = 0;
    nrm_acc mean, rstd;
    nrm_running running = {&m2[0], &m2[1], 0.3, 0, 0, 0};
    draw(x, M, 3), draw(&gamma, 1, 2), draw(&beta, 1, 0);
    fine(nrm_batchnorm_forward(
        y, &mean, &rstd, &running, x, &gamma, &beta, NRM_TRAIN, 0.1, M, 1, 1));
    fine(nrm_batchnorm_forward(
        y2, NULL, NULL, &running, x, &gamma, &beta, NRM_INFER, 0.1, M, 1, 1));
    for (int i = 0; i < M; i++) mu += x[i] / M;
    batch_norm_forward(y, xhat, &r, x, gamma, beta, 0.1, M);
    track(&m[0], &m[1], mu, 1 / (r * r) - 0.1, 0.3, M);
    batch_norm_infer(y, x, m[0], m[1], gamma, beta, 0.1, M);
    same(m, m2, 2), same(y, y2, M);
}

/* ---- chapter 2 ---- */

static void check_layer_norm(void)
{
    enum { N = 3, D = 5 };
    double x[N * D], y[N * D], xhat[N * D], r[N], dy[N * D], dx[N * D], y2[N * D], dx2[N * D];
    double gamma[D], beta[D], g[2 * D], g2[2 * D];
    nrm_acc mean[N], rstd[N];
    draw(x, N * D, 3), draw(dy, N * D, 1), draw(gamma, D, 2), draw(beta, D, 0), start(g, g2, 2 * D);
    fine(nrm_layernorm_forward(y2, mean, rstd, x, gamma, beta, 0.1, N, D));
    fine(nrm_layernorm_backward(dx2, g2, g2 + D, dy, x, mean, rstd, gamma, N, D));
    for (int n = 0; n < N * D; n += D) {
        layer_norm_forward(y + n, xhat + n, &r[n / D], x + n, gamma, beta, 0.1, D);
        layer_norm_backward(dx + n, g, g + D, dy + n, xhat + n, r[n / D], gamma, D);
    }
    same(y, y2, N * D), same(dx, dx2, N * D), same(g, g2, 2 * D);
}

static void check_recurrent(void)
{
    enum { T = 4, I = 3, H = 5, TH = T * H, TI = T * I, IH = I * H, HH = H * H };
    enum { GRADS = IH + HH + 2 * H };
    double h[TH + H], h2[TH + H], a[TH], a2[TH], xhat[TH], r[T], x[TI], Wx[IH], Wh[HH];
    double gamma[H], beta[H], dh[TH + H], dh2[TH + H], dx[TI], dx2[TI], g[GRADS], g2[GRADS];
    double dz[H], da[H], da2[TH];
    const nrm_rnn rnn = {T, 1, I, H, NRM_LAYER_NORM, NRM_TANH, 0.1, Wx, Wh, gamma, beta, NULL};
    const nrm_rnn_grads grads = {g2, g2 + IH, g2 + IH + HH, g2 + IH + HH + H};
    nrm_acc mean[T], rstd[T];
    draw(x, TI, 0), draw(Wx, IH, 0), draw(Wh, HH, 0), draw(gamma, H, 1), draw(beta, H, 0);
    start(h, h2, H), start(dh, dh2, TH + H), start(g, g2, GRADS);
    fine(nrm_rnn_forward(h2, a2, mean, rstd, x, &rnn, NRM_TRAIN));
    fine(nrm_rnn_backward(dh2, dx2, &grads, da2, h2, a2, mean, rstd, x, &rnn, NRM_TRAIN));
    recurrent_forward(h, a, xhat, r, x, Wx, Wh, gamma, beta, 0.1, T, I, H);
    recurrent_backward(dh, dx, g, g + IH, g + IH + HH, g + IH + HH + H, dz, da, h, xhat, r, x, Wx,
        Wh, gamma, T, I, H);
    same(h, h2, TH + H), same(dh, dh2, TH + H), same(dx, dx2, TI), same(g, g2, GRADS);
}

/* ---- chapter 3 ---- */

static void check_group_norm(void)
{
    enum { N = 2, G = 2, K = 3, S = 4, C = G * K, CS = C * S };
    double x[N * CS], y[N * CS], y2[N * CS], xhat[N * CS], dy[N * CS], dx[N * CS], dx2[N * CS];
    double r[N * G], gamma[C], beta[C], g[2 * C], g2[2 * C];
    nrm_acc mean[N * G], rstd[N * G];
    draw(x, N * CS, 3), draw(dy, N * CS, 1), draw(gamma, C, 2), draw(beta, C, 0);
    start(g, g2, 2 * C);
    fine(nrm_groupnorm_forward(y2, mean, rstd, x, gamma, beta, 0.1, N, C, S, G));
    fine(nrm_groupnorm_backward(dx2, g2, g2 + C, dy, x, mean, rstd, gamma, N, C, S, G));
    for (int n = 0; n < N * G; n++) {
        const int at = n * K * S, c = n % G * K; /* where the group begins, and its channels */
        group_norm_forward(y + at, xhat + at, r + n, x + at, gamma + c, beta + c, 0.1, K, S);
        group_norm_backward(
            dx + at, g + c, g + C + c, dy + at, xhat + at, r[n], gamma + c, K, S);
    }
    same(y, y2, N * CS), same(dx, dx2, N * CS), same(g, g2, 2 * C);
}

static void check_rms_norm(void)
{
    enum { D = 5 };
    double x[D], y[D], y2[D], dy[D], dx[D], dx2[D], r, gamma[D], g[D], g2[D];
    nrm_acc rstd;
    draw(x, D, 1), draw(dy, D, 1), draw(gamma, D, 2), start(g, g2, D);
    fine(nrm_rmsnorm_forward(y2, &rstd, x, gamma, 0.1, 1, D));
    fine(nrm_rmsnorm_backward(dx2, g2, dy, x, &rstd, gamma, 1, D));
    rms_norm_forward(y, &r, x, gamma, 0.1, D);
    rms_norm_backward(dx, g, dy, x, r, gamma, D);
    same(y, y2, D), same(dx, dx2, D), same(g, g2, D);
}

static void check_workers(void)
{
    enum { M = 7, P = 3 }; /* P of the M values are the first worker's */
    double x[M], y[M], xhat[M], dy[M], dx[M], dx2[M], r, gamma, n[2], mu[2], Q[2], A[2], B[2];
    nrm_acc mean, rstd;
    draw(x, M, 3), draw(dy, M, 1), draw(&gamma, 1, 2);
    fine(nrm_batchnorm_forward(y, &mean, &rstd, NULL, x, &gamma, NULL, NRM_TRAIN, 0.1, M, 1, 1));
    fine(nrm_batchnorm_backward(
        dx2, NULL, NULL, dy, x, &mean, &rstd, &gamma, NRM_TRAIN, M, 1, 1));
    for (int w = 0; w < 2; w++) {
        n[w] = w ? M - P : P, mu[w] = Q[w] = 0;
        for (int i = w * P; i < (w ? M : P); i++) mu[w] += x[i] / n[w];
        for (int i = w * P; i < (w ? M : P); i++) Q[w] += (x[i] - mu[w]) * (x[i] - mu[w]);
    }
    merge(&n[0], &mu[0], &Q[0], n[1], mu[1], Q[1]);
    r = 1 / sqrt(Q[0] / n[0] + 0.1);
    for (int i = 0; i < M; i++) xhat[i] = (x[i] - mu[0]) * r;
    sync_sums(&A[0], &B[0], dy, xhat, P);
    sync_sums(&A[1], &B[1], dy + P, xhat + P, M - P);
    sync_backward(dx, dy, xhat, r, gamma, A[0] + A[1], B[0] + B[1], n[0], P);
    sync_backward(dx + P, dy + P, xhat + P, r, gamma, A[0] + A[1], B[0] + B[1], n[0], M - P);
    same(mu, &mean, 1), same(&r, &rstd, 1), same(dx, dx2, M);
}

static void check_renorm(void)
{
    enum { M = 5 };
    double x[M], y[M], y2[M], xhat[M], dy[M], dx[M], dx2[M], r, rho, d, gamma, beta, g[2], g2[2];
    static const double limits[3][2] = {{100, 100}, {1.001, 100}, {100, 0.001}};
    for (int limit = 0; limit < 3; limit++) {
        double m = 2.5, u = 2;
        nrm_running running = {&m, &u, 0.1, 0, 0, 0};
        nrm_acc mean, rstd, ratio, offset;
        const double rho_max = limits[limit][0], d_max = limits[limit][1];
        draw(x, M, 3), draw(dy, M, 1), draw(&gamma, 1, 2), draw(&beta, 1, 0), start(g, g2, 2);
        renorm_forward(y, &rho, &d, xhat, &r, x, gamma, beta, m, u, rho_max, d_max, 0.1, M);
        renorm_backward(dx, &g[0], &g[1], dy, xhat, r, rho, d, gamma, M);
        fine(nrm_batchrenorm_forward(y2, &ratio, &offset, &mean, &rstd, &running, x, &gamma, &beta,
            rho_max, d_max, NRM_TRAIN, 0.1, M, 1, 1));
        fine(nrm_batchrenorm_backward(dx2, &g2[0], &g2[1], dy, x, &ratio, &offset, &mean, &rstd,
            &gamma, NRM_TRAIN, M, 1, 1));
        same(y, y2, M), same(dx, dx2, M), same(g, g2, 2);
    }
}

static void check_lp_norm(void)
{
    enum { M = 5 };
    double x[M], y[M], y2[M], xhat[M], k[M], dy[M], dx[M], dx2[M], t, r, gamma, beta, g[2], g2[2];
    nrm_acc mean, scale;
    for (int kind = 0; kind < 6; kind++) {
        const int p = kind % 3 + 1, centred = kind / 3, of = p + centred * NRM_CENTRED;
        draw(x, M, 1), draw(dy, M, 1), draw(&gamma, 1, 2), draw(&beta, 1, 0), start(g, g2, 2);
        fine(nrm_lp_batchnorm_forward(
            y2, &mean, &scale, NULL, x, &gamma, &beta, of, NRM_TRAIN, 0.1, M, 1, 1));
        fine(nrm_lp_batchnorm_backward(dx2, &g2[0], &g2[1], dy, x, &mean, &scale, &gamma, of,
            NRM_TRAIN, 0.1, M, 1, 1));
        lp_norm_forward(y, xhat, &t, &r, x, gamma, beta, p, centred, 0.1, M);
        lp_norm_backward(dx, &g[0], &g[1], k, dy, xhat, t, r, x, gamma, p, centred, M);
        same(y, y2, M), same(&t, &scale, 1), same(dx, dx2, M), same(g, g2, 2);
    }
}

static void check_weight_norm(void)
{
    enum { IN = 5 };
    double v[IN], W[IN], W2[IN], dW[IN], n, g, d[IN + 1], d2[IN + 1];
    nrm_acc norm;
    draw(v, IN, 0), draw(dW, IN, 0), draw(&g, 1, 2), start(d, d2, IN + 1);
    fine(nrm_weightnorm_forward(W2, &norm, v, &g, IN, 1));
    fine(nrm_weightnorm_backward(d2 + 1, d2, dW, v, &norm, &g, IN, 1));
    weight_norm_forward(W, &n, v, g, IN);
    weight_norm_backward(d + 1, d, dW, v, n, g, IN);
    same(W, W2, IN), same(&n, &norm, 1), same(d, d2, IN + 1);
}

static void check_fold(void)
{
    enum { IN = 5 };
    double W[IN], b, m, u = 2, gamma, beta, W1[IN], W2[IN], b1, b2;
    nrm_running running = {&m, &u, 0.1, 0, 0, 1};
    draw(W, IN, 0), draw(&b, 1, 1), draw(&m, 1, 2), draw(&gamma, 1, 2), draw(&beta, 1, 0);
    fold(W1, &b1, W, b, m, u, gamma, beta, 0.1, IN);
    fine(nrm_batchnorm_fold(W2, &b2, W, &b, &running, &gamma, &beta, 0.1, IN, 1, 1));
    same(W1, W2, IN), same(&b1, &b2, 1);
}

/* ---- chapter 4 ---- */

/* The header draws the same twice, for two β: its offsets are what the second run adds to s·y. */
static void check_noisy(void)
{
    enum { M = 7 };
    const nrm_noise noise = {0.5, 1.25, 0.1, 0.1};
    double x[M], y[M], z[M], z2[M], xhat[M], m[M], s[M], dz[M], dy[M], dx[M], dx2[M];
    double r, gamma, beta[2] = {0.5, 5}, g[2], g2[2];
    nrm_rng same_draws;
    nrm_acc mean, rstd;
    draw(x, M, 3), draw(dz, M, 1), draw(&gamma, 1, 2), start(g, g2, 2);
    same_draws = rng;
    fine(nrm_noisy_batchnorm_forward(m, s, &mean, &rstd, NULL, x, &gamma, &beta[1], &noise,
        &same_draws, NRM_TRAIN, 0.1, M, 1, 1));
    same_draws = rng;
    fine(nrm_noisy_batchnorm_forward(z2, s, &mean, &rstd, NULL, x, &gamma, &beta[0], &noise,
        &same_draws, NRM_TRAIN, 0.1, M, 1, 1));
    fine(nrm_noisy_batchnorm_backward(
        dx2, &g2[0], &g2[1], dz, s, x, &mean, &rstd, &gamma, NRM_TRAIN, M, 1, 1));
    batch_norm_forward(y, xhat, &r, x, gamma, beta[1], 0.1, M);
    for (int i = 0; i < M; i++) m[i] -= s[i] * y[i];
    batch_norm_forward(y, xhat, &r, x, gamma, beta[0], 0.1, M);
    add_noise(z, y, m, s, M);
    noisy_batch_norm_backward(dx, &g[0], &g[1], dy, dz, s, xhat, r, gamma, M);
    same(z, z2, M), same(dx, dx2, M), same(g, g2, 2);
}

/* ---- chapter 5 ---- */

static double cubic(void *at) /* of which GC.3 has the exact derivative */
{
    const double t = *(double *)at;
    return (t - 2) * t * t;
}
static void check_difference(void)
{
    double t, slope, exact;
    draw(&t, 1, 3);
    exact = (3 * t - 4) * t;
    slope = difference(cubic, &t, &t, 0.5);
    same(&slope, &exact, 1);
}

/* ---- chapter 6 ---- */

static void check_linear(void)
{
    enum { N = 3, I = 5, J = 4 };
    double x[N * I], W[I * J], b[J], y[N * J], y2[N * J], dy[N * J], dx[N * I], dx2[N * I];
    double dW[I * J], dW2[I * J], db[J], db2[J];
    draw(x, N * I, 0), draw(W, I * J, 0), draw(b, J, 0), draw(dy, N * J, 0);
    start(dW, dW2, I * J), start(db, db2, J);
    fine(nrm_linear_forward(y2, x, W, b, N, I, J));
    fine(nrm_linear_backward(dx2, dW2, db2, dy, x, W, N, I, J));
    linear_forward(y, x, W, b, N, I, J);
    linear_backward(dx, dW, db, dy, x, W, N, I, J);
    same(y, y2, N * J), same(dx, dx2, N * I), same(dW, dW2, I * J), same(db, db2, J);
}

static void check_activations(void)
{
    static const int kind[3] = {NRM_RELU, NRM_TANH, NRM_SIGMOID};
    enum { M = 20 };
    double x[M], y[M], y2[M], dy[M], dx[M], dx2[M];
    draw(x, M, 0), draw(dy, M, 0);
    for (int k = 0; k < 3; k++) {
        fine(nrm_activation_forward(y2, x, kind[k], M));
        fine(nrm_activation_backward(dx2, dy, y2, kind[k], M));
        for (int i = 0; i < M; i++) y[i] = activation(x[i], k);
        for (int i = 0; i < M; i++) dx[i] = dy[i] * activation_slope(y[i], k);
        same(y, y2, M), same(dx, dx2, M);
    }
}

static void check_cross_entropy(void)
{
    enum { N = 3, C = 4 };
    const int label[N] = {2, 0, 3};
    double z[N * C], dz[N * C], dz2[N * C], prob[N * C], loss;
    nrm_acc loss2;
    draw(z, N * C, 900);
    fine(nrm_cross_entropy_forward(&loss2, prob, z, label, N, C));
    fine(nrm_cross_entropy_backward(dz2, prob, label, N, C));
    loss = cross_entropy(dz, z, label, N, C);
    same(&loss, &loss2, 1), same(dz, dz2, N * C);
}

static void check_adam(void) /* on the first bias of a network */
{
    static const nrm_mlp_layer layer = {2, NRM_IDENTITY, NRM_NO_NORM, 0, 1, 0, 0};
    const int label[1] = {1};
    double block[400], x[1], theta, theta2, a = 0, b = 0;
    nrm_mlp_spec spec = nrm_mlp_defaults();
    nrm_mlp *net;
    draw(x, 1, 0);
    spec.inputs = 1, spec.layers = 1, spec.layer = &layer, spec.max_batch = 1;
    spec.optimizer = NRM_ADAM, spec.beta1 = 0.8, spec.beta2 = 0.9, spec.lr = 0.5;
    fine(nrm_mlp_init(&net, block, sizeof block, &spec));
    theta = *net->state[0].b;
    for (int t = 1; t <= 5; t++) {
        fine(nrm_mlp_gradient(net, NULL, x, label, 1, NRM_TRAIN));
        adam(&theta, &a, &b, *net->state[0].db, 0.5, 0.8, 0.9, net->spec.adam_eps, t);
        fine(nrm_mlp_step(net));
        theta2 = *net->state[0].b;
        same(&theta, &theta2, 1);
    }
}

/* ---- chapter 7 ---- */

static void check_merging(void)
{
    enum { M = 11, FIRST = 4 };
    double x[M], m[2] = {0, 0}, Q[2] = {0, 0}, n[2] = {0, 0}; /* of two portions */
    nrm_stats stats = {0, 0, 0};
    draw(x, M, 5);
    fine(nrm_stats_update(&stats, x, NULL, M, 1, 1));
    for (int i = 0; i < M; i++) add_value(&m[i >= FIRST], &Q[i >= FIRST], &n[i >= FIRST], x[i]);
    merge(&n[0], &m[0], &Q[0], n[1], m[1], Q[1]);
    same(&m[0], &stats.mean, 1), same(&Q[0], &stats.m2, 1), same(&n[0], &stats.count, 1);
}

static void check_lanes(void) /* nrm_linear_backward's db has another order; the sum is the same */
{
    enum { M = 29 };
    double a[M], sum, db = 0;
    draw(a, M, 1);
    fine(nrm_linear_backward(NULL, NULL, &db, a, NULL, NULL, M, 1, 1));
    sum = lane_sum(a, M);
    same(&sum, &db, 1);
}

static void check_exponential(void) /* beside the C library's */
{
    for (double x = -700; x <= 700; x += 0.37) {
        const double e = exponential(x, 0), exact = exp(x);
        const double y = exponential(x, 1), sigmoid = 1 / (1 + exp(-x));
        same(&e, &exact, 1), same(&y, &sigmoid, 1);
    }
}

/* ---- all of them ---- */

static const struct {
    const char *name;
    void (*run)(void);
} checks[] = {
    {"batch norm", check_batch_norm},
    {"batch norm's graph", check_graph},
    {"running statistics and inference", check_running},
    {"layer norm", check_layer_norm},
    {"the recurrent layer", check_recurrent},
    {"group norm", check_group_norm},
    {"RMS norm", check_rms_norm},
    {"several workers", check_workers},
    {"batch renorm", check_renorm},
    {"Lp batch norm", check_lp_norm},
    {"weight norm", check_weight_norm},
    {"folding", check_fold},
    {"noisy batch norm", check_noisy},
    {"a difference", check_difference},
    {"linear layer", check_linear},
    {"activations", check_activations},
    {"softmax and cross-entropy", check_cross_entropy},
    {"Adam", check_adam},
    {"statistics that merge", check_merging},
    {"a sum in lanes", check_lanes},
    {"exponential", check_exponential},
};

/* How many checks find a difference? */
static int failing(int show)
{
    int count = 0;
    for (size_t i = 0; i < LENGTH(checks); i++) {
        worst = 1e-12;
        nrm_rng_seed(&rng, 1, i);
        for (int round = 0; round < 5; round++) checks[i].run();
        if (worst <= 1e-12) continue;
        count++;
        if (show) printf("%s: off by %.1e\n", checks[i].name, worst);
    }
    return count;
}

int main(void)
{
    const int wrong = failing(1), n = (int)LENGTH(faults);
    int passed = (int)LENGTH(checks) - wrong, failed = wrong;
    for (fault = 1; fault <= n && !wrong; fault++) {
        if (failing(0)) {
            passed++;
        } else {
            failed++;
            printf("%s: nobody notices if this line is wrong\n", faults[fault - 1]);
        }
    }
    printf("%d functions' checks, %d lines: %d passed, %d failed\n", (int)LENGTH(checks), n, passed,
        failed);
    return failed > 0;
}
