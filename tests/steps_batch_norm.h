/* steps_batch_norm.h - the steps of docs/02_batch_norm.md, executed. */
#ifndef STEPS_BATCH_NORM_H
#define STEPS_BATCH_NORM_H

#include "derive_tools.h"

static void steps_batch_norm(void)
{
}
#endif
