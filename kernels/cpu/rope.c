/* Rotary embedding: the scalar reference and the table of angles. */
#include <math.h>

#include "kernels/cpu/fmath.h"
#include "kernels/cpu/ops_scalar.h"

static void rotate(float *a, float *b, float cosine, float sine)
{
    float old_a = *a;
    float old_b = *b;
    *a = fmaf(old_a, cosine, -(old_b * sine));
    *b = fmaf(old_b, cosine, old_a * sine);
}

void kern_scalar_rope_adjacent(float *x, const float *angles, size_t n_pairs)
{
    for (size_t i = 0; i < n_pairs; i++) {
        rotate(&x[2 * i], &x[2 * i + 1], angles[2 * i], angles[2 * i + 1]);
    }
}

void kern_scalar_rope_halves(float *x, const float *angles, size_t n_pairs)
{
    for (size_t i = 0; i < n_pairs; i++) {
        rotate(&x[i], &x[i + n_pairs], angles[2 * i], angles[2 * i + 1]);
    }
}

void kern_rope_fill(float *table, size_t n_positions, const double *frequency, size_t n_pairs,
                    double magnitude)
{
    for (size_t position = 0; position < n_positions; position++) {
        for (size_t i = 0; i < n_pairs; i++) {
            double sine, cosine;
            kern_sincos((double)position * frequency[i], &sine, &cosine);
            *table++ = (float)(cosine * magnitude);
            *table++ = (float)(sine * magnitude);
        }
    }
}
