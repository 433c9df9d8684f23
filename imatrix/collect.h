/**
 * Collects importance matrices: backends compute while the inputs of their products are squared and
 * added up.
 *
 * A product counts by its weight: the rows of a tensor of the file whose name begins with "blk.",
 * of a slice of it where it is a stack (experts, heads), and with `outputs` "output.weight". Where
 * a tensor is multiplied in parts of its rows, which read the same, the first part counts. Where it
 * is multiplied with the same input twice, one after the other, the input counts once.
 */
#ifndef IMATRIX_COLLECT_H
#define IMATRIX_COLLECT_H

#include "gguf/gguf.h"
#include "imatrix/imatrix.h"

struct imat_collector;
struct kern_backend;

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
/** From now on products count: those before it were trials.   Any thread. */
void imat_collector_begin(struct imat_collector *c);
/** Bytes that the sums take at most. */
double imat_collector_bytes(const struct imat_collector *c);
/**
 * The backends are what they were. Move the matrices of which any row was multiplied to
 * out->entries, and set out->exact; the rest of `out` is the caller's. Then only close is left.
 */
void imat_collector_take(struct imat_collector *c, struct imat_matrix *out);
/** NULL is allowed. The backends must still be open. */
void imat_collector_close(struct imat_collector *c);

#endif
