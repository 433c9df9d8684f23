/**
 * The words that the bodies in kernels/cpu/simd/ are written in, for NEON; see
 * kernels/cpu/avx2/vec.h. V(add_ps) is a function here, neon_add_ps().
 */
#ifndef KERNELS_CPU_NEON_VEC_H
#define KERNELS_CPU_NEON_VEC_H

#include <arm_neon.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "kernels/numerics/fmath_constants.h"

#define V(operation) neon_##operation

enum { VEC_FLOATS = 4, VEC_DOUBLES = 2 };
typedef float32x4_t vec_f;
typedef float64x2_t vec_d;
typedef int32x4_t vec_i;

/** A choice of lanes, of floats and of doubles: all bits of a lane are set, or none is. */
typedef uint32x4_t lanes_f;
typedef uint64x2_t lanes_d;

#define VEC_INLINE static inline __attribute__((always_inline, unused))

/** What floats and doubles do alike: T is vec_f or vec_d, L their lanes, E an element, s NEON's
 * suffix and p that of x86. Of a NaN the second operand is the smaller and the larger, as there. */
#define VEC_BOTH(T, L, E, s, p)                                                                    \
    VEC_INLINE T neon_add_##p(T a, T b)                                                            \
    {                                                                                              \
        return vaddq_##s(a, b);                                                                    \
    }                                                                                              \
    VEC_INLINE T neon_sub_##p(T a, T b)                                                            \
    {                                                                                              \
        return vsubq_##s(a, b);                                                                    \
    }                                                                                              \
    VEC_INLINE T neon_mul_##p(T a, T b)                                                            \
    {                                                                                              \
        return vmulq_##s(a, b);                                                                    \
    }                                                                                              \
    VEC_INLINE T neon_div_##p(T a, T b)                                                            \
    {                                                                                              \
        return vdivq_##s(a, b);                                                                    \
    }                                                                                              \
    VEC_INLINE T neon_fmadd_##p(T a, T b, T c)                                                     \
    {                                                                                              \
        return vfmaq_##s(c, a, b);                                                                 \
    }                                                                                              \
    VEC_INLINE T neon_fmsub_##p(T a, T b, T c)                                                     \
    {                                                                                              \
        return vfmaq_##s(vnegq_##s(c), a, b);                                                      \
    }                                                                                              \
    VEC_INLINE T neon_fnmadd_##p(T a, T b, T c)                                                    \
    {                                                                                              \
        return vfmsq_##s(c, a, b);                                                                 \
    }                                                                                              \
    VEC_INLINE T neon_min_##p(T a, T b)                                                            \
    {                                                                                              \
        return vbslq_##s(vcltq_##s(a, b), a, b);                                                   \
    }                                                                                              \
    VEC_INLINE T neon_max_##p(T a, T b)                                                            \
    {                                                                                              \
        return vbslq_##s(vcgtq_##s(a, b), a, b);                                                   \
    }                                                                                              \
    VEC_INLINE T neon_and_##p(T a, T b)                                                            \
    {                                                                                              \
        return (T)((L)a & (L)b);                                                                   \
    }                                                                                              \
    VEC_INLINE T neon_andnot_##p(T a, T b)                                                         \
    {                                                                                              \
        return (T)(~(L)a & (L)b);                                                                  \
    }                                                                                              \
    VEC_INLINE T neon_or_##p(T a, T b)                                                             \
    {                                                                                              \
        return (T)((L)a | (L)b);                                                                   \
    }                                                                                              \
    VEC_INLINE T neon_xor_##p(T a, T b)                                                            \
    {                                                                                              \
        return (T)((L)a ^ (L)b);                                                                   \
    }                                                                                              \
    VEC_INLINE T neon_set1_##p(E x)                                                                \
    {                                                                                              \
        return vdupq_n_##s(x);                                                                     \
    }                                                                                              \
    VEC_INLINE T neon_setzero_##p(void)                                                            \
    {                                                                                              \
        return vdupq_n_##s(0);                                                                     \
    }                                                                                              \
    VEC_INLINE T neon_loadu_##p(const E *from)                                                     \
    {                                                                                              \
        return vld1q_##s(from);                                                                    \
    }                                                                                              \
    VEC_INLINE void neon_storeu_##p(E *to, T x)                                                    \
    {                                                                                              \
        vst1q_##s(to, x);                                                                          \
    }                                                                                              \
    VEC_INLINE L compare_##p##_CMP_GT_OQ(T a, T b)                                                 \
    {                                                                                              \
        return vcgtq_##s(a, b);                                                                    \
    }                                                                                              \
    VEC_INLINE L compare_##p##_CMP_LT_OQ(T a, T b)                                                 \
    {                                                                                              \
        return vcltq_##s(a, b);                                                                    \
    }                                                                                              \
    VEC_INLINE L compare_##p##_CMP_EQ_OQ(T a, T b)                                                 \
    {                                                                                              \
        return vceqq_##s(a, b);                                                                    \
    }                                                                                              \
    VEC_INLINE L compare_##p##_CMP_NEQ_UQ(T a, T b)                                                \
    {                                                                                              \
        return ~vceqq_##s(a, b);                                                                   \
    }                                                                                              \
    VEC_INLINE L compare_##p##_CMP_NLE_UQ(T a, T b)                                                \
    {                                                                                              \
        return ~vcleq_##s(a, b);                                                                   \
    }
VEC_BOTH(vec_f, lanes_f, float, f32, ps)
VEC_BOTH(vec_d, lanes_d, double, f64, pd)
#undef VEC_BOTH

/** The lanes in which a comparison holds. how: _CMP_GT_OQ, ..., which is no number here. */
#define COMPARE_F(a, b, how) compare_ps##how(a, b)
#define COMPARE_D(a, b, how) compare_pd##how(a, b)

