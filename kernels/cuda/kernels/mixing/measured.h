/**
 * Kernels that measure a row and then change it, beside norms: a threshold, a length, a share. For
 * T tokens of width D each moves 8 T D bytes (12 T D where it adds); further readings come from L2.
 */
#ifndef KERNELS_CUDA_KERNELS_MIXING_MEASURED_H
#define KERNELS_CUDA_KERNELS_MIXING_MEASURED_H

#include "kernels/cuda/kernels/rows.h"

/** See struct kern_sparsify. A block per row. */
struct kern_sparsify_args {
    float *x;
    size_t width;
    float scale;
    bool sample;
};

KERN_INLINE void kern_sparsify_block(const struct kern_sparsify_args *a, size_t block, void *shared)
{
    struct kern_norm_shared *s = (struct kern_norm_shared *)shared;
    float *x = a->x + block * a->width;
    for (unsigned t = kern_thread_begin(); t < 1; t += kern_thread_step(KERN_ROWS_THREADS))
        s->mean = 0.0;
    kern_norm_add_row(s, x, a->width, false);
    for (unsigned t = kern_thread_begin(); t < 1; t += kern_thread_step(KERN_ROWS_THREADS))
        s->mean = kern_norm_total(s->lane) / (double)a->width;
    kern_barrier();
    kern_norm_add_row(s, x, a->width, true);
    for (unsigned t = kern_thread_begin(); t < 1; t += kern_thread_step(KERN_ROWS_THREADS)) {
        double variance = kern_norm_total(s->lane) / kern_sparsify_divisor(a->width, a->sample);
        s->mean = s->mean + (double)a->scale * sqrt(variance);
    }
    kern_barrier();
    for (unsigned t = kern_thread_begin(); t < KERN_ROWS_THREADS;
         t += kern_thread_step(KERN_ROWS_THREADS)) {
        for (size_t i = t; i < a->width; i += KERN_ROWS_THREADS) {
            float above = (float)((double)x[i] - s->mean);
            x[i] = above < 0.0f ? 0.0f : above;
        }
    }
}

/** See struct kern_stretch. A block per row. */
struct kern_stretch_args {
    const float *x, *to;
    float *y;
    size_t width;
    float least;
    bool accumulate;
};

KERN_INLINE void kern_stretch_block(const struct kern_stretch_args *a, size_t block, void *shared)
{
    struct kern_norm_shared *s = (struct kern_norm_shared *)shared;
    const float *x = a->x + block * a->width;
    float *y = a->y + block * a->width;
    for (unsigned t = kern_thread_begin(); t < 1; t += kern_thread_step(KERN_ROWS_THREADS))
        s->mean = 0.0;
    kern_norm_add_row(s, x, a->width, true);
    double squares[KERN_SLOTS(1)];
    for (unsigned t = kern_thread_begin(); t < 1; t += kern_thread_step(KERN_ROWS_THREADS))
        squares[kern_slot(t)] = kern_norm_total(s->lane);
    kern_barrier();
    kern_norm_add_row(s, a->to + block * a->width, a->width, true);
    for (unsigned t = kern_thread_begin(); t < 1; t += kern_thread_step(KERN_ROWS_THREADS)) {
        double least = (double)a->least * (double)a->width;
        s->inverse = kern_stretch_factor(squares[kern_slot(t)], kern_norm_total(s->lane), least);
    }
    kern_barrier();
    for (unsigned t = kern_thread_begin(); t < KERN_ROWS_THREADS;
         t += kern_thread_step(KERN_ROWS_THREADS)) {
        for (size_t i = t; i < a->width; i += KERN_ROWS_THREADS)
            y[i] = a->accumulate ? fmaf(s->inverse, x[i], y[i]) : x[i] * s->inverse;
    }
}

/** See struct kern_match. A block per stream of a token. */
struct kern_match_args {
    const float *k, *q, *v;
    float *out;
    size_t n_streams, width;
};

KERN_INLINE void kern_match_block(const struct kern_match_args *a, size_t block, void *shared)
{
    struct kern_norm_shared *s = (struct kern_norm_shared *)shared;
    const float *k = a->k + block * a->width, *q = a->q + block * a->width;
    for (unsigned t = kern_thread_begin(); t < KERN_NORM_LANES;
         t += kern_thread_step(KERN_ROWS_THREADS)) {
        double sum = 0.0;
        for (size_t i = t; i < a->width; i += KERN_NORM_LANES)
            sum += (double)k[i] * (double)q[i];
        s->lane[t] = sum;
    }
    kern_barrier();
    for (unsigned t = kern_thread_begin(); t < 1; t += kern_thread_step(KERN_ROWS_THREADS))
        s->inverse = kern_match_share(kern_norm_total(s->lane), a->width);
    kern_barrier();
    for (unsigned t = kern_thread_begin(); t < KERN_ROWS_THREADS;
         t += kern_thread_step(KERN_ROWS_THREADS)) {
        for (size_t i = t; i < a->width; i += KERN_ROWS_THREADS)
            a->out[block * a->width + i] = a->v[block / a->n_streams * a->width + i] * s->inverse;
    }
}

#endif
