/**
 * A worker of a run: one backend, a scorer on it, and the arrays of a batch. A worker of rank 0 may
 * stand for another rank: it has a link instead of a backend and a scorer.
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
    struct eval_dispatch *dispatch;
    struct kern_backend *backend; /* NULL: another rank evaluates */
    struct eval_link *link;       /* NULL: the backend does */
    struct eval_link *feed;       /* to the rank that begins its batches; NULL: it does itself */
    size_t n_fed;                 /* items before this one were told to that rank */
    const atomic_bool *cancel;    /* the caller's flag */
    struct eval_scorer *scorer;
    struct eval_row_source source; /* what the scorer sees of the models' */
    struct eval_row_sink sink;
    pthread_t thread;

    /* With variants: this worker's own candidate, in which tensors are swapped. */

    struct model *candidate;
    const struct eval_variant *variant; /* that it is; NULL: itself */
    struct eval_cache *caches[2];       /* of the model and of the candidate */

    /* Guarded by the dispatch's lock. */

    struct eval_given at;     /* the batch at work */
    double fraction;          /* of it that is done */
    struct eval_given *ahead; /* [n_ahead]: those that follow it */
    size_t n_ahead, depth;    /* at most `depth` batches in all */

    struct eval_batch batch;
    struct kern_row_score *row_scores; /* [n_heads, rows], and so the rest */
    struct kern_target_score *target_scores;
    struct kern_pair_score *pair_scores; /* NULL with one head */
};

/** Workers that stand for other ranks: for each, or for each group that divides the layers. */
static inline size_t eval_worker_n_others(const struct eval_models *models,
                                          const struct eval_team *team)
{
    size_t n_shares = models->share.n ? models->share.n : 1;
    return team ? (team->n_links + 1) / n_shares - 1 : 0;
}

/** Bytes of a worker's arrays. */
double eval_worker_bytes(const struct eval_units *units, size_t n_heads);

/** How the scorer of a worker is set up, without progress, source and sink. */
struct eval_scorer_options eval_worker_scorer(const struct eval_units *units,
                                              const struct eval_models *models,
                                              const struct eval_run_options *options);

/**
 * Allocate the arrays, open the scorer of backend i. That may take long: the caller's flag ends it.
 * Close it in any case. Fails: as eval_scorer_open.
 */
enum status eval_worker_open(struct eval_worker *w, struct eval_dispatch *d, size_t i,
                             struct status_why *why);
/** The same of a worker that stands for another rank, or for its group. Fails: STATUS_MEMORY. */
enum status eval_worker_open_remote(struct eval_worker *w, struct eval_dispatch *d,
                                    struct eval_link *link, struct status_why *why);
/** From now on, if there are several workers, this one is cancelled by the run's flag. */
void eval_worker_share_cancel(struct eval_worker *w);
void eval_worker_close(struct eval_worker *w);

/** Lay the items of its batch out in its arrays. */
void eval_worker_lay(struct eval_worker *w);
/** Evaluate what is laid out on its backend: the scores into its arrays. As eval_scorer_run. */
enum status eval_worker_compute(struct eval_worker *w, struct eval_scorer_times *times,
                                struct status_why *why);

/** Evaluate batches until there are none, or somebody failed; a pthread's function. */
void *eval_worker_work(void *worker);

#endif
