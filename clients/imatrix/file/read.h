/**
 * Reading files of importance matrices: GGUF (this program's, llama-imatrix's) and the older
 * format. Files are hostile: what cannot be right is refused, naming file, field, what was found
 * and what was expected.
 */
#ifndef IMATRIX_FILE_READ_H
#define IMATRIX_FILE_READ_H

#include "clients/imatrix/imatrix.h"
#include "gguf/gguf.h"

/** What the beginning of a file looks like. */
enum imat_kind {
    IMAT_OTHER, /* also: it cannot be read */
    IMAT_GGUF,  /* GGUF, of whatever */
    IMAT_DAT    /* the older format, which has no magic number: a count, a length, a name */
};
enum imat_kind imat_kind_of(const char *path);

/** Whether a GGUF file says that it is an importance matrix, or has tensors of one. */
bool imat_is_matrix(const struct gguf_file *file);

/**
 * Read a file of either format.   out: zero-initialised; to be released on failure, too.
 * Counts in a file of the older format are those of chunks: see `counts_lost`; chunk_size is 1.
 * In GGUF the keys may be absent: then there are no datasets, and numbers are 0. One count for all
 * matrices of a stack is repeated.
 * Fails: as gguf_list_part; STATUS_FORMAT, STATUS_UNSUPPORTED (no importance matrix), STATUS_IO,
 * STATUS_CHANGED, STATUS_MEMORY.
 */
enum status imat_read(struct imat_matrix *out, const char *path, struct status_why *why);

/** The two halves of it. The sentences begin with the path. */
enum status imat_read_gguf(struct imat_matrix *out, const struct gguf_file *file,
                           struct status_why *why);
enum status imat_read_dat(struct imat_matrix *out, const void *bytes, size_t n_bytes,
                          const char *path, struct status_why *why);

#endif
