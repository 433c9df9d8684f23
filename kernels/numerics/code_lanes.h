/**
 * Recorded rows (struct kern_recorded) to and from lanes: a row per lane, the codes of
 * consecutive tokens down the rows.
 */
#ifndef KERNELS_NUMERICS_CODE_LANES_H
#define KERNELS_NUMERICS_CODE_LANES_H

#include "kernels/numerics/lanes.h"

enum {
    KERN_CODE_HEADER = 4, /* codes that hold scale and floor */
    KERN_CODE_MAX = 65535
};

/** The records of KERN_LANES rows. */
struct kern_code_rows {
    const uint16_t *codes[KERN_LANES]; /* that of token 0 first */
    float scale[KERN_LANES], floor[KERN_LANES];
};

/** Where consecutive tokens of the rows are decoded to: log p = fmaf(scale, code, floor). */
struct kern_decoded {
    float *logits; /* [n_rows, stride], lanes in columns 0..KERN_LANES-1 */
    size_t stride;
    size_t n_rows;
    size_t first_row; /* token id of row 0 */
};

/**
 * How rows of logits become codes, in double:
 * code = l > floor ? (l - floor) / scale, rounded, halves to even, at most KERN_CODE_MAX : 0
 */
struct kern_encoded_rows {
    uint16_t *codes[KERN_LANES]; /* out: that of token 0 first */
    float scale[KERN_LANES], floor[KERN_LANES];
    size_t n_lanes; /* the others have no codes */
};

/** The rows of n_lanes records, n_lanes >= 1; lanes beyond repeat the first one's. */
void kern_code_rows_read(struct kern_code_rows *rows, const uint16_t *records, size_t stride,
                         size_t n_lanes);

/** log p of one token, as decoding gives it. */
float kern_code_log_prob(const uint16_t *record, size_t token);

#endif
