#include "kernels/cuda/gated/deferred.h"

#include <string.h>

#include "kernels/cuda/context.h"
#include "kernels/cuda/kernels/gated/norm.h"
#include "kernels/cuda/kernels/gated/rotated.h"
#include "kernels/cuda/kernels/product.h"
#include "kernels/operations.h"

static size_t powers_bytes(size_t n)
{
    struct kern_cuda_arena arena = {0};
    (void)kern_cuda_take_powers(&arena, n);
    return arena.used;
}

size_t kern_cuda_deferred_bytes(size_t n_rows, size_t n_cols)
{
    return powers_bytes(n_rows) + KERN_CUDA_DEFERRED_MOST * powers_bytes(n_cols);
}

/** Shared memory of a block that makes halves of a gate's row. */
static size_t gate_bytes(size_t n_cols)
{
    return KERN_GATE_SPLIT_HEADER + base_round_up(n_cols, 4) * sizeof(float);
}

static enum status finish(struct kern_cuda *cuda, const struct kern_cuda_waiting *waiting,
                          struct status_why *why)
{
    const struct kern_finish_args args = {
        .sums = waiting->y,
        .out = waiting->y,
        .sums_stride = waiting->n_cols,
        .out_stride = waiting->n_cols,
        .n_a = waiting->n_cols,
        .n_b = cuda->deferred.n_rows,
        .a_largest = waiting->sums.cols.largest,
        .b_largest = waiting->sums.rows.largest,
        .bias_a = waiting->sums.bias,
        .scale = waiting->sums.scale,
    };
    return kern_cuda_finish(cuda, &args, why);
}

enum status kern_cuda_settle(struct kern_cuda *cuda, struct status_why *why)
{
    struct kern_cuda_deferred *d = &cuda->deferred;
    enum status status = STATUS_OK;
    if ((d->n == 0 && !d->norm.y) || d->held)
        return STATUS_OK;
    d->held = true;
    if (d->norm.y)
        status = kern_cuda_run(cuda, KERN_CUDA_NORM, d->norm_rows, &d->norm, why);
    for (size_t i = 0; !status && i < d->n; i++)
        status = finish(cuda, &d->of[i], why);
    const struct kern_activate op = {.kind = d->kind,
                                     .curve = d->curve,
                                     .gate = d->of[0].y,
                                     .up = d->n == 2 ? d->of[1].y : NULL,
                                     .n = d->n_rows * d->of[0].n_cols};
    if (!status && d->n > 0 && d->activated)
        status = kern_cuda_gate(cuda, &op, why);
    d->n = 0;
    d->norm.y = NULL;
    d->held = false;
    return status;
}

/** Whether a product writes where sums wait. */
static bool overwrites(const struct kern_cuda_deferred *d, const struct kern_linear *op)
{
    const float *end = op->y + op->n_tokens * op->y_stride;
    for (size_t i = 0; i < d->n; i++)
        if (op->y < d->of[i].y + d->n_rows * d->of[i].n_cols && d->of[i].y < end)
            return true;
    return false;
}

/** Whether a product is a further one of the same tokens. */
static bool goes_on(const struct kern_cuda_deferred *d, const struct kern_linear *op)
{
    return d->n > 0 && !d->activated && op->same_x && op->x == d->x && op->n_tokens == d->n_rows &&
           !overwrites(d, op);
}

bool kern_cuda_is_waiting(const struct kern_cuda *cuda, const struct kern_linear *op)
{
    const struct kern_cuda_deferred *d = &cuda->deferred;
    size_t n_cols = op->weight->n_cols;
    bool is_gate = d->n > 0 && d->activated && op->x == d->of[0].y && op->n_tokens == d->n_rows &&
                   n_cols == d->of[0].n_cols;
    bool is_norm =
        d->norm.y && op->x == d->norm.y && op->n_tokens == d->norm_rows && n_cols == d->norm.width;
    return is_gate || is_norm;
}

