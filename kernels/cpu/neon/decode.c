/* Decoders with NEON: halves, floats of a byte, and types without large codebooks. */
#include "kernels/cpu/neon/decode_steps.h"

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

#define E5M2_HALF(code) ((code) << 8)
#define FLOATS_OF_8_BITS(name, half, factor)                                                       \
    void kern_neon_decode_##name(const void *blocks, float *y, size_t n)                           \
    {                                                                                              \
        const struct kern_block_##name *block = blocks;                                            \
        for (const float *end = y + n; y < end; y += 32, block++) {                                \
            uint16_t halves[32];                                                                   \
            for (unsigned i = 0; i < 32; i++)                                                      \
                halves[i] = (uint16_t)half(block->qs[i]);                                          \
            kern_neon_decode_f16(halves, y, 32);                                                   \
            float d = kern_load_float(block->d);                                                   \
            for (unsigned i = 0; i < 32; i++)                                                      \
                y[i] = d * (y[i] * (factor));                                                      \
        }                                                                                          \
    }
FLOATS_OF_8_BITS(f8_e4m3, kern_e4m3_half, 0x1p8f)
FLOATS_OF_8_BITS(f8_e5m2, E5M2_HALF, 1.0f)

/** A byte to a weight, or a nibble: those of the low bits are the first half of a group. */
#define BYTE   vld1q_u8(block->qs + 32 * group + 16 * half)
#define NIBBLE field(block->qs + 16 * group, 4 * half, 15)
SCALED(q8_0, BYTE)
SCALED(q8_kv, BYTE)
SCALED(q8_k_r8, BYTE)
SCALED(q4_0, minus(NIBBLE, 8))
WITH_MIN(q4_1, NIBBLE)
SCALED(iq4_nl, vqtbl1q_s8(vld1q_s8(kern_iq4_values), NIBBLE))
#define IQ4_XS_SUB(block, r) kern_iq4_xs_scale(block, (r) / 2)
WIDE(iq4_xs, IQ4_XS_SUB, vqtbl1q_s8(vld1q_s8(kern_iq4_values), NIBBLE))
SCALED(mxfp4, vqtbl1q_s8(vld1q_s8(kern_fp4_values), NIBBLE))

/** Nibbles of eight weights and the next eight. */
DECODE_INLINE uint8x16_t nvfp4_codes(const uint8_t qs[8])
{
    uint8x8_t bytes = vld1_u8(qs);
    return vcombine_u8(vand_u8(bytes, vdup_n_u8(15)), vshr_n_u8(bytes, 4));
}
SCALED(nvfp4, vqtbl1q_s8(vld1q_s8(kern_fp4_values), nvfp4_codes(block->qs + 16 * group + 8 * half)))

#define FIFTH_BITS vandq_u8(spread_bits(kern_load_u32(block->qh), half), vdupq_n_u8(16))
SCALED(q5_0, minus(vorrq_u8(NIBBLE, FIFTH_BITS), 16))
WITH_MIN(q5_1, vorrq_u8(NIBBLE, FIFTH_BITS))

/** Upper bits of elements j, j + 16, j + 8 and j + 24. */
DECODE_INLINE uint8x16_t q6_0_high(const uint8_t qh[8], unsigned half)
{
    uint8x8_t packed = vshl_u8(vld1_u8(qh), vdup_n_s8((int8_t)(-2 * (int)half)));
    return vandq_u8(vcombine_u8(packed, vshr_n_u8(packed, 4)), vdupq_n_u8(3));
}
SCALED(q6_0, minus(vsliq_n_u8(NIBBLE, q6_0_high(block->qh, half), 4), 32))

#define Q2_K_SUB(block, r) ((block)->scales[r] & 15)
#define Q3_K_SUB(block, r) (kern_q3_k_scale((block)->scales, r) - 32)
#define Q4_K_SUB(block, r) kern_k_scale((block)->scales, (r) / 2)
#define TWO_BITS           two_bits(block->qs, group, half)
#define FOUR_BITS          four_bits(block->qs, group, half)
WIDE_WITH_MIN(q2_k, Q2_K_SUB, TWO_BITS)
WIDE(q3_k, Q3_K_SUB, minus(vorrq_u8(TWO_BITS, one_more(block->hmask, group, half, 4)), 4))
WIDE_WITH_MIN(q4_k, Q4_K_SUB, FOUR_BITS)
WIDE_WITH_MIN(q5_k, Q4_K_SUB, vorrq_u8(FOUR_BITS, one_more(block->qh, group, half, 16)))

