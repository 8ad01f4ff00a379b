/* 27_initialisation: does a norm forgive a bad start? (README.md)

   784-100x6-10, ReLU, MNIST with mean 0 and variance 1, Glorot (uniform), SGD with rate 0.1,
   batches of 128. Arms: none (with biases), batch norm, layer norm on the hidden layers.

       scale      all weight matrices are multiplied by 0.01, 0.1, 0.3, 1, 3, 10 at the start; 600
                  steps; accuracy on the test set. "Width": how many decades of the scale, from 0.01
                  to 10, have an accuracy above 0.9 (straight lines between the points, in the
                  logarithm). Beyond that, and not judged: 0.001 and 100
       bad batch  the pixels of batch 300 are multiplied by 100; also by 10 and by 0.01. Accuracy on
                  2000 test images, before and after, up to step 600
       starts     three initialisations of each seed, 100 steps with each of six rates: mean loss of
                  the last ten batches
       slice      after 100 steps a plane is laid through the weights, along two random directions
                  that have the length of each unit's own weights (filter-normalised: Li, Xu,
                  Taylor, Studer and Goldstein 2018), biases, γ and β aside. The loss of 512
                  training images, norms in train mode, on 41 x 41 points of it; and from three
                  starting points in it 10 steps of gradient descent within the plane, at rates
                  of 0.001 to 10

   The slice is after the drawings of a lecture-style post: descent from three points, with and
   without batch norm. Descent with all weights leaves any plane at once, so here it is kept in
   it. */
#include "lab/experiment.h"
#include "lab/draw.h"

/* ---- settings -------------------------------------------------------------------------------- */

enum { NONE = 0, BATCH, LAYER, NORMS };
enum { SCALE = 0, BAD, STARTS, PATHS, SLICE, PARTS }; /* an arm is a part with a norm */

static const int norm_of[NORMS] = {NRM_NO_NORM, NRM_BATCH_NORM, NRM_LAYER_NORM};
static const char *const norm_name[NORMS] = {"none", "batch norm", "layer norm"};
static const char *const norm_style[NORMS] = {"none", "batch", "layer"};

enum { HIDDEN = 6, SCALES = 8, FACTORS = 4, MOMENTS = 9, RATES = 6, POINTS = 3, WALK = 10 };
enum { PLANE_RATES = 9, SIDE = 41, DRAWN = 2 };

static const double scales[SCALES] = {0.001, 0.01, 0.1, 0.3, 1, 3, 10, 100};
static const double factors[FACTORS] = {1, 0.01, 10, 100}; /* the first: no bad batch at all */
/* In steps of the whole training, after that many. */
static const double moment[MOMENTS] = {200, 300, 301, 310, 330, 360, 400, 500, 600};
static const double rates[RATES] = {0.01, 0.03, 0.1, 0.3, 1, 3};
static const double plane_rates[PLANE_RATES] = {0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10};
static const double points[POINTS][2] = {{-0.8, -0.6}, {0.7, -0.7}, {0.1, 0.9}};
static const double drawn_rates[DRAWN] = {0.03, 0.3}; /* of them, whose paths are drawn */
#define REACH 1.0                                     /* the slice goes from -1 to 1 both ways */

typedef struct extent {
    size_t width, batch, steps, tested, warm, slice, side;
} extent;

static extent extent_of(const lab_run *r)
{
    const extent all = {100, 128, 600, 2000, 100, 512, SIDE}, small = {16, 32, 30, 200, 10, 64, 11};
    return r->quick ? small : all;
}

static size_t arm_of(size_t part, size_t norm)
{
    return part * NORMS + norm;
}

static training_set train_set, test_set; /* made once; the runs are forked with them */

static int prepare(const dataset *data, int quick)
{
    (void)quick;
    return training_load(&train_set, &test_set, data, 0, 0, DATASET_STD);
}

/* ---- a training ------------------------------------------------------------------------------ */

typedef struct training {
    lab_run *run;
    extent size;
    nrm_mlp *net;
    void *block;
    training_order order;
} training;

static int start(training *t, lab_run *run, uint64_t seed, double rate)
{
    const extent size = extent_of(run);
    nrm_mlp_layer layer[HIDDEN + 1];
    nrm_mlp_spec spec =
        training_plain(layer, HIDDEN, size.width, NRM_RELU, norm_of[run->arm % NORMS]);
    memset(t, 0, sizeof *t);
    t->run = run;
    t->size = size;
    spec.max_batch = t->size.slice > t->size.batch ? t->size.slice : t->size.batch;
    spec.seed = seed;
    spec.lr = (nrm_real)rate;
    t->net = training_net(&spec, &t->block);
    if (!t->net) return -1;
    return training_order_start(&t->order, train_set.n, t->size.batch, DATASET_PIXELS, run->seed);
}

static void finish(training *t)
{
    training_order_free(&t->order);
    free(t->block);
}

