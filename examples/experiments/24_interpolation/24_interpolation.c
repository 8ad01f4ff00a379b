/* 24_interpolation: what lies between the solutions that different optimizers find? (README.md)

   Four optimizers start from the same weights and see the same batches; SGD does so twice more,
   with other batches and from another start. Between each two solutions A and B loss and error are
   taken at (1-a) A + a B, all parameters alike, and between each three on a triangle. Batch norm
   uses the statistics of these images at every point. To explain 24b: the curve between A and B
   after every hidden unit's weights in B were scaled to the length that they have in A, which does
   not change what B computes. */
#include "lab/experiment.h"

#define BARRIER_LEAST 0.01 /* of the worse end's loss: less is called none */

enum { HIDDEN = 2, WIDTH = 64, BATCH = 128, EPOCHS = 3, IMAGES = 5000 };
enum { PART = 20, BEYOND = 4, POINTS = 29 }; /* of a line: points from a = -4/20 to 24/20 */
enum { INSIDE = 21, SIDE = 21 };             /* points at 0 <= a <= 1; of a triangle's side */
enum { OTHER_SEED = 1000 };                  /* of the controls: added to the seed */

/* ---- arms, optimizers, pairs ----------------------------------------------------------------- */

enum { NONE, BATCH_NORM, ARMS };

static const lab_arm arms[ARMS] = {{"none", "no norm", 9, 20}, {"batch", "batch norm", 12, 20}};

enum { SGD, MOMENTUM, RMSPROP, ADAM, OTHER_BATCHES, OTHER_START, SOLUTIONS, SCALED = SOLUTIONS };

static const char *const solution_name[SOLUTIONS] = {
    "SGD", "momentum", "RMSprop", "Adam", "SGD, other batches", "SGD, other start"};

typedef struct pair {
    const char *loss; /* series */
    size_t a, b;
} pair;

enum { PAIRS = 8, OF_OPTIMIZERS = 6 }; /* the last two are the controls */

static const pair pairs[PAIRS] = {{"loss/sgd-momentum", SGD, MOMENTUM},
                                  {"loss/sgd-rmsprop", SGD, RMSPROP},
                                  {"loss/sgd-adam", SGD, ADAM},
                                  {"loss/momentum-rmsprop", MOMENTUM, RMSPROP},
                                  {"loss/momentum-adam", MOMENTUM, ADAM},
                                  {"loss/rmsprop-adam", RMSPROP, ADAM},
                                  {"loss/sgd-batches", SGD, OTHER_BATCHES},
                                  {"loss/sgd-start", SGD, OTHER_START}};

typedef struct triple {
    const char *loss;
    size_t corner[3];
} triple;

enum { TRIPLES = 4 };

static const triple triples[TRIPLES] = {{"loss/sgd-momentum-rmsprop", {SGD, MOMENTUM, RMSPROP}},
                                        {"loss/sgd-momentum-adam", {SGD, MOMENTUM, ADAM}},
                                        {"loss/sgd-rmsprop-adam", {SGD, RMSPROP, ADAM}},
                                        {"loss/momentum-rmsprop-adam", {MOMENTUM, RMSPROP, ADAM}}};

LAB_SETS(train, test, 0, 0, DATASET_STD);

/* ---- training -------------------------------------------------------------------------------- */

static const double rate[SOLUTIONS] = {0.1, 0.01, 0.001, 0.001, 0.1, 0.1};

typedef struct solver { /* the plan's context */
    size_t solution, max_batch;
    nrm_real *squares; /* RMSprop's, of each parameter, 0 before */
} solver;

static nrm_mlp_spec network(trainer *t)
{
    const solver *how = (const solver *)t->plan->context;
    const int norm = t->run->arm == BATCH_NORM ? NRM_BATCH_NORM : NRM_NO_NORM;
    nrm_mlp_spec spec = training_plain(t->layer, HIDDEN, WIDTH, NRM_RELU, norm);
    spec.max_batch = how->max_batch;
    spec.optimizer = how->solution == ADAM ? NRM_ADAM : NRM_SGD;
    spec.heavy_ball = (nrm_real)(how->solution == MOMENTUM ? 0.9 : 0);
    spec.lr = (nrm_real)rate[how->solution];
    return spec;
}

