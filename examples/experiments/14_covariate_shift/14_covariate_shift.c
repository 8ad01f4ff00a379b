/* 14_covariate_shift: does batch norm reduce internal covariate shift? (README.md)

   Santurkar et al. (2018) measure the shift of layer i at step t by two gradients of the loss by
   its weights, on the same batch: G as it is used, and G' as it would be if the layers before i had
   already made their step of t, and the layers from i on had not. If the layers before i did not
   disturb layer i, the two would agree:

       shift |G - G'|, ideally 0;        cosine between G and G', ideally 1

   "Moved" are all parameters of the earlier layers, by the actual step: weights, biases, gamma and
   beta. Of layer i the weights' gradient is compared. The first layer has nothing before it: its
   shift must be exactly 0.

   Networks: 13 hidden layers of 100 ReLU (as many as VGG-16 has convolutions) and 6 hidden layers
   of 100 tanh, each without a norm and with batch norm before the activation. Pixels with mean 0
   and variance 1, Glorot's uniform weights, SGD with learning rate 0.1 and 0.01, batches of 128,
   1500 steps, seeds 11 to 15. All arms of a seed start from the same weights and see the same
   batches.

   Looked at in each of the first 20 steps, then in every 10th: the hidden layers at a third, two
   thirds and the end (4, 9 and 13 of 13; 2, 4 and 6 of 6). Medians over the looks of four windows:
   steps 0-20, 20-200, 200-500, 500-1500. Three layers, four windows and two learning rates make 24
   cells. Beside them: the loss of each window, as the networks are not at the same stage; the
   cosine of the whole gradients of two steps, each on its own batch; and that on the same batch,
   before and after a whole step, with the share of steps after which the loss on their own batch is
   lower.
   Choices that were left open: the last hidden layer, not the output layer, is "last"; medians over
   a window, since single steps scatter by decades; a cosine with a gradient of length 0 is left
   out. */
#include "lab/experiment.h"

enum { INPUTS = 784, CLASSES = 10, WIDTH = 100, DEEPEST = 13, BATCH = 128, CHECKED = 41 };
enum { SHOWN = 3, WINDOWS = 4, BIN = 75, LOOKS = 200 };

/* ---- the arms -------------------------------------------------------------------------------- */

enum { RELU13, TANH6, NETS };
enum { FAST, SLOW, RATES };
enum { NONE, NORMED, KINDS };
enum { ARMS = NETS * RATES * KINDS };

typedef struct network {
    const char *name;
    size_t hidden;
    int activation;
    size_t shown[SHOWN]; /* layers looked at, counted from 0 */
} network;

static const network networks[NETS] = {{"13 x 100 ReLU", 13, NRM_RELU, {3, 8, 12}},
                                       {"6 x 100 tanh", 6, NRM_TANH, {1, 3, 5}}};
static const double rates[RATES] = {0.1, 0.01};

/* Steps of a window: from one to before the next. */
static const size_t window_from[WINDOWS + 1] = {0, 20, 200, 500, 1500};

static const lab_arm arms[ARMS] = {
    {"relu13_fast_none", "no norm", 9, 12}, {"relu13_fast_batch", "batch norm", 10, 12},
    {"relu13_slow_none", "no norm", 9, 12}, {"relu13_slow_batch", "batch norm", 10, 12},
    {"tanh6_fast_none", "no norm", 6, 12},  {"tanh6_fast_batch", "batch norm", 7, 12},
    {"tanh6_slow_none", "no norm", 6, 12},  {"tanh6_slow_batch", "batch norm", 7, 12}};

static size_t arm_of(int net, int rate, int kind)
{
    return (size_t)((net * RATES + rate) * KINDS + kind);
}

/* ---- what all runs share --------------------------------------------------------------------- */

static training_set train_set;

static int prepare(const dataset *data, int quick)
{
    return training_load(&train_set, NULL, data, quick ? 4000 : 0, 0, DATASET_STD);
}

/* ---- a network in training ------------------------------------------------------------------- */

typedef struct trial {
    lab_run *r;
    const network *shape;
    nrm_mlp *mlp;
    void *block;
    training_order order;
    size_t steps;
    nrm_real *kept, *g; /* [n_params] parameters and gradient while a look disturbs them */
    double *pending;    /* where the cosine of g and the next step's gradient is missing */
} trial;

static void trial_free(trial *t)
{
    training_order_free(&t->order);
    free(t->block);
    free(t->kept);
    free(t->g);
}

