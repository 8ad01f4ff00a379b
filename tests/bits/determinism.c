/* determinism.c - one hash per piece of normlayers.h: the norm layers in all modes and shapes, the
   functions, the streams of random numbers, and the training of small networks with each norm.

   tests/bits/determinism.sh builds this program in many ways and compares its lines with those of
   tests/expected/golden.txt. A line is

       class name hash

   and on file there is a hash for each type: f32, f64 (NRM_DOUBLE) and acc32 (NRM_ACC=float). The
   class says what the header promises: `exact` lines are the same in every build; `train` lines
   contain matrix products and are the same in every build without fused multiply-add. The name
   spells out the case: layer, mode (train, if nothing is said), sizes, what the data are like, what
   was left out. The hash is FNV-1a over all results, each number from its lowest byte on, so that
   the order of bytes in memory does not matter. All NaNs count as one, for which NaN it is is
   nobody's promise; where they are is one.

   The products have lines of their own (class `train`), so that a difference in training can be
   told from one in a product.

   With -DNRM_OPENMP the header shares its work among threads, and the lines have to stay the same.
   With -DSEE_THREADS besides, and -finstrument-functions, the program also watches who works: it
   fails if a large layer was not shared, or a small one was. See tests/bits/threads.sh. */
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../layers/call.h"
#include "../layers/variants.h"

enum { POOL = 65521, MOST = 1100000, MOST_PARAMS = 8192 };

static nrm_real pool[POOL]; /* standard normal numbers, from which all data are taken */
static nrm_real x[MOST], y[MOST], dy[MOST], dx[MOST], scale[MOST];
static nrm_real gamma_[MOST_PARAMS], beta_[MOST_PARAMS], dgamma[MOST_PARAMS], dbeta[MOST_PARAMS];
static nrm_real run_mean[MOST_PARAMS], run_var[MOST_PARAMS];
static nrm_acc mean[MOST_PARAMS], rstd[MOST_PARAMS], ratio[MOST_PARAMS], offset[MOST_PARAMS];

/* ---- who works ------------------------------------------------------------------------------- */

enum { SHARED_FROM = 32768 }; /* numbers: what the header says in "Threads" */

#ifdef SEE_THREADS
#include <omp.h>
#define NOT_SEEN __attribute__((no_instrument_function))
enum { THREADS = 64, AT_WORK = 4 };   /* who has no work enters the parallel region, and no more */
static unsigned long entered[THREADS]; /* functions that each thread has entered in parallel      */

NOT_SEEN void __cyg_profile_func_enter(void *function, void *from);
NOT_SEEN void __cyg_profile_func_exit(void *function, void *from);

/* The compiler calls these two where a function of this file, the header's included, begins and
   ends. */
void __cyg_profile_func_enter(void *function, void *from)
{
    (void)function;
    (void)from;
    if (!omp_in_parallel()) return;
    entered[omp_get_thread_num() % THREADS]++;
}
void __cyg_profile_func_exit(void *function, void *from)
{
    (void)function;
    (void)from;
}

/* After a call of so many numbers: was it shared if it should have been? */
static void look(const char *name, const char *pass, size_t numbers)
{
    const int should = numbers >= SHARED_FROM && omp_get_max_threads() > 1;
    int i, n = 0;
    for (i = 0; i < THREADS; i++) n += entered[i] > AT_WORK;
    memset(entered, 0, sizeof entered);
    if (should ? n >= 2 : n == 0) return;
    fprintf(stderr, "determinism: %s, %s: %d threads at work on %lu numbers\n", name, pass, n,
            (unsigned long)numbers);
    exit(1);
}
#else
static void look(const char *name, const char *pass, size_t numbers)
{
    (void)name;
    (void)pass;
    (void)numbers;
}
#endif

/* ---- hashes ---------------------------------------------------------------------------------- */

static uint64_t hash;

static void start(void)
{
    hash = 14695981039346656037u;
}

static void add(uint64_t value, int bytes)
{
    for (; bytes > 0; bytes--, value >>= 8) hash = (hash ^ (value & 255)) * 1099511628211u;
}

static void add_float(float v)
{
    uint32_t bits = 0x7fc00000u;
    if (v == v) memcpy(&bits, &v, sizeof bits);
    add(bits, 4);
}

static void add_double(double v)
{
    uint64_t bits = (uint64_t)0x7ff80000u << 32;
    if (v == v) memcpy(&bits, &v, sizeof bits);
    add(bits, 8);
}

static void add_real(nrm_real v)
{
    if (sizeof v == sizeof(float))
        add_float((float)v);
    else
        add_double((double)v);
}

static void add_acc(nrm_acc v)
{
    if (sizeof v == sizeof(float))
        add_float((float)v);
    else
        add_double((double)v);
}

static void add_reals(const nrm_real *a, size_t n)
{
    size_t i;
    for (i = 0; i < n; i++) add_real(a[i]);
}

static void add_accs(const nrm_acc *a, size_t n)
{
    size_t i;
    for (i = 0; i < n; i++) add_acc(a[i]);
}

static void print(const char *kind, const char *name)
{
    printf("%s %s %08lx%08lx\n", kind, name, (unsigned long)(hash >> 32),
           (unsigned long)(hash & 0xffffffffu));
}