/* RMSprop: a step against the gradient, divided by the root of its running mean square. */
static int learn(trainer *t, nrm_acc *loss)
{
    const double keep = 0.9, eps = 1e-8, lr = (double)t->net->spec.lr;
    const solver *how = (const solver *)t->plan->context;
    const training_order *batch = &t->order;
    nrm_real *v = how->squares;
    size_t i;
    int rc;
    if (how->solution != RMSPROP)
        return nrm_mlp_train_step(t->net, loss, batch->x, batch->labels, batch->count);
    rc = nrm_mlp_gradient(t->net, loss, batch->x, batch->labels, batch->count, NRM_TRAIN);
    for (i = 0; i < t->net->n_params; i++) {
        const double g = (double)t->net->grads[i];
        v[i] = (nrm_real)(keep * (double)v[i] + (1 - keep) * g * g);
        t->net->params[i] -= (nrm_real)(lr * g / (sqrt((double)v[i]) + eps));
    }
    return rc;
}

/* ---- between solutions ----------------------------------------------------------------------- */

typedef struct solutions {
    size_t n, images;                    /* parameters; images to evaluate with */
    nrm_real *start, *at[SOLUTIONS + 1]; /* [n] each; the last is a scaled one  */
    trainer t;                           /* to evaluate with                    */
    trainer_plan plan;
    solver how;
    double from_start[SOLUTIONS], mean_barrier; /* distances; of the pairs of optimizers */
} solutions;

/* Loss and error at (1 - u - v) a + u b + v c, batch norm with the statistics of these images. */
static int evaluate(solutions *s, const size_t corner[3], double u, double v, double *loss,
                    double *error)
{
    const nrm_real *a = s->at[corner[0]], *b = s->at[corner[1]], *c = s->at[corner[2]];
    nrm_mlp *net = s->t.net;
    nrm_acc value = 0, right = 0;
    size_t i;
    int rc;
    for (i = 0; i < s->n; i++)
        net->params[i] =
            (nrm_real)((1 - u - v) * (double)a[i] + u * (double)b[i] + v * (double)c[i]);
    rc = nrm_mlp_forward(net, train.x, s->images, NRM_TRAIN);
    if (rc >= 0)
        rc = nrm_cross_entropy_forward(&value, NULL, net->logits, train.labels, s->images,
                                       DATASET_CLASSES);
    if (rc >= 0) rc = nrm_accuracy(&right, net->logits, train.labels, s->images, DATASET_CLASSES);
    *loss = (double)value;
    *error = 1 - (double)right;
    return rc < 0 ? -1 : 0;
}

static int make_solution(solutions *s, lab_run *run, size_t k)
{
    const size_t steps = run->quick ? 8 : EPOCHS * training_steps(train.n, BATCH);
    solver how = {k, run->quick ? 500 : 1000, s->at[SCALED]};
    lab_run other = *run; /* its seed is that of the batches */
    const trainer_plan plan =
        trainer_plan_of(.network = network, .set = &train, .batch = BATCH, .learn = learn,
                        .seed = run->seed + (k == OTHER_START ? OTHER_SEED : 0), .context = &how);
    trainer t;
    int failed;
    other.seed += k == OTHER_BATCHES ? OTHER_SEED : 0;
    memset(how.squares, 0, s->n * sizeof *how.squares);
    failed = trainer_open(&t, &other, &plan) || trainer_steps(&t, steps) || t.status != NRM_OK;
    if (!failed) memcpy(s->at[k], t.net->params, s->n * sizeof *s->start);
    if (!failed && run->arm == BATCH_NORM)
        failed = training_reestimate(t.net, train.x, s->images) < 0;
    if (!failed)
        lab_record(run, "test_error", (double)k, 1 - (double)trainer_accuracy(&t, &test, NULL));
    lab_progress(run, 0.5 * (double)(k + 1) / SOLUTIONS);
    trainer_close(&t);
    return failed;
}

static int make_solutions(solutions *s, lab_run *run)
{
    size_t k;
    int failed = 0;
    memset(s, 0, sizeof *s);
    s->plan = (trainer_plan){.network = network, .set = &train, .batch = 1, .context = &s->how};
    s->images = s->how.max_batch = run->quick ? 200 : IMAGES;
    if (trainer_open(&s->t, run, &s->plan)) return -1;
    s->n = s->t.net->n_params;
    s->start = (nrm_real *)malloc((SOLUTIONS + 2) * s->n * sizeof *s->start);
    if (!s->start) return -1;
    memcpy(s->start, s->t.net->params, s->n * sizeof *s->start);
    for (k = 0; k <= SOLUTIONS; k++) s->at[k] = s->start + (k + 1) * s->n;
    for (k = 0; k < SOLUTIONS && !failed; k++) failed = make_solution(s, run, k);
    return failed;
}

