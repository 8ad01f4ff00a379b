/* groups.h - what is normalized together in a problem of accuracy.c, as reference.h has it. Include
   it after reference.h. */
#ifndef ACCURACY_GROUPS_H
#define ACCURACY_GROUPS_H

#include "accuracy.h"

static inline size_t group_count(const problem *p)
{
    return p->layer == BATCH_NORM ? p->C : p->N * p->G;
}

static inline ref_group group_number(const problem *p, size_t k)
{
    if (p->layer == BATCH_NORM) return ref_channel(k, p->N, p->C, p->S);
    return ref_channels(k / p->G, k % p->G, p->C, p->S, p->G);
}

#endif
