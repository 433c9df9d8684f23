/**
 * A norm whose results go to a product of halves: norm and split in one pass, by the same
 * operations, so with the same bits. 4 bytes read, 4 and 2 or 6 written for an element; a row is in
 * shared memory meanwhile.
 */
#ifndef KERNELS_CUDA_KERNELS_GATED_NORM_H
#define KERNELS_CUDA_KERNELS_GATED_NORM_H

#include "kernels/cuda/kernels/half.h"
#include "kernels/cuda/kernels/rows.h"

/** An RMS norm of out.n_rows rows of out.n_cols numbers. A block per row. */
struct kern_norm_split_args {
    const float *x;
    const float *gain; /* NULL: all 1 */
    float *y;          /* the results as floats */
    struct kern_half_out out;
    float eps;
};

/** In front of a row in shared memory. */
struct kern_norm_split_shared {
    double lane[KERN_NORM_LANES];
    float inverse;
    uint32_t largest;
    uint32_t unused[2]; /* the row begins at a multiple of 16 bytes */
};

KERN_INLINE size_t kern_norm_split_bytes(size_t n_cols)
{
    return sizeof(struct kern_norm_split_shared) + (n_cols + 3) / 4 * 4 * sizeof(float);
}

/** The row to `row`, and the squares' lanes. */
KERN_INLINE void kern_norm_split_load(const struct kern_norm_split_args *a, size_t block,
                                      struct kern_norm_split_shared *s, float *row)
{
    const float *x = a->x + block * a->out.n_cols;
    uint32_t n_real = kern_half_n_real(&a->out, block);
    for (unsigned t = kern_thread_begin(); t < KERN_ROWS_THREADS;
         t += kern_thread_step(KERN_ROWS_THREADS)) {
        if (t < KERN_NORM_LANES)
            s->lane[t] = 0.0; /* and the same thread adds to it */
        if (t == 0)
            s->largest = 0;
        for (uint32_t i = 4 * t; i < n_real; i += 4 * KERN_ROWS_THREADS)
            *(struct kern_vec4 *)(void *)(row + i) =
                kern_load4(x + i, n_real - i < 4 ? n_real - i : 4);
    }
    kern_barrier();
    kern_norm_add_lanes(s->lane, 0.0, row, n_real, true);
    kern_barrier();
    for (unsigned t = kern_thread_begin(); t < 1; t += kern_thread_step(KERN_ROWS_THREADS))
        s->inverse = kern_norm_inverse(s->lane, a->out.n_cols, a->eps);
    kern_barrier();
}

KERN_INLINE void kern_norm_split_block(const struct kern_norm_split_args *a, size_t block,
                                       void *shared)
{
    struct kern_norm_split_shared *s = (struct kern_norm_split_shared *)shared;
    float *row = (float *)(void *)(s + 1);
    uint32_t n_real = kern_half_n_real(&a->out, block);
    kern_norm_split_load(a, block, s, row);
    for (unsigned t = kern_thread_begin(); t < KERN_ROWS_THREADS;
         t += kern_thread_step(KERN_ROWS_THREADS)) {
        uint32_t most = 0;
        for (uint32_t i = 4 * t; i < n_real; i += 4 * KERN_ROWS_THREADS) {
            unsigned n = n_real - i < 4 ? n_real - i : 4;
            struct kern_vec4 *four = (struct kern_vec4 *)(void *)(row + i), v = *four;
            struct kern_vec4 gain = {{1.0f, 1.0f, 1.0f, 1.0f}};
            if (a->gain)
                gain = kern_load4(a->gain + i, n);
            KERN_UNROLL
            for (unsigned k = 0; k < 4; k++) {
                v.v[k] = v.v[k] * s->inverse;
                v.v[k] = a->gain ? v.v[k] * gain.v[k] : v.v[k];
            }
            *four = v;
            kern_store4(a->y + block * a->out.n_cols + i, n, &v);
            most = kern_half_most(most, n, &v);
        }
        if (most > 0)
            kern_atomic_max(&s->largest, most);
    }
    kern_barrier();
    kern_half_row_store(&a->out, block, s->largest, row, true, KERN_ROWS_THREADS);
}

#endif
