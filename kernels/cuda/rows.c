/* The operations that go through rows once: the host's part of kernels/rows.h. */
#include "kernels/cuda/kernels/rows.h"

#include "kernels/cuda/operations.h"
#include "kernels/cuda/weights/weights.h"

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
    struct kern_scale_args args = {
        .x = x, .width = matrix->n_cols, .n_rows = n_tokens, .factor = matrix->scale};
    if (!status && matrix->scale != 1.0f)
        status = kern_cuda_scale(cuda, &args, why);
    return status;
}

enum status kern_cuda_norm(struct kern_backend *b, const struct kern_norm *op,
                           struct status_why *why)
{
    struct kern_cuda *cuda = kern_cuda_of(b);
    struct kern_norm_args args = {.x = op->x,
                                  .y = op->y,
                                  .width = op->width,
                                  .n_groups = op->n_groups,
                                  .eps = op->eps,
                                  .center = op->center,
                                  .accumulate = op->accumulate,
                                  .plain = op->plain};
    enum status status = kern_cuda_settle(cuda, why);
    if (!status)
        status = kern_cuda_vector(cuda, op->gain, &args.gain, why);
    if (!status)
        status = kern_cuda_vector(cuda, op->bias, &args.bias, why);
    return status || kern_cuda_defer_norm(cuda, &args, op->n_rows)
               ? status
               : kern_cuda_run(cuda, KERN_CUDA_NORM, op->n_rows, &args, why);
}

enum status kern_cuda_rope(struct kern_backend *b, const struct kern_rope *op,
                           struct status_why *why)
{
    struct kern_cuda *cuda = kern_cuda_of(b);
    struct kern_rope_args args = {
        .x = op->x,
        .angles = op->angles,
        .stride = op->stride,
        .n_tokens = op->n_tokens,
        .n_heads = op->n_heads,
        .head_size = op->head_size,
        .n_pairs = op->n_pairs,
        .split_halves = op->split_halves,
    };
    struct kern_cuda_waiting *waiting = kern_cuda_rotates(cuda, &args);
    struct kern_cuda_array positions = {op->positions, op->n_tokens * sizeof *op->positions, NULL};
    enum status status = kern_cuda_tables_put(cuda, &positions, 1, why);
    if (status)
        return kern_cuda_release(cuda, status);
    args.positions = positions.to;
    if (waiting)
        return kern_cuda_finish_rope(cuda, waiting, &args, why);
    size_t n_pairs = op->n_tokens * op->n_heads * op->n_pairs;
    return kern_cuda_run(cuda, KERN_CUDA_ROPE, base_div_up(n_pairs, KERN_ROWS_ELEMS), &args, why);
}

enum status kern_cuda_gate(struct kern_cuda *cuda, const struct kern_activate *op,
                           struct status_why *why)
{
    struct kern_gate_args args = {
        .gate = op->gate, .up = op->up, .n = op->n, .curve = op->curve, .kind = op->kind};
    return kern_cuda_run(cuda, KERN_CUDA_GATE, base_div_up(op->n, KERN_ROWS_ELEMS), &args, why);
}

enum status kern_cuda_activate(struct kern_backend *b, const struct kern_activate *op,
                               struct status_why *why)
{
    struct kern_cuda *cuda = kern_cuda_of(b);
    return kern_cuda_defer_activation(cuda, op) ? STATUS_OK : kern_cuda_gate(cuda, op, why);
}

enum status kern_cuda_scale_rows(struct kern_backend *b, float *x, size_t width, size_t n_rows,
                                 const float *factors, struct status_why *why)
{
    struct kern_cuda *cuda = kern_cuda_of(b);
    struct kern_cuda_array array = {factors, n_rows * sizeof *factors, NULL};
    enum status status = kern_cuda_scratch_put(cuda, &array, 1, why);
    struct kern_scale_args args = {.x = x, .factors = array.to, .width = width, .n_rows = n_rows};
    return status ? status : kern_cuda_scale(cuda, &args, why);
}

enum status kern_cuda_copy_rows(struct kern_backend *b, const struct kern_copy *op,
                                struct status_why *why)
{
    struct kern_copy_args args = {.x = op->x,
                                  .y = op->y,
                                  .x_stride = op->x_stride,
                                  .y_stride = op->y_stride,
                                  .width = op->width,
                                  .n_rows = op->n_rows,
                                  .spread = (uint32_t)base_max(op->spread, 1)};
    size_t n = op->width * op->n_rows;
    return kern_cuda_run(kern_cuda_of(b), KERN_CUDA_COPY_ROWS, base_div_up(n, KERN_ROWS_ELEMS),
                         &args, why);
}

enum status kern_cuda_round(struct kern_backend *b, const struct kern_round *op,
                            struct status_why *why)
{
    if (op->type == GGUF_TYPE_Q8_KV)
        return status_fail(why, STATUS_UNSUPPORTED,
                           "keys and values of q8_kv are rounded on a CPU only; expected another "
                           "type, or no GPU");
    struct kern_round_args args = {.x = op->x,
                                   .n = op->n,
                                   .type = op->type,
                                   .n_turn = (uint32_t)op->n_turn,
                                   .scale = op->scale};
    args.turn_scale = 1.0f / sqrtf((float)op->n_turn);
    return kern_cuda_run(kern_cuda_of(b), KERN_CUDA_ROUND, base_div_up(op->n, KERN_ROWS_ELEMS),
                         &args, why);
}
