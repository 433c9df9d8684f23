#include "gguf/type.h"

static const struct gguf_type_info types[] = {
    /* id, name, elements of a block, bytes of a block */
    {GGUF_TYPE_F32, "F32", 1, 4},           {GGUF_TYPE_F16, "F16", 1, 2},
    {GGUF_TYPE_BF16, "BF16", 1, 2},         {GGUF_TYPE_Q4_0, "Q4_0", 32, 18},
    {GGUF_TYPE_Q4_1, "Q4_1", 32, 20},       {GGUF_TYPE_Q5_0, "Q5_0", 32, 22},
    {GGUF_TYPE_Q5_1, "Q5_1", 32, 24},       {GGUF_TYPE_Q8_0, "Q8_0", 32, 34},
    {GGUF_TYPE_Q2_K, "Q2_K", 256, 84},      {GGUF_TYPE_Q3_K, "Q3_K", 256, 110},
    {GGUF_TYPE_Q4_K, "Q4_K", 256, 144},     {GGUF_TYPE_Q5_K, "Q5_K", 256, 176},
    {GGUF_TYPE_Q6_K, "Q6_K", 256, 210},     {GGUF_TYPE_IQ2_XXS, "IQ2_XXS", 256, 66},
    {GGUF_TYPE_IQ2_XS, "IQ2_XS", 256, 74},  {GGUF_TYPE_IQ3_XXS, "IQ3_XXS", 256, 98},
    {GGUF_TYPE_IQ1_S, "IQ1_S", 256, 50},    {GGUF_TYPE_IQ4_NL, "IQ4_NL", 32, 18},
    {GGUF_TYPE_IQ3_S, "IQ3_S", 256, 110},   {GGUF_TYPE_IQ2_S, "IQ2_S", 256, 82},
    {GGUF_TYPE_IQ4_XS, "IQ4_XS", 256, 136}, {GGUF_TYPE_IQ1_M, "IQ1_M", 256, 56},
    {GGUF_TYPE_TQ1_0, "TQ1_0", 256, 54},    {GGUF_TYPE_TQ2_0, "TQ2_0", 256, 66},
    {GGUF_TYPE_MXFP4, "MXFP4", 32, 17},     {GGUF_TYPE_NVFP4, "NVFP4", 64, 36},
    {GGUF_TYPE_Q1_0, "Q1_0", 128, 18},      {GGUF_TYPE_Q2_0, "Q2_0", 64, 18},
};

/*
 * Types that exist but are not decoded: activation formats that no stored weight uses, formats
 * withdrawn from GGUF, plain integers and doubles; from 97 on those of ik_llama.cpp.
 */
