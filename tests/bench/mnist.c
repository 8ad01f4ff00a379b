/* bench_mnist: seconds per epoch of a 784-64-128-10 network, batches of 64, SGD: the work of one
   training step and the gathering of its batch, on one thread.

       bench_mnist DATA_DIR none|batch|layer EPOCHS SEED [BATCH]

   Prints one line per epoch: "normlayers NORM epoch E seconds S loss L accuracy A". The test pass
   is not timed. tests/bench/mnist.sh runs it in turn with the same network in PyTorch. */
#define _POSIX_C_SOURCE 200809L
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"
#define TRAINING_IMPLEMENTATION
#include "training.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static nrm_mlp *make_net(int norm, uint64_t seed, size_t batch, void **block)
{
    nrm_mlp_layer layer[3];
    nrm_mlp_spec spec = nrm_mlp_defaults();
    int l;
    memset(layer, 0, sizeof layer);
    for (l = 0; l < 3; l++) {
        layer[l].width = l == 0 ? 64 : l == 1 ? 128 : 10;
        layer[l].activation = l < 2 ? NRM_RELU : NRM_IDENTITY;
        layer[l].norm = l < 2 ? norm : NRM_NO_NORM;
        layer[l].bias = 1;
    }
    spec.inputs = DATASET_PIXELS;
    spec.layers = 3;
    spec.layer = layer;
    spec.max_batch = batch > 1000 ? batch : 1000;
    spec.seed = seed;
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

static int run(const dataset *d, int norm, const char *name, int epochs, uint64_t seed,
               size_t batch)
{
    training_set train, test;
    training_order order;
    void *block = NULL;
    nrm_mlp *net = make_net(norm, seed, batch, &block);
    int e, status = NRM_OK;
    if (!net ||
        training_set_make(&train, d->train_images, d->train_labels, d->train_n, DATASET_PIXELS,
                          DATASET_RAW01) ||
        training_set_make(&test, d->test_images, d->test_labels, d->test_n, DATASET_PIXELS,
                          DATASET_RAW01) ||
        training_order_start(&order, train.n, batch, DATASET_PIXELS, seed))
        return 1;
    for (e = 1; e <= epochs && status >= 0; e++) {
        const double start = now();
        nrm_acc accuracy = 0;
        double loss, seconds;
        status = epoch(net, &order, &train, &loss);
        seconds = now() - start;
        if (status >= 0) status = nrm_mlp_eval(net, NULL, &accuracy, test.x, test.labels, test.n);
        printf("normlayers %s epoch %d seconds %.4f loss %.4f accuracy %.4f\n", name, e, seconds,
               loss, (double)accuracy);
        fflush(stdout);
    }
    training_order_free(&order);
    training_set_free(&train);
    training_set_free(&test);
    free(block);
    return status < 0 ? 1 : 0;
}

int main(int argc, char **argv)
{
    const char *const names[3] = {"none", "batch", "layer"};
    char err[DATASET_ERR_MAX];
    dataset d;
    int norm = 0, failed;
    if (argc < 5) {
        fprintf(stderr, "usage: bench_mnist DATA_DIR none|batch|layer EPOCHS SEED [BATCH]\n");
        return 2;
    }
    while (norm < 3 && strcmp(argv[2], names[norm])) norm++;
    if (norm == 3 || dataset_load(&d, argv[1], 1, 0, 0, err)) {
        fprintf(stderr, "%s\n", norm == 3 ? "unknown norm" : err);
        return 2;
    }
    failed = run(&d, norm, names[norm], atoi(argv[3]), (uint64_t)strtoul(argv[4], NULL, 10),
                 argc > 5 ? (size_t)strtoul(argv[5], NULL, 10) : 64);
    dataset_free(&d);
    return failed;
}
