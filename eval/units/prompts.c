#include "eval/units/prompts.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"

static enum status no_memory(struct status_why *why)
{
    return status_fail(why, STATUS_MEMORY, "no memory for the tokens of the prompts");
}

static enum status add(struct eval_request_scores *out, const struct model_tokens *prompt,
                       bool next, struct status_why *why)
{
    size_t owner = out->n++, n_tokens = prompt->n + next;
    struct eval_request_score *s = &out->items[owner];
    assert(prompt->n > 0);
    s->greedy = true;
    s->n_scored = n_tokens - 1;
    s->ids = calloc(n_tokens, sizeof *s->ids);
    s->log_probs = calloc(n_tokens, sizeof *s->log_probs);
    s->likeliest = calloc(n_tokens, sizeof *s->likeliest);
    if (!s->ids || !s->log_probs || !s->likeliest)
        return no_memory(why);
    memcpy(s->ids, prompt->ids, prompt->n * sizeof *s->ids); /* token 0 stands for the next one */
    if (!s->n_scored)
        return STATUS_OK;
    out->sequences.items[out->sequences.n++] = (struct eval_sequence){
        .ids = s->ids,
        .n_tokens = n_tokens,
        .first_scored = 1,
        .owner = owner,
        .log_probs = s->log_probs,
        .likeliest = s->likeliest,
    };
    s->n_left = 1;
    out->n_scored += s->n_scored;
    out->longest = base_max(out->longest, s->n_scored);
    return STATUS_OK;
}

enum status eval_prompt_scores_make(struct eval_request_scores *out,
                                    const struct model_tokens *prompts, size_t n, bool next,
                                    struct status_why *why)
{
    *out = (struct eval_request_scores){0};
    out->items = calloc(n + 1, sizeof *out->items);
    out->sequences.items = calloc(n + 1, sizeof *out->sequences.items);
    enum status status = out->items && out->sequences.items ? STATUS_OK : no_memory(why);
    for (size_t i = 0; i < n && !status; i++)
        status = add(out, &prompts[i], next, why);
    if (status)
        eval_request_scores_free(out);
    else
        eval_request_units_open(out);
    return status;
}
