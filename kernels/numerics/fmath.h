/**
 * Elementary functions of our own: the same bits on every machine, compiler and ISA, which
 * the C library does not promise. The functions here are the scalar reference;
 * kernels/cpu/simd/fmath.h repeats some of them operation by operation for vectors.
 *
 * exp: n = round(x / ln 2), r = x - n ln 2 by two fused multiply-adds (the first is exact),
 * a polynomial in r, and n added to the exponent field. NaN gives NaN, exp(0) is 1 exactly,
 * results below the smallest normal number are 0 and results above the largest infinity.
 * Bounds (tests/kernels/test_fmath.c): exp float 1.01 ulp, exp double 1.1 ulp, tanh float 2.5
 * ulp, log and log1p 2 ulp, sin and cos 2^-52 absolute.
 */
#ifndef KERNELS_NUMERICS_FMATH_H
#define KERNELS_NUMERICS_FMATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "kernels/numerics/fmath_constants.h"
#include "kernels/portable/portable.h"

KERN_INLINE uint64_t fmath_bits_f64(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

KERN_INLINE double fmath_from_bits_f64(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/** e^r - 1 in float32, r = x - n ln 2, n in the low bits of `shifted`. */
KERN_INLINE float fmath_exp_minus_1_f32(float x, float shifted)
{
    float n = shifted - FMATH_ROUND_F32;
    float r = fmaf(n, -FMATH_LN2_HIGH_F32, x);
    r = fmaf(n, -FMATH_LN2_LOW_F32, r);
    float p = FMATH_EXP_F32_C6;
    p = fmaf(p, r, FMATH_EXP_F32_C5);
    p = fmaf(p, r, FMATH_EXP_F32_C4);
    p = fmaf(p, r, FMATH_EXP_F32_C3);
    p = fmaf(p, r, FMATH_EXP_F32_C2);
    return fmaf(p, r * r, r);
}

/**
 * e^x in float32. Where x is out of range, something is computed and not used: a branch would
 * keep a GPU from having several of these under way.
 */
KERN_INLINE float fmath_exp_f32(float x)
{
    float shifted = fmaf(x, FMATH_LOG2E_F32, FMATH_ROUND_F32);
    float p = 1.0f + fmath_exp_minus_1_f32(x, shifted);
    /* The rounding constant has nine low zero bits, so only n reaches the exponent. */
    float y = kern_float_from_bits(kern_bits_of(p) + (kern_bits_of(shifted) << 23));
    y = x > FMATH_EXP_F32_MAX ? INFINITY : y;
    y = x < FMATH_EXP_F32_MIN ? 0.0f : y;
    return isnan(x) ? x : y;
}

/**
 * tanh x in float32: with t = -2 |x| and e = e^t - 1 = 2^n (e^r - 1) + (2^n - 1), it is e / (e + 2)
 * with the sign of x. NaN gives NaN, 0 and -0 themselves.
 */
KERN_INLINE float fmath_tanh_f32(float x)
{
    float t = -2.0f * fabsf(x);
    t = t < FMATH_TANH_F32_MIN ? FMATH_TANH_F32_MIN : t;
    float shifted = fmaf(t, FMATH_LOG2E_F32, FMATH_ROUND_F32);
    float power = kern_float_from_bits(kern_bits_of(1.0f) + (kern_bits_of(shifted) << 23));
    float e = fmaf(power, fmath_exp_minus_1_f32(t, shifted), power - 1.0f);
    uint32_t sign = kern_bits_of(x) & 0x80000000u;
    return kern_float_from_bits((kern_bits_of(e / (e + 2.0f)) & 0x7fffffffu) | sign);
}

/**
 * A soft cap: cap tanh(x / cap), at most cap. inverse: 1 / cap, rounded. NaN for an infinite x:
 * what has overflowed is not to look like a number.
 */
KERN_INLINE float fmath_soft_cap_f32(float x, float cap, float inverse)
{
    return cap * fmath_tanh_f32(x * inverse) + (x - x);
}

/** e^x in float64. */
KERN_INLINE double fmath_exp_f64(double x)
{
    if (!(x >= FMATH_EXP_F64_MIN && x <= FMATH_EXP_F64_MAX)) {
        return x > FMATH_EXP_F64_MAX ? (double)INFINITY : x < FMATH_EXP_F64_MIN ? 0.0 : x;
    }
    double shifted = fma(x, FMATH_LOG2E_F64, FMATH_ROUND_F64);
    double n = shifted - FMATH_ROUND_F64;
    double r = fma(n, -FMATH_LN2_HIGH_F64, x);
    r = fma(n, -FMATH_LN2_LOW_F64, r);
    /* Even and odd powers apart: two short chains instead of a long one. */
    double r2 = r * r;
    double odd = FMATH_EXP_F64_C11;
    odd = fma(odd, r2, FMATH_EXP_F64_C9);
    odd = fma(odd, r2, FMATH_EXP_F64_C7);
    odd = fma(odd, r2, FMATH_EXP_F64_C5);
    odd = fma(odd, r2, FMATH_EXP_F64_C3);
    double p = FMATH_EXP_F64_C10;
    p = fma(p, r2, FMATH_EXP_F64_C8);
    p = fma(p, r2, FMATH_EXP_F64_C6);
    p = fma(p, r2, FMATH_EXP_F64_C4);
    p = fma(p, r2, FMATH_EXP_F64_C2);
    p = fma(odd, r, p);
    p = fma(p, r2, r);
    p = 1.0 + p;
    return fmath_from_bits_f64(fmath_bits_f64(p) + (fmath_bits_f64(shifted) << 52));
}

/** The normal distribution below -a, for a >= 0. */
KERN_INLINE double fmath_normal_f64(double a)
{
    double t = (a - 5.0) / (a + 5.0);
    double p = FMATH_NORMAL_F64_C12;
    p = fma(p, t, FMATH_NORMAL_F64_C11);
    p = fma(p, t, FMATH_NORMAL_F64_C10);
    p = fma(p, t, FMATH_NORMAL_F64_C9);
    p = fma(p, t, FMATH_NORMAL_F64_C8);
    p = fma(p, t, FMATH_NORMAL_F64_C7);
    p = fma(p, t, FMATH_NORMAL_F64_C6);
    p = fma(p, t, FMATH_NORMAL_F64_C5);
    p = fma(p, t, FMATH_NORMAL_F64_C4);
    p = fma(p, t, FMATH_NORMAL_F64_C3);
    p = fma(p, t, FMATH_NORMAL_F64_C2);
    p = fma(p, t, FMATH_NORMAL_F64_C1);
    p = fma(p, t, FMATH_NORMAL_F64_C0);
    return p * fmath_exp_f64(-0.5 * (a * a));
}

/** ln(1 + f) for 1 + f in [sqrt(1/2), sqrt(2)]. */
KERN_INLINE double fmath_log_near_one(double f)
{
    /*
     * With s = f / (2 + f): ln(1 + f) = 2 atanh(s) = 2s + s R, and 2s = f - s f. Written so,
     * the rounding of s is multiplied by f and stays small.
     */
    double s = f / (2.0 + f);
    double z = s * s;
    double p = FMATH_LOG_F64_C6;
    p = fma(p, z, FMATH_LOG_F64_C5);
    p = fma(p, z, FMATH_LOG_F64_C4);
    p = fma(p, z, FMATH_LOG_F64_C3);
    p = fma(p, z, FMATH_LOG_F64_C2);
    p = fma(p, z, FMATH_LOG_F64_C1);
    p = fma(p, z, FMATH_LOG_F64_C0);
    return fma(-s, fma(-z, p, f), f);
}

/** ln(1 + e^x), within 3 ulp. */
KERN_INLINE double fmath_softplus_f64(double x)
{
    double e = fmath_exp_f64(x > 0 ? -x : x); /* up to 1 */
    /* 1 + e or half of it lies where the logarithm is computed. */
    double log = e < FMATH_SOFTPLUS_NEAR ? fmath_log_near_one(e)
                                         : FMATH_LN2_HIGH_F64 + fmath_log_near_one((e - 1) / 2);
    return (x > 0 ? x : 0.0) + log;
}

/**
 * ln x for normal positive x. NaN for NaN and negative x, -infinity for 0, infinity for
 * infinity; subnormal x counts as 0.
 */
double kern_log(double x);

/** ln(1 + x) for x > -1, accurate also where x is tiny; outside as kern_log(1 + x). */
double kern_log1p(double x);

/**
 * sin and cos of x. |x| below 2^31 (rotary angles reach position * 1); the result is within
 * 2^-52 of the true value there. NaN for infinities and NaN.
 */
void kern_sincos(double x, double *sin_x, double *cos_x);

#endif
