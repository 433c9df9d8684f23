/* Bytes, and K types, straight to integers. */
#include "kernels/cpu/avx2/scales.h"
#include "kernels/cpu/avx512/straight.h"
#include "kernels/quant/q4_k.h"
#include "kernels/quant/q5_k.h"
#include "kernels/quant/q8_0.h"

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

STRAIGHT_INLINE void q2_k(const void *blocks, size_t n, void *integers, float *scales, float *mins,
                          unsigned bits)
{
    const __m256 minus = _mm256_set1_ps(-0.0f);
    const struct kern_block_q2_k *block = blocks;
    for (size_t i = 0; i < n; i += 256, block++, mins += 16) {
        for (size_t g = 0; g < 8; g++) {
            __m256i q = field(load32(block->qs + g / 4 * 32), (int)(g % 4 * 2), 3);
            store16x2(integers, i + 32 * g, q, bits, block->scales[2 * g] & 15,
                      block->scales[2 * g + 1] & 15);
        }
        struct kern_k_factors factors;
        kern_avx2_q2_k_factors(&factors, block);
        for (size_t half = 0; half < 16; half += 8) {
            if (bits == 8)
                _mm256_storeu_ps(scales + half, _mm256_loadu_ps(factors.scales + half));
            __m256 m = _mm256_loadu_ps(factors.mins + half);
            _mm256_storeu_ps(mins + half, _mm256_xor_ps(m, minus));
        }
        if (bits == 16)
            store_block_scale(scales, kern_q2_k_block_scale(block));
        scales += bits == 8 ? 16 : 4;
    }
}

STRAIGHT_INLINE void q3_k(const void *blocks, size_t n, void *integers, float *scales, float *mins,
                          unsigned bits)
{
    (void)mins;
    const __m256i four = _mm256_set1_epi8(4);
    const struct kern_block_q3_k *block = blocks;
    for (size_t i = 0; i < n; i += 256, block++) {
        __m256i high = load32(block->hmask);
        int8_t sub[16];
        _mm_storeu_si128((__m128i *)sub, q3_k_scales(block));
        for (unsigned g = 0; g < 8; g++) {
            __m256i q = field(load32(block->qs + g / 4 * 32), (int)(g % 4 * 2), 3);
            __mmask32 unset = _mm256_testn_epi8_mask(high, _mm256_set1_epi8((char)(1 << g)));
            q = _mm256_mask_sub_epi8(q, unset, q, four);
            store16x2(integers, i + 32 * g, q, bits, sub[2 * g], sub[2 * g + 1]);
        }
        if (bits == 8)
            kern_avx2_q3_k_scales(scales, block);
        else
            store_block_scale(scales, kern_q3_k_block_scale(block));
        scales += bits == 8 ? 16 : 4;
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
            store_block_scale(scales, kern_q4_k_block_scale(block));
        scales += bits == 8 ? 8 : 4;
    }
}

STRAIGHT_INLINE void q5_k(const void *blocks, size_t n, void *integers, float *scales, float *mins,
                          unsigned bits)
{
    const __m256i fifth = _mm256_set1_epi8(16);
    const struct kern_block_q5_k *block = blocks;
    for (size_t i = 0; i < n; i += 256, block++, mins += 8) {
        __m256i high = load32(block->qh);
        for (unsigned g = 0; g < 8; g++) {
            __m256i q = field(load32(block->qs + g / 2 * 32), (int)(g % 2 * 4), 15);
            __mmask32 bit = _mm256_test_epi8_mask(high, _mm256_set1_epi8((char)(1 << g)));
            q = _mm256_or_si256(q, _mm256_maskz_mov_epi8(bit, fifth));
            store32(integers, i + 32 * g, q, bits, kern_k_scale(block->scales, g));
        }
        store_k_factors(bits == 8 ? scales : NULL, mins, block->scales, block->d, block->dmin);
        if (bits == 16)
            store_block_scale(scales, kern_q5_k_block_scale(block));
        scales += bits == 8 ? 8 : 4;
    }
}

STRAIGHT_INLINE void q6_k(const void *blocks, size_t n, void *integers, float *scales, float *mins,
                          unsigned bits)
{
    (void)mins;
    const struct kern_block_q6_k *block = blocks;
    for (size_t i = 0; i < n; i += 256, block++) {
        const int8_t *sub = (const int8_t *)block->scales;
        for (int g = 0; g < 8; g++) {
            int half = g / 4, r = g % 4;
            __m256i low = field(load32(block->ql + 64 * half + r % 2 * 32), r / 2 * 4, 15);
            __m256i high = field(load32(block->qh + 32 * half), 2 * r, 3);
            __m256i q = _mm256_or_si256(low, _mm256_slli_epi16(high, 4));
            q = _mm256_sub_epi8(q, _mm256_set1_epi8(32));
            store16x2(integers, i + 32 * (size_t)g, q, bits, sub[2 * g], sub[2 * g + 1]);
        }
        if (bits == 8)
            kern_avx2_q6_k_scales(scales, block);
        else
            store_block_scale(scales, kern_q6_k_block_scale(block));
        scales += bits == 8 ? 16 : 4;
    }
}

KERN_AVX512_STRAIGHT_K(KERN_STRAIGHT)
