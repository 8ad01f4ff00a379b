/* museum.h - backward passes that were wrong, and shipped.

   Every exhibit is a normalization with one mistake that a real library made, rewritten here from
   its description in a few lines. All of them train networks; none of them is the derivative of
   its forward pass. A gradient check that deserves its name finds every one, and leaves the two
   controls alone (museum_is_right): one has no mistake, the other what was taken for one.
   docs/11_bug_museum.md tells whose they are.

       museum_forward(MUSEUM_LOST_GAMMA, y, x, gamma, beta, eps, N, C);
       museum_backward(MUSEUM_LOST_GAMMA, dx, dgamma, dbeta, dy, x, gamma, eps, N, C);

   Tensors are [N][C]. Each of the C columns is normalized over its N values, gamma and beta have
   one entry per column; but for the exhibits of layer norm (museum_by_row says which) each of the
   N rows is normalized over its C values. Include after normlayers.h. */
#ifndef MUSEUM_H
#define MUSEUM_H
#include <math.h>

#define MUSEUM_LIST(X)                                                                             \
    X(MUSEUM_NONE, "none", "the control: nothing is wrong here")                                   \
    X(MUSEUM_FALSE_ALARM, "mxnet", "the other control: a term that vanishes, reported as a bug")   \
    X(MUSEUM_SAMPLE_VARIANCE, "tiny-dnn", "variance by N-1 in the forward, by N in the backward")  \
    X(MUSEUM_TWO_EPSILONS, "darknet", "N-1, and eps outside the root in the forward only")         \
    X(MUSEUM_LOST_GAMMA, "Knet.jl", "gamma forgotten on the way to dx")                            \
    X(MUSEUM_MEAN_TWICE, "tt-metal", "layer norm: the mean of the gradient subtracted twice")      \
    X(MUSEUM_LAST_BLOCK, "tt-metal", "layer norm: of a sum by blocks only the last one is kept")   \
    X(MUSEUM_NO_STATISTICS, "dl4j", "no gradient through mean and variance")                       \
    X(MUSEUM_UNEVEN, "pytorch", "two workers: means over uneven shares averaged as if even")       \
    X(MUSEUM_GAMMA_OUTSIDE, "folklore", "layer norm: gamma pulled out of the row's means")         \
    X(MUSEUM_SIGN, "anyone", "the sign")                                                           \
    X(MUSEUM_GAMMA_ON_ONE, "Deeploy", "gamma on the first of the three terms only")

#define MUSEUM_ENUM(id, owner, mistake) id,
enum museum_exhibit { MUSEUM_LIST(MUSEUM_ENUM) MUSEUM_EXHIBITS };
#undef MUSEUM_ENUM

typedef struct museum_label { /* what stands beside the exhibit */
    const char *owner, *mistake;
} museum_label;

static inline museum_label museum_describe(int exhibit)
{
#define MUSEUM_LABEL(id, owner, mistake) {owner, mistake},
    static const museum_label label[] = {MUSEUM_LIST(MUSEUM_LABEL)};
#undef MUSEUM_LABEL
    return label[exhibit];
}

static inline int museum_is_right(int exhibit)
{
    return exhibit == MUSEUM_NONE || exhibit == MUSEUM_FALSE_ALARM;
}

static inline int museum_by_row(int exhibit)
{
    return exhibit == MUSEUM_MEAN_TWICE || exhibit == MUSEUM_LAST_BLOCK ||
           exhibit == MUSEUM_GAMMA_OUTSIDE;
}

enum { MUSEUM_BLOCK = 32 }; /* values in a block of MUSEUM_LAST_BLOCK */

/* More values than this must be normalized together for the mistake to show. */
static inline size_t museum_hidden_up_to(int exhibit)
{
    return exhibit == MUSEUM_LAST_BLOCK ? MUSEUM_BLOCK : exhibit == MUSEUM_UNEVEN ? 2 : 0;
}

typedef struct museum_group { /* the values normalized together: x[first + k*stride], k < count */
    size_t first, stride, count;
    double mean, var; /* var is divided by count */
    double left;      /* the sum of x - mean: what rounding leaves of 0 */
} museum_group;

/* Group number g of the exhibit, with its mean and variance. */
static inline museum_group museum_measure(int exhibit, size_t g, const nrm_real *x, size_t N,
                                          size_t C)
{
    museum_group m;
    size_t k;
    m.first = museum_by_row(exhibit) ? g * C : g;
    m.stride = museum_by_row(exhibit) ? 1 : C;
    m.count = museum_by_row(exhibit) ? C : N;
    m.mean = m.var = m.left = 0;
    for (k = 0; k < m.count; k++) m.mean += (double)x[m.first + k * m.stride];
    m.mean /= (double)m.count;
    for (k = 0; k < m.count; k++) {
        const double d = (double)x[m.first + k * m.stride] - m.mean;
        m.var += d * d;
        m.left += d;
    }
    m.var /= (double)m.count;
    return m;
}

/* One over the standard deviation, as the forward pass of the exhibit has it. */
static inline double museum_forward_scale(int exhibit, const museum_group *m, double eps)
{
    const double n = (double)m->count;
    if (exhibit == MUSEUM_SAMPLE_VARIANCE) return 1 / sqrt(m->var * n / (n - 1) + eps);
    if (exhibit == MUSEUM_TWO_EPSILONS) return 1 / (sqrt(m->var * n / (n - 1)) + eps / 10);
    return 1 / sqrt(m->var + eps);
}

