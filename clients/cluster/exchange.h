/** The messages of a run between rank 0 and a rank that evaluates, as both sides have them. */
#ifndef CLUSTER_EXCHANGE_H
#define CLUSTER_EXCHANGE_H

#include "clients/cluster/remote.h"
#include "eval/run.h"

/** START: which items there are, and whether rows are wanted. */
struct cluster_remote_start {
    uint64_t n_finished, batch_tokens, n_items;
    uint64_t rank, n_shares; /* of the layers: a group of so many ranks; 1: each has all */
    int64_t sink;            /* enum eval_row_kind of the rows to be sent; -1: none */
    uint64_t one_machine;    /* all ranks are on one */
};

/** ROWS begin with this, then the rows. */
struct cluster_remote_rows {
    uint64_t first, n_rows; /* of the plan */
};

/*
 * SCORES: struct eval_scorer_times, then row_scores, target_scores and pair_scores of the worker,
 * then the sink's state of each window, where the sink is the rank's own.
 */
enum { CLUSTER_REMOTE_PARTS = 5 };

/** Bytes of rows in a message, at most, or one row. */
enum { CLUSTER_REMOTE_ROW_BYTES = 4 << 20 };

/** The parts of SCORES. state: see cluster_remote_n_state. Returns how many there are. */
size_t cluster_remote_parts(const struct eval_worker *worker, const struct eval_scorer_times *times,
                            const double *state, struct cluster_part parts[CLUSTER_REMOTE_PARTS]);
/** Numbers of a batch's state: of a sink whose state is all that it keeps. */
size_t cluster_remote_n_state(const struct eval_worker *worker);
/** The window that an item is: of runs with a sink. */
size_t cluster_remote_window(const struct eval_worker *worker, size_t item);

/**
 * Rank 0, with the dispatch's lock: the rank's link broke; say what its group was doing.
 * Returns STATUS_DEVICE.
 */
enum status cluster_remote_say_lost(const struct cluster_rank_crew *ranks,
                                    const struct eval_dispatch *d, size_t rank,
                                    struct status_why *why);

#endif
