#include "kernels/cuda/gated/deferred.h"

#include "kernels/cuda/context.h"
#include "kernels/cuda/kernels/product.h"
#include "kernels/cuda/kernels/rows.h"
#include "kernels/operations.h"

static size_t divide(struct kern_sums *sums, size_t n_rows, size_t n_cols, void *memory)
{
    struct kern_cuda_arena arena = {.base = memory};
    sums[0].rows = sums[1].rows = kern_cuda_take_powers(&arena, n_rows);
    sums[0].cols = kern_cuda_take_powers(&arena, n_cols);
    sums[1].cols = kern_cuda_take_powers(&arena, n_cols);
    return arena.used;
}

size_t kern_cuda_deferred_bytes(size_t n_rows, size_t n_cols)
{
    struct kern_sums sums[2];
    return divide(sums, n_rows, n_cols, NULL);
}

/** Shared memory of a block that makes halves of a row. */
static size_t shared_bytes(size_t n_cols)
{
    return KERN_GATE_SPLIT_HEADER + base_round_up(n_cols, 4) * sizeof(float);
}

static enum status finish(struct kern_cuda *cuda, size_t i, struct status_why *why)
{
    const struct kern_cuda_deferred *d = &cuda->deferred;
    const struct kern_finish_args args = {
        .sums = d->y[i],
        .out = d->y[i],
        .sums_stride = d->n_cols,
        .out_stride = d->n_cols,
        .n_a = d->n_cols,
        .n_b = d->n_rows,
        .a_largest = d->sums[i].cols.largest,
        .b_largest = d->sums[i].rows.largest,
        .bias_a = d->sums[i].bias,
        .scale = d->sums[i].scale,
    };
    return kern_cuda_finish(cuda, &args, why);
}

enum status kern_cuda_settle(struct kern_cuda *cuda, struct status_why *why)
{
    struct kern_cuda_deferred *d = &cuda->deferred;
    enum status status = STATUS_OK;
    if (d->n == 0 || d->held)
        return STATUS_OK;
    d->held = true;
    for (size_t i = 0; !status && i < d->n; i++)
        status = finish(cuda, i, why);
    const struct kern_activate op = {.kind = d->kind,
                                     .curve = d->curve,
                                     .gate = d->y[0],
                                     .up = d->n == 2 ? d->y[1] : NULL,
                                     .n = d->n_rows * d->n_cols};
    if (!status && d->activated)
        status = kern_cuda_gate(cuda, &op, why);
    d->n = 0;
    d->held = false;
    return status;
}

/** Whether a product is the second one of those that wait. */
static bool is_second(const struct kern_cuda_deferred *d, const struct kern_linear *op)
{
    return d->n == 1 && !d->activated && op->passing && op->same_x && op->x == d->x &&
           op->y != d->y[0] && op->n_tokens == d->n_rows && op->weight->n_rows == d->n_cols;
}

bool kern_cuda_is_of_gate(const struct kern_cuda *cuda, const struct kern_linear *op)
{
    const struct kern_cuda_deferred *d = &cuda->deferred;
    return d->n > 0 && d->activated && op->x == d->y[0] && op->n_tokens == d->n_rows &&
           op->weight->n_cols == d->n_cols;
}

enum status kern_cuda_hold(struct kern_cuda *cuda, const struct kern_linear *op,
                           struct status_why *why)
{
    cuda->deferred.held = is_second(&cuda->deferred, op) || kern_cuda_is_of_gate(cuda, op);
    return kern_cuda_settle(cuda, why);
}

enum status kern_cuda_release(struct kern_cuda *cuda, enum status status)
{
    cuda->deferred.held = false;
    if (status)
        cuda->deferred.n = 0;
    return status;
}

/** Room for the powers of a product and of the one after it. */
static enum status make_room(struct kern_cuda *cuda, size_t n_bytes, struct status_why *why)
{
    struct kern_cuda_deferred *d = &cuda->deferred;
    if (n_bytes <= d->n_bytes)
        return STATUS_OK;
    cuda->device->ops->free(cuda->device, d->memory);
    d->memory = NULL;
    d->n_bytes = 0;
    enum status status = kern_cuda_memory(cuda, &d->memory, n_bytes, why);
    d->n_bytes = status ? 0 : n_bytes;
    return status;
}

enum status kern_cuda_defer(struct kern_cuda *cuda, const struct kern_linear *op, const float *bias,
                            const uint32_t *tokens, struct status_why *why)
{
    struct kern_cuda_deferred *d = &cuda->deferred;
    size_t i = is_second(d, op);
    enum status status = STATUS_OK;
    if (i == 0) {
        size_t n_cols = op->weight->n_rows;
        status = make_room(cuda, kern_cuda_deferred_bytes(op->n_tokens, n_cols), why);
        if (status)
            return status;
        (void)divide(d->sums, op->n_tokens, n_cols, d->memory);
        status = kern_cuda_put_powers(cuda, d->sums[0].rows, op->n_tokens, tokens, why);
        d->x = op->x;
        d->n_rows = op->n_tokens;
        d->n_cols = n_cols;
        d->activated = false;
        d->held = true; /* until all its columns are there */
    }
    d->y[i] = op->y;
    d->sums[i].sums = op->y;
    d->sums[i].bias = bias;
    d->sums[i].scale = op->weight->scale;
    d->n = i + 1;
    return status;
}

enum status kern_cuda_defer_columns(struct kern_cuda *cuda, size_t col, size_t n,
                                    const uint32_t *largest, struct status_why *why)
{
    struct kern_cuda_deferred *d = &cuda->deferred;
    struct kern_powers cols = d->sums[d->n - 1].cols;
    const struct kern_powers from = {cols.largest + col, cols.first + col, cols.second + col};
    return kern_cuda_put_powers(cuda, from, n, largest, why);
}

bool kern_cuda_defer_activation(struct kern_cuda *cuda, const struct kern_activate *op)
{
    struct kern_cuda_deferred *d = &cuda->deferred;
    if (d->n == 0 || d->activated || op->gate != d->y[0] || op->n != d->n_rows * d->n_cols ||
        op->up != (d->n == 2 ? d->y[1] : NULL) ||
        shared_bytes(d->n_cols) > cuda->device->shared_bytes)
        return false;
    d->kind = op->kind;
    d->curve = op->curve;
    return d->activated = true;
}

enum status kern_cuda_split_gate(struct kern_cuda *cuda,
                                 const struct kern_cuda_split_tokens *tokens,
                                 const struct kern_half_rows *to, struct status_why *why)
{
    struct kern_cuda_deferred *d = &cuda->deferred;
    struct kern_gate_split_args args = {
        .gate = d->sums[0],
        .to = *to,
        .largest = tokens->operand.largest,
        .n_rows = d->n_rows,
        .n_cols = d->n_cols,
        .curve = d->curve,
        .kind = d->kind,
    };
    if (d->n == 2)
        args.up = d->sums[1];
    const struct kern_cuda_launch launch = {
        .kernel = KERN_CUDA_GATE_SPLIT,
        .n_blocks = tokens->n_padded,
        .shared_bytes = shared_bytes(d->n_cols),
        .args = &args,
    };
    d->n = 0;
    return kern_cuda_run_launch(cuda, &launch, why);
}
