/** Open files and the names that lead to them, which others may change meanwhile. */
#ifndef BASE_FILE_NAME_H
#define BASE_FILE_NAME_H

#include <stdbool.h>
#include <sys/stat.h>

#include "base/status.h"

/** Whether a name still leads to an open file. */
bool base_file_is_at(int fd, const char *path);

/**
 * Rename. replace false: fails with EEXIST, and changes nothing, where something is at `to` (where
 * the file system can neither rename so nor link, something that appears at the very moment is
 * replaced). Returns 0, or -1 with errno.
 */
int base_file_rename(const char *from, const char *to, bool replace);

/**
 * Compare an open file with what it was when it was opened.   opened: by fstat.
 * A new name, a lost one and other permissions are no change of what is in it.
 * Fails: STATUS_CHANGED (its size, or the time of its last change).
 */
enum status base_file_check_unchanged(int fd, const struct stat *opened, const char *path,
                                      struct status_why *why);

#endif
