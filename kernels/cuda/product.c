#include "kernels/cuda/product.h"

#include "base/array.h"
#include "kernels/cuda/context.h"
#include "kernels/cuda/kernels/exact/exact.h"
#include "kernels/cuda/kernels/product.h"

size_t kern_cuda_product_padded(const struct kern_cuda_product *product, size_t n_tokens)
{
    return base_min(base_round_up(n_tokens, product->step), product->n_tokens);
}

size_t kern_cuda_depth(const struct kern_cuda *cuda, size_t n_cols)
{
    return cuda->options.precision == KERN_PRECISION_HIGH ? 3 * n_cols : n_cols;
}

enum status kern_cuda_multiply(struct kern_cuda *cuda, const struct kern_cuda_product *product,
                               const struct kern_cuda_factors *f, struct status_why *why)
{
    bool at_a = product->side == KERN_CUDA_TOKENS_A;
    const struct kern_cuda_gemm gemm = {
        .a = at_a ? f->tokens : f->weights,
        .b = at_a ? f->weights : f->tokens,
        .c = f->c,
        .c_stride = f->c_stride,
        .n_a = at_a ? f->n_tokens : product->n_weights,
        .n_b = at_a ? product->n_weights : f->n_tokens,
        .n_k = kern_cuda_depth(cuda, product->n_k),
        .plan_a = at_a ? product->n_tokens : product->n_weights,
        .plan_b = at_a ? product->n_weights : product->n_tokens,
        .algorithm = product->algorithm,
    };
    enum status status = kern_cuda_cancelled(cuda);
    return status ? status : cuda->device->ops->gemm(cuda->device, &gemm, why);
}

enum status kern_cuda_exact(struct kern_cuda *cuda, const struct kern_exact_args *args,
                            struct status_why *why)
{
    size_t n_blocks =
        base_div_up(args->n_a, KERN_EXACT_SIDE) * base_div_up(args->n_b, KERN_EXACT_SIDE);
    return kern_cuda_run(cuda, KERN_CUDA_EXACT, n_blocks, args, why);
}

enum status kern_cuda_finish(struct kern_cuda *cuda, const struct kern_finish_args *args,
                             struct status_why *why)
{
    size_t n_blocks = base_div_up(args->n_a, KERN_FINISH_ELEMS) * args->n_b;
    return kern_cuda_run(cuda, KERN_CUDA_FINISH, n_blocks, args, why);
}

struct kern_powers kern_cuda_take_powers(struct kern_cuda_arena *arena, size_t n)
{
    return (struct kern_powers){.largest = kern_cuda_take(arena, n * sizeof(uint32_t)),
                                .first = kern_cuda_take(arena, n * sizeof(float)),
                                .second = kern_cuda_take(arena, n * sizeof(float))};
}

enum status kern_cuda_put_powers(struct kern_cuda *cuda, struct kern_powers to, size_t n,
                                 const uint32_t *largest, struct status_why *why)
{
    const struct kern_powers_args args = {.largest = largest, .to = to, .n = n};
    return kern_cuda_run(cuda, KERN_CUDA_POWERS, base_div_up(n, KERN_POWERS_THREADS), &args, why);
}

enum status kern_cuda_product_find(struct kern_cuda *cuda, const struct kern_cuda_product *shape,
                                   const struct kern_cuda_product **out, struct status_why *why)
{
    struct kern_cuda_products *products = &cuda->products;
    for (size_t i = 0; i < products->n_shapes; i++) {
        const struct kern_cuda_product *known = *out = &products->shapes[i];
        if (known->side == shape->side && known->n_weights == shape->n_weights &&
            known->n_k == shape->n_k && known->n_tokens == shape->n_tokens)
            return STATUS_OK;
    }
    *out = NULL;
    if (base_array_reserve(products->shapes, products->capacity, products->n_shapes + 1, "shapes",
                           why))
        return STATUS_MEMORY;
    struct kern_cuda_product *product = &products->shapes[products->n_shapes];
    *product = *shape;
    enum status status = kern_cuda_product_try(cuda, product, why);
    if (status)
        return status;
    products->n_shapes++;
    *out = product;
    return STATUS_OK;
}

enum status kern_cuda_products_prepare(struct kern_cuda *cuda, struct kern_cuda_product *shape,
                                       size_t n_rows, struct status_why *why)
{
    const size_t sizes[] = {shape->n_weights, n_rows % shape->n_weights};
    enum status status = STATUS_OK;
    for (size_t i = 0; !status && i < 2 && sizes[i] > 0 && kern_cuda_uses_halves(cuda); i++) {
        const struct kern_cuda_product *product;
        shape->n_weights = sizes[i];
        status = kern_cuda_product_find(cuda, shape, &product, why);
        if (!status)
            shape->step = base_max(shape->step, product->step);
    }
    return status;
}
