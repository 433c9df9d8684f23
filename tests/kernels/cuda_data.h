/** Random data for tests that compare backends to the bit. */
#ifndef TESTS_KERNELS_CUDA_DATA_H
#define TESTS_KERNELS_CUDA_DATA_H

#include "kernels/types.h"
#include "tests/harness/rng.h"

/** n normal numbers times `size`; free(). */
float *cuda_data_floats(struct rng *r, size_t n, float size);
/** A copy of n floats; free(). */
float *cuda_data_copy(const float *x, size_t n);
/** Each of n rows `times` times, one after the other; free(). */
float *cuda_data_repeat(const float *x, size_t n, size_t width, size_t times);
/** Fail the test at the first of n floats whose bits differ, saying of what it is. */
void cuda_data_assert_same(const float *found, const float *expected, size_t n, const char *what);

/** Rows of random bits of a type, perhaps with gaps between the rows; a new generation. */
struct kern_weight cuda_data_random_weight(struct rng *r, enum gguf_type type, size_t n_rows,
                                           size_t n_cols);
/** Normal numbers in float32. */
struct kern_weight cuda_data_float_weight(struct rng *r, size_t n_rows, size_t n_cols);
void cuda_data_weight_free(struct kern_weight *w);

#endif
