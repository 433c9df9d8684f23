/** Exponentials, convolution, compression and triangles of kernels/numerics/ops.h. A body. */
#ifndef KERNELS_CPU_SIMD_RECURRENT_OPS_H
#define KERNELS_CPU_SIMD_RECURRENT_OPS_H

#include <math.h>
#include <string.h>

#include "kernels/cpu/simd/fmath.h"
#include "kernels/numerics/ops.h"

static void exponentials(float *x, size_t n)
{
    for (size_t i = 0; i < n; i += VEC_FLOATS)
        store_first(x + i, n - i, exp_f(load_first(x + i, n - i)));
}

static void scale(float *y, const float *x, float factor, size_t n)
{
    for (size_t i = 0; i < n; i += VEC_FLOATS)
        store_first(y + i, n - i, V(mul_ps)(load_first(x + i, n - i), V(set1_ps)(factor)));
}

static double squares(const float *x, size_t n)
{
    enum { LANES = 16, N = LANES / VEC_DOUBLES };
    vec_d sum[N];
    for (size_t j = 0; j < N; j++)
        sum[j] = V(setzero_pd)();
    for (size_t i = 0; i < n; i += LANES) {
        float tail[LANES] = {0}; /* a square of 0 changes no lane */
        if (n - i < LANES)
            memcpy(tail, x + i, (n - i) * sizeof *x);
        for (size_t j = 0; j < N; j++) {
            vec_d v = load_wide((n - i < LANES ? tail : x + i) + j * VEC_DOUBLES);
            sum[j] = V(fmadd_pd)(v, v, sum[j]);
        }
    }
    for (size_t half = N / 2; half > 0; half /= 2) {
        for (size_t j = 0; j < half; j++)
            sum[j] = V(add_pd)(sum[j], sum[j + half]);
    }
    return add_lanes(sum[0]);
}

static void convolve(float *y, const struct kern_taps *taps, size_t n)
{
    for (size_t i = 0; i < n; i += VEC_FLOATS) {
        vec_f z = taps->bias ? load_first(taps->bias + i, n - i) : V(setzero_ps)();
        for (size_t j = 0; j < taps->n_taps; j++) {
            if (taps->x[j])
                z = V(fmadd_ps)(load_first(taps->weights + j * taps->stride + i, n - i),
                                load_first(taps->x[j] + i, n - i), z);
        }
        if (!taps->bare) {
            vec_f e = exp_f(V(xor_ps)(z, V(set1_ps)(-0.0f)));
            z = V(div_ps)(z, V(add_ps)(V(set1_ps)(1.0f), e));
        }
        store_first(y + i, n - i, z);
    }
}

static void compress(float *y, const struct kern_terms *terms, size_t n)
{
    for (size_t i = 0; i < n; i += VEC_FLOATS) {
        vec_f most = V(set1_ps)(-INFINITY), sum = V(setzero_ps)(), mean = V(setzero_ps)();
        for (size_t j = 0; j < terms->n_terms; j++) {
            const float *z = kern_term(terms, terms->z, j);
            if (z) /* of a NaN the second operand comes out: what was the most before */
                most = V(max_ps)(load_first(z + i, n - i), most);
        }
        for (size_t j = 0; j < terms->n_terms; j++) {
            const float *z = kern_term(terms, terms->z, j);
            if (!z)
                continue;
            vec_f e = exp_f(V(sub_ps)(load_first(z + i, n - i), most));
            sum = V(add_ps)(sum, e);
            mean = V(fmadd_ps)(e, load_first(kern_term(terms, terms->u, j) + i, n - i), mean);
        }
        store_first(y + i, n - i, V(div_ps)(mean, sum));
    }
}

static void triangle(const struct kern_triangle *op)
{
    enum { N = KERN_CHUNK / VEC_FLOATS };
    for (size_t r = op->first; r < op->n_rows; r++) {
        float *out = op->acc + r * KERN_CHUNK;
        const float *w = op->w + r * KERN_CHUNK, *x = op->x;
        vec_f acc[N];
        for (size_t v = 0; v < N; v++)
            acc[v] = V(load_ps)(out + v * VEC_FLOATS);
        for (size_t k = 0; k < r + op->diagonal; k++, x += KERN_CHUNK) {
            vec_f weight = V(set1_ps)(w[k]);
            for (size_t v = 0; v < N; v++)
                acc[v] = V(fmadd_ps)(weight, V(load_ps)(x + v * VEC_FLOATS), acc[v]);
        }
        for (size_t v = 0; v < N; v++)
            V(store_ps)(out + v * VEC_FLOATS, acc[v]);
    }
}

#endif
