/* 28_batch_mates: what a network that is batch normalized makes of one image depends on the others
   in its batch. By how much, is it good for generalization, and does it hold for images?

   MATES. A network 784-100x6-10 with ReLU and batch norm (Glorot's uniform weights, standardized
   pixels, SGD 0.1, batch 128) is trained for 500 steps. Then one test image goes through it in
   train mode together with m-1 random training images, 200 times for each m = 4, 8, ... 256: the
   standard deviation of its logits against m. A batch mean has a standard error of sigma/sqrt(m),
   so the logits should spread like 1/sqrt(m).

   GAP. "Batch norm regularizes": the same network, without norm and with, learning rates 0.1 and
   0.5, is trained on the first 2000 images alone for 20 epochs. Its accuracy on them minus that on
   the test images is the generalization gap. (Batch size 32 is our choice: with 128 there would be
   320 steps only.)

   CONVOLUTIONS. Checks of the norms in the layout of images [N][C][H*W], exact but for rounding,
   and a small network: convolution 3x3 to 8 channels, 2x2 maximum, convolution 3x3 to 16, 2x2
   maximum, linear to 10; ReLU; zero padding; one epoch on the first 12,000 images; SGD 0.1 and 0.5,
   batch 32 (our choices). No norm; batch norm before ReLU and after it; group norm (4 groups),
   layer norm over channels and positions, instance norm, all before ReLU.

   The convolution is made of the linear layer: for one image its output [out][S] is the kernel
   [out][9*in] times the patches [9*in][S], so the kernel plays the input and the patches play the
   weights. Everything is in double. Seeds 11 to 15; the claims and what counts as reproduced stand
   in the table `claims` below, written before that run, but for 28h, which was a check. */
#define NRM_DOUBLE
#include "lab/experiment.h"
#include "lab/draw.h"

#define NAME "28_batch_mates"

enum { INPUTS = 784, CLASSES = 10, HIDDEN = 6, WIDTH = 100 };
enum { SIZES = 7, LEAST = 4, MOST = 256, DRAWS = 200, IMAGES = 5, POINTS = 121 };
enum { SUBSET = 2000, GAP_BATCH = 32, GAP_EPOCHS = 20 };
enum { CNN_BATCH = 32, CNN_IMAGES = 12000, WINDOW = 25, CHANNELS1 = 8, CHANNELS2 = 16 };

/* ---- the arms -------------------------------------------------------------------------------- */

enum kind { MATES_RUN, GAP_RUN, CNN_RUN };
enum cnn_norm { NO_NORM, BATCH, GROUP, LAYER, INSTANCE };

typedef struct setup {
    enum kind kind;
    int norm; /* of enum nrm_norm; of enum cnn_norm for convolutions */
    int after;
    double lr;
} setup;

enum { /* places in the two tables that follow */
       MATES,
       GAP_NONE,
       GAP_BATCH_NORM,
       GAP_NONE_FAST,
       GAP_BATCH_FAST,
       CNN_NONE,
       CNN_BEFORE,
       CNN_AFTER,
       CNN_GROUP,
       CNN_LAYER,
       CNN_INSTANCE,
       CNN_NONE_FAST,
       CNN_BEFORE_FAST,
       CNN_AFTER_FAST,
       ARMS
};

static const setup setups[ARMS] = {{MATES_RUN, NRM_BATCH_NORM, 0, 0.1},
                                   {GAP_RUN, NRM_NO_NORM, 0, 0.1},
                                   {GAP_RUN, NRM_BATCH_NORM, 0, 0.1},
                                   {GAP_RUN, NRM_NO_NORM, 0, 0.5},
                                   {GAP_RUN, NRM_BATCH_NORM, 0, 0.5},
                                   {CNN_RUN, NO_NORM, 0, 0.1},
                                   {CNN_RUN, BATCH, 0, 0.1},
                                   {CNN_RUN, BATCH, 1, 0.1},
                                   {CNN_RUN, GROUP, 0, 0.1},
                                   {CNN_RUN, LAYER, 0, 0.1},
                                   {CNN_RUN, INSTANCE, 0, 0.1},
                                   {CNN_RUN, NO_NORM, 0, 0.5},
                                   {CNN_RUN, BATCH, 0, 0.5},
                                   {CNN_RUN, BATCH, 1, 0.5}};

static const lab_arm arms[ARMS] = {{"mates", "batch norm", 12, 12},
                                   {"gap_none", "no norm, learning rate 0.1", 3, 20},
                                   {"gap_batch", "batch norm, learning rate 0.1", 3, 20},
                                   {"gap_none_fast", "no norm, learning rate 0.5", 3, 20},
                                   {"gap_batch_fast", "batch norm, learning rate 0.5", 3, 20},
                                   {"cnn_none", "none", 4, 20},
                                   {"cnn_before", "batch, before ReLU", 4, 20},
                                   {"cnn_after", "batch, after ReLU", 4, 20},
                                   {"cnn_group", "group", 4, 0},
                                   {"cnn_layer", "layer", 4, 0},
                                   {"cnn_instance", "instance", 4, 0},
                                   {"cnn_none_fast", "none, 0.5", 4, 0},
                                   {"cnn_before_fast", "batch, before ReLU, 0.5", 4, 0},
                                   {"cnn_after_fast", "batch, after ReLU, 0.5", 4, 0}};

/* ---- data ------------------------------------------------------------------------------------ */

static training_set train, test;

static int prepare(const dataset *data, int quick)
{
    return training_load(&train, &test, data, quick ? 400 : 0, quick ? 200 : 0, DATASET_STD);
}

/* ---- the dense network ----------------------------------------------------------------------- */

static nrm_mlp *make_net(const setup *s, uint64_t seed, void **block)
{
    nrm_mlp_layer layer[HIDDEN + 1];
    nrm_mlp_spec spec = training_plain(layer, HIDDEN, WIDTH, NRM_RELU, s->norm);
    spec.max_batch = MOST;
    spec.seed = seed;
    spec.lr = s->lr;
    return training_net(&spec, block);
}

static int train_steps(nrm_mlp *net, size_t batch, size_t steps, uint64_t seed)
{
    training_order order;
    size_t step;
    int status = NRM_OK;
    if (training_order_start(&order, train.n, batch, INPUTS, seed)) return -1;
    for (step = 0; step < steps && status >= 0; step++) {
        training_go_on(&order, &train, 1);
        status = nrm_mlp_train_step(net, NULL, order.x, order.labels, order.count);
    }
    training_order_free(&order);
    return status;
}

/* ---- batch mates ----------------------------------------------------------------------------- */

enum { SHOWN = 4 }; /* batch sizes with a density */
static const size_t shown[SHOWN] = {4, 16, 64, 256};
#define REACH 6.0 /* of the densities, on either side */

typedef struct mates {
    nrm_mlp *net;
    nrm_rng rng;
    nrm_real x[MOST * INPUTS];
    int labels[MOST];
    double logit[CLASSES][DRAWS], inferred[CLASSES];
    size_t draws;
} mates;

/* The logits of one test image with m-1 training images drawn at random, many times. */
static int draw_mates(mates *g, size_t image, size_t m)
{
    size_t d, i, c;
    memcpy(g->x, test.x + image * INPUTS, INPUTS * sizeof *g->x);
    g->labels[0] = test.labels[image];
    for (d = 0; d < g->draws; d++) {
        int status;
        for (i = 1; i < m; i++) {
            const size_t from = nrm_rng_below(&g->rng, (uint32_t)train.n);
            memcpy(g->x + i * INPUTS, train.x + from * INPUTS, INPUTS * sizeof *g->x);
            g->labels[i] = train.labels[from];
        }
        status = nrm_mlp_gradient(g->net, NULL, g->x, g->labels, m, NRM_TRAIN);
        if (status < 0) return status;
        for (c = 0; c < CLASSES; c++) g->logit[c][d] = g->net->logits[c];
    }
    return NRM_OK;
}

