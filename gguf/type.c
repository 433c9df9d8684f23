#include "gguf/type.h"

#define BUNDLED(id, elems, bytes, prefix, rows)                                                    \
    [GGUF_TYPE_##id] = {GGUF_TYPE_##id, #id, elems, bytes, prefix, rows}
#define PREFIXED(id, elems, bytes, prefix) BUNDLED(id, elems, bytes, prefix, 1)
#define PLAIN(id, elems, bytes)            BUNDLED(id, elems, bytes, 0, 1)

/* By id; those without a name are no types. */
static const struct gguf_type_info types[GGUF_TYPE_LIMIT] = {
    /* elements of a block, bytes of a block, bytes before each row, rows stored together */
    /* clang-format off */
    PLAIN(F32, 1, 4), PLAIN(F16, 1, 2), PLAIN(BF16, 1, 2), PLAIN(Q4_0, 32, 18), PLAIN(Q4_1, 32, 20),
    PLAIN(Q5_0, 32, 22), PLAIN(Q5_1, 32, 24), PLAIN(Q8_0, 32, 34), PLAIN(Q2_K, 256, 84),
    PLAIN(Q3_K, 256, 110), PLAIN(Q4_K, 256, 144), PLAIN(Q5_K, 256, 176), PLAIN(Q6_K, 256, 210),
    PLAIN(IQ2_XXS, 256, 66), PLAIN(IQ2_XS, 256, 74), PLAIN(IQ3_XXS, 256, 98), PLAIN(IQ1_S, 256, 50),
    PLAIN(IQ4_NL, 32, 18), PLAIN(IQ3_S, 256, 110), PLAIN(IQ2_S, 256, 82), PLAIN(IQ4_XS, 256, 136),
    PLAIN(IQ1_M, 256, 56), PLAIN(TQ1_0, 256, 54), PLAIN(TQ2_0, 256, 66), PLAIN(MXFP4, 32, 17),
    PLAIN(NVFP4, 64, 36), PLAIN(Q1_0, 128, 18), PLAIN(Q2_0, 64, 18),
    /* ik_llama.cpp's */
    PLAIN(Q6_0, 32, 26), PREFIXED(IQ1_BN, 64, 13, 2), PREFIXED(IQ2_BN, 64, 16, 4),
    PLAIN(IQ2_K, 256, 76), PLAIN(IQ3_K, 256, 110), PLAIN(IQ4_K, 256, 144), PLAIN(IQ5_K, 256, 176),
    PLAIN(IQ6_K, 256, 212), PREFIXED(IQ4_KS, 256, 136, 4), PREFIXED(IQ2_KS, 256, 70, 2),
    PREFIXED(IQ4_KSS, 256, 128, 4), PREFIXED(Q8_KV, 32, 32, 8), PREFIXED(IQ5_KS, 256, 168, 4),
    PREFIXED(IQ2_KT, 256, 68, 4), PREFIXED(IQ3_KT, 256, 100, 4), PREFIXED(IQ4_KT, 256, 128, 4),
    PREFIXED(IQ3_KS, 256, 102, 2), PREFIXED(IQ2_KL, 256, 86, 2), PREFIXED(IQ1_KT, 256, 56, 4),
    BUNDLED(Q4_0_R8, 32, 18, 0, 8), BUNDLED(Q5_0_R4, 32, 22, 0, 4), BUNDLED(Q8_0_R8, 32, 34, 0, 8),
    BUNDLED(Q2_K_R4, 256, 84, 0, 4), BUNDLED(Q3_K_R4, 256, 110, 0, 4),
    BUNDLED(Q4_K_R4, 256, 144, 0, 4), BUNDLED(Q5_K_R4, 256, 176, 0, 4),
    BUNDLED(Q6_K_R4, 256, 210, 0, 4), BUNDLED(IQ2_XXS_R4, 256, 66, 0, 4),
    BUNDLED(IQ2_XS_R4, 256, 74, 0, 4), BUNDLED(IQ3_XXS_R4, 256, 98, 0, 4),
    BUNDLED(IQ1_S_R4, 32, 6, 2, 4), BUNDLED(IQ4_NL_R4, 32, 18, 0, 4),
    BUNDLED(IQ3_S_R4, 256, 110, 0, 4), BUNDLED(IQ2_S_R4, 256, 82, 0, 4),
    BUNDLED(IQ4_XS_R8, 256, 136, 0, 8), BUNDLED(IQ1_M_R4, 32, 7, 2, 4),
    BUNDLED(BF16_R16, 2, 4, 0, 16), BUNDLED(Q6_0_R4, 32, 26, 0, 4),
    BUNDLED(IQ2_BN_R4, 64, 16, 4, 4), BUNDLED(IQ2_K_R4, 256, 76, 0, 4),
    BUNDLED(IQ3_K_R4, 256, 110, 0, 4), BUNDLED(IQ4_K_R4, 256, 144, 0, 4),
    BUNDLED(IQ5_K_R4, 256, 176, 0, 4), BUNDLED(IQ4_KS_R4, 256, 136, 4, 4),
    BUNDLED(IQ5_KS_R4, 256, 168, 4, 4), BUNDLED(MXFP4_R8, 32, 17, 0, 8),
    BUNDLED(Q8_K_R16, 256, 258, 0, 16), BUNDLED(Q8_KV_R8, 32, 32, 4, 8),
    BUNDLED(Q8_K_R8, 256, 258, 0, 8),
    /* clang-format on */
};

/*
 * Types that exist but are not decoded: activation formats that no stored weight uses, formats
 * withdrawn from GGUF, plain integers and doubles; I2_S and from 97 on those of ik_llama.cpp.
 */
static const struct gguf_type_info listed[] = {
    /* id, name, elements of a block, bytes of a block (0: not known), then as above */
    {4, "Q4_2", 1, 0, 0, 1},          {5, "Q4_3", 1, 0, 0, 1},
    {9, "Q8_1", 32, 36, 0, 1},        {15, "Q8_K", 256, 292, 0, 1},
    {24, "I8", 1, 1, 0, 1},           {25, "I16", 1, 2, 0, 1},
    {26, "I32", 1, 4, 0, 1},          {27, "I64", 1, 8, 0, 1},
    {28, "F64", 1, 8, 0, 1},          {31, "Q4_0_4_4", 32, 18, 0, 1},
    {32, "Q4_0_4_8", 32, 18, 0, 1},   {33, "Q4_0_8_8", 32, 18, 0, 1},
    {36, "I2_S", 1, 0, 0, 1},         {37, "IQ4_NL_4_8", 32, 18, 0, 1},
    {38, "IQ4_NL_8_8", 32, 18, 0, 1}, {97, "Q8_0_X4", 1, 0, 0, 1},
    {98, "Q8_1_X4", 1, 0, 0, 1},      {99, "Q8_2_X4", 1, 0, 0, 1},
    {136, "Q8_K64", 1, 0, 0, 1},      {142, "IQ2_TN", 1, 0, 0, 1},
    {143, "IQ1_TN", 1, 0, 0, 1},      {147, "Q8_K16", 1, 0, 0, 1},
    {148, "Q8_K32", 1, 0, 0, 1},      {149, "Q8_KR8", 1, 0, 0, 1},
    {150, "Q8_K128", 1, 0, 0, 1},
};

static const struct gguf_type_info unknown = {GGUF_TYPE_LIMIT, "unknown", 1, 0, 0, 1};

enum { N_LISTED = sizeof listed / sizeof listed[0] };

const struct gguf_type_info *gguf_type_info(uint32_t id)
{
    return id < GGUF_TYPE_LIMIT && types[id].name ? &types[id] : NULL;
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

bool gguf_row_bytes(const struct gguf_type_info *type, uint64_t n_cols, uint64_t *out)
{
    return !__builtin_mul_overflow(n_cols / type->block_elems, type->block_bytes, out) &&
           !__builtin_add_overflow(*out, type->row_prefix, out);
}

const char *gguf_type_program(uint32_t id)
{
    if (id >= GGUF_FIRST_IK)
        return "ik_llama.cpp";
    bool llama = id == GGUF_TYPE_TQ1_0 || id == GGUF_TYPE_TQ2_0 || id == GGUF_TYPE_NVFP4 ||
                 id == GGUF_TYPE_Q2_0;
    return llama ? "llama.cpp" : NULL;
}
