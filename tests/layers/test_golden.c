/* test_golden.c - our layers give PyTorch's answers.

       test_golden             all of tests/expected/torch_*.txt
       test_golden -v FILE...  these files, and what each case is off by

   The files hold inputs and PyTorch's results; golden.h reads them and compares: within 2e-6 of the
   largest entry in float, 1e-12 in double. The functions here hand the arrays of a case
   to ours. `make parity` runs the same program on files of larger cases, written anew. */
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"
#include "call.h"
#include "golden.h"
#include "variants.h"

/* Running statistics that start as the case says. */
static nrm_running running_of(golden *g)
{
    nrm_running running;
    memset(&running, 0, sizeof running);
    running.mean = reals(g, "running_mean");
    running.var = reals(g, "running_var");
    running.new_weight = real(g, "new_weight");
    running.cumulative = (int)size_or(g, "cumulative", 0);
    return running;
}

/* The statistics after batch t take their place in the results. */
static void keep_running(golden *g, const nrm_running *running, size_t t, size_t C)
{
    nrm_real *means = wanted(g, "running_means"), *vars = wanted(g, "running_vars");
    if (means == NULL) return;
    memcpy(means + t * C, running->mean, C * sizeof *means);
    memcpy(vars + t * C, running->var, C * sizeof *vars);
}

/* Of several names the one that the case has. */
static const char *named(golden *g, const char *names, int is_result)
{
    static char name[32];
    size_t n;
    do {
        n = strcspn(names, " ");
        memcpy(name, names, n), name[n] = 0;
        names += n + (names[n] == ' ');
    } while (*names && golden_find(g, name, is_result) == NULL);
    return name;
}

/* The arrays and settings that a case has; `groups` is how many statistics there are. */
static layer_call call_of(golden *g, size_t groups)
{
    layer_call c;
    memset(&c, 0, sizeof c);
    c.x = reals(g, named(g, "x v logits", 0)), c.dy = reals(g, named(g, "dy dW", 0));
    c.gamma = reals(g, named(g, "gamma W g", 0)), c.beta = reals(g, named(g, "beta b", 0));
    c.y = wanted(g, named(g, "y W prob", 1)), c.dx = wanted(g, named(g, "dx dv dlogits", 1));
    c.dgamma = wanted(g, named(g, "dgamma dW dg", 1)), c.dbeta = wanted(g, named(g, "dbeta db", 1));
    c.mean = saved(g, named(g, "mean norm", 1), groups);
    c.rstd = saved(g, named(g, "rstd scale", 1), groups);
    c.ratio = saved(g, "ratio", groups), c.offset = saved(g, "offset", groups);
    c.loss = wanted_accs(g, "loss"), c.labels = ints(g, "labels");
    c.N = size_or(g, "N", 1), c.C = size_or(g, "C", size_or(g, "D", size_or(g, "in", 1)));
    c.S = size_or(g, "S", size_or(g, "out", 1)), c.G = size_or(g, "G", 0);
    c.mode = (int)size_or(g, "mode", NRM_TRAIN), c.p = (int)size_or(g, "p", 0);
    if (golden_find(g, "eps", 0) != NULL) c.eps = real(g, "eps");
    if (golden_find(g, "r_max", 0) != NULL) c.r_max = real(g, "r_max"), c.d_max = real(g, "d_max");
    return c;
}

/* ---- layers: a status ------------------------------------------------------------------------ */

/* Batches one after another, with running statistics; the gradients of the last. */
static int of_batches(golden *g)
{
    layer_call c = call_of(g, size(g, "C"));
    const size_t batches = size(g, "batches");
    nrm_running running = running_of(g);
    size_t t;
    int rc = NRM_OK;
    c.running = &running;
    for (t = 0; t < batches && rc == NRM_OK; t++) {
        c.x = reals(g, "x") + t * c.N * c.C * c.S;
        rc = call_layer(g->function, &c);
        keep_running(g, &running, t, c.C);
    }
    return rc != NRM_OK || c.mode == NRM_INFER ? rc : call_layer(g->function + 1, &c);
}

