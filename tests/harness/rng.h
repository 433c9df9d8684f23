/** A small seeded generator for tests: the same seed gives the same numbers on every machine. */
#ifndef TESTS_HARNESS_RNG_H
#define TESTS_HARNESS_RNG_H

#include <stddef.h>
#include <stdint.h>

/** State of one stream (SplitMix64). */
struct rng {
    uint64_t state;
};

/**
 * The seed of this run: the number in the environment variable ASSAY_TEST_SEED, else one from
 * the clock. Printed on the first call, so that a failure can be repeated.
 */
uint64_t rng_seed(void);

/** A stream; `stream` keeps the parts of a test apart, so that each can be repeated alone. */
struct rng rng_open(uint64_t seed, uint64_t stream);

/** 64 random bits. */
uint64_t rng_next(struct rng *r);
/** 0 .. limit - 1; limit > 0. */
size_t rng_below(struct rng *r, size_t limit);
/** Uniform in [low, high). */
float rng_float(struct rng *r, float low, float high);
/** Standard normal. */
float rng_normal(struct rng *r);
/** About that, between -3.5 and 3.5: for where tails do not matter, and much quicker. */
float rng_rough(struct rng *r);
/** Fill with random bytes. */
void rng_bytes(struct rng *r, void *data, size_t n_bytes);

#endif
