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
 * Ids that exist but are not decoded: activation formats that no stored weight uses, formats
 * withdrawn from GGUF, and plain integers and doubles.
 */
static const struct {
    uint32_t id;
    const char *name;
} refused[] = {
    {4, "Q4_2"},      {5, "Q4_3"},      {9, "Q8_1"},        {15, "Q8_K"},       {24, "I8"},
    {25, "I16"},      {26, "I32"},      {27, "I64"},        {28, "F64"},        {31, "Q4_0_4_4"},
    {32, "Q4_0_4_8"}, {33, "Q4_0_8_8"}, {36, "IQ4_NL_4_4"}, {37, "IQ4_NL_4_8"}, {38, "IQ4_NL_8_8"},
};

enum { N_TYPES = sizeof types / sizeof types[0], N_REFUSED = sizeof refused / sizeof refused[0] };

const struct gguf_type_info *gguf_type_info(uint32_t id)
{
    for (size_t i = 0; i < N_TYPES; i++) {
        if ((uint32_t)types[i].type == id)
            return &types[i];
    }
    return NULL;
}

const char *gguf_type_name(uint32_t id)
{
    const struct gguf_type_info *info = gguf_type_info(id);
    if (info)
        return info->name;
    for (size_t i = 0; i < N_REFUSED; i++) {
        if (refused[i].id == id)
            return refused[i].name;
    }
    return "unknown";
}

const struct gguf_type_info *gguf_type_at(size_t i)
{
    return i < N_TYPES ? &types[i] : NULL;
}
