#include "eval/metrics/table.h"

#include <stdint.h>
#include <stdlib.h>

double eval_table_bytes(size_t n_columns, size_t n_windows, size_t n_scored)
{
    double cells = (double)n_windows * (double)n_scored * (double)n_columns;
    return cells * (double)sizeof(double) + (double)n_windows * (double)sizeof(bool);
}

enum status eval_table_make(struct eval_table *out, size_t n_columns, size_t n_windows,
                            size_t n_scored, struct status_why *why)
{
    *out =
        (struct eval_table){.n_columns = n_columns, .n_windows = n_windows, .n_scored = n_scored};
    size_t most = SIZE_MAX / sizeof(double) / n_columns;
    if (n_scored == 0 || n_windows <= most / n_scored) {
        out->cells = calloc(n_windows * n_scored * n_columns, sizeof(double));
        out->done = calloc(n_windows, sizeof(bool));
    }
    if (!out->cells || !out->done) {
        eval_table_free(out);
        return status_fail(why, STATUS_MEMORY,
                           "no memory for the scores of %zu windows of %zu tokens (%.3g bytes)",
                           n_windows, n_scored, eval_table_bytes(n_columns, n_windows, n_scored));
    }
    return STATUS_OK;
}

void eval_table_free(struct eval_table *table)
{
    free(table->cells);
    free(table->done);
    *table = (struct eval_table){0};
}

double *eval_table_row(const struct eval_table *table, enum eval_column column, size_t w)
{
    return table->cells + ((size_t)column * table->n_windows + w) * table->n_scored;
}
