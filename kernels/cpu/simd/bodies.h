/** All bodies of this folder, and the kernels of kernels/numerics/ops.h that they are. */
#ifndef KERNELS_CPU_SIMD_BODIES_H
#define KERNELS_CPU_SIMD_BODIES_H

#include "kernels/cpu/simd/lane_ops.h"
#include "kernels/cpu/simd/pair_ops.h"
#include "kernels/cpu/simd/recurrent_ops.h"
#include "kernels/cpu/simd/row_ops.h"

/** The members of a struct kern_ops. p: the prefix of those that wait for memory, each instruction
 * set's own. */
/* clang-format off */
#define SIMD_OPS(p)                                                                                \
    .norm = norm, .rope_adjacent = rope_adjacent, .rope_halves = rope_halves,                      \
    .activate = activate, .add_scaled = add_scaled, .softmax_block = softmax_block,                \
    .exp = exponentials, .scale = scale, .squares = squares, .convolve = convolve,          \
    .triangle = triangle, .decays = decays, .steps = steps, .compress = compress,                   \
    .score_update = score_update, .score_rank = score_rank, .score_pair = score_pair,              \
    .score_js = score_js, .score_top = p##_score_top,                                              \
    .decode_codes = p##_decode_codes, .encode_codes = p##_encode_codes,                            \
    .soft_cap = soft_cap, .sparsify = sparsify, .add_rectified = add_rectified
/* clang-format on */

#endif
