/**
 * F16, BF16 and F8: a conversion per element. Q4_0, Q4_1, Q5_0, Q5_1, Q8_0: blocks of 32, one
 * scale.
 */
#include "kernels/cpu/avx2/decode.h"
#include "kernels/cpu/avx2/expand.h"
#include "kernels/quant/bf16.h"
#include "kernels/quant/f16.h"
#include "kernels/quant/f8.h"
#include "kernels/quant/q4_0.h"
#include "kernels/quant/q4_1.h"
#include "kernels/quant/q5_0.h"
#include "kernels/quant/q5_1.h"
#include "kernels/quant/q8_0.h"

void kern_avx2_decode_f16(const void *blocks, float *y, size_t n)
{
    const struct kern_block_f16 *x = blocks;
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(y + i, _mm256_cvtph_ps(load16(x[i].value)));
    kern_f16_row(x + i, y + i, n - i);
}

void kern_avx2_decode_bf16(const void *blocks, float *y, size_t n)
{
    const struct kern_block_bf16 *x = blocks;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m256i bits = _mm256_slli_epi32(_mm256_cvtepu16_epi32(load16(x[i].value)), 16);
        _mm256_storeu_ps(y + i, _mm256_castsi256_ps(bits));
    }
    kern_bf16_row(x + i, y + i, n - i);
}

/** Sixteen E4M3 numbers as halves, which are 2^-8 of them. */
static inline __m256i halves_of_e4m3(__m128i codes)
{
    const __m256i most = _mm256_set1_epi16(0x7f);
    __m256i x = _mm256_cvtepu8_epi16(codes), magnitude = _mm256_and_si256(x, most);
    __m256i nan = _mm256_cmpeq_epi16(magnitude, most);
    __m256i sign = _mm256_slli_epi16(_mm256_andnot_si256(most, x), 8);
    return _mm256_or_si256(_mm256_or_si256(_mm256_slli_epi16(magnitude, 7), sign), nan);
}

/** y[0..16) = d * (step * halves): the first product is exact. */
static inline void store_halves(float *y, __m256i halves, __m256 step, __m256 d)
{
    __m256 low = _mm256_cvtph_ps(_mm256_castsi256_si128(halves));
    __m256 high = _mm256_cvtph_ps(_mm256_extracti128_si256(halves, 1));
    _mm256_storeu_ps(y, _mm256_mul_ps(d, _mm256_mul_ps(step, low)));
    _mm256_storeu_ps(y + 8, _mm256_mul_ps(d, _mm256_mul_ps(step, high)));
}

void kern_avx2_decode_f8_e4m3(const void *blocks, float *y, size_t n)
{
    const __m256 step = _mm256_set1_ps(0x1p8f);
    const struct kern_block_f8_e4m3 *block = blocks;
    for (const float *end = y + n; y < end; y += 32, block++) {
        __m256 d = _mm256_castsi256_ps(_mm256_set1_epi32((int)kern_load_u32(block->d)));
        for (int j = 0; j < 32; j += 16)
            store_halves(y + j, halves_of_e4m3(load16(block->qs + j)), step, d);
    }
}

void kern_avx2_decode_f8_e5m2(const void *blocks, float *y, size_t n)
{
    const __m256 step = _mm256_set1_ps(1.0f);
    const struct kern_block_f8_e5m2 *block = blocks;
    for (const float *end = y + n; y < end; y += 32, block++) {
        __m256 d = _mm256_castsi256_ps(_mm256_set1_epi32((int)kern_load_u32(block->d)));
        for (int j = 0; j < 32; j += 16) {
            __m256i codes = _mm256_cvtepu8_epi16(load16(block->qs + j));
            store_halves(y + j, _mm256_slli_epi16(codes, 8), step, d);
        }
    }
}

/** y[0..8) = d * q. */
static inline void store_scaled(float *y, __m256i q, __m256 d)
{
    _mm256_storeu_ps(y, _mm256_mul_ps(d, _mm256_cvtepi32_ps(q)));
}

/** y[0..8) = q * d + m; the product is exact, so fusing it with the sum changes nothing. */
static inline void store_shifted(float *y, __m256i q, __m256 d, __m256 m)
{
    _mm256_storeu_ps(y, _mm256_fmadd_ps(_mm256_cvtepi32_ps(q), d, m));
}

