/* 29_depth: what does depth do to gradients and activations, with and without batch norm?
   (README.md)

   Bjorck, Gomes, Selman and Weinberger ("Understanding Batch Normalization", 2018) look at a
   residual network of 110 layers at initialization and during one step that diverges. Without batch
   norm channels grow with depth, gradients are a hundred times larger and heavy-tailed, all
   examples push the same wrong class, and one step makes the last layers explode. Mean field theory
   (Yang et al., "A Mean Field Theory of Batch Normalization", 2019) says the opposite of plain
   networks: there it is batch norm that makes gradients explode, by √(π/(π-1)) = 1.211 a layer.

   Nothing is trained. One batch of 128 digits, standardized pixels, loss: cross-entropy; in double.

       R27    784-64, 27 residual blocks of two layers of 64, 10; W ~ N(0, 2/(in+out)), no biases
              (residual.h): 56 layers of weights. R9he has 9 blocks and W ~ N(0, 2/in)
       P20    784-100×20-10, plain, ReLU, W ~ N(0, 2/in); P20g uniform in ±√(6/(in+out))
       M13    784-100×13-10, plain, ReLU, uniform in ±√(6/(in+out))
       P5..50 as P20 with 5, 10 and 50 hidden layers

   Each without norm and with batch norm before ReLU (γ = 1, β = 0; both would be learned, so the
   one step moves them too); P5 to P50 with layer norm as well. Plain layers without norm have
   biases, which start at 0.

   Measured, for 5 seeds: the gradient of the middle layer's weights, the output gradients, means
   and standard deviations of the channels of each block, and how they move while one step of SGD
   with learning rate 0.1 is taken, from 0 to 100 % of that one step in steps of 2 %. */
#define NRM_DOUBLE
#include "lab/experiment.h"
#include "lab/draw.h"
#include "lab/residual.h"

enum {
    BATCH = DEEP_BATCH,
    CLASSES = DEEP_CLASSES,
    IMAGES = 10000,
    LAYERS_MAX = 64,
    WIDTH_MAX = DEEP_PLAIN_WIDTH
};
enum { BINS = 200, SHOWN = 24, FRACTIONS = 50, WATCHED = 3 };
#define RATE 0.1 /* of the one step */

/* ---- the arms -------------------------------------------------------------------------------- */

enum {
    RN,
    RB,
    HN,
    HB,
    PN,
    PB,
    PL,
    GN,
    GB,
    MN,
    MB,
    D5N,
    D5B,
    D5L,
    D10N,
    D10B,
    D10L,
    D50N,
    D50B,
    D50L,
    ARMS
};

static const deep_spec shapes[ARMS] = {
    {DEEP_RESIDUAL, NRM_NO_NORM, 0, 27, 0, 0}, {DEEP_RESIDUAL, NRM_BATCH_NORM, 0, 27, 0, 0},
    {DEEP_RESIDUAL, NRM_NO_NORM, 1, 9, 0, 0},  {DEEP_RESIDUAL, NRM_BATCH_NORM, 1, 9, 0, 0},
    {DEEP_PLAIN, NRM_NO_NORM, 1, 20, 0, 0},    {DEEP_PLAIN, NRM_BATCH_NORM, 1, 20, 0, 0},
    {DEEP_PLAIN, NRM_LAYER_NORM, 1, 20, 0, 0}, {DEEP_PLAIN, NRM_NO_NORM, 0, 20, 0, 0},
    {DEEP_PLAIN, NRM_BATCH_NORM, 0, 20, 0, 0}, {DEEP_PLAIN, NRM_NO_NORM, 0, 13, 0, 0},
    {DEEP_PLAIN, NRM_BATCH_NORM, 0, 13, 0, 0}, {DEEP_PLAIN, NRM_NO_NORM, 1, 5, 0, 0},
    {DEEP_PLAIN, NRM_BATCH_NORM, 1, 5, 0, 0},  {DEEP_PLAIN, NRM_LAYER_NORM, 1, 5, 0, 0},
    {DEEP_PLAIN, NRM_NO_NORM, 1, 10, 0, 0},    {DEEP_PLAIN, NRM_BATCH_NORM, 1, 10, 0, 0},
    {DEEP_PLAIN, NRM_LAYER_NORM, 1, 10, 0, 0}, {DEEP_PLAIN, NRM_NO_NORM, 1, 50, 0, 0},
    {DEEP_PLAIN, NRM_BATCH_NORM, 1, 50, 0, 0}, {DEEP_PLAIN, NRM_LAYER_NORM, 1, 50, 0, 0}};

static const lab_arm arms[ARMS] = {{"Rn", "R27, no norm", 1.5, 20},
                                   {"Rb", "R27, batch norm", 1.5, 20},
                                   {"Hn", "R9he, no norm", 0.6, 0},
                                   {"Hb", "R9he, batch norm", 0.6, 0},
                                   {"Pn", "P20, no norm", 1, 20},
                                   {"Pb", "P20, batch norm", 1, 20},
                                   {"Pl", "P20, layer norm", 0.1, 0},
                                   {"Gn", "P20g, no norm", 0.1, 0},
                                   {"Gb", "P20g, batch norm", 0.1, 0},
                                   {"Mn", "M13, no norm", 0.1, 0},
                                   {"Mb", "M13, batch norm", 0.1, 0},
                                   {"5n", "5 layers, no norm", 0.1, 0},
                                   {"5b", "5 layers, batch norm", 0.1, 0},
                                   {"5l", "5 layers, layer norm", 0.1, 0},
                                   {"10n", "10 layers, no norm", 0.1, 0},
                                   {"10b", "10 layers, batch norm", 0.1, 0},
                                   {"10l", "10 layers, layer norm", 0.1, 0},
                                   {"50n", "50 layers, no norm", 0.2, 0},
                                   {"50b", "50 layers, batch norm", 0.2, 0},
                                   {"50l", "50 layers, layer norm", 0.2, 0}};

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
static void moments(const nrm_real *a, size_t rows, size_t width, double *mean, double *variance)
{
    size_t c, i;
    for (c = 0; c < width; c++) {
        double sum = 0, squares = 0;
        for (i = 0; i < rows; i++) sum += a[i * width + c];
        mean[c] = sum / (double)rows;
        for (i = 0; i < rows; i++)
            squares += (a[i * width + c] - mean[c]) * (a[i * width + c] - mean[c]);
        variance[c] = squares / (double)rows;
    }
}

static double log10_or_nan(double value)
{
    return value > 0 ? log10(value) : (double)NAN;
}

/* log10 of mean |channel mean| and of the mean channel deviation of each block; and how far the
   channels scatter: standard deviations of log10 over channels. */
