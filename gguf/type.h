/** Tensor types: what the reader knows of each that a GGUF file can name. */
#ifndef GGUF_TYPE_H
#define GGUF_TYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gguf/type_list.h"

/** GGUF_TYPE_F32, GGUF_TYPE_F16, ...: their ids in files. */
enum gguf_type {
#define GGUF_TYPE_ID(TYPE, name, id, ...) GGUF_TYPE_##TYPE = (id),
    GGUF_EACH_TYPE(GGUF_TYPE_ID)
#undef GGUF_TYPE_ID
    /* Ids at or above this are unknown; arrays indexed by id have this size. */
    GGUF_TYPE_LIMIT = 404
};

enum {
    GGUF_WHOLE_NUMBERS = 26, /* I32: tables, which are not decoded */
    GGUF_FIRST_IK = 97,      /* ids from here on are ik_llama.cpp's; llama.cpp has none of them */
    GGUF_FIRST_FOLDER = 400, /* ids from here on are of tensors of folders; files have none */
    GGUF_MAX_LISTED = 128,   /* rows that gguf_type_listed() may return, all different */
    GGUF_MAX_BUNDLE = 16     /* of bundle_rows */
};

/**
 * What the reader knows of a type.
 *
 * A row is its prefix and then its blocks. In a type with bundles, so many neighbouring rows of a
 * matrix are stored together: the prefixes of the rows one after the other, then, for each block of
 * columns, the rows' blocks woven into one. A bundle has the bytes of its rows.
 *
 * In a type with scale_elems, blocks have no scales: these lie apart (gguf/scales.h).
 */
struct gguf_type_info {
    enum gguf_type type;
    const char *name;     /* as people write it: "Q4_K" */
    uint32_t block_elems; /* elements packed together */
    uint32_t block_bytes; /* bytes of one such block; 0: not known */
    uint32_t row_prefix;  /* bytes that each row begins with */
    uint32_t bundle_rows; /* rows that are stored together; 1: each on its own */
    uint32_t scale_elems; /* elements of a block that share a scale that lies apart; 0: none */
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
