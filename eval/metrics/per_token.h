/** The scores of single tokens as lines of tab-separated values. */
#ifndef EVAL_METRICS_PER_TOKEN_H
#define EVAL_METRICS_PER_TOKEN_H

#include "base/file/atomic_file.h"
#include "eval/metrics/kld.h"

/**
 * Write the finished windows in index order, one line per scored token. Columns, named in
 * the first line:
 *   window     from 0
 *   position   in the window, of the token that predicts
 *   token_id   of the token that is scored
 *   token      the bytes that it stands for; see base/text/escape.h
 *   logprob    natural logarithm, 12 significant digits
 *   rank       1: the most likely token
 *   entropy    of the prediction in nats, 12 significant digits
 * The caller commits the file, which reports failed writes.
 * Fails: STATUS_MEMORY.
 */
enum status eval_per_token_write(struct base_file *file, const struct eval_plan *plan,
                                 const struct eval_stream *stream, const struct eval_table *table,
                                 const struct model_tokenizer *tokenizer, struct status_why *why);

/**
 * Append the finished windows of a candidate in the same way; the first candidate (0) begins with
 * a line of names. Columns:
 *   candidate                        its index
 *   window position token_id token   as above
 *   base_logprob logprob             natural logarithms, 12 significant digits
 *   base_rank rank                   of the token
 *   base_entropy entropy             of the predictions
 *   kld reverse_kld                  KL(base || candidate), KL(candidate || base)
 *   js tv                            Jensen-Shannon divergence, total variation
 *                                    (empty without with_js: they were not computed)
 *   same_top common_5 common_10      what of the base's 1, 5 and 10 most likely tokens is shared
 * Fails: STATUS_MEMORY.
 */
enum status eval_pair_per_token_write(struct base_file *file, const struct eval_kld_tables *tables,
                                      size_t candidate, bool with_js,
                                      const struct model_tokenizer *tokenizer,
                                      struct status_why *why);

/**
 * A tab and a number, as every table of tokens has them: 12 significant digits, whole numbers
 * (ranks, counts) as such, NaN without the sign that printf may give it.
 */
void eval_per_token_number(struct base_file *file, double value);

#endif
