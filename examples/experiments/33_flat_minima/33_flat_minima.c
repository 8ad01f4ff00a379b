/* 33_flat_minima: do small batches and large learning rates end in flatter minima, and do these
   generalize better?

   Keskar et al. (2017) find that large batches end in sharp minima, which generalize worse; Bjorck
   et al. (2018) see in it why batch norm generalizes better: it allows large learning rates, whose
   noise is that of a small batch. Dinh et al. (2017) object that sharpness can be made to order: in
   a ReLU network, weights into a layer doubled and those out of it halved compute the same, with
   another curvature. And where the loss goes to 0, so does the curvature of cross entropy, so that
   whoever has trained further is "flatter".

   784-100-100-10, ReLU, without a norm and with batch norm; pixels standardized, W ~
   U(±√(6/(in+out))); trained by SGD for 50 epochs on the first 5120 training images, which all
   batch sizes divide. Settings: batch 8, 32, 128, 256 at rate 0.1; batch 128 at rate 0.05, 0.1,
   0.5. Measured on the first 2000 of these images as one batch (batch norm with its statistics):

       eigenvalue   the largest of the Hessian: 12 steps of Lanczos, H times a vector of length 1
                    being the difference of the gradients at ±0.01 of it. Sees the scale.
       rise         of the loss under filter-normalized noise (Li et al. 2018): W + 0.5 d, d
                    Gaussian and into each unit as long as its weights; mean of 10. Does not see the
                    scale of a layer.
       changed      the share of decisions that the same noise changes. Does not see the scale of
                    the logits either, so not how far the loss has gone to 0.

   Rise and changed also under noise W (1 + 0.5 d), relative to each weight, which does not see the
   scale of a unit either; printed, not judged. And everything also where the loss on these 2000
   images first falls below 0.05 (looked at every quarter of an epoch, near there): flatness at the
   same loss. Test error and loss are of the 10,000 test images; running statistics for that are
   taken anew from the 5120. */
#include "lab/experiment.h"
#include "lab/draw.h"

#define NUDGE 0.01      /* of the parameters, along a direction of length 1, for a curvature */
#define NOISE 0.5       /* size of the noise: the share of a unit's length, or of a weight   */
#define EQUAL_LOSS 0.05 /* on the probe images, where all arms are looked at on the way      */

enum { HIDDEN = 2, WIDTH = 100, EPOCHS = 50, IMAGES = 5120, PROBE = 2000 };
enum { KRYLOV = 12, DIRECTIONS = 10 };
enum { STREAM_PROBES = TRAINING_STREAM_DATA + 20 }; /* + which direction; the last: Lanczos */
enum { ON_THE_WAY = 1, AT_END = 2 };                /* x of the records */

/* ---- arms ------------------------------------------------------------------------------------ */

typedef struct setting {
    size_t batch;
    double rate;
} setting;

enum { SETTINGS = 6, MIDDLE = 2, LOW = 4, HIGH = 5, ARMS = 2 * SETTINGS };

static const setting settings[SETTINGS] = {{8, 0.1},   {32, 0.1},   {128, 0.1},
                                           {256, 0.1}, {128, 0.05}, {128, 0.5}};

static const lab_arm arms[ARMS] = {
    {"none_8", "no norm, batch 8", 5, 0},          {"none_32", "no norm, batch 32", 5, 0},
    {"none_128", "no norm, batch 128", 5, 0},      {"none_256", "no norm, batch 256", 5, 0},
    {"none_slow", "no norm, rate 0.05", 5, 15},    {"none_fast", "no norm, rate 0.5", 5, 15},
    {"batch_8", "batch norm, batch 8", 5, 0},      {"batch_32", "batch norm, batch 32", 5, 0},
    {"batch_128", "batch norm, batch 128", 5, 0},  {"batch_256", "batch norm, batch 256", 5, 0},
    {"batch_slow", "batch norm, rate 0.05", 5, 0}, {"batch_fast", "batch norm, rate 0.5", 5, 0}};

static training_set train, test; /* made before the first run, shared by all */

static int prepare(const dataset *data, int quick)
{
    return training_load(&train, &test, data, quick ? 512 : IMAGES, quick ? 200 : 0, DATASET_STD);
}

static nrm_mlp *make_net(const lab_run *r, size_t max_batch, void **block)
{
    const setting *s = &settings[r->arm % SETTINGS];
    nrm_mlp_layer layer[HIDDEN + 1];
    nrm_mlp_spec spec = training_plain(layer, HIDDEN, WIDTH, NRM_RELU,
                                       r->arm < SETTINGS ? NRM_NO_NORM : NRM_BATCH_NORM);
    spec.max_batch = max_batch > s->batch ? max_batch : s->batch;
    spec.seed = r->seed;
    spec.lr = (nrm_real)s->rate;
    return training_net(&spec, block);
}

/* ---- flatness -------------------------------------------------------------------------------- */

/* The loss of the first n images of a set as one batch, seen from the parameters as they are. */
typedef struct view {
    nrm_mlp *net;
    const nrm_real *x;
    const int *labels;
    size_t n;
    nrm_real *kept; /* [n_params] */
} view;

static int view_open(view *v, nrm_mlp *net, const nrm_real *x, const int *labels, size_t n)
{
    v->net = net;
    v->x = x;
    v->labels = labels;
    v->n = n;
    v->kept = (nrm_real *)malloc(net->n_params * sizeof *v->kept);
    if (v->kept) memcpy(v->kept, net->params, net->n_params * sizeof *v->kept);
    return v->kept ? 0 : -1;
}

/* The loss, and net->grads, at kept + t d; d null: at kept. The parameters are put back. */
static int view_at(view *v, const nrm_real *d, double t, double *loss)
{
    nrm_mlp *net = v->net;
    nrm_acc value = 0;
    size_t i;
    int rc;
    for (i = 0; i < net->n_params && d; i++)
        net->params[i] = (nrm_real)((double)v->kept[i] + t * (double)d[i]);
    rc = nrm_mlp_gradient(net, &value, v->x, v->labels, v->n, NRM_TRAIN);
    memcpy(net->params, v->kept, net->n_params * sizeof *v->kept);
    *loss = (double)value;
    return rc;
}