static void record_depth(lab_run *run, const deep_net *s, size_t rows)
{
    double mean[WIDTH_MAX], variance[WIDTH_MAX], log_mean[WIDTH_MAX], log_sd[WIDTH_MAX];
    size_t k, c, width;
    for (k = s->spec.kind == DEEP_PLAIN ? 1 : 0; k <= s->spec.depth; k++) {
        const nrm_real *h = deep_output(s, k, &width);
        double means = 0, sds = 0;
        size_t n = 0;
        moments(h, rows, width, mean, variance);
        for (c = 0; c < width; c++) {
            means += fabs(mean[c]) / (double)width;
            sds += sqrt(variance[c]) / (double)width;
            if (!(variance[c] > 0)) continue;
            log_mean[n] = log10(fabs(mean[c]));
            log_sd[n++] = 0.5 * log10(variance[c]);
        }
        lab_record(run, "m", (double)k, lab_round(log10_or_nan(means), 5));
        lab_record(run, "s", (double)k, lab_round(log10_or_nan(sds), 5));
        lab_record(run, "mc", (double)k, lab_round(stats_describe(log_mean, n).sd, 3));
        lab_record(run, "sc", (double)k, lab_round(stats_describe(log_sd, n).sd, 3));
    }
}

/* Slope of a series over x = from .. to, by least squares. */
static double slope(const double *x, const double *y, size_t n, double from, double to)
{
    double sx = 0, sy = 0, sxx = 0, sxy = 0, count = 0;
    size_t i;
    for (i = 0; i < n; i++) {
        if (x[i] < from || x[i] > to) continue;
        count += 1;
        sx += x[i];
        sy += y[i];
        sxx += x[i] * x[i];
        sxy += x[i] * y[i];
    }
    return (count * sxy - sx * sy) / (count * sxx - sx * sx);
}

/* log10 of the Frobenius norm of each layer's weight gradient. */
static void record_gradients(lab_run *run, const deep_net *s)
{
    size_t l, i, n;
    for (l = 0; l < s->layers; l++) {
        const nrm_real *g = deep_weight_gradient(s, l, &n);
        double sum = 0;
        for (i = 0; i < n; i++) sum += g[i] * g[i];
        lab_record(run, "g", (double)(l + 1), lab_round(0.5 * log10_or_nan(sum), 5));
    }
}

/* The layer in the middle: of 56 the 28th, of 21 the 11th. */
static size_t middle_layer(const deep_net *s)
{
    return (s->layers + 1) / 2 - 1;
}

/* What fills a picture comes from the first seed, and of four arms. */
static int is_shown(const lab_run *run)
{
    const size_t a = run->arm;
    return run->seed % 10 == 1 && (a == RN || a == RB || a == PN || a == PB);
}

static int is_shown_residual(const lab_run *run)
{
    return is_shown(run) && (run->arm == RN || run->arm == RB);
}

static int record_middle(lab_run *run, const deep_net *s)
{
    const size_t l = middle_layer(s);
    double edges[BINS + 1], density[BINS], largest = 0;
    size_t n, i;
    const nrm_real *g = deep_weight_gradient(s, l, &n);
    const stats_summary d = stats_describe(g, n);
    for (i = 0; i < n; i++) largest = fabs(g[i]) > largest ? fabs(g[i]) : largest;
    lab_record(run, "sd", (double)(l + 1), d.sd);
    lab_record(run, "log_sd", (double)(l + 1), log10_or_nan(d.sd));
    lab_record(run, "max", (double)(l + 1), largest / d.sd);
    lab_record(run, "kurt", (double)(l + 1), d.kurtosis + 3);
    if (!is_shown(run) || !(largest > 0)) return 0;
    for (i = 0; i <= BINS; i++) edges[i] = largest * (2.0 * (double)i / BINS - 1);
    (void)stats_histogram(g, n, edges, BINS, density);
    lab_record(run, "largest", 0, largest);
    lab_record(run, "numbers", 0, (double)n);
    for (i = 0; i < BINS; i++) /* counts: whole numbers are short */
        lab_record(run, "hist", (double)i,
                   floor(density[i] * 2 * largest / BINS * (double)n + 0.5));
    return 0;
}

/* How many classes it takes to cover 80 % of the batch, by what the network predicts. */
static double classes_for_80(const nrm_real *prob, size_t rows, double *first_share)
{
    double count[CLASSES] = {0}, covered = 0;
    size_t i, c, used;
    for (i = 0; i < rows; i++) {
        size_t best = 0;
        for (c = 1; c < CLASSES; c++)
            if (prob[i * CLASSES + c] > prob[i * CLASSES + best]) best = c;
        count[best] += 1;
    }
    stats_sort(count, CLASSES);
    *first_share = count[CLASSES - 1] / (double)rows;
    for (used = 0; used < CLASSES && covered < 0.8 * (double)rows; used++)
        covered += count[CLASSES - 1 - used];
    return (double)used;
}

/* dL/dlogits times the batch size: probability minus 1 for the right class. */
static void record_outputs(lab_run *run, const deep_net *s, const training_order *batch)
{
    const nrm_real *prob = deep_prob(s);
    double mean[CLASSES] = {0}, largest = 0, first_share;
    const double used = classes_for_80(prob, batch->count, &first_share);
    size_t i, c;
    for (c = 0; c < CLASSES; c++) {
        for (i = 0; i < batch->count; i++) {
            const double d = prob[i * CLASSES + c] - (batch->labels[i] == (int)c ? 1 : 0);
            mean[c] += d / (double)batch->count;
            if (is_shown_residual(run))
                lab_record_as(run, (double)i, floor(d * 1000 + 0.5) / 1000, "o%u", (unsigned)c);
        }
        largest = mean[c] > largest ? mean[c] : largest;
    }
    for (i = 0; i < batch->count && is_shown_residual(run); i++)
        lab_record(run, "label", (double)i, batch->labels[i]);
    for (c = 0; c < CLASSES && run->arm <= RB; c++)
        lab_record(run, "push", (double)c, lab_round(mean[c], 3));
    lab_record(run, "push_max", 0, largest);
    lab_record(run, "classes", 0, used);
    lab_record(run, "share", 0, first_share);
}

/* ---- one step, from 0 to 100 % --------------------------------------------------------------- */

/* Blocks 1, 13 and 27 of R27; the first, the middle and the last of the others. */
static size_t watched(const deep_spec *shape, int which)
{
    if (which == 0) return 1;
    return which == 2 ? shape->depth : shape->depth / 2 + (shape->depth == 9 ? 1 : 0);
}

