/* test_dataset.c - data files that must be refused and accepted, and the synthetic digits.

   It writes only below a temporary folder of its own, which it removes. */
#ifndef _XOPEN_SOURCE
#define _XOPEN_SOURCE 700 /* mkdtemp, setenv, truncate */
#endif

#include "lab/dataset.h"
#include "lab/files.h"
#include "lab/synthetic_digits.h"
#include "folder.h"
#include "test.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define BYTES(literal) literal, sizeof(literal) - 1
#define PATH_SIZE 400

static const char *const mnist_files[4] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                           "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};

/* ---- helpers of the tests ---- */

static void put(const char *path, const void *data, size_t n)
{
    char err[FILES_ERR_MAX];
    if (files_write(path, data, n, err) != 0) printf("%s\n", err);
}

/* A block of exactly n bytes: a sanitizer sees whoever reads beyond it. */
static unsigned char *exact_copy(const void *data, size_t n)
{
    unsigned char *block = (unsigned char *)malloc(n ? n : 1);
    if (!block) exit(1);
    if (n) memcpy(block, data, n);
    return block;
}

static void put_word(unsigned char *p, size_t word)
{
    int i;
    for (i = 0; i < 4; i++) p[i] = (unsigned char)(word >> (24 - 8 * i) & 255u);
}

/* An IDX file in a block for free(); elements count upwards modulo 10. */
static unsigned char *make_idx(int dimensions, size_t count, size_t rows, size_t cols, size_t *n)
{
    size_t header = 4 + 4 * (size_t)dimensions, elements, i;
    unsigned char *b;
    elements = dimensions == 1 ? count : count * rows * cols;
    *n = header + elements;
    b = (unsigned char *)calloc(*n, 1);
    if (!b) exit(1);
    b[2] = 8;
    b[3] = (unsigned char)dimensions;
    put_word(b + 4, count);
    if (dimensions == 3) {
        put_word(b + 8, rows);
        put_word(b + 12, cols);
    }
    for (i = 0; i < elements; i++) b[header + i] = (unsigned char)(i % 10);
    return b;
}

static void put_idx(const char *path, int dimensions, size_t count, size_t rows, size_t cols)
{
    size_t n;
    unsigned char *b = make_idx(dimensions, count, rows, cols, &n);
    put(path, b, n);
    free(b);
}

/* A small but complete folder of MNIST: 12 and 7 samples. */
static void put_mnist(const char *dir)
{
    char path[PATH_SIZE];
    int i;
    for (i = 0; i < 4; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", dir, mnist_files[i]);
        put_idx(path, i % 2 ? 1 : 3, i < 2 ? 12 : 7, 28, 28);
    }
}

static int one_line(const char *err)
{
    return *err && strlen(err) < DATASET_ERR_MAX && !strchr(err, '\n');
}

static int all_bytes_are(const void *p, size_t n, unsigned char value)
{
    const unsigned char *b = (const unsigned char *)p;
    size_t i;
    for (i = 0; i < n; i++)
        if (b[i] != value) return 0;
    return 1;
}

/* ---- malformed files ---- */

typedef struct malformed {
    const char *what;
    int dimensions; /* that are asked for */
    const char *bytes;
    size_t n;
    const char *word; /* expected in the message */
} malformed;

#define MAGIC1 "\0\0\x08\x01"
#define MAGIC3 "\0\0\x08\x03"
#define BE(c) "\0\0\0" c

