/* npz.h - arrays in NumPy's files, for C - public domain or MIT-0, as normlayers.h: see LICENSE */
/*
# npz.h: arrays in NumPy's files

*How does a C program read weights from Python, so that a damaged file is never taken for a
good one?* `npz_save` writes a new file and renames it when all is well; `npz_load` checks the
whole file before it changes an array. Define `NPZ_IMPLEMENTATION` before the `#include` in
one C99 or C++11 file. Only regular files are read and replaced; see docs/importing.md.
*/
#ifndef NPZ_H
#define NPZ_H
#include <stddef.h>
#include <stdint.h>
#define NPZ_STATUSES(X)                                                                            \
    X(NPZ_OK, 0, "no error")                                                                       \
    X(NPZ_ENULL, -1, "a pointer is NULL")                                                          \
    X(NPZ_EARRAY, -2, "an array's type is unknown, or it has too many dimensions or elements")     \
    X(NPZ_ENAME, -3, "an array is not in the file, or its name is used twice or not allowed")      \
    X(NPZ_ETYPE, -4, "the array in the file has another type, which is not converted")             \
    X(NPZ_ESHAPE, -5, "the array in the file has another shape")                                   \
    X(NPZ_EORDER, -6, "the array in the file is stored by columns (Fortran order)")                \
    X(NPZ_ERANGE, -7, "a number in the file does not fit into the array's type")                   \
    X(NPZ_EFILE, -8, "the file cannot be opened, read, written or renamed: see errno")             \
    X(NPZ_EPLACE, -9, "the path leads to something that is not a regular file")                    \
    X(NPZ_EFORMAT, -10, "the file is damaged, or neither .npz nor .npy")                           \
    X(NPZ_ECOMPRESSED, -11, "the file is compressed, and there is no function to inflate it")      \
    X(NPZ_EWORK, -12, "the memory for inflating is too small: see needed")                         \
    X(NPZ_EZIP, -13, "the archive is encrypted, streamed, split, zip64, or packed otherwise")      \
    X(NPZ_ESIZE, -14, "too many arrays, or too many bytes, for this kind of file")
#define NPZ_VALUE(name, value, text) name = value,
enum npz_status { NPZ_STATUSES(NPZ_VALUE) NPZ_LAST_STATUS = NPZ_ESIZE };
enum { NPZ_OTHER, NPZ_I8, NPZ_I16, NPZ_I32, NPZ_I64 }; /* NPZ_OTHER: listed, but not loaded */
enum { NPZ_U8 = 5, NPZ_U16, NPZ_U32, NPZ_U64, NPZ_F32, NPZ_F64 };
enum { NPZ_DIMS = 8, NPZ_NAME = 256, NPZ_DESCR = 32 };
typedef struct npz_array { /* an array in memory; npz_make fills it */
    const char *name;      /* at most 255 bytes, no control characters: "dense/kernel:0" */
    int type;
    void *data;                   /* arrays that are loaded must not overlap */
    size_t dims, shape[NPZ_DIMS]; /* 0 dims: a single number */
    size_t first, next;           /* private: a hash table of the names, and */
    uint32_t mark;                /* the checksum, or whether the array was found */
} npz_array;
typedef struct npz_info {         /* an array in a file */
    char name[NPZ_NAME];          /* "" in a .npy file */
    char descr[NPZ_DESCR];        /* the type in NumPy's words: "<f4", "|b1", "<U5"; may be cut */
    int type, fortran;            /* fortran: stored by columns */
    size_t dims, shape[NPZ_DIMS]; /* of more than 8 dims the first 8 extents */
} npz_info;
/* Inflates a raw deflate stream of m bytes into exactly n bytes; returns 0 if it cannot. */
typedef int npz_inflate(void *user, unsigned char *out, size_t n, const unsigned char *in,
                        size_t m);
