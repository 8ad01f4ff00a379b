/* determinism.c - one hash per piece of normlayers.h: the norm layers, the functions, the
   streams of random numbers, and the training of a small network with each norm.

   tests/determinism.sh builds this program with several compilers and levels of optimisation and
   compares the lines. A line is a class, a name and the FNV-1a hash of all result bytes. The class
   says what the header promises: `exact` lines are the same in every build; `train` lines contain
   matrix products and are the same in every build without fused multiply-add.

   The matrix products have a line each as well (class `train`), so that a difference in training
   can be told from one in a product. NaNs are kept out, for their bits are nobody's promise. */
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 8192 };
static nrm_real x[MOST], y[MOST], dy[MOST], dx[MOST], scale[MOST];
static nrm_real gamma_[MOST], beta_[MOST], dgamma[MOST], dbeta[MOST], run_mean[MOST], run_var[MOST];
static nrm_acc mean[MOST], rstd[MOST];
static uint64_t hash;

static void start(void)
{
    hash = 14695981039346656037u;
}
static void add(const void *data, size_t bytes)
{
    const unsigned char *p = (const unsigned char *)data;
    size_t i;
    for (i = 0; i < bytes; i++) hash = (hash ^ p[i]) * 1099511628211u;
}
static void print(const char *kind, const char *name)
{
    printf("%s %s %08lx%08lx\n", kind, name, (unsigned long)(hash >> 32),
           (unsigned long)(hash & 0xffffffffu));
}

static void draw(nrm_real *a, size_t n, nrm_real shift, uint64_t seed)
{
    nrm_rng rng;
    size_t i;
    nrm_rng_seed(&rng, seed, 0);
    for (i = 0; i < n; i++) a[i] = shift + nrm_rng_normal(&rng);
}

static void fill(size_t count, size_t params, nrm_real shift)
{
    draw(x, count, shift, 1);
    draw(dy, count, 0, 2);
    draw(gamma_, params, 1, 3);
    draw(beta_, params, 0, 4);
    memset(dgamma, 0, sizeof dgamma);
    memset(dbeta, 0, sizeof dbeta);
}

static void refuse(int rc)
{
    if (rc == NRM_OK) return;
    fprintf(stderr, "determinism: %s\n", nrm_strerror(rc));
    exit(1);
}

static void layernorm(const char *name, size_t N, size_t D, nrm_real shift)
{
    start();
    fill(N * D, D, shift);
    refuse(nrm_layernorm_forward(y, mean, rstd, x, gamma_, beta_, NRM_EPS, N, D));
    refuse(nrm_layernorm_backward(dx, dgamma, dbeta, dy, x, mean, rstd, gamma_, N, D));
    add(y, N * D * sizeof *y);
    add(dx, N * D * sizeof *dx);
    add(dgamma, D * sizeof *dgamma);
    add(dbeta, D * sizeof *dbeta);
    add(mean, N * sizeof *mean);
    add(rstd, N * sizeof *rstd);
    print("exact", name);
}

static void batchnorm(const char *name, int mode, int noisy, size_t N, size_t C, size_t S,
                      nrm_real shift)
{
    const size_t count = N * C * S;
    const nrm_noise noise = nrm_noise_paper();
    nrm_running running;
    nrm_rng rng;
    size_t c;
    start();
    fill(count, C, shift);
    memset(&running, 0, sizeof running);
    running.mean = run_mean;
    running.var = run_var;
    running.new_weight = (nrm_real)0.1;
    for (c = 0; c < C; c++) {
        run_mean[c] = beta_[c];
        run_var[c] = gamma_[c] < 0 ? -gamma_[c] : gamma_[c]; /* no product to fuse */
    }
    nrm_rng_seed(&rng, 5, 6);
    if (noisy) {
        refuse(nrm_noisy_batchnorm_forward(y, scale, mean, rstd, &running, x, gamma_, beta_, &noise,
                                           &rng, mode, NRM_EPS, N, C, S));
        refuse(nrm_noisy_batchnorm_backward(dx, dgamma, dbeta, dy, scale, x, mean, rstd, gamma_,
                                            mode, N, C, S));
        add(scale, count * sizeof *scale);
    } else {
        refuse(nrm_batchnorm_forward(y, mean, rstd, &running, x, gamma_, beta_, mode, NRM_EPS, N, C,
                                     S));
        refuse(nrm_batchnorm_backward(dx, dgamma, dbeta, dy, x, mean, rstd, gamma_, mode, N, C,
                                      S));
    }
    add(y, count * sizeof *y);
    add(dx, count * sizeof *dx);
    add(dgamma, C * sizeof *dgamma);
    add(dbeta, C * sizeof *dbeta);
    add(mean, C * sizeof *mean);
    add(rstd, C * sizeof *rstd);
    add(run_mean, C * sizeof *run_mean);
    add(run_var, C * sizeof *run_var);
    print("exact", name);
}

static void activation(const char *name, int kind)
{
    size_t i;
    start();
    fill(MOST, 1, 0);
    for (i = 0; i < MOST; i++) x[i] *= (nrm_real)(i % 64); /* up to saturation */
    refuse(nrm_activation_forward(y, x, kind, MOST));
    refuse(nrm_activation_backward(dx, dy, y, kind, MOST));
    add(y, sizeof y);
    add(dx, sizeof dx);
    print("exact", name);
}

