/** The AVX2 decoders: every type but F32, whose scalar decoder is a copy already. */
#ifndef KERNELS_CPU_AVX2_DECODE_H
#define KERNELS_CPU_AVX2_DECODE_H

#include "kernels/quant/registry.h"

/** X(TYPE, name) for each. */
/* clang-format off */
#define KERN_AVX2_DECODERS(X)                                                                      \
    X(F16, f16) X(BF16, bf16) X(Q4_0, q4_0) X(Q4_1, q4_1) X(Q5_0, q5_0) X(Q5_1, q5_1)              \
    X(Q8_0, q8_0) X(Q2_K, q2_k) X(Q3_K, q3_k) X(Q4_K, q4_k) X(Q5_K, q5_k) X(Q6_K, q6_k)            \
    X(IQ1_S, iq1_s) X(IQ1_M, iq1_m) X(IQ2_XXS, iq2_xxs) X(IQ2_XS, iq2_xs) X(IQ2_S, iq2_s)          \
    X(IQ3_XXS, iq3_xxs) X(IQ3_S, iq3_s) X(IQ4_NL, iq4_nl) X(IQ4_XS, iq4_xs) X(TQ1_0, tq1_0)        \
    X(TQ2_0, tq2_0) X(MXFP4, mxfp4) X(NVFP4, nvfp4) X(Q1_0, q1_0) X(Q2_0, q2_0)                    \
    X(Q6_0, q6_0) X(Q8_KV, q8_kv) X(Q8_K_R8, q8_k_r8) X(IQ1_BN, iq1_bn) X(IQ2_BN, iq2_bn)          \
    X(IQ2_K, iq2_k) X(IQ3_K, iq3_k) X(IQ4_K, iq4_k) X(IQ5_K, iq5_k) X(IQ6_K, iq6_k)                \
    X(IQ2_KS, iq2_ks) X(IQ3_KS, iq3_ks) X(IQ4_KS, iq4_ks) X(IQ4_KSS, iq4_kss) X(IQ5_KS, iq5_ks)    \
    X(IQ2_KL, iq2_kl) X(IQ1_KT, iq1_kt) X(IQ2_KT, iq2_kt) X(IQ3_KT, iq3_kt) X(IQ4_KT, iq4_kt)      \
    X(IQ1_S_R4, iq1_s_r4) X(IQ1_M_R4, iq1_m_r4)                                                    \
    X(Q5_0_R4, q5_0_r4) X(Q6_0_R4, q6_0_r4) X(Q8_K_R16, q8_k_r16) X(I2_S, i2_s)                   \
    X(F8_E4M3, f8_e4m3) X(F8_E5M2, f8_e5m2)
/* clang-format on */

#define KERN_AVX2_DECODER(TYPE, name) kern_decode_fn kern_avx2_decode_##name;
KERN_AVX2_DECODERS(KERN_AVX2_DECODER)

#endif
