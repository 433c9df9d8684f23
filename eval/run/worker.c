#include "eval/run/worker.h"

#include <stdlib.h>

#include "eval/cluster/remote.h"
#include "kernels/backend.h"

double eval_worker_bytes(const struct eval_units *units, size_t n_heads)
{
    const struct eval_size *n = &units->most;
    double per_row = sizeof(struct kern_row_score);
    if (n_heads > 1)
        per_row += sizeof(struct kern_pair_score);
    per_row = sizeof(uint32_t) + sizeof(size_t) + (double)n_heads * per_row;
    double per_target =
        2 * sizeof(struct kern_target) + (double)n_heads * sizeof(struct kern_target_score);
    return (double)n->n_tokens * sizeof(int32_t) +
           (double)n->n_segments * sizeof(struct model_segment) + (double)n->n_rows * per_row +
           (double)n->n_targets * per_target + (double)units->n_items;
}

static enum status allocate(struct eval_worker *w, struct status_why *why)
{
    const struct eval_size *n = &w->dispatch->units->most;
    size_t n_heads = eval_models_n_heads(w->dispatch->models);
    struct eval_batch *b = &w->batch;
    w->depth = eval_pipe_depth(w->dispatch->models->share.n);
    w->ahead = calloc(w->depth, sizeof *w->ahead);
    b->tokens = calloc(n->n_tokens, sizeof *b->tokens);
    b->segments = calloc(n->n_segments, sizeof *b->segments);
    b->rows = calloc(n->n_rows, sizeof *b->rows);
    b->plan_rows = calloc(n->n_rows, sizeof *b->plan_rows);
    b->targets = calloc(n->n_targets, sizeof *b->targets);
    w->row_scores = calloc(n_heads * n->n_rows, sizeof *w->row_scores);
    w->target_scores = calloc(n_heads * n->n_targets, sizeof *w->target_scores);
    if (n_heads > 1)
        w->pair_scores = calloc(n_heads * n->n_rows, sizeof *w->pair_scores);
    if (!w->ahead || (n_heads > 1 && !w->pair_scores) || !b->tokens || !b->segments || !b->rows ||
        !b->plan_rows || !b->targets || !w->row_scores || !w->target_scores)
        return status_fail(why, STATUS_MEMORY, "no memory for a batch of %zu tokens", n->n_tokens);
    return STATUS_OK;
}

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
    if (scorer->base) {
        w->source = *models->base;
        w->source.user = w;
        w->source.expect = models->base->expect ? expect : NULL;
        w->source.rows = rows;
        w->source.check = models->base->check ? check : NULL;
        w->source.unchanged = NULL; /* the dispatcher asks, not the scorer */
        scorer->base = &w->source;
    }
    if (scorer->sink) {
        w->sink =
            (struct eval_row_sink){.kind = models->sink->kind, .user = w, .write = write_rows};
        scorer->sink = &w->sink;
    }
}

struct eval_scorer_options eval_worker_scorer(const struct eval_units *units,
                                              const struct eval_models *models,
                                              const struct eval_run_options *options)
{
    bool scores = eval_share_scores(&models->share);
    return (struct eval_scorer_options){
        .max_batch = units->most.n_tokens,
        .max_rows = scores ? units->most.n_rows : 1,
        .max_segment = units->most.longest,
        .tile_tokens = options->tile_tokens,
        .candidates = models->candidates,
        .n_candidates = models->n_candidates,
        .base = scores ? models->base : NULL,
        .sink = scores ? models->sink : NULL,
        .caches = models->caches,
        .share = &models->share,
    };
}

/** A candidate of the worker's own; what enters a layer is computed once for all variants. */
static enum status open_candidate(struct eval_worker *w, struct status_why *why)
{
    const struct eval_models *models = w->dispatch->models;
    const struct eval_cache_options options = {.ascending = true};
    enum status status = model_share(&w->candidate, models->candidates[0], why);
    if (!status)
        status = eval_cache_open(&w->caches[0], models->model, &options, why);
    return status ? status : eval_cache_open(&w->caches[1], w->candidate, &options, why);
}

enum status eval_worker_open(struct eval_worker *w, struct eval_dispatch *d, size_t i,
                             struct status_why *why)
{
    *w = (struct eval_worker){.dispatch = d, .backend = d->models->backends[i]};
    w->cancel = w->backend->cancel;
    struct eval_scorer_options scorer = eval_worker_scorer(d->units, d->models, d->options);
    scorer.progress = eval_dispatch_on_fraction;
    scorer.progress_user = w;
    scorer.share = &d->pipe.share;
    take_turns(w, &scorer);
    enum status status = allocate(w, why);
    if (!status && d->models->variants)
        status = open_candidate(w, why);
    const struct model *candidate = w->candidate;
    if (candidate) {
        scorer.candidates = &candidate;
        scorer.caches = w->caches;
    }
    if (!status)
        status = eval_scorer_open(&w->scorer, d->models->model, w->backend, &scorer, why);
    return status;
}

