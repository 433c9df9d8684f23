/* The prompts of a check: beginnings of windows around the edges of batches, and between them. */
#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"
#include "base/array.h"
#include "clients/probe/ask/plan.h"

enum { N_WRITTEN = 24, WRITTEN_AFTER = 32, MOVES = 128 };

/** Tokens of the longest prompt that the window and the server's context have. */
static size_t most_of(const struct probe_questions *q, size_t window)
{
    size_t most = q->windows[window].n_prompt;
    return q->server->n_ctx > 0 ? base_min(most, (size_t)q->server->n_ctx - 1) : most;
}

static enum status survives(bool *out, const struct probe_questions *q, size_t window,
                            size_t length, struct status_why *why)
{
    *out = true;
    return q->tokens_matter
               ? probe_window_survives(out, &q->windows[window], q->tokenizer, length, why)
               : STATUS_OK;
}

/** The next length from `wanted` on that can be sent, else the last one before; 0: none is near. */
static enum status usable(size_t *out, const struct probe_questions *q, size_t window,
                          size_t wanted, struct status_why *why)
{
    size_t most = most_of(q, window), from = base_min(wanted, most);
    enum status status = STATUS_OK;
    *out = 0;
    for (size_t i = 0; i < 2 * MOVES && !*out && !status; i++) {
        size_t length = i < MOVES ? from + i : from + MOVES - 1 - i;
        bool survived = false;
        if (length >= 1 && length <= most)
            status = survives(&survived, q, window, length, why);
        if (!status && survived)
            *out = length;
    }
    return status;
}

static enum status add(struct probe_questions *q, struct probe_prompt prompt,
                       struct status_why *why)
{
    if (q->n_prompts >= q->most) {
        q->n_left_out++;
        return STATUS_OK;
    }
    enum status status =
        base_array_reserve(q->prompts, q->capacity, q->n_prompts + 1, "prompts", why);
    if (!status)
        q->prompts[q->n_prompts++] = prompt;
    return status;
}

/** Whether some prompt that is asked alone ends in this stretch of the window. */
static bool is_covered(const struct probe_questions *q, size_t window, size_t length)
{
    for (size_t i = 0; i < q->n_prompts; i++)
        if (q->prompts[i].window == window && q->prompts[i].path == PROBE_FRESH &&
            probe_stretch(q->prompts[i].length) == probe_stretch(length))
            return true;
    return false;
}

/** Lengths in order. */
struct lengths {
    const int64_t *items;
    size_t n;
};

static bool is_last_of_stretch(const struct lengths *l, size_t i)
{
    return i + 1 == l->n ||
           probe_stretch((size_t)l->items[i]) != probe_stretch((size_t)l->items[i + 1]);
}

static enum status add_beginnings(struct probe_questions *q, size_t window, enum probe_path path,
                                  const struct lengths *l, struct status_why *why)
{
    enum status status = STATUS_OK;
    size_t last = window > 0 && q->windows[window].has_bos; /* BOS alone is the first window's */
    for (size_t i = 0; i < l->n && !status; i++) {
        size_t length;
        if (path == PROBE_CACHED && !is_last_of_stretch(l, i))
            continue;
        size_t wanted = (size_t)l->items[i];
        if (q->tokens_matter) /* the place may be taken by one that was moved */
            wanted = base_max(wanted, last + 1);
        status = usable(&length, q, window, wanted, why);
        if (!status && length > last)
            status = add(q, (struct probe_prompt){window, length, 1, path}, why);
        last = base_max(last, length);
    }
    return status;
}

/** Count a window's multiples of a stretch in which no prompt ends. */
static size_t count_free(const struct probe_questions *q, size_t window)
{
    size_t n = 0;
    for (size_t at = PROBE_STRETCH; at <= most_of(q, window); at += PROBE_STRETCH)
        n += !is_covered(q, window, at);
    return n;
}

/** n prompts of a window in stretches that have none, evenly over all of these. */
static enum status add_between(struct probe_questions *q, size_t window, size_t n,
                               struct status_why *why)
{
    size_t n_free = count_free(q, window), i = 0;
    enum status status = STATUS_OK;
    if (n_free == 0)
        return STATUS_OK;
    n = base_min(n, n_free);
    for (size_t at = PROBE_STRETCH; at <= most_of(q, window) && !status; at += PROBE_STRETCH) {
        size_t length;
        if (is_covered(q, window, at))
            continue;
        bool kept = i * n / n_free != (i + 1) * n / n_free;
        i++;
        if (!kept)
            continue;
        status = usable(&length, q, window, at, why);
        if (!status && length && !is_covered(q, window, length))
            status = add(q, (struct probe_prompt){window, length, 1, PROBE_FRESH}, why);
    }
    return status;
}

