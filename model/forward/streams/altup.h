/**
 * The streams of Gemma 3n (struct model_altup): what a layer does around its branches, and both
 * ends. For model/ only.
 */
#ifndef MODEL_FORWARD_STREAMS_ALTUP_H
#define MODEL_FORWARD_STREAMS_ALTUP_H

#include "model/forward/session.h"

/** As struct model_residual_form has them. */
size_t model_altup_floats(const struct model *m, size_t n_tokens);
size_t model_altup_work_floats(const struct model *m, size_t i_layer, size_t n_tokens);
size_t model_altup_constants(const struct model *m, float *to);
void model_altup_begin(struct model_session *s, const int32_t *tokens, size_t n_tokens, float *x);
void model_altup_layer(struct model_session *s, const struct model_step *tile,
                       model_block_fn *mixer, model_block_fn *feed_forward);
void model_altup_end(struct model_session *s, const float *x, const uint32_t *rows, size_t n_rows,
                     float *hidden);

#endif
