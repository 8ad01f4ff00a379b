/* experiment.h - what a program in examples/experiments includes: all of it. */
#ifndef EXPERIMENT_H
#define EXPERIMENT_H

#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "normlayers.h"

#include "judge.h"
#include "lab.h"
#include "page.h"
#include "stats.h"
#include "trainer.h"
#include "training.h"

#endif /* EXPERIMENT_H */
