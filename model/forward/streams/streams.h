/** Hyper-connections: residuals of several streams. For model/ only. */
#ifndef MODEL_FORWARD_STREAMS_H
#define MODEL_FORWARD_STREAMS_H

#include "model/forward/session.h"

/** As struct model_residual_form has them. */
size_t model_streams_floats(const struct model *m, size_t n_tokens);
size_t model_streams_constants(const struct model *m, float *to); /* shares in a mean */
size_t model_streams_work_floats(const struct model *m, size_t i_layer, size_t n_tokens);
void model_streams_begin(struct model_session *s, const int32_t *tokens, size_t n_tokens, float *x);
void model_streams_end(struct model_session *s, const float *x, const uint32_t *rows, size_t n_rows,
                       float *hidden);

/** row [n, D] = the mean of the streams of n rows of x. */
void model_streams_mean(struct model_session *s, const float *x, size_t n, float *row);

/** *step = the tile with a row of D for each token that a branch reads, and zeros to add it to. */
void model_streams_open(struct model_session *s, const struct model_step *tile,
                        const struct model_stream_mixer *mixer, struct model_step *step);
/** What the branch made goes to the tile's streams, which are mixed with each other. */
void model_streams_close(struct model_session *s, const struct model_step *tile);

#endif
