#include "kernels/cpu/avx2/ops_avx2.h"

const struct kern_ops kern_ops_avx2 = {
    .rmsnorm = kern_avx2_rmsnorm,
    .rope_adjacent = kern_avx2_rope_adjacent,
    .rope_halves = kern_avx2_rope_halves,
    .gate = kern_avx2_gate,
    .add_scaled = kern_avx2_add_scaled,
    .softmax_block = kern_avx2_softmax_block,
    .score_update = kern_avx2_score_update,
    .score_rank = kern_avx2_score_rank,
    .score_pair = kern_avx2_score_pair,
    .score_top = kern_avx2_score_top,
    .score_js = kern_avx2_score_js,
    .decode_codes = kern_avx2_decode_codes,
    .encode_codes = kern_avx2_encode_codes,
};
