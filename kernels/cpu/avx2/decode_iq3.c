/** IQ3_XXS and IQ3_S: entries of four magnitudes out of eight, with signs. */
#include "kernels/cpu/avx2/decode.h"
#include "kernels/cpu/avx2/expand.h"
#include "kernels/cpu/avx2/signs.h"
#include "kernels/quant/iq3_s.h"
#include "kernels/quant/iq3_xxs.h"

/** The eight numbers of a table as floats. */
static inline __m256 load_values(const uint8_t *values)
{
    return _mm256_cvtepi32_ps(load_octet(values));
}

/** Octet l of a group: two entries through the products, with bits 8l .. 8l + 7 of signs. */
static inline void store_iq3_octet(float *y, int l, uint32_t entry0, uint32_t entry1,
                                   __m256 products, __m256i signs)
{
    const __m256i shift = _mm256_setr_epi32(0, 3, 6, 9, 12, 15, 18, 21);
    __m256i codes = _mm256_srlv_epi32(_mm256_set1_epi32((int)(entry0 | entry1 << 12)), shift);
    __m256 magnitudes = _mm256_permutevar8x32_ps(products, codes);
    _mm256_storeu_ps(y + 8 * l, flip_signs(magnitudes, sign_bits(signs, l)));
}

void kern_avx2_decode_iq3_xxs(const void *blocks, float *y, size_t n)
{
    const __m256 values = load_values(kern_iq3_xxs_values);
    const uint16_t *codes = kern_iq3_xxs_codes;
    const struct kern_block_iq3_xxs *block = blocks;
    for (const float *end = y + n; y < end; y += 256, block++) {
        float scales[8];
        uint32_t signs[8];
        __m256i words = load32(block->signs_scale);
        _mm256_storeu_si256((__m256i *)signs, unpack_signs(words));
        _mm256_storeu_ps(
            scales, half_step_scales(load_half8(block->d), _mm256_srli_epi32(words, 28), 0.5f));
        for (int g = 0; g < 8; g++) {
            const uint8_t *indices = block->qs + 8 * g;
            __m256 products = _mm256_mul_ps(_mm256_set1_ps(scales[g]), values);
            __m256i sign_word = load_word8(signs + g);
            for (int l = 0; l < 4; l++)
                store_iq3_octet(y + 32 * g, l, codes[indices[2 * l]], codes[indices[2 * l + 1]],
                                products, sign_word);
        }
    }
}

/** The 64 indices of an IQ3_S block: a byte of qs and a bit of qh each. */
static inline void iq3_s_indices(uint16_t indices[64], const struct kern_block_iq3_s *block)
{
    /* multiplying moves bit l of qh to bit 8 */
    const __m256i to_bit8 =
        _mm256_setr_epi16(256, 128, 64, 32, 16, 8, 4, 2, 256, 128, 64, 32, 16, 8, 4, 2);
    const __m256i bit8 = _mm256_set1_epi16(256);
    for (int g = 0; g < 8; g += 2) {
        __m256i high =
            _mm256_set_m128i(_mm_set1_epi16(block->qh[g + 1]), _mm_set1_epi16(block->qh[g]));
        high = _mm256_and_si256(_mm256_mullo_epi16(high, to_bit8), bit8);
        __m256i low = _mm256_cvtepu8_epi16(load16(block->qs + 8 * g));
        _mm256_storeu_si256((__m256i *)(indices + 8 * g), _mm256_or_si256(low, high));
    }
}

/** d * (1 + 2 s) of the eight groups. */
static inline __m256 iq3_s_scales(const struct kern_block_iq3_s *block)
{
    __m256i s = _mm256_set1_epi32((int)kern_load_u32(block->scales));
    s = _mm256_srlv_epi32(s, _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28));
    s = _mm256_and_si256(s, _mm256_set1_epi32(15));
    s = _mm256_add_epi32(_mm256_slli_epi32(s, 1), _mm256_set1_epi32(1));
    return _mm256_mul_ps(load_half8(block->d), _mm256_cvtepi32_ps(s));
}

void kern_avx2_decode_iq3_s(const void *blocks, float *y, size_t n)
{
    const __m256 values = load_values(kern_iq3_s_values);
    const uint16_t *codes = kern_iq3_s_codes;
    const struct kern_block_iq3_s *block = blocks;
    for (const float *end = y + n; y < end; y += 256, block++) {
        float scales[8];
        uint16_t indices[64];
        _mm256_storeu_ps(scales, iq3_s_scales(block));
        iq3_s_indices(indices, block);
        for (int g = 0; g < 8; g++) {
            const uint16_t *i = indices + 8 * g;
            __m256 products = _mm256_mul_ps(_mm256_set1_ps(scales[g]), values);
            __m256i sign_word = _mm256_set1_epi32((int)kern_load_u32(block->signs + 4 * g));
            for (int l = 0; l < 4; l++)
                store_iq3_octet(y + 32 * g, l, codes[i[2 * l]], codes[i[2 * l + 1]], products,
                                sign_word);
        }
    }
}
