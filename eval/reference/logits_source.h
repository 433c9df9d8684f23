/** The records of a base-logits file as head 0 of a comparison. */
#ifndef EVAL_REFERENCE_LOGITS_SOURCE_H
#define EVAL_REFERENCE_LOGITS_SOURCE_H

#include "eval/reference/logits_file.h"
#include "eval/scorer/reference_rows.h"
#include "eval/scorer/row_pages.h"

/** Where reading stands; set up by eval_logits_source. */
struct eval_logits_reading {
    struct eval_row_pages pages; /* the first member */
    const struct eval_logits_file *file;
    size_t first_row; /* of the file: row 0 of the plan */
};

/**
 * Rows of the chunks from first_chunk on. `check` refuses records that no model wrote: a scale or a
 * floor that is not finite, probabilities that do not add up to 1 within what the format explains.
 * reading, file: must outlive the source.   cut: see struct kern_recorded.
 */
struct eval_row_source eval_logits_source(struct eval_logits_reading *reading,
                                          const struct eval_logits_file *file, size_t first_chunk,
                                          double cut);

#endif
