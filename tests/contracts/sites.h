/* sites.h - the functions of normlayers.h with one form of contract, as a table of calls.

   Each buffer of a call has a slot of its own in an arena. Included by test_contracts.c, which asks
   for each promise by itself, and by tests/fuzz/fuzz_calls.c, which draws the arguments. */
#ifndef SITES_H
#define SITES_H
#include "../layers/call.h"
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
   Role: o output, i input, capital if it may be NULL. Name: that of call_array. Shape: x N*C*S,
   c C, n N, 1 one, y N*C, z N*S, w C*S, s S, g N times GROUPS. */
typedef struct site {
    const char *name;
    int function; /* of call.h */
    const char *buffers;
    int in_place_out, in_place_in; /* the pair that may be one buffer; -1 if none */
    const char *sizes;             /* which of N, C, S are parameters             */
    int flags, kind;
} site;

static nrm_acc *acc_at(const args *a, int i)
{
    return (nrm_acc *)a->p[i];
}

#define BN_TRAIN "oyx omc orc ouc ovc ixx Igc Ibc"
#define BN_FROZEN "oyx omc orc iuc ivc ixx Igc Ibc"
#define BN_INFER "oyx Omc Orc iuc ivc ixx Igc Ibc"
#define BN_BACK "OXx OGc OBc iYx ixx imc irc Igc"
#define NB_TRAIN "oyx ofx omc orc ouc ovc ixx Igc Ibc"
#define NB_BACK "OXx OGc OBc iYx ifx ixx imc irc Igc"
#define NB_BACK_FROZEN "OXx OGc OBc iYx Ifx ixx imc irc Igc"
#define RENORM "oyx omc orc oqc ooc ouc ovc ixx Igc Ibc"