/* A loss that is not finite is no failure of the run: it says so, and no step is made. */
static int one_step(training *t, double *loss)
{
    nrm_acc value = 0;
    const int rc = nrm_mlp_train_step(t->net, &value, t->order.x, t->order.labels, t->order.count);
    *loss = rc == NRM_OK ? (double)value : (double)INFINITY;
    return rc < 0 ? -1 : 0;
}

static double accuracy(const training *t, size_t n)
{
    nrm_acc value = 0;
    (void)nrm_mlp_eval(t->net, NULL, &value, test_set.x, test_set.labels,
                       n < test_set.n ? n : test_set.n);
    return (double)value;
}

/* Weight matrices of the layers before `end`. */
static void scale_weights(nrm_mlp *net, size_t end, double by)
{
    size_t l, i;
    for (l = 0; l < end; l++)
        for (i = 0; i < net->state[l].in * net->state[l].shape.width; i++)
            net->state[l].W[i] *= (nrm_real)by;
}

/* ---- the scale of the weights ---------------------------------------------------------------- */

static double difference(const nrm_real *a, const nrm_real *b, size_t n, double by)
{
    double sum = 0, size = 0;
    size_t i;
    for (i = 0; i < n; i++) {
        const double d = (double)a[i] - by * (double)b[i];
        sum += d * d;
        size += by * by * (double)b[i] * (double)b[i];
    }
    return size > 0 ? sqrt(sum / size) : 0;
}

/* Twice the weights before a norm: the same outputs, half the gradient. How far that is off. */
static int note_invariance(training *t)
{
    const size_t rows = t->order.count, n = rows * 10,
                 weights = t->net->state[0].in * t->size.width;
    nrm_real *kept = (nrm_real *)malloc((n + weights) * sizeof *kept);
    int rc;
    if (!kept) return -1;
    rc = nrm_mlp_gradient(t->net, NULL, t->order.x, t->order.labels, rows, NRM_TRAIN);
    memcpy(kept, t->net->logits, n * sizeof *kept);
    memcpy(kept + n, t->net->state[0].dW, weights * sizeof *kept);
    scale_weights(t->net, HIDDEN, 2);
    if (rc == NRM_OK)
        rc = nrm_mlp_gradient(t->net, NULL, t->order.x, t->order.labels, rows, NRM_TRAIN);
    lab_record(t->run, "twice_output", 0, lab_round(difference(t->net->logits, kept, n, 1), 5));
    lab_record(t->run, "twice_gradient", 0,
               lab_round(difference(t->net->state[0].dW, kept + n, weights, 0.5), 5));
    scale_weights(t->net, HIDDEN, 0.5);
    free(kept);
    return rc < 0 ? -1 : 0;
}

static int run_scale(lab_run *run)
{
    size_t k, step;
    int failed = 0;
    for (k = 0; k < SCALES && !failed; k++) {
        training t;
        double loss = 0, end = 0, diverged = 0;
        size_t counted = 0;
        failed = start(&t, run, run->seed, 0.1);
        if (!failed) training_go_on(&t.order, &train_set, 1);
        if (!failed && k == 0) failed = note_invariance(&t);
        if (!failed) scale_weights(t.net, HIDDEN + 1, scales[k]);
        for (step = 0; step < t.size.steps && !failed; step++) {
            if (step > 0) training_go_on(&t.order, &train_set, 1);
            failed = one_step(&t, &loss);
            if (isinf(loss)) diverged = 1;
            if (step + 50 < t.size.steps) continue;
            end += loss;
            counted++;
        }
        if (!failed) {
            lab_record(run, "accuracy", scales[k], lab_round(accuracy(&t, test_set.n), 5));
            lab_record(run, "loss", scales[k], lab_round(end / (double)counted, 5));
            lab_record(run, "diverged", scales[k], lab_round(diverged, 5));
        }
        finish(&t);
        lab_progress(run, (double)(k + 1) / SCALES);
    }
    return failed;
}

/* ---- a bad batch ----------------------------------------------------------------------------- */

static void spoil(training *t, double by)
{
    size_t i;
    for (i = 0; i < t->order.count * DATASET_PIXELS; i++) t->order.x[i] *= (nrm_real)by;
}

/* How much the gradient of the spoilt batch differs from that of the batch. */
static int note_spoilt(training *t, double by)
{
    const size_t n = t->net->n_params;
    nrm_real *kept = (nrm_real *)malloc(n * sizeof *kept);
    int rc;
    if (!kept) return -1;
    rc = nrm_mlp_gradient(t->net, NULL, t->order.x, t->order.labels, t->order.count, NRM_TRAIN);
    memcpy(kept, t->net->grads, n * sizeof *kept);
    spoil(t, by);
    if (rc >= 0)
        rc = nrm_mlp_gradient(t->net, NULL, t->order.x, t->order.labels, t->order.count, NRM_TRAIN);
    lab_record(t->run, "spoilt_gradient", by, lab_round(difference(t->net->grads, kept, n, 1), 5));
    free(kept);
    return rc < 0 ? -1 : 0;
}