static void record_fraction(lab_run *run, const deep_net *s, size_t rows, size_t percent)
{
    double mean[WIDTH_MAX], variance[WIDTH_MAX];
    int w;
    for (w = 0; w < WATCHED; w++) {
        const size_t k = watched(&s->spec, w);
        size_t width, c;
        const nrm_real *h = deep_output(s, k, &width);
        double most = 0;
        moments(h, rows, width, mean, variance);
        for (c = 0; c < width; c++)
            if (!(variance[c] <= most)) most = variance[c];
        if (percent % 4 == 0)
            lab_record_as(run, (double)percent, lab_round(log10_or_nan(most), 5), "most%d", w);
        if (!is_shown_residual(run) || (run->arm == RB && w < 2)) continue;
        for (c = 0; c < SHOWN; c++)
            lab_record_as(run, (double)c, lab_round(variance[c], 3), "v%d/%lu", w,
                          (unsigned long)percent);
        for (c = 0; c < SHOWN; c++)
            lab_record_as(run, (double)c, lab_round(mean[c], 3), "m%d/%lu", w,
                          (unsigned long)percent);
    }
}

static int record_step(lab_run *run, deep_net *s, const training_order *batch)
{
    const size_t bytes = s->n_params * sizeof *s->params;
    nrm_real *start = (nrm_real *)malloc(2 * bytes), *g = start ? start + s->n_params : NULL;
    size_t i, f;
    int failed = start == NULL;
    if (failed) return -1;
    memcpy(start, s->params, bytes);
    memcpy(g, s->grads, bytes);
    for (f = 0; f <= FRACTIONS && !failed; f += run->quick ? 10 : 1) {
        const double part = RATE * (double)f / FRACTIONS;
        double loss;
        for (i = 0; i < s->n_params; i++) s->params[i] = start[i] - part * g[i];
        failed = look(s, batch, &loss);
        if (f % 2 == 0) lab_record(run, "loss", 100.0 * (double)f / FRACTIONS, lab_round(loss, 4));
        record_fraction(run, s, batch->count, 100 * f / FRACTIONS);
        lab_progress(run, (double)f / FRACTIONS);
    }
    memcpy(s->params, start, bytes);
    free(start);
    return failed;
}

/* ---- a run ----------------------------------------------------------------------------------- */

static training_set images;

static int prepare(const dataset *data, int quick)
{
    (void)quick;
    return training_load(&images, NULL, data, IMAGES, 0, DATASET_STD);
}

static int run_arm(lab_run *run)
{
    const deep_spec *shape = &shapes[run->arm];
    training_order batch;
    deep_net s;
    int failed = training_order_start(&batch, images.n, BATCH, DATASET_PIXELS, run->seed);
    if (failed) return -1;
    failed = training_next(&batch, &images) != BATCH || deep_make(&s, shape, run->seed);
    if (!failed) {
        double loss;
        failed = look(&s, &batch, &loss);
        lab_record(run, "first_loss", 0, loss);
        if (run->arm <= GB) record_depth(run, &s, batch.count);
        record_gradients(run, &s);
        record_outputs(run, &s, &batch);
        failed = failed || record_middle(run, &s);
        if (run->arm <= PB) failed = failed || record_step(run, &s, &batch);
        deep_free(&s);
    }
    training_order_free(&batch);
    return failed;
}

/* ---- figures: gradients and outputs at the beginning ----------------------------------------- */

static const int watched_block[WATCHED] = {1, 13, 27};

/* The histogram of the middle layer's gradient and the normal curve of the same deviation. */
static plot_panel *draw_histogram(lab_report *r, plot_figure *f, int col, size_t arm,
                                  const char *heading)
{
    plot_panel *p = plot_add(f, 0, 2 * col, 1, 2);
    const lab_series h = lab_get(r, arm, 0, "hist");
    const double largest = lab_at(r, arm, 0, "largest", 0), n = lab_at(r, arm, 0, "numbers", 0);
    const double sd = lab_at(r, arm, 0, "sd", LAB_LAST);
    double edges[BINS + 1], count[BINS], x[BINS], normal[BINS];
    const plot_style look = lab_style(shapes[arm].norm == NRM_NO_NORM ? "none" : "batch");
    size_t i;
    if (h.n != BINS) return p;
    for (i = 0; i <= BINS; i++) edges[i] = largest * (2.0 * (double)i / BINS - 1);
    for (i = 0; i < BINS; i++) {
        const double z = (x[i] = (edges[i] + edges[i + 1]) / 2) / sd;
        count[i] = h.y[i];
        normal[i] = n * (edges[1] - edges[0]) / (sd * 2.50662827463) * exp(-z * z / 2);
    }
    plot_heading(p, heading);
    plot_axis_x(p, "gradient of a weight", PLOT_LINEAR);
    plot_axis_y(p, "weights in a bin", PLOT_LOG10);
    plot_range_y(p, 0.7, 1e6);
    plot_hist(p, NULL, edges, count, BINS, look);
    plot_line(p, NULL, x, normal, BINS, plot_dotted(PLOT_INK));
    plot_text_in(p, 0.03, 0.99, lab_format(r, "deviation %.3g", sd), PLOT_LEFT + PLOT_BELOW,
                 PLOT_INK);
    plot_text_in(p, 0.03, 0.91, lab_format(r, "kurtosis %.1f", lab_at(r, arm, 0, "kurt", LAB_LAST)),
                 PLOT_LEFT + PLOT_BELOW, PLOT_INK);
    plot_text_in(p, 0.03, 0.81, "dotted: normal", PLOT_LEFT + PLOT_BELOW, PLOT_INK);
    return p;
}

/* Rows are examples, sorted by their digit; columns are classes. */
static void draw_outputs(lab_report *r, plot_figure *f, int col, size_t arm, const char *heading)
{
    plot_panel *p = plot_add(f, 1, 2 * col, 2, 2);
    double v[BATCH * CLASSES];
    size_t row = 0, label, i, c;
    char name[8];
    for (label = 0; label < CLASSES; label++)
        for (i = 0; i < BATCH; i++) {
            if (lab_at(r, arm, 0, "label", (double)i) != (double)label) continue;
            for (c = 0; c < CLASSES && row < BATCH; c++) {
                (void)snprintf(name, sizeof name, "o%u", (unsigned)c);
                v[row * CLASSES + c] = lab_at(r, arm, 0, name, (double)i);
            }
            row++;
        }
    plot_heading(p, heading);
    plot_axis_x(p, "class", PLOT_LINEAR);
    plot_axis_y(p, "example, sorted by its digit", PLOT_LINEAR);
    plot_frame(p, PLOT_BOX);
    plot_heat(p, v, row < BATCH ? row : BATCH, CLASSES, -0.5, 9.5, 0, 128, PLOT_DIVERGING, -1, 1);
    plot_range_y(p, 128, 0);
    plot_colorbar(p, "dL/dlogit × 128");
}

