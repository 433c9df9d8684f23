/**
 * Kernels that go through rows once: normalisation, rotation, activation, scaling, copying,
 * rounding. All are bound by memory. For T tokens of width D each moves:
 *   norm 8 T D bytes (further readings come from L2), rope 8 bytes per rotated element,
 *   gate 12 bytes per element, scale, copy, round 8 T D,
 *   soft cap 8 per logit (in L2).
 * The order of every sum is that of kernels/numerics/ops.h, so the bits are the CPU's.
 */
#ifndef KERNELS_CUDA_KERNELS_ROWS_H
#define KERNELS_CUDA_KERNELS_ROWS_H

#include <math.h>
#include <stdbool.h>

#include "kernels/cuda/kernels/thread.h"
#include "kernels/numerics/activation.h"
#include "kernels/quant/round.h"

enum {
    KERN_ROWS_THREADS = 128,
    KERN_ROWS_ELEMS = 8 * KERN_ROWS_THREADS, /* of a block, where elements are independent */
    KERN_NORM_LANES = 16,
    KERN_NORM_CHUNK = 2048 /* elements in shared memory at a time */
};

/** See struct kern_norm; a NULL gain or bias is absent. A block per row. */
struct kern_norm_args {
    const float *x;
    const float *gain, *bias;
    float *y;
    size_t width, n_groups;
    float eps;
    bool center, accumulate, plain;
};

struct kern_norm_shared {
    float x[KERN_NORM_CHUNK];
    double lane[KERN_NORM_LANES];
    double mean;
    float inverse;
};

/** lane[j] += elements j, j + 16, ... of n less the mean, or the squares of these. */
KERN_INLINE void kern_norm_add_lanes(double *lane, double mean, const float *x, size_t n,
                                     bool squares)
{
    for (unsigned t = kern_thread_begin(); t < KERN_NORM_LANES;
         t += kern_thread_step(KERN_ROWS_THREADS)) {
        double sum = lane[t];
        for (size_t i = t; i < n; i += KERN_NORM_LANES) {
            double d = (double)x[i] - mean;
            sum += squares ? d * d : d;
        }
        lane[t] = sum;
    }
}

/** Add a chunk, by way of shared memory. */
KERN_INLINE void kern_norm_add(struct kern_norm_shared *s, const float *x, size_t n, bool squares)
{
    for (unsigned t = kern_thread_begin(); t < KERN_ROWS_THREADS;
         t += kern_thread_step(KERN_ROWS_THREADS)) {
        for (size_t i = t; i < n; i += KERN_ROWS_THREADS)
            s->x[i] = x[i];
    }
    kern_barrier();
    kern_norm_add_lanes(s->lane, s->mean, s->x, n, squares);
    kern_barrier();
}

/** Add a whole row, from lanes of 0 on. */
KERN_INLINE void kern_norm_add_row(struct kern_norm_shared *s, const float *x, size_t width,
                                   bool squares)
{
    for (unsigned t = kern_thread_begin(); t < KERN_NORM_LANES;
         t += kern_thread_step(KERN_ROWS_THREADS))
        s->lane[t] = 0.0; /* and the same thread adds to it */
    for (size_t from = 0; from < width; from += KERN_NORM_CHUNK) {
        size_t left = width - from;
        kern_norm_add(s, x + from, left < KERN_NORM_CHUNK ? left : KERN_NORM_CHUNK, squares);
    }
}

/** The sum of the lanes: one thread. */
KERN_INLINE double kern_norm_total(double *lane)
{
    for (unsigned half = KERN_NORM_LANES / 2; half > 0; half /= 2) {
        for (unsigned j = 0; j < half; j++)
            lane[j] += lane[j + half];
    }
    return lane[0];
}

/** What elements of a row are multiplied by, from the lanes' squares. */
KERN_INLINE float kern_norm_inverse(double *lane, size_t width, float eps)
{
    return (float)(1.0 / sqrt(kern_norm_total(lane) / (double)width + (double)eps));
}

