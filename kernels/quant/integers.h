/**
 * Quantised formats as integers times scales, for products in integers:
 *     y = scale * integer + min
 * with the same scale over a run of 16, 32 or 64 elements, and the same min over a run of 16 or 32.
 *
 * For activations of 8 bits sub-scales are in the scale; so the integers are small, -128..127. For
 * activations of 16 bits they are in the integer where all of a block of 256 have a whole multiple
 * of its scale: runs are longer then, and a run is what is converted and scaled. Where -1023..1023
 * holds the integers, the terms of a run sum to 64 * 1023 * 31743 < 2^31 at most, in any order (or
 * 32 * 128 * 31743 < 2^27): 32 bits cannot overflow. Integers of -4096..4096 meet activations of
 * 28671 at most: 16 columns of a run do not overflow, 64 hardly ever (kernels/cpu/gemm/rounded.h).
 *
 * Integers need no decoder of their own. A copy of the blocks is made neutral: its scales (those
 * that are not in the integers) are overwritten with what makes the formula's factor 1, and its
 * minima with 0. Any decoder of the type then gives the integers, as float32. Halves and eighths in
 * a formula (IQ1, IQ2, IQ3_XXS, FP4) are in the scale: a neutral block gives whole numbers for
 * every type.
 *
 * scale * integer is exact in float32 where the block's scale is a half: it has 11 significant
 * bits, a sub-scale and an integer at most 12 together. Where a row's scale is a float32, it is
 * rounded as the decoder rounds it. The min is added as the decoder adds it. So y has the decoder's
 * bits, but for the sign and payload of a NaN, and the sign of a zero in IQ3_KT, Q5_0_R4, Q6_0_R4
 * and Q8_K_R16, and where sub-scales are in integers.
 */
#ifndef KERNELS_QUANT_INTEGERS_H
#define KERNELS_QUANT_INTEGERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/quant/registry.h"

/** Each integer is in -KERN_INTEGER_LIMIT .. KERN_INTEGER_LIMIT - 1, unless it is times a sub-scale
 * (KERN_INTEGER_WIDE, KERN_INTEGER_LONG). Activations of 16 bits are KERN_INT16_MAX at most, for
 * long formats KERN_INT16_LONG_MAX. */
enum { KERN_INTEGER_LIMIT = 128, KERN_INT16_MAX = 31743, KERN_INT16_LONG_MAX = 28671 };

/** What activations of 8 bits may leave of 127 for a weight, so that the sum of both has 8 bits too
 * (kernels/cpu/gemm/rounded.h): 0, 4, 16, 32. */
enum { KERN_ROOMS = 4 };
extern const int kern_rooms[KERN_ROOMS];

/** A format as integers. */
struct kern_integers {
    enum gguf_type type; /* whose blocks these are: kern_quant.plain */
    size_t block_bytes, block_elems;
    size_t run;     /* elements that share a scale: 16, 32 or 64 */
    size_t min_run; /* elements that share a min: 16 or 32; 0: min is 0 everywhere */
    int largest;    /* of the magnitudes of its integers */
    bool is_long;   /* 32 bits may not hold the sum of a run: KERN_INT16_LONG_MAX */
    size_t room;    /* which of kern_rooms, for activations of 8 bits */
    void (*scales)(const void *blocks, size_t n_blocks, float *scales, float *mins);
    void (*neutralise)(void *blocks, size_t n_blocks);
};

/** The row of a type, for activations of 8 or 16 bits; NULL for F32, F16 and BF16, which are no
 * integers, and unknown types. Some types have the same row for both. */
const struct kern_integers *kern_integers_find(enum gguf_type type, unsigned bits);

/**
 * n elements straight to what kern_integers_find() says: a version of an ISA's own.
 * blocks: as below.   integers: out, n of int8_t or int16_t, as the activations' bits are.
 * scales, mins: out, as of kern_integers_scales().
 */
typedef void kern_straight_fn(const void *blocks, size_t n, void *integers, float *scales,
                              float *mins);

/**
 * The scales and minima of n elements; n is a multiple of block_elems.
 * blocks: any alignment, any bits.   scales: out, n / run.   mins: out, n / min_run; where that is
 * 0 not written, and may be NULL. A scale that is NaN or infinite stays so.
 */
void kern_integers_scales(const struct kern_integers *format, const void *blocks, size_t n,
                          float *scales, float *mins);

/**
 * Copy the blocks of n elements and make the copy neutral: any decoder of the type gives the
 * integers of it. copy: out, n / block_elems * block_bytes bytes, apart from blocks.
 */
void kern_integers_neutral(const struct kern_integers *format, const void *blocks, size_t n,
                           void *copy);

#endif
