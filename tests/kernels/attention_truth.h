/** Attention in float64, one query at a time, and how far a backend's result may be from it. */
#ifndef TESTS_KERNELS_ATTENTION_TRUTH_H
#define TESTS_KERNELS_ATTENTION_TRUTH_H

#include "kernels/operations.h"
#include "tests/harness/rng.h"

enum { ATTENTION_TRUTH_MAX_KEYS = 400, ATTENTION_SHAPE_MAX_HEADS = 20 };

/** An operation but for its arrays and ranges. */
struct attention_shape {
    size_t n_heads, n_kv_heads, head_size, sliding_window;
    size_t value_size; /* 0: as head_size */
    size_t chunk;
    float soft_cap;
    bool sinks;
};

struct attention_sinks {
    struct kern_weight weight;
    float sinks[ATTENTION_SHAPE_MAX_HEADS];
};

/** A mixture of everything, heads and values of up to `most` elements. */
struct attention_shape attention_shape_random(struct rng *r, size_t most);

/** Those fields of an operation. sinks: out, what op points to; one of them is -infinity. */
struct kern_attention attention_shape_op(const struct attention_shape *shape, struct rng *r,
                                         struct attention_sinks *sinks);

/** How a backend computes. */
struct attention_rounding {
    double product;    /* error of a product of two numbers, relative to it */
    double unit;       /* of a float32 sum: 2^-24 where it is rounded to the nearest */
    size_t n_products; /* that are added for two numbers */
    size_t key_block;  /* keys after which sums are rescaled */
    double
        operand; /* error of a factor, relative to the largest of its block: 64 columns of a query
                    or key, a value, the terms of a block of keys times their largest values */
};

/** Roots of mean squares of errors, relative to that of the outputs. */
struct attention_error {
    double usual; /* of all */
    double worst; /* of the element of values with the largest */
};

/**
 * Fail unless every output of op's ranges is within the derived bound. op: in host memory, of up to
 * ATTENTION_TRUTH_MAX_KEYS keys.
 */
struct attention_error attention_truth_check(const struct kern_attention *op,
                                             const struct attention_rounding *rounding);

#endif
