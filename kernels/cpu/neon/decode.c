/* Decoders with NEON: halves, and the types of one byte or one code of 16 values to a weight that
 * models have most, as float32 and straight to integers (kernels/quant/integers.h). */
#include <arm_neon.h>
#include <string.h>

#include "kernels/cpu/neon/decode.h"
#include "kernels/quant/f16.h"
#include "kernels/quant/iq4_nl.h"
#include "kernels/quant/iq4_xs.h"
#include "kernels/quant/mxfp4.h"
#include "kernels/quant/nvfp4.h"
#include "kernels/quant/q2_k.h"
#include "kernels/quant/q3_k.h"
#include "kernels/quant/q4_0.h"
#include "kernels/quant/q4_k.h"
#include "kernels/quant/q5_k.h"
#include "kernels/quant/q6_k.h"
#include "kernels/quant/q8_0.h"

#define DECODE_INLINE static inline __attribute__((always_inline, unused))

void kern_neon_decode_f16(const void *blocks, float *y, size_t n)
{
    const uint8_t *halves = blocks;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        float16x8_t x = vreinterpretq_f16_u8(vld1q_u8(halves + 2 * i));
        vst1q_f32(y + i, vcvt_f32_f16(vget_low_f16(x)));
        vst1q_f32(y + i + 4, vcvt_high_f32_f16(x));
    }
    kern_f16_row(halves + 2 * i, y + i, n - i);
}

/** The bits of `mask` of sixteen bytes, after a shift down. */
DECODE_INLINE uint8x16_t field(const uint8_t *p, unsigned shift, uint8_t mask)
{
    int8x16_t down = vdupq_n_s8((int8_t) - (int)shift);
    return vandq_u8(vshlq_u8(vld1q_u8(p), down), vdupq_n_u8(mask));
}

/** Sixteen bytes that are two codes each, the first sixteen weights in their low bits. */
DECODE_INLINE int8x16x2_t look_up(const uint8_t *codes, const int8_t values[16])
{
    int8x16_t table = vld1q_s8(values);
    return (int8x16x2_t){
        {vqtbl1q_s8(table, field(codes, 0, 15)), vqtbl1q_s8(table, field(codes, 4, 15))}};
}

