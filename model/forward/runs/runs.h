/**
 * Where a tile's further keys lie: those that are made of runs of m consecutive tokens of a
 * sequence. Run w has the tokens w m .. w m + m - 1; a run that begins in a parent and ends in a
 * child is the child's. For model/ only.
 */
#ifndef MODEL_FORWARD_RUNS_H
#define MODEL_FORWARD_RUNS_H

#include <stdbool.h>

#include "kernels/types.h"

/** Rows of further keys that a tile makes, one after the other. */
struct model_new_runs {
    size_t first, n;
};

/**
 * The rows of further keys, a range for each of the tile's (model_tile_ranges()), with kv_row,
 * parent_kv_row and n_parent of further keys; what is of queries stays. A swept family's parent has
 * rows 0, 1, ... as long as its keys have; no row is past the number of rows of keys.
 */
struct model_new_runs model_runs_ranges(const struct kern_query_range *ranges, size_t n_ranges,
                                        size_t run, struct kern_query_range *out);

/**
 * What the new further keys are made of, in their order. rows: [n, run] rows of the tokens, or with
 * `overlap` [n, 2 run], those of the run before first (UINT32_MAX: there is none).
 * positions: [n], of the runs' first tokens.
 */
void model_runs_terms(const struct kern_query_range *ranges, size_t n_ranges, size_t run,
                      bool overlap, uint32_t *rows, int32_t *positions);

#endif
