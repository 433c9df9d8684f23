/**
 * Reading numbers out of packed bytes, for every block format.
 *
 * The headers of this folder are the common subset of C17 and CUDA C++: they are the scalar
 * reference on the CPU and the decoder on a GPU. Blocks are structs of uint8_t arrays, so they
 * have alignment 1 and may lie anywhere in a file mapping. All arithmetic is float32 in the
 * order written. Where a product is added to or subtracted from (Q4_1, Q5_1, Q2_K, Q4_K, Q5_K) it
 * is exact: a half has 11 significant bits, a scale at most 6, a code at most 5, together no more
 * than float32's 24. So a fused multiply-add gives the same bits there, and variants may use it.
 */
#ifndef KERNELS_QUANT_BYTES_H
#define KERNELS_QUANT_BYTES_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/portable/portable.h"

#ifdef __CUDACC__
#include <cuda_fp16.h>
#endif

/** Little-endian integers at any address. */
KERN_INLINE uint32_t kern_load_u16(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

KERN_INLINE uint32_t kern_load_u32(const uint8_t *p)
{
    return kern_load_u16(p) | kern_load_u16(p + 2) << 16;
}

KERN_INLINE void kern_store_u16(uint8_t *p, uint32_t value)
{
    p[0] = (uint8_t)value;
    p[1] = (uint8_t)(value >> 8);
}

/** Nibble i of packed ones, the low one of a byte first. */
KERN_INLINE unsigned kern_load_nibble(const uint8_t *p, unsigned i)
{
    return p[i / 2] >> 4 * (i % 2) & 15u;
}

/** Some halves. */
enum { KERN_HALF_1 = 0x3c00, KERN_HALF_4 = 0x4400, KERN_HALF_8 = 0x4800 };

/**
 * IEEE half to float32: exact, subnormals included; a NaN keeps its payload and becomes quiet,
 * as the conversion instructions of x86 do it.
 */
KERN_INLINE float kern_half_to_float(uint32_t half)
{
    uint32_t sign = (half & 0x8000) << 16;
    uint32_t exponent = half >> 10 & 31;
    uint32_t mantissa = half & 0x3ff;
    if (exponent == 31)
        return kern_float_from_bits(sign | 0x7f800000 | mantissa << 13 |
                                    (mantissa != 0 ? 0x400000u : 0));
    if (exponent != 0)
        return kern_float_from_bits(sign | (exponent + 112) << 23 | mantissa << 13);
    float magnitude = (float)mantissa * 0x1p-24f; /* zero and subnormals */
    return sign != 0 ? -magnitude : magnitude;
}

/** The nearest half, ties to even, infinity from 65520 on; as its bits. */
KERN_INLINE uint16_t kern_half_from_float(float x)
{
#ifdef __CUDACC__
    return __half_as_ushort(__float2half_rn(x));
#else
    uint32_t bits = kern_bits_of(x);
    uint32_t sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u)
        return (uint16_t)(sign | 0x7fffu);
    if (magnitude >= 0x477ff000u) /* 65520 */
        return (uint16_t)(sign | 0x7c00u);
    if (magnitude < 0x38800000u) { /* 2^-14: to a multiple of 2^-24, by adding 2^-1 */
        float sum = kern_float_from_bits(magnitude) + 0.5f;
        return (uint16_t)(sign | (kern_bits_of(sum) - 0x3f000000u));
    }
    uint32_t odd = magnitude >> 13 & 1;
    return (uint16_t)(sign | (magnitude - 0x38000000u + 0xfffu + odd) >> 13);
#endif
}

/** The half stored at p. */
KERN_INLINE float kern_load_half(const uint8_t *p)
{
    return kern_half_to_float(kern_load_u16(p));
}

/**
 * A block of the format has one scale, the half d, for its n_runs runs. kern_<name>_scales(): the
 * scale of each run; kern_<name>_neutralise(): overwrite it, the block then decodes to its
 * integers.
 */
#define KERN_FORMAT_ONE_SCALE(name, n_runs)                                                        \
    KERN_INLINE void kern_##name##_scales(const struct kern_block_##name *block, float *scales)    \
    {                                                                                              \
        float d = kern_load_half(block->d);                                                        \
        for (int run = 0; run < (n_runs); run++)                                                   \
            scales[run] = d;                                                                       \
    }                                                                                              \
    KERN_INLINE void kern_##name##_neutralise(struct kern_block_##name *block)                     \
    {                                                                                              \
        kern_store_u16(block->d, KERN_HALF_1);                                                     \
    }

/** kern_<name>_row(): each group of each block in turn. */
#define KERN_FORMAT_ROW(name, block_elems)                                                         \
    KERN_INLINE void kern_##name##_row(const void *blocks, float *y, size_t n)                     \
    {                                                                                              \
        const struct kern_block_##name *block = (const struct kern_block_##name *)blocks;          \
        for (size_t i = 0; i < n; i += (block_elems), block++)                                     \
            for (unsigned group = 0; group < (block_elems) / 32; group++)                          \
                kern_##name##_group(block, group, y + i + 32 * group);                             \
    }

#endif
