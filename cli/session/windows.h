/** Windows of a text, for the commands that evaluate them: from tokens to tables. */
#ifndef CLI_SESSION_WINDOWS_H
#define CLI_SESSION_WINDOWS_H

#include "eval/input/text.h"
#include "eval/units/windows.h"

/** Zero-initialise; release with cli_windows_close. */
struct cli_windows {
    struct eval_text text; /* empty where a base has the tokens */
    struct eval_stream stream;
    struct eval_plan plan;
    struct eval_table *tables; /* [units.n_tables], the base's first */
    struct eval_windows units;
};

/** Lay windows over w->stream; the plan's warning goes to standard error. As eval_plan_make. */
enum status cli_windows_lay(struct cli_windows *w, const struct eval_plan_options *plan,
                            struct status_why *why);
/**
 * Make the tables of the windows, one, and n_pairs of what is compared with it; w->units are then
 * ready to be evaluated.   Fails: STATUS_MEMORY.
 */
enum status cli_windows_make_tables(struct cli_windows *w, size_t n_pairs, struct status_why *why);
void cli_windows_close(struct cli_windows *w);

#endif