static void draw_numbers(lab_report *r, plot_figure *f)
{
    static const size_t shown[6] = {RN, RB, PN, PB, MN, MB};
    static const char *const name[6] = {"R27", "R27, BN", "P20", "P20, BN", "M13", "M13, BN"};
    static const char *const head[5] = {"", "dev.", "max/dev.", "kurt.", "classes"};
    const char *cell[7 * 5];
    plot_panel *p = plot_add(f, 1, 4, 1, 2);
    size_t i;
    for (i = 0; i < 5; i++) cell[i] = head[i];
    for (i = 0; i < 6; i++) {
        const size_t arm = shown[i];
        cell[5 * (i + 1)] = name[i];
        cell[5 * (i + 1) + 1] = lab_format(r, "%.2g", lab_mean(r, arm, "sd", LAB_LAST));
        cell[5 * (i + 1) + 2] = lab_format(r, "%.0f", lab_mean(r, arm, "max", LAB_LAST));
        cell[5 * (i + 1) + 3] = lab_format(r, "%.1f", lab_mean(r, arm, "kurt", LAB_LAST));
        cell[5 * (i + 1) + 4] = lab_format(r, "%.1f", lab_mean(r, arm, "classes", 0));
    }
    plot_heading(p, "Means over seeds");
    plot_table(p, cell, 7, 5, "lrrrr");
}

/* Which classes the whole batch pushes down (> 0) or up: the columns of the two maps. */
static void draw_push(lab_report *r, plot_figure *f)
{
    static const size_t arm[2] = {RN, RB};
    plot_panel *p = plot_add(f, 2, 4, 1, 2);
    size_t i;
    plot_heading(p, "Column means of d and e");
    plot_axis_x(p, "class", PLOT_LINEAR);
    plot_axis_y(p, "mean × 128", PLOT_LINEAR);
    plot_range_x(p, -0.5, 9.5);
    plot_range_y(p, -0.3, 1.1);
    plot_hline(p, 0, NULL, plot_thin(PLOT_GREY));
    plot_legend(p, PLOT_LEGEND_NONE); /* as in the row below */
    for (i = 0; i < 2; i++) {
        const lab_series push = lab_get(r, arm[i], 0, "push");
        plot_line(p, i ? "batch norm" : "no norm", push.x, push.y, push.n,
                  plot_with_marker(lab_style(i ? "batch" : "none"), i ? PLOT_CIRCLE : PLOT_SQUARE));
    }
}

/* A series against the block; error bars: how far the channels scatter. */
static void draw_against_depth(lab_report *r, plot_panel *p, size_t arm, const char *series,
                               const char *scatter, const char *label, plot_style look)
{
    const lab_curve c = lab_over_seeds(r, arm, series), s = lab_over_seeds(r, arm, scatter);
    double lo[LAYERS_MAX], hi[LAYERS_MAX];
    size_t i;
    for (i = 0; i < c.n; i++) {
        lo[i] = c.mean[i] - s.mean[i];
        hi[i] = c.mean[i] + s.mean[i];
    }
    look = plot_with_marker(look, shapes[arm].norm == NRM_NO_NORM ? PLOT_SQUARE : PLOT_CIRCLE);
    look.size = 0.6;
    plot_errorbars(p, NULL, c.x, c.mean, lo, hi, c.n, look);
    plot_line(p, label, c.x, c.mean, c.n, look);
}

static plot_panel *depth_panel(plot_figure *f, int col, const char *heading, const char *x,
                               const char *y)
{
    plot_panel *p = plot_add(f, 3, 2 * col, 1, 2);
    plot_heading(p, heading);
    plot_axis_x(p, x, PLOT_LINEAR);
    plot_axis_y(p, y, PLOT_LINEAR);
    plot_legend(p, PLOT_LEGEND_TOP_LEFT);
    return p;
}

static int draw_beginning(lab_report *r)
{
    plot_figure *f =
        lab_figure(r, "Without batch norm channels and gradients of R27 grow with depth (seed 11)",
                   1600, 1680);
    static const double heights[4] = {1, 0.66, 0.5, 1};
    const plot_style none = lab_style("none"), batch = lab_style("batch");
    const char *mean = "log_{10} of mean |channel mean|",
               *sd = "log_{10} of mean channel deviation";
    plot_panel *p;
    plot_scale(f, 0.92);
    plot_heights(f, heights, 4);
    (void)draw_histogram(r, f, 0, RB, "R27, batch norm: layer 28 of 56");
    (void)draw_histogram(r, f, 1, RN, "R27, no norm: layer 28 of 56");
    (void)draw_histogram(r, f, 2, PN, "P20, no norm: layer 11 of 21");
    draw_outputs(r, f, 0, RN, "R27, no norm: output gradients");
    draw_outputs(r, f, 1, RB, "R27, batch norm: output gradients");
    draw_numbers(r, f);
    draw_push(r, f);
    p = depth_panel(f, 0, "R27: channel means", "residual block", mean);
    draw_against_depth(r, p, RN, "m", "mc", "no norm", none);
    draw_against_depth(r, p, RB, "m", "mc", "batch norm", batch);
    plot_range_y(p, -1, 3.4); /* room for the legend */
    p = depth_panel(f, 1, "R27: channel deviations", "residual block", sd);
    draw_against_depth(r, p, RN, "s", "sc", "no norm", none);
    draw_against_depth(r, p, RB, "s", "sc", "batch norm", batch);
    plot_range_y(p, -0.6, 2.1);
    p = depth_panel(f, 2, "P20: channel deviations", "hidden layer", sd);
    draw_against_depth(r, p, PN, "s", "sc", "no norm, He", none);
    draw_against_depth(r, p, GN, "s", "sc", "no norm, Glorot", plot_dashdot(PLOT_GREY));
    draw_against_depth(r, p, PB, "s", "sc", "batch norm, He", batch);
    plot_range_y(p, -5.8, 0.4); /* room for the legend */
    plot_legend(p, PLOT_LEGEND_BOTTOM_LEFT);
    return lab_save(r, f, NULL);
}

/* ---- figures: one step ----------------------------------------------------------------------- */

