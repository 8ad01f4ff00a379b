/* pause.c FOLDER - trains a network, saves all that a pause must not change, loads it into another
   network and trains both on: not a bit of difference. */
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"
#define NPZ_IMPLEMENTATION
#include "../npz.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST = 64, /* arrays: 8 and 7 for each layer */
    REAL = sizeof(nrm_real) == 4 ? NPZ_F32 : NPZ_F64,
    ACC = sizeof(nrm_acc) == 4 ? NPZ_F32 : NPZ_F64,
    SIZE = sizeof(size_t) == 4 ? NPZ_U32 : NPZ_U64
};

/* The arrays of a network: how many. name: their names, layer0.W and so on. */
static size_t arrays_of(npz_array *a, char (*name)[32], nrm_mlp *net)
{
    static const char *const part[7] = {"W", "b", "gamma", "beta", "mean", "var", "batches"};
    size_t n = 0, l, k;
    for (l = 0; l < net->spec.layers; l++) {
        nrm_mlp_state *s = &net->state[l];
        nrm_real *const data[6] = {s->W, s->b, s->gamma, s->beta, s->running.mean, s->running.var};
        for (k = 0; k < 7; k++) {
            if (k < 6 ? data[k] == NULL : s->running.mean == NULL) continue;
            sprintf(name[n], "layer%u.%s", (unsigned)l, part[k]);
            if (k == 0)
                a[n] = npz_make(name[n], REAL, s->W, 2, s->in, s->shape.width);
            else if (k < 6)
                a[n] = npz_make(name[n], REAL, data[k], 1, s->shape.width, 0);
            else
                a[n] = npz_make(name[n], SIZE, &s->running.batches, 0, 0, 0);
            n++;
        }
    }
    if (net->moment1 != NULL) a[n++] = npz_make("moment1", REAL, net->moment1, 1, net->n_params, 0);
    if (net->moment2 != NULL) a[n++] = npz_make("moment2", REAL, net->moment2, 1, net->n_params, 0);
    a[n++] = npz_make("steps", SIZE, &net->steps, 0, 0, 0);
    a[n++] = npz_make("beta1_power", ACC, &net->beta1_power, 0, 0, 0);
    a[n++] = npz_make("beta2_power", ACC, &net->beta2_power, 0, 0, 0);
    a[n++] = npz_make("rng.state", NPZ_U64, &net->rng.state, 0, 0, 0);
    a[n++] = npz_make("rng.increment", NPZ_U64, &net->rng.increment, 0, 0, 0);
    a[n++] = npz_make("rng.has_spare", NPZ_I32, &net->rng.has_spare, 0, 0, 0);
    a[n++] = npz_make("rng.spare", sizeof net->rng.spare == 4 ? NPZ_F32 : NPZ_F64, &net->rng.spare,
                      0, 0, 0);
    return n;
}

static nrm_mlp *make_network(uint64_t seed)
{
    static const nrm_mlp_layer layer[2] = {{8, NRM_RELU, NRM_BATCH_NORM, 0, 0, 0, 0},
                                           {3, NRM_IDENTITY, NRM_NO_NORM, 0, 1, 0, 0}};
    nrm_mlp_spec spec = nrm_mlp_defaults();
    nrm_mlp *net = NULL;
    void *block;
    spec.inputs = 2;
    spec.layers = 2;
    spec.layer = layer;
    spec.max_batch = 4;
    spec.optimizer = NRM_ADAM;
    spec.lr = (nrm_real)0.01;
    spec.seed = seed;
    block = malloc(nrm_mlp_bytes(&spec)); /* a small program: never freed */
    if (block == NULL || nrm_mlp_init(&net, block, nrm_mlp_bytes(&spec), &spec) != NRM_OK) exit(1);
    return net;
}

static void train(nrm_mlp *net, int steps)
{
    const nrm_real x[4][2] = {{0, 1}, {1, 0}, {1, 1}, {2, 3}};
    const int labels[4] = {0, 1, 2, 0};
    while (steps-- > 0) nrm_mlp_train_step(net, NULL, x[0], labels, 4);
}

int main(int argc, char **argv)
{
    char path[1000];
    nrm_mlp *net = make_network(1), *other = make_network(2);
    npz_context context = {NULL, NULL, NULL, 0, 0, ""};
    npz_array list[MOST];
    char name[MOST][32];
    int rc, same;
    snprintf(path, sizeof path, "%s/net.npz", argc > 1 ? argv[1] : ".");
    train(net, 10);
    rc = npz_save(path, list, arrays_of(list, name, net), &context);
    if (rc == NPZ_OK) /* most often in another program */
        rc = npz_load(path, list, arrays_of(list, name, other), &context);
    if (rc != NPZ_OK) {
        fprintf(stderr, "%s, %s: %s\n", path, context.name, npz_strerror(rc));
        return 1;
    }
    train(net, 10);
    train(other, 10);
    same = memcmp(net->params, other->params, net->n_params * sizeof *net->params) == 0;
    printf("after the pause: %s\n", same ? "the same bits" : "a difference");
    return !same;
}
