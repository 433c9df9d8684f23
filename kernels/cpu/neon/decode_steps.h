/**
 * Steps that decoders share, and the functions that a type has, made of an expression: its integers
 * 32 * group + 16 * half and the next fifteen, of `block`.
 */
#ifndef KERNELS_CPU_NEON_DECODE_STEPS_H
#define KERNELS_CPU_NEON_DECODE_STEPS_H

#include <arm_neon.h>

#include "kernels/cpu/neon/decode.h"

#define DECODE_INLINE static inline __attribute__((always_inline, unused))

/** The bits of `mask` of sixteen bytes, after a shift down. */
DECODE_INLINE uint8x16_t bits_of(uint8x16_t bytes, unsigned shift, uint8_t mask)
{
    int8x16_t down = vdupq_n_s8((int8_t) - (int)shift);
    return vandq_u8(vshlq_u8(bytes, down), vdupq_n_u8(mask));
}

DECODE_INLINE uint8x16_t field(const uint8_t *p, unsigned shift, uint8_t mask)
{
    return bits_of(vld1q_u8(p), shift, mask);
}

/** Codes of two bits: two halves of 128 elements with 32 bytes each. */
DECODE_INLINE uint8x16_t two_bits(const uint8_t *qs, unsigned group, unsigned half)
{
    return field(qs + 32 * (group / 4) + 16 * half, 2 * (group % 4), 3);
}

/** Codes of four bits: two groups have 32 bytes. */
DECODE_INLINE uint8x16_t four_bits(const uint8_t *qs, unsigned group, unsigned half)
{
    return field(qs + 32 * (group / 2) + 16 * half, 4 * (group % 2), 15);
}

/** Bit g of byte j is a bit more of element j of group g: `value` of its code. */
DECODE_INLINE uint8x16_t one_more(const uint8_t *qh, unsigned group, unsigned half, uint8_t value)
{
    uint8x16_t bit = vdupq_n_u8((uint8_t)(1 << group));
    return vandq_u8(vtstq_u8(vld1q_u8(qh + 16 * half), bit), vdupq_n_u8(value));
}

/** All bits of a byte for each bit that is set, of the first sixteen or of the next. */
DECODE_INLINE uint8x16_t spread_bits(uint32_t bits, unsigned half)
{
    const uint8x16_t lanes = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1};
    const uint8x16_t bit = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    uint8x16_t bytes = (uint8x16_t)vdupq_n_u32(bits);
    return vtstq_u8(vqtbl1q_u8(bytes, vaddq_u8(lanes, vdupq_n_u8((uint8_t)(2 * half)))), bit);
}

DECODE_INLINE uint8x16_t minus(uint8x16_t q, uint8_t n)
{
    return vsubq_u8(q, vdupq_n_u8(n));
}

/** Each integer, or where the lanes of `negative` are set what it is below 0. */
DECODE_INLINE uint8x16_t negate(uint8x16_t q, uint8x16_t negative)
{
    return vsubq_u8(veorq_u8(q, negative), negative);
}

#define store8(out, q, sub) vst1q_s8(out, q)

DECODE_INLINE void store16(int16_t *out, int8x16_t q, int sub)
{
    vst1q_s16(out, vmulq_n_s16(vmovl_s8(vget_low_s8(q)), (int16_t)sub));
    vst1q_s16(out + 8, vmulq_n_s16(vmovl_high_s8(q), (int16_t)sub));
}

/** y = scale * q + min; any_min: else it is not added. */
DECODE_INLINE void store_floats(float *y, int8x16_t q, float scale, bool any_min, float min)
{
    int16x8_t words[2] = {vmovl_s8(vget_low_s8(q)), vmovl_high_s8(q)};
    for (size_t i = 0; i < 4; i++) {
        int16x8_t w = words[i / 2];
        int32x4_t four = i % 2 ? vmovl_high_s16(w) : vmovl_s16(vget_low_s16(w));
        float32x4_t x = vmulq_n_f32(vcvtq_f32_s32(four), scale);
        vst1q_f32(y + 4 * i, any_min ? vaddq_f32(x, vdupq_n_f32(min)) : x);
    }
}

/** <type>_elems: of a block; <type>_run: that share a scale. */
#define SIZES(TYPE, name, id, elems, bytes, prefix, rows, run, most)                               \
    name##_elems = (elems), name##_run = (run),