typedef struct line { /* loss and error at its points */
    double loss[POINTS], error[POINTS];
} line;

static double place(size_t k) /* a of point k */
{
    return ((double)k - BEYOND) / PART;
}

static int walk(solutions *s, size_t a, size_t b, line *l)
{
    const size_t ends[3] = {a, b, b};
    size_t k;
    for (k = 0; k < POINTS; k++)
        if (evaluate(s, ends, place(k), 0, &l->loss[k], &l->error[k])) return -1;
    return 0;
}

static double worse_end(const line *l)
{
    return stats_larger(l->loss[BEYOND], l->loss[BEYOND + PART]);
}

/* The largest loss at 0 <= a <= 1 less that of the worse end. */
static double barrier(const line *l)
{
    return stats_describe(l->loss + BEYOND, INSIDE).max - worse_end(l);
}

/* out = b with the weights into each hidden unit scaled to the length that they have in a. */
static void same_lengths(const solutions *s, nrm_real *out, const nrm_real *a, const nrm_real *b)
{
    size_t l, i, j;
    memcpy(out, b, s->n * sizeof *out);
    for (l = 0; l < HIDDEN; l++) {
        const nrm_mlp_state *state = &s->t.net->state[l];
        const size_t first = (size_t)(state->W - s->t.net->params);
        for (j = 0; j < WIDTH; j++) {
            double aa = 0, bb = 0;
            for (i = 0; i < state->in; i++) {
                const size_t at = first + i * WIDTH + j;
                aa += (double)a[at] * (double)a[at];
                bb += (double)b[at] * (double)b[at];
            }
            for (i = 0; i < state->in && bb > 0; i++)
                out[first + i * WIDTH + j] *= (nrm_real)sqrt(aa / bb);
        }
    }
}

/* Row by row: i/20 of the second corner, j/20 of the third. x counts the points. */
static int fill(solutions *s, lab_run *run, const triple *of)
{
    double loss, error;
    size_t i, j, count = 0;
    for (i = 0; i < SIDE; i++)
        for (j = 0; i + j < SIDE; j++, count++) {
            const double u = (double)i / (SIDE - 1), v = (double)j / (SIDE - 1);
            if (evaluate(s, of->corner, u, v, &loss, &error)) return -1;
            lab_record(run, of->loss, (double)count, loss);
        }
    return 0;
}

/* Distance and line of the solutions of pair i. With batch norm, and between optimizers, also the
   line to the scaled end: its barrier, and how far scaling has moved the loss there. */
static int run_pair(solutions *s, lab_run *run, size_t i)
{
    const size_t a = pairs[i].a, b = pairs[i].b;
    const double apart = training_distance(s->at[a], s->at[b], s->n);
    line plain, scaled;
    size_t k;
    lab_record(run, "apart", (double)i, apart);
    lab_record(run, "apart_by_start", (double)i,
               apart / ((s->from_start[a] + s->from_start[b]) * 0.5));
    if (walk(s, a, b, &plain)) return -1;
    for (k = 0; k < POINTS; k++) {
        lab_record(run, pairs[i].loss, place(k), plain.loss[k]);
        if (k == BEYOND || k == BEYOND + PART / 2 || k == BEYOND + PART)
            lab_record_as(run, place(k), plain.error[k], "error%s", strchr(pairs[i].loss, '/'));
    }
    lab_record(run, "barrier", (double)i, barrier(&plain));
    lab_record(run, "barrier_by_end", (double)i, barrier(&plain) / worse_end(&plain));
    if (i >= OF_OPTIMIZERS) return 0;
    s->mean_barrier += barrier(&plain) / OF_OPTIMIZERS;
    if (run->arm == NONE) return 0;
    same_lengths(s, s->at[SCALED], s->at[a], s->at[b]);
    if (walk(s, a, SCALED, &scaled)) return -1;
    lab_record(run, "scaled_barrier", (double)i, barrier(&scaled));
    lab_record(run, "moved", (double)i,
               fabs(plain.loss[BEYOND + PART] / scaled.loss[BEYOND + PART] - 1));
    return 0;
}