static double dot(const nrm_real *a, const nrm_real *b, size_t n)
{
    double sum = 0;
    size_t i;
    for (i = 0; i < n; i++) sum += (double)a[i] * (double)b[i];
    return sum;
}

static void add_times(nrm_real *a, const nrm_real *b, double factor, size_t n)
{
    size_t i;
    for (i = 0; i < n; i++) a[i] = (nrm_real)((double)a[i] + factor * (double)b[i]);
}

static void scale(nrm_real *a, double factor, size_t n)
{
    size_t i;
    for (i = 0; i < n; i++) a[i] = (nrm_real)(factor * (double)a[i]);
}

/* out = H q, q of length 1: the difference of the gradients on both sides. */
static int hessian_times(view *v, const nrm_real *q, nrm_real *out)
{
    const size_t n = v->net->n_params;
    double loss;
    int rc = view_at(v, q, NUDGE, &loss);
    memcpy(out, v->net->grads, n * sizeof *out);
    if (rc >= 0) rc = view_at(v, q, -NUDGE, &loss);
    add_times(out, v->net->grads, -1, n);
    scale(out, 1 / (2 * NUDGE), n);
    return rc;
}

/* How many eigenvalues of the tridiagonal matrix with diagonal a[k] and b[k-1] beside it are above
   x: the signs of the pivots of x - T. */
static size_t eigenvalues_above(const double *a, const double *b, size_t k, double x)
{
    double pivot = 1;
    size_t i, above = 0;
    for (i = 0; i < k; i++) {
        pivot = x - a[i] - (i ? b[i - 1] * b[i - 1] / pivot : 0);
        if (fabs(pivot) < 1e-300) pivot = 1e-300;
        above += pivot < 0 ? 1u : 0u;
    }
    return above;
}

static double largest_eigenvalue(const double *a, const double *b, size_t k)
{
    double lo = a[0], hi = a[0];
    size_t i;
    int round;
    for (i = 0; i < k; i++) { /* Gershgorin */
        const double off = (i ? fabs(b[i - 1]) : 0) + (i + 1 < k ? fabs(b[i]) : 0);
        hi = stats_larger(hi, a[i] + off);
        lo = stats_larger(lo, a[i]); /* no eigenvalue is below all of the diagonal */
    }
    for (round = 0; round < 60; round++) {
        const double middle = lo + (hi - lo) / 2;
        if (eigenvalues_above(a, b, k, middle) > 0)
            lo = middle;
        else
            hi = middle;
    }
    return lo + (hi - lo) / 2;
}

/* Of T's eigenvector for its largest eigenvalue, the last component over the length: from the last
   component to the first, the way in which they grow. */
static double last_component(const double *a, const double *b, size_t k, double lambda)
{
    double next = 0, here = 1, squares = 1;
    size_t i;
    for (i = k; i-- > 1;) {
        const double before = ((lambda - a[i]) * here - (i + 1 < k ? b[i] : 0) * next) / b[i - 1];
        next = here;
        here = before;
        squares += here * here;
    }
    return 1 / sqrt(squares);
}

typedef struct sharpness {
    double value; /* the largest eigenvalue of the Hessian                     */
    double error; /* some eigenvalue of the Hessian is as near to it as this   */
} sharpness;

/* Lanczos: T = QᵀHQ on the space of q, Hq, H²q, ..., q random, each new vector orthogonal to
   all before. */
static int lanczos(view *v, uint64_t seed, size_t steps, sharpness *out)
{
    const size_t n = v->net->n_params;
    nrm_real *q = (nrm_real *)malloc((steps + 1) * n * sizeof *q);
    double a[KRYLOV], b[KRYLOV];
    nrm_rng rng;
    size_t k, j, i;
    int rc = q ? 0 : -1;
    if (!q) return -1;
    nrm_rng_seed(&rng, seed, STREAM_PROBES + 2 * DIRECTIONS);
    for (i = 0; i < n; i++) q[i] = draw_normal(&rng);
    scale(q, 1 / sqrt(dot(q, q, n)), n);
    for (k = 0; k < steps && rc >= 0; k++) {
        nrm_real *here = q + k * n, *next = here + n;
        rc = hessian_times(v, here, next);
        a[k] = dot(here, next, n);
        for (j = 0; j < 2 * (k + 1); j++) { /* twice: once is not enough in float */
            const nrm_real *old = q + j % (k + 1) * n;
            add_times(next, old, -dot(old, next, n), n);
        }
        b[k] = sqrt(dot(next, next, n));
        if (!(b[k] > 1e-6 * fabs(a[0]))) { /* the space is closed: nothing new is left */
            k++;
            break;
        }
        scale(next, 1 / b[k], n);
    }
    free(q);
    out->value = largest_eigenvalue(a, b, k);
    out->error = b[k - 1] * last_component(a, b, k, out->value);
    return rc;
}

/* A random direction in the weights alone. RELATIVE: each weight by a random share of itself.
   FILTER (Li et al. 2018): random, and into each unit as long as its weights are. */
enum { FILTER, RELATIVE, KINDS };

static void direction(const nrm_mlp *net, int kind, uint64_t seed, uint64_t number, nrm_real *d)
{
    nrm_rng rng;
    size_t l, i, j;
    nrm_rng_seed(&rng, seed, STREAM_PROBES + number);
    memset(d, 0, net->n_params * sizeof *d);
    for (l = 0; l < net->spec.layers; l++) {
        const nrm_mlp_state *s = &net->state[l];
        nrm_real *dw = d + (s->W - net->params);
        const size_t width = s->shape.width;
        for (i = 0; i < s->in * width; i++) {
            dw[i] = draw_normal(&rng);
            if (kind == RELATIVE) dw[i] *= s->W[i];
        }
        for (j = 0; j < width && kind == FILTER; j++) {
            double of_w = 0, of_d = 0;
            for (i = 0; i < s->in; i++) {
                of_w += (double)s->W[i * width + j] * (double)s->W[i * width + j];
                of_d += (double)dw[i * width + j] * (double)dw[i * width + j];
            }
            for (i = 0; i < s->in; i++)
                dw[i * width + j] = (nrm_real)((double)dw[i * width + j] * sqrt(of_w / of_d));
        }
    }
}

