/**
 * F8_E4M3 and F8_E5M2: floats of 8 bits, 32 elements that share a float32 scale, which lies apart.
 * y = d * number, rounded once.
 */
#ifndef KERNELS_QUANT_F8_H
#define KERNELS_QUANT_F8_H

#include "kernels/quant/bytes.h"

struct kern_block_f8_e4m3 {
    uint8_t d[4]; /* float32 */
    uint8_t qs[32];
};

struct kern_block_f8_e5m2 {
    uint8_t d[4]; /* float32 */
    uint8_t qs[32];
};

/**
 * Sign, 4 bits of exponent (bias 7), 3 of mantissa; 0x7f and 0xff are NaN, there is no infinity.
 * Shifted up by 7 bits the magnitude is a half, that is 2^-8 of the number.
 */
KERN_INLINE uint32_t kern_e4m3_half(uint8_t code)
{
    uint32_t sign = (code & 0x80u) << 8, magnitude = code & 0x7fu;
    return sign | (magnitude == 0x7f ? 0x7e00u : magnitude << 7);
}

KERN_INLINE float kern_e4m3_to_float(uint8_t code)
{
    return kern_half_to_float(kern_e4m3_half(code)) * 0x1p8f;
}

/** The upper half of an IEEE half, infinities and NaN included. */
KERN_INLINE float kern_e5m2_to_float(uint8_t code)
{
    return kern_half_to_float((uint32_t)code << 8);
}

/** A power of two: 2^(code - 127), 2^-127 being subnormal; 0xff is NaN. */
KERN_INLINE float kern_e8m0_to_float(uint8_t code)
{
    return kern_float_from_bits(code == 0    ? 0x400000u
                                : code < 255 ? (uint32_t)code << 23
                                             : 0x7fc00000u);
}

/** Decode the block: 32 elements; group is 0. */
#define KERN_F8_BLOCK(name, convert)                                                               \
    KERN_INLINE void kern_##name##_group(const struct kern_block_##name *block, unsigned group,    \
                                         float *y)                                                 \
    {                                                                                              \
        (void)group;                                                                               \
        float d = kern_float_from_bits(kern_load_u32(block->d));                                   \
        for (int j = 0; j < 32; j++)                                                               \
            y[j] = d * convert(block->qs[j]);                                                      \
    }                                                                                              \
    KERN_FORMAT_ROW(name, 32)
KERN_F8_BLOCK(f8_e4m3, kern_e4m3_to_float)
KERN_F8_BLOCK(f8_e5m2, kern_e5m2_to_float)

#endif
