/* draw.h - one random number where no array of them is wanted. */
#ifndef DRAW_H
#define DRAW_H

#include "normlayers.h"

static inline nrm_real draw_uniform(nrm_rng *rng)
{
    nrm_real u = 0;
    nrm_rng_uniform(rng, &u, 1);
    return u;
}

static inline nrm_real draw_normal(nrm_rng *rng)
{
    nrm_real z = 0;
    nrm_rng_normal(rng, &z, 1);
    return z;
}

#endif