/* Channels across, percent of the step down. */
static void draw_moments(lab_report *r, plot_figure *f, int col, size_t arm, int w,
                         const char *heading)
{
    plot_panel *p = plot_add(f, 0, col, 1, 1);
    double v[(FRACTIONS + 1) * SHOWN];
    char name[24];
    int i, c;
    for (i = 0; i <= FRACTIONS; i++)
        for (c = 0; c < SHOWN; c++) {
            (void)snprintf(name, sizeof name, "v%d/%d", w, 100 * i / FRACTIONS);
            v[i * SHOWN + c] = log10_or_nan(lab_at(r, arm, 0, name, (double)c));
        }
    plot_heading(p, heading);
    plot_axis_x(p, "channel", PLOT_LINEAR);
    plot_axis_y(p, "% of the step", PLOT_LINEAR);
    plot_frame(p, PLOT_BOX);
    plot_heat(p, v, FRACTIONS + 1, SHOWN, 0.5, SHOWN + 0.5, -1, 101, PLOT_SEQUENTIAL, 0, 0);
    plot_range_y(p, 101, -1);
    plot_colorbar(p, "log_{10} variance");
    if (col > 0) plot_hide_y(p);
}

/* The largest channel variance of the watched blocks against the part of the step taken; without
   norm the block stands at the end of its line. */
static void draw_growth(lab_report *r, plot_figure *f, int col, size_t none, size_t batch,
                        const char *heading)
{
    static const int marker[WATCHED] = {PLOT_CIRCLE, PLOT_TRIANGLE, PLOT_SQUARE};
    plot_panel *p = plot_add(f, 1, col, 1, 1);
    char name[8];
    int norm, w;
    plot_heading(p, heading);
    plot_axis_x(p, "% of the step", PLOT_LINEAR);
    plot_axis_y(p, "log_{10} largest variance", PLOT_LINEAR);
    plot_range_x(p, 0, 118);
    if (col == 0) plot_range_y(p, -2, 2 * lab_mean(r, none, "most2", 100));
    plot_legend(p, col == 0 ? PLOT_LEGEND_TOP_LEFT : PLOT_LEGEND_NONE);
    for (norm = 0; norm < 2; norm++)
        for (w = 0; w < WATCHED; w++) {
            const size_t arm = norm ? batch : none;
            const unsigned long k = (unsigned long)watched(&shapes[arm], w);
            plot_style look = lab_style(norm ? "batch" : "none");
            look.marker = marker[w];
            look.marker_every = 5;
            look.size = 0.8;
            (void)snprintf(name, sizeof name, "most%d", w);
            lab_plot(r, p, arm, name, w < WATCHED - 1 ? "" : norm ? "batch norm" : "no norm", look);
            if (!norm)
                plot_text(p, 102, lab_mean(r, arm, name, 100), lab_format(r, "%lu", k), PLOT_LEFT,
                          look.color);
        }
}

static double largest_loss(const lab_report *r)
{
    double most = 10;
    size_t s;
    for (s = 0; s < lab_seeds(r, RN); s++) most = fmax(most, lab_at(r, RN, s, "loss", 100));
    return most;
}

static void draw_loss(lab_report *r, plot_figure *f)
{
    plot_panel *p = plot_add(f, 1, 2, 1, 1);
    plot_style look = lab_style("none");
    plot_heading(p, "Loss of the batch");
    plot_axis_x(p, "% of the step", PLOT_LINEAR);
    plot_axis_y(p, "loss", PLOT_LOG10);
    plot_range_y(p, 0.1, pow(largest_loss(r), 1.7)); /* room for the legend */
    lab_plot_seeds(r, p, RN, "loss", "R27, no norm", look);
    lab_plot_seeds(r, p, RB, "loss", "R27, batch norm", lab_style("batch"));
    look = plot_dotted(PLOT_INK);
    lab_plot_seeds(r, p, PN, "loss", "P20, no norm", look);
    plot_legend(p, PLOT_LEGEND_TOP_LEFT);
}

static int draw_step(lab_report *r)
{
    plot_figure *f = lab_figure(
        r, "Without batch norm one step at rate 0.1 kills or explodes channels", 1600, 1200);
    int w;
    lab_subtitle(
        r, f,
        "R27: 27 residual blocks of 2 layers, Glorot, at initialization; one batch of 128; "
        "a to c: seed 11, grey: 0 for all examples; d, e: first, middle, last block or layer",
        lab_seeds(r, HN));
    for (w = 1; w <= WATCHED; w++) {
        const size_t arm = w < WATCHED ? RN : RB;
        const int block = w < WATCHED ? w : WATCHED - 1;
        draw_moments(r, f, w - 1, arm, block,
                     lab_format(r, "%s, block %d", arm == RN ? "no norm" : "batch norm",
                                watched_block[block]));
    }
    draw_growth(r, f, 0, RN, RB, "R27");
    draw_growth(r, f, 1, PN, PB, "P20, a plain network");
    draw_loss(r, f);
    return lab_save(r, f, "step");
}

/* ---- figures: plain networks, where batch norm makes gradients explode ----------------------- */

/* Factor by which the gradient's norm grows from a layer to the one before it, by least squares
   over layers 2 .. depth (layer 1 has more inputs than the others). */
static double factor_of(const lab_report *r, size_t arm, size_t seed)
{
    const lab_series g = lab_get(r, arm, seed, "g");
    return pow(10, -slope(g.x, g.y, g.n, 2, (double)shapes[arm].depth));
}

static double theory_factor(void)
{
    return sqrt(acos(-1.0) / (acos(-1.0) - 1));
}

/* The theory's slope, through the mean of the last hidden layer. */
static void draw_theory(lab_report *r, plot_panel *p, size_t arm, const char *label)
{
    const double depth = (double)shapes[arm].depth, end = lab_mean(r, arm, "g", depth);
    const double x[2] = {2, depth}, rise = (depth - 2) * log10(theory_factor());
    const double y[2] = {end + rise, end};
    plot_style look = plot_dotted(PLOT_INK);
    plot_line(p, label, x, y, 2, look);
}

static plot_panel *gradient_panel(plot_figure *f, int row, int col, const char *heading)
{
    plot_panel *p = plot_add(f, row, col, 1, 1);
    plot_heading(p, heading);
    plot_axis_x(p, "layer of weights", PLOT_LINEAR);
    plot_axis_y(p, "log_{10} |dL/dW|", PLOT_LINEAR);
    return p;
}

