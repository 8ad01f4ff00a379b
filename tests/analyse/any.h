/* any.h - for the harnesses of analyse.sh, which Frama-C's Eva reads and nothing runs. An array has
   exactly the length that the function is told; an input has any bits, so also NaN and infinities;
   an output has none yet. */
#define NRM_PLAIN
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"
#include <__fc_builtin.h>
#include <string.h>

#ifndef VOLUME
#define VOLUME 24 /* of arrays: the product of their first three sizes, at most */
#endif

static unsigned missing; /* bit k: array number k of the call is NULL */
static int huge;         /* sizes whose product overflows: arrays have a single number */
static unsigned arrays;  /* of the call so far, */
static char *ends[24];   /* and where each ends: at the last byte of a variable of its own */

static void *array(size_t count, size_t size, int known)
{
    const size_t bytes = (huge ? 1 : count) * size;
    char *a = ends[arrays] - bytes;
    if (missing >> arrays++ & 1) return NULL;
    if (known) Frama_C_make_unknown(a, bytes);
    return a;
}
#define OUT(count) ((nrm_real *)array((count), sizeof(nrm_real), 0))
#define IN(count) ((nrm_real *)array((count), sizeof(nrm_real), 1))
#define ACC_OUT(count) ((nrm_acc *)array((count), sizeof(nrm_acc), 0))
#define ACC_IN(count) ((nrm_acc *)array((count), sizeof(nrm_acc), 1))
#define ANY(type, count) ((type *)array((count), sizeof(type), 1))

static int any_int(void)
{
    int v;
    Frama_C_make_unknown((char *)&v, sizeof v);
    return v;
}

static nrm_real any_real(void)
{
    nrm_real v;
    Frama_C_make_unknown((char *)&v, sizeof v);
    return v;
}

static nrm_running *running_of(size_t C)
{
    nrm_running *r = ANY(nrm_running, 1);
    if (r == NULL) return NULL;
    r->mean = IN(C);
    r->var = IN(C);
    return r;
}

/* A case calls one function with the sizes n and one of its modes, and returns its status. */
typedef int test_case(const size_t *n, int mode);

#define ROOM (8 * 64)
static int call(test_case *f, const size_t *n, int mode)
{
    int rc;
    char a[ROOM], b[ROOM], c[ROOM], d[ROOM], e[ROOM], g[ROOM], h[ROOM], i[ROOM], j[ROOM], k[ROOM],
        l[ROOM], m[ROOM], o[ROOM], p[ROOM], q[ROOM], r[ROOM], s[ROOM], t[ROOM], u[ROOM], v[ROOM],
        w[ROOM], x[ROOM], y[ROOM], z[ROOM];
    char *const end[24] = {a + ROOM, b + ROOM, c + ROOM, d + ROOM, e + ROOM, g + ROOM, h + ROOM,
                           i + ROOM, j + ROOM, k + ROOM, l + ROOM, m + ROOM, o + ROOM, p + ROOM,
                           q + ROOM, r + ROOM, s + ROOM, t + ROOM, u + ROOM, v + ROOM,
                           w + ROOM, x + ROOM, y + ROOM, z + ROOM};
    arrays = 0;
    memcpy(ends, end, sizeof ends);
    rc = f(n, mode);
    memset(ends, 0, sizeof ends);
    return rc;
}

/* So many sizes, each from 0 to `most`, in each of so many modes. */
static void all_sizes(test_case *f, int sizes, size_t most, int modes)
{
    size_t n[4] = {0, sizes < 2, sizes < 3, sizes < 4}, i;
    int mode, more = 1;
    //@ loop unroll 3000;
    while (more) {
        if (n[0] * n[1] * n[2] <= VOLUME)
            //@ loop unroll 30;
            for (mode = 0; mode < modes; mode++) (void)call(f, n, mode);
        //@ loop unroll 5;
        for (i = 0; i < 4 && n[i] == (sizes > (int)i ? most : 1); i++) n[i] = sizes <= (int)i;
        more = i < 4;
        if (more) n[i]++;
    }
}

/* Every array missing, alone in all modes, and in the first one with another. */
static void all_missing(test_case *f, int count, int modes)
{
    const size_t n[4] = {2, 2, 2, 1};
    int i, j, mode;
    //@ loop unroll 100;
    for (mode = 0; mode < modes; mode++)
        //@ loop unroll 100;
        for (i = 0; i < count; i++)
            //@ loop unroll 100;
            for (j = i; j < (mode == 0 ? count : i + 1); j++) {
                missing = 1u << i | 1u << j;
                (void)call(f, n, mode);
            }
    missing = 0;
}

/* Sizes whose product is 2^68 or more (of two sizes: 2^64), all of them: a >= 2^(60 - j - k),
   2^j <= b < 2^(j + 4) and 2^k <= c < 2^(k + 4) for all j and k. a, b, c say which sizes; c < 0:
   the product has two. */
static size_t from_power(int low, int high)
{
    const size_t most = high < 64 ? ((size_t)1 << high) - 1 : SIZE_MAX;
    return Frama_C_unsigned_long_interval((size_t)1 << low, most);
}

static void all_huge(test_case *f, int a, int b, int c, int mode)
{
    size_t n[4];
    int j, k, rc;
    huge = 1;
    //@ loop unroll 16;
    for (j = 0; j <= 60; j += 4)
        //@ loop unroll 16;
        for (k = c < 0 ? 60 - j : 0; k <= 60 - j; k += 4) {
            n[0] = n[1] = n[2] = n[3] = Frama_C_unsigned_long_interval(1, SIZE_MAX);
            n[a] = from_power(60 - j - k, 64);
            n[b] = from_power(j, j + 4);
            if (c >= 0) n[c] = from_power(k, j + k < 60 ? k + 4 : 64);
            if (c < 0) n[a] = from_power(k, 64);
            rc = call(f, n, mode);
            //@ assert refused: rc < 0;
        }
    huge = 0;
}