/** The sum over the row to `mean`, or of the squares to `inverse`. */
KERN_INLINE void kern_norm_sum(struct kern_norm_shared *s, const struct kern_norm_args *a,
                               const float *x, bool squares)
{
    kern_norm_add_row(s, x, a->width, squares);
    for (unsigned t = kern_thread_begin(); t < 1; t += kern_thread_step(KERN_ROWS_THREADS)) {
        if (squares)
            s->inverse = kern_norm_inverse(s->lane, a->width, a->eps);
        else
            s->mean = kern_norm_total(s->lane) / (double)a->width;
    }
    kern_barrier();
}

KERN_INLINE void kern_norm_block(const struct kern_norm_args *a, size_t block, void *shared)
{
    struct kern_norm_shared *s = (struct kern_norm_shared *)shared;
    const float *x = a->x + block * a->width;
    float *y = a->y + block * a->width;
    size_t group = block % a->n_groups * a->width;
    for (unsigned t = kern_thread_begin(); t < 1; t += kern_thread_step(KERN_ROWS_THREADS)) {
        s->mean = 0.0;
        s->inverse = 1.0f;
    }
    if (a->center)
        kern_norm_sum(s, a, x, false);
    if (a->plain)
        kern_barrier();
    else
        kern_norm_sum(s, a, x, true);
    for (unsigned t = kern_thread_begin(); t < KERN_ROWS_THREADS;
         t += kern_thread_step(KERN_ROWS_THREADS)) {
        for (size_t i = t; i < a->width; i += KERN_ROWS_THREADS) {
            float v = a->center ? (float)((double)x[i] - s->mean) : x[i];
            v = v * s->inverse;
            v = a->gain ? v * a->gain[group + i] : v;
            v = a->bias ? v + a->bias[group + i] : v;
            y[i] = a->accumulate ? v + y[i] : v;
        }
    }
}

/** Rotate pairs of every head in place; see struct kern_rope. */
struct kern_rope_args {
    float *x;
    const float *angles; /* [positions, n_pairs, 2]: cosine, sine */
    const int32_t *positions;
    size_t stride, n_tokens, n_heads, head_size, n_pairs;
    bool split_halves;
};

/** One pair by the angle that these are of. */
KERN_INLINE void kern_rotate(float *first, float *second, float cosine, float sine)
{
    float old_first = *first, old_second = *second;
    *first = fmaf(old_first, cosine, -(old_second * sine));
    *second = fmaf(old_second, cosine, old_first * sine);
}

KERN_INLINE void kern_rope_pair(const struct kern_rope_args *a, size_t token, size_t head,
                                size_t pair)
{
    const float *angle = a->angles + ((size_t)a->positions[token] * a->n_pairs + pair) * 2;
    float *x = a->x + token * a->stride + head * a->head_size;
    float *first = a->split_halves ? x + pair : x + 2 * pair;
    float *second = a->split_halves ? x + pair + a->n_pairs : x + 2 * pair + 1;
    kern_rotate(first, second, angle[0], angle[1]);
}

/** A block takes KERN_ROWS_ELEMS pairs. Within it indices are of 32 bits: division is slow. */
KERN_INLINE void kern_rope_block(const struct kern_rope_args *a, size_t block, void *shared)
{
    (void)shared;
    size_t per_token = a->n_heads * a->n_pairs, n = a->n_tokens * per_token;
    size_t first = block * KERN_ROWS_ELEMS, token = first / per_token;
    uint32_t offset = (uint32_t)(first % per_token), n_pairs = (uint32_t)a->n_pairs;
    uint32_t end = n - first < KERN_ROWS_ELEMS ? (uint32_t)(n - first) : KERN_ROWS_ELEMS;
    for (unsigned t = kern_thread_begin(); t < KERN_ROWS_THREADS;
         t += kern_thread_step(KERN_ROWS_THREADS)) {
        for (uint32_t i = t; i < end; i += KERN_ROWS_THREADS) {
            uint32_t later = (offset + i) / (uint32_t)per_token;
            uint32_t rest = (offset + i) % (uint32_t)per_token;
            kern_rope_pair(a, token + later, rest / n_pairs, rest % n_pairs);
        }
    }
}

