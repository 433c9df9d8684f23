#include "eval/identity.h"

enum status eval_model_id(char hex[EVAL_HEX], const struct gguf_file *file, struct status_why *why)
{
    struct eval_digest *digest = eval_digest_open();
    for (size_t i = 0; i < gguf_n_shards(file); i++) {
        uint64_t n_bytes = 0, data_offset = 0;
        const void *data = gguf_shard_data(file, i, &n_bytes, &data_offset);
        eval_digest_add(digest, data, (size_t)(data_offset < n_bytes ? data_offset : n_bytes));
    }
    for (size_t i = 0; i < gguf_n_tensors(file); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(file, i);
        bool small = t->n_bytes < EVAL_MODEL_ID_PREFIX;
        eval_digest_add(digest, t->data, small ? (size_t)t->n_bytes : EVAL_MODEL_ID_PREFIX);
    }
    return eval_digest_close(digest, hex, why);
}

enum status eval_file_hash(char hex[EVAL_HEX], const struct gguf_file *file, struct status_why *why)
{
    struct eval_digest *digest = eval_digest_open();
    for (size_t i = 0; i < gguf_n_shards(file); i++) {
        uint64_t n_bytes = 0, data_offset = 0;
        const void *data = gguf_shard_data(file, i, &n_bytes, &data_offset);
        eval_digest_add(digest, data, (size_t)n_bytes);
    }
    return eval_digest_close(digest, hex, why);
}