static int run_bad(lab_run *run)
{
    size_t k, step, m;
    int failed = 0;
    for (k = 0; k < FACTORS && !failed; k++) {
        training t;
        double loss;
        failed = start(&t, run, run->seed, 0.1);
        for (step = 0, m = 0; step < t.size.steps && !failed; step++) {
            const double per = 600.0 / (double)t.size.steps, done = (double)(step + 1) * per;
            training_go_on(&t.order, &train_set, 1);
            if (step == t.size.steps / 2) failed = note_spoilt(&t, factors[k]);
            if (!failed) failed = one_step(&t, &loss);
            for (; m < MOMENTS && moment[m] <= done && !failed; m++)
                lab_record_as(run, moment[m], lab_round(accuracy(&t, t.size.tested), 5), "after/%g",
                              factors[k]);
        }
        finish(&t);
        lab_progress(run, (double)(k + 1) / FACTORS);
    }
    return failed;
}

/* ---- three initialisations ------------------------------------------------------------------- */

static int run_starts(lab_run *run)
{
    size_t k, i, step;
    int failed = 0;
    for (k = 0; k < RATES && !failed; k++)
        for (i = 0; i < POINTS && !failed; i++) {
            training t;
            double loss = 0, end = 0;
            failed = start(&t, run, 1000 * run->seed + i, rates[k]);
            for (step = 0; step < t.size.warm && !failed; step++) {
                training_go_on(&t.order, &train_set, 1);
                failed = one_step(&t, &loss);
                if (step + 10 >= t.size.warm) end += loss / 10;
            }
            if (!failed)
                lab_record_as(run, rates[k], lab_round(end, 5), "start%lu", (unsigned long)i + 1);
            finish(&t);
            lab_progress(run, (double)(k + 1) / RATES);
        }
    return failed;
}

/* ---- the slice ------------------------------------------------------------------------------- */

typedef struct plane {
    training t;
    nrm_real *centre, *d[2]; /* [n_params] */
} plane;

/* Each unit's part of the direction is as long as its weights. */
static void draw_direction(const nrm_mlp *net, nrm_real *d, nrm_rng *rng)
{
    size_t l, i, j;
    memset(d, 0, net->n_params * sizeof *d);
    for (l = 0; l < net->spec.layers; l++) {
        const nrm_mlp_state *s = &net->state[l];
        nrm_real *part = d + (s->W - net->params);
        const size_t width = s->shape.width;
        for (i = 0; i < s->in * width; i++) part[i] = draw_normal(rng);
        for (j = 0; j < width; j++) {
            double drawn = 0, own = 0;
            for (i = 0; i < s->in; i++) {
                drawn += (double)part[i * width + j] * (double)part[i * width + j];
                own += (double)s->W[i * width + j] * (double)s->W[i * width + j];
            }
            for (i = 0; i < s->in; i++) part[i * width + j] *= (nrm_real)sqrt(own / drawn);
        }
    }
}

/* The worst ratio of a unit's part of the direction to its weights, over all units. */
static double length_ratio(const nrm_mlp *net, const nrm_real *d)
{
    double worst = 1;
    size_t l, i, j;
    for (l = 0; l < net->spec.layers; l++) {
        const nrm_mlp_state *s = &net->state[l];
        const nrm_real *part = d + (s->W - net->params);
        for (j = 0; j < s->shape.width; j++) {
            double along = 0, own = 0;
            for (i = 0; i < s->in; i++) {
                const size_t at = i * s->shape.width + j;
                along += (double)part[at] * (double)part[at];
                own += (double)s->W[at] * (double)s->W[at];
            }
            if (fabs(sqrt(along / own) - 1) > fabs(worst - 1)) worst = sqrt(along / own);
        }
    }
    return worst;
}

/* 100 steps, then two directions. */
static int plane_make(plane *p, lab_run *run)
{
    nrm_rng rng;
    size_t step, n;
    double loss;
    int failed;
    p->centre = NULL;
    failed = start(&p->t, run, run->seed, 0.1);
    for (step = 0; step < p->t.size.warm && !failed; step++) {
        training_go_on(&p->t.order, &train_set, 1);
        failed = one_step(&p->t, &loss);
    }
    if (failed) return -1;
    n = p->t.net->n_params;
    p->centre = (nrm_real *)malloc(3 * n * sizeof *p->centre);
    if (!p->centre) return -1;
    p->d[0] = p->centre + n;
    p->d[1] = p->d[0] + n;
    memcpy(p->centre, p->t.net->params, n * sizeof *p->centre);
    nrm_rng_seed(&rng, run->seed, TRAINING_STREAM_DATA + 27);
    draw_direction(p->t.net, p->d[0], &rng);
    draw_direction(p->t.net, p->d[1], &rng);
    return 0;
}

static void plane_free(plane *p)
{
    free(p->centre);
    finish(&p->t);
}

static void plane_go(plane *p, double a, double b)
{
    nrm_mlp *net = p->t.net;
    size_t i;
    for (i = 0; i < net->n_params; i++)
        net->params[i] = p->centre[i] + (nrm_real)a * p->d[0][i] + (nrm_real)b * p->d[1][i];
}

