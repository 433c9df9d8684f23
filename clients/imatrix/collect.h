/**
 * Collects importance matrices: backends compute while the inputs of their products are squared and
 * added up.
 *
 * A product counts by its weight: the rows of a tensor of the file whose name begins with "blk.",
 * of a slice of it where it is a stack (experts, heads), and with `outputs` "output.weight". Rows
 * that belong to tokens count: those of a product with marks (struct kern_linear), or of a head.
 * Where a tensor is multiplied in parts of its rows, which read the same, the first part counts.
 * Where it is multiplied with the same input twice, one after the other, the input counts once.
 */
#ifndef IMATRIX_COLLECT_H
#define IMATRIX_COLLECT_H

#include "base/buffer.h"
#include "base/text/string.h"
#include "clients/imatrix/imatrix.h"
#include "gguf/gguf.h"

struct imat_collector;
struct kern_backend;
struct kern_weight;

/**
 * file: the model's; borrowed.   outputs: the head counts, too, unless it is the embedding.
 * Fails: STATUS_MEMORY.
 */
enum status imat_collector_open(struct imat_collector **out, const struct gguf_file *file,
                                bool outputs, struct status_why *why);
/**
 * From now on these backends show their products; they may compute in threads of their own. They
 * compute what they did, and fail also with STATUS_NONFINITE (an input that is not finite, a sum of
 * 2^63 or more) and STATUS_MEMORY.
 */
enum status imat_collector_attach(struct imat_collector *c, struct kern_backend *const *backends,
                                  size_t n_backends, struct status_why *why);
/** Rows that belong to tokens count where their marks name them. */
void imat_collector_mask(struct imat_collector *c);
/** Rows count that the marks name, and all rows of experts. */
void imat_collector_mask_dense(struct imat_collector *c);
/**
 * Rows of experts are told apart by n categories: a mark is 0, or 1 + the row's category. Before
 * products count. Returns n; 0: the model has no experts, and nothing is told apart.
 */
size_t imat_collector_categorise(struct imat_collector *c, size_t n);
/** From now on products count: those before it were trials.   Any thread. */
void imat_collector_begin(struct imat_collector *c);
/**
 * Count rows of a matrix's input that nobody multiplies with it, on a backend that shows its
 * products. x: backend memory. marks: [n_rows]. Fails: as these backends.
 */
enum status imat_collector_count(struct kern_backend *b, const struct kern_weight *weight,
                                 const float *x, size_t n_rows, const uint8_t *marks,
                                 struct status_why *why);
/** Bytes that the sums take at most, those of each backend's batch among them, and n_packed of
 * imat_collector_pack. */
double imat_collector_bytes(const struct imat_collector *c, size_t n_packed);

/* imatrix/merge.c. Any thread, one at a time. */

/** Add what products of the i-th backend were multiplied with since the last call, to the sums.
 * Fails: STATUS_NONFINITE (2^63 or more), STATUS_MEMORY. */
enum status imat_collector_merge(struct imat_collector *c, size_t backend, struct status_why *why);
/** Append the sums, as they lie in memory here, for another process with the same model, or for a
 * file. Fails: STATUS_MEMORY. */
enum status imat_collector_pack(const struct imat_collector *c, struct base_buffer *out,
                                struct status_why *why);
/** Add packed sums. Fails: as imat_collector_merge; STATUS_FORMAT (of another model). */
enum status imat_collector_unpack(struct imat_collector *c, struct base_string bytes,
                                  struct status_why *why);
/** Let all sums be 0. */
void imat_collector_clear(struct imat_collector *c);

/* imatrix/change.c */

/**
 * How far the sums are from earlier ones, which were packed: of the matrix of which it is most. A
 * matrix's change is half the sum, over columns, of |its share of the sums now - its share then|,
 * 0 to 1; a stack's is the mean over its matrices, each counted by its rows now, and one that had
 * no rows then has changed by 1. Fails: STATUS_FORMAT.
 */
enum status imat_collector_change(const struct imat_collector *c, struct base_string before,
                                  double *change, struct status_why *why);
/** The fewest rows of any matrix, of the tensors that were multiplied at all; 0: none was. */
uint64_t imat_collector_least_rows(const struct imat_collector *c);

/**
 * The backends are what they were. Move the matrices of which any row was multiplied to
 * out->entries, and set out->exact; the rest of `out` is the caller's. Then only close is left.
 */
void imat_collector_take(struct imat_collector *c, struct imat_matrix *out);
/** NULL is allowed. The backends must still be open. */
void imat_collector_close(struct imat_collector *c);

#endif
