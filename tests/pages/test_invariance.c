/* test_invariance.c - which norm does not see which change of its weights or data, measured.

   The layer is y = norm(X·W), with γ and β, and six changes of W and X; how much does y change? It
   is the table of Ba, Kiros and Hinton (2016), computed instead of derived, with group norm and
   RMSNorm added. Then the other side of each invariance: the gradient has no part in a direction in
   which the output does not change. The tables are those of experiment 21, to the letter.

   In double, since 10⁻¹² is what "invariant" means here. */
#include "page.h"
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"
#include "lab/draw.h"

#define R(a) ((nrm_real)(a))
#define D(a) ((double)(a))

enum { ROWS = 64, IN = 20, OUT = 16, GROUPS = 4, UNIT = 3, CASE = 5 };
enum kind { BATCH, WEIGHT, LAYER, GROUP, RMS, NONE, KINDS };
enum change { W_SCALE, W_CENTRE, UNIT_SCALE, X_SCALE, X_CENTRE, CASE_SCALE, CHANGES };

static const char *const kind_name[KINDS] = {"batch norm", "weight norm",  "layer norm",
                                             "group norm", "RMSNorm", "none"};
static const double delta = 3.7; /* by what is scaled */

/* What theory says: one letter per change, in their order. */
static const char *const invariant[KINDS] = {
    "+-+++-", /* batch norm */
    "+-+---", /* weight norm */
    "++-+-+", /* layer norm */
    "++-+-+", /* group norm */
    "+--+-+", /* RMSNorm */
    "------"  /* none */
};

typedef struct problem { /* a layer's data, parameters, and dL/dy of a loss L = ∑ y·dy */
    nrm_real x[ROWS * IN], w[IN * OUT], gamma[OUT], beta[OUT], dy[ROWS * OUT];
} problem;

typedef struct result {
    nrm_real y[ROWS * OUT], dx[ROWS * IN], dw[IN * OUT];
} result;

/* Every entry of X·W has a variance of about size². */
static problem make_problem(double size)
{
    problem p;
    nrm_rng rng;
    size_t i;
    nrm_rng_seed(&rng, 6, 200);
    for (i = 0; i < ROWS * IN; i++) p.x[i] = draw_normal(&rng);
    for (i = 0; i < IN * OUT; i++) p.w[i] = draw_normal(&rng) * R(size / sqrt(IN));
    for (i = 0; i < OUT; i++) p.gamma[i] = R(0.5) + draw_uniform(&rng);
    for (i = 0; i < OUT; i++) p.beta[i] = draw_normal(&rng);
    for (i = 0; i < ROWS * OUT; i++) p.dy[i] = draw_normal(&rng);
    return p;
}

/* The same shift of all rows of X, or of all columns of W. */
static void change_problem(problem *p, int change)
{
    nrm_real shift[IN];
    nrm_rng rng;
    size_t i;
    nrm_rng_seed(&rng, 7, 201);
    for (i = 0; i < IN; i++) shift[i] = draw_normal(&rng);
    if (change == W_SCALE)
        for (i = 0; i < IN * OUT; i++) p->w[i] *= R(delta);
    if (change == W_CENTRE)
        for (i = 0; i < IN * OUT; i++) p->w[i] += shift[i / OUT];
    if (change == UNIT_SCALE)
        for (i = 0; i < IN; i++) p->w[i * OUT + UNIT] *= R(delta);
    if (change == X_SCALE)
        for (i = 0; i < ROWS * IN; i++) p->x[i] *= R(delta);
    if (change == X_CENTRE)
        for (i = 0; i < ROWS * IN; i++) p->x[i] += shift[i % IN];
    if (change == CASE_SCALE)
        for (i = 0; i < IN; i++) p->x[CASE * IN + i] *= R(delta);
}

/* ---- the layer ------------------------------------------------------------------------------- */

