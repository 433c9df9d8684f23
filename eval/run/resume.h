/**
 * Between a journal and what a run fills: a record is what the tables say of a window, or the
 * log-probabilities of a choice task or a request.
 */
#ifndef EVAL_RUN_RESUME_H
#define EVAL_RUN_RESUME_H

#include "eval/metrics/table.h"
#include "eval/run/journal.h"
#include "eval/scorer/base_rows.h"
#include "eval/units/choice.h"
#include "eval/units/request_scores.h"

/** What goes on: everything is borrowed. */
struct eval_resume {
    struct eval_journal *journal;
    const struct eval_table *tables; /* [n_tables] of equally many windows and positions */
    size_t n_tables;
    /* Where the run sends rows, or NULL. A record then also has what the sink keeps of the window;
       of a recording the sum of its rows, since the journal alone does not say that they are there.
     */
    const struct eval_row_sink *sink;
};

/**
 * Fill the tables with the windows that the journal has, from window 0 on; they are done then. It
 * ends before the first one that the sink does not have. Fails: STATUS_IO, STATUS_MEMORY.
 */
enum status eval_resume_windows(const struct eval_resume *resume, struct status_why *why);

/**
 * Append windows from `first` on, the first that the journal does not have; they are done in all
 * tables. Their rows are brought to the disk before.
 * Values: for each table, for each column, a number for each position; then the sink's. Fails: as
 * eval_journal_append, and what the sink reports.
 */
enum status eval_resume_keep(const struct eval_resume *resume, size_t first, size_t n_windows,
                             struct status_why *why);

/** The same for tasks. Values: the log_probs of each choice. */
enum status eval_resume_tasks(struct eval_journal *journal, struct eval_choices *choices,
                              struct status_why *why);
enum status eval_resume_keep_task(struct eval_journal *journal, const struct eval_choice_task *task,
                                  struct status_why *why);

/**
 * The same for requests, whose sequences are not grouped yet: those that the journal has need no
 * evaluation any more. Values: the log_probs, then 1 where the request is greedy, else 0.
 */
enum status eval_resume_requests(struct eval_journal *journal, struct eval_request_scores *scores,
                                 struct status_why *why);
/** Append the finished requests that the journal does not have, up to the first unfinished one. */
enum status eval_resume_keep_requests(struct eval_journal *journal,
                                      const struct eval_request_scores *scores,
                                      struct status_why *why);

/**
 * After a run: wait until the disk has the journal (NULL: none), whatever became of the run.
 * run_status: the run's. Returns it, or, where it is STATUS_OK, what eval_journal_sync does.
 */
enum status eval_resume_end(struct eval_journal *journal, enum status run_status,
                            struct status_why *why);

#endif
