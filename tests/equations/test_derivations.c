/* test_derivations.c - every equation of normlayers.h, executed.

   A claim per tag in layers.claims (claims.h says how it is read), or a DERIVE line in the
   derive_*.h files beside this one (derive_tools.h). Run with -v for the table of all residuals. */
#define NORMLAYERS_IMPLEMENTATION /* the derive_*.h files call private functions, nrmi_... */
#include "normlayers.h"

#include "derive_basics.h"
#include "derive_gradcheck.h"
#include "claims_calls.h"

typedef struct family { /* its equations are numbered 1 to last */
    const char *name;
    int last;
} family;

/* A DERIVE that is never reached leaves no trace in the table: so here is what must be in it. */
static const family families[] = {
    {"LIN", 5}, {"EXP", 6}, {"LOG", 3}, {"RNG", 6}, {"SUM", 13}, {"BN", 23},
    {"LN", 18}, {"NB", 7}, {"ST", 7}, {"BR", 5}, {"GN", 8}, {"RMS", 5}, {"RES", 2},
    {"LP", 16}, {"WN", 14}, {"FOLD", 4}, {"ACT", 6}, {"CE", 7},
    {"RNN", 15}, {"MLP", 9}, {"OPT", 5}, {"GC", 7}};

int main(int argc, char **argv)
{
    const int verbose = argc > 1 && strcmp(argv[1], "-v") == 0;
    size_t f;
    int n;
    derive_pcg();
    derive_uniform();
    derive_below();
    derive_normal();
    derive_sums();
    derive_init();
    derive_gradcheck();
    claims_run("layers", 10);
    claims_run("functions", 11);
    if (verbose) printf("tag     kind   times    residual     bound\n");
    for (f = 0; f < LENGTH(families); f++)
        for (n = 1; n <= families[f].last; n++) {
            char tag[16];
            snprintf(tag, sizeof tag, "%s.%d", families[f].name, n);
            derivation_report(tag, verbose);
        }
    return test_report("derivations");
}
