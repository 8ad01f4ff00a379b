/* fuzz_idx.c - IDX files of any bytes, as the reader of MNIST takes them. The first byte says which
   dimensions are asked for, and whether a header is put before the rest that fits its length.

   What holds: a refused file leaves the result alone and says why in one line; one that is accepted
   has a shape whose product is the number of bytes behind its header. */
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
    const int what = size > 0 ? data[0] : 0, dimensions = what & 1 ? 3 : what & 2 ? 1 : what % 5;
    char err[DATASET_ERR_MAX];
    dataset_idx idx = {7, 7, 7, 7, 7};
    const dataset_idx kept = idx;
    unsigned char *copy;
    size_t n = size > 0 ? size - 1 : 0;
    int rc;
    if (n > MOST) n = MOST;
    memset(bytes, 0, 16);
    if (what & 4) { /* a true header: of n labels, or of images of one row of n pixels */
        const size_t header = dimensions == 3 ? 16 : 8;
        bytes[2] = 8;
        bytes[3] = (unsigned char)(dimensions == 3 ? 3 : 1);
        bytes[6] = (unsigned char)(dimensions == 3 ? 0 : n >> 8);
        bytes[7] = (unsigned char)(dimensions == 3 ? 1 : n & 255);
        bytes[11] = 1;
        bytes[14] = (unsigned char)(dimensions == 3 ? n >> 8 : 0);
        bytes[15] = (unsigned char)(dimensions == 3 ? n & 255 : 0);
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
    rc = dataset_parse_idx("some file", copy, n, dimensions, &idx, err);
    HOLDS(memchr(err, 0, sizeof err) != NULL, "dataset_parse_idx");
    if (rc == 0) {
        HOLDS(idx.count * idx.rows * idx.cols == idx.bytes, "dataset_parse_idx");
        HOLDS(idx.offset + idx.bytes == n && idx.count > 0, "dataset_parse_idx");
    } else {
        HOLDS(memcmp(&idx, &kept, sizeof idx) == 0 && err[0] != 0, "dataset_parse_idx");
        HOLDS(strchr(err, '\n') == NULL, "dataset_parse_idx");
    }
    free(copy);
    return 0;
}
