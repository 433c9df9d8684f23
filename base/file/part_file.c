#include "base/file/part_file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/file/folder.h"

struct base_part {
    char *path; /* of the whole file, symbolic links resolved */
    char *name; /* path.part */
    int fd;
    uint64_t n_bytes, kept;
    bool is_whole; /* name is path */
};

static const double megabyte = 1e6;

static void release(struct base_part *part)
{
    if (part->fd >= 0)
        close(part->fd); /* which gives up the lock */
    free(part->path);
    free(part->name);
    free(part);
}

static enum status fail(const struct base_part *part, const char *what, struct status_why *why)
{
    return status_fail(why, STATUS_IO, "%s: cannot be %s: %s", part->name, what, strerror(errno));
}

static enum status fail_exists(const char *path, struct status_why *why)
{
    return status_fail(why, STATUS_USAGE, "%s: exists; --force replaces it", path);
}

/** The file's two names, if `path` is one that may be written. */
static enum status take_names(struct base_part *part, const char *path,
                              const struct base_part_options *options, struct status_why *why)
{
    static const char suffix[] = ".part";
    struct stat existing;
    bool exists = stat(path, &existing) == 0;
    if (path[0] == '\0')
        return status_fail(why, STATUS_IO, "the name of the file to be written is empty");
    if (exists && !S_ISREG(existing.st_mode))
        return status_fail(why, STATUS_IO,
                           "%s: is not a regular file; expected the name of a new one", path);
    if (exists && options->replace && access(path, W_OK) != 0)
        return status_fail(why, STATUS_IO, "%s: cannot be written: %s", path, strerror(errno));
    part->path = exists ? realpath(path, NULL) : strdup(path);
    size_t n = part->path ? strlen(part->path) : 0;
    part->name = part->path ? malloc(n + sizeof suffix) : NULL;
    if (!part->name)
        return status_fail(why, STATUS_MEMORY, "%s: out of memory", path);
    memcpy(part->name, part->path, n);
    memcpy(part->name + n, suffix, sizeof suffix);
    if (!exists || options->replace)
        return STATUS_OK;
    part->is_whole = options->resume && access(part->name, F_OK) != 0;
    if (!part->is_whole)
        return fail_exists(path, why);
    part->name[n] = '\0';
    return STATUS_OK;
}

/** Whether the open file is still the one of that name: another process may have renamed it. */
static bool still_named(const struct base_part *part)
{
    struct stat opened, named;
    return fstat(part->fd, &opened) == 0 && stat(part->name, &named) == 0 &&
           opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

static enum status open_locked(struct base_part *part, struct status_why *why)
{
    assert(part->name);
    int how = part->is_whole ? O_RDONLY : O_RDWR | O_CREAT | O_NOFOLLOW;
    for (;;) {
        part->fd = open(part->name, how | O_CLOEXEC, 0666);
        if (part->fd < 0)
            return fail(part, "written", why);
        if (flock(part->fd, LOCK_EX | LOCK_NB) != 0) {
            if (errno == EWOULDBLOCK)
                return status_fail(why, STATUS_IO, "%s: is being written by another process",
                                   part->name);
            return fail(part, "locked", why);
        }
        if (still_named(part))
            return STATUS_OK;
        close(part->fd);
    }
}

/** Empty the file, or see what it holds. */
static enum status take_contents(struct base_part *part, bool resume, struct status_why *why)
{
    struct stat now;
    if (!resume && ftruncate(part->fd, 0) != 0)
        return fail(part, "emptied", why);
    if (fstat(part->fd, &now) != 0)
        return fail(part, "read", why);
    if (!S_ISREG(now.st_mode))
        return status_fail(why, STATUS_IO, "%s: is not a regular file", part->name);
    part->kept = (uint64_t)now.st_size;
    return STATUS_OK;
}

/** Bytes that a file system has for us beside what the file has already; false: unknown. */
static bool free_bytes(const struct base_part *part, double *n_bytes)
{
    struct statvfs fs;
    struct stat now;
    if (fstatvfs(part->fd, &fs) != 0 || fstat(part->fd, &now) != 0)
        return false;
    *n_bytes = (double)fs.f_bavail * (double)fs.f_frsize + 512 * (double)now.st_blocks;
    return true;
}

static enum status set_aside(const struct base_part *part, struct status_why *why)
{
    double available = 0, wanted = (double)part->n_bytes;
    int error = EOVERFLOW;
    if (part->n_bytes <= INT64_MAX)
        error = fallocate(part->fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)part->n_bytes) == 0 ? 0 : errno;
    bool known = free_bytes(part, &available);
    bool cannot_tell = error == EOPNOTSUPP || error == ENOSYS || error == EINVAL || error == EINTR;
    if (error == 0 || (cannot_tell && (!known || available >= wanted)))
        return STATUS_OK;
    if (error == ENOSPC || (cannot_tell && available < wanted))
        return status_fail(why, STATUS_IO,
                           "%s: needs %.1f MB, but the file system has only %.1f MB free",
                           part->path, wanted / megabyte, available / megabyte);
    return status_fail(why, STATUS_IO, "%s: no room for %.1f MB: %s", part->path, wanted / megabyte,
                       strerror(error));
}

