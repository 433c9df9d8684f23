#include "base/file/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/content/written.h"
#include "base/file/folder.h"
#include "base/file/name.h"
#include "base/system/system.h"

enum { MAX_NAMES = 1000 };

struct base_file {
    FILE *stream;
    char *path;       /* of the target, links resolved */
    char *temporary;  /* their name beside it before the rename; NULL: written directly */
    bool named;       /* a file of that name is there; before that it may have none */
    bool replaces;    /* the target was there, and may be replaced */
    const char *kind; /* by a file of this kind alone; NULL: of any */
    int error;        /* errno of the first failure; 0: none */
    char *bytes;      /* of a file in memory, once it is closed */
    size_t n_bytes;
};

/* Frees what is there; the temporary file stays where it is. */
static void release(struct base_file *file)
{
    if (!file)
        return;
    if (file->stream)
        fclose(file->stream);
    free(file->path);
    free(file->temporary);
    free(file->bytes);
    free(file);
}

static void note_error(struct base_file *file)
{
    if (!file->error)
        file->error = errno ? errno : EIO;
}

int base_file_stream(const char *path)
{
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    if (strcmp(path, "-") == 0 || strcmp(path, "/dev/stdout") == 0)
        return STDOUT_FILENO;
    if (strcmp(path, "/dev/stderr") == 0)
        return STDERR_FILENO;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        const char *digits = path + strlen(folders[i]);
        if (strncmp(path, folders[i], strlen(folders[i])) == 0 && *digits && strlen(digits) < 8 &&
            digits[strspn(digits, "0123456789")] == '\0')
            return (int)strtol(digits, NULL, 10);
    }
    return -1;
}

/** Where a symbolic link leads that leads to nothing yet; NULL at the end of the links. */
static char *next_link(const char *path)
{
    char target[PATH_MAX], folder[PATH_MAX];
    ssize_t n = readlink(path, target, sizeof target - 1);
    if (n < 0 || strlen(path) >= sizeof folder)
        return NULL;
    target[n] = '\0';
    memcpy(folder, path, strlen(path) + 1);
    const char *in = target[0] == '/' ? "" : dirname(folder);
    size_t n_bytes = strlen(in) + (size_t)n + 2;
    char *next = malloc(n_bytes);
    if (next)
        snprintf(next, n_bytes, "%s%s%s", in, *in ? "/" : "", target);
    return next;
}

char *base_file_target(const char *path)
{
    enum { MAX_LINKS = 40 };
    char *target = realpath(path, NULL);
    if (target)
        return target;
    target = strdup(path); /* new, or a name in /proc that leads to no path, such as a pipe */
    struct stat there;
    if (stat(path, &there) == 0)
        return target;
    for (int i = 0; i < MAX_LINKS && target; i++) {
        char *next = next_link(target);
        if (!next)
            break;
        free(target);
        target = next;
    }
    return target;
}

static const char *shown_path(const char *path)
{
    return strcmp(path, "-") == 0 ? "standard output" : path;
}

/* Devices and pipes cannot be replaced by a rename. */
static enum status open_directly(struct base_file *file, const char *path, struct status_why *why)
{
    /* A second opening of redirected output would begin at offset 0 and overwrite what is there. */
    int stream = base_file_stream(path);
    int fd = stream >= 0 ? dup(stream) : open(path, O_WRONLY | O_CLOEXEC);
    if (fd >= 0)
        file->stream = fdopen(fd, "wb");
    if (!file->stream) {
        int error = fd >= 0 && errno == EINVAL ? EBADF : errno; /* a stream that came closed */
        if (fd >= 0)
            close(fd);
        return status_fail(why, STATUS_IO, "%s: cannot be written: %s", shown_path(path),
                           strerror(error));
    }
    return STATUS_OK;
}

/* Bytes of a temporary name. */
static size_t name_bytes(const struct base_file *file)
{
    return strlen(file->path) + 48;
}

/* The n-th temporary name beside the target. */
static void choose_name(struct base_file *file, unsigned n)
{
    snprintf(file->temporary, name_bytes(file), "%s.%ld.%u.tmp", file->path, (long)getpid(), n);
}

/*
 * A file without a name in the folder of the target, or -1. Nothing is left of it, however the
 * process ends. Only where its later name would do, and where it can be given one.
 */
static int open_nameless(struct base_file *file)
{
    struct stat about;
    choose_name(file, 0);
    if (stat(file->temporary, &about) == 0 || errno != ENOENT)
        return -1;
    char *folder = strdup(file->path);
    int fd = folder ? base_system_nameless(dirname(folder)) : -1;
    free(folder);
    return fd;
}

/* A file of a name that nothing has yet, in the folder of the target. */
static int open_named(struct base_file *file)
{
    int fd = -1;
    for (unsigned attempt = 0; fd < 0 && attempt < MAX_NAMES; attempt++) {
        choose_name(file, attempt);
        fd = open(file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST)
            break;
    }
    file->named = fd >= 0;
    return fd;
}

/* Give a nameless file its temporary name. */
static bool give_name(struct base_file *file)
{
    for (unsigned attempt = 0; !file->named && attempt < MAX_NAMES; attempt++) {
        choose_name(file, attempt);
        file->named = base_system_give_name(fileno(file->stream), file->temporary) == 0;
        if (!file->named && errno != EEXIST)
            break;
    }
    return file->named;
}