enum status kern_cuda_hold(struct kern_cuda *cuda, const struct kern_linear *op,
                           struct status_why *why)
{
    cuda->deferred.held = goes_on(&cuda->deferred, op) || kern_cuda_is_waiting(cuda, op);
    return kern_cuda_settle(cuda, why);
}

enum status kern_cuda_release(struct kern_cuda *cuda, enum status status)
{
    cuda->deferred.held = false;
    if (status) {
        cuda->deferred.n = 0;
        cuda->deferred.norm.y = NULL;
    }
    return status;
}

/** Room for the powers of a product and of those after it. */
static enum status make_room(struct kern_cuda *cuda, size_t n_bytes, struct status_why *why)
{
    struct kern_cuda_deferred *d = &cuda->deferred;
    d->used = 0;
    if (n_bytes <= d->n_bytes)
        return STATUS_OK;
    cuda->device->ops->free(cuda->device, d->memory);
    d->memory = NULL;
    d->n_bytes = 0;
    enum status status = kern_cuda_memory(cuda, &d->memory, n_bytes, why);
    d->n_bytes = status ? 0 : n_bytes;
    return status;
}

static struct kern_powers take_powers(struct kern_cuda_deferred *d, size_t n)
{
    struct kern_cuda_arena arena = {.base = d->memory, .used = d->used};
    struct kern_powers powers = kern_cuda_take_powers(&arena, n);
    d->used = arena.used;
    return powers;
}

/** The first product of its tokens. */
static enum status begin(struct kern_cuda *cuda, const struct kern_linear *op,
                         const uint32_t *tokens, struct status_why *why)
{
    struct kern_cuda_deferred *d = &cuda->deferred;
    size_t n_bytes = kern_cuda_deferred_bytes(op->n_tokens, op->weight->n_rows);
    enum status status = make_room(cuda, n_bytes, why);
    if (status)
        return status;
    d->of[0].sums.rows = take_powers(d, op->n_tokens);
    d->x = op->x;
    d->n_rows = op->n_tokens;
    d->activated = false;
    d->held = true; /* until all its columns are there */
    return kern_cuda_put_powers(cuda, d->of[0].sums.rows, op->n_tokens, tokens, why);
}

enum status kern_cuda_defer(struct kern_cuda *cuda, const struct kern_linear *op, const float *bias,
                            const uint32_t *tokens, bool *deferred, struct status_why *why)
{
    struct kern_cuda_deferred *d = &cuda->deferred;
    size_t n_cols = op->weight->n_rows;
    *deferred = d->n == 0 ||
                (d->n < KERN_CUDA_DEFERRED_MOST && powers_bytes(n_cols) <= d->n_bytes - d->used);
    if (!*deferred)
        return STATUS_OK;
    if (d->n == 0) {
        enum status status = begin(cuda, op, tokens, why);
        if (status)
            return status;
    }
    struct kern_cuda_waiting *waiting = &d->of[d->n++];
    *waiting = (struct kern_cuda_waiting){
        .sums = {.sums = op->y,
                 .cols = take_powers(d, n_cols),
                 .rows = d->of[0].sums.rows,
                 .bias = bias,
                 .scale = op->weight->scale},
        .y = op->y,
        .n_cols = n_cols,
        .passing = op->passing,
    };
    return STATUS_OK;
}

enum status kern_cuda_defer_columns(struct kern_cuda *cuda, size_t col, size_t n,
                                    const uint32_t *largest, struct status_why *why)
{
    struct kern_cuda_deferred *d = &cuda->deferred;
    struct kern_powers cols = d->of[d->n - 1].sums.cols;
    const struct kern_powers from = {cols.largest + col, cols.first + col, cols.second + col};
    return kern_cuda_put_powers(cuda, from, n, largest, why);
}