/* y, dx and dw of y = X·W + β with W = γ·w/|w|. */
static void run_weightnorm(result *r, const problem *p)
{
    nrm_real W[IN * OUT], dW[IN * OUT];
    nrm_acc norm[OUT];
    OK(nrm_weightnorm_forward(W, norm, p->w, p->gamma, IN, OUT));
    OK(nrm_linear_forward(r->y, p->x, W, p->beta, ROWS, IN, OUT));
    memset(dW, 0, sizeof dW);
    OK(nrm_linear_backward(r->dx, dW, NULL, p->dy, p->x, W, ROWS, IN, OUT));
    OK(nrm_weightnorm_backward(r->dw, NULL, dW, p->w, norm, p->gamma, IN, OUT));
}

/* The norm of a = X·W, and da. */
static void run_norm(nrm_real *y, nrm_real *da, const nrm_real *a, const problem *p, int kind,
                     double eps)
{
    nrm_acc mean[ROWS * GROUPS], rstd[ROWS * GROUPS];
    const nrm_real *gamma = p->gamma, *beta = p->beta;
    const nrm_real e = R(eps);
    size_t i;
    switch (kind) {
    case BATCH:
        OK(nrm_batchnorm_forward(y, mean, rstd, NULL, a, gamma, beta, NRM_TRAIN, e, ROWS, OUT, 1));
        OK(nrm_batchnorm_backward(da, NULL, NULL, p->dy, a, mean, rstd, gamma, NRM_TRAIN, ROWS, OUT,
                                  1));
        break;
    case LAYER:
        OK(nrm_layernorm_forward(y, mean, rstd, a, gamma, beta, e, ROWS, OUT));
        OK(nrm_layernorm_backward(da, NULL, NULL, p->dy, a, mean, rstd, gamma, ROWS, OUT));
        break;
    case GROUP:
        OK(nrm_groupnorm_forward(y, mean, rstd, a, gamma, beta, e, ROWS, OUT, 1, GROUPS));
        OK(nrm_groupnorm_backward(da, NULL, NULL, p->dy, a, mean, rstd, gamma, ROWS, OUT, 1,
                                  GROUPS));
        break;
    case RMS:
        OK(nrm_rmsnorm_forward(y, rstd, a, gamma, e, ROWS, OUT));
        OK(nrm_rmsnorm_backward(da, NULL, p->dy, a, rstd, gamma, ROWS, OUT));
        for (i = 0; i < ROWS * OUT; i++) y[i] += beta[i % OUT];
        break;
    default:
        memcpy(da, p->dy, sizeof p->dy);
        for (i = 0; i < ROWS * OUT; i++) y[i] = a[i] + beta[i % OUT];
        break;
    }
}

static void run(result *r, const problem *p, int kind, double eps)
{
    nrm_real a[ROWS * OUT], da[ROWS * OUT];
    memset(r->dw, 0, sizeof r->dw);
    if (kind == WEIGHT) {
        run_weightnorm(r, p);
        return;
    }
    OK(nrm_linear_forward(a, p->x, p->w, NULL, ROWS, IN, OUT));
    run_norm(r->y, da, a, p, kind, eps);
    OK(nrm_linear_backward(r->dx, r->dw, NULL, da, p->x, p->w, ROWS, IN, OUT));
}

/* ---- the output ------------------------------------------------------------------------------ */

/* max|a - scale·b|/max|a| */
static double distance(const nrm_real *a, const nrm_real *b, double scale, size_t n)
{
    double far = 0, largest = 0;
    size_t i;
    for (i = 0; i < n; i++) {
        far = fmax(far, fabs(D(a[i]) - scale * D(b[i])));
        largest = fmax(largest, fabs(D(a[i])));
    }
    return far / largest;
}

static double output_change(int kind, int change, double eps)
{
    static result before, after;
    problem p = make_problem(1);
    run(&before, &p, kind, eps);
    change_problem(&p, change);
    run(&after, &p, kind, eps);
    return distance(before.y, after.y, 1, ROWS * OUT);
}

static void changes_heading(const char *name)
{
    page_table(name, "| | W scaled | W re-centred | one unit's weights scaled | data scaled | data "
                     "re-centred | one example scaled |");
}

