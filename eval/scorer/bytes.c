/* What a scorer will take of memory. */
#include <stdlib.h>

#include "base/arithmetic.h"
#include "eval/scorer/shape.h"

static size_t product_bytes(struct kern_backend *backend, const struct kern_weight *weight,
                            size_t n_tokens)
{
    struct kern_linear op = {.weight = weight, .n_tokens = n_tokens};
    return weight->data ? kern_linear_bytes(backend, &op) : 0;
}

/** The most that the backend takes for one of the model's products. */
static size_t layers_bytes(const struct model *model, struct kern_backend *backend, size_t n_tokens)
{
    size_t most = 0;
    for (uint32_t i = 0; i < model_hparams(model)->n_layers; i++) {
        const struct model_layer *layer = model_layer(model, i);
        const struct kern_weight *const weights[] = {
            &layer->q,      &layer->k,           &layer->v,         &layer->output,
            &layer->router, &layer->ffn[0].gate, &layer->ffn[0].up, &layer->ffn[0].down};
        for (size_t k = 0; k < sizeof weights / sizeof *weights; k++)
            most = base_max(most, product_bytes(backend, weights[k], n_tokens));
    }
    return most;
}

/** The most that it takes for attention; a tile's tokens are at most so many ranges. */
static size_t attention_bytes(const struct model *model, struct kern_backend *backend,
                              size_t n_tokens)
{
    const struct model_hparams *h = model_hparams(model);
    size_t most = 0;
    for (uint32_t i = 0; i < h->n_layers; i++) {
        struct kern_attention op = {.n_heads = h->n_heads[i],
                                    .n_kv_heads = h->n_kv_heads[i],
                                    .head_size = h->head_size,
                                    .value_size = h->head_size,
                                    .n_ranges = n_tokens};
        most = base_max(most, kern_attention_bytes(backend, &op));
    }
    return most;
}

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
    struct model_session_options session = eval_scorer_session(options, backend);
    size_t n_tokens = base_min(session.tile_tokens, session.max_batch);
    double rows = (double)options->max_batch + (double)eval_scorer_slab_rows(options, backend);
    struct eval_row_flow_options flow = eval_scorer_flow(model, options, backend);
    size_t operation = 0, head = head_bytes(model, backend, options);
    double own = eval_row_flow_bytes(backend, &flow, &operation);
    operation = base_max(head, operation);
    for (size_t i = 0; i <= options->n_candidates; i++) {
        const struct model *m = eval_scorer_model(model, options, i);
        operation = base_max(operation, layers_bytes(m, backend, n_tokens));
        operation = base_max(operation, attention_bytes(m, backend, n_tokens));
        own += rows * (double)eval_scorer_row_bytes(m) + (double)model_session_bytes(m, &session);
    }
    double per_row = sizeof(struct kern_row_score) + sizeof(struct kern_pair_score) +
                     sizeof(struct kern_target_score);
    double n_heads = (double)options->n_candidates + (options->base ? 2 : 1);
    return own + (double)operation +
           per_row * n_heads * (double)eval_scorer_slab_rows(options, backend);
}
