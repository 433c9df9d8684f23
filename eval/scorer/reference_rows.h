/**
 * Reference rows, and rows that are recorded. A source gives the rows of head 0, so that no base
 * model is evaluated; a sink takes those of the evaluated model.
 *
 * The rows of a plan are counted through its windows: plan row r is the r % n_scored-th scored
 * position of window r / n_scored. A range may run over the end of a window into the next.
 */
#ifndef EVAL_SCORER_REFERENCE_ROWS_H
#define EVAL_SCORER_REFERENCE_ROWS_H

#include "base/status.h"
#include "kernels/types.h"

struct kern_backend;

enum eval_row_kind {
    EVAL_ROWS_CODES, /* uint16 records of a base-logits file: struct kern_recorded */
    EVAL_ROWS_HIDDEN /* float32 hidden rows after the output norm, to be met by a head */
};

/** Where the base's rows come from. Callbacks run in the thread that evaluates. */
struct eval_row_source {
    enum eval_row_kind kind;
    size_t n_vocab;                 /* logits of a row */
    double cut;                     /* of codes: see struct kern_recorded; -INFINITY: none */
    const struct kern_weight *head; /* of hidden rows: [n_vocab, K] */
    const struct kern_weight *bias; /* of that head: 1 row of n_vocab; NULL: none */
    float soft_cap;                 /* of that head's logits; 0: none */
    size_t max_rows; /* rows of a call of `rows` that do best, of hidden ones at most; 0: any */
    double n_bytes;  /* held at most, for the bound; the codes of a call apart */
    void *user;

    /**
     * Rows that will be wanted soon: begin to read them, and return at once. Called for the
     * ranges of a batch before its forward pass. May be NULL.
     */
    void (*expect)(void *user, size_t first, size_t n_rows);
    /**
     * The n_rows rows from `first` on, one after the other, in host memory: uint16 records of
     * kern_record_codes(n_vocab) codes, or float rows of K. They stay valid until the next call.
     */
    enum status (*rows)(void *user, size_t first, size_t n_rows, const void **rows,
                        struct status_why *why);
    /** Refuse rows whose scores (head 0's) no model gives. May be NULL. */
    enum status (*check)(void *user, size_t first, size_t n_rows,
                         const struct kern_row_score *scores, struct status_why *why);
    /** Check that nothing wrote to the file of the rows since it was opened. May be NULL. */
    enum status (*unchanged)(void *user, struct status_why *why);
};

/**
 * Where the rows of the evaluated model go. `write` gets each row of the plan once, in the order
 * of the windows evaluated, all of a window before it is committed. The rows (laid out as a
 * source's) are the caller's again when it returns. backend: that evaluated them, idle meanwhile.
 */
struct eval_row_sink {
    enum eval_row_kind kind;
    void *user;
    enum status (*write)(void *user, struct kern_backend *backend, size_t first, size_t n_rows,
                         const void *rows, struct status_why *why);

    /* What a journal keeps of a window beside the tables (eval/units/windows.h). save and restore
       NULL: there can be none. */

    size_t n_state; /* numbers of a window */
    /* Nothing else is kept: another process may take rows of its own, and hand the state over. */
    bool is_all_state;
    /** Return when all rows written so far are on the disk. May be NULL. */
    enum status (*sync)(void *user, struct status_why *why);
    /** What there is to keep of window w, which has been written: state[n_state]. */
    enum status (*save)(void *user, size_t w, double *state, struct status_why *why);
    /** Take window w from an earlier run. restored: false where its rows are not there any more. */
    enum status (*restore)(void *user, size_t w, const double *state, bool *restored,
                           struct status_why *why);
};

#endif
