/** One and two bits or a base-3 digit per weight, one scale per block: Q1_0, Q2_0, TQ1_0, TQ2_0. */
#include "kernels/cpu/avx512/decode.h"
#include "kernels/cpu/avx512/expand.h"
#include "kernels/quant/ik/bn.h"
#include "kernels/quant/q1_0.h"
#include "kernels/quant/q2_0.h"
#include "kernels/quant/tq1_0.h"
#include "kernels/quant/tq2_0.h"

/** d * (q - 1) for q = 0..3, in each quarter of the register. */
static inline __m512 ternary_products(const uint8_t *d)
{
    const __m512 values = _mm512_broadcast_f32x4(_mm_setr_ps(-1, 0, 1, 2));
    return _mm512_mul_ps(load_half16(d), values);
}

void kern_avx512_decode_q1_0(const void *blocks, float *y, size_t n)
{
    const __m512 top_bit = _mm512_set1_ps(-0.0f);
    const struct kern_block_q1_0 *block = blocks;
    for (const float *end = y + n; y < end; y += 128, block++) {
        __m512 set = load_half16(block->d);
        __m512 clear = _mm512_xor_ps(set, top_bit);
        for (int i = 0; i < 8; i++) {
            __mmask16 bits = (__mmask16)kern_load_u16(block->qs + 2 * i);
            _mm512_storeu_ps(y + 16 * i, _mm512_mask_blend_ps(bits, clear, set));
        }
    }
}

void kern_avx512_decode_q2_0(const void *blocks, float *y, size_t n)
{
    const __m512i shift =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const struct kern_block_q2_0 *block = blocks;
    for (const float *end = y + n; y < end; y += 64, block++) {
        __m512 products = ternary_products(block->d);
        for (int i = 0; i < 4; i++) {
            __m512i q = _mm512_srlv_epi32(load_word16(block->qs + 4 * i), shift);
            _mm512_storeu_ps(y + 16 * i, _mm512_permutevar_ps(products, q));
        }
    }
}

void kern_avx512_decode_tq2_0(const void *blocks, float *y, size_t n)
{
    const struct kern_block_tq2_0 *block = blocks;
    for (const float *end = y + n; y < end; y += 256, block++) {
        __m512 products = ternary_products(block->d);
        for (int i = 0; i < 64; i += 16) {
            __m512i q = load_bytes(block->qs + i);
            float *out = y + 128 * (i / 32) + i % 32;
            for (int s = 0; s < 4; s++) {
                _mm512_storeu_ps(out + 32 * s, _mm512_permutevar_ps(products, q));
                q = _mm512_srli_epi32(q, 2);
            }
        }
    }
}

void kern_avx512_decode_i2_s(const void *blocks, float *y, size_t n)
{
    const __m512 values = _mm512_broadcast_f32x4(_mm_setr_ps(-1, 0, 1, 2));
    const struct kern_block_i2_s *block = blocks;
    for (const float *end = y + n; y < end; y += 128, block++) {
        __m512 products = _mm512_mul_ps(_mm512_castsi512_ps(load_word16(block->d)), values);
        for (int j = 0; j < 32; j += 16) {
            __m512i q = load_bytes(block->qs + j);
            for (int m = 3; m >= 0; m--, q = _mm512_srli_epi32(q, 2))
                _mm512_storeu_ps(y + 32 * m + j, _mm512_permutevar_ps(products, q));
        }
    }
}

/**
 * The five digits of the sixteen bytes x, digit k at y + k * stride: three times the fraction is
 * the digit, and below it the next fraction.
 */
static inline void store_digits(float *y, size_t stride, __m512i x, __m512 products)
{
    for (size_t k = 0; k < 5; k++) {
        x = _mm512_add_epi32(x, _mm512_slli_epi32(x, 1));
        __m512i digits = _mm512_srli_epi32(x, 8);
        _mm512_storeu_ps(y + k * stride, _mm512_permutevar_ps(products, digits));
        x = _mm512_and_si512(x, _mm512_set1_epi32(255));
    }
}

void kern_avx512_decode_tq1_0(const void *blocks, float *y, size_t n)
{
    const __m512i powers = _mm512_setr_epi32(1, 1, 1, 1, 3, 3, 3, 3, 9, 9, 9, 9, 27, 27, 27, 27);
    const struct kern_block_tq1_0 *block = blocks;
    for (const float *end = y + n; y < end; y += 256, block++) {
        __m512 products = ternary_products(block->d);
        for (int i = 0; i < 32; i += 16)
            store_digits(y + i, 32, load_bytes(block->qs + i), products);
        store_digits(y + 160, 16, load_bytes(block->qs + 32), products);
        /* the four bytes of qh in each quarter, digit k in quarter k */
        __m512i x = _mm512_cvtepu8_epi32(_mm_set1_epi32((int)kern_load_u32(block->qh)));
        x = _mm512_and_si512(_mm512_mullo_epi32(x, powers), _mm512_set1_epi32(255));
        x = _mm512_srli_epi32(_mm512_add_epi32(x, _mm512_slli_epi32(x, 1)), 8);
        _mm512_storeu_ps(y + 240, _mm512_permutevar_ps(products, x));
    }
}