enum status base_part_open(struct base_part **out, const char *path,
                           const struct base_part_options *options, struct status_why *why)
{
    *out = NULL;
    struct base_part *part = calloc(1, sizeof *part);
    if (!part)
        return status_fail(why, STATUS_MEMORY, "%s: out of memory", path);
    part->fd = -1;
    part->n_bytes = options->n_bytes;
    enum status status = take_names(part, path, options, why);
    if (!status)
        status = open_locked(part, why);
    bool is_ours = !status;
    if (!status)
        status = take_contents(part, options->resume, why);
    if (!status && !part->is_whole)
        status = set_aside(part, why);
    if (status) {
        if (is_ours && part->kept == 0 && !part->is_whole)
            unlink(part->name);
        release(part);
        return status;
    }
    *out = part;
    return STATUS_OK;
}

const char *base_part_path(const struct base_part *part)
{
    return part->name;
}

bool base_part_is_whole(const struct base_part *part)
{
    return part->is_whole;
}

uint64_t base_part_kept(const struct base_part *part)
{
    return part->kept;
}

enum status base_part_write(struct base_part *part, uint64_t offset, const void *bytes,
                            size_t n_bytes, struct status_why *why)
{
    if (part->is_whole)
        return fail_exists(part->path, why);
    for (size_t done = 0; done < n_bytes;) {
        ssize_t n =
            pwrite(part->fd, (const char *)bytes + done, n_bytes - done, (off_t)(offset + done));
        if (n < 0 && errno != EINTR)
            return fail(part, "written", why);
        done += n > 0 ? (size_t)n : 0;
    }
    return STATUS_OK;
}

enum status base_part_read(struct base_part *part, uint64_t offset, void *bytes, size_t n_bytes,
                           struct status_why *why)
{
    for (size_t done = 0; done < n_bytes;) {
        ssize_t n = pread(part->fd, (char *)bytes + done, n_bytes - done, (off_t)(offset + done));
        if (n < 0 && errno != EINTR)
            return fail(part, "read", why);
        if (n == 0)
            return status_fail(why, STATUS_FORMAT,
                               "%s: ends at byte %" PRIu64 ", expected %zu more", part->name,
                               offset + done, n_bytes - done);
        done += n > 0 ? (size_t)n : 0;
    }
    return STATUS_OK;
}

enum status base_part_sync(struct base_part *part, struct status_why *why)
{
    return fsync(part->fd) == 0 ? STATUS_OK : fail(part, "written to the disk", why);
}

enum status base_part_commit(struct base_part *part, struct status_why *why)
{
    struct stat existing;
    if (part->is_whole) {
        release(part);
        return STATUS_OK;
    }
    /* Permissions of what is replaced; a file system without them is no reason to refuse. */
    if (stat(part->path, &existing) == 0 && fchmod(part->fd, existing.st_mode & 07777) != 0)
        errno = 0;
    enum status status = base_part_sync(part, why);
    if (!status && rename(part->name, part->path) != 0)
        status = status_fail(why, STATUS_IO, "%s: cannot be renamed to %s: %s", part->name,
                             part->path, strerror(errno));
    if (!status)
        base_folder_sync(part->path);
    release(part);
    return status;
}

void base_part_close(struct base_part *part, bool keep)
{
    if (!part)
        return;
    if (!keep && !part->is_whole)
        unlink(part->name);
    release(part);
}
