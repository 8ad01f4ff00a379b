/* 29_depth: what does depth do to gradients and activations, with and without batch norm?
   (README.md)

   Nothing is trained. Of one batch of 128 digits: the gradient of the middle layer's weights, the
   output gradients, means and standard deviations of the channels of each block, and how their
   variances move while one step of SGD is taken, from 0 to 100 % of it in steps of 2 %. */
#define NRM_DOUBLE
#include "lab/experiment.h"
#include "lab/residual.h"

enum { BATCH = DEEP_BATCH, CLASSES = DEEP_CLASSES, IMAGES = 10000, WIDTH_MAX = DEEP_PLAIN_WIDTH };
enum { BINS = 200, SHOWN = 24, FRACTIONS = 50, WATCHED = 3 };
#define RATE 0.1 /* of the one step */

/* ---- the arms -------------------------------------------------------------------------------- */

/* R27 and R9he are residual networks, all others plain: H and P with He's weights, G and M with
   Glorot's, 5 to 50 with He's. n is none, b batch norm, l layer norm. */
enum { GRADIENTS = 1, CHANNELS = 2, MIDDLE = 4, STEP = 8, ALL = 15 }; /* what is measured */

/* clang-format off */
enum { RN, RB, PN, PB, HN, PL, GN, GB, MN, MB, D5N, D5B, D5L, D10N, D10B, D10L, D50N, D50B, D50L,
       ARMS };

#define ONE(kind, norm, he, depth, what) {{DEEP_##kind, NRM_##norm##_NORM, he, depth}, what}
#define TWO(kind, he, depth, what)                                                                 \
    ONE(kind, NO, he, depth, what), ONE(kind, BATCH, he, depth, what)
#define THREE(depth) TWO(PLAIN, 1, depth, GRADIENTS), ONE(PLAIN, LAYER, 1, depth, GRADIENTS)
static const struct {
    deep_spec net;
    unsigned what;
} shapes[ARMS] = {
    TWO(RESIDUAL, 0, 27, ALL), TWO(PLAIN, 1, 20, ALL), ONE(RESIDUAL, NO, 1, 9, STEP),
    ONE(PLAIN, LAYER, 1, 20, GRADIENTS), ONE(PLAIN, NO, 0, 20, GRADIENTS | CHANNELS),
    ONE(PLAIN, BATCH, 0, 20, GRADIENTS), TWO(PLAIN, 0, 13, MIDDLE), THREE(5), THREE(10), THREE(50)};

#define DEEP(id, name)                                                                             \
    {id "n", name ", no norm", 0.1}, {id "b", name ", batch norm", 0.1},                           \
        {id "l", name ", layer norm", 0.1}
static const lab_arm arms[ARMS] = {
    {"Rn", "R27, no norm", 1.5, 20}, {"Rb", "R27, batch norm", 1.5, 20},
    {"Pn", "P20, no norm", 1, 20}, {"Pb", "P20, batch norm", 1, 20}, {"Hn", "R9he, no norm", 0.6},
    {"Pl", "P20, layer norm", 0.1}, {"Gn", "P20g, no norm", 0.1}, {"Gb", "P20g, batch norm", 0.1},
    {"Mn", "M13, no norm", 0.1}, {"Mb", "M13, batch norm", 0.1}, DEEP("5", "5 layers"),
    DEEP("10", "10 layers"), DEEP("50", "50 layers")};
/* clang-format on */

static plot_style look_of(size_t arm)
{
    const int norm = shapes[arm].net.norm;
    if (arm == GN) return plot_dashdot(PLOT_GREY);
    return lab_style(norm == NRM_NO_NORM ? "none" : norm == NRM_BATCH_NORM ? "batch" : "layer");
}

/* Not finite is an answer too, so only an error counts. */
static int look(deep_net *net, const training_order *batch, double *loss)
{
    nrm_acc value = 0;
    const int rc = deep_gradient(net, &value, batch->x, batch->labels, batch->count);
    if (rc < 0) fprintf(stderr, "29_depth: %s\n", nrm_strerror(rc));
    *loss = (double)value;
    return rc < 0;
}

/* ---- what is measured ------------------------------------------------------------------------ */

/* Mean and biased variance of each column of a [BATCH][width]. */
static void moments(const nrm_real *a, size_t width, double *mean, double *variance)
{
    size_t c, i;
    for (c = 0; c < width; c++) {
        double sum = 0, squares = 0;
        for (i = 0; i < BATCH; i++) sum += a[i * width + c];
        mean[c] = sum / BATCH;
        for (i = 0; i < BATCH; i++)
            squares += (a[i * width + c] - mean[c]) * (a[i * width + c] - mean[c]);
        variance[c] = squares / BATCH;
    }
}

