/**
 * Token sequences of any length, the ends of which are scored: as many per batch as fit, and
 * beginnings that several have in common evaluated once.
 *
 * Sequences lie in groups. The tokens that a group has in common are a segment of the batch, the
 * parent of those with the rest. No score depends on the grouping, the batch or the order: keys
 * are summed by their position in the whole sequence (kernels/backend.h).
 */
#ifndef EVAL_UNITS_SEQUENCES_H
#define EVAL_UNITS_SEQUENCES_H

#include "eval/run/run.h"

struct eval_sequence {
    const int32_t *ids;  /* [n_tokens], borrowed */
    size_t n_tokens;     /* at least 2; the last is a target only */
    size_t first_scored; /* tokens from here on are scored; at least 1, below n_tokens */
    size_t owner;        /* a number of the caller's */
    double *log_probs;   /* out, the caller's: [n_tokens - first_scored] */
    bool greedy;         /* out: each scored token is the most likely one at its place */
};

/** Sequences [first, first + n), which begin with the same n_common tokens. */
struct eval_sequence_group {
    size_t first, n;
    size_t n_common; /* below the n_tokens of each; 0 where n is 1 */
};

/** The caller fills `items`, and the groups either by itself or with eval_sequences_group. */
struct eval_sequences {
    struct eval_sequence *items;
    size_t n;
    struct eval_sequence_group *groups; /* [n_groups], in the order of evaluation; free() */
    size_t n_groups;
};

/**
 * Sort the sequences and divide them into groups so that the fewest tokens are evaluated, groups
 * in the order of their least `owner`. A group has at most max_tokens tokens to evaluate, unless
 * it is of one sequence.
 * Fails: STATUS_MEMORY.   Cost: O(n log n) comparisons of sequences, O(n * 1024) steps at worst.
 */
enum status eval_sequences_group(struct eval_sequences *sequences, size_t max_tokens,
                                 struct status_why *why);

struct eval_sequences_run {
    const struct model *model;
    struct kern_backend *backend;
    size_t batch_tokens; /* fill a batch with groups up to so many tokens; at least one group */
    /* Both may be NULL. A group is reported once, in order, when it is scored; what is no
       STATUS_OK ends the run. */
    enum status (*group_done)(void *user, size_t g, struct status_why *why);
    void (*progress)(void *user, const struct eval_progress *progress);
    void *user;
};

/**
 * What eval_sequences_run will take at most, to be said before it; the sequences' log_probs count
 * as still to come.
 */
struct eval_memory eval_sequences_memory(struct eval_sequences *sequences,
                                         const struct eval_sequences_run *options);

/**
 * Evaluate all groups. stats: filled also on failure; n_windows counts sequences.
 * Fails: STATUS_FORMAT (an id beyond the model's vocabulary), as eval_scorer_run and group_done;
 *        the groups reported until then stay.
 */
enum status eval_sequences_run(struct eval_sequences *sequences,
                               const struct eval_sequences_run *options,
                               struct eval_run_stats *stats, struct status_why *why);

#endif
