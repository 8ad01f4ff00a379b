/* 13_noisy_batch_norm: does batch norm help because it keeps distributions steady? (README.md)

   Choices that the specification of the experiment left open: "final" is the last 250 steps; the
   layers shown are the first, the middle and the last hidden one; the unit of the ridges is number
   21; the moments of the training batch are averaged over all 100 units of a layer; the fixed batch
   is the first 1000 training images, taken forward in train mode with and without noise. Running
   statistics are those of clean batches; the two noisy arms draw the same noise. */
#include "lab/experiment.h"
#include "lab/draw.h"
#include "lab/landscape.h"

enum { INPUTS = 784, CLASSES = 10, WIDTH = 100, DEEPEST = 13, BATCH = 128, PROBED = 1000 };
enum { STEPS = 3000, SHOWN = 3, THIRD = 2, UNIT = 21, BINS = 41 };

/* ---- the arms -------------------------------------------------------------------------------- */

enum { RELU6, SIGMOID6, RELU13, NETS };
enum { NONE, NORMED, NOISY, ONLY_NOISE, KINDS };
enum { ARMS = NETS * KINDS };

static const struct {
    size_t hidden;
    int activation;
} networks[NETS] = {{6, NRM_RELU}, {6, NRM_SIGMOID}, {13, NRM_RELU}};

/* clang-format off */
#define OF_NETWORK(id, s, more)                                                                    \
    {id "_none", "no norm", s}, {id "_batch", "batch norm", s + 1},                                \
    {id "_noisy", "noisy", s + more}, {id "_noise", "noise, no norm", s + more}
static const lab_arm arms[ARMS] = {OF_NETWORK("relu6", 8, 5), OF_NETWORK("sigmoid6", 8, 5),
                                   OF_NETWORK("relu13", 12, 10)};
/* clang-format on */

#define ARM(net, kind) ((size_t)(net)*KINDS + (size_t)(kind))

/* What is looked at more closely, in the first network alone: the first, the middle and the last of
   its hidden layers, counted from 0. */
static const size_t shown[SHOWN] = {0, THIRD, 5};

/* ---- a network in training ------------------------------------------------------------------- */

LAB_SETS(train_set, test_set, quick ? 4000 : 0, quick ? 500 : 0, DATASET_STD);

typedef struct moments { /* of what the activations are given, for each unit */
    double mean[DEEPEST][WIDTH], var[DEEPEST][WIDTH];
} moments;

enum { MEAN, VAR, RELATIVE, CHANGES };

typedef struct changes { /* how far a layer's moments have moved, summed over n steps */
    double of[CHANGES], n;
} changes;

typedef struct trial {
    lab_run *r;
    nrm_mlp *mlp;
    int net, kind;
    size_t rows;                            /* of the fixed batch */
    nrm_rng rng;                            /* of the noise without a norm, as in the network */
    nrm_real scale[DEEPEST][BATCH * WIDTH]; /* [rows][WIDTH] its factors */
    moments now, before, first, fixed;      /* of the last forward pass, of the step before, of the
                                               first step, of the fixed batch before that */
    changes run[DEEPEST], step, start; /* from step to step; of the third layer in this window too,
                                          and there from the start */
    double unit[SHOWN][PROBED];        /* what one unit of three layers was given  */
    double accuracy[STEPS];            /* on the batch of each step                */
} trial;

static trial *trial_of(const trainer *t)
{
    return (trial *)t->plan->context;
}

static size_t hidden_of(const trial *t)
{
    return networks[t->net].hidden;
}

static nrm_mlp_spec network_of(trainer *t)
{
    static const int norm[KINDS] = {NRM_NO_NORM, NRM_BATCH_NORM, NRM_NOISY_BATCH_NORM, NRM_NO_NORM};
    const trial *k = trial_of(t);
    nrm_mlp_spec spec =
        training_plain(t->layer, hidden_of(k), WIDTH, networks[k->net].activation, norm[k->kind]);
    spec.max_batch = k->rows;
    spec.lr = (nrm_real)0.1;
    return spec;
}

/* Mean and variance of each column, and the columns that the ridges show. */
static void on_event(void *context, const nrm_mlp_event *event)
{
    trial *t = (trial *)context;
    const int normed = t->kind == NORMED || t->kind == NOISY;
    size_t i;
    int k;
    if (event->gradient || event->place != (normed ? NRM_AT_NORM : NRM_AT_LINEAR) ||
        event->layer >= hidden_of(t))
        return;
    landscape_columns(event->data, event->rows, event->cols, t->now.mean[event->layer],
                      t->now.var[event->layer]);
    for (k = 0; k < SHOWN; k++)
        for (i = 0; i < event->rows && event->layer == shown[k]; i++)
            t->unit[k][i] = (double)event->data[i * event->cols + UNIT];
}

/* ---- noise without a norm -------------------------------------------------------------------- */

/* Uniform in ±1. */
static double symmetric(nrm_rng *rng)
{
    return (double)nrm_rng_u32(rng) / 2147483648.0 - 1;
}