/** Loads and stores need no alignment. */
#define neon_load_ps  neon_loadu_ps
#define neon_store_ps neon_storeu_ps

VEC_INLINE vec_i neon_set1_epi32(int32_t x)
{
    return vdupq_n_s32(x);
}

/** The elements of each pair exchanged: the only permutation that bodies ask for, 0xb1. */
#define neon_permute_ps(x, order) vrev64q_f32(x)

/** The second of each pair twice, and the first. */
VEC_INLINE vec_f neon_movehdup_ps(vec_f x)
{
    return vtrn2q_f32(x, x);
}

VEC_INLINE vec_f neon_moveldup_ps(vec_f x)
{
    return vtrn1q_f32(x, x);
}

/** a b - c in even lanes, a b + c in odd ones. */
VEC_INLINE vec_f neon_fmaddsub_ps(vec_f a, vec_f b, vec_f c)
{
    const lanes_f signs = {0x80000000, 0, 0x80000000, 0};
    return vfmaq_f32((vec_f)((lanes_f)c ^ signs), a, b);
}

VEC_INLINE lanes_f greater_i(vec_i a, vec_i b)
{
    return vcgtq_s32(a, b);
}

VEC_INLINE lanes_f in_range(vec_i begin, vec_i end, vec_i x)
{
    return vcleq_s32(begin, x) & vcgtq_s32(end, x);
}

VEC_INLINE bool any_lane(lanes_f lanes)
{
    return vmaxvq_u32(lanes) != 0;
}

VEC_INLINE vec_f keep_f(lanes_f lanes, vec_f x)
{
    return (vec_f)(lanes & (lanes_f)x);
}

VEC_INLINE vec_d keep_d(lanes_d lanes, vec_d x)
{
    return (vec_d)(lanes & (lanes_d)x);
}

VEC_INLINE vec_f select_f(lanes_f lanes, vec_f yes, vec_f no)
{
    return vbslq_f32(lanes, yes, no);
}

VEC_INLINE vec_d select_d(lanes_d lanes, vec_d yes, vec_d no)
{
    return vbslq_f64(lanes, yes, no);
}

VEC_INLINE vec_i select_i(lanes_f lanes, vec_i yes, vec_i no)
{
    return vbslq_s32(lanes, yes, no);
}

VEC_INLINE vec_i count_rows(vec_i n, lanes_f always, lanes_f ties, vec_i a, vec_i b)
{
    return vsubq_s32(n, (vec_i)(always | (ties & greater_i(a, b))));
}

VEC_INLINE vec_i load_i(const void *from)
{
    return vld1q_s32(from);
}

VEC_INLINE void store_i(void *to, vec_i x)
{
    vst1q_s32(to, x);
}

VEC_INLINE vec_d load_wide(const float *from)
{
    return vcvt_f64_f32(vld1_f32(from));
}

VEC_INLINE void widen(vec_f x, vec_d wide[2])
{
    wide[0] = vcvt_f64_f32(vget_low_f32(x));
    wide[1] = vcvt_high_f64_f32(x);
}

VEC_INLINE vec_f narrow(const vec_d wide[2])
{
    return vcvt_high_f32_f64(vcvt_f32_f64(wide[0]), wide[1]);
}

VEC_INLINE vec_f load_first(const float *from, size_t n)
{
    if (n >= VEC_FLOATS)
        return vld1q_f32(from);
    float some[VEC_FLOATS] = {0};
    memcpy(some, from, n * sizeof *from);
    return vld1q_f32(some);
}

VEC_INLINE void store_first(float *to, size_t n, vec_f x)
{
    float all[VEC_FLOATS];
    if (n >= VEC_FLOATS) {
        vst1q_f32(to, x);
        return;
    }
    vst1q_f32(all, x);
    memcpy(to, all, n * sizeof *to);
}

VEC_INLINE void split_pairs(vec_f low, vec_f high, vec_f *first, vec_f *second)
{
    *first = vuzp1q_f32(low, high);
    *second = vuzp2q_f32(low, high);
}

VEC_INLINE double add_lanes(vec_d x)
{
    return vgetq_lane_f64(x, 0) + vgetq_lane_f64(x, 1);
}

VEC_INLINE vec_f exp_argument(vec_f x)
{
    return x;
}

/** x times two to the n in the low bits of `shifted`, by an addition to the exponent. */
VEC_INLINE vec_f add_exponent(vec_f x, vec_f shifted)
{
    return (vec_f)((lanes_f)x + ((lanes_f)shifted << 23));
}

VEC_INLINE vec_f power_of_two(vec_f shifted)
{
    return add_exponent(vdupq_n_f32(1.0f), shifted);
}

VEC_INLINE vec_f exp_finish_f(vec_f p, vec_f shifted, vec_f x)
{
    lanes_f over = vcgtq_f32(x, vdupq_n_f32(FMATH_EXP_F32_MAX));
    lanes_f under = vcltq_f32(x, vdupq_n_f32(FMATH_EXP_F32_MIN));
    p = vbslq_f32(over, vdupq_n_f32(INFINITY), add_exponent(p, shifted));
    return vbslq_f32(vceqq_f32(x, x), keep_f(~under, p), x);
}

/** A NaN that was a float's has low bits of 0, so it passes through the addition. */
VEC_INLINE vec_d exp_finish_d(vec_d p, vec_d shifted, vec_d x)
{
    p = (vec_d)((lanes_d)p + ((lanes_d)shifted << 52));
    return keep_d(~vcltq_f64(x, vdupq_n_f64(FMATH_EXP_F64_MIN)), p);
}

#endif