static double log10_or_nan(double value)
{
    return value > 0 ? log10(value) : (double)NAN;
}

/* log10 of mean |channel mean| and of the mean channel deviation of each block; and how far the
   channels scatter: standard deviations of log10 over channels. */
static void record_channels(lab_run *run, const deep_net *s)
{
    double mean[WIDTH_MAX], variance[WIDTH_MAX], log_mean[WIDTH_MAX], log_sd[WIDTH_MAX];
    size_t k, c, width;
    for (k = s->spec.kind == DEEP_PLAIN ? 1 : 0; k <= s->spec.depth; k++) {
        const nrm_real *h = deep_output(s, k, &width);
        double means = 0, sds = 0;
        size_t n = 0;
        moments(h, width, mean, variance);
        for (c = 0; c < width; c++) {
            means += fabs(mean[c]) / (double)width;
            sds += sqrt(variance[c]) / (double)width;
            if (!(variance[c] > 0)) continue;
            log_mean[n] = log10(fabs(mean[c]));
            log_sd[n++] = 0.5 * log10(variance[c]);
        }
        lab_record(run, "s", (double)k, lab_round(log10_or_nan(sds), 5));
        lab_record(run, "sc", (double)k, lab_round(stats_describe(log_sd, n).sd, 3));
        if (run->arm > RB) continue; /* means are shown of R27 */
        lab_record(run, "m", (double)k, lab_round(log10_or_nan(means), 5));
        lab_record(run, "mc", (double)k, lab_round(stats_describe(log_mean, n).sd, 3));
    }
}

/* log10 of the Frobenius norm of each layer's weight gradient. */
static void record_gradients(lab_run *run, const deep_net *s)
{
    size_t l, n;
    for (l = 0; l < s->layers; l++) {
        const nrm_real *g = deep_weight_gradient(s, l, &n);
        lab_record(run, "g", (double)(l + 1), lab_round(training_log_length(g, n), 5));
    }
}

/* The layer in the middle: of 56 the 28th, of 21 the 11th. */
static void record_middle(lab_run *run, const deep_net *s)
{
    const size_t l = (s->layers + 1) / 2;
    double edges[BINS + 1], density[BINS], largest;
    size_t n, i;
    const nrm_real *g = deep_weight_gradient(s, l - 1, &n);
    const stats_summary d = stats_describe(g, n);
    largest = training_farthest(g, NULL, n);
    lab_record(run, "sd", (double)l, d.sd);
    lab_record(run, "log_sd", (double)l, log10_or_nan(d.sd));
    lab_record(run, "max", (double)l, largest / d.sd);
    lab_record(run, "kurt", (double)l, d.kurtosis + 3);
    if (!run->first || run->arm > PN || !(largest > 0)) return;
    for (i = 0; i <= BINS; i++) edges[i] = largest * (2.0 * (double)i / BINS - 1);
    (void)stats_histogram(g, n, edges, BINS, density);
    for (i = 0; i < BINS; i++) { /* counts: whole numbers are short */
        const double count = density[i] * 2 * largest / BINS * (double)n;
        lab_record(run, "hist", edges[i], floor(count + 0.5));
    }
}

/* How many classes it takes to cover 80 % of the batch, by what the network predicts. */
static double classes_for_80(const nrm_real *prob, double *first_share)
{
    double count[CLASSES] = {0}, covered = 0;
    size_t i, c, used;
    for (i = 0; i < BATCH; i++) {
        size_t best = 0;
        for (c = 1; c < CLASSES; c++)
            if (prob[i * CLASSES + c] > prob[i * CLASSES + best]) best = c;
        count[best] += 1;
    }
    stats_sort(count, CLASSES);
    *first_share = count[CLASSES - 1] / BATCH;
    for (used = 0; used < CLASSES && covered < 0.8 * BATCH; used++)
        covered += count[CLASSES - 1 - used];
    return (double)used;
}

/* dL/dlogits times the batch size: probability minus 1 for the right class. */
static double output_gradient(const deep_net *s, const training_order *batch, size_t i, size_t c)
{
    return deep_prob(s)[i * CLASSES + c] - (batch->labels[i] == (int)c ? 1 : 0);
}

static void record_outputs(lab_run *run, const deep_net *s, const training_order *batch)
{
    double mean[CLASSES] = {0}, largest = 0, first_share;
    size_t i, c, label, count = 0;
    lab_record(run, "classes", 0, classes_for_80(deep_prob(s), &first_share));
    if (run->arm > RB) return;
    for (c = 0; c < CLASSES; c++) {
        for (i = 0; i < BATCH; i++) mean[c] += output_gradient(s, batch, i, c) / BATCH;
        largest = stats_larger(largest, mean[c]);
    }
    lab_record(run, "push_max", 0, largest);
    lab_record(run, "share", 0, first_share);
    for (c = 0; c < CLASSES && run->first; c++)
        lab_record(run, "push", (double)c, lab_round(mean[c], 3));
    for (label = 0; label < CLASSES && run->first; label++) /* a row for each example */
        for (i = 0; i < BATCH; i++)
            for (c = 0; c < CLASSES && batch->labels[i] == (int)label; c++)
                lab_record(run, "outputs", (double)count++,
                           floor(output_gradient(s, batch, i, c) * 1000 + 0.5) / 1000);
}

