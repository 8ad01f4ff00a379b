/* convolution.h - a small convolutional network, for what batch, group, layer and instance norm do
   with images.

       images [N][side][side], 1 channel
       h = the largest of each 2 x 2 of ReLU(norm(3 x 3 convolution)), twice, to 8 and 16 channels
       logits = h·W + b

   The norm is before ReLU, or after it, or nowhere: then there are biases. Each convolution is made
   of the header's linear layer: for one image its output [out][S] is the kernel [out][9·in] times
   the patches [9·in][S], so the kernel plays the input and the patches play the weights.

       convolution_net *c = convolution_make(NRM_BATCH_NORM, 0, DATASET_SIDE, seed);
       if (convolution_gradient(c, &loss, x, labels, 32, 1)) return 1;
       for (i = 0; i < c->params; i++) c->theta[i] -= rate * c->grad[i];
       free(c);
*/
#ifndef CONVOLUTION_H
#define CONVOLUTION_H

#include "normlayers.h"

enum { CONVOLUTION_BATCH = 64, CONVOLUTION_SIDE = 28, CONVOLUTION_CLASSES = 10 }; /* at most */
enum { CONVOLUTION_INSTANCE = 100 };                                              /* a norm */

enum { /* sizes of memory */
       CONVOLUTION_STAGES = 2,
       CONVOLUTION_FIRST = 8, /* channels */
       CONVOLUTION_SECOND = 16,
       CONVOLUTION_CELLS = CONVOLUTION_SIDE * CONVOLUTION_SIDE,
       CONVOLUTION_MAPS = CONVOLUTION_BATCH * CONVOLUTION_FIRST * CONVOLUTION_CELLS,
       CONVOLUTION_KERNEL = CONVOLUTION_SECOND * 9 * CONVOLUTION_FIRST,
       CONVOLUTION_PATCHES = 9 * CONVOLUTION_FIRST * CONVOLUTION_CELLS / 4,
       CONVOLUTION_FEATURES = CONVOLUTION_SECOND * CONVOLUTION_CELLS / 16,
       CONVOLUTION_PARAMS =
           2 * CONVOLUTION_KERNEL + (CONVOLUTION_FEATURES + 1) * CONVOLUTION_CLASSES
};

typedef struct
    convolution_stage {          /* convolution, norm and ReLU in either order, largest of 2 x 2 */
    size_t in, out, side, cells; /* cells: side·side, positions of a channel */
    int norm, after;
    nrm_real *K, *gamma, *beta;    /* [out][9·in], [out]; without a norm beta is the bias */
    nrm_real *dK, *dgamma, *dbeta; /* their gradients                                     */
    nrm_real patches[CONVOLUTION_BATCH * CONVOLUTION_PATCHES]; /* [N][9·in][cells] */
    nrm_real dpatches[CONVOLUTION_PATCHES];                    /* of one image     */
    nrm_real z[CONVOLUTION_MAPS], y[CONVOLUTION_MAPS], h[CONVOLUTION_MAPS],
        d[CONVOLUTION_MAPS];                                         /* [N][out][cells] */
    nrm_real pooled[CONVOLUTION_MAPS / 4], part[CONVOLUTION_KERNEL]; /* a quarter; [out][9·in] */
    size_t from[CONVOLUTION_MAPS / 4];                               /* whose value it is */
    nrm_acc mean[CONVOLUTION_BATCH * CONVOLUTION_SECOND];
    nrm_acc rstd[CONVOLUTION_BATCH * CONVOLUTION_SECOND];
    nrm_real running_mean[CONVOLUTION_SECOND], running_var[CONVOLUTION_SECOND];
    nrm_running running; /* of batch norm */
} convolution_stage;

typedef struct convolution_net { /* memory that is not used stays untouched */
    convolution_stage stage[CONVOLUTION_STAGES];
    size_t features, params;
    nrm_real *W, *b, *dW, *db;                                    /* the linear layer */
    nrm_real theta[CONVOLUTION_PARAMS], grad[CONVOLUTION_PARAMS]; /* everything that is trained */
    nrm_real logits[CONVOLUTION_BATCH * CONVOLUTION_CLASSES];
    nrm_real prob[CONVOLUTION_BATCH * CONVOLUTION_CLASSES];
    nrm_real d[CONVOLUTION_BATCH * CONVOLUTION_FEATURES];
} convolution_net;

/* norm: none, batch, layer, group (of four groups) or instance norm; `after` ReLU. To be freed;
   NULL if memory is out. */
convolution_net *convolution_make(int norm, int after, size_t side, uint64_t seed);

/* Logits, and loss and gradients in train mode; with `track` running statistics move on. 0, also if
   something is not finite, or -1. */
int convolution_forward(convolution_net *c, const nrm_real *x, size_t N, int mode, int track);
int convolution_gradient(convolution_net *c, nrm_acc *loss, const nrm_real *x, const int *labels,
                         size_t N, int track);

#endif /* CONVOLUTION_H */
