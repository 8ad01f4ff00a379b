/* matrix.c - see matrix.h. */
#include "matrix.h"

#include <math.h>

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
