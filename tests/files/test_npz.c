/* test_npz.c - examples/npz.h: what is written is read back, bit for bit; what is damaged or lies
   is refused; what is refused changes nothing; what fails half way leaves the old file. What npz.h
   calls is replaced by functions that can be told to fail at the k-th call. Files that npz.h would
   not write are put together here, by code that shares nothing with it. Windows and WebAssembly
   have neither links nor FIFOs, nor streams in memory: there two tests are left out. */
#define _XOPEN_SOURCE 700 /* mkdtemp, fmemopen, mkfifo, symlink */
#if defined(_WIN32) || defined(__wasi__)
#define PLAIN_DISK
#endif
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#ifndef PLAIN_DISK
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#endif
typedef struct bytes {
    size_t n;
    unsigned char at[8192];
} bytes;
static bytes read_bytes(const char *path)
{
    bytes b;
    FILE *f = fopen(path, "rb");
    b.n = f == NULL ? 0 : fread(b.at, 1, sizeof b.at, f);
    if (f != NULL && (fclose(f) != 0 || b.n == sizeof b.at)) exit(2);
    return b;
}
static void write_bytes(const char *path, const void *at, size_t n)
{
    FILE *f = fopen(path, "wb");
    if (f == NULL || fwrite(at, 1, n, f) != n || fclose(f) != 0) exit(2);
}
static int equal(bytes b, const void *at, size_t n)
{
    return b.n == n && memcmp(b.at, at, n) == 0;
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

static struct {
    long calls, fail_at; /* the number of calls so far; the one that fails, 0: none       */
    int hit;             /* it has                                                        */
    int streams;         /* that are open                                                 */
    int broken;          /* the last stream that was opened has seen an error             */
    int taken;           /* the first temporary name is a symbolic link to "victim"       */
    char created[5000];  /* the file that was opened last for writing                     */
} disk;
#ifndef PLAIN_DISK
static unsigned char *case_at; /* the file "case", which is not on a disk */
static size_t case_n;
#endif
static void new_disk(long fail_at)
{
    memset(&disk, 0, sizeof disk);
    disk.fail_at = fail_at;
}
#ifndef PLAIN_DISK
static int fails(void)
{
    if (++disk.calls != disk.fail_at) return 0;
    return disk.hit = 1;
}
static int disk_open(const char *path, int flags, int mode)
{
    int file;
    if (flags != (O_CREAT | O_EXCL | O_WRONLY)) exit(2);      /* always exclusively */
    if (fails() || strncmp(path, "/dev/", 5) == 0) return -1; /* root could replace a device */
    if (disk.taken-- == 1 && symlink("victim", path) != 0) exit(2);
    file = open(path, flags, mode);
    if (file >= 0) snprintf(disk.created, sizeof disk.created, "%s", path);
    if (file >= 0) disk.streams++;
    disk.broken = 0;
    return file;
}
static FILE *disk_fopen(const char *path, const char *mode)
{
    FILE *f;
    if (strcmp(mode, "rb") != 0) exit(2);
    if (fails()) return NULL;
    f = strcmp(path, "case") == 0 && case_n > 0 ? fmemopen(case_at, case_n, mode)
                                                : fopen(path, mode);
    if (f != NULL) disk.streams++;
    disk.broken = 0;
    return f;
}
/* A function that does its work, or fails with this result. */
#define DISK(type, name, parameters, arguments, failed)                                            \
    static type disk_##name parameters                                                             \
    {                                                                                              \
        return fails() ? (failed) : name arguments;                                                \
    }
DISK(FILE *, fdopen, (int file, const char *mode), (file, mode), NULL)
DISK(size_t, fwrite, (const void *from, size_t size, size_t n, FILE *f), (from, size, n, f),
     (disk.broken = 1, fwrite(from, size, n / 2, f)))
DISK(size_t, fread, (void *to, size_t size, size_t n, FILE *f), (to, size, n, f),
     (disk.broken = 1, fread(to, size, n / 2, f)))
DISK(int, fflush, (FILE * f), (f), EOF)
DISK(int, fseek, (FILE * f, long at, int whence), (f, at, whence), -1)
DISK(long, ftell, (FILE * f), (f), -1)
DISK(int, rename, (const char *from, const char *to), (from, to), -1)
DISK(int, fclose, (FILE * f), (f), (fclose(f), EOF))
#define open disk_open
#define fdopen disk_fdopen
#define fopen disk_fopen
#define fclose(f) (disk.streams--, disk_fclose(f))
#define close(file) (disk.streams--, close(file))
#define fwrite disk_fwrite
#define fread disk_fread
#undef ferror
#define ferror(f) (disk.broken || (ferror)(f))
#define fflush disk_fflush
#define fseek disk_fseek
#define ftell disk_ftell
#define rename disk_rename
#endif
#define NPZ_IMPLEMENTATION
#include "npz.h"
#undef open
#include "test.h"
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define EQUATION(tag, holds) ((holds) ? 1 : (printf("%s does not hold\n", tag), CHECK(0)))
/* Makes these bytes the file "case". */
static void place(const unsigned char *at, size_t n)
{
#ifdef PLAIN_DISK
    write_bytes("case", at, n);
#else
    free(case_at);
    case_at = (unsigned char *)malloc(n + 1);
    if (case_at == NULL) exit(2);
    memcpy(case_at, at, n);
    case_n = n;
    if (n == 0) write_bytes("case", at, 0); /* not every fmemopen knows empty files */
#endif
}
static int load_case(bytes b, npz_array *a, npz_context *context)
{
    place(b.at, b.n);
    return npz_load("case", a, 1, context);
}

enum { LOCAL = 0x04034b50, ENTRY = 0x02014b50, END = 0x06054b50 };
/* Where the k-th header with this signature of an archive begins. */
static size_t find(bytes b, uint32_t signature, int k)
{
    size_t i;
    for (i = 0; i + 4 <= b.n; i++)
        if (get(b.at + i, 4) == signature && k-- == 0) return i;
    exit(2);
}
#define REST ", 'fortran_order': False, 'shape': (3,), }\n"
#define SHAPED(type, shape) "{'descr': '" type "', 'fortran_order': False, 'shape': " shape ", }\n"

/* A .npy file: version, text as it is, data. */
static bytes make_npy(int version, const char *text, const void *data, size_t n)
{
    const size_t start = version == 1 ? 10 : 12, length = strlen(text);
    bytes b = {start + length + n, {0x93, 'N', 'U', 'M', 'P', 'Y'}};
    b.at[6] = (unsigned char)version;
    put(b.at + 8, length, start - 8);
    memcpy(b.at + start, text, length);
    memcpy(b.at + start + length, data, n);
    return b;
}

/* An archive with one member, with sizes and method as told; crc: of what is packed in it. */
static bytes make_zip(const char *name, int method, bytes data, size_t plain, uint32_t crc)
{
    const size_t n = strlen(name), directory = 30 + n + data.n;
    /* clang-format off */
    const uint64_t field[][3] = {{0, ENTRY, 4}, {4, 0x14031e, 3}, {10, (uint64_t)method, 2},
        {16, crc, 4}, {20, data.n, 4}, {24, plain, 4}, {28, n, 2}, {38, 0x81a40000u, 4},
        {46 + n, END, 4}, {54 + n, 0x00010001, 4}, {58 + n, 46 + n, 4}, {62 + n, directory, 4}};
    /* clang-format on */
    bytes b = {directory + 46 + n + 22, {'P', 'K', 3, 4}};
    unsigned char *const d = b.at + directory;
    size_t i;
    for (i = 0; i < COUNT(field); i++) put(d + field[i][0], field[i][1], field[i][2]);
    memcpy(d + 46, name, n);
    memcpy(b.at + 4, d + 6, 26);
    memcpy(b.at + 30, name, n);
    memcpy(b.at + 30 + n, data.at, data.n);
    return b;
}

/* The tags in words of their own; CRC.3 bit by bit, with no table. */
static void test_checksum(void)
{
    unsigned char message[64] = "123456789";
    uint32_t table[256];
    size_t n, i;
    nrm_rng rng;
    nrm_rng_seed(&rng, 1901, 19);
    npzi_crc_table(table);
    for (n = 0; n < 256; n++) {
        uint64_t c = n;
        for (i = 0; i < 8; i++) c = (c / 2) ^ (c % 2 * 3988292384u);
        EQUATION("CRC.1", table[n] == c);
    }
    EQUATION("CRC.3", npzi_crc(table, 0, message, 9) == 0xcbf43926u); /* of every list */
    for (n = 0; n < 64; n++) {
        uint64_t c = 4294967295u, divided = c; /* 2^32 - 1 */
        uint32_t half;
        for (i = 0; i < n; i++) message[i] = (unsigned char)nrm_rng_below(&rng, 256);
        for (i = 0; i < n; i++) c = (c / 256) ^ table[(c ^ message[i]) % 256];
        for (i = 0; i < 8 * n; i++)
            divided = (divided / 2) ^ ((divided ^ message[i / 8] >> i % 8) % 2 * 3988292384u);
        half = npzi_crc(table, 0, message, n / 3);
        EQUATION("CRC.2", npzi_crc(table, 0, message, n) == (c ^ 4294967295u));
        EQUATION("CRC.2", npzi_crc(table, half, message + n / 3, n - n / 3) == (c ^ 4294967295u));
        EQUATION("CRC.3", npzi_crc(table, 0, message, n) == (divided ^ 4294967295u));
    }
}

enum { SAMPLES = 5 };
typedef struct sample { /* one array has no elements, one no dimensions */
    uint64_t W[6], n[3];
    float s, none[1];
    int8_t small[2];
    npz_array array[SAMPLES];
} sample;
static void poison(sample *s)
{
    memset(s, 0x5a, sizeof *s);
    s->array[0] = npz_make("dense/kernel:0", NPZ_F64, s->W, 2, 2, 3);
    s->array[1] = npz_make("n", NPZ_U64, s->n, 1, 3, 0);
    s->array[2] = npz_make("none", NPZ_F32, s->none, 2, 5, 0);
    s->array[3] = npz_make("s", NPZ_F32, &s->s, 0, 0, 0);
    s->array[4] = npz_make("\xc3\xa4 '\"", NPZ_I8, s->small, 1, 2, 0);
}

/* Numbers that are easily damaged: a signalling NaN, -0, the smallest and the largest. */
static void fill(sample *s)
{
    static const uint64_t W[6] = {0x3ff199999999999au, 0x7ff0000000000001u, (uint64_t)1 << 63, 1,
                                  0x7fefffffffffffffu, 0xfff0000000000000u};
    poison(s);
    memcpy(s->W, W, sizeof W);
    s->n[0] = UINT64_MAX;
    s->n[1] = 0;
    s->n[2] = 0x0123456789abcdefu;
    s->s = -2.5f;
    s->small[0] = -128;
    s->small[1] = 7;
}

/* Is a sample as this function makes it? */
static int is(const sample *s, void (*made)(sample *))
{
    sample other;
    made(&other);
    return memcmp(s, &other, offsetof(sample, array)) == 0;
}

/* Loads n bytes as a file into a poisoned sample; checks that a refusal changed nothing. */
static int load_bytes(sample *s, bytes b, size_t n, size_t arrays)
{
    int rc;
    poison(s);
    place(b.at, n);
    rc = npz_load("case", s->array, arrays, NULL);
    CHECK(rc == NPZ_OK || is(s, poison));
    CHECK_INT(disk.streams, 0);
    return rc;
}
static const char *const format[] = {"a.npz", "a.npy"};
static const size_t arrays_of[] = {SAMPLES, 1};

/* The sample as a file of a format. */
static bytes saved_as(int k)
{
    sample s;
    fill(&s);
    CHECK_INT(npz_save(format[k], s.array, arrays_of[k], NULL), NPZ_OK);
    return read_bytes(format[k]);
}

static void test_round_trips(void)
{
    sample s, full;
    npz_array turned[2];
    int k;
    fill(&full);
    for (k = 0; k < 2; k++) {
        bytes first = saved_as(k), second = saved_as(k);
        CHECK(first.n > 0 && equal(first, second.at, second.n));
        poison(&s);
        CHECK_INT(npz_load(format[k], s.array, arrays_of[k], NULL), NPZ_OK);
        CHECK(k == 0 ? is(&s, fill) : memcmp(s.W, full.W, sizeof s.W) == 0);
        CHECK_INT(npz_load(format[k], NULL, 0, NULL), NPZ_OK); /* only checks the file */
    }
    poison(&s); /* order and selection are the caller's */
    turned[0] = s.array[3];
    turned[1] = s.array[0];
    CHECK_INT(npz_load("a.npz", turned, 2, NULL), NPZ_OK);
    CHECK(memcmp(s.W, full.W, sizeof s.W) == 0 && s.s == full.s && s.n[0] == 0x5a5a5a5a5a5a5a5au);
    CHECK_INT(npz_save("a.npz", NULL, 0, NULL), NPZ_OK);
    CHECK_INT(npz_load("a.npz", NULL, 0, NULL), NPZ_OK);
    CHECK_INT(npz_load("a.npz", s.array, 1, NULL), NPZ_ENAME);
}

static void test_dims_and_chunks(void)
{
    enum { MANY = 5000 };
    static double a[MANY], b[MANY];
    const size_t shape[8] = {2, 1, 3, 1, 2, 1, 4, 1};
    size_t i, n, k;
    for (i = 0; i < MANY; i++) a[i] = sqrt((double)i);
    for (k = 0; k < 2 * (NPZ_DIMS + 2); k++) { /* up to 8 dimensions, and a long one */
        const size_t dims = k / 2;
        npz_array array = npz_make("a", NPZ_F64, a, dims > 8 ? 1 : dims, 0, 0);
        for (i = 0, n = 1; i < array.dims; i++) n *= array.shape[i] = dims > 8 ? MANY : shape[i];
        CHECK_INT(npz_save(format[k % 2], &array, 1, NULL), NPZ_OK);
        memset(b, 0, sizeof b);
        array.data = b;
        CHECK_INT(npz_load(format[k % 2], &array, 1, NULL), NPZ_OK);
        CHECK(memcmp(a, b, n * sizeof *a) == 0);
    }
}

/* The largest number of arrays, in an order that is not the file's. */
static void test_many_names(void)
{
    enum { N = NPZ_MOST };
    static npz_array array[N + 1];
    static char name[N + 1][16];
    static uint16_t data[N + 1];
#ifndef _WIN32
    const clock_t start = clock();
#endif
    size_t i;
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
#ifndef _WIN32 /* there clock counts the time of other programs too */
    CHECK(clock() - start < 20 * CLOCKS_PER_SEC); /* one comparison for each pair: minutes */
#endif
}

static void test_arguments(void)
{
    enum { LARGEST = sizeof(size_t) > 4 ? NPZ_ESIZE : NPZ_EARRAY }; /* no 8 GiB in 32 bits */
    static char longest[NPZ_NAME + 1], number[48];
    /* clang-format off */
    static const struct { const char *name; int type; void *at; size_t dims, n; int rc; } one[] = {
        {NULL, NPZ_F64, number, 2, 3, NPZ_ENULL}, {"", NPZ_F64, number, 2, 3, NPZ_ENAME},
        {"tab\t", NPZ_F64, number, 2, 3, NPZ_ENAME}, {"\x7f", NPZ_F64, number, 2, 3, NPZ_ENAME},
        {longest, NPZ_F64, number, 2, 3, NPZ_ENAME}, {longest + 1, NPZ_F64, number, 2, 3, NPZ_OK},
        {"a", NPZ_OTHER, number, 2, 3, NPZ_EARRAY}, {"a", -1, number, 2, 3, NPZ_EARRAY},
        {"a", NPZ_F64 + 1, number, 2, 3, NPZ_EARRAY}, {"a", NPZ_F64, number, 9, 3, NPZ_EARRAY},
        {"a", NPZ_F64, number, 2, SIZE_MAX / 2, NPZ_EARRAY}, {"a", NPZ_F64, NULL, 2, 3, NPZ_ENULL},
        {"a", NPZ_F64, number, 2, (size_t)1 << 29, LARGEST}, /* 8 GiB: the last, not loaded */
    };
    /* clang-format on */
    npz_context context = {NULL, NULL, NULL, 0, 0, ""};
    sample s;
    size_t count = 9, k;
    int i;
    memset(longest, 'n', NPZ_NAME);
    fill(&s);
    CHECK_INT(npz_save(NULL, s.array, 1, NULL), NPZ_ENULL);
    CHECK_INT(npz_load(NULL, s.array, 1, NULL), NPZ_ENULL);
    CHECK_INT(npz_list(NULL, NULL, &count, 0, NULL), NPZ_ENULL);
    CHECK_INT(npz_list("a.npz", NULL, NULL, 0, NULL), NPZ_ENULL);
    CHECK_INT(npz_list("a.npz", NULL, &count, 1, NULL), NPZ_ENULL);
    CHECK_INT(npz_save("a.npy", s.array, 2, NULL), NPZ_ESIZE);
    CHECK_INT(npz_save("a.npy", NULL, 0, NULL), NPZ_ESIZE);
    for (k = 0; k < COUNT(one); k++) {
        const int rc = one[k].rc;
        npz_array a = npz_make(one[k].name, one[k].type, one[k].at, one[k].dims, 2, one[k].n);
        if (!CHECK_INT(npz_save("b.npz", &a, 1, &context), rc)) printf("  case %d\n", (int)k);
        if (k > 5 && rc != NPZ_ESIZE) CHECK_STR(context.name, "a");
        if (rc != NPZ_OK && rc != NPZ_ESIZE) CHECK_INT(npz_load("b.npz", &a, 1, NULL), rc);
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
    /* clang-format off */
    static const struct { size_t k; const char *name; int type; size_t dims, n; int rc; } bad[] = {
        {3, "s", NPZ_F32, 1, 1, NPZ_ESHAPE}, {1, "n", NPZ_U64, 1, 2, NPZ_ESHAPE},
        {3, "s", NPZ_U32, 0, 0, NPZ_ETYPE}, {1, "n", NPZ_F64, 1, 3, NPZ_ETYPE},
        {3, "t", NPZ_F32, 0, 0, NPZ_ENAME}, {1, "n", NPZ_I64, 1, 3, NPZ_ERANGE},
        {2, "none", NPZ_F32, 2, 4, NPZ_ESHAPE}};
    /* clang-format on */
    npz_context context = {NULL, NULL, NULL, 0, 0, ""};
    sample s;
    size_t i;
    (void)saved_as(0);
    for (i = 0; i < COUNT(bad); i++) {
        npz_array *const a = &s.array[bad[i].k];
        poison(&s);
        *a = npz_make(bad[i].name, bad[i].type, a->data, bad[i].dims, bad[i].n, 0);
        CHECK_INT(npz_load("a.npz", s.array, SAMPLES, &context), bad[i].rc);
        CHECK_STR(context.name, bad[i].name);
        CHECK(is(&s, poison));
    }
}
static int fits(int64_t value, int type)
{
    const int bits = 8 << (type - 1) % 4;
    const long double low = type <= NPZ_I64 ? -ldexpl(1, bits - 1) : 0;
    return value >= low && value < low + ldexpl(1, bits);
}

/* Integers of all widths into one another: if each number fits. */
static void test_integers(void)
{
    static const int power[7] = {0, 7, 8, 15, 16, 31, 32};
    int i, v;
    for (i = 0; i < 7 * 8 * 8; i++)
        for (v = 0; v < 6; v++) { /* 1 less, this, 1 more; and their negatives; the ends */
            const int from = NPZ_I8 + i / 8 % 8, to = NPZ_I8 + i % 8;
            int64_t value = (((int64_t)1 << power[i / 64]) + v % 3 - 1) * (v < 3 ? 1 : -1);
            unsigned char data[8] = {0}, expected[8] = {0}, got[8] = {0};
            npz_array a;
            if (i < 64 && v % 3 == 0) value = v == 3 ? INT64_MAX : INT64_MIN;
            if (!fits(value, from)) continue;
            npzi_put(data, (uint64_t)value, (size_t)1 << (from - 1) % 4, NPZ_HIGH_FIRST);
            a = npz_make("a", from, data, 0, 0, 0);
            CHECK_INT(npz_save("a.npy", &a, 1, NULL), NPZ_OK);
            a = npz_make("a", to, got, 0, 0, 0);
            CHECK_INT(npz_load("a.npy", &a, 1, NULL), fits(value, to) ? NPZ_OK : NPZ_ERANGE);
            if (fits(value, to))
                npzi_put(expected, (uint64_t)value, (size_t)1 << (to - 1) % 4, NPZ_HIGH_FIRST);
            CHECK(memcmp(got, expected, 8) == 0);
        }
}

/* Floats as doubles, doubles as floats, and both with high bytes first. */
static void test_floats(void)
{
    /* clang-format off */
    const double number[] = {0, -0.0, 1, -2.5, 1e-46, 1e-40, 0.1, HUGE_VAL, -HUGE_VAL,
        1.1754943508222875e-38, 3.4028235677973362e38, 1e39, -1e308, 3.4028235677973366e38};
    /* clang-format on */
    size_t i, k, j;
    for (i = 0; i < COUNT(number); i++)
        for (k = 0; k < 8; k++) { /* own type, file's type, order */
            const double d = number[i];
            const int refused = i >= 11 && (k & 3) == 2; /* too much for a float */
            const float f = i < 11 ? (float)d : 7;
            const size_t n = k & 2 ? 8 : 4;
            unsigned char data[8];
            float got = 7;
            double wide = 7;
            npz_array a = k & 1 ? npz_make("any", NPZ_F64, &wide, 0, 0, 0)
                                : npz_make("any", NPZ_F32, &got, 0, 0, 0);
            uint64_t bits;
            uint32_t half;
            char text[100];
            memcpy(&bits, &d, 8);
            memcpy(&half, &f, 4);
            if (n == 4) bits = half;
            for (j = 0; j < n; j++)
                data[k & 4 ? n - 1 - j : j] = (unsigned char)(bits >> 8 * j & 255);
            snprintf(text, sizeof text, SHAPED("%cf%d", "()"), k & 4 ? '>' : '<', (int)n);
            CHECK_INT(load_case(make_npy(1, text, data, n), &a, NULL),
                      refused ? NPZ_ERANGE : NPZ_OK);
            if ((k & 1) == 0) wide = (double)got;
            CHECK(wide == ((k & 3) == 3 ? d : (double)f) &&
                  (f == 0 ? !signbit(wide) == !signbit(d) : 1));
        }
}

/* A double half way between two floats becomes the one whose last bit is 0; a NaN stays one, also
   if all its bits are in the half that is lost. */
static void test_rounding(void)
{
    static const uint64_t number[] = {0x3ff0000010000000u, 0x3ff0000030000000u, 0xbff0000010000000u,
                                      0x3ff0000010000001u, 0x3ff000000fffffffu, 0x7ff0000000000001u,
                                      0xfff0000000000001u};
    static const float nearest[] = {1, 1 + 0x1p-22F, -1, 1 + 0x1p-23F, 1};
    size_t i;
    for (i = 0; i < COUNT(number); i++) {
        float got = 7;
        unsigned char data[8];
        npz_array a = npz_make("any", NPZ_F32, &got, 0, 0, 0);
        put(data, number[i], 8);
        CHECK_INT(load_case(make_npy(1, SHAPED("<f8", "()"), data, 8), &a, NULL), NPZ_OK);
        CHECK(i < COUNT(nearest) ? got == nearest[i] : got != got);
    }
}

/* The data begin at the first multiple of 64 behind the text and its line feed. */
static void test_padding(void)
{
    size_t digits, i, n;
    for (digits = 0; digits < 64; digits++) { /* the text gets longer, one character at a time */
        npz_array a = npz_make("a", NPZ_F64, NULL, NPZ_DIMS, 0, 1);
        bytes b;
        for (i = 2; i < NPZ_DIMS; i++) a.shape[i] = 1;
        for (i = 0; i < digits; i++) a.shape[1 + i % (NPZ_DIMS - 1)] *= 10;
        CHECK_INT(npz_save("a.npy", &a, 1, NULL), NPZ_OK);
        b = read_bytes("a.npy");
        for (n = 0; n < b.n && b.at[n] != '}'; n++) continue;
        CHECK(b.n == (n + 2 + 63) / 64 * 64 && b.at[b.n - 1] == '\n');
    }
}

/* All truncations, a byte too many, and every single bit of an archive that npz.h wrote; of a .npy,
   all of the text that is not a size of the same product or the order of bytes. */
static void test_damage(void)
{
    sample s;
    size_t i;
    int k, accepted = 0;
    for (k = 0; k < 2; k++) {
        bytes b = saved_as(k);
        for (i = 0; i < b.n; i++) CHECK_INT(load_bytes(&s, b, i, arrays_of[k]), NPZ_EFORMAT);
        CHECK_INT(load_bytes(&s, b, b.n, arrays_of[k]), NPZ_OK);
        b.at[b.n] = 0;
        CHECK_INT(load_bytes(&s, b, b.n + 1, arrays_of[k]), NPZ_EFORMAT);
        for (i = 0; i < 8 * (k == 0 ? b.n : 128); i++) {
            int rc;
            b.at[i / 8] ^= (unsigned char)(1u << i % 8);
            rc = load_bytes(&s, b, b.n, arrays_of[k]);
            b.at[i / 8] ^= (unsigned char)(1u << i % 8);
            if (k == 0 && !CHECK(rc != NPZ_OK)) printf("  bit %u\n", (unsigned)i);
            accepted += rc == NPZ_OK;
        }
    }
    CHECK_INT(accepted, 1); /* '<' and '>' are one bit apart */
}

/* The first member's two headers (L, E), the second's in the directory (F), and the end (D): flags,
   methods, dates, checksums, sizes, places, names. */
static void test_lies(void)
{
    const bytes b = saved_as(0);
    const size_t L = 0, E = find(b, ENTRY, 0), F = find(b, ENTRY, 1), D = find(b, END, 0);
    const uint64_t size = D - E, ones = 0xffffffffu;
    /* clang-format off */
    const struct { size_t at; uint64_t value; size_t n; } lie[] = {
        {D + 4, 1, 2}, {D + 6, 1, 2}, {D + 8, 3, 2}, {D + 10, 3, 2}, {D + 8, 6, 2},
        {D + 8, 0xffff, 2}, {D + 8, 0x40004, 4}, {D + 8, 0x60006, 4}, {D + 8, 0, 4},
        {D + 8, ones, 4}, {D + 12, ones, 4}, {D + 12, size - 1, 4}, {D + 12, size + 1, 4},
        {D + 12, 0, 4}, {D + 16, E - 1, 4}, {D + 16, 0, 4}, {D + 16, ones, 4}, {D + 20, 1, 2},
        {E, 0, 4}, {F, 0, 4}, {L, ENTRY, 4}, {E + 8, 1, 2}, {E + 8, 8, 2}, {E + 8, 0x800, 2},
        {L + 6, 1, 2}, {L + 6, 8, 2}, {L + 6, 0x800, 2}, {E + 10, 8, 2}, {L + 8, 8, 2},
        {E + 12, 5, 2}, {E + 14, 0, 2}, {E + 16, 0, 4}, {L + 14, 0, 4}, {E + 20, 0, 4},
        {E + 24, 0, 4}, {E + 20, ones, 4}, {E + 24, ones, 4}, {L + 18, 0, 4}, {L + 22, 0, 4},
        {L + 18, ones, 4}, {L + 18, UINT64_MAX, 8}, {E + 28, 0, 2}, {E + 28, 17, 2},
        {E + 28, 0xffff, 2}, {L + 26, 0, 2}, {L + 26, 17, 2}, {L + 26, 0xffff, 2}, {E + 30, 1, 2},
        {E + 30, 0xffff, 2}, {E + 32, 1, 2}, {L + 28, 1, 2}, {E + 34, 1, 2}, {L + 28, 0xffff, 2},
        {E + 42, 1, 4}, {E + 42, ones, 4}, {F + 42, 0, 4}, {E + 46, 'x', 1}, {L + 30, 'x', 1},
    };
    /* clang-format on */
    const uint64_t both[] = {0, 0xfffffffeu, E};
    bytes c;
    sample s;
    size_t i;
    for (i = 0; i < COUNT(lie); i++) {
        int rc;
        c = b;
        put(c.at + lie[i].at, lie[i].value, lie[i].n);
        rc = load_bytes(&s, c, c.n, SAMPLES);
        if (!CHECK(rc == NPZ_EFORMAT || rc == NPZ_EZIP)) printf("  lie %u: %d\n", (unsigned)i, rc);
    }
    for (i = 0; i < COUNT(both); i++) { /* both sizes, in both places */
        c = b;
        put(c.at + E + 20, both[i] << 32 | both[i], 8);
        put(c.at + L + 18, both[i] << 32 | both[i], 8);
        CHECK_INT(load_bytes(&s, c, c.n, SAMPLES), NPZ_EFORMAT);
    }
    c = b; /* the fourth array under the name of the second */
    c.at[find(c, ENTRY, 3) + 46] = c.at[find(c, LOCAL, 3) + 30] = 'n';
    CHECK_INT(load_bytes(&s, c, c.n, 2), NPZ_EFORMAT);
    CHECK_INT(load_bytes(&s, c, c.n, 1), NPZ_OK); /* harmless if nobody wants it */
}

/* Members that are no arrays, extra fields and comments of the directory, zip64, encryption. */
static void test_other_archives(void)
{
    static const char *const name[] = {"d/", ".npy", "a.txt", "a\t.npy", "a.npy"};
    const bytes b = saved_as(0), nothing = {0, {0}};
    const size_t first = find(b, ENTRY, 0), entry = find(b, ENTRY, 1), next = find(b, ENTRY, 2);
    const size_t end = find(b, END, 0);
    npz_info info[1];
    sample s;
    size_t i, count;
    bytes c;
    for (i = 0; i < COUNT(name); i++) {
        c = make_zip(name[i], 0, nothing, 0, 0);
        CHECK_INT(load_bytes(&s, c, c.n, 0), i < 4 ? NPZ_OK : NPZ_EFORMAT);
        count = 9;
        CHECK_INT(npz_list("case", info, &count, 1, NULL), i < 4 ? NPZ_OK : NPZ_EFORMAT);
        CHECK_INT(count, i < 4 ? 0 : 9);
    }
    c = b;
    memcpy(c.at + next, "xxxxcomme", 9);
    memcpy(c.at + next + 9, b.at + next, b.n - next);
    put(c.at + entry + 30, 4, 2);
    put(c.at + entry + 32, 5, 2);
    put(c.at + end + 9 + 12, get(b.at + end + 12, 4) + 9, 4);
    CHECK_INT(load_bytes(&s, c, b.n + 9, SAMPLES), NPZ_OK);
    CHECK(is(&s, fill));
    put(c.at + entry + 32, 4, 2);
    CHECK_INT(load_bytes(&s, c, b.n + 9, SAMPLES), NPZ_EFORMAT);
    c = b; /* a gap before the directory */
    memcpy(c.at + first + 1, b.at + first, b.n - first);
    put(c.at + end + 1 + 16, first + 1, 4);
    CHECK_INT(load_bytes(&s, c, b.n + 1, SAMPLES), NPZ_EFORMAT);
    c = b;
    memset(c.at + end + 8, 255, 12);
    CHECK_INT(load_bytes(&s, c, b.n, SAMPLES), NPZ_EZIP);
    for (i = 1; i <= 8; i += 7) { /* encrypted, streamed */
        c = b;
        c.at[6] = c.at[first + 8] = (unsigned char)i;
        CHECK_INT(load_bytes(&s, c, b.n, SAMPLES), NPZ_EZIP);
    }
}

/* Headers that agree with each other, and with nothing else. */
static void test_agreed_lies(void)
{
    const bytes b = saved_as(0);
    const size_t E = find(b, ENTRY, 0), D = find(b, END, 0), name = (size_t)get(b.at + E + 28, 2);
    static unsigned char longer[3 * 4096];
    unsigned char few[3] = {1, 2, 3};
    npz_array two[2], huge;
    uint32_t table[256];
    sample s;
    bytes c = b, tiny;
    size_t i, n;
    npzi_crc_table(table);
    put(c.at + E + 20, get(b.at + E + 20, 4) - 1, 4); /* stored: shorter than it is */
    put(c.at + 18, get(b.at + 18, 4) - 1, 4);
    CHECK_INT(load_bytes(&s, c, c.n, SAMPLES), NPZ_EFORMAT);
    for (i = 1; i < 4; i++) { /* extra fields before the data: beyond the directory, the file */
        c = b;
        put(c.at + 28, i == 1 ? E : i == 2 ? 0xffff : D, 2);
        CHECK_INT(load_bytes(&s, c, c.n, SAMPLES), NPZ_EFORMAT);
    }
    for (i = 0; i < 4; i++) { /* sizes for zip64 beside the name, one of them wrong */
        const bytes npy = make_npy(1, SHAPED("|u1", "(3,)"), few, 3);
        tiny = make_zip("a.npy", 0, npy, npy.n, npzi_crc(table, 0, npy.at, npy.n));
        n = npy.n;
        c = tiny;
        memmove(c.at + 55, tiny.at + 35, tiny.n - 35);
        c.n += 20;
        put(c.at + 28, 20, 2);
        put(c.at + 35, 0x00100001, 4);
        put(c.at + 39, n + (i == 1), 8);
        put(c.at + 47, n + (i == 2), 8);
        put(c.at + 18, UINT64_MAX, 8);
        put(c.at + c.n - 6, get(tiny.at + tiny.n - 6, 4) + 20, 4);
        if (i == 3) put(c.at + 35, 0x00100002, 4); /* another field: the sizes are missing */
        CHECK_INT(load_bytes(&s, c, c.n, 0), i == 0 ? NPZ_OK : NPZ_EFORMAT);
    }
    few[2] = 'P'; /* the last number is also the first byte of the directory */
    tiny = make_npy(1, SHAPED("|u1", "(3,)"), few, 3);
    n = tiny.n--;
    c = make_zip("a.npy", 0, tiny, n, npzi_crc(table, 0, tiny.at, n));
    CHECK_INT(load_bytes(&s, c, c.n, 0), NPZ_EFORMAT);
    c = b; /* bytes behind the last entry of the directory */
    memmove(c.at + D + 4, b.at + D, b.n - D);
    put(c.at + D + 4 + 12, D + 4 - E, 4);
    CHECK_INT(load_bytes(&s, c, c.n + 4, SAMPLES), NPZ_EFORMAT);
    /* names of 256 bytes, which are passed over, and of 4096, which are too many */
    for (i = 0; i < 2; i++) {
        const size_t more = i ? 4096 : 256 + 4 - name;
        memcpy(longer, b.at, 30);
        memset(longer + 30, 'n', name + more);
        memcpy(longer + 30 + name + more, b.at + 30 + name, E + 46 - 30 - name);
        memset(longer + E + 46 + more, 'n', name + more);
        memcpy(longer + E + 46 + name + 2 * more, b.at + E + 46 + name, b.n - E - 46 - name);
        n = b.n + 2 * more;
        put(longer + 26, name + more, 2);
        put(longer + E + more + 28, name + more, 2);
        put(longer + n - 10, D - E + more, 4);
        put(longer + n - 6, E + more, 4);
        write_bytes("b.npz", longer, n);
        poison(&s);
        CHECK_INT(npz_load("b.npz", s.array, 0, NULL), i ? NPZ_ESIZE : NPZ_EFORMAT);
        CHECK(is(&s, poison));
    }
    /* arrays of together 4 GB do not fit, although each of them does; a list that is not there */
    huge = npz_make("a", NPZ_U8, few, 1, 0xf0000000u, 0);
    two[0] = two[1] = huge;
    two[1].name = "b";
    if (sizeof(size_t) > 4) CHECK_INT(npz_save("b.npz", two, 2, NULL), NPZ_ESIZE);
    two[0].shape[0] = two[1].shape[0] = 0xffffffffu;
    if (sizeof(size_t) > 4) CHECK_INT(npz_save("b.npz", two, 2, NULL), NPZ_ESIZE);
    CHECK_INT(npz_load("a.npz", NULL, 1, NULL), NPZ_ENULL);
    CHECK_INT(npz_save("a.npz", NULL, 1, NULL), NPZ_ENULL);
    CHECK_INT(npz_load("a.npz", NULL, 0, NULL), NPZ_OK);
    huge = npz_make("any", NPZ_U8, few, 1, 3, 0); /* a type of one letter */
    CHECK_INT(load_case(make_npy(1, SHAPED("<", "(3,)"), few, 3), &huge, NULL), NPZ_ETYPE);
}

/* Inflates "stored" blocks of deflate: 1, length, its complement, bytes. */
static int inflate_stored(void *user, unsigned char *out, size_t n, const unsigned char *in,
                          size_t m)
{
    ++*(int *)user;
    if (m < 5 || in[0] != 1 || get(in + 1, 2) != n || m != n + 5) return 0;
    memcpy(out, in + 5, n);
    return 1;
}

static void test_compressed(void)
{
    const unsigned char data[8] = {0, 0, 0xc0, 0x3f, 0, 0, 0, 0xc0}; /* 1.5 and -2 */
    const bytes npy = make_npy(1, SHAPED("<f4", "(2,)"), data, 8);
    bytes packed = {npy.n + 5, {1}}, b;
    unsigned char work[400];
    float got[2] = {7, 7};
    npz_array a = npz_make("a", NPZ_F32, got, 1, 2, 0);
    npz_context context = {NULL, NULL, NULL, 0, 0, ""};
    uint32_t table[256];
    size_t count = 0;
    int calls = 0;
    npzi_crc_table(table);
    put(packed.at + 1, npy.n, 2);
    put(packed.at + 3, ~npy.n, 2);
    memcpy(packed.at + 5, npy.at, npy.n);
    b = make_zip("a.npy", 8, packed, npy.n, npzi_crc(table, 0, npy.at, npy.n));
    CHECK_INT(load_case(b, &a, NULL), NPZ_ECOMPRESSED);
    CHECK_INT(npz_list("case", NULL, &count, 0, &context), NPZ_ECOMPRESSED);
    CHECK_STR(context.name, "a");
    context.inflate = inflate_stored;
    context.user = &calls;
    CHECK_INT(load_case(b, &a, &context), NPZ_EWORK);
    CHECK_INT(context.needed, 2 * npy.n + 5);
    context.work = work;
    context.work_bytes = context.needed - 1;
    CHECK_INT(load_case(b, &a, &context), NPZ_EWORK);
    CHECK(got[0] == 7 && calls == 0);
    context.work_bytes++;
    CHECK_INT(npz_list("case", NULL, &count, 0, &context), NPZ_OK);
    CHECK_INT(load_case(b, &a, &context), NPZ_OK);
    CHECK(got[0] == 1.5f && got[1] == -2 && calls == 4);
    got[0] = 7;
    b.at[35 + 5 + npy.n - 1] ^= 1; /* the last number: the checksum finds it */
    CHECK_INT(load_case(b, &a, &context), NPZ_EFORMAT);
    b.at[35] = 0; /* what inflate refuses */
    CHECK_INT(load_case(b, &a, &context), NPZ_EFORMAT);
    CHECK(got[0] == 7);
}

/* Texts for three doubles, a part of them replaced, and what becomes of them. */
static void test_npy_texts(void)
{
    enum { TYPES = 4 }; /* what is listed as what it is */
#define F8 "{'descr': '<f8', 'fortran_order': "
    /* clang-format off */
    static const struct { int expected; const char *frame, *part[20]; } group[] = {
        {NPZ_OK, "%s", {SHAPED("<f8", "(3,)"), F8 "True, 'shape': (3,), }\n",
                        "{'descr':'<f8','fortran_order':False,'shape':(3,), }   \n"}},
        {NPZ_ESHAPE, "%s", {F8 "True, 'shape': (1, 3), }\n"}},
        {NPZ_ESHAPE, SHAPED("<f8", "%s"), {"(3, 1)", "(1,3)"}},
        {NPZ_ETYPE, SHAPED("<f8", "%s"), {"(1,1,1,1,1,1,1,1,3)"}},
        {NPZ_ETYPE, SHAPED("%s", "(3,)"), {"<u8", "<c8", "<U2", "|O", "<M8[ns]",
                                               "|V8", "<f2", "|b1", "|S3"}},
        {NPZ_ETYPE, "{'descr': %s" REST, {"[('a', '<f8')]"}},
        {NPZ_EFORMAT, "{'descr': %s" REST, {"<f8", "'<f8", "''", "'<f4'",
                                            "'<f44444444444444444444444444444444444444'"}},
        {NPZ_EFORMAT, "{'descr': '<f8'" REST "%s", {"\n", " "}},
        {NPZ_EFORMAT, F8 "%s", {"False, 'shape': (3,), }", "False, 'shape': (3,), } x\n",
                                "False, 'shape': (3,), \n", "False, 'shape': (3,\n",
                                "False, 'shape': (3\n", "0, 'shape': (3,), }\n", "False}\n",
                "Falsely, 'shape': (3,), }\n", "False, 'shape': (3,), 'more': 1, }\n"}},
        {NPZ_EFORMAT, "%s", {"{}\n", "\n", "", "exit()\n", "{'descr': '<f8', 'shape': (3,), }\n"}},
        {NPZ_EFORMAT, SHAPED("<f8", "%s"), {"(3)", "3", "[3]", "(,)", "(3,,)", "(03,)", "(-3,)",
                      "(+3,)", "( 3,)", "(3L,)", "(3.0,)", "(4,)", "(2,)", "(0,)", "()",
                      "(99999999999999999999,)", "(18446744073709551615,)",
                      "(2305843009213693955,)"}}, /* times 8: 3 times 8 again */
        {NPZ_EFORMAT, SHAPED("|O", "%s"), {"(99999999999999999999,)"}}, /* of no type either */
    };
    /* clang-format on */
    const unsigned char data[24] = {0, 0, 0, 0, 0, 0, 0xf0, 0x3f}; /* 1, 0, 0 */
    double got[3];
    npz_array a = npz_make("any", NPZ_F64, got, 1, 3, 0);
    npz_info info;
    char text[200];
    size_t g, i, count;
    int k;
    for (g = 0; g < COUNT(group); g++)
        for (i = 0; i < 20 && group[g].part[i] != NULL; i++)
            for (k = 0; k <= 4; k++) { /* versions */
                const int rc = k >= 1 && k <= 3 ? group[g].expected : NPZ_EFORMAT;
                snprintf(text, sizeof text, group[g].frame, group[g].part[i]);
                got[0] = 7;
                if (!CHECK_INT(load_case(make_npy(k, text, data, 24), &a, NULL), rc))
                    printf("  version %d %s", k, text);
                CHECK(got[0] == (rc == NPZ_OK ? 1 : 7));
                CHECK_INT(npz_list("case", &info, &count, 1, NULL),
                          rc == NPZ_EFORMAT ? rc : NPZ_OK);
                if (g == TYPES && rc == NPZ_ETYPE) CHECK_STR(info.descr, group[g].part[i]);
            }
}

/* Columns first; a text as long as the buffer, and longer. */
static void test_npy_frames(void)
{
    const char *good = "{'descr': '<f4', 'fortran_order': True, 'shape': (1, 1), }";
    float got = 7;
    npz_array a = npz_make("any", NPZ_F32, &got, 2, 1, 1);
    char padded[6001];
    size_t n;
    for (n = 4000; n <= 6000; n += 2000) {
        bytes b;
        snprintf(padded, sizeof padded, "%-*s\n", (int)n - 1, good);
        b = make_npy(2, padded, "\0\0\0", 4);
        CHECK_INT(load_case(b, &a, NULL), n == 4000 ? NPZ_EORDER : NPZ_ETYPE);
        memset(b.at + 8, 255, 4);
        CHECK_INT(load_case(b, &a, NULL), NPZ_EFORMAT);
        CHECK(got == 7);
    }
}

/* numpy.savez("fix.npz", W = [1, -2, 1e-40] as float32) of NumPy 1.24 and Python 3.11 */
static const bytes numpy_file = {
    268,
    "PK\3\4\24\0\0\0\0\0\0\0!\0~\320\367;\214\0\0\0\214\0\0\0\5\0\24\0W.npy\1\0\20\0\214\0\0\0"
    "\0\0\0\0\214\0\0\0\0\0\0\0\223NUMPY\1\0v\0{'descr': '<f4', 'fortran_order': False, 'shape'"
    ": (3,), }                                                            \12\0\0\200?\0\0\0"
    "\300\302\26\1\0PK\1\2\24\3\24\0\0\0\0\0\0\0!\0~\320\367;\214\0\0\0\214\0\0\0\5\0\0\0\0\0\0"
    "\0\0\0\0\0\200\1\0\0\0\0W.npyPK\5\6\0\0\0\0\1\0\1\0\063\0\0\0\303\0\0\0\0\0"};

/* The file as it is, and as other versions of Python write the sizes, behind the name only. */
static void test_numpy(void)
{
    /* a place, a byte that is put there, and whether either file is good then */
    static const unsigned char change[][4] = {
        {0, 'P', 1, 1}, {39, 0x8d, 0, 0}, {37, 8, 1, 0}, {194, 1, 0, 0}};
    double got[3];
    npz_array a = npz_make("W", NPZ_F64, got, 1, 3, 0);
    npz_info info;
    size_t i, count = 0;
    for (i = 0; i < 2 * COUNT(change); i++) {
        const int good = change[i / 2][2 + i % 2], rc = good ? NPZ_OK : NPZ_EFORMAT;
        bytes b = numpy_file;
        got[0] = 7;
        b.at[change[i / 2][0]] = change[i / 2][1];
        if (i % 2 == 1) memset(b.at + 18, 255, 8);
        CHECK_INT(load_case(b, &a, NULL), rc);
        CHECK_INT(npz_load("case", NULL, 0, NULL), rc); /* what nobody wants is checked too */
        CHECK_INT(npz_list("case", &info, &count, 1, NULL), rc);
        CHECK(got[0] == (good ? 1 : 7) && (!good || (got[1] == -2 && got[2] == (double)1e-40f)));
        CHECK(count == 1 && info.type == NPZ_F32 && info.dims == 1 && info.shape[0] == 3);
        CHECK_STR(info.name, "W");
    }
}

static void mutate(bytes *b, nrm_rng *rng)
{
    const uint64_t odd = ((uint64_t)1 << nrm_rng_below(rng, 64)) - nrm_rng_below(rng, 2);
    const size_t i = nrm_rng_below(rng, (uint32_t)b->n), j = nrm_rng_below(rng, (uint32_t)b->n);
    const size_t width = (size_t)1 << nrm_rng_below(rng, 4), rest = b->n - (i > j ? i : j);
    const uint32_t kind = nrm_rng_below(rng, 6);
    const size_t n = nrm_rng_below(rng, 65);
    if (kind == 0) b->at[i] ^= (unsigned char)(1u << nrm_rng_below(rng, 8));
    if (kind < 4 && b->n - i < width) return;
    if (kind == 1) put(b->at + i, odd, width);
    if (kind == 2 || kind == 3) put(b->at + i, get(b->at + i, width) + 2 * kind - 5, width);
    if (kind == 4) memmove(b->at + i, b->at + j, n < rest ? n : rest);
    if (kind == 5) memmove(b->at + i, b->at + j, rest); /* take out, or double */
    if (kind == 5 && b->n > n + 1) b->n -= n;
}

static void test_fuzz(void)
{
#ifdef PLAIN_DISK
    enum { TURNS = 300 };
#else
    enum { TURNS = 3000 };
#endif
    nrm_rng rng;
    int k, turn, accepted = 0;
    nrm_rng_seed(&rng, 2026, 19);
    for (k = 0; k < 3; k++) {
        const bytes b = k < 2 ? saved_as(k) : numpy_file;
        for (turn = 0; turn < TURNS; turn++) {
            bytes c = b;
            sample s;
            size_t count;
            int times = 1 + (int)nrm_rng_below(&rng, 4), rc;
            while (times-- > 0) mutate(&c, &rng);
            rc = load_bytes(&s, c, c.n, k < 2 ? arrays_of[k] : 1);
            accepted += rc == NPZ_OK;
            CHECK(rc == NPZ_OK || (rc >= NPZ_EZIP && rc <= NPZ_ENAME && rc != NPZ_EFILE));
            (void)npz_list("case", NULL, &count, 0, NULL);
        }
    }
    CHECK(accepted > 0 && accepted < 4 * TURNS / 3);
}
#ifndef PLAIN_DISK
static int there(const char *path)
{
    struct stat s;
    return lstat(path, &s) == 0;
}

/* The k-th call fails, for every k. Saving: an error, the old file, no rest. Loading: an error, and
   nothing is changed in the first of the two passes, which is as long as a load that is refused. */
static void test_failing_disk(void)
{
    static const char old[] = "what was there";
    sample s;
    long k, first, refused;
    int f, rc, hit;
    for (f = 0; f < 2; f++) {
        const bytes good = saved_as(f);
        for (k = hit = 1, refused = 0; hit; k++) {
            fill(&s);
            write_bytes(format[f], old, sizeof old);
            new_disk(k);
            rc = npz_save(format[f], s.array, arrays_of[f], NULL);
            hit = disk.hit;
            refused += rc != NPZ_OK;
            CHECK(rc == NPZ_OK || (hit && rc == NPZ_EFILE));
            CHECK(disk.streams == 0 && !there(disk.created));
            CHECK(equal(read_bytes(format[f]), rc == NPZ_OK ? (const void *)good.at : old,
                        rc == NPZ_OK ? good.n : sizeof old));
        }
        CHECK(refused >= 5 && k - refused <= 3); /* only the first name may fail to open */
        new_disk(0);
        poison(&s);
        s.array[4].name = "x";
        CHECK_INT(npz_load(format[f], &s.array[4], 1, NULL), f == 0 ? NPZ_ENAME : NPZ_ETYPE);
        first = disk.calls - 1; /* without fclose */
        for (k = hit = 1; hit; k++) {
            poison(&s);
            new_disk(k);
            rc = npz_load(format[f], s.array, arrays_of[f], NULL);
            hit = disk.hit;
            CHECK(rc == NPZ_EFILE || (rc == NPZ_OK && (!hit || k == disk.calls)));
            if (k <= first) CHECK(rc == NPZ_EFILE && is(&s, poison));
            CHECK_INT(disk.streams, 0);
        }
        CHECK(k > first);
    }
    new_disk(0);
}

/* The same when loading what others write: sizes behind the name, and compressed. */
static void test_failing_disk_of_others(void)
{
    const bytes npy = make_npy(1, SHAPED("<f4", "(3,)"), "\0\0\200?\0\0\0\300\302\26\1", 12);
    bytes packed = {npy.n + 5, {1}}, b;
    unsigned char work[400];
    uint32_t table[256];
    int calls = 0, file, hit;
    npz_context context = {inflate_stored, NULL, NULL, sizeof work, 0, ""};
    float got[3];
    npz_array a = npz_make("W", NPZ_F32, got, 1, 3, 0);
    long k;
    npzi_crc_table(table);
    context.user = &calls;
    context.work = work;
    put(packed.at + 1, npy.n, 2);
    put(packed.at + 3, ~npy.n, 2);
    memcpy(packed.at + 5, npy.at, npy.n);
    for (file = 0; file < 2; file++) {
        b = file ? make_zip("W.npy", 8, packed, npy.n, npzi_crc(table, 0, npy.at, npy.n))
                 : numpy_file;
        for (k = hit = 1; hit; k++) {
            int rc;
            place(b.at, b.n);
            got[0] = 7;
            new_disk(k);
            rc = npz_load("case", &a, 1, &context);
            hit = disk.hit;
            CHECK(rc == NPZ_EFILE || (rc == NPZ_OK && got[0] == 1 && (!hit || k == disk.calls)));
            if (k < 10) CHECK(rc == NPZ_EFILE && got[0] == 7);
            CHECK_INT(disk.streams, 0);
        }
        CHECK(k > 20);
    }
    new_disk(0);
}

/* A child that saves under a limit on the size of a file, as on a full disk: an error, the old
   file, and no rest. */
static void test_full_disk(void)
{
    static const char old[] = "what was there";
    sample s;
    int f;
    size_t most;
    for (f = 0; f < 2; f++) {
        const bytes good = saved_as(f);
        for (most = 0; most <= good.n; most += good.n / 7) {
            int status = -1;
            pid_t child;
            fill(&s);
            write_bytes(format[f], old, sizeof old);
            child = fork();
            if (child == 0) {
                const struct rlimit limit = {most, most};
                struct stat there;
                signal(SIGXFSZ, SIG_IGN);
                (void)setrlimit(RLIMIT_FSIZE, &limit);
                new_disk(0);
                _exit(npz_save(format[f], s.array, arrays_of[f], NULL) == NPZ_EFILE &&
                              stat(disk.created, &there) != 0
                          ? 0
                          : 1);
            }
            CHECK(child > 0 && waitpid(child, &status, 0) == child);
            CHECK_INT(status == 0, most < good.n);
            CHECK(equal(read_bytes(format[f]), most < good.n ? (const void *)old : good.at,
                        most < good.n ? sizeof old : good.n));
        }
    }
}

/* A child saves again and again, two contents in turn, and is killed at any moment: the file is one
   of the two, whole. Its temporary file may stay. */
static void test_killed(void)
{
    enum { NUMBERS = 20000, KILLS = 24 };
    static float number[2][NUMBERS], got[NUMBERS];
    int k, turn, seen[2] = {0, 0};
    size_t i;
    for (i = 0; i < NUMBERS; i++) number[0][i] = 1, number[1][i] = 2;
    for (k = 0; k < KILLS; k++) {
        npz_array a = npz_make("a", NPZ_F32, number[0], 1, NUMBERS, 0);
        const struct timespec moment = {0, 1000000 + k * 700000};
        pid_t child;
        CHECK_INT(npz_save("b.npz", &a, 1, NULL), NPZ_OK);
        child = fork();
        for (turn = 1;; turn = 1 - turn) {
            if (child != 0) break;
            a.data = number[turn];
            if (npz_save("b.npz", &a, 1, NULL) != NPZ_OK) _exit(1);
        }
        nanosleep(&moment, NULL);
        CHECK(child > 0 && kill(child, SIGKILL) == 0 && waitpid(child, &turn, 0) == child);
        CHECK(WIFSIGNALED(turn));
        a.data = got;
        CHECK_INT(npz_load("b.npz", &a, 1, NULL), NPZ_OK);
        for (i = 1; i < NUMBERS && got[i] == got[0]; i++) continue;
        CHECK(i == NUMBERS && (got[0] == 1 || got[0] == 2));
        seen[got[0] == 2]++;
    }
    CHECK(seen[0] + seen[1] == KILLS);
    CHECK_INT(system("rm -f b.npz.tmp*"), 0);
}

/* Targets that are no regular files, symbolic links, temporary names that are taken. */
static void test_places(void)
{
    static const char *const other[] = {"folder", "fifo", "to_fifo", "/dev/null"};
    static char path[5000];
    struct stat after;
    sample s;
    size_t i;
    fill(&s);
    CHECK_INT(npz_save("no such folder/a.npz", s.array, 1, NULL), NPZ_EFILE);
    CHECK_INT(npz_load("no such folder/a.npz", s.array, 1, NULL), NPZ_EFILE);
    CHECK_INT(npz_save("", s.array, 1, NULL), NPZ_EFILE);
    CHECK(mkdir("folder", 0700) == 0 && mkfifo("fifo", 0600) == 0 &&
          symlink("fifo", "to_fifo") == 0);
    for (i = 0; i < COUNT(other); i++) { /* and does not wait for anybody at the FIFO */
        CHECK_INT(npz_save(other[i], s.array, 1, NULL), NPZ_EPLACE);
        CHECK_INT(npz_load(other[i], s.array, 1, NULL), NPZ_EPLACE);
    }
    CHECK(stat("to_fifo", &after) == 0 && S_ISFIFO(after.st_mode));
    CHECK(lstat("to_fifo", &after) == 0 && S_ISLNK(after.st_mode));
    write_bytes("b.npz", "old", 3); /* a link: replaced, and its target left alone */
    CHECK_INT(symlink("b.npz", "link"), 0);
    CHECK_INT(npz_save("link", s.array, SAMPLES, NULL), NPZ_OK);
    CHECK(lstat("link", &after) == 0 && S_ISREG(after.st_mode));
    CHECK(equal(read_bytes("b.npz"), "old", 3));
    remove("b.npz");
    CHECK_INT(symlink("link", "b.npz"), 0); /* followed when reading */
    poison(&s);
    CHECK_INT(npz_load("b.npz", s.array, SAMPLES, NULL), NPZ_OK);
    CHECK(is(&s, fill));
    memset(path, 'x', NPZ_PATH);
    new_disk(0);
    CHECK_INT(npz_save(path, s.array, 1, NULL), NPZ_EFILE);
    CHECK_INT(disk.calls, 0); /* too long: not even tried */
    disk.taken = 1;           /* a link under the first temporary name is not followed */
    remove("a.npz");
    CHECK_INT(npz_save("a.npz", s.array, SAMPLES, NULL), NPZ_OK);
    CHECK(!there("victim") && !there(disk.created));
    CHECK_INT(system("rm a.npz.tmp*"), 0); /* it is there, and only it */
    new_disk(0);
}
#endif

int main(void)
{
    /* clang-format off */
#define TEST(name) {#name, test_##name}
    static const struct { const char *name; void (*run)(void); } test[] = {
        TEST(checksum), TEST(round_trips), TEST(dims_and_chunks), TEST(many_names), TEST(arguments),
        TEST(mismatches), TEST(integers), TEST(floats), TEST(damage), TEST(lies),
        TEST(rounding), TEST(padding),
        TEST(other_archives), TEST(agreed_lies), TEST(compressed), TEST(npy_texts),
        TEST(npy_frames), TEST(numpy),
        TEST(fuzz),
#ifndef PLAIN_DISK
        TEST(failing_disk), TEST(failing_disk_of_others), TEST(full_disk), TEST(killed),
        TEST(places)
#endif
    };
    static const char *const made[] = {"a.npz", "a.npy", "b.npz", "case", "fifo", "to_fifo", "link",
                                       "folder"};
    /* clang-format on */
    size_t i;
    int rc;
#ifndef PLAIN_DISK
    const char *base = getenv("TMPDIR");
    char folder[500];
    if (base == NULL || *base == '\0') base = "/tmp";
    snprintf(folder, sizeof folder, "%s/normlayers-npz-XXXXXX", base);
    if (mkdtemp(folder) == NULL || chdir(folder) != 0) return 2;
#endif
    write_bytes("case", "", 0); /* so that stat finds a regular file */
    for (i = 0; i < COUNT(test); i++) test_run(test[i].name, test[i].run);
    rc = test_report("npz");
    for (i = 0; i < COUNT(made); i++) remove(made[i]); /* a rest would keep the folder */
#ifndef PLAIN_DISK
    free(case_at);
    if (chdir("/") != 0 || rmdir(folder) != 0) {
        printf("npz: something is left in %s\n", folder);
        return 1;
    }
#endif
    return rc;
}
