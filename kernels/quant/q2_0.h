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

/** The scale of each run of 32 elements. */
KERN_INLINE void kern_q2_0_scales(const struct kern_block_q2_0 *block, float *scales)
{
    float d = kern_load_half(block->d);
    for (int run = 0; run < 2; run++)
        scales[run] = d;
}

/** Overwrite the scales: the block then decodes to its integers. */
KERN_INLINE void kern_q2_0_neutralise(struct kern_block_q2_0 *block)
{
    kern_store_u16(block->d, KERN_HALF_1);
}

KERN_INLINE void kern_q2_0_row(const void *blocks, float *y, size_t n)
{
    const struct kern_block_q2_0 *block = (const struct kern_block_q2_0 *)blocks;
    for (size_t i = 0; i < n; i += 64, block++)
        for (unsigned group = 0; group < 2; group++)
            kern_q2_0_group(block, group, y + i + 32 * group);
}

#endif
