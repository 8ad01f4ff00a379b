/* draw.h - one random number where no array of them is wanted. */
#ifndef DRAW_H
#define DRAW_H

#include "normlayers.h"

static inline nrm_real draw_uniform(nrm_rng *rng)
{
    return nrm_rng_uniform(rng);
}

static inline nrm_real draw_normal(nrm_rng *rng)
{
    return nrm_rng_normal(rng);
}

#endif
