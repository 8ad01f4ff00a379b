/* textbook.c - the usual ways to compute mean and variance, as contestants of accuracy.c.

   They differ in the statistics. What follows from these is the same for all: y = γ·x̂ + β and the
   textbook backward pass, value by value in float, with running sums in float (in double for the
   one that is about double sums). Nothing here may be reassociated or contracted: compile it
   without -ffast-math and with -ffp-contract=off. */
#include "normlayers.h"
#include "accuracy.h"
#include "layers/reference.h" /* only for the groups */
#include "groups.h"

typedef struct moments { /* x̂ = ((x - shift) - mean)*rstd */
    float shift, mean, var;
} moments;

typedef void moments_of(moments *m, const ref_group *g, const float *x);

static float count_of(const ref_group *g)
{
    return (float)(g->outer * g->inner);
}

/* SUM.1 of the header: one pass, two sums, one difference; below zero it is taken as zero. */
static void one_pass(moments *m, const ref_group *g, const float *x)
{
    float sum = 0, squares = 0;
    REF_EACH(g, {
        sum += x[at];
        squares += x[at] * x[at];
    });
    m->mean = sum / count_of(g);
    m->var = squares / count_of(g) - m->mean * m->mean;
    if (m->var < 0) m->var = 0;
}

static void two_pass(moments *m, const ref_group *g, const float *x)
{
    float sum = 0, squares = 0;
    REF_EACH(g, sum += x[at]);
    m->mean = sum / count_of(g);
    REF_EACH(g, squares += (x[at] - m->mean) * (x[at] - m->mean));
    m->var = squares / count_of(g);
}

/* One pass that moves the mean with every value (Welford 1962). */
static void welford(moments *m, const ref_group *g, const float *x)
{
    float mean = 0, squares = 0, seen = 0;
    REF_EACH(g, {
        const float before = x[at] - mean;
        seen += 1;
        mean += before / seen;
        squares += before * (x[at] - mean);
    });
    m->mean = mean;
    m->var = squares / count_of(g);
}

/* Two passes over x - x₁, which is small and mostly exact, and a mean that stays a distance from
   x₁. The second pass corrects the first one's rounding (Chan, Golub and LeVeque 1983). */
static void shifted(moments *m, const ref_group *g, const float *x)
{
    const float first = x[g->start];
    float sum = 0, squares = 0, rest = 0;
    REF_EACH(g, sum += x[at] - first);
    m->shift = first;
    m->mean = sum / count_of(g);
    REF_EACH(g, {
        const float deviation = (x[at] - first) - m->mean;
        squares += deviation * deviation;
        rest += deviation;
    });
    m->var = (squares - rest * rest / count_of(g)) / count_of(g);
}

/* All sums in double; but then the mean is kept in one float, as layers that save it do. */
static void double_sums(moments *m, const ref_group *g, const float *x)
{
    const double count = (double)g->outer * (double)g->inner;
    double sum = 0, squares = 0, mean;
    REF_EACH(g, sum += (double)x[at]);
    mean = sum / count;
    REF_EACH(g, squares += ((double)x[at] - mean) * ((double)x[at] - mean));
    m->mean = (float)mean;
    m->var = (float)(squares / count);
}

/* ---- forward and backward -------------------------------------------------------------------- */

static float xhat_of(const moments *m, float rstd, float x)
{
    return ((x - m->shift) - m->mean) * rstd;
}

/* A running sum in double, or in a float that is kept in a double. */
static void add(double *sum, float a, float b, int in_double)
{
    *sum = in_double ? *sum + (double)a * (double)b : (double)((float)*sum + a * b);
}

static void forward(answer *a, const problem *p, const ref_group *g, const moments *m, float rstd)
{
    REF_EACH(g,
             a->out[Y][at] = (double)(p->gamma[par] * xhat_of(m, rstd, p->x[at]) + p->beta[par]));
}

static void backward(answer *a, const problem *p, const ref_group *g, const moments *m, float rstd,
                     int in_double)
{
    double sum_g = 0, sum_gx = 0;
    float mean_g, mean_gx;
    REF_EACH(g, {
        const float xhat = xhat_of(m, rstd, p->x[at]);
        add(&a->out[DGAMMA][par], p->dy[at], xhat, in_double);
        add(&a->out[DBETA][par], p->dy[at], 1, in_double);
        add(&sum_g, p->dy[at], p->gamma[par], in_double);
        add(&sum_gx, p->dy[at] * p->gamma[par], xhat, in_double);
    });
    mean_g = (float)(sum_g / (double)count_of(g));
    mean_gx = (float)(sum_gx / (double)count_of(g));
    REF_EACH(g, {
        const float xhat = xhat_of(m, rstd, p->x[at]);
        a->out[DX][at] = (double)(rstd * (p->dy[at] * p->gamma[par] - mean_g - xhat * mean_gx));
    });
}

int textbook_run(int way, const problem *p, answer *a)
{
    static moments_of *const statistics[] = {one_pass, two_pass, welford, shifted, double_sums};
    const size_t groups = group_count(p);
    size_t k;
    if (p->layer == RMS_NORM) return -1; /* without a mean these algorithms are one */
    for (k = 0; k < p->C; k++) a->out[DGAMMA][k] = a->out[DBETA][k] = 0;
    for (k = 0; k < groups; k++) {
        const ref_group g = group_number(p, k);
        moments m = {0, 0, 0};
        float rstd;
        statistics[way](&m, &g, p->x);
        rstd = 1 / sqrtf(m.var + p->eps);
        forward(a, p, &g, &m, rstd);
        backward(a, p, &g, &m, rstd, way == DOUBLE_SUMS);
    }
    for (k = 0; k < p->C; k++) {
        a->out[DGAMMA][k] = (double)(float)a->out[DGAMMA][k];
        a->out[DBETA][k] = (double)(float)a->out[DBETA][k];
    }
    return 0;
}
