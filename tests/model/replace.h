/** Putting other bytes in place of a tensor's, in a model that is open. */
#ifndef TESTS_MODEL_REPLACE_H
#define TESTS_MODEL_REPLACE_H

#include "model/model.h"

/**
 * Point one tensor at other bytes of the same shape (any type): every later operation sees
 * them, also in sessions that are open. name: as in the file. The bytes must outlive the model.
 * Handles keep their addresses; their generation rises. Not while a forward pass is running.
 * Fails: STATUS_USAGE (no such tensor, rows that are no whole blocks), STATUS_UNSUPPORTED (type),
 *        STATUS_FORMAT (values that the tensor cannot have); the model is then as before.
 * Cost: O(tensors).
 */
enum status replace_weight(struct model *m, const char *name, enum gguf_type type, const void *data,
                           struct status_why *why);

#endif
