/**
 * Kernels that go through rows once: normalisation, rotation, gate, gathering, scattering. All
 * are bound by memory. Each must move, for T tokens of width D:
 *   rmsnorm 8 T D bytes (the second reading comes from L2), rope 8 bytes per rotated element,
 *   gate 12 bytes per element, gather 8 T D, scatter_add 12 T D, soft cap 8 per logit (in L2).
 * The order of every sum is that of kernels/numerics/ops.h, so the bits are the CPU's.
 */
#ifndef KERNELS_CUDA_KERNELS_ROWS_H
#define KERNELS_CUDA_KERNELS_ROWS_H

#include <math.h>
#include <stdbool.h>

#include "kernels/cuda/kernels/thread.h"
#include "kernels/numerics/fmath.h"

enum {
    KERN_ROWS_THREADS = 128,
    KERN_ROWS_ELEMS = 8 * KERN_ROWS_THREADS, /* of a block, where elements are independent */
    KERN_NORM_LANES = 16,
    KERN_NORM_CHUNK = 2048 /* elements in shared memory at a time */
};

/** y = x / rms * gain for each row; y may be x. A block per row. */
struct kern_norm_args {
    const float *x;
    const float *gain;
    float *y;
    size_t width;
    float eps;
};

struct kern_norm_shared {
    float x[KERN_NORM_CHUNK];
    double lane[KERN_NORM_LANES];
    float inverse;
};

/** lane[j] += squares of elements j, j + 16, ... of the chunk. */
KERN_INLINE void kern_norm_add(struct kern_norm_shared *s, const float *x, size_t n)
{
    for (unsigned t = kern_thread_begin(); t < KERN_ROWS_THREADS;
         t += kern_thread_step(KERN_ROWS_THREADS)) {
        for (size_t i = t; i < n; i += KERN_ROWS_THREADS)
            s->x[i] = x[i];
    }
    kern_barrier();
    for (unsigned t = kern_thread_begin(); t < KERN_NORM_LANES;
         t += kern_thread_step(KERN_ROWS_THREADS)) {
        double sum = s->lane[t];
        for (size_t i = t; i < n; i += KERN_NORM_LANES) {
            double v = (double)s->x[i];
            sum += v * v;
        }
        s->lane[t] = sum;
    }
    kern_barrier();
}

KERN_INLINE void kern_norm_block(const struct kern_norm_args *a, size_t block, void *shared)
{
    struct kern_norm_shared *s = (struct kern_norm_shared *)shared;
    const float *x = a->x + block * a->width;
    float *y = a->y + block * a->width;
    for (unsigned t = kern_thread_begin(); t < KERN_NORM_LANES;
         t += kern_thread_step(KERN_ROWS_THREADS))
        s->lane[t] = 0.0;
    kern_barrier();
    for (size_t from = 0; from < a->width; from += KERN_NORM_CHUNK) {
        size_t left = a->width - from;
        kern_norm_add(s, x + from, left < KERN_NORM_CHUNK ? left : KERN_NORM_CHUNK);
    }
    for (unsigned t = kern_thread_begin(); t < 1; t += kern_thread_step(KERN_ROWS_THREADS)) {
        for (unsigned half = KERN_NORM_LANES / 2; half > 0; half /= 2) {
            for (unsigned j = 0; j < half; j++)
                s->lane[j] += s->lane[j + half];
        }
        s->inverse = (float)(1.0 / sqrt(s->lane[0] / (double)a->width + (double)a->eps));
    }
    kern_barrier();
    for (unsigned t = kern_thread_begin(); t < KERN_ROWS_THREADS;
         t += kern_thread_step(KERN_ROWS_THREADS)) {
        for (size_t i = t; i < a->width; i += KERN_ROWS_THREADS)
            y[i] = (x[i] * s->inverse) * a->gain[i];
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

KERN_INLINE void kern_rope_pair(const struct kern_rope_args *a, size_t token, size_t head,
                                size_t pair)
{
    const float *angle = a->angles + ((size_t)a->positions[token] * a->n_pairs + pair) * 2;
    float *x = a->x + token * a->stride + head * a->head_size;
    float *first = a->split_halves ? x + pair : x + 2 * pair;
    float *second = a->split_halves ? x + pair + a->n_pairs : x + 2 * pair + 1;
    float cosine = angle[0], sine = angle[1];
    float old_first = *first, old_second = *second;
    *first = fmaf(old_first, cosine, -(old_second * sine));
    *second = fmaf(old_second, cosine, old_first * sine);
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

/** gate[i] = silu(gate[i]) * up[i]. */
struct kern_gate_args {
    float *gate;
    const float *up;
    size_t n;
};

KERN_INLINE float kern_gated(float z, float up)
{
    return z / (1.0f + fmath_exp_f32(-z)) * up;
}

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
                struct kern_vec4 up = *(const struct kern_vec4 *)(const void *)(a->up + i);
                for (unsigned k = 0; k < 4; k++)
                    gate.v[k] = kern_gated(gate.v[k], up.v[k]);
                *(struct kern_vec4 *)(void *)(a->gate + i) = gate;
                continue;
            }
            for (size_t k = i; k < end && k < i + 4; k++)
                a->gate[k] = kern_gated(a->gate[k], a->up[k]);
        }
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

/** y[i] = x[rows[i]], or with shares y[rows[i]] += shares[i] * x[i]. A block per row. */
struct kern_gather_args {
    const float *x;
    float *y;
    const uint32_t *rows;
    const float *shares; /* NULL: gather */
    size_t width;
};

KERN_INLINE void kern_gather_block(const struct kern_gather_args *a, size_t block, void *shared)
{
    (void)shared;
    size_t row = a->rows[block];
    const float *x = a->x + (a->shares ? block : row) * a->width;
    float *y = a->y + (a->shares ? row : block) * a->width;
    for (unsigned t = kern_thread_begin(); t < KERN_ROWS_THREADS;
         t += kern_thread_step(KERN_ROWS_THREADS)) {
        for (size_t i = t; i < a->width; i += KERN_ROWS_THREADS)
            y[i] = a->shares ? fmaf(a->shares[block], x[i], y[i]) : x[i];
    }
}

#endif
