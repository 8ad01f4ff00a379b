/* 18_sgd_noise: how far is the gradient of a mini-batch from that of the whole set, and what is a
   larger batch worth? (README.md)

   C is the mean of |g_i - g|² over the images of the set, g_i the gradient of the loss of one
   image, g their mean; for batch norm this is with running statistics taken as constants, since
   with those of a batch no image has a loss of its own. All inner products g_i · g_j are computed
   at first; a drawn batch is then a sum over its pairs, exact to rounding. */
#include "lab/experiment.h"

enum { DEPTH = 6, WIDTH = 100, SET = 2000, SEEN_IMAGES = 1000, STEPS = 200, BATCH = 128 };
enum { SIZES = 5, BATCHES = 7, LARGEST = BATCHES - 1, RATES = 6 };
enum { SEEN_EVERY = 1024, IMAGES_MAX = 90000 };
enum { WEIGHTS = DATASET_PIXELS * WIDTH + (DEPTH - 1) * WIDTH * WIDTH + 10 * WIDTH };
enum { BIASES = DEPTH * WIDTH + 10, PARAMETERS = WEIGHTS + BIASES + DEPTH * WIDTH }; /* γ too */
enum { STREAM_DRAWS = TRAINING_STREAM_DATA + 10 };

static const double sizes[SIZES] = {1, 4, 16, 64, 256};
static const double batches[BATCHES] = {8, 16, 32, 64, 128, 256, 512};

/* ---- the networks ---------------------------------------------------------------------------- */

enum { NONE, NORMED, ARMS };
static const lab_arm arms[ARMS] = {{"none", "no norm", 12}, {"batch", "batch norm", 15}};

LAB_SET(train, 0, DATASET_STD);

/* The learning rate is the plan's context. */
static nrm_mlp_spec network(trainer *t)
{
    nrm_mlp_spec spec = training_plain(t->layer, DEPTH, WIDTH, NRM_RELU,
                                       t->run->arm == NORMED ? NRM_BATCH_NORM : NRM_NO_NORM);
    spec.max_batch = SET;
    spec.lr = (nrm_real)(*(const double *)t->plan->context);
    return spec;
}

/* ---- all inner products of the gradients of single images ------------------------------------ */

typedef struct gram {
    size_t n;
    double mean_square, C;                               /* |g|², mean |g_i - g|²  */
    double with_mean[SET];                               /* g_i · g                */
    nrm_real k[SET * SET];                               /* [n][n] g_i · g_j       */
    nrm_real of_inputs[SET * SET], of_errors[SET * SET]; /* [n][n] work space      */
    nrm_real error[SET * WIDTH]; /* [n][width] gradients of single images by what a layer makes */
    nrm_mlp *net;
    int failed;
} gram;

/* product[i][j] = a_i · a_j, for a [n][width]. */
static void inner_products(gram *m, nrm_real *product, const nrm_real *a, size_t width)
{
    if (nrm_linear_backward(product, NULL, NULL, a, NULL, a, m->n, m->n, width) < 0) m->failed = 1;
}

/* k += (a_i · a_j + more)·(error_i · error_j). A layer's weights have the gradient input x error:
   the inner product of two of those is that of the inputs times that of the errors; `more` is 1 if
   there is a bias, whose gradient is the error, and if there is no input. */
static void add_products(gram *m, const nrm_real *input, size_t in, size_t width, double more)
{
    size_t i;
    if (input) inner_products(m, m->of_inputs, input, in);
    inner_products(m, m->of_errors, m->error, width);
    for (i = 0; i < m->n * m->n; i++)
        m->k[i] += ((input ? m->of_inputs[i] : 0) + (nrm_real)more) * m->of_errors[i];
}

/* Called on the way back. The loss is a mean over n images: times n, these are gradients of single
   images. */
static void see_gradient(void *context, const nrm_mlp_event *e)
{
    gram *m = (gram *)context;
    const nrm_mlp_state *s = &m->net->state[e->layer];
    const size_t width = e->cols;
    size_t i, j;
    if (!e->gradient || e->place == NRM_AT_ACTIVATION) return;
    for (i = 0; i < m->n * width; i++) m->error[i] = e->data[i] * (nrm_real)m->n;
    if (e->place == NRM_AT_LINEAR) {
        add_products(m, e->layer ? m->net->state[e->layer - 1].out : train.x, s->in, width,
                     s->shape.bias);
        return;
    }
    add_products(m, NULL, 0, width, 1); /* of β; that of γ is this times the normalized input */
    for (i = 0; i < m->n * width; i++) {
        j = i % width;
        m->error[i] *=
            (nrm_real)(((double)s->linear_out[i] - (double)s->mean[j]) * (double)s->rstd[j]);
    }
    add_products(m, NULL, 0, width, 1);
}

