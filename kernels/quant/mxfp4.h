/**
 * MXFP4: 32 elements in 17 bytes, 4.25 bits per weight. y = 2^(e - 128) * kern_fp4_values[q];
 * these values are doubled, hence 128 and not 127.
 * Low nibbles are elements 0..15, high nibbles 16..31.
 */
#ifndef KERNELS_QUANT_MXFP4_H
#define KERNELS_QUANT_MXFP4_H

#include "kernels/quant/bytes.h"
#include "kernels/quant/codebook_4bit.h"

struct kern_block_mxfp4 {
    uint8_t e; /* exponent of the scale */
    uint8_t qs[16];
};

/** 2^(e - 128); e = 0 and 1 give the subnormals 2^-128 and 2^-127. */
KERN_INLINE float kern_mxfp4_scale(uint8_t e)
{
    return kern_float_from_bits(e < 2 ? 0x200000u << e : (uint32_t)(e - 1) << 23);
}

/** Decode the block: 32 elements; group is 0. */
KERN_INLINE void kern_mxfp4_group(const struct kern_block_mxfp4 *block, unsigned group, float *y)
{
    (void)group;
    float scale = kern_mxfp4_scale(block->e);
    for (int j = 0; j < 16; j++) {
        y[j] = scale * (float)kern_fp4_values[block->qs[j] & 15];
        y[j + 16] = scale * (float)kern_fp4_values[block->qs[j] >> 4];
    }
}

/** The block's scale. */
KERN_INLINE void kern_mxfp4_scales(const struct kern_block_mxfp4 *block, float *scales)
{
    scales[0] = kern_mxfp4_scale(block->e);
}

/** Overwrite the scales: the block then decodes to its integers. */
KERN_INLINE void kern_mxfp4_neutralise(struct kern_block_mxfp4 *block)
{
    block->e = 128; /* 2^0 */
}

KERN_FORMAT_ROW(mxfp4, 32)

#endif
