/** The block formats that AVX-512 turns straight into integers and scales (kern_straight_fn). */
#ifndef KERNELS_CPU_AVX512_STRAIGHT_LIST_H
#define KERNELS_CPU_AVX512_STRAIGHT_LIST_H

#include "kernels/quant/integers.h"

/** X(TYPE, name) for each. */
/* clang-format off */
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

#define KERN_AVX512_STRAIGHT_OF(TYPE, name)                                                        \
    kern_straight_fn kern_avx512_straight8_##name, kern_avx512_straight16_##name;
KERN_AVX512_STRAIGHT(KERN_AVX512_STRAIGHT_OF)

#endif