bool kern_cuda_defer_activation(struct kern_cuda *cuda, const struct kern_activate *op)
{
    struct kern_cuda_deferred *d = &cuda->deferred;
    const struct kern_cuda_waiting *gate = &d->of[0], *up = &d->of[1];
    bool is_pair = d->n == 2 && op->up == up->y && up->passing && up->n_cols == gate->n_cols;
    bool is_it = (is_pair || (d->n == 1 && !op->up)) && !d->activated && gate->passing &&
                 op->gate == gate->y && op->n == d->n_rows * gate->n_cols;
    if (!is_it || gate_bytes(gate->n_cols) > cuda->device->shared_bytes)
        return false;
    d->kind = op->kind;
    d->curve = op->curve;
    return d->activated = true;
}

bool kern_cuda_defer_norm(struct kern_cuda *cuda, const struct kern_norm_args *args, size_t n_rows)
{
    bool serves = kern_cuda_uses_halves(cuda) && args->n_groups == 1 && !args->bias &&
                  !args->center && !args->accumulate && !args->plain &&
                  kern_norm_split_bytes(args->width) <= cuda->device->shared_bytes;
    if (!serves)
        return false;
    cuda->deferred.norm = *args;
    cuda->deferred.norm_rows = n_rows;
    return true;
}

static enum status split_gate(struct kern_cuda *cuda, const struct kern_half_out *out,
                              size_t n_padded, struct status_why *why)
{
    struct kern_cuda_deferred *d = &cuda->deferred;
    struct kern_gate_split_args args = {
        .gate = d->of[0].sums, .out = *out, .curve = d->curve, .kind = d->kind};
    if (d->n == 2)
        args.up = d->of[1].sums;
    const struct kern_cuda_launch launch = {
        .kernel = KERN_CUDA_GATE_SPLIT,
        .n_blocks = n_padded,
        .shared_bytes = gate_bytes(out->n_cols),
        .args = &args,
    };
    d->n = 0;
    return kern_cuda_run_launch(cuda, &launch, why);
}

enum status kern_cuda_split_waiting(struct kern_cuda *cuda, const struct kern_half_out *out,
                                    size_t n_padded, struct status_why *why)
{
    struct kern_norm_args *norm = &cuda->deferred.norm;
    if (!norm->y)
        return split_gate(cuda, out, n_padded, why);
    const struct kern_norm_split_args args = {
        .x = norm->x, .gain = norm->gain, .y = norm->y, .out = *out, .eps = norm->eps};
    const struct kern_cuda_launch launch = {
        .kernel = KERN_CUDA_NORM_SPLIT,
        .n_blocks = n_padded,
        .shared_bytes = kern_norm_split_bytes(out->n_cols),
        .args = &args,
    };
    norm->y = NULL;
    return kern_cuda_run_launch(cuda, &launch, why);
}

struct kern_cuda_waiting *kern_cuda_rotates(struct kern_cuda *cuda,
                                            const struct kern_rope_args *args)
{
    struct kern_cuda_deferred *d = &cuda->deferred;
    bool in_fours = args->head_size % 4 == 0 && (!args->split_halves || args->n_pairs % 4 == 0) &&
                    (uintptr_t)args->angles % sizeof(struct kern_vec4) == 0;
    for (size_t i = 0; i < d->n && in_fours && !d->activated; i++) {
        struct kern_cuda_waiting *waiting = &d->of[i];
        if (args->x == waiting->y && args->n_tokens == d->n_rows &&
            args->stride == waiting->n_cols && args->n_heads * args->head_size == args->stride) {
            d->held = true;
            return waiting;
        }
    }
    return NULL;
}

enum status kern_cuda_finish_rope(struct kern_cuda *cuda, struct kern_cuda_waiting *waiting,
                                  const struct kern_rope_args *args, struct status_why *why)
{
    struct kern_cuda_deferred *d = &cuda->deferred;
    const struct kern_rotated_args all = {.sums = waiting->sums, .rope = *args};
    enum status status = kern_cuda_run(cuda, KERN_CUDA_ROTATED, args->n_tokens, &all, why);
    size_t n_after = (size_t)(&d->of[--d->n] - waiting);
    memmove(waiting, waiting + 1, n_after * sizeof *waiting);
    return kern_cuda_release(cuda, status);
}
