/** IQ1_S and IQ1_M: entries of eight values out of {-1, 0, 1}, plus or minus an eighth. */
#include "kernels/cpu/avx2/decode.h"
#include "kernels/cpu/avx2/expand.h"
#include "kernels/cpu/avx2/indices.h"
#include "kernels/quant/iq1_m.h"
#include "kernels/quant/iq1_s.h"

/** value + delta of the codes 0..2, for delta = 1/8 and for -1/8. */
static const float iq1_values[2][4] = {{-0.875f, 0.125f, 1.125f, 0.0f},
                                       {-1.125f, -0.125f, 0.875f, 0.0f}};

/** scale * (value + delta) of the codes, in each half of the register. */
static inline __m256 iq1_products(float scale, unsigned delta_is_negative)
{
    __m256 values = _mm256_broadcast_ps((const __m128 *)iq1_values[delta_is_negative]);
    return _mm256_mul_ps(_mm256_set1_ps(scale), values);
}

/** The eight codes of an entry through the products. */
static inline void store_iq1_octet(float *y, uint16_t index, __m256 products)
{
    const __m256i shift = _mm256_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14);
    __m256i codes = _mm256_srlv_epi32(_mm256_set1_epi16((short)kern_iq1_codes[index]), shift);
    _mm256_storeu_ps(y, _mm256_permutevar_ps(products, codes));
}

/** d * (2 s + 1), s the low three bits of each lane. */
static inline __m256 odd_scales(__m256 d, __m256i s)
{
    s = _mm256_and_si256(s, _mm256_set1_epi32(7));
    s = _mm256_add_epi32(_mm256_slli_epi32(s, 1), _mm256_set1_epi32(1));
    return _mm256_mul_ps(d, _mm256_cvtepi32_ps(s));
}

void kern_avx2_decode_iq1_s(const void *blocks, float *y, size_t n)
{
    const struct kern_block_iq1_s *block = blocks;
    for (const float *end = y + n; y < end; y += 256, block++) {
        float scales[8];
        uint16_t indices[32];
        __m256i h = _mm256_cvtepu16_epi32(load16(block->qh));
        _mm256_storeu_ps(scales, odd_scales(load_half8(block->d), _mm256_srli_epi32(h, 12)));
        /* the four fields of three bits to the low bits of four bytes */
        __m256i a = _mm256_and_si256(h, _mm256_set1_epi32(7));
        __m256i b = _mm256_and_si256(_mm256_slli_epi32(h, 5), _mm256_set1_epi32(7 << 8));
        __m256i c = _mm256_and_si256(_mm256_slli_epi32(h, 10), _mm256_set1_epi32(7 << 16));
        __m256i d = _mm256_and_si256(_mm256_slli_epi32(h, 15), _mm256_set1_epi32(7 << 24));
        __m256i high = _mm256_or_si256(_mm256_or_si256(a, b), _mm256_or_si256(c, d));
        join_indices(indices, load32(block->qs), high);
        for (int g = 0; g < 8; g++) {
            __m256 products = iq1_products(scales[g], block->qh[2 * g + 1] >> 7);
            for (int l = 0; l < 4; l++)
                store_iq1_octet(y + 32 * g + 8 * l, indices[4 * g + l], products);
        }
    }
}

/** The scales of the sixteen runs: d * (2 s + 1), four s of three bits in each 16-bit number. */
static inline void iq1_m_scales(float scales[16], const struct kern_block_iq1_m *block)
{
    const __m128i four_times = _mm_setr_epi8(0, 1, 0, 1, 0, 1, 0, 1, 2, 3, 2, 3, 2, 3, 2, 3);
    const __m256i shift = _mm256_setr_epi32(0, 3, 6, 9, 0, 3, 6, 9);
    __m256 d = _mm256_set1_ps(kern_iq1_m_scale(block->scales));
    __m128i packed = _mm_loadl_epi64((const __m128i *)block->scales);
    __m128i low = _mm_shuffle_epi8(packed, four_times);
    __m128i high = _mm_shuffle_epi8(_mm_srli_epi64(packed, 32), four_times);
    _mm256_storeu_ps(scales, odd_scales(d, _mm256_srlv_epi32(_mm256_cvtepu16_epi32(low), shift)));
    _mm256_storeu_ps(scales + 8,
                     odd_scales(d, _mm256_srlv_epi32(_mm256_cvtepu16_epi32(high), shift)));
}

void kern_avx2_decode_iq1_m(const void *blocks, float *y, size_t n)
{
    const struct kern_block_iq1_m *block = blocks;
    for (const float *end = y + n; y < end; y += 256, block++) {
        float scales[16];
        uint16_t indices[32];
        uint8_t deltas[32]; /* 1 where negative */
        iq1_m_scales(scales, block);
        /* the 32 nibbles of qh in order, one per byte */
        __m256i h = _mm256_cvtepu8_epi16(load16(block->qh));
        h = _mm256_or_si256(h, _mm256_slli_epi16(h, 4));
        __m256i delta = _mm256_and_si256(_mm256_srli_epi16(h, 3), _mm256_set1_epi8(1));
        _mm256_storeu_si256((__m256i *)deltas, delta);
        join_indices(indices, load32(block->qs), _mm256_and_si256(h, _mm256_set1_epi8(7)));
        for (int i = 0; i < 16; i++) {
            __m256 even = iq1_products(scales[i], deltas[2 * i]);
            __m256 odd = iq1_products(scales[i], deltas[2 * i + 1]);
            store_iq1_octet(y + 16 * i, indices[2 * i], even);
            store_iq1_octet(y + 16 * i + 8, indices[2 * i + 1], odd);
        }
    }
}
