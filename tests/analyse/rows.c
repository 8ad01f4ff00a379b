/* rows.c - the norms of rows and of weights, for analyse.sh. */
#include "any.h"
#define ANALYSE(name, sizes, arrays)                                                               \
    void analyse_nrm_##name(void)                                                                  \
    {                                                                                              \
        all_sizes(name, sizes, 6, 1);                                                              \
        all_missing(name, arrays, 1);                                                              \
        all_huge(name, 0, 1, sizes > 2 ? 2 : -1, 0);                                               \
    }

static int layernorm_forward(const size_t *n, int mode)
{
    const size_t N = n[0], D = n[1];
    (void)mode;
    return nrm_layernorm_forward(OUT(N * D), ACC_OUT(N), ACC_OUT(N), IN(N * D), IN(D), IN(D),
                                 any_real(), N, D);
}
ANALYSE(layernorm_forward, 2, 6)

static int layernorm_backward(const size_t *n, int mode)
{
    const size_t N = n[0], D = n[1];
    (void)mode;
    return nrm_layernorm_backward(OUT(N * D), IN(D), IN(D), IN(N * D), IN(N * D), ACC_IN(N),
                                  ACC_IN(N), IN(D), N, D);
}
ANALYSE(layernorm_backward, 2, 8)

static int rmsnorm_forward(const size_t *n, int mode)
{
    const size_t N = n[0], D = n[1];
    (void)mode;
    return nrm_rmsnorm_forward(OUT(N * D), ACC_OUT(N), IN(N * D), IN(D), any_real(), N, D);
}
ANALYSE(rmsnorm_forward, 2, 4)

static int rmsnorm_backward(const size_t *n, int mode)
{
    const size_t N = n[0], D = n[1];
    (void)mode;
    return nrm_rmsnorm_backward(OUT(N * D), IN(D), IN(N * D), IN(N * D), ACC_IN(N), IN(D), N, D);
}
ANALYSE(rmsnorm_backward, 2, 6)

static int groupnorm_forward(const size_t *n, int mode)
{
    const size_t N = n[0], C = n[1], S = n[2], G = n[3], all = N * C * S;
    (void)mode;
    return nrm_groupnorm_forward(OUT(all), ACC_OUT(N * G), ACC_OUT(N * G), IN(all), IN(C), IN(C),
                                 any_real(), N, C, S, G);
}
ANALYSE(groupnorm_forward, 4, 6)

static int groupnorm_backward(const size_t *n, int mode)
{
    const size_t N = n[0], C = n[1], S = n[2], G = n[3], all = N * C * S;
    (void)mode;
    return nrm_groupnorm_backward(OUT(all), IN(C), IN(C), IN(all), IN(all), ACC_IN(N * G),
                                  ACC_IN(N * G), IN(C), N, C, S, G);
}
ANALYSE(groupnorm_backward, 4, 8)

static int weightnorm_forward(const size_t *n, int mode)
{
    const size_t in = n[0], out = n[1];
    (void)mode;
    return nrm_weightnorm_forward(OUT(in * out), ACC_OUT(out), IN(in * out), IN(out), in, out);
}
ANALYSE(weightnorm_forward, 2, 4)

static int weightnorm_backward(const size_t *n, int mode)
{
    const size_t in = n[0], out = n[1];
    (void)mode;
    return nrm_weightnorm_backward(IN(in * out), IN(out), IN(in * out), IN(in * out), ACC_IN(out),
                                   IN(out), in, out);
}
ANALYSE(weightnorm_backward, 2, 6)

/* N examples of R rows of D numbers, with n[3] numbers between them; RMS norm in mode 1. */
static nrm_rows rows_of(const size_t *n, int mode)
{
    const nrm_rows rows = {n[0], n[1], n[2], huge ? n[3] : n[1] * n[2] + n[3], mode};
    return rows;
}
static size_t span(const nrm_rows *r)
{
    return r->N > 0 ? (r->N - 1) * r->pitch + r->R * r->D : 0;
}
#undef ANALYSE
#define ANALYSE(name, arrays)                                                                      \
    void analyse_nrm_##name(void)                                                                  \
    {                                                                                              \
        all_sizes(name, 4, 4, 2);                                                                  \
        all_missing(name, arrays, 2);                                                              \
        all_huge(name, 1, 2, -1, 0);                                                               \
        all_huge(name, 0, 3, -1, 0);                                                               \
    }

static int rows_forward(const size_t *n, int mode)
{
    const nrm_rows r = rows_of(n, mode);
    const size_t all = span(&r), D = r.D;
    return nrm_rows_forward(OUT(all), OUT(all), ACC_OUT(r.N * r.R), ACC_OUT(r.N * r.R), IN(all),
                            IN(all), IN(D), IN(D), any_real(), &r);
}
ANALYSE(rows_forward, 8)

static int rows_backward(const size_t *n, int mode)
{
    const nrm_rows r = rows_of(n, mode);
    const size_t all = span(&r), D = r.D;
    return nrm_rows_backward(OUT(all), IN(D), IN(D), IN(all), IN(all), IN(all), ACC_IN(r.N * r.R),
                             ACC_IN(r.N * r.R), IN(D), &r);
}
ANALYSE(rows_backward, 9)