static nrm_mlp *make_net(const trial *t, double rate, int norm, void **block)
{
    nrm_mlp_layer layer[DEEPEST + 1];
    nrm_mlp_spec spec = training_plain(layer, t->shape->hidden, WIDTH, t->shape->activation, norm);
    spec.max_batch = BATCH;
    spec.seed = t->r->seed;
    spec.lr = (nrm_real)rate;
    return training_net(&spec, block);
}

static int trial_make(trial *t, lab_run *r)
{
    const int kind = (int)(r->arm % KINDS), rate = (int)(r->arm / KINDS % RATES);
    memset(t, 0, sizeof *t);
    t->r = r;
    t->shape = &networks[r->arm / (KINDS * RATES)];
    t->steps = r->quick ? 26 : 1500;
    t->mlp = make_net(t, rates[rate], kind == NORMED ? NRM_BATCH_NORM : NRM_NO_NORM, &t->block);
    if (!t->mlp || training_order_start(&t->order, train_set.n, BATCH, INPUTS, r->seed)) return -1;
    t->kept = (nrm_real *)malloc(t->mlp->n_params * sizeof *t->kept);
    t->g = (nrm_real *)malloc(t->mlp->n_params * sizeof *t->g);
    return t->kept && t->g ? 0 : -1;
}

/* ---- two gradients beside each other --------------------------------------------------------- */

typedef struct pair {
    double distance, relative, cosine;
} pair;

static pair compare(const nrm_real *g, const nrm_real *g2, size_t n)
{
    double gg = 0, hh = 0, gh = 0, dd = 0;
    pair p;
    size_t i;
    for (i = 0; i < n; i++) {
        const double a = (double)g[i], b = (double)g2[i];
        gg += a * a;
        hh += b * b;
        gh += a * b;
        dd += (a - b) * (a - b);
    }
    p.distance = sqrt(dd);
    p.relative = gg > 0 ? sqrt(dd / gg) : (double)NAN;
    p.cosine = gg > 0 && hh > 0 ? gh / sqrt(gg) / sqrt(hh) : (double)NAN;
    return p;
}

/* What a look at one step finds. */
typedef struct sight {
    double step;
    pair shift[SHOWN]; /* of the layers shown: G and G'                          */
    double next;       /* cosine of the gradients of this step and the next one  */
    double same;       /* the same on this step's batch, before and after it     */
    double loss, down; /* before the step; 1 if it is lower after it             */
} sight;

/* G' of layer l against its G. The parameters that come before W of layer l make their step. */
static int shift_of(trial *t, size_t l, pair *found)
{
    nrm_mlp *net = t->mlp;
    const nrm_mlp_state *s = &net->state[l];
    const size_t before = (size_t)(s->W - net->params);
    size_t i;
    int rc;
    memcpy(net->params, t->kept, net->n_params * sizeof *t->kept);
    for (i = 0; i < before; i++) net->params[i] -= net->spec.lr * t->g[i];
    rc = nrm_mlp_gradient(net, NULL, t->order.x, t->order.labels, t->order.count, NRM_TRAIN);
    *found = compare(t->g + before, s->dW, s->in * s->shape.width);
    return rc;
}

/* The cosine of the last look's gradient and the present one, if that is still missing. */
static void meet_next(trial *t)
{
    if (t->pending) *t->pending = compare(t->g, t->mlp->grads, t->mlp->n_params).cosine;
    t->pending = NULL;
}

/* Before a step: the gradient, the shifts of the layers, the gradient after the whole step; then
   all is as it was, and t->g is the gradient. */
static int look(trial *t, sight *s, size_t step)
{
    nrm_mlp *net = t->mlp;
    nrm_acc loss = 0, after = 0;
    pair first = {0, 0, 1}, same;
    size_t i;
    int k,
        rc = nrm_mlp_gradient(net, &loss, t->order.x, t->order.labels, t->order.count, NRM_TRAIN);
    meet_next(t);
    memcpy(t->kept, net->params, net->n_params * sizeof *t->kept);
    memcpy(t->g, net->grads, net->n_params * sizeof *t->g);
    s->step = (double)step;
    for (k = 0; k < SHOWN && rc >= 0; k++) rc = shift_of(t, t->shape->shown[k], &s->shift[k]);
    if (step == 0 && rc >= 0) {
        rc = shift_of(t, 0, &first);
        lab_record(t->r, "first_layer_shift", 0, first.distance);
        lab_record(t->r, "first_layer_cosine", 0, first.cosine);
    }
    for (i = 0; i < net->n_params; i++) net->params[i] = t->kept[i] - net->spec.lr * t->g[i];
    if (rc >= 0)
        rc = nrm_mlp_gradient(net, &after, t->order.x, t->order.labels, t->order.count, NRM_TRAIN);
    same = compare(t->g, net->grads, net->n_params);
    memcpy(net->params, t->kept, net->n_params * sizeof *t->kept);
    s->same = same.cosine;
    s->next = (double)NAN;
    s->loss = (double)loss;
    s->down = after < loss;
    return rc;
}