static int one_batch(golden *g)
{
    layer_call c = call_of(g, size_or(g, "N", size_or(g, "out", 1)) * size_or(g, "G", 1));
    int rc;
    if (g->function == CALL_WEIGHTNORM) c.N = c.C, c.C = c.S;
    if (g->function == CALL_ACTIVATION) c.N = golden_find(g, "x", 0)->count;
    if (g->function == CALL_ACTIVATION) c.mode = choice(g, "activation");
    rc = call_layer(g->function, &c);
    return rc != NRM_OK ? rc : call_layer(g->function + 1, &c);
}

static int layernorm_std(golden *g)
{
    const layer_call c = call_of(g, size(g, "N"));
    layernorm_std_forward(c.y, c.mean, c.rstd, c.x, c.gamma, c.beta, c.eps, c.N, c.C);
    layernorm_std_backward(c.dx, c.dgamma, c.dbeta, c.dy, c.x, c.gamma, c.eps, c.N, c.C);
    return NRM_OK;
}

/* y is s·clean + m with the factors and offsets that were drawn; the offsets alone are what
   becomes of zeros. */
static void check_noise(golden *g, const nrm_real *y, const nrm_real *s, const nrm_rng *drawn_from)
{
    const size_t N = size(g, "N"), C = size(g, "C"), S = size(g, "S"), count = N * C * S;
    const nrm_real *clean = wanted(g, "clean");
    nrm_real *zeros = (nrm_real *)scratch(g, count * sizeof *zeros);
    nrm_real *m = (nrm_real *)scratch(g, count * sizeof *m);
    nrm_real *again = (nrm_real *)scratch(g, count * sizeof *again);
    nrm_acc *mean = (nrm_acc *)scratch(g, C * sizeof *mean);
    nrm_acc *rstd = (nrm_acc *)scratch(g, C * sizeof *rstd);
    const nrm_noise noise = nrm_noise_paper();
    nrm_rng rng = *drawn_from;
    size_t i;
    OK(nrm_noisy_batchnorm_forward(m, again, mean, rstd, NULL, zeros, NULL, NULL, &noise, &rng,
                                   NRM_TRAIN, NRM_EPS, N, C, S));
    for (i = 0; i < count; i++)
        CHECK_NEAR(y[i], (double)s[i] * (double)clean[i] + (double)m[i],
                   8 * (sizeof(nrm_real) == sizeof(float) ? (double)FLT_EPSILON : DBL_EPSILON));
}

static int noisy_batchnorm(golden *g)
{
    layer_call c = call_of(g, size(g, "C"));
    const nrm_noise noise = nrm_noise_paper();
    nrm_rng rng, before;
    int rc;
    c.y = wanted(g, "clean");
    rc = call_layer(CALL_BATCHNORM, &c);
    nrm_rng_seed(&rng, 1, 1);
    before = rng;
    c.noise = &noise, c.rng = &rng;
    c.y = (nrm_real *)scratch(g, c.N * c.C * c.S * sizeof *c.y);
    c.scale = (nrm_real *)scratch(g, c.N * c.C * c.S * sizeof *c.scale);
    if (rc == NRM_OK) rc = call_layer(g->function, &c);
    check_noise(g, c.y, c.scale, &before);
    c.scale = reals(g, "scale");
    return rc != NRM_OK ? rc : call_layer(g->function + 1, &c);
}

/* ---- synchronised batch norm: the batch is dealt out to workers ------------------------------ */

static void *copied(golden *g, const void *from, size_t bytes)
{
    return memcpy(scratch(g, bytes), from, bytes);
}

