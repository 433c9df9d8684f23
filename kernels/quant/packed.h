/**
 * Rows of packed integers (struct gguf_packed) as blocks that say everything themselves: of Q8_KV,
 * a scale and 32 differences of a code and its zero point. Where columns have scales in any order,
 * or differences do not fit 8 bits, the types INT4_VALUES and INT8_VALUES have blocks of F32: each
 * is scale * difference, rounded once, as the decoder of Q8_KV has it.
 */
#ifndef KERNELS_QUANT_PACKED_H
#define KERNELS_QUANT_PACKED_H

#include "kernels/quant/rows.h"

/**
 * Columns first_col .. first_col + n - 1 of a stored row. Both numbers are multiples of 32.
 * rows: of a type with packed_bits.   to: out, at most KERN_ROWS_WORK_BYTES * n bytes.
 */
void kern_packed_blocks(const struct kern_rows *rows, size_t row, size_t first_col, size_t n,
                        uint8_t *to);

/** A zero point that is not what it must be. */
struct kern_packed_zero {
    size_t row, group;
    int value; /* as stored */
};
/**
 * The first zero point of n_rows rows that cannot be right: another one than 2^(bits - 1) of
 * symmetric numbers; or the largest number that is to become 1 larger, which some programs take for
 * 0 and others for 2^bits. False: there is none.
 */
bool kern_packed_find_wrong(const struct gguf_scales *scales, size_t n_rows,
                            struct kern_packed_zero *found);

#endif