static size_t largest(const double *value, size_t stride)
{
    size_t c, best = 0;
    for (c = 1; c < CLASSES; c++)
        if (value[c * stride] > value[best * stride]) best = c;
    return best;
}

/* How far the logits of the draws spread, and how often the decision is not that of inference. */
static void describe_mates(const mates *g, double *sd, double *flips)
{
    const size_t decided = largest(g->inferred, 1);
    double sum = 0, other = 0;
    size_t c, d;
    for (c = 0; c < CLASSES; c++) sum += pow(stats_describe(g->logit[c], g->draws).sd, 2);
    for (d = 0; d < g->draws; d++) other += largest(&g->logit[0][d], DRAWS) != decided;
    *sd = sqrt(sum / CLASSES);
    *flips = other / (double)g->draws;
}

/* The logit of the image's class, less that of inference: its density. */
static void record_density(lab_run *r, const mates *g, size_t m)
{
    const size_t label = (size_t)g->labels[0];
    double off[DRAWS], grid[POINTS], density[POINTS];
    size_t i;
    for (i = 0; i < SHOWN && shown[i] != m; i++) {
    }
    if (i == SHOWN) return;
    for (i = 0; i < g->draws; i++) off[i] = g->logit[label][i] - g->inferred[label];
    for (i = 0; i < POINTS; i++) grid[i] = REACH * (2 * (double)i / (POINTS - 1) - 1);
    stats_sort(off, g->draws);
    if (stats_kde(off, g->draws, stats_bandwidth(off, g->draws), grid, POINTS, density)) return;
    for (i = 0; i < POINTS; i++)
        lab_record_as(r, grid[i], density[i], "density_%lu", (unsigned long)m);
}

static int mates_of_image(lab_run *r, mates *g, size_t image, double *sd, double *flips)
{
    size_t m, k, c;
    int status = nrm_mlp_forward(g->net, test.x + image * INPUTS, 1, NRM_INFER);
    for (c = 0; c < CLASSES; c++) g->inferred[c] = g->net->logits[c];
    for (m = LEAST, k = 0; m <= MOST && status >= 0; m *= 2, k++) {
        double this_sd, this_flips;
        status = draw_mates(g, image, m);
        if (status < 0) break;
        describe_mates(g, &this_sd, &this_flips);
        sd[k] += this_sd / IMAGES;
        flips[k] += this_flips / IMAGES;
        if (image == 0) lab_record(r, "sd", (double)m, this_sd);
        if (image == 0) record_density(r, g, m);
    }
    return status;
}

static int run_mates(lab_run *r)
{
    double sd[SIZES] = {0}, flips[SIZES] = {0};
    mates *g = (mates *)malloc(sizeof *g);
    void *block = NULL;
    size_t image, k;
    int status;
    if (!g) return 1;
    g->net = make_net(&setups[r->arm], r->seed, &block);
    g->draws = r->quick ? 10 : DRAWS;
    nrm_rng_seed(&g->rng, r->seed, TRAINING_STREAM_DATA + 1);
    status = g->net ? train_steps(g->net, 128, r->quick ? 20 : 500, r->seed) : -1;
    for (image = 0; image < IMAGES && status >= 0; image++) {
        if (r->quick && image > 0) continue;
        status = mates_of_image(r, g, image, sd, flips);
        lab_progress(r, (double)(image + 1) / IMAGES);
    }
    for (k = 0; k < SIZES; k++) {
        lab_record(r, "sd_of_five", (double)(LEAST << k), sd[k]);
        lab_record(r, "flips", (double)(LEAST << k), flips[k]);
    }
    free(block);
    free(g);
    return status < 0;
}

/* ---- generalization gap ---------------------------------------------------------------------- */

static int run_gap(lab_run *r)
{
    const size_t n = train.n < SUBSET ? train.n : SUBSET, epochs = r->quick ? 4 : GAP_EPOCHS;
    void *block = NULL;
    training_order order;
    size_t epoch;
    int status;
    nrm_mlp *net = make_net(&setups[r->arm], r->seed, &block);
    if (!net || training_order_start(&order, n, GAP_BATCH, INPUTS, r->seed)) return 1;
    for (epoch = 1, status = NRM_OK; epoch <= epochs && status >= 0; epoch++) {
        nrm_acc loss = 0, seen = 0, unseen = 0;
        while (training_next(&order, &train) && status >= 0)
            status = nrm_mlp_train_step(net, NULL, order.x, order.labels, order.count);
        if (status >= 0) status = nrm_mlp_eval(net, &loss, &seen, train.x, train.labels, n);
        if (status >= 0) status = nrm_mlp_eval(net, NULL, &unseen, test.x, test.labels, test.n);
        lab_record(r, "loss", (double)epoch, loss);
        lab_record(r, "train_accuracy", (double)epoch, seen);
        lab_record(r, "test_accuracy", (double)epoch, unseen);
        lab_record(r, "gap", (double)epoch, seen - unseen);
        lab_progress(r, (double)epoch / (double)epochs);
    }
    training_order_free(&order);
    free(block);
    return status < 0;
}

/* ---- a convolutional network ----------------------------------------------------------------- */

typedef struct stage {           /* convolution, norm and ReLU in either order, maximum of 2x2 */
    size_t in, out, side, cells; /* cells: side*side, positions of a channel */
    int norm, after;
    nrm_real *K, *b, *gamma, *beta;     /* [out][9*in], then [out]; of b and gamma, beta only one */
    nrm_real *dK, *db, *dgamma, *dbeta; /* their gradients                                        */
    nrm_real *patches, *dpatches;       /* [N][9*in][cells]; one image's                          */
    nrm_real *z, *y, *h, *d, *pooled, *part; /* [N][out][cells], pooled: a quarter; [out][9*in]  */
    size_t *from;         /* [N][out][cells/4] whose value the maximum is           */
    nrm_acc *mean, *rstd; /* [N*out] at most                                        */
    nrm_running running;  /* of batch norm                                          */
} stage;

enum { STAGES = 2, CNN_MOST = 64 };

typedef struct cnn {
    stage stages[STAGES];
    size_t features, params;
    nrm_real *W, *b, *dW, *db;   /* the linear layer            */
    nrm_real *theta, *grad;      /* [params] everything trained */
    nrm_real *logits, *prob, *d; /* [N][CLASSES], d [N][features] */
    nrm_real *room;
} cnn;

/* With room NULL it only counts. */
static nrm_real *take(nrm_real *room, size_t *used, size_t n)
{
    nrm_real *at = room ? room + *used : NULL;
    *used += n;
    return at;
}

/* Parameters first, all of them together, so that one loop can step. */
static size_t stage_params(stage *s, nrm_real *theta, nrm_real *grad, size_t used)
{
    size_t same = used;
    s->K = take(theta, &used, s->out * 9 * s->in);
    s->dK = take(grad, &same, s->out * 9 * s->in);
    s->b = s->norm == NO_NORM ? take(theta, &used, s->out) : NULL;
    s->db = s->norm == NO_NORM ? take(grad, &same, s->out) : NULL;
    s->gamma = s->norm != NO_NORM ? take(theta, &used, s->out) : NULL;
    s->dgamma = s->norm != NO_NORM ? take(grad, &same, s->out) : NULL;
    s->beta = s->norm != NO_NORM ? take(theta, &used, s->out) : NULL;
    s->dbeta = s->norm != NO_NORM ? take(grad, &same, s->out) : NULL;
    return used;
}