/* What the network that was looked at last says of each image. */
static void decisions(const view *v, int *decided)
{
    size_t i, c;
    for (i = 0; i < v->n; i++) {
        const nrm_real *logit = v->net->logits + i * DATASET_CLASSES;
        decided[i] = 0;
        for (c = 1; c < DATASET_CLASSES; c++)
            if (logit[c] > logit[decided[i]]) decided[i] = (int)c;
    }
}

typedef struct harm {
    double rise;    /* of the loss                              */
    double changed; /* share of the images decided otherwise    */
} harm;

/* What such noise does, in the mean over the directions. */
static int shake(view *v, int kind, uint64_t seed, size_t directions, harm *out)
{
    nrm_real *d = (nrm_real *)malloc(v->net->n_params * sizeof *d);
    int *before = (int *)malloc(2 * v->n * sizeof *before);
    double here = 0, there = 0, rises = 0, changed = 0;
    size_t k, i;
    int rc = d && before ? view_at(v, NULL, 0, &here) : -1;
    if (rc >= 0) decisions(v, before);
    for (k = 0; k < directions && rc >= 0; k++) {
        int *after = before + v->n;
        direction(v->net, kind, seed, k, d);
        rc = view_at(v, d, NOISE, &there);
        decisions(v, after);
        rises += there - here;
        for (i = 0; i < v->n; i++) changed += before[i] != after[i];
    }
    free(before);
    free(d);
    out->rise = rises / (double)directions;
    out->changed = changed / (double)(directions * v->n);
    return rc;
}

/* ---- a run ----------------------------------------------------------------------------------- */

static int measure(lab_run *r, view *v, double when)
{
    static const char *const kind_name[KINDS] = {"filter", "relative"};
    sharpness s = {(double)NAN, (double)NAN};
    harm h = {(double)NAN, (double)NAN};
    double loss = (double)NAN;
    int kind, rc = view_at(v, NULL, 0, &loss);
    lab_record(r, "loss", when, loss);
    if (rc >= 0) rc = lanczos(v, r->seed, r->quick ? 3 : KRYLOV, &s);
    lab_record(r, "eigenvalue", when, s.value);
    lab_record(r, "eigenvalue_error", when, s.error);
    for (kind = 0; kind < KINDS && rc >= 0; kind++) {
        rc = shake(v, kind, r->seed, r->quick ? 2 : DIRECTIONS, &h);
        lab_record_as(r, when, h.rise, "%s_rise", kind_name[kind]);
        lab_record_as(r, when, h.changed, "%s_changed", kind_name[kind]);
    }
    return rc < 0 ? rc : 0;
}

/* With looks on the way or without: the weights at the end are the same. Returns
   NRM_NONFINITE if it diverged. */
static int train_net(lab_run *r, nrm_mlp *net, view *v, int looks)
{
    const size_t all = (r->quick ? 2u : EPOCHS) * train.n;
    const double equal = r->quick ? 0.7 : EQUAL_LOSS;
    size_t images = 0, next_look = looks ? train.n : all + 1;
    training_order order;
    double loss = 0;
    int rc = 0;
    if (training_order_start(&order, train.n, settings[r->arm % SETTINGS].batch, DATASET_PIXELS,
                             r->seed))
        return -1;
    while (images < all && rc >= 0) {
        training_go_on(&order, &train, 1);
        rc = nrm_mlp_train_step(net, NULL, order.x, order.labels, order.count);
        images += order.count;
        if (rc == NRM_NONFINITE) {
            lab_record(r, "diverged", (double)images, 1);
            break;
        }
        lab_progress(r, 0.8 * (double)images / (double)all);
        if (rc < 0 || images < next_look) continue;
        memcpy(v->kept, net->params, net->n_params * sizeof *v->kept);
        if (view_at(v, NULL, 0, &loss) < 0) rc = -1;
        next_look = images + (loss > 2 * equal ? train.n : train.n / 4);
        if (rc < 0 || !(loss <= equal)) continue;
        lab_record(r, "images", ON_THE_WAY, (double)images);
        rc = measure(r, v, ON_THE_WAY);
        next_look = all + 1;
    }
    training_order_free(&order);
    return rc;
}

static int measure_end(lab_run *r, nrm_mlp *net, view *v)
{
    nrm_acc loss = 0, accuracy = 0;
    int rc;
    memcpy(v->kept, net->params, net->n_params * sizeof *v->kept);
    rc = measure(r, v, AT_END);
    lab_record(r, "length", AT_END,
               sqrt(training_squares(net->state[0].W, DATASET_PIXELS * WIDTH)));
    if (rc >= 0 && r->arm >= SETTINGS) rc = training_reestimate(net, train.x, train.n);
    if (rc >= 0) rc = nrm_mlp_eval(net, &loss, &accuracy, train.x, train.labels, train.n);
    lab_record(r, "train_loss", AT_END, (double)loss);
    lab_record(r, "train_error", AT_END, 1 - (double)accuracy);
    if (rc >= 0) rc = nrm_mlp_eval(net, &loss, &accuracy, test.x, test.labels, test.n);
    lab_record(r, "test_loss", AT_END, (double)loss);
    lab_record(r, "test_error", AT_END, 1 - (double)accuracy);
    return rc;
}

static int run(lab_run *r)
{
    const size_t n = train.n < PROBE ? 128 : PROBE;
    void *block = NULL, *block2 = NULL;
    nrm_mlp *net = make_net(r, n, &block), *again;
    view v;
    int rc = net ? view_open(&v, net, train.x, train.labels, n) : -1;
    if (rc >= 0) rc = train_net(r, net, &v, 1);
    if (rc >= 0 && r->quick) { /* once more without looking */
        again = make_net(r, n, &block2);
        rc = again ? train_net(r, again, NULL, 0) : -1;
        if (rc >= 0)
            lab_record(r, "same_bits", 0,
                       memcmp(net->params, again->params, net->n_params * sizeof *net->params) ==
                           0);
    }
    if (rc == 0) rc = measure_end(r, net, &v); /* of a diverged one verdicts see nan */
    if (net) free(v.kept);
    free(block);
    free(block2);
    return rc < 0 ? -1 : 0;
}

/* ---- verdicts -------------------------------------------------------------------------------- */

#define CONVERGED 0.001 /* training error up to which a network counts as such */

