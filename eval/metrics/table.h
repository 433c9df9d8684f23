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

/** What is known of a scored token. Natural logarithms. */
enum eval_column {
    EVAL_LOG_PROB, /* of the target */
    EVAL_RANK,     /* 1 + number of tokens that are more likely; a whole number */
    EVAL_ENTROPY,  /* of the predicted distribution */
    EVAL_N_COLUMNS,

    /* Of a candidate beside a base, p being the base's distribution and q the candidate's. */
    EVAL_KL = EVAL_N_COLUMNS, /* KL(p || q) */
    EVAL_REVERSE_KL,          /* KL(q || p) */
    EVAL_JS,                  /* Jensen-Shannon; 0 where it was not asked for */
    EVAL_SAME_TOP,            /* 1 where both have the same most likely token, else 0 */
    EVAL_COMMON_5,            /* how many of the 5 most likely tokens they share */
    EVAL_COMMON_10,           /* and of the 10 */
    EVAL_BASE_TOP,            /* ln of the highest probability of p */
    EVAL_N_PAIR_COLUMNS
};

/** Read through eval_table_row; release with eval_table_free. */
struct eval_table {
    size_t n_windows;
    size_t n_scored; /* positions of each window, counted from its first scored one */
    size_t n_columns;
    double *cells; /* [column][window][position], n_columns * n_windows * n_scored */
    bool *done;    /* [window]: its cells are filled */
};

/**
 * An empty table. n_columns: EVAL_N_COLUMNS, or EVAL_N_PAIR_COLUMNS of a candidate.
 * Fails: STATUS_MEMORY (the sentence has the size).
 */
enum status eval_table_make(struct eval_table *out, size_t n_columns, size_t n_windows,
                            size_t n_scored, struct status_why *why);
/** A zero-initialised object is allowed. */
void eval_table_free(struct eval_table *table);

/** Bytes that a table of this size takes. */
double eval_table_bytes(size_t n_columns, size_t n_windows, size_t n_scored);

/** The n_scored cells of a column in window w; entry i is position first_scored + i. */
double *eval_table_row(const struct eval_table *table, enum eval_column column, size_t w);

#endif
