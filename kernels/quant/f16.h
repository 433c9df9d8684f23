/** F16: one IEEE half, little-endian. */
#ifndef KERNELS_QUANT_F16_H
#define KERNELS_QUANT_F16_H

#include "kernels/quant/bytes.h"

struct kern_block_f16 {
    uint8_t value[2];
};

/** The value of one element. */
KERN_INLINE float kern_f16_value(const struct kern_block_f16 *block)
{
    return kern_load_half(block->value);
}

KERN_INLINE void kern_f16_row(const void *blocks, float *y, size_t n)
{
    const struct kern_block_f16 *block = (const struct kern_block_f16 *)blocks;
    for (size_t i = 0; i < n; i++)
        y[i] = kern_f16_value(block + i);
}

#endif