static size_t stage_room(stage *s, nrm_real *room, size_t used, size_t N)
{
    const size_t all = N * s->out * s->cells;
    s->patches = take(room, &used, N * 9 * s->in * s->cells);
    s->dpatches = take(room, &used, 9 * s->in * s->cells);
    s->z = take(room, &used, all);
    s->y = take(room, &used, all);
    s->h = take(room, &used, all);
    s->d = take(room, &used, all);
    s->pooled = take(room, &used, all / 4);
    s->part = take(room, &used, s->out * 9 * s->in);
    s->mean = take(room, &used, N * s->out); /* nrm_acc is double too */
    s->rstd = take(room, &used, N * s->out);
    s->running.mean = take(room, &used, s->out);
    s->running.var = take(room, &used, s->out);
    return used;
}

static size_t cnn_lay_out(cnn *c, nrm_real *theta, nrm_real *grad, nrm_real *room, size_t N)
{
    size_t used = 0, same = 0, l;
    for (l = 0; l < STAGES; l++) used = stage_params(&c->stages[l], theta, grad, used);
    same = used;
    c->W = take(theta, &used, c->features * CLASSES);
    c->dW = take(grad, &same, c->features * CLASSES);
    c->b = take(theta, &used, CLASSES);
    c->db = take(grad, &same, CLASSES);
    c->params = used;
    for (l = 0, used = 0; l < STAGES; l++) used = stage_room(&c->stages[l], room, used, N);
    c->logits = take(room, &used, N * CLASSES);
    c->prob = take(room, &used, N * CLASSES);
    c->d = take(room, &used, N * c->features);
    return used;
}

static void glorot(nrm_real *W, size_t n, size_t in, size_t out, uint64_t seed, uint64_t stream)
{
    const double reach = sqrt(6 / (double)(in + out));
    nrm_rng rng;
    size_t i;
    nrm_rng_seed(&rng, seed, stream);
    for (i = 0; i < n; i++) W[i] = reach * (2 * draw_uniform(&rng) - 1);
}

static void cnn_free(cnn *c)
{
    size_t l;
    for (l = 0; l < STAGES; l++) free(c->stages[l].from);
    free(c->theta);
    free(c->grad);
    free(c->room);
}

static int cnn_make(cnn *c, int norm, int after, size_t side, size_t N, uint64_t seed)
{
    size_t l, i, values;
    memset(c, 0, sizeof *c);
    for (l = 0; l < STAGES; l++) {
        stage *s = &c->stages[l];
        s->in = l == 0 ? 1 : CHANNELS1;
        s->out = l == 0 ? CHANNELS1 : CHANNELS2;
        s->side = side >> l;
        s->cells = s->side * s->side;
        s->norm = norm;
        s->after = after;
        s->from = (size_t *)malloc(N * s->out * (s->cells / 4) * sizeof *s->from);
    }
    c->features = CHANNELS2 * (side / 4) * (side / 4);
    values = cnn_lay_out(c, NULL, NULL, NULL, N);
    c->theta = (nrm_real *)calloc(c->params, sizeof *c->theta);
    c->grad = (nrm_real *)calloc(c->params, sizeof *c->grad);
    c->room = (nrm_real *)calloc(values, sizeof *c->room);
    if (!c->theta || !c->grad || !c->room || !c->stages[0].from || !c->stages[1].from) return -1;
    (void)cnn_lay_out(c, c->theta, c->grad, c->room, N);
    for (l = 0; l < STAGES; l++) {
        stage *s = &c->stages[l];
        glorot(s->K, s->out * 9 * s->in, 9 * s->in, 9 * s->out, seed, l);
        for (i = 0; s->gamma && i < s->out; i++) s->gamma[i] = 1;
        for (i = 0; i < s->out; i++) s->running.var[i] = 1;
        s->running.new_weight = 0.1;
    }
    glorot(c->W, c->features * CLASSES, c->features, CLASSES, seed, STAGES);
    return 0;
}

/* Where the patches of row k (dy, dx: how far the image is moved) lie inside the image. */
typedef struct window {
    size_t i0, i1, j0, j1; /* positions of the output */
    long offset;           /* from an output position to that of the input */
} window;

static window window_of(size_t k, size_t side)
{
    const long dy = (long)(k / 3) - 1, dx = (long)(k % 3) - 1;
    window w;
    w.i0 = dy < 0 ? 1 : 0;
    w.i1 = dy > 0 ? side - 1 : side;
    w.j0 = dx < 0 ? 1 : 0;
    w.j1 = dx > 0 ? side - 1 : side;
    w.offset = dy * (long)side + dx;
    return w;
}

/* x [in][side*side] to patches [9*in][side*side]: row 9*channel + k is the image moved, with 0
   outside. */
static void make_patches(nrm_real *patches, const nrm_real *x, size_t in, size_t side)
{
    size_t row, i, j;
    memset(patches, 0, 9 * in * side * side * sizeof *patches);
    for (row = 0; row < 9 * in; row++) {
        const window w = window_of(row % 9, side);
        nrm_real *to = patches + row * side * side;
        const nrm_real *from = x + row / 9 * side * side;
        for (i = w.i0; i < w.i1; i++)
            for (j = w.j0; j < w.j1; j++)
                to[i * side + j] = from[(size_t)((long)(i * side + j) + w.offset)];
    }
}

/* The way back: gradients of patches are added up where they came from. */
static void add_patches(nrm_real *dx, const nrm_real *dpatches, size_t in, size_t side)
{
    size_t row, i, j;
    for (row = 0; row < 9 * in; row++) {
        const window w = window_of(row % 9, side);
        const nrm_real *from = dpatches + row * side * side;
        nrm_real *to = dx + row / 9 * side * side;
        for (i = w.i0; i < w.i1; i++)
            for (j = w.j0; j < w.j1; j++)
                to[(size_t)((long)(i * side + j) + w.offset)] += from[i * side + j];
    }
}

static int norm_forward(stage *s, nrm_real *y, const nrm_real *x, int mode, size_t N, int track)
{
    const size_t C = s->out, S = s->cells, G = s->norm == GROUP ? 4 : s->norm == LAYER ? 1 : C;
    if (s->norm == BATCH)
        return nrm_batchnorm_forward(y, s->mean, s->rstd, track ? &s->running : NULL, x, s->gamma,
                                     s->beta, mode, NRM_EPS, N, C, S);
    return nrm_groupnorm_forward(y, s->mean, s->rstd, x, s->gamma, s->beta, NRM_EPS, N, C, S, G);
}

static int norm_backward(stage *s, nrm_real *d, const nrm_real *x, size_t N)
{
    const size_t C = s->out, S = s->cells, G = s->norm == GROUP ? 4 : s->norm == LAYER ? 1 : C;
    if (s->norm == BATCH)
        return nrm_batchnorm_backward(d, s->dgamma, s->dbeta, d, x, s->mean, s->rstd, s->gamma,
                                      NRM_TRAIN, N, C, S);
    return nrm_groupnorm_backward(d, s->dgamma, s->dbeta, d, x, s->mean, s->rstd, s->gamma, N, C, S,
                                  G);
}

