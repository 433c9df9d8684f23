/** exp and log of kernels/numerics/fmath.h for vectors of AVX2: the same operations, the same bits.
 */
#ifndef KERNELS_CPU_AVX2_FMATH_H
#define KERNELS_CPU_AVX2_FMATH_H

#include <immintrin.h>
#include <math.h>

#include "kernels/numerics/fmath_constants.h"

static inline __m256 fmath_exp_8xf32(__m256 x)
{
    const __m256 round = _mm256_set1_ps(FMATH_ROUND_F32);
    __m256 shifted = _mm256_fmadd_ps(x, _mm256_set1_ps(FMATH_LOG2E_F32), round);
    __m256 n = _mm256_sub_ps(shifted, round);
    __m256 r = _mm256_fmadd_ps(n, _mm256_set1_ps(-FMATH_LN2_HIGH_F32), x);
    r = _mm256_fmadd_ps(n, _mm256_set1_ps(-FMATH_LN2_LOW_F32), r);
    __m256 p = _mm256_set1_ps(FMATH_EXP_F32_C6);
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(FMATH_EXP_F32_C5));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(FMATH_EXP_F32_C4));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(FMATH_EXP_F32_C3));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(FMATH_EXP_F32_C2));
    p = _mm256_fmadd_ps(p, _mm256_mul_ps(r, r), r);
    p = _mm256_add_ps(_mm256_set1_ps(1.0f), p);
    __m256i exponent = _mm256_slli_epi32(_mm256_castps_si256(shifted), 23);
    p = _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), exponent));

    __m256 over = _mm256_cmp_ps(x, _mm256_set1_ps(FMATH_EXP_F32_MAX), _CMP_GT_OQ);
    __m256 under = _mm256_cmp_ps(x, _mm256_set1_ps(FMATH_EXP_F32_MIN), _CMP_LT_OQ);
    p = _mm256_blendv_ps(p, _mm256_set1_ps(INFINITY), over);
    p = _mm256_andnot_ps(under, p);
    return _mm256_blendv_ps(p, x, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
}

/**
 * For x <= FMATH_EXP_F64_MAX, or a NaN that was a float's: its low bits are 0, so it passes
 * through the addition to the exponent field.
 */
static inline __m256d fmath_exp_4xf64(__m256d x)
{
    const __m256d round = _mm256_set1_pd(FMATH_ROUND_F64);
    __m256d shifted = _mm256_fmadd_pd(x, _mm256_set1_pd(FMATH_LOG2E_F64), round);
    __m256d n = _mm256_sub_pd(shifted, round);
    __m256d r = _mm256_fmadd_pd(n, _mm256_set1_pd(-FMATH_LN2_HIGH_F64), x);
    r = _mm256_fmadd_pd(n, _mm256_set1_pd(-FMATH_LN2_LOW_F64), r);
    __m256d r2 = _mm256_mul_pd(r, r);
    __m256d odd = _mm256_set1_pd(FMATH_EXP_F64_C11);
    odd = _mm256_fmadd_pd(odd, r2, _mm256_set1_pd(FMATH_EXP_F64_C9));
    odd = _mm256_fmadd_pd(odd, r2, _mm256_set1_pd(FMATH_EXP_F64_C7));
    odd = _mm256_fmadd_pd(odd, r2, _mm256_set1_pd(FMATH_EXP_F64_C5));
    odd = _mm256_fmadd_pd(odd, r2, _mm256_set1_pd(FMATH_EXP_F64_C3));
    __m256d p = _mm256_set1_pd(FMATH_EXP_F64_C10);
    p = _mm256_fmadd_pd(p, r2, _mm256_set1_pd(FMATH_EXP_F64_C8));
    p = _mm256_fmadd_pd(p, r2, _mm256_set1_pd(FMATH_EXP_F64_C6));
    p = _mm256_fmadd_pd(p, r2, _mm256_set1_pd(FMATH_EXP_F64_C4));
    p = _mm256_fmadd_pd(p, r2, _mm256_set1_pd(FMATH_EXP_F64_C2));
    p = _mm256_fmadd_pd(odd, r, p);
    p = _mm256_fmadd_pd(p, r2, r);
    p = _mm256_add_pd(_mm256_set1_pd(1.0), p);
    __m256i exponent = _mm256_slli_epi64(_mm256_castpd_si256(shifted), 52);
    p = _mm256_castsi256_pd(_mm256_add_epi64(_mm256_castpd_si256(p), exponent));

    return _mm256_andnot_pd(_mm256_cmp_pd(x, _mm256_set1_pd(FMATH_EXP_F64_MIN), _CMP_LT_OQ), p);
}

/** ln(1 + f) for 1 + f in [sqrt(1/2), sqrt(2)], or NaN. */
static inline __m256d fmath_log_near_one_4xf64(__m256d f)
{
    __m256d s = _mm256_div_pd(f, _mm256_add_pd(_mm256_set1_pd(2.0), f));
    __m256d z = _mm256_mul_pd(s, s);
    __m256d p = _mm256_set1_pd(FMATH_LOG_F64_C6);
    p = _mm256_fmadd_pd(p, z, _mm256_set1_pd(FMATH_LOG_F64_C5));
    p = _mm256_fmadd_pd(p, z, _mm256_set1_pd(FMATH_LOG_F64_C4));
    p = _mm256_fmadd_pd(p, z, _mm256_set1_pd(FMATH_LOG_F64_C3));
    p = _mm256_fmadd_pd(p, z, _mm256_set1_pd(FMATH_LOG_F64_C2));
    p = _mm256_fmadd_pd(p, z, _mm256_set1_pd(FMATH_LOG_F64_C1));
    p = _mm256_fmadd_pd(p, z, _mm256_set1_pd(FMATH_LOG_F64_C0));
    return _mm256_fnmadd_pd(s, _mm256_fnmadd_pd(z, p, f), f);
}

#endif
