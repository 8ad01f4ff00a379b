/* 27_initialisation: does a norm forgive a bad start? (README.md)

   Accuracy at scales of 0.001 and 100, and after a batch times 10 or 0.01, is drawn and not judged.
   The slice is after the drawings of a lecture-style post: descent from three points, with and
   without batch norm. Descent with all weights leaves any plane at once, so here it is kept in
   it: along two random directions that have the length of each unit's own weights
   (filter-normalised: Li, Xu, Taylor, Studer and Goldstein 2018), biases, γ and β aside. */
#include "lab/experiment.h"
#include "lab/draw.h"

/* ---- settings -------------------------------------------------------------------------------- */

enum { NONE = 0, BATCH, LAYER, NORMS };
enum { SCALE = 0, BAD, STARTS, PATHS, SLICE, PARTS }; /* an arm is a part with a norm */

static const int norm_of[NORMS] = {NRM_NO_NORM, NRM_BATCH_NORM, NRM_LAYER_NORM};
static const char *const norm_name[NORMS] = {"none", "batch norm", "layer norm"};
#define ARM(part, norm) ((size_t)((part)*NORMS + (norm)))

enum { HIDDEN = 6, SCALES = 8, FACTORS = 4, MOMENTS = 9, RATES = 6, POINTS = 3, WALK = 10 };
enum { PLANE_RATES = 9, SIDE = 41, DRAWN = 2 };

static const double scales[SCALES] = {0.001, 0.01, 0.1, 0.3, 1, 3, 10, 100};
static const double factors[FACTORS] = {1, 0.01, 10, 100}; /* the first: no bad batch at all */
/* In steps of the whole training, after that many. */
static const double moment[MOMENTS] = {200, 300, 301, 310, 330, 360, 400, 500, 600};
static const double rates[RATES] = {0.01, 0.03, 0.1, 0.3, 1, 3};
static const double plane_rates[PLANE_RATES] = {0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10};
static const double points[POINTS][2] = {{-0.8, -0.6}, {0.7, -0.7}, {0.1, 0.9}};
static const char point_name[POINTS + 1] = "ABC";
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

LAB_SETS(train_set, test_set, 0, 0, DATASET_STD);

/* ---- a training ------------------------------------------------------------------------------ */

static nrm_mlp_spec network(trainer *t)
{
    const extent size = extent_of(t->run);
    nrm_mlp_spec spec =
        training_plain(t->layer, HIDDEN, size.width, NRM_RELU, norm_of[t->run->arm % NORMS]);
    spec.max_batch = size.slice;
    spec.lr = (nrm_real)0.1;
    return spec;
}

static trainer_plan plan_of(const lab_run *run)
{
    return (trainer_plan){.network = network, .set = &train_set, .batch = extent_of(run).batch};
}

static double accuracy(trainer *t, size_t n)
{
    training_set first = test_set;
    if (n < first.n) first.n = n;
    return trainer_accuracy(t, &first, NULL);
}

static void scale_weights(nrm_mlp *net, double by)
{
    size_t l, i;
    for (l = 0; l < net->spec.layers; l++)
        for (i = 0; i < net->state[l].in * net->state[l].shape.width; i++)
            net->state[l].W[i] *= (nrm_real)by;
}

/* ---- the scale of the weights ---------------------------------------------------------------- */

static int run_scale(lab_run *run)
{
    const trainer_plan plan = plan_of(run);
    size_t k;
    int failed = 0;
    for (k = 0; k < SCALES && !failed; k++) {
        trainer t;
        failed = trainer_open(&t, run, &plan);
        if (!failed) scale_weights(t.net, scales[k]);
        failed = failed || trainer_steps(&t, extent_of(run).steps);
        if (!failed) {
            lab_record(run, "accuracy", scales[k], lab_round(accuracy(&t, test_set.n), 5));
            lab_record(run, "diverged", scales[k], t.status == NRM_NONFINITE);
        }
        trainer_close(&t);
        lab_progress(run, (double)(k + 1) / SCALES);
    }
    return failed;
}

