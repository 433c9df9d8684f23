/** What this program's own files have beside the sums as floats: docs/imatrix-files.md. */
#ifndef IMATRIX_FILE_EXACT_H
#define IMATRIX_FILE_EXACT_H

#include "clients/imatrix/imatrix.h"
#include "gguf/gguf.h"

/**
 * Read them into a matrix whose entries have `rounded` and `counts`: where the file has all of
 * them, the matrix becomes `exact`. A file that has none of them stays as it is.
 * Fails: STATUS_FORMAT (they contradict the floats, or each other), STATUS_MEMORY.
 */
enum status imat_read_exact(struct imat_matrix *m, const struct gguf_file *file,
                            struct status_why *why);

/** The strings of an array, or a string as one of them; where there is no such key, nothing is
 * changed. The caller frees all, on failure, too. Fails: STATUS_FORMAT, STATUS_MEMORY. */
enum status imat_read_strings(char ***out, size_t *n, const struct gguf_file *file, const char *key,
                              struct status_why *why);

/** Whether ranges are as a matrix has them, of n texts; else the sentence has the first that is
 * not. Fails: STATUS_FORMAT. */
enum status imat_check_ranges(const struct imat_range *ranges, size_t n_ranges, size_t n_texts,
                              struct status_why *why);

#endif
