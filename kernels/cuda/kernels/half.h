/**
 * Halves with exact row scaling: the operands of the products on tensor cores.
 *
 * A row is multiplied by 2^e so that its largest magnitude is in [2^14, 2^15). Nothing overflows,
 * however large a model's activations are. A number 2^28 times smaller than the largest still is a
 * normal half. Powers of two are exact, so the only error is the rounding to 11 bits:
 * hi = half(x 2^e). With lo = half(x 2^e - hi), hi + lo has 22 bits. float32 holds that difference
 * exactly.
 */
#ifndef KERNELS_CUDA_KERNELS_HALF_H
#define KERNELS_CUDA_KERNELS_HALF_H

#include <stdbool.h>

#include "kernels/cuda/kernels/thread.h"
#include "kernels/quant/bytes.h"

enum { KERN_HALF_TARGET = 14 /* log2 of what the largest magnitude is scaled to, or above */ };

/** The bits of |x|: they order magnitudes as integers, infinity above all, NaN above that. */
KERN_INLINE uint32_t kern_magnitude_bits(float x)
{
    return kern_bits_of(x) & 0x7fffffffu;
}

/**
 * e for a row whose largest magnitude has these bits: between -113 and 126, 0 for a row of zeros
 * or one with an infinity or NaN (which its products then show).
 */
KERN_INLINE int kern_row_exponent(uint32_t largest)
{
    if (largest == 0 || largest >= 0x7f800000u)
        return 0;
    int exponent = (int)(largest >> 23) - 127; /* of a subnormal -127, and less is clamped */
    int e = KERN_HALF_TARGET - exponent;
    return e < 126 ? e : 126;
}

/** 2^e, -126 <= e <= 127. */
KERN_INLINE float kern_power_of_two(int e)
{
    return kern_float_from_bits((uint32_t)(e + 127) << 23);
}

/** x 2^e for |e| <= 252, in two exact steps (but for results below the normal numbers). */
KERN_INLINE float kern_scale_by(float x, int e)
{
    int half = e / 2;
    return x * kern_power_of_two(half) * kern_power_of_two(e - half);
}

/** What rounding a scaled number to this half left over, as a half. */
KERN_INLINE uint16_t kern_half_rest(float scaled, uint16_t hi)
{
#ifdef __CUDACC__ /* one instruction */
    return kern_half_from_float(scaled - __half2float(__ushort_as_half(hi)));
#else
    return kern_half_from_float(scaled - kern_half_to_float(hi));
#endif
}

/**
 * Rows of halves as an operand of a product. With two parts a row is three times as long, and one
 * product over its whole length is three, the small ones first: lo hi, hi lo, hi hi. So weights
 * are lo, hi, hi, tokens hi, lo, hi.
 */
struct kern_half_rows {
    uint16_t *hi;         /* of the first row */
    uint16_t *lo, *again; /* the other parts, `again` being hi once more; NULL with one part */
    size_t stride;        /* from row to row */
};

/** n of four halves, in one store where that is possible, as it is if they are `whole`. */
KERN_INLINE void kern_half_store(uint16_t *to, unsigned n, bool whole, const struct kern_half4 *y)
{
    if (whole || (n == 4 && ((uintptr_t)to & 7) == 0)) {
        *(struct kern_half4 *)(void *)to = *y;
        return;
    }
    KERN_UNROLL /* so that y is in registers */
        for (unsigned i = 0; i < 4; i++)
    {
        if (i < n)
            to[i] = y->v[i];
    }
}

/**
 * n numbers, up to 4, times 2^exponent to the elements from `at` on, which are in one row.
 * whole: n is 4, and so are the multiples that `at` and the rows' stride are of.
 */
KERN_INLINE void kern_half_rows_store(const struct kern_half_rows *rows, size_t at, unsigned n,
                                      bool whole, int exponent, const float *x)
{
    struct kern_vec4 scaled;
    struct kern_half4 hi, lo;
    KERN_UNROLL
    for (unsigned i = 0; i < 4; i++) {
        scaled.v[i] = kern_scale_by(i < n ? x[i] : 0.0f, exponent);
        hi.v[i] = kern_half_from_float(scaled.v[i]);
    }
    kern_half_store(rows->hi + at, n, whole, &hi);
    if (!rows->lo)
        return;
    KERN_UNROLL
    for (unsigned i = 0; i < 4; i++)
        lo.v[i] = kern_half_rest(scaled.v[i], hi.v[i]);
    kern_half_store(rows->lo + at, n, whole, &lo);
    kern_half_store(rows->again + at, n, whole, &hi);
}

/** Rows that a kernel makes halves of, one in a block of the grid. */
struct kern_half_out {
    struct kern_half_rows to;
    uint32_t *largest;     /* of each row of the grid */
    size_t n_rows, n_cols; /* rows from n_rows on become zeros */
};

/** Numbers of a row that are there. */
KERN_INLINE uint32_t kern_half_n_real(const struct kern_half_out *out, size_t row)
{
    return row < out->n_rows ? (uint32_t)out->n_cols : 0;
}

/** The larger of `most` and the magnitudes of the first n of four numbers. */
KERN_INLINE uint32_t kern_half_most(uint32_t most, unsigned n, const struct kern_vec4 *x)
{
    KERN_UNROLL
    for (unsigned k = 0; k < 4; k++) {
        uint32_t bits = k < n ? kern_magnitude_bits(x->v[k]) : 0;
        most = bits > most ? bits : most;
    }
    return most;
}

/**
 * A row's halves and its largest magnitude, from its numbers at x. A thread has four neighbours of
 * every 4 * n_threads.   whole: x is a multiple of 16 bytes, with room for a multiple of 4 numbers.
 */
KERN_INLINE void kern_half_row_store(const struct kern_half_out *out, size_t row, uint32_t largest,
                                     const float *x, bool whole, unsigned n_threads)
{
    uint32_t n_cols = (uint32_t)out->n_cols, n_real = kern_half_n_real(out, row);
    int exponent = kern_row_exponent(largest);
    for (unsigned t = kern_thread_begin(); t < n_threads; t += kern_thread_step(n_threads)) {
        if (t == 0)
            out->largest[row] = largest;
        for (uint32_t i = 4 * t; i < n_cols; i += 4 * n_threads) {
            unsigned n = n_cols - i < 4 ? n_cols - i : 4;
            struct kern_vec4 y = {{0.0f, 0.0f, 0.0f, 0.0f}};
            if (n_real > 0)
                y = whole ? kern_load4_whole(x + i, 4, true) : kern_load4(x + i, n);
            kern_half_rows_store(&out->to, row * out->to.stride + i, n, whole && n_cols % 4 == 0,
                                 exponent, y.v);
        }
    }
}

#endif
