#include "clients/probe/ask/plan.h"

#include <math.h>
#include <stdlib.h>

#include "base/arithmetic.h"
#include "base/array.h"

enum { MOST_FAILURES = 5, MOST_LISTS = 48, TRIES = 5, TRIES_AFTER_FAILURE = 2 };

/** The index-th token that was written; -1: it is not known. */
static int32_t written_at(const struct probe_answer *a, size_t index)
{
    if (a->written.n)
        return index < a->written.n ? a->written.ids[index] : -1;
    for (size_t i = 0; i < a->n_places; i++)
        if (a->places[i].generated && a->places[i].index == index)
            return a->places[i].token;
    return -1;
}

/** Prompt and what was written become a window of their own. */
static enum status add_written(struct probe_questions *q, const struct probe_prompt *prompt,
                               const struct probe_answer *a, size_t *window, struct status_why *why)
{
    struct probe_window *w = &q->windows[q->n_windows];
    const int32_t *ids = q->windows[prompt->window].tokens.ids;
    size_t n_vocab = model_n_vocab(q->tokenizer);
    enum status status = STATUS_OK;
    *w = (struct probe_window){.n_prompt = prompt->length};
    for (size_t i = 0; i < prompt->length && !status; i++)
        status = model_tokens_add(&w->tokens, ids[i], why);
    *window = q->n_windows++;
    for (size_t i = 0; i < prompt->n_new && !status; i++) {
        int32_t id = written_at(a, i);
        if (id < 0 || (size_t)id >= n_vocab)
            break;
        status = model_tokens_add(&w->tokens, id, why);
    }
    return status;
}

/** Lists of what follows tokens that are not known cannot be used. */
static void drop_beyond(struct probe_questions *q, size_t first)
{
    struct probe_lists *l = &q->lists;
    size_t n = first;
    for (size_t i = first; i < l->n; i++)
        if (l->items[i].position <= q->windows[l->items[i].window].tokens.n)
            l->items[n++] = l->items[i];
    l->n = n;
}

/** Tokens of a prompt that the server may have in its cache, and use. */
static size_t known_of(struct probe_questions *q, const struct probe_prompt *prompt)
{
    if (prompt->window >= PROBE_MAX_WINDOWS) /* of a comparison, which judges no cache */
        return 0;
    size_t known = q->known[prompt->window];
    q->known[prompt->window] = base_max(known, prompt->length);
    return prompt->path == PROBE_CACHED || !q->server->api->has_reuse ? known : 0;
}

static enum status take(struct probe_questions *q, const struct probe_prompt *prompt,
                        struct probe_reply *reply, size_t *n_failed, struct status_why *why)
{
    struct probe_asked asked = {prompt->window,      prompt->length,
                                prompt->path,        q->windows[prompt->window].tokens.ids,
                                known_of(q, prompt), q->most_lists ? q->most_lists : MOST_LISTS};
    size_t first = q->lists.n;
    enum status status = STATUS_OK;
    if (!reply->ok) {
        probe_lists_spoil(&q->lists, "%s", reply->failure);
        if (++*n_failed < MOST_FAILURES)
            return STATUS_OK;
        return status_fail(why, STATUS_IO, "%s: %d requests in a row failed, the last: %s",
                           probe_http_base(q->server->http), MOST_FAILURES, reply->failure);
    }
    *n_failed = 0;
    if (prompt->path == PROBE_WRITTEN)
        status = add_written(q, prompt, &reply->answer, &asked.window, why);
    if (!status)
        status = probe_lists_add(&q->lists, &reply->answer, &asked, q->names, why);
    drop_beyond(q, first);
    return status;
}

/** The longest prompt of the first window that was asked first. */
static const struct probe_prompt *longest_of(const struct probe_questions *q)
{
    const struct probe_prompt *last = NULL;
    for (size_t i = 0; i < q->n_prompts && q->prompts[i].path == q->prompts[0].path; i++)
        if (q->prompts[i].window == 0 && (!last || q->prompts[i].length > last->length))
            last = &q->prompts[i];
    return last;
}

/** Ask it again; what it says comes after the other lists. */
static enum status ask_again(struct probe_questions *q, const struct probe_prompt *prompt,
                             struct status_why *why)
{
    struct probe_reply reply = {
        .window = &q->windows[prompt->window], .length = prompt->length, .n_new = 1};
    size_t n_failed = 0;
    enum status status = probe_server_ask(q->server, &reply, 1, why);
    if (!status && reply.ok)
        status = take(q, prompt, &reply, &n_failed, why);
    probe_reply_free(&reply);
    return status;
}

enum status probe_ask_short(struct probe_questions *q, struct status_why *why)
{
    const struct probe_prompt *prompt = longest_of(q);
    size_t k = q->server->k;
    q->server->k = 1;
    enum status status = prompt ? ask_again(q, prompt, why) : STATUS_OK;
    q->server->k = k;
    return status;
}

