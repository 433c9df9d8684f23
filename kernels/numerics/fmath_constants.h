/**
 * Constants of the exponentials and logarithm in fmath.h, one set for scalar, AVX2 and
 * AVX-512. The bits of every variant depend on these numbers and on the order of operations
 * that fmath.h gives, so a change here is a change of results.
 *
 * Derived by scripts/minimax.py (Remez' exchange in 60 digits), which prints the numbers
 * and the error of each rounded polynomial.
 */
#ifndef KERNELS_NUMERICS_FMATH_CONSTANTS_H
#define KERNELS_NUMERICS_FMATH_CONSTANTS_H

/*
 * Adding 1.5 * 2^(mantissa bits) rounds to the nearest integer (ties to even) and leaves
 * that integer in the low bits of the sum.
 */
#define FMATH_ROUND_F32 0x1.8p+23f
#define FMATH_ROUND_F64 0x1.8p+52

/*
 * exp, float. Inside [MIN, MAX] the result is a normal number; below it is 0, above it is
 * infinity. MAX: largest float with exp(x) <= FLT_MAX; MIN: smallest with exp(x) >= 2^-126.
 * exp(r) = 1 + r + r^2 (C2 + C3 r + ... + C6 r^4), relative error 2^-27.9.
 */
#define FMATH_EXP_F32_MAX  0x1.62e42ep+6f
#define FMATH_EXP_F32_MIN  (-0x1.5d589ep+6f)
#define FMATH_EXP_F32_OVER 0x1.64p+6f /* 89: somewhat above MAX */
#define FMATH_TANH_F32_MIN (-20.0f)   /* of -2 |x|: there tanh is 1 */
#define FMATH_LOG2E_F32    0x1.715476p+0f
#define FMATH_LN2_HIGH_F32 0x1.62e430p-1f
#define FMATH_LN2_LOW_F32  (-0x1.05c610p-29f)
#define FMATH_EXP_F32_C2   0x1.fffffcp-2f
#define FMATH_EXP_F32_C3   0x1.555492p-3f
#define FMATH_EXP_F32_C4   0x1.5558f2p-5f
#define FMATH_EXP_F32_C5   0x1.1239e2p-7f
#define FMATH_EXP_F32_C6   0x1.6a2434p-10f

/*
 * exp, double, likewise: exp(r) = 1 + r + r^2 (C2 + ... + C11 r^9), relative error 2^-56.3.
 */
#define FMATH_EXP_F64_MAX  0x1.62e42fefa39efp+9
#define FMATH_EXP_F64_MIN  (-0x1.6232bdd7abcd2p+9)
#define FMATH_LOG2E_F64    0x1.71547652b82fep+0
#define FMATH_LN2_HIGH_F64 0x1.62e42fefa39efp-1
#define FMATH_LN2_LOW_F64  0x1.abc9e3b39803fp-56
#define FMATH_EXP_F64_C2   0x1.000000000000ap-1
#define FMATH_EXP_F64_C3   0x1.55555555554fap-3
#define FMATH_EXP_F64_C4   0x1.555555555087cp-5
#define FMATH_EXP_F64_C5   0x1.1111111127be7p-7
#define FMATH_EXP_F64_C6   0x1.6c16c1842a167p-10
#define FMATH_EXP_F64_C7   0x1.a01a012a571fcp-13
#define FMATH_EXP_F64_C8   0x1.a0199a0c5ae7ep-16
#define FMATH_EXP_F64_C9   0x1.71df25539452dp-19
#define FMATH_EXP_F64_C10  0x1.28ad72d7857dap-22
#define FMATH_EXP_F64_C11  0x1.ad7f6ccfc77a0p-26

/* log, double: 2 atanh(s) = 2s + s^3 (C0 + C1 s^2 + ...), |s| <= 0.1716, error 2^-58.9. */
#define FMATH_LOG_F64_C0 0x1.5555555555592p-1
#define FMATH_LOG_F64_C1 0x1.999999997fdb8p-2
#define FMATH_LOG_F64_C2 0x1.24924941f121ap-2
#define FMATH_LOG_F64_C3 0x1.c71c52095f339p-3
#define FMATH_LOG_F64_C4 0x1.74663ee81b7b6p-3
#define FMATH_LOG_F64_C5 0x1.39a1babd422fbp-3
#define FMATH_LOG_F64_C6 0x1.2f05635d4ef56p-3

/** Up to here, sqrt(2) - 1, softplus takes the logarithm of 1 + e; above it that of the half. */
#define FMATH_SOFTPLUS_NEAR 0.41421356

/*
 * The normal distribution below -a, double, a >= 0: e^(-a^2 / 2) (C0 + C1 t + ... + C12 t^12) with
 * t = (a - 5) / (a + 5). Relative error 2^-33.98 up to a = 15, beyond which a float counts it as 0.
 */
#define FMATH_NORMAL_F64_C0  0x1.3b0fbcb4d8d4cp-4
#define FMATH_NORMAL_F64_C1  (-0x1.25cd131f01918p-3)
#define FMATH_NORMAL_F64_C2  0x1.db6af85d72916p-4
#define FMATH_NORMAL_F64_C3  (-0x1.4b4ce5aaa0575p-4)
#define FMATH_NORMAL_F64_C4  0x1.8807f7d3bbc54p-5
#define FMATH_NORMAL_F64_C5  (-0x1.7f9cb729779a7p-6)
#define FMATH_NORMAL_F64_C6  0x1.26a05496a7215p-7
#define FMATH_NORMAL_F64_C7  (-0x1.37de2a83d3633p-9)
#define FMATH_NORMAL_F64_C8  0x1.ccf82be1f1afbp-13
#define FMATH_NORMAL_F64_C9  0x1.1d70cea848626p-13
#define FMATH_NORMAL_F64_C10 (-0x1.f9882f392720dp-15)
#define FMATH_NORMAL_F64_C11 (-0x1.ff68b7ce295f9p-20)
#define FMATH_NORMAL_F64_C12 0x1.61d69f219c126p-18

/*
 * sin and cos, double, |x| <= pi/4:
 * sin x = x + x^3 (S0 + S1 x^2 + ...), relative error 2^-57;
 * cos x = 1 - x^2/2 + x^4 (C0 + C1 x^2 + ...), error 2^-59.
 */
#define FMATH_TWO_OVER_PI  0x1.45f306dc9c883p-1
#define FMATH_HALF_PI_HIGH 0x1.921fb54442d18p+0
#define FMATH_HALF_PI_LOW  0x1.1a62633145c07p-54
#define FMATH_SIN_F64_S0   (-0x1.5555555555549p-3)
#define FMATH_SIN_F64_S1   0x1.111111110f87ap-7
#define FMATH_SIN_F64_S2   (-0x1.a01a019c11996p-13)
#define FMATH_SIN_F64_S3   0x1.71de3577b68e2p-19
#define FMATH_SIN_F64_S4   (-0x1.ae5e663a7bc04p-26)
#define FMATH_SIN_F64_S5   0x1.5d9300f413f7cp-33
#define FMATH_COS_F64_C0   0x1.555555555554cp-5
#define FMATH_COS_F64_C1   (-0x1.6c16c16c1517ep-10)
#define FMATH_COS_F64_C2   0x1.a01a019cb1bd9p-16
#define FMATH_COS_F64_C3   (-0x1.27e4f809f08d8p-22)
#define FMATH_COS_F64_C4   0x1.1ee9ebe91fe97p-29
#define FMATH_COS_F64_C5   (-0x1.8fae9c6f9a7a0p-37)

#endif