/* <type>_half(): integers 32 * group + 16 * half and the next fifteen, or <type>_integers(): 32. */
#define TWO_HALVES(name)                                                                           \
    DECODE_INLINE int8x16x2_t name##_integers(const struct kern_block_##name *block,               \
                                              unsigned group)                                      \
    {                                                                                              \
        return (int8x16x2_t){                                                                      \
            {(int8x16_t)name##_half(block, group, 0), (int8x16_t)name##_half(block, group, 1)}};   \
    }

DECODE_INLINE uint8x16_t q8_0_half(const struct kern_block_q8_0 *block, unsigned group,
                                   unsigned half)
{
    return vld1q_u8(block->qs + 32 * group + 16 * half);
}
TWO_HALVES(q8_0)

DECODE_INLINE uint8x16_t q4_0_half(const struct kern_block_q4_0 *block, unsigned group,
                                   unsigned half)
{
    return vsubq_u8(field(block->qs + 16 * group, 4 * half, 15), vdupq_n_u8(8));
}
TWO_HALVES(q4_0)

DECODE_INLINE int8x16x2_t iq4_nl_integers(const struct kern_block_iq4_nl *block, unsigned group)
{
    return look_up(block->qs + 16 * group, kern_iq4_values);
}

DECODE_INLINE int8x16x2_t iq4_xs_integers(const struct kern_block_iq4_xs *block, unsigned group)
{
    return look_up(block->qs + 16 * group, kern_iq4_values);
}

DECODE_INLINE int8x16x2_t mxfp4_integers(const struct kern_block_mxfp4 *block, unsigned group)
{
    return look_up(block->qs + 16 * group, kern_fp4_values);
}

/** Its codes are those of eight weights and the next eight. */
DECODE_INLINE int8x16x2_t nvfp4_integers(const struct kern_block_nvfp4 *block, unsigned group)
{
    int8x16x2_t q = look_up(block->qs + 16 * group, kern_fp4_values);
    return (int8x16x2_t){{(int8x16_t)vzip1q_s64((int64x2_t)q.val[0], (int64x2_t)q.val[1]),
                          (int8x16_t)vzip2q_s64((int64x2_t)q.val[0], (int64x2_t)q.val[1])}};
}

DECODE_INLINE uint8x16_t q2_k_half(const struct kern_block_q2_k *block, unsigned group,
                                   unsigned half)
{
    return field(block->qs + 32 * (group / 4) + 16 * half, 2 * (group % 4), 3);
}
TWO_HALVES(q2_k)

DECODE_INLINE uint8x16_t q3_k_half(const struct kern_block_q3_k *block, unsigned group,
                                   unsigned half)
{
    uint8x16_t low = field(block->qs + 32 * (group / 4) + 16 * half, 2 * (group % 4), 3);
    uint8x16_t high = vshlq_n_u8(field(block->hmask + 16 * half, group, 1), 2);
    return vsubq_u8(vorrq_u8(low, high), vdupq_n_u8(4));
}
TWO_HALVES(q3_k)

DECODE_INLINE uint8x16_t q4_k_half(const struct kern_block_q4_k *block, unsigned group,
                                   unsigned half)
{
    return field(block->qs + 32 * (group / 2) + 16 * half, 4 * (group % 2), 15);
}
TWO_HALVES(q4_k)

DECODE_INLINE uint8x16_t q5_k_half(const struct kern_block_q5_k *block, unsigned group,
                                   unsigned half)
{
    uint8x16_t low = field(block->qs + 32 * (group / 2) + 16 * half, 4 * (group % 2), 15);
    return vorrq_u8(low, vshlq_n_u8(field(block->qh + 16 * half, group, 1), 4));
}
TWO_HALVES(q5_k)

DECODE_INLINE uint8x16_t q6_k_half(const struct kern_block_q6_k *block, unsigned group,
                                   unsigned half)
{
    unsigned row = group % 4;
    uint8x16_t low =
        field(block->ql + 64 * (group / 4) + 32 * (row % 2) + 16 * half, 4 * (row / 2), 15);
    uint8x16_t high = field(block->qh + 32 * (group / 4) + 16 * half, 2 * row, 3);
    return vsubq_u8(vorrq_u8(low, vshlq_n_u8(high, 4)), vdupq_n_u8(32));
}
TWO_HALVES(q6_k)

/* <type>_sub(): the sub-scale of run r of sixteen, of the types where integers are times it. */
DECODE_INLINE int q2_k_sub(const struct kern_block_q2_k *block, unsigned r)
{
    return block->scales[r] & 15;
}

DECODE_INLINE int q3_k_sub(const struct kern_block_q3_k *block, unsigned r)
{
    return kern_q3_k_scale(block->scales, r) - 32;
}

DECODE_INLINE int q4_k_sub(const struct kern_block_q4_k *block, unsigned r)
{
    return kern_k_scale(block->scales, r / 2);
}

DECODE_INLINE void store_words(int16_t *out, int8x16_t q, int sub)
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

/** A type's decoder and its way to bytes, which is that to words where no sub-scale is in them. */
#define DECODERS(name, elems, run, any_min, scales_of)                                             \
    void kern_neon_decode_##name(const void *blocks, float *y, size_t n)                           \
    {                                                                                              \
        const struct kern_block_##name *block = blocks;                                            \
        for (const float *end = y + n; y < end; block++) {                                         \
            float scales[(elems) / (run)], mins[(elems) / (run)] = {0};                            \
            scales_of(name);                                                                       \
            for (unsigned g = 0; g < (elems) / 32; g++) {                                          \
                int8x16x2_t q = name##_integers(block, g);                                         \
                for (unsigned half = 0; half < 2; half++, y += 16) {                               \
                    unsigned i = (32 * g + 16 * half) / (run);                                     \
                    store_floats(y, q.val[half], scales[i], any_min, mins[i]);                     \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    void kern_neon_straight8_##name(const void *blocks, size_t n, void *integers, float *scales,   \
                                    float *mins)                                                   \
    {                                                                                              \
        const struct kern_block_##name *block = blocks;                                            \
        for (int8_t *out = integers, *end = out + n; out < end; block++) {                         \
            for (unsigned g = 0; g < (elems) / 32; g++, out += 32)                                 \
                vst1q_s8_x2(out, name##_integers(block, g));                                       \
            scales_of(name);                                                                       \
            scales += (elems) / (run);                                                             \
            mins += (any_min) ? (elems) / (run) : 0;                                               \
        }                                                                                          \
    }

/** The way to words. */
#define WORDS(name, elems, run, any_min, sub_of, scales_of, n_scales)                              \
    void kern_neon_straight16_##name(const void *blocks, size_t n, void *integers, float *scales,  \
                                     float *mins)                                                  \
    {                                                                                              \
        const struct kern_block_##name *block = blocks;                                            \
        for (int16_t *out = integers, *end = out + n; out < end; block++) {                        \
            for (unsigned g = 0; g < (elems) / 32; g++, out += 32) {                               \
                int8x16x2_t q = name##_integers(block, g);                                         \
                store_words(out, q.val[0], sub_of(block, 2 * g));                                  \
                store_words(out + 16, q.val[1], sub_of(block, 2 * g + 1));                         \
            }                                                                                      \
            scales_of(name);                                                                       \
            scales += (n_scales);                                                                  \
            mins += (any_min) ? (elems) / (run) : 0;                                               \
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

#define SCALED(TYPE, name, elems, run)                                                             \
    DECODERS(name, elems, run, false, SCALES)                                                      \
    WORDS(name, elems, run, false, NO_SUB, SCALES, (elems) / (run))
KERN_NEON_SCALED(SCALED)
DECODERS(q5_k, 256, 32, true, SCALES_AND_MIN)
WORDS(q5_k, 256, 32, true, NO_SUB, SCALES_AND_MIN, 8)
DECODERS(q2_k, 256, 16, true, SCALES_AND_MIN)
WORDS(q2_k, 256, 16, true, q2_k_sub, BLOCK_SCALE_AND_MIN, 4)
DECODERS(q3_k, 256, 16, false, SCALES)
WORDS(q3_k, 256, 16, false, q3_k_sub, BLOCK_SCALE, 4)
DECODERS(q4_k, 256, 32, true, SCALES_AND_MIN)
WORDS(q4_k, 256, 32, true, q4_k_sub, BLOCK_SCALE_AND_MIN, 4)