/* Of N rows: NB.1 to NB.5, drawn in the order of nrm_noisy_batchnorm_forward. */
static void add_noise(nrm_real *z, nrm_real *scale, const nrm_noise *noise, nrm_rng *rng, size_t N,
                      size_t width)
{
    nrm_real factor[64];
    size_t n, j;
    for (j = 0; j < width; j++) {
        const double mu = (double)noise->mean_range * symmetric(rng);
        const double sigma = 1 + ((double)noise->scale_max - 1) * (symmetric(rng) + 1) / 2;
        for (n = 0; n < N; n++) {
            const size_t i = n * width + j;
            const size_t k = n % 64;
            if (k == 0) nrm_rng_normal(rng, factor, N - n < 64 ? N - n : 64);
            scale[i] = (nrm_real)(sigma + (double)noise->scale_jitter * (double)factor[k]);
            z[i] = (nrm_real)((double)scale[i] * (double)z[i] +
                              (mu + (double)noise->mean_jitter * symmetric(rng)));
        }
    }
}

static int noise_forward(void *context, nrm_mlp *net, size_t l, size_t N)
{
    trial *t = (trial *)context;
    nrm_real *z = net->state[l].linear_out;
    const nrm_mlp_event event = {l, NRM_AT_LINEAR, 0, z, N, WIDTH};
    add_noise(z, t->scale[l], &net->spec.noise, &t->rng, N, WIDTH);
    if (net->probe) net->probe(net->probe_context, &event);
    return NRM_OK;
}

static int noise_backward(void *context, nrm_mlp *net, size_t l, nrm_real *d, size_t N)
{
    const trial *t = (const trial *)context;
    size_t i;
    (void)net;
    for (i = 0; i < N * WIDTH; i++) d[i] *= t->scale[l][i]; /* NB.7 */
    return NRM_OK;
}

/* ---- training -------------------------------------------------------------------------------- */

static int learn(trainer *t, nrm_acc *loss)
{
    trial *k = trial_of(t);
    const training_between noise = {k, noise_forward, noise_backward};
    const training_order *o = &t->order;
    int rc;
    k->before = k->now;
    if (k->kind != ONLY_NOISE) return nrm_mlp_train_step(t->net, loss, o->x, o->labels, o->count);
    rc = training_gradient(t->net, loss, o->x, o->labels, o->count, &noise);
    return rc == NRM_OK ? nrm_mlp_step(t->net) : rc;
}

/* Adds, of one layer, the mean over the units of |a - b| in the means, and in the variances; and
   the former in units of each one's standard deviation. */
static void add_change(changes *sum, const moments *a, const moments *b, size_t layer)
{
    double c[CHANGES] = {0};
    size_t j;
    for (j = 0; j < WIDTH; j++) {
        const double moved = fabs(a->mean[layer][j] - b->mean[layer][j]);
        c[MEAN] += moved / WIDTH;
        c[VAR] += fabs(a->var[layer][j] - b->var[layer][j]) / WIDTH;
        c[RELATIVE] += moved / sqrt(a->var[layer][j] + 1e-12) / WIDTH;
    }
    for (j = 0; j < CHANGES; j++) sum->of[j] += c[j];
    sum->n++;
}

/* The means of both in this layer; the sums begin anew. */
static void record_changes(trial *t, const char *what, changes *sum, size_t layer, double x)
{
    lab_record_as(t->r, x, lab_round(sum->of[MEAN] / sum->n, 4), "%s_mean_%zu", what, layer + 1);
    lab_record_as(t->r, x, lab_round(sum->of[VAR] / sum->n, 4), "%s_var_%zu", what, layer + 1);
    memset(sum, 0, sizeof *sum);
}

/* The fixed batch through the network as it is in training, with or without noise; the training
   goes on as if nothing had happened. */
static int fixed_batch(trial *t, int noise)
{
    nrm_mlp *net = t->mlp;
    const nrm_noise kept = net->spec.noise, none = {0, 1, 0, 0};
    int rc;
    if (!noise) net->spec.noise = none;
    rc = nrm_mlp_gradient(net, NULL, train_set.x, train_set.labels, t->rows, NRM_TRAIN);
    net->spec.noise = kept;
    return rc;
}

/* The distribution of one unit in three layers. */
static void record_ridges(trial *t, size_t at)
{
    static const double lo = -5, hi = 5;
    double grid[BINS], density[BINS];
    size_t i;
    int k;
    for (i = 0; i < BINS; i++) grid[i] = lo + (hi - lo) * (double)i / (BINS - 1);
    for (k = 0; k < SHOWN; k++) {
        stats_sort(t->unit[k], t->rows);
        if (stats_kde(t->unit[k], t->rows, stats_bandwidth(t->unit[k], t->rows), grid, BINS,
                      density))
            continue;
        for (i = 0; i < BINS; i++)
            lab_record_as(t->r, lab_round(grid[i], 4), floor(density[i] * 1000 + 0.5) / 1000,
                          "ridge_%zu_%04zu", shown[k] + 1, at);
    }
}

