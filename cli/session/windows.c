#include "cli/session/windows.h"

#include <stdlib.h>

#include "cli/session/setup.h"

enum status cli_windows_lay(struct cli_windows *w, const struct eval_plan_options *plan,
                            struct status_why *why)
{
    enum status status = eval_plan_make(&w->plan, plan, w->stream.n, why);
    if (!status)
        cli_print_remarks(w->plan.warning);
    return status;
}

enum status cli_windows_make_tables(struct cli_windows *w, size_t n_pairs, struct status_why *why)
{
    size_t n_windows = w->plan.n_windows, n_scored = w->plan.n_scored;
    w->tables = calloc(1 + n_pairs, sizeof *w->tables);
    if (!w->tables)
        return status_fail(why, STATUS_MEMORY, "no memory for %zu models", n_pairs);
    w->units = (struct eval_windows){
        .plan = &w->plan, .stream = &w->stream, .tables = w->tables, .n_tables = 1 + n_pairs};
    enum status status = eval_table_make(&w->tables[0], EVAL_N_COLUMNS, n_windows, n_scored, why);
    for (size_t i = 1; i <= n_pairs && !status; i++)
        status = eval_table_make(&w->tables[i], EVAL_N_PAIR_COLUMNS, n_windows, n_scored, why);
    if (!status)
        eval_windows_open(&w->units);
    return status;
}

void cli_windows_close(struct cli_windows *w)
{
    eval_windows_close(&w->units);
    for (size_t i = 0; w->tables && i < w->units.n_tables; i++)
        eval_table_free(&w->tables[i]);
    free(w->tables);
    eval_stream_free(&w->stream);
    eval_text_free(&w->text);
}
