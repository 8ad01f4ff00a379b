/* faults.c - planted faults, one for each letter: sanitize.sh wants each of them found. */
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **argument)
{
    const char letter = count > 1 ? argument[1][0] : 0;
    int *some = (int *)malloc(4 * sizeof *some), huge = 2147483647;
    unsigned char byte = 0;
    if (some == NULL) return 2;
    some[0] = count;
    if (letter == 'a') printf("%d\n", some[2 + count]);   /* behind the end of the array */
    if (letter == 'o') printf("%d\n", huge + count);      /* an int that overflows */
    if (letter == 'c') byte = 255 + count;                /* a conversion that loses a digit */
    if (letter == 'm' && some[count]) printf("from\n");   /* what nobody has written */
    printf("%d\n", byte);
    free(some);
    return 0;
}
