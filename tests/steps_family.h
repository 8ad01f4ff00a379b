/* steps_family.h - the steps of docs/05_family.md, executed. */
#ifndef STEPS_FAMILY_H
#define STEPS_FAMILY_H

#include "derive_tools.h"

static void steps_family(void)
{
}
#endif
