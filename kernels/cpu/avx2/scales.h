/**
 * Unpacking the scales of a block, all at once; for AVX2 and the ISAs above it.
 *
 * Most functions are not inline on purpose: the loops over the elements broadcast the scales
 * from memory, on the load ports. Where the compiler can see through the arrays it keeps them in
 * vector registers and shuffles each number out, on the one port that the look-ups need.
 */
#ifndef KERNELS_CPU_AVX2_SCALES_H
#define KERNELS_CPU_AVX2_SCALES_H

#include "kernels/cpu/avx2/expand.h"
#include "kernels/quant/iq4_xs.h"
#include "kernels/quant/nvfp4.h"
#include "kernels/quant/q2_k.h"
#include "kernels/quant/q3_k.h"
#include "kernels/quant/q6_k.h"

/** Scales and minima times d and dmin, of the sixteen runs or the eight groups. */
struct kern_k_factors {
    float scales[16];
    float mins[16];
};

/** Q2_K: both, of the runs. */
void kern_avx2_q2_k_factors(struct kern_k_factors *factors, const struct kern_block_q2_k *block);

/** Q3_K: scale - 32 of the runs, a byte each. */
static inline __m128i q3_k_scales(const struct kern_block_q3_k *block)
{
    __m128i low = _mm_loadl_epi64((const __m128i *)block->scales);
    low = _mm_unpacklo_epi64(low, _mm_srli_epi16(low, 4));
    __m128i high = _mm_set1_epi32((int)kern_load_u32(block->scales + 8));
    high = _mm_srlv_epi32(high, _mm_setr_epi32(0, 2, 4, 6));
    low = _mm_and_si128(low, _mm_set1_epi8(15));
    high = _mm_slli_epi16(_mm_and_si128(high, _mm_set1_epi8(3)), 4);
    return _mm_sub_epi8(_mm_or_si128(low, high), _mm_set1_epi8(32));
}

/** Q3_K: d * (scale - 32) of the runs. */
void kern_avx2_q3_k_scales(float scales[16], const struct kern_block_q3_k *block);

/** Q4_K and Q5_K: both, of the groups, out of the twelve bytes of k_scales.h. */
void kern_avx2_q4_k_factors(struct kern_k_factors *factors, const uint8_t *packed, const uint8_t *d,
                            const uint8_t *dmin);

/** Q6_K: d * scale of the runs. */
void kern_avx2_q6_k_scales(float scales[16], const struct kern_block_q6_k *block);

/** IQ4_XS: d * (scale - 32) of the groups. */
void kern_avx2_iq4_xs_scales(float scales[8], const struct kern_block_iq4_xs *block);

/** NVFP4: kern_nvfp4_scale of the four runs. Inline, since a block is but 64 elements. */
static inline void nvfp4_scales(float scales[4], const struct kern_block_nvfp4 *block)
{
    __m128i magnitude =
        _mm_and_si128(_mm_cvtsi32_si128((int)kern_load_u32(block->d)), _mm_set1_epi8(0x7f));
    __m128i is_zero = _mm_cmpeq_epi8(magnitude, _mm_set1_epi8(0x7f));
    __m128i half = _mm_slli_epi16(_mm_cvtepu8_epi16(_mm_andnot_si128(is_zero, magnitude)), 7);
    _mm_storeu_ps(scales, _mm_mul_ps(_mm_cvtph_ps(half), _mm_set1_ps(0x1p7f)));
}

#endif
