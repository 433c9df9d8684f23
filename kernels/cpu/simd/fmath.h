/**
 * exp, tanh and log of kernels/numerics/fmath.h for vectors: the same operations, the same bits. A
 * body: the vec.h of an instruction set comes before it.
 */
#ifndef KERNELS_CPU_SIMD_FMATH_H
#define KERNELS_CPU_SIMD_FMATH_H

/** A step of Horner's scheme. */
static inline vec_f horner_f(vec_f p, vec_f x, float c)
{
    return V(fmadd_ps)(p, x, V(set1_ps)(c));
}

static inline vec_d horner_d(vec_d p, vec_d x, double c)
{
    return V(fmadd_pd)(p, x, V(set1_pd)(c));
}

/** e^r - 1, r = x - n ln 2, n in the low bits of `shifted`. */
static inline vec_f exp_minus_1_f(vec_f x, vec_f shifted)
{
    vec_f n = V(sub_ps)(shifted, V(set1_ps)(FMATH_ROUND_F32));
    vec_f r = V(fmadd_ps)(n, V(set1_ps)(-FMATH_LN2_HIGH_F32), x);
    r = V(fmadd_ps)(n, V(set1_ps)(-FMATH_LN2_LOW_F32), r);
    vec_f p = V(set1_ps)(FMATH_EXP_F32_C6);
    p = horner_f(p, r, FMATH_EXP_F32_C5);
    p = horner_f(p, r, FMATH_EXP_F32_C4);
    p = horner_f(p, r, FMATH_EXP_F32_C3);
    p = horner_f(p, r, FMATH_EXP_F32_C2);
    return V(fmadd_ps)(p, V(mul_ps)(r, r), r);
}

static inline vec_f exp_f(vec_f x)
{
    x = exp_argument(x);
    vec_f shifted = horner_f(x, V(set1_ps)(FMATH_LOG2E_F32), FMATH_ROUND_F32);
    vec_f p = exp_minus_1_f(x, shifted);
    return exp_finish_f(V(add_ps)(V(set1_ps)(1.0f), p), shifted, x);
}

static inline vec_f tanh_f(vec_f x)
{
    const vec_f sign = V(set1_ps)(-0.0f);
    vec_f t = V(mul_ps)(V(andnot_ps)(sign, x), V(set1_ps)(-2.0f));
    t = V(max_ps)(V(set1_ps)(FMATH_TANH_F32_MIN), t); /* keeps t where it is NaN */
    vec_f shifted = horner_f(t, V(set1_ps)(FMATH_LOG2E_F32), FMATH_ROUND_F32);
    vec_f power = power_of_two(shifted);
    vec_f e = V(fmadd_ps)(power, exp_minus_1_f(t, shifted), V(sub_ps)(power, V(set1_ps)(1.0f)));
    vec_f y = V(div_ps)(e, V(add_ps)(e, V(set1_ps)(2.0f)));
    return V(or_ps)(V(andnot_ps)(sign, y), V(and_ps)(sign, x));
}

/** For x <= FMATH_EXP_F64_MAX, or a NaN that was a float's. */
static inline vec_d exp_d(vec_d x)
{
    vec_d shifted = horner_d(x, V(set1_pd)(FMATH_LOG2E_F64), FMATH_ROUND_F64);
    vec_d n = V(sub_pd)(shifted, V(set1_pd)(FMATH_ROUND_F64));
    vec_d r = V(fmadd_pd)(n, V(set1_pd)(-FMATH_LN2_HIGH_F64), x);
    r = V(fmadd_pd)(n, V(set1_pd)(-FMATH_LN2_LOW_F64), r);
    vec_d r2 = V(mul_pd)(r, r);
    vec_d odd = V(set1_pd)(FMATH_EXP_F64_C11);
    odd = horner_d(odd, r2, FMATH_EXP_F64_C9);
    odd = horner_d(odd, r2, FMATH_EXP_F64_C7);
    odd = horner_d(odd, r2, FMATH_EXP_F64_C5);
    odd = horner_d(odd, r2, FMATH_EXP_F64_C3);
    vec_d p = V(set1_pd)(FMATH_EXP_F64_C10);
    p = horner_d(p, r2, FMATH_EXP_F64_C8);
    p = horner_d(p, r2, FMATH_EXP_F64_C6);
    p = horner_d(p, r2, FMATH_EXP_F64_C4);
    p = horner_d(p, r2, FMATH_EXP_F64_C2);
    p = V(fmadd_pd)(odd, r, p);
    p = V(fmadd_pd)(p, r2, r);
    return exp_finish_d(V(add_pd)(V(set1_pd)(1.0), p), shifted, x);
}