/* A refusal ends the program; a statistic that is not finite is a result like others. */
static void take(int rc)
{
    add((uint64_t)rc, 1);
    if (rc >= 0) return;
    fprintf(stderr, "determinism: %s\n", nrm_strerror(rc));
    exit(1);
}

/* ---- data ------------------------------------------------------------------------------------ */

/* Normal numbers by the polar method and a logarithm that stays as it is: with the header's own the
   data, and all lines, would change with its last bit. Nothing volatile is fused. */
static nrm_acc log_of_data(nrm_acc of)
{
    volatile nrm_acc m, s, product, sum = 0;
    int e, n;
    m = (nrm_acc)(2 * frexp((double)of, &e));
    e--;
    if (m > (nrm_acc)1.4142135623730951) {
        m /= 2;
        e++;
    }
    s = (m - 1) / (m + 1);
    for (n = 21; n >= 1; n -= 2) {
        product = s * s;
        product *= sum;
        sum = (nrm_acc)(1.0 / n) + product;
    }
    product = 2 * s;
    product *= sum;
    sum = (nrm_acc)e * (nrm_acc)1.4286068203094172e-6;
    sum += product;
    product = (nrm_acc)e * (nrm_acc)0.69314575195312500;
    return product + sum;
}

static void fill_pool(void)
{
    nrm_rng rng;
    size_t i;
    nrm_rng_seed(&rng, 1, 0);
    for (i = 0; i < POOL; i += 2) {
        volatile nrm_acc a, b, w, square, stretch;
        do {
            a = (nrm_acc)nrm_rng_u32(&rng) / (nrm_acc)2147483648u - 1;
            b = (nrm_acc)nrm_rng_u32(&rng) / (nrm_acc)2147483648u - 1;
            w = a * a;
            square = b * b;
            w += square;
        } while (w >= 1 || w <= 0);
        stretch = (nrm_acc)sqrt((double)(-2 * log_of_data(w) / w));
        pool[i] = (nrm_real)(a * stretch);
        if (i + 1 < POOL) pool[i + 1] = (nrm_real)(b * stretch);
    }
}

/* Each array gets its own stretch of the pool. There may be sums here, and products with powers of
   two, which are exact; a product and a sum that round might be fused. */
static void draw(nrm_real *a, size_t n, nrm_real shift, size_t from)
{
    size_t i;
    for (i = 0; i < n; i++) a[i] = shift + pool[(from + i) % POOL];
}

static void draw_parameters(size_t n)
{
    draw(gamma_, n, 1, 20000);
    draw(beta_, n, 0, 30000);
    draw(dgamma, n, 0, 40000); /* what was gathered before */
    draw(dbeta, n, 0, 50000);
}

/* ---- the norms ------------------------------------------------------------------------------- */

/* What a line is made of. > is the forward pass, < the backward one, and the letters are arrays, as
   call_array has them: added to the hash in this order. */
static const struct {
    int function;
    const char *name, *of;
    int by_row; /* is a row normalized, or a channel? */
} layers[] = {
    {CALL_BATCHNORM, "batch", ">ymruv<XGB", 0},
    {CALL_NOISY, "noisy", ">yfmruv<XGB", 0},
    {CALL_RENORM, "renorm", "><yqomruvXGB", 0},
    {CALL_LP, "lp", "><yXmruvGB", 0},
    {CALL_SYNC, "sync", "ymruvXGB", 0},
    {CALL_LAYERNORM, "layer", ">ymr<XGB", 1},
    {CALL_RMSNORM, "rms", "><yrXGB", 1},
    {CALL_GROUPNORM, "group", "><yrmXGB", 1},
    {CALL_GROUPNORM, "instance", "><yrmXGB", 1}, /* a group each channel */
};

/* The words that a name is made of, besides its layer and its sizes. */
static const char *const mode_name[] = {"train", "infer", "frozen", NULL};

enum data { PLAIN, FAR_OFF, CONSTANT, OUTLIER, LARGE, TINY, SPOILT };
static const char *const data_name[] = {"plain", "far", "constant", "outlier", "large", "tiny",
                                        "spoilt", NULL};

enum option { /* what is left out or otherwise; bits */
    NO_GAMMA = 1,
    NO_BETA = 2,
    NO_SUMS = 4,     /* neither dgamma nor dbeta wanted */
    UNTRACKED = 8,   /* no running statistics           */
    CUMULATIVE = 16, /* their plain average             */
    BIASED = 32,
    IN_PLACE = 64, /* dx over dy; in infer mode y over x */
    MASKED = 128
};
static const char *const option_name[] = {"nogamma", "nobeta", "nosums", "untracked", "cumulative",
                                          "biased", "inplace", "masked", NULL};

typedef struct norm_case {
    const char *name;
    size_t layer, N, C, S; /* of layer norm, C is D */
    int mode, data, options;
    int more; /* groups, or p */
} norm_case;

/* The place of the first n characters in a list of words; -1 if they are no word of it. */
static int place_of(const char *text, size_t n, const char *const *words)
{
    int i;
    for (i = 0; words[i] != NULL; i++)
        if (strlen(words[i]) == n && memcmp(words[i], text, n) == 0) return i;
    return -1;
}

