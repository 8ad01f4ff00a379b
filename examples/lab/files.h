/* files.h - whole files: written atomically, read with a limit, hashed.

   A figure or a table must never be half written: whoever looks at PATH sees the old file or the
   new one, also when the disk fills up or the program is interrupted. files_write therefore writes
   a temporary file in the same folder, forces it to the disk and renames it into place; on any
   failure the temporary file is removed and the old file is untouched.

   An example:

       char err[FILES_ERR_MAX];
       unsigned char *data;
       size_t n;
       if (files_read("in.bin", 1u << 20, &data, &n, err)) return fprintf(stderr, "%s\n", err), 1;
       printf("%016llx\n", (unsigned long long)files_hash(FILES_HASH_INIT, data, n));
       if (files_write("out/copy.bin", data, n, err)) return fprintf(stderr, "%s\n", err), 1;
       free(data);

   Needs POSIX.1-2008. Keeps no state; may be used from several processes at once.
*/
#ifndef FILES_H
#define FILES_H

#include <stddef.h>
#include <stdint.h>

/* Size of the caller's buffer `err`. It receives one line without a newline, empty on success. */
#define FILES_ERR_MAX 512

/* Puts a formatted line into `err` (or null), cut where it is too long, with ? for control
   characters. Returns -1. */
#ifdef __GNUC__
__attribute__((format(printf, 2, 3)))
#endif
int files_fail(char *err, const char *format, ...);

/* Where an FNV-1a 64 hash starts. */
#define FILES_HASH_INIT ((uint64_t)0xcbf29ce484222325u)

/* Writes `n` bytes of `data` (may be null if n is 0) as the file `path`. Missing parent folders
   are made. What is there already is replaced if it is a regular file that may be written.
   `err`: FILES_ERR_MAX bytes or null. Returns 0, or -1 with the reason in `err`. */
int files_write(const char *path, const void *data, size_t n, char *err);

/* Could `path` be written? To be known before the work, not hours later. Makes missing parent
   folders. Returns as above. */
int files_can_write(const char *path, char *err);

/* Reads the regular file `path` of at most `limit` bytes. On success `*data` is a block for
   free(), with `*n` bytes and a 0 byte behind them that is not counted, so text can be read as a
   string. On failure (missing, no regular file, larger than limit, read error, no memory)
   `*data` is null, `*n` is 0 and the reason is in `err` (FILES_ERR_MAX bytes or null).
   Returns 0 or -1. */
int files_read(const char *path, size_t limit, unsigned char **data, size_t *n, char *err);

/* Adds `n` bytes to the FNV-1a 64 hash `h`; start with FILES_HASH_INIT. Hashing a block in pieces
   gives the same value as hashing it at once. For telling data sets apart, not for security. */
uint64_t files_hash(uint64_t h, const void *data, size_t n);

#endif /* FILES_H */
