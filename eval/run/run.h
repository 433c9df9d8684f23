/**
 * Running an evaluation: whole windows of a plan through the model, batch by batch, into the
 * table. Windows that the table already has are left alone, so a run can be taken up again.
 */
#ifndef EVAL_RUN_RUN_H
#define EVAL_RUN_RUN_H

#include "eval/input/window.h"
#include "eval/metrics/table.h"
#include "eval/run/journal.h"
#include "eval/run/memory.h"
#include "eval/scorer/scorer.h"

/** What is evaluated; everything is borrowed. */
struct eval_task {
    const struct model *model; /* the base, where there are candidates and no base rows */
    struct kern_backend *const *backends; /* they take batches in turn, each in its own thread */
    size_t n_backends;                    /* above 0 */
    const struct eval_plan *plan;
    const struct eval_stream *stream;
    const struct model *const *candidates; /* compared with the model, in the same pass */
    size_t n_candidates;
    bool want_js; /* fill EVAL_JS */
    /* Rows of the base; the model is then compared with them, as its candidates are. */
    const struct eval_row_source *base;
    const struct eval_row_sink *sink; /* takes the model's rows */
};

/** Tables of a run: the base's, if it is no model, the model's, and those of its candidates. */
size_t eval_task_n_tables(const struct eval_task *task);

/** Where a run stands. */
struct eval_progress {
    size_t n_windows_done, n_windows;
    double fraction;     /* of the arithmetic, 0 to 1 */
    double seconds;      /* since the run began */
    double seconds_left; /* at the rate so far; NaN while there is none */
};

struct eval_run_options {
    size_t batch_tokens; /* -b, above 0: rounded up to whole windows; see eval_batch_choose */
    size_t tile_tokens;  /* tokens per tile of the forward pass; 0: the backend's choice */
    /* Both may be NULL. A window is reported once, in index order, when its row is filled. With
       several backends they are called by several threads, but one at a time. */
    void (*window_done)(void *user, size_t w);
    void (*progress)(void *user, const struct eval_progress *progress);
    void *user;
    /* What the windows are appended to; the table has those that are in it, and no others: see
       eval_resume_windows. NULL: no journal. */
    struct eval_journal *journal;
};

/** What a run did, for the report. */
struct eval_run_stats {
    size_t n_batches, n_windows, n_inputs; /* evaluated in this run */
    size_t n_resumed;                      /* windows that the journal had */
    size_t max_batch_tokens;               /* of the largest batch that the run may form */
    double seconds_to_open; /* before the first batch: memory, weights on their way to a device */
    double seconds;         /* from there on */
    struct eval_scorer_times times; /* sums over the backends */
};

/**
 * Evaluate every window of the plan that is not done in the table. Windows that came out of a
 * journal are reported first.
 * table: [eval_task_n_tables()], made by the caller with the plan's n_windows and n_scored: the
 *        base's (that is the model's, or the base rows'), then those of all that are compared
 *        with it by eval_table_make_pair. A window is done in all of them or in none.
 * stats: filled also on failure; may be NULL.
 * Fails: STATUS_FORMAT (an id beyond the model's vocabulary), STATUS_USAGE (base rows of
 *        another vocabulary), STATUS_MEMORY, STATUS_DEVICE, what base and sink report,
 *        STATUS_IO (the journal),
 *        STATUS_CANCELLED (see kern_set_cancel): the windows finished until then stay.
 * Several backends: the same bits, if each of them computes the same. Windows are kept in index
 * order, so behind one that was not finished none is done. Source and sink of base rows are met by
 * one backend at a time (eval/run/shared.h). The first failure ends the run; the cancel flags of
 * the backends are looked at after each tile of a forward pass and each slab of rows.
 * Scores that are not finite are no failure here: the figures name them.
 */
enum status eval_run(const struct eval_task *task, const struct eval_run_options *options,
                     struct eval_table *table, struct eval_run_stats *stats,
                     struct status_why *why);

/** Tokens of the largest batch that eval_run will form: all its windows' inputs. */
size_t eval_run_batch_tokens(const struct eval_task *task, const struct eval_run_options *options);

/**
 * What a run will take at most, to be said before it. Call it when the table is made: what
 * has been allocated and not yet written to is counted as still to come.
 */
struct eval_memory eval_run_memory(const struct eval_task *task,
                                   const struct eval_run_options *options);

#endif
