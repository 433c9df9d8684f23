#include "kernels/quant/registry.h"

#include "kernels/quant/formats.h"

static const struct kern_quant formats[] = {
    {GGUF_TYPE_F32, sizeof(struct kern_block_f32), kern_f32_row, NULL},
    {GGUF_TYPE_F16, sizeof(struct kern_block_f16), kern_f16_row, NULL},
    {GGUF_TYPE_BF16, sizeof(struct kern_block_bf16), kern_bf16_row, NULL},
    {GGUF_TYPE_Q4_0, sizeof(struct kern_block_q4_0), kern_q4_0_row, NULL},
    {GGUF_TYPE_Q4_1, sizeof(struct kern_block_q4_1), kern_q4_1_row, NULL},
    {GGUF_TYPE_Q5_0, sizeof(struct kern_block_q5_0), kern_q5_0_row, NULL},
    {GGUF_TYPE_Q5_1, sizeof(struct kern_block_q5_1), kern_q5_1_row, NULL},
    {GGUF_TYPE_Q8_0, sizeof(struct kern_block_q8_0), kern_q8_0_row, NULL},
    {GGUF_TYPE_Q2_K, sizeof(struct kern_block_q2_k), kern_q2_k_row, NULL},
    {GGUF_TYPE_Q3_K, sizeof(struct kern_block_q3_k), kern_q3_k_row, NULL},
    {GGUF_TYPE_Q4_K, sizeof(struct kern_block_q4_k), kern_q4_k_row, NULL},
    {GGUF_TYPE_Q5_K, sizeof(struct kern_block_q5_k), kern_q5_k_row, NULL},
    {GGUF_TYPE_Q6_K, sizeof(struct kern_block_q6_k), kern_q6_k_row, NULL},
    {GGUF_TYPE_IQ1_S, sizeof(struct kern_block_iq1_s), kern_iq1_s_row, NULL},
    {GGUF_TYPE_IQ1_M, sizeof(struct kern_block_iq1_m), kern_iq1_m_row, NULL},
    {GGUF_TYPE_IQ2_XXS, sizeof(struct kern_block_iq2_xxs), kern_iq2_xxs_row, NULL},
    {GGUF_TYPE_IQ2_XS, sizeof(struct kern_block_iq2_xs), kern_iq2_xs_row, NULL},
    {GGUF_TYPE_IQ2_S, sizeof(struct kern_block_iq2_s), kern_iq2_s_row, NULL},
    {GGUF_TYPE_IQ3_XXS, sizeof(struct kern_block_iq3_xxs), kern_iq3_xxs_row, NULL},
    {GGUF_TYPE_IQ3_S, sizeof(struct kern_block_iq3_s), kern_iq3_s_row, NULL},
    {GGUF_TYPE_IQ4_NL, sizeof(struct kern_block_iq4_nl), kern_iq4_nl_row, NULL},
    {GGUF_TYPE_IQ4_XS, sizeof(struct kern_block_iq4_xs), kern_iq4_xs_row, NULL},
    {GGUF_TYPE_TQ1_0, sizeof(struct kern_block_tq1_0), kern_tq1_0_row, NULL},
    {GGUF_TYPE_TQ2_0, sizeof(struct kern_block_tq2_0), kern_tq2_0_row, NULL},
    {GGUF_TYPE_MXFP4, sizeof(struct kern_block_mxfp4), kern_mxfp4_row, NULL},
    {GGUF_TYPE_NVFP4, sizeof(struct kern_block_nvfp4), kern_nvfp4_row, kern_nvfp4_find_invalid},
    {GGUF_TYPE_Q1_0, sizeof(struct kern_block_q1_0), kern_q1_0_row, NULL},
    {GGUF_TYPE_Q2_0, sizeof(struct kern_block_q2_0), kern_q2_0_row, NULL},
};

const struct kern_quant *kern_quant_at(size_t i)
{
    return i < sizeof formats / sizeof formats[0] ? &formats[i] : NULL;
}

const struct kern_quant *kern_quant_find(enum gguf_type type)
{
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (formats[i].type == type)
            return &formats[i];
    return NULL;
}
