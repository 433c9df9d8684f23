/* A rank that is not rank 0: it evaluates the batches that it is sent. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"
#include "base/array.h"
#include "base/clock.h"
#include "clients/cluster/exchange.h"
#include "eval/run.h"
#include "kernels/kernels.h"

static const double between_fractions = 0.5; /* seconds */

struct serving {
    struct cluster_link *link;
    struct eval_units *units;
    struct eval_models models; /* with the sink below, where rank 0 wants rows */
    struct eval_run_options options;
    struct eval_run_stats stats;
    struct eval_dispatch dispatch;
    struct eval_worker worker;
    struct eval_row_sink sink;
    struct cluster_pipe pipe; /* where layers are divided */
    struct eval_stream_source streams;
    double told; /* when rank 0 last heard how far the batch is */
    /* Batches that rank 0 told of: [cluster_pipe_depth]. */
    struct cluster_remote_batch *queue;
    size_t n_queued, capacity;
    bool ended; /* rank 0 says so */
};

/** Rows to rank 0, which writes them in their turn. */
static enum status send_rows(void *user, struct kern_backend *backend, size_t first, size_t n_rows,
                             const void *rows, struct status_why *why)
{
    (void)backend;
    struct serving *s = user;
    size_t row_bytes = eval_row_bytes(s->sink.kind, model_head(s->models.model));
    size_t most = base_max(CLUSTER_REMOTE_ROW_BYTES / row_bytes, 1);
    enum status status = STATUS_OK;
    for (size_t done = 0, n; done < n_rows && !status; done += n) {
        n = base_min(n_rows - done, most);
        struct cluster_remote_rows about = {first + done, n};
        struct cluster_part parts[] = {{&about, sizeof about},
                                       {(const char *)rows + done * row_bytes, n * row_bytes}};
        status = cluster_link_send(s->link, CLUSTER_MESSAGE_ROWS, STATUS_OK, parts, 2, why);
    }
    return status;
}

static enum status hear(struct serving *s, struct status_why *why);

/** In the course of a batch, or while one is awaited: whether rank 0 ended the run, or is gone. */
static enum status look(void *user, struct status_why *why)
{
    struct serving *s = user;
    const atomic_bool *cancel = s->dispatch.cancel;
    enum status status = STATUS_OK;
    while (!status && !s->ended && cluster_link_pending(s->link))
        status = hear(s, why);
    if (!status && (s->ended || (cancel && atomic_load(cancel))))
        status = status_fail(why, STATUS_CANCELLED, "%s", "");
    return status;
}

/** In the course of a batch: tell rank 0 how far it is. Only of the share that scores it hears. */
static void on_progress(void *user, const struct eval_progress *progress)
{
    (void)progress;
    struct serving *s = user;
    double now = base_clock_seconds();
    if (look(s, NULL))
        atomic_store(&s->dispatch.stop, true);
    if (now - s->told < between_fractions || s->pipe.leaves)
        return;
    s->told = now;
    struct cluster_part part = {&s->worker.fraction, sizeof s->worker.fraction};
    cluster_link_send(s->link, CLUSTER_MESSAGE_FRACTION, STATUS_OK, &part, 1, NULL);
}

/** Units that rank 0's journal has count as finished; their numbers are not needed here. */
static enum status skip_finished(struct eval_units *units, size_t n, struct status_why *why)
{
    enum status status = STATUS_OK;
    for (; units->n_finished < n && !status; units->n_resumed = ++units->n_finished) {
        bool restored;
        size_t n_values = units->kind->n_values(units, units->n_finished);
        double *zeros;
        if (base_array_new(zeros, n_values, "numbers", why))
            return STATUS_MEMORY;
        status = units->kind->restore(units, units->n_finished, zeros, &restored, why);
        free(zeros);
    }
    return status;
}

