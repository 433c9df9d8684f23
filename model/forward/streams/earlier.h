/** Attention over earlier residuals: streams that layers read together. For model/ only. */
#ifndef MODEL_FORWARD_STREAMS_EARLIER_H
#define MODEL_FORWARD_STREAMS_EARLIER_H

#include "model/forward/session.h"

/** As struct model_residual_form has them. */
size_t model_earlier_floats(const struct model *m, size_t n_tokens);
size_t model_earlier_work_floats(const struct model *m, size_t i_layer, size_t n_tokens);
void model_earlier_begin(struct model_session *s, const int32_t *tokens, size_t n_tokens, float *x);
void model_earlier_layer(struct model_session *s, const struct model_step *tile,
                         model_block_fn *mixer, model_block_fn *feed_forward);
void model_earlier_end(struct model_session *s, const float *x, const uint32_t *rows, size_t n_rows,
                       float *hidden);

#endif
