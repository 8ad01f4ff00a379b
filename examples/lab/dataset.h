/*
dataset.h: MNIST, or digits made from a seed where there is no MNIST

dataset_load looks for the four IDX files of MNIST, checks every byte of their headers and gives
plain arrays of bytes. Where it looks:

    1. the folder that the caller names (the option --data DIR of the examples), else
    2. the folder in the environment variable MNIST_DIR, else
    3. data/mnist below the current folder, which `make mnist` fills, if all four files are there;
    4. else it makes the digits of synthetic_digits.h. So it does for the name "synthetic".

Only in case 4 is there a substitute: whoever named a folder gets its data or an error. Whoever
prints results must say which data they are from: `name` and `hash` of the data set are for this.

Use
    #include "dataset.h"
    #include <stdio.h>

    int main(int argc, char **argv)
    {
        dataset d;
        char err[DATASET_ERR_MAX];
        if (dataset_load(&d, argc > 1 ? argv[1] : NULL, 1, 0, 0, err)) {
            fprintf(stderr, "%s\n", err);
            return 1;
        }
        printf("%s, %lu for training, a pixel of the first: %g\n", d.name,
               (unsigned long)d.train_n, dataset_value(d.train_images[400], DATASET_RAW01));
        dataset_free(&d);
        return 0;
    }

Licence: as the project, see LICENSE.
*/
#ifndef DATASET_H
#define DATASET_H

#include <stddef.h>
#include <stdint.h>

#include "files.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DATASET_SIDE 28
#define DATASET_PIXELS (DATASET_SIDE * DATASET_SIDE)
#define DATASET_CLASSES 10
#define DATASET_ERR_MAX FILES_ERR_MAX

/* What the whole sets hold, MNIST and synthetic digits alike. */
#define DATASET_TRAIN_N 60000
#define DATASET_TEST_N 10000

/* The hash of the whole of MNIST: other data may come in files of the same format. */
#define DATASET_MNIST_HASH UINT64_C(0xeeadf3c992e1d47a)

typedef struct dataset {
    unsigned char *train_images; /* [train_n][28*28], row by row from the top, 0 paper, 255 ink */
    unsigned char *train_labels; /* [train_n], 0..9 */
    unsigned char *test_images;  /* [test_n][28*28] */
    unsigned char *test_labels;  /* [test_n] */
    size_t train_n, test_n;      /* samples */
    const char *name;            /* "MNIST" or "synthetic digits" */
    int synthetic;               /* 1 if made from a seed */
    uint64_t hash;               /* files_hash over the four arrays in the order above */
} dataset;

/* Fills *d as told above. seed: of the synthetic digits, of no influence on MNIST. train_n, test_n:
   how many samples to keep, the first ones; 0 or more than there are means all. err:
   DATASET_ERR_MAX bytes, gets one line that names the file, what is wrong with it and what helps.
   Returns 0; or -1, and *d is then unchanged. */
int dataset_load(dataset *d, const char *dir, uint64_t seed, size_t train_n, size_t test_n,
                 char *err);

/* The same for the synthetic digits alone. */
int dataset_load_synthetic(dataset *d, uint64_t seed, size_t train_n, size_t test_n, char *err);

/* Frees the arrays and clears *d. A cleared one may be freed again. */
void dataset_free(dataset *d);

/* Pixels as numbers: three encodings of a byte x. */
typedef enum dataset_encoding {
    DATASET_RAW01, /* x/255 */
    DATASET_STD, /* (x/255 - 0.1307)/0.3081: mean 0, variance 1 over the training images of MNIST */
    DATASET_BIN  /* 1 if x/255 > 0.5, else 0 */
} dataset_encoding;

double dataset_value(int pixel, dataset_encoding e);

/* Checks the content bytes [n] of a file in the IDX format: bytes 0 0, type of the elements (8:
   unsigned bytes), number of dimensions, 3 of `images` or 1 of labels; each dimension as a
   big-endian word of 32 bits; the elements, last dimension fastest; then the end. name: how to call
   it in messages. Returns 0 and how many there are in *count; or -1, a line in err, *count
   unchanged. */
int dataset_parse_idx(const char *name, const unsigned char *bytes, size_t n, int images,
                      size_t *count, char *err);

/* Reads a file of images and the file of their labels, and checks that they belong together: equal
   counts, 28 x 28 pixels, labels 0..9. Keeps the first `limit` of them (0: all). On success both
   arrays are for the caller to free and *n is their count. On failure -1, a line in err, nothing
   else changed. */
int dataset_read_pair(const char *images_path, const char *labels_path, size_t limit,
                      unsigned char **images, unsigned char **labels, size_t *n, char *err);

#ifdef __cplusplus
}
#endif

#endif /* DATASET_H */