/* Loss, and if wanted the gradient by the plane's two coordinates. The forward pass moves running
   statistics, which nobody needs here any more. */
static double plane_loss(plane *p, double a, double b, double *gradient)
{
    nrm_mlp *net = p->t.net;
    const size_t rows = p->t.size.slice;
    nrm_acc loss = 0;
    size_t i, k;
    int rc;
    plane_go(p, a, b);
    if (gradient) {
        rc = nrm_mlp_gradient(net, &loss, train_set.x, train_set.labels, rows, NRM_TRAIN);
        for (k = 0; k < 2; k++)
            for (i = 0, gradient[k] = 0; i < net->n_params; i++)
                gradient[k] += (double)net->grads[i] * (double)p->d[k][i];
    } else {
        rc = nrm_mlp_forward(net, train_set.x, rows, NRM_TRAIN);
        if (rc >= 0)
            rc = nrm_cross_entropy_forward(&loss, NULL, net->logits, train_set.labels, rows, 10);
    }
    return rc == NRM_OK ? (double)loss : (double)INFINITY;
}

/* Ten steps from one point; returns the loss after them, and whether it ever rose. */
static double walk(plane *p, double rate, size_t point, int *rose, int recorded)
{
    double at[2], gradient[2], before = 0, loss = 0;
    int step, i;
    at[0] = points[point][0];
    at[1] = points[point][1];
    for (step = 0; step <= WALK; step++) {
        loss = plane_loss(p, at[0], at[1], gradient);
        if (step > 0 && !(loss <= before)) *rose = 1;
        before = loss;
        for (i = 0; i < 3 && recorded; i++)
            lab_record_as(p->t.run, step, lab_round(i < 2 ? at[i] : loss, 5), "%c%lu/%g", "abl"[i],
                          (unsigned long)point + 1, rate);
        for (i = 0; i < 2; i++) at[i] -= rate * gradient[i];
        if (isfinite(loss) && fabs(at[0]) + fabs(at[1]) < 1e6) continue;
        *rose = 1;
        return (double)INFINITY;
    }
    return loss;
}

static int run_paths(lab_run *run)
{
    plane p;
    size_t k, i;
    int failed = plane_make(&p, run);
    if (!failed) lab_record(run, "length_ratio", 0, lab_round(length_ratio(p.t.net, p.d[0]), 5));
    for (k = 0; k < PLANE_RATES && !failed; k++) {
        double sum = 0, sum2 = 0, end;
        int rose = 0;
        for (i = 0; i < POINTS; i++) {
            end = walk(&p, plane_rates[k], i, &rose, 0);
            sum += end / POINTS;
            sum2 += end * end / POINTS;
        }
        lab_record(run, "rose", plane_rates[k], lab_round(rose, 5));
        lab_record(run, "mean", plane_rates[k], lab_round(sum, 5));
        lab_record(run, "spread", plane_rates[k],
                   lab_round(sqrt(fmax(0, sum2 - sum * sum) * POINTS / (POINTS - 1)), 5));
        lab_progress(run, (double)(k + 1) / PLANE_RATES);
    }
    plane_free(&p);
    return failed;
}

static int run_slice(lab_run *run)
{
    plane p;
    size_t i, j;
    int failed = plane_make(&p, run);
    for (i = 0; i < p.t.size.side && !failed; i++) {
        const double step = 2 * REACH / (double)(p.t.size.side - 1);
        for (j = 0; j < p.t.size.side; j++) {
            const double loss =
                plane_loss(&p, (double)j * step - REACH, (double)i * step - REACH, NULL);
            lab_record(run, "z", (double)(i * p.t.size.side + j), lab_round(log10(loss), 5));
        }
        lab_progress(run, (double)(i + 1) / (double)p.t.size.side);
    }
    for (i = 0; i < DRAWN && !failed; i++)
        for (j = 0; j < POINTS; j++) {
            int rose = 0;
            (void)walk(&p, drawn_rates[i], j, &rose, 1);
        }
    plane_free(&p);
    return failed;
}

static int run(lab_run *r)
{
    static int (*const part[PARTS])(lab_run *) = {run_scale, run_bad, run_starts, run_paths,
                                                  run_slice};
    return part[r->arm / NORMS](r);
}

/* ---- verdicts -------------------------------------------------------------------------------- */

/* Decades of the scale from 0.01 to 10 with an accuracy above 0.9. */
static double width_of(const lab_report *r, size_t arm, size_t s)
{
    double width = 0;
    size_t k;
    for (k = 1; k + 1 < SCALES && scales[k + 1] <= 10; k++) {
        const double a = lab_at(r, arm, s, "accuracy", scales[k]) - 0.9;
        const double b = lab_at(r, arm, s, "accuracy", scales[k + 1]) - 0.9;
        const double decades = log10(scales[k + 1] / scales[k]);
        if (isnan(a) || isnan(b)) return (double)NAN;
        if (a > 0 && b > 0) width += decades;
        if ((a > 0) != (b > 0)) width += decades * fmax(a, b) / fabs(a - b);
    }
    return width;
}