/* What each worker calls with: its rows, and running statistics of its own. */
static layer_call *workers_of(golden *g, size_t count)
{
    const layer_call whole = call_of(g, size(g, "C"));
    const size_t N = whole.N, C = whole.C, S = whole.S;
    const nrm_real *mask = reals(g, "mask");
    unsigned char *bytes = (unsigned char *)scratch(g, N * S);
    layer_call *w = (layer_call *)scratch(g, count * sizeof *w);
    size_t i;
    for (i = 0; i < N * S; i++) bytes[i] = mask == NULL || mask[i] > 0;
    for (i = 0; i < count; i++) {
        const size_t from = N * i / count, at = from * C * S;
        const nrm_running running = running_of(g);
        w[i] = whole;
        w[i].N = N * (i + 1) / count - from;
        w[i].x += at, w[i].y += at, w[i].dy += at, w[i].dx += at;
        w[i].running = (nrm_running *)copied(g, &running, sizeof running);
        w[i].running->mean = (nrm_real *)copied(g, running.mean, C * sizeof(nrm_real));
        w[i].running->var = (nrm_real *)copied(g, running.var, C * sizeof(nrm_real));
        w[i].mean = (nrm_acc *)scratch(g, C * sizeof(nrm_acc));
        w[i].rstd = (nrm_acc *)scratch(g, C * sizeof(nrm_acc));
        w[i].stats = (nrm_stats *)scratch(g, C * sizeof(nrm_stats));
        w[i].sums = (nrm_sums *)scratch(g, C * sizeof(nrm_sums));
        w[i].mask = mask == NULL ? NULL : bytes + from * S;
    }
    return w;
}

static int sync_batchnorm(golden *g)
{
    const size_t count = size(g, "workers"), C = size(g, "C");
    nrm_stats *all = (nrm_stats *)scratch(g, C * sizeof *all);
    nrm_sums *sums = (nrm_sums *)scratch(g, C * sizeof *sums);
    layer_call *w = workers_of(g, count);
    size_t i, c;
    int rc = NRM_OK;
    for (i = 0; i < count; i++) {
        OK(call_layer(CALL_STATS_UPDATE, &w[i]));
        OK(nrm_stats_merge(all, w[i].stats, C));
    }
    for (i = 0; i < count && rc == NRM_OK; i++) {
        w[i].stats = all;
        rc = call_layer(g->function, &w[i]);
        CHECK(memcmp(w[i].running->mean, w[0].running->mean, C * sizeof(nrm_real)) == 0);
        CHECK(memcmp(w[i].running->var, w[0].running->var, C * sizeof(nrm_real)) == 0);
    }
    keep_running(g, w[0].running, 0, C);
    for (i = 0; i < count && rc == NRM_OK; i++) {
        rc = call_layer(CALL_SYNC_SUMS, &w[i]);
        for (c = 0; c < C; c++) {
            sums[c].dy += w[i].sums[c].dy;
            sums[c].dy_xhat += w[i].sums[c].dy_xhat;
        }
    }
    for (i = 0; i < count && rc == NRM_OK; i++) {
        w[i].sums = sums;
        rc = call_layer(CALL_SYNC_BACK, &w[i]);
    }
    return rc;
}

/* ---- a recurrent layer ----------------------------------------------------------------------- */

/* One set of running statistics for each step, on the arrays of the case. */
static nrm_running *running_of_steps(golden *g)
{
    const size_t T = size(g, "T"), H = size(g, "H");
    nrm_real *means = reals(g, "running_mean"), *vars = reals(g, "running_var");
    nrm_running *running = (nrm_running *)scratch(g, T * sizeof *running);
    size_t t;
    if (means == NULL) return NULL;
    for (t = 0; t < T; t++) {
        running[t].mean = means + t * H;
        running[t].var = vars + t * H;
        running[t].new_weight = real(g, "new_weight");
    }
    return running;
}

