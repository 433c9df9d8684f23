/** The kernels of ops.h with AVX2. */
#ifndef KERNELS_CPU_AVX2_OPS_AVX2_H
#define KERNELS_CPU_AVX2_OPS_AVX2_H

#include "kernels/numerics/ops.h"

void kern_avx2_rmsnorm(float *y, const float *x, const float *gain, float eps, size_t n);
void kern_avx2_rope_adjacent(float *x, const float *angles, size_t n_pairs);
void kern_avx2_rope_halves(float *x, const float *angles, size_t n_pairs);
void kern_avx2_gate(float *gate, const float *up, size_t n);
void kern_avx2_add_scaled(float *y, const float *x, float share, size_t n);
void kern_avx2_softmax_block(const struct kern_softmax_block *block);
void kern_avx2_score_update(struct kern_score_lanes *state, const struct kern_logit_tile *tile,
                            struct kern_block_exps *exps);
void kern_avx2_score_rank(struct kern_rank_lanes *state, const struct kern_logit_tile *tile);
void kern_avx2_score_pair(struct kern_pair_lanes *state, const struct kern_pair_block *block);
void kern_avx2_score_top(struct kern_top_lanes *state, const struct kern_logit_tile *tile);
void kern_avx2_score_js(struct kern_js_lanes *state, const struct kern_logit_tile *base,
                        const struct kern_logit_tile *other);
void kern_avx2_decode_codes(const struct kern_code_rows *rows, const struct kern_decoded *out);
void kern_avx2_encode_codes(const struct kern_encoded_rows *rows,
                            const struct kern_logit_tile *tile);

#endif
