/** Norms, rotary embedding, activations, soft cap and scaled addition of kernels/numerics/ops.h. A
 * body. */
#ifndef KERNELS_CPU_SIMD_ROW_OPS_H
#define KERNELS_CPU_SIMD_ROW_OPS_H

#include "kernels/cpu/simd/activation.h"

enum { NORM_LANES = 16, N_SUMS = NORM_LANES / VEC_DOUBLES };

/** What is summed; a square of a float is exact in double, so it takes one instruction. */
enum norm_sum { SUM, SQUARES, SQUARES_OF_FLOATS };

static inline vec_d add_to(vec_d sum, vec_d d, enum norm_sum what)
{
    if (what == SQUARES_OF_FLOATS)
        return V(fmadd_pd)(d, d, sum);
    return V(add_pd)(sum, what == SQUARES ? V(mul_pd)(d, d) : d);
}

/** The sum over x[i] - mean; a constant `what`, and a mean that is the constant 0, cost nothing. */
static inline __attribute__((always_inline)) double sum_in_lanes(const float *x, size_t n,
                                                                 double mean, enum norm_sum what)
{
    vec_d sum[N_SUMS];
    for (size_t j = 0; j < N_SUMS; j++)
        sum[j] = V(setzero_pd)();
    size_t i = 0;
    for (; i + NORM_LANES <= n; i += NORM_LANES) {
        for (size_t j = 0; j < N_SUMS; j++) {
            vec_d d = V(sub_pd)(load_wide(x + i + j * VEC_DOUBLES), V(set1_pd)(mean));
            sum[j] = add_to(sum[j], d, what);
        }
    }
    if (i < n) {
        double tail[NORM_LANES] = {0}; /* neither 0 nor its square changes a lane */
        for (size_t k = 0; i + k < n; k++)
            tail[k] = (double)x[i + k] - mean;
        for (size_t j = 0; j < N_SUMS; j++)
            sum[j] = add_to(sum[j], V(loadu_pd)(tail + j * VEC_DOUBLES), what);
    }
    for (size_t half = N_SUMS / 2; half > 0; half /= 2) {
        for (size_t j = 0; j < half; j++)
            sum[j] = V(add_pd)(sum[j], sum[j + half]);
    }
    return add_lanes(sum[0]);
}

/** x - mean in double, rounded to float. */
static inline vec_f subtract_mean(vec_f x, double mean)
{
    vec_d wide[2];
    widen(x, wide);
    for (size_t j = 0; j < 2; j++)
        wide[j] = V(sub_pd)(wide[j], V(set1_pd)(mean));
    return narrow(wide);
}

/** The first n elements of a vector from element i on, or all of it. mean: of no use unless center.
 */
static inline __attribute__((always_inline)) void
norm_some(const struct kern_norm_row *row, size_t i, size_t n, vec_f inv, double mean)
{
    vec_f y = load_first(row->x + i, n);
    y = row->center ? subtract_mean(y, mean) : y;
    y = V(mul_ps)(y, inv);
    if (row->gain)
        y = V(mul_ps)(y, load_first(row->gain + i, n));
    if (row->bias)
        y = V(add_ps)(y, load_first(row->bias + i, n));
    if (row->accumulate)
        y = V(add_ps)(y, load_first(row->y + i, n));
    store_first(row->y + i, n, y);
}

static void norm(const struct kern_norm_row *op)
{
    const struct kern_norm_row row = *op; /* what is stored is not in it, for the compiler too */
    double mean = 0.0, squares = 0.0;
    if (row.center)
        mean = sum_in_lanes(row.x, row.n, 0.0, SUM) / (double)row.n;
    if (!row.plain)
        squares = row.center ? sum_in_lanes(row.x, row.n, mean, SQUARES)
                             : sum_in_lanes(row.x, row.n, 0.0, SQUARES_OF_FLOATS);
    double root = sqrt(squares / (double)row.n + (double)row.eps);
    vec_f inv = V(set1_ps)(row.plain ? 1.0f : (float)(1.0 / root));
    size_t i = 0;
    for (; i + VEC_FLOATS <= row.n; i += VEC_FLOATS)
        norm_some(&row, i, VEC_FLOATS, inv, mean);
    norm_some(&row, i, row.n - i, inv, mean);
}

static void sparsify(float *x, size_t n, float scale, bool sample)
{
    double mean = sum_in_lanes(x, n, 0.0, SUM) / (double)n;
    double variance = sum_in_lanes(x, n, mean, SQUARES) / kern_sparsify_divisor(n, sample);
    double threshold = mean + (double)scale * sqrt(variance);
    for (size_t i = 0; i < n; i += VEC_FLOATS) {
        vec_f above = subtract_mean(load_first(x + i, n - i), threshold);
        store_first(x + i, n - i, at_least(above, 0.0f));
    }
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

static void add_rectified(float *y, const float *x, const float *weights, size_t n, size_t n_rows)
{
    for (size_t i = 0; i < n; i += VEC_FLOATS) {
        vec_f weight = load_first(weights + i, n - i);
        for (size_t row = 0; row < n_rows; row++) {
            float *to = y + row * n + i;
            vec_f positive = V(max_ps)(load_first(x + row * n + i, n - i), V(setzero_ps)());
            vec_f product = V(mul_ps)(weight, positive); /* max() of a NaN is the second, 0 */
            store_first(to, n - i, V(add_ps)(load_first(to, n - i), product));
        }
    }
}

#endif
