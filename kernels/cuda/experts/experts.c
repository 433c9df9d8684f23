/*
 * Choosing experts, and rows to them and back. The host gets to know the choice: it forms the
 * experts' batches.
 */
#include "kernels/cuda/kernels/experts/gather.h"
#include "kernels/cuda/kernels/experts/route.h"
#include "kernels/cuda/operations.h"
#include "kernels/cuda/weights/weights.h"

/** Arrays of the device, in scratch memory, in place of the host's. */
static enum status put_arrays(struct kern_cuda *cuda, struct kern_route *op, struct status_why *why)
{
    size_t n = op->n_tokens * op->n_used;
    struct kern_cuda_array arrays[] = {
        {op->given, op->given ? n * sizeof *op->given : 0, NULL},
        {NULL, n * sizeof *op->experts, NULL},
        {NULL, n * sizeof *op->shares, NULL},
    };
    enum status status = kern_cuda_scratch_put(cuda, arrays, 3, why);
    op->given = op->given ? arrays[0].to : NULL;
    op->experts = arrays[1].to;
    op->shares = arrays[2].to;
    return status;
}

enum status kern_cuda_route(struct kern_backend *b, const struct kern_route *op,
                            struct status_why *why)
{
    struct kern_cuda *cuda = kern_cuda_of(b);
    struct kern_route_args args = {.op = *op};
    size_t n = op->n_tokens * op->n_used;
    size_t n_bytes = kern_route_stride(op->n_experts) * sizeof(double);
    size_t n_fit = cuda->device->shared_bytes / n_bytes;
    if (n_fit == 0)
        return status_fail(why, STATUS_UNSUPPORTED,
                           "choosing among %zu experts needs %zu bytes of shared memory; the GPU "
                           "has %zu",
                           op->n_experts, n_bytes, cuda->device->shared_bytes);
    args.n_tokens = (uint32_t)base_min(n_fit, KERN_ROUTE_THREADS);
    const struct kern_cuda_launch launch = {
        .kernel = KERN_CUDA_ROUTE,
        .n_blocks = base_div_up(op->n_tokens, args.n_tokens),
        .shared_bytes = args.n_tokens * n_bytes,
        .args = &args,
    };
    enum status status = kern_cuda_vector(cuda, op->selection_bias, &args.bias, why);
    if (!status)
        status = put_arrays(cuda, &args.op, why);
    if (!status)
        status = kern_cuda_run_launch(cuda, &launch, why);
    if (!status)
        status = kern_cuda_get(cuda, op->experts, args.op.experts, n * sizeof *op->experts, why);
    return status ? status
                  : kern_cuda_get(cuda, op->shares, args.op.shares, n * sizeof *op->shares, why);
}

enum status kern_cuda_gather(struct kern_backend *b, const struct kern_gather *op,
                             struct status_why *why)
{
    struct kern_cuda *cuda = kern_cuda_of(b);
    struct kern_cuda_array array = {op->rows, op->n * sizeof *op->rows, NULL};
    enum status status = kern_cuda_scratch_put(cuda, &array, 1, why);
    struct kern_gather_args args = {.x = op->x, .y = op->y, .rows = array.to, .width = op->width};
    return status ? status : kern_cuda_run(cuda, KERN_CUDA_GATHER, op->n, &args, why);
}

enum status kern_cuda_scatter_add(struct kern_backend *b, const struct kern_scatter *op,
                                  struct status_why *why)
{
    struct kern_cuda *cuda = kern_cuda_of(b);
    struct kern_cuda_array arrays[] = {
        {op->rows, op->n * sizeof *op->rows, NULL},
        {op->shares, op->n * sizeof *op->shares, NULL},
        {op->from, op->from ? op->n * sizeof *op->from : 0, NULL},
    };
    enum status status = kern_cuda_scratch_put(cuda, arrays, 3, why);
    if (status)
        return status;
    const struct kern_scatter_args args = {.x = op->x,
                                           .y = op->y,
                                           .from = op->from ? arrays[2].to : NULL,
                                           .rows = arrays[0].to,
                                           .shares = arrays[1].to,
                                           .n = op->n,
                                           .width = op->width};
    return kern_cuda_run(cuda, KERN_CUDA_SCATTER, op->n, &args, why);
}
