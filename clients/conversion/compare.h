/** A tensor of the file against what it should hold, in pieces of rows, by several threads. */
#ifndef CONVERSION_COMPARE_H
#define CONVERSION_COMPARE_H

#include "clients/conversion/rules.h"
#include "clients/conversion/view.h"

struct conv_work {
    struct base_pool *pool;
    const atomic_bool *cancel;
    float *scratch; /* 2 * CONV_PIECE for each thread */
};
/** n_threads 0: as many as processors. Close it, also after a failure. Fails: STATUS_MEMORY. */
enum status conv_work_open(struct conv_work *work, unsigned n_threads, const atomic_bool *cancel,
                           struct status_why *why);
void conv_work_close(struct conv_work *work);

/** What is compared: both views have one shape. */
struct conv_pair {
    struct conv_view found, expected;
    struct conv_judge judge;
};

/** The pair of a tensor of the file and a view. */
struct conv_pair conv_pair_of(const struct gguf_file *file, const struct gguf_tensor *found,
                              const struct conv_view *expected);
/** A pair's tensor of the file, and another view. */
struct conv_pair conv_pair_with(const struct conv_pair *pair, const struct conv_view *expected);

enum { CONV_MAX_MATRICES = 1024 };
/** Matrices that have sums of their own: those of a stack, if they are not more than that; 1. */
size_t conv_n_matrices(const struct conv_view *view);

/**
 * Compare all rows. matrices: [conv_n_matrices] sums; the order of every sum is fixed.
 * Fails: STATUS_CANCELLED, STATUS_MEMORY.
 */
enum status conv_compare_rows(const struct conv_work *work, const struct conv_pair *pair,
                              struct conv_sums *matrices, struct status_why *why);
/** Those of all matrices as one. */
struct conv_sums conv_sums_of(const struct conv_sums *matrices, size_t n);
/** Whether every matrix is right. */
bool conv_all_right(const struct conv_pair *pair, const struct conv_sums *matrices, size_t n);

/** Whether a few rows of matrix first, or of all from first to the last, are right. */
bool conv_sample(const struct conv_work *work, const struct conv_pair *pair, size_t first,
                 size_t n_matrices);

#endif
