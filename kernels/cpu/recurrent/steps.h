/**
 * A state under one head whose channels have decays of their own: token by token, each group of
 * columns for itself. So a sequence may be cut anywhere, and what is saved is the state as it is.
 */
#ifndef KERNELS_CPU_RECURRENT_STEPS_H
#define KERNELS_CPU_RECURRENT_STEPS_H

#include "kernels/cpu/recurrent/head.h"

/** The state of a thread, and tokens that are worked on. */
struct kern_recur_steps {
    const struct kern_recur_head *head;
    float *s;             /* as the head's records have it */
    float *k, *q, *decay; /* [KERN_CHUNK, dk] */
    float beta[KERN_CHUNK];
};

/** Floats of memory that it needs, a multiple of 16. */
size_t kern_recur_steps_floats(const struct kern_recur *op);
/** memory: kern_recur_steps_floats(), aligned to 64. */
void kern_recur_steps_open(struct kern_recur_steps *steps, const struct kern_recur_head *head,
                           float *memory);

/** Begin with a saved state's records of the head, or with 0 (NULL). */
void kern_recur_steps_load(struct kern_recur_steps *steps, const float *records);
/** Write the head's records. */
void kern_recur_steps_save(const struct kern_recur_steps *steps, float *records);
/** Take in rows row .. row + n - 1 of the operation, n up to KERN_CHUNK; write their outputs. */
void kern_recur_steps_add(struct kern_recur_steps *steps, size_t row, size_t n);

#endif
