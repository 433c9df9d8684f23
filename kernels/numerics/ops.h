/**
 * The kernels that are not matrix products, one row or one group of lanes at a time. Each ISA
 * has all of them; every variant gives the scalar one's bits (any NaN counts as equal to any
 * other). The scalar variants in rows_scalar.c, softmax.c, score_lanes.c, pair_lanes.c and
 * code_lanes.c are the reference and the definition.
 */
#ifndef KERNELS_NUMERICS_OPS_H
#define KERNELS_NUMERICS_OPS_H

#include <stddef.h>

#include "kernels/numerics/code_lanes.h"
#include "kernels/numerics/pair_lanes.h"

/**
 * y[i] = (x[i] * inv) * gain[i] with inv = (float)(1 / sqrt(sum / n + eps)) in double.
 * The sum of squares is taken in double in 16 lanes, element i in lane i mod 16, and the
 * lanes are added as a binary tree (j with j + 8, then + 4, + 2, + 1). y may be x.
 */
typedef void kern_op_rmsnorm_fn(float *y, const float *x, const float *gain, float eps, size_t n);
/**
 * Rotate one head in place: pair i is (x[2i], x[2i + 1]). angles: [n_pairs, 2], cos and
 * sin. a' = fma(a, cos, -(b sin)), b' = fma(b, cos, a sin).
 */
typedef void kern_op_rope_adjacent_fn(float *x, const float *angles, size_t n_pairs);
/** The same for pairs (x[i], x[i + n_pairs]). */
typedef void kern_op_rope_halves_fn(float *x, const float *angles, size_t n_pairs);
/** gate[i] = gate[i] / (1 + e^-gate[i]) * up[i] */
typedef void kern_op_silu_mul_fn(float *gate, const float *up, size_t n);
/** x[i] = fmath_soft_cap_f32(x[i] * scale, cap, 1 / cap); cap > 0. */
typedef void kern_op_soft_cap_fn(float *x, size_t n, float scale, float cap);
/** y[i] = fma(share, x[i], y[i]) */
typedef void kern_op_add_scaled_fn(float *y, const float *x, float share, size_t n);

/** One block of keys; see lanes.h. */
typedef void kern_op_softmax_block_fn(const struct kern_softmax_block *block);
/**
 * Fold the tile into max, argmax, sum and moment. exps: out, for a tile of at most
 * KERN_SCORE_BLOCK rows; NULL: not wanted, and the tile may have any number of rows.
 */
typedef void kern_op_score_update_fn(struct kern_score_lanes *state,
                                     const struct kern_logit_tile *tile,
                                     struct kern_block_exps *exps);
/** Count into `above`. */
typedef void kern_op_score_rank_fn(struct kern_rank_lanes *state,
                                   const struct kern_logit_tile *tile);

/** Fold a block of two models; see pair_lanes.h. */
typedef void kern_op_score_pair_fn(struct kern_pair_lanes *state,
                                   const struct kern_pair_block *block);
/** Enter what is larger than the least of the list. */
typedef void kern_op_score_top_fn(struct kern_top_lanes *state, const struct kern_logit_tile *tile);
/** Add the terms of the tiles of base and other (same rows, strides of their own). */
typedef void kern_op_score_js_fn(struct kern_js_lanes *state, const struct kern_logit_tile *base,
                                 const struct kern_logit_tile *other);

/** Decode and encode tokens of recorded rows; see code_lanes.h. */
typedef void kern_op_decode_codes_fn(const struct kern_code_rows *rows,
                                     const struct kern_decoded *out);
typedef void kern_op_encode_codes_fn(const struct kern_encoded_rows *rows,
                                     const struct kern_logit_tile *tile);

/** Their list: X(name) for each of them. */
/* clang-format off */
#define KERN_OPS(X)                                                                                \
    X(rmsnorm) X(rope_adjacent) X(rope_halves) X(silu_mul) X(add_scaled) X(softmax_block)          \
    X(score_update) X(score_rank) X(score_pair) X(score_top) X(score_js) X(decode_codes)           \
    X(encode_codes) X(soft_cap)
/* clang-format on */

#define KERN_OPS_MEMBER(name) kern_op_##name##_fn *(name);
/** One variant of each. */
struct kern_ops {
    KERN_OPS(KERN_OPS_MEMBER)
};

extern const struct kern_ops kern_ops_scalar;
extern const struct kern_ops kern_ops_avx2;
extern const struct kern_ops kern_ops_avx512;

#endif
