/* glue.c - what the page calls: the header's layers on one small tensor [N][C], its gradient
   checker, and two networks that learn two spirals. Compiled to WebAssembly for the page, and with
   -DHOST to a program that prints the fingerprint that the page must reach. All is in double. */
#define NRM_DOUBLE
#define NRM_STATIC
#ifndef HOST
#define NRM_NO_LIBC
#define NRM_SQRT(a) __builtin_sqrt(a)
#define NRM_MEMCPY(to, from, bytes) __builtin_memcpy((to), (from), (bytes))
#define NRM_MEMSET(to, byte, bytes) __builtin_memset((to), (byte), (bytes))
#define EXPORT(name) __attribute__((export_name(#name))) name
#else
#define EXPORT(name) name
#include <stdio.h>
#endif
#include "../../normlayers.h"

enum { N_MAX = 16, C_MAX = 8, SIZE = N_MAX * C_MAX };
static nrm_real x[SIZE], dy[SIZE], gamma[C_MAX], beta[C_MAX]; /* in */
static nrm_real y[SIZE], dx[SIZE], scale[SIZE], dgamma[C_MAX], dbeta[C_MAX]; /* out */
static nrm_acc mean[SIZE], rstd[SIZE];
static nrm_real running_mean[C_MAX], running_var[C_MAX];
static nrm_running running = {running_mean, running_var, 0.1, 0, 0, 0};
static double
    report[3 * 6]; /* of x, gamma, beta: checked, wrong, error, analytic, numeric, entry */

enum array { X, DY, GAMMA, BETA, Y, DX, SCALE, DGAMMA, DBETA, MEAN, RSTD, RMEAN, RVAR, REPORT };
double *EXPORT(array)(int which)
{
    double *const all[] = {x, dy, gamma, beta, y, dx, scale, dgamma, dbeta, mean, rstd,
        running_mean, running_var, report};
    return all[which];
}

enum kind { BATCH, LAYER, GROUP, RMS, NOISY };
typedef struct job {
    int kind, mode;
    unsigned N, C, G, seed;
    double eps;
} job;
static job now;

static int forward(nrm_running *track)
{
    const job *j = &now;
    nrm_noise noise = nrm_noise_paper();
    nrm_rng rng;
    switch (j->kind) {
    case LAYER:
        return nrm_layernorm_forward(y, mean, rstd, x, gamma, beta, j->eps, j->N, j->C);
    case RMS:
        return nrm_rmsnorm_forward(y, rstd, x, gamma, j->eps, j->N, j->C);
    case GROUP:
        return nrm_groupnorm_forward(y, mean, rstd, x, gamma, beta, j->eps, j->N, j->C, 1, j->G);
    case NOISY:
        nrm_rng_seed(&rng, j->seed, 1);
        return nrm_noisy_batchnorm_forward(y, scale, mean, rstd, track, x, gamma, beta, &noise,
            &rng, j->mode, j->eps, j->N, j->C, 1);
    default:
        return nrm_batchnorm_forward(
            y, mean, rstd, track, x, gamma, beta, j->mode, j->eps, j->N, j->C, 1);
    }
}

static int backward(void)
{
    const job *j = &now;
    unsigned c;
    for (c = 0; c < C_MAX; c++) dgamma[c] = dbeta[c] = 0;
    switch (j->kind) {
    case LAYER:
        return nrm_layernorm_backward(dx, dgamma, dbeta, dy, x, mean, rstd, gamma, j->N, j->C);
    case RMS:
        return nrm_rmsnorm_backward(dx, dgamma, dy, x, rstd, gamma, j->N, j->C);
    case GROUP:
        return nrm_groupnorm_backward(
            dx, dgamma, dbeta, dy, x, mean, rstd, gamma, j->N, j->C, 1, j->G);
    case NOISY:
        return nrm_noisy_batchnorm_backward(
            dx, dgamma, dbeta, dy, scale, x, mean, rstd, gamma, j->mode, j->N, j->C, 1);
    default:
        return nrm_batchnorm_backward(
            dx, dgamma, dbeta, dy, x, mean, rstd, gamma, j->mode, j->N, j->C, 1);
    }
}

/* Forward and, in train mode, backward; a status. Running statistics move if `track` is not 0. */
int EXPORT(layer)(
    int kind, int mode, unsigned N, unsigned C, unsigned G, double eps, unsigned seed, int track)
{
    const job j = {kind, mode, N, C, G, seed, eps};
    int status;
    if (N > N_MAX || C > C_MAX) return NRM_ESIZE;
    now = j;
    status = forward(track || mode != NRM_TRAIN ? &running : NULL);
    return status < 0 || mode != NRM_TRAIN ? status : backward();
}

