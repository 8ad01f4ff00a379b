/* flatness.h - how flat the loss of a network is around its parameters.

   A view is the loss of n images, taken as one batch in train mode, as a function of the
   parameters; what looks at it puts them back. Two measures of it:

       flatness_lanczos   the largest eigenvalue of the Hessian, by Lanczos: H times a vector of
                          length 1 is the difference of the gradients at ±0.01 of it. Sees the
                          scale of the weights.
       flatness_shake     what noise in the weights does to the loss, and to the decisions. Noise
                          into each unit as long as its weights (Li et al. 2018, filters) does not
                          see the scale of a layer, noise relative to each weight not that of a
                          unit.

   An example:

       flatness_view v;
       flatness_eigenvalue top;
       if (flatness_open(&v, net, x, labels, 2000) == 0 &&
           flatness_lanczos(&v, seed, 12, &top) >= 0)
           printf("%g, or an eigenvalue at most %g from it\n", top.value, top.error);
       flatness_close(&v);

   Functions that evaluate return statuses of normlayers.h, or -1 if memory is out. */
#ifndef FLATNESS_H
#define FLATNESS_H

#include "normlayers.h"
#include "training.h"

enum { FLATNESS_KRYLOV = 24 }; /* steps of Lanczos, at most */
enum { FLATNESS_FILTER, FLATNESS_RELATIVE, FLATNESS_KINDS };
enum { FLATNESS_STREAM = TRAINING_STREAM_DATA + 20 }; /* + which direction; + 20: Lanczos */

typedef struct flatness_view {
    nrm_mlp *net;
    const nrm_real *x;
    const int *labels;
    size_t n;
    nrm_real *kept; /* [n_params] from where it looks */
} flatness_view;

typedef struct flatness_eigenvalue {
    double value; /* the largest eigenvalue of the Hessian                     */
    double error; /* some eigenvalue of the Hessian is as near to it as this   */
} flatness_eigenvalue;

typedef struct flatness_harm {
    double rise;    /* of the loss                              */
    double changed; /* share of the images decided otherwise    */
} flatness_harm;

int flatness_open(flatness_view *v, nrm_mlp *net, const nrm_real *x, const int *labels, size_t n);
void flatness_close(flatness_view *v);

/* From now on from the parameters as they are. */
void flatness_here(flatness_view *v);

/* The loss, and net->grads, at kept + t d; d null: at kept. */
int flatness_at(flatness_view *v, const nrm_real *d, double t, double *loss);

int flatness_lanczos(flatness_view *v, uint64_t seed, size_t steps, flatness_eigenvalue *out);

/* W + size·d, in the mean over so many random directions d. */
int flatness_shake(flatness_view *v, int kind, uint64_t seed, double size, size_t directions,
                   flatness_harm *out);

#endif /* FLATNESS_H */
