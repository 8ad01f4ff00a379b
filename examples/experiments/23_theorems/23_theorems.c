/* 23_theorems: what is proved about batch norm, put to a trained network and to a toy.

   Theorems 4.1 to 4.5 of Santurkar, Tsipras, Ilyas and Mądry (2018) compare a layer with and
   without batch norm. docs/08_smoothness.md derives them, and finds equalities (and a misprint).
   Equalities can be tested to the last digits, and the terms that are subtracted can be measured:
   the argument needs them to be large. As Observation 4.3 has it, batch norm is put behind a layer
   of a trained network with γ and β that undo it on this batch (γ the standard deviation, β the
   mean), so that the network computes the same as before, and the gradients are compared.

   Kohler et al. (2018) see batch norm as a reparametrization of the weights into a length and a
   direction, for which least squares converge linearly (GDNP; step and bound in our form). And
   since only the direction of weights before a norm matters, plain gradient descent can only make
   them longer, which lowers the effective learning rate (Ba et al. 2016, section 5.2.2).

       none    784-100x6-10, ReLU, MNIST, batch 128, SGD 0.1, six epochs; theorems at layer 3, at
               the start and at the end
       batch   the same with batch norm: gradients at right angles to weights, lengths of weights
       toy     least squares in 20 dimensions, condition 10, 100, 1000, 2000 steps

   Everything in double precision and with ε = 1e-300, which vanishes beside any variance. The
   claims and what counts as reproduced are in claims[] below; they were written before the run, and
   what has changed since is on the page. */
#define NRM_DOUBLE
#include "lab/experiment.h"
#include "lab/draw.h"

#include <float.h>

enum { NONE = 0, BATCH, TOY, ARMS };

static const lab_arm arms[ARMS] = {
    {"none", "no norm", 13, 0}, {"batch", "batch norm", 12, 0}, {"toy", "least squares", 1, 20}};

enum { INPUTS = 784, WIDTH = 100, HIDDEN = 6, CLASSES = 10, M = 128, LAYER = 2, EPOCHS = 6 };
#define NO_EPSILON 1e-300
#define RATE 0.1

static training_set train_set;

/* Once, before the runs: 60,000 images in double are many megabytes, which the runs share. */
static int prepare(const dataset *data, int quick)
{
    return training_load(&train_set, NULL, data, quick ? 2000 : 0, 0, DATASET_STD);
}