/* ---- a bad batch ----------------------------------------------------------------------------- */

/* The pixels of the batch times `by`; how much its gradient differs then. */
static int spoil(trainer *t, double by)
{
    const size_t n = t->net->n_params, rows = t->order.count;
    nrm_real *kept = (nrm_real *)malloc(n * sizeof *kept);
    size_t i;
    int rc;
    if (!kept) return -1;
    rc = nrm_mlp_gradient(t->net, NULL, t->order.x, t->order.labels, rows, NRM_TRAIN);
    memcpy(kept, t->net->grads, n * sizeof *kept);
    for (i = 0; i < rows * DATASET_PIXELS; i++) t->order.x[i] *= (nrm_real)by;
    if (rc >= 0) rc = nrm_mlp_gradient(t->net, NULL, t->order.x, t->order.labels, rows, NRM_TRAIN);
    lab_record(
        t->run, "spoilt_gradient", by,
        lab_round(training_distance(t->net->grads, kept, n) / sqrt(training_squares(kept, n)), 5));
    free(kept);
    return rc < 0 ? -1 : 0;
}

static int run_bad(lab_run *run)
{
    const trainer_plan plan = plan_of(run);
    const size_t steps = extent_of(run).steps;
    size_t k, step, m;
    int failed = 0;
    for (k = 0; k < FACTORS && !failed; k++) {
        trainer t;
        failed = trainer_open(&t, run, &plan);
        for (step = 0, m = 0; step < steps && !failed; step++) {
            const double done = (double)(step + 1) * (600.0 / (double)steps);
            trainer_deal(&t);
            if (step == steps / 2) failed = spoil(&t, factors[k]);
            failed = failed || trainer_learn(&t);
            for (; m < MOMENTS && moment[m] <= done && !failed; m++)
                lab_record_as(run, moment[m], lab_round(accuracy(&t, extent_of(run).tested), 5),
                              "after/%g", factors[k]);
        }
        trainer_close(&t);
        lab_progress(run, (double)(k + 1) / FACTORS);
    }
    return failed;
}

/* ---- three initialisations ------------------------------------------------------------------- */

/* The mean loss of the last ten steps; infinite if the training diverges. */
static int run_starts(lab_run *run)
{
    trainer_plan plan = plan_of(run);
    size_t k, i, last;
    int failed = 0;
    for (k = 0; k < RATES && !failed; k++)
        for (i = 0; i < POINTS && !failed; i++) {
            trainer t;
            double loss = 0;
            plan.seed = 1000 * run->seed + i;
            failed = trainer_open(&t, run, &plan);
            if (!failed) t.net->spec.lr = (nrm_real)rates[k];
            failed = failed || trainer_steps(&t, extent_of(run).warm - 10);
            for (last = 0; last < 10 && !failed; last++) {
                failed = trainer_steps(&t, 1);
                loss += t.status == NRM_OK ? t.loss / 10 : (double)INFINITY;
            }
            lab_record_as(run, rates[k], lab_round(loss, 5), "start%lu", (unsigned long)i + 1);
            trainer_close(&t);
            lab_progress(run, (double)(k + 1) / RATES);
        }
    return failed;
}

/* ---- the slice ------------------------------------------------------------------------------- */

typedef struct plane {
    trainer t;
    trainer_plan plan;
    nrm_real *centre, *d[2]; /* [n_params] */
    double ratio; /* of the lengths of d[0] and of the weights, unit by unit: the worst */
} plane;

/* Of the weights into unit j of a layer, or of what stands for them in a direction. */
static double unit_squares(const nrm_real *w, const nrm_mlp_state *s, size_t j)
{
    double sum = 0;
    size_t i;
    for (i = 0; i < s->in; i++)
        sum += (double)w[i * s->shape.width + j] * (double)w[i * s->shape.width + j];
    return sum;
}