enum { BY_BATCH, BY_RATE, ORDERS };

typedef struct order { /* settings, from the one that is said to end flattest */
    size_t n, at[4];
    double x[4];
    const char *values;
} order;

static const order orders[ORDERS] = {
    {4, {0, 1, 2, 3}, {8, 32, 128, 256}, "batch 8, 32, 128, 256"},
    {3, {HIGH, MIDDLE, LOW, 0}, {0.5, 0.1, 0.05, 0}, "rate 0.5, 0.1, 0.05"}};

static size_t arm_of(int norm, size_t which)
{
    return (norm == NRM_NO_NORM ? 0 : SETTINGS) + which;
}

static double mean_of(const lab_report *r, int norm, const order *o, size_t i, const char *series,
                      double when)
{
    return lab_mean(r, arm_of(norm, o->at[i]), series, when);
}

/* Do the means rise from the first setting to the last? */
static int in_order(const lab_report *r, int norm, const order *o, const char *series, double when)
{
    size_t i;
    for (i = 1; i < o->n; i++)
        if (!(mean_of(r, norm, o, i - 1, series, when) < mean_of(r, norm, o, i, series, when)))
            return 0;
    return 1;
}

/* Is the series lower in the first setting than in the last, seed by seed? */
static stats_finding ends(const lab_report *r, int norm, const order *o, const char *series,
                          double when, int magnitude_met)
{
    return lab_compare(r, arm_of(norm, o->at[0]), arm_of(norm, o->at[o->n - 1]), series, when, -1,
                       magnitude_met);
}

enum { MEASURES = 2 };
static const char *const measure_id[MEASURES] = {"eigenvalue", "filter_rise"};

/* part[MEASURES]: is the first setting the flatter one? */
static void flatter(const lab_report *r, int norm, const order *o, double when, stats_finding *part)
{
    size_t m;
    for (m = 0; m < MEASURES; m++)
        part[m] = ends(r, norm, o, measure_id[m], when, in_order(r, norm, o, measure_id[m], when));
}

/* "0.004, 0.02, 0.3": the means from the first setting to the last. */
static const char *means(lab_report *r, int norm, const order *o, const char *series, double when)
{
    const char *text = "";
    size_t i;
    for (i = 0; i < o->n; i++)
        text = lab_format(r, "%s%s%.2g", text, i ? ", " : "", mean_of(r, norm, o, i, series, when));
    return text;
}

/* How many runs of an arm have not converged: their ends are no minima and compare with nothing. */
static size_t unfinished_runs(const lab_report *r, size_t arm)
{
    size_t s, n = 0;
    for (s = 0; s < lab_seeds(r, arm); s++)
        n += lab_at(r, arm, s, "train_error", AT_END) <= CONVERGED ? 0u : 1u;
    return n;
}

static const char *unfinished(lab_report *r, int norm, const order *o, const char *before)
{
    const char *text = before;
    size_t i;
    for (i = 0; i < o->n; i++) {
        const size_t arm = arm_of(norm, o->at[i]), n = unfinished_runs(r, arm);
        if (n > 0)
            text =
                lab_format(r, "%s%snot converged: %lu of %lu runs of %s", text, *text ? "; " : "",
                           (unsigned long)n, (unsigned long)lab_seeds(r, arm), arms[arm].name);
    }
    return text;
}

static const char keskar[] = "Keskar et al. 2017, via Bjorck et al. 2018 and Chinese notes on "
                             "batch norm";
static const char bjorck[] = "Bjorck et al. 2018, via Chinese notes on batch norm";
static const char no_numbers[] = "no numbers in the notes";
static const char trials[] =
    "trial runs (1 seed, 40 epochs) without a norm, batch 8, 32, 128, 512: eigenvalue 0.004, 0.27, "
    "2.3, 14; rise 0.025, 0.12, 0.24, 0.31; at loss 0.05 1.3, 4.1, 8.3, never; test error 0.059, "
    "0.056, 0.062, 0.070. 512 had not converged; 256, 50 epochs: 5.2; 0.29; 11; 0.067";
static const char fast_trials[] =
    "trial runs (1 seed) of rate 0.5, without a norm and with batch norm: eigenvalue 0.14 and "
    "0.029; rise 0.061 and 0.029; at loss 0.05 5.0 and 1.1; test error 0.068 and 0.054";
static const char norm_trials[] =
    "trial run (1 seed) of batch 256 with batch norm: eigenvalue 0.88, rise 0.14, changed 0.040 "
    "(0.099 without a norm), test error 0.066; at loss 0.05 1.9";

