/* steps_noisy.h - the steps of docs/04_noisy_batch_norm.md, executed. */
#ifndef STEPS_NOISY_H
#define STEPS_NOISY_H

#include "derive_tools.h"

static void steps_noisy(void)
{
}
#endif
