/**
 * The words that the bodies in kernels/cpu/simd/ are written in, for AVX-512; see
 * kernels/cpu/avx2/vec.h.
 */
#ifndef KERNELS_CPU_AVX512_VEC_H
#define KERNELS_CPU_AVX512_VEC_H

#include <immintrin.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#include "kernels/numerics/fmath_constants.h"

#define V(operation) _mm512_##operation

enum { VEC_FLOATS = 16, VEC_DOUBLES = 8 };
typedef __m512 vec_f;
typedef __m512d vec_d;
typedef __m512i vec_i;

/** A choice of lanes, of floats and of doubles: a bit each. */
typedef __mmask16 lanes_f;
typedef __mmask8 lanes_d;

#define COMPARE_F(a, b, how) _mm512_cmp_ps_mask(a, b, how)
#define COMPARE_D(a, b, how) _mm512_cmp_pd_mask(a, b, how)

static inline lanes_f greater_i(vec_i a, vec_i b)
{
    return _mm512_cmpgt_epi32_mask(a, b);
}

static inline lanes_f in_range(vec_i begin, vec_i end, vec_i x)
{
    return _mm512_mask_cmpgt_epi32_mask(_mm512_cmple_epi32_mask(begin, x), end, x);
}

static inline bool any_lane(lanes_f lanes)
{
    return lanes != 0;
}

static inline vec_f keep_f(lanes_f lanes, vec_f x)
{
    return _mm512_maskz_mov_ps(lanes, x);
}

static inline vec_d keep_d(lanes_d lanes, vec_d x)
{
    return _mm512_maskz_mov_pd(lanes, x);
}

static inline vec_f select_f(lanes_f lanes, vec_f yes, vec_f no)
{
    return _mm512_mask_blend_ps(lanes, no, yes);
}

static inline vec_d select_d(lanes_d lanes, vec_d yes, vec_d no)
{
    return _mm512_mask_blend_pd(lanes, no, yes);
}

static inline vec_i select_i(lanes_f lanes, vec_i yes, vec_i no)
{
    return _mm512_mask_blend_epi32(lanes, no, yes);
}

static inline vec_i count_rows(vec_i n, lanes_f always, lanes_f ties, vec_i a, vec_i b)
{
    lanes_f counted = always | _mm512_mask_cmpgt_epi32_mask(ties, a, b);
    return _mm512_mask_add_epi32(n, counted, n, _mm512_set1_epi32(1));
}

static inline vec_i load_i(const void *from)
{
    return _mm512_loadu_si512(from);
}

static inline void store_i(void *to, vec_i x)
{
    _mm512_storeu_si512(to, x);
}

static inline vec_d load_wide(const float *from)
{
    return _mm512_cvtps_pd(_mm256_loadu_ps(from));
}

static inline void widen(vec_f x, vec_d wide[2])
{
    wide[0] = _mm512_cvtps_pd(_mm512_castps512_ps256(x));
    wide[1] = _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1));
}

static inline void widen_i(vec_i x, vec_d wide[2])
{
    wide[0] = _mm512_cvtepi32_pd(_mm512_castsi512_si256(x));
    wide[1] = _mm512_cvtepi32_pd(_mm512_extracti64x4_epi64(x, 1));
}

static inline vec_f narrow(const vec_d wide[2])
{
    __m512 low = _mm512_castps256_ps512(_mm512_cvtpd_ps(wide[0]));
    return _mm512_insertf32x8(low, _mm512_cvtpd_ps(wide[1]), 1);
}

static inline lanes_f first_lanes(size_t n)
{
    return n >= VEC_FLOATS ? (lanes_f)0xffff : (lanes_f)((1u << n) - 1u);
}

static inline vec_f load_first(const float *from, size_t n)
{
    return _mm512_maskz_loadu_ps(first_lanes(n), from);
}

static inline void store_first(float *to, size_t n, vec_f x)
{
    _mm512_mask_storeu_ps(to, first_lanes(n), x);
}

static inline void split_pairs(vec_f low, vec_f high, vec_f *first, vec_f *second)
{
    const __m512i even =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
    *first = _mm512_permutex2var_ps(low, even, high);
    *second = _mm512_permutex2var_ps(low, odd, high);
}

/** The sum of the lanes: lane i and i + 4 first, then i and i + 2. */
static inline double add_lanes(vec_d x)
{
    __m256d four = _mm256_add_pd(_mm512_castpd512_pd256(x), _mm512_extractf64x4_pd(x, 1));
    __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

/** At most somewhat above the largest x that has an exponential. A NaN stays. */
static inline vec_f exp_argument(vec_f x)
{
    return _mm512_min_ps(_mm512_set1_ps(FMATH_EXP_F32_OVER), x);
}

static inline vec_f power_of_two(vec_f shifted)
{
    __m512i exponent = _mm512_slli_epi32(_mm512_castps_si512(shifted), 23);
    return _mm512_castsi512_ps(
        _mm512_add_epi32(_mm512_castps_si512(_mm512_set1_ps(1.0f)), exponent));
}

/** The power of two is multiplied on by an instruction of its own: it knows overflow and NaN. */
static inline vec_f exp_finish_f(vec_f p, vec_f shifted, vec_f x)
{
    lanes_f keep = _mm512_cmp_ps_mask(x, _mm512_set1_ps(FMATH_EXP_F32_MIN), _CMP_NLT_UQ);
    return _mm512_maskz_scalef_ps(keep, p, _mm512_sub_ps(shifted, _mm512_set1_ps(FMATH_ROUND_F32)));
}

static inline vec_d exp_finish_d(vec_d p, vec_d shifted, vec_d x)
{
    lanes_d keep = _mm512_cmp_pd_mask(x, _mm512_set1_pd(FMATH_EXP_F64_MIN), _CMP_NLT_UQ);
    return _mm512_maskz_scalef_pd(keep, p, _mm512_sub_pd(shifted, _mm512_set1_pd(FMATH_ROUND_F64)));
}

#endif
