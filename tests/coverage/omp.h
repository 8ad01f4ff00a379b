/* omp.h - as if there were three threads: the loops that they would share run in one, in turn. So
   the coverage of the code that divides the work can be counted without a library of OpenMP. */
#ifndef COVERAGE_OMP_H
#define COVERAGE_OMP_H
static inline int omp_get_max_threads(void)
{
    return 3;
}
/* Every seventh time it is asked: what one thread would do changes no bit. */
static inline int omp_in_parallel(void)
{
    static int asked;
    return ++asked % 7 == 0;
}
#endif
