/**
 * Adding importance matrices up.
 *
 * Exact sums stay exact: parts of a run, in any order, give the matrix of the whole, and
 * imat_write_gguf its bytes. Sums that a file has as floats are added in double precision and
 * rounded once.
 */
#ifndef IMATRIX_ADD_H
#define IMATRIX_ADD_H

#include "base/buffer.h"
#include "clients/imatrix/imatrix.h"

/** A matrix, and the file that it is from. */
struct imat_part {
    const char *path;
    struct imat_matrix matrix;
};

/**
 * Add n parts, 1 or more.   out: zero-initialised; to be released on failure, too.
 * parts: those of the older format have their counts multiplied by the chunk size of the others.
 * notes: receives a line for each thing that may not be meant.
 * The chunk size is the first part's; datasets stand in the order of the parts, those of one run
 * once.
 * Fails: STATUS_FORMAT (matrices of one name with other shapes, no chunk size), STATUS_USAGE
 * (windows that are in two parts), STATUS_UNSUPPORTED (sums or counts beyond 63 bits),
 * STATUS_MEMORY.
 */
enum status imat_add(struct imat_matrix *out, const struct imat_part *parts, size_t n,
                     struct base_buffer *notes, struct status_why *why);

/** Texts and windows of the sum: imatrix/ranges.c. Arguments and failures are those of imat_add. */
enum status imat_add_texts(struct imat_matrix *out, const struct imat_part *parts, size_t n,
                           struct base_buffer *notes, struct status_why *why);

#endif