/* ---- one step, from 0 to 100 % --------------------------------------------------------------- */

/* Blocks 1, 13 and 27 of R27; the first, the middle and the last of the others. */
static size_t watched(const deep_spec *shape, int which)
{
    return which == 0 ? 1 : shape->depth * (size_t)which / 2;
}

static void record_fraction(lab_run *run, const deep_net *s, size_t percent)
{
    double mean[WIDTH_MAX], variance[WIDTH_MAX];
    int w;
    for (w = 0; w < WATCHED; w++) {
        size_t width, c;
        const nrm_real *h = deep_output(s, watched(&s->spec, w), &width);
        double most = 0;
        moments(h, width, mean, variance);
        for (c = 0; c < width; c++) most = stats_larger(most, variance[c]);
        if (percent % 4 == 0 && (run->arm <= PB || percent == 100))
            lab_record_as(run, (double)percent, lab_round(log10_or_nan(most), 5), "most%d", w);
        if (!run->first || run->arm > RB || w < (run->arm == RN ? 1 : 2)) continue;
        for (c = 0; c < SHOWN; c++) { /* a row for each part of the step */
            const double place = (double)(percent / 2 * SHOWN + c);
            lab_record_as(run, place, lab_round(variance[c], 3), "v%d", w);
        }
    }
}

static int record_step(lab_run *run, deep_net *s, const training_order *batch)
{
    const size_t bytes = s->n_params * sizeof *s->params;
    nrm_real *start = (nrm_real *)malloc(2 * bytes), *g = start ? start + s->n_params : NULL;
    size_t i, f;
    int failed = 0;
    if (!start) return -1;
    memcpy(start, s->params, bytes);
    memcpy(g, s->grads, bytes);
    for (f = 0; f <= FRACTIONS && !failed; f += run->quick ? 10 : 1) {
        const double part = RATE * (double)f / FRACTIONS;
        double loss;
        for (i = 0; i < s->n_params; i++) s->params[i] = start[i] - part * g[i];
        failed = look(s, batch, &loss);
        if (f % 2 == 0 && run->arm <= PN)
            lab_record(run, "loss", 100.0 * (double)f / FRACTIONS, lab_round(loss, 4));
        record_fraction(run, s, 100 * f / FRACTIONS);
    }
    free(start);
    return failed;
}

/* ---- a run ----------------------------------------------------------------------------------- */

LAB_SET(images, IMAGES, DATASET_STD);

static int run(lab_run *r)
{
    const unsigned what = shapes[r->arm].what;
    training_order batch;
    deep_net s;
    double loss;
    int failed = training_order_start(&batch, images.n, BATCH, DATASET_PIXELS, r->seed);
    if (failed || training_next(&batch, &images) != BATCH ||
        deep_make(&s, &shapes[r->arm].net, r->seed))
        return -1;
    failed = look(&s, &batch, &loss);
    if (what & CHANNELS) record_channels(r, &s);
    if (what & GRADIENTS) record_gradients(r, &s);
    if (what & MIDDLE) record_outputs(r, &s, &batch);
    if (what & MIDDLE) record_middle(r, &s);
    if (what & STEP) failed = failed || record_step(r, &s, &batch);
    deep_free(&s);
    training_order_free(&batch);
    return failed;
}

/* ---- claims ---------------------------------------------------------------------------------- */

static void judge_tails(lab_report *r, const lab_claim *c)
{
    const lab_numbers a = lab_all(r, c->a, "kurt", LAB_LAST),
                      b = lab_all(r, c->b, "kurt", LAB_LAST);
    lab_verdict(r, c, lab_more(a, lab_times(b, 3), 1), "",
                "kurtosis %s without, %s with batch norm", lab_pm(r, a, 1), lab_pm(r, b, 1));
}

/* Of log10 of the channels' deviation, over the second half of the blocks. */
static double growth(const lab_report *r, size_t arm, size_t seed)
{
    const double depth = (double)shapes[arm].net.depth;
    return lab_slope(r, arm, seed, "s", floor(depth / 2) + 1, depth, 0);
}

/* log10 of the largest variance of the last block over that of the first, after the step. */
static double explosion(const lab_report *r, size_t arm, size_t seed)
{
    return lab_at(r, arm, seed, "most2", 100) - lab_at(r, arm, seed, "most0", 100);
}

