/**
 * Activations as 16-bit integers, for products with weights that are integers times scales
 * (kernels/quant/integers.h).
 *
 * Of each token a block of 64 columns (the last of a row may be shorter) is rounded on its own:
 * scale = max |x| / 32767, integers = x * (32767 / max |x|), to the nearest, halves to even. So
 * |x - scale * integer| is at most 0.506 scales: half of one, and 3 roundings to float32; about
 * 2^-16 of the block's largest magnitude. Where that is below KERN_INT16_LEAST, all are 0. A block
 * with an infinity or NaN has the scale NaN, so that every output that it meets is NaN.
 *
 * A product is defined in this order, and every ISA gives these bits. acc begins at 0. For each
 * block part begins at 0; for each run of the weight's row in it, in the order of the columns,
 *     part = fmaf((float)(sum of w * x), w_scale, part),
 *     part = fmaf((float)(sum of x), w_min, part), for a format with minima only;
 * and at its end acc = fmaf(part, x_scale, acc). The sums are over a run, exact integers.
 */
#ifndef KERNELS_NUMERICS_INT16_H
#define KERNELS_NUMERICS_INT16_H

#include <stddef.h>
#include <stdint.h>

enum {
    KERN_INT16_COLUMNS = 32, /* of a chunk */
    KERN_INT16_BLOCK = 64,
    KERN_INT16_TOKENS = 32,
    KERN_INT16_MAX = 32767
};

#define KERN_INT16_LEAST 0x1p-100f

/** 32 columns of 32 tokens. Tokens that there are none of are 0. */
struct kern_int16_chunk {
    /* Of tokens 0 to 15 and of the others: columns 2i and 2i + 1 of a token side by side. */
    int16_t x[2][KERN_INT16_COLUMNS / 2][KERN_INT16_TOKENS / 2][2];
    float sum[3][KERN_INT16_TOKENS]; /* of columns 0 to 15, 16 to 31, and all */
    float scale[KERN_INT16_TOKENS];  /* of the block, in each of its chunks */
};

/** Activations to be rounded and packed. */
struct kern_int16_panel {
    const float *x; /* n_lanes <= 32 tokens of n_k floats, any alignment */
    size_t x_stride, n_lanes, n_k;
    struct kern_int16_chunk *out; /* n_k / 32, aligned to 64 */
};

/** The definition, in plain C. n_k: a multiple of 32. */
void kern_scalar_int16_pack(const struct kern_int16_panel *op);

#endif
