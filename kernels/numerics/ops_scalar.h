/** The scalar reference kernels; ops.h says what each does. */
#ifndef KERNELS_NUMERICS_OPS_SCALAR_H
#define KERNELS_NUMERICS_OPS_SCALAR_H

#include "kernels/numerics/ops.h"

void kern_scalar_rmsnorm(float *y, const float *x, const float *gain, float eps, size_t n);
void kern_scalar_rope_adjacent(float *x, const float *angles, size_t n_pairs);
void kern_scalar_rope_halves(float *x, const float *angles, size_t n_pairs);
void kern_scalar_gate(float *gate, const float *up, size_t n);
void kern_scalar_add_scaled(float *y, const float *x, float share, size_t n);
void kern_scalar_softmax_block(const struct kern_softmax_block *block);
void kern_scalar_score_update(struct kern_score_lanes *state, const struct kern_logit_tile *tile,
                              struct kern_block_exps *exps);
void kern_scalar_score_rank(struct kern_rank_lanes *state, const struct kern_logit_tile *tile);
void kern_scalar_score_pair(struct kern_pair_lanes *state, const struct kern_pair_block *block);
void kern_scalar_score_top(struct kern_top_lanes *state, const struct kern_logit_tile *tile);
void kern_scalar_score_js(struct kern_js_lanes *state, const struct kern_logit_tile *base,
                          const struct kern_logit_tile *other);
void kern_scalar_decode_codes(const struct kern_code_rows *rows, const struct kern_decoded *out);
void kern_scalar_encode_codes(const struct kern_encoded_rows *rows,
                              const struct kern_logit_tile *tile);

/** The experts and shares of one token, as kern_route() has them. */
void kern_scalar_route(const float *logits, size_t n_experts, size_t n_used, int32_t *experts,
                       float *shares);

#endif
