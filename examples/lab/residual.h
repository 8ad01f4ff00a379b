/* residual.h - deep networks of dense layers, for the experiments on depth: residual or plain.

   What a residual network of images is made of, with matrices in the place of convolutions:

       h_0 = ReLU(norm(x·W))                                    inputs -> width
       h_k = ReLU(h_(k-1) + norm(ReLU(norm(h_(k-1)·W₁))·W₂))    k = 1 .. depth, width -> width
       logits = h_depth·W                                       width -> classes

   so depth 27 has 56 layers of weights. There are no biases. The norm is batch norm, layer norm,
   both with learned gain and shift that start at 1 and 0, or none. Without one there are the
   weights alone. It is a nrm_mlp that has something of its own between the weights and the ReLU of
   a layer (training_between): layer 0 makes h_0, layers 2k-1 and 2k make block k, and layer 2k adds
   h_(k-1). Weights are drawn layer by layer from streams of the seed, so that networks that differ
   in their norm start from the same. An example:

       const deep_spec spec = {DEEP_RESIDUAL, NRM_BATCH_NORM, 0, 27, 0.9, 5e-4};
       deep_net net;
       if (deep_make(&net, &spec, 11)) return 1;
       while (training_next(&order, &set))
           if (deep_train_step(&net, 0.1, &loss, order.x, order.labels, order.count) != NRM_OK)
               break;
       deep_free(&net);

   Functions that can meet what is not finite return statuses of normlayers.h: NRM_OK,
   NRM_NONFINITE, or an error below 0. */
#ifndef RESIDUAL_H
#define RESIDUAL_H

#include "normlayers.h"
#include "training.h"

enum deep_kind { DEEP_RESIDUAL, DEEP_PLAIN };

typedef struct deep_spec {
    int kind;
    int norm;             /* plain networks without norm have biases instead, which start at 0 */
    int he;               /* 1: W ~ N(0, 2/in); 0: Glorot, normal if residual, uniform if plain */
    size_t depth;         /* residual blocks, or hidden layers with ReLU */
    nrm_real keep, decay; /* of SGD: what is kept of the last step; weight decay (residual only) */
    size_t inputs, width, classes, max_batch; /* 0: 784 inputs, and the sizes below */
} deep_spec;

enum { DEEP_BATCH = 128, DEEP_CLASSES = 10, DEEP_RESIDUAL_WIDTH = 64, DEEP_PLAIN_WIDTH = 100 };

typedef struct deep_net {
    deep_spec spec;
    nrm_mlp *mlp;             /* of a residual one 2·depth + 2 layers */
    nrm_real *params, *grads; /* [n_params] its own */
    size_t n_params, layers;  /* layers of weights */
    nrm_real *past;           /* [max_batch][width] on the way back: what passes a block by */
    int mode, track;          /* of the present call */
    void *block;
} deep_net;

int deep_make(deep_net *net, const deep_spec *spec, uint64_t seed); /* 0, or -1 and says why */
void deep_free(deep_net *net);

/* Loss, activations and gradients in train mode; nothing else changes: the tool for probes. loss
   may be NULL. */
int deep_gradient(deep_net *net, nrm_acc *loss, const nrm_real *x, const int *labels, size_t N);

/* One step of SGD, v <- keep·v + (g + decay·w), w <- w - rate·v, for all parameters alike; none if
   something is not finite. Running statistics move on. */
int deep_train_step(deep_net *net, nrm_real rate, nrm_acc *loss, const nrm_real *x,
                    const int *labels, size_t N);

/* Mean loss and accuracy of any number of examples with running statistics; either may be NULL. */
int deep_eval(deep_net *net, nrm_acc *loss, nrm_acc *accuracy, const nrm_real *x, const int *labels,
              size_t N);

/* Outputs [N][*width] of the last pass: 0 is the first layer's, k that of residual block k or of
   hidden layer k (whose 0 is its 1). */
const nrm_real *deep_output(const deep_net *net, size_t k, size_t *width);
const nrm_real *deep_prob(const deep_net *net);                                 /* [N][classes] */
const nrm_real *deep_weight_gradient(const deep_net *net, size_t l, size_t *n); /* of layer l */

#endif /* RESIDUAL_H */
