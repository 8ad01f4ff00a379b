/* npz.h - arrays in NumPy's files, for C - public domain or MIT-0, as normlayers.h: see LICENSE */
/*
# npz.h: arrays in NumPy's files

*How does a C program read weights from Python, so that a damaged file is never taken for a
good one?* Write `#define NPZ_IMPLEMENTATION` before the `#include` in one C99 or C++11 file.
It needs the C library only and allocates no memory; see docs/files.md.

- `npz_save` writes to a new temporary file in the same folder and renames it at the end. If
  a step fails, the old file stays. Only regular files are read and replaced. A symbolic link
  is followed when reading; saving replaces the link, not what it points to.
- `npz_load` checks the whole file before it changes an array. Each number in the file is
  compared with what is possible; members do not overlap and leave no gaps.
*/
#ifndef NPZ_H
#define NPZ_H
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

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
#undef NPZ_VALUE

enum npz_type { /* NPZ_OTHER: can be listed, but not loaded */
    NPZ_OTHER, NPZ_I8, NPZ_I16, NPZ_I32, NPZ_I64, NPZ_U8, NPZ_U16, NPZ_U32, NPZ_U64, NPZ_F32,
    NPZ_F64
};
enum { NPZ_DIMS = 8, NPZ_NAME = 256, NPZ_DESCR = 32 };

typedef struct npz_array { /* an array in memory; npz_make fills it */
    const char *name;            /* at most 255 bytes, no control characters: "dense/kernel:0"    */
    int type;
    void *data;                  /* arrays that are loaded must not overlap                       */
    size_t dims, shape[NPZ_DIMS]; /* 0 dims: a single number                                      */
    size_t first, next;          /* private: a hash table of the names, and                       */
    uint32_t mark;               /* the checksum, or whether the array was found                  */
} npz_array;

typedef struct npz_info { /* an array in a file */
    char name[NPZ_NAME];         /* "" in a .npy file                                             */
    char descr[NPZ_DESCR];       /* the type in NumPy's words: "<f4", "|b1", "<U5"; may be cut    */
    int type, fortran;           /* fortran: stored by columns                                    */
    size_t dims, shape[NPZ_DIMS]; /* of more than 8 dims the first 8 extents                      */
} npz_info;

/* Inflates a raw deflate stream into exactly out_bytes bytes; returns 0 if it cannot. */
typedef int npz_inflate(void *user, unsigned char *out, size_t out_bytes, const unsigned char *in,
                        size_t in_bytes);

typedef struct npz_context { /* may be NULL, or all zero */
    npz_inflate *inflate;        /* in: reads compressed members                                  */
    void *user;                  /* in: passed to inflate                                         */
    unsigned char *work;         /* in: memory for the largest member, compressed and not         */
    size_t work_bytes, needed;   /* needed: out, with NPZ_EWORK                                   */
    char name[NPZ_NAME];         /* out: the array that failed, or ""                             */
} npz_context;

#ifndef NPZ_DEF
#define NPZ_DEF
#endif
NPZ_DEF const char *npz_strerror(int status);

/* An array of 0 to 2 dimensions: a number, [a] or [a][b]. */
NPZ_DEF npz_array npz_make(const char *name, int type, void *data, size_t dims, size_t a, size_t b);

/* Writes all arrays, or leaves what was there. A path that ends in .npy gives that format and takes
   one array; any other path gives .npz. Writes to the private fields of the list. */
NPZ_DEF int npz_save(const char *path, npz_array *array, size_t count, npz_context *context);

/* Reads the arrays of these names, in any order, and with these shapes. Float and double are
   converted, and integers if each number fits. The array of a .npy file goes by any name. */
NPZ_DEF int npz_load(const char *path, npz_array *array, size_t count, npz_context *context);

/* Checks the file, fills at most `most` entries, and says how many there are. */
NPZ_DEF int npz_list(const char *path, npz_info *info, size_t *count, size_t most,
                     npz_context *context);
#ifdef __cplusplus
}
#endif
#endif /* NPZ_H */

#if defined(NPZ_IMPLEMENTATION) && !defined(NPZ_IMPLEMENTED)
#define NPZ_IMPLEMENTED
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#ifdef _WIN32 /* there rename does not replace */
#include <windows.h>
#define S_ISREG(mode) (((mode) & _S_IFMT) == _S_IFREG)
#define npzi_rename(from, to) (MoveFileExA(from, to, MOVEFILE_REPLACE_EXISTING) ? 0 : -1)
#else
#define npzi_rename rename
#endif

