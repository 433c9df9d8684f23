#include "eval/cluster/remote.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arithmetic.h"
#include "eval/run/worker.h"
#include "eval/scorer/row_flow.h"

size_t eval_remote_n_state(const struct eval_worker *w)
{
    const struct eval_row_sink *sink = w->dispatch->models->sink;
    return sink && sink->is_all_state ? sink->n_state * (w->at.end - w->at.first) : 0;
}

size_t eval_remote_window(const struct eval_worker *w, size_t item)
{
    size_t n_rows = w->dispatch->units->kind->size(w->dispatch->units, item).n_rows;
    return w->batch.plan_rows[(item - w->at.first) * n_rows] / n_rows;
}

size_t eval_remote_parts(const struct eval_worker *w, const struct eval_scorer_times *times,
                         const double *state, struct eval_part parts[EVAL_REMOTE_PARTS])
{
    size_t n_heads = eval_models_n_heads(w->dispatch->models), n = 0;
    const struct eval_size *size = &w->batch.n;
    parts[n++] = (struct eval_part){times, sizeof *times};
    parts[n++] = (struct eval_part){w->row_scores, n_heads * size->n_rows * sizeof *w->row_scores};
    parts[n++] =
        (struct eval_part){w->target_scores, n_heads * size->n_targets * sizeof *w->target_scores};
    if (w->pair_scores)
        parts[n++] =
            (struct eval_part){w->pair_scores, n_heads * size->n_rows * sizeof *w->pair_scores};
    if (eval_remote_n_state(w))
        parts[n++] = (struct eval_part){state, eval_remote_n_state(w) * sizeof *state};
    return n;
}

enum status eval_remote_start(struct eval_link *link, size_t rank, const struct eval_dispatch *d,
                              struct status_why *why)
{
    const struct eval_units *units = d->units;
    const struct eval_models *models = d->models;
    bool rows = models->sink && !models->sink->is_all_state;
    struct eval_remote_start start = {.n_finished = units->n_resumed,
                                      .batch_tokens = units->batch_tokens,
                                      .n_items = units->n_items,
                                      .rank = rank,
                                      .n_shares = base_max(models->share.n, 1),
                                      .one_machine = d->options->team->address.one_machine,
                                      .sink = rows ? (int64_t)models->sink->kind : -1};
    struct eval_part part = {&start, sizeof start};
    enum status status = eval_link_send(link, EVAL_MESSAGE_START, STATUS_OK, &part, 1, why);
    if (status && link->lost)
        return status_fail(why, status, "%s died before it was given anything", link->name);
    return status;
}

/** Rows on their way to the sink: they are taken off the link when it is the batch's turn. */
static enum status take_rows(struct eval_worker *w, const struct eval_message *message,
                             struct status_why *why)
{
    const struct eval_models *models = w->dispatch->models;
    struct eval_remote_rows about;
    if (!models->sink || message->n_bytes < sizeof about)
        return eval_link_unexpected(w->link, message, why);
    enum status status = eval_link_read(w->link, &about, sizeof about, why);
    size_t n_bytes = (size_t)message->n_bytes - sizeof about;
    if (!status &&
        n_bytes != about.n_rows * eval_row_bytes(models->sink->kind, model_head(models->model)))
        return eval_link_unexpected(w->link, message, why);
    if (!status)
        status = eval_dispatch_await(w->dispatch, w->at.first, why);
    if (status)
        return status;
    void *rows = malloc(n_bytes);
    if (!rows)
        return status_fail(why, STATUS_MEMORY, "no memory for %" PRIu64 " rows to be recorded",
                           about.n_rows);
    status = eval_link_read(w->link, rows, n_bytes, why);
    if (!status)
        status = models->sink->write(models->sink->user, NULL, (size_t)about.first,
                                     (size_t)about.n_rows, rows, why);
    free(rows);
    return status;
}

/** What a rank's own sink keeps of each window into that of rank 0. */
static enum status restore_state(struct eval_worker *w, const double *state, struct status_why *why)
{
    const struct eval_row_sink *sink = w->dispatch->models->sink;
    enum status status = STATUS_OK;
    for (size_t i = w->at.first; i < w->at.end && !status; i++, state += sink->n_state) {
        bool restored;
        status = sink->restore(sink->user, eval_remote_window(w, i), state, &restored, why);
    }
    return status;
}