static const site sites[] = {
    {"linear forward", CALL_LINEAR, "oyz ixy igw Ibs", -1, -1, "NCS", 0, 0},
    {"linear backward", CALL_LINEAR_BACK, "OXy OGw OBs iYz ixy igw", -1, -1, "NCS", 0, 0},
    {"batch norm train", CALL_BATCHNORM, BN_TRAIN, -1, -1, "NCS", EPS | RUNNING | MODE, NRM_TRAIN},
    {"batch norm infer", CALL_BATCHNORM, BN_INFER, 0, 5, "NCS", EPS | RUNNING | MODE, NRM_INFER},
    {"batch norm frozen", CALL_BATCHNORM, BN_FROZEN, -1, -1, "NCS", EPS | RUNNING | MODE,
     NRM_FROZEN},
    {"batch norm backward", CALL_BATCHNORM_BACK, BN_BACK, 0, 3, "NCS", MODE, NRM_TRAIN},
    {"batch norm backward frozen", CALL_BATCHNORM_BACK, BN_BACK, 0, 3, "NCS", MODE, NRM_FROZEN},
    {"layer norm", CALL_LAYERNORM, "oyy omn orn ixy Igc Ibc", -1, -1, "NC", EPS, 0},
    {"layer norm backward", CALL_LAYERNORM_BACK, "OXy OGc OBc iYy ixy imn irn Igc", 0, 3, "NC", 0,
     0},
    {"noisy batch norm train", CALL_NOISY, NB_TRAIN, -1, -1, "NCS", EPS | RUNNING | MODE | NOISE,
     NRM_TRAIN},
    {"noisy batch norm backward", CALL_NOISY_BACK, NB_BACK, 0, 3, "NCS", MODE, NRM_TRAIN},
    {"noisy batch norm backward frozen", CALL_NOISY_BACK, NB_BACK_FROZEN, 0, 3, "NCS", MODE,
     NRM_FROZEN},
    {"identity", CALL_ACTIVATION, "oyn ixn", 0, 1, "N", ACTIVATION, NRM_IDENTITY},
    {"relu", CALL_ACTIVATION, "oyn ixn", 0, 1, "N", ACTIVATION, NRM_RELU},
    {"tanh", CALL_ACTIVATION, "oyn ixn", 0, 1, "N", ACTIVATION, NRM_TANH},
    {"sigmoid", CALL_ACTIVATION, "oyn ixn", 0, 1, "N", ACTIVATION, NRM_SIGMOID},
    {"identity backward", CALL_ACTIVATION_BACK, "oXn iYn iyn", 0, 1, "N", ACTIVATION, NRM_IDENTITY},
    {"relu backward", CALL_ACTIVATION_BACK, "oXn iYn iyn", 0, 1, "N", ACTIVATION, NRM_RELU},
    {"tanh backward", CALL_ACTIVATION_BACK, "oXn iYn iyn", 0, 1, "N", ACTIVATION, NRM_TANH},
    {"sigmoid backward", CALL_ACTIVATION_BACK, "oXn iYn iyn", 0, 1, "N", ACTIVATION, NRM_SIGMOID},
    {"cross-entropy", CALL_CROSS_ENTROPY, "oL1 Oyy ixy iln", 1, 2, "NC", LOSS, 0},
    {"cross-entropy backward", CALL_CROSS_ENTROPY_BACK, "oXy iyy iln", 0, 1, "NC", 0, 0},
    {"accuracy", CALL_ACCURACY, "oL1 ixy iln", -1, -1, "NC", LOSS, 0},
    {"Lp batch norm train", CALL_LP, BN_TRAIN, -1, -1, "NCS", EPS | RUNNING | MODE, NRM_TRAIN},
    {"Lp batch norm infer", CALL_LP, BN_INFER, 0, 5, "NCS", EPS | RUNNING | MODE, NRM_INFER},
    {"Lp batch norm frozen", CALL_LP, BN_FROZEN, -1, -1, "NCS", EPS | RUNNING | MODE, NRM_FROZEN},
    {"Lp batch norm backward", CALL_LP_BACK, BN_BACK, 0, 3, "NCS", EPS | MODE, NRM_TRAIN},
    {"Lp batch norm backward frozen", CALL_LP_BACK, BN_BACK, 0, 3, "NCS", EPS | MODE, NRM_FROZEN},
    {"weight norm", CALL_WEIGHTNORM, "oyw Oms ixw Igs", -1, -1, "CS", 0, 0},
    {"weight norm backward", CALL_WEIGHTNORM_BACK, "OXw OGs iYw ixw ims Igs", -1, -1, "CS", 0, 0},
    {"group norm", CALL_GROUPNORM, "oyx omg org ixx Igc Ibc", -1, -1, "NCS", EPS, 0},
    {"group norm backward", CALL_GROUPNORM_BACK, "OXx OGc OBc iYx ixx img irg Igc", 0, 3, "NCS", 0,
     0},
    {"group norm of rows", CALL_GROUPNORM, "oyy omg org ixy Igc Ibc", -1, -1, "NC", EPS, 0},
    {"group norm backward of rows", CALL_GROUPNORM_BACK, "OXy OGc OBc iYy ixy img irg Igc", 0, 3,
     "NC", 0, 0},
    {"RMS norm", CALL_RMSNORM, "oyy Orn ixy Igc", -1, -1, "NC", EPS, 0},
    {"RMS norm backward", CALL_RMSNORM_BACK, "OXy OGc iYy ixy irn Igc", 0, 2, "NC", 0, 0},
    {"batch renorm train", CALL_RENORM, RENORM, -1, -1, "NCS", EPS | RUNNING | MODE | USED,
     NRM_TRAIN},
    {"batch renorm infer", CALL_RENORM, BN_INFER, 0, 5, "NCS", EPS | RUNNING | MODE, NRM_INFER},
    {"batch renorm frozen", CALL_RENORM, BN_FROZEN, -1, -1, "NCS", EPS | RUNNING | MODE,
     NRM_FROZEN},
    {"batch renorm backward", CALL_RENORM_BACK, "OXx OGc OBc iYx ixx iqc ioc imc irc Igc", 0, 3,
     "NCS", MODE, NRM_TRAIN},
    {"batch renorm backward frozen", CALL_RENORM_BACK, BN_BACK, 0, 3, "NCS", MODE, NRM_FROZEN},
    {"folding", CALL_FOLD, "oyx oXc ixx IYc iuc ivc Igc Ibc", 0, 2, "NCS", EPS | RUNNING | ALWAYS,
     NRM_INFER},
    {"statistics, update", CALL_STATS_UPDATE, "osc ixx Ikz", -1, -1, "NCS", 0, 0},
    {"statistics, merge", CALL_STATS_MERGE, "osc iwc", -1, -1, "C", MERGED, 0},
    {"sync batch norm", CALL_SYNC, "oyx omc orc ouc ovc ixx Ikz isc Igc Ibc", -1, -1, "NCS",
     EPS | RUNNING | MERGED | ALWAYS, NRM_TRAIN},
    {"sync batch norm sums", CALL_SYNC_SUMS, "odc OGc OBc iYx ixx Ikz imc irc", -1, -1, "NCS",
     ALWAYS, 0},
    {"sync batch norm backward", CALL_SYNC_BACK, "oXx iYx ixx Ikz imc irc Igc isc idc", 0, 1, "NCS",
     MERGED, 0},
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
static char type(const site *s, int i) /* r nrm_real, a nrm_acc, t nrm_stats, u nrm_sums, m, l */
{
    const char name = s->buffers[4 * i + 1];
    return strchr("mrqoL", name) != NULL ? 'a'
           : name == 's' || name == 'w'  ? 't'
           : name == 'd'                 ? 'u'
           : name == 'k'                 ? 'm'
           : name == 'l'                 ? 'l'
                                         : 'r';
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

/* Makes the call. Groups of rows have no S, nor has weight norm an N. */
static int site_call(const site *s, args *a)
{
    const int weight = s->function == CALL_WEIGHTNORM || s->function == CALL_WEIGHTNORM_BACK;
    layer_call c;
    int i;
    memset(&c, 0, sizeof c);
    c.N = weight ? a->C : a->N, c.C = weight ? a->S : a->C, c.G = GROUPS;
    c.S = strchr(s->sizes, 'S') != NULL ? a->S : 1;
    c.mode = a->kind, c.eps = a->eps;
    c.r_max = s->kind == NRM_TRAIN ? 3 : 1, c.d_max = s->kind == NRM_TRAIN ? 5 : 0;
    c.p = s->function == CALL_LP ? NRM_L1 + NRM_CENTRED : NRM_LINF;
    c.running = &a->running;
    c.noise = a->null_noise ? NULL : &a->noise;
    c.rng = a->null_rng ? NULL : &a->rng;
    for (i = 0; i < buffers_of(s); i++) call_array(&c, s->buffers[4 * i + 1], a->p[i]);
    if (a->null_running) c.running = NULL;
    return call_layer(s->function, &c);
}

/* Which buffer holds the running means; the variances are next. */
static int running_at(const site *s)
{
    const char *u = strstr(s->buffers, "uc");
    return u == NULL ? -1 : (int)(u - s->buffers) / 4;
}

static size_t *size_of(args *a, char which)
{
    return which == 'N' ? &a->N : which == 'C' ? &a->C : &a->S;
}
#endif
