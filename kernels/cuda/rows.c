/* The operations that go through rows once: the host's part of kernels/rows.h. */
#include "kernels/cuda/kernels/rows.h"

#include <stdlib.h>

#include "kernels/cuda/weights/weights.h"
#include "kernels/numerics/ops_scalar.h"

enum { EMBED_ROWS = 4096 /* gathered at a time: 16 MB of Q4_K rows of 8192 */ };

enum status kern_cuda_embed(struct kern_backend *b, const struct kern_weight *matrix,
                            const int32_t *tokens, size_t n_tokens, float *x,
                            struct status_why *why)
{
    struct kern_cuda *cuda = kern_cuda_of(b);
    size_t most = base_min(n_tokens, EMBED_ROWS);
    void *packed;
    enum status status = kern_cuda_scratch(cuda, &packed, kern_cuda_rows_bytes(matrix, most), why);
    for (size_t t = 0; !status && t < n_tokens; t += most) {
        const struct kern_cuda_single_rows rows = {
            matrix, tokens + t, base_min(n_tokens - t, most), packed, x + t * matrix->n_cols, NULL};
        status = kern_cuda_rows_decode(cuda, &rows, why);
    }
    return status;
}

enum status kern_cuda_rmsnorm(struct kern_backend *b, const struct kern_weight *gain, float eps,
                              const float *x, size_t n_tokens, float *y, struct status_why *why)
{
    struct kern_cuda *cuda = kern_cuda_of(b);
    struct kern_norm_args args = {.x = x, .y = y, .width = gain->n_cols, .eps = eps};
    enum status status = kern_cuda_vector(cuda, gain, &args.gain, why);
    if (status)
        return status;
    return kern_cuda_run(cuda, KERN_CUDA_NORM, n_tokens, &args, why);
}

enum status kern_cuda_rope(struct kern_backend *b, const struct kern_rope *op,
                           struct status_why *why)
{
    struct kern_cuda *cuda = kern_cuda_of(b);
    struct kern_cuda_array positions = {op->positions, op->n_tokens * sizeof *op->positions, NULL};
    enum status status = kern_cuda_scratch_put(cuda, &positions, 1, why);
    if (status)
        return status;
    struct kern_rope_args args = {
        .x = op->x,
        .angles = op->angles,
        .positions = positions.to,
        .stride = op->stride,
        .n_tokens = op->n_tokens,
        .n_heads = op->n_heads,
        .head_size = op->head_size,
        .n_pairs = op->n_pairs,
        .split_halves = op->split_halves,
    };
    size_t n_pairs = op->n_tokens * op->n_heads * op->n_pairs;
    return kern_cuda_run(cuda, KERN_CUDA_ROPE, base_div_up(n_pairs, KERN_ROWS_ELEMS), &args, why);
}

enum status kern_cuda_silu_mul(struct kern_backend *b, float *gate, const float *up, size_t n,
                               struct status_why *why)
{
    struct kern_gate_args args = {.gate = gate, .up = up, .n = n};
    return kern_cuda_run(kern_cuda_of(b), KERN_CUDA_GATE, base_div_up(n, KERN_ROWS_ELEMS), &args,
                         why);
}

/** The host has to know the experts to form their batches, so it chooses them itself. */
enum status kern_cuda_top_experts(struct kern_backend *b, const float *logits, size_t n_tokens,
                                  size_t n_experts, size_t n_used, int32_t *experts, float *shares,
                                  struct status_why *why)
{
    struct kern_cuda *cuda = kern_cuda_of(b);
    size_t n = n_tokens * n_experts;
    float *host = malloc(n * sizeof *host);
    if (!host)
        return status_fail(why, STATUS_MEMORY, "no memory to route %zu tokens", n_tokens);
    enum status status = kern_cuda_cancelled(cuda);
    if (!status)
        status = kern_cuda_get(cuda, host, logits, n * sizeof *host, why);
    for (size_t t = 0; !status && t < n_tokens; t++)
        kern_scalar_top_experts(host + t * n_experts, n_experts, n_used, experts + t * n_used,
                                shares + t * n_used);
    free(host);
    return status;
}

/** Gather, or with shares scatter. */
static enum status move_rows(struct kern_cuda *cuda, struct kern_gather_args args,
                             const uint32_t *rows, const float *shares, size_t n_rows,
                             struct status_why *why)
{
    struct kern_cuda_array arrays[] = {
        {rows, n_rows * sizeof *rows, NULL},
        {shares, shares ? n_rows * sizeof *shares : 0, NULL},
    };
    enum status status = kern_cuda_scratch_put(cuda, arrays, 2, why);
    if (status)
        return status;
    args.rows = arrays[0].to;
    args.shares = shares ? arrays[1].to : NULL;
    return kern_cuda_run(cuda, KERN_CUDA_GATHER, n_rows, &args, why);
}

enum status kern_cuda_gather(struct kern_backend *b, const float *x, size_t width,
                             const uint32_t *rows, size_t n_rows, float *y, struct status_why *why)
{
    struct kern_gather_args args = {.x = x, .y = y, .width = width};
    return move_rows(kern_cuda_of(b), args, rows, NULL, n_rows, why);
}

enum status kern_cuda_scatter_add(struct kern_backend *b, const float *x, size_t width,
                                  const uint32_t *rows, const float *shares, size_t n_rows,
                                  float *y, struct status_why *why)
{
    struct kern_gather_args args = {.x = x, .y = y, .width = width};
    return move_rows(kern_cuda_of(b), args, rows, shares, n_rows, why);
}
