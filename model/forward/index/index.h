/**
 * Sparse layers: which keys the queries of a tile see. For model/forward/ only.
 *
 * An indexer has queries and keys of its own; kern_choose() chooses by their products. Its keys lie
 * in rows as attention's do, or, where pools of positions have one each, in rows as those of runs
 * (model/forward/runs/runs.h). The choice is rows of bits: of the tile, or, where later layers use
 * it, of the batch.
 */
#ifndef MODEL_FORWARD_INDEX_INDEX_H
#define MODEL_FORWARD_INDEX_INDEX_H

#include "model/forward/session.h"

/** What an indexer reads of a tile, and room for model_index_floats(). */
struct model_index_inputs {
    const float *rows;    /* [T, D]: what attention reads */
    const float *queries; /* what its queries are made of: the rows, or compressed ones */
    float *spare;
};

/**
 * In a sparse layer: keys of an indexer, and the choice of the tile's queries, for their attention.
 * Neither is computed where no query leaves out a key; then *chosen is of all keys.
 */
void model_index_keys(struct model_session *s, const struct model_step *step, const float *in);
void model_index_choose(struct model_session *s, const struct model_step *step,
                        const struct model_index_inputs *in, struct kern_chosen *chosen);
/** Whether a layer's query that sees so many keys, its own among them, leaves some out. */
bool model_index_decides(const struct model_hparams *h, size_t i_layer, size_t n_positions);
/** Floats of a layer's keys, and of what pools are made of, where a tile needs n_rows of each. */
size_t model_index_row_floats(const struct model_hparams *h, size_t i_layer, size_t n_rows);
/** What the choice takes of the work area; floats of the rows of bits; the operation's shape. */
size_t model_index_floats(const struct model_hparams *h, size_t i_layer, size_t n_tokens);
size_t model_chosen_floats(const struct model_hparams *h, size_t n_tile, size_t n_batch,
                           size_t n_positions);
struct kern_choose model_choose_of(const struct model_hparams *h, size_t i_layer,
                                   size_t n_positions);

#endif