/* clang-format off */
static const lab_claim claims[] = {
    {"33a", "A smaller batch ends in a flatter minimum, without a norm", keskar, no_numbers,
     "after 50 epochs the largest eigenvalue of the Hessian, and the rise of the loss under "
     "filter-normalized noise: batch 8 below 256, paired, and all four means in order; both "
     "measures (else partly)", trials, LAB_TRAINING, LAB_SETTING},
    {"33b", "... and with batch norm", keskar, no_numbers, "the same with batch norm", norm_trials,
     LAB_TRAINING, LAB_SETTING},
    {"33c", "A larger learning rate ends in a flatter minimum, without a norm", bjorck,
     "a suggestion, without numbers", "the same two measures at batch 128: rate 0.5 below 0.05, "
     "paired, 0.1 between them in the means; both (else partly)", fast_trials, LAB_TRAINING,
     LAB_SETTING},
    {"33d", "... and with batch norm", bjorck, "a suggestion, without numbers",
     "the same with batch norm", fast_trials, LAB_TRAINING, LAB_SETTING},
    {"33e", "Flatter minima generalize better, without a norm", keskar,
     "\"sharp minima, which often generalize poorly\"; no numbers", "Spearman's correlation of the "
     "measure at the end with the test error over the six settings, seed by seed: above 0, and at "
     "least 0.5 in the mean; for the eigenvalue and for the rise (else partly)", trials,
     LAB_TRAINING, LAB_SETTING},
    {"33f", "... and with batch norm", keskar,
     "\"sharp minima, which often generalize poorly\"; no numbers", "the same with batch norm",
     norm_trials, LAB_TRAINING, LAB_SETTING},
    {"33g", "A smaller batch generalizes better, without a norm", keskar, no_numbers,
     "test error after 50 epochs: batch 8 below 256, paired", trials, LAB_TRAINING, LAB_SETTING},
    {"33h", "... and with batch norm", keskar, no_numbers, "the same with batch norm", norm_trials,
     LAB_TRAINING, LAB_SETTING},
    {"33i", "A larger learning rate generalizes better, without a norm", bjorck,
     "a suggestion, without numbers",
     "test error after 50 epochs, batch 128: rate 0.5 below 0.05, paired", fast_trials,
     LAB_TRAINING, LAB_SETTING},
    {"33j", "... and with batch norm", bjorck, "CIFAR-10: the largest learning rate ends best",
     "the same with batch norm", fast_trials, LAB_TRAINING, LAB_SETTING},
    {"33k", "With batch norm the minimum is flatter than without, at the same settings",
     "Chinese notes on batch norm; a lecture-style post (of the landscape: \"smoother\", fewer "
     "\"sharp minima\")", "no numbers", "at the end, rise under filter-normalized noise: batch "
     "norm below no norm, paired, at each of the six settings (else partly)", fast_trials,
     LAB_TRAINING, LAB_SETTING},
    {"33l", "A smaller batch is flatter also where the training loss is the same", "ours",
     "not stated", "the measures of 33a where the loss on the probe images first falls below 0.05; "
     "both measures and both networks (else partly)", trials, LAB_TRAINING, LAB_SETTING},
    {"33m", "A larger learning rate is flatter also where the training loss is the same", "ours",
     "not stated", "those of 33c, likewise", fast_trials, LAB_TRAINING, LAB_SETTING},
    {"33n", "After a smaller batch noise changes fewer decisions", "ours",
     "not stated; decisions do not see how large the logits have become", "share of the probe "
     "images decided otherwise under filter-normalized noise, at the end: batch 8 below 256, "
     "paired, means in order, both networks (else partly)", norm_trials, LAB_TRAINING, LAB_SETTING},
    {"33o", "After a larger learning rate noise changes fewer decisions", "ours",
     "not stated; decisions do not see how large the logits have become",
     "the same: rate 0.5 below 0.05", fast_trials, LAB_TRAINING, LAB_SETTING}};
/* clang-format on */

static void judge_ends(lab_report *r)
{
    stats_finding part[MEASURES];
    size_t o;
    int norm;
    for (o = 0; o < ORDERS; o++)
        for (norm = NRM_NO_NORM; norm <= NRM_BATCH_NORM; norm++) {
            flatter(r, norm, &orders[o], AT_END, part);
            lab_verdict(r, lab_find(r, "33a") + 2 * o + norm, stats_together(part, MEASURES),
                        unfinished(r, norm, &orders[o],
                                   lab_format(r, "final training loss %s",
                                              means(r, norm, &orders[o], "train_loss", AT_END))),
                        "%s: eigenvalue %s; rise %s", orders[o].values,
                        means(r, norm, &orders[o], "eigenvalue", AT_END),
                        means(r, norm, &orders[o], "filter_rise", AT_END));
        }
}

/* Is the end of `lower` settings flatter for both networks, by measures that the final loss does
   not decide? */
static void judge_without_loss(lab_report *r)
{
    stats_finding part[2 * MEASURES];
    size_t o;
    int norm;
    for (o = 0; o < ORDERS; o++) {
        const order *by = &orders[o];
        for (norm = NRM_NO_NORM; norm <= NRM_BATCH_NORM; norm++)
            flatter(r, norm, by, ON_THE_WAY, part + MEASURES * norm);
        lab_verdict(r, lab_find(r, "33l") + o, stats_together(part, 2 * MEASURES), "",
                    "%s: eigenvalue %s without a norm, %s with; rise %s and %s", by->values,
                    means(r, NRM_NO_NORM, by, "eigenvalue", ON_THE_WAY),
                    means(r, NRM_BATCH_NORM, by, "eigenvalue", ON_THE_WAY),
                    means(r, NRM_NO_NORM, by, "filter_rise", ON_THE_WAY),
                    means(r, NRM_BATCH_NORM, by, "filter_rise", ON_THE_WAY));
    }
    for (o = 0; o < ORDERS; o++) {
        const order *by = &orders[o];
        for (norm = NRM_NO_NORM; norm <= NRM_BATCH_NORM; norm++)
            part[norm] = ends(r, norm, by, "filter_changed", AT_END,
                              in_order(r, norm, by, "filter_changed", AT_END));
        lab_verdict(r, lab_find(r, "33n") + o, stats_together(part, 2),
                    unfinished(r, NRM_BATCH_NORM, by, unfinished(r, NRM_NO_NORM, by, "")),
                    "%s: %s without a norm, %s with", by->values,
                    means(r, NRM_NO_NORM, by, "filter_changed", AT_END),
                    means(r, NRM_BATCH_NORM, by, "filter_changed", AT_END));
    }
}

/* Ranks 1..n; equal values share the mean of theirs. */
static void ranks(const double *x, size_t n, double *rank)
{
    size_t i, j;
    for (i = 0; i < n; i++) {
        rank[i] = 0.5;
        for (j = 0; j < n; j++) rank[i] += x[j] < x[i] ? 1 : x[j] <= x[i] ? 0.5 : 0;
    }
}

/* Spearman's correlation: Pearson's, of the ranks. */
static double spearman(const double *x, const double *y, size_t n)
{
    double a[SETTINGS], b[SETTINGS], ab = 0, aa = 0, bb = 0;
    const double middle = ((double)n + 1) / 2;
    size_t i;
    ranks(x, n, a);
    ranks(y, n, b);
    for (i = 0; i < n; i++) {
        ab += (a[i] - middle) * (b[i] - middle);
        aa += (a[i] - middle) * (a[i] - middle);
        bb += (b[i] - middle) * (b[i] - middle);
    }
    return ab / sqrt(aa * bb);
}

/* Over the six settings, for each seed: of a measure of sharpness and the test error. */
static size_t correlations(const lab_report *r, int norm, const char *series, double *rho)
{
    const size_t n = lab_seeds(r, arm_of(norm, 0));
    double sharp[SETTINGS], error[SETTINGS];
    size_t s, i;
    for (s = 0; s < n; s++) {
        for (i = 0; i < SETTINGS; i++) {
            sharp[i] = lab_at(r, arm_of(norm, i), s, series, AT_END);
            error[i] = lab_at(r, arm_of(norm, i), s, "test_error", AT_END);
        }
        rho[s] = spearman(sharp, error, SETTINGS);
    }
    return n;
}

