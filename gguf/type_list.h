/**
 * The table of tensor types: a row for each that can be decoded. The numbers of the types
 * (gguf/type.h), the reader's table (gguf/type.c), the decoders (kernels/quant/registry.c), the
 * integers (kernels/quant/integers.c) and the list of a device (kernels/cuda/kernels/decode.h) are
 * made of it. Source of ids and layouts: the GGUF format; docs/formats.md has the formulas.
 *
 * Every row begins with
 *     TYPE, name    GGUF_TYPE_<TYPE>, and the name in functions and structs
 *     id            in files
 *     elements      that are packed together: a block
 *     bytes         of a block
 *     prefix        bytes that each row of a matrix begins with
 *     rows          of a matrix that are stored together: a bundle; 1: each on its own
 * and then says what a block holds:
 *     FLOATS        numbers as they are: 0, 0
 *     CODES         numbers of few bits times a scale, no integers: 0, 0
    SCALED        integers: how many share a scale, the largest magnitude of one
 *     WITH_MIN      the same; those that share a scale share a minimum, too
 *     WOVEN         blocks of the rows of a bundle: the type whose blocks are taken out of it, the
 *                   name of their decoder
 *     WOVEN_SCALED  the same; what is taken out are blocks of its own, described as those of SCALED
 *     PACKED        integers that lie as struct gguf_packed says: the type of the blocks that are
 *                   made of them, the name of their decoder
 *
 * Blocks of some have no scale: gguf/type.c says how many elements share one, which lies apart.
 */
#ifndef GGUF_TYPE_LIST_H
#define GGUF_TYPE_LIST_H

