/* steps_mlp.h - the steps of docs/08_mlp.md, executed. */
#ifndef STEPS_MLP_H
#define STEPS_MLP_H

#include "derive_tools.h"

static void steps_mlp(void)
{
}
#endif