/* ---- records --------------------------------------------------------------------------------- */

enum { DISTANCE, RELATIVE, COSINE, FIGURES }; /* what is told of the shift of a layer */
static const char *const figure_name[FIGURES] = {"shift", "relative", "cosine"};

static double figure_of(const sight *s, int layer, int what)
{
    const pair *p = &s->shift[layer];
    return what == DISTANCE ? p->distance : what == RELATIVE ? p->relative : p->cosine;
}

static void put(trial *t, const char *group, const char *what, size_t layer, double x, double y)
{
    if (isnan(y)) return;
    if (layer > 0)
        lab_record_as(t->r, x, lab_round(y, 4), "%s_%s_%zu", group, what, layer);
    else
        lab_record_as(t->r, x, lab_round(y, 4), "%s_%s", group, what);
}

/* Medians over some looks, at x of the series whose names begin with the group's. */
static void put_medians(trial *t, const char *group, const sight *s, size_t n, double x)
{
    double v[LOOKS], down = 0;
    size_t i;
    int k, what;
    if (n == 0) return;
    for (k = 0; k < SHOWN; k++)
        for (what = 0; what < FIGURES; what++) {
            for (i = 0; i < n; i++) v[i] = figure_of(&s[i], k, what);
            put(t, group, figure_name[what], t->shape->shown[k] + 1, x, stats_median(v, n));
        }
    for (i = 0; i < n; i++) v[i] = s[i].next;
    put(t, group, "next", 0, x, stats_median(v, n));
    for (i = 0; i < n; i++) v[i] = s[i].same;
    put(t, group, "same", 0, x, stats_median(v, n));
    for (i = 0; i < n; i++) down += s[i].down / (double)n;
    put(t, group, "down", 0, x, down);
}

static double mean_of(const double *v, size_t from, size_t to)
{
    double sum = 0;
    size_t i;
    for (i = from; i < to; i++) sum += v[i];
    return sum / (double)(to - from);
}

/* Looks and the losses of all steps, by windows and by bins. */
static void record(trial *t, const sight *s, size_t n, const double *loss, const double *accuracy)
{
    size_t from, i = 0, j;
    int w;
    for (w = 0; w < WINDOWS; w++) {
        const size_t to = window_from[w + 1] < t->steps ? window_from[w + 1] : t->steps;
        for (j = i; j < n && s[j].step < (double)to; j++) continue;
        put_medians(t, "window", s + i, j - i, w);
        if (to > window_from[w]) put(t, "window", "loss", 0, w, mean_of(loss, window_from[w], to));
        i = j;
    }
    for (from = 0, i = 0; from < t->steps; from += BIN, i = j) {
        const size_t to = from + BIN < t->steps ? from + BIN : t->steps;
        const double x = (double)(from + to) / 2;
        for (j = i; j < n && s[j].step < (double)to; j++) continue;
        put_medians(t, "bin", s + i, j - i, x);
        put(t, "bin", "loss", 0, x, mean_of(loss, from, to));
        put(t, "bin", "accuracy", 0, x, mean_of(accuracy, from, to));
    }
}

/* ---- a run ----------------------------------------------------------------------------------- */

static int look_now(const trial *t, size_t step)
{
    return t->r->quick ? step < 4 || step % 5 == 0 : step < 20 || step % 10 == 0;
}

/* One step of SGD, after a look or not. A step that is not finite is not taken. */
static int step(trial *t, sight *s, size_t at, double *loss, double *accuracy)
{
    nrm_mlp *net = t->mlp;
    nrm_acc value = 0, hits = 0;
    int rc = s ? look(t, s, at) : NRM_OK;
    if (rc >= 0) rc = nrm_mlp_train_step(net, &value, t->order.x, t->order.labels, t->order.count);
    if (rc >= 0) rc = nrm_accuracy(&hits, net->logits, t->order.labels, t->order.count, CLASSES);
    if (!s) meet_next(t);
    if (s) t->pending = &s->next;
    *loss = (double)value;
    *accuracy = (double)hits;
    return rc;
}

