/** The AVX-512 decoders: the types where they were measured to be faster than AVX2. */
#ifndef KERNELS_CPU_AVX512_DECODE_H
#define KERNELS_CPU_AVX512_DECODE_H

#include "kernels/quant/integers.h"

/** X(TYPE, name) for each. */
/* clang-format off */
#define KERN_AVX512_DECODERS(X)                                                                    \
    X(F16, f16) X(BF16, bf16) X(Q4_0, q4_0) X(Q4_1, q4_1) X(Q5_0, q5_0) X(Q5_1, q5_1)              \
    X(Q8_0, q8_0) X(Q3_K, q3_k) X(Q4_K, q4_k) X(Q5_K, q5_k) X(Q6_K, q6_k) X(IQ1_S, iq1_s)          \
    X(IQ1_M, iq1_m) X(IQ2_XXS, iq2_xxs) X(IQ2_XS, iq2_xs) X(IQ2_S, iq2_s) X(IQ4_NL, iq4_nl)        \
    X(IQ4_XS, iq4_xs) X(TQ1_0, tq1_0) X(TQ2_0, tq2_0) X(MXFP4, mxfp4) X(NVFP4, nvfp4)              \
    X(Q1_0, q1_0) X(Q2_0, q2_0) X(IQ2_K, iq2_k) X(IQ3_K, iq3_k) X(IQ4_K, iq4_k)                    \
    X(IQ5_K, iq5_k) X(IQ6_K, iq6_k) X(IQ2_KS, iq2_ks) X(IQ3_KS, iq3_ks) X(IQ4_KS, iq4_ks)          \
    X(IQ4_KSS, iq4_kss) X(IQ5_KS, iq5_ks) X(IQ2_KL, iq2_kl) X(I2_S, i2_s)                          \
    X(F8_E4M3, f8_e4m3) X(F8_E5M2, f8_e5m2)

/** Those whose integers have a way of their own (kern_straight_fn). */
#define KERN_AVX512_STRAIGHT_K(X)                                                                  \
    X(Q8_0, q8_0) X(Q2_K, q2_k) X(Q3_K, q3_k) X(Q4_K, q4_k) X(Q5_K, q5_k) X(Q6_K, q6_k)
#define KERN_AVX512_STRAIGHT_4BIT(X)                                                               \
    X(Q4_0, q4_0) X(Q4_1, q4_1) X(Q5_0, q5_0) X(Q5_1, q5_1) X(IQ4_NL, iq4_nl) X(IQ4_XS, iq4_xs)    \
    X(MXFP4, mxfp4) X(NVFP4, nvfp4)
#define KERN_AVX512_STRAIGHT_IQ(X)                                                                 \
    X(IQ1_S, iq1_s) X(IQ1_M, iq1_m) X(IQ2_XXS, iq2_xxs) X(IQ2_XS, iq2_xs) X(IQ2_S, iq2_s)          \
    X(IQ3_XXS, iq3_xxs) X(IQ3_S, iq3_s)
#define KERN_AVX512_STRAIGHT(X)                                                                    \
    KERN_AVX512_STRAIGHT_K(X) KERN_AVX512_STRAIGHT_4BIT(X) KERN_AVX512_STRAIGHT_IQ(X)
/* clang-format on */

#define KERN_AVX512_DECODER(TYPE, name) kern_decode_fn kern_avx512_decode_##name;
KERN_AVX512_DECODERS(KERN_AVX512_DECODER)
#define KERN_AVX512_STRAIGHT_OF(TYPE, name)                                                        \
    kern_straight_fn kern_avx512_straight8_##name, kern_avx512_straight16_##name;
KERN_AVX512_STRAIGHT(KERN_AVX512_STRAIGHT_OF)

#endif
