/* call.h - a call of any layer, by the number of the function, with its arguments by name.

   The tests of contracts, statuses, bits and values, the claims and the benchmark fill a layer_call
   and pass it on, so that each prototype is written out once. The names are those of batch norm: of
   the linear layer gamma is W and beta is b, C the inputs and S the outputs; of weight norm x is v,
   y is W, mean is the norm, N the inputs and C the outputs; of a loss x are the logits and y the
   probabilities; of an activation N is the count and mode its kind. Include normlayers.h first. */
#ifndef CALL_H
#define CALL_H

enum { /* of a layer, and after it its backward pass */
    CALL_LINEAR, CALL_LINEAR_BACK, CALL_BATCHNORM, CALL_BATCHNORM_BACK,
    CALL_NOISY, CALL_NOISY_BACK, CALL_RENORM, CALL_RENORM_BACK, CALL_LP, CALL_LP_BACK,
    CALL_LAYERNORM, CALL_LAYERNORM_BACK, CALL_RMSNORM, CALL_RMSNORM_BACK,
    CALL_GROUPNORM, CALL_GROUPNORM_BACK, CALL_WEIGHTNORM, CALL_WEIGHTNORM_BACK,
    CALL_SYNC, CALL_SYNC_BACK, CALL_SYNC_SUMS, CALL_STATS_UPDATE, CALL_STATS_MERGE, CALL_FOLD,
    CALL_ACTIVATION, CALL_ACTIVATION_BACK, CALL_CROSS_ENTROPY, CALL_CROSS_ENTROPY_BACK,
    CALL_ACCURACY
};

typedef struct layer_call {
    const nrm_real *x, *dy, *gamma, *beta;
    nrm_real *y, *dx, *dgamma, *dbeta, *scale;
    nrm_acc *mean, *rstd, *ratio, *offset, *loss;
    nrm_running *running;
    const nrm_noise *noise;
    nrm_rng *rng;
    nrm_stats *stats, *from; /* merged into stats */
    nrm_sums *sums;
    const unsigned char *mask;
    const int *labels;
    size_t N, C, S, G;
    int mode, p;
    nrm_real eps, r_max, d_max;
} layer_call;