/* A name is words with _ between: the layer, with its p if it has one, then mode, sizes, data and
   options as far as they are not the usual ones. */
static norm_case case_of(const char *name)
{
    unsigned long N = 0, C = 0, S = 1;
    size_t n = strcspn(name, "_0123456789");
    const char *word = name + n;
    norm_case k;
    memset(&k, 0, sizeof k);
    k.name = name;
    while (strlen(layers[k.layer].name) != n || memcmp(layers[k.layer].name, name, n) != 0)
        k.layer++;
    k.more = atoi(word);
    for (word += strcspn(word, "_"); *word; word += n) {
        n = strcspn(++word, "_");
        if (place_of(word, n, mode_name) >= 0)
            k.mode = place_of(word, n, mode_name);
        else if (place_of(word, n, data_name) >= 0)
            k.data = place_of(word, n, data_name);
        else if (place_of(word, n, option_name) >= 0)
            k.options |= 1 << place_of(word, n, option_name);
        else if (word[n - 1] == 's')
            k.more = atoi(word); /* 8groups */
        else if (sscanf(word, "%lux%lux%lu", &N, &C, &S) < 2)
            exit(1);
    }
    k.N = N, k.C = C, k.S = S;
    if (strcmp(layers[k.layer].name, "instance") == 0) k.more = (int)C;
    return k;
}

static size_t numbers_of(const norm_case *k)
{
    return k->N * k->C * k->S;
}

/* 2^k. */
static nrm_real power(int k)
{
    nrm_real p = 1;
    for (; k > 0; k--) p *= 2;
    for (; k < 0; k++) p /= 2;
    return p;
}

/* x as the case wants it. A group is what is normalized together. */
static void draw_x(const norm_case *k)
{
    const nrm_real large = power(100), tiny = power(-66); /* their squares are no normal floats */
    const int by_row = layers[k->layer].by_row;
    size_t i;
    draw(x, numbers_of(k), k->data == FAR_OFF ? 1000 : 0, 0);
    for (i = 0; i < numbers_of(k); i++) {
        const size_t n = i / k->S / k->C, c = i / k->S % k->C, s = i % k->S;
        const int first = by_row ? c == 0 : n == 0 && s == 0;
        if (k->data == CONSTANT) x[i] = 3 + pool[by_row ? n : c];
        if (k->data == OUTLIER && first) x[i] += 8192;
        if (k->data == LARGE) x[i] *= large;
        if (k->data == TINY) x[i] *= tiny;
    }
    if (k->data == SPOILT) { /* a NaN in one group, an infinity in another */
        const nrm_real infinite = power(1000) * power(1000);
        x[numbers_of(k) / 2] = infinite - infinite;
        x[numbers_of(k) - 1] = infinite;
    }
}

static void start_running(nrm_running *running, const norm_case *k)
{
    size_t c;
    memset(running, 0, sizeof *running);
    running->mean = run_mean;
    running->var = run_var;
    running->new_weight = (nrm_real)0.1;
    running->cumulative = (k->options & CUMULATIVE) != 0;
    running->biased = (k->options & BIASED) != 0;
    running->batches = 2;
    for (c = 0; c < k->C; c++) {
        run_mean[c] = pool[c];
        run_var[c] = gamma_[c] < 0 ? -gamma_[c] : gamma_[c];
    }
}

/* All arguments of a case, its data drawn. */
static layer_call call_of(const norm_case *k, nrm_running *running, nrm_rng *rng)
{
    static nrm_noise noise;
    layer_call c;
    noise = nrm_noise_paper();
    draw_parameters(k->C);
    draw_x(k);
    draw(dy, numbers_of(k), 0, 10000);
    start_running(running, k);
    nrm_rng_seed(rng, 5, 6);
    memset(&c, 0, sizeof c);
    c.x = x, c.y = y, c.dy = dy, c.dx = dx, c.scale = scale;
    if (k->options & IN_PLACE) c.dx = dy;
    if (k->options & IN_PLACE && k->mode == NRM_INFER) c.y = x;
    if (!(k->options & NO_GAMMA)) c.gamma = gamma_;
    if (!(k->options & NO_BETA)) c.beta = beta_;
    if (!(k->options & NO_SUMS)) c.dgamma = dgamma, c.dbeta = dbeta;
    if (!(k->options & UNTRACKED)) c.running = running;
    c.mean = mean, c.rstd = rstd, c.ratio = ratio, c.offset = offset;
    c.noise = &noise, c.rng = rng;
    c.N = k->N, c.C = k->C, c.S = k->S, c.G = (size_t)k->more;
    c.mode = k->mode, c.p = k->more, c.eps = NRM_EPS;
    c.r_max = (nrm_real)1.5, c.d_max = (nrm_real)0.75; /* in reach of some channels */
    return c;
}

