/* The prompts of a comparison: predictions of the second halves of windows, which a text is cut
 * into. */
#include <string.h>

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

/** Where the text goes on as if it began there: after a line's end, else at a blank. */
static size_t next_beginning(struct base_string text, size_t from)
{
    const size_t far = 256; /* bytes that may be left out to reach the next line */
    const char *at = text.data + from;
    size_t left = text.n_bytes - from;
    const char *line = memchr(at, '\n', left < far ? left : far);
    const char *word = memchr(at, ' ', left < far ? left : far);
    if (line || word)
        return (size_t)((line ? line + 1 : word) - text.data);
    while (left > 0 && ((unsigned char)*at & 0xc0) == 0x80) { /* within a character */
        at++;
        left--;
    }
    return (size_t)(at - text.data);
}

enum status probe_cut_windows(struct probe_questions *q, struct base_string text, size_t n,
                              struct status_why *why)
{
    const size_t most_bytes = 64; /* of a token, in the mean: longer texts are not looked at */
    enum status status = STATUS_OK;
    size_t capacity = 0, from = 0;
    q->windows = NULL;
    q->n_windows = 0;
    while (from < text.n_bytes && q->n_windows < q->most && !status) {
        size_t left = text.n_bytes - from;
        status = base_array_reserve(q->windows, capacity, q->n_windows + 1, "windows", why);
        if (status)
            break;
        struct probe_window *w = &q->windows[q->n_windows++];
        status = probe_window_make(w, q->tokenizer, text.data + from,
                                   left / most_bytes < n ? left : n * most_bytes, n, why);
        if (status || (w->n_prompt < n && q->n_windows == 1))
            break;
        if (w->n_prompt < n) {
            probe_window_free(&q->windows[--q->n_windows]);
            break;
        }
        from = next_beginning(text, from + w->ends[n]);
    }
    return status;
}
