/** How many tokens to evaluate at a time where nobody says. No figure depends on it. */
#ifndef EVAL_RUN_BATCH_SIZE_H
#define EVAL_RUN_BATCH_SIZE_H

#include "eval/run/run.h"

/**
 * Choose -b: as many of the longest sequences as should take 15 seconds, but no more than keep the
 * residual stream within 64 MiB and 16384 tokens; at least one. The rate is measured with a small
 * product of the model's own weights; attention and scoring run slower, so that a batch lasts at
 * most about 25 seconds. So an interruption loses little, memory is known before the run, and a
 * weight is decoded for enough tokens: at 512, decoding costs 3 % more of a run than at 1024, after
 * which nothing is gained (width 2048, Q4_K).
 * Fails: STATUS_MEMORY, STATUS_DEVICE, STATUS_CANCELLED.   Cost: some milliseconds.
 */
enum status eval_batch_choose(const struct eval_units *units, const struct eval_models *models,
                              size_t *n_tokens, struct status_why *why);

#endif