static int run(lab_run *r)
{
    solutions s;
    size_t k;
    int failed = make_solutions(&s, r);
    for (k = 0; k < SOLUTIONS && !failed; k++) {
        s.from_start[k] = training_distance(s.start, s.at[k], s.n);
        lab_record(r, "from_start", (double)k, s.from_start[k]);
    }
    for (k = 0; k < PAIRS && !failed; k++) {
        failed = run_pair(&s, r, k);
        lab_progress(r, 0.5 + 0.5 * (double)(k + 1) / PAIRS);
    }
    lab_record(r, "mean_barrier", 0, s.mean_barrier);
    for (k = 0; k < TRIPLES && r->first && !failed; k++) failed = fill(&s, r, &triples[k]);
    free(s.start);
    trainer_close(&s.t);
    return failed;
}

/* ---- what came out --------------------------------------------------------------------------- */

/* Mean over 0 <= a <= 1 of the loss's standard deviation over seeds divided by its mean. */
static lab_numbers unlikeness(lab_report *r, size_t arm, size_t k)
{
    const lab_curve c = lab_over_seeds(r, arm, pairs[k].loss);
    lab_numbers mean = {1, {0}};
    size_t i;
    for (i = 0; i < INSIDE; i++) mean.of[0] += c.sd[i + BEYOND] / c.mean[i + BEYOND] / INSIDE;
    return mean;
}

enum { LOSSES, SHAPE, ENDS };
typedef double six_curves[OF_OPTIMIZERS][INSIDE];

/* The losses of seed s at 0 <= a <= 1, and the means of the other seeds'; or these, or the two ends
   alone, over the mean of the ends. */
static void take_curves(const lab_report *r, size_t arm, size_t s, int what, six_curves own,
                        six_curves mean)
{
    const size_t n = lab_seeds(r, arm);
    size_t seed, k, i;
    memset(own, 0, sizeof(six_curves));
    memset(mean, 0, sizeof(six_curves));
    for (seed = 0; seed < n; seed++)
        for (k = 0; k < OF_OPTIMIZERS; k++) {
            const double *loss = lab_get(r, arm, seed, pairs[k].loss).y + BEYOND;
            const double scale = what == LOSSES ? 1 : (loss[0] + loss[INSIDE - 1]) / 2;
            for (i = 0; i < INSIDE; i += what == ENDS ? INSIDE - 1 : 1)
                if (seed == s)
                    own[k][i] = loss[i] / scale;
                else
                    mean[k][i] += loss[i] / scale / ((double)n - 1);
        }
}

/* How far the curves of seed s are from the means of the other seeds' curves, over those means:
   mean over 0 <= a <= 1 and the six pairs. */
static double from_others(const lab_report *r, size_t arm, size_t s)
{
    six_curves own, mean;
    double sum = 0;
    size_t i, k;
    take_curves(r, arm, s, LOSSES, own, mean);
    for (k = 0; k < OF_OPTIMIZERS; k++)
        for (i = 0; i < INSIDE; i++) sum += fabs(own[k][i] - mean[k][i]) / mean[k][i];
    return sum / (OF_OPTIMIZERS * INSIDE);
}

/* The share of the six curves of seed s that are nearest to the other seeds' mean of their pair. */
static double recognized_by(const lab_report *r, size_t arm, size_t s, int what)
{
    six_curves own, mean;
    size_t k, c, i, right = 0;
    take_curves(r, arm, s, what, own, mean);
    for (k = 0; k < OF_OPTIMIZERS; k++) {
        double least = (double)INFINITY;
        size_t nearest = OF_OPTIMIZERS;
        for (c = 0; c < OF_OPTIMIZERS; c++) {
            double far = 0;
            for (i = 0; i < INSIDE; i++) far += fabs(own[k][i] - mean[c][i]);
            if (far < least) nearest = c;
            least = stats_smaller(least, far);
        }
        right += nearest == k;
    }
    return (double)right / OF_OPTIMIZERS;
}

static double recognized(const lab_report *r, size_t arm, size_t s)
{
    return recognized_by(r, arm, s, SHAPE);
}

static double by_ends(const lab_report *r, size_t arm, size_t s)
{
    return recognized_by(r, arm, s, ENDS);
}

