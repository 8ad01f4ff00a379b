/* helpers.c - the implementations of the helper headers, compiled once for all examples. */
#define FILES_IMPLEMENTATION
#define CSV_IMPLEMENTATION
#define CLI_IMPLEMENTATION
#define JOBS_IMPLEMENTATION
#define STATS_IMPLEMENTATION
#define SYNTHETIC_DIGITS_IMPLEMENTATION
#define DATASET_IMPLEMENTATION
#define STROKE_FONT_IMPLEMENTATION
#define PLOT_IMPLEMENTATION
#define LAB_IMPLEMENTATION
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include "files.h"
#include "csv.h"
#include "cli.h"
#include "jobs.h"
#include "stats.h"
#include "synthetic_digits.h"
#include "dataset.h"
#include "stroke_font.h"
#include "plot.h"
#include "lab.h"
