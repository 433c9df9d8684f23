/* Decoders with NEON: ik_llama.cpp's K, KS, KL and KT types. */
#include "kernels/cpu/neon/decode_steps.h"

/** Integers above the first table of values by `shift` where a run has the second. */
#define TWO_TABLES(name, values, is_second, shift)                                                 \
    SCALED(name, vaddq_s8(values, vdupq_n_s8((is_second) ? (shift) : 0)))

#define RUN_BIT (kern_load_u16(block->extra) >> (2 * group + half) & 1)

DECODE_INLINE int8x16_t ik2(uint8x16_t codes)
{
    uint32_t values = kern_load_u32((const uint8_t *)kern_ik2_values);
    return vqtbl1q_s8((int8x16_t)vdupq_n_u32(values), codes);
}
#define IK2 ik2(two_bits(block->qs, group, half))
TWO_TABLES(iq2_k, IK2, RUN_BIT, KERN_IK2_SHIFT)
TWO_TABLES(iq2_ks, IK2, block->extra[0] >> group & 1, KERN_IK2_SHIFT)

#define IK3                                                                                        \
    vqtbl1q_s8(vcombine_s8(vld1_s8(kern_ik3_values), vdup_n_s8(0)),                                \
               vorrq_u8(two_bits(block->qs, group, half), one_more(block->qh, group, half, 4)))
TWO_TABLES(iq3_k, IK3, RUN_BIT, KERN_IK3_SHIFT)
TWO_TABLES(iq3_ks, IK3, block->extra[1] >> group & 1, KERN_IK3_SHIFT)

#define IK4(bytes) vqtbl1q_s8(vld1q_s8(kern_iq4_values), bits_of(bytes, 4 * half, 15))
TWO_TABLES(iq4_k, IK4(vld1q_u8(block->qs + 16 * group)), RUN_BIT, KERN_IK4_SHIFT)
TWO_TABLES(iq4_ks, IK4(vld1q_u8(block->qs + 16 * group)), block->scales[group] & 1, KERN_IK4_SHIFT)

/** The bytes of IQ4_KS. */
DECODE_INLINE uint8x16_t iq4_kss_bytes(const uint8_t words[16])
{
    uint16x8_t x = vandq_u16((uint16x8_t)vld1q_u8(words), vdupq_n_u16(0xfffe));
    return (uint8x16_t)veorq_u16(x, vshrq_n_u16(x, 1));
}
TWO_TABLES(iq4_kss, IK4(iq4_kss_bytes(block->words + 16 * group)), block->words[16 * group] & 1,
           KERN_IK4_SHIFT)

#define IK5                                                                                        \
    vqtbl2q_s8(vld1q_s8_x2(kern_ik5_values),                                                       \
               vorrq_u8(four_bits(block->qs, group, half), one_more(block->qh, group, half, 16)))
TWO_TABLES(iq5_k, IK5, RUN_BIT, KERN_IK5_SHIFT)
TWO_TABLES(iq5_ks, IK5, block->scales[group] & 1, KERN_IK5_SHIFT)

#define IK6_CODES vsliq_n_u8(four_bits(block->qs, group, half), two_bits(block->qh, group, half), 4)
TWO_TABLES(iq6_k, vqtbl4q_s8(vld1q_s8_x4(kern_ik6_values), IK6_CODES), RUN_BIT, 1)

/** A code of five bits is two neighbours. */
DECODE_INLINE int8x16_t iq2_kl_values(const struct kern_block_iq2_kl *block, unsigned group,
                                      unsigned half)
{
    int8x16x2_t low = vld2q_s8(kern_ik_pairs[0]), high = vld2q_s8(kern_ik_pairs[16]);
    uint8x16_t codes = vorrq_u8(field(block->qs + 16 * (group / 2), 4 * (group % 2), 15),
                                one_more(block->qh, group, 0, 16));
    int8x16_t even = vqtbl2q_s8((int8x16x2_t){{low.val[0], high.val[0]}}, codes);
    int8x16_t odd = vqtbl2q_s8((int8x16x2_t){{low.val[1], high.val[1]}}, codes);
    return half == 0 ? vzip1q_s8(even, odd) : vzip2q_s8(even, odd);
}
SCALED(iq2_kl, iq2_kl_values(block, group, half))

