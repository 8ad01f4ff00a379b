/* test_same_row.c - the same row has the same bits, whatever batch it is in.

   Layer, RMS and group norm, batch norm with running statistics, the linear layer and a network in
   infer mode compute each row from this row alone. So a row's result must not depend on how many
   rows come with it, nor on its place among them. Each layer first computes ROWS rows in one call.
   Then the rows are cut into batches of every size in `sizes`, each batch is computed by itself,
   and each row is compared with that of the one call, byte by byte.

   A comparison is one array of one row. Only public functions are used, so tests/bits/same_row.sh
   builds the same program with threads, with a BLAS, and with a header that breaks the promise. */
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"
#include "lab/draw.h"
#include "layers/call.h"
#include "test.h"

enum { ROWS = 100, WIDEST = 4097, CHANNELS = 8, GROUPS = 4 };
#ifdef NRM_PLAIN
#define MOST 65 /* the plain primitives take their time */
#else
#define MOST WIDEST
#endif

static const size_t sizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 16, 17, 31, 33, 64, 65, 99};
static const size_t widths[] = {1,   2,    3,    7,    8,    9,    15,    16,  17,
                                31,  33,   63,   64,   65,   127,  255,   256, 257,
                                768, 1000, 1023, 1024, 1025, 2049, WIDEST};
static unsigned long comparisons;

/* The data of one width, and room for the results. */
static nrm_real x[ROWS * WIDEST], dy[ROWS * WIDEST], gamma_[WIDEST], beta_[WIDEST];
static nrm_real run_mean[WIDEST], run_var[WIDEST], W[300 * 160];
static nrm_acc channel_mean[WIDEST], channel_rstd[WIDEST];
static nrm_real dgamma[WIDEST], dbeta[WIDEST];

typedef struct result { /* what a layer computes for some rows: y, dx; mean and rstd */
    nrm_real real[2][ROWS * WIDEST];
    nrm_acc acc[2][ROWS * GROUPS];
} result;
static result whole, part;

/* D inputs, D/2 + 3 outputs; y has rows of its own width, dx of D. */
static size_t outputs_of(size_t D)
{
    return D / 2 + 3;
}

typedef struct subject {
    const char *name;
    int function, mode;
    size_t saved, per_row; /* how many arrays of statistics, and numbers of a row in each */
    int dx;                /* is there one? */
    size_t channels, most; /* of an example, if there are positions; the widest row */
    int plain, sums;       /* without gamma and beta; with their gradients */
} subject;

static const subject subjects[] = {
    {"layer norm", CALL_LAYERNORM, 0, 2, 1, 1, 1, WIDEST, 0, 0},
    {"layer norm with the gradients of gamma and beta", CALL_LAYERNORM, 0, 2, 1, 1, 1, WIDEST, 1,
     1},
    {"layer norm in place", CALL_LAYERNORM, 0, 0, 1, 0, 1, WIDEST, 0, 0},
    {"RMS norm", CALL_RMSNORM, 0, 1, 1, 1, 1, WIDEST, 0, 1},
    {"group norm", CALL_GROUPNORM, 0, 2, GROUPS, 1, CHANNELS, WIDEST, 0, 1},
    {"batch norm, infer", CALL_BATCHNORM, NRM_INFER, 0, 1, 0, 1, WIDEST, 0, 1},
    {"batch norm, frozen", CALL_BATCHNORM, NRM_FROZEN, 0, 1, 1, 1, WIDEST, 0, 1},
    {"batch norm, frozen, images", CALL_BATCHNORM, NRM_FROZEN, 0, 1, 1, CHANNELS, WIDEST, 0, 1},
    {"linear", CALL_LINEAR, 0, 0, 1, 1, 1, 300, 0, 0},
};

