/* Rows of some types straight to integers and scales, as kernels/quant/integers.h has them for 8
 * and for 16 bits: no neutral copy, no float32 on the way. */
#include "kernels/cpu/avx2/scales.h"
#include "kernels/cpu/avx2/unpack_iq.h"
#include "kernels/cpu/avx512/decode.h"
#include "kernels/cpu/avx512/expand.h"
#include "kernels/quant/q4_k.h"
#include "kernels/quant/q5_k.h"
#include "kernels/quant/q6_k.h"
#include "kernels/quant/q8_0.h"

/** The functions of types are these, with `bits` after them, which is constant then: 8 or 16. */
#define STRAIGHT_INLINE static inline __attribute__((always_inline))

/** Eight bytes at p: a mask of 64 bytes, or one of eight bytes. */
static inline uint64_t load_u64(const uint8_t *p)
{
    return kern_load_u32(p) | (uint64_t)kern_load_u32(p + 4) << 32;
}

/** 32 integers from number i on; of 16 bits they are times `sub`. */
STRAIGHT_INLINE void store32(void *integers, size_t i, __m256i bytes, unsigned bits, int sub)
{
    if (bits == 8) {
        _mm256_storeu_si256((__m256i *)(void *)((int8_t *)integers + i), bytes);
        return;
    }
    __m512i words = _mm512_cvtepi8_epi16(bytes);
    if (sub != 1)
        words = _mm512_mullo_epi16(words, _mm512_set1_epi16((short)sub));
    _mm512_storeu_si512((int16_t *)integers + i, words);
}

/** The bits of `mask` of each byte, moved down by `shift`. */
static inline __m256i field(__m256i bytes, int shift, char mask)
{
    return _mm256_and_si256(_mm256_srl_epi16(bytes, _mm_cvtsi32_si128(shift)),
                            _mm256_set1_epi8(mask));
}

STRAIGHT_INLINE void q8_0(const void *blocks, size_t n, void *integers, float *scales, float *mins,
                          unsigned bits)
{
    (void)mins;
    const struct kern_block_q8_0 *block = blocks;
    for (size_t i = 0; i < n; i += 32, block++) {
        store32(integers, i, load32(block->qs), bits, 1);
        *scales++ = _cvtsh_ss(kern_load_u16(block->d));
    }
}

/** The scales, where they are wanted, and minima of the eight groups of Q4_K and Q5_K. */
STRAIGHT_INLINE void store_k_factors(float *scales, float *mins, const uint8_t *packed,
                                     const uint8_t *d, const uint8_t *dmin)
{
    struct kern_k_factors factors;
    kern_avx2_q4_k_factors(&factors, packed, d, dmin);
    if (scales)
        _mm256_storeu_ps(scales, _mm256_loadu_ps(factors.scales));
    _mm256_storeu_ps(mins, _mm256_xor_ps(_mm256_loadu_ps(factors.mins), _mm256_set1_ps(-0.0f)));
}

/** The scale of a block of 256 for each of its four runs of 64. */
static inline void store_block_scale(float *scales, const uint8_t *d)
{
    _mm_storeu_ps(scales, _mm_set1_ps(_cvtsh_ss(kern_load_u16(d))));
}

STRAIGHT_INLINE void q4_k(const void *blocks, size_t n, void *integers, float *scales, float *mins,
                          unsigned bits)
{
    const struct kern_block_q4_k *block = blocks;
    for (size_t i = 0; i < n; i += 256, block++, mins += 8) {
        for (unsigned g = 0; g < 8; g++) {
            __m256i q = field(load32(block->qs + g / 2 * 32), (int)(g % 2 * 4), 15);
            store32(integers, i + 32 * g, q, bits, kern_k_scale(block->scales, g));
        }
        store_k_factors(bits == 8 ? scales : NULL, mins, block->scales, block->d, block->dmin);
        if (bits == 16)
            store_block_scale(scales, block->d);
        scales += bits == 8 ? 8 : 4;
    }
}

STRAIGHT_INLINE void q5_k(const void *blocks, size_t n, void *integers, float *scales, float *mins,
                          unsigned bits)
{
    const __m256i fifth = _mm256_set1_epi8(16);
    const struct kern_block_q5_k *block = blocks;
    for (size_t i = 0; i < n; i += 256, block++, scales += 8, mins += 8) {
        __m256i high = load32(block->qh);
        for (int g = 0; g < 8; g++) {
            __m256i q = field(load32(block->qs + g / 2 * 32), g % 2 * 4, 15);
            __mmask32 bit = _mm256_test_epi8_mask(high, _mm256_set1_epi8((char)(1 << g)));
            q = _mm256_or_si256(q, _mm256_maskz_mov_epi8(bit, fifth));
            store32(integers, i + 32 * (size_t)g, q, bits, 1);
        }
        store_k_factors(scales, mins, block->scales, block->d, block->dmin);
    }
}

STRAIGHT_INLINE void q6_k(const void *blocks, size_t n, void *integers, float *scales, float *mins,
                          unsigned bits)
{
    (void)mins;
    const struct kern_block_q6_k *block = blocks;
    for (size_t i = 0; i < n; i += 256, block++, scales += 16) {
        for (int g = 0; g < 8; g++) {
            int half = g / 4, r = g % 4;
            __m256i low = field(load32(block->ql + 64 * half + r % 2 * 32), r / 2 * 4, 15);
            __m256i high = field(load32(block->qh + 32 * half), 2 * r, 3);
            __m256i q = _mm256_or_si256(low, _mm256_slli_epi16(high, 4));
            q = _mm256_sub_epi8(q, _mm256_set1_epi8(32));
            store32(integers, i + 32 * (size_t)g, q, bits, 1);
        }
        kern_avx2_q6_k_scales(scales, block);
    }
}