/* The first steps without a look: the parameters then, to be compared with. */
static nrm_real *unwatched(lab_run *r)
{
    trial t;
    nrm_real *params = NULL;
    double loss, accuracy;
    size_t i;
    int rc = trial_make(&t, r);
    for (i = 0; i < CHECKED && i < t.steps && rc >= 0; i++) {
        training_go_on(&t.order, &train_set, 1);
        rc = step(&t, NULL, i, &loss, &accuracy);
    }
    if (rc >= 0) params = (nrm_real *)malloc(t.mlp->n_params * sizeof *params);
    if (params) memcpy(params, t.mlp->params, t.mlp->n_params * sizeof *params);
    trial_free(&t);
    return params;
}

static int train(trial *t, sight *s, double *loss, double *accuracy)
{
    nrm_real *expected = unwatched(t->r);
    size_t i, n = 0;
    int rc = expected ? 0 : -1;
    for (i = 0; i < t->steps && rc >= 0; i++) {
        const int looking = look_now(t, i) && n < LOOKS;
        training_go_on(&t->order, &train_set, 1);
        rc = step(t, looking ? &s[n++] : NULL, i, &loss[i], &accuracy[i]);
        if (i + 1 == CHECKED || (i + 1 == t->steps && t->steps < CHECKED))
            lab_record(t->r, "same_bits", 0,
                       !memcmp(t->mlp->params, expected, t->mlp->n_params * sizeof *expected));
        if (i % 50 == 0) lab_progress(t->r, (double)i / (double)t->steps);
    }
    free(expected);
    if (rc >= 0) record(t, s, n, loss, accuracy);
    return rc;
}

static int run(lab_run *r)
{
    trial t;
    sight *s = (sight *)malloc(LOOKS * sizeof *s);
    double *loss, *accuracy;
    int rc = trial_make(&t, r);
    loss = (double *)malloc(t.steps * sizeof *loss);
    accuracy = (double *)malloc(t.steps * sizeof *accuracy);
    rc = rc >= 0 && s && loss && accuracy ? train(&t, s, loss, accuracy) : -1;
    if (rc < 0) fprintf(stderr, "a run failed: %s\n", nrm_strerror(rc));
    trial_free(&t);
    free(s);
    free(loss);
    free(accuracy);
    return rc < 0;
}

/* ---- claims ---------------------------------------------------------------------------------- */

#define OF_CELLS(what)                                                                             \
    what " in more than half of the cells (layer, window, learning rate) in which both networks "  \
         "learn, seed by seed, and in 60 % of them in the mean"
#define LARGER OF_CELLS("larger with batch norm")
#define SPIRAL                                                                                     \
    "steps 200 to 1500 at 0.1: lower cosine before and after a step on one batch, paired, and in " \
    "the mean at least as many steps go down"

#define POST_HOC "the run itself: written when the numbers of 14h and 14i were known"