/* ε = 10⁻³⁰ stands for none. */
static void test_output(void)
{
    int kind, change;
    changes_heading("output");
    for (kind = 0; kind < KINDS; kind++) {
        page_print("| %s |", kind_name[kind]);
        for (change = 0; change < CHANGES; change++) {
            const double d = output_change(kind, change, 1e-30);
            if (invariant[kind][change] == '+')
                page_print(" ✓ |");
            else
                page_print(" %s |", page_number(d, 2));
            CHECK(invariant[kind][change] == '+' ? d < 1e-12 : d > 1e-2);
        }
        page_print("\n");
    }
}

static void test_output_with_eps(void)
{
    int kind, change;
    changes_heading("output-eps");
    for (kind = 0; kind < KINDS; kind++) {
        if (kind == NONE) continue;
        page_print("| %s |", kind_name[kind]);
        for (change = 0; change < CHANGES; change++) {
            const double d = output_change(kind, change, 1e-5);
            if (invariant[kind][change] != '+')
                page_print(" |");
            else
                page_print(" %s |", d < 1e-12 ? "✓" : page_small(d, 1));
            CHECK(invariant[kind][change] == '+' ? d < 1e-3 : d > 1e-2);
            if (kind == WEIGHT) CHECK(invariant[kind][change] != '+' || d < 1e-12); /* has no ε */
        }
        page_print("\n");
    }
}

/* The factor by which x̂ grows when x, of variance v, is scaled by δ, minus 1. */
static double growth(double v, double eps)
{
    return delta * sqrt((v + eps) / (delta * delta * v + eps)) - 1;
}

/* One channel of batch norm, two values, whose standard deviation is s, scaled by δ. */
static void test_small_activations(void)
{
    int power;
    page_table("sizes", "| standard deviation s | growth of x̂ | ½·ε·(1 − 1/δ²)/s² |");
    for (power = 1; power >= -4; power--) {
        const double s = pow(10, power), eps = 1e-5;
        nrm_real x[2], y[2], y_scaled[2];
        nrm_acc mean, rstd;
        double measured;
        x[0] = R(-s);
        x[1] = R(s);
        OK(nrm_batchnorm_forward(y, &mean, &rstd, NULL, x, NULL, NULL, NRM_TRAIN, R(eps), 2, 1, 1));
        x[0] = R(-s * delta);
        x[1] = R(s * delta);
        OK(nrm_batchnorm_forward(y_scaled, &mean, &rstd, NULL, x, NULL, NULL, NRM_TRAIN, R(eps), 2,
                                 1, 1));
        measured = D(y_scaled[1]) / D(y[1]) - 1;
        page_print("| %g | %s | %s |\n", s, page_small(measured, 2),
                   page_small(0.5 * eps * (1 - 1 / (delta * delta)) / (s * s), 2));
        CHECK_NEAR(measured, growth(s * s, eps), 1e-14);
    }
}

/* ---- the gradient ---------------------------------------------------------------------------- */

typedef struct view { /* `count` vectors in a matrix, each of n entries that lie `step` apart */
    size_t count, first, next, n, step;
} view;

static double dot(const nrm_real *a, const nrm_real *b, size_t n, size_t step)
{
    double sum = 0;
    size_t i;
    for (i = 0; i < n; i++) sum += D(a[i * step]) * D(b[i * step]);
    return sum;
}

/* The largest |⟨a, b⟩|/(|a|·|b|) over the vectors of the view. */
static double largest_cosine(const nrm_real *a, const nrm_real *b, view v)
{
    double largest = 0;
    size_t k;
    for (k = 0; k < v.count; k++) {
        const nrm_real *p = a + v.first + k * v.next, *q = b + v.first + k * v.next;
        const double lengths = dot(p, p, v.n, v.step) * dot(q, q, v.n, v.step);
        largest = fmax(largest, fabs(dot(p, q, v.n, v.step)) / sqrt(lengths));
    }
    return largest;
}

