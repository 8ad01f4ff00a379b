/* sites.h - the functions of normlayers.h with one form of contract, as a table of calls.

   Each buffer of a call has a slot of its own in an arena. Included by test_contracts.c, which asks
   for each promise by itself, and by tests/fuzz/fuzz_calls.c, which draws the arguments. */
#ifndef SITES_H
#define SITES_H
#include <string.h>

enum { SLOTS = 10, ROOM = 1024, MARGIN = 256, GROUPS = 2 };

typedef union arena {
    double align;
    unsigned char slot[SLOTS][ROOM];
} arena_bytes;

static arena_bytes arena, before;

typedef struct args { /* the arguments of one call, whichever function it is of */
    void *p[SLOTS];
    int null_running, null_noise, null_rng;
    nrm_running running;
    nrm_noise noise;
    nrm_rng rng;
    int kind; /* mode or activation */
    nrm_real eps;
    size_t N, C, S;
} args;

enum { EPS = 1, RUNNING = 2, NOISE = 4, MODE = 8, ACTIVATION = 16, LOSS = 32 };
enum {
    USED = 64,    /* running statistics are used in train mode too          */
    MERGED = 128, /* there are merged statistics, and their counts matter   */
    ALWAYS = 256  /* an empty batch is no reason to do nothing              */
};

/* Buffers are described by three letters each, in the order of the parameters.
   Role: o output, i input, capital if it may be NULL. Type: r nrm_real, a nrm_acc, l int, t
   nrm_stats, u nrm_sums, m a mask's byte. Shape: x N*C*S, c C, n N, 1 one, y N*C, z N*S, w C*S,
   s S, g N times GROUPS. */
typedef struct site {
    const char *name;
    int (*call)(args *);
    const char *buffers;
    int in_place_out, in_place_in; /* the pair that may be one buffer; -1 if none */
    const char *sizes;             /* which of N, C, S are parameters             */
    int flags, kind;
} site;

static nrm_real *real_at(const args *a, int i)
{
    return (nrm_real *)a->p[i];
}
static nrm_acc *acc_at(const args *a, int i)
{
    return (nrm_acc *)a->p[i];
}
static int *label_at(const args *a, int i)
{
    return (int *)a->p[i];
}

static nrm_stats *stats_at(const args *a, int i)
{
    return (nrm_stats *)a->p[i];
}
static const unsigned char *mask_at(const args *a, int i)
{
    return (const unsigned char *)a->p[i];
}

static nrm_running *running_of(args *a, int i)
{
    a->running.mean = real_at(a, i);
    a->running.var = real_at(a, i + 1);
    return a->null_running ? NULL : &a->running;
}
static const nrm_noise *noise_of(const args *a)
{
    return a->null_noise ? NULL : &a->noise;
}
static nrm_rng *rng_of(args *a)
{
    return a->null_rng ? NULL : &a->rng;
}

