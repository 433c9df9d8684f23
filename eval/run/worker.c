#include "eval/run/worker.h"

#include <stdlib.h>

double eval_worker_bytes(const struct eval_units *units, size_t n_heads)
{
    const struct eval_size *n = &units->most;
    double per_row = sizeof(struct kern_row_score);
    if (n_heads > 1)
        per_row += sizeof(struct kern_pair_score);
    per_row = sizeof(uint32_t) + sizeof(size_t) + (double)n_heads * per_row;
    if (units->wants_tops)
        per_row += KERN_TOP_MAX * sizeof(struct kern_top);
    double per_target =
        2 * sizeof(struct kern_target) + (double)n_heads * sizeof(struct kern_target_score);
    return (double)n->n_tokens * (sizeof(int32_t) + sizeof(uint8_t)) +
           (double)n->n_segments * sizeof(struct model_segment) + (double)n->n_rows * per_row +
           (double)n->n_targets * per_target + (double)units->n_items;
}

static enum status allocate(struct eval_worker *w, struct status_why *why)
{
    const struct eval_size *n = &w->dispatch->units->most;
    size_t n_heads = eval_models_n_heads(w->dispatch->models);
    struct eval_batch *b = &w->batch;
    const struct eval_crew *crew = w->dispatch->models->crew;
    w->depth = crew && crew->depth ? crew->depth : 1;
    w->ahead = calloc(w->depth, sizeof *w->ahead);
    b->tokens = calloc(n->n_tokens, sizeof *b->tokens);
    b->marks = calloc(n->n_tokens, sizeof *b->marks);
    b->segments = calloc(n->n_segments, sizeof *b->segments);
    b->rows = calloc(n->n_rows, sizeof *b->rows);
    b->plan_rows = calloc(n->n_rows, sizeof *b->plan_rows);
    b->targets = calloc(n->n_targets, sizeof *b->targets);
    w->row_scores = calloc(n_heads * n->n_rows, sizeof *w->row_scores);
    w->target_scores = calloc(n_heads * n->n_targets, sizeof *w->target_scores);
    if (n_heads > 1)
        w->pair_scores = calloc(n_heads * n->n_rows, sizeof *w->pair_scores);
    bool wants_tops = w->dispatch->units->wants_tops;
    if (wants_tops)
        w->tops = calloc(n->n_rows, KERN_TOP_MAX * sizeof *w->tops);
    if (!w->ahead || (n_heads > 1 && !w->pair_scores) || (wants_tops && !w->tops) || !b->tokens ||
        !b->marks || !b->segments || !b->rows || !b->plan_rows || !b->targets || !w->row_scores ||
        !w->target_scores)
        return status_fail(why, STATUS_MEMORY, "no memory for a batch of %zu tokens", n->n_tokens);
    return STATUS_OK;
}

enum status eval_worker_open(struct eval_worker *w, const struct eval_worker_kind *kind,
                             struct eval_dispatch *d, size_t i, struct status_why *why)
{
    *w = (struct eval_worker){.kind = kind, .dispatch = d, .i = i};
    enum status status = allocate(w, why);
    return status ? status : kind->open(w, why);
}

void eval_worker_close(struct eval_worker *w)
{
    if (!w->kind)
        return; /* never opened */
    w->kind->close(w);
    free(w->ahead);
    free(w->batch.tokens);
    free(w->batch.marks);
    free(w->batch.segments);
    free(w->batch.rows);
    free(w->batch.plan_rows);
    free(w->batch.targets);
    free(w->row_scores);
    free(w->target_scores);
    free(w->pair_scores);
    free(w->tops);
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
        .tops = w->tops,
    };
    for (size_t i = w->at.first; i < w->at.end; i++) {
        struct eval_size size = units->kind->size(units, i);
        units->kind->take(units, i, &scores);
        scores.rows += size.n_rows;
        scores.targets += size.n_targets;
        if (scores.pairs)
            scores.pairs += size.n_rows;
        if (scores.tops)
            scores.tops += size.n_rows * KERN_TOP_MAX;
    }
}

void eval_worker_lay(struct eval_worker *w)
{
    const struct eval_units *units = w->dispatch->units;
    w->batch.n = (struct eval_size){0};
    for (size_t i = w->at.first; i < w->at.end; i++)
        units->kind->lay(units, i, &w->batch);
}

static enum status evaluate(struct eval_worker *w, struct status_why *why)
{
    struct eval_scorer_times times = {0};
    eval_worker_lay(w);
    enum status status = w->kind->evaluate(w, &times, why);
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
