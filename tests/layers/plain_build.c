/* plain_build.c - the header once more, for test_plain.c: with NRM_PLAIN. NRM_STATIC keeps its
   functions apart from the fast ones. */
#undef NRM_IMPLEMENTED
#define NRM_PLAIN
#define NRM_STATIC
#include "normlayers.h"
#include "plain_cases.h"

void run_plain(layer_outcome *o, const layer_case *k)
{
    run_case(o, k);
}
