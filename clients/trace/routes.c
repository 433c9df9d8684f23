#include "clients/trace/routes.h"

#include <math.h>
#include <stdlib.h>

/** Errors to expect of a router's logit that make a tie. */
enum { TIE_ERRORS = 8 };

/**
 * Whether two experts are nearly tied in a row: rounding has changed the choice there, or their
 * logits are closer than rounding can tell. Where a bias or groups choose, too, the logits alone
 * do not say it, and every choice is excused.
 */
static bool is_tie(const struct trace *trace, const struct trace_tensor *chosen, size_t row,
                   size_t a, size_t b)
{
    const struct trace_tensor *router = trace_find(trace, MODEL_AT_ROUTER, chosen->layer);
    if (!router || trace->biased_choice || chosen->squares[row] > 0)
        return true;
    if (a >= router->size || b >= router->size)
        return false;
    const float *logits = router->values + row * router->size;
    double gap = fabs((double)logits[a] - (double)logits[b]);
    return gap <= TIE_ERRORS * trace_tensor_error(trace, router, row, 0);
}

/** Whether an expert is in none of the slots of a row. */
static bool is_new(const struct trace_tensor *t, size_t row, double expert)
{
    for (size_t i = 0; i < t->size; i++)
        if ((double)t->values[row * t->size + i] == expert)
            return false;
    return true;
}

/** The row is another one from here on; where no pass has seen that, so are those after it. */
static void diverge(struct trace_routes *routes, const struct trace_tensor *t, size_t row)
{
    size_t end = t->squares[row] > 0 ? row + 1 : t->n_rows;
    for (; row < end; row++) {
        routes->n_diverged += !routes->diverged[row];
        routes->diverged[row] = true;
    }
}

static enum status begin_layer(struct trace_routes *routes, const struct trace_tensor *t,
                               struct status_why *why)
{
    free(routes->other);
    routes->other = calloc(t->n_rows * t->size, sizeof *routes->other);
    if (!routes->diverged)
        routes->diverged = calloc(t->n_rows, sizeof *routes->diverged);
    routes->n_rows = t->n_rows;
    routes->layer = t->layer;
    if (t->mean_squares > 0 && t->layer < routes->first_tied)
        routes->first_tied = t->layer;
    return routes->other && routes->diverged
               ? STATUS_OK
               : status_fail(why, STATUS_MEMORY, "no memory for the experts of %zu rows",
                             t->n_rows);
}

enum status trace_routes_compare(struct trace_routes *routes, struct trace_distance *d,
                                 const struct trace *trace, const struct trace_file *file,
                                 struct status_why *why)
{
    const struct trace_tensor *t = d->tensor;
    enum status status = begin_layer(routes, t, why);
    d->first_row = t->n_rows;
    for (size_t i = 0; !status && i < d->record->n_values; i++, d->n_values++) {
        size_t at = (t->n_rows - d->n_rows) * t->size + (size_t)trace_record_index(d->record, i);
        size_t row = at / t->size;
        double other = trace_record_value(file, d->record, i), own = (double)t->values[at];
        if (other == own)
            continue;
        routes->other[at] = true;
        d->n_other_experts++;
        size_t expert = other >= 0 && other < 0x1p31 ? (size_t)other : SIZE_MAX;
        if (routes->diverged[row] || is_tie(trace, t, row, (size_t)own, expert)) {
            if (t->layer < routes->first_tied)
                routes->first_tied = t->layer;
            if (is_new(t, row, other))
                diverge(routes, t, row);
            continue;
        }
        if (!d->n_wrong_experts++)
            d->first_row = row;
        d->last_row = row;
    }
    d->departs = d->n_wrong_experts > 0;
    return status;
}

bool trace_routes_excuse(const struct trace_routes *routes, const struct trace_tensor *t, size_t at)
{
    if (!routes->other)
        return false;
    size_t row = routes->n_rows - t->n_rows + at / (t->n_heads * t->size);
    if (routes->diverged[row])
        return true;
    if (t->layer != routes->layer)
        return false;
    if (t->place == MODEL_AT_SHARES)
        return routes->other[at];
    return t->place >= MODEL_AT_EXPERT_GATE && t->place <= MODEL_AT_EXPERT_OUT &&
           routes->other[at / t->size];
}

void trace_routes_free(struct trace_routes *routes)
{
    free(routes->other);
    free(routes->diverged);
    routes->other = routes->diverged = NULL;
}
