/** Bits for packed blocks of weights that decoders must meet. */
#ifndef TESTS_HARNESS_BLOCKS_H
#define TESTS_HARNESS_BLOCKS_H

#include "kernels/quant/integers.h"
#include "tests/harness/rng.h"

enum blocks_fill {
    BLOCKS_RANDOM,
    BLOCKS_ZEROS,
    BLOCKS_ONES,
    BLOCKS_SPECIAL, /* random, a third of the 16-bit numbers a half out of the ordinary */
    BLOCKS_FILLS
};

/** Fill n_bytes of blocks. */
void blocks_fill(struct rng *r, enum blocks_fill fill, uint8_t *blocks, size_t n_bytes);

/**
 * The n integers of a row in the plain way: block by block a neutral copy, `decode` (the type's, of
 * any ISA) and a conversion.
 */
void blocks_integers(const struct kern_integers *format, kern_decode_fn *decode, const void *blocks,
                     size_t n, int16_t *integers);

#endif
