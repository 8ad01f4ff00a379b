/* own_layer.c - a layer of your own, GELU and then layer norm, and its gradient checked: once as it
   should be, once with a term forgotten. In double: there the check sees errors of 1e-7. */
#define NRM_DOUBLE
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"
#include <math.h>
#include <stdio.h>

enum { N = 3, D = 5 };
typedef struct layer {
    nrm_real x[N * D], h[N * D], y[N * D], gamma[D], beta[D];
    nrm_real dx[N * D], dgamma[D], dbeta[D];
    nrm_real weight[N * D]; /* the loss is the sum of weight times y, so dy = weight */
    nrm_acc mean[N], rstd[N];
} layer;

static double cdf(double x) { return 0.5 * erfc(-x * sqrt(0.5)); } /* of N(0, 1); GELU(x) = x·cdf */
static double density(double x) { return exp(-0.5 * x * x) / sqrt(2 * 3.14159265358979323846); }

static nrm_acc loss(void *context) /* the forward pass: all that nrm_gradcheck calls */
{
    layer *l = (layer *)context;
    nrm_acc sum = 0;
    int i;
    for (i = 0; i < N * D; i++) l->h[i] = l->x[i] * cdf(l->x[i]);
    if (nrm_layernorm_forward(l->y, l->mean, l->rstd, l->h, l->gamma, l->beta, NRM_EPS, N, D))
        return HUGE_VAL;
    for (i = 0; i < N * D; i++) sum += l->weight[i] * l->y[i];
    return sum;
}

static int backward(layer *l, int forgetful)
{
    int i, rc;
    for (i = 0; i < D; i++) l->dgamma[i] = l->dbeta[i] = 0; /* those are added to */
    rc = nrm_layernorm_backward(l->dx, l->dgamma, l->dbeta, l->weight, l->h, l->mean, l->rstd,
                                l->gamma, N, D);
    for (i = 0; i < N * D; i++)
        l->dx[i] *= cdf(l->x[i]) + (forgetful ? 0 : l->x[i] * density(l->x[i]));
    return rc;
}

int main(void)
{
    layer l;
    const nrm_gradcheck_group group[3] = {
        {"x", l.x, l.dx, N * D}, {"gamma", l.gamma, l.dgamma, D}, {"beta", l.beta, l.dbeta, D}};
    nrm_gradcheck_report report[3];
    nrm_rng rng;
    int i, forgetful;
    nrm_rng_seed(&rng, 1, 0);
    nrm_rng_normal(&rng, l.x, N * D);
    nrm_rng_normal(&rng, l.weight, N * D);
    nrm_rng_uniform(&rng, l.gamma, D);
    for (i = 0; i < D; i++) l.gamma[i] += 1, l.beta[i] = 0;
    for (forgetful = 0; forgetful < 2; forgetful++) {
        if (loss(&l) == HUGE_VAL || backward(&l, forgetful) != NRM_OK) return 1;
        nrm_gradcheck(report, group, 3, loss, &l, NULL);
        printf("%s\n", forgetful ? "without x times the density:" : "the whole derivative:");
        for (i = 0; i < 3; i++)
            printf("  %-6s%2d of %2d wrong: %s\n", group[i].name, (int)report[i].wrong,
                   (int)report[i].checked, nrm_strerror(report[i].status));
    }
    return 0;
}
