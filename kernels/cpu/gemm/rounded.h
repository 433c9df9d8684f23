/**
 * Activations rounded to integers of 16 or 8 bits, for products with weights that are integers
 * times scales (kernels/quant/integers.h).
 *
 *                    columns of a block    largest integer
 *     int16 (high)           64                 31743; 28671 for weights of long formats
 *     int8 (fast)            32                   127; 123, 111 or 95 for weights of small integers
 *
 * With `fast` attention multiplies integers of 16 bits as well (../attention/products.h): 64
 * products of two that are at most 5792 come to less than 2^31.
 *
 * Each block of a token (the last of a row may be shorter) is rounded on its own:
 * scale = max |x| / largest, integers = x * (largest / max |x|), to the nearest, halves to even. So
 * |x - scale * integer| is at most 0.506 scales: half of one, and 3 roundings to float32; about
 * 2^-16 or 2^-8 of the block's largest magnitude. Where that is below KERN_ROUNDED_LEAST, all are
 * 0. A block with an infinity or NaN has the scale NaN, so that every output that it meets is NaN.
 *
 * A product is defined in this order, and every ISA gives these bits. acc begins at 0. For each
 * block part begins at 0; for each run of the weight's row in it, in the order of the columns,
 *     part = fmaf((float)(sum of w * x), w_scale, part),
 *     part = fmaf((float)(sum of x), w_min, part), for each min of the run;
 * and at its end acc = fmaf(part, x_scale, acc). The sums are over a run, or over what shares the
 * min, and are exact integers, which are rounded to float32 once.
 *
 * Sums of long formats (kernels/quant/integers.h) may be beyond 32 bits. The sum of 64 products is
 * at most the root of the sum of w^2 times the sum of x^2 (Cauchy and Schwarz). Where that is below
 * 2^31, which it nearly always is, nothing else is done. Else kern_fma_tile has `exactly`: sums of
 * 16 columns, at most 16 * 4096 * 28671 < 2^31, are added up in double. A row of weights of a tile
 * and the chunks of activations have the sums of their squares beside them.
 *
 * Byte instructions multiply unsigned numbers by signed ones. So 8-bit activations lie as
 * integer + 128, and a row of weights has -128 times the sum of each run beside it: there a sum
 * begins, and comes to the sum of w * x. It is exact: with weights of -128..127 no sum on the way
 * is beyond 32 * 128 * 255 + 32 * 128 * 128 < 2^21.
 *
 * Two columns can share a multiplication (S. Winograd, 1968): w0 x0 + w1 x1 is
 *     (x0 + w1) (x1 + w0) - x0 x1 - w0 w1,
 * and what is subtracted belongs to the token or to the row alone. In integers modulo 2^32 that is
 * exact, whatever overflows on the way. So a sum that begins at the token's plus the row's `begins`
 * takes half of the multiply-adds, and two additions of 16-bit numbers for each of those: less time
 * where a processor adds more vectors at a time than it multiplies. 16 bits hold x + w, because
 * 31743 + 1024 = 28671 + 4096 = 32767. 8 bits hold it where the weights are at most 4, 16 or 32
 * (kern_rooms) and activations 123, 111 or 95. One of the factors is without a sign there, x0 +
 * 128 + w1; so (x0 + 128) x1 and (w1 + 128) w0 are subtracted.
 *
 * The first six of eight cells are three such pairs. The last two are multiplied each on its own,
 * in the time that the multipliers have left beside the additions.
 */
#ifndef KERNELS_CPU_GEMM_ROUNDED_H
#define KERNELS_CPU_GEMM_ROUNDED_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/numerics/bf16.h"
#include "kernels/quant/integers.h"

enum {
    KERN_ROUNDED_COLUMNS = 32, /* of a chunk */
    KERN_ROUNDED_TOKENS = 32,
    KERN_ROUNDED_PAIRED = 6, /* cells of eight, in pairs */
    KERN_INT16_BLOCK = 64,
    KERN_ATTENTION_MOST = 5792, /* the largest integer where 16 bits meet 16 bits */
    KERN_INT8_BLOCK = 32,
    KERN_INT8_MAX = 127,
    KERN_INT8_OFFSET = 128
};

#define KERN_ROUNDED_LEAST 0x1p-100f

/** What belongs to the integers of 32 columns of 32 tokens. */
struct kern_rounded_factors {
    float sum[3][KERN_ROUNDED_TOKENS]; /* of columns 0 to 15, 16 to 31, and all */
    float scale[KERN_ROUNDED_TOKENS];  /* of the block, in each of its chunks */
};

/**
 * 32 columns of 32 tokens: of tokens 0 to 15 and of the others, 2 or 4 columns of a token side by
 * side, which are a cell of 4 bytes. Tokens past the last one are 0.
 */
struct kern_int16_chunk {
    int16_t x[2][KERN_ROUNDED_COLUMNS / 2][KERN_ROUNDED_TOKENS / 2][2];
    struct kern_rounded_factors of;
    /* -(sum of the products of pairs of cells) modulo 2^32, of columns 0 to 15 and 16 to 31 */
    int32_t begins[2][KERN_ROUNDED_TOKENS];
    float squares[KERN_ROUNDED_TOKENS]; /* of a block's first: its sums; only for long formats */
};
struct kern_int8_chunk {
    uint8_t x[2][KERN_ROUNDED_COLUMNS / 4][KERN_ROUNDED_TOKENS / 2][4]; /* integer + 128 */
    struct kern_rounded_factors of;
    int32_t begins[2][KERN_ROUNDED_TOKENS]; /* likewise; of a pair's first cell integer + 128 */
};

/** The definition, in plain C. n_k: a multiple of 32; out: n_k / 32 chunks. */
void kern_scalar_int16_pack(const struct kern_panel_pack *op);
void kern_scalar_int8_pack(const struct kern_panel_pack *op);
void kern_scalar_words_pack(const struct kern_panel_pack *op); /* of int8, as chunks of int16 */

/** Lanes to be rounded: a panel array x [n_k][32], of which row k is multiplied with factors[k]
 * first. n_k: a multiple of 32. */
struct kern_lanes_pack {
    const float *x, *factors;
    size_t n_k;
    int largest;
    void *out; /* n_k / 32 struct kern_int16_chunk, aligned to 64; the sums may be left out */
};
/** By way of the same numbers as rows, which `pack` packs. */
void kern_pack_turned(const struct kern_lanes_pack *op,
                      void (*pack)(const struct kern_panel_pack *));
/** A row of n numbers as one block, to integers; returns its scale. */
float kern_scalar_int16_round(const float *x, size_t n, int largest, int16_t *integers);

#endif
