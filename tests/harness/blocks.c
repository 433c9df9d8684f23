#include "tests/harness/blocks.h"

#include <string.h>

#include "tests/harness/require.h"

void blocks_fill(struct rng *r, enum blocks_fill fill, uint8_t *blocks, size_t n_bytes)
{
    /* halves: infinities, NaNs (one signalling), zeros, subnormals, the largest number */
    static const uint16_t special[] = {0x7c00, 0xfc00, 0x7e00, 0xffff, 0x7c01,
                                       0x0000, 0x8000, 0x0001, 0x83ff, 0x7bff};
    if (fill == BLOCKS_ZEROS || fill == BLOCKS_ONES) {
        memset(blocks, fill == BLOCKS_ONES ? 0xff : 0, n_bytes);
        return;
    }
    rng_bytes(r, blocks, n_bytes);
    if (fill == BLOCKS_SPECIAL)
        for (size_t i = 0; i + 2 <= n_bytes; i += 2)
            if (rng_below(r, 3) == 0)
                memcpy(blocks + i, &special[rng_below(r, sizeof special / sizeof special[0])], 2);
}

void blocks_integers(const struct kern_integers *format, kern_decode_fn *decode, const void *blocks,
                     size_t n, int16_t *integers)
{
    enum { MAX_BYTES = 258, MAX_ELEMS = 256 };
    const uint8_t *block = blocks;
    uint8_t copy[MAX_BYTES];
    float y[MAX_ELEMS];
    require(format->block_bytes <= MAX_BYTES && format->block_elems <= MAX_ELEMS);
    for (size_t i = 0; i < n; i += format->block_elems, block += format->block_bytes) {
        kern_integers_neutral(format, block, format->block_elems, copy);
        decode(copy, y, format->block_elems);
        for (size_t j = 0; j < format->block_elems; j++)
            integers[i + j] = (int16_t)y[j];
    }
}