static void passes_and_results(const norm_case *k, const layer_call *c)
{
    const int function = layers[k->layer].function;
    const size_t numbers = numbers_of(k), C = k->C;
    const size_t groups = layers[k->layer].by_row ? k->N * (k->more ? (size_t)k->more : 1) : C;
    const int drawn = k->mode == NRM_TRAIN; /* there are factors and limits in this mode alone */
    const char *of;
    for (of = layers[k->layer].of; *of && (*of != '<' || k->mode != NRM_INFER); of++)
        switch (*of) {
        case '>':
            take(call_layer(function, c));
            look(k->name, "forward", numbers);
            break;
        case '<':
            take(call_layer(function + 1, c));
            look(k->name, "backward", numbers);
            break;
        case 'y': add_reals(c->y, numbers); break;
        case 'f': add_reals(scale, drawn ? numbers : 0); break;
        case 'm': add_accs(mean, groups); break;
        case 'r': add_accs(rstd, groups); break;
        case 'q': add_accs(ratio, drawn ? C : 0); break;
        case 'o': add_accs(offset, drawn ? C : 0); break;
        case 'u': add_reals(run_mean, C); break;
        case 'v': add_reals(run_var, C); break;
        case 'X': add_reals(c->dx, numbers); break;
        case 'G': add_reals(dgamma, C); break;
        default: add_reals(dbeta, C); /* B */
        }
}

static void norm(const char *name)
{
    const norm_case k = case_of(name);
    nrm_running running;
    nrm_rng rng;
    const layer_call c = call_of(&k, &running, &rng);
    start();
    passes_and_results(&k, &c);
    print("exact", name);
}

/* The widths straddle vectors, lanes and the 1024 channels that are worked on together; N the 32
   rows of a block, and S the 1024 values of one; the last case of each layer has so many numbers
   that it fetches ahead. */
static const char norms[] =
    "batch_2x1 batch_33x1_far_nobeta batch_100x7_cumulative batch_33x70 batch_33x70_far_untracked "
    "batch_33x70_constant batch_33x70_outlier_biased batch_33x70_large batch_33x70_tiny_nogamma "
    "batch_33x70_spoilt batch_33x70_spoilt_cumulative batch_100x1030_nogamma_nobeta "
    "batch_33x1030_outlier_cumulative_inplace batch_64x1030_far_nosums batch_infer_1x7 "
    "batch_infer_33x1030_inplace batch_frozen_1x70 batch_frozen_100x1030_far_nogamma batch_1x3x2 "
    "batch_5x6x3_far_cumulative_biased batch_5x6x51 batch_5x6x51_constant_untracked "
    "batch_5x6x51_outlier batch_5x6x51_large_nobeta batch_5x6x51_tiny batch_5x6x51_spoilt "
    "batch_33x6x196_far_cumulative batch_3x4x3000_inplace batch_3x4x3000_outlier_nogamma_nobeta "
    "batch_infer_33x6x196_nogamma batch_frozen_5x6x51_nosums batch_frozen_3x4x3000_far "
    "batch_9x39x3000_far "
    "noisy_33x70 noisy_5x6x51_far_untracked noisy_33x1030_inplace noisy_frozen_33x70 "
    "noisy_infer_33x70 "
    "layer_33x1 layer_70x9_nobeta layer_70x9_far layer_70x9_spoilt layer_1x130 "
    "layer_33x130_constant layer_33x130_outlier_nogamma layer_33x130_large layer_33x130_tiny "
    "layer_300x130_inplace layer_100x1000_far_nosums layer_5x1500_nogamma_nobeta "
    "layer_33x1500_outlier_inplace layer_5x1500_constant layer_5x1500_spoilt layer_3x5000_large "
    "layer_7x5000_far layer_211x5000";

static void run_all(void (*run)(const char *name), const char *names)
{
    for (; *names; names += strspn(names, " ")) {
        char name[64] = "";
        strncat(name, names, strcspn(names, " "));
        run(name);
        names += strlen(name);
    }
}

/* ---- noise, activations, loss, random numbers ------------------------------------------------ */

static void activation(const char *name, int kind)
{
    enum { COUNT = 40001 };
    size_t i;
    start();
    draw(x, COUNT, 0, 0);
    draw(dy, COUNT, 0, 10000);
    for (i = 0; i < COUNT; i++) x[i] *= (nrm_real)(i % 64); /* up to saturation */
    take(nrm_activation_forward(y, x, kind, COUNT));
    take(nrm_activation_backward(dx, dy, y, kind, COUNT));
    add_reals(y, COUNT);
    add_reals(dx, COUNT);
    print("exact", name);
}

/* Softmax is where e^x and ln x are used. */
static void cross_entropy(void)
{
    enum { N = 512, C = 10, COUNT = N * C };
    static int labels[N], best[N];
    nrm_acc loss, accuracy;
    size_t i, c;
    start();
    draw(x, COUNT, 0, 0);
    for (i = 0; i < COUNT; i++) x[i] *= (nrm_real)(i / C % 50);
    for (i = 0; i < N; i++) labels[i] = (int)(i * 7 % C);
    take(nrm_cross_entropy_forward(&loss, y, x, labels, N, C));
    take(nrm_cross_entropy_backward(dx, y, labels, N, C));
    take(nrm_accuracy(&accuracy, x, labels, N, C));
    for (i = 0; i < N; i++)
        for (c = 1; c < C; c++)
            if (x[i * C + c] > x[i * C + (size_t)best[i]]) best[i] = (int)c;
    take(NRM_OK);
    add_acc(loss);
    add_acc(accuracy);
    add_reals(y, COUNT);
    add_reals(dx, COUNT);
    for (i = 0; i < N; i++) add((uint64_t)best[i], 4);
    print("exact", "cross_entropy");
}

