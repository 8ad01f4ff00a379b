/* matrix.c - see matrix.h. */
#include "matrix.h"

#include <math.h>
#include <stdlib.h>

/* Columns (step 1) or rows (step d) p and q of a become c·p - s·q and s·p + c·q. */
static void matrixi_turn(double *a, size_t p, size_t q, size_t step, size_t d, double c, double s)
{
    const size_t along = step == 1 ? d : 1;
    size_t k;
    for (k = 0; k < d; k++) {
        double *at_p = a + p * step + k * along, *at_q = a + q * step + k * along;
        const double kp = *at_p, kq = *at_q;
        *at_p = c * kp - s * kq;
        *at_q = s * kp + c * kq;
    }
}

/* One rotation: makes a[p][q] zero. */
static void matrixi_rotate(double *a, double *v, size_t p, size_t q, size_t d)
{
    const double theta = (a[q * d + q] - a[p * d + p]) / (2 * a[p * d + q]);
    const double t = (theta < 0 ? -1 : 1) / (fabs(theta) + sqrt(theta * theta + 1));
    const double c = 1 / sqrt(t * t + 1), s = t * c;
    matrixi_turn(a, p, q, 1, d, c, s);
    matrixi_turn(a, p, q, d, d, c, s);
    if (v) matrixi_turn(v, p, q, 1, d, c, s);
}

double matrix_eigen(double *a, double *v, size_t d)
{
    double multiplications = 0;
    size_t sweep, p, q;
    for (p = 0; p < d * d && v; p++) v[p] = p % (d + 1) == 0 ? 1.0 : 0.0;
    for (sweep = 0; sweep < 12; sweep++)
        for (p = 0; p + 1 < d; p++)
            for (q = p + 1; q < d; q++)
                if (fabs(a[p * d + q]) > 1e-14 * sqrt(a[p * d + p] * a[q * d + q])) {
                    matrixi_rotate(a, v, p, q, d);
                    multiplications += 12 * (double)d;
                }
    return multiplications;
}

double matrix_covariance(double *c, const double *x, size_t m, size_t d, int scaled)
{
    double *mean = (double *)calloc(d, sizeof *mean);
    size_t i, j, k;
    if (!mean) return 0;
    for (i = 0; i < m * d; i++) mean[i % d] += x[i] / (double)m;
    for (j = 0; j < d; j++)
        for (k = 0; k <= j; k++) {
            double sum = 0;
            for (i = 0; i < m; i++) sum += (x[i * d + j] - mean[j]) * (x[i * d + k] - mean[k]);
            c[j * d + k] = c[k * d + j] = sum / (double)m;
        }
    free(mean);
    for (j = 0; scaled && j < d; j++)
        for (k = 0; k < d; k++)
            if (j != k) c[j * d + k] /= sqrt(c[j * d + j] * c[k * d + k]);
    for (j = 0; scaled && j < d; j++) c[j * d + j] = 1;
    return (double)(m * d * (d + 1) / 2);
}

double matrix_whiten(double *y, const double *x, size_t m, size_t d)
{
    double *block = (double *)calloc(3 * d * d + d, sizeof *block);
    double *a = block, *v = block + d * d, *w = v + d * d, *mean = w + d * d, n;
    size_t i, j, k;
    if (!block) return 0;
    for (i = 0; i < m * d; i++) mean[i % d] += x[i] / (double)m;
    n = matrix_covariance(a, x, m, d, 0) + matrix_eigen(a, v, d);
    for (i = 0; i < d; i++)
        for (j = 0; j < d; j++)
            for (k = 0; k < d; k++)
                w[i * d + j] += v[i * d + k] * v[j * d + k] / sqrt(a[k * d + k]);
    for (i = 0; i < m; i++)
        for (j = 0; j < d; j++) {
            y[i * d + j] = 0;
            for (k = 0; k < d; k++) y[i * d + j] += (x[i * d + k] - mean[k]) * w[k * d + j];
        }
    free(block);
    return n + (double)(d * d * d) + (double)(m * d * d);
}

void matrix_cholesky(double *a, size_t d)
{
    size_t i, j, k;
    for (i = 0; i < d; i++)
        for (j = 0; j <= i; j++) {
            double sum = a[i * d + j];
            for (k = 0; k < j; k++) sum -= a[i * d + k] * a[j * d + k];
            a[i * d + j] = i == j ? sqrt(sum) : sum / a[j * d + j];
        }
}

void matrix_invert_lower(double *w, const double *l, size_t d)
{
    size_t i, j, k;
    for (i = 0; i < d; i++) {
        for (k = 0; k < i; k++)
            for (j = 0; j <= k; j++) w[i * d + j] -= l[i * d + k] * w[k * d + j];
        for (j = 0; j < i; j++) w[i * d + j] /= l[i * d + i];
        w[i * d + i] = 1 / l[i * d + i];
    }
}
