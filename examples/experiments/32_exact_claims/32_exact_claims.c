/* 32_exact_claims: what the sources state as facts, computed (README.md).

   Data of the exact claims: 64 examples of 12 features, skewed (exponential) and correlated through
   a random matrix, none of them centred. Whitening of pixels is by the inverse of the Cholesky
   factor of C + ε; any other, by principal components or the symmetric root, is this one turned,
   and to Gaussian weights and plain SGD a turn of the inputs is no change. */
#define NRM_DOUBLE
#include "lab/experiment.h"
#include "lab/draw.h"
#include "lab/matrix.h"

enum { EXACT = 0, NONE, BATCH, LAYER, RAW, CENTRED, STANDARD, WHITE, DAMPED, SETTLE, ARMS };
enum { M = 64, D = 12, D_MOST = 96, INPUTS = 784, BATCH_SIZE = 128, MOST = 1000 };
enum { BAD_AT = 300, AFTER = 100, EPOCHS = 3, RATES = 5, WINDOW = 20, JUDGED = 2000 };
#define BAD_SCALE 100
#define NO_EPS 1e-30 /* beside variances of about 1 it is none; the header refuses 0 */

/* clang-format off */
static const lab_arm arms[ARMS] = {
    {"exact", "exact claims", 0.5, 100}, {"none", "no norm", 8, 30},
    {"batch", "batch norm", 10, 30}, {"layer", "layer norm", 10, 10},
    {"input_raw", "pixels 0..1", 3, 20}, {"input_centred", "centred", 3, 20},
    {"input_standard", "standardized", 3, 20}, {"input_white", "whitened", 3, 20},
    {"input_damped", "whitened, ε = 0.01", 3, 20}, {"settle", "batch norm, 20 epochs", 4, 0}};
/* clang-format on */

/* ---- data ------------------------------------------------------------------------------------ */

/* x [m][d]: skewed values through a random matrix, with means of their own. */
static void draw(nrm_rng *rng, const double *mix, double *x, size_t m, size_t d)
{
    size_t i, j, k;
    for (i = 0; i < m; i++) {
        double e[D_MOST];
        for (k = 0; k < d; k++) e[k] = -log(1 - draw_uniform(rng));
        for (j = 0; j < d; j++) {
            x[i * d + j] = 3;
            for (k = 0; k < d; k++) x[i * d + j] += e[k] * mix[k * d + j];
        }
    }
}

static void draw_mix(nrm_rng *rng, double *mix, size_t d)
{
    size_t i;
    for (i = 0; i < d * d; i++) mix[i] = 0.4 * draw_normal(rng) + (i % (d + 1) == 0 ? 1.0 : 0.0);
}

/* Batch norm in train mode; statistics in mean, rstd [d]. */
static void batch_norm(double *y, double *mean, double *rstd, const double *x, const double *gamma,
                       const double *beta, size_t m, size_t d)
{
    (void)nrm_batchnorm_forward(y, mean, rstd, NULL, x, gamma, beta, NRM_TRAIN, NO_EPS, m, d, 1);
}

/* ---- the exact claims ------------------------------------------------------------------------ */

typedef struct normed { /* examples, and what batch norm makes of them */
    double x[M * D], y[M * D], mean[D], rstd[D];
} normed;

static void identity(lab_run *r, nrm_rng *rng, const double *mix, const normed *b)
{
    double y[M * D], other[M * D], again[2][D] = {{0}}, gamma[D], spread = 0;
    size_t j;
    for (j = 0; j < D; j++) {
        gamma[j] = 1 / b->rstd[j];
        spread += gamma[j] / D;
    }
    batch_norm(y, again[0], again[1], b->x, gamma, b->mean, M, D);
    lab_record(r, "identity_same", 0, training_farthest(y, b->x, M * (size_t)D) / spread);
    draw(rng, mix, other, M, D);
    batch_norm(y, again[0], again[1], other, gamma, b->mean, M, D);
    lab_record(r, "identity_other", 0, training_farthest(y, other, M * (size_t)D) / spread);
    for (j = 0; j < M && r->first; j++) lab_record(r, "identity_points", other[j * D], y[j * D]);
}

/* Batches of one and of two: what comes out, and what gradient comes through. The header refuses a
   batch of one, so its formulas are written out. */
static void tiny_batches(lab_run *r, nrm_rng *rng, const double *x)
{
    double y[2 * D], dy[2 * D], dx[2 * D], mean[D] = {0}, rstd[D] = {0}, beta[D];
    double size = 0;
    size_t j;
    for (j = 0; j < 2 * D; j++) dy[j] = draw_normal(rng);
    for (j = 0; j < D; j++) {
        const double own_mean = x[j] / 1, own_rstd = 1 / sqrt(0 + NRM_EPS);
        const double xhat = (x[j] - own_mean) * own_rstd;
        beta[j] = draw_normal(rng);
        y[j] = xhat + beta[j];
        dx[j] = own_rstd * (dy[j] - dy[j] / 1 - xhat * (dy[j] * xhat / 1));
    }
    lab_record(r, "one_y", 0, training_farthest(y, beta, D));
    lab_record(r, "one_dx", 0, training_farthest(dx, NULL, D));
    batch_norm(y, mean, rstd, x, NULL, NULL, 2, D);
    (void)nrm_batchnorm_backward(dx, NULL, NULL, dy, x, mean, rstd, NULL, NRM_TRAIN, 2, D, 1);
    for (j = 0; j < 2 * D; j++) size = stats_larger(size, fabs(dy[j] * rstd[j % D]));
    lab_record(r, "two_dx", 0, training_farthest(dx, NULL, 2 * D) / size);
}

static void transpose(double *t, const double *x, size_t rows, size_t cols)
{
    size_t i, j;
    for (i = 0; i < rows; i++)
        for (j = 0; j < cols; j++) t[j * rows + i] = x[i * cols + j];
}

