#include "tests/harness/blocks.h"

#include <string.h>

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
