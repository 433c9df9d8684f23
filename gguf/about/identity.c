#include "gguf/about/identity.h"

#include "base/arithmetic.h"
#include "gguf/map.h"

enum { PIECE_BYTES = 16 << 20 }; /* read while the one before is hashed */

static size_t prefix_of(const struct gguf_tensor *t)
{
    return (size_t)base_min(t->n_bytes, GGUF_MODEL_ID_PREFIX);
}

/** The scales that lie apart, row by row, up to the prefix's number of bytes. */
static void add_scales(struct base_digest *digest, const struct gguf_tensor *t)
{
    size_t left = GGUF_MODEL_ID_PREFIX;
    for (uint64_t row = 0; t->scales && left > 0 && row < t->n_rows; row++) {
        struct gguf_scales scales = gguf_tensor_scales(t, row);
        size_t n = scales.data ? base_min(gguf_scales_row_bytes(&scales), left) : 0;
        if (n > 0)
            base_digest_add(digest, gguf_scales_row(&scales, 0), n);
        left -= n;
    }
}

static void add_prefix(struct base_digest *digest, const struct gguf_tensor *t)
{
    size_t left = prefix_of(t);
    add_scales(digest, t);
    if (!t->view || t->view->col_step) { /* columns: the stored rows will do */
        base_digest_add(digest, t->data, left);
        return;
    }
    for (uint64_t row = 0; left > 0; row++) {
        size_t n = (size_t)base_min(t->row_bytes, left);
        base_digest_add(digest, gguf_tensor_row(t, row), n);
        left -= n;
    }
}

enum status gguf_model_id(char hex[BASE_HEX], const struct gguf_file *file, struct status_why *why)
{
    struct base_digest *digest = base_digest_open();
    for (size_t i = 0; i < gguf_n_shards(file); i++) {
        uint64_t n_bytes = 0, data_offset = 0;
        const void *data = gguf_shard_data(file, i, &n_bytes, &data_offset);
        base_digest_add(digest, data, (size_t)(data_offset < n_bytes ? data_offset : n_bytes));
    }
    /* All at once, for a disk that can do several things at a time. */
    for (size_t i = 0; i < gguf_n_tensors(file); i++)
        gguf_map_read_ahead(gguf_tensor_at(file, i)->data, prefix_of(gguf_tensor_at(file, i)));
    for (size_t i = 0; i < gguf_n_tensors(file); i++)
        add_prefix(digest, gguf_tensor_at(file, i));
    return base_digest_close(digest, hex, why);
}

/** Add a piece while the next one is being read. */
static void add_ahead(struct base_digest *digest, const unsigned char *data, size_t n_bytes)
{
    for (size_t at = 0; at < n_bytes;) {
        size_t n = base_min(n_bytes - at, PIECE_BYTES);
        gguf_map_read_ahead(data + at + n, base_min(n_bytes - at - n, PIECE_BYTES));
        base_digest_add(digest, data + at, n);
        at += n;
    }
}

enum status gguf_file_hash(char hex[BASE_HEX], const struct gguf_file *file, struct status_why *why)
{
    struct base_digest *digest = base_digest_open();
    for (size_t i = 0; i < gguf_n_shards(file); i++) {
        uint64_t n_bytes = 0, data_offset = 0;
        const void *data = gguf_shard_data(file, i, &n_bytes, &data_offset);
        add_ahead(digest, data, (size_t)n_bytes);
    }
    return base_digest_close(digest, hex, why);
}