static void layers_of_rows(lab_run *r, const double *x)
{
    double by_rows[M * D], t[M * D], y[M * D], back[M * D], mean[M] = {0}, rstd[M] = {0}, size;
    size_t i;
    (void)nrm_layernorm_forward(by_rows, mean, rstd, x, NULL, NULL, NO_EPS, M, D);
    transpose(t, x, M, D);
    batch_norm(y, mean, rstd, t, NULL, NULL, D, M);
    transpose(back, y, D, M);
    lab_record(r, "transpose", 0, training_farthest(by_rows, back, M * (size_t)D));
    for (i = 0; i < M * D; i++) { /* the tutorial's: divisor D - 1, and ε = 1e-6 outside the root */
        const stats_summary row = stats_describe(x + i / D * D, D);
        y[i] = (x[i] - row.mean) / (row.sd + 1e-6);
    }
    size = training_farthest(by_rows, NULL, M * (size_t)D);
    lab_record(r, "std_layer", 0, training_farthest(by_rows, y, M * (size_t)D) / size);
    for (i = 0; i < M * D; i++) y[i] *= sqrt((double)D / (D - 1));
    lab_record(r, "std_layer_factor", 0, training_farthest(by_rows, y, M * (size_t)D) / size);
}

/* Mean absolute correlation of two different features; of the first seed all into `name`. */
static double correlations(lab_run *r, const char *name, const double *y)
{
    double c[D * D], sum = 0;
    size_t i;
    (void)matrix_covariance(c, y, M, D, 1);
    for (i = 0; i < D * D; i++) {
        if (i % (D + 1) != 0) sum += fabs(c[i]) / (D * (D - 1));
        if (r->first) lab_record(r, name, (double)i, c[i]);
    }
    return sum;
}

static double mean_skewness(const double *y)
{
    double sum = 0, one[M];
    size_t i, j;
    for (j = 0; j < D; j++) {
        for (i = 0; i < M; i++) one[i] = y[i * D + j];
        sum += fabs(stats_describe(one, M).skew) / D;
    }
    return sum;
}

static void whitening(lab_run *r, nrm_rng *rng, const normed *b)
{
    enum { MANY = 2 * D_MOST };
    static const size_t features[3] = {12, 48, D_MOST};
    static double mix[D_MOST * D_MOST], x[MANY * D_MOST], y[MANY * D_MOST];
    static const char *const name[3] = {"correlations_input", "correlations_batch",
                                        "correlations_white"};
    double white[M * D];
    const double *const data[3] = {b->x, b->y, white};
    size_t k;
    (void)matrix_whiten(white, b->x, M, D);
    for (k = 0; k < 3; k++) {
        lab_record(r, "correlation", (double)k, correlations(r, name[k], data[k]));
        lab_record(r, "skewness", (double)k, mean_skewness(data[k]));
    }
    for (k = 0; k < 3; k++) {
        const size_t d = features[k];
        draw_mix(rng, mix, d);
        draw(rng, mix, x, MANY, d);
        /* batch norm: a square for the variance, x̂, and γ: three for each value */
        lab_record(r, "cost", (double)d, matrix_whiten(y, x, MANY, d) / (double)(3 * MANY * d));
    }
}

static void information(lab_run *r, const normed *b)
{
    double x[M * D], y[M * D], mean[D] = {0}, rstd[D] = {0};
    size_t i;
    for (i = 0; i < M * D; i++) x[i] = 3 * b->x[i] + 2;
    batch_norm(y, mean, rstd, x, NULL, NULL, M, D);
    lab_record(r, "told_apart", 0, training_farthest(b->y, y, M * (size_t)D));
    for (i = 0; i < M * D; i++) x[i] = b->y[i] / b->rstd[i % D] + b->mean[i % D];
    lab_record(r, "given_back", 0, training_farthest(x, b->x, M * (size_t)D));
}

/* A recurrent layer, its inputs x [STEPS][N][IN], and room for what it computes. draw_layer: all of
   them random. */
enum { STEPS = 8, IN = 6, N_MOST = 64, H_MOST = 16 };
typedef struct recurrent {
    nrm_rnn of;
    double Wx[IN * H_MOST], Wh[H_MOST * H_MOST], x[STEPS * N_MOST * IN];
    double h[(STEPS + 1) * N_MOST * H_MOST], a[STEPS * N_MOST * H_MOST];
    double mean[STEPS * N_MOST], rstd[STEPS * N_MOST];
} recurrent;

static void draw_layer(recurrent *l, size_t N, size_t H, int norm, nrm_rng *rng)
{
    size_t i;
    memset(l, 0, sizeof *l);
    l->of = (nrm_rnn){.T = STEPS, .N = N, .in = IN, .H = H, .Wx = l->Wx, .Wh = l->Wh};
    l->of.activation = NRM_TANH;
    l->of.norm = norm;
    for (i = 0; i < IN * H; i++) l->Wx[i] = draw_normal(rng) / sqrt((double)IN);
    for (i = 0; i < H * H; i++) l->Wh[i] = draw_normal(rng) / sqrt((double)H);
    nrm_rng_normal(rng, l->x, STEPS * N * IN);
}

/* The states of a recurrent layer with summed inputs as they are, and doubled (both weight matrices
   times two). */
static void rescaling(lab_run *r, nrm_rng *rng, int norm, const char *series)
{
    enum { N = 5, H = 7, STATES = (STEPS + 1) * N * H };
    static recurrent l;
    double as_they_are[STATES], gamma[H], beta[H];
    size_t i;
    draw_layer(&l, N, H, norm, rng);
    for (i = 0; i < H; i++) gamma[i] = 1 + 0.1 * (double)i, beta[i] = 0.05 * (double)i;
    l.of.eps = NO_EPS;
    l.of.gamma = norm == NRM_NO_NORM ? NULL : gamma;
    l.of.beta = norm == NRM_NO_NORM ? NULL : beta;
    (void)nrm_rnn_forward(l.h, l.a, l.mean, l.rstd, l.x, &l.of, NRM_TRAIN);
    memcpy(as_they_are, l.h, sizeof as_they_are);
    for (i = 0; i < IN * H; i++) l.Wx[i] *= 2;
    for (i = 0; i < H * H; i++) l.Wh[i] *= 2;
    (void)nrm_rnn_forward(l.h, l.a, l.mean, l.rstd, l.x, &l.of, NRM_TRAIN);
    lab_record(r, series, 0, training_farthest(as_they_are, l.h, STATES));
}

