/* 23_theorems: what is proved about batch norm, put to a trained network and to a toy (README.md).

   docs/08_smoothness.md derives the theorems of Santurkar et al. (2018), and finds equalities and a
   misprint. Batch norm is put behind a layer of a trained network with γ and β that undo it on this
   batch, so that the network computes the same as before, and the gradients are compared. ε of
   1e-300 vanishes beside any variance. */
#define NRM_DOUBLE
#include "lab/experiment.h"
#include "lab/draw.h"

#define dot training_dot

enum { NONE = 0, BATCH, TOY, CURVES, ARMS };

static const lab_arm arms[ARMS] = {
    {"none", "no norm", 13, 0},
    {"batch", "batch norm", 12, 0},
    {"toy", "least squares", 1, 200},
    {"toy_curves", "least squares", 1, 0}}; /* the first of them, to draw */

enum { INPUTS = 784, WIDTH = 100, HIDDEN = 6, CLASSES = 10, M = 128, LAYER = 2, EPOCHS = 6 };
#define NO_EPSILON 1e-300
#define RATE 0.1

LAB_SETS(train_set, test_set, quick ? 2000 : 0, quick ? 500 : 0, DATASET_STD);

static double relative(double a, double b, double size)
{
    return size > 0 ? fabs(a - b) / size : 0;
}

/* Takes from row k of a [][n] its parts along the rows before it, which have length 1. For the
   rounding of the first time it is done twice. */
static void take_parts(double *a, size_t k, size_t n)
{
    double *row = a + k * n;
    size_t l, i;
    for (l = 0; l < k; l++) {
        const double part = dot(row, a + l * n, n);
        for (i = 0; i < n; i++) row[i] -= part * a[l * n + i];
    }
}

/* Returns the length that it had. */
static double unit_length(double *a, size_t n)
{
    const double size = sqrt(dot(a, a, n));
    size_t i;
    for (i = 0; i < n; i++) a[i] /= size;
    return size;
}

/* ---- the network ----------------------------------------------------------------------------- */

static nrm_mlp_spec network(trainer *t)
{
    nrm_mlp_spec spec = training_plain(t->layer, HIDDEN, WIDTH, NRM_RELU,
                                       t->run->arm == BATCH ? NRM_BATCH_NORM : NRM_NO_NORM);
    spec.eps = NO_EPSILON;
    spec.lr = RATE;
    return spec;
}

/* The last batch of the training images. */
static const int *last_labels(void)
{
    return train_set.labels + train_set.n - M;
}

static void last_batch(nrm_mlp *net)
{
    (void)nrm_mlp_gradient(net, NULL, train_set.x + (train_set.n - M) * INPUTS, last_labels(), M,
                           NRM_TRAIN);
}

/* Of the last batch: the loss if y [M][WIDTH] goes into the activation of layer LAYER, and its
   gradient by y. */
static double rest_gradient(nrm_mlp *net, const double *y, double *dy)
{
    const size_t top = net->spec.layers - 1, units = M * (size_t)WIDTH;
    double loss = (double)NAN, *below = net->work[0];
    size_t l;
    for (l = LAYER; l < top; l++) {
        const nrm_mlp_state *s = &net->state[l], *next = s + 1;
        (void)nrm_activation_forward(s->act_out, y, s->shape.activation, units);
        (void)nrm_linear_forward(next->linear_out, s->act_out, next->W, next->b, M, WIDTH,
                                 next->shape.width);
        y = next->linear_out;
    }
    (void)nrm_cross_entropy_forward(&loss, net->prob, y, last_labels(), M, CLASSES);
    (void)nrm_cross_entropy_backward(dy, net->prob, last_labels(), M, CLASSES);
    while (l-- > LAYER) {
        const nrm_mlp_state *s = &net->state[l], *next = s + 1;
        (void)nrm_linear_backward(below, NULL, NULL, dy, NULL, next->W, M, WIDTH,
                                  next->shape.width);
        (void)nrm_activation_backward(dy, below, s->act_out, s->shape.activation, units);
    }
    return loss;
}

/* ---- theorems -------------------------------------------------------------------------------- */

typedef struct layer_view { /* all about layer LAYER on one batch */
    nrm_mlp *net;
    double *x;                                                  /* [M][WIDTH] its pre-activations */
    const double *in;                                           /* [M][WIDTH] its inputs          */
    double gamma[WIDTH], beta[WIDTH], mean[WIDTH], rstd[WIDTH]; /* of batch norm behind it */
    double y[M * WIDTH], dx[M * WIDTH], dy[M * WIDTH]; /* its output; gradients before, behind */
} layer_view;

/* Column j of a matrix [rows][WIDTH]. */
static void column(double *out, const double *a, size_t rows, size_t j)
{
    size_t i;
    for (i = 0; i < rows; i++) out[i] = a[i * WIDTH + j];
}

/* The loss, and its gradients dx at x and dy behind batch norm, or at x too if there is none. */
static double gradients(layer_view *v, int normed, double *dx, double *dy)
{
    double loss;
    if (normed)
        (void)nrm_batchnorm_forward(v->y, v->mean, v->rstd, NULL, v->x, v->gamma, v->beta,
                                    NRM_TRAIN, NO_EPSILON, M, WIDTH, 1);
    loss = rest_gradient(v->net, normed ? v->y : v->x, dy);
    if (normed)
        (void)nrm_batchnorm_backward(dx, NULL, NULL, dy, v->x, v->mean, v->rstd, v->gamma,
                                     NRM_TRAIN, M, WIDTH, 1);
    else
        memcpy(dx, dy, sizeof v->dx);
    return loss;
}

typedef struct unit { /* one unit: vectors over the batch, gradient's parts */
    double x_hat[M], dx[M], dy[M];
    double sd, dx2, dy2, dy_sum, dy_xhat;
} unit;