static void random_numbers(void)
{
    nrm_rng rng;
    static nrm_real v[10000];
    size_t index[1000], i;
    start();
    nrm_rng_seed(&rng, 11, 12);
    for (i = 0; i < 1000; i++) add(nrm_rng_u32(&rng), 4);
    for (i = 0; i < 1000; i++) add(nrm_rng_below(&rng, (uint32_t)(3 * i + 1)), 4);
    for (i = 0; i < 1000; i++) index[i] = i;
    take(nrm_rng_shuffle(&rng, index, 1000));
    for (i = 0; i < 1000; i++) add(index[i], 4);
    print("exact", "rng_integers");
    start();
    nrm_rng_uniform(&rng, v, 10000);
    for (i = 0; i < 10000; i++) add_real(v[i]);
    nrm_rng_normal(&rng, v, 10000);
    for (i = 0; i < 10000; i++) add_real(v[i]);
    print("exact", "rng_reals");
}

/* ---- the gradient checker -------------------------------------------------------------------- */

enum { CHECKED_ROWS = 3, CHECKED_WIDTH = 5, CHECKED = CHECKED_ROWS * CHECKED_WIDTH };

/* A sum, so that this file has no product that could be fused. */
static nrm_acc checked_loss(void *context)
{
    nrm_acc loss = 0;
    size_t i;
    (void)context;
    take(nrm_layernorm_forward(y, mean, rstd, x, gamma_, beta_, NRM_EPS, CHECKED_ROWS,
                               CHECKED_WIDTH));
    for (i = 0; i < CHECKED; i++) loss += (nrm_acc)(y[i] > 0 ? y[i] : 0);
    return loss;
}

static void gradcheck(void)
{
    nrm_gradcheck_group group[2];
    nrm_gradcheck_report report[2];
    size_t i;
    start();
    draw(x, CHECKED, 0, 0);
    draw_parameters(CHECKED_WIDTH);
    memset(dgamma, 0, sizeof dgamma);
    memset(dbeta, 0, sizeof dbeta);
    add_acc(checked_loss(NULL));
    for (i = 0; i < CHECKED; i++) dy[i] = y[i] > 0;
    take(nrm_layernorm_backward(dx, dgamma, dbeta, dy, x, mean, rstd, gamma_, CHECKED_ROWS,
                                CHECKED_WIDTH));
    memset(group, 0, sizeof group);
    group[0].theta = x;
    group[0].grad = dx;
    group[0].n = CHECKED;
    group[1].theta = gamma_;
    group[1].grad = dgamma;
    group[1].n = CHECKED_WIDTH;
    take(nrm_gradcheck(report, group, 2, checked_loss, NULL, NULL));
    for (i = 0; i < 2; i++) {
        add(report[i].checked, 4);
        add(report[i].kinks, 4);
        add(report[i].worst, 4);
        add_acc(report[i].analytic);
        add_acc(report[i].numeric);
        add_acc(report[i].error);
        add_acc(report[i].uncertainty);
    }
    print("exact", "gradcheck");
}

/* ---- products and training ------------------------------------------------------------------- */

static void linear(size_t N, size_t in, size_t out, int with_bias)
{
    static nrm_real W[360 * 360], dW[360 * 360];
    const size_t work = N * in / 64 * out; /* in a product, 64 steps count as one number */
    char name[64];
    start();
    draw(x, N * in, 0, 0);
    draw(W, in * out, 0, 25000);
    draw(dW, in * out, 0, 35000);
    draw_parameters(out);
    draw(dy, N * out, 0, 10000);
    snprintf(name, sizeof name, "linear_%lux%lux%lu%s", (unsigned long)N, (unsigned long)in,
             (unsigned long)out, with_bias ? "" : "_nobias");
    take(nrm_linear_forward(y, x, W, with_bias ? beta_ : NULL, N, in, out));
    look(name, "forward", work);
    take(nrm_linear_backward(dx, NULL, NULL, dy, x, W, N, in, out));
    look(name, "backward to dx", work);
    take(nrm_linear_backward(NULL, dW, with_bias ? dbeta : NULL, dy, x, W, N, in, out));
    look(name, "backward to dW", work);
    add_reals(y, N * out);
    add_reals(dx, N * in);
    add_reals(dW, in * out);
    add_reals(dbeta, out);
    print("train", name);
}

/* No tile, vector, lane or stretch of the depth divides these sizes; the last is large enough to be
   shared among threads. */
static void linears(void)
{
    linear(1, 1, 1, 1);
    linear(37, 61, 43, 1);
    linear(5, 350, 9, 0);
    linear(200, 7, 130, 1);
    linear(101, 351, 347, 1);
}

enum { CLASSES = 3, INPUTS = 12 };

typedef struct training {
    const char *name;
    int norm, norm_after, optimizer, init, gamma_init, cumulative;
    size_t batch, width;
    int steps;
} training;