static int call_linear_forward(args *a)
{
    return nrm_linear_forward(real_at(a, 0), real_at(a, 1), real_at(a, 2), real_at(a, 3), a->N,
                              a->C, a->S);
}
static int call_linear_backward(args *a)
{
    return nrm_linear_backward(real_at(a, 0), real_at(a, 1), real_at(a, 2), real_at(a, 3),
                               real_at(a, 4), real_at(a, 5), a->N, a->C, a->S);
}
static int call_batchnorm_forward(args *a)
{
    return nrm_batchnorm_forward(real_at(a, 0), acc_at(a, 1), acc_at(a, 2), running_of(a, 3),
                                 real_at(a, 5), real_at(a, 6), real_at(a, 7), a->kind, a->eps,
                                 a->N, a->C, a->S);
}
static int call_batchnorm_backward(args *a)
{
    return nrm_batchnorm_backward(real_at(a, 0), real_at(a, 1), real_at(a, 2), real_at(a, 3),
                                  real_at(a, 4), acc_at(a, 5), acc_at(a, 6), real_at(a, 7),
                                  a->kind, a->N, a->C, a->S);
}
static int call_layernorm_forward(args *a)
{
    return nrm_layernorm_forward(real_at(a, 0), acc_at(a, 1), acc_at(a, 2), real_at(a, 3),
                                 real_at(a, 4), real_at(a, 5), a->eps, a->N, a->C);
}
static int call_layernorm_backward(args *a)
{
    return nrm_layernorm_backward(real_at(a, 0), real_at(a, 1), real_at(a, 2), real_at(a, 3),
                                  real_at(a, 4), acc_at(a, 5), acc_at(a, 6), real_at(a, 7), a->N,
                                  a->C);
}
static int call_noisy_forward(args *a)
{
    return nrm_noisy_batchnorm_forward(real_at(a, 0), real_at(a, 1), acc_at(a, 2), acc_at(a, 3),
                                       running_of(a, 4), real_at(a, 6), real_at(a, 7),
                                       real_at(a, 8), noise_of(a), rng_of(a), a->kind, a->eps,
                                       a->N, a->C, a->S);
}
static int call_noisy_backward(args *a)
{
    return nrm_noisy_batchnorm_backward(real_at(a, 0), real_at(a, 1), real_at(a, 2), real_at(a, 3),
                                        real_at(a, 4), real_at(a, 5), acc_at(a, 6), acc_at(a, 7),
                                        real_at(a, 8), a->kind, a->N, a->C, a->S);
}
static int call_activation_forward(args *a)
{
    return nrm_activation_forward(real_at(a, 0), real_at(a, 1), a->kind, a->N);
}
static int call_activation_backward(args *a)
{
    return nrm_activation_backward(real_at(a, 0), real_at(a, 1), real_at(a, 2), a->kind, a->N);
}
static int call_cross_entropy_forward(args *a)
{
    return nrm_cross_entropy_forward(acc_at(a, 0), real_at(a, 1), real_at(a, 2), label_at(a, 3),
                                     a->N, a->C);
}
static int call_cross_entropy_backward(args *a)
{
    return nrm_cross_entropy_backward(real_at(a, 0), real_at(a, 1), label_at(a, 2), a->N, a->C);
}
static int call_accuracy(args *a)
{
    return nrm_accuracy(acc_at(a, 0), real_at(a, 1), label_at(a, 2), a->N, a->C);
}
static int call_lp_forward(args *a)
{
    return nrm_lp_batchnorm_forward(real_at(a, 0), acc_at(a, 1), acc_at(a, 2), running_of(a, 3),
                                    real_at(a, 5), real_at(a, 6), real_at(a, 7),
                                    NRM_L1 + NRM_CENTRED, a->kind, a->eps, a->N, a->C, a->S);
}
static int call_lp_backward(args *a)
{
    return nrm_lp_batchnorm_backward(real_at(a, 0), real_at(a, 1), real_at(a, 2), real_at(a, 3),
                                     real_at(a, 4), acc_at(a, 5), acc_at(a, 6), real_at(a, 7),
                                     NRM_LINF, a->kind, a->eps, a->N, a->C, a->S);
}
static int call_weightnorm_forward(args *a)
{
    return nrm_weightnorm_forward(real_at(a, 0), acc_at(a, 1), real_at(a, 2), real_at(a, 3), a->C,
                                  a->S);
}
static int call_weightnorm_backward(args *a)
{
    return nrm_weightnorm_backward(real_at(a, 0), real_at(a, 1), real_at(a, 2), real_at(a, 3),
                                   acc_at(a, 4), real_at(a, 5), a->C, a->S);
}

static int call_fold(args *a)
{
    return nrm_batchnorm_fold(real_at(a, 0), real_at(a, 1), real_at(a, 2), real_at(a, 3),
                              running_of(a, 4), real_at(a, 6), real_at(a, 7), a->eps, a->N, a->C,
                              a->S);
}

#define BN_TRAIN "orx oac oac orc orc irx Irc Irc"
#define BN_FROZEN "orx oac oac irc irc irx Irc Irc"
#define BN_INFER "orx Oac Oac irc irc irx Irc Irc"
#define BN_BACK "Orx Orc Orc irx irx iac iac Irc"
#define NB_TRAIN "orx orx oac oac orc orc irx Irc Irc"
#define NB_BACK "Orx Orc Orc irx irx irx iac iac Irc"
#define NB_BACK_FROZEN "Orx Orc Orc irx Irx irx iac iac Irc"

#define ROWS_BACK "Orx Orc Orc irx irx iag iag Irc"
#define RENORM "orx oac oac oac oac orc orc irx Irc Irc"

