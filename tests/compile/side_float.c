/* Float, in a program that has double beside it: see main_side.c. The size of nrm_real is part of
   the result, so that a call that reached the other implementation would show. */
#include "normlayers.h"
#include "user.h"

int user_float(void)
{
    nrm_real x[3] = {1, 2, 6}, y[3], u;
    nrm_rng rng;
    int rc = nrm_layernorm_forward(y, NULL, NULL, x, NULL, NULL, NRM_EPS, 1, 3);
    nrm_rng_seed(&rng, 1, 2);
    nrm_rng_uniform(&rng, &u, 1);
    if (rc != NRM_OK || sizeof(nrm_real) != sizeof(float)) return 1;
    return !(100 * y[0] > -93 && 100 * y[0] < -92 && u < 1);
}
