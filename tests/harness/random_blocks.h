/**
 * Random packed weights of any type with a chosen size: what synthetic models are made of.
 * Blocks are random bits; those whose decoded values are not finite, far from the wanted root
 * mean square or nearly all of one sign are thrown away. All rows have the same prefix, if any. No
 * knowledge of any format is needed.
 */
#ifndef TESTS_HARNESS_RANDOM_BLOCKS_H
#define TESTS_HARNESS_RANDOM_BLOCKS_H

#include <stdbool.h>

#include "gguf/type.h"
#include "tests/harness/rng.h"

/** A pool of blocks to draw from. */
struct random_blocks {
    const struct gguf_type_info *type;
    uint8_t *prefix; /* of the rows of a bundle */
    uint8_t *blocks; /* n_blocks of block_bytes: the blocks of these rows, woven */
    size_t n_blocks, block_bytes;
    uint8_t scale[4]; /* of all, where it lies apart */
    struct rng rng;
};

/**
 * Fill a pool with n_elems values (a multiple of 256) of about this root mean square; false if
 * memory is short.   Cost: up to 0.3 s for 65536.
 */
bool random_blocks_open(struct random_blocks *pool, enum gguf_type type, double rms,
                        size_t n_elems);
void random_blocks_close(struct random_blocks *pool);

/**
 * The one scale of a pool's values where scales lie apart, else none. It is the same for all pools
 * of a type that were opened with this root mean square, and lies in static memory until another
 * is asked for.
 */
struct gguf_scales random_blocks_scales(enum gguf_type type, double rms);

/** Bytes of a row of so many columns. */
size_t random_blocks_row_bytes(enum gguf_type type, size_t n_cols);

/**
 * Write rows drawn from the pool. n_rows: a multiple of the type's bundle_rows.   n_cols: of its
 * block_elems.
 */
void random_blocks_draw(struct random_blocks *pool, void *bytes, size_t n_rows, size_t n_cols);

#endif
