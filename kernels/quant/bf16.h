/** BF16: the upper 16 bits of a float32, little-endian. */
#ifndef KERNELS_QUANT_BF16_H
#define KERNELS_QUANT_BF16_H

#include "kernels/quant/bytes.h"

struct kern_block_bf16 {
    uint8_t value[2];
};

/** The value of one element. */
KERN_INLINE float kern_bf16_value(const struct kern_block_bf16 *block)
{
    return kern_float_from_bits(kern_load_u16(block->value) << 16);
}

/** The nearest, halves to even, infinity beyond the largest; a NaN stays one. */
KERN_INLINE uint16_t kern_bf16_from_float(float x)
{
    uint32_t bits = kern_bits_of(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)((bits | 0x00400000u) >> 16);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

KERN_INLINE void kern_bf16_row(const void *blocks, float *y, size_t n)
{
    const struct kern_block_bf16 *block = (const struct kern_block_bf16 *)blocks;
    for (size_t i = 0; i < n; i++)
        y[i] = kern_bf16_value(block + i);
}

#endif