/* Factor by which the gradient's norm grows from a layer to the one before it, by least squares
   over layers 2 .. depth (layer 1 has more inputs than the others). */
static double factor_of(const lab_report *r, size_t arm, size_t seed)
{
    return pow(10, -lab_slope(r, arm, seed, "g", 2, (double)shapes[arm].net.depth, 0));
}

static double theory_factor(void)
{
    return sqrt(acos(-1.0) / (acos(-1.0) - 1));
}

/* How log10 of the gradient's norm changes over the layers between the first and the last one. */
static double change(const lab_report *r, size_t arm, size_t seed)
{
    const lab_series g = lab_get(r, arm, seed, "g");
    return g.y[1] - g.y[g.n - 2];
}

static double distance(const lab_report *r, size_t arm, size_t seed)
{
    return fabs(change(r, arm, seed));
}

/* log10 of the largest and of the smallest norm of a layer's gradient. */
static double largest_gradient(const lab_report *r, size_t arm, size_t seed)
{
    const lab_series g = lab_get(r, arm, seed, "g");
    return stats_describe(g.y, g.n).max;
}

static double smallest_gradient(const lab_report *r, size_t arm, size_t seed)
{
    const lab_series g = lab_get(r, arm, seed, "g");
    return stats_describe(g.y, g.n).min;
}

#define BJORCK "Bjorck et al. 2018, "
#define CARRIED "ours; carried over to plain networks from Bjorck et al. 2018, "
#define NOTES "Chinese notes on batch norm; a lecture-style post on how batch norm helps"
#define READ "ours; the sentence of 29j, read in another way"
#define AFTER "; added after the run"

#define SIZES(none, batch) /* log10(30) apart */                                                   \
    .test = LAB_MORE, .a = none, .b = batch, .series = "log_sd", .at = LAB_LAST,                   \
    .limit = 1.4771212547196624,                                                                   \
    .say = "#1[10^%.3g] without and #2[10^%.3g] with batch norm: "                                 \
           "#1-2[10^%.3g] times"
#define GROWTHS(none, batch)                                                                       \
    LAB_PARTS({LAB_MORE, none, batch, .each = growth, .times = 3},                                 \
              {.a = none, .series = "s", .at = LAB_LAST},                                          \
              {.a = batch, .series = "s", .at = LAB_LAST}),                                        \
        .decimals = 4,                                                                             \
        .say = "$1 a layer or block without, $2 with batch norm; deviation at the end "            \
               "#3[10^%.2g] and #4[10^%.2g]"
#define EXPLOSION(none, batch)                                                                     \
    .test = LAB_MORE, .a = none, .b = batch, .each = explosion, .a_mean = {6, HUGE_VAL},           \
    .b_mean = {-HUGE_VAL, 2}, .say = "10^($1[1]) without, 10^($2[2]) with batch norm"
#define SPREAD(none, batch, last)                                                                  \
    LAB_PARTS({LAB_LESS, batch, none, .each = distance}, {.a = batch, .each = change},             \
              {.a = none, .each = change}),                                                        \
        .decimals = 2,                                                                             \
        .say = "layer 2 has #3[10^%.2g] times the gradient of layer " last                         \
               " with batch norm, #4[10^%.2g] times without; |log10| $1 with, $2 without"
#define EXTREME(which, of, batch, none)                                                            \
    .test = LAB_##which, .a = batch, .b = none, .each = of##_gradient, .decimals = 2,              \
    .say = "10^($1) with batch norm, 10^($2) without"

