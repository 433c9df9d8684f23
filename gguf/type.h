/**
 * The list of tensor types: one row per type id that a GGUF file can name.
 * Source of ids and block layouts: the GGUF format; docs/formats.md has the formulas.
 */
#ifndef GGUF_TYPE_H
#define GGUF_TYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum gguf_type {
    GGUF_TYPE_F32 = 0,
    GGUF_TYPE_F16 = 1,
    GGUF_TYPE_Q4_0 = 2,
    GGUF_TYPE_Q4_1 = 3,
    GGUF_TYPE_Q5_0 = 6,
    GGUF_TYPE_Q5_1 = 7,
    GGUF_TYPE_Q8_0 = 8,
    GGUF_TYPE_Q2_K = 10,
    GGUF_TYPE_Q3_K = 11,
    GGUF_TYPE_Q4_K = 12,
    GGUF_TYPE_Q5_K = 13,
    GGUF_TYPE_Q6_K = 14,
    GGUF_TYPE_IQ2_XXS = 16,
    GGUF_TYPE_IQ2_XS = 17,
    GGUF_TYPE_IQ3_XXS = 18,
    GGUF_TYPE_IQ1_S = 19,
    GGUF_TYPE_IQ4_NL = 20,
    GGUF_TYPE_IQ3_S = 21,
    GGUF_TYPE_IQ2_S = 22,
    GGUF_TYPE_IQ4_XS = 23,
    GGUF_TYPE_IQ1_M = 29,
    GGUF_TYPE_BF16 = 30,
    GGUF_TYPE_TQ1_0 = 34,
    GGUF_TYPE_TQ2_0 = 35,
    GGUF_TYPE_MXFP4 = 39,
    GGUF_TYPE_NVFP4 = 40,
    GGUF_TYPE_Q1_0 = 41,
    GGUF_TYPE_Q2_0 = 42,
    /* ik_llama.cpp's */
    GGUF_TYPE_Q6_0 = 133,
    GGUF_TYPE_IQ1_BN = 134,
    GGUF_TYPE_IQ2_BN = 135,
    GGUF_TYPE_IQ2_K = 137,
    GGUF_TYPE_IQ3_K = 138,
    GGUF_TYPE_IQ4_K = 139,
    GGUF_TYPE_IQ5_K = 140,
    GGUF_TYPE_IQ6_K = 141,
    GGUF_TYPE_IQ4_KS = 144,
    GGUF_TYPE_IQ2_KS = 145,
    GGUF_TYPE_IQ4_KSS = 146,
    GGUF_TYPE_Q8_KV = 151,
    GGUF_TYPE_IQ5_KS = 152,
    GGUF_TYPE_IQ2_KT = 153,
    GGUF_TYPE_IQ3_KT = 154,
    GGUF_TYPE_IQ4_KT = 155,
    GGUF_TYPE_IQ3_KS = 156,
    GGUF_TYPE_IQ2_KL = 157,
    GGUF_TYPE_IQ1_KT = 158,
    GGUF_TYPE_Q4_0_R8 = 202,
    GGUF_TYPE_Q5_0_R4 = 206,
    GGUF_TYPE_Q8_0_R8 = 208,
    GGUF_TYPE_Q2_K_R4 = 210,
    GGUF_TYPE_Q3_K_R4 = 211,
    GGUF_TYPE_Q4_K_R4 = 212,
    GGUF_TYPE_Q5_K_R4 = 213,
    GGUF_TYPE_Q6_K_R4 = 214,
    GGUF_TYPE_IQ2_XXS_R4 = 216,
    GGUF_TYPE_IQ2_XS_R4 = 217,
    GGUF_TYPE_IQ3_XXS_R4 = 218,
    GGUF_TYPE_IQ1_S_R4 = 219,
    GGUF_TYPE_IQ4_NL_R4 = 220,
    GGUF_TYPE_IQ3_S_R4 = 221,
    GGUF_TYPE_IQ2_S_R4 = 222,
    GGUF_TYPE_IQ4_XS_R8 = 223,
    GGUF_TYPE_IQ1_M_R4 = 229,
    GGUF_TYPE_BF16_R16 = 230,
    GGUF_TYPE_Q6_0_R4 = 233,
    GGUF_TYPE_IQ2_BN_R4 = 335,
    GGUF_TYPE_IQ2_K_R4 = 337,
    GGUF_TYPE_IQ3_K_R4 = 338,
    GGUF_TYPE_IQ4_K_R4 = 339,
    GGUF_TYPE_IQ5_K_R4 = 340,
    GGUF_TYPE_IQ4_KS_R4 = 344,
    GGUF_TYPE_IQ5_KS_R4 = 352,
    GGUF_TYPE_MXFP4_R8 = 353,
    GGUF_TYPE_Q8_K_R16 = 397,
    GGUF_TYPE_Q8_KV_R8 = 398,
    GGUF_TYPE_Q8_K_R8 = 399,
    GGUF_TYPE_LIMIT =
        400 /* ids at or above this are unknown; arrays indexed by id have this size */
};

enum {
    GGUF_FIRST_IK = 97,    /* ids from here on are ik_llama.cpp's; llama.cpp has none of them */
    GGUF_MAX_LISTED = 128, /* rows that gguf_type_listed() may return, all different */
    GGUF_MAX_BUNDLE = 16   /* of bundle_rows */
};

/**
 * What the reader knows of a type.
 *
 * A row is its prefix and then its blocks. Of a type with bundles so many neighbouring rows of a
 * matrix share one place: the prefixes of the rows one after the other, then, for each block of
 * columns, the rows' blocks woven into one. A bundle has the bytes of its rows.
 */
struct gguf_type_info {
    enum gguf_type type;
    const char *name;     /* as people write it: "Q4_K" */
    uint32_t block_elems; /* elements packed together */
    uint32_t block_bytes; /* bytes of one such block; 0: not known */
    uint32_t row_prefix;  /* bytes that each row begins with */
    uint32_t bundle_rows; /* rows that are stored together; 1: each on its own */
};

/**
 * The bytes of a row of n_cols elements, a multiple of block_elems; false where they are 2^64 or
 * more. The rows of a matrix lie one after the other without gaps, bundles likewise.
 */
bool gguf_row_bytes(const struct gguf_type_info *type, uint64_t n_cols, uint64_t *out);

/** The row of a type id, or NULL where this program cannot decode the type. */
const struct gguf_type_info *gguf_type_info(uint32_t id);

/**
 * A row for any id: also of types that cannot be decoded, but are known by name and usually by
 * size (Q8_1, I8, ik_llama.cpp's IQ4_K, ...); one row called "unknown" for all others.
 */
const struct gguf_type_info *gguf_type_listed(uint32_t id);

/** Its name, for error messages. Static storage. */
const char *gguf_type_name(uint32_t id);

/** The program that alone has the type, by name; NULL: llama.cpp and ik_llama.cpp both have it. */
const char *gguf_type_program(uint32_t id);

#endif