static unit unit_of(const layer_view *v, size_t j)
{
    unit u;
    size_t i;
    column(u.dx, v->dx, M, j);
    column(u.dy, v->dy, M, j);
    column(u.x_hat, v->x, M, j);
    for (i = 0; i < M; i++) u.x_hat[i] = (u.x_hat[i] - v->beta[j]) / v->gamma[j];
    u.sd = v->gamma[j];
    u.dx2 = dot(u.dx, u.dx, M);
    u.dy2 = dot(u.dy, u.dy, M);
    u.dy_xhat = dot(u.dy, u.x_hat, M);
    for (u.dy_sum = 0, i = 0; i < M; i++) u.dy_sum += u.dy[i];
    return u;
}

/* Σ d·(∂²L/∂x∂x)·d for a direction d of unit j, by the difference of two gradients. The step is so
   short that practically no ReLU changes sides. Leaves x as it was. */
static double curvature(layer_view *v, int normed, size_t j, const double *d, double sd)
{
    static double dx[M * WIDTH], dy[M * WIDTH];
    const double h = 1e-7 * sd / training_farthest(d, NULL, M);
    double kept[M], g[M], along[2];
    size_t i, side;
    column(kept, v->x, M, j);
    for (side = 0; side < 2; side++) {
        for (i = 0; i < M; i++) v->x[i * WIDTH + j] = kept[i] + (side ? -h : h) * d[i];
        (void)gradients(v, normed, dx, dy);
        column(g, dx, M, j);
        along[side] = dot(g, d, M);
    }
    for (i = 0; i < M; i++) v->x[i * WIDTH + j] = kept[i];
    return (along[0] - along[1]) / (2 * h);
}

/* The largest singular value of a, [M][WIDTH], by 300 rounds of the power method. */
static double largest_singular(const double *a)
{
    double p[WIDTH], q[M], size = 0;
    size_t j, round;
    for (j = 0; j < WIDTH; j++) p[j] = 1;
    for (round = 0; round < 300; round++) {
        (void)nrm_linear_forward(q, a, p, NULL, M, WIDTH, 1);
        memset(p, 0, sizeof p);
        (void)nrm_linear_backward(NULL, p, NULL, q, a, NULL, M, WIDTH, 1);
        size = unit_length(p, WIDTH);
    }
    return sqrt(size);
}

/* The largest differences over units; how many units there are, and obey theorem 4.4 as printed,
   with its g² read as g, and as g²; the shares with the sign that theorem 4.2 asks for, and with
   less curvature. */
enum { OF_41, OF_42, OF_44, UNITS, PRINTED, SQUARE, ALIKE, LOWER, FOUND };
static const char *const found_name[FOUND] = {"error41", "error42",  "error44", "units",
                                              "printed", "printed2", "alike",   "lower"};

/* The worst X of theorem 4.4 is λ times orthonormal columns whose span holds 1, x̂, dy. */
static void check_44(const unit *u, double lambda, double e[FOUND])
{
    const double l2 = lambda * lambda, mean = u->dy_sum / M;
    double U[3][M], with = 0, without = 0, rest;
    size_t i, k;
    for (i = 0; i < M; i++) U[0][i] = 1;
    memcpy(U[1], u->x_hat, sizeof U[1]);
    memcpy(U[2], u->dy, sizeof U[2]);
    for (k = 0; k < 3; k++) {
        for (i = 0; i < 2; i++) {
            take_parts(U[0], k, M);
            (void)unit_length(U[k], M);
        }
        with += l2 * pow(dot(U[k], u->dx, M), 2); /* |X'dx|² for X = λU */
        without += l2 * pow(dot(U[k], u->dy, M), 2);
    }
    rest = without - l2 * M * mean * mean - l2 * u->dy_xhat * u->dy_xhat / M; /* γ = σ */
    e[OF_44] = fmax(e[OF_44], relative(with, rest, without));
    rest = M * mean * mean + l2 * u->dy_xhat * u->dy_xhat;
    e[PRINTED] += with <= without - rest;
    e[SQUARE] += with <= without * without - rest;
}

/* |X'd|² with the layer's own inputs X: of the gradient d of a unit, what its weights feel. */
static double felt(const layer_view *v, const double *d)
{
    double by_weights[WIDTH] = {0};
    (void)nrm_linear_backward(NULL, by_weights, NULL, d, v->in, NULL, M, WIDTH, 1);
    return training_squares(by_weights, WIDTH);
}

/* Of one unit: |dx|² / |dy|² and the parts that are missing; the curvature with batch norm over
   that without; |X'dx|² / |X'dy|², and the share of |X'dy|² that the mean of dy makes: X'1 is long,
   since ReLU's outputs have a mean. */
enum { KEEP, MEAN_PART, X_PART, CURVE, WEIGHTS, DRAWN, WEIGHTS_MEAN = DRAWN, PARTS };
static const char *const part_name[PARTS] = {"keep",  "mean_part", "x_part",
                                             "curve", "weights",   "weights_mean"};

static void measure_unit(layer_view *v, size_t j, const unit *u, double lambda, double part[PARTS],
                         double e[FOUND])
{
    const double with = curvature(v, 1, j, u->dx, u->sd);
    const double form = curvature(v, 0, j, u->dx, u->sd);
    const double without = curvature(v, 0, j, u->dy, u->sd);
    const double second = u->dy_xhat / M / u->sd * u->dx2;
    double mean[M];
    size_t i;
    for (i = 0; i < M; i++) mean[i] = u->dy_sum / M;
    part[KEEP] = u->dx2 / u->dy2;
    part[MEAN_PART] = u->dy_sum * u->dy_sum / M / u->dy2;
    part[X_PART] = u->dy_xhat * u->dy_xhat / M / u->dy2;
    part[CURVE] = with / u->dx2 / (without / u->dy2);
    part[WEIGHTS] = felt(v, u->dx) / felt(v, u->dy);
    part[WEIGHTS_MEAN] = felt(v, mean) / felt(v, u->dy);
    e[OF_41] =
        fmax(e[OF_41], relative(u->dx2, u->dy2 * (1 - part[MEAN_PART] - part[X_PART]), u->dy2));
    e[OF_42] = fmax(e[OF_42], relative(with, form - second, fabs(form) + fabs(second)));
    check_44(u, lambda, e);
    e[UNITS]++;
    e[ALIKE] += u->dy_xhat > 0;
    e[LOWER] += with / u->dx2 < without / u->dy2;
}

