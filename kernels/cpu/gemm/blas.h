/**
 * Products through a foreign matrix multiplication, for `--gemm openblas`. Its sums have an
 * order of their own: results are close to the exact ones, and not stable to the bit.
 */
#ifndef KERNELS_CPU_GEMM_BLAS_H
#define KERNELS_CPU_GEMM_BLAS_H

#include "kernels/cpu/context.h"

struct kern_linear;

/** c[i][j] = alpha * sum_k a[i][k] * b[j][k] + beta * c[i][j]; strides in floats. */
struct kern_sgemm {
    size_t n_rows, n_cols, n_k; /* of i, j, k */
    const float *a, *b;
    float *c; /* not read if beta is 0 */
    size_t a_stride, b_stride, c_stride;
    float alpha, beta;
};

/** The product by cpu->sgemm, cut along its longer side for all threads. Fails: cancelled. */
enum status kern_blas_multiply(struct kern_cpu *cpu, const struct kern_sgemm *op);

/**
 * Load OpenBLAS if it is not loaded yet, and map what n_threads need that multiply at once.
 * sgemm: out; it may be called by several threads, and makes none.
 * Fails: STATUS_UNSUPPORTED (there is no such library), STATUS_MEMORY (address space).
 */
enum status kern_openblas_load(kern_cblas_sgemm_fn **sgemm, unsigned n_threads,
                               struct status_why *why);

/** kern_cpu_linear() by cpu->sgemm, and the floats of scratch memory that it takes. */
enum status kern_blas_linear(struct kern_cpu *cpu, const struct kern_linear *op,
                             struct status_why *why);
size_t kern_blas_linear_floats(const struct kern_linear *op);

/** Weight rows that are decoded at a time, and the floats that they take. */
size_t kern_blas_panel_rows(const struct kern_weight *w);
size_t kern_blas_panel_floats(const struct kern_weight *w);

/** Decode rows [row, row + n_rows) into out [n_rows, K] with all threads. */
enum status kern_weight_decode(struct kern_cpu *cpu, const struct kern_weight *w, size_t row,
                               size_t n_rows, float *out);

#endif