/* The variance of the summed inputs at each step of a recurrent layer with batch norm, which starts
   from 0: mean over units. */
static void variances_of_steps(lab_run *r, nrm_rng *rng)
{
    enum { H = H_MOST };
    static recurrent l;
    size_t i, t;
    draw_layer(&l, N_MOST, H, NRM_BATCH_NORM, rng);
    l.of.eps = NRM_EPS;
    (void)nrm_rnn_forward(l.h, l.a, l.mean, l.rstd, l.x, &l.of, NRM_TRAIN);
    for (t = 0; t < STEPS; t++) {
        double sum = 0;
        for (i = 0; i < H; i++) sum += 1 / (l.rstd[t * H + i] * l.rstd[t * H + i]) / H;
        lab_record(r, "step_variance", (double)t, sum);
    }
}

/* dx of batch norm put together from dμ and dv as one derivation prints them, with the final dx in
   the sums where dx̂ = dy·γ is meant (here γ = 1), and as meant. */
static void printed_gradient(lab_run *r, nrm_rng *rng, const normed *b)
{
    double dy[M * D], dx[M * D], wrong[2] = {0, 0};
    size_t i, j;
    int meant;
    for (i = 0; i < M * D; i++) dy[i] = draw_normal(rng);
    (void)nrm_batchnorm_backward(dx, NULL, NULL, dy, b->x, b->mean, b->rstd, NULL, NRM_TRAIN, M, D,
                                 1);
    for (meant = 0; meant < 2; meant++)
        for (j = 0; j < D; j++) {
            const double *from = meant ? dy : dx;
            double dmean = 0, dvar = 0;
            for (i = j; i < M * D; i += D) {
                dmean -= from[i] * b->rstd[j];
                dvar -= 0.5 * from[i] * (b->x[i] - b->mean[j]) * pow(b->rstd[j], 3);
            }
            for (i = j; i < M * D; i += D) {
                const double value =
                    dy[i] * b->rstd[j] + dvar * 2 * (b->x[i] - b->mean[j]) / M + dmean / M;
                wrong[meant] += (value - dx[i]) * (value - dx[i]);
            }
        }
    lab_record(r, "printed", 0, sqrt(wrong[0] / training_squares(dx, M * (size_t)D)));
    lab_record(r, "printed_meant", 0, sqrt(wrong[1] / training_squares(dx, M * (size_t)D)));
}

static int run_exact(lab_run *r)
{
    static normed b;
    double mix[D * D];
    nrm_rng rng;
    nrm_rng_seed(&rng, r->seed, TRAINING_STREAM_DATA);
    draw_mix(&rng, mix, D);
    draw(&rng, mix, b.x, M, D);
    batch_norm(b.y, b.mean, b.rstd, b.x, NULL, NULL, M, D);
    identity(r, &rng, mix, &b);
    tiny_batches(r, &rng, b.x);
    layers_of_rows(r, b.x);
    whitening(r, &rng, &b);
    information(r, &b);
    rescaling(r, &rng, NRM_LAYER_NORM, "rescaled_layer");
    rescaling(r, &rng, NRM_NO_NORM, "rescaled_none");
    printed_gradient(r, &rng, &b);
    variances_of_steps(r, &rng);
    return 0;
}

/* ---- one bad batch --------------------------------------------------------------------------- */

static training_set train, test;

static const double rate[RATES] = {0.03, 0.1, 0.3, 1, 3}; /* of the inputs; their network: */
static size_t rate_now;                                   /* which one it has now          */

/* 784-100-10 for the inputs; 784-100-100-10 for the bad batch, and for γ and β. */
static nrm_mlp_spec network(trainer *t)
{
    const size_t arm = t->run->arm;
    const int inputs = arm >= RAW && arm <= DAMPED;
    const int norm = arm == LAYER                    ? NRM_LAYER_NORM
                     : arm == BATCH || arm == SETTLE ? NRM_BATCH_NORM
                                                     : NRM_NO_NORM;
    nrm_mlp_spec spec = training_plain(t->layer, inputs ? 1 : 2, 100, NRM_RELU, norm);
    if (inputs) spec.init = NRM_INIT_HE;
    spec.max_batch = MOST;
    spec.lr = inputs ? rate[rate_now] : 0.1;
    return spec;
}

/* Accuracy in percent with the statistics of the test images themselves; changes nothing. */
static double train_mode_accuracy(nrm_mlp *net)
{
    const size_t n = test.n < MOST ? test.n : MOST;
    nrm_acc accuracy = 0;
    if (nrm_mlp_gradient(net, NULL, test.x, test.labels, n, NRM_TRAIN) < 0) return (double)NAN;
    (void)nrm_accuracy(&accuracy, net->prob, test.labels, n, DATASET_CLASSES);
    return 100 * (double)accuracy;
}

/* Trains with and without the bad batch: the same weights, the same batches. A step that is refused
   because something is not finite changes nothing. */
static int train_twin(lab_run *r, double scale, const char *series)
{
    const size_t bad_at = r->quick ? 30 : BAD_AT, end = bad_at + (r->quick ? 50 : AFTER);
    const trainer_plan plan = {.network = network, .set = &train, .batch = BATCH_SIZE, .least = 2};
    trainer t;
    size_t step, i;
    int failed = trainer_open(&t, r, &plan);
    for (step = 0; step < end && !failed; step++) {
        const size_t after = step + 1 - bad_at; /* 1 once the bad batch was seen */
        trainer_deal(&t);
        for (i = 0; step == bad_at && i < t.order.count * INPUTS; i++) t.order.x[i] *= scale;
        failed = trainer_learn(&t);
        if (step + 1 < bad_at || (after > 5 && after % 5 != 0)) continue;
        lab_record(r, series, (double)after, 100 * trainer_accuracy(&t, &test, NULL));
        if (r->arm == BATCH && scale > 1)
            lab_record(r, "hit_own_statistics", (double)after, train_mode_accuracy(t.net));
    }
    trainer_close(&t);
    return failed;
}

