/**
 * Drawing a subset of tasks as llama-perplexity does, so that its order and ours are the same.
 *
 * Both ways use the Mersenne Twister (base/random.h) seeded with 1, and draw without replacement.
 */
#ifndef EVAL_INPUT_DRAW_H
#define EVAL_INPUT_DRAW_H

#include <stddef.h>

#include "base/status.h"

/** How a draw picks one of those that are left. */
enum eval_draw {
    /* HellaSwag: std::uniform_int_distribution as libstdc++ (GCC 11 and later) implements it,
       Lemire's method; those left keep their order. */
    EVAL_DRAW_UNIFORM,
    /* Winogrande, multiple choice: a float32 times the number left, cut; the last one left takes
       the place of the one drawn. */
    EVAL_DRAW_SCALED
};

/**
 * Draw n_drawn of n: indices in the order drawn. n_drawn <= n < 2^31.
 * out: [n_drawn], the caller frees it; NULL on failure.
 * Fails: STATUS_MEMORY.   Cost: O(n), EVAL_DRAW_UNIFORM O(n * n_drawn / 64).
 */
enum status eval_draw(size_t **out, size_t n, size_t n_drawn, enum eval_draw how,
                      struct status_why *why);

#endif
