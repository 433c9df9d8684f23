/**
 * The product of `exact`: 2 T R K operations in float32 without tensor cores, one chain of fused
 * multiply-adds per output in the order of the columns: the bits of the CPU's products.
 *
 * A block computes a square of outputs, a thread 8 times 8 of them. It walks the columns 16 at a
 * time: while it multiplies those, the next ones are copied to the other half of shared memory. For
 * 4 columns a thread loads 16 vectors and does 256 multiply-adds.
 */
#ifndef KERNELS_CUDA_KERNELS_EXACT_EXACT_H
#define KERNELS_CUDA_KERNELS_EXACT_EXACT_H

#include "kernels/cuda/kernels/copies.h"
#include "kernels/cuda/kernels/product.h"
#include "kernels/cuda/kernels/warp.h"

enum {
    KERN_EXACT_THREADS = 256,
    KERN_EXACT_SIDE = 128, /* outputs of a block: a square of this side */
    KERN_EXACT_DEPTH = 16, /* columns in shared memory at a time, twice */
    /* Eight neighbours of a quarter of the rows begin in different banks, by 16 bytes. */
    KERN_EXACT_PITCH = KERN_EXACT_DEPTH + 4,
    KERN_EXACT_QUARTER = KERN_EXACT_SIDE / 4 * KERN_EXACT_PITCH + 16
};

/** out[b][a] = sum_k a[a][k] b[b][k], then scale, bias, accumulate as in struct kern_finish_args.
 */
struct kern_exact_args {
    const float *a, *b; /* [n_a, n_k], [n_b, n_k] */
    float *out;         /* [n_b, out_stride] */
    size_t out_stride, n_a, n_b, n_k;
    const float *bias_a, *bias_b;
    float scale;
    bool accumulate;
};

/** Columns of the rows of both sides. Rows 0, 4, 8 ... come first, then 1, 5, 9 ... */
struct kern_exact_columns {
    float a[4 * KERN_EXACT_QUARTER], b[4 * KERN_EXACT_QUARTER];
} __attribute__((aligned(16)));

struct kern_exact_shared {
    struct kern_exact_columns columns[2]; /* one is multiplied, one is filled */
};

/**
 * Columns k .. k + n - 1 of KERN_EXACT_SIDE rows. Thread t copies four columns of two of them. For
 * rows from n_rows on there are those of the last one: nobody wants their products.
 */
KERN_INLINE void kern_exact_load(float *to, const float *from, size_t row, size_t n_rows,
                                 size_t n_k, size_t k, unsigned n, unsigned t)
{
    unsigned column = t % 4 * 4;
    bool aligned = n_k % 4 == 0 && ((uintptr_t)from & 15) == 0;
    KERN_UNROLL
    for (unsigned i = 0; i < 2; i++) {
        unsigned r = t / 4 + i * (KERN_EXACT_SIDE / 2);
        size_t real = row + r < n_rows ? row + r : n_rows - 1;
        const float *x = from + real * n_k + k + column;
        float *at = to + r % 4 * KERN_EXACT_QUARTER + r / 4 * KERN_EXACT_PITCH + column;
        if (aligned && column < n)
            kern_copy16(at, x);
        if (aligned)
            continue;
        for (unsigned c = 0; c < 4 && column + c < n; c++)
            kern_copy4(at + c, x + c);
    }
}

/** Where a thread's outputs begin in the square, by four: a warp's are 8 fours times 4 fours. */
KERN_INLINE unsigned kern_exact_four_a(unsigned t)
{
    return t / KERN_WARP % 2 * 8 + t % 8;
}

KERN_INLINE unsigned kern_exact_four_b(unsigned t)
{
    return t / (2 * KERN_WARP) * 4 + t % KERN_WARP / 8;
}

/** The place in the square of a thread's i-th row. Its eight rows are two fours of neighbours. */
KERN_INLINE unsigned kern_exact_index(unsigned four, unsigned i)
{
    return four * 4 + i % 4 + i / 4 * (KERN_EXACT_SIDE / 2);
}

/** A thread's i-th row in shared memory. */
KERN_INLINE const float *kern_exact_row(const float *side, unsigned four, unsigned i)
{
    return side + i % 4 * KERN_EXACT_QUARTER +
           (four + i / 4 * (KERN_EXACT_SIDE / 8)) * KERN_EXACT_PITCH;
}

KERN_INLINE void kern_exact_multiply(const struct kern_exact_columns *s, unsigned n, unsigned t,
                                     float (*sums)[8])
{
    unsigned four_a = kern_exact_four_a(t), four_b = kern_exact_four_b(t), k = 0;
    KERN_ROLLED
    for (; k + 4 <= n; k += 4) {
        struct kern_vec4 a[8];
        KERN_UNROLL
        for (unsigned i = 0; i < 8; i++)
            a[i] = *(const struct kern_vec4 *)(const void *)(kern_exact_row(s->a, four_a, i) + k);
        KERN_UNROLL
        for (unsigned j = 0; j < 8; j++) {
            const struct kern_vec4 b =
                *(const struct kern_vec4 *)(const void *)(kern_exact_row(s->b, four_b, j) + k);
            KERN_UNROLL
            for (unsigned i = 0; i < 32; i++)
                sums[j][i % 8] = fmaf(a[i % 8].v[i / 8], b.v[i / 8], sums[j][i % 8]);
        }
    }
    KERN_ROLLED
    for (; k < n; k++) {
        KERN_UNROLL
        for (unsigned i = 0; i < 64; i++)
            sums[i / 8][i % 8] = fmaf(kern_exact_row(s->a, four_a, i % 8)[k],
                                      kern_exact_row(s->b, four_b, i / 8)[k], sums[i / 8][i % 8]);
    }
}

