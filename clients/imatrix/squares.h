/**
 * Sums of squares in whole numbers of IMAT_QUANTUM: exact, but for the rounding of each square, so
 * that no order of rows shows in them.
 */
#ifndef IMATRIX_SQUARES_H
#define IMATRIX_SQUARES_H

#include "base/pool.h"
#include "clients/imatrix/imatrix.h"

/**
 * Add x^2, rounded to the nearest number of quanta (of two, the even one). The definition: the sums
 * of a tile are the same. Returns whether x is finite and the sum stays below 2^63; else it is left
 * as it was.
 */
bool imat_squares_add(struct imat_sum *sum, float x);

/** The sums over the rows of a tile. Zero-initialise; release with imat_squares_free. */
struct imat_squares {
    uint64_t *high, *low; /* [n_columns]: two's complement, high * 2^-16 + low * IMAT_QUANTUM */
    size_t n_columns, capacity;
    struct base_pool *pool; /* borrowed; NULL: the calling thread alone */
};

/**
 * The sums of the squares of x[n_rows][n_columns], instead of what was there.
 * plain: out, whether they could not be had so: a square is 2^33 or more, or not finite, or there
 * are more than 16384 rows. Then imat_squares_add is to be called for each number.
 * Fails: STATUS_MEMORY.
 */
enum status imat_squares_make(struct imat_squares *s, const float *x, size_t n_rows,
                              size_t n_columns, bool *plain, struct status_why *why);
/** Add the tile's sums to sums[n_columns]. Returns the first column whose sum is 2^63 or more, or
 * n_columns. */
size_t imat_squares_give(const struct imat_squares *s, struct imat_sum *sums);
/** Whether two tiles have the same sums. */
bool imat_squares_equal(const struct imat_squares *a, const struct imat_squares *b);
void imat_squares_free(struct imat_squares *s);

#endif