static const malformed bad_files[] = {
    {"nothing", 3, BYTES(""), "truncated"},
    {"nothing as labels", 1, BYTES(""), "truncated"},
    {"one byte", 3, BYTES("\0"), "truncated"},
    {"three bytes", 1, BYTES("\0\0\x08"), "truncated"},
    {"gzip", 3, BYTES("\x1f\x8b\x08\0\0\0\0\0\0\x03"), "magic number"},
    {"gzip, cut after its magic", 1, BYTES("\x1f\x8b"), "truncated"},
    {"zip", 3, BYTES("PK\003\004\024\0\0\0\010\0"), "magic number"},
    {"HTML", 3, BYTES("<!DOCTYPE html><html><body>403 Forbidden</body></html>"), "magic number"},
    {"HTML after white space", 1, BYTES(" \r\n\t<html>"), "magic number"},
    {"HTML after a byte order mark", 3, BYTES("\xef\xbb\xbf<html>"), "magic number"},
    {"XML of an object store", 3, BYTES("<?xml version='1.0'?><Error/>"), "magic number"},
    {"a Git LFS pointer", 3, BYTES("version https://git-lfs.github.com/spec/v1\n"), "magic number"},
    {"text", 3, BYTES("404: Not Found"), "magic number"},
    {"random bytes", 1, BYTES("\x9a\x12\x08\x01\0\0\0\x01\x05"), "magic number"},
    {"a PNG", 3, BYTES("\x89PNG\r\n\x1a\n"), "magic number"},
    {"second byte not zero", 1, BYTES("\0\x01\x08\x01" BE("\x01") "\x05"), "magic number"},
    {"images, bytes swapped", 3, BYTES("\x03\x08\0\0\x01\0\0\0\x01\0\0\0\x01\0\0\0\x05"),
     "magic number"},
    {"labels, bytes swapped", 1, BYTES("\x01\x08\0\0\x01\0\0\0\x05"), "magic number"},
    {"signed bytes", 1, BYTES("\0\0\x09\x01" BE("\x01") "\x05"), "magic number"},
    {"16-bit integers", 1, BYTES("\0\0\x0b\x01" BE("\x01") "\0\x05"), "magic number"},
    {"32-bit integers", 1, BYTES("\0\0\x0c\x01" BE("\x01") BE("\x05")), "magic number"},
    {"floats", 1, BYTES("\0\0\x0d\x01" BE("\x01") "\x3f\x80\0\0"), "magic number"},
    {"doubles", 3, BYTES("\0\0\x0e\x03"), "magic number"},
    {"type code 0", 1, BYTES("\0\0\0\x01" BE("\x01") "\x05"), "magic number"},
    {"type code 255", 1, BYTES("\0\0\xff\x01" BE("\x01") "\x05"), "magic number"},
    {"no dimensions", 1, BYTES("\0\0\x08\0"), "magic number"},
    {"two dimensions", 3, BYTES("\0\0\x08\x02" BE("\x01") BE("\x01") "\x05"), "magic number"},
    {"four dimensions", 3, BYTES("\0\0\x08\x04" BE("\x01") BE("\x01") BE("\x01") BE("\x01") "\x05"),
     "magic number"},
    {"255 dimensions", 3, BYTES("\0\0\x08\xff"), "magic number"},
    {"labels for images", 3, BYTES(MAGIC1 BE("\x01") "\x05"), "magic number"},
    {"images for labels", 1, BYTES(MAGIC3 BE("\x01") BE("\x01") BE("\x01") "\x05"), "magic number"},
    {"magic alone, images", 3, BYTES(MAGIC3), "header of 16"},
    {"magic alone, labels", 1, BYTES(MAGIC1), "header of 8"},
    {"header of labels cut", 1, BYTES(MAGIC1 "\0\0\0"), "truncated"},
    {"header of images cut", 3, BYTES(MAGIC3 BE("\x01") BE("\x01") "\0\0\0"), "truncated"},
    {"no labels", 1, BYTES(MAGIC1 BE("\0")), "empty"},
    {"no images", 3, BYTES(MAGIC3 BE("\0") BE("\x1c") BE("\x1c")), "empty"},
    {"no rows", 3, BYTES(MAGIC3 BE("\x01") BE("\0") BE("\x1c")), "0 x 28 pixels"},
    {"no columns", 3, BYTES(MAGIC3 BE("\x01") BE("\x1c") BE("\0")), "28 x 0 pixels"},
    {"absurd rows", 3, BYTES(MAGIC3 BE("\x01") "\x1c\0\0\0" BE("\x1c") "\x05"), "469762048 x 28"},
    {"negative columns", 3, BYTES(MAGIC3 BE("\x01") BE("\x1c") "\xff\xff\xff\xff\x05"), "pixels"},
    {"2^32 - 1 images", 3, BYTES(MAGIC3 "\xff\xff\xff\xff" BE("\x1c") BE("\x1c") "\x05"),
     "expected 3367254359296"},
    {"2^32 - 1 labels", 1, BYTES(MAGIC1 "\xff\xff\xff\xff\x05"), "expected 4294967303"},
    {"one label short", 1, BYTES(MAGIC1 BE("\x03") "\x01\x02"), "truncated"},
    {"all labels short", 1, BYTES(MAGIC1 BE("\x03")), "11"},
    {"pixels short", 3, BYTES(MAGIC3 BE("\x01") BE("\x1c") BE("\x1c") "abc"), "truncated"},
    {"one label too many", 1, BYTES(MAGIC1 BE("\x01") "\x01\x02"), "trailing"},
    {"an image too many", 3, BYTES(MAGIC3 BE("\0") BE("\x1c") BE("\x1c") "a"), "trailing"},
    {"a newline at the end", 1, BYTES(MAGIC1 BE("\x01") "\x01\n"), "trailing"},
};