/* clang-format off */
static const lab_claim claims[] = {
    {"29a", "R27: without batch norm the middle layer's gradients are far larger", BJORCK "Fig. 2",
     "±4 without and ±0.04 with batch norm: almost two orders of magnitude",
     "standard deviation larger without norm, the ratio (geometric mean over seeds) at least 30",
     "trial runs (1 seed): 6.19 without and 0.040 with batch norm, 154 times", LAB_TRAINING,
     LAB_SETTING, SIZES(RN, RB)},
    {"29b", "R27: without batch norm these gradients are heavy-tailed", BJORCK "Fig. 2",
     "heavy tails without; concentrated around the mean with batch norm",
     "kurtosis (3 for a normal distribution) without norm above 3 times that with batch norm",
     "trial runs (1 seed): 27.6 without and 3.9 with batch norm", LAB_TRAINING, LAB_SETTING,
     judge_tails, .a = RN, .b = RB},
    {"29c", "R27: without batch norm all examples push the same class; with it they differ",
     BJORCK "heat map of output gradients",
     "one class for the whole batch; several with batch norm",
     "classes that cover 80 % of predictions: at most 2 without norm (mean), more with batch norm",
     "none", LAB_TRAINING, LAB_SETTING,
     LAB_PARTS({LAB_MORE, RB, RN, "classes", .b_mean = {0, 2}}, {.a = RN, .series = "share"},
               {.a = RB, .series = "share"}, {.a = RN, .series = "push_max"},
               {.a = RB, .series = "push_max"}),
     .decimals = 1, .say = "$2 classes without, $1 with batch norm; the first covers "
     "#3[100 %.0f] % and #4[100 %.0f] %; largest column mean of dL/dlogits × 128: $5[2] and $6[2]"},
    {"29d", "R27: without batch norm channels grow exponentially with depth", BJORCK "Fig. 5",
     "log deviation from -1.5 to 3.5 over the network without; flat with batch norm",
     "slope of log10 channel deviation over blocks 14 to 27: without norm at least 3 times that "
     "with", "trial runs (1 seed): log10 deviation -0.2 to 1.37 without, -0.23 to 0.52 with batch "
     "norm; ratio of slopes 6", LAB_TRAINING, LAB_SETTING, GROWTHS(RN, RB)},
    {"29e", "R27: one large step makes the variance explode with depth, not so with batch norm",
     BJORCK "Fig. 4", "variances of about 1, 5e6 and 5e16 in layers 8, 44 and 80",
     "largest variance of block 27 over that of block 1 after the step: at least 1e6 without norm, "
     "at most 1e2 with batch norm (geometric means)", "trial runs (1 seed): 2.5e3, 9.6e31, 1.5e91 "
     "without; 1.4, 34, 50 with batch norm (blocks 1, 13, 27)", LAB_TRAINING, LAB_SETTING,
     EXPLOSION(RN, RB)},
    {"29f", "The same as 29a for a plain network, P20", CARRIED "Fig. 2", "not in the paper",
     "as 29a", "trial runs (1 seed): 0.019 without and 0.034 with batch norm: smaller, kurtosis 62 "
     "against 3.8; expected to fail", LAB_TRAINING, LAB_SETTING, SIZES(PN, PB)},
    {"29g", "The same as 29d for a plain network, P20", CARRIED "Fig. 5", "not in the paper",
     "as 29d, over hidden layers 11 to 20",
     "trial runs (1 seed): deviation 1.2 to 0.25 without norm; expected to fail", LAB_TRAINING,
     LAB_SETTING, GROWTHS(PN, PB)},
    {"29h", "The same as 29e for a plain network, P20", CARRIED "Fig. 4", "not in the paper",
     "as 29e, with hidden layers 20 and 1", "none; expected to fail", LAB_TRAINING, LAB_SETTING,
     EXPLOSION(PN, PB)},
    {"29i", "Batch norm makes gradients of plain ReLU networks grow by 1.211 a layer, backwards",
     "Yang et al. 2019, mean field theory", "√(π/(π-1)) = 1.211 a layer, at infinite width",
     "20 hidden layers: mean factor in 1.15 to 1.25, and above the one without norm",
     "trial runs (1 seed): 1.194 with batch norm; about 1 without", LAB_TRAINING, LAB_SETTING,
     .test = LAB_MORE, .a = PB, .b = PN, .each = factor_of, .a_mean = {1.15, 1.25}, .decimals = 3,
     .say = "$1 with batch norm, $2 without"},
    {"29j", "Batch norm prevents exploding and vanishing gradients (here: plain, 50 layers)", NOTES,
     "listed as a result, without numbers",
     "|log10| of the ratio of gradient norms, layer 2 to layer 50: smaller with batch norm",
     "trial runs (1 seed, 20 layers): 21 to 0.72 with batch norm, flat without; expected to fail",
     LAB_TRAINING, LAB_NEWS, SPREAD(D50N, D50B, "50")},
    {"29k", "The same as 29j for a residual network, R27", READ, "not said",
     "as 29j, layer 2 to layer 55" AFTER, "seen in the table of the run", LAB_TRAINING, LAB_NEWS,
     SPREAD(RN, RB, "55")},
    {"29l", "By their size: batch norm prevents exploding gradients (plain, 50 layers)", READ,
     "not said", "largest gradient norm of a layer: smaller with batch norm" AFTER,
     "seen in the table of the run", LAB_TRAINING, LAB_NEWS, EXTREME(LESS, largest, D50B, D50N)},
    {"29m", "By their size: batch norm prevents exploding gradients (residual, R27)", READ,
     "not said", "as 29l" AFTER, "seen in the table of the run", LAB_TRAINING, LAB_SETTING,
     EXTREME(LESS, largest, RB, RN)},
    {"29n", "By their size: batch norm prevents vanishing gradients (plain, 20 layers, Glorot)",
     READ, "not said", "smallest gradient norm of a layer: larger with batch norm" AFTER,
     "seen in the table of the run", LAB_TRAINING, LAB_SETTING, EXTREME(MORE, smallest, GB, GN)}};
