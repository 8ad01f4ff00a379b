/* test_npz.c - examples/npz.h: what is written is read back, bit for bit; what is damaged or lies is
   refused; what is refused changes nothing; what fails half way leaves the old file.

   The functions of stdio that npz.h calls are replaced by ones that can be told to fail at the k-th
   call, so every way in which a disk can fail is tried. Files that npz.h would not write are put
   together here, by code that shares nothing with it. */
#define _XOPEN_SOURCE 700 /* mkdtemp, fmemopen, mkfifo, symlink */
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- a disk that fails ----------------------------------------------------------------------- */

static struct {
    long calls, fail_at; /* the number of calls so far; the one that fails, 0: none       */
    int hit;             /* it has                                                        */
    int open;            /* streams                                                       */
    int broken;          /* the last stream that was opened has seen an error             */
    int full;            /* what is written goes to a full device                         */
    int taken;           /* the first temporary name is a symbolic link to "victim"       */
    char created[5000];  /* the file that was opened last for writing                     */
} disk;

static struct { /* the file "case", which is not on a disk: there are many of it */
    unsigned char *at;
    size_t n;
} memory;

static void new_disk(long fail_at)
{
    memset(&disk, 0, sizeof disk);
    disk.fail_at = fail_at;
}

static int fails(void)
{
    if (++disk.calls != disk.fail_at) return 0;
    disk.hit = 1;
    errno = EIO;
    return 1;
}

static FILE *disk_fopen(const char *path, const char *mode)
{
    FILE *f;
    if (fails()) return NULL;
    if (disk.taken-- == 1 && symlink("victim", path) != 0) exit(2);
    if (strcmp(path, "case") == 0 && memory.n > 0)
        f = fmemopen(memory.at, memory.n, "rb");
    else
        f = disk.full && mode[0] == 'w' ? fopen("/dev/full", "wb") : fopen(path, mode);
    if (mode[0] == 'w') {
        if (strcmp(mode, "wbx") != 0) exit(2); /* always exclusively */
        if (f != NULL) snprintf(disk.created, sizeof disk.created, "%s", path);
    }
    if (f != NULL) disk.open++;
    disk.broken = 0;
    return f;
}

static int disk_fclose(FILE *f)
{
    const int rc = fclose(f);
    disk.open--;
    return fails() ? EOF : rc;
}

static size_t disk_fwrite(const void *from, size_t size, size_t n, FILE *f)
{
    if (!fails()) return fwrite(from, size, n, f);
    disk.broken = 1;
    return fwrite(from, size, n / 2, f);
}

static size_t disk_fread(void *to, size_t size, size_t n, FILE *f)
{
    if (!fails()) return fread(to, size, n, f);
    disk.broken = 1;
    return fread(to, size, n / 2, f);
}

static int disk_ferror(FILE *f)
{
    return disk.broken || ferror(f);
}

static int disk_fflush(FILE *f)
{
    return fails() ? EOF : fflush(f);
}

static int disk_fseek(FILE *f, long at, int whence)
{
    return fails() ? -1 : fseek(f, at, whence);
}

static long disk_ftell(FILE *f)
{
    return fails() ? -1L : ftell(f);
}

static int disk_rename(const char *from, const char *to)
{
    return fails() ? -1 : rename(from, to);
}

#define fopen disk_fopen
#define fclose disk_fclose
#define fwrite disk_fwrite
#define fread disk_fread
#undef ferror
#define ferror disk_ferror
#define fflush disk_fflush
#define fseek disk_fseek
#define ftell disk_ftell
#define rename disk_rename
#define NPZ_IMPLEMENTATION
#include "npz.h"
#undef fopen
#undef fclose
#undef fwrite
#undef fread
#undef ferror
#undef fflush
#undef fseek
#undef ftell
#undef rename
#include "test.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
/* A check of an equation of npz.h, by its tag. */
#define EQUATION(tag, holds) ((holds) ? 1 : (printf("%s does not hold\n", tag), CHECK(!tag)))

/* ---- bytes ----------------------------------------------------------------------------------- */

typedef struct bytes {
    unsigned char *at;
    size_t n;
} bytes;

static bytes some(size_t n)
{
    bytes b;
    b.at = (unsigned char *)calloc(n + 1, 1);
    b.n = n;
    if (b.at == NULL) exit(2);
    return b;
}

static bytes copy_of(bytes from)
{
    bytes b = some(from.n);
    memcpy(b.at, from.at, from.n);
    return b;
}

static bytes read_bytes(const char *path)
{
    bytes b;
    long n = 0;
    FILE *f = fopen(path, "rb");
    if (f == NULL) return some(0);
    if (fseek(f, 0, SEEK_END) == 0) n = ftell(f);
    rewind(f);
    b = some((size_t)n);
    if (fread(b.at, 1, b.n, f) != b.n) exit(2);
    fclose(f);
    return b;
}

static void write_bytes(const char *path, const void *at, size_t n)
{
    FILE *f = fopen(path, "wb");
    if (f == NULL || fwrite(at, 1, n, f) != n || fclose(f) != 0) exit(2);
}

/* Makes these bytes the file "case". */
static void place(const unsigned char *at, size_t n)
{
    free(memory.at);
    memory.at = (unsigned char *)malloc(n + 1);
    if (memory.at == NULL) exit(2);
    memcpy(memory.at, at, n);
    memory.n = n;
    if (n == 0) write_bytes("case", at, 0); /* not every fmemopen knows empty files */
}

static void put(unsigned char *to, uint64_t value, size_t n)
{
    size_t i;
    for (i = 0; i < n; i++) to[i] = (unsigned char)(value >> 8 * i & 255);
}

static uint64_t get(const unsigned char *from, size_t n)
{
    uint64_t value = 0;
    size_t i;
    for (i = 0; i < n; i++) value |= (uint64_t)from[i] << 8 * i;
    return value;
}

/* Where the k-th header with this signature of an archive begins. */
static size_t find(bytes b, uint32_t signature, int k)
{
    size_t i;
    for (i = 0; i + 4 <= b.n; i++)
        if (get(b.at + i, 4) == signature && k-- == 0) return i;
    exit(2);
}

/* A .npy file: version, text as it is, data. */
static bytes make_npy(int version, const char *text, const void *data, size_t n)
{
    const size_t start = version == 1 ? 10 : 12, length = strlen(text);
    bytes b = some(start + length + n);
    memcpy(b.at, "\x93NUMPY", 6);
    b.at[6] = (unsigned char)version;
    put(b.at + 8, length, start - 8);
    memcpy(b.at + start, text, length);
    memcpy(b.at + start + length, data, n);
    return b;
}

/* An archive with one member, with sizes and method as told; crc: of what is packed in it. */
static bytes make_zip(const char *name, int method, const void *data, size_t stored, size_t plain,
                      uint32_t crc)
{
    const size_t n = strlen(name), directory = 30 + n + stored;
    bytes b = some(directory + 46 + n + 22);
    unsigned char *d = b.at + directory, *end = d + 46 + n;
    memcpy(d, "PK\1\2\x1e\3\x14", 7);
    put(d + 10, (uint64_t)method, 2);
    put(d + 16, crc, 4);
    put(d + 20, stored, 4);
    put(d + 24, plain, 4);
    put(d + 28, n, 2);
    put(d + 38, (uint64_t)0x81a40000u, 4);
    memcpy(b.at, "PK\3\4", 4);
    memcpy(b.at + 4, d + 6, 26);
    memcpy(b.at + 30, name, n);
    memcpy(b.at + 30 + n, data, stored);
    memcpy(d + 46, name, n);
    memcpy(end, "PK\5\6", 4);
    put(end + 8, 0x00010001, 4);
    put(end + 12, 46 + n, 4);
    put(end + 16, directory, 4);
    return b;
}

