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
#include <unistd.h>

/* Five times the largest file of MNIST: whatever is larger was not meant. */
#define DATASET_FILE_MAX ((size_t)256 << 20)

/* A path and a file name together. */
#define DATASET_PATH_MAX 4096

#define DATASET_DEFAULT_DIR "data/mnist"
#define DATASET_HINT "run `make mnist` to download it again"

/* ---------------------------------------------------------------- messages */

#ifdef __GNUC__ /* formats are checked */
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

static unsigned long ds_word(const unsigned char *p)
{
    return (unsigned long)p[0] << 24 | (unsigned long)p[1] << 16 | (unsigned long)p[2] << 8 | p[3];
}

int dataset_parse_idx(const char *name, const unsigned char *bytes, size_t n, int images,
                      size_t *count, char *err)
{
    const size_t header = images ? 16 : 8, each = images ? DATASET_PIXELS : 1;
    const unsigned long magic = images ? 0x803 : 0x801; /* unsigned bytes of 3 dimensions, or 1 */
    uint64_t expected;
    *err = '\0';
    if (n >= 4 && ds_word(bytes) != magic)
        return ds_fail(
            err, name,
            "no IDX file of %s: the magic number is 0x%08lx, expected 0x%08lx; " DATASET_HINT,
            images ? "images" : "labels", ds_word(bytes), magic);
    if (n < header)
        return ds_fail(err, name, "truncated: %zu bytes, shorter than the header of %zu", n,
                       header);
    if (images && (ds_word(bytes + 8) != DATASET_SIDE || ds_word(bytes + 12) != DATASET_SIDE))
        return ds_fail(err, name, "images of %lu x %lu pixels, expected 28 x 28",
                       ds_word(bytes + 8), ds_word(bytes + 12));
    expected = header + (uint64_t)ds_word(bytes + 4) * each;
    if (n != expected || n == header)
        return ds_fail(err, name, "%s: %zu bytes, expected %llu; " DATASET_HINT,
                       n < expected   ? "truncated"
                       : n > expected ? "trailing bytes"
                                      : "empty",
                       n, (unsigned long long)expected);
    *count = ds_word(bytes + 4);
    return 0;
}

/* What is behind the header of a file; to be freed. */
static int ds_read(const char *path, int images, unsigned char **elements, size_t *count, char *err)
{
    const size_t header = images ? 16 : 8;
    unsigned char *bytes;
    size_t n;
    *err = '\0';
    if (files_read(path, DATASET_FILE_MAX, &bytes, &n, err)) return -1;
    if (dataset_parse_idx(path, bytes, n, images, count, err)) {
        free(bytes);
        return -1;
    }
    memmove(bytes, bytes + header, n - header);
    *elements = bytes;
    return 0;
}

/* ---------------------------------------------------------------- images with their labels */

static int ds_check_labels(const char *path, const unsigned char *label, size_t labels,
                           size_t images, char *err)
{
    size_t i;
    if (images != labels)
        return ds_fail(err, path, "count mismatch: %zu labels, expected %zu, one per image", labels,
                       images);
    for (i = 0; i < labels; i++)
        if (label[i] >= DATASET_CLASSES)
            return ds_fail(err, path, "label %u of sample %zu, expected 0 to 9", (unsigned)label[i],
                           i);
    return 0;
}

static size_t ds_limited(size_t n, size_t limit)
{
    return limit > 0 && limit < n ? limit : n;
}

int dataset_read_pair(const char *images_path, const char *labels_path, size_t limit,
                      unsigned char **images, unsigned char **labels, size_t *n, char *err)
{
    unsigned char *pixel = NULL, *label = NULL;
    size_t count = 0, label_count = 0;
    if (ds_read(images_path, 1, &pixel, &count, err) ||
        ds_read(labels_path, 0, &label, &label_count, err) ||
        ds_check_labels(labels_path, label, label_count, count, err)) {
        free(pixel);
        free(label);
        return -1;
    }
    *n = ds_limited(count, limit);
    *images = pixel;
    *labels = label;
    return 0;
}

/* ---------------------------------------------------------------- data sets */

static const char *const ds_files[4] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                        "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};

/* The paths of all four files in the folder; or -1, and err says what to do about one that is not
   there. */
static int ds_find(char path[4][DATASET_PATH_MAX], const char *dir, char *err)
{
    char packed[DATASET_PATH_MAX + 4];
    int i;
    if (strlen(dir) > DATASET_PATH_MAX - 30) return ds_fail(err, dir, "the path is too long");
    for (i = 0; i < 4; i++) {
        (void)snprintf(path[i], DATASET_PATH_MAX, "%s/%s", dir, ds_files[i]);
        if (access(path[i], R_OK) == 0) continue;
        (void)snprintf(packed, sizeof packed, "%s.gz", path[i]);
        if (access(packed, R_OK) == 0)
            return ds_fail(err, packed, "still compressed; unpack it with gzip -d");
        return ds_fail(err, path[i],
                       "missing or not readable; run `make mnist`, which fetches MNIST to "
                       "data/mnist, or name the folder that holds it, or \"synthetic\"");
    }
    return 0;
}

static void ds_seal(dataset *d)
{
    uint64_t h = FILES_HASH_INIT;
    h = files_hash(h, d->train_images, d->train_n * DATASET_PIXELS);
    h = files_hash(h, d->train_labels, d->train_n);
    h = files_hash(h, d->test_images, d->test_n * DATASET_PIXELS);
    d->hash = files_hash(h, d->test_labels, d->test_n);
}

static int ds_load_mnist(dataset *d, const char *dir, size_t train_n, size_t test_n, char *err)
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
    char path[4][DATASET_PATH_MAX];
    if (dir && !*dir) return ds_fail(err, dir, "the name of the data folder is empty");
    if (!dir) dir = getenv("MNIST_DIR");
    if (dir && !*dir) dir = NULL; /* an empty variable is as good as none */
    if (!dir && ds_find(path, DATASET_DEFAULT_DIR, err) == 0) dir = DATASET_DEFAULT_DIR;
    if (!dir || strcmp(dir, "synthetic") == 0)
        return dataset_load_synthetic(d, seed, train_n, test_n, err);
    return ds_load_mnist(d, dir, train_n, test_n, err);
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

double dataset_value(int pixel, dataset_encoding e)
{
    const double value = pixel / 255.0;
    if (e == DATASET_STD) return (value - 0.1307) / 0.3081;
    if (e == DATASET_BIN) return value > 0.5 ? 1 : 0;
    return value;
}