/* z to what the maximum is taken of: h, or y if the norm comes last. */
static nrm_real *middle_forward(stage *s, int mode, size_t N, int track, int *status)
{
    const size_t all = N * s->out * s->cells;
    nrm_real *in = s->z;
    if (s->norm != NO_NORM && !s->after) {
        *status = norm_forward(s, s->y, in, mode, N, track);
        in = s->y;
    }
    if (*status >= 0) *status = nrm_activation_forward(s->h, in, NRM_RELU, all);
    if (s->norm == NO_NORM || !s->after) return s->h;
    if (*status >= 0) *status = norm_forward(s, s->y, s->h, mode, N, track);
    return s->y;
}

static void pool(stage *s, const nrm_real *x, size_t N)
{
    const size_t half = s->side / 2;
    size_t p, i, j, k;
    for (p = 0; p < N * s->out; p++)
        for (i = 0; i < half; i++)
            for (j = 0; j < half; j++) {
                const size_t corner = p * s->cells + 2 * i * s->side + 2 * j;
                size_t best = corner;
                for (k = 1; k < 4; k++) {
                    const size_t at = corner + (k / 2) * s->side + k % 2;
                    if (x[at] > x[best]) best = at;
                }
                s->from[(p * half + i) * half + j] = best;
                s->pooled[(p * half + i) * half + j] = x[best];
            }
}

static int stage_forward(stage *s, const nrm_real *x, int mode, size_t N, int track)
{
    const size_t rows = 9 * s->in, S = s->cells;
    const nrm_real *top;
    size_t n, c, i;
    int status = NRM_OK;
    for (n = 0; n < N && status >= 0; n++) {
        nrm_real *patches = s->patches + n * rows * S, *z = s->z + n * s->out * S;
        make_patches(patches, x + n * s->in * S, s->in, s->side);
        status = nrm_linear_forward(z, s->K, patches, NULL, s->out, rows, S);
        for (c = 0; s->b && c < s->out; c++)
            for (i = 0; i < S; i++) z[c * S + i] += s->b[c];
    }
    if (status < 0) return status;
    top = middle_forward(s, mode, N, track, &status);
    if (status >= 0) pool(s, top, N);
    return status;
}

/* d_pooled, the gradient of the maxima, to the gradients of the parameters, and to dx unless it is
   null. */
static int stage_backward(stage *s, nrm_real *dx, const nrm_real *d_pooled, size_t N)
{
    const size_t rows = 9 * s->in, S = s->cells, all = N * s->out * S;
    size_t i, n, c;
    int status = NRM_OK;
    memset(s->d, 0, all * sizeof *s->d);
    for (i = 0; i < all / 4; i++) s->d[s->from[i]] += d_pooled[i];
    if (s->norm != NO_NORM && s->after) status = norm_backward(s, s->d, s->h, N);
    if (status >= 0) status = nrm_activation_backward(s->d, s->d, s->h, NRM_RELU, all);
    if (status >= 0 && s->norm != NO_NORM && !s->after) status = norm_backward(s, s->d, s->z, N);
    if (dx) memset(dx, 0, N * s->in * S * sizeof *dx);
    for (n = 0; n < N && status >= 0; n++) {
        const nrm_real *d = s->d + n * s->out * S;
        memset(s->dpatches, 0, rows * S * sizeof *s->dpatches);
        status = nrm_linear_backward(s->part, dx ? s->dpatches : NULL, NULL, d, s->K,
                                     s->patches + n * rows * S, s->out, rows, S);
        for (i = 0; i < s->out * rows; i++) s->dK[i] += s->part[i];
        for (c = 0; s->db && c < s->out; c++)
            for (i = 0; i < S; i++) s->db[c] += d[c * S + i];
        if (dx) add_patches(dx + n * s->in * S, s->dpatches, s->in, s->side);
    }
    return status;
}

static int cnn_forward(cnn *c, const nrm_real *x, size_t N, int mode, int track)
{
    int status = stage_forward(&c->stages[0], x, mode, N, track);
    if (status >= 0) status = stage_forward(&c->stages[1], c->stages[0].pooled, mode, N, track);
    if (status >= 0)
        status =
            nrm_linear_forward(c->logits, c->stages[1].pooled, c->W, c->b, N, c->features, CLASSES);
    return status;
}

static int cnn_gradient(cnn *c, nrm_acc *loss, const nrm_real *x, const int *labels, size_t N,
                        int track)
{
    int status = cnn_forward(c, x, N, NRM_TRAIN, track);
    memset(c->grad, 0, c->params * sizeof *c->grad);
    if (status >= 0)
        status = nrm_cross_entropy_forward(loss, c->prob, c->logits, labels, N, CLASSES);
    if (status >= 0) status = nrm_cross_entropy_backward(c->prob, c->prob, labels, N, CLASSES);
    if (status >= 0)
        status = nrm_linear_backward(c->d, c->dW, c->db, c->prob, c->stages[1].pooled, c->W, N,
                                     c->features, CLASSES);
    /* the maxima of the first stage are not needed any more, their gradients take the place */
    if (status >= 0) status = stage_backward(&c->stages[1], c->stages[0].pooled, c->d, N);
    if (status >= 0) status = stage_backward(&c->stages[0], NULL, c->stages[0].pooled, N);
    return status;
}

/* ---- runs of it ------------------------------------------------------------------------------ */

static int cnn_train(lab_run *r, cnn *c, double lr)
{
    const size_t n = train.n < CNN_IMAGES ? train.n : CNN_IMAGES;
    const size_t steps = training_steps(n, CNN_BATCH);
    training_order order;
    const size_t every = r->quick ? 4 : WINDOW;
    double sum = 0;
    size_t step, i;
    int status = NRM_OK;
    if (training_order_start(&order, n, CNN_BATCH, INPUTS, r->seed)) return -1;
    for (step = 1; training_next(&order, &train) && status >= 0; step++) {
        nrm_acc loss = 0;
        status = cnn_gradient(c, &loss, order.x, order.labels, order.count, 1);
        for (i = 0; i < c->params && status == NRM_OK; i++) c->theta[i] -= lr * c->grad[i];
        sum += loss / (double)every;
        if (step % every == 0) lab_record(r, "loss", (double)step, sum);
        if (step % every == 0) sum = 0;
        lab_progress(r, (double)step / (double)steps * 0.8);
    }
    training_order_free(&order);
    return status;
}

static int run_cnn(lab_run *r)
{
    const setup *s = &setups[r->arm];
    double right = 0;
    size_t i, n;
    cnn c;
    int status = cnn_make(&c, s->norm, s->after, DATASET_SIDE, CNN_MOST, r->seed);
    if (status == 0) status = cnn_train(r, &c, s->lr);
    for (i = 0; i < test.n && status >= 0; i += n) {
        nrm_acc share = 0;
        n = test.n - i < CNN_MOST ? test.n - i : CNN_MOST;
        status = cnn_forward(&c, test.x + i * INPUTS, n, NRM_INFER, 1);
        if (status >= 0) status = nrm_accuracy(&share, c.logits, test.labels + i, n, CLASSES);
        right += share * (double)n;
    }
    lab_record(r, "test_accuracy", s->lr, right / (double)test.n);
    cnn_free(&c);
    return status < 0;
}

/* A training with probes must end with the same bits as one without: here the probe is
   nrm_mlp_gradient on other batches, of another size. */
