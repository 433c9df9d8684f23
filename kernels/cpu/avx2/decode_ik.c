/**
 * ik_llama.cpp's K, KS and KL types: a group's codes become 32 bytes, these bytes the values that
 * they stand for, and sixteen bytes and their scale sixteen floats.
 */
#include "kernels/cpu/avx2/decode.h"
#include "kernels/cpu/avx2/expand.h"
#include "kernels/cpu/avx2/scales_ik.h"
#include "kernels/quant/ik/formats.h"

/** A table of 16 bytes in both halves of a register. */
static inline __m256i ik_table(const int8_t *values)
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)values));
}

static const int8_t ik2_table[16] = {-31, -13, 1, 17},
                    ik3_table[16] = {-63, -40, -23, -10, 1, 13, 28, 47};

/** The low `mask` of each byte, after a shift to the right. */
static inline __m256i ik_bits(__m256i bytes, int shift, int mask)
{
    return _mm256_and_si256(_mm256_srl_epi16(bytes, _mm_cvtsi32_si128(shift)),
                            _mm256_set1_epi8((char)mask));
}

/** Codes of two bits: group g out of the 32 bytes of its half. */
static inline __m256i ik_codes2(const uint8_t *qs, int g)
{
    return ik_bits(load32(qs + 32 * (g / 4)), 2 * (g % 4), 3);
}

/** Bit g of 32 bytes, moved to bit `to`. */
static inline __m256i ik_high(__m256i qh, int g, int to)
{
    __m256i bit = ik_bits(qh, g, 1);
    return _mm256_sll_epi16(bit, _mm_cvtsi32_si128(to));
}

/** Codes of four bits: group g has 16 bytes, low nibbles its first half. */
static inline __m256i ik_codes4(__m128i bytes)
{
    __m256i both = _mm256_set_m128i(_mm_srli_epi16(bytes, 4), bytes);
    return _mm256_and_si256(both, _mm256_set1_epi8(15));
}

/** Nibbles: two groups have 32 bytes. */
static inline __m256i ik_nibbles(const uint8_t *qs, int g)
{
    return ik_bits(load32(qs + 32 * (g / 2)), 4 * (g % 2), 15);
}

/** Values of codes of five bits. Shifted to the left by three, bit 4 is what blendv looks at. */
static inline __m256i ik_values5(__m256i codes)
{
    __m256i low = _mm256_shuffle_epi8(ik_table(kern_ik5_values), codes);
    __m256i high = _mm256_shuffle_epi8(ik_table(kern_ik5_values + 16), codes);
    return _mm256_blendv_epi8(low, high, _mm256_slli_epi16(codes, 3));
}

/** Codes of four bits, and two more in bits 4 and 5 of `high`. */
static inline __m256i ik_values6(__m256i codes, __m256i high)
{
    __m256i fifth = _mm256_slli_epi16(high, 3), sixth = _mm256_slli_epi16(high, 2);
    __m256i a = _mm256_shuffle_epi8(ik_table(kern_ik6_values), codes);
    __m256i b = _mm256_shuffle_epi8(ik_table(kern_ik6_values + 16), codes);
    __m256i c = _mm256_shuffle_epi8(ik_table(kern_ik6_values + 32), codes);
    __m256i d = _mm256_shuffle_epi8(ik_table(kern_ik6_values + 48), codes);
    return _mm256_blendv_epi8(_mm256_blendv_epi8(a, b, fifth), _mm256_blendv_epi8(c, d, fifth),
                              sixth);
}

/** Store sixteen bytes times their scale as floats. */
static inline void store16(float *y, __m128i bytes, float scale)
{
    store_scaled16(y, bytes, _mm256_set1_ps(scale));
}

/** y[0..32) of a group whose halves have numbers of their own. */
static inline void ik_store_runs(float *y, __m256i values, const struct kern_ik_runs *runs, int g)
{
    __m256i shift = _mm256_set_m128i(_mm_set1_epi8(runs->shifts[2 * g + 1]),
                                     _mm_set1_epi8(runs->shifts[2 * g]));
    values = _mm256_add_epi8(values, shift);
    store16(y + 32 * g, _mm256_castsi256_si128(values), runs->scales[2 * g]);
    store16(y + 32 * g + 16, _mm256_extracti128_si256(values, 1), runs->scales[2 * g + 1]);
}

