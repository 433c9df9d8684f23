/* The operations that measure a row: the host's part of kernels/measured.h. */
#include "kernels/cuda/kernels/measured.h"

#include "kernels/cuda/operations.h"
#include "kernels/cuda/weights/weights.h"

enum status kern_cuda_sparsify(struct kern_backend *b, const struct kern_sparsify *op,
                               struct status_why *why)
{
    struct kern_sparsify_args args = {
        .x = op->x, .width = op->width, .scale = op->scale, .sample = op->sample};
    return kern_cuda_run(kern_cuda_of(b), KERN_CUDA_SPARSIFY, op->n_rows, &args, why);
}

enum status kern_cuda_stretch(struct kern_backend *b, const struct kern_stretch *op,
                              struct status_why *why)
{
    struct kern_stretch_args args = {.x = op->x,
                                     .to = op->to,
                                     .y = op->y,
                                     .width = op->width,
                                     .least = op->least,
                                     .accumulate = op->accumulate};
    return kern_cuda_run(kern_cuda_of(b), KERN_CUDA_STRETCH, op->n_rows, &args, why);
}
