/* fuzz_npz.c - files of any bytes for the reader of NumPy's files, and what it makes of its own.

   The first byte says what the rest is: a whole file; the header and the numbers of a .npy, around
   which a true zip archive is put; or the arrays that npz_save writes, and then a few edits.

   What holds: a refused file changes no array; the statuses are those that are listed; what is
   loaded has the listed shape and can be saved, and reads back bit for bit. */
#define NPZ_IMPLEMENTATION
#define _POSIX_C_SOURCE 200809L
#include "npz.h"
#include "fuzz.h"

enum { MOST = 6000, ROOM = 8192, ENTRIES = 6 };
static char path[64], again[64];
static union {
    double align;
    unsigned char at[ROOM];
} numbers, before, second;
static unsigned char work[4 * ROOM];

/* A compressor that does nothing: it may fail, or fill in less. */
static int inflate(void *user, unsigned char *out, size_t n, const unsigned char *in, size_t m)
{
    (void)user;
    memset(out, 1, n);
    memcpy(out, in, n < m ? n : m);
    return n != m + 1;
}

static int write_file(const char *name, const unsigned char *bytes, size_t n)
{
    FILE *file = fopen(name, "wb");
    if (file == NULL) return 0;
    n = n == fwrite(bytes, 1, n, file);
    return fclose(file) == 0 && n;
}

static size_t read_file(const char *name, unsigned char *bytes, size_t most)
{
    FILE *file = fopen(name, "rb");
    size_t n = 0;
    if (file == NULL) return 0;
    n = fread(bytes, 1, most, file);
    fclose(file);
    return n;
}

static uint32_t crc(const unsigned char *at, size_t n)
{
    uint32_t table[256];
    npzi_crc_table(table);
    return npzi_crc(table, 0, at, n);
}

/* An archive of one member "a.npy", whose bytes are given. Returns its length. */
static size_t archive(unsigned char *to, const unsigned char *npy, size_t n, int method)
{
    unsigned char *h = to, *d;
    const size_t stored = method ? n + 1 : n; /* for `inflate` */
    memset(to, 0, 30);
    memcpy(h, "PK\3\4\24", 5);
    h[8] = (unsigned char)method;
    h[13] = 0x21;
    npzi_put(h + 14, crc(npy, n), 4, 0);
    npzi_put(h + 18, method ? n - 1 : stored, 4, 0);
    npzi_put(h + 22, n, 4, 0);
    h[26] = 5;
    memcpy(h + 30, "a.npy", 5);
    memcpy(h + 35, npy, n);
    d = h + 35 + (method ? n - 1 : n);
    memset(d, 0, 46 + 5 + 22);
    memcpy(d, "PK\1\2\24", 5);
    memcpy(d + 6, h + 4, 26);
    npzi_put(d + 38, 0x1800000, 4, 0);
    memcpy(d + 46, "a.npy", 5);
    memcpy(d + 51, "PK\5\6", 4);
    d[59] = d[61] = 1;
    npzi_put(d + 63, 51, 4, 0);
    npzi_put(d + 67, (size_t)(d - to), 4, 0);
    return (size_t)(d - to) + 73;
}

/* What npz_save writes of arrays that the input chooses. */
static size_t our_own(choices *c, unsigned char *file)
{
    static const char *const names[3] = {"a", "layer/0:kernel", "\xce\xb3"};
    npz_array array[3];
    size_t i, count = choose(c, 4), n, edits;
    memset(&numbers, 0, sizeof numbers);
    for (i = 0; i < 64; i++) numbers.at[i] = choose_byte(c);
    for (i = 0; i < count; i++)
        array[i] = npz_make(names[i], 1 + (int)choose(c, 10), numbers.at + 512 * i, choose(c, 3),
                            choose(c, 5), choose(c, 5));
    if (npz_save(path, array, count, NULL) != NPZ_OK) return 0;
    n = read_file(path, file, MOST);
    for (edits = choose(c, 4); edits > 0 && n > 0; edits--) {
        const size_t at = (choose_byte(c) * 256u + choose_byte(c)) % n;
        file[at] = choose_byte(c);
    }
    if (choose(c, 8) == 7) n -= choose(c, 40) % (n + 1);
    return n;
}

