#include "eval/metrics/curve.h"

#include <math.h>
#include <stdlib.h>

enum status eval_curve_make(struct eval_curve *out, const struct eval_table *table,
                            struct status_why *why)
{
    *out = (struct eval_curve){.n_positions = table->n_scored};
    out->nll = calloc(table->n_scored, sizeof *out->nll);
    out->nll_error = calloc(table->n_scored, sizeof *out->nll_error);
    if (!out->nll || !out->nll_error) {
        eval_curve_free(out);
        return status_fail(why, STATUS_MEMORY, "no memory for a curve of %zu positions",
                           table->n_scored);
    }
    /* Welford's mean and spread, all positions at once; nll_error holds the spread. */
    for (size_t w = 0; w < table->n_windows; w++) {
        if (!table->done[w])
            continue;
        double n = (double)++out->n_windows;
        const double *log_prob = eval_table_row(table, EVAL_LOG_PROB, w);
        for (size_t i = 0; i < table->n_scored; i++) {
            double distance = -log_prob[i] - out->nll[i];
            out->nll[i] += distance / n;
            out->nll_error[i] += distance * (-log_prob[i] - out->nll[i]);
        }
    }
    double n = (double)out->n_windows;
    for (size_t i = 0; i < table->n_scored; i++)
        out->nll_error[i] = n > 1 ? sqrt(out->nll_error[i] / n / (n - 1)) : 0;
    return STATUS_OK;
}

struct base_estimate eval_curve_bin(const struct eval_table *table, enum eval_column column,
                                    size_t from, size_t to)
{
    struct base_moments m = {0};
    for (size_t w = 0; w < table->n_windows; w++)
        for (size_t i = from; table->done[w] && i < to; i++)
            base_moments_add(&m, eval_table_row(table, column, w)[i]);
    double n = (double)m.n;
    return (struct base_estimate){base_moments_mean(&m),
                                  m.n > 1 ? sqrt(m.spread / n / (n - 1)) : 0};
}

void eval_curve_free(struct eval_curve *curve)
{
    free(curve->nll);
    free(curve->nll_error);
    *curve = (struct eval_curve){0};
}
