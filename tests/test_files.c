/* test_files.c - files of named arrays: what is written is read back, bit for bit; what is damaged
   or lies is refused; what is refused changes nothing; what fails half way leaves the old file.

   The functions of stdio that the header calls are replaced by ones that can be told to fail at
   the k-th call, so every way in which a disk can fail is tried. Files that no writer of ours would
   make are put together here, by code that shares nothing with the header's. */
#define _XOPEN_SOURCE 700 /* mkdtemp, fmemopen */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- a disk that fails ----------------------------------------------------------------------- */

static struct {
    long calls, fail_at; /* the number of calls so far; the one that fails, 0: none           */
    int hit;             /* it has                                                            */
    int open;            /* streams                                                           */
    int broken;          /* the last stream that was opened has seen an error                 */
    int full;            /* what is written goes to a full device                             */
    int taken;           /* every temporary name is taken                                     */
    char created[5000];  /* the file that was opened last for writing                         */
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
    if (mode[0] == 'w') snprintf(disk.created, sizeof disk.created, "%s", path);
    if (disk.taken && mode[0] == 'r') path = "/dev/null";
    if (strcmp(path, "case") == 0 && memory.n > 0)
        f = fmemopen(memory.at, memory.n, "rb");
    else
        f = disk.full && mode[0] == 'w' ? fopen("/dev/full", "wb") : fopen(path, mode);
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
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"
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

static const size_t each = sizeof(nrm_real);

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

static void write_bytes(const char *path, const unsigned char *at, size_t n)
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

static int there(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0;
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

/* The checksum from its definition, a bit at a time. */
static uint32_t crc_of(const unsigned char *at, size_t n)
{
    uint32_t c = 0xffffffffu;
    size_t i;
    int bit;
    for (i = 0; i < n; i++)
        for (c ^= at[i], bit = 0; bit < 8; bit++) c = c & 1 ? c >> 1 ^ 0xedb88320u : c >> 1;
    return ~c;
}

/* ---- files made by hand ---------------------------------------------------------------------- */

typedef struct raw { /* an array of our own format, as it stands there */
    const char *name;
    unsigned type, each;
    size_t dims;
    uint64_t shape[8];
    const unsigned char *data;
    size_t n;
} raw;

/* The two checksums: of the data where that is inside of the file, and of the directory. */
static void seal(bytes b)
{
    const uint64_t count = b.n >= 64 ? get(b.at + 12, 4) : 0;
    uint64_t i;
    if (b.n < 64 || count > (b.n - 64) / 192) return;
    for (i = 0; i < count; i++) {
        unsigned char *entry = b.at + 32 + 192 * i;
        const uint64_t at = get(entry + 144, 8), n = get(entry + 152, 8);
        if (at <= b.n && n <= b.n - at) put(entry + 76, crc_of(b.at + at, (size_t)n), 4);
    }
    put(b.at + 32 + 192 * count, crc_of(b.at, (size_t)(32 + 192 * count)), 4);
}

static bytes make_own(const raw *array, size_t count)
{
    size_t end = 64 + 192 * count, i, d;
    bytes b;
    for (i = 0; i < count; i++) end = (end + 63) / 64 * 64 + array[i].n;
    b = some(end);
    memcpy(b.at, "\x89NRM\r\n\x1a\n", 8);
    put(b.at + 8, 1, 4);
    put(b.at + 12, count, 4);
    put(b.at + 16, end, 8);
    end = 64 + 192 * count;
    for (i = 0; i < count; i++) {
        unsigned char *entry = b.at + 32 + 192 * i;
        end = (end + 63) / 64 * 64;
        memcpy(entry, array[i].name, strlen(array[i].name));
        put(entry + 64, array[i].type, 4);
        put(entry + 68, array[i].each, 4);
        put(entry + 72, array[i].dims, 4);
        for (d = 0; d < array[i].dims; d++) put(entry + 80 + 8 * d, array[i].shape[d], 8);
        put(entry + 144, end, 8);
        put(entry + 152, array[i].n, 8);
        memcpy(b.at + end, array[i].data, array[i].n);
        end += array[i].n;
    }
    seal(b);
    return b;
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

/* ---- arrays ---------------------------------------------------------------------------------- */

enum { SAMPLES = 4 };

typedef struct sample { /* four arrays, of which one has no elements and one no dimensions */
    nrm_real W[6], s, none[1];
    uint64_t n[3];
    nrm_array array[SAMPLES];
} sample;

static nrm_array array_of(const char *name, int type, void *data, size_t dims, size_t a, size_t b)
{
    nrm_array made;
    memset(&made, 0, sizeof made);
    made.name = name;
    made.type = type;
    made.data = data;
    made.dims = dims;
    made.shape[0] = a;
    made.shape[1] = b;
    return made;
}

static nrm_real with_bits(uint64_t as_double, uint32_t as_float)
{
    const void *bits = each == 4 ? (const void *)&as_float : (const void *)&as_double;
    nrm_real r;
    memcpy(&r, bits, sizeof r);
    return r;
}

static void bind(sample *s)
{
    s->array[0] = array_of("layer0.W", NRM_REALS, s->W, 2, 2, 3);
    s->array[1] = array_of("n", NRM_U64, s->n, 1, 3, 0);
    s->array[2] = array_of("none", NRM_REALS, s->none, 2, 5, 0);
    s->array[3] = array_of("s", NRM_REALS, &s->s, 0, 0, 0);
}

/* Numbers that are easily damaged: a signalling NaN, -0, the smallest and the largest. */
static void fill(sample *s)
{
    memset(s, 0, sizeof *s);
    s->W[0] = (nrm_real)1.1;
    s->W[1] = with_bits((uint64_t)0x7ff0000000000001u, 0x7f800001u);
    s->W[2] = (nrm_real)-0.0;
    s->W[3] = with_bits(1, 1);
    s->W[4] = with_bits((uint64_t)0x7fefffffffffffffu, 0x7f7fffffu);
    s->W[5] = -(nrm_real)HUGE_VAL;
    s->s = (nrm_real)-2.5;
    s->n[0] = UINT64_MAX;
    s->n[1] = 0;
    s->n[2] = (uint64_t)0x0123456789abcdefu;
    bind(s);
}

static void poison(sample *s)
{
    memset(s, 0x5a, sizeof *s);
    bind(s);
}

static int same_sample(const sample *a, const sample *b)
{
    return memcmp(a->W, b->W, sizeof a->W) == 0 && memcmp(&a->s, &b->s, sizeof a->s) == 0 &&
           memcmp(a->none, b->none, sizeof a->none) == 0 && memcmp(a->n, b->n, sizeof a->n) == 0;
}

/* What a load gave beside what it should: the numbers, or those from before. `none` stays. */
static int loaded(const sample *s)
{
    sample full, old;
    fill(&full);
    poison(&old);
    full.none[0] = old.none[0];
    return same_sample(s, &full);
}

static int untouched(const sample *s)
{
    sample old;
    poison(&old);
    return same_sample(s, &old);
}

/* Loads these bytes as a file into a poisoned sample; checks that a refusal changed nothing. */
static int load_bytes(sample *s, const unsigned char *at, size_t n, size_t arrays)
{
    int rc;
    poison(s);
    place(at, n);
    rc = nrm_load("case", s->array, arrays);
    if (rc != NRM_OK) CHECK(untouched(s));
    CHECK_INT(disk.open, 0);
    return rc;
}

/* The sample as a file of a format. */
static bytes saved_as(const char *path, size_t arrays)
{
    sample s;
    fill(&s);
    CHECK_INT(nrm_save(path, s.array, arrays), NRM_OK);
    return read_bytes(path);
}

static const char *const format[] = {"a.nrm", "a.npz", "a.npy"};
static size_t arrays_of(int k)
{
    return k == 2 ? 1 : SAMPLES; /* a .npy file holds one */
}

/* ---- it is read back ------------------------------------------------------------------------- */

static void test_round_trips(void)
{
    sample s;
    int k;
    for (k = 0; k < 3; k++) {
        bytes first = saved_as(format[k], arrays_of(k)), second = saved_as(format[k], arrays_of(k));
        CHECK(first.n > 0 && first.n == second.n && memcmp(first.at, second.at, first.n) == 0);
        poison(&s);
        CHECK_INT(nrm_load(format[k], s.array, arrays_of(k)), NRM_OK);
        if (k < 2) CHECK(loaded(&s));
        free(first.at);
        free(second.at);
    }
    poison(&s);
    CHECK_INT(nrm_load("a.npy", s.array, 1), NRM_OK);
    {
        sample full;
        fill(&full);
        CHECK(memcmp(s.W, full.W, sizeof s.W) == 0);
    }
    CHECK_INT(disk.open, 0);
}

/* Order and selection are the caller's. */
static void test_some_of_it(void)
{
    sample s, full;
    nrm_array pick[2];
    int k;
    fill(&full);
    for (k = 0; k < 2; k++) {
        free(saved_as(format[k], SAMPLES).at);
        poison(&s);
        pick[0] = s.array[3];
        pick[1] = s.array[0];
        CHECK_INT(nrm_load(format[k], pick, 2), NRM_OK);
        CHECK(memcmp(s.W, full.W, sizeof s.W) == 0 && s.s == full.s);
        full.n[0] = s.n[0]; /* not asked for, not read */
        CHECK(s.n[0] == (uint64_t)0x5a5a5a5a5a5a5a5au);
        CHECK_INT(nrm_load(format[k], NULL, 0), NRM_OK); /* only checks the file */
    }
}

static void test_all_dims(void)
{
    nrm_real a[48], b[48];
    const size_t shape[8] = {2, 1, 3, 1, 2, 1, 4, 1};
    nrm_array array = array_of("a", NRM_REALS, a, 0, 0, 0);
    size_t i, dims;
    int k;
    for (i = 0; i < 48; i++) a[i] = (nrm_real)i - (nrm_real)7.25;
    for (dims = 0; dims <= NRM_MOST_DIMS; dims++)
        for (k = 0; k < 3; k++) {
            size_t n = 1;
            for (i = 0; i < dims; i++) n *= array.shape[i] = shape[i];
            array.dims = dims;
            array.data = a;
            CHECK_INT(nrm_save(format[k], &array, 1), NRM_OK);
            memset(b, 0, sizeof b);
            array.data = b;
            CHECK_INT(nrm_load(format[k], &array, 1), NRM_OK);
            CHECK(memcmp(a, b, n * sizeof *a) == 0);
        }
}

/* More than passes through the buffer at once, and a number of arrays. */
static void test_large(void)
{
    enum { N = 5000, ARRAYS = 300 };
    nrm_real *a = (nrm_real *)malloc(N * sizeof *a), *b = (nrm_real *)malloc(N * sizeof *b);
    nrm_array *many = (nrm_array *)malloc(ARRAYS * sizeof *many), array;
    char(*name)[8] = (char(*)[8])malloc(ARRAYS * sizeof *name);
    size_t i;
    int k;
    if (a == NULL || b == NULL || many == NULL || name == NULL) exit(2);
    for (i = 0; i < N; i++) a[i] = (nrm_real)sqrt((double)i);
    for (k = 0; k < 3; k++) {
        array = array_of("a", NRM_REALS, a, 1, N, 0);
        CHECK_INT(nrm_save(format[k], &array, 1), NRM_OK);
        memset(b, 0, N * sizeof *b);
        array.data = b;
        CHECK_INT(nrm_load(format[k], &array, 1), NRM_OK);
        CHECK(memcmp(a, b, N * sizeof *a) == 0);
    }
    for (k = 0; k < 2; k++) {
        for (i = 0; i < ARRAYS; i++) {
            snprintf(name[i], sizeof name[i], "a%u", (unsigned)i);
            many[i] = array_of(name[i], NRM_REALS, a + i, 1, 1, 0);
        }
        CHECK_INT(nrm_save(format[k], many, ARRAYS), NRM_OK);
        memset(b, 0, N * sizeof *b);
        for (i = 0; i < ARRAYS; i++) many[i].data = b + i;
        CHECK_INT(nrm_load(format[k], many, ARRAYS), NRM_OK);
        CHECK(memcmp(a, b, ARRAYS * sizeof *a) == 0);
        array = many[0]; /* another order */
        memmove(many, many + 1, (ARRAYS - 1) * sizeof *many);
        many[ARRAYS - 1] = array;
        memset(b, 0, N * sizeof *b);
        CHECK_INT(nrm_load(format[k], many, ARRAYS), NRM_OK);
        CHECK(memcmp(a, b, ARRAYS * sizeof *a) == 0);
    }
    free(a);
    free(b);
    free(many);
    free(name);
}

/* Nothing at all is a file too, but not a .npy. */
static void test_no_arrays(void)
{
    nrm_array_info info;
    size_t count = 9;
    int k;
    for (k = 0; k < 2; k++) {
        CHECK_INT(nrm_save(format[k], NULL, 0), NRM_OK);
        CHECK_INT(nrm_load(format[k], NULL, 0), NRM_OK);
        CHECK_INT(nrm_list(format[k], &info, &count, 1), NRM_OK);
        CHECK_INT(count, 0);
    }
    CHECK_INT(nrm_save("none.npy", NULL, 0), NRM_ESIZE);
    CHECK(!there("none.npy"));
}

/* Our own format is what docs/files.md says, byte by byte: this file is made by hand. */
static void test_layout(void)
{
    unsigned char data[6 * 8], n[24], s[8];
    raw array[SAMPLES] = {{"layer0.W", 0, 0, 2, {2, 3}, NULL, 0},
                          {"n", 1, 8, 1, {3}, NULL, 24},
                          {"none", 0, 0, 2, {5, 0}, NULL, 0},
                          {"s", 0, 0, 0, {0}, NULL, 0}};
    bytes own, made;
    sample full;
    size_t i;
    uint64_t bits = 0;
    fill(&full);
    for (i = 0; i < 6; i++) {
        memcpy(&bits, &full.W[i], each);
        if (each == 4) {
            uint32_t half;
            memcpy(&half, &full.W[i], 4);
            bits = half;
        }
        put(data + i * each, bits, each);
    }
    for (i = 0; i < 3; i++) put(n + 8 * i, full.n[i], 8);
    put(s, each == 4 ? 0xc0200000u : (uint64_t)0xc004000000000000u, each); /* -2.5 */
    array[0].each = array[2].each = array[3].each = (unsigned)each;
    array[0].data = data;
    array[0].n = 6 * each;
    array[1].data = n;
    array[2].data = s;
    array[3].data = s;
    array[3].n = each;
    made = make_own(array, SAMPLES);
    own = saved_as("a.nrm", SAMPLES);
    CHECK_INT(own.n, made.n);
    CHECK(own.n == made.n && memcmp(own.at, made.at, own.n) == 0);
    free(own.at);
    free(made.at);
}

static void test_list(void)
{
    nrm_array_info info[SAMPLES + 1];
    size_t count, i;
    int k;
    for (k = 0; k < 2; k++) {
        sample s;
        fill(&s);
        free(saved_as(format[k], SAMPLES).at);
        memset(info, 0x5a, sizeof info);
        count = 99;
        CHECK_INT(nrm_list(format[k], info, &count, SAMPLES + 1), NRM_OK);
        CHECK_INT(count, SAMPLES);
        for (i = 0; i < SAMPLES; i++) {
            CHECK_STR(info[i].name, s.array[i].name);
            CHECK_INT(info[i].type, s.array[i].type);
            CHECK_INT(info[i].bytes_each, s.array[i].type == NRM_U64 ? 8 : each);
            CHECK_INT(info[i].dims, s.array[i].dims);
            CHECK(memcmp(info[i].shape, s.array[i].shape, sizeof info[i].shape) == 0);
        }
        CHECK(info[SAMPLES].dims != 0); /* not written */
        count = 99;
        CHECK_INT(nrm_list(format[k], NULL, &count, 0), NRM_OK);
        CHECK_INT(count, SAMPLES);
        memset(info, 0x5a, sizeof info);
        CHECK_INT(nrm_list(format[k], info, &count, 1), NRM_OK);
        CHECK_INT(count, SAMPLES);
        CHECK_STR(info[0].name, "layer0.W");
        CHECK(info[1].name[0] == 0x5a);
    }
    free(saved_as("a.npy", 1).at);
    CHECK_INT(nrm_list("a.npy", info, &count, 1), NRM_OK);
    CHECK_INT(count, 1);
    CHECK_STR(info[0].name, "");
    CHECK_INT(info[0].dims, 2);
    CHECK_INT(nrm_list(NULL, info, &count, 1), NRM_ENULL);
    CHECK_INT(nrm_list("a.npy", NULL, &count, 1), NRM_ENULL);
    CHECK_INT(nrm_list("a.npy", info, NULL, 1), NRM_ENULL);
    CHECK_INT(nrm_list("a.npy", info, &count, SIZE_MAX), NRM_EOVERFLOW);
    CHECK_INT(nrm_list("a.npy", info, &info[0].shape[1], 1), NRM_EALIAS);
    CHECK_INT(nrm_list("not there", info, &count, 1), NRM_EFILE);
    CHECK_INT(disk.open, 0);
}

/* ---- calls that are refused ------------------------------------------------------------------ */

/* Both functions say this of the arrays, and no file is made. */
static void check_both(const nrm_array *array, size_t count, int save, int load)
{
    remove("b.nrm");
    CHECK_INT(nrm_save("b.nrm", array, count), save);
    CHECK(there("b.nrm") == (save == NRM_OK));
    CHECK_INT(nrm_load("a.nrm", array, count), load);
}

static void test_arguments(void)
{
    static const char *const bad[] = {
        "", " ", "a b", "a/b", "a\\b", "\xc3\xa9", "a:b", "a\n",
        "0123456789012345678901234567890123456789012345678901234567890123"};
    char longest[NRM_NAME_BYTES];
    sample s;
    nrm_array a;
    size_t i;
    free(saved_as("a.nrm", SAMPLES).at);
    poison(&s);
    CHECK_INT(nrm_save(NULL, s.array, SAMPLES), NRM_ENULL);
    CHECK_INT(nrm_load(NULL, s.array, SAMPLES), NRM_ENULL);
    check_both(NULL, 1, NRM_ENULL, NRM_ENULL);
    check_both(s.array, 65536, NRM_ESIZE, NRM_ESIZE);
    for (i = 0; i < COUNT(bad); i++) {
        s.array[1].name = bad[i];
        check_both(s.array, SAMPLES, NRM_ENAME, NRM_ENAME);
    }
    s.array[1].name = NULL;
    check_both(s.array, SAMPLES, NRM_ENULL, NRM_ENULL);
    s.array[1].name = "s"; /* twice */
    check_both(s.array, SAMPLES, NRM_ENAME, NRM_ENAME);
    memset(longest, 'x', sizeof longest);
    longest[NRM_NAME_BYTES - 1] = '\0';
    s.array[1].name = longest;
    check_both(s.array, SAMPLES, NRM_OK, NRM_ENAME); /* good, but not in the file */
    CHECK_INT(nrm_save("b.npz", s.array, SAMPLES), NRM_OK);
    CHECK_INT(nrm_load("b.npz", s.array, SAMPLES), NRM_OK);
    CHECK_INT(nrm_load("b.nrm", s.array, SAMPLES), NRM_OK);
    remove("b.npz");

    bind(&s);
    s.array[0].type = 2;
    check_both(s.array, SAMPLES, NRM_EKIND, NRM_EKIND);
    s.array[0].type = -1;
    check_both(s.array, SAMPLES, NRM_EKIND, NRM_EKIND);
    bind(&s);
    s.array[0].dims = NRM_MOST_DIMS + 1;
    check_both(s.array, SAMPLES, NRM_ESIZE, NRM_ESIZE);
    bind(&s);
    s.array[0].shape[0] = SIZE_MAX;
    check_both(s.array, SAMPLES, NRM_EOVERFLOW, NRM_EOVERFLOW);
    s.array[0].shape[0] = s.array[0].shape[1] = (size_t)1 << (4 * sizeof(size_t)); /* wraps to 0 */
    check_both(s.array, SAMPLES, NRM_EOVERFLOW, NRM_EOVERFLOW);
    bind(&s);
    s.array[0].data = NULL;
    check_both(s.array, SAMPLES, NRM_ENULL, NRM_ENULL);
    bind(&s);
    s.array[2].data = NULL; /* it has no elements */
    check_both(s.array, SAMPLES, NRM_OK, NRM_OK);

    poison(&s);
    s.array[3].data = &s.W[5];
    check_both(s.array, SAMPLES, NRM_OK, NRM_EALIAS);
    s.array[3].data = &s.array[1];
    check_both(s.array, SAMPLES, NRM_OK, NRM_EALIAS);
    CHECK(untouched(&s));
    bind(&s);
    s.array[2].data = &s.W[2]; /* nothing cannot overlap */
    check_both(s.array, SAMPLES, NRM_OK, NRM_OK);

    CHECK_INT(nrm_save("b.npy", s.array, 2), NRM_ESIZE);
    a = array_of("a", NRM_REALS, s.W, 1, 0xffffffffu / each, 0); /* never looked at */
    CHECK_INT(nrm_save("b.npz", &a, 1), NRM_ESIZE);
    CHECK(!there("b.npy") && !there("b.npz"));
}

static void test_mismatches(void)
{
    sample s;
    int k;
    size_t i;
    for (k = 0; k < 2; k++) {
        free(saved_as(format[k], SAMPLES).at);
        for (i = 0; i < 8; i++) {
            int expected = NRM_ESHAPE;
            poison(&s);
            switch (i) {
            case 0: s.array[0].shape[1] = 2; break;
            case 1: s.array[0].dims = 1; break;
            case 2: s.array[0].dims = 3; s.array[0].shape[2] = 1; break;
            case 3: s.array[3].type = NRM_U64; s.array[3].data = &s.none; break;
            case 4: s.array[3].name = "t"; expected = NRM_ENAME; break;
            case 5: s.array[3].name = "S"; expected = NRM_ENAME; break;
            case 6: s.array[0].name = "layer0."; expected = NRM_ENAME; break;
            default: s.array[2].shape[0] = 4; break; /* 4 x 0 is not 5 x 0 */
            }
            if (i == 3 && each == 4) continue; /* no room for an integer there */
            CHECK_INT(nrm_load(format[k], s.array, SAMPLES), expected);
            CHECK(untouched(&s));
        }
    }
    free(saved_as("a.npy", 1).at);
    poison(&s);
    CHECK_INT(nrm_load("a.npy", s.array, 2), NRM_ENAME); /* there is only one */
    s.array[0].shape[0] = 3;
    CHECK_INT(nrm_load("a.npy", s.array, 1), NRM_ESHAPE);
    CHECK(untouched(&s));
    CHECK_INT(disk.open, 0);
}

/* ---- damage ---------------------------------------------------------------------------------- */

static void test_truncations(void)
{
    sample s;
    size_t n;
    int k;
    for (k = 0; k < 3; k++) {
        bytes b = saved_as(format[k], arrays_of(k)), longer = some(b.n + 4096);
        for (n = 0; n < b.n; n++)
            CHECK_INT(load_bytes(&s, b.at, n, arrays_of(k)), NRM_EFORMAT);
        memcpy(longer.at, b.at, b.n);
        for (n = 1; n <= 4096; n += n < 70 ? 1 : 671)
            CHECK_INT(load_bytes(&s, longer.at, b.n + n, arrays_of(k)), NRM_EFORMAT);
        memmove(longer.at + 1, b.at, b.n); /* something before it */
        longer.at[0] = 0;
        CHECK_INT(load_bytes(&s, longer.at, b.n + 1, arrays_of(k)), NRM_EFORMAT);
        free(b.at);
        free(longer.at);
    }
}

/* Every byte, every bit of it, and all bits: found out, or without effect. In our own format there
   is no byte without effect; .npy has no checksum, so there only refusals must be clean. */
static void test_flips(void)
{
    sample s;
    size_t i;
    int k, bit;
    for (k = 0; k < 3; k++) {
        bytes b = saved_as(format[k], arrays_of(k));
        int accepted = 0;
        for (i = 0; i < b.n; i++)
            for (bit = 0; bit < 9; bit++) {
                const unsigned char kept = b.at[i];
                int rc;
                b.at[i] = (unsigned char)(kept ^ (bit < 8 ? 1 << bit : 255));
                rc = load_bytes(&s, b.at, b.n, arrays_of(k));
                b.at[i] = kept;
                if (rc == NRM_OK) {
                    accepted++;
                    if (k < 2) CHECK(loaded(&s));
                } else if (k < 2) {
                    CHECK(rc == NRM_EFORMAT || (k == 1 && rc == NRM_ENAME));
                }
            }
        if (k == 0) CHECK_INT(accepted, 0);
        if (k == 1) CHECK(accepted < (int)b.n); /* times, attributes */
        free(b.at);
    }
}

/* ---- lies ------------------------------------------------------------------------------------ */

typedef struct patch { /* bytes to put in at an offset: a value of some bytes */
    size_t at;
    uint64_t value;
    size_t n;
} patch;

/* Our own format, with checksums that are right. Entry 0 begins at 32: W, 2 x 3. */
static void test_lies_own(void)
{
    const uint64_t huge = UINT64_MAX;
    const patch lie[] = {
        {8, 2, 4},                         /* a version that is not yet                     */
        {12, 0, 4}, {12, 3, 4}, {12, 5, 4}, {12, 65535, 4}, {12, 65536, 4}, {12, 0xffffffffu, 4},
        {16, 0, 8}, {16, 64, 8}, {16, huge, 8},
        {24, 1, 1}, {31, 1, 1},            /* reserved                                      */
        {32, '/', 1}, {32, 0, 1},          /* names                                         */
        {42, 'x', 1}, {95, 'x', 1}, {95, 255, 1},
        {96, 2, 4}, {96, 0xffffffffu, 4}, {96, each == 4 ? 1 : 3, 4}, /* types */
        {100, 2, 4}, {100, 0, 4}, {100, each == 4 ? 8 : 4, 4}, {100, 0xffffffffu, 4},
        {104, 9, 4}, {104, 1, 4}, {104, 3, 4}, {104, 0xffffffffu, 4},
        {112, 3, 8}, {112, 0, 8}, {112, huge, 8}, {112, (uint64_t)1 << 63, 8},
        {112, (uint64_t)1 << 62, 8}, {120, huge / 8 + 2, 8}, {120, (uint64_t)1 << 32, 8},
        {128, 1, 8}, {168, 1, 8},          /* extents beyond the dims                       */
        {176, 0, 8}, {176, 32, 8}, {176, huge, 8}, {176, huge - 63, 8}, {176, 832 + 64, 8},
        {184, 0, 8}, {184, 6 * 8 + 1, 8}, {184, huge, 8},
        {192, 1, 1}, {223, 1, 1},          /* reserved                                      */
    };
    bytes b = saved_as("a.nrm", SAMPLES), c;
    sample s;
    size_t i;
    CHECK_INT(get(b.at + 176, 8), 832);
    for (i = 0; i < COUNT(lie); i++) {
        c = copy_of(b);
        put(c.at + lie[i].at, lie[i].value, lie[i].n);
        seal(c);
        if (!CHECK_INT(load_bytes(&s, c.at, c.n, SAMPLES), NRM_EFORMAT))
            printf("  lie %u, at %u\n", (unsigned)i, (unsigned)lie[i].at);
        free(c.at);
    }
    c = copy_of(b); /* the same place for two arrays */
    memcpy(c.at + 32 + 192 + 144, c.at + 32 + 144, 8);
    seal(c);
    CHECK_INT(load_bytes(&s, c.at, c.n, SAMPLES), NRM_EFORMAT);
    memcpy(c.at, b.at, b.n); /* two arrays of one name: harmless as long as nobody wants it */
    memcpy(c.at + 32 + 192 * 2, "layer0.W", 8);
    seal(c);
    CHECK_INT(load_bytes(&s, c.at, c.n, 2), NRM_EFORMAT);
    CHECK_INT(nrm_load("case", s.array + 1, 1), NRM_OK);
    memcpy(c.at, b.at, b.n); /* something between the arrays */
    c.at[832 + 6 * each] = 1;
    seal(c);
    CHECK_INT(load_bytes(&s, c.at, c.n, SAMPLES), NRM_EFORMAT);
    memcpy(c.at, b.at, b.n); /* sealed, but not otherwise changed: the seal is not the reason */
    seal(c);
    CHECK_INT(load_bytes(&s, c.at, c.n, SAMPLES), NRM_OK);
    CHECK(loaded(&s));
    free(c.at);
    free(b.at);
}

/* Where the k-th header with this signature of an archive begins. */
static size_t find(bytes b, uint32_t signature, int k)
{
    size_t i;
    for (i = 0; i + 4 <= b.n; i++)
        if (get(b.at + i, 4) == signature && k-- == 0) return i;
    exit(2);
}

/* The first file's two headers, the second's in the directory, and the end. */
static void test_lies_npz(void)
{
    bytes b = saved_as("a.npz", SAMPLES), c;
    const size_t local = find(b, 0x04034b50, 0), entry = find(b, 0x02014b50, 0);
    const size_t second = find(b, 0x02014b50, 1), end = find(b, 0x06054b50, 0);
    const uint64_t start = entry, size = end - entry, ones = 0xffffffffu;
    const patch lie[] = {
        {end + 4, 1, 2}, {end + 6, 1, 2},                    /* disks                       */
        {end + 8, 3, 2}, {end + 10, 3, 2}, {end + 8, 5, 2}, {end + 8, 0xffff, 2},
        {end + 8, 0x00030003, 4}, {end + 8, 0x00050005, 4}, {end + 8, 0, 4}, {end + 8, ones, 4},
        {end + 12, size - 1, 4}, {end + 12, size + 1, 4}, {end + 12, ones, 4}, {end + 12, 0, 4},
        {end + 16, start - 1, 4}, {end + 16, 0, 4}, {end + 16, ones, 4},
        {end + 20, 1, 2},                                    /* a comment that is not there */
        {entry, 0, 4}, {second, 0, 4}, {local, 0x02014b50, 4},
        {entry + 8, 1, 2}, {entry + 8, 8, 2}, {entry + 8, 0x2000, 2}, {entry + 8, 0x0800, 2},
        {local + 6, 1, 2}, {local + 6, 8, 2}, {local + 6, 0x0800, 2},
        {entry + 10, 8, 2}, {local + 8, 8, 2},               /* compressed                  */
        {entry + 16, 0, 4}, {local + 14, 0, 4},              /* checksums                   */
        {entry + 20, 0, 4}, {entry + 24, 0, 4}, {entry + 20, ones, 4}, {entry + 24, ones, 4},
        {local + 18, 0, 4}, {local + 22, 0, 4}, {local + 18, ones, 4}, {local + 22, ones, 4},
        {entry + 28, 0, 2}, {entry + 28, 11, 2}, {entry + 28, 13, 2}, {entry + 28, 0xffff, 2},
        {local + 26, 0, 2}, {local + 26, 11, 2}, {local + 26, 0xffff, 2},
        {entry + 30, 1, 2}, {entry + 30, 0xffff, 2}, {entry + 32, 1, 2}, {entry + 32, 0xffff, 2},
        {local + 28, 1, 2}, {local + 28, 0xffff, 2},
        {entry + 34, 1, 2},
        {entry + 42, 1, 4}, {entry + 42, ones, 4}, {second + 42, 0, 4}, /* one on the other */
        {entry + 46, 'x', 1}, {local + 30, 'x', 1},          /* names that differ           */
    };
    sample s;
    size_t i;
    for (i = 0; i < COUNT(lie); i++) {
        c = copy_of(b);
        put(c.at + lie[i].at, lie[i].value, lie[i].n);
        if (!CHECK_INT(load_bytes(&s, c.at, c.n, SAMPLES), NRM_EFORMAT))
            printf("  lie %u, at %u\n", (unsigned)i, (unsigned)lie[i].at);
        free(c.at);
    }
    c = copy_of(b); /* both sizes wrong in both places: as much as there is, and more */
    for (i = 0; i < 3; i++) {
        const uint64_t lied = i == 0 ? 0 : i == 1 ? 0xfffffffeu : start;
        put(c.at + entry + 20, lied, 4);
        put(c.at + entry + 24, lied, 4);
        put(c.at + local + 18, lied, 4);
        put(c.at + local + 22, lied, 4);
        CHECK_INT(load_bytes(&s, c.at, c.n, SAMPLES), NRM_EFORMAT);
    }
    free(c.at);
    c = some(b.n + 1); /* a comment that is there */
    memcpy(c.at, b.at, b.n);
    put(c.at + end + 20, 1, 2);
    CHECK_INT(load_bytes(&s, c.at, c.n, SAMPLES), NRM_EFORMAT);
    free(c.at);
    free(b.at);
}

/* Extra fields and comments of an archive's directory mean nothing to us, but are passed over. */
static void test_npz_extras(void)
{
    bytes b = saved_as("a.npz", SAMPLES), c = some(b.n + 9);
    const size_t entry = find(b, 0x02014b50, 1), next = find(b, 0x02014b50, 2);
    const size_t end = find(b, 0x06054b50, 0);
    sample s;
    memcpy(c.at, b.at, next);
    memcpy(c.at + next, "xxxxcomme", 9);
    memcpy(c.at + next + 9, b.at + next, b.n - next);
    put(c.at + entry + 30, 4, 2);
    put(c.at + entry + 32, 5, 2);
    put(c.at + end + 9 + 12, get(b.at + end + 12, 4) + 9, 4);
    CHECK_INT(load_bytes(&s, c.at, c.n, SAMPLES), NRM_OK);
    CHECK(loaded(&s));
    put(c.at + entry + 32, 4, 2);
    CHECK_INT(load_bytes(&s, c.at, c.n, SAMPLES), NRM_EFORMAT);
    free(b.at);
    free(c.at);
}

/* Files of an archive that are no arrays: a folder, as zip tools write one, and what claims to be
   an array by its name alone. */
static void test_npz_strangers(void)
{
    static const char *const name[] = {"d/", ".npy", "a.txt", "a.npy"};
    bytes b = saved_as("a.npz", SAMPLES);
    const size_t local = find(b, 0x04034b50, 0), entry = find(b, 0x02014b50, 0);
    const size_t start = local + 30 + 12, n = (size_t)get(b.at + local + 22, 4);
    nrm_array_info info[1];
    sample s;
    size_t i;
    for (i = 0; i < COUNT(name); i++) {
        const size_t long_name = strlen(name[i]), directory = 30 + long_name;
        const int good = i < 3; /* the last one should be an array, and has no bytes */
        bytes c = some(30 + 46 + 2 * long_name + 22);
        size_t count = 9;
        put(c.at, 0x04034b50, 4);
        put(c.at + 26, long_name, 2);
        memcpy(c.at + 30, name[i], long_name);
        put(c.at + directory, 0x02014b50, 4);
        put(c.at + directory + 28, long_name, 2);
        memcpy(c.at + directory + 46, name[i], long_name);
        put(c.at + c.n - 22, 0x06054b50, 4);
        put(c.at + c.n - 14, 0x00010001, 4);
        put(c.at + c.n - 10, 46 + long_name, 4);
        put(c.at + c.n - 6, directory, 4);
        CHECK_INT(load_bytes(&s, c.at, c.n, 0), good ? NRM_OK : NRM_EFORMAT);
        CHECK_INT(nrm_list("case", info, &count, 1), good ? NRM_OK : NRM_EFORMAT);
        CHECK_INT(count, good ? 0 : 9);
        free(c.at);
    }
    CHECK(memcmp(b.at + start, "\x93NUMPY", 6) == 0);
    for (i = 0; i < 8; i++) { /* each byte before the text changed, with checksums that are right */
        bytes c = copy_of(b);
        c.at[start + i] ^= 8;
        put(c.at + local + 14, crc_of(c.at + start, n), 4);
        put(c.at + entry + 16, crc_of(c.at + start, n), 4);
        CHECK_INT(load_bytes(&s, c.at, c.n, SAMPLES), NRM_EFORMAT);
        free(c.at);
    }
    free(b.at);
}

static const nrm_real three[3] = {1, 2, 3};

/* Texts of .npy headers, D for the type of this build, and what becomes of them. */
static void test_npy_texts(void)
{
    static const struct {
        const char *text;
        int expected;
    } line[] = {
        {"{'descr': 'D', 'fortran_order': False, 'shape': (3,), }\n", NRM_OK},
        {"{'descr': 'D', 'fortran_order': True, 'shape': (3,), }\n", NRM_OK},
        {"{'descr': 'D', 'fortran_order': False, 'shape': (3,)}\n", NRM_OK},
        {"{'shape': (3,), 'fortran_order': False, 'descr': 'D'}\n", NRM_OK},
        {"{\"descr\": \"D\", \"fortran_order\": False, \"shape\": (3,)}\n", NRM_OK},
        {"  { 'descr' :'D','fortran_order':False , 'shape':( 3 , ) , }      \n", NRM_OK},
        {"{'descr': 'D', 'fortran_order': False, 'shape': (3, 1), }\n", NRM_ESHAPE},
        {"{'descr': 'D', 'fortran_order': False, 'shape': (1, 3,), }\n", NRM_ESHAPE},
        {"{'descr': 'D', 'fortran_order': True, 'shape': (1, 3), }\n", NRM_EFORMAT},
        {"{'descr': 'D', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,3), }\n", NRM_ESHAPE},
        {"{'descr': '<u8', 'fortran_order': False, 'shape': (X,), }\n", NRM_ESHAPE},
        {"{'descr': '>f4', 'fortran_order': False, 'shape': (3,), }\n", NRM_ESHAPE},
        {"{'descr': '<i4', 'fortran_order': False, 'shape': (3,), }\n", NRM_ESHAPE},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (3,), }\n", NRM_ESHAPE},
        {"{'descr': '', 'fortran_order': False, 'shape': (3,), }\n", NRM_ESHAPE},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,), }\n", NRM_ESHAPE},
        {"{'descr': '<f444444444444444444444444', 'fortran_order': False, 'shape': (3,), }\n",
         NRM_ESHAPE},
        {"{'descr': 'D', 'fortran_order': False, 'shape': (3,), }", NRM_EFORMAT},
        {"{'descr': 'D', 'fortran_order': False, 'shape': (3,), }\n\n", NRM_EFORMAT},
        {"{'descr': 'D', 'fortran_order': False, 'shape': (3,), }\n ", NRM_EFORMAT},
        {"{'descr': 'D', 'fortran_order': False, 'shape': (3,), } x\n", NRM_EFORMAT},
        {"{'descr': 'D', 'fortran_order': False, 'shape': (3,), \n", NRM_EFORMAT},
        {"{'descr': 'D', 'fortran_order': False, 'shape': (3,\n", NRM_EFORMAT},
        {"{'descr': 'D', 'fortran_order': False, 'shape': (3\n", NRM_EFORMAT},
        {"{'descr': 'D', 'fortran_order': False, 'shape': (3)}\n", NRM_EFORMAT},
        {"{'descr': 'D', 'fortran_order': False, 'shape': 3}\n", NRM_EFORMAT},
        {"{'descr': 'D', 'fortran_order': False, 'shape': [3]}\n", NRM_EFORMAT},
        {"{'descr': 'D', 'fortran_order': False, 'shape': (,)}\n", NRM_EFORMAT},
        {"{'descr': 'D', 'fortran_order': False, 'shape': (3,,)}\n", NRM_EFORMAT},
        {"{'descr': 'D', 'fortran_order': False, 'shape': (03,)}\n", NRM_EFORMAT},
        {"{'descr': 'D', 'fortran_order': False, 'shape': (-3,)}\n", NRM_EFORMAT},
        {"{'descr': 'D', 'fortran_order': False, 'shape': (+3,)}\n", NRM_EFORMAT},
        {"{'descr': 'D', 'fortran_order': False, 'shape': (3L,)}\n", NRM_EFORMAT},
        {"{'descr': 'D', 'fortran_order': False, 'shape': (3.0,)}\n", NRM_EFORMAT},
        {"{'descr': 'D', 'fortran_order': False, 'shape': (4,)}\n", NRM_EFORMAT},
        {"{'descr': 'D', 'fortran_order': False, 'shape': (2,)}\n", NRM_EFORMAT},
        {"{'descr': 'D', 'fortran_order': False, 'shape': (0,)}\n", NRM_EFORMAT},
        {"{'descr': 'D', 'fortran_order': False, 'shape': ()}\n", NRM_EFORMAT},
        {"{'descr': 'D', 'fortran_order': False, 'shape': (99999999999999999999,)}\n", NRM_EFORMAT},
        {"{'descr': 'D', 'fortran_order': False, 'shape': (18446744073709551615,)}\n", NRM_EFORMAT},
        {"{'descr': 'D', 'fortran_order': False, 'shape': (4611686018427387907, 4)}\n",
         NRM_EFORMAT}, /* times 16 wraps round to 3 times 4 times 4 */
        {"{'descr': 'D', 'fortran_order': 0, 'shape': (3,)}\n", NRM_EFORMAT},
        {"{'descr': 'D', 'fortran_order': Falsely, 'shape': (3,)}\n", NRM_EFORMAT},
        {"{'descr': 'D', 'fortran_order': False}\n", NRM_EFORMAT},
        {"{'descr': 'D', 'shape': (3,)}\n", NRM_EFORMAT},
        {"{'fortran_order': False, 'shape': (3,)}\n", NRM_EFORMAT},
        {"{'descr': 'D', 'descr': 'D', 'fortran_order': False, 'shape': (3,)}\n", NRM_EFORMAT},
        {"{'descr': 'D', 'fortran_order': False, 'shape': (3,), 'more': 1}\n", NRM_EFORMAT},
        {"{'descr': 'D' 'fortran_order': False, 'shape': (3,)}\n", NRM_EFORMAT},
        {"{'descr' 'D', 'fortran_order': False, 'shape': (3,)}\n", NRM_EFORMAT},
        {"{'descr': 'D\", 'fortran_order': False, 'shape': (3,)}\n", NRM_EFORMAT},
        {"{'descr: D, fortran_order: False, shape: (3,)}\n", NRM_EFORMAT},
        {"{descr: 'D', fortran_order: False, shape: (3,)}\n", NRM_EFORMAT},
        {"{'de\\x73cr': 'D', 'fortran_order': False, 'shape': (3,)}\n", NRM_EFORMAT},
        {"{}\n", NRM_EFORMAT},
        {"{\n", NRM_EFORMAT},
        {"\n", NRM_EFORMAT},
        {"", NRM_EFORMAT},
        {"exit()\n", NRM_EFORMAT},
    };
    unsigned char data[24];
    size_t i, k;
    for (i = 0; i < 3; i++) {
        uint64_t bits = 0;
        uint32_t half;
        memcpy(&half, &three[i], 4);
        memcpy(&bits, &three[i], each);
        put(data + i * each, each == 4 ? half : bits, each);
    }
    for (i = 0; i < COUNT(line); i++)
        for (k = 1; k <= 3; k++) {
            char text[200];
            nrm_real got[3] = {7, 7, 7};
            nrm_array a = array_of("any", NRM_REALS, got, 1, 3, 0);
            const char *from = line[i].text;
            size_t n = 0;
            bytes b;
            for (; *from != '\0'; from++) {
                const char *put_in = *from == 'D'   ? (each == 4 ? "<f4" : "<f8")
                                     : *from == 'X' ? (each == 4 ? "1" : "3")
                                                    : NULL;
                if (put_in == NULL)
                    text[n++] = *from;
                else
                    n += (size_t)snprintf(text + n, sizeof text - n, "%s", put_in);
            }
            text[n] = '\0';
            b = make_npy((int)k, text, data,
                         strstr(line[i].text, "(X") != NULL ? 3 * each / 8 * 8 : 3 * each);
            place(b.at, b.n);
            if (!CHECK_INT(nrm_load("case", &a, 1), line[i].expected)) printf("  %s", text);
            CHECK(memcmp(got, three, sizeof got) == 0 || (got[0] == 7 && got[2] == 7));
            CHECK((memcmp(got, three, sizeof got) == 0) == (line[i].expected == NRM_OK));
            free(b.at);
        }
}

