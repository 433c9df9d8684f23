#include "base/file/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buffer.h"

void base_folder_sync(const char *path)
{
    int before = errno;
    char copy[PATH_MAX]; /* dirname writes into it; a path that was opened fits */
    snprintf(copy, sizeof copy, "%s", path);
    int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        (void)!fsync(fd);
        close(fd);
    }
    errno = before;
}

bool base_is_folder(const char *path)
{
    struct stat found;
    return stat(path, &found) == 0 && S_ISDIR(found.st_mode);
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static enum status add_entry(struct base_folder *out, const char *folder, const char *name,
                             struct status_why *why)
{
    size_t n = strlen(folder);
    struct base_buffer joined = {0};
    base_buffer_format(&joined, "%s%s%s", folder, n && folder[n - 1] == '/' ? "" : "/", name);
    char *path = base_buffer_take(&joined);
    if (!path || base_array_reserve(out->paths, out->capacity, out->n + 1, "files", NULL)) {
        free(path);
        return status_fail(why, STATUS_MEMORY, "%s: no memory for the names of its files", folder);
    }
    struct stat found;
    enum status status = STATUS_OK;
    if (stat(path, &found) != 0)
        status = status_fail(why, STATUS_IO, "%s: cannot be opened: %s", path, strerror(errno));
    bool wanted = !status && S_ISREG(found.st_mode);
    out->n_others += !wanted;
    if (wanted)
        out->paths[out->n++] = path;
    else
        free(path);
    return status;
}

enum status base_folder_list(struct base_folder *out, const char *path, struct status_why *why)
{
    *out = (struct base_folder){0};
    DIR *folder = opendir(path);
    if (!folder)
        return status_fail(why, STATUS_IO, "%s: cannot be opened: %s", path, strerror(errno));
    enum status status = STATUS_OK;
    while (!status) {
        errno = 0;
        const struct dirent *entry = readdir(folder);
        if (!entry && errno)
            status = status_fail(why, STATUS_IO, "%s: cannot be read: %s", path, strerror(errno));
        if (!entry)
            break;
        if (entry->d_name[0] != '.')
            status = add_entry(out, path, entry->d_name, why);
    }
    closedir(folder);
    if (status)
        base_folder_free(out);
    else if (out->n)
        qsort(out->paths, out->n, sizeof *out->paths, by_bytes);
    return status;
}

void base_folder_free(struct base_folder *folder)
{
    for (size_t i = 0; i < folder->n; i++)
        free(folder->paths[i]);
    free(folder->paths);
    *folder = (struct base_folder){0};
}

/** What cannot be removed keeps its folders, too: the last one says why. */
static int remove_entry(const char *path, const struct stat *about, int kind, struct FTW *at)
{
    (void)about, (void)at;
    if (kind == FTW_DP || kind == FTW_DNR)
        rmdir(path);
    else
        unlink(path);
    return 0;
}

enum status base_folder_remove(const char *path, struct status_why *why)
{
    enum { MOST_OPEN = 16 };
    struct stat about;
    nftw(path, remove_entry, MOST_OPEN, FTW_DEPTH | FTW_PHYS);
    if (lstat(path, &about) != 0)
        return STATUS_OK;
    errno = rmdir(path) == 0 ? 0 : errno;
    return errno ? status_fail(why, STATUS_IO, "%s: cannot be removed: %s", path, strerror(errno))
                 : STATUS_OK;
}
