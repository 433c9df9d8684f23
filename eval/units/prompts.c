#include "eval/units/prompts.h"

#include <assert.h>
#include <string.h>

#include "base/arithmetic.h"
#include "base/array.h"

static enum status add(struct eval_request_scores *out, const struct model_tokens *prompt,
                       bool next, size_t n_likeliest, struct status_why *why)
{
    size_t owner = out->n++, n_tokens = prompt->n + next;
    struct eval_request_score *s = &out->items[owner];
    assert(prompt->n > 0);
    s->greedy = true;
    s->n_scored = n_tokens - 1;
    if (base_array_new(s->ids, n_tokens, "tokens", why) ||
        base_array_new(s->log_probs, n_tokens, "scores", why) ||
        base_array_new(s->likeliest, n_tokens * n_likeliest, "likeliest tokens", why))
        return STATUS_MEMORY;
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
        .n_likeliest = n_likeliest,
    };
    s->n_left = 1;
    out->n_scored += s->n_scored;
    out->longest = base_max(out->longest, s->n_scored);
    return STATUS_OK;
}

enum status eval_prompt_scores_make(struct eval_request_scores *out,
                                    const struct model_tokens *prompts, size_t n, bool next,
                                    size_t n_likeliest, struct status_why *why)
{
    *out = (struct eval_request_scores){0};
    enum status status = base_array_new(out->items, n + 1, "prompts", why);
    if (!status)
        status = base_array_new(out->sequences.items, n + 1, "prompts", why);
    for (size_t i = 0; i < n && !status; i++)
        status = add(out, &prompts[i], next, n_likeliest, why);
    if (status)
        eval_request_scores_free(out);
    else
        eval_request_units_open(out);
    out->sequences.units.wants_tops = !status && n_likeliest > 1;
    return status;
}