static const lab_claim claims[] = {
    {"14a", "Batch norm does not reduce the shift |G - G'|: 13 x 100 ReLU",
     "Santurkar et al. 2018, Fig. 3",
     "VGG, learning rate 0.1: about the same; linear network: batch norm larger", LARGER,
     "trial runs (1 seed): relative shift 1.29 against 0.18 in steps 0 to 20", LAB_TRAINING,
     LAB_SETTING},
    {"14b", "Batch norm does not reduce the shift |G - G'|: 6 x 100 tanh",
     "Santurkar et al. 2018, Fig. 3",
     "VGG, learning rate 0.1: about the same; linear network: batch norm larger", LARGER, "none",
     LAB_TRAINING, LAB_SETTING},
    {"14c", "Batch norm does not reduce the relative shift |G - G'|/|G|: 13 x 100 ReLU", "ours",
     "not shown", LARGER, "trial runs (1 seed): 1.29 against 0.18 in steps 0 to 20", LAB_TRAINING,
     LAB_SETTING},
    {"14d", "Batch norm does not reduce the relative shift |G - G'|/|G|: 6 x 100 tanh", "ours",
     "not shown", LARGER, "none", LAB_TRAINING, LAB_SETTING},
    {"14e", "With batch norm G and G' do not point more alike: 13 x 100 ReLU",
     "Santurkar et al. 2018, Fig. 3", "cosines about the same (VGG) or lower (linear network)",
     OF_CELLS("cosine of G and G' lower with batch norm"),
     "trial runs (1 seed): 0.36, 0.40, 0.68 against 0.25, 0.11, 0.09 in steps 500 to 1500 at 0.1: "
     "expected to fail",
     LAB_TRAINING, LAB_SETTING},
    {"14f", "With batch norm G and G' do not point more alike: 6 x 100 tanh",
     "Santurkar et al. 2018, Fig. 3", "cosines about the same (VGG) or lower (linear network)",
     OF_CELLS("cosine of G and G' lower with batch norm"),
     "trial runs (1 seed): higher with batch norm in most windows: expected to fail", LAB_TRAINING,
     LAB_SETTING},
    {"14g", "At learning rate 0.1 batch norm hardly changes the shift: 13 x 100 ReLU",
     "Chinese notes on batch norm", "no obvious change for VGG (read off Fig. 3)",
     "within a factor of 2 in more than half of 12 cells in which both learn, seed by seed, and in "
     "60 % of them in the mean",
     "none", LAB_TRAINING, LAB_SETTING},
    {"14h", "With batch norm the descent is a spiral, turning but always down: 13 x 100 ReLU",
     "Chinese notes on batch norm", "a guess", SPIRAL, "none", LAB_TRAINING, LAB_NEWS},
    {"14i", "With batch norm the descent is a spiral, turning but always down: 6 x 100 tanh",
     "Chinese notes on batch norm", "a guess", SPIRAL, "none", LAB_TRAINING, LAB_NEWS},
    {"14j", "Post hoc: with batch norm the gradient points more as before after a step along it",
     "Santurkar et al. 2018, section 3; a tutorial on batch and layer norm; a lecture-style post "
     "on "
     "how batch norm helps",
     "\"a fairly accurate estimate of the actual gradient direction after taking that step\"",
     "steps 200 to 1500 at 0.1: higher cosine before and after a step on one batch, paired, in "
     "both "
     "networks",
     POST_HOC, LAB_TRAINING, LAB_SETTING},
    {"14k", "Post hoc: with batch norm a step along the gradient is likelier to lead down",
     "a derivation of batch norm's backward pass", "\"more likely to lead us to a minima\"",
     "steps 200 to 1500 at 0.1: loss of its own batch lower after more of the steps, paired, in "
     "both "
     "networks",
     POST_HOC, LAB_TRAINING, LAB_SETTING}};

/* ---- verdicts -------------------------------------------------------------------------------- */

/* In a cell (layer, window, learning rate): is the value with batch norm larger than without (+1),
   smaller (-1), or within a factor of 2 of it (0)? */
static int as_said(double batch, double none, int sign)
{
    if (sign) return sign > 0 ? batch >= none : batch <= none;
    return batch <= 2 * none && none <= 2 * batch;
}

/* Has the network begun to learn? One that stands still, with a loss as by guessing, has gradients
   next to 0 and disturbs nothing. */
static int learns(const lab_report *r, size_t arm, size_t seed, int window)
{
    return lab_at(r, arm, seed, "window_loss", window) < 2.2;
}

/* The share of cells that are as the claim says, of those in which both networks learn, seed by
   seed; learning rates from the first to before `last`. Returns the number of seeds. */
static size_t shares(lab_report *r, int net, int what, int sign, int last, double *share)
{
    const size_t n = lab_seeds(r, arm_of(net, FAST, NONE));
    size_t s;
    for (s = 0; s < n; s++) {
        int rate, k, w, all = 0, met = 0;
        for (rate = FAST; rate < last; rate++)
            for (k = 0; k < SHOWN; k++) {
                const size_t arm = arm_of(net, rate, NONE);
                const char *name =
                    lab_format(r, "window_%s_%zu", figure_name[what], networks[net].shown[k] + 1);
                for (w = 0; w < WINDOWS; w++) {
                    if (!learns(r, arm + NONE, s, w) || !learns(r, arm + NORMED, s, w)) continue;
                    all++;
                    met += as_said(lab_at(r, arm + NORMED, s, name, w),
                                   lab_at(r, arm + NONE, s, name, w), sign);
                }
            }
        share[s] = all ? (double)met / all : (double)NAN;
    }
    return n;
}