static enum status open_temporary(struct base_file *file, const struct stat *existing,
                                  struct status_why *why)
{
    file->temporary = malloc(name_bytes(file));
    if (!file->temporary)
        return status_fail(why, STATUS_MEMORY, "%s: out of memory", file->path);
    int fd = open_nameless(file);
    if (fd < 0)
        fd = open_named(file);
    if (fd < 0) {
        int error = errno;
        free(file->temporary);
        file->temporary = NULL;
        return status_fail(why, STATUS_IO, "%s: cannot be written: %s", file->path,
                           strerror(error));
    }
    /* Best effort: a file system without permissions is no reason to refuse. */
    if (existing && fchmod(fd, existing->st_mode & 07777) != 0)
        errno = 0;
    file->stream = fdopen(fd, "wb");
    if (!file->stream) {
        close(fd);
        return status_fail(why, STATUS_MEMORY, "%s: out of memory", file->path);
    }
    return STATUS_OK;
}

enum status base_file_create(struct base_file **out, const char *path, const char *kind,
                             struct status_why *why)
{
    *out = NULL;
    struct base_file *file = calloc(1, sizeof *file);
    if (!file)
        return status_fail(why, STATUS_MEMORY, "%s: out of memory", path);

    enum status status;
    struct stat existing;
    bool stands = base_file_stream(path) >= 0;
    bool exists = !stands && stat(path, &existing) == 0;
    bool loops = !stands && !exists && errno == ELOOP;
    file->replaces = exists;
    file->kind = stands ? NULL : kind;
    file->path = stands ? strdup(path) : base_file_target(path);
    if (!file->path)
        status = status_fail(why, STATUS_MEMORY, "%s: out of memory", path);
    else if (exists && S_ISDIR(existing.st_mode))
        status =
            status_fail(why, STATUS_IO, "%s: is a directory, expected the name of a file", path);
    else if (path[0] == '\0')
        status = status_fail(why, STATUS_IO, "the name of the file to be written is empty");
    else if (stands || (exists && !S_ISREG(existing.st_mode)))
        status = open_directly(file, path, why);
    else if (loops)
        status = status_fail(why, STATUS_IO, "%s: cannot be written: %s", path, strerror(ELOOP));
    else if (exists && access(path, W_OK) != 0)
        status = status_fail(why, STATUS_IO, "%s: cannot be written: %s", path, strerror(errno));
    else
        status = base_written_check(path, kind, why);
    if (!status && !file->stream)
        status = open_temporary(file, exists ? &existing : NULL, why);

    if (status) {
        base_file_abandon(file);
        return status;
    }
    *out = file;
    return STATUS_OK;
}

struct base_file *base_file_in_memory(void)
{
    struct base_file *file = calloc(1, sizeof *file);
    if (file)
        file->stream = open_memstream(&file->bytes, &file->n_bytes);
    if (file && file->stream)
        return file;
    release(file);
    return NULL;
}

char *base_file_take(struct base_file *file, size_t *n_bytes)
{
    bool failed = fclose(file->stream) != 0 || file->error;
    char *bytes = failed ? NULL : file->bytes;
    *n_bytes = file->n_bytes;
    file->bytes = failed ? file->bytes : NULL;
    file->stream = NULL;
    release(file);
    return bytes;
}

void base_file_write(struct base_file *file, const void *bytes, size_t n_bytes)
{
    if (file->error || n_bytes == 0)
        return;
    errno = 0;
    if (fwrite(bytes, 1, n_bytes, file->stream) != n_bytes)
        note_error(file);
}

void base_file_printf(struct base_file *file, const char *format, ...)
{
    if (file->error)
        return;
    errno = 0;
    va_list args;
    va_start(args, format);
    if (vfprintf(file->stream, format, args) < 0)
        note_error(file);
    va_end(args);
}

void base_file_flush(struct base_file *file)
{
    errno = 0;
    if (!file->error && fflush(file->stream) != 0)
        note_error(file);
}

/** Rename. EEXIST where something is at the target that may not be replaced. */
static int put_in_place(const struct base_file *file)
{
    bool other = base_written_check(file->path, file->kind, NULL);
    if (other)
        errno = EEXIST;
    return other ? -1 : base_file_rename(file->temporary, file->path, file->replaces);
}

/* Somebody made a file of the target's name meanwhile. Neither is lost. */
static enum status fail_appeared(struct base_file *file, struct status_why *why)
{
    enum status status = status_fail(why, STATUS_IO,
                                     "%s: was made by something else meanwhile, and left as it is; "
                                     "this output is in %s",
                                     file->path, file->temporary);
    release(file);
    return status;
}

enum status base_file_commit(struct base_file *file, struct status_why *why)
{
    errno = 0;
    if (fflush(file->stream) != 0)
        note_error(file);
    if (file->temporary && !file->error && fsync(fileno(file->stream)) != 0)
        note_error(file);
    errno = 0;
    if (file->temporary && !file->error && !give_name(file))
        note_error(file);
    errno = ENOENT; /* what has the temporary name now is not ours */
    if (file->named && !base_file_is_at(fileno(file->stream), file->temporary)) {
        file->named = false;
        note_error(file);
    }
    errno = 0;
    if (fclose(file->stream) != 0)
        note_error(file);
    file->stream = NULL;
    errno = 0;
    if (file->temporary && !file->error && put_in_place(file) != 0) {
        if (errno == EEXIST)
            return fail_appeared(file, why);
        note_error(file);
    }

    if (file->error) {
        enum status status = status_fail(why, STATUS_IO, "%s: writing failed: %s",
                                         shown_path(file->path), strerror(file->error));
        base_file_abandon(file);
        return status;
    }
    if (file->temporary)
        base_folder_sync(file->path);
    release(file);
    return STATUS_OK;
}

void base_file_abandon(struct base_file *file)
{
    if (file && file->temporary && file->named &&
        (!file->stream || base_file_is_at(fileno(file->stream), file->temporary)))
        unlink(file->temporary);
    release(file);
}
