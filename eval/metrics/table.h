/**
 * The table that every figure is computed from: doubles keyed (window, position). A run fills whole
 * windows, in any order, on any device; figures are pure functions of the finished ones in index
 * order. So batches, threads and interruptions cannot show in a figure.
 */
#ifndef EVAL_METRICS_TABLE_H
#define EVAL_METRICS_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "eval/input/window.h"

/** What is known of a scored token. Natural logarithms. */
enum eval_column {
    EVAL_LOG_PROB, /* of the target */
    EVAL_RANK,     /* 1 + number of tokens that are more likely; a whole number */
    EVAL_ENTROPY,  /* of the predicted distribution */
    EVAL_N_COLUMNS,

    /* A candidate beside a base: p is the base's distribution and q the candidate's. */
    EVAL_KL = EVAL_N_COLUMNS, /* KL(p || q) */
    EVAL_REVERSE_KL,          /* KL(q || p) */
    EVAL_JS,                  /* Jensen-Shannon; 0 where it was not asked for */
    EVAL_TV,                  /* total variation; the same */
    EVAL_SAME_TOP,            /* 1 where both have the same most likely token, else 0 */
    EVAL_COMMON_5,            /* how many of the 5 most likely tokens they share */
    EVAL_COMMON_10,           /* and of the 10 */
    EVAL_BASE_TOP,            /* ln of the highest probability of p */
    EVAL_N_PAIR_COLUMNS,

    /* The same where only the ids that both have are compared. */
    EVAL_BASE_BEYOND = EVAL_N_PAIR_COLUMNS, /* share of p on the others, before it was cut */
    EVAL_BEYOND,                            /* of q */
    EVAL_N_CUT_COLUMNS
};

/** Read through eval_table_row; release with eval_table_free. */
struct eval_table {
    const struct eval_plan *plan; /* of documents, borrowed: its windows differ; else NULL */
    size_t n_windows;
    size_t n_scored; /* positions of each window, counted from its first scored one */
    size_t n_rows;   /* positions of all windows */
    size_t n_columns;
    double *cells; /* [column][window][position], n_columns * n_rows */
    bool *done;    /* [window]: its cells are filled */
};

/**
 * An empty table. n_columns: EVAL_N_COLUMNS, or EVAL_N_PAIR_COLUMNS of a candidate, or
 * EVAL_N_CUT_COLUMNS of one that is compared on common ids.
 * Fails: STATUS_MEMORY (the sentence has the size).
 */
enum status eval_table_make(struct eval_table *out, size_t n_columns, size_t n_windows,
                            size_t n_scored, struct status_why *why);
/** An empty table for the windows of a plan, which the table may borrow. */
enum status eval_table_make_for(struct eval_table *out, size_t n_columns,
                                const struct eval_plan *plan, struct status_why *why);
/** A zero-initialised object is allowed. */
void eval_table_free(struct eval_table *table);

/** Bytes that a table takes. */
double eval_table_bytes(const struct eval_table *table);

/** How many positions of window w are scored: what eval_plan_n_scored says. */
size_t eval_table_n(const struct eval_table *table, size_t w);
/** The lot that scores of window w belong to: what eval_plan_lot says. */
size_t eval_table_lot(const struct eval_table *table, size_t w);
/**
 * What curves by position are drawn over: so many positions from the plan's first_scored on, and
 * which of them scored position i of window w is.
 */
size_t eval_table_n_points(const struct eval_table *table);
size_t eval_table_point(const struct eval_table *table, size_t w, size_t i);
/** The cells of a column in window w; entry i is the window's position eval_plan_position(plan, w,
 * i). */
double *eval_table_row(const struct eval_table *table, enum eval_column column, size_t w);

#endif