/* At the parameters of `net`, of the first n training images; running statistics as constants. The
   mean of all products must be |g|² of the whole set as one batch. */
static int gram_make(gram *m, nrm_mlp *net, size_t n)
{
    double square;
    size_t i, j;
    m->n = n;
    m->net = net;
    net->probe = see_gradient;
    net->probe_context = m;
    if (nrm_mlp_gradient(net, NULL, train.x, train.labels, n, NRM_FROZEN) < 0) m->failed = 1;
    net->probe = NULL;
    for (i = 0; i < n; i++) {
        for (j = 0; j < n; j++) m->with_mean[i] += (double)m->k[i * n + j] / (double)n;
        m->mean_square += m->with_mean[i] / (double)n;
        m->C += (double)m->k[i * n + i] / (double)n;
    }
    m->C -= m->mean_square;
    square = training_squares(net->grads, net->n_params);
    if (!m->failed && fabs(m->mean_square / square - 1) < 1e-4) return 0;
    fprintf(stderr, "the mean of the inner products is %g, |g|² %g\n", m->mean_square, square);
    return -1;
}

/* ---- batches drawn from the set -------------------------------------------------------------- */

/* Draws `size` of n into pick[n]. */
static void draw(nrm_rng *rng, size_t *pick, size_t n, size_t size, int replace)
{
    size_t i;
    for (i = 0; i < size; i++) {
        const size_t first = replace ? 0 : i, kept = pick[i];
        const size_t other = first + nrm_rng_below(rng, (uint32_t)(n - first));
        pick[i] = replace ? other : pick[other];
        if (!replace) pick[other] = kept;
    }
}

/* |g_B - g|² of the images in pick, by their inner products. */
static double square_error(const gram *m, const size_t *pick, size_t size)
{
    double pairs = 0, single = 0, mean = 0;
    size_t i, j;
    for (i = 0; i < size; i++) {
        const nrm_real *row = m->k + pick[i] * m->n;
        double sum = 0;
        for (j = 0; j < i; j++) sum += (double)row[pick[j]];
        pairs += sum;
        single += (double)row[pick[i]];
        mean += m->with_mean[pick[i]];
    }
    return (2 * pairs + single) / (double)(size * size) - 2 * mean / (double)size + m->mean_square;
}

/* What E|g_B - g|² should be, over C. */
static double formula(double size, int without, double n)
{
    return (without ? (n - size) / (n - 1) : 1) / size;
}

/* Records for a size: the mean square error over what the formula gives, and the mean error along g
   in standard errors. */
static void measure_draws(const gram *m, lab_run *run, size_t size, int replace)
{
    const char *way = replace ? "with" : "without";
    const double b = (double)size, expected = m->C * formula(b, !replace, (double)m->n);
    const size_t draws = (run->quick ? 20u : 2000u) * 256 / size;
    double sum = 0, along = 0, along2 = 0, d = (double)draws;
    nrm_rng rng;
    size_t pick[SET], k, i;
    nrm_rng_seed(&rng, run->seed, STREAM_DRAWS + 2 * size + (replace ? 1 : 0));
    for (i = 0; i < m->n; i++) pick[i] = i;
    for (k = 0; k < draws; k++) {
        double projected = 0;
        draw(&rng, pick, m->n, size, replace);
        sum += square_error(m, pick, size) / expected;
        for (i = 0; i < size; i++) projected += m->with_mean[pick[i]] / b;
        projected -= m->mean_square;
        along += projected;
        along2 += projected * projected;
    }
    lab_record_as(run, b, sum / d, "ratio_%s", way);
    lab_record_as(run, b, sum / d * expected, "error_%s", way);
    lab_record_as(run, b, along / d / sqrt((along2 / d - along / d * along / d) / d), "z_%s", way);
}

/* Batches through the network as in training; with the whole set as one batch for comparison.
   Records E|error|² and |bias|² over |g|². */