static const training trainings[] = {
    {"plain_sgd", NRM_NO_NORM, 0, NRM_SGD, NRM_INIT_HE, NRM_GAMMA_ONE, 0, 30, 17, 20},
    {"plain_adam", NRM_NO_NORM, 0, NRM_ADAM, NRM_INIT_FAN_IN, NRM_GAMMA_ONE, 0, 30, 17, 20},
    {"batch_sgd", NRM_BATCH_NORM, 0, NRM_SGD, NRM_INIT_XAVIER, NRM_GAMMA_UNIFORM, 0, 30, 17, 20},
    {"batch_adam", NRM_BATCH_NORM, 1, NRM_ADAM, NRM_INIT_HE, NRM_GAMMA_ONE, 1, 30, 17, 20},
    {"layer_sgd", NRM_LAYER_NORM, 1, NRM_SGD, NRM_INIT_GAUSSIAN, NRM_GAMMA_ONE, 0, 30, 17, 20},
    {"layer_adam", NRM_LAYER_NORM, 0, NRM_ADAM, NRM_INIT_HE, NRM_GAMMA_ONE, 0, 30, 17, 20},
    {"noisy_adam", NRM_NOISY_BATCH_NORM, 1, NRM_ADAM, NRM_INIT_HE, NRM_GAMMA_ONE, 0, 30, 17, 20},
    {"batch_sgd_wide", NRM_BATCH_NORM, 0, NRM_SGD, NRM_INIT_HE, NRM_GAMMA_ONE, 0, 260, 131, 2},
    {"layer_adam_wide", NRM_LAYER_NORM, 0, NRM_ADAM, NRM_INIT_HE, NRM_GAMMA_ONE, 0, 260, 131, 2},
};

static void describe(nrm_mlp_spec *spec, nrm_mlp_layer *layer, const training *t)
{
    size_t i;
    memset(layer, 0, 3 * sizeof *layer);
    for (i = 0; i < 2; i++) {
        layer[i].width = t->width;
        layer[i].activation = i == 0 ? NRM_RELU : NRM_TANH;
        layer[i].norm = t->norm;
        layer[i].norm_after = t->norm_after;
        layer[i].bias = 1;
    }
    layer[2].width = CLASSES;
    layer[2].bias = 1;
    spec->inputs = INPUTS;
    spec->layers = 3;
    spec->layer = layer;
    spec->max_batch = t->batch;
    spec->init = t->init;
    spec->init_std = (nrm_real)0.3;
    spec->gamma_init = t->gamma_init;
    spec->cumulative = t->cumulative;
    spec->optimizer = t->optimizer;
    spec->lr = t->optimizer == NRM_ADAM ? (nrm_real)0.01 : (nrm_real)0.1;
    spec->heavy_ball = (nrm_real)0.9;
    spec->seed = 21;
}

/* Two lines: the parameters at the start, which no product has touched, and the training. */
static void train(const training *t)
{
    nrm_mlp_layer layer[3];
    nrm_mlp_spec spec = nrm_mlp_defaults();
    static int labels[512];
    nrm_mlp *net;
    nrm_acc loss = 0;
    void *block;
    char name[64];
    size_t i;
    int step;
    describe(&spec, layer, t);
    block = malloc(nrm_mlp_bytes(&spec));
    if (block == NULL) exit(1);
    start();
    take(nrm_mlp_init(&net, block, nrm_mlp_bytes(&spec), &spec));
    add_reals(net->params, net->n_params);
    snprintf(name, sizeof name, "init_%s", t->name);
    print("exact", name);
    start();
    draw(x, t->batch * INPUTS, 0, 0);
    for (i = 0; i < t->batch; i++) labels[i] = (x[i * INPUTS] > 0) + (x[i * INPUTS + 1] > 0);
    for (step = 0; step < t->steps; step++) {
        take(nrm_mlp_train_step(net, &loss, x, labels, t->batch));
        add_acc(loss);
    }
    look(t->name, "training", t->batch * t->width);
    add_reals(net->params, net->n_params);
    take(nrm_mlp_eval(net, &loss, NULL, x, labels, t->batch));
    add_acc(loss);
    snprintf(name, sizeof name, "train_%s", t->name);
    print("train", name);
    look(t->name, "evaluation", t->batch * t->width);
    free(block);
}

/* Batch norm folded into weights of both orders, and unfolded again. */
static void folding(const char *name, size_t outer, size_t C, size_t inner)
{
    const size_t count = outer * C * inner;
    norm_case k;
    nrm_running running;
    start();
    memset(&k, 0, sizeof k);
    k.C = C;
    draw_parameters(C);
    start_running(&running, &k);
    draw(x, count, 0, 7);
    draw(dy, C, 1, 70);
    take(nrm_batchnorm_fold(y, dx, x, dy, &running, gamma_, beta_, NRM_EPS, outer, C, inner));
    add_reals(y, count);
    add_reals(dx, C);
    batchnorm_unfold(y, dx, y, dx, &running, gamma_, beta_, NRM_EPS, outer, C, inner);
    take(NRM_OK);
    add_reals(y, count);
    add_reals(dx, C);
    print("exact", name);
}

/* ---- rows of other kinds --------------------------------------------------------------------- */

