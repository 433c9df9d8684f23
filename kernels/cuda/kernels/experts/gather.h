/**
 * Rows to experts and back, bound by memory: for n rows of width D gather moves 8 n D bytes,
 * scatter at most 12 n D (and 4 less for each but the first that is added to a row).
 */
#ifndef KERNELS_CUDA_KERNELS_EXPERTS_GATHER_H
#define KERNELS_CUDA_KERNELS_EXPERTS_GATHER_H

#include <math.h>

#include "kernels/cuda/kernels/thread.h"

enum { KERN_GATHER_THREADS = 128 };

/** y[i] = x[rows[i]]. A block per row. */
struct kern_gather_args {
    const float *x;
    float *y;
    const uint32_t *rows;
    size_t width;
};

KERN_INLINE void kern_gather_block(const struct kern_gather_args *a, size_t block, void *shared)
{
    (void)shared;
    const float *x = a->x + (size_t)a->rows[block] * a->width;
    float *y = a->y + block * a->width;
    for (unsigned t = kern_thread_begin(); t < KERN_GATHER_THREADS;
         t += kern_thread_step(KERN_GATHER_THREADS)) {
        for (size_t i = t; i < a->width; i += KERN_GATHER_THREADS)
            y[i] = x[i];
    }
}

/** See struct kern_scatter. A block per i, which adds all that belongs to a row with its first. */
struct kern_scatter_args {
    const float *x;
    float *y;
    const uint32_t *from; /* or NULL */
    const uint32_t *rows;
    const float *shares;
    size_t n, width;
};

KERN_INLINE void kern_scatter_block(const struct kern_scatter_args *a, size_t block, void *shared)
{
    (void)shared;
    uint32_t row = a->rows[block];
    if (block > 0 && a->rows[block - 1] == row)
        return;
    size_t end = block + 1;
    while (end < a->n && a->rows[end] == row)
        end++;
    for (unsigned t = kern_thread_begin(); t < KERN_GATHER_THREADS;
         t += kern_thread_step(KERN_GATHER_THREADS)) {
        for (size_t i = t; i < a->width; i += KERN_GATHER_THREADS) {
            float sum = a->y[row * a->width + i];
            size_t k = block;
            KERN_ROLLED
            do {
                size_t from = a->from ? a->from[k] : k;
                sum = fmaf(a->shares[k], a->x[from * a->width + i], sum);
            } while (++k < end);
            a->y[row * a->width + i] = sum;
        }
    }
}

#endif