/* Softmax is where e^x and ln x are used. */
static void cross_entropy(void)
{
    enum { N = 512, C = 10 };
    static int labels[N];
    nrm_acc loss, accuracy;
    size_t i;
    start();
    fill((size_t)N * C, 1, 0);
    for (i = 0; i < (size_t)N * C; i++) x[i] *= (nrm_real)(i / C % 50);
    for (i = 0; i < N; i++) labels[i] = (int)(i * 7 % C);
    refuse(nrm_cross_entropy_forward(&loss, y, x, labels, N, C));
    refuse(nrm_cross_entropy_backward(dx, y, labels, N, C));
    refuse(nrm_accuracy(&accuracy, x, labels, N, C));
    add(&loss, sizeof loss);
    add(&accuracy, sizeof accuracy);
    add(y, (size_t)N * C * sizeof *y);
    add(dx, (size_t)N * C * sizeof *dx);
    print("exact", "cross_entropy");
}

static void random_numbers(void)
{
    nrm_rng rng;
    size_t index[1000], i;
    uint32_t u;
    start();
    nrm_rng_seed(&rng, 11, 12);
    for (i = 0; i < 1000; i++) u = nrm_rng_u32(&rng), add(&u, sizeof u);
    for (i = 0; i < 1000; i++) u = nrm_rng_below(&rng, (uint32_t)(3 * i + 1)), add(&u, sizeof u);
    for (i = 0; i < 1000; i++) index[i] = i;
    refuse(nrm_rng_shuffle(&rng, index, 1000));
    for (i = 0; i < 1000; i++) u = (uint32_t)index[i], add(&u, sizeof u);
    print("exact", "rng_integers");
    start();
    for (i = 0; i < MOST; i++) x[i] = nrm_rng_uniform(&rng);
    for (i = 0; i < MOST; i++) y[i] = nrm_rng_normal(&rng);
    add(x, sizeof x);
    add(y, sizeof y);
    print("exact", "rng_reals");
}

static void linear(void)
{
    enum { N = 37, IN = 61, OUT = 43 }; /* no tile, vector or lane divides these */
    start();
    fill((size_t)N * IN, (size_t)IN * OUT, 0);
    draw(dy, (size_t)N * OUT, 0, 7);
    refuse(nrm_linear_forward(y, x, gamma_, beta_, N, IN, OUT));
    refuse(nrm_linear_backward(dx, dgamma, dbeta, dy, x, gamma_, N, IN, OUT));
    add(y, (size_t)N * OUT * sizeof *y);
    add(dx, (size_t)N * IN * sizeof *dx);
    add(dgamma, (size_t)IN * OUT * sizeof *dgamma);
    add(dbeta, (size_t)OUT * sizeof *dbeta);
    print("train", "linear");
}

static void train(const char *name, int norm, int norm_after, int optimizer)
{
    enum { N = 30, INPUTS = 12, CLASSES = 3, STEPS = 20 };
    nrm_mlp_layer layer[3];
    nrm_mlp_spec spec = nrm_mlp_defaults();
    nrm_mlp *net;
    nrm_acc loss = 0;
    void *block;
    int labels[N], step;
    size_t i;
    memset(layer, 0, sizeof layer);
    for (i = 0; i < 2; i++) {
        layer[i].width = 17;
        layer[i].activation = i == 0 ? NRM_RELU : NRM_TANH;
        layer[i].norm = norm;
        layer[i].norm_after = norm_after;
        layer[i].bias = 1;
    }
    layer[2].width = CLASSES;
    layer[2].bias = 1;
    spec.inputs = INPUTS;
    spec.layers = 3;
    spec.layer = layer;
    spec.max_batch = N;
    spec.optimizer = optimizer;
    spec.lr = optimizer == NRM_ADAM ? (nrm_real)0.01 : (nrm_real)0.1;
    spec.heavy_ball = (nrm_real)0.9;
    spec.seed = 21;
    block = malloc(nrm_mlp_bytes(&spec));
    if (block == NULL) exit(1);
    refuse(nrm_mlp_init(&net, block, nrm_mlp_bytes(&spec), &spec));
    start();
    add(net->params, net->n_params * sizeof *net->params);
    print("exact", "initialisation");
    start();
    draw(x, (size_t)N * INPUTS, 0, 31);
    for (i = 0; i < N; i++) labels[i] = (x[i * INPUTS] > 0) + (x[i * INPUTS + 1] > 0);
    for (step = 0; step < STEPS; step++) {
        refuse(nrm_mlp_train_step(net, &loss, x, labels, N));
        add(&loss, sizeof loss);
    }
    add(net->params, net->n_params * sizeof *net->params);
    refuse(nrm_mlp_eval(net, &loss, NULL, x, labels, N));
    add(&loss, sizeof loss);
    print("train", name);
    free(block);
}

int main(void)
{
    layernorm("layernorm_7x130", 7, 130, 0);
    layernorm("layernorm_70x9_far", 70, 9, 1000);
    batchnorm("batchnorm_dense", NRM_TRAIN, 0, 33, 70, 1, 0);
    batchnorm("batchnorm_dense_far", NRM_TRAIN, 0, 33, 70, 1, 1000);
    batchnorm("batchnorm_images", NRM_TRAIN, 0, 5, 6, 51, 0);
    batchnorm("batchnorm_frozen", NRM_FROZEN, 0, 5, 6, 51, 0);
    batchnorm("noisy_batchnorm", NRM_TRAIN, 1, 33, 70, 1, 0);
    batchnorm("noisy_batchnorm_images", NRM_TRAIN, 1, 5, 6, 51, 0);
    activation("relu", NRM_RELU);
    activation("tanh", NRM_TANH);
    activation("sigmoid", NRM_SIGMOID);
    cross_entropy();
    random_numbers();
    linear();
    train("plain_sgd", NRM_NO_NORM, 0, NRM_SGD);
    train("batch_sgd", NRM_BATCH_NORM, 0, NRM_SGD);
    train("layer_adam", NRM_LAYER_NORM, 0, NRM_ADAM);
    train("noisy_adam", NRM_NOISY_BATCH_NORM, 1, NRM_ADAM);
    return 0;
}
