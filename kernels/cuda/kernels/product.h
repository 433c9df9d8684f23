/**
 * Kernels around the library's products of halves. The exact product is in exact/.
 *
 *   split   x [T, K] to scaled halves and the rows' largest magnitudes: 4 T K bytes read (twice,
 *           the second time from L2), 2 or 6 T K written
 *   finish  sums to results: 4 to 12 bytes per element
 *   fill    test operands for the library, pseudo-random halves
 *   digest  whether two products have the same bits: 4 bytes per result
 */
#ifndef KERNELS_CUDA_KERNELS_PRODUCT_H
#define KERNELS_CUDA_KERNELS_PRODUCT_H

#include <math.h>
#include <stdbool.h>

#include "kernels/cuda/kernels/half.h"
#include "kernels/cuda/kernels/thread.h"

enum {
    KERN_SPLIT_THREADS = 256,
    KERN_FINISH_THREADS = 256,
    KERN_FINISH_ELEMS = 1024,
    KERN_FILL_THREADS = 256,
    KERN_FILL_ELEMS = 4096
};

/** A block per row. */
struct kern_split_args {
    const float *x; /* [n_rows, n_cols] */
    struct kern_half_out out;
};

KERN_INLINE void kern_split_block(const struct kern_split_args *a, size_t block, void *shared)
{
    uint32_t *largest = (uint32_t *)shared;
    const float *x = a->x + block * a->out.n_cols;
    uint32_t n_real = kern_half_n_real(&a->out, block);
    for (unsigned t = kern_thread_begin(); t < 1; t += kern_thread_step(KERN_SPLIT_THREADS))
        *largest = 0;
    kern_barrier();
    for (unsigned t = kern_thread_begin(); t < KERN_SPLIT_THREADS;
         t += kern_thread_step(KERN_SPLIT_THREADS)) {
        uint32_t most = 0;
        for (uint32_t i = 4 * t; i < n_real; i += 4 * KERN_SPLIT_THREADS) {
            struct kern_vec4 y = kern_load4(x + i, n_real - i < 4 ? n_real - i : 4);
            most = kern_half_most(most, 4, &y);
        }
        if (most > 0)
            kern_atomic_max(largest, most);
    }
    kern_barrier();
    kern_half_row_store(&a->out, block, *largest, x, false, KERN_SPLIT_THREADS);
}

/**
 * From sums of scaled products to results, in the order of struct kern_linear:
 * out[b][a] = sum[b][a] 2^-(e_a + e_b) * scale + bias + (accumulate) out[b][a].
 */
struct kern_finish_args {
    const float *sums; /* [n_b, sums_stride] */
    float *out;        /* [n_b, out_stride]; may be sums */
    size_t sums_stride, out_stride, n_a, n_b;
    const uint32_t *a_largest, *b_largest;
    const float *bias_a, *bias_b; /* at most one of them */
    float scale;
    bool accumulate;
};

KERN_INLINE float kern_finished(float sum, float scale, const float *bias, const float *old)
{
    if (scale != 1.0f)
        sum *= scale;
    if (bias)
        sum += *bias;
    return old ? sum + *old : sum;
}

/** Neighbours i .. i + n - 1 of row b, n up to 4. */
KERN_INLINE void kern_finish_four(const struct kern_finish_args *a, size_t b, size_t i, unsigned n,
                                  int exponent_b)
{
    float *out = a->out + b * a->out_stride + i;
    struct kern_vec4 x = kern_load4(a->sums + b * a->sums_stride + i, n);
    struct kern_vec4 largest = kern_load4((const float *)(const void *)(a->a_largest + i), n);
    struct kern_vec4 old = kern_load4(out, a->accumulate ? n : 0);
    struct kern_vec4 bias = kern_load4(a->bias_a ? a->bias_a + i : NULL, a->bias_a ? n : 0);
    KERN_UNROLL
    for (unsigned k = 0; k < 4; k++) {
        int exponent = kern_row_exponent(kern_bits_of(largest.v[k])) + exponent_b;
        float y = kern_scale_by(x.v[k], -exponent);
        y = a->scale != 1.0f ? y * a->scale : y;
        y = a->bias_a ? y + bias.v[k] : a->bias_b ? y + a->bias_b[b] : y;
        x.v[k] = a->accumulate ? y + old.v[k] : y;
    }
    kern_store4(out, n, &x);
}