/** Groups 0 and 2 share 32 bytes, 1 and 3 do. */
#define Q6_K_LOW                                                                                   \
    field(block->ql + 64 * (group / 4) + 32 * (group % 2) + 16 * half, 4 * (group % 4 / 2), 15)
#define Q6_K_SUB(block, r) (int8_t)(block)->scales[r]
WIDE(q6_k, Q6_K_SUB, minus(vsliq_n_u8(Q6_K_LOW, two_bits(block->qh, group, half), 4), 32))

/** Four codes to a byte, one after the other. */
DECODE_INLINE uint8x16_t q2_0_codes(const uint8_t qs[4])
{
    const uint8x16_t lanes = {0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3};
    const int8x16_t down = {0, -2, -4, -6, 0, -2, -4, -6, 0, -2, -4, -6, 0, -2, -4, -6};
    uint8x16_t bytes = (uint8x16_t)vdupq_n_u32(kern_load_u32(qs));
    return vandq_u8(vshlq_u8(vqtbl1q_u8(bytes, lanes), down), vdupq_n_u8(3));
}
SCALED(q2_0, minus(q2_0_codes(block->qs + 8 * group + 4 * half), 1))
WIDE(tq2_0, NO_SUB, minus(TWO_BITS, 1))
SCALED(i2_s, minus(field(block->qs + 16 * half, 6 - 2 * group, 3), 1))
SCALED(iq2_bn, minus(field(block->qs, 4 * group + 2 * half, 3), 1))
SCALED(q1_0,
       vorrq_u8(vmvnq_u8(spread_bits(kern_load_u32(block->qs + 4 * group), half)), vdupq_n_u8(1)))

/** -1, 0 or 1: the base-3 digits of fractions of 256 after `by`, a power of 3. */
DECODE_INLINE uint8x16_t digits(uint8x16_t fractions, uint8x16_t by)
{
    fractions = vmulq_u8(fractions, by);
    return minus(vshrq_n_u8(vhaddq_u8(fractions, vshrq_n_u8(fractions, 1)), 6), 1);
}

/** Digits 0 to 4 of two runs of sixteen bytes in turn, of a third one, and 0 to 3 of four bytes. */
DECODE_INLINE uint8x16_t tq1_0_digits(const struct kern_block_tq1_0 *block, unsigned run)
{
    static const uint8_t powers[5] = {1, 3, 9, 27, 81};
    const uint8x16_t by_fours = {1, 1, 1, 1, 3, 3, 3, 3, 9, 9, 9, 9, 27, 27, 27, 27};
    if (run == 15)
        return digits((uint8x16_t)vdupq_n_u32(kern_load_u32(block->qh)), by_fours);
    return digits(vld1q_u8(block->qs + (run < 10 ? run % 2 * 16 : 32)),
                  vdupq_n_u8(powers[run < 10 ? run / 2 : run - 10]));
}
WIDE(tq1_0, NO_SUB, tq1_0_digits(block, 2 * group + half))

/** Five digits of each of three bytes, the last one first, and one of the block's last byte. */
DECODE_INLINE uint8x16_t iq1_bn_digits(const struct kern_block_iq1_bn *block, unsigned run)
{
    static const uint8_t powers[4] = {81, 27, 9, 3};
    uint8x16_t lanes = {2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 4, 4, 4, 4, 4, 0};
    uint8x16_t by = {81, 27, 9, 3, 1, 81, 27, 9, 3, 1, 81, 27, 9, 3, 1, 0};
    uint8_t bytes[16] = {0};
    memcpy(bytes, block, sizeof *block);
    lanes = vsetq_lane_u8(14, vaddq_u8(lanes, vdupq_n_u8((uint8_t)(3 * run))), 15);
    return digits(vqtbl1q_u8(vld1q_u8(bytes), lanes), vsetq_lane_u8(powers[run], by, 15));
}
SCALED(iq1_bn, iq1_bn_digits(block, 2 * group + half))
