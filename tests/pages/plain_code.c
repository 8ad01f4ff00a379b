/* plain_code.c - the plain functions of the chapters beside the header's, for plain_code.sh.

   Each check draws random data, runs both, and notes the largest difference, relative to the
   largest value. All have to agree to 1e-12; and with any tagged line of the pages made wrong by a
   factor of 1.001 at least one must not. */
#include "normlayers.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pages.h"

#define LENGTH(a) (sizeof(a) / sizeof *(a))
enum { MOST = 64 }; /* numbers of an array */
static nrm_rng rng;
static double worst; /* of the check that runs */

static void draw(double *a, int n, double centre)
{
    for (int i = 0; i < n; i++) a[i] = centre + nrm_rng_normal(&rng);
}
/* Parameters' gradients are added to what is there: both sides start from the same numbers. */
static void start(double *a, double *b, int n)
{
    draw(a, n, 0);
    memcpy(b, a, (size_t)n * sizeof *a);
}
static void same(const double *ours, const double *header, int n)
{
    double size = 0;
    for (int i = 0; i < n; i++) size = fmax(size, fabs(header[i]));
    for (int i = 0; i < n; i++) {
        const double apart = fabs(ours[i] - header[i]);
        if (!(apart <= worst * size)) worst = apart / size;
    }
}
static void fine(int rc)
{
    if (rc == NRM_OK) return;
    printf("the header says: %s\n", nrm_strerror(rc));
    exit(1);
}

/* ---- chapter 1 ---- */

static void check_batch_norm(void)
{
    enum { M = 7 };
    double x[M], y[M], xhat[M], dy[M], dx[M], y2[M], dx2[M], g[2], g2[2], r, gamma, beta;
    nrm_acc mean, rstd;
    draw(x, M, 3), draw(dy, M, 1), draw(&gamma, 1, 2), draw(&beta, 1, 0), start(g, g2, 2);
    fine(nrm_batchnorm_forward(y2, &mean, &rstd, NULL, x, &gamma, &beta, NRM_TRAIN, 0.1, M, 1, 1));
    fine(nrm_batchnorm_backward(
        dx2, &g2[0], &g2[1], dy, x, &mean, &rstd, &gamma, NRM_TRAIN, M, 1, 1));
    batch_norm_forward(y, xhat, &r, x, gamma, beta, 0.1, M);
    batch_norm_backward(dx, &g[0], &g[1], dy, xhat, r, gamma, M);
    same(y, y2, M), same(dx, dx2, M), same(g, g2, 2), same(&r, &rstd, 1);
}

static void check_graph(void)
{
    double x[3], y[3], dy[3], dx[3], dx2[3], g[2], g2[2], gamma;
    nrm_acc mean, rstd;
    draw(x, 3, 3), draw(dy, 3, 1), draw(&gamma, 1, 2), start(g, g2, 2);
    fine(nrm_batchnorm_forward(y, &mean, &rstd, NULL, x, &gamma, NULL, NRM_TRAIN, 0.1, 3, 1, 1));
    fine(nrm_batchnorm_backward(
        dx2, &g2[0], &g2[1], dy, x, &mean, &rstd, &gamma, NRM_TRAIN, 3, 1, 1));
    batch_norm_graph(dx, &g[0], &g[1], dy, x, gamma, 0.1);
    same(dx, dx2, 3), same(g, g2, 2);
}

static void check_running(void)
{
    enum { M = 7 };
    double x[M], y[M], y2[M], xhat[M], m[2] = {0.5, 2}, m2[2] = {0.5, 2}, gamma, beta, r, mu = 0;
    nrm_acc mean, rstd;
    nrm_running running = {&m2[0], &m2[1], 0.3, 0, 0, 0};
    draw(x, M, 3), draw(&gamma, 1, 2), draw(&beta, 1, 0);
    fine(nrm_batchnorm_forward(
        y, &mean, &rstd, &running, x, &gamma, &beta, NRM_TRAIN, 0.1, M, 1, 1));
    fine(nrm_batchnorm_forward(
        y2, NULL, NULL, &running, x, &gamma, &beta, NRM_INFER, 0.1, M, 1, 1));
    for (int i = 0; i < M; i++) mu += x[i] / M;
    batch_norm_forward(y, xhat, &r, x, gamma, beta, 0.1, M);
    track(&m[0], &m[1], mu, 1 / (r * r) - 0.1, 0.3, M);
    batch_norm_infer(y, x, m[0], m[1], gamma, beta, 0.1, M);
    same(m, m2, 2), same(y, y2, M);
}

/* ---- chapter 5 ---- */

static double cubic(void *at) /* of which GC.3 has the exact derivative */
{
    const double t = *(double *)at;
    return (t - 2) * t * t;
}
static void check_difference(void)
{
    double t, slope, exact;
    draw(&t, 1, 3);
    exact = (3 * t - 4) * t;
    slope = difference(cubic, &t, &t, 0.5);
    same(&slope, &exact, 1);
}

/* ---- all of them ---- */

static const struct {
    const char *name;
    void (*run)(void);
} checks[] = {
    {"batch norm", check_batch_norm},
    {"batch norm's graph", check_graph},
    {"running statistics and inference", check_running},
    {"a difference", check_difference},
};

/* How many checks find a difference? */
static int failing(int show)
{
    int count = 0;
    for (size_t i = 0; i < LENGTH(checks); i++) {
        worst = 1e-12;
        nrm_rng_seed(&rng, 1, i);
        for (int round = 0; round < 5; round++) checks[i].run();
        if (worst <= 1e-12) continue;
        count++;
        if (show) printf("%s: off by %.1e\n", checks[i].name, worst);
    }
    return count;
}

int main(void)
{
    const int wrong = failing(1), n = (int)LENGTH(faults);
    int passed = (int)LENGTH(checks) - wrong, failed = wrong;
    for (fault = 1; fault <= n && !wrong; fault++) {
        if (failing(0)) {
            passed++;
        } else {
            failed++;
            printf("%s: nobody notices if this line is wrong\n", faults[fault - 1]);
        }
    }
    printf("%d functions' checks, %d lines: %d passed, %d failed\n", (int)LENGTH(checks), n, passed,
        failed);
    return failed > 0;
}
