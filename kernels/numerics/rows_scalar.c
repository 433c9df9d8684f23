/* Rows of numbers: normalising, rotating, activating, adding; the scalar reference. */
#include <math.h>

#include "kernels/numerics/activation.h"
#include "kernels/numerics/ops_scalar.h"
#include "kernels/operations.h"

enum { NORM_LANES = 16 };

/* The sum of x[i] - mean, or of the squares. */
static double sum_in_lanes(const float *x, size_t n, double mean, bool squares)
{
    double lane[NORM_LANES] = {0};
    for (size_t i = 0; i < n; i++) {
        double d = (double)x[i] - mean;
        lane[i % NORM_LANES] += squares ? d * d : d;
    }
    for (size_t half = NORM_LANES / 2; half > 0; half /= 2)
        for (size_t j = 0; j < half; j++)
            lane[j] += lane[j + half];
    return lane[0];
}

void kern_scalar_norm(const struct kern_norm_row *row)
{
    double n = (double)row->n;
    double mean = row->center ? sum_in_lanes(row->x, row->n, 0.0, false) / n : 0.0;
    double squares = row->plain ? 0.0 : sum_in_lanes(row->x, row->n, mean, true);
    float inv = row->plain ? 1.0f : (float)(1.0 / sqrt(squares / n + (double)row->eps));
    for (size_t i = 0; i < row->n; i++) {
        float y = (float)((double)row->x[i] - mean) * inv;
        y = row->gain ? y * row->gain[i] : y;
        y = row->bias ? y + row->bias[i] : y;
        row->y[i] = row->accumulate ? y + row->y[i] : y;
    }
}

void kern_scalar_sparsify(float *x, size_t n, float scale, bool sample)
{
    double mean = sum_in_lanes(x, n, 0.0, false) / (double)n;
    double variance = sum_in_lanes(x, n, mean, true) / kern_sparsify_divisor(n, sample);
    double threshold = mean + (double)scale * sqrt(variance);
    for (size_t i = 0; i < n; i++) {
        float above = (float)((double)x[i] - threshold);
        x[i] = above < 0.0f ? 0.0f : above;
    }
}

static void rotate(float *a, float *b, float cosine, float sine)
{
    float old_a = *a;
    float old_b = *b;
    *a = fmaf(old_a, cosine, -(old_b * sine));
    *b = fmaf(old_b, cosine, old_a * sine);
}

void kern_scalar_rope_adjacent(float *x, const float *angles, size_t n_pairs)
{
    for (size_t i = 0; i < n_pairs; i++)
        rotate(&x[2 * i], &x[2 * i + 1], angles[2 * i], angles[2 * i + 1]);
}

void kern_scalar_rope_halves(float *x, const float *angles, size_t n_pairs)
{
    for (size_t i = 0; i < n_pairs; i++)
        rotate(&x[i], &x[i + n_pairs], angles[2 * i], angles[2 * i + 1]);
}

void kern_rope_fill(float *angles, size_t first, size_t n_positions, const double *frequency,
                    size_t n_pairs, double magnitude)
{
    for (size_t position = first; position < first + n_positions; position++) {
        for (size_t i = 0; i < n_pairs; i++) {
            double sine, cosine;
            kern_sincos((double)position * frequency[i], &sine, &cosine);
            *angles++ = (float)(cosine * magnitude);
            *angles++ = (float)(sine * magnitude);
        }
    }
}

void kern_scalar_activate(enum kern_activation kind, const struct kern_curve *curve, float *gate,
                          const float *up, size_t n)
{
    for (size_t i = 0; i < n; i++)
        gate[i] = kern_activation(kind, curve, gate[i], up ? up[i] : 1.0f);
}

void kern_scalar_soft_cap(float *x, size_t n, float scale, float cap)
{
    for (size_t i = 0; i < n; i++)
        x[i] = fmath_soft_cap_f32(x[i] * scale, cap, 1.0f / cap);
}

void kern_scalar_add_scaled(float *y, const float *x, float share, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = fmaf(share, x[i], y[i]);
}

void kern_scalar_add_rectified(float *y, const float *x, const float *weights, size_t n,
                               size_t n_rows)
{
    for (size_t i = 0; i < n * n_rows; i++)
        y[i] += weights[i % n] * (x[i] > 0.0f ? x[i] : 0.0f);
}

#define ENTRY(name) .name = kern_scalar_##name,
const struct kern_ops kern_ops_scalar = {KERN_OPS(ENTRY)};
