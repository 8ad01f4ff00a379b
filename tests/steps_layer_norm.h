/* steps_layer_norm.h - the steps of docs/03_layer_norm.md, executed. */
#ifndef STEPS_LAYER_NORM_H
#define STEPS_LAYER_NORM_H

#include "derive_tools.h"

static void steps_layer_norm(void)
{
}
#endif
