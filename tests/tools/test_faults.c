/* test_faults.c - the examples' files when the machine fails: memory that is not there, reads and
   writes that are short, interrupted or fail, a rename that fails, a kill in the middle.

   Whatever files.h, csv.h and dataset.h call for it is replaced by functions that can be told to
   fail at the k-th call. For every k: an error in one line, nothing half written, nothing changed,
   no memory and no descriptor left; or the whole work, done right. */
#define _XOPEN_SOURCE 700 /* mkdtemp */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "folder.h"

static struct {
    long calls, fail_at; /* calls so far; the one that fails, 0: none */
    int hit, blocks, descriptors;
    int crumbs; /* reads and writes do a few bytes at a time, and are interrupted */
} fault;

static void no_fault(long fail_at, int crumbs)
{
    memset(&fault, 0, sizeof fault);
    fault.fail_at = fail_at;
    fault.crumbs = crumbs;
}
static int fails(int reason)
{
    if (++fault.calls != fault.fail_at) return 0;
    errno = reason;
    return fault.hit = 1;
}
static void *faulty_malloc(size_t n)
{
    void *p = fails(ENOMEM) ? NULL : malloc(n);
    fault.blocks += p != NULL;
    return p;
}
static void *faulty_realloc(void *old, size_t n)
{
    void *p = fails(ENOMEM) ? NULL : realloc(old, n);
    fault.blocks += p != NULL && old == NULL;
    return p;
}
static void faulty_free(void *p)
{
    fault.blocks -= p != NULL;
    free(p);
}
static int faulty_open(const char *path, int flags, ...)
{
    const int file = fails(EIO) ? -1 : open(path, flags, 0666);
    fault.descriptors += file >= 0;
    return file;
}
static int faulty_close(int file)
{
    const int failed = close(file);
    fault.descriptors--;
    return fails(EIO) ? -1 : failed;
}
static ssize_t faulty_read(int file, void *to, size_t n)
{
    if (fails(EIO)) return -1;
    if (fault.crumbs && fault.calls % 3 == 0) return errno = EINTR, -1;
    return read(file, to, fault.crumbs && n > 7 ? 7 : n);
}
static ssize_t faulty_write(int file, const void *from, size_t n)
{
    if (fails(ENOSPC)) return -1;
    if (fault.crumbs && fault.calls % 3 == 0) return errno = EINTR, -1;
    return write(file, from, fault.crumbs && n > 7 ? 7 : n);
}
static int faulty_fsync(int file)
{
    return fails(EIO) ? -1 : fsync(file);
}
static int faulty_rename(const char *from, const char *to)
{
    return fails(EIO) ? -1 : rename(from, to);
}

#define malloc faulty_malloc
#define realloc faulty_realloc
#define free faulty_free
#define open faulty_open
#define close faulty_close
#define read faulty_read
#define write faulty_write
#define fsync faulty_fsync
#define rename faulty_rename
#include "lab/files.c"
#include "lab/csv.c"
#include "lab/synthetic_digits.c"
#include "lab/dataset.c"
#undef malloc
#undef realloc
#undef open
#undef close
#undef read
#undef write
#undef rename
#include "test.h"

static const char old[] = "what was there";

typedef struct content {
    size_t n;
    char at[16384];
} content;
static content content_of(const char *path)
{
    content c = {0, ""};
    FILE *file = fopen(path, "rb");
    if (file == NULL) return c;
    c.n = fread(c.at, 1, sizeof c.at, file);
    fclose(file);
    return c;
}
static int is(const char *path, const void *bytes, size_t n)
{
    const content c = content_of(path);
    return c.n == n && memcmp(c.at, bytes, n) == 0;
}
static void set(const char *path, const void *bytes, size_t n)
{
    FILE *file = fopen(path, "wb");
    CHECK(file != NULL && fwrite(bytes, 1, n, file) == n && fclose(file) == 0);
}
static int entries(void) /* of this folder */
{
    DIR *folder = opendir(".");
    int n = 0;
    while (folder != NULL && readdir(folder) != NULL) n++;
    if (folder != NULL) closedir(folder);
    return n;
}
static int one_line(const char *err)
{
    return *err != 0 && strchr(err, '\n') == NULL;
}

/* The parts of work: each returns 0, or -1 with a line in err, and releases what it has. */
static int write_file(char *err)
{
    char bytes[100];
    memset(bytes, 'b', sizeof bytes);
    return files_write("file", bytes, sizeof bytes, err);
}
static int read_file(char *err)
{
    unsigned char *data;
    size_t n;
    const int rc = files_read("file", 1000, &data, &n, err);
    CHECK(rc == 0 ? n == sizeof old && memcmp(data, old, n) == 0 : data == NULL && n == 0);
    faulty_free(data);
    return rc;
}
static int write_table(char *err)
{
    static const char *const name[2] = {"a", "b"};
    csv_table t;
    int i, rc;
    csv_begin(&t);
    csv_note(&t, "key", "value");
    csv_columns(&t, name, 2);
    for (i = 0; i < 600; i++) { /* so many that the text grows */
        csv_real(&t, i + 0.5);
        csv_real(&t, i);
        csv_end_row(&t);
    }
    rc = csv_save(&t, "file", err);
    csv_end(&t);
    return rc;
}
static int read_table(char *err)
{
    csv_data d;
    const int rc = csv_load("table", &d, err);
    if (rc != 0) return rc;
    CHECK(d.rows == 2 && csv_numbers(&d, "a", err) != NULL && csv_numbers(&d, "a", err)[1] == 3);
    csv_release(&d);
    return rc;
}
static int read_pair(char *err)
{
    unsigned char *images = NULL, *labels = NULL;
    size_t n = 7;
    const int rc = dataset_read_pair("images", "labels", 1, &images, &labels, &n, err);
    CHECK(rc == 0 ? n == 1 && labels[0] == 3 : n == 7 && images == NULL && labels == NULL);
    faulty_free(images);
    faulty_free(labels);
    return rc;
}
static int make_digits(char *err)
{
    dataset d, kept;
    int rc;
    memset(&d, 0, sizeof d);
    kept = d;
    rc = dataset_load_synthetic(&d, 1, 3, 2, err);
    CHECK(rc == 0 ? d.train_n == 3 : memcmp(&d, &kept, sizeof d) == 0);
    if (rc == 0) dataset_free(&d);
    return rc;
}