/** It once more: is the server deterministic? */
static enum status ask_noise(struct probe_questions *q, struct status_why *why)
{
    const struct probe_prompt *last = longest_of(q);
    size_t before = q->lists.n, was = before;
    size_t spoilt = q->lists.n_spoilt, unknown = q->lists.n_unknown;
    for (size_t i = 0; last && i < before; i++)
        if (q->lists.items[i].window == 0 && q->lists.items[i].length == last->length &&
            q->lists.items[i].position == last->length)
            was = i;
    q->noise = (double)NAN;
    if (was == before)
        return STATUS_OK;
    enum status status = ask_again(q, last, why);
    for (size_t i = before; !status && i < q->lists.n; i++)
        if (q->lists.items[i].position == last->length) {
            q->noise = probe_lists_distance(&q->lists, &q->lists.items[was], &q->lists,
                                            &q->lists.items[i]);
            q->is_noisy = q->noise != 0; /* also where the lists share no token */
        }
    q->lists.n = before;
    q->lists.n_spoilt = spoilt;
    q->lists.n_unknown = unknown;
    return status;
}

/** An answer to a prompt that was asked before; one that cannot be used is left out. */
static enum status take_again(struct probe_questions *q, const struct probe_prompt *prompt,
                              size_t first, const struct probe_reply *reply, struct status_why *why)
{
    struct probe_lists again = {.n = 0};
    struct probe_asked asked = {prompt->window,
                                prompt->length,
                                prompt->path,
                                q->windows[prompt->window].tokens.ids,
                                0,
                                q->most_lists ? q->most_lists : MOST_LISTS};
    if (!reply->ok)
        return STATUS_OK;
    enum status status = probe_lists_add(&again, &reply->answer, &asked, q->names, why);
    if (!status)
        probe_repeats_add(&q->repeats, &q->lists, first, &again, reply->answer.n_cached);
    probe_lists_free(&again);
    return status;
}

/** Prompts that are asked at the same time. */
struct group {
    size_t first, n;
    size_t time;       /* counted from 0 */
    size_t lists_from; /* of the first time */
};

/** Ask n prompts that follow each other, at the same time. */
static enum status ask_some(struct probe_questions *q, const struct group *g, size_t *n_failed,
                            struct status_why *why)
{
    const struct probe_prompt *prompts = &q->prompts[g->first];
    struct probe_reply *replies;
    enum status status = base_array_new(replies, g->n, "requests", why);
    q->server->n_tries = *n_failed ? TRIES_AFTER_FAILURE : TRIES;
    for (size_t i = 0; !status && i < g->n; i++)
        replies[i] = (struct probe_reply){.window = &q->windows[prompts[i].window],
                                          .length = prompts[i].length,
                                          .n_new = prompts[i].n_new,
                                          .reuse = prompts[i].path == PROBE_CACHED,
                                          .time = g->time};
    if (!status)
        status = probe_server_ask(q->server, replies, g->n, why);
    for (size_t i = 0; !status && i < g->n; i++)
        status = g->time ? take_again(q, &prompts[i], g->lists_from, &replies[i], why)
                         : take(q, &prompts[i], &replies[i], n_failed, why);
    for (size_t i = 0; replies && i < g->n; i++)
        probe_reply_free(&replies[i]);
    free(replies);
    return status;
}

/** As often as each is asked. */
static enum status ask_times(struct probe_questions *q, size_t first, size_t n, size_t *n_failed,
                             struct status_why *why)
{
    struct group g = {first, n, 0, q->lists.n};
    size_t n_times = q->prompts[first].path == PROBE_WRITTEN ? 1 : base_max(q->n_times, 1);
    enum status status = STATUS_OK;
    for (; g.time < n_times && !status; g.time++)
        status = ask_some(q, &g, n_failed, why);
    return status;
}

enum status probe_ask_all(struct probe_questions *q, struct status_why *why)
{
    size_t n_failed = 0;
    enum status status = STATUS_OK;
    bool noise_known = false;
    for (size_t i = 0, n; i < q->n_prompts && !status; i += n) {
        enum probe_path path = q->prompts[i].path;
        n = 1;
        while (path == PROBE_TOGETHER && n < q->concurrency && i + n < q->n_prompts &&
               q->prompts[i + n].path == path)
            n++;
        if (q->progress)
            q->progress(q->user, i, q->n_prompts);
        if (!noise_known && path != q->prompts[0].path) {
            noise_known = true;
            status = ask_noise(q, why);
        }
        if (!status)
            status = ask_times(q, i, n, &n_failed, why);
    }
    if (!status && !noise_known)
        status = ask_noise(q, why);
    if (!status && q->progress)
        q->progress(q->user, q->n_prompts, q->n_prompts);
    probe_lists_order(&q->lists);
    return status;
}

void probe_questions_free(struct probe_questions *q)
{
    for (size_t i = 0; q->windows && i < q->n_windows; i++)
        probe_window_free(&q->windows[i]);
    free(q->windows);
    free(q->prompts);
    probe_lists_free(&q->lists);
}
