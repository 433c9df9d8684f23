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
    bool logprobs; /* list them */
    size_t top;    /* so many of the likeliest tokens with each; at most KERN_TOP_MAX */
    bool next;     /* give the token after each prompt */
};

/** Tokens that are evaluated for at each position: one at least, which may be the next. */
static inline size_t serve_completion_n_likeliest(const struct serve_completion *c)
{
    return c->top ? c->top : 1;
}

/**
 * The reply, a completion as OpenAI's API has it, of scored prompts.
 * Fails: STATUS_MEMORY, STATUS_NONFINITE (a score: the sentence says of which token).
 */
enum status serve_completion_write(char **out, const struct serve_completion *c,
                                   const struct eval_request_scores *scores,
                                   const struct cli_model *model, struct status_why *why);

#endif