/* What the weights alone have changed since the start, and (one seed) ridges with the noise of
   training. */
static int visit(trial *t, size_t at)
{
    const moments kept = t->now;
    int k, rc = fixed_batch(t, 0);
    if (at == 0) t->fixed = t->now;
    for (k = 0; k < SHOWN; k++) {
        changes c = {{0}, 0};
        add_change(&c, &t->now, &t->fixed, shown[k]);
        record_changes(t, "weights", &c, shown[k], (double)at);
    }
    if (t->kind != ONLY_NOISE && t->r->first && rc >= 0) {
        if (t->kind == NOISY) rc = fixed_batch(t, 1);
        record_ridges(t, at);
    }
    t->now = kept;
    return rc < 0 ? -1 : 0;
}

static void record_run(trial *t)
{
    static const char *const name[CHANGES] = {"run_mean", "run_var", "run_relative"};
    size_t l, k;
    for (l = 0; l < hidden_of(t); l++)
        for (k = 0; k < CHANGES; k++)
            lab_record(t->r, name[k], (double)l + 1, lab_round(t->run[l].of[k] / t->run[l].n, 4));
}

/* Accuracy on the training batches: means over the last 25 steps, the first 500, the last 250. */
static void record_accuracy(trial *t, size_t n)
{
    const size_t early = n < 500 ? n : 500, late = n < 250 ? n : 250;
    double mean[STEPS], first = 0, last = 0;
    size_t s;
    stats_running_mean(t->accuracy, n, 25, mean);
    for (s = 1; s <= n; s++) {
        if (s <= early) first += t->accuracy[s - 1] / (double)early;
        if (s > n - late) last += t->accuracy[s - 1] / (double)late;
        if ((s <= 500 && s % 25 == 0) || s % 100 == 0)
            lab_record(t->r, "accuracy", (double)s, lab_round(mean[s - 1], 4));
    }
    lab_record(t->r, "early", 0, first);
    lab_record(t->r, "final", 0, last);
}

static int begin(trainer *t)
{
    trial *k = trial_of(t);
    k->mlp = t->net;
    k->rng = t->net->rng;
    if (!t->looked_at) return 0;
    t->net->probe = on_event;
    t->net->probe_context = k;
    return k->net == RELU6 ? visit(k, 0) : 0;
}

static int after(trainer *t)
{
    const size_t window = t->run->quick ? 4 : 150, every = t->run->quick ? 8 : 200;
    trial *k = trial_of(t);
    nrm_acc hits = 0;
    size_t l;
    (void)nrm_accuracy(&hits, t->net->logits, t->order.labels, t->order.count, CLASSES);
    k->accuracy[t->step - 1] = (double)hits;
    if (!t->looked_at) return 0;
    if (t->step == 1) k->first = k->now;
    if (t->step > 1) {
        for (l = 0; l < hidden_of(k); l++) add_change(&k->run[l], &k->now, &k->before, l);
        add_change(&k->step, &k->now, &k->before, THIRD);
        add_change(&k->start, &k->now, &k->first, THIRD);
    }
    if (k->net != RELU6) return 0;
    if (t->step % window == 0) {
        const double middle = (double)t->step - (double)window / 2;
        record_changes(k, "step", &k->step, THIRD, middle);
        record_changes(k, "start", &k->start, THIRD, middle);
    }
    return t->step % every == 0 ? visit(k, t->step) : 0;
}

/* ---- test accuracy --------------------------------------------------------------------------- */

/* What follows noise with the mean factor f may expect: gamma and beta, or weights and bias, of all
   hidden layers times f. */
static void stretch(trial *t, nrm_real f)
{
    size_t l, i;
    for (l = 0; l < hidden_of(t); l++) {
        const nrm_mlp_state *s = &t->mlp->state[l];
        nrm_real *factor = s->gamma ? s->gamma : s->W, *offset = s->gamma ? s->beta : s->b;
        for (i = 0; i < (s->gamma ? 1 : s->in) * WIDTH; i++) factor[i] *= f;
        for (i = 0; i < WIDTH; i++) offset[i] *= f;
    }
}

/* In batches as in training, with the noise of training. Running statistics and noise move: to be
   called last. */
static int test_as_trained(trial *t)
{
    const training_between noise = {t, noise_forward, noise_backward};
    double hits = 0;
    size_t at, n;
    int rc = NRM_OK;
    for (at = 0; at < test_set.n && rc >= 0; at += n) {
        const nrm_real *x = test_set.x + at * INPUTS;
        nrm_acc part = 0;
        n = test_set.n - at < BATCH ? test_set.n - at : BATCH;
        rc = t->kind == ONLY_NOISE ? training_forward(t->mlp, x, n, &noise)
                                   : nrm_mlp_forward(t->mlp, x, n, NRM_TRAIN);
        if (rc >= 0) rc = nrm_accuracy(&part, t->mlp->logits, test_set.labels + at, n, CLASSES);
        hits += (double)part * (double)n;
    }
    lab_record(t->r, "test_as_trained", 0, hits / (double)test_set.n);
    return rc;
}

