/* The kernels of recurrent layers that are not matrix products; the scalar reference. */
#include "kernels/numerics/fmath.h"
#include "kernels/numerics/ops_scalar.h"
#include "kernels/recurrent/gates.h"

void kern_scalar_exp(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = fmath_exp_f32(x[i]);
}

void kern_scalar_scale(float *y, const float *x, float factor, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = x[i] * factor;
}

double kern_scalar_squares(const float *x, size_t n)
{
    double lane[KERN_UNIT_LANES] = {0};
    for (size_t i = 0; i < n; i++)
        lane[i % KERN_UNIT_LANES] += (double)x[i] * (double)x[i];
    return kern_unit_sum(lane);
}

void kern_scalar_convolve(float *y, const struct kern_taps *taps, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float z = taps->bias ? taps->bias[i] : 0.0f;
        for (size_t j = 0; j < taps->n_taps; j++)
            if (taps->x[j])
                z = fmaf(taps->weights[j * taps->stride + i], taps->x[j][i], z);
        y[i] = taps->bare ? z : z / (1.0f + fmath_exp_f32(-z));
    }
}

void kern_scalar_triangle(const struct kern_triangle *op)
{
    for (size_t r = op->first; r < op->n_rows; r++) {
        float *acc = op->acc + r * KERN_CHUNK;
        for (size_t k = 0; k < r + op->diagonal; k++) {
            for (size_t lane = 0; lane < KERN_CHUNK; lane++)
                acc[lane] =
                    fmaf(op->w[r * KERN_CHUNK + k], op->x[k * KERN_CHUNK + lane], acc[lane]);
        }
    }
}