/** Store a group with one scale. */
static inline void ik_store_group(float *y, __m256i values, const struct kern_ik_runs *runs, int g)
{
    values = _mm256_add_epi8(values, _mm256_set1_epi8(runs->shifts[g]));
    store16(y + 32 * g, _mm256_castsi256_si128(values), runs->scales[g]);
    store16(y + 32 * g + 16, _mm256_extracti128_si256(values, 1), runs->scales[g]);
}

/**
 * A decoder of blocks of 256. `values`: those of group g of `block`, before the shift; `store`: one
 * of the two above.
 */
#define IK_DECODER(name, store, values)                                                            \
    void kern_avx2_decode_##name(const void *blocks, float *y, size_t n)                           \
    {                                                                                              \
        const struct kern_block_##name *block = blocks;                                            \
        for (const float *end = y + n; y < end; y += 256, block++) {                               \
            struct kern_ik_runs runs;                                                              \
            kern_avx2_##name##_runs(&runs, block);                                                 \
            for (int g = 0; g < 8; g++)                                                            \
                store(y, values, &runs, g);                                                        \
        }                                                                                          \
    }

#define IK_VALUES2 _mm256_shuffle_epi8(ik_table(ik2_table), ik_codes2(block->qs, g))
#define IK_VALUES3                                                                                 \
    _mm256_shuffle_epi8(ik_table(ik3_table), _mm256_or_si256(ik_codes2(block->qs, g),              \
                                                             ik_high(load32(block->qh), g, 2)))
#define IK_VALUES4                                                                                 \
    _mm256_shuffle_epi8(ik_table(kern_iq4_values), ik_codes4(load16(block->qs + 16 * g)))
#define IK_VALUES5                                                                                 \
    ik_values5(_mm256_or_si256(ik_nibbles(block->qs, g), ik_high(load32(block->qh), g, 4)))

IK_DECODER(iq2_k, ik_store_runs, IK_VALUES2)
IK_DECODER(iq2_ks, ik_store_group, IK_VALUES2)
IK_DECODER(iq3_k, ik_store_runs, IK_VALUES3)
IK_DECODER(iq3_ks, ik_store_group, IK_VALUES3)
IK_DECODER(iq4_k, ik_store_runs, IK_VALUES4)
IK_DECODER(iq4_ks, ik_store_group, IK_VALUES4)
IK_DECODER(iq5_k, ik_store_runs, IK_VALUES5)
IK_DECODER(iq5_ks, ik_store_group, IK_VALUES5)
IK_DECODER(iq6_k, ik_store_runs,
           ik_values6(ik_nibbles(block->qs, g), _mm256_slli_epi16(ik_codes2(block->qh, g), 4)))

/** The nibbles of eight words: all bits but the lowest, each xor the next higher. */
static inline __m256i iq4_kss_values(const uint8_t *words)
{
    __m128i word = _mm_and_si128(load16(words), _mm_set1_epi16((short)0xfffe));
    word = _mm_xor_si128(word, _mm_srli_epi16(word, 1));
    return _mm256_shuffle_epi8(ik_table(kern_iq4_values), ik_codes4(word));
}
IK_DECODER(iq4_kss, ik_store_group, iq4_kss_values(block->words + 16 * g))

/** A code of five bits for two elements: its two values by turns. */
static inline __m256i iq2_kl_values(const struct kern_block_iq2_kl *block, int g)
{
    const __m128i bytes = load16(block->qs + 16 * (g / 2)), qh = load16(block->qh);
    __m128i nibbles = _mm_srl_epi16(bytes, _mm_cvtsi32_si128(4 * (g % 2)));
    nibbles = _mm_and_si128(nibbles, _mm_set1_epi8(15));
    __m128i fifth = _mm_sll_epi16(qh, _mm_cvtsi32_si128(7 - g)); /* in the sign bit */
    __m128i values[2];
    for (int i = 0; i < 2; i++)
        values[i] =
            _mm_blendv_epi8(_mm_shuffle_epi8(load16(kern_ik_halves[i]), nibbles),
                            _mm_shuffle_epi8(load16(kern_ik_halves[i] + 16), nibbles), fifth);
    return _mm256_set_m128i(_mm_unpackhi_epi8(values[0], values[1]),
                            _mm_unpacklo_epi8(values[0], values[1]));
}
IK_DECODER(iq2_kl, ik_store_group, iq2_kl_values(block, g))
