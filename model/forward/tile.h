/**
 * How the tokens of a batch are cut into tiles, and where the keys and values of a tile lie, or
 * the states of recurrent layers are kept between tiles.
 *
 * A family is a segment without a parent and its children. A tile holds whole families where
 * they fit. A longer family begins a tile of its own and is swept tile by tile: its parent's
 * keys stay in rows 0 .. P-1, and so do the earlier keys of a segment that a tile cuts. Since
 * attention looks back only, no tile needs a row that has not been computed yet, and the rows
 * are bounded by the longest segment with its parent, whatever the family's size.
 */
#ifndef MODEL_FORWARD_TILE_H
#define MODEL_FORWARD_TILE_H

#include "kernels/recurrent_types.h"
#include "kernels/types.h"
#include "model/forward/batch.h"

/** What a tile may hold; both at least 1. */
struct model_tile_limits {
    size_t n_tokens;
    size_t n_kv_rows; /* at least the longest segment with its parent */
};

/** Tokens [start, start + n_tokens) of the batch; token start + i has key row kv_row + i. */
struct model_tile {
    size_t start, n_tokens;
    size_t kv_row;
    size_t segment; /* that holds the first token */
};

/**
 * The tile that begins at token `start` (0, or where the tile before ended) of a checked batch
 * with start < batch->n_tokens.   segment: the one that holds that token.
 * Cost: O(segments of the family).
 */
struct model_tile model_tile_at(const struct model_batch *batch,
                                const struct model_tile_limits *limits, size_t start,
                                size_t segment);

/** The segment that holds the first token after the tile (n_segments at the end). */
size_t model_tile_next_segment(const struct model_batch *batch, const struct model_tile *tile);

/** How many tiles the batch makes. */
size_t model_tile_count(const struct model_batch *batch, const struct model_tile_limits *limits);

/**
 * What attention and rope need to know of a tile.
 * ranges: room for tile->n_tokens, one per segment that the tile touches; returns how many.
 * positions: room for tile->n_tokens, of every token.
 */
size_t model_tile_ranges(const struct model_batch *batch, const struct model_tile *tile,
                         struct kern_query_range *ranges, int32_t *positions);

/** The same ranges for keys that lie in the order of the batch: row i is its token i. */
void model_tile_batch_rows(const struct model_batch *batch, const struct model_tile *tile,
                           struct kern_query_range *ranges, size_t n_ranges);

/** The saved states that recurrent layers need: of a swept family's parent, of a cut child. */
enum { MODEL_STATE_PARENT, MODEL_STATE_CHILD, MODEL_N_STATES };

/**
 * What recurrent layers need to know of a tile: a run for each range, in the same order.
 * runs: room for tile->n_tokens; returns how many.
 */
size_t model_tile_runs(const struct model_batch *batch, const struct model_tile *tile,
                       struct kern_run *runs);

#endif
