#include "kernels/cuda/product.h"

#include <stdlib.h>

#include "kernels/cuda/context.h"

size_t kern_cuda_product_padded(const struct kern_cuda_product *product, size_t n_tokens)
{
    return base_min(base_div_up(n_tokens, product->step) * product->step, product->n_tokens);
}

/** One product of halves of a shape, of as many tokens as are asked for. */
static enum status multiply_once(struct kern_cuda *cuda, const struct kern_cuda_product *product,
                                 const uint16_t *weights, const uint16_t *tokens, size_t n_tokens,
                                 float *c, bool accumulate, struct status_why *why)
{
    bool at_a = product->side == KERN_CUDA_TOKENS_A;
    struct kern_cuda_gemm gemm = {
        .a = at_a ? tokens : weights,
        .b = at_a ? weights : tokens,
        .c = c,
        .n_a = at_a ? n_tokens : product->n_weights,
        .n_b = at_a ? product->n_weights : n_tokens,
        .n_k = product->n_k,
        .plan_a = at_a ? product->n_tokens : product->n_weights,
        .plan_b = at_a ? product->n_weights : product->n_tokens,
        .algorithm = product->algorithm,
        .accumulate = accumulate,
    };
    return cuda->device->ops->gemm(cuda->device, &gemm, why);
}

enum status kern_cuda_multiply(struct kern_cuda *cuda, const struct kern_cuda_product *product,
                               const struct kern_cuda_halves *weights,
                               const struct kern_cuda_halves *tokens, size_t n_tokens, float *c,
                               struct status_why *why)
{
    enum status status = kern_cuda_cancelled(cuda);
    bool split = weights->lo != NULL;
    if (status == STATUS_OK && split)
        status = multiply_once(cuda, product, weights->lo, tokens->hi, n_tokens, c, false, why);
    if (status == STATUS_OK && split)
        status = multiply_once(cuda, product, weights->hi, tokens->lo, n_tokens, c, true, why);
    if (status == STATUS_OK)
        status = multiply_once(cuda, product, weights->hi, tokens->hi, n_tokens, c, split, why);
    return status;
}

enum status kern_cuda_product_find(struct kern_cuda *cuda, enum kern_cuda_side side,
                                   size_t n_weights, size_t n_k, size_t n_tokens,
                                   const struct kern_cuda_product **out, struct status_why *why)
{
    struct kern_cuda_products *products = &cuda->products;
    for (size_t i = 0; i < products->n_shapes; i++) {
        *out = &products->shapes[i];
        if ((*out)->side == side && (*out)->n_weights == n_weights && (*out)->n_k == n_k &&
            (*out)->n_tokens == n_tokens)
            return STATUS_OK;
    }
    *out = NULL;
    if (products->n_shapes == products->capacity) {
        size_t capacity = 2 * products->capacity + 16;
        struct kern_cuda_product *shapes = realloc(products->shapes, capacity * sizeof *shapes);
        if (!shapes)
            return status_fail(why, STATUS_MEMORY, "no memory for %zu shapes", capacity);
        products->shapes = shapes;
        products->capacity = capacity;
    }
    struct kern_cuda_product *product = &products->shapes[products->n_shapes];
    *product = (struct kern_cuda_product){
        .side = side, .n_weights = n_weights, .n_k = n_k, .n_tokens = n_tokens};
    enum status status = kern_cuda_product_try(cuda, product, why);
    if (status != STATUS_OK)
        return status;
    products->n_shapes++;
    *out = product;
    return STATUS_OK;
}
