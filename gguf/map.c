#include "gguf/map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file/folder.h"
#include "base/file/name.h"
#include "base/system/system.h"
#include "base/text/printable.h"
#include "base/text/words.h"

/** The first file in it that is a model, or a part of one in another format, says what was meant.
 */
static enum status fail_folder(const char *path, struct status_why *why)
{
    struct base_folder folder = {0};
    const char *model = NULL, *other = NULL;
    bool listed = !base_folder_list(&folder, path, NULL);
    for (size_t i = 0; listed && i < folder.n; i++) {
        const char *name = folder.paths[i];
        if (!model && base_ends_with(name, ".gguf"))
            model = name;
        else if (!other && (base_ends_with(name, ".safetensors") || base_ends_with(name, ".bin") ||
                            base_ends_with(name, ".pt") || base_ends_with(name, ".pth")))
            other = name;
    }
    if (model)
        status_fail(why, STATUS_IO,
                    "%s: is a directory, expected a GGUF file; name the one in it: %s", path,
                    model);
    else if (other)
        status_fail(why, STATUS_IO,
                    "%s: is a directory with a checkpoint (%s), expected a GGUF file; llama.cpp's "
                    "convert_hf_to_gguf.py makes GGUF of it",
                    path, base_file_name(other));
    else
        status_fail(why, STATUS_IO, "%s: is a directory, expected a GGUF file", path);
    base_folder_free(&folder);
    return STATUS_IO;
}

static enum status map_descriptor(struct gguf_map *map, int fd, const char *path,
                                  const char *expected, struct status_why *why)
{
    struct stat about;
    if (fstat(fd, &about) != 0)
        return status_fail(why, STATUS_IO, "%s: cannot be examined: %s", path, strerror(errno));
    if (S_ISDIR(about.st_mode))
        return fail_folder(path, why);
    if (!S_ISREG(about.st_mode))
        return status_fail(why, STATUS_IO, "%s: is not a regular file, expected %s", path,
                           expected);
    if (about.st_size == 0)
        return status_fail(why, STATUS_IO, "%s: is empty, expected %s", path, expected);
    if ((uintmax_t)about.st_size > SIZE_MAX)
        return status_fail(why, STATUS_IO, "%s: is too large for this machine's addresses", path);
    void *data = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (data == MAP_FAILED)
        return status_fail(why, STATUS_IO, "%s: cannot be mapped: %s", path, strerror(errno));
    *map = (struct gguf_map){
        .data = data, .n_bytes = (size_t)about.st_size, .fd = fd, .opened = about};
    return STATUS_OK;
}

enum status gguf_map_open(struct gguf_map *map, const char *path, struct status_why *why)
{
    return gguf_map_open_as(map, path, "a GGUF file", why);
}

enum status gguf_map_open_as(struct gguf_map *map, const char *path, const char *expected,
                             struct status_why *why)
{
    *map = (struct gguf_map){0};
    /* O_NONBLOCK: opening a pipe that nobody writes to must not hang; files ignore it. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return status_fail(why, STATUS_IO, "%s: cannot be opened: %s", path, strerror(errno));
    enum status status = map_descriptor(map, fd, path, expected, why);
    if (status)
        close(fd);
    return status;
}

static void advise(const void *data, size_t n_bytes, int advice)
{
    long page = sysconf(_SC_PAGESIZE);
    if (n_bytes == 0 || page <= 0)
        return;
    size_t before = (uintptr_t)data % (uintptr_t)page;
    /* The advice goes to the mapping, which is only read; the type knows no const. */
    (void)posix_madvise((char *)(uintptr_t)data - before, n_bytes + before, advice);
}

void gguf_map_read_ahead(const void *data, size_t n_bytes)
{
    advise(data, n_bytes, POSIX_MADV_WILLNEED);
}

void gguf_map_read_alone(const void *data, size_t n_bytes, bool alone)
{
    advise(data, n_bytes, alone ? POSIX_MADV_RANDOM : POSIX_MADV_NORMAL);
}

enum status gguf_map_check_unchanged(const struct gguf_map *map, const char *path,
                                     struct status_why *why)
{
    if (!map->data || map->fd < 0)
        return STATUS_OK;
    return base_file_check_unchanged(map->fd, &map->opened, path, why);
}

/** The first n_bytes of the file into memory. */
static enum status read_begin(const struct gguf_map *map, char *to, size_t n_bytes,
                              const char *path, struct status_why *why)
{
    for (size_t n = 0; n < n_bytes;) {
        ssize_t got = pread(map->fd, to + n, n_bytes - n, (off_t)n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return status_fail(why, STATUS_IO, "%s: cannot be read: %s", path, strerror(errno));
        if (got == 0)
            return status_fail(why, STATUS_CHANGED, "%s: became shorter while it was opened", path);
        n += (size_t)got;
    }
    return STATUS_OK;
}

enum status gguf_map_keep(struct gguf_map *map, size_t n_bytes, const char *path,
                          struct status_why *why)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), n = (n_bytes + page - 1) / page * page;
    if (n == 0 || !map->data)
        return STATUS_OK;
    char *copy = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (copy == MAP_FAILED)
        return status_fail(why, STATUS_MEMORY, "%s: no memory for its directory of %zu bytes", path,
                           n_bytes);
    enum status status = read_begin(map, copy, n < map->n_bytes ? n : map->n_bytes, path, why);
    if (!status &&
        (mprotect(copy, n, PROT_READ) != 0 || base_system_move_pages(copy, map->data, n) != 0))
        status = status_fail(why, STATUS_MEMORY, "%s: its directory cannot be kept in memory: %s",
                             path, strerror(errno));
    if (status)
        munmap(copy, n);
    else
        map->n_kept = n < map->n_bytes ? n : map->n_bytes;
    return status;
}

void gguf_map_let_go(struct gguf_map *map)
{
    if (!map->data || map->fd < 0)
        return;
    if (map->n_kept < map->n_bytes)
        (void)mmap((char *)map->data + map->n_kept, map->n_bytes - map->n_kept, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
    close(map->fd);
    map->fd = -1;
}

void gguf_map_close(struct gguf_map *map)
{
    if (map->data) {
        munmap(map->data, map->n_bytes);
        if (map->fd >= 0)
            close(map->fd);
    }
    *map = (struct gguf_map){0};
}