static nrm_rnn rnn_of(golden *g)
{
    nrm_rnn r;
    memset(&r, 0, sizeof r);
    r.T = size(g, "T");
    r.N = size(g, "N");
    r.in = size(g, "in");
    r.H = size(g, "H");
    r.norm = choice(g, "norm");
    r.activation = choice(g, "activation");
    r.eps = real(g, "eps");
    r.Wx = reals(g, "Wx");
    r.Wh = reals(g, "Wh");
    r.gamma = reals(g, "gamma");
    r.beta = reals(g, "beta");
    r.running = running_of_steps(g);
    return r;
}

static int rnn(golden *g)
{
    const nrm_rnn r = rnn_of(g);
    const int mode = choice(g, "mode");
    const size_t step = r.N * r.H, bytes = r.T * step * sizeof(nrm_real);
    const size_t statistics = r.T * (r.N > r.H ? r.N : r.H);
    nrm_real *h = (nrm_real *)scratch(g, bytes + step * sizeof *h);
    nrm_real *a = (nrm_real *)scratch(g, bytes), *da = (nrm_real *)scratch(g, bytes);
    nrm_acc *mean = r.norm == NRM_NO_NORM ? NULL : saved(g, "mean", statistics);
    nrm_acc *rstd = r.norm == NRM_NO_NORM ? NULL : saved(g, "rstd", statistics);
    nrm_rnn_grads grads;
    int rc;
    memcpy(h, reals(g, "h0"), step * sizeof *h);
    rc = nrm_rnn_forward(h, a, mean, rstd, reals(g, "x"), &r, mode);
    memcpy(wanted(g, "h"), h + step, bytes);
    if (r.running != NULL && mode == NRM_TRAIN) {
        memcpy(wanted(g, "running_means"), r.running->mean, r.T * r.H * sizeof *h);
        memcpy(wanted(g, "running_vars"), r.running->var, r.T * r.H * sizeof *h);
    }
    if (rc != NRM_OK || mode == NRM_INFER) return rc;
    grads.dWx = wanted(g, "dWx");
    grads.dWh = wanted(g, "dWh");
    grads.dgamma = wanted(g, "dgamma");
    grads.dbeta = wanted(g, "dbeta");
    memcpy(wanted(g, "dh_total"), reals(g, "dh"), bytes + step * sizeof *h);
    return nrm_rnn_backward(wanted(g, "dh_total"), wanted(g, "dx"), &grads, da, h, a, mean, rstd,
                            reals(g, "x"), &r, mode);
}

/* ---- weights --------------------------------------------------------------------------------- */

/* Folding, the linear layer with what it gives, and the way back. */
static int fold(golden *g)
{
    const size_t outer = size(g, "outer"), C = size(g, "C"), inner = size(g, "inner");
    const nrm_real *x = reals(g, "x"), *gamma = reals(g, "gamma"), *beta = reals(g, "beta");
    const nrm_real eps = real(g, "eps");
    nrm_real *W = wanted(g, "W_out"), *b = wanted(g, "b_out");
    nrm_running running;
    int rc;
    memset(&running, 0, sizeof running);
    running.mean = reals(g, "running_mean");
    running.var = reals(g, "running_var");
    rc = nrm_batchnorm_fold(W, b, reals(g, "W"), reals(g, "b"), &running, gamma, beta, eps, outer,
                            C, inner);
    if (rc == NRM_OK && x != NULL)
        rc = nrm_linear_forward(wanted(g, "y"), x, W, b, golden_find(g, "x", 0)->count / outer,
                                outer, C);
    if (rc != NRM_OK) return rc;
    batchnorm_unfold(wanted(g, "W_back"), wanted(g, "b_back"), W, b, &running, gamma, beta, eps,
                     outer, C, inner);
    return NRM_OK;
}

/* ---- networks in training -------------------------------------------------------------------- */

