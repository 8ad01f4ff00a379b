/* rms_and_group_norm.c - RMS norm of two tokens, as in transformers, and group norm of an image of
   four channels, as in convolutional networks; both with their gradients. */
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"
#include <stdio.h>

static void print(const char *name, const nrm_real *v, size_t rows, size_t cols)
{
    size_t i;
    for (i = 0; i < rows * cols; i++)
        printf("%s%8.4f%s", i % cols ? "" : name, (double)v[i], i % cols == cols - 1 ? "\n" : "");
}

/* [N][D]: each token is divided by the root of its mean square. No mean, no beta. */
static int rms(void)
{
    const nrm_real x[2 * 4] = {1, -2, 3, -4, 10, 20, 30, 40}, gamma[4] = {1, 1, 1, 2};
    const nrm_real dy[2 * 4] = {1, 0, 0, 0, 0, 0, 0, 1};
    nrm_real y[2 * 4], dx[2 * 4], dgamma[4] = {0}; /* added to: zeros first */
    nrm_acc rstd[2];
    int rc = nrm_rmsnorm_forward(y, rstd, x, gamma, NRM_EPS, 2, 4);
    if (rc == NRM_OK) rc = nrm_rmsnorm_backward(dx, dgamma, dy, x, rstd, gamma, 2, 4);
    if (rc != NRM_OK) return rc;
    print("y     ", y, 2, 4);
    print("dx    ", dx, 2, 4);
    print("dgamma", dgamma, 1, 4);
    return NRM_OK;
}

/* [N][C][S]: one image, four channels of 2 x 3 pixels, in two groups of two channels. */
static int group(void)
{
    enum { N = 1, C = 4, S = 2 * 3, G = 2 };
    nrm_real x[N * C * S], y[N * C * S], dx[N * C * S], dy[N * C * S] = {1};
    nrm_acc mean[N * G], rstd[N * G];
    int rc, i;
    for (i = 0; i < N * C * S; i++) x[i] = (nrm_real)(i * i % 11);
    rc = nrm_groupnorm_forward(y, mean, rstd, x, NULL, NULL, NRM_EPS, N, C, S, G);
    if (rc == NRM_OK)
        rc = nrm_groupnorm_backward(dx, NULL, NULL, dy, x, mean, rstd, NULL, N, C, S, G);
    if (rc != NRM_OK) return rc;
    print("y     ", y, C, S);
    print("dx    ", dx, C, S);
    return NRM_OK;
}

int main(void)
{
    int rc = rms();
    if (rc == NRM_OK) rc = group();
    if (rc != NRM_OK) fprintf(stderr, "%s\n", nrm_strerror(rc));
    return rc != NRM_OK;
}
