#include "eval/run/local.h"

#include <stdlib.h>

#include "kernels/backend.h"

/** What such a worker has of its own. */
struct local {
    struct kern_backend *backend;
    const atomic_bool *cancel; /* the caller's flag, given back at the end */
    struct eval_scorer *scorer;
    struct eval_row_source source; /* what the scorer sees of the models' */
    struct eval_row_sink sink;
};

/* The source's calls one at a time: expect before the batch's turn has come, the others in it. */

static void expect(void *user, size_t first, size_t n_rows)
{
    struct eval_worker *w = user;
    const struct eval_row_source *base = w->dispatch->models->base;
    pthread_mutex_lock(&w->dispatch->source_lock);
    base->expect(base->user, first, n_rows);
    pthread_mutex_unlock(&w->dispatch->source_lock);
}

static enum status rows(void *user, size_t first, size_t n_rows, const void **out,
                        struct status_why *why)
{
    struct eval_worker *w = user;
    const struct eval_row_source *base = w->dispatch->models->base;
    enum status status = eval_dispatch_await(w->dispatch, w->at.first, why);
    if (status)
        return status;
    pthread_mutex_lock(&w->dispatch->source_lock);
    status = base->rows(base->user, first, n_rows, out, why);
    pthread_mutex_unlock(&w->dispatch->source_lock);
    return status;
}

static enum status check(void *user, size_t first, size_t n_rows,
                         const struct kern_row_score *scores, struct status_why *why)
{
    struct eval_worker *w = user;
    const struct eval_row_source *base = w->dispatch->models->base;
    pthread_mutex_lock(&w->dispatch->source_lock);
    enum status status = base->check(base->user, first, n_rows, scores, why);
    pthread_mutex_unlock(&w->dispatch->source_lock);
    return status;
}

/** In its turn a worker is alone with the sink: it commits its batch before the turn ends. */
static enum status write_rows(void *user, struct kern_backend *backend, size_t first, size_t n_rows,
                              const void *from, struct status_why *why)
{
    struct eval_worker *w = user;
    const struct eval_row_sink *sink = w->dispatch->models->sink;
    enum status status = eval_dispatch_await(w->dispatch, w->at.first, why);
    return status ? status : sink->write(sink->user, backend, first, n_rows, from, why);
}

/** The scorer meets source and sink of the models through the worker, which waits for its turn. */
static void take_turns(struct eval_worker *w, struct eval_scorer_options *scorer)
{
    const struct eval_models *models = w->dispatch->models;
    struct local *own = w->own;
    if (scorer->base) {
        own->source = *models->base;
        own->source.user = w;
        own->source.expect = models->base->expect ? expect : NULL;
        own->source.rows = rows;
        own->source.check = models->base->check ? check : NULL;
        own->source.unchanged = NULL; /* the dispatcher asks, not the scorer */
        scorer->base = &own->source;
    }
    if (scorer->sink) {
        own->sink =
            (struct eval_row_sink){.kind = models->sink->kind, .user = w, .write = write_rows};
        scorer->sink = &own->sink;
    }
}

struct eval_scorer_options eval_local_scorer(const struct eval_units *units,
                                             const struct eval_models *models,
                                             const struct eval_run_options *options)
{
    bool scores = eval_stream_scores(models->streams, models->model);
    return (struct eval_scorer_options){
        .max_batch = units->most.n_tokens,
        .max_rows = scores ? units->most.n_rows : 1,
        .max_segment = units->most.longest,
        .tile_tokens = options->tile_tokens,
        .candidates = models->candidates,
        .n_candidates = models->n_candidates,
        .n_common = models->n_common,
        .base = scores ? models->base : NULL,
        .sink = scores ? models->sink : NULL,
        .streams = models->streams,
    };
}

static enum status open_local(struct eval_worker *w, struct status_why *why)
{
    const struct eval_dispatch *d = w->dispatch;
    struct local *own = w->own = calloc(1, sizeof *own);
    if (!own)
        return status_fail(why, STATUS_MEMORY, "no memory for a worker");
    own->backend = d->models->backends[w->i];
    own->cancel = own->backend->cancel;
    struct eval_scorer_options scorer = eval_local_scorer(d->units, d->models, d->options);
    scorer.progress = eval_dispatch_on_fraction;
    scorer.progress_user = w;
    take_turns(w, &scorer);
    return eval_scorer_open(&own->scorer, d->models->model, own->backend, &scorer, why);
}

static void begin_local(struct eval_worker *w)
{
    const struct local *own = w->own;
    if (w->dispatch->n_workers > 1 || w->dispatch->models->crew)
        kern_set_cancel(own->backend, &w->dispatch->stop);
}

/** Sums over batches: in the batch's turn. */
static enum status merge(struct eval_worker *w, struct status_why *why)
{
    struct eval_units *units = w->dispatch->units;
    if (!units->kind->merge)
        return STATUS_OK;
    enum status status = eval_dispatch_await(w->dispatch, w->at.first, why);
    return status ? status : units->kind->merge(units, w->i, w->at.end, why);
}

static enum status evaluate_local(struct eval_worker *w, struct eval_scorer_times *times,
                                  struct status_why *why)
{
    const struct local *own = w->own;
    const struct eval_models *models = w->dispatch->models;
    const struct eval_units *units = w->dispatch->units;
    struct eval_batch *b = &w->batch;
    struct model_batch batch = {b->tokens, b->n.n_tokens, b->segments, b->n.n_segments,
                                units->wants_marks ? b->marks : NULL};
    struct eval_items items = {
        .rows = b->rows,
        .n_rows = b->n.n_rows,
        .plan_rows = models->base || models->sink ? b->plan_rows : NULL,
        .variant = units->kind->variant ? units->kind->variant(units, w->at.first) : 0,
        .targets = b->targets,
        .n_targets = b->n.n_targets,
        .row_scores = w->row_scores,
        .target_scores = w->target_scores,
        .pair_scores = w->pair_scores,
        .want_js = w->pair_scores && models->want_js,
        .tops = w->tops,
    };
    enum status status = eval_scorer_run(own->scorer, &batch, &items, times, why);
    return status ? status : merge(w, why);
}

static void close_local(struct eval_worker *w)
{
    struct local *own = w->own;
    if (!own)
        return;
    eval_scorer_close(own->scorer);
    kern_set_cancel(own->backend, own->cancel);
    free(own);
    w->own = NULL;
}

static double bytes_local(const struct eval_units *units, const struct eval_models *models,
                          const struct eval_run_options *options, size_t i)
{
    struct eval_scorer_options scorer = eval_local_scorer(units, models, options);
    return eval_scorer_bytes(models->model, models->backends[i], &scorer) +
           EVAL_MEMORY_THREAD * kern_describe(models->backends[i]).n_threads;
}

const struct eval_worker_kind eval_worker_local = {
    .open = open_local,
    .begin = begin_local,
    .evaluate = evaluate_local,
    .close = close_local,
    .bytes = bytes_local,
};
