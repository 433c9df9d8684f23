/**
 * exp and log of kernels/numerics/fmath.h for vectors of AVX-512: the same operations, the same
 * bits. The power of two is multiplied on by an instruction of its own, which knows of overflow and
 * NaN.
 */
#ifndef KERNELS_CPU_AVX512_FMATH_H
#define KERNELS_CPU_AVX512_FMATH_H

#include <immintrin.h>
#include <math.h>

#include "kernels/numerics/fmath_constants.h"

static inline __m512 fmath_exp_16xf32(__m512 x)
{
    const __m512 round = _mm512_set1_ps(FMATH_ROUND_F32);
    const __mmask16 keep = _mm512_cmp_ps_mask(x, _mm512_set1_ps(FMATH_EXP_F32_MIN), _CMP_NLT_UQ);
    x = _mm512_min_ps(_mm512_set1_ps(FMATH_EXP_F32_OVER), x); /* a NaN stays */
    __m512 shifted = _mm512_fmadd_ps(x, _mm512_set1_ps(FMATH_LOG2E_F32), round);
    __m512 n = _mm512_sub_ps(shifted, round);
    __m512 r = _mm512_fmadd_ps(n, _mm512_set1_ps(-FMATH_LN2_HIGH_F32), x);
    r = _mm512_fmadd_ps(n, _mm512_set1_ps(-FMATH_LN2_LOW_F32), r);
    __m512 p = _mm512_set1_ps(FMATH_EXP_F32_C6);
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(FMATH_EXP_F32_C5));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(FMATH_EXP_F32_C4));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(FMATH_EXP_F32_C3));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(FMATH_EXP_F32_C2));
    p = _mm512_fmadd_ps(p, _mm512_mul_ps(r, r), r);
    p = _mm512_add_ps(_mm512_set1_ps(1.0f), p);
    return _mm512_maskz_scalef_ps(keep, p, n);
}

/** For x <= FMATH_EXP_F64_MAX or NaN. */
static inline __m512d fmath_exp_8xf64(__m512d x)
{
    const __m512d round = _mm512_set1_pd(FMATH_ROUND_F64);
    const __mmask8 keep = _mm512_cmp_pd_mask(x, _mm512_set1_pd(FMATH_EXP_F64_MIN), _CMP_NLT_UQ);
    __m512d shifted = _mm512_fmadd_pd(x, _mm512_set1_pd(FMATH_LOG2E_F64), round);
    __m512d n = _mm512_sub_pd(shifted, round);
    __m512d r = _mm512_fmadd_pd(n, _mm512_set1_pd(-FMATH_LN2_HIGH_F64), x);
    r = _mm512_fmadd_pd(n, _mm512_set1_pd(-FMATH_LN2_LOW_F64), r);
    __m512d r2 = _mm512_mul_pd(r, r);
    __m512d odd = _mm512_set1_pd(FMATH_EXP_F64_C11);
    odd = _mm512_fmadd_pd(odd, r2, _mm512_set1_pd(FMATH_EXP_F64_C9));
    odd = _mm512_fmadd_pd(odd, r2, _mm512_set1_pd(FMATH_EXP_F64_C7));
    odd = _mm512_fmadd_pd(odd, r2, _mm512_set1_pd(FMATH_EXP_F64_C5));
    odd = _mm512_fmadd_pd(odd, r2, _mm512_set1_pd(FMATH_EXP_F64_C3));
    __m512d p = _mm512_set1_pd(FMATH_EXP_F64_C10);
    p = _mm512_fmadd_pd(p, r2, _mm512_set1_pd(FMATH_EXP_F64_C8));
    p = _mm512_fmadd_pd(p, r2, _mm512_set1_pd(FMATH_EXP_F64_C6));
    p = _mm512_fmadd_pd(p, r2, _mm512_set1_pd(FMATH_EXP_F64_C4));
    p = _mm512_fmadd_pd(p, r2, _mm512_set1_pd(FMATH_EXP_F64_C2));
    p = _mm512_fmadd_pd(odd, r, p);
    p = _mm512_fmadd_pd(p, r2, r);
    p = _mm512_add_pd(_mm512_set1_pd(1.0), p);
    return _mm512_maskz_scalef_pd(keep, p, n);
}

/** ln(1 + f) for 1 + f in [sqrt(1/2), sqrt(2)], or NaN. */
static inline __m512d fmath_log_near_one_8xf64(__m512d f)
{
    __m512d s = _mm512_div_pd(f, _mm512_add_pd(_mm512_set1_pd(2.0), f));
    __m512d z = _mm512_mul_pd(s, s);
    __m512d p = _mm512_set1_pd(FMATH_LOG_F64_C6);
    p = _mm512_fmadd_pd(p, z, _mm512_set1_pd(FMATH_LOG_F64_C5));
    p = _mm512_fmadd_pd(p, z, _mm512_set1_pd(FMATH_LOG_F64_C4));
    p = _mm512_fmadd_pd(p, z, _mm512_set1_pd(FMATH_LOG_F64_C3));
    p = _mm512_fmadd_pd(p, z, _mm512_set1_pd(FMATH_LOG_F64_C2));
    p = _mm512_fmadd_pd(p, z, _mm512_set1_pd(FMATH_LOG_F64_C1));
    p = _mm512_fmadd_pd(p, z, _mm512_set1_pd(FMATH_LOG_F64_C0));
    return _mm512_fnmadd_pd(s, _mm512_fnmadd_pd(z, p, f), f);
}

#endif