static nrm_mlp *network_of(golden *g, nrm_mlp_spec spec)
{
    const size_t bytes = nrm_mlp_bytes(&spec);
    nrm_mlp *net = NULL;
    OK(nrm_mlp_init(&net, scratch(g, bytes), bytes, &spec));
    if (net == NULL) golden_fatal("no network for", g->title);
    CHECK_INT(net->n_params, golden_find(g, "params", 0)->count);
    memcpy(net->params, reals(g, "params"), net->n_params * sizeof *net->params);
    return net;
}

static nrm_mlp_spec optimizer_spec(golden *g)
{
    nrm_mlp_spec spec = nrm_mlp_defaults();
    spec.optimizer = choice(g, "optimizer");
    spec.lr = real(g, "lr");
    spec.heavy_ball = real(g, "heavy_ball");
    spec.adam_eps = real(g, "adam_eps");
    return spec;
}

/* Steps down given gradients, with a network that has as many parameters. */
static int optimizer(golden *g)
{
    const size_t P = golden_find(g, "params", 0)->count, steps = golden_find(g, "steps", 1)->count;
    nrm_mlp_spec spec = optimizer_spec(g);
    nrm_mlp_layer layer;
    nrm_mlp *net;
    size_t t;
    int rc = NRM_OK;
    memset(&layer, 0, sizeof layer);
    layer.width = P;
    spec.inputs = spec.layers = spec.max_batch = 1;
    spec.layer = &layer;
    net = network_of(g, spec);
    for (t = 0; t < steps / P && rc == NRM_OK; t++) {
        memcpy(net->grads, reals(g, "grads") + t * P, P * sizeof *net->grads);
        rc = nrm_mlp_step(net);
        memcpy(wanted(g, "steps") + t * P, net->params, P * sizeof *net->params);
    }
    return rc;
}

/* inputs - width1 - width2 - classes, as tests/parity/layers.py has it. */
static nrm_mlp *mlp_of(golden *g)
{
    nrm_mlp_spec spec = optimizer_spec(g);
    nrm_mlp_layer layer[3];
    size_t l;
    memset(layer, 0, sizeof layer);
    layer[0].width = size(g, "width1");
    layer[1].width = size(g, "width2");
    layer[2].width = size(g, "classes");
    for (l = 0; l < 2; l++) {
        layer[l].norm = choice(g, "norm");
        layer[l].activation = choice(g, "activation");
        layer[l].groups = layer[l].norm == NRM_GROUP_NORM ? size(g, "G") : 0;
        layer[l].bias = layer[l].norm == NRM_NO_NORM;
    }
    layer[2].bias = 1;
    spec.inputs = size(g, "inputs");
    spec.layers = 3;
    spec.layer = layer;
    spec.max_batch = size(g, "N");
    spec.eps = real(g, "eps");
    spec.new_weight = real(g, "new_weight");
    spec.r_max = real(g, "r_max");
    spec.d_max = real(g, "d_max");
    return network_of(g, spec);
}

/* Running statistics of all layers that have them, one after the other. */
static void keep_all_running(golden *g, const nrm_mlp *net)
{
    nrm_real *means = wanted(g, "running_means"), *vars = wanted(g, "running_vars");
    size_t l, at = 0, i;
    for (l = 0; l < net->spec.layers && means != NULL; l++) {
        const nrm_mlp_state *s = &net->state[l];
        for (i = 0; s->running.mean != NULL && i < s->shape.width; i++, at++) {
            means[at] = s->running.mean[i];
            vars[at] = s->running.var[i];
        }
    }
}

static int mlp(golden *g)
{
    const size_t N = size(g, "N"), batches = size(g, "batches"), steps = size(g, "steps");
    const nrm_real *x = reals(g, "x");
    const int *labels = ints(g, "labels");
    nrm_mlp *net = mlp_of(g);
    size_t t;
    int rc = NRM_OK;
    for (t = 0; t < steps && rc == NRM_OK; t++) {
        const size_t row = t % batches * N;
        rc = nrm_mlp_train_step(net, wanted_accs(g, "losses") + t, x + row * net->spec.inputs,
                                labels + row, N);
    }
    memcpy(wanted(g, "params"), net->params, net->n_params * sizeof *net->params);
    keep_all_running(g, net);
    if (rc == NRM_OK) rc = nrm_mlp_forward(net, x, N, NRM_INFER);
    memcpy(wanted(g, "logits"), net->logits, N * size(g, "classes") * sizeof *net->logits);
    return rc;
}

