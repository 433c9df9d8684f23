/* Mixture of experts: choosing them, and moving rows to them and back. */
#include <math.h>

#include "kernels/cpu/fmath.h"
#include "kernels/cpu/ops_scalar.h"

void kern_scalar_add_scaled(float *y, const float *x, float share, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        y[i] = fmaf(share, x[i], y[i]);
    }
}