typedef struct npz_context {   /* may be NULL, or all zero */
    npz_inflate *inflate;      /* in: reads compressed members */
    void *user;                /* in: passed to inflate */
    unsigned char *work;       /* in: memory for the largest member, compressed and not */
    size_t work_bytes, needed; /* needed: out, with NPZ_EWORK */
    char name[NPZ_NAME];       /* out: the array that failed, or "" */
} npz_context;
#if !defined(NPZ_DEF) && defined(__cplusplus)
#define NPZ_DEF extern "C"
#elif !defined(NPZ_DEF)
#define NPZ_DEF extern
#endif
NPZ_DEF const char *npz_strerror(int status);
/* An array of 0 to 2 dimensions: a number, [a] or [a][b]. */
NPZ_DEF npz_array npz_make(const char *name, int type, void *data, size_t dims, size_t a, size_t b);
/* Writes all arrays, or leaves what was there. A path in .npy takes one array; else it is .npz. */
NPZ_DEF int npz_save(const char *path, npz_array *array, size_t count, npz_context *context);
/* Reads the arrays of these names and shapes; converts floats, and integers if they fit. */
NPZ_DEF int npz_load(const char *path, npz_array *array, size_t count, npz_context *context);
/* Checks the file, fills at most `most` entries, and says how many there are. */
NPZ_DEF int npz_list(const char *path, npz_info *info, size_t *count, size_t most, npz_context *c);
#endif /* NPZ_H */

#if defined(NPZ_IMPLEMENTATION) && !defined(NPZ_IMPLEMENTED)
#define NPZ_IMPLEMENTED
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#ifdef _WIN32 /* there rename does not replace */
#include <io.h>
#include <windows.h>
#ifndef S_ISREG
#define S_ISREG(mode) (((mode)&_S_IFMT) == _S_IFREG)
#endif
#define npzi_rename(from, to) (MoveFileExA(from, to, MOVEFILE_REPLACE_EXISTING) ? 0 : -1)
#define NPZ_POSIX(name) _##name
#define NPZ_NEW _O_CREAT | _O_EXCL | _O_WRONLY | _O_BINARY, 0600
#else
#include <unistd.h>
#define npzi_rename rename
#define NPZ_POSIX(name) name
#define NPZ_NEW O_CREAT | O_EXCL | O_WRONLY, 0666
#ifndef __cplusplus
FILE *fdopen(int file, const char *mode); /* -std=c99 hides it */
#endif
#endif
enum { NPZ_CHUNK = 4096, NPZ_MOST = 65534, NPZ_PATH = 4096 }; /* bytes, arrays, bytes */
#define NPZ_ONES 0xffffffffu
#define NPZ_TRY(call)                                                                              \
    if ((rc = (call)) != NPZ_OK) return rc
#define NPZ_LOW(from, bytes) npzi_get(from, bytes, 0)
#define NPZ_EACH(array) ((size_t)(npzi_type[(array)->type][1] - '0'))
#define NPZ_BYTES(array) npzi_bytes((array)->dims, (array)->shape, NPZ_EACH(array))
static const char npzi_type[][3] = {"?0", "i1", "i2", "i4", "i8", "u1",
                                    "u2", "u4", "u8", "f4", "f8"}; /* by type */
/*
## 1  The checksum

CRC-32 is the remainder c of a division of polynomials modulo 2, whose coefficients are bits.
One bit of c leaves at a time, the lowest; if it was a 1, the divisor P = 3988292384
(edb88320 in base 16) is subtracted, which is the exclusive or. T(k) is what c = k becomes
after eight steps. So that zeros at the start count, 32 bits are inverted.

    c′ = ⌊c/2⌋ ⊕ P·(c mod 2)                                          [CRC.1]
    c′ = ⌊c/2⁸⌋ ⊕ T((c ⊕ byte) mod 2⁸)                                [CRC.2]
    crc = c ⊕ (2³² − 1), where c starts at 2³² − 1                    [CRC.3]
*/
static void npzi_crc_table(uint32_t *table)
{
    uint32_t k, c;
    int bit;
    for (k = 0; k < 256; k++) {
        for (c = k, bit = 0; bit < 8; bit++)
            c = (c >> 1) ^ ((c & 1) != 0 ? 0xedb88320u : 0); /* CRC.1 */
        table[k] = c;
    }
}
/* Continues the checksum of a message over n more bytes; that of an empty message is 0. */
static uint32_t npzi_crc(const uint32_t *table, uint32_t crc, const unsigned char *from, size_t n)
{
    uint32_t c = crc ^ NPZ_ONES; /* CRC.3 */
    size_t i;
    for (i = 0; i < n; i++) c = (c >> 8) ^ table[(c ^ from[i]) & 255]; /* CRC.2 */
    return c ^ NPZ_ONES;
}