static int measure_training_mode(lab_run *run, nrm_mlp *net, size_t n, size_t size)
{
    static double half[2][PARAMETERS]; /* the errors of every other batch, summed up */
    static nrm_real g[PARAMETERS], x[256 * DATASET_PIXELS];
    const size_t p = net->n_params, draws = run->quick ? 4 : 200;
    double total = 0, bias = 0;
    int labels[256], rc = nrm_mlp_gradient(net, NULL, train.x, train.labels, n, NRM_TRAIN);
    nrm_rng rng;
    size_t pick[SET], k, i;
    memset(half, 0, sizeof half);
    memcpy(g, net->grads, p * sizeof *g);
    nrm_rng_seed(&rng, run->seed, STREAM_DRAWS + 1000 + size);
    for (i = 0; i < n; i++) pick[i] = i;
    for (k = 0; k < draws && rc >= 0; k++) {
        double *sum = half[k % 2];
        draw(&rng, pick, n, size, 0);
        for (i = 0; i < size; i++) {
            memcpy(x + i * DATASET_PIXELS, train.x + pick[i] * DATASET_PIXELS,
                   DATASET_PIXELS * sizeof *x);
            labels[i] = train.labels[pick[i]];
        }
        rc = nrm_mlp_gradient(net, NULL, x, labels, size, NRM_TRAIN);
        for (i = 0; i < p; i++) {
            const double e = (double)net->grads[i] - (double)g[i];
            sum[i] += e;
            total += e * e;
        }
    }
    for (i = 0; i < p; i++) bias += half[0][i] * half[1][i];
    lab_record(run, "train_error", (double)size, total / (double)draws / training_squares(g, p));
    lab_record(run, "train_bias", (double)size,
               bias / (0.25 * (double)(draws * draws)) / training_squares(g, p));
    return rc < 0 ? -1 : 0;
}

static int run_noise(lab_run *run)
{
    const size_t n = run->quick ? 400 : SET;
    double rate = 0.1;
    const trainer_plan plan = {.network = network, .set = &train, .batch = BATCH, .context = &rate};
    trainer t;
    static gram m; /* large, and a run has a process of its own */
    size_t k;
    int failed = trainer_open(&t, run, &plan) || trainer_steps(&t, run->quick ? 20 : STEPS) ||
                 t.status != NRM_OK || gram_make(&m, t.net, n);
    for (k = 0; k < SIZES && !failed; k++) {
        measure_draws(&m, run, (size_t)sizes[k], 1);
        measure_draws(&m, run, (size_t)sizes[k], 0);
        lab_progress(run, 0.3 * (double)(k + 1) / SIZES);
    }
    for (k = 1; k < SIZES && !failed; k++)
        failed = measure_training_mode(run, t.net, n, (size_t)sizes[k]);
    lab_record(run, "C", 0, m.C);
    lab_record(run, "square", 0, m.mean_square);
    trainer_close(&t);
    return failed ? -1 : 0;
}

/* ---- what a batch is worth ------------------------------------------------------------------- */

static const double rate_factor[RATES] = {1, 2, 0.5, 4, 0.25, 8}; /* in the order of the attempts */

/* Images until the loss is 0.3: between two looks, by a straight line in log loss. nan: not within
   `most`, or the rate is too large; -1 after an error. */
static double images_to_target(lab_run *run, size_t batch, double rate, double most)
{
    const trainer_plan plan = {
        .network = network, .set = &train, .batch = batch, .least = batch, .context = &rate};
    const size_t every = SEEN_EVERY / batch;
    const double target = log(run->quick ? 2.2 : 0.3);
    double last = 0, now = 0, images = (double)NAN;
    nrm_acc loss = 0;
    trainer t;
    int failed = trainer_open(&t, run, &plan);
    while (!failed && t.status == NRM_OK && (double)(t.step * batch) < most) {
        failed = trainer_step(&t);
        if (failed || t.status != NRM_OK || t.step % every > 0) continue;
        t.status = nrm_mlp_eval(t.net, &loss, NULL, train.x, train.labels, SEEN_IMAGES);
        now = log((double)loss);
        if (t.status < 0) failed = -1;
        if (now <= target) break;
        last = now;
    }
    if (!failed && t.status == NRM_OK && now <= target && last > target) {
        const double back = (target - now) / (last - now) * (double)(every * batch);
        images = (double)(t.step * batch) - back;
    }
    trainer_close(&t);
    return failed ? -1 : images;
}