/** The requests that are left, for prompts between the lengths, by what each window has free. */
static enum status spread(struct probe_questions *q, struct status_why *why)
{
    size_t left = q->most - base_min(q->most, q->n_prompts), n_free = 0;
    size_t share[PROBE_MAX_PASSAGES] = {0};
    for (size_t w = 0; w < q->n_windows && w < PROBE_MAX_PASSAGES; w++)
        n_free += share[w] = count_free(q, w);
    enum status status = STATUS_OK;
    for (size_t w = 0; w < PROBE_MAX_PASSAGES && !status && share[w]; w++)
        status = add_between(q, w, n_free > left ? share[w] * left / n_free : share[w], why);
    return status;
}

static int by_value(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static int by_stretch(const void *a, const void *b)
{
    const struct probe_prompt *x = a, *y = b;
    const size_t keys[][2] = {{x->path, y->path},
                              {probe_stretch(x->length), probe_stretch(y->length)},
                              {x->window, y->window},
                              {x->length, y->length}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (keys[i][0] != keys[i][1])
            return keys[i][0] < keys[i][1] ? -1 : 1;
    return 0;
}

/** As by_stretch, but the last window first. */
static int by_stretch_back(const void *a, const void *b)
{
    const struct probe_prompt *x = a, *y = b;
    return x->window != y->window ? (x->window < y->window ? 1 : -1) : by_stretch(a, b);
}

/**
 * From the shortest on, and of each length one passage after the other, the last one first every
 * other time. So a beginning comes again after the same passage's and after another's: a cache may
 * be wrong in either case.
 */
static void order(struct probe_prompt *prompts, size_t n)
{
    bool back = false;
    qsort(prompts, n, sizeof *prompts, by_stretch);
    for (size_t i = 0, group; i < n; i += group, back = !back) {
        group = 1;
        while (i + group < n && prompts[i + group].path == prompts[i].path &&
               probe_stretch(prompts[i + group].length) == probe_stretch(prompts[i].length))
            group++;
        if (back)
            qsort(prompts + i, group, sizeof *prompts, by_stretch_back);
    }
}

/** Every window's beginnings of these lengths, asked in this way. */
static enum status add_all(struct probe_questions *q, size_t first_window, enum probe_path path,
                           const struct lengths *l, struct status_why *why)
{
    enum status status = STATUS_OK;
    for (size_t w = first_window; w < q->n_windows && !status; w++)
        status = add_beginnings(q, w, path, l, why);
    return status;
}

static enum status lay(struct probe_questions *q, const struct lengths *l, struct status_why *why)
{
    /* The most important first, as long as there are requests. */
    enum status status = add_beginnings(q, 0, PROBE_FRESH, l, why);
    if (!status && q->n_prompts == 0)
        return status_fail(why, STATUS_USAGE,
                           "--lengths: none of them can be asked: the text has %zu tokens, and "
                           "the server's context has %lld",
                           q->windows[0].n_prompt, (long long)q->server->n_ctx);
    for (size_t w = 0; w < q->n_windows && !status && q->server->api->writes; w++)
        if (most_of(q, w) > WRITTEN_AFTER)
            status = add(q, (struct probe_prompt){w, WRITTEN_AFTER, N_WRITTEN, PROBE_WRITTEN}, why);
    if (!status)
        status = add_all(q, 0, PROBE_CACHED, l, why);
    if (!status && q->concurrency > 1)
        status = add_beginnings(q, 0, PROBE_TOGETHER, l, why);
    if (!status)
        status = add_all(q, 1, PROBE_FRESH, l, why);
    if (!status && q->spread)
        status = spread(q, why);
    return status;
}

enum status probe_plan(struct probe_questions *q, const int64_t *lengths, size_t n_lengths,
                       struct status_why *why)
{
    int64_t *sorted;
    if (base_array_new(sorted, n_lengths, "lengths", why))
        return STATUS_MEMORY;
    memcpy(sorted, lengths, n_lengths * sizeof *sorted);
    qsort(sorted, n_lengths, sizeof *sorted, by_value);
    enum status status = lay(q, &(struct lengths){sorted, n_lengths}, why);
    if (!status)
        order(q->prompts, q->n_prompts);
    free(sorted);
    return status;
}
