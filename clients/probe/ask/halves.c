/* The prompts of a comparison: predictions of the second halves of windows. */
#include "base/arithmetic.h"
#include "base/array.h"
#include "clients/probe/ask/plan.h"

enum { PER_WINDOW = 8, MOVES = 12 };

static enum status survives(bool *out, const struct probe_questions *q, size_t window,
                            size_t length, bool as_text, struct status_why *why)
{
    *out = true;
    return as_text ? probe_window_survives(out, &q->windows[window], q->tokenizer, length, why)
                   : STATUS_OK;
}

/** Tokens of the longest prompt that has a next token and fits into the server's context. */
static size_t most_of(const struct probe_questions *q, size_t window)
{
    size_t most = q->windows[window].n_prompt - 1;
    return q->server->n_ctx > 0 ? base_min(most, (size_t)q->server->n_ctx - 1) : most;
}

/** The longest beginning of up to `from` tokens, and not many fewer; 0: there is none. */
static enum status find(size_t *out, const struct probe_questions *q, size_t window, size_t from,
                        bool as_text, struct status_why *why)
{
    enum status status = STATUS_OK;
    *out = 0;
    for (size_t i = 0; i < MOVES && i < from && !status && !*out; i++) {
        bool survived;
        status = survives(&survived, q, window, from - i, as_text, why);
        if (!status && survived)
            *out = from - i;
    }
    return status;
}

enum status probe_plan_longest(size_t *out, const struct probe_questions *q, size_t window,
                               struct status_why *why)
{
    return find(out, q, window, most_of(q, window), true, why);
}

static enum status add(struct probe_questions *q, size_t window, size_t length,
                       struct status_why *why)
{
    enum status status =
        base_array_reserve(q->prompts, q->capacity, q->n_prompts + 1, "prompts", why);
    if (!status)
        q->prompts[q->n_prompts++] = (struct probe_prompt){
            window, length, 1, q->concurrency > 1 ? PROBE_TOGETHER : PROBE_FRESH};
    return status;
}

/** n prompts of a window: its longest one, and others evenly down to its half. */
static enum status add_window(struct probe_questions *q, size_t window, size_t n,
                              struct status_why *why)
{
    size_t most = most_of(q, window), least = base_max(most / 2, 1), last = 0;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < n && !status; i++) {
        size_t length, wanted = n > 1 ? least + (most - least) * i / (n - 1) : most;
        if (window == 0 && i + 1 == n) /* what the server was tried with */
            status = probe_plan_longest(&length, q, window, why);
        else
            status = find(&length, q, window, wanted, q->tokens_matter, why);
        if (!status && length > last)
            status = add(q, window, length, why);
        last = base_max(last, length);
    }
    return status;
}

enum status probe_plan_halves(struct probe_questions *q, struct status_why *why)
{
    bool whole = q->server->prompt_lists;
    size_t n_windows = base_min(q->n_windows, whole ? q->most : base_max(q->most / PER_WINDOW, 1));
    enum status status = STATUS_OK;
    for (size_t w = 0; w < n_windows && !status; w++) {
        size_t n = whole ? 1 : q->most / n_windows + (w < q->most % n_windows);
        status = add_window(q, w, base_min(n, most_of(q, w) / 2 + 1), why);
    }
    if (!status && q->n_prompts == 0)
        status = status_fail(why, STATUS_USAGE,
                             "nothing of the text can be asked: its first window has %zu tokens, "
                             "the server's context %lld",
                             q->windows[0].n_prompt, (long long)q->server->n_ctx);
    return status;
}