typedef struct six { /* of the six pairs: above the limit, how many, and their means */
    stats_finding found;
    unsigned long held;
    double low, high;
} six;

static six six_pairs(lab_report *r, size_t arm, const char *series, double limit)
{
    stats_finding part[OF_OPTIMIZERS];
    six all = {.low = (double)INFINITY};
    size_t k;
    for (k = 0; k < OF_OPTIMIZERS; k++) {
        const lab_numbers value = lab_all(r, arm, series, (double)k);
        part[k] = lab_above(value, limit);
        all.held += stats_reproduced(part[k]) ? 1u : 0u;
        all.low = stats_smaller(all.low, lab_average(value));
        all.high = stats_larger(all.high, lab_average(value));
    }
    all.found = stats_together(part, OF_OPTIMIZERS);
    return all;
}

static void judge_barrier(lab_report *r, const lab_claim *c)
{
    const six all = six_pairs(r, c->a, "barrier_by_end", BARRIER_LEAST);
    lab_verdict(r, c, all.found, "SGD twice from two starts: the barrier that there can be",
                "%lu of 6 pairs; mean barriers %.1f %% to %.1f %% of the worse end's loss; from "
                "another start %.1f times it",
                all.held, 100 * all.low, 100 * all.high, lab_mean(r, c->a, "barrier_by_end", 7));
}

static void judge_consistency(lab_report *r, const lab_claim *c)
{
    const lab_numbers far = lab_each(r, NONE, from_others);
    const lab_numbers near = lab_each(r, BATCH_NORM, from_others);
    double with[OF_OPTIMIZERS], without[OF_OPTIMIZERS];
    size_t k, smaller = 0;
    for (k = 0; k < OF_OPTIMIZERS; k++) {
        with[k] = unlikeness(r, BATCH_NORM, k).of[0];
        without[k] = unlikeness(r, NONE, k).of[0];
        smaller += with[k] < without[k];
    }
    lab_verdict(r, c, lab_less(near, far, smaller >= 5),
                "six pairs share their ends: seeds are what is independent",
                "from the others' mean by %s without, %s with; spread by mean %.3f without, %.3f "
                "with, smaller in %lu of 6 pairs",
                lab_pm(r, far, 3), lab_pm(r, near, 3), stats_mean(without, OF_OPTIMIZERS),
                stats_mean(with, OF_OPTIMIZERS), (unsigned long)smaller);
}

static void judge_places(lab_report *r, const lab_claim *c)
{
    const six without = six_pairs(r, NONE, "apart_by_start", 0.5);
    const six with = six_pairs(r, BATCH_NORM, "apart_by_start", 0.5);
    const stats_finding part[2] = {without.found, with.found};
    lab_verdict(r, c, stats_together(part, 2), "",
                "%lu and %lu of 6 pairs; |A-B| is %.2f to %.2f of the distance without, %.2f to "
                "%.2f with",
                without.held, with.held, without.low, without.high, with.low, with.high);
}

static void judge_shape(lab_report *r, const lab_claim *c)
{
    const lab_numbers share = lab_each(r, c->a, recognized), ends = lab_each(r, c->a, by_ends);
    const double n = (double)share.n;
    stats_finding found = lab_above(share, 1.0 / OF_OPTIMIZERS);
    found.size_met = lab_average(share) >= 0.5;
    lab_verdict(r, c, found,
                lab_format(r, "by the losses of the two ends alone: %.0f",
                           lab_average(ends) * n * OF_OPTIMIZERS),
                "%.0f of %lu curves are nearest to their own pair's; by chance %.0f",
                lab_average(share) * n * OF_OPTIMIZERS, (unsigned long)share.n * OF_OPTIMIZERS, n);
}

#define ABSTRACT "Im, Tao & Branson 2016 (abstract)"
#define NOTES "Im, Tao & Branson 2016 (abstract and notes by others)"
#define NO_NUMBERS "no numbers at hand"
#define CONTROL(arm)                                                                               \
    LAB_PARTS({LAB_MORE, arm, arm, "mean_barrier", .other = "barrier", .other_at = 6}),            \
        .decimals = 4, .say = "$1 between optimizers, $2 with other batches"
#define KNOWN "none; the curves had been seen when the criterion was written"

