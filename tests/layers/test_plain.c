/* test_plain.c - the plain primitives and the fast ones compute the same.

   Random cases of every layer, forward and backward, by the header as it is and by the one that
   plain_build.c compiles with NRM_PLAIN: the same statuses; results that differ by no more than
   2e-6 (float) or 1e-12 (double) of their largest term, and that are not finite in the same
   places. With -v the largest differences are printed. */
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"
#include "lab/draw.h"
#include "plain_cases.h"
#include "test.h"

static layer_outcome fast, plain;
static nrm_real xs[MOST_NUMBERS], dys[MOST_NUMBERS], starts[MOST_NUMBERS], gammas[MOST_PARAMS],
    betas[MOST_PARAMS], running_means[MOST_PARAMS], running_vars[MOST_PARAMS];
static unsigned char masks[MOST_NUMBERS];
static double worst[LAYERS]; /* of the bound */
static const char *worst_name[LAYERS];

static double bound(void)
{
    return sizeof(nrm_real) == sizeof(float) ? 2e-6 : 1e-12;
}

/* Mostly small sizes, up to `most`. */
static size_t some(nrm_rng *rng, uint32_t most)
{
    const uint32_t few = most < 9 ? most : 9;
    return 1 + nrm_rng_below(rng, nrm_rng_below(rng, 2) ? few : most);
}

static int one_in(nrm_rng *rng, uint32_t n)
{
    return nrm_rng_below(rng, n) == 0;
}

static void shape(layer_case *k, nrm_rng *rng)
{
    static const size_t large[][3] = {{5003, 3, 1}, {3, 5000, 1}, {70, 1500, 1},  {2, 3, 9000},
                                      {33, 70, 49}, {9, 1025, 7}, {1, 16000, 1}, {300, 65, 4}};
    const int rows = k->layer == A_LAYER || k->layer == A_RMS || k->layer == A_WEIGHT;
    k->N = some(rng, 70);
    k->C = some(rng, 70);
    k->S = one_in(rng, 2) ? 1 : some(rng, 24);
    k->G = k->layer == A_LINEAR ? some(rng, 70) : 1;
    if (one_in(rng, 40) && k->layer != A_LINEAR) {
        const size_t *size = large[nrm_rng_below(rng, sizeof large / sizeof *large)];
        k->N = size[0];
        k->C = size[1];
        k->S = size[2];
    }
    if (one_in(rng, 60)) k->N = 0;
    if (k->layer == A_LINEAR || (rows && k->N * k->C * k->S > MOST_PARAMS)) k->S = 1;
    if (rows) k->C *= k->S, k->S = 1;
    if (k->layer == A_GROUP) { /* a divisor of C; now and then not */
        k->G = 1 + nrm_rng_below(rng, 8);
        while (k->C % k->G != 0 && !one_in(rng, 9)) k->G = 1 + nrm_rng_below(rng, (uint32_t)k->C);
    }
}

static void numbers(layer_case *k, nrm_rng *rng)
{
    static const double eps[4] = {0, 1e-5, 1e-5, 0.1};
    const size_t n = k->N * k->C * k->S, out = k->layer == A_LINEAR ? k->G : 1;
    const size_t room = n > k->N * out ? n : k->N * out;
    const double scale = pow(10, 6 * (double)draw_uniform(rng) - 3);
    const double ratio = pow(10, (k->layer == A_LP ? 2 : 6) * (double)draw_uniform(rng));
    double centre = one_in(rng, 3) ? 0 : scale * ratio;
    size_t i;
    if (centre > 1e4) centre = 1e4;
    if (k->layer == A_RMS || k->layer == A_WEIGHT || k->layer == A_LINEAR) centre = scale;
    for (i = 0; i < room; i++) xs[i] = (nrm_real)(centre + scale * (double)draw_normal(rng));
    for (i = 0; i < room || i < k->C * out; i++)
        dys[i] = (nrm_real)((double)draw_normal(rng) + 0.3);
    for (i = 0; i < room; i++) masks[i] = (unsigned char)(nrm_rng_below(rng, 4) != 0);
    for (i = 0; i < k->C || i < k->G; i++) {
        gammas[i] = (nrm_real)((double)draw_normal(rng) + 0.5);
        betas[i] = draw_normal(rng);
        running_means[i] = (nrm_real)(centre + scale * (double)draw_normal(rng));
        running_vars[i] = (nrm_real)(scale * scale * (0.5 + (double)draw_uniform(rng)));
    }
    if (one_in(rng, 30)) /* equal values, which are not round */
        for (i = 0; i < n; i++) xs[i] = (nrm_real)(scale / 3);
    if (one_in(rng, 30) && n > 0 && k->layer != A_WEIGHT)
        xs[nrm_rng_below(rng, (uint32_t)n)] = (nrm_real)(one_in(rng, 2) ? NAN : INFINITY);
    k->eps = (nrm_real)eps[nrm_rng_below(rng, 4)];
    k->x = xs;
    k->dy = dys;
    k->start = starts;
    k->gamma = one_in(rng, 4) ? NULL : gammas;
    k->beta = one_in(rng, 4) ? NULL : betas;
    k->mask = one_in(rng, 4) ? NULL : masks;
    k->running_mean = running_means;
    k->running_var = running_vars;
}

