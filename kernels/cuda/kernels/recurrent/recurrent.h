/**
 * Kernels of recurrent layers: the causal convolution, and states by chunks of tokens or by tokens.
 * Formulas and orders are those of kernels/recurrent.h and kernels/cpu/recurrent/, so the bits
 * are the CPU's.
 */
#ifndef KERNELS_CUDA_KERNELS_RECURRENT_RECURRENT_H
#define KERNELS_CUDA_KERNELS_RECURRENT_RECURRENT_H

#include "kernels/cuda/kernels/recurrent/chunk.h"
#include "kernels/cuda/kernels/recurrent/convolve.h"
#include "kernels/cuda/kernels/recurrent/steps.h"

/** The block's record of a saved state. */
KERN_INLINE float *kern_recur_saved(const struct kern_recur_block *b, ptrdiff_t state)
{
    const struct kern_recur *op = &b->a->op;
    size_t record = ((size_t)state * op->n_heads + b->head) * kern_recur_n_groups(op) + b->group;
    return op->states + record * kern_recur_record_floats(op);
}

KERN_INLINE void kern_recur_family(const struct kern_recur_args *a, size_t block, void *shared,
                                   bool steps)
{
    const struct kern_recur *op = &a->op;
    struct kern_recur_block b = {a, (struct kern_recur_shared *)shared};
    b.steps = steps;
    size_t n_groups = kern_recur_n_groups(op), family = block / n_groups / op->n_heads;
    b.state = (float *)(b.s + 1);
    b.k = b.state + op->k_size * KERN_RECUR_LANES;
    b.q = b.k + KERN_CHUNK * (op->k_size + 1);
    b.decay = b.q + KERN_CHUNK * (op->k_size + 1);
    b.group = block % n_groups;
    b.head = block / n_groups % op->n_heads;
    b.k_head = op->alternate ? b.head % op->n_k_heads : b.head / (op->n_heads / op->n_k_heads);
    b.width = op->v_size - b.group * KERN_RECUR_LANES;
    b.width = b.width < KERN_RECUR_LANES ? b.width : KERN_RECUR_LANES;
    uint32_t begin = a->families[family], end = a->families[family + 1];
    float *parent = a->parents + (a->parents ? block * kern_recur_record_floats(op) : 0);
    for (uint32_t i = begin; i < end; i++) {
        const struct kern_run *run = &op->runs[i];
        bool is_parent = i == begin && end > begin + 1;
        b.n = steps ? 0 : (unsigned)(run->index % KERN_CHUNK);
        b.begun = run->index >= (steps ? 1 : KERN_CHUNK);
        if (run->index > 0)
            kern_recur_move(&b, i > begin ? parent : kern_recur_saved(&b, run->from), false);
        kern_barrier();
        if (steps)
            kern_recur_step_run(&b, run);
        else
            kern_recur_chunk_run(&b, run, is_parent || run->to >= 0);
        if (is_parent)
            kern_recur_move(&b, parent, true);
        if (run->to >= 0)
            kern_recur_move(&b, kern_recur_saved(&b, run->to), true);
    }
}

#endif