/*
## 2  Numbers and names

Between arrays of one type the pattern of a number is copied, so a NaN keeps its payload.
Names are looked up in a hash table, which lies in the caller's list: array[h].first is 1 more
than the number of the first array whose name has the hash h, and `next` leads to the others.
*/
static const uint16_t npzi_one = 1;
#define NPZ_HIGH_FIRST (*(const unsigned char *)&npzi_one == 0) /* in this machine's memory */
static uint64_t npzi_get(const unsigned char *from, size_t width, int high_first)
{
    uint64_t value = 0;
    size_t i;
    for (i = 0; i < width; i++) value = value << 8 | from[high_first ? i : width - 1 - i];
    return value;
}
static void npzi_put(unsigned char *to, uint64_t value, size_t width, int high_first)
{
    size_t i;
    for (i = 0; i < width; i++, value >>= 8)
        to[high_first ? width - 1 - i : i] = (unsigned char)(value & 255);
}

/* Turns a number's pattern from one type into another of the same class. */
static int npzi_convert(uint64_t *pattern, int from, int to)
{
    const int bits = 8 * (npzi_type[to][1] - '0'), to_signed = to <= NPZ_I64;
    const uint64_t sign = (uint64_t)1 << (8 * (npzi_type[from][1] - '0') - 1);
    const uint64_t ones = from <= NPZ_I64 && (*pattern & sign) != 0 ? UINT64_MAX : 0; /* if < 0 */
    uint32_t half = (uint32_t)*pattern;
    double d;
    float s;
    if (from == to) return NPZ_OK;
    if (from < NPZ_F32) {
        if (ones != 0) *pattern |= ~(sign - 1);
        if (ones != 0 && !to_signed) return NPZ_ERANGE;
        return (*pattern ^ ones) >> (bits - 1) >> !to_signed != 0 ? NPZ_ERANGE : NPZ_OK;
    }
    memcpy(&s, &half, sizeof s);
    d = (double)s;
    if (from == NPZ_F32) return memcpy(pattern, &d, sizeof d) == NULL;
    memcpy(&d, pattern, sizeof d);
    if ((d >= 3.4028235677973366e38 || d <= -3.4028235677973366e38) && d - d == 0)
        return NPZ_ERANGE; /* finite, but from 2^128 - 2^103 on it would become infinite */
    s = (float)d;
    memcpy(&half, &s, sizeof half);
    *pattern = half;
    return NPZ_OK;
}

typedef struct npzi_call { /* the caller's list, room for a listing, how much of it is used */
    npz_array *array;
    npz_info *info;
    npz_context *context;
    size_t count, most, listed;
} npzi_call;
typedef struct npzi_zip {
    uint64_t directory, next, end; /* where; its next entry; end of the last member */
    int npy;                       /* it is none, but a single array */
    uint32_t crc;                  /* of what was written */
} npzi_zip;
typedef struct npzi_file {
    npzi_call *call;
    npzi_zip zip;
    FILE *stream;               /* NULL: only the checksum is wanted */
    const unsigned char *plain; /* the member that is being read, if it was inflated */
    uint64_t at, length;        /* when writing; when reading */
    uint32_t table[256];        /* T of CRC.2 */
    unsigned char chunk[NPZ_CHUNK];
} npzi_file;
static int npzi_about(const npzi_call *call, const char *name, int status)
{
    if (call->context != NULL) strcpy(call->context->name, name);
    return status;
}
/* The array of a name, or NULL; hash: its place in the table. */
static npz_array *npzi_find(const npzi_file *f, const char *name, size_t *hash)
{
    npz_array *const a = f->call->array;
    size_t i;
    if (f->call->count == 0) return NULL;
    *hash = npzi_crc(f->table, 0, (const unsigned char *)name, strlen(name)) % f->call->count;
    for (i = a[*hash].first; i > 0 && strcmp(a[i - 1].name, name) != 0;) i = a[i - 1].next;
    return i > 0 ? &a[i - 1] : NULL;
}

static int npzi_name_ok(const char *name)
{
    size_t n = 0;
    while ((unsigned char)name[n] >= ' ' && name[n] != 127) n++;
    return n > 0 && n < NPZ_NAME && name[n] == '\0';
}
/* Bytes of an array; SIZE_MAX if they are too many for this machine. */
static size_t npzi_bytes(size_t dims, const size_t *shape, size_t each)
{
    size_t i, n = each;
    for (i = 0; i < dims; i++) {
        if (shape[i] == 0) return 0;
        n = n > SIZE_MAX / 4 / shape[i] ? SIZE_MAX : n * shape[i];
    }
    return n;
}