/* At the best of the learning rates: images, steps and the rate. */
static int worth_of(lab_run *run, size_t batch)
{
    double best = run->quick ? 1024 : IMAGES_MAX / 2.0, best_rate = (double)NAN;
    const double b = (double)batch;
    size_t k;
    for (k = 0; k < RATES; k++) {
        const double lr = 0.1 * sqrt(b / 64) * rate_factor[k];
        const double images = images_to_target(run, batch, lr, 2 * best);
        if (images < 0) return -1;
        if (images < best || (isnan(best_rate) && images > 0)) {
            best = images;
            best_rate = lr;
        }
    }
    if (isnan(best_rate)) best = (double)NAN;
    lab_record(run, "images", b, best);
    lab_record(run, "steps", b, best / b);
    lab_record(run, "rate", b, best_rate);
    return 0;
}

static int run(lab_run *r)
{
    int failed = run_noise(r);
    size_t k;
    for (k = 0; k < BATCHES && !failed; k++) {
        failed = worth_of(r, (size_t)batches[k]);
        lab_progress(r, 0.3 + 0.7 * (double)(k + 1) / BATCHES);
    }
    return failed;
}

/* ---- what came out --------------------------------------------------------------------------- */

static const char *const ways[2] = {"with", "without"};

static double set_size(const lab_report *r)
{
    return lab_quick(r) ? 400 : SET;
}

static void judge_formula(lab_report *r, const lab_claim *c)
{
    double worst = 0, worst_mean = 0;
    size_t arm, k;
    for (arm = NONE; arm < ARMS; arm++)
        for (k = 0; k < SIZES; k++) { /* nan if one is missing */
            const stats_summary s = lab_summary(r, arm, c->series, sizes[k]);
            worst = stats_larger(worst, stats_larger(s.max - 1, 1 - s.min));
            worst_mean = stats_larger(worst_mean, fabs(s.mean - 1));
        }
    lab_verdict(r, c, stats_holds_partly(worst <= 0.03, worst_mean <= 0.03),
                "at 2000 · 256/|B| draws chance itself makes up to 2 %",
                "off by at most %.1f %% in any run, %.1f %% in a mean over seeds", 100 * worst,
                100 * worst_mean);
}

static void judge_improves(lab_report *r, const lab_claim *c)
{
    lab_numbers error[3];
    stats_finding v[4];
    double factor[2];
    size_t arm, k;
    for (arm = NONE; arm < ARMS; arm++) {
        for (k = 0; k < 3; k++) error[k] = lab_all(r, arm, "train_error", sizes[k + 2]);
        factor[arm] = lab_average(error[0]) / lab_average(error[2]);
        for (k = 0; k < 2; k++)
            v[2 * arm + k] = lab_less(error[k + 1], error[k], fabs(factor[arm] - 16) <= 4);
    }
    lab_verdict(r, c, stats_together(v, 4),
                lab_format(r, "drawn without replacement: %.1f expected without norm",
                           formula(16, 1, set_size(r)) / formula(256, 1, set_size(r))),
                "from 16 to 256 by a factor of %.1f without, %.1f with batch norm", factor[0],
                factor[1]);
}

/* The fit images = least images + least steps · batch of each seed, least squares of relative
   errors. */
static void fit(const lab_report *r, size_t norm, lab_numbers *images, lab_numbers *steps)
{
    size_t k, s;
    images->n = steps->n = lab_seeds(r, norm);
    for (s = 0; s < images->n; s++) {
        const lab_series seen = lab_get(r, norm, s, "images");
        double w = 0, wx = 0, wy = 0, wxx = 0, wxy = 0;
        for (k = 0; k < seen.n; k++) {
            const double x = seen.x[k], of = seen.y[k];
            if (!(of > 0)) continue;
            w += 1 / (of * of);
            wx += x / (of * of);
            wy += 1 / of;
            wxx += x * x / (of * of);
            wxy += x / of;
        }
        steps->of[s] = (w * wxy - wx * wy) / (w * wxx - wx * wx);
        images->of[s] = (wy - steps->of[s] * wx) / w;
    }
}

/* Images of the fits at a batch, mean over seeds. */
static double fitted(lab_numbers images, lab_numbers steps, double batch)
{
    return lab_average(lab_calc(images, '+', lab_times(steps, batch)));
}

/* C/|g|² */
static lab_numbers noise_scale(const lab_report *r, size_t norm)
{
    return lab_calc(lab_all(r, norm, "C", 0), '/', lab_all(r, norm, "square", 0));
}