enum status eval_worker_open_remote(struct eval_worker *w, struct eval_dispatch *d,
                                    struct eval_link *link, struct status_why *why)
{
    *w = (struct eval_worker){.dispatch = d, .link = link};
    w->cancel = d->models->backends[0]->cancel;
    return allocate(w, why);
}

void eval_worker_share_cancel(struct eval_worker *w)
{
    if (w->backend && (w->dispatch->n_workers > 1 || w->feed))
        kern_set_cancel(w->backend, &w->dispatch->stop);
}

void eval_worker_close(struct eval_worker *w)
{
    if (!w->dispatch)
        return; /* never opened */
    eval_scorer_close(w->scorer);
    eval_cache_close(w->caches[0]);
    eval_cache_close(w->caches[1]);
    model_close(w->candidate);
    if (w->backend)
        kern_set_cancel(w->backend, w->cancel);
    free(w->ahead);
    free(w->batch.tokens);
    free(w->batch.segments);
    free(w->batch.rows);
    free(w->batch.plan_rows);
    free(w->batch.targets);
    free(w->row_scores);
    free(w->target_scores);
    free(w->pair_scores);
}

/** Hand the batch's scores to its items. */
static void take(const struct eval_worker *w)
{
    struct eval_units *units = w->dispatch->units;
    struct eval_scores scores = {
        .n_heads = eval_models_n_heads(w->dispatch->models),
        .rows = w->row_scores,
        .pairs = w->pair_scores,
        .targets = w->target_scores,
        .row_stride = w->batch.n.n_rows,
        .target_stride = w->batch.n.n_targets,
    };
    for (size_t i = w->at.first; i < w->at.end; i++) {
        struct eval_size size = units->kind->size(units, i);
        units->kind->take(units, i, &scores);
        scores.rows += size.n_rows;
        scores.targets += size.n_targets;
        if (scores.pairs)
            scores.pairs += size.n_rows;
    }
}

/** Make the worker's candidate what its item is evaluated with. */
static enum status enter_variant(struct eval_worker *w, struct status_why *why)
{
    const struct eval_units *units = w->dispatch->units;
    if (!w->candidate)
        return STATUS_OK;
    const struct eval_variant *from = w->variant;
    w->variant = &w->dispatch->models->variants->items[units->kind->variant(units, w->at.first)];
    if (w->variant == from)
        return STATUS_OK;
    for (size_t i = 0; from && i < from->n; i++)
        kern_forget(w->backend, from->swaps[i].from->data, from->swaps[i].from->n_bytes);
    return eval_variant_enter(w->candidate, from, w->variant, why);
}

void eval_worker_lay(struct eval_worker *w)
{
    const struct eval_units *units = w->dispatch->units;
    w->batch.n = (struct eval_size){0};
    for (size_t i = w->at.first; i < w->at.end; i++)
        units->kind->lay(units, i, &w->batch);
}

/** The rank with the layers before has computed this batch, not another one. */
static enum status await_streams(const struct eval_worker *w, struct eval_hop *in,
                                 struct status_why *why)
{
    enum status status = eval_hop_await(in, why);
    if (!status && (in->batch.first != w->at.first || in->batch.end != w->at.end))
        status = status_fail(why, STATUS_DEVICE, "%s sent another batch than the one expected",
                             in->options.link->name);
    return status;
}

enum status eval_worker_compute(struct eval_worker *w, struct eval_scorer_times *times,
                                struct status_why *why)
{
    const struct eval_models *models = w->dispatch->models;
    struct eval_batch *b = &w->batch;
    enum status status = enter_variant(w, why);
    if (!status && w->dispatch->pipe.share.in)
        status = await_streams(w, w->dispatch->pipe.share.in, why);
    if (status)
        return status;
    struct model_batch batch = {b->tokens, b->n.n_tokens, b->segments, b->n.n_segments};
    struct eval_items items = {
        .rows = b->rows,
        .n_rows = b->n.n_rows,
        .plan_rows = models->base || models->sink ? b->plan_rows : NULL,
        .targets = b->targets,
        .n_targets = b->n.n_targets,
        .row_scores = w->row_scores,
        .target_scores = w->target_scores,
        .pair_scores = w->pair_scores,
        .want_js = w->pair_scores && models->want_js,
    };
    return eval_scorer_run(w->scorer, &batch, &items, times, why);
}

static enum status evaluate(struct eval_worker *w, struct status_why *why)
{
    struct eval_scorer_times times = {0};
    eval_worker_lay(w);
    enum status status = eval_remote_feed(w, why);
    if (!status)
        status =
            w->link ? eval_remote_evaluate(w, &times, why) : eval_worker_compute(w, &times, why);
    if (status)
        return status;
    take(w);
    return eval_dispatch_commit(w->dispatch, w, &times, why);
}

void *eval_worker_work(void *worker)
{
    struct eval_worker *w = worker;
    struct status_why why = {""};
    enum status status = STATUS_OK;
    while (!status && eval_dispatch_next(w->dispatch, w))
        status = evaluate(w, &why);
    if (status)
        eval_dispatch_fail(w->dispatch, status, &why);
    return NULL;
}