static int end(trainer *t)
{
    trial *k = trial_of(t);
    t->net->probe = NULL;
    record_run(k);
    record_accuracy(k, t->step);
    lab_record(t->run, "test_infer", 0, trainer_accuracy(t, &test_set, NULL));
    if (k->kind == NOISY || k->kind == ONLY_NOISE) {
        const size_t bytes = t->net->n_params * sizeof *t->net->params;
        memcpy(t->net->grads, t->net->params, bytes);       /* needed no more */
        stretch(k, (1 + t->net->spec.noise.scale_max) / 2); /* NB.6 */
        lab_record(t->run, "test_factor", 0, trainer_accuracy(t, &test_set, NULL));
        memcpy(t->net->params, t->net->grads, bytes);
    }
    return test_as_trained(k) < 0 ? -1 : 0;
}

static int run(lab_run *r)
{
    static trial k; /* a run has a process of its own */
    const trainer_plan plan =
        trainer_plan_of(.network = network_of, .begin = begin, .learn = learn, .after = after,
                        .end = end, .set = &train_set, .batch = BATCH,
                        .steps = r->quick ? 16 : STEPS, .context = &k);
    k.r = r;
    k.net = (int)(r->arm / KINDS);
    k.kind = (int)(r->arm % KINDS);
    k.rows = r->quick ? BATCH : PROBED;
    return trainer_run(r, &plan);
}

/* ---- verdicts -------------------------------------------------------------------------------- */

/* Of a claim on one of the networks, c->a is the first arm of its four kinds. */
static const char *percent(lab_report *r, size_t arm, const char *series)
{
    return lab_format(r, "%s %%", lab_pm(r, lab_times(lab_all(r, arm, series, 0), 100), 1));
}

/* Two comparisons for each layer: noisy above none, none above batch norm. */
static void judge_moves(lab_report *r, const lab_claim *c)
{
    const size_t hidden = networks[c->a / KINDS].hidden;
    stats_finding part[2 * DEEPEST];
    double mean[KINDS];
    size_t l, kind;
    for (l = 0; l < hidden; l++) {
        const lab_numbers none = lab_all(r, c->a + NONE, c->series, (double)l + 1);
        part[2 * l] = lab_more(lab_all(r, c->a + NOISY, c->series, (double)l + 1), none, 1);
        part[2 * l + 1] = lab_more(none, lab_all(r, c->a + NORMED, c->series, (double)l + 1), 1);
    }
    for (kind = 0; kind < KINDS; kind++)
        mean[kind] = lab_average(lab_mean_over(r, c->a + kind, c->series, 1, DEEPEST));
    lab_verdict(r, c, stats_together(part, 2 * hidden), "means over the layers; judged in each",
                "%.3g, %.3g, %.3g", mean[NOISY], mean[NONE], mean[NORMED]);
}

static void judge_speed(lab_report *r, const lab_claim *c)
{
    const lab_numbers noisy = lab_all(r, c->a + NOISY, "early", 0);
    const lab_numbers none = lab_all(r, c->a + NONE, "early", 0);
    const lab_numbers batch = lab_all(r, c->a + NORMED, "early", 0);
    const lab_numbers half = lab_times(lab_calc(batch, '-', none), 0.5);
    const int near = stats_reproduced(lab_less(lab_calc(batch, '-', noisy), half, 1));
    lab_verdict(r, c, lab_more(noisy, none, near), "", "%s, none %s, batch norm %s",
                percent(r, c->a + NOISY, "early"), percent(r, c->a + NONE, "early"),
                percent(r, c->a + NORMED, "early"));
}

/* Noise prevents the training where the accuracy is above the limit without it, and below with it:
   the smaller of the two distances, seed by seed. */
static void judge_broken(lab_report *r, const lab_claim *c)
{
    const lab_numbers without = lab_all(r, c->a + NONE, "final", 0);
    lab_numbers with = lab_all(r, c->a + ONLY_NOISE, "final", 0);
    size_t s;
    for (s = 0; s < with.n; s++) with.of[s] = stats_smaller(without.of[s] - 0.2, 0.2 - with.of[s]);
    lab_verdict(r, c, lab_above(with, 0),
                lab_describe(without).mean >= 0.2 ? "" : "without noise it does not train either",
                "%s; without noise %s", percent(r, c->a + ONLY_NOISE, "final"),
                percent(r, c->a + NONE, "final"));
}

static void judge_alike(lab_report *r, const lab_claim *c)
{
    const lab_numbers noisy = lab_all(r, c->a + NOISY, "final", 0);
    lab_verdict(r, c,
                lab_less(lab_map(lab_calc(noisy, '-', lab_all(r, c->a + NORMED, "final", 0)), fabs),
                         lab_map(lab_calc(noisy, '-', lab_all(r, c->a + NONE, "final", 0)), fabs),
                         1),
                "", "%s; batch norm %s, none %s", percent(r, c->a + NOISY, "final"),
                percent(r, c->a + NORMED, "final"), percent(r, c->a + NONE, "final"));
}

