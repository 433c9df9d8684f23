/**
 * Q3_K: 256 elements in 110 bytes, 3.4375 bits per weight. y = d * (scale - 32) * q, with q of
 * 3 bits less 4, and a 6-bit scale per 16 elements.
 * Two halves of 128 elements, each with 32 bytes of qs; group 4 * half + s takes bits 2s, 2s + 1.
 * Bit `group` of hmask[j] is the third bit of its element j.
 */
#ifndef KERNELS_QUANT_Q3_K_H
#define KERNELS_QUANT_Q3_K_H

#include "kernels/quant/bytes.h"

struct kern_block_q3_k {
    uint8_t hmask[32];
    uint8_t qs[64];
    uint8_t scales[12];
    uint8_t d[2]; /* half */
};

/**
 * Scale i (0..15), 0..63. Low four bits: the low (i < 8) or high nibble of scales[i % 8];
 * upper two: bits 2 * (i / 4) of scales[8 + i % 4].
 */
KERN_INLINE int kern_q3_k_scale(const uint8_t *scales, unsigned i)
{
    int low = scales[i % 8] >> 4 * (i / 8) & 15;
    int high = scales[8 + i % 4] >> 2 * (i / 4) & 3;
    return low | high << 4;
}

/** Decode elements 32 * group .. + 31; group is 0..7. */
KERN_INLINE void kern_q3_k_group(const struct kern_block_q3_k *block, unsigned group, float *y)
{
    float d = kern_load_half(block->d);
    const uint8_t *qs = block->qs + 32 * (group / 4);
    unsigned shift = 2 * (group % 4);
    for (unsigned j = 0; j < 32; j++) {
        float scale = d * (float)(kern_q3_k_scale(block->scales, 2 * group + j / 16) - 32);
        int q = (qs[j] >> shift & 3) + 4 * (block->hmask[j] >> group & 1) - 4;
        y[j] = scale * (float)q;
    }
}

/** The scale of the whole block, without sub-scales. */
KERN_INLINE float kern_q3_k_block_scale(const struct kern_block_q3_k *block)
{
    return kern_load_half(block->d);
}

/** Overwrite the block's scale: it then decodes to its integers times their sub-scales. */
KERN_INLINE void kern_q3_k_neutralise_block(struct kern_block_q3_k *block)
{
    kern_store_u16(block->d, KERN_HALF_1);
}

/** The scale of each run of 16 elements. */
KERN_INLINE void kern_q3_k_scales(const struct kern_block_q3_k *block, float *scales)
{
    float d = kern_q3_k_block_scale(block);
    for (unsigned run = 0; run < 16; run++)
        scales[run] = d * (float)(kern_q3_k_scale(block->scales, run) - 32);
}

/** Overwrite the scales: the block then decodes to its integers. */
KERN_INLINE void kern_q3_k_neutralise(struct kern_block_q3_k *block)
{
    memset(block->scales, 0x11, 8); /* each scale 33 */
    memset(block->scales + 8, 0xaa, 4);
    kern_q3_k_neutralise_block(block);
}

KERN_FORMAT_ROW(q3_k, 256)

#endif
