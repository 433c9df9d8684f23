#include "gguf/about/identity.h"

#include <string.h>

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

/** A few bytes of what the prefix has so many left of. */
static void add_some(struct base_digest *digest, size_t *left, const void *data, size_t n_bytes)
{
    size_t n = base_min(n_bytes, *left);
    base_digest_add(digest, data, n);
    *left -= n;
}

/** The words that a row's zero points lie in. */
static void add_zeros(struct base_digest *digest, size_t *left, const struct gguf_scales *scales)
{
    uint32_t words[64];
    for (size_t i = 0, n = 0; *left > 0 && i < scales->n_cols; i += n) {
        for (n = 0; n < 64 && i + n < scales->n_cols; n++)
            memcpy(&words[n], gguf_words_at(&scales->packed->zeros, scales->first_row, i + n),
                   sizeof *words);
        add_some(digest, left, words, n * sizeof *words);
    }
}

/** Zero points and groups of packed integers, each up to the prefix's number of bytes. */
static void add_packed(struct base_digest *digest, const struct gguf_tensor *t)
{
    size_t of_zeros = GGUF_MODEL_ID_PREFIX, of_groups = GGUF_MODEL_ID_PREFIX;
    const uint8_t *last = NULL; /* rows share words */
    for (uint64_t row = 0; t->scales && row < t->n_rows && of_zeros + of_groups > 0; row++) {
        struct gguf_scales scales = gguf_tensor_scales(t, row);
        const struct gguf_packed *packed = scales.packed;
        if (packed && packed->groups && row % t->ne[1] == 0)
            add_some(digest, &of_groups, packed->groups, t->ne[0] * sizeof *packed->groups);
        if (!packed || !packed->zeros.data)
            continue;
        const uint8_t *first = gguf_words_at(&packed->zeros, scales.first_row, 0);
        if (first != last)
            add_zeros(digest, &of_zeros, &scales);
        last = first;
    }
}

static void add_prefix(struct base_digest *digest, const struct gguf_tensor *t)
{
    size_t left = prefix_of(t);
    add_scales(digest, t);
    add_packed(digest, t);
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
