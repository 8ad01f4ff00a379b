/* steps_means.h - the steps of docs/01_means_and_variances.md, executed. */
#ifndef STEPS_MEANS_H
#define STEPS_MEANS_H

#include "derive_tools.h"

static void steps_means(void)
{
}
#endif
