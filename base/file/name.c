#include "base/file/name.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/system/system.h"

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

bool base_file_is_at(int fd, const char *path)
{
    struct stat opened, named;
    return fstat(fd, &opened) == 0 && stat(path, &named) == 0 && same_file(&opened, &named);
}

int base_file_rename(const char *from, const char *to, bool replace)
{
    struct stat there;
    if (replace)
        return rename(from, to);
    if (base_system_rename_new(from, to) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -1;
    if (link(from, to) == 0)
        return unlink(from);
    if (errno == EEXIST)
        return -1;
    if (lstat(to, &there) == 0) {
        errno = EEXIST;
        return -1;
    }
    return rename(from, to);
}

static bool same_time(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

/*
 * The time of the last change of status also moves with names and permissions. By itself, with
 * nothing of that to be seen, it says that the file was written to and its time put back.
 */
static bool same_status(const struct stat *now, const struct stat *opened, const char *path)
{
    struct stat named;
    if (same_time(now->st_ctim, opened->st_ctim) || now->st_nlink != opened->st_nlink ||
        now->st_mode != opened->st_mode || now->st_uid != opened->st_uid ||
        now->st_gid != opened->st_gid)
        return true;
    return stat(path, &named) != 0 || !same_file(now, &named);
}

enum status base_file_check_unchanged(int fd, const struct stat *opened, const char *path,
                                      struct status_why *why)
{
    struct stat now;
    if (fstat(fd, &now) != 0)
        return status_fail(why, STATUS_IO, "%s: cannot be examined: %s", path, strerror(errno));
    if (now.st_size != opened->st_size)
        return status_fail(why, STATUS_CHANGED,
                           "%s: changed while it was read: it has %jd bytes now, %jd when it was "
                           "opened; run again, and leave the file as it is meanwhile",
                           path, (intmax_t)now.st_size, (intmax_t)opened->st_size);
    if (!same_time(now.st_mtim, opened->st_mtim) || !same_status(&now, opened, path))
        return status_fail(why, STATUS_CHANGED,
                           "%s: changed while it was read: something wrote to it; run again, and "
                           "leave the file as it is meanwhile",
                           path);
    return STATUS_OK;
}