/** The normal distribution below -a, for a >= 0. */
static inline vec_d normal_d(vec_d a)
{
    const vec_d five = V(set1_pd)(5.0);
    vec_d t = V(div_pd)(V(sub_pd)(a, five), V(add_pd)(a, five));
    vec_d p = V(set1_pd)(FMATH_NORMAL_F64_C12);
    p = horner_d(p, t, FMATH_NORMAL_F64_C11);
    p = horner_d(p, t, FMATH_NORMAL_F64_C10);
    p = horner_d(p, t, FMATH_NORMAL_F64_C9);
    p = horner_d(p, t, FMATH_NORMAL_F64_C8);
    p = horner_d(p, t, FMATH_NORMAL_F64_C7);
    p = horner_d(p, t, FMATH_NORMAL_F64_C6);
    p = horner_d(p, t, FMATH_NORMAL_F64_C5);
    p = horner_d(p, t, FMATH_NORMAL_F64_C4);
    p = horner_d(p, t, FMATH_NORMAL_F64_C3);
    p = horner_d(p, t, FMATH_NORMAL_F64_C2);
    p = horner_d(p, t, FMATH_NORMAL_F64_C1);
    p = horner_d(p, t, FMATH_NORMAL_F64_C0);
    return V(mul_pd)(p, exp_d(V(mul_pd)(V(set1_pd)(-0.5), V(mul_pd)(a, a))));
}

/** ln(1 + f) for 1 + f in [sqrt(1/2), sqrt(2)], or NaN. */
static inline vec_d log_near_one(vec_d f)
{
    vec_d s = V(div_pd)(f, V(add_pd)(V(set1_pd)(2.0), f));
    vec_d z = V(mul_pd)(s, s);
    vec_d p = V(set1_pd)(FMATH_LOG_F64_C6);
    p = horner_d(p, z, FMATH_LOG_F64_C5);
    p = horner_d(p, z, FMATH_LOG_F64_C4);
    p = horner_d(p, z, FMATH_LOG_F64_C3);
    p = horner_d(p, z, FMATH_LOG_F64_C2);
    p = horner_d(p, z, FMATH_LOG_F64_C1);
    p = horner_d(p, z, FMATH_LOG_F64_C0);
    return V(fnmadd_pd)(s, V(fnmadd_pd)(z, p, f), f);
}

/** ln(1 + e^x); a NaN was a float's. */
static inline vec_d softplus_d(vec_d x)
{
    const vec_d one = V(set1_pd)(1.0), zero = V(setzero_pd)();
    vec_d e = exp_d(V(min_pd)(V(sub_pd)(zero, x), x));
    lanes_d near = COMPARE_D(e, V(set1_pd)(FMATH_SOFTPLUS_NEAR), _CMP_LT_OQ);
    vec_d half = V(mul_pd)(V(sub_pd)(e, one), V(set1_pd)(0.5));
    vec_d log = log_near_one(select_d(near, e, half));
    log = select_d(near, log, V(add_pd)(V(set1_pd)(FMATH_LN2_HIGH_F64), log));
    return V(add_pd)(V(max_pd)(x, zero), log);
}

#endif
