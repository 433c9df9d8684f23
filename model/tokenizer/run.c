#include "model/tokenizer/run.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/text/utf8.h"

static enum status no_memory(const struct model_tok_run *run, size_t n, size_t item_bytes)
{
    return status_fail(run->why, STATUS_MEMORY,
                       "cannot allocate %zu items of %zu bytes while tokenizing", n, item_bytes);
}

enum status model_tok_emit_all(struct model_tok_run *run, const int32_t *ids, size_t n)
{
    struct model_tokens *out = run->out;
    if (out->capacity - out->n < n) {
        int32_t *grown = base_array_grow(out->ids, &out->capacity, out->n + n, sizeof *grown);
        if (!grown)
            return no_memory(run, out->n + n, sizeof *grown);
        out->ids = grown;
    }
    for (size_t i = 0; i < n; i++)
        out->ids[out->n++] = ids[i];
    return STATUS_OK;
}

enum status model_tok_emit(struct model_tok_run *run, int32_t id)
{
    return model_tok_emit_all(run, &id, 1);
}

enum status model_tok_grow(struct model_tok_run *run, struct model_tok_buffer *b, size_t n)
{
    char *grown = base_array_grow(b->bytes, &b->capacity, n, 1);
    if (!grown)
        return no_memory(run, n, 1);
    b->bytes = grown;
    return STATUS_OK;
}

enum status model_tok_grow_slots(struct model_tok_run *run, size_t n)
{
    uint32_t *grown = base_array_grow(run->slots, &run->slots_capacity, n, sizeof *grown);
    if (!grown)
        return no_memory(run, n, sizeof *grown);
    run->slots = grown;
    return STATUS_OK;
}

enum status model_tok_repair(struct model_tok_run *run, struct model_tok_buffer *b,
                             const char **text, size_t *n_bytes)
{
    if (base_utf8_first_bad(*text, *n_bytes) == *n_bytes)
        return STATUS_OK;
    enum status status = model_tok_reserve(run, b, base_utf8_repair(*text, *n_bytes, NULL));
    if (status)
        return status;
    *n_bytes = base_utf8_repair(*text, *n_bytes, b->bytes);
    *text = b->bytes;
    return STATUS_OK;
}

void model_tok_run_free(struct model_tok_run *run)
{
    model_tok_cache_free(&run->cache);
    model_merge_free(&run->merge);
    free(run->text.bytes);
    free(run->word.bytes);
    free(run->slots);
}
