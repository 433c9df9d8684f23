#include "base/file/part_file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/arithmetic.h"
#include "base/content/written.h"
#include "base/file/atomic_file.h"
#include "base/file/folder.h"
#include "base/file/name.h"
#include "base/system/system.h"

struct base_part {
    char *path; /* of the whole file, symbolic links resolved */
    char *name; /* path.part */
    int fd;
    uint64_t n_bytes, kept;
    _Atomic uint64_t end; /* of what was kept and written: the file is no shorter */
    const char *kind;     /* of what may be replaced; NULL: anything may be */
    bool replace;         /* something was at the path, or whatever appears there is replaced */
    bool is_whole;        /* name is path */
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

char *base_part_name(const char *path)
{
    static const char suffix[] = ".part";
    char *target = base_file_target(path);
    size_t n = target ? strlen(target) : 0;
    char *name = target ? realloc(target, n + sizeof suffix) : NULL;
    if (name)
        memcpy(name + n, suffix, sizeof suffix);
    else
        free(target);
    return name;
}

/** The file's two names, if `path` is one that may be written. */
static enum status take_names(struct base_part *part, const char *path,
                              const struct base_part_options *options, struct status_why *why)
{
    struct stat existing;
    bool exists = stat(path, &existing) == 0;
    if (path[0] == '\0')
        return status_fail(why, STATUS_IO, "the name of the file to be written is empty");
    if (exists && !S_ISREG(existing.st_mode))
        return status_fail(why, STATUS_IO,
                           "%s: is not a regular file; expected the name of a new one", path);
    if ((!exists && errno != ENOENT) || (exists && !options->only_new && access(path, W_OK) != 0))
        return status_fail(why, STATUS_IO, "%s: cannot be written: %s", path, strerror(errno));
    enum status status = base_written_check(path, part->kind, why);
    if (status)
        return status;
    part->path = base_file_target(path);
    part->name = base_part_name(path);
    if (!part->path || !part->name)
        return status_fail(why, STATUS_MEMORY, "%s: out of memory", path);
    part->replace = exists || options->force;
    part->is_whole = exists && !options->force && options->resume &&
                     (uint64_t)existing.st_size == options->n_bytes &&
                     access(part->name, F_OK) != 0;
    if (exists && !part->is_whole && options->only_new && !options->force)
        return fail_exists(path, why);
    if (part->is_whole)
        part->name[strlen(part->path)] = '\0';
    return STATUS_OK;
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
        if (base_file_is_at(part->fd, part->name))
            return STATUS_OK;
        close(part->fd);
    }
}

/** Refuse a file that something else put there. */
static enum status check_ours(const struct base_part *part, const struct base_part_options *options,
                              nlink_t n_names, struct status_why *why)
{
    char found[BASE_WRITTEN_NAME];
    const char *name = options->kind ? base_written_name(found, part->name) : NULL;
    bool ours = !name || strcmp(name, options->kind) == 0;
    if (ours && n_names <= 1)
        return STATUS_OK;
    return status_fail(why, STATUS_USAGE,
                       "%s: is %s, and is left as it is; move it, or give another name than %s",
                       part->name, ours ? "a file that has another name, too" : name, part->path);
}

/** See what the file holds, and empty it unless that is to be kept. */
static enum status take_contents(struct base_part *part, const struct base_part_options *options,
                                 struct status_why *why)
{
    struct stat now;
    if (fstat(part->fd, &now) != 0)
        return fail(part, "read", why);
    if (!S_ISREG(now.st_mode))
        return status_fail(why, STATUS_IO, "%s: is not a regular file", part->name);
    part->kept = (uint64_t)now.st_size;
    if (part->is_whole)
        return STATUS_OK;
    enum status status = check_ours(part, options, now.st_nlink, why);
    part->end = options->resume ? part->kept : 0;
    if (status || options->resume)
        return status;
    if (ftruncate(part->fd, 0) != 0)
        return fail(part, "emptied", why);
    part->kept = 0;
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
        error = base_system_set_aside(part->fd, (int64_t)part->n_bytes);
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
    part->kind = options->force ? NULL : options->kind;
    enum status status = take_names(part, path, options, why);
    if (!status)
        status = open_locked(part, why);
    if (!status)
        status = take_contents(part, options, why);
    bool is_ours = !status;
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

/** Check that what was written has not been cut off. */
static enum status check_size(const struct base_part *part, struct status_why *why)
{
    struct stat now;
    if (fstat(part->fd, &now) != 0)
        return fail(part, "examined", why);
    if ((uint64_t)now.st_size >= part->end)
        return STATUS_OK;
    return status_fail(why, STATUS_IO,
                       "%s: has %jd bytes where %" PRIu64
                       " were written: something cut it off; record it again",
                       part->name, (intmax_t)now.st_size, part->end);
}

enum status base_part_write(struct base_part *part, uint64_t offset, const void *bytes,
                            size_t n_bytes, struct status_why *why)
{
    if (part->is_whole)
        return fail_exists(part->path, why);
    enum status status = check_size(part, why);
    if (status || n_bytes == 0)
        return status;
    for (size_t done = 0; done < n_bytes;) {
        ssize_t n =
            pwrite(part->fd, (const char *)bytes + done, n_bytes - done, (off_t)(offset + done));
        if (n < 0 && errno != EINTR)
            return fail(part, "written", why);
        done += n > 0 ? (size_t)n : 0;
    }
    uint64_t before = part->end;
    while (before < offset + n_bytes &&
           !atomic_compare_exchange_weak(&part->end, &before, offset + n_bytes))
        ;
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

/** Everything before the rename. */
static enum status settle(struct base_part *part, struct status_why *why)
{
    struct stat existing;
    enum status status = check_size(part, why);
    if (!status && ftruncate(part->fd, (off_t)base_min(part->end, part->n_bytes)) != 0)
        return fail(part, "cut to its size", why);
    /* Permissions of what is replaced; a file system without them is no reason to refuse. */
    if (stat(part->path, &existing) == 0 && fchmod(part->fd, existing.st_mode & 07777) != 0)
        errno = 0;
    if (!status)
        status = base_part_sync(part, why);
    if (!status && !base_file_is_at(part->fd, part->name))
        status = status_fail(why, STATUS_IO,
                             "%s: was removed or renamed while it was written; there is no %s",
                             part->name, part->path);
    return status;
}

enum status base_part_commit(struct base_part *part, struct status_why *why)
{
    if (part->is_whole) {
        release(part);
        return STATUS_OK;
    }
    enum status status = settle(part, why);
    bool other = base_written_check(part->path, part->kind, NULL);
    if (!status && (other || base_file_rename(part->name, part->path, part->replace) != 0))
        status = other || errno == EEXIST
                     ? status_fail(why, STATUS_USAGE,
                                   "%s: was made by something else meanwhile, and left as it is; "
                                   "the recording is whole, in %s: rename it",
                                   part->path, part->name)
                     : status_fail(why, STATUS_IO, "%s: cannot be renamed to %s: %s", part->name,
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
    if (!keep && !part->is_whole && base_file_is_at(part->fd, part->name))
        unlink(part->name);
    release(part);
}
