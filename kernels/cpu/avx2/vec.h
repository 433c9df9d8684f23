/**
 * The words that the bodies in kernels/cpu/simd/ are written in, for AVX2: vectors, V(add_ps) for
 * the intrinsic _mm256_add_ps, and functions for what AVX2 and AVX-512 do in different ways.
 * kernels/cpu/avx512/vec.h has the same names.
 */
#ifndef KERNELS_CPU_AVX2_VEC_H
#define KERNELS_CPU_AVX2_VEC_H

#include <immintrin.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#include "kernels/numerics/fmath_constants.h"

#define V(operation) _mm256_##operation

enum { VEC_FLOATS = 8, VEC_DOUBLES = 4 };
typedef __m256 vec_f;
typedef __m256d vec_d;
typedef __m256i vec_i; /* as many as floats */

/** A choice of lanes, of floats and of doubles: all bits of a lane are set, or none is. */
typedef __m256i lanes_f;
typedef __m256i lanes_d;

/** The lanes in which a comparison holds. how: _CMP_GT_OQ, ... */
#define COMPARE_F(a, b, how) _mm256_castps_si256(_mm256_cmp_ps(a, b, how))
#define COMPARE_D(a, b, how) _mm256_castpd_si256(_mm256_cmp_pd(a, b, how))

static inline lanes_f greater_i(vec_i a, vec_i b)
{
    return _mm256_cmpgt_epi32(a, b);
}

/** begin <= x < end */
static inline lanes_f in_range(vec_i begin, vec_i end, vec_i x)
{
    return _mm256_andnot_si256(greater_i(begin, x), greater_i(end, x));
}

static inline bool any_lane(lanes_f lanes)
{
    return _mm256_movemask_epi8(lanes) != 0;
}

/** x in the chosen lanes, 0 in the others. */
static inline vec_f keep_f(lanes_f lanes, vec_f x)
{
    return _mm256_and_ps(_mm256_castsi256_ps(lanes), x);
}

static inline vec_d keep_d(lanes_d lanes, vec_d x)
{
    return _mm256_and_pd(_mm256_castsi256_pd(lanes), x);
}

/** yes in the chosen lanes, no in the others. */
static inline vec_f select_f(lanes_f lanes, vec_f yes, vec_f no)
{
    return _mm256_blendv_ps(no, yes, _mm256_castsi256_ps(lanes));
}

static inline vec_d select_d(lanes_d lanes, vec_d yes, vec_d no)
{
    return _mm256_blendv_pd(no, yes, _mm256_castsi256_pd(lanes));
}

static inline vec_i select_i(lanes_f lanes, vec_i yes, vec_i no)
{
    return _mm256_blendv_epi8(no, yes, lanes);
}

/** n + 1 in the lanes of `always`, and in those of `ties` where a > b. */
static inline vec_i count_rows(vec_i n, lanes_f always, lanes_f ties, vec_i a, vec_i b)
{
    return _mm256_sub_epi32(n, always | (ties & greater_i(a, b)));
}

static inline vec_i load_i(const void *from)
{
    return _mm256_loadu_si256((const __m256i *)from);
}

static inline void store_i(void *to, vec_i x)
{
    _mm256_storeu_si256((__m256i *)to, x);
}

/** VEC_DOUBLES floats as doubles. */
static inline vec_d load_wide(const float *from)
{
    return _mm256_cvtps_pd(_mm_loadu_ps(from));
}

/** The floats of a vector as doubles, in order, and doubles rounded to floats. */
static inline void widen(vec_f x, vec_d wide[2])
{
    wide[0] = _mm256_cvtps_pd(_mm256_castps256_ps128(x));
    wide[1] = _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1));
}

/** Integers as doubles, in order. */
static inline void widen_i(vec_i x, vec_d wide[2])
{
    wide[0] = _mm256_cvtepi32_pd(_mm256_castsi256_si128(x));
    wide[1] = _mm256_cvtepi32_pd(_mm256_extracti128_si256(x, 1));
}

static inline vec_f narrow(const vec_d wide[2])
{
    return _mm256_set_m128(_mm256_cvtpd_ps(wide[1]), _mm256_cvtpd_ps(wide[0]));
}

static inline lanes_f first_lanes(size_t n)
{
    const __m256i index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), index);
}

/** The first n floats, zeros after them; n may be larger than a vector. */
static inline vec_f load_first(const float *from, size_t n)
{
    return n < VEC_FLOATS ? _mm256_maskload_ps(from, first_lanes(n)) : _mm256_loadu_ps(from);
}

static inline void store_first(float *to, size_t n, vec_f x)
{
    if (n < VEC_FLOATS)
        _mm256_maskstore_ps(to, first_lanes(n), x);
    else
        _mm256_storeu_ps(to, x);
}

/** Two vectors of pairs, the first of each pair and the second. */
static inline void split_pairs(vec_f low, vec_f high, vec_f *first, vec_f *second)
{
    /* The shuffles leave pairs 0 1 4 5 2 3 6 7. */
    __m256d firsts = _mm256_castps_pd(_mm256_shuffle_ps(low, high, 0x88));
    __m256d seconds = _mm256_castps_pd(_mm256_shuffle_ps(low, high, 0xdd));
    *first = _mm256_castpd_ps(_mm256_permute4x64_pd(firsts, 0xd8));
    *second = _mm256_castpd_ps(_mm256_permute4x64_pd(seconds, 0xd8));
}

/** The sum of the lanes: lane i and i + 2 first. */
static inline double add_lanes(vec_d x)
{
    __m128d two = _mm_add_pd(_mm256_castpd256_pd128(x), _mm256_extractf128_pd(x, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

/** What exp works on in place of x. */
static inline vec_f exp_argument(vec_f x)
{
    return x;
}

/** Two to the n in the low bits of `shifted`. */
static inline vec_f power_of_two(vec_f shifted)
{
    __m256i exponent = _mm256_slli_epi32(_mm256_castps_si256(shifted), 23);
    return _mm256_castsi256_ps(
        _mm256_add_epi32(_mm256_castps_si256(_mm256_set1_ps(1.0f)), exponent));
}

/**
 * The end of exp: p times the power of two in the low bits of `shifted`, with what x gives where
 * it is out of range.
 */
static inline vec_f exp_finish_f(vec_f p, vec_f shifted, vec_f x)
{
    __m256i exponent = _mm256_slli_epi32(_mm256_castps_si256(shifted), 23);
    p = _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), exponent));
    __m256 over = _mm256_cmp_ps(x, _mm256_set1_ps(FMATH_EXP_F32_MAX), _CMP_GT_OQ);
    __m256 under = _mm256_cmp_ps(x, _mm256_set1_ps(FMATH_EXP_F32_MIN), _CMP_LT_OQ);
    p = _mm256_blendv_ps(p, _mm256_set1_ps(INFINITY), over);
    p = _mm256_andnot_ps(under, p);
    return _mm256_blendv_ps(p, x, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
}

/** A NaN that was a float's has low bits of 0, so it passes through the addition. */
static inline vec_d exp_finish_d(vec_d p, vec_d shifted, vec_d x)
{
    __m256i exponent = _mm256_slli_epi64(_mm256_castpd_si256(shifted), 52);
    p = _mm256_castsi256_pd(_mm256_add_epi64(_mm256_castpd_si256(p), exponent));
    return _mm256_andnot_pd(_mm256_cmp_pd(x, _mm256_set1_pd(FMATH_EXP_F64_MIN), _CMP_LT_OQ), p);
}

#endif
