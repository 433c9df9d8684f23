/**
 * IQ6_K: 256 elements in 212 bytes, 6.625 bits per weight; y = scale * value, codes of 6 bits,
 * scales of 8 bits per 16.
 * The values are those of ik_llama.cpp's matrix kernels; its to_float takes others
 * (docs/formats.md).
 */
#ifndef KERNELS_QUANT_IK_IQ6_H
#define KERNELS_QUANT_IK_IQ6_H

#include "kernels/quant/ik/codes.h"

/** Two halves of 128 elements have 32 bytes of qh; bits 2r, 2r + 1 are of their group r. */
struct kern_block_iq6_k {
    uint8_t d[2];       /* half */
    uint8_t extra[2];   /* bit i: run i has the second table */
    uint8_t scales[16]; /* signed */
    uint8_t qs[128];
    uint8_t qh[64];
};

KERN_INLINE float kern_iq6_k_scale(const struct kern_block_iq6_k *block, unsigned run)
{
    return kern_load_half(block->d) * (float)(int8_t)block->scales[run];
}

KERN_INLINE int kern_iq6_k_value(const struct kern_block_iq6_k *block, unsigned e)
{
    unsigned high = kern_ik_code2(block->qh, e);
    int shift = kern_load_u16(block->extra) >> e / 16 & 1;
    return kern_ik6_values[kern_ik_nibble(block->qs, e) | high << 4] + shift;
}

/** Overwrite the scales: the block then decodes to its integers. */
KERN_INLINE void kern_iq6_k_neutralise(struct kern_block_iq6_k *block)
{
    memset(block->scales, 1, sizeof block->scales);
    kern_store_u16(block->d, KERN_HALF_1);
}

KERN_FORMAT(iq6_k, 256, 16)

#endif