static int check_probe(lab_run *r)
{
    nrm_mlp *net[2];
    void *block[2] = {NULL, NULL};
    size_t k, step;
    for (k = 0; k < 2; k++) {
        net[k] = make_net(&setups[MATES], r->seed, &block[k]);
        for (step = 0; net[k] && step < 4; step++) {
            (void)nrm_mlp_train_step(net[k], NULL, train.x + step * 16 * INPUTS,
                                     train.labels + step * 16, 16);
            if (k == 1)
                (void)nrm_mlp_gradient(net[k], NULL, test.x, test.labels, 4 + step, NRM_TRAIN);
        }
    }
    if (net[0] && net[1]) lab_record(r, "check_probe", 0, training_same_bits(net[0], net[1]));
    free(block[0]);
    free(block[1]);
    return net[0] && net[1] ? 0 : 1;
}

static int run(lab_run *r)
{
    if (setups[r->arm].kind == MATES_RUN) return check_probe(r) || run_mates(r);
    return setups[r->arm].kind == GAP_RUN ? run_gap(r) : run_cnn(r);
}

/* ---- checks of the norms in the layout of images --------------------------------------------- */

enum { N_IMAGES = 3, C_IMAGES = 4, S_IMAGES = 6, CELLS = N_IMAGES * C_IMAGES * S_IMAGES };
enum { EACH = C_IMAGES * S_IMAGES, PER_CHANNEL = N_IMAGES * S_IMAGES };

typedef struct sample {
    nrm_real x[CELLS], dy[CELLS], gamma[C_IMAGES], beta[C_IMAGES];
} sample;

typedef struct result { /* of a layer: forward and backward pass, running statistics */
    nrm_real y[CELLS], dx[CELLS], dgamma[EACH], dbeta[EACH], mean[C_IMAGES], var[C_IMAGES];
} result;

static void draw(sample *a)
{
    nrm_rng rng;
    size_t i;
    nrm_rng_seed(&rng, 1, 7);
    for (i = 0; i < CELLS; i++) a->x[i] = 2 * draw_normal(&rng) + (double)(i % 5);
    for (i = 0; i < CELLS; i++) a->dy[i] = draw_normal(&rng);
    for (i = 0; i < C_IMAGES; i++) a->gamma[i] = 1 + draw_uniform(&rng);
    for (i = 0; i < C_IMAGES; i++) a->beta[i] = draw_normal(&rng);
}

static double difference(const result *a, const result *b)
{
    double most =
        stats_larger(training_farthest(a->y, b->y, CELLS), training_farthest(a->dx, b->dx, CELLS));
    most = stats_larger(most, training_farthest(a->dgamma, b->dgamma, C_IMAGES));
    most = stats_larger(most, training_farthest(a->dbeta, b->dbeta, C_IMAGES));
    most = stats_larger(most, training_farthest(a->mean, b->mean, C_IMAGES));
    return stats_larger(most, training_farthest(a->var, b->var, C_IMAGES));
}

/* Batch norm of N images of S cells; S = 1: of rows. */
static void batch_norm(result *out, const sample *a, size_t N, size_t S)
{
    nrm_acc mean[C_IMAGES], rstd[C_IMAGES];
    nrm_running running = {NULL, NULL, 1, 0, 0, 0};
    memset(out, 0, sizeof *out);
    running.mean = out->mean;
    running.var = out->var;
    (void)nrm_batchnorm_forward(out->y, mean, rstd, &running, a->x, a->gamma, a->beta, NRM_TRAIN,
                                NRM_EPS, N, C_IMAGES, S);
    (void)nrm_batchnorm_backward(out->dx, out->dgamma, out->dbeta, a->dy, a->x, mean, rstd,
                                 a->gamma, NRM_TRAIN, N, C_IMAGES, S);
}

/* [N][C][S] to [N*S][C], or back. */
static void turn(nrm_real *to, const nrm_real *from, int back)
{
    size_t n, c, i;
    for (n = 0; n < N_IMAGES; n++)
        for (c = 0; c < C_IMAGES; c++)
            for (i = 0; i < S_IMAGES; i++) {
                const size_t image = (n * C_IMAGES + c) * S_IMAGES + i;
                const size_t row = (n * S_IMAGES + i) * C_IMAGES + c;
                to[back ? image : row] = from[back ? row : image];
            }
}

static double rows_difference(const sample *a)
{
    sample rows = *a;
    result images, turned, back;
    turn(rows.x, a->x, 0);
    turn(rows.dy, a->dy, 0);
    batch_norm(&images, a, N_IMAGES, S_IMAGES);
    batch_norm(&turned, &rows, PER_CHANNEL, 1);
    back = turned;
    turn(back.y, turned.y, 1);
    turn(back.dx, turned.dx, 1);
    return difference(&images, &back);
}

static void group_norm(result *out, const sample *a, size_t G)
{
    nrm_acc mean[N_IMAGES * C_IMAGES], rstd[N_IMAGES * C_IMAGES];
    memset(out, 0, sizeof *out);
    (void)nrm_groupnorm_forward(out->y, mean, rstd, a->x, a->gamma, a->beta, NRM_EPS, N_IMAGES,
                                C_IMAGES, S_IMAGES, G);
    (void)nrm_groupnorm_backward(out->dx, out->dgamma, out->dbeta, a->dy, a->x, mean, rstd,
                                 a->gamma, N_IMAGES, C_IMAGES, S_IMAGES, G);
}

/* Group norm of C groups against what instance norm is: batch norm of one image at a time. */
static double instance_difference(const sample *a)
{
    result groups, alone, one;
    size_t n, c;
    group_norm(&groups, a, C_IMAGES);
    memset(&alone, 0, sizeof alone);
    for (n = 0; n < N_IMAGES; n++) {
        sample image = *a;
        memcpy(image.x, a->x + n * EACH, EACH * sizeof *image.x);
        memcpy(image.dy, a->dy + n * EACH, EACH * sizeof *image.dy);
        batch_norm(&one, &image, 1, S_IMAGES);
        memcpy(alone.y + n * EACH, one.y, EACH * sizeof *one.y);
        memcpy(alone.dx + n * EACH, one.dx, EACH * sizeof *one.dx);
        for (c = 0; c < C_IMAGES; c++) alone.dgamma[c] += one.dgamma[c];
        for (c = 0; c < C_IMAGES; c++) alone.dbeta[c] += one.dbeta[c];
    }
    return difference(&groups, &alone);
}

/* Group norm of one group against layer norm of C*S features whose gamma is the channel's. */
static double layer_difference(const sample *a)
{
    nrm_real gamma[EACH], beta[EACH];
    nrm_acc mean[N_IMAGES], rstd[N_IMAGES];
    result groups, rows, sums;
    size_t i;
    group_norm(&groups, a, 1);
    memset(&rows, 0, sizeof rows);
    for (i = 0; i < EACH; i++) gamma[i] = a->gamma[i / S_IMAGES];
    for (i = 0; i < EACH; i++) beta[i] = a->beta[i / S_IMAGES];
    (void)nrm_layernorm_forward(rows.y, mean, rstd, a->x, gamma, beta, NRM_EPS, N_IMAGES, EACH);
    (void)nrm_layernorm_backward(rows.dx, rows.dgamma, rows.dbeta, a->dy, a->x, mean, rstd, gamma,
                                 N_IMAGES, EACH);
    sums = rows;
    memset(sums.dgamma, 0, sizeof sums.dgamma);
    memset(sums.dbeta, 0, sizeof sums.dbeta);
    for (i = 0; i < EACH; i++) sums.dgamma[i / S_IMAGES] += rows.dgamma[i];
    for (i = 0; i < EACH; i++) sums.dbeta[i / S_IMAGES] += rows.dbeta[i];
    return difference(&groups, &sums);
}

