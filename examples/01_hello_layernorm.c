/* 01_hello_layernorm: two rows through a layer norm, forward and backward. No data, no figure. */
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"
#include <stdio.h>

static void print_row(const char *name, const nrm_real *v)
{
    printf("%-3s %8.4f %8.4f %8.4f %8.4f\n", name, (double)v[0], (double)v[1], (double)v[2],
           (double)v[3]);
}

int main(void)
{
    const nrm_real x[8] = {1, 2, 3, 4, 10, 20, 30, 40}, dy[8] = {1, 0, 0, 0, 0, 0, 0, 1};
    const nrm_real gamma[4] = {1, 1, 2, 2}, beta[4] = {0, 0, 0, 1};
    nrm_real y[8], dx[8], dgamma[4] = {0}, dbeta[4] = {0};
    nrm_acc mean[2], rstd[2];
    int rc = nrm_layernorm_forward(y, mean, rstd, x, gamma, beta, NRM_EPS, 2, 4), i;
    if (rc == NRM_OK)
        rc = nrm_layernorm_backward(dx, dgamma, dbeta, dy, x, mean, rstd, gamma, 2, 4);
    if (rc != NRM_OK) fprintf(stderr, "%s\n", nrm_strerror(rc));
    for (i = 0; i < 8 && rc == NRM_OK; i += 4) print_row("y", y + i);
    for (i = 0; i < 8 && rc == NRM_OK; i += 4) print_row("dx", dx + i);
    return rc != NRM_OK;
}