/* ---- whitened inputs ------------------------------------------------------------------------- */

#define LITTLE 1e-4 /* is added to the variance of each pixel before a division */
#define MUCH 1e-2   /* of DAMPED */

/* The images that these networks learn, and those they are tested on, as the arms RAW to DAMPED get
   them; means and covariance of the pixels 0..1. */
static training_set pixels[ARMS], unseen[ARMS];
static double pixel_mean[INPUTS], covariance[INPUTS * INPUTS];

static void divide(training_set *of)
{
    size_t i;
    for (i = 0; i < of[RAW].n * INPUTS; i++) {
        const double variance = covariance[i % INPUTS * (INPUTS + 1)];
        of[CENTRED].x[i] -= pixel_mean[i % INPUTS];
        of[STANDARD].x[i] = of[CENTRED].x[i] / sqrt(variance + LITTLE);
    }
}

static void whiten(size_t arm, double eps)
{
    static double l[INPUTS * INPUTS], w[INPUTS * INPUTS], offset[INPUTS];
    const size_t d = INPUTS;
    size_t i, k;
    memcpy(l, covariance, sizeof l);
    memset(w, 0, sizeof w);
    memset(offset, 0, sizeof offset);
    for (i = 0; i < d; i++) l[i * d + i] += eps;
    matrix_cholesky(l, d);
    matrix_invert_lower(w, l, d);
    for (i = 0; i < d; i++)
        for (k = 0; k <= i; k++) { /* its transpose, since examples are rows */
            const double value = w[i * d + k];
            w[i * d + k] = 0;
            w[k * d + i] = value;
            offset[i] -= pixel_mean[k] * value;
        }
    (void)nrm_linear_forward(pixels[arm].x, pixels[RAW].x, w, offset, pixels[RAW].n, d, d);
    (void)nrm_linear_forward(unseen[arm].x, unseen[RAW].x, w, offset, unseen[RAW].n, d, d);
}

static int prepare(const dataset *data, int quick)
{
    const training_set *raw = &pixels[RAW];
    const size_t d = INPUTS, images = quick ? 400 : 10000;
    size_t i, k, arm;
    if (training_load(&train, &test, data, 0, 2000, DATASET_STD)) return -1;
    for (arm = RAW; arm <= DAMPED; arm++)
        if (training_load(&pixels[arm], &unseen[arm], data, images, images / 2, DATASET_RAW01))
            return -1;
    for (i = 0; i < raw->n * d; i++) pixel_mean[i % d] += raw->x[i] / (double)raw->n;
    (void)nrm_linear_backward(NULL, covariance, NULL, raw->x, raw->x, NULL, raw->n, d, d);
    for (i = 0; i < d; i++)
        for (k = 0; k < d; k++)
            covariance[i * d + k] =
                covariance[i * d + k] / (double)raw->n - pixel_mean[i] * pixel_mean[k];
    divide(pixels);
    divide(unseen);
    whiten(WHITE, LITTLE);
    whiten(DAMPED, MUCH);
    return 0;
}

/* The series of a rate. The name lasts until the next one is asked for. */
static const char *of_rate(const char *what, size_t k)
{
    static char name[32];
    (void)snprintf(name, sizeof name, "%s_%lu", what, (unsigned long)k);
    return name;
}

static double window_loss; /* sum of losses since the last mean recorded */

static int after_step(trainer *t)
{
    const size_t step = t->step + (t->status == NRM_NONFINITE);
    window_loss += t->loss / WINDOW;
    if (step % WINDOW) return 0;
    lab_record(t->run, of_rate("batch_loss", rate_now), (double)step, lab_round(window_loss, 5));
    window_loss = 0;
    return 0;
}

/* After each epoch. Where something is not finite the training ends: the rate has no loss then. */
static int look_at_input(trainer *t)
{
    const training_set *set = t->plan->set;
    const size_t some = set->n < JUDGED ? set->n : JUDGED;
    nrm_acc loss = 0;
    t->status = nrm_mlp_eval(t->net, &loss, NULL, set->x, set->labels, some);
    if (t->status != NRM_OK) return t->status < 0 ? -1 : 1;
    lab_record(t->run, of_rate("loss", rate_now), (double)(t->step / t->plan->every), loss);
    return 0;
}

static int end_of_input(trainer *t)
{
    if (t->status == NRM_OK)
        lab_record(t->run, of_rate("test", rate_now), 0,
                   100 * trainer_accuracy(t, &unseen[t->run->arm], NULL));
    return 0;
}

static int run_inputs(lab_run *r)
{
    const size_t epoch = training_steps(pixels[r->arm].n, BATCH_SIZE);
    const trainer_plan plan =
        trainer_plan_of(.network = network, .after = after_step, .look = look_at_input,
                        .end = end_of_input, .set = &pixels[r->arm], .batch = BATCH_SIZE,
                        .steps = EPOCHS * epoch, .every = epoch, .no_repeat = 1);
    int failed = 0;
    for (rate_now = 0; rate_now < RATES && !failed; rate_now++, window_loss = 0)
        failed = trainer_run(r, &plan);
    return failed;
}

/* ---- do γ and β settle? ---------------------------------------------------------------------- */

enum { GAMMAS, BETAS, WEIGHTS, KINDS, SETTLE_EPOCHS = 20, SETTLE_PARAMS = 90000 };
static const char *const kind_name[KINDS] = {"gamma", "beta", "weights"};

/* Root mean square of now - then over all γ, all β, or all W of the hidden layers. */
static double moved(const nrm_mlp *net, const nrm_real *then, int kind)
{
    double sum = 0, count = 0;
    size_t l, i;
    for (l = 0; l + 1 < net->spec.layers; l++) {
        const nrm_mlp_state *s = &net->state[l];
        const nrm_real *now = kind == GAMMAS ? s->gamma : kind == BETAS ? s->beta : s->W;
        const size_t n = s->shape.width * (kind == WEIGHTS ? s->in : 1);
        const nrm_real *before = then + (now - net->params);
        for (i = 0; i < n; i++) sum += (now[i] - before[i]) * (now[i] - before[i]);
        count += (double)n;
    }
    return sqrt(sum / count);
}

