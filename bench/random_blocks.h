/**
 * Random packed weights of any type with a chosen size: what synthetic models are made of.
 * Blocks are random bits; those whose decoded values are not finite or far from the wanted
 * root mean square are thrown away. No knowledge of any format is needed.
 */
#ifndef BENCH_RANDOM_BLOCKS_H
#define BENCH_RANDOM_BLOCKS_H

#include <stdbool.h>

#include "gguf/type.h"
#include "tests/harness/rng.h"

/** A pool of blocks to draw from. */
struct bench_blocks {
    const struct gguf_type_info *type;
    uint8_t *blocks; /* n_blocks of type->block_bytes */
    size_t n_blocks;
    struct rng rng;
};

/** Fill a pool with values of about this root mean square; false if memory is short. */
bool bench_blocks_open(struct bench_blocks *pool, enum gguf_type type, double rms);
void bench_blocks_close(struct bench_blocks *pool);

/** Write n_bytes (whole blocks) drawn from the pool. */
void bench_blocks_draw(struct bench_blocks *pool, void *bytes, size_t n_bytes);

#endif
