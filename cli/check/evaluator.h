/** A run of assay check from end to end: what the parts of the command share. */
#ifndef CLI_CHECK_EVALUATOR_H
#define CLI_CHECK_EVALUATOR_H

#include "cli/evaluate.h"
#include "cli/reference/base.h"
#include "cli/session/windows.h"
#include "eval/metrics/check.h"

struct cli_check_settings {
    const char *model, *recorded;
    struct cli_window_settings windows; /* n_ctx 0: the file's */
    double max_kld, max_beyond;         /* NaN: no limit */
    const char *per_token_file;
    struct cli_divergence_settings divergence;
    struct cli_evaluate_settings evaluate;
};

struct cli_check {
    struct cli_evaluation e;
    const struct cli_check_settings *settings;
    struct cli_model model;
    struct cli_base recorded;
    struct cli_windows windows; /* tables: exact, recorded */
    struct eval_check *check;
    struct eval_check_result result;
};

/** A limit that was set for a figure of the result. */
struct cli_check_limit {
    const char *option, *what;
    double limit, found; /* limit NaN: none was set */
};
enum { CLI_CHECK_LIMITS = 2 };
/** The limits of a finished run, in the order of the options. */
void cli_check_limits(const struct cli_check *c, struct cli_check_limit out[CLI_CHECK_LIMITS]);

/* text.c: the lines that people read. */

void cli_check_print_beginning(const void *self);
void cli_check_print_end(void *self);

/* files.c: the table of --per-token, and the document, see struct cli_evaluator. */

enum status cli_check_write_table(const void *self, struct base_file *file, struct status_why *why);
void cli_check_describe(const void *self, struct base_json *json, bool for_journal);
void cli_check_add_result(const void *self, struct base_json *json);
void cli_check_add_files(const void *self, struct base_json *json, cJSON *run);

#endif