/** See struct kern_activate. */
struct kern_gate_args {
    float *gate;
    const float *up; /* NULL: all 1 */
    size_t n;
    struct kern_curve curve;
    enum kern_activation kind;
};

/** A block takes KERN_ROWS_ELEMS elements, each thread four at a time. */
KERN_INLINE void kern_gate_block(const struct kern_gate_args *a, size_t block, void *shared)
{
    (void)shared;
    size_t first = block * KERN_ROWS_ELEMS;
    size_t end = a->n - first < KERN_ROWS_ELEMS ? a->n : first + KERN_ROWS_ELEMS;
    bool aligned = (((uintptr_t)a->gate | (uintptr_t)a->up) & 15) == 0;
    for (unsigned t = kern_thread_begin(); t < KERN_ROWS_THREADS;
         t += kern_thread_step(KERN_ROWS_THREADS)) {
        for (size_t i = first + 4 * t; i < end; i += 4 * KERN_ROWS_THREADS) {
            if (aligned && end - i >= 4) {
                struct kern_vec4 gate = *(const struct kern_vec4 *)(const void *)(a->gate + i);
                struct kern_vec4 up = {{1.0f, 1.0f, 1.0f, 1.0f}};
                if (a->up)
                    up = *(const struct kern_vec4 *)(const void *)(a->up + i);
                for (unsigned k = 0; k < 4; k++)
                    gate.v[k] = kern_activation(a->kind, &a->curve, gate.v[k], up.v[k]);
                *(struct kern_vec4 *)(void *)(a->gate + i) = gate;
                continue;
            }
            for (size_t k = i; k < end && k < i + 4; k++)
                a->gate[k] =
                    kern_activation(a->kind, &a->curve, a->gate[k], a->up ? a->up[k] : 1.0f);
        }
    }
}

/** x *= the row's factor, or all one factor. A block takes KERN_ROWS_ELEMS elements. */
struct kern_scale_args {
    float *x;
    const float *factors; /* NULL: all `factor` */
    size_t width, n_rows;
    float factor;
};

/** A block's elements: number `at` of its first row, and so on; `at` is of 32 bits for division. */
struct kern_rows_part {
    size_t row;
    uint32_t at, n;
};

KERN_INLINE struct kern_rows_part kern_rows_part(size_t block, size_t width, size_t n_rows)
{
    size_t first = block * KERN_ROWS_ELEMS, left = width * n_rows - first;
    struct kern_rows_part part = {first / width, (uint32_t)(first % width),
                                  left < KERN_ROWS_ELEMS ? (uint32_t)left : KERN_ROWS_ELEMS};
    return part;
}

KERN_INLINE void kern_scale_block(const struct kern_scale_args *a, size_t block, void *shared)
{
    (void)shared;
    struct kern_rows_part part = kern_rows_part(block, a->width, a->n_rows);
    float *x = a->x + part.row * a->width;
    for (unsigned t = kern_thread_begin(); t < KERN_ROWS_THREADS;
         t += kern_thread_step(KERN_ROWS_THREADS)) {
        for (uint32_t i = part.at + t; i < part.at + part.n; i += KERN_ROWS_THREADS)
            x[i] *= a->factors ? a->factors[part.row + i / (uint32_t)a->width] : a->factor;
    }
}

/** See struct kern_copy. A block takes KERN_ROWS_ELEMS elements. */
struct kern_copy_args {
    const float *x;
    float *y;
    size_t x_stride, y_stride, width, n_rows;
    uint32_t spread; /* at least 1 */
};

KERN_INLINE void kern_copy_block(const struct kern_copy_args *a, size_t block, void *shared)
{
    (void)shared;
    struct kern_rows_part part = kern_rows_part(block, a->width, a->n_rows);
    uint32_t width = (uint32_t)a->width;
    for (unsigned t = kern_thread_begin(); t < KERN_ROWS_THREADS;
         t += kern_thread_step(KERN_ROWS_THREADS)) {
        for (uint32_t i = part.at + t; i < part.at + part.n; i += KERN_ROWS_THREADS) {
            size_t row = part.row + i / width;
            a->y[row * a->y_stride + i % width] = a->x[row * a->x_stride + i % width / a->spread];
        }
    }
}

