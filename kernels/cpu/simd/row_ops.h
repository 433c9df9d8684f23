/** RMSNorm, rotary embedding, silu_mul, soft cap and scaled addition of kernels/numerics/ops.h. A
 * body. */
#ifndef KERNELS_CPU_SIMD_ROW_OPS_H
#define KERNELS_CPU_SIMD_ROW_OPS_H

#include <string.h>

#include "kernels/cpu/simd/fmath.h"

enum { NORM_LANES = 16, N_SUMS = NORM_LANES / VEC_DOUBLES };

/** Add the squares of 16 elements, one to each lane of the sums. */
static inline void add_squares(vec_d sum[N_SUMS], const float *x)
{
    for (size_t j = 0; j < N_SUMS; j++) {
        vec_d v = load_wide(x + j * VEC_DOUBLES);
        sum[j] = V(fmadd_pd)(v, v, sum[j]);
    }
}

static double sum_of_squares(const float *x, size_t n)
{
    vec_d sum[N_SUMS];
    for (size_t j = 0; j < N_SUMS; j++)
        sum[j] = V(setzero_pd)();
    size_t i = 0;
    for (; i + NORM_LANES <= n; i += NORM_LANES)
        add_squares(sum, x + i);
    if (i < n) {
        float tail[NORM_LANES] = {0}; /* a square of 0 changes no lane */
        memcpy(tail, x + i, (n - i) * sizeof *x);
        add_squares(sum, tail);
    }
    for (size_t half = N_SUMS / 2; half > 0; half /= 2) {
        for (size_t j = 0; j < half; j++)
            sum[j] = V(add_pd)(sum[j], sum[j + half]);
    }
    return add_lanes(sum[0]);
}

/** The first n elements of a vector, or all of it. */
static inline void scale_some(float *y, const float *x, const float *gain, vec_f inv, size_t n)
{
    vec_f scaled = V(mul_ps)(load_first(x, n), inv);
    store_first(y, n, V(mul_ps)(scaled, load_first(gain, n)));
}

static void rmsnorm(float *y, const float *x, const float *gain, float eps, size_t n)
{
    float inv = (float)(1.0 / sqrt(sum_of_squares(x, n) / (double)n + (double)eps));
    size_t i = 0;
    for (; i + VEC_FLOATS <= n; i += VEC_FLOATS)
        scale_some(y + i, x + i, gain + i, V(set1_ps)(inv), VEC_FLOATS);
    scale_some(y + i, x + i, gain + i, V(set1_ps)(inv), n - i);
}

static void rope_adjacent(float *x, const float *angles, size_t n_pairs)
{
    size_t n = 2 * n_pairs;
    for (size_t i = 0; i < n; i += VEC_FLOATS) {
        /* a b a b ..., cos sin cos sin ... */
        vec_f ab = load_first(x + i, n - i), angle = load_first(angles + i, n - i);
        vec_f cross = V(mul_ps)(V(permute_ps)(ab, 0xb1), V(movehdup_ps)(angle));
        store_first(x + i, n - i, V(fmaddsub_ps)(ab, V(moveldup_ps)(angle), cross));
    }
}

static void rope_halves(float *x, const float *angles, size_t n_pairs)
{
    for (size_t i = 0; i < n_pairs; i += VEC_FLOATS) {
        size_t n = n_pairs - i, n_high = n > VEC_FLOATS / 2 ? 2 * n - VEC_FLOATS : 0;
        vec_f a = load_first(x + i, n), b = load_first(x + n_pairs + i, n);
        vec_f low = load_first(angles + 2 * i, 2 * n);
        vec_f high = load_first(angles + 2 * i + VEC_FLOATS, n_high);
        vec_f cosine, sine;
        split_pairs(low, high, &cosine, &sine);
        store_first(x + i, n, V(fmsub_ps)(a, cosine, V(mul_ps)(b, sine)));
        store_first(x + n_pairs + i, n, V(fmadd_ps)(b, cosine, V(mul_ps)(a, sine)));
    }
}

static void silu_mul(float *gate, const float *up, size_t n)
{
    for (size_t i = 0; i < n; i += VEC_FLOATS) {
        vec_f z = load_first(gate + i, n - i);
        vec_f e = exp_f(V(xor_ps)(z, V(set1_ps)(-0.0f)));
        vec_f silu = V(div_ps)(z, V(add_ps)(V(set1_ps)(1.0f), e));
        store_first(gate + i, n - i, V(mul_ps)(silu, load_first(up + i, n - i)));
    }
}

static void soft_cap(float *x, size_t n, float scale, float cap)
{
    const vec_f inverse = V(set1_ps)(1.0f / cap);
    for (size_t i = 0; i < n; i += VEC_FLOATS) {
        vec_f scaled = V(mul_ps)(load_first(x + i, n - i), V(set1_ps)(scale));
        vec_f capped = V(mul_ps)(V(set1_ps)(cap), tanh_f(V(mul_ps)(scaled, inverse)));
        store_first(x + i, n - i, V(add_ps)(capped, V(sub_ps)(scaled, scaled)));
    }
}

static void add_scaled(float *y, const float *x, float share, size_t n)
{
    for (size_t i = 0; i < n; i += VEC_FLOATS) {
        vec_f old = load_first(y + i, n - i);
        store_first(y + i, n - i, V(fmadd_ps)(V(set1_ps)(share), load_first(x + i, n - i), old));
    }
}

#endif
