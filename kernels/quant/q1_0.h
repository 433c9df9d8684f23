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

/** The scale of each run of 32 elements. */
KERN_INLINE void kern_q1_0_scales(const struct kern_block_q1_0 *block, float *scales)
{
    float d = kern_load_half(block->d);
    for (int run = 0; run < 4; run++)
        scales[run] = d;
}

/** Overwrite the scales: the block then decodes to its integers. */
KERN_INLINE void kern_q1_0_neutralise(struct kern_block_q1_0 *block)
{
    kern_store_u16(block->d, KERN_HALF_1);
}

KERN_INLINE void kern_q1_0_row(const void *blocks, float *y, size_t n)
{
    const struct kern_block_q1_0 *block = (const struct kern_block_q1_0 *)blocks;
    for (size_t i = 0; i < n; i += 128, block++)
        for (unsigned group = 0; group < 4; group++)
            kern_q1_0_group(block, group, y + i + 32 * group);
}

#endif