static void check_refused_in_memory(const malformed *m)
{
    unsigned char *block = exact_copy(m->bytes, m->n);
    char err[DATASET_ERR_MAX];
    size_t count = 77;
    memset(err, 'x', sizeof err);
    CHECK_INT(dataset_parse_idx("some-file", block, m->n, m->dimensions == 3, &count, err), -1);
    if (!CHECK(one_line(err) && strstr(err, "'some-file': ") == err && strstr(err, m->word)))
        printf("    %s: \"%s\" lacks \"%s\"\n", m->what, err, m->word);
    CHECK_INT(count, 77);
    free(block);
}

/* As images, or as the labels of good ones. */
static void check_refused_in_file(const char *path, int dimensions, const char *word)
{
    unsigned char here, *images = &here, *labels = &here;
    char err[DATASET_ERR_MAX];
    size_t n = 77;
    put_idx("im", 3, 4, 28, 28);
    CHECK_INT(dataset_read_pair(dimensions == 3 ? path : "im", path, 0, &images, &labels, &n, err),
              -1);
    if (!CHECK(one_line(err) && strstr(err, path) && strstr(err, word)))
        printf("    \"%s\"\n", err);
    CHECK(images == &here && labels == &here && n == 77);
}

static void test_malformed(void)
{
    size_t i;
    for (i = 0; i < COUNT(bad_files); i++) {
        check_refused_in_memory(&bad_files[i]);
        put("bad", bad_files[i].bytes, bad_files[i].n);
        check_refused_in_file("bad", bad_files[i].dimensions, bad_files[i].word);
    }
}

/* A good file cut anywhere is bad, and so is one with any bit of its header turned. */
static void test_every_cut_and_flip(void)
{
    char err[DATASET_ERR_MAX];
    int images;
    for (images = 0; images < 2; images++) {
        size_t n, cut, bit, count, header = images ? 16 : 8;
        unsigned char *good = make_idx(images ? 3 : 1, 3, 28, 28, &n);
        CHECK_INT(dataset_parse_idx("f", good, n, images, &count, err), 0);
        CHECK_INT(count, 3);
        for (cut = 0; cut < n; cut++) {
            unsigned char *block = exact_copy(good, cut);
            CHECK_INT(dataset_parse_idx("f", block, cut, images, &count, err), -1);
            CHECK(strstr(err, "truncated") != NULL);
            free(block);
        }
        for (bit = 0; bit < 8 * header; bit++) {
            good[bit / 8] ^= (unsigned char)(1u << bit % 8);
            CHECK_INT(dataset_parse_idx("f", good, n, images, &count, err), -1);
            CHECK(one_line(err));
            good[bit / 8] ^= (unsigned char)(1u << bit % 8);
        }
        CHECK_INT(dataset_parse_idx("f", good, n, images, &count, err), 0);
        free(good);
    }
}

static void test_unreadable(void)
{
    check_refused_in_file("no-such-file", 3, "no-such-file");
    check_refused_in_file("", 3, "empty");
    CHECK_INT(mkdir("a-folder", 0777), 0);
    check_refused_in_file("a-folder", 3, "irectory");
    put("large", "x", 1);
    CHECK_INT(truncate("large", (off_t)300 << 20), 0); /* takes no room on the disk */
    check_refused_in_file("large", 3, "larger than allowed");
    (void)unlink("large");
}

