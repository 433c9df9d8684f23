/**
 * A product of halves whose results go through an activation to the next product: finish, gate and
 * split in one pass, by the same operations, so with the same bits.
 *
 *   powers      what rows of an operand were scaled by, as factors: 16 bytes a row
 *   gate split  sums of two products to halves: 8 bytes read, 2 or 6 written for an element; a row
 *               is in shared memory meanwhile
 */
#ifndef KERNELS_CUDA_KERNELS_GATED_GATED_H
#define KERNELS_CUDA_KERNELS_GATED_GATED_H

#include "kernels/cuda/kernels/half.h"
#include "kernels/numerics/activation.h"

enum {
    KERN_POWERS_THREADS = 256,
    KERN_GATE_SPLIT_THREADS = 512,
    KERN_GATE_SPLIT_HEADER = 16 /* bytes of shared memory in front of the row */
};

/**
 * What rows of an operand have: the largest magnitudes, and 2^-e as first * second, whose exponents
 * are each half of it. Products of the `first` of two rows, and of their `second`, are normal
 * numbers.
 */
struct kern_powers {
    uint32_t *largest;
    float *first, *second;
};

struct kern_powers_args {
    const uint32_t *largest;
    struct kern_powers to;
    size_t n;
};

/** A block takes KERN_POWERS_THREADS rows. */
KERN_INLINE void kern_powers_block(const struct kern_powers_args *a, size_t block, void *shared)
{
    (void)shared;
    for (unsigned t = kern_thread_begin(); t < KERN_POWERS_THREADS;
         t += kern_thread_step(KERN_POWERS_THREADS)) {
        size_t i = block * KERN_POWERS_THREADS + t;
        if (i >= a->n)
            continue;
        int exponent = kern_row_exponent(a->largest[i]), half = exponent / 2;
        a->to.largest[i] = a->largest[i];
        a->to.first[i] = kern_power_of_two(-half);
        a->to.second[i] = kern_power_of_two(half - exponent);
    }
}

/**
 * Sums of a product [n_rows, n_cols], and what makes results of them (struct kern_finish_args). All
 * arrays begin at multiples of 16 bytes.
 */
struct kern_sums {
    const float *sums; /* NULL: all results are 1 */
    struct kern_powers cols, rows;
    const float *bias; /* of columns, or NULL */
    float scale;
};

/**
 * Results i .. i + n - 1 of a row, n up to 4. A sum is a multiple of 2^-48, so no step before the
 * last rounds: the bits are those of kern_scale_by().   whole: i and n_cols are multiples of 4.
 */
KERN_INLINE struct kern_vec4 kern_sums_finish(const struct kern_sums *s, size_t row, size_t n_cols,
                                              size_t i, unsigned n, bool whole)
{
    struct kern_vec4 y = kern_load4_whole(s->sums + row * n_cols + i, n, whole);
    struct kern_vec4 first = kern_load4_whole(s->cols.first + i, n, whole);
    struct kern_vec4 second = kern_load4_whole(s->cols.second + i, n, whole);
    struct kern_vec4 bias = {{0.0f, 0.0f, 0.0f, 0.0f}};
    if (s->bias)
        bias = kern_load4_whole(s->bias + i, n, whole);
    float row_first = s->rows.first[row], row_second = s->rows.second[row];
    KERN_UNROLL
    for (unsigned k = 0; k < 4; k++) {
        float x = y.v[k] * (first.v[k] * row_first) * (second.v[k] * row_second);
        x = s->scale != 1.0f ? x * s->scale : x;
        y.v[k] = s->bias ? x + bias.v[k] : x;
    }
    return y;
}

/** A block per row. */
struct kern_gate_split_args {
    struct kern_sums gate, up; /* [out.n_rows, out.n_cols] */
    struct kern_half_out out;
    struct kern_curve curve;
    enum kern_activation kind;
};

/** Elements i .. i + n - 1 of a row to `x`; the largest magnitude of them and of `most`. */
KERN_INLINE uint32_t kern_gate_split_four(const struct kern_gate_split_args *a, size_t row,
                                          size_t i, unsigned n, float *x, uint32_t most)
{
    bool whole = a->out.n_cols % 4 == 0;
    struct kern_vec4 y = kern_sums_finish(&a->gate, row, a->out.n_cols, i, n, whole);
    struct kern_vec4 up = {{1.0f, 1.0f, 1.0f, 1.0f}};
    if (a->up.sums)
        up = kern_sums_finish(&a->up, row, a->out.n_cols, i, n, whole);
    KERN_UNROLL
    for (unsigned k = 0; k < 4; k++)
        y.v[k] = kern_activation(a->kind, &a->curve, y.v[k], up.v[k]);
    *(struct kern_vec4 *)(void *)(x + i) = y;
    return kern_half_most(most, n, &y);
}

KERN_INLINE void kern_gate_split_block(const struct kern_gate_split_args *a, size_t block,
                                       void *shared)
{
    uint32_t *largest = (uint32_t *)shared;
    float *x = (float *)shared + KERN_GATE_SPLIT_HEADER / sizeof(float); /* the row */
    uint32_t n_real = kern_half_n_real(&a->out, block);
    for (unsigned t = kern_thread_begin(); t < 1; t += kern_thread_step(KERN_GATE_SPLIT_THREADS))
        *largest = 0;
    kern_barrier();
    for (unsigned t = kern_thread_begin(); t < KERN_GATE_SPLIT_THREADS;
         t += kern_thread_step(KERN_GATE_SPLIT_THREADS)) {
        uint32_t most = 0;
        for (uint32_t i = 4 * t; i < n_real; i += 4 * KERN_GATE_SPLIT_THREADS)
            most = kern_gate_split_four(a, block, i, n_real - i < 4 ? n_real - i : 4, x, most);
        if (most > 0)
            kern_atomic_max(largest, most);
    }
    kern_barrier();
    kern_half_row_store(&a->out, block, *largest, x, true, KERN_GATE_SPLIT_THREADS);
}

#endif