/* clang-format off */
static const lab_claim claims[] = {
    {"24a", "A barrier separates the solutions of different optimizers, without norm",
     NOTES, NO_NUMBERS,
     "loss between more than 1 % above that of the worse end, seed by seed, for each of six pairs",
     "none before the criterion; then one seed: barriers of 0.003 to 0.012", LAB_TRAINING,
     LAB_SETTING, judge_barrier, .a = NONE},
    {"24b", "... and with batch norm", NOTES, NO_NUMBERS, "the same with batch norm",
     "none before the criterion; then one seed: no barrier in any pair", LAB_TRAINING, LAB_SETTING,
     judge_barrier, .a = BATCH_NORM},
    {"24c", "With batch norm the curves are more alike from start to start", NOTES,
     "\"key\" to the consistency across re-initializations; no numbers at hand", "a seed's curves "
     "are nearer to the means of the other seeds' with batch norm, paired over seeds, and standard "
     "deviation by mean is smaller in 5 of 6 pairs (else partly)", "none", LAB_TRAINING,
     LAB_SETTING, judge_consistency},
    {"24d", "From one start the optimizers end in different places", ABSTRACT,
     "\"different\" minima; no numbers at hand", "|A-B| above half of the mean distance from "
     "the start: seed by seed, each of six pairs, both networks", "none", LAB_TRAINING,
     LAB_SETTING, judge_places},
    {"24e", "The barrier is that of the optimizers, not of chance, without norm",
     ABSTRACT ": \"characteristic of the optimizer\"", NO_NUMBERS,
     "mean barrier of the six pairs above that of SGD twice with other batches", "none",
     LAB_TRAINING, LAB_SETTING, CONTROL(NONE)},
    {"24f", "... and with batch norm", ABSTRACT ": \"characteristic of the optimizer\"",
     NO_NUMBERS, "the same with batch norm", "none", LAB_TRAINING, LAB_SETTING,
     CONTROL(BATCH_NORM)},
    {"24g", "The shape of the curve tells which optimizers it lies between, without norm",
     NOTES, NO_NUMBERS,
     "a seed's curve, over the mean of its ends, is nearest to the other seeds' mean of its own "
     "pair, of six: more often than 1/6, paired over seeds, and in half of all cases. Added after "
     "the run", KNOWN, LAB_TRAINING, LAB_SETTING, judge_shape, .a = NONE},
    {"24h", "... and with batch norm", NOTES, NO_NUMBERS,
     "the same with batch norm. Added after the run", KNOWN, LAB_TRAINING, LAB_SETTING, judge_shape,
     .a = BATCH_NORM}};
/* clang-format on */

/* ---- pages ----------------------------------------------------------------------------------- */

/* panel->arm 0: barriers, 1: distances by that from the start, 2: spreads by the mean. */
static void draw_bars(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    static const char *const short_names[PAIRS] = {"S-M", "S-R", "S-A",       "M-R",
                                                   "M-A", "R-A", "S-S batch", "S-S start"};
    const size_t what = panel->arm, n = what == 0 ? (size_t)OF_OPTIMIZERS + 1 : (size_t)PAIRS;
    double most = 0;
    size_t arm, k;
    plot_categories(p, short_names, (int)n);
    for (arm = 0; arm < 2; arm++) {
        lab_numbers bar[PAIRS];
        for (k = 0; k < n; k++) {
            bar[k] = what == 2 ? unlikeness(r, arm, k) : lab_all(r, arm, panel->series, (double)k);
            if (what == 0) bar[k] = lab_times(bar[k], 100);
            if (arm == BATCH_NORM) most = stats_larger(most, lab_average(bar[k]));
        }
        lab_draw_bars(p, what ? arms[arm].name : NULL, bar, n,
                      plot_solid(arm ? PLOT_BLUE : PLOT_VERMILLION));
    }
    if (what) return;
    plot_hline(p, 100 * BARRIER_LEAST, NULL, plot_thin(PLOT_INK));
    plot_text_in(p, 0.97, 0.93, lab_format(r, "batch norm: at most %.1f %%", most), PLOT_RIGHT,
                 PLOT_BLUE);
}

/* Rows of SIDE, SIDE - 1, ... points. */
static double point(lab_series loss, size_t i, size_t j)
{
    return loss.y[i * SIDE - i * (i - 1) / 2 + j];
}

