/**
 * TQ2_0: 256 elements in 66 bytes, 2.0625 bits per weight. y = d * (q - 1), q of 2 bits.
 * Two halves of 128 elements, each with 32 bytes; group 4 * half + s takes bits 2s, 2s + 1 of
 * those bytes.
 */
#ifndef KERNELS_QUANT_TQ2_0_H
#define KERNELS_QUANT_TQ2_0_H

#include "kernels/quant/bytes.h"

struct kern_block_tq2_0 {
    uint8_t qs[64];
    uint8_t d[2]; /* half */
};

/** Decode elements 32 * group .. + 31; group is 0..7. */
KERN_INLINE void kern_tq2_0_group(const struct kern_block_tq2_0 *block, unsigned group, float *y)
{
    float d = kern_load_half(block->d);
    const uint8_t *qs = block->qs + 32 * (group / 4);
    unsigned shift = 2 * (group % 4);
    for (int j = 0; j < 32; j++)
        y[j] = d * (float)((qs[j] >> shift & 3) - 1);
}

/** The scale of the whole block, without sub-scales. */
KERN_INLINE float kern_tq2_0_block_scale(const struct kern_block_tq2_0 *block)
{
    return kern_load_half(block->d);
}

/** Overwrite the block's scale: it then decodes to its integers times their sub-scales. */
KERN_INLINE void kern_tq2_0_neutralise_block(struct kern_block_tq2_0 *block)
{
    kern_store_u16(block->d, KERN_HALF_1);
}

/** The scale of each run of 32 elements. */
KERN_INLINE void kern_tq2_0_scales(const struct kern_block_tq2_0 *block, float *scales)
{
    float d = kern_tq2_0_block_scale(block);
    for (int run = 0; run < 8; run++)
        scales[run] = d;
}

/** Overwrite the scales: the block then decodes to its integers. */
KERN_INLINE void kern_tq2_0_neutralise(struct kern_block_tq2_0 *block)
{
    kern_tq2_0_neutralise_block(block);
}

KERN_FORMAT_ROW(tq2_0, 256)

#endif