static void draw_factors(lab_report *r, plot_figure *f)
{
    static const size_t arm_of[3][4] = {
        {D5N, D10N, PN, D50N}, {D5B, D10B, PB, D50B}, {D5L, D10L, PL, D50L}};
    static const char *const name[3] = {"no norm", "batch norm", "layer norm"};
    static const char *const id[3] = {"none", "batch", "layer"};
    static const int marker[3] = {PLOT_SQUARE, PLOT_CIRCLE, PLOT_TRIANGLE};
    static const double at[4] = {5, 10, 20, 50};
    static const char *const tick[4] = {"5", "10", "20", "50"};
    plot_panel *p = plot_add(f, 1, 0, 1, 1);
    size_t n, d, s;
    for (n = 0; n < 3; n++) {
        double mean[4], lo[4], hi[4], value[LAB_SEEDS_MAX];
        plot_style look = lab_style(id[n]);
        for (d = 0; d < 4; d++) {
            const size_t arm = arm_of[n][d], seeds = lab_seeds(r, arm);
            stats_summary summary;
            for (s = 0; s < seeds; s++) value[s] = factor_of(r, arm, s);
            summary = stats_describe(value, seeds);
            mean[d] = summary.mean;
            lo[d] = summary.mean - summary.sd;
            hi[d] = summary.mean + summary.sd;
        }
        look = plot_with_marker(look, marker[n]);
        plot_errorbars(p, NULL, at, mean, lo, hi, 4, look);
        plot_line(p, name[n], at, mean, 4, look);
    }
    plot_heading(p, "Growth of the gradient from a layer to the one before");
    plot_axis_x(p, "hidden layers", PLOT_LOG2);
    plot_axis_y(p, "factor of a layer", PLOT_LINEAR);
    plot_ticks_x(p, at, tick, 4);
    plot_range_y(p, 0.8, 1.45);
    plot_hline(p, theory_factor(), "theory: 1.211", plot_dotted(PLOT_INK));
    plot_legend(p, PLOT_LEGEND_TOP_RIGHT);
}

static int draw_plain(lab_report *r)
{
    plot_figure *f = lab_figure(
        r, "In plain networks it is batch norm that makes gradients explode", 1600, 1300);
    plot_panel *p;
    plot_scale(f, 0.95);
    p = gradient_panel(f, 0, 0, "Plain, 20 hidden layers");
    lab_plot(r, p, PN, "g", "no norm", lab_style("none"));
    lab_plot(r, p, PB, "g", "batch norm", lab_style("batch"));
    lab_plot(r, p, PL, "g", "layer norm", lab_style("layer"));
    draw_theory(r, p, PB, "theory, batch norm");
    p = gradient_panel(f, 0, 1, "Plain, batch norm, 5 to 50 hidden layers");
    lab_plot(r, p, D5B, "g", "5", plot_solid(lab_level(3, 4)));
    lab_plot(r, p, D10B, "g", "10", plot_solid(lab_level(2, 4)));
    lab_plot(r, p, PB, "g", "20", plot_solid(lab_level(1, 4)));
    lab_plot(r, p, D50B, "g", "50", plot_solid(lab_level(0, 4)));
    draw_theory(r, p, D50B, "theory");
    draw_factors(r, f);
    p = gradient_panel(f, 1, 1, "R27: the residual network");
    lab_plot(r, p, RN, "g", "no norm", lab_style("none"));
    lab_plot(r, p, RB, "g", "batch norm", lab_style("batch"));
    return lab_save(r, f, "plain");
}

/* ---- claims ---------------------------------------------------------------------------------- */

#define BJORCK "Bjorck et al. 2018, "
#define CARRIED "ours; carried over to plain networks from Bjorck et al. 2018, "
#define NOTES "Chinese notes on batch norm; a lecture-style post on how batch norm helps"
#define READ "ours; the sentence of 29j, read in another way"
#define AFTER "; added after the run"

/* clang-format off */
static const lab_claim claims[] = {
    {"29a", "R27: without batch norm the middle layer's gradients are far larger", BJORCK "Fig. 2",
     "±4 without and ±0.04 with batch norm: almost two orders of magnitude",
     "standard deviation larger without norm, the ratio (geometric mean over seeds) at least 30",
     "trial runs (1 seed): 6.19 without and 0.040 with batch norm, 154 times", LAB_TRAINING,
     LAB_SETTING},
    {"29b", "R27: without batch norm these gradients are heavy-tailed", BJORCK "Fig. 2",
     "heavy tails without; concentrated around the mean with batch norm",
     "kurtosis (3 for a normal distribution) without norm above 3 times that with batch norm",
     "trial runs (1 seed): 27.6 without and 3.9 with batch norm", LAB_TRAINING, LAB_SETTING},
    {"29c", "R27: without batch norm all examples push the same class; with it they differ",
     BJORCK "heat map of output gradients",
     "one class for the whole batch; several with batch norm",
     "classes that cover 80 % of predictions: at most 2 without norm (mean), more with batch norm",
     "none", LAB_TRAINING, LAB_SETTING},
    {"29d", "R27: without batch norm channels grow exponentially with depth", BJORCK "Fig. 5",
     "log deviation from -1.5 to 3.5 over the network without; flat with batch norm",
     "slope of log10 channel deviation over blocks 14 to 27: without norm at least 3 times that "
     "with", "trial runs (1 seed): log10 deviation -0.2 to 1.37 without, -0.23 to 0.52 with batch "
     "norm; ratio of slopes 6", LAB_TRAINING, LAB_SETTING},
    {"29e", "R27: one large step makes the variance explode with depth, not so with batch norm",
     BJORCK "Fig. 4", "variances of about 1, 5e6 and 5e16 in layers 8, 44 and 80",
     "largest variance of block 27 over that of block 1 after the step: at least 1e6 without norm, "
     "at most 1e2 with batch norm (geometric means)", "trial runs (1 seed): 2.5e3, 9.6e31, 1.5e91 "
     "without; 1.4, 34, 50 with batch norm (blocks 1, 13, 27)", LAB_TRAINING, LAB_SETTING},
    {"29f", "The same as 29a for a plain network, P20", CARRIED "Fig. 2", "not in the paper",
     "as 29a", "trial runs (1 seed): 0.019 without and 0.034 with batch norm: smaller, kurtosis 62 "
     "against 3.8; expected to fail", LAB_TRAINING, LAB_SETTING},
    {"29g", "The same as 29d for a plain network, P20", CARRIED "Fig. 5", "not in the paper",
     "as 29d, over hidden layers 11 to 20",
     "trial runs (1 seed): deviation 1.2 to 0.25 without norm; expected to fail", LAB_TRAINING,
     LAB_SETTING},
    {"29h", "The same as 29e for a plain network, P20", CARRIED "Fig. 4", "not in the paper",
     "as 29e, with hidden layers 20 and 1", "none; expected to fail", LAB_TRAINING, LAB_SETTING},
    {"29i", "Batch norm makes gradients of plain ReLU networks grow by 1.211 a layer, backwards",
     "Yang et al. 2019, mean field theory", "√(π/(π-1)) = 1.211 a layer, at infinite width",
     "20 hidden layers: mean factor in 1.15 to 1.25, and above the one without norm",
     "trial runs (1 seed): 1.194 with batch norm; about 1 without", LAB_TRAINING, LAB_SETTING},
    {"29j", "Batch norm prevents exploding and vanishing gradients (here: plain, 50 layers)", NOTES,
     "listed as a result, without numbers",
     "|log10| of the ratio of gradient norms, layer 2 to layer 50: smaller with batch norm",
     "trial runs (1 seed, 20 layers): 21 to 0.72 with batch norm, flat without; expected to fail",
     LAB_TRAINING, LAB_NEWS},
    {"29k", "The same as 29j for a residual network, R27", READ, "not said",
     "as 29j, layer 2 to layer 55" AFTER, "seen in the table of the run", LAB_TRAINING, LAB_NEWS},
    {"29l", "By their size: batch norm prevents exploding gradients (plain, 50 layers)", READ,
     "not said", "largest gradient norm of a layer: smaller with batch norm" AFTER,
     "seen in the table of the run", LAB_TRAINING, LAB_NEWS},
    {"29m", "By their size: batch norm prevents exploding gradients (residual, R27)", READ,
     "not said", "as 29l" AFTER, "seen in the table of the run", LAB_TRAINING, LAB_SETTING},
    {"29n", "By their size: batch norm prevents vanishing gradients (plain, 20 layers, Glorot)",
     READ, "not said", "smallest gradient norm of a layer: larger with batch norm" AFTER,
     "seen in the table of the run", LAB_TRAINING, LAB_SETTING}};