/* Begins a call: checks the caller's list and makes the table of its names. */
static int npzi_begin(npzi_file *f, npzi_call *call, const char *path)
{
    npz_array *a = call->array;
    size_t i, hash;
    memset(f, 0, sizeof *f);
    npzi_crc_table(f->table);
    f->call = call;
    if (path == NULL || (a == NULL && call->count > 0)) return npzi_about(call, "", NPZ_ENULL);
    if (call->count > NPZ_MOST) return npzi_about(call, "", NPZ_ESIZE);
    for (i = 0; i < call->count; i++) a[i].first = a[i].mark = 0;
    for (i = 0; i < call->count; i++, a++) {
        npzi_about(call, "", 0);
        if (a->name == NULL) return NPZ_ENULL;
        if (!npzi_name_ok(a->name) || npzi_find(f, a->name, &hash) != NULL) return NPZ_ENAME;
        a->next = call->array[hash].first;
        call->array[hash].first = i + 1;
        npzi_about(call, a->name, 0);
        if (a->dims > NPZ_DIMS || a->type < NPZ_I8 || a->type > NPZ_F64 || NPZ_BYTES(a) == SIZE_MAX)
            return NPZ_EARRAY;
        if (a->data == NULL && NPZ_BYTES(a) > 0) return NPZ_ENULL;
    }
    return npzi_about(call, "", NPZ_OK);
}

NPZ_DEF npz_array npz_make(const char *name, int type, void *data, size_t dims, size_t a, size_t b)
{
    const npz_array made = {name, type, data, dims, {a, b, 0, 0, 0, 0, 0, 0}, 0, 0, 0};
    return made;
}
NPZ_DEF const char *npz_strerror(int status)
{
#define NPZ_TEXT(name, value, text) text,
    static const char *const text[] = {NPZ_STATUSES(NPZ_TEXT) "unknown status"};
    return text[status <= 0 && status >= NPZ_LAST_STATUS ? -status : 1 - NPZ_LAST_STATUS];
}

/*
## 3  Writing

A `.npz` file is a zip archive of `.npy` files, with a header before each and a directory of
all headers at the end. A header holds a checksum, so the data are read twice.
*/
static void npzi_write(npzi_file *f, const void *from, size_t n)
{
    f->zip.crc = npzi_crc(f->table, f->zip.crc, (const unsigned char *)from, n);
    f->at += n;
    if (f->stream != NULL) (void)fwrite(from, 1, n, f->stream); /* ferror tells if it fails */
}

static void npzi_write_npy(npzi_file *f, npz_array *a)
{
    const unsigned char *from = (const unsigned char *)a->data;
    char *const h = (char *)f->chunk;
    size_t i, n, whole, left, each = NPZ_EACH(a);
    unsigned char to[8];
    n = (size_t)sprintf(h, "\x93NUMPY\1%c  {'descr': '%c%s', 'fortran_order': False, 'shape': (", 0,
                        each == 1 ? '|' : '<', npzi_type[a->type]);
    for (i = 0; i < a->dims; i++)
        n += (size_t)sprintf(h + n, i == 0 ? "%llu" : ", %llu", (unsigned long long)a->shape[i]);
    n += (size_t)sprintf(h + n, a->dims == 1 ? ",), }" : "), }");
    whole = (n + 1 + 63) / 64 * 64;
    npzi_put(f->chunk + 8, whole - 10, 2, 0);
    sprintf(h + n, "%*s", (int)(whole - n), "\n");
    npzi_write(f, h, whole);
    for (left = NPZ_BYTES(a); left > 0; left -= each, from += each) {
        npzi_put(to, npzi_get(from, each, NPZ_HIGH_FIRST), each, 0);
        npzi_write(f, to, each);
    }
}

