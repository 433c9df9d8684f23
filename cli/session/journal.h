/** Journals of evaluations whose windows do not depend on how many there are. */
#ifndef CLI_SESSION_JOURNAL_H
#define CLI_SESSION_JOURNAL_H

#include "base/status.h"

/**
 * Let a run of more windows (--chunks) go on from the journal of one of fewer: where the file is a
 * journal whose settings differ from these in the number of windows alone, which is no larger
 * there, write it anew, with the same entries. Any other file, and none, is left for
 * eval_journal_open. Fails: STATUS_IO, STATUS_MEMORY, as eval_journal_next.
 */
enum status cli_journal_extend(const char *path, const char *settings, struct status_why *why);

#endif
