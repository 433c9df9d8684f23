/** What every command that evaluates has: what computes, the document of --json, how far it is. */
#ifndef CLI_SESSION_JOB_H
#define CLI_SESSION_JOB_H

#include <time.h>

#include "base/file/atomic_file.h"
#include "cli/options/common.h"
#include "cli/session/progress.h"
#include "cli/session/setup.h"
#include "eval/run/memory.h"
#include "eval/run/run.h"

struct cli_job {
    const struct cli_machine_settings *machine;
    const struct cli_output_settings *output;
    struct cli_backends backends;
    struct kern_backend *backend; /* the first of them */
    struct eval_memory memory;    /* the bound that was told beforehand; total NaN: none was */
    struct base_file *json_file;  /* NULL: not wanted, or already written */
    struct cli_progress progress;
    struct eval_run_stats stats;
    time_t started;
    double clock_started, seconds_to_load; /* everything before the first batch */
};

/** Begin to count the time, open the backends. Both settings are borrowed. Fails: as they do. */
enum status cli_job_open(struct cli_job *job, const struct cli_machine_settings *machine,
                         const struct cli_output_settings *output, struct status_why *why);

/** Refuse several devices, for what only one can evaluate: `what`. Fails: STATUS_UNSUPPORTED. */
enum status cli_job_check_one_device(const struct cli_job *job, const char *what,
                                     struct status_why *why);

/**
 * For a run over sequences: the tokens of a batch, as for as many windows of the longest one's
 * length where -b says nothing; then 0 where that is 0.   Fails: as eval_batch_choose.
 */
enum status cli_job_choose_batch(const struct cli_job *job, const struct model *model,
                                 size_t longest, size_t n_sequences, size_t *batch_tokens,
                                 struct status_why *why);

/** For a run over windows: choose the batch where it is not given, foretell the memory. */
enum status cli_job_prepare(struct cli_job *job, const struct eval_task *task,
                            struct eval_run_options *options, struct status_why *why);

/** All is read and laid out: the time until here was that of loading. */
void cli_job_loaded(struct cli_job *job);

/** The document of --json, where one is wanted. Fails: as cli_output_create. */
enum status cli_job_create_document(struct cli_job *job, struct status_why *why);

/** From now on the first Ctrl-C ends the evaluation in an orderly manner: cli/session/interrupt.h.
 */
void cli_job_catch_interrupts(struct cli_job *job);

/**
 * The evaluation begins: its progress is shown, unless with --quiet, and before that a line, if
 * weights must be brought to a device. anything_left: whether there is something to evaluate.
 */
void cli_job_begin(struct cli_job *job, bool anything_left);

/** After the run: how many tokens in how much time, on standard error. */
void cli_job_print_speed(const struct cli_job *job);

/** Release it, last of all: models live on the backend. A document not written is abandoned. */
void cli_job_close(struct cli_job *job);

#endif
