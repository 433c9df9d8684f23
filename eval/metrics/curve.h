/** How figures depend on the length of the context: means by position in the window. */
#ifndef EVAL_METRICS_CURVE_H
#define EVAL_METRICS_CURVE_H

#include "base/moments.h"
#include "eval/metrics/table.h"

/** Zero-initialise; release with eval_curve_free. */
struct eval_curve {
    size_t n_positions;        /* points; point i is position first_scored + i of the plan */
    size_t *n;                 /* [n_positions] finished windows that score it: 0 with documents */
    struct base_estimate *nll; /* [n_positions] mean over them; its error is 0 for a single one */
};

/** Over the finished windows in index order. Fails: STATUS_MEMORY. Cost: O(scored tokens). */
enum status eval_curve_make(struct eval_curve *out, const struct eval_table *table,
                            struct status_why *why);
void eval_curve_free(struct eval_curve *curve);

/**
 * The mean of a column over the finished windows and the scored positions from .. to - 1, and its
 * standard error, 0 for a single value; NaN where there is none. Cost: O(scored tokens).
 */
struct base_estimate eval_curve_bin(const struct eval_table *table, enum eval_column column,
                                    size_t from, size_t to);

#endif
