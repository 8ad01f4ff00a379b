/* mlp.c - the network, for analyse.sh. Its block ends where the addresses end that Eva lets it use,
   and every alignment of the block occurs. Two layers: n[0] inputs, n[1] units and the norm `mode`,
   2 classes; batches of n[2]. Parameters, gradients and inputs are any numbers. */
#include "any.h"

static nrm_mlp_layer layer[2];
static nrm_mlp_spec spec;

static size_t specify(const size_t *n, int mode)
{
    layer[0].width = n[1];
    layer[0].norm = mode;
    layer[0].activation = n[2] == 1 ? NRM_TANH : NRM_RELU;
    layer[0].norm_after = n[0] == 1;
    layer[0].bias = n[2] == 1;
    layer[0].groups = 1;
    layer[0].p = n[0] == 1 ? NRM_LINF : NRM_L1 + NRM_CENTRED;
    layer[1].width = 2;
    spec = nrm_mlp_defaults();
    spec.inputs = n[0];
    spec.layers = 2;
    spec.layer = layer;
    spec.max_batch = n[2];
    spec.optimizer = n[0] == 1 ? NRM_ADAM : NRM_SGD;
    Frama_C_make_unknown((char *)&spec.seed, sizeof spec.seed);
    return nrm_mlp_bytes(&spec);
}

static nrm_mlp *network(const size_t *n, int mode)
{
    const size_t bytes = specify(n, mode);
    nrm_mlp *net = NULL;
    if (bytes == 0) return NULL;
    if (nrm_mlp_init(&net, (void *)(BLOCK_END - n[0] - bytes), bytes, &spec) != NRM_OK) return NULL;
    Frama_C_make_unknown((char *)net->params, net->n_params * sizeof *net->params);
    Frama_C_make_unknown((char *)net->grads, net->n_params * sizeof *net->grads);
    return net;
}

static int mlp_init(const size_t *n, int mode)
{
    return network(n, mode) == NULL ? NRM_ENULL : NRM_OK;
}

static int mlp_forward(const size_t *n, int mode)
{
    nrm_mlp *net = network(n, mode % 8);
    return nrm_mlp_forward(net, IN(n[2] * n[0]), n[2], mode / 8);
}

static int mlp_gradient(const size_t *n, int mode)
{
    nrm_mlp *net = network(n, mode % 8);
    return nrm_mlp_gradient(net, ACC_OUT(1), IN(n[2] * n[0]), ANY(int, n[2]), n[2], mode / 8);
}

static int mlp_train_step(const size_t *n, int mode)
{
    nrm_mlp *net = network(n, mode);
    return nrm_mlp_train_step(net, ACC_OUT(1), IN(n[2] * n[0]), ANY(int, n[2]), n[2]);
}

static int mlp_step(const size_t *n, int mode)
{
    return nrm_mlp_step(network(n, mode));
}

static int mlp_eval(const size_t *n, int mode)
{
    const size_t N = n[2] + 1;
    nrm_mlp *net = network(n, mode);
    return nrm_mlp_eval(net, ACC_OUT(1), ACC_OUT(1), IN(N * n[0]), ANY(int, N), N);
}

static int mlp_bytes(const size_t *n, int mode)
{
    (void)mode;
    return specify(n, NRM_BATCH_NORM) == 0 ? NRM_EOVERFLOW : NRM_OK;
}

void analyse_nrm_mlp_bytes(void)
{
    all_sizes(mlp_bytes, 3, 2, 1);
    all_huge(mlp_bytes, 0, 1, -1, 0);
    all_huge(mlp_bytes, 2, 1, -1, 0);
}

void analyse_nrm_mlp_defaults(void)
{
    spec = nrm_mlp_defaults();
    //@ assert refused: spec.layer == \null && spec.layers == 0;
}
#define ANALYSE(name, modes, arrays)                                                               \
    void analyse_nrm_##name(void)                                                                  \
    {                                                                                              \
        all_sizes(name, 3, 2, modes);                                                              \
        all_missing(name, arrays, modes);                                                          \
    }
ANALYSE(mlp_init, 8, 0)
ANALYSE(mlp_forward, 24, 1)
ANALYSE(mlp_gradient, 24, 3)
ANALYSE(mlp_train_step, 8, 3)
ANALYSE(mlp_step, 8, 0)
ANALYSE(mlp_eval, 8, 4)
