/**
 * Q1_0: 128 elements in 18 bytes, 1.125 bits per weight. Bit j of qs, lowest first: set is +d,
 * clear is -d.
 */
#ifndef KERNELS_QUANT_Q1_0_H
#define KERNELS_QUANT_Q1_0_H

#include "kernels/quant/bytes.h"

struct kern_block_q1_0 {
    uint8_t d[2]; /* half */
    uint8_t qs[16];
};

/** Decode elements 32 * group .. + 31; group is 0..3. */
KERN_INLINE void kern_q1_0_group(const struct kern_block_q1_0 *block, unsigned group, float *y)
{
    float d = kern_load_half(block->d);
    uint32_t bits = kern_load_u32(block->qs + 4 * group);
    for (int j = 0; j < 32; j++)
        y[j] = (bits >> j & 1) != 0 ? d : -d;
}

KERN_FORMAT_ONE_SCALE(q1_0, 4)
KERN_FORMAT_ROW(q1_0, 128)

#endif
