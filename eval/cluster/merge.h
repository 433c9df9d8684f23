/**
 * Journals of ranges of windows, put together into the journal that one run would have left, to
 * the byte. With it the command without the range gives every result, and evaluates nothing.
 */
#ifndef EVAL_CLUSTER_MERGE_H
#define EVAL_CLUSTER_MERGE_H

#include <stddef.h>

#include "base/status.h"

/**
 * Merge the parts, in any order, into a new file. n_windows: the first so many windows are wanted,
 * as of a run with --chunks; 0: all of the text, as without it. *n_merged: out, how many there are.
 * Fails: STATUS_USAGE (parts that are not of one evaluation: the first difference is named; windows
 * that are missing or there twice; `out` exists; a journal of something that has no ranges), as
 * eval_journal_look, STATUS_IO.
 */
enum status eval_merge(const char *const *parts, size_t n_parts, size_t n_windows, const char *out,
                       size_t *n_merged, struct status_why *why);

#endif