/* clang-format on */

/* ---- judging --------------------------------------------------------------------------------- */

static void judge_size(lab_report *r, const lab_claim *claim, size_t none, size_t batch)
{
    double a[LAB_SEEDS_MAX], b[LAB_SEEDS_MAX];
    const size_t n = lab_values(r, none, "log_sd", LAB_LAST, a);
    const double ratio =
        pow(10, stats_mean(a, n) - stats_mean(b, lab_values(r, batch, "log_sd", LAB_LAST, b)));
    lab_verdict(r, claim, stats_judge_pairs(a, b, n, 1, ratio >= 30), "",
                "%.3g without and %.3g with batch norm: %.3g times", pow(10, stats_mean(a, n)),
                pow(10, stats_mean(b, n)), ratio);
}

static void judge_tails(lab_report *r)
{
    double a[LAB_SEEDS_MAX], b[LAB_SEEDS_MAX];
    const size_t n = lab_values(r, RN, "kurt", LAB_LAST, a);
    size_t s;
    (void)lab_values(r, RB, "kurt", LAB_LAST, b);
    for (s = 0; s < n; s++) b[s] *= 3;
    lab_verdict(r, lab_find(r, "29b"), stats_judge_pairs(a, b, n, 1, 1), "",
                "kurtosis %s without, %s with batch norm", lab_text(r, RN, "kurt", LAB_LAST, 1),
                lab_text(r, RB, "kurt", LAB_LAST, 1));
}

static void judge_classes(lab_report *r)
{
    lab_verdict(
        r, lab_find(r, "29c"),
        lab_compare(r, RB, RN, "classes", 0, 1, lab_mean(r, RN, "classes", 0) <= 2), "",
        "%s classes without, %s with batch norm; the first covers %.0f %% and %.0f %%; largest "
        "column mean of dL/dlogits × 128: %s and %s",
        lab_text(r, RN, "classes", 0, 1), lab_text(r, RB, "classes", 0, 1),
        100 * lab_mean(r, RN, "share", 0), 100 * lab_mean(r, RB, "share", 0),
        lab_text(r, RN, "push_max", 0, 2), lab_text(r, RB, "push_max", 0, 2));
}

static void judge_growth(lab_report *r, const lab_claim *claim, size_t none, size_t batch)
{
    double a[LAB_SEEDS_MAX], b[LAB_SEEDS_MAX], depth = (double)shapes[none].depth;
    size_t s, n = lab_seeds(r, none);
    for (s = 0; s < n; s++) {
        const lab_series x = lab_get(r, none, s, "s"), y = lab_get(r, batch, s, "s");
        a[s] = slope(x.x, x.y, x.n, floor(depth / 2) + 1, depth);
        b[s] = slope(y.x, y.y, y.n, floor(depth / 2) + 1, depth);
    }
    lab_verdict(
        r, claim, stats_judge_pairs(a, b, n, 1, stats_mean(a, n) >= 3 * stats_mean(b, n)), "",
        "%s a layer or block without, %s with batch norm; deviation at the end %.2g and "
        "%.2g",
        lab_mean_sd(r, stats_describe(a, n), 4), lab_mean_sd(r, stats_describe(b, n), 4),
        pow(10, lab_mean(r, none, "s", LAB_LAST)), pow(10, lab_mean(r, batch, "s", LAB_LAST)));
}

static void judge_explosion(lab_report *r, const lab_claim *claim, size_t none, size_t batch)
{
    double ratio[2][LAB_SEEDS_MAX];
    const size_t arm[2] = {none, batch}, n = lab_seeds(r, none);
    size_t i, s;
    for (i = 0; i < 2; i++)
        for (s = 0; s < n; s++)
            ratio[i][s] = lab_at(r, arm[i], s, "most2", 100) - lab_at(r, arm[i], s, "most0", 100);
    lab_verdict(r, claim,
                stats_judge_pairs(ratio[0], ratio[1], n, 1,
                                  stats_mean(ratio[0], n) >= 6 && stats_mean(ratio[1], n) <= 2),
                "", "10^(%s) without, 10^(%s) with batch norm",
                lab_mean_sd(r, stats_describe(ratio[0], n), 1),
                lab_mean_sd(r, stats_describe(ratio[1], n), 2));
}

static void judge_factor(lab_report *r)
{
    double a[LAB_SEEDS_MAX], b[LAB_SEEDS_MAX], mean;
    size_t s, n = lab_seeds(r, PN);
    for (s = 0; s < n; s++) {
        a[s] = factor_of(r, PB, s);
        b[s] = factor_of(r, PN, s);
    }
    mean = stats_mean(a, n);
    lab_verdict(r, lab_find(r, "29i"), stats_judge_pairs(a, b, n, 1, mean >= 1.15 && mean <= 1.25),
                "", "%s with batch norm, %s without", lab_mean_sd(r, stats_describe(a, n), 3),
                lab_mean_sd(r, stats_describe(b, n), 3));
}

