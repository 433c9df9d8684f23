/**
 * IQ5_K and IQ5_KS: y = scale * value, codes of 5 bits.
 */
#ifndef KERNELS_QUANT_IK_IQ5_H
#define KERNELS_QUANT_IK_IQ5_H

#include "kernels/quant/ik/codes.h"

/** IQ5_K: 256 elements in 176 bytes, 5.5 bits per weight; scales of 6 bits per 16. */
struct kern_block_iq5_k {
    uint8_t d[2];     /* half */
    uint8_t extra[2]; /* bit i: run i has the second table */
    uint8_t scales_h[4];
    uint8_t scales_l[8];
    uint8_t qs[128];
    uint8_t qh[32];
};

KERN_INLINE float kern_iq5_k_scale(const struct kern_block_iq5_k *block, unsigned run)
{
    return kern_load_half(block->d) * (float)kern_ik_scale6(block->scales_l, block->scales_h, run);
}

KERN_INLINE int kern_iq5_k_value(const struct kern_block_iq5_k *block, unsigned e)
{
    int shift = (kern_load_u16(block->extra) >> e / 16 & 1) != 0 ? KERN_IK5_SHIFT : 0;
    return kern_ik5_values[kern_ik_code5(block->qs, block->qh, e)] + shift;
}

/** Overwrite the scales: the block then decodes to its integers. */
KERN_INLINE void kern_iq5_k_neutralise(struct kern_block_iq5_k *block)
{
    kern_ik_scale6_neutralise(block->scales_l, block->scales_h);
    kern_store_u16(block->d, KERN_HALF_1);
}

KERN_FORMAT(iq5_k, 256, 16)

/** IQ5_KS: 256 elements in 168 bytes, 5.25 bits per weight; scales of 7 bits per 32. */
struct kern_block_iq5_ks {
    uint8_t d[4];      /* float32, the row's */
    uint8_t scales[8]; /* scale + 127, even; bit 0: the second table */
    uint8_t qs[128];
    uint8_t qh[32];
};

KERN_INLINE float kern_iq5_ks_scale(const struct kern_block_iq5_ks *block, unsigned run)
{
    return kern_load_float(block->d) * (float)((block->scales[run] & 254) - 127);
}

KERN_INLINE int kern_iq5_ks_value(const struct kern_block_iq5_ks *block, unsigned e)
{
    int shift = (block->scales[e / 32] & 1) != 0 ? KERN_IK5_SHIFT : 0;
    return kern_ik5_values[kern_ik_code5(block->qs, block->qh, e)] + shift;
}

/** Overwrite the scales: the block then decodes to its integers. */
KERN_INLINE void kern_iq5_ks_neutralise(struct kern_block_iq5_ks *block)
{
    for (int group = 0; group < 8; group++)
        block->scales[group] = (uint8_t)(128 | (block->scales[group] & 1)); /* 1 */
    kern_store_float(block->d, 1.0f);
}

KERN_FORMAT(iq5_ks, 256, 32)

#endif
