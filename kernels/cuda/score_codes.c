/* Uploads of recorded rows: the codes of the next tile, while this one is folded. */
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/score.h"
#include "kernels/scoring.h"

static size_t buffer_of(const struct kern_cuda_scoring *s, size_t vocab_row)
{
    return vocab_row / s->walk.tile_vocab % KERN_CUDA_CODE_BUFFERS;
}

static unsigned ready_event(size_t buffer)
{
    return KERN_CUDA_EVENT_CODES + 2 * (unsigned)buffer;
}

static unsigned free_event(size_t buffer)
{
    return ready_event(buffer) + 1;
}

enum status kern_cuda_scoring_put_scales(struct kern_cuda_scoring *s, struct status_why *why)
{
    const struct kern_recorded *recorded = s->op->heads[0].recorded;
    struct kern_code_scale *scales = malloc(s->chunk.n_rows * sizeof *scales);
    if (!scales)
        return status_fail(why, STATUS_MEMORY, "no memory for %zu recorded rows", s->chunk.n_rows);
    for (size_t i = 0; i < s->chunk.n_rows; i++) {
        const uint16_t *row = recorded->records + (s->chunk.first_row + i) * recorded->stride;
        memcpy(&scales[i].scale, row, sizeof(float));
        memcpy(&scales[i].floor, row + 2, sizeof(float));
    }
    enum status status =
        kern_cuda_put(s->cuda, s->scales, scales, s->chunk.n_rows * sizeof *scales, why);
    free(scales);
    return status;
}

/** Begin to upload the codes of the tile from vocab_row on. */
static enum status upload_codes(struct kern_cuda_scoring *s, size_t vocab_row,
                                struct status_why *why)
{
    const struct kern_cuda_device_ops *ops = s->cuda->device->ops;
    const struct kern_recorded *recorded = s->op->heads[0].recorded;
    size_t i_buffer = buffer_of(s, vocab_row);
    const struct kern_cuda_rows rows = {
        .first = recorded->records + s->chunk.first_row * recorded->stride + KERN_CODE_HEADER +
                 vocab_row,
        .n_rows = s->chunk.n_rows,
        .row_bytes = kern_cuda_scoring_rows(s, vocab_row) * sizeof(uint16_t),
        .stride = recorded->stride * sizeof(uint16_t),
    };
    enum status status = ops->wait(s->cuda->device, KERN_CUDA_COPY, free_event(i_buffer), why);
    if (!status)
        status = ops->copy_in(s->cuda->device, KERN_CUDA_COPY, s->codes[i_buffer], &rows, why);
    return status ? status
                  : ops->signal(s->cuda->device, KERN_CUDA_COPY, ready_event(i_buffer), why);
}

enum status kern_cuda_scoring_decode(struct kern_cuda_scoring *s, size_t vocab_row,
                                     struct status_why *why)
{
    const struct kern_cuda_device_ops *ops = s->cuda->device->ops;
    size_t i_buffer = buffer_of(s, vocab_row), n = kern_cuda_scoring_rows(s, vocab_row);
    struct kern_codes_args args = {
        .codes = s->codes[i_buffer],
        .code_stride = n,
        .scales = s->scales,
        .logits = s->heads[0].logits,
        .stride = s->walk.stride,
        .n_rows = s->chunk.n_rows,
        .n_vocab = n,
    };
    size_t n_blocks = base_div_up(args.n_rows, KERN_CODES_SIDE) * base_div_up(n, KERN_CODES_SIDE);
    enum status status = ops->wait(s->cuda->device, KERN_CUDA_COMPUTE, ready_event(i_buffer), why);
    if (!status)
        status = kern_cuda_run(s->cuda, KERN_CUDA_CODES, n_blocks, &args, why);
    return status ? status
                  : ops->signal(s->cuda->device, KERN_CUDA_COMPUTE, free_event(i_buffer), why);
}

enum status kern_cuda_scoring_upload_next(struct kern_cuda_scoring *s, size_t vocab_row,
                                          struct status_why *why)
{
    size_t next = vocab_row + kern_cuda_scoring_rows(s, vocab_row);
    return next < s->walk.n_vocab ? upload_codes(s, next, why) : STATUS_OK;
}

enum status kern_cuda_scoring_begin_codes(struct kern_cuda_scoring *s, struct status_why *why)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; !status && i < KERN_CUDA_CODE_BUFFERS; i++)
        status =
            s->cuda->device->ops->signal(s->cuda->device, KERN_CUDA_COMPUTE, free_event(i), why);
    return status ? status : upload_codes(s, 0, why);
}