/* Computes `rows` rows from row `from` on, each of D values; returns a status. */
static int run(const subject *s, result *out, size_t from, size_t rows, size_t D)
{
    const int by_channel = s->function == CALL_BATCHNORM;
    nrm_running running = {run_mean, run_var, (nrm_real)0.1, 0, 0, 0};
    layer_call c;
    int rc;
    memset(&c, 0, sizeof c);
    c.N = rows, c.C = s->channels > 1 ? s->channels : D, c.S = D / c.C, c.G = GROUPS;
    c.x = x + from * D, c.dy = dy + from * D, c.y = out->real[0], c.dx = out->real[1];
    c.mean = by_channel ? channel_mean : out->acc[0];
    c.rstd = by_channel ? channel_rstd : out->acc[s->function == CALL_RMSNORM ? 0 : 1];
    if (!s->plain) c.gamma = gamma_, c.beta = beta_;
    if (s->sums) c.dgamma = dgamma, c.dbeta = dbeta;
    c.running = &running, c.mode = s->mode, c.eps = NRM_EPS;
    if (s->function == CALL_LINEAR)
        c.gamma = W, c.C = D, c.S = outputs_of(D), c.dy = dy + from * c.S;
    if (s->function == CALL_LAYERNORM && !s->dx) { /* in place */
        memcpy(c.y, c.x, rows * D * sizeof *x);
        c.x = c.y, c.mean = c.rstd = NULL;
    }
    rc = call_layer(s->function, &c);
    return s->dx ? rc | call_layer(s->function + 1, &c) : rc;
}

static void same(const char *name, const char *array, const void *a, const void *b, size_t bytes,
                 size_t width, size_t rows, size_t at)
{
    comparisons++;
    if (memcmp(a, b, bytes) == 0) return;
    if (test_bad < 10)
        printf("%s, width %lu: %s of row %lu differs in a batch of %lu\n", name,
               (unsigned long)width, array, (unsigned long)at, (unsigned long)rows);
    test_bad++;
}

static void compare_rows(const subject *s, size_t D, size_t from, size_t rows)
{
    const size_t y_width = s->function == CALL_LINEAR ? outputs_of(D) : D, stats = s->per_row;
    size_t n, k;
    for (n = 0; n < rows; n++) {
        const size_t at = from + n;
        same(s->name, "y", whole.real[0] + at * y_width, part.real[0] + n * y_width,
             y_width * sizeof(nrm_real), D, rows, at);
        if (s->dx)
            same(s->name, "dx", whole.real[1] + at * D, part.real[1] + n * D, D * sizeof(nrm_real),
                 D, rows, at);
        for (k = 0; k < s->saved; k++)
            same(s->name, "statistics", whole.acc[k] + at * stats, part.acc[k] + n * stats,
                 stats * sizeof(nrm_acc), D, rows, at);
    }
}

/* kind 0: normal values; 1: a mean of 10^4; 2: rows with a few values a million times larger. */
static void draw(nrm_rng *rng, size_t D, int kind)
{
    size_t i;
    for (i = 0; i < ROWS * D; i++) {
        const nrm_real z = draw_normal(rng);
        x[i] = kind == 0   ? z
               : kind == 1 ? (nrm_real)1e4 + z
                           : z * (nrm_real)(nrm_rng_below(rng, 10) == 0 ? 1e3 : 1e-3);
        dy[i] = draw_normal(rng);
    }
    for (i = 0; i < D; i++) {
        gamma_[i] = draw_normal(rng);
        beta_[i] = draw_normal(rng);
        run_mean[i] = draw_normal(rng);
        run_var[i] = (nrm_real)0.5 + draw_uniform(rng);
    }
    for (i = 0; i < D * outputs_of(D) && D <= 300; i++) W[i] = draw_normal(rng);
}

