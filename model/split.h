/** Which layers a process computes where several share a model. */
#ifndef MODEL_SPLIT_H
#define MODEL_SPLIT_H

#include "model/model.h"

/** Layers from .. to - 1. The first of a model brings the embedding, the last the head. */
struct model_layer_range {
    size_t from, to;
};

/**
 * The layers of share i of n (i < n): all weights, embedding and head included, in shares as even
 * in bytes as runs of whole layers can be (the sum of their squares is least; of equal ones the
 * earlier cut). A layer stays with those whose keys it uses. The same on every machine.
 * Fails: STATUS_USAGE (fewer places to cut than that), STATUS_MEMORY.
 */
enum status model_split(const struct model *m, size_t n, size_t i, struct model_layer_range *out,
                        struct status_why *why);

/** Bytes of the weights that these layers read: with the embedding, and with norm and head. */
double model_split_bytes(const struct model *m, struct model_layer_range range);

#endif
