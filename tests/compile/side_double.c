/* Double, in a program that has float beside it: see main_side.c. */
#ifndef NRM_DOUBLE
#define NRM_DOUBLE
#endif
#include "normlayers.h"
#include "user.h"

int user_double(void)
{
    nrm_real x[3] = {1, 2, 6}, y[3], u;
    nrm_rng rng;
    int rc = nrm_layernorm_forward(y, NULL, NULL, x, NULL, NULL, NRM_EPS, 1, 3);
    nrm_rng_seed(&rng, 1, 2);
    nrm_rng_uniform(&rng, &u, 1);
    if (rc != NRM_OK || sizeof(nrm_real) != sizeof(double)) return 1;
    return !(100 * y[0] > -93 && 100 * y[0] < -92 && u < 1);
}