static nrm_real at_start[SETTLE_PARAMS], last_epoch[SETTLE_PARAMS]; /* parameters then          */
static double epoch_loss;                                           /* sum of this epoch's losses */

static int add_loss(trainer *t)
{
    epoch_loss += t->loss;
    return 0;
}

/* At the start and epoch by epoch: what it changed, and how far from the start that has led. */
static int look_at_epoch(trainer *t)
{
    const double epoch = (double)(t->step / t->plan->every);
    const size_t bytes = t->net->n_params * sizeof *at_start;
    int kind;
    if (bytes > sizeof at_start) return -1;
    if (t->step == 0) memcpy(at_start, t->net->params, bytes);
    if (t->step > 0) lab_record(t->run, "settle_loss", epoch, epoch_loss / (double)t->plan->every);
    for (kind = 0; t->step > 0 && kind < KINDS; kind++) {
        lab_record_as(t->run, epoch, moved(t->net, last_epoch, kind), "move_%s", kind_name[kind]);
        lab_record_as(t->run, epoch, moved(t->net, at_start, kind), "far_%s", kind_name[kind]);
    }
    memcpy(last_epoch, t->net->params, bytes);
    epoch_loss = 0;
    return 0;
}

static int run_settle(lab_run *r)
{
    const size_t epoch = training_steps(pixels[RAW].n, BATCH_SIZE);
    training_set images = train; /* the same images, standardized */
    const trainer_plan plan =
        trainer_plan_of(.network = network, .after = add_loss, .look = look_at_epoch,
                        .look_first = 1, .set = &images, .batch = BATCH_SIZE,
                        .steps = epoch * (r->quick ? 2 : SETTLE_EPOCHS), .every = epoch,
                        .no_repeat = 1);
    images.n = pixels[RAW].n;
    return trainer_run(r, &plan);
}

static int run(lab_run *r)
{
    if (r->arm == EXACT) return run_exact(r);
    if (r->arm == SETTLE) return run_settle(r);
    if (r->arm >= RAW) return run_inputs(r);
    return train_twin(r, 1, "twin") || train_twin(r, BAD_SCALE, "hit");
}

/* ---- verdicts -------------------------------------------------------------------------------- */

static void judge_identity(lab_report *r, const lab_claim *c)
{
    const double same = lab_largest(r, EXACT, "identity_same"),
                 other = lab_largest(r, EXACT, "identity_other");
    lab_verdict(r, c, stats_holds_partly(same < 1e-12 && other < 1e-12, same < 1e-12),
                "one choice of γ and β is the identity for one batch only",
                "differs by %.0e on the batch, by %.2f spreads on another", same, other);
}

static void judge_cost(lab_report *r, const lab_claim *c)
{
    const double few = lab_mean(r, EXACT, "cost", 12), many = lab_mean(r, EXACT, "cost", 96);
    lab_verdict(r, c, stats_holds(many >= 10 && many > few),
                "counted, with Jacobi's rotations, 192 examples",
                "%.0f, %.0f, %.0f times at 12, 48, 96 features", few,
                lab_mean(r, EXACT, "cost", 48), many);
}

static void judge_information(lab_report *r, const lab_claim *c)
{
    const double apart = lab_largest(r, EXACT, "told_apart");
    lab_verdict(r, c, stats_holds(apart > 1e-6),
                "mean and spread of each feature are gone from the output; the layer keeps them",
                "differ by %.0e; with the saved μ and σ the input comes back to %.0e", apart,
                lab_largest(r, EXACT, "given_back"));
}

/* Of each seed the largest variance of the steps over the smallest. */
static void judge_steps(lab_report *r, const lab_claim *c)
{
    lab_numbers ratio = lab_most_over(r, EXACT, "step_variance", 0, STEPS - 1);
    size_t i, s, met = 0, first = 0;
    for (s = 0; s < ratio.n; s++) {
        const lab_series v = lab_get(r, EXACT, s, "step_variance");
        double least = (double)INFINITY;
        for (i = 0; i < v.n; i++) least = stats_smaller(least, v.y[i]);
        ratio.of[s] /= least;
        met += ratio.of[s] >= 1.5;
        first += v.n > 0 && v.y[0] <= least;
    }
    lab_verdict(r, c, lab_above(ratio, 1.5),
                lab_format(r, "met in %zu seeds; smallest at step 1 in %zu", met, first),
                "largest over smallest %s; step 1: %.2f, step 8: %.2f", lab_pm(r, ratio, 2),
                lab_mean(r, EXACT, "step_variance", 0), lab_mean(r, EXACT, "step_variance", 7));
}

/* Test accuracy lost, 50 steps after the bad batch. */
static double points_lost(const lab_report *r, size_t arm, size_t s)
{
    return lab_at(r, arm, s, "twin", 50) - lab_at(r, arm, s, "hit", 50);
}

/* The rate with the lowest loss after so many epochs, mean over seeds; RATES if none has one. */
static size_t best_rate(const lab_report *r, size_t arm, size_t epoch)
{
    double least = HUGE_VAL;
    size_t k, best = RATES;
    for (k = 0; k < RATES; k++) {
        const double v = lab_mean(r, arm, of_rate("loss", k), (double)epoch);
        if (v < least) best = k;
        if (v < least) least = v;
    }
    return best;
}

/* At its best rate: loss after so many epochs; nan where there is none. */
static lab_numbers best_losses(const lab_report *r, size_t arm, size_t epoch)
{
    return lab_all(r, arm, of_rate("loss", best_rate(r, arm, epoch)), (double)epoch);
}

/* Is input a learned faster than input b? */
static void judge_speed(lab_report *r, const lab_claim *c)
{
    static const size_t after[2] = {1, EPOCHS};
    stats_finding part[2];
    const char *text[2], *rates[2];
    size_t i;
    for (i = 0; i < 2; i++) {
        const lab_numbers a = best_losses(r, c->a, after[i]), b = best_losses(r, c->b, after[i]);
        part[i] = lab_less(a, b, 1);
        text[i] = lab_format(r, "%s against %s", lab_pm(r, a, 3), lab_pm(r, b, 3));
        rates[i] = lab_format(r, "%g, %g", rate[best_rate(r, c->a, after[i]) % RATES],
                              rate[best_rate(r, c->b, after[i]) % RATES]);
    }
    lab_verdict(r, c, stats_together(part, 2),
                lab_format(r, "rates after 1 epoch %s; after 3 %s", rates[0], rates[1]),
                "after 1 epoch %s, after 3 %s", text[0], text[1]);
}