static void judge_scale(lab_report *r, const lab_claim *c)
{
    const double least = batches[0], most = batches[LARGEST];
    double off[2] = {0, 0}; /* the fits from the images, at most: means over seeds, relative */
    lab_numbers knee[2], noise[2];
    stats_finding v[2];
    size_t norm, k, s;
    for (norm = NONE; norm < ARMS; norm++) {
        lab_numbers images, steps, decades;
        size_t inside = 0;
        fit(r, norm, &images, &steps);
        knee[norm] = lab_calc(images, '/', steps);
        noise[norm] = noise_scale(r, norm);
        decades = lab_map(lab_calc(knee[norm], '/', noise[norm]), log10);
        for (s = 0; s < images.n; s++)
            inside += images.of[s] >= steps.of[s] * least && images.of[s] <= steps.of[s] * most;
        for (k = 0; k < BATCHES; k++) {
            const double mean = lab_mean(r, norm, "images", batches[k]);
            off[norm] = stats_larger(off[norm], fabs(fitted(images, steps, batches[k]) / mean - 1));
        }
        v[norm] = lab_within(decades, 0, 1);
        v[norm].size_met = stats_most(inside, images.n);
    }
    lab_verdict(r, c, stats_together(v, 2),
                lab_format(r, "batches of 8 to 512; the fits are off by up to %.0f %% and %.0f %%",
                           100 * off[0], 100 * off[1]),
                "knee at %.0f, noise %.0f without; %.0f and %.0f with batch norm",
                lab_average(knee[0]), lab_average(noise[0]), lab_average(knee[1]),
                lab_average(noise[1]));
}

/* Operations and words of memory that one image costs without a norm, counted. A step takes the
   gradient, three products of matrices a layer (two in the first), and then two operations for
   each parameter. It moves each parameter's words six times: read forward and backward, gradient
   written and read, parameter read and written; and each activation's four times. */
static double operations(double batch)
{
    return 6.0 * WEIGHTS - 2.0 * DATASET_PIXELS * WIDTH + 2.0 * (WEIGHTS + BIASES) / batch;
}

static double words(double batch)
{
    return 2.0 * DATASET_PIXELS + 4.0 * BIASES + 6.0 * (WEIGHTS + BIASES) / batch;
}

static void judge_cost(lab_report *r, const lab_claim *c)
{
    lab_verdict(r, c, stats_holds(words(64) <= 0.1 * words(1)), "counted, not timed",
                "%.0f words alone, %.0f in a batch of 64: %.0f times fewer", words(1), words(64),
                words(1) / words(64));
}

