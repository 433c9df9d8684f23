#include "model/forward/batch.h"

#include <inttypes.h>

size_t model_batch_length(const struct model_batch *batch, size_t i)
{
    if (i + 1 < batch->n_segments && batch->segments[i + 1].parent == (ptrdiff_t)i)
        i++;
    return (size_t)batch->segments[i].first_position + batch->segments[i].n_tokens;
}

enum status model_batch_check(const struct model_batch *batch, struct status_why *why)
{
    size_t next = 0;
    for (size_t i = 0; i < batch->n_segments; i++) {
        const struct model_segment *s = &batch->segments[i];
        if (s->start != next || s->n_tokens == 0 || s->n_tokens > batch->n_tokens - next)
            return status_fail(why, STATUS_USAGE,
                               "segment %zu covers tokens %zu to %zu, expected it to begin at %zu "
                               "and to end by %zu",
                               i, s->start, s->start + s->n_tokens, next, batch->n_tokens);
        if (s->n_unwanted > s->n_tokens)
            return status_fail(why, STATUS_USAGE,
                               "of segment %zu %zu tokens are not wanted, expected at most its %zu",
                               i, s->n_unwanted, s->n_tokens);
        next += s->n_tokens;
        int64_t first = 0;
        if (s->parent >= 0) {
            size_t p = (size_t)s->parent;
            if (p >= i || batch->segments[p].parent >= 0)
                return status_fail(why, STATUS_USAGE,
                                   "segment %zu has parent %zu, expected an earlier segment "
                                   "without a parent",
                                   i, p);
            /* Only siblings may lie between a child and its parent. */
            if (i > p + 1 && batch->segments[i - 1].parent != s->parent)
                return status_fail(why, STATUS_USAGE,
                                   "segment %zu does not follow its parent %zu directly", i, p);
            first = batch->segments[p].first_position + (int64_t)batch->segments[p].n_tokens;
        }
        if (s->first_position != first)
            return status_fail(why, STATUS_USAGE,
                               "segment %zu begins at position %" PRId32 ", expected %" PRId64, i,
                               s->first_position, first);
    }
    if (next != batch->n_tokens)
        return status_fail(why, STATUS_USAGE, "segments cover %zu of %zu tokens", next,
                           batch->n_tokens);
    return STATUS_OK;
}
