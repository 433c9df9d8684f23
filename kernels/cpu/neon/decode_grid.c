/* Decoders with NEON: IQ1, IQ2 and IQ3, whose codes are entries of codebooks. */
#include "kernels/cpu/neon/decode_steps.h"

/** The codes of two bits of two entries of eight. */
DECODE_INLINE uint8x16_t octet_codes(uint16_t first, uint16_t second)
{
    uint64x2_t x = {first, second};
    x = vsliq_n_u64(x, x, 24);
    x = (uint64x2_t)vsliq_n_u32((uint32x4_t)x, (uint32x4_t)x, 12);
    x = (uint64x2_t)vsliq_n_u16((uint16x8_t)x, (uint16x8_t)x, 6);
    return vandq_u8((uint8x16_t)x, vdupq_n_u8(3));
}

/** Sign bytes of their lower seven bits: each gets an even number of bits. */
DECODE_INLINE uint32_t even_signs(uint32_t bytes)
{
    uint32_t parity = bytes ^ bytes >> 4;
    parity ^= parity >> 2;
    parity ^= parity >> 1;
    return bytes | (parity & 0x01010101u) << 7;
}

/** Those of a word with four sign indices, from its lowest bits on. */
DECODE_INLINE uint32_t packed_signs(const uint8_t word[4])
{
    uint32_t x = kern_load_u32(word);
    return even_signs((x & 0x7f) | (x & 0x3f80) << 1 | (x & 0x1fc000) << 2 | (x & 0xfe00000) << 3);
}

/** indices: of two entries; signs: those of a group. */
DECODE_INLINE uint8x16_t iq2_values(const uint16_t *codes, uint32_t first, uint32_t second,
                                    uint32_t signs, unsigned half)
{
    uint8x16_t values = (uint8x16_t)vdupq_n_u32(kern_load_u32(kern_iq2_values));
    return negate(vqtbl1q_u8(values, octet_codes(codes[first], codes[second])),
                  spread_bits(signs, half));
}

#define IQ2_XXS_SUB(block, r) 1 + 2 * ((block)->qs[8 * ((r) / 2) + 7] >> 4)
WIDE(iq2_xxs, IQ2_XXS_SUB,
     iq2_values(kern_iq2_xxs_codes, block->qs[8 * group + 2 * half],
                block->qs[8 * group + 2 * half + 1], packed_signs(block->qs + 8 * group + 4), half))

DECODE_INLINE uint8x16_t iq2_xs_values(uint32_t first, uint32_t second)
{
    uint32_t signs = even_signs(first >> 9 | second >> 9 << 8);
    return iq2_values(kern_iq2_xs_codes, first & 511, second & 511, signs, 0);
}
#define IQ2_SUB(block, r) (int)(1 + 2 * kern_load_nibble((block)->scales, r))
WIDE(iq2_xs, IQ2_SUB,
     iq2_xs_values(kern_load_u16(block->qs + 8 * group + 4 * half),
                   kern_load_u16(block->qs + 8 * group + 4 * half + 2)))

#define IQ2_S_INDEX(i)                                                                             \
    block->qs[4 * group + 2 * half + (i)] | (block->qh[group] >> (4 * half + 2 * (i)) & 3u) << 8
WIDE(iq2_s, IQ2_SUB,
     iq2_values(kern_iq2_s_codes, IQ2_S_INDEX(0), IQ2_S_INDEX(1),
                kern_load_u32(block->signs + 4 * group), half))

/** indices: lower eight bits of four; ninths: one more bit of each; signs: those of a group. */
DECODE_INLINE uint8x16_t iq3_values(const uint16_t *codes, const uint8_t values[8],
                                    const uint8_t indices[4], unsigned ninths, uint32_t signs,
                                    unsigned half)
{
    uint16_t entries[4];
    for (unsigned l = 0; l < 4; l++)
        entries[l] = codes[indices[l] | (ninths >> l & 1) << 8];
    uint32x4_t x = vmovl_u16(vld1_u16(entries)); /* three bits of an entry to a byte each */
    x = vsliq_n_u32(x, x, 10);
    x = (uint32x4_t)vsliq_n_u16((uint16x8_t)x, (uint16x8_t)x, 5);
    uint8x16_t table = vcombine_u8(vld1_u8(values), vdup_n_u8(0));
    return negate(vqtbl1q_u8(table, vandq_u8((uint8x16_t)x, vdupq_n_u8(7))),
                  spread_bits(signs, half));
}
#define IQ3_S_SUB(block, r)   (int)(1 + 2 * kern_load_nibble((block)->scales, (r) / 2))
#define IQ3_XXS_SUB(block, r) 1 + 2 * ((block)->signs_scale[4 * ((r) / 2) + 3] >> 4)
WIDE(iq3_xxs, IQ3_XXS_SUB,
     iq3_values(kern_iq3_xxs_codes, kern_iq3_xxs_values, block->qs + 8 * group + 4 * half, 0,
                packed_signs(block->signs_scale + 4 * group), half))
WIDE(iq3_s, IQ3_S_SUB,
     iq3_values(kern_iq3_s_codes, kern_iq3_s_values, block->qs + 8 * group + 4 * half,
                block->qh[group] >> 4 * half, kern_load_u32(block->signs + 4 * group), half))

/** Eighths of two octets: 8 * (code - 1) + 1, or - 1. high: a nibble each, three more bits of the
 * index and, if it is - 1, the fourth. */
DECODE_INLINE uint8x16_t iq1_values(const uint8_t low[2], uint32_t high)
{
    uint8x16_t codes = octet_codes(kern_iq1_codes[low[0] | (high & 7) << 8],
                                   kern_iq1_codes[low[1] | (high & 0x70) << 4]);
    uint8x16_t from = vcombine_u8(vdup_n_u8(high & 8 ? 9 : 7), vdup_n_u8(high & 0x80 ? 9 : 7));
    return vsubq_u8(vshlq_n_u8(codes, 3), from);
}

/** Such nibbles, of a word as in IQ1_S. */
DECODE_INLINE uint32_t iq1_s_nibbles(uint32_t word, unsigned half)
{
    uint32_t high = word >> 6 * half;
    return (high & 7) | (high & 0x38) << 1 | (word >> 15) * 0x88;
}
#define IQ1_S_SUB(block, r) (2 * ((block)->qh[(r) / 2 * 2 + 1] >> 4 & 7) + 1)
#define IQ1_M_SUB(block, r)                                                                        \
    (int)(2 * (kern_load_u16((block)->scales + (r) / 4 * 2) >> (r) % 4 * 3 & 7) + 1)
#define IQ1_LOW (block->qs + 4 * group + 2 * half)
WIDE(iq1_s, IQ1_S_SUB,
     iq1_values(IQ1_LOW, iq1_s_nibbles(kern_load_u16(block->qh + 2 * group), half)))
SCALED(iq1_s_r4, iq1_values(IQ1_LOW, iq1_s_nibbles(kern_load_u16(block->qh), half)))
WIDE(iq1_m, IQ1_M_SUB, iq1_values(IQ1_LOW, block->qh[2 * group + half]))
SCALED(iq1_m_r4, iq1_values(IQ1_LOW, block->qh[half]))
