/**
 * Batches that another process evaluates: what rank 0 and the others tell each other. A rank is a
 * worker of rank 0's run (eval/run/dispatch.h), whose batches go over a link. It asks by being
 * free, so a slow machine takes fewer.
 */
#ifndef EVAL_CLUSTER_REMOTE_H
#define EVAL_CLUSTER_REMOTE_H

#include "eval/cluster/team.h"
#include "eval/run/run.h"

struct eval_dispatch;
struct eval_worker;

/** START: which items there are, and whether rows are wanted. */
struct eval_remote_start {
    uint64_t n_finished, batch_tokens, n_items;
    uint64_t rank, n_shares; /* of the layers: a group of so many ranks; 1: each has all */
    int64_t sink;            /* enum eval_row_kind of the rows to be sent; -1: none */
    uint64_t one_machine;    /* all ranks are on one */
};

/** ROWS begin with this, then the rows. */
struct eval_remote_rows {
    uint64_t first, n_rows; /* of the plan */
};

/*
 * SCORES: struct eval_scorer_times, then row_scores, target_scores and pair_scores of the worker,
 * then the sink's state of each window, where the sink is the rank's own.
 */
enum { EVAL_REMOTE_PARTS = 5 };

/** Bytes of rows in a message, at most, or one row. */
enum { EVAL_REMOTE_ROW_BYTES = 4 << 20 };

/** The parts of SCORES. state: see eval_remote_n_state. Returns how many there are. */
size_t eval_remote_parts(const struct eval_worker *worker, const struct eval_scorer_times *times,
                         const double *state, struct eval_part parts[EVAL_REMOTE_PARTS]);
/** Numbers of a batch's state: of a sink whose state is all that it keeps. */
size_t eval_remote_n_state(const struct eval_worker *worker);
/** The window that an item is: of runs with a sink. */
size_t eval_remote_window(const struct eval_worker *worker, size_t item);

/* On rank 0. */

/** Tell a rank to begin. Fails: as eval_link_send. */
enum status eval_remote_start(struct eval_link *link, size_t rank, const struct eval_dispatch *d,
                              struct status_why *why);
/**
 * Tell the rank that begins the worker's batches of the one at work and of those ahead; nothing
 * without one, or for the second time.   Fails: as eval_remote_evaluate.
 */
enum status eval_remote_feed(struct eval_worker *worker, struct status_why *why);
/**
 * The rank of this link is gone: say what it was doing of the worker's batches. share: its layers.
 * Returns STATUS_DEVICE.
 */
enum status eval_remote_say_lost(const struct eval_worker *worker, const struct eval_link *link,
                                 size_t share, struct status_why *why);
/**
 * Wait until the rank of the worker's link has evaluated the batch, which is laid out; its scores
 * go into the worker's arrays, its rows to the sink in the worker's turn.
 * Fails: STATUS_DEVICE (the rank died; the sentence says what it was doing), STATUS_CANCELLED, what
 * the rank and the sink report.
 */
enum status eval_remote_evaluate(struct eval_worker *worker, struct eval_scorer_times *times,
                                 struct status_why *why);

/* On the others. */

/**
 * Evaluate what rank 0 sends, until it ends the run. models: as rank 0's, but for sinks that are
 * rank 0's alone. STATUS_OK also where rank 0 ended the run because something failed, or was told
 * what failed here. Fails: STATUS_DEVICE (rank 0 is gone).
 */
enum status eval_serve(struct eval_units *units, const struct eval_models *models,
                       struct eval_link *link, struct status_why *why);

#endif
