/**
 * Q4_K: 256 elements in 144 bytes, 4.5 bits per weight. y = d * scale * q - dmin * min,
 * q of 4 bits; scale and min of 6 bits per group of 32 (k_scales.h).
 * Groups 2k and 2k + 1 are the low and the high nibbles of qs[32k .. 32k + 31].
 */
#ifndef KERNELS_QUANT_Q4_K_H
#define KERNELS_QUANT_Q4_K_H

#include "kernels/quant/bytes.h"
#include "kernels/quant/k_scales.h"

struct kern_block_q4_k {
    uint8_t d[2];    /* half: scale of the scales */
    uint8_t dmin[2]; /* half: scale of the minima */
    uint8_t scales[12];
    uint8_t qs[128];
};

/** Decode elements 32 * group .. + 31; group is 0..7. */
KERN_INLINE void kern_q4_k_group(const struct kern_block_q4_k *block, unsigned group, float *y)
{
    float scale = kern_load_half(block->d) * (float)kern_k_scale(block->scales, group);
    float min = kern_load_half(block->dmin) * (float)kern_k_min(block->scales, group);
    const uint8_t *qs = block->qs + 32 * (group / 2);
    unsigned shift = 4 * (group % 2);
    for (int j = 0; j < 32; j++)
        y[j] = scale * (float)(qs[j] >> shift & 15) - min;
}

/** The scale and minimum of each run of 32 elements. */
KERN_INLINE void kern_q4_k_scales(const struct kern_block_q4_k *block, float *scales, float *mins)
{
    kern_k_scales(block->scales, block->d, block->dmin, scales, mins);
}

/** Overwrite the scales: the block then decodes to its integers. */
KERN_INLINE void kern_q4_k_neutralise(struct kern_block_q4_k *block)
{
    kern_k_neutralise(block->scales, block->d, block->dmin);
}

/** The scale of the whole block, without sub-scales. */
KERN_INLINE float kern_q4_k_block_scale(const struct kern_block_q4_k *block)
{
    return kern_load_half(block->d);
}

/** Overwrite the block's scale: it then decodes to its integers times their sub-scales. */
KERN_INLINE void kern_q4_k_neutralise_block(struct kern_block_q4_k *block)
{
    kern_store_u16(block->d, KERN_HALF_1);
    kern_store_u16(block->dmin, 0);
}

KERN_FORMAT_ROW(q4_k, 256)

#endif
