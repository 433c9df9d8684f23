/** Two records of predictions, as struct kern_recorded has them, beside each other. */
#ifndef EVAL_METRICS_RUNS_RECORDS_H
#define EVAL_METRICS_RUNS_RECORDS_H

#include <stddef.h>

/**
 * KL(a || b) in nats of two records of n_vocab tokens, each divided by the sum of its
 * probabilities; exactly 0 of equal ones.
 */
double eval_records_apart(const void *a, const void *b, size_t n_vocab);

#endif