/* clang-format on */

/* ---- figures: gradients and outputs at the beginning ----------------------------------------- */

/* The histogram of the middle layer's gradient and the normal curve of the same deviation. */
static void draw_histogram(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    const size_t arm = panel->arm;
    const lab_series h = lab_get(r, arm, 0, "hist"); /* by the left edge of the bin */
    const double sd = lab_at(r, arm, 0, "sd", LAB_LAST);
    double edges[BINS + 1], x[BINS], normal[BINS], area;
    size_t i;
    if (h.n != BINS) return;
    area = stats_mean(h.y, BINS) * 2 * -h.x[0];
    for (i = 0; i <= BINS; i++) edges[i] = h.x[0] * (1 - 2.0 * (double)i / BINS);
    for (i = 0; i < BINS; i++) {
        const double z = (x[i] = (edges[i] + edges[i + 1]) / 2) / sd;
        normal[i] = area / (sd * 2.50662827463) * exp(-z * z / 2);
    }
    plot_hist(p, NULL, edges, h.y, BINS, look_of(arm));
    plot_line(p, "normal", x, normal, BINS, plot_dotted(PLOT_INK));
    plot_text_in(
        p, 0.03, 0.99,
        lab_format(r, "deviation %.3g, kurtosis %.1f", sd, lab_at(r, arm, 0, "kurt", LAB_LAST)),
        PLOT_LEFT + PLOT_BELOW, PLOT_INK);
}

/* Rows are examples, sorted by their digit; columns are classes. */
static void draw_outputs(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    const lab_series v = lab_get(r, panel->arm, 0, "outputs");
    plot_heat(p, v.y, v.n / CLASSES, CLASSES, -0.5, 9.5, 0, BATCH, PLOT_DIVERGING, -1, 1);
    plot_colorbar(p, "dL/dlogit × 128");
}

/* panel->series of two arms, of P20 three, against the block; error bars: how far the channels
   scatter, a series with a c behind it. */
static void draw_depth(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    static const size_t shown[2][3] = {{RN, RB}, {PN, GN, PB}};
    static const char *const name[2][3] = {{"no norm", "batch norm"},
                                           {"no norm, He", "no norm, Glorot", "batch norm, He"}};
    const int plain = panel->arm == PN;
    const char *scatter = lab_format(r, "%sc", panel->series);
    size_t k, i;
    for (k = 0; k < (plain ? 3u : 2u); k++) {
        const size_t arm = shown[plain][k];
        const lab_curve c = lab_over_seeds(r, arm, panel->series);
        const lab_curve s = lab_over_seeds(r, arm, scatter);
        plot_style look = plot_with_marker(
            look_of(arm), shapes[arm].net.norm == NRM_NO_NORM ? PLOT_SQUARE : PLOT_CIRCLE);
        look.size = 0.6;
        for (i = 0; i < c.n; i++) {
            c.low[i] = c.mean[i] - s.mean[i];
            c.high[i] = c.mean[i] + s.mean[i];
        }
        plot_errorbars(p, NULL, c.x, c.mean, c.low, c.high, c.n, look);
        plot_line(p, name[plain][k], c.x, c.mean, c.n, look);
    }
}

/* clang-format off */
#define HISTOGRAM(column, of, title)                                                               \
    {.axes = {0, column, .heading = title, .x = "gradient of a weight",                            \
              .y = "weights in a bin", .y_scale = PLOT_LOG10, .y_range = {0.7, 1e5}},              \
     .draw = draw_histogram, .arm = of}
#define OUTPUTS(column, of, title)                                                                 \
    {.axes = {0, column, .heading = title, .x = "class",                                        \
              .y = "example, sorted by its digit", .y_range = {BATCH, 0}, .frame = PLOT_BOX},      \
     .draw = draw_outputs, .arm = of}
