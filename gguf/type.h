/** Tensor types: what the reader knows of each that a GGUF file can name, and where scales lie. */
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
    /* Only caches have it: 32 floats of 8 bits (E4M3), then a scale of 8. */
    GGUF_TYPE_MXFP8 = 404,
    /* Only caches of compressed rows have it: 128 floats of 8 bits (E4M3), a float32 scale. */
    GGUF_TYPE_FP8_DS_MLA = 405,
    /* Ids at or above this are unknown; arrays indexed by id have this size. */
    GGUF_TYPE_LIMIT = 410
};

enum {
    GGUF_WHOLE_NUMBERS = 26, /* I32: tables, which are not decoded */
    GGUF_FIRST_IK = 97,      /* ids from here on are ik_llama.cpp's; llama.cpp has none of them */
    GGUF_FIRST_FOLDER = 400, /* ids from here on are of folders and caches; files have none */
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
 * In a type with scale_elems, blocks have no scales: these lie apart (struct gguf_scales).
 */
struct gguf_type_info {
    enum gguf_type type;
    const char *name;     /* as people write it: "Q4_K" */
    uint32_t block_elems; /* elements packed together */
    uint32_t block_bytes; /* bytes of one such block; 0: not known */
    uint32_t row_prefix;  /* bytes that each row begins with */
    uint32_t bundle_rows; /* rows that are stored together; 1: each on its own */
    uint32_t scale_elems; /* elements of a block that share a scale that lies apart; 0: none */
    uint32_t packed_bits; /* its blocks are integers of so many bits, for which struct gguf_packed
                           * may have another place; 0: they are not */
    uint32_t tail_bytes;  /* after all rows of a tensor: its one scale, a float32, and what is
                           * unused; 0: none */
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

/** The row of a type of files that can be decoded, by its name in any case; NULL: there is none. */
const struct gguf_type_info *gguf_type_named(const char *name);

/** The program that alone has the type, by name; NULL: llama.cpp and ik_llama.cpp both have it. */
const char *gguf_type_program(uint32_t id);

/*
 * Scales that lie apart from the codes that they multiply.
 */

/** Whole numbers of few bits in words of 32, little-endian, the first one in the lowest bits. */
struct gguf_words {
    const void *data; /* the word of the first row and column, at any address */
    size_t row_step;  /* bytes from a word to that of the next rows, */
    size_t col_step;  /* and to that of the next columns */
    uint8_t bits;     /* of a number: 4 or 8 */
    bool of_rows;     /* a word has neighbouring rows of a column, else columns of a row */
    bool turned;      /* of rows: the even ones come first, then the odd ones (AWQ) */
};

/** Numbers of a word. */
static inline size_t gguf_words_each(const struct gguf_words *words)
{
    return 32u / words->bits;
}

/** The word that holds a row's number of a column. */
static inline const uint8_t *gguf_words_at(const struct gguf_words *words, size_t row, size_t col)
{
    row /= words->of_rows ? gguf_words_each(words) : 1;
    col /= words->of_rows ? 1 : gguf_words_each(words);
    return (const uint8_t *)words->data + row * words->row_step + col * words->col_step;
}

/**
 * How a matrix of integers lies, that are multiplied by scales after a zero point was subtracted.
 * Rows are those of the whole stored matrix. Its tensor's `data` and the scales' are where the
 * words and the scales begin, and have as many bytes as if rows followed each other.
 */
struct gguf_packed {
    struct gguf_words codes;
    struct gguf_words zeros; /* a zero point for each scale; data NULL: all are 2^(bits - 1) */
    int zero_more;           /* what is added to each of `zeros` */
    bool symmetric;          /* each must be 2^(bits - 1) */
    size_t scale_row_step, scale_col_step; /* bytes from a scale to that of the next row, columns */
    const uint32_t *groups; /* [columns]: which of its row's scales each has; NULL: block_cols
                             * neighbours share one */
};

/** How a scale is stored. */
enum gguf_scale_type {
    GGUF_SCALE_F32,
    GGUF_SCALE_F16,
    GGUF_SCALE_BF16,
    GGUF_SCALE_E8M0, /* 2^(code - 127); 0xff is NaN */
    GGUF_SCALE_E4M3
};

/** Codes in a row, or rows, that share the one scale of a matrix. */
#define GGUF_SCALES_ALL SIZE_MAX

/**
 * The scales of a matrix, one for each block of its codes. Rows of blocks follow one another. The
 * blocks at the ends of rows and columns may be partial. Zero-initialised, every scale is 1.
 *
 * Codes become `code * scale` in float32, the scale being converted exactly. Types whose copied
 * blocks have the stored scale itself (MXFP4_APART: E8M0, NVFP4_APART: E4M3) take no other type.
 */
struct gguf_scales {
    const void *data; /* of the first block, at any address; NULL: every scale is 1 */
    enum gguf_scale_type type;
    size_t block_rows; /* rows that share a scale: 1 or more */
    size_t block_cols; /* columns: a multiple of the type's scale_elems, or at least the row's */
    size_t n_cols;     /* scales in a row of them: ceil(columns / block_cols) */
    size_t first_row;  /* row 0 of the matrix is this row of the first block, or of a later one */
    const struct gguf_packed *packed; /* of types of packed integers; NULL: words follow each other
                                       * in a row, and all zero points are 2^(bits - 1) */
};

/** Bytes of one scale. */
static inline size_t gguf_scale_bytes(enum gguf_scale_type type)
{
    return type == GGUF_SCALE_F32 ? 4 : type == GGUF_SCALE_F16 || type == GGUF_SCALE_BF16 ? 2 : 1;
}

/** Bytes of a row of scales. */
static inline size_t gguf_scales_row_bytes(const struct gguf_scales *scales)
{
    return scales->n_cols * gguf_scale_bytes(scales->type);
}

/** Where the scales of a row begin; not with data NULL. */
static inline const uint8_t *gguf_scales_row(const struct gguf_scales *scales, size_t row)
{
    return (const uint8_t *)scales->data +
           (scales->first_row + row) / scales->block_rows * gguf_scales_row_bytes(scales);
}

/** Whether rows of so many columns can have these scales, so many of them (scale_elems) one. */
static inline bool gguf_scales_fit(const struct gguf_scales *s, size_t n_cols, size_t scale_elems)
{
    return !s->data || (scale_elems > 0 && s->block_rows > 0 && s->block_cols > 0 &&
                        (s->block_cols >= n_cols || s->block_cols % scale_elems == 0) &&
                        s->n_cols == (n_cols - 1) / s->block_cols + 1);
}

/** Whether both are the same scales in the same place, not whether the scales are equal. */
static inline bool gguf_scales_equal(const struct gguf_scales *a, const struct gguf_scales *b)
{
    return a->data == b->data && a->type == b->type && a->block_rows == b->block_rows &&
           a->block_cols == b->block_cols && a->n_cols == b->n_cols &&
           a->first_row == b->first_row && a->packed == b->packed;
}

/** Those of the matrix that begins with this row. */
static inline struct gguf_scales gguf_scales_from(struct gguf_scales scales, size_t row)
{
    scales.first_row += row;
    return scales;
}

#endif
