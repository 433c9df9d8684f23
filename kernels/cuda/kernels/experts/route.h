/**
 * Choosing experts, a thread per token: kernels/experts/route.h, so the bits are the CPU's. What a
 * token needs lies in shared memory, an odd number of doubles after its neighbour's, so that
 * threads do not meet in a bank. It reads 4 bytes per logit and writes 8 per chosen expert; the
 * time is that of the exponentials and of going through the keys n_used times.
 */
#ifndef KERNELS_CUDA_KERNELS_EXPERTS_ROUTE_H
#define KERNELS_CUDA_KERNELS_EXPERTS_ROUTE_H

#include "kernels/cuda/kernels/thread.h"
#include "kernels/experts/route.h"

enum { KERN_ROUTE_THREADS = 32 };

struct kern_route_args {
    struct kern_route op; /* all pointers to the device */
    const float *bias;    /* or NULL */
    uint32_t n_tokens;    /* of a block, at most KERN_ROUTE_THREADS */
};

/** Doubles from a token's memory to the next one's. */
KERN_INLINE size_t kern_route_stride(size_t n_experts)
{
    return kern_route_doubles(n_experts) | 1;
}

KERN_INLINE void kern_route_block(const struct kern_route_args *a, size_t block, void *shared)
{
    const struct kern_route *op = &a->op;
    double *memory = (double *)shared;
    for (unsigned t = kern_thread_begin(); t < a->n_tokens;
         t += kern_thread_step(KERN_ROUTE_THREADS)) {
        size_t token = block * a->n_tokens + t;
        if (token < op->n_tokens)
            kern_route_token(op, token, op->logits + token * op->n_experts, a->bias,
                             memory + t * kern_route_stride(op->n_experts));
    }
}

#endif
