/**
 * The numbers that say how much a token changes a state, and the length of q and k: the CPU and
 * CUDA compute them with these functions, so their bits are the same.
 */
#ifndef KERNELS_RECURRENT_GATES_H
#define KERNELS_RECURRENT_GATES_H

#include "kernels/numerics/fmath.h"
#include "kernels/recurrent_types.h"

/** dt of struct kern_recur. */
KERN_INLINE double kern_recur_dt(float dt, float bias, float least)
{
    double x = fmath_softplus_f64((double)dt + (double)bias);
    return x < (double)least ? (double)least : x;
}

/** What a channel of a state is multiplied by. */
KERN_INLINE float kern_recur_decay(float dt, float bias, const struct kern_decay *d)
{
    if (d->least_log == 0)
        return fmath_exp_f32((float)(kern_recur_dt(dt, bias, d->dt_min) * (double)d->rate));
    double x = ((double)dt + (double)bias) * fabs((double)d->rate);
    return fmath_exp_f32((float)((double)d->least_log / (1.0 + fmath_exp_f64(-x))));
}

/** What e is multiplied by: sigmoid(beta), or dt. */
KERN_INLINE float kern_sigmoid_f32(float x)
{
    return (float)(1.0 / (1.0 + fmath_exp_f64(-(double)x)));
}

enum { KERN_UNIT_LANES = 16 };

/** The sum of KERN_UNIT_LANES numbers, by a fixed tree; they are lost. */
KERN_INLINE double kern_unit_sum(double *lane)
{
    for (unsigned half = KERN_UNIT_LANES / 2; half > 0; half /= 2) {
        for (unsigned j = 0; j < half; j++)
            lane[j] += lane[j + half];
    }
    return lane[0];
}

/** scale / length. squares: their sum, elements i, i + 16, ... in lane i. */
KERN_INLINE float kern_unit_factor(enum kern_unit unit, double squares, float eps, float scale)
{
    if (unit == KERN_UNIT_NONE)
        return scale;
    return (float)((double)scale / sqrt(squares + (double)eps));
}

#endif