/* clang-format off */
#define IOFFE "Ioffe & Szegedy 2015, section 1; a tutorial with a custom batch norm"
#define BIAS(size) {LAB_BELOW, NORMED, .series = "train_bias", .at = size}
static const lab_claim claims[] = {
    {"18b", "E|αg − αg_B|² is at most α²C/|B|, and equal to it with replacement",
     "Bjorck et al. 2018, via Chinese notes on batch norm", "a bound: α²C/|B|",
     "exact: equal within 3 %, every size, network and seed (partly: the means over seeds)",
     "trial runs (a toy): 3.696e-3 for 3.706e-3", LAB_IDENTITY, .judge = judge_formula,
     .series = "ratio_with"},
    {"18c", "Without replacement it is smaller by (N−|B|)/(N−1)", "sampling theory", "an equality",
     "exact: equal within 3 %, every size, network and seed (partly: the means over seeds)",
     "trial runs (a toy): 3.4256e-3 for 3.4267e-3", LAB_IDENTITY, .judge = judge_formula,
     .series = "ratio_without"},
    {"18d", "The gradient of a mini-batch is unbiased also with the batch statistics of training",
     "ours: the decomposition of Bjorck et al. 2018, read as of a network with batch norm",
     "an equality, where the loss is a mean over examples",
     "the estimate of |bias|², itself without bias, is not above 0 at 4, 16, 64, 256", "none",
     LAB_TRAINING, LAB_ALGEBRA, LAB_PARTS(BIAS(4), BIAS(16), BIAS(64), BIAS(256)),
     .say = "|bias|²/|g|² #1[%.3g], #2[%.3g], #3[%.3g], #4[%.3g] at 4, 16, 64, 256",
     .remark = "compared with the gradient of all 2000 images as one batch"},
    {"18e", "The estimate of the gradient improves with the size of the batch", IOFFE, "no numbers",
     "E|g−g_B|² falls from 16 to 64 to 256, paired over seeds, in the means by 16 ± 4 in all, both "
     "networks, as in training", "none", LAB_TRAINING, LAB_NEWS, judge_improves},
    {"18f", "A larger batch needs fewer steps to the same loss", IOFFE, "no numbers",
     "steps at batch 512 below those at 8, and at most an eighth in the means, both networks",
     "none",
     LAB_PARTS({LAB_LESS, NONE, NONE, "steps", 512, .other_at = 8, .times = 8},
               {LAB_LESS, NORMED, NORMED, "steps", 512, .other_at = 8, .times = 8}),
     .say = "from 8 to 512: #2/1[%.1f] times fewer steps without, #4/3[%.1f] with batch norm",
     .remark = "64 times as large"},
    {"18g", "... but beyond some size more images", "McCandlish et al. 2018; Shallue et al. 2019",
     "no numbers for this network", "images at batch 512 above those at 32, both networks", "none",
     LAB_PARTS({LAB_MORE, NONE, NONE, "images", 512, .other_at = 32},
               {LAB_MORE, NORMED, NORMED, "images", 512, .other_at = 32}),
     .say = "from 32 to 512: #1/2[%.2f] times the images without, #3/4[%.2f] with"},
    {"18h", "The noise C/|g|² tells beyond which batch size few steps are saved",
     "McCandlish et al. 2018 (their simple noise scale)", "to an order of magnitude",
     "the batch at which steps and images are both twice their least: within a factor of 10 and "
     "within the batches tried, seed by seed, both networks", "none", .judge = judge_scale},
    {"18i", "A batch is cheaper than its examples one by one", IOFFE,
     "\"much more efficient\", by parallelism; no numbers", "exact, a count: in a batch of 64 an "
     "image takes at most a tenth of the words of memory that it takes alone, no norm, no cache",
     "none; the count was known when the criterion was written", LAB_ARITHMETIC,
     .judge = judge_cost}};
/* clang-format on */

/* ---- pages ----------------------------------------------------------------------------------- */

static plot_style look_of(size_t norm)
{
    return plot_with_marker(lab_style(norm == NORMED ? "batch" : "none"), PLOT_CIRCLE);
}

static void draw_error(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    enum { FINE = 60 };
    static const double alphas[2] = {0.1, 0.01};
    const double C = lab_mean(r, panel->arm, "C", 0), n = set_size(r);
    double x[FINE], line[FINE], curve[FINE], mean[SIZES];
    size_t a, i, k, way;
    for (a = 0; a < 2; a++) {
        const double scale = alphas[a] * alphas[a];
        for (i = 0; i < FINE; i++) {
            x[i] = exp2(8.5 * (double)i / (FINE - 1));
            line[i] = scale * C / x[i];
            curve[i] = scale * C * formula(x[i], 1, n);
        }
        plot_line(p, "the bound α^2C/|B|", x, line, FINE, plot_thin(PLOT_INK));
        plot_line(p, "the bound · (N−|B|)/(N−1)", x, curve, FINE, plot_dashed(PLOT_INK));
        for (way = 0; way < 2; way++) {
            const char *series = lab_format(r, "error_%s", ways[way]);
            for (k = 0; k < SIZES; k++) mean[k] = scale * lab_mean(r, panel->arm, series, sizes[k]);
            plot_scatter(p, way ? "without" : "drawn with replacement", sizes, mean, SIZES,
                         plot_marked(look_of(panel->arm).color, way ? PLOT_CROSS : PLOT_RING));
        }
        plot_text(p, 1.2, scale * C * 0.1, a ? "α = 0.01" : "α = 0.1", PLOT_LEFT, PLOT_INK);
    }
}

static void draw_ratio(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    size_t arm, way, s, k;
    (void)panel;
    plot_span_y(p, 0.97, 1.03, plot_solid(PLOT_LIGHT));
    for (arm = NONE; arm < ARMS; arm++)
        for (way = 0; way < 2; way++) {
            const double aside = 0.06 * (2 * (double)(2 * arm + way) - 3); /* for the eye */
            double x[SIZES];
            for (k = 0; k < SIZES; k++) x[k] = sizes[k] * exp2(aside);
            for (s = 0; s < lab_seeds(r, arm); s++) {
                const lab_series one = lab_get(r, arm, s, lab_format(r, "ratio_%s", ways[way]));
                plot_scatter(p, lab_format(r, "%s, %s", arms[arm].name, ways[way]), x, one.y, one.n,
                             plot_marked(look_of(arm).color, way ? PLOT_CROSS : PLOT_RING));
            }
        }
}

