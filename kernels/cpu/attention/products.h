/**
 * The two products of attention, in the way that kern_product says: scores of a block of keys
 * with a panel of queries, and values added up with what the softmax made of the scores.
 * Whatever the precision, bfloat16 comes in triples here: a score is an exponent.
 *
 * In integers of 16 bits, for heads of multiples of 32, all operands are rounded as rounded.h has
 * it, to -5792..5792: queries and keys in blocks of 64 columns, a value as one block. Then
 *     score = the product of both as rounded.h defines it, a key being the row of weights;
 *     p'_j = p_j * scale of value j, rounded for each query as a block of 64 keys, 0 where it does
 *     not see the key;
 *     out_i = fmaf((float)(sum of p'_j * v_ji), scale of the p', out_i).
 * So what a query gets depends on itself and on the keys and values that it sees.
 */
#ifndef KERNELS_CPU_ATTENTION_PRODUCTS_H
#define KERNELS_CPU_ATTENTION_PRODUCTS_H

#include "kernels/cpu/context.h"

struct kern_attention;

/** A block of keys and its values, as they are and as the products want them; a thread's own. */
struct kern_key_block {
    const struct kern_cpu *cpu;
    struct kern_product product;
    size_t head_size, value_size; /* d, dv */
    size_t k_stride, v_stride;    /* floats from a key to the next, and from a value */
    float *k, *v;  /* [KERN_KEY_BLOCK, k_stride] and [.., v_stride]; filled by the caller */
    float *scores; /* panel array [KERN_KEY_BLOCK] */
    /* In bfloat16: groups of keys, groups of the values' columns, a panel of scores, a column. In
     * integers: rows of keys, rows of the values' columns, a panel of scores, the values' scales.
     */
    float *packed_k, *packed_v, *packed_scores, *column;
    int16_t *integers; /* of keys, and of values; then of these by columns */
};

/** Floats of memory that a block needs, and a packed panel of queries; multiples of 16. */
size_t kern_key_block_floats(const struct kern_cpu *cpu, const struct kern_attention *op);
size_t kern_query_panel_floats(const struct kern_cpu *cpu, const struct kern_attention *op);

/** memory: kern_key_block_floats(), aligned to 64. */
void kern_key_block_open(struct kern_key_block *b, const struct kern_cpu *cpu,
                         const struct kern_attention *op, float *memory);

/** Pack n queries q [n, stride] into a panel. */
void kern_query_panel_pack(const struct kern_key_block *b, const float *q, size_t stride, size_t n,
                           float *out);

/** The caller has written n_keys keys and values: prepare them for the products. */
void kern_key_block_pack(const struct kern_key_block *b, size_t n_keys);

/** scores[j][lane] = k[j] . query[lane] for j < n_keys. */
void kern_key_block_multiply_keys(const struct kern_key_block *b, const float *queries,
                                  size_t n_keys);

/** out[i][lane] += sum_j v[j][i] scores[j][lane] over j < n_keys. out: panel array [dv]. */
void kern_key_block_multiply_values(const struct kern_key_block *b, size_t n_keys, float *out);

#endif
