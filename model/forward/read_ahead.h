/** Reading weights from the disk while the layer before them is computed. */
#ifndef MODEL_FORWARD_READ_AHEAD_H
#define MODEL_FORWARD_READ_AHEAD_H

#include "model/model.h"

/**
 * Have the weights of layer i read that all tokens need, or those after the last layer (norm and
 * head) for i == n_layers. Returns at once; a hint only.
 */
void model_read_ahead(const struct model *m, size_t i);
/** Have those of an expert read that some tokens have chosen. */
void model_read_ahead_expert(const struct model_ffn *expert);

/** Have a row of a table read of which few are wanted. */
void model_read_ahead_row(const struct kern_weight *table, size_t row);

#endif
