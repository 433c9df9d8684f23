#include "kernels/cpu/avx2/scales_ik.h"

#include "kernels/cpu/avx2/expand.h"

const uint8_t kern_ik_halves[2][32] = {
    {193, 193, 216, 216, 216, 216, 233, 233, 233, 233, 233, 246, 246, 246, 246, 1,
     1,   1,   1,   1,   13,  13,  13,  13,  13,  28,  28,  28,  28,  28,  47,  47},
    {233, 13, 193, 246, 13,  47,  216, 233, 1,  13,  28,  193, 1,  13, 47,  233,
     246, 1,  13,  28,  216, 233, 246, 1,   13, 193, 233, 1,   28, 47, 233, 13}};

/** All ones in byte i where bit i is set. */
static inline __m128i bit_bytes(uint32_t bits)
{
    const __m128i byte = _mm_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
    const __m128i bit = _mm_set1_epi64x((int64_t)0x8040201008040201);
    __m128i spread = _mm_shuffle_epi8(_mm_cvtsi32_si128((int)bits), byte);
    return _mm_cmpeq_epi8(_mm_and_si128(spread, bit), bit);
}

static inline void store_shifts(struct kern_ik_runs *out, uint32_t bits, int shift)
{
    __m128i bytes = _mm_and_si128(bit_bytes(bits), _mm_set1_epi8((char)shift));
    _mm_storeu_si128((__m128i *)out->shifts, bytes);
}

/** Nibbles of eight bytes in order. */
static inline __m128i nibbles16(const uint8_t *p)
{
    __m128i bytes = _mm_loadl_epi64((const __m128i *)p);
    __m128i both = _mm_unpacklo_epi8(bytes, _mm_srli_epi16(bytes, 4));
    return _mm_and_si128(both, _mm_set1_epi8(15));
}

void kern_avx2_iq2_k_runs(struct kern_ik_runs *out, const struct kern_block_iq2_k *block)
{
    __m128i scales = _mm_sub_epi8(nibbles16(block->scales), _mm_set1_epi8(8));
    store_scaled16(out->scales, scales, load_half8(block->d));
    store_shifts(out, kern_load_u16(block->extra), KERN_IK2_SHIFT);
}

void kern_avx2_iq3_k_runs(struct kern_ik_runs *out, const struct kern_block_iq3_k *block)
{
    __m128i nibbles = nibbles16(block->scales_l);
    __m128i odd = _mm_add_epi8(_mm_add_epi8(nibbles, nibbles), _mm_set1_epi8(1));
    __m128i negative = bit_bytes(kern_load_u16(block->scales_h));
    odd = _mm_sub_epi8(_mm_xor_si128(odd, negative), negative);
    store_scaled16(out->scales, odd, load_half8(block->d));
    store_shifts(out, kern_load_u16(block->extra), KERN_IK3_SHIFT);
}

/** Scales of six bits less 32: four and two. */
static inline __m128i scales6(const uint8_t low[8], const uint8_t high[4])
{
    /* two bits of each byte of `high` to each byte of its lane */
    __m128i pairs = _mm_cvtepu8_epi32(_mm_cvtsi32_si128((int)kern_load_u32(high)));
    pairs = _mm_or_si128(pairs, _mm_slli_epi32(pairs, 6));
    pairs = _mm_or_si128(pairs, _mm_slli_epi32(pairs, 12));
    pairs = _mm_slli_epi16(_mm_and_si128(pairs, _mm_set1_epi8(3)), 4);
    return _mm_sub_epi8(_mm_or_si128(nibbles16(low), pairs), _mm_set1_epi8(32));
}

void kern_avx2_iq4_k_runs(struct kern_ik_runs *out, const struct kern_block_iq4_k *block)
{
    store_scaled16(out->scales, scales6(block->scales_l, block->scales_h), load_half8(block->d));
    store_shifts(out, kern_load_u16(block->extra), KERN_IK4_SHIFT);
}

void kern_avx2_iq5_k_runs(struct kern_ik_runs *out, const struct kern_block_iq5_k *block)
{
    store_scaled16(out->scales, scales6(block->scales_l, block->scales_h), load_half8(block->d));
    store_shifts(out, kern_load_u16(block->extra), KERN_IK5_SHIFT);
}