static enum status take_scores(struct eval_worker *w, const struct eval_message *message,
                               struct eval_scorer_times *times, struct status_why *why)
{
    struct eval_part parts[EVAL_REMOTE_PARTS];
    double *state = calloc(eval_remote_n_state(w) + 1, sizeof *state);
    if (!state)
        return status_fail(why, STATUS_MEMORY, "no memory for the scores of a batch");
    size_t n = eval_remote_parts(w, times, state, parts), n_bytes = 0;
    for (size_t i = 0; i < n; i++)
        n_bytes += parts[i].n_bytes;
    enum status status = STATUS_OK;
    if (n_bytes != message->n_bytes)
        status = eval_link_unexpected(w->link, message, why);
    for (size_t i = 0; i < n && !status; i++)
        status = eval_link_read(w->link, (void *)(uintptr_t)parts[i].bytes, parts[i].n_bytes, why);
    if (!status && eval_remote_n_state(w))
        status = restore_state(w, state, why);
    free(state);
    return status;
}

static enum status take_fraction(struct eval_worker *w, struct status_why *why)
{
    double fraction;
    enum status status = eval_link_read(w->link, &fraction, sizeof fraction, why);
    if (!status)
        eval_dispatch_on_fraction(w, fraction);
    return status;
}

/** Messages of the rank until the batch is done. */
static enum status follow(struct eval_worker *w, struct eval_scorer_times *times,
                          struct status_why *why)
{
    for (;;) {
        struct eval_message message;
        enum status status = eval_link_receive(w->link, &message, why);
        if (status)
            return status;
        switch (message.kind) {
        case EVAL_MESSAGE_FRACTION:
            status = take_fraction(w, why);
            break;
        case EVAL_MESSAGE_ROWS:
            status = take_rows(w, &message, why);
            break;
        case EVAL_MESSAGE_SCORES:
            return take_scores(w, &message, times, why);
        case EVAL_MESSAGE_FAILED:
            return eval_link_failure(w->link, &message, why);
        default:
            return eval_link_unexpected(w->link, &message, why);
        }
        if (status)
            return status;
    }
}

/** "layers 4 to 7 of ": what the share has of the model; "" where all have all. */
static void say_layers(char *out, size_t size, const struct eval_models *models, size_t i)
{
    struct eval_share share = {.i = i, .n = models->share.n};
    struct model_layer_range layers;
    *out = '\0';
    if (eval_share_splits(&share) && !eval_share_layers(&share, models->model, &layers, NULL))
        snprintf(out, size, "layers %zu to %zu of ", layers.from, layers.to - 1);
}

/* Items are units, but where units share beginnings. */
enum status eval_remote_say_lost(const struct eval_worker *w, const struct eval_link *link,
                                 size_t share, struct status_why *why)
{
    const struct eval_units *units = w->dispatch->units;
    bool are_units = units->n_items == units->n - units->n_resumed;
    size_t before = are_units ? units->n_resumed : 0;
    size_t end = w->at.end, n_tokens = w->at.n_tokens;
    char layers[64];
    if (end == 0)
        return status_fail(why, STATUS_DEVICE, "%s died before it was given anything", link->name);
    say_layers(layers, sizeof layers, w->dispatch->models, share);
    for (size_t i = 0; i < w->n_ahead; i++) {
        end = w->ahead[i].end;
        n_tokens += w->ahead[i].n_tokens;
    }
    return status_fail(
        why, STATUS_DEVICE, "%s died while it evaluated %s%s%ss %zu to %zu of %zu (%zu tokens)",
        link->name, layers, are_units ? "" : "groups of ", units->kind->name, before + w->at.first,
        before + end - 1, are_units ? units->n : units->n_items, n_tokens);
}

/** Tell of one batch. */
static enum status feed(struct eval_worker *w, const struct eval_given *given,
                        struct status_why *why)
{
    struct eval_remote_batch batch = {given->first, given->end};
    struct eval_part part = {&batch, sizeof batch};
    if (given->end <= w->n_fed)
        return STATUS_OK;
    w->n_fed = given->end;
    return eval_link_send(w->feed, EVAL_MESSAGE_BATCH, STATUS_OK, &part, 1, why);
}

enum status eval_remote_feed(struct eval_worker *w, struct status_why *why)
{
    if (!w->feed)
        return STATUS_OK;
    enum status status = feed(w, &w->at, why);
    for (size_t i = 0; i < w->n_ahead && !status; i++)
        status = feed(w, &w->ahead[i], why);
    return status && w->feed->lost ? eval_remote_say_lost(w, w->feed, 0, why) : status;
}

enum status eval_remote_evaluate(struct eval_worker *w, struct eval_scorer_times *times,
                                 struct status_why *why)
{
    enum status status = follow(w, times, why);
    struct eval_message last;
    if (status == STATUS_CANCELLED && eval_link_pending(w->link))
        eval_link_receive(w->link, &last, NULL); /* who died has its name told nevertheless */
    return status && w->link->lost
               ? eval_remote_say_lost(w, w->link, w->dispatch->models->share.n - 1, why)
               : status;
}