/* Steps or images against the batch, with the fit's curve. */
static void draw_worth(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    const int steps = !strcmp(panel->series, "steps");
    double curve[BATCHES];
    size_t norm, k;
    for (norm = NONE; norm < ARMS; norm++) {
        const lab_curve c = lab_over_seeds(r, norm, panel->series);
        lab_numbers least_images, least_steps;
        fit(r, norm, &least_images, &least_steps);
        for (k = 0; k < BATCHES; k++)
            curve[k] = fitted(least_images, least_steps, batches[k]) / (steps ? batches[k] : 1);
        plot_band(p, NULL, c.x, c.low, c.high, c.n, look_of(norm));
        plot_line(p, arms[norm].name, c.x, c.mean, c.n, look_of(norm));
        plot_line(p, "fit", batches, curve, BATCHES, plot_thin(PLOT_INK));
    }
    for (norm = NONE; norm < ARMS; norm++)
        plot_vline(p, lab_average(noise_scale(r, norm)), "C/|g|^2",
                   plot_dotted(look_of(norm).color));
}

static void draw_pareto(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    size_t norm, k;
    (void)panel;
    for (norm = NONE; norm < ARMS; norm++) {
        const lab_curve steps = lab_over_seeds(r, norm, "steps");
        const lab_curve images = lab_over_seeds(r, norm, "images");
        for (k = 0; k < images.n; k += 2) {
            /* beside the line: right of one, below the other or left of its end */
            const int end = k == LARGEST;
            const int align = !norm ? PLOT_LEFT : end ? PLOT_RIGHT : PLOT_CENTER | PLOT_BELOW;
            const double aside = !norm ? 1.12 : end ? 0.88 : 1;
            plot_text(p, steps.mean[k] * aside, images.mean[k] * (norm && !end ? 0.93 : 1.05),
                      lab_format(r, "%.0f", batches[k]), align, PLOT_INK);
        }
        plot_line(p, lab_format(r, "%s (numbers: batch)", arms[norm].name), steps.mean, images.mean,
                  images.n, look_of(norm));
    }
}

/* Means and deviations of logarithms: rates are a geometric grid. */
static void draw_rates(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    double mean[BATCHES], lo[BATCHES], hi[BATCHES], least[BATCHES], most[BATCHES];
    size_t norm, k;
    (void)panel;
    for (norm = NONE; norm < ARMS; norm++) {
        for (k = 0; k < BATCHES; k++) {
            const stats_summary y =
                lab_describe(lab_map(lab_all(r, norm, "rate", batches[k]), log2));
            mean[k] = exp2(y.mean);
            lo[k] = exp2(y.mean - (y.n > 1 ? y.sd : 0));
            hi[k] = exp2(y.mean + (y.n > 1 ? y.sd : 0));
            least[k] = 0.025 * sqrt(batches[k] / 64);
            most[k] = 0.8 * sqrt(batches[k] / 64);
        }
        plot_band(p, NULL, batches, lo, hi, BATCHES, look_of(norm));
        plot_line(p, arms[norm].name, batches, mean, BATCHES, look_of(norm));
    }
    plot_line(p, "least and greatest tried", batches, least, BATCHES, plot_thin(PLOT_INK));
    plot_line(p, "least and greatest tried", batches, most, BATCHES, plot_thin(PLOT_INK));
}

static void draw_cost(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    double at[10], flop[10], word[10];
    size_t k;
    (void)r;
    (void)panel;
    for (k = 0; k < 10; k++) {
        at[k] = exp2((double)k);
        flop[k] = operations(at[k]);
        word[k] = words(at[k]);
    }
    plot_line(p, "operations", at, flop, 10, plot_with_marker(plot_solid(PLOT_INK), PLOT_SQUARE));
    plot_line(p, "words moved, without a cache", at, word, 10,
              plot_with_marker(plot_dashed(PLOT_GREY), PLOT_TRIANGLE));
}

/* clang-format off */
#define OF_SIZE .x = "batch size |B|", .x_scale = PLOT_LOG2
#define ERRORS(of, title)                                                                          \
    {.axes = {.col = of, .heading = title, OF_SIZE, .x_range = {0.8, 400}, .y = "E|αg − αg_B|^2",  \
              .y_scale = PLOT_LOG10, .grid = PLOT_GRID_Y},                                         \
     .draw = draw_error, .arm = of}
