/**
 * Q5_0: 32 elements in 22 bytes, 5.5 bits per weight. y = d * (q - 16), q of 5 bits.
 * Low nibbles are elements 0..15, high nibbles 16..31; bit j of qh is the fifth bit of element j.
 */
#ifndef KERNELS_QUANT_Q5_0_H
#define KERNELS_QUANT_Q5_0_H

#include "kernels/quant/bytes.h"

struct kern_block_q5_0 {
    uint8_t d[2]; /* half */
    uint8_t qh[4];
    uint8_t qs[16];
};

/** Decode the block: 32 elements; group is 0. */
KERN_INLINE void kern_q5_0_group(const struct kern_block_q5_0 *block, unsigned group, float *y)
{
    (void)group;
    float d = kern_load_half(block->d);
    uint32_t high = kern_load_u32(block->qh);
    for (int j = 0; j < 16; j++) {
        uint32_t low_half = (block->qs[j] & 15u) | (high >> j & 1) << 4;
        uint32_t high_half = (uint32_t)block->qs[j] >> 4 | (high >> (j + 16) & 1) << 4;
        y[j] = d * (float)((int)low_half - 16);
        y[j + 16] = d * (float)((int)high_half - 16);
    }
}

KERN_FORMAT_ONE_SCALE(q5_0, 1)
KERN_FORMAT_ROW(q5_0, 32)

#endif