/* c->a: the norm */
static void judge_width(lab_report *r, const lab_claim *c)
{
    const lab_numbers with = lab_each(r, arm_of(SCALE, c->a), width_of);
    const lab_numbers without = lab_each(r, arm_of(SCALE, NONE), width_of);
    lab_verdict(r, c,
                lab_more(with, without, lab_describe(with).mean - lab_describe(without).mean >= 2),
                "the scales of the test span three decades", "%s against %s decades",
                lab_pm(r, with, 2), lab_pm(r, without, 2));
}

static void judge_scale(lab_report *r, const lab_claim *c)
{
    const lab_numbers ten = lab_all(r, arm_of(SCALE, BATCH), "accuracy", 10);
    const lab_numbers one = lab_all(r, arm_of(SCALE, BATCH), "accuracy", 1);
    lab_verdict(r, c, lab_less(ten, one, 1), "", "%s against %s", lab_pm(r, ten, 3),
                lab_pm(r, one, 3));
}

/* How much accuracy is missing at the end. */
static lab_numbers loss_of(const lab_report *r, size_t norm)
{
    return lab_calc(lab_all(r, arm_of(BAD, norm), "after/1", 600), '-',
                    lab_all(r, arm_of(BAD, norm), "after/100", 600));
}

static void judge_bad(lab_report *r, const lab_claim *c)
{
    const lab_numbers lost = loss_of(r, c->a), none = loss_of(r, NONE);
    lab_verdict(r, c, lab_less(lost, none, lab_describe(lost).mean < 0.02),
                lab_format(r, "one step after the batch the accuracy is %s, without a norm %s",
                           lab_text(r, arm_of(BAD, c->a), "after/100", 301, 3),
                           lab_text(r, arm_of(BAD, NONE), "after/100", 301, 3)),
                "lower by %s against %s", lab_pm(r, lost, 3), lab_pm(r, none, 3));
}

/* log10 of the largest rate from which on downwards no path rises; the smallest rate's third if
   even that one fails. */
static double safe_rate(const lab_report *r, size_t arm, size_t s)
{
    double safe = plane_rates[0] / 3;
    size_t k;
    for (k = 0; k < PLANE_RATES; k++) {
        const double rose = lab_at(r, arm, s, "rose", plane_rates[k]);
        if (isnan(rose)) return rose;
        if (rose > 0.5) break;
        safe = plane_rates[k];
    }
    return log10(safe);
}

static double best_spread(const lab_report *r, size_t arm, size_t s)
{
    double best = (double)INFINITY, spread = (double)NAN;
    size_t k;
    for (k = 0; k < PLANE_RATES; k++) {
        const double mean = lab_at(r, arm, s, "mean", plane_rates[k]);
        if (!(mean < best)) continue;
        best = mean;
        spread = lab_at(r, arm, s, "spread", plane_rates[k]);
    }
    return spread;
}

static void judge_safe(lab_report *r, const lab_claim *c)
{
    const lab_numbers batch = lab_each(r, arm_of(PATHS, BATCH), safe_rate);
    const lab_numbers none = lab_each(r, arm_of(PATHS, NONE), safe_rate);
    lab_verdict(r, c, lab_more(batch, none, 1), "", "10^(%s) against 10^(%s)", lab_pm(r, batch, 2),
                lab_pm(r, none, 2));
}

static void judge_spread(lab_report *r, const lab_claim *c)
{
    const lab_numbers batch = lab_each(r, arm_of(PATHS, BATCH), best_spread);
    const lab_numbers none = lab_each(r, arm_of(PATHS, NONE), best_spread);
    const stats_summary a = lab_describe(batch), b = lab_describe(none);
    lab_verdict(r, c, lab_less(batch, none, 1), "", "%.1e ± %.1e against %.1e ± %.1e", a.mean, a.sd,
                b.mean, b.sd);
}

static double start_loss(const lab_report *r, size_t norm, size_t s, size_t rate, size_t i)
{
    static const char *const name[POINTS] = {"start1", "start2", "start3"};
    return lab_at(r, arm_of(STARTS, norm), s, name[i], rates[rate]);
}

/* Rates at which all three come below ln(10)/2; and the spread at the best rate. */
static double rates_that_work(const lab_report *r, size_t norm, size_t s, double *spread)
{
    double best = (double)INFINITY;
    size_t k, i, count = 0;
    *spread = (double)NAN;
    for (k = 0; k < RATES; k++) {
        double loss[POINTS];
        stats_summary three;
        for (i = 0; i < POINTS; i++) loss[i] = start_loss(r, norm, s, k, i);
        three = stats_describe(loss, POINTS);
        if (isnan(three.mean)) return three.mean; /* a record is missing: nothing to judge by */
        if (three.max < log(10) / 2) count++;
        if (!(three.mean < best)) continue;
        best = three.mean;
        *spread = three.sd;
    }
    return (double)count;
}

