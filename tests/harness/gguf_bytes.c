#include "tests/harness/gguf_bytes.h"

#include <inttypes.h>

#include "gguf/file_impl.h"

static enum status read_shard(struct gguf_file *file, const void *data, size_t n_bytes,
                              struct status_why *why)
{
    struct gguf_shard *shard = &file->shards[0];
    uint32_t n_parts;
    shard->path = strdup(file->path);
    if (!shard->path)
        return status_fail(why, STATUS_MEMORY, "%s: out of memory", file->path);
    shard->data = data;
    shard->n_bytes = n_bytes;
    enum status status = gguf_directory_read(file, 0, why);
    if (!status)
        status = gguf_split_count(shard, &n_parts, why);
    if (!status && n_parts > 1)
        status = status_fail(why, STATUS_UNSUPPORTED,
                             "%s: is one of %" PRIu32 " parts, expected a whole file", file->path,
                             n_parts);
    return status;
}

enum status gguf_bytes_list(struct gguf_file **out, const void *data, size_t n_bytes,
                            const char *name, struct status_why *why)
{
    enum status status = gguf_file_new(out, name, 1, why);
    if (!status)
        status = read_shard(*out, data, n_bytes, why);
    if (!status)
        status = gguf_file_copy_names(*out, why);
    if (status) {
        gguf_close(*out);
        *out = NULL;
    }
    return status;
}

enum status gguf_bytes_open(struct gguf_file **out, const void *data, size_t n_bytes,
                            const char *name, struct status_why *why)
{
    enum status status = gguf_bytes_list(out, data, n_bytes, name, why);
    if (!status)
        status = gguf_check_types(*out, why);
    if (status) {
        gguf_close(*out);
        *out = NULL;
    }
    return status;
}