/* clang-format off */
#define GGUF_TYPES(FLOATS, CODES, SCALED, WITH_MIN, WOVEN, WOVEN_SCALED, PACKED)    \
    FLOATS(      F32,         f32,           0,   1,   4, 0,  1,       0,        0) \
    FLOATS(      F16,         f16,           1,   1,   2, 0,  1,       0,        0) \
    SCALED(      Q4_0,        q4_0,          2,  32,  18, 0,  1,      32,        8) \
    WITH_MIN(    Q4_1,        q4_1,          3,  32,  20, 0,  1,      32,       15) \
    SCALED(      Q5_0,        q5_0,          6,  32,  22, 0,  1,      32,       16) \
    WITH_MIN(    Q5_1,        q5_1,          7,  32,  24, 0,  1,      32,       31) \
    SCALED(      Q8_0,        q8_0,          8,  32,  34, 0,  1,      32,      128) \
    WITH_MIN(    Q2_K,        q2_k,         10, 256,  84, 0,  1,      16,        3) \
    SCALED(      Q3_K,        q3_k,         11, 256, 110, 0,  1,      16,        4) \
    WITH_MIN(    Q4_K,        q4_k,         12, 256, 144, 0,  1,      32,       15) \
    WITH_MIN(    Q5_K,        q5_k,         13, 256, 176, 0,  1,      32,       31) \
    SCALED(      Q6_K,        q6_k,         14, 256, 210, 0,  1,      16,       32) \
    SCALED(      IQ2_XXS,     iq2_xxs,      16, 256,  66, 0,  1,      32,       43) \
    SCALED(      IQ2_XS,      iq2_xs,       17, 256,  74, 0,  1,      16,       43) \
    SCALED(      IQ3_XXS,     iq3_xxs,      18, 256,  98, 0,  1,      32,       62) \
    SCALED(      IQ1_S,       iq1_s,        19, 256,  50, 0,  1,      32,        9) \
    SCALED(      IQ4_NL,      iq4_nl,       20,  32,  18, 0,  1,      32,      127) \
    SCALED(      IQ3_S,       iq3_s,        21, 256, 110, 0,  1,      32,       15) \
    SCALED(      IQ2_S,       iq2_s,        22, 256,  82, 0,  1,      16,       43) \
    SCALED(      IQ4_XS,      iq4_xs,       23, 256, 136, 0,  1,      32,      127) \
    SCALED(      IQ1_M,       iq1_m,        29, 256,  56, 0,  1,      16,        9) \
    FLOATS(      BF16,        bf16,         30,   1,   2, 0,  1,       0,        0) \
    SCALED(      TQ1_0,       tq1_0,        34, 256,  54, 0,  1,      32,        1) \
    SCALED(      TQ2_0,       tq2_0,        35, 256,  66, 0,  1,      32,        2) \
    SCALED(      MXFP4,       mxfp4,        39,  32,  17, 0,  1,      32,       12) \
    SCALED(      NVFP4,       nvfp4,        40,  64,  36, 0,  1,      16,       12) \
    SCALED(      Q1_0,        q1_0,         41, 128,  18, 0,  1,      32,        1) \
    SCALED(      Q2_0,        q2_0,         42,  64,  18, 0,  1,      32,        2) \
    /* ik_llama.cpp's */                                                            \
    SCALED(      I2_S,        i2_s,         36, 128,  32, 0,  1,      32,        2) \
    SCALED(      Q6_0,        q6_0,        133,  32,  26, 0,  1,      32,       32) \
    SCALED(      IQ1_BN,      iq1_bn,      134,  64,  13, 2,  1,      32,        1) \
    SCALED(      IQ2_BN,      iq2_bn,      135,  64,  16, 4,  1,      32,        2) \
    SCALED(      IQ2_K,       iq2_k,       137, 256,  76, 0,  1,      16,       31) \
    SCALED(      IQ3_K,       iq3_k,       138, 256, 110, 0,  1,      16,       63) \
    SCALED(      IQ4_K,       iq4_k,       139, 256, 144, 0,  1,      16,      127) \
    SCALED(      IQ5_K,       iq5_k,       140, 256, 176, 0,  1,      16,      126) \
    SCALED(      IQ6_K,       iq6_k,       141, 256, 212, 0,  1,      16,      127) \
    SCALED(      IQ4_KS,      iq4_ks,      144, 256, 136, 4,  1,      32,      127) \
    SCALED(      IQ2_KS,      iq2_ks,      145, 256,  70, 2,  1,      32,       31) \
    SCALED(      IQ4_KSS,     iq4_kss,     146, 256, 128, 4,  1,      32,      127) \
    SCALED(      Q8_KV,       q8_kv,       151,  32,  32, 8,  1,      32,      128) \
    SCALED(      IQ5_KS,      iq5_ks,      152, 256, 168, 4,  1,      32,      126) \
    SCALED(      IQ2_KT,      iq2_kt,      153, 256,  68, 4,  1,      32,      123) \
    SCALED(      IQ3_KT,      iq3_kt,      154, 256, 100, 4,  1,      32,      123) \
    SCALED(      IQ4_KT,      iq4_kt,      155, 256, 128, 4,  1,      32,      122) \
    SCALED(      IQ3_KS,      iq3_ks,      156, 256, 102, 2,  1,      32,       63) \
    SCALED(      IQ2_KL,      iq2_kl,      157, 256,  86, 2,  1,      32,       63) \
    SCALED(      IQ1_KT,      iq1_kt,      158, 256,  56, 4,  1,      32,      121) \
    WOVEN(       Q4_0_R8,     q4_0_r8,     202,  32,  18, 0,  8, Q4_0,    q4_0)     \
    WOVEN(       Q5_0_R4,     q5_0_r4,     206,  32,  22, 0,  4, Q5_0,    q5_0_r4)  \
    WOVEN(       Q8_0_R8,     q8_0_r8,     208,  32,  34, 0,  8, Q8_0,    q8_0)     \
    WOVEN(       Q2_K_R4,     q2_k_r4,     210, 256,  84, 0,  4, Q2_K,    q2_k)     \
    WOVEN(       Q3_K_R4,     q3_k_r4,     211, 256, 110, 0,  4, Q3_K,    q3_k)     \
    WOVEN(       Q4_K_R4,     q4_k_r4,     212, 256, 144, 0,  4, Q4_K,    q4_k)     \
    WOVEN(       Q5_K_R4,     q5_k_r4,     213, 256, 176, 0,  4, Q5_K,    q5_k)     \
    WOVEN(       Q6_K_R4,     q6_k_r4,     214, 256, 210, 0,  4, Q6_K,    q6_k)     \
    WOVEN(       IQ2_XXS_R4,  iq2_xxs_r4,  216, 256,  66, 0,  4, IQ2_XXS, iq2_xxs)  \
    WOVEN(       IQ2_XS_R4,   iq2_xs_r4,   217, 256,  74, 0,  4, IQ2_XS,  iq2_xs)   \
    WOVEN(       IQ3_XXS_R4,  iq3_xxs_r4,  218, 256,  98, 0,  4, IQ3_XXS, iq3_xxs)  \
    WOVEN_SCALED(IQ1_S_R4,    iq1_s_r4,    219,  32,   6, 2,  4,      32,        9) \
    WOVEN(       IQ4_NL_R4,   iq4_nl_r4,   220,  32,  18, 0,  4, IQ4_NL,  iq4_nl)   \
    WOVEN(       IQ3_S_R4,    iq3_s_r4,    221, 256, 110, 0,  4, IQ3_S,   iq3_s)    \
    WOVEN(       IQ2_S_R4,    iq2_s_r4,    222, 256,  82, 0,  4, IQ2_S,   iq2_s)    \
    WOVEN(       IQ4_XS_R8,   iq4_xs_r8,   223, 256, 136, 0,  8, IQ4_XS,  iq4_xs)   \
    WOVEN_SCALED(IQ1_M_R4,    iq1_m_r4,    229,  32,   7, 2,  4,      16,        9) \
    WOVEN(       BF16_R16,    bf16_r16,    230,   2,   4, 0, 16, BF16,    bf16)     \
    WOVEN(       Q6_0_R4,     q6_0_r4,     233,  32,  26, 0,  4, Q6_0,    q6_0_r4)  \
    WOVEN(       IQ2_BN_R4,   iq2_bn_r4,   335,  64,  16, 4,  4, IQ2_BN,  iq2_bn)   \
    WOVEN(       IQ2_K_R4,    iq2_k_r4,    337, 256,  76, 0,  4, IQ2_K,   iq2_k)    \
    WOVEN(       IQ3_K_R4,    iq3_k_r4,    338, 256, 110, 0,  4, IQ3_K,   iq3_k)    \
    WOVEN(       IQ4_K_R4,    iq4_k_r4,    339, 256, 144, 0,  4, IQ4_K,   iq4_k)    \
    WOVEN(       IQ5_K_R4,    iq5_k_r4,    340, 256, 176, 0,  4, IQ5_K,   iq5_k)    \
    WOVEN(       IQ4_KS_R4,   iq4_ks_r4,   344, 256, 136, 4,  4, IQ4_KS,  iq4_ks)   \
    WOVEN(       IQ5_KS_R4,   iq5_ks_r4,   352, 256, 168, 4,  4, IQ5_KS,  iq5_ks)   \
    WOVEN(       MXFP4_R8,    mxfp4_r8,    353,  32,  17, 0,  8, MXFP4,   mxfp4)    \
    WOVEN(       Q8_K_R16,    q8_k_r16,    397, 256, 258, 0, 16, Q8_K_R8, q8_k_r16) \
    WOVEN(       Q8_KV_R8,    q8_kv_r8,    398,  32,  32, 4,  8, Q8_KV,   q8_kv)    \
    WOVEN_SCALED(Q8_K_R8,     q8_k_r8,     399, 256, 258, 0,  8,      32,      128) \
    /* of published folders; no GGUF file has them */                               \
    CODES(       F8_E4M3,     f8_e4m3,     400,  32,  32, 0,  1,       0,        0) \
    CODES(       F8_E5M2,     f8_e5m2,     401,  32,  32, 0,  1,       0,        0) \
    WOVEN(       MXFP4_APART, mxfp4_apart, 402,  32,  16, 0,  1, MXFP4,   mxfp4)    \
    WOVEN(       NVFP4_APART, nvfp4_apart, 403,  64,  32, 0,  1, NVFP4,   nvfp4)    \
    PACKED(      INT4_APART,  int4_apart,  406,  32,  16, 0,  1, Q8_KV,   q8_kv)    \
    PACKED(      INT8_APART,  int8_apart,  407,  32,  32, 0,  1, Q8_KV,   q8_kv)    \
    PACKED(      INT4_VALUES, int4_values, 408,  32,  16, 0,  1, F32,     f32)      \
    PACKED(      INT8_VALUES, int8_values, 409,  32,  32, 0,  1, F32,     f32)

/* clang-format on */

/** The table for a macro that takes a row of any kind. */
#define GGUF_EACH_TYPE(ROW) GGUF_TYPES(ROW, ROW, ROW, ROW, ROW, ROW, ROW)
/** For the kinds that a list leaves out. */
#define GGUF_NO_TYPE(...)

#endif
