/**
 * A run by several backends: what its workers share, and one worker.
 *
 * Each backend has a worker, a thread with a scorer and the arrays of a batch. Batches are dealt
 * out in the order of the windows, to whoever is free. Cells of the tables are disjoint by window,
 * so a worker fills them by itself; windows are kept (marked as done, appended to the journal,
 * reported) under a lock and in index order, whoever finished them first.
 *
 * Source and sink of base rows want their calls one at a time, and in the order of the windows:
 * a worker that comes to them waits until all windows before its batch are kept. So with rows the
 * forward passes run side by side, the heads one after the other.
 */
#ifndef EVAL_RUN_SHARED_H
#define EVAL_RUN_SHARED_H

#include <pthread.h>

#include "eval/run/run.h"

struct eval_run_worker;

struct eval_run_shared {
    const struct eval_task *task;
    const struct eval_run_options *options;
    struct eval_table *table; /* [n_heads] */
    size_t n_heads;           /* one for each table; arrays by head begin with the base */
    struct eval_run_stats *stats;
    size_t max_windows;   /* of a batch */
    size_t n_to_do;       /* windows of this run */
    size_t n_done_before; /* windows that the table had already */
    double started;
    const struct eval_run_worker *workers; /* [task->n_backends] */
    atomic_bool stop;                      /* what the backends are cancelled by, if several */

    /* Held shortly, but while windows are kept; guards what follows, and the callbacks. */
    pthread_mutex_t lock;
    pthread_cond_t kept; /* next_to_keep or status has changed */
    bool *filled;        /* [n_windows]: cells are in the tables, perhaps not kept yet */
    size_t next_to_deal; /* windows before it are done, or in somebody's batch */
    size_t next_to_keep; /* windows before it are done */
    size_t n_filled, n_kept;
    enum status status; /* of the first failure; nothing is kept after it */
    struct status_why why;
    pthread_mutex_t source_lock; /* around the calls of the source */
};

struct eval_run_worker {
    struct eval_run_shared *shared;
    struct kern_backend *backend;
    const atomic_bool *cancel; /* the caller's flag */
    struct eval_scorer *scorer;
    struct eval_row_source source; /* what the scorer sees of the task's */
    struct eval_row_sink sink;
    pthread_t thread;
    double share; /* of the batch at work, in windows; guarded by the shared lock */

    size_t n_batch;  /* windows of the batch at work */
    size_t *windows; /* [max_windows]: which ones the batch holds */
    int32_t *tokens; /* [max_windows * n_inputs] */
    struct model_segment *segments;
    uint32_t *rows; /* [max_windows * n_scored], and so the next two */
    size_t *places;
    struct kern_target *targets;
    struct kern_row_score *row_scores; /* [n_heads * max_windows * n_scored], and so the rest */
    struct kern_target_score *target_scores;
    struct kern_pair_score *pair_scores; /* NULL without candidates */
};

/* run_shared.c */

/**
 * Zero-initialised but for task, options, table, stats: fill in the rest. Close it in any case.
 * Fails: STATUS_MEMORY.
 */
enum status eval_run_shared_open(struct eval_run_shared *s, struct status_why *why);
void eval_run_shared_close(struct eval_run_shared *s);

/** Windows of the largest batch. Rows of a batch are uint32, so that is the end in any case. */
size_t eval_run_largest_batch(const struct eval_task *task, const struct eval_run_options *options);

/** The windows of the next batch into w->windows; false if there is none, or the run ends. */
bool eval_run_deal(struct eval_run_shared *s, struct eval_run_worker *w);
/** Wait until all windows before `window` are kept. Fails: STATUS_CANCELLED, if another failed. */
enum status eval_run_await(struct eval_run_shared *s, size_t window, struct status_why *why);
/**
 * The worker's batch is in the tables: keep it, and what lay waiting for it.
 * Fails: what the journal and the sink report.
 */
enum status eval_run_keep(struct eval_run_shared *s, struct eval_run_worker *w,
                          const struct eval_scorer_times *times, struct status_why *why);
/** The run ends with the first of the failures that come here; the other workers stop soon. */
void eval_run_fail(struct eval_run_shared *s, enum status status, const struct status_why *why);
/** The worker's batch is that far; an eval_fraction_fn of the worker. */
void eval_run_on_fraction(void *worker, double fraction);

/* run_worker.c */

/** Bytes of a worker's arrays. */
double eval_run_worker_bytes(const struct eval_task *task, size_t n_windows);

/**
 * Allocate the arrays, open the scorer, which may take long: the caller's flag ends that, too.
 * Close it in any case. Fails: as eval_scorer_open.
 */
enum status eval_run_worker_open(struct eval_run_worker *w, struct eval_run_shared *s, size_t i,
                                 const struct eval_scorer_options *scorer, struct status_why *why);
/**
 * From now on, if there are several backends, this one ends with the others: it is cancelled by
 * the run's flag, to which the caller's is carried by eval_run_on_fraction.
 */
void eval_run_worker_heed_others(struct eval_run_worker *w);
void eval_run_worker_close(struct eval_run_worker *w);

/** Evaluate batches until there are none, or somebody failed; a pthread's function. */
void *eval_run_worker_work(void *worker);

#endif
