#include "kernels/numerics/ops_scalar.h"

const struct kern_ops kern_ops_scalar = {
    .rmsnorm = kern_scalar_rmsnorm,
    .rope_adjacent = kern_scalar_rope_adjacent,
    .rope_halves = kern_scalar_rope_halves,
    .gate = kern_scalar_gate,
    .add_scaled = kern_scalar_add_scaled,
    .softmax_block = kern_scalar_softmax_block,
    .score_update = kern_scalar_score_update,
    .score_rank = kern_scalar_score_rank,
    .score_pair = kern_scalar_score_pair,
    .score_top = kern_scalar_score_top,
    .score_js = kern_scalar_score_js,
    .decode_codes = kern_scalar_decode_codes,
    .encode_codes = kern_scalar_encode_codes,
};
