/* transformer_rows.c - two calls of a transformer: RMS norm of x + residual, where the sum goes on
   to the next block, and QK norm, which normalizes each head of the queries inside the array that
   holds queries, keys and values. */
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"
#include <stdio.h>

enum { TOKENS = 2, HEADS = 2, SIZE = 3, WIDTH = HEADS * SIZE, QKV = 3 * WIDTH };

static void print(const char *name, const nrm_real *v, size_t rows, size_t cols, size_t pitch)
{
    size_t i;
    for (i = 0; i < rows * cols; i++)
        printf("%s%8.4f%s", i % cols ? "" : name, (double)v[i / cols * pitch + i % cols],
               i % cols == cols - 1 ? "\n" : "");
}

/* y = norm(x + residual). The gradient of the sum beside the norm is dsum. */
static int pre_norm(void)
{
    const nrm_rows rows = {1, TOKENS, WIDTH, TOKENS * WIDTH, 1}; /* N, R, D, pitch, rms */
    const nrm_real x[TOKENS * WIDTH] = {1, -2, 3, -4, 5, -6, 1, 1, 2, 2, 3, 3};
    const nrm_real dy[TOKENS * WIDTH] = {1}, dsum[TOKENS * WIDTH] = {0, 1};
    nrm_real stream[TOKENS * WIDTH] = {1, 1, 1, 1, 1, 1}, y[TOKENS * WIDTH], dx[TOKENS * WIDTH];
    nrm_acc rstd[TOKENS];
    int rc = nrm_rows_forward(y, stream, NULL, rstd, x, stream, NULL, NULL, NRM_EPS, &rows);
    if (rc == NRM_OK)
        rc = nrm_rows_backward(dx, NULL, NULL, dy, dsum, stream, NULL, rstd, NULL, &rows);
    if (rc != NRM_OK) return rc;
    print("sum", stream, TOKENS, WIDTH, WIDTH);
    print("y  ", y, TOKENS, WIDTH, WIDTH);
    print("dx ", dx, TOKENS, WIDTH, WIDTH); /* of x, and of the residual */
    return NRM_OK;
}

/* qkv: [TOKENS][3][HEADS][SIZE]; the keys would be the same call with qkv + WIDTH. */
static int query_norm(void)
{
    const nrm_rows queries = {TOKENS, HEADS, SIZE, QKV, 1};
    const nrm_real gamma[SIZE] = {1, 1, 2};
    nrm_real qkv[TOKENS * QKV];
    int rc, i;
    for (i = 0; i < TOKENS * QKV; i++) qkv[i] = (nrm_real)(i % 7 + 1);
    rc = nrm_rows_forward(qkv, NULL, NULL, NULL, qkv, NULL, gamma, NULL, NRM_EPS, &queries);
    if (rc == NRM_OK) print("qkv", qkv, TOKENS, 2 * WIDTH, QKV); /* the keys are as they were */
    return rc;
}

int main(void)
{
    int rc = pre_norm();
    if (rc == NRM_OK) rc = query_norm();
    if (rc != NRM_OK) fprintf(stderr, "%s\n", nrm_strerror(rc));
    return rc != NRM_OK;
}