/* Lemma 4.5 for two vectors; the relative distance of its two sides. */
static double lemma_45(const double *start, const double *minimum, double *gain)
{
    const double m2 = dot(minimum, minimum, WIDTH), cross = dot(minimum, start, WIDTH);
    double near = 0, far = 0;
    size_t i;
    for (i = 0; i < WIDTH; i++) {
        near += pow(start[i] - cross / m2 * minimum[i], 2);
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
        nrm_rng_normal(&rng, a, WIDTH);
        nrm_rng_normal(&rng, b, WIDTH);
        for (i = 0; i < WIDTH; i++) b[i] += a[i];
        worst = fmax(worst, lemma_45(a, b, NULL));
    }
    lab_record(r, "error45", 0, worst);
}

/* Lemma 4.5 for the layer's own weights: from the start to where training has led. */
static void record_distance(lab_run *r, const nrm_mlp *net, const double *start)
{
    double gains[WIDTH];
    size_t j, n = 0;
    for (j = 0; j < WIDTH; j++) {
        double a[WIDTH], b[WIDTH], gain;
        column(a, start, WIDTH, j);
        column(b, net->state[LAYER].W, WIDTH, j);
        if (dot(a, b, WIDTH) <= 0) continue;
        (void)lemma_45(a, b, &gain);
        if (isnan(gain)) continue; /* the unit has not moved */
        lab_record(r, "nearer_b", (double)j, gain);
        gains[n++] = gain;
    }
    lab_record(r, "median_nearer", 1, stats_median(gains, n));
}

/* The theorems at the start ('a', x = 0) or after training ('b', x = 1). */
static void record_theorems(lab_run *r, nrm_mlp *net, char when)
{
    static layer_view view;
    layer_view *v = &view;
    const double trained = when == 'b';
    double parts[PARTS][WIDTH], e[FOUND] = {0}, plain, loss, off, lambda;
    size_t i, j, n = 0;
    last_batch(net);
    v->net = net;
    v->x = net->state[LAYER].linear_out;
    v->in = net->state[LAYER - 1].out;
    (void)nrm_batchnorm_forward(v->y, v->beta, v->rstd, NULL, v->x, NULL, NULL, NRM_TRAIN,
                                NO_EPSILON, M, WIDTH, 1);
    for (j = 0; j < WIDTH; j++) v->gamma[j] = 1 / v->rstd[j]; /* undoes it with β (SM.32) */
    plain = gradients(v, 0, v->dx, v->dy);
    loss = gradients(v, 1, v->dx, v->dy);
    off = training_farthest(v->y, v->x, M * (size_t)WIDTH) /
          training_farthest(v->x, NULL, M * (size_t)WIDTH);
    lab_record(r, "error43", trained, stats_larger(off, fabs(loss - plain) / plain));
    lambda = largest_singular(v->in);
    for (j = 0; j < WIDTH; j++) {
        const unit u = unit_of(v, j);
        double part[PARTS];
        if (!(u.dy2 > 0)) continue; /* a unit that no example of the batch passes through */
        measure_unit(v, j, &u, lambda, part, e);
        for (i = 0; i < DRAWN; i++)
            lab_record_as(r, (double)j, part[i], "%s_%c", part_name[i], when);
        for (i = 0; i < PARTS; i++) parts[i][n] = part[i];
        n++;
    }
    e[ALIKE] /= e[UNITS];
    e[LOWER] /= e[UNITS];
    for (i = 0; i < FOUND; i++) lab_record(r, found_name[i], trained, e[i]);
    for (i = 0; i < PARTS; i++)
        lab_record_as(r, trained, stats_median(parts[i], n), "median_%s", part_name[i]);
    lab_record(r, "taken", trained, 1 - stats_median(parts[KEEP], n));
    lab_record(r, "weights_taken", trained, 1 - stats_median(parts[WEIGHTS], n));
}

/* ---- training -------------------------------------------------------------------------------- */

static double start_weights[WIDTH * WIDTH]; /* of layer LAYER */

static int begin_none(trainer *t)
{
    memcpy(start_weights, t->net->state[LAYER].W, sizeof start_weights);
    record_lemma(t->run);
    record_theorems(t->run, t->net, 'a');
    return 0;
}

static int end_none(trainer *t)
{
    if (t->step < t->plan->steps) return -1;
    record_distance(t->run, t->net, start_weights);
    lab_record(t->run, "accuracy", 0, trainer_accuracy(t, &test_set, NULL));
    record_theorems(t->run, t->net, 'b');
    return 0;
}

static double grown[HIDDEN]; /* |w|² as the start and the gradients make it, mean over units */

/* Before the first step and after each. Now and then of each hidden layer: mean over its units of
   |w|², and of η/|w|². */
static int follow_lengths(trainer *t)
{
    const int noted = t->step % 104 == 0 || t->step == t->plan->steps;
    size_t i, j, l;
    for (l = 0; l < HIDDEN; l++) {
        const nrm_mlp_state *s = &t->net->state[l];
        const size_t n = s->in * WIDTH;
        double length = 0, rate = 0;
        grown[l] = t->step == 0 ? dot(s->W, s->W, n) / WIDTH
                                : grown[l] + RATE * RATE * dot(s->dW, s->dW, n) / WIDTH;
        if (!noted) continue;
        for (j = 0; j < WIDTH; j++) {
            double w2 = 0;
            for (i = 0; i < s->in; i++) w2 += s->W[i * WIDTH + j] * s->W[i * WIDTH + j];
            length += w2 / WIDTH;
            rate += RATE / w2 / WIDTH;
        }
        lab_record_as(t->run, (double)t->step, length, "length%zu", l + 1);
        lab_record_as(t->run, (double)t->step, rate, "rate%zu", l + 1);
    }
    return 0;
}