/* ---- the cases ------------------------------------------------------------------------------- */

static const struct {
    const char *layer;
    int (*run)(golden *g);
    int function;
} layers[] = {
    {"batchnorm", of_batches, CALL_BATCHNORM},
    {"noisy_batchnorm", noisy_batchnorm, CALL_NOISY},
    {"sync_batchnorm", sync_batchnorm, CALL_SYNC},
    {"batchrenorm", of_batches, CALL_RENORM},
    {"lp_batchnorm", of_batches, CALL_LP},
    {"layernorm", one_batch, CALL_LAYERNORM},
    {"layernorm_std", layernorm_std, 0},
    {"rmsnorm", one_batch, CALL_RMSNORM},
    {"groupnorm", one_batch, CALL_GROUPNORM},
    {"instancenorm", one_batch, CALL_GROUPNORM},
    {"rnn", rnn, 0},
    {"weightnorm", one_batch, CALL_WEIGHTNORM},
    {"fold", fold, 0},
    {"linear", one_batch, CALL_LINEAR},
    {"activation", one_batch, CALL_ACTIVATION},
    {"cross_entropy", one_batch, CALL_CROSS_ENTROPY},
    {"optimizer", optimizer, 0},
    {"mlp", mlp, 0},
};

static int verbose;

static void tell(golden *g)
{
    const golden_array *drift = golden_find(g, "drift", 0);
    printf("%-16s %-42s %8.1e %-8.8s", g->layer, g->title, g->error, g->worst);
    if (drift != NULL && sizeof(nrm_real) == sizeof(float)) printf(" drift %.1e", drift->value[0]);
    putchar('\n');
}

static void run_case(golden *g)
{
    size_t i;
    if (sizeof(nrm_real) == sizeof(float) && golden_find(g, "kinks", 0) != NULL) return;
    test_bad = 0;
    for (i = 0; i < sizeof layers / sizeof layers[0]; i++)
        if (strcmp(layers[i].layer, g->layer) == 0) break;
    if (i == sizeof layers / sizeof layers[0]) golden_fatal("unknown layer", g->layer);
    g->function = layers[i].function;
    OK(layers[i].run(g));
    golden_compare(g);
    if (verbose) tell(g);
    if (test_bad > 0) printf("FAILED %s, %s\n", g->layer, g->title);
    test_bad > 0 ? test_failed++ : test_passed++;
}

static void run_file(const char *path)
{
    FILE *file = fopen(path, "r");
    golden g;
    int cases = 0;
    if (file == NULL) golden_fatal("cannot read", path);
    for (; golden_read(file, &g); cases++) {
        run_case(&g);
        golden_release(&g);
    }
    if (cases == 0) golden_fatal("no case in", path);
    fclose(file);
}

int main(int argc, char **argv)
{
    static const char *const files[] = {
        "batchnorm", "noisy", "sync", "renorm",     "lp",     "layernorm",
        "groupnorm", "rnn",   "fold", "weightnorm", "linear", "training",
    };
    char path[64];
    size_t i;
    int a = 1;
    if (a < argc && strcmp(argv[a], "-v") == 0) {
        verbose = 1;
        a++;
    }
    for (; a < argc; a++) run_file(argv[a]);
    if (argc - verbose == 1)
        for (i = 0; i < sizeof files / sizeof files[0]; i++) {
            sprintf(path, "tests/expected/torch_%s.txt", files[i]);
            run_file(path);
        }
    return test_report("golden");
}
