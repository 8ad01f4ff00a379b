/* landscape.h - loss and gradient around the point in the space of its parameters where a training
   stands.

   From a place θ with the gradient g a program looks at θ - s·g, or at θ - s·d with a random d as
   long as g, and comes back: parameters are as before, and running statistics, optimizer and the
   random streams of the network were not touched. What is not finite counts as infinite.

   The parameters are those of a network (nrm_mlp), or the v, g and b of weight norm, which leaves
   the network as it is: W = g·v/|v| is written into it before, and the gradient by W taken back to
   v and g after.

   An example:

       landscape_model m;
       landscape_place p;
       landscape_view v;
       if (landscape_model_make(&m, net, 0) || landscape_place_make(&p, &m, seed)) return 1;
       landscape_batch(&m, &order);
       if (landscape_arrive(&p) < 0) return 1;
       landscape_view_start(&v);
       for (s = 0.05; s < 0.5; s *= 2) landscape_view_add(&v, &p, s);
       printf("the loss goes from %g to %g\n", v.lowest, v.highest);
       landscape_step(&m, &loss);
       landscape_place_free(&p);
       landscape_model_free(&m);

   Functions that evaluate return statuses of normlayers.h: NRM_OK, NRM_NONFINITE, or an error below
   0. */
#ifndef LANDSCAPE_H
#define LANDSCAPE_H

#include "normlayers.h"
#include "training.h"

/* ---- a network, or weight norm's parameters of one ------------------------------------------- */

typedef struct landscape_model {
    nrm_mlp *net; /* the caller's */
    int weight_norm;
    size_t n;
    nrm_real *params, *grads; /* [n] what is trained: the network's own, or v, b and g */
    nrm_acc *length;          /* [widths] of the columns of v */
    const nrm_real *x;        /* the present batch: the caller's */
    const int *labels;
    size_t rows;
    int (*evaluate)(struct landscape_model *, nrm_acc *loss); /* loss and grads at params */
} landscape_model;

/* With weight norm the hidden layers must be equally wide, have biases and no norm of their own; v
   starts as the W that the network has, the output layer keeps its W. Returns 0, or -1. */
int landscape_model_make(landscape_model *m, nrm_mlp *net, int weight_norm);
void landscape_model_free(landscape_model *m);

/* From now on on this mini-batch. */
void landscape_batch(landscape_model *m, const training_order *order);

/* One step of training. A loss that is not finite stops the training, but not the run. */
int landscape_step(landscape_model *m, nrm_acc *loss);

/* The first batch sets each unit's input of the activation to mean 0 and variance 1 (Salimans and
   Kingma 2016): g = 1/σ[t], b = -μ[t]/σ[t], layer by layer. A unit without input stays as it is. */
int landscape_first_batch(landscape_model *m);

/* Mean and variance of the columns of x [rows][cols], such as the units of a layer. */
void landscape_columns(const nrm_real *x, size_t rows, size_t cols, double *mean, double *var);

/* ---- looking around -------------------------------------------------------------------------- */

enum { LANDSCAPE_STREAM = TRAINING_STREAM_DATA + 16 }; /* of the random directions */

/* Where the training stands, to measure from and to come back to. */
typedef struct landscape_place {
    landscape_model *m;
    nrm_real *params, *grads, *direction; /* [n]: θ, g, and where to: g, or random of its length */
    nrm_acc loss;
    double length; /* |g| */
    nrm_rng rng;   /* of the directions: the network's own stream stays as it is */
} landscape_place;

int landscape_place_make(landscape_place *p, landscape_model *m, uint64_t seed); /* 0 or -1 */
void landscape_place_free(landscape_place *p);

/* Takes loss and gradient where the model stands now; the direction is that of the gradient. */
int landscape_arrive(landscape_place *p);

/* From now on in a random direction, as long as g. */
void landscape_turn(landscape_place *p);

/* Puts the first n parameters to θ - s·g, all others to θ: for a model's own evaluation there. */
void landscape_move(landscape_place *p, double s, size_t n);

/* Loss and |∇L - g| at θ - s·direction, and back. */
int landscape_look(landscape_place *p, double s, double *loss, double *change);

typedef struct landscape_view { /* over several looks: of loss, |∇L - g|, both over the distance */
    double lowest, highest, least, most, beta, slope;
} landscape_view;

void landscape_view_start(landscape_view *v);
int landscape_view_add(landscape_view *v, landscape_place *p, double s);

double landscape_range(const landscape_view *v); /* highest - lowest */
double landscape_or_infinite(double v);          /* infinity if v is not finite */

#endif /* LANDSCAPE_H */
