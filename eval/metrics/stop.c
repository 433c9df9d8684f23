#include "eval/metrics/stop.h"

#include <math.h>
#include <stdlib.h>

#include "base/array.h"

enum status eval_stop_make(struct eval_stop *out, double wanted, size_t n_tables,
                           struct status_why *why)
{
    bool paired = n_tables > 1;
    *out = (struct eval_stop){
        .wanted = wanted, .error = (double)NAN, .paired = paired, .n = paired ? n_tables - 1 : 1};
    return base_array_new(out->moments, out->n, "models", why);
}

void eval_stop_free(struct eval_stop *stop)
{
    free(stop->moments);
    *stop = (struct eval_stop){0};
}

bool eval_stop_add(struct eval_stop *stop, const struct eval_table *tables, size_t w)
{
    size_t n_scored = eval_table_n(tables, w), n_tokens = 0;
    bool enough = true;
    stop->n_windows++;
    stop->error = 0;
    for (size_t k = 0; k < stop->n; k++) {
        struct base_moments *m = &stop->moments[k];
        const double *log_p = eval_table_row(&tables[0], EVAL_LOG_PROB, w);
        const double *log_q =
            stop->paired ? eval_table_row(&tables[1 + k], EVAL_LOG_PROB, w) : NULL;
        base_moments_lot(m, eval_table_lot(tables, w));
        for (size_t i = 0; i < n_scored; i++)
            base_moments_add(m, log_q ? log_p[i] - log_q[i] : -log_p[i]);
        double error = sqrt(base_moments_lot_variance(m));
        enough &= m->lots.n + 1 >= BASE_LEAST_VALUES;
        n_tokens = m->n;
        stop->error = isnan(stop->error) || error <= stop->error ? stop->error : error;
    }
    return enough && stop->n_windows >= EVAL_STOP_LEAST_WINDOWS &&
           n_tokens >= EVAL_STOP_LEAST_TOKENS && stop->error <= stop->wanted;
}
