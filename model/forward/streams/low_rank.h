/** Streams whose mixers are of low rank (Qwen 3.8). For model/ only. */
#ifndef MODEL_FORWARD_STREAMS_LOW_RANK_H
#define MODEL_FORWARD_STREAMS_LOW_RANK_H

#include "model/forward/session.h"

/** As struct model_residual_form has them. */
size_t model_low_rank_floats(const struct model *m, size_t n_tokens);
size_t model_low_rank_work_floats(const struct model *m, size_t i_layer, size_t n_tokens);
void model_low_rank_open(struct model_session *s, const struct model_step *tile,
                         const struct model_stream_mixer *mixer, struct model_step *step);
void model_low_rank_close(struct model_session *s, const struct model_step *tile);
void model_low_rank_end(struct model_session *s, const float *x, const uint32_t *rows,
                        size_t n_rows, float *hidden);

#endif