static void load_all(const npz_info *info, size_t count, npz_context *context, int to)
{
    npz_array array[ENTRIES];
    size_t i, k, used = 0, wanted = 0;
    int rc;
    for (i = 0; i < count && wanted < ENTRIES; i++) {
        const int type = to ? to : info[i].type;
        const char *name = info[i].name[0] ? info[i].name : "x";
        npz_array a = npz_make(name, type, NULL, info[i].dims, 0, 0);
        size_t bytes;
        if (info[i].type == NPZ_OTHER || info[i].dims > NPZ_DIMS) continue;
        for (k = 0; k < a.dims; k++) a.shape[k] = info[i].shape[k];
        bytes = NPZ_BYTES(&a);
        if (bytes > ROOM - used) continue;
        a.data = numbers.at + used;
        used += (bytes + 7) / 8 * 8;
        if (used > ROOM) return;
        array[wanted++] = a;
    }
    memset(&numbers, 0xA5, sizeof numbers);
    before = numbers;
    rc = npz_load(path, array, wanted, context);
    HOLDS(rc <= 0 && rc >= NPZ_LAST_STATUS, "npz_load");
    if (rc != NPZ_OK) HOLDS(memcmp(&numbers, &before, sizeof numbers) == 0, "npz_load");
    if (rc != NPZ_OK) return;
    HOLDS(npz_save(again, array, wanted, NULL) == NPZ_OK, "npz_save");
    second = numbers;
    memset(&numbers, 0x5A, used);
    HOLDS(npz_load(again, array, wanted, NULL) == NPZ_OK, "npz_load");
    for (i = 0; i < wanted; i++)
        HOLDS(memcmp(array[i].data, second.at + ((unsigned char *)array[i].data - numbers.at),
                     NPZ_BYTES(&array[i])) == 0,
              "npz_load");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static unsigned char file[MOST + 256];
    choices c = {data, size};
    const unsigned what = choose_byte(&c);
    npz_info info[ENTRIES];
    npz_context context;
    size_t n = c.left > MOST ? MOST : c.left, count = 77;
    int rc;
    if (path[0] == 0) {
        const char *folder = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
        snprintf(path, sizeof path, "%.40s/f%lu.npz", folder, (unsigned long)getpid());
        snprintf(again, sizeof again, "%.40s/g%lu.npz", folder, (unsigned long)getpid());
    }
    if (what % 3 == 0) {
        memcpy(file, c.at, n);
    } else if (what % 3 == 1 && n > 1) {
        n = archive(file, c.at, n, what & 64 ? 8 : 0);
    } else {
        n = our_own(&c, file);
    }
    if (!write_file(path, file, n)) return 0;
    memset(&context, 0, sizeof context);
    context.inflate = what & 4 ? inflate : NULL;
    context.work = what & 8 ? work : NULL;
    context.work_bytes = what & 16 ? sizeof work : 100;
    memset(info, 0xA5, sizeof info);
    rc = npz_list(path, info, &count, ENTRIES, what & 32 ? &context : NULL);
    HOLDS(rc <= 0 && rc >= NPZ_LAST_STATUS && npz_strerror(rc) != NULL, "npz_list");
    HOLDS(rc == NPZ_OK || count == 77, "npz_list");
    if (rc == NPZ_OK) {
        if (count > ENTRIES) count = ENTRIES;
        load_all(info, count, what & 32 ? &context : NULL, 0);
        load_all(info, count, what & 32 ? &context : NULL, 1 + (int)(what % 10));
    }
    remove(path);
    remove(again);
    return 0;
}