/* More than half of the cells, and 60 % of them in the mean. */
static void judge_share(lab_report *r, const lab_claim *claim, int net, int what, int sign,
                        int last)
{
    double share[LAB_SEEDS_MAX];
    const size_t n = shares(r, net, what, sign, last, share);
    stats_finding found = stats_judge_limit(share, n, 0.5, +1);
    found.size_met = stats_mean(share, n) >= 0.6;
    lab_verdict(r, claim, found, "", "%s of the cells",
                lab_mean_sd(r, stats_describe(share, n), 2));
}

static void judge_cells(lab_report *r)
{
    int what, net;
    for (what = 0; what < FIGURES; what++)
        for (net = 0; net < NETS; net++)
            judge_share(r, &claims[what * NETS + net], net, what, what < COSINE ? +1 : -1, RATES);
    judge_share(r, &claims[6], RELU13, DISTANCE, 0, SLOW);
}

/* Means over the two late windows, weighted by their steps. */
static double late(const lab_report *r, size_t arm, size_t seed, const char *series)
{
    const double a = lab_at(r, arm, seed, series, 2), b = lab_at(r, arm, seed, series, 3);
    return (3 * a + 10 * b) / 13;
}

/* Those of a network at 0.1, seed by seed; returns the number of seeds. */
static size_t late_of(const lab_report *r, int net, int kind, const char *series, double *value)
{
    const size_t arm = arm_of(net, FAST, kind), n = lab_seeds(r, arm);
    size_t s;
    for (s = 0; s < n; s++) value[s] = late(r, arm, s, series);
    return n;
}

static void judge_steps(lab_report *r)
{
    stats_finding straight[NETS], lower[NETS];
    const char *turn[NETS], *fall[NETS];
    int net;
    for (net = 0; net < NETS; net++) {
        double cosine[KINDS][LAB_SEEDS_MAX], down[KINDS][LAB_SEEDS_MAX], go;
        size_t n = 0;
        int kind;
        for (kind = 0; kind < KINDS; kind++) {
            n = late_of(r, net, kind, "window_same", cosine[kind]);
            (void)late_of(r, net, kind, "window_down", down[kind]);
        }
        go = stats_mean(down[NORMED], n) - stats_mean(down[NONE], n);
        turn[net] = lab_format(r, "cosine %s against %s",
                               lab_mean_sd(r, stats_describe(cosine[NORMED], n), 2),
                               lab_mean_sd(r, stats_describe(cosine[NONE], n), 2));
        fall[net] = lab_format(r, "down %.0f %% against %.0f %%", 100 * stats_mean(down[NORMED], n),
                               100 * stats_mean(down[NONE], n));
        lab_verdict(r, &claims[7 + net],
                    stats_judge_pairs(cosine[NORMED], cosine[NONE], n, -1, go >= 0), "", "%s; %s",
                    turn[net], fall[net]);
        straight[net] = stats_judge_pairs(cosine[NORMED], cosine[NONE], n, +1, 1);
        lower[net] = stats_judge_pairs(down[NORMED], down[NONE], n, +1, 1);
    }
    lab_verdict(r, &claims[9], stats_together(straight, NETS), "post hoc", "%s: %s; %s: %s",
                networks[0].name, turn[0], networks[1].name, turn[1]);
    lab_verdict(r, &claims[10], stats_together(lower, NETS), "post hoc", "%s: %s; %s: %s",
                networks[0].name, fall[0], networks[1].name, fall[1]);
}

/* Nothing comes before the first layer; and a look changes nothing. */
static void check_runs(lab_report *r)
{
    size_t a, s;
    double shift = 0, cosine = 0;
    int same = 1, first = 1;
    for (a = 0; a < ARMS; a++)
        for (s = 0; s < lab_seeds(r, a); s++) {
            const double d = lab_at(r, a, s, "first_layer_shift", 0);
            const double c = fabs(lab_at(r, a, s, "first_layer_cosine", 0) - 1);
            if (!(d <= 0 && c < 1e-6)) first = 0; /* nan is no pass */
            shift = fmax(shift, d);
            cosine = fmax(cosine, c);
            if (!(lab_at(r, a, s, "same_bits", 0) > 0)) same = 0;
        }
    lab_check(r, first, "first layer", "shift %g, expected 0; cosine off 1 by %.1e", shift, cosine);
    lab_check(r, same, "a look changes nothing", same ? "the same bits" : "other parameters");
}