/* ---- CRC.1 to CRC.3 -------------------------------------------------------------------------- */

/* The division on paper: the bits of a message, lowest of each byte first, and 32 zeros, the first
   32 of them inverted; from the highest on, the divisor of 33 bits is subtracted below each 1. The
   rest is inverted too, and read backwards. */
static uint32_t divide_polynomials(const unsigned char *message, size_t n)
{
    static const char divisor[] = "100000100110000010001110110110111"; /* 104c11db7 */
    unsigned char bit[8 * 64 + 32];
    uint32_t rest = 0;
    size_t i, k;
    memset(bit, 0, sizeof bit);
    for (i = 0; i < 8 * n; i++) bit[i] = message[i / 8] >> i % 8 & 1;
    for (i = 0; i < 32; i++) bit[i] ^= 1;
    for (i = 0; i < 8 * n; i++) {
        if (bit[i] == 0) continue;
        for (k = 0; k <= 32; k++) bit[i + k] ^= divisor[k] == '1';
    }
    for (i = 0; i < 32; i++) rest |= (uint32_t)(bit[8 * n + i] ^ 1) << i;
    return rest;
}

static void test_checksum(void)
{
    unsigned char message[64];
    uint32_t table[256];
    size_t n, i;
    nrm_rng rng;
    nrm_rng_seed(&rng, 1901, 19);
    npzi_crc_table(table);
    for (n = 0; n < 256; n++) {
        uint64_t c = n;
        for (i = 0; i < 8; i++) c = (c / 2) ^ (c % 2 * (uint64_t)3988292384u);
        EQUATION("CRC.1", table[n] == c);
        for (i = 0; i < 256; i++) EQUATION("CRC.1", (table[n] ^ table[i]) == table[n ^ i]);
    }
    for (n = 0; n < 64; n++) {
        uint64_t c = 4294967295u; /* 2³² − 1 */
        uint32_t in_two;
        for (i = 0; i < n; i++) message[i] = (unsigned char)nrm_rng_below(&rng, 256);
        for (i = 0; i < n; i++) c = (c / 256) ^ table[(c ^ message[i]) % 256];
        EQUATION("CRC.2", npzi_crc(table, 0, message, n) == (c ^ 4294967295u));
        in_two = npzi_crc(table, npzi_crc(table, 0, message, n / 3), message + n / 3, n - n / 3);
        EQUATION("CRC.2", in_two == npzi_crc(table, 0, message, n));
        EQUATION("CRC.3", npzi_crc(table, 0, message, n) == divide_polynomials(message, n));
    }
    memcpy(message, "123456789", 9); /* the value that every list of checksums gives */
    EQUATION("CRC.3", npzi_crc(table, 0, message, 9) == 0xcbf43926u);
}

static uint32_t crc_of(const unsigned char *at, size_t n)
{
    uint32_t table[256];
    npzi_crc_table(table);
    return npzi_crc(table, 0, at, n);
}

/* ---- arrays ---------------------------------------------------------------------------------- */

enum { SAMPLES = 5 };

typedef struct sample { /* one array has no elements, one no dimensions */
    double W[6];
    float s, none[1];
    uint64_t n[3];
    int8_t small[2];
    npz_array array[SAMPLES];
} sample;

static void bind(sample *s)
{
    s->array[0] = npz_make("dense/kernel:0", NPZ_F64, s->W, 2, 2, 3);
    s->array[1] = npz_make("n", NPZ_U64, s->n, 1, 3, 0);
    s->array[2] = npz_make("none", NPZ_F32, s->none, 2, 5, 0);
    s->array[3] = npz_make("s", NPZ_F32, &s->s, 0, 0, 0);
    s->array[4] = npz_make("\xc3\xa4 '\"", NPZ_I8, s->small, 1, 2, 0);
}

/* Numbers that are easily damaged: a signalling NaN, -0, the smallest and the largest. */
static void fill(sample *s)
{
    const uint64_t bits[6] = {(uint64_t)0x3ff199999999999au, (uint64_t)0x7ff0000000000001u,
                              (uint64_t)1 << 63, 1, (uint64_t)0x7fefffffffffffffu,
                              (uint64_t)0xfff0000000000000u};
    memset(s, 0, sizeof *s);
    memcpy(s->W, bits, sizeof bits);
    s->s = -2.5f;
    s->n[0] = UINT64_MAX;
    s->n[2] = (uint64_t)0x0123456789abcdefu;
    s->small[0] = -128;
    s->small[1] = 7;
    bind(s);
}

static void poison(sample *s)
{
    memset(s, 0x5a, sizeof *s);
    bind(s);
}

static int same(const sample *a, const sample *b)
{
    return memcmp(a, b, offsetof(sample, none)) == 0 && memcmp(a->n, b->n, sizeof a->n) == 0 &&
           memcmp(a->small, b->small, sizeof a->small) == 0;
}

static int loaded(const sample *s)
{
    sample full;
    fill(&full);
    return same(s, &full);
}

static int untouched(const sample *s)
{
    sample old;
    poison(&old);
    return same(s, &old);
}

/* Loads these bytes as a file into a poisoned sample; checks that a refusal changed nothing. */
static int load_bytes(sample *s, bytes b, size_t n, size_t arrays)
{
    int rc;
    poison(s);
    place(b.at, n);
    rc = npz_load("case", s->array, arrays, NULL);
    if (rc != NPZ_OK) CHECK(untouched(s));
    CHECK_INT(disk.open, 0);
    return rc;
}

static const char *const format[] = {"a.npz", "a.npy"};
static size_t arrays_of(int k)
{
    return k == 1 ? 1 : SAMPLES;
}

/* The sample as a file of a format. */
static bytes saved_as(int k)
{
    sample s;
    fill(&s);
    CHECK_INT(npz_save(format[k], s.array, arrays_of(k), NULL), NPZ_OK);
    return read_bytes(format[k]);
}

/* ---- it is read back ------------------------------------------------------------------------- */

static void test_round_trips(void)
{
    sample s, full;
    npz_array turned[SAMPLES];
    int k;
    fill(&full);
    for (k = 0; k < 2; k++) {
        bytes first = saved_as(k), second = saved_as(k);
        CHECK(first.n > 0 && first.n == second.n && memcmp(first.at, second.at, first.n) == 0);
        poison(&s);
        CHECK_INT(npz_load(format[k], s.array, arrays_of(k), NULL), NPZ_OK);
        CHECK(k == 0 ? loaded(&s) : memcmp(s.W, full.W, sizeof s.W) == 0);
        CHECK_INT(npz_load(format[k], NULL, 0, NULL), NPZ_OK); /* only checks the file */
        free(first.at);
        free(second.at);
    }
    poison(&s); /* order and selection are the caller's */
    turned[0] = s.array[3];
    turned[1] = s.array[0];
    CHECK_INT(npz_load("a.npz", turned, 2, NULL), NPZ_OK);
    CHECK(memcmp(s.W, full.W, sizeof s.W) == 0 && s.s == full.s);
    CHECK(s.n[0] == (uint64_t)0x5a5a5a5a5a5a5a5au);
    CHECK_INT(npz_save("a.npz", NULL, 0, NULL), NPZ_OK);
    CHECK_INT(npz_load("a.npz", NULL, 0, NULL), NPZ_OK);
    CHECK_INT(npz_load("a.npz", s.array, 1, NULL), NPZ_ENAME);
}