static double working_rates(const lab_report *r, size_t arm, size_t s)
{
    double spread;
    return rates_that_work(r, arm % NORMS, s, &spread);
}

static double spread_of_starts(const lab_report *r, size_t arm, size_t s)
{
    double spread;
    (void)rates_that_work(r, arm % NORMS, s, &spread);
    return spread;
}

static void judge_rates(lab_report *r, const lab_claim *c)
{
    const lab_numbers batch = lab_each(r, arm_of(STARTS, BATCH), working_rates);
    const lab_numbers none = lab_each(r, arm_of(STARTS, NONE), working_rates);
    lab_verdict(r, c, lab_more(batch, none, 1), "", "%s against %s of 6", lab_pm(r, batch, 1),
                lab_pm(r, none, 1));
}

static void judge_starts(lab_report *r, const lab_claim *c)
{
    const lab_numbers batch = lab_each(r, arm_of(STARTS, BATCH), spread_of_starts);
    const lab_numbers none = lab_each(r, arm_of(STARTS, NONE), spread_of_starts);
    lab_verdict(r, c, lab_less(batch, none, 1), "", "%s against %s", lab_pm(r, batch, 3),
                lab_pm(r, none, 3));
}

/* clang-format off */
static const lab_claim claims[] = {
    {"27a", "With batch norm the initialisation matters less",
     "a lecture-style post on how batch norm helps; a tutorial on batch and layer norm",
     "no numbers",
     "accuracy above 0.9 over at least 2 decades of the weights' scale more (mean of seeds)",
     "trial runs (1 seed): 2.64 against 0.05 decades", LAB_TRAINING, LAB_SETTING, judge_width,
     .a = BATCH},
    {"27b", "With layer norm the initialisation matters less",
     "a tutorial on batch and layer norm, after Ba, Kiros & Hinton 2016, Table 1", "no numbers",
     "as 27a", "trial runs (1 seed): 1.30 against 0.05 decades", LAB_TRAINING, LAB_SETTING,
     judge_width, .a = LAYER},
    {"27c", "Larger weights before batch norm make its training slower, though not its output",
     "ours, from the formula of Ioffe & Szegedy 2015, Section 3.3",
     "the gradient is 1/a as long where W is a times as large",
     "test accuracy after 600 steps with scale 10 below that with scale 1",
     "trial runs (1 seed): 0.827 against 0.965", LAB_TRAINING, LAB_SETTING, judge_scale},
    {"27d", "One bad batch does not ruin the training with batch norm",
     "a tutorial on batch and layer norm", "no numbers", "after a batch with pixels times 100, "
     "test accuracy at step 600 is lower by less than without a norm, and by less than 0.02",
     "trial runs (1 seed): by 0.000 against 0.926", LAB_TRAINING, LAB_SETTING, judge_bad,
     .a = BATCH},
    {"27e", "One bad batch does not ruin the training with layer norm",
     "a tutorial on batch and layer norm", "no numbers", "as 27d",
     "trial runs (1 seed): by 0.003 against 0.926", LAB_TRAINING, LAB_SETTING, judge_bad,
     .a = LAYER},
    {"27f", "With batch norm a larger step can be taken from all starting points",
     "a lecture-style post on how batch norm helps, its drawings", "drawings only", "in the plane: "
     "the largest rate at which the loss rises in none of 10 steps from each of three points",
     "trial runs (1 seed): 0.1 against 0.03", LAB_TRAINING, LAB_SETTING, judge_safe},
    {"27g", "With batch norm descent depends less on where it starts",
     "a lecture-style post on how batch norm helps, its drawings", "drawings only", "in the plane: "
     "standard deviation over three points of the loss after 10 steps, at each one's best rate",
     "trial runs (1 seed): 0.000 against 0.027", LAB_TRAINING, LAB_SETTING, judge_spread},
    {"27h", "With batch norm more learning rates do, whatever the starting point",
     "a lecture-style post on how batch norm helps", "drawings only", "number of six rates at "
     "which the loss after 100 steps is below ln(10)/2 from all of three initialisations",
     "trial runs (1 seed): 6 against 3", LAB_TRAINING, LAB_SETTING, judge_rates},
    {"27i", "With batch norm the loss reached depends less on the starting point",
     "a lecture-style post on how batch norm helps", "drawings only", "standard deviation over "
     "three initialisations of the loss after 100 steps, at each one's best rate",
     "trial runs (1 seed): 0.003 against 0.049", LAB_TRAINING, LAB_SETTING, judge_starts}};
/* clang-format on */

/* The largest value over seeds; nan if one is missing. */
static double worst_of(const lab_report *r, size_t arm, const char *series, double x)
{
    return lab_summary(r, arm, series, x).max;
}

