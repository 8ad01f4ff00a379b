/* steps_linear.h - the steps of docs/07_linear_and_softmax.md, executed. */
#ifndef STEPS_LINEAR_H
#define STEPS_LINEAR_H

#include "derive_tools.h"

static void steps_linear(void)
{
}
#endif
