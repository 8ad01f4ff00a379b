/* fuzz_idx.c - IDX files of any bytes, as the reader of MNIST takes them. The first byte says
   whether images or labels are asked for, and whether a header is put before the rest that fits its
   length.

   What holds: a refused file leaves the result alone and says why in one line; one that is accepted
   has as many bytes behind its header as its count says. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include "lab/files.c"
#include "lab/synthetic_digits.c"
#include "lab/dataset.c"
#include "fuzz.h"

enum { MOST = 4096 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static unsigned char bytes[MOST + 16];
    const int what = size > 0 ? data[0] : 0, images = what & 1;
    const size_t header = images ? 16 : 8, each = images ? DATASET_PIXELS : 1;
    char err[DATASET_ERR_MAX];
    unsigned char *copy;
    size_t count = 7;
    size_t n = size > 0 ? size - 1 : 0;
    int rc;
    if (n > MOST) n = MOST;
    memset(bytes, 0, 16);
    if (what & 4) { /* a true header */
        n -= n % each;
        bytes[2] = 8;
        bytes[3] = (unsigned char)(images ? 3 : 1);
        bytes[6] = (unsigned char)(n / each >> 8);
        bytes[7] = (unsigned char)(n / each & 255);
        bytes[11] = bytes[15] = DATASET_SIDE; /* of labels the bytes behind take its place */
        memcpy(bytes + header, data + 1, n);
        n += header;
        if (what & 8) bytes[what >> 4 & 15] ^= (unsigned char)(1 << (what & 7));
    } else if (n > 0) {
        memcpy(bytes, data + 1, n);
    }
    copy = (unsigned char *)malloc(n > 0 ? n : 1); /* so that one byte too far is seen */
    if (copy == NULL) return 0;
    memcpy(copy, bytes, n);
    memset(err, 'x', sizeof err);
    rc = dataset_parse_idx("some file", copy, n, images, &count, err);
    HOLDS(memchr(err, 0, sizeof err) != NULL, "dataset_parse_idx");
    if (rc == 0) {
        HOLDS(count > 0 && header + count * each == n, "dataset_parse_idx");
    } else {
        HOLDS(count == 7 && err[0] != 0, "dataset_parse_idx");
        HOLDS(strchr(err, '\n') == NULL, "dataset_parse_idx");
    }
    free(copy);
    return 0;
}