/* In inference, and what is stored: variance of M = N*H*W values with M-1 below, also for N = 1. */
static double running_difference(const sample *a, size_t N)
{
    const double M = (double)(N * S_IMAGES);
    nrm_real y[CELLS];
    nrm_running running = {NULL, NULL, 1, 0, 0, 1};
    result trained;
    double most = 0;
    size_t n, c, i;
    batch_norm(&trained, a, N, S_IMAGES);
    running.mean = trained.mean;
    running.var = trained.var;
    (void)nrm_batchnorm_forward(y, NULL, NULL, &running, a->x, a->gamma, a->beta, NRM_INFER,
                                NRM_EPS, N, C_IMAGES, S_IMAGES);
    for (c = 0; c < C_IMAGES; c++) {
        double mean = 0, var = 0;
        for (n = 0; n < N; n++)
            for (i = 0; i < S_IMAGES; i++) mean += a->x[(n * C_IMAGES + c) * S_IMAGES + i] / M;
        for (n = 0; n < N; n++)
            for (i = 0; i < S_IMAGES; i++)
                var += pow(a->x[(n * C_IMAGES + c) * S_IMAGES + i] - mean, 2) / (M - 1);
        most = stats_larger(most,
                            stats_larger(fabs(trained.mean[c] - mean), fabs(trained.var[c] - var)));
        for (n = 0; n < N; n++)
            for (i = 0; i < S_IMAGES; i++) {
                const size_t at = (n * C_IMAGES + c) * S_IMAGES + i;
                const double wanted =
                    a->gamma[c] * (a->x[at] - mean) / sqrt(var + NRM_EPS) + a->beta[c];
                most = stats_larger(most, fabs(y[at] - wanted));
            }
    }
    return most;
}

typedef struct cnn_case { /* for the gradient check: the loss of one batch */
    cnn *net;
    const nrm_real *x;
    const int *labels;
    size_t N;
} cnn_case;

static nrm_acc cnn_loss(void *context)
{
    const cnn_case *k = (const cnn_case *)context;
    nrm_acc loss = (nrm_acc)NAN;
    (void)cnn_forward(k->net, k->x, k->N, NRM_TRAIN, 0);
    (void)nrm_cross_entropy_forward(&loss, NULL, k->net->logits, k->labels, k->N, CLASSES);
    return loss;
}

/* The gradients of a small one, by differences: 1 if all that could be judged are right. */
static int cnn_gradients_right(int norm, int after, size_t *checked)
{
    enum { SIDE = 8, N = 3 };
    nrm_real x[N * SIDE * SIDE], *grad;
    int labels[N] = {3, 1, 4}, right = 0;
    nrm_gradcheck_options options;
    nrm_gradcheck_report found;
    nrm_gradcheck_group group;
    nrm_acc loss;
    cnn_case k;
    nrm_rng rng;
    cnn c;
    size_t i;
    nrm_rng_seed(&rng, 2, 9);
    for (i = 0; i < N * SIDE * SIDE; i++) x[i] = draw_normal(&rng);
    memset(&options, 0, sizeof options);
    options.at_most = 150;
    k.net = &c;
    k.x = x;
    k.labels = labels;
    k.N = N;
    if (cnn_make(&c, norm, after, SIDE, N, 3) == 0) {
        grad = (nrm_real *)malloc(c.params * sizeof *grad);
        (void)cnn_gradient(&c, &loss, x, labels, N, 0);
        if (grad) memcpy(grad, c.grad, c.params * sizeof *grad);
        group.name = "all";
        group.theta = c.theta;
        group.grad = grad;
        group.n = c.params;
        right = grad && nrm_gradcheck(&found, &group, 1, cnn_loss, &k, &options) == NRM_OK;
        *checked += right ? found.checked - found.kinks - found.unsettled : 0;
        free(grad);
    }
    cnn_free(&c);
    return right;
}

static void check(lab_report *r)
{
    double rows, instance, layer, running;
    size_t checked = 0;
    int norm, after, right = 1;
    sample a;
    draw(&a);
    rows = rows_difference(&a);
    instance = instance_difference(&a);
    layer = layer_difference(&a);
    running = stats_larger(running_difference(&a, N_IMAGES), running_difference(&a, 1));
    for (norm = NO_NORM; norm <= INSTANCE; norm++)
        for (after = 0; after < 2; after++) right &= cnn_gradients_right(norm, after, &checked);
    lab_check(r, rows < 1e-12, "batch norm of [N][C][H*W] is batch norm of [N*H*W][C]",
              "largest difference of outputs, gradients, running statistics %.1e", rows);
    lab_check(r, instance < 1e-12, "group norm with a group for each channel is instance norm",
              "largest difference %.1e", instance);
    lab_check(r, layer < 1e-12, "group norm with one group is layer norm over channels and cells",
              "largest difference %.1e", layer);
    lab_check(r, running < 1e-12,
              "running variance of images: divided by N*H*W - 1, also for one image; inference",
              "largest difference %.1e", running);
    lab_check(r, right, "gradients of the convolutional network, all norms in both places",
              "%lu of them by differences", (unsigned long)checked);
    lab_check(r, lab_summary(r, MATES, "check_probe", 0).min > 0.5,
              "a training with probes ends with the same bits as one without",
              "weights and running variance, 4 steps");
}

/* ---- claims ---------------------------------------------------------------------------------- */

#define NOTES "Chinese notes on batch norm"

enum { SLOPE, GAP_SMALLER, GAP_FAST, BETTER, BETTER_FAST, CNN_BETTER, AFTER_BETTER, ROWS, CLAIMS };

static const lab_claim claims[CLAIMS] = {
    {"28a", "What a network makes of one image varies with its batch mates, like 1/sqrt(m)",
     "ours, of a remark in Ioffe and Szegedy 2015, sec. 3.4, which has no law", "no numbers",
     "slope of log(sd of the logits) against log m, fitted from m = 16 to 256: -0.5 ± 0.1 in the "
     "mean, seed by seed",
     "trial run (1 network): sd 1.58, 0.977, 0.40, 0.283 at m = 4, 16, 128, 256; slope -0.46",
     LAB_TRAINING, LAB_SETTING},
    {"28b", "Batch norm makes the generalization gap smaller", NOTES, "no numbers",
     "accuracy on the 2000 training images minus test accuracy after 20 epochs: smaller than "
     "without norm, learning rate 0.1 (sign only)",
     "none", LAB_TRAINING, LAB_SETTING},
    {"28c", "A large learning rate makes the gap of batch norm smaller still",
     "Bjorck et al. 2018, via " NOTES, "no numbers for this setting",
     "gap after 20 epochs with learning rate 0.5 smaller than with 0.1, both with batch norm (sign "
     "only)",
     "none", LAB_TRAINING, LAB_SETTING},
    {"28d", "Batch norm generalizes better", NOTES "; Ioffe and Szegedy 2015, sec. 3.4",
     "no numbers for this setting",
     "test accuracy after 20 epochs on 2000 images above that without norm, learning rate 0.1 "
     "(sign only)",
     "none", LAB_TRAINING, LAB_SETTING},
    {"28e", "With batch norm a large learning rate generalizes better",
     "Bjorck et al. 2018, Fig. 1", "CIFAR-10: the largest learning rate ends best",
     "test accuracy after 20 epochs with learning rate 0.5 above that with 0.1, both with batch "
     "norm (sign only)",
     "none", LAB_TRAINING, LAB_SETTING},
    {"28f", "In a convolutional network batch norm gives a better accuracy",
     NOTES "; caffenet-benchmark (ImageNet, single runs)",
     "accuracy 0.478 with batch norm before ReLU, 0.471 without",
     "test accuracy after one epoch on 12,000 images above that without norm, before ReLU, "
     "learning rate 0.1 (sign only)",
     "none", LAB_TRAINING, LAB_SETTING},
    {"28g", "In a convolutional network too, after ReLU is the better place for batch norm",
     NOTES "; caffenet-benchmark (ImageNet, single runs)",
     "with scale and bias, as here: accuracy 0.493 after, 0.478 before; without: 0.499, 0.474",
     "test accuracy of the convolutional network higher with the norm after ReLU, learning rate "
     "0.1 (sign only)",
     "none for convolutions; a dense network (3 seeds): 0.959 before, 0.958 after", LAB_TRAINING,
     LAB_SETTING},
    {"28h", "Batch norm of images is batch norm of rows, a row for each position of each image",
     "a tutorial with a custom batch norm; " NOTES, "the formula and the code",
     "exact: outputs, gradients and running statistics to 1e-12; a check until after the run",
     "none", LAB_IDENTITY, LAB_SETTING}};

