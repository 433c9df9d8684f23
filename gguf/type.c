#include "gguf/type.h"

#include <strings.h>

#define ROW(TYPE, name, id, elems, bytes, prefix, rows, ...)                                       \
    [id] = {GGUF_TYPE_##TYPE, #TYPE, elems, bytes, prefix, rows},
#define PACKED(TYPE, bits)                                                                         \
    [GGUF_TYPE_##TYPE].scale_elems = 32, [GGUF_TYPE_##TYPE].packed_bits = (bits),
/* By id; those without a name are no types. */
/* clang-format off */
static const struct gguf_type_info types[GGUF_TYPE_LIMIT] = {
    GGUF_EACH_TYPE(ROW)
    [GGUF_TYPE_I2_S].scale_elems = 128,
    [GGUF_TYPE_I2_S].tail_bytes = 32,
    [GGUF_TYPE_F8_E4M3].scale_elems = 32,
    [GGUF_TYPE_F8_E5M2].scale_elems = 32,
    [GGUF_TYPE_MXFP4_APART].scale_elems = 32,
    [GGUF_TYPE_NVFP4_APART].scale_elems = 16,
    PACKED(INT4_APART, 4)
    PACKED(INT8_APART, 8)
    PACKED(INT4_VALUES, 4)
    PACKED(INT8_VALUES, 8)
};
/* clang-format on */

/*
 * Types that exist but are not decoded: formats of activations and caches that no stored weight
 * uses, formats withdrawn from GGUF, plain integers and doubles; 64 to 66 are of a fork of
 * llama.cpp, those from 97 on of ik_llama.cpp.
 */
static const struct gguf_type_info listed[] = {
    /* id, name, elements of a block, bytes of a block (0: not known), then as above */
    {4, "Q4_2", 1, 0, 0, 1},
    {5, "Q4_3", 1, 0, 0, 1},
    {9, "Q8_1", 32, 36, 0, 1},
    {15, "Q8_K", 256, 292, 0, 1},
    {24, "I8", 1, 1, 0, 1},
    {25, "I16", 1, 2, 0, 1},
    {26, "I32", 1, 4, 0, 1},
    {27, "I64", 1, 8, 0, 1},
    {28, "F64", 1, 8, 0, 1},
    {31, "Q4_0_4_4", 32, 18, 0, 1},
    {32, "Q4_0_4_8", 32, 18, 0, 1},
    {33, "Q4_0_8_8", 32, 18, 0, 1},
    {37, "IQ4_NL_4_8", 32, 18, 0, 1},
    {38, "IQ4_NL_8_8", 32, 18, 0, 1},
    {64, "IQ1_XS", 1, 0, 0, 1},
    {65, "IQ1_XXS", 1, 0, 0, 1},
    {66, "IQ1_XXXS", 1, 0, 0, 1},
    {97, "Q8_0_X4", 1, 0, 0, 1},
    {98, "Q8_1_X4", 1, 0, 0, 1},
    {99, "Q8_2_X4", 1, 0, 0, 1},
    {136, "Q8_K64", 1, 0, 0, 1},
    {142, "IQ2_TN", 1, 0, 0, 1},
    {143, "IQ1_TN", 1, 0, 0, 1},
    {147, "Q8_K16", 1, 0, 0, 1},
    {148, "Q8_K32", 1, 0, 0, 1},
    {149, "Q8_KR8", 1, 0, 0, 1},
    {150, "Q8_K128", 1, 0, 0, 1},
    {GGUF_TYPE_MXFP8, "MXFP8", 32, 33, 0, 1},
    {GGUF_TYPE_FP8_DS_MLA, "FP8_DS_MLA", 128, 132, 0, 1},
};

static const struct gguf_type_info unknown = {GGUF_TYPE_LIMIT, "unknown", 1, 0, 0, 1};

enum { N_LISTED = sizeof listed / sizeof listed[0] };

const struct gguf_type_info *gguf_type_info(uint32_t id)
{
    return id < GGUF_TYPE_LIMIT && types[id].name ? &types[id] : NULL;
}

const struct gguf_type_info *gguf_type_listed(uint32_t id)
{
    for (size_t i = 0; i < N_LISTED; i++)
        if ((uint32_t)listed[i].type == id)
            return &listed[i];
    const struct gguf_type_info *info = gguf_type_info(id);
    return info ? info : &unknown;
}

const char *gguf_type_name(uint32_t id)
{
    return gguf_type_listed(id)->name;
}

const struct gguf_type_info *gguf_type_named(const char *name)
{
    for (uint32_t id = 0; id < GGUF_FIRST_FOLDER; id++)
        if (types[id].name && strcasecmp(types[id].name, name) == 0)
            return &types[id];
    return NULL;
}

bool gguf_row_bytes(const struct gguf_type_info *type, uint64_t n_cols, uint64_t *out)
{
    return !__builtin_mul_overflow(n_cols / type->block_elems, type->block_bytes, out) &&
           !__builtin_add_overflow(*out, type->row_prefix, out);
}

const char *gguf_type_program(uint32_t id)
{
    if (id == GGUF_TYPE_I2_S || (id >= GGUF_FIRST_IK && id < GGUF_FIRST_FOLDER))
        return "ik_llama.cpp";
    bool llama = id == GGUF_TYPE_TQ1_0 || id == GGUF_TYPE_TQ2_0 || id == GGUF_TYPE_NVFP4 ||
                 id == GGUF_TYPE_Q2_0;
    return llama ? "llama.cpp" : NULL;
}
