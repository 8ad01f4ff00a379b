/* network.c - activations, cross-entropy, the linear and the recurrent layer, for analyse.sh. */
#include "any.h"

/* Counts beyond two blocks of NRM_SOME. */
static int activation_forward(const size_t *n, int mode)
{
    return nrm_activation_forward(OUT(n[0]), IN(n[0]), mode, n[0]);
}
void analyse_nrm_activation_forward(void)
{
    all_sizes(activation_forward, 1, 2 * NRM_SOME + 1, 5);
    all_missing(activation_forward, 2, 5);
}

static int activation_backward(const size_t *n, int mode)
{
    return nrm_activation_backward(OUT(n[0]), IN(n[0]), IN(n[0]), mode, n[0]);
}
void analyse_nrm_activation_backward(void)
{
    all_sizes(activation_backward, 1, 6, 5);
    all_missing(activation_backward, 3, 5);
}

#define ANALYSE(name, arrays)                                                                      \
    void analyse_nrm_##name(void)                                                                  \
    {                                                                                              \
        all_sizes(name, 2, 6, 1);                                                                  \
        all_missing(name, arrays, 1);                                                              \
        all_huge(name, 0, 1, -1, 0);                                                               \
    }
static int cross_entropy_forward(const size_t *n, int mode)
{
    const size_t N = n[0], C = n[1];
    (void)mode;
    return nrm_cross_entropy_forward(ACC_OUT(1), OUT(N * C), IN(N * C), ANY(int, N), N, C);
}
ANALYSE(cross_entropy_forward, 4)

static int cross_entropy_backward(const size_t *n, int mode)
{
    const size_t N = n[0], C = n[1];
    (void)mode;
    return nrm_cross_entropy_backward(OUT(N * C), IN(N * C), ANY(int, N), N, C);
}
ANALYSE(cross_entropy_backward, 3)

static int accuracy(const size_t *n, int mode)
{
    const size_t N = n[0], C = n[1];
    (void)mode;
    return nrm_accuracy(ACC_OUT(1), IN(N * C), ANY(int, N), N, C);
}
ANALYSE(accuracy, 3)
#undef ANALYSE

#define ANALYSE(name, arrays)                                                                      \
    void analyse_nrm_##name(void)                                                                  \
    {                                                                                              \
        all_sizes(name, 3, 6, 1);                                                                  \
        all_missing(name, arrays, 1);                                                              \
        all_huge(name, 0, 1, -1, 0);                                                               \
        all_huge(name, 0, 2, -1, 0);                                                               \
        all_huge(name, 1, 2, -1, 0);                                                               \
    }
static int linear_forward(const size_t *n, int mode)
{
    const size_t N = n[0], in = n[1], out = n[2];
    (void)mode;
    return nrm_linear_forward(OUT(N * out), IN(N * in), IN(in * out), IN(out), N, in, out);
}
ANALYSE(linear_forward, 4)

static int linear_backward(const size_t *n, int mode)
{
    const size_t N = n[0], in = n[1], out = n[2];
    (void)mode;
    return nrm_linear_backward(OUT(N * in), IN(in * out), IN(out), IN(N * out), IN(N * in),
                               IN(in * out), N, in, out);
}
ANALYSE(linear_backward, 6)
#undef ANALYSE

static nrm_real *halves(size_t H)
{
    nrm_real *a = IN(H);
    size_t j;
    for (j = 0; j < H && a != NULL && !huge; j++) a[j] = (nrm_real)0.5;
    return a;
}

/* A layer with norm mode / 3; with batch norm every step has running statistics. */
static nrm_rnn *recurrent(const size_t *n, int mode)
{
    const size_t in = n[2], H = n[3];
    nrm_rnn *r = array(1, sizeof *r, 0);
    size_t t;
    if (r == NULL) return NULL;
    r->T = n[0];
    r->N = n[1];
    r->in = in;
    r->H = H;
    r->norm = mode / 3;
    r->activation = Frama_C_interval(NRM_IDENTITY, NRM_SIGMOID);
    r->eps = NRM_EPS;
    r->Wx = IN(in * H);
    r->Wh = IN(H * H);
    r->gamma = IN(H);
    r->beta = IN(H);
    r->running = ANY(nrm_running, n[0]);
    //@ loop unroll 4;
    for (t = 0; t < (huge ? 1 : n[0]) && r->running != NULL; t++) {
        r->running[t].mean = halves(H);
        r->running[t].var = halves(H);
        r->running[t].cumulative = 1;
    }
    return r;
}
#define SAVED (mode / 3 == NRM_LAYER_NORM ? n[0] * n[1] : n[0] * n[3])
#define SIZES const size_t rows = n[0] * n[1], in = n[2], H = n[3], all = (rows + n[1]) * H

static int rnn_forward(const size_t *n, int mode)
{
    SIZES;
    nrm_real *h = OUT(all);
    if (h != NULL) Frama_C_make_unknown((char *)h, (huge ? 1 : n[1] * H) * sizeof *h);
    return nrm_rnn_forward(h, OUT(rows * H), ACC_OUT(SAVED), ACC_OUT(SAVED), IN(rows * in),
                           recurrent(n, mode), mode % 3);
}

static int rnn_backward(const size_t *n, int mode)
{
    SIZES;
    nrm_rnn_grads *grads = array(1, sizeof *grads, 0);
    if (grads != NULL) {
        grads->dWx = IN(in * H);
        grads->dWh = IN(H * H);
        grads->dgamma = IN(H);
        grads->dbeta = IN(H);
    }
    return nrm_rnn_backward(IN(all), OUT(rows * in), grads, OUT(rows * H), IN(all), IN(rows * H),
                            ACC_IN(SAVED), ACC_IN(SAVED), IN(rows * in), recurrent(n, mode),
                            mode % 3);
}
#define ANALYSE(name, arrays)                                                                      \
    void analyse_nrm_##name(void)                                                                  \
    {                                                                                              \
        all_sizes(name, 4, 2, 9);                                                                  \
        all_missing(name, arrays, 9);                                                              \
        all_huge(name, 1, 0, 3, 0);                                                                \
        all_huge(name, 1, 0, 2, 0);                                                                \
        all_huge(name, 2, 3, -1, 0);                                                               \
    }
ANALYSE(rnn_forward, 14)
ANALYSE(rnn_backward, 18)