static const struct {
    const char *name;
    int (*work)(char *err);
    int writes;
} part[] = {{"write", write_file, 1},        {"read", read_file, 0},
            {"write table", write_table, 1}, {"read table", read_table, 0},
            {"read images", read_pair, 0},   {"make digits", make_digits, 0}};

static void prepare(void)
{
    static const char table[] = "a,b\n1,x\n3,y\n";
    unsigned char images[16 + 2 * DATASET_PIXELS] = {0, 0, 8, 3,  0, 0, 0, 2,
                                                     0, 0, 0, 28, 0, 0, 0, 28};
    const unsigned char labels[10] = {0, 0, 8, 1, 0, 0, 0, 2, 3, 4};
    set("file", old, sizeof old);
    set("table", table, sizeof table - 1);
    set("images", images, sizeof images);
    set("labels", labels, sizeof labels);
}

static void test_each_call_fails(void)
{
    size_t p;
    long k;
    int crumbs, hit;
    for (p = 0; p < sizeof part / sizeof *part; p++)
        for (crumbs = 0; crumbs < 2; crumbs++) {
            char err[FILES_ERR_MAX] = "";
            int before, refused = 0;
            content whole;
            prepare();
            before = entries();
            no_fault(0, 0);
            CHECK_INT(part[p].work(err), 0);
            whole = content_of("file");
            CHECK(whole.n < sizeof whole.at);
            for (k = hit = 1; hit && k < 5000; k++) {
                int rc, good;
                *err = 0;
                set("file", old, sizeof old);
                no_fault(k, crumbs);
                rc = part[p].work(err);
                hit = fault.hit;
                refused += rc != 0;
                good = rc == 0 ? !hit || !part[p].writes : hit && one_line(err);
                good &= fault.blocks == 0 && fault.descriptors == 0 && entries() == before;
                good &= rc == 0 && part[p].writes ? is("file", whole.at, whole.n)
                                                  : is("file", old, sizeof old);
                if (!CHECK(good))
                    printf("    %s, call %ld: %d, %s, %d blocks, %d files\n", part[p].name, k, rc,
                           err, fault.blocks, fault.descriptors);
            }
            CHECK(k < 5000 && refused >= 3); /* the last one was without a fault */
        }
    no_fault(0, 0);
}

/* A link that somebody has put under the temporary name is not followed. */
static void test_temporary_name_taken(void)
{
    char taken[64];
    struct stat there;
    snprintf(taken, sizeof taken, ".files-%ld.tmp", (long)getpid());
    CHECK_INT(symlink("victim", taken), 0);
    CHECK_INT(files_write("file", old, sizeof old, NULL), 0);
    CHECK(lstat("victim", &there) != 0 && lstat(taken, &there) != 0);
    CHECK(is("file", old, sizeof old));
}

/* Two contents in turn, again and again, by a child that is killed: the file is one of them. */
static void test_killed_while_writing(void)
{
    enum { KILLS = 20, SIZE = 200000 };
    static char bytes[2][SIZE];
    int k, turn, status;
    memset(bytes[0], 'a', SIZE);
    memset(bytes[1], 'b', SIZE);
    for (k = 0; k < KILLS; k++) {
        const struct timespec moment = {0, 1000000 + k * 900000};
        unsigned char *data;
        size_t n;
        pid_t child;
        CHECK_INT(files_write("file", bytes[0], SIZE, NULL), 0);
        child = fork();
        if (child == 0)
            for (turn = 1;; turn = 1 - turn)
                if (files_write("file", bytes[turn], SIZE, NULL) != 0) _exit(1);
        nanosleep(&moment, NULL);
        CHECK(child > 0 && kill(child, SIGKILL) == 0 && waitpid(child, &status, 0) == child);
        CHECK(WIFSIGNALED(status));
        CHECK_INT(files_read("file", SIZE, &data, &n, NULL), 0);
        CHECK(n == SIZE && (memcmp(data, bytes[0], n) == 0 || memcmp(data, bytes[1], n) == 0));
        faulty_free(data);
    }
    CHECK_INT(system("rm -f .files-*.tmp"), 0);
}

int main(void)
{
    folder_enter();
    RUN(test_each_call_fails);
    RUN(test_temporary_name_taken);
    RUN(test_killed_while_writing);
    folder_leave();
    return test_report("faults");
}
