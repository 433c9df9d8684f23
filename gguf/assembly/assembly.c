#include "gguf/assembly/assembly.h"

#include <stdlib.h>
#include <string.h>

#include "gguf/file_impl.h"

enum status gguf_assemble(struct gguf_file **out, const char *path, void *directory,
                          uint64_t n_bytes, size_t n_files, struct status_why *why)
{
    enum status status = gguf_file_new(out, path, 1 + n_files, why);
    if (status) {
        free(directory);
        return status;
    }
    struct gguf_shard *shard = &(*out)->shards[0];
    (*out)->directory = directory;
    shard->path = strdup(path);
    shard->data = directory;
    shard->n_bytes = n_bytes;
    status = shard->path ? gguf_directory_read(*out, 0, why)
                         : status_fail(why, STATUS_MEMORY, "%s: out of memory", path);
    if (status) {
        gguf_close(*out);
        *out = NULL;
    }
    return status;
}

enum status gguf_assemble_file(struct gguf_file *file, size_t i, const struct gguf_assembled *part,
                               struct status_why *why)
{
    struct gguf_shard *shard = &file->shards[1 + i];
    shard->path = strdup(part->path);
    if (!shard->path)
        return status_fail(why, STATUS_MEMORY, "%s: out of memory", part->path);
    shard->map = *part->map;
    *part->map = (struct gguf_map){0};
    shard->data = shard->map.data;
    shard->n_bytes = shard->map.n_bytes;
    shard->data_offset = part->data_offset;
    return STATUS_OK;
}

enum status gguf_assemble_tensor(struct gguf_file *file, const struct gguf_tensor *tensor,
                                 uint32_t type_id, struct status_why *why)
{
    size_t n_bytes = strlen(tensor->name);
    char *name = gguf_file_memory(file, n_bytes + 1);
    if (!name)
        return status_fail(why, STATUS_MEMORY, "%s: out of memory for a name", file->path);
    memcpy(name, tensor->name, n_bytes + 1);
    struct gguf_tensor own = *tensor;
    enum status status = gguf_tensor_measure(&own, type_id, why);
    if (!status)
        status = gguf_tensors_append(file, (struct base_string){name, n_bytes}, &own, why);
    if (status)
        status_context(why, "%s: tensor %s", file->path, name);
    return status;
}

enum status gguf_assemble_pairs(struct gguf_file *file, struct gguf_file *from, const char *prefix,
                                struct status_why *why)
{
    size_t n_prefix = strlen(prefix);
    enum status status = STATUS_OK;
    file->tokens = from;
    for (size_t i = 0; !status && i < gguf_n_kv(from); i++) {
        const struct gguf_kv *kv = gguf_kv_at(from, i);
        if (kv->key.n_bytes > n_prefix && memcmp(kv->key.data, prefix, n_prefix) == 0)
            status = gguf_pairs_append(&file->shards[0], kv, why);
    }
    return status;
}

enum status gguf_assemble_finish(struct gguf_file *file, struct status_why *why)
{
    enum status status = gguf_check_types(file, why);
    return status ? status : gguf_file_copy_names(file, why);
}