static int end_batch(trainer *t)
{
    double off = 0, cosine = 0;
    size_t l;
    if (t->step < t->plan->steps) return -1;
    last_batch(t->net);
    for (l = 0; l < HIDDEN; l++) { /* here, since tables keep seven digits */
        const nrm_mlp_state *s = &t->net->state[l];
        off = fmax(off, fabs(dot(s->W, s->W, s->in * WIDTH) / WIDTH / grown[l] - 1));
        cosine = fmax(cosine, training_cosine(s->W, s->dW, s->in, WIDTH));
    }
    lab_record(t->run, "sum_off", 0, off);
    lab_record(t->run, "cosine", 0, cosine);
    return 0;
}

/* ---- batch norm as other weights ------------------------------------------------------------- */

enum { ROWS = 200, COLS = 8 };

/* Batch norm of Xw against X times the other weights, S being the mean of xx': how far apart the
   outputs are, and the gradients by w. */
static double compare_weights(const double *X, const double *w, double gamma, const double *dy,
                              double *gradient)
{
    double z[ROWS], y[ROWS], dz[ROWS], Sw[COLS] = {0}, mean, rstd, size, off = 0, g_w;
    double g[COLS] = {0}, chained[COLS] = {0};
    size_t i, j;
    for (i = 0; i < ROWS; i++) z[i] = dot(X + i * COLS, w, COLS);
    (void)nrm_batchnorm_forward(y, &mean, &rstd, NULL, z, &gamma, NULL, NRM_TRAIN, NO_EPSILON, ROWS,
                                1, 1);
    for (i = 0; i < ROWS * COLS; i++) Sw[i % COLS] += X[i] * z[i / COLS] / ROWS;
    size = sqrt(dot(w, Sw, COLS));
    for (i = 0; i < ROWS; i++) off = fmax(off, fabs(y[i] - gamma * z[i] / size));
    (void)nrm_batchnorm_backward(dz, NULL, NULL, dy, z, &mean, &rstd, &gamma, NRM_TRAIN, ROWS, 1,
                                 1);
    (void)nrm_linear_backward(NULL, chained, NULL, dz, X, NULL, ROWS, COLS, 1);
    (void)nrm_linear_backward(NULL, g, NULL, dy, X, NULL, ROWS, COLS, 1); /* by the other weights */
    g_w = dot(g, w, COLS);
    for (j = 0; j < COLS; j++) g[j] = gamma / size * (g[j] - g_w * Sw[j] / (size * size));
    *gradient = training_farthest(g, chained, COLS) / training_farthest(chained, NULL, COLS);
    return off;
}

/* The largest distance of BN(Xw) or WN(Xw) and γ·X·w/√(w'Sw), with S the covariance of X, the mean
   of its squares, or 1. */
static void record_other_weights(lab_run *r)
{
    static double X[ROWS * COLS];
    double w[COLS], W[COLS], dy[ROWS], mean[COLS] = {0}, gamma = 1.7, norm, off = 0;
    double uncentred, centred, gradient;
    nrm_rng rng;
    size_t i;
    nrm_rng_seed(&rng, r->seed, TRAINING_STREAM_DATA);
    for (i = 0; i < ROWS * COLS; i++) X[i] = 1 + draw_normal(&rng);
    nrm_rng_normal(&rng, w, COLS);
    nrm_rng_normal(&rng, dy, ROWS);
    uncentred = compare_weights(X, w, gamma, dy, &gradient);
    for (i = 0; i < ROWS * COLS; i++) mean[i % COLS] += X[i] / ROWS;
    for (i = 0; i < ROWS * COLS; i++) X[i] -= mean[i % COLS];
    centred = compare_weights(X, w, gamma, dy, &gradient);
    (void)nrm_weightnorm_forward(W, &norm, w, &gamma, COLS, 1);
    for (i = 0; i < COLS; i++)
        off = fmax(off, fabs(W[i] - gamma * w[i] / sqrt(dot(w, w, COLS)))); /* S = 1 */
    lab_record(r, "centred", 0, centred);
    lab_record(r, "uncentred", 0, uncentred);
    lab_record(r, "weight", 0, off);
    lab_record(r, "gradient", 0, gradient);
}

/* ---- least squares: f(w) = ½·w'Sw - u'w ------------------------------------------------------ */

enum { DIM = 20, TOY_STEPS = 2000, SHOWN = 200, CONDITIONS = 3, METHODS = 4 }; /* SHOWN: of 10 */
enum { GD, GDNP, BN_SMALL, BN_LARGE, BOUND = METHODS };
static const double condition[CONDITIONS] = {10, 100, 1000};
static const char *const method[METHODS + 1] = {"gd", "gdnp", "bn01", "bn1", "bound"};

typedef struct toy {
    double S[DIM][DIM], u[DIM], best[DIM]; /* eigenvalues of S from 1/condition to 1 */
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
    nrm_rng_normal(&rng, Q[0], DIM * DIM);
    for (i = 0; i < DIM; i++) {
        take_parts(Q[0], i, DIM);
        take_parts(Q[0], i, DIM);
        (void)unit_length(Q[i], DIM);
    }
    memset(t, 0, sizeof *t);
    nrm_rng_normal(&rng, t->u, DIM);
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
    const double kept = gamma ? *gamma : 0;
    double Sw[DIM], g[DIM], used[DIM], size2, uw, rate, along;
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
    for (i = 0; i < DIM; i++) used[i] = kept * w[i] / sqrt(size2);
    toy_times(g, t, used);
    for (i = 0; i < DIM; i++) g[i] -= t->u[i]; /* gradient by the weights that are used */
    along = dot(g, w, DIM);
    *gamma -= rate * along / sqrt(size2);
    for (i = 0; i < DIM; i++) w[i] -= rate * kept / sqrt(size2) * (g[i] - along * Sw[i] / size2);
}

