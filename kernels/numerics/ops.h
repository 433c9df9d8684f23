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
#include "kernels/recurrent_types.h"

/**
 * y[i] = d[i] * inv * gain[i] + bias[i] + y[i], each operation rounded to float on its own and left
 * out where there is nothing to do (gain or bias NULL, no `accumulate`). In double m = 0, or with
 * `center` sum / n; d[i] = x[i] - m, for y rounded to float; inv = (float)(1 / sqrt(sum of d[i]^2
 * / n + eps)), or 1 with `plain`. A sum is taken in double in 16 lanes, element i in lane i mod 16,
 * each square rounded before it is added, and the lanes are added as a binary tree (j with j + 8,
 * then + 4, + 2,
 * + 1). y may be x.
 */
struct kern_norm_row {
    float *y;
    const float *x, *gain, *bias;
    size_t n;
    float eps;
    bool center, accumulate, plain;
};
typedef void kern_op_norm_fn(const struct kern_norm_row *row);
/**
 * Rotate one head in place: pair i is (x[2i], x[2i + 1]). angles: [n_pairs, 2], cos and
 * sin. a' = fma(a, cos, -(b sin)), b' = fma(b, cos, a sin).
 */
typedef void kern_op_rope_adjacent_fn(float *x, const float *angles, size_t n_pairs);
/** Rotate pairs (x[i], x[i + n_pairs]). */
typedef void kern_op_rope_halves_fn(float *x, const float *angles, size_t n_pairs);
/** gate[i] = what activation.h makes of gate[i] and up[i], which is 1 where up is NULL. */
typedef void kern_op_activate_fn(enum kern_activation kind, const struct kern_curve *curve,
                                 float *gate, const float *up, size_t n);
/** x[i] = fmath_soft_cap_f32(x[i] * scale, cap, 1 / cap); cap > 0. */
typedef void kern_op_soft_cap_fn(float *x, size_t n, float scale, float cap);
/**
 * x[i] = max(0, x[i] - t), the difference rounded to float once; t = m + scale * sqrt(v) in double.
 * m is the row's mean, v the sum of (x[i] - m)^2 divided by n or, with `sample`, by n - 1 (of one
 * element by 1). The sums are those of a norm.
 */
typedef void kern_op_sparsify_fn(float *x, size_t n, float scale, bool sample);
/** y[i] = fma(share, x[i], y[i]) */
typedef void kern_op_add_scaled_fn(float *y, const float *x, float share, size_t n);
/**
 * For each of n_rows rows of n elements: y[i] += weights[i] * (x[i] > 0 ? x[i] : 0), the product
 * and the sum each rounded.
 */
typedef void kern_op_add_rectified_fn(float *y, const float *x, const float *weights, size_t n,
                                      size_t n_rows);

/** x[i] = e^x[i] */
typedef void kern_op_exp_fn(float *x, size_t n);
/** y[i] = x[i] * factor; y may be x. */
typedef void kern_op_scale_fn(float *y, const float *x, float factor, size_t n);
/** The sum of x[i]^2, in double and in the order of rmsnorm's. */
typedef double kern_op_squares_fn(const float *x, size_t n);

/** What a token's convolution sees: see struct kern_convolve. */
struct kern_taps {
    const float *x[KERN_CONVOLVE_MAX]; /* a row for each tap, the token's own last; NULL: none */
    const float *weights;              /* [n_taps, stride] */
    const float *bias;                 /* or NULL */
    size_t n_taps, stride;
    bool bare; /* without silu */
};
/** y[i] = silu(bias[i] + sum over taps j of weights[j][i] * x[j][i]) for i < n. */
typedef void kern_op_convolve_fn(float *y, const struct kern_taps *taps, size_t n);

/**
 * Rows first .. n_rows - 1 of a product with a triangle of numbers:
 *     acc[r][lane] = fmaf(w[r][k], x[k][lane], acc[r][lane]) for k = 0, 1, ... below r,
 * and for k = r with `diagonal`. Without it x may be acc: a row sees those before it as they come
 * out, which solves a triangular system. Rows of w, x and acc are KERN_CHUNK floats apart; x and
 * acc are aligned to 64.
 */
struct kern_triangle {
    const float *w, *x;
    float *acc;
    size_t first, n_rows;
    bool diagonal;
};
typedef void kern_op_triangle_fn(const struct kern_triangle *op);

/** y[i] = kern_recur_decay(dt[i], bias[i], decay) for i < n (kernels/recurrent/gates.h). */
struct kern_decays {
    float *y;
    const float *dt, *bias;
    const struct kern_decay *decay;
    size_t n;
};
typedef void kern_op_decays_fn(const struct kern_decays *op);

/**
 * n tokens of `width` columns of a state whose rows have decays of their own, one token after the
 * other: struct kern_recur has the formulas and the order of sums. Rows of s are KERN_CHUNK floats
 * apart and aligned to 64; columns from `width` on may become anything.
 */
struct kern_steps {
    float *s;                   /* [n_k, KERN_CHUNK] */
    const float *decay, *k, *q; /* [n, n_k] */
    const float *beta;          /* [n] */
    const float *v;             /* [n, v_stride], `width` columns */
    float *out;                 /* [n, out_stride], likewise */
    size_t v_stride, out_stride;
    size_t n, n_k, width;
};
typedef void kern_op_steps_fn(const struct kern_steps *op);

/** The rows that one row of struct kern_compress is made of. */
struct kern_terms {
    const float *u, *z; /* [rows, stride]; z NULL: zeros */
    size_t stride;
    const uint32_t *rows; /* [n_terms]; UINT32_MAX: none */
    size_t n_terms, n_early, late;
};
/** Where a term's elements begin in u or z; NULL: there is no such term, or no z. */
static inline const float *kern_term(const struct kern_terms *terms, const float *x, size_t j)
{
    if (!x || terms->rows[j] == UINT32_MAX)
        return NULL;
    return x + terms->rows[j] * terms->stride + (j < terms->n_early ? 0 : terms->late);
}
/**
 * With most = the largest z_j[i]: y[i] = (chain of fma(e_j, u_j[i])) / (sum of e_j), both in the
 * order of the terms and begun with 0, e_j = e^(z_j[i] - most). A NaN among the z makes y[i] NaN.
 */
typedef void kern_op_compress_fn(float *y, const struct kern_terms *terms, size_t n);

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
    X(norm) X(rope_adjacent) X(rope_halves) X(activate) X(add_scaled) X(softmax_block)             \
    X(exp) X(scale) X(squares) X(convolve) X(triangle) X(decays) X(steps) X(compress)              \
    X(score_update) X(score_rank) X(score_pair) X(score_top) X(score_js) X(decode_codes)           \
    X(encode_codes) X(soft_cap) X(sparsify) X(add_rectified)
/* clang-format on */

#define KERN_OPS_MEMBER(name) kern_op_##name##_fn *(name);
/** One variant of each. */
struct kern_ops {
    KERN_OPS(KERN_OPS_MEMBER)
};

extern const struct kern_ops kern_ops_scalar;
extern const struct kern_ops kern_ops_avx2;
extern const struct kern_ops kern_ops_avx512;
extern const struct kern_ops kern_ops_neon;

#endif
