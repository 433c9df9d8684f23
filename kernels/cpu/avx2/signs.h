/** Unpacking the signs and scales of IQ2_XXS, IQ2_XS and IQ3_XXS for a whole block at once. */
#ifndef KERNELS_CPU_AVX2_SIGNS_H
#define KERNELS_CPU_AVX2_SIGNS_H

#include "kernels/cpu/avx2/expand.h"

/** Bytes of 7-bit sign indices to sign bytes: the top bit makes the parity even. */
static inline __m256i complete_sign_bytes(__m256i indices)
{
    const char odd = (char)0x80;
    const __m256i parity = _mm256_setr_epi8(
        0, odd, odd, 0, odd, 0, 0, odd, odd, 0, 0, odd, 0, odd, odd, 0, /* of 0..15, twice */
        0, odd, odd, 0, odd, 0, 0, odd, odd, 0, 0, odd, 0, odd, odd, 0);
    const __m256i nibble = _mm256_set1_epi8(15);
    __m256i low = _mm256_shuffle_epi8(parity, _mm256_and_si256(indices, nibble));
    __m256i high =
        _mm256_shuffle_epi8(parity, _mm256_and_si256(_mm256_srli_epi16(indices, 4), nibble));
    return _mm256_or_si256(indices, _mm256_xor_si256(low, high));
}

/** Eight words of four 7-bit sign indices each (bits 0..27) to the 32 signs of eight groups. */
static inline __m256i unpack_signs(__m256i words)
{
    __m256i a = _mm256_and_si256(words, _mm256_set1_epi32(0x7f));
    __m256i b = _mm256_and_si256(_mm256_slli_epi32(words, 1), _mm256_set1_epi32(0x7f00));
    __m256i c = _mm256_and_si256(_mm256_slli_epi32(words, 2), _mm256_set1_epi32(0x7f0000));
    __m256i d = _mm256_and_si256(_mm256_slli_epi32(words, 3), _mm256_set1_epi32(0x7f000000));
    return complete_sign_bytes(_mm256_or_si256(_mm256_or_si256(a, b), _mm256_or_si256(c, d)));
}

/** d * (0.5 + s) * factor for eight scales s. */
static inline __m256 half_step_scales(__m256 d, __m256i s, float factor)
{
    __m256 step = _mm256_add_ps(_mm256_set1_ps(0.5f), _mm256_cvtepi32_ps(s));
    return _mm256_mul_ps(_mm256_mul_ps(d, step), _mm256_set1_ps(factor));
}

#endif
