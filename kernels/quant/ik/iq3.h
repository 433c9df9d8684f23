/**
 * IQ3_K and IQ3_KS: y = scale * value, codes of 3 bits.
 */
#ifndef KERNELS_QUANT_IK_IQ3_H
#define KERNELS_QUANT_IK_IQ3_H

#include "kernels/quant/ik/codes.h"

/** IQ3_K: 256 elements in 110 bytes, 3.4375 bits per weight; odd scales to 31 per 16. */
struct kern_block_iq3_k {
    uint8_t d[2];        /* half */
    uint8_t extra[2];    /* bit i: run i has the second table */
    uint8_t scales_h[2]; /* bit i: scale i is below 0 */
    uint8_t scales_l[8];
    uint8_t qs[64];
    uint8_t qh[32];
};

KERN_INLINE float kern_iq3_k_scale(const struct kern_block_iq3_k *block, unsigned run)
{
    return kern_load_half(block->d) *
           (float)kern_ik_scale_odd(block->scales_l, block->scales_h, run);
}

KERN_INLINE int kern_iq3_k_value(const struct kern_block_iq3_k *block, unsigned e)
{
    unsigned code = kern_ik_code2(block->qs, e) | kern_ik_high_bit(block->qh, e) << 2;
    return kern_ik3_values[code] +
           ((kern_load_u16(block->extra) >> e / 16 & 1) != 0 ? KERN_IK3_SHIFT : 0);
}

/** Overwrite the scales: the block then decodes to its integers. */
KERN_INLINE void kern_iq3_k_neutralise(struct kern_block_iq3_k *block)
{
    memset(block->scales_l, 0, sizeof block->scales_l); /* each 1 */
    memset(block->scales_h, 0, sizeof block->scales_h);
    kern_store_u16(block->d, KERN_HALF_1);
}

KERN_FORMAT(iq3_k, 256, 16)

/** IQ3_KS: 256 elements in 102 bytes, 3.1875 bits per weight; scales of 5 bits per 32. */
struct kern_block_iq3_ks {
    uint8_t d[2];      /* half, the row's */
    uint8_t extra[2];  /* bit g: the fifth bit of the scale of group g; bit 8 + g: it has the second
                          table */
    uint8_t scales[4]; /* of group g < 4 the low nibble of byte g, of g + 4 the high one */
    uint8_t qs[64];
    uint8_t qh[32];
};

KERN_INLINE float kern_iq3_ks_scale(const struct kern_block_iq3_ks *block, unsigned run)
{
    unsigned low = block->scales[run % 4] >> run / 4 * 4 & 15u;
    unsigned high = block->extra[0] >> run & 1u;
    return kern_load_half(block->d) * (float)((int)(low | high << 4) - 16);
}

KERN_INLINE int kern_iq3_ks_value(const struct kern_block_iq3_ks *block, unsigned e)
{
    unsigned code = kern_ik_code2(block->qs, e) | kern_ik_high_bit(block->qh, e) << 2;
    return kern_ik3_values[code] + ((block->extra[1] >> e / 32 & 1) != 0 ? KERN_IK3_SHIFT : 0);
}

/** Overwrite the scales: the block then decodes to its integers. */
KERN_INLINE void kern_iq3_ks_neutralise(struct kern_block_iq3_ks *block)
{
    memset(block->scales, 0x11, sizeof block->scales); /* each 17 - 16 */
    block->extra[0] = 0xff;
    kern_store_u16(block->d, KERN_HALF_1);
}

KERN_FORMAT(iq3_ks, 256, 32)

#endif