/** All ones in lane j where bit 8 * octet + j of word is set. */
static inline __m256i bit_mask(__m256i word, int octet)
{
    __m256i bits = _mm256_slli_epi32(_mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128), 8 * octet);
    return _mm256_cmpeq_epi32(_mm256_and_si256(word, bits), bits);
}

void kern_avx2_decode_q4_0(const void *blocks, float *y, size_t n)
{
    const __m256i low = _mm256_set1_epi32(15), eight = _mm256_set1_epi32(8);
    const struct kern_block_q4_0 *block = blocks;
    for (const float *end = y + n; y < end; y += 32, block++) {
        __m256 d = load_half8(block->d);
        for (int j = 0; j < 16; j += 8) {
            __m256i q = load_octet(block->qs + j);
            store_scaled(y + j, _mm256_sub_epi32(_mm256_and_si256(q, low), eight), d);
            store_scaled(y + 16 + j, _mm256_sub_epi32(_mm256_srli_epi32(q, 4), eight), d);
        }
    }
}

void kern_avx2_decode_q4_1(const void *blocks, float *y, size_t n)
{
    const __m256i low = _mm256_set1_epi32(15);
    const struct kern_block_q4_1 *block = blocks;
    for (const float *end = y + n; y < end; y += 32, block++) {
        __m256 d = load_half8(block->d), m = load_half8(block->m);
        for (int j = 0; j < 16; j += 8) {
            __m256i q = load_octet(block->qs + j);
            store_shifted(y + j, _mm256_and_si256(q, low), d, m);
            store_shifted(y + 16 + j, _mm256_srli_epi32(q, 4), d, m);
        }
    }
}

void kern_avx2_decode_q5_0(const void *blocks, float *y, size_t n)
{
    const __m256i low = _mm256_set1_epi32(15), minus16 = _mm256_set1_epi32(-16);
    const struct kern_block_q5_0 *block = blocks;
    for (const float *end = y + n; y < end; y += 32, block++) {
        __m256 d = load_half8(block->d);
        __m256i high = _mm256_set1_epi32((int)kern_load_u32(block->qh));
        for (int half = 0; half < 2; half++) {
            /* q - 16: the four low bits where the fifth is set, else those or-ed into -16 */
            __m256i q = load_octet(block->qs + 8 * half);
            __m256i a = _mm256_andnot_si256(bit_mask(high, half), minus16);
            __m256i b = _mm256_andnot_si256(bit_mask(high, half + 2), minus16);
            store_scaled(y + 8 * half, _mm256_or_si256(_mm256_and_si256(q, low), a), d);
            store_scaled(y + 16 + 8 * half, _mm256_or_si256(_mm256_srli_epi32(q, 4), b), d);
        }
    }
}

void kern_avx2_decode_q5_1(const void *blocks, float *y, size_t n)
{
    const __m256i low = _mm256_set1_epi32(15), sixteen = _mm256_set1_epi32(16);
    const struct kern_block_q5_1 *block = blocks;
    for (const float *end = y + n; y < end; y += 32, block++) {
        __m256 d = load_half8(block->d), m = load_half8(block->m);
        __m256i high = _mm256_set1_epi32((int)kern_load_u32(block->qh));
        for (int half = 0; half < 2; half++) {
            __m256i q = load_octet(block->qs + 8 * half);
            __m256i a = _mm256_and_si256(bit_mask(high, half), sixteen);
            __m256i b = _mm256_and_si256(bit_mask(high, half + 2), sixteen);
            store_shifted(y + 8 * half, _mm256_or_si256(_mm256_and_si256(q, low), a), d, m);
            store_shifted(y + 16 + 8 * half, _mm256_or_si256(_mm256_srli_epi32(q, 4), b), d, m);
        }
    }
}

void kern_avx2_decode_q8_0(const void *blocks, float *y, size_t n)
{
    const struct kern_block_q8_0 *block = blocks;
    for (const float *end = y + n; y < end; y += 32, block++) {
        __m256 d = load_half8(block->d);
        for (int j = 0; j < 32; j += 8) {
            __m128i q = _mm_loadl_epi64((const __m128i *)(block->qs + j));
            _mm256_storeu_ps(y + j, _mm256_mul_ps(d, low_octet_float(q)));
        }
    }
}
