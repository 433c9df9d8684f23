/**
 * Random packed weights of any type with a chosen size: what synthetic models are made of.
 * Blocks are random bits; those whose decoded values are not finite, far from the wanted root
 * mean square or nearly all of one sign are thrown away. No knowledge of any format is needed.
 */
#ifndef TESTS_HARNESS_RANDOM_BLOCKS_H
#define TESTS_HARNESS_RANDOM_BLOCKS_H

#include <stdbool.h>

#include "gguf/type.h"
#include "tests/harness/rng.h"

/** A pool of blocks to draw from. */
struct random_blocks {
    const struct gguf_type_info *type;
    uint8_t *blocks; /* n_blocks of type->block_bytes */
    size_t n_blocks;
    struct rng rng;
};

/**
 * Fill a pool with n_elems values (a multiple of 256) of about this root mean square; false if
 * memory is short.   Cost: up to 0.3 s for 65536.
 */
bool random_blocks_open(struct random_blocks *pool, enum gguf_type type, double rms,
                        size_t n_elems);
void random_blocks_close(struct random_blocks *pool);

/** Write n_bytes (whole blocks) drawn from the pool. */
void random_blocks_draw(struct random_blocks *pool, void *bytes, size_t n_bytes);

#endif