/* Each unit's part of the direction is as long as its weights; returns the worst ratio of both. */
static double draw_direction(const nrm_mlp *net, nrm_real *d, nrm_rng *rng)
{
    double worst = 1;
    size_t l, i, j;
    memset(d, 0, net->n_params * sizeof *d);
    for (l = 0; l < net->spec.layers; l++) {
        const nrm_mlp_state *s = &net->state[l];
        nrm_real *part = d + (s->W - net->params);
        const size_t width = s->shape.width;
        for (i = 0; i < s->in * width; i++) part[i] = draw_normal(rng);
        for (j = 0; j < width; j++) {
            const double own = unit_squares(s->W, s, j), drawn = unit_squares(part, s, j);
            double ratio;
            for (i = 0; i < s->in; i++) part[i * width + j] *= (nrm_real)sqrt(own / drawn);
            ratio = sqrt(unit_squares(part, s, j) / own);
            if (fabs(ratio - 1) > fabs(worst - 1)) worst = ratio;
        }
    }
    return worst;
}

/* 100 steps, then two directions. */
static int plane_make(plane *p, lab_run *run)
{
    nrm_rng rng;
    size_t n;
    p->centre = NULL;
    p->plan = plan_of(run);
    if (trainer_open(&p->t, run, &p->plan) || trainer_steps(&p->t, extent_of(run).warm)) return -1;
    n = p->t.net->n_params;
    p->centre = (nrm_real *)malloc(3 * n * sizeof *p->centre);
    if (!p->centre) return -1;
    p->d[0] = p->centre + n;
    p->d[1] = p->d[0] + n;
    memcpy(p->centre, p->t.net->params, n * sizeof *p->centre);
    nrm_rng_seed(&rng, run->seed, TRAINING_STREAM_DATA + 27);
    p->ratio = draw_direction(p->t.net, p->d[0], &rng);
    (void)draw_direction(p->t.net, p->d[1], &rng);
    return 0;
}

static void plane_free(plane *p)
{
    free(p->centre);
    trainer_close(&p->t);
}

/* Loss, and its gradient by the plane's two coordinates. */
static double plane_loss(plane *p, const double at[2], double gradient[2])
{
    nrm_mlp *net = p->t.net;
    const size_t rows = extent_of(p->t.run).slice;
    nrm_acc loss = 0;
    size_t i, k;
    int rc;
    for (i = 0; i < net->n_params; i++)
        net->params[i] = p->centre[i] + (nrm_real)at[0] * p->d[0][i] + (nrm_real)at[1] * p->d[1][i];
    rc = nrm_mlp_gradient(net, &loss, train_set.x, train_set.labels, rows, NRM_TRAIN);
    for (k = 0; k < 2; k++) gradient[k] = training_dot(net->grads, p->d[k], net->n_params);
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
        loss = plane_loss(p, at, gradient);
        if (step > 0 && !(loss <= before)) *rose = 1;
        before = loss;
        if (recorded) {
            lab_record_as(p->t.run, lab_round(at[0], 5), lab_round(at[1], 5), "path%c/%g",
                          point_name[point], rate);
            lab_record_as(p->t.run, step, lab_round(loss, 5), "loss%c/%g", point_name[point], rate);
        }
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
    if (!failed) lab_record(run, "length_ratio", 0, lab_round(p.ratio, 5));
    for (k = 0; k < PLANE_RATES && !failed; k++) {
        double sum = 0, sum2 = 0, end;
        int rose = 0;
        for (i = 0; i < POINTS; i++) {
            end = walk(&p, plane_rates[k], i, &rose, 0);
            sum += end / POINTS;
            sum2 += end * end / POINTS;
        }
        lab_record(run, "rose", plane_rates[k], rose);
        lab_record(run, "mean", plane_rates[k], lab_round(sum, 5));
        lab_record(run, "spread", plane_rates[k],
                   lab_round(sqrt(fmax(0, sum2 - sum * sum) * POINTS / (POINTS - 1)), 5));
        lab_progress(run, (double)(k + 1) / PLANE_RATES);
    }
    plane_free(&p);
    return failed;
}