/* All headers twice: before each member, and in the directory, where its place is said too. */
static void npzi_write_npz(npzi_file *f, npz_array *array)
{
    unsigned char end[22] = {'P', 'K', 5, 6};
    FILE *const stream = f->stream;
    size_t i, k, count = f->call->count;
    for (k = 0; k < 2 * count; k++) {
        unsigned char h[46] = {'P', 'K', 1, 2, 20, 0, 20, 0, 0, 0, 0, 0, 0, 0, 0x21};
        npz_array *const a = &array[k % count];
        const size_t name = strlen(a->name);
        if (k == count) npzi_put(end + 16, f->at, 4, 0);
        if (k < count) { /* the checksum, and how many bytes */
            a->first = (size_t)f->at;
            f->stream = NULL;
            f->zip.crc = 0;
            npzi_write_npy(f, a);
            a->mark = f->zip.crc;
            a->next = (size_t)f->at - a->first;
            f->at = a->first;
            f->stream = stream;
        }
        const uint64_t field[6][2] = {{16, a->mark},  {20, a->next},   {24, a->next},
                                      {28, name + 4}, {38, 0x1800000}, {42, a->first}};
        for (i = 0; i < name; i++)
            if ((unsigned char)a->name[i] > 127) h[9] = 8; /* the name is UTF-8 */
        for (i = 0; i < 6; i++) npzi_put(h + field[i][0], field[i][1], i == 3 ? 2 : 4, 0);
        if (k < count) npzi_write(f, "PK\3\4", 4);
        npzi_write(f, k < count ? h + 6 : h, k < count ? 26 : 46);
        npzi_write(f, a->name, name);
        npzi_write(f, ".npy", 4);
        if (k < count) npzi_write_npy(f, a);
    }
    npzi_put(end + 8, count * 0x10001u, 4, 0); /* members on this disk, and in all */
    npzi_put(end + 12, f->at - NPZ_LOW(end + 16, 4), 4, 0);
    npzi_write(f, end, sizeof end);
}

NPZ_DEF int npz_save(const char *path, npz_array *array, size_t count, npz_context *context)
{
    npzi_call call = {array, NULL, context, count, 0, 0};
    char temporary[NPZ_PATH + 13];
    const size_t n = path == NULL ? 0 : strlen(path);
    uint64_t total = 22;
    struct stat there;
    npzi_file f;
    size_t i;
    int rc, file = -1;
    NPZ_TRY(npzi_begin(&f, &call, path));
    f.zip.npy = n >= 4 && strcmp(path + n - 4, ".npy") == 0;
    for (i = 0; i < count && total < NPZ_ONES && !f.zip.npy; i++)
        total += 1024 + NPZ_BYTES(&array[i]); /* its headers are shorter */
    if (total >= NPZ_ONES || (f.zip.npy && count != 1)) return NPZ_ESIZE;
    if (n == 0 || n >= NPZ_PATH) return NPZ_EFILE;
    if (stat(path, &there) == 0 && !S_ISREG(there.st_mode)) return NPZ_EPLACE;
    for (i = 0; i < 999 && file < 0; i++) { /* until a name is not taken */
        sprintf(temporary, "%s.tmp%08lx", path, (unsigned long)((uintptr_t)&f + i) & NPZ_ONES);
        file = NPZ_POSIX(open)(temporary, NPZ_NEW);
    }
    if (file < 0) return NPZ_EFILE;
    if ((f.stream = NPZ_POSIX(fdopen)(file, "wb")) == NULL)
        return NPZ_POSIX(close)(file), remove(temporary), NPZ_EFILE;
    (f.zip.npy ? npzi_write_npy : npzi_write_npz)(&f, array);
    rc = fflush(f.stream) == 0 && !ferror(f.stream) ? NPZ_OK : NPZ_EFILE;
    if (fclose(f.stream) == 0 && rc == NPZ_OK && npzi_rename(temporary, path) == 0) return NPZ_OK;
    return (void)remove(temporary), NPZ_EFILE;
}

/*
## 4  Reading

Each member's own header must agree with its entry in the directory, and each member begins
where the one before ends.
*/
typedef struct npzi_entry {
    npz_info info;
    unsigned char h[46];                 /* its header in the directory */
    int big;                             /* high bytes first */
    uint64_t from, stored, bytes, start; /* where; length, stored and not; of the numbers in it */
} npzi_entry;
/* Bytes at ... at + n - 1 of the file, or of a member that was inflated. */
static int npzi_fetch(npzi_file *f, void *to, uint64_t at, size_t n)
{
    if (f->plain != NULL) return memcpy(to, f->plain + at, n) == NULL;
    if (at > f->length || n > f->length - at) return NPZ_EFORMAT;
    if (fseek(f->stream, (long)at, SEEK_SET) != 0) return NPZ_EFILE;
    return fread(to, 1, n, f->stream) == n ? NPZ_OK : ferror(f->stream) ? NPZ_EFILE : NPZ_EFORMAT;
}

