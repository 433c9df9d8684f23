/* The gate of the feed-forward block: the scalar reference. */
#include "kernels/cpu/fmath.h"
#include "kernels/cpu/ops_scalar.h"

void kern_scalar_gate(float *gate, const float *up, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float z = gate[i];
        gate[i] = z / (1.0f + fmath_exp_f32(-z)) * up[i];
    }
}
