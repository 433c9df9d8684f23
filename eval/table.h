/**
 * The table that every figure is computed from: doubles keyed (window, position).
 *
 * An evaluation fills whole windows, in any order, on any device; figures are pure functions
 * of the finished windows in index order. So what a batch, a thread or an interruption did
 * cannot show in a figure.
 */
#ifndef EVAL_TABLE_H
#define EVAL_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "gguf/status.h"

/** What is known of a scored token. Natural logarithms. */
enum eval_column {
    EVAL_LOG_PROB, /* of the target */
    EVAL_RANK,     /* 1 + number of tokens that are more likely; a whole number */
    EVAL_ENTROPY,  /* of the predicted distribution */
    EVAL_N_COLUMNS
};

/** Read through eval_table_row; release with eval_table_free. */
struct eval_table {
    size_t n_windows;
    size_t n_scored; /* positions of each window, counted from its first scored one */
    double *cells;   /* [column][window][position], EVAL_N_COLUMNS * n_windows * n_scored */
    bool *done;      /* [window]: its cells are filled */
};

/**
 * An empty table. Fails: STATUS_MEMORY (the sentence has the size).
 */
enum status eval_table_make(struct eval_table *out, size_t n_windows, size_t n_scored,
                            struct status_why *why);
/** A zero-initialised object is allowed. */
void eval_table_free(struct eval_table *table);

/** Bytes that a table of this size takes. */
double eval_table_bytes(size_t n_windows, size_t n_scored);

/** The n_scored cells of a column in window w; entry i is position first_scored + i. */
double *eval_table_row(const struct eval_table *table, enum eval_column column, size_t w);

#endif
