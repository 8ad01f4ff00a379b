/* answer.c - reads the file of answer.py, in which x and logits are doubles. */
#define NPZ_IMPLEMENTATION
#include "npz.h"
#include <stdio.h>

int main(void)
{
    npz_context context = {NULL, NULL, NULL, 0, 0, ""};
    float x[1][2], logits[1][3], b[3];
    npz_array want[3];
    int rc;
    want[0] = npz_make("x", NPZ_F32, x, 2, 1, 2);
    want[1] = npz_make("logits", NPZ_F32, logits, 2, 1, 3);
    want[2] = npz_make("dense/bias:0", NPZ_F32, b, 1, 3, 0);
    rc = npz_load("answer.npz", want, 3, &context);
    if (rc != NPZ_OK) {
        fprintf(stderr, "answer.npz, %s: %s\n", context.name, npz_strerror(rc));
        return 1;
    }
    printf("logits %g %g %g\n", (double)logits[0][0], (double)logits[0][1], (double)logits[0][2]);
    return 0;
}
