/**
 * Journals of ranges of windows, put together into the journal that one run would have left, to
 * the byte. With it the command without the range gives every result, and evaluates nothing.
 */
#ifndef CLUSTER_MERGE_H
#define CLUSTER_MERGE_H

#include <stdatomic.h>
#include <stddef.h>

#include "base/file/atomic_file.h"

/** What is merged. */
struct cluster_merge {
    const char *const *parts; /* [n_parts]: paths, in any order */
    size_t n_parts;
    size_t n_windows;          /* the first so many are wanted, as of a run with --chunks; 0: all */
    const atomic_bool *cancel; /* ends it once it is set; may be NULL */
};

/**
 * Merge the parts into a file that the caller commits, or abandons after a failure.
 * *n_merged: out, how many windows there are.
 * Fails: STATUS_USAGE (parts that are not of one evaluation: the first difference is named; windows
 * that are missing or there twice; a journal of something that has no ranges), as
 * eval_journal_look, STATUS_CANCELLED.
 */
enum status cluster_merge(const struct cluster_merge *merge, struct base_file *out,
                          size_t *n_merged, struct status_why *why);

#endif
