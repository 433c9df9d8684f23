/** Scores of rows that one head has and the others lack. */
#ifndef KERNELS_SCORING_BEYOND_H
#define KERNELS_SCORING_BEYOND_H

#include "kernels/scoring.h"

/**
 * Fill in `beyond` of op->rows, which have been scored: each head's further rows are scored alone,
 * and the logarithms of both sums give the share. score: the backend's. Fails: STATUS_MEMORY, as
 * it.
 */
enum status kern_score_beyond(struct kern_backend *b, const struct kern_score *op,
                              kern_score_fn *score, struct status_why *why);

#endif