static const struct gguf_type_info listed[] = {
    /* id, name, elements of a block, bytes of a block (0: not known), bytes before each row */
    {4, "Q4_2", 1, 0, 0},
    {5, "Q4_3", 1, 0, 0},
    {9, "Q8_1", 32, 36, 0},
    {15, "Q8_K", 256, 292, 0},
    {24, "I8", 1, 1, 0},
    {25, "I16", 1, 2, 0},
    {26, "I32", 1, 4, 0},
    {27, "I64", 1, 8, 0},
    {28, "F64", 1, 8, 0},
    {31, "Q4_0_4_4", 32, 18, 0},
    {32, "Q4_0_4_8", 32, 18, 0},
    {33, "Q4_0_8_8", 32, 18, 0},
    {36, "I2_S", 1, 0, 0},
    {37, "IQ4_NL_4_8", 32, 18, 0},
    {38, "IQ4_NL_8_8", 32, 18, 0},
    {97, "Q8_0_X4", 1, 0, 0},
    {98, "Q8_1_X4", 1, 0, 0},
    {99, "Q8_2_X4", 1, 0, 0},
    {133, "Q6_0", 32, 26, 0},
    {134, "IQ1_BN", 64, 13, 2},
    {135, "IQ2_BN", 64, 16, 4},
    {136, "Q8_K64", 1, 0, 0},
    {137, "IQ2_K", 256, 76, 0},
    {138, "IQ3_K", 256, 110, 0},
    {139, "IQ4_K", 256, 144, 0},
    {140, "IQ5_K", 256, 176, 0},
    {141, "IQ6_K", 256, 212, 0},
    {142, "IQ2_TN", 1, 0, 0},
    {143, "IQ1_TN", 1, 0, 0},
    {144, "IQ4_KS", 256, 136, 4},
    {145, "IQ2_KS", 256, 70, 2},
    {146, "IQ4_KSS", 256, 128, 4},
    {147, "Q8_K16", 1, 0, 0},
    {148, "Q8_K32", 1, 0, 0},
    {149, "Q8_KR8", 1, 0, 0},
    {150, "Q8_K128", 1, 0, 0},
    {151, "Q8_KV", 32, 32, 8},
    {152, "IQ5_KS", 256, 168, 4},
    {153, "IQ2_KT", 256, 68, 4},
    {154, "IQ3_KT", 256, 100, 4},
    {155, "IQ4_KT", 256, 128, 4},
    {156, "IQ3_KS", 256, 102, 2},
    {157, "IQ2_KL", 256, 86, 2},
    {158, "IQ1_KT", 256, 56, 4},
    {202, "Q4_0_R8", 32, 18, 0},
    {206, "Q5_0_R4", 32, 22, 0},
    {208, "Q8_0_R8", 32, 34, 0},
    {210, "Q2_K_R4", 256, 84, 0},
    {211, "Q3_K_R4", 256, 110, 0},
    {212, "Q4_K_R4", 256, 144, 0},
    {213, "Q5_K_R4", 256, 176, 0},
    {214, "Q6_K_R4", 256, 210, 0},
    {216, "IQ2_XXS_R4", 256, 66, 0},
    {217, "IQ2_XS_R4", 256, 74, 0},
    {218, "IQ3_XXS_R4", 256, 98, 0},
    {219, "IQ1_S_R4", 32, 6, 2},
    {220, "IQ4_NL_R4", 32, 18, 0},
    {221, "IQ3_S_R4", 256, 110, 0},
    {222, "IQ2_S_R4", 256, 82, 0},
    {223, "IQ4_XS_R8", 256, 136, 0},
    {229, "IQ1_M_R4", 32, 7, 2},
    {230, "BF16_R16", 1, 2, 0},
    {233, "Q6_0_R4", 32, 26, 0},
    {335, "IQ2_BN_R4", 64, 16, 4},
    {337, "IQ2_K_R4", 256, 76, 0},
    {338, "IQ3_K_R4", 256, 110, 0},
    {339, "IQ4_K_R4", 256, 144, 0},
    {340, "IQ5_K_R4", 256, 176, 0},
    {344, "IQ4_KS_R4", 256, 136, 4},
    {352, "IQ5_KS_R4", 256, 168, 4},
    {353, "MXFP4_R8", 32, 17, 0},
    {397, "Q8_K_R16", 256, 258, 0},
    {398, "Q8_KV_R8", 32, 32, 4},
    {399, "Q8_K_R8", 256, 258, 0},
};

static const struct gguf_type_info unknown = {GGUF_TYPE_LIMIT, "unknown", 1, 0, 0};

enum { N_TYPES = sizeof types / sizeof types[0], N_LISTED = sizeof listed / sizeof listed[0] };
_Static_assert(N_TYPES + N_LISTED + 1 <= GGUF_MAX_LISTED, "the lists outgrew what the header says");

const struct gguf_type_info *gguf_type_info(uint32_t id)
{
    for (size_t i = 0; i < N_TYPES; i++) {
        if ((uint32_t)types[i].type == id)
            return &types[i];
    }
    return NULL;
}

const struct gguf_type_info *gguf_type_listed(uint32_t id)
{
    for (size_t i = 0; i < N_LISTED; i++) {
        if ((uint32_t)listed[i].type == id)
            return &listed[i];
    }
    const struct gguf_type_info *info = gguf_type_info(id);
    return info ? info : &unknown;
}

const char *gguf_type_name(uint32_t id)
{
    return gguf_type_listed(id)->name;
}

const struct gguf_type_info *gguf_type_at(size_t i)
{
    return i < N_TYPES ? &types[i] : NULL;
}
