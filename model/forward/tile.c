#include "model/forward/tile.h"

#include <assert.h>

#include "base/arithmetic.h"

static size_t segment_end(const struct model_segment *s)
{
    return s->start + s->n_tokens;
}

/** Index after the last segment of the family that segment i belongs to. */
static size_t family_end(const struct model_batch *batch, size_t i)
{
    do
        i++;
    while (i < batch->n_segments && batch->segments[i].parent >= 0);
    return i;
}

static size_t parent_tokens(const struct model_batch *batch, const struct model_segment *s)
{
    return s->parent >= 0 ? batch->segments[s->parent].n_tokens : 0;
}

/** The first token after whole families from segment i on that end by `limit`. */
static size_t take_families(const struct model_batch *batch, size_t i, size_t limit)
{
    size_t taken = batch->segments[i].start;
    while (i < batch->n_segments) {
        i = family_end(batch, i);
        size_t end = segment_end(&batch->segments[i - 1]);
        if (end > limit)
            break;
        taken = end;
    }
    return taken;
}

/** As take_families, but by segments of one family, up to segment `last`. */
static size_t take_segments(const struct model_batch *batch, size_t i, size_t last, size_t limit)
{
    size_t taken = batch->segments[i].start;
    for (; i < last && segment_end(&batch->segments[i]) <= limit; i++)
        taken = segment_end(&batch->segments[i]);
    return taken;
}

struct model_tile model_tile_at(const struct model_batch *batch,
                                const struct model_tile_limits *limits, size_t start,
                                size_t segment)
{
    const struct model_segment *first = &batch->segments[segment];
    assert(start >= first->start && start < segment_end(first));
    struct model_tile tile = {.start = start, .segment = segment};
    /* Only a swept family is ever cut, and it began at row 0. */
    tile.kv_row = parent_tokens(batch, first) + (start - first->start);
    size_t room = base_min(limits->n_tokens, limits->n_kv_rows - tile.kv_row);
    size_t limit = base_min(start + room, batch->n_tokens);

    bool begins_family = start == first->start && first->parent < 0;
    size_t end = begins_family ? take_families(batch, segment, limit) : start;
    if (end == start) {
        /* Sweep: the rest of this segment, then whole children; a long one is cut. */
        size_t last = family_end(batch, segment);
        end = base_min(segment_end(first), limit);
        if (end == segment_end(first) && segment + 1 < last)
            end = take_segments(batch, segment + 1, last, limit);
        if (last < batch->n_segments && end == batch->segments[last].start)
            end = take_families(batch, last, limit);
    }
    assert(end > start);
    tile.n_tokens = end - start;
    return tile;
}

size_t model_tile_next_segment(const struct model_batch *batch, const struct model_tile *tile)
{
    size_t end = tile->start + tile->n_tokens;
    size_t i = tile->segment;
    while (i < batch->n_segments && segment_end(&batch->segments[i]) <= end)
        i++;
    return i;
}

size_t model_tile_count(const struct model_batch *batch, const struct model_tile_limits *limits)
{
    size_t count = 0;
    size_t segment = 0;
    for (size_t start = 0; start < batch->n_tokens; count++) {
        struct model_tile tile = model_tile_at(batch, limits, start, segment);
        segment = model_tile_next_segment(batch, &tile);
        start += tile.n_tokens;
    }
    return count;
}

/** Key row of a segment's first token, seen from a tile that holds some token of it or after. */
static size_t key_row(const struct model_tile *tile, const struct model_segment *s)
{
    if (segment_end(s) <= tile->start)
        return 0; /* the parent of a swept family, kept from an earlier tile */
    return tile->kv_row + s->start - tile->start;
}

size_t model_tile_ranges(const struct model_batch *batch, const struct model_tile *tile,
                         struct kern_query_range *ranges, int32_t *positions)
{
    size_t end = tile->start + tile->n_tokens;
    size_t n_ranges = 0;
    size_t token = tile->start;
    for (size_t i = tile->segment; token < end; i++) {
        const struct model_segment *s = &batch->segments[i];
        size_t stop = base_min(segment_end(s), end);
        struct kern_query_range *range = &ranges[n_ranges++];
        *range = (struct kern_query_range){.q_row = token - tile->start,
                                           .n_q = stop - token,
                                           .q_offset = token - s->start,
                                           .kv_row = key_row(tile, s),
                                           .n_parent = parent_tokens(batch, s)};
        if (s->parent >= 0)
            range->parent_kv_row = key_row(tile, &batch->segments[s->parent]);
        for (; token < stop; token++)
            positions[token - tile->start] = s->first_position + (int32_t)(token - s->start);
    }
    return n_ranges;
}

void model_tile_batch_rows(const struct model_batch *batch, const struct model_tile *tile,
                           struct kern_query_range *ranges, size_t n_ranges)
{
    for (size_t i = 0; i < n_ranges; i++) {
        const struct model_segment *s = &batch->segments[tile->segment + i];
        ranges[i].kv_row = s->start;
        ranges[i].parent_kv_row = s->parent >= 0 ? batch->segments[s->parent].start : 0;
    }
}

/** Whether tokens of a family are in a later tile. */
static bool goes_on_later(const struct model_batch *batch, const struct model_tile *tile,
                          size_t segment)
{
    size_t last = family_end(batch, segment) - 1;
    return segment_end(&batch->segments[last]) > tile->start + tile->n_tokens;
}

size_t model_tile_runs(const struct model_batch *batch, const struct model_tile *tile,
                       struct kern_run *runs)
{
    size_t end = tile->start + tile->n_tokens, n_runs = 0, token = tile->start;
    ptrdiff_t parent = KERN_NONE; /* the run of the family's parent, if the tile has its end */
    for (size_t i = tile->segment; token < end; i++, n_runs++) {
        const struct model_segment *s = &batch->segments[i];
        size_t stop = base_min(segment_end(s), end);
        bool is_child = s->parent >= 0, begins = token == s->start;
        struct kern_run run = {.row = token - tile->start,
                               .n = stop - token,
                               .index = parent_tokens(batch, s) + (token - s->start),
                               .parent = is_child && begins ? parent : KERN_NONE,
                               .from = KERN_NONE,
                               .to = KERN_NONE};
        if (!begins)
            run.from = is_child ? MODEL_STATE_CHILD : MODEL_STATE_PARENT;
        else if (is_child && parent == KERN_NONE)
            run.from = MODEL_STATE_PARENT;
        if (is_child && stop < segment_end(s))
            run.to = MODEL_STATE_CHILD;
        else if (!is_child && goes_on_later(batch, tile, i))
            run.to = MODEL_STATE_PARENT;
        if (!is_child)
            parent = (ptrdiff_t)n_runs;
        runs[n_runs] = run;
        token = stop;
    }
    return n_runs;
}
