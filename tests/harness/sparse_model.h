/**
 * Small random models in memory whose queries see the keys that an indexer chooses, and deepseek2,
 * which is deepseek32 without one. Tensors of one name have the same numbers in all of them.
 */
#ifndef TESTS_HARNESS_SPARSE_MODEL_H
#define TESTS_HARNESS_SPARSE_MODEL_H

#include "tests/harness/tiny_model.h"

struct sparse_model_options {
    const char *arch; /* "deepseek2", "deepseek32", "glm-dsa", "glm5-next" or "minimax-m3" */
    uint32_t n_best;  /* keys, of glm5-next in pools of 4; of minimax-m3 blocks of 8 keys */
};

enum { SPARSE_MODEL_LAYERS = 3, SPARSE_MODEL_BLOCK = 8, SPARSE_MODEL_POOL = 4 };

/** A model of three layers; in glm-dsa the second one uses the choice of the first. free(data). */
struct tiny_model sparse_model_make(const struct sparse_model_options *options);

#endif
