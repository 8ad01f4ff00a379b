/* Both precisions in one program, through NRM_STATIC or two implementations side by side. */
#include "user.h"
#include <stdio.h>

int main(void)
{
    const int single = user_float(), twice = user_double();
    if (single || twice) printf("wrong results: float %d, double %d\n", single, twice);
    return single || twice;
}
