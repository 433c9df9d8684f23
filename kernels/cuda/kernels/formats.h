/**
 * The list of block formats that a device decodes, a row each. A new format is its header, a
 * line in kernels/quant/formats.h, and a row here.
 */
#ifndef KERNELS_CUDA_KERNELS_FORMATS_H
#define KERNELS_CUDA_KERNELS_FORMATS_H

#include "kernels/quant/formats.h"
#include "kernels/quant/ik/formats.h"

/** Formats of single elements. ROW(ID, name, bytes of an element): kern_<name>_row() decodes. */
#define KERN_DECODE_FLOATS(ROW) ROW(F32, f32, 4) ROW(F16, f16, 2) ROW(BF16, bf16, 2)

/** Formats of blocks, as kern_rows_blocks() gives them. ROW(ID, name, elements of a block):
 * kern_<name>_group() decodes 32 of them.
 */
/* clang-format off */
#define KERN_DECODE_BLOCKS(ROW)                                                                    \
    ROW(Q4_0, q4_0, 32) ROW(Q4_1, q4_1, 32) ROW(Q5_0, q5_0, 32) ROW(Q5_1, q5_1, 32)                \
    ROW(Q8_0, q8_0, 32)                                                                            \
    ROW(Q2_K, q2_k, 256) ROW(Q3_K, q3_k, 256) ROW(Q4_K, q4_k, 256) ROW(Q5_K, q5_k, 256)            \
    ROW(Q6_K, q6_k, 256)                                                                           \
    ROW(IQ2_XXS, iq2_xxs, 256) ROW(IQ2_XS, iq2_xs, 256) ROW(IQ3_XXS, iq3_xxs, 256)                 \
    ROW(IQ1_S, iq1_s, 256) ROW(IQ4_NL, iq4_nl, 32) ROW(IQ3_S, iq3_s, 256)                          \
    ROW(IQ2_S, iq2_s, 256) ROW(IQ4_XS, iq4_xs, 256) ROW(IQ1_M, iq1_m, 256)                         \
    ROW(TQ1_0, tq1_0, 256) ROW(TQ2_0, tq2_0, 256)                                                  \
    ROW(MXFP4, mxfp4, 32) ROW(NVFP4, nvfp4, 64)                                                    \
    ROW(Q1_0, q1_0, 128) ROW(Q2_0, q2_0, 64)                                                       \
    ROW(Q6_0, q6_0, 32) ROW(IQ1_BN, iq1_bn, 64) ROW(IQ2_BN, iq2_bn, 64) ROW(Q8_KV, q8_kv, 32)      \
    ROW(IQ2_K, iq2_k, 256) ROW(IQ3_K, iq3_k, 256) ROW(IQ4_K, iq4_k, 256) ROW(IQ5_K, iq5_k, 256)    \
    ROW(IQ6_K, iq6_k, 256) ROW(IQ2_KS, iq2_ks, 256) ROW(IQ3_KS, iq3_ks, 256)                       \
    ROW(IQ4_KS, iq4_ks, 256) ROW(IQ4_KSS, iq4_kss, 256) ROW(IQ5_KS, iq5_ks, 256)                   \
    ROW(IQ2_KL, iq2_kl, 256) ROW(IQ1_KT, iq1_kt, 256) ROW(IQ2_KT, iq2_kt, 256)                     \
    ROW(IQ3_KT, iq3_kt, 256) ROW(IQ4_KT, iq4_kt, 256) ROW(Q8_K_R8, q8_k_r8, 256)                   \
    ROW(IQ1_S_R4, iq1_s_r4, 32) ROW(IQ1_M_R4, iq1_m_r4, 32)
/* clang-format on */

#endif
