/** F32: one float32, little-endian. */
#ifndef KERNELS_QUANT_F32_H
#define KERNELS_QUANT_F32_H

#include "kernels/quant/bytes.h"

struct kern_block_f32 {
    uint8_t value[4];
};

/** The value of one element. */
KERN_INLINE float kern_f32_value(const struct kern_block_f32 *block)
{
    return kern_float_from_bits(kern_load_u32(block->value));
}

KERN_INLINE void kern_f32_row(const void *blocks, float *y, size_t n)
{
    const struct kern_block_f32 *block = (const struct kern_block_f32 *)blocks;
    for (size_t i = 0; i < n; i++)
        y[i] = kern_f32_value(block + i);
}

#endif
