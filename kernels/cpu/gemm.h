/**
 * The product dst[t][r] = sum_c W[r][c] x[t][c] in pieces, for linear.c and score.c.
 *
 * Every output is one chain of float32 fused multiply-adds in the order of c. Tokens are the
 * lanes of vectors, weights are broadcast: x is packed into panels once per product, and the
 * weights stay row-major, decoded a tile at a time into memory that fits the L2 cache.
 * How the work is cut follows from cache sizes and threads and cannot change a bit.
 */
#ifndef KERNELS_CPU_GEMM_H
#define KERNELS_CPU_GEMM_H

#include "kernels/cpu/context.h"

/** How a product of R rows and K columns is cut: a tile of W is n_rows x n_k. */
struct kern_gemm_plan {
    size_t n_rows;
    size_t n_k;
    size_t tile_stride; /* floats from a row of the tile to the next */
    size_t tile_floats;
};

/**
 * Choose the tile for a product with `rows` rows that all threads share. The result is such
 * that every thread gets some, where there are rows enough.
 */
struct kern_gemm_plan kern_gemm_plan(const struct kern_cpu *cpu, const struct kern_weight *w,
                                     size_t rows);

/** Panels that n_tokens take. */
size_t kern_panel_count(size_t n_tokens);

/**
 * Pack x [n_tokens, n_k] into out [kern_panel_count(n_tokens)] panel arrays [n_k], with all
 * threads.   Fails: STATUS_CANCELLED.
 */
enum status kern_panels_pack(struct kern_cpu *cpu, const float *x, size_t n_tokens, size_t n_k,
                             float *out);

/** Called when a panel's sums are complete, while they are still in the cache. */
typedef void kern_gemm_done_fn(void *context, size_t panel, size_t row, size_t n_rows, float *acc);

/** Some rows of a weight times packed tokens; the work of one thread. */
struct kern_gemm_rows {
    const struct kern_cpu *cpu;
    const struct kern_weight *weight;
    const struct kern_gemm_plan *plan;
    const float *x; /* n_panels panel arrays [K] */
    size_t n_panels;
    size_t row, n_rows; /* n_rows <= plan->n_rows */
    float *tile;        /* plan->tile_floats, this thread's own */
    float *acc;         /* out: per panel a panel array [n_rows] */
    size_t acc_stride;  /* floats from one panel's to the next's */
    kern_gemm_done_fn *done;
    void *context; /* for done */
};

/** Do it. Returns early, acc being rubbish, once the backend's cancel flag is set. */
void kern_gemm_run(const struct kern_gemm_rows *g);

/** y[c] = column c of row r of a weight. y: w->n_cols floats. */
void kern_weight_decode_row(const struct kern_cpu *cpu, const struct kern_weight *w, size_t r,
                            float *y);

#endif
