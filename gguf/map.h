/** A read-only mapping of a whole file. */
#ifndef GGUF_MAP_H
#define GGUF_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "base/status.h"

/** Zero-initialised is a valid, empty object. */
struct gguf_map {
    void *data; /* not to be written to; NULL: nothing is mapped */
    size_t n_bytes;
    size_t n_kept;      /* bytes at the beginning that are a copy: see gguf_map_keep */
    int fd;             /* of the file, kept open; -1: let go; unless data is NULL */
    struct stat opened; /* the file when it was mapped */
};

/**
 * Map the file at `path`.
 * Pages are read from the disk when they are touched, and shared with other processes.
 * The file must not change while it is mapped: gguf_map_check_unchanged sees it. Touching what a
 * file lost by shrinking raises SIGBUS.
 * Fails: STATUS_IO (missing, unreadable, a directory, not a regular file, empty). The
 *        sentence begins with the path.
 */
enum status gguf_map_open(struct gguf_map *map, const char *path, struct status_why *why);
/** Map another kind of file. expected: for the sentence, "a GGUF file". */
enum status gguf_map_open_as(struct gguf_map *map, const char *path, const char *expected,
                             struct status_why *why);

/**
 * Ask the system to have these bytes in memory soon, in one go and without waiting for them:
 * touching them page by page would read them in small pieces, each waited for. Only a hint; what
 * is there already costs little. data: any part of a mapping.
 */
void gguf_map_read_ahead(const void *data, size_t n_bytes);

/** Whether what is touched of these bytes is read alone; usually its neighbours are read with it.
 */
void gguf_map_read_alone(const void *data, size_t n_bytes, bool alone);

/**
 * Check that nothing wrote to the file since it was mapped. One system call. An empty object:
 * nothing to check. path: for the sentence. Fails: STATUS_CHANGED, STATUS_IO.
 */
enum status gguf_map_check_unchanged(const struct gguf_map *map, const char *path,
                                     struct status_why *why);

/**
 * Put a copy in the place of the first n_bytes, and of what else the last page of them holds: they
 * stay what they are, whatever becomes of the file. Pointers stay valid.
 * Fails: STATUS_CHANGED (the file is shorter by now), STATUS_IO, STATUS_MEMORY.
 */
enum status gguf_map_keep(struct gguf_map *map, size_t n_bytes, const char *path,
                          struct status_why *why);

/**
 * Let go of the file: what is not kept must not be touched from now on (SIGSEGV), and what becomes
 * of the file no longer matters. Addresses stay taken until the map is closed.
 */
void gguf_map_let_go(struct gguf_map *map);

/** Unmap; a zero-initialised or closed object is allowed. */
void gguf_map_close(struct gguf_map *map);

#endif
