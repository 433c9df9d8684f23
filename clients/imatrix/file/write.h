/**
 * Files of importance matrices: GGUF as llama-imatrix writes it, and the older format.
 *
 * A GGUF file of exact sums has further keys and tensors, which other programs pass over:
 * docs/imatrix-files.md lists them. It is read back as the same matrix, to the bit.
 */
#ifndef IMATRIX_FILE_WRITE_H
#define IMATRIX_FILE_WRITE_H

#include "base/file/atomic_file.h"
#include "clients/imatrix/imatrix.h"

/**
 * Names of tensors in a file are those of weights and a suffix, both by IMAT_SUMS and IMAT_COUNTS;
 * those of exact sums have the others, too.
 */
#define IMAT_SUMS   ".in_sum2"
#define IMAT_COUNTS ".counts"
#define IMAT_LOW    ".low"  /* I64 [in, matrices]: low 64 bits of imat_sum_remainder */
#define IMAT_HIGH   ".high" /* I64 [2, n]: index and high bits of those that need more than 64 */
#define IMAT_ROWS   ".rows" /* I64 [matrices]: counts, where a float cannot hold one */
#define IMAT_USE    ".use"  /* I64 [matrices, categories]: rows of experts by category */

/** The SHA-256 of each dataset's bytes: names are no paths, and may be the same. */
#define IMAT_HASHES "assay.imatrix.sha256"

/** Names of categories, strings that differ. */
#define IMAT_CATEGORIES "assay.imatrix.categories"

/**
 * Write in GGUF into a file that the caller commits, or abandons after a failure.
 * Sums are rounded to the nearest float once.
 * Fails: STATUS_UNSUPPORTED (no entry; a chunk size or count beyond 32 bits), STATUS_FORMAT,
 *        STATUS_MEMORY. Failures of the file stick there.
 */
enum status imat_write_gguf(const struct imat_matrix *m, struct base_file *file,
                            struct status_why *why);

/**
 * The same in the older format, which has means times chunks: counts of experts, all datasets but
 * the last and the chunk size are lost, entries without rows are left out.
 * Fails: STATUS_UNSUPPORTED (no entry with rows; a chunk size of 0; numbers beyond 31 bits).
 */
enum status imat_write_dat(const struct imat_matrix *m, struct base_file *file,
                           struct status_why *why);

/** The largest count of an entry, of all entries. */
uint64_t imat_most_rows(const struct imat_matrix *m);

#endif