static int toy_recorded(size_t step)
{
    return step <= 5 || step == 10 || step == 20 || (step <= 200 && step % 25 == 0) ||
           step % 100 == 0;
}

/* The first seeds give the curves, all of them what the claims count. */
static void run_condition(lab_run *r, double kappa, size_t steps)
{
    const int curves = r->arm == CURVES;
    const double smallest = 1 / kappa; /* eigenvalue; the largest is 1 */
    toy t;
    double used[DIM], w[METHODS][DIM], gamma[METHODS], gap[METHODS + 1], first = 1;
    size_t step, i, m, broken = 0, behind = 0;
    toy_make(&t, kappa, r->seed);
    for (m = 0; m < METHODS; m++) { /* all from the same weights: the best of this direction */
        draw_normals(w[m], DIM, 1, r->seed, TRAINING_STREAM_DATA + 2);
        gamma[m] = toy_weights(used, &t, w[m], NULL);
        if (m == GD) memcpy(w[m], used, sizeof used);
    }
    gap[BOUND] = 1;
    for (step = 0; step <= steps; step++) {
        for (m = 0; m < METHODS; m++) {
            if (m != GD) (void)toy_weights(used, &t, w[m], m == GDNP ? NULL : &gamma[m]);
            gap[m] = toy_gap(&t, m == GD ? w[m] : used);
            if (step == 0) first = gap[m];
            gap[m] /= first;
            toy_step(&t, (int)m, w[m], &gamma[m]);
        }
        for (i = 0; curves && toy_recorded(step) && i <= BOUND; i++)
            lab_record_as(r, (double)step, gap[i], "%s_%.0f", method[i], kappa);
        broken += gap[GDNP] > gap[BOUND] + 1e-12;
        behind += step > 0 && gap[GD] > 1e-12 && gap[GDNP] >= gap[GD];
        gap[BOUND] *= (1 - smallest) * (1 - smallest);
    }
    if (curves) return;
    lab_record(r, "broken", kappa, (double)broken);
    lab_record(r, "behind", kappa, (double)behind);
    for (m = 0; m < METHODS; m++)
        lab_record_as(r, kappa, log10(fmax(gap[m], 1e-30)), "end_%s", method[m]);
}

static int run_toy(lab_run *r)
{
    const size_t steps = r->quick ? SHOWN : TOY_STEPS;
    size_t k;
    if (r->arm == TOY) record_other_weights(r);
    for (k = 0; k < CONDITIONS; k++)
        if (r->arm == TOY || k != 1) /* the figure has the first and the last */
            run_condition(r, condition[k], r->arm == CURVES && k == 0 ? SHOWN : steps);
    return 0;
}

static int run(lab_run *r)
{
    const int norm = r->arm == BATCH;
    /* whole batches: M and the last norm stay */
    const trainer_plan plan =
        trainer_plan_of(.network = network, .begin = norm ? follow_lengths : begin_none,
                        .after = norm ? follow_lengths : NULL, .end = norm ? end_batch : end_none,
                        .set = &train_set, .batch = M, .least = M,
                        .steps = r->quick ? 15 : EPOCHS * (train_set.n / M));
    return r->arm == TOY || r->arm == CURVES ? run_toy(r) : trainer_run(r, &plan);
}

/* ---- claims ---------------------------------------------------------------------------------- */

static double sum(lab_numbers a)
{
    return lab_average(a) * (double)a.n;
}

static void judge_printed(lab_report *r, const lab_claim *c)
{
    const double n = sum(lab_all(r, NONE, "units", 1)), first = sum(lab_all(r, NONE, "printed", 1));
    const double second = sum(lab_all(r, NONE, "printed2", 1));
    lab_verdict(r, c, n > 0 ? stats_holds(first >= n || second >= n) : stats_unknown(), "",
                "broken in %.0f of %.0f units (g), in %.0f (g²)", n - first, n, n - second);
}

static void judge_ahead(lab_report *r, const lab_claim *c)
{
    const lab_numbers behind = /* steps, of all conditions */
        lab_times(lab_mean_over(r, TOY, "behind", 0, condition[CONDITIONS - 1]), CONDITIONS);
    unsigned met = 0;
    size_t s;
    for (s = 0; s < behind.n; s++) met += behind.of[s] < 0.5;
    lab_verdict(
        r, c, lab_below(behind, 0.5), lab_format(r, "behind at %.0f steps in all", sum(behind)),
        "ahead at every step in %u of %u seeds; condition 1000 ends at 10^%.1f against 10^%.1f",
        met, (unsigned)behind.n, lab_mean(r, TOY, "end_gdnp", 1000),
        lab_mean(r, TOY, "end_gd", 1000));
}

/* A series of layer l of the network with batch norm, relative to its start. */
static lab_numbers since_start(lab_report *r, const char *series, size_t l, double x)
{
    const char *name = lab_format(r, "%s%zu", series, l);
    return lab_calc(lab_all(r, BATCH, name, x), '/', lab_all(r, BATCH, name, 0));
}

static void judge_decay(lab_report *r, const lab_claim *c)
{
    lab_numbers highest = since_start(r, "rate", 1, LAB_LAST); /* of the six layers */
    double least = lab_describe(highest).min;
    stats_finding found;
    size_t l, s;
    for (l = 2; l <= HIDDEN; l++) {
        const lab_numbers ratio = since_start(r, "rate", l, LAB_LAST);
        least = fmin(least, lab_describe(ratio).min);
        for (s = 0; s < ratio.n; s++) highest.of[s] = stats_larger(highest.of[s], ratio.of[s]);
    }
    found = lab_below(highest, 1);
    found.size_met = stats_reproduced(lab_below(highest, 0.9));
    lab_verdict(r, c, found, "the layer in which it falls least",
                "between %.2f and %.2f of what it was", least, lab_describe(highest).max);
}