/* The next entry of the directory, and its member. An entry that is one bit away from our own is
   damaged; others may be anybody's. Python leaves room for zip64 sizes behind the member's name. */
static int npzi_next_member(npzi_file *f, npzi_entry *e)
{
    npz_context *const c = f->call->context;
    unsigned char own[30], extra[20] = {0}, *h = e->h, *at = f->chunk, *again = at + NPZ_CHUNK / 2;
    uint64_t odd;
    size_t name, rest, more;
    int rc;
    NPZ_TRY(npzi_fetch(f, h, f->zip.next, 46));
    NPZ_TRY(npzi_fetch(f, own, f->zip.end, 30));
    name = (size_t)NPZ_LOW(h + 28, 2);
    rest = name + (size_t)NPZ_LOW(h + 30, 2) + (size_t)NPZ_LOW(h + 32, 2);
    more = (size_t)NPZ_LOW(own + 28, 2);
    odd = NPZ_LOW(h + 36, 6) << 16 ^ NPZ_LOW(h + 4, 2) ^ ((uint64_t)0x1800000 << 32 | 20);
    if (NPZ_LOW(h, 4) != 0x02014b50 || 46 + rest > f->length - 22 - f->zip.next ||
        (odd != 0 && (odd & (odd - 1)) == 0))
        return NPZ_EFORMAT;
    if (name > NPZ_CHUNK / 2) return NPZ_ESIZE;
    NPZ_TRY(npzi_fetch(f, at, f->zip.next + 46, name));
    NPZ_TRY(npzi_fetch(f, again, f->zip.end + 30, name));
    if (more >= 20) NPZ_TRY(npzi_fetch(f, extra, f->zip.end + 30 + name, 20));
    if (name > 4 && name - 4 < NPZ_NAME && memcmp(at + name - 4, ".npy", 4) == 0)
        memcpy(e->info.name, at, name - 4);
    if (strlen(e->info.name) + 4 != name || !npzi_name_ok(e->info.name)) e->info.name[0] = '\0';
    e->stored = NPZ_LOW(h + 20, 4);
    e->bytes = NPZ_LOW(h + 24, 4);
    e->from = f->zip.end + 30 + name + more;
    if (((h[8] | h[9] << 8) & ~0x0806) != 0 || (h[10] | h[11] << 8 | 8) != 8 || h[34] != 0 ||
        e->stored == NPZ_ONES || e->bytes == NPZ_ONES)
        return NPZ_EZIP; /* flags allowed: how hard deflate tried; the name is UTF-8 */
    more = NPZ_LOW(extra, 4) == 0x00100001; /* sizes in 8 bytes */
    if (more && NPZ_LOW(own + 18, 8) == UINT64_MAX) memcpy(own + 18, h + 20, 8);
    if (NPZ_LOW(own, 4) != 0x04034b50 || memcmp(own + 4, h + 6, 24) != 0 || h[35] != 0 ||
        memcmp(again, at, name) != 0 || NPZ_LOW(h + 42, 4) != f->zip.end ||
        (more && (NPZ_LOW(extra + 4, 8) != e->bytes || NPZ_LOW(extra + 12, 8) != e->stored)) ||
        (h[10] == 0 && e->stored != e->bytes) || e->from > f->zip.directory ||
        e->stored > f->zip.directory - e->from)
        return NPZ_EFORMAT;
    f->zip.next += 46 + rest;
    f->zip.end = e->from + e->stored;
    if (h[10] == 0) return NPZ_OK;
    if (c == NULL || c->inflate == NULL) return NPZ_ECOMPRESSED;
    c->needed = (size_t)(e->bytes + e->stored);
    if (c->needed < e->bytes || c->work == NULL || c->work_bytes < c->needed) return NPZ_EWORK;
    again = c->work + e->bytes;
    NPZ_TRY(npzi_fetch(f, again, e->from, (size_t)e->stored));
    f->plain = c->work;
    e->from = 0;
    rc = c->inflate(c->user, c->work, (size_t)e->bytes, again, (size_t)e->stored);
    return rc != 0 ? NPZ_OK : NPZ_EFORMAT;
}

