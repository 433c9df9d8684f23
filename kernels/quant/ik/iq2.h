/**
 * IQ2_K, IQ2_KS and IQ2_KL: y = scale * value, codes of 2 bits, or of 5 bits for two elements.
 */
#ifndef KERNELS_QUANT_IK_IQ2_H
#define KERNELS_QUANT_IK_IQ2_H

#include "kernels/quant/ik/codes.h"

/** IQ2_K: 256 elements in 76 bytes, 2.375 bits per weight; scales of 4 bits per 16. */
struct kern_block_iq2_k {
    uint8_t d[2];     /* half */
    uint8_t extra[2]; /* bit i: run i has the second table */
    uint8_t scales[8];
    uint8_t qs[64];
};

KERN_INLINE float kern_iq2_k_scale(const struct kern_block_iq2_k *block, unsigned run)
{
    return kern_load_half(block->d) * (float)((int)kern_load_nibble(block->scales, run) - 8);
}

KERN_INLINE int kern_iq2_k_value(const struct kern_block_iq2_k *block, unsigned e)
{
    int shift = (kern_load_u16(block->extra) >> e / 16 & 1) != 0 ? KERN_IK2_SHIFT : 0;
    return kern_ik2_values[kern_ik_code2(block->qs, e)] + shift;
}

/** Overwrite the scales: the block then decodes to its integers. */
KERN_INLINE void kern_iq2_k_neutralise(struct kern_block_iq2_k *block)
{
    memset(block->scales, 0x99, sizeof block->scales); /* each 1 */
    kern_store_u16(block->d, KERN_HALF_1);
}

KERN_FORMAT(iq2_k, 256, 16)

/** IQ2_KS: 256 elements in 70 bytes, 2.1875 bits per weight; scales of 5 bits per 32. */
struct kern_block_iq2_ks {
    uint8_t d[2]; /* half, the row's */
    uint8_t
        extra[2]; /* bit g: group g has the second table; bit 8 + g: the fifth bit of its scale */
    uint8_t scales[4];
    uint8_t qs[64];
};

KERN_INLINE float kern_iq2_ks_scale(const struct kern_block_iq2_ks *block, unsigned run)
{
    unsigned high = kern_load_u16(block->extra) >> (8 + run) & 1;
    return kern_load_half(block->d) *
           (float)((int)(kern_load_nibble(block->scales, run) | high << 4) - 16);
}

KERN_INLINE int kern_iq2_ks_value(const struct kern_block_iq2_ks *block, unsigned e)
{
    int shift = (block->extra[0] >> e / 32 & 1) != 0 ? KERN_IK2_SHIFT : 0;
    return kern_ik2_values[kern_ik_code2(block->qs, e)] + shift;
}

/** Overwrite the scales: the block then decodes to its integers. */
KERN_INLINE void kern_iq2_ks_neutralise(struct kern_block_iq2_ks *block)
{
    memset(block->scales, 0x11, sizeof block->scales); /* each 17 - 16 */
    block->extra[1] = 0xff;
    kern_store_u16(block->d, KERN_HALF_1);
}

KERN_FORMAT(iq2_ks, 256, 32)

/** IQ2_KL: 256 elements in 86 bytes, 2.6875 bits per weight; scales of 6 bits per 32. */
struct kern_block_iq2_kl {
    uint8_t d[2];        /* half, the row's */
    uint8_t scales_h[2]; /* upper two bits of the scale of group g: bits 2g, 2g + 1 */
    uint8_t scales_l[4]; /* lower four: of group g < 4 the low nibble of byte g, of g + 4 the high
                            one */
    uint8_t qs[64]; /* nibbles of the 16 pairs of group g: from byte 16 * (g / 2), low for even g */
    uint8_t qh[16]; /* bit g: the fifth bit of the code of pair j */
};

KERN_INLINE float kern_iq2_kl_scale(const struct kern_block_iq2_kl *block, unsigned run)
{
    unsigned low = block->scales_l[run % 4] >> run / 4 * 4 & 15u;
    unsigned high = kern_load_u16(block->scales_h) >> 2 * run & 3;
    return kern_load_half(block->d) * (float)((int)(low | high << 4) - 32);
}

KERN_INLINE int kern_iq2_kl_value(const struct kern_block_iq2_kl *block, unsigned e)
{
    unsigned pair = e % 32 / 2;
    unsigned code = (block->qs[e / 64 * 16 + pair] >> e / 32 % 2 * 4 & 15u) |
                    (block->qh[pair] >> e / 32 & 1u) << 4;
    return kern_ik_pairs[code][e % 2];
}

/** Overwrite the scales: the block then decodes to its integers. */
KERN_INLINE void kern_iq2_kl_neutralise(struct kern_block_iq2_kl *block)
{
    memset(block->scales_l, 0x11, sizeof block->scales_l); /* each 33 - 32 */
    memset(block->scales_h, 0xaa, sizeof block->scales_h);
    kern_store_u16(block->d, KERN_HALF_1);
}

KERN_FORMAT(iq2_kl, 256, 32)

#endif
