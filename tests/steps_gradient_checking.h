/* steps_gradient_checking.h - the steps of docs/06_gradient_checking.md, executed. */
#ifndef STEPS_GRADIENT_CHECKING_H
#define STEPS_GRADIENT_CHECKING_H

#include "derive_tools.h"

static void steps_gradient_checking(void)
{
}
#endif
