/** What a tensor of the file should hold, as rows of one of the folder's that are changed. */
#ifndef CONVERSION_VIEW_H
#define CONVERSION_VIEW_H

#include "gguf/gguf.h"

/**
 * Row r of matrix i is row first + i * step + r of the tensor's rows, changed. All zero but for
 * tensor, ne, step and times (1): as it is.
 */
struct conv_view {
    const struct gguf_tensor *tensor;
    uint64_t ne[4];     /* the shape that it is seen with */
    int64_t first;      /* row of matrix 0 */
    uint64_t step;      /* rows from one matrix to the next */
    bool transposed;    /* value c of row r is value r of row c */
    int turn;           /* 1: halves of a head become neighbours, -1: neighbours become halves */
    uint32_t n_heads;   /* of `turn` */
    double times, plus; /* after rounding */
    enum gguf_type through; /* rounded to this type first; GGUF_TYPE_F32: not */
    double near;            /* so far values may be off, of themselves; 0: they are stored */
    const float *scales;    /* of each matrix, or one for all; NULL: 1 */
    uint64_t n_scales;
};

/** How far float32 arithmetic in another order may be off; two roundings to few bits. */
static const double conv_computed = 2e-6, conv_rounded = 0x1p-7;

/** A tensor as it is. */
struct conv_view conv_view_of(const struct gguf_tensor *tensor);

/** Numbers that a tensor's values are to be multiplied by ("X.scale"); NULL: there are none. */
const struct gguf_tensor *conv_scales(const struct gguf_file *file, const struct gguf_tensor *t);

/** The rows of all matrices. */
static inline uint64_t conv_view_rows(const struct conv_view *view)
{
    return view->ne[1] * view->ne[2] * view->ne[3];
}

/** Values are decoded in runs that begin at multiples of this, which is one of every block. */
enum { CONV_RUN = 256, CONV_PIECE = 4096 /* a multiple of it: the most at a time */ };

/**
 * Columns first_col .. first_col + n - 1 of row `row` of all rows. first_col: a multiple of
 * CONV_PIECE; n: to the row's end, or CONV_PIECE.
 */
void conv_view_read(const struct conv_view *view, uint64_t row, uint64_t first_col, size_t n,
                    float *y);

#endif
