/**
 * Codes of 4 or 5 bits, one scale and perhaps a minimum: Q4_0, Q4_1, Q5_0, Q5_1, IQ4_NL, IQ4_XS,
 * MXFP4, NVFP4. Every element is looked up among the 16 or 32 products of its scale. Adding the
 * minimum is fused with the product, which is exact (quant/bytes.h).
 */
#include "kernels/cpu/avx2/scales.h"
#include "kernels/cpu/avx512/decode.h"
#include "kernels/cpu/avx512/expand.h"
#include "kernels/quant/iq4_nl.h"
#include "kernels/quant/iq4_xs.h"
#include "kernels/quant/mxfp4.h"
#include "kernels/quant/nvfp4.h"
#include "kernels/quant/q4_0.h"
#include "kernels/quant/q4_1.h"
#include "kernels/quant/q5_0.h"
#include "kernels/quant/q5_1.h"

/** Sixteen bytes of two codes each: y[0..16) from the low nibbles, y[16..32) from the high. */
static inline void store_nibbles32(float *y, const uint8_t *qs, __m512 products)
{
    __m512i q = load_bytes(qs);
    _mm512_storeu_ps(y, look_up16(products, q));
    _mm512_storeu_ps(y + 16, look_up16(products, _mm512_srli_epi32(q, 4)));
}

void kern_avx512_decode_q4_0(const void *blocks, float *y, size_t n)
{
    const __m512 values = _mm512_sub_ps(digits16(), _mm512_set1_ps(8));
    const struct kern_block_q4_0 *block = blocks;
    for (const float *end = y + n; y < end; y += 32, block++)
        store_nibbles32(y, block->qs, _mm512_mul_ps(load_half16(block->d), values));
}

void kern_avx512_decode_q4_1(const void *blocks, float *y, size_t n)
{
    const struct kern_block_q4_1 *block = blocks;
    for (const float *end = y + n; y < end; y += 32, block++) {
        __m512 d = load_half16(block->d), m = load_half16(block->m);
        store_nibbles32(y, block->qs, _mm512_fmadd_ps(digits16(), d, m));
    }
}

/** As store_nibbles32, with bit j of qh as the fifth bit of element j. */
static inline void store_codes32(float *y, const uint8_t *qs, const uint8_t *qh, __m512 low,
                                 __m512 high)
{
    /* rotating right by j - 4 brings bit j to bit 4 */
    const __m512i rotate0 = _mm512_setr_epi32(28, 29, 30, 31, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11);
    const __m512i rotate1 =
        _mm512_setr_epi32(12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27);
    const __m512i nibble = _mm512_set1_epi32(15);
    __m512i q = load_bytes(qs);
    __m512i h = load_word16(qh);
    __m512i codes0 = select_bits(nibble, q, _mm512_rorv_epi32(h, rotate0));
    __m512i codes1 = select_bits(nibble, _mm512_srli_epi32(q, 4), _mm512_rorv_epi32(h, rotate1));
    _mm512_storeu_ps(y, look_up32(low, high, codes0));
    _mm512_storeu_ps(y + 16, look_up32(low, high, codes1));
}

void kern_avx512_decode_q5_0(const void *blocks, float *y, size_t n)
{
    const __m512 below = _mm512_sub_ps(digits16(), _mm512_set1_ps(16));
    const struct kern_block_q5_0 *block = blocks;
    for (const float *end = y + n; y < end; y += 32, block++) {
        __m512 d = load_half16(block->d);
        store_codes32(y, block->qs, block->qh, _mm512_mul_ps(d, below),
                      _mm512_mul_ps(d, digits16()));
    }
}

void kern_avx512_decode_q5_1(const void *blocks, float *y, size_t n)
{
    const struct kern_block_q5_1 *block = blocks;
    for (const float *end = y + n; y < end; y += 32, block++) {
        __m512 d = load_half16(block->d), m = load_half16(block->m);
        store_codes32(y, block->qs, block->qh, _mm512_fmadd_ps(digits16(), d, m),
                      _mm512_fmadd_ps(digits32(), d, m));
    }
}

void kern_avx512_decode_iq4_nl(const void *blocks, float *y, size_t n)
{
    const __m512 values = load_signed_float(kern_iq4_values);
    const struct kern_block_iq4_nl *block = blocks;
    for (const float *end = y + n; y < end; y += 32, block++)
        store_nibbles32(y, block->qs, _mm512_mul_ps(load_half16(block->d), values));
}

void kern_avx512_decode_iq4_xs(const void *blocks, float *y, size_t n)
{
    const __m512 values = load_signed_float(kern_iq4_values);
    const struct kern_block_iq4_xs *block = blocks;
    for (const float *end = y + n; y < end; y += 256, block++) {
        float scales[8];
        kern_avx2_iq4_xs_scales(scales, block);
        for (int g = 0; g < 8; g++)
            store_nibbles32(y + 32 * g, block->qs + 16 * g,
                            _mm512_mul_ps(_mm512_set1_ps(scales[g]), values));
    }
}

void kern_avx512_decode_mxfp4(const void *blocks, float *y, size_t n)
{
    const __m512 values = load_signed_float(kern_fp4_values);
    const struct kern_block_mxfp4 *block = blocks;
    for (const float *end = y + n; y < end; y += 32, block++) {
        __m512 scale = _mm512_set1_ps(kern_mxfp4_scale(block->e));
        store_nibbles32(y, block->qs, _mm512_mul_ps(scale, values));
    }
}

void kern_avx512_decode_nvfp4(const void *blocks, float *y, size_t n)
{
    const __m512 values = load_signed_float(kern_fp4_values);
    const __m512i nibble = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 4, 4, 4, 4, 4, 4, 4, 4);
    const struct kern_block_nvfp4 *block = blocks;
    for (const float *end = y + n; y < end; y += 64, block++) {
        float scales[4];
        nvfp4_scales(scales, block);
        for (int run = 0; run < 4; run++) {
            /* eight bytes: low nibbles to the first eight lanes, high ones to the others */
            __m128i q = _mm_loadl_epi64((const __m128i *)(block->qs + 8 * run));
            __m512i both = _mm512_cvtepu8_epi32(_mm_unpacklo_epi64(q, q));
            __m512 products = _mm512_mul_ps(_mm512_set1_ps(scales[run]), values);
            _mm512_storeu_ps(y + 16 * run, look_up16(products, _mm512_srlv_epi32(both, nibble)));
        }
    }
}
