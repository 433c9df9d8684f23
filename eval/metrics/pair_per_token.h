/** The comparison of single tokens as lines of tab-separated values. */
#ifndef EVAL_METRICS_PAIR_PER_TOKEN_H
#define EVAL_METRICS_PAIR_PER_TOKEN_H

#include "base/file/atomic_file.h"
#include "eval/metrics/kld.h"

/**
 * Append the finished windows of a candidate in index order, one line per scored token; the
 * first candidate (0) begins with a line of names. Columns:
 *   candidate                        its index
 *   window position token_id token   as eval_per_token_write has them
 *   base_logprob logprob             natural logarithms, 12 significant digits
 *   base_rank rank                   of the token
 *   base_entropy entropy             of the predictions
 *   kld reverse_kld js               KL(base || candidate), KL(candidate || base), Jensen-Shannon
 *   same_top common_5 common_10      what of the base's 1, 5 and 10 most likely tokens is shared
 * Fails: STATUS_MEMORY.
 */
enum status eval_pair_per_token_write(struct base_file *file, const struct eval_kld_tables *tables,
                                      size_t candidate, const struct model_tokenizer *tokenizer,
                                      struct status_why *why);

#endif
