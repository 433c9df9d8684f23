/** Codebook indices of a whole block: low bytes and upper bits joined. */
#ifndef KERNELS_CPU_AVX2_INDICES_H
#define KERNELS_CPU_AVX2_INDICES_H

#include "kernels/cpu/avx2/expand.h"

/** indices[i] = low byte i | high byte i << 8, for 32 bytes. */
static inline void join_indices(uint16_t indices[32], __m256i low, __m256i high)
{
    /* unpacking works in each half: bytes 0..7 and 16..23 first, then 8..15 and 24..31 */
    __m256i first = _mm256_unpacklo_epi8(low, high), second = _mm256_unpackhi_epi8(low, high);
    _mm256_storeu_si256((__m256i *)indices, _mm256_permute2x128_si256(first, second, 0x20));
    _mm256_storeu_si256((__m256i *)(indices + 16), _mm256_permute2x128_si256(first, second, 0x31));
}

#endif