/* Test accuracy at the rate of the lowest training loss. */
static double best_test(const lab_report *r, size_t arm, size_t s)
{
    return lab_at(r, arm, s, of_rate("test", best_rate(r, arm, EPOCHS)), 0);
}

static void judge_settled(lab_report *r, const lab_claim *c)
{
    const double last = lab_quick(r) ? 2 : SETTLE_EPOCHS;
    double share[KINDS], growth[KINDS];
    stats_finding part[KINDS];
    int kind;
    for (kind = 0; kind < KINDS; kind++) {
        const char *far = lab_format(r, "far_%s", kind_name[kind]);
        const char *move = lab_format(r, "move_%s", kind_name[kind]);
        const lab_numbers now = lab_all(r, SETTLE, move, last), then = lab_all(r, SETTLE, move, 1);
        share[kind] = lab_describe(now).mean / lab_describe(then).mean;
        growth[kind] = lab_mean(r, SETTLE, far, last) / lab_mean(r, SETTLE, far, last / 2) - 1;
        part[kind] = lab_less(now, then, share[kind] < 0.1 && growth[kind] < 0.1);
    }
    lab_verdict(r, c, stats_together(part, WEIGHTS), /* of γ and β */
                lab_format(r, "training loss of the last epoch %s",
                           lab_text(r, SETTLE, "settle_loss", last, 3)),
                "epoch 20 / epoch 1: γ %.3f, β %.3f, weights %.3f; distance since epoch 10 +%.0f, "
                "+%.0f, +%.0f %%",
                share[GAMMAS], share[BETAS], share[WEIGHTS], 100 * growth[GAMMAS],
                100 * growth[BETAS], 100 * growth[WEIGHTS]);
}

#define TUTORIAL "a tutorial on batch and layer norm"
#define NOTEBOOK "a tutorial with a custom batch norm"
#define DERIVATION "a derivation of batch norm's backward pass"
#define NOTES "Chinese notes on batch norm"
#define SAID "said, without a number"
#define TINY 1e-300 /* below it is 0 alone */
#define LOSS_CRITERION                                                                             \
    ", paired, each at the best of five rates; at one only: partly; added later, before the runs"

/* clang-format off */
#define LOST(norm) /* fewer points, and at most 2 */                                               \
    .test = LAB_LESS, .a = norm, .b = NONE, .each = points_lost, .a_mean = {-100, 2},              \
    .decimals = 1, .say = "$1 points lost; $2 without a norm"
