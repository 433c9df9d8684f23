/** A walk through the vocabulary for some hidden rows: what score.c and its products share. */
#ifndef KERNELS_CPU_SCORE_WALK_H
#define KERNELS_CPU_SCORE_WALK_H

#include "kernels/cpu/gemm/gemm.h"
#include "kernels/numerics/score_chunk.h"

/** What a head needs beyond its struct kern_head. */
struct kern_walk_head {
    struct kern_gemm_plan plan;
    float *packed; /* the chunk's hidden rows, as panels */
    float *bias;   /* [V] decoded, or NULL */
    float *logits; /* of the current tile; see kern_walk_logits() */
};

struct kern_walk {
    struct kern_cpu *cpu;
    const struct kern_score *op;
    size_t n_vocab;
    size_t first_live; /* 1 if head 0 is recorded and has no products, else 0 */
    struct kern_score_chunk chunk;
    struct kern_walk_head *heads; /* [n_heads]; a recorded one is all zero */
    size_t n_panels;
    size_t tile_rows;                /* vocabulary rows that the memory for logits holds */
    size_t row_stride, panel_stride; /* of logits: floats to the next vocabulary row, panel */
    float *per_thread;
    size_t thread_floats;
    float *blas_panel;              /* decoded weights for cpu->sgemm, or NULL */
    size_t vocab_row, n_vocab_rows; /* the current tile */
};

/** Where the logits of a panel under a head begin: lanes side by side, then row_stride. */
static inline float *kern_walk_logits(const struct kern_walk *walk, size_t head, size_t panel)
{
    return walk->heads[head].logits + panel * walk->panel_stride;
}

/** How a walk is cut. */
struct kern_walk_limits {
    size_t n_rows;    /* hidden rows at a time, at most */
    size_t tile_rows; /* vocabulary rows at a time */
};

/**
 * Choose sizes and take the backend's scratch memory. Close it in any case.
 * Fails: STATUS_MEMORY.
 */
enum status kern_walk_open(struct kern_walk *walk, struct kern_cpu *cpu,
                           const struct kern_score *op, const struct kern_walk_limits *limits,
                           struct status_why *why);
void kern_walk_close(struct kern_walk *walk);

/** The scratch memory that such a walk takes, in bytes. */
size_t kern_walk_bytes(struct kern_cpu *cpu, const struct kern_score *op,
                       const struct kern_walk_limits *limits);

/** Pack hidden rows [first_row, first_row + n_rows) of every head. Fails: STATUS_CANCELLED. */
enum status kern_walk_pack(struct kern_walk *walk, size_t first_row, size_t n_rows);

/** Floats that a thread needs for these products. */
size_t kern_walk_thread_floats(const struct kern_walk *walk);

/** Enter the targets' logits and tokens into the chunk's ranks. Fails: STATUS_CANCELLED. */
enum status kern_walk_targets(struct kern_walk *walk);

/** Compute the logits of the current tile, all heads. Fails: STATUS_CANCELLED. */
enum status kern_walk_multiply(struct kern_walk *walk);

#endif