static int call_groupnorm_forward(args *a)
{
    return nrm_groupnorm_forward(real_at(a, 0), acc_at(a, 1), acc_at(a, 2), real_at(a, 3),
                                 real_at(a, 4), real_at(a, 5), a->eps, a->N, a->C, a->S, GROUPS);
}
static int call_groupnorm_backward(args *a)
{
    return nrm_groupnorm_backward(real_at(a, 0), real_at(a, 1), real_at(a, 2), real_at(a, 3),
                                  real_at(a, 4), acc_at(a, 5), acc_at(a, 6), real_at(a, 7), a->N,
                                  a->C, a->S, GROUPS);
}
static int call_groupnorm_rows(args *a)
{
    return nrm_groupnorm_forward(real_at(a, 0), acc_at(a, 1), acc_at(a, 2), real_at(a, 3),
                                 real_at(a, 4), real_at(a, 5), a->eps, a->N, a->C, 1, GROUPS);
}
static int call_groupnorm_rows_backward(args *a)
{
    return nrm_groupnorm_backward(real_at(a, 0), real_at(a, 1), real_at(a, 2), real_at(a, 3),
                                  real_at(a, 4), acc_at(a, 5), acc_at(a, 6), real_at(a, 7), a->N,
                                  a->C, 1, GROUPS);
}
static int call_rmsnorm_forward(args *a)
{
    return nrm_rmsnorm_forward(real_at(a, 0), acc_at(a, 1), real_at(a, 2), real_at(a, 3), a->eps,
                               a->N, a->C);
}
static int call_rmsnorm_backward(args *a)
{
    return nrm_rmsnorm_backward(real_at(a, 0), real_at(a, 1), real_at(a, 2), real_at(a, 3),
                                acc_at(a, 4), real_at(a, 5), a->N, a->C);
}
static int call_renorm_forward(args *a)
{
    return nrm_batchrenorm_forward(real_at(a, 0), acc_at(a, 3), acc_at(a, 4), acc_at(a, 1),
                                   acc_at(a, 2), running_of(a, 5), real_at(a, 7), real_at(a, 8),
                                   real_at(a, 9), 3, 5, a->kind, a->eps, a->N, a->C, a->S);
}
/* In the other modes ratio and offset are not looked at. */
static int call_renorm_fixed(args *a)
{
    return nrm_batchrenorm_forward(real_at(a, 0), NULL, NULL, acc_at(a, 1), acc_at(a, 2),
                                   running_of(a, 3), real_at(a, 5), real_at(a, 6), real_at(a, 7),
                                   1, 0, a->kind, a->eps, a->N, a->C, a->S);
}
static int call_renorm_backward(args *a)
{
    return nrm_batchrenorm_backward(real_at(a, 0), real_at(a, 1), real_at(a, 2), real_at(a, 3),
                                    real_at(a, 4), acc_at(a, 5), acc_at(a, 6), acc_at(a, 7),
                                    acc_at(a, 8), real_at(a, 9), a->kind, a->N, a->C, a->S);
}
static int call_renorm_backward_fixed(args *a)
{
    return nrm_batchrenorm_backward(real_at(a, 0), real_at(a, 1), real_at(a, 2), real_at(a, 3),
                                    real_at(a, 4), NULL, NULL, acc_at(a, 5), acc_at(a, 6),
                                    real_at(a, 7), a->kind, a->N, a->C, a->S);
}
static int call_stats_update(args *a)
{
    return nrm_stats_update(stats_at(a, 0), real_at(a, 1), mask_at(a, 2), a->N, a->C, a->S);
}
static int call_stats_merge(args *a)
{
    return nrm_stats_merge(stats_at(a, 0), stats_at(a, 1), a->C);
}
static int call_sync_forward(args *a)
{
    return nrm_sync_batchnorm_forward(real_at(a, 0), acc_at(a, 1), acc_at(a, 2), running_of(a, 3),
                                      real_at(a, 5), mask_at(a, 6), stats_at(a, 7), real_at(a, 8),
                                      real_at(a, 9), a->eps, a->N, a->C, a->S);
}
static int call_sync_sums(args *a)
{
    return nrm_sync_batchnorm_sums((nrm_sums *)a->p[0], real_at(a, 1), real_at(a, 2),
                                   real_at(a, 3), real_at(a, 4), mask_at(a, 5), acc_at(a, 6),
                                   acc_at(a, 7), a->N, a->C, a->S);
}
static int call_sync_backward(args *a)
{
    return nrm_sync_batchnorm_backward(real_at(a, 0), real_at(a, 1), real_at(a, 2), mask_at(a, 3),
                                       acc_at(a, 4), acc_at(a, 5), real_at(a, 6), stats_at(a, 7),
                                       (const nrm_sums *)a->p[8], a->N, a->C, a->S);
}

