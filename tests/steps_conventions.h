/* steps_conventions.h - the steps of docs/10_conventions.md, executed. */
#ifndef STEPS_CONVENTIONS_H
#define STEPS_CONVENTIONS_H

#include "derive_tools.h"

static void steps_conventions(void)
{
}
#endif
