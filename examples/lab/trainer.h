/* trainer.h - one training of a network, with what an experiment looks at on the way.

   A plan says which network, on which data, for how many steps, and when it is looked at. A look
   may record what it likes and must leave the training as it was: in quick runs the training is
   done without looks first, and "same_bits" records whether both end with the same bits
   (lab_check_same_bits judges it). An example:

       static nrm_mlp_spec network(trainer *t)
       {
           return training_plain(t->layer, 2, 100, NRM_RELU, t->run->arm ? NRM_BATCH_NORM : 0);
       }

       static int look(trainer *t)
       {
           lab_record(t->run, "loss", (double)t->step, t->loss);
           return 0;
       }

       static int run(lab_run *r)
       {
           const trainer_plan plan =
               trainer_plan_of(.network = network, .set = &train, .batch = 128,
                               .steps = r->quick ? 20 : 500, .every = 10, .look = look);
           return trainer_run(r, &plan);
       }
*/
#ifndef TRAINER_H
#define TRAINER_H

#include "lab.h"
#include "normlayers.h"
#include "training.h"

enum { TRAINER_LAYERS = 32 }; /* of a network, at most */

struct trainer_plan;

typedef struct trainer {
    lab_run *run;
    const struct trainer_plan *plan;
    nrm_mlp_layer layer[TRAINER_LAYERS]; /* for plan->network to fill */
    nrm_mlp *net;
    training_order order; /* its x, labels, count: the present mini-batch  */
    size_t step;          /* steps made; none if status is NRM_NONFINITE   */
    double loss;          /* of the last step's mini-batch, before the step */
    int status;           /* what the header said of the last step         */
    int looked_at;        /* 0: nobody looks at this training, and it records nothing */
    void *block;
} trainer;

typedef struct trainer_plan {
    nrm_mlp_spec (*network)(trainer *t); /* the seed is the run's, max_batch at least batch  */
    int (*begin)(trainer *t);            /* or null: before the first step                   */
    int (*after)(trainer *t);            /* or null: after each step, looked at or not       */
    int (*look)(trainer *t);             /* or null: at every `every` steps                  */
    int (*end)(trainer *t); /* or null: after the training that was looked at; may change the net */
    /* or null, nrm_mlp_train_step: a step on t->order, with a status of the header. If t->looked_at
       it may look too */
    int (*learn)(trainer *t, nrm_acc *loss);
    const training_set *set;
    size_t batch, least, steps, every; /* batches shorter than `least` are passed over       */
    int replace;                       /* 1: batches are drawn with replacement, without epochs */
    uint64_t seed;                     /* of weights and noise; 0: the run's                  */
    int look_first;                    /* 1: a look before the first step too                 */
    int no_repeat; /* 1: without the other training of quick runs                          */
    void *context; /* the caller's                                                         */
} trainer_plan;

#define trainer_plan_of(...) ((trainer_plan){__VA_ARGS__}) /* .network = network, .set = ... */

/* The pieces, for trainings that are none of these. 0, or -1 after a line on stderr. */
int trainer_open(trainer *t, lab_run *run, const trainer_plan *plan);
void trainer_close(trainer *t);
void trainer_deal(trainer *t); /* the next mini-batch into t->order */

/* One step on a mini-batch that has been dealt, or that it deals (trainer_steps: n of them, until
   the loss is not finite). Returns 0, also with NRM_NONFINITE in t->status; -1 after an error. */
int trainer_learn(trainer *t);
int trainer_step(trainer *t);
int trainer_steps(trainer *t, size_t n);

/* On a data set with running statistics; loss may be null. nan after an error. */
double trainer_accuracy(trainer *t, const training_set *set, double *loss);

/* A whole training, and in a quick run the other one before it. 0, or -1. Hooks return 0, -1 if
   they failed, or 1 to end the training. One that diverges (NRM_NONFINITE) ends, but for `after`,
   which may set t->status to NRM_OK. */
int trainer_run(lab_run *run, const trainer_plan *plan);

/* A whole training and, whether quick or not, one without looks before it: whether both end with
   the same bits is recorded as `series`. */
int trainer_twice(lab_run *run, const trainer_plan *plan, const char *series);

#endif /* TRAINER_H */