/* A status. */
static inline int call_layer(int function, const layer_call *c)
{
    switch (function) {
    case CALL_LINEAR: return nrm_linear_forward(c->y, c->x, c->gamma, c->beta, c->N, c->C, c->S);
    case CALL_LINEAR_BACK:
        return nrm_linear_backward(c->dx, c->dgamma, c->dbeta, c->dy, c->x, c->gamma, c->N, c->C,
                                   c->S);
    case CALL_BATCHNORM:
        return nrm_batchnorm_forward(c->y, c->mean, c->rstd, c->running, c->x, c->gamma, c->beta,
                                     c->mode, c->eps, c->N, c->C, c->S);
    case CALL_BATCHNORM_BACK:
        return nrm_batchnorm_backward(c->dx, c->dgamma, c->dbeta, c->dy, c->x, c->mean, c->rstd,
                                      c->gamma, c->mode, c->N, c->C, c->S);
    case CALL_NOISY:
        return nrm_noisy_batchnorm_forward(c->y, c->scale, c->mean, c->rstd, c->running, c->x,
                                           c->gamma, c->beta, c->noise, c->rng, c->mode, c->eps,
                                           c->N, c->C, c->S);
    case CALL_NOISY_BACK:
        return nrm_noisy_batchnorm_backward(c->dx, c->dgamma, c->dbeta, c->dy, c->scale, c->x,
                                            c->mean, c->rstd, c->gamma, c->mode, c->N, c->C, c->S);
    case CALL_RENORM:
        return nrm_batchrenorm_forward(c->y, c->ratio, c->offset, c->mean, c->rstd, c->running,
                                       c->x, c->gamma, c->beta, c->r_max, c->d_max, c->mode, c->eps,
                                       c->N, c->C, c->S);
    case CALL_RENORM_BACK:
        return nrm_batchrenorm_backward(c->dx, c->dgamma, c->dbeta, c->dy, c->x, c->ratio,
                                        c->offset, c->mean, c->rstd, c->gamma, c->mode, c->N, c->C,
                                        c->S);
    case CALL_LP:
        return nrm_lp_batchnorm_forward(c->y, c->mean, c->rstd, c->running, c->x, c->gamma, c->beta,
                                        c->p, c->mode, c->eps, c->N, c->C, c->S);
    case CALL_LP_BACK:
        return nrm_lp_batchnorm_backward(c->dx, c->dgamma, c->dbeta, c->dy, c->x, c->mean, c->rstd,
                                         c->gamma, c->p, c->mode, c->eps, c->N, c->C, c->S);
    case CALL_LAYERNORM:
        return nrm_layernorm_forward(c->y, c->mean, c->rstd, c->x, c->gamma, c->beta, c->eps, c->N,
                                     c->C);
    case CALL_LAYERNORM_BACK:
        return nrm_layernorm_backward(c->dx, c->dgamma, c->dbeta, c->dy, c->x, c->mean, c->rstd,
                                      c->gamma, c->N, c->C);
    case CALL_RMSNORM:
        return nrm_rmsnorm_forward(c->y, c->rstd, c->x, c->gamma, c->eps, c->N, c->C);
    case CALL_RMSNORM_BACK:
        return nrm_rmsnorm_backward(c->dx, c->dgamma, c->dy, c->x, c->rstd, c->gamma, c->N, c->C);
    case CALL_GROUPNORM:
        return nrm_groupnorm_forward(c->y, c->mean, c->rstd, c->x, c->gamma, c->beta, c->eps, c->N,
                                     c->C, c->S, c->G);
    case CALL_GROUPNORM_BACK:
        return nrm_groupnorm_backward(c->dx, c->dgamma, c->dbeta, c->dy, c->x, c->mean, c->rstd,
                                      c->gamma, c->N, c->C, c->S, c->G);
    case CALL_WEIGHTNORM: return nrm_weightnorm_forward(c->y, c->mean, c->x, c->gamma, c->N, c->C);
    case CALL_WEIGHTNORM_BACK:
        return nrm_weightnorm_backward(c->dx, c->dgamma, c->dy, c->x, c->mean, c->gamma, c->N,
                                       c->C);
    case CALL_SYNC:
        return nrm_sync_batchnorm_forward(c->y, c->mean, c->rstd, c->running, c->x, c->mask,
                                          c->stats, c->gamma, c->beta, c->eps, c->N, c->C, c->S);
    case CALL_SYNC_BACK:
        return nrm_sync_batchnorm_backward(c->dx, c->dy, c->x, c->mask, c->mean, c->rstd, c->gamma,
                                           c->stats, c->sums, c->N, c->C, c->S);
    case CALL_SYNC_SUMS:
        return nrm_sync_batchnorm_sums(c->sums, c->dgamma, c->dbeta, c->dy, c->x, c->mask, c->mean,
                                       c->rstd, c->N, c->C, c->S);
    case CALL_STATS_UPDATE: return nrm_stats_update(c->stats, c->x, c->mask, c->N, c->C, c->S);
    case CALL_STATS_MERGE: return nrm_stats_merge(c->stats, c->from, c->C);
    case CALL_FOLD: /* x and dy are W and b, y and dx what becomes of them */
        return nrm_batchnorm_fold(c->y, c->dx, c->x, c->dy, c->running, c->gamma, c->beta, c->eps,
                                  c->N, c->C, c->S);
    case CALL_ACTIVATION: return nrm_activation_forward(c->y, c->x, c->mode, c->N);
    case CALL_ACTIVATION_BACK: return nrm_activation_backward(c->dx, c->dy, c->y, c->mode, c->N);
    case CALL_CROSS_ENTROPY:
        return nrm_cross_entropy_forward(c->loss, c->y, c->x, c->labels, c->N, c->C);
    case CALL_CROSS_ENTROPY_BACK:
        return nrm_cross_entropy_backward(c->dx, c->y, c->labels, c->N, c->C);
    default: return nrm_accuracy(c->loss, c->x, c->labels, c->N, c->C);
    }
}

/* The array of one letter, in tables: y x g b m r and so on; capital if it is a gradient. */
static inline void call_array(layer_call *c, char letter, void *array)
{
    switch (letter) {
    case 'y': c->y = (nrm_real *)array; break;
    case 'x': c->x = (const nrm_real *)array; break;
    case 'Y': c->dy = (const nrm_real *)array; break;
    case 'X': c->dx = (nrm_real *)array; break;
    case 'g': c->gamma = (const nrm_real *)array; break;
    case 'b': c->beta = (const nrm_real *)array; break;
    case 'G': c->dgamma = (nrm_real *)array; break;
    case 'B': c->dbeta = (nrm_real *)array; break;
    case 'f': c->scale = (nrm_real *)array; break; /* the factors of the noise */
    case 'u': c->running->mean = (nrm_real *)array; break;
    case 'v': c->running->var = (nrm_real *)array; break;
    case 'm': c->mean = (nrm_acc *)array; break;
    case 'r': c->rstd = (nrm_acc *)array; break;
    case 'q': c->ratio = (nrm_acc *)array; break;
    case 'o': c->offset = (nrm_acc *)array; break;
    case 'L': c->loss = (nrm_acc *)array; break;
    case 's': c->stats = (nrm_stats *)array; break;
    case 'w': c->from = (nrm_stats *)array; break;
    case 'd': c->sums = (nrm_sums *)array; break;
    case 'k': c->mask = (const unsigned char *)array; break;
    default: c->labels = (const int *)array; /* l */
    }
}
#endif