static void test_dims_and_chunks(void)
{
    enum { MANY = 5000 };
    static double a[MANY], b[MANY];
    const size_t shape[8] = {2, 1, 3, 1, 2, 1, 4, 1};
    npz_array array = npz_make("a", NPZ_F64, a, 0, 0, 0);
    size_t i, dims, n;
    int k;
    for (i = 0; i < MANY; i++) a[i] = sqrt((double)i);
    for (dims = 0; dims <= NPZ_DIMS + 1; dims++)
        for (k = 0; k < 2; k++) {
            array.dims = dims == NPZ_DIMS + 1 ? 1 : dims;
            n = 1;
            for (i = 0; i < array.dims; i++) n *= array.shape[i] = dims == 9 ? MANY : shape[i];
            array.data = a;
            CHECK_INT(npz_save(format[k], &array, 1, NULL), NPZ_OK);
            memset(b, 0, sizeof b);
            array.data = b;
            CHECK_INT(npz_load(format[k], &array, 1, NULL), NPZ_OK);
            CHECK(memcmp(a, b, n * sizeof *a) == 0);
        }
}

/* The largest number of arrays, in an order that is not the file's. */
static void test_many_names(void)
{
    enum { N = NPZ_MOST };
    npz_array *array = (npz_array *)malloc((N + 1) * sizeof *array);
    char(*name)[16] = (char(*)[16])malloc((N + 1) * sizeof *name);
    uint16_t *data = (uint16_t *)malloc((N + 1) * sizeof *data);
    const clock_t start = clock();
    size_t i;
    if (array == NULL || name == NULL || data == NULL) exit(2);
    for (i = 0; i <= N; i++) {
        snprintf(name[i], sizeof name[i], "layer%u.W", (unsigned)i);
        data[i] = (uint16_t)i;
        array[i] = npz_make(name[i], NPZ_U16, &data[i], 0, 0, 0);
    }
    CHECK_INT(npz_save("a.npz", array, N + 1, NULL), NPZ_ESIZE);
    CHECK_INT(npz_save("a.npz", array, N, NULL), NPZ_OK);
    memset(data, 255, N * sizeof *data);
    for (i = 0; i < N; i++)
        array[i] = npz_make(name[N - 1 - i], NPZ_U16, &data[N - 1 - i], 0, 0, 0);
    CHECK_INT(npz_load("a.npz", array, N, NULL), NPZ_OK);
    for (i = 0; i < N; i++) CHECK(data[i] == i);
    CHECK(clock() - start < 20 * CLOCKS_PER_SEC); /* one comparison for each pair: minutes */
    free(array);
    free(name);
    free(data);
}

/* ---- what does not fit ----------------------------------------------------------------------- */

static void test_arguments(void)
{
    sample s;
    npz_context context;
    npz_array a;
    char long_name[NPZ_NAME + 1];
    size_t count = 9;
    int i;
    memset(&context, 0, sizeof context);
    memset(long_name, 'n', sizeof long_name);
    long_name[NPZ_NAME] = '\0';
    fill(&s);
    CHECK_INT(npz_save(NULL, s.array, 1, NULL), NPZ_ENULL);
    CHECK_INT(npz_load(NULL, s.array, 1, NULL), NPZ_ENULL);
    CHECK_INT(npz_list(NULL, NULL, &count, 0, NULL), NPZ_ENULL);
    CHECK_INT(npz_list("a.npz", NULL, NULL, 0, NULL), NPZ_ENULL);
    CHECK_INT(npz_list("a.npz", NULL, &count, 1, NULL), NPZ_ENULL);
    CHECK_INT(npz_save("a.npy", s.array, 2, NULL), NPZ_ESIZE);
    CHECK_INT(npz_save("a.npy", NULL, 0, NULL), NPZ_ESIZE);
    for (i = 0; i < 13; i++) {
        static const int expected[] = {NPZ_ENULL, NPZ_ENAME, NPZ_ENAME, NPZ_ENAME, NPZ_ENAME,
                                       NPZ_EARRAY, NPZ_EARRAY, NPZ_EARRAY, NPZ_EARRAY, NPZ_EARRAY,
                                       NPZ_ENULL, NPZ_OK, NPZ_ESIZE};
        a = s.array[0];
        if (i == 0) a.name = NULL;
        if (i == 1) a.name = "";
        if (i == 2) a.name = "tab\t";
        if (i == 3) a.name = "\x7f";
        if (i == 4) a.name = long_name;
        if (i == 5) a.type = NPZ_OTHER;
        if (i == 6) a.type = -1;
        if (i == 7) a.type = NPZ_F64 + 1;
        if (i == 8) a.dims = 9;
        if (i == 9) a.shape[0] = a.shape[1] = SIZE_MAX / 2;
        if (i == 10) a.data = NULL;
        if (i == 11) a.name = long_name + 1;
        if (i == 12) a.shape[0] = (size_t)1 << 29; /* 12 GiB: found out before it is read */
        if (!CHECK_INT(npz_save("b.npz", &a, 1, &context), expected[i])) printf("  case %d\n", i);
        if (i > 4 && i < 11) CHECK_STR(context.name, "dense/kernel:0");
        if (expected[i] != NPZ_OK && i < 12)
            CHECK_INT(npz_load("b.npz", &a, 1, NULL), expected[i]);
    }
    s.array[1].name = s.array[0].name;
    CHECK_INT(npz_save("a.npz", s.array, 2, NULL), NPZ_ENAME);
    CHECK_INT(npz_load("a.npz", s.array, 2, NULL), NPZ_ENAME);
    for (i = 1; i >= NPZ_LAST_STATUS - 1; i--) CHECK(strlen(npz_strerror(i)) > 7);
    CHECK_STR(npz_strerror(NPZ_OK), "no error");
    CHECK_STR(npz_strerror(NPZ_LAST_STATUS - 1), "unknown status");
}

/* Each misfit is told, with the array's name, and nothing is changed. */
static void test_mismatches(void)
{
    npz_context context;
    sample s;
    int i;
    memset(&context, 0, sizeof context);
    free(saved_as(0).at);
    for (i = 0; i < 6; i++) {
        static const int expected[] = {NPZ_ESHAPE, NPZ_ESHAPE, NPZ_ETYPE, NPZ_ETYPE, NPZ_ENAME,
                                       NPZ_ERANGE};
        npz_array *wrong;
        poison(&s);
        wrong = &s.array[i == 5 ? 1 : 3];
        if (i == 0) *wrong = npz_make("s", NPZ_F32, s.W, 1, 1, 0);
        if (i == 1) *wrong = npz_make("n", NPZ_U64, s.W, 1, 2, 0);
        if (i == 1) s.array[1].name = "s"; /* of another type too: the file's order decides */
        if (i == 2) wrong->type = NPZ_U32;
        if (i == 3) *wrong = npz_make("n", NPZ_F64, s.W, 1, 3, 0);
        if (i == 3) s.array[1].name = "s";
        if (i == 4) wrong->name = "t";
        if (i == 5) wrong->type = NPZ_I64;
        CHECK_INT(npz_load("a.npz", s.array, SAMPLES, &context), expected[i]);
        CHECK_STR(context.name, i == 4 ? "t" : i == 1 || i == 3 || i == 5 ? "n" : "s");
        CHECK(untouched(&s));
    }
}