/* |sum of the vectors| as a part of the sum of their lengths. */
static double length_of_sum(const nrm_real *a, view v)
{
    double sum[IN] = {0}, squares = 0, lengths = 0;
    size_t k, i;
    for (k = 0; k < v.count; k++) {
        const nrm_real *p = a + v.first + k * v.next;
        lengths += sqrt(dot(p, p, v.n, v.step));
        for (i = 0; i < v.n; i++) sum[i] += D(p[i * v.step]);
    }
    for (i = 0; i < v.n; i++) squares += sum[i] * sum[i];
    return sqrt(squares) / lengths;
}

/* How large is the part of the gradient along this change? 0: it has none. */
static double gradient_part(const problem *p, const result *r, int change)
{
    const view whole_w = {1, 0, 0, IN * OUT, 1}, columns = {OUT, 0, 1, IN, OUT};
    const view whole_x = {1, 0, 0, ROWS * IN, 1}, rows = {ROWS, 0, IN, IN, 1};
    switch (change) {
    case W_SCALE: return largest_cosine(p->w, r->dw, whole_w);
    case W_CENTRE: return length_of_sum(r->dw, columns);
    case UNIT_SCALE: return largest_cosine(p->w, r->dw, columns);
    case X_SCALE: return largest_cosine(p->x, r->dx, whole_x);
    case X_CENTRE: return length_of_sum(r->dx, rows);
    default: return largest_cosine(p->x, r->dx, rows);
    }
}

static void test_gradient(void)
{
    static result r;
    const problem p = make_problem(1);
    int kind, change;
    page_table("gradient",
               "| | ⟨W, ∇W⟩ = 0 | ∑ⱼ ∇wⱼ = 0 | ⟨wⱼ, ∇wⱼ⟩ = 0 | ⟨X, ∇X⟩ = 0 | ∑ₙ ∇xₙ = 0 | ⟨xₙ, "
               "∇xₙ⟩ = 0 |");
    for (kind = 0; kind < KINDS; kind++) {
        run(&r, &p, kind, 1e-30);
        page_print("| %s |", kind_name[kind]);
        for (change = 0; change < CHANGES; change++) {
            const double part = gradient_part(&p, &r, change);
            if (invariant[kind][change] == '+')
                page_print(" ✓ |");
            else
                page_print(" %s |", page_number(part, 2));
            CHECK(invariant[kind][change] == '+' ? part < 1e-12 : part > 5e-3);
        }
        page_print("\n");
    }
}

/* ∇W at a·W is ∇W/a; and a step of gradient descent makes weights longer, by Pythagoras. */
static void test_scaled_weights(void)
{
    static result r, scaled;
    const double rate = 0.1;
    int kind;
    page_table("weights", "| | a·∇(a·W) = ∇W | ‖wⱼ − η·∇wⱼ‖² = ‖wⱼ‖² + η²·‖∇wⱼ‖² |");
    for (kind = 0; kind < KINDS; kind++) {
        problem p = make_problem(1);
        double change, worst = 0;
        size_t j;
        run(&r, &p, kind, 1e-30);
        for (j = 0; j < OUT; j++) {
            const nrm_real *w = p.w + j, *dw = r.dw + j;
            const double ww = dot(w, w, IN, OUT), gg = dot(dw, dw, IN, OUT);
            const double stepped = ww - 2 * rate * dot(w, dw, IN, OUT) + rate * rate * gg;
            worst = fmax(worst, fabs(stepped / (ww + rate * rate * gg) - 1));
        }
        change_problem(&p, W_SCALE);
        run(&scaled, &p, kind, 1e-30);
        change = distance(r.dw, scaled.dw, delta, IN * OUT);
        page_print("| %s | %s | %s |\n", kind_name[kind],
                   change < 1e-10 ? "✓" : page_number(change, 2),
                   worst < 1e-10 ? "✓" : page_number(worst, 2));
        CHECK((change < 1e-10) == (invariant[kind][W_SCALE] == '+'));
        CHECK((worst < 1e-10) == (invariant[kind][UNIT_SCALE] == '+'));
    }
}

/* ---- a network ------------------------------------------------------------------------------- */

enum { CLASSES = 5, STEPS = 300 };

typedef struct task {
    nrm_real x[ROWS * IN];
    int label[ROWS];
} task;