/** Powers of the trellis's factor: x times them are the next four of x. */
#define F1 KERN_TRELLIS_FACTOR
#define F2 ((uint32_t)(F1 * F1))
#define F4 ((uint32_t)(F2 * F2))

/** Four numbers after each of four starts: sums of bytes. */
DECODE_INLINE uint8x16_t trellis(uint32x4_t starts)
{
    const uint32x4_t powers = {F1, F2, F2 * F1, F4};
    const uint8x16_t mask = vdupq_n_u8(0x3f);
    uint8x16_t a = vandq_u8((uint8x16_t)vmulq_laneq_u32(powers, starts, 0), mask);
    uint8x16_t b = vandq_u8((uint8x16_t)vmulq_laneq_u32(powers, starts, 1), mask);
    uint8x16_t c = vandq_u8((uint8x16_t)vmulq_laneq_u32(powers, starts, 2), mask);
    uint8x16_t d = vandq_u8((uint8x16_t)vmulq_laneq_u32(powers, starts, 3), mask);
    return minus(vpaddq_u8(vpaddq_u8(a, b), vpaddq_u8(c, d)), 126);
}

/** Eight numbers of each of two of the four indices of a group. */
DECODE_INLINE uint8x16_t trellis_octets(uint32x4_t indices, unsigned half)
{
    const uint32x4_t ahead = {1, F4, 1, F4};
    uint32x4_t starts = vaddq_u32(indices, vdupq_n_u32(KERN_TRELLIS_START));
    starts = half == 0 ? vzip1q_u32(starts, starts) : vzip2q_u32(starts, starts);
    return trellis(vmulq_u32(starts, ahead));
}

/** A number of each of four bytes. */
DECODE_INLINE uint32x4_t four_numbers(const uint8_t bytes[4])
{
    uint8x8_t x = (uint8x8_t)vdup_n_u32(kern_load_u32(bytes));
    return vmovl_u16(vget_low_u16(vmovl_u8(x)));
}

/** Four indices: bytes, nibbles of other bytes above them, and bits of `high` above these. */
DECODE_INLINE uint32x4_t join_indices(const uint8_t ql[4], const uint8_t qh[4], unsigned nibble,
                                      uint32_t high, int32x4_t shift, uint32_t mask)
{
    uint32x4_t middle = vshlq_u32(four_numbers(qh), vdupq_n_s32(-(int)(4 * nibble)));
    uint32x4_t low = vsliq_n_u32(four_numbers(ql), vandq_u32(middle, vdupq_n_u32(15)), 8);
    uint32x4_t top = vandq_u32(vshlq_u32(vdupq_n_u32(high), shift), vdupq_n_u32(mask));
    return vsliq_n_u32(low, top, 12);
}

#define IQ1_KT_INDICES                                                                             \
    join_indices(block->ql + 4 * group, block->qh + 4 * group % 16, group / 4, block->sh[group],   \
                 (int32x4_t){-4, -5, -6, -7}, 1)
SCALED(iq1_kt, trellis_octets(IQ1_KT_INDICES, half))

#define QL_OCTETS trellis_octets(vmovl_u16((uint16x4_t)vld1_u8(block->ql + 8 * group)), half)
SCALED(iq2_kt, QL_OCTETS)

HALF(iq3_kt,
     negate((uint8x16_t)vabsq_s8((int8x16_t)QL_OCTETS), one_more(block->qh, group, half, 255)))
STRAIGHT(iq3_kt, 8, false, SCALES, 8, NO_SUB)
STRAIGHT(iq3_kt, 16, false, SCALES, 8, NO_SUB)

/** Its zeros have signs, which integers have not. */
void kern_neon_decode_iq3_kt(const void *blocks, float *y, size_t n)
{
    kern_iq3_kt_row(blocks, y, n);
}

/** Runs k to k + 3, whose three upper bits are after s's eight lowest. */
DECODE_INLINE uint8x16_t iq4_kt_values(const struct kern_block_iq4_kt *block, unsigned k)
{
    uint32_t s = kern_load_u32(block->s + k / 8 * 4);
    uint32x4_t indices = join_indices(block->ql + k, block->qh + k % 32, k / 32, s >> 3 * (k % 8),
                                      (int32x4_t){-8, -11, -14, -17}, 7);
    return trellis(vaddq_u32(indices, vdupq_n_u32(KERN_TRELLIS_START + ((s & 1) << 15))));
}
SCALED(iq4_kt, iq4_kt_values(block, 8 * group + 4 * half))
