/** A run of assay perplexity from end to end: what the parts of the command hand around. */
#ifndef CLI_PERPLEXITY_EVALUATION_H
#define CLI_PERPLEXITY_EVALUATION_H

#include "cli/perplexity/options.h"
#include "cli/session/job.h"
#include "cli/session/setup.h"
#include "eval/metrics/curve.h"
#include "eval/metrics/perplexity.h"
#include "eval/reference/compact_writer.h"
#include "eval/reference/logits_writer.h"
#include "eval/run/run.h"

/** What a recording has become, once it is written. */
struct cli_recorded {
    char id[BASE_HEX]; /* "": nothing was recorded */
    uint64_t n_bytes;
    struct eval_compact_error error; /* of a compact base's rows */
};

struct cli_evaluation {
    const struct cli_perplexity *settings;
    struct cli_job job;
    struct cli_model model;
    struct eval_text text;
    struct eval_stream stream;
    struct eval_plan plan;
    struct eval_table table;
    struct eval_run_options run_options;
    struct eval_tally tally; /* of the windows that were reported */
    struct eval_perplexity_result result;
    struct eval_curve curve;              /* with --context-curve */
    struct base_file *per_token_file;     /* NULL: not wanted, or already written */
    struct eval_logits_writer *recording; /* the same */
    struct eval_compact_writer *compact;  /* the same; not both */
    struct eval_row_sink sink;            /* of either */
    struct cli_recorded recorded;
};

/**
 * Open the backend, the model and the text, tokenise and lay the windows.
 * Remarks and warnings go to standard error.   Fails: as the layers below.
 */
enum status cli_evaluation_open(struct cli_evaluation *e, const struct cli_perplexity *settings,
                                struct status_why *why);

/** What is evaluated, as eval_run takes it. */
struct eval_task cli_evaluation_task(const struct cli_evaluation *e);

/** Release everything; output files that were not written are abandoned. */
void cli_evaluation_close(struct cli_evaluation *e);

/**
 * The whole of it: open, run, report, close. Also behind assay record.
 * Fails: STATUS_NONFINITE (a perplexity that is not finite), STATUS_CANCELLED, what else fails.
 */
enum status cli_evaluation_run(const struct cli_perplexity *settings, struct status_why *why);

/* recording.c: --kl-divergence-base without --kl-divergence, and assay record; nothing happens
 * where no file is given. */

/** Whether a file is being recorded. */
bool cli_recording_runs(const struct cli_evaluation *e);
/** When the journal is open: begin the file, or go on with it. Fails: as the writers. */
enum status cli_recording_begin(struct cli_evaluation *e, struct status_why *why);
/**
 * When the journal has been read: a file that is there already must be the one it tells of, and
 * whole. Fails: STATUS_USAGE.
 */
enum status cli_recording_check_resumed(const struct cli_evaluation *e, struct status_why *why);
/** With the result: give the file its name if it is whole and finite. Fails: STATUS_IO. */
enum status cli_recording_finish(struct cli_evaluation *e, struct status_why *why);
/** Close what has not been finished, keeping it where a journal can go on with it. */
void cli_recording_close(struct cli_evaluation *e);

/* report_text.c: the lines that people and scripts read. */

/** Before the run: what is evaluated and the memory bound, on standard error. */
void cli_report_beginning(const struct cli_evaluation *e);
/** After a window: its part of the running output, on standard output. */
void cli_report_window(struct cli_evaluation *e, size_t w);
/** After the run: the figures, on standard output, and on standard error where that differs. */
void cli_report_end(struct cli_evaluation *e);

/* report_json.c */

/** Open the journal of --state, if there is one. Fails: as eval_journal_open. */
enum status cli_evaluation_open_journal(struct cli_evaluation *e, struct status_why *why);

/** Write the result document; docs/json.md describes it. Fails: STATUS_MEMORY. */
enum status cli_report_json(const struct cli_evaluation *e, struct base_file *file,
                            struct status_why *why);

#endif
