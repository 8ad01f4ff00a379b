/* The implementation without the C library: NRM_SQRT, NRM_MEMCPY and NRM_MEMSET are all it asks
   for. The compiler may turn loops into calls of memcpy and memset, so those two are provided under
   their own names when this file is to be a whole program (FREESTANDING_WHOLE). */
#include <stddef.h>

void *memcpy(void *to, const void *from, size_t bytes);
void *memset(void *to, int byte, size_t bytes);

/* A square root of the basic operations only: Newton from above, until it stops falling. */
static double own_sqrt(double a)
{
    double r = a > 1 ? a : 1, next;
    if (!(a > 0)) return a;
    for (;;) {
        next = (r + a / r) / 2;
        if (!(next < r)) return r;
        r = next;
    }
}

#define NRM_NO_LIBC
#define NRM_SQRT(a) own_sqrt(a)
#define NRM_MEMCPY(to, from, bytes) memcpy((to), (from), (bytes))
#define NRM_MEMSET(to, byte, bytes) memset((to), (byte), (bytes))
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"

int freestanding_check(void);

/* 0 if layer norm, a softmax and a random number are what they should be. */
int freestanding_check(void)
{
    nrm_real x[4], y[4];
    int label[1], i;
    nrm_acc loss;
    nrm_rng rng;
    for (i = 0; i < 4; i++) x[i] = (nrm_real)(i % 2);
    label[0] = 1;
    if (nrm_layernorm_forward(y, NULL, NULL, x, NULL, NULL, NRM_EPS, 1, 4) != NRM_OK) return 1;
    if (!(y[1] > (nrm_real)0.9999 && y[1] < (nrm_real)1.0001)) return 2;
    if (nrm_cross_entropy_forward(&loss, NULL, x, label, 1, 2) != NRM_OK) return 3;
    if (!(loss > (nrm_acc)0.3132 && loss < (nrm_acc)0.3133)) return 4; /* ln(1 + 1/e) */
    nrm_rng_seed(&rng, 42, 54);
    return nrm_rng_u32(&rng) == 0xa15c02b7u ? 0 : 5; /* the generator's published first output */
}

#ifdef FREESTANDING_WHOLE
void *memcpy(void *to, const void *from, size_t bytes)
{
    volatile unsigned char *t = (volatile unsigned char *)to; /* or it would become a memcpy */
    const unsigned char *f = (const unsigned char *)from;
    while (bytes-- > 0) *t++ = *f++;
    return to;
}

void *memset(void *to, int byte, size_t bytes)
{
    volatile unsigned char *t = (volatile unsigned char *)to;
    while (bytes-- > 0) *t++ = (unsigned char)byte;
    return to;
}

void entry(void);
void entry(void)
{
    volatile int result = freestanding_check();
    while (result >= 0) result = 0; /* nowhere to return to: this one is linked, not run */
}
#endif