static size_t width(int type)
{
    return (size_t)1 << (type - 1) % 4;
}

/* Integers of all widths into one another: if each number fits. */
static void test_integers(void)
{
    static const int type[] = {NPZ_I8, NPZ_I16, NPZ_I32, NPZ_I64, NPZ_U8, NPZ_U16, NPZ_U32, NPZ_U64};
    static const int64_t value[] = {0, 1, -1, 127, 128, -128, -129, 255, 256, 32767, 32768, -32768,
                                    65535, 65536, INT32_MAX, INT32_MIN, (int64_t)1 << 31,
                                    UINT32_MAX, INT64_MAX, INT64_MIN};
    size_t i, k, v;
    for (v = 0; v < COUNT(value); v++)
        for (i = 0; i < COUNT(type); i++)
            for (k = 0; k < COUNT(type); k++) {
                long double low[2], high[2];
                const int from_to[2] = {type[i], type[k]};
                uint64_t stored = (uint64_t)value[v], got = 0;
                unsigned char data[8] = {0}, expected[8] = {0};
                npz_array a;
                int j, rc;
                for (j = 0; j < 2; j++) {
                    const int bits = 8 * (int)width(from_to[j]), is_signed = from_to[j] <= NPZ_I64;
                    low[j] = is_signed ? -ldexpl(1, bits - 1) : 0;
                    high[j] = ldexpl(1, is_signed ? bits - 1 : bits) - 1;
                }
                if ((long double)value[v] < low[0] || (long double)value[v] > high[0]) continue;
                npzi_put(data, stored, width(type[i]), NPZ_HIGH_FIRST);
                a = npz_make("a", type[i], data, 0, 0, 0);
                CHECK_INT(npz_save("a.npy", &a, 1, NULL), NPZ_OK);
                a = npz_make("a", type[k], &got, 0, 0, 0);
                rc = npz_load("a.npy", &a, 1, NULL);
                npzi_put(expected, stored, width(type[k]), NPZ_HIGH_FIRST);
                if ((long double)value[v] < low[1] || (long double)value[v] > high[1])
                    CHECK(rc == NPZ_ERANGE && got == 0);
                else
                    CHECK(rc == NPZ_OK && memcmp(&got, expected, width(type[k])) == 0);
            }
}

/* Floats as doubles, doubles as floats, and both with high bytes first. */
static void test_floats(void)
{
    static const double number[] = {0, -0.0, 1, -2.5, 1e-46, 1e-40, 0.1, 3.4028235677973362e38,
                                    HUGE_VAL, -HUGE_VAL, 1.1754943508222875e-38, 1e39,
                                    3.4028235677973366e38, -1e308};
    size_t i;
    int k;
    for (i = 0; i < COUNT(number); i++)
        for (k = 0; k < 8; k++) { /* file's type, own type, order */
            const int own = k & 1 ? NPZ_F64 : NPZ_F32, file = k & 2 ? 8 : 4;
            const int too_much = i > 10 && (file == 4 || own == NPZ_F32);
            const float f = i > 10 ? 0 : (float)number[i];
            unsigned char data[8], high[8];
            float got = 7;
            double wide = 7, expected = file == 4 || own == NPZ_F32 ? (double)f : number[i];
            npz_array a = npz_make("", own, own == NPZ_F32 ? (void *)&got : (void *)&wide, 0, 0, 0);
            uint64_t bits;
            uint32_t half;
            char text[100];
            bytes b;
            int j;
            if (i > 10 && file == 4) continue;
            memcpy(&bits, &number[i], 8);
            memcpy(&half, &f, 4);
            put(data, file == 4 ? half : bits, (size_t)file);
            for (j = 0; j < file; j++) high[file - 1 - j] = data[j];
            snprintf(text, sizeof text, "{'descr': '%cf%d', 'fortran_order': False, 'shape': (), }\n",
                     k & 4 ? '>' : '<', file);
            b = make_npy(1, text, k & 4 ? high : data, (size_t)file);
            place(b.at, b.n);
            a.name = "any";
            CHECK_INT(npz_load("case", &a, 1, NULL), too_much ? NPZ_ERANGE : NPZ_OK);
            if (own == NPZ_F32) wide = (double)got;
            if (too_much) expected = 7;
            CHECK(wide == expected && !signbit(wide) == !signbit(expected));
            free(b.at);
        }
}

/* ---- damage ---------------------------------------------------------------------------------- */

static void test_truncations(void)
{
    sample s;
    size_t n;
    int k;
    for (k = 0; k < 2; k++) {
        bytes b = saved_as(k), more = some(b.n + 1);
        for (n = 0; n < b.n; n++) CHECK_INT(load_bytes(&s, b, n, arrays_of(k)), NPZ_EFORMAT);
        CHECK_INT(load_bytes(&s, b, b.n, arrays_of(k)), NPZ_OK);
        memcpy(more.at, b.at, b.n);
        CHECK_INT(load_bytes(&s, more, more.n, arrays_of(k)), NPZ_EFORMAT);
        free(b.at);
        free(more.at);
    }
}

/* Every single bit of an archive that npz.h wrote; of a .npy, all of the text that is not a size of
   the same product or the order of bytes. */
static void test_flips(void)
{
    sample s;
    size_t i;
    int k, accepted = 0;
    for (k = 0; k < 2; k++) {
        bytes b = saved_as(k);
        for (i = 0; i < 8 * (k == 0 ? b.n : 128); i++) {
            int rc;
            b.at[i / 8] ^= (unsigned char)(1u << i % 8);
            rc = load_bytes(&s, b, b.n, arrays_of(k));
            b.at[i / 8] ^= (unsigned char)(1u << i % 8);
            if (k == 0)
                CHECK(rc != NPZ_OK);
            else
                accepted += rc == NPZ_OK;
            if (k == 0 && rc == NPZ_OK) printf("  bit %u\n", (unsigned)i);
        }
        free(b.at);
    }
    CHECK_INT(accepted, 1); /* '<' and '>' are one bit apart */
}

typedef struct patch {
    size_t at;
    uint64_t value;
    size_t n;
} patch;

