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

/* The data sets of a program, made before the first run and shared by all, and the function that
   its lab_program names: the first train_n and test_n examples, 0 for all, fewer if `quick`. */
#define LAB_SETS(train, test, train_n, test_n, encoding)                                           \
    static training_set train, test;                                                               \
    LAB_PREPARE(training_load(&train, &test, data, train_n, test_n, encoding))

/* The same without a test set. */
#define LAB_SET(train, train_n, encoding)                                                          \
    static training_set train;                                                                     \
    LAB_PREPARE(training_load(&train, NULL, data, train_n, 0, encoding))

#define LAB_PREPARE(load)                                                                          \
    static int prepare(const dataset *data, int quick)                                             \
    {                                                                                              \
        (void)quick;                                                                               \
        return load;                                                                               \
    }                                                                                              \
    static int prepare(const dataset *data, int quick)

/* The program of the tables `arms`, `claims`, `pages` and of the function `run`, and main:
   LAB_PROGRAM("09_example", question, settings, .revision = 1, ...). */
#define LAB_PROGRAM(folder, asks, with, ...)                                                       \
    static const lab_program program = {.name = folder,                                            \
                                        .version = NRM_VERSION,                                    \
                                        .question = asks,                                          \
                                        .settings = with,                                          \
                                        .arm = arms,                                               \
                                        .arms = LAB_COUNT(arms),                                   \
                                        .run = run,                                                \
                                        .claim = claims,                                           \
                                        .claims = LAB_COUNT(claims),                               \
                                        .page = pages,                                             \
                                        .pages = LAB_COUNT(pages),                                 \
                                        __VA_ARGS__};                                              \
    LAB_MAIN(program)

#endif /* EXPERIMENT_H */
