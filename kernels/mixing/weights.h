/** The weights of a token's streams: the CPU and CUDA compute them with these functions. */
#ifndef KERNELS_MIXING_WEIGHTS_H
#define KERNELS_MIXING_WEIGHTS_H

#include "kernels/mixing.h"
#include "kernels/numerics/fmath.h"

KERN_INLINE double kern_stream_sigmoid(double x)
{
    return 1.0 / (1.0 + fmath_exp_f64(-x));
}

/** Softmax of each row of c [n, n], + eps. */
KERN_INLINE void kern_stream_softmax(double *c, unsigned n, double eps)
{
    for (unsigned r = 0; r < n; r++, c += n) {
        double most = c[0], sum = 0.0;
        for (unsigned i = 0; i < n; i++) /* from 1, rows of one would be compiled apart */
            most = c[i] > most ? c[i] : most;
        for (unsigned i = 0; i < n; i++) {
            c[i] = fmath_exp_f64(c[i] - most);
            sum += c[i];
        }
        for (unsigned i = 0; i < n; i++)
            c[i] = c[i] / sum + eps;
    }
}

/** Divide n numbers, `step` apart, by their sum + eps. */
KERN_INLINE void kern_stream_divide(double *c, unsigned n, unsigned step, double eps)
{
    double sum = eps;
    for (unsigned i = 0; i < n; i++)
        sum += c[i * step];
    for (unsigned i = 0; i < n; i++)
        c[i * step] /= sum;
}

/** Rows, or columns, of c [n, n]. */
KERN_INLINE void kern_stream_divide_all(double *c, unsigned n, bool rows, double eps)
{
    for (unsigned i = 0; i < n; i++)
        kern_stream_divide(c + (rows ? i * n : i), n, rows ? 1 : n, eps);
}

/** The matrix of a row: nearly doubly stochastic. */
KERN_INLINE void kern_stream_matrix(float *a, float scale, const float *base,
                                    const struct kern_stream_rule *rule)
{
    unsigned n = rule->n_streams;
    double e = (double)rule->eps, c[KERN_STREAMS_MAX * KERN_STREAMS_MAX];
    for (unsigned i = 0; i < n * n; i++)
        c[i] = (double)a[i] * (double)scale + (double)base[i];
    kern_stream_softmax(c, n, e);
    kern_stream_divide_all(c, n, false, e);
    for (uint32_t round = 1; round < rule->n_rounds; round++) {
        kern_stream_divide_all(c, n, true, e);
        kern_stream_divide_all(c, n, false, e);
    }
    for (unsigned i = 0; i < n * n; i++)
        a[i] = (float)c[i];
}

/** One row of struct kern_stream_weights. */
KERN_INLINE void kern_stream_weights_row(float *a, const float *scale, const float *base,
                                         const struct kern_stream_rule *rule)
{
    unsigned n = rule->n_streams;
    double e = (double)rule->eps;
    double most = (double)rule->magnitude, least = rule->n_rounds == 0 ? e : 0.0;
    for (unsigned i = 0; i < n; i++)
        a[i] = (float)(kern_stream_sigmoid((double)a[i] * (double)scale[0] + (double)base[i]) + e);
    for (unsigned i = n; !rule->pre_only && i < 2 * n; i++)
        a[i] =
            (float)(most * kern_stream_sigmoid((double)a[i] * (double)scale[1] + (double)base[i]) +
                    least);
    if (!rule->pre_only && rule->n_rounds > 0)
        kern_stream_matrix(a + 2 * n, scale[2], base + 2 * n, rule);
}

/** A row of struct kern_softmax. */
KERN_INLINE void kern_softmax_row(float *x, size_t n, size_t width)
{
    double most = (double)x[0], sum = 0.0;
    for (size_t i = 0; i < n; i++)
        most = (double)x[i] > most ? (double)x[i] : most;
    for (size_t i = 0; i < n; i++)
        sum += fmath_exp_f64((double)x[i] - most);
    for (size_t i = 0; i < width; i++)
        x[i] = i < n ? (float)(fmath_exp_f64((double)x[i] - most) / sum) : 0.0f;
}

#endif