static void judge_relation(lab_report *r)
{
    int norm;
    size_t m;
    for (norm = NRM_NO_NORM; norm <= NRM_BATCH_NORM; norm++) {
        double rho[LAB_SEEDS_MAX], zero[LAB_SEEDS_MAX] = {0};
        stats_summary found[MEASURES];
        stats_finding part[MEASURES];
        for (m = 0; m < MEASURES; m++) {
            const size_t n = correlations(r, norm, measure_id[m], rho);
            found[m] = stats_describe(rho, n);
            part[m] = stats_judge_pairs(rho, zero, n, +1, found[m].mean >= 0.5);
        }
        lab_verdict(r, lab_find(r, "33e") + norm, stats_together(part, MEASURES),
                    lab_format(r, "with the share of changed decisions: %.2f",
                               stats_mean(rho, correlations(r, norm, "filter_changed", rho))),
                    "correlation %s with the eigenvalue, %s with the rise",
                    lab_mean_sd(r, found[0], 2), lab_mean_sd(r, found[1], 2));
    }
}

static void judge_accuracy(lab_report *r)
{
    size_t o;
    int norm;
    for (o = 0; o < ORDERS; o++)
        for (norm = NRM_NO_NORM; norm <= NRM_BATCH_NORM; norm++) {
            const order *by = &orders[o];
            const size_t first = arm_of(norm, by->at[0]), last = arm_of(norm, by->at[by->n - 1]);
            lab_verdict(
                r, lab_find(r, "33g") + 2 * o + norm, ends(r, norm, by, "test_error", AT_END, 1),
                unfinished(r, norm, by,
                           lab_format(r, "test loss %s", means(r, norm, by, "test_loss", AT_END))),
                "%s against %s", lab_text(r, first, "test_error", AT_END, 4),
                lab_text(r, last, "test_error", AT_END, 4));
        }
}

static void judge_norm(lab_report *r)
{
    stats_finding part[SETTINGS];
    size_t i, lower = 0;
    const char *text = "";
    for (i = 0; i < SETTINGS; i++) {
        const size_t none = arm_of(NRM_NO_NORM, i), batch = arm_of(NRM_BATCH_NORM, i);
        part[i] = lab_compare(r, batch, none, "filter_rise", AT_END, -1, 1);
        lower += lab_mean(r, batch, "eigenvalue", AT_END) < lab_mean(r, none, "eigenvalue", AT_END);
        text = lab_format(r, "%s%s%.2g / %.2g", text, i ? ", " : "",
                          lab_mean(r, batch, "filter_rise", AT_END),
                          lab_mean(r, none, "filter_rise", AT_END));
    }
    lab_verdict(r, lab_find(r, "33k"), stats_together(part, SETTINGS),
                lab_format(r,
                           "its mean eigenvalue is lower at %lu of 6 settings, but that sees the "
                           "lengths of weights that batch norm makes irrelevant",
                           (unsigned long)lower),
                "batch 8, 32, 128, 256, rate 0.05, 0.5: %s", text);
}

/* ---- checks ---------------------------------------------------------------------------------- */

enum { TOY_IN = 12, TOY_WIDTH = 8, TOY_N = 64 };

/* A small network and random images for it, of the type of the big ones. */
static nrm_mlp *toy_net(size_t hidden, nrm_real *x, int *labels, void **block)
{
    nrm_mlp_layer layer[HIDDEN + 1];
    nrm_mlp_spec spec = training_plain(layer, hidden, TOY_WIDTH, NRM_RELU, NRM_NO_NORM);
    nrm_rng rng;
    size_t i;
    nrm_rng_seed(&rng, 1, STREAM_PROBES);
    for (i = 0; i < TOY_N * TOY_IN; i++) x[i] = draw_normal(&rng);
    for (i = 0; i < TOY_N; i++) labels[i] = (int)nrm_rng_below(&rng, DATASET_CLASSES);
    spec.inputs = TOY_IN;
    spec.max_batch = TOY_N;
    spec.seed = 1;
    return training_net(&spec, block);
}

/* The largest eigenvalue of the mean of (x, 1)(x, 1)ᵀ, by multiplying it with a vector again and
   again. */
static double second_moment(const nrm_real *x)
{
    double v[TOY_IN + 1], w[TOY_IN + 1], length = 0;
    size_t round, i, j;
    for (j = 0; j <= TOY_IN; j++) v[j] = 1;
    for (round = 0; round < 1000; round++) {
        memset(w, 0, sizeof w);
        for (i = 0; i < TOY_N; i++) {
            double along = v[TOY_IN];
            for (j = 0; j < TOY_IN; j++) along += v[j] * (double)x[i * TOY_IN + j];
            for (j = 0; j < TOY_IN; j++) w[j] += along * (double)x[i * TOY_IN + j] / TOY_N;
            w[TOY_IN] += along / TOY_N;
        }
        length = 0;
        for (j = 0; j <= TOY_IN; j++) length += w[j] * w[j];
        length = sqrt(length);
        for (j = 0; j <= TOY_IN; j++) v[j] = w[j] / length;
    }
    return length;
}

/* Softmax regression with weights 0 has the Hessian of its logits, (I - 11ᵀ/10)/10, in Kronecker's
   product with the mean of (x, 1)(x, 1)ᵀ: eigenvalues are products of both's. */
static void check_eigenvalue(lab_report *r)
{
    nrm_real x[TOY_N * TOY_IN];
    int labels[TOY_N];
    void *block = NULL;
    nrm_mlp *net = toy_net(0, x, labels, &block);
    const double expected = second_moment(x) / DATASET_CLASSES;
    sharpness s = {(double)NAN, (double)NAN};
    view v;
    if (net) {
        memset(net->params, 0, net->n_params * sizeof *net->params);
        if (view_open(&v, net, x, labels, TOY_N) == 0) (void)lanczos(&v, 1, KRYLOV, &s);
        free(v.kept);
    }
    lab_check(r, fabs(s.value / expected - 1) < 1e-3,
              "the eigenvalue of a softmax regression is that of its formula",
              "%.5f and %.5f, error at most %.0e", s.value, expected, s.error);
    free(block);
}

