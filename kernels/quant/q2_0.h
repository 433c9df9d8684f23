/**
 * Q2_0: 64 elements in 18 bytes, 2.25 bits per weight. y = d * (q - 1), q of 2 bits, lowest first.
 */
#ifndef KERNELS_QUANT_Q2_0_H
#define KERNELS_QUANT_Q2_0_H

#include "kernels/quant/bytes.h"

struct kern_block_q2_0 {
    uint8_t d[2]; /* half */
    uint8_t qs[16];
};

/** Decode elements 32 * group .. + 31; group is 0..1. */
KERN_INLINE void kern_q2_0_group(const struct kern_block_q2_0 *block, unsigned group, float *y)
{
    float d = kern_load_half(block->d);
    const uint8_t *qs = block->qs + 8 * group;
    for (int j = 0; j < 32; j++)
        y[j] = d * (float)((qs[j / 4] >> 2 * (j % 4) & 3) - 1);
}

KERN_FORMAT_ONE_SCALE(q2_0, 2)
KERN_FORMAT_ROW(q2_0, 64)

#endif
