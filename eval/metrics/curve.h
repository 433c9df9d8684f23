/** How the loss depends on the length of the context: mean NLL by position in the window. */
#ifndef EVAL_METRICS_CURVE_H
#define EVAL_METRICS_CURVE_H

#include "eval/metrics/table.h"

/** Zero-initialise; release with eval_curve_free. */
struct eval_curve {
    size_t n_windows;   /* finished windows: how many scores each point is the mean of */
    size_t n_positions; /* points; point i is position first_scored + i of the plan */
    double *nll;        /* [n_positions] mean over the windows */
    double *nll_error;  /* [n_positions] its standard error; 0 for a single window */
};

/** Over the finished windows in index order. Fails: STATUS_MEMORY. Cost: O(scored tokens). */
enum status eval_curve_make(struct eval_curve *out, const struct eval_table *table,
                            struct status_why *why);
void eval_curve_free(struct eval_curve *curve);

#endif