/* The first member's two headers, the second's in the directory, and the end. */
static void test_lies(void)
{
    bytes b = saved_as(0), c;
    const size_t local = 0, entry = find(b, 0x02014b50, 0);
    const size_t second = find(b, 0x02014b50, 1), end = find(b, 0x06054b50, 0);
    const uint64_t start = entry, size = end - entry, ones = 0xffffffffu;
    const patch lie[] = {
        {end + 4, 1, 2}, {end + 6, 1, 2},                                /* disks            */
        {end + 8, 3, 2}, {end + 10, 3, 2}, {end + 8, 6, 2}, {end + 8, 0xffff, 2},
        {end + 8, 0x00040004, 4}, {end + 8, 0x00060006, 4}, {end + 8, 0, 4}, {end + 8, ones, 4},
        {end + 12, size - 1, 4}, {end + 12, size + 1, 4}, {end + 12, ones, 4}, {end + 12, 0, 4},
        {end + 16, start - 1, 4}, {end + 16, 0, 4}, {end + 16, ones, 4},
        {end + 20, 1, 2}, {entry, 0, 4}, {second, 0, 4}, {local, 0x02014b50, 4},
        {entry + 8, 1, 2}, {entry + 8, 8, 2}, {entry + 8, 0x0800, 2},    /* flags            */
        {local + 6, 1, 2}, {local + 6, 8, 2}, {local + 6, 0x0800, 2},
        {entry + 10, 8, 2}, {local + 8, 8, 2}, {entry + 12, 5, 2}, {entry + 14, 0, 2},
        {entry + 16, 0, 4}, {local + 14, 0, 4},                          /* checksums        */
        {entry + 20, 0, 4}, {entry + 24, 0, 4}, {entry + 20, ones, 4}, {entry + 24, ones, 4},
        {local + 18, 0, 4}, {local + 22, 0, 4}, {local + 18, ones, 4}, {local + 18, UINT64_MAX, 8},
        {entry + 28, 0, 2}, {entry + 28, 17, 2}, {entry + 28, 0xffff, 2},
        {local + 26, 0, 2}, {local + 26, 17, 2}, {local + 26, 0xffff, 2},
        {entry + 30, 1, 2}, {entry + 30, 0xffff, 2}, {entry + 32, 1, 2}, {local + 28, 1, 2},
        {entry + 34, 1, 2}, {local + 28, 0xffff, 2},
        {entry + 42, 1, 4}, {entry + 42, ones, 4}, {second + 42, 0, 4},  /* one on the other */
        {entry + 46, 'x', 1}, {local + 30, 'x', 1},                      /* names            */
    };
    sample s;
    size_t i;
    int rc;
    for (i = 0; i < COUNT(lie); i++) {
        c = copy_of(b);
        put(c.at + lie[i].at, lie[i].value, lie[i].n);
        rc = load_bytes(&s, c, c.n, SAMPLES);
        if (!CHECK(rc == NPZ_EFORMAT || rc == NPZ_EZIP)) printf("  lie %u: %d\n", (unsigned)i, rc);
        free(c.at);
    }
    c = copy_of(b); /* both sizes wrong in both places: as much as there is, and more */
    for (i = 0; i < 3; i++) {
        const uint64_t lied = i == 0 ? 0 : i == 1 ? 0xfffffffeu : start;
        put(c.at + entry + 20, lied, 4);
        put(c.at + entry + 24, lied, 4);
        put(c.at + local + 18, lied, 4);
        put(c.at + local + 22, lied, 4);
        CHECK_INT(load_bytes(&s, c, c.n, SAMPLES), NPZ_EFORMAT);
    }
    memcpy(c.at, b.at, b.n); /* the fourth array under the name of the second */
    c.at[find(c, 0x02014b50, 3) + 46] = c.at[find(c, 0x04034b50, 3) + 30] = 'n';
    CHECK_INT(load_bytes(&s, c, c.n, 2), NPZ_EFORMAT);
    CHECK_INT(load_bytes(&s, c, c.n, 1), NPZ_OK); /* harmless if nobody wants it */
    free(c.at);
    free(b.at);
}

/* Members that are no arrays, extra fields and comments of the directory, zip64, encryption. */
static void test_other_archives(void)
{
    static const char *const name[] = {"d/", ".npy", "a.txt", "a\t.npy", "a.npy"};
    npz_info info[1];
    sample s;
    size_t i, count;
    bytes b, c;
    for (i = 0; i < COUNT(name); i++) {
        b = make_zip(name[i], 0, "", 0, 0, 0);
        CHECK_INT(load_bytes(&s, b, b.n, 0), i < 4 ? NPZ_OK : NPZ_EFORMAT);
        count = 9;
        CHECK_INT(npz_list("case", info, &count, 1, NULL), i < 4 ? NPZ_OK : NPZ_EFORMAT);
        CHECK_INT(count, i < 4 ? 0 : 9);
        free(b.at);
    }
    b = saved_as(0);
    c = some(b.n + 9);
    {
        const size_t entry = find(b, 0x02014b50, 1), next = find(b, 0x02014b50, 2);
        const size_t end = find(b, 0x06054b50, 0);
        memcpy(c.at, b.at, next);
        memcpy(c.at + next, "xxxxcomme", 9);
        memcpy(c.at + next + 9, b.at + next, b.n - next);
        put(c.at + entry + 30, 4, 2);
        put(c.at + entry + 32, 5, 2);
        put(c.at + end + 9 + 12, get(b.at + end + 12, 4) + 9, 4);
        CHECK_INT(load_bytes(&s, c, c.n, SAMPLES), NPZ_OK);
        CHECK(loaded(&s));
        put(c.at + entry + 32, 4, 2);
        CHECK_INT(load_bytes(&s, c, c.n, SAMPLES), NPZ_EFORMAT);
        memcpy(c.at, b.at, b.n);
        memset(c.at + end + 8, 255, 12);
        CHECK_INT(load_bytes(&s, c, b.n, SAMPLES), NPZ_EZIP);
        for (i = 0; i < 2; i++) { /* encrypted, streamed */
            memcpy(c.at, b.at, b.n);
            c.at[6] = c.at[find(b, 0x02014b50, 0) + 8] = i == 0 ? 1 : 8;
            CHECK_INT(load_bytes(&s, c, b.n, SAMPLES), NPZ_EZIP);
        }
    }
    free(b.at);
    free(c.at);
}

/* ---- compression ----------------------------------------------------------------------------- */

/* Inflates "stored" blocks of deflate: 1, length, its complement, bytes. */
static int inflate_stored(void *user, unsigned char *out, size_t out_bytes, const unsigned char *in,
                          size_t in_bytes)
{
    ++*(int *)user;
    if (in_bytes < 5 || in[0] != 1 || get(in + 1, 2) != out_bytes || in_bytes != out_bytes + 5)
        return 0;
    memcpy(out, in + 5, out_bytes);
    return 1;
}

static void test_compressed(void)
{
    const char *text = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n";
    const float numbers[2] = {1.5f, -2};
    unsigned char data[8], packed[200], work[400];
    float got[2] = {7, 7};
    npz_array a = npz_make("a", NPZ_F32, got, 1, 2, 0);
    npz_context context;
    npz_info info;
    bytes npy, b;
    size_t count = 0;
    uint32_t bits;
    int i, calls = 0;
    for (i = 0; i < 2; i++) {
        memcpy(&bits, &numbers[i], 4);
        put(data + 4 * i, bits, 4);
    }
    npy = make_npy(1, text, data, 8);
    packed[0] = 1;
    put(packed + 1, npy.n, 2);
    put(packed + 3, ~npy.n, 2);
    memcpy(packed + 5, npy.at, npy.n);
    b = make_zip("a.npy", 8, packed, npy.n + 5, npy.n, crc_of(npy.at, npy.n));
    place(b.at, b.n);
    memset(&context, 0, sizeof context);
    CHECK_INT(npz_load("case", &a, 1, NULL), NPZ_ECOMPRESSED);
    CHECK_INT(npz_list("case", &info, &count, 1, &context), NPZ_ECOMPRESSED);
    CHECK_STR(context.name, "a");
    context.inflate = inflate_stored;
    context.user = &calls;
    CHECK_INT(npz_load("case", &a, 1, &context), NPZ_EWORK);
    CHECK_INT(context.needed, 2 * npy.n + 5);
    context.work = work;
    context.work_bytes = context.needed - 1;
    CHECK_INT(npz_load("case", &a, 1, &context), NPZ_EWORK);
    CHECK(got[0] == 7 && calls == 0);
    context.work_bytes++;
    CHECK_INT(npz_list("case", &info, &count, 1, &context), NPZ_OK);
    CHECK_STR(info.descr, "<f4");
    CHECK_INT(npz_load("case", &a, 1, &context), NPZ_OK);
    CHECK(got[0] == 1.5f && got[1] == -2 && calls == 4);
    b.at[35 + 5 + npy.n - 1] ^= 1; /* the last number: the checksum finds it */
    place(b.at, b.n);
    got[0] = 7;
    CHECK_INT(npz_load("case", &a, 1, &context), NPZ_EFORMAT);
    b.at[35] = 0; /* what inflate refuses */
    place(b.at, b.n);
    CHECK_INT(npz_load("case", &a, 1, &context), NPZ_EFORMAT);
    CHECK(got[0] == 7);
    free(npy.at);
    free(b.at);
}