static void test_layers_have_the_same_bits_in_every_batch(void)
{
    nrm_rng rng;
    size_t d, s, k, from;
    int kind;
    nrm_rng_seed(&rng, 5, 0);
    for (d = 0; d < sizeof widths / sizeof *widths; d++)
        for (kind = 0; kind < 3; kind++) {
            const size_t D = widths[d];
            draw(&rng, D, kind);
            for (s = 0; s < sizeof subjects / sizeof *subjects; s++) {
                const subject *layer = &subjects[s];
                if (D % layer->channels != 0 || D > layer->most || D > MOST) continue;
                if (!OK(run(layer, &whole, 0, ROWS, D))) printf("%s\n", layer->name);
                for (k = 0; k < sizeof sizes / sizeof *sizes; k++)
                    for (from = 0; from < ROWS; from += sizes[k]) {
                        const size_t rows = ROWS - from < sizes[k] ? ROWS - from : sizes[k];
                        OK(run(layer, &part, from, rows, D));
                        compare_rows(layer, D, from, rows);
                    }
            }
        }
}

static void test_a_network_has_the_same_bits_in_every_batch(void)
{
    enum { INPUTS = 77, CLASSES = 10 };
    static const int norms[] = {NRM_BATCH_NORM,   NRM_LAYER_NORM, NRM_NOISY_BATCH_NORM,
                                NRM_GROUP_NORM,   NRM_RMS_NORM,   NRM_BATCH_RENORM,
                                NRM_LP_BATCH_NORM};
    static nrm_real logits[ROWS * CLASSES];
    size_t kind, rows, from, n;
    nrm_rng rng;
    int labels[ROWS];
    nrm_rng_seed(&rng, 6, 0);
    draw(&rng, INPUTS, 0);
    for (n = 0; n < ROWS; n++) labels[n] = (int)(n % CLASSES);
    for (kind = 0; kind < sizeof norms / sizeof *norms; kind++) {
        nrm_mlp_layer layer[3];
        nrm_mlp_spec spec = nrm_mlp_defaults();
        nrm_mlp *net;
        void *block;
        memset(layer, 0, sizeof layer);
        layer[0].width = 36, layer[0].norm = norms[kind], layer[0].activation = NRM_SIGMOID;
        layer[1].width = 52, layer[1].norm = norms[kind], layer[1].activation = NRM_TANH;
        layer[0].groups = layer[1].groups = norms[kind] == NRM_GROUP_NORM ? 4 : 0;
        layer[0].p = layer[1].p = norms[kind] == NRM_LP_BATCH_NORM ? NRM_L1 : 0;
        layer[2].width = CLASSES, layer[2].bias = 1;
        spec.inputs = INPUTS, spec.layers = 3, spec.layer = layer, spec.max_batch = ROWS;
        spec.seed = 3, spec.lr = (nrm_real)0.01;
        block = malloc(nrm_mlp_bytes(&spec));
        if (!OK(nrm_mlp_init(&net, block, nrm_mlp_bytes(&spec), &spec))) {
            free(block);
            continue;
        }
        for (n = 0; n < 5; n++) OK(nrm_mlp_train_step(net, NULL, x, labels, ROWS));
        OK(nrm_mlp_forward(net, x, ROWS, NRM_INFER));
        memcpy(logits, net->logits, sizeof logits);
        for (rows = 1; rows <= ROWS; rows++)
            for (from = 0; from + rows <= ROWS; from += rows) {
                OK(nrm_mlp_forward(net, x + from * INPUTS, rows, NRM_INFER));
                for (n = 0; n < rows; n++)
                    same("a network", "logits", logits + (from + n) * CLASSES,
                         net->logits + n * CLASSES, CLASSES * sizeof *logits, INPUTS, rows,
                         from + n);
            }
        free(block);
    }
}

static void test_enough_was_compared(void)
{
    CHECK(comparisons >= 250000);
}

int main(void)
{
    RUN(test_layers_have_the_same_bits_in_every_batch);
    RUN(test_a_network_has_the_same_bits_in_every_batch);
    RUN(test_enough_was_compared);
    printf("%lu rows compared\n", comparisons);
    return test_report("same_row");
}
