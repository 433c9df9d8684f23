/* The rows that have an AVX-512 version. This folder alone is compiled with -mavx512*. */
#include "kernels/cpu/avx512/decode.h"
#include "kernels/cpu/avx512/gemm.h"

const struct kern_table kern_table_avx512 = {
    .decode =
        {
            [GGUF_TYPE_F16] = kern_avx512_decode_f16,
            [GGUF_TYPE_BF16] = kern_avx512_decode_bf16,
            [GGUF_TYPE_Q4_0] = kern_avx512_decode_q4_0,
            [GGUF_TYPE_Q4_1] = kern_avx512_decode_q4_1,
            [GGUF_TYPE_Q5_0] = kern_avx512_decode_q5_0,
            [GGUF_TYPE_Q5_1] = kern_avx512_decode_q5_1,
            [GGUF_TYPE_Q8_0] = kern_avx512_decode_q8_0,
            [GGUF_TYPE_Q3_K] = kern_avx512_decode_q3_k,
            [GGUF_TYPE_Q4_K] = kern_avx512_decode_q4_k,
            [GGUF_TYPE_Q5_K] = kern_avx512_decode_q5_k,
            [GGUF_TYPE_Q6_K] = kern_avx512_decode_q6_k,
            [GGUF_TYPE_IQ1_S] = kern_avx512_decode_iq1_s,
            [GGUF_TYPE_IQ1_M] = kern_avx512_decode_iq1_m,
            [GGUF_TYPE_IQ2_XXS] = kern_avx512_decode_iq2_xxs,
            [GGUF_TYPE_IQ2_XS] = kern_avx512_decode_iq2_xs,
            [GGUF_TYPE_IQ2_S] = kern_avx512_decode_iq2_s,
            [GGUF_TYPE_IQ4_NL] = kern_avx512_decode_iq4_nl,
            [GGUF_TYPE_IQ4_XS] = kern_avx512_decode_iq4_xs,
            [GGUF_TYPE_TQ1_0] = kern_avx512_decode_tq1_0,
            [GGUF_TYPE_TQ2_0] = kern_avx512_decode_tq2_0,
            [GGUF_TYPE_MXFP4] = kern_avx512_decode_mxfp4,
            [GGUF_TYPE_NVFP4] = kern_avx512_decode_nvfp4,
            [GGUF_TYPE_Q1_0] = kern_avx512_decode_q1_0,
            [GGUF_TYPE_Q2_0] = kern_avx512_decode_q2_0,
        },
    .fma_tile = kern_avx512_fma_tile,
    .bf16_pack_row = kern_avx512_bf16_pack_row,
    .bf16_pack_panel = kern_avx512_bf16_pack_panel,
    .bf16_pack_lanes = kern_avx512_bf16_pack_lanes,
};