void kern_avx2_iq6_k_runs(struct kern_ik_runs *out, const struct kern_block_iq6_k *block)
{
    store_scaled16(out->scales, load16(block->scales), load_half8(block->d));
    store_shifts(out, kern_load_u16(block->extra), 1);
}

/** The scales of eight groups: bytes times d. */
static inline void store_groups(struct kern_ik_runs *out, __m128i scales, __m256 d)
{
    _mm256_storeu_ps(out->scales, _mm256_mul_ps(d, low_octet_float(scales)));
}

/** Scales in bits 1..7 plus 127; bit 0 picks the table. */
static inline void store_ks(struct kern_ik_runs *out, __m128i bytes, const uint8_t *d, int shift)
{
    __m128i one = _mm_set1_epi8(1);
    __m128i scales = _mm_sub_epi8(_mm_andnot_si128(one, bytes), _mm_set1_epi8(127));
    store_groups(out, scales, _mm256_set1_ps(kern_load_float(d)));
    bytes =
        _mm_and_si128(_mm_cmpeq_epi8(_mm_and_si128(bytes, one), one), _mm_set1_epi8((char)shift));
    _mm_storeu_si128((__m128i *)out->shifts, bytes);
}

void kern_avx2_iq4_ks_runs(struct kern_ik_runs *out, const struct kern_block_iq4_ks *block)
{
    store_ks(out, _mm_loadl_epi64((const __m128i *)block->scales), block->d, KERN_IK4_SHIFT);
}

void kern_avx2_iq5_ks_runs(struct kern_ik_runs *out, const struct kern_block_iq5_ks *block)
{
    store_ks(out, _mm_loadl_epi64((const __m128i *)block->scales), block->d, KERN_IK5_SHIFT);
}

/** The lowest bits of a group's eight words are its byte: those of four words to the signs of each.
 */
void kern_avx2_iq4_kss_runs(struct kern_ik_runs *out, const struct kern_block_iq4_kss *block)
{
    uint8_t bytes[16];
    for (int i = 0; i < 128; i += 32) {
        __m256i low = _mm256_and_si256(load32(block->words + i), _mm256_set1_epi16(1));
        __m128i both =
            _mm_packs_epi16(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1));
        kern_store_u16(bytes + i / 16, (uint32_t)_mm_movemask_epi8(_mm_slli_epi16(both, 7)));
    }
    store_ks(out, _mm_loadl_epi64((const __m128i *)bytes), block->d, KERN_IK4_SHIFT);
}

/** Nibbles of four bytes: the low ones, then the high ones. */
static inline __m128i nibble_halves(const uint8_t *p)
{
    __m128i bytes = _mm_cvtsi32_si128((int)kern_load_u32(p));
    __m128i both = _mm_unpacklo_epi32(bytes, _mm_srli_epi16(bytes, 4));
    return _mm_and_si128(both, _mm_set1_epi8(15));
}

/** Scales of five bits less 16: the fifth where the bit is set. */
static inline __m128i scales5(__m128i nibbles, uint32_t bits)
{
    __m128i fifth = _mm_andnot_si128(bit_bytes(bits), _mm_set1_epi8(16));
    return _mm_sub_epi8(nibbles, fifth);
}

void kern_avx2_iq2_ks_runs(struct kern_ik_runs *out, const struct kern_block_iq2_ks *block)
{
    uint8_t scales[8] = {0};
    memcpy(scales, block->scales, sizeof block->scales);
    store_groups(out, scales5(nibbles16(scales), block->extra[1]), load_half8(block->d));
    store_shifts(out, block->extra[0], KERN_IK2_SHIFT);
}

void kern_avx2_iq3_ks_runs(struct kern_ik_runs *out, const struct kern_block_iq3_ks *block)
{
    store_groups(out, scales5(nibble_halves(block->scales), block->extra[0]), load_half8(block->d));
    store_shifts(out, block->extra[1], KERN_IK3_SHIFT);
}

void kern_avx2_iq2_kl_runs(struct kern_ik_runs *out, const struct kern_block_iq2_kl *block)
{
    uint8_t high[4] = {block->scales_h[0], block->scales_h[1]}, low[8] = {0};
    _mm_storel_epi64((__m128i *)low, nibble_halves(block->scales_l));
    for (int g = 0; g < 8; g += 2)
        low[g / 2] = (uint8_t)(low[g] | low[g + 1] << 4);
    store_groups(out, scales6(low, high), load_half8(block->d));
    memset(out->shifts, 0, sizeof out->shifts);
}