#define NPZ_CHUNK 4096     /* bytes of a file that are on the stack at a time */
#define NPZ_MOST 65534     /* arrays in a file: 65535 announces zip64         */
#define NPZ_MOST_PATH 4096 /* bytes of a path, with the zero at its end       */
#define NPZ_ONES 0xffffffffu
#define NPZ_TRY(call) if ((rc = (call)) != NPZ_OK) return rc
#define NPZ_GOOD(condition) ((condition) ? NPZ_OK : NPZ_EFORMAT)
#define NPZ_LOW(from, bytes) npzi_get(from, bytes, 0)
#define NPZ_EACH(array) ((size_t)(npzi_type[(array)->type][1] - '0'))
#define NPZ_BYTES(array) npzi_bytes((array)->dims, (array)->shape, NPZ_EACH(array))

static const char npzi_type[][3] = {"?0", "i1", "i2", "i4", "i8", "u1",
                                    "u2", "u4", "u8", "f4", "f8"}; /* by enum npz_type */

/*
## 1  The checksum

CRC-32 is the remainder of a polynomial division modulo 2. The bits of the message are the
coefficients, and subtraction is the exclusive or. One bit of the remainder c leaves at a
time; if it was a 1, the divisor is subtracted. The bits stand in reversed order, so the bit
that leaves is the lowest, and P = 3988292384 (edb88320 in base 16).

    c′ = ⌊c/2⌋ ⊕ P·(c mod 2)                                          [CRC.1]

Eight steps at once come from a table: T(k) is what c = k becomes after eight steps.

    c′ = ⌊c/2⁸⌋ ⊕ T((c ⊕ byte) mod 2⁸)                                [CRC.2]

Zeros at the start of a message would not count, so the first 32 bits are inverted, and so
are all bits of the result.

    crc = c ⊕ (2³² − 1), where c starts at 2³² − 1                    [CRC.3]

Any burst of up to 32 wrong bits is found, and all but one in 2³² of other errors.
*/
static void npzi_crc_table(uint32_t *table)
{
    uint32_t k, c;
    int bit;
    for (k = 0; k < 256; k++) {
        c = k;
        for (bit = 0; bit < 8; bit++)
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
## 2  Numbers

A number is a pattern of bytes. Between arrays of one type it is copied, so a NaN keeps its
payload. A double becomes the nearest float, unless a finite one would become infinite.
*/
static const uint16_t npzi_one = 1;
#define NPZ_HIGH_FIRST (*(const unsigned char *)&npzi_one == 0) /* in this machine's memory */

static uint64_t npzi_get(const unsigned char *from, size_t bytes, int high_first)
{
    uint64_t value = 0;
    size_t i;
    for (i = 0; i < bytes; i++) value = value << 8 | from[high_first ? i : bytes - 1 - i];
    return value;
}

static void npzi_put(unsigned char *to, uint64_t value, size_t bytes, int high_first)
{
    size_t i;
    for (i = 0; i < bytes; i++, value >>= 8)
        to[high_first ? bytes - 1 - i : i] = (unsigned char)(value & 255);
}

/* Turns a number's pattern from one type into another of the same class. */
static int npzi_convert(uint64_t *pattern, int from, int to)
{
    const int bits = 8 * (npzi_type[to][1] - '0'), to_signed = to <= NPZ_I64;
    const uint64_t sign = (uint64_t)1 << (8 * (npzi_type[from][1] - '0') - 1);
    const int negative = from <= NPZ_I64 && (*pattern & sign) != 0;
    uint32_t half = (uint32_t)*pattern;
    double d;
    float s;
    if (from == to) return NPZ_OK;
    if (from < NPZ_F32) {
        if (negative) *pattern |= ~(sign - 1);
        if (negative && !to_signed) return NPZ_ERANGE;
        if (negative) return ~*pattern >> (bits - 1) != 0 ? NPZ_ERANGE : NPZ_OK;
        return *pattern >> (bits - 1) >> !to_signed != 0 ? NPZ_ERANGE : NPZ_OK;
    }
    memcpy(&s, &half, sizeof s);
    memcpy(&d, pattern, sizeof d);
    if (from == NPZ_F64) {
        if ((d >= 3.4028235677973366e38 || d <= -3.4028235677973366e38) && d - d == 0)
            return NPZ_ERANGE; /* finite, but from 2^128 - 2^103 on it would become infinite */
        s = (float)d;
        memcpy(&half, &s, sizeof half);
        *pattern = half;
    } else {
        d = (double)s;
        memcpy(pattern, &d, sizeof d);
    }
    return NPZ_OK;
}

/*
## 3  The arrays of a call

The names of a file are looked up in a hash table of the caller's names. It lies in the
list: array[h].first is the number of the first array whose name has the hash h, plus 1, and
`next` leads to the others.
*/
typedef struct npzi_file { /* a file that is being written or read, and the call that wants it */
    npz_array *array;
    npz_info *info;
    npz_context *context, none;
    size_t count, most, listed;
    FILE *stream;                  /* NULL: only the checksum is wanted                     */
    const unsigned char *plain;    /* the member that is being read, if it was inflated     */
    uint64_t at, length;           /* position; length, when reading                        */
    uint64_t directory, next, end; /* an archive's; its next entry; end of the last member  */
    int npy, failed;               /* a single array; something could not be written        */
    uint32_t crc, table[256];      /* of what was written; T of CRC.2                       */
    unsigned char chunk[NPZ_CHUNK];
} npzi_file;

/* The array of a name, or NULL; hash: its place in the table. */
static npz_array *npzi_find(const npzi_file *f, const char *name, size_t *hash)
{
    size_t i;
    if (f->count == 0) return NULL;
    *hash = npzi_crc(f->table, 0, (const unsigned char *)name, strlen(name)) % f->count;
    for (i = f->array[*hash].first; i > 0; i = f->array[i - 1].next)
        if (strcmp(f->array[i - 1].name, name) == 0) return &f->array[i - 1];
    return NULL;
}

static int npzi_name_ok(const char *name)
{
    size_t n;
    for (n = 0; name[n] != '\0'; n++)
        if ((unsigned char)name[n] < ' ' || name[n] == 127) return 0;
    return n > 0 && n < NPZ_NAME;
}

/* Bytes of an array; SIZE_MAX if they are too many for this machine. */
static size_t npzi_bytes(size_t dims, const size_t *shape, size_t each)
{
    size_t i, n = each;
    for (i = 0; i < dims; i++)
        if (shape[i] == 0) return 0;
    for (i = 0; i < dims && n > 0; n *= shape[i++])
        if (shape[i] > SIZE_MAX / 4 / n) return SIZE_MAX;
    return n;
}

/* Begins a call: checks the caller's list and makes the table of its names. */
static int npzi_begin(npzi_file *f, const char *path, npz_array *a, size_t count,
                      npz_context *context)
{
    size_t i, hash;
    memset(f, 0, sizeof *f);
    npzi_crc_table(f->table);
    f->array = a;
    f->count = count;
    f->context = context == NULL ? &f->none : context;
    f->context->name[0] = '\0';
    if (path == NULL || (a == NULL && count > 0)) return NPZ_ENULL;
    if (count > NPZ_MOST) return NPZ_ESIZE;
    for (i = 0; i < count; i++) a[i].first = a[i].mark = 0;
    for (i = 0; i < count; i++, a++) {
        if (a->name == NULL) return NPZ_ENULL;
        if (!npzi_name_ok(a->name) || npzi_find(f, a->name, &hash) != NULL) return NPZ_ENAME;
        a->next = f->array[hash].first;
        f->array[hash].first = i + 1;
        strcpy(f->context->name, a->name);
        if (a->dims > NPZ_DIMS || a->type < NPZ_I8 || a->type > NPZ_F64 || NPZ_BYTES(a) == SIZE_MAX)
            return NPZ_EARRAY;
        if (a->data == NULL && NPZ_BYTES(a) > 0) return NPZ_ENULL;
    }
    f->context->name[0] = '\0';
    return NPZ_OK;
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
## 4  Writing

A `.npy` file is a line of text, a Python dictionary, padded to a multiple of 64, and then
the data. A `.npz` file is a zip archive of `.npy` files: a header before each of them, and
at the end a directory that repeats every header. A checksum stands before its data, so the
data are read twice, the first time without a stream to write to.
*/
static void npzi_write(npzi_file *f, const void *from, size_t n)
{
    f->crc = npzi_crc(f->table, f->crc, (const unsigned char *)from, n);
    f->at += n;
    if (f->stream != NULL && !f->failed && fwrite(from, 1, n, f->stream) != n) f->failed = 1;
}

/* The .npy header of an array, into f->chunk: how many bytes. */
static size_t npzi_text(npzi_file *f, const npz_array *a)
{
    char *text = (char *)f->chunk + 10;
    size_t i, n, whole;
    n = (size_t)sprintf(text, "{'descr': '%c%s', 'fortran_order': False, 'shape': (",
                        NPZ_EACH(a) == 1 ? '|' : '<', npzi_type[a->type]);
    for (i = 0; i < a->dims; i++)
        n += (size_t)sprintf(text + n, i == 0 ? "%llu" : ", %llu", (unsigned long long)a->shape[i]);
    n += (size_t)sprintf(text + n, a->dims == 1 ? ",), }" : "), }");
    whole = (n + 11 + 63) / 64 * 64;
    memcpy(f->chunk, "\x93NUMPY\x01", 8); /* version 1, and 0 */
    npzi_put(f->chunk + 8, whole - 10, 2, 0);
    sprintf(text + n, "%*s", (int)(whole - 10 - n), "\n");
    return whole;
}

static void npzi_write_npy(npzi_file *f, const npz_array *a)
{
    const unsigned char *from = (const unsigned char *)a->data;
    size_t left, each = NPZ_EACH(a);
    unsigned char to[8];
    npzi_write(f, f->chunk, npzi_text(f, a));
    for (left = NPZ_BYTES(a); left > 0; left -= each, from += each) {
        npzi_put(to, npzi_get(from, each, NPZ_HIGH_FIRST), each, 0);
        npzi_write(f, to, each);
    }
}

/* A member's header: before it, or in the directory, which says where the member begins. */
static void npzi_write_header(npzi_file *f, const npz_array *a, int listed)
{
    unsigned char h[46] = {'P', 'K', 1, 2, 20, 0, 20}; /* made by and for version 2.0 */
    const size_t name = strlen(a->name);
    size_t i;
    for (i = 0; i < name; i++)
        if ((unsigned char)a->name[i] > 127) h[9] = 8; /* the name is UTF-8 */
    npzi_put(h + 14, 0x21, 2, 0); /* 1980-01-01, 0:00 */
    npzi_put(h + 16, a->mark, 4, 0);
    npzi_put(h + 20, a->next, 4, 0); /* bytes as stored, and as they are */
    npzi_put(h + 24, a->next, 4, 0);
    npzi_put(h + 28, name + 4, 2, 0);
    npzi_put(h + 38, 0x1800000, 4, 0); /* attributes, as NumPy has them */
    npzi_put(h + 42, a->first, 4, 0);
    if (!listed) npzi_write(f, "PK\3\4", 4);
    npzi_write(f, listed ? h : h + 6, listed ? 46 : 26);
    npzi_write(f, a->name, name);
    npzi_write(f, ".npy", 4);
}

static void npzi_write_npz(npzi_file *f, npz_array *array, size_t count)
{
    FILE *const stream = f->stream;
    unsigned char end[22] = {'P', 'K', 5, 6};
    npz_array *a;
    uint64_t start;
    for (a = array; a < array + count; a++) {
        a->first = (size_t)f->at;
        a->next = NPZ_BYTES(a) + npzi_text(f, a);
        f->stream = NULL;
        f->crc = 0;
        npzi_write_npy(f, a);
        a->mark = f->crc;
        f->at = a->first;
        f->stream = stream;
        npzi_write_header(f, a, 0);
        npzi_write_npy(f, a);
    }
    start = f->at;
    for (a = array; a < array + count; a++) npzi_write_header(f, a, 1);
    npzi_put(end + 8, count * 0x10001u, 4, 0); /* members on this disk, and in all */
    npzi_put(end + 12, f->at - start, 4, 0);
    npzi_put(end + 16, start, 4, 0);
    npzi_write(f, end, sizeof end);
}

NPZ_DEF int npz_save(const char *path, npz_array *array, size_t count, npz_context *context)
{
    char temporary[NPZ_MOST_PATH + 13];
    const size_t n = path == NULL ? 0 : strlen(path);
    const int npy = n >= 4 && strcmp(path + n - 4, ".npy") == 0;
    uint64_t bytes = 22, mark = (uint64_t)(uintptr_t)&bytes;
    struct stat there;
    npzi_file f;
    size_t i;
    int rc;
    NPZ_TRY(npzi_begin(&f, path, array, count, context));
    for (i = 0; i < count && bytes < NPZ_ONES && !npy; i++)
        bytes += 84 + 2 * strlen(array[i].name) + npzi_text(&f, &array[i]) + NPZ_BYTES(&array[i]);
    if (bytes >= NPZ_ONES || (npy && count != 1)) return NPZ_ESIZE;
    if (n == 0 || n >= NPZ_MOST_PATH) return NPZ_EFILE;
    if (stat(path, &there) == 0 && !S_ISREG(there.st_mode)) return NPZ_EPLACE;
    for (i = 0; i < 16 && f.stream == NULL; i++) { /* until a name is not taken */
        mark = mark * 6364136223846793005u + 1442695040888963407u; /* its high bits are best */
        sprintf(temporary, "%s.tmp%08lx", path, (unsigned long)(mark >> 32));
        f.stream = fopen(temporary, "wbx"); /* x: only if it is new; most C99 libraries know it */
    }
    if (f.stream == NULL) return NPZ_EFILE;
    if (npy) npzi_write_npy(&f, array);
    if (!npy) npzi_write_npz(&f, array, count);
    if (fflush(f.stream) != 0 || ferror(f.stream)) f.failed = 1;
    if (fclose(f.stream) != 0 || f.failed || npzi_rename(temporary, path) != 0) {
        (void)remove(temporary);
        return NPZ_EFILE;
    }
    return NPZ_OK;
}

/*
## 5  Reading

An archive is read by the directory at its end. Each member's own header must agree with its
entry there, and each member begins where the one before ends.
*/
typedef struct npzi_entry {
    npz_info info;
    int hidden, big;              /* has no name that is allowed; high bytes first */
    uint64_t from, stored, bytes; /* the member: where, stored, inflated           */
    uint64_t start;               /* of the numbers in the member                  */
    uint32_t crc;
} npzi_entry;

/* Bytes at ... at + n - 1 of the file, or of a member that was inflated. */
static int npzi_fetch(npzi_file *f, unsigned char *to, uint64_t at, size_t n)
{
    if (f->plain != NULL) return memcpy(to, f->plain + at, n) == NULL;
    if (at > f->length || n > f->length - at) return NPZ_EFORMAT;
    if (at != f->at && fseek(f->stream, (long)at, SEEK_SET) != 0) return NPZ_EFILE;
    f->at = at + n;
    if (fread(to, 1, n, f->stream) == n) return NPZ_OK;
    f->at = f->length + 1; /* unknown */
    return ferror(f->stream) ? NPZ_EFILE : NPZ_EFORMAT;
}

static int npzi_unpack(npzi_file *f, npzi_entry *e)
{
    npz_context *const c = f->context;
    const size_t in = (size_t)e->stored, out = (size_t)e->bytes;
    int rc;
    if (c->inflate == NULL) return NPZ_ECOMPRESSED;
    c->needed = out + in;
    if (c->needed < out || c->work == NULL || c->work_bytes < c->needed) return NPZ_EWORK;
    NPZ_TRY(npzi_fetch(f, c->work + out, e->from, in));
    f->plain = c->work;
    e->from = 0;
    return NPZ_GOOD(c->inflate(c->user, c->work, out, c->work + out, in));
}

/* The end of an archive's directory, which is the end of the file. */
static int npzi_start(npzi_file *f, size_t *entries)
{
    const uint64_t end = f->length - 22;
    unsigned char h[22];
    int rc;
    if (f->length < 22) return NPZ_EFORMAT;
    NPZ_TRY(npzi_fetch(f, h, end, 22));
    *entries = (size_t)NPZ_LOW(h + 8, 2);
    f->directory = f->next = NPZ_LOW(h + 16, 4);
    if (NPZ_LOW(h, 4) != 0x06054b50 || memcmp(h + 8, h + 10, 2) != 0) return NPZ_EFORMAT;
    if (*entries > NPZ_MOST || f->directory == NPZ_ONES) return NPZ_EZIP;
    return NPZ_GOOD(NPZ_LOW(h + 4, 4) == 0 && NPZ_LOW(h + 20, 2) == 0 && f->directory <= end &&
                    NPZ_LOW(h + 12, 4) == end - f->directory);
}

/* The next entry h of the directory. One that is one bit away from our own is damaged; others may
   have been made by any program. The name is left in f->chunk. */
static int npzi_listed(npzi_file *f, npzi_entry *e, unsigned char *h)
{
    const uint64_t room = f->length - 22 - f->next;
    size_t name, rest;
    uint64_t odd;
    int rc;
    if (room < 46) return NPZ_EFORMAT;
    NPZ_TRY(npzi_fetch(f, h, f->next, 46));
    name = (size_t)NPZ_LOW(h + 28, 2);
    rest = name + (size_t)NPZ_LOW(h + 30, 2) + (size_t)NPZ_LOW(h + 32, 2);
    odd = NPZ_LOW(h + 36, 6) << 16 ^ NPZ_LOW(h + 4, 2) ^ ((uint64_t)0x1800000 << 32 | 20);
    if (NPZ_LOW(h, 4) != 0x02014b50 || rest > room - 46 || (odd != 0 && (odd & (odd - 1)) == 0))
        return NPZ_EFORMAT;
    if (name > NPZ_CHUNK / 2) return NPZ_ESIZE;
    NPZ_TRY(npzi_fetch(f, f->chunk, f->next + 46, name));
    f->next += 46 + rest;
    e->hidden = name <= 4 || name - 4 >= NPZ_NAME || memcmp(f->chunk + name - 4, ".npy", 4) != 0;
    if (!e->hidden) memcpy(e->info.name, f->chunk, name - 4);
    e->hidden |= strlen(e->info.name) + 4 != name || !npzi_name_ok(e->info.name);
    e->crc = (uint32_t)NPZ_LOW(h + 16, 4);
    e->stored = NPZ_LOW(h + 20, 4);
    e->bytes = NPZ_LOW(h + 24, 4);
    if (((h[8] | h[9] << 8) & ~0x0806) != 0 || (h[10] | h[11] << 8 | 8) != 8 || h[34] != 0 ||
        e->stored == NPZ_ONES || e->bytes == NPZ_ONES)
        return NPZ_EZIP; /* flags allowed: how hard deflate tried; the name is UTF-8 */
    if (h[10] == 0 && e->stored != e->bytes) return NPZ_EFORMAT;
    return NPZ_GOOD(NPZ_LOW(h + 42, 4) == f->end && h[35] == 0);
}

/* A member's own header. Python leaves room for zip64 sizes behind the name. */
static int npzi_next_member(npzi_file *f, npzi_entry *e)
{
    unsigned char h[46], own[30], extra[20] = {0}, *name = f->chunk + NPZ_CHUNK / 2;
    size_t n, more;
    int same, rc;
    NPZ_TRY(npzi_listed(f, e, h));
    NPZ_TRY(npzi_fetch(f, own, f->end, 30));
    n = (size_t)NPZ_LOW(h + 28, 2);
    more = (size_t)NPZ_LOW(own + 28, 2);
    NPZ_TRY(npzi_fetch(f, name, f->end + 30, n));
    if (more >= 20) NPZ_TRY(npzi_fetch(f, extra, f->end + 30 + n, 20));
    same = memcmp(own + 18, h + 20, 8) == 0;
    if (!same && NPZ_LOW(own + 18, 8) != UINT64_MAX) return NPZ_EFORMAT;
    if (NPZ_LOW(extra, 4) == 0x00100001)
        same = NPZ_LOW(extra + 4, 8) == e->bytes && NPZ_LOW(extra + 12, 8) == e->stored;
    e->from = f->end + 30 + n + more;
    if (NPZ_LOW(own, 4) != 0x04034b50 || memcmp(own + 4, h + 6, 14) != 0 || !same ||
        memcmp(own + 26, h + 28, 2) != 0 || memcmp(name, f->chunk, n) != 0 ||
        e->from > f->directory || e->stored > f->directory - e->from)
        return NPZ_EFORMAT;
    f->end = e->from + e->stored;
    return h[10] == 8 ? npzi_unpack(f, e) : NPZ_OK;
}

/* The text of a .npy file: three entries in alphabetical order, as NumPy writes them. */
static int npzi_parse(npzi_entry *e, const char *at, const char *end)
{
    npz_info *const info = &e->info;
    const char *const d = info->descr;
    char word[6] = "", *after;
    int n = 0, type;
    (void)sscanf(at, "{'descr': '%31[^']', 'fortran_order': %5[A-Za-z], 'shape': (%n", info->descr,
                 word, &n); /* n: how far it got */
    info->fortran = strcmp(word, "True") == 0;
    if (n == 0 || (!info->fortran && strcmp(word, "False") != 0)) return 0;
    for (at += n; *at != ')'; info->dims++) {
        const unsigned long long extent = strtoull(at, &after, 10);
        if (*at < '0' || *at > '9' || (*at == '0' && after > at + 1)) return 0;
        if (extent >= SIZE_MAX) return 0;
        if (info->dims < NPZ_DIMS) info->shape[info->dims] = (size_t)extent;
        at = after;
        if (*at == ')' && info->dims > 0) continue;
        if (*at++ != ',') return 0;
        at += strspn(at, " ");
    }
    if (strncmp(at, "), }", 4) != 0) return 0;
    at += 4 + strspn(at + 4, " ");
    if (*at != '\n' || at + 1 != end) return 0;
    for (type = NPZ_F64; type > NPZ_OTHER && strcmp(d + 1, npzi_type[type]) != 0;) type--;
    if (strchr(d[1] != '\0' && d[2] == '1' ? "|<>" : "<>", d[0]) == NULL || info->dims > NPZ_DIMS ||
        type == NPZ_OTHER)
        return 1;
    info->type = type;
    e->big = d[0] == '>';
    return e->bytes - e->start == NPZ_BYTES(info);
}

static int npzi_read_npy(npzi_file *f, npzi_entry *e)
{
    const size_t most = e->bytes < NPZ_CHUNK - 1 ? (size_t)e->bytes : NPZ_CHUNK - 1;
    unsigned char *const p = f->chunk;
    size_t first;
    int rc;
    NPZ_TRY(npzi_fetch(f, p, e->from, most));
    if (most < 12 || memcmp(p, "\x93NUMPY", 6) != 0 || p[6] < 1 || p[6] > 3 || p[7] != 0)
        return NPZ_EFORMAT;
    first = p[6] == 1 ? 10 : 12;
    e->start = first + NPZ_LOW(p + 8, first - 8);
    if (e->start > e->bytes) return NPZ_EFORMAT;
    p[e->start < most ? (size_t)e->start : most] = '\0';
    if (e->start <= most && memcmp(p + first, "{'descr': [", 11) != 0)
        return NPZ_GOOD(npzi_parse(e, (char *)p + first, (char *)p + e->start));
    strcpy(e->info.descr, "[...]"); /* records, or a text longer than the buffer */
    return NPZ_OK;
}

/* Goes through a member: the checksum, and the numbers if an array wants them. */
static int npzi_scan(npzi_file *f, const npzi_entry *e, const npz_array *a, int store)
{
    unsigned char *to = a == NULL ? NULL : (unsigned char *)a->data;
    const size_t each = NPZ_EACH(&e->info);
    uint64_t at, left, pattern;
    uint32_t crc = 0;
    size_t n, i;
    int rc, fits = NPZ_OK;
    for (at = 0; at < e->bytes; at += n) {
        left = (at < e->start ? e->start : e->bytes) - at;
        n = left < NPZ_CHUNK ? (size_t)left : NPZ_CHUNK;
        NPZ_TRY(npzi_fetch(f, f->chunk, e->from + at, n));
        crc = npzi_crc(f->table, crc, f->chunk, n);
        for (i = 0; a != NULL && at >= e->start && i < n && fits == NPZ_OK; i += each) {
            pattern = npzi_get(f->chunk + i, each, e->big);
            fits = npzi_convert(&pattern, e->info.type, a->type);
            if (store && fits == NPZ_OK) npzi_put(to, pattern, NPZ_EACH(a), NPZ_HIGH_FIRST);
            to += NPZ_EACH(a);
        }
    }
    return !f->npy && crc != e->crc ? NPZ_EFORMAT : fits;
}

/* The next entry. Damage is returned; the first array that does not fit goes to *misfit. */
static int npzi_next(npzi_file *f, npzi_entry *e, int store, int *misfit)
{
    npz_array *a = f->npy && f->count > 0 ? f->array : NULL;
    const npz_info *const i = &e->info;
    size_t hash;
    int rc, fits = NPZ_OK;
    memset(e, 0, sizeof *e);
    f->plain = NULL;
    e->bytes = f->length;
    if (!f->npy) NPZ_TRY(npzi_next_member(f, e));
    if (!e->hidden) NPZ_TRY(npzi_read_npy(f, e));
    if (!e->hidden && store && f->listed++ < f->most) f->info[f->listed - 1] = e->info;
    if (!f->npy && !e->hidden) a = npzi_find(f, e->info.name, &hash);
    if (a != NULL && a->mark++ != (uint32_t)store) return NPZ_EFORMAT; /* a name twice */
    if (a == NULL && store) return NPZ_OK;
    if (a != NULL && (i->type == NPZ_OTHER || (i->type < NPZ_F32) != (a->type < NPZ_F32)))
        fits = NPZ_ETYPE;
    else if (a != NULL && (a->dims != i->dims ||
                           memcmp(a->shape, i->shape, a->dims * sizeof a->shape[0]) != 0))
        fits = NPZ_ESHAPE;
    else if (i->fortran && i->dims > 1)
        fits = NPZ_EORDER;
    rc = npzi_scan(f, e, fits == NPZ_OK ? a : NULL, store);
    if (rc != NPZ_OK && rc != NPZ_ERANGE) return rc;
    if (fits == NPZ_OK) fits = rc;
    if (a == NULL || *misfit != NPZ_OK || fits == NPZ_OK) return NPZ_OK;
    *misfit = fits;
    strcpy(f->context->name, a->name);
    return NPZ_OK;
}

/* Goes through the file: once to check everything, once to store. */
static int npzi_pass(npzi_file *f, int store)
{
    npzi_entry e;
    size_t i, entries = 1;
    int rc, misfit = NPZ_OK;
    f->plain = NULL;
    f->end = 0;
    if (!f->npy) NPZ_TRY(npzi_start(f, &entries));
    for (; entries > 0; entries--) {
        rc = npzi_next(f, &e, store, &misfit);
        if (rc != NPZ_OK) return strcpy(f->context->name, e.info.name), rc;
    }
    if (!f->npy && (f->end != f->directory || f->next != f->length - 22)) return NPZ_EFORMAT;
    for (i = 0; i < f->count && misfit == NPZ_OK; i++) {
        if (f->array[i].mark != (uint32_t)store) continue;
        strcpy(f->context->name, f->array[i].name);
        misfit = NPZ_ENAME;
    }
    return misfit;
}

static int npzi_read(npzi_file *f, const char *path)
{
    struct stat there;
    long length = -1;
    int rc;
    if (stat(path, &there) == 0 && !S_ISREG(there.st_mode)) return NPZ_EPLACE;
    f->stream = fopen(path, "rb");
    if (f->stream == NULL) return NPZ_EFILE;
    if (fseek(f->stream, 0, SEEK_END) == 0) length = ftell(f->stream);
    f->at = f->length = (uint64_t)length;
    rc = length < 0 ? NPZ_EFILE : npzi_fetch(f, f->chunk, 0, 6);
    f->npy = memcmp(f->chunk, "\x93NUMPY", 6) == 0;
    if (rc == NPZ_OK) rc = npzi_pass(f, 0);
    if (rc == NPZ_OK) rc = npzi_pass(f, 1);
    (void)fclose(f->stream);
    return rc;
}

NPZ_DEF int npz_load(const char *path, npz_array *array, size_t count, npz_context *context)
{
    npzi_file f;
    int rc;
    NPZ_TRY(npzi_begin(&f, path, array, count, context));
    return npzi_read(&f, path);
}

NPZ_DEF int npz_list(const char *path, npz_info *info, size_t *count, size_t most,
                     npz_context *context)
{
    npzi_file f;
    int rc;
    if (count == NULL || (info == NULL && most > 0)) return NPZ_ENULL;
    NPZ_TRY(npzi_begin(&f, path, NULL, 0, context));
    f.info = info;
    f.most = most;
    NPZ_TRY(npzi_read(&f, path));
    *count = f.listed;
    return NPZ_OK;
}
#endif /* NPZ_IMPLEMENTATION */
