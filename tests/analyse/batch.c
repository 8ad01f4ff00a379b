/* batch.c - the norms over a batch, for analyse.sh: what Eva gives each function. */
#include "any.h"
#define SIZES const size_t N = n[0], C = n[1], S = n[2], all = N * C * S
#define ANALYSE(name, modes, arrays)                                                               \
    void analyse_nrm_##name(void)                                                                  \
    {                                                                                              \
        all_sizes(name, 3, 6, modes);                                                              \
        all_missing(name, arrays, modes);                                                          \
        all_huge(name, 0, 1, 2, 0);                                                                \
    }

static int batchnorm_forward(const size_t *n, int mode)
{
    SIZES;
    return nrm_batchnorm_forward(OUT(all), ACC_OUT(C), ACC_OUT(C), running_of(C), IN(all), IN(C),
                                 IN(C), mode, any_real(), N, C, S);
}
ANALYSE(batchnorm_forward, 4, 9)

static int batchnorm_backward(const size_t *n, int mode)
{
    SIZES;
    return nrm_batchnorm_backward(OUT(all), IN(C), IN(C), IN(all), IN(all), ACC_IN(C), ACC_IN(C),
                                  IN(C), mode, N, C, S);
}
ANALYSE(batchnorm_backward, 4, 8)

static int noisy_batchnorm_forward(const size_t *n, int mode)
{
    SIZES;
    return nrm_noisy_batchnorm_forward(
        OUT(all), OUT(all), ACC_OUT(C), ACC_OUT(C), running_of(C), IN(all), IN(C), IN(C),
        ANY(nrm_noise, 1), ANY(nrm_rng, 1), mode, any_real(), N, C, S);
}
ANALYSE(noisy_batchnorm_forward, 3, 12)

static int noisy_batchnorm_backward(const size_t *n, int mode)
{
    SIZES;
    return nrm_noisy_batchnorm_backward(OUT(all), IN(C), IN(C), IN(all), IN(all), IN(all),
                                        ACC_IN(C), ACC_IN(C), IN(C), mode, N, C, S);
}
ANALYSE(noisy_batchnorm_backward, 4, 9)

static int batchrenorm_forward(const size_t *n, int mode)
{
    SIZES;
    return nrm_batchrenorm_forward(OUT(all), ACC_OUT(C), ACC_OUT(C), ACC_OUT(C), ACC_OUT(C),
                                   running_of(C), IN(all), IN(C), IN(C), any_real(), any_real(),
                                   mode, any_real(), N, C, S);
}
ANALYSE(batchrenorm_forward, 4, 11)

static int batchrenorm_backward(const size_t *n, int mode)
{
    SIZES;
    return nrm_batchrenorm_backward(OUT(all), IN(C), IN(C), IN(all), IN(all), ACC_IN(C), ACC_IN(C),
                                    ACC_IN(C), ACC_IN(C), IN(C), mode, N, C, S);
}
ANALYSE(batchrenorm_backward, 4, 10)

/* Modes 0 to 6 are train, with p = mode + 1; the others are infer and frozen with p = 6. */
#define LP const int p = mode < 7 ? mode + 1 : 6, way = mode < 7 ? NRM_TRAIN : mode - 6
static int lp_batchnorm_forward(const size_t *n, int mode)
{
    SIZES;
    LP;
    return nrm_lp_batchnorm_forward(OUT(all), ACC_OUT(C), ACC_OUT(C), running_of(C), IN(all),
                                    IN(C), IN(C), p, way, any_real(), N, C, S);
}
ANALYSE(lp_batchnorm_forward, 9, 9)

static int lp_batchnorm_backward(const size_t *n, int mode)
{
    SIZES;
    LP;
    return nrm_lp_batchnorm_backward(OUT(all), IN(C), IN(C), IN(all), IN(all), ACC_IN(C),
                                     ACC_IN(C), IN(C), p, way, any_real(), N, C, S);
}
ANALYSE(lp_batchnorm_backward, 9, 8)

/* The bits of the mode are the mask, over and over; mode 4: none. */
static unsigned char *mask_of(size_t positions, int mode)
{
    unsigned char *mask = mode < 4 ? array(positions, 1, 1) : NULL;
    size_t i;
    for (i = 0; i < positions && mask != NULL && !huge; i++) mask[i] = mode >> i % 2 & 1;
    return mask;
}
#define MASK mask_of(N * S, mode)
static int stats_update(const size_t *n, int mode)
{
    SIZES;
    return nrm_stats_update(ANY(nrm_stats, C), IN(all), MASK, N, C, S);
}
ANALYSE(stats_update, 5, 3)

static int sync_batchnorm_forward(const size_t *n, int mode)
{
    SIZES;
    return nrm_sync_batchnorm_forward(OUT(all), ACC_OUT(C), ACC_OUT(C), running_of(C), IN(all),
                                      MASK, ANY(nrm_stats, C), IN(C), IN(C), any_real(), N, C, S);
}
ANALYSE(sync_batchnorm_forward, 5, 11)

static int sync_batchnorm_sums(const size_t *n, int mode)
{
    SIZES;
    nrm_sums *sums = array(C, sizeof *sums, 0);
    return nrm_sync_batchnorm_sums(sums, IN(C), IN(C), IN(all), IN(all), MASK, ACC_IN(C),
                                   ACC_IN(C), N, C, S);
}
ANALYSE(sync_batchnorm_sums, 5, 8)

static int sync_batchnorm_backward(const size_t *n, int mode)
{
    SIZES;
    return nrm_sync_batchnorm_backward(OUT(all), IN(all), IN(all), MASK, ACC_IN(C), ACC_IN(C),
                                       IN(C), ANY(nrm_stats, C), ANY(nrm_sums, C), N, C, S);
}
ANALYSE(sync_batchnorm_backward, 5, 9)

static int stats_merge(const size_t *n, int mode)
{
    (void)mode;
    return nrm_stats_merge(ANY(nrm_stats, n[0]), ANY(nrm_stats, n[0]), n[0]);
}
void analyse_nrm_stats_merge(void)
{
    all_sizes(stats_merge, 1, 6, 1);
    all_missing(stats_merge, 2, 1);
}

static int batchnorm_fold(const size_t *n, int mode) /* outer, C and inner for N, C and S */
{
    SIZES;
    (void)mode;
    return nrm_batchnorm_fold(OUT(all), OUT(C), IN(all), IN(C), running_of(C), IN(C), IN(C),
                              any_real(), N, C, S);
}
ANALYSE(batchnorm_fold, 1, 9)