/* Versions, lengths, and a text that is too long to be one of ours. */
static void test_npy_frames(void)
{
    const char *good = each == 4 ? "{'descr': '<f4', 'fortran_order': False, 'shape': (), }\n"
                                 : "{'descr': '<f8', 'fortran_order': False, 'shape': (), }\n";
    unsigned char zero[8] = {0};
    nrm_real got = 7;
    nrm_array a = array_of("any", NRM_REALS, &got, 0, 0, 0);
    char *padded = (char *)malloc(6001);
    size_t i;
    bytes b = make_npy(1, good, zero, each);
    if (padded == NULL) exit(2);
    for (i = 0; i < 4; i++) {
        static const patch lie[] = {{6, 0, 1}, {6, 4, 1}, {7, 1, 1}, {8, 0xffff, 2}};
        bytes c = copy_of(b);
        put(c.at + lie[i].at, lie[i].value, lie[i].n);
        place(c.at, c.n);
        CHECK_INT(nrm_load("case", &a, 1), NRM_EFORMAT);
        free(c.at);
    }
    CHECK(got == 7);
    free(b.at);
    b = make_npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (,)}\n", zero, 0);
    place(b.at, b.n);
    CHECK_INT(nrm_load("case", NULL, 0), NRM_EFORMAT);
    free(b.at);
    b = make_npy(4, good, zero, each); /* a version that is not yet, as version 3 would be */
    place(b.at, b.n);
    CHECK_INT(nrm_load("case", &a, 1), NRM_EFORMAT);
    free(b.at);
    for (i = 4000; i <= 6000; i += 2000) { /* up to the buffer's 4096, and beyond it */
        memset(padded, ' ', i);
        memcpy(padded, good, strlen(good) - 1);
        padded[i - 1] = '\n';
        padded[i] = '\0';
        got = 7;
        b = make_npy(2, padded, zero, each);
        place(b.at, b.n);
        CHECK_INT(nrm_load("case", &a, 1), i == 4000 ? NRM_OK : NRM_ESHAPE);
        CHECK(got == (i == 4000 ? 0 : 7));
        b.at[8] = b.at[9] = b.at[10] = b.at[11] = 255;
        place(b.at, b.n);
        CHECK_INT(nrm_load("case", &a, 1), NRM_EFORMAT);
        free(b.at);
    }
    free(padded);
}

