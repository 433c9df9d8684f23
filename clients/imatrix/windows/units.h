/**
 * The windows of a text or of documents, evaluated to collect the inputs of products: every
 * position of a window passes through all layers, whether it is scored or not.
 */
#ifndef IMATRIX_UNITS_H
#define IMATRIX_UNITS_H

#include "clients/imatrix/collect.h"
#include "eval/units.h"

/** What is scored of a window. */
enum imat_scored {
    IMAT_SCORED_PLAN, /* the plan's positions */
    IMAT_SCORED_NONE,
    IMAT_SCORED_ALL /* the plan's, and the others enter the head without a target */
};

/** When a run may end before all windows are evaluated. */
struct imat_stop {
    double change;           /* no larger one (imat_collector_change) is wanted; NaN: it may be */
    uint64_t rows;           /* so many of each matrix; 0: any number */
    double last_change;      /* the last one that was looked at; NaN: none was */
    uint64_t least_rows;     /* likewise */
    struct base_buffer half; /* sums of the first n_half windows, packed */
    size_t n_half;
};

/**
 * Windows after which a run may end: with `change` IMAT_STOP_EVERY, 2 IMAT_STOP_EVERY, 4
 * IMAT_STOP_EVERY, ..., each compared with the one before; else any multiple.
 */
enum { IMAT_STOP_EVERY = 16 };

/** llama-imatrix's -b and -ub. `batch` 0: no row is forgotten. */
struct imat_llama {
    size_t batch, ubatch;
};

/** Set the first part, then call imat_units_begin. Release with imat_units_free. */
struct imat_units {
    struct imat_collector *collector;
    enum imat_scored scored;
    bool masked; /* rows of scored positions count; else all. Then no other rows enter the head */
    const struct eval_documents *categories; /* rows of experts are told apart by them; or NULL */
    struct imat_llama llama; /* its rows count, of a text: all but those that it forgets */
    struct imat_stop stop;
    size_t n_packed; /* of the sums, that are held beside them at most: for a bound of memory */
    size_t least_positions; /* that sessions have room for: imat_least_positions */
    size_t n_restorable;    /* windows that a journal may bring back: their sums are there */

    /* The units' own. */

    struct eval_unit_kind kind; /* that of windows, some of it replaced */
    const struct eval_unit_kind *windows;
    size_t n_merged; /* windows that are in the sums */
};

/**
 * Positions with which indexers of a model, if it has any, have something to choose: from there on
 * their products are computed for windows of any length, and so all of their rows count.
 */
size_t imat_least_positions(const struct model *model);

/** Let windows, which are open, be such units. Everything is borrowed. */
void imat_units_begin(struct imat_units *u, struct eval_windows *windows);
void imat_units_free(struct imat_units *u);

/**
 * Windows of a text have all of their tokens evaluated, the last one, too. Once, after
 * eval_plan_make with the default protocol.
 */
void imat_units_widen(struct eval_plan *plan);

/* imatrix/windows/state.c: what a run that goes on needs beside its journal. */

/**
 * Write the sums and the windows that they are of into a file that appears whole. id: a text of 64
 * characters, of what they belong to.   Fails: STATUS_IO, STATUS_MEMORY.
 */
enum status imat_units_save(const struct imat_units *u, const char *path, const char *id,
                            struct status_why *why);
/**
 * Read them, after imat_units_begin: n_restorable and n_merged are set. A file that is not there
 * has no windows.   Fails: STATUS_FORMAT (damaged, or of something else), STATUS_IO,
 * STATUS_MEMORY; then there are no sums.
 */
enum status imat_units_load(struct imat_units *u, const char *path, const char *id,
                            struct status_why *why);

#endif
