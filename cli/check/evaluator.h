/** A run of assay check from end to end: what the parts of the command share. */
#ifndef CLI_CHECK_EVALUATOR_H
#define CLI_CHECK_EVALUATOR_H

#include "cli/check/server/server.h"
#include "cli/evaluate.h"
#include "cli/input/windows.h"
#include "cli/reference/base.h"
#include "cli/trace/worst.h"
#include "eval/metrics/check.h"

struct cli_check_settings {
    const char *model, *recorded;
    struct cli_server_settings server;  /* instead of what is recorded */
    struct cli_window_settings windows; /* n_ctx -1: the file's */
    double max_kld, max_beyond;         /* NaN: no limit */
    const char *per_token_file;
    struct cli_divergence_settings divergence;
    int64_t n_trace; /* --trace-worst */
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
    struct cli_worst *traces; /* [result.kld.n_worst], with --trace-worst */
};

/** A limit that was set for a figure of the result. */
struct cli_check_limit {
    const char *option, *what;
    double limit, found; /* limit NaN: none was set */
};
enum { CLI_CHECK_LIMITS = 2 };
/** The limits of a finished run, in the order of the options. */
void cli_check_limits(const struct cli_check *c, struct cli_check_limit out[CLI_CHECK_LIMITS]);

extern const struct cli_lines cli_check_lines;     /* text.c */
extern const struct cli_members cli_check_members; /* files.c */
/** The table of --per-token. */
enum status cli_check_write_table(const void *self, struct base_file *file, struct status_why *why);

#endif
