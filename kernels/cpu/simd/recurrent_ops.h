/** Exponentials, convolution and triangles of kernels/numerics/ops.h. A body. */
#ifndef KERNELS_CPU_SIMD_RECURRENT_OPS_H
#define KERNELS_CPU_SIMD_RECURRENT_OPS_H

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

static void convolve(float *y, const struct kern_taps *taps, size_t n)
{
    for (size_t i = 0; i < n; i += VEC_FLOATS) {
        vec_f z = taps->bias ? load_first(taps->bias + i, n - i) : V(setzero_ps)();
        for (size_t j = 0; j < taps->n_taps; j++) {
            if (taps->x[j])
                z = V(fmadd_ps)(load_first(taps->weights + j * taps->stride + i, n - i),
                                load_first(taps->x[j] + i, n - i), z);
        }
        vec_f e = exp_f(V(xor_ps)(z, V(set1_ps)(-0.0f)));
        store_first(y + i, n - i, V(div_ps)(z, V(add_ps)(V(set1_ps)(1.0f), e)));
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
