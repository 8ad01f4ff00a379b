/* A user of the header without the implementation, in C or C++: layer norm of one row. */
#include "normlayers.h"
#include "normlayers.h"
#include "user.h"

int user_layernorm(void)
{
    const nrm_real x[4] = {3, 5, 3, 5}, beta[4] = {10, 20, 30, 40};
    nrm_real y[4];
    int rc = nrm_layernorm_forward(y, NULL, NULL, x, NULL, beta, NRM_EPS, 1, 4);
    if (rc != NRM_OK) return 1;
    /* x̂ is -1 and 1 */
    return !((int)(1000 * y[0] + (nrm_real)0.5) == 9000 &&
             (int)(1000 * y[3] + (nrm_real)0.5) == 41000);
}
