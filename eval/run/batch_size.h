/** How many tokens to evaluate at a time where no option says so. No figure depends on it. */
#ifndef EVAL_RUN_BATCH_SIZE_H
#define EVAL_RUN_BATCH_SIZE_H

#include "eval/run/run.h"

/**
 * Choose -b: as many of the longest sequences as should take 15 seconds, at least one; at most what
 * keeps the residual stream within 64 MiB and 16384 tokens. The rate is measured with a small
 * product of the model's weights; attention and scoring are slower, so a batch may take 25 seconds.
 * An interruption then loses little, and a weight is decoded for enough tokens: 512 cost 3 % more
 * of a run than 1024, beyond which nothing is gained (width 2048, Q4_K). With several workers each
 * has eight batches or more. Fails: STATUS_MEMORY,
 * STATUS_DEVICE, STATUS_CANCELLED.   Cost: some milliseconds.
 */
enum status eval_batch_choose(const struct eval_units *units, const struct eval_models *models,
                              size_t *n_tokens, struct status_why *why);

#endif