/* How the gradient's norm changes over the layers between the first and the last one. */
static void judge_spread(lab_report *r, const lab_claim *claim, size_t none, size_t batch)
{
    double a[LAB_SEEDS_MAX], b[LAB_SEEDS_MAX], times, without;
    const size_t n = lab_seeds(r, none);
    const double last = shapes[none].kind == DEEP_PLAIN ? (double)shapes[none].depth
                                                        : 2 * (double)shapes[none].depth + 1;
    size_t s;
    for (s = 0; s < n; s++) {
        a[s] = lab_at(r, batch, s, "g", 2) - lab_at(r, batch, s, "g", last);
        b[s] = lab_at(r, none, s, "g", 2) - lab_at(r, none, s, "g", last);
    }
    times = pow(10, stats_mean(a, n));
    without = pow(10, stats_mean(b, n));
    for (s = 0; s < n; s++) a[s] = fabs(a[s]);
    for (s = 0; s < n; s++) b[s] = fabs(b[s]);
    lab_verdict(r, claim, stats_judge_pairs(a, b, n, -1, 1), "",
                "layer 2 has %.2g times the gradient of layer %.0f with batch norm, %.2g times "
                "without; |log10| %s with, %s without",
                times, last, without, lab_mean_sd(r, stats_describe(a, n), 2),
                lab_mean_sd(r, stats_describe(b, n), 2));
}

/* log10 of the largest (sign 1) or smallest (-1) norm of a layer's gradient, for each seed. */
static size_t extremes(const lab_report *r, size_t arm, int sign, double *value)
{
    size_t s, i, n = lab_seeds(r, arm);
    for (s = 0; s < n; s++) {
        const lab_series g = lab_get(r, arm, s, "g");
        value[s] = g.n > 0 ? g.y[0] : (double)NAN;
        for (i = 1; i < g.n; i++) /* nan, of a gradient that is not a number, stays */
            if (!(sign * g.y[i] <= sign * value[s]) && !isnan(value[s])) value[s] = g.y[i];
    }
    return n;
}

static void judge_extreme(lab_report *r, const lab_claim *claim, size_t none, size_t batch,
                          int sign)
{
    double a[LAB_SEEDS_MAX], b[LAB_SEEDS_MAX];
    const size_t n = extremes(r, batch, sign, a);
    (void)extremes(r, none, sign, b);
    lab_verdict(r, claim, stats_judge_pairs(a, b, n, -sign, 1), "",
                "10^(%s) with batch norm, 10^(%s) without", lab_mean_sd(r, stats_describe(a, n), 2),
                lab_mean_sd(r, stats_describe(b, n), 2));
}

/* ---- checks ---------------------------------------------------------------------------------- */

/* Batch norm's factor from integrals over z ~ N(0,1): back through ReLU E[1(z>0)], forward the
   variance of ReLU(z), by which the next batch norm divides. */
static void check_theory(lab_report *r)
{
    double first = 0, second = 0, open = 0, z;
    for (z = -10; z < 10; z += 1e-4) {
        const double at = z + 5e-5, weight = exp(-at * at / 2) * 0.3989422804014327 * 1e-4;
        if (at <= 0) continue;
        open += weight;
        first += weight * at;
        second += weight * at * at;
    }
    first = sqrt(open / (second - first * first));
    lab_check(r, fabs(first - theory_factor()) < 1e-6,
              "the factor 1.211 of a layer, from E[ReLU'²]/Var[ReLU]", "%.6f, expected %.6f", first,
              theory_factor());
}

/* The residual network's gradient against central differences, on a small one. */
static void check_gradient(lab_report *r, int norm, const char *what)
{
    const residual_spec spec = {12, 7, 3, 4, 9, norm, RESIDUAL_GLOROT, 11};
    double x[9 * 12], *g = NULL, worst = 0, most = 0;
    int labels[9], made;
    residual_net net;
    nrm_rng rng;
    size_t i;
    made = residual_make(&net, &spec) == 0;
    nrm_rng_seed(&rng, 1, TRAINING_STREAM_DATA);
    for (i = 0; i < 9 * 12; i++) x[i] = draw_normal(&rng);
    for (i = 0; i < 9; i++) labels[i] = (int)(i % 4);
    if (made) g = (double *)malloc(net.n_params * sizeof *g);
    if (g) {
        (void)residual_gradient(&net, NULL, x, labels, 9, 0);
        memcpy(g, net.grads, net.n_params * sizeof *g);
    }
    for (i = 0; g && i < net.n_params; i++) {
        const double kept = net.params[i], h = 1e-6;
        double off;
        nrm_acc up, down;
        net.params[i] = kept + h;
        (void)residual_loss(&net, &up, x, labels, 9);
        net.params[i] = kept - h;
        (void)residual_loss(&net, &down, x, labels, 9);
        net.params[i] = kept;
        off = fabs((double)(up - down) / (2 * h) - g[i]);
        if (!(off <= worst)) worst = off; /* nan too */
        if (fabs(g[i]) > most) most = fabs(g[i]);
    }
    lab_check(r, g && worst < 1e-7 * most, what, "largest difference %.1e of %.1e", worst, most);
    free(g);
    if (made) residual_free(&net);
}

static int report(lab_report *r)
{
    judge_size(r, lab_find(r, "29a"), RN, RB);
    judge_tails(r);
    judge_classes(r);
    judge_growth(r, lab_find(r, "29d"), RN, RB);
    judge_explosion(r, lab_find(r, "29e"), RN, RB);
    judge_size(r, lab_find(r, "29f"), PN, PB);
    judge_growth(r, lab_find(r, "29g"), PN, PB);
    judge_explosion(r, lab_find(r, "29h"), PN, PB);
    judge_factor(r);
    judge_spread(r, lab_find(r, "29j"), D50N, D50B);
    judge_spread(r, lab_find(r, "29k"), RN, RB);
    judge_extreme(r, lab_find(r, "29l"), D50N, D50B, 1);
    judge_extreme(r, lab_find(r, "29m"), RN, RB, 1);
    judge_extreme(r, lab_find(r, "29n"), GN, GB, -1);
    check_theory(r);
    check_gradient(r, NRM_NO_NORM, "gradient of the residual network without norm");
    check_gradient(r, NRM_BATCH_NORM, "gradient of the residual network with batch norm");
    check_gradient(r, NRM_LAYER_NORM, "gradient of the residual network with layer norm");
    return draw_beginning(r) || draw_step(r) || draw_plain(r);
}

/* clang-format off */
static const lab_program program = {
    "29_depth", NRM_VERSION,
    "What does depth do to gradients and activations, with and without batch norm?", "Networks at "
    "initialization, one batch of 128 of the first 10000 training images, standardized pixels, "
    "double. R27: 784-64, 27 residual blocks of 2 layers, 10, Glorot; P20: 784-100×20-10, He", 2,
    LAB_USES_DATA, arms, ARMS, prepare, run_arm, report, claims,
    LAB_COUNT(claims)};
/* clang-format on */
LAB_MAIN(program)
