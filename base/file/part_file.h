/**
 * A large file of known size that is written in place as PATH.part, can be continued after the
 * process was killed, and takes the name PATH only when it is whole.
 *
 * base/file/atomic_file.h is for files that are written at once, this is for those that take hours:
 * the caller chooses the offsets, the space is set aside before the work begins, and what is on
 * the disk survives. Two processes cannot write the same file: PATH.part is locked. What somebody
 * else put at PATH.part is left alone.
 */
#ifndef BASE_FILE_PART_FILE_H
#define BASE_FILE_PART_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct base_part;

struct base_part_options {
    uint64_t n_bytes; /* of the whole file */
    const char *kind; /* what is written (base/content/written.h), a constant */
    bool only_new;    /* nothing at PATH is replaced; else a file of the kind */
    bool force;       /* whatever is at PATH is replaced: the new file takes its place when whole */
    /* Keep what PATH.part holds, if it exists, instead of emptying it. Where it does not, and PATH
       has n_bytes and the kind, without force, PATH is taken as a part that has become whole: it
       can be read, and committing it changes nothing. */
    bool resume;
};

/**
 * Open PATH.part for writing and set n_bytes aside for it, where the file system can do that;
 * elsewhere compare n_bytes with what is free. Its size grows with what is written.
 * out: owned by the caller until base_part_commit or base_part_close.   path: copied; a symbolic
 * link is followed.
 * Fails: STATUS_USAGE (PATH exists and may not be replaced, PATH.part is of another kind),
 * STATUS_IO (not a regular file, not writable, locked by another process, no space: the sentence
 * has both sizes), STATUS_MEMORY.
 */
enum status base_part_open(struct base_part **out, const char *path,
                           const struct base_part_options *options, struct status_why *why);

/** What PATH.part is for this path, links followed; the caller frees it. NULL: no memory. */
char *base_part_name(const char *path);

/** The name that is written to until the commit. */
const char *base_part_path(const struct base_part *part);

/** Whether it is PATH itself, which is not written to. */
bool base_part_is_whole(const struct base_part *part);

/** Bytes that PATH.part had when it was opened: 0, or with `resume` what was kept. */
uint64_t base_part_kept(const struct base_part *part);

/** Write all bytes at an offset; from any thread. Fails: STATUS_IO, STATUS_USAGE (is whole). */
enum status base_part_write(struct base_part *part, uint64_t offset, const void *bytes,
                            size_t n_bytes, struct status_why *why);
/** Read all bytes at an offset. Fails: STATUS_IO, STATUS_FORMAT (the file ends before). */
enum status base_part_read(struct base_part *part, uint64_t offset, void *bytes, size_t n_bytes,
                           struct status_why *why);
/** Return when everything written so far is on the disk. Fails: STATUS_IO. */
enum status base_part_sync(struct base_part *part, struct status_why *why);

/**
 * Put the whole file in its place: cut off what others appended, sync, rename, sync of the folder.
 * Frees the object, whatever the outcome; after a failure PATH.part stays.
 * Fails: STATUS_IO (also: others cut bytes off, PATH.part lost its name, PATH may not be replaced
 *        and was made meanwhile); what lay at PATH before is then untouched.
 */
enum status base_part_commit(struct base_part *part, struct status_why *why);

/** Close without a commit. keep: leave PATH.part for another run, else remove it. NULL: nothing. */
void base_part_close(struct base_part *part, bool keep);

#endif
