/**
 * Between a journal and what a run fills: a record is what the tables say of a window, or the
 * log-probabilities of a choice task.
 */
#ifndef EVAL_RESUME_H
#define EVAL_RESUME_H

#include "eval/choice.h"
#include "eval/journal.h"
#include "eval/table.h"

/**
 * Fill the tables with the windows that the journal has, from window 0 on; they are done then.
 * tables: [n_tables] of equally many windows and positions.   Fails: STATUS_IO, STATUS_MEMORY.
 */
enum status eval_resume_windows(struct eval_journal *journal, const struct eval_table *tables,
                                size_t n_tables, struct status_why *why);

/**
 * Append window w, which is done in all tables and the first that the journal does not have.
 * Values: for each table, for each column, a number for each position. Fails: as
 * eval_journal_append.
 */
enum status eval_resume_keep(struct eval_journal *journal, const struct eval_table *tables,
                             size_t n_tables, size_t w, struct status_why *why);

/** The same for tasks. Values: the log_probs of each choice. */
enum status eval_resume_tasks(struct eval_journal *journal, struct eval_choices *choices,
                              struct status_why *why);
enum status eval_resume_keep_task(struct eval_journal *journal, const struct eval_choice_task *task,
                                  struct status_why *why);

/**
 * After a run: wait until the disk has the journal (NULL: none), whatever became of the run.
 * run_status: the run's. Returns it, or, where it is STATUS_OK, what eval_journal_sync does.
 */
enum status eval_resume_end(struct eval_journal *journal, enum status run_status,
                            struct status_why *why);

#endif
