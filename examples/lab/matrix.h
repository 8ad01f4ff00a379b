/* matrix.h - eigenvalues of a symmetric matrix, by Jacobi's rotations.

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

#endif /* MATRIX_H */