/* All ways through the backward pass: at most 1024 and at most 4096 sums beside dx, or the sums by
   themselves; bands of several examples, of one and of less; channels in runs, more than 1024 of
   them, runs of more than 1024. */
static const char other_rows[] =
    "group_5x6_2groups group_300x256_far_8groups group_33x2000_nobeta_100groups "
    "group_40x3999_outlier_inplace_3groups group_9x8000_80groups group_9x8000_nogamma_2groups "
    "group_5x6x3_3groups group_5x6x51_constant_3groups group_5x6x51_large_nogamma_2groups "
    "group_5x6x51_tiny_nosums_2groups group_5x6x51_spoilt_2groups "
    "group_33x64x49_far_inplace_8groups group_3x4x3000_outlier_nobeta_2groups "
    "group_33x1100x2_11groups instance_30x96x17_far instance_5x3x3000_outlier_inplace rms_70x9 "
    "rms_33x130_large rms_33x130_tiny_nogamma rms_33x130_spoilt rms_300x130_far_inplace "
    "rms_33x1500_outlier rms_7x5000_nosums rms_7x5000";

/* ---- statistics that merge, and batch renorm ------------------------------------------------- */

enum { MOST_SHARDS = 3 };

static unsigned char mask_[MOST_PARAMS];

/* Three shards, the second of no examples: their statistics, their sums, and what they make. */
static void merged(const char *name)
{
    const norm_case named = case_of(name), *k = &named;
    static nrm_stats part[MOST_PARAMS], stats[MOST_PARAMS];
    static nrm_sums some[MOST_PARAMS], sums[MOST_PARAMS];
    const size_t from[MOST_SHARDS + 1] = {0, k->N / 3, k->N / 3, k->N};
    nrm_running running;
    nrm_rng rng;
    layer_call all = call_of(k, &running, &rng), c = all;
    size_t i, n;
    int pass;
    start();
    for (i = 0; i < k->N * k->S; i++) mask_[i] = pool[(600 + i) % POOL] > (nrm_real)-0.5;
    memset(stats, 0, k->C * sizeof *stats);
    memset(sums, 0, k->C * sizeof *sums);
    for (pass = 0; pass < 3; pass++)
        for (i = 0; i < MOST_SHARDS; i++) {
            const size_t at = from[i] * k->C * k->S;
            c.N = from[i + 1] - from[i];
            c.x = all.x + at, c.y = all.y + at, c.dy = all.dy + at, c.dx = all.dx + at;
            c.mask = k->options & MASKED ? mask_ + from[i] * k->S : NULL;
            if (pass == 0) {
                memset(part, 0, k->C * sizeof *part);
                c.stats = part;
                take(call_layer(CALL_STATS_UPDATE, &c));
                c.stats = stats, c.from = part;
                take(call_layer(CALL_STATS_MERGE, &c));
            } else if (pass == 1) {
                start_running(&running, k);
                take(call_layer(CALL_SYNC, &c));
                c.sums = some;
                take(call_layer(CALL_SYNC_SUMS, &c));
                for (n = 0; n < k->C; n++) {
                    sums[n].dy += some[n].dy;
                    sums[n].dy_xhat += some[n].dy_xhat;
                }
            } else {
                c.sums = sums;
                take(call_layer(CALL_SYNC_BACK, &c));
            }
        }
    passes_and_results(k, &all);
    if (k->data != SPOILT) {
        take(NRM_OK);
        for (i = 0; i < k->C; i++) { /* ST.7 */
            run_mean[i] = (nrm_real)stats[i].mean;
            run_var[i] = (nrm_real)(stats[i].m2 / (stats[i].count - (running.biased ? 0 : 1)));
        }
        add_reals(run_mean, k->C);
        add_reals(run_var, k->C);
    }
    print("exact", name);
}

static const char merge_cases[] =
    "sync_33x70 sync_33x70_far_cumulative_masked sync_33x70_outlier_biased_masked "
    "sync_33x70_spoilt sync_15x6x51 sync_15x6x51_far_masked sync_15x6x51_tiny_masked";

static const char renorms[] =
    "renorm_100x7_cumulative renorm_100x1030 renorm_33x6x196_far_biased renorm_5x6x51_spoilt "
    "renorm_frozen_5x6x51";

/* ---- the recurrent layer --------------------------------------------------------------------- */

enum { STEPS = 9, SIDE_BY_SIDE = 5, SIGNALS = 7, UNITS = 37 };