static const site sites[] = {
    {"linear forward", call_linear_forward, "orz iry irw Irs", -1, -1, "NCS", 0, 0},
    {"linear backward", call_linear_backward, "Ory Orw Ors irz iry irw", -1, -1, "NCS", 0, 0},
    {"batch norm train", call_batchnorm_forward, BN_TRAIN, -1, -1, "NCS", EPS | RUNNING | MODE,
     NRM_TRAIN},
    {"batch norm infer", call_batchnorm_forward, BN_INFER, 0, 5, "NCS", EPS | RUNNING | MODE,
     NRM_INFER},
    {"batch norm frozen", call_batchnorm_forward, BN_FROZEN, -1, -1, "NCS", EPS | RUNNING | MODE,
     NRM_FROZEN},
    {"batch norm backward", call_batchnorm_backward, BN_BACK, 0, 3, "NCS", MODE, NRM_TRAIN},
    {"batch norm backward frozen", call_batchnorm_backward, BN_BACK, 0, 3, "NCS", MODE, NRM_FROZEN},
    {"layer norm", call_layernorm_forward, "ory oan oan iry Irc Irc", -1, -1, "NC", EPS, 0},
    {"layer norm backward", call_layernorm_backward, "Ory Orc Orc iry iry ian ian Irc", 0, 3, "NC",
     0, 0},
    {"noisy batch norm train", call_noisy_forward, NB_TRAIN, -1, -1, "NCS",
     EPS | RUNNING | MODE | NOISE, NRM_TRAIN},
    {"noisy batch norm backward", call_noisy_backward, NB_BACK, 0, 3, "NCS", MODE, NRM_TRAIN},
    {"noisy batch norm backward frozen", call_noisy_backward, NB_BACK_FROZEN, 0, 3, "NCS", MODE,
     NRM_FROZEN},
    {"identity", call_activation_forward, "orn irn", 0, 1, "N", ACTIVATION, NRM_IDENTITY},
    {"relu", call_activation_forward, "orn irn", 0, 1, "N", ACTIVATION, NRM_RELU},
    {"tanh", call_activation_forward, "orn irn", 0, 1, "N", ACTIVATION, NRM_TANH},
    {"sigmoid", call_activation_forward, "orn irn", 0, 1, "N", ACTIVATION, NRM_SIGMOID},
    {"identity backward", call_activation_backward, "orn irn irn", 0, 1, "N", ACTIVATION,
     NRM_IDENTITY},
    {"relu backward", call_activation_backward, "orn irn irn", 0, 1, "N", ACTIVATION, NRM_RELU},
    {"tanh backward", call_activation_backward, "orn irn irn", 0, 1, "N", ACTIVATION, NRM_TANH},
    {"sigmoid backward", call_activation_backward, "orn irn irn", 0, 1, "N", ACTIVATION,
     NRM_SIGMOID},
    {"cross-entropy", call_cross_entropy_forward, "oa1 Ory iry iln", 1, 2, "NC", LOSS, 0},
    {"cross-entropy backward", call_cross_entropy_backward, "ory iry iln", 0, 1, "NC", 0, 0},
    {"accuracy", call_accuracy, "oa1 iry iln", -1, -1, "NC", LOSS, 0},
    {"Lp batch norm train", call_lp_forward, BN_TRAIN, -1, -1, "NCS", EPS | RUNNING | MODE,
     NRM_TRAIN},
    {"Lp batch norm infer", call_lp_forward, BN_INFER, 0, 5, "NCS", EPS | RUNNING | MODE,
     NRM_INFER},
    {"Lp batch norm frozen", call_lp_forward, BN_FROZEN, -1, -1, "NCS", EPS | RUNNING | MODE,
     NRM_FROZEN},
    {"Lp batch norm backward", call_lp_backward, BN_BACK, 0, 3, "NCS", EPS | MODE, NRM_TRAIN},
    {"Lp batch norm backward frozen", call_lp_backward, BN_BACK, 0, 3, "NCS", EPS | MODE,
     NRM_FROZEN},
    {"weight norm", call_weightnorm_forward, "orw Oas irw Irs", -1, -1, "CS", 0, 0},
    {"weight norm backward", call_weightnorm_backward, "Orw Ors irw irw ias Irs", -1, -1, "CS", 0,
     0},
    {"group norm", call_groupnorm_forward, "orx oag oag irx Irc Irc", -1, -1, "NCS", EPS, 0},
    {"group norm backward", call_groupnorm_backward, ROWS_BACK, 0, 3, "NCS", 0, 0},
    {"group norm of rows", call_groupnorm_rows, "ory oag oag iry Irc Irc", -1, -1, "NC", EPS, 0},
    {"group norm backward of rows", call_groupnorm_rows_backward, "Ory Orc Orc iry iry iag iag Irc",
     0, 3, "NC", 0, 0},
    {"RMS norm", call_rmsnorm_forward, "ory Oan iry Irc", -1, -1, "NC", EPS, 0},
    {"RMS norm backward", call_rmsnorm_backward, "Ory Orc iry iry ian Irc", 0, 2, "NC", 0, 0},
    {"batch renorm train", call_renorm_forward, RENORM, -1, -1, "NCS", EPS | RUNNING | MODE | USED,
     NRM_TRAIN},
    {"batch renorm infer", call_renorm_fixed, BN_INFER, 0, 5, "NCS", EPS | RUNNING | MODE,
     NRM_INFER},
    {"batch renorm frozen", call_renorm_fixed, BN_FROZEN, -1, -1, "NCS", EPS | RUNNING | MODE,
     NRM_FROZEN},
    {"batch renorm backward", call_renorm_backward, "Orx Orc Orc irx irx iac iac iac iac Irc", 0, 3,
     "NCS", MODE, NRM_TRAIN},
    {"batch renorm backward frozen", call_renorm_backward_fixed, BN_BACK, 0, 3, "NCS", MODE,
     NRM_FROZEN},
    {"folding", call_fold, "orx orc irx Irc irc irc Irc Irc", 0, 2, "NCS", EPS | RUNNING | ALWAYS,
     NRM_INFER},
    {"statistics, update", call_stats_update, "otc irx Imz", -1, -1, "NCS", 0, 0},
    {"statistics, merge", call_stats_merge, "otc itc", -1, -1, "C", MERGED, 0},
    {"sync batch norm", call_sync_forward, "orx oac oac orc orc irx Imz itc Irc Irc", -1, -1, "NCS",
     EPS | RUNNING | MERGED | ALWAYS, NRM_TRAIN},
    {"sync batch norm sums", call_sync_sums, "ouc Orc Orc irx irx Imz iac iac", -1, -1, "NCS",
     ALWAYS, 0},
    {"sync batch norm backward", call_sync_backward, "orx irx irx Imz iac iac Irc itc iuc", 0, 1,
     "NCS", MERGED, 0},
};
enum { SITES = (int)(sizeof sites / sizeof sites[0]) };

