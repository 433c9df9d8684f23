/** The rows of a compact base as head 0 of a comparison. */
#ifndef EVAL_REFERENCE_COMPACT_SOURCE_H
#define EVAL_REFERENCE_COMPACT_SOURCE_H

#include "eval/reference/compact_file.h"
#include "eval/scorer/reference_rows.h"
#include "eval/scorer/row_pages.h"

/** Where reading stands. Zero-initialise; release with eval_compact_source_close. */
struct eval_compact_reading {
    struct eval_row_pages pages; /* the first member */
    struct eval_compact_file *file;
    size_t first_row; /* of the file: row 0 of the plan */
    float *decoded;   /* rows that were not stored as float32: a call's */
};

/**
 * Rows of the windows from first_window on. float32 rows stay in the mapping, others are decoded;
 * each window is compared with its checksum before its first row.
 * reading, file (with its head): must outlive *out.
 * Fails: STATUS_MEMORY.
 */
enum status eval_compact_source_open(struct eval_row_source *out,
                                     struct eval_compact_reading *reading,
                                     struct eval_compact_file *file, size_t first_window,
                                     struct status_why *why);
void eval_compact_source_close(struct eval_compact_reading *reading);

#endif
