/**
 * Kernels that mix rows; kernels/mixing.h has the operations. For T tokens of S streams of width
 * D they move: mix 4 (S + U + 1) T D bytes, stream_weights 8 T (2 + S) S and next to it some 40 S S
 * operations a round in double, compress 8 bytes for each element of each term twice (z comes from
 * L2 the second time). The order of every sum is the CPU's, so the bits are, too.
 */
#ifndef KERNELS_CUDA_KERNELS_MIXING_H
#define KERNELS_CUDA_KERNELS_MIXING_H

#include "kernels/cuda/kernels/rows.h"
#include "kernels/mixing/weights.h"

enum { KERN_STREAMS_THREADS = 32 };

/** See struct kern_mix. A block takes KERN_ROWS_ELEMS elements of [T, D], all streams of each. */
struct kern_mix_args {
    const float *x, *weights, *y, *y_weights;
    float *out;
    size_t stride, n_tokens, width;
    uint32_t n_in, n_out, from_step, to_step; /* between weights */
};

/**
 * Where there are several rows to write, all streams are read before the first is written; unrolled,
 * they stay in registers.
 */
KERN_INLINE void kern_mix_element(const struct kern_mix_args *a, size_t token, size_t i)
{
    float in[KERN_STREAMS_MAX];
    const float *x = a->x + token * a->n_in * a->width + i;
    const float *weights = a->weights ? a->weights + token * a->stride : NULL;
    float y = a->y ? a->y[token * a->width + i] : 0.0f;
    if (a->n_out == 1 && a->weights) { /* any number of streams, read one after the other */
        float sum =
            a->y ? fmaf(weights[0], x[0], y * a->y_weights[token * a->stride]) : x[0] * weights[0];
        for (uint32_t s = 1; s < a->n_in; s++)
            sum = fmaf(weights[s * a->from_step], x[s * a->width], sum);
        a->out[token * a->width + i] = sum;
        return;
    }
    KERN_UNROLL
    for (uint32_t s = 0; s < KERN_STREAMS_MAX; s++)
        in[s] = s < a->n_in ? x[s * a->width] : 0.0f;
    for (uint32_t u = 0; u < a->n_out && !a->weights; u++)
        a->out[(token * a->n_out + u) * a->width + i] =
            fmaf(a->y_weights[token * a->stride + u], y, x[u * a->width]);
    for (uint32_t u = 0; u < a->n_out && a->weights; u++) {
        float sum =
            a->y ? fmaf(weights[u * a->to_step], in[0], y * a->y_weights[token * a->stride + u])
                 : in[0] * weights[u * a->to_step];
        KERN_UNROLL
        for (uint32_t s = 1; s < KERN_STREAMS_MAX; s++) {
            if (s < a->n_in)
                sum = fmaf(weights[s * a->from_step + u * a->to_step], in[s], sum);
        }
        a->out[(token * a->n_out + u) * a->width + i] = sum;
    }
}

KERN_INLINE void kern_mix_block(const struct kern_mix_args *a, size_t block, void *shared)
{
    (void)shared;
    struct kern_rows_part part = kern_rows_part(block, a->width, a->n_tokens);
    uint32_t width = (uint32_t)a->width;
    for (unsigned t = kern_thread_begin(); t < KERN_ROWS_THREADS;
         t += kern_thread_step(KERN_ROWS_THREADS)) {
        for (uint32_t i = part.at + t; i < part.at + part.n; i += KERN_ROWS_THREADS)
            kern_mix_element(a, part.row + i / width, i % width);
    }
}

/** See struct kern_stream_weights. A thread takes a token. */
struct kern_stream_weights_args {
    float *a;
    const float *scale, *base;
    size_t n_tokens, width;
    struct kern_stream_rule rule;
};

KERN_INLINE void kern_stream_weights_block(const struct kern_stream_weights_args *a, size_t block,
                                           void *shared)
{
    (void)shared;
    for (unsigned t = kern_thread_begin(); t < KERN_STREAMS_THREADS;
         t += kern_thread_step(KERN_STREAMS_THREADS)) {
        size_t token = block * KERN_STREAMS_THREADS + t;
        if (token < a->n_tokens)
            kern_stream_weights_row(a->a + token * a->width, a->scale, a->base, &a->rule);
    }
}

/** See struct kern_softmax. A thread takes a row. */
struct kern_softmax_args {
    float *x;
    size_t n_rows, width, n;
};

KERN_INLINE void kern_softmax_rows_block(const struct kern_softmax_args *a, size_t block,
                                         void *shared)
{
    (void)shared;
    for (unsigned t = kern_thread_begin(); t < KERN_STREAMS_THREADS;
         t += kern_thread_step(KERN_STREAMS_THREADS)) {
        size_t row = block * KERN_STREAMS_THREADS + t;
        if (row < a->n_rows)
            kern_softmax_row(a->x + row * a->width, a->n, a->width);
    }
}

/** See struct kern_compress. A block takes KERN_ROWS_THREADS elements of a row. */
struct kern_compress_args {
    const float *u, *z;
    const uint32_t *rows;
    float *y;
    size_t stride, late, width;
    uint32_t n_terms, n_early;
};

KERN_INLINE float kern_compress_element(const struct kern_compress_args *a, const uint32_t *rows,
                                        size_t i)
{
    float most = -INFINITY, sum = 0.0f, mean = 0.0f;
    for (uint32_t j = 0; j < a->n_terms; j++) {
        size_t at = rows[j] * a->stride + (j < a->n_early ? 0 : a->late) + i;
        if (a->z && rows[j] != UINT32_MAX)
            most = a->z[at] > most ? a->z[at] : most;
    }
    for (uint32_t j = 0; j < a->n_terms; j++) {
        size_t at = rows[j] * a->stride + (j < a->n_early ? 0 : a->late) + i;
        if (rows[j] == UINT32_MAX)
            continue;
        float e = a->z ? fmath_exp_f32(a->z[at] - most) : 1.0f;
        sum += e;
        mean = fmaf(e, a->u[at], mean);
    }
    return mean / sum;
}

KERN_INLINE void kern_compress_block(const struct kern_compress_args *a, size_t block, void *shared)
{
    (void)shared;
    size_t per_row = (a->width + KERN_ROWS_THREADS - 1) / KERN_ROWS_THREADS;
    size_t row = block / per_row, first = block % per_row * KERN_ROWS_THREADS;
    for (unsigned t = kern_thread_begin(); t < KERN_ROWS_THREADS;
         t += kern_thread_step(KERN_ROWS_THREADS)) {
        if (first + t < a->width)
            a->y[row * a->width + first + t] =
                kern_compress_element(a, a->rows + row * a->n_terms, first + t);
    }
}

#endif