static void test_message_is_one_short_line(void)
{
    char name[2000], err[DATASET_ERR_MAX];
    size_t count;
    memset(name, 'a', sizeof name);
    memcpy(name + sizeof name - 8, "b\nc\033end", 8);
    CHECK_INT(dataset_parse_idx(name, (const unsigned char *)"", 0, 1, &count, err), -1);
    CHECK(one_line(err) && strstr(err, "b?c?end': truncated") && !strchr(err, '\033'));
}

/* ---- images with labels ---- */

static void check_pair_refused(const char *word)
{
    unsigned char here, *images = &here, *labels = &here;
    char err[DATASET_ERR_MAX];
    size_t n = 77;
    CHECK_INT(dataset_read_pair("im", "la", 0, &images, &labels, &n, err), -1);
    if (!CHECK(one_line(err) && strstr(err, word))) printf("    \"%s\"\n", err);
    CHECK(images == &here && labels == &here && n == 77);
}

static void put_labels_with(size_t count, size_t at, unsigned char label)
{
    size_t n;
    unsigned char *b = make_idx(1, count, 1, 1, &n);
    b[8 + at] = label;
    put("la", b, n);
    free(b);
}

static void test_pairs_refused(void)
{
    put_idx("im", 3, 4, 28, 28);
    put_idx("la", 1, 3, 1, 1);
    check_pair_refused("3 labels, expected 4");
    put_idx("la", 1, 5, 1, 1);
    check_pair_refused("count mismatch");
    put_labels_with(4, 0, 10);
    check_pair_refused("label 10 of sample 0, expected 0 to 9");
    put_labels_with(4, 3, 255);
    check_pair_refused("label 255 of sample 3");
    put_idx("la", 3, 4, 28, 28);
    check_pair_refused("'la': no IDX file of labels");
    (void)unlink("la");
    check_pair_refused("'la'");
    put_idx("la", 1, 4, 1, 1);
    put_idx("im", 3, 4, 28, 27);
    check_pair_refused("28 x 27 pixels, expected 28 x 28");
    put_idx("im", 3, 4, 32, 32);
    check_pair_refused("expected 28 x 28");
    put_idx("im", 1, 4, 1, 1);
    check_pair_refused("'im': no IDX file of images");
}

static void test_pairs_accepted(void)
{
    static const size_t limit[] = {0, 1, 3, 4, 5, (size_t)-1}, kept[] = {4, 1, 3, 4, 4, 4};
    size_t i;
    put_idx("im", 3, 4, 28, 28);
    put_idx("la", 1, 4, 1, 1);
    for (i = 0; i < COUNT(limit); i++) {
        unsigned char *images = NULL, *labels = NULL;
        char err[DATASET_ERR_MAX];
        size_t n = 0;
        CHECK_INT(dataset_read_pair("im", "la", limit[i], &images, &labels, &n, err), 0);
        CHECK_INT(n, kept[i]);
        CHECK(labels && labels[n - 1] == n - 1);
        CHECK(images && images[n * DATASET_PIXELS - 1] == (n * DATASET_PIXELS - 1) % 10);
        free(images);
        free(labels);
    }
}

/* ---- whole data sets ---- */

static void check_load_refused(const char *dir, const char *word, const char *other_word)
{
    char err[DATASET_ERR_MAX];
    dataset d;
    memset(&d, 0xa5, sizeof d);
    CHECK_INT(dataset_load(&d, dir, 1, 5, 5, err), -1);
    if (!CHECK(one_line(err) && strstr(err, word) && strstr(err, other_word)))
        printf("    \"%s\"\n", err);
    CHECK(all_bytes_are(&d, sizeof d, 0xa5));
}

/* Loads and frees; returns train_n, negative if synthetic, 0 if refused. */
static long loaded(const char *dir, size_t train_n, size_t test_n)
{
    char err[DATASET_ERR_MAX];
    dataset d;
    long n;
    if (dataset_load(&d, dir, 1, train_n, test_n, err) != 0) return 0;
    CHECK_STR(d.name, d.synthetic ? "synthetic digits" : "MNIST");
    n = d.synthetic ? -(long)d.train_n : (long)d.train_n;
    dataset_free(&d);
    CHECK(!d.train_images && !d.test_labels && !d.train_n);
    dataset_free(&d);
    return n;
}

