/* files.c - see files.h. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILESI_PATH_MAX 4096
#define FILESI_PATH_SHOWN 300 /* leaves room for the reason behind it */

int files_fail(char *err, const char *format, ...)
{
    va_list arguments;
    if (!err) return -1;
    va_start(arguments, format);
    (void)vsnprintf(err, FILES_ERR_MAX, format, arguments);
    va_end(arguments);
    for (; *err; err++)
        if ((unsigned char)*err < 32 || *err == 127) *err = '?';
    return -1;
}

/* "cannot VERB 'PATH': WHY"; a long path loses its beginning. */
static int filesi_fail(char *err, const char *verb, const char *path, const char *why)
{
    size_t length = strlen(path);
    const char *shown = length > FILESI_PATH_SHOWN ? path + length - FILESI_PATH_SHOWN : path;
    return files_fail(err, "cannot %s '%s%s': %s", verb, shown == path ? "" : "...", shown, why);
}

static int filesi_write_all(int fd, const unsigned char *data, size_t n)
{
    const size_t most = (size_t)1 << 30; /* some systems refuse to write more at once */
    while (n) {
        ssize_t done = write(fd, data, n < most ? n : most);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return -1;
        data += done;
        n -= (size_t)done;
    }
    return 0;
}

/* Length of the folder part of `path` with its slash; 0 if there is none. */
static size_t filesi_folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

static int filesi_is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Makes every missing folder on the way to `path`. Returns 0, or -1 with errno set. */
static int filesi_make_parents(const char *path)
{
    char folder[FILESI_PATH_MAX];
    size_t i, length = filesi_folder_length(path);
    if (!length) return 0;
    memcpy(folder, path, length);
    folder[length] = 0;
    if (filesi_is_folder(folder)) return 0;
    for (i = 1; i < length; i++) {
        if (path[i] != '/') continue;
        folder[i] = 0;
        /* mkdir also fails where the folder is there already, each system with its own errno;
           another process may have made it just now. */
        if (mkdir(folder, 0777) != 0) {
            int reason = errno;
            if (!filesi_is_folder(folder)) {
                errno = reason == EEXIST ? ENOTDIR : reason;
                return -1;
            }
        }
        folder[i] = '/';
    }
    return 0;
}

/* Fills the new file `fd`, forces it to the disk and closes it, always. Returns 0, or -1 with errno
   set. */
static int filesi_fill(int fd, const void *data, size_t n)
{
    int reason = 0;
    if (filesi_write_all(fd, (const unsigned char *)data, n) != 0) reason = errno;
    /* EINVAL: a file system that has nothing to force. */
    if (!reason && fsync(fd) != 0 && errno != EINVAL) reason = errno;
    if (close(fd) != 0 && !reason) reason = errno;
    errno = reason;
    return reason ? -1 : 0;
}

/* files_write; in a rehearsal without the rename. The temporary name does not contain that of
   `path`, so it is not too long where `path` itself is not. */
static int filesi_put(const char *path, const void *data, size_t n, int rehearsal, char *err)
{
    char temporary[FILESI_PATH_MAX];
    struct stat old;
    int fd, reason = 0;
    if (err) *err = 0;
    if (!path || !*path) return filesi_fail(err, "write", "", "the file name is empty");
    if (n && !data) return filesi_fail(err, "write", path, "no data");
    if (strlen(path) + 64 > FILESI_PATH_MAX)
        return filesi_fail(err, "write", path, strerror(ENAMETOOLONG));
    if (stat(path, &old) == 0) {
        if (S_ISDIR(old.st_mode)) return filesi_fail(err, "write", path, strerror(EISDIR));
        if (!S_ISREG(old.st_mode)) return filesi_fail(err, "write", path, "not a regular file");
        if (access(path, W_OK) != 0) return filesi_fail(err, "write", path, strerror(errno));
    }
    if (filesi_make_parents(path) != 0) return filesi_fail(err, "write", path, strerror(errno));
    (void)snprintf(temporary, sizeof temporary, "%.*s.files-%ld.tmp",
                   (int)filesi_folder_length(path), path, (long)getpid());
    (void)unlink(temporary); /* left by a killed process of the same number */
    fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL, 0666);
    if (fd < 0) return filesi_fail(err, "write", path, strerror(errno));
    if (filesi_fill(fd, data, n) != 0 || (!rehearsal && rename(temporary, path) != 0))
        reason = errno;
    if (reason || rehearsal) (void)unlink(temporary);
    return reason ? filesi_fail(err, "write", path, strerror(reason)) : 0;
}

int files_write(const char *path, const void *data, size_t n, char *err)
{
    return filesi_put(path, data, n, 0, err);
}

int files_can_write(const char *path, char *err)
{
    return filesi_put(path, NULL, 0, 1, err);
}

/* Reads the open file `fd` to its end or past `limit`, into a block that grows; `first` is its
   size at the start. Returns NULL, or the reason of the failure. */
static const char *filesi_read_all(int fd, size_t first, size_t limit, unsigned char **data,
                                   size_t *n)
{
    size_t capacity = first;
    unsigned char *block = (unsigned char *)malloc(capacity + 2);
    *data = block;
    *n = 0;
    if (!block) return strerror(ENOMEM);
    for (;;) {
        /* One byte more than is allowed, to notice that the file has grown since. */
        ssize_t got = read(fd, block + *n, capacity + 1 - *n);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return strerror(errno);
        *n += (size_t)got;
        if (*n > limit) return "larger than allowed";
        if (got == 0) break;
        if (*n <= capacity) continue;
        capacity = limit / 2 < capacity ? limit : 2 * capacity + 64;
        if (capacity > limit) capacity = limit;
        block = (unsigned char *)realloc(*data, capacity + 2);
        if (!block) return strerror(ENOMEM);
        *data = block;
    }
    block[*n] = 0;
    return NULL;
}

int files_read(const char *path, size_t limit, unsigned char **data, size_t *n, char *err)
{
    struct stat st;
    const char *reason;
    int fd;
    if (err) *err = 0;
    *data = NULL;
    *n = 0;
    if (!path || !*path) return filesi_fail(err, "read", "", "the file name is empty");
    if (limit > (size_t)-1 / 4) limit = (size_t)-1 / 4;
    fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY); /* do not wait for the writer of a pipe */
    if (fd < 0) return filesi_fail(err, "read", path, strerror(errno));
    if (fstat(fd, &st) != 0)
        reason = strerror(errno);
    else if (!S_ISREG(st.st_mode))
        reason = S_ISDIR(st.st_mode) ? strerror(EISDIR) : "not a regular file";
    else if (st.st_size < 0 || (uintmax_t)st.st_size > limit)
        reason = "larger than allowed";
    else
        reason = filesi_read_all(fd, (size_t)st.st_size, limit, data, n);
    (void)close(fd);
    if (!reason) return 0;
    free(*data);
    *data = NULL;
    *n = 0;
    return filesi_fail(err, "read", path, reason);
}

uint64_t files_hash(uint64_t h, const void *data, size_t n)
{
    const unsigned char *bytes = (const unsigned char *)data;
    size_t i;
    for (i = 0; i < n; i++) h = (h ^ bytes[i]) * (uint64_t)0x100000001b3u;
    return h;
}