static void check_all(lab_report *r)
{
    const double output = worst_of(r, arm_of(SCALE, BATCH), "twice_output", 0);
    const double gradient = worst_of(r, arm_of(SCALE, BATCH), "twice_gradient", 0);
    const double batch = worst_of(r, arm_of(BAD, BATCH), "spoilt_gradient", 100);
    const double layer = worst_of(r, arm_of(BAD, LAYER), "spoilt_gradient", 100);
    const stats_summary length = lab_summary(r, arm_of(PATHS, BATCH), "length_ratio", 0);
    lab_check(r, output < 1e-2, "batch norm does not see weights twice as large",
              "outputs differ by at most %.1e of their size", output);
    lab_check(r, gradient < 1e-2, "and its gradient is half as long",
              "but for at most %.1e of its size", gradient);
    lab_check(r, batch < 1e-2, "batch norm's gradient of a batch times 100 is the same",
              "but for at most %.1e of its size", batch);
    lab_check(r, layer < 1e-2, "layer norm's too", "but for at most %.1e of its size", layer);
    lab_check(r, length.min > 1 - 1e-4 && length.max < 1 + 1e-4,
              "directions of the slice are as long as each unit's weights",
              "ratios from %.6f to %.6f", length.min, length.max);
}

/* ---- pages ----------------------------------------------------------------------------------- */

/* Crosses where the loss became infinite, or no number, in most seeds. */
static void mark_diverged(lab_report *r, plot_panel *p, size_t norm)
{
    const size_t arm = arm_of(SCALE, norm);
    size_t k;
    for (k = 0; k < SCALES; k++) {
        const double y = lab_mean(r, arm, "accuracy", scales[k]);
        plot_style s = plot_marked(PLOT_INK, PLOT_CROSS);
        s.size = 1.6;
        if (lab_mean(r, arm, "diverged", scales[k]) > 0.5)
            plot_scatter(p, "diverged", &scales[k], &y, 1, s);
    }
}

static void draw_scale(lab_report *r, plot_figure *f)
{
    plot_panel *p = plot_add(f, 0, 0, 1, 2);
    plot_style shade = plot_solid(PLOT_LIGHT);
    size_t k;
    shade.alpha = 0.3;
    plot_heading(p, "accuracy after 600 steps");
    plot_axis_x(p, "scale of all weights at the start, 1: Glorot", PLOT_LOG10);
    plot_axis_y(p, "test accuracy", PLOT_LINEAR);
    plot_range_y(p, -0.04, 1.04);
    plot_span_x(p, 0.01, 10, shade);
    plot_hline(p, 0.9, "", plot_thin(PLOT_INK));
    for (k = 0; k < NORMS; k++) {
        lab_plot(r, p, arm_of(SCALE, k), "accuracy", norm_name[k],
                 plot_with_marker(lab_style(norm_style[k]), PLOT_CIRCLE));
        mark_diverged(r, p, k);
    }
}

static void draw_starts(lab_report *r, plot_figure *f)
{
    plot_panel *p = plot_add(f, 0, 2, 1, 1);
    size_t k, i, s;
    plot_heading(p, "three starts of each seed");
    plot_axis_x(p, "learning rate", PLOT_LOG10);
    plot_axis_y(p, "loss after 100 steps", PLOT_LOG10);
    plot_range_y(p, 0.1, 10);
    for (k = 0; k < NORMS; k++)
        for (s = 0; s < lab_seeds(r, arm_of(STARTS, k)); s++)
            for (i = 0; i < POINTS; i++) {
                double loss[RATES];
                plot_style style = lab_style(norm_style[k]);
                size_t j;
                for (j = 0; j < RATES; j++) loss[j] = start_loss(r, k, s, j, i);
                style.width = 0.6;
                plot_line(p, norm_name[k], rates, loss, RATES, style);
            }
}

static void draw_bad(lab_report *r, plot_figure *f, int col, const char *heading,
                     const char *series)
{
    plot_panel *p = plot_add(f, 1, col, 1, 1);
    size_t k;
    plot_heading(p, heading);
    plot_axis_x(p, "step", PLOT_LINEAR);
    plot_axis_y(p, "test accuracy", PLOT_LINEAR);
    plot_range_y(p, 0, 1);
    for (k = 0; k < NORMS; k++)
        lab_plot(r, p, arm_of(BAD, k), series, norm_name[k], lab_style(norm_style[k]));
}

static int draw_sensitivity(lab_report *r)
{
    plot_figure *f =
        lab_figure(r, "A norm forgives a bad start: scales, a bad batch, a bad point", 1600, 1120);
    draw_scale(r, f);
    draw_starts(r, f);
    draw_bad(r, f, 0, "batch 300: pixels times 100", "after/100");
    draw_bad(r, f, 1, "pixels times 10", "after/10");
    draw_bad(r, f, 2, "pixels times 0.01", "after/0.01");
    plot_shared_legend(f);
    return lab_save(r, f, NULL);
}

static const plot_color point_color[POINTS] = {PLOT_VERMILLION, PLOT_PURPLE, PLOT_SKY};
static const char *const point_name[POINTS] = {"A", "B", "C"};