static void test_where_data_come_from(void)
{
    (void)unsetenv("MNIST_DIR");
    CHECK_INT(loaded(NULL, 30, 20), -30); /* no data/mnist here yet */
    CHECK_INT(loaded("synthetic", 30, 20), -30);
    put_mnist("there");
    CHECK_INT(loaded("there", 0, 0), 12);
    CHECK_INT(loaded("there/", 5, 20), 5);
    CHECK_INT(loaded("there", 50, 20), 12);
    CHECK_INT(setenv("MNIST_DIR", "there", 1), 0);
    CHECK_INT(loaded(NULL, 9, 0), 9);
    CHECK_INT(loaded("synthetic", 9, 9), -9);
    check_load_refused("nowhere", "'nowhere/train-images-idx3-ubyte'", "make mnist");
    CHECK_INT(setenv("MNIST_DIR", "nowhere", 1), 0);
    check_load_refused(NULL, "'nowhere/train-images-idx3-ubyte'", "make mnist");
    CHECK_INT(loaded("there", 0, 0), 12);
    CHECK_INT(setenv("MNIST_DIR", "", 1), 0);
    CHECK_INT(loaded(NULL, 30, 20), -30);
    (void)unsetenv("MNIST_DIR");
    put_mnist("data/mnist");
    CHECK_INT(loaded(NULL, 0, 0), 12);
    put("data/mnist/t10k-labels-idx1-ubyte", "<html>", 6);
    check_load_refused(NULL, "data/mnist/t10k-labels-idx1-ubyte", "magic number");
    (void)unlink("data/mnist/t10k-labels-idx1-ubyte");
    CHECK_INT(loaded(NULL, 30, 20), -30); /* not complete, and nobody named it */
    check_load_refused("data/mnist", "data/mnist/t10k-labels-idx1-ubyte", "make mnist");
    check_load_refused("", "empty", "folder");
}

