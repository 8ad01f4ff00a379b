/* A second user of the header without the implementation, in C or C++: a batch norm and a network
   whose parameters come out of the stream of its seed. */
#include "user.h"
#include "normlayers.h"

int user_batchnorm(void)
{
    const nrm_real x[4] = {3, 100, 5, 300};
    nrm_real y[4];
    nrm_acc mean[2], rstd[2];
    nrm_mlp_layer layer[1] = {{2, NRM_IDENTITY, NRM_BATCH_NORM, 0, 0, 0, 0}};
    nrm_mlp_spec spec = nrm_mlp_defaults();
    int rc = nrm_batchnorm_forward(y, mean, rstd, NULL, x, NULL, NULL, NRM_TRAIN, NRM_EPS, 2, 2, 1);
    spec.inputs = 2;
    spec.layers = 1;
    spec.layer = layer;
    spec.max_batch = 2;
    if (rc != NRM_OK || nrm_mlp_bytes(&spec) == 0) return 1;
    return !((int)(1000 * mean[0] + (nrm_acc)0.5) == 4000 &&
             (int)(1000 * y[3] + (nrm_real)0.5) == 1000);
}
