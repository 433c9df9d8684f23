#include "model/tokenizer/run.h"

#include <stdlib.h>
#include <string.h>

/** Grow an array by half at least, so that appending costs O(1) on average. */
static enum status grow(struct model_tok_run *run, void **array, size_t *capacity, size_t n,
                        size_t item_bytes)
{
    size_t wanted = *capacity + *capacity / 2;
    wanted = wanted > n ? wanted : n;
    wanted = wanted > 256 ? wanted : 256;
    void *bigger = wanted <= SIZE_MAX / item_bytes ? realloc(*array, wanted * item_bytes) : NULL;
    if (!bigger)
        return status_fail(run->why, STATUS_MEMORY,
                           "cannot allocate %zu items of %zu bytes while tokenizing", wanted,
                           item_bytes);
    *array = bigger;
    *capacity = wanted;
    return STATUS_OK;
}

enum status model_tok_emit_all(struct model_tok_run *run, const int32_t *ids, size_t n)
{
    struct model_tokens *out = run->out;
    if (out->capacity - out->n < n) {
        void *array = out->ids;
        enum status st = grow(run, &array, &out->capacity, out->n + n, sizeof *out->ids);
        out->ids = array;
        if (st)
            return st;
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
    void *array = b->bytes;
    enum status st = grow(run, &array, &b->capacity, n, 1);
    b->bytes = array;
    return st;
}

enum status model_tok_grow_slots(struct model_tok_run *run, size_t n)
{
    void *array = run->slots;
    enum status st = grow(run, &array, &run->slots_capacity, n, sizeof *run->slots);
    run->slots = array;
    return st;
}

void model_tok_run_free(struct model_tok_run *run)
{
    model_tok_cache_free(&run->cache);
    model_merge_free(&run->merge);
    free(run->text.bytes);
    free(run->word.bytes);
    free(run->slots);
}
