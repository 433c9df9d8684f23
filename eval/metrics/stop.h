/**
 * When a run over windows has seen enough: as soon as a standard error is small enough. It is asked
 * after each window, in their order, so that the answer depends on nothing else.
 */
#ifndef EVAL_METRICS_STOP_H
#define EVAL_METRICS_STOP_H

#include "base/moments.h"
#include "eval/metrics/table.h"

/**
 * No fewer windows and tokens are enough, nor fewer than BASE_LEAST_VALUES documents where errors
 * are of these, whatever their spread.
 */
enum { EVAL_STOP_LEAST_WINDOWS = 16, EVAL_STOP_LEAST_TOKENS = 100 };

/** Release with eval_stop_free. */
struct eval_stop {
    double wanted; /* standard error, of lots (base/moments.h), nats; NaN: never stop */
    double error;  /* the largest one so far; NaN before the first window */
    size_t n_windows;
    bool paired; /* errors are of differences from the base */
    size_t n;
    struct base_moments *moments; /* [n] */
};

/**
 * For n_tables tables: of one the standard error of the mean NLL; of several, the base's first, the
 * paired one of ln(PPL(Q) / PPL(base)) of each of the others.   Fails: STATUS_MEMORY.
 */
enum status eval_stop_make(struct eval_stop *out, double wanted, size_t n_tables,
                           struct status_why *why);
/** A zero-initialised object is allowed. */
void eval_stop_free(struct eval_stop *stop);

/** Add window w of the tables, which is done. Whether the windows so far are enough. */
bool eval_stop_add(struct eval_stop *stop, const struct eval_table *tables, size_t w);

#endif
