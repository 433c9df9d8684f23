/**
 * The activations of enum kern_activation, an element at a time: the scalar reference, and what a
 * device computes. kernels/cpu/simd/activation.h repeats them operation by operation for vectors.
 *
 * Comparisons are written so that a NaN stays a NaN. Where e^-w overflows, below w = -88.7, the
 * result is -0 for one under 2e-36; of -infinity it is NaN (0 times infinity), and SiTU's -0.
 */
#ifndef KERNELS_NUMERICS_ACTIVATION_H
#define KERNELS_NUMERICS_ACTIVATION_H

#include <float.h>
#include <stdbool.h>

#include "kernels/numerics/fmath.h"
#include "kernels/types.h"

/** GELU's sigmoid is of w = z SCALE (1 + CUBE z^2): (1 + tanh(w / 2)) / 2. w is cut at LIMIT. */
#define KERN_GELU_SCALE 0x1.9884533d43651p+0 /* 2 sqrt(2 / pi) */
#define KERN_GELU_CUBE  0.044715
#define KERN_GELU_LIMIT 120.0

/** The exact GELU is z times the normal distribution below z, which is 0 or 1 from |z| = LIMIT on.
 */
#define KERN_GELU_EXACT_LIMIT 40.0

/** The constants of KERN_SWIGLU_OAI: 1.702 in two floats; z below LOWEST counts as LOWEST in the
 * exponent. */
#define KERN_SWIGLU_SLOPE     0x1.b3b646p+0f
#define KERN_SWIGLU_SLOPE_LOW (-0x1.78d4fep-26f)
#define KERN_SWIGLU_LIMIT     7.0f
#define KERN_SWIGLU_LOWEST    (-100.0f)

/** z / (1 + e^-w), w = hi + lo: an exponent in one float would be off by |w| half ulps. */
KERN_INLINE float kern_logistic(float z, float hi, float lo)
{
    float e = fmath_exp_f32(-hi);
    float finite = e > FLT_MAX ? FLT_MAX : e;
    return z / fmaf(-lo, finite, 1.0f + e);
}

KERN_INLINE float kern_gelu(float z)
{
    double wide = (double)z;
    double w = (wide * KERN_GELU_SCALE) * fma(wide * wide, KERN_GELU_CUBE, 1.0);
    w = w > KERN_GELU_LIMIT ? KERN_GELU_LIMIT : w;
    w = w < -KERN_GELU_LIMIT ? -KERN_GELU_LIMIT : w;
    float hi = (float)w;
    return kern_logistic(z, hi, (float)(w - (double)hi));
}

/** In double: the share of z, and its complement where z is above 0. */
KERN_INLINE float kern_gelu_exact(float z)
{
    double wide = (double)z;
    double size = wide > 0.0 ? wide : 0.0 - wide;
    double below = fmath_normal_f64(size < KERN_GELU_EXACT_LIMIT ? size : KERN_GELU_EXACT_LIMIT);
    return (float)(wide * (wide > 0.0 ? 1.0 - below : below));
}

/** x within -limit .. limit. */
KERN_INLINE float kern_within(float x, float limit)
{
    x = x > limit ? limit : x;
    return x < -limit ? -limit : x;
}

KERN_INLINE float kern_swiglu_oai(float z, float up)
{
    z = z > KERN_SWIGLU_LIMIT ? KERN_SWIGLU_LIMIT : z;
    up = kern_within(up, KERN_SWIGLU_LIMIT);
    float x = z < KERN_SWIGLU_LOWEST ? KERN_SWIGLU_LOWEST : z;
    float hi = x * KERN_SWIGLU_SLOPE;
    float lo = fmaf(x, KERN_SWIGLU_SLOPE_LOW, fmaf(x, KERN_SWIGLU_SLOPE, -hi));
    return kern_logistic(z, hi, lo) * (up + 1.0f);
}

/** What squares of n differences from their mean are divided by; see struct kern_sparsify. */
KERN_INLINE double kern_sparsify_divisor(size_t n, bool sample)
{
    return sample && n > 1 ? (double)n - 1.0 : (double)n;
}

/** What a row of this sum of squares is multiplied by; see struct kern_stretch. */
KERN_INLINE float kern_stretch_factor(double squares, double to, double least)
{
    return (float)sqrt(to / (squares < least ? least : squares));
}

/** The share of a value whose key and query have this product; see struct kern_match. Of NaN it is
 * NaN. */
KERN_INLINE float kern_match_share(double product, size_t width)
{
    float z = (float)(product / sqrt((double)width));
    float root = sqrtf(fabsf(z) < 1e-6f ? 1e-6f : fabsf(z));
    return 1.0f / (1.0f + fmath_exp_f32(z > 0.0f ? -root : z == 0.0f ? 0.0f : root));
}

KERN_INLINE float kern_silu(float z)
{
    return z / (1.0f + fmath_exp_f32(-z));
}

/** In double: the terms can cancel. */
KERN_INLINE float kern_xielu(const struct kern_curve *c, float z)
{
    double x = (double)z;
    double least = x > c->eps ? c->eps : x;
    double curved = x > 0.0 ? c->rise * (x * x) : c->fall * ((fmath_exp_f64(least) - 1.0) - x);
    return (float)fma(c->slope, x, curved);
}

/** A soft limit: limit tanh(x / limit). */
KERN_INLINE float kern_soft_limit(float x, float limit)
{
    return limit * fmath_tanh_f32(x / limit);
}

KERN_INLINE float kern_situ(const struct kern_curve *c, float z, float up)
{
    float y = kern_soft_limit(z, c->beta) * (1.0f / (1.0f + fmath_exp_f32(-z)));
    return y * (c->up_beta > 0.0f ? kern_soft_limit(up, c->up_beta) : up);
}

/** gate' for a gate of z and this up, which is 1 where there is none. */
KERN_INLINE float kern_activation(enum kern_activation kind, const struct kern_curve *curve,
                                  float z, float up)
{
    switch (kind) {
    case KERN_GELU:
        return kern_gelu(z) * up;
    case KERN_GELU_EXACT:
        return kern_gelu_exact(z) * up;
    case KERN_SIGMOID:
        return 1.0f / (1.0f + fmath_exp_f32(-z)) * up;
    case KERN_RELU_SQUARED:
        z = z < 0.0f ? 0.0f : z;
        return z * z * up;
    case KERN_TANH:
        return fmath_tanh_f32(z) * up;
    case KERN_IDENTITY:
        return z * up;
    case KERN_SWIGLU_OAI:
        return kern_swiglu_oai(z, up);
    case KERN_RELU:
        return (z < 0.0f ? 0.0f : z) * up;
    case KERN_SOFTPLUS:
        return (float)fmath_softplus_f64((double)z) * up;
    case KERN_SWIGLU_CLAMP_BEFORE:
        z = z > curve->clamp ? curve->clamp : z;
        return kern_silu(z) * kern_within(up, curve->clamp);
    case KERN_SWIGLU_CLAMP_AFTER:
        z = kern_silu(z);
        z = z > curve->clamp ? curve->clamp : z;
        return z * kern_within(up, curve->clamp);
    case KERN_XIELU:
        return kern_xielu(curve, z) * up;
    case KERN_SITU:
        return kern_situ(curve, z, up);
    case KERN_SILU:
    case KERN_N_ACTIVATIONS:
        break;
    }
    return kern_silu(z) * up;
}

#endif