/* The header of a .npy: a text of three entries in alphabetical order, as NumPy writes them. */
static int npzi_read_npy(npzi_file *f, npzi_entry *e)
{
    const size_t most = e->bytes < NPZ_CHUNK - 1 ? (size_t)e->bytes : NPZ_CHUNK - 1;
    npz_info *const info = &e->info;
    char *const p = (char *)f->chunk, *const d = e->info.descr, word[6] = "", *at, *after;
    int n = 0, type, rc;
    NPZ_TRY(npzi_fetch(f, p, e->from, most));
    if (most < 12 || memcmp(p, "\x93NUMPY", 6) != 0 || p[6] < 1 || p[6] > 3 || p[7] != 0)
        return NPZ_EFORMAT;
    at = p + (p[6] == 1 ? 10 : 12);
    e->start = (uint64_t)(at - p) + NPZ_LOW(f->chunk + 8, p[6] == 1 ? 2 : 4);
    if (e->start > e->bytes) return NPZ_EFORMAT;
    p[e->start < most ? (size_t)e->start : most] = '\0';
    if (e->start > most || memcmp(at, "{'descr': [", 11) == 0) /* too long, or records */
        return strcpy(info->descr, "[...]") == NULL;
    (void)sscanf(at, "{'descr': '%31[^']', 'fortran_order': %5[A-Za-z], 'shape': (%n", info->descr,
                 word, &n); /* n: how far it got */
    info->fortran = strcmp(word, "True") == 0;
    if (n == 0 || (!info->fortran && strcmp(word, "False") != 0)) return NPZ_EFORMAT;
    for (at += n; *at != ')'; info->dims++) {
        const unsigned long long extent = strtoull(at, &after, 10);
        if (*at < '0' || *at > '9' || (*at == '0' && after > at + 1) || extent >= SIZE_MAX)
            return NPZ_EFORMAT;
        if (info->dims < NPZ_DIMS) info->shape[info->dims] = (size_t)extent;
        at = after;
        if (*at == ')' && info->dims > 0) continue;
        if (*at++ != ',') return NPZ_EFORMAT;
        at += strspn(at, " ");
    }
    if (strncmp(at, "), }", 4) != 0) return NPZ_EFORMAT;
    at += 4 + strspn(at + 4, " ");
    if (*at != '\n' || at + 1 != p + e->start) return NPZ_EFORMAT;
    for (type = NPZ_F64; type > NPZ_OTHER && strcmp(d + 1, npzi_type[type]) != 0;) type--;
    if (strchr(d[1] != '\0' && d[2] == '1' ? "|<>" : "<>", d[0]) == NULL || info->dims > NPZ_DIMS)
        type = NPZ_OTHER;
    info->type = type;
    e->big = d[0] == '>';
    return type == NPZ_OTHER || e->bytes - e->start == NPZ_BYTES(info) ? NPZ_OK : NPZ_EFORMAT;
}

/* The next entry; its numbers go to the array of its name. Damage comes before misfits. */
static int npzi_next(npzi_file *f, npzi_entry *e, int store)
{
    npzi_call *const c = f->call;
    const npz_info *const i = &e->info;
    npz_array *a = NULL;
    unsigned char *to = NULL;
    uint64_t at, pattern;
    uint32_t crc = 0;
    size_t hash, n, k;
    int rc, fits = NPZ_OK;
    f->plain = NULL;
    memset(e, 0, sizeof *e);
    e->bytes = f->length;
    if (f->zip.npy && c->count > 0) strcpy(e->info.name, c->array->name);
    if (!f->zip.npy) NPZ_TRY(npzi_next_member(f, e));
    if (f->zip.npy || i->name[0] != '\0') { /* else a name that is not allowed */
        NPZ_TRY(npzi_read_npy(f, e));
        if (store && c->listed++ < c->most) c->info[c->listed - 1] = *i;
        a = npzi_find(f, i->name, &hash);
    }
    if (a == NULL && store) return NPZ_OK;
    if (a != NULL) {
        to = (unsigned char *)a->data;
        if (a->mark++ != (uint32_t)store) return NPZ_EFORMAT; /* a name twice */
        if (i->fortran && i->dims > 1) fits = NPZ_EORDER;
        for (k = 0; k < NPZ_DIMS; k++)
            if (a->dims != i->dims || (k < a->dims && a->shape[k] != i->shape[k]))
                fits = NPZ_ESHAPE;
        if (i->type == NPZ_OTHER || (i->type < NPZ_F32) != (a->type < NPZ_F32)) fits = NPZ_ETYPE;
    }
    for (at = 0; at < e->bytes; at += n) {
        n = (size_t)((at < e->start ? e->start : e->bytes) - at);
        if (n > NPZ_CHUNK) n = NPZ_CHUNK;
        NPZ_TRY(npzi_fetch(f, f->chunk, e->from + at, n));
        crc = npzi_crc(f->table, crc, f->chunk, n);
        for (k = 0; a != NULL && at >= e->start && k < n && fits == NPZ_OK; k += NPZ_EACH(i)) {
            pattern = npzi_get(f->chunk + k, NPZ_EACH(i), e->big);
            fits = npzi_convert(&pattern, i->type, a->type);
            if (store) npzi_put(to, pattern, NPZ_EACH(a), NPZ_HIGH_FIRST);
            to += NPZ_EACH(a);
        }
    }
    return !f->zip.npy && crc != NPZ_LOW(e->h + 16, 4) ? NPZ_EFORMAT : fits;
}

