/* RMSNorm: the scalar reference. */
#include <math.h>

#include "kernels/cpu/ops_scalar.h"

enum { NORM_LANES = 16 };

void kern_scalar_rmsnorm(float *y, const float *x, const float *gain, float eps, size_t n)
{
    double lane[NORM_LANES] = {0};
    for (size_t i = 0; i < n; i++) {
        double v = (double)x[i];
        lane[i % NORM_LANES] += v * v; /* the square of a float is exact in double */
    }
    for (size_t half = NORM_LANES / 2; half > 0; half /= 2) {
        for (size_t j = 0; j < half; j++) {
            lane[j] += lane[j + half];
        }
    }
    float inv = (float)(1.0 / sqrt(lane[0] / (double)n + (double)eps));
    for (size_t i = 0; i < n; i++) {
        y[i] = (x[i] * inv) * gain[i];
    }
}