/* ---- .npy ------------------------------------------------------------------------------------ */

/* Texts, D for the description of three doubles, and what becomes of them. */
static void test_npy_texts(void)
{
#define REST ", 'fortran_order': False, 'shape': (3,), }\n"
#define SHAPED(shape) "{'descr': '<f8', 'fortran_order': False, 'shape': " shape ", }\n"
    static const struct {
        const char *text;
        int expected;
    } line[] = {
        {"{'descr': '<f8'" REST, NPZ_OK},
        {"{'descr':'<f8','fortran_order':False,'shape':(3,), }   \n", NPZ_OK},
        {"{'descr': '<f8', 'fortran_order': True, 'shape': (3,), }\n", NPZ_OK},
        {SHAPED("(3, 1)"), NPZ_ESHAPE}, {SHAPED("(1,3)"), NPZ_ESHAPE},
        {SHAPED("(1,1,1,1,1,1,1,1,3)"), NPZ_ETYPE},
        {"{'descr': '<f8', 'fortran_order': True, 'shape': (1, 3), }\n", NPZ_ESHAPE},
        {"{'descr': '<u8'" REST, NPZ_ETYPE}, {"{'descr': '<c8'" REST, NPZ_ETYPE},
        {"{'descr': '<U2'" REST, NPZ_ETYPE}, {"{'descr': '|O'" REST, NPZ_ETYPE},
        {"{'descr': '<M8[ns]'" REST, NPZ_ETYPE}, {"{'descr': '|V8'" REST, NPZ_ETYPE},
        {"{'descr': [('a', '<f8')]" REST, NPZ_ETYPE}, {"{'descr': '<f4'" REST, NPZ_EFORMAT},
        {"{'descr': ''" REST, NPZ_EFORMAT}, {"{'descr': <f8" REST, NPZ_EFORMAT},
        {"{'descr': '<f44444444444444444444444444444444444444'" REST, NPZ_EFORMAT},
        {"{'descr': '<f8'" REST "\n", NPZ_EFORMAT}, {"{'descr': '<f8'" REST " ", NPZ_EFORMAT},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }", NPZ_EFORMAT},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (3,), } x\n", NPZ_EFORMAT},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (3,), \n", NPZ_EFORMAT},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (3,\n", NPZ_EFORMAT},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (3\n", NPZ_EFORMAT},
        {SHAPED("(3)"), NPZ_EFORMAT}, {SHAPED("3"), NPZ_EFORMAT}, {SHAPED("[3]"), NPZ_EFORMAT},
        {SHAPED("(,)"), NPZ_EFORMAT}, {SHAPED("(3,,)"), NPZ_EFORMAT}, {SHAPED("(03,)"), NPZ_EFORMAT},
        {SHAPED("(-3,)"), NPZ_EFORMAT}, {SHAPED("(+3,)"), NPZ_EFORMAT}, {SHAPED("( 3,)"), NPZ_EFORMAT},
        {SHAPED("(3L,)"), NPZ_EFORMAT}, {SHAPED("(3.0,)"), NPZ_EFORMAT}, {SHAPED("(4,)"), NPZ_EFORMAT},
        {SHAPED("(2,)"), NPZ_EFORMAT}, {SHAPED("(0,)"), NPZ_EFORMAT}, {SHAPED("()"), NPZ_EFORMAT},
        {SHAPED("(99999999999999999999,)"), NPZ_EFORMAT},
        {SHAPED("(18446744073709551615,)"), NPZ_EFORMAT},
        {SHAPED("(2305843009213693955,)"), NPZ_EFORMAT}, /* times 8 wraps round to 3 times 8 */
        {"{'descr': '<f8', 'fortran_order': 0, 'shape': (3,), }\n", NPZ_EFORMAT},
        {"{'descr': '<f8', 'fortran_order': Falsely, 'shape': (3,), }\n", NPZ_EFORMAT},
        {"{'descr': '<f8', 'fortran_order': False}\n", NPZ_EFORMAT},
        {"{'descr': '<f8', 'shape': (3,), }\n", NPZ_EFORMAT},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (3,), 'more': 1, }\n", NPZ_EFORMAT},
        {"{}\n", NPZ_EFORMAT}, {"\n", NPZ_EFORMAT}, {"", NPZ_EFORMAT}, {"exit()\n", NPZ_EFORMAT},
    };
    const double three[3] = {1, 2, 3};
    double got[3];
    npz_array a = npz_make("any", NPZ_F64, got, 1, 3, 0);
    unsigned char data[24];
    size_t i;
    int k;
    for (i = 0; i < 3; i++) {
        uint64_t bits;
        memcpy(&bits, &three[i], 8);
        put(data + 8 * i, bits, 8);
    }
    for (i = 0; i < COUNT(line); i++)
        for (k = 0; k <= 4; k++) {
            const int known = k >= 1 && k <= 3;
            bytes b = make_npy(k, line[i].text, data, 24);
            place(b.at, b.n);
            got[0] = 7;
            if (!CHECK_INT(npz_load("case", &a, 1, NULL), known ? line[i].expected : NPZ_EFORMAT))
                printf("  %s", line[i].text);
            CHECK(got[0] == (known && line[i].expected == NPZ_OK ? 1 : 7));
            free(b.at);
        }
}

/* Columns first; a text as long as the buffer, and longer. */
static void test_npy_frames(void)
{
    const char *good = "{'descr': '<f4', 'fortran_order': True, 'shape': (1, 1), }";
    unsigned char zero[4] = {0};
    float got = 7;
    npz_array a = npz_make("any", NPZ_F32, &got, 2, 1, 1);
    char padded[6001];
    size_t n;
    for (n = 4000; n <= 6000; n += 2000) {
        bytes b;
        memset(padded, ' ', n);
        memcpy(padded, good, strlen(good));
        padded[n - 1] = '\n';
        padded[n] = '\0';
        b = make_npy(2, padded, zero, 4);
        place(b.at, b.n);
        CHECK_INT(npz_load("case", &a, 1, NULL), n == 4000 ? NPZ_EORDER : NPZ_ETYPE);
        CHECK(got == 7);
        memset(b.at + 8, 255, 4);
        place(b.at, b.n);
        CHECK_INT(npz_load("case", &a, 1, NULL), NPZ_EFORMAT);
        free(b.at);
    }
}

/* ---- NumPy ----------------------------------------------------------------------------------- */