static const lab_claim claims[] = {
    {"32a", "With γ = σ and β = μ batch norm gives its input back",
     TUTORIAL "; " NOTEBOOK "; " NOTES, SAID,
     "exact: to 1e-12 of the spread, on the batch and on another batch", "none", LAB_IDENTITY,
     LAB_ALGEBRA, .judge = judge_identity},
    {"32b", "Batch norm is impossible with batches of one", TUTORIAL, SAID,
     "exact: y = β and dx = 0", "none", LAB_IDENTITY, LAB_SETTING,
     LAB_PARTS({LAB_EXACT, .series = "one_y", .limit = TINY},
               {LAB_EXACT, .series = "one_dx", .limit = TINY}, {.series = "two_dx"}),
     .say = "|y - β| = #1[%g], |dx| = #2[%g]; with two: |dx| <= #3[max %.0e] of dy/σ",
     .remark = "a batch of two passes hardly more"},
    {"32c", "Layer norm is batch norm of the transposed input", TUTORIAL, SAID, "exact: to 1e-12",
     "none", LAB_IDENTITY, LAB_SETTING, .test = LAB_EXACT,
     .series = "transpose", .limit = 1e-12, .say = "differs by $1", .remark = "without γ and β"},
    {"32d", "A tutorial's layer norm (divisor D - 1, ε outside the root) is the paper's",
     "ours, on the code of " TUTORIAL, "code and the paper's formula, side by side",
     "exact: to 1e-3 of the largest output, with 12 features",
     "the factor sqrt((D - 1)/D) was known", LAB_IDENTITY, LAB_ALGEBRA, 
     LAB_PARTS({LAB_EXACT, .series = "std_layer", .limit = 1e-3}, {.series = "std_layer_factor"}),
     .say = "differs by #1[%.3f]; with the factor by #2[max %.0e]",
     .remark = "the factor √((D - 1)/D) tells them apart, and ε"},
    {"32e", "Batch norm whitens", TUTORIAL, SAID, "mean |correlation| of different features < 0.05",
     "none", LAB_IDENTITY, LAB_ALGEBRA, 
     LAB_PARTS({.series = "correlation"}, {LAB_BELOW, .series = "correlation", .at = 1,
               .limit = 0.05}, {.series = "correlation", .at = 2}), .decimals = 2,
     .say = "mean |r| $1 before, $2 after; whitening leaves #3[max %.0e]",
     .remark = "it does not touch correlations at all"},
    {"32f", "Batch norm makes its outputs N(0, 1)", TUTORIAL, SAID,
     "mean |skewness| of the features < 0.5", "none", LAB_IDENTITY, LAB_ALGEBRA,
     LAB_PARTS({.series = "skewness"}, {LAB_BELOW, .series = "skewness", .at = 1, .limit = 0.5}),
     .decimals = 2, .say = "mean |skewness| $1 before, $2 after",
     .remark = "nor the shape of a distribution"},
    {"32g", "Full whitening is costly, so each feature is normalized by itself",
     NOTEBOOK "; Ioffe & Szegedy 2015, section 3", SAID,
     "at least ten times the multiplications at 96 features, growing with their number", "none",
     LAB_ARITHMETIC, LAB_SETTING, .judge = judge_cost},
    {"32h", "The outputs of x and of 3x + 2 can be told apart",
     "ours, after \"not taking any information away\" in " DERIVATION, "not said so",
     "exact: they differ by more than 1e-6", "none", LAB_IDENTITY, LAB_ALGEBRA,
     .judge = judge_information},
    {"32i", "A recurrent layer with layer norm does not see its summed inputs rescaled",
     TUTORIAL "; Ba, Kiros & Hinton 2016, section 4", SAID, "exact: doubled, to 1e-12", "none",
     LAB_IDENTITY, LAB_SETTING, 
     LAB_PARTS({LAB_EXACT, .series = "rescaled_layer", .limit = 1e-12},
               {.series = "rescaled_none"}), .say = "states differ by $1",
     .remark = "without a norm the states move by #2[%.2f]"},
    {"32j", "∂l/∂μ and ∂l/∂σ² as printed, with ∂l/∂x in the sums, give the gradient", DERIVATION,
     SAID, "to 1e-6", "a trial: 25 % wrong", LAB_IDENTITY, LAB_ALGEBRA,
     LAB_PARTS({LAB_EXACT, .series = "printed", .limit = 1e-6}, {.series = "printed"},
               {.series = "printed_meant"}), .say = "off by #2[100 %.0f] %",
     .remark = "with ∂l/∂x̂, as is meant: #3[max %.0e]"},
    {"32m", "Batch norm in a recurrent layer needs statistics of each step", TUTORIAL, SAID,
     "largest of 8 steps' variances at least 1.5 times the smallest, seed by seed; added with a "
     "second run", "none", .judge = judge_steps},
    {"32k", "A network with batch norm can be used soon after one bad batch",
     "ours, after " TUTORIAL, "not said; it speaks of the training",
     "50 steps after inputs 100 times too large: fewer points lost than without, at most 2", "none",
     LAB_TRAINING, LAB_NEWS, LOST(BATCH)},
    {"32l", "A network with layer norm can be used soon after one bad batch",
     "ours, after " TUTORIAL, "not said; it speaks of the training",
     "50 steps after inputs 100 times too large: fewer points lost than without, at most 2", "none",
     LAB_TRAINING, LAB_SETTING, LOST(LAYER)},
    {"32n", "Networks train faster if their inputs are whitened",
     "LeCun et al. 1998 and Wiesler & Ney 2011, as cited by Ioffe & Szegedy 2015, section 2; "
     NOTEBOOK, SAID,
     "training loss after 1 and 3 epochs: below that with pixels 0..1" LOSS_CRITERION,
     "a trial (1 seed, rates up to 1): 0.293 against 0.445, 0.029 against 0.425",
     .judge = judge_speed, .a = WHITE, .b = RAW},
    {"32o", "Normalizing each pixel by itself speeds it up too, though they stay correlated",
     "LeCun et al. 1998, as cited by Ioffe & Szegedy 2015, section 3", SAID,
     "training loss after 1 and 3 epochs, standardized: below that with pixels 0..1" LOSS_CRITERION,
     "a trial (1 seed, rates up to 1): 0.212 against 0.445, 0.195 against 0.425",
     .judge = judge_speed, .a = STANDARD, .b = RAW},
    {"32p", "Inputs that are also uncorrelated are learned faster still",
     "LeCun et al. 1998, section 4.3", SAID,
     "training loss after 1 and 3 epochs, whitened: below that with standardized pixels"
     LOSS_CRITERION,
     "a trial (1 seed, rates up to 1): 0.293 against 0.212, 0.029 against 0.195",
     .judge = judge_speed, .a = WHITE, .b = STANDARD},
    {"32q", "Whitened inputs cost generalization", "Wadia et al. 2021",
     "proved for whitening with more features than examples, shown in experiments beyond it",
     "test accuracy after 3 epochs lower than with standardized pixels, paired, each at the rate "
     "of its lowest training loss; added later, before the runs", "a trial (1 seed, rates up to "
     "1): 84.5 against 89.6 %; pixels 0..1 83.1 %, with which it was to be compared before",
     LAB_PARTS({LAB_LESS, WHITE, STANDARD, .each = best_test}, {.a = RAW, .each = best_test},
               {.a = CENTRED, .each = best_test}, {.a = DAMPED, .each = best_test}),
     .decimals = 1, .say = "$1 against $2 %; pixels 0..1 $3, centred $4",
     .remark = "$5 % with ε = 0.01"},
    {"32r", "γ and β converge", NOTES, SAID, "rms of what an epoch changes: epoch 20 below epoch "
     "1, paired; and (else partly) in the mean below a tenth of it, the distance from the start "
     "less than a tenth larger than in epoch 10; γ and β; added later, before the runs",
     "a trial (1 seed): 0.086 and 0.072 of epoch 1, which was to be all; distances 34 and 27 % "
     "larger than in epoch 10", .judge = judge_settled}};
/* clang-format on */

/* ---- figures --------------------------------------------------------------------------------- */

static void draw_matrix(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    const lab_series c = lab_get(r, EXACT, 0, panel->series);
    if (c.n == D * D) plot_heat(p, c.y, D, D, 0.5, D + 0.5, 0.5, D + 0.5, PLOT_DIVERGING, -1, 1);
    if (panel->axes.col == 2) plot_colorbar(p, "correlation");
}

static void draw_identity(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    const lab_series points = lab_get(r, EXACT, 0, panel->series);
    const double ends[2] = {-2.5, 8};
    plot_line(p, "the identity", ends, ends, 2, plot_dashed(PLOT_INK));
    plot_scatter(p, "64 examples", points.x, points.y, points.n, plot_marked(PLOT_BLUE, PLOT_RING));
}

static plot_style input_style(size_t arm)
{
    static const int dash[5] = {PLOT_DASHED, PLOT_DOTTED, PLOT_DASHDOT, PLOT_SOLID, PLOT_DASHED};
    static const int marker[5] = {PLOT_SQUARE, PLOT_DIAMOND, PLOT_TRIANGLE, PLOT_CIRCLE, PLOT_RING};
    const size_t i = arm - RAW;
    plot_style style = plot_with_marker(plot_solid(lab_level(i, 5)), marker[i]);
    style.dash = dash[i];
    return style;
}

