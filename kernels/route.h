/**
 * Choosing the experts of a token. Every backend does it on the host, which has to know them to
 * form the experts' batches.
 */
#ifndef KERNELS_ROUTE_H
#define KERNELS_ROUTE_H

#include <stddef.h>

struct kern_route;

/** Doubles of memory for a token. */
static inline size_t kern_route_doubles(size_t n_experts)
{
    return 2 * n_experts;
}

/**
 * The experts and shares of token t, as kern_route() has them.
 * logits: the token's, host.   bias: op->selection_bias decoded and scaled, host, or NULL.
 * memory: kern_route_doubles().
 */
void kern_route_token(const struct kern_route *op, size_t t, const float *logits, const float *bias,
                      double *memory);

#endif
