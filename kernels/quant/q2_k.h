/**
 * Q2_K: 256 elements in 84 bytes, 2.625 bits per weight. y = d * scale * q - dmin * min,
 * q of 2 bits; scale and min are the low and high nibble of a byte per 16 elements.
 * Two halves of 128 elements, each with 32 bytes of qs; group 4 * half + s takes bits 2s, 2s + 1.
 */
#ifndef KERNELS_QUANT_Q2_K_H
#define KERNELS_QUANT_Q2_K_H

#include "kernels/quant/bytes.h"

struct kern_block_q2_k {
    uint8_t scales[16];
    uint8_t qs[64];
    uint8_t d[2];    /* half: scale of the scales */
    uint8_t dmin[2]; /* half: scale of the minima */
};

/** Decode elements 32 * group .. + 31; group is 0..7. */
KERN_INLINE void kern_q2_k_group(const struct kern_block_q2_k *block, unsigned group, float *y)
{
    float d = kern_load_half(block->d);
    float dmin = kern_load_half(block->dmin);
    const uint8_t *qs = block->qs + 32 * (group / 4);
    unsigned shift = 2 * (group % 4);
    for (int j = 0; j < 32; j++) {
        uint8_t scale = block->scales[2 * group + j / 16];
        float q = (float)(qs[j] >> shift & 3);
        y[j] = d * (float)(scale & 15) * q - dmin * (float)(scale >> 4);
    }
}

/** The scale of the whole block, without sub-scales. */
KERN_INLINE float kern_q2_k_block_scale(const struct kern_block_q2_k *block)
{
    return kern_load_half(block->d);
}

/** Overwrite the block's scale: it then decodes to its integers times their sub-scales. */
KERN_INLINE void kern_q2_k_neutralise_block(struct kern_block_q2_k *block)
{
    kern_store_u16(block->d, KERN_HALF_1);
    kern_store_u16(block->dmin, 0);
}

/** The scale and minimum of each run of 16 elements. */
KERN_INLINE void kern_q2_k_scales(const struct kern_block_q2_k *block, float *scales, float *mins)
{
    float d = kern_q2_k_block_scale(block);
    float dmin = kern_load_half(block->dmin);
    for (int run = 0; run < 16; run++) {
        scales[run] = d * (float)(block->scales[run] & 15);
        mins[run] = -(dmin * (float)(block->scales[run] >> 4));
    }
}

/** Overwrite the scales: the block then decodes to its integers. */
KERN_INLINE void kern_q2_k_neutralise(struct kern_block_q2_k *block)
{
    memset(block->scales, 1, sizeof block->scales);
    kern_q2_k_neutralise_block(block);
}

KERN_FORMAT_ROW(q2_k, 256)

#endif
