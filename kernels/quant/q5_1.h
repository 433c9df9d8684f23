/**
 * Q5_1: 32 elements in 24 bytes, 6 bits per weight. y = q * d + m, q of 5 bits.
 * Low nibbles are elements 0..15, high nibbles 16..31; bit j of qh is the fifth bit of element j.
 */
#ifndef KERNELS_QUANT_Q5_1_H
#define KERNELS_QUANT_Q5_1_H

#include "kernels/quant/bytes.h"

struct kern_block_q5_1 {
    uint8_t d[2]; /* half: scale */
    uint8_t m[2]; /* half: minimum */
    uint8_t qh[4];
    uint8_t qs[16];
};

/** Decode the block: 32 elements; group is 0. */
KERN_INLINE void kern_q5_1_group(const struct kern_block_q5_1 *block, unsigned group, float *y)
{
    (void)group;
    float d = kern_load_half(block->d);
    float m = kern_load_half(block->m);
    uint32_t high = kern_load_u32(block->qh);
    for (int j = 0; j < 16; j++) {
        uint32_t low_half = (block->qs[j] & 15u) | (high >> j & 1) << 4;
        uint32_t high_half = (uint32_t)block->qs[j] >> 4 | (high >> (j + 16) & 1) << 4;
        y[j] = (float)low_half * d + m;
        y[j + 16] = (float)high_half * d + m;
    }
}

/** The block's scale and minimum. */
KERN_INLINE void kern_q5_1_scales(const struct kern_block_q5_1 *block, float *scales, float *mins)
{
    scales[0] = kern_load_half(block->d);
    mins[0] = kern_load_half(block->m);
}

/** Overwrite the scales: the block then decodes to its integers. */
KERN_INLINE void kern_q5_1_neutralise(struct kern_block_q5_1 *block)
{
    kern_store_u16(block->d, KERN_HALF_1);
    kern_store_u16(block->m, 0);
}

KERN_FORMAT_ROW(q5_1, 32)

#endif
