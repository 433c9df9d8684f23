/**
 * Q5_K: 256 elements in 176 bytes, 5.5 bits per weight. y = d * scale * q - dmin * min,
 * q of 5 bits; scale and min of 6 bits per group of 32 (k_scales.h).
 * Groups 2k and 2k + 1 are the low and the high nibbles of qs[32k .. 32k + 31]; bit `group` of
 * qh[j] is the fifth bit of its element j.
 */
#ifndef KERNELS_QUANT_Q5_K_H
#define KERNELS_QUANT_Q5_K_H

#include "kernels/quant/bytes.h"
#include "kernels/quant/k_scales.h"

struct kern_block_q5_k {
    uint8_t d[2];    /* half: scale of the scales */
    uint8_t dmin[2]; /* half: scale of the minima */
    uint8_t scales[12];
    uint8_t qh[32];
    uint8_t qs[128];
};

/** Decode elements 32 * group .. + 31; group is 0..7. */
KERN_INLINE void kern_q5_k_group(const struct kern_block_q5_k *block, unsigned group, float *y)
{
    float scale = kern_load_half(block->d) * (float)kern_k_scale(block->scales, group);
    float min = kern_load_half(block->dmin) * (float)kern_k_min(block->scales, group);
    const uint8_t *qs = block->qs + 32 * (group / 2);
    unsigned shift = 4 * (group % 2);
    for (int j = 0; j < 32; j++) {
        int q = (qs[j] >> shift & 15) | (block->qh[j] >> group & 1) << 4;
        y[j] = scale * (float)q - min;
    }
}

/** The block's scale. */
KERN_INLINE float kern_q5_k_block_scale(const struct kern_block_q5_k *block)
{
    return kern_load_half(block->d);
}

/** Overwrite the block's scale: it then decodes to its integers times their sub-scales. */
KERN_INLINE void kern_q5_k_neutralise_block(struct kern_block_q5_k *block)
{
    kern_store_u16(block->d, KERN_HALF_1);
    kern_store_u16(block->dmin, 0);
}

/** The scale and minimum of each run of 32 elements. */
KERN_INLINE void kern_q5_k_scales(const struct kern_block_q5_k *block, float *scales, float *mins)
{
    kern_k_scales(block->scales, block->d, block->dmin, scales, mins);
}

/** Overwrite the scales: the block then decodes to its integers. */
KERN_INLINE void kern_q5_k_neutralise(struct kern_block_q5_k *block)
{
    kern_k_neutralise(block->scales, block->d, block->dmin);
}

KERN_FORMAT_ROW(q5_k, 256)

#endif
