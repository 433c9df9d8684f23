/* A rank that is not rank 0: it evaluates the batches that it is sent. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"
#include "base/clock.h"
#include "eval/cluster/remote.h"
#include "eval/run/worker.h"
#include "eval/scorer/row_flow.h"

static const double between_fractions = 0.5; /* seconds */

struct serving {
    struct eval_link *link;
    struct eval_units *units;
    struct eval_models models; /* with the sink below, where rank 0 wants rows */
    struct eval_run_options options;
    struct eval_run_stats stats;
    struct eval_dispatch dispatch;
    struct eval_worker worker;
    struct eval_row_sink sink;
    double told; /* when rank 0 last heard how far the batch is */
};

/** Rows to rank 0, which writes them in their turn. */
static enum status send_rows(void *user, struct kern_backend *backend, size_t first, size_t n_rows,
                             const void *rows, struct status_why *why)
{
    (void)backend;
    struct serving *s = user;
    size_t row_bytes = eval_row_bytes(s->sink.kind, model_head(s->models.model));
    size_t most = base_max(EVAL_REMOTE_ROW_BYTES / row_bytes, 1);
    enum status status = STATUS_OK;
    for (size_t done = 0, n; done < n_rows && !status; done += n) {
        n = base_min(n_rows - done, most);
        struct eval_remote_rows about = {first + done, n};
        struct eval_part parts[] = {{&about, sizeof about},
                                    {(const char *)rows + done * row_bytes, n * row_bytes}};
        status = eval_link_send(s->link, EVAL_MESSAGE_ROWS, STATUS_OK, parts, 2, why);
    }
    return status;
}

/** In the course of a batch: tell rank 0 how far it is, and stop once rank 0 says so or is gone. */
static void on_progress(void *user, const struct eval_progress *progress)
{
    (void)progress;
    struct serving *s = user;
    double now = base_clock_seconds();
    if (eval_link_pending(s->link))
        atomic_store(&s->dispatch.stop, true);
    if (now - s->told < between_fractions)
        return;
    s->told = now;
    struct eval_part part = {&s->worker.fraction, sizeof s->worker.fraction};
    eval_link_send(s->link, EVAL_MESSAGE_FRACTION, STATUS_OK, &part, 1, NULL);
}

/** Units that rank 0's journal has count as finished; their numbers are not needed here. */
static enum status skip_finished(struct eval_units *units, size_t n, struct status_why *why)
{
    enum status status = STATUS_OK;
    for (; units->n_finished < n && !status; units->n_resumed = ++units->n_finished) {
        bool restored;
        size_t n_values = units->kind->n_values(units, units->n_finished);
        double *zeros = calloc(n_values + 1, sizeof *zeros);
        if (!zeros)
            return status_fail(why, STATUS_MEMORY, "no memory for %zu numbers", n_values);
        status = units->kind->restore(units, units->n_finished, zeros, &restored, why);
        free(zeros);
    }
    return status;
}

/** What START says: the same items as on rank 0, and a worker for them. */
static enum status begin(struct serving *s, struct status_why *why)
{
    struct eval_remote_start start;
    enum status status = eval_link_read(s->link, &start, sizeof start, why);
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
    if (!status)
        status = eval_dispatch_open(&s->dispatch, why);
    s->dispatch.next_to_commit = s->units->n_items; /* nobody to wait for */
    if (!status)
        status = eval_worker_open(&s->worker, &s->dispatch, 0, why);
    if (!status)
        kern_set_cancel(s->worker.backend, &s->dispatch.stop);
    return status;
}

static enum status send_scores(struct serving *s, const struct eval_scorer_times *times,
                               struct status_why *why)
{
    struct eval_worker *w = &s->worker;
    const struct eval_row_sink *sink = s->models.sink;
    size_t n_state = eval_remote_n_state(w);
    double *state = calloc(n_state + 1, sizeof *state);
    enum status status = STATUS_OK;
    if (!state)
        return status_fail(why, STATUS_MEMORY, "no memory for the scores of a batch");
    for (size_t i = w->first; i < w->end && n_state && !status; i++)
        status = sink->save(sink->user, eval_remote_window(w, i),
                            state + (i - w->first) * sink->n_state, why);
    struct eval_part parts[EVAL_REMOTE_PARTS];
    size_t n = eval_remote_parts(w, times, state, parts);
    if (!status)
        status = eval_link_send(s->link, EVAL_MESSAGE_SCORES, STATUS_OK, parts, n, why);
    free(state);
    return status;
}

static enum status evaluate(struct serving *s, struct status_why *why)
{
    struct eval_remote_batch batch;
    struct eval_worker *w = &s->worker;
    enum status status = eval_link_read(s->link, &batch, sizeof batch, why);
    if (status)
        return status;
    assert(batch.first < batch.end && batch.end <= s->units->n_items);
    w->first = (size_t)batch.first;
    w->end = (size_t)batch.end;
    s->told = base_clock_seconds();
    struct eval_scorer_times times = {0};
    eval_worker_lay(w);
    status = eval_worker_compute(w, &times, why);
    if (!status) /* as before a commit */
        status = eval_models_check_unchanged(&s->models, why);
    return status ? status : send_scores(s, &times, why);
}

static enum status serve(struct serving *s, struct status_why *why)
{
    for (;;) {
        struct eval_message message;
        enum status status = eval_link_receive(s->link, &message, why);
        if (!status && message.kind == EVAL_MESSAGE_END)
            return STATUS_OK;
        if (!status && message.kind == EVAL_MESSAGE_START)
            status = begin(s, why);
        else if (!status && message.kind == EVAL_MESSAGE_BATCH)
            status = evaluate(s, why);
        else if (!status)
            status = eval_link_unexpected(s->link, &message, why);
        if (status)
            return status;
    }
}

enum status eval_serve(struct eval_units *units, const struct eval_models *models,
                       struct eval_link *link, struct status_why *why)
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
        struct eval_part part = {why->text, status == STATUS_CANCELLED ? 0 : strlen(why->text)};
        if (eval_link_has_ended(link))
            status = STATUS_OK;
        else
            status = eval_link_send(link, EVAL_MESSAGE_FAILED, status, &part, 1, NULL);
        if (status)
            status = status_fail(why, STATUS_DEVICE, "rank 0 died, which ends the run");
    }
    eval_worker_close(&s.worker);
    if (s.dispatch.taken)
        eval_dispatch_close(&s.dispatch);
    return status;
}
