/* trainer.c - see trainer.h. */
#include "trainer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int trainer_open(trainer *t, lab_run *run, const trainer_plan *plan)
{
    nrm_mlp_spec spec;
    memset(t, 0, sizeof *t);
    t->run = run;
    t->plan = plan;
    t->looked_at = 1;
    spec = plan->network(t);
    spec.seed = plan->seed ? plan->seed : run->seed;
    if (spec.max_batch < plan->batch) spec.max_batch = plan->batch;
    t->net = training_net(&spec, &t->block);
    if (!t->net) return -1;
    if (!training_order_start(&t->order, plan->set->n, plan->batch, plan->set->features, run->seed))
        return 0;
    fprintf(stderr, "out of memory\n");
    return -1;
}

void trainer_close(trainer *t)
{
    training_order_free(&t->order);
    free(t->block);
}

void trainer_deal(trainer *t)
{
    if (t->plan->replace)
        training_draw(&t->order, t->plan->set);
    else
        training_go_on(&t->order, t->plan->set, t->plan->least ? t->plan->least : 1);
}

int trainer_learn(trainer *t)
{
    nrm_acc loss = 0;
    t->status = t->plan->learn ? t->plan->learn(t, &loss)
                               : nrm_mlp_train_step(t->net, &loss, t->order.x, t->order.labels,
                                                    t->order.count);
    t->loss = (double)loss;
    if (t->status == NRM_OK) t->step++;
    if (t->status < 0)
        fprintf(stderr, "step %lu: %s\n", (unsigned long)t->step + 1, nrm_strerror(t->status));
    return t->status < 0 ? -1 : 0;
}

int trainer_step(trainer *t)
{
    trainer_deal(t);
    return trainer_learn(t);
}

int trainer_steps(trainer *t, size_t n)
{
    int failed = 0;
    for (; n > 0 && !failed && t->status != NRM_NONFINITE; n--) failed = trainer_step(t);
    return failed;
}

double trainer_accuracy(trainer *t, const training_set *set, double *loss)
{
    nrm_acc mean = (nrm_acc)NAN, accuracy = (nrm_acc)NAN;
    const int rc = nrm_mlp_eval(t->net, &mean, &accuracy, set->x, set->labels, set->n);
    if (rc < 0) fprintf(stderr, "test: %s\n", nrm_strerror(rc));
    if (loss) *loss = (double)mean;
    return rc < 0 ? (double)NAN : (double)accuracy;
}

static int traineri_all(trainer *t)
{
    const trainer_plan *plan = t->plan;
    int rc = plan->begin ? plan->begin(t) : 0;
    if (!rc && plan->look_first && t->looked_at) rc = plan->look(t);
    while (t->step < plan->steps && !rc) {
        rc = trainer_step(t);
        if (!rc && plan->after) rc = plan->after(t);
        if (!rc && t->status == NRM_NONFINITE) rc = 1;
        if (!rc && plan->look && t->looked_at && t->step % plan->every == 0) rc = plan->look(t);
        if (t->looked_at) lab_progress(t->run, (double)t->step / (double)plan->steps);
    }
    return rc < 0 ? -1 : 0;
}

int trainer_twice(lab_run *run, const trainer_plan *plan, const char *series)
{
    trainer bare, t;
    int same = 0, failed = 0;
    memset(&bare, 0, sizeof bare);
    if (series) {
        failed = trainer_open(&bare, run, plan);
        bare.looked_at = 0;
        if (!failed) failed = traineri_all(&bare);
    }
    if (trainer_open(&t, run, plan) || failed || traineri_all(&t)) failed = -1;
    if (!failed && series) same = training_same_bits(t.net, bare.net);
    if (!failed && plan->end) failed = plan->end(&t) < 0;
    if (!failed && series) lab_record(run, series, 0, same);
    trainer_close(&t);
    trainer_close(&bare);
    return failed ? -1 : 0;
}

int trainer_run(lab_run *run, const trainer_plan *plan)
{
    const int repeated = run->quick && (plan->look || plan->learn) && !plan->no_repeat;
    return trainer_twice(run, plan, repeated ? "same_bits" : NULL);
}
