/* Runs what freestanding.c computes, in a program that has a C library after all. */
#include <stdio.h>

int freestanding_check(void);

int main(void)
{
    const int result = freestanding_check();
    if (result != 0) printf("freestanding: wrong result, step %d\n", result);
    return result;
}
