/**
 * The runner: units of any kind through models on any number of devices, batch by batch.
 *
 * The order of a run: eval_run_resume reads the journal, eval_run_prepare chooses the batch,
 * eval_run_memory tells the bound, eval_run evaluates what is left.
 */
#ifndef EVAL_RUN_RUN_H
#define EVAL_RUN_RUN_H

#include "eval/run/journal.h"
#include "eval/run/memory.h"
#include "eval/run/unit.h"

struct eval_worker_kind;

/** Workers that a run has beside those of this process's backends: eval/run/worker.h. */
struct eval_crew {
    void *user;
    const struct eval_worker_kind *kind; /* of these workers */
    size_t n;
    const struct eval_worker_kind *own; /* of the backends' workers; NULL: eval_worker_local */
    size_t depth; /* batches that each worker is given at most, the one at work among them; 0: 1 */
    /** The run is over, whatever became of it; all workers are closed. */
    void (*end)(void *user, enum status status);
};

/** What evaluates; everything is borrowed. */
struct eval_models {
    const struct model *model;             /* the base, with candidates and no reference rows */
    const struct model *const *candidates; /* compared with the model, in the same pass */
    size_t n_candidates;
    /* Ids that the vocabularies of all of these begin with, and that are compared; 0: all ids are.
       Windows have no others. Reference rows of codes have these and no more. */
    size_t n_common;
    bool want_js;                       /* compute Jensen-Shannon divergences of what is compared */
    const struct eval_row_source *base; /* reference rows; the model is compared with them, too */
    const struct eval_row_sink *sink;   /* takes the model's rows */
    struct kern_backend *const *backends; /* they take batches in turn, each in its own thread */
    size_t n_backends;                    /* above 0 */
    const struct eval_stream_source *streams; /* what enters layers; NULL: the embedding */
    const struct eval_crew *crew;             /* further workers; NULL: there are none */
};

/** Workers that share the run. */
size_t eval_models_n_workers(const struct eval_models *models);

/** Bytes of a token in the residual streams of all models. */
size_t eval_models_row_bytes(const struct eval_models *models);

/** Heads that are scored side by side: the base, if it is no model, the model, its candidates. */
size_t eval_models_n_heads(const struct eval_models *models);

/**
 * Check that nothing wrote to their files, to those of the streams, or to that of the reference
 * rows, since they were opened.
 * Fails: STATUS_CHANGED, STATUS_IO.
 */
enum status eval_models_check_unchanged(const struct eval_models *models, struct status_why *why);

/** Where a run stands. */
struct eval_progress {
    size_t n_units_done, n_units;
    size_t n_tokens_done, n_tokens; /* of those that this run evaluates */
    double fraction;                /* of the arithmetic, 0 to 1 */
    double seconds;                 /* since the run began */
    double seconds_left;            /* at the rate so far; NaN while there is none */
    double seconds_to_look;         /* until the run may end; 0: it goes on to the last unit */
};

struct eval_run_options {
    size_t tile_tokens; /* tokens per tile of the forward pass; 0: the backend's choice */
    /* Both may be NULL. A unit is reported once, in order, when it is finished. With several
       backends they are called by several threads, but one at a time. */
    void (*unit_done)(void *user, size_t unit);
    void (*progress)(void *user, const struct eval_progress *progress);
    void *user;
    struct eval_journal *journal; /* the one that eval_run_resume has read; NULL: none */
};

/** What a run did, for the report. */
struct eval_run_stats {
    size_t n_batches, n_units, n_inputs; /* evaluated in this run */
    size_t n_resumed;                    /* units that the journal had */
    size_t max_batch_tokens;             /* of the largest batch that the run forms */
    double seconds_to_open; /* before the first batch: memory, weights on their way to a device */
    double seconds;         /* from there on */
    struct eval_scorer_times times; /* sums over the backends */
};

/**
 * Take the units that the journal has, from the first on. It ends at the first one whose entry is
 * not whole or which cannot be restored. journal: NULL is allowed. Fails: STATUS_IO, STATUS_MEMORY.
 */
enum status eval_run_resume(struct eval_units *units, struct eval_journal *journal,
                            struct status_why *why);

/**
 * Choose the batch and make the items of the units that are not finished.
 * batch_tokens: fill a batch with items up to so many tokens, at least one item; 0: see
 * eval_batch_choose.   Fails: as eval_batch_choose and the units' make_items.
 */
enum status eval_run_prepare(struct eval_units *units, const struct eval_models *models,
                             size_t batch_tokens, struct status_why *why);

/**
 * What the run will take at most. Call it when everything is made: what has been allocated and not
 * written to yet counts as still to come.
 */
struct eval_memory eval_run_memory(const struct eval_units *units, const struct eval_models *models,
                                   const struct eval_run_options *options);

/**
 * Evaluate the units that are not finished. Units that are finished already are reported first.
 * stats: filled also on failure; may be NULL.
 * Fails: STATUS_FORMAT (an id beyond the model's vocabulary), STATUS_USAGE (reference rows of
 *        another vocabulary), STATUS_CHANGED (a unit is committed only if no file changed before
 *        that), STATUS_MEMORY, STATUS_DEVICE, what base and sink report, STATUS_IO
 *        (the journal), STATUS_CANCELLED (see kern_set_cancel): units finished until then stay.
 * The crew is told of the end, whatever became of the run.
 * Several backends give the same bits, if each computes the same. Units are committed in order.
 * Source and sink of rows are called by one backend at a time (eval/run/dispatch.h). The first
 * failure ends the run; cancel flags are read after each tile of a forward pass and each slab of
 * rows. Scores that are not finite are no failure here: the figures name them.
 */
enum status eval_run(struct eval_units *units, const struct eval_models *models,
                     const struct eval_run_options *options, struct eval_run_stats *stats,
                     struct status_why *why);

#endif
