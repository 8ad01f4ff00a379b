/* residual.h - a residual network of dense layers, for the experiments on depth; and deep_net, that
   or a plain network behind one interface.

   What a residual network of images is made of, with matrices in the place of convolutions:

       h_0 = ReLU(norm(x·W))                                    inputs -> width
       h_k = ReLU(h_(k-1) + norm(ReLU(norm(h_(k-1)·W₁))·W₂))    k = 1 .. blocks, width -> width
       logits = h_blocks·W                                      width -> classes

   so 27 blocks have 56 layers of weights. There are no biases. The norm is batch norm, layer norm,
   both with learned gain and shift that start at 1 and 0, or none. Without one there are the
   weights alone. It is a nrm_mlp that has something of its own between the weights and the ReLU of
   a layer (training_between): layer 0 makes h_0, layers 2k-1 and 2k make block k, and layer 2k adds
   h_(k-1). Weights are drawn layer by layer from streams of the seed, so that networks that differ
   in their norm start from the same.

   An example:

       residual_spec spec = {784, 64, 27, 10, 128, NRM_BATCH_NORM, 0, 0.9, 11};
       residual_net net;
       if (residual_make(&net, &spec)) return 1;
       while (training_next(&order, &set)) {
           if (residual_gradient(&net, &loss, order.x, order.labels, order.count, 1) != NRM_OK)
               break;
           residual_step(&net, 0.1, 5e-4);
       }
       residual_free(&net);

   Functions that can meet what is not finite return statuses of normlayers.h: NRM_OK,
   NRM_NONFINITE, or an error below 0. */
#ifndef RESIDUAL_H
#define RESIDUAL_H

#include "normlayers.h"
#include "training.h"

typedef struct residual_spec {
    size_t inputs, width, blocks, classes;
    size_t max_batch; /* the largest batch of one call                        */
    int norm;         /* NRM_NO_NORM, NRM_BATCH_NORM or NRM_LAYER_NORM        */
    int he;           /* 1: W ~ N(0, 2/in); 0: Glorot, W ~ N(0, 2/(in + out)) */
    nrm_real keep;    /* of SGD: what is kept of the last step                */
    uint64_t seed;
} residual_spec;

typedef struct residual_net {
    nrm_mlp *mlp;    /* 2·blocks + 2 layers, with all parameters, outputs and gradients */
    nrm_real *past;  /* [max_batch][width] on the way back: what passes a block by      */
    int mode, track; /* of the present call                                             */
    void *block;
} residual_net;

/* Allocates and draws the weights. Returns 0, or -1 after a line on stderr. */
int residual_make(residual_net *net, const residual_spec *spec);
void residual_free(residual_net *net);

/* Loss and mlp->grads in train mode. With `track` running statistics move on; without, nothing but
   activations and gradients changes: the tool for probes. loss may be NULL. */
int residual_gradient(residual_net *net, nrm_acc *loss, const nrm_real *x, const int *labels,
                      size_t N, int track);

/* v <- keep·v + (g + decay·w), w <- w - rate·v, for all parameters alike; leaves g + decay·w in the
   gradients. */
int residual_step(residual_net *net, nrm_real rate, nrm_real decay);

/* Mean loss and accuracy of any number of examples with running statistics; either may be NULL. */
int residual_eval(residual_net *net, nrm_acc *loss, nrm_acc *accuracy, const nrm_real *x,
                  const int *labels, size_t N);

/* ---- a network of either kind ---------------------------------------------------------------- */

enum deep_kind { DEEP_RESIDUAL, DEEP_PLAIN };

typedef struct deep_spec {
    int kind;
    int norm;             /* plain networks without norm have biases instead, which start at 0 */
    int he;               /* 1: W ~ N(0, 2/in); 0: Glorot, normal if residual, uniform if plain */
    size_t depth;         /* residual blocks of width 64, or hidden layers of 100 units with ReLU */
    nrm_real keep, decay; /* of SGD: what is kept of the last step; weight decay (residual only) */
} deep_spec;

enum { DEEP_BATCH = 128, DEEP_CLASSES = 10, DEEP_RESIDUAL_WIDTH = 64, DEEP_PLAIN_WIDTH = 100 };

typedef struct deep_net { /* for 28·28 inputs, 10 classes and batches of up to 128 */
    deep_spec spec;
    residual_net residual;    /* of a plain one the network alone */
    nrm_mlp *mlp;             /* that of both kinds */
    nrm_real *params, *grads; /* [n_params] */
    size_t n_params, layers;  /* layers of weights */
} deep_net;

int deep_make(deep_net *net, const deep_spec *spec, uint64_t seed); /* 0 or -1 */
void deep_free(deep_net *net);

/* Loss, activations and gradients in train mode; nothing else changes. */
int deep_gradient(deep_net *net, nrm_acc *loss, const nrm_real *x, const int *labels, size_t N);

/* One step of SGD; none if something is not finite. */
int deep_train_step(deep_net *net, nrm_real rate, nrm_acc *loss, const nrm_real *x,
                    const int *labels, size_t N);
int deep_eval(deep_net *net, nrm_acc *loss, nrm_acc *accuracy, const nrm_real *x, const int *labels,
              size_t N);

/* Outputs [N][*width] of the last pass: 0 is the first layer's, k that of residual block k or of
   hidden layer k (whose 0 is its 1). */
const nrm_real *deep_output(const deep_net *net, size_t k, size_t *width);
const nrm_real *deep_prob(const deep_net *net);                                 /* [N][10] */
const nrm_real *deep_weight_gradient(const deep_net *net, size_t l, size_t *n); /* of layer l */

#endif /* RESIDUAL_H */
