/**
 * The one place that knows how rows are stored: a prefix and blocks, each row on its own or several
 * in a bundle (gguf/type.h), scales within or apart (struct gguf_scales). Decoders, integers and
 * devices take blocks that lie one after the other and say everything themselves: the file's bytes
 * where rows are nothing but such blocks. Else a copy, in which each block begins with what the
 * prefix says, or with its scales.
 */
#ifndef KERNELS_QUANT_ROWS_H
#define KERNELS_QUANT_ROWS_H

#include <stdbool.h>

#include "gguf/file.h"
#include "kernels/quant/registry.h"

/** Rows of a matrix in a file's bytes. */
struct kern_rows {
    enum gguf_type type;
    const void *data;     /* of row 0, any alignment */
    size_t row_bytes;     /* from one row to the next; rows of a bundle lie in so many times that */
    const int32_t *which; /* the number of the stored row of each; NULL: its own */
    struct gguf_scales scales; /* by numbers of stored rows; of types with scale_elems */
    size_t col_step; /* bytes from one element of a row to the next, of a type whose elements are
                      * bytes; 0: none between them */
};

/** No type's blocks have more bytes than this per element. */
enum { KERN_ROWS_WORK_BYTES = 4 };

/** Whether rows have to be copied, or the file's bytes serve; with `col_step` they are copied, too.
 */
bool kern_rows_are_copied(enum gguf_type type);

/**
 * Columns first_col .. first_col + n - 1 of a row as blocks for the type's decoder. Both numbers
 * are multiples of block_elems.   work: KERN_ROWS_WORK_BYTES * n bytes, where rows are copied.
 * Returns them: within `data`, or work.
 */
const void *kern_rows_blocks(const struct kern_rows *rows, size_t row, size_t first_col, size_t n,
                             void *work);

/** The same columns decoded.   y: n floats.   decode: the type's, of any ISA. */
void kern_rows_decode(const struct kern_rows *rows, kern_decode_fn *decode, size_t row,
                      size_t first_col, size_t n, float *y);

/** The same of a file's tensor, by the definition of its type, which must have a decoder. */
void kern_tensor_decode(const struct gguf_tensor *tensor, uint64_t row, size_t first_col, size_t n,
                        float *y);

#endif
