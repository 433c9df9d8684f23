/**
 * How a compact base stores a row of hidden states, and what that loses.
 *
 * float32: as computed. Scaled float16: a float32 scale, a power of two that brings the row's
 * largest magnitude to [2^14, 2^15), then the elements divided by it as IEEE halves, rounded to
 * nearest even; an unused half at the end where their number is odd. No element overflows.
 */
#ifndef EVAL_REFERENCE_COMPACT_ROWS_H
#define EVAL_REFERENCE_COMPACT_ROWS_H

#include <stddef.h>
#include <stdint.h>

enum eval_compact_kind { EVAL_COMPACT_F32 = 0, EVAL_COMPACT_F16 = 1 };

/** What storing lost: sums over the elements of rows; zeros for float32. */
struct eval_compact_error {
    double lost;    /* of squares of what is lost */
    double squares; /* of the elements */
    double largest; /* over rows: sqrt(lost / squares) of the row */
};

/** "f32" or "f16". */
const char *eval_compact_kind_name(enum eval_compact_kind kind);

/** Bytes of a stored row of `width` elements; a multiple of 4. */
uint64_t eval_compact_row_bytes(enum eval_compact_kind kind, uint64_t width);

/** Store n_rows rows [n_rows, width] one after the other and add to *error. */
void eval_compact_rows_encode(enum eval_compact_kind kind, uint8_t *out, const float *rows,
                              size_t n_rows, size_t width, struct eval_compact_error *error);

/** The rows of eval_compact_rows_encode, exactly as they were stored. */
void eval_compact_rows_decode(enum eval_compact_kind kind, float *out, const uint8_t *bytes,
                              size_t n_rows, size_t width);

/** Add what other rows lost. */
void eval_compact_error_add(struct eval_compact_error *sum, const struct eval_compact_error *more);

/** sqrt(lost / squares); 0 where there is nothing to lose, NaN where rows are not finite. */
double eval_compact_error_rms(const struct eval_compact_error *error);

#endif
