/**
 * Steps that the AVX-512 decoders share: sixteen bytes or codes in the sixteen 32-bit lanes of a
 * register, one element each.
 *
 * Where a format has few values per scale, the products scale * value are computed once and
 * looked up: vpermilps takes a code of 2 bits, vpermps one of 4, vpermt2ps one of 5. All ignore
 * the bits above, so that a shift is all that a packed code needs. The product is the same
 * float32 operation as in the scalar decoder, whichever element it is for.
 */
#ifndef KERNELS_CPU_AVX512_EXPAND_H
#define KERNELS_CPU_AVX512_EXPAND_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/cpu/avx2/expand.h"
#include "kernels/quant/bytes.h"

/** The half at p in all lanes. */
static inline __m512 load_half16(const uint8_t *p)
{
    return _mm512_cvtph_ps(_mm256_set1_epi16((short)kern_load_u16(p)));
}

/** The little-endian word at p in all lanes. */
static inline __m512i load_word16(const uint8_t *p)
{
    return _mm512_set1_epi32((int)kern_load_u32(p));
}

/** Sixteen unsigned bytes at p, one per lane. */
static inline __m512i load_bytes(const uint8_t *p)
{
    return _mm512_cvtepu8_epi32(load16(p));
}

/** Sixteen signed bytes at p as floats. */
static inline __m512 load_signed_float(const void *p)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p)));
}

/** 0, 1, ... 15 and 16, 17, ... 31 as floats. */
static inline __m512 digits16(void)
{
    return _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}

static inline __m512 digits32(void)
{
    return _mm512_setr_ps(16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31);
}

/** The bits of `low` where `mask` is set, else those of `high`. */
static inline __m512i select_bits(__m512i mask, __m512i low, __m512i high)
{
    return _mm512_ternarylogic_epi32(mask, low, high, 0xca);
}

/** Lane j of the products at the low four bits of each code. */
static inline __m512 look_up16(__m512 products, __m512i codes)
{
    return _mm512_permutexvar_ps(codes, products);
}

/** Products of the codes 0..15 and 16..31 at the low five bits of each code. */
static inline __m512 look_up32(__m512 low, __m512 high, __m512i codes)
{
    return _mm512_permutex2var_ps(low, codes, high);
}

/** Flip the sign of lane j where bit j of `signs` is set. */
static inline __m512 flip_signs16(__m512 value, uint32_t signs)
{
    return _mm512_mask_xor_ps(value, (__mmask16)signs, value, _mm512_set1_ps(-0.0f));
}

#endif