void EXPORT(weight)(double new_weight)
{
    running.new_weight = new_weight;
}

/* ---- the gradient check ---- */
static nrm_acc loss(void *context)
{
    nrm_acc sum = 0;
    unsigned i;
    (void)context;
    forward(NULL);
    for (i = 0; i < now.N * now.C; i++) sum += y[i] * dy[i];
    return sum;
}

/* A mistake to find: 1 the mean's term forgotten, 2 the variance's, 3 gamma, 4 the sign. */
static void plant(int mistake)
{
    const job *j = &now;
    const unsigned size = j->N * j->C;
    unsigned i;
    double g[SIZE], sum[SIZE] = {0}, dot[SIZE] = {0}, count[SIZE] = {0};
    unsigned of[SIZE];
    for (i = 0; i < size; i++) {
        const unsigned n = i / j->C, c = i % j->C;
        of[i] = j->kind == BATCH || j->kind == NOISY ? c
                : j->kind == GROUP                   ? n * j->G + c / (j->C / j->G)
                                                     : n;
        g[i] = dy[i] * gamma[c] * (j->kind == NOISY ? scale[i] : 1);
        sum[of[i]] += j->kind == RMS ? 0 : g[i];
        dot[of[i]] += g[i] * (x[i] - (j->kind == RMS ? 0 : mean[of[i]])) * rstd[of[i]];
        count[of[i]]++;
    }
    for (i = 0; i < size; i++) {
        const unsigned k = of[i];
        const double xhat = (x[i] - (j->kind == RMS ? 0 : mean[k])) * rstd[k];
        if (mistake == 1) dx[i] += rstd[k] * sum[k] / count[k];
        if (mistake == 2) dx[i] += rstd[k] * xhat * dot[k] / count[k];
        if (mistake == 3) dx[i] /= gamma[i % j->C];
        if (mistake == 4) dx[i] = -dx[i];
    }
}

/* Checks the gradients of the last layer(), with a mistake put into dx; a status. */
int EXPORT(check)(int mistake)
{
    nrm_gradcheck_report r[3];
    const unsigned groups = now.kind == RMS ? 2 : 3;
    const nrm_gradcheck_group group[3] = {{"x", x, dx, (size_t)now.N * now.C},
        {"gamma", gamma, dgamma, now.C}, {"beta", beta, dbeta, now.C}};
    unsigned k;
    int status;
    plant(mistake);
    status = nrm_gradcheck(r, group, groups, loss, NULL, NULL);
    for (k = 0; k < groups; k++) {
        double *const to = report + (size_t)6 * k;
        to[0] = (double)r[k].checked, to[1] = (double)r[k].wrong, to[2] = r[k].error;
        to[3] = r[k].analytic, to[4] = r[k].numeric, to[5] = (double)r[k].worst;
    }
    forward(NULL);
    return status;
}

/* ---- two networks, two spirals ---- */
enum { POINTS = 300, WIDTH = 16, HIDDEN = 4, ROWS = 50, GRID = 40 };
static struct {
    nrm_mlp *net;
    nrm_rng order;
    unsigned char block[160000];
} net[2];
static nrm_real points[POINTS * 2], map[GRID * GRID], rows[GRID * 2];
static int labels[POINTS];

double *EXPORT(net_points)(void)
{
    return points;
}
double *EXPORT(net_map)(int k) /* the probability of the second spiral, row by row from the top */
{
    unsigned row, col;
    for (row = 0; row < GRID; row++) {
        for (col = 0; col < GRID; col++) {
            rows[2 * col] = 1.3 * ((2 * col + 1) / (double)GRID - 1);
            rows[2 * col + 1] = -1.3 * ((2 * row + 1) / (double)GRID - 1);
        }
        if (nrm_mlp_forward(net[k].net, rows, GRID, NRM_INFER) < 0) break;
        for (col = 0; col < GRID; col++) {
            const nrm_real d = net[k].net->logits[2 * col + 1] - net[k].net->logits[2 * col];
            map[row * GRID + col] = 0.5 + 0.5 * d / (1 + (d < 0 ? -d : d));
        }
    }
    return map;
}

