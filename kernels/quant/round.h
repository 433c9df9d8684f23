/**
 * What a key/value cache of some type would hold of numbers: they are put into its blocks and
 * decoded again. See struct kern_round (kernels/operations.h). Common subset of C17 and CUDA C++.
 */
#ifndef KERNELS_QUANT_ROUND_H
#define KERNELS_QUANT_ROUND_H

#include "kernels/quant/cache_types.h"
#include "kernels/quant/pack.h"
#include "kernels/quant/small_floats.h"

/** The largest magnitude of n numbers; NaN if one of them is not finite. */
KERN_INLINE float kern_round_largest(const float *x, size_t n)
{
    float largest = 0.0f;
    for (size_t i = 0; i < n; i++) {
        if (!(fabsf(x[i]) <= FLT_MAX))
            return NAN;
        largest = fabsf(x[i]) > largest ? fabsf(x[i]) : largest;
    }
    return largest;
}

/** Floats of 8 bits, times d. */
KERN_INLINE void kern_round_e4m3(float *x, size_t n, float d)
{
    for (size_t i = 0; i < n; i++)
        x[i] = d * kern_e4m3_to_float(kern_e4m3_from_float(x[i] / d));
}

KERN_INLINE void kern_round_e5m2(float *x, size_t n, float d)
{
    for (size_t i = 0; i < n; i++)
        x[i] = d * kern_e5m2_to_float(kern_e5m2_from_float(x[i] / d));
}

/** A block of KERN_PACK_ELEMS numbers: E4M3 with a power of two, of the largest magnitude. */
KERN_INLINE void kern_round_mxfp8(float *x)
{
    float largest = kern_round_largest(x, KERN_PACK_ELEMS);
    kern_round_e4m3(
        x, KERN_PACK_ELEMS,
        isnan(largest) ? largest : kern_e8m0_to_float(kern_e8m0_for(largest, KERN_E4M3_EXPONENT)));
}

/** A run of KERN_NVFP4_RUN numbers: halves of E2M1 with a scale in E4M3, times the tensor's. */
KERN_INLINE void kern_round_nvfp4(float *x, float scale)
{
    float largest = kern_round_largest(x, KERN_NVFP4_RUN);
    uint8_t code = kern_e4m3_from_float(largest / KERN_E2M1_MAX / scale);
    float d = code ? kern_e4m3_to_float(code) * scale : 0.0f;
    for (int i = 0; i < KERN_NVFP4_RUN; i++)
        x[i] = code == 0 || isnan(d)
                   ? d
                   : d / 2 * (float)kern_fp4_values[kern_e2m1_from_float(x[i] / d)];
}

/** KERN_DS_MLA_RUN numbers: E4M3 with a float32 scale, by which the largest one is 448. */
KERN_INLINE void kern_round_ds_mla(float *x)
{
    float largest = kern_round_largest(x, KERN_DS_MLA_RUN), d = largest / KERN_E4M3_MAX;
    kern_round_e4m3(x, KERN_DS_MLA_RUN, d < FLT_MIN ? FLT_MIN : d);
}

/** A row of Q8_KV: codes of 8 bits with a float32 scale; halves go to even. */
KERN_INLINE void kern_round_q8_kv(float *x, size_t n)
{
    float largest = kern_round_largest(x, n), d = largest / 127.0f, inverse = 1.0f / d;
    bool codes = inverse <= FLT_MAX;
    for (size_t i = 0; i < n; i++)
        x[i] = isnan(largest) ? largest : codes ? d * rintf(x[i] * inverse) : 0.0f;
}

#define KERN_ROUND_THROUGH(TYPE, name)                                                             \
    else if (type == GGUF_TYPE_##TYPE)                                                             \
    {                                                                                              \
        struct kern_block_##name block;                                                            \
        kern_##name##_pack(x, &block);                                                             \
        kern_##name##_group(&block, 0, x);                                                         \
    }

/**
 * Round n numbers in place, at most kern_round_step(): blocks, or any n of a type without. Q8_KV
 * has a function of its own. scale: the tensor's, of floats of 8 bits (kern_round_is_scaled()).
 * NVFP4 has the scale 1 of the tensor.
 */
KERN_INLINE void kern_round_scaled(enum gguf_type type, float *x, size_t n, float scale)
{
    if (type == GGUF_TYPE_F16)
        for (size_t i = 0; i < n; i++)
            x[i] = kern_half_to_float(kern_half_from_float(x[i]));
    else if (type == GGUF_TYPE_BF16)
        for (size_t i = 0; i < n; i++)
            x[i] = kern_float_from_bits((uint32_t)kern_bf16_from_float(x[i]) << 16);
    else if (type == GGUF_TYPE_F8_E4M3)
        kern_round_e4m3(x, n, scale);
    else if (type == GGUF_TYPE_F8_E5M2)
        kern_round_e5m2(x, n, scale);
    else if (type == GGUF_TYPE_MXFP8)
        kern_round_mxfp8(x);
    else if (type == GGUF_TYPE_NVFP4)
        for (size_t i = 0; i < n; i += KERN_NVFP4_RUN)
            kern_round_nvfp4(x + i, 1.0f);
    else if (type == GGUF_TYPE_FP8_DS_MLA)
        kern_round_ds_mla(x);
    KERN_ROUND_BLOCKS(KERN_ROUND_THROUGH)
}

/** kern_round_scaled with the scale 1. */
KERN_INLINE void kern_round_numbers(enum gguf_type type, float *x, size_t n)
{
    kern_round_scaled(type, x, n, 1.0f);
}

/**
 * A turn by the orthonormal Walsh-Hadamard matrix of n_turn rows: steps of half = 1, 2, 4, ...
 * n_turn / 2, each of them of x[i] and x[i + half] for all i without the bit of `half`. The last
 * step has the scale n_turn^(-1/2), the others 1.
 */
KERN_INLINE void kern_turn_pair(float *x, size_t half, float scale)
{
    float a = x[0], b = x[half];
    x[0] = (a + b) * scale;
    x[half] = (a - b) * scale;
}

#endif
