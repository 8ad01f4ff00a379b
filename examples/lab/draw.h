/* draw.h - one random number where no array is wanted, or an array of a stream of its own. */
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

/* a[n] ~ N(0, sd²) */
static inline void draw_normals(nrm_real *a, size_t n, double sd, uint64_t seed, uint64_t stream)
{
    nrm_rng rng;
    size_t i;
    nrm_rng_seed(&rng, seed, stream);
    for (i = 0; i < n; i++) a[i] = (nrm_real)(sd * (double)draw_normal(&rng));
}

#endif