/* "a": direction 1, "b": direction 2, "l": loss. */
static lab_series path_of(lab_report *r, size_t norm, char what, size_t point, size_t rate)
{
    return lab_get(r, arm_of(SLICE, norm), 0,
                   lab_format(r, "%c%d/%g", what, (int)point + 1, drawn_rates[rate]));
}

static plot_style path_style(size_t point, size_t rate)
{
    plot_style s =
        plot_with_marker(plot_solid(point_color[point]), rate == 0 ? PLOT_CIRCLE : PLOT_RING);
    s.dash = rate == 0 ? PLOT_SOLID : PLOT_DASHED;
    return s;
}

static void draw_slice(lab_report *r, plot_figure *f, size_t norm)
{
    static const double label[POINTS][2] = {{-0.86, -0.84}, {0.78, -0.9}, {0.25, 0.84}};
    const lab_series z = lab_get(r, arm_of(SLICE, norm), 0, "z");
    const size_t side = (size_t)(sqrt((double)z.n) + 0.5);
    double *level = (double *)malloc((z.n + 1) * sizeof *level);
    plot_panel *p = plot_add(f, 0, (int)norm, 1, 1);
    size_t i, k;
    /* A step of colour every tenth of a decade: its edges are the contour lines. */
    for (i = 0; level && i < z.n; i++) level[i] = floor(z.y[i] * 10) / 10;
    plot_heading(p, norm_name[norm]);
    plot_axis_x(p, "direction 1", PLOT_LINEAR);
    plot_axis_y(p, "direction 2", PLOT_LINEAR);
    plot_range_x(p, -REACH, REACH);
    plot_range_y(p, -REACH, REACH);
    if (level)
        plot_heat(p, level, side, side, -REACH, REACH, -REACH, REACH, PLOT_SEQUENTIAL, -1, 1.5);
    free(level);
    plot_aspect(p, 1);
    for (i = 0; i < DRAWN; i++)
        for (k = 0; k < POINTS; k++) {
            const lab_series a = path_of(r, norm, 'a', k, i), b = path_of(r, norm, 'b', k, i);
            plot_line(p, NULL, a.y, b.y, a.n, path_style(k, i));
            if (i == 0)
                plot_text(p, label[k][0], label[k][1], point_name[k], PLOT_CENTER, PLOT_WHITE);
        }
    if (norm + 1 == NORMS) plot_colorbar(p, "log_{10} of the loss");
}

static void draw_descents(lab_report *r, plot_figure *f, size_t norm)
{
    plot_panel *p = plot_add(f, 1, (int)norm, 1, 1);
    size_t i, k;
    plot_axis_x(p, "step of descent in the plane", PLOT_LINEAR);
    plot_axis_y(p, norm == NONE ? "loss" : "", PLOT_LOG10);
    plot_range_x(p, 0, WALK);
    plot_range_y(p, 0.1, 100);
    for (i = 0; i < DRAWN; i++)
        for (k = 0; k < POINTS; k++) {
            const lab_series c = path_of(r, norm, 'l', k, i);
            plot_line(p, lab_format(r, "from %s, rate %g", point_name[k], drawn_rates[i]), c.x, c.y,
                      c.n, path_style(k, i));
        }
}

static int draw_slices(lab_report *r)
{
    plot_figure *f = lab_figure(
        r, "A plane through the weights, and three descents in it: the first seed", 1760, 1200);
    const double heights[2] = {1.25, 1};
    size_t k;
    for (k = 0; k < NORMS; k++) draw_slice(r, f, k);
    for (k = 0; k < NORMS; k++) draw_descents(r, f, k);
    plot_heights(f, heights, 2);
    plot_shared_legend(f);
    return lab_save(r, f, "slices");
}

static int report(lab_report *r)
{
    check_all(r);
    lab_judge(r);
    return draw_sensitivity(r) || draw_slices(r);
}

/* clang-format off */
#define NORM_ARMS(id, name, a, b, c, seeds)                                                        \
    {id "_none", name ", none", a, seeds}, {id "_batch", name ", batch norm", b, seeds},           \
        {id "_layer", name ", layer norm", c, seeds}
static const lab_arm arms[PARTS * NORMS] = {
    NORM_ARMS("scale", "scale", 9, 10, 11, 0), NORM_ARMS("bad", "bad batch", 5, 5, 6, 0),
    NORM_ARMS("starts", "starts", 3, 3, 4, 20), NORM_ARMS("paths", "paths", 2, 2, 2, 20),
    NORM_ARMS("slice", "slice", 5, 5, 6, 1)};
static const lab_program program = {
    "27_initialisation", NRM_VERSION, "Does a norm forgive a bad start?",
    "784-100x6-10, ReLU, Glorot, SGD with rate 0.1, batch 128, 600 steps", 1, LAB_USES_DATA, arms,
    PARTS * NORMS, prepare, run, report, claims, LAB_COUNT(claims)};
/* clang-format on */
LAB_MAIN(program)
