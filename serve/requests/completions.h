/** A request of POST /v1/completions: prompts whose tokens are scored. */
#ifndef SERVE_REQUESTS_COMPLETIONS_H
#define SERVE_REQUESTS_COMPLETIONS_H

#include "base/text/words.h"
#include "cli/session/models.h"
#include "eval/units.h"

struct serve_prompt {
    char *text; /* NULL: ids were given */
    struct model_tokens tokens;
    size_t n_front; /* of them, BOS that is not of the prompt: 0 or 1 */
};

struct serve_completion {
    struct serve_prompt *prompts;
    size_t n, n_tokens;
    int bos; /* index into "auto always never" */
    bool parse_special, echo;
    bool logprobs, top; /* list them; with the likeliest tokens */
    bool next;          /* give the token after each prompt */
};

/**
 * The reply, a completion as OpenAI's API has it, of scored prompts.
 * Fails: STATUS_MEMORY, STATUS_NONFINITE (a score: the sentence says of which token).
 */
enum status serve_completion_write(char **out, const struct serve_completion *c,
                                   const struct eval_request_scores *scores,
                                   const struct cli_model *model, struct status_why *why);

#endif