/* Twice the weights and the bias into some units of the first layer, half of those out of them:
   the same function. */
static void rescale(nrm_mlp *net, size_t units)
{
    nrm_mlp_state *in = &net->state[0], *out = &net->state[1];
    size_t i, j;
    for (j = 0; j < units; j++) {
        for (i = 0; i < in->in; i++) in->W[i * in->shape.width + j] *= 2;
        in->b[j] *= 2;
        for (i = 0; i < out->shape.width; i++) out->W[j * out->shape.width + i] /= 2;
    }
}

static void check_scale(lab_report *r)
{
    nrm_real x[TOY_N * TOY_IN];
    int labels[TOY_N], kind, done = 0;
    void *block = NULL;
    nrm_mlp *net = toy_net(2, x, labels, &block);
    harm before[KINDS], after[KINDS];
    sharpness sharp[2];
    view v;
    memset(before, 0, sizeof before);
    memset(after, 0, sizeof after);
    memset(sharp, 0, sizeof sharp);
    if (net && view_open(&v, net, x, labels, TOY_N) == 0) {
        done = lanczos(&v, 1, KRYLOV, &sharp[0]) >= 0;
        for (kind = 0; kind < KINDS; kind++) (void)shake(&v, kind, 1, 10, &before[kind]);
        for (kind = 0; kind < KINDS; kind++) { /* the filters of a layer; any units */
            rescale(net, kind == FILTER ? TOY_WIDTH : 3);
            memcpy(v.kept, net->params, net->n_params * sizeof *v.kept);
            (void)shake(&v, kind, 1, 10, &after[kind]);
        }
        done = done && lanczos(&v, 1, KRYLOV, &sharp[1]) >= 0;
        free(v.kept);
    }
    for (kind = 0; kind < KINDS; kind++)
        lab_check(r,
                  done && before[kind].rise != 0 &&
                      memcmp(&before[kind], &after[kind], sizeof before[kind]) == 0,
                  kind == FILTER ? "filter-normalized noise does not see the scale of a layer"
                                 : "relative noise does not see the scale of a unit",
                  "ReLU, weights in doubled and out halved: rise %.6f and %.6f; eigenvalue %.2f "
                  "and %.2f",
                  before[kind].rise, after[kind].rise, sharp[0].value, sharp[1].value);
    free(block);
}

static void check_runs(lab_report *r)
{
    double error = 0, least = (double)INFINITY, most = 0;
    size_t a, s;
    for (a = 0; a < ARMS; a++)
        for (s = 0; s < lab_seeds(r, a); s++) {
            const double at_end = lab_at(r, a, s, "eigenvalue_error", AT_END);
            const double loss = lab_at(r, a, s, "loss", ON_THE_WAY);
            if (lab_get(r, a, s, "diverged").n > 0) continue;
            error = stats_larger(error, at_end / lab_at(r, a, s, "eigenvalue", AT_END));
            least = stats_smaller(least, loss);
            most = stats_larger(most, loss);
        }
    if (lab_quick(r)) {
        lab_check_same_bits(r);
        return;
    }
    lab_check(r, error < 0.05, "eigenvalues have settled", "error at most %.1e of the value",
              error);
    lab_check(r, most <= EQUAL_LOSS, "where the loss is said to be below 0.05, it is",
              "%.4f to %.4f", least, most);
}

/* ---- figure ---------------------------------------------------------------------------------- */

enum { COLUMNS = 4 };

typedef struct column {
    const char *series, *heading, *axis;
    int scale, both; /* 1: also on the way, at equal loss */
} column;

static const column columns[COLUMNS] = {
    {"eigenvalue", "largest eigenvalue", "of the Hessian", PLOT_LOG10, 1},
    {"filter_rise", "rise of the loss", "under noise", PLOT_LOG10, 1},
    {"filter_changed", "changed decisions", "under noise", PLOT_LOG10, 1},
    {"test_error", "test error", "share of 10 000 images", PLOT_LINEAR, 0}};

static const char *const norm_id[2] = {"none", "batch"};

static plot_style style_of(int norm, double when)
{
    plot_style s = lab_style(norm_id[norm]);
    s.marker = norm == NRM_NO_NORM ? PLOT_CIRCLE : PLOT_SQUARE;
    s.marker_every = 1;
    if (when < AT_END) {
        s.width = 0.5;
        s.marker = norm == NRM_NO_NORM ? PLOT_RING : PLOT_CROSS;
    }
    return s;
}

static void draw_order(lab_report *r, plot_panel *p, const order *o, const column *c, int norm,
                       double when)
{
    double mean[SETTINGS], lo[SETTINGS], hi[SETTINGS];
    const char *name =
        lab_format(r, "%s, %s", norm == NRM_NO_NORM ? "no norm" : "batch norm",
                   when < AT_END ? "where the loss falls below 0.05" : "after 50 epochs");
    size_t i;
    for (i = 0; i < o->n; i++) {
        const stats_summary s = lab_summary(r, arm_of(norm, o->at[i]), c->series, when);
        mean[i] = s.mean;
        lo[i] = s.min;
        hi[i] = s.max;
    }
    if (when >= AT_END) plot_band(p, NULL, o->x, lo, hi, o->n, style_of(norm, when));
    plot_line(p, name, o->x, mean, o->n, style_of(norm, when));
}

