/* What a scorer will take of memory. */
#include <stdlib.h>

#include "base/arithmetic.h"
#include "eval/scorer/shape.h"
#include "kernels/scoring.h"

/** What the backend takes for the scores of a slab. */
static size_t head_bytes(const struct model *model, struct kern_backend *backend,
                         const struct eval_scorer_options *options)
{
    size_t n_models = 1 + options->n_candidates, n_rows = eval_scorer_slab_rows(options, backend);
    const struct eval_row_source *base = options->base;
    size_t n_heads = n_models + (base ? 1 : 0);
    struct kern_head *heads = calloc(n_heads, sizeof *heads);
    if (!heads)
        return 0;
    struct kern_recorded recorded = {0};
    if (base && base->kind == EVAL_ROWS_CODES)
        heads[0].recorded = &recorded;
    else if (base)
        heads[0].matrix = base->head;
    for (size_t i = 0; i < n_models; i++)
        heads[n_heads - n_models + i] = model_kern_head(eval_scorer_model(model, options, i));
    struct kern_score op = {
        .n_heads = n_heads, .heads = heads, .n_rows = n_rows, .n_targets = n_rows};
    size_t n_bytes = kern_score_bytes(backend, &op);
    free(heads);
    return n_bytes;
}

double eval_scorer_bytes(const struct model *model, struct kern_backend *backend,
                         const struct eval_scorer_options *options)
{
    const struct eval_stream_source *streams = options->streams;
    if (streams && streams->scorer_bytes)
        return streams->scorer_bytes(streams->user, model, backend, options);
    double n_slab = (double)eval_scorer_slab_rows(options, backend);
    struct eval_row_flow_options flow = eval_scorer_flow(model, options, backend);
    size_t operation = 0, head = head_bytes(model, backend, options);
    double own = eval_row_flow_bytes(backend, &flow, &operation);
    operation = base_max(head, operation);
    for (size_t i = 0; i <= options->n_candidates; i++) {
        const struct model *m = eval_scorer_model(model, options, i);
        struct model_session_options session = eval_scorer_session(options, backend, m);
        operation = base_max(operation, model_operation_bytes(m, backend, &session));
        own += (double)options->max_batch * (double)eval_scorer_row_bytes(m) +
               n_slab * (double)eval_scorer_hidden_bytes(m) +
               (double)model_session_bytes(m, &session);
    }
    double per_row = sizeof(struct kern_row_score) + sizeof(struct kern_pair_score) +
                     sizeof(struct kern_target_score);
    double n_heads = (double)options->n_candidates + (options->base ? 2 : 1);
    return own + (double)operation + per_row * n_heads * n_slab;
}
