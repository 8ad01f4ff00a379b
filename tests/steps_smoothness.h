/* steps_smoothness.h - the steps of docs/09_smoothness.md, executed. */
#ifndef STEPS_SMOOTHNESS_H
#define STEPS_SMOOTHNESS_H

#include "derive_tools.h"

static void steps_smoothness(void)
{
}
#endif
