/** --state FILE: a journal, so that a run that was killed goes on where it stopped. */
#ifndef CLI_SESSION_STATE_H
#define CLI_SESSION_STATE_H

#include "base/json/build.h"
#include "eval/run/run.h"

/**
 * Begin the document of what a journal belongs to: this version of the program, the evaluator.
 * The caller adds everything that determines the numbers.
 */
void cli_state_begin(struct base_json *json, const char *evaluator);

/**
 * Open the journal of that document and release the document.
 * *out: NULL on failure and where path is NULL, which is no failure.
 * Fails: as eval_journal_open; STATUS_USAGE ("-").
 */
enum status cli_state_open(struct eval_journal **out, const char *path, struct base_json *json,
                           struct status_why *why);

/**
 * As eval_run_resume; says on standard error what the journal had. A journal of NULL is allowed.
 */
enum status cli_state_resume(struct eval_journal *journal, struct eval_units *units,
                             struct status_why *why);

/** STATUS_CANCELLED, with the sentence of a run that ends early; path: of the journal, or NULL. */
enum status cli_state_interrupted(const char *path, struct status_why *why);

#endif