#define BIASED(c) {c, .dash = PLOT_DOTTED, .marker = PLOT_DIAMOND, .marker_every = 1}
static const lab_panel noise_panels[] = {
    ERRORS(NONE, "No norm"), ERRORS(NORMED, "Batch norm, running statistics"),
    {.axes = {.col = 2, .heading = "Measured over formula, each seed", OF_SIZE,
              .x_range = {0.7, 420}, .y = "ratio", .y_range = {0.94, 1.06}, .grid = PLOT_GRID_Y},
     .draw = draw_ratio, .under = {{LAB_HLINE, .y = 1, .text = ""}}},
    {.axes = {.row = 1, .heading = "As in training: batch statistics", OF_SIZE,
              .y = "over |g|^2 of all images", .y_scale = PLOT_LOG10, .grid = PLOT_GRID_Y},
     .line = {{NONE, "train_error", "no norm: E|g − g_B|^2"},
              {NONE, "train_bias", "no norm: |bias|^2", BIASED(PLOT_VERMILLION)},
              {NORMED, "train_error", "batch norm: E|g − g_B|^2"},
              {NORMED, "train_bias", "batch norm: |bias|^2", BIASED(PLOT_BLUE)}}},
    {.axes = {.row = 1, .col = 1, .heading = "Steps to a loss of 0.3", OF_SIZE, .y = "steps",
              .y_scale = PLOT_LOG10, .grid = PLOT_GRID_BOTH},
     .draw = draw_worth, .series = "steps"},
    {.axes = {.row = 1, .col = 2, .heading = "Images to a loss of 0.3", OF_SIZE, .y = "images",
              .y_scale = PLOT_LOG10, .grid = PLOT_GRID_BOTH},
     .draw = draw_worth, .series = "images"}};
static const lab_panel worth_panels[] = {
    {.axes = {.heading = "Steps against images", .x = "steps", .x_scale = PLOT_LOG10,
              .x_range = {10, 5000}, .y = "images", .y_scale = PLOT_LOG10,
              .y_range = {2000, 1e5}, .grid = PLOT_GRID_BOTH, .legend = PLOT_LEGEND_BOTTOM_RIGHT},
     .draw = draw_pareto},
    {.axes = {.col = 1, .heading = "The best of the six learning rates", OF_SIZE,
              .y = "learning rate", .y_scale = PLOT_LOG10, .y_range = {0.002, 4},
              .grid = PLOT_GRID_BOTH, .legend = PLOT_LEGEND_BOTTOM_RIGHT},
     .draw = draw_rates},
    {.axes = {.col = 2, .heading = "What an image costs, counted (no norm)", OF_SIZE,
              .y = "per image", .y_scale = PLOT_LOG10, .grid = PLOT_GRID_BOTH},
     .draw = draw_cost}};
static const lab_page pages[2] = {
    {"Gradient noise falls as 1/batch, and batch norm adds a bias", NULL, 1260, 0.7,
     "784-100x6-10 ReLU, SGD. a to d: after 200 steps with learning rate 0.1 and batch 128, the "
     "whole set is 2000 images; e, f: from the start to a loss of 0.3", LAB_PANELS(noise_panels)},
    {"Larger batches save steps up to a size, then only cost images", "worth", 670, 0.7,
     "784-100x6-10 ReLU, SGD from the start to a loss of 0.3 on 1000 training images, the best of "
     "six learning rates for each batch size", LAB_PANELS(worth_panels)}};
/* clang-format on */

static int check_draws(lab_report *r)
{
    const double most = stats_larger(lab_worst(r, "z_with"), lab_worst(r, "z_without"));
    lab_check(r, most <= 5, "the gradient of a drawn batch is unbiased",
              "largest of %lu errors: %.2f standard errors, at most 5",
              (unsigned long)(4 * SIZES * lab_seeds(r, NONE)), most);
    return 0;
}

LAB_PROGRAM(
    "18_sgd_noise", "How far is the gradient of a mini-batch from that of the whole set?",
    "784-100x6-10 ReLU after 200 steps of SGD, learning rate 0.1, batch 128; the whole set is "
    "2000 images",
    .revision = 3, .uses = LAB_USES_DATA, .prepare = prepare, .look = look_of,
    .before = check_draws)