int EXPORT(net_init)(int k, int norm, unsigned seed, double lr)
{
    nrm_mlp_layer layers[HIDDEN + 1] = {{0}};
    nrm_mlp_spec spec = nrm_mlp_defaults();
    nrm_rng rng;
    double c = 1, s = 0, turn;
    unsigned i;
    for (i = 0; i < HIDDEN; i++) {
        layers[i].width = WIDTH;
        layers[i].activation = NRM_TANH;
        layers[i].norm = norm;
        layers[i].groups = 4;
        layers[i].bias = 1;
    }
    layers[HIDDEN].width = 2;
    layers[HIDDEN].bias = 1;
    spec.inputs = 2;
    spec.layers = HIDDEN + 1;
    spec.layer = layers;
    spec.max_batch = ROWS;
    spec.seed = seed;
    spec.init = NRM_INIT_XAVIER;
    spec.lr = lr;
    nrm_rng_seed(&rng, seed, 100);
    for (i = 0; i < POINTS; i += 2) { /* each pair 9/150 radians further out, on opposite sides */
        const double radius = 0.12 + 0.88 * (double)i / POINTS;
        unsigned arm;
        for (arm = 0; arm < 2; arm++) {
            const double side = arm ? -radius : radius;
            nrm_real *p = points + 2 * (i + arm);
            nrm_rng_normal(&rng, p, 2);
            p[0] = side * c + 0.03 * p[0];
            p[1] = side * s + 0.03 * p[1];
            labels[i + arm] = (int)arm;
        }
        turn = c * 0.99820053993521 - s * 0.05996400647944;
        s = s * 0.99820053993521 + c * 0.05996400647944;
        c = turn;
    }
    nrm_rng_seed(&net[k].order, seed, 101);
    return nrm_mlp_init(&net[k].net, net[k].block, sizeof net[k].block, &spec);
}

/* The mean loss of so many steps, or a negative status. */
double EXPORT(net_train)(int k, int steps)
{
    static nrm_real batch[ROWS * 2];
    static int label[ROWS];
    double sum = 0;
    int t;
    for (t = 0; t < steps; t++) {
        nrm_acc one;
        unsigned i;
        int status;
        for (i = 0; i < ROWS; i++) {
            const unsigned from = nrm_rng_below(&net[k].order, POINTS);
            batch[2 * i] = points[2 * from];
            batch[2 * i + 1] = points[2 * from + 1];
            label[i] = labels[from];
        }
        status = nrm_mlp_train_step(net[k].net, &one, batch, label, ROWS);
        if (status < 0) return status;
        sum += one;
    }
    return sum / steps;
}

double EXPORT(net_accuracy)(int k)
{
    nrm_acc accuracy = 0;
    const int status = nrm_mlp_eval(net[k].net, NULL, &accuracy, points, labels, POINTS);
    return status < 0 ? status : accuracy;
}

/* ---- the same bits? ---- */
static uint32_t fold(uint32_t h, const void *from, size_t bytes)
{
    const unsigned char *b = (const unsigned char *)from;
    while (bytes--) h = (h ^ *b++) * 16777619u;
    return h;
}

/* Of values, gradients and statistics of each layer, a gradient check, and 60 training steps. */
uint32_t EXPORT(fingerprint)(void)
{
    uint32_t h = 2166136261u;
    nrm_rng rng;
    int kind, k;
    unsigned i;
    nrm_rng_seed(&rng, 2024, 7);
    nrm_rng_normal(&rng, x, SIZE);
    nrm_rng_normal(&rng, dy, SIZE);
    nrm_rng_uniform(&rng, gamma, C_MAX);
    nrm_rng_normal(&rng, beta, C_MAX);
    for (i = 0; i < SIZE; i++) x[i] += 1e3;
    for (i = 0; i < C_MAX; i++) {
        gamma[i] += 1;
        running_mean[i] = 0, running_var[i] = 1;
    }
    running.batches = 0;
    for (kind = BATCH; kind <= NOISY; kind++) {
        const unsigned groups = kind == GROUP                  ? N_MAX * 2
                                : kind == LAYER || kind == RMS ? N_MAX
                                                               : 8;
        layer(kind, NRM_TRAIN, N_MAX, C_MAX, 2, 1e-5, 3, 1);
        h = fold(h, y, sizeof y);
        h = fold(h, dx, sizeof dx);
        h = fold(h, dgamma, sizeof dgamma);
        h = fold(h, dbeta, sizeof dbeta);
        h = fold(h, rstd, groups * sizeof *rstd);
        check(kind % 5);
        h = fold(h, report, sizeof report);
    }
    h = fold(h, running_mean, sizeof running_mean);
    h = fold(h, running_var, sizeof running_var);
    for (k = 0; k < 2; k++) {
        net_init(k, k ? NRM_BATCH_NORM : NRM_NO_NORM, 1, 0.3);
        net_train(k, 60);
        h = fold(h, net[k].net->params, net[k].net->n_params * sizeof *net[k].net->params);
        h = fold(h, net_map(k), sizeof map);
    }
    return h;
}
#ifdef HOST
int main(void)
{
    printf("%u\n", fingerprint());
    return 0;
}
#endif
