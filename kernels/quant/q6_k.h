/**
 * Q6_K: 256 elements in 210 bytes, 6.5625 bits per weight. y = d * scale * (q - 32), q of 6 bits,
 * a signed byte of scale per 16 elements.
 * Two halves of 128 elements, each with 64 bytes of ql and 32 of qh. In a half, groups 0 and 1 are
 * the low nibbles of ql[0..31] and ql[32..63], groups 2 and 3 the high ones; group r takes bits
 * 2r, 2r + 1 of qh as its upper bits.
 */
#ifndef KERNELS_QUANT_Q6_K_H
#define KERNELS_QUANT_Q6_K_H

#include "kernels/quant/bytes.h"

struct kern_block_q6_k {
    uint8_t ql[128];
    uint8_t qh[64];
    uint8_t scales[16]; /* signed */
    uint8_t d[2];       /* half */
};

/** Decode elements 32 * group .. + 31; group is 0..7. */
KERN_INLINE void kern_q6_k_group(const struct kern_block_q6_k *block, unsigned group, float *y)
{
    float d = kern_load_half(block->d);
    unsigned half = group / 4, r = group % 4;
    const uint8_t *ql = block->ql + 64 * half + 32 * (r % 2);
    const uint8_t *qh = block->qh + 32 * half;
    for (int j = 0; j < 32; j++) {
        float scale = d * (float)(int8_t)block->scales[2 * group + j / 16];
        int q = (ql[j] >> 4 * (r / 2) & 15) | (qh[j] >> 2 * r & 3) << 4;
        y[j] = scale * (float)(q - 32);
    }
}

/** The block's scale. */
KERN_INLINE float kern_q6_k_block_scale(const struct kern_block_q6_k *block)
{
    return kern_load_half(block->d);
}

/** Overwrite the block's scale: it then decodes to its integers times their sub-scales. */
KERN_INLINE void kern_q6_k_neutralise_block(struct kern_block_q6_k *block)
{
    kern_store_u16(block->d, KERN_HALF_1);
}

/** The scale of each run of 16 elements. */
KERN_INLINE void kern_q6_k_scales(const struct kern_block_q6_k *block, float *scales)
{
    float d = kern_q6_k_block_scale(block);
    for (int run = 0; run < 16; run++)
        scales[run] = d * (float)(int8_t)block->scales[run];
}

/** Overwrite the scales: the block then decodes to its integers. */
KERN_INLINE void kern_q6_k_neutralise(struct kern_block_q6_k *block)
{
    memset(block->scales, 1, sizeof block->scales);
    kern_q6_k_neutralise_block(block);
}

KERN_FORMAT_ROW(q6_k, 256)

#endif