/* Of the straight line through log(sd) against log(m), m >= least. */
static double slope_of(const lab_report *r, size_t seed, const char *series, double least)
{
    const lab_series s = lab_get(r, MATES, seed, series);
    double mx = 0, my = 0, xy = 0, xx = 0;
    size_t i, n = 0;
    for (i = 0; i < s.n; i++)
        if (s.x[i] >= least) {
            mx += log(s.x[i]);
            my += log(s.y[i]);
            n++;
        }
    mx /= (double)n;
    my /= (double)n;
    for (i = 0; i < s.n; i++)
        if (s.x[i] >= least) {
            xy += (log(s.x[i]) - mx) * (log(s.y[i]) - my);
            xx += pow(log(s.x[i]) - mx, 2);
        }
    return xy / xx;
}

static stats_summary slopes(const lab_report *r, const char *series, double least, size_t *inside)
{
    double slope[LAB_SEEDS_MAX];
    size_t s;
    const size_t n = lab_seeds(r, MATES);
    for (s = 0, *inside = 0; s < n; s++) {
        slope[s] = slope_of(r, s, series, least);
        *inside += fabs(slope[s] + 0.5) <= 0.1;
    }
    return stats_describe(slope, n);
}

static void judge_slope(lab_report *r)
{
    size_t inside, ignored;
    const stats_summary s = slopes(r, "sd", 16, &inside), all = slopes(r, "sd", 4, &ignored);
    const stats_summary five = slopes(r, "sd_of_five", 16, &ignored);
    double off[LAB_SEEDS_MAX];
    size_t k;
    for (k = 0; k < s.n; k++) off[k] = fabs(slope_of(r, k, "sd", 16) + 0.5);
    lab_verdict(r, &claims[SLOPE], stats_judge_limit(off, s.n, 0.1, -1), "",
                "slope %s, inside in %lu of %lu; from m = 4: %.3f; mean sd of five "
                "images: %.3f; sd %.2f at m = 4, %.3f at 256",
                lab_mean_sd(r, s, 3), (unsigned long)inside, (unsigned long)s.n, all.mean,
                five.mean, lab_mean(r, MATES, "sd", 4), lab_mean(r, MATES, "sd", 256));
}

/* The last values of two arms, as a claim: the first one larger (+1) or smaller (-1). */
static void judge_last(lab_report *r, const lab_claim *claim, size_t a, size_t b,
                       const char *series, int sign)
{
    lab_verdict(r, claim, lab_compare(r, a, b, series, LAB_LAST, sign, 1), "", "%s against %s",
                lab_text(r, a, series, LAB_LAST, 4), lab_text(r, b, series, LAB_LAST, 4));
}

static void judge_rows(lab_report *r)
{
    double rows;
    sample a;
    draw(&a);
    rows = rows_difference(&a);
    lab_verdict(r, &claims[ROWS], stats_holds(rows < 1e-12), "", "differ by %.0e", rows);
}

static void judge(lab_report *r)
{
    judge_slope(r);
    judge_last(r, &claims[GAP_SMALLER], GAP_BATCH_NORM, GAP_NONE, "gap", -1);
    judge_last(r, &claims[GAP_FAST], GAP_BATCH_FAST, GAP_BATCH_NORM, "gap", -1);
    judge_last(r, &claims[BETTER], GAP_BATCH_NORM, GAP_NONE, "test_accuracy", +1);
    judge_last(r, &claims[BETTER_FAST], GAP_BATCH_FAST, GAP_BATCH_NORM, "test_accuracy", +1);
    judge_last(r, &claims[CNN_BETTER], CNN_BEFORE, CNN_NONE, "test_accuracy", +1);
    judge_last(r, &claims[AFTER_BETTER], CNN_AFTER, CNN_BEFORE, "test_accuracy", +1);
    judge_rows(r);
}

/* ---- pages ----------------------------------------------------------------------------------- */

static plot_style sized(plot_color color, int dash, int marker)
{
    plot_style s = plot_with_marker(plot_solid(color), marker);
    s.dash = dash;
    return s;
}

/* Densities of a logit of the first seed's network, one curve for each batch size. */
static void draw_densities(lab_report *r, plot_panel *p)
{
    const plot_color color[SHOWN] = {lab_level(3, 4), lab_level(2, 4), lab_level(1, 4),
                                     lab_level(0, 4)};
    static const int dash[SHOWN] = {PLOT_DOTTED, PLOT_DASHDOT, PLOT_DASHED, PLOT_SOLID};
    size_t i;
    for (i = 0; i < SHOWN; i++) {
        const lab_series one =
            lab_get(r, MATES, 0, lab_format(r, "density_%lu", (unsigned long)shown[i]));
        plot_style s = plot_solid(color[i]);
        s.dash = dash[i];
        plot_line(p, lab_format(r, "m = %lu", (unsigned long)shown[i]), one.x, one.y, one.n, s);
    }
}

static void draw_slope(lab_report *r, plot_panel *p)
{
    const double top = lab_mean(r, MATES, "sd", 64) * sqrt(64.0);
    double x[2] = {LEAST, MOST}, y[2];
    size_t i;
    for (i = 0; i < 2; i++) y[i] = top / sqrt(x[i]);
    plot_line(p, "slope -1/2 through m = 64", x, y, 2, plot_dashed(PLOT_INK));
    lab_plot(r, p, MATES, "sd", "first test image", sized(PLOT_BLUE, PLOT_SOLID, PLOT_CIRCLE));
    lab_plot(r, p, MATES, "sd_of_five", "mean of five images",
             sized(PLOT_GREY, PLOT_DASHDOT, PLOT_SQUARE));
}