/** Its layers. */
static void take_share(struct serving *s, const struct cluster_remote_start *start)
{
    s->pipe.n = (size_t)start->n_shares;
    s->pipe.i = cluster_pipe_share((size_t)start->rank, s->pipe.n);
    s->pipe.row_bytes = eval_models_row_bytes(&s->models);
    s->streams = cluster_pipe_source(&s->pipe);
    s->models.streams = &s->streams;
}

/** Connections to those that have the other layers. */
static enum status join_pipe(struct serving *s, const struct cluster_remote_start *start,
                             struct status_why *why)
{
    enum status status = cluster_pipe_join(&s->pipe, s->link, (size_t)start->rank,
                                           (size_t)start->n_shares, start->one_machine != 0, why);
    s->ended = s->pipe.ended;
    return status ? status : cluster_pipe_open(&s->pipe, s->units->most.n_tokens, look, s, why);
}

/** What START says: the same items as on rank 0, and a worker for them. */
static enum status begin(struct serving *s, struct status_why *why)
{
    struct cluster_remote_start start;
    enum status status = cluster_link_read(s->link, &start, sizeof start, why);
    if (!status && start.n_shares > 1)
        take_share(s, &start);
    if (!status)
        status = skip_finished(s->units, (size_t)start.n_finished, why);
    if (!status)
        status = eval_run_prepare(s->units, &s->models, (size_t)start.batch_tokens, why);
    if (!status && s->units->n_items != start.n_items)
        status = status_fail(why, STATUS_USAGE,
                             "%zu items are left to evaluate, rank 0 has %zu; expected the same "
                             "program and files on all ranks",
                             s->units->n_items, (size_t)start.n_items);
    if (start.sink >= 0) {
        s->sink = (struct eval_row_sink){
            .kind = (enum eval_row_kind)start.sink, .user = s, .write = send_rows};
        s->models.sink = &s->sink;
    }
    s->capacity = cluster_pipe_depth((size_t)start.n_shares);
    if (!status)
        status = base_array_new(s->queue, s->capacity, "batches", why);
    if (start.n_shares > 1 && !status)
        status = join_pipe(s, &start, why);
    if (!status)
        status = eval_dispatch_open(&s->dispatch, why);
    s->dispatch.next_to_commit = s->units->n_items; /* nobody to wait for */
    if (!status)
        status = eval_worker_open(&s->worker, &eval_worker_local, &s->dispatch, 0, why);
    if (!status)
        kern_set_cancel(s->models.backends[0], &s->dispatch.stop);
    return status;
}

static enum status send_scores(struct serving *s, const struct eval_scorer_times *times,
                               struct status_why *why)
{
    struct eval_worker *w = &s->worker;
    const struct eval_row_sink *sink = s->models.sink;
    size_t n_state = cluster_remote_n_state(w);
    double *state;
    enum status status = base_array_new(state, n_state, "scores", why);
    if (status)
        return status;
    for (size_t i = w->at.first; i < w->at.end && n_state && !status; i++)
        status = sink->save(sink->user, cluster_remote_window(w, i),
                            state + (i - w->at.first) * sink->n_state, why);
    struct cluster_part parts[CLUSTER_REMOTE_PARTS];
    size_t n = cluster_remote_parts(w, times, state, parts);
    if (!status)
        status = cluster_link_send(s->link, CLUSTER_MESSAGE_SCORES, STATUS_OK, parts, n, why);
    free(state);
    return status;
}

/** What the batch left in sums, after its scores. */
static enum status send_sums(struct serving *s, struct status_why *why)
{
    struct base_buffer sums = {0};
    if (!s->units->kind->pack)
        return STATUS_OK;
    enum status status = s->units->kind->pack(s->units, &sums, why);
    struct cluster_part part = {sums.data, sums.n};
    if (!status)
        status = cluster_link_send(s->link, CLUSTER_MESSAGE_SUMS, STATUS_OK, &part, 1, why);
    base_buffer_free(&sums);
    return status;
}