static void draw(layer_case *k, int layer, nrm_rng *rng)
{
    static const int mode[4] = {NRM_TRAIN, NRM_TRAIN, NRM_FROZEN, NRM_INFER};
    memset(k, 0, sizeof *k);
    k->layer = layer;
    k->mode = mode[nrm_rng_below(rng, 4)];
    k->p = 1 + (int)nrm_rng_below(rng, 3) + (one_in(rng, 2) ? NRM_CENTRED : 0);
    k->cumulative = one_in(rng, 3);
    k->biased = one_in(rng, 3);
    k->without_dx = one_in(rng, 8);
    shape(k, rng);
    numbers(k, rng);
}

/* How far apart two results are, in parts of what is allowed; infinite if only one is finite. */
static double apart_by(const layer_result *r)
{
    double most = 0;
    size_t i;
    for (i = r->from; i < r->from + r->n; i++) {
        const double a = fast.number[i], b = plain.number[i];
        const double size = r->size > 0 ? r->size : fabs(a) > fabs(b) ? fabs(a) : fabs(b);
        if (a == b || (!isfinite(a) && !isfinite(b))) continue;
        if (!isfinite(a) || !isfinite(b) || isnan(size)) return HUGE_VAL;
        if (fabs(a - b) / (size * bound()) > most) most = fabs(a - b) / (size * bound());
    }
    return most;
}

static void compare(const layer_case *k, const char *layer)
{
    size_t i;
    int same = fast.statuses == plain.statuses && fast.results == plain.results;
    for (i = 0; i < fast.statuses && same; i++) same = fast.status[i] == plain.status[i];
    for (i = 0; i < fast.results && same; i++) {
        const double off = apart_by(&fast.result[i]);
        if (off > worst[k->layer]) {
            worst[k->layer] = off;
            worst_name[k->layer] = fast.result[i].name;
        }
        if (!CHECK(off <= 1))
            printf("  %s of %s: %g of what is allowed; N %d, C %d, S %d, G %d, mode %d, p %d\n",
                   fast.result[i].name, layer, off, (int)k->N, (int)k->C, (int)k->S, (int)k->G,
                   k->mode, k->p);
    }
    if (!CHECK(same))
        printf("  %s: statuses %d and %d; N %d, C %d, S %d, G %d, mode %d\n", layer,
               fast.status[fast.statuses - 1], plain.status[plain.statuses - 1], (int)k->N,
               (int)k->C, (int)k->S, (int)k->G, k->mode);
}

static void layer_cases(int layer, const char *name, int cases)
{
    layer_case k;
    nrm_rng rng;
    nrm_rng_seed(&rng, 2026, (uint64_t)layer);
    while (cases-- > 0) {
        draw(&k, layer, &rng);
        run_case(&fast, &k);
        run_plain(&plain, &k);
        compare(&k, name);
    }
}

#define CASES_OF(name, layer, cases)                                                               \
    static void test_##name(void)                                                                  \
    {                                                                                              \
        layer_cases(layer, #name, cases);                                                          \
    }
CASES_OF(batchnorm, A_BATCH, 400)
CASES_OF(layernorm, A_LAYER, 300)
CASES_OF(rmsnorm, A_RMS, 200)
CASES_OF(groupnorm, A_GROUP, 300)
CASES_OF(weightnorm, A_WEIGHT, 200)
CASES_OF(lp_batchnorm, A_LP, 300)
CASES_OF(batchrenorm, A_RENORM, 200)
CASES_OF(sync_batchnorm, A_SYNC, 300)
CASES_OF(linear, A_LINEAR, 100)

int main(int argc, char **argv)
{
    int layer;
    size_t i;
    for (i = 0; i < MOST_NUMBERS; i++) starts[i] = (nrm_real)(0.5 - (double)(i % 5) / 4);
    RUN(test_batchnorm);
    RUN(test_layernorm);
    RUN(test_rmsnorm);
    RUN(test_groupnorm);
    RUN(test_weightnorm);
    RUN(test_lp_batchnorm);
    RUN(test_batchrenorm);
    RUN(test_sync_batchnorm);
    RUN(test_linear);
    for (layer = 0; layer < LAYERS && argc > 1 && strcmp(argv[1], "-v") == 0; layer++)
        printf("layer %d: %.3f of the bound, in %s\n", layer, worst[layer], worst_name[layer]);
    return test_report("plain and fast");
}
