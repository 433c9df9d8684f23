/** Scales that lie apart from the codes that they multiply. */
#ifndef GGUF_SCALES_H
#define GGUF_SCALES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/** Whether both are the same scales in the same place, not whether the scales are equal. */
static inline bool gguf_scales_equal(const struct gguf_scales *a, const struct gguf_scales *b)
{
    return a->data == b->data && a->type == b->type && a->block_rows == b->block_rows &&
           a->block_cols == b->block_cols && a->n_cols == b->n_cols && a->first_row == b->first_row;
}

/** Those of the matrix that begins with this row. */
static inline struct gguf_scales gguf_scales_from(struct gguf_scales scales, size_t row)
{
    scales.first_row += row;
    return scales;
}

#endif
