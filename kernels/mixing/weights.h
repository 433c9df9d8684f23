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

/** One row of struct kern_stream_weights. */
KERN_INLINE void kern_stream_weights_row(float *a, const float *scale, const float *base,
                                         unsigned n, float eps, uint32_t n_rounds, bool pre_only)
{
    double e = (double)eps, c[KERN_STREAMS_MAX * KERN_STREAMS_MAX];
    for (unsigned i = 0; i < n; i++)
        a[i] = (float)(kern_stream_sigmoid((double)a[i] * (double)scale[0] + (double)base[i]) + e);
    if (pre_only)
        return;
    for (unsigned i = n; i < 2 * n; i++)
        a[i] = (float)(2 * kern_stream_sigmoid((double)a[i] * (double)scale[1] + (double)base[i]));
    a += 2 * n;
    base += 2 * n;
    for (unsigned i = 0; i < n * n; i++)
        c[i] = (double)a[i] * (double)scale[2] + (double)base[i];
    kern_stream_softmax(c, n, e);
    kern_stream_divide_all(c, n, false, e);
    for (uint32_t round = 1; round < n_rounds; round++) {
        kern_stream_divide_all(c, n, true, e);
        kern_stream_divide_all(c, n, false, e);
    }
    for (unsigned i = 0; i < n * n; i++)
        a[i] = (float)c[i];
}

#endif