static int page_mates(lab_report *r)
{
    plot_figure *f = lab_figure(
        r, "What a network makes of an image varies with its batch mates, like 1/√m", 1800, 860);
    plot_panel *density = plot_add(f, 0, 0, 1, 1), *sd = plot_add(f, 0, 1, 1, 1);
    plot_panel *flips = plot_add(f, 0, 2, 1, 1);
    lab_subtitle(r, f,
                 "784-100x6-10, ReLU, trained; one test image in batches with other images, drawn "
                 "again and again",
                 lab_seeds(r, MATES));
    plot_heading(density, "one logit, one network");
    if (!lab_quick(r)) plot_range_x(density, -6, 4);
    plot_axis_x(density, "logit: train mode - inference", PLOT_LINEAR);
    plot_axis_y(density, "density", PLOT_LINEAR);
    draw_densities(r, density);
    plot_heading(sd, "spread of the logits");
    plot_axis_x(sd, "batch size m", PLOT_LOG2);
    plot_axis_y(sd, "standard deviation", PLOT_LOG10);
    draw_slope(r, sd);
    plot_legend(flips, PLOT_LEGEND_NONE);
    plot_heading(flips, "other decision than inference");
    plot_axis_x(flips, "batch size m", PLOT_LOG2);
    plot_axis_y(flips, "share of draws, five images", PLOT_LINEAR);
    lab_plot(r, flips, MATES, "flips", "mean of five images",
             sized(PLOT_GREY, PLOT_DASHDOT, PLOT_SQUARE));
    return lab_save(r, f, NULL);
}

static plot_style gap_look(size_t arm)
{
    plot_style s = lab_style(setups[arm].norm == NRM_NO_NORM ? "none" : "batch");
    if (setups[arm].lr > 0.2) {
        s.color = setups[arm].norm == NRM_NO_NORM ? PLOT_VERMILLION : PLOT_BLUE;
        s.dash = setups[arm].norm == NRM_NO_NORM ? PLOT_DOTTED : PLOT_DASHDOT;
    }
    return s;
}

/* Seeds in which an arm's loss is not finite at the end. */
static size_t diverged(const lab_report *r, size_t arm)
{
    double loss[LAB_SEEDS_MAX];
    const size_t n = lab_values(r, arm, "loss", LAB_LAST, loss);
    size_t s, count = 0;
    for (s = 0; s < n; s++)
        if (!isfinite(loss[s])) count++;
    return count;
}

/* An arm with diverged networks has a line for each seed, and none for the gap: where a network
   decides nothing, both of its terms are 0. */
static void draw_gap(lab_report *r, plot_panel *p, size_t arm, const char *series, int gap)
{
    plot_style s = gap_look(arm);
    s.width = 0.8;
    if (diverged(r, arm) == 0) lab_plot(r, p, arm, series, NULL, gap_look(arm));
    if (diverged(r, arm) > 0 && !gap)
        lab_plot_seeds(r, p, arm, series,
                       lab_format(r, "%s: %lu of %lu diverged", arms[arm].name,
                                  (unsigned long)diverged(r, arm),
                                  (unsigned long)lab_seeds(r, arm)),
                       s);
}

static int page_gap(lab_report *r)
{
    static const char *const series[3] = {"train_accuracy", "test_accuracy", "gap"};
    static const char *const heading[3] = {"2000 training images", "test images",
                                           "gap: the one minus the other"};
    static const double least[3] = {0.7, 0.7, 0}, most[3] = {1.01, 1.01, 0.15};
    plot_figure *f =
        lab_figure(r, "Trained on 2000 images, batch norm and none end within a point", 1600, 800);
    size_t i, arm;
    lab_subtitle(r, f, "784-100x6-10, ReLU, 20 epochs of SGD on 2000 images, batches of 32",
                 lab_seeds(r, 1));
    plot_shared_legend(f);
    for (i = 0; i < 3; i++) {
        plot_panel *p = plot_add(f, 0, (int)i, 1, 1);
        plot_heading(p, heading[i]);
        plot_axis_x(p, "epoch", PLOT_LINEAR);
        plot_axis_y(p, i < 2 ? "accuracy" : "difference of accuracies", PLOT_LINEAR);
        plot_grid(p, PLOT_GRID_Y);
        if (!lab_quick(r)) plot_range_y(p, least[i], most[i]);
        for (arm = GAP_NONE; arm <= GAP_BATCH_FAST; arm++) draw_gap(r, p, arm, series[i], i == 2);
    }
    return lab_save(r, f, "gap");
}

/* Test errors of `count` arms from the first, in per cent. */
static void draw_errors(lab_report *r, plot_panel *p, size_t first, const char *const *name,
                        int count)
{
    double error[6], sd[6];
    int i;
    for (i = 0; i < count; i++) {
        const stats_summary s = lab_summary(r, first + (size_t)i, "test_accuracy", LAB_LAST);
        error[i] = 100 * (1 - s.mean);
        sd[i] = 100 * s.sd;
    }
    plot_axis_y(p, "test error (%)", PLOT_LINEAR);
    plot_categories(p, name, count);
    plot_bars(p, NULL, error, sd, (size_t)count, plot_solid(PLOT_GREY));
    plot_bar_values(p, 1);
}

static int page_conv(lab_report *r)
{
    static const char *const name[6] = {"none", "before", "after", "group", "layer", "instance"};
    static const int dash[6] = {PLOT_DASHED,  PLOT_SOLID,  PLOT_DOTTED,
                                PLOT_DASHDOT, PLOT_DASHED, PLOT_DOTTED};
    static const plot_color color[6] = {PLOT_VERMILLION, PLOT_BLUE,  PLOT_RGB(120, 170, 215),
                                        PLOT_ORANGE,     PLOT_GREEN, PLOT_INK};
    static const double share[3] = {1, 1.1, 0.7};
    plot_figure *f = lab_figure(
        r, "In a small convolutional network no norm is far ahead at rate 0.1", 1800, 860);
    plot_panel *loss = plot_add(f, 0, 0, 1, 1), *bars = plot_add(f, 0, 1, 1, 1);
    plot_panel *fast = plot_add(f, 0, 2, 1, 1);
    size_t i;
    lab_subtitle(r, f,
                 "8 and 16 channels 3x3, ReLU, one epoch of 12,000 images, batches of 32; bars: "
                 "means and standard deviations",
                 lab_seeds(r, 1));
    plot_widths(f, share, 3);
    plot_heading(loss, "learning rate 0.1");
    plot_axis_x(loss, "step", PLOT_LINEAR);
    plot_axis_y(loss, "training loss, mean of 25 steps", PLOT_LOG10);
    plot_grid(loss, PLOT_GRID_Y);
    for (i = 0; i < 6; i++) {
        const lab_curve c = lab_over_seeds(r, CNN_NONE + i, "loss");
        plot_style s = plot_solid(color[i]);
        s.dash = dash[i];
        plot_line(loss, arms[CNN_NONE + i].name, c.x, c.mean, c.n, s);
    }
    plot_heading(bars, "learning rate 0.1");
    draw_errors(r, bars, CNN_NONE, name, 6);
    plot_heading(fast, "learning rate 0.5");
    draw_errors(r, fast, CNN_NONE_FAST, name, 3);
    return lab_save(r, f, "conv");
}

static int report(lab_report *r)
{
    check(r);
    judge(r);
    return page_mates(r) || page_gap(r) || page_conv(r);
}

/* clang-format off */
static const lab_program program = {
    NAME, NRM_VERSION,
    "How much do its batch mates change what a network makes of an image, and is it any good?",
    "dense: 784-100x6-10, ReLU, SGD 0.1 and 0.5; convolutions: 8 and 16 channels 3x3, batch 32, "
    "12,000 images", 1, LAB_USES_DATA, arms, ARMS, prepare, run, report};
/* clang-format on */
LAB_MAIN(program)