/* And as its backward pass has it. */
static inline double museum_backward_scale(int exhibit, const museum_group *m, double eps)
{
    const double n = (double)m->count;
    if (exhibit == MUSEUM_TWO_EPSILONS) return 1 / sqrt(m->var * n / (n - 1) + eps);
    return museum_forward_scale(exhibit, m, eps);
}

static inline void museum_forward(int exhibit, nrm_real *y, const nrm_real *x,
                                  const nrm_real *gamma, const nrm_real *beta, double eps, size_t N,
                                  size_t C)
{
    const size_t groups = museum_by_row(exhibit) ? N : C;
    size_t g, k;
    for (g = 0; g < groups; g++) {
        const museum_group m = museum_measure(exhibit, g, x, N, C);
        const double r = museum_forward_scale(exhibit, &m, eps);
        for (k = 0; k < m.count; k++) {
            const size_t at = m.first + k * m.stride;
            y[at] = (nrm_real)((double)gamma[at % C] * (((double)x[at] - m.mean) * r) +
                               (double)beta[at % C]);
        }
    }
}

/* dx of one value. g_mean and gx_mean are means over the group, of g = dy*gamma and g*xhat. */
static inline double museum_dx(int exhibit, double dy, double gamma, double xhat, double r,
                               double g_mean, double gx_mean, const museum_group *m)
{
    const double g = dy * gamma, n = (double)m->count;
    switch (exhibit) {
    case MUSEUM_FALSE_ALARM: /* dL/dmean with its part by way of the variance: a sum that is 0 */
        return r * (g - g_mean - xhat * gx_mean) + r * r * gx_mean * m->left / n;
    case MUSEUM_LOST_GAMMA: return r * (g - g_mean - xhat * gx_mean) / gamma;
    case MUSEUM_MEAN_TWICE: return r * (g - 2 * g_mean - xhat * gx_mean);
    case MUSEUM_NO_STATISTICS: return r * g;
    case MUSEUM_SIGN: return -r * (g - g_mean - xhat * gx_mean);
    case MUSEUM_GAMMA_ON_ONE: return r * (g - (g_mean + xhat * gx_mean) / gamma);
    default: return r * (g - g_mean - xhat * gx_mean);
    }
}

/* The mean of n values as the exhibit takes it; the first worker has three quarters of them. */
static inline double museum_mean(int exhibit, const double *a, size_t n)
{
    const size_t second = (n + 2) / 4, first = n - second;
    double sum = 0, head = 0;
    size_t k;
    for (k = 0; k < n; k++) {
        if (exhibit == MUSEUM_LAST_BLOCK && k % MUSEUM_BLOCK == 0) sum = 0;
        sum += a[k];
        if (k < first) head = sum;
    }
    if (exhibit == MUSEUM_UNEVEN && second > 0)
        return (head / (double)first + (sum - head) / (double)second) / 2;
    return sum / (double)n;
}

enum { MUSEUM_GROUP_MAX = 128 };

/* dx is overwritten, dgamma and dbeta are added to. At most 128 values in a group. */
static inline void museum_backward(int exhibit, nrm_real *dx, nrm_real *dgamma, nrm_real *dbeta,
                                   const nrm_real *dy, const nrm_real *x, const nrm_real *gamma,
                                   double eps, size_t N, size_t C)
{
    const size_t groups = museum_by_row(exhibit) ? N : C;
    double g[MUSEUM_GROUP_MAX], gx[MUSEUM_GROUP_MAX];
    size_t group, k;
    for (group = 0; group < groups; group++) {
        const museum_group m = museum_measure(exhibit, group, x, N, C);
        const double saved = museum_forward_scale(exhibit, &m, eps);
        const double r = museum_backward_scale(exhibit, &m, eps);
        double g_mean, gx_mean;
        for (k = 0; k < m.count; k++) {
            const size_t at = m.first + k * m.stride;
            const double d = (double)x[at] - m.mean;
            g[k] = (double)dy[at] * (exhibit == MUSEUM_GAMMA_OUTSIDE ? 1 : (double)gamma[at % C]);
            gx[k] = g[k] * d * r;
            dgamma[at % C] += (nrm_real)((double)dy[at] * d * saved);
            dbeta[at % C] += dy[at];
        }
        g_mean = museum_mean(exhibit, g, m.count); /* the second sum of tt-metal is right */
        gx_mean = museum_mean(exhibit == MUSEUM_LAST_BLOCK ? MUSEUM_NONE : exhibit, gx, m.count);
        for (k = 0; k < m.count; k++) {
            const size_t at = m.first + k * m.stride;
            const double xhat = ((double)x[at] - m.mean) * r, c = (double)gamma[at % C];
            const double outside = exhibit == MUSEUM_GAMMA_OUTSIDE ? c : 1;
            dx[at] = (nrm_real)museum_dx(exhibit, (double)dy[at], c, xhat, r, outside * g_mean,
                                         outside * gx_mean, &m);
        }
    }
}
#endif
