/* Rows of numbers: normalising, rotating, silu_mul, adding, choosing experts; the scalar reference.
 */
#include <math.h>

#include "kernels/numerics/fmath.h"
#include "kernels/numerics/ops_scalar.h"

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

void kern_rope_fill(float *angles, size_t n_positions, const double *frequency, size_t n_pairs,
                    double magnitude)
{
    for (size_t position = 0; position < n_positions; position++) {
        for (size_t i = 0; i < n_pairs; i++) {
            double sine, cosine;
            kern_sincos((double)position * frequency[i], &sine, &cosine);
            *angles++ = (float)(cosine * magnitude);
            *angles++ = (float)(sine * magnitude);
        }
    }
}

void kern_scalar_silu_mul(float *gate, const float *up, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float z = gate[i];
        gate[i] = z / (1.0f + fmath_exp_f32(-z)) * up[i];
    }
}

void kern_scalar_soft_cap(float *x, size_t n, float scale, float cap)
{
    for (size_t i = 0; i < n; i++)
        x[i] = fmath_soft_cap_f32(x[i] * scale, cap, 1.0f / cap);
}

void kern_scalar_add_scaled(float *y, const float *x, float share, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        y[i] = fmaf(share, x[i], y[i]);
    }
}

/* The largest logit that comes after expert `last` in the order (larger first, lower id first). */
static size_t next_best(const float *logits, size_t n, size_t last)
{
    size_t best = n;
    for (size_t i = 0; i < n; i++) {
        bool behind =
            last == n || logits[i] < logits[last] || (logits[i] == logits[last] && i > last);
        if (behind && (best == n || logits[i] > logits[best])) {
            best = i;
        }
    }
    return best;
}

/* Whether the logits define a distribution: no NaN, no +infinity, one at least finite. */
static bool is_distribution(const float *logits, size_t n)
{
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        if (!(logits[i] < INFINITY)) {
            return false;
        }
        any = any || logits[i] > -INFINITY;
    }
    return any;
}

/*
 * The sum of the softmax over all experts cancels when the chosen ones are renormalised, so
 * only their exponentials are taken. Without a distribution: the first experts, shares NaN.
 */
void kern_scalar_top_experts(const float *logits, size_t n_experts, size_t n_used, int32_t *experts,
                             float *shares)
{
    if (!is_distribution(logits, n_experts)) {
        for (size_t j = 0; j < n_used; j++) {
            experts[j] = (int32_t)j;
            shares[j] = NAN;
        }
        return;
    }
    size_t last = n_experts;
    double sum = 0.0;
    for (size_t j = 0; j < n_used; j++) {
        last = next_best(logits, n_experts, last);
        experts[j] = (int32_t)last;
        sum += fmath_exp_f64((double)logits[last] - (double)logits[experts[0]]);
    }
    for (size_t j = 0; j < n_used; j++) {
        double gap = (double)logits[experts[j]] - (double)logits[experts[0]];
        shares[j] = (float)(fmath_exp_f64(gap) / sum);
    }
}

#define ENTRY(name) .name = kern_scalar_##name,
const struct kern_ops kern_ops_scalar = {KERN_OPS(ENTRY)};
