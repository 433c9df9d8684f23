/* Rotary embedding over tokens. */
#include "kernels/cpu/context.h"

enum { ROPE_TOKENS = 8 }; /* per iteration of the pool */

struct rope_job {
    const struct kern_rope *op;
    void (*rotate)(float *x, const float *angles, size_t n_pairs);
};

static void rope_tokens(void *context, size_t index, unsigned thread)
{
    (void)thread;
    const struct rope_job *job = context;
    const struct kern_rope *op = job->op;
    size_t end = (index + 1) * ROPE_TOKENS;
    end = end < op->n_tokens ? end : op->n_tokens;
    for (size_t t = index * ROPE_TOKENS; t < end; t++) {
        const float *angles = op->table + (size_t)op->positions[t] * 2 * op->n_pairs;
        for (size_t h = 0; h < op->n_heads; h++) {
            job->rotate(op->x + t * op->stride + h * op->head_size, angles, op->n_pairs);
        }
    }
}

enum status kern_cpu_rope(struct kern_backend *b, const struct kern_rope *op,
                          struct status_why *why)
{
    (void)why;
    struct kern_cpu *cpu = kern_cpu_of(b);
    const struct kern_ops *ops = &cpu->table.ops;
    struct rope_job job = {op, op->split_halves ? ops->rope_halves : ops->rope_adjacent};
    return kern_cpu_run(cpu, (op->n_tokens + ROPE_TOKENS - 1) / ROPE_TOKENS, rope_tokens, &job);
}
