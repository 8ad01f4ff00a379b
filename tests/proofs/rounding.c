/* rounding.c - the error of the plain primitives beside the bound that rounding.v proves. Compiled
   with NRM_PLAIN and NRM_ACC=float, where the rounding is largest. Prints the rows of the table in
   docs/accuracy.md, and fails where an error is beyond its bound. */
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"
#include "lab/draw.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* gamma of k roundings: k·u/(1 - k·u), at least (1 + u)^k - 1 */
static double gamma_of(double k)
{
    const double u = ldexp(1, -24);
    return k * u / (1 - k * u);
}

/* One row of M values about `centre`: the worst over the seeds. */
static int row(size_t M, double centre)
{
    float *x = (float *)malloc(M * sizeof *x);
    double worst_mean = 0, worst_var = 0;
    int seed;
    size_t i;
    if (x == NULL) return 1;
    for (seed = 1; seed <= 20; seed++) {
        nrm_rng rng;
        nrmi_moments t;
        double mean = 0, distance = 0, about = 0, m, error;
        const nrmi_view v = nrmi_rows(1, M);
        nrm_rng_seed(&rng, (unsigned)seed, 1);
        for (i = 0; i < M; i++) x[i] = (float)(centre + (double)draw_normal(&rng));
        nrmi_moments_of(&t, x, &v, 0, 1);
        m = (double)t.at.high[0] + (double)t.at.low[0];
        for (i = 0; i < M; i++) mean += ((double)x[i] - (double)x[0]) / (double)M;
        for (i = 0; i < M; i++) distance += fabs((double)x[i] - (double)x[0]) / (double)M;
        for (i = 0; i < M; i++) about += ((double)x[i] - m) * ((double)x[i] - m) / (double)M;
        error = fabs(m - (double)x[0] - mean) / distance;
        if (error > worst_mean) worst_mean = error;
        error = fabs((double)t.var[0] - about) / about;
        if (error > worst_var) worst_var = error;
    }
    free(x);
    printf("| %lu | %g | %.0e | %.0e | %.0e | %.0e |\n", (unsigned long)M, centre, worst_mean,
           gamma_of((double)M + 2), worst_var, gamma_of((double)M + 4));
    return worst_mean > gamma_of((double)M + 2) || worst_var > gamma_of((double)M + 4);
}

int main(void)
{
    static const size_t length[] = {64, 4096, 100352};
    int failed = 0, k;
    for (k = 0; k < 3; k++) {
        failed += row(length[k], 0);
        failed += row(length[k], 100);
    }
    return failed;
}
