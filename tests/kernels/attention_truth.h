/** Attention in float64, one query at a time, and how far a backend's result may be from it. */
#ifndef TESTS_KERNELS_ATTENTION_TRUTH_H
#define TESTS_KERNELS_ATTENTION_TRUTH_H

#include "kernels/backend.h"

enum { ATTENTION_TRUTH_MAX_KEYS = 400 };

/** How a backend computes. */
struct attention_rounding {
    double product;    /* error of a product of two numbers, relative to it */
    double unit;       /* of a float32 sum: 2^-24 where it is rounded to the nearest */
    size_t n_products; /* that are added for two numbers */
    size_t key_block;  /* keys after which sums are rescaled */
};

/**
 * Fail unless every output of op's ranges is within the derived bound. op: in host memory, of up to
 * ATTENTION_TRUTH_MAX_KEYS keys. Returns the root of the mean square of the errors, relative to
 * that of the outputs.
 */
double attention_truth_check(const struct kern_attention *op,
                             const struct attention_rounding *rounding);

#endif
