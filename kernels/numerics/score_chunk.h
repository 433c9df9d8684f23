/**
 * What scoring remembers of some hidden rows while the vocabulary passes by: running sums per
 * row and counters per target. Rows are lanes, in groups of KERN_LANES. A row may have several
 * targets: each group of rows has as many "slots", sets of rank counters, as its row with the
 * most targets.
 */
#ifndef KERNELS_NUMERICS_SCORE_CHUNK_H
#define KERNELS_NUMERICS_SCORE_CHUNK_H

#include <stdbool.h>

#include "base/status.h"
#include "kernels/numerics/pair_lanes.h"

struct kern_score;

/** A target of the chunk, and where it is counted. */
struct kern_chunk_target {
    size_t index; /* in the operation's targets */
    size_t row;   /* in the chunk */
    size_t slot;
};

struct kern_score_chunk {
    const struct kern_score *op;
    size_t first_row, n_rows; /* of the operation's rows */
    size_t n_groups;
    size_t n_slots;
    size_t *slot_begin;                /* [n_groups + 1] */
    struct kern_chunk_target *targets; /* in the operation's order */
    size_t n_targets;
    struct kern_score_lanes *sums; /* [n_heads][n_groups] */
    struct kern_rank_lanes *ranks; /* [n_heads][n_slots] */
    struct kern_top_lanes *tops;   /* [n_heads][n_groups], if kern_score_chunk_has_tops */
    struct kern_pair_lanes *pairs; /* [n_heads][n_groups], if wanted; head 0 has none */
    struct kern_js_lanes *js;      /* [n_heads][n_groups], if wanted; head 0 has none */
};

/**
 * State for rows [first_row, first_row + n_rows), everything at its beginning but the targets'
 * logits, which the caller enters into ranks.
 * Fails: STATUS_MEMORY. Close it in any case.
 */
enum status kern_score_chunk_open(struct kern_score_chunk *chunk, const struct kern_score *op,
                                  size_t first_row, size_t n_rows, struct status_why *why);
void kern_score_chunk_close(struct kern_score_chunk *chunk);

/** Whether the most likely tokens are kept: for pairs, or for themselves. */
bool kern_score_chunk_has_tops(const struct kern_score *op);

/** Bytes of such a state, if no row has more targets than its neighbours. */
size_t kern_score_chunk_bytes(const struct kern_score *op, size_t n_rows);

/** The counters of a target under a head; its lane is row % KERN_LANES. */
struct kern_rank_lanes *kern_score_chunk_rank(const struct kern_score_chunk *chunk, size_t head,
                                              const struct kern_chunk_target *target);

/** Write the chunk's part of op->rows, op->target_scores, op->tops and op->pairs but for js. */
void kern_score_chunk_finish(const struct kern_score_chunk *chunk);

/** Prepare the second pass, from what the first one has written, and write what it gives. */
void kern_score_chunk_begin_js(struct kern_score_chunk *chunk);
void kern_score_chunk_finish_js(const struct kern_score_chunk *chunk);

#endif
