/**
 * The K types: 256 elements with scales of their own per 16 or 32. Q2_K, with products looked up
 * per 16 elements, gains nothing here and stays with AVX2.
 */
#include "kernels/cpu/avx2/scales.h"
#include "kernels/cpu/avx512/decode.h"
#include "kernels/cpu/avx512/expand.h"
#include "kernels/quant/q3_k.h"
#include "kernels/quant/q4_k.h"
#include "kernels/quant/q5_k.h"
#include "kernels/quant/q6_k.h"

void kern_avx512_decode_q3_k(const void *blocks, float *y, size_t n)
{
    /* twice, because the fourth bit of a code is not cleared */
    const __m512 values = _mm512_setr_ps(-4, -3, -2, -1, 0, 1, 2, 3, -4, -3, -2, -1, 0, 1, 2, 3);
    const __m512i two_bits = _mm512_set1_epi32(3);
    const struct kern_block_q3_k *block = blocks;
    for (const float *end = y + n; y < end; y += 256, block++) {
        float scales[16];
        kern_avx2_q3_k_scales(scales, block);
        for (int i = 0; i < 32; i += 16) { /* sixteen columns of both halves */
            __m512i low = load_bytes(block->qs + i);
            __m512i high = _mm512_slli_epi32(load_bytes(block->hmask + i), 2);
            float *out = y + i;
            for (int g = 0; g < 8; g++, out += 32) {
                __m512 products = _mm512_mul_ps(_mm512_set1_ps(scales[2 * g + i / 16]), values);
                _mm512_storeu_ps(out, look_up16(products, select_bits(two_bits, low, high)));
                low = g == 3 ? load_bytes(block->qs + 32 + i) : _mm512_srli_epi32(low, 2);
                high = _mm512_srli_epi32(high, 1);
            }
        }
    }
}

/** scale * digit - min for sixteen digits; the product is exact, so fusing changes nothing. */
static inline __m512 k_products(const struct kern_k_factors *factors, int group, __m512 digits)
{
    return _mm512_fmsub_ps(_mm512_set1_ps(factors->scales[group]), digits,
                           _mm512_set1_ps(factors->mins[group]));
}

void kern_avx512_decode_q4_k(const void *blocks, float *y, size_t n)
{
    const struct kern_block_q4_k *block = blocks;
    for (const float *end = y + n; y < end; y += 256, block++) {
        struct kern_k_factors factors;
        kern_avx2_q4_k_factors(&factors, block->scales, block->d, block->dmin);
        for (int g = 0; g < 8; g += 2) {
            __m512 even = k_products(&factors, g, digits16());
            __m512 odd = k_products(&factors, g + 1, digits16());
            for (int j = 0; j < 32; j += 16) {
                __m512i q = load_bytes(block->qs + 16 * g + j);
                _mm512_storeu_ps(y + 32 * g + j, look_up16(even, q));
                _mm512_storeu_ps(y + 32 * g + 32 + j, look_up16(odd, _mm512_srli_epi32(q, 4)));
            }
        }
    }
}

void kern_avx512_decode_q5_k(const void *blocks, float *y, size_t n)
{
    const __m512i nibble = _mm512_set1_epi32(15);
    const struct kern_block_q5_k *block = blocks;
    for (const float *end = y + n; y < end; y += 256, block++) {
        struct kern_k_factors factors;
        kern_avx2_q4_k_factors(&factors, block->scales, block->d, block->dmin);
        /* the fifth bit of the current group at bit 4 */
        __m512i high0 = _mm512_slli_epi32(load_bytes(block->qh), 4);
        __m512i high1 = _mm512_slli_epi32(load_bytes(block->qh + 16), 4);
        for (int g = 0; g < 8; g++) {
            __m512 below = k_products(&factors, g, digits16());
            __m512 above = k_products(&factors, g, digits32());
            unsigned shift = 4 * (g % 2);
            __m512i q0 = _mm512_srli_epi32(load_bytes(block->qs + 32 * (g / 2)), shift);
            __m512i q1 = _mm512_srli_epi32(load_bytes(block->qs + 32 * (g / 2) + 16), shift);
            __m512i codes0 = select_bits(nibble, q0, high0);
            __m512i codes1 = select_bits(nibble, q1, high1);
            _mm512_storeu_ps(y + 32 * g, look_up32(below, above, codes0));
            _mm512_storeu_ps(y + 32 * g + 16, look_up32(below, above, codes1));
            high0 = _mm512_srli_epi32(high0, 1);
            high1 = _mm512_srli_epi32(high1, 1);
        }
    }
}

/** y[0..16) = scale * (q - 32): four low bits of `low`, two of `high` above them. */
static inline void store_q6(float *y, __m512i low, __m512i high, float scale)
{
    __m512i q = select_bits(_mm512_set1_epi32(15), low, high);
    q = _mm512_and_si512(q, _mm512_set1_epi32(63));
    q = _mm512_sub_epi32(q, _mm512_set1_epi32(32));
    _mm512_storeu_ps(y, _mm512_mul_ps(_mm512_set1_ps(scale), _mm512_cvtepi32_ps(q)));
}

void kern_avx512_decode_q6_k(const void *blocks, float *y, size_t n)
{
    const struct kern_block_q6_k *block = blocks;
    for (const float *end = y + n; y < end; y += 256, block++) {
        float scales[16];
        kern_avx2_q6_k_scales(scales, block);
        for (int i = 0; i < 64; i += 16) { /* sixteen columns of half i / 32 */
            const uint8_t *ql = block->ql + 64 * (i / 32) + i % 32;
            __m512i a = load_bytes(ql), b = load_bytes(ql + 32);
            __m512i h = load_bytes(block->qh + i);
            const float *scale = scales + 8 * (i / 32) + i % 32 / 16;
            float *out = y + 128 * (i / 32) + i % 32;
            store_q6(out, a, _mm512_slli_epi32(h, 4), scale[0]);
            store_q6(out + 32, b, _mm512_slli_epi32(h, 2), scale[2]);
            store_q6(out + 64, _mm512_srli_epi32(a, 4), h, scale[4]);
            store_q6(out + 96, _mm512_srli_epi32(b, 4), _mm512_srli_epi32(h, 2), scale[6]);
        }
    }
}
