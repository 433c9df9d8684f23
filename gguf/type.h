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
    GGUF_TYPE_LIMIT = 64 /* ids at or above this are unknown; arrays indexed by id have this size */
};

enum { GGUF_MAX_LISTED = 128 /* rows that gguf_type_listed() may return, all different */ };

/** What the reader knows of a type. */
struct gguf_type_info {
    enum gguf_type type;
    const char *name;     /* as people write it: "Q4_K" */
    uint32_t block_elems; /* elements packed together */
    uint32_t block_bytes; /* bytes of one such block; 0: not known */
    uint32_t row_prefix;  /* bytes that each row begins with; 0 for all that can be decoded */
};

/** The row of a type id, or NULL where this program cannot decode the type. */
const struct gguf_type_info *gguf_type_info(uint32_t id);

/**
 * A row for any id: also of types that cannot be decoded, but are known by name and usually by
 * size (Q8_1, I8, ik_llama.cpp's IQ4_K, ...); one row called "unknown" for all others.
 */
const struct gguf_type_info *gguf_type_listed(uint32_t id);

/** Its name, for error messages. Static storage. */
const char *gguf_type_name(uint32_t id);

/** Walk the list: the i-th supported type, NULL past the end. */
const struct gguf_type_info *gguf_type_at(size_t i);

#endif
