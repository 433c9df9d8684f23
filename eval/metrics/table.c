#include "eval/metrics/table.h"

#include <stdint.h>
#include <stdlib.h>

double eval_table_bytes(const struct eval_table *t)
{
    double cells = (double)t->n_rows * (double)t->n_columns;
    return cells * (double)sizeof(double) + (double)t->n_windows * (double)sizeof(bool);
}

static enum status make(struct eval_table *out, struct status_why *why)
{
    if (out->n_rows <= SIZE_MAX / sizeof(double) / out->n_columns) {
        out->cells = calloc(out->n_rows * out->n_columns, sizeof(double));
        out->done = calloc(out->n_windows, sizeof(bool));
    }
    if (out->cells && out->done)
        return STATUS_OK;
    struct eval_table failed = *out;
    eval_table_free(out);
    return status_fail(why, STATUS_MEMORY,
                       "no memory for the scores of %zu tokens in %zu windows (%.3g bytes)",
                       failed.n_rows, failed.n_windows, eval_table_bytes(&failed));
}

enum status eval_table_make(struct eval_table *out, size_t n_columns, size_t n_windows,
                            size_t n_scored, struct status_why *why)
{
    *out =
        (struct eval_table){.n_columns = n_columns, .n_windows = n_windows, .n_scored = n_scored};
    if (__builtin_mul_overflow(n_windows, n_scored, &out->n_rows))
        out->n_rows = SIZE_MAX;
    return make(out, why);
}

enum status eval_table_make_for(struct eval_table *out, size_t n_columns,
                                const struct eval_plan *plan, struct status_why *why)
{
    if (!plan->windows)
        return eval_table_make(out, n_columns, plan->n_windows, plan->n_scored, why);
    *out = (struct eval_table){.plan = plan,
                               .n_columns = n_columns,
                               .n_windows = plan->n_windows,
                               .n_rows = eval_plan_row(plan, plan->n_windows)};
    return make(out, why);
}

void eval_table_free(struct eval_table *table)
{
    free(table->cells);
    free(table->done);
    *table = (struct eval_table){0};
}

size_t eval_table_n(const struct eval_table *t, size_t w)
{
    return t->plan ? eval_plan_n_scored(t->plan, w) : t->n_scored;
}

size_t eval_table_lot(const struct eval_table *t, size_t w)
{
    return t->plan ? eval_plan_lot(t->plan, w) : w;
}

size_t eval_table_n_points(const struct eval_table *t)
{
    return t->plan ? t->plan->n_inputs : t->n_scored;
}

size_t eval_table_point(const struct eval_table *t, size_t w, size_t i)
{
    return t->plan ? eval_plan_position(t->plan, w, i) : i;
}

double *eval_table_row(const struct eval_table *t, enum eval_column column, size_t w)
{
    size_t before = t->plan ? eval_plan_row(t->plan, w) : w * t->n_scored;
    return t->cells + (size_t)column * t->n_rows + before;
}