/** Four neighbours of a row b from row_a on, of which n are there. */
KERN_INLINE void kern_exact_store_four(const struct kern_exact_args *a, size_t row_b, size_t row_a,
                                       unsigned n, const float *sums)
{
    float *out = a->out + row_b * a->out_stride + row_a;
    struct kern_vec4 old = kern_load4(out, a->accumulate ? n : 0);
    struct kern_vec4 bias = kern_load4(a->bias_a ? a->bias_a + row_a : NULL, a->bias_a ? n : 0);
    struct kern_vec4 x;
    KERN_UNROLL
    for (unsigned i = 0; i < 4; i++) {
        const float *plus = a->bias_a ? bias.v + i : a->bias_b ? a->bias_b + row_b : NULL;
        x.v[i] = kern_finished(sums[i], a->scale, plus, a->accumulate ? old.v + i : NULL);
    }
    kern_store4(out, n, &x);
}

KERN_INLINE void kern_exact_store(const struct kern_exact_args *a, size_t a0, size_t b0, unsigned t,
                                  float (*sums)[8])
{
    KERN_UNROLL
    for (unsigned i = 0; i < 16; i++) {
        size_t row_a = a0 + kern_exact_index(kern_exact_four_a(t), i % 2 * 4);
        size_t row_b = b0 + kern_exact_index(kern_exact_four_b(t), i / 2);
        if (row_a < a->n_a && row_b < a->n_b)
            kern_exact_store_four(a, row_b, row_a, a->n_a - row_a < 4 ? a->n_a - row_a : 4,
                                  sums[i / 2] + i % 2 * 4);
    }
}

/** All threads: begin to copy the columns from k on, for the square that begins at a0, b0. */
KERN_INLINE void kern_exact_fill(const struct kern_exact_args *a, struct kern_exact_columns *to,
                                 size_t a0, size_t b0, size_t k)
{
    unsigned n = a->n_k - k < KERN_EXACT_DEPTH ? (unsigned)(a->n_k - k) : KERN_EXACT_DEPTH;
    for (unsigned t = kern_thread_begin(); t < KERN_EXACT_THREADS;
         t += kern_thread_step(KERN_EXACT_THREADS)) {
        kern_exact_load(to->a, a->a, a0, a->n_a, a->n_k, k, n, t);
        kern_exact_load(to->b, a->b, b0, a->n_b, a->n_k, k, n, t);
    }
}

/** A block computes a square of outputs; blocks run through a first. */
KERN_INLINE void kern_exact_block(const struct kern_exact_args *a, size_t block, void *shared)
{
    struct kern_exact_shared *s = (struct kern_exact_shared *)shared;
    size_t per_row = (a->n_a + KERN_EXACT_SIDE - 1) / KERN_EXACT_SIDE;
    size_t a0 = block % per_row * KERN_EXACT_SIDE, b0 = block / per_row * KERN_EXACT_SIDE;
    float sums[KERN_SLOTS(KERN_EXACT_THREADS)][8][8];
    for (unsigned t = kern_thread_begin(); t < KERN_EXACT_THREADS;
         t += kern_thread_step(KERN_EXACT_THREADS)) {
        KERN_UNROLL
        for (unsigned i = 0; i < 64; i++)
            sums[kern_slot(t)][i / 8][i % 8] = 0.0f;
    }
    kern_exact_fill(a, &s->columns[0], a0, b0, 0);
    for (size_t k = 0; k < a->n_k; k += KERN_EXACT_DEPTH) {
        unsigned n = a->n_k - k < KERN_EXACT_DEPTH ? (unsigned)(a->n_k - k) : KERN_EXACT_DEPTH;
        unsigned half = k / KERN_EXACT_DEPTH % 2;
        kern_copies_wait();
        kern_barrier(); /* these columns are there, and nobody multiplies those before */
        if (k + KERN_EXACT_DEPTH < a->n_k)
            kern_exact_fill(a, &s->columns[half ^ 1], a0, b0, k + KERN_EXACT_DEPTH);
        for (unsigned t = kern_thread_begin(); t < KERN_EXACT_THREADS;
             t += kern_thread_step(KERN_EXACT_THREADS)) {
            /* The least index comes first: where it has no output, the thread has none. */
            if (a0 + kern_exact_index(kern_exact_four_a(t), 0) < a->n_a &&
                b0 + kern_exact_index(kern_exact_four_b(t), 0) < a->n_b)
                kern_exact_multiply(&s->columns[half], n, t, sums[kern_slot(t)]);
        }
    }
    for (unsigned t = kern_thread_begin(); t < KERN_EXACT_THREADS;
         t += kern_thread_step(KERN_EXACT_THREADS))
        kern_exact_store(a, a0, b0, t, sums[kern_slot(t)]);
}

#endif