enum { KERN_INTEGER_FORMATS(SIZES, SIZES) };

/** <type>_half(): the expression. */
#define HALF(name, expression)                                                                     \
    DECODE_INLINE int8x16_t name##_half(const struct kern_block_##name *block, unsigned group,     \
                                        unsigned half)                                             \
    {                                                                                              \
        (void)group, (void)half;                                                                   \
        return (int8x16_t)(expression);                                                            \
    }

/** A type's decoder. any_min: it has minima; scales_of: what stores its scales, and them. Both
 * halves of a group are there before one is stored, so that what they share is loaded once. */
#define FLOATS(name, any_min, scales_of)                                                           \
    void kern_neon_decode_##name(const void *blocks, float *y, size_t n)                           \
    {                                                                                              \
        const struct kern_block_##name *block = blocks;                                            \
        for (const float *end = y + n; y < end; block++) {                                         \
            float scales[name##_elems / name##_run], mins[name##_elems / name##_run] = {0};        \
            scales_of(name);                                                                       \
            for (unsigned g = 0; g < name##_elems / 32; g++) {                                     \
                const int8x16_t q[2] = {name##_half(block, g, 0), name##_half(block, g, 1)};       \
                for (unsigned half = 0; half < 2; half++, y += 16) {                               \
                    unsigned i = (32 * g + 16 * half) / name##_run;                                \
                    store_floats(y, q[half], scales[i], any_min, mins[i]);                         \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

/** Its way to integers of 8 or 16 bits. sub_of: the sub-scale of run r of sixteen in them. */
#define STRAIGHT(name, bits, any_min, scales_of, n_scales, sub_of)                                 \
    void kern_neon_straight##bits##_##name(const void *blocks, size_t n, void *integers,           \
                                           float *scales, float *mins)                             \
    {                                                                                              \
        (void)mins;                                                                                \
        const struct kern_block_##name *block = blocks;                                            \
        for (int##bits##_t *out = integers, *end = out + n; out < end; block++) {                  \
            for (unsigned g = 0; g < name##_elems / 32; g++, out += 32) {                          \
                const int8x16_t q[2] = {name##_half(block, g, 0), name##_half(block, g, 1)};       \
                store##bits(out, q[0], sub_of(block, 2 * g));                                      \
                store##bits(out + 16, q[1], sub_of(block, 2 * g + 1));                             \
            }                                                                                      \
            scales_of(name);                                                                       \
            scales += (n_scales);                                                                  \
            if (any_min)                                                                           \
                mins += name##_elems / name##_run;                                                 \
        }                                                                                          \
    }

#define NO_SUB(block, r)     1
#define SCALES(name)         kern_##name##_scales(block, scales)
#define SCALES_AND_MIN(name) kern_##name##_scales(block, scales, mins)
#define BLOCK_SCALE(name)                                                                          \
    for (unsigned i = 0; i < 4; i++)                                                               \
    scales[i] = kern_##name##_block_scale(block)
#define BLOCK_SCALE_AND_MIN(name)                                                                  \
    float narrow[16];                                                                              \
    kern_##name##_scales(block, narrow, mins);                                                     \
    BLOCK_SCALE(name)

/** All of a type; wide: of its integers of 16 bits, where sub-scales may be in them. */
#define TYPE(name, any_min, scales_of, wide_scales_of, n_wide_scales, wide_sub_of, expression)     \
    HALF(name, expression)                                                                         \
    FLOATS(name, any_min, scales_of)                                                               \
    STRAIGHT(name, 8, any_min, scales_of, name##_elems / name##_run, NO_SUB)                       \
    STRAIGHT(name, 16, any_min, wide_scales_of, n_wide_scales, wide_sub_of)
#define SCALED(name, expression)                                                                   \
    TYPE(name, false, SCALES, SCALES, name##_elems / name##_run, NO_SUB, expression)
#define WITH_MIN(name, expression)                                                                 \
    TYPE(name, true, SCALES_AND_MIN, SCALES_AND_MIN, name##_elems / name##_run, NO_SUB, expression)
#define WIDE(name, sub_of, expression) TYPE(name, false, SCALES, BLOCK_SCALE, 4, sub_of, expression)
#define WIDE_WITH_MIN(name, sub_of, expression)                                                    \
    TYPE(name, true, SCALES_AND_MIN, BLOCK_SCALE_AND_MIN, 4, sub_of, expression)

#endif