/* A file of the other precision, in all formats that can be made by hand. */
static void test_other_precision(void)
{
    static const double number[] = {0, -0.0, 1, -2.5, 1e-46, 1e-40, 0.1, 3.4028234663852886e38,
                                    HUGE_VAL, -HUGE_VAL, 1.1754943508222875e-38};
    enum { N = COUNT(number) };
    const unsigned other = each == 4 ? 8 : 4;
    unsigned char data[8 * N];
    nrm_real got[N];
    nrm_array a = array_of("a", NRM_REALS, got, 1, N, 0);
    raw array = {"a", 0, 0, 1, {N}, NULL, 0};
    char text[100];
    bytes own, npy;
    size_t i;
    for (i = 0; i < N; i++) {
        const float f = (float)number[i];
        uint32_t half;
        uint64_t bits;
        memcpy(&half, &f, 4);
        memcpy(&bits, &number[i], 8);
        put(data + i * other, other == 8 ? bits : half, other);
    }
    array.each = other;
    array.data = data;
    array.n = N * other;
    own = make_own(&array, 1);
    snprintf(text, sizeof text, "{'descr': '<f%u', 'fortran_order': False, 'shape': (%d,), }\n",
             other, (int)N);
    npy = make_npy(1, text, data, array.n);
    write_bytes("own", own.at, own.n);
    write_bytes("npy", npy.at, npy.n);
    for (i = 0; i < 2; i++) {
        size_t k;
        memset(got, 0x5a, sizeof got);
        CHECK_INT(nrm_load(i == 0 ? "own" : "npy", &a, 1), NRM_OK);
        for (k = 0; k < N; k++)
            CHECK((double)got[k] == (double)(float)number[k] &&
                  !signbit(got[k]) == !signbit(number[k]));
    }
    free(own.at);
    free(npy.at);
}

