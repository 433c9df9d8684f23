/**
 * The causal convolution. It is bound by memory: 8 bytes per token and channel, as neighbours share
 * what they read.
 */
#ifndef KERNELS_CUDA_KERNELS_RECURRENT_CONVOLVE_H
#define KERNELS_CUDA_KERNELS_RECURRENT_CONVOLVE_H

#include "kernels/cuda/kernels/thread.h"
#include "kernels/numerics/fmath.h"
#include "kernels/recurrent/taps.h"

enum {
    KERN_CONVOLVE_THREADS = 128, /* a channel each */
    KERN_CONVOLVE_TOKENS = 32    /* of a block */
};

/** Tokens from `first` of a run on. */
struct kern_convolve_task {
    uint32_t run, first;
};

/** A block has a task and KERN_CONVOLVE_THREADS channels; the next block has the next channels. */
struct kern_convolve_args {
    struct kern_tap_rows rows; /* all on the device */
    float *y;
    const float *weights; /* [n_channels, n_taps] */
    const float *bias;    /* or NULL */
    bool bare;
    const struct kern_convolve_task *tasks;
};

KERN_INLINE float kern_convolve_at(const struct kern_convolve_args *a, const struct kern_run *run,
                                   size_t t, size_t channel)
{
    size_t n_taps = a->rows.n_taps;
    float z = a->bias ? a->bias[channel] : 0.0f;
    for (size_t j = 0; j < n_taps; j++) {
        const float *row = kern_tap_row(&a->rows, run, t, (n_taps - 1 - j) * a->rows.step);
        if (row)
            z = fmaf(a->weights[channel * n_taps + j], row[channel], z);
    }
    return a->bare ? z : z / (1.0f + fmath_exp_f32(-z));
}

KERN_INLINE void kern_convolve_block(const struct kern_convolve_args *a, size_t block, void *shared)
{
    (void)shared;
    size_t n_channels = a->rows.n_channels;
    size_t per_task = (n_channels + KERN_CONVOLVE_THREADS - 1) / KERN_CONVOLVE_THREADS;
    struct kern_convolve_task task = a->tasks[block / per_task];
    const struct kern_run *run = &a->rows.runs[task.run];
    size_t first = block % per_task * KERN_CONVOLVE_THREADS;
    for (unsigned i = kern_thread_begin(); i < KERN_CONVOLVE_THREADS;
         i += kern_thread_step(KERN_CONVOLVE_THREADS)) {
        for (size_t t = task.first;
             first + i < n_channels && t < run->n && t < (size_t)task.first + KERN_CONVOLVE_TOKENS;
             t++)
            a->y[(run->row + t) * n_channels + first + i] = kern_convolve_at(a, run, t, first + i);
    }
}

/** Save the ends of runs, once no block of KERN_CUDA_CONVOLVE reads the states: a task per run. */
KERN_INLINE void kern_taps_block(const struct kern_convolve_args *a, size_t block, void *shared)
{
    (void)shared;
    size_t n_channels = a->rows.n_channels;
    size_t per_task = (n_channels + KERN_CONVOLVE_THREADS - 1) / KERN_CONVOLVE_THREADS;
    const struct kern_run *run = &a->rows.runs[a->tasks[block / per_task].run];
    size_t first = block % per_task * KERN_CONVOLVE_THREADS;
    for (unsigned i = kern_thread_begin(); i < KERN_CONVOLVE_THREADS;
         i += kern_thread_step(KERN_CONVOLVE_THREADS)) {
        if (first + i < n_channels)
            kern_tap_save(&a->rows, run, first + i);
    }
}

#endif
