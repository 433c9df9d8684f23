/** assay perplexity with --hellaswag, --winogrande or --multiple-choice: choice tasks. */
#ifndef CLI_CHOICE_CHOICE_H
#define CLI_CHOICE_CHOICE_H

#include "cli/perplexity/options.h"
#include "cli/session/job.h"
#include "cli/session/setup.h"
#include "eval/units/choice.h"

struct cli_tasks {
    const struct cli_perplexity *settings;
    struct cli_job job;
    enum eval_choice_kind kind;
    struct cli_model model;
    struct eval_text text;
    struct eval_dataset dataset;
    struct eval_choices choices;
    size_t batch_tokens;
    struct eval_choice_tally tally;  /* of the tasks that were reported */
    struct base_file *per_task_file; /* NULL: not wanted, or already written */
    struct eval_journal *journal;    /* NULL: none is kept */
};

/** Whether the settings ask for choice tasks. */
bool cli_tasks_wanted(const struct cli_perplexity *settings);

/** What the table of options cannot say. Fails: STATUS_USAGE. */
enum status cli_tasks_check(const struct cli_perplexity *settings, struct status_why *why);

/** Load everything, evaluate, print, write. Fails: as the layers below, STATUS_NONFINITE. */
enum status cli_tasks_run(const struct cli_perplexity *settings, struct status_why *why);

/** The name of a kind in results: "hellaswag", "winogrande", "multiple-choice". */
const char *cli_tasks_name(enum eval_choice_kind kind);

/** Whether the second of two choices wins a tie, as it does in llama-perplexity's Winogrande. */
bool cli_tasks_last_wins(const struct cli_tasks *t);

/* tasks_text.c: the lines that people and scripts read. */

void cli_tasks_report_beginning(const struct cli_tasks *t);
/** After task i, in order: adds it to the tally and prints its line. */
void cli_tasks_report_task(struct cli_tasks *t, size_t i);
void cli_tasks_report_end(struct cli_tasks *t);

/* tasks_files.c */

/** Open the journal of --state, if there is one. Fails: as eval_journal_open. */
enum status cli_tasks_open_journal(struct cli_tasks *t, struct status_why *why);

/** The table of --per-task: a line for each task that is done. */
void cli_tasks_write_table(const struct cli_tasks *t, struct base_file *file);
/** The result document; docs/json.md describes it. Fails: STATUS_MEMORY. */
enum status cli_tasks_write_json(const struct cli_tasks *t, struct base_file *file,
                                 struct status_why *why);

#endif