/* The value at u, v of the triangle's points, linear between them; nan outside. */
static double in_triangle(lab_series loss, double u, double v)
{
    const double n = SIDE - 1, row = floor(u * n), col = floor(v * n);
    const double fu = u * n - row, fv = v * n - col;
    const size_t far = fu + fv > 1; /* the other half of the cell */
    double corner, right, up;
    size_t i, j;
    if (u < 0 || v < 0 || u + v > 1) return (double)NAN;
    i = (size_t)row;
    j = (size_t)col;
    corner = point(loss, i + far, j + far);
    right = point(loss, i + 1, j) - corner;
    up = point(loss, i, j + 1) - corner;
    return corner + (far ? 1 - fv : fu) * right + (far ? 1 - fu : fv) * up;
}

/* White over the corners of the field that are not in the triangle, and its edge. */
static void triangle_edge(plot_panel *p, double height)
{
    const double x[2][3] = {{-0.02, 0, 0.5}, {0.5, 1, 1.02}};
    const double lo[2][3] = {{0, 0, height}, {height, 0, 0}};
    const double hi[3] = {height + 0.02, height + 0.02, height + 0.02};
    const double ex[4] = {0, 1, 0.5, 0}, ey[4] = {0, 0, height, 0};
    plot_style white = plot_solid(PLOT_WHITE), edge = plot_solid(PLOT_INK);
    white.alpha = 1;
    edge.width = 0.6;
    plot_band(p, NULL, x[0], lo[0], hi, 3, white);
    plot_band(p, NULL, x[1], lo[1], hi, 3, white);
    plot_line(p, NULL, ex, ey, 4, edge);
}

/* Of the three solutions panel->other. All of an arm have one scale of colours, beside the last. */
static void draw_triangle(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    enum { ROWS = 156, COLS = 180 };
    const double height = 0.8660254;
    const triple *of = &triples[panel->other];
    const lab_series loss = lab_get(r, panel->arm, 0, of->loss);
    static double field[ROWS * COLS];
    double lo = 1e9, hi = 0;
    size_t i, j;
    for (i = 0; i < ROWS; i++)
        for (j = 0; j < COLS; j++) {
            const double v = ((double)i + 0.5) / ROWS, x = ((double)j + 0.5) / COLS;
            field[i * COLS + j] = in_triangle(loss, x - 0.5 * v, v);
        }
    for (j = 0; j < TRIPLES; j++) {
        const lab_series any = lab_get(r, panel->arm, 0, triples[j].loss);
        const stats_summary all = stats_describe(any.y, any.n);
        lo = fmin(lo, all.min);
        hi = fmax(hi, all.max);
    }
    plot_heat(p, field, ROWS, COLS, 0, 1, 0, height, PLOT_SEQUENTIAL, lo, hi);
    if (panel->other == TRIPLES - 1) plot_colorbar(p, "loss");
    triangle_edge(p, height);
    plot_text(p, 0, -0.02, solution_name[of->corner[0]], PLOT_CENTER | PLOT_BELOW, PLOT_INK);
    plot_text(p, 1, -0.02, solution_name[of->corner[1]], PLOT_CENTER | PLOT_BELOW, PLOT_INK);
    plot_text(p, 0.5, height + 0.02, solution_name[of->corner[2]], PLOT_CENTER | PLOT_ABOVE,
              PLOT_INK);
}

/* The check of the scaled end; prints the rows of the page's table. */
static void after_claims(lab_report *r)
{
    const double moved = lab_worst(r, "moved");
    size_t k;
    lab_check(r, moved < 1e-3, "with batch norm, scaled weights compute the same",
              "loss at the scaled end, largest relative difference %.1e (ε, rounding)", moved);
    for (k = 0; k < OTHER_BATCHES; k++)
        printf("| %s | %s | %s | %s | %s |\n", solution_name[k],
               lab_text(r, NONE, "test_error", (double)k, 4),
               lab_text(r, BATCH_NORM, "test_error", (double)k, 4),
               lab_text(r, NONE, "from_start", (double)k, 2),
               lab_text(r, BATCH_NORM, "from_start", (double)k, 2));
}

/* clang-format off */
#define BARS(which, of, title, name, ...)                                                          \
    {.axes = {.heading = title, .y = name, .grid = PLOT_GRID_Y,                                    \
              .x = "S SGD, M momentum, R RMSprop, A Adam", __VA_ARGS__},                           \
     .draw = draw_bars, .arm = which, .series = of}