/* numpy.savez("fix.npz", W = [[1, -2, 3.5], [0.25, 1e-40, inf]] as float32, batches = int64(7),
   labels = [3, 1] as int32) of NumPy 1.24 and Python 3.11. */
static const char numpy_file[] =
    "504b0304140000000000000021008f26761d980000009800000005001400572e6e707901001000980000"
    "00000000009800000000000000934e554d5059010076007b276465736372273a20273c6634272c202766"
    "6f727472616e5f6f72646572273a2046616c73652c20277368617065273a2028322c2033292c207d2020"
    "202020202020202020202020202020202020202020202020202020202020202020202020202020202020"
    "20202020202020202020202020200a0000803f000000c0000060400000803ec21601000000807f504b03"
    "041400000000000000210023b8f06c88000000880000000b001400626174636865732e6e707901001000"
    "88000000000000008800000000000000934e554d5059010076007b276465736372273a20273c6938272c"
    "2027666f727472616e5f6f72646572273a2046616c73652c20277368617065273a2028292c207d202020"
    "202020202020202020202020202020202020202020202020202020202020202020202020202020202020"
    "20202020202020202020202020202020200a0700000000000000504b0304140000000000000021009851"
    "3a7d88000000880000000a0014006c6162656c732e6e7079010010008800000000000000880000000000"
    "0000934e554d5059010076007b276465736372273a20273c6934272c2027666f727472616e5f6f726465"
    "72273a2046616c73652c20277368617065273a2028322c292c207d202020202020202020202020202020"
    "202020202020202020202020202020202020202020202020202020202020202020202020202020202020"
    "2020200a0300000001000000504b01021403140000000000000021008f26761d98000000980000000500"
    "00000000000000000000800100000000572e6e7079504b010214031400000000000000210023b8f06c88"
    "000000880000000b00000000000000000000008001cf000000626174636865732e6e7079504b01021403"
    "1400000000000000210098513a7d88000000880000000a00000000000000000000008001940100006c61"
    "62656c732e6e7079504b05060000000003000300a4000000580200000000";

static bytes numpy_bytes(void)
{
    bytes b = some((sizeof numpy_file - 1) / 2);
    size_t i;
    for (i = 0; i < b.n; i++) {
        unsigned byte = 0;
        if (sscanf(numpy_file + 2 * i, "%2x", &byte) != 1) exit(2);
        b.at[i] = (unsigned char)byte;
    }
    return b;
}

static void check_numpy(bytes b)
{
    static const double W[6] = {1, -2, 3.5, 0.25, 1e-40, HUGE_VAL};
    double got[6];
    uint64_t batches = 0;
    uint8_t labels[2] = {9, 9};
    npz_array a[3];
    npz_info info[3];
    size_t count = 0, i;
    a[0] = npz_make("batches", NPZ_U64, &batches, 0, 0, 0);
    a[1] = npz_make("W", NPZ_F64, got, 2, 2, 3);
    a[2] = npz_make("labels", NPZ_U8, labels, 1, 2, 0);
    place(b.at, b.n);
    CHECK_INT(npz_load("case", a, 3, NULL), NPZ_OK);
    for (i = 0; i < 6; i++) CHECK(got[i] == (double)(float)W[i]);
    CHECK(batches == 7 && labels[0] == 3 && labels[1] == 1);
    CHECK_INT(npz_list("case", info, &count, 2, NULL), NPZ_OK); /* one more than there is room */
    CHECK_INT(count, 3);
    CHECK_STR(info[0].name, "W");
    CHECK(info[0].type == NPZ_F32 && info[0].dims == 2 && info[0].shape[1] == 3);
    CHECK(info[1].type == NPZ_I64 && info[1].dims == 0 && !info[1].fortran);
}

static void test_numpy(void)
{
    bytes b = numpy_bytes();
    unsigned char *sizes = b.at + 18, *extra = b.at + 35; /* of the first member */
    sample s;
    check_numpy(b);
    memset(sizes, 255, 8); /* as other versions of Python write them */
    check_numpy(b);
    put(extra + 4, 0x97, 8);
    CHECK_INT(load_bytes(&s, b, b.n, 0), NPZ_EFORMAT);
    put(extra + 4, 0x98, 8);
    put(extra + 2, 8, 2); /* a field that is too short */
    CHECK_INT(load_bytes(&s, b, b.n, 0), NPZ_EFORMAT);
    put(extra + 2, 16, 2);
    check_numpy(b);
    b.at[find(b, 0x02014b50, 0) - 1] ^= 1; /* an array that nobody wants is checked too */
    CHECK_INT(load_bytes(&s, b, b.n, 0), NPZ_EFORMAT);
    free(b.at);
}

/* ---- anything at all ------------------------------------------------------------------------- */

static void mutate(bytes *b, nrm_rng *rng)
{
    static const uint64_t odd[] = {0, 1, 7, 8, 255, 256, 0xffff, 0x10000, 0x7fffffffu, 0xffffffffu,
                                   (uint64_t)1 << 32, (uint64_t)1 << 62, (uint64_t)1 << 63,
                                   UINT64_MAX, UINT64_MAX - 63};
    const size_t i = nrm_rng_below(rng, (uint32_t)b->n), j = nrm_rng_below(rng, (uint32_t)b->n);
    const size_t width = (size_t)1 << nrm_rng_below(rng, 4);
    size_t n = nrm_rng_below(rng, 65);
    if (n > b->n - i) n = b->n - i;
    if (n > b->n - j) n = b->n - j;
    switch (nrm_rng_below(rng, 7)) {
    case 0: b->at[i] = (unsigned char)nrm_rng_below(rng, 256); break;
    case 1: b->at[i] ^= (unsigned char)(1u << nrm_rng_below(rng, 8)); break;
    case 2:
        if (b->n - i >= width) put(b->at + i, odd[nrm_rng_below(rng, COUNT(odd))], width);
        break;
    case 3:
        if (b->n - i >= width) put(b->at + i, get(b->at + i, width) + 1, width);
        break;
    case 4:
        if (b->n - i >= width) put(b->at + i, get(b->at + i, width) - 1, width);
        break;
    case 5: memmove(b->at + i, b->at + j, n); break;
    default: /* take out, or double */
        memmove(b->at + i, b->at + j, b->n - (i > j ? i : j));
        if (b->n > n + 1) b->n -= n;
        break;
    }
}

static void test_fuzz(void)
{
    nrm_rng rng;
    int k, turn, accepted = 0;
    nrm_rng_seed(&rng, 2026, 19);
    for (k = 0; k < 3; k++) {
        bytes b = k < 2 ? saved_as(k) : numpy_bytes();
        for (turn = 0; turn < 3000; turn++) {
            bytes c = copy_of(b);
            npz_info info[3];
            sample s;
            size_t count = 0;
            int times = 1 + (int)nrm_rng_below(&rng, 4), rc;
            while (times-- > 0) mutate(&c, &rng);
            rc = load_bytes(&s, c, c.n, k < 2 ? arrays_of(k) : 1);
            accepted += rc == NPZ_OK;
            CHECK(rc == NPZ_OK || (rc >= NPZ_EZIP && rc <= NPZ_ENAME && rc != NPZ_EFILE));
            (void)npz_list("case", info, &count, 3, NULL);
            free(c.at);
        }
        free(b.at);
    }
    CHECK(accepted > 0 && accepted < 4000);
}