static double dot(const double *a, const double *b, size_t n)
{
    double sum = 0;
    size_t i;
    for (i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

static double relative(double a, double b, double size)
{
    return size > 0 ? fabs(a - b) / size : 0;
}

/* ---- the network and its tail ---------------------------------------------------------------- */

static nrm_mlp *make_network(int norm, uint64_t seed, void **block)
{
    nrm_mlp_layer layer[HIDDEN + 1];
    nrm_mlp_spec spec = training_plain(layer, HIDDEN, WIDTH, NRM_RELU, norm);
    spec.max_batch = M;
    spec.seed = seed;
    spec.eps = NO_EPSILON;
    spec.lr = RATE;
    return training_net(&spec, block);
}

/* The network from the pre-activations x of layer LAYER on, as a network of its own: its first
   layer multiplies by 1, and may then normalize. Probes see the gradients at x and its output. */
typedef struct tail {
    nrm_mlp *net;
    void *block;
    double dx[M * WIDTH], dy[M * WIDTH];
} tail;

static void tail_probe(void *context, const nrm_mlp_event *event)
{
    tail *t = (tail *)context;
    const size_t bytes = event->rows * event->cols * sizeof(double);
    if (event->layer != 0 || !event->gradient) return;
    if (event->place == NRM_AT_LINEAR) memcpy(t->dx, event->data, bytes);
    if (event->place == NRM_AT_NORM) memcpy(t->dy, event->data, bytes);
}

static int tail_make(tail *t, const nrm_mlp *net, int norm)
{
    nrm_mlp_layer layer[HIDDEN + 1];
    nrm_mlp_spec spec = net->spec;
    size_t i, l;
    const size_t layers = net->spec.layers - LAYER;
    for (l = 0; l < layers; l++) layer[l] = net->state[LAYER + l].shape;
    layer[0].norm = norm;
    layer[0].bias = 0;
    spec.inputs = WIDTH;
    spec.layers = layers;
    spec.layer = layer;
    t->net = training_net(&spec, &t->block);
    if (!t->net) return -1;
    memset(t->net->state[0].W, 0, WIDTH * WIDTH * sizeof(double));
    for (i = 0; i < WIDTH; i++) t->net->state[0].W[i * WIDTH + i] = 1;
    for (l = 1; l < layers; l++) {
        const nrm_mlp_state *from = &net->state[LAYER + l], *to = &t->net->state[l];
        memcpy(to->W, from->W, to->in * to->shape.width * sizeof(double));
        memcpy(to->b, from->b, to->shape.width * sizeof(double));
    }
    t->net->probe = tail_probe;
    t->net->probe_context = t;
    return 0;
}

/* ---- theorems -------------------------------------------------------------------------------- */

typedef struct layer_view { /* all about layer LAYER on one batch */
    double x[M * WIDTH];    /* its pre-activations                */
    double in[M * WIDTH];   /* its inputs                         */
    int labels[M];
    double dx[M * WIDTH], dy[M * WIDTH]; /* gradients before and behind the norm */
    double mean[WIDTH], sd[WIDTH];
    tail plain, normed;
} layer_view;

/* Column j of an [M][WIDTH] matrix. */
static void column(double *out, const double *a, size_t j)
{
    size_t i;
    for (i = 0; i < M; i++) out[i] = a[i * WIDTH + j];
}

static int tail_gradient(tail *t, const layer_view *v, double *loss)
{
    return nrm_mlp_gradient(t->net, loss, v->x, v->labels, M, NRM_TRAIN);
}

/* γ and β that undo the norm on this batch (SM.32), from the statistics that it has saved. */
static int undo_norm(layer_view *v)
{
    nrm_mlp_state *s = &v->normed.net->state[0];
    size_t j;
    if (tail_gradient(&v->normed, v, NULL) != NRM_OK) return -1;
    for (j = 0; j < WIDTH; j++) {
        v->mean[j] = s->mean[j];
        v->sd[j] = 1 / s->rstd[j];
        s->gamma[j] = v->sd[j];
        s->beta[j] = v->mean[j];
    }
    return 0;
}

typedef struct unit { /* one unit: vectors over the batch, gradient's parts */
    double x_hat[M], dx[M], dy[M];
    double sd, dx2, dy2, dy_sum, dy_xhat;
} unit;

static unit unit_of(const layer_view *v, size_t j)
{
    unit u;
    size_t i;
    column(u.dx, v->dx, j);
    column(u.dy, v->dy, j);
    column(u.x_hat, v->x, j);
    for (i = 0; i < M; i++) u.x_hat[i] = (u.x_hat[i] - v->mean[j]) / v->sd[j];
    u.sd = v->sd[j];
    u.dx2 = dot(u.dx, u.dx, M);
    u.dy2 = dot(u.dy, u.dy, M);
    u.dy_xhat = dot(u.dy, u.x_hat, M);
    for (u.dy_sum = 0, i = 0; i < M; i++) u.dy_sum += u.dy[i];
    return u;
}

/* Σ d·(∂²L/∂x∂x)·d for a direction d of unit j, by the difference of two gradients. The step is so
   short that practically no ReLU changes sides. Leaves x as it was. */
static double curvature(tail *t, layer_view *v, size_t j, const double *d, double sd)
{
    double most = 0, kept[M], along[2], h;
    size_t i, side;
    for (i = 0; i < M; i++) most = fmax(most, fabs(d[i]));
    h = 1e-7 * sd / most;
    column(kept, v->x, j);
    for (side = 0; side < 2; side++) {
        double g[M];
        for (i = 0; i < M; i++) v->x[i * WIDTH + j] = kept[i] + (side ? -h : h) * d[i];
        (void)tail_gradient(t, v, NULL);
        column(g, t->dx, j);
        along[side] = dot(g, d, M);
    }
    for (i = 0; i < M; i++) v->x[i * WIDTH + j] = kept[i];
    return (along[0] - along[1]) / (2 * h);
}

/* The largest singular value of a, [M][WIDTH], by 300 rounds of the power method. */
static double largest_singular(const double *a)
{
    double p[WIDTH], q[M], size = 0;
    size_t i, j, round;
    for (j = 0; j < WIDTH; j++) p[j] = 1;
    for (round = 0; round < 300; round++) {
        for (i = 0; i < M; i++) q[i] = dot(a + i * WIDTH, p, WIDTH);
        memset(p, 0, sizeof p);
        for (i = 0; i < M; i++)
            for (j = 0; j < WIDTH; j++) p[j] += a[i * WIDTH + j] * q[i];
        size = sqrt(dot(p, p, WIDTH));
        for (j = 0; j < WIDTH; j++) p[j] /= size;
    }
    return sqrt(size);
}

/* Orthonormal columns whose span holds 1, x̂, dy: the worst X of theorem 4.4 is λ times these. */
static void orthonormal(double U[3][M], const unit *u)
{
    size_t i, k, l, twice;
    for (i = 0; i < M; i++) {
        U[0][i] = 1;
        U[1][i] = u->x_hat[i];
        U[2][i] = u->dy[i];
    }
    for (k = 0; k < 3; k++)
        for (twice = 0; twice < 2; twice++) {
            double size;
            for (l = 0; l < k; l++) {
                const double part = dot(U[k], U[l], M);
                for (i = 0; i < M; i++) U[k][i] -= part * U[l][i];
            }
            size = sqrt(dot(U[k], U[k], M));
            for (i = 0; i < M; i++) U[k][i] /= size;
        }
}

typedef struct theorem44 {
    double error;      /* of the corrected equality                        */
    int holds, square; /* as printed: with its g² read as g, and as g²     */
} theorem44;

static theorem44 check_44(const unit *u, double lambda)
{
    const double l2 = lambda * lambda, mean = u->dy_sum / M;
    double U[3][M], with = 0, without = 0, rest;
    theorem44 t;
    size_t k;
    orthonormal(U, u);
    for (k = 0; k < 3; k++) {
        with += l2 * pow(dot(U[k], u->dx, M), 2); /* |X'dx|² for X = λU */
        without += l2 * pow(dot(U[k], u->dy, M), 2);
    }
    rest = without - l2 * M * mean * mean - l2 * u->dy_xhat * u->dy_xhat / M; /* γ = σ */
    t.error = relative(with, rest, without);
    rest = M * mean * mean + l2 * u->dy_xhat * u->dy_xhat;
    t.holds = with <= without - rest;
    t.square = with <= without * without - rest;
    return t;
}

/* |X'dx|² / |X'dy|² with the layer's own inputs: what the weights feel. */
static double weights_keep(const layer_view *v, const unit *u)
{
    double with[WIDTH] = {0}, without[WIDTH] = {0};
    size_t i, k;
    for (i = 0; i < M; i++)
        for (k = 0; k < WIDTH; k++) {
            with[k] += v->in[i * WIDTH + k] * u->dx[i];
            without[k] += v->in[i * WIDTH + k] * u->dy[i];
        }
    return dot(with, with, WIDTH) / dot(without, without, WIDTH);
}

/* The share of |X'dy|² that the mean of dy makes: X'1 is long, since ReLU's outputs have a mean. */
static double weights_mean(const layer_view *v, const unit *u)
{
    double of_mean[WIDTH] = {0}, all[WIDTH] = {0};
    size_t i, k;
    for (i = 0; i < M; i++)
        for (k = 0; k < WIDTH; k++) {
            of_mean[k] += v->in[i * WIDTH + k] * u->dy_sum / M;
            all[k] += v->in[i * WIDTH + k] * u->dy[i];
        }
    return dot(of_mean, of_mean, WIDTH) / dot(all, all, WIDTH);
}

typedef struct exactness { /* largest differences over units; how many there are, and obey 4.4 */
    double of41, of42, of44, units, printed, printed_square;
} exactness;

/* Everything that is recorded of one unit; `when` goes into the names of the series. */
static void record_unit(lab_run *r, layer_view *v, size_t j, const unit *u, double lambda,
                        char when, exactness *e)
{
    const double mean_part = u->dy_sum * u->dy_sum / M / u->dy2;
    const double x_part = u->dy_xhat * u->dy_xhat / M / u->dy2;
    const double with = curvature(&v->normed, v, j, u->dx, u->sd);
    const double form = curvature(&v->plain, v, j, u->dx, u->sd);
    const double without = curvature(&v->plain, v, j, u->dy, u->sd);
    const double second = u->dy_xhat / M / u->sd * u->dx2;
    const theorem44 t = check_44(u, lambda);
    const char *const name[7] = {"keep",        "mean_part", "x_part",      "curve",
                                 "curve_plain", "weights",   "weights_mean"};
    const double value[7] = {u->dx2 / u->dy2,   mean_part,        x_part,
                             with / u->dx2,     without / u->dy2, weights_keep(v, u),
                             weights_mean(v, u)};
    size_t i;
    for (i = 0; i < 7; i++) lab_record_as(r, (double)j, value[i], "%s_%c", name[i], when);
    e->of41 = fmax(e->of41, relative(u->dx2, u->dy2 * (1 - mean_part - x_part), u->dy2));
    e->of42 = fmax(e->of42, relative(with, form - second, fabs(form) + fabs(second)));
    e->of44 = fmax(e->of44, t.error);
    e->units++;
    e->printed += t.holds;
    e->printed_square += t.square;
}

static void record_exactness(lab_run *r, const exactness *e, char when)
{
    const char *const name[6] = {"error41", "error42", "error44", "units", "printed", "printed2"};
    const double value[6] = {e->of41, e->of42, e->of44, e->units, e->printed, e->printed_square};
    size_t i;
    for (i = 0; i < 6; i++) lab_record_as(r, 0, value[i], "%s_%c", name[i], when);
}

/* Lemma 4.5 for two vectors; the relative distance of its two sides. */
static double lemma_45(const double *start, const double *minimum, size_t n, double *gain)
{
    const double k = dot(minimum, start, n) / dot(minimum, minimum, n);
    const double m2 = dot(minimum, minimum, n), cross = dot(minimum, start, n);
    double near = 0, far = 0;
    size_t i;
    for (i = 0; i < n; i++) {
        near += pow(start[i] - k * minimum[i], 2);
        far += pow(start[i] - minimum[i], 2);
    }
    if (gain) *gain = sqrt(near / far);
    return relative(near, far - pow(m2 - cross, 2) / m2, far);
}

static void record_lemma(lab_run *r)
{
    double a[WIDTH], b[WIDTH], worst = 0;
    nrm_rng rng;
    size_t i, k;
    nrm_rng_seed(&rng, r->seed, TRAINING_STREAM_DATA);
    for (k = 0; k < 100; k++) {
        for (i = 0; i < WIDTH; i++) a[i] = draw_normal(&rng);
        for (i = 0; i < WIDTH; i++) b[i] = draw_normal(&rng) + a[i];
        worst = fmax(worst, lemma_45(a, b, WIDTH, NULL));
    }
    lab_record(r, "error45", 0, worst);
}

/* Lemma 4.5 for the layer's own weights: from the start to where training has led. */
static void record_distance(lab_run *r, const nrm_mlp *net, const double *start)
{
    size_t i, j;
    for (j = 0; j < WIDTH; j++) {
        double a[WIDTH], b[WIDTH], gain;
        for (i = 0; i < WIDTH; i++) {
            a[i] = start[i * WIDTH + j];
            b[i] = net->state[LAYER].W[i * WIDTH + j];
        }
        if (dot(a, b, WIDTH) <= 0) continue;
        (void)lemma_45(a, b, WIDTH, &gain);
        if (isnan(gain)) continue; /* the unit has not moved */
        lab_record(r, "nearer", (double)j, gain);
    }
}

static int record_theorems(lab_run *r, nrm_mlp *net, const double *x, const int *labels, char when)
{
    layer_view *v = (layer_view *)calloc(1, sizeof *v);
    double loss = 0, plain = 0, off = 0, size = 0, lambda, alike = 0;
    exactness e = {0, 0, 0, 0, 0, 0};
    size_t i, j;
    int failed = !v || nrm_mlp_gradient(net, NULL, x, labels, M, NRM_TRAIN) != NRM_OK;
    if (!failed) {
        memcpy(v->x, net->state[LAYER].linear_out, sizeof v->x);
        memcpy(v->in, net->state[LAYER - 1].out, sizeof v->in);
        memcpy(v->labels, labels, sizeof v->labels);
        failed = tail_make(&v->plain, net, NRM_NO_NORM) ||
                 tail_make(&v->normed, net, NRM_BATCH_NORM) || undo_norm(v) ||
                 tail_gradient(&v->plain, v, &plain) != NRM_OK ||
                 tail_gradient(&v->normed, v, &loss) != NRM_OK;
    }
    if (failed) return -1;
    memcpy(v->dx, v->normed.dx, sizeof v->dx);
    memcpy(v->dy, v->normed.dy, sizeof v->dy);
    for (i = 0; i < M * WIDTH; i++) {
        off = fmax(off, fabs(v->normed.net->state[0].norm_out[i] - v->x[i]));
        size = fmax(size, fabs(v->x[i]));
    }
    lab_record_as(r, 0, fmax(off / size, fabs(loss - plain) / plain), "error43_%c", when);
    lambda = largest_singular(v->in);
    for (j = 0; j < WIDTH; j++) {
        const unit u = unit_of(v, j);
        if (!(u.dy2 > 0)) continue; /* a unit that no example of the batch passes through */
        record_unit(r, v, j, &u, lambda, when, &e);
        alike += u.dy_xhat > 0;
    }
    record_exactness(r, &e, when);
    lab_record_as(r, 0, alike / e.units, "alike_%c", when); /* the sign theorem 4.2 asks for */
    free(v->plain.block);
    free(v->normed.block);
    free(v);
    return 0;
}

/* ---- training -------------------------------------------------------------------------------- */

typedef struct trial {
    nrm_mlp *net;
    void *block;
    training_order order;
    double x[M * INPUTS]; /* a batch of its own for the theorems: the last 128 images */
    int labels[M];
} trial;

static int trial_make(trial *t, const lab_run *r, int norm)
{
    const size_t from = train_set.n - M;
    t->net = make_network(norm, r->seed, &t->block);
    if (!t->net || training_order_start(&t->order, train_set.n, M, INPUTS, r->seed)) return -1;
    memcpy(t->x, train_set.x + from * INPUTS, sizeof t->x);
    memcpy(t->labels, train_set.labels + from, sizeof t->labels);
    return 0;
}

static size_t steps_of(const lab_run *r)
{
    return r->quick ? 15 : EPOCHS * (train_set.n / M);
}

static void record_accuracy(lab_run *r, trial *t)
{
    const size_t n = r->quick ? 500 : r->data->test_n;
    training_set test;
    double accuracy;
    if (training_set_make(&test, r->data->test_images, r->data->test_labels, n, INPUTS,
                          DATASET_STD))
        return;
    if (nrm_mlp_eval(t->net, NULL, &accuracy, test.x, test.labels, n) == NRM_OK)
        lab_record(r, "accuracy", 0, accuracy);
    training_set_free(&test);
}

static int run_none(lab_run *r, trial *t)
{
    static double start[WIDTH * WIDTH];
    const size_t steps = steps_of(r);
    size_t step;
    memcpy(start, t->net->state[LAYER].W, sizeof start);
    record_lemma(r);
    if (record_theorems(r, t->net, t->x, t->labels, 'a')) return -1;
    for (step = 0; step < steps; step++) {
        training_go_on(&t->order, &train_set, M); /* whole batches: M and the last norm stay */
        if (nrm_mlp_train_step(t->net, NULL, t->order.x, t->order.labels, M) != NRM_OK) return -1;
        lab_progress(r, 0.3 + 0.4 * (double)step / (double)steps);
    }
    record_distance(r, t->net, start);
    record_accuracy(r, t);
    return record_theorems(r, t->net, t->x, t->labels, 'b');
}

/* Of each hidden layer: mean over its units of |w|², and of η/|w|². */
static void record_lengths(lab_run *r, const nrm_mlp *net, size_t step)
{
    size_t i, j, l;
    for (l = 0; l < HIDDEN; l++) {
        const nrm_mlp_state *s = &net->state[l];
        double length = 0, rate = 0;
        for (j = 0; j < WIDTH; j++) {
            double w2 = 0;
            for (i = 0; i < s->in; i++) w2 += s->W[i * WIDTH + j] * s->W[i * WIDTH + j];
            length += w2 / WIDTH;
            rate += RATE / w2 / WIDTH;
        }
        lab_record_as(r, (double)step, length, "length%u", (unsigned)l + 1);
        lab_record_as(r, (double)step, rate, "rate%u", (unsigned)l + 1);
    }
}

/* The largest |cosine| of a unit's weights and their gradient, all hidden layers. */
static double largest_cosine(const nrm_mlp *net)
{
    double most = 0;
    size_t i, j, l;
    for (l = 0; l < HIDDEN; l++) {
        const nrm_mlp_state *s = &net->state[l];
        for (j = 0; j < WIDTH; j++) {
            double ww = 0, wg = 0, gg = 0;
            for (i = 0; i < s->in; i++) {
                const double w = s->W[i * WIDTH + j], g = s->dW[i * WIDTH + j];
                ww += w * w;
                wg += w * g;
                gg += g * g;
            }
            if (gg > 0) most = fmax(most, fabs(wg) / sqrt(ww * gg));
        }
    }
    return most;
}

/* Twice the weights of layer LAYER: the same loss, and half their gradient. */
static double check_doubling(trial *t)
{
    const nrm_mlp_state *s = &t->net->state[LAYER];
    static double g[WIDTH * WIDTH];
    double before = 0, after = 0, off = 0;
    size_t i;
    (void)nrm_mlp_gradient(t->net, &before, t->x, t->labels, M, NRM_TRAIN);
    memcpy(g, s->dW, sizeof g);
    for (i = 0; i < WIDTH * WIDTH; i++) s->W[i] *= 2;
    (void)nrm_mlp_gradient(t->net, &after, t->x, t->labels, M, NRM_TRAIN);
    for (i = 0; i < WIDTH * WIDTH; i++) off = fmax(off, fabs(2 * s->dW[i] - g[i]));
    for (i = 0; i < WIDTH * WIDTH; i++) s->W[i] /= 2;
    return fmax(off / sqrt(dot(g, g, WIDTH * WIDTH)), fabs(after - before) / before);
}

static int run_batch(lab_run *r, trial *t)
{
    const size_t steps = steps_of(r);
    double grown[HIDDEN], off = 0;
    size_t l, step;
    for (l = 0; l < HIDDEN; l++) {
        const nrm_mlp_state *s = &t->net->state[l];
        grown[l] = dot(s->W, s->W, s->in * WIDTH) / WIDTH;
    }
    record_lengths(r, t->net, 0);
    for (step = 1; step <= steps; step++) {
        training_go_on(&t->order, &train_set, M); /* whole batches: M and the last norm stay */
        if (nrm_mlp_train_step(t->net, NULL, t->order.x, t->order.labels, M) != NRM_OK) return -1;
        for (l = 0; l < HIDDEN; l++) {
            const nrm_mlp_state *s = &t->net->state[l];
            grown[l] += RATE * RATE * dot(s->dW, s->dW, s->in * WIDTH) / WIDTH;
        }
        if (step % 104 == 0 || step == steps) record_lengths(r, t->net, step);
        lab_progress(r, (double)step / (double)steps);
    }
    for (l = 0; l < HIDDEN; l++) { /* here, since tables keep seven digits */
        const nrm_mlp_state *s = &t->net->state[l];
        off = fmax(off, fabs(dot(s->W, s->W, s->in * WIDTH) / WIDTH / grown[l] - 1));
    }
    lab_record(r, "sum_off", 0, off);
    (void)nrm_mlp_gradient(t->net, NULL, t->x, t->labels, M, NRM_TRAIN);
    lab_record(r, "cosine", 0, largest_cosine(t->net));
    lab_record(r, "doubling", 0, check_doubling(t));
    record_accuracy(r, t);
    return 0;
}

/* ---- batch norm as other weights ------------------------------------------------------------- */

enum { ROWS = 200, COLS = 8 };

/* The largest distance of BN(Xw) or WN(Xw) and γ·X·w/√(w'Sw), with S the covariance of X, the mean
   of its squares, or 1. */
typedef struct reparametrized {
    double centred, uncentred, weight, gradient;
} reparametrized;

static void center(double *X)
{
    size_t i, j;
    for (j = 0; j < COLS; j++) {
        double mean = 0;
        for (i = 0; i < ROWS; i++) mean += X[i * COLS + j] / ROWS;
        for (i = 0; i < ROWS; i++) X[i * COLS + j] -= mean;
    }
}

/* S w, with S the mean of xx'. */
static void times_S(double *out, const double *X, const double *w)
{
    size_t i, j;
    for (j = 0; j < COLS; j++) out[j] = 0;
    for (i = 0; i < ROWS; i++) {
        const double z = dot(X + i * COLS, w, COLS);
        for (j = 0; j < COLS; j++) out[j] += X[i * COLS + j] * z / ROWS;
    }
}

/* Batch norm of Xw against X times the other weights; if wanted, also the gradients by w. */
static double compare_weights(const double *X, const double *w, double gamma, const double *dy,
                              double *gradient)
{
    double z[ROWS], y[ROWS], dz[ROWS], Sw[COLS], mean, rstd, size, off = 0, g_w = 0, big = 0;
    double g[COLS] = {0}, chained[COLS] = {0};
    size_t i, j;
    for (i = 0; i < ROWS; i++) z[i] = dot(X + i * COLS, w, COLS);
    (void)nrm_batchnorm_forward(y, &mean, &rstd, NULL, z, &gamma, NULL, NRM_TRAIN, NO_EPSILON, ROWS,
                                1, 1);
    times_S(Sw, X, w);
    size = sqrt(dot(w, Sw, COLS));
    for (i = 0; i < ROWS; i++) off = fmax(off, fabs(y[i] - gamma * z[i] / size));
    if (!gradient) return off;
    (void)nrm_batchnorm_backward(dz, NULL, NULL, dy, z, &mean, &rstd, &gamma, NRM_TRAIN, ROWS, 1,
                                 1);
    for (i = 0; i < ROWS; i++)
        for (j = 0; j < COLS; j++) {
            chained[j] += X[i * COLS + j] * dz[i];
            g[j] += X[i * COLS + j] * dy[i]; /* by the other weights */
        }
    g_w = dot(g, w, COLS);
    for (*gradient = 0, j = 0; j < COLS; j++) {
        const double d = gamma / size * (g[j] - g_w * Sw[j] / (size * size));
        *gradient = fmax(*gradient, fabs(d - chained[j]));
        big = fmax(big, fabs(chained[j]));
    }
    *gradient /= big;
    return off;
}

static reparametrized compare_all(uint64_t seed)
{
    static double X[ROWS * COLS];
    double w[COLS], W[COLS], dy[ROWS], gamma = 1.7, norm, length;
    reparametrized c = {0, 0, 0, 0};
    nrm_rng rng;
    size_t i;
    nrm_rng_seed(&rng, seed, TRAINING_STREAM_DATA);
    for (i = 0; i < ROWS * COLS; i++) X[i] = 1 + draw_normal(&rng);
    for (i = 0; i < COLS; i++) w[i] = draw_normal(&rng);
    for (i = 0; i < ROWS; i++) dy[i] = draw_normal(&rng);
    c.uncentred = compare_weights(X, w, gamma, dy, NULL);
    center(X);
    c.centred = compare_weights(X, w, gamma, dy, &c.gradient);
    (void)nrm_weightnorm_forward(W, &norm, w, &gamma, COLS, 1);
    length = sqrt(dot(w, w, COLS)); /* S = 1 */
    for (i = 0; i < COLS; i++) c.weight = fmax(c.weight, fabs(W[i] - gamma * w[i] / length));
    return c;
}

/* ---- least squares: f(w) = ½·w'Sw - u'w ------------------------------------------------------ */

enum { DIM = 20, TOY_STEPS = 2000, CONDITIONS = 3, METHODS = 4 };
enum { GD, GDNP, BN_SMALL, BN_LARGE };
static const double condition[CONDITIONS] = {10, 100, 1000};
static const char *const method[METHODS] = {"gd", "gdnp", "bn01", "bn1"};

typedef struct toy {
    double S[DIM][DIM], u[DIM], best[DIM]; /* eigenvalues of S from 1/condition to 1 */
    double smallest;
} toy;

static void toy_times(double *out, const toy *t, const double *w)
{
    size_t i;
    for (i = 0; i < DIM; i++) out[i] = dot(t->S[i], w, DIM);
}

/* A random orthonormal basis, eigenvalues in even ratios, and the minimum best = S⁻¹u. */
static void toy_make(toy *t, double kappa, uint64_t seed)
{
    double Q[DIM][DIM];
    nrm_rng rng;
    size_t i, j, k;
    nrm_rng_seed(&rng, seed, TRAINING_STREAM_DATA + 1);
    for (i = 0; i < DIM; i++)
        for (j = 0; j < DIM; j++) Q[i][j] = draw_normal(&rng);
    for (i = 0; i < DIM; i++) {
        double size;
        for (k = 0; k < 2 * i; k++) { /* twice, for the rounding of the first time */
            const double part = dot(Q[i], Q[k % i], DIM);
            for (j = 0; j < DIM; j++) Q[i][j] -= part * Q[k % i][j];
        }
        size = sqrt(dot(Q[i], Q[i], DIM));
        for (j = 0; j < DIM; j++) Q[i][j] /= size;
    }
    memset(t, 0, sizeof *t);
    t->smallest = 1 / kappa;
    for (i = 0; i < DIM; i++) t->u[i] = draw_normal(&rng);
    for (k = 0; k < DIM; k++) {
        const double value = pow(kappa, -(double)k / (DIM - 1)), part = dot(Q[k], t->u, DIM);
        for (i = 0; i < DIM; i++) t->best[i] += part / value * Q[k][i];
        for (i = 0; i < DIM; i++)
            for (j = 0; j < DIM; j++) t->S[i][j] += value * Q[k][i] * Q[k][j];
    }
}

/* f(w) - f(best), without cancellation. */
static double toy_gap(const toy *t, const double *w)
{
    double d[DIM], Sd[DIM];
    size_t i;
    for (i = 0; i < DIM; i++) d[i] = w[i] - t->best[i];
    toy_times(Sd, t, d);
    return 0.5 * dot(d, Sd, DIM);
}

/* The weights γ·w/|w|_S, with the best γ for this direction if `gamma` is null. */
static double toy_weights(double *out, const toy *t, const double *w, const double *gamma)
{
    double Sw[DIM], size, factor;
    size_t i;
    toy_times(Sw, t, w);
    size = sqrt(dot(w, Sw, DIM));
    factor = (gamma ? *gamma : dot(t->u, w, DIM) / size) / size;
    for (i = 0; i < DIM; i++) out[i] = factor * w[i];
    return factor * size;
}

/* A step down f by gradient descent, or down ρ(w) = -(u'w)²/(w'Sw) with the step of GDNP, or down
   f(γ·w/|w|_S) in γ and w. The largest eigenvalue of S is 1. */
static void toy_step(const toy *t, int how, double *w, double *gamma)
{
    double Sw[DIM], g[DIM], size2, uw, rate;
    size_t i;
    toy_times(Sw, t, w);
    if (how == GD) {
        for (i = 0; i < DIM; i++) w[i] -= Sw[i] - t->u[i];
        return;
    }
    size2 = dot(w, Sw, DIM);
    uw = dot(t->u, w, DIM);
    if (how == GDNP) {
        const double rho = -uw * uw / size2;
        for (i = 0; i < DIM; i++) g[i] = -2 * (uw * t->u[i] + rho * Sw[i]) / size2;
        rate = size2 / (2 * fabs(rho));
        for (i = 0; i < DIM; i++) w[i] -= rate * g[i];
        return;
    }
    rate = how == BN_SMALL ? 0.1 : 1;
    {
        double hat[DIM], d[DIM], along, kept = *gamma;
        for (i = 0; i < DIM; i++) hat[i] = kept * w[i] / sqrt(size2);
        toy_times(d, t, hat);
        for (i = 0; i < DIM; i++) d[i] -= t->u[i]; /* gradient by the weights that are used */
        along = dot(d, w, DIM);
        *gamma -= rate * along / sqrt(size2);
        for (i = 0; i < DIM; i++)
            w[i] -= rate * kept / sqrt(size2) * (d[i] - along * Sw[i] / size2);
    }
}

static int toy_recorded(size_t step)
{
    return step <= 5 || step == 10 || step == 20 || (step <= 200 && step % 25 == 0) ||
           step % 100 == 0;
}

static void run_condition(lab_run *r, double kappa, size_t steps)
{
    toy t;
    double start[DIM], used[DIM], w[METHODS][DIM], gamma[METHODS], gap[METHODS];
    double first = 1, bound = 1;
    size_t step, i, m, broken = 0, behind = 0;
    nrm_rng rng;
    toy_make(&t, kappa, r->seed);
    nrm_rng_seed(&rng, r->seed, TRAINING_STREAM_DATA + 2);
    for (i = 0; i < DIM; i++) start[i] = draw_normal(&rng);
    for (m = 0; m < METHODS; m++) { /* all from the same weights: the best of this direction */
        gamma[m] = toy_weights(used, &t, start, NULL);
        memcpy(w[m], m == GD ? used : start, sizeof start);
    }
    for (step = 0; step <= steps; step++) {
        for (m = 0; m < METHODS; m++) {
            if (m != GD) (void)toy_weights(used, &t, w[m], m == GDNP ? NULL : &gamma[m]);
            gap[m] = toy_gap(&t, m == GD ? w[m] : used);
            if (step == 0) first = gap[m];
            gap[m] /= first;
            if (toy_recorded(step))
                lab_record_as(r, (double)step, gap[m], "%s_%.0f", method[m], kappa);
            toy_step(&t, (int)m, w[m], &gamma[m]);
        }
        if (toy_recorded(step)) lab_record_as(r, (double)step, bound, "bound_%.0f", kappa);
        broken += gap[GDNP] > bound + 1e-12;
        behind += step > 0 && gap[GD] > 1e-12 && gap[GDNP] >= gap[GD];
        bound *= (1 - t.smallest) * (1 - t.smallest);
    }
    lab_record(r, "broken", kappa, (double)broken);
    lab_record(r, "behind", kappa, (double)behind);
    for (m = 0; m < METHODS; m++)
        lab_record_as(r, kappa, log10(fmax(gap[m], 1e-30)), "end_%s", method[m]);
}

static int run_toy(lab_run *r)
{
    const reparametrized c = compare_all(r->seed);
    size_t k;
    lab_record(r, "centred", 0, c.centred);
    lab_record(r, "uncentred", 0, c.uncentred);
    lab_record(r, "weight", 0, c.weight);
    lab_record(r, "gradient", 0, c.gradient);
    for (k = 0; k < CONDITIONS; k++) run_condition(r, condition[k], r->quick ? 200 : TOY_STEPS);
    return 0;
}

static int run(lab_run *r)
{
    trial *t;
    int failed;
    if (r->arm == TOY) return run_toy(r);
    t = (trial *)calloc(1, sizeof *t);
    if (!t || trial_make(t, r, r->arm == BATCH ? NRM_BATCH_NORM : NRM_NO_NORM)) {
        fprintf(stderr, "out of memory\n");
        return -1;
    }
    failed = r->arm == BATCH ? run_batch(r, t) : run_none(r, t);
    training_order_free(&t->order);
    free(t->block);
    free(t);
    return failed;
}

/* ---- claims ---------------------------------------------------------------------------------- */

enum {
    LENGTH,
    LARGE_TERMS,
    CURVATURE,
    LESS_CURVED,
    UNDONE,
    WORST_CASE,
    PRINTED,
    NEARER,
    OTHER_WEIGHTS,
    NOT_CENTRED,
    RIGHT_ANGLE,
    BOUND,
    AHEAD,
    CONSTANT_RATE,
    GROWTH,
    DECAY,
    CLAIMS
};

static const lab_claim claims[CLAIMS] = {
    {"23a", "Batch norm takes from the gradient its mean and its part along the output, no more",
     "Santurkar et al. 2018, theorem 4.1; a derivation of batch norm's backward pass",
     "stated with ≤, proved",
     "exact: the two sides agree to 1e-9 of the gradient's squared length, all units",
     "trial run (random layer): 6.5e-10", LAB_IDENTITY, LAB_SETTING},
    {"23b", "What is taken is a large part of the gradient", "Santurkar et al. 2018, section 4.1",
     "argued, no number",
     "trained network: more than 10 % of the squared length in the median unit (a random direction "
     "would lose 2/128 = 1.6 %), seed by seed",
     "trial run (1 seed, two epochs): 1 % after training, 2 % before", LAB_TRAINING, LAB_NEWS},
    {"23c", "The curvature along the gradient is that of the plain layer less a known term",
     "Santurkar et al. 2018, theorem 4.2", "stated with ≤, proved",
     "exact: the two sides agree to 1e-4 of their terms in all units",
     "trial run (random layer): 1.1e-7", LAB_IDENTITY, LAB_SETTING},
    {"23d", "Batch norm lowers the curvature along the gradient",
     "Santurkar et al. 2018, theorem 4.2; Chinese notes on batch norm",
     "if two signs are right; said of networks in general",
     "trained network: curvature per squared length along the gradient lower with batch norm in "
     "more than half of the units, seed by seed",
     "trial run (1 seed, two epochs): lower in 56 % of the units, 52 % before training",
     LAB_TRAINING, LAB_SETTING},
    {"23e", "With γ = σ and β = μ batch norm changes no output, yet it changes the gradient",
     "Santurkar et al. 2018, observation 4.3", "proved",
     "exact: outputs and loss equal to 1e-12, and in the median unit more than 1e-6 of the squared "
     "gradient lost, which rounding cannot do",
     "trial run (1 seed, two epochs): equal to 2e-16, 99 % left", LAB_IDENTITY, LAB_SETTING},
    {"23f", "Theorem 4.4 holds with the lost λ² and 1/m put back",
     "Santurkar et al. 2018, eq. 17 of the appendix", "proved",
     "exact: equality to 1e-9 in all units, for the worst X, λ that of the layer's inputs",
     "trial run (1 seed, two epochs): 3e-15", LAB_IDENTITY, LAB_SETTING},
    {"23g", "Theorem 4.4 holds as printed", "Santurkar et al. 2018, theorem 4.4", "stated with ≤",
     "the inequality holds in all units, in one of two readings of its g² (as g, or as g²); else "
     "not reproduced",
     "trial runs: a random layer violates it, 136 against -317; 1 seed, two epochs: holds in 4 of "
     "98 units",
     LAB_IDENTITY, LAB_ALGEBRA},
    {"23h",
     "If every multiple of W* is as good as W*, the nearest of them is nearer to the start by a "
     "known amount",
     "Santurkar et al. 2018, lemma 4.5", "proved",
     "exact: the two sides agree to 1e-12 for 100 random pairs of vectors",
     "trial run (1 seed, two epochs): 2e-15", LAB_IDENTITY, LAB_SETTING},
    {"23i",
     "Batch norm is a layer with other weights, γ·w/√(w'Sw), and weight norm the same with S = 1",
     "a derivation of batch norm's backward pass, after Kohler et al. 2018",
     "derived, \"assuming x is zero-mean\"",
     "exact: outputs and gradients equal to 1e-12, inputs centred", "trial run: 1e-14",
     LAB_IDENTITY, LAB_SETTING},
    {"23j", "This also holds with inputs that are not centred, S being the mean of xx'",
     "ours, to see whether the assumption is needed", "assumed to be centred",
     "outputs equal to 1e-12", "trial run: wrong by 0.99", LAB_IDENTITY, LAB_ALGEBRA},
    {"23k", "The gradient of weights before batch norm is at right angles to them",
     "Ba et al. 2016, section 5; Kohler et al. 2018", "follows from invariance",
     "exact: |cosine| below 1e-10 for every unit of the trained network",
     "trial run (1 seed, two epochs): 2e-16", LAB_IDENTITY, LAB_SETTING},
    {"23l", "Least squares: GDNP converges at least as fast as its bound", "Kohler et al. 2018",
     "linear; in our form (1 - μ/L)^{2t}",
     "exact: the bound holds at every step, at condition 10, 100 and 1000, all seeds",
     "trial runs: never violated", LAB_IDENTITY, LAB_SETTING},
    {"23m", "Least squares: GDNP is ahead of gradient descent with step 1/L at every step",
     "Kohler et al. 2018", "faster in theory",
     "smaller gap at every step as long as gradient descent has a relative gap above 1e-12, all "
     "conditions; decided seed by seed",
     "trial runs: condition 100, step 500: 3.7e-7 against 1.9e-5; 1000, step 1999: 5.6e-6 against "
     "1.1e-2",
     LAB_TRAINING, LAB_SETTING},
    {"23n", "Least squares: batch norm with a constant rate of 1 ends ahead of gradient descent",
     "ours, after Kohler et al. 2018", "no statement about constant rates",
     "smaller gap after 2000 steps at condition 1000",
     "trial runs: batch norm converged with the larger of the rates 0.1 and 1 only; 1 seed: "
     "10^-2.5 for all three",
     LAB_TRAINING, LAB_NEWS},
    {"23o", "Weights before batch norm can only grow, by η²|gradient|² a step",
     "Ba et al. 2016, section 5.2.2; Salimans and Kingma 2016", "derived",
     "exact: sum over all steps of training equal to the change of |w|² to 1e-9, six layers",
     "trial run (1 seed, two epochs): 7e-15", LAB_IDENTITY, LAB_SETTING},
    {"23p", "This growth lowers the effective learning rate η/|w|²",
     "Ba et al. 2016, section 5.2.2", "an implicit early stopping; no number",
     "lower at the end of training in each of the six hidden layers, by at least 10 %",
     "trial run (1 seed, two epochs): 0.93 to 0.99 of the start", LAB_TRAINING, LAB_NEWS}};

/* ---- judging --------------------------------------------------------------------------------- */

/* All values of a series of units, of all seeds; returns how many. */
static size_t gather(lab_report *r, const char *series, double *out, size_t most)
{
    size_t s, i, n = 0;
    for (s = 0; s < lab_seeds(r, NONE); s++) {
        const lab_series v = lab_get(r, NONE, s, series);
        for (i = 0; i < v.n && n < most; i++) out[n++] = v.y[i];
    }
    return n;
}

enum { MOST_UNITS = WIDTH * LAB_SEEDS_MAX };

static double largest(lab_report *r, const char *a, const char *b)
{
    static double v[MOST_UNITS];
    double most = 0;
    size_t k, i, n;
    for (k = 0; k < 2; k++) {
        n = gather(r, k ? b : a, v, MOST_UNITS);
        for (i = 0; i < n; i++) most = stats_larger(most, fabs(v[i]));
        if (n == 0) return DBL_MAX;
    }
    return most;
}

static double median_in(lab_report *r, size_t s, const char *series)
{
    const lab_series v = lab_get(r, NONE, s, series);
    double copy[WIDTH];
    if (v.n == 0 || v.n > WIDTH) return (double)NAN;
    memcpy(copy, v.y, v.n * sizeof *copy);
    return stats_median(copy, v.n);
}

static stats_summary medians(lab_report *r, const char *series)
{
    double v[LAB_SEEDS_MAX];
    size_t s;
    for (s = 0; s < lab_seeds(r, NONE); s++) v[s] = median_in(r, s, series);
    return stats_describe(v, lab_seeds(r, NONE));
}

static void judge_length(lab_report *r)
{
    const double off = largest(r, "error41_a", "error41_b");
    const stats_summary end = medians(r, "keep_b"), start = medians(r, "keep_a");
    const size_t n = lab_seeds(r, NONE);
    double kept[LAB_SEEDS_MAX];
    size_t s;
    for (s = 0; s < n; s++) kept[s] = median_in(r, s, "keep_b");
    lab_verdict(r, &claims[LENGTH], stats_holds(off < 1e-9), "an equality where z = y",
                "largest difference %.1e", off);
    lab_verdict(r, &claims[LARGE_TERMS], stats_judge_limit(kept, n, 0.9, -1),
                lab_format(r, "median unit; of the gradient of the weights %.0f %% are taken",
                           100 - 100 * medians(r, "weights_b").mean),
                "%.0f ± %.0f %% taken after training, %.0f ± %.0f %% before", 100 - 100 * end.mean,
                100 * end.sd, 100 - 100 * start.mean, 100 * start.sd);
}

/* The share of a seed's units that are less curved with batch norm. */
static double less_curved(lab_report *r, size_t s, const char *with, const char *without)
{
    const lab_series a = lab_get(r, NONE, s, with), b = lab_get(r, NONE, s, without);
    size_t i, less = 0;
    for (i = 0; i < a.n && i < b.n; i++) less += a.y[i] < b.y[i];
    return a.n ? (double)less / (double)a.n : (double)NAN;
}

static void judge_curvature(lab_report *r)
{
    const double off = largest(r, "error42_a", "error42_b");
    double end[LAB_SEEDS_MAX], start[LAB_SEEDS_MAX];
    const size_t n = lab_seeds(r, NONE);
    stats_summary e, b;
    size_t s;
    for (s = 0; s < n; s++) {
        end[s] = less_curved(r, s, "curve_b", "curve_plain_b");
        start[s] = less_curved(r, s, "curve_a", "curve_plain_a");
    }
    e = stats_describe(end, n);
    b = stats_describe(start, n);
    lab_verdict(r, &claims[CURVATURE], stats_holds(off < 1e-4), "by differences of gradients",
                "largest difference %.1e", off);
    lab_verdict(
        r, &claims[LESS_CURVED], stats_judge_limit(end, n, 0.5, +1),
        lab_format(r, "⟨dy·x̂⟩ > 0 in %.0f %% of the units", 100 * lab_mean(r, NONE, "alike_b", 0)),
        "lower in %.0f ± %.0f %% of the units after training, %.0f ± %.0f %% before", 100 * e.mean,
        100 * e.sd, 100 * b.mean, 100 * b.sd);
}

static void judge_worst_case(lab_report *r)
{
    const double off43 = largest(r, "error43_a", "error43_b"), kept = medians(r, "keep_b").mean;
    const double off44 = largest(r, "error44_a", "error44_b");
    double n = 0, first = 0, second = 0;
    size_t s;
    for (s = 0; s < lab_seeds(r, NONE); s++) {
        n += lab_at(r, NONE, s, "units_b", 0);
        first += lab_at(r, NONE, s, "printed_b", 0);
        second += lab_at(r, NONE, s, "printed2_b", 0);
    }
    lab_verdict(r, &claims[UNDONE], stats_holds(off43 < 1e-12 && kept < 1 - 1e-6), "",
                "outputs and loss to %.1e; %.1f %% of the squared gradient left", off43,
                100 * kept);
    lab_verdict(r, &claims[WORST_CASE], stats_holds(off44 < 1e-9), "", "largest difference %.1e",
                off44);
    lab_verdict(r, &claims[PRINTED],
                n > 0 ? stats_holds(first >= n || second >= n) : stats_unknown(), "",
                "broken in %.0f of %.0f units (g), in %.0f (g²)", n - first, n, n - second);
    lab_verdict(r, &claims[NEARER], stats_holds(largest(r, "error45", "error45") < 1e-12),
                lab_format(r,
                           "weights of layer 3: nearest point of the ray at %.2f of the distance",
                           medians(r, "nearer").mean),
                "largest difference %.1e", largest(r, "error45", "error45"));
}

static void judge_weights(lab_report *r)
{
    const double out = lab_summary(r, TOY, "centred", 0).max;
    const double g = lab_summary(r, TOY, "gradient", 0).max;
    const double weight = lab_summary(r, TOY, "weight", 0).max;
    const double off = lab_summary(r, TOY, "uncentred", 0).max;
    const double cosine = lab_summary(r, BATCH, "cosine", 0).max;
    lab_verdict(r, &claims[OTHER_WEIGHTS], stats_holds(out < 1e-12 && g < 1e-12 && weight < 1e-12),
                "", "outputs %.1e, gradients %.1e, weight norm %.1e", out, g, weight);
    lab_verdict(r, &claims[NOT_CENTRED], stats_holds(off < 1e-12),
                "BN(Xw) and γ·Xw/√(w'Sw), inputs of mean 1", "wrong by up to %.2f", off);
    lab_verdict(
        r, &claims[RIGHT_ANGLE], stats_holds(cosine < 1e-10),
        lab_format(r, "%d units in each seed; 21f has one layer of each norm", HIDDEN * WIDTH),
        "|cosine| at most %.1e", cosine);
}

static void judge_toy(lab_report *r)
{
    const size_t n = lab_seeds(r, TOY);
    double broken = 0, steps = 0;
    double behind[LAB_SEEDS_MAX];
    size_t k, s, met = 0;
    for (s = 0; s < n; s++) {
        behind[s] = 0;
        for (k = 0; k < CONDITIONS; k++) {
            broken += lab_at(r, TOY, s, "broken", condition[k]);
            behind[s] += lab_at(r, TOY, s, "behind", condition[k]);
        }
        met += behind[s] < 0.5;
        steps += behind[s];
    }
    lab_verdict(r, &claims[BOUND], stats_holds(n > 0 && broken < 0.5), "",
                "%.0f steps above the bound", broken);
    lab_verdict(r, &claims[AHEAD], stats_judge_limit(behind, n, 0.5, -1),
                lab_format(r, "behind at %.0f steps in all", steps),
                "ahead at every step in %u of %u seeds; condition 1000 ends at 10^%.1f against "
                "10^%.1f",
                (unsigned)met, (unsigned)n, lab_mean(r, TOY, "end_gdnp", 1000),
                lab_mean(r, TOY, "end_gd", 1000));
    {
        double a[LAB_SEEDS_MAX], b[LAB_SEEDS_MAX];
        const size_t count = lab_values(r, TOY, "end_bn1", 1000, a);
        (void)lab_values(r, TOY, "end_gd", 1000, b);
        lab_verdict(r, &claims[CONSTANT_RATE], stats_judge_pairs(a, b, count, -1, 1),
                    "logarithms of the gap", "10^%.1f against 10^%.1f; rate 0.1: 10^%.1f",
                    lab_mean(r, TOY, "end_bn1", 1000), lab_mean(r, TOY, "end_gd", 1000),
                    lab_mean(r, TOY, "end_bn01", 1000));
    }
}

static void judge_growth(lab_report *r)
{
    const size_t n = lab_seeds(r, BATCH);
    const double off = lab_summary(r, BATCH, "sum_off", 0).max;
    double least = DBL_MAX, most = 0, highest[LAB_SEEDS_MAX]; /* of the six layers */
    stats_finding found;
    size_t l, s;
    for (s = 0; s < n; s++) {
        highest[s] = 0;
        for (l = 0; l < HIDDEN; l++) {
            const char *name = lab_format(r, "rate%u", (unsigned)l + 1);
            const double ratio = lab_at(r, BATCH, s, name, LAB_LAST) / lab_at(r, BATCH, s, name, 0);
            least = fmin(least, ratio);
            highest[s] = stats_larger(highest[s], fabs(ratio));
        }
        most = stats_larger(most, highest[s]);
    }
    found = stats_judge_limit(highest, n, 1, -1);
    found.size_met = stats_reproduced(stats_judge_limit(highest, n, 0.9, -1));
    lab_verdict(r, &claims[GROWTH], stats_holds(off < 1e-9), "plain SGD, no weight decay",
                "largest difference %.1e", off);
    lab_verdict(r, &claims[DECAY], found, "the layer in which it falls least",
                "between %.2f and %.2f of what it was", least, most);
}

/* ---- figures --------------------------------------------------------------------------------- */

enum { BINS = 40 };

/* Density of these values between lo and hi; the legend says how many are outside. */
static void draw_density(lab_report *r, plot_panel *p, const double *v, size_t n, double lo,
                         double hi, const char *label, plot_style style)
{
    double edges[BINS + 1], density[BINS];
    size_t i, outside;
    for (i = 0; i <= BINS; i++) edges[i] = lo + (hi - lo) * (double)i / BINS;
    outside = stats_histogram(v, n, edges, BINS, density);
    if (outside)
        label = lab_format(r, "%s (%.0f %% outside)", label, 100 * (double)outside / (double)n);
    plot_hist(p, label, edges, density, BINS, style);
}

/* The same for a series over all units of all seeds. */
static void draw_hist(lab_report *r, plot_panel *p, const char *series, double lo, double hi,
                      const char *label, plot_style style)
{
    static double v[MOST_UNITS];
    draw_density(r, p, v, gather(r, series, v, MOST_UNITS), lo, hi, label, style);
}

/* The curvature with batch norm over that without. */
static void draw_ratio(lab_report *r, plot_panel *p, const char *with, const char *without,
                       const char *label, plot_style style)
{
    static double a[MOST_UNITS], b[MOST_UNITS];
    const size_t n = gather(r, with, a, MOST_UNITS), m = gather(r, without, b, MOST_UNITS);
    size_t i;
    for (i = 0; i < n && i < m; i++) a[i] /= b[i];
    draw_density(r, p, a, i, -1, 3, label, style);
}

static void draw_scatter(lab_report *r, plot_panel *p, const char *xs, const char *ys,
                         const char *label, plot_style style)
{
    static double x[MOST_UNITS], y[MOST_UNITS];
    const size_t n = gather(r, xs, x, MOST_UNITS), m = gather(r, ys, y, MOST_UNITS);
    style.size = 0.6;
    style.alpha = 0.8;
    plot_scatter(p, label, x, y, n < m ? n : m, style);
}

static plot_panel *panel(plot_figure *f, int row, int col, const char *heading, const char *x,
                         const char *y)
{
    plot_panel *p = plot_add(f, row, col, 1, 1);
    plot_heading(p, heading);
    plot_axis_x(p, x, PLOT_LINEAR);
    plot_axis_y(p, y, PLOT_LINEAR);
    return p;
}

static void draw_table(lab_report *r, plot_panel *p)
{
    const char *cells[18];
    cells[0] = "the two sides of";
    cells[1] = "apart by";
    cells[2] = "theorem 4.1";
    cells[3] = lab_format(r, "%.0e", largest(r, "error41_a", "error41_b"));
    cells[4] = "theorem 4.2";
    cells[5] = lab_format(r, "%.0e", largest(r, "error42_a", "error42_b"));
    cells[6] = "observation 4.3";
    cells[7] = lab_format(r, "%.0e", largest(r, "error43_a", "error43_b"));
    cells[8] = "theorem 4.4, corrected";
    cells[9] = lab_format(r, "%.0e", largest(r, "error44_a", "error44_b"));
    cells[10] = "lemma 4.5";
    cells[11] = lab_format(r, "%.0e", largest(r, "error45", "error45"));
    cells[12] = "BN(Xw) and γ·Xw/√(w'Sw)";
    cells[13] = lab_format(r, "%.0e", lab_summary(r, TOY, "centred", 0).max);
    cells[14] = "w at right angles to ∇_{w}L";
    cells[15] = lab_format(r, "%.0e", lab_summary(r, BATCH, "cosine", 0).max);
    cells[16] = "|w|² and its growth";
    cells[17] = lab_format(r, "%.0e", lab_summary(r, BATCH, "sum_off", 0).max);
    plot_heading(p, "Exact? The largest differences");
    plot_table(p, cells, 9, 2, "lr");
}

static int draw_theorems(lab_report *r)
{
    const plot_style first = plot_dashed(PLOT_GREY), last = plot_solid(PLOT_BLUE);
    plot_figure *f = lab_figure(
        r, "Batch norm takes 2 % of the gradient: the theorems hold, and say little here", 1600,
        1040);
    plot_panel *p = panel(f, 0, 0, "Left of the gradient, theorem 4.1", "|dx|² / |dy|²",
                          "density of the units");
    lab_subtitle(r, f,
                 "784-100x6-10, ReLU, six epochs of SGD 0.1, batch 128, layer 3; all units of all "
                 "seeds; in double",
                 lab_seeds(r, NONE));
    draw_hist(r, p, "keep_a", 0.8, 1, "start", first);
    draw_hist(r, p, "keep_b", 0.8, 1, "trained", last);
    plot_vline(p, 1 - 2.0 / M, "random direction", plot_thin(PLOT_INK));
    p = panel(f, 0, 1, "Taken from the gradient", "share of the mean", "share along the output");
    draw_scatter(r, p, "mean_part_a", "x_part_a", "start", plot_marked(PLOT_GREY, PLOT_RING));
    draw_scatter(r, p, "mean_part_b", "x_part_b", "trained", plot_marked(PLOT_BLUE, PLOT_CIRCLE));
    p = panel(f, 0, 2, "Left of the weights' gradient", "|X'dx|² / |X'dy|²",
              "density of the units");
    draw_hist(r, p, "weights_a", 0, 1.5, "start", first);
    draw_hist(r, p, "weights_b", 0, 1.5, "trained", last);
    p = panel(f, 1, 0, "Curvature along the gradient", "with / without batch norm",
              "density of the units");
    draw_ratio(r, p, "curve_a", "curve_plain_a", "start", first);
    draw_ratio(r, p, "curve_b", "curve_plain_b", "trained", last);
    plot_vline(p, 1, NULL, plot_thin(PLOT_INK));
    p = panel(f, 1, 1, "Distance of the ray, lemma 4.5", "relative to that of the weights",
              "density of the units");
    draw_hist(r, p, "nearer", 0.6, 1, "start to trained", last);
    draw_table(r, plot_add(f, 1, 2, 1, 1));
    return lab_save(r, f, NULL);
}

static void draw_toy(lab_report *r, plot_figure *f, size_t k)
{
    static const char *const label[METHODS] = {"gradient descent, 1/L", "GDNP",
                                               "batch norm, rate 0.1", "batch norm, rate 1"};
    const plot_style style[METHODS] = {lab_style("none"), plot_solid(PLOT_INK),
                                       plot_dotted(PLOT_BLUE), plot_solid(PLOT_BLUE)};
    plot_panel *p = plot_add(f, 0, k == 2, 1, 1);
    size_t m;
    plot_heading(p, lab_format(r, "Condition %.0f", condition[k]));
    plot_axis_x(p, "step", PLOT_LINEAR);
    plot_axis_y(p, "gap, start = 1", PLOT_LOG10);
    plot_range_x(p, 0, k == 0 ? 200 : TOY_STEPS);
    plot_range_y(p, k == 2 ? 1e-10 : 1e-16, k == 2 ? 10 : 100);
    plot_legend(p, k == 2 ? PLOT_LEGEND_BOTTOM_LEFT : PLOT_LEGEND_NONE);
    lab_plot_seeds(r, p, TOY, lab_format(r, "bound_%.0f", condition[k]), "GDNP, bound",
                   plot_thin(PLOT_INK));
    for (m = 0; m < METHODS; m++)
        lab_plot_seeds(r, p, TOY, lab_format(r, "%s_%.0f", method[m], condition[k]), label[m],
                       style[m]);
}

/* A series of layers relative to its start: mean, lowest and highest seed. */
static void draw_growth(lab_report *r, plot_figure *f, int col, const char *what,
                        const char *heading, const char *axis)
{
    enum { MOST = 400 };
    plot_panel *p = plot_add(f, 1, col, 1, 1);
    size_t i, l, s;
    plot_heading(p, heading);
    plot_axis_x(p, "step", PLOT_LINEAR);
    plot_axis_y(p, axis, PLOT_LINEAR);
    plot_legend(p, PLOT_LEGEND_DIRECT);
    for (l = 0; l < HIDDEN; l++) {
        double mean[MOST], low[MOST], high[MOST];
        const char *label = lab_format(r, "layer %u", (unsigned)l + 1);
        const plot_style style = plot_solid(lab_level(HIDDEN - 1 - l, HIDDEN));
        const char *name = lab_format(r, "%s%u", what, (unsigned)l + 1);
        const lab_series v = lab_get(r, BATCH, 0, name);
        for (i = 0; i < v.n && i < MOST; i++) {
            double ratio[LAB_SEEDS_MAX];
            stats_summary m;
            for (s = 0; s < lab_seeds(r, BATCH); s++)
                ratio[s] = lab_at(r, BATCH, s, name, v.x[i]) / lab_at(r, BATCH, s, name, 0);
            m = stats_describe(ratio, lab_seeds(r, BATCH));
            mean[i] = m.mean;
            low[i] = m.min;
            high[i] = m.max;
        }
        plot_band(p, label, v.x, low, high, i, style);
        plot_line(p, label, v.x, mean, i, style);
    }
    if (strcmp(what, "rate") == 0) plot_hline(p, 0.9, NULL, plot_thin(PLOT_INK));
}

static int draw_length(lab_report *r)
{
    plot_figure *f =
        lab_figure(r, "Length apart from direction helps; batch norm with a constant rate does not",
                   1600, 1160);
    size_t k;
    lab_subtitle(r, f,
                 "a, b: least squares in 20 dimensions, a line for each seed; c, d: 784-100x6-10, "
                 "ReLU, SGD 0.1; means, lowest and highest",
                 lab_seeds(r, BATCH));
    for (k = 0; k < CONDITIONS; k += 2) draw_toy(r, f, k); /* 100 looks like 10 */
    draw_growth(r, f, 0, "length", "Weights before batch norm grow", "|w|², start = 1");
    draw_growth(r, f, 1, "rate", "Effective learning rate η / |w|²", "start = 1");
    return lab_save(r, f, "length");
}

/* The step of GDNP is one of gradient descent with step 1/L from the weights that are used, after
   which their length is set to the best: hence its bound. The largest distance in 100 steps. */
static double check_gdnp(void)
{
    double w[DIM], used[DIM], next[DIM], other[DIM], most = 0;
    size_t i, k, step;
    for (k = 0; k < CONDITIONS; k++) {
        toy t;
        toy_make(&t, condition[k], 1);
        for (i = 0; i < DIM; i++) w[i] = 1 + (double)i;
        for (step = 0; step < 100; step++) {
            (void)toy_weights(used, &t, w, NULL);
            toy_step(&t, GDNP, w, NULL);
            (void)toy_weights(next, &t, w, NULL);
            toy_step(&t, GD, used, NULL);
            (void)toy_weights(other, &t, used, NULL);
            for (i = 0; i < DIM; i++)
                most = stats_larger(most, fabs((next[i] - other[i]) / sqrt(dot(next, next, DIM))));
        }
    }
    return most;
}

static int report(lab_report *r)
{
    const double twice = lab_summary(r, BATCH, "doubling", 0).max, same = check_gdnp();
    int failed;
    lab_check(r, twice < 1e-12, "Twice the weights before batch norm: same loss, half the gradient",
              "relative error at most %.1e", twice);
    lab_check(r, same < 1e-12,
              "GDNP is gradient descent with step 1/L and the best length each step",
              "weights differ by at most %.1e of their length", same);
    judge_length(r);
    judge_curvature(r);
    judge_worst_case(r);
    judge_weights(r);
    judge_toy(r);
    judge_growth(r);
    failed = draw_theorems(r);
    return failed ? failed : draw_length(r);
}

/* clang-format off */
static const lab_program program = {
    "23_theorems", NRM_VERSION,
    "Do the theorems about batch norm hold in a trained network, and are their terms large?",
    "784-100x6-10, ReLU, pixels standardized, Glorot uniform, SGD 0.1, batch 128, six epochs, "
    "layer 3; least squares in 20 dimensions; double precision", 2, LAB_USES_DATA, arms, ARMS,
    prepare, run, report};
/* clang-format on */
LAB_MAIN(program)