/* ---- figures --------------------------------------------------------------------------------- */

static const char *const kind_style[KINDS] = {"none", "batch"};

static void draw_both(lab_report *r, plot_panel *p, int net, int rate, const char *series)
{
    int kind;
    for (kind = 0; kind < KINDS; kind++)
        lab_plot(r, p, arm_of(net, rate, kind), series, NULL, lab_style(kind_style[kind]));
}

/* The same on a logarithmic axis: seeds and their mean, for a band may reach below 0. */
static void draw_log(lab_report *r, plot_panel *p, int net, int rate, const char *series)
{
    int kind;
    for (kind = 0; kind < KINDS; kind++) {
        const size_t arm = arm_of(net, rate, kind);
        const lab_curve c = lab_over_seeds(r, arm, series);
        const plot_style style = lab_style(kind_style[kind]);
        lab_plot_seeds(r, p, arm, series, "", plot_thin(style.color));
        plot_line(p, arms[arm].name, c.x, c.mean, c.n, style);
    }
}

static const char *rate_name(lab_report *r, int rate)
{
    return lab_format(r, "learning rate %g", rates[rate]);
}

/* Shift above, cosine below. */
static void draw_layer(lab_report *r, plot_figure *f, int net, int rate, int k)
{
    const size_t layer = networks[net].shown[k] + 1;
    plot_panel *top = plot_add(f, 2 * rate, k + 1, 1, 1);
    plot_panel *bottom = plot_add(f, 2 * rate + 1, k + 1, 1, 1);
    plot_heading(
        top, lab_format(r, "layer %zu of %zu, rate %g", layer, networks[net].hidden, rates[rate]));
    plot_axis_y(top, "|G − G′|", PLOT_LOG10);
    draw_log(r, top, net, rate, lab_format(r, "bin_shift_%zu", layer));
    plot_range_y(top, 5e-4, 5);
    plot_range_x(top, 0, 1500);
    plot_hide_x(top);
    plot_legend(top, PLOT_LEGEND_NONE);
    plot_axis_x(bottom, "steps", PLOT_LINEAR);
    plot_axis_y(bottom, "cosine", PLOT_LINEAR);
    plot_hline(bottom, 1, NULL, plot_dashed(PLOT_GREY));
    draw_both(r, bottom, net, rate, lab_format(r, "bin_cosine_%zu", layer));
    plot_range_y(bottom, -0.5, 1.08);
    plot_range_x(bottom, 0, 1500);
    plot_legend(bottom, PLOT_LEGEND_NONE);
}

static int page_layers(lab_report *r, int net, const char *what)
{
    plot_figure *f = lab_figure(
        r,
        lab_format(r, "Once both learn, the shift is alike with and without batch norm: %s",
                   networks[net].name),
        1600, 1200);
    int rate, k;
    plot_scale(f, 0.86);
    plot_shared_legend(f);
    for (rate = 0; rate < RATES; rate++) {
        plot_panel *p = plot_add(f, 2 * rate, 0, 2, 1);
        plot_heading(p, rate_name(r, rate));
        plot_axis_x(p, "steps", PLOT_LINEAR);
        plot_axis_y(p, "training accuracy", PLOT_LINEAR);
        draw_both(r, p, net, rate, "bin_accuracy");
        plot_range_y(p, 0, 1);
        plot_range_x(p, 0, 1500);
        for (k = 0; k < SHOWN; k++) draw_layer(r, f, net, rate, k);
    }
    return lab_save(r, f, what);
}

#define STAGE_LO 0.15 /* losses that all networks pass */
#define STAGE_HI 0.5

/* Mean of a series over all seeds and the bins where the loss lies between those. */
static double at_stage(const lab_report *r, size_t arm, const char *series)
{
    double sum = 0, n = 0;
    size_t s, i;
    for (s = 0; s < lab_seeds(r, arm); s++) {
        const lab_series loss = lab_get(r, arm, s, "bin_loss"), y = lab_get(r, arm, s, series);
        for (i = 0; i < y.n && loss.n == y.n; i++)
            if (loss.y[i] >= STAGE_LO && loss.y[i] <= STAGE_HI) {
                sum += y.y[i];
                n++;
            }
    }
    return n > 0 ? sum / n : (double)NAN;
}

