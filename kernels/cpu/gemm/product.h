/**
 * Ways to compute a product of weights and tokens: a microkernel, and how its operands lie.
 *
 *   float32        Weights as decoded, tokens as panel arrays. Every output is one chain of fused
 *                  multiply-adds in the order of the columns: the same bits on every ISA.
 *   int16          Weights of quantised types as their integers, tokens rounded to 16 bits per
 *                  block of 64 columns (kernels/cpu/gemm/rounded.h): an error of about 2^-16 of a
 *                  block's largest magnitude per element at most, about 2e-5 of ||y|| for gaussian
 *                  data, 1.1 times that for long formats. The same bits on every ISA.
 *   int8           Likewise, tokens rounded to 8 bits or a little less per block of 32 columns:
 *                  2^-8 at most, about 5e-3 of ||y||; for types with room 4, 16 and 32 1.03,
 *                  1.14 and 1.34 times as much.
 *   bf16 triples   Both operands as hi + lo in bfloat16 (bf16.h), three products: lo hi, hi hi,
 *                  hi lo. Float32-faithful: besides the summation's, an error of 3 * 2^-16 of
 *                  the sum of magnitudes at most, about 5e-6 of ||y|| for gaussian data.
 *   bf16           One product, hi hi: 2^-7 at most, about 2.4e-3 of ||y||.
 *
 * The sums in bfloat16 are what tile instructions define: of each 32 columns, two chains of
 * fused multiply-adds (even and odd columns), which are added and then added to the output. So
 * here too an output depends on its own row and token only, and adding zeros changes nothing.
 * All of it flushes denormals to zero. An infinity or NaN in an operand makes the outputs that
 * it meets NaN, or infinite.
 */
#ifndef KERNELS_CPU_GEMM_PRODUCT_H
#define KERNELS_CPU_GEMM_PRODUCT_H

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/kernels.h"

struct kern_product {
    enum kern_products kind;
    /* In integers and bfloat16 `w` and `x` of the call are packed operands; in bfloat16 w_row is
     * the floats that a row takes of its group. */
    kern_fma_tile_fn *multiply;
    unsigned n_parts; /* of bfloat16; else 0 */
    bool words;       /* int8 that lies as int16: words_tile */
    int largest;      /* what activations are rounded to, of integers; else 0 */
    size_t slab_k;    /* columns per tile of weights: a multiple of every block size */
    size_t row_grain; /* rows that are multiplied together: tiles should have a multiple */
};

/**
 * Choose the product that `options` ask for, if the processor has the instructions, the system
 * allows them, and a trial product is right: float32 or bfloat16. remark: out, one line about an
 * option that could not be followed, or "".
 */
void kern_product_choose(struct kern_product *out, const struct kern_kernels *kernels,
                         const struct kern_cpu_options *options, const char **remark);

/**
 * The product of quantised weights that want this room (kernels/quant/integers.h) where `others` is
 * float32: integers, but with `exact`.
 */
void kern_product_choose_integers(struct kern_product *out, const struct kern_kernels *kernels,
                                  const struct kern_cpu_options *options,
                                  const struct kern_product *others, int room);

/** Choose a product of activations of 8 bits, for weights that the kernels' int8_tile does not
 * take. */
void kern_product_choose_words(struct kern_product *out, const struct kern_kernels *kernels,
                               const struct kern_product *bytes);

/** The kind whose operands lie as the product's do. */
static inline enum kern_products kern_product_layout(const struct kern_product *product)
{
    return product->words ? KERN_PRODUCTS_INT16 : product->kind;
}

static inline bool kern_product_is_integer(const struct kern_product *product)
{
    return product->kind == KERN_PRODUCTS_INT16 || product->kind == KERN_PRODUCTS_INT8;
}

/** Bits of an activation of a product in integers. */
static inline unsigned kern_product_bits(const struct kern_product *product)
{
    return product->kind == KERN_PRODUCTS_INT8 ? 8 : 16;
}

/** Floats that a row of a weight tile with n_k columns takes. */
size_t kern_product_row_floats(const struct kern_product *product, size_t n_k);
/** Floats that a packed panel of tokens takes. */
size_t kern_product_panel_floats(const struct kern_product *product, size_t n_k);
/** Floats that packing a row of weights takes besides; the last of them are for: */
size_t kern_product_work_floats(const struct kern_product *product);
/** Floats that a row's blocks take where they must be copied (kernels/quant/rows.h). */
size_t kern_product_copy_floats(const struct kern_product *product);

/** Pack tokens into a panel; of `op` all but n_parts is set. */
void kern_product_pack(const struct kern_product *product, const struct kern_kernels *kernels,
                       struct kern_panel_pack op);

#endif
