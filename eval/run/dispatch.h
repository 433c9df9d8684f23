/**
 * What the workers of a run share: which items are next, what is finished, which worker failed.
 *
 * Each backend has a worker (eval/run/worker.h), and a crew may bring more. Batches are dispatched
 * in the order of the items, to any worker that is free. Items are committed (their units appended
 * to the journal and reported) under a lock and in order. Source and sink of rows are called one at
 * a time and in order, too: a worker first waits until all items before its batch are committed. So
 * with rows the forward passes run side by side, the heads one after the other.
 */
#ifndef EVAL_RUN_DISPATCH_H
#define EVAL_RUN_DISPATCH_H

#include <pthread.h>
#include <stdatomic.h>

#include "eval/run/run.h"

struct eval_worker;

struct eval_dispatch {
    struct eval_units *units;
    const struct eval_models *models;
    const struct eval_run_options *options;
    struct eval_run_stats *stats;
    double started;
    const struct eval_worker *workers; /* [n_workers]: those of the backends, then of the crew */
    size_t n_workers;
    const atomic_bool *cancel; /* the caller's flag, of the backends; NULL: there is none */
    atomic_bool stop; /* what the backends are cancelled by, if there are several workers */

    /* Held shortly, but while units are committed; guards what follows, and the callbacks. */
    pthread_mutex_t lock;
    pthread_cond_t committed; /* next_to_commit or status has changed */
    bool *taken;              /* [n_items]: their scores are, perhaps not committed yet */
    size_t next_item;         /* items before it are in a worker's batch, or taken */
    size_t next_to_commit;    /* items before it are committed */
    size_t n_tokens_done;     /* of batches that are taken */
    double cost_done;         /* likewise */
    double worked;            /* of this cost, what was not idle */
    enum status status;       /* of the first failure; nothing is committed after it */
    struct status_why why;
    pthread_mutex_t source_lock; /* around the calls of the source */
};

/**
 * Zero-initialised but for its first four members, workers and n_workers. Close it in any case.
 * Fails: STATUS_MEMORY.
 */
enum status eval_dispatch_open(struct eval_dispatch *d, struct status_why *why);
void eval_dispatch_close(struct eval_dispatch *d);

/**
 * The end of the batch that begins with item `first`: as many as fit into units->batch_tokens.
 * size: out, what the batch takes.
 */
size_t eval_batch_end(const struct eval_units *units, size_t first, struct eval_size *size);

/** The cost of items [first, end). */
double eval_batch_cost(const struct eval_units *units, size_t first, size_t end);

/**
 * Give the worker its next batch, and as many ahead as it takes; false if there is none, or the run
 * ends.
 */
bool eval_dispatch_next(struct eval_dispatch *d, struct eval_worker *w);
/** Wait until all items before `item` are committed. Fails: STATUS_CANCELLED, if another failed. */
enum status eval_dispatch_await(struct eval_dispatch *d, size_t item, struct status_why *why);
/**
 * The scores of the worker's batch are taken: commit it, and what lay waiting for it.
 * Fails: what the journal and the sink report.
 */
enum status eval_dispatch_commit(struct eval_dispatch *d, struct eval_worker *w,
                                 const struct eval_scorer_times *times, struct status_why *why);
/** With the lock, or before there are workers: whether what is finished is enough. */
bool eval_dispatch_enough(struct eval_dispatch *d);
/**
 * With the lock, or before there are workers: append to the journal and report the units that are
 * finished and have not been reported yet. Fails: as eval_models_check_unchanged, as the journal.
 */
enum status eval_dispatch_report(struct eval_dispatch *d, struct status_why *why);
/**
 * The run ends with the first of the failures that come here, one that is no cancelling before
 * those that are; the other workers stop soon.
 */
void eval_dispatch_fail(struct eval_dispatch *d, enum status status, const struct status_why *why);
/** The worker's batch is that far; an eval_fraction_fn of the worker. */
void eval_dispatch_on_fraction(void *worker, double fraction);

#endif