/* clang-format off */
#define DIFFERENCE .test = LAB_EXACT, .decimals = 1, .say = "largest difference $1"
#define EXACT_OF(of) {LAB_EXACT, TOY, .series = of, .limit = 1e-12}
static const lab_claim claims[] = {
    {"23a", "Batch norm takes from the gradient its mean and its part along the output, no more",
     "Santurkar et al. 2018, theorem 4.1; a derivation of batch norm's backward pass",
     "stated with ≤, proved",
     "exact: the two sides agree to 1e-9 of the gradient's squared length, all units",
     "trial run (random layer): 6.5e-10", LAB_IDENTITY, LAB_SETTING, DIFFERENCE,
     .series = "error41", .limit = 1e-9, .remark = "an equality where z = y"},
    {"23b", "What is taken is a large part of the gradient", "Santurkar et al. 2018, section 4.1",
     "argued, no number", "trained network: more than 10 % of the squared length in the median "
     "unit (a random direction would lose 2/128 = 1.6 %), seed by seed",
     "trial run (1 seed, two epochs): 1 % after training, 2 % before", LAB_TRAINING, LAB_NEWS,
     LAB_PARTS({LAB_BELOW, NONE, .series = "median_keep", .at = 1, .limit = 0.9},
               {.a = NONE, .series = "taken", .at = 1}, {.a = NONE, .series = "taken", .at = 0},
               {.a = NONE, .series = "weights_taken", .at = 1}),
     .say = "$2[100 0] % taken after training, $3[100 0] % before",
     .remark = "median unit; of the gradient of the weights #4[100 %.0f] % are taken"},
    {"23c", "The curvature along the gradient is that of the plain layer less a known term",
     "Santurkar et al. 2018, theorem 4.2", "stated with ≤, proved",
     "exact: the two sides agree to 1e-4 of their terms in all units",
     "trial run (random layer): 1.1e-7", LAB_IDENTITY, LAB_SETTING, DIFFERENCE,
     .series = "error42", .limit = 1e-4, .remark = "by differences of gradients"},
    {"23d", "Batch norm lowers the curvature along the gradient",
     "Santurkar et al. 2018, theorem 4.2; Chinese notes on batch norm",
     "if two signs are right; said of networks in general", "trained network: curvature per "
     "squared length along the gradient lower with batch norm in more than half of the units, seed "
     "by seed", "trial run (1 seed, two epochs): lower in 56 % of the units, 52 % before training",
     LAB_PARTS({LAB_ABOVE, NONE, .series = "lower", .at = 1, .limit = 0.5},
               {.a = NONE, .series = "lower", .at = 0}, {.a = NONE, .series = "alike", .at = 1}),
     .say = "lower in $1[100 0] % of the units after training, $2[100 0] % before",
     .remark = "⟨dy·x̂⟩ > 0 in #3[100 %.0f] % of the units"},
    {"23e", "With γ = σ and β = μ batch norm changes no output, yet it changes the gradient",
     "Santurkar et al. 2018, observation 4.3", "proved", "exact: outputs and loss equal to 1e-12, "
     "and in the median unit more than 1e-6 of the squared gradient lost, which rounding cannot do",
     "trial run (1 seed, two epochs): equal to 2e-16, 99 % left", LAB_IDENTITY, LAB_SETTING,
     LAB_PARTS({LAB_EXACT, NONE, .series = "error43", .limit = 1e-12},
               {LAB_EXACT, NONE, .series = "median_keep", .at = 1, .to = 1, .limit = 1 - 1e-6},
               {.a = NONE, .series = "median_keep", .at = 1}),
     .decimals = 1, .say = "outputs and loss to $1; #3[100 %.1f] % of the squared gradient left"},
    {"23f", "Theorem 4.4 holds with the lost λ² and 1/m put back",
     "Santurkar et al. 2018, eq. 17 of the appendix", "proved",
     "exact: equality to 1e-9 in all units, for the worst X, λ that of the layer's inputs",
     "trial run (1 seed, two epochs): 3e-15", LAB_IDENTITY, LAB_SETTING, DIFFERENCE,
     .series = "error44", .limit = 1e-9, .remark = ""},
    {"23g", "Theorem 4.4 holds as printed", "Santurkar et al. 2018, theorem 4.4", "stated with ≤",
     "the inequality holds in all units, in one of two readings of its g² (as g, or as g²); else "
     "not reproduced", "trial runs: a random layer violates it, 136 against -317; 1 seed, two "
     "epochs: holds in 4 of 98 units", LAB_IDENTITY, LAB_ALGEBRA, .judge = judge_printed},
    {"23h", "If every multiple of W* is as good as W*, the nearest of them is nearer to the start "
     "by a known amount", "Santurkar et al. 2018, lemma 4.5", "proved",
     "exact: the two sides agree to 1e-12 for 100 random pairs of vectors",
     "trial run (1 seed, two epochs): 2e-15", LAB_IDENTITY, LAB_SETTING,
     LAB_PARTS({LAB_EXACT, NONE, .series = "error45", .limit = 1e-12},
               {.a = NONE, .series = "median_nearer", .at = 1}),
     .decimals = 1, .say = "largest difference $1",
     .remark = "weights of layer 3: nearest point of the ray at #2[%.2f] of the distance"},
    {"23i",
     "Batch norm is a layer with other weights, γ·w/√(w'Sw), and weight norm the same with S = 1",
     "a derivation of batch norm's backward pass, after Kohler et al. 2018",
     "derived, \"assuming x is zero-mean\"",
     "exact: outputs and gradients equal to 1e-12, inputs centred", "trial run: 1e-14",
     LAB_IDENTITY, LAB_SETTING,
     LAB_PARTS(EXACT_OF("centred"), EXACT_OF("gradient"), EXACT_OF("weight")),
     .decimals = 1, .say = "outputs $1, gradients $2, weight norm $3"},
    {"23j", "This also holds with inputs that are not centred, S being the mean of xx'",
     "ours, to see whether the assumption is needed", "assumed to be centred",
     "outputs equal to 1e-12", "trial run: wrong by 0.99", LAB_IDENTITY, LAB_ALGEBRA,
     .test = LAB_EXACT, .a = TOY, .series = "uncentred", .limit = 1e-12,
     .say = "wrong by up to #1[%.2f]", .remark = "BN(Xw) and γ·Xw/√(w'Sw), inputs of mean 1"},
    {"23k", "The gradient of weights before batch norm is at right angles to them",
     "Ba et al. 2016, section 5; Kohler et al. 2018", "follows from invariance",
     "exact: |cosine| below 1e-10 for every unit of the trained network",
     "trial run (1 seed, two epochs): 2e-16", LAB_IDENTITY, LAB_SETTING,
     .test = LAB_EXACT, .a = BATCH, .series = "cosine", .limit = 1e-10, .decimals = 1,
     .say = "|cosine| at most $1",
     .remark = "600 units in each seed; 21f has one layer of each norm"},
    {"23l", "Least squares: GDNP converges at least as fast as its bound", "Kohler et al. 2018",
     "linear; in our form (1 - μ/L)^{2t}",
     "exact: the bound holds at every step, at condition 10, 100 and 1000, all seeds",
     "trial runs: never violated", LAB_IDENTITY, LAB_SETTING,
     .test = LAB_EXACT, .a = TOY, .series = "broken", .limit = 0.5, .remark = "",
     .say = "at most #1[%.0f] steps above the bound, for any seed and condition"},
    {"23m", "Least squares: GDNP is ahead of gradient descent with step 1/L at every step",
     "Kohler et al. 2018", "faster in theory", "smaller gap at every step as long as gradient "
     "descent has a relative gap above 1e-12, all conditions; decided seed by seed",
     "trial runs: condition 100, step 500: 3.7e-7 against 1.9e-5; 1000, step 1999: 5.6e-6 against "
     "1.1e-2", .judge = judge_ahead},
    {"23n", "Least squares: batch norm with a constant rate of 1 ends ahead of gradient descent",
     "ours, after Kohler et al. 2018", "no statement about constant rates",
     "smaller gap after 2000 steps at condition 1000", "trial runs: batch norm converged with the "
     "larger of the rates 0.1 and 1 only; 1 seed: 10^-2.5 for all three", LAB_TRAINING, LAB_NEWS,
     LAB_PARTS({LAB_LESS, TOY, TOY, "end_bn1", 1000, .other = "end_gd"},
               {.a = TOY, .series = "end_bn01", .at = 1000}), .decimals = 1,
     .say = "10^#1 against 10^#2; rate 0.1: 10^#3", .remark = "logarithms of the gap"},
    {"23o", "Weights before batch norm can only grow, by η²|gradient|² a step",
     "Ba et al. 2016, section 5.2.2; Salimans and Kingma 2016", "derived",
     "exact: sum over all steps of training equal to the change of |w|² to 1e-9, six layers",
     "trial run (1 seed, two epochs): 7e-15", LAB_IDENTITY, LAB_SETTING, DIFFERENCE,
     .a = BATCH, .series = "sum_off", .limit = 1e-9, .remark = "plain SGD, no weight decay"},
    {"23p", "This growth lowers the effective learning rate η/|w|²",
     "Ba et al. 2016, section 5.2.2", "an implicit early stopping; no number",
     "lower at the end of training in each of the six hidden layers, by at least 10 %",
     "trial run (1 seed, two epochs): 0.93 to 0.99 of the start", LAB_TRAINING, LAB_NEWS,
     .judge = judge_decay}};