static int buffers_of(const site *s)
{
    return (int)((strlen(s->buffers) + 1) / 4);
}
static char role(const site *s, int i)
{
    return s->buffers[4 * i];
}
static char type(const site *s, int i)
{
    return s->buffers[4 * i + 1];
}
static int is_output(const site *s, int i)
{
    return role(s, i) == 'o' || role(s, i) == 'O';
}

static size_t bytes_of(const site *s, int i, const args *a)
{
    const size_t size = type(s, i) == 'r'   ? sizeof(nrm_real)
                        : type(s, i) == 'a' ? sizeof(nrm_acc)
                        : type(s, i) == 't' ? sizeof(nrm_stats)
                        : type(s, i) == 'u' ? sizeof(nrm_sums)
                        : type(s, i) == 'm' ? 1
                                            : sizeof(int);
    switch (s->buffers[4 * i + 2]) {
    case 'x': return size * a->N * a->C * a->S;
    case 'y': return size * a->N * a->C;
    case 'z': return size * a->N * a->S;
    case 'w': return size * a->C * a->S;
    case 'n': return size * a->N;
    case 'g': return size * a->N * GROUPS;
    case 'c': return size * a->C;
    case 's': return size * a->S;
    default: return size;
    }
}

static size_t *size_of(args *a, char which)
{
    return which == 'N' ? &a->N : which == 'C' ? &a->C : &a->S;
}
#endif