/** Entries of a table of n numbers, 256 or 512, at 32 indices. */
STRAIGHT_INLINE __m512i look_up_entries(const uint16_t *table, size_t n, __m512i indices)
{
    __m512i found[8];
    for (size_t i = 0; i < n / 64; i++, table += 64)
        found[i] = _mm512_permutex2var_epi16(_mm512_loadu_si512(table), indices,
                                             _mm512_loadu_si512(table + 32));
    for (size_t bit = 64; bit < n; bit *= 2) { /* half of them, by this bit of the indices */
        __mmask32 odd = _mm512_test_epi16_mask(indices, _mm512_set1_epi16((short)bit));
        for (size_t i = 0; i < n / bit / 2; i++)
            found[i] = _mm512_mask_mov_epi16(found[2 * i], odd, found[2 * i + 1]);
    }
    return found[0];
}

/** The codes of three bits of sixteen entries, a byte each. */
static inline __m512i iq3_codes(__m256i entries)
{
    __m512i codes = _mm512_cvtepu16_epi32(entries);
    codes = select_bits(_mm512_set1_epi32(0x3f), codes, _mm512_slli_epi32(codes, 10));
    codes = select_bits(_mm512_set1_epi16(7), codes, _mm512_slli_epi32(codes, 5));
    return _mm512_and_si512(codes, _mm512_set1_epi8(7));
}

/** A block of IQ3: indices of a table of n entries of four codes, eight values, and signs. */
struct iq3 {
    const uint8_t *low;
    uint64_t high; /* the ninth bit of each index */
    const uint16_t *table;
    size_t n;
    const uint8_t *values, *signs;
};

/** Its integers from number i on; sub: of the eight groups. */
STRAIGHT_INLINE void store_iq3(void *integers, size_t i, struct iq3 b, unsigned bits,
                               const int sub[8])
{
    const __m512i values = _mm512_set1_epi64((long long)load_u64(b.values));
    __m512i entries = _mm512_setzero_si512();
    for (size_t j = 0; j < 4; j++) { /* sixteen entries, 64 integers */
        if (j % 2 == 0) {
            __m512i indices = _mm512_cvtepu8_epi16(load32(b.low + 16 * j));
            __mmask32 ninth = (__mmask32)(b.high >> 16 * j);
            indices = _mm512_or_si512(indices, _mm512_maskz_set1_epi16(ninth, 256));
            entries = look_up_entries(b.table, b.n, indices);
        }
        __m256i sixteen =
            j % 2 == 0 ? _mm512_castsi512_si256(entries) : _mm512_extracti64x4_epi64(entries, 1);
        __m512i bytes = _mm512_shuffle_epi8(values, iq3_codes(sixteen));
        bytes =
            _mm512_mask_sub_epi8(bytes, load_u64(b.signs + 8 * j), _mm512_setzero_si512(), bytes);
        store32(integers, i + 64 * j, _mm512_castsi512_si256(bytes), bits, sub[2 * j]);
        store32(integers, i + 64 * j + 32, _mm512_extracti64x4_epi64(bytes, 1), bits,
                sub[2 * j + 1]);
    }
}

STRAIGHT_INLINE void iq3_s(const void *blocks, size_t n, void *integers, float *scales, float *mins,
                           unsigned bits)
{
    (void)mins;
    const struct kern_block_iq3_s *block = blocks;
    for (size_t i = 0; i < n; i += 256, block++) {
        int sub[8];
        for (unsigned g = 0; g < 8; g++)
            sub[g] = (int)(1 + 2 * kern_load_nibble(block->scales, g));
        const struct iq3 b = {block->qs, load_u64(block->qh), kern_iq3_s_codes,
                              512,       kern_iq3_s_values,   block->signs};
        store_iq3(integers, i, b, bits, sub);
        if (bits == 8)
            _mm256_storeu_ps(scales, iq3_s_scales(block));
        else
            store_block_scale(scales, block->d);
        scales += bits == 8 ? 8 : 4;
    }
}

STRAIGHT_INLINE void iq3_xxs(const void *blocks, size_t n, void *integers, float *scales,
                             float *mins, unsigned bits)
{
    (void)mins;
    static const int none[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    const struct kern_block_iq3_xxs *block = blocks;
    for (size_t i = 0; i < n; i += 256, block++, scales += 8) {
        struct kern_iq_block unpacked;
        unpack_iq3_xxs(&unpacked, block);
        const struct iq3 b = {block->qs,           0,
                              kern_iq3_xxs_codes,  256,
                              kern_iq3_xxs_values, (const uint8_t *)unpacked.signs};
        store_iq3(integers, i, b, bits, none);
        _mm256_storeu_ps(scales, _mm256_loadu_ps(unpacked.scales));
    }
}

#define STRAIGHT(TYPE, name)                                                                       \
    void kern_avx512_straight8_##name(const void *blocks, size_t n, void *integers, float *scales, \
                                      float *mins)                                                 \
    {                                                                                              \
        name(blocks, n, integers, scales, mins, 8);                                                \
    }                                                                                              \
    void kern_avx512_straight16_##name(const void *blocks, size_t n, void *integers,               \
                                       float *scales, float *mins)                                 \
    {                                                                                              \
        name(blocks, n, integers, scales, mins, 16);                                               \
    }
KERN_AVX512_STRAIGHT(STRAIGHT)
