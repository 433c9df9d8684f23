/**
 * A worker of a run: it evaluates batches, one at a time, in a thread of its own. Workers are of
 * kinds, each a table of functions: eval/run/local.h has the one with a backend of this process.
 */
#ifndef EVAL_RUN_WORKER_H
#define EVAL_RUN_WORKER_H

#include "eval/run/dispatch.h"

/** A batch that a worker was given. */
struct eval_given {
    size_t first, end; /* its items */
    size_t n_tokens;
    double cost;
};

struct eval_worker {
    const struct eval_worker_kind *kind;
    struct eval_dispatch *dispatch;
    size_t i;  /* among those of its kind; of local ones, the backend */
    void *own; /* the kind's */
    pthread_t thread;

    /* Guarded by the dispatch's lock. */

    struct eval_given at;     /* the batch at work */
    double fraction;          /* of it that is done */
    struct eval_given *ahead; /* [n_ahead]: those that follow it */
    size_t n_ahead, depth;    /* at most `depth` batches in all */

    struct eval_batch batch;
    struct kern_row_score *row_scores; /* [n_heads, rows], and so the rest */
    struct kern_target_score *target_scores;
    struct kern_pair_score *pair_scores; /* NULL with one head */
    struct kern_top *tops;               /* [rows, KERN_TOP_MAX]; NULL: the units want none */
};

/** The functions of a kind of workers. */
struct eval_worker_kind {
    /**
     * Get ready for the run; the arrays are there. That may take long: the caller's flag ends it.
     * The workers are opened from the last to the first.   Fails: as the kind says.
     */
    enum status (*open)(struct eval_worker *w, struct status_why *why);
    /** All workers are open: from now on the run's flag (dispatch->stop) ends what takes long. */
    void (*begin)(struct eval_worker *w);
    /** Evaluate the batch, which is laid out; its scores go into the arrays. As eval_scorer_run. */
    enum status (*evaluate)(struct eval_worker *w, struct eval_scorer_times *times,
                            struct status_why *why);
    /** It may be called for one that is open in part only. */
    void (*close)(struct eval_worker *w);
    /** Bytes that the i-th of the kind takes beside its arrays. */
    double (*bytes)(const struct eval_units *units, const struct eval_models *models,
                    const struct eval_run_options *options, size_t i);
};

/** Bytes of a worker's arrays. */
double eval_worker_bytes(const struct eval_units *units, size_t n_heads);

/**
 * Allocate the arrays of the i-th worker of a kind, and open it. Close it in any case.
 * Fails: STATUS_MEMORY, as the kind's open.
 */
enum status eval_worker_open(struct eval_worker *w, const struct eval_worker_kind *kind,
                             struct eval_dispatch *d, size_t i, struct status_why *why);
/** A worker that is all zeros is allowed. */
void eval_worker_close(struct eval_worker *w);

/** Lay the items of its batch out in its arrays. */
void eval_worker_lay(struct eval_worker *w);

/** Evaluate batches until none is left, or a worker failed; a pthread's function. */
void *eval_worker_work(void *worker);

#endif