static void order_panel(lab_report *r, plot_figure *f, size_t which, size_t col, int row, int place)
{
    static const char *const tick[ORDERS][4] = {{"8", "32", "128", "256"},
                                                {"0.05", "0.1", "0.5", NULL}};
    static const double tick_at[ORDERS][4] = {{8, 32, 128, 256}, {0.05, 0.1, 0.5, 0}};
    const order *o = &orders[which];
    const column *c = &columns[col];
    plot_panel *p = plot_add(f, row, place, 1, 1);
    int norm;
    plot_heading(p, c->heading);
    plot_axis_x(p, which == BY_BATCH ? "batch size (rate 0.1)" : "learning rate (batch 128)",
                PLOT_LOG2);
    plot_axis_y(p, c->axis, c->scale);
    plot_grid(p, PLOT_GRID_Y);
    plot_ticks_x(p, tick_at[which], tick[which], (int)o->n);
    if (which == BY_BATCH) plot_range_x(p, 6, 340);
    if (which == BY_RATE) plot_range_x(p, 0.035, 0.7);
    if (col == 0) {
        const double limit[4] = {2 / 0.7, 2 / 0.035, 20, 20}, at[4] = {0.7, 0.035, 6, 340};
        plot_line(p, NULL, at + (which ? 0 : 2), limit + (which ? 0 : 2), 2, plot_thin(PLOT_INK));
        plot_text(p, o->x[1], 21, "2/rate",
                  which ? PLOT_LEFT + PLOT_ABOVE : PLOT_CENTER + PLOT_BELOW, PLOT_INK);
    }
    for (norm = NRM_NO_NORM; norm <= NRM_BATCH_NORM; norm++) {
        if (c->both) draw_order(r, p, o, c, norm, ON_THE_WAY);
        draw_order(r, p, o, c, norm, AT_END);
    }
}

/* All runs at the end. Beside the rightmost of a setting stands its name; those of rate 0.05 lie
   among those of batch 256. */
static void draw_runs(lab_report *r, plot_panel *p, size_t arm, const char *x_series,
                      const char *y_series, const char *name, plot_style style)
{
    double x[LAB_SEEDS_MAX], y[LAB_SEEDS_MAX];
    const size_t n = lab_values(r, arm, x_series, AT_END, x);
    size_t s, right = 0;
    (void)lab_values(r, arm, y_series, AT_END, y);
    plot_scatter(p, NULL, x, y, n, style);
    for (s = 1; s < n; s++)
        if (x[s] > x[right]) right = s;
    if (name) plot_text(p, x[right], y[right], name, PLOT_LEFT, PLOT_INK);
}

static void runs_panel(lab_report *r, plot_figure *f, size_t col, int row, int place)
{
    static const char *const name[SETTINGS] = {"  8", "  32", "  128", "  256", NULL, "  0.5"};
    static const double range[COLUMNS][2] = {{1e-5, 0.1}, {2e-3, 40}, {0.01, 100}, {4e-3, 2}};
    const int of_loss = col == 0;
    const column *x = &columns[of_loss ? 0 : col - 1], *y = &columns[of_loss ? 0 : COLUMNS - 1];
    plot_panel *p = plot_add(f, row, place, 1, 1);
    size_t i;
    int norm;
    plot_heading(p, of_loss ? "eigenvalue and loss" : x->heading);
    plot_axis_x(p, of_loss ? "training loss" : lab_format(r, "%s %s", x->heading, x->axis),
                PLOT_LOG10);
    plot_axis_y(p, of_loss ? "largest eigenvalue" : y->heading, y->scale);
    plot_grid(p, PLOT_GRID_BOTH);
    if (!lab_quick(r)) plot_range_x(p, range[col][0], range[col][1]);
    for (norm = NRM_NO_NORM; norm <= NRM_BATCH_NORM; norm++)
        for (i = 0; i < SETTINGS; i++) {
            plot_style style = style_of(norm, AT_END);
            const int crowded = col > 1 && (norm != NRM_NO_NORM || i != HIGH);
            style.alpha = 0.6;
            draw_runs(r, p, arm_of(norm, i), of_loss ? "train_loss" : x->series, y->series,
                      crowded ? NULL : name[i], style);
        }
}

static void print_ends(lab_report *r)
{
    size_t a;
    for (a = 0; a < ARMS; a++)
        printf("%-22s training loss %.5f, error %.4f%s; test loss %.3f, error %s; relative noise: "
               "rise %.3f, changed %.4f; first layer's length %.1f; loss 0.05 at epoch %.1f\n",
               arms[a].name, lab_mean(r, a, "train_loss", AT_END),
               lab_mean(r, a, "train_error", AT_END),
               unfinished_runs(r, a) == 0 ? "" : " (not all converged)",
               lab_mean(r, a, "test_loss", AT_END), lab_text(r, a, "test_error", AT_END, 4),
               lab_mean(r, a, "relative_rise", AT_END), lab_mean(r, a, "relative_changed", AT_END),
               lab_mean(r, a, "length", AT_END), lab_mean(r, a, "images", ON_THE_WAY) / IMAGES);
}

/* Flatness under noise and test error: what a user would feel. */
static int page_noise(lab_report *r)
{
    plot_figure *f = lab_figure(
        r, "Small batches and, with batch norm, large rates end in flatter and better minima", 1600,
        1180);
    size_t which, col;
    plot_shared_legend(f);
    for (which = 0; which < ORDERS; which++)
        for (col = 1; col < COLUMNS; col++) order_panel(r, f, which, col, (int)which, (int)col - 1);
    return lab_save(r, f, NULL);
}

/* The eigenvalue, and each run by itself. */
static int page_runs(lab_report *r)
{
    plot_figure *f = lab_figure(
        r, "The flatter a run ends, the lower its test error; and the lower its loss", 1600, 1180);
    size_t which, col;
    plot_shared_legend(f);
    for (which = 0; which < ORDERS; which++) order_panel(r, f, which, 0, 0, (int)which);
    for (col = 0; col < COLUMNS; col++)
        runs_panel(r, f, col, col > 0, col > 0 ? (int)col - 1 : ORDERS);
    return lab_save(r, f, "runs");
}

static int report(lab_report *r)
{
    judge_ends(r);
    judge_relation(r);
    judge_accuracy(r);
    judge_norm(r);
    judge_without_loss(r);
    check_eigenvalue(r);
    check_scale(r);
    check_runs(r);
    print_ends(r);
    return page_noise(r) || page_runs(r);
}

/* clang-format off */
static const lab_program program = {
    "33_flat_minima", NRM_VERSION,
    "Do small batches and large learning rates end in flatter minima that generalize better?",
    "784-100-100-10, ReLU, standardized pixels, SGD with rate 0.1 and batch 128 where not told "
    "otherwise, 50 epochs of 5120 images; flatness on 2000 of them", 1, LAB_USES_DATA, arms, ARMS,
    prepare, run, report, claims, LAB_COUNT(claims)};
/* clang-format on */
LAB_MAIN(program)