/* ---- a disk that fails ----------------------------------------------------------------------- */

static int there(const char *path)
{
    struct stat s;
    return lstat(path, &s) == 0;
}

/* Saving over an old file, the k-th call failing for every k: an error, the old file, no rest. */
static void test_failing_saves(void)
{
    static const unsigned char old[] = "what was there";
    sample s;
    int f;
    fill(&s);
    for (f = 0; f < 2; f++) {
        bytes good = saved_as(f), after;
        long k;
        int hit = 1, refused = 0;
        for (k = 1; hit; k++) {
            int rc;
            write_bytes(format[f], old, sizeof old);
            new_disk(k);
            rc = npz_save(format[f], s.array, arrays_of(f), NULL);
            hit = disk.hit;
            CHECK(rc == NPZ_OK || (hit && rc == NPZ_EFILE));
            refused += rc != NPZ_OK;
            CHECK_INT(disk.open, 0);
            CHECK(!there(disk.created));
            after = read_bytes(format[f]);
            if (rc == NPZ_OK)
                CHECK(after.n == good.n && memcmp(after.at, good.at, good.n) == 0);
            else
                CHECK(after.n == sizeof old && memcmp(after.at, old, sizeof old) == 0);
            free(after.at);
        }
        CHECK(refused >= 5 && k - refused <= 3); /* only the first name may fail to open */
        free(good.at);
    }
    new_disk(0);
}

/* Loading: an error; and nothing is changed in the first of the two passes, which is as long as
   a load of nothing. */
static void test_failing_loads(void)
{
    int f;
    for (f = 0; f < 2; f++) {
        sample s;
        long k, first;
        int hit = 1;
        free(saved_as(f).at);
        new_disk(0);
        poison(&s);
        s.array[0].dims = 9 - 1; /* refused after the first pass */
        CHECK_INT(npz_load(format[f], s.array, 1, NULL), NPZ_ESHAPE);
        first = disk.calls - 1; /* without fclose */
        for (k = 1; hit; k++) {
            int rc;
            poison(&s);
            new_disk(k);
            rc = npz_load(format[f], s.array, arrays_of(f), NULL);
            hit = disk.hit;
            CHECK(rc == NPZ_EFILE || (rc == NPZ_OK && (!hit || k == disk.calls)));
            if (k <= first) CHECK(rc == NPZ_EFILE && untouched(&s));
            CHECK_INT(disk.open, 0);
        }
        CHECK(k > first);
    }
    new_disk(0);
}

/* Targets that are no regular files, symbolic links, temporary names that are taken. */
static void test_places(void)
{
    char path[5000], target[20] = "";
    struct stat before, after;
    sample s;
    bytes b;
    fill(&s);
    CHECK_INT(npz_save("no such folder/a.npz", s.array, 1, NULL), NPZ_EFILE);
    CHECK_INT(npz_load("no such folder/a.npz", s.array, 1, NULL), NPZ_EFILE);
    CHECK_INT(npz_save("", s.array, 1, NULL), NPZ_EFILE);
    CHECK(mkdir("folder", 0700) == 0 && mkfifo("fifo", 0600) == 0 && symlink("fifo", "to_fifo") == 0);
    CHECK_INT(stat("fifo", &before), 0);
    CHECK_INT(npz_save("folder", s.array, 1, NULL), NPZ_EPLACE);
    CHECK_INT(npz_load("folder", s.array, 1, NULL), NPZ_EPLACE);
    CHECK_INT(npz_save("fifo", s.array, 1, NULL), NPZ_EPLACE);
    CHECK_INT(npz_load("fifo", s.array, 1, NULL), NPZ_EPLACE); /* and does not wait for a writer */
    CHECK_INT(npz_save("to_fifo", s.array, 1, NULL), NPZ_EPLACE);
    CHECK_INT(npz_save("/dev/null", s.array, 1, NULL), NPZ_EPLACE);
    CHECK(stat("fifo", &after) == 0 && before.st_ino == after.st_ino && S_ISFIFO(after.st_mode));
    CHECK(readlink("to_fifo", target, 19) == 4);
    write_bytes("b.npz", "old", 3); /* a link: replaced, and its target left alone */
    CHECK_INT(symlink("b.npz", "link"), 0);
    CHECK_INT(npz_save("link", s.array, SAMPLES, NULL), NPZ_OK);
    CHECK(lstat("link", &after) == 0 && S_ISREG(after.st_mode));
    b = read_bytes("b.npz");
    CHECK(b.n == 3 && memcmp(b.at, "old", 3) == 0);
    free(b.at);
    remove("b.npz");
    CHECK_INT(symlink("link", "b.npz"), 0); /* followed when reading */
    poison(&s);
    CHECK_INT(npz_load("b.npz", s.array, SAMPLES, NULL), NPZ_OK);
    CHECK(loaded(&s));
    memset(path, 'x', sizeof path);
    path[4096] = '\0';
    new_disk(0);
    CHECK_INT(npz_save(path, s.array, 1, NULL), NPZ_EFILE);
    CHECK_INT(disk.calls, 0); /* too long: not even tried */
    disk.taken = 1; /* a link under the first temporary name is not followed */
    remove("a.npz");
    CHECK_INT(npz_save("a.npz", s.array, SAMPLES, NULL), NPZ_OK);
    CHECK(!there("victim") && !there(disk.created));
    CHECK_INT(system("rm a.npz.tmp*"), 0); /* it is there, and only it */
    new_disk(0);
    if (there("/dev/full")) {
        free(saved_as(0).at);
        disk.full = 1;
        CHECK_INT(npz_save("a.npz", s.array, SAMPLES, NULL), NPZ_EFILE);
        new_disk(0);
        poison(&s);
        CHECK_INT(npz_load("a.npz", s.array, SAMPLES, NULL), NPZ_OK);
        CHECK(loaded(&s));
    }
}

int main(void)
{
    static char folder[500];
    const char *base = getenv("TMPDIR");
    int rc;
    snprintf(folder, sizeof folder, "%s/normlayers-npz-XXXXXX",
             base != NULL && *base != '\0' ? base : "/tmp");
    if (mkdtemp(folder) == NULL || chdir(folder) != 0) return 2;
    write_bytes("case", "", 0); /* so that stat finds a regular file */
    RUN(test_checksum);
    RUN(test_round_trips);
    RUN(test_dims_and_chunks);
    RUN(test_many_names);
    RUN(test_arguments);
    RUN(test_mismatches);
    RUN(test_integers);
    RUN(test_floats);
    RUN(test_truncations);
    RUN(test_flips);
    RUN(test_lies);
    RUN(test_other_archives);
    RUN(test_compressed);
    RUN(test_npy_texts);
    RUN(test_npy_frames);
    RUN(test_numpy);
    RUN(test_fuzz);
    RUN(test_failing_saves);
    RUN(test_failing_loads);
    RUN(test_places);
    rc = test_report("npz");
    free(memory.at);
    { /* every file that a test has made, and no other: a rest would keep the folder */
        static const char *const made[] = {"a.npz", "a.npy", "b.npz", "case", "fifo", "to_fifo",
                                           "link", "folder"};
        size_t i;
        for (i = 0; i < COUNT(made); i++) remove(made[i]);
    }
    if (chdir("/") != 0 || rmdir(folder) != 0) {
        printf("npz: something is left in %s\n", folder);
        return 1;
    }
    return rc;
}
