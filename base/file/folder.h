/**
 * Folders: the one that a file is in, the files that are in one, and the end of one.
 */
#ifndef BASE_FILE_FOLDER_H
#define BASE_FILE_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

/**
 * Bring the names of the folder that holds `path` to the disk: a file that was just made or
 * renamed keeps its name through a crash only then. Best effort, since not every file system can;
 * errno is left as it was.
 */
void base_folder_sync(const char *path);

bool base_is_folder(const char *path);

/** Zero-initialise; release with base_folder_free. */
struct base_folder {
    char **paths; /* [n]: the folder's path, a slash, the name; in the order of the names' bytes */
    size_t n, capacity;
    size_t n_others; /* entries left out: folders, pipes and the like */
};

/**
 * List the regular files of a folder, not those of folders in it. Symbolic links count as what they
 * lead to. Names that begin with a dot are passed over.
 * Fails: STATUS_IO (also: a link that leads nowhere), STATUS_MEMORY.
 */
enum status base_folder_list(struct base_folder *out, const char *path, struct status_why *why);
void base_folder_free(struct base_folder *folder);

/**
 * Remove a folder with all that is in it. Symbolic links are removed, not followed.
 * Fails: STATUS_IO (something stays, and the rest is gone).
 */
enum status base_folder_remove(const char *path, struct status_why *why);

#endif
