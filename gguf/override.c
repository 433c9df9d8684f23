/* Pairs that the caller puts in place of the file's. */
#include <stdlib.h>

#include "gguf/file_impl.h"

/* Bytes of one value as stored. */
static size_t stored_bytes(const struct gguf_kv *pair)
{
    if (pair->type == GGUF_VALUE_STRING)
        return sizeof(uint64_t) + (size_t)gguf_load_u64(pair->data);
    return gguf_value_size(pair->type);
}

enum status gguf_override(struct gguf_file *file, const struct gguf_kv *pair,
                          struct status_why *why)
{
    size_t n_bytes = stored_bytes(pair);
    struct gguf_override *copy = malloc(sizeof *copy + pair->key.n_bytes + n_bytes);
    if (!copy)
        return status_fail(why, STATUS_MEMORY, "%s: out of memory for a key", file->path);
    memcpy(copy->bytes, pair->key.data, pair->key.n_bytes);
    memcpy(copy->bytes + pair->key.n_bytes, pair->data, n_bytes);
    copy->next = file->overrides;
    file->overrides = copy;

    struct gguf_kv own = *pair;
    own.key.data = (const char *)copy->bytes;
    own.data = copy->bytes + pair->key.n_bytes;
    own.element_type = own.type;
    own.count = 1;
    struct gguf_shard *shard = &file->shards[0];
    int32_t i = base_strtab_find(&shard->kv_names, pair->key);
    if (i < 0)
        return gguf_pairs_append(shard, &own, why);
    shard->kv[i] = own;
    return STATUS_OK;
}
