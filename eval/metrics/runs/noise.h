/** How far runs of one program are apart: mean and quantiles over tokens, by a block bootstrap. */
#ifndef EVAL_METRICS_RUNS_NOISE_H
#define EVAL_METRICS_RUNS_NOISE_H

#include <stddef.h>

#include "base/status.h"

/** A figure and its 95 % interval; NaN where there is no telling. */
struct eval_interval {
    double value, low, high;
};

enum { EVAL_NOISE_LEVELS = 5 };
extern const double eval_noise_levels[EVAL_NOISE_LEVELS]; /* of the quantiles, ascending */

struct eval_noise {
    size_t n_tokens, n_blocks;
    struct eval_interval mean, quantiles[EVAL_NOISE_LEVELS];
    double max;
};

/**
 * Of x[n_windows][n_scored], a number for each token. A block is a window, or, where there are few,
 * a part of one, so that there are BASE_LEAST_VALUES of them at least, if there are so many tokens.
 * Blocks are drawn with replacement 1000 times; an interval goes from the 2.5 % to the 97.5 %
 * quantile of the figure of what was drawn. Fails: STATUS_MEMORY.
 * Cost: O(n log n + 1000 n) of n tokens.
 */
enum status eval_noise(struct eval_noise *out, const double *x, size_t n_windows, size_t n_scored,
                       struct status_why *why);

#endif
