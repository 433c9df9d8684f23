/** The residual of a token: one row, or streams in one of four forms. For model/ only. */
#ifndef MODEL_FORWARD_STREAMS_RESIDUAL_H
#define MODEL_FORWARD_STREAMS_RESIDUAL_H

#include "model/forward/session.h"

/** What is NULL a form does not need. */
struct model_residual_form {
    /** Floats of what lasts through a branch or a layer, and of the work area between branches. */
    size_t (*floats)(const struct model *m, size_t n_tokens);
    model_block_floats_fn *work_floats;
    /** Numbers that do not depend on the model's weights, after the session's zeros; returns how
     * many. to NULL: only counts them. */
    size_t (*constants)(const struct model *m, float *to);

    /** x [n_tokens, S * D] = what enters the first layer. */
    void (*begin)(struct model_session *s, const int32_t *tokens, size_t n_tokens, float *x);
    /** Advance the tile's streams through a layer, and show what it makes. mixer, feed_forward: its
     * blocks, or NULL. */
    void (*layer)(struct model_session *s, const struct model_step *tile, model_block_fn *mixer,
                  model_block_fn *feed_forward);
    /** *step = the tile with a row of D for each token that a branch reads, and zeros to add it to;
     * then what the branch made goes to the tile's streams. NULL: there is one. */
    void (*open)(struct model_session *s, const struct model_step *tile,
                 const struct model_stream_mixer *mixer, struct model_step *step);
    void (*close)(struct model_session *s, const struct model_step *tile);
    /** hidden [n_rows, D] = what the output norm reads of x[rows[i]]. */
    void (*end)(struct model_session *s, const float *x, const uint32_t *rows, size_t n_rows,
                float *hidden);
};

const struct model_residual_form *model_residual_of(const struct model *m);

#endif