/** See struct kern_round. A block takes KERN_ROWS_ELEMS elements. */
struct kern_round_args {
    float *x;
    size_t n;
    enum gguf_type type;
    uint32_t n_turn;
    float turn_scale; /* n_turn^(-1/2) */
    float scale;      /* the tensor's */
};

struct kern_round_shared {
    float x[KERN_ROWS_ELEMS];
};

/** Runs of n_turn of n elements. */
KERN_INLINE void kern_round_turn(const struct kern_round_args *a, float *x, uint32_t n)
{
    for (uint32_t half = 1; half < a->n_turn; half *= 2) {
        for (unsigned t = kern_thread_begin(); t < KERN_ROWS_THREADS;
             t += kern_thread_step(KERN_ROWS_THREADS)) {
            for (uint32_t i = t; i < n / 2; i += KERN_ROWS_THREADS) {
                uint32_t below = i & (half - 1);
                kern_turn_pair(x + 2 * (i - below) + below, half,
                               2 * half == a->n_turn ? a->turn_scale : 1.0f);
            }
        }
        kern_barrier();
    }
}

KERN_INLINE void kern_round_block(const struct kern_round_args *a, size_t block, void *shared)
{
    float *x = ((struct kern_round_shared *)shared)->x, *out = a->x + block * KERN_ROWS_ELEMS;
    size_t left = a->n - block * KERN_ROWS_ELEMS;
    uint32_t n = left < KERN_ROWS_ELEMS ? (uint32_t)left : KERN_ROWS_ELEMS;
    const uint32_t step = (uint32_t)kern_round_step(a->type);
    for (unsigned t = kern_thread_begin(); t < KERN_ROWS_THREADS;
         t += kern_thread_step(KERN_ROWS_THREADS)) {
        for (uint32_t i = t; i < n; i += KERN_ROWS_THREADS)
            x[i] = out[i];
    }
    kern_barrier();
    kern_round_turn(a, x, n);
    for (unsigned t = kern_thread_begin(); t < KERN_ROWS_THREADS;
         t += kern_thread_step(KERN_ROWS_THREADS)) {
        for (uint32_t i = t * step; i < n; i += KERN_ROWS_THREADS * step)
            kern_round_scaled(a->type, x + i, n - i < step ? n - i : step, a->scale);
    }
    kern_barrier();
    kern_round_turn(a, x, n);
    for (unsigned t = kern_thread_begin(); t < KERN_ROWS_THREADS;
         t += kern_thread_step(KERN_ROWS_THREADS)) {
        for (uint32_t i = t; i < n; i += KERN_ROWS_THREADS)
            out[i] = x[i];
    }
}

/** x[i] = the soft cap of x[i], in rows of `width`. A block takes KERN_ROWS_ELEMS of a row. */
struct kern_cap_args {
    float *x; /* [rows, stride] */
    size_t width, stride;
    float cap, inverse; /* 1 / cap */
};

KERN_INLINE void kern_cap_block(const struct kern_cap_args *a, size_t block, void *shared)
{
    (void)shared;
    size_t per_row = (a->width + KERN_ROWS_ELEMS - 1) / KERN_ROWS_ELEMS;
    size_t first = block % per_row * KERN_ROWS_ELEMS;
    size_t end = a->width - first < KERN_ROWS_ELEMS ? a->width : first + KERN_ROWS_ELEMS;
    float *x = a->x + block / per_row * a->stride;
    for (unsigned t = kern_thread_begin(); t < KERN_ROWS_THREADS;
         t += kern_thread_step(KERN_ROWS_THREADS)) {
        for (size_t i = first + t; i < end; i += KERN_ROWS_THREADS)
            x[i] = fmath_soft_cap_f32(x[i], a->cap, a->inverse);
    }
}

#endif
