/**
 * A chunk of tokens under one head: what they make of a state, as products of matrices.
 *
 * Let L_t be the sum of the log decays of the chunk's tokens up to t, and S what the state was when
 * the chunk began. Then, with i and t counting the chunk's tokens,
 *     e_t = beta_t v_t - beta_t exp(L_t) S^T k_t - beta_t sum_(i < t) exp(L_t - L_i) (k_t . k_i)
 * e_i o_t = exp(L_t) S^T q_t + sum_(i <= t) exp(L_t - L_i) (q_t . k_i) e_i S  := exp(L_C) S + sum_i
 * exp(L_C - L_i) k_i e_i^T        at the end of the chunk where Mamba-2 has e_t = dt_t v_t. Rows of
 * a chunk may be added in several calls: a row depends on those before it only, in their order.
 */
#ifndef KERNELS_CPU_RECURRENT_CHUNK_H
#define KERNELS_CPU_RECURRENT_CHUNK_H

#include "kernels/cpu/recurrent/head.h"

/** The chunk of a thread. Rows of its matrices are tokens. */
struct kern_recur_chunk {
    const struct kern_recur_head *head;
    size_t n;        /* tokens so far, below KERN_CHUNK between calls */
    size_t row, end; /* tokens n .. end - 1 are being added: rows of the operation from `row` on */
    size_t run_end;  /* the row after the run's last one */
    const float *s;  /* S: a panel array [dk] for each group of columns; NULL: 0 */
    size_t s_stride; /* floats from a group's to the next one's */
    float *own_s;    /* where the next S goes; s may be this */
    float *k, *q;    /* [KERN_CHUNK, dk] */
    float *scaled;   /* the same: k or q times factors */
    float *packed_k; /* panel array [dk]: tokens are lanes */
    float *solve;    /* panel array [KERN_CHUNK]: factors of e_i in e_t */
    float *read;     /* and in o_t */
    float *e;        /* a panel array [KERN_CHUNK] for each group */
    float *out;      /* panel array [KERN_CHUNK] */
    double log[KERN_CHUNK];    /* L_t */
    float beta[KERN_CHUNK];    /* or dt */
    float decay[KERN_CHUNK];   /* exp(L_t) */
    float factors[KERN_CHUNK]; /* for what is computed just now */
};

/** Floats of memory that a chunk needs, a multiple of 16. */
size_t kern_recur_chunk_floats(const struct kern_recur *op);
/** memory: kern_recur_chunk_floats(), aligned to 64. */
void kern_recur_chunk_open(struct kern_recur_chunk *chunk, const struct kern_recur_head *head,
                           float *memory);

/** Begin with a saved state's records of the head, or with 0 (NULL); index: of the next token. */
void kern_recur_chunk_load(struct kern_recur_chunk *chunk, const float *records, size_t index);
/** Write the head's records; they may be what the chunk began with. */
void kern_recur_chunk_save(const struct kern_recur_chunk *chunk, float *records);

/**
 * Take in rows row .. row + n - 1 of the operation, for which there is room, and write their
 * outputs.   run_end: the row after those that follow.
 */
void kern_recur_chunk_add(struct kern_recur_chunk *chunk, size_t row, size_t n, size_t run_end);
/** The chunk is full: compute S for the next one. */
void kern_recur_chunk_finish(struct kern_recur_chunk *chunk);

#endif
