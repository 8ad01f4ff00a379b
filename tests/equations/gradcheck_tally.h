/* gradcheck_tally.h - what many calls of the gradient checker have found, for test_gradcheck.c and
   test_recurrent.c. Include it after normlayers.h. */
#ifndef GRADCHECK_TALLY_H
#define GRADCHECK_TALLY_H

#include <math.h>
#include <stdio.h>

typedef struct tally {
    double worst;
    size_t cases, abstained, checked, vanishing, unsettled, kinks;
} tally;

static nrm_gradcheck_group group_of(const char *name, nrm_real *theta, const nrm_real *grad,
                                    size_t n)
{
    nrm_gradcheck_group g;
    g.name = name;
    g.theta = theta;
    g.grad = grad;
    g.n = n;
    return g;
}

/* Checks these groups of parameters and counts; names what is wrong, or not settled though it may
   not be. Returns the checker's status. */
static int tally_case(tally *t, const nrm_gradcheck_group *group, size_t groups,
                      nrm_acc (*loss)(void *), void *context, const nrm_gradcheck_options *o,
                      int may_be_unsettled, const char *what)
{
    nrm_gradcheck_report report[6];
    const int rc = nrm_gradcheck(report, group, groups, loss, context, o);
    size_t g;
    t->cases++;
    for (g = 0; g < groups; g++) {
        t->checked += report[g].checked;
        t->vanishing += report[g].vanishing;
        t->unsettled += report[g].unsettled;
        t->kinks += report[g].kinks;
        t->worst = fmax(t->worst, (double)report[g].error);
        if (report[g].wrong > 0 || (report[g].status != NRM_OK && !may_be_unsettled))
            printf("  %s of %s: %s; at %u: %g, differences %g +- %g\n", group[g].name, what,
                   nrm_strerror(report[g].status), (unsigned)report[g].worst,
                   (double)report[g].analytic, (double)report[g].numeric,
                   (double)report[g].uncertainty);
    }
    return rc;
}

static inline void tally_add(tally *to, const tally *of)
{
    to->worst = fmax(to->worst, of->worst);
    to->cases += of->cases;
    to->abstained += of->abstained;
    to->checked += of->checked;
    to->vanishing += of->vanishing;
    to->unsettled += of->unsettled;
    to->kinks += of->kinks;
}

static void tally_print(const tally *t, const char *what)
{
    printf("%-31s worst %.1e of %5u entries in %3u cases (%u zero, %u at kinks, %u unsettled; %u "
           "abstentions)\n",
           what, t->worst, (unsigned)t->checked, (unsigned)t->cases, (unsigned)t->vanishing,
           (unsigned)t->kinks, (unsigned)t->unsettled, (unsigned)t->abstained);
}
#endif
