/** A head cut to the first rows, which all heads have; what it has beyond them follows apart. */
#ifndef EVAL_SCORER_CUT_HEAD_H
#define EVAL_SCORER_CUT_HEAD_H

#include "base/status.h"
#include "kernels/types.h"

/** What the pointers of a head that was cut lead to. */
struct eval_cut_head {
    struct kern_weight matrix, bias; /* of the first rows */
    struct kern_weight other_matrix, other_bias;
    struct kern_head beyond;
};

/**
 * Leave a head its first n rows; the others become its `beyond`. n 0, or as many as it has: it
 * stays as it is. cut: must not move while the head is used.
 * Fails: STATUS_UNSUPPORTED (rows that are stored together would be parted).
 */
enum status eval_cut_head(struct eval_cut_head *cut, struct kern_head *head, size_t n,
                          struct status_why *why);

#endif
