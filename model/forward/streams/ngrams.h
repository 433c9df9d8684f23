/** The embedding of each token's last tokens (Qwen 3.8). For model/ only. */
#ifndef MODEL_FORWARD_STREAMS_NGRAMS_H
#define MODEL_FORWARD_STREAMS_NGRAMS_H

#include "model/forward/session.h"

/** x += what a layer with such an embedding adds to the streams before its branches. */
model_block_fn model_block_ngrams;
/** What it takes of the work area, and of states between tiles; 0 for other layers. */
model_block_floats_fn model_ngrams_floats;
size_t model_ngrams_state_floats(const struct model *m, size_t i_layer);

#endif