/* Both passes; in train mode the running statistics of all steps too. */
static void recurrent(const char *name, int norm, int mode, int activation)
{
    const size_t rows = STEPS * SIDE_BY_SIDE, state = SIDE_BY_SIDE * UNITS;
    static nrm_real Wx[SIGNALS * UNITS], Wh[UNITS * UNITS], da[STEPS * SIDE_BY_SIDE * UNITS];
    static nrm_real dWx[SIGNALS * UNITS], dWh[UNITS * UNITS];
    nrm_running running[STEPS];
    nrm_rnn_grads grads;
    nrm_rnn rnn;
    size_t i;
    memset(&rnn, 0, sizeof rnn);
    memset(running, 0, sizeof running);
    draw(Wx, SIGNALS * UNITS, 0, 1000);
    draw(Wh, UNITS * UNITS, 0, 2000);
    draw(dWx, SIGNALS * UNITS, 0, 4000);
    draw(dWh, UNITS * UNITS, 0, 5000);
    for (i = 0; i < UNITS * UNITS; i++) Wh[i] *= power(-3); /* neither explodes nor dies */
    draw_parameters(UNITS);
    draw(run_mean, STEPS * UNITS, 0, 7000);
    for (i = 0; i < STEPS * UNITS; i++) run_var[i] = 1 + power(-(int)(i % 3));
    for (i = 0; i < STEPS; i++) {
        running[i].mean = run_mean + i * UNITS;
        running[i].var = run_var + i * UNITS;
        running[i].new_weight = (nrm_real)0.125;
    }
    rnn.T = STEPS;
    rnn.N = SIDE_BY_SIDE;
    rnn.in = SIGNALS;
    rnn.H = UNITS;
    rnn.norm = norm;
    rnn.activation = activation;
    rnn.eps = power(-17);
    rnn.Wx = Wx;
    rnn.Wh = Wh;
    rnn.gamma = gamma_;
    rnn.beta = beta_;
    rnn.running = running;
    grads.dWx = dWx;
    grads.dWh = dWh;
    grads.dgamma = dgamma;
    grads.dbeta = dbeta;
    draw(x, rows * SIGNALS, 0, 0);
    draw(y, state, 0, 9000); /* h[0] */
    draw(dy, rows * UNITS + state, 0, 10000);
    start();
    take(nrm_rnn_forward(y, scale, mean, rstd, x, &rnn, mode));
    add_reals(y, rows * UNITS + state);
    add_reals(run_mean, STEPS * UNITS);
    add_reals(run_var, STEPS * UNITS);
    look(name, "forward", state);
    take(nrm_rnn_backward(dy, dx, &grads, da, y, scale, mean, rstd, x, &rnn, mode));
    add_reals(dy, rows * UNITS + state);
    add_reals(dx, rows * SIGNALS);
    add_reals(dWx, SIGNALS * UNITS);
    add_reals(dWh, UNITS * UNITS);
    add_reals(dgamma, UNITS);
    add_reals(dbeta, UNITS);
    look(name, "backward", state);
    print("train", name);
}

static void recurrents(void)
{
    recurrent("rnn_plain_tanh", NRM_NO_NORM, NRM_TRAIN, NRM_TANH);
    recurrent("rnn_layernorm_tanh", NRM_LAYER_NORM, NRM_TRAIN, NRM_TANH);
    recurrent("rnn_layernorm_relu", NRM_LAYER_NORM, NRM_TRAIN, NRM_RELU);
    recurrent("rnn_batchnorm_train_sigmoid", NRM_BATCH_NORM, NRM_TRAIN, NRM_SIGMOID);
    recurrent("rnn_batchnorm_frozen_tanh", NRM_BATCH_NORM, NRM_FROZEN, NRM_TANH);
}

/* Both forms of each p: dense channels that straddle the 1024, and runs. */
static void lp_norms(void)
{
    static const char *const cases[] = {"33x70x1", "100x1030x1_far", "5x6x51", "33x6x196_far",
                                        "5x6x51_spoilt"};
    char name[64];
    int p, i;
    for (p = NRM_L1; p <= NRM_LINF; p++)
        for (i = 0; i < 10; i++) {
            snprintf(name, sizeof name, "lp%d_%s", p + i % 2 * NRM_CENTRED, cases[i / 2]);
            norm(name);
        }
}

static void weight_norm(size_t in, size_t out)
{
    char name[64];
    snprintf(name, sizeof name, "weightnorm_%dx%d", (int)in, (int)out);
    start();
    draw(x, in * out, 0, 0);
    draw(dy, in * out, 0, 10000);
    draw_parameters(out);
    x[0] *= power(-90); /* a column is long, and one may be short */
    x[out - 1] *= power(90);
    take(nrm_weightnorm_forward(y, mean, x, gamma_, in, out));
    look(name, "forward", in * out);
    memset(dx, 0, in * out * sizeof *dx);
    take(nrm_weightnorm_backward(dx, dgamma, dy, x, mean, gamma_, in, out));
    look(name, "backward", in * out);
    add_reals(y, in * out);
    add_reals(dx, in * out);
    add_accs(mean, out);
    add_reals(dgamma, out);
    print("exact", name);
}

int main(void)
{
    size_t i;
    fill_pool();
    run_all(norm, norms);
    activation("relu", NRM_RELU);
    activation("tanh", NRM_TANH);
    activation("sigmoid", NRM_SIGMOID);
    cross_entropy();
    random_numbers();
    gradcheck();
    linears();
    for (i = 0; i < sizeof trainings / sizeof trainings[0]; i++) train(&trainings[i]);
    folding("fold_784x300", 784, 300, 1);
    folding("fold_32x3x3x3", 1, 32, 27);
    folding("fold_4x1500x2", 4, 1500, 2);
    run_all(norm, other_rows);
    run_all(merged, merge_cases);
    run_all(norm, renorms);
    recurrents();
    lp_norms();
    weight_norm(1, 3);
    weight_norm(61, 43);
    weight_norm(100, 1030);
    return 0;
}
