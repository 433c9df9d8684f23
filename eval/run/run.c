#include "eval/run/run.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/arithmetic.h"
#include "base/array.h"
#include "base/clock.h"
#include "eval/run/batch_size.h"
#include "eval/run/local.h"
#include "kernels/backend.h"
#include "model/swap.h"

enum status eval_check_ids(const struct model *model, const int32_t *ids, size_t n,
                           struct status_why *why)
{
    size_t n_vocab = model_hparams(model)->n_vocab;
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || (size_t)ids[i] >= n_vocab)
            return status_fail(why, STATUS_FORMAT,
                               "%s: token %zu of the text has the id %d; expected ids below %zu, "
                               "the rows of the embedding",
                               gguf_path(model_file(model)), i, ids[i], n_vocab);
    return STATUS_OK;
}

/** Read the next unit's entry. found: it is there, and what belongs to it. */
static enum status restore(struct eval_units *units, struct eval_journal *journal, bool *found,
                           struct status_why *why)
{
    size_t n = units->kind->n_values(units, units->n_finished);
    double *values;
    if (base_array_new(values, n, "numbers of a journal entry", why))
        return STATUS_MEMORY;
    bool read = false;
    enum status status = eval_journal_read(journal, values, n, &read, why);
    *found = read;
    if (!status && read)
        status = units->kind->restore(units, units->n_finished, values, found, why);
    if (read && (status || !*found))
        eval_journal_unread(journal);
    free(values);
    return status;
}

enum status eval_run_resume(struct eval_units *units, struct eval_journal *journal,
                            struct status_why *why)
{
    enum status status = STATUS_OK;
    bool found = journal != NULL;
    while (found && units->n_finished < units->n && !status) {
        status = restore(units, journal, &found, why);
        if (!status && found)
            units->n_resumed = ++units->n_finished;
    }
    return status;
}

static void measure(struct eval_units *units)
{
    units->most = (struct eval_size){0};
    units->n_tokens = 0;
    units->cost = 0;
    struct eval_size *most = &units->most;
    for (size_t i = 0; i < units->n_items;) {
        struct eval_size n;
        units->cost += eval_batch_cost(units, i, eval_batch_end(units, i, &n));
        i = eval_batch_end(units, i, &n);
        most->n_tokens = base_max(most->n_tokens, n.n_tokens);
        most->n_segments = base_max(most->n_segments, n.n_segments);
        most->n_rows = base_max(most->n_rows, n.n_rows);
        most->n_targets = base_max(most->n_targets, n.n_targets);
        most->longest = base_max(most->longest, n.longest);
        units->n_tokens += n.n_tokens;
    }
}

/** Every model has the layers that are to be evaluated here. */
static enum status check_layers(const struct eval_models *models, struct status_why *why)
{
    struct model_layer_range layers;
    enum status status = eval_stream_layers(models->streams, models->model, &layers, why);
    for (size_t i = 0; i < models->n_candidates && !status; i++)
        status = eval_stream_layers(models->streams, models->candidates[i], &layers, why);
    return status;
}

enum status eval_run_prepare(struct eval_units *units, const struct eval_models *models,
                             size_t batch_tokens, struct status_why *why)
{
    enum status status = check_layers(models, why);
    /* Tokens of a batch are counted in uint32_t. */
    units->batch_tokens = base_min(batch_tokens, UINT32_MAX);
    units->boundary = model_rope_boundary(models->model);
    if (batch_tokens == 0 && !status)
        status = eval_batch_choose(units, models, &units->batch_tokens, why);
    if (!status)
        status = units->kind->make_items(units, why);
    if (!status)
        measure(units);
    return status;
}

/** eval_check_same_vocab compares models with each other; here are reference rows and ids. */
static enum status check_models(const struct eval_units *units, const struct eval_models *models,
                                struct status_why *why)
{
    size_t n_vocab = model_head(models->model)->n_rows;
    const struct eval_row_source *base = models->base;
    bool cut = models->n_common && base && base->kind == EVAL_ROWS_HIDDEN;
    if (base && !cut && base->n_vocab != (models->n_common ? models->n_common : n_vocab))
        return status_fail(why, STATUS_USAGE,
                           "the base has a vocabulary of %zu tokens, that of %s has %zu",
                           base->n_vocab, gguf_path(model_file(models->model)), n_vocab);
    enum status status = units->kind->check_ids(units, models->model, why);
    for (size_t i = 0; i < models->n_candidates && !status; i++)
        status = units->kind->check_ids(units, models->candidates[i], why);
    return status;
}