/* The loss in tenths of a decade: their edges are the contour lines of the figure. */
static int run_slice(lab_run *run)
{
    const size_t side = extent_of(run).side;
    const double step = 2 * REACH / (double)(side - 1);
    double gradient[2];
    plane p;
    size_t i, j;
    int failed = plane_make(&p, run);
    for (i = 0; i < side && !failed; i++) {
        for (j = 0; j < side; j++) {
            const double at[2] = {(double)j * step - REACH, (double)i * step - REACH};
            const double decades = lab_round(log10(plane_loss(&p, at, gradient)), 5);
            lab_record(run, "z", (double)(i * side + j), floor(10 * decades) / 10);
        }
        lab_progress(run, (double)(i + 1) / (double)side);
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
    return lab_decades_above(r, arm, s, "accuracy", 0.9, 0.01, 10);
}

/* How much accuracy is missing at the end. */
static double lost(const lab_report *r, size_t arm, size_t seed)
{
    return lab_at(r, arm, seed, "after/1", 600) - lab_at(r, arm, seed, "after/100", 600);
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

/* At the rate that ends lowest. */
static double best_spread(const lab_report *r, size_t arm, size_t s)
{
    double best = plane_rates[0];
    size_t k;
    for (k = 1; k < PLANE_RATES; k++)
        if (lab_at(r, arm, s, "mean", plane_rates[k]) < lab_at(r, arm, s, "mean", best))
            best = plane_rates[k];
    return lab_at(r, arm, s, "spread", best);
}

static void judge_spread(lab_report *r, const lab_claim *c)
{
    const lab_numbers batch = lab_each(r, ARM(PATHS, BATCH), best_spread);
    const lab_numbers none = lab_each(r, ARM(PATHS, NONE), best_spread);
    const stats_summary a = lab_describe(batch), b = lab_describe(none);
    lab_verdict(r, c, lab_less(batch, none, 1), "", "%.1e ± %.1e against %.1e ± %.1e", a.mean, a.sd,
                b.mean, b.sd);
}

static const char *const start_name[POINTS] = {"start1", "start2", "start3"};

static stats_summary three_starts(const lab_report *r, size_t arm, size_t s, size_t rate)
{
    double loss[POINTS];
    size_t i;
    for (i = 0; i < POINTS; i++) loss[i] = lab_at(r, arm, s, start_name[i], rates[rate]);
    return stats_describe(loss, POINTS);
}

/* Rates at which all three come below ln(10)/2. */
static double working_rates(const lab_report *r, size_t arm, size_t s)
{
    size_t k, count = 0;
    for (k = 0; k < RATES; k++) {
        const stats_summary three = three_starts(r, arm, s, k);
        if (isnan(three.mean)) return three.mean; /* a record is missing: nothing to judge by */
        if (three.max < log(10) / 2) count++;
    }
    return (double)count;
}

/* At the rate that ends lowest. */
static double spread_of_starts(const lab_report *r, size_t arm, size_t s)
{
    stats_summary best = three_starts(r, arm, s, 0);
    size_t k;
    for (k = 1; k < RATES; k++) {
        const stats_summary three = three_starts(r, arm, s, k);
        if (three.mean < best.mean) best = three;
    }
    return best.sd;
}

#define NORMED(which, part, norm, of)                                                              \
    .test = LAB_##which, .a = ARM(part, norm), .b = ARM(part, NONE), .each = of
#define WIDTH(norm)                                                                                \
    NORMED(MORE, SCALE, norm, width_of), .limit = 2, .decimals = 2,                                \
                                         .say = "$1 against $2 decades",                           \
                                         .remark = "the scales of the test span three decades"
#define BAD_BATCH(norm)                                                                            \
    LAB_PARTS({LAB_LESS, ARM(BAD, norm), ARM(BAD, NONE), .each = lost, .a_mean = {-1, 0.02}},      \
              {.a = ARM(BAD, norm), .series = "after/100", .at = 301},                             \
              {.a = ARM(BAD, NONE), .series = "after/100", .at = 301}),                            \
        .decimals = 3, .say = "lower by $1 against $2",                                            \
        .remark = "one step after the batch the accuracy is $3, without a norm $4"

/* clang-format off */
static const lab_claim claims[] = {
    {"27a", "With batch norm the initialisation matters less",
     "a lecture-style post on how batch norm helps; a tutorial on batch and layer norm",
     "no numbers",
     "accuracy above 0.9 over at least 2 decades of the weights' scale more (mean of seeds)",
     "trial runs (1 seed): 2.64 against 0.05 decades", WIDTH(BATCH)},
    {"27b", "With layer norm the initialisation matters less",
     "a tutorial on batch and layer norm, after Ba, Kiros & Hinton 2016, Table 1", "no numbers",
     "as 27a", "trial runs (1 seed): 1.30 against 0.05 decades", WIDTH(LAYER)},
    {"27c", "Larger weights before batch norm make its training slower, though not its output",
     "ours, from the formula of Ioffe & Szegedy 2015, Section 3.3",
     "the gradient is 1/a as long where W is a times as large",
     "test accuracy after 600 steps with scale 10 below that with scale 1",
     "trial runs (1 seed): 0.827 against 0.965",
     LAB_PARTS({LAB_LESS, ARM(SCALE, BATCH), ARM(SCALE, BATCH), "accuracy", 10, .other_at = 1}),
     .decimals = 3},
    {"27d", "One bad batch does not ruin the training with batch norm",
     "a tutorial on batch and layer norm", "no numbers", "after a batch with pixels times 100, "
     "test accuracy at step 600 is lower by less than without a norm, and by less than 0.02",
     "trial runs (1 seed): by 0.000 against 0.926", BAD_BATCH(BATCH)},
    {"27e", "One bad batch does not ruin the training with layer norm",
     "a tutorial on batch and layer norm", "no numbers", "as 27d",
     "trial runs (1 seed): by 0.003 against 0.926", BAD_BATCH(LAYER)},
    {"27f", "With batch norm a larger step can be taken from all starting points",
     "a lecture-style post on how batch norm helps, its drawings", "drawings only", "in the plane: "
     "the largest rate at which the loss rises in none of 10 steps from each of three points",
     "trial runs (1 seed): 0.1 against 0.03", NORMED(MORE, PATHS, BATCH, safe_rate), .decimals = 2,
     .say = "10^($1) against 10^($2)"},
    {"27g", "With batch norm descent depends less on where it starts",
     "a lecture-style post on how batch norm helps, its drawings", "drawings only", "in the plane: "
     "standard deviation over three points of the loss after 10 steps, at each one's best rate",
     "trial runs (1 seed): 0.000 against 0.027", .judge = judge_spread},
    {"27h", "With batch norm more learning rates do, whatever the starting point",
     "a lecture-style post on how batch norm helps", "drawings only", "number of six rates at "
     "which the loss after 100 steps is below ln(10)/2 from all of three initialisations",
     "trial runs (1 seed): 6 against 3", NORMED(MORE, STARTS, BATCH, working_rates), .decimals = 1,
     .say = "$1 against $2 of 6"},
    {"27i", "With batch norm the loss reached depends less on the starting point",
     "a lecture-style post on how batch norm helps", "drawings only", "standard deviation over "
     "three initialisations of the loss after 100 steps, at each one's best rate",
     "trial runs (1 seed): 0.003 against 0.049", NORMED(LESS, STARTS, BATCH, spread_of_starts),
     .decimals = 3}};
/* clang-format on */

static void check_gradient(lab_report *r, size_t norm, const char *what)
{
    const double off = lab_summary(r, ARM(BAD, norm), "spoilt_gradient", 100).max;
    lab_check(r, off < 1e-2, what, "but for at most %.1e of its size", off);
}

static void check_all(lab_report *r)
{
    const stats_summary length = lab_summary(r, ARM(PATHS, BATCH), "length_ratio", 0);
    check_gradient(r, BATCH, "batch norm's gradient of a batch times 100 is the same");
    check_gradient(r, LAYER, "layer norm's too");
    lab_check(r, length.min > 1 - 1e-4 && length.max < 1 + 1e-4,
              "directions of the slice are as long as each unit's weights",
              "ratios from %.6f to %.6f", length.min, length.max);
}

/* ---- pages ----------------------------------------------------------------------------------- */

static plot_style look_of(size_t arm)
{
    static const char *const name[NORMS] = {"none", "batch", "layer"};
    return lab_style(name[arm % NORMS]);
}

/* Crosses where the loss became infinite, or no number, in most seeds. */
static void draw_scale(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    const plot_style shade = {PLOT_LIGHT, .alpha = 0.3};
    const plot_style cross = {PLOT_INK, .marker = PLOT_CROSS, .marker_every = 1, .size = 1.6};
    double lost_at[SCALES];
    size_t norm, k;
    plot_span_x(p, 0.01, 10, shade);
    plot_hline(p, 0.9, "", plot_thin(PLOT_INK));
    for (norm = 0; norm < NORMS; norm++) {
        const size_t arm = ARM(SCALE, norm);
        lab_plot(r, p, arm, panel->series, norm_name[norm],
                 plot_with_marker(look_of(arm), PLOT_CIRCLE));
        for (k = 0; k < SCALES; k++)
            lost_at[k] = lab_mean(r, arm, "diverged", scales[k]) > 0.5
                             ? lab_mean(r, arm, panel->series, scales[k])
                             : (double)NAN;
        plot_scatter(p, "diverged", scales, lost_at, SCALES, cross);
    }
}

static void draw_starts(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    size_t k, i, s;
    (void)panel;
    for (k = 0; k < NORMS; k++)
        for (s = 0; s < lab_seeds(r, ARM(STARTS, k)); s++)
            for (i = 0; i < POINTS; i++) {
                const lab_series loss = lab_get(r, ARM(STARTS, k), s, start_name[i]);
                plot_style style = look_of(k);
                style.width = 0.6;
                plot_line(p, norm_name[k], loss.x, loss.y, loss.n, style);
            }
}

/* clang-format off */
#define AFTER_BATCH(column, title, series)                                                         \
    {.axes = {1, column, .heading = title, .x = "step", .y = "test accuracy", .y_range = {0, 1}},  \
     .line = {{ARM(BAD, NONE), series, "none"}, {ARM(BAD, BATCH), series, "batch norm"},           \
              {ARM(BAD, LAYER), series, "layer norm"}}}
static const lab_panel sensitivity[] = {
    {.axes = {.cols = 2, .heading = "accuracy after 600 steps", .x_scale = PLOT_LOG10,
              .x = "scale of all weights at the start, 1: Glorot", .y = "test accuracy",
              .y_range = {-0.04, 1.04}},
     .draw = draw_scale, .series = "accuracy"},
    {.axes = {0, 2, .heading = "three starts of each seed", .x = "learning rate",
              .x_scale = PLOT_LOG10, .y = "loss after 100 steps", .y_scale = PLOT_LOG10,
              .y_range = {0.1, 10}},
     .draw = draw_starts},
    AFTER_BATCH(0, "batch 300: pixels times 100", "after/100"),
    AFTER_BATCH(1, "pixels times 10", "after/10"),
    AFTER_BATCH(2, "pixels times 0.01", "after/0.01")};
/* clang-format on */

/* "path": both directions; "loss": over the steps. */
static lab_series walk_of(lab_report *r, size_t norm, const char *what, size_t point, size_t rate)
{
    return lab_get(r, ARM(SLICE, norm), 0,
                   lab_format(r, "%s%c/%g", what, point_name[point], drawn_rates[rate]));
}

static plot_style path_style(size_t point, size_t rate)
{
    static const plot_color color[POINTS] = {PLOT_VERMILLION, PLOT_PURPLE, PLOT_SKY};
    const plot_style s = {color[point], .dash = rate == 0 ? PLOT_SOLID : PLOT_DASHED,
                          .marker = rate == 0 ? PLOT_CIRCLE : PLOT_RING, .marker_every = 1};
    return s;
}

static void draw_slice(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    static const double label[POINTS][2] = {{-0.86, -0.84}, {0.78, -0.9}, {0.25, 0.84}};
    const lab_series z = lab_get(r, ARM(SLICE, panel->arm), 0, "z");
    const size_t side = (size_t)(sqrt((double)z.n) + 0.5);
    size_t i, k;
    plot_heat(p, z.y, side, side, -REACH, REACH, -REACH, REACH, PLOT_SEQUENTIAL, -1, 1.5);
    for (i = 0; i < DRAWN; i++)
        for (k = 0; k < POINTS; k++) {
            const lab_series path = walk_of(r, panel->arm, "path", k, i);
            const char name[2] = {point_name[k]};
            plot_line(p, NULL, path.x, path.y, path.n, path_style(k, i));
            if (i == 0) plot_text(p, label[k][0], label[k][1], name, PLOT_CENTER, PLOT_WHITE);
        }
    if (panel->arm + 1 == NORMS) plot_colorbar(p, "log_{10} of the loss");
}

static void draw_descents(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    size_t i, k;
    for (i = 0; i < DRAWN; i++)
        for (k = 0; k < POINTS; k++) {
            const lab_series loss = walk_of(r, panel->arm, "loss", k, i);
            plot_line(p, lab_format(r, "from %c, rate %g", point_name[k], drawn_rates[i]), loss.x,
                      loss.y, loss.n, path_style(k, i));
        }
}

/* clang-format off */
#define PLANE(norm, name)                                                                          \
    {.axes = {0, norm, .heading = name, .x = "direction 1", .x_range = {-REACH, REACH},            \
              .y = "direction 2", .y_range = {-REACH, REACH}, .aspect = 1},                        \
     .draw = draw_slice, .arm = norm}
#define DESCENTS(norm, name)                                                                       \
    {.axes = {1, norm, .x = "step of descent in the plane", .x_range = {0, WALK}, .y = name,       \
              .y_scale = PLOT_LOG10, .y_range = {0.1, 100}},                                       \
     .draw = draw_descents, .arm = norm}
static const lab_panel slices[] = {
    PLANE(NONE, "none"), PLANE(BATCH, "batch norm"), PLANE(LAYER, "layer norm"),
    DESCENTS(NONE, "loss"), DESCENTS(BATCH, ""), DESCENTS(LAYER, "")};

static const lab_page pages[] = {
    {"A norm forgives a bad start: scales, a bad batch, a bad point", NULL, 1120,
    .shared_legend = 1,
    .settings = "784-100x6-10, ReLU, Glorot, SGD with rate 0.1, batch 128, 600 steps; a, c to e "
                "with five seeds",
     LAB_PANELS(sensitivity)},
    {"A plane through the weights, and three descents in it: the first seed", "slices", 1090,
    .shared_legend = 1, .heights = {1.25, 1}, .seeds = 1,
    .settings = "784-100x6-10, ReLU, Glorot, after 100 steps of SGD with rate 0.1, batch 128",
     LAB_PANELS(slices)}};
/* clang-format on */

/* clang-format off */
#define NORM_ARMS(id, name, a, b, c, seeds)                                                        \
    {id "_none", name ", none", a, seeds}, {id "_batch", name ", batch norm", b, seeds},           \
        {id "_layer", name ", layer norm", c, seeds}
static const lab_arm arms[PARTS * NORMS] = {
    NORM_ARMS("scale", "scale", 9, 10, 11, 0), NORM_ARMS("bad", "bad batch", 5, 5, 6, 0),
    NORM_ARMS("starts", "starts", 3, 3, 4, 20), NORM_ARMS("paths", "paths", 2, 2, 2, 20),
    NORM_ARMS("slice", "slice", 5, 5, 6, 1)};
/* clang-format on */

LAB_PROGRAM("27_initialisation", "Does a norm forgive a bad start?",
            "784-100x6-10, ReLU, Glorot, SGD with rate 0.1, batch 128, 600 steps", .revision = 1,
            .uses = LAB_USES_DATA, .prepare = prepare, .look = look_of, .after = check_all)
