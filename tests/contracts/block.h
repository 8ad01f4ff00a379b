/* block.h - a network in a block of memory, and the block as it was: what has a call changed?
   Included by test_unchanged.c and tests/fuzz/fuzz_mlp.c. */
#ifndef BLOCK_H
#define BLOCK_H
#include <string.h>

enum { ROOM = 1 << 16 };

static union {
    double align;
    unsigned char at[ROOM];
} block, before;

static int same(const void *at, size_t bytes)
{
    const size_t from = (size_t)((const unsigned char *)at - block.at);
    return at == NULL || memcmp(at, before.at + from, bytes) == 0;
}

/* What no call may change that only looks. */
static int only_looked(const nrm_mlp *net)
{
    const size_t bytes = net->n_params * sizeof(nrm_real);
    size_t l;
    int ok = same(net, sizeof *net) && same(net->state, net->spec.layers * sizeof *net->state) &&
             same(net->params, bytes) && same(net->moment1, bytes) && same(net->moment2, bytes);
    for (l = 0; l < net->spec.layers; l++) {
        const nrm_running *r = &net->state[l].running;
        const size_t width = net->state[l].shape.width * sizeof(nrm_real);
        ok = ok && same(r->mean, width) && same(r->var, width);
    }
    return ok;
}
#endif