/* clang-format on */

/* ---- figures --------------------------------------------------------------------------------- */

enum { BINS = 40, MOST_UNITS = WIDTH * LAB_SEEDS_MAX };
/* All values of a series of units, of all seeds; returns how many. */
static size_t gather(lab_report *r, const char *series, double out[MOST_UNITS])
{
    size_t s, i, n = 0;
    for (s = 0; s < lab_seeds(r, NONE); s++) {
        const lab_series v = lab_get(r, NONE, s, series);
        for (i = 0; i < v.n && n < MOST_UNITS; i++) out[n++] = v.y[i];
    }
    return n;
}

/* Density over all units of all seeds at the start and trained, in the panel's range; the legend
   says how many are outside. */
static void draw_units(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    static const plot_style style[2] = {{PLOT_GREY, .dash = PLOT_DASHED}, {PLOT_BLUE}};
    const double *range = panel->axes.x_range;
    double v[MOST_UNITS], edges[BINS + 1], density[BINS];
    size_t i, when;
    for (i = 0; i <= BINS; i++) edges[i] = range[0] + (range[1] - range[0]) * (double)i / BINS;
    for (when = 0; when < 2; when++) {
        const char *label = when ? "trained" : "start";
        const size_t n = gather(r, lab_format(r, "%s_%c", panel->series, when ? 'b' : 'a'), v);
        const size_t outside = stats_histogram(v, n, edges, BINS, density);
        if (outside)
            label = lab_format(r, "%s (%.0f %% outside)", label, 100 * (double)outside / (double)n);
        if (n) plot_hist(p, label, edges, density, BINS, style[when]);
    }
}

static void draw_taken(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    static const plot_style style[2] = {
        {PLOT_GREY, .marker = PLOT_RING, .size = 0.6, .alpha = 0.8},
        {PLOT_BLUE, .marker = PLOT_CIRCLE, .size = 0.6, .alpha = 0.8}};
    static double x[MOST_UNITS], y[MOST_UNITS];
    int when;
    (void)panel;
    for (when = 0; when < 2; when++) {
        const size_t n = gather(r, when ? "mean_part_b" : "mean_part_a", x);
        (void)gather(r, when ? "x_part_b" : "x_part_a", y);
        plot_scatter(p, when ? "trained" : "start", x, y, n, style[when]);
    }
}

