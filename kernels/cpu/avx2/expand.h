/**
 * Steps that the AVX2 decoders share. A decoder works on octets: eight bytes or codes in the
 * eight 32-bit lanes of a register, one element each.
 *
 * Where a format has at most eight values per scale, the products scale * value are computed
 * once and looked up: vpermilps takes a code of 2 bits, vpermps one of 3, and both ignore the
 * bits above, so that a shift is all that a packed code needs. The product is the same float32
 * operation as in the scalar decoder, whichever element it is for.
 */
#ifndef KERNELS_CPU_AVX2_EXPAND_H
#define KERNELS_CPU_AVX2_EXPAND_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/quant/bytes.h"

/** The half at p in all lanes. */
static inline __m256 load_half8(const uint8_t *p)
{
    return _mm256_cvtph_ps(_mm_set1_epi16((short)kern_load_u16(p)));
}

/** Eight unsigned bytes at p, one per lane. */
static inline __m256i load_octet(const uint8_t *p)
{
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p));
}

/** Sixteen bytes at p. */
static inline __m128i load16(const uint8_t *p)
{
    return _mm_loadu_si128((const __m128i *)p);
}

/** Thirty-two bytes at p. */
static inline __m256i load32(const uint8_t *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}

/** Bytes 0..7 and 8..15 of a register, signed, as floats. */
static inline __m256 low_octet_float(__m128i bytes)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes));
}

static inline __m256 high_octet_float(__m128i bytes)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_unpackhi_epi64(bytes, bytes)));
}

/** y[0..16) = scale * the sixteen signed bytes. */
static inline void store_scaled16(float *y, __m128i bytes, __m256 scale)
{
    _mm256_storeu_ps(y, _mm256_mul_ps(scale, low_octet_float(bytes)));
    _mm256_storeu_ps(y + 8, _mm256_mul_ps(scale, high_octet_float(bytes)));
}

/** Bit 8 * octet + j of word, for lane j, moved to the lane's sign bit. */
static inline __m256i sign_bits(__m256i word, int octet)
{
    __m256i shift = _mm256_sub_epi32(_mm256_setr_epi32(31, 30, 29, 28, 27, 26, 25, 24),
                                     _mm256_set1_epi32(8 * octet));
    return _mm256_and_si256(_mm256_sllv_epi32(word, shift), _mm256_set1_epi32(INT32_MIN));
}

/** Flip the signs of the lanes whose sign bit is set in `signs`. */
static inline __m256 flip_signs(__m256 value, __m256i signs)
{
    return _mm256_xor_ps(value, _mm256_castsi256_ps(signs));
}

#endif