/* How far the weights alone move the moments of the fixed batch: mean over layers and time. */
static lab_numbers gone(lab_report *r, int kind, const char *what)
{
    lab_numbers sum = {0};
    int k;
    for (k = 0; k < SHOWN; k++) {
        const lab_numbers one = lab_mean_over(
            r, ARM(RELU6, kind), lab_format(r, "%s_%zu", what, shown[k] + 1), 1, STEPS);
        sum = k ? lab_calc(sum, '+', one) : one;
    }
    return lab_times(sum, 1.0 / SHOWN);
}

static void judge_figure1(lab_report *r, const lab_claim *c)
{
    static const char *const what[2] = {"weights_mean", "weights_var"};
    stats_finding part[2];
    const char *text[2];
    int i;
    for (i = 0; i < 2; i++) {
        const lab_numbers none = gone(r, NONE, what[i]), batch = gone(r, NORMED, what[i]);
        part[i] = lab_less(none, lab_times(batch, 2), 1);
        text[i] = lab_format(r, "%s against %s", lab_pm(r, none, 3), lab_pm(r, batch, 3));
    }
    lab_verdict(r, c, stats_together(part, 2), "", "means %s; variances %s", text[0], text[1]);
}

/* What batch norm gains, in points. */
static lab_numbers gain(const lab_report *r, size_t net, const char *series)
{
    return lab_times(lab_calc(lab_all(r, ARM(net, NORMED), series, 0), '-',
                              lab_all(r, ARM(net, NONE), series, 0)),
                     100);
}

/* c->limit: how many times as large it is to be; 0: no matter. */
static void judge_depth(lab_report *r, const lab_claim *c)
{
    const lab_numbers shallow = gain(r, RELU6, c->series), deep = gain(r, RELU13, c->series);
    const int met =
        c->limit <= 0 || lab_describe(deep).mean > c->limit * lab_describe(shallow).mean;
    lab_verdict(r, c, lab_more(deep, shallow, met), "",
                "batch norm gains %s points with 6 layers, %s with 13", lab_pm(r, shallow, 1),
                lab_pm(r, deep, 1));
}

#define SANTURKAR "Santurkar et al. 2018, "
#define NOTES "Chinese notes on batch norm"
#define KNOWN "none before the run, whose curves were known"

/* clang-format off */
#define OF_EACH(one, two, three, text, source, paper, criterion, relu6, sigmoid6, relu13, how,     \
                ...)                                                                               \
    {"13" one, text ": 6 x 100 ReLU", source, paper, criterion, "trial runs: " relu6,              \
     how(RELU6, __VA_ARGS__)},                                                                     \
    {"13" two, text ": 6 x 100 sigmoid", source, paper, criterion, "trial runs: " sigmoid6,        \
     how(SIGMOID6, __VA_ARGS__)},                                                                  \
    {"13" three, text ": 13 x 100 ReLU", source, paper, criterion, "trial runs: " relu13,          \
     how(RELU13, __VA_ARGS__)}
#define BY(net, ...) .a = ARM(net, 0), __VA_ARGS__
#define AT_END(net, of)                                                                            \
    LAB_PARTS({LAB_MORE, ARM(net, NOISY), ARM(net, NONE), of}), .say = PERCENT(1, 2)
#define WITH_FACTOR(net, of)                                                                       \
    LAB_PARTS({LAB_MORE, ARM(net, NOISY), ARM(net, NOISY), of, .other = "test_infer"},             \
              {.a = ARM(net, NORMED), .series = "test_infer"}),                                    \
        .say = PERCENT(1, 2) "; batch norm $3[100 1] %"
