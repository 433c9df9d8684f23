/* Operations that mix and measure rows: the host's part of mixing/ in kernels/. */
#include "kernels/cuda/kernels/mixing/mixing.h"
#include "kernels/cuda/kernels/mixing/measured.h"

#include "kernels/cuda/context.h"
#include "kernels/cuda/operations.h"
#include "kernels/cuda/weights/weights.h"

enum status kern_cuda_mix(struct kern_backend *b, const struct kern_mix *op, struct status_why *why)
{
    struct kern_mix_args args = {.x = op->x,
                                 .weights = op->weights,
                                 .y = op->y,
                                 .y_weights = op->y_weights,
                                 .out = op->out,
                                 .stride = op->stride,
                                 .n_tokens = op->n_tokens,
                                 .width = op->width,
                                 .n_in = (uint32_t)op->n_in,
                                 .n_out = (uint32_t)op->n_out,
                                 .from_step = (uint32_t)(op->by_output ? 1 : op->n_out),
                                 .to_step = (uint32_t)(op->by_output ? op->n_in : 1)};
    size_t n = op->n_tokens * op->width;
    return kern_cuda_run(kern_cuda_of(b), KERN_CUDA_MIX, base_div_up(n, KERN_ROWS_ELEMS), &args,
                         why);
}

enum status kern_cuda_stream_weights(struct kern_backend *b, const struct kern_stream_weights *op,
                                     struct status_why *why)
{
    struct kern_cuda *cuda = kern_cuda_of(b);
    struct kern_stream_weights_args args = {
        .a = op->a, .n_tokens = op->n_tokens, .width = op->base->n_cols, .rule = op->rule};
    enum status status = kern_cuda_vector(cuda, op->scale, &args.scale, why);
    if (!status)
        status = kern_cuda_vector(cuda, op->base, &args.base, why);
    size_t n_blocks = base_div_up(op->n_tokens, KERN_STREAMS_THREADS);
    return status ? status : kern_cuda_run(cuda, KERN_CUDA_STREAM_WEIGHTS, n_blocks, &args, why);
}

enum status kern_cuda_compress(struct kern_backend *b, const struct kern_compress *op,
                               struct status_why *why)
{
    struct kern_cuda *cuda = kern_cuda_of(b);
    struct kern_cuda_array rows = {op->rows, op->n_out * op->n_terms * sizeof *op->rows, NULL};
    enum status status = kern_cuda_scratch_put(cuda, &rows, 1, why);
    if (status)
        return status;
    struct kern_compress_args args = {.u = op->u,
                                      .z = op->z,
                                      .rows = rows.to,
                                      .y = op->y,
                                      .stride = op->stride,
                                      .late = op->late,
                                      .width = op->width,
                                      .n_terms = (uint32_t)op->n_terms,
                                      .n_early = (uint32_t)op->n_early};
    size_t n_blocks = op->n_out * base_div_up(op->width, KERN_ROWS_THREADS);
    return kern_cuda_run(cuda, KERN_CUDA_COMPRESS, n_blocks, &args, why);
}

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

enum status kern_cuda_match(struct kern_backend *b, const struct kern_match *op,
                            struct status_why *why)
{
    struct kern_match_args args = {.k = op->k,
                                   .q = op->q,
                                   .v = op->v,
                                   .out = op->out,
                                   .n_streams = op->n_streams,
                                   .width = op->width};
    return kern_cuda_run(kern_cuda_of(b), KERN_CUDA_MATCH, op->n_tokens * op->n_streams, &args,
                         why);
}

enum status kern_cuda_softmax(struct kern_backend *b, const struct kern_softmax *op,
                              struct status_why *why)
{
    struct kern_softmax_args args = {
        .x = op->x, .n_rows = op->n_rows, .width = op->width, .n = op->n};
    size_t n_blocks = base_div_up(op->n_rows, KERN_STREAMS_THREADS);
    return kern_cuda_run(kern_cuda_of(b), KERN_CUDA_SOFTMAX, n_blocks, &args, why);
}
