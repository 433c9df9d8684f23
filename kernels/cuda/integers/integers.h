/**
 * Products in 16-bit integers on the tensor cores' products of bytes: `high` where it is slow in
 * halves. kernels/integers/ has the kernels, and how operands lie. A quantised weight's product
 * has the bits of the CPU's `high`; other weights take halves.
 */
#ifndef KERNELS_CUDA_INTEGERS_INTEGERS_H
#define KERNELS_CUDA_INTEGERS_INTEGERS_H

#include "kernels/cuda/context.h"

struct kern_integers_args;
struct kern_linear;

/**
 * Whether `high` is in integers on a device of this compute capability unless options say
 * otherwise: 8.6, 8.9 and 12.0. Of these, cards for games multiply bytes four times as fast as
 * halves with float32 sums, of which `high` takes three products for two of bytes; other cards
 * twice as fast, and bench/NOTES.md reckons that they would gain little or lose.
 */
bool kern_cuda_prefers_integers(unsigned compute_capability);

/** Whether products of weights of this type are. */
bool kern_cuda_uses_integers(const struct kern_cuda *cuda, enum gguf_type type);

/** Bytes of records of weights and of tokens. */
size_t kern_cuda_integer_bytes(enum gguf_type type, size_t n_rows, size_t n_cols);
size_t kern_cuda_token_bytes(size_t n_tokens, size_t n_cols);

/** Tokens [n_tokens, n_cols] to records in memory of kern_cuda_token_bytes(), for weights of a
 * type.
 */
enum status kern_cuda_pack(struct kern_cuda *cuda, enum gguf_type type, const float *x,
                           size_t n_tokens, size_t n_cols, uint32_t *to, struct status_why *why);

/** Launch the product with weights of this type, of as many blocks as it takes. */
enum status kern_cuda_multiply_integers(struct kern_cuda *cuda, enum gguf_type type,
                                        const struct kern_integers_args *args,
                                        struct status_why *why);

/** kern_linear() and its scratch memory, of such weights. */
enum status kern_cuda_integer_linear(struct kern_cuda *cuda, const struct kern_linear *op,
                                     struct status_why *why);
size_t kern_cuda_integer_linear_bytes(const struct kern_cuda *cuda, const struct kern_linear *op);

#endif