/** A block takes KERN_FINISH_ELEMS neighbours of one row b: each thread four. */
KERN_INLINE void kern_finish_block(const struct kern_finish_args *a, size_t block, void *shared)
{
    (void)shared;
    /* Blocks, and rows, are fewer than 2^31; division of 64 bits is slow. */
    uint32_t n_a = (uint32_t)a->n_a, per_row = (n_a + KERN_FINISH_ELEMS - 1) / KERN_FINISH_ELEMS;
    uint32_t b = (uint32_t)block / per_row, first = (uint32_t)block % per_row * KERN_FINISH_ELEMS;
    int exponent_b = kern_row_exponent(a->b_largest[b]);
    for (unsigned t = kern_thread_begin(); t < KERN_FINISH_THREADS;
         t += kern_thread_step(KERN_FINISH_THREADS)) {
        uint32_t i = first + 4 * t;
        if (i < n_a)
            kern_finish_four(a, b, i, n_a - i < 4 ? n_a - i : 4, exponent_b);
    }
}

/** A number in which every bit depends on every bit of z. */
KERN_INLINE uint64_t kern_mixed(uint64_t z)
{
    z = (z ^ z >> 31) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 29) * 0xbf58476d1ce4e5b9u;
    return z ^ z >> 32;
}

/**
 * Rows of pseudo-random halves between -2 and 2; row r has the numbers of row r % period, so that
 * a product can be asked whether it treats equal rows equally.
 */
struct kern_fill_args {
    uint16_t *to; /* [n_elems / n_cols, n_cols] */
    size_t n_elems, n_cols, period;
    uint64_t seed;
};

KERN_INLINE void kern_fill_block(const struct kern_fill_args *a, size_t block, void *shared)
{
    (void)shared;
    for (unsigned t = kern_thread_begin(); t < KERN_FILL_THREADS;
         t += kern_thread_step(KERN_FILL_THREADS)) {
        for (unsigned k = t; k < KERN_FILL_ELEMS; k += KERN_FILL_THREADS) {
            size_t i = block * KERN_FILL_ELEMS + k;
            if (i >= a->n_elems)
                continue;
            uint64_t z = kern_mixed(i % (a->period * a->n_cols) + a->seed);
            float uniform = (float)(z & 0xffffffu) * 0x1p-22f - 2.0f;
            a->to[i] = kern_half_from_float(uniform);
        }
    }
}

/** Two sums over all floats, to be added to. They depend on every bit and its position. */
struct kern_digest_args {
    const float *x;
    size_t n;
    uint32_t *digest; /* [2] */
};

KERN_INLINE void kern_digest_block(const struct kern_digest_args *a, size_t block, void *shared)
{
    uint32_t *sums = (uint32_t *)shared;
    for (unsigned t = kern_thread_begin(); t < 2; t += kern_thread_step(KERN_FILL_THREADS))
        sums[t] = 0;
    kern_barrier();
    for (unsigned t = kern_thread_begin(); t < KERN_FILL_THREADS;
         t += kern_thread_step(KERN_FILL_THREADS)) {
        uint32_t low = 0, high = 0;
        for (unsigned k = t; k < KERN_FILL_ELEMS; k += KERN_FILL_THREADS) {
            size_t i = block * KERN_FILL_ELEMS + k;
            if (i >= a->n)
                continue;
            uint64_t z = kern_mixed((uint64_t)i << 32 | kern_bits_of(a->x[i]));
            low += (uint32_t)z;
            high += (uint32_t)(z >> 32);
        }
        kern_atomic_add(&sums[0], low);
        kern_atomic_add(&sums[1], high);
    }
    kern_barrier();
    for (unsigned t = kern_thread_begin(); t < 2; t += kern_thread_step(KERN_FILL_THREADS))
        kern_atomic_add(&a->digest[t], sums[t]);
}

#endif