/* Doubles that no float can hold: half a step above the largest float it is too much. */
static void test_overflow(void)
{
    static const double number[] = {1e39, -1e308, 3.4028235677973366e38, 3.4028235677973362e38};
    size_t i;
    for (i = 0; i < COUNT(number); i++) {
        nrm_real got[2] = {7, 7};
        nrm_array a = array_of("a", NRM_REALS, got, 1, 2, 0);
        raw array = {"a", 0, 8, 1, {2}, NULL, 16};
        unsigned char data[16];
        uint64_t bits;
        bytes b;
        const int good = each == 8 || i == 3;
        memcpy(&bits, &number[i], 8);
        put(data, (uint64_t)0x3ff0000000000000u, 8);
        put(data + 8, bits, 8);
        array.data = data;
        b = make_own(&array, 1);
        place(b.at, b.n);
        CHECK_INT(nrm_load("case", &a, 1), good ? NRM_OK : NRM_EFORMAT);
        CHECK(good ? got[0] == 1 && got[1] == (nrm_real)number[i] : got[0] == 7 && got[1] == 7);
        CHECK_INT(nrm_load("case", NULL, 0), NRM_OK); /* as a file it is all right */
        free(b.at);
    }
}

/* PyTorch counts batches in signed integers: read if they are counts. */
static void test_signed(void)
{
    const char *text = "{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }\n";
    uint64_t got[2] = {7, 7};
    nrm_array a = array_of("a", NRM_U64, got, 1, 2, 0);
    unsigned char data[16];
    int i;
    for (i = 0; i < 2; i++) {
        bytes b;
        put(data, 5, 8);
        put(data + 8, i == 0 ? UINT64_MAX : (uint64_t)INT64_MAX, 8);
        b = make_npy(1, text, data, 16);
        place(b.at, b.n);
        CHECK_INT(nrm_load("case", &a, 1), i == 0 ? NRM_EFORMAT : NRM_OK);
        CHECK(got[0] == (i == 0 ? 7u : 5u) && got[1] == (i == 0 ? 7u : (uint64_t)INT64_MAX));
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
    nrm_real got[6];
    uint64_t batches = 0, labels[2] = {9, 9};
    nrm_array a[3];
    nrm_array_info info[3];
    size_t count = 0, i;
    a[0] = array_of("batches", NRM_U64, &batches, 0, 0, 0);
    a[1] = array_of("W", NRM_REALS, got, 2, 2, 3);
    a[2] = array_of("labels", NRM_U64, labels, 1, 2, 0);
    write_bytes("fix.npz", b.at, b.n);
    CHECK_INT(nrm_load("fix.npz", a, 2), NRM_OK);
    for (i = 0; i < 6; i++) CHECK(got[i] == (nrm_real)(float)W[i]);
    CHECK_INT(batches, 7);
    batches = 0;
    CHECK_INT(nrm_load("fix.npz", a, 3), NRM_ESHAPE); /* int32 is listed, but not loaded */
    CHECK(batches == 0 && labels[0] == 9);
    CHECK_INT(nrm_list("fix.npz", info, &count, 3), NRM_OK);
    CHECK_INT(count, 3);
    CHECK_STR(info[2].name, "labels");
    CHECK_INT(info[2].type, -1);
    CHECK(info[2].dims == 0 && info[2].bytes_each == 0 && info[2].shape[0] == 0);
    CHECK(info[0].type == NRM_REALS && info[0].bytes_each == 4 && info[0].shape[1] == 3);
    CHECK(info[1].type == NRM_U64 && info[1].dims == 0);
}

static void test_numpy(void)
{
    bytes b = numpy_bytes();
    const size_t local = 0, entry = find(b, 0x02014b50, 0), labels = find(b, 0x02014b50, 2);
    uint64_t batches = 0;
    nrm_array a = array_of("batches", NRM_U64, &batches, 0, 0, 0);
    nrm_array_info info[3];
    size_t count = 0;
    check_numpy(b);
    put(b.at + local + 18, 0xffffffffu, 4); /* as other versions of Python write them */
    put(b.at + local + 22, 0xffffffffu, 4);
    check_numpy(b);
    put(b.at + local + 18, 0x98, 4); /* sizes from the extra field need it to be right */
    put(b.at + local + 30 + 5 + 4, 0x97, 8);
    place(b.at, b.n);
    CHECK_INT(nrm_load("case", &a, 1), NRM_EFORMAT);
    put(b.at + local + 30 + 5 + 4, 0x98, 8);
    put(b.at + local + 30 + 5 + 2, 8, 2); /* a field that is too short */
    place(b.at, b.n);
    CHECK_INT(nrm_load("case", &a, 1), NRM_EFORMAT);
    put(b.at + local + 30 + 5 + 2, 17, 2); /* or longer than there is room */
    place(b.at, b.n);
    CHECK_INT(nrm_load("case", &a, 1), NRM_EFORMAT);
    put(b.at + local + 30 + 5 + 2, 16, 2);
    check_numpy(b);
    b.at[labels + 46] = '/'; /* a name that breaks our rules: the file is none the worse */
    b.at[get(b.at + labels + 42, 4) + 30] = '/';
    place(b.at, b.n);
    CHECK_INT(nrm_load("case", &a, 1), NRM_OK);
    CHECK_INT(batches, 7);
    CHECK_INT(nrm_list("case", info, &count, 3), NRM_OK);
    CHECK_INT(count, 2);
    b.at[entry - 1] ^= 1; /* its data are checked all the same */
    place(b.at, b.n);
    CHECK_INT(nrm_load("case", &a, 1), NRM_EFORMAT);
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
    for (k = 0; k < 4; k++) {
        bytes b = k < 3 ? saved_as(format[k], arrays_of(k)) : numpy_bytes();
        for (turn = 0; turn < 2000; turn++) {
            bytes c = copy_of(b);
            nrm_array_info info[3];
            sample s;
            size_t count = 0;
            int times = 1 + (int)nrm_rng_below(&rng, 4), rc;
            while (times-- > 0) mutate(&c, &rng);
            if (k == 0 && turn % 4 != 0) { /* else the checksum finds it at once */
                if (turn % 4 == 1 && c.n >= 24) put(c.at + 16, c.n, 8);
                seal(c);
            }
            rc = load_bytes(&s, c.at, c.n, k < 2 ? SAMPLES : 1);
            accepted += rc == NRM_OK;
            CHECK(rc == NRM_OK || rc == NRM_EFORMAT || rc == NRM_ESHAPE || rc == NRM_ENAME);
            rc = nrm_list("case", info, &count, 3);
            CHECK(rc == NRM_OK || rc == NRM_EFORMAT);
            free(c.at);
        }
        free(b.at);
    }
    CHECK(accepted > 0 && accepted < 4000);
    CHECK_INT(disk.open, 0);
}

/* ---- a disk that fails ----------------------------------------------------------------------- */

/* Saving over an old file, the k-th call failing for every k: an error, the old file, no rest. */
static void test_failing_saves(void)
{
    static const unsigned char old[] = "what was there";
    sample s;
    int f;
    fill(&s);
    for (f = 0; f < 3; f++) {
        bytes good = saved_as(format[f], arrays_of(f)), after;
        long k;
        int hit = 1, refused = 0;
        for (k = 1; hit; k++) {
            int rc;
            write_bytes(format[f], old, sizeof old);
            new_disk(k);
            rc = nrm_save(format[f], s.array, arrays_of(f));
            hit = disk.hit;
            CHECK(rc == NRM_OK || (hit && rc == NRM_EFILE));
            refused += rc != NRM_OK;
            CHECK_INT(disk.open, 0);
            CHECK(!there(disk.created));
            after = read_bytes(format[f]);
            if (rc == NRM_OK)
                CHECK(after.n == good.n && memcmp(after.at, good.at, good.n) == 0);
            else
                CHECK(after.n == sizeof old && memcmp(after.at, old, sizeof old) == 0);
            free(after.at);
        }
        CHECK(refused >= 5 && k - refused <= 4); /* only the look at the name may fail */
        free(good.at);
    }
    new_disk(0);
}

/* Loading: an error; and nothing is changed in the first of the two passes, which is as long as
   a load of nothing. */
static void test_failing_loads(void)
{
    int f;
    for (f = 0; f < 3; f++) {
        sample s;
        long k, first;
        int hit = 1;
        free(saved_as(format[f], arrays_of(f)).at);
        new_disk(0);
        CHECK_INT(nrm_load(format[f], NULL, 0), NRM_OK);
        first = disk.calls - 1; /* without fclose */
        for (k = 1; hit; k++) {
            int rc;
            poison(&s);
            new_disk(k);
            rc = nrm_load(format[f], s.array, arrays_of(f));
            hit = disk.hit;
            CHECK(rc == NRM_EFILE || (rc == NRM_OK && (!hit || k == disk.calls)));
            if (k <= first) CHECK(rc == NRM_EFILE && untouched(&s));
            CHECK_INT(disk.open, 0);
        }
        CHECK(k > first);
    }
    new_disk(0);
}

static void test_places(void)
{
    char path[5000];
    sample s;
    bytes file;
    fill(&s);
    CHECK_INT(nrm_save("no such folder/a.nrm", s.array, SAMPLES), NRM_EFILE);
    CHECK_INT(nrm_load("no such folder/a.nrm", s.array, SAMPLES), NRM_EFILE);
    CHECK_INT(nrm_save("", s.array, SAMPLES), NRM_EFILE);
    CHECK_INT(mkdir("folder", 0700), 0);
    new_disk(0);
    CHECK_INT(nrm_save("folder", s.array, SAMPLES), NRM_EFILE); /* found out by rename */
    CHECK(disk.created[0] != '\0' && !there(disk.created));
    CHECK_INT(nrm_load("folder", s.array, SAMPLES), NRM_EFILE);
    CHECK_INT(nrm_save("folder/a.nrm", s.array, SAMPLES), NRM_OK);
    CHECK(there("folder/a.nrm"));
    memset(path, 'x', sizeof path);
    path[sizeof path - 1] = '\0';
    CHECK_INT(nrm_save(path, s.array, SAMPLES), NRM_EFILE);
    path[4096] = '\0';
    new_disk(0);
    CHECK_INT(nrm_save(path, s.array, SAMPLES), NRM_EFILE);
    CHECK_INT(disk.calls, 0); /* too long by one: not even tried */
    path[4095] = '\0';
    CHECK_INT(nrm_save(path, s.array, SAMPLES), NRM_EFILE);
    CHECK(disk.calls > 0);
    remove("b.nrm");
    new_disk(0);
    disk.taken = 1; /* every name that is tried exists */
    CHECK_INT(nrm_save("b.nrm", s.array, SAMPLES), NRM_EFILE);
    CHECK(!there("b.nrm") && disk.created[0] == '\0' && disk.open == 0);
    new_disk(0);
    if (there("/dev/full")) {
        free(saved_as("a.nrm", SAMPLES).at);
        disk.full = 1;
        CHECK_INT(nrm_save("a.nrm", s.array, SAMPLES), NRM_EFILE);
        new_disk(0);
        poison(&s);
        CHECK_INT(nrm_load("a.nrm", s.array, SAMPLES), NRM_OK);
        CHECK(loaded(&s));
        CHECK_INT(nrm_load("/dev/full", s.array, SAMPLES), NRM_EFORMAT); /* no bytes in it */
    } else {
        printf("files: no /dev/full here\n");
    }
    CHECK_INT(nrm_save(".npz", s.array, SAMPLES), NRM_OK); /* an ending is enough of a name */
    file = read_bytes(".npz");
    CHECK(file.n > 4 && memcmp(file.at, "PK\3\4", 4) == 0);
    free(file.at);
    CHECK_INT(remove(".npz"), 0);
    CHECK_INT(nrm_save(".npy", s.array, 1), NRM_OK);
    file = read_bytes(".npy");
    CHECK(file.n > 4 && memcmp(file.at, "\x93NUM", 4) == 0);
    free(file.at);
    CHECK_INT(remove(".npy"), 0);
}

/* ---- networks -------------------------------------------------------------------------------- */

enum { INPUTS = 5, CLASSES = 3, BATCH = 7 };

typedef struct network {
    nrm_mlp *net;
    void *block;
    nrm_mlp_layer shape[3];
    nrm_mlp_spec spec;
} network;

static void build(network *w)
{
    const size_t n = nrm_mlp_bytes(&w->spec);
    w->block = malloc(n > 0 ? n : 1);
    if (w->block == NULL || nrm_mlp_init(&w->net, w->block, n, &w->spec) != NRM_OK) exit(2);
}

/* Three layers: the norm in question, the same after the activation, and none. */
static void design(network *w, int norm, int optimizer, double heavy_ball, uint64_t seed)
{
    memset(w, 0, sizeof *w);
    w->spec = nrm_mlp_defaults();
    w->shape[0].width = 5;
    w->shape[0].activation = NRM_RELU;
    w->shape[0].norm = norm;
    w->shape[0].groups = 5; /* of the norms that have such a thing */
    w->shape[0].p = NRM_LINF;
    w->shape[1].width = 4;
    w->shape[1].activation = NRM_TANH;
    w->shape[1].norm = norm;
    w->shape[1].groups = 2;
    w->shape[1].p = NRM_L1 + NRM_CENTRED;
    w->shape[1].norm_after = norm != NRM_NO_NORM;
    w->shape[1].bias = 1;
    w->shape[2].width = CLASSES;
    w->shape[2].bias = 1;
    w->spec.inputs = INPUTS;
    w->spec.layers = 3;
    w->spec.layer = w->shape;
    w->spec.max_batch = BATCH;
    w->spec.seed = seed;
    w->spec.optimizer = optimizer;
    w->spec.heavy_ball = (nrm_real)heavy_ball;
    w->spec.lr = (nrm_real)0.05;
    w->spec.r_max = 2;
    w->spec.d_max = 1;
}

static void train(nrm_mlp *net, uint64_t from, uint64_t to)
{
    nrm_real x[BATCH * INPUTS];
    int labels[BATCH];
    for (; from < to; from++) {
        nrm_rng rng;
        size_t i, n = BATCH - from % 3; /* also odd numbers of noise */
        nrm_rng_seed(&rng, from, 77);
        for (i = 0; i < COUNT(x); i++) x[i] = nrm_rng_normal(&rng);
        for (i = 0; i < BATCH; i++) labels[i] = (int)nrm_rng_below(&rng, CLASSES);
        CHECK_INT(nrm_mlp_train_step(net, NULL, x, labels, n), NRM_OK);
    }
}

static int equal(const nrm_real *a, const nrm_real *b, size_t n)
{
    return a == NULL || b == NULL ? a == b : memcmp(a, b, n * sizeof *a) == 0;
}

static int same_net(const nrm_mlp *a, const nrm_mlp *b)
{
    size_t l, n = a->n_params;
    int same = n == b->n_params && equal(a->params, b->params, n) &&
               equal(a->moment1, b->moment1, n) && equal(a->moment2, b->moment2, n) &&
               a->steps == b->steps && a->beta1_power == b->beta1_power &&
               a->beta2_power == b->beta2_power && a->rng.state == b->rng.state &&
               a->rng.increment == b->rng.increment && a->rng.has_spare == b->rng.has_spare &&
               (!a->rng.has_spare || a->rng.spare == b->rng.spare);
    for (l = 0; l < a->spec.layers; l++) {
        const nrm_running *r = &a->state[l].running, *q = &b->state[l].running;
        same &= r->batches == q->batches && equal(r->mean, q->mean, a->state[l].shape.width) &&
                equal(r->var, q->var, a->state[l].shape.width);
    }
    return same;
}

/* Train, save, train on; and from the file into a network of another seed, train on: the same. */
static void test_training_goes_on(void)
{
    static const char *const path[] = {"net.nrm", "net.npz"};
    int norm, optimizer, p, spares = 0;
    for (norm = NRM_NO_NORM; norm <= NRM_LP_BATCH_NORM; norm++)
        for (optimizer = 0; optimizer < 3; optimizer++)
            for (p = 0; p < 2; p++) {
                const int kind = optimizer == 2 ? NRM_ADAM : NRM_SGD;
                const uint64_t pause = (uint64_t)(4 + norm + optimizer + p);
                network a, b;
                bytes first, second;
                design(&a, norm, kind, optimizer == 1 ? 0.9 : 0, 1);
                design(&b, norm, kind, optimizer == 1 ? 0.9 : 0, 2);
                b.spec.max_batch = BATCH + 3; /* not the file's business */
                build(&a);
                build(&b);
                train(a.net, 0, pause);
                train(b.net, 50, 52);
                CHECK(!same_net(a.net, b.net));
                CHECK_INT(nrm_mlp_save(a.net, path[p]), NRM_OK);
                first = read_bytes(path[p]);
                spares += a.net->rng.has_spare;
                train(a.net, pause, pause + 6);
                CHECK_INT(nrm_mlp_load(b.net, path[p]), NRM_OK);
                CHECK_INT(nrm_mlp_save(b.net, path[p]), NRM_OK);
                second = read_bytes(path[p]);
                CHECK(first.n == second.n && memcmp(first.at, second.at, first.n) == 0);
                train(b.net, pause, pause + 6);
                CHECK(same_net(a.net, b.net));
                free(first.at);
                free(second.at);
                free(a.block);
                free(b.block);
            }
    CHECK(spares > 0); /* the generator had a number in stock, at least once */
}

/* A network that differs in one thing does not take the file, and stays as it is. */
static void test_other_networks(void)
{
    network a;
    int change;
    design(&a, NRM_BATCH_NORM, NRM_ADAM, 0, 1);
    build(&a);
    train(a.net, 0, 3);
    CHECK_INT(nrm_mlp_save(a.net, "net.nrm"), NRM_OK);
    for (change = 0; change < 23; change++) {
        network b, before;
        int expected = NRM_ESHAPE;
        design(&b, NRM_BATCH_NORM, NRM_ADAM, 0, 2);
        switch (change) {
        case 0: b.spec.inputs++; break;
        case 1: b.spec.layers--; break;
        case 2: b.shape[0].width++; break;
        case 3: b.shape[1].activation = NRM_SIGMOID; break;
        case 4: b.shape[0].norm = NRM_NO_NORM; break;
        case 5: b.shape[0].norm = NRM_LAYER_NORM; break;
        case 6: b.shape[0].norm = NRM_NOISY_BATCH_NORM; break;
        case 7: b.shape[1].norm_after = 0; break;
        case 8: b.shape[1].bias = 0; break;
        case 9: b.spec.optimizer = NRM_SGD; break;
        case 10: b.spec.optimizer = NRM_SGD; b.spec.heavy_ball = (nrm_real)0.5; break;
        case 11: b.spec.eps = (nrm_real)1.1e-5; break;
        default: expected = NRM_OK; break;
        }
        switch (change) { /* how to train, and what has been used up, is not compared */
        case 12: b.spec.lr = 1; break;
        case 13: b.spec.beta1 = (nrm_real)0.5; break;
        case 14: b.spec.adam_eps = (nrm_real)0.5; break;
        case 15: b.spec.new_weight = (nrm_real)0.5; break;
        case 16: b.spec.cumulative = 1; break;
        case 17: b.spec.noise.mean_range = 1; break;
        case 18: b.spec.init = NRM_INIT_XAVIER; break;
        case 19: b.spec.max_batch = 2; break;
        case 20: b.shape[1].bias = 2; break; /* as good as 1 */
        case 21: b.shape[0].groups = 7; b.shape[0].p = 7; break; /* of other norms */
        case 22: b.spec.r_max = 9; b.spec.d_max = 9; break;
        default: break;
        }
        before = b;
        build(&b);
        build(&before);
        CHECK(same_net(b.net, before.net));
        if (!CHECK_INT(nrm_mlp_load(b.net, "net.nrm"), expected)) printf("  change %d\n", change);
        CHECK(same_net(b.net, expected == NRM_OK ? a.net : before.net));
        free(b.block);
        free(before.block);
    }
    free(a.block);
    for (change = 0; change < 4; change++) { /* groups and p, where they count */
        network b, before;
        const int norm = change < 2 ? NRM_GROUP_NORM : NRM_LP_BATCH_NORM;
        design(&a, norm, NRM_SGD, 0, 1);
        design(&b, norm, NRM_SGD, 0, 2);
        if (change == 0) b.shape[0].groups = 1;
        if (change == 1) b.shape[1].groups = 4;
        if (change == 2) b.shape[0].p = NRM_L1;
        if (change == 3) b.shape[1].p = NRM_L1;
        before = b;
        build(&a);
        build(&b);
        build(&before);
        CHECK_INT(nrm_mlp_save(a.net, "net.nrm"), NRM_OK);
        CHECK_INT(nrm_mlp_load(b.net, "net.nrm"), NRM_ESHAPE);
        CHECK(same_net(b.net, before.net));
        free(a.block);
        free(b.block);
        free(before.block);
    }
    design(&a, NRM_BATCH_NORM, NRM_ADAM, 0, 1);
    build(&a);
    CHECK_INT(nrm_mlp_save(NULL, "net.nrm"), NRM_ENULL);
    CHECK_INT(nrm_mlp_save(a.net, NULL), NRM_ENULL);
    CHECK_INT(nrm_mlp_load(NULL, "net.nrm"), NRM_ENULL);
    CHECK_INT(nrm_mlp_load(a.net, NULL), NRM_ENULL);
    CHECK_INT(nrm_mlp_save(a.net, "net.npy"), NRM_ESIZE);
    CHECK_INT(nrm_mlp_load(a.net, "not there"), NRM_EFILE);
    CHECK_INT(nrm_save("a.nrm", NULL, 0), NRM_OK);
    CHECK_INT(nrm_mlp_load(a.net, "a.nrm"), NRM_ENAME); /* some other file */
    free(a.block);
}

/* The entry of an array in a file of ours. */
static unsigned char *entry_of(bytes b, const char *name)
{
    uint64_t i;
    for (i = 0; i < get(b.at + 12, 4); i++)
        if (strcmp((char *)b.at + 32 + 192 * i, name) == 0) return b.at + 32 + 192 * i;
    exit(2);
}

/* A network's file with one integer that cannot be, sealed. */
static void test_impossible_networks(void)
{
    static const struct {
        const char *name;
        size_t index;
        uint64_t value;
        int expected;
    } lie[] = {{"training", 1, (uint64_t)0x7ff0000000000000u, NRM_EFORMAT}, /* infinite powers    */
               {"training", 2, (uint64_t)0xbff0000000000000u, NRM_EFORMAT}, /* and negative       */
               {"training", 4, 2, NRM_EFORMAT},                             /* an even increment  */
               {"training", 1, (uint64_t)0x3ff0000000000001u, NRM_EFORMAT}, /* and more than 1    */
               {"training", 5, 2, NRM_EFORMAT},
               {"training", 6, (uint64_t)0xfff0000000000000u, NRM_EFORMAT},
               {"training", 0, 12, NRM_OK},
               {"network", 0, UINT64_MAX, NRM_ESHAPE},
               {"network", 4, 0, NRM_ESHAPE},
               {"layer2.shape", 3, UINT64_MAX, NRM_ESHAPE},
               {"layer1.batches", 0, 12, NRM_OK}};
    network a, b, before;
    bytes good;
    size_t i;
    design(&a, NRM_NOISY_BATCH_NORM, NRM_ADAM, 0, 1);
    design(&b, NRM_NOISY_BATCH_NORM, NRM_ADAM, 0, 2);
    before = b;
    build(&a);
    train(a.net, 0, 3);
    CHECK_INT(nrm_mlp_save(a.net, "net.nrm"), NRM_OK);
    good = read_bytes("net.nrm");
    for (i = 0; i < COUNT(lie); i++) {
        bytes c = copy_of(good);
        put(c.at + get(entry_of(c, lie[i].name) + 144, 8) + 8 * lie[i].index, lie[i].value, 8);
        seal(c);
        place(c.at, c.n);
        build(&b);
        build(&before);
        if (!CHECK_INT(nrm_mlp_load(b.net, "case"), lie[i].expected))
            printf("  %s[%u]\n", lie[i].name, (unsigned)lie[i].index);
        if (lie[i].expected != NRM_OK) CHECK(same_net(b.net, before.net));
        free(b.block);
        free(before.block);
        free(c.at);
    }
    CHECK_INT(nrm_mlp_load(a.net, "case"), NRM_OK);
    CHECK_INT(a.net->state[1].running.batches, 12);
    free(good.at);
    free(a.block);
}

/* The same network in the other precision: a file made here, number by number. */
static void test_network_of_other_precision(void)
{
    const unsigned other = each == 4 ? 8 : 4;
    const double eps = 1e-5;
    const float eps_float = 1e-5f;
    network a, b;
    raw array[40];
    bytes own, made;
    size_t i, k, count;
    design(&a, NRM_NOISY_BATCH_NORM, NRM_ADAM, 0, 1);
    design(&b, NRM_NOISY_BATCH_NORM, NRM_ADAM, 0, 2);
    build(&a);
    build(&b);
    if (each == 8) /* so that nothing is lost */
        for (i = 0; i < a.net->n_params; i++) a.net->params[i] = (nrm_real)(float)a.net->params[i];
    CHECK_INT(nrm_mlp_save(a.net, "net.nrm"), NRM_OK);
    own = read_bytes("net.nrm");
    count = (size_t)get(own.at + 12, 4);
    if (count > COUNT(array)) exit(2);
    for (i = 0; i < count; i++) {
        const unsigned char *entry = own.at + 32 + 192 * i, *from = own.at + get(entry + 144, 8);
        const size_t n = (size_t)get(entry + 152, 8) / (size_t)get(entry + 68, 4);
        unsigned char *data = (unsigned char *)calloc(n + 1, 8);
        if (data == NULL) exit(2);
        memset(&array[i], 0, sizeof array[i]);
        array[i].name = (const char *)entry;
        array[i].type = (unsigned)get(entry + 64, 4);
        array[i].each = array[i].type == 0 ? other : 8;
        array[i].dims = (size_t)get(entry + 72, 4);
        for (k = 0; k < 8; k++) array[i].shape[k] = get(entry + 80 + 8 * k, 8);
        for (k = 0; k < n; k++) {
            const uint64_t bits = get(from + k * (array[i].type == 0 ? each : 8),
                                      array[i].type == 0 ? each : 8);
            uint32_t half = (uint32_t)bits;
            uint64_t whole = bits;
            float f;
            double d;
            if (array[i].type == 0 && each == 4) {
                memcpy(&f, &half, 4);
                d = (double)f;
                memcpy(&whole, &d, 8);
            } else if (array[i].type == 0) {
                memcpy(&d, &whole, 8);
                f = (float)d;
                memcpy(&half, &f, 4);
                whole = half;
            }
            put(data + k * array[i].each, whole, array[i].each);
        }
        if (strcmp(array[i].name, "network") == 0) { /* ε as the other build has it */
            double d = each == 4 ? eps : (double)eps_float;
            uint64_t whole;
            memcpy(&whole, &d, 8);
            CHECK(get(data + 32, 8) != whole);
            put(data + 32, whole, 8);
        }
        array[i].data = data;
        array[i].n = n * array[i].each;
    }
    made = make_own(array, count);
    write_bytes("other.nrm", made.at, made.n);
    CHECK_INT(nrm_mlp_load(b.net, "other.nrm"), NRM_OK);
    CHECK(same_net(a.net, b.net));
    for (i = 0; i < count; i++) free((void *)(uintptr_t)array[i].data);
    free(own.at);
    free(made.at);
    free(a.block);
    free(b.block);
}

/* What docs/files.md says of the integers in a network's file. */
static void test_network_facts(void)
{
    network a;
    bytes file;
    static const struct {
        const char *name;
        uint64_t n, value[8];
    } fact[] = {{"network", 5, {INPUTS, 3, NRM_ADAM, 2, 0}},
                {"training", 7, {3, 0, 0, 0, 0, 0}},
                {"layer0.shape", 8, {INPUTS, 5, NRM_RELU, NRM_NOISY_BATCH_NORM, 0, 0, 0, 0}},
                {"layer1.shape", 8, {5, 4, NRM_TANH, NRM_NOISY_BATCH_NORM, 1, 1, 0, 0}},
                {"layer2.shape", 8, {4, CLASSES, NRM_IDENTITY, NRM_NO_NORM, 0, 1, 0, 0}}};
    static const char *const name[] = {
        "network",      "training",       "moment1",        "moment2",     "layer0.shape",
        "layer0.W",     "layer0.gamma",   "layer0.beta",    "layer0.mean", "layer0.var",
        "layer0.batches", "layer1.shape", "layer1.W",       "layer1.b",    "layer1.gamma",
        "layer1.beta",  "layer1.mean",    "layer1.var",     "layer1.batches", "layer2.shape",
        "layer2.W",     "layer2.b"};
    size_t i, k;
    uint64_t bits;
    double d;
    design(&a, NRM_NOISY_BATCH_NORM, NRM_ADAM, 0, 1);
    build(&a);
    train(a.net, 0, 3);
    CHECK_INT(nrm_mlp_save(a.net, "net.nrm"), NRM_OK);
    file = read_bytes("net.nrm");
    CHECK_INT(get(file.at + 12, 4), COUNT(name));
    for (i = 0; i < COUNT(name); i++) CHECK_STR((char *)file.at + 32 + 192 * i, name[i]);
    for (i = 0; i < COUNT(fact); i++) {
        const unsigned char *entry = entry_of(file, fact[i].name);
        const unsigned char *at = file.at + get(entry + 144, 8);
        CHECK_INT(get(entry + 152, 8), 8 * fact[i].n);
        for (k = 0; k < (i == 0 ? 4 : i == 1 ? 1 : 8); k++)
            CHECK_INT(get(at + 8 * k, 8), fact[i].value[k]);
        if (i == 0) {
            d = (double)a.spec.eps;
            memcpy(&bits, &d, 8);
            CHECK(get(at + 32, 8) == bits);
        }
        if (i == 1) {
            d = (double)a.net->beta2_power;
            memcpy(&bits, &d, 8);
            CHECK(get(at + 16, 8) == bits);
            CHECK(get(at + 24, 8) == a.net->rng.state && get(at + 32, 8) == a.net->rng.increment);
            d = (double)a.net->rng.spare;
            memcpy(&bits, &d, 8);
            CHECK_INT(get(at + 40, 8), a.net->rng.has_spare);
            CHECK(get(at + 48, 8) == (a.net->rng.has_spare ? bits : 0));
        }
    }
    free(file.at);
    free(a.block);
    for (k = 0; k < 2; k++) { /* groups, then p */
        const unsigned char *at;
        design(&a, k == 0 ? NRM_GROUP_NORM : NRM_LP_BATCH_NORM, NRM_SGD, 0, 1);
        build(&a);
        CHECK_INT(nrm_mlp_save(a.net, "net.nrm"), NRM_OK);
        file = read_bytes("net.nrm");
        at = file.at + get(entry_of(file, "layer1.shape") + 144, 8);
        CHECK_INT(get(at + 48, 8), k == 0 ? 2 : 0);
        CHECK_INT(get(at + 56, 8), k == 0 ? 0 : NRM_L1 + NRM_CENTRED);
        free(file.at);
        free(a.block);
    }
}

/* As many layers as a file has room for, and one more. */
static void test_deep_networks(void)
{
    enum { MOST = 8191 };
    nrm_mlp_layer *layer = (nrm_mlp_layer *)calloc(MOST + 1, sizeof *layer);
    network a, b;
    size_t i;
    if (layer == NULL) exit(2);
    for (i = 0; i <= MOST; i++) layer[i].width = 1;
    design(&a, NRM_NO_NORM, NRM_SGD, 0, 1);
    a.spec.layer = layer;
    a.spec.max_batch = 1;
    a.spec.layers = MOST;
    b = a;
    b.spec.seed = 2;
    build(&a);
    build(&b);
    CHECK_INT(nrm_mlp_save(a.net, "net.npz"), NRM_OK);
    CHECK_INT(nrm_mlp_load(b.net, "net.npz"), NRM_OK);
    CHECK(same_net(a.net, b.net));
    free(a.block);
    free(b.block);
    a.spec.layers = MOST + 1;
    build(&a);
    CHECK_INT(nrm_mlp_save(a.net, "net.nrm"), NRM_ESIZE);
    CHECK_INT(nrm_mlp_load(a.net, "net.npz"), NRM_ESIZE);
    free(a.block);
    free(layer);
}

/* A network's file, cut off or with a byte turned: refused, and the network is as before. */
static void test_damaged_networks(void)
{
    static const char *const path[] = {"net.nrm", "net.npz"};
    network a, b, before;
    size_t i;
    int p;
    design(&a, NRM_BATCH_NORM, NRM_ADAM, 0, 1);
    design(&b, NRM_BATCH_NORM, NRM_ADAM, 0, 2);
    before = b;
    build(&a);
    build(&b);
    build(&before);
    train(a.net, 0, 3);
    for (p = 0; p < 2; p++) {
        bytes file;
        CHECK_INT(nrm_mlp_save(a.net, path[p]), NRM_OK);
        file = read_bytes(path[p]);
        for (i = 0; i < file.n; i += 13) {
            place(file.at, i);
            CHECK_INT(nrm_mlp_load(b.net, "case"), NRM_EFORMAT);
            file.at[i] ^= 0x11;
            place(file.at, file.n);
            file.at[i] ^= 0x11;
            if (p == 0) {
                CHECK_INT(nrm_mlp_load(b.net, "case"), NRM_EFORMAT);
            } else if (nrm_mlp_load(b.net, "case") == NRM_OK) { /* a byte without effect */
                CHECK(same_net(b.net, a.net));
                free(b.block);
                build(&b);
            }
        }
        CHECK(same_net(b.net, before.net));
        free(file.at);
    }
    free(a.block);
    free(b.block);
    free(before.block);
}

int main(void)
{
    static char folder[500];
    const char *base = getenv("TMPDIR");
    int rc;
    snprintf(folder, sizeof folder, "%s/normlayers-files-XXXXXX",
             base != NULL && *base != '\0' ? base : "/tmp");
    if (mkdtemp(folder) == NULL || chdir(folder) != 0) return 2;
    RUN(test_round_trips);
    RUN(test_some_of_it);
    RUN(test_all_dims);
    RUN(test_large);
    RUN(test_no_arrays);
    RUN(test_layout);
    RUN(test_list);
    RUN(test_arguments);
    RUN(test_mismatches);
    RUN(test_truncations);
    RUN(test_flips);
    RUN(test_lies_own);
    RUN(test_lies_npz);
    RUN(test_npz_extras);
    RUN(test_npz_strangers);
    RUN(test_npy_texts);
    RUN(test_npy_frames);
    RUN(test_other_precision);
    RUN(test_overflow);
    RUN(test_signed);
    RUN(test_numpy);
    RUN(test_fuzz);
    RUN(test_failing_saves);
    RUN(test_failing_loads);
    RUN(test_places);
    RUN(test_training_goes_on);
    RUN(test_other_networks);
    RUN(test_impossible_networks);
    RUN(test_network_of_other_precision);
    RUN(test_network_facts);
    RUN(test_deep_networks);
    RUN(test_damaged_networks);
    rc = test_report("files");
    free(memory.at);
    { /* every file that a test has made, and no other: a rest would keep the folder */
        static const char *const made[] = {"a.nrm",   "a.npz",   "a.npy",   "b.nrm", "case",
                                           "own",     "npy",     "fix.npz", "net.nrm", "net.npz",
                                           "other.nrm", "folder/a.nrm", "folder"};
        size_t i;
        for (i = 0; i < COUNT(made); i++) remove(made[i]);
    }
    if (chdir("/") != 0 || rmdir(folder) != 0) {
        printf("files: something is left in %s\n", folder);
        return 1;
    }
    return rc;
}
