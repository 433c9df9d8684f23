/** Blocks of 8 x 8 numbers of 32 bits, transposed in registers. */
#ifndef KERNELS_CPU_AVX2_TRANSPOSE_H
#define KERNELS_CPU_AVX2_TRANSPOSE_H

#include <immintrin.h>
#include <stddef.h>

/** m[i] element j becomes m[j] element i. */
static inline void transpose8(__m256 m[8])
{
    __m256 pair[8], quad[8];
    for (size_t i = 0; i < 8; i += 2) {
        pair[i] = _mm256_unpacklo_ps(m[i], m[i + 1]);
        pair[i + 1] = _mm256_unpackhi_ps(m[i], m[i + 1]);
    }
    for (size_t i = 0; i < 8; i += 4) {
        quad[i] = _mm256_shuffle_ps(pair[i], pair[i + 2], _MM_SHUFFLE(1, 0, 1, 0));
        quad[i + 1] = _mm256_shuffle_ps(pair[i], pair[i + 2], _MM_SHUFFLE(3, 2, 3, 2));
        quad[i + 2] = _mm256_shuffle_ps(pair[i + 1], pair[i + 3], _MM_SHUFFLE(1, 0, 1, 0));
        quad[i + 3] = _mm256_shuffle_ps(pair[i + 1], pair[i + 3], _MM_SHUFFLE(3, 2, 3, 2));
    }
    for (size_t i = 0; i < 4; i++) {
        m[i] = _mm256_permute2f128_ps(quad[i], quad[i + 4], 0x20);
        m[i + 4] = _mm256_permute2f128_ps(quad[i], quad[i + 4], 0x31);
    }
}

#endif