#define PERCENT(a, b) "$" #a "[100 1] % against $" #b "[100 1] %"
static const lab_claim claims[] = {
    OF_EACH("a", "b", "c", "With noise the means move more from step to step than without a norm, "
            "and with batch norm less", SANTURKAR "Fig. 2 and 8",
            "shown in figures: noisy > standard > batch norm (VGG)",
            "noisy > none > batch norm in every hidden layer",
            "0.33, 0.16 to 0.22, 0.000 (1 seed)", "not measured",
            "0.33, about 0.1, 0 (another program, 2 seeds)",
            BY, .judge = judge_moves, .series = "run_mean"),
    OF_EACH("d", "e", "f", "The same of the variances", SANTURKAR "Fig. 8",
            "shown in a figure: noisy > standard > batch norm (VGG)",
            "noisy > none > batch norm in every hidden layer",
            "0.20, 0.26 to 0.70, 0.000 (1 seed): expected to fail", "not measured",
            "not measured", BY, .judge = judge_moves, .series = "run_var"),
    OF_EACH("g", "h", "i", "With noise training is faster than without a norm, and nearly as fast "
            "as with batch norm", SANTURKAR "Fig. 2",
            "shown in a figure: batch norm and noisy far above standard",
            "mean training accuracy of steps 1 to 500: noisy > none, and batch - noisy < (batch - "
            "none)/2, both paired over seeds", "0.897, 0.871, batch norm 0.917 (1 seed)",
            "0.96, 0.10, 0.96 after 2000 steps (2 seeds)",
            "0.80, 0.27, 0.857 at step 100 (2 seeds)", BY, .judge = judge_speed),
    OF_EACH("j", "k", "l", "At the end the training accuracy is higher with noise than without a "
            "norm", SANTURKAR "Fig. 2", "shown in a figure: noisy far above standard",
            "mean training accuracy of the last 250 steps: noisy > none",
            "0.971 against 0.980 (2 seeds): expected to fail", "0.96 against 0.10 (2 seeds)",
            "0.963 against 0.978 (2 seeds): expected to fail", AT_END, "final"),
    OF_EACH("m", "n", "o", "The same noise without a norm prevents training",
            SANTURKAR "section 2.2", "\"prevents it from training entirely\"",
            "training accuracy of the last 250 steps: below 0.2 with noise, above it without",
            "0.973 (2 seeds): expected to fail", "0.10 (2 seeds)",
            "0.959 (2 seeds): expected to fail", BY, .judge = judge_broken),
    OF_EACH("p", "q", "r", "With noise it ends largely as with batch norm",
            "a lecture-style post on how batch norm helps; " NOTES,
            "\"largely similar\"; no obvious difference (read off Fig. 2)",
            "last 250 steps: |noisy - batch| < |noisy - none|",
            "0.971; 0.985, 0.980 (2 seeds): expected to fail", "0.96; 0.96, 0.10 (2 seeds)",
            "0.963; 0.977, 0.978 (2 seeds): expected to fail", BY, .judge = judge_alike),
    OF_EACH("s", "t", "u",
            "Tested without noise, the noisy network suffers from the missing factor 1.125", "ours",
            "not discussed", "test accuracy is higher with the norms' outputs times 1.125",
            "0.978 against 0.962 (1 seed)", "none", "none", WITH_FACTOR, "test_factor"),
    {"13v",
     "With and without batch norm the distributions hardly differ in how far they go: 6 x 100 ReLU",
     SANTURKAR "Fig. 1", "ridges of two layers of VGG, no numbers", "moves of mean and variance "
     "since the start, fixed batch, mean over units, layers and time: none <= 2 batch norm, "
     "paired, for both",
     "no trial runs; written after the run, before this was computed: expected to fail",
     .judge = judge_figure1},
    {"13w", "Without batch norm shallow networks suffer little, deep ones are hard to train: 6 and "
     "13 layers of ReLU", NOTES, "no numbers, nor how deep is deep",
     "training accuracy, mean of steps 1 to 500, batch - none: larger with 13 layers, paired, and "
     "in the mean more than 3 times as large, else partly; written with the curves known",
     KNOWN ": a gap with 13 layers, a small one with 6", .judge = judge_depth, .series = "early",
     .limit = 3},
    {"13x", "... and deep ones do not converge easily: the same at the end", NOTES,
     "no numbers, nor how deep is deep", "the same over the last 250 steps: batch - none larger "
     "with 13 layers, paired; written with the curves known", KNOWN ": hardly a gap at the end",
     .judge = judge_depth, .series = "final"},
    {"13y", "Batch norm makes a network of sigmoids trainable that is not trainable without",
     "Ioffe & Szegedy 2015, section 4.2.2",
     "ImageNet, Inception with sigmoid: 69.8 % with batch norm, never above 0.1 % without",
     "training accuracy of the last 250 steps: none below 0.2, batch norm above 0.9, both by the "
     "rule for limits; written with the curves known",
     KNOWN "; of batch norm alone 0.96, none 0.10 (2 seeds)",
     LAB_PARTS({LAB_BELOW, ARM(SIGMOID6, NONE), .series = "final", .limit = 0.2},
               {LAB_ABOVE, ARM(SIGMOID6, NORMED), .series = "final", .limit = 0.9},
               {.a = ARM(SIGMOID6, NORMED), .series = "test_infer"},
               {.a = ARM(SIGMOID6, NONE), .series = "test_infer"}),
     .say = "$2[100 1] % with, $1[100 1] % without; test $3[100 1] % and $4[100 1] %",
     .remark = "3000 steps, one learning rate"}};
/* clang-format on */

/* Factors and offsets of the noise without a norm have the bits of noisy batch norm's, whose
   outputs are the offsets alone where γ is 0. */