/** A message of rank 0. */
static enum status hear(struct serving *s, struct status_why *why)
{
    struct cluster_message message;
    enum status status = cluster_link_receive(s->link, &message, why);
    if (status)
        return status;
    if (message.kind == CLUSTER_MESSAGE_END) {
        s->ended = true;
        return STATUS_OK;
    }
    if (message.kind == CLUSTER_MESSAGE_START && !s->queue)
        return begin(s, why);
    if (message.kind != CLUSTER_MESSAGE_BATCH || s->n_queued == s->capacity)
        return cluster_link_unexpected(s->link, &message, why);
    struct cluster_remote_batch *batch = &s->queue[s->n_queued++];
    status = cluster_link_read(s->link, batch, sizeof *batch, why);
    assert(status || (batch->first < batch->end && batch->end <= s->units->n_items));
    return status;
}

/** Wait for the next batch: by rank 0's word, or with what another rank made of it. */
static enum status next_batch(struct serving *s, struct cluster_remote_batch *out,
                              struct status_why *why)
{
    struct cluster_hop *in = s->pipe.enters;
    if (in) {
        enum status status = cluster_hop_await(in, why);
        *out = in->batch;
        return status;
    }
    *out = s->queue[0];
    memmove(s->queue, s->queue + 1, --s->n_queued * sizeof *s->queue);
    return STATUS_OK;
}

static enum status evaluate(struct serving *s, struct status_why *why)
{
    struct cluster_remote_batch batch;
    struct eval_worker *w = &s->worker;
    struct cluster_hop *out = s->pipe.leaves;
    enum status status = next_batch(s, &batch, why);
    if (status)
        return status;
    w->at = (struct eval_given){.first = (size_t)batch.first, .end = (size_t)batch.end};
    s->told = base_clock_seconds();
    struct eval_scorer_times times = {0};
    eval_worker_lay(w);
    status = w->kind->evaluate(w, &times, why);
    if (!status) /* as before a commit */
        status = eval_models_check_unchanged(&s->models, why);
    if (!status && !out) {
        status = send_scores(s, &times, why);
        return status ? status : send_sums(s, why);
    }
    if (status)
        return status;
    out->batch = batch;
    cluster_hop_pass(out);
    return STATUS_OK;
}

static enum status serve(struct serving *s, struct status_why *why)
{
    enum status status = STATUS_OK;
    while (!s->ended && !status)
        status = s->n_queued || s->pipe.enters ? evaluate(s, why) : hear(s, why);
    return s->ended ? STATUS_OK : status;
}

enum status cluster_serve(struct eval_units *units, const struct eval_models *models,
                          struct cluster_link *link, struct status_why *why)
{
    struct serving s = {
        .link = link, .units = units, .models = *models, .options.progress = on_progress};
    assert(models->n_backends == 1);
    s.options.user = &s;
    s.dispatch = (struct eval_dispatch){.units = units,
                                        .models = &s.models,
                                        .options = &s.options,
                                        .stats = &s.stats,
                                        .workers = &s.worker,
                                        .n_workers = 1};
    link->cancel[0] = models->backends[0]->cancel;
    enum status status = serve(&s, why);
    link->cancel[0] = NULL;
    if (status) {
        struct cluster_part part = {why->text, status == STATUS_CANCELLED ? 0 : strlen(why->text)};
        if (cluster_link_has_ended(link))
            status = STATUS_OK;
        else
            status = cluster_link_send(link, CLUSTER_MESSAGE_FAILED, status, &part, 1, NULL);
        if (status)
            status = status_fail(why, STATUS_DEVICE, "rank 0 died, which ends the run");
    }
    eval_worker_close(&s.worker);
    cluster_pipe_close(&s.pipe);
    free(s.queue);
    if (s.dispatch.taken)
        eval_dispatch_close(&s.dispatch);
    return status;
}
