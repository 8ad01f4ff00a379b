/* 04_digits: what the networks are shown. A contact sheet of the data set: eighteen examples of
   each digit from the training images, and how many there are. Without MNIST it shows the built-in
   synthetic digits, which every figure then says it was drawn from. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include "normlayers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/cli.h"
#include "lab/csv.h"
#include "lab/dataset.h"
#include "plot/plot.h"

#define NAME "04_digits"
enum { COLUMNS = 18, SHOWN = DATASET_CLASSES * COLUMNS };

/* The first COLUMNS training images of each digit, one row per digit. Missing ones stay blank. */
static void pick(const dataset *d, unsigned char *sheet, size_t *count)
{
    size_t i;
    memset(sheet, 0, (size_t)SHOWN * DATASET_PIXELS);
    memset(count, 0, DATASET_CLASSES * sizeof *count);
    for (i = 0; i < d->train_n; i++) {
        const size_t label = d->train_labels[i], at = count[label]++;
        if (at < COLUMNS)
            memcpy(sheet + (label * COLUMNS + at) * DATASET_PIXELS,
                   d->train_images + i * DATASET_PIXELS, DATASET_PIXELS);
    }
}

static int draw(const dataset *d, const unsigned char *sheet, const char *path)
{
    plot_figure *f;
    char text[200];
    (void)snprintf(text, sizeof text,
                   "%sThe first %d of each class; %zu for training, %zu for testing.",
                   d->synthetic ? "Drawn from strokes by a seeded generator, not MNIST. " : "",
                   (int)COLUMNS, d->train_n, d->test_n);
    f = plot_new(.width = 1440, .height = 920, .title = d->synthetic ? "Synthetic digits" : "MNIST",
                 .subtitle = text, .footer = NAME);
    plot_images(plot_place(f, 0), sheet, SHOWN, DATASET_SIDE, DATASET_SIDE, COLUMNS, NULL, 1);
    return plot_finish(f, path);
}

static int write_table(const dataset *d, const size_t *count, const char *path)
{
    const char *columns[2] = {"digit", "training_images"};
    const csv_origin origin = {
        .program = NAME, .version = NRM_VERSION, .data = d->name, .data_hash = d->hash};
    csv_table t;
    int i;
    csv_begin(&t);
    csv_note_origin(&t, &origin);
    csv_columns(&t, columns, 2);
    for (i = 0; i < DATASET_CLASSES; i++) {
        csv_real(&t, i);
        csv_real(&t, (double)count[i]);
        csv_end_row(&t);
    }
    return csv_finish(&t, path);
}

int main(int argc, char **argv)
{
    static unsigned char sheet[SHOWN * DATASET_PIXELS];
    size_t count[DATASET_CLASSES];
    const char *out = "build/figures", *data = NULL;
    char png[1024], csv[1024], err[DATASET_ERR_MAX];
    dataset d;
    int failed, status, quick = 0; /* it is never long */
    cli_option option[3] = {CLI_DATA(&data), CLI_OUT(&out), CLI_QUICK(&quick)};
    status = cli_parse(NAME, "A contact sheet of the digits that the examples train on", option, 3,
                       argc, argv);
    if (status == CLI_RUN) status = cli_results(png, csv, sizeof png, NAME, out, 0);
    if (status != CLI_RUN) return status;
    if (dataset_load(&d, data, 1, 0, 0, err)) {
        fprintf(stderr, NAME ": %s\n", err);
        return 1;
    }
    if (d.synthetic)
        fprintf(stderr, NAME ": no MNIST here (`make mnist` fetches it): the synthetic digits\n");
    pick(&d, sheet, count);
    printf("%s, hash %016llx\n", d.name, (unsigned long long)d.hash);
    failed = draw(&d, sheet, png) || write_table(&d, count, csv);
    if (!failed) printf("wrote %s and its table\n", png);
    dataset_free(&d);
    return failed ? 1 : 0;
}