/* After the last epoch, at each rate: training loss or test accuracy. */
static void draw_rates(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    size_t arm, k;
    for (arm = RAW; arm <= DAMPED; arm++) {
        double where[RATES], mean[RATES], lo[RATES], hi[RATES];
        for (k = 0; k < RATES; k++) {
            const stats_summary v = lab_summary(r, arm, of_rate(panel->series, k), panel->value);
            where[k] = (double)k + 0.04 * ((double)arm - STANDARD);
            mean[k] = v.mean;
            lo[k] = v.mean - v.sd;
            hi[k] = v.mean + v.sd;
        }
        plot_errorbars(p, NULL, where, mean, lo, hi, RATES, input_style(arm));
        plot_line(p, arms[arm].name, where, mean, RATES, input_style(arm));
    }
}

static void draw_curves(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    size_t arm;
    for (arm = RAW; arm <= DAMPED; arm++) {
        plot_style style = input_style(arm);
        style.marker = PLOT_NO_MARKER;
        lab_plot(r, p, arm, of_rate(panel->series, best_rate(r, arm, EPOCHS)), NULL, style);
    }
}

static plot_style look_of(size_t arm)
{
    static const char *const norm[LAYER + 1] = {"", "none", "batch", "layer"};
    return lab_style(norm[arm]);
}

/* clang-format off */
#define HIT(arm, label, color)                                                                     \
    {arm, "hit"}, {arm, "twin", label, {color, .width = 0.45, .alpha = 0.45}, LAB_MEAN}

static const lab_panel said[] = {
    {.axes = {.heading = "the input", .x = "feature", .y = "feature", .aspect = 1},
     .draw = draw_matrix, .series = "correlations_input"},
    {.axes = {.col = 1, .heading = "after batch norm", .x = "feature", .y = "", .aspect = 1},
     .draw = draw_matrix, .series = "correlations_batch"},
    {.axes = {.col = 2, .heading = "after whitening", .x = "feature", .y = "", .aspect = 1},
     .draw = draw_matrix, .series = "correlations_white"},
    {.axes = {.row = 1, .heading = "γ, β of another batch", .x = "input, first feature",
              .y = "output", .legend = PLOT_LEGEND_NONE},
     .draw = draw_identity, .series = "identity_points",
     .mark = {{LAB_NOTE_IN, 0.96, 0.03, "dashed: identity", PLOT_RIGHT + PLOT_ABOVE}}},
    {.axes = {.row = 1, .col = 1, .cols = 2, .heading = "one bad batch",
              .x = "steps after the bad batch", .y = "test accuracy (%)", .x_range = {0, AFTER},
              .y_range = {0, 100}, .legend = PLOT_LEGEND_RIGHT},
     .line = {HIT(NONE, "thin: no bad batch", PLOT_VERMILLION), HIT(BATCH, "", PLOT_BLUE),
              {BATCH, "hit_own_statistics", "batch norm, own statistics",
               {PLOT_SKY, .dash = PLOT_DOTTED}}, HIT(LAYER, "", PLOT_GREEN)}}};

static const double rate_at[RATES] = {0, 1, 2, 3, 4};
static const char *const rate_name[RATES] = {"0.03", "0.1", "0.3", "1", "3"};
#define RATE_AXIS .x = "learning rate", .x_range = {-0.3, 4.3}, .x_ticks = rate_at, \
    .x_names = rate_name, .x_count = RATES

static const lab_panel inputs[] = {
    {.axes = {.heading = "each input at its best rate", .x = "steps", .y = "training loss",
              .y_scale = PLOT_LOG10, .legend = PLOT_LEGEND_NONE},
     .draw = draw_curves, .series = "batch_loss"},
    {.axes = {.col = 1, .heading = "training loss after 3 epochs", RATE_AXIS,
              .y = "training loss", .y_scale = PLOT_LOG10, .y_range = {0.02, 20},
              .legend = PLOT_LEGEND_NONE},
     .draw = draw_rates, .series = "loss", .value = EPOCHS},
    {.axes = {.row = 1, .heading = "test accuracy after 3 epochs", RATE_AXIS,
              .y = "test accuracy (%)", .y_range = {0, 100}, .legend = PLOT_LEGEND_BOTTOM_LEFT},
     .draw = draw_rates, .series = "test"},
    {.axes = {.row = 1, .col = 1, .heading = "do γ and β settle?", .x = "epoch",
              .y = "rms of what it changes", .y_scale = PLOT_LOG10,
              .legend = PLOT_LEGEND_TOP_RIGHT},
     .line = {{SETTLE, "move_gamma", "γ", .level = {0, 3}},
              {SETTLE, "move_beta", "β", {.dash = PLOT_DASHDOT}, .level = {1, 3}},
              {SETTLE, "move_weights", "weights", {PLOT_INK, .dash = PLOT_DOTTED}}}}};

static const lab_page pages[] = {
    {"What the sources say in passing", NULL, 1200,
     .settings = "a to d: skewed, correlated data, 64 examples of 12 features, no ε, first seed; "
                 "e: 784-100-100-10, ReLU, SGD with learning rate 0.1, batches of 128, bad batch "
                 "at step 300", .seeds = 30, LAB_PANELS(said)},
    {"Whitened inputs train faster and generalize worse; γ and β slow down", "inputs", 1200,
     .settings = "a to c: 784-100-10, ReLU, 10,000 images, 3 epochs of SGD, batches of 128; d: "
                 "784-100-100-10 with batch norm, rate 0.1, 20 epochs of the same images, 5 seeds",
     .seeds = 20, LAB_PANELS(inputs)}};
/* clang-format on */

LAB_PROGRAM(
    "32_exact_claims", "What the sources state as facts, computed.",
    "Skewed, correlated data, 64 examples of 12 features, no ε; bad batch: 784-100-100-10, ReLU, "
    "SGD with learning rate 0.1, batches of 128, at step 300",
    .revision = 5, .uses = LAB_USES_DATA, .prepare = prepare, .look = look_of)