static void check_noise(lab_report *r)
{
    enum { N = 200 };
    const nrm_noise noise = nrm_noise_paper();
    const nrm_real gamma = 0;
    nrm_real z[N] = {0}, scale[N], expected[N], factors[N];
    nrm_acc mean, rstd;
    nrm_rng rng, same;
    nrm_rng_seed(&rng, 1, 1);
    same = rng;
    (void)nrm_noisy_batchnorm_forward(expected, factors, &mean, &rstd, NULL, z, &gamma, NULL,
                                      &noise, &same, NRM_TRAIN, NRM_EPS, N, 1, 1);
    add_noise(z, scale, &noise, &rng, N, 1);
    lab_check(r, !memcmp(z, expected, sizeof z) && !memcmp(scale, factors, sizeof scale),
              "noise without a norm is drawn as noisy batch norm draws it", "bits of %d draws", N);
}

/* ---- figures --------------------------------------------------------------------------------- */

static plot_style look_of(size_t arm)
{
    static const char *const norm[KINDS] = {"none", "batch", "noisy"};
    const size_t kind = arm % KINDS;
    plot_style style = kind == ONLY_NOISE ? plot_dashdot(PLOT_INK) : lab_style(norm[kind]);
    if (kind == NOISY) style.width = 1.7;
    return style;
}

/* One unit's inputs in the layer panel->other, a ridge for each time. */
static void draw_ridges(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    plot_style style = look_of(panel->arm);
    size_t at;
    style.dash = PLOT_SOLID;
    for (at = 0; at <= STEPS; at++) {
        const lab_series d =
            lab_get(r, panel->arm, 0, lab_format(r, "ridge_%zu_%04zu", panel->other, at));
        if (d.n > 0)
            plot_ridge(p, at % 1000 == 0 ? lab_format(r, "%zu", at) : "", d.x, d.y, d.n, style);
    }
}

/* The error of each arm of a network, tested in three ways. */
static void draw_tests(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    static const char *const series[3] = {"test_as_trained", "test_infer", "test_factor"};
    static const char *const name[3] = {"as in training", "running statistics", "and times 1.125"};
    static const plot_color colors[3] = {PLOT_GREY, PLOT_BLUE, PLOT_ORANGE};
    size_t i, kind;
    for (i = 0; i < 3; i++) {
        double x[KINDS], y[KINDS], lo[KINDS], hi[KINDS];
        for (kind = 0; kind < KINDS; kind++) {
            const stats_summary s = lab_summary(r, panel->arm + kind, series[i], 0);
            x[kind] = (double)kind + 0.2 * ((double)i - 1);
            y[kind] = 1 - s.mean;
            lo[kind] = y[kind] - s.sd;
            hi[kind] = y[kind] + s.sd;
        }
        plot_errorbars(p, name[i], x, y, lo, hi, KINDS,
                       plot_marked(colors[i], PLOT_CIRCLE + (int)i));
    }
}

/* clang-format off */
#define ALL_KINDS(net, of)                                                                         \
    .line = {{ARM(net, NONE), of, .to = ARM(net, ONLY_NOISE)}}
#define ACCURACY(least, steps)                                                                     \
    .x = "steps", .y = "training accuracy", .x_range = {0, steps}, .y_range = {least, 1}
