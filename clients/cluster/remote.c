/* Rank 0: the other ranks as workers of its run. */
#include "clients/cluster/remote.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "clients/cluster/exchange.h"
#include "clients/cluster/listen.h"
#include "eval/run.h"

/** To the rank that begins the batches of a worker. */
struct eval_feed {
    struct cluster_link *link;
    size_t n_fed; /* items before this one were told to that rank */
};

static struct cluster_rank_crew *ranks_of(const struct eval_worker *w)
{
    return w->dispatch->models->crew->user;
}

/** The rank that a worker of the crew stands for: the first of a group. */
static size_t rank_of(const struct eval_worker *w)
{
    return (w->i + 1) * ranks_of(w)->n_shares;
}

static struct cluster_link *link_of(const struct eval_worker *w)
{
    return &ranks_of(w)->team->links[rank_of(w) - 1];
}

/** Tell a rank to begin. From now on the run's flags end what is waited for. */
static enum status start(const struct eval_dispatch *d, const struct cluster_rank_crew *ranks,
                         size_t rank, struct status_why *why)
{
    const struct eval_units *units = d->units;
    const struct eval_row_sink *sink = d->models->sink;
    bool rows = sink && !sink->is_all_state;
    struct cluster_link *link = &ranks->team->links[rank - 1];
    struct cluster_remote_start start = {.n_finished = units->n_resumed,
                                         .batch_tokens = units->batch_tokens,
                                         .n_items = units->n_items,
                                         .rank = rank,
                                         .n_shares = ranks->n_shares,
                                         .one_machine = ranks->team->address.one_machine,
                                         .sink = rows ? (int64_t)sink->kind : -1};
    struct cluster_part part = {&start, sizeof start};
    link->cancel[0] = &d->stop;
    link->cancel[1] = d->cancel;
    enum status status = cluster_link_send(link, CLUSTER_MESSAGE_START, STATUS_OK, &part, 1, why);
    if (status && link->lost)
        return status_fail(why, status, "%s died before it was given anything", link->name);
    return status;
}

/** The ranks of a group from `first` on. */
static enum status start_group(const struct eval_worker *w, size_t first, struct status_why *why)
{
    const struct cluster_rank_crew *ranks = ranks_of(w);
    size_t end = first - first % ranks->n_shares + ranks->n_shares;
    enum status status = STATUS_OK;
    for (size_t rank = first; rank < end && !status; rank++)
        status = start(w->dispatch, ranks, rank, why);
    return status;
}

/** Rows on their way to the sink: they are taken off the link when it is the batch's turn. */
static enum status take_rows(struct eval_worker *w, const struct cluster_message *message,
                             struct status_why *why)
{
    struct cluster_link *link = link_of(w);
    const struct eval_models *models = w->dispatch->models;
    struct cluster_remote_rows about;
    if (!models->sink || message->n_bytes < sizeof about)
        return cluster_link_unexpected(link, message, why);
    enum status status = cluster_link_read(link, &about, sizeof about, why);
    size_t n_bytes = (size_t)message->n_bytes - sizeof about;
    if (!status &&
        n_bytes != about.n_rows * eval_row_bytes(models->sink->kind, model_head(models->model)))
        return cluster_link_unexpected(link, message, why);
    if (!status)
        status = eval_dispatch_await(w->dispatch, w->at.first, why);
    if (status)
        return status;
    void *rows = malloc(n_bytes);
    if (!rows)
        return status_fail(why, STATUS_MEMORY, "no memory for %" PRIu64 " rows to be recorded",
                           about.n_rows);
    status = cluster_link_read(link, rows, n_bytes, why);
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
        status = sink->restore(sink->user, cluster_remote_window(w, i), state, &restored, why);
    }
    return status;
}

static enum status take_scores(struct eval_worker *w, const struct cluster_message *message,
                               struct eval_scorer_times *times, struct status_why *why)
{
    struct cluster_link *link = link_of(w);
    struct cluster_part parts[CLUSTER_REMOTE_PARTS];
    double *state;
    enum status status = base_array_new(state, cluster_remote_n_state(w), "scores", why);
    if (status)
        return status;
    size_t n = cluster_remote_parts(w, times, state, parts), n_bytes = 0;
    for (size_t i = 0; i < n; i++)
        n_bytes += parts[i].n_bytes;
    if (n_bytes != message->n_bytes)
        status = cluster_link_unexpected(link, message, why);
    for (size_t i = 0; i < n && !status; i++)
        status = cluster_link_read(link, (void *)(uintptr_t)parts[i].bytes, parts[i].n_bytes, why);
    if (!status && cluster_remote_n_state(w))
        status = restore_state(w, state, why);
    free(state);
    return status;
}

