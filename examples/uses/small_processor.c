/* small_processor.c - a sensor's eight values through batch norm, a linear layer and RMS norm on a
   processor without a C library, without doubles in hardware, and without a heap.
   docs/packaging.md has the command for a Cortex-M4; `make cortex` builds it for Cortex-M0+, M4 and
   RISC-V 32 and says what it costs. */
#define NRM_PLAIN          /* no SIMD, no blocks: small */
#define NRM_NO_LIBC        /* no math.h, no string.h: the next three stand in */
#define NRM_ACC float      /* statistics in float: no arithmetic of doubles at all */
#define NRM_STATIC         /* functions that are not called leave no code */
#include <stddef.h>
static float newton_sqrt(float a)
{
    float r = a > 1 ? a : 1, next;
    while (a > 0 && (next = (r + a / r) / 2) < r) r = next; /* Newton's, from above */
    return a > 0 ? r : a;
}
void *memcpy(void *to, const void *from, size_t bytes); /* compilers want these two as well: */
void *memset(void *to, int byte, size_t bytes); /* a few lines, or those of the system's library */
#define NRM_SQRT(a) newton_sqrt(a)
#define NRM_MEMCPY(to, from, bytes) memcpy((to), (from), (bytes))
#define NRM_MEMSET(to, byte, bytes) memset((to), (byte), (bytes))
#include "normlayers.h"

enum { IN = 8, OUT = 4 };
static nrm_real mean[IN] = {1, 2, 3, 4, 5, 6, 7, 8}, var[IN] = {1, 1, 1, 1, 4, 4, 4, 4};
static nrm_real W[IN * OUT];

int infer(nrm_real *y, const nrm_real *x); /* y [OUT], x [IN]; a status */
int infer(nrm_real *y, const nrm_real *x)
{
    nrm_running running = {mean, var, 0.1f, 0, 0, 0};
    nrm_real h[IN];
    int rc = nrm_batchnorm_forward(h, NULL, NULL, &running, x, NULL, NULL, NRM_INFER, NRM_EPS, 1,
                                   IN, 1);
    if (rc == NRM_OK) rc = nrm_linear_forward(y, h, W, NULL, 1, IN, OUT);
    if (rc == NRM_OK) rc = nrm_rmsnorm_forward(y, NULL, y, NULL, NRM_EPS, 1, OUT);
    return rc;
}

#if __STDC_HOSTED__ /* on a computer: what the small processor will say */
#include <stdio.h>
int main(void)
{
    const nrm_real x[IN] = {2, 1, 4, 3, 9, 2, 7, 8};
    nrm_real y[OUT];
    int i, rc;
    for (i = 0; i < IN * OUT; i++) W[i] = (nrm_real)(i % 5 - 2);
    rc = infer(y, x);
    for (i = 0; i < OUT && rc == NRM_OK; i++) printf("%8.4f", (double)y[i]);
    return printf("\n"), rc;
}
#endif
