#include "eval/metrics/curve.h"

#include <math.h>
#include <stdlib.h>

#include "base/array.h"

static struct base_estimate estimate_of(double mean, const struct base_moments *m)
{
    double n = (double)m->n;
    return (struct base_estimate){mean, m->n > 1 ? sqrt(m->spread / n / (n - 1)) : 0,
                                  sqrt(base_moments_lot_variance(m))};
}

enum status eval_curve_make(struct eval_curve *out, const struct eval_table *table,
                            struct status_why *why)
{
    size_t n_points = eval_table_n_points(table);
    *out = (struct eval_curve){.n_positions = n_points};
    struct base_moments *points = NULL;
    if (base_array_new(out->n, n_points, "positions", why) ||
        base_array_new(out->nll, n_points, "positions", why) ||
        base_array_new(points, n_points, "positions", why)) {
        eval_curve_free(out);
        return STATUS_MEMORY;
    }
    for (size_t w = 0; w < table->n_windows; w++) {
        const double *log_prob = eval_table_row(table, EVAL_LOG_PROB, w);
        size_t lot = eval_table_lot(table, w);
        for (size_t i = 0; table->done[w] && i < eval_table_n(table, w); i++) {
            struct base_moments *point = &points[eval_table_point(table, w, i)];
            base_moments_lot(point, lot);
            base_moments_add(point, -log_prob[i]);
        }
    }
    for (size_t i = 0; i < n_points; i++) {
        out->n[i] = points[i].n;
        out->nll[i] = estimate_of(points[i].mean, &points[i]);
    }
    free(points);
    return STATUS_OK;
}

struct base_estimate eval_curve_bin(const struct eval_table *table, enum eval_column column,
                                    size_t from, size_t to)
{
    struct base_moments m = {0};
    for (size_t w = 0; w < table->n_windows; w++) {
        base_moments_lot(&m, eval_table_lot(table, w));
        for (size_t i = 0; table->done[w] && i < eval_table_n(table, w); i++) {
            size_t point = eval_table_point(table, w, i);
            if (from <= point && point < to)
                base_moments_add(&m, eval_table_row(table, column, w)[i]);
        }
    }
    return m.n ? estimate_of(base_moments_mean(&m), &m)
               : (struct base_estimate){(double)NAN, (double)NAN, (double)NAN};
}

void eval_curve_free(struct eval_curve *curve)
{
    free(curve->n);
    free(curve->nll);
    *curve = (struct eval_curve){0};
}
