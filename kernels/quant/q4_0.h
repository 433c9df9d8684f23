/**
 * Q4_0: 32 elements in 18 bytes, 4.5 bits per weight. y = d * (q - 8), q of 4 bits.
 * Low nibbles are elements 0..15, high nibbles 16..31.
 */
#ifndef KERNELS_QUANT_Q4_0_H
#define KERNELS_QUANT_Q4_0_H

#include "kernels/quant/bytes.h"

struct kern_block_q4_0 {
    uint8_t d[2]; /* half */
    uint8_t qs[16];
};

/** Decode the block: 32 elements; group is 0. */
KERN_INLINE void kern_q4_0_group(const struct kern_block_q4_0 *block, unsigned group, float *y)
{
    (void)group;
    float d = kern_load_half(block->d);
    for (int j = 0; j < 16; j++) {
        y[j] = d * (float)((block->qs[j] & 15) - 8);
        y[j + 16] = d * (float)((block->qs[j] >> 4) - 8);
    }
}

KERN_FORMAT_ONE_SCALE(q4_0, 1)
KERN_FORMAT_ROW(q4_0, 32)

#endif