/* Goes through an open file: once to check everything, once to store. */
static int npzi_pass(npzi_file *f, int store)
{
    const uint64_t end = f->length - 22;
    const npz_array *const a = f->call->array;
    unsigned char h[22] = {0};
    npzi_entry e;
    size_t i, entries = 1;
    int rc;
    f->plain = NULL;
    f->zip.end = 0;
    if (!f->zip.npy) {
        NPZ_TRY(npzi_fetch(f, h, end, 22));
        entries = (size_t)NPZ_LOW(h + 8, 2);
        f->zip.directory = f->zip.next = NPZ_LOW(h + 16, 4);
        if (entries > NPZ_MOST && f->zip.directory == NPZ_ONES) return NPZ_EZIP;
        if (NPZ_LOW(h, 8) != 0x06054b50 || NPZ_LOW(h + 20, 2) != 0 ||
            memcmp(h + 8, h + 10, 2) != 0 || f->zip.directory > end ||
            NPZ_LOW(h + 12, 4) != end - f->zip.directory)
            return NPZ_EFORMAT;
    }
    for (; entries > 0; entries--)
        if ((rc = npzi_next(f, &e, store)) != NPZ_OK) return npzi_about(f->call, e.info.name, rc);
    if (!f->zip.npy && (f->zip.end != f->zip.directory || f->zip.next != end)) return NPZ_EFORMAT;
    for (i = 0; i < f->call->count; i++)
        if (a[i].mark == (uint32_t)store) return npzi_about(f->call, a[i].name, NPZ_ENAME);
    return NPZ_OK;
}

static int npzi_read(const char *path, npzi_call *call)
{
    struct stat there;
    npzi_file f;
    int rc, store;
    NPZ_TRY(npzi_begin(&f, call, path));
    if (stat(path, &there) == 0 && !S_ISREG(there.st_mode)) return NPZ_EPLACE;
    if ((f.stream = fopen(path, "rb")) == NULL) return NPZ_EFILE;
    rc = fseek(f.stream, 0, SEEK_END) == 0 ? NPZ_OK : NPZ_EFILE;
    f.length = (uint64_t)ftell(f.stream);
    if (rc == NPZ_OK) rc = (long)f.length < 0 ? NPZ_EFILE : npzi_fetch(&f, f.chunk, 0, 6);
    f.zip.npy = memcmp(f.chunk, "\x93NUMPY", 6) == 0;
    for (store = 0; store < 2 && rc == NPZ_OK; store++) rc = npzi_pass(&f, store);
    (void)fclose(f.stream);
    return rc;
}

NPZ_DEF int npz_load(const char *path, npz_array *array, size_t count, npz_context *context)
{
    npzi_call call = {array, NULL, context, count, 0, 0};
    return npzi_read(path, &call);
}
NPZ_DEF int npz_list(const char *path, npz_info *info, size_t *count, size_t most, npz_context *c)
{
    npzi_call call = {NULL, info, c, 0, most, 0};
    int rc;
    if (count == NULL || (info == NULL && most > 0)) return NPZ_ENULL;
    NPZ_TRY(npzi_read(path, &call));
    *count = call.listed;
    return NPZ_OK;
}
#endif /* NPZ_IMPLEMENTATION */
