/**
 * The product dst[t][r] = sum_c W[r][c] x[t][c] in pieces, for linear.c and the scoring walk.
 *
 * x is packed into panels of 32 tokens once per product. Weights are decoded to float32 a tile
 * at a time, packed if the way of computing (product.h) wants it, and used for all panels while
 * they are in the L2 cache. How the work is cut follows from cache sizes and threads and cannot
 * change a bit.
 */
#ifndef KERNELS_CPU_GEMM_GEMM_H
#define KERNELS_CPU_GEMM_GEMM_H

#include "kernels/cpu/context.h"

/** How a product of R rows and K columns with P panels is cut: a tile of W is n_rows x n_k. */
struct kern_gemm_plan {
    const struct kern_product *product;
    const struct kern_integers *format; /* of the weights in integers, else NULL */
    size_t n_rows;
    size_t n_k;
    size_t n_panels;   /* that a task multiplies with its tiles */
    size_t row_floats; /* of a tile; a long format's end with the sums of squares of its blocks */
    size_t tile_floats;
};

/**
 * Choose the cut of a product with `rows` rows and n_panels panels that all threads share: into
 * row ranges, and where they are too few for the threads, into ranges of panels too.
 */
struct kern_gemm_plan kern_gemm_plan(const struct kern_cpu *cpu, const struct kern_product *product,
                                     const struct kern_weight *w, size_t rows, size_t n_panels);

/** Tasks of a product with these rows and panels, no more than it was planned for. */
size_t kern_gemm_n_tasks(const struct kern_gemm_plan *plan, size_t rows, size_t n_panels);

/** Panels that n_tokens take. */
size_t kern_panel_count(size_t n_tokens);

/**
 * Pack x [n_tokens, n_k] into out [kern_panel_count(n_tokens)] panels of
 * kern_product_panel_floats(), with all threads.   Fails: STATUS_CANCELLED.
 */
enum status kern_panels_pack(struct kern_cpu *cpu, const struct kern_product *product,
                             const float *x, size_t n_tokens, size_t n_k, float *out);

/** Called when a panel's sums are complete, while they are still in the cache. */
typedef void kern_gemm_done_fn(void *context, size_t panel, size_t row, size_t n_rows, float *acc);

/** Some rows of a weight times some packed tokens; the work of one thread. */
struct kern_gemm_rows {
    const struct kern_cpu *cpu;
    const struct kern_weight *weight;
    const struct kern_gemm_plan *plan;
    const float *x;               /* all panels */
    size_t n_tokens;              /* in all panels */
    size_t first_panel, n_panels; /* n_panels <= plan->n_panels */
    size_t row, n_rows;           /* n_rows <= plan->n_rows */
    float *tile;                  /* plan->tile_floats, this thread's own */
    float *acc;                   /* out: per panel a panel array [n_rows] */
    size_t acc_stride;            /* floats from one panel's to the next's */
    kern_gemm_done_fn *done;
    void *context; /* for done */
};

/**
 * Set row, n_rows, first_panel and n_panels to task `index` of a product with `rows` rows and
 * g->n_tokens tokens.
 */
void kern_gemm_task(struct kern_gemm_rows *g, size_t rows, size_t index);

/** Decode columns [k, k + n_k) of the task's rows into its tile, as the product wants them. */
void kern_gemm_decode(const struct kern_gemm_rows *g, size_t k, size_t n_k);

/** Run the task. Returns early, with acc undefined, once the backend's cancel flag is set. */
void kern_gemm_run(const struct kern_gemm_rows *g);

/** y[c] = column c of row r of a weight. y: w->n_cols floats. */
void kern_weight_decode_row(const struct kern_cpu *cpu, const struct kern_weight *w, size_t r,
                            float *y);

/** A decoded row times the weight's scale: of a vector or an embedding. */
void kern_weight_take_row(const struct kern_cpu *cpu, const struct kern_weight *w, size_t r,
                          float *y);

#endif
