#include "kernels/quant/registry.h"

#include "kernels/quant/formats.h"
#include "kernels/quant/ik/formats.h"

/* clang-format off */
#define ROW(id, elems, name, find_invalid)                                                         \
    [GGUF_TYPE_##id] = {GGUF_TYPE_##id, elems, sizeof(struct kern_block_##name),                   \
                        kern_##name##_row, GGUF_TYPE_##id, NULL, find_invalid},
#define PLAIN(id, elems, name) ROW(id, elems, name, NULL)
/* `name` decodes what the bundle's rows become, blocks like those of `plain`. */
#define WOVEN(id, elems, unweave, name, plain)                                                     \
    [GGUF_TYPE_##id] = {GGUF_TYPE_##id, elems, sizeof(struct kern_block_##name),                   \
                        kern_##name##_row, GGUF_TYPE_##plain, kern_unweave_##unweave, NULL},

/* By id; those without a decoder are no formats. */
static const struct kern_quant formats[GGUF_TYPE_LIMIT] = {
    PLAIN(F32, 1, f32)
    PLAIN(F16, 1, f16)
    PLAIN(BF16, 1, bf16)
    PLAIN(Q4_0, 32, q4_0)
    PLAIN(Q4_1, 32, q4_1)
    PLAIN(Q5_0, 32, q5_0)
    PLAIN(Q5_1, 32, q5_1)
    PLAIN(Q8_0, 32, q8_0)
    PLAIN(Q2_K, 256, q2_k)
    PLAIN(Q3_K, 256, q3_k)
    PLAIN(Q4_K, 256, q4_k)
    PLAIN(Q5_K, 256, q5_k)
    PLAIN(Q6_K, 256, q6_k)
    PLAIN(IQ1_S, 256, iq1_s)
    PLAIN(IQ1_M, 256, iq1_m)
    PLAIN(IQ2_XXS, 256, iq2_xxs)
    PLAIN(IQ2_XS, 256, iq2_xs)
    PLAIN(IQ2_S, 256, iq2_s)
    PLAIN(IQ3_XXS, 256, iq3_xxs)
    PLAIN(IQ3_S, 256, iq3_s)
    PLAIN(IQ4_NL, 32, iq4_nl)
    PLAIN(IQ4_XS, 256, iq4_xs)
    PLAIN(TQ1_0, 256, tq1_0)
    PLAIN(TQ2_0, 256, tq2_0)
    PLAIN(MXFP4, 32, mxfp4)
    ROW(NVFP4, 64, nvfp4, kern_nvfp4_find_invalid)
    PLAIN(Q1_0, 128, q1_0)
    PLAIN(Q2_0, 64, q2_0)
    /* ik_llama.cpp's */
    PLAIN(Q6_0, 32, q6_0)
    PLAIN(IQ1_BN, 64, iq1_bn)
    PLAIN(IQ2_BN, 64, iq2_bn)
    PLAIN(IQ2_K, 256, iq2_k)
    PLAIN(IQ3_K, 256, iq3_k)
    PLAIN(IQ4_K, 256, iq4_k)
    PLAIN(IQ5_K, 256, iq5_k)
    PLAIN(IQ6_K, 256, iq6_k)
    PLAIN(IQ4_KS, 256, iq4_ks)
    PLAIN(IQ2_KS, 256, iq2_ks)
    PLAIN(IQ4_KSS, 256, iq4_kss)
    PLAIN(Q8_KV, 32, q8_kv)
    PLAIN(IQ5_KS, 256, iq5_ks)
    PLAIN(IQ2_KT, 256, iq2_kt)
    PLAIN(IQ3_KT, 256, iq3_kt)
    PLAIN(IQ4_KT, 256, iq4_kt)
    PLAIN(IQ3_KS, 256, iq3_ks)
    PLAIN(IQ2_KL, 256, iq2_kl)
    PLAIN(IQ1_KT, 256, iq1_kt)
    WOVEN(Q4_0_R8, 32, q4_0_r8, q4_0, Q4_0)
    WOVEN(Q5_0_R4, 32, q5_0_r4, q5_0_r4, Q5_0)
    WOVEN(Q8_0_R8, 32, q8_0_r8, q8_0, Q8_0)
    WOVEN(Q2_K_R4, 256, q2_k_r4, q2_k, Q2_K)
    WOVEN(Q3_K_R4, 256, q3_k_r4, q3_k, Q3_K)
    WOVEN(Q4_K_R4, 256, q4_k_r4, q4_k, Q4_K)
    WOVEN(Q5_K_R4, 256, q5_k_r4, q5_k, Q5_K)
    WOVEN(Q6_K_R4, 256, q6_k_r4, q6_k, Q6_K)
    WOVEN(IQ2_XXS_R4, 256, iq2_xxs_r4, iq2_xxs, IQ2_XXS)
    WOVEN(IQ2_XS_R4, 256, iq2_xs_r4, iq2_xs, IQ2_XS)
    WOVEN(IQ3_XXS_R4, 256, iq3_xxs_r4, iq3_xxs, IQ3_XXS)
    WOVEN(IQ1_S_R4, 32, iq1_s_r4, iq1_s_r4, IQ1_S_R4)
    WOVEN(IQ4_NL_R4, 32, iq4_nl_r4, iq4_nl, IQ4_NL)
    WOVEN(IQ3_S_R4, 256, iq3_s_r4, iq3_s, IQ3_S)
    WOVEN(IQ2_S_R4, 256, iq2_s_r4, iq2_s, IQ2_S)
    WOVEN(IQ4_XS_R8, 256, iq4_xs_r8, iq4_xs, IQ4_XS)
    WOVEN(IQ1_M_R4, 32, iq1_m_r4, iq1_m_r4, IQ1_M_R4)
    WOVEN(BF16_R16, 1, bf16_r16, bf16, BF16)
    WOVEN(Q6_0_R4, 32, q6_0_r4, q6_0_r4, Q6_0)
    WOVEN(IQ2_BN_R4, 64, iq2_bn_r4, iq2_bn, IQ2_BN)
    WOVEN(IQ2_K_R4, 256, iq2_k_r4, iq2_k, IQ2_K)
    WOVEN(IQ3_K_R4, 256, iq3_k_r4, iq3_k, IQ3_K)
    WOVEN(IQ4_K_R4, 256, iq4_k_r4, iq4_k, IQ4_K)
    WOVEN(IQ5_K_R4, 256, iq5_k_r4, iq5_k, IQ5_K)
    WOVEN(IQ4_KS_R4, 256, iq4_ks_r4, iq4_ks, IQ4_KS)
    WOVEN(IQ5_KS_R4, 256, iq5_ks_r4, iq5_ks, IQ5_KS)
    WOVEN(MXFP4_R8, 32, mxfp4_r8, mxfp4, MXFP4)
    WOVEN(Q8_K_R16, 256, q8_k_r16, q8_k_r16, Q8_K_R8)
    WOVEN(Q8_KV_R8, 32, q8_kv_r8, q8_kv, Q8_KV)
    WOVEN(Q8_K_R8, 256, q8_k_r8, q8_k_r8, Q8_K_R8)
};
/* clang-format on */

const struct kern_quant *kern_quant_at(size_t i)
{
    for (size_t id = 0; id < GGUF_TYPE_LIMIT; id++)
        if (formats[id].decode && i-- == 0)
            return &formats[id];
    return NULL;
}

const struct kern_quant *kern_quant_find(enum gguf_type type)
{
    size_t id = (size_t)type;
    return id < GGUF_TYPE_LIMIT && formats[id].decode ? &formats[id] : NULL;
}
