/** The K types: 256 elements with scales of their own per 16 or 32. */
#include "kernels/cpu/avx2/decode.h"
#include "kernels/cpu/avx2/expand.h"
#include "kernels/cpu/avx2/scales.h"
#include "kernels/quant/q2_k.h"
#include "kernels/quant/q3_k.h"
#include "kernels/quant/q4_k.h"
#include "kernels/quant/q5_k.h"
#include "kernels/quant/q6_k.h"

void kern_avx2_decode_q2_k(const void *blocks, float *y, size_t n)
{
    const __m256 digits = _mm256_setr_ps(0, 1, 2, 3, 0, 1, 2, 3);
    const struct kern_block_q2_k *block = blocks;
    for (const float *end = y + n; y < end; y += 256, block++) {
        struct kern_k_factors factors;
        kern_avx2_q2_k_factors(&factors, block);
        for (int i = 0; i < 64; i += 16) { /* 16 bytes of qs: half i / 32, 16 columns */
            __m256i q0 = load_octet(block->qs + i), q1 = load_octet(block->qs + i + 8);
            float *out = y + 128 * (i / 32) + i % 32;
            int run = 8 * (i / 32) + i % 32 / 16;
            for (int s = 0; s < 4; s++, out += 32, run += 2) {
                __m256 products = _mm256_fmsub_ps(_mm256_set1_ps(factors.scales[run]), digits,
                                                  _mm256_set1_ps(factors.mins[run]));
                _mm256_storeu_ps(out, _mm256_permutevar_ps(products, q0));
                _mm256_storeu_ps(out + 8, _mm256_permutevar_ps(products, q1));
                q0 = _mm256_srli_epi32(q0, 2);
                q1 = _mm256_srli_epi32(q1, 2);
            }
        }
    }
}

void kern_avx2_decode_q3_k(const void *blocks, float *y, size_t n)
{
    const __m256 values = _mm256_setr_ps(-4, -3, -2, -1, 0, 1, 2, 3);
    const __m256i two_bits = _mm256_set1_epi32(3), third_bit = _mm256_set1_epi32(4);
    const struct kern_block_q3_k *block = blocks;
    for (const float *end = y + n; y < end; y += 256, block++) {
        float scales[16];
        kern_avx2_q3_k_scales(scales, block);
        for (int i = 0; i < 32; i += 8) { /* eight columns of both halves */
            __m256i low = load_octet(block->qs + i);
            __m256i high = _mm256_slli_epi32(load_octet(block->hmask + i), 2);
            float *out = y + i;
            for (int g = 0; g < 8; g++, out += 32) {
                __m256 products = _mm256_mul_ps(_mm256_set1_ps(scales[2 * g + i / 16]), values);
                __m256i q = _mm256_or_si256(_mm256_and_si256(low, two_bits),
                                            _mm256_and_si256(high, third_bit));
                _mm256_storeu_ps(out, _mm256_permutevar8x32_ps(products, q));
                low = g == 3 ? load_octet(block->qs + 32 + i) : _mm256_srli_epi32(low, 2);
                high = _mm256_srli_epi32(high, 1);
            }
        }
    }
}

/** y[0..8) = scale * q - min; the product is exact, so fusing changes nothing. */
static inline void store_k_octet(float *y, __m256i q, const struct kern_k_factors *factors,
                                 int group)
{
    __m256 scale = _mm256_set1_ps(factors->scales[group]);
    __m256 min = _mm256_set1_ps(factors->mins[group]);
    _mm256_storeu_ps(y, _mm256_fmsub_ps(scale, _mm256_cvtepi32_ps(q), min));
}

void kern_avx2_decode_q4_k(const void *blocks, float *y, size_t n)
{
    const __m256i low = _mm256_set1_epi32(15);
    const struct kern_block_q4_k *block = blocks;
    for (const float *end = y + n; y < end; y += 256, block++) {
        struct kern_k_factors factors;
        kern_avx2_q4_k_factors(&factors, block->scales, block->d, block->dmin);
        for (int g = 0; g < 8; g += 2)
            for (int j = 0; j < 32; j += 8) {
                __m256i q = load_octet(block->qs + 16 * g + j);
                store_k_octet(y + 32 * g + j, _mm256_and_si256(q, low), &factors, g);
                store_k_octet(y + 32 * g + 32 + j, _mm256_srli_epi32(q, 4), &factors, g + 1);
            }
    }
}

void kern_avx2_decode_q5_k(const void *blocks, float *y, size_t n)
{
    const __m256i low = _mm256_set1_epi32(15), fifth = _mm256_set1_epi32(16);
    const struct kern_block_q5_k *block = blocks;
    for (const float *end = y + n; y < end; y += 256, block++) {
        struct kern_k_factors factors;
        kern_avx2_q4_k_factors(&factors, block->scales, block->d, block->dmin);
        for (int j = 0; j < 32; j += 8) {
            __m256i high = _mm256_slli_epi32(load_octet(block->qh + j), 4);
            for (int g = 0; g < 8; g += 2) {
                __m256i q = load_octet(block->qs + 16 * g + j);
                __m256i even =
                    _mm256_or_si256(_mm256_and_si256(q, low), _mm256_and_si256(high, fifth));
                high = _mm256_srli_epi32(high, 1);
                __m256i odd =
                    _mm256_or_si256(_mm256_srli_epi32(q, 4), _mm256_and_si256(high, fifth));
                high = _mm256_srli_epi32(high, 1);
                store_k_octet(y + 32 * g + j, even, &factors, g);
                store_k_octet(y + 32 * g + 32 + j, odd, &factors, g + 1);
            }
        }
    }
}

/** y[0..8) = scale * (q - 32), q in two parts without common bits. */
static inline void store_q6_octet(float *y, __m256i low, __m256i high, float scale)
{
    __m256i q = _mm256_sub_epi32(_mm256_or_si256(low, high), _mm256_set1_epi32(32));
    _mm256_storeu_ps(y, _mm256_mul_ps(_mm256_set1_ps(scale), _mm256_cvtepi32_ps(q)));
}

void kern_avx2_decode_q6_k(const void *blocks, float *y, size_t n)
{
    const __m256i low = _mm256_set1_epi32(15), two_bits = _mm256_set1_epi32(48);
    const struct kern_block_q6_k *block = blocks;
    for (const float *end = y + n; y < end; y += 256, block++) {
        float scales[16];
        kern_avx2_q6_k_scales(scales, block);
        for (int i = 0; i < 64; i += 8) { /* eight columns of half i / 32 */
            const uint8_t *ql = block->ql + 64 * (i / 32) + i % 32;
            __m256i a = load_octet(ql), b = load_octet(ql + 32);
            __m256i h = load_octet(block->qh + i);
            __m256i h0 = _mm256_and_si256(_mm256_slli_epi32(h, 4), two_bits);
            __m256i h1 = _mm256_and_si256(_mm256_slli_epi32(h, 2), two_bits);
            __m256i h2 = _mm256_and_si256(h, two_bits);
            __m256i h3 = _mm256_and_si256(_mm256_srli_epi32(h, 2), two_bits);
            const float *scale = scales + 8 * (i / 32) + i % 32 / 16;
            float *out = y + 128 * (i / 32) + i % 32;
            store_q6_octet(out, _mm256_and_si256(a, low), h0, scale[0]);
            store_q6_octet(out + 32, _mm256_and_si256(b, low), h1, scale[2]);
            store_q6_octet(out + 64, _mm256_srli_epi32(a, 4), h2, scale[4]);
            store_q6_octet(out + 96, _mm256_srli_epi32(b, 4), h3, scale[6]);
        }
    }
}