/** The first worker in this thread, each of the others in its own. */
static enum status work(struct eval_dispatch *d, struct eval_worker *workers,
                        struct status_why *why)
{
    size_t n_threads = 1;
    while (n_threads < d->n_workers && pthread_create(&workers[n_threads].thread, NULL,
                                                      eval_worker_work, &workers[n_threads]) == 0)
        n_threads++;
    if (n_threads < d->n_workers) {
        struct status_why no_thread = {"no thread can be started for each of the workers"};
        eval_dispatch_fail(d, STATUS_MEMORY, &no_thread);
    }
    eval_worker_work(&workers[0]);
    for (size_t i = 1; i < n_threads; i++)
        pthread_join(workers[i].thread, NULL);
    return d->status ? status_fail(why, d->status, "%s", d->why.text) : STATUS_OK;
}

/** The crew's first, which get ready while the backends do. */
static enum status open_workers(struct eval_dispatch *d, struct eval_worker *workers,
                                struct status_why *why)
{
    const struct eval_crew *crew = d->models->crew;
    const struct eval_worker_kind *own = crew && crew->own ? crew->own : &eval_worker_local;
    size_t n_own = d->models->n_backends;
    enum status status = STATUS_OK;
    for (size_t i = d->n_workers; i-- > 0 && !status;)
        status = i < n_own || !crew ? eval_worker_open(&workers[i], own, d, i, why)
                                    : eval_worker_open(&workers[i], crew->kind, d, i - n_own, why);
    for (size_t i = 0; i < d->n_workers && !status; i++)
        if (workers[i].kind->begin)
            workers[i].kind->begin(&workers[i]);
    return status;
}

static enum status run(struct eval_dispatch *d, struct eval_worker *workers, struct status_why *why)
{
    enum status status = check_models(d->units, d->models, why);
    bool any = d->units->n_items && !eval_dispatch_enough(d);
    if (any && !status)
        status = open_workers(d, workers, why);
    if (status)
        return status;
    double now = base_clock_seconds();
    d->stats->seconds_to_open = now - d->started;
    d->started = now;
    status = eval_dispatch_report(d, why);
    return status || !any ? status : work(d, workers, why);
}

enum status eval_run(struct eval_units *units, const struct eval_models *models,
                     const struct eval_run_options *options, struct eval_run_stats *stats,
                     struct status_why *why)
{
    assert(units->batch_tokens > 0 && models->n_backends > 0);
    struct eval_run_stats own;
    struct eval_dispatch d = {
        .units = units, .models = models, .options = options, .stats = stats ? stats : &own};
    *d.stats = (struct eval_run_stats){.n_resumed = units->n_resumed,
                                       .max_batch_tokens = units->most.n_tokens};
    size_t n_workers = eval_models_n_workers(models);
    struct eval_worker *workers = calloc(n_workers, sizeof *workers);
    d.workers = workers;
    d.n_workers = n_workers;
    enum status status = eval_dispatch_open(&d, why);
    if (!workers && !status)
        status = status_fail(why, STATUS_MEMORY, "no memory for %zu workers", n_workers);
    if (!status)
        status = run(&d, workers, why);
    if (status && status != STATUS_CANCELLED) { /* a file that changed may be why */
        struct status_why changed;
        if (eval_models_check_unchanged(models, &changed) == STATUS_CHANGED)
            status = status_fail(why, STATUS_CHANGED, "%s", changed.text);
    }
    if (options->journal) { /* whatever became of the run */
        enum status synced = eval_journal_sync(options->journal, status ? NULL : why);
        status = status ? status : synced;
    }
    for (size_t i = 0; workers && i < n_workers; i++)
        eval_worker_close(&workers[i]);
    if (models->crew)
        models->crew->end(models->crew->user, status);
    free(workers);
    d.stats->seconds = base_clock_seconds() - d.started;
    eval_dispatch_close(&d);
    return status;
}
