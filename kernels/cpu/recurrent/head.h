/** One head's part of an operation, decoded. */
#ifndef KERNELS_CPU_RECURRENT_HEAD_H
#define KERNELS_CPU_RECURRENT_HEAD_H

#include "kernels/cpu/context.h"
#include "kernels/recurrent/check.h"

struct kern_recur_head {
    const struct kern_cpu *cpu;
    const struct kern_recur *op;
    size_t head;
    const float *dt_bias; /* kern_recur_n_steps() */
    float decay, skip;
};

/** The first of the head's columns of q and of k. */
static inline size_t kern_recur_k_column(const struct kern_recur_head *head)
{
    const struct kern_recur *op = head->op;
    size_t sharing = op->n_heads / op->n_k_heads;
    return (op->alternate ? head->head % op->n_k_heads : head->head / sharing) * op->k_size;
}

/** y = x divided by its length, times scale; both of dk numbers. */
void kern_recur_load_row(const struct kern_recur_head *head, const float *x, float scale, float *y);

#endif