static task make_task(nrm_rng *rng)
{
    task t;
    size_t n, i;
    for (n = 0; n < ROWS; n++) {
        nrm_real *x = t.x + n * IN;
        for (i = 0; i < IN; i++) x[i] = draw_normal(rng);
        t.label[n] = 0; /* which of the first five is largest */
        for (i = 1; i < CLASSES; i++)
            if (x[i] > x[t.label[n]]) t.label[n] = (int)i;
    }
    return t;
}

/* A network 20-16-16-5 with ReLU and this norm in both hidden layers, trained. free() it. */
static void *trained_net(nrm_mlp **net, int norm)
{
    nrm_mlp_layer layer[3];
    nrm_mlp_spec spec = nrm_mlp_defaults();
    nrm_rng rng;
    void *block;
    int step, i;
    memset(layer, 0, sizeof layer);
    for (i = 0; i < 2; i++) {
        layer[i].width = OUT;
        layer[i].activation = NRM_RELU;
        layer[i].norm = norm;
        layer[i].groups = norm == NRM_GROUP_NORM ? GROUPS : 0;
    }
    layer[2].width = CLASSES;
    layer[2].bias = 1;
    spec.inputs = IN;
    spec.layers = 3;
    spec.layer = layer;
    spec.max_batch = ROWS;
    spec.eps = R(1e-30);
    block = malloc(nrm_mlp_bytes(&spec));
    if (block == NULL || nrm_mlp_init(net, block, nrm_mlp_bytes(&spec), &spec) != NRM_OK) exit(2);
    nrm_rng_seed(&rng, 8, 202);
    for (step = 0; step < STEPS; step++) {
        const task t = make_task(&rng);
        OK(nrm_mlp_train_step(*net, NULL, t.x, t.label, ROWS));
    }
    return block;
}

/* How much the logits change if a layer's W is scaled. */
static double logit_change(int norm, int mode, size_t layer)
{
    nrm_real before[ROWS * CLASSES];
    nrm_mlp *net;
    void *block = trained_net(&net, norm);
    double change;
    nrm_rng rng;
    task t;
    size_t i;
    nrm_rng_seed(&rng, 9, 203);
    t = make_task(&rng);
    OK(nrm_mlp_forward(net, t.x, ROWS, mode));
    memcpy(before, net->logits, sizeof before);
    for (i = 0; i < net->state[layer].in * OUT; i++) net->state[layer].W[i] *= R(delta);
    OK(nrm_mlp_forward(net, t.x, ROWS, mode));
    change = distance(before, net->logits, 1, ROWS * CLASSES);
    free(block);
    return change;
}

static void test_network(void)
{
    static const struct {
        const char *name;
        int norm, mode, invariant;
    } row[] = {{"batch norm, statistics of the batch", NRM_BATCH_NORM, NRM_TRAIN, 1},
               {"batch norm, running statistics", NRM_BATCH_NORM, NRM_INFER, 0},
               {"layer norm", NRM_LAYER_NORM, NRM_INFER, 1},
               {"group norm", NRM_GROUP_NORM, NRM_INFER, 1},
               {"RMSNorm", NRM_RMS_NORM, NRM_INFER, 1},
               {"none", NRM_NO_NORM, NRM_INFER, 0}};
    size_t i, layer;
    page_table("network", "| | first layer's W scaled | second layer's W scaled |");
    for (i = 0; i < sizeof row / sizeof *row; i++) {
        page_print("| %s |", row[i].name);
        for (layer = 0; layer < 2; layer++) {
            const double d = logit_change(row[i].norm, row[i].mode, layer);
            page_print(" %s |", d < 1e-12 ? "✓" : page_number(d, 2));
            CHECK(row[i].invariant ? d < 1e-12 : d > 1e-2);
        }
        page_print("\n");
    }
}

int main(int argc, char **argv)
{
    RUN(test_output);
    RUN(test_output_with_eps);
    RUN(test_small_activations);
    RUN(test_gradient);
    RUN(test_scaled_weights);
    RUN(test_network);
    return page_main(argc, argv, "examples/experiments/21_invariance/README.md",
                     sizeof(nrm_real) == sizeof(double), "invariance (double)");
}