/* Each of the four files missing, packed, a folder, or cut. */
static void test_damaged_folders(void)
{
    char path[PATH_SIZE], packed[PATH_SIZE + 3], long_name[6000];
    int i;
    put_mnist("hurt");
    for (i = 0; i < 4; i++) {
        (void)snprintf(path, sizeof path, "hurt/%s", mnist_files[i]);
        (void)snprintf(packed, sizeof packed, "%s.gz", path);
        CHECK_INT(truncate(path, 100 - 88 * (i % 2)), 0);
        check_load_refused("hurt", path, "truncated");
        CHECK_INT(rename(path, packed), 0);
        check_load_refused("hurt", packed, "gzip -d");
        (void)unlink(packed);
        check_load_refused("hurt", path, "missing");
        CHECK_INT(mkdir(path, 0777), 0);
        check_load_refused("hurt", path, "irectory");
        (void)rmdir(path);
        put_idx(path, i % 2 ? 1 : 3, i < 2 ? 12 : 7, 28, 28);
        CHECK_INT(loaded("hurt", 0, 0), 12);
    }
    memset(long_name, 'd', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    check_load_refused(long_name, "too long", "...d");
}

static void test_hash_sees_every_array(void)
{
    char err[DATASET_ERR_MAX];
    uint64_t h = FILES_HASH_INIT;
    dataset d;
    if (!CHECK(dataset_load_synthetic(&d, 3, 40, 30, err) == 0)) return;
    h = files_hash(h, d.train_images, 40 * DATASET_PIXELS);
    h = files_hash(h, d.train_labels, 40);
    h = files_hash(h, d.test_images, 30 * DATASET_PIXELS);
    h = files_hash(h, d.test_labels, 30);
    CHECK(d.hash == h);
    dataset_free(&d);
}

/* ---- pixels as numbers ---- */

static void test_encodings(void)
{
    int i;
    for (i = 0; i < 256; i++) {
        CHECK_NEAR(dataset_value(i, DATASET_RAW01), i / 255.0, 1e-15);
        CHECK_NEAR(dataset_value(i, DATASET_STD), (i / 255.0 - 0.1307) / 0.3081, 1e-15);
        CHECK(dataset_value(i, DATASET_BIN) == (i >= 128));
    }
    CHECK_NEAR(dataset_value(255, DATASET_STD), 2.8214867, 1e-6);
}

/* ---- synthetic digits ---- */

/* The same bytes under any compiler, optimisation level and machine. */
static void test_golden_digits(void)
{
    char err[DATASET_ERR_MAX];
    dataset d;
    if (!CHECK(dataset_load(&d, "synthetic", 1, 500, 200, err) == 0)) return;
    if (!CHECK(d.hash == UINT64_C(0x930604690eb24a51)))
        printf("    hash %08lx%08lx\n", (unsigned long)(d.hash >> 32),
               (unsigned long)(d.hash & 0xffffffffu));
    dataset_free(&d);
}

static void test_each_digit_depends_on_its_number_alone(void)
{
    enum { N = 60 };
    static unsigned char images[N * DATASET_PIXELS], fewer[N * DATASET_PIXELS];
    unsigned char labels[N], of_fewer[N];
    synthetic_digits_fill(images, labels, N, 9, SYNTHETIC_DIGITS_TEST);
    synthetic_digits_fill(fewer, of_fewer, N / 2, 9, SYNTHETIC_DIGITS_TEST);
    CHECK(memcmp(images, fewer, N / 2 * DATASET_PIXELS) == 0);
    CHECK(memcmp(labels, of_fewer, N / 2) == 0);
}

static void test_extreme_seeds(void)
{
    static const uint64_t seed[] = {0, UINT64_C(0xffffffffffffffff), UINT64_C(1) << 63};
    unsigned char one[DATASET_PIXELS];
    size_t i;
    for (i = 0; i < COUNT(seed); i++) {
        unsigned char label;
        synthetic_digits_fill(one, &label, 1, seed[i], 0xffffffffu);
        CHECK(label <= 9);
        CHECK(!all_bytes_are(one, sizeof one, 0));
    }
}

static void check_class_balance(const dataset *d)
{
    size_t count[DATASET_CLASSES] = {0}, i;
    for (i = 0; i < d->train_n; i++) {
        if (!CHECK(d->train_labels[i] < DATASET_CLASSES)) return;
        count[d->train_labels[i]]++;
    }
    for (i = 0; i < DATASET_CLASSES; i++)
        CHECK(count[i] * 100 > d->train_n * 9 && count[i] * 100 < d->train_n * 11);
}

/* MNIST has mean 0.1307, standard deviation 0.3081, and 19 % of its pixels have ink. */
static void check_pixels(const unsigned char *images, size_t n)
{
    double sum = 0, squares = 0, mean, inked = 0;
    size_t i, total = n * DATASET_PIXELS;
    for (i = 0; i < total; i++) {
        double x = images[i] / 255.0;
        sum += x;
        squares += x * x;
        inked += images[i] > 0;
    }
    mean = sum / (double)total;
    CHECK_NEAR(mean, 0.1307, 0.015);
    CHECK_NEAR(sqrt(squares / (double)total - mean * mean), 0.3081, 0.015);
    CHECK_NEAR(inked / (double)total, 0.19, 0.03);
}

/* Every digit is drawn, large, near the middle, and the corners stay paper. */
static void check_image(const unsigned char *image)
{
    double mass = 0, mx = 0, my = 0;
    int x, y, top = 28, bottom = -1, left = 28, right = -1;
    for (y = 0; y < 28; y++) {
        for (x = 0; x < 28; x++) {
            int ink = image[28 * y + x];
            mass += ink;
            mx += ink * x;
            my += ink * y;
            if (ink == 0) continue;
            top = y < top ? y : top;
            bottom = y > bottom ? y : bottom;
            left = x < left ? x : left;
            right = x > right ? x : right;
        }
    }
    if (!CHECK(mass > 255 * 15)) return;
    CHECK_NEAR(mx / mass, 13.5, 3.5);
    CHECK_NEAR(my / mass, 13.5, 3.5);
    CHECK(bottom - top >= 18 || right - left >= 18);
    CHECK(bottom - top <= 22 && right - left <= 22);
    CHECK(!image[0] && !image[27] && !image[27 * 28] && !image[27 * 28 + 27]);
}

static void test_digits_look_like_mnist(void)
{
    char err[DATASET_ERR_MAX];
    dataset d;
    size_t i;
    if (!CHECK(dataset_load_synthetic(&d, 2, 20000, 3000, err) == 0)) return;
    CHECK(d.train_n == 20000 && d.test_n == 3000 && d.synthetic == 1);
    check_class_balance(&d);
    check_pixels(d.train_images, d.train_n);
    check_pixels(d.test_images, d.test_n);
    for (i = 0; i < d.train_n; i++) check_image(d.train_images + i * DATASET_PIXELS);
    dataset_free(&d);
}

/* How many images occur twice or more among these, by sorting their hashes. */
static int compare_hashes(const void *a, const void *b)
{
    uint64_t x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return x < y ? -1 : x > y;
}

static size_t twins(uint64_t *hash, size_t n)
{
    size_t i, count = 0;
    qsort(hash, n, sizeof *hash, compare_hashes);
    for (i = 1; i < n; i++) count += hash[i] == hash[i - 1];
    return count;
}

static void test_no_image_twice(void)
{
    enum { N = 3000 };
    static uint64_t hash[4 * N];
    char err[DATASET_ERR_MAX];
    size_t i, k = 0;
    uint64_t seed;
    for (seed = 1; seed <= 2; seed++) {
        dataset d;
        if (!CHECK(dataset_load_synthetic(&d, seed, N, N, err) == 0)) return;
        for (i = 0; i < N; i++) {
            const size_t at = i * DATASET_PIXELS;
            hash[k++] = files_hash(FILES_HASH_INIT, d.train_images + at, DATASET_PIXELS);
            hash[k++] = files_hash(FILES_HASH_INIT, d.test_images + at, DATASET_PIXELS);
        }
        dataset_free(&d);
    }
    CHECK_INT(twins(hash, k), 0); /* neither within nor across train, test and the two seeds */
}

/* A set that shows each digit's mean image must be learnable, yet not trivially so: the nearest
   mean gets most test digits right, but not nearly all. */
static void test_difficulty(void)
{
    static double mean[DATASET_CLASSES][DATASET_PIXELS];
    size_t count[DATASET_CLASSES] = {0}, i, k, right = 0;
    char err[DATASET_ERR_MAX];
    dataset d;
    int c;
    if (!CHECK(dataset_load_synthetic(&d, 1, 5000, 2000, err) == 0)) return;
    for (i = 0; i < d.train_n; i++) {
        c = d.train_labels[i];
        count[c]++;
        for (k = 0; k < DATASET_PIXELS; k++) mean[c][k] += d.train_images[i * DATASET_PIXELS + k];
    }
    for (i = 0; i < d.test_n; i++) {
        double best = 0;
        int guess = -1;
        for (c = 0; c < DATASET_CLASSES; c++) {
            double distance = 0;
            for (k = 0; k < DATASET_PIXELS; k++) {
                double e = d.test_images[i * DATASET_PIXELS + k] - mean[c][k] / (double)count[c];
                distance += e * e;
            }
            if (guess >= 0 && distance >= best) continue;
            best = distance;
            guess = c;
        }
        right += guess == d.test_labels[i];
    }
    if (!CHECK(right > d.test_n * 60 / 100 && right < d.test_n * 85 / 100))
        printf("    %lu of %lu right\n", (unsigned long)right, (unsigned long)d.test_n);
    dataset_free(&d);
}

int main(void)
{
    folder_enter();
    RUN(test_malformed);
    RUN(test_every_cut_and_flip);
    RUN(test_unreadable);
    RUN(test_message_is_one_short_line);
    RUN(test_pairs_refused);
    RUN(test_pairs_accepted);
    RUN(test_where_data_come_from);
    RUN(test_damaged_folders);
    RUN(test_hash_sees_every_array);
    RUN(test_encodings);
    RUN(test_golden_digits);
    RUN(test_each_digit_depends_on_its_number_alone);
    RUN(test_extreme_seeds);
    RUN(test_digits_look_like_mnist);
    RUN(test_no_image_twice);
    RUN(test_difficulty);
    folder_leave();
    return test_report("test_dataset");
}
