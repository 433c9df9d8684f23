/** One and two bits or a base-3 digit per weight, one scale per block: Q1_0, Q2_0, TQ1_0, TQ2_0. */
#include "kernels/cpu/avx2/decode.h"
#include "kernels/cpu/avx2/expand.h"
#include "kernels/quant/q1_0.h"
#include "kernels/quant/q2_0.h"
#include "kernels/quant/tq1_0.h"
#include "kernels/quant/tq2_0.h"

/** d * (q - 1) for q = 0..3, in each half of the register. */
static inline __m256 ternary_products(__m256 d)
{
    return _mm256_mul_ps(d, _mm256_setr_ps(-1, 0, 1, 2, -1, 0, 1, 2));
}

void kern_avx2_decode_q1_0(const void *blocks, float *y, size_t n)
{
    const struct kern_block_q1_0 *block = blocks;
    for (const float *end = y + n; y < end; y += 128, block++) {
        __m256 d = load_half8(block->d);
        for (int g = 0; g < 4; g++) {
            /* a clear bit is -d */
            __m256i clear = _mm256_set1_epi32((int)~kern_load_u32(block->qs + 4 * g));
            for (int octet = 0; octet < 4; octet++)
                _mm256_storeu_ps(y + 32 * g + 8 * octet, flip_signs(d, sign_bits(clear, octet)));
        }
    }
}

void kern_avx2_decode_q2_0(const void *blocks, float *y, size_t n)
{
    const __m256i shift0 = _mm256_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14);
    const __m256i shift1 = _mm256_setr_epi32(16, 18, 20, 22, 24, 26, 28, 30);
    const struct kern_block_q2_0 *block = blocks;
    for (const float *end = y + n; y < end; y += 64, block++) {
        __m256 products = ternary_products(load_half8(block->d));
        for (int i = 0; i < 4; i++) {
            __m256i q = _mm256_set1_epi32((int)kern_load_u32(block->qs + 4 * i));
            __m256 a = _mm256_permutevar_ps(products, _mm256_srlv_epi32(q, shift0));
            __m256 b = _mm256_permutevar_ps(products, _mm256_srlv_epi32(q, shift1));
            _mm256_storeu_ps(y + 16 * i, a);
            _mm256_storeu_ps(y + 16 * i + 8, b);
        }
    }
}

void kern_avx2_decode_tq2_0(const void *blocks, float *y, size_t n)
{
    const struct kern_block_tq2_0 *block = blocks;
    for (const float *end = y + n; y < end; y += 256, block++) {
        __m256 products = ternary_products(load_half8(block->d));
        for (int i = 0; i < 64; i += 8) {
            __m256i q = load_octet(block->qs + i);
            float *out = y + 128 * (i / 32) + i % 32;
            for (int s = 0; s < 4; s++) {
                _mm256_storeu_ps(out + 32 * s, _mm256_permutevar_ps(products, q));
                q = _mm256_srli_epi32(q, 2);
            }
        }
    }
}

/**
 * The first n_digits digits of the eight bytes x, digit k at y + k * stride: three times the
 * fraction is the digit, and below it the next fraction.
 */
static inline void store_digits(float *y, size_t stride, __m256i x, int n_digits, __m256 products)
{
    for (int k = 0; k < n_digits; k++) {
        x = _mm256_add_epi32(x, _mm256_slli_epi32(x, 1));
        _mm256_storeu_ps(y + (size_t)k * stride,
                         _mm256_permutevar_ps(products, _mm256_srli_epi32(x, 8)));
        x = _mm256_and_si256(x, _mm256_set1_epi32(255));
    }
}

void kern_avx2_decode_tq1_0(const void *blocks, float *y, size_t n)
{
    const struct kern_block_tq1_0 *block = blocks;
    for (const float *end = y + n; y < end; y += 256, block++) {
        __m256 products = ternary_products(load_half8(block->d));
        for (int i = 0; i < 32; i += 8)
            store_digits(y + i, 32, load_octet(block->qs + i), 5, products);
        for (int i = 0; i < 16; i += 8)
            store_digits(y + 160 + i, 16, load_octet(block->qs + 32 + i), 5, products);
        /* the four bytes of qh in both halves, those of the upper half one digit ahead */
        __m256i x = _mm256_cvtepu8_epi32(_mm_set1_epi32((int)kern_load_u32(block->qh)));
        __m256i tripled = _mm256_add_epi32(x, _mm256_slli_epi32(x, 1));
        x = _mm256_blend_epi32(x, _mm256_and_si256(tripled, _mm256_set1_epi32(255)), 0xf0);
        for (int pair = 0; pair < 2; pair++) {
            __m256i digit = _mm256_add_epi32(x, _mm256_slli_epi32(x, 1));
            _mm256_storeu_ps(y + 240 + 8 * pair,
                             _mm256_permutevar_ps(products, _mm256_srli_epi32(digit, 8)));
            __m256i ninefold = _mm256_add_epi32(x, _mm256_slli_epi32(x, 3));
            x = _mm256_and_si256(ninefold, _mm256_set1_epi32(255));
        }
    }
}
