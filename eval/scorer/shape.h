/**
 * What the sizes of a scorer follow from, for the scorer and for the forecast of its memory.
 */
#ifndef EVAL_SCORER_SHAPE_H
#define EVAL_SCORER_SHAPE_H

#include "eval/scorer/row_flow.h"
#include "eval/scorer/scorer.h"
#include "kernels/backend.h"

/** Bytes of a row of a model's residual stream. */
static inline size_t eval_scorer_row_bytes(const struct model *model)
{
    return model_residual_width(model_hparams(model)) * sizeof(float);
}

/** Bytes of a row that enters its head. */
static inline size_t eval_scorer_hidden_bytes(const struct model *model)
{
    return (size_t)model_hparams(model)->n_embd * sizeof(float);
}

/**
 * Rows per call of the head, at most. A source's bound on records keeps them in a processor's
 * caches; it does not hold for a device, which wants many rows at once.
 */
static inline size_t eval_scorer_slab_rows(const struct eval_scorer_options *options,
                                           const struct kern_backend *backend)
{
    const struct eval_row_source *base = options->base;
    size_t most = options->max_rows < EVAL_SLAB_ROWS ? options->max_rows : EVAL_SLAB_ROWS;
    if (!base || (base->kind == EVAL_ROWS_CODES && kern_describe(backend).own_memory))
        return most;
    return base->max_rows && base->max_rows < most ? base->max_rows : most;
}

/** The session of a model, without progress. A split that cannot be is told by eval_scorer_open. */
static inline struct model_session_options
eval_scorer_session(const struct eval_scorer_options *options, const struct kern_backend *backend,
                    const struct model *model)
{
    struct model_layer_range layers;
    (void)eval_stream_layers(options->streams, model, &layers, NULL);
    size_t tile_tokens = options->tile_tokens;
    return (struct model_session_options){
        .tile_tokens = tile_tokens ? tile_tokens : kern_describe(backend).tile_tokens,
        .max_batch = options->max_batch,
        .max_segment = options->max_segment,
        .layers = layers,
    };
}

/** The i-th of the models in step: the scorer's own, then its candidates. */
static inline const struct model *
eval_scorer_model(const struct model *first, const struct eval_scorer_options *options, size_t i)
{
    return i ? options->candidates[i - 1] : first;
}

/** How rows come and go. */
static inline struct eval_row_flow_options
eval_scorer_flow(const struct model *model, const struct eval_scorer_options *options,
                 const struct kern_backend *backend)
{
    return (struct eval_row_flow_options){.source = options->base,
                                          .sink = options->sink,
                                          .head = model_head(model),
                                          .max_rows = eval_scorer_slab_rows(options, backend)};
}

#endif