/* A series of layers relative to its start: mean, lowest and highest seed. */
static void draw_layers(lab_report *r, plot_panel *p, const lab_panel *panel)
{
    enum { MOST = 100 };
    static lab_numbers ratio[MOST];
    size_t i, l;
    for (l = 1; l <= HIDDEN; l++) {
        const lab_series v = lab_get(r, BATCH, 0, lab_format(r, "%s%zu", panel->series, l));
        for (i = 0; i < v.n && i < MOST; i++) ratio[i] = since_start(r, panel->series, l, v.x[i]);
        lab_draw_numbers(p, lab_format(r, "layer %zu", l), v.x, ratio, i,
                         plot_solid(lab_level(HIDDEN - l, HIDDEN)));
    }
}

/* clang-format off */
#define OF_UNITS(down, right, title, name, lo, hi, what)                                           \
    .axes = {.row = down, .col = right, .cols = down ? 3 : 2, .heading = title, .x = name,         \
             .x_range = {lo, hi}, .y = "density of the units"},                                    \
    .draw = draw_units, .series = what
static const lab_panel theorems[] = {
    {OF_UNITS(0, 0, "Left of the gradient, theorem 4.1", "|dx|² / |dy|²", 0.8, 1, "keep"),
     .mark = {{LAB_VLINE, .x = 1 - 2.0 / M, .text = "random direction"}}},
    {.axes = {.col = 2, .cols = 2, .heading = "Taken from the gradient", .x = "share of the mean",
              .y = "share along the output"}, .draw = draw_taken},
    {OF_UNITS(0, 4, "Left of the weights' gradient", "|X'dx|² / |X'dy|²", 0, 1.5, "weights")},
    {OF_UNITS(1, 0, "Curvature along the gradient", "with / without batch norm", -1, 3, "curve"),
     .mark = {{LAB_VLINE, .x = 1, .text = ""}}},
    {OF_UNITS(1, 3, "Distance of the ray, lemma 4.5", "relative to that of the weights", 0.6, 1,
              "nearer")}};

#define SEEDS_OF(series, label, ...) {CURVES, series, label, {__VA_ARGS__}, LAB_EACH_SEED}
#define TOY_LINES(kappa) {                                                                         \
    SEEDS_OF("bound_" kappa, "GDNP, bound", PLOT_INK, .width = 0.45, .alpha = 0.45),               \
    SEEDS_OF("bn01_" kappa, "batch norm, rate 0.1", PLOT_BLUE, .dash = PLOT_DOTTED),               \
    SEEDS_OF("bn1_" kappa, "batch norm, rate 1", PLOT_BLUE),                                       \
    SEEDS_OF("gdnp_" kappa, "GDNP", PLOT_INK),                                                     \
    SEEDS_OF("gd_" kappa, "gradient descent, 1/L", PLOT_VERMILLION, .dash = PLOT_DASHED)}
#define GAP .x = "step", .y = "gap, start = 1", .y_scale = PLOT_LOG10

static const lab_panel length[] = { /* condition 100 lies between */
    {.axes = {.heading = "Condition 10", GAP, .x_range = {0, SHOWN}, .y_range = {1e-16, 100},
              .legend = PLOT_LEGEND_NONE}, .line = TOY_LINES("10")},
    {.axes = {.col = 1, .heading = "Condition 1000", GAP, .x_range = {0, TOY_STEPS},
              .y_range = {1e-10, 10}, .legend = PLOT_LEGEND_BOTTOM_LEFT},
     .line = TOY_LINES("1000")},
    {.axes = {.row = 1, .heading = "Weights before batch norm grow", .x = "step",
              .y = "|w|², start = 1", .legend = PLOT_LEGEND_DIRECT},
     .draw = draw_layers, .series = "length"},
    {.axes = {.row = 1, .col = 1, .heading = "Effective learning rate η / |w|²", .x = "step",
              .y = "start = 1", .legend = PLOT_LEGEND_DIRECT},
     .draw = draw_layers, .series = "rate", .mark = {{LAB_HLINE, .y = 0.9, .text = ""}}}};

/* The step of GDNP is one of gradient descent with step 1/L from the weights that are used, after
   which their length is set to the best: hence its bound. The largest distance in 100 steps. */
static void check_gdnp(lab_report *r)
{
    double w[DIM], used[DIM], next[DIM], most = 0;
    size_t i, step;
    toy t;
    toy_make(&t, condition[CONDITIONS - 1], 1);
    for (i = 0; i < DIM; i++) w[i] = 1 + (double)i;
    for (step = 0; step < 100; step++) {
        (void)toy_weights(used, &t, w, NULL);
        toy_step(&t, GDNP, w, NULL);
        (void)toy_weights(next, &t, w, NULL);
        toy_step(&t, GD, used, NULL);
        (void)toy_weights(used, &t, used, NULL);
        most = stats_larger(most, training_farthest(next, used, DIM) / sqrt(dot(next, next, DIM)));
    }
    lab_check(r, most < 1e-12,
              "GDNP is gradient descent with step 1/L and the best length each step",
              "weights differ by at most %.1e of their length", most);
}

static const lab_page pages[] = {
    {"Batch norm takes 2 % of the gradient: the theorems hold, and say little here", NULL, 1040,
     .settings = "784-100x6-10, ReLU, six epochs of SGD 0.1, batch 128, layer 3; all units of "
                 "all seeds; in double",
     .seeds = 5, LAB_PANELS(theorems)},
    {"Length apart from direction helps; batch norm with a constant rate does not", "length",
     1160,
     .settings = "a, b: least squares in 20 dimensions, a line for each seed; c, d: "
                 "784-100x6-10, ReLU, SGD 0.1; means, lowest and highest",
     .seeds = 5, LAB_PANELS(length)}};
/* clang-format on */

LAB_PROGRAM(
    "23_theorems",
    "Do the theorems about batch norm hold in a trained network, and are their terms large?",
    "784-100x6-10, ReLU, pixels standardized, Glorot uniform, SGD 0.1, batch 128, six epochs, "
    "layer 3; least squares in 20 dimensions; double precision",
    .revision = 6, .uses = LAB_USES_DATA, .prepare = prepare, .after = check_gdnp)
