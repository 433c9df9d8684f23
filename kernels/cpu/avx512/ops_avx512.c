#include "kernels/cpu/avx512/ops_avx512.h"

/* What waits for memory more than it computes is AVX2 here, too. */
#include "kernels/cpu/avx2/ops_avx2.h"

const struct kern_ops kern_ops_avx512 = {
    .rmsnorm = kern_avx512_rmsnorm,
    .rope_adjacent = kern_avx512_rope_adjacent,
    .rope_halves = kern_avx512_rope_halves,
    .gate = kern_avx512_gate,
    .add_scaled = kern_avx512_add_scaled,
    .softmax_block = kern_avx512_softmax_block,
    .score_update = kern_avx512_score_update,
    .score_rank = kern_avx512_score_rank,
    .score_pair = kern_avx512_score_pair,
    .score_top = kern_avx2_score_top,
    .score_js = kern_avx512_score_js,
    .decode_codes = kern_avx2_decode_codes,
    .encode_codes = kern_avx2_encode_codes,
};