#define SEEDS_AND_MEAN(arm, name, series, ...)                                                     \
    {arm, series, "", {__VA_ARGS__, .width = 0.4, .alpha = 0.6}, LAB_EACH_SEED},                   \
        {arm, series, name ", mean (thin: each seed)", {__VA_ARGS__}, LAB_MEAN}
#define CURVES(place, first, second, end, series, ...)                                             \
    {.axes = {(place) / 3, (place) % 3, .heading = first " to " second,                            \
              .x = "a (0: " first ", 1: " end ")", .x_range = {-0.2, 1.2}, .y = "loss",            \
              .grid = PLOT_GRID_Y, __VA_ARGS__},                                                   \
     .under = {{LAB_VLINE, .x = 0, .text = ""}, {LAB_VLINE, .x = 1, .text = ""}},                  \
     .full = 1,                                                                                    \
     .line = {SEEDS_AND_MEAN(NONE, "no norm", series, PLOT_VERMILLION, .dash = PLOT_DASHED),       \
              SEEDS_AND_MEAN(BATCH_NORM, "batch norm", series, PLOT_BLUE)}}
#define LINEAR .y_range = {0.03, 0.15}
#define TRIANGLE(from, k, at, title)                                                               \
    {.axes = {from, at, .heading = title, .x = "", .y = "", .frame = PLOT_BARE,  \
              .hide = PLOT_GRID_BOTH, .x_range = {-0.2, 1.2}, .y_range = {-0.12, 1.0},             \
              .aspect = 1},                                                                        \
     .draw = draw_triangle, .arm = from, .other = k}
#define TRIANGLES(from, title)                                                                     \
    TRIANGLE(from, 0, 0, title), TRIANGLE(from, 1, 1, title), TRIANGLE(from, 3, 2, title)

static const lab_panel curves[] = {
    CURVES(0, "SGD", "momentum", "momentum", "loss/sgd-momentum", LINEAR),
    CURVES(1, "SGD", "RMSprop", "RMSprop", "loss/sgd-rmsprop", LINEAR),
    CURVES(2, "SGD", "Adam", "Adam", "loss/sgd-adam", LINEAR),
    CURVES(3, "momentum", "RMSprop", "RMSprop", "loss/momentum-rmsprop", LINEAR),
    CURVES(4, "momentum", "Adam", "Adam", "loss/momentum-adam", LINEAR),
    CURVES(5, "RMSprop", "Adam", "Adam", "loss/rmsprop-adam", LINEAR)};
static const lab_panel of_barriers[] = {
    CURVES(0, "SGD", "SGD, other start", "other start", "loss/sgd-start", .y_scale = PLOT_LOG10,
           .y_range = {0.04, 10}, .legend = PLOT_LEGEND_TOP_LEFT),
    BARS(0, "barrier_by_end", "Barrier (another start: see a)", "loss above the worse end, %",
         .col = 1, .y_range = {-5, 34}),
    BARS(1, "apart_by_start", "Distance of the two, by that from the start", "ratio", .row = 1),
    BARS(2, NULL, "Spread over starts, by the mean", "sd / mean of loss", .row = 1, .col = 1)};
static const lab_panel triangles[] = {TRIANGLES(NONE, "no norm"),
                                      TRIANGLES(BATCH_NORM, "batch norm")};
static const lab_page pages[] = {
    {"Between the solutions of two optimizers: a barrier without norm, none with batch norm",
     NULL, 1020, .scale = 0.78, .shared_legend = 1, LAB_PANELS(curves)},
    {"Between two starts the barrier is ten and more times the loss, from one start 12 % at "
     "most", "barriers", 1140, 0.78, LAB_PANELS(of_barriers)},
    {"Optimizers end in different places of one valley", "triangles", 1020, 0.78,
     "Loss on 5000 training images, on the plane through three solutions from one start", 1,
     LAB_PANELS(triangles)}};
/* clang-format on */

LAB_PROGRAM(
    "24_interpolation", "What lies between the solutions that different optimizers find?",
    "784-64-64-10 ReLU, three epochs of batch 128, from one start on the same batches; loss on "
    "5000 training images",
    .revision = 2, .uses = LAB_USES_DATA, .prepare = prepare, .after = after_claims)
