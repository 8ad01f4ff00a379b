/* spiral.c - trains a small network with batch norm to tell two spiral arms apart: the shortest way
   from data to a trained network. */
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"
#include <math.h>
#include <stdio.h>

enum { N = 200, WIDTH = 32, STEPS = 500 };

static void points(nrm_real x[N][2], int label[N], nrm_rng *rng)
{
    int i;
    for (i = 0; i < N; i++) {
        nrm_real t, noise[2];
        double angle = 3.14159265 * (label[i] = i % 2);
        nrm_rng_uniform(rng, &t, 1);
        nrm_rng_normal(rng, noise, 2);
        angle += 6 * (double)t;
        x[i][0] = (nrm_real)((double)t * cos(angle) + 0.02 * (double)noise[0]);
        x[i][1] = (nrm_real)((double)t * sin(angle) + 0.02 * (double)noise[1]);
    }
}

int main(void)
{
    static unsigned char block[1 << 18]; /* the network's memory: nrm_mlp_bytes says how much */
    static nrm_real x[N][2], fresh[N][2];
    static int label[N], fresh_label[N];
    const nrm_mlp_layer layer[] = {{.width = WIDTH, .activation = NRM_RELU, .norm = NRM_BATCH_NORM},
                                   {.width = WIDTH, .activation = NRM_RELU, .norm = NRM_BATCH_NORM},
                                   {.width = 2, .bias = 1}}; /* two classes */
    nrm_mlp_spec spec = nrm_mlp_defaults();
    nrm_mlp *net;
    nrm_rng rng;
    nrm_acc loss = 0, accuracy = 0;
    int step, rc;
    nrm_rng_seed(&rng, 7, 100);
    points(x, label, &rng);
    points(fresh, fresh_label, &rng);
    spec.inputs = 2, spec.layers = 3, spec.layer = layer, spec.max_batch = N;
    rc = nrm_mlp_init(&net, block, sizeof block, &spec);
    for (step = 1; step <= STEPS && rc == NRM_OK; step++) {
        rc = nrm_mlp_train_step(net, &loss, x[0], label, N);
        if (step % 100 == 0) printf("step %d, loss %.3f\n", step, (double)loss);
    }
    if (rc == NRM_OK) rc = nrm_mlp_eval(net, &loss, &accuracy, fresh[0], fresh_label, N);
    printf("%s; on fresh points: loss %.3f, accuracy %.3f\n", nrm_strerror(rc), (double)loss,
           (double)accuracy);
    return rc;
}
