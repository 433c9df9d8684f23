/** Prompts whose tokens are known: every token after the first one is scored, as a request's. */
#ifndef EVAL_UNITS_PROMPTS_H
#define EVAL_UNITS_PROMPTS_H

#include "eval/units/requests.h"

/**
 * Make requests of n prompts, at least one token each. Their scores have the n_likeliest likeliest
 * tokens (1 to KERN_TOP_MAX), too.
 * next: also the likeliest token after the last one, as if a token stood there: the last of the
 * scores is then none.   A prompt of which nothing is scored has no sequence.
 * Fails: STATUS_MEMORY.
 */
enum status eval_prompt_scores_make(struct eval_request_scores *out,
                                    const struct model_tokens *prompts, size_t n, bool next,
                                    size_t n_likeliest, struct status_why *why);

#endif
