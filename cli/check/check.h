/** A run of assay check from end to end: what the parts of the command hand around. */
#ifndef CLI_CHECK_CHECK_H
#define CLI_CHECK_CHECK_H

#include "cli/options/common.h"
#include "cli/reference/base.h"
#include "cli/session/job.h"
#include "cli/session/setup.h"
#include "eval/metrics/check.h"

struct cli_check {
    const char *model, *recorded;
    struct cli_window_settings windows; /* n_ctx 0: the file's */
    double max_kld, max_beyond;         /* NaN: no limit */
    struct cli_model_settings load;
    const char *per_token_file, *state_file;
    struct cli_divergence_settings divergence;
    struct cli_output_settings output;
    struct cli_machine_settings machine;
};

struct cli_checking {
    const struct cli_check *settings;
    struct cli_job job;
    struct cli_model model;
    struct cli_base recorded;
    struct eval_stream stream;
    struct eval_plan plan;
    struct eval_check *check;
    struct eval_table tables[2]; /* exact, recorded */
    struct eval_check_result result;
    struct eval_run_options run_options;
    struct base_file *per_token_file; /* NULL: not wanted, or already written */
};

/** A limit that was set for a figure of the result. */
struct cli_check_limit {
    const char *option, *what;
    double limit, found; /* limit NaN: none was set */
};
enum { CLI_CHECK_LIMITS = 2 };
/** The limits of a finished run, in the order of the options. */
void cli_check_limits(const struct cli_checking *c, struct cli_check_limit out[CLI_CHECK_LIMITS]);

/* check_text.c */

/** Before the run: what is checked and the memory bound, on standard error. */
void cli_check_print_beginning(const struct cli_checking *c);
/** After the run: the figures. */
void cli_check_print_end(const struct cli_checking *c);

/* check_files.c */

/** The table of --per-token. Fails: STATUS_MEMORY. */
enum status cli_check_write_table(const struct cli_checking *c, struct base_file *file,
                                  struct status_why *why);
/** Open the journal of --state, if there is one, and take what it has. As eval_journal_open. */
enum status cli_checking_open_journal(struct cli_checking *c, struct status_why *why);

/** The result document; docs/json.md describes it. Fails: STATUS_MEMORY. */
enum status cli_check_write_json(const struct cli_checking *c, struct base_file *file,
                                 struct status_why *why);

#endif