/* How alike G and G' are against the loss at that time, all seeds: nets at the same stage. */
static void draw_stage(lab_report *r, plot_panel *p, int net, int rate)
{
    const char *series = lab_format(r, "bin_cosine_%zu", networks[net].shown[1] + 1);
    int kind;
    for (kind = 0; kind < KINDS; kind++) {
        const size_t arm = arm_of(net, rate, kind);
        plot_style style =
            plot_marked(lab_style(kind_style[kind]).color, kind == NONE ? PLOT_RING : PLOT_CIRCLE);
        size_t s;
        style.alpha = 0.6;
        style.size = 0.7;
        for (s = 0; s < lab_seeds(r, arm); s++) {
            const lab_series loss = lab_get(r, arm, s, "bin_loss"), y = lab_get(r, arm, s, series);
            if (loss.n == y.n) plot_scatter(p, arms[arm].name, loss.y, y.y, y.n, style);
        }
    }
    plot_range_y(p, -0.5, 1.08);
    plot_range_x(p, 0.03, 3);
    plot_hline(p, 1, NULL, plot_dashed(PLOT_GREY));
    plot_vline(p, STAGE_LO, NULL, plot_thin(PLOT_GREY));
    plot_vline(p, STAGE_HI, NULL, plot_thin(PLOT_GREY));
}

/* A network at the learning rate 0.1: its loss, how its gradient turns, and that at equal loss. */
static void draw_row(lab_report *r, plot_figure *f, int net)
{
    const char *layer = lab_format(r, "bin_cosine_%zu", networks[net].shown[1] + 1);
    plot_panel *loss = plot_add(f, net, 0, 1, 1), *same = plot_add(f, net, 1, 1, 1);
    plot_panel *stage = plot_add(f, net, 2, 1, 1);
    plot_heading(loss, networks[net].name);
    plot_axis_x(loss, "steps", PLOT_LINEAR);
    plot_axis_y(loss, "training loss", PLOT_LOG10);
    draw_log(r, loss, net, FAST, "bin_loss");
    plot_range_y(loss, 0.03, 3);
    plot_range_x(loss, 0, 1500);
    plot_heading(same, "before and after a step");
    plot_axis_x(same, "steps", PLOT_LINEAR);
    plot_axis_y(same, "cosine, same batch", PLOT_LINEAR);
    draw_both(r, same, net, FAST, "bin_same");
    plot_range_y(same, -0.9, 1.08);
    plot_range_x(same, 0, 1500);
    plot_heading(stage, lab_format(r, "mean: none %.2f, batch norm %.2f",
                                   at_stage(r, arm_of(net, FAST, NONE), layer),
                                   at_stage(r, arm_of(net, FAST, NORMED), layer)));
    plot_axis_x(stage, "training loss", PLOT_LOG10);
    plot_axis_y(stage, lab_format(r, "cosine of G and G′, layer %zu", networks[net].shown[1] + 1),
                PLOT_LINEAR);
    draw_stage(r, stage, net, FAST);
    plot_legend(loss, PLOT_LEGEND_NONE);
    plot_legend(same, PLOT_LEGEND_NONE);
    plot_legend(stage, PLOT_LEGEND_NONE);
}

static int page_stage(lab_report *r)
{
    plot_figure *f =
        lab_figure(r, "At the same loss batch norm's gradient turns less under a step", 1600, 1120);
    int net;
    lab_subtitle(
        r, f,
        "Hidden layers of 100 units, Glorot weights, SGD with learning rate 0.1, batches of "
        "128; c, f: a mark for 75 steps of a seed, means between the thin lines",
        lab_all_seeds(r));
    plot_shared_legend(f);
    for (net = 0; net < NETS; net++) draw_row(r, f, net);
    return lab_save(r, f, "stage");
}

static int report(lab_report *r)
{
    judge_cells(r);
    judge_steps(r);
    check_runs(r);
    return page_layers(r, RELU13, NULL) || page_layers(r, TANH6, "tanh") || page_stage(r);
}

/* clang-format off */
static const lab_program program = {
    "14_covariate_shift", NRM_VERSION, "Does batch norm reduce internal covariate shift?",
    "Hidden layers of 100 units, Glorot weights, pixels standardized, SGD, batches of 128, 1500 "
    "steps; looked at in the first 20 steps and in every 10th; medians", 1, LAB_USES_DATA, arms,
    ARMS, prepare, run, report};
/* clang-format on */
LAB_MAIN(program)
