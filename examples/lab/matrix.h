/* matrix.h - of symmetric matrices: eigenvalues by Jacobi's rotations, covariances, Cholesky's
   factor, whitening.

       double a[4] = {2, 1, 1, 2}, v[4];
       (void)matrix_eigen(a, v, 2);
       printf("%g and %g\n", a[0], a[3]);
*/
#ifndef MATRIX_H
#define MATRIX_H

#include <stddef.h>

/* The eigenvalues of a symmetric positive definite a [d][d] end on its diagonal, the eigenvectors
   in the columns of v [d][d], or nowhere if it is null. Returns the multiplications that it took
   with v. */
double matrix_eigen(double *a, double *v, size_t d);

/* c [d][d]: the covariance matrix of x [m][d], or correlations if `scaled`. y [m][d]: x centred and
   multiplied by covariance^(-1/2), so-called ZCA whitening. Both return the multiplications, or 0
   if memory is out. */
double matrix_covariance(double *c, const double *x, size_t m, size_t d, int scaled);
double matrix_whiten(double *y, const double *x, size_t m, size_t d);

/* The lower factor of a symmetric positive definite matrix, in place; what is above stays. And w
   [d][d], zero before: the inverse of a lower factor. */
void matrix_cholesky(double *a, size_t d);
void matrix_invert_lower(double *w, const double *l, size_t d);

#endif /* MATRIX_H */