#define RIDGES(kind, name, layer, ...)                                                             \
    {.axes = {.heading = name ", layer " #layer, .overlap = 3, __VA_ARGS__},                       \
     .draw = draw_ridges, .arm = ARM(RELU6, kind), .other = layer}
#define THREE_RIDGES(layer, first, ...)                                                            \
    RIDGES(NONE, "no norm", layer, .col = first, .y = "steps", __VA_ARGS__),                       \
    RIDGES(NORMED, "batch norm", layer, .col = first + 1, .frame = 0, __VA_ARGS__),                \
    RIDGES(NOISY, "noisy", layer, .col = first + 2, .frame = 0, __VA_ARGS__)
#define UNIT_21 .x = "input of ReLU, unit 21"
static const lab_panel figure_2[] = {
    {.axes = {.heading = "Training accuracy, first 500 steps", ACCURACY(0, 500),
              .legend = PLOT_LEGEND_BOTTOM_RIGHT}, ALL_KINDS(RELU6, "accuracy")},
    {.axes = {.row = 1, .heading = "All steps, enlarged", ACCURACY(0.92, STEPS),
              .legend = PLOT_LEGEND_NONE}, ALL_KINDS(RELU6, "accuracy")},
    THREE_RIDGES(3, 1, .rows = 2, UNIT_21)};
static const lab_panel ridges[] = {THREE_RIDGES(1, 0, .x = ""),
                                   THREE_RIDGES(6, 0, .row = 1, UNIT_21)};

/* In the layout of Fig. 8; and what the weights alone have moved. */
#define MOVES(place, of, how, low, high)                                                           \
    {.axes = {.row = place, .heading = "means, " how, .x = "steps", .x_range = {0, STEPS},         \
              .y = "|Δμ|, mean of units", .y_scale = PLOT_LOG10, .y_range = {low, high},           \
              .legend = PLOT_LEGEND_DIRECT}, ALL_KINDS(RELU6, of "_mean_3")},                      \
    {.axes = {.row = place, .col = 1, .heading = "variances, " how, .x = "steps",                  \
              .x_range = {0, STEPS}, .y = "|Δσ²|, mean of units", .y_scale = PLOT_LOG10,           \
              .y_range = {low, 10 * high}, .legend = PLOT_LEGEND_DIRECT},                          \
     ALL_KINDS(RELU6, of "_var_3")}

static const lab_panel drift[] = {MOVES(0, "step", "from batch to batch", 1e-4, 1),
                                  MOVES(1, "start", "from the start", 1e-2, 10),
                                  MOVES(2, "weights", "by the weights alone", 1e-2, 10)};

static const double kind_at[KINDS] = {0, 1, 2, 3};
static const char *const kind_name[KINDS] = {"none", "batch", "noisy", "noise"};

/* A row of panels, one for each network. */
#define EACH_NETWORK(PANEL, ...)                                                                   \
    PANEL(RELU6, "6 x 100 ReLU", 6, __VA_ARGS__),                                                  \
    PANEL(SIGMOID6, "6 x 100 sigmoid", 6, __VA_ARGS__),                                            \
    PANEL(RELU13, "13 x 100 ReLU", 13, __VA_ARGS__)
#define TRAINED(net, name, hidden, place)                                                          \
    {.axes = {.row = place, .col = net, .heading = name, ACCURACY(0, STEPS)},                      \
     ALL_KINDS(net, "accuracy")}
#define MARKED(net, kind, of, shape)                                                               \
    {ARM(net, kind), of, .style = {.marker = PLOT_##shape}, .how = LAB_MEAN}
#define OVER_LAYERS(net, name, hidden, place, of, label, title)                                    \
    {.axes = {.row = place, .col = net, .heading = title(name), .x = "hidden layer",               \
              .x_range = {0.6, hidden + 0.4}, .y = label ", mean of the run",                      \
              .y_scale = PLOT_LOG10},                                                              \
     .line = {MARKED(net, NONE, of, SQUARE), MARKED(net, NORMED, of, CIRCLE),                      \
              MARKED(net, NOISY, of, TRIANGLE), MARKED(net, ONLY_NOISE, of, DIAMOND)}}
#define NAMED(name) name
#define UNNAMED(name) NULL
#define TESTED(net, name, hidden, place)                                                           \
    {.axes = {.row = place, .col = net, .heading = name, .x_range = {-0.5, 3.5},                   \
              .x_ticks = kind_at, .x_names = kind_name, .x_count = KINDS, .y = "test error",       \
              .y_scale = PLOT_LOG10, .y_range = {0.015, 1}},                                       \
     .draw = draw_tests, .arm = ARM(net, 0)}
static const lab_panel of_networks[] = {
    EACH_NETWORK(TRAINED, 0), EACH_NETWORK(OVER_LAYERS, 1, "run_mean", "|Δμ|", UNNAMED)};
static const lab_panel of_moves[] = {
    EACH_NETWORK(OVER_LAYERS, 0, "run_var", "|Δσ²|", NAMED),
    EACH_NETWORK(OVER_LAYERS, 1, "run_relative", "|Δμ|/σ", UNNAMED)};
static const lab_panel of_tests[] = {EACH_NETWORK(TESTED, 0)};

static const lab_page pages[6] = {
    {"Noise that moves the inputs of ReLU slows batch norm down only a little", NULL, 1000, 0.86,
     .widths = {1.7, 1, 1, 1}, LAB_PANELS(figure_2)},
    {"Without a norm inputs of ReLU spread, most in the last layer; with noise they jump", "ridges",
     1000, 0.86, .settings = "6 x 100 ReLU, one unit, a fixed batch of 1000 images every 200 "
     "steps, with the noise of training", .seeds = 1, LAB_PANELS(ridges)},
    {"With noise inputs move as without a norm, and weights as with batch norm", "drift", 1560,
     .settings = "6 x 100 ReLU, layer 3, Glorot weights, SGD with learning rate 0.1, batches of "
     "128; noise (0.5, 1.25, 0.1, 0.1) before the activation; e, f: a fixed batch, no noise",
     .seeds = 5, LAB_PANELS(drift)},
    {"In all three networks noise moves the means more than no norm does, and training goes on",
     "networks", 1000, 0.86, .shared_legend = 1, LAB_PANELS(of_networks)},
    {"With ReLU variances mostly move more without a norm than with noise, with sigmoid less",
     "variances", 1000, 0.86, .shared_legend = 1, LAB_PANELS(of_moves)},
    {"In the test the noisy network is as good as batch norm once it is multiplied by 1.125",
     "tests", 640, 0.86, .shared_legend = 1, LAB_PANELS(of_tests)}};

LAB_PROGRAM("13_noisy_batch_norm", "Does batch norm help because it keeps distributions steady?",
           "Hidden layers of 100 units, Glorot weights, pixels standardized, SGD with learning "
           "rate 0.1, batches of 128, 3000 steps; noise (0.5, 1.25, 0.1, 0.1) before the "
           "activation", .revision = 4, .uses = LAB_USES_DATA + LAB_TWICE, .prepare = prepare,
           .look = look_of, .after = check_noise)
/* clang-format on */