#define DEPTH(column, of, what, title, at, name, low, high, where)                                 \
    {.axes = {1, column, .heading = title, .x = at, .y = "log_{10} of mean " name,                 \
              .y_range = {low, high}, .legend = PLOT_LEGEND_##where},                              \
     .draw = draw_depth, .arm = of, .series = what} /* with room for the legend */
static const lab_panel beginning[] = {
    HISTOGRAM(0, RB, "R27, batch norm: layer 28 of 56"),
    HISTOGRAM(1, RN, "R27, no norm: layer 28 of 56"),
    HISTOGRAM(2, PN, "P20, no norm: layer 11 of 21"),
    DEPTH(0, RN, "m", "R27: channel means", "residual block", "|channel mean|", -1, 3.4, TOP_LEFT),
    DEPTH(1, RN, "s", "R27: channel deviations", "residual block", "channel deviation", -0.6, 2.1,
          TOP_LEFT),
    DEPTH(2, PN, "s", "P20: channel deviations", "hidden layer", "channel deviation", -5.8, 0.4,
          BOTTOM_LEFT)};
static const lab_panel outputs[] = {
    OUTPUTS(0, RN, "R27, no norm: output gradients"),
    OUTPUTS(1, RB, "R27, batch norm: output gradients"),
    /* which classes the whole batch pushes down (> 0) or up */
    {.axes = {.col = 2, .heading = "Column means of a and b", .x = "class",
              .x_range = {-0.5, 9.5}, .y = "mean × 128", .y_range = {-0.3, 1.3},
              .legend = PLOT_LEGEND_TOP_LEFT},
     .line = {{RN, "push", "no norm", .how = LAB_ONE_SEED},
              {RB, "push", "batch norm", .how = LAB_ONE_SEED}},
     .under = {{LAB_HLINE, .y = 0, .text = "", .color = PLOT_GREY}}}};
/* clang-format on */

/* ---- figures: one step ----------------------------------------------------------------------- */

/* Channels across, percent of the step down. */
static void draw_moments(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    const lab_series v = lab_get(r, panel->arm, 0, panel->series);
    double logs[(FRACTIONS + 1) * SHOWN];
    size_t i;
    for (i = 0; i < v.n; i++) logs[i] = log10_or_nan(v.y[i]);
    plot_heat(p, logs, v.n / SHOWN, SHOWN, 0.5, SHOWN + 0.5, -1, 101, PLOT_SEQUENTIAL, 0, 0);
    plot_colorbar(p, "log_{10} variance");
}

/* The numbers of the first, middle and last block, at the ends of the lines without norm. */
static void draw_numbers(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    const size_t last = shapes[panel->arm].net.depth, block[3] = {1, last / 2, last};
    size_t k;
    for (k = 0; k < 3; k++)
        plot_text(p, 102, lab_mean(r, panel->arm, lab_format(r, "most%zu", k), 100),
                  lab_format(r, "%zu", block[k]), PLOT_LEFT, PLOT_VERMILLION);
}

/* clang-format off */
#define MOMENTS(column, of, block, title, hidden)                                                  \
    {.axes = {0, column, .heading = title, .x = "channel", .y = "% of the step",                   \
              .y_range = {101, -1}, .frame = PLOT_BOX, .hide = hidden},                            \
     .draw = draw_moments, .arm = of, .series = block}
/* The largest channel variance of the watched blocks. */
#define BLOCK(of, series, name, shape, ...)                                                        \
    {of, series, name, {__VA_ARGS__, .marker = PLOT_##shape, .marker_every = 5, .size = 0.8}}
#define BLOCKS(of, name, ...)                                                                      \
    BLOCK(of, "most0", "", CIRCLE, __VA_ARGS__), BLOCK(of, "most1", "", TRIANGLE, __VA_ARGS__),    \
    BLOCK(of, "most2", name, SQUARE, __VA_ARGS__)
#define GROWTH(column, none, batch, title, low, high, where)                                       \
    {.axes = {1, column, .heading = title, .x = "% of the step", .x_range = {0, 118},              \
              .y = "log_{10} largest variance", .y_range = {low, high}, .legend = where},          \
     .line = {BLOCKS(none, "no norm", PLOT_VERMILLION, .dash = PLOT_DASHED),                       \
              BLOCKS(batch, "batch norm", PLOT_BLUE)},                                             \
     .draw = draw_numbers, .arm = none, .full = 1}
static const lab_panel step[] = { /* d and f: with room for the legend */
    MOMENTS(0, RN, "v1", "no norm, block 13", 0),
    MOMENTS(1, RN, "v2", "no norm, block 27", PLOT_GRID_Y),
    MOMENTS(2, RB, "v2", "batch norm, block 27", PLOT_GRID_Y),
    GROWTH(0, RN, RB, "R27", -2, 119.2812, PLOT_LEGEND_TOP_LEFT),
    GROWTH(1, PN, PB, "P20, a plain network", 0, 0, PLOT_LEGEND_NONE),
    {.axes = {1, 2, .heading = "Loss of the batch", .x = "% of the step", .y = "loss",
              .y_scale = PLOT_LOG10, .y_range = {0.1, 7.599e80}, .legend = PLOT_LEGEND_TOP_LEFT},
     .line = {{RN, "loss", "R27, no norm", .how = LAB_EACH_SEED},
              {RB, "loss", "R27, batch norm", .how = LAB_EACH_SEED},
              {PN, "loss", "P20, no norm", {PLOT_INK, .dash = PLOT_DOTTED}, LAB_EACH_SEED}},
     .full = 1}};
/* clang-format on */

/* ---- figures: plain networks, where batch norm makes gradients explode ----------------------- */

/* The theory's slope, through the mean of the last hidden layer. */
static void draw_theory(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    const double depth = (double)shapes[panel->arm].net.depth;
    const double end = lab_mean(r, panel->arm, "g", depth);
    const double x[2] = {2, depth}, rise = (depth - 2) * log10(theory_factor());
    const double y[2] = {end + rise, end};
    plot_line(p, panel->series, x, y, 2, plot_dotted(PLOT_INK));
}

static void draw_factors(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    static const size_t arm_of[3][4] = {
        {D5N, D10N, PN, D50N}, {D5B, D10B, PB, D50B}, {D5L, D10L, PL, D50L}};
    static const char *const name[3] = {"no norm", "batch norm", "layer norm"};
    static const int marker[3] = {PLOT_SQUARE, PLOT_CIRCLE, PLOT_TRIANGLE};
    size_t n, d;
    for (n = 0; n < 3; n++) {
        const plot_style look = plot_with_marker(look_of(arm_of[n][0]), marker[n]);
        double mid[4], lo[4], hi[4];
        for (d = 0; d < 4; d++) {
            const stats_summary s = lab_describe(lab_each(r, arm_of[n][d], factor_of));
            mid[d] = s.mean;
            lo[d] = s.mean - s.sd;
            hi[d] = s.mean + s.sd;
        }
        plot_errorbars(p, NULL, panel->axes.x_ticks, mid, lo, hi, 4, look);
        plot_line(p, name[n], panel->axes.x_ticks, mid, 4, look);
    }
    plot_hline(p, theory_factor(), "theory: 1.211", plot_dotted(PLOT_INK));
}

/* clang-format off */
#define GRADIENTS(at_row, at_col, title)                                                           \
    .axes = {at_row, at_col, .heading = title, .x = "layer of weights", .y = "log_{10} |dL/dW|"}
static const double at[4] = {5, 10, 20, 50};
static const char *const tick[4] = {"5", "10", "20", "50"};
static const lab_panel plain[] = {
    {GRADIENTS(0, 0, "Plain, 20 hidden layers"),
     .line = {{PN, "g", "no norm"}, {PB, "g", "batch norm"}, {PL, "g", "layer norm"}},
     .draw = draw_theory, .arm = PB, .series = "theory, batch norm"},
    {GRADIENTS(0, 1, "Plain, batch norm, 5 to 50 hidden layers"),
     .line = {{D5B, "g", "5", .level = {3, 4}}, {D10B, "g", "10", .level = {2, 4}},
              {PB, "g", "20", .level = {1, 4}}, {D50B, "g", "50", .level = {0, 4}}},
     .draw = draw_theory, .arm = D50B, .series = "theory"},
    {.axes = {1, 0, .heading = "Growth of the gradient from a layer to the one before",
              .x = "hidden layers", .x_scale = PLOT_LOG2, .x_ticks = at, .x_names = tick,
              .x_count = 4, .y = "factor of a layer", .y_range = {0.8, 1.45},
              .legend = PLOT_LEGEND_TOP_RIGHT},
     .draw = draw_factors},
    {GRADIENTS(1, 1, "R27: the residual network"),
     .line = {{RN, "g", "no norm"}, {RB, "g", "batch norm"}}}};
static const lab_page pages[] = {
    {"Without batch norm channels and gradients of R27 grow with depth (a to c: seed 11)", NULL,
     1080, 0.92, LAB_PANELS(beginning)},
    {"Without batch norm all examples of the batch push the same class of R27", "outputs", 720,
     0.92, "Networks at initialization, one batch of 128", .seeds = 1, .widths = {1, 1, 1.3},
     LAB_PANELS(outputs)},
    {"Without batch norm one step at rate 0.1 kills or explodes channels", "step", 1200,
     .settings = "R27: 27 residual blocks of 2 layers, Glorot, at initialization; one batch of "
                 "128; a to c: seed 11, grey: 0 for all examples; d, e: first, middle, last block "
                 "or layer", LAB_PANELS(step)},
    {"In plain networks it is batch norm that makes gradients explode", "plain", 1300, 0.95,
     LAB_PANELS(plain)}};
/* clang-format on */

LAB_PROGRAM("29_depth",
            "What does depth do to gradients and activations, with and without batch norm?",
            "Networks at initialization, one batch of 128 of the first 10000 training images, "
            "standardized pixels, double. R27: 784-64, 27 residual blocks of 2 layers, 10, Glorot; "
            "P20: 784-100×20-10, He",
            .revision = 4, .uses = LAB_USES_DATA, .prepare = prepare, .look = look_of)
