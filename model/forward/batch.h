/** A batch: tokens of many independent segments, evaluated together. */
#ifndef MODEL_FORWARD_BATCH_H
#define MODEL_FORWARD_BATCH_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/**
 * A run of tokens [start, start + n_tokens) of the batch at consecutive positions.
 * With a parent (the index of an earlier segment that has no parent itself) they also
 * attend to all of the parent's tokens, and first_position continues from its end.
 */
struct model_segment {
    size_t start, n_tokens;
    int32_t first_position;
    ptrdiff_t parent;  /* index of a segment, or -1 */
    size_t n_unwanted; /* of its first tokens: what the last layer makes of them is not wanted */
};

/** Segments lie one after the other, without gaps; children follow their parent directly. */
struct model_batch {
    const int32_t *tokens;
    size_t n_tokens;
    const struct model_segment *segments;
    size_t n_segments;
    /* [n_tokens], for struct kern_linear; NULL: none. With marks indexers choose for all tokens,
     * where the session has room for their choices, also where all keys are chosen. */
    const uint8_t *marks;
};

/**
 * Positions of the sequence that segment i is part of: it and its parent, or it and its first
 * child.
 */
size_t model_batch_length(const struct model_batch *batch, size_t i);

/** Check a batch against the rules above. Fails: STATUS_USAGE, naming the segment. */
enum status model_batch_check(const struct model_batch *batch, struct status_why *why);

#endif
