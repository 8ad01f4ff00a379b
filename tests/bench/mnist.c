/* mnist: seconds per epoch of a perceptron on MNIST, plain SGD: the work of the training steps and
   of gathering their batches, on one thread.

       mnist DATA_DIR none|batch|layer|noisy|group|rms WIDTH1-WIDTH2 BATCH SAMPLES EPOCHS SEED
       mnist product       GFLOP/s of a product of two 512x512 matrices, the best of some

   The network is 784-WIDTH1-WIDTH2-10; an epoch is the first SAMPLES images in a new order.
   Prints one line per epoch: "normlayers NET BATCH NORM epoch E seconds S loss L accuracy A". The
   test pass is not timed. mnist.sh runs it in turn with the same network in PyTorch. */
#define _POSIX_C_SOURCE 200809L
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"
#include "lab/draw.h"
#include "lab/training.c"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct settings {
    const char *norm_name, *widths;
    int norm;
    size_t width[2], batch, samples, epochs;
    uint64_t seed;
} settings;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static nrm_mlp *make_net(const settings *s, void **block)
{
    nrm_mlp_layer layer[3];
    nrm_mlp_spec spec = nrm_mlp_defaults();
    int l;
    memset(layer, 0, sizeof layer);
    for (l = 0; l < 3; l++) {
        layer[l].width = l < 2 ? s->width[l] : 10;
        layer[l].activation = l < 2 ? NRM_RELU : NRM_IDENTITY;
        layer[l].norm = l < 2 ? s->norm : NRM_NO_NORM;
        layer[l].groups = layer[l].norm == NRM_GROUP_NORM ? 8 : 0;
        layer[l].bias = 1;
    }
    spec.inputs = DATASET_PIXELS;
    spec.layers = 3;
    spec.layer = layer;
    spec.max_batch = s->batch > 1000 ? s->batch : 1000;
    spec.seed = s->seed;
    spec.init = NRM_INIT_FAN_IN;
    spec.lr = (nrm_real)0.01;
    return training_net(&spec, block);
}

static int epoch(nrm_mlp *net, training_order *order, const training_set *set, double *loss)
{
    int status = NRM_OK;
    *loss = 0;
    while (status >= 0 && training_next(order, set)) {
        nrm_acc value = 0;
        status = nrm_mlp_train_step(net, &value, order->x, order->labels, order->count);
        *loss += (double)value * (double)order->count / (double)set->n;
    }
    return status;
}

static int run(const dataset *d, const settings *s)
{
    const size_t samples = s->samples < d->train_n ? s->samples : d->train_n;
    training_set train, test;
    training_order order;
    void *block = NULL;
    nrm_mlp *net = make_net(s, &block);
    size_t e;
    int status = NRM_OK;
    if (!net ||
        training_set_make(&train, d->train_images, d->train_labels, samples, DATASET_PIXELS,
                          DATASET_RAW01) ||
        training_set_make(&test, d->test_images, d->test_labels, d->test_n, DATASET_PIXELS,
                          DATASET_RAW01) ||
        training_order_start(&order, train.n, s->batch, DATASET_PIXELS, s->seed))
        return 1;
    for (e = 1; e <= s->epochs && status >= 0; e++) {
        const double start = now();
        nrm_acc accuracy = 0;
        double loss, seconds;
        status = epoch(net, &order, &train, &loss);
        seconds = now() - start;
        if (status >= 0) status = nrm_mlp_eval(net, NULL, &accuracy, test.x, test.labels, test.n);
        printf("normlayers %s %zu %s epoch %zu seconds %.4f loss %.4f accuracy %.4f\n", s->widths,
               s->batch, s->norm_name, e, seconds, loss, (double)accuracy);
        fflush(stdout);
    }
    training_order_free(&order);
    training_set_free(&train);
    training_set_free(&test);
    free(block);
    return status < 0 ? 1 : 0;
}

static int product(void)
{
    enum { SIZE = 512, TIMES = 10, EACH = 4 };
    static nrm_real a[SIZE * SIZE], b[SIZE * SIZE], c[SIZE * SIZE];
    double best = 1e9;
    nrm_rng rng;
    size_t i;
    int k, e;
    nrm_rng_seed(&rng, 1, 0);
    for (i = 0; i < SIZE * SIZE; i++) {
        a[i] = draw_normal(&rng);
        b[i] = draw_normal(&rng);
    }
    for (k = 0; k < TIMES; k++) {
        const double start = now();
        double seconds;
        for (e = 0; e < EACH; e++)
            if (nrm_linear_forward(c, a, b, NULL, SIZE, SIZE, SIZE)) return 1;
        seconds = (now() - start) / EACH;
        if (seconds < best) best = seconds;
    }
    printf("product normlayers %.1f\n", 2e-9 * SIZE * SIZE * SIZE / best);
    return 0;
}

static int usage(const char *what)
{
    fprintf(stderr,
            "mnist: %s\nusage: mnist DATA_DIR none|batch|layer|noisy|group|rms WIDTH1-WIDTH2 BATCH "
            "SAMPLES EPOCHS SEED\n",
            what);
    return 2;
}

int main(int argc, char **argv)
{
    static const char *const names[6] = {"none", "batch", "layer", "noisy", "group", "rms"};
    char err[DATASET_ERR_MAX], *dash;
    dataset d;
    settings s;
    int failed;
    if (argc == 2 && strcmp(argv[1], "product") == 0) return product();
    if (argc != 8) return usage("seven arguments, please");
    s.norm_name = argv[2];
    s.widths = argv[3];
    for (s.norm = 0; s.norm < 6 && strcmp(argv[2], names[s.norm]) != 0;) s.norm++;
    s.width[0] = (size_t)strtoul(argv[3], &dash, 10);
    s.width[1] = *dash == '-' ? (size_t)strtoul(dash + 1, NULL, 10) : 0;
    s.batch = (size_t)strtoul(argv[4], NULL, 10);
    s.samples = (size_t)strtoul(argv[5], NULL, 10);
    s.epochs = (size_t)strtoul(argv[6], NULL, 10);
    s.seed = (uint64_t)strtoul(argv[7], NULL, 10);
    if (s.norm == 6) return usage("unknown norm");
    if (!s.width[0] || !s.width[1] || !s.batch || !s.samples)
        return usage("widths, batch and samples are positive numbers");
    if (dataset_load(&d, argv[1], 1, 0, 0, err)) return usage(err);
    failed = run(&d, &s);
    dataset_free(&d);
    return failed;
}
