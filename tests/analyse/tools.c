/* tools.c - random numbers, status texts and the gradient checker, for analyse.sh. */
#include "any.h"

static int strerror_of(const size_t *n, int mode)
{
    const char *text = nrm_strerror(any_int());
    (void)n;
    return mode + (text[0] == 0);
}
void analyse_nrm_strerror(void)
{
    all_sizes(strerror_of, 1, 0, 1);
}

void analyse_nrm_noise_paper(void)
{
    const nrm_noise q = nrm_noise_paper();
    //@ assert refused: q.mean_range >= 0 && q.scale_max >= 1;
}

/* The check that all others rest on, closely: every product of 2^62 or more is refused. */
void analyse_nrmi_check_sizes(void)
{
    int j, k;
    //@ loop unroll 70;
    for (j = 0; j <= 60; j++)
        //@ loop unroll 70;
        for (k = 0; k <= 60 - j; k++) {
            const size_t a = from_power(60 - j - k, 64), b = from_power(j, j < 60 ? j + 1 : 64);
            const size_t c = from_power(k, j + k < 60 ? k + 1 : 64);
            const int rc = nrmi_check_sizes(a, b, c);
            //@ assert refused: rc < 0;
        }
}

/* A generator in any state. */
static int numbers(const size_t *n, int mode)
{
    nrm_rng *rng = ANY(nrm_rng, 1);
    uint32_t below = (uint32_t)any_int();
    if (mode == 0) nrm_rng_seed(rng, rng->state, rng->increment);
    if (mode == 1) (void)nrm_rng_u32(rng);
    if (mode == 2) nrm_rng_uniform(rng, OUT(n[0]), n[0]);
    if (mode == 3) nrm_rng_normal(rng, OUT(n[0]), n[0]);
    if (mode == 4) (void)nrm_rng_below(rng, below);
    return 0;
}
#define ANALYSE(name, mode)                                                                        \
    void analyse_nrm_##name(void)                                                              \
    {                                                                                              \
        const size_t n[4] = {3, 1, 1, 1};                                                          \
        (void)call(numbers, n, mode);                                                              \
    }
ANALYSE(rng_seed, 0)
ANALYSE(rng_u32, 1)
ANALYSE(rng_uniform, 2)
ANALYSE(rng_normal, 3)
ANALYSE(rng_below, 4)

static int shuffle(const size_t *n, int mode)
{
    (void)mode;
    return nrm_rng_shuffle(ANY(nrm_rng, 1), ANY(size_t, n[0]), n[0]);
}
void analyse_nrm_rng_shuffle(void)
{
    size_t n[4] = {0, 1, 1, 1};
    int rc;
    all_sizes(shuffle, 1, 6, 1);
    all_missing(shuffle, 2, 1);
    huge = 1;
    n[0] = from_power(33, 64);
    rc = call(shuffle, n, 0);
    //@ assert refused: rc < 0;
}

/* A loss and its branches are any numbers. */
static nrm_acc any_loss(void *context)
{
    nrm_acc v;
    (void)context;
    Frama_C_make_unknown((char *)&v, sizeof v);
    return v;
}

static uint64_t any_branches(void *context)
{
    (void)context;
    return (uint64_t)any_int();
}

/* n[0] groups of n[1] numbers; mode 0: without options, others: with any, but for at_most, which is
   mode - 1; odd modes have a fingerprint. */
static int gradcheck(const size_t *n, int mode)
{
    nrm_gradcheck_report *report = array(n[0], sizeof *report, 0);
    nrm_gradcheck_group *group = ANY(nrm_gradcheck_group, n[0]);
    nrm_gradcheck_options *o = mode > 0 ? ANY(nrm_gradcheck_options, 1) : NULL;
    size_t g;
    //@ loop unroll 10;
    for (g = 0; g < n[0] && group != NULL; g++) {
        group[g].theta = IN(n[1]);
        group[g].grad = IN(n[1]);
        group[g].n = n[1];
    }
    if (o != NULL) o->at_most = (size_t)(mode - 1);
    if (o != NULL) o->branches = mode % 2 == 1 ? any_branches : NULL;
    return nrm_gradcheck(report, group, n[0], any_loss, NULL, o);
}
void analyse_nrm_gradcheck(void)
{
    all_sizes(gradcheck, 2, 3, 5);
    all_missing(gradcheck, 6, 2);
}