/** What the batch left in sums: it is taken off the link when it is the batch's turn. */
static enum status take_sums(struct eval_worker *w, struct status_why *why)
{
    struct cluster_link *link = link_of(w);
    struct eval_units *units = w->dispatch->units;
    struct cluster_message message;
    if (!units->kind->unpack)
        return STATUS_OK;
    enum status status = eval_dispatch_await(w->dispatch, w->at.first, why);
    if (!status)
        status = cluster_link_receive(link, &message, why);
    if (status)
        return status;
    if (message.kind == CLUSTER_MESSAGE_FAILED)
        return cluster_link_failure(link, &message, why);
    if (message.kind != CLUSTER_MESSAGE_SUMS)
        return cluster_link_unexpected(link, &message, why);
    char *bytes = malloc((size_t)message.n_bytes + 1);
    if (!bytes)
        return status_fail(why, STATUS_MEMORY, "no memory for sums of %" PRIu64 " bytes",
                           message.n_bytes);
    struct base_string sums = {bytes, (size_t)message.n_bytes};
    status = cluster_link_read(link, bytes, sums.n_bytes, why);
    if (!status)
        status = units->kind->unpack(units, sums, w->at.end, why);
    free(bytes);
    return status;
}

static enum status take_fraction(struct eval_worker *w, struct status_why *why)
{
    struct cluster_link *link = link_of(w);
    double fraction;
    enum status status = cluster_link_read(link, &fraction, sizeof fraction, why);
    if (!status)
        eval_dispatch_on_fraction(w, fraction);
    return status;
}

/** Messages of the rank until the batch is done. */
static enum status follow(struct eval_worker *w, struct eval_scorer_times *times,
                          struct status_why *why)
{
    struct cluster_link *link = link_of(w);
    for (;;) {
        struct cluster_message message;
        enum status status = cluster_link_receive(link, &message, why);
        if (status)
            return status;
        switch (message.kind) {
        case CLUSTER_MESSAGE_FRACTION:
            status = take_fraction(w, why);
            break;
        case CLUSTER_MESSAGE_ROWS:
            status = take_rows(w, &message, why);
            break;
        case CLUSTER_MESSAGE_SCORES:
            status = take_scores(w, &message, times, why);
            return status ? status : take_sums(w, why);
        case CLUSTER_MESSAGE_FAILED:
            return cluster_link_failure(link, &message, why);
        default:
            return cluster_link_unexpected(link, &message, why);
        }
        if (status)
            return status;
    }
}

/** Tell of one batch. */
static enum status tell(struct eval_feed *feed, const struct eval_given *given,
                        struct status_why *why)
{
    struct cluster_remote_batch batch = {given->first, given->end};
    struct cluster_part part = {&batch, sizeof batch};
    if (given->end <= feed->n_fed)
        return STATUS_OK;
    feed->n_fed = given->end;
    return cluster_link_send(feed->link, CLUSTER_MESSAGE_BATCH, STATUS_OK, &part, 1, why);
}

/** Tell of the worker's batch at work and of those ahead, of each once. */
static enum status tell_all(const struct eval_worker *w, struct eval_feed *feed,
                            struct status_why *why)
{
    const struct cluster_rank_crew *ranks = ranks_of(w);
    enum status status = tell(feed, &w->at, why);
    for (size_t i = 0; i < w->n_ahead && !status; i++)
        status = tell(feed, &w->ahead[i], why);
    size_t rank = (size_t)(feed->link - ranks->team->links) + 1;
    return status && feed->link->lost ? cluster_remote_say_lost(ranks, w->dispatch, rank, why)
                                      : status;
}

/* Workers of the crew: a rank, or a group of them. */

static enum status open_remote(struct eval_worker *w, struct status_why *why)
{
    struct eval_feed *feed = w->own = calloc(1, sizeof *feed);
    if (!feed)
        return status_fail(why, STATUS_MEMORY, "no memory for a worker");
    feed->link = link_of(w) + (ranks_of(w)->n_shares > 1);
    return start_group(w, rank_of(w), why);
}

/**
 * The rank evaluates the batch; its scores go into the worker's arrays, its rows to the sink in the
 * worker's turn.   Fails: STATUS_DEVICE (the rank died; the sentence says what it was doing),
 * STATUS_CANCELLED, what the rank and the sink report.
 */
static enum status evaluate_remote(struct eval_worker *w, struct eval_scorer_times *times,
                                   struct status_why *why)
{
    struct cluster_link *link = link_of(w);
    enum status status = tell_all(w, w->own, why);
    if (status)
        return status;
    status = follow(w, times, why);
    struct cluster_message last;
    if (status == STATUS_CANCELLED && cluster_link_pending(link))
        cluster_link_receive(link, &last, NULL); /* the sentence names the rank that died */
    return status && link->lost ? cluster_remote_say_lost(ranks_of(w), w->dispatch, rank_of(w), why)
                                : status;
}

