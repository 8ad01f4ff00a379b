/* layers.c - normlayers.h as a contestant of accuracy.c. Compiled three times: as it is, with
   -DNRM_ACC=float, and with -DNRM_DOUBLE. */
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"
#include "accuracy.h"
#include "layers/call.h"
#include <stdlib.h>

#if defined(NRM_DOUBLE)
#define LAYERS_RUN layers_double
#elif defined(NRM_ACC)
#define LAYERS_RUN layers_float_sums
#else
#define LAYERS_RUN layers_default
#endif

enum { X_IN, DY_IN, GAMMA_IN, BETA_IN, INPUTS };

typedef struct buffers {
    nrm_real *in[INPUTS], *out[QUANTITIES];
    nrm_acc *mean, *rstd;
} buffers;

/* A float is also a double of the same value. */
static nrm_real *copied(const float *from, size_t n)
{
    nrm_real *to = (nrm_real *)malloc(n * sizeof *to);
    size_t i;
    for (i = 0; to != NULL && i < n; i++) to[i] = (nrm_real)from[i];
    return to;
}

static void buffers_free(buffers *b)
{
    int k;
    for (k = 0; k < INPUTS; k++) free(b->in[k]);
    for (k = 0; k < QUANTITIES; k++) free(b->out[k]);
    free(b->mean);
    free(b->rstd);
}

static int buffers_make(buffers *b, const problem *p)
{
    const size_t statistics = p->layer == BATCH_NORM ? p->C : p->N * p->G;
    int k, ok;
    b->in[X_IN] = copied(p->x, quantity_size(p, Y));
    b->in[DY_IN] = copied(p->dy, quantity_size(p, Y));
    b->in[GAMMA_IN] = copied(p->gamma, p->C);
    b->in[BETA_IN] = copied(p->beta, p->C);
    b->mean = (nrm_acc *)malloc(statistics * sizeof *b->mean);
    b->rstd = (nrm_acc *)malloc(statistics * sizeof *b->rstd);
    ok = b->mean != NULL && b->rstd != NULL;
    for (k = 0; k < INPUTS; k++) ok = ok && b->in[k] != NULL;
    for (k = 0; k < QUANTITIES; k++) {
        b->out[k] = (nrm_real *)calloc(quantity_size(p, k), sizeof *b->out[k]);
        ok = ok && b->out[k] != NULL;
    }
    return ok ? 0 : -1;
}

/* Forward and backward; a positive status (a statistic was not finite) counts as an answer. */
static int run_layer(buffers *b, const problem *p)
{
    static const int function[LAYERS] = {CALL_BATCHNORM, CALL_LAYERNORM, CALL_GROUPNORM,
                                         CALL_RMSNORM};
    layer_call c;
    memset(&c, 0, sizeof c);
    c.x = b->in[X_IN], c.dy = b->in[DY_IN], c.gamma = b->in[GAMMA_IN], c.beta = b->in[BETA_IN];
    c.y = b->out[Y], c.dx = b->out[DX], c.dgamma = b->out[DGAMMA], c.dbeta = b->out[DBETA];
    c.mean = b->mean, c.rstd = b->rstd;
    c.N = p->N, c.C = p->C, c.S = p->S, c.G = p->G;
    c.mode = NRM_TRAIN, c.eps = (nrm_real)p->eps;
    return call_layer(function[p->layer], &c) < 0 || call_layer(function[p->layer] + 1, &c) < 0;
}

int LAYERS_RUN(int way, const problem *p, answer *a)
{
    buffers b;
    int k, failed;
    size_t i;
    (void)way;
    failed = buffers_make(&b, p) || run_layer(&b, p);
    for (k = 0; k < QUANTITIES && !failed; k++)
        for (i = 0; i < quantity_size(p, k); i++) a->out[k][i] = (double)b.out[k][i];
    buffers_free(&b);
    return failed ? -1 : 0;
}
