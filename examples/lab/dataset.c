/* dataset.c - see dataset.h. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include "dataset.h"
#include "synthetic_digits.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Five times the largest file of MNIST: whatever is larger was not meant. */
#define DATASET_FILE_MAX ((size_t)256 << 20)

/* No side of an image is longer. */
#define DATASET_SIDE_MAX 65535u

/* A path and a file name together. */
#define DATASET_PATH_MAX 4096

#define DATASET_DEFAULT_DIR "data/mnist"
#define DATASET_HINT "run `make mnist` to download it again"

/* ---------------------------------------------------------------- messages */

#if defined(__GNUC__)
static int ds_fail(char *err, const char *file, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
#endif

/* "'FILE': what is wrong"; a long path loses its beginning. */
static int ds_fail(char *err, const char *file, const char *format, ...)
{
    const size_t shown = 200, length = strlen(file);
    const char *tail = length > shown ? file + (length - shown) : file;
    char what[DATASET_ERR_MAX];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return files_fail(err, "'%s%s': %s", tail == file ? "" : "...", tail, what);
}

/* ---------------------------------------------------------------- IDX */

static uint32_t ds_word(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | (uint32_t)p[3];
}

/* Reads the dimensions, so checked that their product is the exact number of bytes after them. */
static int ds_check_shape(const char *name, const unsigned char *b, size_t n, int dimensions,
                          dataset_idx *idx, char *err)
{
    uint32_t size[3] = {1, 1, 1};
    uint64_t product = 1, header = 4 + 4 * (uint64_t)dimensions;
    int i;
    if (n < header)
        return ds_fail(err, name, "truncated: %zu bytes, shorter than the header of %zu", n,
                       (size_t)header);
    for (i = 0; i < dimensions; i++) {
        size[i] = ds_word(b + 4 + 4 * i);
        if (size[i] == 0)
            return ds_fail(err, name, "dimension %d is zero, expected at least 1", i + 1);
        if (i > 0 && size[i] > DATASET_SIDE_MAX)
            return ds_fail(err, name, "absurd dimension %d: %lu, expected at most %lu", i + 1,
                           (unsigned long)size[i], (unsigned long)DATASET_SIDE_MAX);
    }
    for (i = 0; i < dimensions; i++) product *= size[i]; /* < 2^32 * 2^16 * 2^16 */
    if (product > DATASET_FILE_MAX)
        return ds_fail(err, name,
                       "the product of its dimensions overflows: %lu x %lu x %lu, expected at most "
                       "%zu bytes",
                       (unsigned long)size[0], (unsigned long)size[1], (unsigned long)size[2],
                       DATASET_FILE_MAX);
    if (n - header < product)
        return ds_fail(err, name, "truncated: %zu bytes, expected %zu; " DATASET_HINT, n,
                       (size_t)(header + product));
    if (n - header > product)
        return ds_fail(err, name, "trailing bytes: %zu bytes, expected %zu", n,
                       (size_t)(header + product));
    idx->count = size[0];
    idx->rows = size[1];
    idx->cols = size[2];
    idx->offset = (size_t)header;
    idx->bytes = (size_t)product;
    return 0;
}

int dataset_parse_idx(const char *name, const unsigned char *bytes, size_t n, int dimensions,
                      dataset_idx *idx, char *err)
{
    const uint32_t magic = 0x800u + (uint32_t)dimensions; /* unsigned bytes */
    *err = '\0';
    if (dimensions != 1 && dimensions != 3)
        return ds_fail(err, name, "asked for %d dimensions, expected 1 or 3", dimensions);
    if (n >= 4 && ds_word(bytes) != magic)
        return ds_fail(
            err, name,
            "no IDX file of %s: the magic number is 0x%08lx, expected 0x%08lx; " DATASET_HINT,
            dimensions == 3 ? "images" : "labels", (unsigned long)ds_word(bytes),
            (unsigned long)magic);
    return ds_check_shape(name, bytes, n, dimensions, idx, err);
}

int dataset_read_idx(const char *path, int dimensions, dataset_idx *idx, unsigned char **elements,
                     char *err)
{
    unsigned char *bytes;
    size_t n;
    *err = '\0';
    if (files_read(path, DATASET_FILE_MAX, &bytes, &n, err)) return -1;
    if (dataset_parse_idx(path, bytes, n, dimensions, idx, err)) {
        free(bytes);
        return -1;
    }
    memmove(bytes, bytes + idx->offset, idx->bytes);
    *elements = bytes;
    return 0;
}

/* ---------------------------------------------------------------- images with their labels */

static int ds_check_pair(const char *images_path, const dataset_idx *images,
                         const char *labels_path, const dataset_idx *labels,
                         const unsigned char *label, char *err)
{
    size_t i;
    if (images->rows != DATASET_SIDE || images->cols != DATASET_SIDE)
        return ds_fail(err, images_path, "images of %zu x %zu pixels, expected 28 x 28",
                       images->rows, images->cols);
    if (images->count != labels->count)
        return ds_fail(err, labels_path, "count mismatch: %zu labels, expected %zu, one per image",
                       labels->count, images->count);
    for (i = 0; i < labels->count; i++)
        if (label[i] >= DATASET_CLASSES)
            return ds_fail(err, labels_path, "label %u of sample %zu, expected 0 to 9",
                           (unsigned)label[i], i);
    return 0;
}

/* Gives the tail of a block back; where that fails the longer block does as well. */
static unsigned char *ds_shrink(unsigned char *block, size_t n)
{
    unsigned char *smaller = (unsigned char *)realloc(block, n);
    return smaller ? smaller : block;
}

static size_t ds_limited(size_t n, size_t limit)
{
    return limit > 0 && limit < n ? limit : n;
}

int dataset_read_pair(const char *images_path, const char *labels_path, size_t limit,
                      unsigned char **images, unsigned char **labels, size_t *n, char *err)
{
    dataset_idx shape, label_shape;
    unsigned char *pixel = NULL, *label = NULL;
    if (dataset_read_idx(images_path, 3, &shape, &pixel, err) ||
        dataset_read_idx(labels_path, 1, &label_shape, &label, err) ||
        ds_check_pair(images_path, &shape, labels_path, &label_shape, label, err)) {
        free(pixel);
        free(label);
        return -1;
    }
    *n = ds_limited(shape.count, limit);
    *images = ds_shrink(pixel, *n * DATASET_PIXELS);
    *labels = ds_shrink(label, *n);
    return 0;
}

/* ---------------------------------------------------------------- data sets */

static const char *const ds_files[4] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                        "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};

static int ds_join(char *path, const char *dir, const char *file, const char *suffix, char *err)
{
    int n = snprintf(path, DATASET_PATH_MAX, "%s/%s%s", dir, file, suffix);
    if (n > 0 && n < DATASET_PATH_MAX) return 0;
    return ds_fail(err, dir, "the path is too long");
}

static int ds_exists(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (f) (void)fclose(f);
    return f != NULL;
}

static int ds_is_complete(const char *dir)
{
    char path[DATASET_PATH_MAX], ignored[DATASET_ERR_MAX];
    int i;
    for (i = 0; i < 4; i++)
        if (ds_join(path, dir, ds_files[i], "", ignored) || !ds_exists(path)) return 0;
    return 1;
}

/* Says what to do about a file that is not there. */
static int ds_missing(const char *dir, const char *file, char *err)
{
    char path[DATASET_PATH_MAX];
    if (ds_join(path, dir, file, ".gz", err)) return -1;
    if (ds_exists(path)) return ds_fail(err, path, "still compressed; unpack it with gzip -d");
    if (ds_join(path, dir, file, "", err)) return -1;
    return ds_fail(err, path,
                   "missing or not readable; run `make mnist`, which fetches MNIST to data/mnist, "
                   "or name the folder that holds it, or \"synthetic\"");
}

static int ds_find(char path[4][DATASET_PATH_MAX], const char *dir, char *err)
{
    int i;
    for (i = 0; i < 4; i++) {
        if (ds_join(path[i], dir, ds_files[i], "", err)) return -1;
        if (!ds_exists(path[i])) return ds_missing(dir, ds_files[i], err);
    }
    return 0;
}

static void ds_seal(dataset *d)
{
    uint64_t h = FILES_HASH_INIT;
    d->rows = d->cols = DATASET_SIDE;
    h = files_hash(h, d->train_images, d->train_n * DATASET_PIXELS);
    h = files_hash(h, d->train_labels, d->train_n);
    h = files_hash(h, d->test_images, d->test_n * DATASET_PIXELS);
    d->hash = files_hash(h, d->test_labels, d->test_n);
}

int dataset_load_mnist(dataset *d, const char *dir, size_t train_n, size_t test_n, char *err)
{
    char path[4][DATASET_PATH_MAX];
    dataset t;
    memset(&t, 0, sizeof t);
    t.name = "MNIST";
    if (ds_find(path, dir, err) ||
        dataset_read_pair(path[0], path[1], train_n, &t.train_images, &t.train_labels, &t.train_n,
                          err) ||
        dataset_read_pair(path[2], path[3], test_n, &t.test_images, &t.test_labels, &t.test_n,
                          err)) {
        dataset_free(&t);
        return -1;
    }
    ds_seal(&t);
    *d = t;
    return 0;
}

int dataset_load_synthetic(dataset *d, uint64_t seed, size_t train_n, size_t test_n, char *err)
{
    dataset t;
    memset(&t, 0, sizeof t);
    *err = '\0';
    t.name = "synthetic digits";
    t.synthetic = 1;
    t.train_n = ds_limited(DATASET_TRAIN_N, train_n);
    t.test_n = ds_limited(DATASET_TEST_N, test_n);
    t.train_images = (unsigned char *)malloc(t.train_n * DATASET_PIXELS);
    t.train_labels = (unsigned char *)malloc(t.train_n);
    t.test_images = (unsigned char *)malloc(t.test_n * DATASET_PIXELS);
    t.test_labels = (unsigned char *)malloc(t.test_n);
    if (!t.train_images || !t.train_labels || !t.test_images || !t.test_labels) {
        dataset_free(&t);
        return ds_fail(err, "synthetic digits", "out of memory");
    }
    synthetic_digits_fill(t.train_images, t.train_labels, t.train_n, seed, SYNTHETIC_DIGITS_TRAIN);
    synthetic_digits_fill(t.test_images, t.test_labels, t.test_n, seed, SYNTHETIC_DIGITS_TEST);
    ds_seal(&t);
    *d = t;
    return 0;
}

int dataset_load(dataset *d, const char *dir, uint64_t seed, size_t train_n, size_t test_n,
                 char *err)
{
    if (dir && !*dir) return ds_fail(err, dir, "the name of the data folder is empty");
    if (!dir) dir = getenv("MNIST_DIR");
    if (dir && !*dir) dir = NULL; /* an empty variable is as good as none */
    if (!dir && ds_is_complete(DATASET_DEFAULT_DIR)) dir = DATASET_DEFAULT_DIR;
    if (!dir || strcmp(dir, "synthetic") == 0)
        return dataset_load_synthetic(d, seed, train_n, test_n, err);
    return dataset_load_mnist(d, dir, train_n, test_n, err);
}

void dataset_free(dataset *d)
{
    free(d->train_images);
    free(d->train_labels);
    free(d->test_images);
    free(d->test_labels);
    memset(d, 0, sizeof *d);
}

/* ---------------------------------------------------------------- pixels as numbers */

static double ds_encode(int x, dataset_encoding e)
{
    double value = x / 255.0;
    if (e == DATASET_STD) return (value - 0.1307) / 0.3081;
    if (e == DATASET_BIN) return value > 0.5 ? 1 : 0;
    return value;
}

void dataset_to_float(float *out, const unsigned char *pixels, size_t n, dataset_encoding e)
{
    float table[256];
    size_t i;
    for (i = 0; i < 256; i++) table[i] = (float)ds_encode((int)i, e);
    for (i = 0; i < n; i++) out[i] = table[pixels[i]];
}

void dataset_to_double(double *out, const unsigned char *pixels, size_t n, dataset_encoding e)
{
    double table[256];
    size_t i;
    for (i = 0; i < 256; i++) table[i] = ds_encode((int)i, e);
    for (i = 0; i < n; i++) out[i] = table[pixels[i]];
}
