/** A run of assay score from end to end: what the parts of the command hand around. */
#ifndef CLI_SCORE_SCORE_H
#define CLI_SCORE_SCORE_H

#include "cli/session/job.h"
#include "cli/session/setup.h"
#include "eval/run/journal.h"
#include "eval/units/requests.h"

/** What stands in front of a context: an index into the words of the option. */
enum cli_score_bos { CLI_SCORE_BOS_AUTO, CLI_SCORE_BOS_ALWAYS, CLI_SCORE_BOS_NEVER };

struct cli_score {
    const char *model, *out_file, *state_file;
    int64_t n_ctx; /* 0: as the model was trained */
    int bos;
    bool parse_special;
    struct cli_model_settings load;
    struct cli_output_settings output;
    struct cli_machine_settings machine;
};

struct cli_scoring {
    const struct cli_score *settings;
    struct cli_job job;
    const char *request_file;
    struct cli_model model;
    struct eval_text text;
    struct eval_requests requests;
    struct eval_request_options options;
    struct eval_request_scores scores;
    struct eval_journal *journal; /* of --state, or NULL */
    size_t n_resumed;             /* requests that it had */
    size_t batch_tokens;
    size_t n_written;                    /* requests whose lines are written: all before it are */
    size_t n_nonfinite, first_nonfinite; /* of those; the line of the first */
    struct base_file *out;               /* NULL: not wanted, or already written */
};

/* score_output.c */

/** Write the lines of the requests that are finished, up to the first that is not. */
void cli_score_write_lines(struct cli_scoring *s);
/** Open the journal of --state, if there is one, and take what it has. As eval_journal_open. */
enum status cli_scoring_open_journal(struct cli_scoring *s, struct status_why *why);
/** Before and after the run: what is scored and what it took, on standard error. */
void cli_score_report_beginning(const struct cli_scoring *s);
void cli_score_report_end(const struct cli_scoring *s);
/** The result document; docs/json.md describes it. Fails: STATUS_MEMORY. */
enum status cli_score_write_json(const struct cli_scoring *s, struct base_file *file,
                                 struct status_why *why);

#endif
