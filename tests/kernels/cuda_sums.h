/** Sums of products, magnitudes and halves on a device, for kernels that are launched alone. */
#ifndef TESTS_KERNELS_CUDA_SUMS_H
#define TESTS_KERNELS_CUDA_SUMS_H

#include "kernels/cuda/kernels/gated/gated.h"
#include "tests/harness/rng.h"
#include "tests/kernels/cuda_pair.h"

void cuda_sums_launch(struct cuda_pair *p, enum kern_cuda_kernel kernel, size_t n_blocks,
                      size_t shared_bytes, const void *args);
/** How many of a kernel the pair has launched. */
size_t cuda_sums_launched(const struct cuda_pair *p, enum kern_cuda_kernel kernel);

/** Device memory with these bytes, or any; kern_free(). */
void *cuda_sums_room(struct cuda_pair *p, const void *from, size_t n_bytes);
/** n normal numbers times 10^4. */
float *cuda_sums_numbers(struct cuda_pair *p, struct rng *r, size_t n);
/**
 * Magnitudes that scale by everything from the least power of two to the largest; `mild` ones make
 * results around 1.
 */
uint32_t *cuda_sums_magnitudes(struct cuda_pair *p, struct rng *r, size_t n, bool mild);
struct kern_powers cuda_sums_powers(struct cuda_pair *p, const uint32_t *largest, size_t n);
void cuda_sums_free_powers(struct cuda_pair *p, struct kern_powers powers);

/** Results of sums [n_rows, n_cols], by the kernel of every product. */
void cuda_sums_finish(struct cuda_pair *p, const struct kern_sums *sums, float *out, size_t n_rows,
                      size_t n_cols);

/** Room for halves of n_blocks rows, in one part or three. */
struct kern_half_out cuda_sums_out(struct cuda_pair *p, size_t n_rows, size_t n_blocks,
                                   size_t n_cols, bool parts);
/** Fail unless both have the same halves and magnitudes, n_blocks rows of them; and free them. */
void cuda_sums_assert_same(struct cuda_pair *p, struct kern_half_out found,
                           struct kern_half_out expected, size_t n_blocks);

#endif
