/**
 * IQ4_K, IQ4_KS and IQ4_KSS: y = scale * value, codes of 4 bits.
 */
#ifndef KERNELS_QUANT_IK_IQ4_H
#define KERNELS_QUANT_IK_IQ4_H

#include "kernels/quant/ik/codes.h"

/** IQ4_K: 256 elements in 144 bytes, 4.5 bits per weight; scales of 6 bits per 16. */
struct kern_block_iq4_k {
    uint8_t d[2];     /* half */
    uint8_t extra[2]; /* bit i: run i has the second table */
    uint8_t scales_h[4];
    uint8_t scales_l[8];
    uint8_t qs[128];
};

KERN_INLINE float kern_iq4_k_scale(const struct kern_block_iq4_k *block, unsigned run)
{
    return kern_load_half(block->d) * (float)kern_ik_scale6(block->scales_l, block->scales_h, run);
}

KERN_INLINE int kern_iq4_k_value(const struct kern_block_iq4_k *block, unsigned e)
{
    int shift = (kern_load_u16(block->extra) >> e / 16 & 1) != 0 ? KERN_IK4_SHIFT : 0;
    return kern_iq4_values[kern_ik_code4(block->qs, e)] + shift;
}

/** Overwrite the scales: the block then decodes to its integers. */
KERN_INLINE void kern_iq4_k_neutralise(struct kern_block_iq4_k *block)
{
    kern_ik_scale6_neutralise(block->scales_l, block->scales_h);
    kern_store_u16(block->d, KERN_HALF_1);
}

KERN_FORMAT(iq4_k, 256, 16)

/** IQ4_KS: 256 elements in 136 bytes, 4.25 bits per weight; scales of 7 bits per 32. */
struct kern_block_iq4_ks {
    uint8_t d[4];      /* float32, the row's */
    uint8_t scales[8]; /* scale + 127, even; bit 0: the second table */
    uint8_t qs[128];
};

KERN_INLINE float kern_iq4_ks_scale(const struct kern_block_iq4_ks *block, unsigned run)
{
    return kern_load_float(block->d) * (float)((block->scales[run] & 254) - 127);
}

KERN_INLINE int kern_iq4_ks_value(const struct kern_block_iq4_ks *block, unsigned e)
{
    int shift = (block->scales[e / 32] & 1) != 0 ? KERN_IK4_SHIFT : 0;
    return kern_iq4_values[kern_ik_code4(block->qs, e)] + shift;
}

/** Overwrite the scales: the block then decodes to its integers. */
KERN_INLINE void kern_iq4_ks_neutralise(struct kern_block_iq4_ks *block)
{
    for (int group = 0; group < 8; group++)
        block->scales[group] = (uint8_t)(128 | (block->scales[group] & 1)); /* 1 */
    kern_store_float(block->d, 1.0f);
}

KERN_FORMAT(iq4_ks, 256, 32)

/** IQ4_KSS: 256 elements in 128 bytes, 4 bits per weight; scales of 7 bits per 32. */
struct kern_block_iq4_kss {
    uint8_t d[4];       /* float32, the row's */
    uint8_t words[128]; /* 64 numbers of 16 bits, eight per group, whose lowest bits are the byte of
                           IQ4_KS */
};

/** What IQ4_KS stores as scales[group]. */
KERN_INLINE unsigned kern_iq4_kss_byte(const struct kern_block_iq4_kss *block, unsigned group)
{
    unsigned byte = 0;
    for (unsigned k = 0; k < 8; k++)
        byte |= (block->words[16 * group + 2 * k] & 1u) << k;
    return byte;
}

KERN_INLINE float kern_iq4_kss_scale(const struct kern_block_iq4_kss *block, unsigned run)
{
    unsigned byte = kern_iq4_kss_byte(block, run);
    return kern_load_float(block->d) * (float)((int)(byte & 254) - 127);
}

KERN_INLINE int kern_iq4_kss_value(const struct kern_block_iq4_kss *block, unsigned e)
{
    unsigned word = kern_load_u16(block->words + e / 32 * 16 + e % 16 / 2 * 2) & 0xfffe;
    word ^= word >> 1;
    unsigned code = word >> (e % 2 * 8 + e % 32 / 16 * 4) & 15;
    return kern_iq4_values[code] + ((block->words[e / 32 * 16] & 1) != 0 ? KERN_IK4_SHIFT : 0);
}

/** Overwrite the scales: the block then decodes to its integers. */
KERN_INLINE void kern_iq4_kss_neutralise(struct kern_block_iq4_kss *block)
{
    for (int i = 2; i < 128; i += 2) /* each scale 128 - 127; the table's bit stays */
        if (i % 16 != 0)
            block->words[i] = (uint8_t)((block->words[i] & 254) | (i % 16 == 14));
    kern_store_float(block->d, 1.0f);
}

KERN_FORMAT(iq4_kss, 256, 32)

#endif
