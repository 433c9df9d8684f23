/**
 * A file that appears whole or not at all.
 *
 * What is written goes into a temporary file beside the target; committing flushes it to
 * the disk and renames it over the target. Until then whatever lay there before stays as
 * it was, and abandoning removes the temporary. Where the file system allows it, the temporary
 * has no name before the commit, so that nothing is left of it when the process is killed. Where a
 * rename would make no sense (character devices such as /dev/stdout, pipes, and "-", which is
 * standard output) the bytes are written directly.
 *
 * Errors stick: after a failed write later ones do nothing, and the commit reports the
 * first failure. So the writes need not be checked one by one.
 */
#ifndef BASE_FILE_ATOMIC_FILE_H
#define BASE_FILE_ATOMIC_FILE_H

#include <stddef.h>

#include "base/status.h"

struct base_file;

/**
 * The descriptor that a name stands for, or -1: "-" and /dev/stdout, /dev/stderr, /dev/fd/N and
 * /proc/self/fd/N. It is written to as it is, whatever it leads to.
 */
int base_file_stream(const char *path);

/**
 * The path with symbolic links resolved, that of a file which is yet to be included.
 * Returns a string of the caller's; NULL: no memory.
 */
char *base_file_target(const char *path);

/**
 * Begin a file. It is created at once, so that an unwritable path is reported before
 * hours of computation and not after.
 * out: owned by the caller until commit or abandon; NULL on failure.   path: copied.
 * kind: what is written (base/content/written.h), a constant; a regular file of another kind is not
 * replaced, now or at the commit. NULL: whatever is there is replaced.
 * A symbolic link is followed, also to a file that is yet to be; an existing file's permissions are
 * kept. Fails: STATUS_USAGE (a file of another kind), STATUS_IO (a directory, no such folder, not
 * writable), STATUS_MEMORY.
 */
enum status base_file_create(struct base_file **out, const char *path, const char *kind,
                             struct status_why *why);

/** Begin one in memory, for base_file_take. NULL: no memory. */
struct base_file *base_file_in_memory(void);
/**
 * End a file in memory: its bytes, which are the caller's, with a NUL after them; free the object.
 * NULL: there was no memory for them. n_bytes: without that NUL.
 */
char *base_file_take(struct base_file *file, size_t *n_bytes);

/** Append bytes, or formatted text. Buffered; a failure is remembered for the commit. */
void base_file_write(struct base_file *file, const void *bytes, size_t n_bytes);
void base_file_printf(struct base_file *file, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** Write out what is buffered, for a reader at the other end of a pipe. */
void base_file_flush(struct base_file *file);

/**
 * Write out the rest, put the file in its place and free the object, whatever the outcome.
 * A target that was not there when the file was begun, and is there now, is somebody else's, and so
 * is one of another kind: it is left, and what was written stays under its temporary name, which
 * the sentence has.
 * Fails: STATUS_IO (naming path and reason: disk full, ...); the target is then untouched.
 */
enum status base_file_commit(struct base_file *file, struct status_why *why);

/** Remove the temporary and free the object; what went out directly stays. NULL is allowed. */
void base_file_abandon(struct base_file *file);

#endif