static void close_remote(struct eval_worker *w)
{
    free(w->own);
}

/** A thread, and rows on their way: of one worker at a time. */
static double bytes_remote(const struct eval_units *units, const struct eval_models *models,
                           const struct eval_run_options *options, size_t i)
{
    (void)units, (void)options;
    double rows = 0;
    if (i == 0 && models->sink)
        rows = CLUSTER_REMOTE_ROW_BYTES +
               (double)eval_row_bytes(models->sink->kind, model_head(models->model));
    return EVAL_MEMORY_THREAD + rows;
}

static const struct eval_worker_kind remote = {
    .open = open_remote, .evaluate = evaluate_remote, .close = close_remote, .bytes = bytes_remote};

/* The worker of rank 0 itself, where layers are divided: it has the last ones of its group. */

/** Whether rank 0 need not wait for a batch any more; as cluster_look_fn. */
static enum status look(void *dispatch, struct status_why *why)
{
    const struct eval_dispatch *d = dispatch;
    bool over = atomic_load(&d->stop) || (d->cancel && atomic_load(d->cancel));
    return over ? status_fail(why, STATUS_CANCELLED, "%s", "") : STATUS_OK;
}

static enum status open_last(struct eval_worker *w, struct status_why *why)
{
    struct cluster_rank_crew *ranks = ranks_of(w);
    struct eval_dispatch *d = w->dispatch;
    enum status status = start_group(w, 1, why);
    ranks->feed = calloc(1, sizeof *ranks->feed);
    if (!ranks->feed && !status)
        status = status_fail(why, STATUS_MEMORY, "no memory for a worker");
    if (status)
        return status;
    ranks->feed->link = &ranks->team->links[0];
    status = cluster_pipe_meet(&ranks->pipe, ranks->team, ranks->n_shares, why);
    if (!status)
        status = cluster_pipe_open(&ranks->pipe, d->units->most.n_tokens, look, d, why);
    if (!status)
        status = eval_worker_local.open(w, why);
    return status ? status : cluster_listen_open(&ranks->listen, d, ranks, why);
}

/** The rank with the layers before has computed this batch, not another one. */
static enum status await_streams(const struct eval_worker *w, struct cluster_hop *in,
                                 struct status_why *why)
{
    enum status status = cluster_hop_await(in, why);
    if (!status && (in->batch.first != w->at.first || in->batch.end != w->at.end))
        status = status_fail(why, STATUS_DEVICE, "%s sent another batch than the one expected",
                             in->options.link->name);
    return status;
}

static enum status evaluate_last(struct eval_worker *w, struct eval_scorer_times *times,
                                 struct status_why *why)
{
    struct cluster_rank_crew *ranks = ranks_of(w);
    enum status status = tell_all(w, ranks->feed, why);
    if (!status)
        status = await_streams(w, ranks->pipe.enters, why);
    return status ? status : eval_worker_local.evaluate(w, times, why);
}

static void close_last(struct eval_worker *w)
{
    struct cluster_rank_crew *ranks = ranks_of(w);
    cluster_listen_close(ranks->listen);
    ranks->listen = NULL;
    eval_worker_local.close(w);
    cluster_pipe_close(&ranks->pipe);
    free(ranks->feed);
    ranks->feed = NULL;
}

static void begin_last(struct eval_worker *w)
{
    eval_worker_local.begin(w);
}

static const struct eval_worker_kind last = {
    .open = open_last, .begin = begin_last, .evaluate = evaluate_last, .close = close_last};

static void end(void *user, enum status status)
{
    const struct cluster_rank_crew *ranks = user;
    for (size_t i = 0; i < ranks->team->n_links; i++)
        ranks->team->links[i].cancel[0] = ranks->team->links[i].cancel[1] = NULL;
    cluster_team_end(ranks->team, status);
}

void cluster_rank_crew_join(struct cluster_rank_crew *ranks, struct cluster_team *team,
                            size_t n_shares, struct eval_models *models)
{
    ranks->team = team;
    ranks->n_shares = n_shares;
    ranks->crew = (struct eval_crew){.user = ranks,
                                     .kind = &remote,
                                     .n = team->n_ranks / n_shares - 1,
                                     .depth = cluster_pipe_depth(n_shares),
                                     .end = end};
    models->crew = &ranks->crew;
    if (n_shares == 1)
        return;
    ranks->crew.own = &last;
    ranks->pipe.i = n_shares - 1;
    ranks->pipe.n = n_shares;
    ranks->pipe.row_bytes = eval_models_row_bytes(models);
    ranks->streams = cluster_pipe_source(&ranks->pipe);
    models->streams = &ranks->streams;
}
